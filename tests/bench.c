/*  make bench: what the library costs, as ratios to libsodium's own cost in the same run, each against its limit.

        bench [ROUNDS [JSON [DATA]]]

    ROUNDS is 31 to 1001. JSON receives every line, DATA the columns that tests/bench.gp draws. Exit code 1 when a
    line is over its limit; BENCH_PRINT_ONLY in the environment makes it 0. 2 when something was not as it must be.

    One process, one server for each number of clients, all through the public API. The clients are peers: their
    packets are sealed here with libsodium, from the standard alone, each with the keys of its own connect token. They
    come in shuffled order, and each payload is answered as its event is read, which is how a server's loop follows
    the packets; at 10,000 clients three lines more show what sending in another order costs. A timing of payloads
    takes so many that the first ones, for which the lines before have left nothing in the cache, do not tip it. The
    network is a socket in memory, which copies a datagram as a kernel would; that copy is in every figure, and the
    column `socket` is what the socket alone took, so that no reader has to guess. Datagrams lie in the cache when the
    server gets them, as they do when a kernel has just copied them; slots and tables do not, where there are many.
    The servers have long been up: they remember as many used tokens as they have room for, and with each handshake
    the earliest-expiring one is evicted.

    Each line times some work of the library and, in the same round, the libsodium calls that no implementation can do
    without, on one hot buffer and key; which goes first alternates. Printed are the median of the rounds' ratios, the
    tenth and ninetieth percentile, and the medians in nanoseconds. An idle update has its limit in nanoseconds. Where
    two lines are compared, `ns` and `floor ns` are theirs. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocations.h"

enum {
    MIN_ROUNDS = 31,
    MAX_ROUNDS = 1001,
    WARM_UP_ROUNDS = 2,
    CHUNK = 256,          /* datagrams that the wire holds, at most, and payloads in one timing */
    NEWCOMERS = 64,       /* clients that connect in one timing */
    STRIDE = 1280,        /* room for any datagram, in whole cache lines */
    LARGEST_BYTES = 1225, /* the largest datagram. Standard: Packets */
    REQUEST_BYTES = 1078,
    SEALED_TOKEN_BYTES = 1024,
    CHALLENGE_BODY_BYTES = 308,
    MAC_BYTES = 16,
    HERTZ = 60,
    TIMEOUT_SECONDS = 1000000 /* alive in every deadline, and never over */
};

static const uint64_t protocol_id = 0x42454e4348u;
static const char * const server_text = "127.0.0.1:1000";
static uint8_t private_key[NETCODE_KEY_BYTES];
static uint8_t plain[2048];
static volatile uint8_t sink; /* what must not be optimised away goes here */

static void stop( const char * why, const char * where )
{
    fprintf( stderr, "bench: %s (%s)\n", why, where );
    exit( 2 );
}

static double nanoseconds( void )
{
    return netcode_time() * 1e9;
}

/* Deterministic numbers: two runs shuffle alike. */
static uint64_t random_number( void )
{
    static uint64_t state = 7;
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

/* ---- allocations, counted ---- */

static size_t allocated_bytes; /* by the library's allocator hooks; never taken back */

static void * allocate( void * context, size_t bytes )
{
    void * pointer = malloc( bytes );
    (void) context;
    allocations += !malloc_is_wrapped;
    allocated_bytes += bytes;
    return pointer;
}

static void release( void * context, void * pointer )
{
    (void) context;
    free( pointer );
}

/* ---- the network in memory: datagrams on their way up to the server, and down from it ---- */

struct wire_t {
    int stride; /* from one datagram to the next */
    int count;
    int next;     /* the next to be received */
    int gate;     /* what lies behind it has not arrived yet */
    int abridged; /* see up_reset_abridged */
    struct netcode_address_t address[CHUNK];
    int bytes[CHUNK];
    uint8_t data[CHUNK * STRIDE];
};

static struct wire_t up;

/*  A ring: `count` is of all that were ever sent. What is kept of each is where it goes, and its bytes only where
    they will be looked at. */
static struct {
    int count;
    int keeps_bytes;
    struct netcode_address_t address[CHUNK];
    int bytes[CHUNK];
    uint8_t data[CHUNK * STRIDE];
} down;

enum { HEAD_BYTES = 64, TAIL_BYTES = 16, ABRIDGED_BYTES = HEAD_BYTES + TAIL_BYTES };

/* Up to CHUNK datagrams of at most `bytes` bytes follow, as close together as cache lines allow. */
static void up_reset( int bytes )
{
    up.stride = ( bytes + 63 ) / 64 * 64;
    up.count = up.next = up.gate = up.abridged = 0;
}

/*  Requests that are refused without a look at their sealed part travel without it: only the public part and the tag
    are copied, and between them stays what lies in the server's buffer, which is as good as any noise. So the price
    of the copy does not hide that of the refusal, and a server that decrypts anything can not refuse for the reason
    that is demanded. */
static void up_reset_abridged( void )
{
    up_reset( ABRIDGED_BYTES );
    up.abridged = 1;
}

static uint8_t * up_at( int index )
{
    return up.data + (size_t) index * (size_t) up.stride;
}

static uint8_t * up_add( const struct netcode_address_t * from )
{
    if ( up.count == CHUNK )
        stop( "the wire is full", "up_add" );
    up.address[up.count] = *from;
    return up_at( up.count );
}

static void up_end( int bytes )
{
    if ( bytes > up.stride && !up.abridged )
        stop( "a datagram has no room on the wire", "up_end" );
    up.bytes[up.count++] = bytes;
}

static void wire_copy( uint8_t * to, const uint8_t * from, int bytes )
{
    if ( !up.abridged ) {
        memcpy( to, from, (size_t) bytes );
        return;
    }
    memcpy( to, from, HEAD_BYTES );
    memcpy( to + bytes - TAIL_BYTES, from + HEAD_BYTES, TAIL_BYTES );
}

static int wire_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int i, waiting = up.gate - up.next;
    (void) context;
    if ( count > waiting )
        count = waiting;
    for ( i = 0; i < count; i++, up.next++ ) {
        struct netcode_datagram_t * datagram = &datagrams[i];
        if ( up.bytes[up.next] > datagram->capacity )
            stop( "the server offers too small a buffer", "wire_receive" );
        datagram->address = up.address[up.next];
        datagram->bytes = up.bytes[up.next];
        datagram->status = NETCODE_DATAGRAM_OK;
        datagram->error = 0;
        wire_copy( datagram->data, up_at( up.next ), datagram->bytes );
    }
    return count;
}

static int wire_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count; i++ ) {
        int at = down.count++ & ( CHUNK - 1 );
        down.address[at] = datagrams[i].address;
        down.bytes[at] = datagrams[i].bytes;
        if ( down.keeps_bytes || at == CHUNK - 1 )
            memcpy( down.data + (size_t) at * STRIDE, datagrams[i].data, (size_t) datagrams[i].bytes );
    }
    return count;
}

static struct netcode_socket_t wire_socket( void )
{
    struct netcode_socket_t socket;
    memset( &socket, 0, sizeof( socket ) );
    socket.receive = wire_receive;
    socket.send = wire_send;
    return socket;
}

/* What the socket itself takes to hand over everything that is on the wire, in batches as the library asks for. */
static double socket_receives( void )
{
    static uint8_t buffers[32][STRIDE];
    struct netcode_datagram_t datagrams[32];
    double start;
    int i;
    for ( i = 0; i < 32; i++ ) {
        datagrams[i].data = buffers[i];
        datagrams[i].capacity = STRIDE;
    }
    up.next = 0;
    up.gate = up.count;
    start = nanoseconds();
    while ( wire_receive( NULL, datagrams, 32 ) > 0 )
        sink = buffers[0][0];
    return nanoseconds() - start;
}

static double socket_sends( int bytes, int count )
{
    static uint8_t data[STRIDE];
    struct netcode_datagram_t datagram;
    double start;
    int i;
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.data = data;
    datagram.bytes = bytes;
    start = nanoseconds();
    for ( i = 0; i < count; i++ )
        wire_send( NULL, &datagram, 1 );
    return nanoseconds() - start;
}

/* ---- peers: clients that were written from the standard alone ---- */

struct peer_t {
    struct netcode_address_t address;
    int slot;
    uint64_t client_id;
    uint64_t sequence; /* of its next packet */
    uint8_t up_key[NETCODE_KEY_BYTES];
    uint8_t down_key[NETCODE_KEY_BYTES];
};

static void store_number( uint8_t * bytes, uint64_t number, int count )
{
    int i;
    for ( i = 0; i < count; i++ )
        bytes[i] = (uint8_t) ( number >> ( 8 * i ) );
}

