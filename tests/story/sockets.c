/*  Story: the transports. Real sockets on loopback (IPv4, IPv6, both), the simulator by its config field, and the
    override callbacks. All of it is bounded in count and time, and stays on this machine. */

#if !defined( _WIN32 )
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

struct real_t {
    struct netcode_server_t * server;
    struct netcode_client_t * client;
    char address[2][NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

/*  The real clock, in which a pause of this process is 10 ms: both ends are in it, and after a longer pause each would time out what the other
    could not say. */
static double real_time( void )
{
    static double time, last;
    double now = netcode_time();
    time += now - last < 0.01 ? now - last : 0.01;
    last = now;
    return time;
}

static void real_close( struct real_t * r )
{
    netcode_client_destroy( r->client );
    netcode_server_destroy( r->server );
    memset( r, 0, sizeof( *r ) );
}

static void real_step( struct real_t * r )
{
    netcode_sleep( 0.002 );
    if ( r->server )
        netcode_server_update( r->server, real_time() );
    if ( r->client )
        netcode_client_update( r->client, real_time() );
}

static int real_until( struct real_t * r, int state )
{
    double end = netcode_time() + TEST_LIMIT_SECONDS;
    while ( netcode_client_state( r->client ) != state && netcode_time() < end )
        real_step( r );
    return netcode_client_state( r->client ) == state;
}

static int real_ipv6( void )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.bind_address = "[::1]:0";
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    struct netcode_server_t * server = netcode_server_create( "[::1]:0", &config, 0.0 );
    netcode_server_destroy( server );
    return server != NULL;
}

/* A server on these addresses (port 0), bound to loopback alone. */
static int
    real_kernel_filter; /* of the servers that are made from here on; -1: the library counts what the kernel would drop */

static void real_server( struct real_t * r, const char * address, const char * address2 )
{
    struct netcode_server_config_t config;
    struct netcode_address_t a;
    netcode_default_server_config( &config );
    config.protocol_id = WORLD_PROTOCOL;
    memcpy( config.private_key, world_key, NETCODE_KEY_BYTES );
    config.bind_address = address;
    config.bind_address2 = address2;
    config.kernel_filter = real_kernel_filter;
    r->server = address2 ? netcode_server_create_dual( address, address2, &config, real_time() )
                         : netcode_server_create( address, &config, real_time() );
    REQUIRE( r->server != NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_NONE );
    netcode_server_start( r->server, 4 );
    REQUIRE_EQ( netcode_server_running( r->server ), 1 );
    CHECK_NE( netcode_server_get_port( r->server ), 0 );
    a = address_of( address );
    a.port = netcode_server_get_port( r->server );
    netcode_address_to_string( &a, r->address[0] );
}

static void real_token( const char * address, uint64_t client_id, uint8_t * token )
{
    const char * list[1];
    list[0] = address;
    REQUIRE_EQ( netcode_generate_connect_token( 1, list, list, 60, 5, client_id, WORLD_PROTOCOL, world_key, NULL,
                                                token ),
                NETCODE_OK );
}

static void real_client( struct real_t * r, const char * address, const char * address2 )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    r->client = address2 ? netcode_client_create_dual( address, address2, &config, real_time() )
                         : netcode_client_create( address, &config, real_time() );
    REQUIRE( r->client != NULL );
    CHECK_NE( netcode_client_get_port( r->client ), 0 );
}

