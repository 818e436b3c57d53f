/*  How messages fare on real networks: paths that delay, lose, reorder and queue, and what else uses them. Everything happens in virtual
    time and follows from the seed, so that each figure can be had again.

        network [--seeds N] [--short] [--first-seed N] [--verbose] [WORKLOAD...]     10 seeds, or 3 with --short
        workloads: cells sparse transfer beside share tcp paths overload

    A line is a figure, the worst of all seeds, and the limit that it must keep. Some limits are aims that are not reached: those lines
    say OPEN, with how far the figure may be from it (`worst`, measured with seeds 1 to 3, 11 to 26 and 41 to 50), and so do not hide
    that it becomes worse. The status is 1 if a line is beyond. Bytes on a path are those of messages' packets; netcode's and IP's come
    on top. Both ends are served 60 times a second; what an application sends leaves with the next tick, in `paths` with this one. */

#include "cells.h"
#include "world.h"

#define MESSAGE_BYTES 64
#define LONGEST_LINE 160

static int seeds = 10, first_seed = 1, verbose;
static int lines, beyond, open_lines;

/* A figure and what it must keep: more of it is better (least) or worse (most). `worst`: what it may be while its line is open. */
typedef struct {
    double figure, limit, worst;
    int more_is_better;
} gate_t;

static int gate_holds( const gate_t * gate, double limit )
{
    return gate->more_is_better ? gate->figure >= limit : gate->figure <= limit;
}

/* Counts a line, which holds its aim, or what it may be while it is open, or not; and says which. */
static const char * verdict( int holds, int may )
{
    lines++;
    open_lines += !holds && may;
    beyond += !holds && !may;
    return holds ? "ok    " : may ? "OPEN  " : "BEYOND";
}

__attribute__( ( format( printf, 2, 3 ) ) ) static void report( gate_t gate, const char * format, ... )
{
    char line[LONGEST_LINE];
    int holds = gate_holds( &gate, gate.limit ), may = !holds && gate_holds( &gate, gate.worst );
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( line, sizeof( line ), format, arguments );
    va_end( arguments );
    printf( "%s %-84s %10.6g  limit %.6g", verdict( holds, may ), line, gate.figure, gate.limit );
    printf( may ? ", for now %.6g\n" : "\n", gate.worst );
    fflush( stdout );
}

static gate_t gate_most( double figure, double limit, double worst )
{
    gate_t gate = { figure, limit, worst, 0 };
    return gate;
}

static gate_t gate_least( double figure, double limit, double worst )
{
    gate_t gate = { figure, limit, worst, 1 };
    return gate;
}

static path_t path_of( double delay, double loss )
{
    path_t path;
    memset( &path, 0, sizeof( path ) );
    path.delay = delay;
    path.loss = loss;
    return path;
}

static path_t path_with_queue( double delay, double loss, double rate, double queue_seconds )
{
    path_t path = path_of( delay, loss );
    path.rate = rate;
    path.queue_seconds = queue_seconds;
    return path;
}

/* ---- applications ---- */

/* Small messages, so many a tick; each says which one it is, so when it was due is known. */
typedef struct {
    int kind, per_tick, channel;
    double from, until; /* when they are due */
    uint64_t sent, received, refused;
    samples_t times; /* from due to delivered */
} game_t;

static double game_due( const game_t * game, uint64_t number )
{
    return game->from + (double) ( number / (uint64_t) game->per_tick ) * NETWORK_TICK;
}

static void game_play( end_t * end, game_t * game )
{
    uint8_t data[MESSAGE_BYTES] = { 0 };
    for ( ; game_due( game, game->sent ) <= end->world->now + 1e-9 && game_due( game, game->sent ) < game->until;
          game->sent++ ) {
        memcpy( data, &game->sent, sizeof( game->sent ) );
        if ( netcode_messages_send( end->messages, game->channel, game->kind, data, sizeof( data ) ) != NETCODE_OK ) {
            game->refused++;
            if ( game->kind != NETCODE_MESSAGE_UNRELIABLE )
                return; /* it waits here; its time goes on */
        }
    }
}

