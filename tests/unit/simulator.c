/*  Simulator: the simulated network: exact latency, bounds of jitter, rates within what chance allows, and the same every
    time. Four standard deviations and more are left, with seeds that are fixed: no chance remains that a run
    differs. */

#define SIMULATOR_RUN 4000

static struct {
    struct netcode_network_simulator_t * simulator;
    struct netcode_socket_t a;
    struct netcode_socket_t b;
    struct netcode_address_t to_a;
    struct netcode_address_t to_b;
    double now;
} simulated;

static void simulated_open( uint64_t seed )
{
    simulated.simulator = netcode_network_simulator_create( NULL, NULL, NULL );
    REQUIRE( simulated.simulator != NULL );
    simulated.simulator->seed = seed;
    netcode_network_simulator_reset( simulated.simulator );
    CHECK_EQ( netcode_parse_address( "1.2.3.4:5", &simulated.to_a ), NETCODE_OK );
    CHECK_EQ( netcode_parse_address( "[::1]:6", &simulated.to_b ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_a, &simulated.a ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_b, &simulated.b ), NETCODE_OK );
    simulated.now = 0.0;
}

static void simulated_close( void )
{
    netcode_network_simulator_destroy( simulated.simulator );
}

static void simulated_update( double time )
{
    simulated.now = time;
    netcode_network_simulator_update( simulated.simulator, time );
}

/* Sends the number to b, as a's datagram. */
static void simulated_send( uint32_t number )
{
    struct netcode_datagram_t datagram;
    uint8_t data[4];
    int i;
    for ( i = 0; i < 4; i++ )
        data[i] = (uint8_t) ( number >> ( 8 * i ) );
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.address = simulated.to_b;
    datagram.data = data;
    datagram.bytes = 4;
    CHECK_EQ( simulated.a.send( simulated.a.context, &datagram, 1 ), 1 );
}

/* The next number at b, or -1. */
static int64_t simulated_receive( void )
{
    struct netcode_datagram_t datagram;
    uint8_t data[64];
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.data = data;
    datagram.capacity = sizeof( data );
    if ( simulated.b.receive( simulated.b.context, &datagram, 1 ) != 1 )
        return -1;
    CHECK_EQ( datagram.status, NETCODE_DATAGRAM_OK );
    CHECK_EQ( datagram.bytes, 4 );
    CHECK( nc_address_same( &datagram.address, &simulated.to_a ) );
    return (int64_t) nc_load_u32( data );
}

TEST( simulator_without_settings_delivers_at_once )
{
    uint32_t i;
    simulated_open( 1 );
    CHECK_NEAR( (double) simulated.simulator->latency_milliseconds, 0.0, 0.0 );
    for ( i = 0; i < 1000; i++ )
        simulated_send( i );
    CHECK_EQ( simulated_receive(), -1 ); /* time moves only in update */
    simulated_update( 0.0 );
    for ( i = 0; i < 1000; i++ )
        CHECK_EQ( simulated_receive(), i );
    CHECK_EQ( simulated_receive(), -1 );
    simulated_close();
}

/* Exact to the step: not one before, all of them then. */
TEST( simulator_latency_is_exact )
{
    static const float latencies[] = { 0.0f, 125.0f, 250.0f, 500.0f, 2000.0f };
    size_t i;
    for ( i = 0; i < sizeof( latencies ) / sizeof( latencies[0] ); i++ ) {
        double latency = (double) latencies[i] / 1000.0;
        simulated_open( 1 );
        simulated.simulator->latency_milliseconds = latencies[i];
        simulated_update( 1.0 );
        simulated_send( 7 );
        simulated.simulator->latency_milliseconds = 9999.0f; /* applies to what is sent afterwards */
        if ( latency > 0.0 ) {
            simulated_update( 1.0 + latency - 1.0 / 1024.0 );
            CHECK_EQ( simulated_receive(), -1 );
        }
        simulated_update( 1.0 + latency );
        CHECK_EQ( simulated_receive(), 7 );
        simulated_close();
    }
}

