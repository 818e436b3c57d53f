/*  What examples/metrics/metrics.h and http.h print and refuse, without a network but loopback's HTTP. metrics.py builds and
    runs it; by hand:

        cc -DMETRICS_HTTP_STALE_SECONDS=1 -I. tests/all/metrics_text.c -lsodium -lm -lmicrohttpd -pthread -o metrics_text
        ./metrics_text FOLDER              everything
        ./metrics_text FOLDER locale       what a locale could change; LC_ALL names one
        ./metrics_text FOLDER threads      one thread publishes while others read, for the thread sanitizer */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../../netcode.h"

#include "../../examples/metrics/http.h"
#include "../../examples/metrics/metrics.h"

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <sys/resource.h>

static int failures;

static void check( const char * name, int good )
{
    printf( "%s %s\n", good ? "ok     " : "FAILED ", name );
    failures += !good;
}

static int has( const struct metrics_text_t * text, const char * line )
{
    return text->data && strstr( text->data, line ) != NULL;
}

static void test_escapes( void )
{
    struct metrics_text_t text = { 0 };
    metrics_begin( &text );
    metrics_family( &text, "a", "gauge", "a \"quote\", a \\ and\na line" );
    metrics_sample( &text, "a", "" );
    metrics_with( &text, "x", "a \"quote\", a \\ and\na line" );
    metrics_count( &text, 3 );
    check( "a help text escapes backslash and line", has( &text, "# HELP a a \"quote\", a \\\\ and\\na line\n" ) );
    check( "a label escapes quotes as well", has( &text, "a{x=\"a \\\"quote\\\", a \\\\ and\\na line\"} 3\n" ) );
    metrics_text_free( &text );
}

static void test_common_labels( void )
{
    struct metrics_text_t text = { 0 };
    check( "a label for all", metrics_label( &text, "server", "eu-\"1\"" ) );
    metrics_begin( &text );
    metrics_counter( &text, "a_total", 7, "A." );
    metrics_labelled( &text, "b_total", "reason", "x", 8 );
    check( "every sample has it", has( &text, "a_total{server=\"eu-\\\"1\\\"\"} 7\n" ) &&
                                      has( &text, "b_total{server=\"eu-\\\"1\\\"\",reason=\"x\"} 8\n" ) );
    for ( int i = 1; i < METRICS_MAX_LABELS; i++ )
        metrics_label( &text, "more", "y" );
    check( "one too many is refused", !metrics_label( &text, "more", "y" ) );
    metrics_text_free( &text );
}

static void test_numbers( void )
{
    char number[32];
    metrics_format_real( number, HUGE_VAL );
    check( "+Inf", !strcmp( number, "+Inf" ) );
    metrics_format_real( number, -HUGE_VAL );
    check( "-Inf", !strcmp( number, "-Inf" ) );
    metrics_format_real( number, (double) NAN );
    check( "NaN", !strcmp( number, "NaN" ) );
    metrics_format_real( number, 0.0167 );
    check( "0.0167 stays 0.0167", !strcmp( number, "0.0167" ) );
    struct metrics_text_t text = { 0 };
    metrics_begin( &text );
    metrics_counter( &text, "a_total", UINT64_MAX, "A." );
    check( "the largest count is printed whole", has( &text, "a_total 18446744073709551615\n" ) );
    metrics_text_free( &text );
}

/* The names of reasons, and numbers, are Prometheus' and not the player's language's. */
static void test_locale( void )
{
    char name[48], number[32];
    check( "small letters are those of ASCII", !strcmp( metrics_lower( name, "TIMED_OUT" ), "timed_out" ) );
    metrics_format_real( number, 1.5 );
    check( "the decimal point is one", !strcmp( number, "1.5" ) );
}

static void test_memory( const char * path )
{
    static struct netcode_server_stats_t stats;
    static char memory[600 + 16];
    struct metrics_text_t text;
    memset( memory, '#', sizeof( memory ) );
    metrics_text_give( &text, memory, 600 );
    metrics_begin( &text );
    metrics_server( &text, &stats, NULL );
    int kept = 1;
    for ( int i = 600; i < (int) sizeof( memory ); i++ )
        kept = kept && memory[i] == '#';
    check( "what has no room is said", text.failed && kept && text.bytes < 600 && strlen( memory ) == text.bytes );
    check( "half a text is no file", !metrics_write_file( &text, path ) && errno == ENOMEM );
    metrics_begin( &text );
    metrics_counter( &text, "a_total", 1, "A." );
    check( "the next one is whole again", !text.failed && has( &text, "a_total 1\n" ) );
    metrics_text_give( &text, memory, 0 );
    metrics_begin( &text );
    check( "no memory at all is said too", text.failed );
}