static void game_deliver( const end_t * end, game_t * game, const struct netcode_message_t * message )
{
    uint64_t number;
    memcpy( &number, message->data, sizeof( number ) );
    game->received++;
    samples_add( &game->times, end->world->now - game_due( game, number ) );
}

/* Large messages, one after the other. */
typedef struct {
    int bytes, count, channel; /* 0: without an end */
    double from, until;
    int sent, received, done;
    double finished;
    uint64_t received_bytes; /* in whole messages */
    double counts_from;
    uint64_t counted_bytes;
} transfer_t;

static uint8_t large[16 << 20];

static void transfer_play( end_t * end, transfer_t * transfer )
{
    while ( end->world->now >= transfer->from && ( transfer->count == 0 || transfer->sent < transfer->count ) &&
            netcode_messages_send( end->messages, transfer->channel, NETCODE_MESSAGE_RELIABLE, large,
                                   transfer->bytes ) == NETCODE_OK )
        transfer->sent++;
}

static void transfer_deliver( const end_t * end, transfer_t * transfer, const struct netcode_message_t * message )
{
    transfer->received_bytes += (uint64_t) message->bytes;
    if ( end->world->now >= transfer->counts_from )
        transfer->counted_bytes += (uint64_t) message->bytes;
    if ( ++transfer->received == transfer->count ) {
        transfer->done = 1;
        transfer->finished = end->world->now;
    }
}

/* What one connection carries: a game each way, and a transfer from the first end to the second. */
typedef struct {
    game_t games[2]; /* by sender */
    transfer_t transfer;
} load_t;

static void load_play( end_t * end )
{
    load_t * load = (load_t *) end->context;
    if ( load->games[end->link].per_tick )
        game_play( end, &load->games[end->link] );
    if ( end->link == 0 && load->transfer.bytes )
        transfer_play( end, &load->transfer );
}

static void load_deliver( end_t * end, const struct netcode_message_t * message )
{
    load_t * load = (load_t *) end->context;
    if ( message->bytes > MESSAGE_BYTES )
        transfer_deliver( end, &load->transfer, message );
    else
        game_deliver( end, &load->games[!end->link], message );
}

static void load_attach( load_t * load, end_t * first )
{
    for ( int i = 0; i < 2; i++ ) {
        first[i].context = load;
        first[i].play = load_play;
        first[i].deliver = load_deliver;
    }
}

static void load_free( load_t * load )
{
    samples_free( &load->games[0].times );
    samples_free( &load->games[1].times );
}

static int milliseconds( double seconds )
{
    return (int) floor( seconds * 1000.0 + 0.5 );
}

/* ---- cells: a stream of ordered messages over a long and lossy path without a queue ---- */

typedef struct {
    double p50, p99;
    uint64_t missing;
} cell_t;

