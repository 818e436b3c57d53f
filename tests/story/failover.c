/*  Story: a token with several servers, of which some are silent, slow, full or not to be sent to. The next one is asked beside those
    before it, and the first to answer is connected to. */

/* ---- a network of which each server is silent until a time of its own ---- */

static struct {
    double silent_until[WORLD_SERVERS];
    double first_asked[WORLD_SERVERS]; /* seconds after the connect; -1: never */
    double start;
    double requests[16384];
    int request_count;
} failover;

static int failover_hook( struct world_t * w, const struct world_datagram_t * datagram )
{
    int i = 0;
    if ( same_address( &datagram->from, &w->client_addresses[0] ) &&
         ( datagram->data[0] & 15 ) == NETCODE_PACKET_REQUEST ) {
        while ( i < w->server_count - 1 && !same_address( &datagram->to, &w->server_addresses[i] ) )
            i++;
        if ( failover.first_asked[i] < 0.0 )
            failover.first_asked[i] = w->time - failover.start;
        failover.requests[failover.request_count++] = w->time;
        return 0;
    }
    for ( i = 0; i < w->server_count; i++ )
        if ( same_address( &datagram->from, &w->server_addresses[i] ) )
            return w->time < failover.start + failover.silent_until[i];
    return 0;
}

static struct world_t * failover_open( int servers, int clients )
{
    struct world_t * w = world_open( CLEAN, servers, 1, clients );
    memset( &failover, 0, sizeof( failover ) );
    for ( int i = 0; i < WORLD_SERVERS; i++ )
        failover.first_asked[i] = -1.0;
    failover.start = w->time;
    w->hook = failover_hook;
    return w;
}

static int failover_connects( struct world_t * w, int server )
{
    world_connect( w, 0, 1 );
    failover.start = w->time;
    return world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 30.0 ) &&
           CHECK( same_address( netcode_client_server_address( w->clients[0] ), &w->server_addresses[server] ) );
}

/* ---- which server, and when ---- */

TEST( a_silent_server_costs_a_quarter_of_a_second )
{
    for ( int silent = 0; silent < 8; silent++ ) {
        struct world_t * w = failover_open( 8, 1 );
        for ( int i = 0; i < silent; i++ )
            failover.silent_until[i] = 1e9;
        REQUIRE( failover_connects( w, silent ) );
        CHECK_NEAR( w->time - failover.start, 0.05 + 0.25 * silent, 0.04 );
        for ( int i = 0; i <= silent; i++ )
            CHECK_NEAR( failover.first_asked[i], 0.25 * i, 0.011 * ( i + 1 ) );
        CHECK( silent == 7 || failover.first_asked[silent + 1] < 0.0 );
        world_close( w );
    }
}

/* As the standard says. */
TEST( in_turn_each_silent_server_costs_the_timeout )
{
    struct world_t * w = failover_open( 3, 1 );
    w->clients[0]->config.next_server_seconds = 0.0;
    failover.silent_until[0] = failover.silent_until[1] = 1e9;
    REQUIRE( failover_connects( w, 2 ) );
    CHECK_NEAR( w->time - failover.start, 2 * WORLD_TIMEOUT, 0.3 );
    CHECK_NEAR( failover.first_asked[1], WORLD_TIMEOUT, 0.1 );
}

static int failover_refuse( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    const struct world_t * w = ( (const struct world_socket_t *) context )->world;
    int last = w->server_count - 1;
    return count == 1 && !same_address( &datagrams->address, &w->server_addresses[last] )
               ? 0
               : world_send( context, datagrams, count );
}

/* Whatever the system refuses it with, also where sends are collected, or in turn. All that are refused are passed in one update. */
TEST( servers_that_can_not_be_sent_to_cost_nothing )
{
    for ( int i = 0; i < 3; i++ ) {
        struct world_t * w = failover_open( 32, 0 );
        w->client_config.batch_sends = i == 1;
        w->client_config.next_server_seconds = i == 2 ? 0.0 : 0.25;
        world_add_client( w );
        w->clients[0]->base.socket.send = failover_refuse;
        REQUIRE( failover_connects( w, 31 ) );
        CHECK_NEAR( w->time - failover.start, 0.05, 0.04 );
        world_close( w );
    }
}

/* Nor do they take the turns of the one that can be sent to. */
TEST( servers_that_can_not_be_sent_to_take_no_turns )
{
    struct world_t * w = failover_open( 32, 1 );
    struct netcode_client_report_t report;
    w->clients[0]->base.socket.send = failover_refuse;
    failover.silent_until[31] = 1e9;
    world_connect( w, 0, 1 );
    failover.start = w->time;
    world_run( w, 2.0 );
    netcode_client_report( w->clients[0], &report );
    CHECK_GE( report.servers[31].requests_sent, 19 );
}

