/*  A UDP relay that is as bad a network as it is set to be, for loopback alone: so real processes can be tried on
    one without root. Clients talk to --listen; each has a socket of its own behind it, which talks to the server at
    --to. Both directions are treated alike. What happens to the n-th packet of a client in one direction follows from
    the seed, whatever else goes on.

        cc tests/tools/relay.c -o relay
        ./relay --listen 127.0.0.1:40001 --to 127.0.0.1:40000 --loss 3 --delay 50 --seconds 60
        ./relay --help

    A connect token has to name the relay's address for the client and the server's own for the server: they are the
    public and the internal address of netcode_generate_connect_token. It needs POSIX and the C library only. */

#if !defined( _DEFAULT_SOURCE )
#define _DEFAULT_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_CLIENTS = 500, /* select's sets hold 1024 sockets */
    MAX_DATAGRAM = 2048,
    MAX_WAITING = 1 << 18, /* packets on their way: a limit for memory, no part of the network */
    READS_IN_TURN = 64,
    HEADERS_BYTES = 28, /* of IPv4 and UDP: they take their part of the rate */
    QUEUE_BINS = 50000, /* a tenth of a millisecond each */
    LATE_LEAST_MS = 5,  /* what a reordered packet waits in addition: its followers overtake it */
    LATE_MOST_MS = 50,
    DUPLICATE_MOST_MS = 20 /* how far behind its first a second copy comes */
};

enum { TO_SERVER, TO_CLIENT, WAYS };

struct options_t {
    struct sockaddr_in listen, to;
    double loss, duplicate, reorder; /* 0 to 1 */
    double delay, jitter, queue;     /* seconds */
    double rate;                     /* bytes a second, of each direction; 0: any */
    double rebind_every;             /* seconds; 0: never */
    uint64_t seed;
    const char * pcap;
    double seconds;
};

/* A client's packets in one direction. */
struct flow_t {
    uint64_t count;
    double last_due;
};

struct client_t {
    struct sockaddr_in address;
    struct sockaddr_in shown; /* in captures: its own address, and what the server sees once that has changed */
    int socket;
    struct flow_t flows[WAYS];
};

struct packet_t {
    double due;
    uint64_t order; /* of two that are due at once the one that came first goes first */
    int way, client, bytes;
    uint8_t data[];
};

struct way_t {
    double busy_until; /* the bottleneck */
    uint64_t received, passed, lost, queue_full, duplicated, reordered, refused, bytes_received, bytes_passed;
    uint64_t queued; /* packets that the bottleneck took, by how long they waited for it */
    double queued_longest;
    uint32_t queue_bins[QUEUE_BINS];
};

