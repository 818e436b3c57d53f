/*  make torture: all that the library asks of the system is refused in turn. Four sweeps under the address and the
    undefined-behaviour sanitizer:

    1  stories, memory   the n-th allocation fails, for every n, alone and with others, by the hooks and by malloc
    2  stories, system   the n-th call of the socket fails with each error of threat 52, for every n, alone and with others
    3  runner's tests    each test of the runner, while the n-th allocation fails; its own checks may fail then
    4  stories, search   one kind of call of the socket, or one option, is refused with each of 43 errors: for good, later,
                         for a second, one time in three. Without what is optional the first attempt connects; waits wait,
                         and the log has a few lines a second

    Nothing crashes, leaks, stays open, sticks or asserts. A create that fails says why, and what it took is given back.
    When the fault is gone the story connects and talks, and the counters say what was refused.

    cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I. tests/torture.c -lsodium -lm $wrap -o torture
    with $wrap as in tests/main.c, then: torture [SWEEP [NAME]], where NAME is a part of a story's or a test's name;
    torture runner [...] is the runner alone (tests/tools/mcdc.sh wants all in one program). With -DTORTURE_STORIES_ONLY the runner and $wrap are left out, as for other builds (NETCODE_NO_LINUX_EXTRAS). Needs
    libsodium; sweep 2 needs Linux with glibc. */

#if defined( __linux__ ) && !defined( _GNU_SOURCE )
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture/watch.h"

#include "waits.h"

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#define malloc( bytes ) watch_malloc( bytes )
#define free( pointer ) watch_free( pointer )
#include "../netcode.h"
#undef malloc
#undef free
#undef select
#undef socket
#undef bind

#include "torture/stories.h"

#if !defined( TORTURE_STORIES_ONLY )
#include "torture/runner.h"
/* What was refused does not come, however long a test waits for it. */
#undef TEST_LIMIT_SECONDS
#define TEST_LIMIT_SECONDS ( watcher.hurry ? 2.0 : 60.0 )
/* Beside the system's own header, a union of pointers in the place of an address is a warning. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "main.c"
#pragma GCC diagnostic pop
#undef main
#elif TORTURE_SYSTEM
#include "torture/plain.h"
#endif

enum { RUNNER_UPDATES = 300, RUNNER_FAULTS = 24 };

static int torture_asserts;

static struct {
    const char * name;
    int runs;
    int points;
    int refused_creates;
    int refused_starts;
} tally;

static int torture_wanted( const char * name, const char * file )
{
    return strstr( name, tally.name ) != NULL || strstr( file, tally.name ) != NULL;
}

static int torture_ipv6( void )
{
    struct sockaddr_in6 address;
    int handle = socket( AF_INET6, SOCK_DGRAM, 0 ), good;
    if ( handle < 0 )
        return 0;
    memset( &address, 0, sizeof( address ) );
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[15] = 1;
    good = bind( handle, (struct sockaddr *) &address, sizeof( address ) ) == 0;
    close( handle );
    return good;
}

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS ) && defined( SO_REUSEPORT )
#define TORTURE_SHARES 1
#else
#define TORTURE_SHARES 0
#endif

static int torture_can( const struct story_t * story )
{
    static int ipv6 = -1;
    if ( ipv6 < 0 && !( ipv6 = torture_ipv6() ) )
        watch_print( "   without the stories of IPv6: no ::1 here\n" );
    return torture_wanted( story->name, "stories" ) && ( ipv6 || !story->dual ) && ( TORTURE_SHARES || !story->share );
}

/* Where the runner is here, its nonce ledger is too: no fault may lead to a nonce that is used twice. */
static void torture_run( const struct story_t * story, struct stage_how_t how )
{
    tally.runs++;
    torture_asserts = 0;
#if !defined( TORTURE_STORIES_ONLY )
    ledger_reset();
    test_state.failures = 0;
#endif
    stage_run( story, how );
    tally.refused_creates += stage.refused_creates;
    tally.refused_starts += stage.refused_starts;
    if ( torture_asserts )
        watch_finding( "%d asserts failed", torture_asserts );
#if !defined( TORTURE_STORIES_ONLY )
    if ( test_state.failures )
        watch_finding( "the nonce ledger has %d failures", test_state.failures );
#endif
}

