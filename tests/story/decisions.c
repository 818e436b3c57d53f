/*  Story: the decisions 1 to 13 of the protocol notes (README: what the decisions buy). Each has tests of its name
    that fail without it. */

/* The sequence of a recorded packet, read from its head. */
static uint64_t sequence_of( const struct world_datagram_t * d )
{
    return get( d->data + 1, d->data[0] >> 4 );
}

/* ---- decisions where the standard is followed against known implementations ---- */

TEST( decision_a_disconnected_client_does_not_try_the_next_server )
{
    struct world_t * w = world_open( CLEAN, 2, 4, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK( netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[0] ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_DISCONNECTED, 1.0 ) );
    world_run( w, 3.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( world_count( w, 0, NULL, &w->server_addresses[1], -1, 0 ), 0 );
}

TEST( decision_b_the_tokens_expiry_clock_is_not_restarted_for_each_server )
{
    struct world_t * w = world_open( CLEAN, 4, 4, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    double start;
    w->cut_from = w->client_addresses[0];
    r.expire = r.create + 12; /* each server would take 5 s: the third is cut short */
    world_connect_recipe( w, 0, &r );
    start = w->time;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED, 20.0 ) );
    CHECK_NEAR( w->time - start, 12.0, 0.2 );
    CHECK_GT( world_count( w, 0, NULL, &w->server_addresses[2], -1, 0 ), 0 );
    CHECK_EQ( world_count( w, 0, NULL, &w->server_addresses[3], -1, 0 ), 0 );
}

TEST( decision_c_unix_time_is_the_callers )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    w->unix_offset = -1000000000; /* far from the system's clock */
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = p.r.create + 10;
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 2, "10.2.0.2:6000" );
    w->unix_offset += 301;
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_EXPIRED ), 1 );
}

/* ---- 1: no key and nonce seals two messages ---- */

TEST( decision_1_the_clients_sequence_never_goes_back )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 3 );
    uint64_t last = 0;
    int i, round;
    REQUIRE( world_join( w, 1, 900 ) ); /* server 0 is full: client 0 is denied, and moves on */
    for ( round = 0; round < 4; round++ ) {
        int mark = w->records.count;
        world_connect( w, 0, (uint64_t) round + 1 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
        client_send( w, 0, 20, round );
        world_run( w, 0.5 );
        netcode_client_disconnect( w->clients[0] );
        world_run( w, 0.2 );
        CHECK( netcode_client_next_packet_sequence( w->clients[0] ) > last );
        last = netcode_client_next_packet_sequence( w->clients[0] );
        if ( round == 0 )
            continue; /* where it begins is free */
        for ( i = mark; i < w->records.count; i++ ) {
            const struct world_datagram_t * d = &w->records.items[i];
            if ( netcode_address_equal( &d->from, &w->client_addresses[0] ) &&
                 ( d->data[0] & 15 ) != NETCODE_PACKET_REQUEST )
                CHECK( sequence_of( d ) < last );
        }
    }
    /* Within one token, over a denial and the next server: strictly up. */
    {
        int mark = w->records.count;
        uint64_t before = 0;
        world_connect( w, 0, 50 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
        world_run( w, 0.5 );
        for ( i = mark; i < w->records.count; i++ ) {
            const struct world_datagram_t * d = &w->records.items[i];
            if ( !netcode_address_equal( &d->from, &w->client_addresses[0] ) ||
                 ( d->data[0] & 15 ) == NETCODE_PACKET_REQUEST )
                continue;
            CHECK( sequence_of( d ) > before );
            before = sequence_of( d );
        }
    }
}

/* Each answer before there is a slot: challenges, then denials, and over a start. */
TEST( decision_1_the_servers_global_sequence_is_random_in_the_upper_half )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    uint64_t seen[40], ones = 0, zeros = 0;
    int i, j;
    for ( i = 0; i < 40; i++ ) {
        struct puppet_t p;
        if ( i == 10 )
            netcode_server_stop( w->servers[0] );
        if ( i == 10 )
            netcode_server_start( w->servers[0], 1 );
        if ( i == 20 )
            REQUIRE( world_join( w, 0, 1000 ) );
        puppet_make( &p, w, 0, (uint64_t) i + 1, "10.2.0.1:6000" );
        puppet_ask( &p );
        puppet_step( &p );
        REQUIRE_EQ( i < 20 ? p.challenges : p.denials, 1 );
        seen[i] = p.newest_sequence;
        CHECK( seen[i] >= (uint64_t) 1 << 63 );
        ones |= seen[i];
        zeros |= ~seen[i];
        for ( j = 0; j < i; j++ )
            CHECK( ( seen[i] > seen[j] ? seen[i] - seen[j] : seen[j] - seen[i] ) > (uint64_t) 1 << 40 );
    }
    CHECK( ones == UINT64_MAX );
    CHECK( zeros == UINT64_MAX >> 1 ); /* each of the 63 bits was seen as 1, and as 0 */
}

/* 47 random bits and six bytes on the wire, on both sides; a new place for each connection. */
TEST( decision_1_sequences_start_at_a_random_base )
{
    struct world_t * w = world_open( CLEAN, 1, 16, 16 );
    uint64_t all_client = 0, all_server = 0;
    int i, high = 0;
    for ( i = 0; i < 16; i++ ) {
        uint64_t c, s;
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
        c = netcode_client_next_packet_sequence( w->clients[i] );
        s = netcode_server_next_packet_sequence( w->servers[0], world_slot( w, 0, (uint64_t) i + 1 ) );
        CHECK( c < (uint64_t) 1 << 48 );
        CHECK( s < (uint64_t) 1 << 48 );
        high += c >= (uint64_t) 1 << 40;
        high += s >= (uint64_t) 1 << 40;
        all_client |= c;
        all_server |= s;
        CHECK_EQ( world_last( w, &w->client_addresses[i], NULL, NETCODE_PACKET_KEEP_ALIVE )->data[0] >> 4, 6 );
        CHECK_EQ( world_last( w, NULL, &w->client_addresses[i], NETCODE_PACKET_KEEP_ALIVE )->data[0] >> 4, 6 );
    }
    CHECK_GE( high, 28 );
    CHECK( all_client >> 40 != 0 && all_server >> 40 != 0 );
}

