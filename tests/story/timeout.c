/* Story: timeouts on each side, and none where the token disables them. Standard: Connected; Connected Clients */

static void timeout_row( int timeout, double server_ends, double client_ends )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    double start, ended[2] = { -1.0, -1.0 };
    int mark;
    r.timeout = timeout;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    world_run( w, 1.0 );
    w->cut_to = w->server_addresses[0];
    w->cut_from = w->server_addresses[0];
    start = w->time;
    mark = w->records.count;
    while ( w->time < start + 100.0 ) {
        world_step( w );
        if ( ended[0] < 0.0 && netcode_server_num_connected_clients( w->servers[0] ) == 0 )
            ended[0] = w->time - start;
        if ( ended[1] < 0.0 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED )
            ended[1] = w->time - start;
    }
    CHECK_NEAR( ended[0], server_ends, 0.2 );
    CHECK_NEAR( ended[1], client_ends, 0.2 );
    if ( server_ends >= 0.0 ) {
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
        CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
                  NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
        CHECK_EQ( server_stats( w, 0 ).disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT], 1 );
        CHECK_EQ( world_count( w, mark, NULL, NULL, NETCODE_PACKET_DISCONNECT, 0 ), 0 ); /* no packets on a timeout */
    }
}

TEST( timeout_of_5_s )
{
    timeout_row( 5, 5.0, 5.0 );
}
TEST( timeout_of_1_s )
{
    timeout_row( 1, 1.0, 1.0 );
}
TEST( timeout_of_60_s )
{
    timeout_row( 60, 60.0, 60.0 );
}
TEST( timeout_of_0_is_none )
{
    timeout_row( 0, -1.0, -1.0 );
}
TEST( timeout_of_minus_1_is_none )
{
    timeout_row( -1, -1.0, -1.0 );
}
TEST( timeout_of_int_min_is_none )
{
    timeout_row( (int) 0x80000000, -1.0, -1.0 );
}
TEST( timeout_of_int_max_is_long )
{
    timeout_row( 2147483647, -1.0, -1.0 );
}

TEST( payloads_alone_keep_a_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    for ( i = 0; i < 60; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 0, 10, i );
        world_run( w, 0.5 );
        client_drain( w, 0 );
        server_drain( w, 0, 0 );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* Only what is authentic counts as a sign of life. */
TEST( junk_does_not_keep_a_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t junk[100];
    double start;
    REQUIRE( world_join( w, 0, 1 ) );
    w->cut_from = w->client_addresses[0];
    start = w->time;
    while ( w->time < start + 6.0 ) {
        ledger_random_bytes( junk, sizeof( junk ) );
        junk[0] = 0x65;
        world_inject( w, &w->client_addresses[0], &w->server_addresses[0], junk, 100 );
        world_step( w );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* The token's expiry is about connecting: a connected client stays. Standard: Connect Token Expired */
TEST( a_connection_outlives_its_token )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    r.expire = r.create + 3;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    world_run( w, 20.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* The timeout of a response begins with the challenge, however long the request has waited. */
TEST( the_response_times_out_from_the_challenge_on )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    double challenged;
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_connect( w, 0, 1 );
    world_run( w, 4.0 ); /* of the 5 s of its timeout */
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 0.5 ) );
    challenged = w->time;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT, 6.0 ) );
    CHECK_NEAR( w->time - challenged, (double) WORLD_TIMEOUT, 0.02 );
}

/* 71: the clock made a step past the timeout: the slot ends, and no keep-alive goes to it first. */
TEST( threat_71_a_slot_that_times_out_gets_no_packet )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    int mark;
    REQUIRE( world_join( w, 0, 1 ) );
    world_destroy_client( w, 1 );
    w->cut_from = w->client_addresses[0];
    mark = w->records.count;
    w->time += 1000.0;
    netcode_server_update( w->servers[0], w->time );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 0 );
}
