/* Story: connecting, and payloads both ways, over a good network and over a bad one. Standard: Client State Machine */

TEST( client_connects_over_a_clean_network )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r;
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    r = world_connect( w, 0, 1001 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    CHECK_EQ( netcode_client_index( w->clients[0] ), 0 );
    CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 4 );
    CHECK( netcode_address_equal( netcode_client_server_address( w->clients[0] ), &w->server_addresses[0] ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 1001 );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &w->client_addresses[0] ) );
    REQUIRE( netcode_server_client_user_data( w->servers[0], 0 ) != NULL );
    CHECK_MEM( netcode_server_client_user_data( w->servers[0], 0 ), r.user_data, NETCODE_USER_DATA_BYTES );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 0 );
    CHECK_NE( netcode_server_client_session( w->servers[0], 0 ), 0 );
    REQUIRE_EQ( w->server_parties[0].log_count, 1 );
    CHECK_EQ( w->server_parties[0].log[0][0], 0 );
    CHECK_EQ( w->server_parties[0].log[0][1], 1 );
    REQUIRE_EQ( w->client_parties[0].log_count, 3 );
    CHECK_EQ( w->client_parties[0].log[0][0], NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( w->client_parties[0].log[0][1], NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    CHECK_EQ( w->client_parties[0].log[1][1], NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
    CHECK_EQ( w->client_parties[0].log[2][0], NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
    CHECK_EQ( w->client_parties[0].log[2][1], NETCODE_CLIENT_STATE_CONNECTED );
}

TEST( many_clients_connect_over_a_lossy_network )
{
    struct world_t * w = world_open( LOSSY, 1, 32, 32 );
    int i;
    for ( i = 0; i < 32; i++ )
        world_connect( w, i, (uint64_t) i + 1 );
    for ( i = 0; i < 32; i++ )
        REQUIRE( world_until( w, i, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
    world_run( w, 20.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 32 );
    for ( i = 0; i < 32; i++ ) {
        CHECK_EQ( netcode_client_state( w->clients[i] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_server_client_id( w->servers[0], netcode_client_index( w->clients[i] ) ), i + 1 );
    }
}

/* What arrives is what was sent, at most once, on each of these networks. */
static void exchange_payloads( float latency, float jitter, float loss, float duplicates, float reorder, int at_least )
{
    enum { COUNT = 300 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    static uint8_t got[2][COUNT];
    int i, bytes, slot, arrived[2] = { 0, 0 };
    uint64_t sequence, last = 0;
    memset( got, 0, sizeof( got ) );
    REQUIRE( world_join( w, 0, 77 ) );
    w->net->latency_milliseconds = latency;
    w->net->jitter_milliseconds = jitter;
    w->net->packet_loss_percent = loss;
    w->net->duplicate_packet_percent = duplicates;
    w->net->reorder_packet_percent = reorder;
    slot = world_slot( w, 0, 77 );
    REQUIRE_GE( slot, 0 );
    for ( i = 0; i < COUNT + 300; i++ ) {
        uint8_t data[NETCODE_MAX_PACKET_SIZE], *packet;
        if ( i < COUNT ) {
            int size = i == 0   ? NETCODE_MAX_PACKET_SIZE
                       : i == 1 ? 2
                                : 2 + test_random_below( NETCODE_MAX_PACKET_SIZE - 1 );
            payload_fill( data, size, i );
            data[0] = (uint8_t) i;
            data[1] = (uint8_t) ( i >> 8 );
            CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ) >= last, 1 );
            last = netcode_client_next_packet_sequence( w->clients[0] );
            netcode_client_send_packet( w->clients[0], data, size );
            netcode_server_send_packet( w->servers[0], slot, data, size );
        }
        world_step( w );
        for ( ;; ) {
            int side, tag;
            side = 0;
            packet = netcode_server_receive_packet( w->servers[0], slot, &bytes, &sequence );
            if ( !packet ) {
                side = 1;
                packet = netcode_client_receive_packet( w->clients[0], &bytes, &sequence );
            }
            if ( !packet )
                break;
            tag = packet[0] | packet[1] << 8;
            REQUIRE( bytes >= 2 && tag < COUNT );
            payload_fill( data, bytes, tag );
            CHECK_MEM( packet + 2, data + 2, bytes - 2 );
            CHECK_EQ( got[side][tag]++, 0 );
            arrived[side]++;
            if ( side == 0 )
                netcode_server_free_packet( w->servers[0], packet );
            else
                netcode_client_free_packet( w->clients[0], packet );
        }
    }
    CHECK_GE( arrived[0], at_least );
    CHECK_GE( arrived[1], at_least );
}

TEST( payloads_clean )
{
    exchange_payloads( 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 300 );
}
TEST( payloads_reordered )
{
    exchange_payloads( 50.0f, 0.0f, 0.0f, 0.0f, 50.0f, 300 );
}
TEST( payloads_duplicated )
{
    exchange_payloads( 20.0f, 0.0f, 0.0f, 100.0f, 0.0f, 300 );
}
TEST( payloads_lossy )
{
    exchange_payloads( 250.0f, 250.0f, 5.0f, 10.0f, 0.0f, 240 );
}

TEST( payload_sequence_is_the_packets )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint64_t expected, sequence = 0;
    int bytes = 0;
    uint8_t * packet;
    REQUIRE( world_join( w, 0, 5 ) );
    expected = netcode_client_next_packet_sequence( w->clients[0] );
    client_send( w, 0, 33, 9 );
    CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ), expected + 1 );
    world_run( w, 0.05 );
    packet = netcode_server_receive_packet( w->servers[0], 0, &bytes, &sequence );
    REQUIRE( packet != NULL );
    CHECK_EQ( bytes, 33 );
    CHECK_EQ( sequence, expected );
    netcode_server_free_packet( w->servers[0], packet );
    world_run( w, 1.0 );
    expected = netcode_server_next_packet_sequence( w->servers[0], 0 );
    server_send( w, 0, 0, 44, 3 );
    world_run( w, 0.05 );
    packet = netcode_client_receive_packet( w->clients[0], &bytes, &sequence );
    REQUIRE( packet != NULL );
    CHECK_EQ( bytes, 44 );
    CHECK_EQ( sequence, expected );
    netcode_client_free_packet( w->clients[0], packet );
}

/* A received packet outlives its client, its slot and a stop and start of the server. */
TEST( received_packets_stay_valid_until_freed )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 2 );
    uint8_t expected[400], *first, *second;
    int bytes;
    payload_fill( expected, 400, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    client_send( w, 0, 400, 1 );
    server_send( w, 0, 0, 400, 1 );
    world_run( w, 0.1 );
    first = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
    second = netcode_client_receive_packet( w->clients[0], &bytes, NULL );
    REQUIRE( first && second );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    REQUIRE( world_join( w, 1, 2 ) );
    client_send( w, 1, 300, 2 );
    world_run( w, 0.1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    netcode_server_stop( w->servers[0] );
    netcode_server_start( w->servers[0], 3 );
    REQUIRE( world_join( w, 0, 3 ) );
    client_send( w, 0, 300, 3 );
    server_send( w, 0, 0, 300, 3 );
    world_run( w, 0.1 );
    CHECK_MEM( first, expected, 400 );
    CHECK_MEM( second, expected, 400 );
    CHECK_MEM( first + 400, "\0\0\0\0\0\0\0\0", 8 ); /* bit readers read ahead: nothing of the tag is left there */
    netcode_server_free_packet( w->servers[0], first );
    netcode_client_free_packet( w->clients[0], second );
}

TEST( keep_alives_hold_an_idle_connection )
{
    struct world_t * w = world_open( LOSSY, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 5 ) );
    world_run( w, 60.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* Standard: Connected. About 10 Hz each way in silence, and none besides a stream of payloads. */
TEST( keep_alives_come_at_ten_hertz_and_only_in_silence )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark, i;
    REQUIRE( world_join( w, 0, 5 ) );
    mark = w->records.count;
    world_run( w, 10.0 );
    CHECK_GE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 85 );
    CHECK_LE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 102 );
    CHECK_GE( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 85 );
    CHECK_LE( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 102 );
    mark = w->records.count;
    for ( i = 0; i < 100; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 0, 10, i );
        world_step( w );
        client_drain( w, 0 );
        server_drain( w, 0, 0 );
    }
    CHECK_LE( world_count( w, mark, NULL, NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 2 );
}