static cell_t cell_run( double delay, double loss, int per_tick, uint64_t seed )
{
    world_t world;
    load_t load;
    cell_t cell;
    path_t path = path_of( delay, loss );
    memset( &load, 0, sizeof( load ) );
    world_open( &world, &path, &path, seed );
    end_t * first = world_messages( &world, NULL, 0.0, 0.0 );
    load_attach( &load, first );
    load.games[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    load.games[0].per_tick = per_tick;
    load.games[0].until = 60.0;
    world_run( &world, 60.0 + 6.0 * delay + 0.2, NULL );

    samples_sort( &load.games[0].times );
    cell.p50 = samples_part( &load.games[0].times, 0.5 );
    cell.p99 = samples_part( &load.games[0].times, 0.99 );
    cell.missing = (uint64_t) per_tick * 3600 - load.games[0].received;
    load_free( &load );
    world_close( &world );
    return cell;
}

static void cells( void )
{
    int stalled = 0, slower_p50 = 0, slower_p99 = 0;
    for ( int d = 0; d < CELL_DELAYS; d++ )
        for ( int l = 0; l < CELL_LOSSES; l++ ) {
            if ( verbose )
                printf( "       %3d ms, %2d %%:", milliseconds( cell_delays[d] ),
                        (int) ( cell_losses[l] * 100.0 + 0.5 ) );
            for ( int c = 0; c < CELL_COUNTS; c++ ) {
                double p50 = 0.0, p99 = 0.0;
                uint64_t missing = 0;
                /* the middle one of p50 and p99 would hide a stall: the worst */
                for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
                    cell_t cell = cell_run( cell_delays[d], cell_losses[l], cell_counts[c], (uint64_t) seed );
                    p50 = cell.p50 > p50 ? cell.p50 : p50;
                    p99 = cell.p99 > p99 ? cell.p99 : p99;
                    missing += cell.missing;
                }
                int stalls = missing || p99 > 6.0 * cell_delays[d] + 0.2;
                stalled += stalls;
                slower_p50 += milliseconds( p50 ) > cell_gns[d][l][c][0];
                slower_p99 += milliseconds( p99 ) > cell_gns[d][l][c][1];
                if ( verbose ) {
                    printf( "  %d/%d%s", milliseconds( p50 ), milliseconds( p99 ), stalls ? "!" : "" );
                    fflush( stdout );
                }
            }
            if ( verbose )
                printf( "\n" );
        }
    report( gate_most( stalled, 0, 6 ), "48 cells of ordered messages: stalled" );
    report( gate_most( slower_p99, 2, 8 ), "48 cells: p99 beyond GameNetworkingSockets'" );
    report( gate_most( slower_p50, 0, 1 ), "48 cells: p50 beyond GameNetworkingSockets'" );
}

/* ---- sparse: one ordered message a tick ---- */

