/*  The machines and the network between them, in simulated time: loss, delay, copies, cuts in one direction or both,
    sockets that fail, and an adversary's recorder on every wire. */

#ifndef SIM_NET_H
#define SIM_NET_H

#include "wire.h"

enum {
    SIM_SLOTS = 8,
    SIM_KEYS = 3,
    SIM_DATAGRAMS = 12000,
    SIM_CAPACITY = 1304,
    SIM_SERVER_INBOX = 3000,
    SIM_CLIENT_INBOX = 256,
    SIM_SEEN = 384,
    SIM_TAPES = 12,
    SIM_TAPE_LENGTH = 20,
    SIM_PAYLOADS = 1024,
    SIM_PATHS = 16,
    SIM_PROBES = 8,         /* of one path that are remembered */
    SIM_MESSAGES = 1 << 14, /* of one connection on one channel */
    SIM_CHANNELS = 3,
    SIM_BROADCASTS = 8
};

/* Where a datagram comes from. */
enum { SIM_GENUINE, SIM_REPLAYED, SIM_REFLECTED, SIM_FORGED, SIM_JUNK, SIM_EMPTY, SIM_OVERSIZED, SIM_OWN, SIM_STOLEN };

struct sim_datagram_t {
    int64_t due;
    uint64_t order;
    int32_t next;
    int32_t from;
    int32_t to;
    int32_t bytes;
    int32_t origin;
    uint8_t data[SIM_CAPACITY];
};

/* A machine's place on the network. */
struct sim_port_t {
    int is_server;
    int index;
    int is_up;   /* what it sends gets out */
    int is_open; /* an object owns the socket */
    int is_lost; /* its network is gone, until it takes another */
    int head;
    int tail;
    int count;
    int taken; /* datagrams and errors that the present call has received */
    int asked; /* receive calls that the present call has made */
};

/* What a machine's clocks show. */
struct sim_clock_t {
    int64_t shown; /* ticks */
    int64_t seen;  /* the true tick when it was looked at last */
    int64_t still_until;
    int64_t unix_skew; /* seconds */
    int rate;          /* 64ths too fast */
};

/* One stay of one client, as the server's callbacks report. */
/* Messages from one end of one connection, channel by channel. */
struct sim_letters_t {
    uint32_t written[SIM_CHANNELS];
    uint32_t heard[SIM_CHANNELS]; /* by the other end */
};

struct sim_session_t {
    uint64_t session;
    uint64_t since; /* unix time */
    uint32_t token;
    uint32_t conn; /* whose payloads came first; 0: none yet */
    int32_t at;
    uint32_t process;
    uint16_t sent;
    uint8_t server;
    uint8_t slot;
    uint8_t moved;                       /* not reported: 1, its address was taken away; 2, it has another */
    uint8_t delivered[SIM_PAYLOADS / 8]; /* of the server's payloads */
    uint16_t delivered_count;
    struct sim_letters_t letters;
};

/* One attempt of one client to connect. */
struct sim_conn_t {
    uint32_t token;
    uint32_t object;                     /* which client object, of all that there ever were */
    uint32_t session;                    /* whose payloads came first */
    uint32_t broadcasts[SIM_BROADCASTS]; /* the last ones heard */
    uint32_t broadcast_count;
    int is_hostile; /* the adversary's, that holds the keys and may send to whichever session has them */
    uint16_t sent;
    uint8_t delivered[SIM_PAYLOADS / 8];
    uint16_t delivered_count;
    struct sim_letters_t letters;
};

/* An address from which packets of a session came that were newer than all before, though it is not the session's. */
struct sim_path_t {
    int at;
    uint32_t bytes_in;  /* of such packets */
    uint32_t bytes_out; /* of probes */
    uint32_t call;      /* of the last such packet */
    uint32_t echoed;    /* the call in which a probe came back from there */
    uint32_t probes;
    uint64_t values[SIM_PROBES];
    double times[SIM_PROBES];
};

