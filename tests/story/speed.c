/*  Story: what the server does for speed changes nothing that can be seen. It screens a whole batch of datagrams and
    looks their clients up before it handles the first one, and it receives into entries that stay ready between
    updates. Run it with `make test T=speed`. */

enum { SPEED_PLAYERS = 10, SPEED_SLOTS = 8, SPEED_SAYING = 16, SPEED_INTRUDER = 900 };

static struct {
    struct world_t * w;
    struct puppet_t players[SPEED_PLAYERS];
    uint64_t sessions[SPEED_INTRUDER + 1]; /* by client id, as the events report them */
    uint64_t serial;                       /* of the next payload */
    uint64_t hash;                         /* of all that the events said */
    int payloads;                          /* read from the events, of all players */
    int read[SPEED_INTRUDER + 1];          /* of each, by client id */
    int most;                              /* datagrams in one call of receive */
    int way;
    int acted; /* the callback has done its deed */
    void ( *deed )( struct netcode_server_t * server );
} speed;

/* Players 0..3 are in slots 0..3, 4 and 5 have a challenge to answer, and the others have done nothing yet. */
static void speed_prepare( struct world_t * w )
{
    memset( speed.players, 0, sizeof( speed.players ) );
    memset( speed.sessions, 0, sizeof( speed.sessions ) );
    memset( speed.read, 0, sizeof( speed.read ) );
    speed.w = w;
    speed.serial = speed.hash = 0;
    speed.payloads = speed.most = speed.acted = 0;
    for ( int i = 0; i < SPEED_PLAYERS; i++ ) {
        char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        snprintf( address, sizeof( address ), "10.2.0.%d:6000", i + 1 );
        puppet_make( &speed.players[i], w, 0, 100 + (uint64_t) i, address );
        if ( i < 4 )
            REQUIRE( puppet_connect( &speed.players[i] ) );
        else if ( i < 6 )
            REQUIRE( puppet_challenged( &speed.players[i] ) );
    }
}

/* A payload that names its sender. */
static void speed_say( int player )
{
    uint8_t body[SPEED_SAYING], *at = body;
    put( &at, speed.players[player].r.client_id, 8 );
    put( &at, speed.serial++, 8 );
    puppet_send( &speed.players[player], NETCODE_PACKET_PAYLOAD, body, SPEED_SAYING );
}

/* A payload of a player, sealed with a key that is not his. */
static void speed_forge( int player )
{
    struct puppet_t forger = speed.players[player];
    forger.r.to_server_key[7] ^= 1;
    puppet_say( &forger, SPEED_SAYING, 1 );
}

static void speed_junk( const char * address, int bytes )
{
    static const uint8_t data[1300] = { 0x15 };
    struct netcode_address_t from = address_of( address );
    world_inject( speed.w, &from, &speed.w->server_addresses[0], data, bytes );
}

/* Each payload belongs to the session in which it is reported, and names it itself. */
static void speed_note( const struct netcode_event_t * event )
{
    REQUIRE( event->client_id <= SPEED_INTRUDER );
    speed.hash = test_mix( speed.hash ^ event->session ^ event->client_id << 32 ^ (uint64_t) event->type << 60 );
    speed.hash = test_mix( speed.hash ^ event->sequence ^ (uint64_t) event->client_index << 50 );
    if ( event->type == NETCODE_EVENT_CONNECTED )
        speed.sessions[event->client_id] = event->session;
    CHECK( event->session == speed.sessions[event->client_id] );
    if ( event->type != NETCODE_EVENT_PAYLOAD )
        return;
    REQUIRE_EQ( event->bytes, SPEED_SAYING );
    CHECK_EQ( get( event->data, 8 ), event->client_id );
    speed.hash = test_mix( speed.hash ^ get( event->data + 8, 8 ) );
    speed.payloads++;
    speed.read[event->client_id]++;
}

static void speed_read( void )
{
    struct netcode_event_t event;
    while ( netcode_server_next_event( speed.w->servers[0], &event ) ) {
        speed_note( &event );
        if ( event.data )
            netcode_server_free_packet( speed.w->servers[0], event.data );
    }
}