static int failover_refuse_all( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    (void) context, (void) datagrams, (void) count;
    return 0;
}

/* Where the system sends to none for a while, as when a phone wakes up, no server is given up. */
TEST( a_system_that_refuses_to_send_for_a_while )
{
    struct world_t * w = failover_open( 2, 1 );
    struct netcode_client_report_t report;
    w->clients[0]->base.socket.send = failover_refuse_all;
    world_connect( w, 0, 1 );
    world_run( w, 2.0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    netcode_client_report( w->clients[0], &report );
    CHECK_GE( report.servers[0].errors, 19 );
    CHECK_GE( report.servers[1].errors, 19 );
    w->clients[0]->base.socket.send = world_send;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 0.3 ) );
}

/* Each gets one request in an update, however many there are. */
TEST( servers_that_can_not_be_sent_to_are_asked_once_an_update )
{
    struct world_t * w = failover_open( 32, 1 );
    struct netcode_client_report_t report;
    w->clients[0]->base.socket.send = failover_refuse_all;
    world_connect( w, 0, 1 );
    for ( int updates = 1; updates <= 3; updates++ ) {
        world_run( w, 0.1 );
        netcode_client_report( w->clients[0], &report );
        for ( int i = 0; i < 32; i++ )
            CHECK_LE( report.servers[i].requests_sent, updates + 1 );
    }
}

static int failover_connect_badly( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    static const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    struct world_t * w = ( (struct world_socket_t *) context )->world;
    (void) datagrams;
    CHECK_EQ( netcode_client_connect( w->clients[0], token ), NETCODE_ERROR );
    return count;
}

/* The callback of a request connects with a token that is none, while other servers are to be asked in the same update. */
TEST( a_bad_token_in_the_callback_of_a_request )
{
    struct world_t * w = failover_open( 4, 1 );
    for ( int i = 0; i < 4; i++ )
        failover.silent_until[i] = 1e9;
    world_connect( w, 0, 1 );
    failover.start = w->time;
    world_run( w, 0.9 );
    w->clients[0]->base.socket.send = failover_connect_badly;
    world_run( w, 0.2 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
}

static int failover_refusals; /* so many sends are refused */

static int failover_refuse_some( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    return failover_refusals > 0 && failover_refusals-- ? 0 : world_send( context, datagrams, count );
}

static void failover_full_info( void * context, struct netcode_socket_info_t * info )
{
    world_socket_info( context, info );
    info->last_send_error = EAGAIN;
}

/* In turn, a server is waited for though the system had no space for one request to it. */
TEST( a_full_system_does_not_pass_a_server )
{
    struct world_t * w = failover_open( 2, 1 );
    w->clients[0]->base.socket.send = failover_refuse_some;
    w->clients[0]->base.socket.info = failover_full_info;
    w->clients[0]->config.next_server_seconds = 0.0;
    failover.silent_until[0] = failover.silent_until[1] = 1e9;
    failover_refusals = 1;
    world_connect( w, 0, 1 );
    failover.start = w->time;
    world_run( w, WORLD_TIMEOUT / 2 );
    CHECK_EQ( failover_refusals, 0 );
    CHECK( failover.first_asked[1] < 0.0 );
}

static void failover_takes_the_port( void * context, const struct netcode_address_t * server )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    (void) server;
    s->address.port++;
}

/* Where a port can not be kept when another server is asked, the client names the one it has. */
TEST( the_port_after_the_next_server_is_asked )
{
    struct world_t * w = failover_open( 2, 1 );
    failover.silent_until[0] = failover.silent_until[1] = 1e9;
    w->clients[0]->base.extras.connect_to = failover_takes_the_port;
    world_connect( w, 0, 1 );
    for ( int i = 0; i < 5; i++ ) {
        world_run( w, 0.1 );
        CHECK_EQ( netcode_client_get_port( w->clients[0] ),
                  nc_socket_info( &w->clients[0]->base.socket ).address.port );
    }
}

