/*  The NAT and the bad network of make roam. Clients talk to --listen; each has a port of its own on the outside, from which the NAT talks to
    the server at --to. The network with its delay and loss is behind the NAT: a packet on its way to the server still carries the port that
    its client had, and one on its way to a client is lost if the port is closed when it arrives.

        nat --listen ADDRESS:PORT --to ADDRESS:PORT [--outside ADDRESS] OPTIONS

        --loss N --delay N --jitter N    percent; milliseconds one way; and up to so many more, evenly distributed, which changes no order
        --rebind-every N                 each client's port is closed and it gets another one, so many seconds apart (75 to 125 % of that)
        --rebinds N --rebind-first N     how often; and how many seconds after its first packet it begins
        --low N --high N                 the ports of the outside; any, if there are none
        --record FILE                    "rebind PORT SECONDS" for each, PORT the client's own; "restart SECONDS SECONDS"
        --seed N --seconds N

    SIGUSR1 restarts the NAT: for 100 ms nothing passes, all ports are closed, and clients that send afterwards get
    ports anew. At its end it prints a line for each client and direction: packets, those lost, the mean of their delays
    and their jitter, both in seconds. */

#if !defined( _DEFAULT_SOURCE )
#define _DEFAULT_SOURCE 1
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CLIENTS = 2048, MAX_MAPPINGS = 8192, MAX_DATAGRAM = 2048, READS_IN_TURN = 64, EVENTS = 64 };
enum { TO_SERVER, TO_CLIENT, WAYS };
#define RESTART_SECONDS 0.1

/* A port of the outside. It is closed a while after its end: what has left through it is still on its way to the server. */
struct mapping_t {
    int socket, client, is_open;
    double close_time;
};

struct way_t {
    uint64_t packets, lost, stale;
    double delays, jitter, last_delay, last_due;
};

struct client_t {
    struct sockaddr_in address;
    int mapping; /* -1: none */
    int rebinds;
    double rebind_time;
    struct way_t ways[WAYS];
};

struct packet_t {
    double due;
    uint64_t order;
    int way, mapping, bytes;
    uint8_t data[];
};

static struct sockaddr_in listen_at, server_at, outside;
static double loss, delay, jitter, rebind_every, rebind_first = 3.0, seconds = 300.0, rebinds = 1e9, low, high;
static uint64_t chance_state = 1, order;
static int listener, epoll, num_clients, num_mappings, num_packets, max_packets;
static struct client_t clients[MAX_CLIENTS];
static struct mapping_t mappings[MAX_MAPPINGS];
static int oldest_mapping; /* of those whose socket may be there */
static struct packet_t ** packets;
static FILE * record;
static double now, off_until;
static volatile sig_atomic_t signal_stop, signal_restart;

static void on_signal( int number )
{
    if ( number == SIGUSR1 )
        signal_restart = 1;
    else
        signal_stop = 1;
}

static double time_now( void )
{
    struct timespec it;
    clock_gettime( CLOCK_MONOTONIC, &it );
    return (double) it.tv_sec + (double) it.tv_nsec * 1e-9;
}

static void fail( const char * what )
{
    fprintf( stderr, "nat: %s: %s\n", what, strerror( errno ) );
    exit( 1 );
}

/* From 0 to below 1. */
static double chance( void )
{
    uint64_t value = chance_state += 0x9E3779B97F4A7C15u;
    value = ( value ^ value >> 30 ) * 0xBF58476D1CE4E5B9u;
    value = ( value ^ value >> 27 ) * 0x94D049BB133111EBu;
    return (double) ( ( value ^ value >> 31 ) >> 11 ) / 9007199254740992.0;
}

/* ---- packets on their way: a heap ---- */

static int is_before( const struct packet_t * a, const struct packet_t * b )
{
    return a->due < b->due || ( a->due <= b->due && a->order < b->order );
}

static void heap_put( struct packet_t * packet )
{
    if ( num_packets == max_packets ) {
        max_packets = max_packets ? 2 * max_packets : 4096;
        packets = (struct packet_t **) realloc( packets, (size_t) max_packets * sizeof( struct packet_t * ) );
        if ( !packets )
            fail( "memory" );
    }
    int at = num_packets++;
    for ( ; at > 0 && is_before( packet, packets[( at - 1 ) / 2] ); at = ( at - 1 ) / 2 )
        packets[at] = packets[( at - 1 ) / 2];
    packets[at] = packet;
}

