/* Story: callbacks that call back into the library. Threat 56 */

static uint8_t callback_token[NETCODE_CONNECT_TOKEN_BYTES];

/* Everything that can be done to a client, one number for each. Returns 0 past the end. */
static int do_to_client( struct world_t * w, int number )
{
    struct netcode_client_t * c = w->clients[0];
    struct netcode_client_stats_t stats;
    struct netcode_client_report_t report;
    struct netcode_event_t event;
    uint8_t data[64] = { 0 }, *packet;
    int bytes;
    if ( !c )
        return number < 24;
    switch ( number ) {
    case 0: netcode_client_disconnect( c ); break;
    case 1: netcode_client_connect( c, callback_token ); break;
    case 2: netcode_client_update( c, w->time + 1.0 ); break;
    case 3: netcode_client_send_packet( c, data, 20 ); break;
    case 4:
        packet = c->config.events ? NULL : netcode_client_receive_packet( c, &bytes, NULL );
        netcode_client_free_packet( c, packet );
        break;
    case 5: (void) netcode_client_state( c ); break;
    case 6: (void) netcode_client_index( c ); break;
    case 7: (void) netcode_client_max_clients( c ); break;
    case 8: (void) netcode_client_get_port( c ); break;
    case 9: (void) netcode_client_server_address( c ); break;
    case 10: netcode_client_process_packet( c, &w->server_addresses[0], data, 30 ); break;
    case 11: netcode_client_connect_loopback( c, 0, 4 ); break;
    case 12: netcode_client_disconnect_loopback( c ); break;
    case 13: (void) netcode_client_loopback( c ); break;
    case 14: netcode_client_process_loopback_packet( c, data, 10, 1 ); break;
    case 15:
        if ( c->config.events && netcode_client_next_event( c, &event ) )
            netcode_client_free_packet( c, event.data );
        break;
    case 16: netcode_client_flush( c ); break;
    case 17: netcode_client_wait( c, 0.0 ); break;
    case 18: netcode_client_stats( c, &stats ); break;
    case 19: netcode_client_report( c, &report ); break;
    case 20: (void) netcode_client_next_packet_sequence( c ); break;
    case 21: netcode_client_send_packet( c, data, 9999 ); break;
    case 22: netcode_client_free_packet( c, NULL ); break;
    case 23:
        netcode_client_destroy( c ); /* waits for the outermost call, so that the object can still be asked now */
        (void) netcode_client_state( c );
        (void) netcode_client_index( c );
        w->clients[0] = NULL;
        break;
    default: return 0;
    }
    return 1;
}

static int do_to_server( struct world_t * w, int number )
{
    struct netcode_server_t * s = w->servers[0];
    struct netcode_server_stats_t stats;
    struct netcode_server_client_stats_t slot;
    struct netcode_event_t event;
    uint8_t data[64] = { 0 }, *packet;
    int bytes, i;
    if ( !s )
        return number < 34;
    switch ( number ) {
    case 0: netcode_server_disconnect_client( s, 0 ); break;
    case 1: netcode_server_disconnect_all_clients( s ); break;
    case 2: netcode_server_update( s, w->time + 1.0 ); break;
    case 3: netcode_server_send_packet( s, 0, data, 20 ); break;
    case 4:
        packet = s->config.events ? NULL : netcode_server_receive_packet( s, 0, &bytes, NULL );
        netcode_server_free_packet( s, packet );
        break;
    case 5: (void) netcode_server_running( s ); break;
    case 6: (void) netcode_server_max_clients( s ); break;
    case 7: (void) netcode_server_num_connected_clients( s ); break;
    case 8: (void) netcode_server_client_connected( s, 0 ); break;
    case 9: (void) netcode_server_client_disconnect_reason( s, 0 ); break;
    case 10: (void) netcode_server_client_loopback( s, 0 ); break;
    case 11: (void) netcode_server_client_id( s, 0 ); break;
    case 12: (void) netcode_server_client_address( s, 0 ); break;
    case 13: (void) netcode_server_client_user_data( s, 0 ); break;
    case 14: (void) netcode_server_client_session( s, 0 ); break;
    case 15: (void) netcode_server_next_packet_sequence( s, 0 ); break;
    case 16: netcode_server_process_packet( s, &w->client_addresses[0], data, 30 ); break;
    case 17: netcode_server_connect_loopback_client( s, 1, 555, NULL ); break;
    case 18: netcode_server_disconnect_loopback_client( s, 1 ); break;
    case 19: netcode_server_process_loopback_packet( s, 1, data, 10, 1 ); break;
    case 20: (void) netcode_server_get_port( s ); break;
    case 21:
        for ( i = 0; i < 10 && s->config.events && netcode_server_next_event( s, &event ); i++ )
            netcode_server_free_packet( s, event.data );
        break;
    case 22: netcode_server_flush( s ); break;
    case 23: netcode_server_wait( s, 0.0 ); break;
    case 24: netcode_server_stats( s, &stats ); break;
    case 25: netcode_server_client_stats( s, 0, &slot ); break;
    case 26: (void) netcode_server_set_private_keys( s, world_key, 1 ); break;
    case 27: netcode_server_broadcast( s, data, 20, -1 ); break;
    case 28: netcode_server_send_packet_to_session( s, 0, 1, data, 20 ); break;
    case 29: netcode_server_free_packet( s, NULL ); break;
    case 30: netcode_server_stop( s ); break;
    case 31: netcode_server_start( s, 6 ); break;
    case 32:
        netcode_server_stop( s );
        netcode_server_start( s, 7 );
        break;
    case 33:
        netcode_server_destroy( s );
        (void) netcode_server_client_id( s, 0 );
        (void) netcode_server_running( s );
        w->servers[0] = NULL;
        break;
    default: return 0;
    }
    return 1;
}

