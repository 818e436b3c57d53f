/*  Story: full servers, the next server of a token, and every way in which connecting ends. Standard: Client State
    Machine */

TEST( second_client_is_denied_by_a_full_server )
{
    struct world_t * w = world_open( LOSSY, 1, 1, 2 );
    REQUIRE( world_join( w, 0, 1 ) );
    world_connect( w, 1, 2 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 10.0 ) );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

TEST( denied_in_answer_to_the_request )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 2 );
    REQUIRE( world_join( w, 0, 1 ) );
    world_connect( w, 1, 2 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 1.0 ) );
    CHECK_EQ( world_count( w, 0, NULL, &w->client_addresses[1], NETCODE_PACKET_CHALLENGE, 0 ), 0 );
    CHECK_EQ( world_last( w, NULL, &w->client_addresses[1], NETCODE_PACKET_DENIED )->bytes, 25 );
}

/* The first denial of a server whose sequences begin at zero is no copy of another one. */
TEST( denied_by_sequence_zero )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    w->cut_to = w->server_addresses[0];
    struct recipe_t r = world_connect( w, 0, 1 );
    world_step( w );
    send_to_client( w, &r, NETCODE_PACKET_DENIED, 0, NULL, 0 );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 1.0 ) );
}

/* The last slot goes to another client between the challenge and the response. */
TEST( denied_in_answer_to_the_response )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 2 );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    world_connect( w, 1, 2 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    w->cut_types = 0;
    w->cut_from = w->client_addresses[1];
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    memset( &w->cut_from, 0, sizeof( w->cut_from ) );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 1.0 ) );
}

TEST( next_server_after_a_denial )
{
    struct world_t * w = world_open( LOSSY, 3, 1, 3 );
    int i;
    for ( i = 0; i < 3; i++ ) {
        world_connect( w, i, (uint64_t) i + 1 );
        REQUIRE( world_until( w, i, NETCODE_CLIENT_STATE_CONNECTED, 15.0 ) );
        world_run( w, 2.0 );
        CHECK( netcode_address_equal( netcode_client_server_address( w->clients[i] ), &w->server_addresses[i] ) );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[i] ), 1 );
    }
}

/* One row for each end: what is lost in transit, after how long, the state. */
TEST( every_way_in_which_connecting_ends )
{
    static const struct {
        const char * name;
        unsigned lost; /* packet types */
        int timeout;
        int lifetime;
        int full;
        int state;
        double after;
    } rows[] = {
        { "silence", 1u << NETCODE_PACKET_REQUEST, 5, 300, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 5.0 },
        { "silence, one second", 1u << NETCODE_PACKET_REQUEST, 1, 300, 0,
          NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 1.0 },
        { "no challenge", 1u << NETCODE_PACKET_CHALLENGE, 5, 300, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT,
          5.0 },
        { "no keep-alive", 1u << NETCODE_PACKET_KEEP_ALIVE, 5, 300, 0,
          NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT, 5.0 },
        { "no response", 1u << NETCODE_PACKET_RESPONSE, 3, 300, 0, NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT,
          3.0 },
        { "full", 0, 5, 300, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 0.0 },
        { "full, denial lost", 1u << NETCODE_PACKET_DENIED, 5, 300, 1,
          NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 5.0 },
        { "expired while requesting", 1u << NETCODE_PACKET_REQUEST, 5, 3, 0, NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED,
          3.0 },
        { "expired, no timeout", 1u << NETCODE_PACKET_REQUEST, -1, 20, 0, NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED,
          20.0 },
        { "expired while responding", 1u << NETCODE_PACKET_RESPONSE, 5, 2, 0,
          NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED, 2.0 },
    };
    int i;
    for ( i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 1, 2 );
        struct recipe_t r;
        double start;
        int before = test_state.failures;
        if ( rows[i].full )
            REQUIRE( world_join( w, 1, 99 ) );
        r = recipe_for( w, 1 );
        r.timeout = rows[i].timeout;
        r.expire = r.create + (uint64_t) rows[i].lifetime;
        w->cut_types = rows[i].lost;
        world_connect_recipe( w, 0, &r );
        start = w->time;
        CHECK( world_until( w, 0, rows[i].state, 30.0 ) );
        CHECK_NEAR( w->time - start, rows[i].after, 0.2 );
        if ( test_state.failures != before )
            printf( "    row \"%s\"\n", rows[i].name );
        world_run( w, 1.0 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), rows[i].state ); /* and there it stays */
        CHECK_EQ( netcode_client_index( w->clients[0] ), -1 );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 0 );
        w->cut_types = 0;
        if ( !rows[i].full )
            CHECK( world_join( w, 0, 2 ) ); /* a new token works */
        world_close( w );
    }
}

