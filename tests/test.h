/*  A small test harness: registration, a filter, seeds, and checks that show both values.

    TEST( name ) { ... } registers itself. CHECK... notes a failure and goes on, REQUIRE... ends the test. No check
    depends on NDEBUG. A failed netcode_assert is a failure too, unless it was asked for with BAD( call ), which in
    debug builds demands one. */

#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*  What has to happen has so many seconds of the real clock, and no less: a machine that is shared may stand still for some. That something
    is quick, or does not happen, is judged by what comes before it or by what was asked of the system, not by a time. */
#define TEST_LIMIT_SECONDS 60.0

struct test_t {
    const char * file;
    const char * name;
    void ( *run )( void );
    struct test_t * next;
};

static struct {
    struct test_t * first;
    struct test_t * last;
    const struct test_t * current;
    int failures; /* of the test that runs */
    int skipped;
    int whole;       /* --whole: what is sampled elsewhere runs as long as it can */
    uint64_t seed;   /* of the whole run */
    uint64_t random; /* the running test's generator */
    int asserts;     /* unexpected ones are failures */
    int expecting;   /* inside BAD */
    int silent;      /* the log is off: BAD is not to say a word */
    int stopping;    /* the clean-up runs: REQUIRE must not jump any more */
    jmp_buf escape;
} test_state;

static void test_register( struct test_t * test )
{
    if ( test_state.last )
        test_state.last->next = test;
    else
        test_state.first = test;
    test_state.last = test;
}