TEST( decision_1_sequence_base_zero_counts_from_zero )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK( netcode_client_next_packet_sequence( w->clients[0] ) < 100 );
    CHECK( netcode_server_next_packet_sequence( w->servers[0], 0 ) < 100 );
}

/* The same token before and after a crash of the server, at every step of the handshake: the ledger watches. */
TEST( decision_1_restart_of_the_server_at_every_step )
{
    int at;
    for ( at = 0; at < 40; at++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        int i;
        w->net->latency_milliseconds = 20.0f;
        world_connect( w, 0, 1 );
        for ( i = 0; i < at; i++ )
            world_step( w );
        if ( at % 2 )
            w->cut_from = w->server_addresses[0]; /* a crash: nobody is told */
        world_destroy_server( w, 0 );
        world_make_server( w, 0 );
        memset( &w->cut_from, 0, sizeof( w->cut_from ) );
        netcode_server_start( w->servers[0], 2 );
        world_run( w, 7.0 );
        world_close( w );
    }
    CHECK( !LEDGER_WORKS || ledger.seals > 1000 );
}

/*  The same puppet, with the same token and the same sequences, connects to each life of the server: the server's own
    packets differ. */
TEST( decision_1_two_lives_of_a_server_share_no_nonce )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i, j;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 30; i++ ) {
        p.challenges = p.keep_alives = 0;
        REQUIRE( puppet_connect( &p ) );
        for ( j = 0; j < 10; j++ )
            server_send( w, 0, 0, 50, i * 10 + j );
        world_run( w, 0.3 );
        world_destroy_server( w, 0 );
        world_make_server( w, 0 );
        netcode_server_start( w->servers[0], 2 );
    }
}

TEST( decision_1_two_servers_of_one_token_share_no_nonce )
{
    struct world_t * w = world_open( CLEAN, 32, 2, 0 );
    struct puppet_t p;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 32; i++ ) {
        p.server = i;
        p.challenges = p.keep_alives = 0;
        REQUIRE( puppet_connect( &p ) );
        server_send( w, i, 0, 50, i );
        world_run( w, 0.2 );
    }
}

TEST( decision_1_max_connect_token_lifetime )
{
    /*                             setting, base,                       seconds that a token still lives, refused */
    static const int rows[][4] = { { 60, NETCODE_SEQUENCE_BASE_RANDOM, 59, 1 },
                                   { 60, NETCODE_SEQUENCE_BASE_RANDOM, 61, 0 },
                                   { 0, NETCODE_SEQUENCE_BASE_RANDOM, 2, 0 },
                                   { -5, NETCODE_SEQUENCE_BASE_RANDOM, 2, 0 },
                                   { 0, NETCODE_SEQUENCE_BASE_ZERO, 29, 1 },
                                   { 0, NETCODE_SEQUENCE_BASE_ZERO, 31, 0 },
                                   { -5, NETCODE_SEQUENCE_BASE_ZERO, 29, 1 },
                                   { 60, NETCODE_SEQUENCE_BASE_ZERO, 59, 1 } };
    int i;
    for ( i = 0; i < 8; i++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        w->server_config.max_connect_token_lifetime = rows[i][0];
        w->server_config.sequence_base = rows[i][1];
        world_add_server( w, 2 );
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r.expire = p.r.create + (uint64_t) rows[i][2];
        puppet_mint( &p );
        if ( !CHECK_EQ( !puppet_connect( &p ), rows[i][3] ) )
            printf( "    row %d\n", i );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_MAYBE_USED ), rows[i][3] );
        world_close( w );
    }
}

/* ---- 2: a challenge answers only for its token ---- */

TEST( decision_2_challenge_answers_only_for_its_token )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t seven, other;
    puppet_make( &other, w, 0, 66, "10.2.0.66:6000" );
    REQUIRE( puppet_challenged( &other ) );
    puppet_make( &seven, w, 0, 7, "10.2.0.7:6000" );
    REQUIRE( puppet_challenged( &seven ) );
    memcpy( other.challenge, seven.challenge, 308 ); /* client 7's, later than the holder's own */
    puppet_respond( &other );
    puppet_step( &other );
    CHECK_EQ( other.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_respond( &seven );
    puppet_step( &seven );
    CHECK_EQ( seven.keep_alives > 0, 1 );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 7 );
}

/* Same player, two tokens from one address: the challenge of one does not answer for the other. */
TEST( decision_2_challenge_is_bound_to_the_token_even_for_one_player_and_address )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t a, b;
    puppet_make( &a, w, 0, 7, "10.2.0.7:6000" );
    puppet_make( &b, w, 0, 7, "10.2.0.7:6000" );
    REQUIRE( puppet_challenged( &a ) );
    REQUIRE( puppet_challenged( &b ) );
    memcpy( a.challenge, b.challenge, 308 );
    puppet_respond( &a );
    puppet_step( &a );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_respond( &b );
    puppet_step( &b );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* One token from two addresses: the challenge is bound to the address that it went to. */
TEST( decision_2_challenge_is_bound_to_the_address )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t a, b;
    puppet_make( &a, w, 0, 7, "10.2.0.7:6000" );
    b = a;
    b.address = address_of( "10.2.0.8:6000" );
    REQUIRE( puppet_challenged( &a ) );
    REQUIRE( puppet_challenged( &b ) );
    memcpy( a.challenge, b.challenge, 308 );
    a.sequence += 10;
    puppet_respond( &a );
    puppet_step( &a );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_2_any_challenge_of_this_handshake_is_valid )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    uint8_t first[308];
    puppet_make( &p, w, 0, 7, "10.2.0.7:6000" );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( first, p.challenge, 308 );
    REQUIRE( puppet_challenged( &p ) );
    world_run( w, 0.5 );
    REQUIRE( puppet_challenged( &p ) );
    CHECK_EQ( p.challenges, 3 );
    memcpy( p.challenge, first, 308 );
    puppet_respond( &p );
    puppet_step( &p );
    CHECK( p.keep_alives > 0 );
}