/* In turn, the next server is asked where the system can not send to the one before: not for a refusal that has passed. */
TEST( a_passing_refusal_is_not_the_servers )
{
    for ( int of_the_last_connection = 0; of_the_last_connection < 2; of_the_last_connection++ ) {
        struct world_t * w = failover_open( of_the_last_connection ? 2 : 1, 1 );
        struct netcode_client_report_t report;
        w->clients[0]->base.socket.send = failover_refuse_some;
        w->clients[0]->config.next_server_seconds = 0.0;
        if ( of_the_last_connection ) {
            uint8_t data[8] = { 0 };
            REQUIRE( failover_connects( w, 0 ) );
            failover_refusals = 1;
            netcode_client_send_packet( w->clients[0], data, 8 );
            CHECK_EQ( failover_refusals, 0 );
        }
        for ( int i = 0; i < 2; i++ )
            failover.silent_until[i] = 1e9;
        world_connect( w, 0, 2 );
        failover.start = w->time;
        failover.first_asked[1] = -1.0;
        world_run( w, WORLD_TIMEOUT / 2 );
        netcode_client_report( w->clients[0], &report );
        CHECK_EQ( report.servers[0].errors, 0 );
        CHECK( failover.first_asked[1] < 0.0 );
        if ( !of_the_last_connection ) {
            failover_refusals = 1;
            world_run( w, 0.5 );
            netcode_client_report( w->clients[0], &report );
            CHECK_EQ( report.servers[0].errors, 1 );
            CHECK_STR( report.text, "Asking the server; no answer yet." );
        }
        world_close( w );
    }
}

/* ---- two that answer ---- */

/* Challenges of both servers come in one batch, in either order: the first of the token wins. Later ones have no effect. */
TEST( of_two_that_answer_at_once_the_first_wins )
{
    for ( int order = 0; order < 3; order++ ) {
        struct world_t * w = failover_open( 2, 1 );
        struct world_datagram_t challenges[2];
        int mark, found = 0;
        failover.silent_until[0] = failover.silent_until[1] = 0.6;
        world_connect( w, 0, 1 );
        failover.start = w->time;
        world_run( w, 0.5 );
        mark = w->records.count;
        memset( challenges, 0, sizeof( challenges ) );
        for ( int i = mark - 1; i >= 0 && found < 3; i-- )
            for ( int server = 0; server < 2; server++ )
                if ( same_address( &w->records.items[i].from, &w->server_addresses[server] ) &&
                     !( found >> server & 1 ) ) {
                    challenges[server] = w->records.items[i];
                    found |= 1 << server;
                }
        REQUIRE_EQ( found, 3 );
        for ( int i = 0; i < 2; i++ ) {
            const struct world_datagram_t * d = &challenges[i ^ ( order > 0 )];
            world_inject( w, &d->from, &d->to, d->data, d->bytes );
            if ( order == 2 )
                world_step( w ); /* the second server's comes an update earlier */
        }
        world_step( w );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
        CHECK( same_address( netcode_client_server_address( w->clients[0] ), &w->server_addresses[order == 2] ) );
        CHECK_EQ( client_drops( w, 0, NETCODE_DROP_WRONG_SERVER ), order != 1 );
        memset( failover.silent_until, 0, sizeof( failover.silent_until ) );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[order == 2] ), 1 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[order != 2] ), 0 );
        world_close( w );
    }
}

/* Until it has sent a response, a client takes a challenge of a server before the one that has answered, but no keep-alive. */
TEST( a_server_that_was_not_chosen_connects_nobody )
{
    struct world_t * w = failover_open( 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    uint8_t out[DATAGRAM_BYTES], body[8] = { 0, 0, 0, 0, 1 };
    const struct world_datagram_t * d;
    failover.silent_until[0] = failover.silent_until[1] = 1e9;
    world_connect_recipe( w, 0, &r );
    failover.start = w->time;
    world_run( w, 0.5 );
    for ( d = &w->records.items[w->records.count - 1]; !same_address( &d->from, &w->server_addresses[1] ); d-- )
        continue;
    memcpy( out, d->data, (size_t) d->bytes );
    netcode_client_process_packet( w->clients[0], &w->server_addresses[1], out, d->bytes );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
    int bytes = wire_seal( out, NETCODE_PACKET_KEEP_ALIVE, 5, 1, r.to_client_key, body, 8 );
    netcode_client_process_packet( w->clients[0], &w->server_addresses[0], out, bytes );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_WRONG_STATE ), 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
}

/*  What one server sent, sent again from the address of another: all servers of a token have the same keys. A challenge does not turn the
    client to a server that can not know its response, and a denial is none of the other's. */
