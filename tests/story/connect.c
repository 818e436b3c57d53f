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
    world_restart( w, 0, 3 );
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

/* Standard: Connected. About 10 Hz each way in silence. Besides a stream of payloads one probe a second, and its echo. */
TEST( keep_alives_come_at_ten_hertz_and_only_in_silence )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark, i;
    REQUIRE( world_join( w, 0, 5 ) );
    mark = w->records.count;
    world_run( w, 10.0 );
    CHECK_GE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 85 );
    CHECK_LE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 112 );
    CHECK_GE( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 85 );
    CHECK_LE( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 112 );
    mark = w->records.count;
    for ( i = 0; i < 300; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 0, 10, i );
        world_step( w );
        client_drain( w, 0 );
        server_drain( w, 0, 0 );
    }
    CHECK_LE( world_count( w, mark, NULL, NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ),
              2 + (int) ( 4.0 * 300.0 * w->step + 1.0 ) );
}

/* Standard: Connected Clients. Until the client was heard from, a keep-alive goes before every payload to it. */
TEST( payloads_to_an_unconfirmed_client_follow_a_keep_alive )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_server_client_stats_t stats;
    struct puppet_t p;
    int before;
    REQUIRE( puppet_join( &p, w, 0, 9, "10.2.0.1:6000" ) );
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

/* A client of a link-local address connects to servers of its own link: tokens do not say which interface that is. */
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
        if ( i == 0 ) {
            struct netcode_server_config_t there = w->server_config;
            there.network_simulator = w->net;
            there.callback_context = &w->server_parties[0];
            struct netcode_server_t * server = netcode_server_create( "[fe80::2%7]:4000", &there, w->time );
            REQUIRE( server != NULL );
            netcode_server_start( server, 1 );
            for ( int k = 0; k < 30; k++ ) {
                world_step( w );
                netcode_server_update( server, w->time );
                netcode_client_update( client, w->time );
            }
            CHECK_EQ( netcode_client_state( client ), NETCODE_CLIENT_STATE_CONNECTED );
            netcode_server_destroy( server );
        }
        netcode_client_destroy( client );
    }
}

/* NULL or nothing for the second address: one address, as in the known API. */
TEST( a_dual_object_without_its_second_address_has_one )
{
    static const char * const seconds[] = { NULL, "" };
    for ( int i = 0; i < 2; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct netcode_client_config_t client_config = w->client_config;
        struct netcode_server_config_t server_config = w->server_config;
        client_config.callback_context = &w->client_parties[0];
        server_config.callback_context = &w->server_parties[0];
        client_config.network_simulator = server_config.network_simulator = w->net;
        struct netcode_client_t * c =
            netcode_client_create_dual( "10.2.0.1:50000", seconds[i], &client_config, w->time );
        struct netcode_server_t * s =
            netcode_server_create_dual( "10.2.0.2:40000", seconds[i], &server_config, w->time );
        REQUIRE( c != NULL && s != NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_client_get_port( c ), 50000 );
        CHECK_EQ( netcode_server_get_port( s ), 40000 );
        netcode_client_destroy( c );
        netcode_server_destroy( s );
        REFUSED( CHECK( netcode_client_create_dual( NULL, "10.2.0.1:1", &client_config, w->time ) == NULL ) );
        REFUSED( CHECK( netcode_server_create_dual( NULL, "10.2.0.1:1", &server_config, w->time ) == NULL ) );
        world_close( w );
    }
}

/* A player's token is read only: it may lie in constant memory. */
TEST( a_constant_token_connects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    mint( &r, w->tokens[0] );
    const uint8_t * token = w->tokens[0];
    int ( *connect_with )( struct netcode_client_t *, const uint8_t * ) = netcode_client_connect;
    CHECK_EQ( connect_with( w->clients[0], token ), NETCODE_OK );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

/* ---- faster connecting ---- */

TEST( decision_11_packets_leave_as_soon_as_the_state_changes )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark, i;
    w->step = 0.001;
    for ( i = 0; i < 20; i++ )
        world_step( w );
    world_connect( w, 0, 1 );
    CHECK_EQ( w->records.count, 0 ); /* connect itself sends nothing */
    world_step( w );
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 1 );
    for ( i = 0; i < 20 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE;
          i++ )
        world_step( w );
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_RESPONSE, 0 ),
              1 ); /* in the very update that had the challenge */
    CHECK_EQ( world_count( w, 0, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 1 );
    for ( i = 0; i < 20 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED; i++ )
        world_step( w );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_LE( w->time - 100.0, 0.05 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 2 );
    mark = w->records.count;
    world_run( w, 4.0 );
    CHECK_GE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 39 );
    CHECK_LE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_REQUEST, 0 ), 41 );
}

/* ---- 70: what a keep-alive names ---- */

/*  70: a keep-alive that names a slot that can not be connects all the same, since a deployed server names its client ids
    there. */
