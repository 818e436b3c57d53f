/*  Story: refusing is cheap (decision 7), and every reply is smaller than its request (decision 8). Rows 37 to 39 of the table of
    attacks. */

/* ---- cheap refusal ---- */

TEST( decision_7_what_needs_no_cryptography_is_refused_before_any )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    uint8_t out[2048], body[1300] = { 0 };
    int64_t opens, token_opens;
    int i;
    if ( !LEDGER_WORKS )
        SKIP( "no --wrap" );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_say( &p, 10, 1 );
    world_step( w );
    opens = ledger.opens;
    token_opens = ledger.token_opens;
    for ( i = 0; i < 256; i++ ) /* every prefix byte, but those of packets that are well-formed here */
    {
        int type = i & 15, length = i >> 4;
        if ( length >= 1 && length <= 8 && ( type == NETCODE_PACKET_PAYLOAD || type == NETCODE_PACKET_REQUEST ) )
            continue;
        memset( out, 0x41, sizeof( out ) );
        out[0] = (uint8_t) i;
        puppet_raw( &p, out, 60 );
    }
    p.sequence--;
    puppet_say( &p, 10, 1 ); /* replayed */
    p.sequence -= 100;
    puppet_say( &p, 10, 1 ); /* too old */
    p.sequence = (uint64_t) 1 << 60;
    puppet_say( &p, 10, 1 ); /* too far */
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    puppet_say( &q, 10, 1 ); /* unknown address */
    q.r.protocol_id++;
    puppet_mint( &q );
    puppet_ask( &q );
    q.r = recipe_for( w, 2 );
    puppet_expires( &q, world_unix( w ) - 1 );
    puppet_ask( &q );
    p.r.user_data[0] ^= 1;
    puppet_ask( &p ); /* from a connected address */
    (void) body;
    world_step( w );
    CHECK_EQ( ledger.opens, opens );
    CHECK_EQ( ledger.token_opens, token_opens );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

static void expect_no_decryption( struct puppet_t * p, int reason )
{
    int64_t opens = ledger.opens + ledger.token_opens;
    puppet_ask( p );
    expect_server_drop( p->w, p->server, reason );
    CHECK_EQ( ledger.opens + ledger.token_opens, opens );
}

TEST( defence_7_refused_tokens_are_not_decrypted )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint64_t now = world_unix( w );
    int i;
    if ( !LEDGER_WORKS )
        SKIP( "no --wrap" );
    w->server_config.consumed_tokens = 8;
    w->server_config.max_connect_token_lifetime = 60;
    w->step = 0.001;
    world_add_server( w, 2 );
    consume_tokens( w, 8, now + 100, 100 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 4; i++ ) {
        static const int lives[] = { 0, 50, 100, 200 }; /* from now: expired, maybe used, up to the mark, good */
        static const int reasons[] = { NETCODE_DROP_TOKEN_EXPIRED, NETCODE_DROP_TOKEN_MAYBE_USED,
                                       NETCODE_DROP_TOKEN_REFUSED_UP_TO };
        puppet_expires( &p, now + (uint64_t) lives[i] );
        if ( i < 3 )
            expect_no_decryption( &p, reasons[i] );
    }
    for ( i = 0; i < 4; i++ )
        REQUIRE( puppet_challenged( &p ) );
    expect_no_decryption( &p, NETCODE_DROP_REQUEST_TOO_SOON );
    puppet_answer( &p );
    REQUIRE( p.keep_alives > 0 );
    expect_no_decryption( &p, NETCODE_DROP_TOKEN_CONSUMED );
}

/*  An observer of a request can copy it with other bytes in it; it is refused, and uses up nothing of what the owner is
    granted. */
TEST( defence_7_forged_copies_are_not_charged )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t forged[REQUEST_BYTES];
    int i, j;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memcpy( forged, p.request, REQUEST_BYTES );
    forged[500] ^= 1;
    for ( i = 0; i < 30; i++ ) {
        puppet_ask( &p );
        puppet_step( &p );
        for ( j = 0; j < 9; j++ ) {
            puppet_raw( &p, forged, REQUEST_BYTES );
            puppet_step( &p );
        }
    }
    CHECK_EQ( p.challenges, 30 );
}

TEST( defence_7_tables_are_keyed_with_a_secret_of_each_server )
{
    static const uint8_t zeros[crypto_shorthash_KEYBYTES];
    struct world_t * w = world_open( CLEAN, 2, 4, 0 );
    struct netcode_server_t * a = w->servers[0];
    struct netcode_server_t * b = w->servers[1];
    struct netcode_address_t address = address_of( "10.2.0.1:6000" );
    CHECK( memcmp( a->handshakes.hash_key, zeros, sizeof( zeros ) ) != 0 );
    CHECK( memcmp( a->handshakes.hash_key, b->handshakes.hash_key, sizeof( zeros ) ) != 0 );
    CHECK( nc_address_hash( &address, a->handshakes.hash_key ) != nc_address_hash( &address, b->handshakes.hash_key ) );
    CHECK( nc_handshake_id_hash( &a->handshakes, 7 ) != nc_handshake_id_hash( &b->handshakes, 7 ) );
    CHECK( nc_handshake_tag_hash( &a->handshakes, world_key ) != nc_handshake_tag_hash( &b->handshakes, world_key ) );
}

