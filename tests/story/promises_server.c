/*  Story: what the manual and the public API promise of servers, sentence by sentence. Written from the documentation
    alone; each test is headed by what it asserts. First: addresses, slots, sending, receiving, counters, memory. */

#define EQ CHECK_EQ
#define D( reason ) NETCODE_DROP_##reason
#define DROPPED( reason ) server_drops( pw, 0, D( reason ) )
#define STATS server_stats( pw, 0 )
#define PARTY pw->server_parties[0]
#define CONFIG pw->server_config
#define ASK( what, slot ) netcode_server_client_##what( ps, slot )
enum {
    BY_NOBODY,
    BY_TIMEOUT,
    BY_CLIENT,
    BY_SERVER,
    BY_REPLACEMENT
}; /* the disconnect reasons, as the header has them */

static struct world_t * pw; /* of the test that runs: its world, its server, its players */
static struct netcode_server_t * ps;
static struct puppet_t pp[16];
static struct netcode_socket_t promise_extras; /* of the next server's socket, instead of the world's */
static const char * const promise_places[] = { "10.2.0.1:6000",    "[fd00::2:1]:6001", "10.2.0.2:6000",
                                               "[fd00::2:2]:6001", "10.2.0.1:6001",    "[fd00::2:1]:6000",
                                               "10.2.0.3:6",       "[fd00:2::1]:6000" };

static struct world_t * promise_world( void )
{
    return pw = world_new( CLEAN );
}

static void promise_server( const char * address, const char * second, int slots )
{
    struct netcode_server_config_t config = pw->server_config;
    struct netcode_socket_t socket;
    pw->server_addresses[0] = address_of( address );
    pw->server_addresses[0].port = pw->server_addresses[0].port ? pw->server_addresses[0].port : 40000;
    PARTY.world = pw, world_socket( pw, &pw->server_addresses[0], &socket ), socket.wait = promise_extras.wait;
    socket.info = promise_extras.info ? promise_extras.info : socket.info;
    socket.receive = promise_extras.receive ? promise_extras.receive : socket.receive;
    memset( &promise_extras, 0, sizeof( promise_extras ) ), config.socket = &socket;
    config.callback_context = &pw->server_parties[0];
    ps = pw->servers[0] = netcode_server_create_dual( address, second, &config, pw->time );
    REQUIRE( ps != NULL );
    pw->server_count = PARTY.is_server = 1, netcode_server_start( ps, slots );
    REQUIRE_EQ( netcode_server_running( ps ), 1 );
}

/* Connected, and confirmed by a keep-alive. */
static int promise_join( struct puppet_t * p, uint64_t id, const char * address )
{
    puppet_make( p, pw, 0, id, address );
    if ( !puppet_connect( p ) )
        return 0;
    puppet_keep_alive( p ), puppet_step( p );
    return 1;
}

/* Players 1001 and so on, of both families in turn, in slots 0 and so on. */
static void promise_crowd( int count )
{
    int i;
    for ( i = 0; i < count; i++ ) {
        REQUIRE( promise_join( &pp[i], 1001 + (uint64_t) i, promise_places[i] ) );
        REQUIRE_EQ( pp[i].client_index, i );
    }
}

/* A server of so many slots, in the world that promise_world has made for it if it has, and players in the first of them. */
static void promise_open( int slots, int players )
{
    if ( !pw || pw != world_list || pw->server_count )
        promise_world();
    promise_server( "10.0.0.1:40000", NULL, slots ), promise_crowd( players );
}

static void promise_poll( int count )
{
    int i;
    for ( i = 0; i < count; i++ )
        puppet_poll( &pp[i] ), EQ( pp[i].unreadable, 0 );
}

static struct netcode_server_client_stats_t promise_slot( int slot )
{
    struct netcode_server_client_stats_t stats;
    memset( &stats, 0x77, sizeof( stats ) ), netcode_server_client_stats( ps, slot, &stats );
    return stats;
}

/* This player, all of it and no other, is in the slot that was reported to it. */
static void promise_is( const struct puppet_t * p )
{
    int slot = (int) p->client_index;
    const struct netcode_address_t * address = ASK( address, slot );
    REQUIRE( address && ASK( user_data, slot ) );
    EQ( ASK( connected, slot ), 1 ), EQ( ASK( id, slot ), p->r.client_id );
    EQ( address->type, p->address.type ), CHECK( netcode_address_equal( address, &p->address ) );
    CHECK_MEM( ASK( user_data, slot ), p->r.user_data, NETCODE_USER_DATA_BYTES );
    EQ( ASK( disconnect_reason, slot ), BY_NOBODY ), EQ( ASK( loopback, slot ), 0 );
    CHECK_NE( ASK( session, slot ), 0 ), CHECK_NE( netcode_server_next_packet_sequence( ps, slot ), 0 );
}

