/*  Roaming: connections that outlive an address. examples/docs/PATHS.md. Each rule has a test that fails without it. */

static struct world_t * roam_world_with( int slots, int clients, int has_events )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.roaming = 1;
    w->server_config.events = has_events;
    return world_fill( w, 1, slots, clients );
}

static struct world_t * roam_world( int slots, int clients )
{
    return roam_world_with( slots, clients, 0 );
}

/* A player that the tests play by hand, whose sequences are where slots are distinguished, and confirmed. */
static void roam_join( struct puppet_t * p, struct world_t * w, uint64_t client_id, const char * address )
{
    puppet_make( p, w, 0, client_id, address );
    p->sequence = ( (uint64_t) 1 << 40 ) + ( client_id << 24 );
    REQUIRE( puppet_connect( p ) );
    puppet_keep_alive( p );
    world_run( w, 0.25 ); /* the slot's timer files it */
    puppet_poll( p );
}

static void roam_to( struct puppet_t * p, const char * address )
{
    puppet_poll( p );
    p->address = address_of( address );
}

/* A keep-alive from the address that it has for the server, so that it does not time out. */
static void roam_live( struct puppet_t * p, const char * home )
{
    struct netcode_address_t elsewhere = p->address;
    p->address = address_of( home );
    puppet_keep_alive( p );
    p->address = elsewhere;
}

static void roam_echo( struct puppet_t * p, uint64_t value )
{
    uint8_t body[8], *at = body;
    put( &at, value, 8 );
    puppet_send( p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
}

/* It is heard from there, and returns the probe that it gets. */
static void roam_move( struct puppet_t * p, const char * address )
{
    roam_to( p, address );
    puppet_keep_alive( p );
    puppet_step( p );
    roam_echo( p, p->probe );
    world_step( p->w );
}

static int roam_is_at( struct world_t * w, uint64_t client_id, const char * address )
{
    struct netcode_address_t expected = address_of( address );
    int slot = world_slot( w, 0, client_id );
    return slot >= 0 && same_address( netcode_server_client_address( w->servers[0], slot ), &expected );
}

/* What was sent to an address, and what came from there, since a mark. */
static int roam_bytes( struct world_t * w, int mark, const char * address, int from )
{
    struct netcode_address_t there = address_of( address );
    int i, bytes = 0;
    for ( i = mark; i < w->records.count; i++ )
        if ( same_address( from ? &w->records.items[i].from : &w->records.items[i].to, &there ) )
            bytes += w->records.items[i].bytes;
    return bytes;
}

static int roam_payloads_to( struct world_t * w, int mark, const char * address )
{
    struct netcode_address_t there = address_of( address );
    return (int) world_count( w, mark, NULL, &there, NETCODE_PACKET_PAYLOAD, 0 );
}

/* ---- a whole client ---- */

/*  The NAT gives another port: no client is disconnected, nothing that the client sends is lost, the application hears
    of it. */
TEST( roaming_a_client_moves )
{
    struct world_t * w = roam_world_with( 4, 1, 1 );
    struct netcode_event_t event;
    int step, moved = 0, payloads = 0, received = 0, gap = 0, longest = 0;
    w->step = 0.001;
    w->net->latency_milliseconds = 25.0f;
    REQUIRE( world_join( w, 0, 5 ) );
    while ( netcode_server_next_event( w->servers[0], &event ) )
        CHECK_NE( event.type, NETCODE_EVENT_MOVED );
    for ( step = 0; step < 3000; step++ ) {
        if ( step == 1000 )
            world_move( w, 0, "10.9.0.1:777", 0 );
        world_step( w );
        if ( step % 10 == 0 )
            client_send( w, 0, 20, step ), server_send( w, 0, 0, 20, step );
        while ( netcode_server_next_event( w->servers[0], &event ) ) {
            payloads += event.type == NETCODE_EVENT_PAYLOAD;
            moved += event.type == NETCODE_EVENT_MOVED;
            CHECK( event.type == NETCODE_EVENT_PAYLOAD || event.type == NETCODE_EVENT_MOVED );
            CHECK( event.type == NETCODE_EVENT_PAYLOAD || event.reason == 0 );
            CHECK_EQ( event.client_index, 0 );
            CHECK_EQ( event.client_id, 5 );
            CHECK_EQ( event.session, netcode_server_client_session( w->servers[0], 0 ) );
            if ( event.type == NETCODE_EVENT_PAYLOAD )
                netcode_server_free_packet( w->servers[0], event.data );
        }
        gap++;
        if ( client_drain( w, 0 ) ) {
            received++;
            gap = 0;
        }
        longest = gap > longest && received ? gap : longest;
    }
    CHECK_EQ( moved, 1 );
    CHECK_GE( payloads, 300 - 4 );        /* but for those in flight at the end */
    CHECK_LE( longest, 2 * 50 + 10 + 5 ); /* two round trips, and what one payload waits for */
    CHECK( roam_is_at( w, 5, "10.9.0.1:777" ) );
    CHECK_EQ( server_stats( w, 0 ).moves, 1 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 1 );
    CHECK_EQ( path_slot( w, 0 ).moves, 1 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 0.05, 0.004 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* Over a long path dozens of payloads arrive before the first echo does: none is lost, and the echo is not lost among them. */
TEST( roaming_over_long_paths )
{
    static const float latencies[] = { 50.0f, 150.0f, 400.0f, 900.0f };
    int i, step, sent = 0, heard = 0;
    for ( i = 0; i < 4; i++ ) {
        struct world_t * w = roam_world( 4, 1 );
        w->net->latency_milliseconds = latencies[i];
        REQUIRE( world_join( w, 0, 5 ) );
        world_run( w, 3.0 );
        for ( step = 0; step < 700; step++ ) {
            if ( step == 100 )
                world_move( w, 0, "10.9.0.1:777", 0 );
            if ( step < 500 )
                client_send( w, 0, 20, step ), sent++;
            world_step( w );
            heard += server_drain( w, 0, 0 );
            if ( step ==
                 100 + ( i == 3 ? 20 : 3 ) + (int) ( 0.3 * (double) latencies[i] ) ) /* the last 8 probes count */
                CHECK( roam_is_at( w, 5, "10.9.0.1:777" ) );
        }
        CHECK_EQ( heard, sent );
        world_close( w );
    }
}

/* It is off unless it is asked for: then the client's packets are from an unknown address. */
TEST( roaming_is_off_by_default )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 5 ) );
    world_move( w, 0, "10.9.0.1:777", 0 );
    world_run( w, WORLD_TIMEOUT + 1.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 10 );
    CHECK_EQ( server_stats( w, 0 ).trials, 0 );
}

