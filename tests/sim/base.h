/*  The ground of the simulation: numbers that a seed repeats, the trace, the checks with their counts, the table of
    events and states, and how a failure is reported. Run by tests/sim.c. */

#ifndef SIM_BASE_H
#define SIM_BASE_H

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  Time is counted in ticks of 1/1024 s: every time that the library sees, and every difference of two, is then exact
    in a double, on every processor and at every optimisation. */
enum { SIM_SECOND = 1024, SIM_SLOW_STEP = 104, SIM_FAST_STEP = 16, SIM_LAST_EVENTS = 48 };

enum { SIM_SERVERS = 4, SIM_CLIENTS = 12, SIM_PUPPETS = 10 };

/* clang-format off */
#define SIM_CHECKS( X )                                                                                               \
    X( nonce_ledger        , "no key and nonce seals twice, over the whole life of a key" )                           \
    X( identity            , "a slot's id, user data and keys are those of one token, which names this server" )      \
    X( token_once          , "no token connects twice on one server process" )                                        \
    X( presenter           , "a client is connected only at an address where its token's keys are held" )             \
    X( admission           , "no client connects that the application refused, or under a removed key" )              \
    X( one_id              , "a client id is connected once on a server" )                                            \
    X( client_connected    , "a client believes it is connected only where a server has or had it" )                  \
    X( payload_intact      , "a payload is what was sent" )                                                           \
    X( payload_once        , "a payload is delivered once" )                                                          \
    X( payload_session     , "a payload stays in its session" )                                                       \
    X( amplification       , "bytes to where no slot is <= 0.31 of those that came in this call; probes <= new packets" ) \
    X( path_proven         , "nothing but probes leaves for where no client connected or sent a probe back" )         \
    X( path_kept           , "an address leads to one slot, and is taken from it for another only" )   \
    X( datagram_shape      , "what is sent has 18 to 1225 bytes and a target" )                                       \
    X( update_opens        , "an update opens no more than its budget pays for" )                                     \
    X( update_datagrams    , "an update takes no more datagrams than its budget pays for" )                           \
    X( update_seals        , "an update seals no more than its slots and what it took explain" )                      \
    X( update_drains       , "with nothing new arriving, updates empty the socket" )                                  \
    X( callbacks_alternate , "connects and disconnects of a slot alternate, states follow the arrows" )               \
    X( events_agree        , "events come in the order of the callbacks, and name the same sessions" )                \
    X( slots_agree         , "the server's counts are those of the model" )                                           \
    X( slot_ends           , "no slot outlives its silence" )                                                         \
    X( pending_ends        , "no handshake outlives its patience" )                                                   \
    X( invariants          , "the books of every object balance" )                                                    \
    X( counters            , "every datagram is counted once, as accepted or as dropped" )                            \
    X( slots_left          , "after everyone left and the longest timeout has passed, no slot is taken" )             \
    X( pending_left        , "then no handshake is pending" )                                                         \
    X( pool_left           , "then every packet buffer is back" )                                                     \
    X( memory_left         , "what was destroyed has given its memory and its socket back" )                          \
    X( connect_bound       , "on a healed network an honest client connects within the bound" )                       \
    X( undisturbed         , "on a healed network no connected client is lost" )                                      \
    X( calm_delivery       , "on a healed network every payload arrives" )                                            \
    X( move_bound          , "on a healed network a client's new address is found within the bound" )                 \
    X( message_intact      , "a message is what was sent" )                                                           \
    X( message_once        , "a message is delivered once" )                                                          \
    X( message_order       , "messages come in order where that is promised, and never late where the newest counts" ) \
    X( message_session     , "a message stays in its connection" )                                                    \
    X( message_delivery    , "once the network is healed, what is reliable arrives, lost or not" )                     \
    X( no_assert           , "no netcode_assert fails" )