static void torture_assert( const char * condition, const char * function, const char * file, int line )
{
    if ( torture_asserts++ == 0 )
        watch_finding( "%s:%d: netcode_assert( %s ) failed in %s", file, line, condition, function );
}

/* ---- 1: memory ---- */

static void torture_memory_of( const struct story_t * story, int hooks, int fail_for )
{
    int n, refused = 1;
    for ( n = 1; refused && n < 10000; n++ ) {
        watch_where( "1 \"%s\", by %s, allocation %d and %d more", story->name, hooks ? "hooks" : "malloc", n,
                     fail_for - 1 );
        watch_arm( n, fail_for );
        system_arm( 0, 0, 0, SYSTEM_ALL );
        torture_run( story, ( struct stage_how_t ){ hooks, fail_for == 1, 0, 0 } );
        refused = watcher.refused;
        tally.points += refused > 0;
    }
    watch_arm( 0, 0 );
}

static void torture_memory( void )
{
    static const int lengths[] = { 1, 3, 20 };
    int i, length, tried = 0;
    for ( i = 0; i < STORIES; i++ )
        for ( length = 0; length < 3 && torture_can( &stories[i] ); length++ ) {
            torture_memory_of( &stories[i], 1, lengths[length] );
            torture_memory_of( &stories[i], 0, lengths[length] );
            tried += length == 0;
        }
    watch_print( "1 memory: %d stories, %d runs in which allocations failed (%d creates and %d starts with them)\n",
                 tried, tally.points, tally.refused_creates, tally.refused_starts );
}

/* ---- 2: system calls ---- */

static const struct {
    int error;
    const char * name;
} torture_errors[] = { { EAGAIN, "EAGAIN" },     { EINTR, "EINTR" },     { ECONNREFUSED, "ECONNREFUSED" },
                       { EMSGSIZE, "EMSGSIZE" }, { ENOBUFS, "ENOBUFS" }, { ENETUNREACH, "ENETUNREACH" },
                       { EPERM, "EPERM" },       { ENOMEM, "ENOMEM" } };

enum { TORTURE_ERRORS = sizeof( torture_errors ) / sizeof( torture_errors[0] ) };

static const struct torture_mode_t {
    const char * name;
    int fail_for;
    unsigned int kinds;
    int step; /* every so many calls are begun with */
} torture_modes[] = { { "alone", 1, SYSTEM_ALL, 1 },
                      { "and 3 more", 4, SYSTEM_ALL, 5 },
                      { "and all that send, receive or wait for 2 s", 1 << 30,
                        SYSTEM_SENDS | SYSTEM_RECEIVES | SYSTEM_BIT( SELECT ), 11 } };

static int torture_kinds[SYSTEM_CALL_KINDS];

static int torture_system_once( const struct story_t * story, const struct torture_mode_t * mode, int error, int n )
{
    int kind;
    watch_where( "2 \"%s\", call %d %s, %s", story->name, n, mode->name, torture_errors[error].name );
    watch_arm( 0, 0 );
    system_arm( n, mode->fail_for, torture_errors[error].error, mode->kinds );
    torture_run( story, ( struct stage_how_t ){ 0, mode->fail_for == 1, 0, 0 } );
    for ( kind = 0; kind < SYSTEM_CALL_KINDS; kind++ )
        torture_kinds[kind] += system_state.counts[kind];
    return system_state.refused > 0;
}

/* Returns how many calls the story makes, as far as it was tried. */
static int torture_system_of( const struct story_t * story, const struct torture_mode_t * mode )
{
    int n, error, most = 0;
    for ( error = 0; error < TORTURE_ERRORS; error++ )
        for ( n = 1; n < 10000 && torture_system_once( story, mode, error, n ); n += mode->step )
            most = n > most ? n : most;
    return most;
}

