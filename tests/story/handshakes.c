/*  Story: a challenge answers only for its token (decision 2), and every pending handshake ends (decision 3). Rows 28 to 30 and 32 to 35 of
    the table of attacks. */

/* ---- challenges ---- */

TEST( decision_2_challenge_answers_only_for_its_token )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t seven, other;
    REQUIRE( puppet_begin( &other, w, 0, 66, "10.2.0.66:6000" ) );
    REQUIRE( puppet_begin( &seven, w, 0, 7, "10.2.0.7:6000" ) );
    memcpy( other.challenge, seven.challenge, 308 ); /* client 7's, later than the holder's own */
    puppet_answer( &other );
    CHECK_EQ( other.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_answer( &seven );
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
    puppet_answer( &a );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_answer( &b );
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
    puppet_answer( &a );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* A challenge as the server would seal it, but for one changed byte of what is sealed. Standard: Challenge Token */
static void forge_challenge( const struct netcode_server_t * server, uint8_t * challenge, int changed )
{
    uint8_t plain[284], nonce[12] = { 0 };
    memcpy( nonce + 4, challenge, 8 );
    REQUIRE_EQ( LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_decrypt )( plain, NULL, NULL, challenge + 8, 300, NULL,
                                                                          0, nonce, server->handshakes.challenge_key ),
                0 );
    plain[changed] ^= 1;
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( challenge + 8, NULL, plain, 284, NULL, 0, NULL, nonce, server->handshakes.challenge_key );
}

TEST( defence_2_every_part_of_a_challenge_is_compared )
{
    /* client id, the bound address, the bound token: the first and the last byte of each */
    static const int changes[] = { 0, 7, 264, 271, 272, 283 };
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t genuine[308];
    int i;
    REQUIRE( puppet_begin( &p, w, 0, 7, "10.2.0.1:6000" ) );
    memcpy( genuine, p.challenge, 308 );
    for ( i = 0; i < 6; i++ ) {
        memcpy( p.challenge, genuine, 308 );
        forge_challenge( w->servers[0], p.challenge, changes[i] );
        puppet_answer( &p );
        if ( !CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_FOR_ANOTHER ), i + 1 ) )
            printf( "    byte %d\n", changes[i] );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    memcpy( p.challenge, genuine, 308 );
    puppet_answer( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

TEST( decision_2_any_challenge_of_this_handshake_is_valid )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    uint8_t first[308];
    REQUIRE( puppet_begin( &p, w, 0, 7, "10.2.0.7:6000" ) );
    memcpy( first, p.challenge, 308 );
    REQUIRE( puppet_challenged( &p ) );
    world_run( w, 0.5 );
    REQUIRE( puppet_challenged( &p ) );
    CHECK_EQ( p.challenges, 3 );
    memcpy( p.challenge, first, 308 );
    puppet_answer( &p );
    CHECK( p.keep_alives > 0 );
}

/* A challenge kept from an earlier handshake of the very same token and address connects no client. */
TEST( decision_2_a_kept_challenge_of_an_earlier_handshake_is_refused )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    uint8_t kept[308];
    REQUIRE( puppet_begin( &p, w, 0, 7, "10.2.0.7:6000" ) );
    memcpy( kept, p.challenge, 308 );
    world_run( w, 11.0 );
    REQUIRE_EQ( server_stats( w, 0 ).pending, 0 );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( p.challenge, kept, 308 );
    puppet_answer( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED ), 1 );
}

/* 30: kicked and banned, it comes back with a challenge that it kept. */
TEST( hostile_30_a_kept_challenge_after_a_kick )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    int i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    for ( i = 0; i < 20; i++ ) {
        puppet_ask( &p );
        puppet_answer( &p );
        world_run( w, 0.2 );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( w->server_parties[0].log_count, 2 );
}

/* ---- every pending handshake ends ---- */

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
        puppet_answer( &p );
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

/* ---- how many there are, and which is evicted ---- */

/* One token from more than four addresses: the oldest is evicted, and the owner, which asks again, is accepted. */
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
    puppet_answer( &p[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    p[1].sequence += 200;
    puppet_answer( &p[1] );
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
            REQUIRE( puppet_begin( &p[i], w, 0, (uint64_t) i + 1, "10.2.0.1:6000" ) );
        }
        CHECK_EQ( server_stats( w, 0 ).pending, 4 );
        puppet_answer( &p[chosen] );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), chosen > 0 );
        if ( chosen > 0 )
            CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), chosen + 1 );
        world_close( w );
    }
}