/* 250 ms +- 250 ms: all come between 0 and 500 ms, spread evenly; never before they were sent. */
TEST( simulator_jitter_bounds )
{
    static double arrival[SIMULATOR_RUN];
    double sum = 0.0, low = 1e9, high = 0.0;
    int64_t number;
    int i, count = 0, overtaken = 0, last = -1;
    simulated_open( 2 );
    simulated.simulator->latency_milliseconds = 250.0f;
    simulated.simulator->jitter_milliseconds = 250.0f;
    for ( i = 0; i < SIMULATOR_RUN; i++ )
        simulated_send( (uint32_t) i );
    for ( i = 0; i <= 1024; i++ ) {
        simulated_update( (double) i / 1024.0 );
        while ( ( number = simulated_receive() ) >= 0 ) {
            arrival[number] = simulated.now;
            count++;
            overtaken += number < last;
            last = (int) number;
        }
    }
    CHECK_EQ( count, SIMULATOR_RUN );
    for ( i = 0; i < SIMULATOR_RUN; i++ ) {
        sum += arrival[i];
        low = arrival[i] < low ? arrival[i] : low;
        high = arrival[i] > high ? arrival[i] : high;
    }
    CHECK( high <= 0.5 + 1.0 / 1024.0 );
    CHECK( low < 0.01 && high > 0.49 );
    CHECK_NEAR( sum / SIMULATOR_RUN, 0.25, 0.01 ); /* standard deviation of the mean: 0.0023 */
    CHECK_GT( overtaken, SIMULATOR_RUN / 4 );
    simulated_close();
}

/* More jitter than latency: what would arrive before it was sent arrives at once. */
TEST( simulator_jitter_beyond_latency )
{
    int i, at_once = 0;
    simulated_open( 3 );
    simulated.simulator->latency_milliseconds = 10.0f;
    simulated.simulator->jitter_milliseconds = 100.0f;
    for ( i = 0; i < 1000; i++ )
        simulated_send( (uint32_t) i );
    simulated_update( 0.0 );
    while ( simulated_receive() >= 0 )
        at_once++;
    CHECK_NEAR( at_once, 450, 80 );
    simulated_update( 0.1101 );
    while ( simulated_receive() >= 0 )
        at_once++;
    CHECK_EQ( at_once, 1000 );
    simulated_close();
}

/* How often each number comes, of SIMULATOR_RUN of them; everything is in within 3 s. */
static void simulated_count( int * lost, int * doubled, int * overtaken )
{
    static uint8_t seen[SIMULATOR_RUN];
    int64_t number, newest = -1;
    int i;
    memset( seen, 0, sizeof( seen ) );
    *lost = *doubled = *overtaken = 0;
    for ( i = 0; i < SIMULATOR_RUN + 3000; i++ ) {
        simulated_update( simulated.now + 0.001 );
        while ( ( number = simulated_receive() ) >= 0 ) {
            REQUIRE( number < SIMULATOR_RUN );
            *overtaken += number < newest && !seen[number];
            newest = number > newest ? number : newest;
            seen[number]++;
        }
        if ( i < SIMULATOR_RUN )
            simulated_send( (uint32_t) i );
    }
    for ( i = 0; i < SIMULATOR_RUN; i++ ) {
        *lost += seen[i] == 0;
        *doubled += seen[i] == 2;
        CHECK_LE( seen[i], 2 );
    }
}

TEST( simulator_rates )
{
    static const struct {
        float loss;
        float duplicate;
        float reorder;
    } rows[] = { { 0, 0, 0 },    { 5, 10, 0 },  { 50, 0, 0 },  { 100, 0, 0 }, { 100, 100, 100 },
                 { 0, 100, 0 },  { 0, 50, 0 },  { 0, 0, 20 },  { 0, 0, 100 }, { 1, 1, 1 },
                 { -5, -5, -5 }, { 200, 0, 0 }, { 20, 30, 40 } };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        double loss = (double) rows[i].loss / 100.0, duplicate = (double) rows[i].duplicate / 100.0;
        int lost, doubled, overtaken;
        simulated_open( 100 + i );
        simulated.simulator->latency_milliseconds = 20.0f;
        simulated.simulator->packet_loss_percent = rows[i].loss;
        simulated.simulator->duplicate_packet_percent = rows[i].duplicate;
        simulated.simulator->reorder_packet_percent = rows[i].reorder;
        loss = loss < 0.0 ? 0.0 : loss > 1.0 ? 1.0 : loss;
        duplicate = duplicate < 0.0 ? 0.0 : duplicate;
        simulated_count( &lost, &doubled, &overtaken );
        CHECK_NEAR( lost, SIMULATOR_RUN * loss, 5.0 * sqrt( SIMULATOR_RUN * loss * ( 1.0 - loss ) ) );
        duplicate *= 1.0 - loss;
        CHECK_NEAR( doubled, SIMULATOR_RUN * duplicate, 5.0 * sqrt( SIMULATOR_RUN * duplicate * ( 1.0 - duplicate ) ) );
        if ( rows[i].reorder <= 0.0f )
            CHECK_EQ( overtaken, 0 );
        else if ( rows[i].loss < 100.0f )
            CHECK_GT( overtaken, (int) ( (double) rows[i].reorder * SIMULATOR_RUN * ( 1.0 - loss ) / 200.0 ) );
        simulated_close();
    }
}

