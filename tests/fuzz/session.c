/*  Fuzz target: whole sessions. An input is a schedule: a server, clients, the datagrams between them, the
    clocks and the calls of the application. The fuzzer gets valid packets by having the real ones delivered, changed, repeated
    or sent to others, and by sealing packets of its own with the tokens' keys. Where the input says so, clients' addresses
    change, with or without `roaming`.

    Checked all the time: no client is connected but by a token of the list, as its client, once; every payload that
    arrives was sent, is unchanged and arrives once; what was changed is never accepted; no sequence is used twice;
    bytes out per byte in to an unproved address stay under 0.31; a client's packets go to the address from which it
    connected, or echoed a probe, and nowhere else but probes, which are never more bytes than its newer packets from
    there; every counter agrees with what went over the socket; lists, tables, pool and timers agree with one another;
    all memory comes back. At the end, when the input asks for it, an honest client must get in. Built and run by
    run.sh. */

#include "fuzz.h"

#include <math.h>
#if defined( __GLIBC__ )
#include <malloc.h>
#endif

enum {
    SESSION_CLIENTS = 3,                   /* and an honest one behind them */
    SESSION_PARTIES = 2 + SESSION_CLIENTS, /* 0: the server */
    SESSION_HONEST = SESSION_PARTIES - 1,
    SESSION_TOKENS = 16,
    SESSION_HONEST_TOKEN = SESSION_TOKENS - 1,
    SESSION_ADDRESSES = 10,
    SESSION_WIRE = 64,
    SESSION_INBOX = 40,
    SESSION_SENT = 192,
    SESSION_HELD = 16,
    SESSION_SLOTS = 4,
    SESSION_OPS = 160,
    SESSION_PROBES = 32,       /* to a client's candidates: more than are valid at a time */
    SESSION_HANDED = 256,      /* datagrams that a stray may be */
    SESSION_REMEMBERED = 2048, /* sessions of one client: more than all calls and actions can begin */
    SESSION_DATAGRAM = 1400
};

#define SESSION_START 100.0
#define SESSION_PROTOCOL 0x1122334455667788u

/* ---- what there is: the same for every input ---- */

static const char * const session_places[SESSION_ADDRESSES] = {
    "10.0.0.1:40000",                                                         /* the server */
    "10.1.0.1:50001", "10.1.0.2:50002", "[fd00::3]:50003",  "10.1.0.4:50004", /* clients */
    "10.9.9.9:9",     "10.66.0.1:6661", "[fe80::66%4]:666", "10.66.0.3:6663", /* unused, and spoofed sources */
    "[fd00::1]:40000"                                                         /* the server's other name */
};
enum { SESSION_DEAD = 5, SESSION_SERVER2 = 9 };

/* Where clients may move: to one another's places, as behind a NAT that deals its ports anew, and to unused ones. */
static const int session_moves[] = { 1, 2, 3, 5, 6, 7, 8 };
enum { SESSION_MOVES = sizeof( session_moves ) / sizeof( session_moves[0] ) };

struct session_token_t {
    uint64_t client_id;
    int64_t lifetime; /* from the start of all time; -1: never ends */
    int timeout;
    int servers[2]; /* places, the second -1 for none */
    int key;
    int broken; /* 1: another protocol id, 2: its private part is malformed */
    uint64_t expire;
    nc_private_token_t inner;
    uint8_t bytes[NETCODE_CONNECT_TOKEN_BYTES];
    uint8_t tag[NC_TOKEN_TAG_BYTES];
};

/* clang-format off */
static struct session_token_t session_tokens[SESSION_TOKENS] = {
    /* id  life  timeout  servers                          key broken */
    {   1,   60,     5, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   2,   60,     5, { SESSION_DEAD, 0 },                0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   3,   -1,     5, { 0, SESSION_DEAD },                0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   1,   90,     5, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   4,   40,    -1, { SESSION_SERVER2, 0 },             0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   5,   10,     1, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   6,   -1,     0, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   7,   60,     3, { 0, -1 },                          1, 0, 0, { 0 }, { 0 }, { 0 } },
    {   8,   60,     5, { SESSION_DEAD, -1 },               0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   9,   -1, 60000, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   1,   20,     5, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } },
    {   1,   95,     3, { 0, SESSION_SERVER2 },             0, 0, 0, { 0 }, { 0 }, { 0 } },
    {  12,   60,     5, { 0, -1 },                          0, 1, 0, { 0 }, { 0 }, { 0 } },
    {   1,   33,     5, { SESSION_SERVER2, -1 },            0, 0, 0, { 0 }, { 0 }, { 0 } },
    {  14,   60,     5, { 0, -1 },                          0, 2, 0, { 0 }, { 0 }, { 0 } },
    {  99, 9999,     5, { 0, -1 },                          0, 0, 0, { 0 }, { 0 }, { 0 } }
};
/* clang-format on */

static struct netcode_address_t session_addresses[SESSION_ADDRESSES];
static uint8_t session_keys[NETCODE_MAX_PRIVATE_KEYS][NETCODE_KEY_BYTES];

/* One datagram, on the wire or waiting for a party. */
struct session_datagram_t {
    struct netcode_address_t from;
    struct netcode_address_t to;
    int sender; /* party, or -1 */
    int bytes;
    int status;
    int error;
    int clean; /* a holder of the key sealed just this, for this direction */
    int taken; /* of the wire: it was delivered, or is lost */
    uint8_t data[SESSION_DATAGRAM];
};

/* A payload that was sealed. */
struct session_sent_t {
    int to_server;
    int token;
    uint64_t sequence;
    uint64_t serial; /* makes its bytes */
    int bytes;
    unsigned arrived; /* a bit for each party */
};

struct session_party_t {
    struct netcode_socket_t socket;
    int open;
    int broken;  /* so many receives fail */
    int refuses; /* so many sends fail */
    int inbox_count;
    int token;        /* of a client: the one it was given */
    uint64_t offered; /* datagrams that the library gave to the socket */
    uint64_t offered_bytes;
    uint64_t refused;
    uint64_t handed; /* datagrams that the socket gave to the library */
    uint64_t handed_bytes;
    uint64_t clean;         /* of them */
    uint64_t errors_handed; /* error reports, and broken receives */
    uint64_t loopback_accepted;
    int next_place;    /* of a client: where its next rebind takes it; 0: where it is */
    int is_stuck;      /* its rebinds fail */
    uint64_t sequence; /* of the last sealed packet of a client */
    int has_sequence;
    int8_t session_tokens[SESSION_REMEMBERED]; /* of a client: session -> token, -1 for loopback */
    void * held[SESSION_HELD];
    int held_count;
};

struct session_probe_t {
    uint64_t value;
    int place;
    double time;
};

/* What is known of the paths of a token's session, from what went over the socket. */
struct session_path_t {
    int place;               /* the slot's address when it was last looked at; -1: it has none */
    unsigned allowed;        /* places, a bit each, where its packets may go */
    unsigned echoed;         /* places from which it has returned a probe since it moved last */
    uint64_t sequence;       /* of its last packet, plus 1 */
    double heard_time;       /* of its last packet from its own address, or echo of a probe that went there */
    uint32_t echoes;         /* in all */
    uint32_t moves_reported; /* those before the last event that said so */
    int probe_count;
    double probes_left; /* that may be sent to candidates, at probes_time */
    double probes_time;
    uint64_t newer_in[SESSION_ADDRESSES]; /* bytes of its packets that were newer than all before them */
    uint64_t probes_out[SESSION_ADDRESSES];
    struct session_probe_t probes[SESSION_PROBES];
};

static struct {
    struct fuzz_input_t * input;
    struct netcode_server_t * server;
    struct netcode_client_t * clients[SESSION_PARTIES];
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    struct session_party_t parties[SESSION_PARTIES];
    double time;
    int64_t unix_offset;
    uint64_t unix_lowest;
    int slots;
    int slot_tokens[SESSION_SLOTS]; /* whose client is in it; -1: none, -2: a loopback client */
    uint64_t slot_sessions[SESSION_SLOTS];
    uint64_t connects_of_token[SESSION_TOKENS]; /* to this server object */
    uint64_t bytes_in[SESSION_ADDRESSES];       /* but for packets of sessions */
    uint64_t bytes_out[SESSION_ADDRESSES];      /* of replies without a slot */
    int proved[SESSION_ADDRESSES];
    uint64_t global_sequence;
    struct session_path_t paths[SESSION_TOKENS];
    int has_paths; /* the input says that addresses change */
    int can_rebind;
    int accepts_strays;
    uint64_t strays_accepted;
    uint64_t handed[SESSION_HANDED]; /* hashes of what the server got last */
    uint32_t handed_count;
    int place_of_party[SESSION_PARTIES];
    int party_at[SESSION_ADDRESSES]; /* -1: none */
    int last_opener;
    int wire_count;
    struct session_sent_t sent[SESSION_SENT];
    int sent_count;
    int inside; /* actions in progress within callbacks */
    int on_connect;
    int on_leave;
    int on_state;
    int on_send;
    int actions_left;
    int admit; /* 0: all, 1: no callback, 2: odd ids, 3: none */
    int allocations;
    int fail_at;
    int live;
    int is_over; /* the end: nothing but destroying */
} s;

static struct session_datagram_t session_wire[SESSION_WIRE];
static struct session_datagram_t session_inboxes[SESSION_PARTIES][SESSION_INBOX];

static uint64_t session_unix( void )
{
    double seconds = s.time - SESSION_START; /* tokens are new when the schedule begins */
    uint64_t now = (uint64_t) ( (int64_t) FUZZ_UNIX + (int64_t) seconds + s.unix_offset );
    if ( now < s.unix_lowest )
        s.unix_lowest = now;
    return now;
}

static uint64_t session_unix_callback( void * context )
{
    (void) context;
    return session_unix();
}

FUZZ_UNCOUNTED static int session_place_of( const struct netcode_address_t * address )
{
    for ( int i = 0; i < SESSION_ADDRESSES; i++ )
        if ( session_addresses[i].port == address->port && session_addresses[i].type == address->type &&
             memcmp( &session_addresses[i].data, &address->data, address->type == NETCODE_ADDRESS_IPV4 ? 4 : 16 ) == 0 )
            return i;
    return -1;
}

/* ---- tokens ---- */

static void session_make_token( int index )
{
    struct session_token_t * it = &session_tokens[index];
    static nc_connect_token_t token;
    nc_token_seal_t how = { SESSION_PROTOCOL + ( it->broken == 1 ), 0, token.nonce, session_keys[it->key] };
    memset( &token, 0, sizeof( token ) );
    fuzz_fill( token.nonce, sizeof( token.nonce ), 1000 + (uint64_t) index );
    fuzz_fill( token.route.client_to_server_key, 64, 2000 + (uint64_t) index );
    fuzz_fill( it->inner.user_data, sizeof( it->inner.user_data ), 3000 + (uint64_t) index );
    token.route.timeout_seconds = it->timeout;
    for ( int i = 0; i < 2 && it->servers[i] >= 0; i++ )
        token.route.addresses[token.route.num_addresses++] = session_addresses[it->servers[i]];
    token.protocol_id = how.protocol_id;
    token.create_timestamp = FUZZ_UNIX;
    token.expire_timestamp = it->expire = it->lifetime < 0 ? UINT64_MAX : FUZZ_UNIX + (uint64_t) it->lifetime;
    if ( index == SESSION_HONEST_TOKEN )
        token.expire_timestamp = it->expire = UINT64_MAX - 1; /* beyond all that a server could have forgotten */
    how.expire_timestamp = it->expire;
    it->inner.route = token.route;
    it->inner.client_id = it->client_id;
    if ( it->broken == 2 )
        it->inner.route.addresses[0].port = 0;
    nc_token_seal_private( token.sealed_private, &it->inner, &how );
    nc_token_write( it->bytes, &token );
    memcpy( it->tag, token.sealed_private + NC_PRIVATE_TOKEN_BYTES - NC_TOKEN_TAG_BYTES, NC_TOKEN_TAG_BYTES );
}

static void session_prepare( void )
{
    static int ready;
    if ( ready )
        return;
    ready = 1;
#if defined( __GLIBC__ )
    mallopt( M_MMAP_THRESHOLD, 1 << 26 ); /* objects come and go with each input: their pages stay */
    mallopt( M_TRIM_THRESHOLD, 1 << 26 );
#endif
    fuzz_fill( session_keys[0], sizeof( session_keys ), 77 );
    for ( int i = 0; i < SESSION_ADDRESSES; i++ )
        if ( netcode_parse_address( session_places[i], &session_addresses[i] ) != NETCODE_OK )
            abort();
    for ( int i = 0; i < SESSION_TOKENS; i++ )
        session_make_token( i );
}

/* ---- paths ---- */

static void session_act( int what );

