/*  Corners of rooms that no story comes by: errors of the system that are rare, and sizes at their ends. make coverage shows
    what is left. Run: runner corners.c */

/* An address can name its interface once. */
TEST( corners_address_with_two_interfaces )
{
    struct netcode_address_t address;
    CHECK_EQ( netcode_parse_address( "fe80:5::1%2", &address ), NETCODE_ERROR );
    CHECK_EQ( netcode_parse_address( "fe80::1%2", &address ), NETCODE_OK );
}

/* Whoever asks for more than a simulated datagram can hold gets none of that size. */
TEST( corners_simulator_of_a_giant )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_address_t a = address_of( "10.0.0.1:1" ), b = address_of( "10.0.0.2:1" );
    struct netcode_socket_t from, to;
    struct netcode_datagram_t datagram;
    static uint8_t giant[4 * NC_SIMULATOR_BYTES];
    REQUIRE_EQ( netcode_network_simulator_socket( w->net, &a, &from ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_socket( w->net, &b, &to ), NETCODE_OK );
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.address = b;
    datagram.data = giant;
    datagram.bytes = datagram.capacity = (int) sizeof( giant );
    from.send( from.context, &datagram, 1 );
    netcode_network_simulator_update( w->net, w->time + 1.0 );
    REQUIRE_EQ( to.receive( to.context, &datagram, 1 ), 1 );
    CHECK_EQ( datagram.status, NETCODE_DATAGRAM_TRUNCATED );
    from.close( from.context );
    to.close( to.context );
}

#if !defined( _WIN32 )

TEST( corners_errors_of_a_broken_handle )
{
    CHECK_EQ( nc_socket_judge( EBADF ), NC_SOCKET_BROKEN );
    CHECK_EQ( nc_socket_judge( ENOTSOCK ), NC_SOCKET_BROKEN );
    CHECK_EQ( nc_socket_judge( EFAULT ), NC_SOCKET_BROKEN );
    CHECK_EQ( nc_socket_judge( EINVAL ), NC_SOCKET_BROKEN );
    CHECK_EQ( nc_socket_judge( ENOMEM ), NC_SOCKET_PASSING );
}

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

/* Handles in either order, and one that select has no place for. */
TEST( corners_waits_of_odd_handles )
{
    struct netcode_socket_t dual;
    nc_socket_udp_t *udp, far;
    nc_socket_handle_t kept;
    double start = netcode_time();
    memset( &far, 0, sizeof( far ) );
    far.count = 1;
    far.handles[0] = FD_SETSIZE + 1;
    nc_socket_udp_wait( &far, 0.0001 );
    nc_socket_udp_wait( &far, 0.01 );
    if ( !socket_open( &dual, "127.0.0.1", "::1" ) )
        SKIP( "no ::1" );
    udp = (nc_socket_udp_t *) dual.context;
    dual.wait( dual.context, 0.001 );
    kept = udp->handles[0];
    udp->handles[0] = udp->handles[1];
    udp->handles[1] = kept;
    dual.wait( dual.context, 0.001 );
    CHECK( netcode_time() - start < 5.0 );
    dual.close( dual.context );
}

/* The port is taken in the family that came second to most people's minds. */
TEST( corners_ipv6_port_taken )
{
    struct netcode_server_config_t config;
    struct netcode_server_t *first, *second;
    struct netcode_address_t address;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    netcode_default_server_config( &config );
    config.bind_address = "[::1]:0";
    first = netcode_server_create( "[::1]:0", &config, 0.0 );
    if ( !first )
        SKIP( "no ::1" );
    address = address_of( "[::1]:1" );
    address.port = netcode_server_get_port( first );
    second = netcode_server_create( netcode_address_to_string( &address, text ), &config, 0.0 );
    CHECK( second == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV6_FAILED );
    netcode_server_destroy( first );
}

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )

/* Of what the system tells beside a datagram, its count of drops alone is read. */
TEST( corners_control_messages_of_other_kinds )
{
    static const int kinds[][2] = { { SOL_SOCKET, SO_TIMESTAMP },
                                    { IPPROTO_IP, SO_RXQ_OVFL },
                                    { SOL_SOCKET, SO_RXQ_OVFL } };
    nc_socket_udp_t udp;
    int i;
    for ( i = 0; i < 3; i++ ) {
        uint64_t control[8] = { 0 };
        uint32_t drops = 77;
        struct msghdr header;
        struct cmsghdr * message;
        memset( &udp, 0, sizeof( udp ) );
        memset( &header, 0, sizeof( header ) );
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE( sizeof( drops ) );
        message = CMSG_FIRSTHDR( &header );
        message->cmsg_level = kinds[i][0];
        message->cmsg_type = kinds[i][1];
        message->cmsg_len = CMSG_LEN( sizeof( drops ) );
        memcpy( CMSG_DATA( message ), &drops, sizeof( drops ) );
        nc_socket_read_drops( &udp, 0, &header );
        CHECK_EQ( udp.kernel_drops[0], i == 2 ? 77 : 0 );
    }
}

/* More errors wait in the queue than one look reads. */
TEST( corners_a_long_error_queue )
{
    struct netcode_socket_t client;
    struct netcode_address_t dead;
    nc_socket_request_t request;
    int i, family, places = 0;
    close( plain_socket( "127.0.0.1:0", &dead ) );
    memset( &request, 0, sizeof( request ) );
    request.allocator = nc_allocator_make( NULL, NULL, NULL );
    request.addresses[0] = &dead;
    request.receive_buffer_bytes = request.send_buffer_bytes = 1 << 20;
    request.reports_errors = 1;
    dead.port = 0;
    REQUIRE_EQ( nc_socket_open_udp( &client, &request, &family ), NC_SOCKET_OK );
    close( plain_socket( "127.0.0.1:0", &dead ) );
    for ( i = 0; i < 80; i++ )
        socket_send( &client, &dead, "x", 1 );
    for ( i = 0; i < 20; i++ ) {
        int more = client.receive( client.context, socket_ready( 8 ), 8 );
        places += more > 0 ? more : 0;
    }
    CHECK_LE( places, 80 );
    client.close( client.context );
}

#endif

#endif