static struct packet_t * heap_take( void )
{
    struct packet_t *first = packets[0], *last = packets[--num_packets];
    int at = 0;
    for ( int child; ( child = 2 * at + 1 ) < num_packets; at = child ) {
        if ( child + 1 < num_packets && is_before( packets[child + 1], packets[child] ) )
            child++;
        if ( !is_before( packets[child], last ) )
            break;
        packets[at] = packets[child];
    }
    packets[at] = last;
    return first;
}

/* ---- ports ---- */

static int open_socket( const struct sockaddr_in * address )
{
    int bytes = 4 << 20, it = socket( AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0 );
    if ( it < 0 )
        fail( "socket" );
    setsockopt( it, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof( bytes ) );
    setsockopt( it, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof( bytes ) );
    if ( bind( it, (const struct sockaddr *) address, sizeof( *address ) ) == 0 )
        return it;
    close( it );
    return -1;
}

/* `number`: the listener has MAX_MAPPINGS. */
static void watch( int it, int number )
{
    struct epoll_event event;
    memset( &event, 0, sizeof( event ) );
    event.events = EPOLLIN;
    event.data.u32 = (uint32_t) number;
    if ( epoll_ctl( epoll, EPOLL_CTL_ADD, it, &event ) != 0 )
        fail( "epoll" );
}

static int open_mapping( int client )
{
    struct sockaddr_in address = outside;
    int it = -1;
    if ( num_mappings == MAX_MAPPINGS )
        fail( "too many ports" );
    for ( int tries = 0; it < 0 && tries < 100000; tries++ ) {
        if ( high > 0.0 )
            address.sin_port = htons( (uint16_t) ( low + chance() * ( high - low + 1.0 ) ) );
        it = open_socket( &address );
    }
    if ( it < 0 || connect( it, (const struct sockaddr *) &server_at, sizeof( server_at ) ) != 0 )
        fail( "no port" );
    struct mapping_t * mapping = &mappings[num_mappings];
    mapping->socket = it;
    mapping->client = client;
    mapping->is_open = 1;
    watch( it, num_mappings );
    return num_mappings++;
}

static void end_mapping( int client )
{
    if ( clients[client].mapping < 0 )
        return;
    struct mapping_t * mapping = &mappings[clients[client].mapping];
    mapping->is_open = 0;
    mapping->close_time = now + delay + jitter + 0.01;
    clients[client].mapping = -1;
}

static void close_mappings( void )
{
    int is_first = 1;
    for ( int i = oldest_mapping; i < num_mappings; i++ ) {
        struct mapping_t * mapping = &mappings[i];
        if ( mapping->socket && !mapping->is_open && mapping->close_time < now ) {
            close( mapping->socket );
            mapping->socket = 0;
        }
        is_first = is_first && !mapping->socket;
        oldest_mapping += is_first;
    }
}

static int find_client( const struct sockaddr_in * address )
{
    for ( int i = 0; i < num_clients; i++ )
        if ( clients[i].address.sin_port == address->sin_port &&
             clients[i].address.sin_addr.s_addr == address->sin_addr.s_addr )
            return i;
    if ( num_clients == MAX_CLIENTS )
        fail( "too many clients" );
    clients[num_clients].address = *address;
    clients[num_clients].mapping = -1;
    clients[num_clients].rebind_time = rebind_every > 0.0 ? now + rebind_first + rebind_every * chance() : 1e300;
    return num_clients++;
}

static void rebind_those_due( void )
{
    for ( int i = 0; i < num_clients; i++ ) {
        struct client_t * client = &clients[i];
        if ( client->rebind_time > now || client->rebinds >= (int) rebinds )
            continue;
        end_mapping( i );
        client->mapping = open_mapping( i );
        client->rebinds++;
        client->rebind_time = now + rebind_every * ( 0.75 + 0.5 * chance() );
        if ( record )
            fprintf( record, "rebind %d %.6f\n", ntohs( client->address.sin_port ), now );
    }
}

