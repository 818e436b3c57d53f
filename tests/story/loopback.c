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
    test_state.expecting = 1; /* a wrong state may be told by an assert: no harm is what counts here */
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

/* What a loopback client sends and nobody reads fills its queue; the rest is dropped and counted. */
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