/* The longest chain of a table, walked as a look-up walks it. */
static int longest_chain( const nc_table_t * table )
{
    uint32_t head;
    int longest = 0;
    for ( head = 0; head <= table->mask; head++ ) {
        uint32_t index = table->heads[head];
        int length = 0;
        for ( ; index != UINT32_MAX; index = table->entries[index].next )
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

TEST( defence_7_chains_are_short )
{
    struct world_t * w = world_open( CLEAN, 1, 256, 0 );
    struct puppet_t p;
    int i;
    w->recording = 0;
    for ( i = 0; i < 1200; i++ ) { /* neighbours in address, port and id: what a careless hash puts into one bucket */
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.3.0.0:4096" );
        p.address.data.ipv4[3] = (uint8_t) ( i / 16 );
        p.address.port = (uint16_t) ( 4096 + i % 16 * 256 );
        puppet_ask( &p );
        if ( i % 50 == 49 )
            world_step( w );
    }
    world_run( w, 0.5 );
    CHECK_GE( server_stats( w, 0 ).pending, 1000 );
    /* 8 on average; one keyed hash in a million has a longer chain by chance */
    CHECK_LE( longest_chain( &w->servers[0]->handshakes.by_address ), 30 );
    CHECK_LE( longest_chain( &w->servers[0]->handshakes.by_id ), 30 );
    CHECK_LE( longest_chain( &w->servers[0]->handshakes.by_tag ), 30 );
}

/* ---- answers are limited ---- */

/* Burst 4, then 10 a second, for each address, port and token; only answers are charged. */
TEST( decision_7_answers_to_repeated_requests_are_limited )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 500; i++ ) /* 5 seconds at 100 requests a second */
    {
        puppet_ask( &p );
        puppet_step( &p );
    }
    CHECK_GE( p.challenges, 50 );
    CHECK_LE( p.challenges, 55 );
    CHECK_EQ( p.challenges + server_drops( w, 0, NETCODE_DROP_REQUEST_TOO_SOON ), 500 );
    puppet_make( &q, w, 0, 2, "10.2.0.1:6000" ); /* the same address, another token: its own allowance */
    CHECK( puppet_challenged( &q ) );
    world_run( w, 1.0 );
    q.challenges = 0;
    for ( i = 0; i < 50; i++ ) /* at 10 a second each is answered */
    {
        puppet_ask( &q );
        puppet_step( &q );
        world_run( w, 0.095 );
        puppet_poll( &q );
    }
    CHECK_EQ( q.challenges, 50 );
}

/* Denials are answers too: a full server that is asked again and again says so at the same rate. */
TEST( decision_7_denials_are_limited_as_well )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p, q;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    p.r.timeout = 60;
    puppet_mint( &p );
    REQUIRE( puppet_challenged( &q ) );
    REQUIRE( puppet_connect( &p ) );
    for ( i = 0; i < 200; i++ ) /* 2 seconds of requests and responses at 100 Hz each */
    {
        puppet_ask( &q );
        puppet_answer( &q );
    }
    CHECK_GE( q.denials, 15 );
    CHECK_LE( q.denials, 25 );
}

/* Good responses to a full server, 100 a second: denials follow the same allowance as every other answer. */
TEST( defence_8_denials_to_responses_are_limited )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p, q;
    int i;
    REQUIRE( puppet_begin( &q, w, 0, 2, "10.2.0.2:6000" ) );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 300; i++ ) {
        puppet_answer( &q );
    }
    CHECK_GE( q.denials, 1 );
    CHECK_LE( q.denials, 4 + 30 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SERVER_FULL ), 300 );
}

/* ---- no amplification ---- */

