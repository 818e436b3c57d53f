/*  The honest players: they play and leave, crash and come back, go from server to server as their tokens name them,
    sleep, move to other ports and routers, lose their network, and have wrong clocks. */

#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "server.h"

static uint32_t sim_client_objects;

static void sim_client_begin( struct sim_client_t * c )
{
    c->port.taken = c->port.asked = 0;
    sim_ledger.seals = sim_ledger.opens = sim_ledger.token_opens = 0;
}

static void sim_client_end( struct sim_client_t * c )
{
    sim_total.seals += sim_ledger.seals;
    sim_total.opens += sim_ledger.opens;
    SIM_CHECK( callbacks_alternate, c->state == netcode_client_state( c->client ), "client %d is %s, reported %s",
               c->port.index, netcode_client_state_name( netcode_client_state( c->client ) ),
               netcode_client_state_name( c->state ) );
    if ( sim_rarely( 12 ) )
        sim_check_client_books( c->client );
}

static void sim_client_configure( struct sim_client_t * c, struct netcode_client_config_t * config )
{
    static const int budgets[] = { 0, 0, 8, 40 };
    netcode_default_client_config( config );
    config->allocate_function = sim_allocate;
    config->free_function = sim_release;
    config->callback_context = c;
    config->state_change_callback = sim_on_state;
    config->events = 1;
    config->sequence_base = net.is_zero ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    config->packet_pool_buffers = 16 << sim_below( 2 );
    config->update_budget = budgets[sim_below( 4 )];
    config->batch_sends = sim_below( 2 );
}

static void sim_client_create( struct sim_client_t * c )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH], text6[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_client_config_t config;
    struct netcode_socket_t socket = sim_socket( &c->port );
    struct netcode_address_t four, six;
    int fails = sim_fails();
    sim_client_event( c, fails ? SIM_C_CREATE_FAILS : SIM_C_CREATE );
    if ( !sim_rarely( 3 ) )
        sim_settle_anew( c, c->router );
    c->port.is_lost = 0;
    four = sim_address_of( sim_client_now( c, 0 ) );
    six = sim_address_of( sim_client_now( c, 1 ) );
    sim_client_configure( c, &config );
    config.socket = &socket;
    c->port.is_up = c->port.is_open = 1;
    net.fail_allocation = fails;
    c->client =
        netcode_client_create_dual( netcode_address_to_string( &four, text ), netcode_address_to_string( &six, text6 ),
                                    &config, (double) c->clock.shown / SIM_SECOND );
    net.fail_allocation = 0;
    sim_total.faults += (uint64_t) fails;
    SIM_CHECK( memory_left, ( c->client == NULL ) == fails, "client %d: create said %d", c->port.index,
               netcode_client_create_error() );
    c->port.is_open = c->client != NULL;
    c->state = NETCODE_CLIENT_STATE_DISCONNECTED;
    c->object = ++sim_client_objects;
    c->event_open = c->event_last = 0;
    memset( sim_client_conns[c->port.index], 0, sizeof( sim_client_conns[0] ) );
}

/* A crash: no peer is notified. */
static void sim_client_destroy( struct sim_client_t * c, int is_crash )
{
    int before = net.live_blocks;
    sim_client_event( c, is_crash ? SIM_C_CRASH : SIM_C_DESTROY );
    c->port.is_up = !is_crash;
    c->is_watched = 0;
    sim_client_begin( c );
    netcode_client_destroy( c->client );
    c->client = NULL;
    c->phase = SIM_PHASE_AWAY;
    sim_mate_alone( &sim_client_mates[c->port.index] );
    SIM_CHECK( memory_left, !c->port.is_open && net.live_blocks == before - 1,
               "client %d left its socket or its memory", c->port.index );
}

static void sim_client_connect( struct sim_client_t * c, uint32_t token )
{
    uint8_t bytes[NETCODE_CONNECT_TOKEN_BYTES];
    sim_client_event( c, SIM_C_CONNECT );
    sim_mint( &net.tokens[token], bytes );
    sim_client_begin( c );
    if ( sim_rarely( 2 ) ) /* connect does it too */
        netcode_client_disconnect( c->client );
    c->token = token;
    c->conn = sim_new_conn( token );
    net.conns[c->conn].object = c->object;
    net.tokens[token].objects += net.tokens[token].object != c->object;
    net.tokens[token].object = c->object;
    uint64_t session = c->client->session;
    netcode_client_connect( c->client, bytes );
    if ( c->client->session != session ) /* not refused: events of earlier attempts may be unread */
        sim_client_conns[c->port.index][c->client->session % 16] = c->conn;
    c->phase = SIM_PHASE_TRYING;
    c->began = sim.tick;
    sim_client_end( c );
}

