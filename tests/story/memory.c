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

/* Over a simulator or the override callbacks no socket is opened, so none is counted. */
TEST( corners_memory_of_each_transport )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_client_config_t client = w->client_config;
    struct netcode_server_config_t server = w->server_config;
    size_t client_bytes = netcode_client_memory( &client ), server_bytes = netcode_server_memory( &server, 4 );
    client.override_send_and_receive = server.override_send_and_receive = 1;
    CHECK_EQ( client_bytes - netcode_client_memory( &client ), NC_SOCKET_UDP_BYTES );
    CHECK_EQ( server_bytes - netcode_server_memory( &server, 4 ), NC_SOCKET_UDP_BYTES );
    client.override_send_and_receive = server.override_send_and_receive = 0;
    client.network_simulator = server.network_simulator = w->net;
    CHECK_EQ( client_bytes - netcode_client_memory( &client ), NC_SOCKET_UDP_BYTES );
    CHECK_EQ( server_bytes - netcode_server_memory( &server, 4 ), NC_SOCKET_UDP_BYTES );
    server.consumed_tokens = 1; /* two are the fewest: one of each kind */
    server_bytes = netcode_server_memory( &server, 4 );
    server.consumed_tokens = 2;
    CHECK_EQ( netcode_server_memory( &server, 4 ), server_bytes );
    BAD( CHECK_EQ( netcode_server_memory( &server, 0 ), 0 ) );
    BAD( CHECK_EQ( netcode_server_memory( &server, NETCODE_MAX_SLOTS + 1 ), 0 ) );
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
    left behind is evicted by the living. */
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
    REQUIRE( puppet_join( &p, w, 0, 1000, "10.2.0.3:6000" ) );
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

#if defined( __linux__ )

/* ---- memory that is there: blocks of whole pages of their own, of which the system counts those that were touched ---- */

enum { RESIDENT_BLOCKS = 256 };

static struct {
    void * blocks[RESIDENT_BLOCKS];
    size_t bytes[RESIDENT_BLOCKS];
    int count;
} resident;

static void * resident_allocate( void * context, size_t bytes )
{
    void * block = mmap( NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 );
    (void) context;
    REQUIRE( block != MAP_FAILED && resident.count < RESIDENT_BLOCKS );
    madvise( block, bytes, MADV_NOHUGEPAGE ); /* else one touch might bring 512 pages */
    resident.blocks[resident.count] = block;
    resident.bytes[resident.count++] = bytes;
    return block;
}

static void resident_free( void * context, void * pointer )
{
    int i;
    (void) context;
    for ( i = 0; i < resident.count && resident.blocks[i] != pointer; i++ )
        ;
    if ( !pointer )
        return;
    REQUIRE( i < resident.count );
    munmap( pointer, resident.bytes[i] );
    resident.blocks[i] = resident.blocks[--resident.count];
    resident.bytes[i] = resident.bytes[resident.count];
}

static size_t resident_bytes( void )
{
    static unsigned char there[16384];
    size_t page = (size_t) sysconf( _SC_PAGESIZE ), sum = 0, k;
    int i;
    for ( i = 0; i < resident.count; i++ ) {
        size_t pages = ( resident.bytes[i] + page - 1 ) / page;
        REQUIRE( pages <= sizeof( there ) && mincore( resident.blocks[i], resident.bytes[i], there ) == 0 );
        for ( k = 0; k < pages; k++ )
            sum += ( there[k] & 1 ) * page;
    }
    return sum;
}

static struct world_t * resident_world( void )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.allocate_function = w->server_config.allocate_function = resident_allocate;
    w->client_config.free_function = w->server_config.free_function = resident_free;
    resident.count = 0;
    return w;
}

