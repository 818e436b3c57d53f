/*  make bench-sockets: what the server costs over real UDP sockets of the loopback, and how it stands a flood.

        bench_sockets [ROUNDS [FILE]]

    The first part times the server's share of some work in CPU time of its thread, and beside it, in the same round,
    what the work is compared with: bare recvfrom and sendto of as many bytes, or the library built without its Linux
    extras. Which goes first changes from round to round. The clients stand on 256 sockets that all servers share, so
    that no server meets other receivers than the next, and every datagram must arrive, once and unchanged. The floor of
    a line is what would be left of it if libsodium and the kernel were all that costs anything. The second part lets
    another process flood a server of 64 clients, at half and at twice what that server refuses in a second. The flooder
    shares the clients' sockets, so part of its forgeries come from their addresses. Printed are the medians of the
    rounds' ratios, the tenth and ninetieth percentile, and the limits; FILE gets the same as JSON. The exit code is 1
    if something is beyond its limit; BENCH_PRINT_ONLY in the environment forgives what depends on how fast the machine
    is: ratios, times and shares, and not that all stay connected.

    This file is compiled twice, for two builds of the library in one program: with -DBENCH_PLAIN -c, and as it is. */

#if defined( BENCH_PLAIN )
#define NETCODE_STATIC
#define NETCODE_NO_LINUX_EXTRAS
#endif

#if !defined( __linux__ )
#error "this benchmark asks Linux what its own calls cost"
#endif

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#define CLIENTS 256
#define PACKETS 1        /* to each client in a tick */
#define CLIENT_SENDS 256 /* in one timing of a client */

/* ---- the server's part of the work, compiled with each build of the library ---- */

struct build_t {
    int ( *init )( void );
    void ( *term )( void );
    struct netcode_server_t * ( *open )( const struct netcode_server_config_t * config, int slots );
    void ( *close )( struct netcode_server_t * server );
    uint16_t ( *port )( struct netcode_server_t * server );
    void ( *update )( struct netcode_server_t * server, double time );
    int ( *echo )( struct netcode_server_t * server, double time );
    struct netcode_client_t * ( *client_open )( const struct netcode_client_config_t * config );
    void ( *client_close )( struct netcode_client_t * client );
    int ( *client_connect )( struct netcode_client_t * client, const uint8_t * connect_token );
    void ( *client_update )( struct netcode_client_t * client, double time );
    int ( *client_state )( struct netcode_client_t * client );
    void ( *client_send )( struct netcode_client_t * client, const uint8_t * data, int bytes );
};

extern const struct build_t build_full, build_plain;

static struct netcode_server_t * part_open( const struct netcode_server_config_t * config, int slots )
{
    struct netcode_server_t * server = netcode_server_create( "127.0.0.1:0", config, 0.0 );
    if ( server )
        netcode_server_start( server, slots );
    return server;
}

/* One tick: takes what came, sends every payload back, and returns how many there were. */
static int part_echo( struct netcode_server_t * server, double time )
{
    struct netcode_event_t event;
    int payloads = 0;
    netcode_server_update( server, time );
    while ( netcode_server_next_event( server, &event ) )
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            netcode_server_send_packet( server, event.client_index, event.data, event.bytes );
            netcode_server_free_packet( server, event.data );
            payloads++;
        }
    netcode_server_flush( server );
    return payloads;
}

static struct netcode_client_t * part_client_open( const struct netcode_client_config_t * config )
{
    return netcode_client_create( "127.0.0.1", config, 0.0 );
}

static void part_client_send( struct netcode_client_t * client, const uint8_t * data, int bytes )
{
    int i;
    for ( i = 0; i < CLIENT_SENDS; i++ )
        netcode_client_send_packet( client, data, bytes );
}

