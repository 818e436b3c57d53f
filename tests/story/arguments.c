/*  Story: bad arguments. A caller's mistake trips netcode_assert in debug builds; in every build it is logged,
    refused and harmless. */

/* The calls of `say` once with the log, and once with it off: then nothing is logged. */
static void arguments_twice( void ( *say )( void ) )
{
    say();
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    test_state.silent = 1;
    say();
}

static void arguments_null_clients( void )
{
    struct netcode_address_t address = address_of( "10.0.0.1:1" );
    struct netcode_client_stats_t stats;
    struct netcode_client_report_t report;
    struct netcode_event_t event;
    uint8_t data[64] = { 0 }, token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    int bytes = 0;
    uint64_t sequence = 0;
    netcode_client_destroy( NULL ); /* ignored, as free is */
    BAD( netcode_client_connect( NULL, token ) );
    BAD( netcode_client_update( NULL, 1.0 ) );
    BAD( netcode_client_disconnect( NULL ) );
    BAD( CHECK_EQ( netcode_client_next_packet_sequence( NULL ), 0 ) );
    BAD( netcode_client_send_packet( NULL, data, 10 ) );
    BAD( CHECK( netcode_client_receive_packet( NULL, &bytes, &sequence ) == NULL ) );
    BAD( netcode_client_free_packet( NULL, data ) );
    BAD( CHECK_EQ( netcode_client_state( NULL ), NETCODE_CLIENT_STATE_DISCONNECTED ) );
    BAD( CHECK_EQ( netcode_client_index( NULL ), -1 ) );
    BAD( CHECK_EQ( netcode_client_max_clients( NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_client_get_port( NULL ), 0 ) );
    BAD( (void) netcode_client_server_address( NULL ) );
    BAD( netcode_client_process_packet( NULL, &address, data, 30 ) );
    BAD( netcode_client_connect_loopback( NULL, 0, 1 ) );
    BAD( netcode_client_disconnect_loopback( NULL ) );
    BAD( CHECK_EQ( netcode_client_loopback( NULL ), 0 ) );
    BAD( netcode_client_process_loopback_packet( NULL, data, 10, 1 ) );
    BAD( CHECK_EQ( netcode_client_next_event( NULL, &event ), 0 ) );
    BAD( netcode_client_flush( NULL ) );
    BAD( CHECK_EQ( netcode_client_rebind( NULL ), 0 ) );
    BAD( netcode_client_wait( NULL, 0.0 ) );
    BAD( netcode_client_stats( NULL, &stats ) );
    BAD( netcode_client_report( NULL, &report ) );
    BAD( netcode_default_client_config( NULL ) );
    BAD( (void) netcode_client_memory( NULL ) );
}

TEST( null_clients )
{
    arguments_twice( arguments_null_clients );
}

static void arguments_null_servers( void )
{
    struct netcode_address_t address = address_of( "10.0.0.1:1" );
    struct netcode_server_stats_t stats;
    struct netcode_server_client_stats_t slot;
    struct netcode_event_t event;
    uint8_t data[64] = { 0 };
    int bytes = 0;
    netcode_server_destroy( NULL );
    BAD( netcode_server_start( NULL, 4 ) );
    BAD( netcode_server_stop( NULL ) );
    BAD( netcode_server_update( NULL, 1.0 ) );
    BAD( CHECK_EQ( netcode_server_running( NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_server_max_clients( NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_server_num_connected_clients( NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_server_client_connected( NULL, 0 ), 0 ) );
    BAD( CHECK_EQ( netcode_server_client_disconnect_reason( NULL, 0 ), 0 ) );
    BAD( CHECK_EQ( netcode_server_client_loopback( NULL, 0 ), 0 ) );
    BAD( CHECK_EQ( netcode_server_client_id( NULL, 0 ), 0 ) );
    BAD( CHECK( netcode_server_client_address( NULL, 0 ) == NULL ) );
    BAD( CHECK( netcode_server_client_user_data( NULL, 0 ) == NULL ) );
    BAD( CHECK_EQ( netcode_server_client_session( NULL, 0 ), 0 ) );
    BAD( netcode_server_disconnect_client( NULL, 0 ) );
    BAD( netcode_server_disconnect_all_clients( NULL ) );
    BAD( CHECK_EQ( netcode_server_next_packet_sequence( NULL, 0 ), 0 ) );
    BAD( netcode_server_send_packet( NULL, 0, data, 10 ) );
    BAD( netcode_server_send_packet_to_session( NULL, 0, 1, data, 10 ) );
    BAD( netcode_server_broadcast( NULL, data, 10, -1 ) );
    BAD( CHECK( netcode_server_receive_packet( NULL, 0, &bytes, NULL ) == NULL ) );
    BAD( netcode_server_free_packet( NULL, data ) );
    BAD( netcode_server_process_packet( NULL, &address, data, 30 ) );
    BAD( netcode_server_connect_loopback_client( NULL, 0, 1, NULL ) );
    BAD( netcode_server_disconnect_loopback_client( NULL, 0 ) );
    BAD( netcode_server_process_loopback_packet( NULL, 0, data, 10, 1 ) );
    BAD( CHECK_EQ( netcode_server_get_port( NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_server_next_event( NULL, &event ), 0 ) );
    BAD( netcode_server_flush( NULL ) );
    BAD( netcode_server_wait( NULL, 0.0 ) );
    BAD( CHECK_EQ( netcode_server_set_private_keys( NULL, world_key, 1 ), NETCODE_ERROR ) );
    BAD( netcode_server_stats( NULL, &stats ) );
    BAD( netcode_server_client_stats( NULL, 0, &slot ) );
    BAD( netcode_default_server_config( NULL ) );
    BAD( (void) netcode_server_memory( NULL, 1 ) );
}

TEST( null_servers )
{
    arguments_twice( arguments_null_servers );
}

static void arguments_null_data( void )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_client_t * c = w->clients[0];
    struct netcode_server_t * s = w->servers[0];
    int bytes = 0, before;
    REQUIRE( world_join( w, 0, 1 ) );
    before = w->records.count;
    BAD( netcode_client_send_packet( c, NULL, 10 ) );
    BAD( netcode_server_send_packet( s, 0, NULL, 10 ) );
    BAD( netcode_server_send_packet_to_session( s, 0, netcode_server_client_session( s, 0 ), NULL, 10 ) );
    BAD( netcode_server_broadcast( s, NULL, 10, -1 ) );
    CHECK_EQ( w->records.count, before );
    BAD( CHECK( netcode_client_receive_packet( c, NULL, NULL ) == NULL ) );
    BAD( CHECK( netcode_server_receive_packet( s, 0, NULL, NULL ) == NULL ) );
    CHECK( netcode_client_receive_packet( c, &bytes, NULL ) == NULL );
    BAD( netcode_client_process_packet( c, NULL, (uint8_t *) &bytes, 4 ) );
    BAD( netcode_client_process_packet( c, &w->server_addresses[0], NULL, 30 ) );
    BAD( netcode_server_process_packet( s, NULL, (uint8_t *) &bytes, 4 ) );
    BAD( netcode_server_process_packet( s, &w->client_addresses[0], NULL, 30 ) );
    BAD( CHECK_EQ( netcode_client_next_event( c, NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_server_next_event( s, NULL ), 0 ) );
    BAD( netcode_client_stats( c, NULL ) );
    BAD( netcode_client_report( c, NULL ) );
    BAD( netcode_server_stats( s, NULL ) );
    BAD( netcode_server_client_stats( s, 0, NULL ) );
    BAD( CHECK_EQ( netcode_server_set_private_keys( s, NULL, 1 ), NETCODE_ERROR ) );
    BAD( netcode_client_connect( c, NULL ) );
    TOLERATE( netcode_client_free_packet( c, NULL ) );
    TOLERATE( netcode_server_free_packet( s, NULL ) );
    world_run( w, 1.0 );
    CHECK_EQ( netcode_client_state( c ), NETCODE_CLIENT_STATE_CONNECTED );
}

TEST( null_data )
{
    arguments_twice( arguments_null_data );
}

/* Nothing is known of such a slot, and nothing is wrong with asking. */
static void ask_about_slot( struct netcode_server_t * s, int slot )
{
    struct netcode_server_client_stats_t stats;
    int bytes, asserts = test_state.asserts, lines = test_log_lines;
    memset( &stats, 0x55, sizeof( stats ) );
    CHECK_EQ( netcode_server_client_connected( s, slot ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( s, slot ), NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE );
    CHECK_EQ( netcode_server_client_loopback( s, slot ), 0 );
    CHECK_EQ( netcode_server_client_id( s, slot ), 0 );
    CHECK( netcode_server_client_address( s, slot ) == NULL );
    CHECK( netcode_server_client_user_data( s, slot ) == NULL );
    CHECK_EQ( netcode_server_client_session( s, slot ), 0 );
    CHECK_EQ( netcode_server_next_packet_sequence( s, slot ), 0 );
    CHECK( netcode_server_receive_packet( s, slot, &bytes, NULL ) == NULL );
    netcode_server_client_stats( s, slot, &stats );
    CHECK_EQ( stats.session, 0 );
    CHECK_EQ( test_state.asserts, asserts );
    CHECK_EQ( test_log_lines, lines );
}

TEST( slots_past_the_last_one_can_be_asked_for )
{
    static const int slots[] = { 2, 255, 65535, 2147483647 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( int i = 0; i < 4; i++ )
        ask_about_slot( w->servers[0], slots[i] );
    netcode_server_stop( w->servers[0] );
    for ( int i = 0; i < 4; i++ )
        ask_about_slot( w->servers[0], slots[i] );
    world_make_server( w, ++w->server_count - 1 ); /* never started */
    for ( int i = 0; i < 256; i++ )
        ask_about_slot( w->servers[1], i );
}

/* A call for a slot that is not there is a mistake, perhaps on every tick: it is said once a second. */
TEST( acting_on_slots_past_the_last_one_is_logged_once_a_second )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
    uint8_t data[10] = { 0 };
    int asserts = test_state.asserts, calls = 0;
    world_add_server( w, 2 );
    struct netcode_server_t * s = w->servers[0];
    test_state.expecting = 1;
    for ( double end = w->time + 2.5; w->time < end; calls++ ) {
        netcode_server_send_packet( s, 2, data, 10 );
        netcode_server_send_packet_to_session( s, 3, 1, data, 10 );
        netcode_server_disconnect_client( s, 4 );
        netcode_server_connect_loopback_client( s, 5, 1, NULL );
        netcode_server_disconnect_loopback_client( s, 6 );
        netcode_server_process_loopback_packet( s, 7, data, 10, 1 );
        world_step( w );
    }
    test_state.expecting = 0;
    if ( TEST_ASSERTS_WORK )
        CHECK_EQ( test_state.asserts - asserts, 6 * calls );
    CHECK_EQ( logged_times( "failed: requires a slot below 2, not " ), 3 );
    CHECK_EQ( logged_times( "netcode_server_send_packet failed: requires a slot below 2, not 2 (0 refusals before)" ),
              1 );
    CHECK_EQ( logged_times( "(599 refusals before)" ), 2 );
    netcode_server_stop( s ); /* nothing is there, and nothing is said */
    netcode_server_send_packet( s, 2, data, 10 );
    netcode_server_disconnect_client( s, 2 );
    CHECK_EQ( logged_times( "failed: requires a slot below 2, not " ), 3 );
}

TEST( sizes_and_indices_out_of_range )
{
    static const int sizes[] = { 0, -1, 1201, 100000, 2147483647, (int) 0x80000000 };
    static const int slots[] = { -1, (int) 0x80000000, 2, 1000, 2147483647 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_client_t * c = w->clients[0];
    struct netcode_server_t * s = w->servers[0];
    struct netcode_server_client_stats_t stats;
    uint8_t data[1300] = { 0 };
    int i, bytes, before;
    REQUIRE( world_join( w, 0, 1 ) );
    before = w->records.count;
    for ( i = 0; i < 6; i++ ) {
        REFUSED( netcode_client_send_packet( c, data, sizes[i] ) );
        REFUSED( netcode_server_send_packet( s, 0, data, sizes[i] ) );
        REFUSED( netcode_server_send_packet_to_session( s, 0, netcode_server_client_session( s, 0 ), data, sizes[i] ) );
        REFUSED( netcode_server_broadcast( s, data, sizes[i], -1 ) );
    }
    for ( i = 0; i < 2; i++ ) {
        BAD( CHECK_EQ( netcode_server_client_connected( s, slots[i] ), 0 ) );
        BAD( CHECK_EQ( netcode_server_client_disconnect_reason( s, slots[i] ), 0 ) );
        BAD( CHECK_EQ( netcode_server_client_loopback( s, slots[i] ), 0 ) );
        BAD( CHECK_EQ( netcode_server_client_id( s, slots[i] ), 0 ) );
        BAD( CHECK( netcode_server_client_address( s, slots[i] ) == NULL ) );
        BAD( CHECK( netcode_server_client_user_data( s, slots[i] ) == NULL ) );
        BAD( CHECK_EQ( netcode_server_client_session( s, slots[i] ), 0 ) );
        BAD( netcode_server_disconnect_client( s, slots[i] ) );
        BAD( CHECK_EQ( netcode_server_next_packet_sequence( s, slots[i] ), 0 ) );
        BAD( netcode_server_send_packet( s, slots[i], data, 10 ) );
        BAD( netcode_server_send_packet_to_session( s, slots[i], 1, data, 10 ) );
        BAD( CHECK( netcode_server_receive_packet( s, slots[i], &bytes, NULL ) == NULL ) );
        BAD( netcode_server_connect_loopback_client( s, slots[i], 5, NULL ) );
        BAD( netcode_server_disconnect_loopback_client( s, slots[i] ) );
        BAD( netcode_server_process_loopback_packet( s, slots[i], data, 10, 1 ) );
        BAD( netcode_server_client_stats( s, slots[i], &stats ) );
    }
    /* Past the last slot: a query is answered, a call that acts is refused. */
    for ( i = 2; i < 5; i++ ) {
        ask_about_slot( s, slots[i] );
        TOLERATE( netcode_server_disconnect_client( s, slots[i] ) );
        TOLERATE( netcode_server_send_packet( s, slots[i], data, 10 ) );
        TOLERATE( netcode_server_send_packet_to_session( s, slots[i], 1, data, 10 ) );
        TOLERATE( netcode_server_connect_loopback_client( s, slots[i], 5, NULL ) );
        TOLERATE( netcode_server_disconnect_loopback_client( s, slots[i] ) );
        TOLERATE( netcode_server_process_loopback_packet( s, slots[i], data, 10, 1 ) );
    }
    BAD( netcode_server_set_private_keys( s, world_key, 0 ) );
    BAD( netcode_server_set_private_keys( s, world_key, -1 ) );
    BAD( netcode_server_set_private_keys( s, world_key, 5 ) );
    TOLERATE( netcode_client_process_packet( c, &w->server_addresses[0], data, -1 ) );
    TOLERATE( netcode_server_process_packet( s, &w->client_addresses[0], data, -1 ) );
    CHECK_EQ( w->records.count, before );
    CHECK_EQ( netcode_server_num_connected_clients( s ), 1 );
    netcode_server_broadcast( s, data, 10, 1000 ); /* an exception that does not exist excepts no client */
    world_run( w, 1.0 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( netcode_client_state( c ), NETCODE_CLIENT_STATE_CONNECTED );
}

TEST( start_out_of_range )
{
    static const int rows[] = { 0, -1, NETCODE_MAX_SLOTS + 1, 2147483647, (int) 0x80000000 };
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    int i;
    netcode_server_stop( w->servers[0] );
    for ( i = 0; i < 5; i++ ) {
        BAD( netcode_server_start( w->servers[0], rows[i] ) );
        CHECK_EQ( netcode_server_running( w->servers[0] ), 0 );
    }
    netcode_server_start( w->servers[0], NETCODE_MAX_SLOTS );
    CHECK_EQ( netcode_server_running( w->servers[0] ), 1 );
    CHECK_EQ( netcode_server_max_clients( w->servers[0] ), NETCODE_MAX_SLOTS );
}

/* Callers ask every slot on every tick: where no client is, they get no log line. */
TEST( wrong_states_are_silent )
{
    struct world_t * w = world_open( CLEAN, 1, 3, 1 );
    uint8_t data[10] = { 0 };
    int bytes, i, lines, round;
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    lines = test_log_lines;
    for ( round = 0; round < 2; round++ ) {
        netcode_client_send_packet( w->clients[0], data, 10 );
        CHECK( netcode_client_receive_packet( w->clients[0], &bytes, NULL ) == NULL );
        for ( i = 0; i < 3 && !round; i++ ) {
            netcode_server_send_packet( w->servers[0], i, data, 10 );
            CHECK( netcode_server_receive_packet( w->servers[0], i, &bytes, NULL ) == NULL );
            CHECK_EQ( netcode_server_client_id( w->servers[0], i ), 0 );
            CHECK_EQ( netcode_server_next_packet_sequence( w->servers[0], i ), 0 );
            CHECK( netcode_server_client_address( w->servers[0], i ) == NULL );
        }
        if ( round == 0 ) {
            CHECK_EQ( test_log_lines, lines );
            netcode_server_stop( w->servers[0] );
            lines = test_log_lines;
            netcode_server_send_packet( w->servers[0], 0, data, 10 ); /* a stopped server, any slot */
            CHECK( netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL ) == NULL );
            netcode_server_broadcast( w->servers[0], data, 10, -1 );
        }
    }
    CHECK_EQ( test_log_lines, lines );
    CHECK_EQ( w->records.count, 0 );
    netcode_client_disconnect( w->clients[0] );
    netcode_server_stop( w->servers[0] );
    netcode_server_flush( w->servers[0] );
    netcode_client_flush( w->clients[0] );
}

TEST( log_levels )
{
    int level, lines[4];
    for ( level = NETCODE_LOG_LEVEL_NONE; level <= NETCODE_LOG_LEVEL_DEBUG; level++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        uint8_t data[20] = { 0x15 };
        netcode_log_level( level );
        lines[level] = test_log_lines;
        REQUIRE( world_join( w, 0, 1 ) );
        world_inject( w, &w->client_addresses[0], &w->server_addresses[0], data, 20 );
        world_step( w );
        REFUSED( ( test_log_lines += level == NETCODE_LOG_LEVEL_NONE,
                   netcode_client_send_packet( w->clients[0], data, 0 ) ) );
        lines[level] = test_log_lines - lines[level];
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
        world_close( w );
    }
    CHECK_EQ( lines[NETCODE_LOG_LEVEL_NONE], 1 ); /* the one that this test itself has added */
    CHECK_EQ( lines[NETCODE_LOG_LEVEL_ERROR], 1 );
    CHECK_GT( lines[NETCODE_LOG_LEVEL_INFO], lines[NETCODE_LOG_LEVEL_ERROR] );
    CHECK_GT( lines[NETCODE_LOG_LEVEL_DEBUG], lines[NETCODE_LOG_LEVEL_INFO] );
}

TEST( bad_addresses )
{
    static const char * const rows[] = { "",          "x",         "1.2.3",         "1.2.3.4.5",
                                         "256.1.1.1", "1.2.3.4:",  "1.2.3.4:65536", "1.2.3.4:-1",
                                         "[::1",      "::1]",      "[::1]:x",       ":::",
                                         "1::2::3",   "12345::",   "[fe80::1%]:5",  " 1.2.3.4",
                                         "1.2.3.4 ",  "01.2.3.4x", "localhost",     "1.2.3.4:5:6" };
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    struct netcode_address_t address;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i;
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    for ( i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        memset( &address, 0x55, sizeof( address ) );
        if ( !CHECK_EQ( netcode_parse_address( rows[i], &address ), NETCODE_ERROR ) )
            printf( "    \"%s\"\n", rows[i] );
        CHECK_EQ( address.type, NETCODE_ADDRESS_NONE );
        CHECK( netcode_client_create( rows[i], &client, 0.0 ) == NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED );
        CHECK( netcode_server_create( rows[i], &server, 0.0 ) == NULL );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    }
    CHECK( netcode_client_create_dual( "127.0.0.1:0", "x", &client, 0.0 ) == NULL );
    CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
    CHECK( netcode_server_create_dual( "127.0.0.1:0", "x", &server, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
    TOLERATE( CHECK_EQ( netcode_parse_address( NULL, &address ), NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_parse_address( "1.2.3.4:5", NULL ), NETCODE_ERROR ) );
    TOLERATE( (void) netcode_address_to_string( NULL, text ) );
    TOLERATE( (void) netcode_address_to_string( &address, NULL ) );
    TOLERATE( CHECK_EQ( netcode_address_equal( NULL, &address ), 0 ) );
    TOLERATE( CHECK_EQ( netcode_address_equal( &address, NULL ), 0 ) );
}

TEST( good_addresses )
{
    static const char * const rows[][2] = { { "1.2.3.4:5", "1.2.3.4:5" },
                                            { "1.2.3.4", "1.2.3.4" },
                                            { "255.255.255.255:65535", "255.255.255.255:65535" },
                                            { "[::1]:5", "[::1]:5" },
                                            { "::1", "::1" },
                                            { "[2001:db8:0:0:0:0:0:9]:80", "[2001:db8::9]:80" },
                                            { "[::ffff:1.2.3.4]:7", "1.2.3.4:7" } };
    struct netcode_address_t a, b;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i;
    for ( i = 0; i < 7; i++ ) {
        REQUIRE_EQ( netcode_parse_address( rows[i][0], &a ), NETCODE_OK );
        CHECK( netcode_address_to_string( &a, text ) == text );
        CHECK_STR( text, rows[i][1] );
        REQUIRE_EQ( netcode_parse_address( text, &b ), NETCODE_OK );
        CHECK_EQ( netcode_address_equal( &a, &b ), 1 );
        b.port++;
        CHECK_EQ( netcode_address_equal( &a, &b ), 0 );
    }
    a = address_of( "[1:2:3:4:5:6:7:8]:9" );
    CHECK_EQ( a.data.ipv6[0], 1 );
    CHECK_EQ( a.data.ipv6[7], 8 );
    CHECK_EQ( a.port, 9 );
    memset( &a, 0, sizeof( a ) );
    CHECK_STR( netcode_address_to_string( &a, text ), "NONE" );
}

TEST( generating_tokens_with_bad_arguments )
{
    const char * good[33];
    const char * one_bad[2] = { "1.2.3.4:5", "nonsense" };
    const char * no_port[1] = { "1.2.3.4" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES] = { 0 };
    struct netcode_connect_token_info_t info;
    int i;
    for ( i = 0; i < 33; i++ )
        good[i] = "[1234:5678::9]:40000";
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 0, good, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( -1, good, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 33, good, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 2, one_bad, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 2, good, one_bad, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 1, no_port, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 1, NULL, good, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 1, good, NULL, 30, 5, 1, 2, world_key, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 1, good, good, 30, 5, 1, 2, NULL, user_data, token ),
                        NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 1, good, good, 30, 5, 1, 2, world_key, user_data, NULL ),
                        NETCODE_ERROR ) );
    CHECK_EQ( netcode_generate_connect_token( 32, good, good, 30, -1, 1, 2, world_key, NULL, token ), NETCODE_OK );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
    CHECK_STR( info.version, "NETCODE 1.02" );
    CHECK_EQ( info.num_server_addresses, 32 );
    CHECK_EQ( info.timeout_seconds, -1 );
    CHECK_EQ( info.protocol_id, 2 );
    CHECK_EQ( info.expire_timestamp - info.create_timestamp, 30 );
    CHECK_EQ( netcode_generate_connect_token( 1, good, good, -1, 7, 1, 2, world_key, NULL, token ), NETCODE_OK );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
    CHECK( info.expire_timestamp == UINT64_MAX );
    TOLERATE( CHECK_EQ( netcode_connect_token_info( NULL, &info ), NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_connect_token_info( token, NULL ), NETCODE_ERROR ) );
}

TEST( names_and_sentences_of_numbers )
{
    int i;
    CHECK_STR( netcode_client_state_name( NETCODE_CLIENT_STATE_CONNECTED ), "CONNECTED" );
    CHECK_STR( netcode_client_state_name( NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED ), "CONNECT_TOKEN_EXPIRED" );
    CHECK_STR( netcode_client_state_name( NETCODE_CLIENT_STATE_DISCONNECTED ), "DISCONNECTED" );
    CHECK_STR( netcode_client_state_name( 4 ), "UNKNOWN" );
    CHECK_STR( netcode_client_state_name( -7 ), "UNKNOWN" );
    for ( i = -1; i < 12; i++ ) {
        CHECK( netcode_client_create_error_text( i ) != NULL && netcode_client_create_error_text( i )[0] );
        CHECK( netcode_server_create_error_text( i ) != NULL && netcode_server_create_error_text( i )[0] );
    }
    CHECK_STR( netcode_version(), NETCODE_VERSION_FULL );
}

TEST( random_bytes_with_odd_sizes )
{
    uint8_t data[16] = { 0 }, zeros[16] = { 0 };
    TOLERATE( netcode_random_bytes( data, 0 ) );
    TOLERATE( netcode_random_bytes( data, -1 ) );
    TOLERATE( netcode_random_bytes( NULL, 4 ) );
    CHECK_MEM( data, zeros, 16 );
    netcode_random_bytes( data, 16 );
    CHECK( memcmp( data, zeros, 16 ) != 0 );
}

TEST( simulator_arguments )
{
    struct netcode_network_simulator_t * net = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_address_t address = address_of( "10.0.0.1:5" ), no_port = address_of( "10.0.0.1" );
    struct netcode_address_t other = address_of( "10.0.0.2:5" ), none;
    struct netcode_socket_t socket, second;
    REQUIRE( net != NULL );
    memset( &none, 0, sizeof( none ) );
    netcode_network_simulator_destroy( NULL );
    BAD( netcode_network_simulator_reset( NULL ) );
    BAD( netcode_network_simulator_update( NULL, 1.0 ) );
    BAD( CHECK_EQ( netcode_network_simulator_socket( NULL, &address, &socket ), NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_network_simulator_socket( net, NULL, &socket ), NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_network_simulator_socket( net, &address, NULL ), NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_network_simulator_socket( net, &no_port, &socket ), NETCODE_ERROR ) );
    CHECK_EQ( netcode_network_simulator_socket( net, &address, &socket ), NETCODE_OK );
    TOLERATE( CHECK_EQ( netcode_network_simulator_socket( net, &address, &second ),
                        NETCODE_ERROR ) ); /* one socket an address */
    BAD( CHECK_EQ( netcode_network_simulator_move( NULL, &address, &other, 0 ), NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_network_simulator_move( net, NULL, &other, 0 ), NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_network_simulator_move( net, &address, NULL, 0 ), NETCODE_ERROR ) );
    CHECK_EQ( netcode_network_simulator_move( net, &address, &no_port, 0 ), NETCODE_ERROR );
    CHECK_EQ( netcode_network_simulator_move( net, &address, &none, 1 ), NETCODE_ERROR );
    netcode_network_simulator_update( net, NOT_A_NUMBER );
    netcode_network_simulator_update( net, -1.0 );
    netcode_network_simulator_update( net, ENDLESS );
    socket.close( socket.context );
    CHECK_EQ( netcode_network_simulator_socket( net, &address, &socket ), NETCODE_OK );
    socket.close( socket.context );
    netcode_network_simulator_destroy( net );
}

#if !defined( _WIN32 )

/* Whatever was in it before. */
TEST( mutants_default_configs_are_written_whole )
{
    struct netcode_client_config_t client[2];
    struct netcode_server_config_t server[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        memset( &client[i], i ? 0xff : 0, sizeof( client[i] ) );
        memset( &server[i], i ? 0xff : 0, sizeof( server[i] ) );
        netcode_default_client_config( &client[i] );
        netcode_default_server_config( &server[i] );
    }
    CHECK_MEM( &client[0], &client[1], sizeof( client[0] ) );
    CHECK_MEM( &server[0], &server[1], sizeof( server[0] ) );
    CHECK( client[0].allocate_function != NULL && client[0].free_function != NULL );
    CHECK( server[0].allocate_function != NULL && server[0].free_function != NULL );
}

/* No config is the default one. */
TEST( objects_without_a_config )
{
#if !defined( NETCODE_NO_SOCKETS )
    netcode_log_level( NETCODE_LOG_LEVEL_NONE ); /* a server with a private key of zeros says so */
    struct netcode_server_t * server = netcode_server_create( "127.0.0.1:0", NULL, 0.0 );
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:0", NULL, 0.0 );
    REQUIRE( server && client );
    CHECK_EQ( netcode_server_start( server, 1 ), NETCODE_OK );
    CHECK_EQ( client->config.next_server_seconds == 0.25, 1 );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
#else
    SKIP( "no sockets" );
#endif
}

/* What a refused call says, to the object's own log: the function that was called, and what it wants. */
TEST( refusals_reach_the_objects_log )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
    uint8_t data[8] = { 0 };
    world_add_server( w, 2 );
    world_add_client( w );
    struct netcode_server_t * s = w->servers[0];
    struct netcode_client_t * c = w->clients[0];
    TOLERATE( netcode_client_send_packet( c, data, 1201 ) );
    CHECK_EQ( logged_times(
                  "netcode_client_send_packet failed: requires 1 to 1200 bytes, not 1201 (0 refusals before)" ),
              1 );
    TOLERATE( netcode_server_client_id( s, -1 ) );
    CHECK_EQ( logged_times(
                  "netcode_server_client_id failed: requires a slot of 0 or more, not -1 (0 refusals before)" ),
              1 );
    test_allow_refusals();
    TOLERATE( netcode_server_free_packet( s, data ) );
    CHECK_EQ( logged_times( "netcode_server_free_packet failed: requires a packet of this server, freed once" ), 1 );
    test_allow_refusals();
    TOLERATE( CHECK_EQ( netcode_server_start( s, 0 ), NETCODE_ERROR ) );
    CHECK_EQ( logged_times( "netcode_server_start failed: requires max_clients >= 1" ), 1 );
    for ( int i = 0; i < 5; i++ ) /* the others of a second are counted */
        TOLERATE( netcode_client_send_packet( c, NULL, 8 ) );
    for ( int i = 0; i < 110; i++ )
        world_step( w );
    TOLERATE( netcode_client_send_packet( c, NULL, 8 ) );
    CHECK_EQ( logged_times( "netcode_client_send_packet failed: requires data != NULL (4 refusals before)" ), 1 );
}

TEST( mutants_the_first_address_may_not_be_missing )
{
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    REFUSED( CHECK( netcode_client_create_dual( NULL, "::1", &client, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    REFUSED( CHECK( netcode_server_create_dual( NULL, "[::1]:40000", &server, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
}

TEST( mutants_public_addresses_that_can_not_be )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct netcode_server_config_t config = w->server_config;
    const char * names[NETCODE_MAX_PUBLIC_ADDRESSES + 1];
    int i;
    for ( i = 0; i <= NETCODE_MAX_PUBLIC_ADDRESSES; i++ )
        names[i] = "10.8.0.1:40000";
    config.network_simulator = w->net;
    config.callback_context = &w->server_parties[0];
    config.public_addresses = names;
    config.num_public_addresses = NETCODE_MAX_PUBLIC_ADDRESSES + 1;
    REFUSED( CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.num_public_addresses = 2;
    names[1] = NULL;
    CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.public_addresses = NULL;
    CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
}

#endif

TEST( corners_the_rest_without_a_log )
{
    static const char * list[] = { "10.0.0.1:1" };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_server_t * s = w->servers[0];
    struct netcode_connect_token_info_t info;
    struct netcode_address_t address = address_of( "10.0.0.9:1" );
    struct netcode_server_stats_t stats;
    struct netcode_socket_t socket;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], zeros[NETCODE_CONNECT_TOKEN_BYTES] = { 0 }, data[10] = { 0 };
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int bytes;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    SILENT( netcode_random_bytes( NULL, 4 ) );
    SILENT( CHECK_EQ( netcode_parse_address( NULL, &address ), NETCODE_ERROR ) );
    SILENT( CHECK_EQ( netcode_parse_address( "1.2.3.4", NULL ), NETCODE_ERROR ) );
    SILENT( CHECK( netcode_address_to_string( &address, NULL ) == NULL ) );
    SILENT( CHECK( netcode_address_to_string( NULL, text ) == text ) );
    SILENT( CHECK_EQ( netcode_address_equal( &address, NULL ), 0 ) );
    SILENT( CHECK_EQ( netcode_generate_connect_token( 0, list, list, 1, 1, 1, 1, world_key, NULL, token ), -1 + 1 ) );
    SILENT( CHECK_EQ( netcode_generate_connect_token( 1, NULL, list, 1, 1, 1, 1, world_key, NULL, token ), -1 + 1 ) );
    SILENT( CHECK_EQ( netcode_generate_connect_token( 1, list, list, 1, 1, 1, 1, NULL, NULL, token ), -1 + 1 ) );
    SILENT( CHECK_EQ( netcode_connect_token_info( NULL, &info ), NETCODE_ERROR ) );
    SILENT( netcode_network_simulator_reset( NULL ) );
    SILENT( netcode_network_simulator_update( NULL, 1.0 ) );
    SILENT( CHECK_EQ( netcode_network_simulator_socket( NULL, &address, &socket ), NETCODE_ERROR ) );
    SILENT( CHECK_EQ( netcode_network_simulator_move( NULL, &address, &address, 0 ), NETCODE_ERROR ) );
    SILENT( netcode_client_connect_loopback( w->clients[0], 0, 0 ) );
    SILENT( CHECK_EQ( netcode_server_client_disconnect_reason( s, 2 ), 0 ) );
    SILENT( CHECK( netcode_server_receive_packet( s, 2, &bytes, NULL ) == NULL ) );
    SILENT( CHECK( netcode_server_client_address( s, 2 ) == NULL ) );
    SILENT( netcode_server_send_packet( s, 0, data, 0 ) );
    SILENT( netcode_client_free_packet( w->clients[0], data ) );
    SILENT( netcode_server_free_packet( s, data ) );
    SILENT( netcode_server_stats( s, NULL ) );
    SILENT( netcode_server_client_stats( s, 0, NULL ) );
    SILENT( netcode_client_connect( w->clients[0], zeros ) );
    w->allocator.fail_at = w->allocator.calls + 1;
    SILENT( netcode_server_start( s, 9 ) );
    CHECK_EQ( netcode_server_running( s ), 0 );
    netcode_server_stats( s, &stats );
    CHECK_EQ( stats.connects, 0 );
    netcode_term();
    SILENT( netcode_term() );
    CHECK_EQ( netcode_init(), NETCODE_OK );
}

/* A hook of NULL is the one that was there at first. */
TEST( corners_hooks_of_null )
{
    netcode_set_printf_function( NULL );
    CHECK( nc_printf_function == printf );
    netcode_set_printf_function( test_printf );
    netcode_set_assert_function( NULL );
    netcode_set_assert_function( test_assert_handler );
}

/* A packet is given back once, to the object that it came from, also where its pool is an older one or none is there. */
TEST( corners_packets_freed_wrongly )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t *a, *b, other[64] = { 0 };
    int bytes;
    REQUIRE( world_join( w, 0, 1 ) );
    client_send( w, 0, 10, 1 );
    client_send( w, 0, 10, 2 );
    server_send( w, 0, 0, 10, 3 );
    world_run( w, 0.2 );
    a = netcode_client_receive_packet( w->clients[0], &bytes, NULL );
    REQUIRE( a != NULL );
    netcode_client_free_packet( w->clients[0], a );
    BAD( netcode_client_free_packet( w->clients[0], a ) );
    BAD( netcode_client_free_packet( w->clients[0], other ) );
    a = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
    b = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
    REQUIRE( a != NULL && b != NULL );
    netcode_server_free_packet( w->servers[0], a );
    BAD( netcode_server_free_packet( w->servers[0], a ) );
    netcode_server_start( w->servers[0], 3 ); /* the pool of `b` is an older one now */
    BAD( netcode_server_free_packet( w->servers[0], a ) );
    BAD( netcode_server_free_packet( w->servers[0], other ) );
    netcode_server_free_packet( w->servers[0], b );
    BAD( netcode_server_free_packet( w->servers[0], b ) );
    world_make_server( w, 1 );
    w->server_count = 2;
    BAD( netcode_server_free_packet( w->servers[1], other ) ); /* never started: it has no pool */
}

/* Creates that can not be, each for another reason, before anything is opened. */
TEST( corners_servers_that_can_not_be )
{
    static const char * const nonsense[] = { "10.0.0.1:1", "nonsense" };
    struct netcode_server_config_t config;
    struct netcode_client_config_t client;
    netcode_default_server_config( &config );
    netcode_default_client_config( &client );
    CHECK( netcode_server_create_dual( "127.0.0.1:0", "127.0.0.2:0", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
    config.public_addresses = nonsense;
    config.num_public_addresses = 2;
    CHECK( netcode_server_create( "127.0.0.1:0", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.num_public_addresses = 0;
    config.bind_address = "nonsense";
    CHECK( netcode_server_create( "127.0.0.1:0", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.bind_address = "127.0.0.1:0";
    config.bind_address2 = "127.0.0.1:0";
    CHECK( netcode_server_create_dual( "127.0.0.1:0", "[::1]:0", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
}

/* The commonest mistake of a first server is logged; simulated time is not waited for while it is stopped. */
TEST( corners_a_server_of_the_wildcard )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_server_config_t config = w->server_config;
    struct netcode_server_t * server;
    config.network_simulator = w->net;
    config.callback_context = &w->server_parties[0];
    w->server_parties[0].world = w;
    server = netcode_server_create( "0.0.0.0:40000", &config, w->time );
    REQUIRE( server != NULL );
    CHECK_EQ( w->server_parties[0].lines, 1 );
    netcode_server_wait( server, 1000.0 );
    netcode_server_destroy( server );
    const char * public_address = "203.0.113.5:40000";
    config.public_addresses = &public_address;
    config.num_public_addresses = 1;
    server = netcode_server_create( "0.0.0.0:40000", &config, w->time ); /* this one has an address for tokens */
    CHECK_EQ( w->server_parties[0].lines, 1 );
    netcode_server_destroy( server );
    config.num_public_addresses = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    server = netcode_server_create( "0.0.0.0:40000", &config, w->time );
    CHECK_EQ( w->server_parties[0].lines, 1 );
    netcode_server_destroy( server );
}
