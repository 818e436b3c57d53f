/*  make bench-messages: what messages cost, without a network and without the core.

        bench_messages [ROUNDS]

    Two objects hand each other packets in memory, a tick after a tick of virtual time; each packet is on its way for three ticks,
    50 ms, so that what is reliable is repeated in the next two packets, as the default has it. A round times some hundred ticks
    with one small message in them, and with MANY; which goes first alternates. From the medians: a message is what each
    further one costs the side that sends it (queued, written, repeated, acknowledged, forgotten) and the side that
    receives it (read, handed over, known again); the limit is for either side, as each pays for its own. A packet is
    what is left of a tick with one message, by the packets of that tick, their acks included. Exit code 1 when a line
    is over its limit; BENCH_PRINT_ONLY in the environment makes it 0.

    A peer that withholds acks: 2,500 small messages and then a transfer, of whose packets it acknowledges those without a
    small one. Ten virtual seconds, with an honest peer and with that one; what a tick takes is the least of its rounds. */

#if !defined( _GNU_SOURCE )
#define _GNU_SOURCE /* memmem */
#endif

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

enum { TICKS = 240, MAX_ROUNDS = 1001, MESSAGE_BYTES = 32, MANY = 8, SIDES = 2, WAY = 3, MOST = 512 };
enum { WITHHELD = 2500, LARGE_BYTES = 20000, ACK_TICKS = 600, ACK_ROUNDS = 11 };

/* What one end wrote in a tick. */
struct flight_t {
    uint8_t packets[MOST][NETCODE_MAX_PACKET_SIZE];
    int bytes[MOST + 1], count;
};

struct end_t {
    struct netcode_messages_t * messages;
    struct flight_t flights[WAY]; /* on their way to the other end, by the tick in which they left */
    int packets;
};

struct pair_t {
    struct end_t ends[SIDES];
    double now;
    int kind, per_tick, tick;
    double costs[SIDES][MAX_ROUNDS]; /* of a tick, in ns */
    double packets;                  /* in a tick, both ways */
};

static double nanoseconds( void )
{
    return netcode_time() * 1e9;
}

static void stop( const char * why )
{
    fprintf( stderr, "bench_messages: %s\n", why );
    exit( 2 );
}

/* Everything that an end has to say, for the other one. */
static void end_write( struct end_t * end, struct flight_t * flight, double now )
{
    flight->count = 0;
    netcode_messages_update( end->messages, now );
    while ( ( flight->bytes[flight->count] =
                  netcode_messages_generate_packet( end->messages, flight->packets[flight->count],
                                                    NETCODE_MAX_PACKET_SIZE ) ) > 0 )
        if ( ++flight->count == MOST )
            stop( "a tick filled too many packets" );
    end->packets += flight->count;
}

static int end_read( struct end_t * end, struct flight_t * flight )
{
    struct netcode_message_t message;
    int received = 0;
    for ( int i = 0; i < flight->count; i++ )
        if ( netcode_messages_process_packet( end->messages, flight->packets[i], flight->bytes[i] ) !=
             NETCODE_MESSAGES_DROP_NONE )
            stop( "a packet was dropped" );
    flight->count = 0;
    while ( netcode_messages_receive( end->messages, &message ) )
        received++;
    return received;
}

/* One tick: messages one way, their acks the other. Returns how many arrived; `costs` is what each side took. */
static int pair_tick( struct pair_t * pair, double costs[SIDES] )
{
    static const uint8_t data[MESSAGE_BYTES] = { 1 };
    struct flight_t *there = &pair->ends[0].flights[pair->tick % WAY], *back = &pair->ends[1].flights[pair->tick % WAY];
    pair->tick++;
    pair->now += 1.0 / 60.0;
    double begin = nanoseconds();
    int received = end_read( &pair->ends[1], there );
    double half = nanoseconds();
    end_read( &pair->ends[0], back );
    for ( int i = 0; i < pair->per_tick; i++ )
        if ( netcode_messages_send( pair->ends[0].messages, 0, pair->kind, data, MESSAGE_BYTES ) != NETCODE_OK )
            stop( "a message was refused" );
    end_write( &pair->ends[0], there, pair->now );
    double sent = nanoseconds();
    end_write( &pair->ends[1], back, pair->now );
    costs[0] += sent - half;
    costs[1] += ( half - begin ) + ( nanoseconds() - sent );
    return received;
}

