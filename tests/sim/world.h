/*  The run of one seed: storms, in which everything goes wrong, and calms, in which what is promised must hold. */

#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "adversary.h"

static int sim_pick( const int * from, int count )
{
    return from[sim_below( count )];
}

#define SIM_PICK( list ) sim_pick( list, (int) ( sizeof( list ) / sizeof( list[0] ) ) )

static void sim_weather_cut( struct sim_weather_t * w )
{
    for ( int i = 0; i < SIM_SERVERS; i++ ) {
        uint32_t cut = (uint32_t) sim_below( 1 << SIM_CLIENTS );
        int way = sim_below( 10 );
        w->cut_to_server[i] = way == 0 || way == 1 ? cut : way == 2 ? ~(uint32_t) 0 : 0;
        w->cut_to_client[i] = way == 0 || way == 3 ? cut : way == 2 ? ~(uint32_t) 0 : 0;
    }
}

static void sim_weather_change( void )
{
    static const int losses[] = { 0, 0, 10, 50, 250 }, copies[] = { 0, 0, 20, 100 }, late[] = { 0, 0, 10, 60 };
    static const int faults[] = { 0, 0, 0, 20, 200 }, hostility[] = { 0, 0, 1, 1, 5 };
    static const int steps[] = { SIM_SLOW_STEP, SIM_SLOW_STEP, SIM_SLOW_STEP, SIM_SLOW_STEP, SIM_FAST_STEP };
    struct sim_weather_t * w = &net.weather;
    memset( w, 0, sizeof( *w ) );
    w->latency = sim_between( 0, 150 );
    w->jitter = sim_between( 0, 100 );
    w->loss = SIM_PICK( losses );
    w->copies = SIM_PICK( copies );
    w->late = SIM_PICK( late );
    w->receive_faults = SIM_PICK( faults );
    w->error_places = SIM_PICK( faults ) * 5;
    w->send_faults = sim_rarely( 8 ) ? 10000 : SIM_PICK( faults ); /* 10000: the system refuses all */
    w->alloc_faults = SIM_PICK( faults ) / 10;
    w->clock_faults = sim_rarely( 3 ) ? 20 : 0;
    w->moves = SIM_PICK( faults );
    w->losses = SIM_PICK( faults ) / 4;
    w->hostility = SIM_PICK( hostility );
    w->floods = sim_rarely( 5 );
    w->step = SIM_PICK( steps );
    w->drops_responses = sim_rarely( 6 );
    if ( sim_rarely( 3 ) )
        sim_weather_cut( w );
}

/* ---- steps ---- */

/* Where nothing can happen soon, time passes faster. */
static int sim_step_ticks( void )
{
    int64_t next = sim.tick + SIM_SECOND / 2;
    if ( net.weather.hostility || net.weather.floods || net.heap_count )
        return net.weather.step;
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        const struct sim_client_t * c = &net.clients[i];
        if ( c->phase != SIM_PHASE_AWAY || ( c->client && c->port.count ) )
            return net.weather.step;
        if ( c->next_deed < next )
            next = c->next_deed;
    }
    for ( int i = 0; i < SIM_SERVERS; i++ )
        if ( net.servers[i].clients || net.servers[i].port.count )
            return net.weather.step;
    return next - sim.tick > net.weather.step ? (int) ( next - sim.tick ) : net.weather.step;
}

static void sim_step( int ticks )
{
    sim.tick += ticks;
    sim_net_deliver();
    for ( int i = 0; i < SIM_SERVERS; i++ )
        sim_server_step( &net.servers[i] );
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        sim_client_step( &net.clients[i] );
    sim_adversary_step( ticks );
}

/* The backend takes a new key; mostly, the servers have heard of it before. */
static void sim_rotate( void )
{
    for ( int i = 0; i < SIM_SERVERS; i++ )
        if ( net.servers[i].server && !sim_rarely( 8 ) )
            sim_server_set_keys( &net.servers[i], net.backend_key + 1, 2 );
    net.backend_key++;
}