/* Every entry is ready, each over a buffer of its own, and no buffer of the pool is lost. */
static void speed_check_places( void )
{
    const struct netcode_server_t * server = speed.w->servers[0];
    nc_pool_t * pool = server->memory.inbox.pool;
    for ( int i = 0; i < NC_RECEIVE_BATCH; i++ ) {
        const struct netcode_datagram_t * place = &server->base.datagrams[i];
        REQUIRE( place->data == nc_pool_datagram( pool, server->base.batch[i] ) );
        CHECK_EQ( place->capacity, NC_BUFFER_CAPACITY );
        CHECK_EQ( pool->states[server->base.batch[i]], NC_BUFFER_FREE );
        for ( int k = 0; k < i; k++ )
            CHECK_NE( server->base.batch[i], server->base.batch[k] );
    }
    CHECK_EQ( pool->free_count + pool->held + server->memory.inbox.queued + NC_RECEIVE_BATCH, pool->count );
}

/* Each datagram was accepted or dropped, once. */
static void speed_check_sums( const struct netcode_server_stats_t * before, int datagrams )
{
    struct netcode_server_stats_t after = server_stats( speed.w, 0 );
    uint64_t handled = 0;
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        handled += after.packets_received[i] - before->packets_received[i];
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        handled += after.dropped[i] - before->dropped[i];
    CHECK_EQ( after.datagrams_received - before->datagrams_received, datagrams );
    CHECK_EQ( handled, datagrams );
}

/* ---- callbacks in the middle of a batch ---- */

/* Two players go, and another client has the slot of one of them at once. */
static void speed_deed_end( struct netcode_server_t * server )
{
    netcode_server_disconnect_client( server, 0 );
    netcode_server_disconnect_client( server, 1 );
    netcode_server_connect_loopback_client( server, 1, SPEED_INTRUDER, NULL );
}

static void speed_deed_stop( struct netcode_server_t * server )
{
    netcode_server_stop( server );
}

static void speed_deed_start( struct netcode_server_t * server )
{
    netcode_server_start( server, SPEED_SLOTS - 3 );
}

/*  Further packets: one of a player whose packets wait, one that waits itself (it then comes as a replay), a request,
    and junk, which is refused at once. */
static void speed_deed_hand_in( struct netcode_server_t * server )
{
    struct puppet_t * p = &speed.players[2];
    const struct world_datagram_t * waits =
        world_last( speed.w, &speed.players[1].address, NULL, NETCODE_PACKET_PAYLOAD );
    uint8_t data[1300], body[SPEED_SAYING], *at = body;
    put( &at, p->r.client_id, 8 );
    put( &at, speed.serial++, 8 );
    netcode_server_process_packet( server, &p->address, data,
                                   wire_seal( data, NETCODE_PACKET_PAYLOAD, p->sequence++, 0, p->r.to_server_key, body,
                                              SPEED_SAYING ) );
    memcpy( data, waits->data, (size_t) waits->bytes );
    netcode_server_process_packet( server, &speed.players[1].address, data, waits->bytes );
    memcpy( data, speed.players[7].request, REQUEST_BYTES );
    netcode_server_process_packet( server, &speed.players[7].address, data, REQUEST_BYTES );
    memset( data, 0, sizeof( data ) );
    netcode_server_process_packet( server, &speed.players[7].address, data, 5 );
}

static void speed_deed_destroy( struct netcode_server_t * server )
{
    netcode_server_destroy( server );
}

static void speed_on_drop( struct world_party_t * party, int reason )
{
    (void) reason;
    if ( speed.acted++ == 0 )
        speed.deed( party->world->servers[party->index] );
}

/* One batch; its third datagram is refused, and the callback does its deed. */
static void speed_bothered_batch( void )
{
    static const uint8_t nothing[5] = { 0x15 };
    speed_say( 0 );
    speed_say( 1 );
    if ( speed.way == 0 )
        puppet_raw( &speed.players[1], nothing, 5 ); /* refused when it is screened */
    else if ( speed.way == 1 )
        speed_junk( "10.9.0.1:1", 40 ); /* refused when no client is found there */
    else
        speed_forge( 2 ); /* refused when it is opened */
    speed_say( 1 );
    speed_say( 2 );
    puppet_respond( &speed.players[4] );
    puppet_ask( &speed.players[6] );
    puppet_keep_alive( &speed.players[1] );
    if ( speed.way == 2 )
        speed_forge( 3 );
    else
        speed_junk( "10.9.0.2:1", 40 );
    speed_say( 3 );
    speed_say( 0 );
    speed_say( 1 );
}