/* Payloads both ways, each answered before the next: how many came back. */
static int real_echo( struct real_t * r, int count )
{
    int i, back_count = 0;
    double end = netcode_time() + TEST_LIMIT_SECONDS;
    for ( i = 0; i < count; i++ ) {
        uint8_t data[NETCODE_MAX_PACKET_SIZE], *packet;
        int bytes = 0, size = 1 + test_random_below( NETCODE_MAX_PACKET_SIZE );
        payload_fill( data, size, i );
        netcode_client_send_packet( r->client, data, size );
        while ( netcode_time() < end ) {
            real_step( r );
            packet = netcode_server_receive_packet( r->server, 0, &bytes, NULL );
            if ( packet ) {
                netcode_server_send_packet( r->server, 0, packet, bytes );
                netcode_server_free_packet( r->server, packet );
            }
            packet = netcode_client_receive_packet( r->client, &bytes, NULL );
            if ( !packet )
                continue;
            CHECK_EQ( bytes, size );
            CHECK_MEM( packet, data, size );
            netcode_client_free_packet( r->client, packet );
            back_count++;
            break;
        }
    }
    return back_count;
}

static void real_story( const char * server_address, const char * server_address2, const char * client_address,
                        const char * client_address2, const char * dial )
{
    struct real_t r;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_address_t a;
    memset( &r, 0, sizeof( r ) );
    real_server( &r, server_address, server_address2 );
    real_client( &r, client_address, client_address2 );
    a = address_of( dial );
    a.port = netcode_server_get_port( r.server );
    netcode_address_to_string( &a, r.address[0] );
    real_token( r.address[0], 1, token );
    netcode_client_connect( r.client, token );
    if ( CHECK( real_until( &r, NETCODE_CLIENT_STATE_CONNECTED ) ) ) {
        CHECK( netcode_address_equal( netcode_client_server_address( r.client ), &a ) );
        CHECK_EQ( netcode_server_client_address( r.server, 0 )->type, a.type );
        CHECK_EQ( real_echo( &r, 30 ), 30 );
        netcode_client_disconnect( r.client );
        double end = netcode_time() + TEST_LIMIT_SECONDS;
        while ( netcode_server_num_connected_clients( r.server ) && netcode_time() < end )
            real_step( &r );
        CHECK_EQ( netcode_server_num_connected_clients( r.server ), 0 );
    }
    real_close( &r );
}

TEST( real_ipv4 )
{
    real_story( "127.0.0.1:0", NULL, "0.0.0.0", NULL, "127.0.0.1" );
}

TEST( real_ipv6_alone )
{
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    real_story( "[::1]:0", NULL, "[::]", NULL, "::1" );
}

TEST( real_dual_stack )
{
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    real_story( "127.0.0.1:0", "[::1]:0", "0.0.0.0", "::", "127.0.0.1" );
}

TEST( real_dual_stack_client_of_either_order )
{
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    real_story( "[::1]:0", NULL, "::", "0.0.0.0", "::1" );
    real_story( "127.0.0.1:0", NULL, "::", "0.0.0.0", "127.0.0.1" );
}

TEST( real_port_taken )
{
    struct real_t r;
    struct netcode_server_config_t config;
    memset( &r, 0, sizeof( r ) );
    real_server( &r, "127.0.0.1:0", NULL );
    netcode_default_server_config( &config );
    config.bind_address = r.address[0];
    CHECK( netcode_server_create( r.address[0], &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED );
    real_close( &r );
}

TEST( real_buffers_and_wait )
{
    struct real_t r;
    struct netcode_server_stats_t stats;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], data[10] = { 0 };
    memset( &r, 0, sizeof( r ) );
    netcode_enable_packet_tagging();
    real_server( &r, "127.0.0.1:0", NULL );
    real_client( &r, "127.0.0.1:0", NULL );
    netcode_server_stats( r.server, &stats );
    CHECK_GT( stats.receive_buffer_bytes, 0 );
    CHECK_GT( stats.send_buffer_bytes, 0 );
    real_token( r.address[0], 1, token );
    netcode_client_connect( r.client, token );
    REQUIRE( real_until( &r, NETCODE_CLIENT_STATE_CONNECTED ) );
    netcode_client_send_packet( r.client, data, 10 );
    test_waited = test_notes_waits ? -1.0 : 0.0;
    netcode_server_wait( r.server, 5.0 ); /* a datagram waits: at once; at the latest when a keep-alive is due */
    CHECK( test_waited >= 0.0 && test_waited < 1.0 );
    test_waited = test_notes_waits ? -1.0 : 0.0;
    netcode_client_wait( r.client, 0.01 );
    CHECK( test_waited >= 0.0 && test_waited < 1.0 );
    real_close( &r );
}