static void sparse_run( double loss, double most99, double most999, double most_bytes )
{
    samples_t times;
    double bytes = 0.0, messages = 0.0;
    memset( &times, 0, sizeof( times ) );
    for ( int seed = 7 * first_seed - 6; seed < 7 * ( first_seed + seeds ) - 6;
          seed++ ) { /* a minute each: what is learned at the beginning counts */
        world_t world;
        load_t load;
        struct netcode_messages_stats_t stats;
        path_t path = path_of( 0.05, loss );
        memset( &load, 0, sizeof( load ) );
        world_open( &world, &path, &path, (uint64_t) seed );
        end_t * first = world_messages( &world, NULL, 0.0, 0.0 );
        load_attach( &load, first );
        load.games[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
        load.games[0].per_tick = 1;
        load.games[0].until = 60.0;
        world_run( &world, 62.0, NULL );
        for ( size_t i = 0; i < load.games[0].times.count; i++ )
            samples_add( &times, load.games[0].times.values[i] );
        netcode_messages_stats( first->messages, &stats );
        bytes += (double) stats.bytes_sent;
        messages += (double) stats.messages_sent;
        load_free( &load );
        world_close( &world );
    }

    samples_sort( &times );
    int p99 = milliseconds( samples_part( &times, 0.99 ) ), p999 = milliseconds( samples_part( &times, 0.999 ) );
    report( gate_most( p99, milliseconds( most99 ), 0 ), "sparse ordered, 50 ms, %g %%: p99 in ms", loss * 100.0 );
    report( gate_most( p999, milliseconds( most999 ), 0 ), "sparse ordered, 50 ms, %g %%: p99.9 in ms", loss * 100.0 );
    report( gate_most( bytes / messages, most_bytes, 0 ),
            "sparse ordered, %g %%: bytes on the wire for a message of 64", loss * 100.0 );
    samples_free( &times );
}

static void sparse( void )
{
    sparse_run( 0.0, 0.067, 0.067, 90.0 );
    sparse_run( 0.01, 0.083, 0.1, 230.0 );
    sparse_run( 0.03, 0.083, 0.1, 230.0 );
    sparse_run( 0.1, 0.1, 0.233, 230.0 );
}

/* ---- transfer: 5 MB, alone or beside a game ---- */

typedef struct {
    double rate;    /* bytes a second of it, 0 if it did not end */
    double p99;     /* of the game's messages in its direction */
    double queue99; /* of the packets' waits in the queue */
} transferred_t;

static transferred_t transfer_run( const path_t * path, int game, uint64_t seed )
{
    world_t world;
    load_t load;
    transferred_t result;
    struct netcode_messages_config_t config;
    path_t back = *path;
    memset( &result, 0, sizeof( result ) );
    memset( &load, 0, sizeof( load ) );
    memset( &config, 0, sizeof( config ) );
    config.max_message_bytes = 5000000;
    config.priorities[1] = 1;

    world_open( &world, path, &back, seed );
    double phase = seed == 1 ? 0.0 : dice_real( &world.dice );
    end_t * first = world_messages( &world, &config, 0.0, phase );
    load_attach( &load, first );
    load.transfer.bytes = 5000000;
    load.transfer.count = 1;
    load.transfer.channel = 1;
    load.transfer.from = game ? 2.0 : 0.0;
    for ( int i = 0; game && i < 2; i++ ) {
        load.games[i].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
        load.games[i].per_tick = 1;
        load.games[i].from = load.transfer.from;
        load.games[i].until = 1e9;
    }
    world.links[0].measured_from = load.transfer.from;
    world_run( &world, load.transfer.from + 200.0, &load.transfer.done );

    if ( load.transfer.done )
        result.rate = 5e6 / ( load.transfer.finished - load.transfer.from );
    samples_sort( &load.games[0].times );
    samples_sort( &world.links[0].waits );
    result.p99 = samples_part( &load.games[0].times, 0.99 );
    result.queue99 = samples_part( &world.links[0].waits, 0.99 );
    load_free( &load );
    world_close( &world );
    return result;
}

/* `late`: how late the game's messages may be beside it for now, in ms, and the queue's packets. */
static void transfer_lines( const char * name, const path_t * path, int game, double least, double least_now, int late,
                            int queue )
{
    transferred_t worst = { 1e300, 0.0, 0.0 };
    for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
        transferred_t one = transfer_run( path, game, (uint64_t) seed );
        worst.rate = one.rate < worst.rate ? one.rate : worst.rate;
        worst.p99 = one.p99 > worst.p99 ? one.p99 : worst.p99;
        worst.queue99 = one.queue99 > worst.queue99 ? one.queue99 : worst.queue99;
        if ( verbose )
            printf( "       %s%s, seed %d: %.0f kB/s, game's p99 %d ms, queue's %d ms\n", name,
                    game ? ", beside a game" : "", seed, one.rate / 1000.0, milliseconds( one.p99 ),
                    milliseconds( one.queue99 ) );
    }
    if ( !game ) {
        report( gate_least( floor( worst.rate / 1000.0 ), least, least_now ), "5 MB, %s: kB/s", name );
        return;
    }
    report( gate_most( milliseconds( worst.p99 ), milliseconds( path->delay + 0.06 ), late ),
            "60 Hz game beside 5 MB, %s: p99 in ms (%.0f kB/s)", name, worst.rate / 1000.0 );
    report( gate_most( milliseconds( worst.queue99 ), 60, queue ), "60 Hz game beside 5 MB, %s: the queue's p99 in ms",
            name );
}

