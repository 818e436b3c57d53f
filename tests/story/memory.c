/*  Story: memory. It is asked for in create and start alone, as much as was foretold, and where there is none nothing
    breaks. */

TEST( memory_is_what_was_foretold )
{
    static const int slots[] = { 1, 2, 64, 256, 1000 };
    int i, variant;
    for ( variant = 0; variant < 3; variant++ )
        for ( i = 0; i < 5; i++ ) {
            struct world_t * w = world_new( CLEAN );
            size_t before = w->allocator.bytes;
            if ( variant == 1 ) {
                w->server_config.packet_pool_buffers = 500;
                w->server_config.pending_handshakes = 33;
                w->server_config.consumed_tokens = 77;
                w->client_config.packet_pool_buffers = 50;
            }
            if ( variant == 2 ) {
                w->server_config.batch_sends = w->client_config.batch_sends = 1;
                w->server_config.packet_quota = 7;
                w->client_config.packet_quota = 7;
            }
            world_add_server( w, slots[i] );
            w->server_config.socket = &w->sockets[0].inner; /* as it was made: over a socket of the caller's */
            CHECK_EQ( w->allocator.bytes - before, netcode_server_memory( &w->server_config, slots[i] ) );
            before = w->allocator.bytes;
            world_add_client( w );
            w->client_config.socket = &w->sockets[1].inner;
            CHECK_EQ( w->allocator.bytes - before, netcode_client_memory( &w->client_config ) );
            world_close( w );
        }
}

TEST( nothing_is_allocated_after_start )
{
    struct world_t * w = world_open( LOSSY, 1, 8, 8 );
    int before, i, round;
    for ( i = 0; i < 8; i++ )
        world_connect( w, i, 1 + (uint64_t) i );
    world_run( w, 10.0 ); /* the simulator has grown to its size by now */
    for ( round = 0; round < 2; round++ ) {
        before = w->allocator.calls;
        for ( i = 0; i < 500; i++ ) {
            int j;
            for ( j = 0; j < 8; j++ ) {
                client_send( w, j, 500, i );
                server_send( w, 0, j, 500, i );
                server_drain( w, 0, j );
                client_drain( w, j );
            }
            if ( i == 200 )
                netcode_client_disconnect( w->clients[2] );
            if ( i == 250 )
                world_connect( w, 2, 50 + (uint64_t) round );
            world_step( w );
        }
        if ( round == 1 )
            CHECK_EQ( w->allocator.calls, before );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 8 );
}

TEST( start_and_stop_give_back_what_they_take )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int live, i;
    netcode_server_stop( w->servers[0] );
    live = w->allocator.live;
    for ( i = 0; i < 50; i++ ) {
        netcode_server_start( w->servers[0], 1 + i );
        netcode_server_stop( w->servers[0] );
    }
    CHECK_LE( w->allocator.live, live );
}

/* Threat 51: allocation n fails, for every n. */
TEST( client_create_when_allocation_n_fails )
{
    int n, done = 0;
    for ( n = 1; !done && n < 50; n++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 0 );
        struct netcode_client_config_t config = w->client_config;
        struct netcode_socket_t socket;
        struct netcode_address_t address = address_of( "10.1.0.1:50000" );
        struct netcode_client_t * client;
        struct world_socket_t * s = world_socket( w, &address, &socket );
        int live = w->allocator.live;
        config.socket = &socket;
        config.callback_context = &w->client_parties[0];
        w->client_parties[0].world = w;
        w->allocator.fail_at = w->allocator.calls + n;
        client = netcode_client_create( "10.1.0.1:50000", &config, 0.0 );
        if ( !client ) {
            CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED );
            CHECK_EQ( w->allocator.live, live );
            w->allocator.fail_at = 0;
            if ( !s->open )
                world_socket( w, &address, &socket );
            client = netcode_client_create( "10.1.0.1:50000", &config, 0.0 );
            REQUIRE( client != NULL );
        } else
            done = 1;
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_NONE );
        netcode_client_destroy( client );
        CHECK_EQ( w->allocator.live, live );
        world_close( w );
    }
    CHECK( done );
    CHECK_GT( n, 2 );
}