struct sim_server_t {
    struct sim_port_t port;
    struct sim_clock_t clock;
    struct netcode_server_t * server;
    struct netcode_server_config_t config;
    uint32_t process;
    int is_dual;
    int slots;
    int is_lazy; /* the application reads its events rarely */
    int is_chatty;
    uint32_t keys[SIM_KEYS];
    int key_count;
    uint32_t call; /* counts calls: what was said of addresses in former ones is void */
    uint32_t stamp[SIM_ADDRESSES];
    uint32_t bytes_in[SIM_ADDRESSES];
    uint32_t bytes_out[SIM_ADDRESSES];
    uint32_t in_slot[SIM_SLOTS]; /* session, or 0 */
    uint32_t path_of[SIM_SLOTS]; /* the same at the start of this call: whose paths these are, */
    int was_at[SIM_SLOTS];       /* and where it was */
    struct sim_path_t paths[SIM_SLOTS][SIM_PATHS];
    int clients;
    int leaving[4 * SIM_SLOTS]; /* the addresses of slots that ended in this call */
    int leaving_count;
    uint64_t event_open[SIM_SLOTS];
    uint64_t event_last;
    uint64_t connects;
    uint64_t handshakes;  /* noted in the totals already */
    uint64_t unix_low[2]; /* the lowest unix time that it was given, in this and the last span of 32 s */
    int64_t unix_span;
    uint64_t start_unix;
    int64_t pause_until;
    int64_t next_deed;
    int held_count;
    uint8_t * held[4]; /* payloads that the application keeps */
};

enum { SIM_PHASE_AWAY, SIM_PHASE_TRYING, SIM_PHASE_IN };

struct sim_client_t {
    struct sim_port_t port;
    struct sim_clock_t clock;
    struct netcode_client_t * client;
    uint32_t object; /* counts all that there ever were, so that two are distinguished */
    int router;      /* that it is behind: at first its own */
    int port_number; /* that the router shows */
    int state;       /* as reported by the callback */
    int phase;
    int is_lazy;
    uint32_t token;
    uint32_t conn;
    int64_t began; /* to connect */
    int64_t next_deed;
    int64_t leave_at;
    int64_t pause_until;
    int64_t found_at;                      /* when its machine reports a new network after it lost one */
    const struct sim_client_t * took_from; /* the one that had its address, before its last move in a calm */
    int talk;                              /* a payload each so many ticks */
    int64_t talk_at;
    int is_banned;
    int is_watched; /* it must connect within the bound, and stay */
    int deadline_met;
    uint64_t event_open;
    uint64_t event_last;
};

struct sim_seen_t {
    int from;
    int to;
    int bytes;
    uint8_t data[SIM_DATAGRAM_BYTES];
};

struct sim_tape_t {
    int from;
    int to;
    int count;
    int64_t ended;
    struct sim_seen_t items[SIM_TAPE_LENGTH];
};

struct sim_weather_t {
    int latency; /* ticks */
    int jitter;
    int loss; /* in a thousand */
    int copies;
    int late;
    int receive_faults; /* in ten thousand */
    int error_places;
    int send_faults;
    int alloc_faults; /* in a hundred, of creates and starts */
    int hostility;    /* hostile acts a second, about */
    int floods;
    int clock_faults;
    int moves;  /* in ten thousand steps of a client */
    int losses; /* of its network, the same */
    int step;
    int drops_responses;                 /* a firewall does */
    uint32_t cut_to_server[SIM_SERVERS]; /* a bit for each router */
    uint32_t cut_to_client[SIM_SERVERS];
};

struct sim_mail_t {
    int bytes;
    uint8_t data[SIM_DATAGRAM_BYTES];
};

static struct {
    struct sim_server_t servers[SIM_SERVERS];
    struct sim_client_t clients[SIM_CLIENTS];
    struct sim_weather_t weather;
    int is_zero;  /* sequences start at zero everywhere */
    int is_calm;  /* no faults, no floods: what is promised to honest clients holds */
    int is_quiet; /* none sends, so that what is in flight can arrive */
    uint32_t backend_key;
    struct sim_token_t * tokens; /* the first is not used; so with the next two */
    uint32_t token_count;
    uint32_t token_capacity;
    struct sim_session_t * sessions;
    uint32_t session_count;
    uint32_t session_capacity;
    struct sim_conn_t * conns;
    uint32_t conn_count;
    uint32_t conn_capacity;
    struct sim_datagram_t * datagrams;
    int free_datagram;
    int heap[SIM_DATAGRAMS];
    int heap_count;
    uint64_t order;
    struct sim_seen_t seen[SIM_SEEN];
    uint32_t seen_count;
    struct sim_tape_t tapes[SIM_TAPES];
    int tape_next;
    struct sim_mail_t mail[SIM_PUPPETS];
    uint8_t puppet_at[SIM_ADDRESSES];       /* the reader of what is sent there: puppet + 1 */
    uint8_t behind[SIM_CLIENTS][SIM_PORTS]; /* the one that has this port of this router: client + 1 */
    int live_blocks;
    int fail_allocation; /* counts down; 0: none fails */
} net;