static void torture_system( void )
{
    int i, mode, kind, tried = 0;
    if ( !TORTURE_SYSTEM ) {
        watch_print( "2 system: skipped: needs glibc on x86-64, or -DTORTURE_STORIES_ONLY and glibc on 64 bits\n" );
        return;
    }
    for ( i = 0; i < STORIES; i++ ) {
        if ( stories[i].transport != STAGE_UDP || !torture_can( &stories[i] ) )
            continue;
        for ( mode = 0; mode < 3; mode++ ) {
            int runs = tally.runs, points = torture_system_of( &stories[i], &torture_modes[mode] );
            watch_print( "    %-28s call %s: %d calls, %d runs\n", stories[i].name, torture_modes[mode].name, points,
                         tally.runs - runs );
            tally.points += mode == 0 ? points : 0;
        }
        tried++;
    }
    watch_print( "2 system: %d stories, %d calls x %d errors, %d runs (%d creates failed with them)\n   refused:",
                 tried, tally.points, TORTURE_ERRORS, tally.runs, tally.refused_creates );
    for ( kind = 0; kind < SYSTEM_CALL_KINDS; kind++ )
        if ( torture_kinds[kind] )
            watch_print( " %s %d", system_names[kind], torture_kinds[kind] );
    watch_print( "\n" );
}

/* ---- 3: the tests of the runner ---- */

#if !defined( TORTURE_STORIES_ONLY )

static int torture_quiet( void )
{
    int kept = dup( 1 ), nowhere = open( "/dev/null", O_WRONLY );
    fflush( stdout );
    if ( kept < 0 || nowhere < 0 || dup2( nowhere, 1 ) < 0 )
        _exit( 3 );
    close( nowhere );
    return kept;
}

/* What a test that was ended early left to the next one: the objects that stand in static memory. */
static void torture_tidy( void )
{
#if !defined( _WIN32 )
    lan_close();
    test_lacks_family = test_lacks_addresses = test_select_error = 0;
#endif
    watch_forget_blocks();
    watch_close_handles();
}

/* Returns whether an allocation failed in it. */
static int torture_test_once( const struct test_t * test, int n )
{
    int refused;
    watch_where( "3 %s: %s, allocation %d", test_file_name( test ), test->name, n );
    watch_arm( n, 1 );
    watcher.updates_limit = n ? RUNNER_UPDATES : 0;
    test_run_one( test );
    watcher.depth = 0;
    if ( watch_count_owned( watch_ghost ) )
        watch_finding( "%d blocks of objects that were destroyed are still there", watch_count_owned( watch_ghost ) );
    refused = watcher.refused;
    watch_arm( 0, 0 );
    torture_tidy();
    tally.runs++;
    return refused;
}

/* The first allocations one by one, and then in growing steps: behind them stand more and more of the same. */
static void torture_test( const struct test_t * test )
{
    int n, tried = 0;
    for ( n = 1; tried < RUNNER_FAULTS && torture_test_once( test, n ); n += 1 + tried / 12 * ( tried / 6 ) )
        tried++;
    tally.points += tried;
}

static void torture_tests( void )
{
    const struct test_t * test;
    int kept = torture_quiet(), tried = 0;
    test_state.seed = 1;
#if TORTURE_SANITIZED
    __lsan_disable(); /* what a test of the runner loses when it ends early is its own; the library's blocks are watched */
#endif
    for ( test = test_state.first; test; test = test->next )
        if ( torture_wanted( test->name, test_file_name( test ) ) ) {
            torture_test( test );
            tried++;
        }
#if TORTURE_SANITIZED
    __lsan_enable();
#endif
    fflush( stdout );
    dup2( kept, 1 );
    close( kept );
    watch_print( "3 runner: %d tests, %d runs, in %d of them an allocation failed\n", tried, tally.runs, tally.points );
}

#else

static void torture_tests( void )
{
    watch_print( "3 runner: left out of this build\n" );
}

#endif

/* ---- 4: one kind of call, or one option of it, is refused with each error, for good or for a while ---- */

#if TORTURE_SYSTEM

#if defined( NETCODE_NO_LINUX_EXTRAS )
#define TORTURE_PLAIN 1
#else
#define TORTURE_PLAIN 0
#endif

