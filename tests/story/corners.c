/*  Story: corners. What no other story comes by: calls whose mistakes nobody logs, callbacks that do the rarest things,
    configs with one odd field. make coverage shows what is left. Run: runner corners.c */

/* A mistake of the caller while the log is off: refused without a line. */
#define SILENT( call )                                               \
    do {                                                             \
        int lines_before = test_log_lines;                           \
        test_state.expecting = 1;                                    \
        call;                                                        \
        test_state.expecting = 0;                                    \
        if ( test_log_lines != lines_before )                        \
            test_fail( __FILE__, __LINE__, "%s was logged", #call ); \
    } while ( 0 )

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

/* A filter that the system refuses changes nothing, and nobody has to hear of it. */
TEST( corners_filter_refused_without_a_log )
{
#if !defined( _WIN32 ) && LINUX_WRAPPED
    struct netcode_server_config_t config;
    struct netcode_server_t * server;
    netcode_default_server_config( &config );
    config.bind_address = "127.0.0.1:0";
    config.kernel_filter = 1;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    linux_system.refused_level = SOL_SOCKET;
    linux_system.refused_option = SO_ATTACH_FILTER;
    SILENT( server = netcode_server_create( "127.0.0.1:0", &config, 0.0 ) );
    linux_reset();
    CHECK( server != NULL );
    netcode_server_destroy( server );
#endif
}

/* A socket that can not wait: the library sleeps a millisecond in its place. */
TEST( corners_wait_without_a_wait )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    netcode_client_wait( w->clients[0], 0.002 );
    netcode_client_wait( w->clients[0], 0.0005 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
}

/* A hook of NULL is the one that was there at first. */
TEST( corners_hooks_of_null )
{
    netcode_set_printf_function( NULL );
    netcode_set_printf_function( test_printf );
    netcode_set_assert_function( NULL );
    netcode_set_assert_function( test_assert_handler );
}

/* Over a simulator or the override callbacks no socket is opened, so none is counted. */
TEST( corners_memory_of_each_transport )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_client_config_t client = w->client_config;
    struct netcode_server_config_t server = w->server_config;
    size_t client_bytes = netcode_client_memory( &client ), server_bytes = netcode_server_memory( &server, 4 );
    client.override_send_and_receive = server.override_send_and_receive = 1;
    CHECK_EQ( client_bytes - netcode_client_memory( &client ), nc_socket_udp_memory() );
    CHECK_EQ( server_bytes - netcode_server_memory( &server, 4 ), nc_socket_udp_memory() );
    client.override_send_and_receive = server.override_send_and_receive = 0;
    client.network_simulator = server.network_simulator = w->net;
    CHECK_EQ( client_bytes - netcode_client_memory( &client ), nc_socket_udp_memory() );
    CHECK_EQ( server_bytes - netcode_server_memory( &server, 4 ), nc_socket_udp_memory() );
    server.consumed_tokens = 1; /* two are the fewest: one of each kind */
    server_bytes = netcode_server_memory( &server, 4 );
    server.consumed_tokens = 2;
    CHECK_EQ( netcode_server_memory( &server, 4 ), server_bytes );
    BAD( CHECK_EQ( netcode_server_memory( &server, 0 ), 0 ) );
    BAD( CHECK_EQ( netcode_server_memory( &server, NETCODE_MAX_SLOTS + 1 ), 0 ) );
}

static int corners_loopback_packets;

static void corners_count_loopback( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                                    uint64_t sequence )
{
    (void) party;
    (void) client_index;
    (void) data;
    (void) bytes;
    (void) sequence;
    corners_loopback_packets++;
}