/* A challenge kept from an earlier handshake of the very same token and address connects nobody. */
TEST( decision_2_a_kept_challenge_of_an_earlier_handshake_is_refused )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    uint8_t kept[308];
    puppet_make( &p, w, 0, 7, "10.2.0.7:6000" );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( kept, p.challenge, 308 );
    world_run( w, 11.0 );
    REQUIRE_EQ( server_stats( w, 0 ).pending, 0 );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( p.challenge, kept, 308 );
    puppet_respond( &p );
    puppet_step( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED ), 1 );
}

/* ---- 3: every pending handshake ends ---- */

TEST( decision_3_a_pending_handshake_ends )
{
    static const struct {
        int timeout;
        double ends;
    } rows[] = { { 1, 1 },   { 5, 5 },           { 9, 9 },
                 { 10, 10 }, { 60, 10 },         { 0, 10 },
                 { -1, 10 }, { 2147483647, 10 }, { (int) 0x80000000, 10 } };
    int i;
    for ( i = 0; i < 9; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 0 );
        struct puppet_t p;
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r.timeout = rows[i].timeout;
        puppet_mint( &p );
        REQUIRE( puppet_challenged( &p ) );
        world_run( w, 0.5 );
        REQUIRE( puppet_challenged( &p ) ); /* the last request that is answered counts */
        world_run( w, rows[i].ends - 0.3 );
        CHECK_EQ( server_stats( w, 0 ).pending, 1 );
        world_run( w, 0.8 );
        if ( !CHECK_EQ( server_stats( w, 0 ).pending, 0 ) )
            printf( "    row %d\n", i );
        CHECK_EQ( server_stats( w, 0 ).handshakes, 1 );
        CHECK_EQ( server_stats( w, 0 ).handshakes_expired, 1 );
        puppet_respond( &p );
        puppet_step( &p );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        world_close( w );
    }
}

TEST( decision_3_an_unconfirmed_slot_ends )
{
    static const struct {
        int timeout;
        double ends;
    } rows[] = { { 2, 2 }, { 5, 5 }, { 59, 59 }, { 100, 60 }, { 0, 10 }, { -1, 10 }, { 2147483647, 60 } };
    int i;
    for ( i = 0; i < 7; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 0 );
        struct puppet_t p;
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r.timeout = rows[i].timeout;
        puppet_mint( &p );
        REQUIRE( puppet_connect( &p ) );
        world_run( w, rows[i].ends - 0.3 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
        world_run( w, 0.8 );
        if ( !CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 ) )
            printf( "    row %d\n", i );
        CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
                  NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
        world_close( w );
    }
}

/* One token from more than four addresses: the oldest gives way, and the owner, who asks again, gets in. */
TEST( decision_3_at_most_four_addresses_per_token )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p[5];
    int i;
    for ( i = 0; i < 5; i++ ) {
        if ( i == 0 )
            puppet_make( &p[0], w, 0, 1, "10.2.0.1:6000" );
        p[i] = p[0];
        p[i].challenges = 0;
        p[i].seen = w->records.count;
        p[i].address.port = (uint16_t) ( 6000 + i );
        if ( i == 4 )
            world_run( w, 0.5 ); /* so long the oldest is left in peace */
        REQUIRE( puppet_challenged( &p[i] ) );
        CHECK_EQ( server_stats( w, 0 ).pending, i < 4 ? i + 1 : 4 );
    }
    CHECK_EQ( server_stats( w, 0 ).handshakes_evicted, 1 );
    p[0].sequence += 100;
    puppet_respond( &p[0] );
    puppet_step( &p[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    p[1].sequence += 200;
    puppet_respond( &p[1] );
    puppet_step( &p[1] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 ); /* the token is consumed: its other handshakes end */
}

/* Four tokens from one address: a response is tried against each. */
TEST( decision_3_at_most_four_tokens_per_address )
{
    int chosen;
    for ( chosen = 0; chosen < 5; chosen++ ) {
        struct world_t * w = world_open( CLEAN, 1, 8, 0 );
        struct puppet_t p[5];
        int i;
        for ( i = 0; i < 5; i++ ) {
            puppet_make( &p[i], w, 0, (uint64_t) i + 1, "10.2.0.1:6000" );
            REQUIRE( puppet_challenged( &p[i] ) );
        }
        CHECK_EQ( server_stats( w, 0 ).pending, 4 );
        puppet_respond( &p[chosen] );
        puppet_step( &p[chosen] );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), chosen > 0 );
        if ( chosen > 0 )
            CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), chosen + 1 );
        world_close( w );
    }
}

/*  Four entries per client id: the earliest-expiring gives way, among equals the oldest; who expires before all of
    them is refused. */