/* What can happen to a client's machine, and to a server's. GOT_...: a datagram arrives there. */
#define SIM_CLIENT_KINDS( X )                                                                                         \
    X( CREATE ) X( CREATE_FAILS ) X( DESTROY ) X( CRASH ) X( CONNECT ) X( DISCONNECT ) X( UPDATE ) X( SEND )          \
    X( PAUSE ) X( MOVE ) X( LOSE ) X( REBIND ) X( CLOCK_BACK ) X( CLOCK_STILL ) X( CLOCK_JUMP ) X( CLOCK_MAD ) X( SEND_FAULT )              \
    X( RECEIVE_FAULT ) X( ERROR_PLACE ) X( GOT_DENIED ) X( GOT_CHALLENGE ) X( GOT_KEEP_ALIVE ) X( GOT_PAYLOAD )       \
    X( GOT_DISCONNECT ) X( GOT_REPLAYED ) X( GOT_REFLECTED ) X( GOT_FORGED ) X( GOT_JUNK ) X( GOT_EMPTY )             \
    X( GOT_OVERSIZED )
#define SIM_CLIENT_STATES( X )                                                                                        \
    X( absent ) X( expired ) X( invalid ) X( timed_out ) X( resp_timed_out ) X( req_timed_out ) X( denied )           \
    X( disconnected ) X( requesting ) X( responding ) X( connected )
#define SIM_SERVER_KINDS( X )                                                                                         \
    X( CREATE ) X( CREATE_FAILS ) X( START ) X( START_FAILS ) X( STOP ) X( DESTROY ) X( CRASH ) X( UPDATE ) X( KEYS ) \
    X( KICK ) X( SEND ) X( BROADCAST ) X( PAUSE ) X( CLOCK_BACK ) X( CLOCK_STILL ) X( CLOCK_JUMP ) X( CLOCK_MAD )     \
    X( UNIX_STEP ) X( SEND_FAULT ) X( RECEIVE_FAULT ) X( ERROR_PLACE ) X( GOT_REQUEST ) X( GOT_RESPONSE )             \
    X( GOT_KEEP_ALIVE ) X( GOT_PAYLOAD ) X( GOT_DISCONNECT ) X( GOT_REPLAYED ) X( GOT_REFLECTED ) X( GOT_FORGED )     \
    X( GOT_JUNK ) X( GOT_EMPTY ) X( GOT_OVERSIZED ) X( GOT_OWN_REQUEST ) X( GOT_OWN_RESPONSE ) X( GOT_OWN_OTHER )     \
    X( GOT_STOLEN )
#define SIM_SERVER_STATES( X ) X( absent ) X( stopped ) X( empty ) X( some ) X( full )
/* clang-format on */

enum {
#define SIM_ENUM( name, text ) SIM_CHECK_##name,
    SIM_CHECKS( SIM_ENUM ) SIM_CHECK_COUNT
#undef SIM_ENUM
};
enum {
#define SIM_ENUM( name ) SIM_C_##name,
    SIM_CLIENT_KINDS( SIM_ENUM ) SIM_CLIENT_KIND_COUNT
#undef SIM_ENUM
};
enum {
#define SIM_ENUM( name ) SIM_S_##name,
    SIM_SERVER_KINDS( SIM_ENUM ) SIM_SERVER_KIND_COUNT
#undef SIM_ENUM
};
enum {
#define SIM_ENUM( name ) SIM_CLIENT_##name,
    SIM_CLIENT_STATES( SIM_ENUM ) SIM_CLIENT_STATE_COUNT
#undef SIM_ENUM
};
enum {
#define SIM_ENUM( name ) SIM_SERVER_##name,
    SIM_SERVER_STATES( SIM_ENUM ) SIM_SERVER_STATE_COUNT
#undef SIM_ENUM
};

#define SIM_NAME( name ) #name,
static const char * const sim_check_names[] = {
#define SIM_CHECK_NAME( name, text ) #name,
    SIM_CHECKS( SIM_CHECK_NAME ) };
