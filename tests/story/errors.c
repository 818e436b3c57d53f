/*  Story: a network that fails (decision 6). What is no datagram neither ends the receiving nor a connection. Row 52 of the table of
    attacks. */

/* ---- errors between datagrams ---- */

/* Empty, oversized and error entries in a batch do not end the receive loop. */
TEST( decision_6_nothing_ends_the_receive_loop_early )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct puppet_t p;
    uint8_t big[2000] = { 0x65 };
    int i, read = 0;
    REQUIRE( puppet_join( &p, w, 0, 2, "10.2.0.1:6000" ) );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 100; i++ ) {
        puppet_raw( &p, NULL, 0 );
        puppet_raw( &p, big, (int) sizeof( big ) );
        world_inject_error( w, &p.address, &w->server_addresses[0], 111 );
        world_inject_error( w, &w->client_addresses[0], &w->server_addresses[0], 4 );
        puppet_say( &p, 10, i );
    }
    world_step( w );
    read = server_drain( w, 0, world_slot( w, 0, 2 ) );
    world_step( w );
    read += server_drain( w, 0, world_slot( w, 0, 2 ) );
    CHECK_EQ( read, 100 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_EMPTY_DATAGRAM ), 100 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_OVERSIZED_DATAGRAM ), 100 );
    CHECK_EQ( server_stats( w, 0 ).receive_errors, 200 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

/* ---- ICMP errors, which anyone can forge ---- */

TEST( decision_6_icmp_errors_never_end_a_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 300; i++ ) {
        world_inject_error( w, &w->server_addresses[0], &w->client_addresses[0], 111 );
        world_inject_error( w, &w->client_addresses[0], &w->server_addresses[0], 111 );
        world_step( w );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( client_stats( w, 0 ).receive_errors, 300 );
    CHECK_EQ( client_stats( w, 0 ).last_socket_error, 111 );
}

/* They reach the report, and neither hurry nor stop a client that is connecting: at each state it is as long with them as without. */
TEST( decision_6_icmp_errors_hurry_no_client )
{
    double times[2][2];
    for ( int forged = 0; forged < 2; forged++ ) {
        struct world_t * w = world_open( CLEAN, 2, 4, 1 );
        struct netcode_client_report_t report;
        double start = w->time;
        w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
        world_connect( w, 0, 1 );
        for ( times[forged][0] = 0.0; w->time < start + 15.0 && netcode_client_state( w->clients[0] ) > 0; ) {
            for ( int i = 0; forged && i < 2; i++ )
                world_inject_error( w, &w->server_addresses[i], &w->client_addresses[0], 111 );
            world_step( w );
            netcode_client_report( w->clients[0], &report );
            if ( report.server_index == 1 && times[forged][0] == 0.0 )
                times[forged][0] = w->time - start;
        }
        times[forged][1] = w->time - start;
        CHECK_EQ( report.servers[0].last_error, forged ? 111 : 0 );
        for ( int i = 0; i < 2; i++ )
            CHECK_NEAR( report.servers[i].errors, forged ? 500.0 : 0.0, 30.0 );
        world_close( w );
    }
    CHECK_EQ( (int) ( times[1][0] * 1e3 ), (int) ( times[0][0] * 1e3 ) );
    CHECK_EQ( (int) ( times[1][1] * 1e3 ), (int) ( times[0][1] * 1e3 ) );
}

/* An error about one of the servers that are asked is counted as that one's. */
TEST( errors_are_of_the_server_that_they_are_about )
{
    struct world_t * w = world_open( CLEAN, 2, 4, 1 );
    struct netcode_client_report_t report;
    w->cut_types = 1u << NETCODE_PACKET_CHALLENGE;
    world_connect( w, 0, 1 );
    world_run( w, 1.0 );
    for ( int i = 0; i < 5; i++ )
        world_inject_error( w, &w->server_addresses[0], &w->client_addresses[0], 113 );
    world_step( w );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.server_index, 1 );
    CHECK( report.servers[0].errors == 5 && report.servers[0].last_error == 113 );
    CHECK( report.servers[1].errors == 0 && report.servers[1].last_error == 0 );
}

/* Two handshakes at one address, of which the newer is tried first: where its tries are used up, the other's are not. */
TEST( decision_6_each_handshake_has_tries_of_its_own )
{
    static const uint8_t wrong[308];
    struct world_t * w = world_open( CLEAN, 1, 256, 0 ); /* one update has units for all of it */
    struct puppet_t p[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        REQUIRE( puppet_begin( &p[i], w, 0, (uint64_t) ( 1 + i ), "10.2.0.1:6000" ) );
    }
    for ( i = 0; i < NC_RESPONSES_PER_UPDATE + 8; i++ ) /* the last 8 are tried with the other's key */
        puppet_send( &p[1], NETCODE_PACKET_RESPONSE, wrong, 308 );
    puppet_answer( &p[0] );
    CHECK_EQ( p[0].keep_alives, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED ), NC_RESPONSES_PER_UPDATE );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 8 );
}

