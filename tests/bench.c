/*  make bench: what a packet costs, as a ratio to libsodium alone in the same run.

        bench [ROUNDS [FILE]]

    Each row times some work of the library through its public API, over a socket in memory, and beside it the libsodium calls that no
    implementation of the standard can do without (or, for refusals that need none, the opening of one full payload). The two are
    timed in turn, round by round, so that a slow moment of the machine meets both. Printed are the median of the rounds' ratios, the
    tenth and ninetieth percentile, and the medians in nanoseconds; FILE gets the same as JSON. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROTOCOL_ID 0x42454e4348u
#define MIN_ROUNDS 31
#define MAX_ROUNDS 1001
#define BATCH 128     /* packets in one timing */
#define HANDSHAKES 16 /* clients that connect in one timing */
#define SLOTS 64
#define DATAGRAM_BYTES 1280 /* more than any packet needs */
#define QUEUE 512

static const uint8_t key[NETCODE_KEY_BYTES] = { 42 };

/* ---- a network in memory: one queue for each party ---- */

struct datagram_t {
    struct netcode_address_t from;
    int bytes;
    uint8_t data[DATAGRAM_BYTES];
};

struct queue_t {
    int head;
    int count;
    struct datagram_t items[QUEUE];
};

struct port_t {
    struct netcode_address_t address;
    struct queue_t * inbox;
    struct queue_t * outbox; /* NULL: what is sent is thrown away */
};

static int port_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct port_t * port = (struct port_t *) context;
    struct queue_t * queue = port->inbox;
    int filled = 0;
    while ( filled < count && queue->head < queue->count ) {
        const struct datagram_t * item = &queue->items[queue->head++];
        struct netcode_datagram_t * datagram = &datagrams[filled++];
        datagram->address = item->from;
        datagram->bytes = item->bytes < datagram->capacity ? item->bytes : datagram->capacity;
        datagram->status = item->bytes <= datagram->capacity ? NETCODE_DATAGRAM_OK : NETCODE_DATAGRAM_TRUNCATED;
        datagram->error = 0;
        memcpy( datagram->data, item->data, (size_t) datagram->bytes );
    }
    if ( queue->head == queue->count )
        queue->head = queue->count = 0;
    return filled;
}

static void queue_add( struct queue_t * queue, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    struct datagram_t * item;
    if ( queue->count == QUEUE || bytes > DATAGRAM_BYTES )
        return;
    item = &queue->items[queue->count++];
    item->from = *from;
    item->bytes = bytes;
    memcpy( item->data, data, (size_t) bytes );
}

static int port_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    struct port_t * port = (struct port_t *) context;
    int i;
    for ( i = 0; port->outbox && i < count; i++ )
        queue_add( port->outbox, &port->address, datagrams[i].data, datagrams[i].bytes );
    return count;
}

static void port_info( void * context, struct netcode_socket_info_t * info )
{
    memset( info, 0, sizeof( *info ) );
    info->address = ( (struct port_t *) context )->address;
}

static struct netcode_socket_t port_socket( struct port_t * port )
{
    struct netcode_socket_t socket;
    memset( &socket, 0, sizeof( socket ) );
    socket.context = port;
    socket.receive = port_receive;
    socket.send = port_send;
    socket.info = port_info;
    return socket;
}

/* ---- the world: one server, and clients whose datagrams it gets ---- */

struct world_t {
    double time;
    struct netcode_server_t * server;
    struct port_t server_port;
    struct queue_t to_server;
    struct netcode_client_t * clients[SLOTS];
    struct port_t client_ports[SLOTS];
    struct queue_t to_client[SLOTS];
    uint64_t next_client_id;
    uint64_t forged;     /* a counter that makes every forgery another one */
    struct queue_t kept; /* datagrams that are sent again */
};

static struct world_t world;

static void stop( const char * why )
{
    fprintf( stderr, "bench: %s\n", why );
    exit( 1 );
}