static const char * const sim_check_texts[] = {
#define SIM_CHECK_TEXT( name, text ) text,
    SIM_CHECKS( SIM_CHECK_TEXT ) };
static const char * const sim_client_kinds[] = { SIM_CLIENT_KINDS( SIM_NAME ) };
static const char * const sim_server_kinds[] = { SIM_SERVER_KINDS( SIM_NAME ) };
static const char * const sim_client_states[] = { SIM_CLIENT_STATES( SIM_NAME ) };
static const char * const sim_server_states[] = { SIM_SERVER_STATES( SIM_NAME ) };

struct sim_event_t {
    uint64_t number;
    int64_t tick;
    const char * what;
    int index;
    int state;
    int is_server;
};

/* What lasts over all seeds. */
static struct {
    uint64_t checks[SIM_CHECK_COUNT];
    uint64_t client_table[SIM_CLIENT_KIND_COUNT][SIM_CLIENT_STATE_COUNT];
    uint64_t server_table[SIM_SERVER_KIND_COUNT][SIM_SERVER_STATE_COUNT];
    uint64_t seeds;
    uint64_t ticks;
    uint64_t events;
    uint64_t datagrams; /* that arrived somewhere */
    uint64_t handshakes;
    uint64_t connects;
    uint64_t payloads;
    uint64_t candidates; /* addresses that servers probed */
    uint64_t probes;     /* to them */
    uint64_t moves;
    uint64_t handed_over; /* addresses that another slot took */
    uint64_t faults;
    uint64_t limits;          /* deliveries that examples/docs/SECURITY.md allows: one token, two sessions */
    uint64_t replayed_tokens; /* the same: one token, two client objects */
    uint64_t trace;
    uint64_t seals;
    uint64_t opens;
} sim_total;

/* The run of one seed. */
static struct {
    uint64_t seed;
    int64_t seconds; /* how long it is */
    int64_t tick;
    uint64_t random;
    uint64_t library_random;
    uint64_t trace;
    uint64_t event;
    uint64_t until; /* stop at this event; 0: never */
    int tracing;
    int has_messages; /* players send messages, and nothing else */
    int worlds[2];    /* that were run, without messages and with them */
    struct sim_event_t last[SIM_LAST_EVENTS];
} sim;

/* ---- numbers ---- */

static uint64_t sim_mix( uint64_t x )
{
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

static uint64_t sim_next( uint64_t * state )
{
    *state += 0x9e3779b97f4a7c15u;
    return sim_mix( *state );
}

static int sim_below( int limit )
{
    return (int) ( ( sim_next( &sim.random ) >> 33 ) % (uint64_t) limit );
}

static int sim_between( int low, int high )
{
    return low + sim_below( high - low + 1 );
}

/* 1 in `many` times. */
static int sim_rarely( int many )
{
    return sim_below( many ) == 0;
}

static void sim_fill_random( uint64_t * state, uint8_t * data, size_t bytes )
{
    uint64_t word = 0;
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( i % 8 == 0 )
            word = sim_next( state );
        data[i] = (uint8_t) ( word >> ( 8 * ( i % 8 ) ) );
    }
}

static void sim_random_bytes( uint8_t * data, size_t bytes )
{
    sim_fill_random( &sim.random, data, bytes );
}

/* libsodium's random numbers, and so the library's, from the seed too. */
static const char * sim_source_name( void )
{
    return "sim";
}

static uint32_t sim_source_word( void )
{
    return (uint32_t) ( sim_next( &sim.library_random ) >> 32 );
}

static void sim_source_bytes( void * const buffer, const size_t bytes )
{
    sim_fill_random( &sim.library_random, (uint8_t *) buffer, bytes );
}

static struct randombytes_implementation sim_source =
    { sim_source_name, sim_source_word, NULL, NULL, sim_source_bytes, NULL };

/* ---- the trace ---- */

static void sim_trace( uint64_t value )
{
    sim.trace = sim_mix( sim.trace ^ ( value + 0x9e3779b97f4a7c15u ) );
}