/* The token with whose keys this packet of a session was sealed, or -1. `body` may be NULL. */
FUZZ_UNCOUNTED static int session_opener( nc_packet_t * packet, const uint8_t * data, int bytes, int direction,
                                          uint8_t * body )
{
    if ( nc_packet_parse( packet, data, bytes, direction ) != NETCODE_DROP_NONE ||
         packet->type < NETCODE_PACKET_KEEP_ALIVE )
        return -1;
    for ( int i = 0; i < SESSION_TOKENS; i++ ) {
        int token = ( s.last_opener + i ) % SESSION_TOKENS;
        const nc_route_t * route = &session_tokens[token].inner.route;
        nc_packet_context_t channel = { direction == NC_TO_SERVER ? route->client_to_server_key
                                                                  : route->server_to_client_key,
                                        SESSION_PROTOCOL };
        if ( nc_packet_open( packet, data, body, &channel ) )
            return s.last_opener = token;
    }
    return -1;
}

/* The probe in a keep-alive, or 0. */
FUZZ_UNCOUNTED static uint64_t session_probe_in( const nc_packet_t * packet, const uint8_t * body )
{
    uint64_t value = packet->type == NETCODE_PACKET_KEEP_ALIVE ? nc_load_u64( body ) : 0;
    return value >> 63 ? value : 0;
}

FUZZ_UNCOUNTED static int session_slot_of( int token )
{
    for ( int i = 0; i < SESSION_SLOTS && token >= 0; i++ )
        if ( s.slot_tokens[i] == token )
            return i;
    return -1;
}

/*  A slot is at another place than before: an echo of a probe that was sent there has come from there. The one that had
    the place was silent for 0.25 s, or has moved elsewhere itself, for which it is checked in its turn. */
FUZZ_UNCOUNTED static void session_check_move( int token, int place )
{
    struct session_path_t * path = &s.paths[token];
    FUZZ_CHECK( s.server_config.roaming && path->echoed >> place & 1 );
    for ( int i = 0; i < SESSION_SLOTS; i++ ) {
        const struct session_path_t * other = s.slot_tokens[i] < 0 ? path : &s.paths[s.slot_tokens[i]];
        int has_moved = session_place_of( &s.server->memory.slot[i].address ) >= 0;
        if ( other != path && other->place == place && !has_moved )
            FUZZ_CHECK( s.server->base.clock.now - other->heard_time >= 0.25 );
    }
    memset( path->probes, 0, sizeof( path->probes ) );
    path->echoed = 0;
    s.proved[place] = 1;
}

/*  Where are the slots? Within a callback and while sending only that is looked at, because what the socket has given may
    wait to be handled. While packets wait to be sent, they may be for the place before. */
FUZZ_UNCOUNTED static void session_watch_paths( int is_sending )
{
    int places[SESSION_SLOTS];
    if ( !s.server || !s.server->running )
        return;
    const nc_server_memory_t * memory = &s.server->memory;
    int is_empty = s.server->base.outbox.sent >= s.server->base.outbox.count;
    for ( int i = 0; i < SESSION_SLOTS; i++ ) {
        places[i] = s.slot_tokens[i] < 0 ? -1 : session_place_of( &memory->slot[i].address );
        if ( places[i] >= 0 && places[i] != s.paths[s.slot_tokens[i]].place )
            session_check_move( s.slot_tokens[i], places[i] );
    }
    for ( int i = 0; i < SESSION_SLOTS; i++ ) {
        if ( s.slot_tokens[i] < 0 )
            continue;
        struct session_path_t * path = &s.paths[s.slot_tokens[i]];
        const nc_paths_t * theirs = s.server_config.roaming ? &memory->paths[i] : NULL;
        path->place = places[i];
        FUZZ_CHECK( theirs ? theirs->moves <= path->echoes : places[i] >= 0 );
        if ( s.inside || is_sending )
            continue;
        path->heard_time = theirs ? memory->slot[i].receive_time : -1e300;
        if ( is_empty )
            path->allowed = places[i] < 0 ? 0 : 1u << places[i];
    }
}

FUZZ_UNCOUNTED static uint64_t session_hash( const uint8_t * data, int bytes, int place )
{
    uint64_t hash = (uint64_t) ( place + 1 );
    for ( int i = 0; i < bytes; i++ )
        hash = ( hash ^ data[i] ) * 0x100000001b3u;
    return hash;
}

/* The server gets a datagram: is it its client's, and newer, and does it return a probe to where it was sent? */
FUZZ_UNCOUNTED static void session_note_arrival( const struct netcode_address_t * from, const uint8_t * data,
                                                 int bytes )
{
    uint8_t body[NC_OUT_STRIDE];
    nc_packet_t packet;
    int place = session_place_of( from ), token = session_opener( &packet, data, bytes, NC_TO_SERVER, body );
    int slot = session_slot_of( token );
    s.handed[s.handed_count++ % SESSION_HANDED] = session_hash( data, bytes, place );
    if ( place < 0 )
        return;
    if ( token < 0 )
        s.bytes_in[place] += (uint64_t) bytes;
    if ( slot < 0 || !s.server->running )
        return;
    struct session_path_t * path = &s.paths[token];
    if ( packet.sequence <= s.server->memory.slot[slot].replay.newest )
        return;
    path->newer_in[place] += (uint64_t) bytes;
    uint64_t value = session_probe_in( &packet, body );
    for ( int i = 0; i < SESSION_PROBES && value; i++ ) {
        const struct session_probe_t * probe = &path->probes[i];
        if ( probe->value != value || probe->place != place || s.server->base.clock.now - probe->time > 2.001 )
            continue;
        path->echoed |= 1u << place;
        path->allowed |= 1u << place;
        path->echoes++;
    }
}

/* A packet of a session leaves the server: to the address from which its client was heard, or it is a probe, and paid for. */
FUZZ_UNCOUNTED static void session_check_path( int place, const struct netcode_datagram_t * d )
{
    uint8_t body[NC_OUT_STRIDE];
    nc_packet_t packet;
    int token = session_opener( &packet, d->data, d->bytes, NC_TO_CLIENT, body );
    FUZZ_CHECK( token >= 0 );
    struct session_path_t * path = &s.paths[token];
    /* in a batch, packets of a token's former session may wait beside those of its next */
    if ( !s.server_config.batch_sends || s.connects_of_token[token] == 1 )
        FUZZ_CHECK( packet.sequence + 1 > path->sequence );
    path->sequence = packet.sequence + 1;
    if ( place == path->place && path->allowed >> place & 1 )
        return;
    struct session_probe_t probe = { session_probe_in( &packet, body ), place, s.server->base.clock.now };
    if ( probe.value )
        path->probes[path->probe_count++ % SESSION_PROBES] = probe;
    /* the slot was there, or will be, in this update: it may be a packet like others */
    if ( path->allowed >> place & 1 )
        return;

    FUZZ_CHECK( s.server_config.roaming && probe.value );
    path->probes_out[place] += (uint64_t) d->bytes;
    FUZZ_CHECK( path->probes_out[place] <= path->newer_in[place] );
    /* six at once, then four a second, as far as they did not wait in a batch */
    path->probes_left += 4.0 * ( probe.time - path->probes_time );
    path->probes_time = probe.time;
    if ( path->probes_left > 6.0 && !s.server_config.batch_sends )
        path->probes_left = 6.0;
    FUZZ_CHECK( ( path->probes_left -= 1.0 ) >= -0.01 );
}

/*  A packet that no client here has sent, just as it arrived. One from its client's own address that is newer than all before
    it, and near them, is never a stray. */
static int session_on_stray( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    nc_packet_t packet;
    int place = session_place_of( from ), found = 0;
    int slot = session_slot_of( session_opener( &packet, data, bytes, NC_TO_SERVER, NULL ) );
    (void) context;
    uint64_t hash = session_hash( data, bytes, place );
    for ( int i = 0; i < SESSION_HANDED && !found; i++ )
        found = s.handed[i] == hash;
    FUZZ_CHECK( found );
    if ( slot >= 0 && s.server->memory.slot[slot].state == NC_SLOT_CONNECTED ) {
        const nc_slot_t * theirs = &s.server->memory.slot[slot];
        FUZZ_CHECK( place < 0 || place != session_place_of( &theirs->address ) ||
                    packet.sequence - theirs->replay.newest - 1 >= 65536 );
    }
    fuzz_note( hash );
    s.strays_accepted += (uint64_t) s.accepts_strays;
    if ( s.on_connect )
        session_act( s.on_connect );
    return s.accepts_strays;
}

/* ---- the socket ---- */

/* What a packet on the wire may say of its sequence: none is used twice under one key. */
FUZZ_UNCOUNTED static void session_check_sequence( int party, const uint8_t * data )
{
    int type = data[0] & 15, length = data[0] >> 4;
    uint64_t sequence = 0;
    if ( type == NETCODE_PACKET_REQUEST )
        return;
    FUZZ_CHECK( length >= 1 && length <= 8 && type < NETCODE_PACKET_TYPES );
    for ( int i = length; i > 0; i-- )
        sequence = sequence << 8 | data[i];
    if ( party > 0 ) {
        struct session_party_t * p = &s.parties[party];
        FUZZ_CHECK( !p->has_sequence || sequence > p->sequence );
        FUZZ_CHECK( sequence >> 63 == 0 );
        p->sequence = sequence;
        p->has_sequence = 1;
    } else if ( type == NETCODE_PACKET_CHALLENGE || type == NETCODE_PACKET_DENIED ) {
        FUZZ_CHECK( sequence >> 63 == 1 && sequence != s.global_sequence );
        s.global_sequence = sequence;
    } else
        FUZZ_CHECK( sequence >> 63 == 0 ); /* session_check_path compares it with the session's others */
}

FUZZ_UNCOUNTED static void session_check_sent( int party, const struct netcode_datagram_t * d )
{
    int place = session_place_of( &d->address ), type = d->data[0] & 15;
    FUZZ_CHECK( place >= 0 && d->bytes >= 18 && d->bytes <= 1225 );
    session_check_sequence( party, d->data );
    if ( party > 0 )
        return;
    if ( type != NETCODE_PACKET_CHALLENGE && type != NETCODE_PACKET_DENIED ) {
        session_check_path( place, d );
        return;
    }
    s.bytes_out[place] += (uint64_t) d->bytes;
    if ( !s.proved[place] ) /* one that has not answered a challenge */
        FUZZ_CHECK( (double) s.bytes_out[place] <= 0.31 * (double) s.bytes_in[place] );
}

static int session_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int party = (int) ( (struct session_party_t *) context - s.parties ), taken = 0;
    struct session_party_t * p = &s.parties[party];
    FUZZ_CHECK( p->open && count > 0 );
    if ( party == 0 )
        session_watch_paths( 1 );
    for ( int i = 0; i < count; i++ ) {
        struct session_datagram_t * d = &session_wire[s.wire_count++ % SESSION_WIRE];
        session_check_sent( party, &datagrams[i] );
        p->offered++;
        p->offered_bytes += (uint64_t) datagrams[i].bytes;
        d->from = session_addresses[s.place_of_party[party]];
        d->to = datagrams[i].address;
        d->sender = party;
        d->bytes = datagrams[i].bytes;
        d->status = NETCODE_DATAGRAM_OK;
        d->error = 0;
        d->clean = 1;
        d->taken = p->refuses > 0;
        memcpy( d->data, datagrams[i].data, (size_t) d->bytes );
        fuzz_note( fuzz_mix( (uint64_t) d->bytes << 32 | (uint64_t) d->data[0] ) ^
                   nc_load_u64( d->data + d->bytes - 8 ) );
        if ( p->refuses > 0 ) {
            p->refuses--;
            p->refused++;
        } else
            taken++;
    }
    if ( s.on_send )
        session_act( s.on_send );
    return taken;
}

static int session_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int party = (int) ( (struct session_party_t *) context - s.parties ), filled = 0;
    struct session_party_t * p = &s.parties[party];
    FUZZ_CHECK( p->open && count > 0 );
    if ( party == 0 )
        session_watch_paths( 0 );
    if ( p->broken > 0 ) {
        p->broken--;
        p->errors_handed++;
        return -1;
    }
    for ( ; filled < count && filled < p->inbox_count; filled++ ) {
        const struct session_datagram_t * d = &session_inboxes[party][filled];
        struct netcode_datagram_t * out = &datagrams[filled];
        int whole = d->bytes <= out->capacity;
        out->address = d->from;
        out->bytes = whole ? d->bytes : out->capacity;
        out->status = whole ? d->status : NETCODE_DATAGRAM_TRUNCATED;
        out->error = d->error;
        FUZZ_CHECK( out->capacity >= 1300 );
        memcpy( out->data, d->data, (size_t) out->bytes );
        p->errors_handed += d->status == NETCODE_DATAGRAM_ERROR;
        if ( d->status == NETCODE_DATAGRAM_ERROR )
            continue;
        p->handed++;
        p->handed_bytes += whole ? (uint64_t) d->bytes : 1226;
        p->clean += (uint64_t) d->clean;
        if ( party == 0 )
            session_note_arrival( &out->address, out->data, out->bytes );
    }
    p->inbox_count -= filled;
    memmove( &session_inboxes[party][0], &session_inboxes[party][filled],
             (size_t) p->inbox_count * sizeof( session_inboxes[0][0] ) );
    return filled;
}

