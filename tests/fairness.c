/*  make fairness: what the players of a server with the default configuration hear of each other while one attacker floods it, over rates of
    updates, private keys, slots, kinds of attack and bandwidths. Each cell must hold: the others' packets are heard (99 %), with at most one tick of
    delay, for at most 15 % of a core more than without the attack. Where more arrives between two updates than the socket's buffer holds, that is said,
    and the cell is not judged: what the system drops then no library hears. Nor is it where more datagrams arrive than an update may take: 1,100 for
    each sixtieth of a second, so that it stays under 2 ms (attack 42): receiving them is what costs then. Virtual time; the work is real.

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

static int fair_cells, fair_failed, fair_judged, fair_beyond;

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
    if ( !result.fits ) {
        word = "the system drops";
    } else if ( result.beyond ) {
        word = "more than an update takes";
        fair_beyond++;
    } else {
        fair_judged++;
        if ( result.heard < 0.99 || result.heard_least < 0.97 || result.late > 0.01 || ( more > 0.15 && !slow ) ) {
            word = "FAILED";
            fair_failed++;
        }
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
    printf( "%d cells: in %d more arrives than the socket's buffer holds, in %d more than an update takes; %d judged, "
            "%d failed\n",
            fair_cells, fair_cells - fair_judged - fair_beyond, fair_beyond, fair_judged, fair_failed );
    return fair_failed ? 1 : 0;
}
