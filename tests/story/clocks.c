/* Story: clocks, the caller's and the calendar's. Threats 26, 53, 54, 57; see also decision_12 */

TEST( a_client_that_idled_for_an_hour_connects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    w->step = 1.0;
    world_run( w, 3600.0 );
    w->step = 0.01;
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    w->time += 7200.0; /* nothing was updated for two hours */
    REQUIRE( world_join( w, 0, 2 ) );
    world_connect( w, 1, 3 ); /* and an hour passes between connect and the first update */
    w->time += 200.0;
    w->unix_offset -= 200;
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

TEST( odd_times_at_create_and_before_connect )
{
    double odd[5];
    int i;
    odd[0] = -3600.0;
    odd[1] = NOT_A_NUMBER;
    odd[2] = ENDLESS;
    odd[3] = 1e18;
    odd[4] = -1e300;
    for ( i = 0; i < 5; i++ ) {
        struct world_t * w = world_new( CLEAN );
        double time = w->time;
        w->time = odd[i];
        world_add_server( w, 2 );
        world_add_client( w );
        w->time = time;
        netcode_client_update( w->clients[0], odd[i] );
        netcode_server_update( w->servers[0], odd[i] );
        if ( !CHECK( world_join( w, 0, 1 ) ) )
            printf( "    row %d\n", i );
        world_run( w, 10.0 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        world_close( w );
    }
}

/* The calendar moves under a connection, and a client's count of its token's life does not care. */
TEST( unix_clock_steps_leave_connections_alone )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    REQUIRE( world_join( w, 0, 1 ) );
    w->unix_offset = 100000000;
    world_run( w, 10.0 );
    w->unix_offset = -100000000;
    world_run( w, 10.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    w->cut_to = w->server_addresses[0];
    world_connect( w, 1, 2 );
    world_step( w );
    w->unix_offset = 100000000;
    world_run( w, 1.0 );
    CHECK_EQ( netcode_client_state( w->clients[1] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
}

/* A unix clock that went a day forward and back locks no client out for longer than one token's lifetime. */
TEST( a_day_forward_and_back_locks_nobody_out )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int i;
    w->server_config.consumed_tokens = 64;
    world_add_server( w, 4 );
    consume_tokens( w, 10, world_unix( w ) + 60, 100 );
    w->unix_offset += 86400;
    consume_tokens( w, 6, world_unix( w ) + 300, 200 ); /* minted by a backend whose clock stepped as well */
    w->unix_offset -= 86400;
    w->step = 0.1;
    for ( i = 0; i < 3; i++ ) {
        world_run( w, 150.0 );
        puppet_make( &p, w, 0, 1000 + (uint64_t) i, "10.4.0.1:9000" );
        if ( puppet_connect( &p ) )
            break;
    }
    CHECK_LT( i, 3 );
}

/*  The same where the tokens of the wrong day were used, and expired by the wrong clock, before it stepped back. */
TEST( a_day_forward_long_enough_for_tokens_to_expire_locks_nobody_out )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t first, p;
    int i;
    REQUIRE( puppet_join( &first, w, 0, 50, "10.2.0.1:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset += 86400;
    consume_tokens( w, 6, world_unix( w ) + 20, 200 );
    w->step = 0.1;
    world_run( w, 60.0 );
    consume_tokens( w, 2, world_unix( w ) + 20, 300 );
    w->unix_offset -= 86400;
    world_run( w, 1.0 );
    CHECK( !puppet_again( &first ) ); /* nothing opens again */
    for ( i = 0; i < 3; i++ ) {
        puppet_make( &p, w, 0, 1000 + (uint64_t) i, "10.4.0.1:9000" );
        if ( puppet_connect( &p ) )
            break;
        world_run( w, 150.0 );
    }
    CHECK_LT( i, 3 );
}

TEST( token_times_at_the_edges )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = FOREVER - 1; /* far, but not never */
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 2, "10.2.0.2:6000" );
    puppet_expires( &p, (uint64_t) 1 << 63 );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 3, "10.2.0.3:6000" );
    puppet_expires( &p, FOREVER );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 4, "10.2.0.4:6000" ); /* and those in the past are not mistaken for others */
    puppet_expires( &p, 1 );
    CHECK( !puppet_connect( &p ) );
    puppet_make( &p, w, 0, 5, "10.2.0.5:6000" );
    CHECK( puppet_connect( &p ) );
}

TEST( time_and_sleep )
{
    double start = netcode_time(), slept;
    netcode_sleep( 0.02 );
    slept = netcode_time() - start;
    CHECK( slept >= 0.019 );
    test_waited = -1.0;
    netcode_sleep( 0.0 );
    netcode_sleep( -5.0 );
    netcode_sleep( NOT_A_NUMBER );
    CHECK( test_waited < 0.0 );
}

#if !defined( _WIN32 )

static double clocks_waited;

static void clocks_wait( void * context, double seconds )
{
    (void) context;
    clocks_waited = seconds;
}

