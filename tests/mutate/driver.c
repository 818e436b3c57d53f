/*  Runs the tests against one mutant after the other, for tests/mutate/run.py, which compiles it beside a copy of
    netcode.h that holds many mutants at once: MUTANT( id ) is true for the one that is switched on.

        driver suite                runs all tests in one process without a mutant, as `make test` does
        driver list                 the numbers of the tests: a build with sanitizers may have others
        driver map                  runs each test by itself without a mutant: what it cost, and which mutants it reached
        driver run < plan           each line of the plan is "MUTANT TEST TEST...": stops at the first test that fails

    Every test list runs in a process of its own, so a crash, a hang or a scribble ends with it. A failure counts only if
    the test fails again, and passes without the mutant. SEED in the environment is the seed of the random tests. */

static int mutant_active;
static unsigned char * mutant_reached;
#define MUTANT( id ) ( mutant_reached[id] = 1, mutant_active == ( id ) )

#define main suite_main
#include "../main.c"
#undef main

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRIVER_MUTANTS = 1 << 16, DRIVER_TESTS = 4096 };

/* What a child reports, in memory that it shares with its parent. */
typedef struct {
    volatile int test;     /* that runs, or ran last */
    volatile int finished; /* all of its tests */
    volatile int failed;
    volatile double cpu_seconds;
    unsigned char reached[DRIVER_MUTANTS];
} shared_t;

enum { PASSED, FAILED, CRASHED, TIMED_OUT, SLEPT };

static shared_t * shared;
static const struct test_t * driver_tests[DRIVER_TESTS];
static int driver_test_count;
static double driver_limits[DRIVER_TESTS]; /* seconds of the processor */

static double cpu_now( void )
{
    struct rusage usage;
    getrusage( RUSAGE_SELF, &usage );
    return (double) ( usage.ru_utime.tv_sec + usage.ru_stime.tv_sec ) +
           (double) ( usage.ru_utime.tv_usec + usage.ru_stime.tv_usec ) * 1e-6;
}

static void set_limit( int which, double seconds )
{
    struct itimerval timer = { { 0, 0 }, { 0, 0 } };
    timer.it_value.tv_sec = (time_t) seconds;
    timer.it_value.tv_usec = (suseconds_t) ( ( seconds - (double) timer.it_value.tv_sec ) * 1e6 );
    setitimer( which, &timer, NULL );
}

/* A mutant may ask for memory without end. The address sanitizer itself needs terabytes of addresses. */
static void limit_memory( void )
{
#if !defined( DRIVER_SANITIZED )
    struct rlimit limit = { 4096UL << 20, 4096UL << 20 };
    setrlimit( RLIMIT_AS, &limit );
#endif
}

#if defined( DRIVER_SANITIZED )
int __lsan_do_recoverable_leak_check( void );
#define leaked() ( __lsan_do_recoverable_leak_check() != 0 )
#else
#define leaked() 0
#endif

static void child( int mutant, const int * tests, int count )
{
    double start = cpu_now();
    int i, quiet = open( "/dev/null", O_WRONLY );
    dup2( quiet, 1 );
    if ( !getenv( "DRIVER_LOUD" ) )
        dup2( quiet, 2 );
    limit_memory();
    mutant_active = mutant;
    shared->failed = netcode_init() != NETCODE_OK;
    for ( i = 0; i < count && !shared->failed; i++ ) {
        shared->test = tests[i];
        set_limit( ITIMER_PROF, driver_limits[tests[i]] );
        set_limit( ITIMER_REAL,
                   60.0 + 6.0 * driver_limits[tests[i]] ); /* for what sleeps; a machine may stand still, too */
        shared->failed = test_run_one( driver_tests[tests[i]] ) == 0 || leaked();
    }
    shared->cpu_seconds = cpu_now() - start;
    shared->finished = 1;
    _exit( 0 );
}

