/*  What must be true: the model of which token is held where, which client has which slot, and what was sent where. The
    library reports by callbacks and events, and every word of it is checked. */

#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "net.h"

enum { SIM_PAYLOAD_HEAD = 17, SIM_TO_SERVER = 0, SIM_TO_CLIENT = 1, SIM_TO_ALL = 2 };

static void * sim_list_room( void * items, uint32_t * capacity, uint32_t count, size_t bytes )
{
    if ( count < *capacity )
        return items;
    *capacity = *capacity ? *capacity * 2 : 1 << 10;
    return sim_grow( items, *capacity, bytes );
}

/* ---- tokens ---- */

/* A lifetime below 0: for ever. */
static uint32_t sim_new_token( int owner, uint64_t client_id, int lifetime, int timeout )
{
    struct sim_token_t * t;
    net.tokens =
        (struct sim_token_t *) sim_list_room( net.tokens, &net.token_capacity, net.token_count, sizeof( *net.tokens ) );
    t = &net.tokens[net.token_count];
    memset( t, 0, sizeof( *t ) );
    t->serial = net.token_count;
    t->owner = (uint8_t) owner;
    t->client_id = client_id;
    t->create = sim_unix();
    t->expire = lifetime < 0 ? SIM_FOREVER : t->create + (uint64_t) lifetime;
    t->timeout = timeout;
    t->key = net.backend_key;
    sim_random_bytes( t->to_server_key, 32 );
    sim_random_bytes( t->to_client_key, 32 );
    return net.token_count++;
}

static void sim_name_server( uint32_t token, int at )
{
    struct sim_token_t * t = &net.tokens[token];
    if ( t->server_count < SIM_TOKEN_SERVERS )
        t->servers[t->server_count++] = (uint16_t) at;
}

static uint32_t sim_new_conn( uint32_t token )
{
    net.conns =
        (struct sim_conn_t *) sim_list_room( net.conns, &net.conn_capacity, net.conn_count, sizeof( *net.conns ) );
    memset( &net.conns[net.conn_count], 0, sizeof( *net.conns ) );
    net.conns[net.conn_count].token = token;
    return net.conn_count++;
}

static uint32_t sim_new_session( void )
{
    net.sessions = (struct sim_session_t *) sim_list_room( net.sessions, &net.session_capacity, net.session_count,
                                                           sizeof( *net.sessions ) );
    memset( &net.sessions[net.session_count], 0, sizeof( *net.sessions ) );
    return net.session_count++;
}

/* ---- which client may have a slot ---- */

static int sim_names( const struct sim_token_t * token, const struct sim_server_t * s )
{
    for ( int i = 0; i < token->server_count; i++ )
        if ( token->servers[i] == sim_server_at( s->port.index, 0 ) ||
             ( s->is_dual && token->servers[i] == sim_server_at( s->port.index, 1 ) ) )
            return 1;
    return 0;
}

static int sim_holds( const struct sim_token_t * token, int at )
{
    for ( uint32_t i = 0; i < token->holder_count && i < SIM_HOLDERS; i++ )
        if ( token->holders[i] == at )
            return 1;
    return token->holder_count > SIM_HOLDERS; /* more than are remembered */
}

static int sim_has_key( const struct sim_server_t * s, uint32_t key )
{
    for ( int i = 0; i < s->key_count; i++ )
        if ( s->keys[i] == key )
            return 1;
    return 0;
}

static int sim_is_banned( uint64_t client_id )
{
    return client_id >= 1000 && client_id < 1000 + SIM_CLIENTS && net.clients[client_id - 1000].is_banned;
}

/*  A never-expiring token may connect again when its record was evicted by as many newer ones as there is capacity
    for. */
static int sim_may_be_forgotten( const struct sim_server_t * s, const struct sim_token_t * token )
{
    return token->expire == SIM_FOREVER && !net.is_zero &&
           s->server->handshakes.used.never_count == s->server->handshakes.used.never_capacity;
}

