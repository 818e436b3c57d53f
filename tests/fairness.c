/*  make fairness: what the players of a server with the default configuration hear of each other while one attacker floods it, over rates of
    updates, private keys, slots, kinds of attack and bandwidths. Each cell must hold: the others' packets are heard (99 %), with at most one tick of
    delay, for at most 15 % of a core more than without the attack. Where it does not, the reason is said: more arrives between two updates than the
    socket's buffer holds, so that the system drops; or taking it all, which is mostly the system's handing over, needs more than the 7.5 % of a core
    for which an update goes on receiving, so that it stays below 2 ms (attack 42). Any other is a failure. Virtual time; the work is real, and
    receiving takes as long as that of a small datagram takes on loopback here.

        fairness            all cells, some minutes
        fairness --short    a tenth of them
        fairness --slow     without the limit on a core's share, which a sanitizer or an emulated processor would miss */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include <math.h>

#include "fairness.h"

static double fair_calm[4][4]; /* a core's share without an attack, by rate and slots */

static const int fair_rates[] = { 20, 30, 60, 128 };
static const int fair_slots[] = { 16, 64, 256, 1000 };
static const int fair_megabits[] = { 7, 20, 60, 170 };
static const int fair_keys[] = { 1, 2, 4 };

static int fair_cells, fair_hold, fair_dropped, fair_slow, fair_failed;

static int fair_compare( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

/* Seconds of the processor that the system takes here to hand over a small datagram, with what this library does of it. */
static double fair_measure_receive( void )
{
    enum { ROUNDS = 31, COUNT = 256 };
    static uint8_t data[NC_RECEIVE_BATCH][NC_BUFFER_CAPACITY];
    struct netcode_address_t at;
    struct netcode_socket_t socket;
    struct netcode_datagram_t out, in[NC_RECEIVE_BATCH];
    nc_socket_request_t request;
    double seconds[ROUNDS];
    int family;
    memset( &request, 0, sizeof( request ) );
    memset( &out, 0, sizeof( out ) );
    memset( in, 0, sizeof( in ) );
    netcode_parse_address( "127.0.0.1:0", &at );
    request.allocator = nc_allocator_make( NULL, NULL, NULL );
    request.addresses[0] = &at;
    request.receive_buffer_bytes = request.send_buffer_bytes = 4 << 20;
    if ( nc_socket_open_udp( &socket, &request, &family ) != NC_SOCKET_OK )
        return 0.0;
    out.address = ( (nc_socket_udp_t *) socket.context )->bound[0];
    out.data = data[0];
    out.bytes = 43;
    for ( int round = 0; round < ROUNDS; round++ ) {
        int received = 0, count = 1;
        for ( int i = 0; i < COUNT; i++ )
            socket.send( socket.context, &out, 1 );
        double start = fair_cpu_seconds();
        while ( count > 0 ) {
            for ( int i = 0; i < NC_RECEIVE_BATCH; i++ ) {
                in[i].data = data[i];
                in[i].capacity = NC_BUFFER_CAPACITY;
            }
            count = socket.receive( socket.context, in, NC_RECEIVE_BATCH );
            received += count > 0 ? count : 0;
        }
        seconds[round] = ( fair_cpu_seconds() - start ) / ( received ? received : 1 );
    }
    socket.close( socket.context );
    qsort( seconds, ROUNDS, sizeof( seconds[0] ), fair_compare );
    return seconds[ROUNDS / 2];
}

static double fair_calm_core( int rate, int slots )
{
    struct fair_setting_t setting = { FAIR_NOTHING, fair_rates[rate], 1, fair_slots[slots], 0, 1.0 };
    struct fair_result_t result;
    if ( fair_calm[rate][slots] == 0.0 && fair_run( &setting, &result ) )
        fair_calm[rate][slots] = result.core;
    return fair_calm[rate][slots];
}

static void fair_one( int attack, int rate, int keys, int slots, int megabits, int slow )
{
    struct fair_setting_t setting =
        { attack, fair_rates[rate], fair_keys[keys], fair_slots[slots], fair_megabits[megabits], 1.0 };
    struct fair_result_t result;
    double calm = fair_calm_core( rate, slots ), more;
    const char * word = "ok";
    fair_cells++;
    if ( !fair_run( &setting, &result ) ) {
        printf( "FAILED: the players could not connect\n" );
        fair_failed++;
        return;
    }
    more = result.core - calm;
    if ( result.heard >= 0.99 && result.heard_least >= 0.97 && result.late <= 0.01 && ( more <= 0.15 || slow ) ) {
        fair_hold++;
    } else if ( !result.fits ) {
        word = "the system drops";
        fair_dropped++;
    } else if ( result.demand - calm > 60e-6 * NC_SERVER_RECEIVE_US ) {
        word = "the system's handing over takes too long";
        fair_slow++;
    } else {
        word = "FAILED";
        fair_failed++;
    }
    printf( "%-21s %4d %4d %5d %5d  %6.1f %6.1f %6.1f %6.1f  %6.1f %6.2f %7d  %s%s\n", fair_names[attack], setting.hz,
            setting.keys, setting.slots, setting.megabits, 100.0 * result.heard, 100.0 * result.heard_least,
            100.0 * result.late, 100.0 * result.victim, 100.0 * more, 1e3 * result.worst_update,
            result.buffer / 2 / 1024, word,
            result.fits && result.buffer > FAIR_BUFFER_USUAL ? ", needs a larger rmem_max" : "" );
    fflush( stdout );
}

int main( int argc, char ** argv )
{
    int part = 1, slow = 0, number = 0, i;
    for ( i = 1; i < argc; i++ ) {
        part = strcmp( argv[i], "--short" ) == 0 ? 11 : part;
        slow |= strcmp( argv[i], "--slow" ) == 0;
    }
    if ( netcode_init() != NETCODE_OK )
        return 1;
    fair.receive_seconds = fair_measure_receive();
    printf( "receiving a datagram takes %.2f us here\n", 1e6 * fair.receive_seconds );
    printf( "attack                  Hz keys slots  Mb/s   heard  least   late victim   core+  worst     KiB  (%%, %%, "
            "%%, %%; %% of a core; ms; of "
            "the socket's buffer)\n" );
    for ( int attack = FAIR_PAYLOADS; attack < FAIR_ATTACKS; attack++ )
        for ( int rate = 0; rate < 4; rate++ )
            for ( int keys = 0; keys < ( attack == FAIR_REQUESTS || attack == FAIR_TOKENS_VALID ? 3 : 1 ); keys++ )
                for ( int slots = 0; slots < 4; slots++ )
                    for ( int megabits = 0; megabits < 4; megabits++ )
                        if ( number++ % part == 0 )
                            fair_one( attack, rate, keys, slots, megabits, slow );
    netcode_term();
    printf( "%d cells: %d hold; in %d the system drops, in %d its handing over takes too long; %d failed\n", fair_cells,
            fair_hold, fair_dropped, fair_slow, fair_failed );
    return fair_failed ? 1 : 0;
}