/* Loopback with each argument out of its range, without a callback, and beyond its quota. */
TEST( corners_loopback )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t data[NETCODE_MAX_PACKET_SIZE + 1] = { 0 };
    int i;
    w->client_config.send_loopback_packet_callback = NULL;
    w->server_config.send_loopback_packet_callback = NULL;
    world_add_server( w, 2 );
    world_add_client( w );
    netcode_client_connect_loopback( w->clients[0], 0, 1 );
    REFUSED( netcode_client_connect_loopback( w->clients[0], 0, 1 ) );
    netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    REFUSED( netcode_server_connect_loopback_client( w->servers[0], 0, 2, NULL ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    w->client_config.send_loopback_packet_callback = world_loopback_callback;
    w->server_config.send_loopback_packet_callback = world_loopback_callback;
    world_add_server( w, 2 );
    world_add_client( w );
    w->client_parties[1].on_loopback = corners_count_loopback;
    BAD( netcode_client_connect_loopback( w->clients[1], -1, 1 ) );
    BAD( netcode_client_connect_loopback( w->clients[1], 1, 1 ) );
    netcode_client_connect_loopback( w->clients[1], 0, 1 );
    BAD( netcode_client_process_loopback_packet( w->clients[1], NULL, 1, 1 ) );
    BAD( netcode_client_process_loopback_packet( w->clients[1], data, 0, 1 ) );
    BAD( netcode_client_process_loopback_packet( w->clients[1], data, NETCODE_MAX_PACKET_SIZE + 1, 1 ) );
    netcode_server_connect_loopback_client( w->servers[1], 0, 1, NULL );
    BAD( netcode_server_process_loopback_packet( w->servers[1], 0, NULL, 1, 1 ) );
    BAD( netcode_server_process_loopback_packet( w->servers[1], 0, data, 0, 1 ) );
    BAD( netcode_server_process_loopback_packet( w->servers[1], 0, data, NETCODE_MAX_PACKET_SIZE + 1, 1 ) );
    for ( i = 0; i < 300; i++ ) {
        netcode_client_process_loopback_packet( w->clients[1], data, 10, (uint64_t) i );
        netcode_server_process_loopback_packet( w->servers[1], 0, data, 10, (uint64_t) i );
    }
    CHECK_EQ( client_drops( w, 1, NETCODE_DROP_QUEUE_FULL ) + client_drops( w, 1, NETCODE_DROP_POOL_EMPTY ),
              300 - client_drain( w, 1 ) );
    CHECK_EQ( server_drops( w, 1, NETCODE_DROP_QUEUE_FULL ) + server_drops( w, 1, NETCODE_DROP_POOL_EMPTY ),
              300 - server_drain( w, 1, 0 ) );
    CHECK_GT( server_drops( w, 1, NETCODE_DROP_QUEUE_FULL ) + server_drops( w, 1, NETCODE_DROP_POOL_EMPTY ), 0 );
    netcode_server_stop( w->servers[1] );
    BAD( netcode_server_connect_loopback_client( w->servers[1], 0, 1, NULL ) );
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

/* ---- callbacks that do the rarest things ---- */

static void corners_destroy_twice( struct world_party_t * party, int client_index, int connected )
{
    struct world_t * w = party->world;
    (void) client_index;
    if ( connected )
        return;
    netcode_server_destroy( w->servers[party->index] );
    netcode_server_destroy( w->servers[party->index] );
}

TEST( corners_destroyed_twice_in_a_callback )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    w->server_parties[0].on_change = corners_destroy_twice;
    netcode_server_disconnect_loopback_client( w->servers[0], 0 );
    w->servers[0] = NULL;
    CHECK_EQ( w->allocator.live, 0 );
}

/* The first who leaves makes it start again, and the one who leaves because of that makes it end. */
static void corners_start_then_destroy( struct world_party_t * party, int client_index, int connected )
{
    struct world_t * w = party->world;
    if ( connected )
        return;
    if ( client_index == 0 )
        netcode_server_start( w->servers[party->index], 5 );
    else
        netcode_server_destroy( w->servers[party->index] );
}

TEST( corners_destroyed_by_the_start_that_a_callback_wanted )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    netcode_server_connect_loopback_client( w->servers[0], 1, 2, NULL );
    w->server_parties[0].on_change = corners_start_then_destroy;
    netcode_server_disconnect_loopback_client( w->servers[0], 0 );
    w->servers[0] = NULL;
    CHECK_EQ( w->allocator.live, 0 );
}

/* A slot that is being emptied is not free yet: the newer session gets it, and not the callback's loopback client. */
static void corners_take_the_slot( struct world_party_t * party, int client_index, int connected )
{
    if ( !connected )
        netcode_server_connect_loopback_client( party->world->servers[party->index], client_index, 999, NULL );
}

TEST( corners_the_callback_takes_the_slot_of_a_newer_session )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 1 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    w->server_parties[0].on_change = corners_take_the_slot;
    puppet_make( &p, w, 0, 1, "10.2.0.2:6000" );
    p.r.expire += 5;
    puppet_mint( &p );
    REQUIRE( puppet_challenged( &p ) );
    puppet_respond( &p );
    puppet_step( &p );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 1 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 0 );
    CHECK_EQ( w->server_parties[0].lines, 1 ); /* its wish was refused */
    w->server_parties[0].on_change = NULL;
}

/* ---- one odd thing each ---- */

TEST( corners_a_loopback_client_is_not_replaced )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 5, NULL );
    puppet_make( &p, w, 0, 5, "10.2.0.1:6000" );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 1 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
}