static void sim_check_identity( struct sim_server_t * s, int slot, uint32_t serial )
{
    const struct sim_token_t * token = &net.tokens[serial];
    const nc_slot_t * raw = &s->server->memory.slot[slot];
    uint8_t expected[NETCODE_USER_DATA_BYTES];
    const void * user_data = netcode_server_client_user_data( s->server, slot );
    sim_user_data( serial, expected );
    SIM_CHECK( identity, serial > 0 && serial < net.token_count, "server %d, slot %d: no token has these user data",
               s->port.index, slot );
    SIM_CHECK( identity, memcmp( user_data, expected, sizeof( expected ) ) == 0,
               "server %d, slot %d: the user data are not token %u's", s->port.index, slot, serial );
    SIM_CHECK( identity, netcode_server_client_id( s->server, slot ) == token->client_id,
               "server %d, slot %d: id %" PRIu64 " with the user data of token %u, which names %" PRIu64, s->port.index,
               slot, netcode_server_client_id( s->server, slot ), serial, token->client_id );
    SIM_CHECK( identity,
               memcmp( raw->client_to_server_key, token->to_server_key, 32 ) == 0 &&
                   memcmp( raw->server_to_client_key, token->to_client_key, 32 ) == 0,
               "server %d, slot %d: the keys are not those of token %u", s->port.index, slot, serial );
    SIM_CHECK( identity, sim_names( token, s ), "token %u does not name server %d", serial, s->port.index );
}

static void sim_check_admission( struct sim_server_t * s, int slot, uint32_t serial )
{
    const struct sim_token_t * token = &net.tokens[serial];
    int at = sim_at_of( netcode_server_client_address( s->server, slot ) );
    uint64_t low = s->unix_low[0] < s->unix_low[1] ? s->unix_low[0] : s->unix_low[1];
    SIM_CHECK( presenter, sim_holds( token, at ),
               "server %d: token %u connects at address %d, where no client holds it", s->port.index, serial, at );
    SIM_CHECK( token_once, token->process_of_use[s->port.index] != s->process || sim_may_be_forgotten( s, token ),
               "token %u connects again on server %d, process %u", serial, s->port.index, s->process );
    SIM_CHECK( admission, !s->config.admit_callback || !sim_is_banned( token->client_id ),
               "server %d: id %" PRIu64 " was refused by the application", s->port.index, token->client_id );
    SIM_CHECK( admission, sim_has_key( s, token->key ), "server %d: token %u is sealed with key %u, which is gone",
               s->port.index, serial, token->key );
    SIM_CHECK( admission, token->expire > low, "server %d: token %u has expired", s->port.index, serial );
    SIM_CHECK( admission, !net.is_zero || token->expire >= s->start_unix + 30,
               "server %d: token %u may be older than its start", s->port.index, serial );
    for ( int i = 0; i < SIM_SLOTS; i++ )
        SIM_CHECK( one_id,
                   i == slot || !s->in_slot[i] ||
                       net.tokens[net.sessions[s->in_slot[i]].token].client_id != token->client_id,
                   "server %d: id %" PRIu64 " is in slots %d and %d", s->port.index, token->client_id, i, slot );
}

/* ---- where the slots are ---- */

static int sim_slot_at( struct sim_server_t * s, int slot )
{
    return sim_at_of( netcode_server_client_address( s->server, slot ) );
}

/* A slot has no address any more: another one took it, perhaps one that has ended since. */
static void sim_check_loss( struct sim_server_t * s, int slot, int at )
{
    int is_taken = 0;
    for ( int i = 0; i < s->slots; i++ )
        is_taken |= s->in_slot[i] && sim_slot_at( s, i ) == at;
    for ( int i = 0; i < s->leaving_count; i++ )
        is_taken |= s->leaving[i] == at;
    SIM_CHECK( path_kept, is_taken, "server %d, slot %d has lost address %d", s->port.index, slot, at );
    sim_total.handed_over++;
}

/* Looks where a slot is now. It moves only to where a probe came back from in this call. Returns whether it has moved. */
static int sim_follow( struct sim_server_t * s, int slot )
{
    struct sim_session_t * session = &net.sessions[s->in_slot[slot]];
    const struct sim_path_t * path;
    int at = sim_slot_at( s, slot );
    if ( at == session->at )
        return 0;
    if ( at == SIM_NOWHERE ) {
        sim_check_loss( s, slot, session->at );
        session->moved |= 1;
    } else {
        path = sim_find_path( s, slot, at );
        SIM_CHECK( path_proven, path && path->echoed == s->call,
                   "server %d, slot %d has moved to address %d, from which no probe came back", s->port.index, slot,
                   at );
        session->moved |= 2;
        sim_total.moves++;
    }
    session->at = at;
    return 1;
}