static void sim_client_disconnect( struct sim_client_t * c )
{
    sim_client_event( c, SIM_C_DISCONNECT );
    c->is_watched = 0;
    sim_client_begin( c );
    netcode_client_disconnect( c->client );
    sim_client_end( c );
}

static void sim_client_say( struct sim_client_t * c )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct sim_conn_t * conn = &net.conns[c->conn];
    int bytes = 1;
    sim_client_event( c, SIM_C_SEND );
    sim_client_begin( c );
    if ( c->state != NETCODE_CLIENT_STATE_CONNECTED )
        netcode_client_send_packet( c->client, data, bytes ); /* silent */
    else if ( !sim.has_messages && conn->sent < SIM_PAYLOADS ) {
        bytes = sim_payload_make( data, SIM_TO_SERVER, c->conn, conn->sent++ );
        netcode_client_send_packet( c->client, data, bytes );
    }
    sim_client_end( c );
}

static void sim_client_update( struct sim_client_t * c )
{
    int kind;
    double time = sim_wrong_time( &c->clock, &kind, SIM_C_CLOCK_BACK );
    if ( kind >= 0 )
        sim_client_event( c, kind );
    sim_client_event( c, SIM_C_UPDATE );
    sim_client_begin( c );
    netcode_client_update( c->client, time );
    sim_check_client_work( c );
    sim_client_end( c );
    if ( sim.has_messages )
        sim_client_messages( c, time );
    if ( !c->is_lazy || net.is_calm || sim_rarely( 16 ) )
        sim_client_read_all( c );
}

/* ---- what players want ---- */

static uint32_t sim_client_token( struct sim_client_t * c )
{
    static const int timeouts[] = { 1, 2, 5, 5, 5, 5, 10, 20, 0, -1 };
    static const int lifetimes[] = { 3, 10, SIM_ZERO_LIFETIME, SIM_ZERO_LIFETIME, SIM_ZERO_LIFETIME, 60, 300, -1 };
    int timeout = timeouts[sim_below( 10 )], lifetime = lifetimes[sim_below( net.is_zero ? 5 : 8 )];
    int first = sim_below( SIM_SERVERS ), servers = net.is_zero || sim_rarely( 3 ) ? 1 : sim_between( 2, 4 );
    uint32_t token = sim_new_token( c->port.index, 1000 + (uint64_t) c->port.index, lifetime, timeout );
    if ( sim_rarely( 24 ) && !net.is_zero )
        sim_name_server( token, SIM_NOWHERE );
    for ( int i = 0; i < servers; i++ ) {
        int server = ( first + i ) % SIM_SERVERS;
        int six = net.servers[server].is_dual && sim_rarely( 2 );
        sim_name_server( token, sim_server_at( server, six ) );
        if ( six && !net.is_zero && sim_rarely( 2 ) ) /* a dual-stack server, by both its addresses */
            sim_name_server( token, sim_server_at( server, 0 ) );
    }
    return token;
}

/* Mostly a new token; sometimes the old one, which this object refuses if it was connected with it. */
static void sim_client_try( struct sim_client_t * c )
{
    if ( !c->client )
        sim_client_create( c );
    if ( !c->client )
        return;
    if ( c->token && !sim.has_messages && sim_rarely( 12 ) && ( !net.is_zero || c->client->session > 0 ) )
        sim_client_connect( c, c->token );
    else
        sim_client_connect( c, sim_client_token( c ) );
    c->talk = SIM_SLOW_STEP * sim_between( 1, 12 );
}

/* The server that it is connected to, or NULL. */
static struct sim_server_t * sim_server_of( const struct sim_client_t * c )
{
    return c->client && c->state == NETCODE_CLIENT_STATE_CONNECTED
               ? &net.servers[sim_at_of( &c->client->server_address ) % SIM_SERVERS]
               : NULL;
}

/*  Its router gives it another port, or is started anew and gives it one that another client had, or it goes to another
    router: what is sent to the old address is lost, or reaches another. */
static void sim_client_move( struct sim_client_t * c )
{
    const struct sim_client_t * other = &net.clients[sim_below( SIM_CLIENTS )];
    sim_client_event( c, SIM_C_MOVE );
    for ( int i = 0; i < SIM_CLIENTS && sim_server_of( other ) != sim_server_of( c ); i++ )
        other = &net.clients[sim_below( SIM_CLIENTS )];
    switch ( sim_below( 4 ) ) {
    case 0: sim_settle( c, other->router, other->port_number ); break;
    case 1: sim_settle_anew( c, sim_below( SIM_CLIENTS ) ); break;
    default: sim_settle_anew( c, c->router );
    }
}