enum { SPEED_DEED_BATCH = 12 };

/* Opens a world in which the drop callback of that batch does this deed, and hands the batch over. */
static struct netcode_server_stats_t speed_bother( int way, void ( *deed )( struct netcode_server_t * server ) )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, SPEED_SLOTS, 0 );
    struct netcode_server_stats_t before;
    speed_prepare( w );
    speed_read();
    speed.way = way;
    speed.deed = deed;
    speed_bothered_batch();
    before = server_stats( w, 0 );
    w->server_parties[0].on_drop = speed_on_drop;
    world_step( w );
    CHECK_GE( speed.acted, 1 );
    return before;
}

/* Each client that can still play plays on. */
static void speed_play_on( void )
{
    speed.w->server_parties[0].on_drop = NULL;
    for ( int round = 0; round < 40; round++ ) {
        for ( int i = 0; i < SPEED_PLAYERS; i++ )
            if ( world_slot( speed.w, 0, speed.players[i].r.client_id ) >= 0 )
                speed_say( i );
        speed_junk( "10.9.0.3:1", round );
        world_step( speed.w );
        speed_read();
        speed_check_places();
    }
    CHECK_EQ( server_stats( speed.w, 0 ).packets_queued, 0 );
}

/* What the gone players sent reaches no other: not the loopback client in one slot, nor the newcomer in the other. */
TEST( speed_a_drop_callback_ends_clients )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_server_stats_t before = speed_bother( way, speed_deed_end );
        struct netcode_server_client_stats_t stats;
        speed_check_sums( &before, SPEED_DEED_BATCH );
        speed_read();
        speed_check_places();
        CHECK_EQ( speed.read[100], 1 ); /* what stood in front was handled already */
        CHECK_EQ( speed.read[101], 1 );
        CHECK_EQ( speed.read[102], 1 );
        CHECK_EQ( speed.read[103], 1 );
        CHECK_EQ( world_slot( speed.w, 0, 104 ), 0 );
        CHECK_EQ( world_slot( speed.w, 0, SPEED_INTRUDER ), 1 );
        netcode_server_client_stats( speed.w->servers[0], 1, &stats );
        CHECK_EQ( stats.packets_received, 0 );
        netcode_server_client_stats( speed.w->servers[0], 0, &stats );
        CHECK_EQ( stats.packets_received, 0 );
        CHECK_EQ( server_drops( speed.w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), way == 2 ? 4 : 5 + ( way == 1 ) );
        speed_play_on();
        world_close( speed.w );
    }
}

/* The batch is handled to its end, then the server stops, or starts with fewer slots. */
TEST( speed_a_drop_callback_stops_the_server )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_server_stats_t before = speed_bother( way, speed_deed_stop );
        speed_check_sums( &before, SPEED_DEED_BATCH );
        CHECK_EQ( netcode_server_running( speed.w->servers[0] ), 0 );
        speed_read();
        CHECK_EQ( speed.payloads, 7 );
        CHECK_EQ( netcode_server_num_connected_clients( speed.w->servers[0] ), 0 );
        netcode_server_start( speed.w->servers[0], SPEED_SLOTS );
        speed_check_places();
        speed_prepare( speed.w );
        speed_play_on();
        CHECK_EQ( speed.payloads, 40 * 4 );
        world_close( speed.w );
    }
}

TEST( speed_a_drop_callback_starts_the_server_with_other_slots )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_server_stats_t before = speed_bother( way, speed_deed_start );
        speed_check_sums( &before, SPEED_DEED_BATCH );
        CHECK_EQ( netcode_server_max_clients( speed.w->servers[0] ), SPEED_SLOTS - 3 );
        CHECK_EQ( netcode_server_num_connected_clients( speed.w->servers[0] ), 0 );
        speed_check_places();
        speed_prepare( speed.w );
        speed_play_on();
        CHECK_EQ( speed.payloads, 40 * 4 );
        world_close( speed.w );
    }
}