static uint64_t unix_time( void * context )
{
    (void) context;
    return (uint64_t) time( NULL );
}

/* Hands the server's answers to the clients whose addresses they carry. */
static int server_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count; i++ ) {
        int index = datagrams[i].address.port - 2000;
        if ( index >= 0 && index < SLOTS )
            queue_add( &world.to_client[index], &world.server_port.address, datagrams[i].data, datagrams[i].bytes );
    }
    return count;
}

static void world_open( void )
{
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    struct netcode_socket_t socket;
    char text[64];
    int i;
    netcode_parse_address( "127.0.0.1:1000", &world.server_port.address );
    world.server_port.inbox = &world.to_server;
    socket = port_socket( &world.server_port );
    socket.send = server_send;
    netcode_default_server_config( &server_config );
    server_config.protocol_id = PROTOCOL_ID;
    memcpy( server_config.private_key, key, sizeof( key ) );
    server_config.socket = &socket;
    server_config.unix_time = unix_time;
    server_config.update_budget = 1 << 20;
    server_config.consumed_tokens = HANDSHAKES * ( MAX_ROUNDS + 8 );
    server_config.pending_handshakes = 1024;
    world.time = 1000.0;
    world.server = netcode_server_create( "127.0.0.1:1000", &server_config, world.time );
    if ( !world.server )
        stop( netcode_server_create_error_text( netcode_server_create_error() ) );
    netcode_server_start( world.server, SLOTS );
    netcode_default_client_config( &client_config );
    client_config.update_budget = 1 << 20;
    for ( i = 0; i < SLOTS; i++ ) {
        snprintf( text, sizeof( text ), "127.0.0.1:%d", 2000 + i );
        netcode_parse_address( text, &world.client_ports[i].address );
        world.client_ports[i].inbox = &world.to_client[i];
        world.client_ports[i].outbox = &world.to_server;
        socket = port_socket( &world.client_ports[i] );
        client_config.socket = &socket;
        world.clients[i] = netcode_client_create( text, &client_config, world.time );
        if ( !world.clients[i] )
            stop( netcode_client_create_error_text( netcode_client_create_error() ) );
    }
}

static void world_close( void )
{
    int i;
    for ( i = 0; i < SLOTS; i++ )
        netcode_client_destroy( world.clients[i] );
    netcode_server_destroy( world.server );
}

static void dial( int index )
{
    static const char * address = "127.0.0.1:1000";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    if ( netcode_generate_connect_token( 1, &address, &address, 3600, -1, ++world.next_client_id, PROTOCOL_ID, key,
                                         NULL, token ) != NETCODE_OK )
        stop( "no connect token" );
    netcode_client_connect( world.clients[index], token );
}

static void update_clients( int first, int end )
{
    int i;
    for ( i = first; i < end; i++ ) {
        uint8_t * packet;
        int bytes;
        netcode_client_update( world.clients[i], world.time );
        while ( ( packet = netcode_client_receive_packet( world.clients[i], &bytes, NULL ) ) != NULL )
            netcode_client_free_packet( world.clients[i], packet );
    }
}

/* Time as the timings take it: nanoseconds of this process. */
static double nanoseconds( void )
{
    return netcode_time() * 1e9;
}

static double timed_server_update( void )
{
    double start = nanoseconds();
    netcode_server_update( world.server, world.time );
    return nanoseconds() - start;
}

static uint64_t dropped( int reason )
{
    struct netcode_server_stats_t stats;
    netcode_server_stats( world.server, &stats );
    return stats.dropped[reason];
}

/* Lets the clients first..end-1 connect and returns what the server's part of it took. */
static double connect_clients( int first, int end )
{
    double spent = 0.0;
    int i, step;
    for ( i = first; i < end; i++ )
        dial( i );
    for ( step = 0; step < 4; step++ ) {
        world.time += 0.2;
        update_clients( first, end );
        spent += timed_server_update();
    }
    update_clients( first, end );
    for ( i = first; i < end; i++ )
        if ( netcode_client_state( world.clients[i] ) != NETCODE_CLIENT_STATE_CONNECTED )
            stop( "a client did not connect" );
    return spent;
}