static void sim_storm( int64_t end )
{
    net.is_calm = 0;
    while ( sim.tick < end ) {
        int64_t change = sim.tick + (int64_t) SIM_SECOND * sim_between( 4, 40 );
        sim_weather_change();
        if ( sim_rarely( 6 ) )
            sim_rotate();
        while ( sim.tick < end && sim.tick < change )
            sim_step( sim_step_ticks() );
    }
}

/* ---- calm ---- */

static void sim_heal( void )
{
    struct sim_weather_t * w = &net.weather;
    memset( w, 0, sizeof( *w ) );
    w->latency = sim_between( 0, 100 );
    w->jitter = sim_between( 0, 50 );
    w->step = SIM_SLOW_STEP;
    net.is_calm = 1;
    sim_adversary_stop();
}

/* Clocks go right again: from now on they show what passes. */
static void sim_heal_clock( struct sim_clock_t * clock )
{
    clock->still_until = 0;
    clock->rate = 0;
    clock->unix_skew = 0;
}

static void sim_everyone_leaves( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        struct sim_client_t * c = &net.clients[i];
        sim_heal_clock( &c->clock );
        c->pause_until = 0;
        c->is_banned = 0;
        c->port.is_lost = 0;
        if ( c->client && sim_rarely( 2 ) )
            sim_client_destroy( c, sim_below( 2 ) );
        else if ( c->client )
            sim_client_disconnect( c );
        c->phase = SIM_PHASE_AWAY;
    }
}

/* A slot without a timeout whose client has confirmed it is the application's to end. */
static void sim_kick_endless( struct sim_server_t * s )
{
    for ( int i = 0; i < s->slots; i++ )
        if ( s->in_slot[i] && s->server->memory.slot[i].timeout_seconds <= 0 )
            sim_server_kick( s, i );
}

static void sim_heal_server( struct sim_server_t * s )
{
    sim_heal_clock( &s->clock );
    s->pause_until = 0;
    if ( !s->server )
        sim_server_create( s );
    sim_server_set_keys( s, net.backend_key, 2 );
    if ( !s->server->running )
        sim_server_start( s, 1 + sim_below( SIM_SLOTS ) );
    sim_kick_endless( s );
}

static void sim_check_nothing_left( struct sim_server_t * s )
{
    const nc_pool_t * pool = s->server->memory.inbox.pool;
    while ( s->held_count )
        netcode_server_free_packet( s->server, s->held[--s->held_count] );
    sim_server_read_all( s );
    for ( int i = 0; sim.has_messages && i < s->slots; i++ ) { /* what was not taken to be a message's */
        int bytes;
        for ( uint8_t * data;
              ( data = nc_inbox_receive( &s->server->memory.inbox, (uint32_t) i, &bytes, NULL ) ) != NULL; )
            netcode_server_free_packet( s->server, data );
    }
    SIM_CHECK( slots_left, netcode_server_num_connected_clients( s->server ) == 0 && s->clients == 0,
               "server %d has %d clients", s->port.index, netcode_server_num_connected_clients( s->server ) );
    SIM_CHECK( pending_left, s->server->handshakes.in_progress.count == 0, "server %d has %u handshakes pending",
               s->port.index, s->server->handshakes.in_progress.count );
    SIM_CHECK( pool_left, pool->free_count + NC_RECEIVE_BATCH == pool->count && !s->server->retired_pools,
               "server %d has %u of %u buffers", s->port.index, pool->free_count, pool->count - NC_RECEIVE_BATCH );
    sim_check_server_books( s->server );
}

static int sim_is_drained( void )
{
    for ( int i = 0; i < SIM_SERVERS; i++ )
        if ( net.servers[i].port.count )
            return 0;
    return net.heap_count == 0;
}

/*  First what the floods have left in the sockets: with the smallest budget, an update takes one request at least. Then
    the longest that anything may last: the longest timeout of a token here is 20 s, a backlog may double it, and no
    handshake lives longer than 20 s. */
