/*  make soak: 64 real clients and one server over loopback, at a slept tick of 60 Hz. Every tick each client sends to the server and the
    server to each client; both ends verify what they get. Passes when everything that was sent was received, once and unchanged, and
    nothing asked for memory between the server's start and its stop.

        soak [SECONDS]

    Built with the linker's --wrap for malloc, calloc and realloc; where there is none (MALLOC_NO_WRAP), the library's allocator hooks
    alone count. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"

#define CLIENTS 64
#define TICKS_PER_SECOND 60.0
#define CONNECT_SECONDS 10.0
#define DRAIN_SECONDS 2.0
#define PROTOCOL_ID 0x534f414b53u
#define MIN_BYTES 24

/*  What one direction of one connection has seen. Sums of numbers that an attacker could not guess stand for the set of
    payloads. */
struct flow_t {
    uint64_t sent;
    uint64_t received;
    uint64_t sum_sent;
    uint64_t sum_received;
    uint64_t bytes;
    uint64_t wrong; /* payloads with other contents than were sent */
};

struct soak_t {
    struct netcode_server_t * server;
    struct netcode_client_t * clients[CLIENTS];
    struct flow_t up[CLIENTS]; /* by client id */
    struct flow_t down[CLIENTS];
    double late; /* the latest that a tick began */
};

static void * allocate( void * context, size_t bytes )
{
    (void) context;
    allocations++;
    return malloc( bytes );
}

static void release( void * context, void * pointer )
{
    (void) context;
    free( pointer );
}

static uint64_t mix( uint64_t x )
{
    x += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

/* ---- payloads: client, direction and number, then bytes that follow from these ---- */

static int payload_bytes( uint64_t client, uint64_t direction, uint64_t number )
{
    return MIN_BYTES +
           (int) ( mix( client * 2 + direction + ( number << 8 ) ) % ( NETCODE_MAX_PACKET_SIZE - MIN_BYTES + 1 ) );
}

static int payload_make( uint8_t * data, uint64_t client, uint64_t direction, uint64_t number )
{
    uint64_t head[3], word = 0;
    int i, bytes = payload_bytes( client, direction, number );
    head[0] = client;
    head[1] = direction;
    head[2] = number;
    memcpy( data, head, sizeof( head ) );
    for ( i = (int) sizeof( head ); i < bytes; i++ ) {
        if ( i % 8 == 0 )
            word = mix( head[0] ^ ( head[1] << 32 ) ^ ( head[2] << 16 ) ^ (uint64_t) i );
        data[i] = (uint8_t) ( word >> ( 8 * ( i % 8 ) ) );
    }
    return bytes;
}

static void flow_send( struct flow_t * flow, uint64_t number )
{
    flow->sent++;
    flow->sum_sent += mix( number );
}

static void flow_receive( struct flow_t * flow, uint64_t client, uint64_t direction, const uint8_t * data, int bytes )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    uint64_t head[3];
    if ( bytes < MIN_BYTES ) {
        flow->wrong++;
        return;
    }
    memcpy( head, data, sizeof( head ) );
    if ( bytes != payload_make( expected, client, direction, head[2] ) ||
         memcmp( data, expected, (size_t) bytes ) != 0 ) {
        flow->wrong++;
        return;
    }
    flow->received++;
    flow->sum_received += mix( head[2] );
    flow->bytes += (uint64_t) bytes;
}

/* ---- one tick ---- */

static void receive_all( struct soak_t * soak )
{
    struct netcode_event_t event;
    int i;
    while ( netcode_server_next_event( soak->server, &event ) )
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            flow_receive( &soak->up[event.client_id % CLIENTS], event.client_id, 0, event.data, event.bytes );
            netcode_server_free_packet( soak->server, event.data );
        }
    for ( i = 0; i < CLIENTS; i++ ) {
        int bytes;
        uint8_t * packet;
        while ( ( packet = netcode_client_receive_packet( soak->clients[i], &bytes, NULL ) ) != NULL ) {
            flow_receive( &soak->down[i], (uint64_t) i, 1, packet, bytes );
            netcode_client_free_packet( soak->clients[i], packet );
        }
    }
}

static void send_all( struct soak_t * soak, uint64_t number )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    int i;
    for ( i = 0; i < CLIENTS; i++ ) {
        uint64_t id = netcode_server_client_id( soak->server, i );
        netcode_server_send_packet( soak->server, i, data, payload_make( data, id, 1, number ) );
        flow_send( &soak->down[id], number );
        netcode_client_send_packet( soak->clients[i], data, payload_make( data, (uint64_t) i, 0, number ) );
        flow_send( &soak->up[i], number );
    }
}

static void update_all( struct soak_t * soak, double time )
{
    int i;
    netcode_server_update( soak->server, time );
    for ( i = 0; i < CLIENTS; i++ )
        netcode_client_update( soak->clients[i], time );
}

/* Runs at 60 Hz for `seconds`: sends on every tick if `sending`, ends early when everyone is connected if not. */
static void run( struct soak_t * soak, double seconds, int sending, int until_connected )
{
    double start = netcode_time(), next = start, now;
    uint64_t number = 0;
    while ( ( now = netcode_time() ) - start < seconds ) {
        if ( now - next > soak->late )
            soak->late = now - next;
        update_all( soak, now );
        receive_all( soak );
        if ( sending )
            send_all( soak, number++ );
        if ( until_connected && netcode_server_num_connected_clients( soak->server ) == CLIENTS )
            break;
        next += 1.0 / TICKS_PER_SECOND;
        netcode_sleep( next - netcode_time() );
        if ( sending && number % ( 10 * (uint64_t) TICKS_PER_SECOND ) == 0 ) {
            printf( "%5.0f s, %d connected\n", now - start, netcode_server_num_connected_clients( soak->server ) );
            fflush( stdout );
        }
    }
}