TEST( decision_3_at_most_four_entries_per_client_id )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p[6];
    static const int expires[6] = { 300, 200, 250, 200, 260, 100 };
    int i;
    for ( i = 0; i < 6; i++ ) {
        puppet_make( &p[i], w, 0, 1, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        p[i].r.expire = WORLD_UNIX + 200 + (uint64_t) expires[i];
        puppet_mint( &p[i] );
        CHECK_EQ( puppet_challenged( &p[i] ), i < 5 );
    }
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_OUTLIVED ), 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 4 );
    puppet_respond( &p[1] ); /* the one that gave way: 200, and older than its equal */
    puppet_step( &p[1] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_respond( &p[3] );
    puppet_step( &p[3] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

TEST( decision_3_a_full_table_gives_way_at_its_oldest_entry )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p[9];
    int i;
    w->server_config.pending_handshakes = 8;
    world_add_server( w, 4 );
    for ( i = 0; i < 9; i++ ) {
        puppet_make( &p[i], w, 0, (uint64_t) i + 1, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_challenged( &p[i] ) );
    }
    CHECK_EQ( server_stats( w, 0 ).pending, 8 );
    CHECK_EQ( server_stats( w, 0 ).handshakes_evicted, 1 );
    puppet_respond( &p[0] );
    puppet_step( &p[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_respond( &p[1] );
    puppet_step( &p[1] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* ---- 4: consumed tokens are remembered ---- */

TEST( decision_4_a_token_connects_once )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_step( &p );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    p.challenges = p.keep_alives = 0;
    CHECK( !puppet_connect( &p ) );
    netcode_server_stop( w->servers[0] );
    netcode_server_start( w->servers[0], 4 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
    CHECK_EQ( p.challenges, 0 );
}

TEST( decision_4_a_token_that_was_merely_seen_is_forgotten )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_challenged( &p ) );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    world_run( w, 11.0 );
    p.address = address_of( "10.9.9.9:999" );
    CHECK( puppet_connect( &p ) );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
}

/* The record is checked at the response too: two handshakes of one token under way, one wins. */
TEST( decision_4_a_consumed_token_is_refused_at_the_response )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t a, b;
    puppet_make( &a, w, 0, 1, "10.2.0.1:6000" );
    b = a;
    b.address.port++;
    b.sequence += 500;
    REQUIRE( puppet_challenged( &a ) );
    b.seen = w->records.count;
    REQUIRE( puppet_challenged( &b ) );
    puppet_respond( &a );
    puppet_step( &a );
    REQUIRE( a.keep_alives > 0 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_respond( &b );
    puppet_step( &b );
    CHECK_EQ( b.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_4_a_full_record_refuses_up_to_its_mark )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t first, p;
    uint64_t expire;
    int i;
    w->server_config.consumed_tokens = 16;
    world_add_server( w, 2 );
    expire = world_unix( w ) + 1000;
    puppet_make( &first, w, 0, 5000, "10.4.0.1:9000" );
    first.r.expire = expire;
    puppet_mint( &first );
    REQUIRE( puppet_connect( &first ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    consume_tokens( w, 40, expire + 1, 100 );
    CHECK_LE( server_stats( w, 0 ).consumed, 16 );
    first.challenges = first.keep_alives = 0;
    CHECK( !puppet_connect( &first ) ); /* its record is gone, the mark is not */
    for ( i = 0; i < 3; i++ ) {
        puppet_make( &p, w, 0, 6000 + (uint64_t) i, "10.4.0.2:9000" );
        p.r.expire = expire + (uint64_t) i;
        puppet_mint( &p );
        CHECK( !puppet_connect( &p ) );
    }
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 4 );
    puppet_make( &p, w, 0, 7000, "10.4.0.3:9000" );
    p.r.expire = expire + 500;
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
}

/*  A clock that steps forward lets records be purged; stepping back again opens none of them, and locks out nobody
    for longer than a token lives. */
TEST( decision_4_a_clock_that_steps_reopens_nothing )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset += 86400;
    world_run( w, 2.0 );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" ); /* a handshake in the meantime, so that the purge runs */
    REQUIRE( puppet_connect( &q ) );
    world_run( w, 2.0 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset -= 86400;
    world_run( w, 2.0 );
    p.challenges = p.keep_alives = 0;
    CHECK( !puppet_connect( &p ) );
    world_run( w, 300.0 );
    puppet_make( &q, w, 0, 3, "10.2.0.3:6000" );
    CHECK( puppet_connect( &q ) );
}

TEST( decision_4_never_expiring_tokens_have_their_own_half )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    w->server_config.consumed_tokens = 16;
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    q.r.expire = FOREVER;
    puppet_mint( &q );
    REQUIRE( puppet_connect( &q ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    q.challenges = q.keep_alives = 0;
    CHECK( !puppet_connect( &q ) );
    consume_tokens( w, 30, FOREVER, 1000 ); /* the oldest of its half gives way, with random bases */
    p.challenges = p.keep_alives = 0;
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NO_RECORD_FREE ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
}

/* A start with fewer slots forgets none of them, however the sequences begin. */
TEST( decision_4_fewer_slots_forget_no_token )
{
    struct world_t * w = world_new( CLEAN );
    static struct puppet_t p[600];
    int i, base, again = 0;
    for ( base = NETCODE_SEQUENCE_BASE_RANDOM; base <= NETCODE_SEQUENCE_BASE_ZERO; base++ ) {
        struct world_t * world = base == NETCODE_SEQUENCE_BASE_RANDOM ? w : world_new( CLEAN );
        world->server_config.sequence_base = base;
        world_add_server( world, 256 );
        world->step = 0.001;
        for ( i = 0; i < 600; i++ ) {
            puppet_make( &p[i], world, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
            p[i].address.port = (uint16_t) ( 6000 + i );
            p[i].r.expire = FOREVER;
            puppet_mint( &p[i] );
            REQUIRE( puppet_connect( &p[i] ) );
            netcode_server_disconnect_client( world->servers[0], 0 );
        }
        netcode_server_stop( world->servers[0] );
        netcode_server_start( world->servers[0], 16 );
        for ( i = 0; i < 600; i++ ) {
            p[i].challenges = p[i].keep_alives = 0;
            again += puppet_connect( &p[i] );
        }
        CHECK_EQ( again, 0 );
    }
}

/* ---- 5: old traffic stays old ---- */

TEST( decision_5_the_replay_window_starts_at_the_response )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint64_t response;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.sequence = (uint64_t) 1 << 40;
    REQUIRE( puppet_challenged( &p ) );
    response = p.sequence;
    puppet_respond( &p );
    puppet_step( &p );
    REQUIRE( p.keep_alives > 0 );
    p.sequence = response; /* a payload with the response's own number, and ones from before it */
    puppet_say( &p, 10, 1 );
    p.sequence = response - 1;
    puppet_say( &p, 10, 2 );
    p.sequence = response - 100;
    puppet_say( &p, 10, 3 );
    p.sequence = 0;
    puppet_say( &p, 10, 4 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SEQUENCE_TOO_OLD ) + server_drops( w, 0, NETCODE_DROP_REPLAYED ), 4 );
    p.sequence = response + 1;
    puppet_say( &p, 10, 5 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

TEST( decision_5_a_jump_of_more_than_2_32_is_refused )
{
    static const struct {
        uint64_t ahead;
        int accepted;
    } rows[] = { { 1, 1 },
                 { 257, 1 },
                 { (uint64_t) 1 << 32, 1 },
                 { ( (uint64_t) 1 << 32 ) + 1, 0 },
                 { (uint64_t) 1 << 40, 0 },
                 { (uint64_t) 1 << 62, 0 } };
    int i;
    for ( i = 0; i < 6; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 4, 0 );
        struct puppet_t p;
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        REQUIRE( puppet_connect( &p ) );
        p.sequence = p.sequence - 1 + rows[i].ahead; /* the response was the newest */
        puppet_say( &p, 10, 1 );
        world_step( w );
        if ( !CHECK_EQ( server_drain( w, 0, 0 ), rows[i].accepted ) )
            printf( "    row %d\n", i );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD ), !rows[i].accepted );
        world_close( w );
    }
}

TEST( decision_5_the_clients_window_starts_at_its_keep_alive )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    uint64_t first;
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    world_run( w, 0.05 );
    first = sequence_of( world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_KEEP_ALIVE ) ) + 10;
    body[4] = 4;
    send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, first, body, 8 );
    world_step( w );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first - 1, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first - 1000000, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + ( (uint64_t) 1 << 32 ) + 1, body, 10 );
    world_step( w );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + ( (uint64_t) 1 << 32 ), body, 10 );
    world_step( w );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