static void disconnect_clients( int first, int end )
{
    int i;
    for ( i = first; i < end; i++ )
        netcode_client_disconnect( world.clients[i] );
    netcode_server_update( world.server, world.time );
    if ( netcode_server_num_connected_clients( world.server ) != SLOTS - ( end - first ) )
        stop( "a client did not disconnect" );
}

/* ---- libsodium alone ---- */

static uint8_t plain[2048], sealed[2048];

static double sodium_seal( int bytes, int count )
{
    unsigned char nonce[12] = { 0 };
    unsigned char ad[22] = { 0 };
    unsigned long long sealed_bytes;
    double start = nanoseconds();
    int i;
    for ( i = 0; i < count; i++ ) {
        nonce[4] = (unsigned char) i;
        crypto_aead_chacha20poly1305_ietf_encrypt( sealed, &sealed_bytes, plain, (unsigned long long) bytes, ad,
                                                   sizeof( ad ), NULL, nonce, key );
    }
    return nanoseconds() - start;
}

static double sodium_open( int bytes, int count )
{
    unsigned char nonce[12] = { 0 };
    unsigned char ad[22] = { 0 };
    unsigned long long plain_bytes, sealed_bytes;
    double start;
    int i, good = 0;
    crypto_aead_chacha20poly1305_ietf_encrypt( sealed, &sealed_bytes, plain, (unsigned long long) bytes, ad,
                                               sizeof( ad ), NULL, nonce, key );
    start = nanoseconds();
    for ( i = 0; i < count; i++ )
        good += crypto_aead_chacha20poly1305_ietf_decrypt( plain, &plain_bytes, NULL, sealed, sealed_bytes, ad,
                                                           sizeof( ad ), nonce, key ) == 0;
    if ( good != count )
        stop( "libsodium did not open what it sealed" );
    return nanoseconds() - start;
}

/* A tag that does not fit: libsodium finds out and decrypts nothing. */
static double sodium_refuse( int bytes, int count )
{
    unsigned char nonce[12] = { 0 };
    unsigned char ad[22] = { 0 };
    unsigned long long plain_bytes;
    double start = nanoseconds();
    int i, bad = 0;
    sealed[0] ^= 1;
    for ( i = 0; i < count; i++ ) {
        nonce[4] = (unsigned char) i;
        bad += crypto_aead_chacha20poly1305_ietf_decrypt( plain, &plain_bytes, NULL, sealed,
                                                          (unsigned long long) bytes + 16, ad, sizeof( ad ), nonce,
                                                          key ) != 0;
    }
    if ( bad != count )
        stop( "libsodium opened a forgery" );
    return nanoseconds() - start;
}

static double sodium_token( int count, int authentic )
{
    unsigned char nonce[24] = { 0 };
    unsigned char ad[29] = { 0 };
    unsigned long long plain_bytes, sealed_bytes;
    double start;
    int i, good = 0;
    crypto_aead_xchacha20poly1305_ietf_encrypt( sealed, &sealed_bytes, plain, 1008, ad, sizeof( ad ), NULL, nonce,
                                                key );
    if ( !authentic )
        sealed[5] ^= 1;
    start = nanoseconds();
    for ( i = 0; i < count; i++ )
        good += crypto_aead_xchacha20poly1305_ietf_decrypt( plain, &plain_bytes, NULL, sealed, sealed_bytes, ad,
                                                            sizeof( ad ), nonce, key ) == 0;
    if ( good != ( authentic ? count : 0 ) )
        stop( "libsodium and the token disagree" );
    return nanoseconds() - start;
}

static double sodium_full_payload( void )
{
    return sodium_open( NETCODE_MAX_PACKET_SIZE, BATCH );
}

/* ---- the rows: the library's part, and libsodium's ---- */

