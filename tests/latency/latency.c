/*  One end of a pair of processes that send each other small ordered messages, 60 a second each, over one of three
    transports, and measure how long each was on its way: from the moment at which the sender hands it over to the moment
    at which the other end gets it, in order, on the machine's one clock. tests/latency/latency.py runs pairs through
    tests/tools/relay at several losses; alone:

        cc -I. tests/latency/latency.c -lsodium -o latency
        ./latency messages listen                                     says its port P; then a relay from Q to P, and
        ./latency messages connect --through 127.0.0.1:Q --server P
        ./latency tcp probe                                           can it be had here? Prints the congestion control
        ./latency guard ./relay --listen ...                          the relay, which ends when its parent does (Linux)

    messages  netcode.h's, with the default configuration, over a connection
    fixed     UDP as most games begin: each message in a packet of its own, again every 200 ms until it is acknowledged;
              acks in every packet, with 64 bits for what came early
    tcp       the kernel's, TCP_NODELAY set and nothing else. Each end has a network namespace of its own with nothing
              but a tun device in it; its IP packets go through the relay as datagrams. Nothing leaves the machine

    Every end looks at its socket whenever something arrives or is due. It prints "done" when it has all messages, serves
    its peer until its standard input ends, and then prints what it measured. Status 4: the transport can not be had here. */

#define _GNU_SOURCE 1
#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#if defined( __linux__ )
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#endif

#define PROTOCOL_ID 0x4c6174656e637901ull
#define TICK_SECONDS ( 1.0 / 60.0 )
#define FIXED_SECONDS 0.2
#define HELLO_SECONDS 0.1
#define LONGEST_WAIT 0.02
#define SHORTEST_WAIT 0.0001

enum { LISTEN, CONNECT, PROBE };
enum { STATUS_CAN_NOT_BE_HAD = 4 };
enum {
    MESSAGE_BYTES = 64, /* number 4, time 8, and bytes that follow from the number and the side */
    MAX_COUNT = 60 * 3600,
    DATAGRAM_BYTES = 2048,
    FIXED_HEADER_BYTES = 13, /* type 1, ack 4: all before that one arrived; 64 bits for those behind it */
    TCP_PORT = 7777,
    TUN_BYTES = 1400, /* its MTU: with the headers of a datagram around it no packet becomes too large */
    STREAM_BYTES = 1 << 20
};
enum { FIXED_HELLO, FIXED_ACKS, FIXED_MESSAGE };

struct end_t;

struct transport_t {
    const char * name;
    int ( *open )( struct end_t * end );    /* 0: no; why was said */
    void ( *step )( struct end_t * end );   /* takes what has come */
    int ( *is_open )( struct end_t * end ); /* the other end is there */
    int ( *send )( struct end_t * end, const uint8_t * data );
    int ( *receive )( struct end_t * end, uint8_t * data );
    void ( *flush )( struct end_t * end ); /* sends what is due */
    double ( *deadline )( struct end_t * end );
    void ( *wait )( struct end_t * end, double seconds );
    uint64_t ( *again )( struct end_t * end ); /* what was sent more than once: messages, or segments */
};

struct fixed_t {
    uint8_t ( *out )[MESSAGE_BYTES];
    uint8_t ( *in )[MESSAGE_BYTES];
    double * sent_time; /* the last time; -1: not yet */
    uint8_t *acked, *arrived;
    uint32_t queued, first; /* the first that is not acknowledged */
    uint32_t missing, read; /* the first that has not arrived; that was not handed over */
    double last_sent;
    int is_heard, owes_ack;
    uint64_t again;
};

struct stream_t {
    int listener, socket, tun;
    uint8_t *out, *in;
    size_t out_bytes, in_bytes;
    char congestion[32];
};

struct end_t {
    const struct transport_t * transport;
    int side;
    uint32_t count, per_tick, warm_up; /* messages; how late the first ones were made is not printed */
    double limit_seconds;
    const char *through, *congestion;
    int server_port;

    double now, next_message, latest;
    int is_sending, is_done;
    uint32_t sent, received, refused;
    uint64_t out_of_order, damaged;
    uint32_t * micros;

