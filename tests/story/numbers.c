/*  Story: numbers at the edge, in every field of a config and every argument of a function. Threat 68 */

static const int edge_numbers[] = { (int) 0x80000000, -1, 0, 1, 0x3fffffff, 0x40000000, 0x7fffffff };
enum { EDGE_NUMBERS = sizeof( edge_numbers ) / sizeof( edge_numbers[0] ) };

/* Memory as on a small machine: what is larger than 64 MiB is not there. */
static void * numbers_allocate( void * context, size_t bytes )
{
    return bytes > ( (size_t) 64 << 20 ) ? NULL : allocator_allocate( context, bytes );
}

/* Every int but override_send_and_receive, a flag that is refused by name where its callbacks are missing. */
#define EDGE_FIELD( type, field )                                   \
    {                                                               \
#field, offsetof( struct netcode_##type##_config_t, field ) \
    }

static const struct {
    const char * name;
    size_t offset;
} numbers_client_fields[] = { EDGE_FIELD( client, sequence_base ),    EDGE_FIELD( client, packet_pool_buffers ),
                              EDGE_FIELD( client, packet_quota ),     EDGE_FIELD( client, update_budget ),
                              EDGE_FIELD( client, batch_sends ),      EDGE_FIELD( client, receive_buffer_bytes ),
                              EDGE_FIELD( client, send_buffer_bytes ) },
  numbers_server_fields[] = { EDGE_FIELD( server, max_connect_token_lifetime ),
                              EDGE_FIELD( server, sequence_base ),
                              EDGE_FIELD( server, packet_pool_buffers ),
                              EDGE_FIELD( server, packet_quota ),
                              EDGE_FIELD( server, batch_sends ),
                              EDGE_FIELD( server, receive_buffer_bytes ),
                              EDGE_FIELD( server, send_buffer_bytes ),
                              EDGE_FIELD( server, num_public_addresses ),
                              EDGE_FIELD( server, replace_existing_clients ),
                              EDGE_FIELD( server, pending_handshakes ),
                              EDGE_FIELD( server, consumed_tokens ),
                              EDGE_FIELD( server, kernel_filter ),
                              EDGE_FIELD( server, share_port ) };