static const struct refusal_t {
    const char * name;
    unsigned int kinds;
    int option;
    int is_needed; /* without it there is no game */
    int is_extra;  /* made with the Linux extras alone */
} torture_refusals[] = {
    { "socket", SYSTEM_BIT( SOCKET ), 0, 1, 0 },
    { "bind", SYSTEM_BIT( BIND ), 0, 1, 0 },
    { "getsockname", SYSTEM_BIT( GETSOCKNAME ), 0, 1, 0 },
    { "fcntl", SYSTEM_BIT( FCNTL ), 0, 1, 0 },
    { "fcntl F_SETFD", SYSTEM_BIT( FCNTL ), F_SETFD, 0, 0 },
    { "setsockopt IPV6_V6ONLY", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IPV6, IPV6_V6ONLY ), 1, 0 },
    { "setsockopt SO_RCVBUF", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( SOL_SOCKET, SO_RCVBUF ), 0, 0 },
    { "setsockopt SO_SNDBUF", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( SOL_SOCKET, SO_SNDBUF ), 0, 0 },
    { "setsockopt SO_REUSEPORT", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( SOL_SOCKET, SO_REUSEPORT ), 1, 1 },
    { "setsockopt SO_RXQ_OVFL", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( SOL_SOCKET, SO_RXQ_OVFL ), 0, 1 },
    { "setsockopt SO_ATTACH_FILTER", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( SOL_SOCKET, SO_ATTACH_FILTER ), 0, 1 },
    { "setsockopt IP_MTU_DISCOVER", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IP, IP_MTU_DISCOVER ), 0, 0 },
    { "setsockopt IPV6_MTU_DISCOVER", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IPV6, IPV6_MTU_DISCOVER ), 0,
      0 },
    { "setsockopt IP_RECVERR", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IP, IP_RECVERR ), 0, 1 },
    { "setsockopt IPV6_RECVERR", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IPV6, IPV6_RECVERR ), 0, 1 },
    { "setsockopt IP_TOS", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IP, IP_TOS ), 0, 0 },
    { "setsockopt IPV6_TCLASS", SYSTEM_BIT( SETSOCKOPT ), SYSTEM_OPTION( IPPROTO_IPV6, IPV6_TCLASS ), 0, 0 },
    { "getsockopt", SYSTEM_BIT( GETSOCKOPT ), 0, 0, 0 },
    { "connect", SYSTEM_BIT( CONNECT ), 0, 0, 1 },
    { "recvmmsg", SYSTEM_BIT( RECVMMSG ), 0, 0, 1 },
    { "recvmsg", SYSTEM_BIT( RECVMSG ), 0, TORTURE_PLAIN, 0 },
    { "recvmmsg and recvmsg", SYSTEM_RECEIVES, 0, 1, 0 },
    { "sendmmsg", SYSTEM_BIT( SENDMMSG ), 0, 0, 1 },
    { "sendto", SYSTEM_BIT( SENDTO ), 0, 1, 0 },
    { "sendmmsg and sendto", SYSTEM_SENDS, 0, 1, 0 },
    { "select", SYSTEM_BIT( SELECT ), 0, 0, 0 },
    { "close", SYSTEM_BIT( CLOSE ), 0, 0, 0 },
};

static const struct pattern_t {
    const char * name;
    int starts;
    int every;
    int sick_steps;
} torture_patterns[] = { { "always", 0, 0, 0 },
                         { "after 0.3 s", 3, 0, 0 },
                         { "for a second after 0.3 s", 3, 0, 10 },
                         { "one time in three", 0, 3, 0 } };

static const int torture_errnos[] = { EPERM,           ENOENT,       EINTR,        EIO,          ENXIO,
                                      EBADF,           EAGAIN,       ENOMEM,       EACCES,       EFAULT,
                                      EBUSY,           ENODEV,       EINVAL,       ENFILE,       EMFILE,
                                      ENOSPC,          EPIPE,        ENOSYS,       EPROTO,       EOVERFLOW,
                                      ENOTSOCK,        EDESTADDRREQ, EMSGSIZE,     EPROTOTYPE,   ENOPROTOOPT,
                                      EPROTONOSUPPORT, EOPNOTSUPP,   EAFNOSUPPORT, EADDRINUSE,   EADDRNOTAVAIL,
                                      ENETDOWN,        ENETUNREACH,  ENETRESET,    ECONNABORTED, ECONNRESET,
                                      ENOBUFS,         EISCONN,      ENOTCONN,     ESHUTDOWN,    ETIMEDOUT,
                                      ECONNREFUSED,    EHOSTDOWN,    EHOSTUNREACH };