/* Standard: Connected Clients. Until the client was heard from, a keep-alive goes before every payload to it. */
TEST( payloads_to_an_unconfirmed_client_follow_a_keep_alive )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_server_client_stats_t stats;
    struct puppet_t p;
    int before;
    puppet_make( &p, w, 0, 9, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK_EQ( stats.confirmed, 0 );
    before = p.keep_alives;
    server_send( w, 0, 0, 10, 1 );
    server_send( w, 0, 0, 10, 2 );
    puppet_poll( &p );
    CHECK_EQ( p.keep_alives, before + 2 );
    CHECK_EQ( p.payloads, 2 );
    puppet_keep_alive( &p );
    puppet_step( &p );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK_EQ( stats.confirmed, 1 );
    before = p.keep_alives;
    server_send( w, 0, 0, 10, 1 );
    puppet_poll( &p );
    CHECK_EQ( p.keep_alives, before );
    CHECK_EQ( p.payloads, 3 );
    CHECK_EQ( p.client_index, 0 );
    CHECK_EQ( p.max_clients, 2 );
}

/* Standard: Sending Challenge Response. A payload that overtakes the keep-alive is discarded, and does not connect. */
TEST( payloads_before_connected_are_discarded )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    world_connect( w, 0, 4 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    world_run( w, 0.1 );
    REQUIRE_EQ( world_slot( w, 0, 4 ), 0 );
    server_send( w, 0, 0, 10, 1 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    w->cut_types = 0;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    CHECK_EQ( client_drain( w, 0 ), 0 );
}

/* The wire of one handshake, byte by byte where the standard fixes them. */
TEST( handshake_on_the_wire )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = world_connect( w, 0, 4 );
    const struct world_datagram_t * d;
    uint8_t expected[REQUEST_BYTES], body[2048], response[2048];
    int type;
    uint64_t sequence;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    wire_request( &r, expected );
    d = world_last( w, &w->client_addresses[0], &w->server_addresses[0], NETCODE_PACKET_REQUEST );
    REQUIRE( d && d->bytes == REQUEST_BYTES );
    CHECK_MEM( d->data, expected, REQUEST_BYTES );
    d = world_last( w, &w->server_addresses[0], &w->client_addresses[0], NETCODE_PACKET_CHALLENGE );
    REQUIRE( d != NULL );
    CHECK_EQ( d->bytes, 333 );
    CHECK_EQ( wire_open( d->data, d->bytes, r.to_client_key, &type, &sequence, body ), 308 );
    CHECK( sequence >> 63 == 1 );
    d = world_last( w, &w->client_addresses[0], &w->server_addresses[0], NETCODE_PACKET_RESPONSE );
    REQUIRE( d != NULL );
    CHECK_EQ( wire_open( d->data, d->bytes, r.to_server_key, &type, &sequence, response ), 308 );
    CHECK_MEM( response, body, 308 );
    CHECK( sequence < (uint64_t) 1 << 48 );
    d = world_last( w, &w->server_addresses[0], &w->client_addresses[0], NETCODE_PACKET_KEEP_ALIVE );
    REQUIRE( d != NULL );
    CHECK_EQ( wire_open( d->data, d->bytes, r.to_client_key, &type, &sequence, body ), 8 );
    CHECK_EQ( get( body, 4 ), 0 );
    CHECK_EQ( get( body + 4, 4 ), 2 );
    CHECK( sequence < (uint64_t) 1 << 48 );
}

TEST( lossy_connect_from_many_seeds )
{
    int i;
    for ( i = 0; i < 40; i++ ) {
        struct world_t * w = world_open( LOSSY, 1, 1, 1 );
        world_connect( w, 0, 1 );
        if ( !CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 12.0 ) ) )
            printf( "    round %d of the seed\n", i );
        world_close( w );
    }
}