/* Reordering holds back by up to 100 ms; a second copy comes up to a second later, never before the first. */
TEST( simulator_bounds_of_reordering_and_copies )
{
    int i, count = 0, at_once = 0;
    simulated_open( 5 );
    simulated.simulator->reorder_packet_percent = 100.0f;
    for ( i = 0; i < 1000; i++ )
        simulated_send( (uint32_t) i );
    simulated_update( 0.05 );
    while ( simulated_receive() >= 0 )
        count++;
    CHECK_NEAR( count, 500, 80 );
    simulated_update( 0.1 );
    while ( simulated_receive() >= 0 )
        count++;
    CHECK_EQ( count, 1000 );
    simulated.simulator->reorder_packet_percent = 0.0f;
    simulated.simulator->duplicate_packet_percent = 100.0f;
    for ( i = 0; i < 1000; i++ )
        simulated_send( (uint32_t) i );
    simulated_update( 0.1 );
    while ( simulated_receive() >= 0 )
        at_once++;
    CHECK( at_once >= 1000 && at_once < 1020 );
    simulated_update( 0.6 );
    while ( simulated_receive() >= 0 )
        at_once++;
    CHECK_NEAR( at_once, 1500, 80 );
    simulated_update( 1.1 );
    while ( simulated_receive() >= 0 )
        at_once++;
    CHECK_EQ( at_once, 2000 );
    simulated_close();
}

/* One run, as one number. */
static uint64_t simulated_history( void )
{
    uint64_t history = 0;
    int64_t number;
    int i;
    for ( i = 0; i < 2000; i++ ) {
        simulated_send( (uint32_t) i );
        simulated_update( (double) i / 64.0 );
        while ( ( number = simulated_receive() ) >= 0 )
            history = test_mix( history ^ (uint64_t) number ^ (uint64_t) i << 32 );
    }
    return history;
}

static uint64_t simulated_history_of( uint64_t seed )
{
    uint64_t history;
    simulated_open( seed );
    simulated.simulator->latency_milliseconds = 250.0f;
    simulated.simulator->jitter_milliseconds = 250.0f;
    simulated.simulator->packet_loss_percent = 5.0f;
    simulated.simulator->duplicate_packet_percent = 10.0f;
    simulated.simulator->reorder_packet_percent = 10.0f;
    history = simulated_history();
    simulated_close();
    return history;
}

TEST( simulator_is_deterministic )
{
    uint64_t first = simulated_history_of( 42 );
    CHECK_EQ( first, simulated_history_of( 42 ) );
    CHECK_NE( first, simulated_history_of( 43 ) );
    CHECK_NE( first, simulated_history_of( 0 ) );
}

/* Reset forgets what is in flight and what has arrived; sockets stay, and the seed decides again. */
TEST( simulator_reset )
{
    int i, first[64], lost = 0;
    simulated_open( 9 );
    simulated.simulator->packet_loss_percent = 50.0f;
    for ( i = 0; i < 64; i++ ) {
        simulated_send( (uint32_t) i );
        simulated_update( 1.0 );
        first[i] = simulated_receive() >= 0;
        lost += !first[i];
    }
    CHECK( lost > 8 && lost < 56 );
    simulated.simulator->packet_loss_percent = 0.0f;
    simulated_send( 1 );
    simulated_update( 1.0 );
    simulated.simulator->latency_milliseconds = 100.0f;
    simulated_send( 2 );
    netcode_network_simulator_reset( simulated.simulator );
    simulated_update( 5.0 );
    CHECK_EQ( simulated_receive(), -1 );
    simulated.simulator->packet_loss_percent = 50.0f;
    simulated.simulator->latency_milliseconds = 0.0f;
    for ( i = 0; i < 64; i++ ) {
        simulated_send( (uint32_t) i );
        simulated_update( 5.0 );
        CHECK_EQ( simulated_receive() >= 0, first[i] );
    }
    simulated_close();
}