/* ---- which cell of the table? ---- */

static int sim_server_state( const struct sim_server_t * s )
{
    if ( !s->server )
        return SIM_SERVER_absent;
    if ( !s->server->running )
        return SIM_SERVER_stopped;
    if ( s->server->active.count == 0 )
        return SIM_SERVER_empty;
    return s->server->active.count == s->server->memory.slot_count ? SIM_SERVER_full : SIM_SERVER_some;
}

static int sim_client_state( const struct sim_client_t * c )
{
    return c->client ? c->client->state + ( SIM_CLIENT_disconnected - NETCODE_CLIENT_STATE_DISCONNECTED )
                     : SIM_CLIENT_absent;
}

static void sim_server_event( const struct sim_server_t * s, int kind )
{
    int state = sim_server_state( s );
    sim_total.server_table[kind][state]++;
    sim_note( 1, s->port.index, state, sim_server_kinds[kind] );
    sim_trace( (uint64_t) kind << 16 | (uint64_t) state << 8 | (uint64_t) s->port.index );
}

static void sim_client_event( const struct sim_client_t * c, int kind )
{
    int state = sim_client_state( c );
    sim_total.client_table[kind][state]++;
    sim_note( 0, c->port.index, state, sim_client_kinds[kind] );
    sim_trace( (uint64_t) kind << 24 | (uint64_t) state << 8 | (uint64_t) c->port.index );
}

/* ---- datagrams on their way ---- */

static void sim_net_reset( void )
{
    if ( !net.datagrams )
        net.datagrams = (struct sim_datagram_t *) sim_grow( NULL, SIM_DATAGRAMS, sizeof( *net.datagrams ) );
    for ( int i = 0; i < SIM_DATAGRAMS; i++ )
        net.datagrams[i].next = i + 1 < SIM_DATAGRAMS ? i + 1 : -1;
    net.free_datagram = 0;
    net.heap_count = 0;
}

static int sim_take_datagram( void )
{
    int index = net.free_datagram;
    if ( index >= 0 )
        net.free_datagram = net.datagrams[index].next;
    return index;
}

static void sim_give_datagram( int index )
{
    net.datagrams[index].next = net.free_datagram;
    net.free_datagram = index;
}

static int sim_is_before( int a, int b )
{
    const struct sim_datagram_t * x = &net.datagrams[a];
    const struct sim_datagram_t * y = &net.datagrams[b];
    return x->due != y->due ? x->due < y->due : x->order < y->order;
}

static void sim_heap_insert( int index )
{
    int at = net.heap_count++;
    for ( ; at && sim_is_before( index, net.heap[( at - 1 ) / 2] ); at = ( at - 1 ) / 2 )
        net.heap[at] = net.heap[( at - 1 ) / 2];
    net.heap[at] = index;
}

static int sim_heap_remove( void )
{
    int first = net.heap[0], last = net.heap[--net.heap_count], at = 0;
    for ( ;; ) {
        int child = 2 * at + 1;
        if ( child >= net.heap_count )
            break;
        if ( child + 1 < net.heap_count && sim_is_before( net.heap[child + 1], net.heap[child] ) )
            child++;
        if ( !sim_is_before( net.heap[child], last ) )
            break;
        net.heap[at] = net.heap[child];
        at = child;
    }
    net.heap[at] = last;
    return first;
}

static int sim_server_kind( const struct sim_datagram_t * d )
{
    static const int genuine[] = { SIM_S_GOT_REQUEST,    SIM_S_GOT_REFLECTED, SIM_S_GOT_REFLECTED, SIM_S_GOT_RESPONSE,
                                   SIM_S_GOT_KEEP_ALIVE, SIM_S_GOT_PAYLOAD,   SIM_S_GOT_DISCONNECT };
    int type = d->bytes > 0 ? d->data[0] & 15 : 0;
    switch ( d->origin ) {
    case SIM_GENUINE: return genuine[type];
    case SIM_REPLAYED: return SIM_S_GOT_REPLAYED;
    case SIM_REFLECTED: return SIM_S_GOT_REFLECTED;
    case SIM_FORGED: return SIM_S_GOT_FORGED;
    case SIM_EMPTY: return SIM_S_GOT_EMPTY;
    case SIM_OVERSIZED: return SIM_S_GOT_OVERSIZED;
    case SIM_STOLEN: return SIM_S_GOT_STOLEN;
    case SIM_OWN:
        return type == NETCODE_PACKET_REQUEST    ? SIM_S_GOT_OWN_REQUEST
               : type == NETCODE_PACKET_RESPONSE ? SIM_S_GOT_OWN_RESPONSE
                                                 : SIM_S_GOT_OWN_OTHER;
    default: return SIM_S_GOT_JUNK;
    }
}