#if !defined( _WIN32 )

/* A bare socket that sends to the server. */
static int real_raw( const char * server_text, struct sockaddr_in * to )
{
    struct netcode_address_t a = address_of( server_text );
    int s = socket( AF_INET, SOCK_DGRAM, 0 );
    REQUIRE_GE( s, 0 );
    memset( to, 0, sizeof( *to ) );
    to->sin_family = AF_INET;
    to->sin_port = htons( a.port );
    to->sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    return s;
}

/* Threats 4 and 5: empty and oversized datagrams between real ones. */
TEST( real_empty_and_oversized_datagrams )
{
    struct real_t r;
    struct sockaddr_in to;
    struct netcode_server_stats_t stats;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], data[64] = { 0 };
    static uint8_t big[4000];
    int raw, i, got = 0, bytes;
    uint8_t * packet;
    memset( &r, 0, sizeof( r ) );
    real_kernel_filter = -1;
    real_server( &r, "127.0.0.1:0", NULL );
    real_kernel_filter = 0;
    real_client( &r, "127.0.0.1:0", NULL );
    real_token( r.address[0], 1, token );
    netcode_client_connect( r.client, token );
    REQUIRE( real_until( &r, NETCODE_CLIENT_STATE_CONNECTED ) );
    raw = real_raw( r.address[0], &to );
    for ( i = 0; i < 600; i++ ) {
        (void) sendto( raw, data, 0, 0, (struct sockaddr *) &to, sizeof( to ) );
        (void) sendto( raw, big, i % 2 ? 1226 : sizeof( big ), 0, (struct sockaddr *) &to, sizeof( to ) );
        netcode_client_send_packet( r.client, data, 64 );
        if ( i % 10 == 9 )
            real_step( &r );
        while ( ( packet = netcode_server_receive_packet( r.server, 0, &bytes, NULL ) ) != NULL ) {
            got++;
            netcode_server_free_packet( r.server, packet );
        }
    }
    for ( i = 0; i < 50; i++ ) {
        real_step( &r );
        while ( ( packet = netcode_server_receive_packet( r.server, 0, &bytes, NULL ) ) != NULL ) {
            got++;
            netcode_server_free_packet( r.server, packet );
        }
    }
    close( raw );
    CHECK_GE( got, 594 );
    netcode_server_stats( r.server, &stats );
    CHECK_GE( stats.dropped[NETCODE_DROP_EMPTY_DATAGRAM], 590 );
    CHECK_GE( stats.dropped[NETCODE_DROP_OVERSIZED_DATAGRAM], 590 );
    real_close( &r );
}

/* Threat 55: where file descriptor 0 is free, it becomes the socket, and works. */
TEST( real_file_descriptor_0 )
{
    int saved = dup( 0 ), again;
    close( 0 );
    real_story( "127.0.0.1:0", NULL, "127.0.0.1:0", NULL, "127.0.0.1" );
    again = dup( 0 );
    CHECK( again < 0 ); /* it was closed behind itself */
    if ( again >= 0 )
        close( again );
    if ( saved >= 0 ) {
        CHECK_EQ( dup2( saved, 0 ), 0 );
        close( saved );
    }
}