static uint64_t load_number( const uint8_t * bytes, int count )
{
    uint64_t number = 0;
    while ( count-- > 0 )
        number = number << 8 | bytes[count];
    return number;
}

/* 10.x.y.z: whose it is follows from the address without a search. */
static struct netcode_address_t address_of_number( uint8_t network, uint32_t number )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = NETCODE_ADDRESS_IPV4;
    address.data.ipv4[0] = network;
    address.data.ipv4[1] = (uint8_t) ( number >> 16 );
    address.data.ipv4[2] = (uint8_t) ( number >> 8 );
    address.data.ipv4[3] = (uint8_t) number;
    address.port = 2000;
    return address;
}

static int number_of_address( const struct netcode_address_t * address )
{
    return address->data.ipv4[1] << 16 | address->data.ipv4[2] << 8 | address->data.ipv4[3];
}

/* Somewhere that no client is. */
static struct netcode_address_t address_of_unknown( void )
{
    struct netcode_address_t address = address_of_number( 11, (uint32_t) random_number() );
    address.port = (uint16_t) ( 1024 + random_number() % 60000 );
    return address;
}

struct envelope_t { /* Standard: Packets */
    uint8_t nonce[12];
    uint8_t associated[22];
};

static struct envelope_t envelope_make( uint8_t prefix, uint64_t sequence )
{
    struct envelope_t envelope;
    memset( envelope.nonce, 0, 4 );
    store_number( envelope.nonce + 4, sequence, 8 );
    memcpy( envelope.associated, "NETCODE 1.02", 13 );
    store_number( envelope.associated + 13, protocol_id, 8 );
    envelope.associated[21] = prefix;
    return envelope;
}

/* Writes one packet with six bytes of sequence and returns its size. */
static int peer_seal( struct peer_t * peer, uint8_t * out, int type, const uint8_t * body, int bytes )
{
    uint8_t prefix = (uint8_t) ( 0x60 | type );
    struct envelope_t envelope = envelope_make( prefix, peer->sequence );
    out[0] = prefix;
    store_number( out + 1, peer->sequence++, 6 );
    crypto_aead_chacha20poly1305_ietf_encrypt( out + 7, NULL, body, (unsigned long long) bytes, envelope.associated,
                                               sizeof( envelope.associated ), NULL, envelope.nonce, peer->up_key );
    return 7 + bytes + MAC_BYTES;
}

static void peer_send( struct peer_t * peer, int type, const uint8_t * body, int bytes )
{
    uint8_t * out = up_add( &peer->address );
    up_end( peer_seal( peer, out, type, body, bytes ) );
}

/* Opens what the server sent; returns the size of the body, or -1. */
static int peer_open( const struct peer_t * peer, uint8_t * body, const uint8_t * data, int bytes )
{
    int sequence_bytes = data[0] >> 4;
    int header = 1 + sequence_bytes;
    struct envelope_t envelope = envelope_make( data[0], load_number( data + 1, sequence_bytes ) );
    if ( crypto_aead_chacha20poly1305_ietf_decrypt( body, NULL, NULL, data + header, (unsigned) ( bytes - header ),
                                                    envelope.associated, sizeof( envelope.associated ), envelope.nonce,
                                                    peer->down_key ) != 0 )
        return -1;
    return bytes - header - MAC_BYTES;
}

/* Takes a fresh token and writes its request. Standard: Connect Token; Packets */
static void peer_request( struct peer_t * peer, int expire_seconds, uint8_t out[REQUEST_BYTES] )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * address = server_text;
    const uint8_t * keys = token + 61 + SEALED_TOKEN_BYTES + 4 + 4 + 7;
    peer->client_id = random_number();
    peer->sequence = (uint64_t) 1 << 40;
    if ( netcode_generate_connect_token( 1, &address, &address, expire_seconds, TIMEOUT_SECONDS, peer->client_id,
                                         protocol_id, private_key, NULL, token ) != NETCODE_OK )
        stop( "no connect token", "peer_request" );
    memcpy( peer->up_key, keys, NETCODE_KEY_BYTES );
    memcpy( peer->down_key, keys + NETCODE_KEY_BYTES, NETCODE_KEY_BYTES );
    out[0] = 0;
    memcpy( out + 1, token, 21 );
    memcpy( out + 22, token + 29, 8 + 24 + SEALED_TOKEN_BYTES );
}

/* ---- a world: one server, and the peers that are connected to it ---- */

struct world_t {
    const char * name;
    int clients; /* that are connected all the time */
    int room;    /* for so many more; 0: the world is all default, and full */
    double time;
    struct netcode_server_t * server;
    struct peer_t * peers;
    int * in_order;  /* the clients, shuffled */
    int * out_slots; /* their slots, shuffled again */
    int in_at;
    int out_at;
    int moment;                            /* counts idle timings */
    int generation;                        /* counts clients that connected and disconnected */
    uint8_t ( *requests )[ABRIDGED_BYTES]; /* that connected the clients: their tokens are used */
    uint64_t stamp;                        /* counts payloads, so that each is another one */
};

enum { WORLD_1, WORLD_16, WORLD_256, WORLD_10000, WORLDS };

static struct world_t worlds[WORLDS] = {
    { .name = "1 client", .clients = 1, .room = NEWCOMERS },
    { .name = "16 clients", .clients = 16, .room = NEWCOMERS },
    { .name = "256 clients", .clients = 256, .room = NEWCOMERS },
    { .name = "10,000 clients", .clients = 10000, .room = NEWCOMERS },
};
static struct world_t crowd = { .name = "256 clients, all default", .clients = 256 };

static void * take( size_t count, size_t bytes )
{
    void * memory = calloc( count, bytes );
    if ( !memory )
        stop( "no memory", "take" );
    return memory;
}

