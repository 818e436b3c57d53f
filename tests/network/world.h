/*  Ends on both sides of one link, in virtual time: connections of messages, which are served in ticks, and flows of TCP with CUBIC
    (RFC 9438), which answer at once. */

#ifndef NETWORK_WORLD_H
#define NETWORK_WORLD_H

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "link.h"

#define NETWORK_TICK ( 1.0 / 60.0 )
#define TCP_BYTES 1200

struct world_t;
struct end_t;

/* The sending half of a TCP connection whose application always has more: RFC 9438, with NewReno's recovery and SACK's knowledge. */
typedef struct {
    uint64_t next, acked; /* in segments */
    uint64_t recover;     /* losses below it belong to a cut that was made */
    double window, threshold, largest, origin, epoch, reno;
    double rtt, variation, rtt_min, last_progress;
    uint8_t * states; /* of each segment modulo TCP_STATES */
    double * times;
    uint64_t newest; /* the newest that was received */
    uint64_t in_flight, lost_count;
} tcp_sender_t;

enum { TCP_STATES = 1 << 16, TCP_FLYING = 1, TCP_LOST = 2, TCP_ARRIVED = 3 };

typedef struct {
    uint64_t expected;
    uint8_t * arrived;
    uint64_t bytes;
} tcp_receiver_t;

typedef struct end_t {
    struct world_t * world;
    int index, peer, link;       /* the direction that it sends in */
    double start_time, end_time; /* a TCP flow ends then; 0: never */
    double tick, next_tick;
    struct netcode_messages_t * messages;
    tcp_sender_t * sender;
    tcp_receiver_t * receiver;
    void * other; /* another library's end, and what serves it in each tick */
    void ( *serve )( struct end_t * end );

    datagram_t ** inbox; /* what waits in its socket */
    int inbox_count, inbox_capacity;

    void * context;
    void ( *play )( struct end_t * end );    /* after each update: what it sends leaves with the next */
    void ( *prepare )( struct end_t * end ); /* before each update */
    void ( *deliver )( struct end_t * end, const struct netcode_message_t * message );
} end_t;

typedef struct world_t {
    double now;
    mail_t mail;
    link_t links[2];
    end_t ends[LINK_ENDS];
    int end_count;
    int overhead; /* bytes of headers around a packet of messages */
    dice_t dice;
} world_t;

/*  The library draws the packet numbers that it skips: from the seed here. */
static dice_t world_random;

static uint32_t world_random_word( void )
{
    return (uint32_t) ( dice_next( &world_random ) >> 32 );
}

static void world_random_bytes( void * const out, const size_t bytes )
{
    for ( size_t i = 0; i < bytes; i++ )
        ( (uint8_t *) out )[i] = (uint8_t) ( dice_next( &world_random ) >> 56 );
}

static const char * world_random_name( void )
{
    return "the seed";
}

static int world_random_begin( void )
{
    static struct randombytes_implementation implementation;
    implementation.implementation_name = world_random_name;
    implementation.random = world_random_word;
    implementation.buf = world_random_bytes;
    return randombytes_set_implementation( &implementation );
}

static void world_open( world_t * world, const path_t * there, const path_t * back, uint64_t seed )
{
    memset( world, 0, sizeof( *world ) );
    world->dice.state = seed * 1000003;
    world_random.state = seed * 7919;
    world->links[0].path = *there;
    world->links[1].path = *back;
    world->links[0].dice.state = dice_next( &world->dice );
    world->links[1].dice.state = dice_next( &world->dice );
}

static void world_close( world_t * world )
{
    for ( int i = 0; i < world->end_count; i++ ) {
        end_t * end = &world->ends[i];
        if ( end->messages )
            netcode_messages_destroy( end->messages );
        if ( end->sender ) {
            free( end->sender->states );
            free( end->sender->times );
        }
        if ( end->receiver )
            free( end->receiver->arrived );
        free( end->sender );
        free( end->receiver );
        while ( end->inbox_count )
            free( end->inbox[--end->inbox_count] );
        free( end->inbox );
    }
    mail_free( &world->mail );
    samples_free( &world->links[0].waits );
    samples_free( &world->links[1].waits );
}

static void * zeroed( size_t bytes )
{
    void * memory = calloc( 1, bytes );
    if ( !memory )
        abort();
    return memory;
}

/* Two ends of one connection; the second sends back. `phase`: when in a tick the second is served, 0 to 1. */
__attribute__( ( unused ) ) static end_t * world_messages( world_t * world,
                                                           const struct netcode_messages_config_t * config,
                                                           double start_time, double phase )
{
    for ( int side = 0; side < 2; side++ ) {
        end_t * end = &world->ends[world->end_count];
        end->world = world;
        end->index = world->end_count++;
        end->peer = side ? end->index - 1 : end->index + 1;
        end->link = side;
        end->tick = NETWORK_TICK;
        end->start_time = start_time;
        end->next_tick = start_time + ( side ? phase * NETWORK_TICK : 0.0 );
        end->messages = netcode_messages_create( config, end->next_tick );
        if ( !end->messages )
            abort();
    }
    return &world->ends[world->end_count - 2];
}