#define TEST( name )                                                          \
    static void test_##name( void );                                          \
    __attribute__( ( constructor ) ) static void test_register_##name( void ) \
    {                                                                         \
        static struct test_t test = { __FILE__, #name, test_##name, NULL };   \
        test_register( &test );                                               \
    }                                                                         \
    static void test_##name( void )

/* ---- failures ---- */

static void test_fail( const char * file, int line, const char * format, ... )
{
    va_list arguments;
    if ( ++test_state.failures > 12 )
        return;
    printf( "    %s:%d: ", file, line );
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    printf( "\n" );
}

static void test_escape( void )
{
    if ( !test_state.stopping )
        longjmp( test_state.escape, 1 );
}

static int test_check( int good, const char * text, const char * file, int line )
{
    if ( !good )
        test_fail( file, line, "%s is false", text );
    return good;
}

enum { TEST_EQ, TEST_NE, TEST_LT, TEST_LE, TEST_GT, TEST_GE };

static int test_compare( int how, int64_t a, int64_t b, const char * text_a, const char * text_b, const char * file,
                         int line )
{
    static const char * const names[] = { "==", "!=", "<", "<=", ">", ">=" };
    int good = ( how == TEST_EQ && a == b ) || ( how == TEST_NE && a != b ) || ( how == TEST_LT && a < b ) ||
               ( how == TEST_LE && a <= b ) || ( how == TEST_GT && a > b ) || ( how == TEST_GE && a >= b );
    if ( !good )
        test_fail( file, line, "%s %s %s: %" PRId64 " and %" PRId64 " (0x%" PRIx64 ", 0x%" PRIx64 ")", text_a,
                   names[how], text_b, a, b, (uint64_t) a, (uint64_t) b );
    return good;
}

static int test_near( double a, double b, double within, const char * text_a, const char * text_b, const char * file,
                      int line )
{
    int good = fabs( a - b ) <= within;
    if ( !good )
        test_fail( file, line, "%s is not within %g of %s: %.9g and %.9g", text_a, within, text_b, a, b );
    return good;
}

static int test_string( const char * a, const char * b, const char * text_a, const char * text_b, const char * file,
                        int line )
{
    int good = a && b && strcmp( a, b ) == 0;
    if ( !good )
        test_fail( file, line, "%s == %s: \"%s\" and \"%s\"", text_a, text_b, a ? a : "(NULL)", b ? b : "(NULL)" );
    return good;
}

static int test_memory( const void * a, const void * b, size_t bytes, const char * text_a, const char * text_b,
                        const char * file, int line )
{
    const uint8_t * p = (const uint8_t *) a;
    const uint8_t * q = (const uint8_t *) b;
    size_t i;
    if ( !a || !b ) {
        test_fail( file, line, "%s or %s is NULL", text_a, text_b );
        return 0;
    }
    for ( i = 0; i < bytes; i++ )
        if ( p[i] != q[i] ) {
            test_fail( file, line, "%s and %s differ at byte %zu of %zu: 0x%02x and 0x%02x", text_a, text_b, i, bytes,
                       p[i], q[i] );
            return 0;
        }
    return 1;
}

#define CHECK( c ) test_check( !!( c ), #c, __FILE__, __LINE__ )
#define TEST_COMPARE( how, a, b ) test_compare( how, (int64_t) ( a ), (int64_t) ( b ), #a, #b, __FILE__, __LINE__ )
#define CHECK_EQ( a, b ) TEST_COMPARE( TEST_EQ, a, b )
#define CHECK_NE( a, b ) TEST_COMPARE( TEST_NE, a, b )
#define CHECK_LT( a, b ) TEST_COMPARE( TEST_LT, a, b )
#define CHECK_LE( a, b ) TEST_COMPARE( TEST_LE, a, b )
#define CHECK_GT( a, b ) TEST_COMPARE( TEST_GT, a, b )
#define CHECK_GE( a, b ) TEST_COMPARE( TEST_GE, a, b )
#define CHECK_NEAR( a, b, within ) test_near( a, b, within, #a, #b, __FILE__, __LINE__ )
#define CHECK_STR( a, b ) test_string( a, b, #a, #b, __FILE__, __LINE__ )
#define CHECK_MEM( a, b, bytes ) test_memory( a, b, (size_t) ( bytes ), #a, #b, __FILE__, __LINE__ )

#define TEST_REQUIRE( check ) \
    do {                      \
        if ( !( check ) )     \
            test_escape();    \
    } while ( 0 )
#define REQUIRE( c ) TEST_REQUIRE( CHECK( c ) )
#define REQUIRE_EQ( a, b ) TEST_REQUIRE( CHECK_EQ( a, b ) )
#define REQUIRE_GE( a, b ) TEST_REQUIRE( CHECK_GE( a, b ) )
#define REQUIRE_MEM( a, b, bytes ) TEST_REQUIRE( CHECK_MEM( a, b, bytes ) )

/* Ends the test without a verdict: something that it needs is missing here. */
#define SKIP( why )                                                       \
    do {                                                                  \
        printf( "    skipped: %s: %s\n", test_state.current->name, why ); \
        test_state.skipped++;                                             \
        return;                                                           \
    } while ( 0 )

/* ---- asserts of the library ---- */

static void test_assert_handler( const char * condition, const char * function, const char * file, int line )
{
    test_state.asserts++;
    if ( !test_state.expecting )
        test_fail( file, line, "netcode_assert( %s ) failed in %s", condition, function );
}

/* As doubles: the standard's macros are floats, and promoting them is a warning. */
#define NOT_A_NUMBER ( (double) NAN )
#define ENDLESS ( (double) INFINITY )

#if defined( NDEBUG )
#define TEST_ASSERTS_WORK 0
#else
#define TEST_ASSERTS_WORK 1
#endif

static int test_log_lines; /* of every log, the process-wide one included */

static int test_printf( const char * format, ... )
{
    (void) format;
    return ++test_log_lines;
}

/* A call with an argument that is the caller's mistake: an assert in debug builds, a line in the log, and no harm. */
#define BAD( call )                                                                                     \
    do {                                                                                                \
        test_allow_refusals();                                                                          \
        int asserts_before = test_state.asserts, lines_before = test_log_lines;                         \
        test_state.expecting = 1;                                                                       \
        call;                                                                                           \
        test_state.expecting = 0;                                                                       \
        if ( TEST_ASSERTS_WORK && test_state.asserts == asserts_before )                                \
            test_fail( __FILE__, __LINE__, "%s did not trip netcode_assert", #call );                   \
        if ( ( test_log_lines == lines_before ) != test_state.silent )                                  \
            test_fail( __FILE__, __LINE__, "%s was %slogged", #call, test_state.silent ? "" : "not " ); \
    } while ( 0 )

/* A call that is refused and logged, with or without an assert. */
#define REFUSED( call )                                                  \
    do {                                                                 \
        test_allow_refusals();                                           \
        int lines_before = test_log_lines;                               \
        test_state.expecting = 1;                                        \
        call;                                                            \
        test_state.expecting = 0;                                        \
        if ( test_log_lines == lines_before )                            \
            test_fail( __FILE__, __LINE__, "%s was not logged", #call ); \
    } while ( 0 )

/* A mistake of the caller while the log is off: refused without a line. */
#define SILENT( call )                                               \
    do {                                                             \
        int lines_before = test_log_lines;                           \
        test_state.expecting = 1;                                    \
        call;                                                        \
        test_state.expecting = 0;                                    \
        if ( test_log_lines != lines_before )                        \
            test_fail( __FILE__, __LINE__, "%s was logged", #call ); \
    } while ( 0 )

/* A call that may be a mistake in the eyes of the library: an assert is allowed and not demanded. */
#define TOLERATE( call )          \
    do {                          \
        test_state.expecting = 1; \
        call;                     \
        test_state.expecting = 0; \
    } while ( 0 )

static int test_is_zeros( const void * data, size_t bytes )
{
    const uint8_t * at = (const uint8_t *) data;
    while ( bytes && !*at ) {
        at++;
        bytes--;
    }
    return bytes == 0;
}

/* ---- numbers that a seed repeats ---- */

static uint64_t test_mix( uint64_t x )
{
    x += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

static uint64_t test_random( void )
{
    test_state.random += 0x9e3779b97f4a7c15u;
    return test_mix( test_state.random );
}

static int test_random_below( int limit )
{
    return (int) ( test_random() % (uint64_t) limit );
}

/* Every test has numbers of its own, whichever others run before it. */
static uint64_t test_seed_of( const struct test_t * test )
{
    uint64_t seed = test_mix( test_state.seed );
    const char * p;
    for ( p = test->name; *p; p++ )
        seed = test_mix( seed ^ (uint64_t) (unsigned char) *p );
    return seed;
}

/* ---- the runner ---- */

/* What stands around each test: main.c gives them. */
static void test_begin( uint64_t seed );
static void test_end( void );

static const char * test_file_name( const struct test_t * test )
{
    const char * slash = strrchr( test->file, '/' );
    return slash ? slash + 1 : test->file;
}

/* 1 passed, 0 failed, -1 skipped */
static int test_run_one( const struct test_t * test )
{
    clock_t start = clock();
    int skipped = test_state.skipped;
    double seconds;
    test_state.current = test;
    test_state.failures = test_state.asserts = test_state.expecting = test_state.silent = test_state.stopping = 0;
    test_state.random = test_seed_of( test );
    test_begin( test_state.random );
    if ( setjmp( test_state.escape ) == 0 )
        test->run();
    test_state.stopping = 1;
    test_end();
    seconds = (double) ( clock() - start ) / CLOCKS_PER_SEC;
    if ( test_state.failures )
        printf( "FAILED %s: %s, %d checks, --seed %" PRIu64 "\n", test_file_name( test ), test->name,
                test_state.failures, test_state.seed );
    else if ( seconds > 1.5 )
        printf( "    %s: %s took %.1f s\n", test_file_name( test ), test->name, seconds );
    fflush( stdout );
    return test_state.failures ? 0 : skipped != test_state.skipped ? -1 : 1;
}

static int test_main( int count, char ** arguments )
{
    const char * filter = "";
    const struct test_t * test;
    int i, list = 0, passed = 0, failed = 0, result;
    test_state.seed = 1;
    for ( i = 1; i < count; i++ ) {
        if ( strcmp( arguments[i], "--list" ) == 0 )
            list = 1;
        else if ( strcmp( arguments[i], "--seed" ) == 0 && i + 1 < count )
            test_state.seed = strtoull( arguments[++i], NULL, 10 );
        else if ( strcmp( arguments[i], "--whole" ) == 0 )
            test_state.whole = 1;
        else if ( arguments[i][0] != '-' )
            filter = arguments[i];
        else {
            printf( "usage: %s [FILTER] [--seed N] [--whole] [--list]\n", arguments[0] );
            return 2;
        }
    }
    for ( test = test_state.first; test; test = test->next ) {
        if ( !strstr( test->name, filter ) && !strstr( test_file_name( test ), filter ) )
            continue;
        if ( list ) {
            printf( "%s: %s\n", test_file_name( test ), test->name );
            continue;
        }
        result = test_run_one( test );
        passed += result == 1;
        failed += result == 0;
    }
    if ( list )
        return 0;
    if ( passed + failed + test_state.skipped == 0 ) {
        printf( "no test matches \"%s\"\n", filter );
        failed = 1;
    }
    printf( "%d passed, %d failed, %d skipped\n", passed, failed, test_state.skipped );
    return failed != 0;
}

#endif