static void restart( void )
{
    signal_restart = 0;
    off_until = now + RESTART_SECONDS;
    for ( int i = 0; i < num_clients; i++ ) {
        end_mapping( i );
        if ( num_mappings && mappings[num_mappings - 1].close_time > off_until )
            fail( "the delay is longer than a restart" );
    }
    if ( record )
        fprintf( record, "restart %.6f %.6f\n", now, off_until );
}

/* ---- the network ---- */

static void take_packet( int way, int mapping, const uint8_t * data, int bytes )
{
    struct way_t * it = &clients[mappings[mapping].client].ways[way];
    struct packet_t * packet;
    it->packets++;
    if ( chance() < loss ) {
        it->lost++;
        return;
    }
    packet = (struct packet_t *) malloc( sizeof( struct packet_t ) + (size_t) bytes );
    if ( !packet )
        fail( "memory" );
    double due = now + delay + jitter * chance();
    packet->due = it->last_due = due > it->last_due ? due : it->last_due;
    packet->order = order++;
    packet->way = way;
    packet->mapping = mapping;
    packet->bytes = bytes;
    memcpy( packet->data, data, (size_t) bytes );
    due = packet->due - now;
    it->jitter += it->last_delay > 0.0 ? ( fabs( due - it->last_delay ) - it->jitter ) / 16.0 : 0.0;
    it->last_delay = due;
    it->delays += due;
    heap_put( packet );
}

static void deliver_those_due( void )
{
    while ( num_packets && packets[0]->due <= now ) {
        struct packet_t * packet = heap_take();
        const struct mapping_t * mapping = &mappings[packet->mapping];
        struct client_t * client = &clients[mapping->client];
        ssize_t sent = 0;
        if ( packet->way == TO_SERVER )
            sent = mapping->socket ? send( mapping->socket, packet->data, (size_t) packet->bytes, 0 ) : 0;
        else if ( mapping->is_open )
            sent = sendto( listener, packet->data, (size_t) packet->bytes, 0,
                           (const struct sockaddr *) &client->address, sizeof( client->address ) );
        client->ways[packet->way].stale += sent != packet->bytes;
        free( packet );
    }
}

static void read_listener( void )
{
    uint8_t data[MAX_DATAGRAM];
    for ( int i = 0; i < READS_IN_TURN; i++ ) {
        struct sockaddr_in from;
        socklen_t length = sizeof( from );
        ssize_t bytes = recvfrom( listener, data, sizeof( data ), 0, (struct sockaddr *) &from, &length );
        if ( bytes <= 0 && ( errno == EAGAIN || errno == EWOULDBLOCK ) )
            return;
        if ( bytes <= 0 || now < off_until )
            continue;
        int number = find_client( &from );
        if ( clients[number].mapping < 0 )
            clients[number].mapping = open_mapping( number );
        take_packet( TO_SERVER, clients[number].mapping, data, (int) bytes );
    }
}

static void read_mapping( int number )
{
    uint8_t data[MAX_DATAGRAM];
    const struct mapping_t * mapping = &mappings[number];
    for ( int i = 0; mapping->socket && i < READS_IN_TURN; i++ ) {
        ssize_t bytes = recv( mapping->socket, data, sizeof( data ), 0 );
        if ( bytes < 0 )
            return;
        if ( bytes > 0 )
            take_packet( TO_CLIENT, number, data, (int) bytes );
    }
}

static void run( void )
{
    double end = time_now() + seconds;
    int count = 1;
    while ( ( !signal_stop || count > 0 ) && ( now = time_now() ) < end ) { /* what has arrived is counted */
        struct epoll_event events[EVENTS];
        double wait = num_packets && packets[0]->due < now + 0.001 ? packets[0]->due - now : 0.001;
        struct timespec until = { 0, wait > 0.0 ? (long) ( wait * 1e9 ) : 0 };
        fd_set ready;
        FD_ZERO( &ready );
        FD_SET( epoll, &ready );
        pselect( epoll + 1, &ready, NULL, NULL, &until, NULL ); /* it counts in less than a millisecond */
        count = epoll_wait( epoll, events, EVENTS, 0 );
        now = time_now();
        if ( signal_restart )
            restart();
        for ( int i = 0; i < count; i++ )
            if ( events[i].data.u32 == MAX_MAPPINGS )
                read_listener();
            else
                read_mapping( (int) events[i].data.u32 );
        rebind_those_due();
        deliver_those_due();
        close_mappings();
    }
}