static void promise_nobody( int slot, int reason )
{
    struct netcode_server_client_stats_t stats = promise_slot( slot ), zero;
    int bytes;
    memset( &zero, 0, sizeof( zero ) ), CHECK( !ASK( address, slot ) && !ASK( user_data, slot ) );
    EQ( ASK( connected, slot ), 0 ), EQ( ASK( loopback, slot ), 0 );
    EQ( ASK( id, slot ), 0 ), EQ( ASK( session, slot ), 0 );
    EQ( ASK( disconnect_reason, slot ), reason ), EQ( netcode_server_next_packet_sequence( ps, slot ), 0 );
    CHECK( netcode_server_receive_packet( ps, slot, &bytes, NULL ) == NULL );
    CHECK_MEM( &stats, &zero, offsetof( struct netcode_server_client_stats_t, loopback ) + sizeof( int ) );
}

/* Exactly these drops since the server was created: pairs of reason and count; D( NONE ) ends them. */
static void promise_drops( int reason, ... )
{
    uint64_t expected[NETCODE_DROP_REASONS] = { 0 };
    struct netcode_server_stats_t s = server_stats( pw, 0 );
    va_list list;
    va_start( list, reason );
    for ( ; reason != D( NONE ); reason = va_arg( list, int ) )
        expected[reason] = (uint64_t) va_arg( list, int );
    va_end( list );
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ )
        if ( s.dropped[reason] != expected[reason] )
            test_fail( __FILE__, __LINE__, "%s was counted %d times, not %d", netcode_drop_reason_name( reason ),
                       (int) s.dropped[reason], (int) expected[reason] );
}

/* The newest payload to this player is this one, under its key, with this sequence. */
static void promise_got( const struct puppet_t * p, int bytes, int tag, uint64_t sequence )
{
    const struct world_datagram_t * d = world_last( pw, &pw->server_addresses[0], &p->address, NETCODE_PACKET_PAYLOAD );
    uint8_t body[2048], expected[NETCODE_MAX_PACKET_SIZE];
    uint64_t carried = 0;
    int type;
    REQUIRE( d && wire_open( d->data, d->bytes, p->r.to_client_key, &type, &carried, body ) == bytes );
    payload_fill( expected, bytes, tag ), CHECK_MEM( body, expected, bytes ), EQ( carried, sequence );
}

/* The oldest payload of the slot is this one. Freed here. */
static void promise_read( int slot, int size, int tag, uint64_t expected_sequence )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE], *packet;
    int bytes = -1;
    uint64_t sequence = 0;
    REQUIRE( ( packet = netcode_server_receive_packet( ps, slot, &bytes, &sequence ) ) != NULL );
    payload_fill( expected, size, tag );
    REQUIRE_EQ( bytes, size );
    CHECK_MEM( packet, expected, size ), EQ( sequence, expected_sequence ), EQ( (uintptr_t) packet % 16, 0 );
    netcode_server_free_packet( ps, packet );
}

/* ---- addresses ---- */

static void promise_info( void * context, struct netcode_socket_info_t * info )
{
    static const struct netcode_socket_info_t known =
        { { { { 0 } }, 111, NETCODE_ADDRESS_IPV4 }, { { { 0 } }, 222, NETCODE_ADDRESS_IPV6 }, 11111, 22222, 7, 55 };
    (void) context;
    *info = known;
}

/*  "Makes a server that tokens call `address` (and by every one of config->public_addresses beside it)"; "port 0 stands for the
    port bound"; "with an address of each family". The server "looks for itself among the internal ones". */
TEST( promise_names_that_tokens_may_call_a_server )
{
    static const char * const names[] = { "203.0.113.5:41000", "203.0.113.6", "[2001:db8::5]:41000",
                                          "[2001:db8::6]:0" };
    static const char * const rows[] = { "10.0.0.1:111",        "[fd00::1]:222",         "203.0.113.5:41000",
                                         "203.0.113.6:111",     "[2001:db8::5]:41000",   "[2001:db8::6]:222",
                                         "10.0.0.1:222",        "[fd00::1]:111",         "203.0.113.5:111",
                                         "203.0.113.6:222",     "[2001:db8::5]:222",     "[2001:db8::6]:111",
                                         "[2001:db8::7]:41000", "[2001:db8:1::5]:41000", "203.0.113.7:111",
                                         "10.0.0.2:111" };
    int i;
    promise_world()->server_config.public_addresses = names, CONFIG.num_public_addresses = 4;
    promise_extras.info = promise_info, promise_server( "10.0.0.1:0", "[fd00::1]:0", 16 );
    EQ( netcode_server_get_port( ps ),
        111 ); /* "The port of the server's first address; the real one where port 0 was asked for." */
    for ( i = 0; i < 16; i++ ) {
        puppet_make( &pp[i], pw, 0, 1 + (uint64_t) i, promise_places[i % 4] );
        pp[i].address.port = (uint16_t) ( 7000 + i );
        pp[i].r.private_count =
            2; /* the server's name is the second: it looks at all of them, and at none of the public ones */
        pp[i].r.private_addresses[0] = address_of( "192.0.2.77:40000" );
        pp[i].r.private_addresses[1] = address_of( rows[i] ), puppet_mint( &pp[i] );
        if ( !EQ( puppet_connect( &pp[i] ), i < 6 ) )
            printf( "    %s\n", rows[i] );
    }
    promise_drops( D( TOKEN_FOR_ANOTHER_SERVER ), 10, D( NONE ) );
}