static int sim_client_kind( const struct sim_datagram_t * d )
{
    static const int genuine[] = { SIM_C_GOT_REFLECTED,  SIM_C_GOT_DENIED,  SIM_C_GOT_CHALLENGE, SIM_C_GOT_REFLECTED,
                                   SIM_C_GOT_KEEP_ALIVE, SIM_C_GOT_PAYLOAD, SIM_C_GOT_DISCONNECT };
    switch ( d->origin ) {
    case SIM_GENUINE: return genuine[d->data[0] & 15];
    case SIM_REPLAYED: return SIM_C_GOT_REPLAYED;
    case SIM_REFLECTED: return SIM_C_GOT_REFLECTED;
    case SIM_FORGED: return SIM_C_GOT_FORGED;
    case SIM_EMPTY: return SIM_C_GOT_EMPTY;
    case SIM_OVERSIZED: return SIM_C_GOT_OVERSIZED;
    default: return SIM_C_GOT_JUNK;
    }
}

/* The machine behind an address, or NULL. A router forgets the ports that it gave before. */
static struct sim_port_t * sim_find_port( int at )
{
    int n = at - SIM_AT_CLIENTS, client;
    if ( at < SIM_AT_CLIENTS ) {
        struct sim_server_t * s = &net.servers[at % SIM_SERVERS];
        return at < SIM_SERVERS || s->is_dual ? &s->port : NULL;
    }
    client = at < SIM_AT_STRANGERS ? net.behind[n / SIM_PORTS % SIM_CLIENTS][n % SIM_PORTS] : 0;
    return client && !net.clients[client - 1].port.is_lost ? &net.clients[client - 1].port : NULL;
}

static int sim_client_now( const struct sim_client_t * c, int six )
{
    return sim_client_at( c->router, six, c->port_number );
}

/* From now on the client is at this port of this router. The client that had it gets this one's old one. */
static void sim_settle( struct sim_client_t * c, int router, int port )
{
    int other = net.behind[router][port];
    net.behind[c->router][c->port_number] = (uint8_t) other;
    if ( other ) {
        net.clients[other - 1].router = c->router;
        net.clients[other - 1].port_number = c->port_number;
    }
    net.behind[router][port] = (uint8_t) ( c->port.index + 1 );
    c->router = router;
    c->port_number = port;
}

static void sim_arrive( int index )
{
    struct sim_datagram_t * d = &net.datagrams[index];
    struct sim_port_t * port = sim_find_port( d->to );
    sim_total.datagrams++;
    if ( port && port->is_server )
        sim_server_event( &net.servers[port->index], sim_server_kind( d ) );
    else if ( port )
        sim_client_event( &net.clients[port->index], sim_client_kind( d ) );
    if ( !port || !port->is_open || port->count >= ( port->is_server ? SIM_SERVER_INBOX : SIM_CLIENT_INBOX ) ) {
        sim_give_datagram( index );
        return;
    }
    d->next = -1;
    if ( port->count++ )
        net.datagrams[port->tail].next = index;
    else
        port->head = index;
    port->tail = index;
}

static void sim_net_deliver( void )
{
    while ( net.heap_count && net.datagrams[net.heap[0]].due <= sim.tick )
        sim_arrive( sim_heap_remove() );
}

static void sim_port_empty( struct sim_port_t * port )
{
    while ( port->count ) {
        int index = port->head;
        port->head = net.datagrams[index].next;
        port->count--;
        sim_give_datagram( index );
    }
}