/* At any moment, on a bad network, hundreds of times, back and forth among few addresses. */
TEST( roaming_at_every_moment )
{
    struct world_t * w = roam_world( 4, 3 );
    char text[64];
    int i, c, rounds, delivered[3] = { 0, 0, 0 };
    w->net->latency_milliseconds = 40.0f;
    w->net->jitter_milliseconds = 20.0f;
    w->net->packet_loss_percent = 5.0f;
    w->net->duplicate_packet_percent = 5.0f;
    for ( c = 0; c < 3; c++ )
        REQUIRE( world_join( w, c, 5 + (uint64_t) c ) );
    for ( rounds = 0; rounds < 300; rounds++ ) {
        c = test_random_below( 3 );
        snprintf( text, sizeof( text ), "10.9.%d.1:%d", c, 700 + test_random_below( 3 ) );
        struct netcode_address_t to = address_of( text );
        if ( !netcode_address_equal( &to, &w->client_addresses[c] ) )
            world_move( w, c, text, 0 );
        for ( i = test_random_below( 60 ); i >= 0; i-- ) {
            for ( c = 0; c < 3; c++ ) {
                client_send( w, c, 20 + c, i );
                server_send( w, 0, world_slot( w, 0, 5 + (uint64_t) c ), 20 + c, i );
            }
            world_step( w );
            for ( c = 0; c < 3; c++ ) {
                delivered[c] += client_drain( w, c );
                server_drain( w, 0, world_slot( w, 0, 5 + (uint64_t) c ) );
            }
        }
    }
    world_run( w, 2.0 );
    for ( c = 0; c < 3; c++ ) {
        CHECK_EQ( netcode_client_state( w->clients[c] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK( same_address( netcode_server_client_address( w->servers[0], world_slot( w, 0, 5 + (uint64_t) c ) ),
                             &w->client_addresses[c] ) );
        CHECK_GE( delivered[c], 1000 );
    }
    CHECK_GE( server_stats( w, 0 ).moves, 40 );
}

/* Two clients change addresses with each other, and both go on: each address belongs to one slot at any time. */
TEST( roaming_two_clients_swap )
{
    struct world_t * w = roam_world( 4, 2 );
    int i;
    REQUIRE( world_join( w, 0, 5 ) && world_join( w, 1, 6 ) );
    for ( i = 0; i < 20; i++ ) {
        struct netcode_address_t a = w->client_addresses[0], b = w->client_addresses[1];
        char first[NETCODE_MAX_ADDRESS_STRING_LENGTH], second[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        netcode_address_to_string( &a, first ), netcode_address_to_string( &b, second );
        world_move( w, 0, "10.9.9.9:1", 0 );
        world_move( w, 1, first, 0 );
        world_move( w, 0, second, 0 );
        world_run( w, 1.0 );
        CHECK( roam_is_at( w, 5, second ) );
        CHECK( roam_is_at( w, 6, first ) );
        server_send( w, 0, world_slot( w, 0, 5 ), 10, 1 );
        world_run( w, 0.05 );
        CHECK_EQ( client_drain( w, 0 ), 1 );
        CHECK_EQ( client_drain( w, 1 ), 0 );
    }
    CHECK_EQ( server_stats( w, 0 ).moves, 40 );
}

/* A NAT with forty players is restarted and deals its ports anew: all are back within two seconds, each in its own slot. */
TEST( roaming_a_nat_is_restarted )
{
    enum { PLAYERS = 40 };
    struct world_t * w = roam_world( PLAYERS, PLAYERS );
    char text[64];
    int i, ports[PLAYERS];
    for ( i = 0; i < PLAYERS; i++ ) {
        REQUIRE( world_join( w, i, 100 + (uint64_t) i ) );
        ports[i] = i;
    }
    for ( i = 0; i < PLAYERS; i++ ) {
        snprintf( text, sizeof( text ), "10.8.0.1:%d", 2000 + i );
        world_move( w, i, text, 0 );
    }
    world_run( w, 2.0 );
    for ( i = PLAYERS - 1; i > 0; i-- ) {
        int k = test_random_below( i + 1 ), port = ports[i];
        ports[i] = ports[k];
        ports[k] = port;
    }
    for ( i = 0; i < PLAYERS; i++ ) {
        snprintf( text, sizeof( text ), "10.8.0.2:%d", 2000 + i );
        world_move( w, i, text, 0 );
    }
    for ( i = 0; i < PLAYERS; i++ ) {
        snprintf( text, sizeof( text ), "10.8.0.1:%d", 2000 + ports[i] );
        world_move( w, i, text, 0 );
    }
    world_run( w, 2.0 );
    for ( i = 0; i < PLAYERS; i++ ) {
        snprintf( text, sizeof( text ), "10.8.0.1:%d", 2000 + ports[i] );
        CHECK( roam_is_at( w, 100 + (uint64_t) i, text ) );
        server_send( w, 0, world_slot( w, 0, 100 + (uint64_t) i ), 10 + i, i );
    }
    world_run( w, 0.1 );
    for ( i = 0; i < PLAYERS; i++ ) {
        int bytes;
        uint8_t * packet = netcode_client_receive_packet( w->clients[i], &bytes, NULL );
        CHECK( packet != NULL && bytes == 10 + i );
        if ( packet )
            netcode_client_free_packet( w->clients[i], packet );
    }
}

/* ---- the client's side ---- */

/* Its network is gone: after a second of silence it takes the new address, and is connected from there. */
TEST( roaming_a_client_rebinds_by_itself )
{
    struct world_t * w = roam_world( 4, 1 );
    int step = 0;
    REQUIRE( world_join( w, 0, 5 ) );
    world_move( w, 0, "10.9.0.1:777", 1 );
    for ( ; step < 300 && !roam_is_at( w, 5, "10.9.0.1:777" ); step++ )
        world_step( w );
    CHECK_GE( step, 90 );
    CHECK_LE( step, 120 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
    world_run( w, 3.0 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
    CHECK_EQ( netcode_client_get_port( w->clients[0] ), 777 );
}

/* Called where the system reports a new network, it takes a round trip and a few ticks. */
TEST( roaming_a_client_is_told_to_rebind )
{
    struct world_t * w = roam_world( 4, 1 );
    int i;
    REQUIRE( world_join( w, 0, 5 ) );
    world_move( w, 0, "10.9.0.1:777", 1 );
    CHECK_EQ( netcode_client_rebind( w->clients[0] ), 1 );
    for ( i = 0; i < 6 && !roam_is_at( w, 5, "10.9.0.1:777" ); i++ )
        world_step( w );
    CHECK( roam_is_at( w, 5, "10.9.0.1:777" ) );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
}

/* At most once a second, while it is connected, and where the socket can. */
static int roam_failed_rebinds;

static int roam_rebind_fails( void * context )
{
    (void) context;
    roam_failed_rebinds++;
    return 0;
}

TEST( roaming_rebinds_are_few )
{
    struct world_t * w = roam_world( 4, 2 );
    REQUIRE( world_join( w, 0, 5 ) );
    w->cut_to = w->client_addresses[0];
    world_run( w, 4.5 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 4 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    world_run( w, 20.0 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, WORLD_TIMEOUT ); /* then it has timed out */
    CHECK_EQ( client_stats( w, 1 ).rebinds, 0 );
    w->clients[1]->base.socket.rebind = NULL; /* a socket of the application's own, perhaps */
    CHECK_EQ( netcode_client_rebind( w->clients[1] ), 0 );
    REQUIRE( world_join( w, 1, 6 ) );
    w->cut_to = w->client_addresses[1];
    world_run( w, 3.0 );
    CHECK_EQ( client_stats( w, 1 ).rebinds, 0 );
    w->clients[1]->base.socket.rebind = roam_rebind_fails;
    roam_failed_rebinds = 0;
    world_run( w, 1.5 );
    CHECK_EQ( roam_failed_rebinds, 2 ); /* it is tried as seldom as others */
    CHECK_EQ( client_stats( w, 1 ).rebinds, 0 );
}

static struct {
    struct netcode_address_t cut; /* what it sends is lost */
    int mute;                     /* the server answers no probe, as one that does not know of probes */
} one_way;

static int roam_one_way_hook( struct world_t * w, const struct world_datagram_t * d )
{
    if ( same_address( &d->from, &w->server_addresses[0] ) )
        return one_way.mute && ( d->data[0] & 15 ) == NETCODE_PACKET_KEEP_ALIVE &&
               netcode_client_state( w->clients[0] ) == NETCODE_CLIENT_STATE_CONNECTED;
    return same_address( &d->from, &one_way.cut );
}

/*  A client that still hears its server and is not heard by it, as where a NAT let go of one direction, finds out by probes
    that do not come back. Where none ever did, or where they take long, it can not decide, and stays. */
TEST( roaming_a_client_that_is_not_heard )
{
    static const struct {
        float latency;
        int mute;
        int cut;
        int rebinds;
        int requested; /* rebinds that the application asks for, while it is heard: they delay nothing */
    } rows[] = { { 0.0f, 0, 1, 1, 0 }, { 100.0f, 0, 1, 1, 0 }, { 0.0f, 1, 1, 0, 0 }, { 300.0f, 0, 1, 0, 0 },
                 { 0.0f, 0, 0, 0, 0 }, { 0.0f, 0, 1, 1, 9 },   { 0.0f, 1, 1, 0, 9 } };
    size_t i;
    int step;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct world_t * w = roam_world( 4, 1 );
        memset( &one_way, 0, sizeof( one_way ) );
        w->net->latency_milliseconds = rows[i].latency;
        one_way.mute = rows[i].mute;
        w->hook = roam_one_way_hook;
        REQUIRE( world_join( w, 0, 5 ) );
        for ( step = 0; step < 300; step++ ) {
            world_step( w );
            server_send( w, 0, 0, 20, step );
            client_drain( w, 0 );
        }
        for ( step = 0; step < rows[i].requested; step++ )
            netcode_client_rebind( w->clients[0] );
        if ( rows[i].cut )
            one_way.cut = w->client_addresses[0];
        for ( step = 0; step < 450 && client_stats( w, 0 ).rebinds == (uint64_t) rows[i].requested; step++ ) {
            world_step( w );
            server_send( w, 0, 0, 20, step );
            client_drain( w, 0 );
        }
        CHECK_EQ( client_stats( w, 0 ).rebinds, rows[i].requested + rows[i].rebinds );
        if ( rows[i].rebinds )
            CHECK_GE( step, 250 );                /* three probes, and half a second for the last */
        memset( &one_way, 0, sizeof( one_way ) ); /* the NAT lets its packets pass again */
        world_run( w, WORLD_TIMEOUT );
        CHECK_EQ( client_stats( w, 0 ).rebinds, rows[i].requested + rows[i].rebinds );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        server_drain( w, 0, 0 );
        world_close( w );
    }
}

#if defined( _WIN32 ) /* Windows has its own error numbers for sockets */
#define ROAM_ERROR( name ) WSA##name
#else
#define ROAM_ERROR( name ) name
#endif

static int roam_refuse( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context, (void) datagrams, (void) count;
    return 0;
}

static void roam_refuse_info( void * context, struct netcode_socket_info_t * info )
{
    world_socket_info( context, info );
    info->last_send_error = ROAM_ERROR( ENETUNREACH );
}

/* The system refuses to send because the network is gone: the client does not wait for a second of silence. */
TEST( roaming_a_client_whose_network_is_gone )
{
    struct world_t * w = roam_world( 4, 1 );
    REQUIRE( world_join( w, 0, 5 ) );
    w->clients[0]->base.socket.send = roam_refuse;
    w->clients[0]->base.socket.info = roam_refuse_info;
    world_run( w, 0.3 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
    CHECK_EQ( client_stats( w, 0 ).last_socket_error, ROAM_ERROR( ENETUNREACH ) );
    w->clients[0]->base.socket.send = world_send;
    w->clients[0]->base.socket.info = world_socket_info;
    world_run( w, 3.0 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/* Errors of sending that say that the network is gone, and those that do not. */
TEST( roaming_lost_networks )
{
    static const int gone[] = { ROAM_ERROR( EADDRNOTAVAIL ), ROAM_ERROR( ENETUNREACH ), ROAM_ERROR( ENETDOWN ),
                                ROAM_ERROR( EHOSTUNREACH ), ROAM_ERROR( EINVAL ) };
    static const int other[] = { EPERM,  ROAM_ERROR( ENOBUFS ),      ROAM_ERROR( EMSGSIZE ),
                                 EAGAIN, ROAM_ERROR( ECONNREFUSED ), 0 };
    size_t i;
    for ( i = 0; i < sizeof( gone ) / sizeof( gone[0] ); i++ )
        CHECK_EQ( nc_socket_lost_network( gone[i] ), 1 );
#if !defined( _WIN32 )
    CHECK_EQ( nc_socket_lost_network( ENODEV ), 1 );
#endif
    for ( i = 0; i < sizeof( other ) / sizeof( other[0] ); i++ )
        CHECK_EQ( nc_socket_lost_network( other[i] ), 0 );
}

/* ---- what counts ---- */

/* From the new address: delivered at once, an answer of probes only, and the move when the probe comes back from there. */
TEST( roaming_step_by_step )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int mark, slot;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    slot = world_slot( w, 0, 5 );
    roam_to( &p, "10.2.0.2:7000" );
    mark = w->records.count;
    puppet_say( &p, 30, 9 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 1 ); /* a packet of the session like any other */
    server_send( w, 0, slot, 30, 1 );
    puppet_poll( &p );
    CHECK_EQ( p.probes > 0, 1 );
    CHECK_EQ( p.payloads, 0 );
    CHECK_EQ( roam_payloads_to( w, mark, "10.2.0.1:6000" ), 1 ); /* all else goes where it went */
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    roam_echo( &p, p.probe );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.2:7000" ) );
    server_send( w, 0, slot, 30, 1 );
    puppet_poll( &p );
    CHECK_EQ( p.payloads, 1 );
    CHECK_EQ( server_stats( w, 0 ).probes_answered, 1 );
}

/* A disconnect from there disconnects. */
TEST( roaming_disconnects_from_anywhere )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.2.0.2:7000" );
    puppet_keep_alive( &p );
    world_step( w );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT );
}

/* Recorded packets, from anywhere, at any time later: they move nothing, and no address becomes a candidate. */
TEST( threat_74_recorded_packets_move_nothing )
{
    struct world_t * w = roam_world( 4, 1 );
    struct netcode_address_t there = address_of( "10.66.0.1:6666" );
    int i, count;
    REQUIRE( world_join( w, 0, 5 ) );
    for ( i = 0; i < 100; i++ ) {
        client_send( w, 0, 20, i );
        world_step( w );
    }
    world_run( w, 0.1 );
    count = w->records.count;
    for ( i = 0; i < count; i++ )
        if ( same_address( &w->records.items[i].to, &w->server_addresses[0] ) ) {
            uint8_t data[DATAGRAM_BYTES];
            int bytes = w->records.items[i].bytes;
            memcpy( data, w->records.items[i].data, (size_t) bytes );
            world_inject( w, &there, &w->server_addresses[0], data, bytes );
            if ( i % 7 == 0 )
                world_step( w );
        }
    world_run( w, 1.0 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 0 );
    CHECK_EQ( server_stats( w, 0 ).moves, 0 );
    CHECK( roam_is_at( w, 5, "10.1.0.1:50000" ) );
    CHECK_EQ( world_count( w, 0, NULL, &there, NETCODE_PACKET_KEEP_ALIVE, 0 ), 0 );
}

/*  A client leaves its address, sends from elsewhere, and answers no probe, as those of other implementations: it times out,
    since nothing that is sent to it arrives. So it does where another one has its address by then. Packets or echoes from
    there keep it. */
TEST( threat_80_an_address_that_was_left )
{
    enum { LEFT, TAKEN, HEARD, ECHOES, LATE_ECHOES, KINDS };
    for ( int kind = 0; kind < KINDS; kind++ ) {
        struct world_t * w = roam_world( 4, 0 );
        struct puppet_t p, other;
        struct netcode_address_t there = address_of( "10.2.0.1:6000" );
        uint64_t path_probe = 0, older = 0;
        double ended = 0.0;
        int stays = kind >= HEARD;
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        double start = w->time;
        if ( kind == TAKEN ) {
            roam_join( &other, w, 6, "10.2.0.2:6000" );
            world_run( w, 0.5 );
            roam_move( &other, "10.2.0.1:6000" );
            REQUIRE( roam_is_at( w, 6, "10.2.0.1:6000" ) );
        }
        for ( int i = 0; i < 10 * 3 * WORLD_TIMEOUT; i++ ) {
            p.address = there;
            p.probe = 0;
            puppet_poll( &p );
            older = p.probe ? path_probe : older;
            path_probe = p.probe ? p.probe : path_probe;
            p.seen = w->records.count;
            if ( kind == HEARD && i % 20 == 0 )
                puppet_keep_alive( &p );
            p.address = address_of( "10.3.0.1:7000" );
            if ( kind == ECHOES && i % 10 == 9 )
                roam_echo( &p, path_probe );
            else if ( kind == LATE_ECHOES && i % 10 == 5 )
                roam_echo( &p, older );
            else
                puppet_keep_alive( &p );
            server_send( w, 0, 0, 30, i );
            world_run( w, 0.1 );
            if ( ended <= 0.0 && !netcode_server_client_connected( w->servers[0], 0 ) )
                ended = w->time;
        }
        int mark = w->records.count;
        server_send( w, 0, 0, 30, 1 );
        CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), stays );
        CHECK_EQ( roam_payloads_to( w, mark, "10.2.0.1:6000" ), stays );
        if ( !stays ) {
            CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
                      NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
            CHECK_NEAR( ended - start, WORLD_TIMEOUT, 0.4 );
        }
        world_close( w );
    }
}

/*  Packets that were held back and never arrived are authentic, and older than the newest: from another address they move
    nothing, are not delivered, and nothing is sent there. */
TEST( threat_79_older_packets_move_nothing )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int i, mark;
    uint64_t newest;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    p.sequence += 200;
    puppet_keep_alive( &p );
    world_step( w );
    newest = p.sequence;
    mark = w->records.count;
    roam_to( &p, "10.66.0.1:6666" );
    for ( i = 1; i < 150; i++ ) {
        p.sequence = newest - 1 - (uint64_t) i;
        puppet_say( &p, 30, i );
        p.sequence = newest - 150 - (uint64_t) i;
        roam_echo( &p, p.probe );
        world_step( w );
    }
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 0 );
    CHECK_EQ( roam_bytes( w, mark, "10.66.0.1:6666", 0 ), 0 );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
}

/*  Sequences that are guessed: with a thousand slots a packet in 65,000 is tried at all, none is authentic, nothing is
    answered. */
TEST( threat_72_guessed_sequences )
{
    struct world_t * w = roam_world( 16, 0 );
    struct puppet_t p;
    struct netcode_address_t there = address_of( "10.66.0.1:6666" );
    uint8_t junk[64];
    char text[64];
    int i, mark;
    for ( i = 0; i < 16; i++ ) {
        snprintf( text, sizeof( text ), "10.2.0.%d:6000", 1 + i );
        puppet_make( &p, w, 0, 50 + (uint64_t) i, text );
        p.sequence = nc_crypto_sequence_base( NETCODE_SEQUENCE_BASE_RANDOM, test_random() );
        REQUIRE( puppet_connect( &p ) );
        puppet_keep_alive( &p );
    }
    world_run( w, 0.3 );
    mark = w->records.count;
    for ( i = 0; i < 50000; i++ ) {
        uint8_t * at = junk;
        put( &at, 0x60u | (unsigned) ( NETCODE_PACKET_KEEP_ALIVE + i % 3 ), 1 );
        put( &at, nc_crypto_sequence_base( NETCODE_SEQUENCE_BASE_RANDOM, test_random() ), 6 );
        put( &at, test_random(), 8 );
        world_inject( w, &there, &w->server_addresses[0], junk, i % 3 == 0 ? 31 : i % 3 == 1 ? 60 : 23 );
        if ( i % 300 == 0 )
            world_step( w );
    }
    world_step( w );
    CHECK_LE( server_stats( w, 0 ).trials, 2 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 0 );
    CHECK_EQ( roam_bytes( w, mark, "10.66.0.1:6666", 0 ), 0 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 49000 );
}

static struct netcode_address_t roam_copier;

/* Copies each packet of client 0 and is faster than it. */
static int roam_copy_hook( struct world_t * w, const struct world_datagram_t * d )
{
    if ( same_address( &d->from, &w->client_addresses[0] ) && same_address( &d->to, &w->server_addresses[0] ) )
        world_inject( w, &roam_copier, &w->server_addresses[0], d->data, d->bytes );
    return 0;
}

/*  An observer that copies packets and is faster than they are: probes reach it that it can not open, never more bytes
    than it sent, and no payload; the client stays where it is and is heard. */
TEST( threat_73_a_faster_copy_moves_nothing )
{
    struct world_t * w = roam_world( 4, 1 );
    int i, mark, received = 0, heard = 0;
    REQUIRE( world_join( w, 0, 5 ) );
    roam_copier = address_of( "10.66.0.1:6666" );
    mark = w->records.count;
    w->hook = roam_copy_hook;
    for ( i = 0; i < 2000; i++ ) {
        client_send( w, 0, 20, i ), server_send( w, 0, 0, 20, i );
        world_step( w );
        received += client_drain( w, 0 ), heard += server_drain( w, 0, 0 );
        CHECK_LE( roam_bytes( w, mark, "10.66.0.1:6666", 0 ), roam_bytes( w, mark, "10.66.0.1:6666", 1 ) );
        if ( i % 100 )
            continue;
        CHECK( roam_is_at( w, 5, "10.1.0.1:50000" ) );
        CHECK_EQ( roam_payloads_to( w, mark, "10.66.0.1:6666" ), 0 );
    }
    CHECK_GE( server_stats( w, 0 ).path_candidates, 1 );
    CHECK_LE( world_count( w, mark, NULL, &roam_copier, -1, 0 ), 20 * 10 );
    CHECK_EQ( server_stats( w, 0 ).moves, 0 );
    CHECK_GE( received, 1990 );
    CHECK_GE( heard, 1990 );
}

/*  The same makes no client think that it is not heard: a probe is answered from wherever it came, to where its client
    is. Nor does it delay the client's notice. */
TEST( threat_82_a_faster_copy_of_probes )
{
    struct world_t * w = roam_world( 4, 1 );
    int i;
    w->net->latency_milliseconds = 10.0f;
    REQUIRE( world_join( w, 0, 5 ) );
    roam_copier = address_of( "10.66.0.1:6666" );
    w->hook = roam_copy_hook;
    for ( i = 0; i < 1500; i++ ) {
        client_send( w, 0, 20, i ), server_send( w, 0, 0, 20, i );
        world_step( w );
        client_drain( w, 0 ), server_drain( w, 0, 0 );
    }
    CHECK_EQ( client_stats( w, 0 ).rebinds, 0 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, 0.02, 0.011 );
    CHECK_EQ( world_count( w, 0, NULL, &roam_copier, NETCODE_PACKET_PAYLOAD, 0 ), 0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/*  A player with a token puts a victim's address as source of its own packets, and guesses echoes: the victim gets no payload,
    and no more bytes than came in its name, all of them probes. */
TEST( threat_75_a_victim_is_no_target )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    struct netcode_address_t victim = address_of( "10.77.0.1:7777" );
    int i, mark;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.77.0.1:7777" );
    mark = w->records.count;
    for ( i = 0; i < 3000; i++ ) {
        server_send( w, 0, 0, 1000, i );
        if ( i % 100 == 0 )
            roam_live( &p, "10.2.0.1:6000" );
        roam_echo( &p, test_random() | (uint64_t) 1 << 63 );
        if ( i % 3 == 0 )
            puppet_say( &p, 1, i );
        world_step( w );
        server_drain( w, 0, 0 );
        CHECK_LE( roam_bytes( w, mark, "10.77.0.1:7777", 0 ), roam_bytes( w, mark, "10.77.0.1:7777", 1 ) );
    }
    for ( i = 0; i < 40; i++ ) { /* packets that are smaller than a probe */
        world_run( w, 0.25 + ( i == 0 ) * 2.0 );
        if ( i == 0 )
            mark = w->records.count;
        roam_live( &p, "10.2.0.1:6000" );
        puppet_say( &p, 1, i );
        world_step( w );
        server_drain( w, 0, 0 );
        CHECK_LE( roam_bytes( w, mark, "10.77.0.1:7777", 0 ), roam_bytes( w, mark, "10.77.0.1:7777", 1 ) );
    }
    CHECK( !roam_is_at( w, 5, "10.77.0.1:7777" ) );
    CHECK_EQ( roam_payloads_to( w, mark, "10.77.0.1:7777" ), 0 );
    CHECK_EQ( world_count( w, mark, NULL, &victim, -1, 0 ),
              world_count( w, mark, NULL, &victim, NETCODE_PACKET_KEEP_ALIVE, 0 ) );
    CHECK_LE( world_count( w, 0, NULL, &victim, -1, 0 ), 40 * 10 + 6 );
    CHECK_GE( world_count( w, 0, NULL, &victim, -1, 0 ), 60 );
}

/* A player moves as often as it can: ten probes a second to all of its addresses, however many they are. */
TEST( threat_77_probes_are_ten_a_second )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    char text[64];
    uint64_t before;
    int i, second, i_address = 0;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    for ( second = 0; second < 10; second++ ) {
        before = server_stats( w, 0 ).probes_sent;
        for ( i = 0; i < 100; i++ ) {
            snprintf( text, sizeof( text ), "10.3.%d.%d:7000", i_address / 200, 1 + i_address % 200 );
            i_address = second < 5 ? i_address + 1 : ( i_address + 1 ) % 3;
            p.address = address_of( text );
            if ( i == 50 )
                roam_live( &p, "10.2.0.1:6000" );
            puppet_say( &p, 200, i );
            world_step( w );
            server_drain( w, 0, 0 );
        }
        CHECK_LE( server_stats( w, 0 ).probes_sent - before, 10 + 2 ); /* those to where it is, too */
    }
    CHECK_GE( server_stats( w, 0 ).path_candidates, 10 );
    CHECK_LE( server_stats( w, 0 ).path_candidates, 3 + 5 * 12 + 3 + 3 );
}

/* Three candidates; the oldest is evicted, but not within 250 ms; two seconds after its last packet each ends. */
TEST( roaming_candidates_are_three )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    char text[64];
    int i;
    uint64_t probe = 0, before;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    for ( i = 1; i <= 5; i++ ) {
        snprintf( text, sizeof( text ), "10.3.0.%d:7000", i );
        roam_to( &p, text );
        puppet_say( &p, 30, i );
        world_step( w );
        puppet_poll( &p );
        if ( i == 1 )
            probe = p.probe;
    }
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 3 );
    world_run( w, 0.22 );
    roam_to( &p, "10.3.0.4:7000" );
    puppet_say( &p, 30, i );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 4 );
    roam_to( &p, "10.3.0.1:7000" ); /* evicted: its probe is nothing any more */
    roam_echo( &p, probe );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    before = server_stats( w, 0 ).path_candidates;
    for ( i = 0; i < 4; i++ ) {
        world_run( w, i == 2 ? 2.01 : 1.97 );
        roam_live( &p, "10.2.0.1:6000" );
        roam_to( &p, "10.3.0.4:7000" );
        puppet_say( &p, 30, i );
        world_step( w );
        CHECK_EQ( server_stats( w, 0 ).path_candidates - before, i < 2 ? 0 : 1 );
    }
    server_drain( w, 0, 0 );
}