static void session_wait( void * context, double seconds )
{
    FUZZ_CHECK( ( (struct session_party_t *) context )->open && seconds > 0.0 );
}

static void session_close( void * context )
{
    struct session_party_t * p = (struct session_party_t *) context;
    FUZZ_CHECK( p->open );
    p->open = 0;
    p->held_count = 0;
    if ( p == &s.parties[0] )
        s.server = NULL;
    else
        s.clients[p - s.parties] = NULL;
}

/* A party gets another address, or where another party is, that one's: it has the party's then. */
static void session_move( int party, int place )
{
    int before = s.place_of_party[party], other = s.party_at[place];
    s.party_at[before] = other;
    if ( other >= 0 )
        s.place_of_party[other] = before;
    s.party_at[place] = party;
    s.place_of_party[party] = place;
}

static int session_rebind( void * context )
{
    struct session_party_t * p = (struct session_party_t *) context;
    FUZZ_CHECK( p->open );
    if ( p->is_stuck )
        return 0;
    if ( p->next_place )
        session_move( (int) ( p - s.parties ), p->next_place );
    p->next_place = 0;
    return 1;
}

static void session_info( void * context, struct netcode_socket_info_t * info )
{
    info->address = session_addresses[s.place_of_party[(struct session_party_t *) context - s.parties]];
    info->address2 = session_addresses[SESSION_SERVER2];
    info->last_send_error = 5;
}

/* ---- the same, as override callbacks; the callback context is the party then, too ---- */

static void session_send_override( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    uint8_t copy[SESSION_DATAGRAM];
    struct netcode_datagram_t d = { *to, copy, bytes, bytes, 0, 0 };
    memcpy( copy, data, (size_t) bytes );
    ( (struct session_party_t *) context )->refuses = 0;
    session_send( context, &d, 1 );
}

/* Negative and 0 mean the same here, and errors do not exist. */
static int session_receive_override( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    struct session_party_t * p = (struct session_party_t *) context;
    int party = (int) ( p - s.parties );
    struct netcode_datagram_t d = { *from, data, 0, capacity, 0, 0 };
    p->broken = 0;
    while ( p->inbox_count &&
            ( session_inboxes[party][0].status == NETCODE_DATAGRAM_ERROR || session_inboxes[party][0].bytes == 0 ) ) {
        p->inbox_count--;
        memmove( &session_inboxes[party][0], &session_inboxes[party][1],
                 (size_t) p->inbox_count * sizeof( session_inboxes[0][0] ) );
    }
    if ( session_receive( context, &d, 1 ) == 0 )
        return 0;
    *from = d.address;
    return d.status == NETCODE_DATAGRAM_TRUNCATED ? capacity + 1 : d.bytes;
}

/* Puts a datagram before a party. */
FUZZ_UNCOUNTED static struct session_datagram_t * session_deliver( int party, const struct session_datagram_t * what )
{
    struct session_party_t * p = &s.parties[party];
    struct session_datagram_t * d;
    if ( !p->open || p->inbox_count == SESSION_INBOX )
        return NULL;
    d = &session_inboxes[party][p->inbox_count++];
    memcpy( d, what, offsetof( struct session_datagram_t, data ) + (size_t) what->bytes );
    if ( what->sender >= 0 && ( what->sender == 0 ) == ( party == 0 ) )
        d->clean = 0; /* sent back to its own side */
    return d;
}

FUZZ_UNCOUNTED static int session_party_at( const struct netcode_address_t * address )
{
    int place = session_place_of( address );
    return place < 0 ? -1 : s.party_at[place];
}

/* Everything on the wire arrives, in order. */
FUZZ_UNCOUNTED static void session_pump( void )
{
    int first = s.wire_count > SESSION_WIRE ? s.wire_count - SESSION_WIRE : 0;
    for ( int i = first; i < s.wire_count; i++ ) {
        struct session_datagram_t * d = &session_wire[i % SESSION_WIRE];
        int party = session_party_at( &d->to );
        if ( !d->taken && party >= 0 )
            session_deliver( party, d );
        d->taken = 1;
    }
}

/* ---- callbacks ---- */

static void * session_allocate( void * context, size_t bytes )
{
    void * block;
    (void) context;
    if ( ++s.allocations == s.fail_at )
        return NULL;
    block = malloc( bytes );
    if ( !block )
        abort();
    s.live++;
    return block;
}

static void session_release( void * context, void * block )
{
    (void) context;
    FUZZ_CHECK( block != NULL );
    s.live--;
    free( block );
}

FUZZ_UNCOUNTED static void session_log( void * context, int level, const char * text )
{
    (void) context;
    FUZZ_CHECK( level >= NETCODE_LOG_LEVEL_ERROR && level <= NETCODE_LOG_LEVEL_DEBUG );
    for ( ; *text; text++ )
        FUZZ_CHECK( *text >= 0x20 && *text < 0x7f );
}

static void session_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    (void) context;
    FUZZ_CHECK( reason > NETCODE_DROP_NONE && reason < NETCODE_DROP_REASONS && from != NULL && bytes >= 0 );
    fuzz_note( (uint64_t) reason );
}

static int session_admit( void * context, uint64_t client_id, const uint8_t * tag, uint64_t expire )
{
    int known = 0;
    (void) context;
    for ( int i = 0; i < SESSION_TOKENS; i++ )
        known |= session_tokens[i].client_id == client_id && session_tokens[i].expire == expire &&
                 memcmp( session_tokens[i].tag, tag, NC_TOKEN_TAG_BYTES ) == 0;
    FUZZ_CHECK( known );
    if ( s.on_connect )
        session_act( s.on_connect );
    return s.admit == 0 || ( s.admit == 2 && client_id & 1 );
}

/* The token of a slot, by the user data that only it carries. */
FUZZ_UNCOUNTED static int session_token_in( int slot )
{
    const void * user_data = netcode_server_client_user_data( s.server, slot );
    for ( int i = 0; i < SESSION_TOKENS; i++ )
        if ( memcmp( user_data, session_tokens[i].inner.user_data, NETCODE_USER_DATA_BYTES ) == 0 )
            return i;
    return -1;
}

/* A client has a slot: is it its own? */
FUZZ_UNCOUNTED static void session_check_newcomer( int slot, int token )
{
    FUZZ_CHECK( token >= 0 );
    const struct session_token_t * it = &session_tokens[token];
    const nc_slot_t * there = &s.server->memory.slot[slot];
    int place = session_place_of( &there->address ), expiring = it->expire != UINT64_MAX;
    FUZZ_CHECK( it->broken == 0 && ( it->servers[0] != SESSION_DEAD || it->servers[1] >= 0 ) );
    FUZZ_CHECK( it->client_id == there->client_id && it->expire == there->expire_timestamp );
    FUZZ_CHECK( it->expire > s.unix_lowest && it->timeout == there->timeout_seconds );
    FUZZ_CHECK( memcmp( there->client_to_server_key, it->inner.route.client_to_server_key, NETCODE_KEY_BYTES ) == 0 );
    FUZZ_CHECK( memcmp( there->server_to_client_key, it->inner.route.server_to_client_key, NETCODE_KEY_BYTES ) == 0 );
    FUZZ_CHECK( place >= 0 && ( s.admit != 3 ) && ( s.admit != 2 || it->client_id & 1 ) );
    s.connects_of_token[token]++; /* records of never-ending ones may be evicted where there are few */
    if ( expiring || s.server->handshakes.used.never_capacity >= 3 )
        FUZZ_CHECK( s.connects_of_token[token] == 1 );
    s.proved[place] = 1;
    struct session_path_t * path = &s.paths[token];
    unsigned allowed = path->allowed; /* of a former session, whose packets may wait */
    memset( path, 0, sizeof( *path ) );
    path->place = place;
    path->allowed = allowed | 1u << place;
    path->probes_left = 6.0;
    path->probes_time = s.server->base.clock.now;
    path->heard_time = -1e300;
}

static void session_on_connect( void * context, int slot, int connected )
{
    (void) context;
    FUZZ_CHECK( slot >= 0 && slot < SESSION_SLOTS && ( connected == 0 || connected == 1 ) );
    fuzz_note( (uint64_t) ( slot * 2 + connected ) );
    if ( connected ) {
        int loopback = netcode_server_client_loopback( s.server, slot );
        uint64_t session = netcode_server_client_session( s.server, slot );
        FUZZ_CHECK( s.slot_tokens[slot] == -1 && session > 0 );
        for ( int i = 0; i < SESSION_SLOTS; i++ )
            FUZZ_CHECK( s.slot_sessions[i] < session );
        s.slot_sessions[slot] = session;
        s.slot_tokens[slot] = loopback ? -2 : session_token_in( slot );
        if ( !loopback )
            session_check_newcomer( slot, s.slot_tokens[slot] );
        session_act( s.on_connect );
    } else {
        FUZZ_CHECK( s.slot_tokens[slot] != -1 );
        FUZZ_CHECK( netcode_server_client_id( s.server, slot ) != 0 );
        session_act( s.on_leave ); /* until it returns, the client can still be sent something */
        s.slot_tokens[slot] = -1;
    }
}

static void session_on_state( void * context, int previous, int state )
{
    FUZZ_CHECK( previous != state && state >= -6 && state <= 3 && previous >= -6 && previous <= 3 );
    FUZZ_CHECK( state != 3 || previous == 2 ||
                netcode_client_loopback( s.clients[(struct session_party_t *) context - s.parties] ) );
    fuzz_note( (uint64_t) ( state + 16 ) );
    session_act( s.on_state );
}

/* Loopback payloads carry what the application gave: session_say makes it. */
static void session_on_loopback( void * context, int index, const uint8_t * data, int bytes, uint64_t sequence )
{
    (void) context;
    (void) sequence;
    FUZZ_CHECK( index >= 0 && bytes >= 1 && bytes <= 1200 && data != NULL );
}

/* ---- payloads ---- */

FUZZ_UNCOUNTED static void session_spell( uint8_t * out, uint64_t serial, int bytes )
{
    fuzz_fill( out, (size_t) bytes, serial * 1000003 );
}

static struct session_sent_t * session_register( int to_server, int token, uint64_t sequence, uint64_t serial,
                                                 int bytes )
{
    struct session_sent_t * it = &s.sent[s.sent_count++];
    it->to_server = to_server;
    it->token = token;
    it->sequence = s.on_send ? UINT64_MAX : sequence; /* where sends act, others may come in between */
    it->serial = serial;
    it->bytes = bytes;
    it->arrived = 0;
    return it;
}

/* A payload has arrived: just this was sealed, and it did not arrive here before. */
FUZZ_UNCOUNTED static void session_check_payload( int party, int token, uint64_t sequence, const uint8_t * data,
                                                  int bytes )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    struct session_sent_t * found = NULL;
    unsigned bit = 1u << party;
    FUZZ_CHECK( bytes >= 1 && bytes <= 1200 );
    for ( int i = 0; i < s.sent_count && !found; i++ ) {
        struct session_sent_t * it = &s.sent[i];
        if ( it->to_server != ( party == 0 ) || it->bytes != bytes || it->arrived & bit ||
             ( it->sequence != sequence && it->sequence != UINT64_MAX ) || ( token >= 0 && it->token != token ) )
            continue;
        session_spell( expected, it->serial, bytes );
        if ( memcmp( expected, data, (size_t) bytes ) == 0 )
            found = it;
    }
    FUZZ_CHECK( found != NULL );
    for ( int i = 0; i < s.sent_count; i++ )
        if ( s.sent[i].arrived & bit && s.sent[i].to_server == found->to_server && s.sent[i].token == found->token )
            FUZZ_CHECK( s.sent[i].sequence != sequence );
    found->arrived |= bit;
    found->sequence = sequence;
    for ( int i = 0; i < 8; i++ )
        FUZZ_CHECK( data[bytes + i] == 0 );
}

/* What went by loopback is not sealed; it is recognized by its sequence, which no sealed packet here has. */
#define SESSION_LOOPBACK_SEQUENCE ( (uint64_t) 0xff00000000000000u )

