/*  What does a refused datagram cost in instructions? Unlike nanoseconds they repeat exactly.
    tests/tools/instructions.sh builds this with the library in a unit of its own, runs it under callgrind, which counts
    what netcode_server_process_packet and netcode_server_update execute, less `network_receive`, and divides by
    DATAGRAMS.

        instructions

    Without callgrind it only sees to it that every datagram is refused for the reason that its line names. */

#include "netcode.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined( __has_include )
#if __has_include( <valgrind/callgrind.h> )
#include <valgrind/callgrind.h>
#endif
#endif

#if !defined( CALLGRIND_ZERO_STATS )
#define CALLGRIND_ZERO_STATS ( (void) 0 )
#define CALLGRIND_DUMP_STATS_AT( name ) ( (void) ( name ) )
#endif

enum {
    CLIENTS = 256,    /* connected, so that the tables are filled as they usually are */
    DATAGRAMS = 4096, /* refused in one count */
    QUEUE = 256,      /* what an update receives */
    LARGEST_BYTES = 1280,
    REQUEST_BYTES = 1078,
    SMALL_BYTES = 87, /* a payload of 64 bytes, sealed */
    CONNECT_STEPS = 8
};

static const uint64_t protocol_id = 0x494e535452u;
static const uint8_t private_key[NETCODE_KEY_BYTES] = { 1 };
static const char * const server_text = "127.0.0.1:1000";

static void stop( const char * why )
{
    fprintf( stderr, "instructions: %s\n", why );
    exit( 1 );
}

/* ---- chance: the same in every run, so that tables fill alike and counts repeat ---- */

static uint32_t noise_word( void )
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ( state >> 32 );
}

static const char * noise_name( void )
{
    return "noise";
}

static void noise_buffer( void * const buffer, const size_t bytes )
{
    size_t i;
    for ( i = 0; i < bytes; i++ )
        ( (uint8_t *) buffer )[i] = (uint8_t) noise_word();
}

static struct randombytes_implementation noise = { noise_name, noise_word, NULL, NULL, noise_buffer, NULL };

/* ---- a network in memory ---- */

struct mail_t {
    struct netcode_address_t address;
    int bytes;
    uint8_t data[LARGEST_BYTES];
};

struct box_t {
    int count;
    int next;
    struct mail_t mails[QUEUE];
};

static struct box_t to_server;
static struct box_t * to_client; /* CLIENTS of them */
static struct netcode_address_t server_address;
static struct netcode_address_t client_addresses[CLIENTS];

static void box_add( struct box_t * box, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    struct mail_t * mail = &box->mails[box->count];
    if ( box->count == QUEUE || bytes > LARGEST_BYTES )
        stop( "a box is full" );
    mail->address = *from;
    mail->bytes = bytes;
    memcpy( mail->data, data, (size_t) bytes );
    box->count++;
}

/* The name is what callgrind leaves out. */
int network_receive( void * context, struct netcode_datagram_t * datagrams, int count );

int network_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct box_t * box = (struct box_t *) context;
    int i;
    for ( i = 0; i < count && box->next < box->count; i++ ) {
        const struct mail_t * mail = &box->mails[box->next++];
        datagrams[i].address = mail->address;
        datagrams[i].bytes = mail->bytes;
        datagrams[i].status = NETCODE_DATAGRAM_OK;
        memcpy( datagrams[i].data, mail->data, (size_t) mail->bytes );
    }
    if ( i == 0 )
        box->count = box->next = 0;
    return i;
}

static int server_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count; i++ )
        box_add( &to_client[datagrams[i].address.port - 2000], &server_address, datagrams[i].data, datagrams[i].bytes );
    return count;
}

static int client_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    for ( i = 0; i < count; i++ )
        box_add( &to_server, &client_addresses[(struct box_t *) context - to_client], datagrams[i].data,
                 datagrams[i].bytes );
    return count;
}

static struct netcode_socket_t socket_of( struct box_t * box, int is_server )
{
    struct netcode_socket_t socket;
    memset( &socket, 0, sizeof( socket ) );
    socket.context = box;
    socket.receive = network_receive;
    socket.send = is_server ? server_send : client_send;
    return socket;
}

/* ---- a server with clients ---- */

static struct netcode_server_t * server;
static struct netcode_client_t * clients[CLIENTS];
static double now = 1.0;

static void open_server( int roaming )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket = socket_of( &to_server, 1 );
    netcode_default_server_config( &config );
    config.protocol_id = protocol_id;
    memcpy( config.private_key, private_key, sizeof( private_key ) );
    config.socket = &socket;
    config.roaming = roaming;
    to_server.count = to_server.next = 0;
    netcode_parse_address( server_text, &server_address );
    server = netcode_server_create( server_text, &config, now );
    if ( !server )
        stop( netcode_server_create_error_text( netcode_server_create_error() ) );
    netcode_server_start( server, CLIENTS );
}