/* What was measured of the old path is not said of the new one. */
TEST( roaming_round_trip_of_the_new_path )
{
    struct world_t * w = roam_world( 4, 1 );
    w->step = 0.001;
    w->net->latency_milliseconds = 100.0f;
    REQUIRE( world_join( w, 0, 5 ) );
    world_run( w, 5.0 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 0.2, 0.003 );
    w->net->latency_milliseconds = 10.0f;
    world_move( w, 0, "10.9.0.1:777", 0 );
    world_run( w, 0.9 );
    CHECK_EQ( path_slot( w, 0 ).moves, 1 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 0.02, 0.003 );
    w->net->latency_milliseconds = 50.0f;
    world_move( w, 0, "10.9.0.2:777", 0 );
    world_run( w, 0.9 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_lowest_seconds, 0.1, 0.003 );
    w->net->latency_milliseconds = 100.0f;
    world_move( w, 0, "10.9.0.2:778", 0 ); /* the same path, behind another port of its NAT */
    world_run( w, 2.0 );
    CHECK_EQ( path_slot( w, 0 ).moves, 3 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_lowest_seconds, 0.1, 0.003 );
    CHECK_GT( path_slot( w, 0 ).round_trip_seconds * 1000.0, 110 );
}

/* A probe's echo counts from where it was sent to, within two seconds, in the newest packet, and in a keep-alive only. */
TEST( roaming_echoes_that_count )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    uint64_t probe, own;
    uint8_t body[8], *at = body;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    own = p.probe; /* of the path that it is on */
    roam_to( &p, "10.3.0.1:7000" );
    puppet_say( &p, 30, 1 );
    puppet_step( &p );
    probe = p.probe;
    CHECK_NE( probe, own );
    roam_echo( &p, own ); /* one that was sent elsewhere: neither does it measure the path that it was sent on */
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).probes_answered, 0 );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    roam_to( &p, "10.3.0.2:7000" );
    roam_echo( &p, probe ); /* from elsewhere */
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    roam_to( &p, "10.2.0.1:6000" );
    roam_echo( &p, probe ); /* from where it is: neither is that path validated, it is */
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    roam_to( &p, "10.3.0.1:7000" );
    put( &at, probe, 8 );
    puppet_send( &p, NETCODE_PACKET_PAYLOAD, body, 8 ); /* not in a payload */
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    p.sequence += 10;
    puppet_say( &p, 1, 1 );
    world_step( w );
    p.sequence -= 5;
    roam_echo( &p, probe ); /* not the newest */
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    p.sequence += 10;
    roam_echo( &p, probe );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    server_drain( w, 0, 0 );
}