TEST( server_create_and_start_when_allocation_n_fails )
{
    int n, failed_create = 0, failed_start = 0, done = 0;
    for ( n = 1; !done && n < 100; n++ ) {
        struct world_t * w = world_new( CLEAN );
        struct netcode_server_config_t config = w->server_config;
        struct netcode_socket_t socket;
        struct netcode_address_t address = address_of( "10.0.0.1:40000" );
        struct world_socket_t * s = world_socket( w, &address, &socket );
        struct netcode_server_t * server;
        int live = w->allocator.live, lines;
        config.socket = &socket;
        config.callback_context = &w->server_parties[0];
        w->server_parties[0].world = w;
        w->allocator.fail_at = w->allocator.calls + n;
        server = netcode_server_create( "10.0.0.1:40000", &config, 0.0 );
        if ( !server ) {
            failed_create++;
            CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED );
            CHECK_EQ( w->allocator.live, live );
            if ( s->open )
                socket.close( socket.context );
            world_close( w );
            continue;
        }
        lines = w->server_parties[0].lines;
        netcode_server_start( server, 4 );
        if ( !netcode_server_running( server ) ) {
            failed_start++;
            CHECK_GT( w->server_parties[0].lines, lines ); /* it says so */
            CHECK_EQ( netcode_server_max_clients( server ), 0 );
            netcode_server_update( server, 1.0 );
            CHECK_EQ( netcode_server_num_connected_clients( server ), 0 );
        } else
            done = 1;
        w->allocator.fail_at = 0;
        netcode_server_start( server, 5 );
        CHECK_EQ( netcode_server_running( server ), 1 );
        CHECK_EQ( netcode_server_max_clients( server ), 5 );
        netcode_server_destroy( server );
        CHECK_EQ( w->allocator.live, live );
        world_close( w );
    }
    CHECK( done );
    CHECK_GE( failed_create, 1 );
    CHECK_GE( failed_start, 1 );
}

TEST( simulator_when_allocation_n_fails )
{
    struct allocator_t * a = (struct allocator_t *) calloc( 1, sizeof( *a ) );
    int n, done = 0;
    REQUIRE( a != NULL );
    for ( n = 1; !done && n < 20; n++ ) {
        struct netcode_network_simulator_t * net;
        a->fail_at = a->calls + n;
        net = netcode_network_simulator_create( a, allocator_allocate, allocator_free );
        done = a->calls < a->fail_at;
        CHECK_EQ( net != NULL, done );
        netcode_network_simulator_destroy( net );
        CHECK_EQ( a->live, 0 );
    }
    CHECK( done );
    free( a );
}

/* The simulator may run out of memory in flight: datagrams are lost, nothing else. */
TEST( simulator_without_memory_loses_datagrams )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    w->net->latency_milliseconds = 500.0f;
    for ( i = 0; i < 300; i++ ) {
        w->net_allocator.fail_at = w->net_allocator.calls + 1;
        client_send( w, 0, 1000, i );
    }
    w->net_allocator.fail_at = 0;
    w->net->latency_milliseconds = 0.0f;
    world_run( w, 2.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/* A packet pool of the promised size: 256 clients can each send 16 packets between two updates, and none is dropped. */
TEST( default_pool_takes_16_packets_of_each_of_256_clients )
{
    struct world_t * w = world_open( CLEAN, 1, 256, 0 );
    static struct puppet_t p[256];
    int i, j, count = 0;
    w->step = 0.001;
    for ( i = 0; i < 256; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_connect( &p[i] ) );
    }
    w->recording = 0;
    for ( i = 0; i < 256; i++ )
        for ( j = 0; j < 16; j++ )
            puppet_say( &p[i], 100, j );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).packets_queued, 256 * 16 );
    for ( i = 0; i < 256; i++ )
        count += server_drain( w, 0, i );
    CHECK_EQ( count, 256 * 16 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_POOL_EMPTY ) + server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 0 );
}