/* Sends it on its way, to arrive after `delay` ticks. `bytes` may be more than what is kept of it. */
static void sim_post( int from, int to, const uint8_t * data, int bytes, int origin, int delay )
{
    int index = sim_take_datagram();
    struct sim_datagram_t * d;
    if ( index < 0 )
        return;
    d = &net.datagrams[index];
    d->from = from;
    d->to = to;
    d->bytes = bytes;
    d->origin = origin;
    d->due = sim.tick + delay;
    d->order = net.order++;
    if ( bytes > 0 )
        memcpy( d->data, data, (size_t) ( bytes < SIM_CAPACITY ? bytes : SIM_CAPACITY ) );
    sim_heap_insert( index );
}

/* ---- what the adversary sees ---- */

static void sim_tape( int from, int to, const uint8_t * data, int bytes )
{
    struct sim_tape_t * tape = NULL;
    for ( int i = 0; i < SIM_TAPES && !tape; i++ )
        if ( net.tapes[i].count && net.tapes[i].from == from && net.tapes[i].to == to )
            tape = &net.tapes[i];
    if ( !tape && data[0] == NETCODE_PACKET_REQUEST && sim_rarely( 4 ) ) {
        tape = &net.tapes[net.tape_next++ % SIM_TAPES];
        tape->from = from;
        tape->to = to;
        tape->count = 0;
    }
    if ( !tape || tape->count == SIM_TAPE_LENGTH || ( tape->count > 2 && data[0] == NETCODE_PACKET_REQUEST ) )
        return;
    tape->items[tape->count].bytes = bytes;
    memcpy( tape->items[tape->count++].data, data, (size_t) bytes );
    tape->ended = sim.tick;
}

static void sim_witness( int from, int to, const uint8_t * data, int bytes )
{
    int puppet = net.puppet_at[to];
    if ( sim_rarely( 3 ) ) {
        struct sim_seen_t * seen =
            &net.seen[net.seen_count < SIM_SEEN ? net.seen_count : (uint32_t) sim_below( SIM_SEEN )];
        net.seen_count += net.seen_count < SIM_SEEN;
        seen->from = from;
        seen->to = to;
        seen->bytes = bytes;
        memcpy( seen->data, data, (size_t) bytes );
    }
    if ( !sim_is_server_at( from ) )
        sim_tape( from, to, data, bytes );
    else if ( puppet && ( ( data[0] & 15 ) == NETCODE_PACKET_CHALLENGE || net.mail[puppet - 1].bytes == 0 ) ) {
        net.mail[puppet - 1].bytes = bytes;
        memcpy( net.mail[puppet - 1].data, data, (size_t) bytes );
    }
}

/* ---- the wire ---- */

static int sim_is_cut( int from, int to )
{
    int is_answer = sim_is_server_at( from ), client = is_answer ? to : from;
    int server = ( is_answer ? from : to ) % SIM_SERVERS;
    const uint32_t * cut = is_answer ? net.weather.cut_to_client : net.weather.cut_to_server;
    if ( client < SIM_AT_CLIENTS || client >= SIM_AT_STRANGERS )
        return 0;
    return cut[server] >> ( ( client - SIM_AT_CLIENTS ) / SIM_PORTS % SIM_CLIENTS ) & 1;
}

static void sim_carry( int from, int to, const uint8_t * data, int bytes )
{
    const struct sim_weather_t * w = &net.weather;
    int fate = sim_below( 1000 );
    int delay = w->latency + ( w->jitter ? sim_below( w->jitter ) : 0 );
    sim_trace_datagram( data, bytes );
    sim_trace( (uint64_t) from << 32 | (uint64_t) to );
    sim_witness( from, to, data, bytes );
    if ( sim_is_cut( from, to ) || fate < w->loss ||
         ( w->drops_responses && bytes && ( data[0] & 15 ) == NETCODE_PACKET_RESPONSE ) )
        return;
    if ( fate >= 1000 - w->late )
        delay += sim_below( SIM_SECOND );
    sim_post( from, to, data, bytes, SIM_GENUINE, delay );
    if ( fate >= 500 && fate < 500 + w->copies )
        sim_post( from, to, data, bytes, SIM_GENUINE, delay + sim_below( SIM_SECOND ) );
}

/* ---- sockets ---- */

static int sim_happens( int in_ten_thousand )
{
    return in_ten_thousand && sim_below( 10000 ) < in_ten_thousand;
}

static void sim_fault( const struct sim_port_t * port, int server_kind, int client_kind )
{
    sim_total.faults++;
    if ( port->is_server )
        sim_server_event( &net.servers[port->index], server_kind );
    else
        sim_client_event( &net.clients[port->index], client_kind );
}