static struct {
    struct world_t * world;
    int of_server;
    int number; /* what to do */
    int where;  /* in which callback */
    int depth;
    int calls;
} back;

enum { IN_CHANGE, IN_DROP, IN_LOOPBACK, IN_LOG, IN_UNIX, IN_SEND, IN_RECEIVE };

static void call_back( int where, int is_server )
{
    if ( where != back.where || is_server != back.of_server || back.depth || back.calls >= 5 || !back.world )
        return;
    back.depth++;
    back.calls++;
    if ( is_server )
        do_to_server( back.world, back.number );
    else
        do_to_client( back.world, back.number );
    back.depth--;
}

static void back_change( void * context, int a, int b )
{
    world_change_callback( context, a, b );
    call_back( IN_CHANGE, ( (struct world_party_t *) context )->is_server );
}

static void back_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    world_drop_callback( context, reason, from, bytes );
    call_back( IN_DROP, ( (struct world_party_t *) context )->is_server );
}

static void back_loopback( void * context, int client_index, const uint8_t * data, int bytes, uint64_t sequence )
{
    world_loopback_callback( context, client_index, data, bytes, sequence );
    call_back( IN_LOOPBACK, ( (struct world_party_t *) context )->is_server );
}

static void back_log( void * context, int level, const char * text )
{
    world_log_callback( context, level, text );
    call_back( IN_LOG, ( (struct world_party_t *) context )->is_server );
}

static uint64_t back_unix( void * context )
{
    call_back( IN_UNIX, ( (struct world_party_t *) context )->is_server );
    return world_unix( ( (struct world_party_t *) context )->world );
}

/* The network's own functions are callbacks as well. */
static int back_send( struct world_t * w, const struct world_datagram_t * d )
{
    if ( netcode_address_equal( &d->from, &w->server_addresses[0] ) )
        call_back( IN_SEND, 1 );
    else if ( netcode_address_equal( &d->from, &w->client_addresses[0] ) )
        call_back( IN_SEND, 0 );
    return 0;
}

static void back_receive( struct world_t * w, const struct netcode_address_t * who )
{
    if ( netcode_address_equal( who, &w->server_addresses[0] ) )
        call_back( IN_RECEIVE, 1 );
    else if ( netcode_address_equal( who, &w->client_addresses[0] ) )
        call_back( IN_RECEIVE, 0 );
}

/* What must hold whatever was called. */
static void check_counts( struct world_t * w )
{
    struct netcode_server_t * s = w->servers[0];
    int i, count = 0;
    if ( !s )
        return;
    for ( i = 0; i < netcode_server_max_clients( s ); i++ )
        count += netcode_server_client_connected( s, i );
    CHECK_EQ( netcode_server_num_connected_clients( s ), count );
    CHECK_EQ( server_stats( w, 0 ).clients, count );
}