static int * shuffle( int count )
{
    int * order = (int *) take( (size_t) count, sizeof( int ) );
    int i;
    for ( i = 0; i < count; i++ ) {
        int k = (int) ( random_number() % (uint64_t) ( i + 1 ) );
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

static struct netcode_server_stats_t world_stats( const struct world_t * world )
{
    struct netcode_server_stats_t stats;
    netcode_server_stats( world->server, &stats );
    return stats;
}

static void world_update( struct world_t * world, double seconds )
{
    world->time += seconds;
    netcode_server_update( world->server, world->time );
}

/* The server gets all that is on the wire; how long does it take? */
static double world_receive( struct world_t * world, double seconds )
{
    double start;
    up.gate = up.count;
    start = nanoseconds();
    world_update( world, seconds );
    return nanoseconds() - start;
}

static uint8_t outgoing[4][NETCODE_MAX_PACKET_SIZE];

/* Sends a payload with a stamp of its own. */
static void world_send( struct world_t * world, int slot, int bytes )
{
    uint64_t stamp = ++world->stamp;
    uint8_t * data = outgoing[stamp & 3];
    memcpy( data, &stamp, sizeof( stamp ) );
    netcode_server_send_packet( world->server, slot, data, bytes );
}

/*  Reads and frees what has come, and answers each payload with one of `bytes`, if that is not 0; returns how many payloads,
    and the sum of their stamps. */
static int world_read( struct world_t * world, int bytes, uint64_t * sum )
{
    struct netcode_event_t event;
    int payloads = 0;
    while ( netcode_server_next_event( world->server, &event ) )
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            uint64_t stamp;
            memcpy( &stamp, event.data, sizeof( stamp ) );
            *sum += stamp;
            if ( bytes )
                world_send( world, event.client_index, bytes );
            netcode_server_free_packet( world->server, event.data );
            payloads++;
        }
    return payloads;
}

static void world_drain( struct world_t * world )
{
    uint64_t sum = 0;
    world_read( world, 0, &sum );
}

/* Lets peers that got a challenge answer it. */
static void world_respond( struct world_t * world, int first, int count )
{
    uint8_t body[LARGEST_BYTES];
    int i, answered = 0;
    up_reset( 512 );
    for ( i = 0; i < down.count && i < CHUNK; i++ ) {
        int number = number_of_address( &down.address[i] );
        const uint8_t * data = down.data + (size_t) i * STRIDE;
        if ( number < first || number >= first + count || ( data[0] & 15 ) != NETCODE_PACKET_CHALLENGE )
            continue;
        if ( peer_open( &world->peers[number], body, data, down.bytes[i] ) != CHALLENGE_BODY_BYTES )
            stop( "a challenge can not be opened", world->name );
        peer_send( &world->peers[number], NETCODE_PACKET_RESPONSE, body, CHALLENGE_BODY_BYTES );
        answered++;
    }
    if ( answered != count )
        stop( "a client was not challenged", world->name );
}

/* Peers learn their slots from the keep-alives that the server has sent. */
static void world_welcome( struct world_t * world, int first, int count )
{
    uint8_t body[LARGEST_BYTES];
    int i, welcomed = 0;
    for ( i = 0; i < down.count && i < CHUNK; i++ ) {
        int number = number_of_address( &down.address[i] );
        const uint8_t * data = down.data + (size_t) i * STRIDE;
        if ( number < first || number >= first + count || ( data[0] & 15 ) != NETCODE_PACKET_KEEP_ALIVE )
            continue;
        if ( peer_open( &world->peers[number], body, data, down.bytes[i] ) != 8 )
            stop( "a keep-alive can not be opened", world->name );
        world->peers[number].slot = (int) load_number( body, 4 );
        welcomed++;
    }
    if ( welcomed != count )
        stop( "a client was not connected", world->name );
}

/*  Connects peers with fresh tokens; returns what the server's two updates took. Those that come and go have tokens
    that expire before those of the others, and each time later than the last time: so their records may be evicted by
    newer ones. */
static double world_connect( struct world_t * world, int first, int count )
{
    int expire_seconds = first < world->clients ? TIMEOUT_SECONDS : 3600 + ++world->generation;
    double spent;
    int i;
    up_reset( REQUEST_BYTES );
    for ( i = first; i < first + count; i++ ) {
        uint8_t * request = up_add( &world->peers[i].address );
        peer_request( &world->peers[i], expire_seconds, request );
        if ( i < world->clients ) {
            memcpy( world->requests[i], request, HEAD_BYTES );
            memcpy( world->requests[i] + HEAD_BYTES, request + REQUEST_BYTES - TAIL_BYTES, TAIL_BYTES );
        }
        up_end( REQUEST_BYTES );
    }
    down.count = 0;
    down.keeps_bytes = 1;
    spent = world_receive( world, 1e-6 );
    world_respond( world, first, count );
    down.count = 0;
    spent += world_receive( world, 1e-6 );
    world_welcome( world, first, count );
    down.keeps_bytes = 0;
    return spent;
}

/* Each peer says something, so that its slot is confirmed. */
static void world_confirm( struct world_t * world, int first, int count )
{
    static const uint8_t body[8] = { 0 };
    int i;
    up_reset( 64 );
    for ( i = first; i < first + count; i++ )
        peer_send( &world->peers[i], NETCODE_PACKET_KEEP_ALIVE, body, sizeof( body ) );
    world_receive( world, 1e-6 );
    world_drain( world );
}

static void world_disconnect( struct world_t * world, int first, int count )
{
    int i;
    up_reset( 64 );
    for ( i = first; i < first + count; i++ )
        peer_send( &world->peers[i], NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_receive( world, 1e-6 );
    world_drain( world );
    if ( netcode_server_num_connected_clients( world->server ) != world->clients )
        stop( "a client did not disconnect", world->name );
}

/* Goes round and round. */
static int next_of( const struct world_t * world, const int * order, int * at )
{
    int value = order[*at];
    *at = *at + 1 < world->clients ? *at + 1 : 0;
    return value;
}

static struct peer_t * next_peer( struct world_t * world )
{
    return &world->peers[next_of( world, world->in_order, &world->in_at )];
}

/* ---- a burst into a pool of default size ---- */

enum { BURST = 16 }; /* packets of each client between two updates */

static int burst_left; /* packets of it that have not been received */

/* The burst as the server gets it: all of it in one update, if it asks for that. Without one, what is on the wire. */
static int burst_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct world_t * world = (struct world_t *) context;
    int i;
    if ( burst_left == 0 )
        return wire_receive( context, datagrams, count );
    for ( i = 0; i < count && burst_left > 0; i++, burst_left-- ) {
        struct peer_t * peer = next_peer( world );
        datagrams[i].address = peer->address;
        datagrams[i].status = NETCODE_DATAGRAM_OK;
        datagrams[i].bytes =
            peer_seal( peer, datagrams[i].data, NETCODE_PACKET_PAYLOAD, plain, NETCODE_MAX_PACKET_SIZE );
    }
    return i;
}

/* ---- a world's beginning and end ---- */

static void world_open( struct world_t * world )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket = wire_socket();
    socket.context = world;
    if ( !world->room )
        socket.receive = burst_receive;
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = protocol_id;
    memcpy( config.private_key, private_key, sizeof( private_key ) );
    config.allocate_function = allocate;
    config.free_function = release;
    config.socket = &socket;
    world->time = 1000.0;
    world->server = netcode_server_create( server_text, &config, world->time );
    if ( !world->server )
        stop( netcode_server_create_error_text( netcode_server_create_error() ), world->name );
    netcode_server_start( world->server, world->clients + world->room );
    if ( !netcode_server_running( world->server ) )
        stop( "the server did not start", world->name );
}

static void world_fill( struct world_t * world )
{
    int i, slots = world->clients + world->room;
    world->peers = (struct peer_t *) take( (size_t) slots, sizeof( struct peer_t ) );
    world->requests = (uint8_t( * )[ABRIDGED_BYTES]) take( (size_t) world->clients, ABRIDGED_BYTES );
    world->in_order = shuffle( world->clients );
    world->out_slots = shuffle( world->clients );
    for ( i = 0; i < slots; i++ )
        world->peers[i].address = address_of_number( 10, (uint32_t) i );
    world_open( world );
    for ( i = 0; i < world->clients; i += NEWCOMERS ) {
        int count = world->clients - i < NEWCOMERS ? world->clients - i : NEWCOMERS;
        world_connect( world, i, count );
        world_confirm( world, i, count );
    }
    for ( i = 0; i < world->clients; i++ )
        world->out_slots[i] = world->peers[world->out_slots[i]].slot;
}

/* So many players have come and gone that the server remembers as many used tokens as it can. */
static void world_age( struct world_t * world )
{
    int before;
    do {
        before = world_stats( world ).consumed;
        world_connect( world, world->clients, NEWCOMERS );
        world_drain( world );
        world_disconnect( world, world->clients, NEWCOMERS );
    } while ( world_stats( world ).consumed > before );
}

static void world_close( struct world_t * world )
{
    netcode_server_destroy( world->server );
    free( world->peers );
    free( world->requests );
    free( world->in_order );
    free( world->out_slots );
}

/* ---- libsodium alone: one hot buffer, one hot key ---- */

static uint8_t sealed[2048], hot_key[32], hot_nonce[24], hot_associated[29];

static double sodium_seal( int bytes, int count )
{
    double start = nanoseconds();
    int i;
    for ( i = 0; i < count; i++ ) {
        hot_nonce[4] = (uint8_t) i;
        crypto_aead_chacha20poly1305_ietf_encrypt( sealed, NULL, plain, (unsigned) bytes, hot_associated, 22, NULL,
                                                   hot_nonce, hot_key );
    }
    return nanoseconds() - start;
}

/* Opens `count` times what was sealed once; `spoilt` makes libsodium refuse it. */
static double sodium_open( int bytes, int count, int spoilt )
{
    double start;
    int i, good = 0;
    crypto_aead_chacha20poly1305_ietf_encrypt( sealed, NULL, plain, (unsigned) bytes, hot_associated, 22, NULL,
                                               hot_nonce, hot_key );
    sealed[bytes] ^= (uint8_t) spoilt;
    start = nanoseconds();
    for ( i = 0; i < count; i++ )
        good += crypto_aead_chacha20poly1305_ietf_decrypt( plain, NULL, NULL, sealed, (unsigned) bytes + MAC_BYTES,
                                                           hot_associated, 22, hot_nonce, hot_key ) == 0;
    start = nanoseconds() - start;
    if ( good != ( spoilt ? 0 : count ) )
        stop( "libsodium and the tag disagree", "sodium_open" );
    return start;
}

static double sodium_open_token( int count, int spoilt )
{
    int bytes = SEALED_TOKEN_BYTES - MAC_BYTES, i, good = 0;
    double start;
    crypto_aead_xchacha20poly1305_ietf_encrypt( sealed, NULL, plain, (unsigned) bytes, hot_associated, 29, NULL,
                                                hot_nonce, hot_key );
    sealed[bytes] ^= (uint8_t) spoilt;
    start = nanoseconds();
    for ( i = 0; i < count; i++ )
        good += crypto_aead_xchacha20poly1305_ietf_decrypt( plain, NULL, NULL, sealed, SEALED_TOKEN_BYTES,
                                                            hot_associated, 29, hot_nonce, hot_key ) == 0;
    start = nanoseconds() - start;
    if ( good != ( spoilt ? 0 : count ) )
        stop( "libsodium and the token disagree", "sodium_open_token" );
    return start;
}

static double floor_payload( int bytes, int count )
{
    return sodium_open( bytes, count, 0 ) + sodium_seal( bytes, count );
}

static double floor_seal_64( int unused, int count )
{
    (void) unused;
    return sodium_seal( 64, count );
}

