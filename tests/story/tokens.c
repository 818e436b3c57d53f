/*  Story: a token connects once. The server remembers those that were consumed (decision 4), and a client object takes one once
    (decision 13). Rows 26, 27 and 31 of the table of attacks. */

/* ---- how long a token may live ---- */

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
        puppet_expires( &p, p.r.create + (uint64_t) rows[i][2] );
        if ( !CHECK_EQ( !puppet_connect( &p ), rows[i][3] ) )
            printf( "    row %d\n", i );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_MAYBE_USED ), rows[i][3] );
        world_close( w );
    }
}

/* ---- consumed tokens are remembered ---- */

TEST( decision_4_a_token_connects_once )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_step( &p );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK( !puppet_again( &p ) );
    world_restart( w, 0, 4 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
    CHECK_EQ( p.challenges, 0 );
}

/* 27: a client that was connected with it keeps it. */
TEST( hostile_27_a_used_token_from_another_address )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct puppet_t thief;
    struct recipe_t r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    puppet_make( &thief, w, 0, 1, "10.66.0.1:666" );
    thief.r = r;
    puppet_mint( &thief );
    CHECK( !puppet_connect( &thief ) );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.2 );
    CHECK( !puppet_connect( &thief ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_4_a_token_that_was_merely_seen_is_forgotten )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    world_run( w, 11.0 );
    p.address = address_of( "10.9.9.9:999" );
    CHECK( puppet_connect( &p ) );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
}

