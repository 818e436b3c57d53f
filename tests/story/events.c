/* Story: events, broadcast, batches, statistics and the report. */

static int next( struct world_t * w, struct netcode_event_t * e )
{
    memset( e, 0, sizeof( *e ) );
    return netcode_server_next_event( w->servers[0], e );
}

TEST( events_in_their_true_order )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 4, 2 );
    struct netcode_event_t e;
    uint64_t session[2];
    uint8_t expected[20];
    int i;
    CHECK_EQ( next( w, &e ), 0 );
    CHECK_EQ( e.type, NETCODE_EVENT_NONE );
    for ( i = 0; i < 2; i++ ) {
        REQUIRE( world_join( w, i, 11 + (uint64_t) i ) );
        REQUIRE_EQ( next( w, &e ), 1 );
        CHECK_EQ( e.type, NETCODE_EVENT_CONNECTED );
        CHECK_EQ( e.client_index, i );
        CHECK_EQ( e.client_id, 11 + i );
        CHECK_EQ( e.session, netcode_server_client_session( w->servers[0], i ) );
        session[i] = e.session;
    }
    CHECK_NE( session[0], session[1] );
    CHECK_NE( session[0], 0 );
    for ( i = 0; i < 6; i++ ) {
        client_send( w, i % 2, 20, i );
        world_run( w, 0.05 );
    }
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.05 );
    client_send( w, 1, 20, 6 );
    world_run( w, 0.05 );
    for ( i = 0; i < 6; i++ ) {
        REQUIRE_EQ( next( w, &e ), 1 );
        CHECK_EQ( e.type, NETCODE_EVENT_PAYLOAD );
        CHECK_EQ( e.client_index, i % 2 );
        CHECK_EQ( e.session, session[i % 2] );
        CHECK_EQ( e.client_id, 11 + i % 2 );
        CHECK_EQ( e.bytes, 20 );
        payload_fill( expected, 20, i );
        CHECK_MEM( e.data, expected, 20 );
        netcode_server_free_packet( w->servers[0], e.data );
    }
    REQUIRE_EQ( next( w, &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_DISCONNECTED );
    CHECK_EQ( e.reason, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
    CHECK_EQ( e.session, session[0] );
    CHECK_EQ( e.client_id, 11 );
    REQUIRE_EQ( next( w, &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_PAYLOAD );
    CHECK_EQ( e.session, session[1] );
    netcode_server_free_packet( w->servers[0], e.data );
    CHECK_EQ( next( w, &e ), 0 );
}

TEST( a_slot_that_is_used_again_has_a_new_session )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_event_t e;
    uint64_t sessions[6];
    uint8_t data[10] = { 1 };
    int i, j, before;
    w->server_config.events = 1;
    world_fill( w, 1, 1, 2 );
    for ( i = 0; i < 6; i++ ) {
        REQUIRE( world_join( w, i % 2, 1 + (uint64_t) i ) );
        REQUIRE_EQ( next( w, &e ), 1 );
        REQUIRE_EQ( e.type, NETCODE_EVENT_CONNECTED );
        sessions[i] = e.session;
        for ( j = 0; j < i; j++ )
            CHECK_NE( sessions[i], sessions[j] );
        before = w->records.count;
        if ( i > 0 )
            netcode_server_send_packet_to_session( w->servers[0], 0, sessions[i - 1], data, 10 );
        CHECK_EQ( w->records.count, before ); /* meant for the one before: it goes nowhere */
        netcode_server_send_packet_to_session( w->servers[0], 0, sessions[i], data, 10 );
        world_run( w, 0.05 );
        CHECK_EQ( client_drain( w, i % 2 ), 1 );
        if ( i == 2 ) {
            world_restart( w, 0, 1 );
        } else
            netcode_server_disconnect_client( w->servers[0], 0 );
        world_run( w, 0.1 );
        if ( !CHECK_EQ( next( w, &e ), 1 ) ) /* of a stop and start too, nothing is lost */
            printf( "    round %d\n", i );
        CHECK_EQ( e.type, NETCODE_EVENT_DISCONNECTED );
        CHECK_EQ( e.session, sessions[i] );
        CHECK_EQ( e.reason, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT );
    }
}

/* Events that are not read: each slot is used twice, then nobody gets in; once they are read, the slots are free again. */
TEST( unread_events_keep_slots_taken )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 2, 0 );
    struct netcode_event_t e;
    struct puppet_t p;
    uint64_t open_session[2] = { 0, 0 };
    int i, count = 0, allocations = w->allocator.allocations;
    for ( i = 0; i < 4; i++ ) {
        REQUIRE( puppet_join( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" ) );
        netcode_server_disconnect_client( w->servers[0], (int) p.client_index );
    }
    puppet_make( &p, w, 0, 9, "10.2.0.1:6000" );
    CHECK( !puppet_connect( &p ) );
    CHECK_GE( p.denials, 1 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_SERVER_FULL ), 1 );
    REFUSED( CHECK_EQ( netcode_server_connect_loopback_client( w->servers[0], 0, 77, NULL ), NETCODE_ERROR ) );
    CHECK_EQ( w->allocator.allocations, allocations );
    while ( next( w, &e ) ) {
        CHECK_EQ( e.type, open_session[e.client_index] ? NETCODE_EVENT_DISCONNECTED : NETCODE_EVENT_CONNECTED );
        CHECK( !open_session[e.client_index] || open_session[e.client_index] == e.session );
        open_session[e.client_index] = open_session[e.client_index] ? 0 : e.session;
        count++;
    }
    CHECK_EQ( count, 8 );
    CHECK( puppet_join( &p, w, 0, 10, "10.2.0.1:6000" ) );
}