TEST( speed_a_drop_callback_hands_in_further_packets )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_server_stats_t before = speed_bother( way, speed_deed_hand_in );
        speed_check_sums( &before, SPEED_DEED_BATCH + 4 );
        speed_read();
        speed_check_places();
        CHECK_EQ( speed.read[100], 2 );
        CHECK_EQ( speed.read[101], 3 ); /* the one that was handed in twice among them, once */
        CHECK_EQ( speed.read[102], 2 );
        CHECK_EQ( speed.read[103], 1 );
        CHECK_EQ( server_drops( speed.w, 0, NETCODE_DROP_REPLAYED ), 1 );
        CHECK_EQ( world_slot( speed.w, 0, 104 ), 4 );
        CHECK_EQ( server_stats( speed.w, 0 ).pending, 3 ); /* players 5, 6 and 7 */
        speed_play_on();
        world_close( speed.w );
    }
}

/* The rest of the batch is dropped; world_close finds what would be lost. */
TEST( speed_a_drop_callback_destroys_the_server )
{
    for ( int way = 0; way < 3; way++ ) {
        speed_bother( way, speed_deed_destroy );
        speed.w->servers[0] = NULL;
        world_close( speed.w );
    }
}

/* ---- a batch, and the same datagrams one by one ---- */

enum { SPEED_AT_ONCE, SPEED_ONE_BY_ONE, SPEED_HANDED_IN, SPEED_WAYS };

/* The world's socket, which hands out as many as it is asked for, or one, or hands each in by another door. */
static int speed_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct netcode_server_t * server = speed.w->servers[0];
    int filled = world_receive( context, datagrams, speed.way == SPEED_AT_ONCE ? count : 1 );
    if ( filled > speed.most )
        speed.most = filled;
    while ( speed.way == SPEED_HANDED_IN && filled == 1 ) {
        uint8_t data[NC_BUFFER_CAPACITY];
        memcpy( data, datagrams->data, (size_t) datagrams->bytes );
        netcode_server_process_packet( server, &datagrams->address, data, datagrams->bytes );
        filled = world_receive( context, datagrams, 1 );
    }
    return filled;
}

struct speed_result_t {
    struct netcode_server_stats_t stats;
    uint64_t events;
    uint64_t sent;
    int sent_count;
    int slots[SPEED_PLAYERS];
};