static void pair_round( struct pair_t * pair, int round )
{
    int received = 0;
    double costs[SIDES] = { 0.0, 0.0 };
    for ( int i = 0; i < TICKS; i++ )
        received += pair_tick( pair, costs );
    if ( received != TICKS * pair->per_tick && pair->tick > TICKS )
        stop( "not all messages arrived" );
    for ( int i = 0; i < SIDES; i++ )
        pair->costs[i][round] = costs[i] / TICKS;
}

static void pair_open( struct pair_t * pair, int kind, int per_tick )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.ping_seconds = -1.0;
    config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
    memset( pair, 0, sizeof( *pair ) );
    pair->kind = kind;
    pair->per_tick = per_tick;
    for ( int i = 0; i < SIDES; i++ )
        if ( !( pair->ends[i].messages = netcode_messages_create( &config, 0.0 ) ) )
            stop( "no memory" );
    for ( int i = 0; i < 4; i++ )
        pair_round( pair, 0 );
    pair->ends[0].packets = pair->ends[1].packets = 0;
    pair_round( pair, 0 );
    pair->packets = (double) ( pair->ends[0].packets + pair->ends[1].packets ) / TICKS;
}

static int compare( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static double median( double * values, int count )
{
    qsort( values, (size_t) count, sizeof( *values ), compare );
    return values[count / 2];
}

static int line( const char * name, double value, double limit, const char * unit )
{
    int over = limit > 0.0 && value > limit;
    printf( "%-76s %8.1f %-6s", name, value, unit );
    if ( limit > 0.0 )
        printf( " %6.0f  %s", limit, over ? "OVER" : "ok" );
    printf( "\n" );
    return over;
}

/* What a packet and a message of one kind cost. */
static int bench_kind( int kind, const char * name, int rounds )
{
    static struct pair_t one, many;
    char text[96];
    pair_open( &one, kind, 1 );
    pair_open( &many, kind, MANY );
    for ( int i = 0; i < rounds; i++ )
        for ( int turn = 0; turn < 2; turn++ ) {
            struct pair_t * pair = ( i + turn ) % 2 ? &one : &many;
            pair_round( pair, i );
        }
    double packet = 0.0, both = 0.0;
    int over = 0;
    for ( int side = 0; side < SIDES; side++ ) {
        double few = median( one.costs[side], rounds );
        double message = ( median( many.costs[side], rounds ) - few ) / ( MANY - 1 );
        packet += ( few - message ) / one.packets;
        both += message;
        snprintf( text, sizeof( text ), "%s: one more small message, %s", name, side ? "in" : "out" );
        over += line( text, message, 60.0, "ns" );
    }
    snprintf( text, sizeof( text ), "%s: the same, both sides together", name );
    line( text, both, 0.0, "ns" );
    snprintf( text, sizeof( text ), "%s: a packet, out and in, and half its ack", name );
    over += line( text, packet, 250.0, "ns" ); /* what the clock takes is in it: twice a tick for either side */
    for ( int i = 0; i < SIDES; i++ ) {
        netcode_messages_destroy( one.ends[i].messages );
        netcode_messages_destroy( many.ends[i].messages );
    }
    return over;
}

/* Drops the packets with a small message in them. */
static void flight_withhold( struct flight_t * flight, const uint8_t small[MESSAGE_BYTES] )
{
    int kept = 0;
    for ( int i = 0; i < flight->count; i++ )
        if ( !memmem( flight->packets[i], (size_t) flight->bytes[i], small, MESSAGE_BYTES ) ) {
            memmove( flight->packets[kept], flight->packets[i], (size_t) flight->bytes[i] );
            flight->bytes[kept++] = flight->bytes[i];
        }
    flight->count = kept;
}

/* Lowers to what this round took, in ns: `acks`, reading the acks of each tick, and `all`, all that the sender does in it. */
static void acks_round( int withholds, double acks[ACK_TICKS], double all[ACK_TICKS] )
{
    static const uint8_t large[LARGE_BYTES] = { 0 };
    static struct pair_t pair;
    uint8_t small[MESSAGE_BYTES];
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.send_buffer_bytes = config.receive_buffer_bytes = 1 << 20;
    memset( &pair, 0, sizeof( pair ) );
    memset( small, 's', sizeof( small ) );
    for ( int i = 0; i < SIDES; i++ )
        if ( !( pair.ends[i].messages = netcode_messages_create( &config, 0.0 ) ) )
            stop( "no memory" );
    struct netcode_messages_t * sender = pair.ends[0].messages;
    for ( int i = 0; i < WITHHELD; i++ )
        if ( netcode_messages_send( sender, 0, NETCODE_MESSAGE_RELIABLE, small, MESSAGE_BYTES ) != NETCODE_OK )
            stop( "a message was refused" );
    for ( int tick = 0; tick < ACK_TICKS; tick++ ) {
        struct flight_t *there = &pair.ends[0].flights[tick % WAY], *back = &pair.ends[1].flights[tick % WAY];
        pair.now += 1.0 / 60.0;
        if ( withholds )
            flight_withhold( there, small );
        end_read( &pair.ends[1], there );
        double begin = nanoseconds();
        end_read( &pair.ends[0], back );
        double read = nanoseconds() - begin;
        netcode_messages_send( sender, 0, NETCODE_MESSAGE_RELIABLE, large, LARGE_BYTES ); /* FULL is no failure */
        end_write( &pair.ends[0], there, pair.now );
        double took = nanoseconds() - begin;
        acks[tick] = read < acks[tick] ? read : acks[tick];
        all[tick] = took < all[tick] ? took : all[tick];
        end_write( &pair.ends[1], back, pair.now );
    }
    for ( int i = 0; i < SIDES; i++ )
        netcode_messages_destroy( pair.ends[i].messages );
}

/* What a peer that withholds acks costs, beside what an honest one does. */
static int bench_acks( void )
{
    double acks[2][ACK_TICKS], all[2][ACK_TICKS], worst[2] = { 0.0, 0.0 }, sum[2] = { 0.0, 0.0 };
    for ( int i = 0; i < 2 * ACK_TICKS; i++ )
        acks[i / ACK_TICKS][i % ACK_TICKS] = all[i / ACK_TICKS][i % ACK_TICKS] = 1e12;
    for ( int i = 0; i < 2 * ACK_ROUNDS; i++ )
        acks_round( i % 2, acks[i % 2], all[i % 2] );
    for ( int i = 0; i < 2 * ACK_TICKS; i++ ) {
        double one = acks[i / ACK_TICKS][i % ACK_TICKS];
        worst[i / ACK_TICKS] = one > worst[i / ACK_TICKS] ? one : worst[i / ACK_TICKS];
        sum[i / ACK_TICKS] += all[i / ACK_TICKS][i % ACK_TICKS] / ( ACK_TICKS / 60.0 );
    }
    line( "a transfer after 2,500 small messages: a second of the sender", sum[0] / 1e3, 0.0, "us" );
    int over = line( "the same, while the acks of small ones are withheld", sum[1] / 1e3, 2.0 * sum[0] / 1e3, "us" );
    line( "a transfer after 2,500 small messages: the worst acks of a tick", worst[0], 0.0, "ns" );
    return over + line( "the same, while the acks of small ones are withheld", worst[1], 2.0 * worst[0], "ns" );
}

static int bench_memory( void )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = 4;
    config.send_buffer_bytes = config.receive_buffer_bytes = 1 << 20;
    double bytes = (double) netcode_messages_memory( &config ) - 2.0 * ( 1 << 20 );
    return line( "memory of a connection with 4 channels, beside its buffers", bytes, 4096.0, "bytes" );
}

int main( int argc, char ** argv )
{
    int rounds = argc > 1 ? atoi( argv[1] ) : 101, over = 0;
    if ( rounds < 3 || rounds > MAX_ROUNDS ) {
        fprintf( stderr, "usage: bench_messages [ROUNDS, 3 to %d]\n", MAX_ROUNDS );
        return 2;
    }
    printf( "netcode.h %s, messages of %d bytes, %d rounds of %d ticks; medians\n\n", netcode_version(), MESSAGE_BYTES,
            rounds, TICKS );
    over += bench_kind( NETCODE_MESSAGE_UNRELIABLE, "unreliable", rounds );
    over += bench_kind( NETCODE_MESSAGE_RELIABLE, "reliable, repeated twice", rounds );
    over += bench_kind( NETCODE_MESSAGE_RELIABLE_ORDERED, "reliable ordered, repeated twice", rounds );
    over += bench_acks();
    over += bench_memory();
    return over && !getenv( "BENCH_PRINT_ONLY" );
}