static void sim_check_alone( struct sim_server_t * s, int slot )
{
    int at = sim_slot_at( s, slot );
    for ( int i = 0; i < s->slots; i++ )
        SIM_CHECK( path_kept, i == slot || !s->in_slot[i] || at == SIM_NOWHERE || sim_slot_at( s, i ) != at,
                   "server %d: address %d leads to slots %d and %d", s->port.index, at, i, slot );
}

static void sim_on_connect( struct sim_server_t * s, int slot )
{
    uint32_t serial = (uint32_t) sim_load( (const uint8_t *) netcode_server_client_user_data( s->server, slot ), 4 );
    struct sim_session_t * session;
    sim_check_identity( s, slot, serial );
    sim_check_admission( s, slot, serial );
    sim_check_alone( s, slot );
    s->in_slot[slot] = sim_new_session();
    session = &net.sessions[s->in_slot[slot]];
    session->session = netcode_server_client_session( s->server, slot );
    session->token = serial;
    session->server = (uint8_t) s->port.index;
    session->slot = (uint8_t) slot;
    session->process = s->process;
    session->since = sim_unix();
    session->at = sim_at_of( netcode_server_client_address( s->server, slot ) );
    net.tokens[serial].process_of_use[s->port.index] = s->process;
    s->clients++;
    sim_total.connects++;
}

static void sim_on_slot( void * context, int slot, int connected )
{
    struct sim_server_t * s = (struct sim_server_t *) context;
    SIM_CHECK( callbacks_alternate, slot >= 0 && slot < s->slots && connected == ( s->in_slot[slot] == 0 ),
               "server %d, slot %d: reported %s", s->port.index, slot, connected ? "connected twice" : "left twice" );
    sim_trace( (uint64_t) slot << 8 | (uint64_t) connected );
    if ( connected ) {
        sim_on_connect( s, slot );
        return;
    }
    SIM_CHECK( slots_agree, netcode_server_client_session( s->server, slot ) == net.sessions[s->in_slot[slot]].session,
               "server %d, slot %d: another session leaves than the one that came", s->port.index, slot );
    for ( int i = 0; i < 2; i++ ) { /* where it was before this call, and where it is */
        if ( s->leaving_count < 4 * SIM_SLOTS )
            s->leaving[s->leaving_count++] = net.sessions[s->in_slot[slot]].at;
        sim_follow( s, slot );
    }
    s->in_slot[slot] = 0;
    s->clients--;
}

static int sim_on_admit( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    (void) context;
    (void) token_tag;
    (void) expire_timestamp;
    if ( !net.is_calm && sim_rarely( 4 ) )
        return NETCODE_ADMIT_LATER;
    return !sim_is_banned( client_id );
}

/* The lowest of the last 32 to 64 s of the server's own time: no handshake lives longer. */
static uint64_t sim_on_server_unix( void * context )
{
    struct sim_server_t * s = (struct sim_server_t *) context;
    uint64_t now = (uint64_t) ( (int64_t) sim_unix() + s->clock.unix_skew );
    int64_t span = s->server ? (int64_t) ( s->server->base.clock.now / 32.0 ) : 0;
    if ( span != s->unix_span ) {
        s->unix_low[1] = s->unix_low[0];
        s->unix_low[0] = now;
        s->unix_span = span;
    }
    if ( now < s->unix_low[0] )
        s->unix_low[0] = now;
    s->start_unix = s->server && !s->server->running ? now : s->start_unix;
    return now;
}

/* ---- whose key is it, when the ledger has found it used twice? ---- */

static void sim_explain_token( const struct sim_token_t * token, int to_server )
{
    printf( "the key is token %u's towards the %s: minted %" PRIu64 ", expires %" PRIu64 ", id %" PRIu64 "\n",
            token->serial, to_server ? "server" : "client", token->create, token->expire, token->client_id );
    for ( uint32_t i = 1; i < net.session_count; i++ )
        if ( net.sessions[i].token == token->serial )
            printf( "    session %u: server %d, process %u, address %d, at unix time %" PRIu64 "\n", i,
                    net.sessions[i].server, net.sessions[i].process, net.sessions[i].at, net.sessions[i].since );
    for ( uint32_t i = 1; i < net.conn_count; i++ )
        if ( net.conns[i].token == token->serial )
            printf( "    attempt %u: %d payloads, %s\n", i, net.conns[i].sent,
                    net.conns[i].is_hostile ? "the adversary's" : "its owner's" );
    for ( int i = 0; i < SIM_SERVERS; i++ )
        printf( "    server %d: process %u, started %" PRIu64 "\n", i, net.servers[i].process,
                net.servers[i].start_unix );
}