/* The record is checked at the response too: two handshakes of one token pending, one wins. */
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
    puppet_answer( &a );
    REQUIRE( a.keep_alives > 0 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_answer( &b );
    CHECK_EQ( b.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_4_never_expiring_tokens_have_their_own_half )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    w->server_config.consumed_tokens = 16;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    puppet_expires( &q, FOREVER );
    REQUIRE( puppet_connect( &q ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK( !puppet_again( &q ) );
    consume_tokens( w, 30, FOREVER, 1000 ); /* the oldest of its half is evicted, with random bases */
    CHECK( !puppet_again( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NO_RECORD_FREE ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
}

/* max( 8 x slots, 1024 ), half of it for tokens that never expire; or what the config says. */
TEST( defence_4_the_capacity_of_the_record )
{
    static const int rows[][3] = { { 0, 1, 1024 }, { 0, 128, 1024 }, { 0, 200, 1600 }, { 40, 200, 40 } };
    int i;
    for ( i = 0; i < 4; i++ ) {
        struct world_t * w = world_new( CLEAN );
        const nc_used_t * used;
        w->server_config.consumed_tokens = rows[i][0];
        world_add_server( w, rows[i][1] );
        used = &w->servers[0]->handshakes.used;
        CHECK_EQ( used->expiring_capacity + used->never_capacity, rows[i][2] );
        CHECK_EQ( used->never_capacity, rows[i][2] / 2 );
        world_close( w );
    }
}

/* ---- the mark of what was forgotten ---- */

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
    puppet_expires( &first, expire );
    REQUIRE( puppet_connect( &first ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    consume_tokens( w, 40, expire + 1, 100 );
    CHECK_LE( server_stats( w, 0 ).consumed, 16 );
    CHECK( !puppet_again( &first ) ); /* its record is gone, the mark is not */
    for ( i = 0; i < 3; i++ ) {
        puppet_make( &p, w, 0, 6000 + (uint64_t) i, "10.4.0.2:9000" );
        puppet_expires( &p, expire + (uint64_t) i );
        CHECK( !puppet_connect( &p ) );
    }
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 4 );
    puppet_make( &p, w, 0, 7000, "10.4.0.3:9000" );
    puppet_expires( &p, expire + 500 );
    CHECK( puppet_connect( &p ) );
}

/* A server that remembers 4 expiring tokens. */
static struct world_t * forgetful_world( void )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.consumed_tokens = 8;
    world_add_server( w, 2 );
    return w;
}

/* The mark passes a token while its handshake is pending. */
TEST( defence_4_the_mark_is_asked_at_the_response )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_expires( &p, expire );
    REQUIRE( puppet_challenged( &p ) );
    consume_tokens( w, 6, expire + 1, 100 );
    puppet_answer( &p );
    CHECK_EQ( p.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 1 );
}

/* The record is full of tokens that expire later: the newcomer is the earliest itself, and is remembered by the mark. */
TEST( defence_4_the_earliest_newcomer_moves_the_mark )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    consume_tokens( w, 4, expire + 1, 100 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_expires( &p, expire );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_poll( &p );
    CHECK( !puppet_again( &p ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/*  A clock that steps forward lets records be purged; stepping back again opens none of them, and locks out no client
    for longer than a token lives. */
TEST( decision_4_a_clock_that_steps_reopens_nothing )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset += 86400;
    world_run( w, 2.0 );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" ); /* a handshake in the meantime, so that the purge runs */
    REQUIRE( puppet_connect( &q ) );
    world_run( w, 2.0 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset -= 86400;
    world_run( w, 2.0 );
    CHECK( !puppet_again( &p ) );
    world_run( w, 300.0 );
    puppet_make( &q, w, 0, 3, "10.2.0.3:6000" );
    CHECK( puppet_connect( &q ) );
}

/* 26: time passes, tokens expire, others come and go; then the calendar steps back, and old tokens look young. */
TEST( threat_26_a_clock_that_steps_back )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p[4], q;
    int i;
    for ( i = 0; i < 4; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        puppet_expires( &p[i], p[i].r.create + 30 + 10 * (uint64_t) i );
        REQUIRE( puppet_connect( &p[i] ) );
        netcode_server_disconnect_client( w->servers[0], 0 );
    }
    w->step = 0.1;
    world_run( w, 100.0 );
    consume_tokens( w, 20, world_unix( w ) + 60, 100 );
    w->unix_offset -= 95;
    world_run( w, 1.0 );
    for ( i = 0; i < 4; i++ ) {
        CHECK( !puppet_again( &p[i] ) );
    }
    for ( i = 0; i < 60;
          i++ ) { /* and newcomers, with tokens of 60 s from a backend of the same clock, get in within that */
        puppet_make( &q, w, 0, 1000 + (uint64_t) i, "10.2.0.9:6000" );
        puppet_expires( &q, q.r.create + 60 );
        if ( puppet_connect( &q ) )
            break;
        world_run( w, 1.0 );
    }
    CHECK_LT( i, 60 );
}

/* ---- a start with other slots ---- */

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
            puppet_expires( &p[i], FOREVER );
            REQUIRE( puppet_connect( &p[i] ) );
            netcode_server_disconnect_client( world->servers[0], 0 );
        }
        world_restart( world, 0, 16 );
        for ( i = 0; i < 600; i++ ) {
            p[i].challenges = p[i].keep_alives = 0;
            again += puppet_connect( &p[i] );
        }
        CHECK_EQ( again, 0 );
    }
}

TEST( defence_4_used_tokens_survive_a_start_with_other_slots )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        puppet_expires( &p[i], i ? FOREVER : p[i].r.expire );
        REQUIRE( puppet_connect( &p[i] ) );
        netcode_server_disconnect_client( w->servers[0], 0 );
        p[i].challenges = p[i].keep_alives = 0;
    }
    world_restart( w, 0, 50 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 2 );
    CHECK( !puppet_connect( &p[0] ) );
    CHECK( !puppet_connect( &p[1] ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
}

TEST( defence_4_the_mark_survives_a_start_with_other_slots )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    consume_tokens( w, 8, expire, 100 );
    world_restart( w, 0, 5 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_expires( &p, expire );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 1 );
}

/* ---- a client object takes a token once ---- */

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

TEST( defence_13_the_report_names_the_reason )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_client_report_t report;
    uint8_t damaged[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    netcode_client_connect( w->clients[0], w->tokens[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    netcode_client_report( w->clients[0], &report );
    CHECK( strstr( report.text, "before" ) != NULL );
    netcode_client_connect( w->clients[0], damaged );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    netcode_client_report( w->clients[0], &report );
    CHECK( strstr( report.text, "before" ) == NULL );
}

#if !defined( _WIN32 )

TEST( mutants_remembered_tokens_are_distinguished_by_every_byte )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    int at;
    CHECK_EQ( client->remembered_count, 0 );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK_EQ( client->remembered_count, 1 );
    CHECK_EQ( nc_client_remembers_token( client ), 1 );
    for ( at = 0; at < NC_TOKEN_TAG_BYTES; at++ ) {
        client->remembered[0][at] ^= 1;
        CHECK_EQ( nc_client_remembers_token( client ), 0 );
        client->remembered[0][at] ^= 1;
    }
}

#endif