static double floor_forged_payload( int bytes, int count )
{
    return sodium_open( bytes, count, 1 );
}

static double floor_forged_request( int keys, int count )
{
    return sodium_open_token( keys * count, 1 );
}

/* Standard: Processing Connection Requests; Processing Connection Response Packets */
static double floor_handshake( int unused, int count )
{
    (void) unused;
    return sodium_open_token( count, 0 ) + sodium_seal( 284, count ) + sodium_seal( 308, count ) +
           sodium_open( 308, count, 0 ) + sodium_open( 284, count, 0 ) + sodium_seal( 8, count );
}

static double floor_keep_alive( int unused, int count )
{
    (void) unused;
    return sodium_seal( 8, count );
}

/* ---- payloads ---- */

/* What one timing takes, in nanoseconds. */
struct cost_t {
    double library;
    double socket; /* of it, the socket's; measured apart */
    double in;     /* of payloads: receiving and reading, measured apart */
};

/* So many payloads of clients in shuffled order, each with its own stamp. Returns the sum of the stamps. */
static uint64_t payloads_prepare( struct world_t * world, int bytes, int count )
{
    uint64_t sum = 0;
    int i;
    up_reset( bytes + 7 + MAC_BYTES );
    for ( i = 0; i < count; i++ ) {
        uint64_t stamp = ++world->stamp;
        memcpy( plain, &stamp, sizeof( stamp ) );
        peer_send( next_peer( world ), NETCODE_PACKET_PAYLOAD, plain, bytes );
        sum += stamp;
    }
    return sum;
}

static void payloads_send( struct world_t * world, int bytes, int count )
{
    int i;
    for ( i = 0; i < count; i++ )
        world_send( world, next_of( world, world->out_slots, &world->out_at ), bytes );
}

/*  The last datagram of the ring opens with its client's key, and is one of the payloads since `stamp`; a probe may be there
    instead, once a second. */
static void payloads_check( struct world_t * world, int bytes, uint64_t stamp )
{
    uint8_t body[LARGEST_BYTES];
    uint64_t found = 0;
    int at = CHUNK - 1;
    if ( ( down.data[(size_t) at * STRIDE] & 15 ) == NETCODE_PACKET_KEEP_ALIVE )
        return;
    const struct peer_t * peer = &world->peers[number_of_address( &down.address[at] )];
    if ( peer_open( peer, body, down.data + (size_t) at * STRIDE, down.bytes[at] ) == bytes )
        memcpy( &found, body, sizeof( found ) );
    if ( found <= stamp || found > world->stamp )
        stop( "a payload did not reach its client", world->name );
}

/*  Ticks of 60 Hz: every client's payload is received and read, and each is sent one: at once, or, where `in` is not NULL,
    when all have been read, in an order of its own; `in` gets what receiving and reading took, for two more looks at the
    clock. Where there are more clients than the wire holds, a tick is cut into updates. */
static double payloads_exchange( struct world_t * world, int bytes, double * in )
{
    int group = world->clients < CHUNK ? world->clients : CHUNK, done = 0, payloads = 0;
    double step = (double) group / world->clients / HERTZ, start, began;
    uint64_t expected = payloads_prepare( world, bytes, CHUNK ), sum = 0, stamp = world->stamp;
    down.count = 0;
    start = nanoseconds();
    for ( ; done < CHUNK; done += group ) {
        began = in ? nanoseconds() : 0.0;
        up.gate += group;
        world_update( world, step );
        payloads += world_read( world, in ? 0 : bytes, &sum );
        if ( !in )
            continue;
        *in += nanoseconds() - began;
        payloads_send( world, bytes, group );
    }
    start = nanoseconds() - start;
    if ( payloads != CHUNK || sum != expected || down.count < CHUNK )
        stop( "payloads were lost", world->name );
    payloads_check( world, bytes, stamp );
    return start;
}

/* Every client gets its keep-alive now: for the next 0.09 s none is due, and no handshake ends. */
static void world_settle( struct world_t * world )
{
    up_reset( 0 );
    world_update( world, 1.0 );
    world_drain( world );
}

static struct cost_t bench_payload( struct world_t * world, int bytes, int count )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    int done;
    world_settle( world );
    for ( done = 0; done < count; done += CHUNK )
        cost.library += payloads_exchange( world, bytes, NULL );
    cost.socket = ( socket_receives() + socket_sends( bytes + 7 + MAC_BYTES, CHUNK ) ) * count / CHUNK;
    return cost;
}

static struct cost_t bench_payload_apart( struct world_t * world, int bytes, int count )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    int done;
    world_settle( world );
    for ( done = 0; done < count; done += CHUNK )
        cost.library += payloads_exchange( world, bytes, &cost.in );
    cost.socket = ( socket_receives() + socket_sends( bytes + 7 + MAC_BYTES, CHUNK ) ) * count / CHUNK;
    return cost;
}

/* ---- time passing ---- */

/*  Updates, 1 us apart, in which nothing comes and nothing is due: a moment after every client got its keep-alive,
    and not always the same one. */
static struct cost_t bench_idle( struct world_t * world, int unused, int count )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    uint64_t before;
    int i;
    (void) unused;
    world_settle( world );
    world_update( world, 0.01 * ( ++world->moment % 9 ) );
    before = world_stats( world ).bytes_sent;
    cost.library = nanoseconds();
    for ( i = 0; i < count; i++ )
        world_update( world, 1e-6 );
    cost.library = nanoseconds() - cost.library;
    if ( world_stats( world ).bytes_sent != before )
        stop( "an idle server sent something", world->name );
    return cost;
}

/* Each client was sent something at another moment of the last tenth of a second, in shuffled order. */
static void world_spread( struct world_t * world )
{
    int tick, ticks = HERTZ / 10, done = 0;
    for ( tick = 1; tick <= ticks; tick++ ) {
        payloads_send( world, 8, world->clients * tick / ticks - done );
        done = world->clients * tick / ticks;
        world_update( world, 1.0 / HERTZ );
    }
}

/* One second at 60 Hz in which none sends a payload. */
static struct cost_t bench_silence( struct world_t * world, int unused, int expected )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    uint64_t sent;
    int i;
    (void) unused;
    world_spread( world );
    sent = world_stats( world ).packets_sent[NETCODE_PACKET_KEEP_ALIVE];
    cost.library = nanoseconds();
    for ( i = 0; i < HERTZ; i++ )
        world_update( world, 1.0 / HERTZ );
    cost.library = nanoseconds() - cost.library;
    sent = world_stats( world ).packets_sent[NETCODE_PACKET_KEEP_ALIVE] - sent;
    if ( fabs( (double) sent - expected ) > expected / 100.0 )
        stop( "a second of silence did not send ten keep-alives to each client", world->name );
    cost.socket = socket_sends( 8 + 7 + MAC_BYTES, (int) sent );
    return cost;
}

/* ---- refusals ---- */

/* The server refuses all that is on the wire; each for this reason, or the bench stops. */
static struct cost_t refuse( struct world_t * world, int reason )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    uint64_t before = world_stats( world ).dropped[reason];
    int refused;
    cost.library = world_receive( world, 1e-6 );
    refused = (int) ( world_stats( world ).dropped[reason] - before );
    if ( refused != up.count ) {
        fprintf( stderr, "bench: %d of %d were dropped as %s\n", refused, up.count,
                 netcode_drop_reason_name( reason ) );
        stop( "refused for another reason than meant", world->name );
    }
    cost.socket = socket_receives();
    return cost;
}

enum {
    NOISE_BYTES = 64 + 7 + MAC_BYTES,
    PAYLOAD_PREFIX = 0x65,  /* six bytes of sequence */
    NO_TYPE_PREFIX = 0x6f,  /* there is no type 15 */
    NO_LENGTH_PREFIX = 0x05 /* a payload without a sequence */
};

/* Fills the wire with noise from unknown addresses behind this prefix byte. */
static void noise( uint8_t prefix, int bytes, int count )
{
    int i, k, written = up.abridged ? ABRIDGED_BYTES : bytes;
    for ( i = 0; i < count; i++ ) {
        struct netcode_address_t from = address_of_unknown();
        uint8_t * data = up_add( &from );
        for ( k = 0; k < written; k += 8 ) {
            uint64_t number = random_number();
            memcpy( data + k, &number, written - k < 8 ? (size_t) ( written - k ) : 8 );
        }
        data[0] = prefix;
        up_end( bytes );
    }
}

static void small_noise( uint8_t prefix, int count )
{
    up_reset( NOISE_BYTES );
    noise( prefix, NOISE_BYTES, count );
}

static struct cost_t bench_wrong_size( struct world_t * world, int unused, int count )
{
    (void) unused;
    small_noise( 0, count );
    return refuse( world, NETCODE_DROP_REQUEST_WRONG_SIZE );
}