static void sim_explain( const uint8_t * key )
{
    for ( uint32_t i = 1; i < net.token_count; i++ )
        if ( memcmp( net.tokens[i].to_server_key, key, 32 ) == 0 ||
             memcmp( net.tokens[i].to_client_key, key, 32 ) == 0 )
            sim_explain_token( &net.tokens[i], memcmp( net.tokens[i].to_server_key, key, 32 ) == 0 );
}

/* ---- payloads ---- */

static int sim_payload_make( uint8_t * out, int direction, uint32_t id, int number )
{
    uint64_t key = sim_mix( sim.seed * 31 + (uint64_t) direction * 7 + ( (uint64_t) id << 20 ) + (uint64_t) number );
    int bytes = SIM_PAYLOAD_HEAD + (int) ( key % 64 );
    uint8_t * at = out;
    if ( key % 97 == 0 )
        bytes = NETCODE_MAX_PACKET_SIZE - (int) ( key / 97 % 100 );
    sim_put( &at, (uint64_t) direction, 1 );
    sim_put( &at, id, 4 );
    sim_put( &at, (uint64_t) number, 2 );
    sim_put( &at, (uint64_t) bytes, 2 );
    sim_put( &at, key, 8 );
    for ( int i = SIM_PAYLOAD_HEAD; i < bytes; i++ )
        out[i] = (uint8_t) ( ( key >> ( i % 8 * 8 ) ) + (uint64_t) i * 31 );
    return bytes;
}

/* Reads its sender and checks every byte; returns the number of the payload. */
static int sim_payload_check( const uint8_t * data, int bytes, int direction, uint32_t * id )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    int number = 0, right = bytes >= SIM_PAYLOAD_HEAD && data[0] == direction;
    if ( right ) {
        *id = (uint32_t) sim_load( data + 1, 4 );
        number = (int) sim_load( data + 5, 2 );
        right = sim_payload_make( expected, direction, *id, number ) == bytes &&
                memcmp( data, expected, (size_t) bytes ) == 0;
    }
    for ( int i = 0; right && i < 8; i++ )
        right = data[bytes + i] == 0; /* the readable bytes behind it */
    SIM_CHECK( payload_intact, right, "a payload of %d bytes is not what was sent", bytes );
    sim_total.payloads++;
    return number;
}

/* Notes a delivery in a set of bits; the second one fails. */
static void sim_deliver( uint8_t * delivered, uint16_t * count, int number, int sent, const char * whose )
{
    SIM_CHECK( payload_intact, number < sent, "%s payload %d was never sent", whose, number );
    SIM_CHECK( payload_once, !( delivered[number / 8] >> ( number % 8 ) & 1 ), "%s payload %d is delivered twice",
               whose, number );
    delivered[number / 8] |= (uint8_t) ( 1 << ( number % 8 ) );
    ( *count )++;
}

/*  A session and an attempt belong together. Two things SECURITY.md allows where one token is used twice and bases
    are random: a recorder of the first use can play it to a second client object, and a recorded packet of a client
    falls into the window of another session with probability 2^-15. Both are counted. Returns whether it is neither. */
static int sim_bind( uint32_t session, uint32_t conn, int direction )
{
    struct sim_session_t * s = &net.sessions[session];
    struct sim_conn_t * c = &net.conns[conn];
    SIM_CHECK( payload_session, s->token == c->token, "a payload of token %u reaches a session of token %u", c->token,
               s->token );
    if ( s->conn == 0 )
        s->conn = conn;
    if ( c->session == 0 )
        c->session = session;
    if ( s->conn == conn && c->session == session )
        return 1;
    if ( c->is_hostile || net.conns[s->conn].is_hostile )
        return 1; /* a holder of the keys can send anything: SECURITY.md */
    SIM_CHECK( payload_session, !net.is_zero, "a payload of attempt %u reaches session %u", conn, session );
    if ( direction == SIM_TO_CLIENT && net.conns[s->conn].object != c->object ) {
        sim_total.replayed_tokens++;
        return 0;
    }
    sim_total.limits++;
    printf( "seed %" PRIu64 ", event %" PRIu64 ": a payload of attempt %u, which spoke in session %u, in session %u of "
            "attempt %u\n",
            sim.seed, sim.event, conn, c->session, session, s->conn );
    sim_explain_token( &net.tokens[s->token], 1 );
    return 0;
}

static int sim_is_of_puppet( const struct sim_token_t * token )
{
    return token->owner == SIM_ADVERSARY || token->is_stolen;
}