/* ---- 6: bounded work ---- */

/* A request like the puppet's, and never quite it. */
static void junk_request( struct puppet_t * p, int number )
{
    uint8_t junk[REQUEST_BYTES];
    memcpy( junk, p->request, REQUEST_BYTES );
    junk[500] ^= (uint8_t) ( 1 + number % 255 );
    junk[501] ^= (uint8_t) ( number / 255 );
    puppet_raw( p, junk, REQUEST_BYTES );
}

TEST( decision_6_one_update_spends_its_budget_and_returns )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int64_t opens;
    int i;
    w->server_config.update_budget = 320; /* 20 requests */
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 500; i++ )
        junk_request( &p, i );
    opens = ledger.token_opens;
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).backlogs, 1 );
    CHECK( !LEDGER_WORKS || ledger.token_opens - opens <= 20 + 31 ); /* the batch that reaches the budget is finished */
    CHECK_LE( server_stats( w, 0 ).datagrams_received, 20 + 31 );
    for ( i = 0; i < 30; i++ )
        world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), 500 );
    CHECK_GE( server_stats( w, 0 ).backlogs, 9 );
}

/* A socket that is never empty, of requests with junk for a token, or datagrams of a type that does not exist; each takes some time. */
static double endless_seconds;
static int endless_requests;

static int endless_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    double until = netcode_time() + endless_seconds * (double) count;
    int i;
    (void) context;
    for ( i = 0; i < count; i++ ) {
        datagrams[i].address = address_of( "10.2.0.1:6000" );
        datagrams[i].bytes = endless_requests ? REQUEST_BYTES : 60;
        memset( datagrams[i].data, 0x2f, (size_t) datagrams[i].bytes );
        if ( endless_requests ) { /* type, version, protocol id, and a time that is to come */
            memset( datagrams[i].data, 0, 30 );
            memcpy( datagrams[i].data + 1, "NETCODE 1.02", 13 );
            datagrams[i].data[28] = 1;
        }
    }
    while ( endless_seconds > 0.0 && netcode_time() < until )
        ;
    return count;
}

static int endless_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    return count;
}

/* How many datagrams one update receives, at most: a machine that has something else to do can only lessen it. */
static uint64_t endless_most( int hz, int budget, int systems, double seconds )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket;
    struct netcode_server_t * server;
    uint64_t most = 0;
    int i;
    memset( &socket, 0, sizeof( socket ) );
    socket.receive = endless_receive;
    socket.send = endless_send;
    netcode_default_server_config( &config );
    config.socket = &socket;
    config.update_budget = budget;
    server = netcode_server_create( "10.1.0.1:40000", &config, 0.0 );
    REQUIRE( server != NULL );
    netcode_server_start( server, 16 );
    if ( systems )
        server->config.socket = NULL; /* it takes it for the system's */
    endless_seconds = seconds;
    for ( i = 1; i <= 20; i++ ) {
        uint64_t before = server->counters.datagrams_received;
        netcode_server_update( server, (double) i / (double) hz );
        before = server->counters.datagrams_received - before;
        most = before > most ? before : most;
    }
    netcode_server_destroy( server );
    return most;
}

/* What real time there is, and only on the system's own sockets: elsewhere runs repeat. */
TEST( decision_6_receiving_goes_on_while_it_is_quick )
{
    enum { UNITS = NC_SERVER_BUDGET };
    uint64_t quick;
#if defined( TEST_EMULATED )
    SKIP( "an emulated processor's time says nothing" );
#endif
    quick = endless_most( 60, 0, 1, 0.0 );
    CHECK( quick >= UNITS + 4 * NC_RECEIVE_BATCH && quick <= UNITS + NC_SERVER_FURTHER + NC_RECEIVE_BATCH );
    CHECK_EQ( endless_most( 60, 0, 1, 2e-6 ), UNITS );
    CHECK_GE( endless_most( 20, 0, 1, 5e-7 ), 3 * NC_SERVER_BUDGET + 4 * NC_RECEIVE_BATCH );
    CHECK_EQ( endless_most( 60, 0, 0, 0.0 ), UNITS );
    CHECK_EQ( endless_most( 60, 1000, 1, 0.0 ), 1000 );
    endless_requests = 1;
    CHECK_EQ( endless_most( 60, 1000, 1, 0.0 ), 59 ); /* at 17 units each; the one that reaches the budget is handled */
    endless_requests = 0;
}

