/*  A client that writes down what its connection is like: a line of CSV each quarter of a second, from
    netcode_messages_stats and, the columns core_..., netcode_client_stats. plots.sh draws it. It plays with serve.c: a small reliable message each tick, which comes
    back, and a snapshot from the server.

        make build/metrics-record         (libsodium)
        ./build/metrics-record --server 127.0.0.1:40000 --seconds 20 >good.csv
        ./build/metrics-record --server 127.0.0.1:40000 --through 127.0.0.1:40001 >bad.csv     (a relay in between)
        ./build/metrics-record --help

    It makes its token itself, so it has the private key: see examples/match.h. Real clients never do. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../../netcode.h"

#include "../match.h"
#include "metrics.h"

#include <signal.h>
#include <sodium.h>

#define INPUT_BYTES 24
#define TOKEN_SECONDS 60
#define TIMEOUT_SECONDS 10
#define CONNECT_SECONDS 15.0

struct options_t {
    const char * server;
    const char * through; /* what the client connects to: the server, or a relay in front of it */
    const char * metrics_file;
    double tick_rate, seconds, period;
    int id;
};

struct app_t {
    struct options_t options;
    struct netcode_client_t * client;
    struct netcode_messages_t * messages;
    struct metrics_text_t text;
    double connected_time, next_line, last_line;
    uint64_t last_sent, last_received; /* bytes, at the last line */
    uint64_t echoes, refused;
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

/* ---- CSV ---- */

static void write_header( void )
{
    printf( "seconds,rtt_ms,rtt_latest_ms,rtt_variation_ms,jitter_ms,ping_ms,loss_sent_percent,loss_received_percent,"
            "sent_bytes_per_second,received_bytes_per_second,packets_sent,packets_received,packets_lost,"
            "packets_lost_spuriously,messages_sent,messages_received,reliable_retries_total,core_rtt_ms,"
            "core_rtt_lowest_ms,core_loss_percent,core_packets_lost,core_packets_reordered,rebinds\n" );
}

/* Throughput is what the client's own counters say since the last line, keep-alives too. */
static void write_line( struct app_t * app, double now )
{
    struct netcode_messages_stats_t stats;
    struct netcode_client_stats_t client;
    double seconds = now - app->last_line;
    netcode_messages_stats( app->messages, &stats );
    netcode_client_stats( app->client, &client );
    printf( "%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,", now - app->connected_time, stats.rtt * 1e3,
            stats.rtt_latest * 1e3, stats.rtt_variation * 1e3, stats.jitter * 1e3, stats.ping * 1e3,
            stats.loss_sent * 1e2, stats.loss_received * 1e2 );
    printf( "%.0f,%.0f,%llu,%llu,%llu,%llu,%llu,%llu,%llu,", (double) ( client.bytes_sent - app->last_sent ) / seconds,
            (double) ( client.bytes_received - app->last_received ) / seconds, (unsigned long long) stats.packets_sent,
            (unsigned long long) stats.packets_received, (unsigned long long) stats.packets_lost,
            (unsigned long long) stats.packets_lost_spuriously, (unsigned long long) stats.messages_sent,
            (unsigned long long) stats.messages_received, (unsigned long long) stats.reliable_retries_total );
    printf( "%.3f,%.3f,%.3f,%llu,%llu,%llu\n", client.round_trip_seconds * 1e3, client.round_trip_lowest_seconds * 1e3,
            client.loss_share * 1e2, (unsigned long long) client.packets_lost,
            (unsigned long long) client.packets_reordered, (unsigned long long) client.rebinds );
    fflush( stdout );
    app->last_line = now;
    app->last_sent = client.bytes_sent;
    app->last_received = client.bytes_received;
}

/* The client's own metrics, which a game would send to its makers rather than have scraped. */
static int write_metrics( struct app_t * app )
{
    struct netcode_messages_stats_t stats;
    struct netcode_client_stats_t client;
    if ( !app->options.metrics_file )
        return 1;
    netcode_messages_stats( app->messages, &stats );
    netcode_client_stats( app->client, &client );
    metrics_begin( &app->text );
    metrics_client( &app->text, &client );
    metrics_messages( &app->text, &stats );
    if ( metrics_write_file( &app->text, app->options.metrics_file ) )
        return 1;
    fprintf( stderr, "record: %s can not be written: %s\n", app->options.metrics_file, strerror( errno ) );
    return 0;
}

/* ---- the run ---- */

static void tick( struct app_t * app, double now )
{
    static const uint8_t input[INPUT_BYTES];
    struct netcode_message_t message;
    netcode_messages_pull_from_client( app->messages, app->client, now );
    while ( netcode_messages_receive( app->messages, &message ) )
        app->echoes += message.channel == MATCH_INPUTS;
    if ( netcode_messages_send( app->messages, MATCH_INPUTS, NETCODE_MESSAGE_RELIABLE_ORDERED, input,
                                sizeof( input ) ) != NETCODE_OK )
        app->refused++;
    netcode_messages_push_to_client( app->messages, app->client, now );
}

/* The counters begin before the connection, the lines with it. */
static void begin_lines( struct app_t * app, double now )
{
    struct netcode_client_stats_t client;
    netcode_client_stats( app->client, &client );
    app->last_sent = client.bytes_sent;
    app->last_received = client.bytes_received;
    app->connected_time = app->last_line = now;
    app->next_line = now + app->options.period;
}

/* The first line comes a period after the connection: by then something was measured. */
static void note_time( struct app_t * app, double now )
{
    if ( app->connected_time <= 0.0 )
        begin_lines( app, now );
    if ( now < app->next_line )
        return;
    write_line( app, now );
    while ( app->next_line <= now )
        app->next_line += app->options.period;
}

/* 0 when it is over. */
static int step( struct app_t * app, double start )
{
    double now = netcode_time();
    netcode_client_update( app->client, now );
    int state = netcode_client_state( app->client );
    if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
        tick( app, now );
        note_time( app, now );
        return now - app->connected_time < app->options.seconds;
    }
    return state > NETCODE_CLIENT_STATE_DISCONNECTED && now - start < CONNECT_SECONDS;
}