/* A start with as many slots keeps unread events, and the slots wait for them. */
TEST( unread_events_outlive_a_stop )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 1, 0 );
    struct netcode_event_t e;
    struct puppet_t p;
    int i, count = 0;
    for ( i = 0; i < 2; i++ ) {
        REQUIRE( puppet_join( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" ) );
        world_restart( w, 0, 1 );
    }
    puppet_make( &p, w, 0, 9, "10.2.0.1:6000" );
    CHECK( !puppet_connect( &p ) );
    while ( next( w, &e ) )
        count++;
    CHECK_EQ( count, 4 );
    puppet_make( &p, w, 0, 10, "10.2.0.1:6000" );
    CHECK( puppet_connect( &p ) );
}

/* A takeover needs its slot at once: one whose last two sessions are unread waits, and the old session goes on. */
TEST( a_takeover_waits_for_unread_events )
{
    struct world_t * w = world_new( CLEAN );
    struct netcode_event_t e;
    struct puppet_t p[3];
    int i;
    w->server_config.events = w->server_config.replace_existing_clients = 1;
    world_fill( w, 1, 2, 0 );
    for ( i = 0; i < 3; i++ ) {
        puppet_make( &p[i], w, 0, 5, i == 0 ? "10.2.0.1:6000" : i == 1 ? "10.2.0.2:6000" : "10.2.0.3:6000" );
        p[i].r.expire += (uint64_t) i;
        puppet_mint( &p[i] );
        CHECK_EQ( puppet_connect( &p[i] ), i < 2 );
    }
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    for ( i = 0; i < 3; i++ )
        CHECK_EQ( next( w, &e ), 1 );
    CHECK_EQ( next( w, &e ), 0 );
    CHECK( puppet_connect( &p[2] ) );
}

/* Each of the two ways to read is refused where the config has the other one. */
TEST( events_or_per_slot_calls )
{
    int has_events, bytes;
    for ( has_events = 0; has_events < 2; has_events++ ) {
        struct world_t * w = has_events ? world_open_with_events( CLEAN, 1, 2, 1 ) : world_open( CLEAN, 1, 2, 1 );
        struct netcode_event_t e;
        REQUIRE( world_join( w, 0, 1 ) );
        client_send( w, 0, 10, 1 );
        server_send( w, 0, 0, 10, 1 );
        world_run( w, 0.1 );
        if ( has_events ) {
            BAD( CHECK( netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL ) == NULL ) );
            BAD( CHECK( netcode_client_receive_packet( w->clients[0], &bytes, NULL ) == NULL ) );
            CHECK( next( w, &e ) && next( w, &e ) && e.type == NETCODE_EVENT_PAYLOAD );
            netcode_server_free_packet( w->servers[0], e.data );
        } else {
            BAD( CHECK_EQ( netcode_server_next_event( w->servers[0], &e ), 0 ) );
            BAD( CHECK_EQ( netcode_client_next_event( w->clients[0], &e ), 0 ) );
            CHECK_EQ( server_drain( w, 0, 0 ), 1 );
            CHECK_EQ( client_drain( w, 0 ), 1 );
        }
        world_close( w );
    }
}