/* A player leaves and sends on; others come into the slot and ask. */
static void speed_leaving_batch( void )
{
    for ( int i = 0; i < 4; i++ )
        speed_say( i );
    puppet_send( &speed.players[0], NETCODE_PACKET_DISCONNECT, NULL, 0 );
    speed_say( 0 );
    puppet_keep_alive( &speed.players[0] );
    puppet_ask( &speed.players[6] );
    puppet_respond( &speed.players[4] );
    speed_say( 0 );
    puppet_send( &speed.players[0], NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_ask( &speed.players[7] );
    puppet_send( &speed.players[2], NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_respond( &speed.players[5] );
    puppet_respond( &speed.players[4] );
    puppet_ask( &speed.players[4] );
    while ( speed.w->sockets[0].inbox.count < NC_RECEIVE_BATCH )
        speed_say( speed.w->sockets[0].inbox.count % 4 );
}

/* Sends again what was sent as the newest of its kind. */
static void speed_repeat( int player )
{
    const struct world_datagram_t * d =
        world_last( speed.w, &speed.players[player].address, NULL, NETCODE_PACKET_PAYLOAD );
    uint8_t data[1300];
    if ( d == NULL )
        return;
    memcpy( data, d->data, (size_t) d->bytes ); /* the record may move */
    puppet_raw( &speed.players[player], data, d->bytes );
}

/*  Anything in any order, of players who are in or may come in meanwhile. Player 9 has a newer token of player 1, whose
    slot it takes over. */
static void speed_random_batch( void )
{
    static const int players[] = { 0, 1, 2, 3, 4, 5, 9 };
    while ( speed.w->sockets[0].inbox.count < NC_RECEIVE_BATCH ) {
        int inside = players[test_random_below( 7 )], outside = players[4 + test_random_below( 3 )];
        switch ( test_random_below( 16 ) ) {
        case 0: puppet_send( &speed.players[inside], NETCODE_PACKET_DISCONNECT, NULL, 0 ); break;
        case 1: puppet_respond( &speed.players[outside] ); break;
        case 2: puppet_ask( &speed.players[4 + test_random_below( 6 )] ); break;
        case 3: puppet_ask( &speed.players[inside] ); break;
        case 4: speed_repeat( inside ); break;
        case 5: speed_forge( inside ); break;
        case 6: speed_junk( "10.9.0.1:1", test_random_below( 60 ) ); break;
        case 7: speed_junk( "[::ffff:10.2.0.1]:6000", test_random_below( 1300 ) ); break;
        case 8: speed_junk( "[2001:db8::7]:6000", 18 + test_random_below( 1200 ) ); break;
        case 9: puppet_keep_alive( &speed.players[inside] ); break;
        default: speed_say( inside );
        }
    }
}

static void speed_let_take_over( void )
{
    struct puppet_t * p = &speed.players[9];
    p->r.client_id = speed.players[1].r.client_id;
    p->r.expire += 10;
    puppet_mint( p );
    REQUIRE( puppet_challenged( p ) );
}

static struct speed_result_t speed_run( uint64_t seed, int way, void ( *batch )( void ) )
{
    struct world_t * w = world_new( CLEAN );
    struct speed_result_t result;
    int mark;
    memset( &result, 0, sizeof( result ) );
    test_state.random = ledger_random_state = seed;
    ledger_reset(); /* the other variants seal the same: each is a world of its own */
    w->mapped = speed_receive;
    w->server_config.replace_existing_clients = w->server_config.events = 1;
    speed.w = w;
    speed.way = SPEED_AT_ONCE;
    world_add_server( w, SPEED_SLOTS );
    speed_prepare( w );
    speed_let_take_over();
    speed_read();
    speed.way = way;
    speed.most = 0;
    batch();
    mark = w->records.count;
    world_step( w );
    CHECK_EQ( speed.most, way == SPEED_AT_ONCE ? NC_RECEIVE_BATCH : 1 );
    speed_read();
    speed_check_places();
    result.stats = server_stats( w, 0 );
    result.events = speed.hash;
    result.sent_count = w->records.count - mark;
    for ( int i = mark; i < w->records.count; i++ )
        result.sent =
            test_mix( result.sent ^ ledger_hash( 9, w->records.items[i].data, (size_t) w->records.items[i].bytes ) );
    for ( int i = 0; i < SPEED_PLAYERS; i++ )
        result.slots[i] = world_slot( w, 0, speed.players[i].r.client_id );
    world_close( w );
    return result;
}

/* Whatever is counted, reported and sent is the same. */
static void speed_compare( uint64_t seed, void ( *batch )( void ) )
{
    struct speed_result_t results[SPEED_WAYS];
    uint64_t random = test_state.random;
    for ( int way = 0; way < SPEED_WAYS; way++ )
        results[way] = speed_run( seed, way, batch );
    test_state.random = random;
    for ( int way = 1; way < SPEED_WAYS; way++ ) {
        for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
            if ( results[way].stats.dropped[i] != results[0].stats.dropped[i] )
                test_fail( __FILE__, __LINE__, "seed %d, way %d: %s was counted %d times, and %d in a batch",
                           (int) seed, way, netcode_drop_reason_name( i ), (int) results[way].stats.dropped[i],
                           (int) results[0].stats.dropped[i] );
        CHECK_MEM( &results[way].stats, &results[0].stats, sizeof( results[0].stats ) );
        CHECK_MEM( results[way].slots, results[0].slots, sizeof( results[0].slots ) );
        CHECK( results[way].events == results[0].events );
        CHECK_EQ( results[way].sent_count, results[0].sent_count );
        CHECK( results[way].sent == results[0].sent );
    }
}

TEST( speed_a_batch_of_comings_and_goings )
{
    struct speed_result_t result = speed_run( 7, SPEED_AT_ONCE, speed_leaving_batch );
    CHECK_EQ( result.slots[0], -1 );
    CHECK_EQ( result.slots[2], -1 );
    CHECK_EQ( result.slots[4], 0 ); /* in the slot of the one that left: what it sends on does not reach it */
    CHECK_EQ( result.slots[5], 2 );
    CHECK_EQ( result.stats.pending, 3 ); /* players 6 and 7, and the one that may take over */
    CHECK_EQ( speed.read[104] + speed.read[105], 0 );
    CHECK_EQ( speed.read[100], 1 );
    speed_compare( 7, speed_leaving_batch );
}

TEST( speed_a_batch_is_as_good_as_one_by_one )
{
    for ( uint64_t seed = 1; seed <= 60; seed++ )
        speed_compare( test_random(), speed_random_batch );
}

/*  A client answers and gives up at once: its goodbyes lie in one batch with the response, and leave no client
    behind. */
TEST( speed_goodbyes_right_behind_a_response )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, SPEED_SLOTS, 1 );
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 2.0 ) );
    w->time += w->step;
    netcode_network_simulator_update( w->net, w->time );
    netcode_client_update( w->clients[0], w->time );
    netcode_client_disconnect( w->clients[0] );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).connects, 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 9 );
}