static struct cost_t bench_wrong_type( struct world_t * world, int unused, int count )
{
    (void) unused;
    small_noise( NO_TYPE_PREFIX, count );
    return refuse( world, NETCODE_DROP_UNKNOWN_PACKET_TYPE );
}

static struct cost_t bench_wrong_length( struct world_t * world, int unused, int count )
{
    (void) unused;
    small_noise( NO_LENGTH_PREFIX, count );
    return refuse( world, NETCODE_DROP_BAD_SEQUENCE_LENGTH );
}

/*  Turns noise into requests whose public part is in order, but for this version. Every one names another token, as
    a flood would. */
static void noise_requests( const char * version, int count )
{
    uint64_t expires = (uint64_t) time( NULL ) + TIMEOUT_SECONDS;
    int i;
    noise( 0, REQUEST_BYTES, count );
    for ( i = 0; i < count; i++ ) {
        memcpy( up_at( i ) + 1, version, 13 );
        store_number( up_at( i ) + 14, protocol_id, 8 );
        store_number( up_at( i ) + 22, expires, 8 );
    }
}

static struct cost_t bench_wrong_version( struct world_t * world, int unused, int count )
{
    (void) unused;
    up_reset_abridged();
    noise_requests( "NETCODE 1.03", count );
    return refuse( world, NETCODE_DROP_REQUEST_WRONG_VERSION );
}

static struct cost_t bench_unknown_address( struct world_t * world, int unused, int count )
{
    (void) unused;
    small_noise( PAYLOAD_PREFIX, count );
    return refuse( world, NETCODE_DROP_UNKNOWN_ADDRESS );
}

/* Requests with tokens that have connected a client: from unknown addresses, or from those clients. */
static struct cost_t bench_used_token( struct world_t * world, int from_its_owner, int count )
{
    int i;
    up_reset_abridged();
    for ( i = 0; i < count; i++ ) {
        int number = (int) ( random_number() % (uint64_t) world->clients );
        struct netcode_address_t from = from_its_owner ? world->peers[number].address : address_of_unknown();
        memcpy( up_add( &from ), world->requests[number], ABRIDGED_BYTES );
        up_end( REQUEST_BYTES );
    }
    return refuse( world, NETCODE_DROP_TOKEN_CONSUMED );
}

static struct cost_t bench_replay( struct world_t * world, int bytes, int count )
{
    uint64_t sum = 0;
    payloads_prepare( world, bytes, count );
    world_receive( world, 1e-6 );
    if ( world_read( world, 0, &sum ) != count )
        stop( "payloads were lost", world->name );
    up.next = 0;
    return refuse( world, NETCODE_DROP_REPLAYED );
}

/* The right address and a sequence that could be: all that is left to decide is the tag. */
static struct cost_t bench_forged_payload( struct world_t * world, int bytes, int count )
{
    int i;
    payloads_prepare( world, bytes, count );
    for ( i = 0; i < up.count; i++ )
        up_at( i )[up.bytes[i] - 1] ^= 1;
    return refuse( world, NETCODE_DROP_AUTHENTICATION_FAILED );
}

