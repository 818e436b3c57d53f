/*  The server machines: processes that start, stop, crash and come back with another configuration, whose keys rotate,
    whose clocks are wrong, and whose application talks to its players and looks at events when it likes. */

#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "messages.h"

static uint32_t sim_broadcasts;

/* Before and after every call: what is counted for one call begins anew, and the model is compared. */
static void sim_server_begin( struct sim_server_t * s )
{
    s->call++;
    sim_assign_paths( s );
    s->leaving_count = 0;
    s->port.taken = s->port.asked = 0;
    sim_ledger.seals = sim_ledger.opens = sim_ledger.token_opens = 0;
}

static void sim_server_end( struct sim_server_t * s )
{
    int clients = netcode_server_num_connected_clients( s->server );
    sim_total.seals += sim_ledger.seals;
    sim_total.opens += sim_ledger.opens + sim_ledger.token_opens;
    SIM_CHECK( slots_agree, clients == s->clients, "server %d counts %d clients, the model %d", s->port.index, clients,
               s->clients );
    for ( int i = 0; s->config.roaming && i < s->slots; i++ )
        if ( s->in_slot[i] && sim_follow( s, i ) )
            sim_check_alone( s, i );
    for ( int i = 0; s->server->running && i < s->slots; i++ )
        SIM_CHECK( slots_agree, netcode_server_client_connected( s->server, i ) == ( s->in_slot[i] != 0 ),
                   "server %d, slot %d: the server and the model disagree", s->port.index, i );
    if ( sim_rarely( 12 ) )
        sim_check_server_books( s->server );
}

static void sim_server_configure( struct sim_server_t * s )
{
    static const int pending[] = { 0, 8, 16, 64 };
    static const int consumed[] = { 0, 32, 128 };
    static const int pools[] = { 0, 16, 40 };
    struct netcode_server_config_t * config = &s->config;
    netcode_default_server_config( config );
    config->protocol_id = SIM_PROTOCOL;
    sim_private_key( s->keys[0], config->private_key );
    config->allocate_function = sim_allocate;
    config->free_function = sim_release;
    config->callback_context = s;
    config->connect_disconnect_callback = sim_on_slot;
    config->events = 1;
    config->unix_time = sim_on_server_unix;
    config->admit_callback = sim_rarely( 2 ) ? sim_on_admit : NULL;
    config->sequence_base = net.is_zero ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    config->replace_existing_clients = sim_below( 2 );
    config->batch_sends = sim_below( 2 );
    config->roaming = sim_below( 2 );
    config->pending_handshakes = pending[sim_below( 4 )];
    config->consumed_tokens = consumed[sim_below( 3 )];
    config->packet_pool_buffers = pools[sim_below( 3 )];
    config->packet_quota = sim_rarely( 4 ) ? 4 : 0;
}

static void sim_server_pass_keys( struct sim_server_t * s )
{
    uint8_t keys[SIM_KEYS * 32];
    for ( int i = 0; i < s->key_count; i++ )
        sim_private_key( s->keys[i], keys + 32 * i );
    if ( netcode_server_set_private_keys( s->server, keys, s->key_count ) != NETCODE_OK )
        sim_fail( SIM_CHECK_invariants, "set_private_keys refused %d keys", s->key_count );
}

/* {next, present, former}: from which on, and how many. */
static void sim_server_set_keys( struct sim_server_t * s, uint32_t newest, int count )
{
    sim_server_event( s, SIM_S_KEYS );
    s->key_count = count;
    for ( int i = 0; i < count; i++ )
        s->keys[i] = newest - (uint32_t) i;
    sim_server_begin( s );
    sim_server_pass_keys( s );
    sim_server_end( s );
}

static int sim_fails( void )
{
    return net.weather.alloc_faults && sim_below( 100 ) < net.weather.alloc_faults;
}

static void sim_server_create( struct sim_server_t * s )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH], text6[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_address_t four = sim_address_of( sim_server_at( s->port.index, 0 ) );
    struct netcode_address_t six = sim_address_of( sim_server_at( s->port.index, 1 ) );
    struct netcode_socket_t socket = sim_socket( &s->port );
    int fails = sim_fails();
    sim_server_event( s, fails ? SIM_S_CREATE_FAILS : SIM_S_CREATE );
    s->is_dual = sim_below( 2 );
    s->keys[0] = net.backend_key;
    s->keys[1] = net.backend_key - 1;
    s->key_count = 2;
    sim_server_configure( s );
    s->config.socket = &socket;
    s->process++;
    s->port.is_up = s->port.is_open = 1;
    net.fail_allocation = fails;
    netcode_address_to_string( &four, text );
    netcode_address_to_string( &six, text6 );
    s->server = s->is_dual ? netcode_server_create_dual( text, text6, &s->config, (double) s->clock.shown / SIM_SECOND )
                           : netcode_server_create( text, &s->config, (double) s->clock.shown / SIM_SECOND );
    net.fail_allocation = 0;
    sim_total.faults += (uint64_t) fails;
    SIM_CHECK( memory_left,
               ( s->server == NULL ) == fails &&
                   ( fails == 0 ||
                     netcode_server_create_error() == NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED ),
               "server %d: create said %d", s->port.index, netcode_server_create_error() );
    if ( !s->server ) {
        s->port.is_open = 0;
        return;
    }
    s->event_last = 0;
    memset( s->event_open, 0, sizeof( s->event_open ) );
    s->slots = 0;
    s->handshakes = 0;
    s->unix_low[0] = s->unix_low[1] = UINT64_MAX;
    s->unix_span = 0;
    sim_server_pass_keys( s );
}