static void sim_wait_for_ends( void )
{
    int64_t end;
    for ( int updates = 0; !sim_is_drained(); updates++ ) {
        SIM_CHECK( update_drains, updates <= SIM_SERVER_INBOX + 2 * SIM_SECOND / SIM_FAST_STEP,
                   "a server does not get through what waits in its socket" );
        sim_step( SIM_FAST_STEP );
    }
    for ( int i = 0; i < SIM_SERVERS; i++ ) /* what waited there may have let a client in */
        sim_kick_endless( &net.servers[i] );
    for ( end = sim.tick + 45 * SIM_SECOND; sim.tick < end; )
        sim_step( SIM_SECOND / 2 );
    for ( int i = 0; i < SIM_SERVERS; i++ )
        sim_check_nothing_left( &net.servers[i] );
}

/*  An honest client's handshake, on a network that loses nothing and takes at most `latency + jitter` one way: request,
    challenge, response, keep-alive, so four trips; each of the five updates between them comes up to one step late; and
    three more, where what else arrives uses an update's budget up. */
static int64_t sim_connect_bound( void )
{
    return 4 * ( net.weather.latency + net.weather.jitter ) + 8 * net.weather.step;
}

static void sim_check_watched( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        const struct sim_client_t * c = &net.clients[i];
        if ( !c->is_watched )
            continue;
        SIM_CHECK( connect_bound,
                   c->state == NETCODE_CLIENT_STATE_CONNECTED ||
                       ( c->state > 0 && sim.tick - c->began <= sim_connect_bound() ),
                   "client %d is %s, %" PRId64 " ticks after it began; the bound is %" PRId64, i,
                   netcode_client_state_name( c->state ), sim.tick - c->began, sim_connect_bound() );
    }
}

static void sim_calm_steps( int count )
{
    while ( count-- ) {
        sim_step( net.weather.step );
        sim_check_watched();
    }
}

/* A server whose slot is free, and which no forgotten record keeps from believing a new token; or NULL. */
static struct sim_server_t * sim_roomy_server( const int planned[SIM_SERVERS], uint64_t expire )
{
    int first = sim_below( SIM_SERVERS );
    for ( int i = 0; i < SIM_SERVERS; i++ ) {
        struct sim_server_t * s = &net.servers[( first + i ) % SIM_SERVERS];
        if ( planned[s->port.index] < s->slots && expire > s->server->handshakes.used.refused_up_to )
            return s;
    }
    return NULL;
}

/* A fresh token for a server that has room, and off it goes. Every token expires later than those before it. */
static void sim_calm_join( struct sim_client_t * c, int planned[SIM_SERVERS], int order )
{
    static const int timeouts[] = { 2, 5, 10, 0 };
    int lifetime = net.is_zero ? SIM_ZERO_LIFETIME : 60 + order;
    uint32_t token;
    struct sim_server_t * s = sim_roomy_server( planned, sim_unix() + (uint64_t) lifetime );
    if ( !s )
        return;
    planned[s->port.index]++;
    if ( !c->client )
        sim_client_create( c );
    token = sim_new_token( c->port.index, 1000 + (uint64_t) c->port.index, lifetime, SIM_PICK( timeouts ) );
    sim_name_server( token, sim_server_at( s->port.index, 0 ) );
    sim_client_connect( c, token );
    c->talk = SIM_SLOW_STEP * sim_between( 1, 12 );
    c->is_watched = 1;
}

static void sim_check_delivered( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        const struct sim_client_t * c = &net.clients[i];
        if ( c->is_watched )
            SIM_CHECK( calm_delivery, net.conns[c->conn].sent == net.conns[c->conn].delivered_count,
                       "client %d sent %d payloads, %d arrived", i, net.conns[c->conn].sent,
                       net.conns[c->conn].delivered_count );
    }
    for ( int i = 0; i < SIM_SERVERS; i++ )
        for ( int slot = 0; slot < SIM_SLOTS; slot++ ) {
            const struct sim_session_t * session = &net.sessions[net.servers[i].in_slot[slot]];
            if ( net.servers[i].in_slot[slot] )
                SIM_CHECK( calm_delivery, session->sent == session->delivered_count,
                           "server %d sent %d payloads to slot %d, %d arrived", i, session->sent, slot,
                           session->delivered_count );
        }
}

/* ---- moves in a calm ---- */