/* A client whose application reads no events connects twice. */
TEST( a_client_waits_for_unread_events )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 4, 1 );
    struct netcode_event_t e;
    struct recipe_t r;
    for ( uint64_t i = 1; i <= 2; i++ ) {
        REQUIRE( world_join( w, 0, i ) );
        netcode_client_disconnect( w->clients[0] );
    }
    r = recipe_for( w, 3 );
    mint( &r, w->tokens[0] );
    TOLERATE( CHECK_EQ( netcode_client_connect( w->clients[0], w->tokens[0] ), NETCODE_ERROR ) );
    TOLERATE( CHECK_EQ( netcode_client_connect_loopback( w->clients[0], 0, 4 ), NETCODE_ERROR ) );
    for ( int i = 0; i < 2; i++ )
        CHECK_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( netcode_client_connect( w->clients[0], w->tokens[0] ), NETCODE_OK );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

TEST( the_clients_events )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 4, 1 );
    struct netcode_event_t e;
    uint64_t first;
    uint8_t expected[20];
    payload_fill( expected, 20, 3 );
    REQUIRE( world_join( w, 0, 1 ) );
    server_send( w, 0, 0, 20, 3 );
    world_run( w, 0.05 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    world_run( w, 0.05 );
    REQUIRE_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_CONNECTED );
    CHECK_EQ( e.client_index, 0 );
    first = e.session;
    REQUIRE_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_PAYLOAD );
    CHECK_EQ( e.session, first );
    CHECK_EQ( e.bytes, 20 );
    CHECK_MEM( e.data, expected, 20 );
    netcode_client_free_packet( w->clients[0], e.data );
    REQUIRE_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_DISCONNECTED );
    CHECK_EQ( e.reason, NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( netcode_client_next_event( w->clients[0], &e ), 0 );
    REQUIRE( world_join( w, 0, 2 ) );
    REQUIRE_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_CONNECTED );
    CHECK_NE( e.session, first );
    w->cut_to = w->client_addresses[0];
    world_run( w, 6.0 );
    REQUIRE_EQ( netcode_client_next_event( w->clients[0], &e ), 1 );
    CHECK_EQ( e.type, NETCODE_EVENT_DISCONNECTED );
    CHECK_EQ( e.reason, NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
}

/* A token that is refused begins no session and ends none. */
TEST( an_invalid_token_repeats_no_event )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 2, 1 );
    struct netcode_event_t e;
    uint64_t ended[8];
    int count = 0, i, j;
    uint8_t junk[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    netcode_client_connect( w->clients[0], w->tokens[0] ); /* used */
    netcode_client_connect( w->clients[0], junk );
    world_run( w, 0.2 );
    while ( count < 8 && netcode_client_next_event( w->clients[0], &e ) )
        if ( e.type == NETCODE_EVENT_DISCONNECTED )
            ended[count++] = e.session;
    CHECK_GE( count, 1 );
    for ( i = 0; i < count; i++ )
        for ( j = 0; j < i; j++ )
            CHECK_NE( ended[i], ended[j] );
}