static void sim_server_payload( struct sim_server_t * s, uint32_t session, uint8_t * data, int bytes )
{
    uint32_t conn = 0;
    int number;
    if ( bytes == 1 && sim_is_of_puppet( &net.tokens[net.sessions[session].token] ) ) { /* it says nothing */
        netcode_server_free_packet( s->server, data );
        return;
    }
    number = sim_payload_check( data, bytes, SIM_TO_SERVER, &conn );
    SIM_CHECK( payload_session, conn > 0 && conn < net.conn_count, "a payload names attempt %u", conn );
    sim_bind( session, conn, SIM_TO_SERVER );
    sim_deliver( net.conns[conn].delivered, &net.conns[conn].delivered_count, number, net.conns[conn].sent,
                 "a client's" );
    if ( s->is_lazy && sim_rarely( 8 ) && s->held_count < 4 )
        s->held[s->held_count++] = data;
    else
        netcode_server_free_packet( s->server, data );
}

/* What a server said to everybody: once to each, and by the server that this client talks to. */
static void sim_client_broadcast( struct sim_client_t * c, uint32_t conn, const uint8_t * data, int bytes )
{
    struct sim_conn_t * to = &net.conns[conn];
    uint32_t id = 0;
    int server = sim_payload_check( data, bytes, SIM_TO_ALL, &id );
    SIM_CHECK( payload_session, sim_at_of( &c->client->server_address ) % SIM_SERVERS == server || c->conn != conn,
               "client %d heard a broadcast of server %d", c->port.index, server );
    for ( uint32_t i = 0; i < to->broadcast_count && i < SIM_BROADCASTS; i++ )
        SIM_CHECK( payload_once, to->broadcasts[i] != id, "broadcast %u is delivered twice to client %d", id,
                   c->port.index );
    to->broadcasts[to->broadcast_count++ % SIM_BROADCASTS] = id;
}

static void sim_client_payload( struct sim_client_t * c, uint32_t conn, uint8_t * data, int bytes )
{
    uint32_t session = 0;
    int number;
    if ( data[0] == SIM_TO_ALL ) {
        sim_client_broadcast( c, conn, data, bytes );
        netcode_client_free_packet( c->client, data );
        return;
    }
    number = sim_payload_check( data, bytes, SIM_TO_CLIENT, &session );
    SIM_CHECK( payload_session, session > 0 && session < net.session_count, "a payload names session %u", session );
    if ( sim_bind( session, conn, SIM_TO_CLIENT ) )
        sim_deliver( net.sessions[session].delivered, &net.sessions[session].delivered_count, number,
                     net.sessions[session].sent, "a server's" );
    netcode_client_free_packet( c->client, data );
}

/* ---- events, in their order ---- */

/* The record of a library's session number on this process. */
static uint32_t sim_find_session( const struct sim_server_t * s, uint64_t session )
{
    for ( uint32_t i = net.session_count - 1; i > 0; i-- )
        if ( net.sessions[i].session == session && net.sessions[i].server == s->port.index &&
             net.sessions[i].process == s->process )
            return i;
    return 0;
}

static void sim_server_read( struct sim_server_t * s, const struct netcode_event_t * event )
{
    uint64_t * open = &s->event_open[event->client_index];
    uint32_t record = (uint32_t) *open;
    if ( event->type == NETCODE_EVENT_CONNECTED ) {
        SIM_CHECK( events_agree, *open == 0 && event->session > s->event_last, "server %d: CONNECTED, session %" PRIu64,
                   s->port.index, event->session );
        s->event_last = event->session;
        *open = record = sim_find_session( s, event->session );
        SIM_CHECK( events_agree, record != 0 && net.tokens[net.sessions[record].token].client_id == event->client_id,
                   "server %d: CONNECTED of a session that no callback reported", s->port.index );
        return;
    }
    SIM_CHECK( events_agree, record != 0 && net.sessions[record].session == event->session,
               "server %d: event %d of session %" PRIu64 " out of its order", s->port.index, event->type,
               event->session );
    if ( event->type == NETCODE_EVENT_PAYLOAD )
        sim_server_payload( s, record, event->data, event->bytes );
    else if ( event->type == NETCODE_EVENT_MOVED ) {
        SIM_CHECK( events_agree, net.sessions[record].moved, "server %d, slot %d: MOVED, and it has not", s->port.index,
                   event->client_index );
        net.sessions[record].moved = 0;
    } else
        *open = 0;
}