static struct cost_t bench_forged_request( struct world_t * world, int keys, int count )
{
    uint8_t ring[NETCODE_MAX_PRIVATE_KEYS][NETCODE_KEY_BYTES];
    struct cost_t cost;
    int i;
    memset( ring, 0, sizeof( ring ) );
    for ( i = 0; i < NETCODE_MAX_PRIVATE_KEYS; i++ )
        ring[i][0] = (uint8_t) i;
    memcpy( ring[0], private_key, NETCODE_KEY_BYTES );
    netcode_server_set_private_keys( world->server, ring[0], keys );
    up_reset( REQUEST_BYTES );
    noise_requests( "NETCODE 1.02", count );
    cost = refuse( world, NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
    netcode_server_set_private_keys( world->server, ring[0], 1 );
    return cost;
}

/* ---- handshakes ---- */

/* So many more clients connect, and leave again untimed. */
static struct cost_t bench_handshake( struct world_t * world, int unused, int count )
{
    struct cost_t cost = { 0.0, 0.0, 0.0 };
    (void) unused;
    world_settle( world );
    cost.library = world_connect( world, world->clients, count );
    world_drain( world );
    world_disconnect( world, world->clients, count );
    return cost;
}

/* ---- lines ---- */

enum unit_t { UNIT_RATIO, UNIT_NANOSECONDS, UNIT_BYTES, UNIT_COUNT };

#define NO_LIMIT ( -1.0 )

static const char * const unit_names[] = { "x", "ns", "bytes", "" };

struct line_t {
    char name[64];
    struct world_t * world;
    int parameter;
    struct cost_t ( *library )( struct world_t * world, int parameter, int count );
    double ( *floor )( int parameter, int count );
    int items;  /* in one timing */
    int passes; /* timings in a round */
    enum unit_t unit;
    double limit; /* NO_LIMIT: printed only */
};

enum { MAX_LINES = 96, SAMPLES = 5 };
enum { SAMPLE_RATIO, SAMPLE_LIBRARY, SAMPLE_FLOOR, SAMPLE_SOCKET, SAMPLE_IN };

static struct line_t lines[MAX_LINES];
static int line_count;
static double samples[MAX_LINES][SAMPLES][MAX_ROUNDS]; /* nanoseconds of one item, but for the ratio */

/* What is printed and written: of one line, of two lines' ratio, or counted. */
struct result_t {
    char name[64];
    enum unit_t unit;
    double value;
    double low; /* tenth percentile */
    double high;
    double library; /* nanoseconds */
    double floor;
    double socket;
    double in; /* of payloads, receiving and reading */
    int has_limit;
    double limit;
};

static struct result_t results[2 * MAX_LINES];
static int result_count;

static int line_add( const struct line_t * line )
{
    if ( line_count == MAX_LINES )
        stop( "too many lines", line->name );
    lines[line_count] = *line;
    return line_count++;
}

static void measure_line( int index, int round )
{
    const struct line_t * line = &lines[index];
    struct cost_t sum = { 0.0, 0.0, 0.0 };
    double alone = 0.0, items = (double) line->items * line->passes;
    int pass, first;
    for ( first = 0; first < 2; first++ ) { /* which goes first changes from round to round */
        if ( first == ( round & 1 ) )
            alone = line->floor( line->parameter, line->items * line->passes );
        for ( pass = 0; first != ( round & 1 ) && pass < line->passes; pass++ ) {
            struct cost_t cost = line->library( line->world, line->parameter, line->items );
            sum.library += cost.library;
            sum.socket += cost.socket;
            sum.in += cost.in;
        }
    }
    if ( round < 0 )
        return;
    samples[index][SAMPLE_RATIO][round] = sum.library / alone;
    samples[index][SAMPLE_LIBRARY][round] = sum.library / items;
    samples[index][SAMPLE_FLOOR][round] = alone / items;
    samples[index][SAMPLE_SOCKET][round] = sum.socket / items;
    samples[index][SAMPLE_IN][round] = sum.in / items;
}

static void measure( int rounds )
{
    int round, i;
    for ( round = -WARM_UP_ROUNDS; round < rounds; round++ )
        for ( i = 0; i < line_count; i++ )
            measure_line( round & 2 ? line_count - 1 - i : i, round );
}

static int by_value( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return ( x > y ) - ( x < y );
}

static double percentile( const double * values, int count, double part )
{
    static double sorted[MAX_ROUNDS];
    memcpy( sorted, values, (size_t) count * sizeof( double ) );
    qsort( sorted, (size_t) count, sizeof( double ), by_value );
    return sorted[(int) ( part * ( count - 1 ) + 0.5 )];
}

static struct result_t * result_add( const char * name, enum unit_t unit, double limit )
{
    struct result_t * result = &results[result_count++];
    memset( result, 0, sizeof( *result ) );
    snprintf( result->name, sizeof( result->name ), "%.63s", name );
    result->unit = unit;
    result->has_limit = limit >= 0.0;
    result->limit = limit;
    return result;
}

static void result_of_values( struct result_t * result, const double * values, int rounds )
{
    result->value = percentile( values, rounds, 0.5 );
    result->low = percentile( values, rounds, 0.1 );
    result->high = percentile( values, rounds, 0.9 );
}

static void result_of_line( int index, int rounds )
{
    const struct line_t * line = &lines[index];
    struct result_t * result = result_add( line->name, line->unit, line->limit );
    result_of_values( result, samples[index][line->unit == UNIT_RATIO ? SAMPLE_RATIO : SAMPLE_LIBRARY], rounds );
    result->library = percentile( samples[index][SAMPLE_LIBRARY], rounds, 0.5 );
    result->floor = percentile( samples[index][SAMPLE_FLOOR], rounds, 0.5 );
    result->socket = percentile( samples[index][SAMPLE_SOCKET], rounds, 0.5 );
    result->in = percentile( samples[index][SAMPLE_IN], rounds, 0.5 );
}

/* How much dearer is one line than another, round by round? */
static void result_of_two( const char * name, int large, int small, double limit, int rounds )
{
    static double ratios[MAX_ROUNDS];
    struct result_t * result = result_add( name, UNIT_RATIO, limit );
    int i;
    for ( i = 0; i < rounds; i++ )
        ratios[i] = samples[large][SAMPLE_LIBRARY][i] / samples[small][SAMPLE_LIBRARY][i];
    result_of_values( result, ratios, rounds );
    result->library = percentile( samples[large][SAMPLE_LIBRARY], rounds, 0.5 );
    result->floor = percentile( samples[small][SAMPLE_LIBRARY], rounds, 0.5 );
}

/* ---- what is measured ---- */

static const int payload_sizes[] = { 64, 256, 1200 };

enum { SIZES = sizeof( payload_sizes ) / sizeof( payload_sizes[0] ) };

static int payload_lines[WORLDS][SIZES], idle_lines[WORLDS], junk_lines[WORLDS], handshake_lines[WORLDS];

/* Many of each kind: one for each number of clients, side by side, as they are compared. */
static void lines_of_payloads( int s )
{
    int w, bytes = payload_sizes[s];
    for ( w = 0; w < WORLDS; w++ ) {
        struct line_t line = { .library = bench_payload, .floor = floor_payload, .items = 16 * CHUNK, .passes = 1 };
        line.world = &worlds[w];
        line.parameter = bytes;
        line.limit = w == WORLD_1 ? NO_LIMIT : bytes == 64 ? 1.15 : 1.08;
        snprintf( line.name, sizeof( line.name ), "payload in and out, %d bytes, %s", bytes, worlds[w].name );
        payload_lines[w][s] = line_add( &line );
    }
    struct line_t apart = lines[payload_lines[WORLD_10000][s]];
    apart.library = bench_payload_apart;
    apart.limit = NO_LIMIT;
    snprintf( apart.name, sizeof( apart.name ), "sent in another order, %d bytes, 10,000 clients", bytes );
    line_add( &apart );
}

static void lines_of_kind( const struct line_t * kind, int * indices )
{
    int w;
    for ( w = 0; w < WORLDS; w++ ) {
        struct line_t line = *kind;
        line.world = &worlds[w];
        snprintf( line.name, sizeof( line.name ), "%.40s, %s", kind->name, worlds[w].name );
        indices[w] = line_add( &line );
    }
}

/* clang-format off */
#define SEAL_64 .floor = floor_seal_64
#define AT_256 .world = &worlds[WORLD_256]
#define AT_10000 .world = &worlds[WORLD_10000]

/* Small datagrams in timings of 256; as many large ones as the first-level cache holds beside the server's buffers. */
static const struct line_t kinds[] = {
    { .name = "idle update", .library = bench_idle, .floor = floor_keep_alive, .items = 4096, .passes = 1, .unit = UNIT_NANOSECONDS, .limit = 20.0 },
    { .name = "junk from an unknown address", .library = bench_unknown_address, SEAL_64, .items = 256, .passes = 16, .limit = 0.30 },
    { .name = "handshake", .library = bench_handshake, .floor = floor_handshake, .items = NEWCOMERS, .passes = 4, .limit = 1.15 },
};

static const struct line_t rows[] = {
    { .name = "wrong size", AT_256, .library = bench_wrong_size, SEAL_64, .items = 256, .passes = 16, .limit = 0.05 },
    { .name = "wrong version", AT_256, .library = bench_wrong_version, SEAL_64, .items = 256, .passes = 16, .limit = 0.05 },
    { .name = "wrong prefix: no such type", AT_256, .library = bench_wrong_type, SEAL_64, .items = 256, .passes = 16, .limit = 0.05 },
    { .name = "wrong prefix: no length of sequence", AT_256, .library = bench_wrong_length, SEAL_64, .items = 256, .passes = 16, .limit = 0.05 },
    { .name = "used token, elsewhere, 256 clients", AT_256, .library = bench_used_token, SEAL_64, .items = 256, .passes = 8, .limit = 0.15 },
    { .name = "used token, elsewhere, 10,000 clients", AT_10000, .library = bench_used_token, SEAL_64, .items = 256, .passes = 8, .limit = 0.15 },
    { .name = "repeated request, connected, 256 clients", AT_256, .parameter = 1, .library = bench_used_token, SEAL_64, .items = 256, .passes = 8, .limit = 0.15 },
    { .name = "repeated request, connected, 10,000 clients", AT_10000, .parameter = 1, .library = bench_used_token, SEAL_64, .items = 256, .passes = 8, .limit = 0.15 },
    { .name = "replayed payload, 256 clients", AT_256, .parameter = 64, .library = bench_replay, SEAL_64, .items = 256, .passes = 8, .limit = 0.16 },
    { .name = "replayed payload, 10,000 clients", AT_10000, .parameter = 64, .library = bench_replay, SEAL_64, .items = 256, .passes = 8, .limit = 0.16 },
    { .name = "forged payload, 64 bytes", AT_256, .parameter = 64, .library = bench_forged_payload, .floor = floor_forged_payload, .items = 128, .passes = 8, .limit = 1.10 },
    { .name = "forged payload, 256 bytes", AT_256, .parameter = 256, .library = bench_forged_payload, .floor = floor_forged_payload, .items = 64, .passes = 16, .limit = 1.10 },
    { .name = "forged payload, 1200 bytes", AT_256, .parameter = 1200, .library = bench_forged_payload, .floor = floor_forged_payload, .items = 16, .passes = 32, .limit = 1.10 },
    { .name = "request with a bad tag, 1 key", AT_256, .parameter = 1, .library = bench_forged_request, .floor = floor_forged_request, .items = 16, .passes = 32, .limit = 1.10 },
    { .name = "request with a bad tag, 2 keys", AT_256, .parameter = 2, .library = bench_forged_request, .floor = floor_forged_request, .items = 16, .passes = 16, .limit = NO_LIMIT },
    { .name = "request with a bad tag, 3 keys", AT_256, .parameter = 3, .library = bench_forged_request, .floor = floor_forged_request, .items = 16, .passes = 16, .limit = NO_LIMIT },
    { .name = "request with a bad tag, 4 keys", AT_256, .parameter = 4, .library = bench_forged_request, .floor = floor_forged_request, .items = 16, .passes = 16, .limit = NO_LIMIT },
    { .name = "a silent second at 60 Hz, 10,000 clients", AT_10000, .library = bench_silence, .floor = floor_keep_alive, .items = 100000, .passes = 1, .limit = 1.15 },
};
/* clang-format on */

static void lines_all( void )
{
    size_t i;
    int s;
    for ( s = 0; s < SIZES; s++ )
        lines_of_payloads( s );
    lines_of_kind( &kinds[0], idle_lines );
    lines[idle_lines[WORLD_1]].limit = lines[idle_lines[WORLD_16]].limit =
        NO_LIMIT; /* only asked for where there are many */
    lines_of_kind( &kinds[1], junk_lines );
    lines_of_kind( &kinds[2], handshake_lines );
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ )
        line_add( &rows[i] );
}

static void results_all( int rounds )
{
    char name[64];
    int i, s;
    for ( i = 0; i < line_count; i++ )
        result_of_line( i, rounds );
    for ( s = 0; s < SIZES; s++ ) {
        snprintf( name, sizeof( name ), "payload, %d bytes: 10,000 clients to 16", payload_sizes[s] );
        result_of_two( name, payload_lines[WORLD_10000][s], payload_lines[WORLD_16][s], 1.10, rounds );
    }
    result_of_two( "idle update: 256 clients to 1", idle_lines[WORLD_256], idle_lines[WORLD_1], 1.5, rounds );
    result_of_two( "idle update: 10,000 clients to 1", idle_lines[WORLD_10000], idle_lines[WORLD_1], 1.5, rounds );
    result_of_two( "junk: 10,000 clients to 1", junk_lines[WORLD_10000], junk_lines[WORLD_1], 2.5, rounds );
    result_of_two( "handshake: 10,000 clients to 1", handshake_lines[WORLD_10000], handshake_lines[WORLD_1], 1.25,
                   rounds );
}

/* ---- memory ---- */

/*  What a server with so many slots takes, the operating system's socket included, counted by the allocator;
    netcode_server_memory must have said the same. */
