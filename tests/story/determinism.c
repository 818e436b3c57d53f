/* Story: two runs with the same inputs are the same to the bit. */

static uint64_t one_run( uint64_t seed, int * datagrams )
{
    struct world_t * w;
    uint64_t hash = 0;
    int i, j;
    test_state.random = seed;
    ledger_random_state = seed;
    ledger_reset(); /* the second run seals what the first one sealed: a world of its own */
    w = world_open( LOSSY, 2, 4, 6 );
    for ( i = 0; i < 6; i++ )
        world_connect( w, i, 1 + (uint64_t) i );
    for ( i = 0; i < 600; i++ ) {
        for ( j = 0; j < 6; j++ ) {
            client_send( w, j, 1 + test_random_below( 1200 ), i );
            server_send( w, 0, j % 4, 1 + test_random_below( 1200 ), i );
            client_drain( w, j );
            server_drain( w, 0, j % 4 );
        }
        if ( i == 300 )
            netcode_client_disconnect( w->clients[1] );
        if ( i == 350 )
            netcode_server_disconnect_client( w->servers[0], 2 );
        if ( i == 400 )
            world_connect( w, 1, 20 );
        world_step( w );
    }
    for ( i = 0; i < w->records.count; i++ ) {
        const struct world_datagram_t * d = &w->records.items[i];
        hash = test_mix( hash ^ ledger_hash( 9, d->data, (size_t) d->bytes ) ^ (uint64_t) ( d->time * 1e6 ) ^
                         ( (uint64_t) d->to.port << 48 ) ^ ( (uint64_t) d->to.data.ipv4[3] << 32 ) );
    }
    *datagrams = w->records.count;
    world_close( w );
    return hash;
}

TEST( two_runs_with_the_same_inputs_are_the_same )
{
    int counts[3];
    uint64_t seed = test_random(), hashes[3];
    hashes[0] = one_run( seed, &counts[0] );
    hashes[1] = one_run( seed, &counts[1] );
    hashes[2] = one_run( seed + 1, &counts[2] );
    CHECK_GT( counts[0], 1000 );
    CHECK_EQ( counts[0], counts[1] );
    CHECK( hashes[0] == hashes[1] );
    CHECK( hashes[0] != hashes[2] );
}

static int simulate( uint64_t seed, uint8_t * arrivals, int capacity )
{
    struct netcode_network_simulator_t * net = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_address_t a = address_of( "10.0.0.1:1" ), b = address_of( "10.0.0.2:2" );
    struct netcode_socket_t from, to;
    uint8_t byte = 0, data[64];
    struct netcode_datagram_t d;
    int i, count = 0;
    REQUIRE( net != NULL );
    net->latency_milliseconds = 50.0f;
    net->jitter_milliseconds = 40.0f;
    net->packet_loss_percent = 20.0f;
    net->duplicate_packet_percent = 20.0f;
    net->reorder_packet_percent = 20.0f;
    net->seed = seed;
    netcode_network_simulator_reset( net );
    REQUIRE_EQ( netcode_network_simulator_socket( net, &a, &from ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_socket( net, &b, &to ), NETCODE_OK );
    for ( i = 0; i < 400; i++ ) {
        memset( &d, 0, sizeof( d ) );
        byte = (uint8_t) i;
        d.address = b;
        d.data = &byte;
        d.bytes = 1;
        if ( i < 200 )
            CHECK_EQ( from.send( from.context, &d, 1 ), 1 );
        netcode_network_simulator_update( net, i * 0.01 );
        memset( &d, 0, sizeof( d ) );
        d.data = data;
        d.capacity = (int) sizeof( data );
        while ( to.receive( to.context, &d, 1 ) == 1 && count < capacity ) {
            CHECK_EQ( d.bytes, 1 );
            CHECK( netcode_address_equal( &d.address, &a ) );
            arrivals[count++] = d.data[0];
        }
    }
    if ( from.close )
        from.close( from.context );
    if ( to.close )
        to.close( to.context );
    netcode_network_simulator_destroy( net );
    return count;
}

TEST( the_simulator_follows_its_seed )
{
    uint8_t first[500], second[500], third[500];
    int a = simulate( 7, first, 500 ), b = simulate( 7, second, 500 ), c = simulate( 8, third, 500 );
    CHECK_EQ( a, b );
    CHECK_MEM( first, second, a );
    CHECK( a != c || memcmp( first, third, (size_t) a ) != 0 );
    CHECK_GE( a, 150 );
    CHECK_LE( a, 240 );
}
