/*  Endpoint: which networks and addresses client and server accept. */

#if !defined( _WIN32 )

/* An override of one direction alone, and a socket with one call alone, are no network. */
TEST( mutants_half_a_network_is_refused )
{
    static struct netcode_socket_t half;
    nc_endpoint_setup_t setup;
    const char * texts[] = { "127.0.0.1:40000", NULL };
    const int missing = NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK;
    int i;
    for ( i = 0; i < 4; i++ ) {
        memset( &setup, 0, sizeof( setup ) );
        setup.overridden = 1;
        setup.override_.send = i & 1 ? socket_override_send : NULL;
        setup.override_.receive = i & 2 ? socket_override_receive : NULL;
        CHECK_EQ( nc_endpoint_check_setup( &setup, texts ), i == 3 ? NETCODE_SERVER_CREATE_ERROR_NONE : missing );
        memset( &setup, 0, sizeof( setup ) );
        memset( &half, 0, sizeof( half ) );
        half.send = i & 1 ? nc_simulator_send : NULL;
        half.receive = i & 2 ? nc_simulator_receive : NULL;
        setup.socket = &half;
        CHECK_EQ( nc_endpoint_check_setup( &setup, texts ), i == 3 ? NETCODE_SERVER_CREATE_ERROR_NONE : missing );
    }
}

#endif

/* What a server binds where its config says nothing, and where it says what can not be. */
TEST( corners_bind_addresses )
{
    struct netcode_address_t address = address_of( "10.0.0.1:40000" ), bind_to;
    CHECK_EQ( nc_server_bind_address( &bind_to, &address, NULL ), 1 );
    CHECK_EQ( bind_to.port, 40000 );
    CHECK_EQ( bind_to.data.ipv4[0], 0 );
    CHECK_EQ( nc_server_bind_address( &bind_to, &address, "[::1]:5" ), 0 );
    CHECK_EQ( nc_server_bind_address( &bind_to, &address, "nonsense" ), 0 );
    CHECK_EQ( nc_server_bind_address( &bind_to, &address, "127.0.0.1:5" ), 1 );
    CHECK_EQ( bind_to.port, 5 );
}

/* A config of zeros is a config: all defaults, the system's clock among them. */
TEST( endpoint_a_config_of_zeros )
{
    struct netcode_network_simulator_t * simulator = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    memset( &server_config, 0, sizeof( server_config ) );
    memset( &client_config, 0, sizeof( client_config ) );
    memset( server_config.private_key, 7, sizeof( server_config.private_key ) );
    server_config.network_simulator = client_config.network_simulator = simulator;
    struct netcode_server_t * server = netcode_server_create( "10.0.0.1:40000", &server_config, 0.0 );
    struct netcode_client_t * client = netcode_client_create( "10.0.0.2:40000", &client_config, 0.0 );
    REQUIRE( server != NULL && client != NULL );
    CHECK( server->config.unix_time == nc_unix_default && client->config.unix_time == nc_unix_default );
    CHECK_EQ( server->config.receive_buffer_bytes, NC_SOCKET_BUFFER_BYTES );
    CHECK_EQ( client->config.send_buffer_bytes, NC_SOCKET_BUFFER_BYTES );
    CHECK_EQ( client->config.packet_quota, NC_CLIENT_POOL );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
    netcode_network_simulator_destroy( simulator );
}