/* A life with every kind of callback in it: connect, payloads, drops, loopback, disconnect. */
static int one_life( int where, int number, int of_server )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t junk[40] = { 0x15 };
    struct recipe_t r;
    int i, calls;
    memset( &back, 0, sizeof( back ) );
    w->step = 0.02;
    w->server_config.connect_disconnect_callback = back_change;
    w->client_config.state_change_callback = back_change;
    w->server_config.events = w->client_config.events = test_random_below( 2 );
    w->server_config.drop_callback = w->client_config.drop_callback = back_drop;
    w->server_config.send_loopback_packet_callback = w->client_config.send_loopback_packet_callback = back_loopback;
    w->server_config.log_callback = w->client_config.log_callback = back_log;
    w->server_config.unix_time = back_unix;
    world_fill( w, 1, 4, 2 );
    r = recipe_for( w, 3 );
    mint( &r, callback_token );
    REQUIRE( world_join( w, 1, 2 ) );
    netcode_log_level( where == IN_LOG ? NETCODE_LOG_LEVEL_DEBUG : NETCODE_LOG_LEVEL_NONE );
    netcode_server_connect_loopback_client( w->servers[0], 2, 77, NULL );
    back.world = w;
    back.where = where;
    back.number = number;
    back.of_server = of_server;
    w->hook = back_send;
    w->receive_hook = back_receive;
    test_state.expecting = 1;
    if ( where == IN_LOOPBACK && !of_server )
        netcode_client_connect_loopback( w->clients[0], 3, 4 );
    else
        world_connect( w, 0, 1 );
    for ( i = 0; i < 40; i++ ) {
        world_inject( w, &w->server_addresses[0], &w->client_addresses[1], junk, 40 );
        if ( w->clients[0] ) {
            world_inject( w, &w->server_addresses[0], &w->client_addresses[0], junk, 40 );
            client_send( w, 0, 10, i );
        }
        client_send( w, 1, 10, i );
        if ( w->servers[0] ) {
            world_inject( w, &w->client_addresses[1], &w->server_addresses[0], junk, 40 );
            server_send( w, 0, 0, 10, i );
            if ( w->servers[0] )
                server_send( w, 0, 2, 10, i );
        }
        world_step( w );
        check_counts( w );
        if ( i == 20 && w->clients[0] )
            netcode_client_disconnect( w->clients[0] );
        if ( i == 30 && w->servers[0] )
            netcode_server_disconnect_all_clients( w->servers[0] );
    }
    test_state.expecting = 0;
    calls = back.calls;
    back.world = NULL;
    w->hook = NULL;
    w->receive_hook = NULL;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    if ( w->servers[0] ) {
        if ( !netcode_server_running( w->servers[0] ) )
            netcode_server_start( w->servers[0], 4 );
        netcode_server_disconnect_all_clients( w->servers[0] );
        TOLERATE( netcode_server_disconnect_loopback_client( w->servers[0], 2 ) );
        TOLERATE( netcode_server_disconnect_loopback_client( w->servers[0], 1 ) );
        world_run( w, 1.0 );
        CHECK( world_join( w, 1, 9 ) ); /* and the server still serves */
        check_counts( w );
    }
    w->server_parties[0].on_drop = NULL;
    world_close( w );
    return calls;
}

static void every_function_from( int where )
{
    int number, calls;
    for ( number = 0; number < 24; number++ ) {
        int before = test_state.failures;
        calls = one_life( where, number, 0 );
        if ( where != IN_UNIX ) /* a client needs no unix time */
            CHECK_GE( calls, 1 );
        if ( test_state.failures != before )
            printf( "    client function %d\n", number );
    }
    for ( number = 0; number < 34; number++ ) {
        int before = test_state.failures;
        calls = one_life( where, number, 1 );
        CHECK_GE( calls, 1 );
        if ( test_state.failures != before )
            printf( "    server function %d\n", number );
    }
}

TEST( every_function_from_the_change_callbacks )
{
    every_function_from( IN_CHANGE );
}
TEST( every_function_from_the_drop_callbacks )
{
    every_function_from( IN_DROP );
}
TEST( every_function_from_the_loopback_callbacks )
{
    every_function_from( IN_LOOPBACK );
}
TEST( every_function_from_the_log_callbacks )
{
    every_function_from( IN_LOG );
}
TEST( every_function_from_the_networks_send )
{
    every_function_from( IN_SEND );
}
TEST( every_function_from_the_networks_receive )
{
    every_function_from( IN_RECEIVE );
}
TEST( every_function_from_the_unix_time_callbacks )
{
    every_function_from( IN_UNIX );
}