/* An address at which no server listens: the system says so, and the report names it. */
TEST( real_unreachable_server_is_reported )
{
    struct real_t r;
    struct netcode_client_report_t report;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * list[1] = { r.address[0] };
    struct sockaddr_in at;
    socklen_t bytes = sizeof( at );
    int shut =
        real_raw( "127.0.0.1:9", &at ); /* it hears that port alone: its own is closed, and given to nobody else */
    REQUIRE_EQ( connect( shut, (const struct sockaddr *) &at, bytes ), 0 );
    REQUIRE_EQ( getsockname( shut, (struct sockaddr *) &at, &bytes ), 0 );
    memset( &r, 0, sizeof( r ) );
    snprintf( r.address[0], sizeof( r.address[0] ), "127.0.0.1:%d", (int) ntohs( at.sin_port ) );
    real_client( &r, "127.0.0.1:0", NULL );
    REQUIRE_EQ( netcode_generate_connect_token( 1, list, list, 60, 1, 1, WORLD_PROTOCOL, world_key, NULL, token ),
                NETCODE_OK );
    netcode_client_connect( r.client, token );
    CHECK( real_until( &r, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT ) );
    netcode_client_report( r.client, &report );
    CHECK_GE( report.servers[0].requests_sent, 5 );
#if defined( __linux__ )
    CHECK_GE( report.servers[0].errors, 1 );
    CHECK_NE( report.servers[0].last_error, 0 );
#endif
    close( shut );
    real_close( &r );
}

#endif

TEST( real_port_of_public_addresses )
{
    static const char * const names[] = { "203.0.113.9:0", "[2001:db8::77]:40001" };
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    w->server_config.public_addresses = names;
    w->server_config.num_public_addresses = 2;
    world_add_server( w, 4 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.private_addresses[0] = address_of( "203.0.113.9:40000" ); /* port 0 stands for the port bound */
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 2, "10.2.0.2:6000" );
    p.r.private_addresses[0] = address_of( "[2001:db8::77]:40001" );
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 3, "10.2.0.3:6000" );
    p.r.private_addresses[0] = address_of( "203.0.113.9:40001" );
    puppet_mint( &p );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_FOR_ANOTHER_SERVER ), 1 );
}

/* ---- the simulator by its config field ---- */

TEST( the_simulator_as_a_transport )
{
    struct netcode_network_simulator_t * net = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    struct real_t r;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    double time = 0.0;
    int i;
    memset( &r, 0, sizeof( r ) );
    REQUIRE( net != NULL );
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    client.network_simulator = server.network_simulator = net;
    server.protocol_id = WORLD_PROTOCOL;
    memcpy( server.private_key, world_key, NETCODE_KEY_BYTES );
    CHECK( netcode_client_create( "0.0.0.0", &client, 0.0 ) == NULL );
    CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_SIMULATOR_REQUIRES_PORT );
    r.client = netcode_client_create( "[::]:50000", &client, 0.0 );
    r.server = netcode_server_create( "[::1]:40000", &server, 0.0 );
    REQUIRE( r.client && r.server );
    CHECK_EQ( netcode_server_get_port( r.server ), 40000 );
    CHECK_EQ( netcode_client_get_port( r.client ), 50000 );
    netcode_server_start( r.server, 2 );
    real_token( "[::1]:40000", 1, token );
    netcode_client_connect( r.client, token );
    for ( i = 0; i < 200 && netcode_client_state( r.client ) != NETCODE_CLIENT_STATE_CONNECTED; i++ ) {
        time += 0.01;
        netcode_network_simulator_update( net, time );
        netcode_server_update( r.server, time );
        netcode_client_update( r.client, time );
    }
    CHECK_EQ( netcode_client_state( r.client ), NETCODE_CLIENT_STATE_CONNECTED );
    real_close( &r );
    netcode_network_simulator_destroy( net );
}

#if !defined( _WIN32 )

/* A socket of one's own comes first, and needs no port as a simulator does. */
TEST( mutants_a_socket_beside_a_simulator )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_config_t config = w->client_config;
    struct netcode_socket_t socket;
    struct netcode_address_t at = address_of( "10.9.0.1:50000" );
    struct netcode_client_t * client;
    world_socket( w, &at, &socket );
    config.socket = &socket;
    config.network_simulator = w->net;
    config.callback_context = &w->client_parties[0];
    client = netcode_client_create( "10.9.0.1", &config, w->time );
    CHECK( client != NULL );
    netcode_client_destroy( client );
}