/* ---- 52: a socket that misbehaves, and the n-th call of the network fails, for every n and with each error ---- */

static struct {
    struct netcode_socket_t inner;
    /*  0: well, 1: takes nothing, 2: refuses with a negative number, 3: broken on receiving, 4: errors between the
        datagrams */
    int mode;
    int closed;
    int waits;
    int errors; /* that come before datagrams */
} sick;

static int sick_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    if ( sick.mode == 1 || sick.mode == 2 )
        return sick.mode == 1 ? 0 : -1;
    return sick.inner.send( sick.inner.context, datagrams, count );
}

static int sick_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int more;
    (void) context;
    if ( sick.mode == 3 )
        return -1;
    if ( sick.mode >= 5 ) { /* one datagram a call, and what failed comes first; 6: about datagrams to an address */
        if ( sick.errors-- <= 0 )
            return sick.inner.receive( sick.inner.context, datagrams, 1 );
        memset( &datagrams[0].address, 0, sizeof( datagrams[0].address ) );
        if ( sick.mode == 6 )
            datagrams[0].address = address_of( "10.9.9.9:9" );
        datagrams[0].status = NETCODE_DATAGRAM_ERROR;
        datagrams[0].error = 105;
        datagrams[0].bytes = 0;
        return 1;
    }
    if ( sick.mode != 4 || count < 2 )
        return sick.inner.receive( sick.inner.context, datagrams, count );
    more = sick.inner.receive( sick.inner.context, datagrams + 1, count - 1 );
    if ( more <= 0 )
        return 0;
    memset( &datagrams[0].address, 0, sizeof( datagrams[0].address ) );
    datagrams[0].status = NETCODE_DATAGRAM_ERROR;
    datagrams[0].error = 105;
    datagrams[0].bytes = 0;
    return more + 1;
}

static void sick_wait( void * context, double seconds )
{
    (void) context;
    CHECK( seconds >= 0.0 );
    sick.waits++;
}

static void sick_close( void * context )
{
    (void) context;
    sick.closed++;
    sick.inner.close( sick.inner.context );
}

TEST( hostile_52_a_socket_that_misbehaves )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_client_config_t config = w->client_config;
    struct netcode_socket_t socket;
    struct netcode_address_t address = address_of( "10.1.0.1:50000" );
    struct netcode_client_stats_t stats;
    memset( &sick, 0, sizeof( sick ) );
    memset( &socket, 0, sizeof( socket ) );
    world_socket( w, &address, &sick.inner );
    socket.receive = sick_receive;
    socket.send = sick_send;
    socket.wait = sick_wait;
    socket.close = sick_close;
    config.socket = &socket;
    config.callback_context = &w->client_parties[0];
    w->client_parties[0].world = w;
    w->client_addresses[0] = address;
    w->clients[0] = netcode_client_create( "10.1.0.1:50000", &config, w->time );
    REQUIRE( w->clients[0] != NULL );
    w->client_count = 1;
    sick.mode = 1;
    world_connect( w, 0, 1 );
    world_run( w, 1.0 );
    sick.mode = 2;
    world_run( w, 1.0 );
    netcode_client_stats( w->clients[0], &stats );
    CHECK_GE( stats.send_errors, 19 );
    sick.mode = 3;
    int lines = w->client_parties[0].lines;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    world_run( w, 2.5 );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    CHECK_EQ( w->client_parties[0].lines - lines, 3 ); /* one a second */
    CHECK( strstr( w->client_parties[0].line, "receiving fails" ) != NULL );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    sick.mode = 4;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    world_run( w, 10.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    netcode_client_stats( w->clients[0], &stats );
    CHECK_GE( stats.receive_errors, 50 );
    CHECK_EQ( stats.last_socket_error, 105 );
    for ( sick.mode = 5; sick.mode <= 6; sick.mode++ ) {
        sick.errors = sick.mode == 5 ? 30 : 120;
        client_drain( w, 0 );
        server_send( w, 0, 0, 20, 1 );
        world_step( w );
        CHECK_EQ( client_drain( w, 0 ), 1 );
        CHECK_LT( sick.errors, 0 );
    }
    sick.mode = 4;
    netcode_client_wait( w->clients[0], 0.5 );
    netcode_client_disconnect( w->clients[0] );
    netcode_client_wait( w->clients[0], 0.5 );
    CHECK_GE( sick.waits, 1 );
    world_connect( w, 0, 2 );
    netcode_client_wait( w->clients[0], 0.5 ); /* a request is due already */
    world_destroy_client( w, 0 );
    CHECK_EQ( sick.closed, 1 );
}

static struct {
    struct netcode_socket_t inner[2]; /* the server's, the client's */
    int fail_at;                      /* this call, counted from 1, fails; 0: none */
    int calls;
    int error;
    int failed_receives[2];
    int failed_sends[2];
} shaky_world;

