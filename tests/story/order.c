/*  Story: what becomes due in one update happens in the order that callers rely on. Client: receive, send, token expiry,
    denial or disconnect, timeouts. Server: receive, keep-alives, timeouts. */

typedef struct order_t {
    struct netcode_network_simulator_t * net;
    struct netcode_server_config_t config;
    struct netcode_server_t * server;
} order_t;

static const char * order_address = "127.0.0.1:40000";

static void order_open( order_t * o )
{
    o->net = netcode_network_simulator_create( NULL, NULL, NULL );
    netcode_default_server_config( &o->config );
    o->config.protocol_id = 1;
    o->config.network_simulator = o->net;
    netcode_random_bytes( o->config.private_key, NETCODE_KEY_BYTES );
    o->server = netcode_server_create( order_address, &o->config, 0.0 );
    netcode_server_start( o->server, 1 );
}

static void order_close( order_t * o )
{
    netcode_server_destroy( o->server );
    netcode_network_simulator_destroy( o->net );
}

static struct netcode_client_t * order_client( order_t * o, int number, int expire_seconds, int timeout_seconds )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_config_t config;
    struct netcode_client_t * client;
    char own[32];
    netcode_default_client_config( &config );
    config.network_simulator = o->net;
    snprintf( own, sizeof( own ), "127.0.0.1:%d", 50000 + number );
    netcode_generate_connect_token( 1, &order_address, &order_address, expire_seconds, timeout_seconds,
                                    (uint64_t) number, 1, o->config.private_key, NULL, token );
    client = netcode_client_create( own, &config, 0.0 );
    netcode_client_connect( client, token );
    return client;
}

/* One exchange at time 0: the client's packets reach the server, and its answers lie ready for the client. */
static void order_exchange( order_t * o, struct netcode_client_t * client )
{
    netcode_client_update( client, 0.0 );
    netcode_network_simulator_update( o->net, 0.0 );
    netcode_server_update( o->server, 0.0 );
    netcode_network_simulator_update( o->net, 0.0 );
}

/* The only slot has a client with a timeout of 2 s. */
static struct netcode_client_t * order_fill( order_t * o )
{
    struct netcode_client_t * client = order_client( o, 1, 30, 2 );
    int i;
    for ( i = 0; i < 6; i++ )
        order_exchange( o, client );
    CHECK_EQ( netcode_client_state( client ), NETCODE_CLIENT_STATE_CONNECTED );
    return client;
}

/* The state of a client whose denial waits for it in the update in which something else is due, a second later. */
static int order_denied_a_second_later( order_t * o, int number, int expire_seconds, int timeout_seconds )
{
    struct netcode_client_t * client = order_client( o, number, expire_seconds, timeout_seconds );
    int state;
    order_exchange( o, client );
    netcode_client_update( client, 1.0 );
    state = netcode_client_state( client );
    netcode_client_destroy( client );
    return state;
}

TEST( the_token_runs_out_before_a_denial_counts )
{
    order_t o;
    struct netcode_client_t * first;
    order_open( &o );
    first = order_fill( &o );
    CHECK_EQ( order_denied_a_second_later( &o, 2, 1, 5 ), NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED );
    netcode_client_destroy( first );
    order_close( &o );
}

TEST( a_denial_counts_before_silence_does )
{
    order_t o;
    struct netcode_client_t * first;
    order_open( &o );
    first = order_fill( &o );
    CHECK_EQ( order_denied_a_second_later( &o, 2, 30, 1 ), NETCODE_CLIENT_STATE_CONNECTION_DENIED );
    netcode_client_destroy( first );
    order_close( &o );
}

TEST( a_server_receives_before_it_times_anybody_out )
{
    order_t o;
    struct netcode_client_t * client;
    order_open( &o );
    client = order_fill( &o );
    netcode_client_update( client, 1.0 );
    netcode_network_simulator_update( o.net, 0.0 );
    netcode_server_update( o.server, 1.0 );
    netcode_client_update( client, 1.9 );
    netcode_network_simulator_update( o.net, 0.0 ); /* its keep-alive waits while the server's time jumps */
    netcode_server_update( o.server, 3.5 );
    CHECK_EQ( netcode_server_num_connected_clients( o.server ), 1 );
    netcode_server_update( o.server, 6.0 ); /* and then nothing more comes */
    CHECK_EQ( netcode_server_num_connected_clients( o.server ), 0 );
    netcode_client_destroy( client );
    order_close( &o );
}

static int order_broken_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    (void) count;
    return -1;
}

static int order_broken_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    (void) count;
    return -1;
}

TEST( a_socket_that_is_broken_is_counted_each_time )
{
    struct netcode_socket_t broken = { NULL, order_broken_receive, order_broken_send, NULL, NULL, NULL, NULL };
    struct netcode_client_config_t client_config;
    struct netcode_server_config_t server_config;
    struct netcode_client_stats_t client_stats;
    struct netcode_server_stats_t server_stats;
    struct netcode_client_t * client;
    struct netcode_server_t * server;
    int i;
    netcode_default_client_config( &client_config );
    netcode_default_server_config( &server_config );
    client_config.socket = server_config.socket = &broken;
    client = netcode_client_create( "127.0.0.1", &client_config, 0.0 );
    server = netcode_server_create( order_address, &server_config, 0.0 );
    REQUIRE( client && server );
    memset( &client_stats, 0, sizeof( client_stats ) );
    memset( &server_stats, 0, sizeof( server_stats ) );
    netcode_server_start( server, 1 );
    for ( i = 1; i <= 5; i++ ) {
        netcode_client_update( client, i );
        netcode_server_update( server, i );
    }
    netcode_client_stats( client, &client_stats );
    netcode_server_stats( server, &server_stats );
    CHECK_EQ( client_stats.receive_errors, 5 );
    CHECK_EQ( server_stats.receive_errors, 5 );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
}