static void sim_server_read_all( struct sim_server_t * s )
{
    struct netcode_event_t event;
    while ( s->held_count && sim_rarely( 2 ) )
        netcode_server_free_packet( s->server, s->held[--s->held_count] );
    while ( netcode_server_next_event( s->server, &event ) )
        sim_server_read( s, &event );
    for ( int i = 0; i < s->slots; i++ )
        SIM_CHECK( events_agree, (uint32_t) s->event_open[i] == s->in_slot[i] && net.sessions[s->in_slot[i]].moved < 2,
                   "server %d, slot %d: the events say otherwise than the callbacks", s->port.index, i );
}

static uint32_t sim_client_conns[SIM_CLIENTS][16]; /* the attempt behind each of a client's last session numbers */

static void sim_client_read_all( struct sim_client_t * c )
{
    struct netcode_event_t event;
    while ( c->client && netcode_client_next_event( c->client, &event ) ) {
        switch ( event.type ) {
        case NETCODE_EVENT_CONNECTED:
            SIM_CHECK( events_agree, c->event_open == 0 && event.session > c->event_last,
                       "client %d: CONNECTED, session %" PRIu64, c->port.index, event.session );
            c->event_open = c->event_last = event.session;
            break;
        case NETCODE_EVENT_PAYLOAD:
            SIM_CHECK( events_agree, c->event_open == event.session, "client %d: a payload of session %" PRIu64,
                       c->port.index, event.session );
            sim_client_payload( c, sim_client_conns[c->port.index][event.session % 16], event.data, event.bytes );
            break;
        default:
            SIM_CHECK( events_agree, c->event_open == event.session || c->event_open == 0,
                       "client %d: DISCONNECTED, session %" PRIu64, c->port.index, event.session );
            c->event_open = 0;
        }
    }
}

/* ---- the client's arrows. Standard: Client State Machine ---- */

static int sim_is_arrow( int from, int to )
{
    switch ( from ) {
    case NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST:
        return to == NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE || to == NETCODE_CLIENT_STATE_CONNECTION_DENIED ||
               to == NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT ||
               to == NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT || /* the token's last server, before others */
               to == NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED || to == NETCODE_CLIENT_STATE_DISCONNECTED;
    case NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE:
        return to == NETCODE_CLIENT_STATE_CONNECTED || to == NETCODE_CLIENT_STATE_CONNECTION_DENIED ||
               to == NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT ||
               to == NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST ||
               to == NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED || to == NETCODE_CLIENT_STATE_DISCONNECTED;
    case NETCODE_CLIENT_STATE_CONNECTED:
        return to == NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT || to == NETCODE_CLIENT_STATE_DISCONNECTED;
    default:
        return to == NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST ||
               to == NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN;
    }
}

/*  Is there a session of this client's token in its slot of its server? The newest one; an older one only where the
    token was used by another client object before, whose recorded session can be played to this one: SECURITY.md. */
static int sim_has_session( const struct sim_client_t * c )
{
    int server = sim_at_of( &c->client->server_address ) % SIM_SERVERS;
    for ( uint32_t i = net.session_count - 1; i > 0; i-- ) {
        if ( net.sessions[i].token != c->token || net.sessions[i].server != server )
            continue;
        if ( net.sessions[i].slot == netcode_client_index( c->client ) )
            return 1;
        if ( net.tokens[c->token].objects < 2 )
            return 0;
    }
    return 0;
}

static void sim_on_state( void * context, int previous, int state )
{
    struct sim_client_t * c = (struct sim_client_t *) context;
    SIM_CHECK( callbacks_alternate, previous == c->state && sim_is_arrow( previous, state ),
               "client %d: reported %s -> %s while it was %s", c->port.index, netcode_client_state_name( previous ),
               netcode_client_state_name( state ), netcode_client_state_name( c->state ) );
    c->state = state;
    sim_trace( (uint64_t) ( state + 16 ) );
    if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
        SIM_CHECK( client_connected, sim_has_session( c ),
                   "client %d believes to be connected with token %u in slot %d", c->port.index, c->token,
                   netcode_client_index( c->client ) );
        net.tokens[c->token].was_connected_with = 1;
    }
    SIM_CHECK( undisturbed, !net.is_calm || !c->is_watched || previous != NETCODE_CLIENT_STATE_CONNECTED,
               "client %d is lost: %s", c->port.index, netcode_client_state_name( state ) );
}

#endif
