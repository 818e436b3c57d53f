/* Story: goodbye from each side, coming back, stops and starts of the server, and new private keys. */

TEST( client_disconnects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark;
    REQUIRE( world_join( w, 0, 1 ) );
    mark = w->records.count;
    netcode_client_disconnect( w->clients[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_DISCONNECT, 0 ), 10 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 0 );
    CHECK( netcode_server_client_user_data( w->servers[0], 0 ) == NULL );
    CHECK( netcode_server_client_address( w->servers[0], 0 ) == NULL );
    CHECK_EQ( netcode_server_client_session( w->servers[0], 0 ), 0 );
    CHECK_EQ( netcode_client_index( w->clients[0] ), -1 );
    CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 0 );
    mark = w->records.count;
    netcode_client_disconnect( w->clients[0] ); /* again: nothing */
    CHECK_EQ( w->records.count, mark );
}

/* The goodbyes leave at once, also where sends are batched. */
TEST( goodbyes_do_not_wait_for_a_batch )
{
    struct world_t * w = world_new( CLEAN );
    int mark, round;
    w->server_config.batch_sends = w->client_config.batch_sends = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    for ( round = 0; round < 3; round++ ) {
        REQUIRE( world_join( w, 0, 1 + (uint64_t) round ) );
        mark = w->records.count;
        if ( round == 0 )
            netcode_client_disconnect( w->clients[0] );
        if ( round == 1 )
            netcode_server_disconnect_client( w->servers[0], 0 );
        if ( round == 2 )
            netcode_server_stop( w->servers[0] );
        CHECK_EQ( world_count( w, mark, NULL, NULL, NETCODE_PACKET_DISCONNECT, 0 ), 10 );
        world_run( w, 0.2 );
    }
}

TEST( server_disconnects_a_client )
{
    struct world_t * w = world_open( CLEAN, 1, 3, 3 );
    int mark, i;
    for ( i = 0; i < 3; i++ )
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
    mark = w->records.count;
    netcode_server_disconnect_client( w->servers[0], 1 );
    CHECK_EQ( world_count( w, mark, NULL, &w->client_addresses[1], NETCODE_PACKET_DISCONNECT, 0 ), 10 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 1 ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 1 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_DISCONNECTED, 1.0 ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    netcode_server_disconnect_all_clients( w->servers[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_DISCONNECTED, 1.0 ) );
    REQUIRE( world_until( w, 2, NETCODE_CLIENT_STATE_DISCONNECTED, 1.0 ) );
    CHECK_EQ( w->server_parties[0].log_count, 6 );
    CHECK_EQ( server_stats( w, 0 ).disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT], 3 );
}

TEST( goodbyes_arrive_on_a_lossy_network )
{
    int i;
    for ( i = 0; i < 10; i++ ) {
        struct world_t * w = world_open( LOSSY, 1, 1, 1 );
        w->net->packet_loss_percent = 20.0f;
        REQUIRE( world_join( w, 0, 1 ) );
        if ( i % 2 )
            netcode_client_disconnect( w->clients[0] );
        else
            netcode_server_disconnect_client( w->servers[0], 0 );
        world_run( w, 0.6 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        world_close( w );
    }
}

TEST( destroying_and_stopping_say_goodbye )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    REQUIRE( world_join( w, 0, 1 ) );
    REQUIRE( world_join( w, 1, 2 ) );
    world_destroy_client( w, 0 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
    netcode_server_stop( w->servers[0] );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_DISCONNECTED, 0.2 ) );
    netcode_server_start( w->servers[0], 2 );
    REQUIRE( world_join( w, 1, 3 ) );
    world_destroy_server( w, 0 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_DISCONNECTED, 0.2 ) );
}

