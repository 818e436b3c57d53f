/*  The workloads that peers are compared in, written once for every library. A program that includes this defines `library`, and prints
    lines of five fields with tabs between them, which peers.py reads:

        figure GROUP ROW NAME VALUE         of one seed; peers.py shows the worst of all seeds
        series PICTURE LINE SECONDS VALUE   over time, of seed 1

        PROGRAM [--seeds N] [--whole] */

#ifndef NETWORK_PEERS_H
#define NETWORK_PEERS_H

#include "cells.h"
#include "world.h"

enum { CHANNEL_GAME, CHANNEL_OTHER, CHANNELS };
enum { TRANSFER_BYTES = 5000000, LARGE_BYTES = 32000, LEAST_LARGE_BYTES = 1000 };

/* What the workloads ask of a library. Ends of it call end->deliver. */
typedef struct {
    /* Two ends of a connection that is open at start_time. `transfer`: a message of 5 MB must fit, and channel 1 is less urgent. */
    end_t * ( *open )( world_t * world, int transfer, double start_time, double phase );
    int ( *send )( end_t * end, int channel, int kind, const void * data, int bytes ); /* 0: not now */
    void ( *close )( end_t * end );
} library_t;

static const library_t library;

static void figure( const char * group, const char * row, const char * name, double value )
{
    printf( "figure\t%s\t%s\t%s\t%.9g\n", group, row, name, value );
}

static void series( const char * picture, const char * line, double at, double value )
{
    printf( "series\t%s\t%s\t%.9g\t%.9g\n", picture, line, at, value );
}

/* ---- applications ---- */

/* Small messages, so many a tick, which say which one they are; what is refused waits, and its time goes on. */
typedef struct {
    int kind, bytes, per_tick;
    double from, until;
    uint64_t sent, received;
    samples_t times; /* from due to delivered */
    samples_t dues;
} stream_t;

/* Large messages. `count` 0: without an end. `most` are on their way, 0: as many as the library takes. */
typedef struct {
    int bytes, count, most;
    double from;
    int sent, received, done;
    double finished;
} bulk_t;

/* What one connection carries: streams by sender and channel, and large messages from the first end to the second. */
typedef struct {
    stream_t streams[2][CHANNELS];
    bulk_t bulk;
    double bin; /* seconds; 0: no series */
    double bins[256];
} load_t;

static double stream_due( const stream_t * stream, uint64_t number )
{
    return stream->from + (double) ( number / (uint64_t) stream->per_tick ) * NETWORK_TICK;
}

static void stream_play( end_t * end, int channel, stream_t * stream )
{
    uint8_t data[256] = { 0 };
    for ( ;; stream->sent++ ) {
        double due = stream_due( stream, stream->sent );
        if ( due > end->world->now + 1e-9 || due >= stream->until )
            return;
        memcpy( data, &stream->sent, sizeof( stream->sent ) );
        if ( !library.send( end, channel, stream->kind, data, stream->bytes ) &&
             stream->kind >= NETCODE_MESSAGE_RELIABLE )
            return;
    }
}

static void load_play( end_t * end )
{
    static uint8_t large[TRANSFER_BYTES];
    load_t * load = (load_t *) end->context;
    for ( int i = 0; i < CHANNELS; i++ )
        if ( load->streams[end->link][i].per_tick )
            stream_play( end, i, &load->streams[end->link][i] );
    bulk_t * bulk = &load->bulk;
    while ( end->link == 0 && bulk->bytes && end->world->now >= bulk->from &&
            ( bulk->count == 0 || bulk->sent < bulk->count ) &&
            ( bulk->most == 0 || bulk->sent - bulk->received < bulk->most ) &&
            library.send( end, CHANNEL_OTHER, NETCODE_MESSAGE_RELIABLE, large, bulk->bytes ) )
        bulk->sent++;
}