TEST( simulator_sockets )
{
    struct netcode_socket_t socket;
    struct netcode_socket_info_t info;
    struct netcode_address_t address;
    simulated_open( 1 );
    memset( &info, 0, sizeof( info ) );
    simulated.a.info( simulated.a.context, &info );
    CHECK( nc_address_same( &info.address, &simulated.to_a ) );
    CHECK_EQ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_a, &socket ), NETCODE_ERROR );
    CHECK_EQ( netcode_parse_address( "1.2.3.4", &address ), NETCODE_OK );
    CHECK_EQ( netcode_network_simulator_socket( simulated.simulator, &address, &socket ), NETCODE_ERROR ); /* no port */
    memset( &address, 0, sizeof( address ) );
    address.port = 5;
    CHECK_EQ( netcode_network_simulator_socket( simulated.simulator, &address, &socket ), NETCODE_ERROR );
    simulated_send( 1 ); /* in flight to b, which goes: it is lost with it */
    simulated.b.close( simulated.b.context );
    simulated_update( 1.0 );
    REQUIRE_EQ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_b, &simulated.b ), NETCODE_OK );
    CHECK_EQ( simulated_receive(), -1 );
    simulated_send( 2 );
    simulated_update( 2.0 );
    CHECK_EQ( simulated_receive(), 2 );
    simulated.a.wait( simulated.a.context, 1e9 ); /* virtual time: returns at once */
    simulated_close();                            /* with sockets open and datagrams waiting */
    netcode_network_simulator_destroy( NULL );
    BAD( netcode_network_simulator_reset( NULL ) );
    BAD( netcode_network_simulator_update( NULL, 1.0 ) );
    BAD( CHECK_EQ( netcode_network_simulator_socket( NULL, &address, &socket ), NETCODE_ERROR ) );
}

/* Empty, larger than the receiver's buffer, and larger than a packet of the simulator: each is what UDP makes of it. */
TEST( simulator_sizes )
{
    static const int sizes[] = { 0, 1, 64, 65, 1225, 2048, 2049, 5000 };
    struct netcode_datagram_t datagram;
    static uint8_t out[5000], in[5000];
    size_t i;
    simulated_open( 1 );
    memset( out, 0x3C, sizeof( out ) );
    for ( i = 0; i < sizeof( sizes ) / sizeof( sizes[0] ); i++ ) {
        memset( &datagram, 0, sizeof( datagram ) );
        datagram.address = simulated.to_b;
        datagram.data = out;
        datagram.bytes = sizes[i];
        CHECK_EQ( simulated.a.send( simulated.a.context, &datagram, 1 ), 1 );
        simulated_update( (double) i );
        memset( in, 0, sizeof( in ) );
        datagram.data = in;
        datagram.capacity = 64;
        REQUIRE_EQ( simulated.b.receive( simulated.b.context, &datagram, 1 ), 1 );
        CHECK_EQ( datagram.status, sizes[i] > 64 ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK );
        CHECK( in[64] == 0 );
        if ( sizes[i] <= 64 ) {
            CHECK_EQ( datagram.bytes, sizes[i] );
            CHECK_MEM( in, out, sizes[i] );
        }
    }
    simulated_close();
}

