/*  What the simulation says at its end: totals, the checks, and the table of events and states, with a reason for every
    cell that can not be filled. */

#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "world.h"

/* ---- why a cell is empty ---- */

#define SIM_BIT( state ) ( 1u << ( state ) )

struct sim_reason_t {
    int first; /* kinds, from this one to that one */
    int last;
    unsigned states;
    const char * why;
};

enum {
    SIM_CLIENT_ANY = ( 1 << SIM_CLIENT_STATE_COUNT ) - 1,
    SIM_CLIENT_OBJECT = SIM_CLIENT_ANY & ~( 1 << SIM_CLIENT_absent ),
    SIM_CLIENT_SILENT = 1 << SIM_CLIENT_absent | 1 << SIM_CLIENT_invalid,
    SIM_SERVER_ANY = ( 1 << SIM_SERVER_STATE_COUNT ) - 1,
    SIM_SERVER_RUNS = SIM_SERVER_ANY & ~( 1 << SIM_SERVER_absent | 1 << SIM_SERVER_stopped )
};

static const struct sim_reason_t sim_client_reasons[] = {
    { SIM_C_CREATE, SIM_C_CREATE_FAILS, SIM_CLIENT_OBJECT, "there is an object already" },
    { SIM_C_DESTROY, SIM_C_PAUSE, SIM_BIT( SIM_CLIENT_absent ), "there is no object to call or to update" },
    { SIM_C_CLOCK_BACK, SIM_C_ERROR_PLACE, SIM_BIT( SIM_CLIENT_absent ), "there is no object to update" },
    { SIM_C_MOVE, SIM_C_REBIND, SIM_BIT( SIM_CLIENT_absent ), "a new object gets its port when it is created" },
    { SIM_C_SEND_FAULT, SIM_C_SEND_FAULT, SIM_CLIENT_SILENT, "all that was held back has left before" },
};

static const struct sim_reason_t sim_server_reasons[] = {
    { SIM_S_CREATE, SIM_S_CREATE_FAILS, SIM_SERVER_ANY & ~SIM_BIT( SIM_SERVER_absent ), "there is an object already" },
    { SIM_S_START, SIM_S_UNIX_STEP, SIM_BIT( SIM_SERVER_absent ), "there is no object to call or to update" },
    { SIM_S_SEND_FAULT, SIM_S_ERROR_PLACE, SIM_BIT( SIM_SERVER_absent ), "there is no object to use its socket" },
    { SIM_S_SEND_FAULT, SIM_S_ERROR_PLACE, SIM_BIT( SIM_SERVER_stopped ),
      "a stopped server neither sends nor receives" },
    { SIM_S_SEND, SIM_S_BROADCAST, SIM_BIT( SIM_SERVER_stopped ), "the application talks only while it runs" },
};

static const char * sim_why( const struct sim_reason_t * reasons, size_t count, int kind, int state )
{
    for ( size_t i = 0; i < count; i++ )
        if ( kind >= reasons[i].first && kind <= reasons[i].last && reasons[i].states >> state & 1 )
            return reasons[i].why;
    return NULL;
}

struct sim_table_t {
    const char * title;
    const char * const * kinds;
    const char * const * states;
    const uint64_t * cells;
    int kind_count;
    int state_count;
    const struct sim_reason_t * reasons;
    size_t reason_count;
};

static void sim_print_table( const struct sim_table_t * t )
{
    printf( "%-16s", t->title );
    for ( int state = 0; state < t->state_count; state++ )
        printf( " %14s", t->states[state] );
    printf( "\n" );
    for ( int kind = 0; kind < t->kind_count; kind++ ) {
        printf( "%-16s", t->kinds[kind] );
        for ( int state = 0; state < t->state_count; state++ ) {
            uint64_t cell = t->cells[kind * t->state_count + state];
            const char * why = sim_why( t->reasons, t->reason_count, kind, state );
            if ( cell || !why )
                printf( " %14" PRIu64, cell );
            else
                printf( " %14s", "-" );
        }
        printf( "\n" );
    }
}

/* Returns how many cells are empty without a reason, or filled against one. */
static int sim_count_unexplained( const struct sim_table_t * t )
{
    int unexplained = 0;
    for ( int kind = 0; kind < t->kind_count; kind++ )
        for ( int state = 0; state < t->state_count; state++ ) {
            uint64_t cell = t->cells[kind * t->state_count + state];
            const char * why = sim_why( t->reasons, t->reason_count, kind, state );
            if ( ( cell != 0 ) != ( why != NULL ) )
                continue;
            printf( "    ! %s in %s: %s%s\n", t->kinds[kind], t->states[state],
                    why ? "it happened, although " : "it never happened, and nothing explains it", why ? why : "" );
            unexplained++;
        }
    return unexplained;
}

static void sim_print_reasons( const struct sim_table_t * t )
{
    for ( size_t i = 0; i < t->reason_count; i++ ) {
        const struct sim_reason_t * r = &t->reasons[i];
        printf( "    - %s%s%s in", t->kinds[r->first], r->first == r->last ? "" : " to ",
                r->first == r->last ? "" : t->kinds[r->last] );
        for ( int state = 0; state < t->state_count; state++ )
            if ( r->states >> state & 1 )
                printf( " %s", t->states[state] );
        printf( ": %s\n", r->why );
    }
}