TEST( decision_6_receiving_ends_where_the_clock_stands )
{
    nc_work_t work;
    memset( &work, 0, sizeof( work ) );
    work.scale = 2.0;
    work.until = 1e300;
    work.units = -2 * NC_SERVER_FURTHER + 1;
    CHECK( nc_server_has_time( &work ) );
    work.units--;
    CHECK( !nc_server_has_time( &work ) );
}

/* The owner of packets that wait behind a backlog is not timed out, for at most one further timeout. */
TEST( decision_6_nobody_is_timed_out_behind_a_backlog )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    double end;
    int number = 0, i;
    w->step = 0.1;
    w->server_config.update_budget = 320;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    puppet_make( &p, w, 0, 2, "10.2.0.1:6000" );
    end = w->time + 8.0;
    for ( i = 0; i < 100; i++ )
        junk_request( &p, number++ );
    while ( w->time < end ) {
        for ( i = 0; i < 52; i++ )
            junk_request( &p, number++ );
        world_step( w );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    }
    end = w->time + 3.0;
    while ( w->time < end ) {
        for ( i = 0; i < 52; i++ )
            junk_request( &p, number++ );
        world_step( w );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* The same for a handshake: its response lies in the backlog, behind more than its 5 seconds. */
TEST( decision_6_a_pending_handshake_waits_behind_a_backlog )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, junk;
    double end;
    int number = 0, i;
    w->step = 0.1;
    w->server_config.update_budget = 320;
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &junk, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &p ) );
    for ( end = w->time + 7.0; w->time < end; world_step( w ) )
        for ( i = 0; i < 52; i++ )
            junk_request( &junk, number++ );
    CHECK_EQ( server_stats( w, 0 ).pending, 1 );
    puppet_respond( &p );
    for ( end = w->time + 15.0; w->time < end && netcode_server_num_connected_clients( w->servers[0] ) == 0; )
        world_step( w );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ),
              0 ); /* at most one further timeout: 10 s have passed */
    puppet_make( &p, w, 0, 3, "10.2.0.3:6000" );
    CHECK( puppet_connect( &p ) );
}

TEST( decision_6_a_flooding_client_fills_only_its_own_queue )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int i, j, arrived = 0;
    w->server_config.packet_pool_buffers = 128; /* fewer than its quota */
    world_add_server( w, 4 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    puppet_make( &p, w, 0, 2, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    w->recording = 0;
    for ( i = 0; i < 200; i++ ) {
        for ( j = 0; j < 400; j++ )
            puppet_say( &p, 20, j );
        client_send( w, 0, 20, i );
        world_step( w );
        arrived += server_drain( w, 0, world_slot( w, 0, 1 ) );
    }
    world_run( w, 0.1 );
    arrived += server_drain( w, 0, world_slot( w, 0, 1 ) );
    CHECK_GE( arrived, 198 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 200 * 100 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ) + server_drops( w, 0, NETCODE_DROP_OVER_SHARE ),
              200 * 400 - 256 - 1000 );
    CHECK_LE( server_drain( w, 0, world_slot( w, 0, 2 ) ), 256 );
}

/* Empty, oversized and error places in a batch do not end the receive loop. */
TEST( decision_6_nothing_ends_the_receive_loop_early )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct puppet_t p;
    uint8_t big[2000] = { 0x65 };
    int i, read = 0;
    puppet_make( &p, w, 0, 2, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 100; i++ ) {
        puppet_raw( &p, NULL, 0 );
        puppet_raw( &p, big, (int) sizeof( big ) );
        world_inject_error( w, &p.address, &w->server_addresses[0], 111 );
        world_inject_error( w, &w->client_addresses[0], &w->server_addresses[0], 4 );
        puppet_say( &p, 10, i );
    }
    world_step( w );
    read = server_drain( w, 0, world_slot( w, 0, 2 ) );
    world_step( w );
    read += server_drain( w, 0, world_slot( w, 0, 2 ) );
    CHECK_EQ( read, 100 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_EMPTY_DATAGRAM ), 100 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_OVERSIZED_DATAGRAM ), 100 );
    CHECK_EQ( server_stats( w, 0 ).receive_errors, 200 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

TEST( decision_6_icmp_errors_never_end_a_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 300; i++ ) {
        world_inject_error( w, &w->server_addresses[0], &w->client_addresses[0], 111 );
        world_inject_error( w, &w->client_addresses[0], &w->server_addresses[0], 111 );
        world_step( w );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( client_stats( w, 0 ).receive_errors, 300 );
    CHECK_EQ( client_stats( w, 0 ).last_socket_error, 111 );
}

/*  Three errors over at least a second let a requesting client move on to a further address; the last keeps its full
    timeout. */
TEST( decision_6_icmp_errors_let_a_requesting_client_move_on )
{
    struct world_t * w = world_open( CLEAN, 2, 4, 1 );
    double start = w->time, moved = 0.0;
    struct netcode_client_report_t report;
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 1 );
    world_step( w );
    for ( ; w->time < start + 15.0 && netcode_client_state( w->clients[0] ) > 0; world_step( w ) ) {
        if ( (int) ( w->time * 100.0 + 0.5 ) % 30 == 0 )
            world_inject_error( w, netcode_client_server_address( w->clients[0] ), &w->client_addresses[0], 111 );
        if ( moved == 0.0 &&
             netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[1] ) )
            moved = w->time;
    }
    CHECK_GE( moved - start, 1.0 );
    CHECK_LE( moved - start, 2.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT );
    CHECK_NEAR( w->time - moved, 5.0, 0.1 );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.num_servers, 2 );
    CHECK_GE( report.servers[0].errors, 3 );
    CHECK_EQ( report.servers[0].last_error, 111 );
}

/* The next address starts with a clean slate: each takes three errors over a second of its own. */
TEST( decision_6_errors_are_counted_afresh_for_each_address )
{
    struct world_t * w = world_open( CLEAN, 4, 1, 1 );
    double start = w->time, moved[4] = { 0.0, 0.0, 0.0, 0.0 };
    int i;
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 1 );
    world_step( w );
    for ( ; w->time < start + 8.0; world_step( w ) ) {
        if ( (int) ( w->time * 100.0 + 0.5 ) % 20 == 0 )
            world_inject_error( w, netcode_client_server_address( w->clients[0] ), &w->client_addresses[0], 111 );
        for ( i = 0; i < 4; i++ )
            if ( moved[i] == 0.0 &&
                 netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[i] ) )
                moved[i] = w->time;
    }
    for ( i = 1; i < 4; i++ ) {
        CHECK( moved[i] - moved[i - 1] >= 1.0 );
        CHECK( moved[i] - moved[i - 1] < 1.5 );
    }
}