/*  Clients that fill their queues and leave, on a server whose application reads the connected slots only: what they
    left behind gives way to the living. */
TEST( payloads_left_in_empty_slots_give_way )
{
    struct world_t * w = world_open( CLEAN, 1, 64, 0 );
    struct puppet_t p;
    int i, j;
    w->step = 0.001;
    for ( i = 0; i < 63; i++ ) {
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p.address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_connect( &p ) );
        for ( j = 0; j < 256; j++ )
            puppet_say( &p, 10, j );
        world_step( w );
        puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
        world_step( w );
        netcode_server_connect_loopback_client( w->servers[0], i, 10000 + (uint64_t) i,
                                                NULL ); /* another takes the slot */
        netcode_server_disconnect_loopback_client( w->servers[0], i );
        puppet_make( &p, w, 0, 500 + (uint64_t) i, "10.2.0.2:6000" );
        p.address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_connect( &p ) );
        for ( j = 0; j < 256; j++ )
            puppet_say( &p, 10, j );
        puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
        world_step( w );
    }
    puppet_make( &p, w, 0, 1000, "10.2.0.3:6000" );
    REQUIRE( puppet_connect( &p ) );
    for ( j = 0; j < 16; j++ )
        puppet_say( &p, 10, j );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 1000 ) ), 16 );
}

/* The same, where each slot is left full by one session and not used again. */
TEST( payloads_left_in_many_slots_give_way )
{
    struct world_t * w = world_open( CLEAN, 1, 64, 0 );
    static struct puppet_t p[40];
    int i, j;
    w->step = 0.001;
    for ( i = 0; i < 40; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_connect( &p[i] ) );
    }
    for ( i = 0; i < 39; i++ ) {
        for ( j = 0; j < 256; j++ )
            puppet_say( &p[i], 10, j );
        world_step( w );
    }
    for ( i = 0; i < 39; i++ ) {
        puppet_send( &p[i], NETCODE_PACKET_DISCONNECT, NULL, 0 );
        world_step( w );
    }
    for ( j = 0; j < 16; j++ )
        puppet_say( &p[39], 10, j );
    world_run( w, 0.1 );
    CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 40 ) ), 16 );
}

/* Destroy wipes everything, received packets included. */
/* A pool outlives its start while the caller holds a packet of it, and is wiped when it goes: with the last packet, or the server. */
TEST( received_payloads_are_wiped_when_their_pool_goes )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t secret[64];
    int round;
    w->allocator.keep = 1;
    world_add_server( w, 2 );
    payload_fill( secret, 64, 77 );
    for ( round = 0; round < 3; round++ ) { /* unread; held and freed; held to the end */
        uint8_t * packet = NULL;
        int bytes, client = world_add_client( w );
        REQUIRE( world_join( w, client, 1 + (uint64_t) round ) );
        client_send( w, client, 64, 77 );
        world_run( w, 0.1 );
        world_destroy_client( w, client );
        CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), 1 );
        if ( round > 0 )
            packet = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
        CHECK_EQ( packet != NULL, round > 0 );
        netcode_server_start( w->servers[0], 3 + round );
        CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), round > 0 );
        if ( round == 1 )
            netcode_server_free_packet( w->servers[0], packet );
        CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), round == 2 );
    }
    world_destroy_server( w, 0 );
    CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), 0 );
}

TEST( received_payloads_are_wiped_at_destroy )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t secret[64];
    w->allocator.keep = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    payload_fill( secret, 64, 77 );
    client_send( w, 0, 64, 77 );
    server_send( w, 0, 0, 64, 77 );
    world_run( w, 0.1 );
    CHECK_GE( allocator_search( &w->allocator, secret, 64 ), 2 );
    world_destroy_client( w, 0 );
    world_destroy_server( w, 0 );
    CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), 0 );
}