static void sim_server_messages( struct sim_server_t * s, double time )
{
    sim_server_begin( s );
    for ( int i = 0; i < s->slots; i++ )
        sim_slot_messages( s, i, time );
    sim_server_end( s );
}

/* Starts with so many slots, also while it runs. Where the memory can not be had it stays stopped. */
static void sim_server_start( struct sim_server_t * s, int slots )
{
    const void * block = s->server->memory.block;
    int is_other = (int) s->server->memory.slot_count != slots || !block, fails = is_other && sim_fails();
    sim_server_event( s, fails ? SIM_S_START_FAILS : SIM_S_START );
    sim_server_read_all( s );
    net.fail_allocation = fails ? 1 + sim_below( 2 ) : 0;
    sim_server_begin( s );
    netcode_server_start( s->server, slots );
    net.fail_allocation = 0;
    sim_total.faults += (uint64_t) fails;
    SIM_BOOK( s->server->running == !fails );
    if ( block != s->server->memory.block ) /* what was not read is given up */
        memset( s->event_open, 0, sizeof( s->event_open ) );
    s->slots = (int) s->server->memory.slot_count;
    sim_server_end( s );
    if ( sim.has_messages ) /* before anything is sent there */
        sim_server_messages( s, (double) NAN );
}

static void sim_server_stop( struct sim_server_t * s )
{
    sim_server_event( s, SIM_S_STOP );
    sim_server_begin( s );
    netcode_server_stop( s->server );
    sim_server_end( s );
    sim_server_read_all( s );
}

/* A crash: the process is gone without a packet, and so is all that it remembered. */
static void sim_server_destroy( struct sim_server_t * s, int is_crash )
{
    int before = net.live_blocks;
    sim_server_event( s, is_crash ? SIM_S_CRASH : SIM_S_DESTROY );
    s->port.is_up = !is_crash;
    sim_total.handshakes += s->server->stats.handshakes;
    sim_total.candidates += s->server->stats.path_candidates;
    for ( int i = 0; i < SIM_SLOTS; i++ )
        sim_mate_alone( &sim_server_mates[s->port.index][i] );
    sim_server_begin( s );
    netcode_server_destroy( s->server );
    s->server = NULL;
    s->held_count = 0;
    s->slots = 0;
    SIM_CHECK( memory_left, !s->port.is_open && net.live_blocks < before, "server %d left its socket or its memory",
               s->port.index );
    SIM_CHECK( callbacks_alternate, s->clients == 0, "server %d was destroyed with %d clients not reported",
               s->port.index, s->clients );
}

/* ---- wrong clocks ---- */

static double sim_wrong_time( struct sim_clock_t * clock, int * kind, int first_kind )
{
    static const double mad[] = { (double) NAN, (double) INFINITY, -(double) INFINITY };
    double time = sim_clock_time( clock );
    *kind = -1;
    if ( !sim_happens( net.weather.clock_faults ) )
        return time;
    *kind = first_kind + sim_below( 4 );
    switch ( *kind - first_kind ) {
    case 0: clock->shown -= (int64_t) SIM_SECOND * sim_between( 1, 4000 ); break;
    case 1: clock->still_until = sim.tick + (int64_t) SIM_SECOND * sim_between( 1, 8 ); break;
    case 2: clock->shown += (int64_t) SIM_SECOND * ( sim_rarely( 6 ) ? 1000000000 : sim_between( 1, 30 ) ); break;
    default: return mad[sim_below( 3 )];
    }
    return (double) clock->shown / (double) SIM_SECOND;
}

static void sim_server_update( struct sim_server_t * s )
{
    int kind;
    double time = sim_wrong_time( &s->clock, &kind, SIM_S_CLOCK_BACK );
    if ( kind >= 0 )
        sim_server_event( s, kind );
    sim_server_event( s, SIM_S_UPDATE );
    sim_server_begin( s );
    netcode_server_update( s->server, time );
    sim_check_server_work( s );
    sim_server_end( s );
    if ( s->server->running )
        sim_check_ends( s->server );
    if ( sim.has_messages )
        sim_server_messages( s, time );
    if ( !s->is_lazy || net.is_calm || sim_rarely( 16 ) )
        sim_server_read_all( s );
}