static void print_counts( void )
{
    const char * names[WAYS] = { "to_server", "to_client" };
    for ( int i = 0; i < num_clients; i++ )
        for ( int way = 0; way < WAYS; way++ ) {
            const struct way_t * it = &clients[i].ways[way];
            uint64_t passed = it->packets - it->lost;
            printf( "%s port=%d packets=%" PRIu64 " lost=%" PRIu64 " stale=%" PRIu64
                    " delay=%.6f jitter=%.6f rebinds=%d\n",
                    names[way], ntohs( clients[i].address.sin_port ), it->packets, it->lost, it->stale,
                    passed ? it->delays / (double) passed : 0.0, it->jitter, clients[i].rebinds );
        }
}

/* ---- options ---- */

static int parse_address( const char * text, struct sockaddr_in * address )
{
    char host[64];
    const char * colon = strchr( text, ':' );
    size_t length = colon ? (size_t) ( colon - text ) : strlen( text );
    if ( length >= sizeof( host ) )
        return 0;
    memcpy( host, text, length );
    host[length] = '\0';
    memset( address, 0, sizeof( *address ) );
    address->sin_family = AF_INET;
    address->sin_port = htons( (uint16_t) ( colon ? atoi( colon + 1 ) : 0 ) );
    return inet_pton( AF_INET, host, &address->sin_addr ) == 1;
}

static int parse_option( const char * name, const char * text )
{
    double seed = 0.0;
    struct {
        const char * name;
        double *value, unit;
    } numbers[] = { { "--loss", &loss, 0.01 },
                    { "--delay", &delay, 1e-3 },
                    { "--jitter", &jitter, 1e-3 },
                    { "--rebind-every", &rebind_every, 1.0 },
                    { "--rebind-first", &rebind_first, 1.0 },
                    { "--rebinds", &rebinds, 1.0 },
                    { "--low", &low, 1.0 },
                    { "--high", &high, 1.0 },
                    { "--seconds", &seconds, 1.0 },
                    { "--seed", &seed, 1.0 } };
    if ( !strcmp( name, "--listen" ) )
        return parse_address( text, &listen_at );
    if ( !strcmp( name, "--to" ) )
        return parse_address( text, &server_at );
    if ( !strcmp( name, "--outside" ) )
        return parse_address( text, &outside );
    if ( !strcmp( name, "--record" ) )
        return ( record = fopen( text, "w" ) ) != NULL;
    for ( size_t i = 0; i < sizeof( numbers ) / sizeof( numbers[0] ); i++ )
        if ( !strcmp( name, numbers[i].name ) ) {
            char * end = NULL;
            *numbers[i].value = strtod( text, &end ) * numbers[i].unit;
            chance_state += (uint64_t) seed * 0x9E3779B97F4A7C15u;
            return end != text && *end == '\0' && *numbers[i].value >= 0.0;
        }
    return 0;
}

int main( int argc, char ** argv )
{
    struct sockaddr_in bound;
    socklen_t length = sizeof( bound );
    outside.sin_family = AF_INET;
    for ( int i = 1; i < argc; i += 2 )
        if ( i + 1 >= argc || !parse_option( argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "nat: %s is no option, or its value is missing or wrong\n", argv[i] );
            return 2;
        }
    prctl( PR_SET_PDEATHSIG, SIGKILL ); /* it does not outlive the script */
    signal( SIGTERM, on_signal );
    signal( SIGINT, on_signal );
    signal( SIGUSR1, on_signal );
    now = time_now();
    epoll = epoll_create1( 0 );
    listener = open_socket( &listen_at );
    if ( epoll < 0 || listener < 0 || getsockname( listener, (struct sockaddr *) &bound, &length ) != 0 )
        fail( "it can not listen" );
    watch( listener, MAX_MAPPINGS );
    printf( "port %d\n", ntohs( bound.sin_port ) );
    fflush( stdout );
    run();
    print_counts();
    return record && fclose( record ) != 0;
}