static void sim_print_checks( void )
{
    printf( "checks, and how often each was made\n" );
    for ( int i = 0; i < SIM_CHECK_COUNT; i++ )
        printf( "    %-20s %14" PRIu64 "  %s\n", sim_check_names[i], sim_total.checks[i], sim_check_texts[i] );
}

/* Those of messages are made in worlds with messages, those of payloads in the others; loaded totals have the latter. */
static int sim_is_asked( int check )
{
    int is_of_messages = check >= SIM_CHECK_message_intact && check <= SIM_CHECK_message_delivery;
    int is_of_payloads = check >= SIM_CHECK_payload_intact && check <= SIM_CHECK_payload_session;
    return is_of_messages ? sim.worlds[1] > 0 : !is_of_payloads || sim.worlds[0] > 0 || sim.worlds[1] == 0;
}

/* Every check but the one that only an assert makes; the ledger's need the linker's help. */
static int sim_count_idle_checks( void )
{
    int idle = 0;
    for ( int i = 0; i < SIM_CHECK_COUNT; i++ )
        if ( sim_total.checks[i] == 0 && i != SIM_CHECK_no_assert && sim_is_asked( i ) &&
             ( SIM_LEDGER_WORKS || ( i != SIM_CHECK_nonce_ledger && i != SIM_CHECK_update_opens ) ) ) {
            printf( "FAILED: the check %s was never made\n", sim_check_names[i] );
            idle++;
        }
    return idle;
}

static void sim_print_totals( void )
{
    uint64_t seconds = sim_total.ticks / SIM_SECOND;
    printf( "%" PRIu64 " seeds, %" PRIu64 ".%03d virtual days, %" PRIu64 " events, %" PRIu64 " datagrams, %" PRIu64
            " handshakes, %" PRIu64 " connects, %" PRIu64 " payloads, %" PRIu64 " faults injected, %" PRIu64
            " seals, %" PRIu64 " opens\n",
            sim_total.seeds, seconds / 86400, (int) ( seconds % 86400 * 1000 / 86400 ), sim_total.events,
            sim_total.datagrams, sim_total.handshakes, sim_total.connects, sim_total.payloads, sim_total.faults,
            sim_total.seals, sim_total.opens );
    printf( "%" PRIu64 " addresses of connected clients probed, with %" PRIu64 " probes; %" PRIu64 " moves; %" PRIu64
            " addresses taken from a slot for another\n",
            sim_total.candidates, sim_total.probes, sim_total.moves, sim_total.handed_over );
    printf( "%" PRIu64 " payloads of one use of a token in another's session (SECURITY.md; 2^-15 for each pair)\n",
            sim_total.limits );
    printf( "%" PRIu64 " payloads of one use of a token in another client object (SECURITY.md)\n",
            sim_total.replayed_tokens );
    printf( "trace %016" PRIx64 "\n", sim_total.trace );
}

/* ---- totals of several runs ---- */

/* They are numbers of 64 bits, all of them. */
enum { SIM_TOTAL_WORDS = sizeof( sim_total ) / sizeof( uint64_t ) };

static void sim_save_totals( const char * path )
{
    FILE * file = fopen( path, "wb" );
    if ( !file || fwrite( &sim_total, sizeof( sim_total ), 1, file ) != 1 || fclose( file ) != 0 )
        printf( "%s can not be written\n", path );
}

/* Returns 1; without such a file there is nothing to go on with. */
static int sim_load_totals( const char * path )
{
    static uint64_t more[SIM_TOTAL_WORDS];
    uint64_t trace = sim_total.trace, sum;
    FILE * file = fopen( path, "rb" );
    if ( !file || fread( more, sizeof( sim_total ), 1, file ) != 1 ) {
        printf( "%s can not be read\n", path );
        exit( 2 );
    }
    fclose( file );
    for ( size_t i = 0; i < SIM_TOTAL_WORDS; i++ ) {
        uint8_t * at = (uint8_t *) &sim_total + i * sizeof( sum );
        memcpy( &sum, at, sizeof( sum ) );
        sum += more[i];
        memcpy( at, &sum, sizeof( sum ) );
    }
    sim_total.trace = sim_mix( trace * 3 + ( sim_total.trace - trace ) );
    return 1;
}

/* Returns the program's status. */
static int sim_report( int is_strict )
{
    static const struct sim_table_t clients = {
        "client",
        sim_client_kinds,
        sim_client_states,
        &sim_total.client_table[0][0],
        SIM_CLIENT_KIND_COUNT,
        SIM_CLIENT_STATE_COUNT,
        sim_client_reasons,
        sizeof( sim_client_reasons ) / sizeof( sim_client_reasons[0] ),
    };
    static const struct sim_table_t servers = {
        "server",
        sim_server_kinds,
        sim_server_states,
        &sim_total.server_table[0][0],
        SIM_SERVER_KIND_COUNT,
        SIM_SERVER_STATE_COUNT,
        sim_server_reasons,
        sizeof( sim_server_reasons ) / sizeof( sim_server_reasons[0] ),
    };
    int unexplained, idle;
    sim_print_table( &clients );
    sim_print_reasons( &clients );
    unexplained = sim_count_unexplained( &clients );
    sim_print_table( &servers );
    sim_print_reasons( &servers );
    unexplained += sim_count_unexplained( &servers );
    sim_print_checks();
    idle = sim_count_idle_checks();
    sim_print_totals();
    printf( "%d cells of the table are empty without a reason, or filled against one\n", unexplained );
    return idle || ( is_strict && unexplained ) || sim_total.limits * 4096 > sim_total.connects + 16384;
}

#endif