    int socket; /* UDP: fixed and tcp */
    struct sockaddr_in peer;
    int has_peer;
    struct netcode_client_t * client;
    struct netcode_server_t * server;
    struct netcode_messages_t * messages;
    struct fixed_t fixed;
    struct stream_t stream;
};

static uint64_t nanoseconds( void )
{
    struct timespec now;
    clock_gettime( CLOCK_MONOTONIC, &now );
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static double time_now( void )
{
    return (double) nanoseconds() * 1e-9;
}

static void * take_memory( size_t bytes )
{
    void * block = calloc( 1, bytes );
    if ( !block ) {
        fprintf( stderr, "latency: no memory\n" );
        exit( 1 );
    }
    return block;
}

static int failed( const char * what )
{
    fprintf( stderr, "latency: %s: %s\n", what, strerror( errno ) );
    return 0;
}

static void put( uint8_t * at, uint64_t value, int bytes )
{
    for ( int i = 0; i < bytes; i++ )
        at[i] = (uint8_t) ( value >> 8 * i );
}

static uint64_t get( const uint8_t * at, int bytes )
{
    uint64_t value = 0;
    for ( int i = bytes; i--; )
        value = value << 8 | at[i];
    return value;
}

/* ---- messages: what is measured ---- */

static uint8_t filler( uint32_t number, int side, int at )
{
    return (uint8_t) ( number * 2654435761u >> 24 ^ (uint32_t) ( at * 7 + side * 101 ) );
}

static void make_message( const struct end_t * end, uint8_t data[MESSAGE_BYTES] )
{
    put( data, end->sent, 4 );
    for ( int i = 12; i < MESSAGE_BYTES; i++ )
        data[i] = filler( end->sent, end->side, i );
    put( data + 4, nanoseconds(), 8 );
}

static void take_message( struct end_t * end, const uint8_t data[MESSAGE_BYTES] )
{
    uint32_t number = (uint32_t) get( data, 4 );
    uint64_t passed = nanoseconds() - get( data + 4, 8 );
    for ( int i = 12; i < MESSAGE_BYTES; i++ )
        if ( data[i] != filler( number, !end->side, i ) ) {
            end->damaged++;
            return;
        }
    if ( number != end->received || number >= end->count ) {
        end->out_of_order++;
        return;
    }
    end->micros[end->received++] = (uint32_t) ( passed / 1000 );
}

/* A tick that the machine held up is made up for; how late the latest one began is printed. */
static void send_messages( struct end_t * end )
{
    uint8_t data[MESSAGE_BYTES];
    if ( !end->is_sending )
        end->next_message = end->now;
    end->is_sending = 1;
    while ( end->sent < end->count && end->next_message <= end->now ) {
        double late = end->now - end->next_message;
        end->latest = end->sent >= end->warm_up && late > end->latest ? late : end->latest;
        make_message( end, data );
        if ( !end->transport->send( end, data ) )
            end->refused++;
        if ( ++end->sent % end->per_tick == 0 )
            end->next_message += TICK_SECONDS;
    }
}

/* ---- transport: netcode.h ---- */

static int messages_open( struct end_t * end )
{
    static const uint8_t key[NETCODE_KEY_BYTES] = { 7 };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char server[32];
    const char *internal = server, *through = end->through;
    snprintf( server, sizeof( server ), "127.0.0.1:%d", end->server_port );
    end->messages = netcode_messages_create( NULL, end->now );
    if ( end->side == LISTEN ) {
        struct netcode_server_config_t config;
        netcode_default_server_config( &config );
        config.protocol_id = PROTOCOL_ID;
        memcpy( config.private_key, key, sizeof( key ) );
        end->server = netcode_server_create( "127.0.0.1:0", &config, end->now );
        if ( !end->server || !end->messages )
            return failed( "no server" );
        netcode_server_start( end->server, 1 );
        printf( "port %d\n", netcode_server_get_port( end->server ) );
        return 1;
    }
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    end->client = netcode_client_create( "127.0.0.1:0", &config, end->now );
    if ( !end->client || !end->messages ||
         netcode_generate_connect_token( 1, &through, &internal, 60, 20, 1, PROTOCOL_ID, key, NULL, token ) !=
             NETCODE_OK )
        return failed( "no client" );
    netcode_client_connect( end->client, token );
    return 1;
}

static void messages_step( struct end_t * end )
{
    if ( end->server ) {
        netcode_server_update( end->server, end->now );
        netcode_messages_pull_from_server( end->messages, end->server, 0, end->now );
    } else {
        netcode_client_update( end->client, end->now );
        netcode_messages_pull_from_client( end->messages, end->client, end->now );
    }
}

static int messages_is_open( struct end_t * end )
{
    return end->server ? netcode_server_client_connected( end->server, 0 )
                       : netcode_client_state( end->client ) == NETCODE_CLIENT_STATE_CONNECTED;
}

static int messages_send( struct end_t * end, const uint8_t * data )
{
    return netcode_messages_send( end->messages, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, data, MESSAGE_BYTES ) ==
           NETCODE_OK;
}

static int messages_receive( struct end_t * end, uint8_t * data )
{
    struct netcode_message_t message;
    if ( !netcode_messages_receive( end->messages, &message ) )
        return 0;
    memset( data, 0, MESSAGE_BYTES );
    memcpy( data, message.data, (size_t) ( message.bytes < MESSAGE_BYTES ? message.bytes : MESSAGE_BYTES ) );
    return 1;
}

static void messages_flush( struct end_t * end )
{
    if ( end->server )
        netcode_messages_push_to_server( end->messages, end->server, 0, end->now );
    else
        netcode_messages_push_to_client( end->messages, end->client, end->now );
}

static double messages_deadline( struct end_t * end )
{
    return netcode_messages_next_deadline( end->messages );
}

static void messages_wait( struct end_t * end, double seconds )
{
    if ( end->server )
        netcode_server_wait( end->server, seconds );
    else
        netcode_client_wait( end->client, seconds );
}

static uint64_t messages_again( struct end_t * end )
{
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( end->messages, &stats );
    return stats.messages_repeated + stats.reliable_retries_total;
}

/* ---- a UDP socket, for the two transports below ---- */

static int parse_address( const char * text, struct sockaddr_in * address )
{
    struct netcode_address_t parsed;
    if ( !text || netcode_parse_address( text, &parsed ) != NETCODE_OK || parsed.type != NETCODE_ADDRESS_IPV4 ||
         parsed.data.ipv4[0] != 127 )
        return 0;
    memset( address, 0, sizeof( *address ) );
    address->sin_family = AF_INET;
    address->sin_port = htons( parsed.port );
    memcpy( &address->sin_addr, parsed.data.ipv4, 4 );
    return 1;
}

static int udp_open( struct end_t * end )
{
    struct sockaddr_in own;
    socklen_t length = sizeof( own );
    if ( end->side == CONNECT && !( end->has_peer = parse_address( end->through, &end->peer ) ) )
        return failed( "--through is no address of this machine" );
    parse_address( "127.0.0.1:0", &own );
    end->socket = socket( AF_INET, SOCK_DGRAM, 0 );
    if ( end->socket < 0 || fcntl( end->socket, F_SETFL, O_NONBLOCK ) != 0 ||
         bind( end->socket, (const struct sockaddr *) &own, sizeof( own ) ) != 0 ||
         getsockname( end->socket, (struct sockaddr *) &own, &length ) != 0 )
        return failed( "no socket" );
    if ( end->side == LISTEN )
        printf( "port %d\n", ntohs( own.sin_port ) );
    return 1;
}

/* What a full buffer drops is one more loss of the network. */
static void udp_send( const struct end_t * end, const uint8_t * data, size_t bytes )
{
    if ( end->has_peer )
        (void) !sendto( end->socket, data, bytes, 0, (const struct sockaddr *) &end->peer, sizeof( end->peer ) );
}

/* The peer is the sender: the relay. Returns the bytes, or -1. */
static int udp_receive( struct end_t * end, uint8_t data[DATAGRAM_BYTES] )
{
    struct sockaddr_in from;
    socklen_t length = sizeof( from );
    ssize_t bytes = recvfrom( end->socket, data, DATAGRAM_BYTES, 0, (struct sockaddr *) &from, &length );
    if ( bytes >= 0 && end->side == LISTEN ) {
        end->peer = from;
        end->has_peer = 1;
    }
    return (int) bytes;
}

static void wait_for( struct pollfd * files, nfds_t count, double seconds )
{
#if defined( __linux__ )
    struct timespec timeout = { 0, (long) ( seconds * 1e9 ) };
    (void) !ppoll( files, count, &timeout, NULL );
#else
    (void) !poll( files, count, (int) ( seconds * 1e3 ) + 1 );
#endif
}

/* ---- transport: a fixed timer ---- */

static int fixed_open( struct end_t * end )
{
    struct fixed_t * fixed = &end->fixed;
    fixed->out = (uint8_t( * )[MESSAGE_BYTES]) take_memory( (size_t) end->count * MESSAGE_BYTES );
    fixed->in = (uint8_t( * )[MESSAGE_BYTES]) take_memory( (size_t) end->count * MESSAGE_BYTES );
    fixed->sent_time = (double *) take_memory( (size_t) end->count * sizeof( double ) );
    fixed->acked = (uint8_t *) take_memory( end->count );
    fixed->arrived = (uint8_t *) take_memory( end->count );
    return udp_open( end );
}

static void fixed_send_packet( struct end_t * end, int type, uint32_t number )
{
    struct fixed_t * fixed = &end->fixed;
    uint8_t packet[FIXED_HEADER_BYTES + 4 + MESSAGE_BYTES];
    size_t bytes = FIXED_HEADER_BYTES;
    uint64_t bits = 0;
    for ( uint32_t i = 0; i < 64 && fixed->missing + 1 + i < end->count; i++ )
        bits |= (uint64_t) fixed->arrived[fixed->missing + 1 + i] << i;
    packet[0] = (uint8_t) type;
    put( packet + 1, fixed->missing, 4 );
    put( packet + 5, bits, 8 );
    if ( type == FIXED_MESSAGE ) {
        put( packet + FIXED_HEADER_BYTES, number, 4 );
        memcpy( packet + FIXED_HEADER_BYTES + 4, fixed->out[number], MESSAGE_BYTES );
        bytes = sizeof( packet );
    }
    udp_send( end, packet, bytes );
    fixed->last_sent = end->now;
    fixed->owes_ack = 0;
}

static void fixed_take_acks( struct fixed_t * fixed, uint32_t ack, uint64_t bits )
{
    for ( uint32_t i = fixed->first; i < ack && i < fixed->queued; i++ )
        fixed->acked[i] = 1;
    for ( uint32_t i = 0; i < 64 && ack + 1 + i < fixed->queued; i++ )
        if ( bits >> i & 1 )
            fixed->acked[ack + 1 + i] = 1;
    while ( fixed->first < fixed->queued && fixed->acked[fixed->first] )
        fixed->first++;
}

static void fixed_step( struct end_t * end )
{
    struct fixed_t * fixed = &end->fixed;
    uint8_t packet[DATAGRAM_BYTES];
    for ( int bytes; ( bytes = udp_receive( end, packet ) ) >= 0; ) {
        if ( bytes < FIXED_HEADER_BYTES )
            continue;
        fixed->is_heard = 1;
        fixed->owes_ack |= packet[0] != FIXED_ACKS;
        fixed_take_acks( fixed, (uint32_t) get( packet + 1, 4 ), get( packet + 5, 8 ) );
        if ( packet[0] != FIXED_MESSAGE || bytes != FIXED_HEADER_BYTES + 4 + MESSAGE_BYTES )
            continue;
        uint32_t number = (uint32_t) get( packet + FIXED_HEADER_BYTES, 4 );
        if ( number >= end->count )
            continue;
        memcpy( fixed->in[number], packet + FIXED_HEADER_BYTES + 4, MESSAGE_BYTES );
        fixed->arrived[number] = 1;
        while ( fixed->missing < end->count && fixed->arrived[fixed->missing] )
            fixed->missing++;
    }
}

static int fixed_is_open( struct end_t * end )
{
    return end->fixed.is_heard;
}

static int fixed_send( struct end_t * end, const uint8_t * data )
{
    end->fixed.sent_time[end->fixed.queued] = -1.0;
    memcpy( end->fixed.out[end->fixed.queued++], data, MESSAGE_BYTES );
    return 1;
}

static int fixed_receive( struct end_t * end, uint8_t * data )
{
    struct fixed_t * fixed = &end->fixed;
    if ( fixed->read == fixed->missing )
        return 0;
    memcpy( data, fixed->in[fixed->read++], MESSAGE_BYTES );
    return 1;
}

static void fixed_flush( struct end_t * end )
{
    struct fixed_t * fixed = &end->fixed;
    if ( end->side == CONNECT && !fixed->is_heard && end->now >= fixed->last_sent + HELLO_SECONDS )
        fixed_send_packet( end, FIXED_HELLO, 0 );
    for ( uint32_t i = fixed->first; i < fixed->queued; i++ ) {
        if ( fixed->acked[i] || end->now < fixed->sent_time[i] + FIXED_SECONDS )
            continue;
        fixed->again += fixed->sent_time[i] > 0.0;
        fixed->sent_time[i] = end->now;
        fixed_send_packet( end, FIXED_MESSAGE, i );
    }
    /* Messages carry the acks; where there are none, a packet does. */
    if ( fixed->owes_ack && end->now >= fixed->last_sent + TICK_SECONDS )
        fixed_send_packet( end, FIXED_ACKS, 0 );
}

static double fixed_deadline( struct end_t * end )
{
    const struct fixed_t * fixed = &end->fixed;
    double next = fixed->owes_ack ? fixed->last_sent + TICK_SECONDS : end->now + 1.0;
    for ( uint32_t i = fixed->first; i < fixed->queued; i++ )
        if ( !fixed->acked[i] && fixed->sent_time[i] + FIXED_SECONDS < next )
            next = fixed->sent_time[i] + FIXED_SECONDS;
    return next;
}

static void fixed_wait( struct end_t * end, double seconds )
{
    struct pollfd file = { end->socket, POLLIN, 0 };
    wait_for( &file, 1, seconds );
}

static uint64_t fixed_again( struct end_t * end )
{
    return end->fixed.again;
}

/* ---- transport: TCP, over a tun device whose packets go through the relay ---- */

#if defined( __linux__ )

static int tun_set( int handle, struct ifreq * request, unsigned long what, uint32_t address )
{
    struct sockaddr_in in;
    memset( &in, 0, sizeof( in ) );
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl( address );
    memcpy( &request->ifr_addr, &in, sizeof( in ) );
    return ioctl( handle, what, request ) == 0;
}

/* This process in a network of its own, with nothing but this device in it: both are gone when the process is. */
static int tun_open( uint32_t own, uint32_t other )
{
    struct ifreq request;
    memset( &request, 0, sizeof( request ) );
    if ( unshare( CLONE_NEWNET ) != 0 && unshare( CLONE_NEWUSER | CLONE_NEWNET ) != 0 )
        return failed( "tcp: no network namespace can be had" ) - 1;
    int tun = open( "/dev/net/tun", O_RDWR | O_NONBLOCK );
    if ( tun < 0 )
        return failed( "tcp: /dev/net/tun can not be opened" ) - 1;
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    memcpy( request.ifr_name, "tun0", 5 );
    int handle = socket( AF_INET, SOCK_DGRAM, 0 ), good = handle >= 0 && ioctl( tun, TUNSETIFF, &request ) == 0;
    good = good && tun_set( handle, &request, SIOCSIFADDR, own ) && tun_set( handle, &request, SIOCSIFDSTADDR, other );
    request.ifr_mtu = TUN_BYTES;
    good = good && ioctl( handle, SIOCSIFMTU, &request ) == 0;
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT;
    good = good && ioctl( handle, SIOCSIFFLAGS, &request ) == 0;
    if ( !good )
        failed( "tcp: no tun device can be had" );
    if ( handle >= 0 )
        close( handle );
    if ( !good )
        close( tun );
    return good ? tun : -1;
}

static int stream_use( struct end_t * end, int socket )
{
    struct stream_t * stream = &end->stream;
    int one = 1;
    socklen_t length = sizeof( stream->congestion ) - 1;
    stream->socket = socket;
    if ( fcntl( socket, F_SETFL, O_NONBLOCK ) != 0 ||
         setsockopt( socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof( one ) ) != 0 ||
         ( end->congestion && setsockopt( socket, IPPROTO_TCP, TCP_CONGESTION, end->congestion,
                                          (socklen_t) strlen( end->congestion ) ) != 0 ) )
        return failed( "tcp: the socket can not be set up" );
    getsockopt( socket, IPPROTO_TCP, TCP_CONGESTION, stream->congestion, &length );
    return 1;
}

static int stream_connect( struct end_t * end, uint32_t own, uint32_t other )
{
    struct stream_t * stream = &end->stream;
    struct sockaddr_in address;
    int handle = socket( AF_INET, SOCK_STREAM, 0 );
    if ( handle < 0 || !stream_use( end, handle ) )
        return failed( "tcp: no socket" );
    memset( &address, 0, sizeof( address ) );
    address.sin_family = AF_INET;
    address.sin_port = htons( TCP_PORT );
    address.sin_addr.s_addr = htonl( end->side == LISTEN ? own : other );
    if ( end->side == LISTEN ) {
        stream->listener = handle;
        stream->socket = -1;
        return ( bind( handle, (const struct sockaddr *) &address, sizeof( address ) ) == 0 &&
                 listen( handle, 1 ) == 0 ) ||
               failed( "tcp: it can not listen" );
    }
    return connect( handle, (const struct sockaddr *) &address, sizeof( address ) ) == 0 || errno == EINPROGRESS ||
           failed( "tcp: it can not connect" );
}

static int stream_open( struct end_t * end )
{
    uint32_t addresses[2] = { 0x0a4d0001, 0x0a4d0002 }, own = addresses[end->side == LISTEN]; /* 10.77.0.1 and 2 */
    uint32_t other = addresses[end->side != LISTEN];
    struct stream_t * stream = &end->stream;
    stream->listener = stream->socket = -1;
    stream->out = (uint8_t *) take_memory( STREAM_BYTES );
    stream->in = (uint8_t *) take_memory( STREAM_BYTES );
    if ( end->side != PROBE && !udp_open( end ) )
        return 0;
    if ( ( stream->tun = tun_open( own, other ) ) < 0 )
        exit( STATUS_CAN_NOT_BE_HAD );
    return end->side == PROBE ? stream_use( end, socket( AF_INET, SOCK_STREAM, 0 ) )
                              : stream_connect( end, own, other );
}

/* IP packets: what the relay brings into the kernel, and what the kernel sends out to the relay. */
static void stream_bridge( struct end_t * end )
{
    uint8_t packet[DATAGRAM_BYTES];
    ssize_t bytes;
    while ( ( bytes = udp_receive( end, packet ) ) > 0 )
        (void) !write( end->stream.tun, packet, (size_t) bytes );
    while ( ( bytes = read( end->stream.tun, packet, sizeof( packet ) ) ) > 0 )
        if ( packet[0] >> 4 == 4 && packet[9] == IPPROTO_TCP ) /* not IPv6's search for routers */
            udp_send( end, packet, (size_t) bytes );
}

static void stream_step( struct end_t * end )
{
    struct stream_t * stream = &end->stream;
    stream_bridge( end );
    if ( stream->listener >= 0 && stream->socket < 0 ) {
        int handle = accept( stream->listener, NULL, NULL );
        if ( handle >= 0 && !stream_use( end, handle ) )
            exit( 1 );
    }
    if ( stream->socket < 0 )
        return;
    ssize_t bytes = recv( stream->socket, stream->in + stream->in_bytes, STREAM_BYTES - stream->in_bytes, 0 );
    stream->in_bytes += bytes > 0 ? (size_t) bytes : 0;
}

static int stream_is_open( struct end_t * end )
{
    struct sockaddr_in peer;
    socklen_t length = sizeof( peer );
    return end->stream.socket >= 0 && getpeername( end->stream.socket, (struct sockaddr *) &peer, &length ) == 0;
}

static int stream_send( struct end_t * end, const uint8_t * data )
{
    struct stream_t * stream = &end->stream;
    if ( stream->out_bytes + MESSAGE_BYTES > STREAM_BYTES )
        return 0;
    memcpy( stream->out + stream->out_bytes, data, MESSAGE_BYTES );
    stream->out_bytes += MESSAGE_BYTES;
    return 1;
}

static int stream_receive( struct end_t * end, uint8_t * data )
{
    struct stream_t * stream = &end->stream;
    if ( stream->in_bytes < MESSAGE_BYTES )
        return 0;
    memcpy( data, stream->in, MESSAGE_BYTES );
    stream->in_bytes -= MESSAGE_BYTES;
    memmove( stream->in, stream->in + MESSAGE_BYTES, stream->in_bytes );
    return 1;
}

static void stream_flush( struct end_t * end )
{
    struct stream_t * stream = &end->stream;
    if ( stream->out_bytes && stream_is_open( end ) ) {
        ssize_t bytes = send( stream->socket, stream->out, stream->out_bytes, MSG_NOSIGNAL );
        if ( bytes > 0 ) {
            stream->out_bytes -= (size_t) bytes;
            memmove( stream->out, stream->out + bytes, stream->out_bytes );
        }
    }
    stream_bridge( end ); /* the segments that this made */
}

static double stream_deadline( struct end_t * end )
{
    return end->now + 1.0; /* the kernel has its own timers, and what they send wakes this up */
}

static void stream_wait( struct end_t * end, double seconds )
{
    const struct stream_t * stream = &end->stream;
    struct pollfd files[3] = { { end->socket, POLLIN, 0 }, { stream->tun, POLLIN, 0 }, { -1, POLLIN, 0 } };
    files[2].fd = stream->socket >= 0 ? stream->socket : stream->listener;
    if ( stream->out_bytes )
        files[2].events = POLLIN | POLLOUT;
    wait_for( files, 3, seconds );
}

static uint64_t stream_again( struct end_t * end )
{
    struct tcp_info info;
    socklen_t length = sizeof( info );
    memset( &info, 0, sizeof( info ) );
    if ( end->stream.socket >= 0 )
        getsockopt( end->stream.socket, IPPROTO_TCP, TCP_INFO, &info, &length );
    return info.tcpi_total_retrans;
}

#else

static int stream_open( struct end_t * end )
{
    (void) end;
    fprintf( stderr, "latency: tcp: it needs Linux's network namespaces and tun devices\n" );
    exit( STATUS_CAN_NOT_BE_HAD );
}

#define stream_step fixed_step
#define stream_is_open fixed_is_open
#define stream_send fixed_send
#define stream_receive fixed_receive
#define stream_flush fixed_flush
#define stream_deadline fixed_deadline
#define stream_wait fixed_wait
#define stream_again fixed_again

#endif

static const struct transport_t transports[] = { { "messages", messages_open, messages_step, messages_is_open,
                                                   messages_send, messages_receive, messages_flush, messages_deadline,
                                                   messages_wait, messages_again },
                                                 { "fixed", fixed_open, fixed_step, fixed_is_open, fixed_send,
                                                   fixed_receive, fixed_flush, fixed_deadline, fixed_wait,
                                                   fixed_again },
                                                 { "tcp", stream_open, stream_step, stream_is_open, stream_send,
                                                   stream_receive, stream_flush, stream_deadline, stream_wait,
                                                   stream_again } };

/* ---- the run ---- */

/* The parent process has closed its standard input, or is gone. */
static int is_over( void )
{
    struct pollfd file = { 0, POLLIN, 0 };
    uint8_t byte;
    return poll( &file, 1, 0 ) > 0 && read( 0, &byte, 1 ) <= 0;
}

static void turn( struct end_t * end )
{
    const struct transport_t * transport = end->transport;
    uint8_t data[MESSAGE_BYTES];
    end->now = time_now();
    transport->step( end );
    while ( transport->receive( end, data ) )
        take_message( end, data );
    if ( transport->is_open( end ) )
        send_messages( end );
    transport->flush( end );
    double next = transport->deadline( end );
    if ( end->is_sending && end->sent < end->count && end->next_message < next )
        next = end->next_message;
    double wait = next - time_now();
    transport->wait( end, wait > LONGEST_WAIT ? LONGEST_WAIT : wait < SHORTEST_WAIT ? SHORTEST_WAIT : wait );
}

static void run( struct end_t * end )
{
    double limit = end->now + end->limit_seconds;
    while ( !is_over() && end->now < limit ) {
        turn( end );
        if ( end->received == end->count && !end->is_done ) {
            end->is_done = 1;
            printf( "done\n" );
            fflush( stdout );
        }
    }
}

static void print_counts( struct end_t * end )
{
    printf( "{\"count\": %u, \"sent\": %u, \"refused\": %u, \"received\": %u, \"out_of_order\": %llu, \"damaged\": "
            "%llu, ",
            (unsigned) end->count, (unsigned) end->sent, (unsigned) end->refused, (unsigned) end->received,
            (unsigned long long) end->out_of_order, (unsigned long long) end->damaged );
    printf( "\"again\": %llu, \"late_ms\": %.2f, \"congestion\": \"%s\", \"micros\": [",
            (unsigned long long) end->transport->again( end ), end->latest * 1e3, end->stream.congestion );
    for ( uint32_t i = 0; i < end->received; i++ )
        printf( "%s%u", i ? "," : "", (unsigned) end->micros[i] );
    printf( "]}\n" );
}

static int parse_option( struct end_t * end, const char * name, const char * text )
{
    char * rest = NULL;
    double number = strtod( text, &rest );
    int is_number = rest != text && *rest == '\0';
    if ( !strcmp( name, "--through" ) )
        end->through = text;
    else if ( !strcmp( name, "--congestion" ) )
        end->congestion = text;
    else if ( !strcmp( name, "--server" ) && is_number && number >= 1.0 && number < 65536.0 )
        end->server_port = (int) number;
    else if ( !strcmp( name, "--count" ) && is_number && number >= 1.0 && number <= MAX_COUNT )
        end->count = (uint32_t) number;
    else if ( !strcmp( name, "--per-tick" ) && is_number && number >= 1.0 && number <= 1000.0 )
        end->per_tick = (uint32_t) number;
    else if ( !strcmp( name, "--warm-up" ) && is_number && number >= 0.0 && number <= MAX_COUNT )
        end->warm_up = (uint32_t) number;
    else if ( !strcmp( name, "--limit" ) && is_number && number > 0.0 && number <= 1e5 )
        end->limit_seconds = number;
    else
        return 0;
    return 1;
}

static int parse_options( struct end_t * end, int argc, char ** argv )
{
    static const char * const sides[] = { "listen", "connect", "probe" };
    end->count = 600;
    end->per_tick = 1;
    end->limit_seconds = 60.0;
    end->side = -1;
    for ( size_t i = 0; argc >= 3 && i < sizeof( transports ) / sizeof( transports[0] ); i++ )
        if ( !strcmp( argv[1], transports[i].name ) )
            end->transport = &transports[i];
    for ( int i = 0; argc >= 3 && i < 3; i++ )
        if ( !strcmp( argv[2], sides[i] ) )
            end->side = i;
    for ( int i = 3; i < argc; i += 2 )
        if ( i + 1 == argc || !parse_option( end, argv[i], argv[i + 1] ) )
            end->side = -1;
    return end->transport && end->side >= 0 && ( end->side != CONNECT || end->through ) &&
           ( end->side != PROBE || end->transport->open == stream_open );
}

/* Becomes another program, which does not outlive the parent process. */
static int guard( char ** command )
{
#if defined( __linux__ )
    prctl( PR_SET_PDEATHSIG, SIGTERM );
#endif
    execv( command[0], command );
    failed( command[0] );
    return 1;
}

int main( int argc, char ** argv )
{
    static struct end_t end;
    if ( argc >= 3 && !strcmp( argv[1], "guard" ) )
        return guard( argv + 2 );
    if ( !parse_options( &end, argc, argv ) ) {
        fprintf( stderr, "usage: latency messages|fixed|tcp listen|connect [--count N] [--per-tick N] [--warm-up N] "
                         "[--limit SECONDS] "
                         "[--through ADDRESS] "
                         "[--server PORT] [--congestion NAME]; or latency tcp probe [--congestion NAME]\n" );
        return 2;
    }
    signal( SIGPIPE, SIG_IGN );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    if ( netcode_init() != NETCODE_OK )
        return 1;
    end.now = time_now();
    end.micros = (uint32_t *) take_memory( (size_t) end.count * sizeof( uint32_t ) );
    if ( !end.transport->open( &end ) )
        return 1;
    fflush( stdout );
    if ( end.side == PROBE ) {
        printf( "%s\n", end.stream.congestion );
        return 0;
    }
    run( &end );
    print_counts( &end );
    return 0;
}