TEST( decision_8_no_amplification_before_a_challenge_is_answered )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p;
    uint8_t junk[DATAGRAM_BYTES];
    int i, full;
    for ( full = 0; full < 2; full++ ) {
        int mark = w->records.count;
        puppet_make( &p, w, 0, 10 + (uint64_t) full, full ? "10.2.0.2:6000" : "10.2.0.1:6000" );
        for ( i = 0; i < 300; i++ ) {
            int64_t in, out;
            if ( i % 7 == 0 )
                puppet_ask( &p );
            ledger_random_bytes( junk, sizeof( junk ) );
            puppet_raw( &p, junk, test_random_below( DATAGRAM_BYTES ) );
            world_step( w );
            in = world_count( w, mark, &p.address, NULL, -1, 1 );
            out = world_count( w, mark, NULL, &p.address, -1, 1 );
            CHECK_LE( out * 100, in * 31 );
        }
        world_run( w, 15.0 ); /* and nothing follows later */
        CHECK_LE( world_count( w, mark, NULL, &p.address, -1, 1 ) * 100,
                  world_count( w, mark, &p.address, NULL, -1, 1 ) * 31 );
        puppet_make( &p, w, 0, 99, "10.2.0.9:6000" );
        if ( !full )
            REQUIRE( puppet_connect( &p ) ); /* the second round meets a full server */
        else
            CHECK_GT( world_count( w, mark, NULL, NULL, NETCODE_PACKET_DENIED, 0 ), 0 );
        puppet_keep_alive( &p );
        world_step( w );
        w->net->latency_milliseconds = 0.0f;
    }
}

/* 37: a denial is 25 bytes for 1078. 39: a recorded handshake is no amplifier. */
TEST( hostile_37_39_denials_and_recorded_handshakes_do_not_amplify )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct puppet_t p;
    int64_t in, out;
    int mark, count, round;
    REQUIRE( world_join( w, 0, 1 ) );
    puppet_make( &p, w, 0, 2, "10.2.0.1:6000" );
    mark = w->records.count;
    puppet_ask( &p );
    puppet_step( &p );
    CHECK_EQ( p.denials, 1 );
    CHECK_EQ( world_count( w, mark, NULL, &p.address, -1, 1 ), 25 );
    world_run( w, 1.0 );
    client_send( w, 0, 500, 1 );
    world_run( w, 1.0 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 1.0 );
    count = w->records.count;
    mark = count;
    for ( round = 0; round < 3; round++ )
        replay_to_server( w, &w->client_addresses[0], 0, count );
    world_run( w, 15.0 );
    in = world_count( w, mark, &w->client_addresses[0], NULL, -1, 1 );
    out = world_count( w, mark, NULL, &w->client_addresses[0], -1, 1 );
    CHECK_GT( in, 5000 );
    CHECK_LE( out * 100, in * 31 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

static int64_t amplified( struct world_t * w, int mark, int direction )
{
    return direction ? world_count( w, mark, &w->client_addresses[0], &w->server_addresses[0], -1, 1 )
                     : world_count( w, mark, &w->server_addresses[0], &w->client_addresses[0], -1, 1 );
}

/*  Request and response of a session that has ended come again, and again. The server broadcasts to all that are
    connected, as games do. A token of long patience makes the most of it. */
TEST( threat_39_a_recorded_handshake_is_no_amplifier )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    struct world_datagram_t request, response;
    uint8_t state_of_the_game[1000] = { 1 };
    int i, mark;
    r.timeout = 60;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    request = *world_last( w, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST );
    response = *world_last( w, &w->client_addresses[0], NULL, NETCODE_PACKET_RESPONSE );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.5 );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    mark = w->records.count;
    for ( i = 0; i < 300; i++ ) {
        if ( i % 100 == 0 )
            world_inject( w, &w->client_addresses[0], &w->server_addresses[0], request.data, request.bytes );
        if ( i % 100 == 10 )
            world_inject( w, &w->client_addresses[0], &w->server_addresses[0], response.data, response.bytes );
        netcode_server_broadcast( w->servers[0], state_of_the_game, sizeof( state_of_the_game ), -1 );
        world_run( w, 0.1 );
        CHECK_LE( amplified( w, mark, 0 ) * 100, amplified( w, mark, 1 ) * 31 );
    }
    CHECK_EQ( amplified( w, mark, 1 ), 3 * ( request.bytes + response.bytes ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_stats( w, 0 ).connects, 1 );
}

/* ---- 38: bytes to and from each address that has not answered a challenge, in a storm of everything that could make a server speak ---- */

enum { SPOOFED = 24, SPOOFED_TOKENS = 12, SPOOFED_STEPS = 4000 };

static struct {
    struct world_t * w;
    struct puppet_t p[SPOOFED]; /* a token of a malicious client each; several addresses share one */
    int64_t in[SPOOFED];
    int64_t out[SPOOFED];
    int seen;
} spoofed_world;

static int spoofed_index( const struct netcode_address_t * address )
{
    int i = address->port - 6000;
    return i >= 0 && i < SPOOFED && netcode_address_equal( address, &spoofed_world.p[i].address ) ? i : -1;
}