/* ---- slots ---- */

/*  "Is there a client in this slot? [...] any index from 0 on [...] past the last slot no client is connected." "0 and
    NULL if no client is connected." "Why the slot's last client left; NONE while one is connected." */
TEST( promise_each_slot_is_its_own )
{
    int i, j;
    promise_open( 8, 6 );
    for ( i = 0; i < 6; i++ )
        for ( promise_is( &pp[i] ), EQ( pp[i].max_clients, 8 ), j = 0; j < i; j++ )
            CHECK_NE( ASK( session, i ), ASK( session, j ) );
    for ( i = 6; i < 20; i++ )
        promise_nobody( i, BY_NOBODY );
    promise_nobody( NETCODE_MAX_SLOTS, BY_NOBODY ), promise_nobody( INT32_MAX, BY_NOBODY );
    netcode_server_disconnect_client( ps, 2 ), puppet_send( &pp[3], NETCODE_PACKET_DISCONNECT, NULL, 0 ),
        world_step( pw );
    promise_poll( 6 );
    for ( i = 0; i < 6; i++ ) {
        EQ( pp[i].disconnects, i == 2 ? 10 : 0 );
        if ( i == 2 || i == 3 )
            promise_nobody( i, i == 2 ? BY_SERVER : BY_CLIENT );
        else
            promise_is( &pp[i] );
    }
    EQ( netcode_server_num_connected_clients( ps ), 4 ), EQ( STATS.clients, 4 );
    EQ( promise_join( &pp[6], 2000, promise_places[2] ), 1 ), promise_is( &pp[6] ),
        EQ( netcode_server_num_connected_clients( ps ), 5 );
}

/*  "A call that does something to such a slot is a mistake, logged once a second." "an index [...] out of range is a mistake of the
    caller"; "any other size is refused and logged"; "nothing else happens". */
TEST( promise_slots_and_sizes_that_are_not )
{
    uint8_t data[10] = { 1 };
    int i, before, mark;
    promise_open( 4, 4 ), mark = pw->records.count, before = PARTY.lines;
    for ( i = 0; i < 10; i++ )
        TOLERATE( netcode_server_disconnect_client( ps, 4 + i ); world_run( pw, 0.02 ) );
    EQ( PARTY.lines, before + 1 ), EQ( test_state.asserts, TEST_ASSERTS_WORK ? 10 : 0 ), world_run( pw, 1.0 );
    BAD( netcode_server_send_packet( ps, 4, data, 10 ) );
    BAD( EQ( ASK( connected, -1 ), 0 ) );
    BAD( EQ( ASK( id, -1 ), 0 ) );
    BAD( netcode_server_start( ps, 0 ) );
    BAD( netcode_server_start( ps, NETCODE_MAX_SLOTS + 1 ) );
    REFUSED( netcode_server_send_packet( ps, 0, data, 0 ) );
    REFUSED( netcode_server_send_packet( ps, 0, data, -1 ) );
    REFUSED( netcode_server_send_packet( ps, 0, data, NETCODE_MAX_PACKET_SIZE + 1 ) );
    REFUSED( netcode_server_broadcast( ps, data, NETCODE_MAX_PACKET_SIZE + 1, -1 ) );
    EQ( world_count( pw, mark, NULL, NULL, NETCODE_PACKET_PAYLOAD, 0 ) +
            world_count( pw, mark, NULL, NULL, NETCODE_PACKET_DISCONNECT, 0 ),
        0 );
    EQ( netcode_server_max_clients( ps ), 4 );
    for ( i = 0; i < 4; i++ )
        promise_is( &pp[i] );
}

/*  "Is it started; how many slots has it; how many of them are taken? 0 while stopped." "Disconnects everyone and closes the slots. Used
    tokens stay remembered", those that never expire too, with any number of slots. "a running server is stopped first". */