static int readable_checked;

static void check_readable( struct world_party_t * party, int slot, int connected )
{
    struct netcode_server_t * s = party->world->servers[0];
    uint8_t *packet, expected[10];
    int bytes;
    if ( connected )
        return;
    payload_fill( expected, 10, 1 );
    CHECK_EQ( netcode_server_client_id( s, slot ), 1 );
    REQUIRE( netcode_server_client_address( s, slot ) && netcode_server_client_user_data( s, slot ) );
    CHECK( netcode_address_equal( netcode_server_client_address( s, slot ), &party->world->client_addresses[0] ) );
    CHECK_EQ( ( (const uint8_t *) netcode_server_client_user_data( s, slot ) )[3], (uint8_t) ( 31 + 3 ) );
    CHECK_EQ( netcode_server_client_disconnect_reason( s, slot ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
    packet = netcode_server_receive_packet( s, slot, &bytes, NULL );
    REQUIRE( packet != NULL );
    CHECK_EQ( bytes, 10 );
    CHECK_MEM( packet, expected, 10 );
    netcode_server_free_packet( s, packet );
    netcode_server_disconnect_client( s, slot ); /* the very client: no harm, no second callback */
    readable_checked++;
}

TEST( in_the_disconnect_callback_everything_is_still_readable )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    readable_checked = 0;
    w->server_parties[0].on_change = check_readable;
    client_send( w, 0, 10, 1 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.2 );
    CHECK_EQ( readable_checked, 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
    w->server_parties[0].on_change = NULL;
    REQUIRE( world_join( w, 0, 2 ) );
}

static void restart_with_9( struct world_party_t * party, int slot, int connected )
{
    (void) slot;
    if ( connected ) {
        party->on_change = NULL;
        netcode_server_start( party->world->servers[0], 9 );
    }
}

TEST( start_in_a_callback_takes_effect_when_the_outermost_call_returns )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    w->server_parties[0].on_change = restart_with_9;
    world_connect( w, 0, 1 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_server_running( w->servers[0] ), 1 );
    CHECK_EQ( netcode_server_max_clients( w->servers[0] ), 9 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    world_run( w, 6.0 );
    REQUIRE( world_join( w, 0, 2 ) );
}

/* A broadcast on a listen server, during which the host's callback throws the next player out. */
static void kick_the_next( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                           uint64_t sequence )
{
    (void) client_index;
    (void) data;
    (void) bytes;
    (void) sequence;
    netcode_server_disconnect_client( party->world->servers[0], 1 );
    netcode_server_disconnect_client( party->world->servers[0], 2 );
}

TEST( a_broadcast_that_loses_its_receivers_on_the_way )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 3 );
    uint8_t data[20] = { 0 };
    int i, mark;
    netcode_server_connect_loopback_client( w->servers[0], 0, 100, NULL );
    for ( i = 0; i < 3; i++ )
        REQUIRE( world_join( w, i, 1 + (uint64_t) i ) );
    w->server_parties[0].on_loopback = kick_the_next;
    mark = w->records.count;
    netcode_server_broadcast( w->servers[0], data, 20, -1 );
    world_run( w, 1.0 );
    CHECK_EQ( world_count( w, mark, NULL, &w->client_addresses[0], NETCODE_PACKET_PAYLOAD, 0 ), 0 );
    CHECK_EQ( world_count( w, mark, NULL, &w->client_addresses[2], NETCODE_PACKET_PAYLOAD, 0 ), 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( netcode_client_state( w->clients[2] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

/*  The network itself throws the player out, at each packet to it in turn: a slot that is empty sends nothing, and
    reports in order. */
static int kick_at, kick_count;

static int kick_in_send( struct world_t * w, const struct world_datagram_t * d )
{
    if ( netcode_address_equal( &d->from, &w->server_addresses[0] ) && kick_count++ == kick_at )
        netcode_server_disconnect_client( w->servers[0], 0 );
    return 0;
}

TEST( a_player_thrown_out_from_within_a_send )
{
    uint8_t data[20] = { 0 };
    for ( kick_at = 0; kick_at < 12; kick_at++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        int i, mark;
        kick_count = 0;
        w->hook = kick_in_send;
        world_connect( w, 0, 1 );
        for ( i = 0; i < 50; i++ ) {
            world_step( w );
            netcode_server_send_packet( w->servers[0], 0, data, 20 );
            if ( kick_count > kick_at )
                break;
        }
        world_run( w, 0.5 );
        for ( i = 0; i < w->server_parties[0].log_count; i++ ) /* connected, gone, connected, ... */
            CHECK_EQ( w->server_parties[0].log[i][1], i % 2 == 0 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), w->server_parties[0].log_count % 2 );
        check_counts( w );
        if ( netcode_server_num_connected_clients( w->servers[0] ) == 0 ) {
            mark = w->records.count;
            world_run( w, 2.0 );
            CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 ), 0 );
        }
        world_close( w );
    }
}

/* Destroyed from within the network's functions while something else than an update is the outermost call. */
static int destroy_in_send( struct world_t * w, const struct world_datagram_t * d )
{
    if ( w->clients[0] && netcode_address_equal( &d->from, &w->client_addresses[0] ) ) {
        netcode_client_destroy( w->clients[0] );
        w->clients[0] = NULL;
    }
    if ( w->servers[0] && netcode_address_equal( &d->from, &w->server_addresses[0] ) ) {
        netcode_server_destroy( w->servers[0] );
        w->servers[0] = NULL;
    }
    return 0;
}

TEST( destroyed_from_within_a_send )
{
    int how;
    for ( how = 0; how < 7; how++ ) {
        struct world_t * w = world_new( CLEAN );
        struct netcode_client_t * client;
        struct netcode_server_t * server;
        uint8_t data[20] = { 0 };
        w->server_config.batch_sends = w->client_config.batch_sends = how >= 5;
        world_add_server( w, 2 );
        world_add_client( w );
        REQUIRE( world_join( w, 0, 1 ) );
        client = w->clients[0];
        server = w->servers[0];
        if ( how == 5 )
            netcode_client_send_packet( client, data, 20 );
        if ( how == 6 )
            netcode_server_send_packet( server, 0, data, 20 );
        w->hook = destroy_in_send;
        if ( how == 0 )
            netcode_client_send_packet( client, data, 20 );
        if ( how == 1 )
            netcode_client_disconnect( client );
        if ( how == 2 )
            netcode_server_send_packet( server, 0, data, 20 );
        if ( how == 3 )
            netcode_server_broadcast( server, data, 20, -1 );
        if ( how == 4 )
            netcode_server_disconnect_all_clients( server );
        if ( how == 5 )
            netcode_client_flush( client );
        if ( how == 6 )
            netcode_server_flush( server );
        w->hook = NULL;
        CHECK( !w->clients[0] || !w->servers[0] );
        world_close( w );
    }
}

/*  Each packet that leaves asks to disconnect again: the goodbyes stay ten, under the session's key, and there is an
    end to it. */
static int again_side;

static int disconnect_again( struct world_t * w, const struct world_datagram_t * d )
{
    if ( !netcode_address_equal( &d->from, again_side ? &w->server_addresses[0] : &w->client_addresses[0] ) )
        return 0;
    if ( again_side )
        netcode_server_disconnect_client( w->servers[0], 0 );
    else
        netcode_client_disconnect( w->clients[0] );
    return 0;
}

TEST( disconnecting_again_from_within_the_goodbyes )
{
    for ( again_side = 0; again_side < 2; again_side++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        int mark;
        REQUIRE( world_join( w, 0, 1 ) );
        mark = w->records.count;
        w->hook = disconnect_again;
        if ( again_side )
            netcode_server_disconnect_client( w->servers[0], 0 );
        else
            netcode_client_disconnect( w->clients[0] );
        w->hook = NULL;
        CHECK_EQ( world_count( w, mark, again_side ? &w->server_addresses[0] : &w->client_addresses[0], NULL,
                               NETCODE_PACKET_DISCONNECT, 0 ),
                  10 );
        world_run( w, 0.2 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        world_close( w );
    }
}

/* A batch that leaves because it is full: its callback ends the very session that is about to seal the next packet. */
static int end_at_first_send( struct world_t * w, const struct world_datagram_t * d )
{
    w->hook = NULL;
    if ( netcode_address_equal( &d->from, &w->client_addresses[0] ) )
        netcode_client_disconnect( w->clients[0] );
    else
        netcode_server_disconnect_client( w->servers[0], 0 );
    return 0;
}

TEST( a_session_that_ends_while_a_full_batch_leaves )
{
    int side, i;
    for ( side = 0; side < 2; side++ ) {
        struct world_t * w = world_new( CLEAN );
        uint8_t data[20] = { 0 };
        w->server_config.batch_sends = w->client_config.batch_sends = 1;
        world_add_server( w, 2 );
        world_add_client( w );
        REQUIRE( world_join( w, 0, 1 ) );
        w->hook = end_at_first_send;
        for ( i = 0; i < 70; i++ )
            if ( side )
                netcode_server_send_packet( w->servers[0], 0, data, 20 );
            else
                netcode_client_send_packet( w->clients[0], data, 20 );
        world_run( w, 0.3 ); /* a packet sealed with wiped keys would be reported by the ledger */
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        world_close( w );
    }
}

/* What a callback sends while a batch leaves overwrites nothing of that batch. */
static int send_three_more( struct world_t * w, const struct world_datagram_t * d )
{
    int i;
    if ( netcode_address_equal( &d->from, &w->client_addresses[0] ) ) {
        w->hook = NULL;
        for ( i = 3; i < 6; i++ )
            client_send( w, 0, 10, i );
    }
    return 0;
}

static void send_from_within_a_send( int batched )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t expected[6][10], *packet;
    int seen[6] = { 0 }, i, bytes;
    w->client_config.batch_sends = batched;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 6; i++ )
        payload_fill( expected[i], 10, i );
    if ( !batched )
        w->hook = send_three_more;
    for ( i = 0; i < 3; i++ )
        client_send( w, 0, 10, i );
    if ( batched )
        w->hook = send_three_more;
    netcode_client_flush( w->clients[0] );
    netcode_client_flush( w->clients[0] );
    world_run( w, 0.2 );
    while ( ( packet = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL ) ) != NULL ) {
        for ( i = 0; i < 6; i++ )
            seen[i] += bytes == 10 && memcmp( packet, expected[i], 10 ) == 0;
        netcode_server_free_packet( w->servers[0], packet );
    }
    for ( i = 0; i < 6; i++ )
        CHECK_EQ( seen[i], 1 );
}