/* Probes to other addresses that a client was heard from end with a move: it would have to answer new ones. */
TEST( roaming_echoes_end_with_a_move )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    uint64_t here, there;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.3.0.1:7000" );
    puppet_say( &p, 30, 1 );
    puppet_step( &p );
    here = p.probe;
    roam_to( &p, "10.3.0.2:7000" );
    puppet_say( &p, 30, 2 );
    puppet_step( &p );
    there = p.probe;
    CHECK_NE( here, there );
    roam_to( &p, "10.3.0.1:7000" );
    roam_echo( &p, here );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    roam_to( &p, "10.3.0.2:7000" );
    roam_echo( &p, there );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    server_drain( w, 0, 0 );
}

TEST( roaming_echoes_are_good_for_two_seconds )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    uint64_t probe;
    int late, i;
    for ( late = 0; late < 2; late++ ) {
        roam_join( &p, w, 5 + (uint64_t) late, late ? "10.2.0.2:6000" : "10.2.0.1:6000" );
        roam_to( &p, late ? "10.3.0.2:7000" : "10.3.0.1:7000" );
        puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, "\0\0\0\0\0\0\0", 8 );
        puppet_step( &p );
        probe = p.probe;
        for ( i = 0; i < 3; i++ ) { /* the candidate stays, and so few bytes that few probes follow */
            world_run( w, late ? 0.67 : 0.65 );
            puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, "\0\0\0\0\0\0\0", 8 );
        }
        roam_echo( &p, probe );
        world_step( w );
        CHECK_EQ( server_stats( w, 0 ).moves, 1 );
    }
}

/* ---- finding the slot ---- */

/* What is too far ahead is not tried, at 2^16 it is; also across the numbers under which slots are filed. */
TEST( roaming_sequences_that_are_tried )
{
    static const struct {
        uint64_t newest;
        uint64_t ahead;
        int is_found;
    } rows[] = {
        { (uint64_t) 1 << 30, 1, 1 },
        { (uint64_t) 1 << 30, 65536, 1 },
        { (uint64_t) 1 << 30, 65537, 0 },
        { ( (uint64_t) 1 << 30 ) + 65535, 1, 1 },
        { ( (uint64_t) 1 << 30 ) + 65535, 65536, 1 },
        { ( (uint64_t) 1 << 30 ) + 30000, 40000, 1 },
        { ( (uint64_t) 1 << 20 ) + 1, 1, 1 },
        { ( (uint64_t) 1 << 20 ) - 3, 1, 0 },
        { 5000, 1, 0 },
        { ( (uint64_t) 1 << 47 ) + 7, 300, 1 },
    };
    struct world_t * w = roam_world( 16, 0 );
    struct puppet_t p;
    size_t i;
    char text[64];
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        uint64_t before = server_stats( w, 0 ).path_candidates;
        snprintf( text, sizeof( text ), "10.2.0.%d:6000", 1 + (int) i );
        puppet_make( &p, w, 0, 50 + i, text );
        uint64_t newest = rows[i].newest + ( rows[i].newest >> 30 ? (uint64_t) i << 32 : 0 );
        p.sequence = newest - 2;
        REQUIRE( puppet_connect( &p ) );
        p.sequence = newest;
        puppet_keep_alive( &p );
        world_run( w, 0.25 );
        snprintf( text, sizeof( text ), "10.3.0.%d:6000", 1 + (int) i );
        roam_to( &p, text );
        p.sequence = newest + rows[i].ahead;
        puppet_keep_alive( &p );
        world_step( w );
        if ( (int) ( server_stats( w, 0 ).path_candidates - before ) != rows[i].is_found )
            test_fail( __FILE__, __LINE__, "row %d: %d candidates", (int) i,
                       (int) ( server_stats( w, 0 ).path_candidates - before ) );
    }
}

/* A slot's number changes while it plays: the packets of hours later find it, too. */
TEST( roaming_numbers_follow_the_sequence )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int i;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    for ( i = 0; i < 50; i++ ) {
        p.sequence += 60000;
        puppet_keep_alive( &p );
        world_run( w, 0.25 );
    }
    roam_to( &p, "10.3.0.1:7000" );
    puppet_say( &p, 30, 1 );
    puppet_step( &p );
    roam_echo( &p, p.probe );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    server_drain( w, 0, 0 );
}

/*  An observer of a client's sequences spends its trials: eight at once, eight a second, and the client stays where it is. The
    next honest move is found once the ration has refilled. */
TEST( threat_78_trials_are_rationed )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    struct netcode_address_t there = address_of( "10.66.0.1:6666" );
    uint8_t junk[64];
    int i, k, mark;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    mark = w->records.count;
    for ( i = 0; i < 500; i++ ) {
        for ( k = 0; k < 10; k++ ) {
            uint8_t * at = junk;
            put( &at, 0x60 | NETCODE_PACKET_PAYLOAD, 1 );
            put( &at, p.sequence + (uint64_t) k, 6 );
            world_inject( w, &there, &w->server_addresses[0], junk, 60 );
        }
        if ( i % 10 == 0 )
            puppet_keep_alive( &p );
        world_step( w );
    }
    CHECK_LE( server_stats( w, 0 ).trials, 8 + 40 + 1 );
    CHECK_GE( server_stats( w, 0 ).trials, 40 );
    CHECK_GE( server_stats( w, 0 ).trials_refused, 4900 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 0 );
    CHECK_EQ( roam_bytes( w, mark, "10.66.0.1:6666", 0 ), 0 );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    world_run( w, 0.3 );
    roam_move( &p, "10.3.0.1:7000" );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
}