TEST( promise_stop_and_start )
{
    static const int sizes[] = { 4, 3, 1, 6, 6, 2 };
    struct netcode_server_stats_t s;
    uint64_t bytes;
    int i, round, total = 0;
    promise_open( 4, 0 );
    for ( round = 0; round < 5; round++ ) {
        int slots = sizes[round], log = PARTY.log_count;
        for ( i = 0; i < slots; i++ ) {
            puppet_make( &pp[i], pw, 0, (uint64_t) ( round * 10 + i + 1 ), promise_places[i] );
            pp[i].r.expire = i % 2 ? pp[i].r.expire : FOREVER, puppet_mint( &pp[i] );
            REQUIRE( puppet_connect( &pp[i] ) );
            EQ( pp[i].max_clients, slots ), promise_is( &pp[i] );
        }
        total += slots, s = server_stats( pw, 0 );
        EQ( s.max_clients, slots ), EQ( s.clients, slots ), EQ( s.connects, total ), EQ( s.consumed, total );
        puppet_make( &pp[8], pw, 0, 99, promise_places[7] ), puppet_ask( &pp[8] ),
            puppet_step( &pp[8] ); /* denied: pending */
        EQ( STATS.pending, 1 );
        if ( round % 2 ) {
            netcode_server_stop( ps ), s = server_stats( pw, 0 ), bytes = s.bytes_received;
            EQ( s.max_clients + s.clients + s.pending + netcode_server_running( ps ) + netcode_server_max_clients( ps ),
                0 );
            EQ( netcode_server_num_connected_clients( ps ), 0 ), EQ( s.consumed, total ),
                EQ( s.disconnects[BY_SERVER], total );
            netcode_server_process_packet( ps, &pp[0].address, pp[0].request,
                                           REQUEST_BYTES ); /* "or the server is stopped" */
            s = server_stats( pw, 0 ), EQ( s.dropped[D( NOT_CONNECTED )], round / 2 + 1 ),
            EQ( s.bytes_received, bytes + REQUEST_BYTES );
        }
        netcode_server_start( ps, sizes[round + 1] ), promise_poll( slots ), s = server_stats( pw, 0 );
        EQ( s.max_clients, sizes[round + 1] ), EQ( s.clients + s.pending, 0 ), EQ( s.disconnects[BY_SERVER], total ),
            EQ( s.consumed, total );
        EQ( PARTY.log_count, log + 2 * slots ), EQ( netcode_server_running( ps ), 1 );
        for ( i = 0; i < slots; i++ ) {
            EQ( pp[i].disconnects, 10 ), EQ( PARTY.log[log + slots + i][0], i );
            netcode_server_process_packet( ps, &pp[i].address, pp[i].request,
                                           REQUEST_BYTES ); /* used before the stop */
        }
        EQ( DROPPED( TOKEN_CONSUMED ), total );
        for ( i = 0; i < sizes[round + 1]; i++ )
            promise_nobody( i, BY_NOBODY );
        world_run( pw, 1.0 );
    }
}

/* ---- sending ---- */

/* "The sequence that the next packet to this client will carry": each slot counts its own. "Sends a payload of 1..1200 bytes". */
TEST( promise_each_slot_counts_its_packets )
{
    uint64_t sequence[4];
    int i, round;
    promise_open( 4, 4 ), promise_poll( 4 );
    for ( i = 0; i < 4; i++ )
        sequence[i] = pp[i].newest_sequence + 1,
        CHECK( sequence[i] < (uint64_t) 1 << 48 ); /* "a random place below 2^48" */
    for ( round = 0; round < 3; round++ )
        for ( i = 0; i < 4; i++ ) {
            int size = round == 0 ? 1 : round == 1 ? NETCODE_MAX_PACKET_SIZE : 100 + i;
            EQ( netcode_server_next_packet_sequence( ps, i ), sequence[i] );
            server_send( pw, 0, i, size, 10 * round + i ), promise_got( &pp[i], size, 10 * round + i, sequence[i]++ );
        }
    promise_poll( 4 );
    for ( i = 0; i < 4; i++ )
        EQ( pp[i].payloads, 3 ), EQ( netcode_server_next_packet_sequence( ps, i ), sequence[i] );
}

static int promise_looped[16], promise_loop_bytes; /* loopback callbacks of each slot */
static uint64_t promise_loop_sequence[16];
static uint8_t promise_loop_data[NETCODE_MAX_PACKET_SIZE];

static void promise_loop( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                          uint64_t sequence )
{
    REQUIRE( party->is_server && client_index >= 0 && client_index < 16 );
    promise_looped[client_index]++;
    promise_loop_sequence[client_index] = sequence, promise_loop_bytes = bytes;
    memcpy( promise_loop_data, data, (size_t) bytes );
}

/* "Sends a payload to everyone who is connected, but `except_client_index` (-1: to all)." */
TEST( promise_broadcast )
{
    uint8_t data[50];
    int i, except, expected[8] = { 0 };
    memset( promise_looped, 0, sizeof( promise_looped ) ), promise_open( 8, 4 ), PARTY.on_loopback = promise_loop;
    netcode_server_connect_loopback_client( ps, 5, 50, NULL ),
        netcode_server_connect_loopback_client( ps, 7, 70, NULL );
    for ( except = -1; except < 8; except++ ) {
        uint64_t sequence[8];
        for ( i = 0; i < 8; i++ )
            sequence[i] = netcode_server_next_packet_sequence( ps, i );
        payload_fill( data, 50, except + 1 ), netcode_server_broadcast( ps, data, 50, except ), promise_poll( 4 );
        for ( i = 0; i < 8; i++ ) {
            expected[i] += i != except && ( i < 4 || i == 5 || i == 7 );
            EQ( i < 4 ? pp[i].payloads : promise_looped[i], expected[i] ), EQ( i < 4 && promise_looped[i], 0 );
            if ( i < 4 && i != except )
                promise_got( &pp[i], 50, except + 1, sequence[i] );
            else if ( i >= 4 && i != except && expected[i] )
                EQ( promise_loop_sequence[i], sequence[i] ), EQ( promise_loop_bytes, 50 ),
                    CHECK_MEM( promise_loop_data, data, 50 );
        }
    }
    netcode_server_stop( ps ), i = pw->records.count, netcode_server_broadcast( ps, data, 50, -1 ); /* "is silent" */
    EQ( pw->records.count, i ), EQ( promise_looped[5], expected[5] );
}