TEST( sending_from_within_a_flush_loses_nothing )
{
    send_from_within_a_send( 1 );
}

TEST( sending_from_within_a_send_loses_nothing )
{
    send_from_within_a_send( 0 );
}

/* A client that is disconnected from within the network's functions is notified, and does not have to time out. */
TEST( disconnected_from_within_a_send_is_reported )
{
    int batched;
    for ( batched = 0; batched < 2; batched++ ) {
        struct world_t * w = world_new( CLEAN );
        uint8_t data[20] = { 0 };
        w->server_config.batch_sends = batched;
        world_add_server( w, 2 );
        world_add_client( w );
        REQUIRE( world_join( w, 0, 1 ) );
        w->hook = end_at_first_send;
        netcode_server_send_packet( w->servers[0], 0, data, 20 );
        netcode_server_flush( w->servers[0] );
        world_run( w, 0.3 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
        world_close( w );
    }
}

static void destroy_twice( struct world_party_t * party, int client_index, int connected )
{
    struct world_t * w = party->world;
    (void) client_index;
    if ( connected )
        return;
    netcode_server_destroy( w->servers[party->index] );
    netcode_server_destroy( w->servers[party->index] );
}

TEST( corners_destroyed_twice_in_a_callback )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    w->server_parties[0].on_change = destroy_twice;
    netcode_server_disconnect_loopback_client( w->servers[0], 0 );
    w->servers[0] = NULL;
    CHECK_EQ( w->allocator.live, 0 );
}