static uint64_t sim_load( const uint8_t * data, int bytes )
{
    uint64_t value = 0;
    while ( bytes-- > 0 )
        value = value << 8 | data[bytes];
    return value;
}

/*  A sealed datagram is known by its head and its tag. What is inside a challenge is the server's own affair: it binds
    a hash of the address, and for an IPv6 address that follows the processor's byte order. So the tags of challenges,
    and of the responses that bring them back, are left out. */
static void sim_trace_datagram( const uint8_t * data, int bytes )
{
    int type = bytes > 0 ? data[0] & 15 : 0;
    sim_trace( (uint64_t) bytes );
    if ( bytes < 24 )
        return;
    if ( type == 2 || type == 3 ) {
        sim_trace( sim_load( data, 1 + ( data[0] >> 4 & 7 ) ) );
        return;
    }
    sim_trace( sim_load( data, 8 ) );
    sim_trace( sim_load( data + bytes - 16, 8 ) ^ sim_load( data + bytes - 8, 8 ) );
}

/* ---- events and failures ---- */

static const char * sim_state_name( const struct sim_event_t * event )
{
    return event->is_server ? sim_server_states[event->state] : sim_client_states[event->state];
}

static void sim_print_event( const struct sim_event_t * event )
{
    printf( "    %10" PRIu64 "  %10" PRId64 ".%03d s  %s %d (%s) %s\n", event->number, event->tick / SIM_SECOND,
            (int) ( event->tick % SIM_SECOND * 1000 / SIM_SECOND ), event->is_server ? "server" : "client",
            event->index, sim_state_name( event ), event->what );
}

static void sim_print_last( void )
{
    uint64_t from = sim.event > SIM_LAST_EVENTS ? sim.event - SIM_LAST_EVENTS : 0;
    for ( ; from < sim.event; from++ )
        sim_print_event( &sim.last[from % SIM_LAST_EVENTS] );
}

static void sim_note( int is_server, int index, int state, const char * what )
{
    struct sim_event_t * event = &sim.last[sim.event % SIM_LAST_EVENTS];
    event->number = ++sim.event;
    event->tick = sim.tick;
    event->what = what;
    event->index = index;
    event->state = state;
    event->is_server = is_server;
    if ( sim.tracing )
        sim_print_event( event );
    if ( sim.event != sim.until )
        return;
    printf( "stopped at event %" PRIu64 " of seed %" PRIu64 ", trace %016" PRIx64 "; the last events:\n", sim.event,
            sim.seed, sim.trace );
    sim_print_last();
    exit( 0 );
}

static void sim_fail( int check, const char * format, ... )
{
    va_list arguments;
    printf( "the last events:\n" );
    sim_print_last();
    printf( "FAILED check %s (%s)\n    seed %" PRIu64 ", event %" PRIu64 ", %" PRId64 ".%03d s: ",
            sim_check_names[check], sim_check_texts[check], sim.seed, sim.event, sim.tick / SIM_SECOND,
            (int) ( sim.tick % SIM_SECOND * 1000 / SIM_SECOND ) );
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    printf( "\n    rerun: sim --seed %" PRIu64 " --seconds %" PRId64 " --until %" PRIu64 " --trace%s\n", sim.seed,
            sim.seconds, sim.event, sim.has_messages ? " --messages" : "" );
    fflush( stdout );
    exit( 1 );
}

/* A check by name; the words behind the condition are printed when it does not hold. */
#define SIM_CHECK( name, condition, ... )              \
    do {                                               \
        sim_total.checks[SIM_CHECK_##name]++;          \
        if ( !( condition ) )                          \
            sim_fail( SIM_CHECK_##name, __VA_ARGS__ ); \
    } while ( 0 )

static void sim_assert_handler( const char * condition, const char * function, const char * file, int line )
{
    sim_fail( SIM_CHECK_no_assert, "netcode_assert( %s ) failed in %s, %s:%d", condition, function, file, line );
}

#endif