/*  From a client's move until its server has followed: what it sends next, the probe, and the probe back, so three
    trips; and updates as in sim_connect_bound. One that has lost its network notices after a second of silence; its
    address is its own for a quarter of one. */
static int64_t sim_move_bound( const struct sim_client_t * c )
{
    int64_t bound = 3 * ( net.weather.latency + net.weather.jitter ) + 8 * net.weather.step;
    if ( c->found_at > sim.tick )
        return bound + SIM_SECOND + net.weather.step;
    return c->took_from && c->took_from->found_at > sim.tick ? bound + SIM_SECOND / 4 + net.weather.step : bound;
}

/* Does it move? Only a client that is connected to a server with roaming, and sends sequences by which it is found. */
static int sim_may_move( const struct sim_client_t * c )
{
    const struct sim_server_t * s = sim_server_of( c );
    return c->is_watched && s && s->config.roaming && !net.is_zero;
}

/* It has a network, and its server a slot for it at its present address. */
static int sim_is_followed( const struct sim_client_t * c )
{
    const struct sim_server_t * s = sim_server_of( c );
    for ( int i = 0; s && i < s->slots; i++ )
        if ( s->in_slot[i] && net.sessions[s->in_slot[i]].token == c->token )
            return !c->port.is_lost && net.sessions[s->in_slot[i]].at == sim_client_now( c, 0 );
    return 0;
}

/*  Some get another address, some that of another that moves, and some lose their network without a report of the
    machine. */
static void sim_calm_move( struct sim_client_t * c )
{
    const struct sim_client_t * other = &net.clients[sim_below( SIM_CLIENTS )];
    c->found_at = 0;
    c->took_from = NULL;
    if ( !sim_may_move( c ) || sim_rarely( 2 ) )
        return;
    if ( sim_rarely( 4 ) && net.tokens[c->token].timeout != 2 ) { /* that would be too short */
        sim_client_lose( c );
        c->found_at = sim.tick + 60 * SIM_SECOND;
        return;
    }
    sim_client_event( c, SIM_C_MOVE );
    if ( sim_may_move( other ) && !other->port.is_lost ) {
        c->took_from = other;
        sim_settle( c, other->router, other->port_number );
    } else
        sim_settle_anew( c, sim_below( SIM_CLIENTS ) );
}

/* No client is lost by it, and what is sent thereafter arrives. */
static void sim_calm_moves( void )
{
    int64_t began = sim.tick;
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        sim_calm_move( &net.clients[i] );
    while ( sim.tick - began < 3 * SIM_SECOND ) {
        sim_calm_steps( 1 );
        for ( int i = 0; i < SIM_CLIENTS; i++ )
            if ( sim_may_move( &net.clients[i] ) )
                SIM_CHECK( move_bound,
                           sim_is_followed( &net.clients[i] ) || sim.tick - began <= sim_move_bound( &net.clients[i] ),
                           "client %d is at address %d, and its server has not found it there in %" PRId64 " ticks", i,
                           sim_client_now( &net.clients[i], 0 ), sim.tick - began );
    }
    net.is_quiet = 0;
    sim_calm_steps( sim_between( 10, 30 ) );
    net.is_quiet = 1;
    sim_calm_steps( 8 );
    sim_check_delivered();
}

/*  For a while every fourth datagram is lost, and the players talk on: what is reliable arrives all the same once they fall
    silent and the network is healed. */
static void sim_check_messages( void )
{
    int64_t end;
    net.is_quiet = 0;
    net.weather.loss = 250;
    sim_calm_steps( sim_between( 10, 40 ) );
    net.weather.loss = 0;
    net.is_quiet = 1;
    end = sim.tick + SIM_QUIET_SECONDS * SIM_SECOND;
    while ( !sim_messages_arrived() && sim.tick < end )
        sim_calm_steps( 1 );
    SIM_CHECK( message_delivery, sim_messages_arrived(), "after %d s reliable messages are in flight",
               SIM_QUIET_SECONDS );
}