/* The first that leaves makes it start again, and the one that leaves because of that makes it end. */
static void start_then_destroy( struct world_party_t * party, int client_index, int connected )
{
    struct world_t * w = party->world;
    if ( connected )
        return;
    if ( client_index == 0 )
        netcode_server_start( w->servers[party->index], 5 );
    else
        netcode_server_destroy( w->servers[party->index] );
}

TEST( corners_destroyed_by_the_start_that_a_callback_wanted )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    netcode_server_connect_loopback_client( w->servers[0], 1, 2, NULL );
    w->server_parties[0].on_change = start_then_destroy;
    netcode_server_disconnect_loopback_client( w->servers[0], 0 );
    w->servers[0] = NULL;
    CHECK_EQ( w->allocator.live, 0 );
}

/* A slot that is being emptied is not free yet: the newer session gets it, and not the callback's loopback client. */
static void take_the_slot( struct world_party_t * party, int client_index, int connected )
{
    if ( !connected )
        netcode_server_connect_loopback_client( party->world->servers[party->index], client_index, 999, NULL );
}

TEST( corners_the_callback_takes_the_slot_of_a_newer_session )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 1 );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    w->server_parties[0].on_change = take_the_slot;
    puppet_make( &p, w, 0, 1, "10.2.0.2:6000" );
    puppet_expires( &p, p.r.expire + 5 );
    REQUIRE( puppet_challenged( &p ) );
    puppet_answer( &p );
    CHECK_EQ( netcode_server_client_id( w->servers[0], 0 ), 1 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 0 ), 0 );
    CHECK_EQ( w->server_parties[0].lines, 1 ); /* its wish was refused */
    w->server_parties[0].on_change = NULL;
}