static void session_got( int party, int token, uint64_t sequence, uint8_t * data, int bytes )
{
    struct session_party_t * p = &s.parties[party];
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    fuzz_note( sequence );
    if ( sequence - SESSION_LOOPBACK_SEQUENCE < 256 ) {
        session_spell( expected, sequence - SESSION_LOOPBACK_SEQUENCE, bytes );
        FUZZ_CHECK( memcmp( expected, data, (size_t) bytes ) == 0 );
    } else
        session_check_payload( party, token, sequence, data, bytes );
    if ( p->held_count < SESSION_HELD )
        p->held[p->held_count++] = data;
    else if ( party == 0 )
        netcode_server_free_packet( s.server, data );
    else
        netcode_client_free_packet( s.clients[party], data );
}

static void session_free_held( int party, int count )
{
    struct session_party_t * p = &s.parties[party];
    while ( p->held_count && count-- > 0 ) {
        void * packet = p->held[0];
        memmove( p->held, p->held + 1, (size_t) --p->held_count * sizeof( p->held[0] ) );
        if ( party == 0 )
            netcode_server_free_packet( s.server, packet );
        else
            netcode_client_free_packet( s.clients[party], packet );
    }
}

/* A client that is connected has moved, after the last event that said so. */
FUZZ_UNCOUNTED static void session_check_moved_event( const struct netcode_event_t * event )
{
    int slot = event->client_index;
    FUZZ_CHECK( s.server_config.roaming && slot >= 0 && slot < SESSION_SLOTS && s.slot_tokens[slot] >= 0 );
    struct session_path_t * path = &s.paths[s.slot_tokens[slot]];
    FUZZ_CHECK( event->session == s.slot_sessions[slot] && event->bytes == 0 && event->reason == 0 );
    FUZZ_CHECK( event->client_id == session_tokens[s.slot_tokens[slot]].client_id );
    FUZZ_CHECK( s.server->memory.paths[slot].moves > path->moves_reported );
    path->moves_reported = s.server->memory.paths[slot].moves;
}

static void session_read_server_events( int count )
{
    struct netcode_event_t event;
    while ( s.server && s.server_config.events && count-- > 0 && netcode_server_next_event( s.server, &event ) ) {
        FUZZ_CHECK( event.type >= NETCODE_EVENT_CONNECTED && event.type <= NETCODE_EVENT_MOVED );
        if ( event.type == NETCODE_EVENT_MOVED )
            session_check_moved_event( &event );
        FUZZ_CHECK( event.session > 0 && event.session <= s.server->session );
        FUZZ_CHECK( ( event.type == NETCODE_EVENT_PAYLOAD ) == ( event.data != NULL ) );
        fuzz_note( event.session * 4 + (uint64_t) event.type );
        if ( event.type == NETCODE_EVENT_PAYLOAD )
            session_got( 0, -1, event.sequence, event.data, event.bytes );
    }
}

static void session_read_client_events( int party, int count )
{
    struct netcode_event_t event;
    while ( s.clients[party] && s.client_config.events && count-- > 0 &&
            netcode_client_next_event( s.clients[party], &event ) ) {
        FUZZ_CHECK( event.type >= NETCODE_EVENT_CONNECTED && event.type <= NETCODE_EVENT_DISCONNECTED );
        FUZZ_CHECK( event.type != NETCODE_EVENT_DISCONNECTED || event.reason <= 0 );
        fuzz_note( event.session * 4 + (uint64_t) event.type );
        if ( event.type == NETCODE_EVENT_PAYLOAD )
            session_got( party, s.parties[party].session_tokens[event.session % SESSION_REMEMBERED], event.sequence,
                         event.data, event.bytes );
    }
}

static void session_read_slot( int slot )
{
    int bytes = 0;
    uint64_t sequence = 0;
    uint8_t * data =
        s.server && !s.server_config.events ? netcode_server_receive_packet( s.server, slot, &bytes, &sequence ) : NULL;
    if ( data )
        session_got( 0, -1, sequence, data, bytes );
}

static void session_read_client( int party )
{
    int bytes = 0;
    uint64_t sequence = 0;
    if ( s.on_send ) { /* sequences are not known beforehand then: the event names whose payload it is */
        session_read_client_events( party, 1 );
        return;
    }
    uint8_t * data = s.clients[party] && !s.client_config.events
                         ? netcode_client_receive_packet( s.clients[party], &bytes, &sequence )
                         : NULL;
    if ( data )
        session_got( party, -1, sequence, data, bytes );
}

static void session_client_says( int party, int bytes )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct netcode_client_t * client = s.clients[party];
    if ( !client || s.sent_count == SESSION_SENT )
        return;
    uint64_t before = netcode_client_next_packet_sequence( client );
    session_spell( data, (uint64_t) s.sent_count, bytes );
    if ( client->state == 3 && !client->loopback ) /* beforehand: what the network's callback does comes within */
        session_register( 1, s.parties[party].token, before, (uint64_t) s.sent_count, bytes );
    netcode_client_send_packet( client, data, bytes );
}

/*  Registers what the server is about to send to a slot. While the last packets of a client leave, the application was
    notified that it left, and what the network's callback sends still reaches it. */
static void session_server_will_say( int slot, uint64_t serial, int bytes )
{
    const nc_slot_t * it = &s.server->memory.slot[slot];
    int token = it->state == NC_SLOT_FREE || it->loopback ? -1 : session_token_in( slot );
    if ( it->address.type == NETCODE_ADDRESS_NONE && !s.on_send )
        return; /* another client has its address: nothing is sent to it */
    if ( token >= 0 && s.sent_count < SESSION_SENT )
        session_register( 0, token, it->sequence + !it->confirmed, serial, bytes );
}

static void session_server_says( int slot, int bytes, int how )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    uint64_t serial = (uint64_t) s.sent_count;
    if ( !s.server || s.sent_count > SESSION_SENT - SESSION_SLOTS || !netcode_server_running( s.server ) )
        return;
    session_spell( data, serial, bytes );
    int slots = netcode_server_max_clients( s.server ); /* s.slots is the next start's, where one is deferred */
    for ( int i = 0; i < slots; i++ )
        if ( i == slot || how == 1 )
            session_server_will_say( i, serial, bytes );
    if ( how == 1 )
        netcode_server_broadcast( s.server, data, bytes, -1 );
    else if ( how == 2 )
        netcode_server_send_packet_to_session( s.server, slot, s.slot_sessions[slot], data, bytes );
    else
        netcode_server_send_packet( s.server, slot, data, bytes );
}

/* ---- calls ---- */

static void session_connect( int party, int token, int at, uint8_t bits )
{
    uint8_t bytes[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_t * client = s.clients[party];
    if ( !client )
        return;
    memcpy( bytes, session_tokens[token].bytes, sizeof( bytes ) );
    bytes[at] ^= bits;
    if ( bits && at >= 1085 + 8 ) /* another route, or keys: its payloads are not the token's */
        return;
    s.parties[party].token = token;
    s.parties[party].session_tokens[( client->session + 1 ) % SESSION_REMEMBERED] = (int8_t) token;
    netcode_client_connect( client, bytes );
}

static void session_loopback( uint8_t how )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    int slot = how & 3, bytes = 1 + ( how >> 2 ) * 19;
    struct session_party_t * p = &s.parties[0];
    uint64_t serial = how, before;
    if ( !s.server || !netcode_server_running( s.server ) || slot >= s.slots )
        return;
    session_spell( data, serial, bytes );
    switch ( how >> 6 ) {
    case 0: netcode_server_connect_loopback_client( s.server, slot, 100 + (uint64_t) slot, NULL ); break;
    case 1: netcode_server_disconnect_loopback_client( s.server, slot ); break;
    default:
        if ( !netcode_server_client_loopback( s.server, slot ) )
            break;
        before = s.server->base.counters.packets_received[NETCODE_PACKET_PAYLOAD];
        netcode_server_process_loopback_packet( s.server, slot, data, bytes, SESSION_LOOPBACK_SEQUENCE + serial );
        p->loopback_accepted += s.server->base.counters.packets_received[NETCODE_PACKET_PAYLOAD] - before;
    }
}

static void session_client_loopback( int party, uint8_t how )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct netcode_client_t * client = s.clients[party];
    struct session_party_t * p = &s.parties[party];
    int bytes = 1 + ( how >> 2 ) * 19;
    uint64_t before;
    if ( !client )
        return;
    session_spell( data, how, bytes );
    switch ( how & 3 ) {
    case 0: netcode_client_connect_loopback( client, how >> 2 & 1, 2 ); break;
    case 1: netcode_client_disconnect_loopback( client ); break;
    default:
        before = client->base.counters.packets_received[NETCODE_PACKET_PAYLOAD];
        netcode_client_process_loopback_packet( client, data, bytes, SESSION_LOOPBACK_SEQUENCE + how );
        p->loopback_accepted += client->base.counters.packets_received[NETCODE_PACKET_PAYLOAD] - before;
    }
}

static void session_update_server( void )
{
    if ( s.server )
        netcode_server_update( s.server, s.time );
}

static void session_update_client( int party )
{
    if ( s.clients[party] )
        netcode_client_update( s.clients[party], s.time );
}

/* What the application does from inside a callback. */
static void session_act( int what )
{
    if ( what == 0 || s.actions_left == 0 || s.is_over )
        return;
    s.actions_left--;
    s.inside++;
    switch ( what % 16 ) {
    case 1:
        if ( s.server && netcode_server_running( s.server ) )
            netcode_server_disconnect_client( s.server, 0 );
        break;
    case 2:
        if ( s.server )
            netcode_server_disconnect_all_clients( s.server );
        break;
    case 3:
        if ( s.server )
            netcode_server_stop( s.server );
        break;
    case 4:
        if ( s.server )
            netcode_server_start( s.server, s.slots );
        break;
    case 5:
        if ( !s.server_config.override_send_and_receive )
            netcode_server_destroy( s.server );
        break;
    case 6: session_server_says( 0, 30, 1 ); break;
    case 7: session_loopback( 0 ); break;
    case 8: session_update_server(); break;
    case 9:
        if ( s.clients[1] )
            netcode_client_disconnect( s.clients[1] );
        break;
    case 10: session_connect( 1, 3, 0, 0 ); break;
    case 11:
        if ( !s.client_config.override_send_and_receive )
            netcode_client_destroy( s.clients[1] );
        break;
    case 12: session_client_says( 1, 30 ); break;
    case 13: session_update_client( 1 ); break;
    case 14:
        if ( s.server )
            netcode_server_set_private_keys( s.server, session_keys[1], 2 );
        break;
    default: session_client_loopback( 1, 0 );
    }
    s.inside--;
}

/* ---- making ---- */

static void session_make_socket( int party, struct netcode_socket_t * socket )
{
    struct session_party_t * p = &s.parties[party];
    memset( socket, 0, sizeof( *socket ) );
    socket->context = p;
    socket->receive = session_receive;
    socket->send = session_send;
    socket->wait = session_wait;
    socket->close = session_close;
    socket->info = session_info;
}

/* An object is made anew: what is known of its predecessor's counters and packets is over. */
static void session_renew( int party )
{
    struct session_party_t * p = &s.parties[party];
    int inbox_count = p->inbox_count;
    memset( p, 0, sizeof( *p ) );
    p->inbox_count = inbox_count;
    p->token = -1;
    p->open = 1;
    memset( p->session_tokens, 0xff, sizeof( p->session_tokens ) );
    for ( int i = 0; i < s.sent_count; i++ )
        s.sent[i].arrived &= ~( 1u << party );
}

static void session_make_client( int party )
{
    struct netcode_client_config_t config = s.client_config;
    struct session_party_t * p = &s.parties[party];
    struct netcode_client_t * client;
    if ( s.clients[party] )
        return;
    session_renew( party );
    session_make_socket( party, &p->socket );
    p->socket.rebind = s.can_rebind ? session_rebind : NULL;
    config.callback_context = p;
    config.socket = config.override_send_and_receive ? NULL : &p->socket;
    client = party == 2 ? netcode_client_create_dual( session_places[party], "::", &config, s.time )
                        : netcode_client_create( session_places[party], &config, s.time );
    s.clients[party] = client;
    p->open = client != NULL;
}

static void session_make_server( void )
{
    struct netcode_server_config_t config = s.server_config;
    struct session_party_t * p = &s.parties[0];
    if ( s.server )
        return;
    session_renew( 0 );
    session_make_socket( 0, &p->socket );
    config.callback_context = p;
    config.socket = config.override_send_and_receive ? NULL : &p->socket;
    memset( s.connects_of_token, 0, sizeof( s.connects_of_token ) );
    memset( s.slot_sessions, 0, sizeof( s.slot_sessions ) );
    s.unix_lowest = UINT64_MAX;
    session_unix();
    memset( s.paths, 0, sizeof( s.paths ) );
    s.strays_accepted = 0;
    s.server = netcode_server_create_dual( session_places[0], session_places[SESSION_SERVER2], &config, s.time );
    p->open = s.server != NULL;
}