/* Standard: Request Connect Token. What a client calls invalid. */
TEST( invalid_tokens )
{
    static const char * const names[] = { "version", "no server",       "33 servers", "type 0",
                                          "type 3",  "create > expire", "port 0",     "zeros" };
    int i;
    for ( i = 0; i < 8; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 1, 1 );
        struct recipe_t r = recipe_for( w, 1 );
        struct netcode_connect_token_info_t info;
        int j;
        for ( j = 0; j < 33; j++ )
            r.public_addresses[j] = w->server_addresses[0];
        if ( i == 0 )
            memcpy( r.version, "NETCODE 1.01", 13 );
        if ( i == 1 )
            r.public_count = 0;
        if ( i == 2 )
            r.public_count = 33;
        if ( i == 3 )
            r.public_addresses[0].type = 0;
        if ( i == 4 )
            r.public_addresses[0].type = 3;
        if ( i == 5 )
            r.create = r.expire + 1;
        if ( i == 6 )
            r.public_addresses[0].port = 0;
        mint( &r, w->tokens[0] );
        if ( i == 7 )
            memset( w->tokens[0], 0, NETCODE_CONNECT_TOKEN_BYTES );
        netcode_client_connect( w->clients[0], w->tokens[0] );
        if ( !CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN ) )
            printf( "    row \"%s\"\n", names[i] );
        CHECK_EQ( netcode_connect_token_info( w->tokens[0], &info ), NETCODE_ERROR );
        world_run( w, 0.5 );
        CHECK_EQ( w->records.count, 0 );
        CHECK( world_join( w, 0, 1 ) );
        world_close( w );
    }
}

/* 32 servers, the last of which answers; and IPv6 addresses in a token are written as the standard says. */
TEST( the_thirty_second_server )
{
    struct world_t * w = world_open( CLEAN, 32, 1, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    int i;
    for ( i = 0; i < 31; i++ )
        netcode_server_stop( w->servers[i] );
    r.timeout = 1;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 40.0 ) );
    CHECK( netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[31] ) );
}

TEST( a_token_that_never_expires )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    struct netcode_connect_token_info_t info;
    struct netcode_client_report_t report;
    r.expire = FOREVER;
    r.timeout = -1;
    w->cut_to = w->server_addresses[0];
    world_connect_recipe( w, 0, &r );
    CHECK_EQ( netcode_connect_token_info( w->tokens[0], &info ), NETCODE_OK );
    CHECK( info.expire_timestamp == FOREVER );
    w->step = 0.1;
    world_run( w, 1000.0 ); /* no timeout, no expiry: it goes on asking */
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    netcode_client_report( w->clients[0], &report );
    CHECK( report.token_seconds_left >= 1e299 );
    w->unix_offset = 2000000000;
    memset( &w->cut_to, 0, sizeof( w->cut_to ) );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

TEST( token_expiry_on_the_server )
{
    static const struct {
        int64_t lives; /* seconds after now */
        int accepted;
    } rows[] = { { -1000, 0 }, { -1, 0 }, { 0, 0 }, { 1, 1 }, { 1000, 1 } };
    int i;
    for ( i = 0; i < 5; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 1, 0 );
        struct puppet_t p;
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        puppet_expires( &p, (uint64_t) ( (int64_t) world_unix( w ) + rows[i].lives ) );
        w->step = 0.0001;
        CHECK_EQ( puppet_challenged( &p ), rows[i].accepted );
        world_close( w );
    }
}

/* ---- the next server, and the clock of all of them ---- */

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
    w->clients[0]->config.next_server_seconds = 0.0;
    r.expire = r.create + 12; /* each server would take 5 s: the third is cut short */
    world_connect_recipe( w, 0, &r );
    start = w->time;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED, 20.0 ) );
    CHECK_NEAR( w->time - start, 12.0, 0.2 );
    CHECK_GT( world_count( w, 0, NULL, &w->server_addresses[2], -1, 0 ), 0 );
    CHECK_EQ( world_count( w, 0, NULL, &w->server_addresses[3], -1, 0 ), 0 );
}