/* At most two slots are tried for a packet, though many have its sequence; few are compared. */
TEST( roaming_many_at_one_sequence )
{
    struct world_t * w = roam_world( 40, 0 );
    struct puppet_t p;
    struct netcode_address_t there = address_of( "10.66.0.1:6666" );
    uint8_t junk[64] = { 0 }, *at = junk;
    char text[64];
    int i;
    for ( i = 0; i < 30; i++ ) {
        snprintf( text, sizeof( text ), "10.2.0.%d:6000", 1 + i );
        puppet_make( &p, w, 0, 50 + (uint64_t) i, text );
        p.sequence = (uint64_t) 1 << 40;
        REQUIRE( puppet_connect( &p ) );
        puppet_keep_alive( &p );
    }
    world_run( w, 0.3 );
    put( &at, 0x60 | NETCODE_PACKET_PAYLOAD, 1 );
    put( &at, p.sequence + 100, 6 );
    world_inject( w, &there, &w->server_addresses[0], junk, 60 );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).trials, 2 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 1 );
}

/* Slots that are not confirmed, loopback clients and handshakes do not roam. */
TEST( roaming_sessions_only )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p, q;
    netcode_server_connect_loopback_client( w->servers[0], 3, 99, NULL );
    puppet_make( &p, w, 0, 5, "10.2.0.1:6000" );
    p.sequence = (uint64_t) 1 << 40;
    REQUIRE( puppet_connect( &p ) ); /* not confirmed */
    world_run( w, 0.3 );
    roam_to( &p, "10.3.0.1:7000" );
    puppet_keep_alive( &p );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).trials, 0 );
    puppet_make( &q, w, 0, 6, "10.2.0.2:6000" );
    q.sequence = (uint64_t) 1 << 41;
    REQUIRE( puppet_challenged( &q ) );
    roam_to( &q, "10.3.0.2:7000" );
    puppet_respond( &q ); /* the challenge is for another address */
    world_step( w );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    CHECK_EQ( server_stats( w, 0 ).moves + server_stats( w, 0 ).path_candidates, 0 );
}

/* ---- an address changes hands ---- */

/*  A player that receives what is sent to another's address takes it over: the other keeps its slot, its keys and its
    clocks, nothing is sent to it until it is heard and validated again, perhaps there. */
TEST( threat_76_an_address_belongs_to_one_slot )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p, q;
    int mark;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_join( &q, w, 6, "10.2.0.2:6000" );
    roam_move( &p, "10.2.0.2:6000" );
    CHECK( roam_is_at( w, 5, "10.2.0.2:6000" ) );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], world_slot( w, 0, 6 ) ), 1 );
    CHECK_EQ( netcode_server_client_address( w->servers[0], world_slot( w, 0, 6 ) )->type, NETCODE_ADDRESS_NONE );
    mark = w->records.count;
    q.seen = mark;
    q.payloads = q.keep_alives = q.probes = q.unreadable = 0;
    server_send( w, 0, world_slot( w, 0, 6 ), 30, 1 );
    world_run( w, 1.0 );
    puppet_poll( &q );
    CHECK_EQ( q.payloads + q.keep_alives + q.probes, 0 );
    CHECK_GE( q.unreadable, 8 ); /* the other one's */
    puppet_keep_alive( &q );
    puppet_step( &q );
    CHECK_EQ( q.probes, 1 );
    roam_echo( &q, q.probe );
    world_step( w );
    CHECK( roam_is_at( w, 6, "10.2.0.2:6000" ) );
    CHECK_EQ( netcode_server_client_address( w->servers[0], world_slot( w, 0, 5 ) )->type, NETCODE_ADDRESS_NONE );
    world_run( w, WORLD_TIMEOUT + 0.5 ); /* silence ends both as ever */
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/*  An observer that has a token of its own, sends its packets from where another client is, and reads and returns the
    probes: it gets nothing while that client is heard from there, and the address once it is silent for 0.25 s. */
TEST( threat_81_an_address_where_a_client_is_heard )
{
    int spacing;
    for ( spacing = 2; spacing <= 10; spacing += 4 ) {
        struct world_t * w = roam_world( 4, 1 );
        struct puppet_t p;
        int i, step, sent = 0, got = 0;
        w->net->latency_milliseconds = 25.0f;
        roam_join( &p, w, 50, "10.2.0.1:6000" );
        REQUIRE( world_join( w, 0, 5 ) );
        world_run( w, 1.0 );
        roam_to( &p, "10.1.0.1:50000" );
        p.probe = 0;
        for ( i = 0; i < 1000; i++ ) {
            if ( i % 100 == 0 )
                roam_live( &p, "10.2.0.1:6000" );
            if ( p.probe )
                roam_echo( &p, p.probe );
            else if ( i % spacing == 0 )
                puppet_keep_alive( &p );
            p.probe = 0;
            client_send( w, 0, 20, i ), server_send( w, 0, world_slot( w, 0, 5 ), 20, i );
            sent++;
            world_step( w );
            puppet_poll( &p );
            got += client_drain( w, 0 );
            server_drain( w, 0, world_slot( w, 0, 5 ) );
        }
        CHECK_GE( got, sent - 4 );
        CHECK_EQ( server_stats( w, 0 ).moves, 0 );
        CHECK_GE( p.probes, 10 );
        w->cut_types = ~0u;
        w->cut_to = w->server_addresses[0]; /* it goes; what the tests inject arrives */
        for ( step = 0; step < 300 && !roam_is_at( w, 50, "10.1.0.1:50000" ); step++ ) {
            if ( p.probe )
                roam_echo( &p, p.probe );
            else if ( step % spacing == 0 )
                puppet_keep_alive( &p );
            p.probe = 0;
            world_step( w );
            puppet_poll( &p );
        }
        CHECK_GE( step, 23 );
        CHECK_LE( step, 60 );
        world_close( w );
    }
}

/* Neither does it get the address of a client that has just connected and was not heard since: that takes as long. */
TEST( threat_81_an_address_where_a_client_connects )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p, q;
    int i, step;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 6, "10.2.0.2:6000" );
    REQUIRE( puppet_connect( &q ) );
    roam_to( &p, "10.2.0.2:6000" );
    p.probe = 0;
    for ( step = 0; step < 300 && !roam_is_at( w, 5, "10.2.0.2:6000" ); step++ ) {
        if ( p.probe )
            roam_echo( &p, p.probe );
        else
            puppet_keep_alive( &p );
        p.probe = 0;
        world_step( w );
        puppet_poll( &p );
    }
    CHECK_GE( step, 23 );
    CHECK_LE( step, 35 );
    for ( i = 0; i < 2; i++ ) { /* it keeps its slot, and is found there again once it is heard */
        puppet_keep_alive( &q );
        world_run( w, 0.3 );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

/* A slot without an address can be disconnected, taken over, stopped: nothing is sent, and nothing is left. */
TEST( roaming_slots_without_an_address_end )
{
    int how;
    for ( how = 0; how < 4; how++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p, q, r;
        w->server_config.roaming = w->server_config.replace_existing_clients = 1;
        world_add_server( w, 4 );
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        roam_join( &q, w, 6, "10.2.0.2:6000" );
        roam_move( &p, "10.2.0.2:6000" );
        REQUIRE_EQ( netcode_server_client_address( w->servers[0], world_slot( w, 0, 6 ) )->type, NETCODE_ADDRESS_NONE );
        if ( how == 0 )
            netcode_server_disconnect_client( w->servers[0], world_slot( w, 0, 6 ) );
        if ( how == 1 ) {
            puppet_make( &r, w, 0, 6, "10.2.0.3:6000" );
            CHECK( puppet_connect( &r ) );
            CHECK( roam_is_at( w, 6, "10.2.0.3:6000" ) );
        }
        if ( how == 2 )
            netcode_server_stop( w->servers[0] );
        if ( how == 3 )
            world_restart( w, 0, 4 );
        world_run( w, 0.5 );
        if ( how != 1 && how != 2 ) {
            roam_join( &r, w, 7, "10.2.0.2:6001" );
            CHECK( roam_is_at( w, 7, "10.2.0.2:6001" ) );
        }
        world_close( w );
    }
}

/* ---- events ---- */

/* Moves that were not read yet are one event; one that was not read before its client disconnected is none. */
TEST( roaming_events )
{
    struct world_t * w = roam_world_with( 2, 1, 1 );
    struct netcode_event_t event;
    int i, round, moved = 0, types[8], count = 0;
    char text[64];
    for ( round = 0; round < 100; round++ ) {
        REQUIRE( world_join( w, 0, 5 ) );
        for ( i = 0; i < 3; i++ ) {
            snprintf( text, sizeof( text ), "10.9.%d.%d:777", round, i );
            world_move( w, 0, text, 0 );
            world_run( w, 0.3 );
        }
        if ( round == 50 ) {
            while ( netcode_server_next_event( w->servers[0], &event ) ) {
                moved += event.type == NETCODE_EVENT_MOVED;
                if ( event.client_index == 0 && event.session == netcode_server_client_session( w->servers[0], 0 ) &&
                     count < 8 )
                    types[count++] = event.type;
            }
            CHECK_EQ( moved, 1 );
            CHECK_EQ( count, 2 );
            CHECK_EQ( types[0], NETCODE_EVENT_CONNECTED );
            CHECK_EQ( types[1], NETCODE_EVENT_MOVED );
        }
        netcode_client_disconnect( w->clients[0] );
        world_run( w, 0.1 );
        world_destroy_client( w, 0 );
        world_make_client( w, 0 );
        while ( netcode_server_next_event( w->servers[0], &event ) )
            CHECK_NE( event.type, NETCODE_EVENT_MOVED );
    }
    CHECK_EQ( server_stats( w, 0 ).moves, 300 );
}

TEST( roaming_moves_that_were_read )
{
    struct world_t * w = roam_world_with( 2, 1, 1 );
    struct netcode_event_t event;
    int i, moved = 0;
    char text[64];
    REQUIRE( world_join( w, 0, 5 ) );
    for ( i = 0; i < 10; i++ ) {
        snprintf( text, sizeof( text ), "10.9.0.%d:777", 1 + i );
        world_move( w, 0, text, 0 );
        world_run( w, 0.3 );
        while ( netcode_server_next_event( w->servers[0], &event ) )
            moved += event.type == NETCODE_EVENT_MOVED;
        CHECK_EQ( moved, i + 1 );
    }
}

/* ---- where servers share a port ---- */

static struct {
    struct world_t * w;
    int calls;
    int accepts;
    int bytes;
    uint8_t data[DATAGRAM_BYTES];
    struct netcode_address_t from;
    int other; /* the server that gets it, or -1 */
} stray;

static int stray_callback( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    (void) context;
    stray.calls++;
    stray.bytes = bytes;
    stray.from = *from;
    memcpy( stray.data, data, (size_t) bytes );
    return stray.accepts;
}

/* It gets session packets from unknown addresses, as they came; 1: no drop is counted. Not junk, not requests or responses. */
TEST( roaming_strays_are_offered )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint8_t junk[64] = { 0 };
    int i, roaming;
    for ( roaming = 0; roaming < 2; roaming++ ) {
        w = world_new( CLEAN );
        memset( &stray, 0, sizeof( stray ) );
        w->server_config.roaming = roaming;
        w->server_config.stray_callback = stray_callback;
        world_add_server( w, 2 );
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        CHECK_EQ( stray.calls, 0 );
        p.r.to_server_key[0] ^= 1; /* a client of another server */
        roam_to( &p, "10.3.0.1:7000" );
        for ( i = 0; i < 2; i++ ) {
            stray.accepts = i;
            puppet_say( &p, 30, 1 );
            world_step( w );
            CHECK_EQ( stray.calls, i + 1 );
            CHECK_EQ( stray.bytes, 53 );
            CHECK( same_address( &stray.from, &p.address ) );
            CHECK_MEM( stray.data,
                       w->records.items[w->records.count - 1].injected ? w->records.items[w->records.count - 1].data
                                                                       : stray.data,
                       7 );
            CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 1 );
        }
        puppet_respond( &p );
        puppet_raw( &p, junk, 20 );
        puppet_raw( &p, junk, 0 );
        world_step( w );
        CHECK_EQ( stray.calls, 2 );
        p.r.to_server_key[0] ^= 1;
        roam_to( &p, "10.2.0.1:6000" ); /* what was received before is no other client's */
        puppet_keep_alive( &p );
        p.sequence--;
        puppet_keep_alive( &p );
        world_step( w );
        CHECK_EQ( stray.calls, 2 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_REPLAYED ), 1 );
        p.r.to_server_key[0] ^= 1;
        roam_to( &p, "10.2.0.1:6000" ); /* from an address that another client has here: the sequences are apart */
        p.sequence += (uint64_t) 1 << 40;
        puppet_say( &p, 30, 1 );
        world_step( w );
        CHECK_EQ( stray.calls, 3 );
        world_close( w );
    }
}