/* "Tells the client (10 redundant packets, at once) and empties the slot; all slots, but for loopback clients'." A full server. */
TEST( promise_disconnect_all_spares_loopback )
{
    int i;
    promise_open( 5, 2 ), netcode_server_connect_loopback_client( ps, 2, 99, NULL );
    for ( i = 3; i < 5; i++ )
        REQUIRE( promise_join( &pp[i], (uint64_t) i, promise_places[i] ) );
    netcode_server_disconnect_all_clients( ps ), promise_poll( 2 ), puppet_poll( &pp[3] ), puppet_poll( &pp[4] );
    for ( i = 0; i < 5; i++ )
        if ( i != 2 )
            EQ( pp[i].disconnects, 10 ), promise_nobody( i, BY_SERVER );
    EQ( ASK( id, 2 ), 99 ), EQ( ASK( loopback, 2 ), 1 );
    netcode_server_disconnect_all_clients( ps ); /* again: there is no client to notify */
    EQ( netcode_server_num_connected_clients( ps ), 1 ), EQ( STATS.packets_sent[NETCODE_PACKET_DISCONNECT], 40 );
    EQ( PARTY.log_count, 9 );
}

/* ---- receiving ---- */

/*  "The oldest payload of this client, or NULL. It stays valid until freed [...] whatever becomes of the client and the slot"; through
    "stop, start and the reuse of their slot". "`sequence` may be NULL". */
TEST( promise_payloads_of_each_slot )
{
    uint8_t *held[4], expected[64];
    int i, round, bytes;
    promise_open( 4, 4 );
    for ( round = 0; round < 3; round++ )
        for ( i = 3; i >= 0; i-- )
            puppet_say( &pp[i], 20 + 10 * round + i, 10 * i + round );
    world_step( pw ), EQ( STATS.packets_queued, 12 );
    for ( i = 0; i < 4; i++ ) {
        promise_read( i, 20 + i, 10 * i, 1003 ), promise_read( i, 30 + i, 10 * i + 1, 1004 ),
            EQ( promise_slot( i ).packets_queued, 1 );
        REQUIRE( ( held[i] = netcode_server_receive_packet( ps, i, &bytes, NULL ) ) != NULL );
        EQ( bytes, 40 + i ), CHECK( netcode_server_receive_packet( ps, i, &bytes, NULL ) == NULL );
        EQ( STATS.packets_held, i + 1 ), EQ( STATS.packets_queued, 9 - 3 * i );
    }
    netcode_server_disconnect_client( ps, 1 ), netcode_server_start( ps, 4 );
    EQ( STATS.packets_held, 4 ), netcode_server_free_packet( ps, held[3] ), EQ( STATS.packets_held, 3 );
    netcode_server_start( ps, 2 );
    REQUIRE( promise_join( &pp[0], 7, promise_places[5] ) );
    for ( i = 0; i < 50; i++ )
        puppet_say( &pp[0], 40, i );
    world_step( pw ), EQ( server_drain( pw, 0, 0 ), 50 );
    for ( i = 0; i < 3; i++ )
        payload_fill( expected, 40 + i, 10 * i + 2 ), CHECK_MEM( held[i], expected, 40 + i ),
            netcode_server_free_packet( ps, held[i] );
}

/*  "one that queues more than its quota loses the newest, counted as QUEUE_FULL". "payloads that found no room; what came while the queue
    was full was not opened". packet_quota: "received packets of one client that may be queued; 256". */
TEST( promise_quota )
{
    int round, i;
    for ( round = 0; round < 2; round++ ) {
        int quota = round ? 256 : 5;
        promise_world()->server_config.packet_quota = round ? 0 : 5, promise_open( 4, 3 );
        puppet_say( &pp[0], 10, 1 ), puppet_say( &pp[2], 10, 2 );
        for ( i = 0; i < quota + 3; i++ ) {
            puppet_say( &pp[1], 10, i );
            if ( i % 16 == 15 || i + 1 == quota )
                world_step( pw ), promise_drops( D( NONE ) );
        }
        puppet_say( &pp[2], 10, 3 ), world_step( pw ), promise_drops( D( QUEUE_FULL ), 3, D( NONE ) );
        for ( i = 0; i < 3; i++ )
            EQ( promise_slot( i ).packets_dropped, i == 1 ? 3 : 0 ),
                EQ( promise_slot( i ).packets_queued, i == 1 ? quota : 1 + i / 2 );
        for ( i = 0; i < quota; i++ )
            promise_read( 1, 10, i, 1003 + (uint64_t) i );
        puppet_say( &pp[1], 10, 9 ), world_step( pw ),
            promise_read( 1, 10, 9, pp[1].sequence - 1 ); /* there is room again */
        EQ( server_drain( pw, 0, 0 ), 1 ), EQ( server_drain( pw, 0, 2 ), 2 );
    }
}