/* Counts what went over the wire since the last look; at no moment is more owed than 0.31 of what came. */
static void spoofed_count( void )
{
    struct world_list_t * records = &spoofed_world.w->records;
    for ( ; spoofed_world.seen < records->count; spoofed_world.seen++ ) {
        const struct world_datagram_t * d = &records->items[spoofed_world.seen];
        int from = spoofed_index( &d->from ), to = spoofed_index( &d->to );
        if ( d->injected && from >= 0 )
            spoofed_world.in[from] += d->bytes;
        if ( !d->injected && to >= 0 ) {
            spoofed_world.out[to] += d->bytes;
            CHECK_LE( spoofed_world.out[to] * 100, spoofed_world.in[to] * 31 );
        }
    }
}

/* Something recorded comes again, from one of the addresses, sometimes damaged. */
static void spoofed_again( struct puppet_t * p )
{
    struct world_datagram_t d = spoofed_world.w->records.items[test_random_below( spoofed_world.w->records.count )];
    uint8_t data[DATAGRAM_BYTES];
    if ( d.bytes < 1 )
        return;
    memcpy( data, d.data, (size_t) d.bytes );
    if ( test_random_below( 3 ) == 0 )
        data[test_random_below( d.bytes )] ^= (uint8_t) ( 1 << test_random_below( 8 ) );
    puppet_raw( p, data, d.bytes );
}

/* A response with good keys around a challenge that went to another address, or to a handshake that is over. */
static void spoofed_respond( struct puppet_t * p )
{
    const struct puppet_t * other = &spoofed_world.p[test_random_below( SPOOFED )];
    if ( other == p || !other->challenges )
        return;
    memcpy( p->challenge, other->challenge, 308 );
    puppet_respond( p );
}

static void spoofed_step( void )
{
    struct world_t * w = spoofed_world.w;
    struct puppet_t * p = &spoofed_world.p[test_random_below( SPOOFED )];
    uint8_t junk[DATAGRAM_BYTES];
    int i, count = 1 + test_random_below( 12 );
    for ( i = 0; i < count; i++ )
        switch ( test_random_below( 8 ) ) {
        case 0:
        case 1:
        case 2: puppet_ask( p ); break;
        case 3: spoofed_respond( p ); break;
        case 4:
        case 5: spoofed_again( p ); break;
        case 6: puppet_say( p, 100, i ); break;
        default:
            ledger_random_bytes( junk, sizeof( junk ) );
            puppet_raw( p, junk, test_random_below( DATAGRAM_BYTES ) );
        }
    w->step = test_random_below( 20 ) ? 0.01 : 1.3;
    puppet_step( p );
    spoofed_count();
    for ( i = 0; i < SPOOFED && test_random_below( 50 ) == 0; i++ )
        puppet_poll( &spoofed_world.p[i] );
}

/* Full and empty in turn; stopped and started; people come, go and are thrown out meanwhile. */
static void spoofed_unrest( int step )
{
    struct world_t * w = spoofed_world.w;
    int slot = step / 100 % 2;
    TOLERATE( netcode_server_disconnect_client( w->servers[0], slot ) );
    if ( step % 1000 == 900 ) {
        world_restart( w, 0, 1 + step / 1000 % 2 );
    }
    if ( netcode_server_num_connected_clients( w->servers[0] ) < netcode_server_max_clients( w->servers[0] ) )
        world_connect( w, 0, 5000 + (uint64_t) step );
}

static void spoofed_storm( int replaces )
{
    struct world_t * w = world_new( CLEAN );
    int i, step;
    int64_t in = 0, out = 0;
    memset( &spoofed_world, 0, sizeof( spoofed_world ) );
    spoofed_world.w = w;
    w->server_config.replace_existing_clients = replaces;
    world_add_server( w, 1 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < SPOOFED; i++ ) {
        puppet_make( &spoofed_world.p[i], w, 0, 100 + (uint64_t) ( i % SPOOFED_TOKENS / 2 ), "10.66.0.1:6000" );
        spoofed_world.p[i].address.port = (uint16_t) ( 6000 + i );
        spoofed_world.p[i].r.expire = FOREVER;
        if ( i >= SPOOFED_TOKENS )
            spoofed_world.p[i].r = spoofed_world.p[i - SPOOFED_TOKENS].r;
        puppet_mint( &spoofed_world.p[i] );
    }
    for ( step = 0; step < SPOOFED_STEPS && test_state.failures < 5; step++ ) {
        if ( step % 100 == 50 )
            spoofed_unrest( step );
        spoofed_step();
    }
    w->step = 0.1;
    world_run( w, 15.0 ); /* and nothing follows later */
    spoofed_count();
    for ( i = 0; i < SPOOFED; i++ ) {
        in += spoofed_world.in[i];
        out += spoofed_world.out[i];
    }
    CHECK_GT( in, 1000000 );
    CHECK_GT( out, 10000 ); /* it was made to speak */
    world_close( w );
}

TEST( threat_38_no_address_gets_more_than_its_share )
{
    spoofed_storm( 0 );
    spoofed_storm( 1 );
}