static double server_bytes( int slots, int pool_buffers )
{
    struct netcode_server_config_t config;
    struct netcode_server_t * server;
    size_t before = allocated_bytes;
    netcode_default_server_config( &config );
    config.allocate_function = allocate;
    config.free_function = release;
    config.packet_pool_buffers = pool_buffers;
    server = netcode_server_create( "127.0.0.1:0", &config, 0.0 );
    if ( !server )
        stop( netcode_server_create_error_text( netcode_server_create_error() ), "server_bytes" );
    netcode_server_start( server, slots );
    netcode_server_destroy( server );
    if ( allocated_bytes - before != netcode_server_memory( &config, slots ) )
        stop( "netcode_server_memory is not what was allocated", "server_bytes" );
    return (double) ( allocated_bytes - before );
}

static double client_bytes( int pool_buffers )
{
    struct netcode_client_config_t config;
    size_t before = allocated_bytes;
    struct netcode_client_t * client;
    netcode_default_client_config( &config );
    config.allocate_function = allocate;
    config.free_function = release;
    config.packet_pool_buffers = pool_buffers;
    client = netcode_client_create( "127.0.0.1", &config, 0.0 );
    if ( !client )
        stop( netcode_client_create_error_text( netcode_client_create_error() ), "client_bytes" );
    netcode_client_destroy( client );
    if ( allocated_bytes - before != netcode_client_memory( &config ) )
        stop( "netcode_client_memory is not what was allocated", "client_bytes" );
    return (double) ( allocated_bytes - before );
}

/* How many datagrams a socket is asked for at once: as many buffers are held back beside the pool. */
static int widest_receive;

static int receive_nothing( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    (void) datagrams;
    if ( count > widest_receive )
        widest_receive = count;
    return 0;
}

static int server_batch( void )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket = wire_socket();
    struct netcode_server_t * server;
    widest_receive = 0;
    netcode_default_server_config( &config );
    socket.receive = receive_nothing;
    config.socket = &socket;
    server = netcode_server_create( server_text, &config, 0.0 );
    if ( !server )
        stop( "no server", "server_batch" );
    netcode_server_start( server, 1 );
    netcode_server_update( server, 1.0 );
    netcode_server_destroy( server );
    return widest_receive;
}

static int client_batch( void )
{
    struct netcode_client_config_t config;
    struct netcode_socket_t socket = wire_socket();
    struct netcode_client_t * client;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * address = server_text;
    widest_receive = 0;
    netcode_default_client_config( &config );
    socket.receive = receive_nothing;
    config.socket = &socket;
    client = netcode_client_create( "127.0.0.1:3000", &config, 0.0 );
    if ( !client )
        stop( "no client", "client_batch" );
    netcode_generate_connect_token( 1, &address, &address, 60, 60, 1, protocol_id, private_key, NULL, token );
    netcode_client_connect( client, token );
    netcode_client_update( client, 1.0 );
    netcode_client_destroy( client );
    return widest_receive;
}

/* The process's memory that is there, or 0 where the system does not say so in /proc. */
static double resident_bytes( void )
{
    long pages = 0, page = 0;
#if defined( __linux__ )
    FILE * file = fopen( "/proc/self/statm", "r" );
    if ( file && fscanf( file, "%*s %ld", &pages ) == 1 )
        page = sysconf( _SC_PAGESIZE );
    if ( file )
        fclose( file );
#endif
    return (double) pages * (double) page;
}

/* What a client makes resident when it is created, of a thousand that are created and wait. */
static double client_resident_bytes( void )
{
    enum { CLIENTS = 1000 };
    static struct netcode_client_t * clients[CLIENTS];
    struct netcode_client_config_t config;
    struct netcode_socket_t socket = wire_socket();
    double bytes = resident_bytes();
    int i;
    netcode_default_client_config( &config );
    config.socket = &socket;
    for ( i = 0; i < CLIENTS; i++ ) {
        clients[i] = netcode_client_create( "127.0.0.1:3000", &config, 0.0 );
        if ( !clients[i] )
            stop( "no client", "client_resident_bytes" );
    }
    bytes = resident_bytes() - bytes;
    for ( i = 0; i < CLIENTS; i++ )
        netcode_client_destroy( clients[i] );
    return bytes / CLIENTS;
}

/*  Everything but the pool grows with the slots, and tables grow in jumps: what counts is the dearest of many
    numbers of slots. Below 128 slots the defaults for handshakes and used tokens have their least. */
static double bytes_per_slot( void )
{
    static const int counts[] = { 256, 1000, 1024, 1025, 2049, 4097, 10000, 16385, 32769, 65535 };
    double least = server_bytes( 128, 1024 ), most = 0.0;
    size_t i;
    for ( i = 0; i < sizeof( counts ) / sizeof( counts[0] ); i++ ) {
        double bytes = ( server_bytes( counts[i], 1024 ) - least ) / ( counts[i] - 128 );
        if ( bytes > most )
            most = bytes;
    }
    return most;
}

static void results_of_memory( void )
{
    double buffer = ( server_bytes( 1, 2048 ) - server_bytes( 1, 1024 ) ) / 1024;
    double client_buffer = ( client_bytes( 2048 ) - client_bytes( 1024 ) ) / 1024;
    double client = client_bytes( 1024 ) - ( 1024 + client_batch() ) * client_buffer;
    result_add( "memory: one slot, all that it brings", UNIT_BYTES, 2048 )->value = bytes_per_slot();
    result_add( "memory: a server of one slot, beside its pool", UNIT_BYTES, 256 * 1024 )->value =
        server_bytes( 1, 1024 ) - ( 1024 + server_batch() ) * buffer;
    result_add( "memory: a client, beside its pool", UNIT_BYTES, 6 * 1024 )->value = client;
    result_add( "memory: a client of 256 buffers, reserved", UNIT_BYTES, NO_LIMIT )->value = client_bytes( 0 );
    result_add( "memory: a client of 256 buffers, resident", UNIT_BYTES, 16 * 1024 )->value = client_resident_bytes();
    result_add( "memory: one buffer of the pool", UNIT_BYTES, NO_LIMIT )->value = buffer;
    result_add( "memory: buffers held back, server", UNIT_COUNT, NO_LIMIT )->value = server_batch();
    result_add( "memory: a server of 256 slots, all", UNIT_BYTES, NO_LIMIT )->value = server_bytes( 256, 0 );
    result_add( "memory: a server of 10000 slots, all", UNIT_BYTES, NO_LIMIT )->value = server_bytes( 10000, 0 );
}

static void result_of_burst( void )
{
    uint64_t sum = 0, dropped = 0;
    struct netcode_server_stats_t stats;
    int payloads, reason;
    world_fill( &crowd );
    burst_left = BURST * crowd.clients;
    world_update( &crowd, 1.0 / HERTZ );
    payloads = world_read( &crowd, 0, &sum );
    stats = world_stats( &crowd );
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ )
        dropped += stats.dropped[reason];
    if ( payloads + (int) dropped != BURST * crowd.clients )
        stop( "a part of the burst is neither delivered nor dropped", crowd.name );
    result_add( "drops: 16 packets of each of 256 clients", UNIT_COUNT, 0.0 )->value = (double) dropped;
    world_close( &crowd );
}

/* ---- what is printed ---- */

static int is_over( const struct result_t * result )
{
    return result->has_limit && !( result->value <= result->limit );
}

static const char * verdict( const struct result_t * result )
{
    return !result->has_limit ? "" : is_over( result ) ? "OVER" : "ok";
}

static void print_result( const struct result_t * result )
{
    int digits = result->unit == UNIT_RATIO ? 3 : result->unit == UNIT_NANOSECONDS ? 1 : 0;
    printf( "%-46s %9.*f %-5s", result->name, digits, result->value, unit_names[result->unit] );
    if ( result->library > 0.0 )
        printf( " %8.*f..%-8.*f %9.1f %9.1f", digits, result->low, digits, result->high, result->library,
                result->floor );
    if ( result->socket > 0.0 )
        printf( " %7.1f", result->socket );
    else if ( result->library > 0.0 )
        printf( " %7s", "" );
    else
        printf( " %46s", "" );
    if ( result->has_limit )
        printf( " %10.*f  %s", result->unit == UNIT_RATIO ? 2 : 0, result->limit, verdict( result ) );
    printf( "\n" );
}

static void print_in_and_out( void )
{
    int i;
    printf( "\nthe halves, in ns       %33s %9s\n", "in", "out" );
    for ( i = 0; i < result_count; i++ )
        if ( results[i].in > 0.0 )
            printf( "%-46s %9.1f %9.1f\n", results[i].name, results[i].in, results[i].library - results[i].in );
}

/* The first line of /proc/cpuinfo that begins with this, behind its colon; "" where there is none. */
static void cpu_text( const char * field, char * text, size_t bytes )
{
    char line[8192];
    FILE * file = fopen( "/proc/cpuinfo", "r" );
    text[0] = 0;
    while ( file && !text[0] && fgets( line, sizeof( line ), file ) )
        if ( strncmp( line, field, strlen( field ) ) == 0 && strchr( line, ':' ) ) {
            line[strcspn( line, "\n" )] = 0;
            snprintf( text, bytes, "%s", strchr( line, ':' ) + 1 + strspn( strchr( line, ':' ) + 1, " " ) );
        }
    if ( file )
        fclose( file );
}