/*  "What was queued when the client left can be read until the slot is used again"; of this slot alone. "what was not read yet is given up if
    the number of slots changes". "NULL while the server is stopped." */
TEST( promise_what_is_queued_when_a_client_leaves )
{
    int slots, i, payloads, bytes;
    for ( slots = 4; slots <= 5; slots++ ) {
        promise_open( 4, 3 );
        for ( i = 0; i < 3; i++ )
            puppet_say( &pp[i], 30, i ), puppet_say( &pp[i], 31, i ),
                puppet_send( &pp[i], i < 2 ? NETCODE_PACKET_DISCONNECT : 5, "x", i / 2 );
        world_step( pw );
        EQ( netcode_server_num_connected_clients( ps ), 1 ), EQ( STATS.packets_queued, 7 ),
            promise_read( 0, 30, 0, 1003 );
        REQUIRE( promise_join( &pp[3], 9, promise_places[3] ) );
        EQ( pp[3].client_index, 0 ), EQ( server_drain( pw, 0, 0 ), 0 ), promise_read( 1, 30, 1, 1003 ),
            promise_read( 2, 30, 2, 1003 );
        netcode_server_stop( ps ), EQ( STATS.packets_queued, 3 );
        for ( i = 0; i < 4; i++ )
            CHECK( netcode_server_receive_packet( ps, i, &bytes, NULL ) == NULL );
        netcode_server_start( ps, slots ), EQ( STATS.packets_queued, slots == 4 ? 3 : 0 );
        for ( payloads = i = 0; i < slots; i++ )
            payloads += server_drain( pw, 0, i );
        EQ( payloads, slots == 4 ? 3 : 0 ), EQ( STATS.packets_queued + STATS.packets_held, 0 );
    }
}

/*  "Feeds one raw datagram, as if the socket had received it." "replay window 320 packets; a jump of more than 2^32 is refused"; "The replay
    window opens at the packet that connected". */
TEST( promise_replay_window_of_each_slot )
{
    /* of each datagram: the sequence, from the newest one on; why it is dropped */
    static const struct {
        int64_t at;
        int reason;
    } rows[] = { { ( (int64_t) 1 << 32 ) + 1, D( SEQUENCE_TOO_FAR_AHEAD ) },
                 { -1, D( SEQUENCE_TOO_OLD ) },
                 { -2, D( SEQUENCE_TOO_OLD ) },
                 { 0, D( REPLAYED ) },
                 { (int64_t) 1 << 32, D( NONE ) },
                 { -319, D( NONE ) },
                 { -320, D( SEQUENCE_TOO_OLD ) },
                 { -319, D( REPLAYED ) },
                 { 0, D( REPLAYED ) },
                 { -5, D( NONE ) },
                 { 3, D( NONE ) } };
    uint64_t expected[NETCODE_DROP_REASONS] = { 0 };
    uint8_t out[2048], data[40];
    int i, k, bytes;
    promise_open( 3, 2 ), payload_fill( data, 40, 6 );
    for ( i = 0; i < 2; i++ ) {
        uint64_t newest = 1002;
        for ( k = 0; k < 11; k++ ) {
            uint64_t sequence = newest + (uint64_t) rows[k].at;
            bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, sequence, 0, pp[i].r.to_server_key, data, 40 );
            netcode_server_process_packet( ps, &pp[i].address, out, bytes );
            expected[rows[k].reason]++, newest = !rows[k].reason && sequence > newest ? sequence : newest;
            if ( !rows[k].reason )
                promise_read( i, 40, 6, sequence );
            if ( !EQ( server_drops( pw, 0, rows[k].reason ), rows[k].reason ? expected[rows[k].reason] : 0 ) )
                printf( "    row %d of player %d\n", k, i );
        }
        EQ( STATS.packets_received[NETCODE_PACKET_PAYLOAD], 4 * ( i + 1 ) );
    }
    bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, ++pp[0].sequence, 0, pp[0].r.to_server_key, data, 40 );
    netcode_server_process_packet( ps, &pp[1].address, out, bytes ),
        EQ( STATS.packets_queued, 0 ); /* the neighbour's key */
}

/* ---- counters ---- */

/*  "What was sent, received and dropped, and who came and went, since the server was created." Each field of netcode_server_stats_t, after
    a life of which each packet is known. */
