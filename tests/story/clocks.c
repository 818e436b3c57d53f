/* Story: clocks, the caller's and the calendar's. Threats 26, 53, 54, 57; see also decision_12 */

TEST( a_client_that_idled_for_an_hour_connects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    w->step = 1.0;
    world_run( w, 3600.0 );
    w->step = 0.01;
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    w->time += 7200.0; /* nobody updated anything for two hours */
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

/* A unix clock that went a day forward and back locks nobody out for longer than one token's lifetime. */
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
    puppet_make( &first, w, 0, 50, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &first ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->unix_offset += 86400;
    consume_tokens( w, 6, world_unix( w ) + 20, 200 );
    w->step = 0.1;
    world_run( w, 60.0 );
    consume_tokens( w, 2, world_unix( w ) + 20, 300 );
    w->unix_offset -= 86400;
    world_run( w, 1.0 );
    first.challenges = first.keep_alives = 0;
    CHECK( !puppet_connect( &first ) ); /* nothing opens again */
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
    p.r.expire = (uint64_t) 1 << 63;
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 3, "10.2.0.3:6000" );
    p.r.expire = FOREVER;
    puppet_mint( &p );
    CHECK( puppet_connect( &p ) );
    puppet_make( &p, w, 0, 4, "10.2.0.4:6000" ); /* and those in the past are not mistaken for others */
    p.r.expire = 1;
    puppet_mint( &p );
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
    start = netcode_time();
    netcode_sleep( 0.0 );
    netcode_sleep( -5.0 );
    netcode_sleep( NOT_A_NUMBER );
    CHECK( netcode_time() - start < 1.0 );
}