static void load_deliver( end_t * end, const struct netcode_message_t * message )
{
    load_t * load = (load_t *) end->context;
    double now = end->world->now;
    if ( message->bytes >= LEAST_LARGE_BYTES ) {
        size_t bin = load->bin > 0.0 ? (size_t) ( now / load->bin ) : 0;
        if ( bin < sizeof( load->bins ) / sizeof( load->bins[0] ) )
            load->bins[bin] += (double) message->bytes;
        if ( ++load->bulk.received == load->bulk.count ) {
            load->bulk.done = 1;
            load->bulk.finished = now;
        }
        return;
    }
    stream_t * stream = &load->streams[!end->link][message->channel];
    uint64_t number;
    memcpy( &number, message->data, sizeof( number ) );
    double due = stream_due( stream, number );
    stream->received++;
    samples_add( &stream->times, now - due );
    if ( load->bin > 0.0 )
        samples_add( &stream->dues, due );
}

static void load_attach( load_t * load, end_t * first )
{
    for ( int i = 0; i < 2; i++ ) {
        first[i].context = load;
        first[i].play = load_play;
        first[i].deliver = load_deliver;
    }
}

static void load_stream( load_t * load, int side, int channel, int kind, int bytes, int per_tick, double until )
{
    stream_t * stream = &load->streams[side][channel];
    stream->kind = kind;
    stream->bytes = bytes;
    stream->per_tick = per_tick;
    stream->until = until;
}

static void load_free( load_t * load )
{
    for ( int i = 0; i < 2 * CHANNELS; i++ ) {
        samples_free( &load->streams[i / CHANNELS][i % CHANNELS].times );
        samples_free( &load->streams[i / CHANNELS][i % CHANNELS].dues );
    }
}

static void peers_close( world_t * world )
{
    for ( int i = 0; i < world->end_count; i++ )
        library.close( &world->ends[i] );
    world_close( world );
}

static void figure_times( const char * group, const char * row, const char * prefix, stream_t * stream )
{
    static const double parts[] = { 0.5, 0.99, 0.999 };
    static const char * const names[] = { "p50", "p99", "p99.9" };
    samples_sort( &stream->times );
    for ( int i = 0; i < 3; i++ ) {
        char name[32];
        snprintf( name, sizeof( name ), "%s%s", prefix, names[i] );
        figure( group, row, name, 1000.0 * samples_part( &stream->times, parts[i] ) );
    }
}

static path_t path_make( double delay, double loss, double rate, double queue_seconds )
{
    path_t path;
    memset( &path, 0, sizeof( path ) );
    path.delay = delay;
    path.loss = loss;
    path.rate = rate;
    path.queue_seconds = queue_seconds;
    return path;
}

/* ---- streams of ordered messages ---- */

static void ordered( const char * group, const char * row, const path_t * path, int per_tick, uint64_t seed )
{
    world_t world;
    load_t load;
    double wait = 6.0 * ( path->delay + path->jitter ) + 0.2;
    memset( &load, 0, sizeof( load ) );
    world_open( &world, path, path, seed );
    end_t * first = library.open( &world, 0, 0.0, 0.0 );
    load_attach( &load, first );
    load_stream( &load, 0, CHANNEL_GAME, NETCODE_MESSAGE_RELIABLE_ORDERED, 64, per_tick, 60.0 );
    world_run( &world, 60.0 + wait, NULL );

    stream_t * stream = &load.streams[0][CHANNEL_GAME];
    figure_times( group, row, "", stream );
    figure( group, row, "missing", (double) ( per_tick * 3600 ) - (double) stream->received );
    figure( group, row, "bytes", (double) world.links[0].bytes / (double) ( per_tick * 3600 ) );
    load_free( &load );
    peers_close( &world );
}