/* Allocation n fails, for every n: an error or a lost datagram, nothing leaks, and it works afterwards. */
TEST( simulator_short_of_memory )
{
    static struct allocator_t allocator;
    int n, i, arrived = 0;
    simulated_open( 1 ); /* its addresses are used below */
    simulated_close();
    for ( n = 1; n <= 8; n++ ) {
        memset( &allocator, 0, sizeof( allocator ) );
        allocator.fail_at = n;
        simulated.simulator = netcode_network_simulator_create( &allocator, allocator_allocate, allocator_free );
        if ( !simulated.simulator ) {
            CHECK_EQ( n, 1 );
            CHECK_EQ( allocator.live, 0 );
            continue;
        }
        simulated.now = 0.0;
        while ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_a, &simulated.a ) != NETCODE_OK )
            REQUIRE( allocator.calls == n );
        while ( netcode_network_simulator_socket( simulated.simulator, &simulated.to_b, &simulated.b ) != NETCODE_OK )
            REQUIRE( allocator.calls == n );
        for ( i = 0; i < 600; i++ )
            simulated_send( (uint32_t) i );
        simulated_update( 1.0 );
        for ( arrived = 0; simulated_receive() >= 0; arrived++ )
            ;
        CHECK_GE( arrived, 500 );
        for ( i = 0; i < 600; i++ )
            simulated_send( (uint32_t) i );
        simulated_update( 2.0 );
        for ( arrived = 0; simulated_receive() >= 0; arrived++ )
            ;
        CHECK_GE( arrived, n < 8 ? 500 : 600 );
        simulated_close();
        CHECK_EQ( allocator.live, 0 );
    }
}

/* A socket that is not read holds 16384 datagrams; the rest is lost, and the memory with it comes back. */
TEST( simulator_full_queue )
{
    int i, count = 0;
    simulated_open( 1 );
    for ( i = 0; i < NC_SIMULATOR_QUEUE + 100; i++ ) {
        simulated_send( (uint32_t) i );
        if ( i % 1000 == 0 )
            simulated_update( (double) i );
    }
    simulated_update( 1e6 );
    while ( simulated_receive() == count )
        count++;
    CHECK_EQ( count, NC_SIMULATOR_QUEUE );
    simulated_close();
}

/* Many sockets, which share the buckets of a small table: each gets its own datagrams, and each can go. */
TEST( simulator_many_sockets )
{
    enum { SOCKETS = 6000 };
    static struct netcode_socket_t sockets[SOCKETS];
    struct netcode_address_t address;
    struct netcode_datagram_t datagram;
    uint8_t data[2];
    int i;
    simulated_open( 1 );
    CHECK_EQ( netcode_parse_address( "10.0.0.1:1", &address ), NETCODE_OK );
    for ( i = 0; i < SOCKETS; i++ ) {
        address.port = (uint16_t) ( i + 1 );
        REQUIRE_EQ( netcode_network_simulator_socket( simulated.simulator, &address, &sockets[i] ), NETCODE_OK );
    }
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.data = data;
    datagram.bytes = datagram.capacity = 2;
    for ( i = 0; i < SOCKETS; i++ ) {
        datagram.address = address;
        datagram.address.port = (uint16_t) ( i + 1 );
        data[0] = (uint8_t) i;
        data[1] = (uint8_t) ( i >> 8 );
        sockets[( i + 7 ) % SOCKETS].send( sockets[( i + 7 ) % SOCKETS].context, &datagram, 1 );
    }
    simulated_update( 1.0 );
    for ( i = 0; i < SOCKETS; i++ ) {
        REQUIRE_EQ( sockets[i].receive( sockets[i].context, &datagram, 1 ), 1 );
        CHECK_EQ( data[0] | data[1] << 8, i );
        CHECK_EQ( datagram.address.port, ( i + 7 ) % SOCKETS + 1 );
        CHECK_EQ( sockets[i].receive( sockets[i].context, &datagram, 1 ), 0 );
    }
    for ( i = 0; i < SOCKETS; i += 2 )
        sockets[i].close( sockets[i].context );
    for ( i = 0; i < SOCKETS; i++ ) {
        address.port = (uint16_t) ( i + 1 );
        CHECK_EQ( netcode_network_simulator_socket( simulated.simulator, &address, &sockets[i] ),
                  i % 2 ? NETCODE_ERROR : NETCODE_OK );
    }
    simulated_close();
}

/* Any time: nothing but forward steps moves it. */
TEST( simulator_odd_times )
{
    simulated_open( 1 );
    simulated.simulator->latency_milliseconds = 1000.0f;
    simulated_update( 100.0 );
    simulated_send( 1 );
    simulated_update( (double) NAN );
    simulated_update( (double) INFINITY );
    simulated_update( -1e9 );
    simulated_update( -1e9 + 0.5 );
    CHECK_EQ( simulated_receive(), -1 );
    simulated_update( -1e9 + 1.0 );
    CHECK_EQ( simulated_receive(), 1 );
    simulated_close();
}

/* A request for more than a simulated datagram can hold gets none of that size. */
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

