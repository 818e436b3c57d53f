/*  make sim: servers, clients and an adversary in simulated time, all of it from one seed.

        sim [--seed N] [--seeds COUNT] [--days D] [--seconds S] [--until EVENT] [--trace] [--strict]
            [--messages] [--save FILE] [--load FILE]...

    Without arguments: seeds 1 to 32, one virtual day in all, and then 8 of them with messages. --messages: the players
    send messages and nothing else, each connection has a message object at both ends (tests/sim/messages.h). --days D: so many in all, shared by the seeds;
    --seconds S: so many for each seed. A failure names the check, the seed and the event; --until stops at an event
    and shows the last ones, --trace prints all. --strict: an empty cell in the table of events and states that is not
    explained is a failure (else it is only shown). --save keeps the totals in a file, --load adds those of another run
    of the same program: so a long run can be shared by several processors, and one table made of it.

    The clients are honest and unlucky, the adversary sees every datagram, and all clocks are wrong at times: see
    tests/sim/client.h, server.h, adversary.h, and world.h for storms and calms. What is checked: SIM_CHECKS in
    tests/sim/base.h. tests/faults/run.py --by sim puts faults into copies of netcode.h: each must be found. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"

#include "sim/world.h"
#include "sim/report.h"

enum { SIM_DEFAULT_SEEDS = 32, SIM_MESSAGE_SEEDS = 8 };

struct sim_options_t {
    uint64_t seed;
    uint64_t seeds;
    double days;
    int64_t seconds;
    const char * save;
    int loads;
    int is_strict;
    int has_messages;       /* all of them */
    uint64_t message_seeds; /* further ones */
};

static int sim_usage( const char * name )
{
    printf( "usage: %s [--seed N] [--seeds COUNT] [--days D] [--seconds S] [--until EVENT] [--trace] [--strict] "
            "[--messages] [--save FILE] [--load FILE]...\n",
            name );
    return 2;
}

static int sim_read_option( struct sim_options_t * o, const char * name, const char * value )
{
    if ( strcmp( name, "--seed" ) == 0 ) {
        o->seed = strtoull( value, NULL, 10 );
        o->seeds = o->seeds ? o->seeds : 1;
    } else if ( strcmp( name, "--seeds" ) == 0 )
        o->seeds = strtoull( value, NULL, 10 );
    else if ( strcmp( name, "--days" ) == 0 )
        o->days = strtod( value, NULL );
    else if ( strcmp( name, "--seconds" ) == 0 )
        o->seconds = strtoll( value, NULL, 10 );
    else if ( strcmp( name, "--until" ) == 0 )
        sim.until = strtoull( value, NULL, 10 );
    else if ( strcmp( name, "--save" ) == 0 )
        o->save = value;
    else if ( strcmp( name, "--load" ) == 0 )
        o->loads += sim_load_totals( value );
    else
        return 0;
    return 1;
}

static int sim_read_options( struct sim_options_t * o, int count, char ** arguments )
{
    for ( int i = 1; i < count; i++ ) {
        if ( strcmp( arguments[i], "--trace" ) == 0 )
            sim.tracing = 1;
        else if ( strcmp( arguments[i], "--strict" ) == 0 )
            o->is_strict = 1;
        else if ( strcmp( arguments[i], "--messages" ) == 0 )
            o->has_messages = 1;
        else if ( i + 1 >= count || !sim_read_option( o, arguments[i], arguments[i + 1] ) )
            return 0;
        else
            i++;
    }
    if ( !o->seeds && !o->loads ) {
        o->seeds = o->has_messages ? SIM_MESSAGE_SEEDS : SIM_DEFAULT_SEEDS;
        o->message_seeds = o->has_messages ? 0 : SIM_MESSAGE_SEEDS;
    }
    if ( !o->seconds && o->days > 0.0 && o->seeds )
        o->seconds = (int64_t) ( o->days * 86400.0 / (double) o->seeds + 0.5 );
    if ( !o->seconds )
        o->seconds = 86400 / SIM_DEFAULT_SEEDS;
    return o->seconds >= 120;
}

int main( int count, char ** arguments )
{
    struct sim_options_t options = { 1, 0, 0.0, 0, NULL, 0, 0, 0, 0 };
    uint64_t trace;
    if ( !sim_read_options( &options, count, arguments ) )
        return sim_usage( arguments[0] );
    randombytes_set_implementation( &sim_source );
    if ( netcode_init() != NETCODE_OK )
        return 2;
    netcode_set_assert_function( sim_assert_handler );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    if ( !SIM_LEDGER_WORKS )
        printf( "no nonce ledger: this linker has no --wrap\n" );
    sim.has_messages = options.has_messages;
    for ( uint64_t i = 0; i < options.seeds; i++ ) {
        sim_world( options.seed + i, options.seconds );
        if ( i % 100 == 99 ) {
            printf( "%" PRIu64 " seeds, %" PRIu64 " datagrams\n", i + 1, sim_total.datagrams );
            fflush( stdout );
        }
    }
    trace = sim_total.trace;
    sim.has_messages |= options.message_seeds > 0;
    for ( uint64_t i = 0; i < options.message_seeds; i++ )
        sim_world( options.seed + i, options.seconds );
    if ( options.message_seeds ) {
        printf( "trace with messages %016" PRIx64 "\n", sim_total.trace );
        sim_total.trace = trace; /* of the worlds without */
    }
    netcode_term();
    if ( options.save )
        sim_save_totals( options.save );
    return sim_report( options.is_strict );
}