/* The override callbacks know no close: the object is gone when its destroy returns. */
static void session_destroy( int party )
{
    int overridden = party ? s.client_config.override_send_and_receive : s.server_config.override_send_and_receive;
    if ( party )
        netcode_client_destroy( s.clients[party] );
    else
        netcode_server_destroy( s.server );
    if ( overridden && s.parties[party].open )
        session_close( &s.parties[party] );
}

static void session_start( int slots )
{
    if ( !s.server )
        return;
    s.slots = slots;
    netcode_server_start( s.server, slots );
}

/* ---- datagrams of the fuzzer's own ---- */

/* A call in place of the socket; the buffer is as large as the datagram. */
static void session_process( int party, const struct session_datagram_t * d )
{
    struct session_party_t * p = &s.parties[party];
    struct netcode_address_t from = d->from;
    uint8_t * data;
    if ( ( party ? (void *) s.clients[party] : (void *) s.server ) == NULL )
        return;
    data = (uint8_t *) malloc( d->bytes ? (size_t) d->bytes : 1 );
    if ( !data )
        abort();
    memcpy( data, d->data, (size_t) d->bytes );
    p->handed++;
    p->handed_bytes += (uint64_t) d->bytes;
    p->clean += (uint64_t) d->clean;
    if ( party == 0 ) {
        session_watch_paths( 0 );
        session_note_arrival( &from, data, d->bytes );
    }
    if ( party )
        netcode_client_process_packet( s.clients[party], &from, data, d->bytes );
    else
        netcode_server_process_packet( s.server, &from, data, d->bytes );
    free( data );
}

static void session_arrive( int party, struct session_datagram_t * d, int directly )
{
    if ( !directly ) {
        session_deliver( party, d );
        return;
    }
    if ( d->sender >= 0 && ( d->sender == 0 ) == ( party == 0 ) )
        d->clean = 0;
    session_process( party, d );
}

/* Changes a copy in one place, or its size. */
static void session_change( struct session_datagram_t * d, uint8_t how )
{
    int at = (int) fuzz_number( s.input, 2 );
    uint8_t bits = fuzz_u8( s.input );
    d->clean = 0;
    switch ( how & 3 ) {
    case 0: d->bytes = at % d->bytes; break;
    case 1:
        for ( int i = 0; i <= at % 64 && d->bytes < SESSION_DATAGRAM; i++ )
            d->data[d->bytes++] = bits;
        break;
    case 2: d->data[0] ^= bits ? bits : 1; break;
    default: d->data[at % d->bytes] ^= bits ? bits : 128;
    }
}

/* Something of the wire arrives again, or for the first time: as it is or changed, here or elsewhere. */
static void session_repeat( void )
{
    static struct session_datagram_t d;
    int back = fuzz_u8( s.input ) % SESSION_WIRE;
    uint8_t how = fuzz_u8( s.input ), where = fuzz_u8( s.input );
    if ( back >= s.wire_count )
        return;
    struct session_datagram_t * original = &session_wire[( s.wire_count - 1 - back ) % SESSION_WIRE];
    int party = session_party_at( &original->to );
    d = *original;
    if ( how & 16 )
        session_change( &d, how );
    else
        original->taken |= how & 32;
    if ( how & 64 )
        d.from = session_addresses[where % SESSION_ADDRESSES];
    if ( how & 128 )
        party = ( where >> 4 ) % SESSION_PARTIES;
    if ( party >= 0 )
        session_arrive( party, &d, how & 8 );
}

/*  The newest challenge on the wire that this token's holder can open, or rather the newest one of all others: the body of a
    response. Zeros where there is none. */
static void session_find_challenge( uint8_t body[NC_PACKET_LARGE_BODY], int token, int of_others )
{
    for ( int i = s.wire_count - 1; i >= 0 && i >= s.wire_count - SESSION_WIRE; i-- ) {
        const struct session_datagram_t * d = &session_wire[i % SESSION_WIRE];
        nc_packet_t packet;
        if ( d->sender != 0 || ( d->data[0] & 15 ) != NETCODE_PACKET_CHALLENGE ||
             nc_packet_parse( &packet, d->data, d->bytes, NC_TO_CLIENT ) != NETCODE_DROP_NONE )
            continue;
        for ( int k = 0; k < SESSION_TOKENS; k++ ) {
            nc_packet_context_t channel = { session_tokens[k].inner.route.server_to_client_key, SESSION_PROTOCOL };
            if ( ( k == token ) != of_others && nc_packet_open( &packet, d->data, body, &channel ) )
                return;
        }
    }
    memset( body, 0, NC_PACKET_LARGE_BODY );
}

/* Where the other side's window stands, for this token. */
static uint64_t session_newest( int token, int to_server, int party )
{
    if ( !to_server )
        return s.clients[party] ? s.clients[party]->replay.newest : 0;
    for ( int i = 0; i < s.slots && s.server && s.server->running; i++ )
        if ( s.slot_tokens[i] == token )
            return s.server->memory.slot[i].replay.newest;
    return (uint64_t) 1 << 40;
}

static int session_forge_body( uint8_t * body, int type, int token, uint8_t how )
{
    memset( body, 0, 1300 );
    switch ( type ) {
    case NETCODE_PACKET_CHALLENGE:
    case NETCODE_PACKET_RESPONSE:
        session_find_challenge( body, token, how & 1 );
        if ( how & 2 )
            body[fuzz_number( s.input, 2 ) % NC_PACKET_LARGE_BODY] ^= fuzz_u8( s.input );
        return NC_PACKET_LARGE_BODY;
    case NETCODE_PACKET_KEEP_ALIVE:
        body[0] = fuzz_u8( s.input );
        body[4] = fuzz_u8( s.input );
        body[7] = how & 4 ? 0xff : 0;
        return 8;
    case NETCODE_PACKET_PAYLOAD:
        session_spell( body, (uint64_t) s.sent_count, 1 + how * 5 % 1200 );
        return 1 + how * 5 % 1200;
    default: return 0;
    }
}

/* Whose packet would the server be ready for? The nth handshake's, else a slot's. Returns the token, or -1. */
static int session_aim( int nth, struct netcode_address_t * from )
{
    const nc_server_memory_t * memory = &s.server->memory;
    if ( !s.server->running )
        return -1;
    for ( uint32_t i = s.server->handshakes.in_progress.tail; i != FUZZ_NOWHERE;
          i = s.server->handshakes.links[i].prev )
        if ( nth-- == 0 ) {
            *from = s.server->handshakes.pending[i].address;
            for ( int k = 0; k < SESSION_TOKENS; k++ )
                if ( memcmp( session_tokens[k].tag, s.server->handshakes.pending[i].tag, NC_TOKEN_TAG_BYTES ) == 0 )
                    return k;
        }
    for ( int i = 0; i < s.slots; i++ )
        if ( s.slot_tokens[i] >= 0 && nth-- <= 0 ) {
            *from = memory->slot[i].address;
            return s.slot_tokens[i];
        }
    return -1;
}

/* A packet by a holder of a token's keys: a client gone bad, or a server. */
static void session_forge( void )
{
    static struct session_datagram_t d;
    static uint8_t body[1300];
    uint8_t how = fuzz_u8( s.input ), what = fuzz_u8( s.input ), size = fuzz_u8( s.input );
    int token = what % ( SESSION_TOKENS - 1 ), to_server = how & 1, type = ( how >> 1 & 7 ) % NETCODE_PACKET_TYPES;
    int place = 1 + ( what >> 4 ) % SESSION_CLIENTS, party = to_server ? 0 : place;
    d.from = session_addresses[to_server ? s.place_of_party[place] : 0];
    if ( how & 128 ) /* rather one that a peer is waiting for */
        token = !to_server ? s.parties[party].token : s.server ? session_aim( size >> 6, &d.from ) : -1;
    if ( how & 32 )
        d.from = session_addresses[fuzz_u8( s.input ) % SESSION_ADDRESSES];
    if ( token < 0 )
        return;
    const nc_route_t * route = &session_tokens[token].inner.route;
    int bytes = session_forge_body( body, type, token, size );
    uint64_t step = fuzz_u64( s.input ), newest = session_newest( token, to_server, party );
    nc_packet_t packet = { type, 0, bytes, how & 16 ? newest - step : newest + step };
    nc_packet_context_t channel = { to_server ? route->client_to_server_key : route->server_to_client_key,
                                    SESSION_PROTOCOL };
    if ( type == NETCODE_PACKET_PAYLOAD ) {
        if ( s.sent_count == SESSION_SENT || packet.sequence >= SESSION_LOOPBACK_SEQUENCE )
            return;
        session_register( to_server, token, packet.sequence, (uint64_t) s.sent_count, bytes )->sequence =
            packet.sequence;
    }
    d.bytes = nc_packet_seal( d.data, &packet, body, &channel );
    d.sender = -1;
    d.clean = 1;
    d.status = NETCODE_DATAGRAM_OK;
    session_arrive( party, &d, how & 64 );
}

/*  An echo by the holder of a token's keys: one of the newest probes on the wire, as it is or changed, from where it was sent
    to, or from elsewhere, newer than the server knows or not. */
static void session_echo( uint8_t how, uint8_t where )
{
    static struct session_datagram_t d;
    static uint8_t body[NC_OUT_STRIDE];
    int back = how & 3;
    for ( int i = s.wire_count - 1; i >= 0 && i >= s.wire_count - SESSION_WIRE; i-- ) {
        const struct session_datagram_t * it = &session_wire[i % SESSION_WIRE];
        nc_packet_t packet;
        int token = it->sender == 0 ? session_opener( &packet, it->data, it->bytes, NC_TO_CLIENT, body ) : -1;
        if ( token < 0 || !session_probe_in( &packet, body ) || back-- > 0 )
            continue;
        nc_packet_context_t channel = { session_tokens[token].inner.route.client_to_server_key, SESSION_PROTOCOL };
        packet.sequence = session_newest( token, 1, 0 ) + ( how & 4 ? 0 : 1 + (uint64_t) ( how >> 6 ) );
        body[3] ^= how & 8 ? 1 : 0;
        d.from = how & 16 ? session_addresses[where % SESSION_ADDRESSES] : it->to;
        d.bytes = nc_packet_seal( d.data, &packet, body, &channel );
        d.sender = -1;
        d.clean = 1;
        d.status = NETCODE_DATAGRAM_OK;
        session_arrive( 0, &d, how & 32 );
        return;
    }
}

/* An attacker on the path is faster: the newest datagram of a client arrives from elsewhere, first or instead. */
static void session_overtake( uint8_t how, uint8_t where )
{
    static struct session_datagram_t d;
    for ( int i = s.wire_count - 1; i >= 0 && i >= s.wire_count - SESSION_WIRE; i-- ) {
        struct session_datagram_t * it = &session_wire[i % SESSION_WIRE];
        if ( it->sender != 1 + ( how & 3 ) % SESSION_CLIENTS )
            continue;
        d = *it;
        d.from = session_addresses[where % SESSION_ADDRESSES];
        it->taken |= how & 8;
        session_arrive( 0, &d, how & 4 );
        return;
    }
}

/* A request by the holder of a token, from anywhere. */
static void session_request( void )
{
    static struct session_datagram_t d;
    static nc_connect_token_t token;
    uint8_t what = fuzz_u8( s.input ), place = fuzz_u8( s.input );
    if ( !nc_token_read( session_tokens[what % ( SESSION_TOKENS - 1 )].bytes, &token ) )
        abort();
    d.bytes = nc_packet_write_request( d.data, &token );
    d.sender = -1;
    d.clean = 1;
    d.status = NETCODE_DATAGRAM_OK;
    d.from = session_addresses[place % SESSION_ADDRESSES];
    if ( place & 128 )
        session_change( &d, what >> 4 );
    session_arrive( 0, &d, what & 128 );
}

/* Anything at all, and errors of the system. */
static void session_junk( void )
{
    static struct session_datagram_t d;
    uint8_t how = fuzz_u8( s.input ), place = fuzz_u8( s.input );
    int party = ( how & 7 ) % SESSION_PARTIES;
    d.bytes = (int) ( fuzz_u64( s.input ) % SESSION_DATAGRAM );
    d.sender = -1;
    d.clean = 0;
    d.status = how & 8 ? NETCODE_DATAGRAM_ERROR : NETCODE_DATAGRAM_OK;
    if ( how & 8 )
        d.bytes = 0;
    d.error = 111;
    d.from = session_addresses[place % SESSION_ADDRESSES];
    if ( place & 16 )
        d.from.port = 0;
    if ( place & 32 ) { /* the same place, written as IPv4-mapped */
        memset( &d.from.data, 0, sizeof( d.from.data ) );
        d.from.type = NETCODE_ADDRESS_IPV6;
        d.from.data.ipv6[5] = 0xffff;
        d.from.data.ipv6[6] = 0x0a01;
        d.from.data.ipv6[7] = place & 3;
    }
    if ( place & 64 )
        d.from.type = NETCODE_ADDRESS_NONE;
    fuzz_fill( d.data, (size_t) d.bytes, how );
    for ( int i = 0; i < how >> 5 && i < d.bytes; i++ )
        d.data[i] = fuzz_u8( s.input );
    session_arrive( party, &d, how & 16 && !( how & 8 ) );
}