TEST( promise_every_field_of_the_server_stats )
{
    static const int received[] = { 5, 0, 0, 4, 4, 3, 1 }, disconnects[] = { 0, 0, 1, 1, 0 };
    struct netcode_server_stats_t s;
    int i, bytes, sum = 0;
    uint8_t * packet;
    promise_world(), promise_extras.info = promise_info, promise_open( 4, 4 );
    EQ( STATS.last_socket_error, 55 ); /* what the socket reports, until there is one of receiving */
    puppet_make( &pp[5], pw, 0, 50, promise_places[6] ), puppet_ask( &pp[5] ),
        world_step( pw ); /* the server is full: denied */
    puppet_send( &pp[0], NETCODE_PACKET_DISCONNECT, NULL, 0 ), puppet_raw( &pp[2], (const uint8_t *) "", 0 );
    puppet_raw( &pp[1], (const uint8_t *) "\27 a packet of a type that is none", 30 );
    for ( i = 0; i < 3; i++ )
        puppet_say( &pp[1], 100, i );
    world_inject_error( pw, &pp[2].address, &pw->server_addresses[0], 11 );
    world_inject_error( pw, &pp[2].address, &pw->server_addresses[0], 111 );
    world_step( pw ), puppet_ask( &pp[5] ), world_step( pw );
    netcode_server_connect_loopback_client( ps, 0, 9, NULL ), server_send( pw, 0, 3, 77, 1 ),
        netcode_server_disconnect_client( ps, 2 );
    REQUIRE( ( packet = netcode_server_receive_packet( ps, 1, &bytes, NULL ) ) != NULL );
    for ( i = 0; i < pw->records.count; i++ )
        sum += pw->records.items[i].injected ? pw->records.items[i].bytes : 0;
    s = server_stats( pw, 0 );
    for ( i = 0; i < NETCODE_PACKET_TYPES; i++ )
        EQ( s.packets_sent[i], world_count( pw, 0, &pw->server_addresses[0], NULL, i, 0 ) ),
            EQ( s.packets_received[i], received[i] );
    EQ( s.packets_sent[NETCODE_PACKET_DENIED], 1 ), EQ( s.packets_sent[NETCODE_PACKET_CHALLENGE], 5 );
    EQ( s.packets_sent[NETCODE_PACKET_DISCONNECT], 10 ), EQ( s.packets_sent[NETCODE_PACKET_PAYLOAD], 1 );
    EQ( s.bytes_sent, world_count( pw, 0, &pw->server_addresses[0], NULL, -1, 1 ) ), EQ( s.bytes_received, sum );
    EQ( s.datagrams_received, 5 + 4 + 4 + 3 + 1 + 1 + 1 + 1 );
    promise_drops( D( SERVER_FULL ), 1, D( EMPTY_DATAGRAM ), 1, D( UNKNOWN_PACKET_TYPE ), 1, D( NONE ) );
    for ( i = 0; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        EQ( s.disconnects[i], disconnects[i] );
    EQ( s.connects, 5 ), EQ( s.send_errors, 0 ), EQ( s.receive_errors, 2 ), EQ( s.last_socket_error, 111 ),
        EQ( s.kernel_drops, 7 );
    EQ( s.receive_buffer_bytes, 11111 ), EQ( s.send_buffer_bytes, 22222 ), EQ( s.packets_queued, 2 ),
        EQ( s.packets_held, 1 );
    EQ( s.handshakes, 5 ), EQ( s.handshakes_expired, 0 ), EQ( s.handshakes_evicted, 0 ), EQ( s.backlogs, 0 ),
        EQ( s.max_clients, 4 );
    EQ( s.clients, 3 ), EQ( s.pending, 1 ), EQ( s.consumed, 4 );
    netcode_server_free_packet( ps, packet ), EQ( STATS.packets_held, 0 );
}

/* "The same for the client in one slot": each field of netcode_server_client_stats_t, of each slot by itself. */
TEST( promise_every_field_of_the_client_stats )
{
    struct netcode_server_client_stats_t s, before[3];
    double since[3], heard[3];
    int i, k, mark;
    promise_open( 4, 0 );
    for ( i = 0; i < 3; i++ ) {
        REQUIRE( promise_join( &pp[i], 1001 + (uint64_t) i, promise_places[i] ) );
        heard[i] = pw->time, since[i] = pw->time - pw->step; /* the update before the last one took its response */
        world_run( pw, 0.5 );
    }
    puppet_make( &pp[3], pw, 0, 50, promise_places[3] );
    REQUIRE( puppet_connect( &pp[3] ) );
    for ( i = 0; i < 3; i++ )
        before[i] = promise_slot( i );
    for ( mark = pw->records.count, i = 0; i < 3; i++ )
        for ( k = 0; k < 2 * i; k++ )
            puppet_say( &pp[i], 10 * ( i + 1 ), i );
    server_send( pw, 0, 1, 100, 1 ), world_step( pw ), world_run( pw, 0.35 );
    for ( i = 0; i < 3; i++ ) {
        s = promise_slot( i );
        EQ( s.session, ASK( session, i ) ), EQ( s.client_id, 1001 + i ), EQ( s.confirmed, 1 ), EQ( s.loopback, 0 );
        EQ( s.packets_sent - before[i].packets_sent, world_count( pw, mark, NULL, &pp[i].address, -1, 0 ) );
        EQ( s.bytes_sent - before[i].bytes_sent, world_count( pw, mark, NULL, &pp[i].address, -1, 1 ) );
        EQ( s.packets_received - before[i].packets_received, 2 * i ), EQ( s.packets_queued, 2 * i ),
            EQ( s.packets_dropped, 0 );
        EQ( s.bytes_received - before[i].bytes_received, world_count( pw, mark, &pp[i].address, NULL, -1, 1 ) );
        CHECK_NEAR( s.seconds_connected, pw->time - since[i], 1e-6 ),
            CHECK_NEAR( s.seconds_silent, i ? 0.35 : pw->time - heard[i], 1e-6 );
    }
    EQ( promise_slot( 3 ).confirmed, 0 ), EQ( promise_slot( 3 ).client_id, 50 );
    netcode_server_disconnect_client( ps, 1 );
    REQUIRE( promise_join( &pp[1], 60, promise_places[1] ) ); /* the next in the slot begins at nothing */
    s = promise_slot( 1 ), EQ( s.client_id, 60 ), CHECK_NEAR( s.seconds_connected, 0.01, 1e-6 ),
    EQ( s.packets_queued, 0 );
    CHECK( s.packets_sent <= 2 && s.packets_received <= 2 );
}

/* ---- memory ---- */

/*  "The bytes that netcode_server_create and netcode_server_start will ask of the allocator in all." "in between there is not one allocation".
    "stop keeps it for the next start, destroy gives it back". "A slot takes just under 2 KiB, a buffer 1.4 KiB, a server 281 KiB". */
TEST( promise_memory_is_as_announced )
{
    static const int slots[] = { 1, 2, 16, 64, 300 };
    struct netcode_socket_t socket = { 0 };
    struct netcode_server_config_t c;
    int i, calls;
    for ( i = 0; i < 5; i++ ) {
        promise_world()->server_config.packet_pool_buffers = i == 1 ? 100 : 0;
        CONFIG.pending_handshakes = i == 2 ? 1000 : 0, CONFIG.consumed_tokens = i == 3 ? 5000 : 0;
        promise_open( slots[i], 0 ), c = pw->server_config, c.socket = &socket; /* as promise_server had it */
        EQ( pw->allocator.bytes, netcode_server_memory( &c, slots[i] ) ), calls = pw->allocator.calls;
        promise_crowd( 1 ), puppet_say( &pp[0], 100, 1 ), world_run( pw, 1.0 );
        netcode_server_stop( ps ), EQ( pw->allocator.frees, 0 ), netcode_server_start( ps, slots[i] ),
            EQ( pw->allocator.calls, calls );
        world_destroy_server( pw, 0 ), EQ( pw->allocator.live, 0 );
    }
    netcode_default_server_config( &c ), c.packet_pool_buffers = 3000;
    CHECK_NEAR( (double) ( netcode_server_memory( &c, 2000 ) - netcode_server_memory( &c, 1000 ) ) / 1000, 1900, 70 );
    CHECK_NEAR( (double) netcode_server_memory( &c, 100 ), 268 * 1024 + 3000 * 1408 + 100 * 1900, 40000 );
}

/*  "Secrets and packets are wiped when what they belong to ends": of the slot, the handshake, the key that is replaced, the server. */
TEST( promise_secrets_are_wiped )
{
    struct allocator_t * a = &promise_world()->allocator;
    uint8_t *packet, said[64], keys[2 * NETCODE_KEY_BYTES];
    int i, bytes;
    a->keep = 1, promise_open( 4, 2 ), puppet_make( &pp[2], pw, 0, 9, promise_places[2] );
    REQUIRE( puppet_challenged( &pp[2] ) );
    payload_fill( said, 64, 77 ), puppet_say( &pp[0], 64, 77 ), world_step( pw );
    REQUIRE( ( packet = netcode_server_receive_packet( ps, 0, &bytes, NULL ) ) != NULL );
    CHECK_GE( allocator_search( a, said, 64 ), 1 ), CHECK_GE( allocator_search( a, pp[2].r.to_client_key, 32 ), 1 );
    netcode_server_free_packet( ps, packet ), netcode_server_disconnect_client( ps, 0 );
    world_run( pw, 4.0 ), puppet_keep_alive( &pp[1] ),
        world_run( pw, 2.0 ); /* the handshake is over, player 1 is not */
    for ( i = 0; i < 3; i += 2 )
        EQ( allocator_search( a, pp[i].r.to_client_key, 32 ) + allocator_search( a, pp[i].r.to_server_key, 32 ), 0 ),
            EQ( allocator_search( a, pp[i].r.user_data, 64 ), 0 );
    CHECK_GE( allocator_search( a, pp[1].r.to_client_key, 32 ), 1 ),
        CHECK_GE( allocator_search( a, world_key, 32 ), 1 );
    memcpy( keys, world_key, 32 ), ledger_random_bytes( keys, 32 ), memcpy( keys + 32, world_key, 32 );
    netcode_server_set_private_keys( ps, keys, 2 ), netcode_server_set_private_keys( ps, keys, 1 ),
        EQ( allocator_search( a, world_key, 32 ), 0 );
    world_destroy_server( pw, 0 );
    EQ( allocator_search( a, pp[1].r.to_client_key, 32 ) + allocator_search( a, pp[1].r.to_server_key, 32 ), 0 );
    EQ( allocator_search( a, pp[1].r.user_data, 64 ) + allocator_search( a, keys, 32 ) +
            allocator_search( a, said, 64 ),
        0 );
}