/* The other kinds of packet likewise. */
static void speed_eager_batch( void )
{
    puppet_respond( &speed.players[4] );
    speed_say( 4 );
    puppet_keep_alive( &speed.players[4] );
    speed_say( 4 );
    puppet_respond( &speed.players[9] );
    speed_say( 1 );
    speed_say( 9 );
    while ( speed.w->sockets[0].inbox.count < NC_RECEIVE_BATCH )
        speed_say( 2 );
}

TEST( speed_payloads_right_behind_a_response )
{
    struct speed_result_t result = speed_run( 9, SPEED_AT_ONCE, speed_eager_batch );
    CHECK_EQ( result.slots[9], 1 );
    CHECK_EQ( speed.read[104], 2 );
    CHECK_EQ( speed.read[101], 1 ); /* of the newer session */
    speed_compare( 9, speed_eager_batch );
}

/* A player that is about to leave is not connected any more: what it sends during the callback is not its own. */
static void speed_on_leaving( struct world_party_t * party, int slot, int connected )
{
    struct puppet_t * p = &speed.players[slot];
    uint8_t data[64], body[SPEED_SAYING] = { 0 };
    if ( connected || speed.acted++ )
        return;
    netcode_server_process_packet( party->world->servers[0], &p->address, data,
                                   wire_seal( data, NETCODE_PACKET_PAYLOAD, p->sequence++, 0, p->r.to_server_key, body,
                                              SPEED_SAYING ) );
}

TEST( speed_a_leaving_player_is_not_heard )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, SPEED_SLOTS, 0 );
    struct netcode_server_stats_t before;
    speed_prepare( w );
    speed_read();
    before = server_stats( w, 0 );
    w->server_parties[0].on_change = speed_on_leaving;
    netcode_server_disconnect_client( w->servers[0], 1 );
    speed_check_sums( &before, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 1 );
    speed_read();
    CHECK_EQ( speed.payloads, 0 );
}

/* ---- entries of the batch ---- */

static uint8_t * speed_places[NC_RECEIVE_BATCH];

/* What the socket's receive may rely on, and what an application's own socket was promised. */
static void speed_check_ready( const struct netcode_datagram_t * places, int count )
{
    REQUIRE( count >= 1 && count <= NC_RECEIVE_BATCH );
    for ( int i = 0; i < count; i++ ) {
        CHECK_EQ( places[i].address.type, NETCODE_ADDRESS_NONE );
        CHECK_EQ( places[i].bytes, 0 );
        CHECK_EQ( places[i].status, NETCODE_DATAGRAM_OK );
        CHECK_EQ( places[i].error, 0 );
        CHECK_EQ( places[i].capacity, NC_BUFFER_CAPACITY );
        REQUIRE( places[i].data != NULL );
        speed_places[i] = places[i].data;
        for ( int k = 0; k < i; k++ )
            CHECK( speed_places[k] != speed_places[i] );
    }
}