/* clang-format off */
#if defined( BENCH_PLAIN )
const struct build_t build_plain = {
#else
const struct build_t build_full = {
#endif
    netcode_init, netcode_term,
    part_open, netcode_server_destroy, netcode_server_get_port, netcode_server_update,
    part_echo,
    part_client_open, netcode_client_destroy, netcode_client_connect, netcode_client_update, netcode_client_state,
    part_client_send
};
/* clang-format on */

#if !defined( BENCH_PLAIN )

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROTOCOL_ID 0x534f434b455453u
#define MIN_ROUNDS 31
#define MAX_ROUNDS 1001
#define TICK_SECONDS ( 1.0 / 60.0 )
#define TICKS 5                            /* in one timing, with the first, which is not counted */
#define TICKED ( CLIENTS * ( TICKS - 1 ) ) /* echoes in one timing */
#define DATAGRAM_BYTES 1280                /* more than any packet needs */
#define BUFFER_BYTES ( 4 * 1024 * 1024 )
#define OVERHEAD_BYTES 23 /* prefix, six bytes of a sequence that starts at random, tag */
#define CLIENT_BUFFERS 32
#define JUNK 256
#define NEEDED_BYTES ( 1024 * 1024 ) /* of a receive buffer: 256 datagrams of 1223 bytes take 2304 bytes each */
#define KNOWN 8                      /* clients of a server that gets junk, from other addresses than theirs */

static const uint8_t key[NETCODE_KEY_BYTES] = { 42 };
static const int sizes[] = { 64, 256, 1200 };
static int order[CLIENTS]; /* in which the clients send */

static void stop( const char * why )
{
    fprintf( stderr, "bench_sockets: %s\n", why );
    exit( 1 );
}

static uint64_t mix( uint64_t x )
{
    x += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

/* CPU time of this thread, in nanoseconds. */
static double cpu_nanoseconds( void )
{
    struct timespec now;
    clock_gettime( CLOCK_THREAD_CPUTIME_ID, &now );
    return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

/* ---- the clients' sockets ----
    While a tick is timed, nothing runs before it but bare sends: what the clients' library does would leave its own
    memory in the processor's cache and not the server's. So the clients' datagrams are recorded beforehand, and they
    read what came for them afterwards. */

struct datagram_t {
    int bytes;
    uint8_t data[DATAGRAM_BYTES];
};

struct port_t {
    int handle;
    int index;
    int read; /* how many of its `incoming` it has read */
};

static struct port_t ports[CLIENTS];
static int recording = -1; /* the tick that the clients' sends are kept for; negative: they leave at once */
static struct datagram_t outgoing[TICKS][CLIENTS];
static struct datagram_t incoming[PACKETS][CLIENTS];
static struct sockaddr_in incoming_from;

/* The same for all: not blocking, at any port of every interface (as the library binds) or of the loopback. */
static int handle_open( int buffer_bytes, in_addr_t address )
{
    struct sockaddr_in here;
    int handle = socket( AF_INET, SOCK_DGRAM, IPPROTO_UDP );
    memset( &here, 0, sizeof( here ) );
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl( address );
    if ( handle < 0 || fcntl( handle, F_SETFL, O_NONBLOCK ) != 0 ||
         setsockopt( handle, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof( buffer_bytes ) ) != 0 ||
         setsockopt( handle, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof( buffer_bytes ) ) != 0 ||
         bind( handle, (const struct sockaddr *) &here, sizeof( here ) ) != 0 )
        stop( "a socket can not be opened; 300 of them are needed (ulimit -n)" );
    return handle;
}

static struct sockaddr_in place_of( uint16_t port )
{
    struct sockaddr_in place;
    memset( &place, 0, sizeof( place ) );
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    place.sin_port = htons( port );
    return place;
}

static uint16_t handle_port( int handle )
{
    struct sockaddr_in here;
    socklen_t here_bytes = sizeof( here );
    memset( &here, 0, sizeof( here ) );
    if ( getsockname( handle, (struct sockaddr *) &here, &here_bytes ) != 0 )
        stop( "a socket does not know its port" );
    return ntohs( here.sin_port );
}

static int handle_send( int handle, const void * data, int bytes, uint16_t port )
{
    struct sockaddr_in to = place_of( port );
    return sendto( handle, data, (size_t) bytes, 0, (const struct sockaddr *) &to, sizeof( to ) ) == bytes;
}

static int handle_receive( int handle, void * data, int capacity, struct sockaddr_in * from )
{
    socklen_t from_bytes = sizeof( *from );
    return (int) recvfrom( handle, data, (size_t) capacity, 0, (struct sockaddr *) from, &from_bytes );
}

/* What was kept for this client, or what waits on its socket. */
static int port_receive_one( struct port_t * port, struct netcode_datagram_t * datagram )
{
    struct sockaddr_in from = incoming_from;
    if ( port->read < PACKETS && incoming[port->read][port->index].bytes ) {
        struct datagram_t * kept = &incoming[port->read++][port->index];
        memcpy( datagram->data, kept->data, (size_t) kept->bytes );
        datagram->bytes = kept->bytes;
        kept->bytes = 0;
    } else
        datagram->bytes = handle_receive( port->handle, datagram->data, datagram->capacity, &from );
    memset( &datagram->address, 0, sizeof( datagram->address ) );
    datagram->address.type = NETCODE_ADDRESS_IPV4;
    datagram->address.port = ntohs( from.sin_port );
    memcpy( datagram->address.data.ipv4, &from.sin_addr, 4 );
    datagram->status = NETCODE_DATAGRAM_OK;
    return datagram->bytes >= 0;
}

static int port_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int i = 0;
    while ( i < count && port_receive_one( (struct port_t *) context, &datagrams[i] ) )
        i++;
    return i;
}

static int port_send_one( struct port_t * port, const struct netcode_datagram_t * datagram )
{
    struct datagram_t * kept = &outgoing[recording < 0 ? 0 : recording][port->index];
    if ( recording < 0 )
        return handle_send( port->handle, datagram->data, datagram->bytes, datagram->address.port );
    kept->bytes = datagram->bytes;
    memcpy( kept->data, datagram->data, (size_t) kept->bytes );
    return 1;
}

static int port_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i, sent = 0;
    for ( i = 0; i < count; i++ )
        sent += port_send_one( (struct port_t *) context, &datagrams[i] );
    return sent;
}

static struct netcode_socket_t port_socket( struct port_t * port )
{
    struct netcode_socket_t socket;
    memset( &socket, 0, sizeof( socket ) );
    socket.context = port;
    socket.receive = port_receive;
    socket.send = port_send;
    return socket;
}

/*  Empties the clients' sockets: each must have got so many datagrams of about this size, and perhaps probes. `keep`: for
    the clients to read. */
static void drain( int packets, int bytes, int keep )
{
    static struct datagram_t any;
    int i, k, got;
    for ( i = 0; i < CLIENTS; i++ ) {
        for ( k = 0; k <= packets; ) {
            struct datagram_t * place = keep && k < packets ? &incoming[k][i] : &any;
            got = handle_receive( ports[i].handle, place->data, DATAGRAM_BYTES, &incoming_from );
            if ( got < 0 )
                break;
            if ( ( place->data[0] & 15 ) == NETCODE_PACKET_KEEP_ALIVE )
                continue;
            k++;
            place->bytes = got;
            if ( got < bytes + OVERHEAD_BYTES - 2 || got > bytes + OVERHEAD_BYTES )
                stop( "a datagram of another size than was sent arrived" );
        }
        if ( k != packets )
            stop( k < packets ? "a datagram to a client was lost" : "a client got more datagrams than were sent" );
        ports[i].read = 0;
    }
}

static void send_recorded( int tick, uint16_t port, int bytes )
{
    int i, sent = 0;
    for ( i = 0; i < CLIENTS; i++ ) {
        const struct datagram_t * datagram = &outgoing[tick][order[i]];
        sent += handle_send( ports[order[i]].handle, datagram->data, bytes ? bytes : datagram->bytes, port );
    }
    if ( sent != CLIENTS )
        stop( "the system did not send a client's datagram" );
}

/* ---- worlds: a server of one build, and its clients on the shared sockets ---- */

struct world_t {
    const struct build_t * build;
    struct netcode_server_t * server;
    int count;
    struct netcode_client_t * clients[CLIENTS];
    double time;
};

static uint8_t payloads[PACKETS][CLIENTS][NETCODE_MAX_PACKET_SIZE];

static void shuffle( uint64_t seed )
{
    int i;
    for ( i = CLIENTS - 1; i > 0; i-- ) {
        int k = (int) ( mix( seed * CLIENTS + (uint64_t) i ) % (uint64_t) ( i + 1 ) ), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

static void world_token( struct world_t * world, int index, int timeout_seconds, uint8_t * token )
{
    char text[64];
    const char * address = text;
    snprintf( text, sizeof( text ), "127.0.0.1:%d", world->build->port( world->server ) );
    if ( netcode_generate_connect_token( 1, &address, &address, 3600, timeout_seconds, (uint64_t) index + 1,
                                         PROTOCOL_ID, key, NULL, token ) != NETCODE_OK )
        stop( "no connect token" );
}

/* A server without clients. `config` says how it differs from the default. */
static void world_serve( struct world_t * world, const struct build_t * build, int slots,
                         const struct netcode_server_config_t * config )
{
    struct netcode_server_config_t server_config = *config;
    server_config.protocol_id = PROTOCOL_ID;
    memcpy( server_config.private_key, key, sizeof( key ) );
    memset( world, 0, sizeof( *world ) );
    world->build = build;
    world->server = build->open( &server_config, slots );
    if ( !world->server )
        stop( "a server can not be opened" );
}

static void world_open( struct world_t * world, const struct build_t * build, int count,
                        const struct netcode_server_config_t * config )
{
    struct netcode_client_config_t client_config;
    int i;
    world_serve( world, build, count, config );
    world->count = count;
    netcode_default_client_config( &client_config );
    client_config.packet_pool_buffers = CLIENT_BUFFERS;
    for ( i = 0; i < count; i++ ) {
        struct netcode_socket_t socket = port_socket( &ports[i] );
        client_config.socket = &socket;
        world->clients[i] = netcode_client_create( "127.0.0.1", &client_config, world->time );
        if ( !world->clients[i] )
            stop( netcode_client_create_error_text( netcode_client_create_error() ) );
    }
}

static void world_close( struct world_t * world )
{
    int i;
    for ( i = 0; i < world->count; i++ )
        netcode_client_destroy( world->clients[i] );
    world->build->close( world->server );
}

static void update_clients( struct world_t * world )
{
    int i;
    for ( i = 0; i < world->count; i++ )
        netcode_client_update( world->clients[i], world->time );
}

/* How many clients know that they are connected. */
static int connected( struct world_t * world )
{
    int i, count = 0;
    for ( i = 0; i < world->count; i++ )
        count += netcode_client_state( world->clients[i] ) == NETCODE_CLIENT_STATE_CONNECTED;
    return count;
}

/* Every client must have got these payloads, in this order, and nothing else; `by_slot`: those of its place there. */
static void world_collect( struct world_t * world, int packets, int bytes, int by_slot )
{
    int i, k, got;
    update_clients( world );
    for ( i = 0; i < world->count; i++ ) {
        int index = by_slot ? netcode_client_index( world->clients[i] ) : i;
        uint8_t * packet;
        for ( k = 0; ( packet = netcode_client_receive_packet( world->clients[i], &got, NULL ) ) != NULL; k++ ) {
            if ( k >= packets || got != bytes || memcmp( packet, payloads[k][index], (size_t) bytes ) != 0 )
                stop( "a client got another payload than was sent to it" );
            netcode_client_free_packet( world->clients[i], packet );
        }
        if ( k != packets )
            stop( "a payload to a client was lost" );
    }
}

static void world_connect( struct world_t * world )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int i;
    for ( i = 0; i < world->count; i++ ) {
        world_token( world, i, -1, token );
        netcode_client_connect( world->clients[i], token );
    }
    for ( i = 0; i < 120; i++ ) {
        world->time += TICK_SECONDS;
        update_clients( world );
        world->build->update( world->server, world->time );
    }
    update_clients( world );
    if ( connected( world ) != world->count )
        stop( "a client did not connect" );
    /* Everyone sends and gets a payload: from here on no keep-alive is due while ticks are timed. */
    for ( i = 0; i < world->count; i++ )
        netcode_client_send_packet( world->clients[i], payloads[0][i], sizes[0] );
    world->build->echo( world->server, world->time );
    world_collect( world, 1, sizes[0], 0 );
}

/* ---- the work that is timed: several ticks in a row, of which the first warms up ---- */

static void record( struct world_t * world, int bytes )
{
    int i;
    for ( recording = 0; recording < TICKS; recording++ )
        for ( i = 0; i < CLIENTS; i++ )
            netcode_client_send_packet( world->clients[i], payloads[0][i], bytes );
    recording = -1;
}

static double timed_echo( struct world_t * world, int bytes )
{
    uint16_t port = world->build->port( world->server );
    double spent = 0.0, start;
    int tick;
    record( world, bytes );
    for ( tick = 0; tick < TICKS; tick++ ) {
        send_recorded( tick, port, 0 );
        world->time += TICK_SECONDS;
        start = cpu_nanoseconds();
        if ( world->build->echo( world->server, world->time ) != CLIENTS )
            stop( "a payload to the server was lost" );
        spent += tick > 0 ? cpu_nanoseconds() - start : 0.0;
        drain( 1, bytes, tick == TICKS - 1 );
    }
    world_collect( world, 1, bytes, 0 );
    return spent;
}

/* Until nothing waits: what a server does that knows no protocol. */
static int bare_echo( int server )
{
    uint8_t data[DATAGRAM_BYTES];
    int echoed = 0;
    for ( ;; ) {
        struct sockaddr_in from;
        socklen_t from_bytes = sizeof( from );
        ssize_t bytes = recvfrom( server, data, sizeof( data ), 0, (struct sockaddr *) &from, &from_bytes );
        if ( bytes < 0 )
            return echoed;
        echoed += sendto( server, data, (size_t) bytes, 0, (const struct sockaddr *) &from, from_bytes ) == bytes;
    }
}

static double timed_bare( int server, int bytes )
{
    uint16_t port = handle_port( server );
    double spent = 0.0, start;
    int tick;
    for ( tick = 0; tick < TICKS; tick++ ) {
        send_recorded( tick, port, bytes + OVERHEAD_BYTES );
        start = cpu_nanoseconds();
        if ( bare_echo( server ) != CLIENTS )
            stop( "a bare datagram was lost" );
        spent += tick > 0 ? cpu_nanoseconds() - start : 0.0;
        drain( 1, bytes, 0 );
    }
    return spent;
}

/* ---- a client's sends, and junk ---- */

struct caller_t {
    const struct build_t * build;
    struct netcode_client_t * client;
};

static struct world_t host; /* has a slot for each caller, and no other clients */
static struct caller_t callers[2];

static void open_callers( void )
{
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int i, k;
    netcode_default_server_config( &server_config );
    server_config.events = 1;
    netcode_default_client_config( &client_config );
    server_config.packet_pool_buffers = 4 * CLIENT_SENDS;
    world_serve( &host, &build_full, 2, &server_config );
    for ( i = 0; i < 2; i++ ) {
        callers[i].build = i == 0 ? &build_full : &build_plain;
        callers[i].client = callers[i].build->client_open( &client_config );
        if ( !callers[i].client )
            stop( "a client can not be opened" );
        world_token( &host, i, -1, token );
        callers[i].build->client_connect( callers[i].client, token );
        for ( k = 0; k < 60; k++ ) {
            host.time += TICK_SECONDS;
            host.build->update( host.server, host.time );
            callers[i].build->client_update( callers[i].client, host.time );
        }
        if ( callers[i].build->client_state( callers[i].client ) != NETCODE_CLIENT_STATE_CONNECTED )
            stop( "a client did not connect" );
    }
}

static double timed_client( const struct caller_t * caller, int bytes )
{
    double start = cpu_nanoseconds();
    caller->build->client_send( caller->client, payloads[0][0], bytes );
    start = cpu_nanoseconds() - start;
    /* On a machine that does other work an update may end before all is read: then it counts whose datagrams these are,
       and an address that sends more than 1,920 a second is limited. */
    host.time += CLIENT_SENDS / 1280.0;
    int echoed = host.build->echo( host.server, host.time );
    for ( int i = 0; echoed < CLIENT_SENDS && i < 100; i++ )
        echoed += host.build->echo( host.server, host.time );
    if ( echoed != CLIENT_SENDS )
        stop( "a client's payload was lost" );
    caller->build->client_update( caller->client, host.time );
    return start;
}

/*  What the server spends on JUNK datagrams that it must refuse, while no time goes by: the same ones for the same
    `salt`. `sending` receives what sending them cost, in which the kernel's work up to the server's socket is
    contained. */
static double timed_junk( struct world_t * world, uint64_t salt, int wrong_size, double * sending )
{
    uint16_t port = world->build->port( world->server );
    uint8_t data[2048];
    double start;
    int i;
    memcpy( data, payloads, sizeof( data ) );
    *sending = cpu_nanoseconds();
    for ( i = 0; i < JUNK; i++ ) {
        uint64_t seed = mix( salt * JUNK + (uint64_t) i );
        data[0] = wrong_size ? NETCODE_PACKET_REQUEST : (uint8_t) ( seed >> 32 );
        handle_send( ports[KNOWN + i % ( CLIENTS - KNOWN )].handle, data, 18 + (int) ( seed % 1000 ), port );
    }
    *sending = cpu_nanoseconds() - *sending;
    start = cpu_nanoseconds();
    world->build->update( world->server, world->time );
    return cpu_nanoseconds() - start;
}

/* libsodium alone, on one hot buffer and key: `count` packets opened, if so wanted, and sealed. */
static double timed_sodium( int bytes, int count, int opening )
{
    static uint8_t sealed[DATAGRAM_BYTES], plain[DATAGRAM_BYTES];
    unsigned char nonce[12] = { 0 };
    unsigned char ad[22] = { 0 };
    unsigned long long length, whole = (unsigned long long) bytes + NETCODE_MAC_BYTES;
    double start;
    int i, bad = 0;
    crypto_aead_chacha20poly1305_ietf_encrypt( sealed, &length, plain, (unsigned long long) bytes, ad, sizeof( ad ),
                                               NULL, nonce, key );
    start = cpu_nanoseconds();
    for ( i = 0; i < count; i++ ) {
        if ( opening )
            bad += crypto_aead_chacha20poly1305_ietf_decrypt( plain, &length, NULL, sealed, whole, ad, sizeof( ad ),
                                                              nonce, key ) != 0;
        crypto_aead_chacha20poly1305_ietf_encrypt( sealed, &length, plain, (unsigned long long) bytes, ad, sizeof( ad ),
                                                   NULL, nonce, key );
    }
    start = cpu_nanoseconds() - start;
    if ( bad )
        stop( "libsodium did not open what it sealed" );
    return start;
}

/* ---- the lines ---- */

enum {
    ECHO,             /* 64, 256, 1200 bytes */
    ECHO_BATCHED = 3, /* likewise */
    SODIUM = 6,       /* likewise */
    CLIENT_SEND = 9,
    FILTER_JUNK,
    FILTER_JUNK_SENDING,
    FILTER_SIZE,
    FILTER_SIZE_SENDING,
    LINES
};

struct line_t {
    const char * name;
    const char * against;
    double limit; /* 0: printed for information */
    int per;      /* how many things one timing holds */
};

/* clang-format off */
static const struct line_t lines[LINES] = {
    { "echo tick, 64 bytes"               , "bare recvfrom + sendto", 1.30, TICKED           },
    { "echo tick, 256 bytes"              , "bare recvfrom + sendto", 1.35, TICKED           },
    { "echo tick, 1200 bytes"             , "bare recvfrom + sendto", 1.90, TICKED           },
    { "  batch_sends, 64 bytes"           , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "  batch_sends, 256 bytes"          , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "  batch_sends, 1200 bytes"         , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "  libsodium alone, 64 bytes"       , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "  libsodium alone, 256 bytes"      , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "  libsodium alone, 1200 bytes"     , "bare recvfrom + sendto", 0.0 , TICKED           },
    { "a client's send, 64 bytes"         , "without Linux extras"  , 0.0 , CLIENT_SENDS     },
    { "junk, with kernel_filter"          , "without the filter"    , 0.0 , JUNK             },
    { "  its sender, the kernel included" , "without the filter"    , 0.0 , JUNK             },
    { "wrong size, with kernel_filter"    , "without the filter"    , 0.0 , JUNK             },
    { "  its sender, the kernel included" , "without the filter"    , 0.0 , JUNK             },
};
/* clang-format on */

/*  The ratio, the nanoseconds of both for one, and the floor: the ratio of a library that costs nothing beside
    libsodium and the kernel. */
enum { RATIO, TIMED, AGAINST, FLOOR, MEASURES };

static double measured[LINES][MEASURES][MAX_ROUNDS];

static void note( int line, int round, double timed, double against )
{
    if ( round < 0 )
        return;
    measured[line][RATIO][round] = timed / against;
    measured[line][TIMED][round] = timed / lines[line].per;
    measured[line][AGAINST][round] = against / lines[line].per;
}

static void note_floor( int line, int round, double floor )
{
    if ( round >= 0 )
        measured[line][FLOOR][round] = floor;
}

static struct world_t single, batched, filtered, unfiltered;
static int bare_server;

static void measure_echo( int round, int size )
{
    double timed[4] = { 0 };
    int k, turn;
    for ( k = 0; k < 4; k++ ) {
        turn = ( k + round + 4 ) % 4;
        switch ( turn ) {
        case 0: timed[turn] = timed_echo( &single, sizes[size] ); break;
        case 1: timed[turn] = timed_echo( &batched, sizes[size] ); break;
        case 2: timed[turn] = timed_bare( bare_server, sizes[size] ); break;
        default: timed[turn] = timed_sodium( sizes[size], TICKED, 1 );
        }
    }
    note( ECHO + size, round, timed[0], timed[2] );
    note( ECHO_BATCHED + size, round, timed[1], timed[2] );
    note( SODIUM + size, round, timed[3], timed[2] );
    note_floor( ECHO + size, round, 1.0 + timed[3] / timed[2] );
}

static void measure_client( int round )
{
    double timed[2];
    int first = round & 1;
    timed[first] = timed_client( &callers[first], 64 );
    timed[!first] = timed_client( &callers[!first], 64 );
    note( CLIENT_SEND, round, timed[0], timed[1] );
}

static void measure_filter( int line, int round, int wrong_size )
{
    double timed[2], sending[2];
    int k;
    for ( k = 0; k < 2; k++ ) {
        int which = ( k + round + 4 ) % 2;
        timed[which] =
            timed_junk( which ? &unfiltered : &filtered, (uint64_t) ( round + 4 ), wrong_size, &sending[which] );
    }
    note( line, round, timed[0], timed[1] );
    note( line + 1, round, sending[0], sending[1] );
}

static void measure( int rounds )
{
    int round, size;
    for ( round = -3; round < rounds; round++ ) { /* the first three warm up */
        shuffle( (uint64_t) ( round + 3 ) );
        for ( size = 0; size < 3; size++ )
            measure_echo( round, size );
        measure_client( round );
        measure_filter( FILTER_JUNK, round, 0 );
        measure_filter( FILTER_SIZE, round, 1 );
    }
}

static int by_value( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return ( x > y ) - ( x < y );
}

static double percentile( const double * sorted, int count, double part )
{
    return sorted[(int) ( part * ( count - 1 ) + 0.5 )];
}

static double median( int line, int measure, int rounds )
{
    return percentile( measured[line][measure], rounds, 0.5 );
}

static int line_is_over( int line, int rounds )
{
    return lines[line].limit > 0.0 && median( line, RATIO, rounds ) > lines[line].limit;
}

static int print_table( int rounds )
{
    struct utsname system;
    int i, k, over = 0;
    printf( "%-34s %-22s %6s %13s %6s %6s %4s %6s %7s\n", "CPU time of the server's thread", "against", "ratio",
            "10..90 %", "floor", "limit", "", "ns", "against" );
    for ( i = 0; i < LINES; i++ ) {
        for ( k = 0; k < MEASURES; k++ )
            qsort( measured[i][k], (size_t) rounds, sizeof( double ), by_value );
        printf( "%-34s %-22s %6.3f %6.3f..%-6.3f ", lines[i].name, lines[i].against, median( i, RATIO, rounds ),
                percentile( measured[i][RATIO], rounds, 0.1 ), percentile( measured[i][RATIO], rounds, 0.9 ) );
        if ( lines[i].limit > 0.0 )
            printf( "%5.3f %6.2f %-4s", median( i, FLOOR, rounds ), lines[i].limit,
                    line_is_over( i, rounds ) ? "OVER" : "ok" );
        else
            printf( "%17s", "" );
        printf( " %6.0f %7.0f\n", median( i, TIMED, rounds ), median( i, AGAINST, rounds ) );
        over += line_is_over( i, rounds );
    }
    uname( &system );
    printf( "%d rounds, libsodium %s, Linux %s; floor: if libsodium and the kernel were all that costs anything\n",
            rounds, sodium_version_string(), system.release );
    for ( i = 0; i < LINES; i++ )
        if ( lines[i].limit > 0.0 && median( i, FLOOR, rounds ) > lines[i].limit )
            printf( "%s: on this machine the floor itself is beyond the limit\n", lines[i].name );
    return over;
}

/* ---- the flood: a process that sends a server what it must refuse ---- */

#define HONEST 64
#define HONEST_BYTES 200
#define TIMEOUT_SECONDS 5
#define UNKNOWN_SOCKETS 16
#define NOISE_BYTES 65536
#define SATURATING_RATE 200000.0
#define HALF_SECONDS 35.0 /* 2100 updates: two of them are beyond the 99.9th percentile */
#define TWICE_SECONDS 8.0 /* longer than the tokens' timeout */
#define REQUEST_BYTES 1078
#define CATCH_UP_SECONDS 0.02 /* what a flooder that was held up sends at once; the rest is given up */

/* Shared with the flooder. */
struct flood_t {
    double rate; /* datagrams in a second */
    double seconds;
    uint16_t port;
    uint64_t sent;
    double took; /* seconds; set at the end */
};

static struct flood_t * flood;
static pid_t flooder;
static uint8_t requests[HONEST][REQUEST_BYTES]; /* the honest clients', of tokens that were used since */
static struct datagram_t overheard[HONEST];     /* a payload of each */
static int unknown_sockets[UNKNOWN_SOCKETS];
static uint8_t noise[NOISE_BYTES];

static void stop_flooder( void )
{
    if ( flooder > 0 ) {
        kill( flooder, SIGKILL );
        waitpid( flooder, NULL, 0 );
        flooder = 0;
    }
}

static int flood_noise( uint64_t seed, uint8_t prefix, int bytes )
{
    uint8_t * data = noise + mix( seed ) % ( NOISE_BYTES - 2048 );
    data[0] = prefix;
    return handle_send( unknown_sockets[seed % UNKNOWN_SOCKETS], data, bytes, flood->port );
}

/* In order but for the token itself. Each names another one, so that nothing that is remembered helps. */
static int flood_forged_request( uint64_t seed )
{
    uint8_t data[REQUEST_BYTES];
    memcpy( data, requests[0], sizeof( data ) );
    memcpy( data + sizeof( data ) - sizeof( seed ), &seed, sizeof( seed ) );
    return handle_send( unknown_sockets[seed % UNKNOWN_SOCKETS], data, (int) sizeof( data ), flood->port );
}

/* From an honest client's own address, with a sequence that could be: only the tag decides. */
static int flood_forged_payload( uint64_t seed )
{
    struct datagram_t forged = overheard[seed % HONEST];
    int i, carry = 1;
    for ( i = 3; i <= forged.data[0] >> 4; i++ ) { /* 2^16 further on */
        carry += forged.data[i];
        forged.data[i] = (uint8_t) carry;
        carry >>= 8;
    }
    return handle_send( ports[seed % HONEST].handle, forged.data, forged.bytes, flood->port );
}

static int flood_one( uint64_t number )
{
    uint64_t seed = mix( number );
    const struct datagram_t * kept = &overheard[seed % HONEST];
    switch ( number % 8 ) {
    case 0: return flood_noise( seed, (uint8_t) ( seed >> 32 ), 1 + (int) ( ( seed >> 40 ) % 1400 ) );
    case 1: return flood_noise( seed, 0, 1 + (int) ( ( seed >> 40 ) % 1400 ) );
    case 2: return flood_noise( seed, 0x60 | NETCODE_PACKET_RESPONSE, 331 );
    case 3: return flood_noise( seed, 0x60 | NETCODE_PACKET_PAYLOAD, NETCODE_MAX_PACKET_SIZE + OVERHEAD_BYTES );
    case 4: return flood_forged_request( seed );
    case 5:
        return handle_send( unknown_sockets[seed % UNKNOWN_SOCKETS], requests[seed % HONEST], REQUEST_BYTES,
                            flood->port );
    case 6: return handle_send( ports[seed % HONEST].handle, kept->data, kept->bytes, flood->port );
    default: return flood_forged_payload( seed );
    }
}

/* The flooder's life. What it falls behind is caught up with in small bursts only. */
static void flood_run( void )
{
    double start = netcode_time(), now, given_up = 0.0;
    uint64_t number = 0;
    int burst;
    alarm( (unsigned) flood->seconds + 5 );
    while ( ( now = netcode_time() - start ) < flood->seconds ) {
        double due = flood->rate * now - given_up - (double) number;
        if ( due > flood->rate * CATCH_UP_SECONDS ) {
            given_up += due - flood->rate * CATCH_UP_SECONDS;
            due = flood->rate * CATCH_UP_SECONDS;
        }
        for ( burst = due > 0.0 ? (int) due : 0; burst > 0; burst-- )
            flood->sent += (uint64_t) flood_one( number++ );
        netcode_sleep( 0.0005 );
    }
    flood->took = now;
}

static void flood_begin( double rate, double seconds )
{
    flood->rate = rate;
    flood->seconds = seconds;
    flood->sent = 0;
    flood->took = 0.0;
    fflush( stdout );
    flooder = fork();
    if ( flooder < 0 )
        stop( "the flooder can not be started" );
    if ( flooder == 0 ) {
        prctl( PR_SET_PDEATHSIG, SIGKILL );
        flood_run();
        _exit( 0 );
    }
}

/* It ends by itself, about now. */
static void flood_end( void )
{
    double give_up = netcode_time() + 3.0;
    int status = 1;
    while ( waitpid( flooder, &status, WNOHANG ) == 0 ) {
        if ( netcode_time() > give_up )
            stop( "the flooder did not end" );
        netcode_sleep( 0.01 );
    }
    flooder = 0;
    if ( status != 0 || flood->took <= 0.0 )
        stop( "the flooder failed" );
}

/* ---- honest clients at 60 Hz, while the flood comes ---- */

#define GROUPS 8 /* of clients, which take their turns within a tick */
#define MAX_UPDATES 4096

struct siege_t {
    double asked;      /* datagrams of the flood in a second */
    double reached;    /* what the flooder managed */
    uint64_t sent;     /* datagrams, by the flooder and by the clients' sockets */
    uint64_t received; /* by the server */
    uint64_t kernel_drops;
    uint64_t backlogs;
    uint64_t up_sent, up_received, down_sent, down_received; /* honest payloads */
    double drain_rate;                                       /* refused in a second, once the flood has set in */
    double spent;                                            /* nanoseconds, all updates */
    int updates;
    double nanoseconds[MAX_UPDATES]; /* of each; sorted at the end */
    int connected;
};

static uint64_t all_drops( struct netcode_server_t * server )
{
    struct netcode_server_stats_t stats = { 0 };
    uint64_t sum = 0;
    int i;
    netcode_server_stats( server, &stats );
    for ( i = 1; i < NETCODE_DROP_REASONS; i++ )
        sum += stats.dropped[i];
    return sum;
}

/* What the flood must have been refused as; otherwise it was not the mix that it is meant to be. */
static const int meant[] = { NETCODE_DROP_REQUEST_WRONG_SIZE,
                             NETCODE_DROP_UNKNOWN_ADDRESS,
                             NETCODE_DROP_TOKEN_NOT_AUTHENTIC,
                             NETCODE_DROP_TOKEN_CONSUMED,
                             NETCODE_DROP_REPLAYED,
                             NETCODE_DROP_SEQUENCE_TOO_OLD,
                             NETCODE_DROP_AUTHENTICATION_FAILED };

static void print_reasons( struct netcode_server_t * server )
{
    struct netcode_server_stats_t stats = { 0 };
    double sum = (double) all_drops( server );
    size_t i;
    netcode_server_stats( server, &stats );
    printf( "    refused as" );
    for ( i = 0; i < sizeof( meant ) / sizeof( meant[0] ); i++ ) {
        uint64_t count = stats.dropped[meant[i]];
        printf( "%s %s %.1f %%", i ? "," : "", netcode_drop_reason_name( meant[i] ), 100.0 * (double) count / sum );
        if ( !count )
            stop( "the flood lacks something that it should hold" );
    }
    printf( "\n" );
}

static uint64_t clients_sent( struct world_t * world )
{
    struct netcode_client_stats_t stats = { 0 };
    uint64_t sum = 0;
    int i, type;
    for ( i = 0; i < world->count; i++ ) {
        netcode_client_stats( world->clients[i], &stats );
        for ( type = 0; type < NETCODE_PACKET_TYPES; type++ )
            sum += stats.packets_sent[type];
    }
    return sum;
}

static void siege_server( struct siege_t * siege, struct netcode_server_t * server, double time )
{
    struct netcode_event_t event;
    double start = cpu_nanoseconds();
    netcode_server_update( server, time );
    start = cpu_nanoseconds() - start;
    siege->spent += start;
    if ( siege->updates < MAX_UPDATES )
        siege->nanoseconds[siege->updates++] = start;
    while ( netcode_server_next_event( server, &event ) ) {
        if ( event.type == NETCODE_EVENT_DISCONNECTED )
            stop( "an honest client lost its connection under the flood" );
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        siege->up_received++;
        siege->down_sent++;
        netcode_server_send_packet( server, event.client_index, event.data, event.bytes );
        netcode_server_free_packet( server, event.data );
    }
}

static void siege_client( struct siege_t * siege, struct world_t * world, int index, int sending )
{
    struct netcode_client_t * client = world->clients[index];
    uint8_t * packet;
    int bytes;
    netcode_client_update( client, world->time );
    while ( ( packet = netcode_client_receive_packet( client, &bytes, NULL ) ) != NULL ) {
        if ( bytes != HONEST_BYTES || memcmp( packet, payloads[0][index], HONEST_BYTES ) != 0 )
            stop( "an honest client got another payload than it had sent" );
        siege->down_received++;
        netcode_client_free_packet( client, packet );
    }
    if ( sending ) {
        netcode_client_send_packet( client, payloads[0][index], HONEST_BYTES );
        siege->up_sent++;
    }
}

/*  Sixty times a second the server has its turn, and between two of these each client has one, as far from the server's
    as chance would have it. What can not be done in time is left out, as a game would. */
static void siege_ticks( struct siege_t * siege, struct world_t * world, double seconds, int sending )
{
    double step = TICK_SECONDS / ( GROUPS + 1 ), when = netcode_time(), end = when + seconds;
    int turn, i;
    for ( turn = 0; when < end; turn = ( turn + 1 ) % ( GROUPS + 1 ) ) {
        netcode_sleep( when - netcode_time() );
        world->time = netcode_time();
        if ( turn == 0 )
            siege_server( siege, world->server, world->time );
        for ( i = turn - 1; turn > 0 && i < HONEST; i += GROUPS )
            siege_client( siege, world, i, sending );
        when = when + step > world->time ? when + step : world->time;
    }
}

/* Adds what was counted so far, or with -1 takes it away, so that the difference is left. */
static void siege_count( struct siege_t * siege, struct world_t * world, int sign )
{
    struct netcode_server_stats_t stats = { 0 };
    netcode_server_stats( world->server, &stats );
    siege->sent += (uint64_t) sign * clients_sent( world );
    siege->received += (uint64_t) sign * stats.datagrams_received;
    siege->kernel_drops += (uint64_t) sign * stats.kernel_drops;
    siege->backlogs += (uint64_t) sign * stats.backlogs;
}

static void siege_run( struct siege_t * siege, struct world_t * world, double rate, double seconds )
{
    static struct siege_t after; /* its updates have no flood to refuse */
    double since;
    memset( siege, 0, sizeof( *siege ) );
    memset( &after, 0, sizeof( after ) );
    siege->asked = rate;
    siege_count( siege, world, -1 );
    flood_begin( rate, seconds );
    siege_ticks( siege, world, 0.5, 1 );
    since = netcode_time();
    siege->drain_rate = -(double) all_drops( world->server );
    siege_ticks( siege, world, seconds - 0.5, 1 );
    siege->drain_rate = ( siege->drain_rate + (double) all_drops( world->server ) ) / ( netcode_time() - since );
    siege_ticks( &after, world, 1.0, 0 ); /* what is still on its way */
    flood_end();
    siege_count( siege, world, 1 );
    siege->sent += flood->sent;
    siege->up_received += after.up_received;
    siege->down_sent += after.down_sent;
    siege->down_received += after.down_received;
    siege->reached = (double) flood->sent / flood->took;
    siege->connected = connected( world );
    qsort( siege->nanoseconds, (size_t) siege->updates, sizeof( double ), by_value );
}

static void open_flood( struct world_t * world )
{
    struct netcode_server_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int i;
    flood =
        (struct flood_t *) mmap( NULL, sizeof( *flood ), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0 );
    if ( flood == MAP_FAILED )
        stop( "no memory to share with the flooder" );
    atexit( stop_flooder );
    randombytes_buf( noise, sizeof( noise ) );
    for ( i = 0; i < UNKNOWN_SOCKETS; i++ )
        unknown_sockets[i] = handle_open( 256 * 1024, INADDR_LOOPBACK );
    netcode_default_server_config( &config );
    config.events = 1;
    world_open( world, &build_full, HONEST, &config );
    flood->port = netcode_server_get_port( world->server );
    for ( i = 0; i < HONEST; i++ ) {
        uint8_t * request = requests[i];
        world_token( world, i, TIMEOUT_SECONDS, token );
        netcode_client_connect( world->clients[i], token );
        /* Standard: Packets. The token begins with version, protocol id, creation, expiry, nonce, sealed part. */
        request[0] = NETCODE_PACKET_REQUEST;
        memcpy( request + 1, token, 13 + 8 );
        memcpy( request + 1 + 13 + 8, token + 13 + 8 + 8, 8 + 24 + 1024 );
    }
}

/* A payload of every client is recorded on its way, so that the server has seen it when the flooder sends it. */
static void overhear( struct world_t * world )
{
    int i;
    recording = 0;
    for ( i = 0; i < HONEST; i++ ) {
        netcode_client_send_packet( world->clients[i], payloads[0][i], HONEST_BYTES );
        overheard[i] = outgoing[0][i];
    }
    recording = -1;
    for ( i = 0; i < HONEST; i++ )
        handle_send( ports[i].handle, overheard[i].data, overheard[i].bytes, flood->port );
}

/* ---- the verdict on the flood ---- */

enum { HALF_UPDATE, HALF_UP, HALF_DOWN, HALF_CONNECTED, TWICE_CONNECTED, TWICE_DROPS, CHECKS };

struct check_t {
    const char * name;
    const char * unit;
    int at_most; /* else at least */
    double limit;
    double value;
};

static struct check_t checks[CHECKS] = {
    { "flood at half, p99.9 of updates", "ms", 1, 2.0, 0.0 },
    { "flood at half, honest packets in", "%", 0, 99.0, 0.0 },
    { "flood at half, honest packets out", "%", 0, 99.0, 0.0 },
    { "flood at half, still connected", "", 0, HONEST, 0.0 },
    { "flood at twice, still connected", "", 0, HONEST, 0.0 },
    { "flood at twice, kernel drops counted", "", 0, 1.0, 0.0 },
};

static struct siege_t saturated, half, twice;

static double percent( uint64_t part, uint64_t whole )
{
    return whole ? 100.0 * (double) part / (double) whole : 0.0;
}

static double siege_milliseconds( const struct siege_t * siege, double part )
{
    int index = (int) ceil( part * siege->updates ) - 1;
    return siege->nanoseconds[index < 0 ? 0 : index] / 1e6;
}

static void print_siege( const struct siege_t * siege, const char * name )
{
    printf( "flood %s: %.0f/s asked, %.0f/s sent, %.0f/s refused, %" PRIu64 " dropped by the kernel\n", name,
            siege->asked, siege->reached, siege->drain_rate, siege->kernel_drops );
    printf( "    %d updates, %" PRIu64 " with a backlog: median %.3f ms, p99 %.3f, p99.9 %.3f, longest %.3f\n",
            siege->updates, siege->backlogs, siege_milliseconds( siege, 0.5 ), siege_milliseconds( siege, 0.99 ),
            siege_milliseconds( siege, 0.999 ), siege_milliseconds( siege, 1.0 ) );
    printf( "    honest packets: %.2f %% of %" PRIu64 " arrived, %.2f %% of %" PRIu64 " answers; %d connected\n",
            percent( siege->up_received, siege->up_sent ), siege->up_sent,
            percent( siege->down_received, siege->down_sent ), siege->down_sent, siege->connected );
    fflush( stdout );
}

/* A flood that was weaker than meant proves nothing, and neither does a count that does not add up. */
static void siege_validate( const struct siege_t * siege )
{
    double missing = (double) siege->sent - (double) siege->received - (double) siege->kernel_drops;
    if ( siege->reached < 0.95 * siege->asked ) {
        const char * busy = "the flooder did not reach its rate: is the machine busy with something else?";
        if ( !getenv( "BENCH_PRINT_ONLY" ) )
            stop( busy );
        printf( "    %s\n", busy );
    }
    if ( fabs( missing ) > 0.001 * (double) siege->sent ) {
        fprintf( stderr, "bench_sockets: %.0f of %" PRIu64 " datagrams were neither received nor counted as dropped\n",
                 missing, siege->sent );
        exit( 1 );
    }
}

static void measure_flood( void )
{
    static struct world_t world;
    open_flood( &world );
    siege_ticks( &saturated, &world, 2.0, 0 );
    if ( connected( &world ) != HONEST )
        stop( "an honest client did not connect" );
    overhear( &world );
    siege_ticks( &saturated, &world, 0.5, 0 );
    siege_run( &saturated, &world, SATURATING_RATE, 3.0 );
    print_siege( &saturated, "beyond measure" );
    if ( saturated.backlogs < (uint64_t) saturated.updates * 9 / 10 )
        stop( "the flood was too weak to find out how much the server can refuse" );
    printf( "drain rate: %.0f/s at 60 Hz, %.0f/s if it did nothing else\n", saturated.drain_rate,
            (double) saturated.received / saturated.spent * 1e9 );
    siege_run( &half, &world, saturated.drain_rate / 2.0, HALF_SECONDS );
    print_siege( &half, "at half of that" );
    siege_validate( &half );
    siege_run( &twice, &world, saturated.drain_rate * 2.0, TWICE_SECONDS );
    print_siege( &twice, "at twice" );
    print_reasons( world.server );
    siege_validate( &twice );
    world_close( &world );
    checks[HALF_UPDATE].value = siege_milliseconds( &half, 0.999 );
    checks[HALF_UP].value = percent( half.up_received, half.up_sent );
    checks[HALF_DOWN].value = percent( half.down_received, half.down_sent );
    checks[HALF_CONNECTED].value = half.connected;
    checks[TWICE_CONNECTED].value = twice.connected;
    checks[TWICE_DROPS].value = (double) twice.kernel_drops;
}

static int check_is_good( const struct check_t * check )
{
    return check->at_most ? check->value <= check->limit : check->value >= check->limit;
}

static int print_checks( void )
{
    int i, over = 0;
    for ( i = 0; i < CHECKS; i++ ) {
        int good = check_is_good( &checks[i] );
        printf( "%-40s %12.3f %-2s %s %5.0f %s\n", checks[i].name, checks[i].value, checks[i].unit,
                checks[i].at_most ? "<=" : ">=", checks[i].limit, good ? "ok" : "OVER" );
        over += !good && !( getenv( "BENCH_PRINT_ONLY" ) && checks[i].unit[0] ); /* a connected client stays so */
    }
    return over;
}

static int write_json( const char * path, int rounds )
{
    FILE * file = fopen( path, "w" );
    int i;
    if ( !file )
        return 0;
    fprintf( file, "{\"netcode\": \"%s\", \"libsodium\": \"%s\", \"rounds\": %d, \"rows\": [\n", netcode_version(),
             sodium_version_string(), rounds );
    for ( i = 0; i < LINES; i++ )
        fprintf( file,
                 "  {\"name\": \"%s\", \"against\": \"%s\", \"limit\": %.3f, \"floor\": %.4f, \"ratio\": %.4f, "
                 "\"ratio_p10\": %.4f, \"ratio_p90\": %.4f, \"nanoseconds\": %.1f, \"against_nanoseconds\": %.1f}%s\n",
                 lines[i].name + strspn( lines[i].name, " " ), lines[i].against, lines[i].limit,
                 median( i, FLOOR, rounds ), median( i, RATIO, rounds ), percentile( measured[i][RATIO], rounds, 0.1 ),
                 percentile( measured[i][RATIO], rounds, 0.9 ), median( i, TIMED, rounds ),
                 median( i, AGAINST, rounds ), i + 1 < LINES ? "," : "" );
    fprintf( file, "], \"drain_rate\": %.0f, \"flood_half\": %.0f, \"flood_twice\": %.0f, \"flood\": [\n",
             saturated.drain_rate, half.reached, twice.reached );
    for ( i = 0; i < CHECKS; i++ )
        fprintf( file, "  {\"name\": \"%s\", \"value\": %.4f, \"unit\": \"%s\", \"limit\": %.1f, \"at_most\": %d}%s\n",
                 checks[i].name, checks[i].value, checks[i].unit, checks[i].limit, checks[i].at_most,
                 i + 1 < CHECKS ? "," : "" );
    fprintf( file, "]}\n" );
    return fclose( file ) == 0;
}

static void open_ports( void )
{
    int i, granted = 0;
    socklen_t length = sizeof( granted );
    for ( i = 0; i < CLIENTS; i++ ) {
        ports[i].handle = handle_open( 256 * 1024, INADDR_LOOPBACK );
        ports[i].index = order[i] = i;
    }
    bare_server = handle_open( BUFFER_BYTES, INADDR_ANY );
    if ( getsockopt( bare_server, SOL_SOCKET, SO_RCVBUF, &granted, &length ) != 0 || granted < NEEDED_BYTES )
        stop( "the system grants too small a receive buffer: sysctl -w net.core.rmem_max=4194304" );
    randombytes_buf( payloads, sizeof( payloads ) );
}

static void open_worlds( void )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.events = 1;
    world_open( &single, &build_full, CLIENTS, &config );
    world_connect( &single );
    config.batch_sends = 1;
    world_open( &batched, &build_full, CLIENTS, &config );
    world_connect( &batched );
    netcode_default_server_config( &config );
    config.events = 1;
    config.kernel_filter = -1;
    world_open( &unfiltered, &build_full, KNOWN, &config );
    world_connect( &unfiltered );
    config.kernel_filter = 0;
    world_open( &filtered, &build_full, KNOWN, &config );
    world_connect( &filtered );
    open_callers();
}

static void close_worlds( void )
{
    int i;
    for ( i = 0; i < 2; i++ )
        callers[i].build->client_close( callers[i].client );
    world_close( &host );
    world_close( &filtered );
    world_close( &unfiltered );
    world_close( &batched );
    world_close( &single );
}

int main( int count, char ** arguments )
{
    int rounds = count > 1 ? atoi( arguments[1] ) : MIN_ROUNDS, too_slow, wrong;
    if ( rounds < MIN_ROUNDS || rounds > MAX_ROUNDS ) {
        printf( "usage: bench_sockets [ROUNDS, %d to %d [FILE]]\n", MIN_ROUNDS, MAX_ROUNDS );
        return 2;
    }
    if ( build_full.init() != NETCODE_OK || build_plain.init() != NETCODE_OK )
        stop( "netcode_init failed" );
    open_ports();
    open_worlds();
    measure( rounds );
    too_slow = print_table( rounds );
    close_worlds();
    measure_flood();
    wrong = print_checks();
    if ( count > 2 && !write_json( arguments[2], rounds ) )
        stop( "the JSON file can not be written" );
    build_plain.term();
    build_full.term();
    return wrong || ( too_slow && !getenv( "BENCH_PRINT_ONLY" ) );
}

#endif