static int run( struct app_t * app )
{
    double start = netcode_time(), next = start, period = 1.0 / app->options.tick_rate;
    struct netcode_client_report_t report;
    write_header();
    while ( !signal_stop && step( app, start ) ) {
        double now = netcode_time();
        next = now - next > 0.25 ? now + period : next + period;
        netcode_sleep( next - now );
    }
    if ( ferror( stdout ) ) {
        fprintf( stderr, "record: the lines can not be written\n" );
        return 0;
    }
    if ( netcode_client_state( app->client ) == NETCODE_CLIENT_STATE_CONNECTED )
        return write_metrics( app );
    netcode_client_report( app->client, &report );
    fprintf( stderr, "record: %s\n", report.text );
    return 0;
}

/* ---- beginning and end ---- */

static int create_client( struct app_t * app )
{
    struct netcode_client_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], key[NETCODE_KEY_BYTES];
    const char * through = app->options.through ? app->options.through : app->options.server;
    if ( !match_key_for( "record", app->options.server, key ) )
        return 0;
    netcode_default_client_config( &config );
    app->client = netcode_client_create( match_client_address( through ), &config, netcode_time() );
    app->messages = netcode_messages_create( NULL, netcode_time() );
    int good =
        app->client && app->messages &&
        netcode_generate_connect_token( 1, &through, &app->options.server, TOKEN_SECONDS, TIMEOUT_SECONDS,
                                        (uint64_t) app->options.id, MATCH_PROTOCOL_ID, key, NULL, token ) == NETCODE_OK;
    if ( good )
        netcode_client_connect( app->client, token );
    else
        fprintf( stderr, "record: the client could not be made: an address, a socket or memory\n" );
    sodium_memzero( token, sizeof( token ) );
    sodium_memzero( key, sizeof( key ) );
    return good;
}

static void print_help( void )
{
    printf( "usage: record [options]\n"
            "\n"
            "  --server ADDRESS      the server, as it calls itself (" MATCH_ADDRESS ")\n"
            "  --through ADDRESS     where to connect to, if it is not the server: a relay\n"
            "  --id N                the client's id (1)\n"
            "  --seconds N           after the connection was made (20)\n"
            "  --period S            between two lines (0.25)\n"
            "  --tick-rate N         a second (60)\n"
            "  --metrics-file FILE   at the end: the client's counters as Prometheus text\n"
            "\n"
            "Exit status: 0, 3 when it did not connect, fell out or could not write, 1 when it could not start, 2 for "
            "wrong usage.\n" );
}

static int parse_option( struct options_t * options, const char * name, const char * text )
{
    double number = 0.0;
    if ( !strcmp( name, "--server" ) )
        options->server = text;
    else if ( !strcmp( name, "--through" ) )
        options->through = text;
    else if ( !strcmp( name, "--metrics-file" ) )
        options->metrics_file = text;
    else if ( !strcmp( name, "--id" ) && match_number( text, 0.0, 1e9, &number ) )
        options->id = (int) number;
    else if ( !strcmp( name, "--seconds" ) && match_number( text, 0.1, 1e6, &number ) )
        options->seconds = number;
    else if ( !strcmp( name, "--period" ) && match_number( text, 0.05, 60.0, &number ) )
        options->period = number;
    else if ( !strcmp( name, "--tick-rate" ) && match_number( text, 1.0, 1000.0, &number ) )
        options->tick_rate = number;
    else
        return 0;
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    options->server = MATCH_ADDRESS;
    options->tick_rate = 60.0;
    options->seconds = 20.0;
    options->period = 0.25;
    options->id = 1;
    for ( int i = 1; i < argc; i += 2 )
        if ( i + 1 >= argc || !parse_option( options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "record: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    return 1;
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    int status = 1;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    if ( !parse_options( argc, argv, &app.options ) )
        return 2;
    if ( netcode_init() != NETCODE_OK )
        return 1;
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    if ( create_client( &app ) ) {
        status = run( &app ) ? 0 : 3;
        netcode_client_disconnect( app.client );
    }
    netcode_client_destroy( app.client );
    netcode_messages_destroy( app.messages );
    metrics_text_free( &app.text );
    netcode_term();
    return status;
}