/* The paths of a transfer, with what each must reach. */
static void transfers( int game )
{
    path_t path = path_with_queue( 0.025, 0.0, 1e6, 0.2 );
    transfer_lines( "25 ms, 1 MB/s", &path, game, 900, 900, 85, 60 );
    path.loss = 0.01;
    transfer_lines( "25 ms, 1 MB/s, 1 %", &path, game, 850, 850, 122, 60 );
    path = path_with_queue( 0.025, 0.0, 1e7, 0.2 );
    transfer_lines( "25 ms, 10 MB/s", &path, game, 7000, 4869, 91, 60 );
    path.loss = 0.01;
    transfer_lines( "25 ms, 10 MB/s, 1 %", &path, game, 4000, 4000, 156, 60 );
    path = path_with_queue( 0.05, 0.0, 1e6, 0.2 );
    transfer_lines( "50 ms, 1 MB/s", &path, game, 850, 850, 135, 73 );
    path.reorders = 1;
    path.jitter = 0.01;
    transfer_lines( "50 ms, 1 MB/s, +-10 ms", &path, game, 700, 700, 141, 69 );
    path.jitter = 0.04;
    transfer_lines( "50 ms, 1 MB/s, +-40 ms", &path, game, 400, 267, 147, 98 );
    path = path_with_queue( 0.05, 0.0, 4e6, 0.2 );
    transfer_lines( "50 ms, 4 MB/s", &path, game, 2800, 2653, 133, 78 );
}

static void transfer( void )
{
    transfers( 0 );
}

static void beside( void )
{
    transfers( 1 );
}

/* ---- share: two transfers, of two connections, over one link ---- */

enum { SHARE_WARM = 10, SHARE_SECONDS = 30 };

static double share_run( double delay, double rate, double queue_seconds, double loss, uint64_t seed )
{
    world_t world;
    load_t loads[2];
    struct netcode_messages_config_t config;
    path_t there = path_with_queue( delay, loss, rate, queue_seconds ), back = path_of( delay, loss );
    memset( loads, 0, sizeof( loads ) );
    memset( &config, 0, sizeof( config ) );
    world_open( &world, &there, &back, seed );
    for ( int i = 0; i < 2; i++ ) {
        double start = i ? 3.0 * dice_real( &world.dice ) : 0.0;
        end_t * first = world_messages( &world, &config, start, dice_real( &world.dice ) );
        load_attach( &loads[i], first );
        loads[i].transfer.bytes = 32000;
        loads[i].transfer.counts_from = SHARE_WARM;
    }
    world_run( &world, SHARE_WARM + SHARE_SECONDS, NULL );
    double a = (double) loads[0].transfer.counted_bytes, b = (double) loads[1].transfer.counted_bytes;
    if ( verbose )
        printf( "       %3d ms, %5.0f kB/s, queue %3d ms, %g %%: %.0f and %.0f kB/s\n", milliseconds( delay ),
                rate / 1000.0, milliseconds( queue_seconds ), loss * 100.0, a / SHARE_SECONDS / 1000.0,
                b / SHARE_SECONDS / 1000.0 );
    world_close( &world );
    return a + b > 0.0 ? ( a < b ? a : b ) / ( a + b ) : 0.0;
}

static void share( void )
{
    static const double rates[] = { 125e3, 250e3, 500e3, 1e6, 2e6, 5e6, 1e7 }, delays[] = { 0.01, 0.025, 0.05, 0.1 };
    static const double queues[] = { 0.05, 0.2 };
    int settings = 0, fair = 0;
    double least = 1.0;
    for ( int r = 0; r < 7; r++ )
        for ( int d = 0; d < 4; d++ )
            for ( int q = 0; q < 2; q++ )
                for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
                    double part = share_run( delays[d], rates[r], queues[q], 0.0, (uint64_t) seed );
                    settings++;
                    fair += part >= 0.4;
                    least = part < least ? part : least;
                }
    report( gate_least( floor( 100.0 * fair / settings ), 95, 60 ),
            "two transfers, 125 kB/s to 10 MB/s: %% of settings where each has 40 %%" );
    report( gate_least( floor( 100.0 * least ), 20, 1 ), "two transfers: the smallest share, in %%" );
}

/* ---- tcp: a transfer beside TCP with CUBIC ---- */