TEST( decision_6_errors_within_a_second_do_not_move_the_client )
{
    struct world_t * w = world_open( CLEAN, 2, 4, 1 );
    int i;
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 1 );
    world_step( w );
    for ( i = 0; i < 50; i++ )
        world_inject_error( w, &w->server_addresses[0], &w->client_addresses[0], 111 );
    world_run( w, 0.5 );
    world_inject_error( w, &w->server_addresses[0], &w->client_addresses[0], 111 );
    world_run( w, 4.0 );
    CHECK( netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[0] ) );
    world_run( w, 1.0 );
    CHECK( netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[1] ) );
}

/* Two handshakes at one address, of which the newer is tried first: where its tries are used up, the other's are not. */
TEST( decision_6_each_handshake_has_tries_of_its_own )
{
    static const uint8_t wrong[308];
    struct world_t * w = world_open( CLEAN, 1, 256, 0 ); /* one update has units for all of it */
    struct puppet_t p[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p[i], w, 0, (uint64_t) ( 1 + i ), "10.2.0.1:6000" );
        REQUIRE( puppet_challenged( &p[i] ) );
    }
    for ( i = 0; i < NC_RESPONSES_PER_UPDATE + 8; i++ ) /* the last 8 are tried with the other's key */
        puppet_send( &p[1], NETCODE_PACKET_RESPONSE, wrong, 308 );
    puppet_respond( &p[0] );
    puppet_step( &p[0] );
    CHECK_EQ( p[0].keep_alives, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED ), NC_RESPONSES_PER_UPDATE );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 8 );
}

/* ---- 7: cheap refusal ---- */

TEST( decision_7_what_needs_no_cryptography_is_refused_before_any )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    uint8_t out[2048], body[1300] = { 0 };
    int64_t opens, token_opens;
    int i;
    if ( !LEDGER_WORKS )
        SKIP( "no --wrap" );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
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
    q.r.expire = world_unix( w ) - 1;
    puppet_mint( &q );
    puppet_ask( &q );
    p.r.user_data[0] ^= 1;
    puppet_ask( &p ); /* from a connected address */
    (void) body;
    world_step( w );
    CHECK_EQ( ledger.opens, opens );
    CHECK_EQ( ledger.token_opens, token_opens );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

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
        puppet_respond( &q );
        puppet_step( &q );
    }
    CHECK_GE( q.denials, 15 );
    CHECK_LE( q.denials, 25 );
}

/* ---- 8: every reply is smaller than its request ---- */

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

/* ---- 9: secrets are wiped ---- */

TEST( decision_9_keys_are_wiped )
{
    struct world_t * w = world_new( CLEAN );
    struct recipe_t r;
    struct puppet_t half;
    struct allocator_t * a = &w->allocator;
    a->keep = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    puppet_make( &half, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &half ) );
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    CHECK_GE( allocator_search( a, r.to_server_key, 32 ), 1 ); /* the needle can be found at all */
    CHECK_GE( allocator_search( a, half.r.to_client_key, 32 ), 1 );
    CHECK_GE( allocator_search( a, world_key, 32 ), 1 );
    world_run( w, 12.0 );
    CHECK_EQ( allocator_search( a, half.r.to_client_key, 32 ), 0 ); /* the pending entry ended */
    CHECK_EQ( allocator_search( a, half.r.to_server_key, 32 ), 0 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 1.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( allocator_search( a, r.to_server_key, 32 ), 0 );
    CHECK_EQ( allocator_search( a, r.user_data, 64 ), 0 );
    CHECK_EQ( allocator_search( a, r.to_client_key, 32 ), 0 );
    r = world_connect( w, 0, 3 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    netcode_server_stop( w->servers[0] );
    world_run( w, 1.0 );
    CHECK_EQ( allocator_search( a, r.to_server_key, 32 ), 0 );
    CHECK_EQ( allocator_search( a, r.to_client_key, 32 ), 0 );
    netcode_server_start( w->servers[0], 2 );
    r = world_connect( w, 0, 4 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    world_destroy_client( w, 0 );
    world_destroy_server( w, 0 );
    CHECK_EQ( allocator_search( a, r.to_server_key, 32 ), 0 );
    CHECK_EQ( allocator_search( a, r.to_client_key, 32 ), 0 );
    CHECK_EQ( allocator_search( a, world_key, 32 ), 0 );
    CHECK_EQ( allocator_search( a, r.user_data, 64 ), 0 );
}

/* ---- 10: a crashed player comes back at once ---- */

static int replaced_reason;
static uint64_t replaced_session;

static void note_reason( struct world_party_t * party, int slot, int connected )
{
    if ( connected )
        return;
    replaced_reason = netcode_server_client_disconnect_reason( party->world->servers[party->index], slot );
    replaced_session = netcode_server_client_session( party->world->servers[party->index], slot );
}

static void replace_on_a_full_server( const char * first, const char * second )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    struct world_party_t * party = &w->server_parties[0];
    uint64_t session;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 1 );
    party->on_change = note_reason;
    puppet_make( &p, w, 0, 7, first );
    REQUIRE( puppet_connect( &p ) );
    puppet_keep_alive( &p );
    puppet_step( &p );
    session = netcode_server_client_session( w->servers[0], 0 );
    puppet_make( &q, w, 0, 7, second );
    q.sequence = 5000000;
    REQUIRE( puppet_challenged( &q ) );
    puppet_say( &p, 10, 1 ); /* until the challenge is answered, nothing changes */
    puppet_step( &p );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    CHECK_EQ( netcode_server_client_session( w->servers[0], 0 ), session );
    puppet_respond( &q );
    puppet_step( &q );
    CHECK( q.keep_alives > 0 );
    REQUIRE_EQ( party->log_count, 3 );
    CHECK_EQ( party->log[1][1], 0 );
    CHECK_EQ( party->log[2][1], 1 );
    CHECK_EQ( replaced_reason, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED );
    CHECK_EQ( replaced_session, session );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_NE( netcode_server_client_session( w->servers[0], 0 ), session );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &q.address ) );
    CHECK_EQ( server_stats( w, 0 ).disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED], 1 );
    puppet_poll( &p );
    CHECK_EQ( p.disconnects, 10 );
    CHECK_EQ( q.disconnects, 0 );
    puppet_say( &q, 10, 1 );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