static void test_histogram( void )
{
    static const double bounds[] = { 1.0, 2.0 }, wrong[] = { 2.0, 1.0 };
    struct metrics_text_t text = { 0 };
    struct metrics_histogram_t histogram;
    check( "bounds must rise", !metrics_histogram_init( &histogram, wrong, 2 ) );
    check( "too many bounds", !metrics_histogram_init( &histogram, bounds, METRICS_MAX_BOUNDS + 1 ) );
    check( "good bounds", metrics_histogram_init( &histogram, bounds, 2 ) );
    metrics_observe( &histogram, 1.0 ); /* a bound belongs to its own bucket */
    metrics_observe( &histogram, 1.5 );
    metrics_observe( &histogram, 5.0 );
    check( "what is no number is refused", !metrics_observe( &histogram, (double) NAN ) && histogram.refused == 1 );
    metrics_begin( &text );
    metrics_histogram( &text, "h", &histogram, "H." );
    check( "buckets add up", has( &text, "h_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 2\nh_bucket{le=\"+Inf\"} 3\n"
                                         "h_sum 7.5\nh_count 3\n" ) );
    metrics_text_free( &text );
}

static void observe_messages( struct metrics_messages_t * all, uint64_t session, uint64_t sent, double rtt )
{
    struct netcode_messages_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    stats.packets_sent = sent;
    stats.drops[NETCODE_MESSAGES_DROP_OLD] = sent;
    stats.rtt = rtt;
    stats.send_rate = 100.0;
    metrics_messages_slot( all, (int) session % 2, session, &stats );
}

static void test_sessions( void )
{
    static struct metrics_messages_t all;
    metrics_messages_begin( &all );
    observe_messages( &all, 2, 100, 0.1 );
    observe_messages( &all, 3, 10, 0.3 );
    const struct netcode_messages_stats_t * sum = metrics_messages_end( &all );
    check( "two slots add up", sum->packets_sent == 110 && sum->drops[NETCODE_MESSAGES_DROP_OLD] == 110 );
    check( "round trips are a mean, rates a sum",
           fabs( sum->rtt - 0.2 ) < 1e-9 && fabs( sum->send_rate - 200.0 ) < 1e-9 );
    metrics_messages_begin( &all );
    observe_messages( &all, 4, 5, 0.0 ); /* another client in slot 0, which measured nothing yet */
    observe_messages( &all, 3, 20, 0.3 );
    sum = metrics_messages_end( &all );
    check( "a new session does not take back the old one's", sum->packets_sent == 125 );
    check( "a server that measured nothing is no part of the mean", fabs( sum->rtt - 0.3 ) < 1e-9 );
    struct netcode_messages_stats_t none;
    memset( &none, 0, sizeof( none ) );
    for ( int i = 0; i < 3; i++ ) {
        metrics_messages_begin( &all );
        metrics_messages_slot( &all, 0, 0, &none );
        metrics_messages_slot( &all, 1, 0, &none );
        sum = metrics_messages_end( &all );
    }
    check( "empty slots keep what was counted, once", sum->packets_sent == 125 && sum->send_rate < 1e-9 );
}

/* A remote client is observed each time, one in the same process and an empty slot never. */
static void test_paths( void )
{
    static const uint8_t key[NETCODE_KEY_BYTES] = { 1 };
    static struct metrics_paths_t paths;
    const char * address = "127.0.0.1:40000";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_network_simulator_t * network = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    netcode_default_server_config( &server_config );
    netcode_default_client_config( &client_config );
    server_config.network_simulator = client_config.network_simulator = network;
    memcpy( server_config.private_key, key, sizeof( key ) );
    network->latency_milliseconds = 45.0f;
    struct netcode_server_t * server = netcode_server_create( address, &server_config, 0.0 );
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:50000", &client_config, 0.0 );
    netcode_server_start( server, 4 );
    netcode_generate_connect_token( 1, &address, &address, 30, 5, 7, 0, key, NULL, token );
    netcode_client_connect( client, token );
    netcode_server_connect_loopback_client( server, 3, 8, NULL );
    for ( int i = 1; i < 600; i++ ) {
        netcode_network_simulator_update( network, i * 0.01 );
        netcode_server_update( server, i * 0.01 );
        netcode_client_update( client, i * 0.01 );
        netcode_client_send_packet( client, key, 10 + i / 8 % 2 );
    }
    struct metrics_text_t text = { 0 };
    metrics_paths_init( &paths );
    for ( int i = 0; i < 2; i++ ) {
        metrics_begin( &text );
        metrics_paths( &text, &paths, server );
    }
    check( "a client of four slots is observed each time, at its round trip of 90 ms and a tick or two",
           has( &text, "netcode_server_round_trip_seconds_bucket{le=\"0.075\"} 0\n" ) &&
               has( &text, "netcode_server_round_trip_seconds_bucket{le=\"0.15\"} 2\n" ) &&
               has( &text, "netcode_server_round_trip_seconds_count 2\n" ) );
    check( "and nothing was lost", has( &text, "netcode_server_loss_ratio_bucket{le=\"0\"} 2\n" ) &&
                                       has( &text, "netcode_server_loss_ratio_count 2\n" ) );
    metrics_text_free( &text );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
    netcode_network_simulator_destroy( network );
}

