/* Story: loopback clients, alone and beside remote players (a listen server). */

static int loopback_sent, loopback_bytes, loopback_index;
static uint64_t loopback_sequence;
static uint8_t loopback_data[NETCODE_MAX_PACKET_SIZE];

static void loopback_note( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                           uint64_t sequence )
{
    (void) party;
    loopback_sent++;
    loopback_index = client_index;
    loopback_bytes = bytes;
    loopback_sequence = sequence;
    memcpy( loopback_data, data, (size_t) bytes );
}

/* Straight into the other object. */
static void loopback_to_client( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                                uint64_t sequence )
{
    (void) client_index;
    netcode_client_process_loopback_packet( party->world->clients[0], data, bytes, sequence );
}

static void loopback_to_server( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                                uint64_t sequence )
{
    netcode_server_process_loopback_packet( party->world->servers[0], client_index, data, bytes, sequence );
}

TEST( loopback_client_alone )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    uint8_t user_data[NETCODE_USER_DATA_BYTES], data[100], *packet;
    int bytes, mark;
    uint64_t sequence;
    payload_fill( user_data, NETCODE_USER_DATA_BYTES, 5 );
    payload_fill( data, 100, 6 );
    w->server_parties[0].on_loopback = loopback_note;
    w->client_parties[0].on_loopback = loopback_note;
    netcode_client_connect_loopback( w->clients[0], 2, 4 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_client_loopback( w->clients[0] ), 1 );
    CHECK_EQ( netcode_client_index( w->clients[0] ), 2 );
    CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 4 );
    netcode_server_connect_loopback_client( w->servers[0], 2, 777, user_data );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 2 ), 1 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 2 ), 1 );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 2 ), 777 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_MEM( netcode_server_client_user_data( w->servers[0], 2 ), user_data, NETCODE_USER_DATA_BYTES );
    mark = w->records.count;
    loopback_sent = 0;
    netcode_server_send_packet( w->servers[0], 2, data, 100 );
    CHECK_EQ( loopback_sent, 1 );
    CHECK_EQ( loopback_index, 2 );
    CHECK_EQ( loopback_bytes, 100 );
    CHECK_MEM( loopback_data, data, 100 );
    netcode_client_process_loopback_packet( w->clients[0], data, 100, 55 );
    packet = netcode_client_receive_packet( w->clients[0], &bytes, &sequence );
    REQUIRE( packet != NULL );
    CHECK_EQ( bytes, 100 );
    CHECK_EQ( sequence, 55 );
    CHECK_MEM( packet, data, 100 );
    netcode_client_free_packet( w->clients[0], packet );
    netcode_client_send_packet( w->clients[0], data, 50 );
    CHECK_EQ( loopback_sent, 2 );
    CHECK_EQ( loopback_bytes, 50 );
    CHECK_EQ( loopback_index, 2 );
    netcode_server_process_loopback_packet( w->servers[0], 2, data, 50, 9 );
    packet = netcode_server_receive_packet( w->servers[0], 2, &bytes, &sequence );
    REQUIRE( packet != NULL );
    CHECK_EQ( bytes, 50 );
    CHECK_EQ( sequence, 9 );
    netcode_server_free_packet( w->servers[0], packet );
    world_run( w, 60.0 ); /* loopback clients do not time out, and nothing goes over the network */
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( w->records.count, mark );
    netcode_server_disconnect_loopback_client( w->servers[0], 2 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 2 ), 0 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 2 ), 0 );
    netcode_client_disconnect_loopback( w->clients[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( netcode_client_loopback( w->clients[0] ), 0 );
    CHECK_EQ( w->server_parties[0].log_count, 2 );
    CHECK_EQ( w->records.count, mark );
}

/* The host plays beside remote players; stopping the server ends them all. */
TEST( listen_server )
{
    struct world_t * w = world_open( LOSSY, 1, 3, 3 );
    int i, got = 0;
    w->server_parties[0].on_loopback = loopback_to_client;
    w->client_parties[0].on_loopback = loopback_to_server;
    netcode_server_connect_loopback_client( w->servers[0], 0, 100, NULL );
    netcode_client_connect_loopback( w->clients[0], 0, 3 );
    REQUIRE( world_join( w, 1, 101 ) );
    REQUIRE( world_join( w, 2, 102 ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 3 );
    CHECK_EQ( world_slot( w, 0, 101 ) == 0, 0 ); /* remote players do not take the host's slot */
    for ( i = 0; i < 50; i++ ) {
        client_send( w, 0, 30, i );
        server_send( w, 0, 0, 30, i );
        server_send( w, 0, 1, 30, i );
        world_step( w );
        got += server_drain( w, 0, 0 );
        CHECK_EQ( client_drain( w, 0 ), 1 );
    }
    CHECK_EQ( got, 50 );
    netcode_server_disconnect_all_clients( w->servers[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ) <= 1, 1 );
    netcode_server_stop( w->servers[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( loopback_in_wrong_states_is_refused )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t data[10] = { 0 };
    REQUIRE( world_join( w, 0, 1 ) );
    test_state.expecting = 1; /* a wrong state may be reported by an assert: no harm is what counts here */
    netcode_client_connect_loopback( w->clients[0], 1, 2 );
    CHECK_EQ( netcode_client_loopback( w->clients[0] ), 0 );
    netcode_client_disconnect_loopback( w->clients[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    netcode_server_connect_loopback_client( w->servers[0], 0, 5, NULL );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 1 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 0 );
    netcode_server_disconnect_loopback_client( w->servers[0], 0 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
    netcode_server_process_loopback_packet( w->servers[0], 0, data, 10, 1 );
    netcode_client_process_loopback_packet( w->clients[0], data, 10, 1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    netcode_server_process_loopback_packet( w->servers[0], 1, data, 10, 1 );
    CHECK_EQ( server_drain( w, 0, 1 ), 0 );
    test_state.expecting = 0;
}

/* What a loopback client sends and the server does not read fills its queue; the rest is dropped and counted. */
TEST( loopback_queue_is_full )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_server_client_stats_t stats;
    uint8_t data[10] = { 1 };
    int i;
    netcode_server_connect_loopback_client( w->servers[0], 1, 77, NULL );
    for ( i = 0; i < 300; i++ )
        netcode_server_process_loopback_packet( w->servers[0], 1, data, 10, (uint64_t) i );
    netcode_server_client_stats( w->servers[0], 1, &stats );
    CHECK_EQ( stats.packets_received, 256 );
    CHECK_EQ( stats.packets_dropped, 300 - 256 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 300 - 256 );
}

#if !defined( _WIN32 )

/* Else sixteen of them would make a client forget its tokens. Errors of a socket that it does not use are nothing to it. */
TEST( mutants_a_loopback_client_has_no_token_and_no_socket )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    struct netcode_datagram_t error;
    uint8_t data[NETCODE_MAX_PACKET_SIZE + 1] = { 1 };
    netcode_client_connect_loopback( client, 0, 1 );
    CHECK_EQ( client->remembered_count, 0 );
    CHECK( test_is_zeros( client->attempts, sizeof( client->attempts ) ) );
    memset( &error, 0, sizeof( error ) );
    error.status = NETCODE_DATAGRAM_ERROR;
    error.error = 111;
    nc_client_on_socket_error( client, &error );
    CHECK( test_is_zeros( client->attempts, sizeof( client->attempts ) ) );
    CHECK_EQ( client_stats( w, 0 ).receive_errors, 1 );
    BAD( netcode_client_process_loopback_packet( client, data, NETCODE_MAX_PACKET_SIZE + 1, 0 ) );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    netcode_client_process_loopback_packet( client, data, NETCODE_MAX_PACKET_SIZE, 0 );
    CHECK_EQ( client_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD], 1 );
    CHECK_EQ( client_stats( w, 0 ).packets_received[NETCODE_PACKET_DISCONNECT], 0 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

#endif

static int loopback_packets;

static void count_loopback( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                            uint64_t sequence )
{
    (void) party;
    (void) client_index;
    (void) data;
    (void) bytes;
    (void) sequence;
    loopback_packets++;
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
    w->client_parties[1].on_loopback = count_loopback;
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

TEST( corners_a_loopback_client_is_not_replaced )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 5, NULL );
    for ( int i = 0; i < 2; i++ ) {
        puppet_make( &p, w, 0, 5, "10.2.0.1:6000" );
        if ( i )
            puppet_expires( &p, UINT64_MAX );
        CHECK( !puppet_connect( &p ) );
        CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 1 );
        CHECK_GE( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 + i );
    }
}

/* Without a callback a loopback client is there all the same; what is sent to it or by it goes nowhere, said once. */
TEST( loopback_without_a_callback )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
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
    CHECK_EQ( logged_times( "client: loopback payloads go nowhere" ), 1 );
    CHECK_EQ( logged_times( "server: loopback payloads go nowhere" ), 1 );
    netcode_client_process_loopback_packet( w->clients[0], (const uint8_t *) "x", 1, 1 );
    netcode_server_process_loopback_packet( w->servers[0], 1, (const uint8_t *) "x", 1, 1 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( server_drain( w, 0, 1 ), 1 );
    CHECK_EQ( server_stats( w, 0 ).clients, 1 );
}

/* Each refusal of a loopback client says which it is. */
TEST( refused_loopback_clients_get_the_reason )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
    world_add_server( w, 4 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 7, NULL );
    netcode_server_connect_loopback_client( w->servers[0], 2, 7, NULL );
    CHECK_EQ( logged_times( "no loopback client 7 in slot 2: a client with this id is connected" ), 1 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 8, NULL );
    CHECK_EQ( logged_times( "no loopback client 8 in slot 1: the slot is in use" ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( logged_times( "\n" ), 2 );
}

static struct netcode_client_t * loopback_sender;

static int loopback_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    struct netcode_client_t * client = loopback_sender;
    (void) context;
    (void) datagrams;
    loopback_sender = NULL;
    if ( client ) {
        netcode_client_disconnect( client );
        netcode_client_connect_loopback( client, 0, 4 );
    }
    return count;
}

static void loopback_after_destroy( struct world_party_t * party, int previous, int state )
{
    struct netcode_client_t * client = party->world->clients[0];
    (void) previous;
    if ( state != NETCODE_CLIENT_STATE_DISCONNECTED )
        return;
    netcode_client_destroy( client );
    netcode_client_connect_loopback( client, 0, 4 ); /* which is logged */
    CHECK_EQ( netcode_client_loopback( client ), 0 );
}

/* From within its own send it is a loopback client at once; one that is destroyed in a callback becomes none. */
TEST( loopback_from_within_a_call )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    loopback_sender = w->clients[0];
    w->clients[0]->base.socket.send = loopback_send;
    world_run( w, 2.0 );
    CHECK( loopback_sender == NULL );
    CHECK_EQ( netcode_client_loopback( w->clients[0] ), 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    w->client_parties[0].on_change = loopback_after_destroy;
    netcode_client_disconnect_loopback( w->clients[0] );
    w->clients[0] = NULL;
}