static int shaky_receive( int side, struct netcode_datagram_t * datagrams, int count )
{
    int more;
    if ( ++shaky_world.calls != shaky_world.fail_at )
        return shaky_world.inner[side].receive( shaky_world.inner[side].context, datagrams, count );
    shaky_world.failed_receives[side]++;
    memset( &datagrams[0].address, 0, sizeof( datagrams[0].address ) );
    datagrams[0].status = NETCODE_DATAGRAM_ERROR;
    datagrams[0].error = shaky_world.error;
    datagrams[0].bytes = 0;
    if ( count < 2 )
        return 1;
    more = shaky_world.inner[side].receive( shaky_world.inner[side].context, datagrams + 1, count - 1 );
    return 1 + ( more > 0 ? more : 0 );
}

static int shaky_server_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    return shaky_receive( 0, datagrams, count );
}

static int shaky_client_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    return shaky_receive( 1, datagrams, count );
}

static int shaky_send( int side, const struct netcode_datagram_t * datagrams, int count )
{
    if ( ++shaky_world.calls != shaky_world.fail_at )
        return shaky_world.inner[side].send( shaky_world.inner[side].context, datagrams, count );
    shaky_world.failed_sends[side] += count;
    return 0;
}

static int shaky_server_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    return shaky_send( 0, datagrams, count );
}

static int shaky_client_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    return shaky_send( 1, datagrams, count );
}

static void shaky_begin( struct world_t * w, int fail_at, int error )
{
    memset( &shaky_world, 0, sizeof( shaky_world ) );
    shaky_world.fail_at = fail_at;
    shaky_world.error = error;
    shaky_world.inner[0] = w->servers[0]->base.socket;
    shaky_world.inner[1] = w->clients[0]->base.socket;
    w->servers[0]->base.socket.receive = shaky_server_receive;
    w->servers[0]->base.socket.send = shaky_server_send;
    w->clients[0]->base.socket.receive = shaky_client_receive;
    w->clients[0]->base.socket.send = shaky_client_send;
}

/* What failed was counted, each side's own. */
static void shaky_check_counts( struct world_t * w )
{
    struct netcode_server_stats_t s = server_stats( w, 0 );
    struct netcode_client_stats_t c = client_stats( w, 0 );
    CHECK_EQ( s.receive_errors, shaky_world.failed_receives[0] );
    CHECK_EQ( c.receive_errors, shaky_world.failed_receives[1] );
    CHECK_EQ( s.send_errors, shaky_world.failed_sends[0] );
    CHECK_EQ( c.send_errors, shaky_world.failed_sends[1] );
    if ( shaky_world.failed_receives[0] )
        CHECK_EQ( s.last_socket_error, shaky_world.error );
    if ( shaky_world.failed_receives[1] )
        CHECK_EQ( c.last_socket_error, shaky_world.error );
}

/* A client connects, both talk, it leaves. Returns how many calls of the network that took. */
static int shaky_story( int fail_at, int error )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int i, here = 0, there = 0;
    shaky_begin( w, fail_at, error );
    world_connect( w, 0, 1 );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    for ( i = 0; i < 10; i++ ) {
        client_send( w, 0, 50, i );
        server_send( w, 0, 0, 50, i );
        world_step( w );
        there += server_drain( w, 0, 0 );
        here += client_drain( w, 0 );
    }
    world_run( w, 0.3 );
    CHECK_GE( there + server_drain( w, 0, 0 ), 9 ); /* a datagram that the system refuses is lost, and no other */
    CHECK_GE( here + client_drain( w, 0 ), 9 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.2 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    shaky_check_counts( w );
    CHECK( world_join( w, 0, 2 ) ); /* and it works afterwards */
    i = shaky_world.calls;
    world_close( w );
    return i;
}

static int failing_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    for ( int i = 0; i < count; i++ ) {
        memset( &datagrams[i].address, 0, sizeof( datagrams[i].address ) );
        datagrams[i].bytes = 0;
        datagrams[i].status = NETCODE_DATAGRAM_ERROR;
        datagrams[i].error = 1;
    }
    return count;
}

/* Errors that use up the smallest budget leave nothing for the next update: waits wait, and the timeout is the token's. */
TEST( threat_52_errors_are_no_backlog )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.update_budget = 1;
    world_add_server( w, 1 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    w->clients[0]->base.socket.receive = failing_receive;
    world_run( w, 0.1 );
    CHECK_EQ( w->clients[0]->base.backlog, 0 );
    world_run( w, WORLD_TIMEOUT );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
}

TEST( threat_52_the_nth_call_of_the_network_fails )
{
    /* EAGAIN, EINTR, ECONNREFUSED, EMSGSIZE, ENOBUFS, ENETUNREACH, EPERM, ENOMEM, as Linux numbers them */
    static const int errors[] = { 11, 4, 111, 90, 105, 101, 1, 12 };
    int calls = shaky_story( 0, 0 ), n, i;
    CHECK_GE( calls, 100 );
    for ( n = 1; n <= calls && test_state.failures < 5; n++ )
        for ( i = 0; i < 8; i += n < 60 ? 1 : 8 ) /* past the handshake, one of them */
            if ( shaky_story( n, errors[i] ) == 0 || test_state.failures )
                printf( "    call %d, error %d\n", n, errors[i] );
}