/* A client's events name its slot on the server, which need not be the first. */
TEST( a_clients_events_name_its_slot )
{
    static const int types[] = { NETCODE_EVENT_CONNECTED, NETCODE_EVENT_PAYLOAD, NETCODE_EVENT_DISCONNECTED };
    struct world_t * w = world_open_with_events( CLEAN, 1, 3, 3 );
    struct netcode_event_t event;
    int next = 0;
    for ( int i = 0; i < 3; i++ )
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
    REQUIRE_EQ( netcode_client_index( w->clients[2] ), 2 );
    server_send( w, 0, 2, 10, 1 );
    world_run( w, 0.1 );
    netcode_server_disconnect_client( w->servers[0], 2 );
    world_run( w, 0.1 );
    while ( netcode_client_next_event( w->clients[2], &event ) ) {
        REQUIRE( next < 3 );
        CHECK_EQ( event.type, types[next++] );
        CHECK_EQ( event.client_index, 2 );
        if ( event.type == NETCODE_EVENT_PAYLOAD )
            netcode_client_free_packet( w->clients[2], event.data );
    }
    CHECK_EQ( next, 3 );
}

/* Without events, attempts that fail after a connection leave its unread payload as it is. */
TEST( corners_a_payload_outlives_failed_attempts )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    uint8_t broken[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    server_send( w, 0, 0, 10, 1 );
    world_run( w, 0.2 );
    for ( i = 0; i < 1000; i++ )
        netcode_client_connect( w->clients[0], broken );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

#if !defined( _WIN32 )

TEST( mutants_a_server_that_never_started_has_no_event )
{
    struct world_t * w = world_open_with_events( CLEAN, 0, 0, 0 );
    struct netcode_event_t event;
    world_make_server( w, 0 );
    w->server_count = 1;
    memset( &event, 0xee, sizeof( event ) );
    CHECK_EQ( netcode_server_next_event( w->servers[0], &event ), 0 );
    CHECK( test_is_zeros( &event, sizeof( event ) ) );
}

#endif

/* ---- sending ---- */

TEST( broadcast_reaches_all_but_one )
{
    struct world_t * w = world_open( CLEAN, 1, 5, 4 );
    uint8_t data[100];
    int i;
    payload_fill( data, 100, 1 );
    for ( i = 0; i < 4; i++ )
        REQUIRE( world_join( w, i, 1 + (uint64_t) i ) );
    netcode_server_broadcast( w->servers[0], data, 100, -1 );
    world_run( w, 0.05 );
    for ( i = 0; i < 4; i++ )
        CHECK_EQ( client_drain( w, i ), 1 );
    netcode_server_broadcast( w->servers[0], data, 100, 2 );
    world_run( w, 0.05 );
    for ( i = 0; i < 4; i++ )
        CHECK_EQ( client_drain( w, i ), i != 2 );
}

TEST( every_send_leaves_at_once_unless_batched )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int before;
    REQUIRE( world_join( w, 0, 1 ) );
    before = w->records.count;
    client_send( w, 0, 10, 1 );
    CHECK_EQ( w->records.count, before + 1 );
    server_send( w, 0, 0, 10, 1 );
    CHECK_EQ( w->records.count, before + 2 );
}