/* A client that could be made connects, and a payload goes each way; one that could not says why. */
static void numbers_talk( struct world_t * w, struct netcode_client_t * c, struct netcode_server_t * s )
{
    if ( !c || !s || !netcode_server_running( s ) )
        return;
    struct recipe_t r = recipe_for( w, 1 );
    r.expire = FOREVER;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
    world_run( w, 0.2 );
    client_send( w, 0, 100, 1 );
    server_send( w, 0, 0, 100, 2 );
    netcode_client_flush( c );
    netcode_server_flush( s );
    world_run( w, 0.2 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

static void numbers_client_field( size_t offset, int number )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.allocate_function = numbers_allocate;
    world_add_server( w, 2 );
    memcpy( (char *) &w->client_config + offset, &number, sizeof( int ) );
    if ( netcode_client_memory( &w->client_config ) > ( (size_t) 64 << 20 ) ) {
        struct netcode_client_config_t config = w->client_config;
        config.network_simulator = w->net;
        config.callback_context = &w->client_parties[0];
        CHECK( netcode_client_create( "10.9.0.1:1", &config, w->time ) == NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED );
        world_close( w );
        return;
    }
    world_add_client( w );
    numbers_talk( w, w->clients[0], w->servers[0] );
    world_close( w );
}

static void numbers_server_field( size_t offset, int number )
{
    struct world_t * w = world_new( CLEAN );
    size_t bytes;
    w->server_config.allocate_function = numbers_allocate;
    w->server_config.callback_context = &w->server_parties[0];
    memcpy( (char *) &w->server_config + offset, &number, sizeof( int ) );
    bytes = netcode_server_memory( &w->server_config, 1 );
    CHECK_GT( bytes, 100000 );
    CHECK( bytes <= netcode_server_memory( &w->server_config, NETCODE_MAX_SLOTS ) );
    if ( offset == offsetof( struct netcode_server_config_t, num_public_addresses ) && number > 0 ) {
        CHECK( netcode_server_create( "10.0.0.1:40000", &w->server_config, w->time ) == NULL );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
        world_close( w );
        return;
    }
    world_make_server( w, w->server_count++ );
    world_add_client( w );
    netcode_server_start( w->servers[0], 2 );
    CHECK( netcode_server_running( w->servers[0] ) || bytes > ( (size_t) 64 << 20 ) );
    numbers_talk( w, w->clients[0], w->servers[0] );
    world_close( w );
}

TEST( threat_68_numbers_at_the_edge_in_configs )
{
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    for ( int i = 0; i < EDGE_NUMBERS; i++ ) {
        for ( size_t k = 0; k < sizeof( numbers_client_fields ) / sizeof( numbers_client_fields[0] ); k++ ) {
            int before = test_state.failures;
            numbers_client_field( numbers_client_fields[k].offset, edge_numbers[i] );
            if ( test_state.failures != before )
                printf( "    client: %s = %d\n", numbers_client_fields[k].name, edge_numbers[i] );
        }
        for ( size_t k = 0; k < sizeof( numbers_server_fields ) / sizeof( numbers_server_fields[0] ); k++ ) {
            int before = test_state.failures;
            numbers_server_field( numbers_server_fields[k].offset, edge_numbers[i] );
            if ( test_state.failures != before )
                printf( "    server: %s = %d\n", numbers_server_fields[k].name, edge_numbers[i] );
        }
    }
}

/* Every field of the simulator, its times too. */
TEST( threat_68_numbers_at_the_edge_in_the_simulator )
{
    static const float numbers[] = { -1.0f, 0.0f, 1.0f, 99.9f, 100.0f, 1e9f, 3.4e38f, -3.4e38f };
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    for ( int field = 0; field < 5; field++ )
        for ( int i = 0; i < 8 + 3; i++ ) {
            struct world_t * w = world_open( CLEAN, 1, 2, 1 );
            struct netcode_socket_t a, b;
            struct netcode_address_t to = address_of( "10.9.0.2:2" ), from = address_of( "10.9.0.1:1" );
            uint8_t data[8] = { 1 }, in[8];
            struct netcode_datagram_t out = { to, data, 8, 8, 0, 0 }, place = { to, in, 0, 8, 0, 0 };
            float * fields[] = { &w->net->latency_milliseconds, &w->net->jitter_milliseconds,
                                 &w->net->packet_loss_percent, &w->net->duplicate_packet_percent,
                                 &w->net->reorder_packet_percent };
            int copies = 0;
            *fields[field] = i < 8    ? numbers[i]
                             : i == 8 ? (float) NOT_A_NUMBER
                             : i == 9 ? (float) ENDLESS
                                      : (float) -ENDLESS;
            REQUIRE_EQ( netcode_network_simulator_socket( w->net, &from, &a ), NETCODE_OK );
            REQUIRE_EQ( netcode_network_simulator_socket( w->net, &to, &b ), NETCODE_OK );
            for ( int k = 0; k < 50; k++ )
                CHECK_EQ( a.send( a.context, &out, 1 ), 1 );
            netcode_network_simulator_update( w->net, w->time + 1e6 );
            while ( b.receive( b.context, &place, 1 ) == 1 )
                copies++;
            CHECK_GE( copies, 0 );
            CHECK_LE( copies, 100 );
            if ( field == 2 && i < 2 ) /* at or below no loss, nothing is lost */
                CHECK_EQ( copies, 50 );
            netcode_network_simulator_reset( w->net );
            a.close( a.context );
            b.close( b.context );
            world_close( w );
        }
}

/* Every number that a function of client or server takes. What is a mistake is refused; nothing else happens. */
TEST( threat_68_numbers_at_the_edge_in_arguments )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    struct netcode_client_t * c = w->clients[0];
    struct netcode_server_t * s = w->servers[0];
    struct netcode_address_t odd = w->client_addresses[1];
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    static uint8_t data[NETCODE_MAX_PACKET_SIZE + 1];
    const char * names[1] = { "10.0.0.1:40000" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    test_state.expecting = 1;
    for ( int i = 0; i < EDGE_NUMBERS; i++ ) {
        int n = edge_numbers[i], bad_size = n == 1 ? 0 : n,
            small = n > NETCODE_MAX_PACKET_SIZE ? NETCODE_MAX_PACKET_SIZE + 1 : n;
        netcode_client_send_packet( c, data, bad_size );
        netcode_server_send_packet( s, 0, data, bad_size );
        netcode_server_send_packet( s, n == 0 ? 1 : n, data, 10 );
        netcode_server_send_packet_to_session( s, n, UINT64_MAX, data, 10 );
        netcode_server_broadcast( s, data, bad_size, n );
        netcode_server_disconnect_client( s, n == 0 ? 1 : n );
        netcode_client_process_packet( c, &w->server_addresses[0], data, small );
        netcode_client_process_packet( c, &w->server_addresses[0], data, n > 1300 ? n : 0 );
        netcode_server_process_packet( s, &w->client_addresses[0], data, small );
        netcode_server_process_packet( s, &w->client_addresses[0], data, n > 1300 ? n : 0 );
        netcode_client_connect_loopback( w->clients[1], n, n );
        netcode_client_connect_loopback( w->clients[1], 0, n );
        netcode_client_process_loopback_packet( w->clients[1], data, bad_size, UINT64_MAX );
        netcode_client_disconnect_loopback( w->clients[1] );
        netcode_server_connect_loopback_client( s, n == 1 ? 2 : n, UINT64_MAX, NULL );
        netcode_server_process_loopback_packet( s, n, data, bad_size, UINT64_MAX );
        netcode_server_disconnect_loopback_client( s, n );
        netcode_client_update( c, w->time + (double) n * 0.0 );
        netcode_client_wait( c, (double) ( n < 0 ? n : 0 ) );
        netcode_server_wait( s, (double) ( n < 0 ? n : 0 ) );
        CHECK_EQ( netcode_server_set_private_keys( s, world_key, n == 1 ? 5 : n ), NETCODE_ERROR );
        if ( n < 1 || n > NETCODE_MAX_SLOTS ) {
            netcode_server_start( s, n );
            CHECK_EQ( netcode_server_memory( &w->server_config, n ), 0 );
        }
        CHECK_EQ( netcode_server_max_clients( s ), 2 );
        CHECK_EQ( netcode_generate_connect_token( n == 1 ? 33 : n, names, names, 30, 5, 1, 2, world_key, NULL, token ),
                  NETCODE_ERROR );
        REQUIRE_EQ( netcode_generate_connect_token( 1, names, names, n, n, UINT64_MAX, UINT64_MAX, world_key, NULL,
                                                    token ),
                    NETCODE_OK );
        REQUIRE_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
        CHECK_EQ( info.timeout_seconds, n );
        CHECK( n < 0 ? info.expire_timestamp == UINT64_MAX
                     : info.expire_timestamp == info.create_timestamp + (uint64_t) n );
        CHECK( netcode_client_state_name( n ) && netcode_drop_reason_name( n ) && netcode_drop_reason_text( n ) );
        CHECK( netcode_client_create_error_text( n ) && netcode_server_create_error_text( n ) );
        odd.type = (uint8_t) n;
        CHECK( netcode_address_to_string( &odd, text ) == text );
        netcode_server_process_packet( s, &odd, data, 100 );
        netcode_client_process_packet( c, &odd, data, 100 );
    }
    test_state.expecting = 0;
    world_run( w, 1.0 );
    CHECK_EQ( netcode_client_state( c ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( s ), 1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( client_drain( w, 0 ), 0 );
}