static void open_client( int index )
{
    struct netcode_client_config_t config;
    struct netcode_socket_t socket = socket_of( &to_client[index], 0 );
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * address = server_text;
    char text[32];
    snprintf( text, sizeof( text ), "127.0.0.1:%d", 2000 + index );
    netcode_parse_address( text, &client_addresses[index] );
    netcode_default_client_config( &config );
    config.packet_pool_buffers = 1;
    config.socket = &socket;
    clients[index] = netcode_client_create( text, &config, now );
    if ( !clients[index] || netcode_generate_connect_token( 1, &address, &address, 3600, 3600, (uint64_t) index,
                                                            protocol_id, private_key, NULL, token ) != NETCODE_OK )
        stop( "no client, or no token" );
    netcode_client_connect( clients[index], token );
}

static void connect_clients( void )
{
    int step, i;
    to_client = (struct box_t *) calloc( CLIENTS, sizeof( struct box_t ) );
    if ( !to_client )
        stop( "no memory" );
    for ( i = 0; i < CLIENTS; i++ )
        open_client( i );
    for ( step = 0; step < CONNECT_STEPS; step++ ) {
        now += 0.02;
        for ( i = 0; i < CLIENTS; i++ )
            netcode_client_update( clients[i], now );
        netcode_server_update( server, now );
    }
    if ( netcode_server_num_connected_clients( server ) != CLIENTS )
        stop( "a client did not connect" );
}

static void close_all( void )
{
    int i;
    for ( i = 0; i < CLIENTS; i++ ) {
        to_server.count = to_server.next = 0;
        netcode_client_destroy( clients[i] );
        to_client[i].count = to_client[i].next = 0;
    }
    netcode_server_destroy( server );
    free( to_client );
}

/* ---- what is refused ---- */

struct kind_t {
    const char * name;
    int reason;
    int bytes;
    uint8_t prefix;
    const char * version; /* of a request whose size is right */
};

/* clang-format off */
static const struct kind_t kinds[] = {
    { "wrong size",                         NETCODE_DROP_REQUEST_WRONG_SIZE,    SMALL_BYTES,   0x00, NULL },
    { "wrong version",                      NETCODE_DROP_REQUEST_WRONG_VERSION, REQUEST_BYTES, 0x00, "NETCODE 1.03" },
    { "wrong prefix: no such type",         NETCODE_DROP_UNKNOWN_PACKET_TYPE,   SMALL_BYTES,   0x6f, NULL },
    { "wrong prefix: no sequence length",   NETCODE_DROP_BAD_SEQUENCE_LENGTH,   SMALL_BYTES,   0x05, NULL },
    { "junk from an unknown address",       NETCODE_DROP_UNKNOWN_ADDRESS,       SMALL_BYTES,   0x65, NULL },
};
/* clang-format on */

/* Fills the server's box with noise from unknown addresses. */
static void fill( const struct kind_t * kind )
{
    struct netcode_address_t from;
    uint8_t data[LARGEST_BYTES];
    int k;
    memset( &from, 0, sizeof( from ) );
    from.type = NETCODE_ADDRESS_IPV4;
    to_server.count = to_server.next = 0;
    while ( to_server.count < QUEUE ) {
        noise_buffer( data, sizeof( data ) );
        data[0] = kind->prefix;
        if ( kind->version )
            memcpy( data + 1, kind->version, strlen( kind->version ) + 1 );
        from.data.ipv4[0] = 11;
        for ( k = 1; k < 4; k++ )
            from.data.ipv4[k] = (uint8_t) noise_word();
        from.port = (uint16_t) ( 1 + noise_word() % 65535 );
        box_add( &to_server, &from, data, kind->bytes );
    }
}

static uint64_t dropped( int reason )
{
    struct netcode_server_stats_t stats;
    netcode_server_stats( server, &stats );
    return stats.dropped[reason];
}

static void refuse_by_update( const struct kind_t * kind )
{
    int i;
    for ( i = 0; i < DATAGRAMS; i += QUEUE ) {
        fill( kind );
        netcode_server_update( server, now );
    }
}

static void refuse_by_hand( const struct kind_t * kind )
{
    int i;
    for ( i = 0; i < DATAGRAMS; i += QUEUE ) {
        fill( kind );
        while ( to_server.next < to_server.count ) {
            struct mail_t * mail = &to_server.mails[to_server.next++];
            netcode_server_process_packet( server, &mail->address, mail->data, mail->bytes );
        }
    }
}

static void count( const struct kind_t * kind, int roaming, void ( *refuse )( const struct kind_t * kind ),
                   const char * way )
{
    char name[96];
    uint64_t before = dropped( kind->reason );
    CALLGRIND_ZERO_STATS;
    refuse( kind );
    snprintf( name, sizeof( name ), "%d %s%s, %s", (int) DATAGRAMS, kind->name, roaming ? "; roaming" : "", way );
    CALLGRIND_DUMP_STATS_AT( name );
    if ( dropped( kind->reason ) - before != DATAGRAMS )
        stop( "refused for another reason than meant" );
}

int main( void )
{
    size_t i;
    int roaming;
    randombytes_set_implementation( &noise );
    if ( netcode_init() != NETCODE_OK )
        stop( "netcode_init failed" );
    for ( roaming = 0; roaming < 2; roaming++ ) {
        open_server( roaming );
        connect_clients();
        for ( i = 0; i < sizeof( kinds ) / sizeof( kinds[0] ); i++ ) {
            count( &kinds[i], roaming, refuse_by_update, "from the socket" );
            count( &kinds[i], roaming, refuse_by_hand, "by process_packet" );
        }
        close_all();
    }
    netcode_term();
    return 0;
}