/* An error in the place of a datagram: an ICMP message about something that was sent, perhaps forged. */
static void sim_fill_error( const struct sim_port_t * port, struct netcode_datagram_t * place )
{
    sim_fault( port, SIM_S_ERROR_PLACE, SIM_C_ERROR_PLACE );
    memset( &place->address, 0, sizeof( place->address ) );
    if ( !port->is_server && sim_rarely( 2 ) )
        place->address = net.clients[port->index].client->server_address;
    place->bytes = 0;
    place->status = NETCODE_DATAGRAM_ERROR;
    place->error = 111;
}

/* ---- paths: what a server may know of addresses that are not a session's ---- */

static struct sim_path_t * sim_find_path( struct sim_server_t * s, int slot, int at )
{
    for ( int i = 0; i < SIM_PATHS; i++ )
        if ( s->paths[slot][i].at == at )
            return &s->paths[slot][i];
    return NULL;
}

/* A new packet of a session comes from elsewhere, perhaps with a probe that was sent to there: 0 is none. */
static void sim_hear_path( struct sim_server_t * s, int slot, const struct sim_datagram_t * d, uint64_t value )
{
    struct sim_path_t * path = sim_find_path( s, slot, d->from );
    if ( !path ) { /* in place of the one that was silent for longest */
        path = &s->paths[slot][0];
        for ( int i = 1; i < SIM_PATHS; i++ )
            if ( s->paths[slot][i].call < path->call )
                path = &s->paths[slot][i];
        memset( path, 0, sizeof( *path ) );
        path->at = d->from;
    }
    path->call = s->call;
    path->bytes_in += (uint32_t) d->bytes;
    for ( int i = 0; i < SIM_PROBES && value >> 63; i++ )
        if ( path->values[i] == value && s->server->base.clock.now - path->times[i] <= 2.0 )
            path->echoed = s->call;
}

/*  May this address of a slot be taken away in this call, so that what comes from there later in the call is a stray's? Then
    either the slot has been heard from elsewhere, or another from there. */
static int sim_may_lose( struct sim_server_t * s, int slot, int at )
{
    int may = s->paths[slot][0].call != 0;
    for ( int i = 0; i < SIM_SLOTS && !may; i++ )
        may = s->paths[i][0].call && sim_find_path( s, i, at );
    return may;
}

/*  Is this a packet of a session at another address, newer than all that the server has accepted? Only such count. Sessions
    below 2^20 do not roam: PATHS.md. */
static void sim_see_stray( struct sim_server_t * s, const struct sim_datagram_t * d )
{
    uint8_t body[SIM_CAPACITY];
    int type = d->data[0] & 15, head = 1 + ( d->data[0] >> 4 ), bytes;
    if ( d->bytes < head + 16 || d->bytes > SIM_DATAGRAM_BYTES || head > 9 || type < NETCODE_PACKET_KEEP_ALIVE )
        return;
    for ( int i = 0; i < SIM_SLOTS; i++ ) {
        const struct sim_session_t * session = &net.sessions[s->path_of[i]];
        uint64_t newest, sequence = sim_load( d->data + 1, head - 1 );
        if ( !s->in_slot[i] || s->in_slot[i] != s->path_of[i] ||
             ( s->was_at[i] == d->from && !sim_may_lose( s, i, d->from ) ) )
            continue;
        newest = s->server->memory.slot[i].replay.newest;
        if ( newest >> 20 == 0 || sequence <= newest || sequence - newest > 1 << 17 )
            continue;
        bytes = sim_open( d->data, d->bytes, net.tokens[session->token].to_server_key, body );
        if ( bytes >= 0 )
            sim_hear_path( s, i, d, bytes == 8 && type == NETCODE_PACKET_KEEP_ALIVE ? sim_load( body, 8 ) : 0 );
    }
}

/* A new call begins: a client that has a slot now has its paths. */
static void sim_assign_paths( struct sim_server_t * s )
{
    for ( int i = 0; i < s->slots; i++ ) {
        s->was_at[i] = net.sessions[s->in_slot[i]].at;
        if ( s->path_of[i] == s->in_slot[i] )
            continue;
        s->path_of[i] = s->in_slot[i];
        memset( s->paths[i], 0, sizeof( s->paths[i] ) );
    }
}

/*  Is this sent to where a session's packets came from, other than its address? It must be a probe then, and no more bytes of
    them than came from there; unless the slot was there when this call began, or a probe has come back in it. */