static int stray_to_other( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    struct world_party_t * party = (struct world_party_t *) context;
    struct netcode_address_t address = *from;
    uint8_t copy[DATAGRAM_BYTES];
    stray.calls++;
    if ( stray.other >= 0 )
        return 0; /* it was offered here already */
    memcpy( copy, data, (size_t) bytes );
    stray.other = 1 - party->index;
    netcode_server_process_packet( stray.w->servers[stray.other], &address, copy, bytes );
    stray.other = -1;
    return 1;
}

/* Two servers share an address; the client that moves is led to the other one, which hands its packets back. */
TEST( roaming_across_servers )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    memset( &stray, 0, sizeof( stray ) );
    stray.w = w;
    stray.other = -1;
    w->server_config.roaming = 1;
    w->server_config.stray_callback = stray_to_other;
    world_add_server( w, 2 );
    world_add_server( w, 2 );
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    p.server = 1;
    puppet_say( &p, 30, 1 ); /* the group has grown, the same address is led elsewhere */
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    roam_to( &p, "10.3.0.1:7000" );
    puppet_say( &p, 30, 1 );
    puppet_step( &p );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    roam_echo( &p, p.probe );
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    CHECK_EQ( server_stats( w, 1 ).dropped[NETCODE_DROP_UNKNOWN_ADDRESS], 0 );
}

/* ---- corners ---- */

/*  Before and after a connection there is no peer to notify; a loopback client has no path; not every socket knows its
    address. */
TEST( corners_rebinds_of_clients_that_are_not_connected )
{
    struct world_t * w = roam_world( 4, 2 );
    struct netcode_client_t * client = w->clients[0];
    int mark = w->records.count;
    CHECK_EQ( netcode_client_rebind( client ), 1 );
    world_connect( w, 0, 5 );
    CHECK_EQ( netcode_client_rebind( client ), 1 );
    CHECK_EQ( w->records.count, mark );
    world_run( w, 0.5 );
    CHECK_EQ( netcode_client_state( client ), NETCODE_CLIENT_STATE_CONNECTED );
    client->base.socket.info = NULL;
    CHECK_EQ( netcode_client_rebind( client ), 1 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 3 );
    netcode_client_connect_loopback( w->clients[1], 1, 4 );
    mark = w->records.count;
    CHECK_EQ( netcode_client_rebind( w->clients[1] ), 1 );
    CHECK_EQ( w->records.count, mark );
    CHECK_EQ( netcode_client_state( w->clients[1] ), NETCODE_CLIENT_STATE_CONNECTED );
}

static int roam_end_hook( struct world_t * w, const struct world_datagram_t * d )
{
    (void) d;
    w->hook = NULL;
    netcode_server_disconnect_client( w->servers[0], 0 );
    return 0;
}

/*  The batch is full when a probe is to be sent, and what the network does with it ends the slot: no probe of no
    client. */
TEST( corners_a_probe_whose_slot_ends )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint8_t data[200] = { 0 }, copy[DATAGRAM_BYTES];
    int i, mark;
    w->server_config.roaming = w->server_config.batch_sends = 1;
    world_add_server( w, 2 );
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    REQUIRE( w->servers[0]->base.outbox.capacity > 0 );
    for ( i = w->servers[0]->base.outbox.count; i < w->servers[0]->base.outbox.capacity; i++ )
        netcode_server_send_packet( w->servers[0], 0, data, 20 );
    roam_to( &p, "10.3.0.1:7000" );
    mark = w->records.count;
    w->hook = roam_end_hook;
    int bytes = wire_seal( copy, NETCODE_PACKET_PAYLOAD, p.sequence++, 0, p.r.to_server_key, data, 200 );
    netcode_server_process_packet( w->servers[0], &p.address, copy, bytes );
    CHECK( w->hook == NULL );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 0 );
    world_run( w, 0.5 );
    CHECK_EQ( world_count( w, mark, NULL, &p.address, -1, 0 ), 0 );
    CHECK_EQ( server_stats( w, 0 ).moves, 0 );
}

/* A server's sequence of seven bytes makes probes of 33: a packet of 32 does not pay for one. After the last one, none. */
TEST( corners_probes_of_large_sequences )
{
    static const struct {
        uint64_t sequence;
        int bytes; /* of what comes from there */
        int probes;
    } rows[] = { { 1u << 20, 31, 1 },           { ( (uint64_t) 1 << 48 ) - 1, 31, 1 }, { (uint64_t) 1 << 48, 32, 0 },
                 { (uint64_t) 1 << 48, 33, 1 }, { (uint64_t) 1 << 62, 40, 1 },         { (uint64_t) 1 << 63, 40, 0 } };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct world_t * w = roam_world( 2, 0 );
        struct puppet_t p;
        int mark;
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        roam_to( &p, "10.3.0.1:7000" );
        w->servers[0]->memory.slot[0].sequence = rows[i].sequence;
        mark = w->records.count;
        puppet_say( &p, rows[i].bytes - 23, 1 );
        world_step( w );
        CHECK_EQ( roam_bytes( w, mark, "10.3.0.1:7000", 1 ), rows[i].bytes );
        CHECK_EQ( world_count( w, mark, NULL, &p.address, -1, 0 ), rows[i].probes );
        CHECK_LE( roam_bytes( w, mark, "10.3.0.1:7000", 0 ), rows[i].bytes );
        server_drain( w, 0, 0 );
        w->servers[0]->memory.slot[0].sequence = 1u << 21; /* for the end */
        world_close( w );
    }
}

static int roam_set_filter( void * context, const nc_flood_filter_t * filter )
{
    (void) context;
    return filter != NULL;
}

static int roam_knows( const nc_flood_t * flood, const struct netcode_address_t * address )
{
    uint32_t bit = nc_flood_bit( &flood->filter, address );
    return (int) ( flood->filter.connected[bit / 32] >> bit % 32 & 1 );
}

/* The filter of a flood lets the addresses of clients and of their candidates pass, and samples the rest where clients roam. */
TEST( corners_a_flood_while_a_client_moves )
{
    int kind;
    for ( kind = 0; kind < 2; kind++ ) { /* roaming; not */
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        struct netcode_address_t from = address_of( "10.2.0.1:6000" ), to = address_of( "10.3.0.1:7000" );
        w->server_config.roaming = kind != 1;
        world_add_server( w, 16 );
        nc_flood_t * flood = &w->servers[0]->flood;
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        roam_to( &p, "10.3.0.1:7000" );
        puppet_keep_alive( &p );
        world_step( w );
        w->servers[0]->base.extras.set_filter = roam_set_filter;
        flood->overrun = 1;
        flood->filter.unknown = 1000;
        flood->seconds = 0.1;
        nc_server_judge_flood( w->servers[0], 0 );
        nc_server_set_filter( w->servers[0] );
        CHECK_EQ( roam_knows( flood, &from ), 1 );
        CHECK_EQ( roam_knows( flood, &to ), kind == 0 );
        CHECK_EQ( flood->filter.roaming, kind == 0 );
        if ( kind == 0 ) { /* where it has moved to is learned at once, too */
            uint32_t key = flood->filter.keys[0];
            puppet_poll( &p );
            roam_echo( &p, p.probe );
            world_step( w );
            REQUIRE( roam_is_at( w, 5, "10.3.0.1:7000" ) );
            flood->seconds = 0.0;
            nc_server_watch_update( w->servers[0] );
            CHECK_EQ( roam_knows( flood, &to ), 1 );
            CHECK( flood->filter.keys[0] != key );
        }
        world_close( w );
    }
}