/* ---- callbacks on another stack, as of a fiber ---- */

#if defined( __linux__ )
#include <ucontext.h>

static struct {
    ucontext_t callers[2], fiber;
    struct world_t * w;
    int side, done, running; /* behind a stop */
} fibers;

/* Runs a function on a stack of its own; the second one's addresses are above the first one's. */
static void fibers_switch( int which, void ( *function )( void ) )
{
    static uint8_t stacks[2][262144];
    getcontext( &fibers.fiber );
    fibers.fiber.uc_stack.ss_sp = stacks[which];
    fibers.fiber.uc_stack.ss_size = sizeof( stacks[which] );
    fibers.fiber.uc_link = &fibers.callers[which];
    makecontext( &fibers.fiber, function, 0 );
    swapcontext( &fibers.callers[which], &fibers.fiber );
}

static void fibers_end( void )
{
    struct world_t * w = fibers.w;
    if ( fibers.side ) {
        netcode_server_stop( w->servers[0] );
        fibers.running = netcode_server_running( w->servers[0] );
        netcode_server_destroy( w->servers[0] );
    } else
        netcode_client_destroy( w->clients[0] );
}

static void fibers_change( void * context, int a, int b )
{
    (void) context, (void) a, (void) b;
    if ( fibers.done++ == 0 ) /* what it ends calls this again */
        fibers_switch( 1, fibers_end );
}

static void fibers_update( void )
{
    struct world_t * w = fibers.w;
    if ( w->clients[0] )
        netcode_client_update( w->clients[0], w->time );
    if ( !fibers.side && fibers.done )
        w->clients[0] = NULL;
    netcode_server_update( w->servers[0], w->time );
    if ( fibers.side && fibers.done )
        w->servers[0] = NULL;
}

/* What such a callback ends is in use until the outermost call returns. */
TEST( a_callback_on_another_stack_ends_what_is_in_use )
{
    for ( fibers.side = 0; fibers.side < 2; fibers.side++ ) {
        struct world_t * w = fibers.w = world_new( CLEAN );
        if ( fibers.side )
            w->server_config.connect_disconnect_callback = fibers_change;
        world_add_server( w, 4 );
        world_add_client( w );
        fibers.running = fibers.done = 0;
        world_connect( w, 0, 1 );
        if ( !fibers.side ) /* not in its connect, which has no stack of its own */
            w->clients[0]->config.state_change_callback = fibers_change;
        for ( int i = 0; i < 20 && !fibers.done; i++ ) {
            fibers_switch( 0, fibers_update );
            w->time += w->step;
            netcode_network_simulator_update( w->net, w->time );
        }
        CHECK_EQ( fibers.running, fibers.side );
        CHECK( fibers.done && ( fibers.side ? w->servers[0] == NULL : w->clients[0] == NULL ) );
        world_close( w );
    }
}

#endif

/* ---- 56: what waits for the outermost call, and what is refused ---- */

enum { INNER_UPDATE, INNER_STOP, INNER_START, INNER_DESTROY, INNERS };