/* ---- what must always hold ---- */

FUZZ_UNCOUNTED static uint64_t session_sum( const uint64_t * numbers, int count )
{
    uint64_t sum = 0;
    while ( count-- > 0 )
        sum += numbers[count];
    return sum;
}

FUZZ_UNCOUNTED static void session_check_counters( int party, const nc_counters_t * c, const nc_outbox_t * outbox )
{
    const struct session_party_t * p = &s.parties[party];
    uint64_t received = session_sum( c->packets_received, NETCODE_PACKET_TYPES );
    uint64_t dropped = session_sum( c->dropped, NETCODE_DROP_REASONS );
    uint64_t sent = session_sum( c->packets_sent, NETCODE_PACKET_TYPES ), waiting = 0;
    for ( int i = outbox->sent; i < outbox->count; i++ )
        waiting += (uint64_t) outbox->datagrams[i].bytes;
    FUZZ_CHECK( c->datagrams_received == p->handed && c->bytes_received == p->handed_bytes );
    /*  What was accepted and then found no room is counted under both. A server does not open all that is for a full
        queue: only what it opens counts as received. */
    uint64_t full = c->dropped[NETCODE_DROP_QUEUE_FULL], all = p->handed + p->loopback_accepted + full;
    all -= party ? 0 : s.strays_accepted; /* what the application took counts as neither */
    all += c->dropped[NETCODE_DROP_POOL_EMPTY];
    FUZZ_CHECK( received + dropped <= all && all <= received + dropped + full );
    FUZZ_CHECK( party == 0 || received + dropped == all );
    FUZZ_CHECK( received - p->loopback_accepted <= p->clean );
    FUZZ_CHECK( c->receive_errors == p->errors_handed );
    if ( s.on_send == 0 ) { /* a send within eight others is not made */
        FUZZ_CHECK( sent == p->offered + (uint64_t) ( outbox->count - outbox->sent ) );
        FUZZ_CHECK( c->bytes_sent == p->offered_bytes + waiting );
        FUZZ_CHECK( c->send_errors == p->refused );
    }
}

FUZZ_UNCOUNTED static void session_check_list( const nc_list_t * list, const nc_link_t * links )
{
    uint32_t before = FUZZ_NOWHERE, count = 0;
    for ( uint32_t i = list->head; i != FUZZ_NOWHERE; before = i, i = links[i].next, count++ )
        FUZZ_CHECK( links[i].prev == before && count < list->count );
    FUZZ_CHECK( list->tail == before && list->count == count );
}

/* Buffers and events are all somewhere, once. */
FUZZ_UNCOUNTED static void session_check_inbox( const nc_inbox_t * inbox, uint32_t batch,
                                                const struct session_party_t * p, int current )
{
    const nc_pool_t * pool = inbox->pool;
    uint32_t queued = 0, unread = 0, reserved = 0, left = 0;
    for ( uint32_t i = 0; i < inbox->client_count; i++ ) {
        const nc_queue_t * queue = &inbox->queues[i];
        session_check_list( &queue->list, inbox->queue_links );
        queued += queue->list.count;
        FUZZ_CHECK( queue->list.count <= inbox->quota );
        if ( queue->is_open && queue->list.count < inbox->share )
            reserved += inbox->share - queue->list.count;
        left += !queue->is_open && queue->list.count > 0;
    }
    session_check_list( &inbox->events, inbox->event_links );
    session_check_list( &inbox->disconnected, inbox->disconnected_links );
    FUZZ_CHECK( inbox->queued == queued && inbox->reserved == reserved && inbox->disconnected.count == left );
    FUZZ_CHECK( pool->free_count + queued + pool->held + batch == pool->count );
    for ( uint32_t i = 0; inbox->has_events && i < inbox->client_count * NC_EVENTS; i++ )
        unread += inbox->unread[i].session != 0;
    FUZZ_CHECK( inbox->events.count == ( inbox->has_events ? queued + unread : 0 ) );
    FUZZ_CHECK( !current || (uint32_t) p->held_count == pool->held );
}

FUZZ_UNCOUNTED static void session_check_used( const nc_used_t * used )
{
    for ( uint32_t i = 0; i < used->expiring_count; i++ ) {
        FUZZ_CHECK( used->heap[i].expire_timestamp <= used->records[used->heap[i].record].expire_timestamp );
        FUZZ_CHECK( i == 0 || used->heap[( i - 1 ) / 4].expire_timestamp <= used->heap[i].expire_timestamp );
        FUZZ_CHECK( used->heap[i].record < used->expiring_capacity );
    }
    FUZZ_CHECK( used->expiring_count <= used->expiring_capacity && used->never_count <= used->never_capacity );
}

FUZZ_UNCOUNTED static void session_check_slot( uint32_t index )
{
    const nc_server_memory_t * memory = &s.server->memory;
    const nc_slot_t * slot = &memory->slot[index];
    int free = slot->state == NC_SLOT_FREE;
    FUZZ_CHECK( free || slot->state == NC_SLOT_CONNECTED );
    FUZZ_CHECK( ( memory->free_slots.words[0] >> index & 1 ) ==
                ( free && nc_inbox_can_open( &memory->inbox, index ) ) );
    FUZZ_CHECK( ( s.slot_tokens[index] == -1 ) == free && memory->inbox.queues[index].is_open == !free );
    if ( free )
        return;
    FUZZ_CHECK( nc_server_slot_of_id( s.server, slot->client_id,
                                      nc_handshake_id_hash( &s.server->handshakes, slot->client_id ) ) == index );
    FUZZ_CHECK( slot->session == s.slot_sessions[index] );
    if ( slot->loopback )
        return;
    if ( slot->address.type != NETCODE_ADDRESS_NONE ) /* else another client has it: session_watch_paths */
        FUZZ_CHECK( nc_server_slot_at( s.server, &slot->address,
                                       nc_handshake_address_hash( &s.server->handshakes, &slot->address ) ) == index );
    for ( uint32_t i = 0; i < index; i++ )
        FUZZ_CHECK( memory->slot[i].state != NC_SLOT_CONNECTED || slot->address.type == NETCODE_ADDRESS_NONE ||
                    !netcode_address_equal( &memory->slot[i].address, &slot->address ) );
    if ( s.server_config.roaming && s.server_config.events )
        FUZZ_CHECK( ( memory->inbox.unread[index * NC_EVENTS + NC_EVENT_MOVED].session != 0 ) ==
                    ( memory->paths[index].moves > s.paths[s.slot_tokens[index]].moves_reported ) );
    FUZZ_CHECK( memory->wheel.list_of[index] < NC_WHEEL_BUCKETS );
    if ( session_tokens[s.slot_tokens[index]].expire != UINT64_MAX && s.server->handshakes.used.refused_up_to == 0 )
        FUZZ_CHECK(
            nc_used_seen( &s.server->handshakes.used, session_tokens[s.slot_tokens[index]].tag,
                          nc_handshake_tag_hash( &s.server->handshakes, session_tokens[s.slot_tokens[index]].tag ) ) );
}

FUZZ_UNCOUNTED static void session_check_pending( void )
{
    const nc_server_memory_t * memory = &s.server->memory;
    session_check_list( &s.server->handshakes.in_progress, s.server->handshakes.links );
    session_check_list( &s.server->handshakes.unused, s.server->handshakes.links );
    FUZZ_CHECK( s.server->handshakes.in_progress.count + s.server->handshakes.unused.count ==
                s.server->handshakes.capacity );
    for ( uint32_t i = s.server->handshakes.in_progress.head; i != FUZZ_NOWHERE;
          i = s.server->handshakes.links[i].next ) {
        const nc_pending_t * it = &s.server->handshakes.pending[i];
        int same_tag = 0, same_address = 0, same_id = 0;
        for ( uint32_t k = s.server->handshakes.in_progress.head; k != FUZZ_NOWHERE;
              k = s.server->handshakes.links[k].next ) {
            int tag = memcmp( it->tag, s.server->handshakes.pending[k].tag, NC_TOKEN_TAG_BYTES ) == 0;
            int address = netcode_address_equal( &it->address, &s.server->handshakes.pending[k].address );
            FUZZ_CHECK( k == i || !tag || !address );
            same_tag += tag;
            same_address += address;
            same_id += it->client_id == s.server->handshakes.pending[k].client_id;
        }
        FUZZ_CHECK( same_tag <= 4 && same_address <= 4 && same_id <= 4 );
        FUZZ_CHECK( memory->wheel.list_of[memory->slot_count + i] < NC_WHEEL_BUCKETS );
        /* it ends 10 s after the last answer, or twice that behind a backlog */
        FUZZ_CHECK( s.server->base.clock.now - it->answer_time <= 20.01 || s.is_over );
    }
}

FUZZ_UNCOUNTED static void session_check_server( void )
{
    struct netcode_server_stats_t stats;
    uint64_t left;
    uint32_t connected = 0;
    if ( !s.server )
        return;
    netcode_server_stats( s.server, &stats );
    session_check_counters( 0, &s.server->base.counters, &s.server->base.outbox );
    left = session_sum( stats.disconnects, NETCODE_SERVER_CLIENT_DISCONNECT_REASONS );
    FUZZ_CHECK( stats.connects - left == (uint64_t) stats.clients );
    FUZZ_CHECK( stats.handshakes >= stats.handshakes_expired + stats.handshakes_evicted );
    if ( !s.server->memory.block )
        return;
    session_check_inbox( &s.server->memory.inbox, NC_RECEIVE_BATCH, &s.parties[0], s.server->retired_pools == NULL );
    session_check_used( &s.server->handshakes.used );
    if ( !s.server->running )
        return;
    session_check_list( &s.server->active, s.server->memory.active_links );
    for ( uint32_t i = 0; i < s.server->memory.slot_count; i++ ) {
        session_check_slot( i );
        connected += s.server->memory.slot[i].state == NC_SLOT_CONNECTED;
    }
    FUZZ_CHECK( connected == s.server->active.count && (int) connected == stats.clients );
    session_check_pending();
}

FUZZ_UNCOUNTED static void session_check_client( int party )
{
    struct netcode_client_stats_t stats;
    struct netcode_client_report_t report;
    struct netcode_client_t * client = s.clients[party];
    if ( !client )
        return;
    netcode_client_stats( client, &stats );
    netcode_client_report( client, &report );
    session_check_counters( party, &client->base.counters, &client->base.outbox );
    session_check_inbox( &client->inbox, NC_CLIENT_BATCH, &s.parties[party], 1 );
    FUZZ_CHECK( stats.connects - stats.disconnects == ( client->state == NETCODE_CLIENT_STATE_CONNECTED ) );
    FUZZ_CHECK( report.state == netcode_client_state( client ) && strlen( report.text ) > 4 );
    FUZZ_CHECK( report.num_servers >= 0 && report.num_servers <= 2 && report.server_index <= 1 );
    FUZZ_CHECK( report.token_seconds_left >= 0.0 );
    if ( client->state <= 0 ) /* keys live only while connecting or connected */
        FUZZ_CHECK( sodium_is_zero( client->token.route.client_to_server_key, 64 ) );
    fuzz_note( (uint64_t) ( client->state + 8 ) );
}

static void session_check( void )
{
    session_watch_paths( 0 );
    session_check_server();
    for ( int i = 1; i < SESSION_PARTIES; i++ )
        session_check_client( i );
}

/* ---- the application's mistakes, and its questions ---- */