static int sim_sends_probe( struct sim_server_t * s, int to, const uint8_t * data, int bytes )
{
    uint8_t body[SIM_CAPACITY];
    int is_probe, is_there;
    for ( int i = 0; i < s->slots; i++ ) {
        const struct sim_session_t * session = &net.sessions[s->path_of[i]];
        struct sim_path_t * path = s->path_of[i] ? sim_find_path( s, i, to ) : NULL;
        if ( !path || sim_open( data, bytes, net.tokens[session->token].to_client_key, body ) < 0 )
            continue;
        is_probe = ( data[0] & 15 ) == NETCODE_PACKET_KEEP_ALIVE && body[7] >> 7;
        is_there = s->was_at[i] == to || path->echoed == s->call;
        SIM_CHECK( path_proven, is_probe || is_there, "server %d, slot %d: a packet of type %d leaves for address %d",
                   s->port.index, i, data[0] & 15, to );
        if ( !is_probe )
            return 1;
        path->bytes_out += is_there ? 0 : (uint32_t) bytes;
        SIM_CHECK( amplification, path->bytes_out <= path->bytes_in,
                   "server %d, slot %d: probes of %u bytes to address %d, from which %u came", s->port.index, i,
                   path->bytes_out, to, path->bytes_in );
        path->values[path->probes % SIM_PROBES] = sim_load( body, 8 );
        path->times[path->probes++ % SIM_PROBES] = s->server->base.clock.now;
        sim_total.probes += (uint64_t) !is_there;
        return 1;
    }
    return 0;
}

static void sim_fill_place( struct sim_port_t * port, struct netcode_datagram_t * place )
{
    int index = port->head;
    const struct sim_datagram_t * d = &net.datagrams[index];
    place->address = sim_address_of( d->from );
    if ( d->from == SIM_NOWHERE )
        place->address.port = 0;
    place->status = d->bytes > place->capacity ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK;
    place->bytes = d->bytes > place->capacity ? place->capacity : d->bytes;
    if ( place->bytes > 0 )
        memcpy( place->data, d->data, (size_t) place->bytes );
    if ( port->is_server ) {
        struct sim_server_t * s = &net.servers[port->index];
        if ( s->stamp[d->from] != s->call ) {
            s->stamp[d->from] = s->call;
            s->bytes_in[d->from] = s->bytes_out[d->from] = 0;
        }
        s->bytes_in[d->from] += (uint32_t) d->bytes;
        if ( s->config.roaming )
            sim_see_stray( s, d );
    }
    port->head = d->next;
    port->count--;
    sim_give_datagram( index );
}

static int sim_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct sim_port_t * port = (struct sim_port_t *) context;
    int filled = 0;
    port->asked++;
    if ( sim_happens( net.weather.receive_faults ) ) {
        sim_fault( port, SIM_S_RECEIVE_FAULT, SIM_C_RECEIVE_FAULT );
        return -1;
    }
    if ( sim_happens( net.weather.error_places ) )
        sim_fill_error( port, &datagrams[filled++] );
    while ( filled < count && port->count )
        sim_fill_place( port, &datagrams[filled++] );
    port->taken += filled;
    return filled;
}

/* May the server send this there? Only a client with a slot may get more than 0.31 bytes for a byte. */
static void sim_check_amplification( struct sim_server_t * s, int to, const uint8_t * data, int bytes )
{
    if ( s->config.roaming && sim_sends_probe( s, to, data, bytes ) )
        return;
    for ( int i = 0; i < SIM_SLOTS; i++ )
        if ( s->in_slot[i] && net.sessions[s->in_slot[i]].at == to )
            return;
    for ( int i = 0; i < s->leaving_count; i++ )
        if ( s->leaving[i] == to )
            return;
    if ( s->stamp[to] != s->call ) {
        s->stamp[to] = s->call;
        s->bytes_in[to] = s->bytes_out[to] = 0;
    }
    s->bytes_out[to] += (uint32_t) bytes;
    SIM_CHECK( amplification, s->bytes_out[to] * 100 <= s->bytes_in[to] * 31,
               "server %d sent %u bytes to address %d, which sent %u", s->port.index, s->bytes_out[to], to,
               s->bytes_in[to] );
    SIM_CHECK( path_proven, ( data[0] & 15 ) == NETCODE_PACKET_DENIED || ( data[0] & 15 ) == NETCODE_PACKET_CHALLENGE,
               "server %d sent a packet of type %d to address %d", s->port.index, data[0] & 15, to );
}