TEST( what_one_server_sent_is_not_anothers )
{
    for ( int denies = 0; denies < 2; denies++ ) {
        struct world_t * w = failover_open( 2, 1 );
        const struct world_datagram_t * d;
        uint8_t out[DATAGRAM_BYTES];
        failover.silent_until[0] = failover.silent_until[1] = 0.5;
        if ( denies )
            netcode_server_connect_loopback_client( w->servers[1], 0, 99, NULL );
        world_connect( w, 0, 1 );
        failover.start = w->time;
        world_run( w, 0.45 );
        for ( d = &w->records.items[w->records.count - 1]; !same_address( &d->from, &w->server_addresses[1] ); d-- )
            continue;
        for ( int i = 1; i >= 0; i-- ) {
            memcpy( out, d->data, (size_t) d->bytes );
            netcode_client_process_packet( w->clients[0], &w->server_addresses[i], out, d->bytes );
        }
        CHECK_EQ( client_drops( w, 0, NETCODE_DROP_REPLAYED ), 1 );
        CHECK_EQ( client_stats( w, 0 ).packets_received[denies ? NETCODE_PACKET_DENIED : NETCODE_PACKET_CHALLENGE], 1 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        CHECK( same_address( netcode_client_server_address( w->clients[0] ), &w->server_addresses[!denies] ) );
        world_close( w );
    }
}

/* A player far from the first server, and near a full one. */
TEST( a_slow_server_is_not_lost_behind_one_that_denies )
{
    for ( int servers = 2; servers < 4; servers++ ) {
        struct world_t * w = failover_open( 3, 2 );
        netcode_server_connect_loopback_client( w->servers[1], 0, 99, NULL );
        w->server_count = servers; /* of the token; with three, the last is silent */
        failover.silent_until[0] = 0.45;
        failover.silent_until[2] = 1e9;
        REQUIRE( failover_connects( w, 0 ) );
        CHECK_NEAR( w->time - failover.start, 0.55, 0.1 );
        w->server_count = 3;
        world_close( w );
    }
}

/* The second one answers, and then no more: the first is asked again, and so is the third, if there is one. */
TEST( a_server_that_answers_half_is_passed )
{
    static const int rows[3][2] = { { 3, 0 }, { 3, 2 }, { 2, 0 } };
    for ( int row = 0; row < 3; row++ ) {
        int better = rows[row][1];
        struct world_t * w = failover_open( rows[row][0], 1 );
        failover.silent_until[0] = failover.silent_until[2] = 1e9;
        world_connect( w, 0, 1 );
        failover.start = w->time;
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
        failover.silent_until[1] = 1e9;
        failover.silent_until[better] = 0.0;
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 30.0 ) );
        CHECK_NEAR( w->time - failover.start, WORLD_TIMEOUT + 0.35, 0.1 );
        CHECK( same_address( netcode_client_server_address( w->clients[0] ), &w->server_addresses[better] ) );
        world_close( w );
    }
}

/* ---- how it ends ---- */

/* A server that has denied is not asked again; the others have their whole timeouts; the last one of the token gives the reason. */
TEST( when_all_have_failed_the_last_of_the_token_says_why )
{
    for ( int denies = 0; denies < 2; denies++ ) {
        struct world_t * w = failover_open( 2, 1 );
        struct netcode_client_report_t report;
        netcode_server_connect_loopback_client( w->servers[denies], 0, 99, NULL );
        failover.silent_until[!denies] = 1e9;
        world_connect( w, 0, 1 );
        failover.start = w->time;
        REQUIRE( world_until( w, 0,
                              denies ? NETCODE_CLIENT_STATE_CONNECTION_DENIED
                                     : NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT,
                              30.0 ) );
        CHECK_NEAR( w->time - failover.start, WORLD_TIMEOUT, 0.1 );
        netcode_client_report( w->clients[0], &report );
        CHECK_EQ( report.servers[denies].denied, 1 );
        CHECK_LE( report.servers[denies].requests_sent, 2 );
        CHECK_GE( report.servers[!denies].requests_sent, 49 );
        CHECK_NEAR( report.servers[denies].seconds_waited, 0.02, 0.02 );
        CHECK_NEAR( report.servers[!denies].seconds_waited, WORLD_TIMEOUT, 0.1 );
        world_close( w );
    }
}

/* The last one answers, and then no more, while the one before is silent. */
TEST( when_the_last_answers_half_that_is_the_reason )
{
    struct world_t * w = failover_open( 2, 1 );
    struct netcode_client_report_t report;
    failover.silent_until[0] = 1e9;
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT, 30.0 ) );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.server_index, 1 );
}