#endif

/* ---- override callbacks ---- */

static struct {
    uint8_t data[64][2048];
    int bytes[64];
    int head;
    int count;
} override_queues[2]; /* 0: to the server, 1: to the client */

static void override_put( int queue, const uint8_t * data, int bytes )
{
    int at = ( override_queues[queue].head + override_queues[queue].count ) % 64;
    if ( override_queues[queue].count == 64 )
        return;
    memcpy( override_queues[queue].data[at], data, (size_t) bytes );
    override_queues[queue].bytes[at] = bytes;
    override_queues[queue].count++;
}

static int override_take( int queue, uint8_t * data, int capacity )
{
    int at = override_queues[queue].head, bytes;
    if ( !override_queues[queue].count )
        return 0;
    bytes = override_queues[queue].bytes[at];
    CHECK_LE( bytes, capacity );
    memcpy( data, override_queues[queue].data[at], (size_t) bytes );
    override_queues[queue].head = ( at + 1 ) % 64;
    override_queues[queue].count--;
    return bytes;
}

static void override_client_send( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    CHECK_EQ( *(int *) context, 77 );
    CHECK_EQ( to->port, 40000 );
    override_put( 0, data, bytes );
}

static int override_client_receive( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    CHECK_EQ( *(int *) context, 77 );
    *from = address_of( "10.0.0.1:40000" );
    return override_take( 1, data, capacity );
}

static void override_server_send( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    CHECK_EQ( *(int *) context, 77 );
    CHECK_EQ( to->port, 50000 );
    override_put( 1, data, bytes );
}

static int override_server_receive( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    CHECK_EQ( *(int *) context, 77 );
    *from = address_of( "10.1.0.1:50000" );
    return override_take( 0, data, capacity );
}

TEST( override_callbacks_as_a_transport )
{
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    struct real_t r;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int context = 77, i;
    double time = 0.0;
    memset( &r, 0, sizeof( r ) );
    memset( override_queues, 0, sizeof( override_queues ) );
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    client.callback_context = server.callback_context = &context;
    client.override_send_and_receive = server.override_send_and_receive = 1;
    CHECK( netcode_client_create( "10.1.0.1:50000", &client, 0.0 ) == NULL );
    CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK );
    CHECK( netcode_server_create( "10.0.0.1:40000", &server, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK );
    client.send_packet_override = override_client_send;
    client.receive_packet_override = override_client_receive;
    server.send_packet_override = override_server_send;
    server.receive_packet_override = override_server_receive;
    server.protocol_id = WORLD_PROTOCOL;
    memcpy( server.private_key, world_key, NETCODE_KEY_BYTES );
    r.client = netcode_client_create( "10.1.0.1:50000", &client, 0.0 );
    r.server = netcode_server_create( "10.0.0.1:40000", &server, 0.0 );
    REQUIRE( r.client && r.server );
    netcode_server_start( r.server, 2 );
    real_token( "10.0.0.1:40000", 1, token );
    netcode_client_connect( r.client, token );
    for ( i = 0; i < 100; i++ ) {
        netcode_server_update( r.server, time += 0.01 );
        netcode_client_update( r.client, time );
    }
    CHECK_EQ( netcode_client_state( r.client ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( r.server ), 1 );
    real_close( &r );
}

static int deaf_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    (void) count;
    return 0;
}

/* Says that it filled more entries than there are. */
static int boasting_receive( void * context, struct netcode_datagram_t * datagrams, int count )
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
    socket.send = deaf_send;
    socket.receive = boasting_receive;
    netcode_default_client_config( &config );
    config.socket = &socket;
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