/* Threat 58. What was queued when the client left can be read until the slot is used again. */
TEST( queued_payloads_outlive_the_client )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    client_send( w, 0, 10, 1 );
    client_send( w, 0, 10, 2 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.5 );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drain( w, 0, 0 ), 2 );
    REQUIRE( world_join( w, 0, 2 ) );
    client_send( w, 0, 10, 3 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    REQUIRE( world_join( w, 0, 3 ) );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 ); /* the next player does not inherit them */
}

TEST( clients_come_back_with_new_tokens )
{
    struct world_t * w = world_open( LOSSY, 1, 2, 2 );
    int round;
    for ( round = 0; round < 6; round++ ) {
        world_connect( w, 0, 1 );
        world_connect( w, 1, 2 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
        REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
        world_run( w, 1.0 );
        netcode_client_disconnect( w->clients[0] );
        netcode_server_disconnect_all_clients( w->servers[0] );
        world_run( w, 2.0 );
        CHECK_EQ( netcode_client_state( w->clients[1] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    }
    CHECK_EQ( server_stats( w, 0 ).connects, 12 );
}

/* A connect during another one begins anew with the new token. */
TEST( connect_while_connecting_and_while_connected )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    world_connect( w, 0, 1 );
    world_run( w, 0.02 );
    world_connect( w, 0, 2 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    CHECK_GE( world_slot( w, 0, 2 ), 0 );
    world_run( w, 0.3 );
    world_connect( w, 0, 3 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 7.0 ) );
    CHECK_GE( world_slot( w, 0, 3 ), 0 );
}

/* ---- stop and start ---- */

TEST( server_stop_and_start_with_other_sizes )
{
    static const int sizes[] = { 1, 300, 2, 64, 1 };
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int i;
    for ( i = 0; i < 5; i++ ) {
        netcode_server_stop( w->servers[0] );
        CHECK_EQ( netcode_server_running( w->servers[0] ), 0 );
        CHECK_EQ( netcode_server_max_clients( w->servers[0] ), 0 );
        world_run( w, 0.1 );
        netcode_server_start( w->servers[0], sizes[i] );
        CHECK_EQ( netcode_server_running( w->servers[0] ), 1 );
        CHECK_EQ( netcode_server_max_clients( w->servers[0] ), sizes[i] );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        REQUIRE( world_join( w, 0, 1 ) );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), sizes[i] );
    }
    netcode_server_start( w->servers[0], 3 ); /* started while running: stopped first */
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_DISCONNECTED, 0.2 ) );
    CHECK_EQ( netcode_server_max_clients( w->servers[0] ), 3 );
}