TEST( threat_70_impossible_slots_connect )
{
    static const struct {
        uint32_t sent[2];
        int slot, slots;
    } rows[] = { { { 0, 1 }, 0, 1 },
                 { { 3, 4 }, 3, 4 },
                 { { 65534, 65535 }, 65534, 65535 },
                 { { 65534, UINT32_MAX }, 65534, 65535 },
                 { { 0, 0 }, -1, 0 },
                 { { 4, 4 }, -1, 4 },
                 { { 70001, 4 }, -1, 4 },
                 { { 65535, 65536 }, -1, 65535 },
                 { { 65536, 100000 }, -1, 65535 },
                 { { 0x7ffffffe, 0x7fffffff }, -1, 65535 },
                 { { 0x80000000u, 0x90000000u }, -1, 65535 },
                 { { UINT32_MAX, 0 }, -1, 0 },
                 { { UINT32_MAX, UINT32_MAX }, -1, 65535 } };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
        struct netcode_event_t event;
        struct recipe_t r;
        uint8_t body[2048], *at = body;
        const struct world_datagram_t * sent;
        int type;
        uint64_t sequence;
        w->client_config.events = 1;
        world_add_server( w, 4 );
        world_add_client( w );
        w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
        r = world_connect( w, 0, 2 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
        put( &at, rows[i].sent[0], 4 );
        put( &at, rows[i].sent[1], 4 );
        send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, 1, body, 8 );
        send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, 2, "hello", 5 );
        w->cut_types = 0;
        world_run( w, 0.05 );
        REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_client_index( w->clients[0] ), rows[i].slot );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), rows[i].slots );
        CHECK_EQ( logged_times( "its index is -1" ), rows[i].slot < 0 );
        while ( netcode_client_next_event( w->clients[0], &event ) ) {
            CHECK_EQ( event.client_index, rows[i].slot );
            if ( event.type == NETCODE_EVENT_PAYLOAD )
                netcode_client_free_packet( w->clients[0], event.data );
        }
        world_run( w, 0.3 ); /* its own keep-alives carry the numbers as they came */
        sent = world_last( w, &w->client_addresses[0], &w->server_addresses[0], NETCODE_PACKET_KEEP_ALIVE );
        REQUIRE( sent != NULL );
        REQUIRE_EQ( wire_open( sent->data, sent->bytes, r.to_server_key, &type, &sequence, body ), 8 );
        CHECK_EQ( get( body, 4 ), rows[i].sent[0] );
        CHECK_EQ( get( body + 4, 4 ), rows[i].sent[1] );
        netcode_client_disconnect( w->clients[0] );
        CHECK_EQ( netcode_client_index( w->clients[0] ), -1 );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 0 );
        world_close( w );
    }
}

/* ---- 45: every way to write a place leads to one form ---- */

/* 45: one form for each place, however it is written. */
TEST( hostile_45_mapped_addresses_have_one_form )
{
    struct netcode_address_t a = address_of( "[::ffff:10.2.0.1]:6000" ), b = address_of( "10.2.0.1:6000" );
    CHECK_EQ( a.type, NETCODE_ADDRESS_IPV4 );
    CHECK_EQ( netcode_address_equal( &a, &b ), 1 );
    a = address_of( "[::ffff:a02:1]:6000" );
    CHECK_EQ( netcode_address_equal( &a, &b ), 1 );
}

/* The server knows a client by the address that its datagrams come from, however the network writes that. */
static void threat_one_place( const struct netcode_address_t * first, const struct netcode_address_t * second )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.address = *first;
    REQUIRE( puppet_challenged( &p ) );
    p.address = *second;
    puppet_answer( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    puppet_say( &p, 10, 1 );
    p.address = *first;
    puppet_say( &p, 10, 2 );
    puppet_step( &p );
    CHECK_EQ( server_drain( w, 0, 0 ), 2 );
    world_close( w );
}

TEST( threat_45_every_way_to_write_a_place )
{
    static const char * const rows[][2] = {
        { "10.2.0.1:6000", "[::ffff:10.2.0.1]:6000" },
        { "10.2.0.1:6000", "[::ffff:a02:1]:6000" },
        { "10.2.0.1:6000", "[0:0:0:0:0:FFFF:0a02:0001]:6000" },
        { "[2001:db8::1]:6000", "[2001:0DB8:0:0:0:0:0:1]:6000" },
        { "[fe80::1%2]:6000", "[fe80:0::0:1%2]:6000" },
    };
    struct netcode_address_t a, b, mapped;
    char text[2][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i;
    for ( i = 0; i < 5; i++ ) {
        a = address_of( rows[i][0] );
        b = address_of( rows[i][1] );
        CHECK_MEM( &a, &b, sizeof( a ) );
        CHECK_EQ( netcode_address_equal( &a, &b ), 1 );
        CHECK_STR( netcode_address_to_string( &a, text[0] ), netcode_address_to_string( &b, text[1] ) );
        threat_one_place( &a, &b );
    }
    memset( &mapped, 0, sizeof( mapped ) ); /* as a socket of both families would say it */
    mapped.type = NETCODE_ADDRESS_IPV6;
    mapped.port = 6000;
    mapped.data.ipv6[5] = 0xffff;
    mapped.data.ipv6[6] = 0x0a02;
    mapped.data.ipv6[7] = 0x0001;
    a = address_of( "10.2.0.1:6000" );
    CHECK_EQ( netcode_address_equal( &a, &mapped ), 1 );
    threat_one_place( &a, &mapped );
    threat_one_place( &mapped, &a );
    a = address_of( "[fe80::1%2]:6000" ); /* the same number on two interfaces is two places */
    b = address_of( "[fe80::1%3]:6000" );
    CHECK_EQ( netcode_address_equal( &a, &b ), 0 );
}