/* ---- TCP ---- */

static end_t * world_tcp( world_t * world, double start_time )
{
    for ( int side = 0; side < 2; side++ ) {
        end_t * end = &world->ends[world->end_count];
        end->world = world;
        end->index = world->end_count++;
        end->peer = side ? end->index - 1 : end->index + 1;
        end->link = side;
        end->tick = 0.01;
        end->start_time = end->next_tick = start_time;
        if ( side ) {
            end->receiver = (tcp_receiver_t *) zeroed( sizeof( tcp_receiver_t ) );
            end->receiver->arrived = (uint8_t *) zeroed( TCP_STATES );
        } else {
            end->sender = (tcp_sender_t *) zeroed( sizeof( tcp_sender_t ) );
            end->sender->states = (uint8_t *) zeroed( TCP_STATES );
            end->sender->times = (double *) zeroed( TCP_STATES * sizeof( double ) );
            end->sender->window = 10.0;
            end->sender->threshold = 1e300;
            end->sender->last_progress = start_time;
        }
    }
    return &world->ends[world->end_count - 2];
}

static void tcp_post( end_t * end, uint64_t sequence, uint64_t ack, int bytes )
{
    datagram_t * datagram = mail_new();
    datagram->to = end->peer;
    datagram->bytes = bytes;
    datagram->sequence = sequence;
    datagram->ack = ack;
    link_send( &end->world->links[end->link], &end->world->mail, datagram, end->world->now );
}

static void tcp_fill( end_t * end )
{
    tcp_sender_t * tcp = end->sender;
    if ( end->end_time > 0.0 && end->world->now > end->end_time )
        return;
    while ( (double) tcp->in_flight < tcp->window && tcp->next - tcp->acked < TCP_STATES / 2 ) {
        uint64_t segment = tcp->next;
        if ( tcp->lost_count ) {
            segment = tcp->acked;
            while ( tcp->states[segment % TCP_STATES] != TCP_LOST )
                segment++;
            tcp->lost_count--;
        } else
            tcp->next++;
        tcp->states[segment % TCP_STATES] = TCP_FLYING;
        tcp->times[segment % TCP_STATES] = end->world->now;
        tcp->in_flight++;
        tcp_post( end, segment, 0, TCP_BYTES );
    }
}

static void tcp_cut( end_t * end )
{
    tcp_sender_t * tcp = end->sender;
    tcp->largest = tcp->window < tcp->largest ? tcp->window * 0.85 : tcp->window; /* fast convergence */
    tcp->window = tcp->window * 0.7 > 2.0 ? tcp->window * 0.7 : 2.0;
    tcp->threshold = tcp->reno = tcp->window;
    tcp->epoch = 0.0;
    tcp->recover = tcp->next;
}

static void tcp_grow( end_t * end )
{
    tcp_sender_t * tcp = end->sender;
    double now = end->world->now;
    if ( tcp->window < tcp->threshold ) {
        tcp->window += 1.0;
        return;
    }
    if ( tcp->epoch == 0.0 ) {
        tcp->epoch = now;
        tcp->reno = tcp->window;
        if ( tcp->largest < tcp->window )
            tcp->largest = tcp->window;
        tcp->origin = cbrt( ( tcp->largest - tcp->window ) / 0.4 );
    }

    double passed = now + tcp->rtt - tcp->epoch - tcp->origin;
    double target = 0.4 * passed * passed * passed + tcp->largest;
    tcp->reno += 3.0 * 0.3 / 1.7 / tcp->window;
    target = target < tcp->reno ? tcp->reno : target;
    target = target > 1.5 * tcp->window ? 1.5 * tcp->window : target;
    if ( target > tcp->window )
        tcp->window += ( target - tcp->window ) / tcp->window;
}

static void tcp_acked( end_t * end, uint64_t segment, uint64_t expected )
{
    tcp_sender_t * tcp = end->sender;
    double now = end->world->now;
    uint8_t * state = &tcp->states[segment % TCP_STATES];
    tcp->last_progress = now;

    if ( segment >= tcp->acked && *state != TCP_ARRIVED ) {
        double sample = now - tcp->times[segment % TCP_STATES];
        tcp->rtt = tcp->rtt > 0.0 ? tcp->rtt + ( sample - tcp->rtt ) / 8.0 : sample;
        tcp->in_flight -= *state == TCP_FLYING;
        tcp->lost_count -= *state == TCP_LOST;
        *state = TCP_ARRIVED;
        if ( segment >= tcp->recover )
            tcp_grow( end );
    }
    tcp->newest = segment > tcp->newest ? segment : tcp->newest;

    for ( ; tcp->acked < expected; tcp->acked++ ) {
        uint8_t * passed = &tcp->states[tcp->acked % TCP_STATES];
        tcp->in_flight -= *passed == TCP_FLYING;
        tcp->lost_count -= *passed == TCP_LOST;
        *passed = 0;
    }

    for ( uint64_t i = tcp->acked; i + 3 <= tcp->newest; i++ )
        if ( tcp->states[i % TCP_STATES] == TCP_FLYING &&
             tcp->times[i % TCP_STATES] <= tcp->times[tcp->newest % TCP_STATES] ) {
            tcp->states[i % TCP_STATES] = TCP_LOST;
            tcp->in_flight--;
            tcp->lost_count++;
            if ( i >= tcp->recover )
                tcp_cut( end );
        }
    tcp_fill( end );
}