/*  Four entries per client id: the earliest-expiring is evicted, among equals the oldest; one that expires before all
    of them is refused. */
TEST( decision_3_at_most_four_entries_per_client_id )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p[6];
    static const int expires[6] = { 300, 200, 250, 200, 260, 100 };
    int i;
    for ( i = 0; i < 6; i++ ) {
        puppet_make( &p[i], w, 0, 1, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        puppet_expires( &p[i], WORLD_UNIX + 200 + (uint64_t) expires[i] );
        CHECK_EQ( puppet_challenged( &p[i] ), i < 5 );
    }
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_OUTLIVED ), 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 4 );
    puppet_respond( &p[1] ); /* the one that was evicted: 200, and older than its equal */
    puppet_step( &p[1] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_answer( &p[3] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/*  One token from nine addresses, nine tokens from one address: four of each, also where the client ids leave more room. The oldest is evicted, but
    not for copies of its own request before it had half a second to answer. */
TEST( defence_3_each_limit_by_itself )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    nc_handshake_hashes_t hashes;
    nc_pending_t entry;
    uint32_t index;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 9; i++ ) { /* entries of one tag whose client ids differ: no honest backend makes them */
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.address.port = (uint16_t) ( 6000 + i );
        entry.client_id = (uint64_t) i;
        hashes.id = nc_handshake_id_hash( &w->servers[0]->handshakes, entry.client_id );
        hashes.tag = nc_handshake_tag_hash( &w->servers[0]->handshakes, entry.tag );
        hashes.address = nc_handshake_address_hash( &w->servers[0]->handshakes, &entry.address );
        entry.create_time = nc_handshake_milliseconds( &w->servers[0]->handshakes );
        if ( i == 4 )
            CHECK_EQ( nc_handshake_insert( &w->servers[0]->handshakes, &entry, &hashes, &index ),
                      NETCODE_DROP_REQUEST_TOO_SOON );
        if ( i >= 4 )
            w->servers[0]->base.clock.now += 0.51;
        entry.create_time = nc_handshake_milliseconds( &w->servers[0]->handshakes );
        CHECK_EQ( nc_handshake_insert( &w->servers[0]->handshakes, &entry, &hashes, &index ), NETCODE_DROP_NONE );
        CHECK_EQ( server_stats( w, 0 ).pending, i < 4 ? i + 1 : 4 );
    }
    for ( i = 0; i < 9; i++ ) {
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.tag[0] = (uint8_t) ( 100 + i );
        entry.client_id = 1000 + (uint64_t) i;
        hashes.id = nc_handshake_id_hash( &w->servers[0]->handshakes, entry.client_id );
        hashes.tag = nc_handshake_tag_hash( &w->servers[0]->handshakes, entry.tag );
        hashes.address = nc_handshake_address_hash( &w->servers[0]->handshakes, &entry.address );
        CHECK_EQ( nc_handshake_insert( &w->servers[0]->handshakes, &entry, &hashes, &index ), NETCODE_DROP_NONE );
        CHECK_EQ( server_stats( w, 0 ).pending, 4 + ( i < 4 ? i + 1 : 4 ) );
    }
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
    puppet_answer( &p[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_answer( &p[1] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

#if !defined( _WIN32 )

/* Keys that lead to the same bucket of a table by chance are different keys. Decision 3 */
TEST( mutants_handshakes_whose_hashes_collide_leave_each_other_alone )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct netcode_server_t * server = w->servers[0];
    nc_handshake_hashes_t hashes;
    nc_pending_t newcomer;
    uint32_t entry;
    int i;
    memset( &hashes, 0, sizeof( hashes ) );
    hashes.id = hashes.tag = 7;
    hashes.address = 7;
    for ( i = 0; i < 9; i++ ) {
        memset( &newcomer, 0, sizeof( newcomer ) );
        newcomer.address = address_of( "10.2.0.1:6000" );
        newcomer.address.port = (uint16_t) ( 6000 + i );
        newcomer.client_id = (uint64_t) i;
        newcomer.expire_timestamp = 1000 + (uint64_t) i;
        newcomer.tag[0] = (uint8_t) i;
        CHECK_EQ( nc_handshake_insert( &server->handshakes, &newcomer, &hashes, &entry ), NETCODE_DROP_NONE );
    }
    CHECK_EQ( server->handshakes.in_progress.count, 9 );
}

#endif

/*  32 and 34: thousands of half-open handshakes, tokens without timeout; an honest client connects meanwhile, all end
    within 10 s. */
TEST( hostile_32_34_ten_thousand_half_open_handshakes )
{
    struct world_t * w = world_open( CLEAN, 1, 16, 2 );
    struct puppet_t p;
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    w->recording = 0;
    for ( i = 0; i < 10000; i++ ) {
        puppet_make( &p, w, 0, 1000 + (uint64_t) i, "10.3.0.1:7000" );
        p.address.port = (uint16_t) ( 1024 + i );
        p.r.timeout = -1;
        puppet_mint( &p );
        puppet_ask( &p );
        if ( i % 50 == 49 )
            world_step( w );
        if ( i == 5000 )
            world_connect( w, 1, 2 );
    }
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_GE( server_stats( w, 0 ).handshakes, 9000 );
    CHECK_EQ( server_stats( w, 0 ).pending, 1024 );
    world_run( w, 10.5 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

/* ---- 28 and 33: an attacker on the path ---- */

/* 28: copies of the owner's request from elsewhere, arriving first, 2 and 4 a second: the owner connects. */
static void copies_from_elsewhere( double interval, int before )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    struct netcode_address_t elsewhere = address_of( "10.66.0.1:666" );
    uint8_t request[REQUEST_BYTES];
    double next_copy = w->time, end;
    w->net->latency_milliseconds = 100.0f;
    wire_request( &r, request );
    if ( before )
        world_inject( w, &elsewhere, &w->server_addresses[0], request, REQUEST_BYTES );
    world_connect_recipe( w, 0, &r );
    for ( end = w->time + 5.0;
          w->time < end && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED; ) {
        if ( w->time >= next_copy ) {
            elsewhere.port++;
            world_inject( w, &elsewhere, &w->server_addresses[0], request, REQUEST_BYTES );
            next_copy += interval;
        }
        world_step( w );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

TEST( hostile_28_copies_at_2_a_second )
{
    copies_from_elsewhere( 0.5, 1 );
}
TEST( hostile_28_copies_at_4_a_second )
{
    copies_from_elsewhere( 0.25, 1 );
}
TEST( hostile_28_copies_behind_the_owner )
{
    copies_from_elsewhere( 0.25, 0 );
}

/* 28, the limit that examples/docs/SECURITY.md states: the first that holds the whole token connects. */
TEST( hostile_28_who_holds_the_whole_token_first_wins )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    struct puppet_t thief;
    puppet_make( &thief, w, 0, 1, "10.66.0.1:666" );
    thief.r = r;
    puppet_mint( &thief );
    REQUIRE( puppet_connect( &thief ) );
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 7.0 ) );
}

/* 33: own tokens with the victim's address as their source, while the victim connects. */
static void spoofed_source( int tokens )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 1 );
    struct puppet_t p[4];
    double end, next_round;
    int i;
    w->net->latency_milliseconds = 100.0f;
    for ( i = 0; i < tokens; i++ ) {
        puppet_make( &p[i], w, 0, 100 + (uint64_t) i, "10.1.0.1:50000" );
        puppet_ask( &p[i] );
    }
    world_step( w );
    world_connect( w, 0, 1 );
    next_round = w->time;
    for ( end = w->time + 8.0;
          w->time < end && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED; ) {
        for ( i = 0; i < tokens && w->time >= next_round; i++ )
            puppet_ask( &p[i] );
        if ( w->time >= next_round )
            next_round += 1.0;
        world_step( w );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( world_slot( w, 0, 1 ) >= 0, 1 );
}

TEST( hostile_33_two_tokens_with_the_victims_source )
{
    spoofed_source( 2 );
}
TEST( hostile_33_four_tokens_with_the_victims_source )
{
    spoofed_source( 4 );
}

/*  33: up to three tokens, fewer than an address may have pending, are asked with at the victim's address, a hundred
    times a second each. The victim connects as if they were not there. */
TEST( threat_33_a_victim_among_three_tokens_at_any_rate )
{
    int tokens;
    for ( tokens = 1; tokens <= 3; tokens++ ) {
        struct world_t * w = world_open( CLEAN, 1, 8, 1 );
        struct puppet_t p[3];
        double start = w->time;
        int i;
        w->net->latency_milliseconds = 100.0f;
        for ( i = 0; i < tokens; i++ )
            puppet_make( &p[i], w, 0, 100 + (uint64_t) i, "10.1.0.1:50000" );
        world_connect( w, 0, 1 );
        while ( w->time < start + 2.0 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED ) {
            for ( i = 0; i < tokens; i++ )
                puppet_ask( &p[i] );
            world_step( w );
        }
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_NEAR( w->time - start, 0.45, 0.1 ); /* two round trips, and what the updates add */
        world_close( w );
    }
}