/* A client reserves its pool, and touches what it uses: at first next to nothing, and while it is read each tick hardly more. */
TEST( clients_touch_the_memory_that_they_use )
{
    enum { CLIENTS = 16 };
    struct world_t * w = resident_world();
    size_t page = (size_t) sysconf( _SC_PAGESIZE );
    int i, tick;
    for ( i = 0; i < CLIENTS; i++ )
        world_add_client( w );
    CHECK_EQ( resident.count, CLIENTS );
    CHECK_GT( netcode_client_memory( &w->client_config ), 300 * 1024 );
    printf( "    a client's memory: %d bytes reserved, ", (int) netcode_client_memory( &w->client_config ) );
    printf( "%d there when created, ", (int) resident_bytes() / CLIENTS );
    CHECK_LE( resident_bytes(), CLIENTS * 4 * page );
    w->server_config.allocate_function = allocator_allocate;
    w->server_config.free_function = allocator_free;
    world_add_server( w, CLIENTS );
    for ( i = 0; i < CLIENTS; i++ )
        REQUIRE( world_join( w, i, 1 + (uint64_t) i ) );
    for ( tick = 0; tick < 300; tick++ ) {
        for ( i = 0; i < CLIENTS; i++ )
            server_send( w, 0, i, 300, tick );
        world_step( w );
        for ( i = 0; i < CLIENTS; i++ )
            CHECK_EQ( client_drain( w, i ), 1 );
    }
    printf( "%d after 300 payloads\n", (int) resident_bytes() / CLIENTS );
    CHECK_LE( resident_bytes(), CLIENTS * 6 * page );
    world_close( w );
}

/* So does a server: its pool of 1,024 buffers costs what was ever in use at once. */
TEST( a_server_touches_the_memory_that_it_uses )
{
    struct world_t * w = resident_world();
    struct puppet_t p;
    size_t before;
    int i, tick;
    world_add_server( w, 4 );
    before = resident_bytes();
    CHECK_LE( before, 300 * 1024 );
    CHECK_GT( netcode_server_memory( &w->server_config, 4 ), 1024 * 1408 );
    w->step = 0.001;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( tick = 0; tick < 100; tick++ ) {
        for ( i = 0; i < 20; i++ )
            puppet_say( &p, 1200, i );
        world_step( w );
        CHECK_EQ( server_drain( w, 0, 0 ), 20 );
    }
    CHECK_LE( resident_bytes() - before, 128 * 1024 );
    world_close( w );
}

#endif

/* What all slots of a small server sent while it stood still for a second is read, none of it lost. */
TEST( a_small_server_keeps_what_came_in_a_second )
{
    static const int slots[] = { 1, 4, 16 };
    static struct puppet_t p[16];
    int s, i, k, count;
    for ( s = 0; s < 3; s++ ) {
        struct world_t * w = world_open( CLEAN, 1, slots[s], 0 );
        for ( i = 0; i < slots[s]; i++ ) {
            puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
            p[i].address.port = (uint16_t) ( 6000 + i );
            REQUIRE( puppet_connect( &p[i] ) );
        }
        w->time += 1.0;
        for ( k = 0; k < 60; k++ )
            for ( i = 0; i < slots[s]; i++ )
                puppet_say( &p[i], 100, k );
        for ( count = k = 0; k < 3; k++ ) { /* an update's budget may not take all */
            world_step( w );
            for ( i = 0; i < slots[s]; i++ )
                count += server_drain( w, 0, i );
        }
        CHECK_EQ( count, 60 * slots[s] );
        world_close( w );
    }
}

/* Nor does a larger server lose any, whose update could take more than there is room for: the rest waits in the socket. */
TEST( what_has_nowhere_to_go_waits_in_the_socket )
{
    enum { SLOTS = 64, SAID = 60 };
    struct world_t * w = world_new( CLEAN );
    static struct puppet_t p[SLOTS];
    int i, k, count = 0;
    world_add_server( w, SLOTS );
    for ( i = 0; i < SLOTS; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        REQUIRE( puppet_connect( &p[i] ) );
    }
    w->time += 1.0;
    w->recording = 0;
    for ( k = 0; k < SAID; k++ )
        for ( i = 0; i < SLOTS; i++ )
            puppet_say( &p[i], 100, k );
    for ( k = 0; k < 8; k++ ) {
        world_step( w );
        for ( i = 0; i < SLOTS; i++ )
            count += server_drain( w, 0, i );
    }
    CHECK_EQ( count, SLOTS * SAID );
    world_close( w );
}