static void test_files( const char * folder, const char * path )
{
    char missing[METRICS_PATH_BYTES], *longer = (char *) malloc( METRICS_PATH_BYTES + 1 );
    struct metrics_text_t text = { 0 };
    metrics_begin( &text );
    check( "an empty text is no file", !metrics_write_file( &text, path ) );
    metrics_counter( &text, "a_total", 1, "A." );
    snprintf( missing, sizeof( missing ), "%s/no/folder.prom", folder );
    check( "a folder that is not there", !metrics_write_file( &text, missing ) && errno == ENOENT );
    check( "a path that is a folder", !metrics_write_file( &text, folder ) );
    if ( longer ) {
        memset( longer, 'x', METRICS_PATH_BYTES );
        longer[METRICS_PATH_BYTES] = '\0';
        check( "a path that is too long", !metrics_write_file( &text, longer ) && errno == ENAMETOOLONG );
    }
    check( "a file", metrics_write_file( &text, path ) && metrics_write_file( &text, path ) );
    snprintf( missing, sizeof( missing ), "%s.new", path );
    FILE * file = fopen( missing, "rb" );
    check( "no temporary file is left", file == NULL );
    if ( file )
        fclose( file );
    free( longer );
    metrics_text_free( &text );
}

/* The status line of an answer, by a socket of our own; "" where there is none. */
static void get( int port, const char * request, char answer[4096] )
{
    struct sockaddr_storage address;
    size_t bytes = 0;
    int descriptor = socket( AF_INET, SOCK_STREAM, 0 );
    answer[0] = '\0';
    if ( descriptor < 0 || !metrics_http_address( "127.0.0.1", port, &address ) )
        return;
    if ( connect( descriptor, (struct sockaddr *) &address, sizeof( struct sockaddr_in ) ) == 0 &&
         send( descriptor, request, strlen( request ), MSG_NOSIGNAL ) > 0 ) {
        ssize_t got;
        while ( bytes < 4095 && ( got = recv( descriptor, answer + bytes, 4095 - bytes, 0 ) ) > 0 )
            bytes += (size_t) got;
        answer[bytes] = '\0';
    }
    close( descriptor );
}

static int is_answer( int port, const char * request, const char * status )
{
    char answer[4096];
    get( port, request, answer );
    return strstr( answer, status ) == answer;
}

static void test_http( void )
{
    static const char * const ask = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct metrics_text_t text = { 0 }, half = { 0 };
    check( "no address of that kind", !metrics_http_start( "localhost", 0 ) && errno == EINVAL );
    check( "no port of that number", !metrics_http_start( "127.0.0.1", 65536 ) && errno == EINVAL );
    struct metrics_http_t * http = metrics_http_start( "127.0.0.1", 0 );
    check( "it listens", http && metrics_http_port( http ) > 0 );
    if ( !http )
        return;
    int port = metrics_http_port( http );
    check( "a port that is in use is reported", !metrics_http_start( "127.0.0.1", port ) && errno == EADDRINUSE );
    check( "nothing published yet: 503", is_answer( port, ask, "HTTP/1.1 503 " ) );
    metrics_begin( &text );
    metrics_counter( &text, "a_total", 1, "A." );
    metrics_http_publish( http, &text );
    check( "GET /metrics: 200", is_answer( port, ask, "HTTP/1.1 200 " ) );
    half.failed = 1;
    check( "half a text is not published",
           !metrics_http_publish( http, &half ) && http->refused == 1 && is_answer( port, ask, "HTTP/1.1 200 " ) );
    netcode_sleep( METRICS_HTTP_STALE_SECONDS + 1.2 );
    check( "a game that stands still: 503", is_answer( port, ask, "HTTP/1.1 503 " ) );
    metrics_http_publish( http, &text );
    check( "it goes on: 200", is_answer( port, ask, "HTTP/1.1 200 " ) );
    metrics_http_stop( http );
    metrics_http_stop( NULL );
    metrics_text_free( &text );
}