static struct {
    struct netcode_server_t * server;
    int calls;
    int what;
} inner_world;

/* In the disconnect callback of the first of two clients. The server does nothing of it yet. */
static void inner_change( struct world_party_t * party, int slot, int connected )
{
    struct netcode_server_t * s = inner_world.server;
    uint64_t received;
    if ( connected || inner_world.calls++ )
        return;
    CHECK( s == party->world->servers[0] );
    received = s->base.counters.datagrams_received;
    switch ( inner_world.what ) {
    case INNER_UPDATE: REFUSED( netcode_server_update( s, party->world->time + 1.0 ) ); break;
    case INNER_STOP: netcode_server_stop( s ); break;
    case INNER_START: netcode_server_start( s, 7 ); break;
    default: netcode_server_destroy( s ); party->world->servers[0] = NULL;
    }
    CHECK_EQ( s->base.counters.datagrams_received, received );
    CHECK_EQ( netcode_server_running( s ), 1 );
    CHECK_EQ( netcode_server_max_clients( s ), 4 );
    CHECK_EQ( netcode_server_client_id( s, slot ), 1 + slot );
    CHECK_EQ( netcode_server_client_id( s, 1 - slot ), 2 - slot ); /* the other one is there as well */
    netcode_server_disconnect_client( s, slot );                   /* the very one: no second callback */
}

/* The callback runs inside an update in which more datagrams wait: client 1 leaves, client 2 says something. */
static void inner_run( int what )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 2 );
    struct world_party_t * party = &w->server_parties[0];
    REQUIRE( world_join( w, 0, 1 ) );
    REQUIRE( world_join( w, 1, 2 ) );
    memset( &inner_world, 0, sizeof( inner_world ) );
    inner_world.server = w->servers[0];
    inner_world.what = what;
    party->on_change = inner_change;
    netcode_client_disconnect( w->clients[0] );
    client_send( w, 1, 10, 1 );
    world_run( w, 0.1 );
    CHECK_GE( inner_world.calls, 1 );
    CHECK_EQ( party->log[2][0], 0 );
    CHECK_EQ( party->log[2][1], 0 );
    CHECK_EQ( party->log_count, what == INNER_UPDATE ? 3 : 4 ); /* the stop ends the other one, once */
    party->on_change = NULL;
    if ( what == INNER_UPDATE ) {
        CHECK_EQ( server_drain( w, 0, 1 ), 1 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    } else if ( what == INNER_DESTROY ) {
        CHECK( !world_find_socket( w, &w->server_addresses[0] ) ); /* it is gone now */
    } else {
        CHECK_EQ( netcode_server_running( w->servers[0] ), what == INNER_START );
        CHECK_EQ( netcode_server_max_clients( w->servers[0] ), what == INNER_START ? 7 : 0 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    }
    world_close( w );
}

TEST( threat_56_ends_wait_for_the_outermost_call )
{
    int what;
    for ( what = 0; what < INNERS; what++ )
        inner_run( what );
}

/* The same of a client: its own callback updates it (refused), connects it, or destroys it (waits). */
static int inner_client_calls;

static void inner_client_change( struct world_party_t * party, int previous, int state )
{
    struct netcode_client_t * c = party->world->clients[0];
    uint64_t received;
    (void) previous;
    if ( state != NETCODE_CLIENT_STATE_CONNECTED || inner_client_calls++ )
        return;
    received = c->base.counters.datagrams_received;
    REFUSED( netcode_client_update( c, party->world->time + 1.0 ) );
    CHECK_EQ( c->base.counters.datagrams_received, received );
    netcode_client_destroy( c );
    CHECK_EQ( netcode_client_get_port( c ), 50000 ); /* it can still be asked */
    CHECK_EQ( c->base.destroy_deferred, 1 );
    party->world->clients[0] = NULL;
}

TEST( threat_56_a_client_that_is_updated_and_destroyed_by_its_callback )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    inner_client_calls = 0;
    w->client_parties[0].on_change = inner_client_change;
    world_connect( w, 0, 1 );
    world_run( w, 0.5 );
    CHECK_EQ( inner_client_calls, 1 );
    CHECK( w->clients[0] == NULL );
    CHECK( !world_find_socket( w, &w->client_addresses[0] ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 ); /* it said goodbye */
}