static void tcp_run( double rate, double delay, double queue_seconds )
{
    double least = 1.0, most = 0.0, least_tcp = 1.0;
    for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
        world_t world;
        load_t load;
        path_t there = path_with_queue( delay, 0.0, rate, queue_seconds ), back = path_of( delay, 0.0 );
        memset( &load, 0, sizeof( load ) );
        world_open( &world, &there, &back, (uint64_t) seed );
        end_t * first = world_messages( &world, NULL, seed % 3 == 2 ? 5.0 : 0.0, dice_real( &world.dice ) );
        load_attach( &load, first );
        load.transfer.bytes = 32000;
        load.transfer.counts_from = 10.0;
        end_t * tcp = world_tcp( &world, seed % 3 == 0 ? 5.0 : 0.1 );
        world_run( &world, 10.0, NULL );
        uint64_t before = tcp[1].receiver->bytes;
        world_run( &world, 70.0, NULL );
        double ours = (double) load.transfer.counted_bytes / ( rate * 60.0 );
        double its = (double) ( tcp[1].receiver->bytes - before ) / ( rate * 60.0 );
        least = ours < least ? ours : least;
        most = ours > most ? ours : most;
        least_tcp = its < least_tcp ? its : least_tcp;
        world_close( &world );
    }
    report( gate_least( floor( least * 100.0 ), 20, 20 ),
            "a transfer beside CUBIC, 1 MB/s, queue of %d ms: %% of the path, at least",
            milliseconds( queue_seconds ) );
    report( gate_most( ceil( most * 100.0 ), 60, 0 ),
            "a transfer beside CUBIC, 1 MB/s, queue of %d ms: %% of the path, at most", milliseconds( queue_seconds ) );
    report( gate_least( floor( least_tcp * 100.0 ), 40, queue_seconds < 0.05 ? 8 : 40 ),
            "CUBIC beside a transfer, 1 MB/s, queue of %d ms: %% of the path", milliseconds( queue_seconds ) );
}

static void tcp( void )
{
    tcp_run( 1e6, 0.025, 0.1 );
    tcp_run( 1e6, 0.025, 0.01 );
}

/* ---- paths on which outsiders found faults ---- */

#include "paths.h"

static int path_holds( const path_figures_t * figures, double share, double lost, double late )
{
    return ( share <= 0.0 || figures->share >= share ) && ( lost <= 0.0 || figures->lost <= lost ) &&
           ( late <= 0.0 || figures->late <= late ) && !figures->missing;
}

/* A line has up to three figures, each the worst of all seeds. */
static void paths( void )
{
    for ( size_t i = 0; i < sizeof( path_rows ) / sizeof( path_rows[0] ); i++ ) {
        const path_row_t * row = &path_rows[i];
        path_figures_t worst = { 1e300, 0.0, 0.0, 0 };
        for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
            path_figures_t one = path_run( row, (uint64_t) seed );
            worst.share = one.share < worst.share ? one.share : worst.share;
            worst.lost = one.lost > worst.lost ? one.lost : worst.lost;
            worst.late = one.late > worst.late ? one.late : worst.late;
            worst.missing += one.missing;
            if ( verbose )
                printf( "       seed %d: %.1f, %.2f %% lost, p99 %.0f ms\n", seed, one.share, one.lost, one.late );
        }
        int holds = path_holds( &worst, row->aim.share, row->aim.lost, row->aim.late );
        int may = !holds && ( row->now.share > 0.0 || row->now.lost > 0.0 || row->now.late > 0.0 ) &&
                  path_holds( &worst, row->now.share, row->now.lost, row->now.late );
        printf( "%s %-56s %6.1f (%g), %5.2f %% lost (%g), p99 %4.0f ms (%g)%s\n", verdict( holds, may ), row->name,
                worst.share, row->aim.share, worst.lost, row->aim.lost, worst.late, row->aim.late,
                worst.missing ? ", messages are missing" : "" );
        if ( row->peers )
            printf( "         %s\n", row->peers );
        fflush( stdout );
    }

    static const double queues[] = { 0.01, 0.05, 0.2, 1.0 };
    for ( int i = 0; i < 4; i++ ) {
        double more = 0.0;
        path_t there = path_with_queue( 0.02, 0.0, 1.25e6, queues[i] ), back = path_of( 0.02, 0.0 );
        for ( int seed = first_seed; seed < first_seed + seeds; seed++ )
            more += ( path_neighbour( &there, &back, 0, (uint64_t) seed ) -
                      path_neighbour( &there, &back, 1, (uint64_t) seed ) ) /
                    seeds;
        report( gate_most( more, 2, 2 ),
                "a neighbour's snapshots lost, 10 Mbit/s, queue of %d ms: points over beside TCP",
                milliseconds( queues[i] ) );
    }
}