static void cells( uint64_t seed, int whole )
{
    char row[64];
    for ( int d = 0; d < CELL_DELAYS; d++ )
        for ( int l = 0; l < CELL_LOSSES; l++ )
            for ( int c = 0; c < CELL_COUNTS; c++ ) {
                path_t path = path_make( cell_delays[d], cell_losses[l], 0.0, 0.0 );
                if ( !whole && c != 0 && c != CELL_COUNTS - 1 )
                    continue;
                snprintf( row, sizeof( row ), "%g ms, %g %%, %d a tick", cell_delays[d] * 1000.0,
                          cell_losses[l] * 100.0, cell_counts[c] );
                ordered( "cells", row, &path, cell_counts[c], seed );
            }
}

static void sparse( uint64_t seed, int whole )
{
    static const double losses[] = { 0.0, 0.01, 0.03, 0.1 };
    char row[64];
    (void) whole;
    for ( int i = 0; i < 4; i++ ) {
        path_t path = path_make( 0.05, losses[i], 0.0, 0.0 );
        snprintf( row, sizeof( row ), "50 ms, %g %%, 1 a tick", losses[i] * 100.0 );
        ordered( "sparse", row, &path, 1, seed );
    }
}

/* Losses in bursts, and a path that does everything else to packets. */
static void bursts( uint64_t seed, int whole )
{
    path_t path = path_make( 0.05, 0.05, 0.0, 0.0 );
    (void) whole;
    path.burst = 5.0;
    ordered( "sparse", "50 ms, 5 % in bursts of 5, 1 a tick", &path, 1, seed );
    ordered( "sparse", "50 ms, 5 % in bursts of 5, 5 a tick", &path, 5, seed );
    path = path_make( 0.05, 0.01, 0.0, 0.0 );
    path.jitter = 0.02;
    path.reorders = 1;
    path.duplicates = 0.01;
    ordered( "sparse", "50+-20 ms reordered, 1 % lost, 1 % twice, 5 a tick", &path, 5, seed );
}

/* ---- many tiny messages ---- */

static void tiny_run( int kind, const char * row, double loss, uint64_t seed )
{
    enum { PER_TICK = 200, SECONDS = 10 };
    world_t world;
    load_t load;
    path_t path = path_make( 0.03, loss, 0.0, 0.0 );
    double count = PER_TICK * 60.0 * SECONDS;
    memset( &load, 0, sizeof( load ) );
    world_open( &world, &path, &path, seed );
    end_t * first = library.open( &world, 0, 0.0, 0.0 );
    load_attach( &load, first );
    load_stream( &load, 0, CHANNEL_GAME, kind, 16, PER_TICK, SECONDS );
    world_run( &world, SECONDS + 1.0, NULL );
    stream_t * stream = &load.streams[0][CHANNEL_GAME];
    figure_times( "tiny", row, "", stream );
    figure( "tiny", row, "delivered", 100.0 * (double) stream->received / count );
    figure( "tiny", row, "bytes", (double) world.links[0].bytes / count );
    load_free( &load );
    peers_close( &world );
}

static void tiny( uint64_t seed, int whole )
{
    (void) whole;
    tiny_run( NETCODE_MESSAGE_RELIABLE_ORDERED, "30 ms, 0 %, ordered", 0.0, seed );
    tiny_run( NETCODE_MESSAGE_RELIABLE_ORDERED, "30 ms, 2 %, ordered", 0.02, seed );
    tiny_run( NETCODE_MESSAGE_UNRELIABLE, "30 ms, 0 %, unreliable", 0.0, seed );
    tiny_run( NETCODE_MESSAGE_UNRELIABLE, "30 ms, 2 %, unreliable", 0.02, seed );
}

/* ---- 5 MB, alone and beside a game ---- */