static void tcp_received( end_t * end, const datagram_t * datagram )
{
    tcp_receiver_t * tcp = end->receiver;
    uint64_t segment = datagram->sequence;
    if ( segment >= tcp->expected )
        tcp->arrived[segment % TCP_STATES] = 1;
    for ( ; tcp->arrived[tcp->expected % TCP_STATES]; tcp->expected++ ) {
        tcp->arrived[tcp->expected % TCP_STATES] = 0;
        tcp->bytes += TCP_BYTES;
    }
    tcp_post( end, segment, tcp->expected, 40 );
}

/* Its timer: everything in flight is lost. */
static void tcp_tick( end_t * end )
{
    tcp_sender_t * tcp = end->sender;
    double wait = tcp->rtt > 0.0 ? 2.0 * tcp->rtt + 0.2 : 1.0;
    if ( tcp->in_flight && end->world->now - tcp->last_progress > wait ) {
        for ( uint64_t i = tcp->acked; i < tcp->next; i++ )
            if ( tcp->states[i % TCP_STATES] == TCP_FLYING ) {
                tcp->states[i % TCP_STATES] = TCP_LOST;
                tcp->lost_count++;
            }
        tcp->in_flight = 0;
        tcp_cut( end );
        tcp->window = 2.0;
        tcp->last_progress = end->world->now;
    }
    tcp_fill( end );
}

/* ---- time ---- */

static void end_tick( end_t * end )
{
    world_t * world = end->world;
    struct netcode_message_t message;
    if ( end->sender )
        tcp_tick( end );
    if ( end->serve ) {
        end->serve( end );
        if ( end->play )
            end->play( end );
    }
    if ( !end->messages )
        return;

    netcode_messages_set_time( end->messages, world->now );
    for ( int i = 0; i < end->inbox_count; i++ ) {
        netcode_messages_process_packet( end->messages, end->inbox[i]->data, end->inbox[i]->bytes );
        free( end->inbox[i] );
    }
    end->inbox_count = 0;
    while ( netcode_messages_receive( end->messages, &message ) )
        if ( end->deliver )
            end->deliver( end, &message );
    if ( end->prepare )
        end->prepare( end );
    netcode_messages_update( end->messages, world->now );
    for ( ;; ) {
        datagram_t * datagram = mail_new();
        datagram->to = end->peer;
        datagram->overhead = world->overhead;
        datagram->bytes =
            netcode_messages_generate_packet( end->messages, datagram->data, (int) sizeof( datagram->data ) );
        if ( datagram->bytes <= 0 ) {
            free( datagram );
            break;
        }
        link_send( &world->links[end->link], &world->mail, datagram, world->now );
    }
    if ( end->play )
        end->play( end );
}

static void world_arrive( world_t * world )
{
    datagram_t * datagram = mail_remove( &world->mail );
    end_t * end = &world->ends[datagram->to];
    world->now = datagram->at;
    if ( end->messages || end->serve ) {
        if ( end->inbox_count == end->inbox_capacity ) {
            end->inbox_capacity = end->inbox_capacity ? 2 * end->inbox_capacity : 256;
            end->inbox = (datagram_t **) realloc( end->inbox, (size_t) end->inbox_capacity * sizeof( datagram_t * ) );
            if ( !end->inbox )
                abort();
        }
        end->inbox[end->inbox_count++] = datagram;
        return;
    }
    if ( end->sender )
        tcp_acked( end, datagram->sequence, datagram->ack );
    else
        tcp_received( end, datagram );
    free( datagram );
}

/* Lets time pass until `until`, or until `*done`. */
static void world_run( world_t * world, double until, const int * done )
{
    while ( !done || !*done ) {
        end_t * next = &world->ends[0];
        for ( int i = 1; i < world->end_count; i++ )
            next = world->ends[i].next_tick < next->next_tick ? &world->ends[i] : next;

        if ( world->mail.count && world->mail.heap[0]->at <= next->next_tick ) {
            if ( world->mail.heap[0]->at > until )
                break;
            world_arrive( world );
            continue;
        }
        if ( next->next_tick > until )
            break;
        world->now = next->next_tick;
        next->next_tick += next->tick;
        end_tick( next );
    }
    if ( world->now < until && !( done && *done ) )
        world->now = until;
}

#endif