static void session_server_mistakes( uint8_t which )
{
    static uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct netcode_server_t * server = which & 64 ? s.server : NULL;
    int index = which & 128 ? -1 : SESSION_SLOTS + 1, bytes = 0;
    struct netcode_server_stats_t stats;
    struct netcode_event_t event;
    if ( s.server && !s.server->running )
        index = -1;
    switch ( which & 31 ) {
    case 0: netcode_server_start( server, which & 128 ? 0 : 65536 ); break;
    case 1: netcode_server_stop( NULL ); break;
    case 2: netcode_server_update( NULL, s.time ); break;
    case 3:
        netcode_server_running( NULL );
        netcode_server_max_clients( NULL );
        break;
    case 4: netcode_server_num_connected_clients( NULL ); break;
    case 5: FUZZ_CHECK( !netcode_server_client_connected( server, index ) ); break;
    case 6: netcode_server_client_disconnect_reason( server, index ); break;
    case 7: FUZZ_CHECK( !netcode_server_client_address( server, index ) ); break;
    case 8:
        netcode_server_disconnect_client( server, index );
        netcode_server_disconnect_all_clients( NULL );
        break;
    case 9: netcode_server_send_packet( server, index, which & 32 ? NULL : data, 30 ); break;
    case 10: netcode_server_send_packet( server, 0, data, which & 32 ? 0 : 1201 ); break;
    case 11: netcode_server_send_packet_to_session( server, index, 1, data, 30 ); break;
    case 12: netcode_server_broadcast( server, which & 32 ? NULL : data, which & 128 ? 0 : 1201, -1 ); break;
    case 13: netcode_server_receive_packet( server, index, which & 32 ? NULL : &bytes, NULL ); break;
    case 14: netcode_server_free_packet( server, which & 32 ? NULL : data ); break;
    case 15: netcode_server_process_packet( server, which & 32 ? NULL : &session_addresses[0], data, -1 ); break;
    case 16: netcode_server_connect_loopback_client( server, index, 1, NULL ); break;
    case 17: netcode_server_disconnect_loopback_client( server, index ); break;
    case 18:
        netcode_server_process_loopback_packet( server, 0, which & 32 ? NULL : data, which & 128 ? 0 : 1201, 1 );
        break;
    case 19: netcode_server_get_port( NULL ); break;
    case 20: netcode_server_next_event( which & 32 ? NULL : server, which & 32 ? &event : NULL ); break;
    case 21:
        netcode_server_flush( NULL );
        netcode_server_wait( NULL, 1.0 );
        break;
    case 22: netcode_server_set_private_keys( server, which & 32 ? NULL : data, which & 128 ? 0 : 5 ); break;
    case 23: netcode_server_stats( server, which & 32 || !server ? NULL : &stats ); break;
    case 24: netcode_server_client_stats( server, 0, NULL ); break;
    case 25: netcode_server_client_id( server, index ); break;
    case 26: FUZZ_CHECK( !netcode_server_client_user_data( server, index ) ); break;
    case 27: netcode_default_server_config( NULL ); break;
    case 28:
        FUZZ_CHECK( netcode_server_memory( NULL, 1 ) == 0 && netcode_server_memory( &s.server_config, 0 ) == 0 );
        break;
    case 29: FUZZ_CHECK( !netcode_server_create( which & 32 ? NULL : "", NULL, s.time ) ); break;
    case 30:
        netcode_server_client_loopback( server, index );
        netcode_server_client_session( server, index );
        break;
    default: netcode_server_next_packet_sequence( server, index );
    }
}

static void session_client_mistakes( uint8_t which )
{
    static uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct netcode_client_t * client = which & 64 ? s.clients[1] : NULL;
    int odd = which & 32 ? 1 : 0, bytes = 0;
    struct netcode_client_stats_t stats;
    struct netcode_client_report_t report;
    struct netcode_event_t event;
    switch ( which & 31 ) {
    case 0: netcode_client_connect( odd ? client : NULL, odd ? NULL : data ); break;
    case 1: netcode_client_update( NULL, s.time ); break;
    case 2: netcode_client_disconnect( NULL ); break;
    case 3: netcode_client_next_packet_sequence( NULL ); break;
    case 4: netcode_client_send_packet( odd ? client : NULL, odd ? NULL : data, 30 ); break;
    case 5:
        if ( client )
            netcode_client_send_packet( client, data, odd ? 0 : 1201 );
        break;
    case 6: netcode_client_receive_packet( odd ? client : NULL, odd ? NULL : &bytes, NULL ); break;
    case 7: netcode_client_free_packet( client, odd ? NULL : data ); break;
    case 8:
        netcode_client_state( NULL );
        netcode_client_index( NULL );
        break;
    case 9:
        netcode_client_max_clients( NULL );
        netcode_client_get_port( NULL );
        FUZZ_CHECK( !netcode_client_rebind( NULL ) );
        break;
    case 10: FUZZ_CHECK( netcode_client_server_address( NULL ) == NULL ); break;
    case 11:
        netcode_client_process_packet( client, odd ? NULL : &session_addresses[0], which & 128 ? NULL : data, -1 );
        break;
    case 12: netcode_client_connect_loopback( client, odd ? -1 : 2, 2 ); break;
    case 13:
        netcode_client_disconnect_loopback( NULL );
        netcode_client_loopback( NULL );
        break;
    case 14: netcode_client_process_loopback_packet( client, odd ? NULL : data, which & 128 ? 0 : 1201, 1 ); break;
    case 15: netcode_client_next_event( odd ? client : NULL, odd ? NULL : &event ); break;
    case 16:
        netcode_client_flush( NULL );
        netcode_client_wait( NULL, 1.0 );
        break;
    case 17: netcode_client_stats( odd ? client : NULL, odd ? NULL : &stats ); break;
    case 18: netcode_client_report( odd ? client : NULL, odd ? NULL : &report ); break;
    case 19: netcode_default_client_config( NULL ); break;
    case 20: FUZZ_CHECK( netcode_client_memory( NULL ) == 0 ); break;
    case 21: FUZZ_CHECK( !netcode_client_create( odd ? NULL : "", NULL, s.time ) ); break;
    default: FUZZ_CHECK( !netcode_client_create_dual( NULL, session_places[1], &s.client_config, s.time ) );
    }
}

/* Objects that can not be made: nothing is left of them. */
static void session_failed_creates( uint8_t which )
{
    struct netcode_client_config_t client = s.client_config;
    struct netcode_server_config_t server = s.server_config;
    static const char * const texts[] = { "10.0.0.1:1", "1.2.3", "[::1]:5", NULL };
    const char * publics[2];
    struct netcode_socket_t no_send;
    publics[0] = which & 8 ? texts[1] : texts[2];
    publics[1] = texts[1];
    memset( &no_send, 0, sizeof( no_send ) );
    client.socket = server.socket = &no_send;
    client.override_send_and_receive = server.override_send_and_receive = 0;
    no_send.receive = session_receive;
    if ( which & 1 ) { /* complete, so that what follows is what fails */
        no_send.send = session_send;
        server.public_addresses = publics;
        server.num_public_addresses = 2;
    }
    if ( which & 2 ) {
        client.override_send_and_receive = server.override_send_and_receive = 1;
        client.send_packet_override = server.send_packet_override = NULL;
    }
    int fail_at = s.fail_at;
    s.fail_at = s.allocations + 1;
    FUZZ_CHECK( !netcode_client_create( texts[which >> 4 & 1], &client, s.time ) );
    FUZZ_CHECK( strcmp( netcode_client_create_error_text( netcode_client_create_error() ), "no error" ) != 0 );
    s.fail_at = which & 4 ? s.allocations + 1 : 0;
    FUZZ_CHECK( !netcode_server_create_dual( texts[0], texts[which >> 5 & 3 ? 1 : 2], &server, s.time ) );
    FUZZ_CHECK( strcmp( netcode_server_create_error_text( netcode_server_create_error() ), "no error" ) != 0 );
    s.fail_at = fail_at;
    FUZZ_CHECK( strcmp( netcode_server_create_error_text( -1 ), netcode_client_create_error_text( 99 ) ) == 0 );
}

/* Objects of other kinds, which come and go at once: defaults, a wildcard, a network simulator, the real memory functions. */
static void session_other_creates( uint8_t which )
{
    static const char * const texts[] = { "0.0.0.0:7", "[::]:7", "10.0.0.1:0", "[fe80::1%2]:0" };
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    struct netcode_socket_t socket;
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    session_make_socket( 0, &socket );
    socket.close = NULL; /* the real server's party is its context */
    if ( which & 4 )
        socket.info = NULL;
    client.socket = server.socket = &socket;
    struct netcode_network_simulator_t * simulator = NULL;
    if ( which & 8 ) {
        simulator = netcode_network_simulator_create( NULL, session_allocate, session_release );
        if ( !simulator )
            return; /* else the system's sockets would be opened */
        client.socket = server.socket = NULL;
        client.network_simulator = server.network_simulator = simulator;
    }
    if ( which & 16 ) {
        client.allocate_function = NULL;
        client.free_function = NULL;
        server.unix_time = NULL;
        server.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    }
    FUZZ_CHECK( netcode_server_memory( &server, 1 ) <= netcode_server_memory( &server, 1000 ) );
    server.packet_pool_buffers = client.packet_pool_buffers = 4;
    server.pending_handshakes = server.consumed_tokens = 4;
    struct netcode_server_t * there = netcode_server_create( texts[which & 3], &server, (double) NAN );
    struct netcode_client_t * here = netcode_client_create( texts[which >> 5 & 3], &client, (double) INFINITY );
    if ( there ) {
        struct netcode_event_t event;
        fuzz_note( netcode_server_get_port( there ) );
        FUZZ_CHECK( !server.events || !netcode_server_next_event( there, &event ) );
        FUZZ_CHECK( netcode_server_client_disconnect_reason( there, 0 ) == 0 );
        if ( which & 128 )
            netcode_server_start( there, 1 );
        netcode_server_destroy( there );
    }
    if ( here )
        fuzz_note( netcode_client_get_port( here ) );
    netcode_client_destroy( here );
    netcode_network_simulator_destroy( simulator );
}

static void session_ask( uint8_t which )
{
    struct netcode_server_client_stats_t stats;
    if ( s.server )
        for ( int i = 0; i < s.slots && netcode_server_running( s.server ); i++ ) {
            netcode_server_client_stats( s.server, i, &stats );
            FUZZ_CHECK( ( stats.session != 0 ) == netcode_server_client_connected( s.server, i ) );
            fuzz_note( stats.packets_received + stats.packets_sent * 256 + (uint64_t) stats.confirmed );
            fuzz_note( (uint64_t) netcode_server_client_disconnect_reason( s.server, i ) );
            fuzz_note( netcode_server_next_packet_sequence( s.server, i ) );
            FUZZ_CHECK( ( netcode_server_client_address( s.server, i ) != NULL ) == ( stats.session != 0 ) );
        }
    if ( s.server && s.server->running && which & 1 )
        netcode_server_wait( s.server, which & 2 ? 0.5 : -1.0 );
    if ( s.server && which & 4 )
        netcode_server_flush( s.server );
    for ( int i = 1; i <= SESSION_CLIENTS; i++ ) {
        if ( !s.clients[i] )
            continue;
        fuzz_note( (uint64_t) netcode_client_index( s.clients[i] ) +
                   (uint64_t) netcode_client_max_clients( s.clients[i] ) );
        fuzz_note( netcode_client_get_port( s.clients[i] ) + (uint64_t) netcode_client_loopback( s.clients[i] ) );
        fuzz_note( netcode_client_server_address( s.clients[i] )->port );
        if ( which & 8 )
            netcode_client_wait( s.clients[i], which & 16 ? 0.01 : 0.0 );
        if ( which & 32 )
            netcode_client_flush( s.clients[i] );
    }
    FUZZ_CHECK( netcode_server_memory( &s.server_config, 2 ) > netcode_client_memory( &s.client_config ) / 8 );
}

/* ---- the schedule ---- */

static void session_tick( double seconds )
{
    s.time += seconds;
    session_pump();
    session_update_server();
    session_pump();
    for ( int i = 1; i < SESSION_PARTIES; i++ )
        session_update_client( i );
}

static void session_ticks( void )
{
    static const double steps[] = { 0.0, 0.02, 0.1, 0.11, 0.25, 0.5, 1.0, 3.0 };
    uint8_t how = fuzz_u8( s.input );
    for ( int i = 0; i <= how >> 5; i++ )
        session_tick( steps[how & 7] );
}

/* Times that no clock should show. */
static void session_odd_time( uint8_t how )
{
    static const double odd[] = { -3600.0, 1e9, 1e308, -1e308, 0.5, 60.0, 1e-9, 4e9 };
    double now = how & 8 ? ( how & 1 ? (double) NAN : (double) INFINITY ) : s.time + odd[how & 7];
    if ( how & 16 ) {
        s.unix_offset += how & 1 ? -3600 : how & 2 ? 30 : 5;
        session_unix();
        return;
    }
    if ( s.server && how & 32 )
        netcode_server_update( s.server, now );
    for ( int i = 1; i <= SESSION_CLIENTS; i++ )
        if ( s.clients[i] && how & 64 )
            netcode_client_update( s.clients[i], now );
}

static void session_drop_wire( uint8_t which )
{
    int first = s.wire_count > SESSION_WIRE ? s.wire_count - SESSION_WIRE : 0;
    for ( int i = first; i < s.wire_count; i++ )
        if ( which & 128 || ( i & 7 ) == ( which & 7 ) )
            session_wire[i % SESSION_WIRE].taken = 1;
}