static void read_payloads( int expected )
{
    struct netcode_event_t event;
    int payloads = 0;
    while ( netcode_server_next_event( world.server, &event ) )
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            netcode_server_free_packet( world.server, event.data );
            payloads++;
        }
    if ( payloads != expected )
        stop( "payloads were lost" );
}

static double payload_out( int bytes )
{
    double start = nanoseconds(), spent;
    int i;
    for ( i = 0; i < BATCH; i++ )
        netcode_server_send_packet( world.server, 0, plain, bytes );
    spent = nanoseconds() - start;
    update_clients( 0, 1 );
    return spent;
}

static double payload_in( int bytes )
{
    double start;
    int i;
    read_payloads( 0 );
    for ( i = 0; i < BATCH; i++ )
        netcode_client_send_packet( world.clients[0], plain, bytes );
    world.kept = world.to_server;
    start = nanoseconds();
    netcode_server_update( world.server, world.time );
    read_payloads( BATCH );
    return nanoseconds() - start;
}

static double payload_out_full( void )
{
    return payload_out( NETCODE_MAX_PACKET_SIZE );
}

static double payload_out_small( void )
{
    return payload_out( 100 );
}

static double payload_in_full( void )
{
    return payload_in( NETCODE_MAX_PACKET_SIZE );
}

static double payload_in_small( void )
{
    return payload_in( 100 );
}

static double seal_full( void )
{
    return sodium_seal( NETCODE_MAX_PACKET_SIZE, BATCH );
}

static double seal_small( void )
{
    return sodium_seal( 100, BATCH );
}

static double open_small( void )
{
    return sodium_open( 100, BATCH );
}

static double handshake( void )
{
    double spent;
    disconnect_clients( SLOTS - HANDSHAKES, SLOTS );
    read_payloads( 0 );
    spent = connect_clients( SLOTS - HANDSHAKES, SLOTS );
    read_payloads( 0 );
    return spent;
}

/* Open the token, seal the challenge token and its packet, open the response and its challenge token, seal a keep-alive. */
static double sodium_handshake( void )
{
    return sodium_token( HANDSHAKES, 1 ) + sodium_seal( 284, HANDSHAKES ) + sodium_seal( 308, HANDSHAKES ) +
           sodium_open( 308, HANDSHAKES ) + sodium_open( 284, HANDSHAKES ) + sodium_seal( 8, HANDSHAKES );
}

/* Times the refusal of the BATCH datagrams that wait, and makes sure that it was for this reason. */
static double refuse( int reason )
{
    uint64_t before = dropped( reason );
    double spent = timed_server_update();
    if ( dropped( reason ) - before != BATCH ) {
        fprintf( stderr, "bench: %d of %d were dropped as %s\n", (int) ( dropped( reason ) - before ), BATCH,
                 netcode_drop_reason_name( reason ) );
        exit( 1 );
    }
    return spent;
}

/* BATCH datagrams of noise, each different, behind a prefix byte. */
static void forge( const struct netcode_address_t * from, uint8_t prefix, int bytes )
{
    uint8_t data[DATAGRAM_BYTES];
    unsigned char seed[randombytes_SEEDBYTES] = { 0 };
    int i;
    for ( i = 0; i < BATCH; i++ ) {
        world.forged++;
        memcpy( seed, &world.forged, sizeof( world.forged ) );
        randombytes_buf_deterministic( data, sizeof( data ), seed );
        data[0] = prefix;
        queue_add( &world.to_server, from, data, bytes );
    }
}

static double refuse_wrong_size( void )
{
    forge( &world.client_ports[0].address, 0, 500 );
    return refuse( NETCODE_DROP_REQUEST_WRONG_SIZE );
}

static double refuse_unknown_address( void )
{
    struct netcode_address_t stranger;
    netcode_parse_address( "127.0.0.1:999", &stranger );
    forge( &stranger, 0x80 | NETCODE_PACKET_PAYLOAD, 1225 );
    return refuse( NETCODE_DROP_UNKNOWN_ADDRESS );
}