/* What two readers have in common: they read until this is set. */
struct readers_t {
    int port, stop;
    long whole, torn;
};

/* The number at the text's beginning stands at its end as well. What is no 200 is no text: the writer may have stood still. */
static void * read_again( void * context )
{
    struct readers_t * readers = (struct readers_t *) context;
    char answer[4096];
    while ( !__atomic_load_n( &readers->stop, __ATOMIC_RELAXED ) ) {
        get( readers->port, "GET /metrics HTTP/1.0\r\n\r\n", answer );
        const char *first = strstr( answer, "\nfirst_total " ), *last = strstr( answer, "\nlast_total " );
        int good = first && last && strtol( first + 13, NULL, 10 ) == strtol( last + 12, NULL, 10 );
        if ( !strncmp( answer, "HTTP/1.1 200 ", 13 ) || !strncmp( answer, "HTTP/1.0 200 ", 13 ) )
            __atomic_fetch_add( good ? &readers->whole : &readers->torn, 1, __ATOMIC_RELAXED );
    }
    return NULL;
}

static void test_threads( void )
{
    struct readers_t readers = { 0, 0, 0, 0 };
    struct metrics_text_t text = { 0 };
    pthread_t threads[2];
    struct metrics_http_t * http = metrics_http_start( "127.0.0.1", 0 );
    readers.port = http ? metrics_http_port( http ) : 0;
    double end = netcode_time() + 20.0;
    for ( uint64_t i = 0; http && netcode_time() < end; i++ ) {
        if ( i > 2000 && __atomic_load_n( &readers.whole, __ATOMIC_RELAXED ) > 20 )
            break;
        metrics_begin( &text );
        metrics_counter( &text, "first_total", i, "F." );
        for ( uint64_t j = 0; j < i % 40; j++ )
            metrics_labelled( &text, "more_total", "reason", "x", j );
        metrics_counter( &text, "last_total", i, "L." );
        metrics_http_publish( http, &text );
        for ( int j = 0; j < 2 && i == 0; j++ )
            pthread_create( &threads[j], NULL, read_again, &readers );
        netcode_sleep( 0.0005 );
    }
    __atomic_store_n( &readers.stop, 1, __ATOMIC_RELAXED );
    for ( int j = 0; j < 2 && http; j++ )
        pthread_join( threads[j], NULL );
    check( "readers beside a writer get whole texts", readers.whole > 20 && readers.torn == 0 );
    metrics_http_stop( http );
    metrics_text_free( &text );
}

/* A game with a thousand open files has metrics, too. */
static void test_many_files( void )
{
    static int files[1100];
    struct rlimit limit;
    getrlimit( RLIMIT_NOFILE, &limit );
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    setrlimit( RLIMIT_NOFILE, &limit );
    if ( limit.rlim_cur < 1200 ) {
        printf( "note    more than 1024 open files are not allowed here\n" );
        return;
    }
    for ( int i = 0; i < 1100; i++ )
        files[i] = open( "/dev/null", O_RDONLY );
    struct metrics_http_t * http = metrics_http_start( "127.0.0.1", 0 );
    check( "it serves beside 1100 open files",
           http && is_answer( metrics_http_port( http ), "GET / HTTP/1.0\r\n\r\n", "HTTP/1." ) );
    metrics_http_stop( http );
    for ( int i = 0; i < 1100; i++ )
        close( files[i] );
    limit.rlim_cur = before;
    setrlimit( RLIMIT_NOFILE, &limit );
}

static void test_http_v6( void )
{
    struct metrics_http_t * http = metrics_http_start( "::1", 0 );
    if ( !http )
        printf( "note    ::1 can not be had here: %s\n", strerror( errno ) );
    else
        check( "::1", metrics_http_port( http ) > 0 );
    metrics_http_stop( http );
}

int main( int argc, char ** argv )
{
    char path[512];
    const char * only = argc > 2 ? argv[2] : "";
    snprintf( path, sizeof( path ), "%s/text.prom", argc > 1 ? argv[1] : "." );
    if ( *only )
        check( "the locale is there", setlocale( LC_ALL, "" ) != NULL );
    if ( !strcmp( only, "threads" ) )
        test_threads();
    else
        test_locale();
    if ( *only )
        return failures ? 1 : 0;
    test_escapes();
    test_common_labels();
    test_numbers();
    test_memory( path );
    test_histogram();
    test_sessions();
    netcode_init();
    test_paths();
    netcode_term();
    test_files( argc > 1 ? argv[1] : ".", path );
    test_http();
    test_threads();
    test_many_files();
    test_http_v6();
    return failures ? 1 : 0;
}