TEST( clients_connect_again_after_a_restart )
{
    struct world_t * w = world_open( LOSSY, 1, 8, 8 );
    int round, i;
    for ( round = 0; round < 3; round++ ) {
        for ( i = 0; i < 8; i++ )
            world_connect( w, i, (uint64_t) i + 1 );
        for ( i = 0; i < 8; i++ )
            REQUIRE( world_until( w, i, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
        if ( round == 0 ) {
            world_restart( w, 0, 8 );
        }
        if ( round == 1 ) {
            w->cut_from = w->server_addresses[0]; /* a crash says nothing: the clients time out */
            world_destroy_server( w, 0 );
            memset( &w->cut_from, 0, sizeof( w->cut_from ) );
            world_make_server( w, 0 );
            netcode_server_start( w->servers[0], 8 );
        }
        for ( i = 0; i < 8 && round < 2; i++ )
            REQUIRE( world_until( w, i,
                                  round ? NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT : NETCODE_CLIENT_STATE_DISCONNECTED,
                                  10.0 ) );
    }
}

/* ---- key rotation ---- */

TEST( private_keys_can_be_rotated )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 1 );
    struct puppet_t old, new_one, pending;
    uint8_t keys[4 * NETCODE_KEY_BYTES];
    ledger_random_bytes( keys, sizeof( keys ) );
    memcpy( keys + 3 * NETCODE_KEY_BYTES, world_key, NETCODE_KEY_BYTES );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK_EQ( netcode_server_set_private_keys( w->servers[0], keys, 4 ),
              NETCODE_OK ); /* the old one is the last of four */
    puppet_make( &old, w, 0, 2, "10.2.0.2:6000" );
    CHECK( puppet_connect( &old ) );
    puppet_make( &new_one, w, 0, 3, "10.2.0.3:6000" );
    memcpy( new_one.r.private_key, keys + NETCODE_KEY_BYTES, NETCODE_KEY_BYTES );
    puppet_mint( &new_one );
    CHECK( puppet_connect( &new_one ) );
    REQUIRE( puppet_begin( &pending, w, 0, 4, "10.2.0.4:6000" ) );
    CHECK_EQ( server_stats( w, 0 ).pending, 1 );
    CHECK_EQ( netcode_server_set_private_keys( w->servers[0], keys, 2 ), NETCODE_OK ); /* effective at once */
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
    puppet_answer( &pending );
    CHECK_EQ( pending.keep_alives, 0 );
    puppet_make( &old, w, 0, 5, "10.2.0.5:6000" );
    CHECK( !puppet_connect( &old ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), 1 );
    world_run( w, 1.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED ); /* connected clients stay */
    puppet_make( &pending, w, 0, 6, "10.2.0.6:6000" );
    memcpy( pending.r.private_key, keys, NETCODE_KEY_BYTES );
    puppet_mint( &pending );
    REQUIRE( puppet_challenged( &pending ) ); /* a handshake under a key that stays, stays */
    CHECK_EQ( netcode_server_set_private_keys( w->servers[0], keys, 1 ), NETCODE_OK );
    puppet_answer( &pending );
    CHECK( pending.keep_alives > 0 );
}

#if !defined( _WIN32 )

/* The entry for a further private key holds zeros, which are no key. */
TEST( mutants_a_key_of_zeros_opens_nothing )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memset( p.r.private_key, 0, sizeof( p.r.private_key ) );
    puppet_mint( &p );
    CHECK( !puppet_challenged( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), 1 );
}

#endif

/* Threat 58, over many sessions in other slots, by an application that takes no events. */
TEST( queued_payloads_outlive_many_sessions_in_other_slots )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p, q;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_connect( &p ) );
    REQUIRE( puppet_connect( &q ) );
    puppet_say( &q, 10, 1 );
    puppet_send( &q, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    REQUIRE_EQ( netcode_server_client_connected( w->servers[0], 1 ), 0 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    for ( i = 0; i < 200; i++ ) {
        REQUIRE( puppet_join( &p, w, 0, 10 + (uint64_t) i, "10.2.0.1:6000" ) ); /* slot 0 each time */
        netcode_server_disconnect_client( w->servers[0], 0 );
    }
    CHECK_EQ( server_drain( w, 0, 1 ), 1 );
}

/* ---- 67: a private key of zeros ---- */

/* 67: a private key that was never set works, as known programs use one in their tests; each start says so. */
TEST( threat_67_a_private_key_of_zeros )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_ERROR );
    uint8_t keys[2][NETCODE_KEY_BYTES] = { { 0 }, { 0 } };
    struct recipe_t r;
    memset( w->server_config.private_key, 0, NETCODE_KEY_BYTES );
    world_add_server( w, 2 );
    world_add_client( w );
    CHECK_EQ( logged_times( "a private key is all zeros" ), 1 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( logged_times( "a private key is all zeros" ), 2 );
    r = recipe_for( w, 1 );
    memset( r.private_key, 0, NETCODE_KEY_BYTES );
    world_connect_recipe( w, 0, &r );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    keys[0][31] = keys[1][0] = 1;
    netcode_server_set_private_keys( w->servers[0], keys[0], 2 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( logged_times( "a private key is all zeros" ), 2 );
    keys[1][0] = 0; /* any one of them */
    netcode_server_set_private_keys( w->servers[0], keys[0], 2 );
    CHECK_EQ( logged_times( "a private key is all zeros" ), 3 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( logged_times( "a private key is all zeros" ), 4 );
}