/* The published test values of splitmix64 for the seed 1234567. */
TEST( mutants_the_simulators_random_numbers )
{
    static const uint64_t known[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                      4593380528125082431u, 16408922859458223821u };
    static nc_simulator_state_t state;
    size_t i;
    memset( &state, 0, sizeof( state ) );
    state.random = 1234567;
    for ( i = 0; i < sizeof( known ) / sizeof( known[0] ); i++ )
        CHECK( nc_simulator_random( &state ) == known[i] );
}

static struct allocator_t simulator_allocator;

/* A simulator with one socket at 1.1.1.1:1 that sends to itself. */
static struct netcode_network_simulator_t * simulator_of_itself( struct netcode_socket_t * socket )
{
    struct netcode_network_simulator_t * simulator;
    struct netcode_address_t at = address_of( "1.1.1.1:1" );
    memset( &simulator_allocator, 0, sizeof( simulator_allocator ) );
    simulator = netcode_network_simulator_create( &simulator_allocator, allocator_allocate, allocator_free );
    CHECK_EQ( netcode_network_simulator_socket( simulator, &at, socket ), NETCODE_OK );
    return simulator;
}

static void simulator_send_to_itself( struct netcode_socket_t * socket, int count )
{
    struct netcode_datagram_t datagram;
    uint8_t data[] = "hello";
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.address = address_of( "1.1.1.1:1" );
    datagram.data = data;
    datagram.bytes = 5;
    for ( ; count; count-- )
        CHECK_EQ( socket->send( socket->context, &datagram, 1 ), 1 );
}

/* How many datagrams come when so many are asked for. */
static int simulator_take( struct netcode_socket_t * socket, int count )
{
    static struct netcode_datagram_t places[64];
    static uint8_t bytes[64][8];
    int i;
    memset( places, 0xEE, sizeof( places ) );
    for ( i = 0; i < count; i++ ) {
        places[i].data = bytes[i];
        places[i].capacity = (int) sizeof( bytes[i] );
    }
    return socket->receive( socket->context, places, count );
}

/* What lies in a port goes back when the port is emptied or closed, and a chunk of packets is used whole. */
TEST( mutants_the_simulator_loses_no_packet )
{
    struct netcode_address_t at = address_of( "1.1.1.1:1" );
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = simulator_of_itself( &socket );
    int round, before = simulator_allocator.live;
    simulator_send_to_itself( &socket, NC_SIMULATOR_CHUNK );
    CHECK_EQ( simulator_allocator.live, before + 2 ); /* one chunk, and the heap of those in flight */
    for ( round = 1; round < 8; round++ ) {
        netcode_network_simulator_update( simulator, round );
        CHECK( simulator_take( &socket, 1 ) == 1 );
        if ( round % 2 )
            netcode_network_simulator_reset( simulator );
        else {
            socket.close( socket.context );
            CHECK_EQ( netcode_network_simulator_socket( simulator, &at, &socket ), NETCODE_OK );
        }
        simulator_send_to_itself( &socket, NC_SIMULATOR_CHUNK );
        CHECK_EQ( simulator_allocator.live, before + 2 );
    }
    netcode_network_simulator_destroy( simulator );
    CHECK_EQ( simulator_allocator.live, 0 );
}

TEST( mutants_a_reset_makes_room_in_a_port )
{
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = simulator_of_itself( &socket );
    simulator_send_to_itself( &socket, NC_SIMULATOR_QUEUE );
    netcode_network_simulator_update( simulator, 1.0 );
    netcode_network_simulator_reset( simulator );
    simulator_send_to_itself( &socket, 1 );
    netcode_network_simulator_update( simulator, 2.0 );
    CHECK_EQ( simulator_take( &socket, 2 ), 1 );
    netcode_network_simulator_destroy( simulator );
}