/* An application that reads nothing hears of clients all the same: a full pool does not stop what else comes in. */
TEST( a_full_pool_keeps_nobody_out )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    int i, tick;
    w->server_config.packet_pool_buffers = 64;
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_connect( &p ) );
    for ( i = 0; i < 200; i++ )
        puppet_say( &p, 100, i );
    world_run( w, 0.1 );
    CHECK_GT( server_drops( w, 0, NETCODE_DROP_POOL_EMPTY ), 0 );
    REQUIRE( puppet_connect( &q ) );
    for ( tick = 0; tick < 2 * WORLD_TIMEOUT; tick++ ) {
        puppet_say( &p, 100, tick );
        puppet_keep_alive( &q );
        world_run( w, 1.0 );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    world_close( w );
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
    for ( int i = 0; i < 60;
          i++ ) { /* more than a batch has buffers of its own: those of the pool are read, and freed */
        client_send( w, 0, 64, 77 );
        server_send( w, 0, 0, 64, 77 );
    }
    world_run( w, 0.1 );
    CHECK_GE( server_drain( w, 0, 0 ), 50 );
    CHECK_GE( client_drain( w, 0 ), 50 );
    CHECK_GE( allocator_search( &w->allocator, secret, 64 ), 100 );
    world_destroy_client( w, 0 );
    world_destroy_server( w, 0 );
    CHECK_EQ( allocator_search( &w->allocator, secret, 64 ), 0 );
}

#if !defined( _WIN32 )

/* "A config of zeros is the same." */
TEST( mutants_a_config_of_zeros_takes_as_much_memory )
{
    struct netcode_client_config_t client, client_zeros;
    struct netcode_server_config_t server, server_zeros;
    memset( &client_zeros, 0, sizeof( client_zeros ) );
    memset( &server_zeros, 0, sizeof( server_zeros ) );
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    CHECK_EQ( netcode_client_memory( &client ), netcode_client_memory( &client_zeros ) );
    CHECK_EQ( netcode_server_memory( &server, 16 ), netcode_server_memory( &server_zeros, 16 ) );
}

/* LIMITS.md: a slot and all that it brings takes 2 KiB: 2,021 bytes, 96 of them for what is measured of its path. */
TEST( mutants_a_slot_takes_2_kib )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.packet_pool_buffers = 4096;
    CHECK_LT( netcode_server_memory( &config, 8192 ) - netcode_server_memory( &config, 4096 ), 4096 * 2021 );
}

TEST( mutants_slots_begin_empty )
{
    struct world_t * w = world_open( CLEAN, 1, 7, 0 );
    CHECK( test_is_zeros( w->servers[0]->memory.slot, 7 * sizeof( nc_slot_t ) ) );
    CHECK( test_is_zeros( w->servers[0]->memory.user_data, 7 * NETCODE_USER_DATA_BYTES ) );
}

/* The public API: max(1024, 2 x slots, min(32 x slots, 4096)) buffers, or as many as the config says; and one batch held back. */
TEST( mutants_the_pool_is_as_large_as_was_said )
{
    static const int cases[][3] = { /* slots, the config's, buffers */
                                    { 1, 0, 1024 },        { 32, 0, 1024 },  { 33, 0, 1056 },   { 127, 0, 4064 },
                                    { 128, 0, 4096 },      { 129, 0, 4096 }, { 2048, 0, 4096 }, { 2049, 0, 4098 },
                                    { 10000, 0, 20000 },   { 1, 5, 5 },      { 256, 1, 1 },     { 10000, 7, 7 },
                                    { 256, 40000, 40000 }, { 256, -1, 4096 } };
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    for ( size_t i = 0; i < sizeof( cases ) / sizeof( cases[0] ); i++ ) {
        config.packet_pool_buffers = cases[i][1];
        CHECK_EQ( nc_server_pool_buffers( &config, (uint32_t) cases[i][0] ), cases[i][2] + 32 );
    }
}

#endif