/* However many are silent, a slow link carries it: two requests in a tenth of a second, and two more for each that is newly asked. */
TEST( many_silent_servers_are_no_flood )
{
    struct world_t * w = failover_open( 32, 1 );
    for ( int i = 0; i < 32; i++ )
        failover.silent_until[i] = 1e9;
    world_connect( w, 0, 1 );
    failover.start = w->time;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 30.0 ) );
    CHECK_NEAR( w->time - failover.start, 31 * 0.26 + WORLD_TIMEOUT, 0.3 );
    for ( int i = 0, first = 0; i < failover.request_count; i++ ) {
        while ( failover.requests[first] <= failover.requests[i] - 0.999 )
            first++;
        CHECK_LE( i - first + 1, 28 );
    }
    for ( int i = 1; i < 32; i++ )
        CHECK_NEAR( failover.first_asked[i] - failover.first_asked[i - 1], 0.25, 0.011 );
}

/* A server that was asked, and not chosen, forgets the client after the token's timeout, and its token stays good there. */
TEST( a_server_that_was_not_chosen_forgets_the_client )
{
    struct world_t * w = failover_open( 2, 1 );
    failover.silent_until[0] = 0.35; /* a round trip of more than 0.25 s: the second has been asked */
    failover.silent_until[1] = 1e9;
    REQUIRE( failover_connects( w, 0 ) );
    CHECK_EQ( (int) w->servers[1]->handshakes.in_progress.count, 1 );
    world_run( w, WORLD_TIMEOUT + 1.1 );
    CHECK_EQ( (int) w->servers[1]->handshakes.in_progress.count, 0 );
    CHECK_EQ( (int) netcode_server_num_connected_clients( w->servers[1] ), 0 );
}

/* ---- the caller's part ---- */

static int failover_act;
static uint8_t failover_token[NETCODE_CONNECT_TOKEN_BYTES];

static void failover_log( void * context, int level, const char * text )
{
    struct world_party_t * party = (struct world_party_t *) context;
    struct world_t * w = party->world;
    (void) level;
    if ( !strstr( text, "server 2 of" ) || !failover_act )
        return;
    switch ( failover_act ) {
    case 1: netcode_client_disconnect( w->clients[0] ); break;
    case 2: failover_act = 0, netcode_client_connect( w->clients[0], failover_token ); break;
    default: netcode_client_destroy( w->clients[0] ), w->clients[0] = NULL;
    }
}

/* The line of the log that says that the next server is asked: what the callback does then is done. */
TEST( the_log_callback_acts_when_the_next_server_is_asked )
{
    for ( int act = 1; act < 4; act++ ) {
        struct world_t * w = failover_open( 2, 0 );
        w->client_config.log_callback = failover_log;
        world_add_client( w );
        netcode_log_level( NETCODE_LOG_LEVEL_INFO );
        failover_act = act;
        failover.silent_until[0] = 1e9;
        w->clients[0]->config.next_server_seconds = 3.0;
        world_connect( w, 0, 1 );
        struct recipe_t r = recipe_for( w, 2 );
        r.expire = r.create + 2; /* which is counted from then on */
        memmove( &r.public_addresses[0], &r.public_addresses[1], sizeof( r.public_addresses[0] ) );
        memmove( &r.private_addresses[0], &r.private_addresses[1], sizeof( r.private_addresses[0] ) );
        r.public_count = r.private_count = 1;
        r.create += 3;
        r.expire += 3;
        mint( &r, failover_token );
        failover.start = w->time;
        world_run( w, 3.5 );
        if ( act != 3 )
            CHECK_EQ( netcode_client_state( w->clients[0] ),
                      act == 1 ? NETCODE_CLIENT_STATE_DISCONNECTED : NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( failover.first_asked[1] >= 0.0, act == 2 );
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
        world_close( w );
    }
}

static double failover_waited;

static void failover_wait( void * context, double seconds )
{
    (void) context;
    failover_waited = seconds;
}

/* netcode_client_wait ends when the next server is due. */
TEST( a_wait_ends_when_the_next_server_is_due )
{
    struct world_t * w = failover_open( 2, 1 );
    failover.silent_until[0] = failover.silent_until[1] = 1e9;
    w->clients[0]->base.socket.wait = failover_wait;
    world_connect( w, 0, 1 );
    for ( int i = 0; i < 23; i++ )
        world_step( w );
    netcode_client_wait( w->clients[0], 1.0 );
    CHECK_NEAR( failover_waited, 0.03, 0.001 );
    while ( w->clients[0]->asked == 1 )
        world_step( w );
    netcode_client_wait( w->clients[0], 1.0 );
    CHECK_NEAR( failover_waited, 0.1, 0.001 );
}