/* A socket that is moved: what is in flight to its old address is lost; one whose network is gone is silent until a rebind. */
TEST( simulator_moves )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t from = address_of( "10.0.0.1:1000" ), to = address_of( "10.0.0.2:2000" );
    struct netcode_address_t there = address_of( "10.0.0.9:9000" );
    struct netcode_network_simulator_t * simulator = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_socket_info_t info;
    uint8_t data[100] = { 0 }, in[2048];
    struct netcode_datagram_t out, got;
    double time = 0.0;
    int round;
    REQUIRE_EQ( netcode_network_simulator_socket( simulator, &from, &a ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_socket( simulator, &there, &b ), NETCODE_OK );
    memset( &out, 0, sizeof( out ) );
    memset( &got, 0, sizeof( got ) );
    out.data = data;
    out.bytes = out.capacity = 100;
    got.data = in;
    got.capacity = 2048;
    simulator->latency_milliseconds = 100.0f;
    CHECK_EQ( netcode_network_simulator_move( simulator, &to, &there, 0 ), NETCODE_ERROR );   /* no socket is there */
    CHECK_EQ( netcode_network_simulator_move( simulator, &from, &there, 0 ), NETCODE_ERROR ); /* it is in use */
    CHECK_EQ( netcode_network_simulator_move( simulator, &from, &from, 0 ), NETCODE_ERROR );
    for ( round = 0; round < 2; round++ ) {
        out.address = from;
        CHECK_EQ( b.send( b.context, &out, 1 ), 1 );
        CHECK_EQ( netcode_network_simulator_move( simulator, &from, &to, round ), NETCODE_OK );
        memset( &info, 0, sizeof( info ) );
        a.info( a.context, &info );
        CHECK_EQ( info.address.port, round ? 1000 : 2000 );
        netcode_network_simulator_update( simulator, time += 0.2 );
        CHECK_EQ( a.receive( a.context, &got, 1 ), 0 ); /* it was in flight to the old address */
        out.address = there;
        a.send( a.context, &out, 1 );
        netcode_network_simulator_update( simulator, time += 0.2 );
        CHECK_EQ( b.receive( b.context, &got, 1 ), !round );
        CHECK_EQ( a.rebind( a.context ), 1 );
        a.info( a.context, &info );
        CHECK( same_address( &info.address, &to ) );
        a.send( a.context, &out, 1 );
        netcode_network_simulator_update( simulator, time += 0.2 );
        CHECK_EQ( b.receive( b.context, &got, 1 ), 1 );
        CHECK( same_address( &got.address, &to ) );
        out.address = to;
        b.send( b.context, &out, 1 );
        netcode_network_simulator_update( simulator, time += 0.2 );
        CHECK_EQ( a.receive( a.context, &got, 1 ), 1 );
        REQUIRE_EQ( netcode_network_simulator_move( simulator, &to, &from, 0 ), NETCODE_OK );
    }
    out.address = from;
    b.send( b.context, &out, 1 );
    netcode_network_simulator_update( simulator, time += 0.2 );
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &from, &to, 1 ), NETCODE_OK );
    CHECK_EQ( a.rebind( a.context ), 1 );
    CHECK_EQ( a.receive( a.context, &got, 1 ), 0 ); /* what waited in the old socket is lost */
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &to, &from, 0 ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &from, &to, 1 ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &from, &to, 0 ), NETCODE_OK ); /* before it has rebound */
    out.address = there;
    a.send( a.context, &out, 1 );
    netcode_network_simulator_update( simulator, time += 0.2 );
    CHECK_EQ( b.receive( b.context, &got, 1 ), 1 );
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &to, &from, 0 ), NETCODE_OK );
    REQUIRE_EQ( netcode_network_simulator_move( simulator, &from, &to, 1 ), NETCODE_OK );
    CHECK_EQ( netcode_network_simulator_move( simulator, &there, &to, 0 ), NETCODE_OK );
    CHECK_EQ( a.rebind( a.context ), 0 ); /* another socket was faster */
    CHECK_EQ( netcode_network_simulator_move( simulator, &to, &there, 0 ), NETCODE_OK );
    CHECK_EQ( a.rebind( a.context ), 1 );
    netcode_network_simulator_destroy( simulator );
}

TEST( mutants_reordering_comes_on_top_of_latency )
{
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = simulator_of_itself( &socket );
    simulator->latency_milliseconds = 1000.0f;
    simulator->reorder_packet_percent = 100.0f;
    simulator_send_to_itself( &socket, 50 );
    netcode_network_simulator_update( simulator, 0.999 );
    CHECK_EQ( simulator_take( &socket, 1 ), 0 );
    netcode_network_simulator_update( simulator, 1.1 );
    CHECK_EQ( simulator_take( &socket, 60 ), 50 );
    netcode_network_simulator_destroy( simulator );
}

#endif

#undef SIMULATOR_RUN