/* Of the clients whose packets have about a sequence, few are compared: the others' packets have to wait for a luckier one. */
TEST( corners_few_slots_are_compared )
{
    struct world_t * w = roam_world( 40, 0 );
    struct puppet_t p, q;
    char text[64];
    int i;
    for ( i = 0; i < 2 * NC_PATH_COMPARED; i++ ) {
        snprintf( text, sizeof( text ), "10.2.0.%d:6000", 1 + i );
        puppet_make( &p, w, 0, 50 + (uint64_t) i, text );
        p.sequence = ( (uint64_t) 1 << 40 ) + 1000;
        if ( i == 0 )
            p.sequence -= 900;
        REQUIRE( puppet_connect( &p ) );
        puppet_keep_alive( &p );
        if ( i == 0 )
            q = p;
    }
    world_run( w, 0.3 );
    roam_to( &q, "10.3.0.1:7000" ); /* the others are ahead of it: with their keys it is not tried */
    puppet_keep_alive( &q );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).trials, 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 1 );
    for ( i = 0; i < NC_PATH_COMPARED; i++ ) /* just so many are left */
        netcode_server_disconnect_client( w->servers[0], 2 * NC_PATH_COMPARED - 1 - i );
    puppet_keep_alive( &q );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 1 );
}

static struct puppet_t * roam_leaver;

static void roam_disconnect_callback( struct world_party_t * party, int client_index, int connected )
{
    struct puppet_t * p = roam_leaver;
    uint8_t copy[DATAGRAM_BYTES], body[8] = { 0 };
    (void) client_index;
    if ( connected )
        return;
    int bytes = wire_seal( copy, NETCODE_PACKET_KEEP_ALIVE, p->sequence++, 0, p->r.to_server_key, body, 8 );
    netcode_server_process_packet( party->world->servers[0], &p->address, copy, bytes );
}

/* While the callback hears of the end of a slot, packets of its client from elsewhere are dropped. */
TEST( corners_a_slot_that_is_ending_does_not_roam )
{
    struct world_t * w = roam_world( 2, 0 );
    struct puppet_t p;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.3.0.1:7000" );
    roam_leaver = &p;
    w->server_parties[0].on_change = roam_disconnect_callback;
    netcode_server_disconnect_client( w->servers[0], 0 );
    w->server_parties[0].on_change = NULL;
    CHECK_EQ( server_stats( w, 0 ).path_candidates + server_stats( w, 0 ).trials, 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 1 );
}

/*  The server does not take the payloads of a client that comes from elsewhere: once its queue is full they are refused
    as at home, and what is refused validates nothing. */
TEST( corners_a_full_queue_from_elsewhere )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int i, sent = 0;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    while ( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ) == 0 && sent < 1000 ) {
        puppet_say( &p, 30, sent++ );
        world_step( w );
    }
    for ( i = 0; i < 7; i++ ) {
        p.address = address_of( i == 0 ? "10.3.0.1:7000" : "10.3.0.2:7000" );
        puppet_say( &p, 30, i );
    }
    world_step( w );
    p.address = address_of( "10.3.0.1:7000" );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 1 ); /* by the first of the update, which shows that it is alive */
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 1 + 6 );
    CHECK( roam_is_at( w, 5, "10.2.0.1:6000" ) );
    puppet_poll( &p );
    roam_echo( &p, p.probe ); /* no payload: there is room for it */
    world_step( w );
    CHECK( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    server_drain( w, 0, 0 );
}

/*  From a candidate's address a client has its share of each update's openings, and what goes beyond it is a trial: a client
    that floods from there runs into both, and another one is heard. */
TEST( corners_a_flood_of_a_candidate )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p, q;
    int i, k, heard = 0;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_join( &q, w, 6, "10.2.0.2:6000" );
    roam_to( &p, "10.3.0.1:7000" );
    for ( k = 0; k < 50; k++ ) {
        for ( i = 0; i < 300; i++ ) {
            puppet_say( &p, 30, i );
            if ( i == 150 )
                puppet_say( &q, 30, i );
        }
        world_step( w );
        server_drain( w, 0, world_slot( w, 0, 5 ) );
        heard += server_drain( w, 0, world_slot( w, 0, 6 ) );
    }
    CHECK_EQ( heard, 50 );
    CHECK_GE( server_stats( w, 0 ).trials_refused, 1000 );
    CHECK_EQ( server_stats( w, 0 ).path_candidates, 1 );
}

/*  However many packets of others an update opens, a client that moves is found: trials have a share of their own, and beyond
    it what is left of all. */
TEST( corners_trials_have_a_share )
{
    int is_spare, i, k;
    for ( is_spare = 0; is_spare < 2; is_spare++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p[4];
        w->server_config.roaming = 1;
        world_add_server( w, 4 );
        for ( i = 0; i < 4; i++ ) {
            char text[64];
            snprintf( text, sizeof( text ), "10.2.0.%d:6000", 1 + i );
            roam_join( &p[i], w, 5 + (uint64_t) i, text );
        }
        w->servers[0]->work.spare = 0;
        for ( i = 0; !is_spare && i < NC_SERVER_SPARE + NC_SERVER_SHARE + 20; i++ )
            puppet_keep_alive( &p[3] );
        for ( k = 0; k < NC_PATH_TRIAL_BURST; k++ )
            for ( i = 0; i < 3; i++ ) { /* with their sequences, and not theirs */
                p[i].r.to_server_key[0] ^= 1;
                p[i].address = address_of( "10.66.0.1:6666" );
                puppet_keep_alive( &p[i] );
                p[i].r.to_server_key[0] ^= 1;
            }
        world_step( w );
        CHECK_EQ( server_stats( w, 0 ).trials, is_spare ? 3 * NC_PATH_TRIAL_BURST : NC_SERVER_SHARE );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_OVER_SHARE ) > 0, !is_spare );
        world_run( w, 1.0 );
        w->servers[0]->work.spare = 0;
        for ( i = 0; i < 2000; i++ )
            puppet_keep_alive( &p[3] );
        p[0].address = address_of( "10.3.0.1:7000" );
        puppet_keep_alive( &p[0] );
        world_run( w, 0.2 );
        CHECK_EQ( server_stats( w, 0 ).path_candidates, 1 );
        world_close( w );
    }
}

/* From a candidate's address a client has the same as from its own: so many packets, and in each update one that is heard. */
TEST( corners_the_share_of_a_candidate )
{
    int is_elsewhere, i, k;
    for ( is_elsewhere = 0; is_elsewhere < 2; is_elsewhere++ ) {
        struct world_t * w = roam_world( 4, 0 );
        struct puppet_t p;
        uint64_t before;
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        if ( is_elsewhere )
            roam_to( &p, "10.3.0.1:7000" );
        puppet_say( &p, 30, 1 );
        world_step( w );
        for ( i = 0; i < 5; i++ ) {
            w->servers[0]->work.spare = -100000;
            before = server_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD];
            for ( k = 0; k < NC_SERVER_SHARE + 10; k++ )
                puppet_say( &p, 30, 1 );
            world_step( w );
            /* elsewhere, one that the share does not have is a trial, as far as its ration goes: it has no spare, either */
            CHECK_EQ( server_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD] - before, NC_SERVER_SHARE );
            server_drain( w, 0, 0 );
        }
        w->servers[0]->work.spare = NC_SERVER_SPARE;
        for ( i = 0; i < 400; i++ ) { /* they are not taken: its queue is full */
            before = path_slot( w, 0 ).packets_received;
            puppet_say( &p, 30, i );
            world_step( w );
            CHECK_EQ( path_slot( w, 0 ).packets_received - before, 1 );
        }
        world_close( w );
    }
}

/* A client that is validated late has its whole timeout from then on. */
TEST( corners_a_move_just_before_the_timeout )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    world_run( w, WORLD_TIMEOUT - 0.4 );
    roam_move( &p, "10.3.0.1:7000" );
    REQUIRE( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    world_run( w, WORLD_TIMEOUT - 0.3 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
}

static struct puppet_t roam_fed;

/* While a probe leaves for a candidate, the network hands over another client's payloads. */
static int roam_feed( struct world_t * w, const struct world_datagram_t * d )
{
    static const uint8_t body[30] = { 1 };
    struct netcode_address_t candidate = address_of( "10.3.0.1:7000" );
    if ( !same_address( &d->to, &candidate ) )
        return 0;
    for ( int i = 0; i < 8; i++ ) {
        uint8_t wire[100];
        int bytes =
            wire_seal( wire, NETCODE_PACKET_PAYLOAD, roam_fed.sequence++, 0, roam_fed.r.to_server_key, body, 30 );
        netcode_server_process_packet( w->servers[0], &roam_fed.address, wire, bytes );
    }
    return 0;
}

/* They take the last buffer of the smallest pool, which the candidate's own payload would be followed by. */
TEST( corners_a_pool_that_is_emptied_while_a_probe_leaves )
{
    for ( int buffers = 1; buffers <= 12; buffers++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        w->server_config.roaming = 1;
        w->server_config.packet_pool_buffers = buffers;
        world_add_server( w, 2 );
        roam_join( &p, w, 5, "10.2.0.1:6000" );
        roam_join( &roam_fed, w, 6, "10.2.0.2:6000" );
        w->hook = roam_feed;
        for ( int i = 0; i < 4; i++ ) {
            roam_to( &p, "10.3.0.1:7000" );
            puppet_say( &p, 30, i );
            world_run( w, 0.2 );
            p.address = address_of( "10.2.0.1:6000" );
            puppet_say( &p, 30, i );
            world_step( w );
        }
        w->hook = NULL;
        CHECK_GE( server_drain( w, 0, 0 ) + server_drain( w, 0, 1 ), 1 );
        puppet_say( &p, 30, 9 );
        world_step( w );
        CHECK_EQ( server_drain( w, 0, 0 ), 1 );
        world_close( w );
    }
}

/* From its own address, a client may skip as many sequences as it likes, and its packets may be late. */
TEST( corners_sequences_of_a_client_that_stays )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int i, heard = 0;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    for ( i = 0; i < 8; i++ ) {
        p.sequence += (uint64_t) 1 << ( 10 + 3 * i );
        puppet_say( &p, 30, i );
        world_step( w );
        p.sequence -= 100;
        puppet_say( &p, 30, i );
        world_step( w );
        p.sequence += 100;
        heard += server_drain( w, 0, 0 );
    }
    CHECK_EQ( heard, 16 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 0 );
}