struct relay_t {
    struct options_t options;
    int socket;
    double now, start, next_rebind;
    uint64_t order;
    FILE * pcap;
    struct timeval wall_start;
    int num_clients, rebinds;
    struct client_t clients[MAX_CLIENTS];
    int16_t by_port[65536]; /* the client that last came from this port, and 1; 0: none */
    struct way_t ways[WAYS];
    int num_packets;
    struct packet_t ** packets; /* a heap: the one that is due first is on top */
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

static double time_now( void )
{
    struct timespec now;
    clock_gettime( CLOCK_MONOTONIC, &now );
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* ---- chance ---- */

static uint64_t mix( uint64_t value )
{
    value = ( value ^ value >> 30 ) * 0xBF58476D1CE4E5B9u;
    value = ( value ^ value >> 27 ) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

/* The question-th number, from 0 to below 1, for the count-th packet of a flow. */
static double chance( const struct relay_t * relay, int client, int way, uint64_t count, uint64_t question )
{
    uint64_t value = mix( relay->options.seed + 0x9E3779B97F4A7C15u );
    value = mix( value ^ ( (uint64_t) client * WAYS + (uint64_t) way + 1 ) * 0x9E3779B97F4A7C15u );
    value = mix( value + count * 8 + question );
    return (double) ( value >> 11 ) / 9007199254740992.0;
}

/* ---- packets on their way ---- */

static int is_before( const struct packet_t * a, const struct packet_t * b )
{
    return a->due < b->due || ( a->due <= b->due && a->order < b->order );
}

static void heap_put( struct relay_t * relay, struct packet_t * packet )
{
    int at = relay->num_packets++;
    for ( ; at > 0 && is_before( packet, relay->packets[( at - 1 ) / 2] ); at = ( at - 1 ) / 2 )
        relay->packets[at] = relay->packets[( at - 1 ) / 2];
    relay->packets[at] = packet;
}

static struct packet_t * heap_take( struct relay_t * relay )
{
    struct packet_t *first = relay->packets[0], *last = relay->packets[--relay->num_packets];
    int at = 0;
    for ( int child; ( child = 2 * at + 1 ) < relay->num_packets; at = child ) {
        if ( child + 1 < relay->num_packets && is_before( relay->packets[child + 1], relay->packets[child] ) )
            child++;
        if ( !is_before( relay->packets[child], last ) )
            break;
        relay->packets[at] = relay->packets[child];
    }
    relay->packets[at] = last;
    return first;
}

static void launch( struct relay_t * relay, int client, int way, const uint8_t * data, int bytes, double due )
{
    struct packet_t * packet = NULL;
    if ( relay->num_packets < MAX_WAITING )
        packet = (struct packet_t *) malloc( sizeof( struct packet_t ) + (size_t) bytes );
    if ( !packet ) {
        relay->ways[way].refused++;
        return;
    }
    packet->due = due;
    packet->order = relay->order++;
    packet->way = way;
    packet->client = client;
    packet->bytes = bytes;
    memcpy( packet->data, data, (size_t) bytes );
    heap_put( relay, packet );
}

/* ---- the bad network ---- */

/* The time at which the bottleneck has let the packet through, or -1 where its queue is full. */
static double pass_bottleneck( struct relay_t * relay, struct way_t * way, int bytes )
{
    double waits;
    if ( relay->options.rate <= 0.0 )
        return relay->now;
    if ( way->busy_until < relay->now )
        way->busy_until = relay->now;
    waits = way->busy_until - relay->now;
    if ( waits > relay->options.queue )
        return -1.0;
    int bin = (int) ( waits * 1e4 );
    way->queue_bins[bin < QUEUE_BINS ? bin : QUEUE_BINS - 1]++;
    way->queued++;
    way->queued_longest = waits > way->queued_longest ? waits : way->queued_longest;
    way->busy_until += ( bytes + HEADERS_BYTES ) / relay->options.rate;
    return way->busy_until;
}

/* When it arrives. Jitter alone changes no order; --reorder does. */
static double choose_due( struct relay_t * relay, struct flow_t * flow, int client, int way, uint64_t count,
                          double leaves )
{
    const struct options_t * options = &relay->options;
    double due = leaves + options->delay + options->jitter * chance( relay, client, way, count, 1 );
    if ( chance( relay, client, way, count, 2 ) < options->reorder ) {
        relay->ways[way].reordered++;
        return due +
               1e-3 * ( LATE_LEAST_MS + ( LATE_MOST_MS - LATE_LEAST_MS ) * chance( relay, client, way, count, 3 ) );
    }
    due = due > flow->last_due ? due : flow->last_due;
    flow->last_due = due;
    return due;
}

static void take_packet( struct relay_t * relay, int client, int way, const uint8_t * data, int bytes )
{
    struct flow_t * flow = &relay->clients[client].flows[way];
    struct way_t * it = &relay->ways[way];
    uint64_t count = flow->count++;
    it->received++;
    it->bytes_received += (uint64_t) bytes;
    if ( chance( relay, client, way, count, 0 ) < relay->options.loss ) {
        it->lost++;
        return;
    }
    double leaves = pass_bottleneck( relay, it, bytes );
    if ( leaves < 0.0 ) {
        it->queue_full++;
        return;
    }
    double due = choose_due( relay, flow, client, way, count, leaves );
    launch( relay, client, way, data, bytes, due );
    if ( chance( relay, client, way, count, 4 ) < relay->options.duplicate ) {
        it->duplicated++;
        launch( relay, client, way, data, bytes,
                due + 1e-3 * DUPLICATE_MOST_MS * chance( relay, client, way, count, 5 ) );
    }
}

/* ---- the capture: what was let through, when it was, with the headers that it would have without the relay ---- */

static void put_little( FILE * file, uint32_t value, int bytes )
{
    for ( ; bytes--; value >>= 8 )
        fputc( (int) ( value & 0xff ), file );
}

static void put_big( uint8_t * out, uint32_t value, int bytes )
{
    for ( ; bytes--; value >>= 8 )
        out[bytes] = (uint8_t) value;
}

static int capture_open( struct relay_t * relay )
{
    if ( !relay->options.pcap )
        return 1;
    relay->pcap = fopen( relay->options.pcap, "wb" );
    if ( !relay->pcap ) {
        fprintf( stderr, "relay: %s can not be written: %s\n", relay->options.pcap, strerror( errno ) );
        return 0;
    }
    put_little( relay->pcap, 0xa1b2c3d4u, 4 );
    put_little( relay->pcap, 2, 2 );
    put_little( relay->pcap, 4, 2 );
    put_little( relay->pcap, 0, 8 );
    put_little( relay->pcap, 65535, 4 );
    put_little( relay->pcap, 101, 4 ); /* LINKTYPE_RAW */
    return 1;
}

static void make_headers( uint8_t headers[HEADERS_BYTES], const struct sockaddr_in * from,
                          const struct sockaddr_in * to, int bytes )
{
    uint32_t sum = 0;
    memset( headers, 0, HEADERS_BYTES );
    headers[0] = 0x45;
    put_big( headers + 2, (uint32_t) ( HEADERS_BYTES + bytes ), 2 );
    headers[8] = 64;
    headers[9] = IPPROTO_UDP;
    memcpy( headers + 12, &from->sin_addr, 4 );
    memcpy( headers + 16, &to->sin_addr, 4 );
    for ( int i = 0; i < 20; i += 2 )
        sum += (uint32_t) headers[i] << 8 | headers[i + 1];
    while ( sum >> 16 )
        sum = ( sum & 0xffff ) + ( sum >> 16 );
    put_big( headers + 10, ~sum, 2 );
    memcpy( headers + 20, &from->sin_port, 2 );
    memcpy( headers + 22, &to->sin_port, 2 );
    put_big( headers + 24, (uint32_t) ( 8 + bytes ), 2 ); /* the checksum behind it stays 0: none */
}

static void capture( struct relay_t * relay, const struct packet_t * packet )
{
    uint8_t headers[HEADERS_BYTES];
    const struct sockaddr_in * client = &relay->clients[packet->client].shown;
    const struct sockaddr_in * server = &relay->options.to;
    double passed = relay->now - relay->start + 1e-6 * (double) relay->wall_start.tv_usec;
    uint32_t seconds = (uint32_t) passed;
    if ( !relay->pcap )
        return;
    make_headers( headers, packet->way == TO_SERVER ? client : server, packet->way == TO_SERVER ? server : client,
                  packet->bytes );
    put_little( relay->pcap, (uint32_t) relay->wall_start.tv_sec + seconds, 4 );
    put_little( relay->pcap, (uint32_t) ( ( passed - seconds ) * 1e6 ), 4 );
    put_little( relay->pcap, (uint32_t) ( HEADERS_BYTES + packet->bytes ), 4 );
    put_little( relay->pcap, (uint32_t) ( HEADERS_BYTES + packet->bytes ), 4 );
    fwrite( headers, 1, HEADERS_BYTES, relay->pcap );
    fwrite( packet->data, 1, (size_t) packet->bytes, relay->pcap );
}

/* ---- sockets ---- */

static void deliver( struct relay_t * relay, const struct packet_t * packet )
{
    const struct client_t * client = &relay->clients[packet->client];
    struct way_t * way = &relay->ways[packet->way];
    ssize_t sent;
    if ( packet->way == TO_SERVER )
        sent = send( client->socket, packet->data, (size_t) packet->bytes, 0 );
    else
        sent = sendto( relay->socket, packet->data, (size_t) packet->bytes, 0,
                       (const struct sockaddr *) &client->address, sizeof( client->address ) );
    if ( sent != packet->bytes ) {
        way->refused++; /* no client is there any more */
        return;
    }
    way->passed++;
    way->bytes_passed += (uint64_t) packet->bytes;
    capture( relay, packet );
}

static int open_socket( const struct sockaddr_in * bound, const struct sockaddr_in * connected )
{
    int handle = socket( AF_INET, SOCK_DGRAM, 0 ), size = 4 << 20;
    if ( handle < 0 )
        return -1;
    setsockopt( handle, SOL_SOCKET, SO_RCVBUF, &size, sizeof( size ) );
    setsockopt( handle, SOL_SOCKET, SO_SNDBUF, &size, sizeof( size ) );
    if ( handle < FD_SETSIZE && fcntl( handle, F_SETFL, O_NONBLOCK ) == 0 &&
         ( !bound || bind( handle, (const struct sockaddr *) bound, sizeof( *bound ) ) == 0 ) &&
         ( !connected || connect( handle, (const struct sockaddr *) connected, sizeof( *connected ) ) == 0 ) )
        return handle;
    close( handle );
    return -1;
}

static int is_client( const struct client_t * client, const struct sockaddr_in * from )
{
    return client->address.sin_port == from->sin_port && client->address.sin_addr.s_addr == from->sin_addr.s_addr;
}

/* The client of this address, a new one perhaps; -1 where there is no room. */
static int find_client( struct relay_t * relay, const struct sockaddr_in * from )
{
    int16_t * hint = &relay->by_port[ntohs( from->sin_port )];
    if ( *hint && is_client( &relay->clients[*hint - 1], from ) )
        return *hint - 1;
    for ( int i = 0; i < relay->num_clients; i++ )
        if ( is_client( &relay->clients[i], from ) )
            return i;
    if ( relay->num_clients == MAX_CLIENTS )
        return -1;
    struct client_t * client = &relay->clients[relay->num_clients];
    client->address = client->shown = *from;
    client->socket = open_socket( NULL, &relay->options.to );
    if ( client->socket < 0 )
        return -1;
    *hint = (int16_t) ++relay->num_clients;
    return relay->num_clients - 1;
}

static void read_listener( struct relay_t * relay )
{
    uint8_t data[MAX_DATAGRAM];
    for ( int i = 0; i < READS_IN_TURN * 4; i++ ) {
        struct sockaddr_in from;
        socklen_t length = sizeof( from );
        ssize_t bytes = recvfrom( relay->socket, data, sizeof( data ), 0, (struct sockaddr *) &from, &length );
        if ( bytes < 0 )
            return;
        int client = find_client( relay, &from );
        if ( client < 0 || bytes == MAX_DATAGRAM )
            relay->ways[TO_SERVER].refused++;
        else
            take_packet( relay, client, TO_SERVER, data, (int) bytes );
    }
}

static void read_client( struct relay_t * relay, int client )
{
    uint8_t data[MAX_DATAGRAM];
    for ( int i = 0; i < READS_IN_TURN; i++ ) {
        ssize_t bytes = recv( relay->clients[client].socket, data, sizeof( data ), 0 );
        if ( bytes < 0 )
            return;
        if ( bytes == MAX_DATAGRAM )
            relay->ways[TO_CLIENT].refused++;
        else
            take_packet( relay, client, TO_CLIENT, data, (int) bytes );
    }
}

/*  As a NAT that has forgotten its mappings: the server sees each client at another port, and what is on its way to the old
    one is lost. */
static void rebind_clients( struct relay_t * relay )
{
    for ( int i = 0; i < relay->num_clients; i++ ) {
        struct client_t * client = &relay->clients[i];
        socklen_t length = sizeof( client->shown );
        int fresh = open_socket( NULL, &relay->options.to );
        if ( fresh < 0 )
            continue;
        close( client->socket );
        client->socket = fresh;
        getsockname( fresh, (struct sockaddr *) &client->shown, &length );
        relay->rebinds++;
    }
}

/* Until a packet arrives, one is due, or a tenth of a second has passed. */
static int wait_for_packets( const struct relay_t * relay, fd_set * readable )
{
    double wait = relay->num_packets ? relay->packets[0]->due - time_now() : 0.1;
    int highest = relay->socket;
    struct timeval timeout;
    FD_ZERO( readable );
    FD_SET( relay->socket, readable );
    for ( int i = 0; i < relay->num_clients; i++ ) {
        FD_SET( relay->clients[i].socket, readable );
        highest = relay->clients[i].socket > highest ? relay->clients[i].socket : highest;
    }
    wait = wait < 0.0 ? 0.0 : wait > 0.1 ? 0.1 : wait;
    timeout.tv_sec = 0;
    timeout.tv_usec = (suseconds_t) ( wait * 1e6 );
    return select( highest + 1, readable, NULL, NULL, &timeout ) > 0;
}

static void run( struct relay_t * relay )
{
    relay->next_rebind = relay->start + relay->options.rebind_every;
    while ( !signal_stop && ( relay->options.seconds <= 0.0 || relay->now - relay->start < relay->options.seconds ) ) {
        fd_set readable;
        int some = wait_for_packets( relay, &readable );
        relay->now = time_now();
        if ( some && FD_ISSET( relay->socket, &readable ) )
            read_listener( relay );
        for ( int i = 0; some && i < relay->num_clients; i++ )
            if ( FD_ISSET( relay->clients[i].socket, &readable ) )
                read_client( relay, i );
        relay->now = time_now();
        while ( relay->num_packets && relay->packets[0]->due <= relay->now ) {
            struct packet_t * packet = heap_take( relay );
            deliver( relay, packet );
            free( packet );
        }
        if ( relay->options.rebind_every > 0.0 && relay->now >= relay->next_rebind ) {
            relay->next_rebind = relay->now + relay->options.rebind_every;
            rebind_clients( relay );
        }
    }
}

/* ---- what is printed ---- */

static double queue_percentile( const struct way_t * way, double part )
{
    uint64_t wanted = (uint64_t) ( part * (double) way->queued ), seen = 0;
    if ( way->queued == 0 )
        return 0.0;
    for ( int i = 0; i < QUEUE_BINS; i++ ) {
        seen += way->queue_bins[i];
        if ( seen > wanted )
            return ( i + 1 ) * 0.1;
    }
    return way->queued_longest * 1e3;
}

static void print_counts( const char * name, const struct way_t * way )
{
    printf( "%s received=%llu passed=%llu lost=%llu queue_full=%llu duplicated=%llu reordered=%llu refused=%llu "
            "bytes_received=%llu bytes_passed=%llu queue_ms_p50=%.1f queue_ms_p99=%.1f queue_ms_max=%.1f\n",
            name, (unsigned long long) way->received, (unsigned long long) way->passed, (unsigned long long) way->lost,
            (unsigned long long) way->queue_full, (unsigned long long) way->duplicated,
            (unsigned long long) way->reordered, (unsigned long long) way->refused,
            (unsigned long long) way->bytes_received, (unsigned long long) way->bytes_passed,
            queue_percentile( way, 0.5 ), queue_percentile( way, 0.99 ), way->queued_longest * 1e3 );
}

static void print_help( void )
{
    printf( "usage: relay --listen 127.0.0.1:PORT --to 127.0.0.1:PORT [options]\n"
            "\n"
            "  --listen ADDRESS        where clients send to; port 0: any, which is printed\n"
            "  --to ADDRESS            the server\n"
            "  --loss PERCENT          of the packets, each way, as all that follows\n"
            "  --delay MS              one way\n"
            "  --jitter MS             added to the delay, evenly from 0 to this; changes no order\n"
            "  --duplicate PERCENT     come again, up to %d ms later\n"
            "  --reorder PERCENT       are held up by %d to %d ms, so that others overtake them\n"
            "  --rate BYTES            a second, of one bottleneck for all clients, 28 for a packet's headers "
            "included\n"
            "  --queue MS              what the bottleneck's queue holds; what comes then is dropped (300)\n"
            "  --rebind-every SECONDS  the server sees each client at another port (never)\n"
            "  --seed N                of the decisions (1)\n"
            "  --pcap FILE             a capture of what was let through\n"
            "  --seconds N             ends after them; 0: on SIGTERM or SIGINT (0)\n"
            "\n"
            "Loopback addresses only. At its end it prints a line of counts for each direction.\n",
            DUPLICATE_MOST_MS, LATE_LEAST_MS, LATE_MOST_MS );
}

/* 127.x.y.z:PORT */
static int parse_address( const char * text, struct sockaddr_in * address )
{
    unsigned parts[4], port;
    char rest;
    memset( address, 0, sizeof( *address ) );
    if ( sscanf( text, "%u.%u.%u.%u:%u%c", &parts[0], &parts[1], &parts[2], &parts[3], &port, &rest ) != 5 ||
         parts[0] != 127 || parts[1] > 255 || parts[2] > 255 || parts[3] > 255 || port > 65535 )
        return 0;
    address->sin_family = AF_INET;
    address->sin_port = htons( (uint16_t) port );
    address->sin_addr.s_addr = htonl( parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3] );
    return 1;
}

static int parse_number( const char * text, double highest, double * value )
{
    char * end = NULL;
    *value = strtod( text, &end );
    return end != text && *end == '\0' && *value >= 0.0 && *value <= highest;
}

/* 0 where it is no option, or its value is wrong. */
static int parse_option( struct options_t * options, const char * name, const char * text )
{
    struct {
        const char * name;
        double * value;
        double highest, unit;
    } numbers[] = { { "--loss", &options->loss, 100.0, 0.01 },
                    { "--duplicate", &options->duplicate, 100.0, 0.01 },
                    { "--reorder", &options->reorder, 100.0, 0.01 },
                    { "--delay", &options->delay, 1e4, 1e-3 },
                    { "--jitter", &options->jitter, 1e4, 1e-3 },
                    { "--queue", &options->queue, 1e4, 1e-3 },
                    { "--rate", &options->rate, 1e10, 1.0 },
                    { "--rebind-every", &options->rebind_every, 1e6, 1.0 },
                    { "--seconds", &options->seconds, 1e6, 1.0 } };
    char * end = NULL;
    if ( !strcmp( name, "--listen" ) )
        return parse_address( text, &options->listen );
    if ( !strcmp( name, "--to" ) )
        return parse_address( text, &options->to ) && options->to.sin_port != 0;
    if ( !strcmp( name, "--pcap" ) )
        return ( options->pcap = text ) != NULL;
    if ( !strcmp( name, "--seed" ) ) {
        options->seed = strtoull( text, &end, 0 );
        return end != text && *end == '\0';
    }
    for ( size_t i = 0; i < sizeof( numbers ) / sizeof( numbers[0] ); i++ )
        if ( !strcmp( name, numbers[i].name ) ) {
            int good = parse_number( text, numbers[i].highest, numbers[i].value );
            *numbers[i].value *= numbers[i].unit;
            return good;
        }
    return 0;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    options->queue = 0.3;
    options->seed = 1;
    for ( int i = 1; i < argc; i += 2 )
        if ( i + 1 >= argc || !parse_option( options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "relay: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    if ( options->listen.sin_family && options->to.sin_family )
        return 1;
    fprintf( stderr, "relay: --listen and --to are needed; see --help\n" );
    return 0;
}

static int open_relay( struct relay_t * relay )
{
    struct sockaddr_in bound;
    socklen_t length = sizeof( bound );
    relay->packets = (struct packet_t **) malloc( MAX_WAITING * sizeof( struct packet_t * ) );
    relay->socket = open_socket( &relay->options.listen, NULL );
    if ( !relay->packets || relay->socket < 0 ||
         getsockname( relay->socket, (struct sockaddr *) &bound, &length ) != 0 ) {
        fprintf( stderr, "relay: it can not listen: %s\n", strerror( errno ) );
        return 0;
    }
    uint32_t host = ntohl( bound.sin_addr.s_addr );
    printf( "listening on %u.%u.%u.%u:%u\n", host >> 24, host >> 16 & 255, host >> 8 & 255, host & 255,
            (unsigned) ntohs( bound.sin_port ) );
    fflush( stdout );
    return capture_open( relay );
}

static void close_relay( struct relay_t * relay )
{
    while ( relay->num_packets )
        free( relay->packets[--relay->num_packets] );
    free( relay->packets );
    for ( int i = 0; i < relay->num_clients; i++ )
        close( relay->clients[i].socket );
    if ( relay->socket >= 0 )
        close( relay->socket );
    if ( relay->pcap && fclose( relay->pcap ) != 0 )
        fprintf( stderr, "relay: the capture is not complete: %s\n", strerror( errno ) );
}

int main( int argc, char ** argv )
{
    static struct relay_t relay;
    int good;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    if ( !parse_options( argc, argv, &relay.options ) )
        return 2;
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    signal( SIGPIPE, SIG_IGN );
    gettimeofday( &relay.wall_start, NULL );
    relay.now = relay.start = time_now();
    good = open_relay( &relay );
    if ( good ) {
        run( &relay );
        print_counts( "to_server", &relay.ways[TO_SERVER] );
        print_counts( "to_client", &relay.ways[TO_CLIENT] );
        if ( relay.options.rebind_every > 0.0 )
            printf( "rebinds %d\n", relay.rebinds );
    }
    close_relay( &relay );
    return good ? 0 : 1;
}