/* They come one after the other, talk, and fall silent. What was said must have been heard. */
static void sim_rush( void )
{
    int planned[SIM_SERVERS] = { 0 };
    net.weather.hostility = sim_below( 4 );
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        sim_calm_join( &net.clients[i], planned, i );
        sim_calm_steps( sim_between( 2, 6 ) );
    }
    sim_calm_steps( sim_between( 20, 80 ) );
    net.is_quiet = 1;
    sim_calm_steps( 8 );
    sim_check_delivered();
    sim_calm_moves();
    if ( sim.has_messages )
        sim_check_messages();
    net.is_quiet = 0;
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        if ( net.clients[i].is_watched )
            sim_client_disconnect( &net.clients[i] );
        sim_client_rest( &net.clients[i] );
    }
}

static void sim_calm( void )
{
    sim_heal();
    sim_everyone_leaves();
    for ( int i = 0; i < SIM_SERVERS; i++ )
        sim_heal_server( &net.servers[i] );
    sim_wait_for_ends();
    sim_rush();
}

/* ---- a seed ---- */

static void sim_begin( uint64_t seed, int64_t seconds )
{
    sim.seed = seed;
    sim.seconds = seconds;
    sim.random = sim_mix( seed + 1 );
    sim.library_random = sim_mix( seed + 2 ) ^ 0x5555;
    sim.trace = sim.event = 0;
    sim.tick = 0;
    sim_ledger_reset();
    sim_explain_key = sim_explain;
    sim_net_reset();
    memset( net.servers, 0, sizeof( net.servers ) );
    memset( net.clients, 0, sizeof( net.clients ) );
    memset( net.tapes, 0, sizeof( net.tapes ) );
    memset( net.puppet_at, 0, sizeof( net.puppet_at ) );
    memset( net.mail, 0, sizeof( net.mail ) );
    memset( net.behind, 0, sizeof( net.behind ) );
    net.token_count = net.session_count = net.conn_count = 0;
    sim_new_token( SIM_ADVERSARY, 0, 0, 0 ); /* number 0 is none */
    sim_new_session();
    sim_new_conn( 0 );
    net.seen_count = 0;
    net.tape_next = 0;
    net.order = 0;
    net.backend_key = 100;
    net.is_zero = seed % 4 == 0;
    sim_broadcasts = sim_client_objects = 0;
    sim_adversary_reset();
    if ( sim.has_messages )
        sim_messages_begin();
    for ( int i = 0; i < SIM_SERVERS; i++ ) {
        net.servers[i].port.is_server = 1;
        net.servers[i].port.index = i;
        net.servers[i].clock.shown = (int64_t) SIM_SECOND * sim_below( 1000000 );
    }
    for ( int i = 0; i < SIM_CLIENTS; i++ ) {
        net.clients[i].port.index = i;
        net.clients[i].router = i;
        net.behind[i][0] = (uint8_t) ( i + 1 );
        net.clients[i].clock.shown = (int64_t) SIM_SECOND * sim_below( 1000000 );
        sim_client_rest( &net.clients[i] );
    }
}

static void sim_end( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        if ( net.clients[i].client )
            sim_client_destroy( &net.clients[i], 0 );
    for ( int i = 0; i < SIM_SERVERS; i++ )
        if ( net.servers[i].server )
            sim_server_destroy( &net.servers[i], 0 );
    if ( sim.has_messages )
        sim_messages_end();
    SIM_CHECK( memory_left, net.live_blocks == 0, "%d blocks are left", net.live_blocks );
    sim_total.seeds++;
    sim.worlds[sim.has_messages]++;
    sim_total.ticks += (uint64_t) sim.tick;
    sim_total.events += sim.event;
    sim_total.trace = sim_mix( sim_total.trace ^ sim.trace );
}

static void sim_world( uint64_t seed, int64_t seconds )
{
    sim_begin( seed, seconds );
    do {
        int64_t end = sim.tick + (int64_t) SIM_SECOND * sim_between( 100, 600 );
        int64_t last = ( seconds - 70 ) * SIM_SECOND; /* a calm takes about so long */
        sim_storm( end < last ? end : last );
        sim_calm();
    } while ( sim.tick < seconds * SIM_SECOND );
    sim_end();
}

#endif
