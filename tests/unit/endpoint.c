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
    CHECK( server->config.unix_time == nc_unix_default );
    CHECK_EQ( server->config.receive_buffer_bytes, NC_SOCKET_BUFFER_BYTES );
    CHECK_EQ( client->config.send_buffer_bytes, NC_SOCKET_BUFFER_BYTES );
    CHECK_EQ( client->config.packet_quota, NC_CLIENT_POOL );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
    netcode_network_simulator_destroy( simulator );
}

/* Without netcode_init libsodium works too, but slowly: create and the making of tokens start it, and report where that fails. */
TEST( endpoint_libsodium_is_started )
{
    struct netcode_network_simulator_t * simulator = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    const char * address = "10.0.0.1:40000";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    netcode_default_server_config( &server_config );
    netcode_default_client_config( &client_config );
    memset( server_config.private_key, 7, sizeof( server_config.private_key ) );
    server_config.network_simulator = client_config.network_simulator = simulator;
    for ( int is_broken = 0; is_broken < 2; is_broken++ ) {
        int before = test_sodium_starts;
        test_sodium_is_broken = is_broken;
        if ( is_broken )
            netcode_log_level( NETCODE_LOG_LEVEL_NONE );
        struct netcode_server_t * server = netcode_server_create( address, &server_config, 0.0 );
        CHECK_EQ( server == NULL, is_broken );
        CHECK_EQ( netcode_server_create_error(),
                  is_broken ? NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED : NETCODE_SERVER_CREATE_ERROR_NONE );
        CHECK_EQ( test_sodium_starts, before + 1 );
        struct netcode_client_t * client = netcode_client_create( "10.0.0.2:40000", &client_config, 0.0 );
        CHECK_EQ( client == NULL, is_broken );
        CHECK_EQ( netcode_client_create_error(),
                  is_broken ? NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED : NETCODE_CLIENT_CREATE_ERROR_NONE );
        CHECK_EQ( test_sodium_starts, before + 2 );
        CHECK_EQ( netcode_generate_connect_token( 1, &address, &address, 30, 5, 1, 1, server_config.private_key, NULL,
                                                  token ),
                  is_broken ? NETCODE_ERROR : NETCODE_OK );
        CHECK_EQ( test_sodium_starts, before + 3 );
        netcode_client_destroy( client );
        netcode_server_destroy( server );
    }
    test_sodium_is_broken = 0;
    netcode_network_simulator_destroy( simulator );
}

/* ---- what is measured of the other side's packets ---- */

/* A probe's own mark depends on its upper 48 bits alone, and on the object's key. */
TEST( mutants_marks_of_probes )
{
    static nc_endpoint_t base;
    int i, same = 0;
    memset( &base, 0, sizeof( base ) );
    memset( base.probe_key, 7, sizeof( base.probe_key ) );
    for ( i = 0; i < 100; i++ ) {
        uint64_t value = nc_probe_make( &base );
        CHECK( value >> 63 && nc_probe_is_own( &base, value ) );
        CHECK_EQ( nc_probe_mark( &base, value ), nc_probe_mark( &base, value ^ 0x5555 ) );
        same += nc_probe_mark( &base, value ) == nc_probe_mark( &base, value ^ (uint64_t) 1 << ( 16 + i % 48 ) );
    }
    CHECK_LE( same, 1 );
}

TEST( mutants_samples_of_probes )
{
    nc_probe_t probe;
    memset( &probe, 0, sizeof( probe ) );
    probe.answers = 5.0;
    nc_probe_init( &probe, 100.0 );
    CHECK_NEAR( probe.answers, 5.0, 0.0 );
    CHECK_NEAR( probe.times[0], 99.0, 0.0 );
    nc_probe_sample( &probe, 0.1 );
    nc_probe_sample( &probe, 0.2 );
    CHECK_NEAR( probe.lowest, 0.1, 1e-6 );
    nc_probe_sample( &probe, 0.05 );
    CHECK_NEAR( probe.lowest, 0.05, 1e-6 );
    CHECK_NEAR( probe.round_trip, 0.1 + 0.0125 - ( 0.1125 - 0.05 ) / 8.0, 1e-6 );
    nc_probe_sample( &probe, 0.0 ); /* 0 would be: not known */
    CHECK( probe.lowest > 0.0f );
    probe.values[0] = 11; /* each has its own time */
    probe.values[1] = 12;
    probe.times[0] = 110.0;
    probe.times[1] = 107.0;
    CHECK_EQ( nc_probe_end( &probe, 12, 111.0 ), 0 );
    CHECK_EQ( nc_probe_end( &probe, 11, 111.0 ), 1 );
    CHECK_EQ( nc_probe_end( &probe, 11, 111.0 ), 0 );
    CHECK_EQ( nc_probe_end( &probe, 12, 109.0 ), 1 );
}