struct machine_t {
    char model[256];
    char features[8192];
    char sodium_uses[128]; /* of what it can make use of, what it found */
};

/* Those of the features that ciphers, hashes and copies could make use of. */
static void print_features( const char * features )
{
    static const char * const kinds_of_feature[] = { "sse",     "ssse",  "avx",   "aes", "vaes", "pclmul",
                                                     "vpclmul", "sha",   "bmi2",  "adx", "erms", "fsrm",
                                                     "neon",    "asimd", "pmull", "sve" };
    size_t i;
    printf( "features  " );
    while ( *features ) {
        size_t bytes = strcspn( features, " " );
        for ( i = 0; i < sizeof( kinds_of_feature ) / sizeof( kinds_of_feature[0] ); i++ )
            if ( strncmp( features, kinds_of_feature[i], strlen( kinds_of_feature[i] ) ) == 0 ) {
                printf( " %.*s", (int) bytes, features );
                break;
            }
        features += bytes;
        features += strspn( features, " " );
    }
    printf( "\n" );
}

static struct machine_t machine_look( void )
{
    struct machine_t machine;
    cpu_text( "model name", machine.model, sizeof( machine.model ) );
    if ( !machine.model[0] )
        cpu_text( "CPU part", machine.model, sizeof( machine.model ) );
    cpu_text( "flags", machine.features, sizeof( machine.features ) );
    if ( !machine.features[0] )
        cpu_text( "Features", machine.features, sizeof( machine.features ) );
    snprintf( machine.sodium_uses, sizeof( machine.sodium_uses ), "%s%s%s%s%s%s%s%s",
              sodium_runtime_has_neon() ? "neon " : "", sodium_runtime_has_sse2() ? "sse2 " : "",
              sodium_runtime_has_sse3() ? "sse3 " : "", sodium_runtime_has_ssse3() ? "ssse3 " : "",
              sodium_runtime_has_sse41() ? "sse41 " : "", sodium_runtime_has_avx() ? "avx " : "",
              sodium_runtime_has_avx2() ? "avx2 " : "", sodium_runtime_has_avx512f() ? "avx512f " : "" );
    return machine;
}

#if defined( __GNUC__ ) && !defined( __clang__ )
#define BENCH_COMPILER "gcc " __VERSION__
#elif defined( __VERSION__ )
#define BENCH_COMPILER __VERSION__
#else
#define BENCH_COMPILER "unknown"
#endif

/* What one look at the clock takes: two of them are in every timing. */
static double clock_nanoseconds( void )
{
    double start = nanoseconds(), now = start;
    int i;
    for ( i = 0; i < 1000; i++ )
        now = nanoseconds();
    return ( now - start ) / 1000.0;
}

static void print_head( const struct machine_t * machine, int rounds )
{
    printf( "netcode.h %s, libsodium %s, compiler %s\n", netcode_version(), sodium_version_string(), BENCH_COMPILER );
    printf( "processor %s; libsodium finds %s\n", machine->model, machine->sodium_uses );
    print_features( machine->features );
    printf( "%d rounds; a look at the clock takes %.0f ns; malloc is %s\n\n", rounds, clock_nanoseconds(),
            malloc_is_wrapped ? "wrapped" : "not wrapped: the library's allocator hooks count alone" );
    fflush( stdout );
}

static int print_results( void )
{
    int i, over = 0;
    printf( "%-46s %9s %-5s %18s %9s %9s %7s %10s\n", "", "median", "", "10..90 %", "ns", "floor ns", "socket",
            "limit" );
    for ( i = 0; i < result_count; i++ ) {
        print_result( &results[i] );
        over += is_over( &results[i] );
    }
    print_in_and_out();
    printf( "\n%d of %d lines over their limit\n", over, result_count );
    return over;
}

static int write_json( const char * path, const struct machine_t * machine, int rounds )
{
    FILE * file = fopen( path, "w" );
    int i;
    if ( !file )
        return 0;
    fprintf( file, "{\n  \"netcode\": \"%s\",\n  \"libsodium\": \"%s\",\n  \"compiler\": \"%s\",\n", netcode_version(),
             sodium_version_string(), BENCH_COMPILER );
    fprintf( file,
             "  \"processor\": \"%s\",\n  \"features\": \"%s\",\n  \"libsodium_finds\": \"%s\",\n  \"rounds\": %d,\n",
             machine->model, machine->features, machine->sodium_uses, rounds );
    fprintf( file, "  \"lines\": [\n" );
    for ( i = 0; i < result_count; i++ ) {
        const struct result_t * result = &results[i];
        fprintf( file, "    {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4f", result->name,
                 unit_names[result->unit], result->value );
        if ( result->library > 0.0 )
            fprintf( file, ", \"p10\": %.4f, \"p90\": %.4f, \"ns\": %.2f, \"floor_ns\": %.2f, \"socket_ns\": %.2f",
                     result->low, result->high, result->library, result->floor, result->socket );
        if ( result->in > 0.0 )
            fprintf( file, ", \"in_ns\": %.2f, \"out_ns\": %.2f", result->in, result->library - result->in );
        if ( result->has_limit )
            fprintf( file, ", \"limit\": %g, \"ok\": %s", result->limit, is_over( result ) ? "false" : "true" );
        fprintf( file, "}%s\n", i + 1 < result_count ? "," : "" );
    }
    fprintf( file, "  ]\n}\n" );
    return fclose( file ) == 0;
}

/* One row for each number of clients; the last column is libsodium's part of it, where there is one. */
static int write_data( const char * path, int rounds )
{
    FILE * file = fopen( path, "w" );
    int w, s;
    if ( !file )
        return 0;
    fprintf( file, "# clients; ns: payload and libsodium alone at 64, 256, 1200 bytes; junk; handshake, libsodium "
                   "alone; idle update\n" );
    for ( w = 0; w < WORLDS; w++ ) {
        fprintf( file, "%d", worlds[w].clients );
        for ( s = 0; s < SIZES; s++ )
            fprintf( file, " %.2f %.2f", percentile( samples[payload_lines[w][s]][SAMPLE_LIBRARY], rounds, 0.5 ),
                     percentile( samples[payload_lines[w][s]][SAMPLE_FLOOR], rounds, 0.5 ) );
        fprintf( file, " %.2f %.2f %.2f %.2f\n", percentile( samples[junk_lines[w]][SAMPLE_LIBRARY], rounds, 0.5 ),
                 percentile( samples[handshake_lines[w]][SAMPLE_LIBRARY], rounds, 0.5 ),
                 percentile( samples[handshake_lines[w]][SAMPLE_FLOOR], rounds, 0.5 ),
                 percentile( samples[idle_lines[w]][SAMPLE_LIBRARY], rounds, 0.5 ) );
    }
    return fclose( file ) == 0;
}

/* ---- all of it ---- */

static void run( int rounds )
{
    uint64_t before;
    int w;
    lines_all();
    for ( w = 0; w < WORLDS; w++ ) {
        world_fill( &worlds[w] );
        world_age( &worlds[w] );
    }
    before = allocations;
    measure( rounds );
    before = allocations - before;
    results_all( rounds );
    result_add( "allocations after start", UNIT_COUNT, 0.0 )->value = (double) before;
    results_of_memory();
    result_of_burst();
    for ( w = 0; w < WORLDS; w++ )
        world_close( &worlds[w] );
}

int main( int count, char ** arguments )
{
    int rounds = count > 1 ? atoi( arguments[1] ) : MIN_ROUNDS, over;
    struct machine_t machine;
    if ( rounds < MIN_ROUNDS || rounds > MAX_ROUNDS ) {
        fprintf( stderr, "usage: bench [ROUNDS, %d to %d [JSON [DATA]]]\n", MIN_ROUNDS, MAX_ROUNDS );
        return 2;
    }
    if ( netcode_init() != NETCODE_OK )
        stop( "netcode_init failed", "main" );
    netcode_random_bytes( private_key, sizeof( private_key ) );
    machine = machine_look();
    print_head( &machine, rounds );
    run( rounds );
    over = print_results();
    if ( count > 2 && !write_json( arguments[2], &machine, rounds ) )
        stop( "the JSON file can not be written", arguments[2] );
    if ( count > 3 && !write_data( arguments[3], rounds ) )
        stop( "the file of data can not be written", arguments[3] );
    netcode_term();
    return over && !getenv( "BENCH_PRINT_ONLY" ) ? 1 : 0;
}