/* ---- the application ---- */

static void sim_server_say( struct sim_server_t * s, int slot )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    uint32_t record = s->in_slot[slot];
    int bytes;
    sim_server_event( s, SIM_S_SEND );
    sim_server_begin( s );
    if ( record && net.sessions[record].sent < SIM_PAYLOADS ) {
        bytes = sim_payload_make( data, SIM_TO_CLIENT, record, net.sessions[record].sent++ );
        if ( sim_rarely( 2 ) )
            netcode_server_send_packet( s->server, slot, data, bytes );
        else
            netcode_server_send_packet_to_session( s->server, slot, net.sessions[record].session, data, bytes );
    } else if ( !record ) /* no client is there: nothing happens */
        netcode_server_send_packet( s->server, slot, data, 1 );
    sim_server_end( s );
}

/* To all at once; the number says whose it is. */
static void sim_server_broadcast( struct sim_server_t * s )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    int bytes = sim_payload_make( data, SIM_TO_ALL, ++sim_broadcasts, s->port.index );
    sim_server_event( s, SIM_S_BROADCAST );
    sim_server_begin( s );
    netcode_server_broadcast( s->server, data, bytes, -1 );
    sim_server_end( s );
}

static void sim_server_talk( struct sim_server_t * s )
{
    if ( net.is_quiet || sim.has_messages )
        return;
    for ( int i = 0; i < s->slots; i++ )
        if ( s->in_slot[i] && ( s->is_chatty ? sim_rarely( 3 ) : sim_rarely( 24 ) ) &&
             ( !net.is_calm || s->server->memory.slot[i].confirmed ) ) /* a payload may overtake the keep-alive */
            sim_server_say( s, i );
    if ( sim_rarely( 400 ) && s->slots && !net.is_calm )
        sim_server_say( s, sim_below( s->slots ) );
    if ( sim_rarely( 200 ) )
        sim_server_broadcast( s );
}

static void sim_server_kick( struct sim_server_t * s, int slot )
{
    sim_server_event( s, SIM_S_KICK );
    sim_server_begin( s );
    if ( slot < 0 )
        netcode_server_disconnect_all_clients( s->server );
    else
        netcode_server_disconnect_client( s->server, slot );
    sim_server_end( s );
}

/* The process ends; often, another one takes its place in the same moment. */
static void sim_server_replace( struct sim_server_t * s )
{
    sim_server_destroy( s, sim_below( 2 ) );
    if ( sim_rarely( 2 ) )
        sim_server_create( s );
    if ( s->server )
        sim_server_start( s, 1 + sim_below( SIM_SLOTS ) );
}

static void sim_server_step_unix( struct sim_server_t * s )
{
    static const int64_t skews[] = { 0, 0, 0, 3, -3, 3600, -3600, 86400, -86400 };
    sim_server_event( s, SIM_S_UNIX_STEP );
    s->clock.unix_skew = net.is_zero ? 0 : skews[sim_below( 9 )];
}

/* Something happens to a server that is there. */
static void sim_server_deed( struct sim_server_t * s )
{
    uint32_t newest = net.backend_key + (uint32_t) sim_below( 2 );
    switch ( sim_below( 16 ) ) {
    case 0: sim_server_stop( s ); break;
    case 1: sim_server_start( s, s->slots ? s->slots : 1 ); break;
    case 2: sim_server_start( s, 1 + sim_below( SIM_SLOTS ) ); break;
    case 3:
    case 4: sim_server_replace( s ); break;
    case 5: sim_server_set_keys( s, newest, 1 + sim_below( 3 ) ); break;
    case 6:
        sim_server_event( s, SIM_S_PAUSE );
        s->pause_until = sim.tick + SIM_SECOND * sim_between( 1, 12 );
        break;
    case 7: sim_server_step_unix( s ); break;
    case 8: s->is_lazy = sim_rarely( 3 ); break;
    case 9: s->is_chatty = sim_rarely( 3 ); break;
    case 10: sim_server_kick( s, -1 ); break;
    case 11: s->clock.rate = sim_between( -1, 1 ); break;
    default:
        if ( s->slots )
            sim_server_kick( s, sim_below( s->slots ) );
    }
}

/* What the machine does in one step. */
static void sim_server_step( struct sim_server_t * s )
{
    if ( s->server && sim.tick >= s->pause_until ) {
        sim_server_update( s );
        if ( s->server->running )
            sim_server_talk( s );
    }
    if ( sim.tick < s->next_deed || net.is_calm )
        return;
    s->next_deed = sim.tick + SIM_SECOND / 4 * sim_between( 1, 80 );
    if ( !s->server )
        sim_server_create( s );
    else if ( !s->server->running && !sim_rarely( 4 ) )
        sim_server_start( s, 1 + sim_below( SIM_SLOTS ) );
    else
        sim_server_deed( s );
}

#endif
