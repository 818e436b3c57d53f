/*  Story: the edges of the public functions: indices past the end, addresses that are not there, loopback without a
    callback, what the log says of it. */

/* Every line that the objects of this file's worlds logged. */
static char edges_lines[1 << 16];

static void edges_log( void * context, int level, const char * text )
{
    size_t at = strlen( edges_lines );
    (void) context;
    (void) level;
    test_log_lines++;
    if ( at + strlen( text ) + 2 < sizeof( edges_lines ) )
        snprintf( edges_lines + at, sizeof( edges_lines ) - at, "%s\n", text );
}

/* How often the log says this. */
static int edges_said( const char * text )
{
    int count = 0;
    for ( const char * at = edges_lines; ( at = strstr( at, text ) ) != NULL; at++ )
        count++;
    return count;
}

static struct world_t * edges_world( int level )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.log_callback = w->client_config.log_callback = edges_log;
    edges_lines[0] = 0;
    netcode_log_level( level );
    return w;
}

/* Nothing is known of such a slot, and nothing is wrong with asking. */
static void edges_ask( struct netcode_server_t * s, int slot )
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
        edges_ask( w->servers[0], slots[i] );
    netcode_server_stop( w->servers[0] );
    for ( int i = 0; i < 4; i++ )
        edges_ask( w->servers[0], slots[i] );
    world_make_server( w, ++w->server_count - 1 ); /* never started */
    for ( int i = 0; i < 256; i++ )
        edges_ask( w->servers[1], i );
}

/* Who does something to a slot that is not there makes a mistake, perhaps on every tick: it is said once a second. */
TEST( acting_on_slots_past_the_last_one_is_logged_once_a_second )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
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
    CHECK_EQ( edges_said( "a call for slot " ), 3 );
    CHECK_EQ( edges_said( "a call for slot 2 was refused: it has 2 slots (and 0 calls before it)" ), 1 );
    CHECK_EQ( edges_said( "was refused: it has 2 slots (and 599 calls before it)" ), 2 );
    netcode_server_stop( s ); /* nothing is there, and nothing is said */
    netcode_server_send_packet( s, 2, data, 10 );
    netcode_server_disconnect_client( s, 2 );
    CHECK_EQ( edges_said( "a call for slot " ), 3 );
}

/* NULL or nothing for the second address: one address, as in the known API. */
TEST( a_dual_object_without_its_second_address_has_one )
{
    static const char * const seconds[] = { NULL, "" };
    for ( int i = 0; i < 2; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct netcode_client_config_t client_config = w->client_config;
        struct netcode_server_config_t server_config = w->server_config;
        client_config.callback_context = &w->client_parties[0];
        server_config.callback_context = &w->server_parties[0];
        client_config.network_simulator = server_config.network_simulator = w->net;
        struct netcode_client_t * c =
            netcode_client_create_dual( "10.2.0.1:50000", seconds[i], &client_config, w->time );
        struct netcode_server_t * s =
            netcode_server_create_dual( "10.2.0.2:40000", seconds[i], &server_config, w->time );
        REQUIRE( c != NULL && s != NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_client_get_port( c ), 50000 );
        CHECK_EQ( netcode_server_get_port( s ), 40000 );
        netcode_client_destroy( c );
        netcode_server_destroy( s );
        BAD( CHECK( netcode_client_create_dual( NULL, "10.2.0.1:1", &client_config, w->time ) == NULL ) );
        BAD( CHECK( netcode_server_create_dual( NULL, "10.2.0.1:1", &server_config, w->time ) == NULL ) );
        world_close( w );
    }
}

/* A player's token is read only: it may lie in constant memory. */
TEST( a_constant_token_connects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    mint( &r, w->tokens[0] );
    const uint8_t * token = w->tokens[0];
    void ( *connect )( struct netcode_client_t *, const uint8_t * ) = netcode_client_connect;
    connect( w->clients[0], token );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

/* Without a callback a loopback client is there all the same; what is sent to it or by it goes nowhere, said once. */
TEST( loopback_without_a_callback )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    w->client_config.send_loopback_packet_callback = NULL;
    w->server_config.send_loopback_packet_callback = NULL;
    world_add_server( w, 4 );
    world_add_client( w );
    netcode_client_connect_loopback( w->clients[0], 1, 4 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 7, NULL );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 1 ), 1 );
    CHECK_EQ( test_state.failures, 0 );
    for ( int i = 0; i < 3; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 1, 10, i );
        netcode_server_broadcast( w->servers[0], (const uint8_t *) "x", 1, -1 );
    }
    CHECK_EQ( edges_said( "client: loopback payloads go nowhere" ), 1 );
    CHECK_EQ( edges_said( "server: loopback payloads go nowhere" ), 1 );
    netcode_client_process_loopback_packet( w->clients[0], (const uint8_t *) "x", 1, 1 );
    netcode_server_process_loopback_packet( w->servers[0], 1, (const uint8_t *) "x", 1, 1 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( server_drain( w, 0, 1 ), 1 );
    CHECK_EQ( server_stats( w, 0 ).clients, 1 );
}

/* Each refusal of a loopback client says which it is. */
TEST( refused_loopback_clients_are_told_why )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    world_add_server( w, 4 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 7, NULL );
    netcode_server_connect_loopback_client( w->servers[0], 2, 7, NULL );
    CHECK_EQ( edges_said( "no loopback client 7 in slot 2: a client with this id is connected" ), 1 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 8, NULL );
    CHECK_EQ( edges_said( "no loopback client 8 in slot 1: the slot is taken" ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( edges_said( "\n" ), 2 );
}