/* Returns how often it was refused. */
static int torture_refusal( const struct story_t * story, const struct refusal_t * refusal,
                            const struct pattern_t * pattern, int error )
{
    int for_good = pattern->sick_steps == 0 && pattern->every == 0;
    if ( error == EAGAIN && !refusal->is_needed && ( refusal->kinds & SYSTEM_RECEIVES ) )
        return 0; /* nothing is there: it is no refusal */
    watch_where( "4 \"%s\", %s %s, error %d", story->name, refusal->name, pattern->name, error );
    watch_arm( 0, 0 );
    system_arm( 1, 1 << 30, error, refusal->kinds );
    system_state.option = refusal->option;
    system_state.starts = pattern->starts;
    system_state.every = pattern->every;
    system_state.sick_steps = pattern->sick_steps;
    torture_run( story, ( struct stage_how_t ){ 0, !refusal->is_needed, 1, refusal->is_needed && for_good } );
    return system_state.refused;
}

static int torture_refuse( const struct refusal_t * refusal, const struct story_t * story )
{
    const int patterns = sizeof( torture_patterns ) / sizeof( torture_patterns[0] );
    const int errnos = sizeof( torture_errnos ) / sizeof( torture_errnos[0] );
    int k, m, refused = 0;
    for ( k = 0; k < patterns; k++ )
        for ( m = 0; m < errnos; m++ )
            refused += torture_refusal( story, refusal, &torture_patterns[k], torture_errnos[m] );
    return refused;
}

static void torture_search( void )
{
    static const char * const names[] = { "visits, waiting", "visits, batch_sends", "rebinds, dual stack",
                                          "two at one port, filtered", "the first server is gone" };
    const int refusals = sizeof( torture_refusals ) / sizeof( torture_refusals[0] );
    int i, n, k;
    for ( k = 0; k < refusals; k++ ) {
        int refused = 0;
        for ( i = 0; i < STORIES; i++ )
            for ( n = 0; n < 5; n++ )
                if ( strcmp( names[n], stories[i].name ) == 0 && torture_can( &stories[i] ) )
                    refused += torture_refuse( &torture_refusals[k], &stories[i] );
        watch_where( "4 %s", torture_refusals[k].name );
        if ( !refused && tally.name[0] == 0 && !( TORTURE_PLAIN && torture_refusals[k].is_extra ) )
            watch_finding( "it was never refused" );
    }
    watch_print( "4 search: %d runs, %d creates failed\n", tally.runs, tally.refused_creates );
}

#else

static void torture_search( void )
{
    watch_print( "4 search: skipped: needs glibc on x86-64, or -DTORTURE_STORIES_ONLY and glibc on 64 bits\n" );
}

#endif

static void torture_sweep( int number, const char * name, void ( *sweep )( void ) )
{
    double start = netcode_time();
    int handles = watch_count_handles();
    memset( &tally, 0, sizeof( tally ) );
    tally.name = name;
    watcher.hurry = sweep == torture_tests;
    watcher.cpu_seconds = sweep == torture_tests ? 20 : 4;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    netcode_set_assert_function( torture_assert );
    sweep();
    if ( watch_count_handles() != handles )
        watch_finding( "sweep %d: %d handles were open, and now %d are", number, handles, watch_count_handles() );
    watch_print( "   %.1f s\n", netcode_time() - start );
}

static int torture_sweeps( int count, char ** arguments )
{
    static void ( *const sweeps[] )( void ) = { torture_memory, torture_system, torture_tests, torture_search };
    int only = count > 1 ? atoi( arguments[1] ) : 0, i;
    if ( netcode_init() != NETCODE_OK )
        return 2;
    netcode_enable_packet_tagging();
    for ( i = 0; i < 4; i++ )
        if ( only == 0 || only == i + 1 )
            torture_sweep( i + 1, count > 2 ? arguments[2] : "", sweeps[i] );
    netcode_term();
    watch_print( "torture: %d failures\n", watcher.findings );
    return watcher.findings != 0;
}

int main( int count, char ** arguments )
{
#if !defined( TORTURE_STORIES_ONLY )
    if ( count > 1 && strcmp( arguments[1], "runner" ) == 0 )
        return runner_main( count - 1, arguments + 1 );
#endif
    watch_open();
    return watch_child( torture_sweeps, count, arguments );
}