static void session_fail_socket( uint8_t how )
{
    struct session_party_t * p = &s.parties[how % SESSION_PARTIES];
    if ( how & 128 )
        p->refuses = how >> 4 & 7;
    else if ( how & 64 )
        p->broken = 1 + ( how >> 4 & 1 );
    else if ( s.server )
        netcode_server_set_private_keys( s.server, session_keys[how >> 4 & 1], 1 + ( how >> 5 & 1 ) );
}

static void session_network_op( uint8_t op )
{
    switch ( op ) {
    case 0:
    case 1:
    case 2: session_ticks(); break;
    case 3:
        session_pump();
        session_update_server();
        break;
    case 4:
        session_pump();
        session_update_client( 1 + fuzz_u8( s.input ) % SESSION_CLIENTS );
        break;
    case 5:
    case 6:
    case 7: session_repeat(); break;
    case 8:
    case 9: session_forge(); break;
    case 10: session_request(); break;
    case 11: session_junk(); break;
    case 12: session_drop_wire( fuzz_u8( s.input ) ); break;
    case 13: session_odd_time( fuzz_u8( s.input ) ); break;
    default: session_fail_socket( fuzz_u8( s.input ) );
    }
}

/* A client moves, at once or at its next rebind; rebinds are asked for, fail, or do not. */
static void session_plan_move( int party, int place, int how )
{
    struct session_party_t * p = &s.parties[party];
    p->is_stuck = how == 3;
    if ( how == 0 )
        session_move( party, place );
    else
        p->next_place = place;
    if ( how == 2 && s.clients[party] )
        FUZZ_CHECK( netcode_client_rebind( s.clients[party] ) ==
                    ( s.can_rebind && !s.client_config.override_send_and_receive ) );
}

static void session_path_op( uint8_t op )
{
    uint8_t what = fuzz_u8( s.input ), where;
    int party = 1 + ( what & 3 ) % SESSION_CLIENTS;
    switch ( op ) {
    case 0:
    case 1: session_plan_move( party, session_moves[( what >> 2 & 7 ) % SESSION_MOVES], what >> 5 & 3 ); break;
    case 2:
    case 3:
        where = fuzz_u8( s.input );
        session_echo( what, where );
        break;
    default: where = fuzz_u8( s.input ); session_overtake( what, where );
    }
}

static void session_make_anew( uint8_t which )
{
    int party = ( which & 15 ) % ( SESSION_CLIENTS + 1 );
    session_destroy( party );
    if ( which & 16 )
        return;
    if ( party ) {
        session_make_client( party );
    } else {
        memset( s.slot_tokens, 0xff, sizeof( s.slot_tokens ) );
        session_make_server();
        session_start( s.slots );
    }
}

static void session_application_op( uint8_t op )
{
    uint8_t what = fuzz_u8( s.input );
    int party = 1 + ( what & 3 ) % SESSION_CLIENTS, slot = what & 3, size = 1 + ( what >> 2 ) * 19;
    switch ( op ) {
    case 15:
    case 16:
    case 17: session_connect( party, ( what >> 2 ) % ( SESSION_TOKENS - 1 ), 0, 0 ); break;
    case 18:
        session_connect( party, ( what >> 2 ) % ( SESSION_TOKENS - 1 ), (int) ( fuzz_number( s.input, 2 ) % 1100 ),
                         fuzz_u8( s.input ) );
        break;
    case 19: session_client_says( party, size ); break;
    case 20:
        if ( slot < s.slots )
            session_server_says( slot, size, 0 );
        break;
    case 21:
        if ( slot < s.slots )
            session_server_says( slot, size, 1 + ( what >> 7 ) );
        break;
    case 22: session_read_server_events( 1 + ( what >> 2 ) ); break;
    case 23:
        if ( slot < s.slots )
            session_read_slot( slot );
        session_read_client( party );
        break;
    case 24: session_read_client_events( party, 1 + ( what >> 2 ) ); break;
    case 25: session_free_held( what % SESSION_PARTIES, 1 + ( what >> 4 ) ); break;
    case 26:
        if ( s.clients[party] )
            netcode_client_disconnect( s.clients[party] );
        break;
    case 27:
        if ( s.server && what & 128 )
            netcode_server_disconnect_all_clients( s.server );
        else if ( s.server && slot < s.slots )
            netcode_server_disconnect_client( s.server, slot );
        break;
    case 28:
        if ( what & 128 && s.server )
            netcode_server_stop( s.server );
        else if ( what & 64 )
            session_make_anew( what );
        else
            session_start( 1 + slot );
        break;
    case 29: session_loopback( what ); break;
    case 30: session_client_loopback( party, (uint8_t) ( what >> 2 ) ); break;
    default:
        if ( what < 32 ) {
            session_ask( fuzz_u8( s.input ) );
        } else if ( what < 48 ) {
            session_other_creates( fuzz_u8( s.input ) );
        } else if ( what < 64 ) {
            session_failed_creates( fuzz_u8( s.input ) );
        } else if ( what < 160 ) {
            FUZZ_BAD( session_server_mistakes( fuzz_u8( s.input ) ) );
        } else
            FUZZ_BAD( session_client_mistakes( fuzz_u8( s.input ) ) );
    }
}

/* ---- beginning and end ---- */

static void session_configure( uint8_t head )
{
    uint8_t a = fuzz_u8( s.input ), b = fuzz_u8( s.input ), c = fuzz_u8( s.input ), d = fuzz_u8( s.input );
    struct netcode_server_config_t * server = &s.server_config;
    struct netcode_client_config_t * client = &s.client_config;
    static const int budgets[] = { 0, 1, 8, 40 };
    server->protocol_id = SESSION_PROTOCOL;
    memcpy( server->private_key, session_keys[0], NETCODE_KEY_BYTES );
    server->allocate_function = client->allocate_function = session_allocate;
    server->free_function = client->free_function = session_release;
    server->unix_time = session_unix_callback;
    server->log_callback = client->log_callback = session_log;
    server->drop_callback = client->drop_callback = a & 32 ? session_drop : NULL;
    server->send_loopback_packet_callback = client->send_loopback_packet_callback = a & 64 ? NULL : session_on_loopback;
    server->connect_disconnect_callback = session_on_connect;
    client->state_change_callback = session_on_state;
    server->sequence_base = client->sequence_base = a & 1 ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    server->batch_sends = a >> 1 & 1;
    server->events = client->events = b >> 7;
    client->batch_sends = a >> 2 & 1;
    server->replace_existing_clients = a >> 3 & 1;
    server->override_send_and_receive = client->override_send_and_receive = ( a & 0x90 ) == 0x90;
    server->send_packet_override = client->send_packet_override = session_send_override;
    server->receive_packet_override = client->receive_packet_override = session_receive_override;
    static const int levels[] = { NETCODE_LOG_LEVEL_ERROR, NETCODE_LOG_LEVEL_DEBUG, NETCODE_LOG_LEVEL_NONE,
                                  NETCODE_LOG_LEVEL_INFO };
    netcode_log_level( levels[a >> 4 & 3] );
    s.slots = 1 + ( b & 3 );
    server->pending_handshakes = b & 4 ? 2 + ( b >> 3 & 7 ) : 16;
    server->consumed_tokens = b & 64 ? 1 + ( c & 7 ) : 16;
    server->packet_pool_buffers = 2 * s.slots + ( c >> 3 & 7 );
    server->packet_quota = c & 64 ? 2 : 0;
    server->max_connect_token_lifetime = c & 128 ? 35 : 0;
    client->update_budget = budgets[d & 3];
    client->packet_pool_buffers = d & 4 ? 2 : 6;
    client->packet_quota = d & 8 ? 1 : 0;
    s.admit = d >> 4 & 3;
    server->admit_callback = s.admit == 1 ? NULL : session_admit;
    s.fail_at = d & 64 ? 1 + fuzz_u8( s.input ) % 8 : 0;
    server->roaming = head >> 2 & 1;
    server->stray_callback = head & 8 ? session_on_stray : NULL;
    s.accepts_strays = head >> 4 & 1;
    s.can_rebind = head >> 5 & 1;
    s.has_paths = ( head & 0x3c ) != 0;
    if ( d & 128 ) { /* the application acts inside callbacks */
        uint8_t which = fuzz_u8( s.input ), what = fuzz_u8( s.input );
        s.on_connect = which & 1 ? what & 15 : 0;
        s.on_leave = which & 2 ? what & 15 : 0;
        s.on_state = which & 4 ? what & 15 : 0;
        s.on_send = which & 8 ? what >> 4 : 0;
        s.actions_left = 1 + ( which >> 4 & 7 );
    }
}

/* Whatever happened: the network heals, everyone leaves, and an honest client must get in and be heard. */
static void session_heal( void )
{
    uint8_t data[50];
    struct session_party_t * p = &s.parties[SESSION_HONEST];
    if ( !s.server || !netcode_server_running( s.server ) )
        return;
    s.actions_left = s.fail_at = s.admit = 0;
    session_free_held( 0, SESSION_HELD );
    netcode_server_disconnect_all_clients( s.server );
    for ( int i = 0; i < s.slots; i++ )
        netcode_server_disconnect_loopback_client( s.server, i );
    for ( int i = 1; i <= SESSION_CLIENTS; i++ )
        session_destroy( i );
    session_drop_wire( 128 );
    s.parties[0].inbox_count = s.parties[0].broken = s.parties[0].refuses = 0;
    netcode_server_set_private_keys( s.server, session_keys[0], 1 );
    session_make_client( SESSION_HONEST );
    s.wire_count = 0;
    session_read_server_events( SESSION_SENT ); /* slots wait for unread ones */
    session_connect( SESSION_HONEST, SESSION_HONEST_TOKEN, 0, 0 );
    for ( int i = 0; i < 20 && netcode_client_state( s.clients[SESSION_HONEST] ) != 3; i++ )
        session_tick( 0.1 );
    FUZZ_CHECK( netcode_client_state( s.clients[SESSION_HONEST] ) == 3 );
    FUZZ_CHECK( netcode_server_num_connected_clients( s.server ) == 1 );
    int slot = netcode_client_index( s.clients[SESSION_HONEST] );
    FUZZ_CHECK( s.slot_tokens[slot] == SESSION_HONEST_TOKEN );
    if ( s.sent_count == SESSION_SENT )
        s.sent_count = 0;
    uint64_t sequence = netcode_client_next_packet_sequence( s.clients[SESSION_HONEST] );
    session_spell( data, 7777, sizeof( data ) );
    session_register( 1, p->token, sequence, 7777, (int) sizeof( data ) );
    netcode_client_send_packet( s.clients[SESSION_HONEST], data, (int) sizeof( data ) );
    for ( int i = 0; i < 10 && s.server->memory.inbox.queues[slot].list.count == 0; i++ )
        session_tick( 0.1 );
    int heard = s.parties[0].held_count;
    session_read_slot( slot );
    session_read_server_events( SESSION_SENT );
    FUZZ_CHECK( s.parties[0].held_count == heard + 1 );
}

static void session_end( void )
{
    s.is_over = 1;
    for ( int i = 1; i < SESSION_PARTIES; i++ )
        session_destroy( i );
    session_destroy( 0 );
    for ( int i = 0; i < SESSION_PARTIES; i++ )
        FUZZ_CHECK( !s.parties[i].open );
    FUZZ_CHECK( s.live == 0 );
}

static void fuzz_session( struct fuzz_input_t * input )
{
    session_prepare();
    memset( &s, 0, sizeof( s ) );
    memset( s.slot_tokens, 0xff, sizeof( s.slot_tokens ) );
    s.input = input;
    s.time = SESSION_START;
    for ( int i = 0; i < SESSION_ADDRESSES; i++ )
        s.party_at[i] = i < SESSION_PARTIES ? i : i == SESSION_SERVER2 ? 0 : -1;
    for ( int i = 0; i < SESSION_PARTIES; i++ )
        s.place_of_party[i] = i;
    uint8_t head = fuzz_u8( input );
    session_configure( head );
    session_make_server();
    for ( int i = 1; i <= SESSION_CLIENTS; i++ )
        session_make_client( i );
    session_start( s.slots );
    for ( int i = 0; i < SESSION_OPS && !fuzz_is_over( input ); i++ ) {
        uint8_t byte = fuzz_u8( input ), op = byte & 31;
        if ( byte >= 192 && s.has_paths )
            session_path_op( op % 6 );
        else if ( op < 15 )
            session_network_op( op );
        else
            session_application_op( op );
        if ( op & 1 || head & 1 )
            session_check();
    }
    session_check();
    session_read_server_events( SESSION_SENT );
    for ( int i = 1; i <= SESSION_CLIENTS; i++ )
        session_read_client_events( i, SESSION_SENT );
    if ( head & 2 )
        session_heal();
    session_end();
}

FUZZ_TARGET( session )