TEST( decision_10_a_newer_token_takes_over_the_slot )
{
    replace_on_a_full_server( "10.2.0.1:6000", "10.2.0.2:6000" );
}
TEST( decision_10_also_from_the_same_address )
{
    replace_on_a_full_server( "10.2.0.1:6000", "10.2.0.1:6000" );
}

TEST( decision_10_not_with_a_token_that_expires_earlier )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 7, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    puppet_make( &q, w, 0, 7, "10.2.0.2:6000" );
    q.r.expire = p.r.expire - 1;
    puppet_mint( &q );
    CHECK( !puppet_connect( &q ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &p.address ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
}

TEST( decision_10_is_opt_in )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p, q;
    puppet_make( &p, w, 0, 7, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    puppet_make( &q, w, 0, 7, "10.2.0.2:6000" );
    q.r.expire += 50;
    puppet_mint( &q );
    CHECK( !puppet_connect( &q ) );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &p.address ) );
}

/* ---- 11: faster connecting ---- */

TEST( decision_11_packets_leave_as_soon_as_the_state_changes )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark, i;
    w->step = 0.001;
    for ( i = 0; i < 20; i++ )
        world_step( w );
    world_connect( w, 0, 1 );
    CHECK_EQ( w->records.count, 0 ); /* connect itself sends nothing */
    world_step( w );
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 1 );
    for ( i = 0; i < 20 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE;
          i++ )
        world_step( w );
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_RESPONSE, 0 ),
              1 ); /* in the very update that had the challenge */
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 1 );
    for ( i = 0; i < 20 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED; i++ )
        world_step( w );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_LE( w->time - 100.0, 0.05 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 2 );
    mark = w->records.count;
    world_run( w, 4.0 );
    CHECK_GE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 39 );
    CHECK_LE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 41 );
}

/* ---- 12: any time ---- */

TEST( decision_12_the_clock_adds_only_positive_finite_steps )
{
    double odd[6];
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    double time;
    int i, j;
    odd[0] = 0.0; /* each is a step back from the one before, or none at all */
    odd[1] = NOT_A_NUMBER;
    odd[2] = -3600.0;
    odd[3] = ENDLESS;
    odd[4] = -ENDLESS;
    odd[5] = -1e6;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 6; i++ ) {
        for ( j = 0; j < 100; j++ ) {
            netcode_server_update( w->servers[0], odd[i] );
            netcode_client_update( w->clients[0], odd[i] );
            netcode_network_simulator_update( w->net, w->time += 0.01 );
        }
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    }
    time = -2e6; /* and from wherever it stands, it goes on: keep-alives resume, nobody is lost */
    netcode_server_update( w->servers[0], time );
    netcode_client_update( w->clients[0], time );
    for ( i = 0; i < 2000; i++ ) {
        time += 0.01;
        w->time += 0.01;
        netcode_network_simulator_update( w->net, w->time );
        netcode_server_update( w->servers[0], time );
        netcode_client_update( w->clients[0], time );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    w->cut_from = w->client_addresses[0]; /* timeouts work on that clock as well */
    for ( i = 0; i < 550; i++ )
        netcode_server_update( w->servers[0], time += 0.01 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_12_a_jump_of_a_billion_seconds_costs_one_pass )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    clock_t start;
    REQUIRE( world_join( w, 0, 1 ) );
    world_connect( w, 1, 2 );
    world_step( w );
    start = clock();
    netcode_server_update( w->servers[0], w->time + 1e9 );
    netcode_client_update( w->clients[0], w->time + 1e9 );
    netcode_client_update( w->clients[1], w->time + 1e9 );
    netcode_network_simulator_update( w->net, w->time + 1e9 );
    netcode_server_update( w->servers[0], w->time + 2e9 );
    netcode_client_update( w->clients[0], w->time + 2e9 );
    CHECK_LT( (double) ( clock() - start ) / CLOCKS_PER_SEC * 1000.0, 200 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* ---- 13: a client object takes a token once ---- */

TEST( decision_13_a_second_connect_with_a_used_token_is_refused )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t first[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_report_t report;
    int i, mark;
    for ( i = 0; i < 16; i++ ) {
        REQUIRE( world_join( w, 0, 1 ) );
        if ( i == 0 )
            memcpy( first, w->tokens[0], sizeof( first ) );
        netcode_client_disconnect( w->clients[0] );
        world_run( w, 0.2 );
    }
    for ( i = 0; i < 2; i++ ) /* the newest, and the oldest of the 16 that it remembers */
    {
        int lines = w->client_parties[0].lines;
        mark = w->records.count;
        netcode_client_connect( w->clients[0], i ? first : w->tokens[0] );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
        world_run( w, 0.5 );
        CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ), 0 );
        CHECK_GT( w->client_parties[0].lines, lines );
        netcode_client_report( w->clients[0], &report );
        CHECK( strstr( report.text, "token" ) != NULL );
    }
    REQUIRE( world_join( w, 0, 2 ) );
}

TEST( decision_13_a_token_that_did_not_connect_may_be_tried_again )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 2 );
    REQUIRE( world_join( w, 1, 5 ) );
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 1.0 ) );
    netcode_client_disconnect( w->clients[1] );
    world_run( w, 0.2 );
    netcode_client_connect( w->clients[0], w->tokens[0] );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
}