static void transfer_run( const char * row, const path_t * path, int game, uint64_t seed )
{
    world_t world;
    load_t load;
    double from = game ? 2.0 : 0.0;
    memset( &load, 0, sizeof( load ) );
    world_open( &world, path, path, seed );
    double phase = seed == 1 ? 0.0 : dice_real( &world.dice );
    end_t * first = library.open( &world, 1, 0.0, phase );
    load_attach( &load, first );
    load.bulk.bytes = TRANSFER_BYTES;
    load.bulk.count = 1;
    load.bulk.from = from;
    for ( int i = 0; game && i < 2; i++ ) {
        load_stream( &load, i, CHANNEL_GAME, NETCODE_MESSAGE_RELIABLE_ORDERED, 64, 1, 1e9 );
        load.streams[i][CHANNEL_GAME].from = from;
    }
    world.links[0].measured_from = from;
    world_run( &world, from + 200.0, &load.bulk.done );

    const char * group = game ? "beside" : "transfer";
    samples_sort( &world.links[0].waits );
    figure( group, row, "kB/s", load.bulk.done ? TRANSFER_BYTES / 1000.0 / ( load.bulk.finished - from ) : 0.0 );
    figure( group, row, "queue p99", 1000.0 * samples_part( &world.links[0].waits, 0.99 ) );
    if ( game )
        figure_times( group, row, "game ", &load.streams[0][CHANNEL_GAME] );
    load_free( &load );
    peers_close( &world );
}

typedef struct {
    const char * name;
    double delay, loss, rate, jitter;
} transfer_path_t;

static const transfer_path_t transfer_paths[] = {
    { "25 ms, 1 MB/s", 0.025, 0.0, 1e6, 0.0 },          { "25 ms, 1 MB/s, 1 %", 0.025, 0.01, 1e6, 0.0 },
    { "25 ms, 10 MB/s", 0.025, 0.0, 1e7, 0.0 },         { "25 ms, 10 MB/s, 1 %", 0.025, 0.01, 1e7, 0.0 },
    { "50 ms, 1 MB/s", 0.05, 0.0, 1e6, 0.0 },           { "50 ms, 1 MB/s, +-10 ms", 0.05, 0.0, 1e6, 0.01 },
    { "50 ms, 1 MB/s, +-40 ms", 0.05, 0.0, 1e6, 0.04 }, { "50 ms, 4 MB/s", 0.05, 0.0, 4e6, 0.0 },
};
enum { TRANSFER_PATHS = sizeof( transfer_paths ) / sizeof( transfer_paths[0] ) };

static path_t transfer_path( int at )
{
    const transfer_path_t * of = &transfer_paths[at];
    path_t path = path_make( of->delay, of->loss, of->rate, 0.2 );
    path.jitter = of->jitter;
    path.reorders = of->jitter > 0.0;
    return path;
}

static void transfers( uint64_t seed, int whole )
{
    (void) whole;
    for ( int i = 0; i < 2 * TRANSFER_PATHS; i++ ) {
        path_t path = transfer_path( i / 2 );
        transfer_run( transfer_paths[i / 2].name, &path, i % 2, seed );
    }
}

/* ---- more than the path carries ---- */

static void overload( uint64_t seed, int whole )
{
    static const char * const row = "50 ms, 125 kB/s, 500 kB/s offered";
    world_t world;
    load_t load;
    path_t there = path_make( 0.05, 0.0, 125e3, 0.2 ), back = path_make( 0.05, 0.0, 0.0, 0.0 );
    (void) whole;
    memset( &load, 0, sizeof( load ) );
    world_open( &world, &there, &back, seed );
    end_t * first = library.open( &world, 0, 0.0, seed == 1 ? 0.0 : dice_real( &world.dice ) );
    load_attach( &load, first );
    load_stream( &load, 0, CHANNEL_GAME, NETCODE_MESSAGE_RELIABLE_ORDERED, 64, 130, 1e9 );
    world_run( &world, 60.0, NULL );
    samples_sort( &world.links[0].waits );
    figure( "overload", row, "delivered", (double) load.streams[0][CHANNEL_GAME].received );
    figure( "overload", row, "queue p99", 1000.0 * samples_part( &world.links[0].waits, 0.99 ) );
    load_free( &load );
    peers_close( &world );
}

/* ---- over time: a transfer beside a game, and shares ---- */