/* A client that sends from elsewhere without answering probes ends after its token's timeout, and never where it has none. */
TEST( corners_how_long_a_client_may_be_elsewhere )
{
    static const int timeouts[] = { -1, 0, 1, WORLD_TIMEOUT };
    for ( int row = 0; row < 4; row++ ) {
        struct world_t * w = roam_world( 4, 0 );
        struct puppet_t p;
        int i;
        puppet_make( &p, w, 0, 5, "10.2.0.1:6000" );
        p.r.timeout = timeouts[row];
        puppet_mint( &p );
        p.sequence = (uint64_t) 1 << 40;
        REQUIRE( puppet_connect( &p ) );
        puppet_keep_alive( &p );
        world_run( w, 0.3 );
        roam_to( &p, "10.3.0.1:7000" );
        for ( i = 0; i < 700 && netcode_server_client_connected( w->servers[0], 0 ); i++ ) {
            puppet_keep_alive( &p );
            world_run( w, 0.1 );
        }
        CHECK_NEAR( i, timeouts[row] > 0 ? 10 * timeouts[row] - 2 : 700, 2 );
        world_close( w );
    }
}

/* The log says from where to where a client moved. */
TEST( corners_the_log_of_a_move )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    int lines = w->server_parties[0].lines;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    roam_move( &p, "10.3.0.1:7000" );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    CHECK_EQ( w->server_parties[0].lines - lines, 1 );
}

/* By process_packet, without the rations of an update, a candidate's packets are all heard. */
TEST( mutants_a_candidate_by_process_packet )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    uint8_t data[30] = { 1 }, copy[DATAGRAM_BYTES];
    uint64_t before;
    int i;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.3.0.1:7000" );
    before = server_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD];
    for ( i = 0; i < 3 * NC_SERVER_SHARE; i++ ) {
        int bytes = wire_seal( copy, NETCODE_PACKET_PAYLOAD, p.sequence++, 0, p.r.to_server_key, data, 30 );
        netcode_server_process_packet( w->servers[0], &p.address, copy, bytes );
    }
    CHECK_EQ( server_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD] - before, 3 * NC_SERVER_SHARE );
    CHECK_EQ( server_stats( w, 0 ).trials_refused, 0 );
    server_drain( w, 0, 0 );
}

/* Fifteen milliseconds between two probes to a candidate, and eight of them are what it can have in store. */
TEST( mutants_probes_to_a_candidate )
{
    static const struct {
        double at;
        int probes;
        int credit; /* in probes */
    } rows[] = { { 0.0, 1, 7 }, { 0.014, 1, 8 }, { 0.016, 2, 7 }, { 0.030, 2, 8 }, { 0.032, 3, 7 } };
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    size_t i;
    int mark;
    double start;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_to( &p, "10.3.0.1:7000" );
    mark = w->records.count;
    start = w->time + 0.01;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        puppet_say( &p, 1000, 1 );
        w->step = start + rows[i].at - w->time;
        world_step( w );
        CHECK_EQ( world_count( w, mark, &w->server_addresses[0], &p.address, -1, 0 ), rows[i].probes );
        CHECK_EQ( w->servers[0]->memory.paths[0].candidates[0].credit, rows[i].credit * NC_KEEP_ALIVE_BYTES );
    }
    server_drain( w, 0, 0 );
}

/* After a move the next probe of the path is due in a second. */
TEST( mutants_the_first_probe_after_a_move )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    roam_move( &p, "10.3.0.1:7000" );
    REQUIRE( roam_is_at( w, 5, "10.3.0.1:7000" ) );
    CHECK_NEAR( w->servers[0]->memory.slot[0].probe.times[0], w->servers[0]->base.clock.now, 1e-9 );
}

/* Of what comes from elsewhere, only a keep-alive that returns a probe of the path is a sign of life. */
TEST( mutants_what_is_heard_from_elsewhere )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    nc_slot_t * slot;
    uint8_t body[8], *at = body;
    double since;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    slot = &w->servers[0]->memory.slot[0];
    roam_to( &p, "10.3.0.1:7000" );
    since = slot->receive_time;
    puppet_keep_alive( &p );
    world_step( w );
    CHECK_NEAR( slot->receive_time, since, 0.0 );
    slot->probe.values[1] = 0; /* as before its second one */
    puppet_keep_alive( &p );   /* whose body is zeros */
    world_step( w );
    CHECK_NEAR( slot->receive_time, since, 0.0 );
    put( &at, slot->probe.values[0], 8 );
    puppet_send( &p, NETCODE_PACKET_PAYLOAD, body, 8 );
    world_step( w );
    CHECK_NEAR( slot->receive_time, since, 0.0 );
    roam_echo( &p, slot->probe.values[0] );
    world_step( w );
    CHECK( slot->receive_time > since );
    server_drain( w, 0, 0 );
}

/* After a second of silence, not more; and a second after the last one, not more. */
TEST( mutants_a_rebind_is_due_after_a_second )
{
    struct world_t * w = roam_world( 4, 1 );
    struct netcode_client_t * client = w->clients[0];
    REQUIRE( world_join( w, 0, 5 ) );
    client->base.clock.now = 100.0;
    client->unanswered = 0;
    client->silence_time = 99.0;
    client->rebind_time = 99.0;
    nc_client_keep_path( client, 0 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
    client->silence_time = 90.0;
    client->rebind_time = 99.001;
    nc_client_keep_path( client, 0 );
    CHECK_EQ( client_stats( w, 0 ).rebinds, 1 );
}

/*  A candidate ends two seconds after its last packet, and its entry is the next one's, not that of one that is
    alive. */
TEST( mutants_candidates_that_end )
{
    struct world_t * w = roam_world( 4, 0 );
    struct netcode_address_t at[4];
    nc_candidate_t * candidates;
    int i;
    for ( i = 0; i < 4; i++ ) {
        at[i] = address_of( "10.3.0.1:7000" );
        at[i].port = (uint16_t) ( at[i].port + i );
    }
    w->servers[0]->base.clock.now = 100.0;
    candidates = w->servers[0]->memory.paths[0].candidates;
    for ( i = 0; i < 3; i++ ) {
        candidates[i].address = at[i];
        candidates[i].first_time = 90.0 + i;
        candidates[i].receive_time = 99.0;
    }
    candidates[1].receive_time = 98.0;
    CHECK( nc_server_find_candidate( w->servers[0], 0, &at[0] ) == &candidates[0] );
    CHECK( nc_server_find_candidate( w->servers[0], 0, &at[1] ) == NULL );
    CHECK( nc_server_candidate( w->servers[0], 0, &at[3] ) == &candidates[1] );
    CHECK( same_address( &candidates[0].address, &at[0] ) && same_address( &candidates[2].address, &at[2] ) );
    for ( i = 0; i < 3; i++ ) {
        candidates[i].address = at[i];
        candidates[i].first_time = i == 0 ? 99.75 : 99.875;
        candidates[i].receive_time = 99.875;
    }
    CHECK( nc_server_candidate( w->servers[0], 0, &at[3] ) == &candidates[0] );
    candidates[0].receive_time = 100.0;
    CHECK( nc_server_candidate( w->servers[0], 0, &at[0] ) == NULL );
    memset( candidates, 0, 3 * sizeof( candidates[0] ) );
}

/* A slot's trials are its own: eight at once. */
TEST( mutants_trials_of_a_slot )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    int i;
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    p.r.to_server_key[0] ^= 1;
    roam_to( &p, "10.66.0.1:6666" );
    for ( i = 0; i < NC_PATH_TRIAL_BURST + 4; i++ )
        puppet_keep_alive( &p );
    world_step( w );
    CHECK_EQ( server_stats( w, 0 ).trials, NC_PATH_TRIAL_BURST );
    CHECK_EQ( server_stats( w, 0 ).trials_refused, 4 );
    CHECK( w->servers[0]->memory.paths[0].trials > w->servers[0]->base.clock.now );
    CHECK( !( w->servers[0]->memory.paths[1].trials > 0.0 ) );
}

/* A client that is heard from elsewhere only, and is moved each time, keeps an address. Each probe counts as sent. */
TEST( mutants_moves_one_after_the_other )
{
    struct world_t * w = roam_world( 4, 0 );
    struct puppet_t p;
    char text[64], before[64] = "10.2.0.1:6000";
    uint64_t packets, probes;
    int i;
    roam_join( &p, w, 5, before );
    for ( i = 0; i < 40; i++ ) {
        snprintf( text, sizeof( text ), "10.3.0.%d:7000", 1 + i );
        roam_to( &p, text );
        packets = path_slot( w, 0 ).packets_sent;
        probes = server_stats( w, 0 ).probes_sent;
        puppet_keep_alive( &p );
        world_step( w );
        CHECK( roam_is_at( w, 5, before ) );
        CHECK_GE( server_stats( w, 0 ).probes_sent, probes + 1 );
        CHECK_GE( path_slot( w, 0 ).packets_sent, packets + 1 );
        puppet_poll( &p );
        roam_echo( &p, p.probe );
        world_run( w, 0.3 );
        CHECK( roam_is_at( w, 5, text ) );
        memcpy( before, text, sizeof( before ) );
    }
}

static char roam_line[512];

static void roam_note_line( void * context, int level, const char * text )
{
    (void) context, (void) level;
    if ( strstr( text, "moved" ) )
        snprintf( roam_line, sizeof( roam_line ), "%s", text );
}

TEST( mutants_what_the_log_says_of_moves )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int i;
    w->server_config.roaming = 1;
    w->server_config.log_callback = roam_note_line;
    world_add_server( w, 4 );
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    for ( i = 0; i < 3; i++ ) {
        roam_to( &p, i % 2 ? "10.2.0.1:6000" : "10.3.0.1:7000" );
        if ( i == 2 )
            world_run( w, 1.0 );
        puppet_keep_alive( &p );
        puppet_step( &p );
        roam_echo( &p, p.probe );
        world_step( w );
        CHECK( strstr( roam_line, "client 5 in slot 0 moved from 10.2.0.1:6000 to 10.3.0.1:7000 (and " ) != NULL );
        CHECK( strstr( roam_line, i < 2 ? "(and 0 such" : "(and 1 such" ) != NULL );
    }
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
}

/* Without roaming, a client that skips sequences is read as ever where strays are handed on. */
TEST( mutants_strays_without_roaming )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    memset( &stray, 0, sizeof( stray ) );
    w->server_config.stray_callback = stray_callback;
    world_add_server( w, 2 );
    roam_join( &p, w, 5, "10.2.0.1:6000" );
    p.sequence += 1 << 20;
    puppet_say( &p, 30, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    CHECK_EQ( stray.calls, 0 );
    CHECK_EQ( server_stats( w, 0 ).trials, 0 );
}