/* Not longer than until the next packet is due. */
TEST( mutants_wait_ends_when_something_is_due )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    w->clients[0]->base.socket.wait = clocks_wait;
    w->servers[0]->base.socket.wait = clocks_wait;
    client_send( w, 0, 10, 1 );
    clocks_waited = 0.0;
    netcode_client_wait( w->clients[0], 5.0 );
    CHECK_NEAR( clocks_waited, 0.1, 0.002 );
    netcode_client_wait( w->clients[0], 0.03 );
    CHECK_NEAR( clocks_waited, 0.03, 1e-9 );
    w->clients[0]->base.clock.now += 0.2; /* something is due already */
    clocks_waited = -1.0;
    netcode_client_wait( w->clients[0], 5.0 );
    CHECK_NEAR( clocks_waited, -1.0, 0.0 );
    w->clients[0]->base.clock.now -= 0.2;
    w->clients[0]->base.backlog = 1; /* datagrams are waiting */
    netcode_client_wait( w->clients[0], 5.0 );
    CHECK_NEAR( clocks_waited, -1.0, 0.0 );
    w->clients[0]->base.backlog = 0;
    netcode_server_wait( w->servers[0], 5.0 );
    CHECK( clocks_waited > 0.0 && clocks_waited <= 0.11 );
    netcode_server_wait( w->servers[0], 0.001 );
    CHECK( clocks_waited <= 0.001 );
    w->servers[0]->base.backlog = 1;
    clocks_waited = -1.0;
    netcode_server_wait( w->servers[0], 5.0 );
    CHECK_NEAR( clocks_waited, -1.0, 0.0 );
    w->servers[0]->base.backlog = 0;
    w->servers[0]->base.clock.now += 0.2;
    clocks_waited = -1.0;
    netcode_server_wait( w->servers[0], 5.0 );
    CHECK_NEAR( clocks_waited, -1.0, 0.0 );
    netcode_client_disconnect( w->clients[0] );
    netcode_client_connect_loopback( w->clients[0], 0, 1 );
    w->clients[0]->base.clock.now += 0.2;
    netcode_client_wait( w->clients[0], 5.0 ); /* it sends nothing, so nothing is ever due */
    CHECK_NEAR( clocks_waited, 5.0, 0.0 );
}

#endif

/* A socket that can not wait: the library sleeps a millisecond in its place. */
TEST( corners_wait_without_a_wait )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    netcode_client_wait( w->clients[0], 0.002 );
    netcode_client_wait( w->clients[0], 0.0005 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
}

/* ---- any time ---- */