TEST( batches_leave_at_flush_update_or_when_64_wait )
{
    struct world_t * w = world_new( CLEAN );
    struct world_socket_t *server, *client;
    int before, calls, i;
    w->server_config.batch_sends = 1;
    w->client_config.batch_sends = 1;
    world_add_server( w, 4 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    server = world_find_socket( w, &w->server_addresses[0] );
    client = world_find_socket( w, &w->client_addresses[0] );
    before = w->records.count;
    for ( i = 0; i < 5; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 0, 10, i );
    }
    CHECK_EQ( w->records.count, before );
    calls = client->send_calls;
    netcode_client_flush( w->clients[0] );
    CHECK_EQ( w->records.count, before + 5 );
    CHECK_EQ( client->send_calls, calls + 1 );
    calls = server->send_calls;
    netcode_server_flush( w->servers[0] );
    CHECK_EQ( w->records.count, before + 10 );
    CHECK_EQ( server->send_calls, calls + 1 );
    client_send( w, 0, 10, 9 );
    world_run( w, 0.05 );
    CHECK_GE( world_count( w, before + 10, &w->client_addresses[0], NULL, NETCODE_PACKET_PAYLOAD, 0 ), 1 );
    before = w->records.count;
    for ( i = 0; i < 70; i++ ) /* the next one finds 64 waiting */
        server_send( w, 0, 0, 10, i );
    CHECK_EQ( w->records.count, before + 64 );
    world_run( w, 0.05 );
    CHECK_EQ( client_drain( w, 0 ), 75 );
    CHECK_EQ( server_drain( w, 0, 0 ), 6 );
    server_send( w, 0, 0, 10, 1 ); /* what waits goes out before a goodbye */
    netcode_server_disconnect_client( w->servers[0], 0 );
    world_run( w, 0.05 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
}

/* ---- statistics ---- */

TEST( statistics_count_what_the_network_saw )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct netcode_server_stats_t s;
    struct netcode_client_stats_t c;
    struct netcode_server_client_stats_t slot;
    uint64_t accepted = 0, dropped = 0;
    int i;
    REQUIRE( world_join( w, 0, 42 ) );
    for ( i = 0; i < 10; i++ ) {
        client_send( w, 0, 100, i );
        server_send( w, 0, 0, 200, i );
    }
    world_run( w, 1.0 );
    w->cut_types = 0xffff;
    world_run( w, 0.05 );
    s = server_stats( w, 0 );
    c = client_stats( w, 0 );
    netcode_server_client_stats( w->servers[0], 0, &slot );
    for ( i = 0; i < NETCODE_PACKET_TYPES; i++ ) {
        CHECK_EQ( s.packets_sent[i], world_count( w, 0, &w->server_addresses[0], NULL, i, 0 ) );
        CHECK_EQ( c.packets_sent[i], world_count( w, 0, &w->client_addresses[0], NULL, i, 0 ) );
        accepted += s.packets_received[i];
    }
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ )
        dropped += s.dropped[i];
    CHECK_EQ( s.packets_received[NETCODE_PACKET_PAYLOAD], 10 );
    CHECK_EQ( c.packets_received[NETCODE_PACKET_PAYLOAD], 10 );
    CHECK_EQ( s.packets_received[NETCODE_PACKET_REQUEST], 1 );
    CHECK_EQ( s.packets_received[NETCODE_PACKET_RESPONSE], 1 );
    CHECK_EQ( c.packets_received[NETCODE_PACKET_CHALLENGE], 1 );
    CHECK_EQ( s.bytes_sent, world_count( w, 0, &w->server_addresses[0], NULL, -1, 1 ) );
    CHECK_EQ( c.bytes_sent, world_count( w, 0, &w->client_addresses[0], NULL, -1, 1 ) );
    CHECK_EQ( accepted + dropped, s.datagrams_received );
    CHECK_LE( s.bytes_received, c.bytes_sent );
    CHECK_GE( s.bytes_received + 200, c.bytes_sent );
    CHECK_EQ( s.connects, 1 );
    CHECK_EQ( c.connects, 1 );
    CHECK_EQ( s.clients, 1 );
    CHECK_EQ( s.max_clients, 4 );
    CHECK_EQ( s.consumed, 1 );
    CHECK_EQ( s.pending, 0 );
    CHECK_EQ( s.handshakes, 1 );
    CHECK_EQ( s.packets_queued, 10 );
    CHECK_EQ( c.packets_queued, 10 );
    CHECK_NE( slot.session, 0 );
    CHECK_EQ( slot.client_id, 42 );
    CHECK_EQ( slot.packets_queued, 10 );
    CHECK_EQ( slot.confirmed, 1 );
    CHECK_EQ( slot.loopback, 0 );
    CHECK_NEAR( slot.seconds_connected, 1.35, 0.15 );
    CHECK_LE( slot.seconds_silent, 0.2 );
    CHECK_GE( slot.packets_received, 10 );
    CHECK_GE( slot.bytes_sent, 10 * 200 );
    {
        int bytes;
        uint8_t * packet = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
        s = server_stats( w, 0 );
        CHECK_EQ( s.packets_queued, 9 );
        CHECK_EQ( s.packets_held, 1 );
        netcode_server_free_packet( w->servers[0], packet );
        s = server_stats( w, 0 );
        CHECK_EQ( s.packets_held, 0 );
    }
    world_run( w, 6.0 );
    netcode_server_client_stats( w->servers[0], 0, &slot );
    CHECK_EQ( slot.session, 0 );
    CHECK_EQ( client_stats( w, 0 ).disconnects, 1 );
}