/*  Its network is gone. If it is connected, the library takes another within a second or so; else, the machine reports
    one. */
static void sim_client_lose( struct sim_client_t * c )
{
    sim_client_event( c, SIM_C_LOSE );
    c->port.is_lost = 1;
    c->found_at = sim.tick + SIM_SECOND / 8 * sim_between( 0, 40 );
}

/* The weather of a connected player; and when the machine has a network again, the application says so. */
static void sim_client_wander( struct sim_client_t * c )
{
    if ( c->state == NETCODE_CLIENT_STATE_CONNECTED && sim_happens( net.weather.moves ) )
        sim_client_move( c );
    if ( c->state == NETCODE_CLIENT_STATE_CONNECTED && sim_happens( net.weather.losses ) )
        sim_client_lose( c );
    if ( !c->port.is_lost || sim.tick < c->found_at )
        return;
    sim_client_begin( c );
    netcode_client_rebind( c->client );
    sim_client_end( c );
}

static void sim_client_odd_deed( struct sim_client_t * c )
{
    switch ( sim_below( 7 ) ) {
    case 0: sim_client_disconnect( c ); break;
    case 1: sim_client_destroy( c, sim_below( 2 ) ); break;
    case 2: sim_client_move( c ); break;
    case 3: sim_client_try( c ); break;
    case 4: sim_client_say( c ); break;
    case 5: sim_client_lose( c ); break;
    default: sim_client_event( c, SIM_C_PAUSE ); c->pause_until = sim.tick + SIM_SECOND * sim_between( 1, 12 );
    }
}

static void sim_client_leave( struct sim_client_t * c )
{
    int how = sim_below( 20 );
    c->leave_at = sim.tick + SIM_SECOND * 4;
    if ( how < 9 )
        sim_client_disconnect( c );
    else if ( how < 13 )
        sim_client_destroy( c, 1 );
    else if ( how < 14 )
        sim_client_destroy( c, 0 );
    else
        sim_client_odd_deed( c );
}

static void sim_client_rest( struct sim_client_t * c )
{
    c->phase = SIM_PHASE_AWAY;
    c->is_lazy = sim_rarely( 4 );
    c->clock.rate = sim_rarely( 3 ) ? sim_between( -2, 2 ) : 0;
    c->is_banned = sim_rarely( 16 );
    c->next_deed = sim.tick + SIM_SECOND / 8 * sim_between( 4, 320 );
}

static void sim_client_live( struct sim_client_t * c )
{
    if ( c->phase == SIM_PHASE_AWAY ) {
        if ( sim.tick < c->next_deed )
            return;
        c->next_deed = sim.tick + SIM_SECOND * sim_between( 1, 3 );
        if ( c->client && sim_rarely( 8 ) )
            sim_client_odd_deed( c );
        else
            sim_client_try( c );
        return;
    }
    if ( c->client->state <= 0 ) {
        sim_client_rest( c );
    } else if ( c->phase == SIM_PHASE_TRYING && c->state == NETCODE_CLIENT_STATE_CONNECTED ) {
        c->phase = SIM_PHASE_IN;
        c->leave_at = sim.tick + SIM_SECOND / 8 * ( sim_rarely( 24 ) ? sim_between( 80, 800 ) : sim_between( 1, 48 ) );
    } else if ( c->phase == SIM_PHASE_TRYING && ( sim.tick - c->began > 40 * SIM_SECOND || sim_rarely( 300 ) ) ) {
        sim_client_leave( c );
    } else if ( c->phase == SIM_PHASE_IN && sim.tick >= c->leave_at )
        sim_client_leave( c );
}

static void sim_client_step( struct sim_client_t * c )
{
    int is_idle = c->client && c->client->state <= 0 && c->port.count == 0;
    if ( c->client && sim.tick >= c->pause_until )
        sim_client_wander( c );
    if ( c->client && sim.tick >= c->pause_until && ( !is_idle || sim_rarely( 4 ) ) ) {
        sim_client_update( c );
        if ( c->state == NETCODE_CLIENT_STATE_CONNECTED && sim.tick >= c->talk_at && !net.is_quiet &&
             !sim.has_messages ) {
            sim_client_say( c );
            c->talk_at = sim.tick + c->talk;
        }
    }
    if ( !net.is_calm && sim.tick >= c->pause_until )
        sim_client_live( c );
}

#endif