/* Turns what lies in one entry into something else that a network may report. */
static void speed_spoil( struct netcode_datagram_t * place )
{
    struct netcode_address_t elsewhere = address_of( "[2001:db8::8]:7000" );
    switch ( test_random_below( 8 ) ) {
    case 0:
        place->status = NETCODE_DATAGRAM_ERROR;
        place->error = 111;
        place->bytes = -1;
        break;
    case 1:
        place->status = NETCODE_DATAGRAM_TRUNCATED;
        place->bytes = place->capacity;
        break;
    case 2: place->address = elsewhere; break;
    case 3: place->bytes = 0; break;
    case 4: place->address.port = 0; break;
    case 5: place->address.type = NETCODE_ADDRESS_NONE; break;
    default: break;
    }
}

static int speed_receive_spoilt( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int filled;
    speed_check_ready( datagrams, count );
    filled = world_receive( context, datagrams, count );
    for ( int i = 0; i < filled && speed.way; i++ )
        speed_spoil( &datagrams[i] );
    return filled;
}

/* As many payloads as the server's batch holds and more, some of them spoilt in transit; some are held for long. */
TEST( speed_places_are_ready )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_event_t held[20];
    struct netcode_server_stats_t before, after;
    int next = 0;
    memset( held, 0, sizeof( held ) );
    w->mapped = speed_receive_spoilt;
    w->server_config.events = 1;
    speed.way = 0;
    world_add_server( w, SPEED_SLOTS );
    speed_prepare( w );
    speed_read();
    speed.way = 1;
    before = server_stats( w, 0 );
    for ( int round = 0; round < 300; round++ ) {
        struct netcode_event_t event;
        for ( int i = test_random_below( 70 ); i > 0; i-- )
            speed_say( test_random_below( 4 ) );
        world_step( w );
        speed_check_places();
        while ( netcode_server_next_event( w->servers[0], &event ) ) {
            speed_note( &event );
            if ( held[next].data ) {
                CHECK_EQ( get( held[next].data, 8 ), held[next].client_id ); /* nothing was received into it since */
                netcode_server_free_packet( w->servers[0], held[next].data );
            }
            held[next] = event;
            next = ( next + 1 ) % 20;
        }
    }
    after = server_stats( w, 0 );
    CHECK_GE( speed.payloads, 1000 );
    CHECK_GE( after.receive_errors, 100 );
    CHECK_EQ( after.last_socket_error, 111 );
    CHECK_GE( after.dropped[NETCODE_DROP_OVERSIZED_DATAGRAM], 100 );
    CHECK_GE( after.dropped[NETCODE_DROP_SOURCE_PORT_ZERO], 100 );
    CHECK_GE( after.dropped[NETCODE_DROP_EMPTY_DATAGRAM], 100 );
    CHECK_GE( after.dropped[NETCODE_DROP_UNKNOWN_ADDRESS], 100 );
    speed_check_sums( &before, (int) ( after.datagrams_received - before.datagrams_received ) );
    for ( int i = 0; i < 20; i++ )
        if ( held[i].data )
            netcode_server_free_packet( w->servers[0], held[i].data );
}

/* A client's entries likewise. */
TEST( speed_places_of_a_client_are_ready )
{
    struct world_t * w = world_open( CLEAN, 1, SPEED_SLOTS, 0 );
    struct netcode_client_stats_t stats;
    int client, payloads = 0;
    w->mapped = speed_receive_spoilt;
    speed.way = 0;
    client = world_add_client( w );
    REQUIRE( world_join( w, client, 1 ) );
    speed.way = 1;
    for ( int round = 0; round < 200; round++ ) {
        for ( int i = test_random_below( 50 ); i > 0; i-- )
            server_send( w, 0, 0, 1 + test_random_below( 1200 ), round );
        world_step( w );
        world_step( w );
        payloads += client_drain( w, client );
    }
    stats = client_stats( w, client );
    CHECK_GE( payloads, 500 );
    CHECK_GE( stats.receive_errors, 100 );
    CHECK_GE( stats.dropped[NETCODE_DROP_OVERSIZED_DATAGRAM], 100 );
    CHECK_GE( stats.dropped[NETCODE_DROP_SOURCE_PORT_ZERO], 100 );
    CHECK_GE( stats.dropped[NETCODE_DROP_EMPTY_DATAGRAM], 100 );
    CHECK_GE( stats.dropped[NETCODE_DROP_WRONG_SERVER], 100 );
}

/* ---- events over a start ---- */