#if !defined( _WIN32 )

/* Every byte in either direction, from the record of the network. */
TEST( mutants_bytes_are_counted )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    const struct netcode_address_t *client = &w->client_addresses[0], *server = &w->server_addresses[0];
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 5; i++ ) {
        client_send( w, 0, 100 + i, i );
        server_send( w, 0, 0, 200 + i, i );
        world_step( w );
    }
    w->cut_types = ~0u;
    world_run( w, 0.05 );
    CHECK_EQ( client_stats( w, 0 ).bytes_sent, world_count( w, 0, client, server, -1, 1 ) );
    CHECK_EQ( server_stats( w, 0 ).bytes_sent, world_count( w, 0, server, client, -1, 1 ) );
    CHECK( client_stats( w, 0 ).bytes_received > 0 );
    for ( i = 0; i < w->records.count; i++ )
        if ( w->records.items[i].dropped )
            w->records.items[i].bytes = 0;
    CHECK_EQ( client_stats( w, 0 ).bytes_received, world_count( w, 0, server, client, -1, 1 ) );
    CHECK_EQ( server_stats( w, 0 ).bytes_received, world_count( w, 0, client, server, -1, 1 ) );
}

TEST( mutants_statistics_of_a_slot )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_server_client_stats_t stats;
    uint8_t data[100] = { 1 };
    REQUIRE( world_join( w, 0, 1 ) );
    w->cut_types = ~0u;
    server_send( w, 0, 0, 10, 1 );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK_EQ( stats.packets_sent, world_count( w, 0, &w->server_addresses[0], NULL, -1, 0 ) - 1 ); /* the challenge */
    CHECK_EQ( stats.bytes_sent, world_count( w, 0, &w->server_addresses[0], NULL, -1, 1 ) - 333 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 9, NULL );
    netcode_server_process_loopback_packet( w->servers[0], 1, data, 100, 0 );
    netcode_server_process_loopback_packet( w->servers[0], 1, data, 50, 1 );
    netcode_server_client_stats( w->servers[0], 1, &stats );
    CHECK_EQ( stats.packets_received, 2 );
    CHECK_EQ( stats.bytes_received, 150 );
    CHECK_EQ( stats.packets_queued, 2 );
    CHECK_EQ( stats.loopback, 1 );
}

/* To the last byte of the last counter. */
TEST( mutants_statistics_are_copied_whole )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_server_t * server = w->servers[0];
    struct netcode_server_stats_t stats;
    memset( server->stats.disconnects, 0x5a, sizeof( server->stats.disconnects ) );
    netcode_server_stats( server, &stats );
    CHECK_MEM( stats.disconnects, server->stats.disconnects, sizeof( stats.disconnects ) );
    memset( server->stats.disconnects, 0, sizeof( server->stats.disconnects ) );
}

#endif