/* Runs these tests under a mutant, 0 for none. shared->test is where it ended. */
static int run( int mutant, const int * tests, int count )
{
    int status = 0;
    pid_t pid;
    memset( shared, 0, sizeof( *shared ) );
    shared->test = count ? tests[0] : 0;
    fflush( stdout );
    pid = fork();
    if ( pid == 0 )
        child( mutant, tests, count );
    if ( pid < 0 || waitpid( pid, &status, 0 ) != pid ) {
        perror( "driver" );
        exit( 3 );
    }
    if ( WIFSIGNALED( status ) && WTERMSIG( status ) == SIGPROF )
        return TIMED_OUT;
    if ( WIFSIGNALED( status ) && WTERMSIG( status ) == SIGALRM )
        return SLEPT;
    if ( WIFSIGNALED( status ) || !shared->finished )
        return CRASHED;
    return shared->failed ? FAILED : PASSED;
}

/*  What failed must fail twice, and pass without the mutant, which is asked again after some verdicts of this test. A loop
    without end is not waited for twice; what sleeps too long may only wait for the processor. Mutant 0 is always awake: the only one in its binary. */
static int confirmed( int mutant, int result, int test )
{
    static int verdicts[DRIVER_TESTS];
    if ( result != TIMED_OUT && run( mutant, &test, 1 ) == PASSED )
        return 0;
    return mutant == 0 || verdicts[test]++ % 16 != 0 || run( 0, &test, 1 ) == PASSED;
}

static void judge( int mutant, const int * tests, int count )
{
    static const char * const words[] = { "survived", "killed", "crashed", "timed-out", "timed-out" };
    int at = 0, result = PASSED, test = 0;
    while ( at < count ) {
        result = run( mutant, tests + at, count - at );
        test = shared->test;
        if ( result == PASSED )
            break;
        if ( confirmed( mutant, result, test ) ) {
            printf( "%d %s %s\n", mutant, words[result], driver_tests[test]->name );
            return;
        }
        printf( "%d unsteady %s\n", mutant, driver_tests[test]->name );
        while ( at < count && tests[at] != test )
            at++;
        at++;
    }
    printf( "%d survived -\n", mutant );
}

/* One line for each test: its number, its name, its result, the processor's seconds, and the mutants it reached. */
static void map_tests( void )
{
    int i, id;
    for ( i = 0; i < driver_test_count; i++ ) {
        int result = run( 0, &i, 1 );
        printf( "%d %s %s %d %.6f", i, driver_tests[i]->name, test_file_name( driver_tests[i] ), result,
                shared->cpu_seconds );
        for ( id = 1; id < DRIVER_MUTANTS; id++ )
            if ( shared->reached[id] )
                printf( " %d", id );
        printf( "\n" );
    }
}

static void list_tests( void )
{
    int i;
    for ( i = 0; i < driver_test_count; i++ )
        printf( "%d %s\n", i, driver_tests[i]->name );
}

static void run_plan( void )
{
    static char line[1 << 16];
    static int tests[DRIVER_TESTS];
    while ( fgets( line, sizeof( line ), stdin ) ) {
        char * at = line;
        int mutant = (int) strtol( at, &at, 10 ), count = 0;
        while ( *at && *at != '\n' && count < DRIVER_TESTS ) {
            int test = (int) strtol( at, &at, 10 );
            driver_limits[test] = strtod( at + 1, &at ); /* TEST:LIMIT */
            tests[count++] = test;
        }
        judge( mutant, tests, count );
    }
}

int main( int count, char ** arguments )
{
    const struct test_t * test;
    const char * seed = getenv( "SEED" );
    shared = (shared_t *) mmap( NULL, sizeof( *shared ), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0 );
    if ( shared == (shared_t *) MAP_FAILED || count != 2 ) {
        printf( "usage: driver suite | list | map | run\n" );
        return 2;
    }
    mutant_reached = shared->reached;
    setvbuf( stdout, NULL, _IOLBF, 1 << 16 );
    test_state.seed = seed ? strtoull( seed, NULL, 10 ) : 1;
    for ( test = test_state.first; test && driver_test_count < DRIVER_TESTS; test = test->next ) {
        driver_limits[driver_test_count] = 120.0;
        driver_tests[driver_test_count++] = test;
    }
    randombytes_set_implementation( &ledger_random_source );
    if ( strcmp( arguments[1], "suite" ) == 0 )
        return netcode_init() == NETCODE_OK ? test_main( 1, arguments ) : 1;
    if ( strcmp( arguments[1], "list" ) == 0 )
        list_tests();
    else if ( strcmp( arguments[1], "map" ) == 0 )
        map_tests();
    else
        run_plan();
    return 0;
}