/* ---- overload ---- */

static void overload( void )
{
    uint64_t least = UINT64_MAX;
    double most = 0.0;
    for ( int seed = first_seed; seed < first_seed + seeds; seed++ ) {
        world_t world;
        load_t load;
        path_t there = path_with_queue( 0.05, 0.0, 125e3, 0.2 ), back = path_of( 0.05, 0.0 );
        memset( &load, 0, sizeof( load ) );
        world_open( &world, &there, &back, (uint64_t) seed );
        end_t * first = world_messages( &world, NULL, 0.0, seed == 1 ? 0.0 : dice_real( &world.dice ) );
        load_attach( &load, first );
        load.games[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
        load.games[0].per_tick = 130;
        load.games[0].until = 1e9;
        world_run( &world, 60.0, NULL );
        double lost = 100.0 * (double) world.links[0].overflowed_to[1] / (double) world.links[0].sent_to[1];
        most = lost > most ? lost : most;
        least = load.games[0].received < least ? load.games[0].received : least;
        load_free( &load );
        world_close( &world );
    }
    report( gate_least( (double) least, 95000, 95000 ),
            "overload: messages of 64 bytes in 60 s, of 500 kB/s offered to 125 kB/s" );
    report( gate_most( most, 5, 8 ), "overload: packets lost, in percent" );
}

typedef struct {
    const char * name;
    void ( *run )( void );
} workload_t;

static const workload_t workloads[] = {
    { "cells", cells }, { "sparse", sparse }, { "transfer", transfer }, { "beside", beside },
    { "share", share }, { "tcp", tcp },       { "paths", paths },       { "overload", overload },
};

int main( int argc, char ** argv )
{
    int chosen = 0;
    if ( world_random_begin() != 0 || netcode_init() != NETCODE_OK )
        return 2;
    for ( int i = 1; i < argc; i++ )
        if ( !strcmp( argv[i], "--seeds" ) && i + 1 < argc )
            seeds = atoi( argv[++i] );
        else if ( !strcmp( argv[i], "--first-seed" ) && i + 1 < argc )
            first_seed = atoi( argv[++i] );
        else if ( !strcmp( argv[i], "--short" ) )
            seeds = 3;
        else if ( !strcmp( argv[i], "--verbose" ) )
            verbose = 1;
        else {
            size_t at = 0;
            while ( at < sizeof( workloads ) / sizeof( workloads[0] ) && strcmp( argv[i], workloads[at].name ) != 0 )
                at++;
            if ( at == sizeof( workloads ) / sizeof( workloads[0] ) ) {
                fprintf( stderr, "network: no workload is named %s\n", argv[i] );
                return 2;
            }
            workloads[at].run();
            chosen = 1;
        }
    for ( size_t i = 0; !chosen && i < sizeof( workloads ) / sizeof( workloads[0] ); i++ )
        workloads[i].run();
    printf( "%d lines, %d beyond their limits, %d open\n", lines, beyond, open_lines );
    netcode_term();
    return beyond != 0;
}