static double refuse_replay( void )
{
    payload_in( NETCODE_MAX_PACKET_SIZE );
    world.to_server = world.kept;
    return refuse( NETCODE_DROP_REPLAYED );
}

/* The right address and a sequence that could be: all that is left to tell is the tag. */
static double refuse_bad_tag( void )
{
    int i;
    for ( i = 0; i < BATCH; i++ )
        netcode_client_send_packet( world.clients[0], plain, NETCODE_MAX_PACKET_SIZE );
    for ( i = 0; i < world.to_server.count; i++ )
        world.to_server.items[i].data[world.to_server.items[i].bytes - 1] ^= 1;
    return refuse( NETCODE_DROP_AUTHENTICATION_FAILED );
}

static double sodium_bad_tag( void )
{
    return sodium_refuse( NETCODE_MAX_PACKET_SIZE, BATCH );
}

/* A request whose public part is in order and whose sealed part is not. Every one names another token, as a flood would. */
static double refuse_forged_request( void )
{
    static uint8_t request[1078];
    struct netcode_address_t stranger;
    struct queue_t * queue = &world.to_server;
    uint64_t word;
    int i;
    netcode_parse_address( "127.0.0.1:999", &stranger );
    forge( &stranger, 0, (int) sizeof( request ) );
    for ( i = 0; i < queue->count; i++ ) {
        uint8_t * data = queue->items[i].data;
        memcpy( data + 1, "NETCODE 1.02", 13 );
        /* Little-endian, as the wire has it; so is every machine that this benchmark is run on. */
        word = PROTOCOL_ID;
        memcpy( data + 14, &word, 8 );
        word = unix_time( NULL ) + 1000;
        memcpy( data + 22, &word, 8 );
    }
    return refuse( NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
}

static double sodium_forged_token( void )
{
    return sodium_token( BATCH, 0 );
}

/* Nothing comes and nothing is due. BATCH updates, so that the clock's grain does not matter. */
static double idle_update( void )
{
    double start;
    int i;
    world.time += 1.0;
    netcode_server_update( world.server, world.time );
    update_clients( 0, SLOTS );
    start = nanoseconds();
    for ( i = 0; i < BATCH; i++ )
        netcode_server_update( world.server, world.time );
    return nanoseconds() - start;
}

static double seal_keep_alives( void )
{
    return sodium_seal( 8, BATCH );
}

struct row_t {
    const char * name;
    const char * against;
    double ( *library )( void );
    double ( *sodium )( void );
    int count; /* of the things that one timing holds */
};

static const struct row_t rows[] = {
    { "payload out, 1200 bytes", "sealing it", payload_out_full, seal_full, BATCH },
    { "payload out, 100 bytes", "sealing it", payload_out_small, seal_small, BATCH },
    { "payload in, 1200 bytes", "opening it", payload_in_full, sodium_full_payload, BATCH },
    { "payload in, 100 bytes", "opening it", payload_in_small, open_small, BATCH },
    { "handshake, server's side", "its six AEAD calls", handshake, sodium_handshake, HANDSHAKES },
    { "refuse: request of a wrong size", "opening 1200 bytes", refuse_wrong_size, sodium_full_payload, BATCH },
    { "refuse: junk from unknown address", "opening 1200 bytes", refuse_unknown_address, sodium_full_payload, BATCH },
    { "refuse: replay", "opening 1200 bytes", refuse_replay, sodium_full_payload, BATCH },
    { "refuse: payload with a bad tag", "refusing its tag", refuse_bad_tag, sodium_bad_tag, BATCH },
    { "refuse: request with forged token", "refusing its tag", refuse_forged_request, sodium_forged_token, BATCH },
    { "idle update, 64 clients", "sealing one keep-alive", idle_update, seal_keep_alives, BATCH },
};

enum { ROWS = sizeof( rows ) / sizeof( rows[0] ) };

static double measured[ROWS][3][MAX_ROUNDS]; /* ratio, library's and libsodium's nanoseconds for one */

static int by_value( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return ( x > y ) - ( x < y );
}

static double percentile( const double * sorted, int count, double part )
{
    return sorted[(int) ( part * ( count - 1 ) + 0.5 )];
}

static void measure( int rounds )
{
    int round, i, k;
    for ( round = -2; round < rounds; round++ ) /* the first two warm up */
        for ( i = 0; i < ROWS; i++ ) {
            double library, sodium;
            world.time += 0.01;
            /* Who goes first changes from round to round. */
            if ( round & 1 ) {
                library = rows[i].library();
                sodium = rows[i].sodium();
            } else {
                sodium = rows[i].sodium();
                library = rows[i].library();
            }
            if ( round < 0 )
                continue;
            measured[i][0][round] = library / sodium;
            measured[i][1][round] = library / rows[i].count;
            measured[i][2][round] = sodium / rows[i].count;
        }
    for ( i = 0; i < ROWS; i++ )
        for ( k = 0; k < 3; k++ )
            qsort( measured[i][k], (size_t) rounds, sizeof( double ), by_value );
}

static void print_table( int rounds )
{
    int i;
    printf( "%-34s %-24s %8s %17s %11s %11s\n", "", "against libsodium's", "ratio", "10..90 %", "ns", "libsodium" );
    for ( i = 0; i < ROWS; i++ )
        printf( "%-34s %-24s %8.3f  %7.3f..%-7.3f %11.0f %11.0f\n", rows[i].name, rows[i].against,
                percentile( measured[i][0], rounds, 0.5 ), percentile( measured[i][0], rounds, 0.1 ),
                percentile( measured[i][0], rounds, 0.9 ), percentile( measured[i][1], rounds, 0.5 ),
                percentile( measured[i][2], rounds, 0.5 ) );
    printf( "%d rounds each\n", rounds );
}

static int write_json( const char * path, int rounds )
{
    FILE * file = fopen( path, "w" );
    int i;
    if ( !file )
        return 0;
    fprintf( file, "{\"netcode\": \"%s\", \"libsodium\": \"%s\", \"rounds\": %d, \"rows\": [\n", netcode_version(),
             sodium_version_string(), rounds );
    for ( i = 0; i < ROWS; i++ )
        fprintf( file,
                 "  {\"name\": \"%s\", \"against\": \"%s\", \"ratio\": %.4f, \"ratio_p10\": %.4f, \"ratio_p90\": %.4f, "
                 "\"nanoseconds\": %.1f, "
                 "\"libsodium_nanoseconds\": %.1f}%s\n",
                 rows[i].name, rows[i].against, percentile( measured[i][0], rounds, 0.5 ),
                 percentile( measured[i][0], rounds, 0.1 ), percentile( measured[i][0], rounds, 0.9 ),
                 percentile( measured[i][1], rounds, 0.5 ), percentile( measured[i][2], rounds, 0.5 ),
                 i + 1 < ROWS ? "," : "" );
    fprintf( file, "]}\n" );
    return fclose( file ) == 0;
}

int main( int count, char ** arguments )
{
    int rounds = count > 1 ? atoi( arguments[1] ) : MIN_ROUNDS;
    if ( rounds < MIN_ROUNDS || rounds > MAX_ROUNDS ) {
        printf( "usage: bench [ROUNDS, %d to %d [FILE]]\n", MIN_ROUNDS, MAX_ROUNDS );
        return 2;
    }
    if ( netcode_init() != NETCODE_OK )
        stop( "netcode_init failed" );
    world_open();
    connect_clients( 0, SLOTS );
    read_payloads( 0 );
    measure( rounds );
    print_table( rounds );
    if ( count > 2 && !write_json( arguments[2], rounds ) )
        stop( "the JSON file can not be written" );
    world_close();
    netcode_term();
    return 0;
}