static void over_time( const char * name )
{
    world_t world;
    load_t load;
    path_t path = path_make( 0.025, 0.01, 1e6, 0.2 );
    memset( &load, 0, sizeof( load ) );
    world_open( &world, &path, &path, 1 );
    load_attach( &load, library.open( &world, 1, 0.0, 0.0 ) );
    load_stream( &load, 0, CHANNEL_GAME, NETCODE_MESSAGE_RELIABLE_ORDERED, 64, 1, 14.0 );
    load.bulk.bytes = LARGE_BYTES;
    load.bulk.from = 2.0;
    load.bulk.most = 8;
    load.bin = 0.25;
    world_run( &world, 20.0, NULL );

    const stream_t * stream = &load.streams[0][CHANNEL_GAME];
    for ( int i = 0; i < (int) ( 14.0 / load.bin ); i++ )
        series( "rate", name, i * load.bin, load.bins[i] / load.bin / 1000.0 );
    for ( size_t i = 0; i < stream->times.count; i++ )
        series( "game", name, stream->dues.values[i], 1000.0 * stream->times.values[i] );
    load_free( &load );
    peers_close( &world );
}

/* Beside another connection of the library, or beside CUBIC, which begins 5 seconds later. */
static void share( const char * name, int beside_tcp )
{
    enum { SECONDS = 40 };
    world_t world;
    load_t loads[2];
    char lines[2][64];
    path_t there = path_make( 0.025, 0.0, 1e6, 0.1 ), back = path_make( 0.025, 0.0, 0.0, 0.0 );
    memset( loads, 0, sizeof( loads ) );
    world_open( &world, &there, &back, 1 );
    for ( int i = 0; i < ( beside_tcp ? 1 : 2 ); i++ ) {
        load_attach( &loads[i], library.open( &world, 0, 5.0 * i, 0.5 * i ) );
        loads[i].bulk.bytes = LARGE_BYTES;
        loads[i].bulk.from = 5.0 * i;
        loads[i].bin = 0.5;
    }
    const end_t * tcp = beside_tcp ? world_tcp( &world, 5.0 ) : NULL;
    snprintf( lines[0], sizeof( lines[0] ), "%s beside %s", name, tcp ? "CUBIC" : "itself" );
    snprintf( lines[1], sizeof( lines[1] ), "%s%s", tcp ? "CUBIC" : "the other ", tcp ? "" : name );

    uint64_t before = 0;
    for ( int i = 0; i < 2 * SECONDS; i++ ) {
        world_run( &world, 0.5 * ( i + 1 ), NULL );
        uint64_t now = tcp ? tcp[1].receiver->bytes : 0;
        series( "share", lines[0], 0.5 * i, loads[0].bins[i] / 500.0 );
        series( "share", lines[1], 0.5 * i, ( tcp ? (double) ( now - before ) : loads[1].bins[i] ) / 500.0 );
        before = now;
    }
    peers_close( &world );
}

static int peers_main( int argc, char ** argv, const char * name )
{
    static void ( *const workloads[] )( uint64_t seed, int whole ) = { cells, sparse,    bursts,
                                                                       tiny,  transfers, overload };
    int seeds = 1, whole = 0;
    for ( int i = 1; i < argc; i++ )
        if ( !strcmp( argv[i], "--seeds" ) && i + 1 < argc )
            seeds = atoi( argv[++i] );
        else if ( !strcmp( argv[i], "--whole" ) )
            whole = 1;
        else {
            fprintf( stderr, "usage: %s [--seeds N] [--whole]\n", argv[0] );
            return 2;
        }
    for ( int seed = 1; seed <= seeds; seed++ )
        for ( size_t i = 0; i < sizeof( workloads ) / sizeof( workloads[0] ); i++ )
            workloads[i]( (uint64_t) seed, whole );
    over_time( name );
    share( name, 0 );
    share( name, 1 );
    return 0;
}

#endif