TEST( decision_12_the_clock_adds_only_positive_finite_steps )
{
    double odd[6];
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    double time;
    int i, j;
    odd[0] = 0.0; /* each is a step back from the one before, or none at all */
    odd[1] = NOT_A_NUMBER;
    odd[2] = -3600.0;
    odd[3] = ENDLESS;
    odd[4] = -ENDLESS;
    odd[5] = -1e6;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 6; i++ ) {
        for ( j = 0; j < 100; j++ ) {
            netcode_server_update( w->servers[0], odd[i] );
            netcode_client_update( w->clients[0], odd[i] );
            netcode_network_simulator_update( w->net, w->time += 0.01 );
        }
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    }
    time = -2e6; /* and from wherever it stands, it goes on: keep-alives resume, no client is lost */
    netcode_server_update( w->servers[0], time );
    netcode_client_update( w->clients[0], time );
    for ( i = 0; i < 2000; i++ ) {
        time += 0.01;
        w->time += 0.01;
        netcode_network_simulator_update( w->net, w->time );
        netcode_server_update( w->servers[0], time );
        netcode_client_update( w->clients[0], time );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    w->cut_from = w->client_addresses[0]; /* timeouts work on that clock as well */
    for ( i = 0; i < 550; i++ )
        netcode_server_update( w->servers[0], time += 0.01 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

TEST( decision_12_a_jump_of_a_billion_seconds_costs_one_pass )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    clock_t start;
    REQUIRE( world_join( w, 0, 1 ) );
    world_connect( w, 1, 2 );
    world_step( w );
    start = clock();
    netcode_server_update( w->servers[0], w->time + 1e9 );
    netcode_client_update( w->clients[0], w->time + 1e9 );
    netcode_client_update( w->clients[1], w->time + 1e9 );
    netcode_network_simulator_update( w->net, w->time + 1e9 );
    netcode_server_update( w->servers[0], w->time + 2e9 );
    netcode_client_update( w->clients[0], w->time + 2e9 );
    CHECK_LT( (double) ( clock() - start ) / CLOCKS_PER_SEC * 1000.0, 200 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

static void odd_update( struct world_t * w, int sides, double time )
{
    w->time += 0.01;
    netcode_network_simulator_update( w->net, w->time );
    if ( sides & 1 )
        netcode_server_update( w->servers[0], time );
    if ( sides & 2 )
        netcode_client_update( w->clients[0], time );
}

/* Both clocks run on from where they stand now. */
static void odd_recover( struct world_t * w, double * clocks, double seconds )
{
    int i;
    for ( i = 0; i < (int) ( seconds * 100.0 ); i++ ) {
        clocks[0] += 0.01;
        clocks[1] += 0.01;
        w->time += 0.01;
        netcode_network_simulator_update( w->net, w->time );
        netcode_server_update( w->servers[0], clocks[0] );
        netcode_client_update( w->clients[0], clocks[1] );
    }
}

/* `may_be_lost`: the odd time is a jump ahead, in which a client may have timed out: then it connects again. */
static void odd_row( double odd, int sides, int may_be_lost )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    double clocks[2];
    int i, mark;
    REQUIRE( world_join( w, 0, 1 ) );
    clocks[0] = clocks[1] = w->time;
    for ( i = 0; i < 50; i++ )
        odd_update( w, sides, odd );
    for ( i = 0; i < 2; i++ )
        if ( ( sides >> i & 1 ) && fabs( odd ) < 1e18 )
            clocks[i] = odd;
    if ( !may_be_lost ) {
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
        odd_recover( w, clocks, 0.3 );
        mark = w->records.count;
        odd_recover( w, clocks, 2.0 ); /* keep-alives come as before: 10 a second */
        CHECK_GE( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 18 );
        CHECK_GE( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 18 );
        odd_recover( w, clocks, 20.0 ); /* no client is lost */
    } else {
        odd_recover( w, clocks, 12.0 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ),
                  netcode_client_state( w->clients[0] ) == NETCODE_CLIENT_STATE_CONNECTED );
        if ( netcode_client_state( w->clients[0] ) <= 0 )
            world_connect( w, 0, 2 );
        odd_recover( w, clocks, 1.0 );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    world_close( w );
}

TEST( threat_53_odd_times )
{
    double odd[8];
    int i, sides;
    odd[0] = 100.0; /* it stands still, or goes back by an instant */
    odd[1] = 0.0;
    odd[2] = 100.0 - 3600.0;
    odd[3] = NOT_A_NUMBER;
    odd[4] = ENDLESS;
    odd[5] = -ENDLESS;
    odd[6] = -1e300;
    odd[7] = 100.0 + 1e9;
    for ( sides = 1; sides <= 3; sides++ )
        for ( i = 0; i < 8; i++ ) {
            int before = test_state.failures;
            odd_row( odd[i], sides, i == 7 );
            if ( test_state.failures != before )
                printf( "    time %g, sides %d\n", odd[i], sides );
        }
}

/* ---- unix time, and when tokens expire ---- */

TEST( decision_c_unix_time_is_the_callers )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    w->unix_offset = -1000000000; /* far from the system's clock */
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_expires( &p, p.r.create + 10 );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 2, "10.2.0.2:6000" );
    w->unix_offset += 301;
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_EXPIRED ), 1 );
}

TEST( threat_57_tokens_that_expire_now_and_never )
{
    static const struct {
        uint64_t create;
        uint64_t expire;
        int server_takes;
        int client_takes;
    } rows[] = {
        { 0, 0, 0, 1 },
        { 0, 1, 0, 1 },
        { WORLD_UNIX, WORLD_UNIX + 99, 0, 1 },
        { WORLD_UNIX, WORLD_UNIX + 100, 0, 1 }, /* now */
        { WORLD_UNIX, WORLD_UNIX + 101, 1, 1 },
        { WORLD_UNIX + 100, WORLD_UNIX + 101, 1, 1 },
        { WORLD_UNIX + 102, WORLD_UNIX + 101, 1, 0 }, /* created after it expires */
        { 0, (uint64_t) 1 << 63, 1, 1 },
        { 0, UINT64_MAX - 1, 1, 1 },
        { 0, UINT64_MAX, 1, 1 },
        { UINT64_MAX, UINT64_MAX, 1, 1 },
        { UINT64_MAX, UINT64_MAX - 1, 1, 0 },
        { 1, 0, 0, 0 },
    };
    int i;
    for ( i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct recipe_t r = recipe_for( w, 1 );
        struct puppet_t p;
        int before = test_state.failures;
        w->step = 0.0001;
        r.create = rows[i].create;
        r.expire = rows[i].expire;
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r = r;
        puppet_mint( &p );
        CHECK_EQ( puppet_challenged( &p ), rows[i].server_takes );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_EXPIRED ), !rows[i].server_takes );
        world_connect_recipe( w, 0, &r );
        CHECK_EQ( netcode_client_state( w->clients[0] ), rows[i].client_takes
                                                             ? NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST
                                                             : NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
        w->cut_to = w->server_addresses[0];
        world_run( w, 0.01 );
        if ( rows[i].create == rows[i].expire && rows[i].expire != FOREVER ) /* it has no second to live */
            CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED );
        if ( test_state.failures != before )
            printf( "    row %d\n", i );
        world_close( w );
    }
}