/* ---- beginning and end ---- */

static int open_all( struct soak_t * soak, const uint8_t * key )
{
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    int i;
    netcode_default_server_config( &server_config );
    server_config.events = 1;
    server_config.protocol_id = PROTOCOL_ID;
    server_config.allocate_function = allocate;
    server_config.free_function = release;
    memcpy( server_config.private_key, key, NETCODE_KEY_BYTES );
    soak->server = netcode_server_create( "127.0.0.1:0", &server_config, netcode_time() );
    if ( !soak->server ) {
        printf( "no server: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 0;
    }
    netcode_default_client_config( &client_config );
    client_config.allocate_function = allocate;
    client_config.free_function = release;
    for ( i = 0; i < CLIENTS; i++ ) {
        soak->clients[i] = netcode_client_create( "127.0.0.1", &client_config, netcode_time() );
        if ( !soak->clients[i] ) {
            printf( "no client %d: %s\n", i, netcode_client_create_error_text( netcode_client_create_error() ) );
            return 0;
        }
    }
    return 1;
}

static int connect_all( struct soak_t * soak, const uint8_t * key )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char address[64];
    const char * addresses[1];
    int i;
    snprintf( address, sizeof( address ), "127.0.0.1:%d", netcode_server_get_port( soak->server ) );
    addresses[0] = address;
    for ( i = 0; i < CLIENTS; i++ ) {
        if ( netcode_generate_connect_token( 1, addresses, addresses, 60, 5, (uint64_t) i, PROTOCOL_ID, key, NULL,
                                             token ) != NETCODE_OK )
            return 0;
        netcode_client_connect( soak->clients[i], token );
    }
    run( soak, CONNECT_SECONDS, 0, 1 );
    printf( "%d of %d clients connected\n", netcode_server_num_connected_clients( soak->server ), CLIENTS );
    fflush( stdout );
    /* The server knows first: its last keep-alive is still on its way. */
    run( soak, 0.5, 0, 0 );
    return netcode_server_num_connected_clients( soak->server ) == CLIENTS;
}

static int flows_are_whole( const struct flow_t * flows, const char * title )
{
    uint64_t sent = 0, received = 0, bytes = 0, wrong = 0;
    int i, whole = 1;
    for ( i = 0; i < CLIENTS; i++ ) {
        sent += flows[i].sent;
        received += flows[i].received;
        bytes += flows[i].bytes;
        wrong += flows[i].wrong;
        if ( flows[i].sent != flows[i].received || flows[i].sum_sent != flows[i].sum_received || flows[i].wrong ) {
            printf( "client %d, %s: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " wrong\n", i, title,
                    flows[i].sent, flows[i].received, flows[i].wrong );
            whole = 0;
        }
    }
    printf( "%s: %" PRIu64 " sent, %" PRIu64 " received (%.1f MB), %" PRIu64 " wrong\n", title, sent, received,
            (double) bytes / 1e6, wrong );
    return whole && sent > 0;
}

/* A payload that does not arrive was dropped where it was counted. */
static void print_drops( struct soak_t * soak )
{
    struct netcode_server_stats_t stats;
    int reason;
    netcode_server_stats( soak->server, &stats );
    for ( reason = 1; reason < NETCODE_DROP_REASONS; reason++ )
        if ( stats.dropped[reason] )
            printf( "server dropped %" PRIu64 ": %s\n", stats.dropped[reason], netcode_drop_reason_name( reason ) );
    printf( "kernel dropped %" PRIu64 ", send errors %" PRIu64 ", latest tick %.1f ms late\n", stats.kernel_drops,
            stats.send_errors, soak->late * 1000.0 );
}

int main( int count, char ** arguments )
{
    static struct soak_t soak;
    uint8_t key[NETCODE_KEY_BYTES];
    double seconds = count > 1 ? atof( arguments[1] ) : 60.0;
    uint64_t before, during;
    int i, good;
    if ( seconds <= 0.0 || netcode_init() != NETCODE_OK )
        return 2;
    netcode_random_bytes( key, NETCODE_KEY_BYTES );
    if ( !open_all( &soak, key ) )
        return 1;
    netcode_server_start( soak.server, CLIENTS );
    /* The first line printed makes the C library's buffer, so it is printed before the counting starts. */
    printf( "%d clients at %.0f Hz for %.0f s\n", CLIENTS, TICKS_PER_SECOND, seconds );
    fflush( stdout );
    before = allocations;
    good = connect_all( &soak, key );
    if ( good ) {
        run( &soak, seconds, 1, 0 );
        run( &soak, DRAIN_SECONDS, 0, 0 );
    }
    good = good && netcode_server_num_connected_clients( soak.server ) == CLIENTS;
    during = allocations - before;
    print_drops( &soak );
    netcode_server_stop( soak.server );
    for ( i = 0; i < CLIENTS; i++ )
        netcode_client_destroy( soak.clients[i] );
    netcode_server_destroy( soak.server );
    netcode_term();
    good = flows_are_whole( soak.up, "to the server" ) && good;
    good = flows_are_whole( soak.down, "to the clients" ) && good;
    printf( "memory: %" PRIu64 " calls before, %" PRIu64 " between start and stop\n", before, during );
    good = good && before > 0 && during == 0;
    printf( good ? "soak passed\n" : "soak FAILED\n" );
    return good ? 0 : 1;
}