/* Notes of attempts that failed give way to newer ones; a payload among them stays. */
TEST( corners_a_payload_outlives_failed_attempts )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t broken[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    server_send( w, 0, 0, 10, 1 );
    world_run( w, 0.2 );
    for ( i = 0; i < 1000; i++ )
        netcode_client_connect( w->clients[0], broken );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

static int corners_deaf_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    (void) count;
    return 0;
}

/* Says that it filled more places than there are. */
static int corners_boasting_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    memset( &datagrams[0].address, 0, sizeof( datagrams[0].address ) );
    datagrams[0].bytes = 0;
    return count + 5;
}

TEST( corners_a_socket_that_sends_nothing_and_boasts )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_client_config_t config;
    struct netcode_client_report_t report;
    struct netcode_socket_t socket;
    struct recipe_t r = recipe_for( w, 1 );
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_t * client;
    memset( &socket, 0, sizeof( socket ) );
    socket.send = corners_deaf_send;
    socket.receive = corners_boasting_receive;
    netcode_default_client_config( &config );
    config.socket = &socket;
    config.unix_time = NULL;
    r.create = (uint64_t) time( NULL );
    r.expire = r.create + 300;
    client = netcode_client_create( "10.1.0.1:50000", &config, 0.0 );
    REQUIRE( client != NULL );
    mint( &r, token );
    netcode_client_connect( client, token );
    netcode_client_update( client, 1.0 );
    netcode_client_report( client, &report );
    CHECK( strstr( report.text, "refuses" ) != NULL );
    netcode_client_disconnect( client );
    netcode_client_destroy( client );
}

/* A client of a link-local address reaches servers of its own link: tokens do not say which interface that is. */
TEST( corners_link_local )
{
    static const char * const clients[] = { "[fe80::1%7]:5000", "[2001:db8::1]:5000" };
    int i;
    for ( i = 0; i < 2; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 0 );
        struct netcode_client_config_t config = w->client_config;
        struct recipe_t r = recipe_for( w, 1 );
        uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
        struct netcode_client_t * client;
        r.public_addresses[0] = r.private_addresses[0] = address_of( "[fe80::2]:4000" );
        config.network_simulator = w->net;
        config.callback_context = &w->client_parties[0];
        w->client_parties[0].world = w;
        client = netcode_client_create( clients[i], &config, w->time );
        REQUIRE( client != NULL );
        mint( &r, token );
        netcode_client_connect( client, token );
        netcode_client_update( client, w->time );
        CHECK_EQ( netcode_client_server_address( client )->data.ipv6[1], i == 0 ? 7 : 0 );
        netcode_client_destroy( client );
    }
}

/* Nobody hears of what is dropped but the log. */
TEST( corners_drops_without_a_callback )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t data[30] = { 0x15 };
    int lines;
    w->server_config.drop_callback = NULL;
    world_make_server( w, 0 );
    netcode_server_start( w->servers[0], 2 );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    lines = test_log_lines;
    netcode_server_process_packet( w->servers[0], &w->server_addresses[0], data, 30 );
    CHECK_EQ( test_log_lines, lines + 1 );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    netcode_server_process_packet( w->servers[0], &w->server_addresses[0], data, 30 );
    CHECK_EQ( test_log_lines, lines + 1 );
    netcode_server_destroy( w->servers[0] );
    w->servers[0] = NULL;
}

/* A token for another server: the log names both, whether each has one name or more. */
TEST( corners_wrong_servers_in_the_log )
{
    static const char * const names[] = { "10.9.9.9:9" };
    int many;
    for ( many = 0; many < 2; many++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        w->server_config.public_addresses = names;
        w->server_config.num_public_addresses = many;
        world_add_server( w, 2 );
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r.private_count = 1 + many;
        p.r.private_addresses[0] = address_of( "10.8.8.8:8" );
        p.r.private_addresses[1] = address_of( "10.8.8.9:8" );
        puppet_mint( &p );
        netcode_log_level( NETCODE_LOG_LEVEL_INFO );
        CHECK( !puppet_challenged( &p ) );
        CHECK( strstr( w->server_parties[0].line, "10.8.8.8:8" ) != NULL );
        CHECK_EQ( strstr( w->server_parties[0].line, "others" ) != NULL, many );
        CHECK_EQ( strstr( w->server_parties[0].line, "other names" ) != NULL, many );
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    }
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
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    server = netcode_server_create( "0.0.0.0:40000", &config, w->time );
    CHECK_EQ( w->server_parties[0].lines, 1 );
    netcode_server_destroy( server );
}