/* The sender of a request holds the token's keys, and may be connected where it sends from. */
static void sim_add_holder( uint32_t token, int at )
{
    struct sim_token_t * t = &net.tokens[token];
    for ( uint32_t i = 0; i < t->holder_count && i < SIM_HOLDERS; i++ )
        if ( t->holders[i] == at )
            return;
    t->holders[t->holder_count++ % SIM_HOLDERS] = (uint16_t) at;
}

static int sim_send_one( struct sim_port_t * port, const struct netcode_datagram_t * datagram )
{
    int to = sim_at_of( &datagram->address ), six = datagram->address.type == NETCODE_ADDRESS_IPV6, from;
    SIM_CHECK( datagram_shape,
               datagram->address.type != NETCODE_ADDRESS_NONE && datagram->address.port != 0 && datagram->bytes >= 18 &&
                   datagram->bytes <= SIM_DATAGRAM_BYTES,
               "%s %d sent %d bytes", port->is_server ? "server" : "client", port->index, datagram->bytes );
    if ( sim_happens( net.weather.send_faults ) ) {
        sim_fault( port, SIM_S_SEND_FAULT, SIM_C_SEND_FAULT );
        return 0;
    }
    if ( !port->is_up || port->is_lost )
        return 1;
    if ( port->is_server ) {
        from = sim_server_at( port->index, six );
        sim_check_amplification( &net.servers[port->index], to, datagram->data, datagram->bytes );
    } else {
        from = sim_client_now( &net.clients[port->index], six );
        sim_add_holder( net.clients[port->index].token, from );
    }
    sim_carry( from, to, datagram->data, datagram->bytes );
    return 1;
}

static int sim_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    struct sim_port_t * port = (struct sim_port_t *) context;
    int sent = 0;
    for ( int i = 0; i < count; i++ )
        sent += sim_send_one( port, &datagrams[i] );
    return sent;
}

static void sim_close( void * context )
{
    struct sim_port_t * port = (struct sim_port_t *) context;
    port->is_open = 0;
    sim_port_empty( port );
}

/* A port of this router that no client has. */
static void sim_settle_anew( struct sim_client_t * c, int router )
{
    int port = c->port_number;
    while ( net.behind[router][port] )
        port = ( port + 1 ) % SIM_PORTS;
    sim_settle( c, router, port );
}

/* A client's machine takes the address that it can get now; without need it mostly keeps the one that it has. */
static int sim_rebind( void * context )
{
    struct sim_port_t * port = (struct sim_port_t *) context;
    struct sim_client_t * c = &net.clients[port->index];
    sim_client_event( c, SIM_C_REBIND );
    if ( sim_happens( net.weather.send_faults ) )
        return 0;
    if ( port->is_lost || ( !net.is_calm && sim_rarely( 4 ) ) )
        sim_settle_anew( c, sim_below( SIM_CLIENTS ) );
    port->is_lost = 0;
    return 1;
}

static struct netcode_socket_t sim_socket( struct sim_port_t * port )
{
    struct netcode_socket_t socket;
    memset( &socket, 0, sizeof( socket ) );
    socket.context = port;
    socket.receive = sim_receive;
    socket.send = sim_send;
    socket.close = sim_close;
    socket.rebind = port->is_server ? NULL : sim_rebind;
    return socket;
}

/* ---- memory that fails on demand ---- */

static void * sim_allocate( void * context, size_t bytes )
{
    void * block;
    (void) context;
    if ( net.fail_allocation && --net.fail_allocation == 0 )
        return NULL;
    block = sim_grow( NULL, bytes ? bytes : 1, 1 );
    memset( block, 0xA5, bytes ); /* so that nothing relies on zeros */
    net.live_blocks++;
    return block;
}

static void sim_release( void * context, void * block )
{
    (void) context;
    net.live_blocks -= block != NULL;
    free( block );
}

/* ---- clocks ---- */

static double sim_clock_time( struct sim_clock_t * clock )
{
    int64_t passed = sim.tick - clock->seen;
    clock->seen = sim.tick;
    if ( sim.tick >= clock->still_until )
        clock->shown += passed + passed * clock->rate / 64;
    return (double) clock->shown / (double) SIM_SECOND;
}

static uint64_t sim_unix( void )
{
    return SIM_UNIX + (uint64_t) ( sim.tick / SIM_SECOND );
}

#endif
