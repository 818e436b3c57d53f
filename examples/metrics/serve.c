/*  A small server with messages that publishes everything there is to measure: the server's counters, the messages of
    all slots, and how long updates and round trips take. It is the other side of record.c: every message that comes
    is said back, and every tick brings each player a snapshot of 200 bytes.

        make build/metrics-serve          (libsodium, libmicrohttpd)
        ./build/metrics-serve --metrics 9101
        ./build/metrics-serve --help

    Its first lines on standard output name the ports, its last one is a line of counters, which SIGUSR1 prints as well.
    The key is examples/match.h's: NETCODE_PRIVATE_KEY, or one that everybody knows, on loopback only. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../../netcode.h"

#include "../match.h"
#include "http.h"
#include "metrics.h"

#include <sodium.h>

#define MAX_SLOTS 64
#define SNAPSHOT_BYTES 200
#define PUBLISH_SECONDS 0.5

struct options_t {
    const char * address;
    const char * metrics_file;
    int slots, metrics_port; /* -1: none */
    double tick_rate, seconds;
};

struct app_t {
    struct options_t options;
    struct netcode_server_t * server;
    struct netcode_messages_t * messages[MAX_SLOTS];
    struct metrics_http_t * http;
    struct metrics_text_t text;
    struct metrics_histogram_t updates;
    struct metrics_paths_t paths;
    struct metrics_messages_t all;
    double next_publish;
    int file_failed;
};

static volatile sig_atomic_t signal_stop;
static volatile sig_atomic_t signal_stats;

static void on_signal( int number )
{
    if ( number == SIGUSR1 )
        signal_stats = 1;
    else
        signal_stop = 1;
}

/* ---- the game: an echo and a snapshot ---- */

static void play_slot( struct app_t * app, int slot, double now )
{
    static const uint8_t snapshot[SNAPSHOT_BYTES];
    struct netcode_message_t message;
    struct netcode_messages_t * messages = app->messages[slot];
    netcode_messages_pull_from_server( messages, app->server, slot, now );
    if ( !netcode_server_client_connected( app->server, slot ) )
        return;
    while ( netcode_messages_receive( messages, &message ) )
        netcode_messages_send( messages, message.channel, message.kind, message.data, message.bytes );
    netcode_messages_send( messages, MATCH_SNAPSHOTS, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED, snapshot,
                           sizeof( snapshot ) );
    netcode_messages_push_to_server( messages, app->server, slot, now );
}

/* ---- what is published ---- */

static void collect_messages( struct app_t * app )
{
    struct netcode_messages_stats_t stats;
    metrics_messages_begin( &app->all );
    for ( int i = 0; i < app->options.slots; i++ ) {
        netcode_messages_stats( app->messages[i], &stats );
        metrics_messages_slot( &app->all, i, netcode_server_client_session( app->server, i ), &stats );
    }
    metrics_messages( &app->text, metrics_messages_end( &app->all ) );
}

static void publish( struct app_t * app )
{
    struct netcode_server_stats_t stats;
    netcode_server_stats( app->server, &stats );
    metrics_begin( &app->text );
    metrics_server( &app->text, &stats, &app->updates );
    metrics_paths( &app->text, &app->paths, app->server );
    collect_messages( app );
    if ( app->http )
        metrics_http_publish( app->http, &app->text );
    if ( app->options.metrics_file && !metrics_write_file( &app->text, app->options.metrics_file ) ) {
        if ( !app->file_failed )
            fprintf( stderr, "serve: %s can not be written: %s\n", app->options.metrics_file, strerror( errno ) );
        app->file_failed = 1;
    } else
        app->file_failed = 0;
}

/* One line of NAME=VALUE, as examples/server.c's. */
static void say_stats( const struct app_t * app )
{
    struct netcode_server_stats_t stats;
    uint64_t sent = 0, received = 0;
    netcode_server_stats( app->server, &stats );
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ ) {
        sent += stats.packets_sent[i];
        received += stats.packets_received[i];
    }
    printf( "stats clients=%d slots=%d connects=%llu packets_sent=%llu packets_received=%llu datagrams_received=%llu "
            "bytes_received=%llu bytes_sent=%llu",
            stats.clients, stats.max_clients, (unsigned long long) stats.connects, (unsigned long long) sent,
            (unsigned long long) received, (unsigned long long) stats.datagrams_received,
            (unsigned long long) stats.bytes_received, (unsigned long long) stats.bytes_sent );
    for ( int i = 0; i < (int) NETCODE_DROP_REASONS; i++ )
        if ( stats.dropped[i] )
            printf( " drop_%s=%llu", netcode_drop_reason_name( i ), (unsigned long long) stats.dropped[i] );
    putchar( '\n' );
    fflush( stdout );
}

/* ---- the run ---- */

static void tick( struct app_t * app )
{
    double now = netcode_time();
    netcode_server_update( app->server, now );
    metrics_observe( &app->updates, netcode_time() - now );
    for ( int i = 0; i < app->options.slots; i++ )
        play_slot( app, i, now );
    if ( signal_stats ) {
        signal_stats = 0;
        say_stats( app );
    }
    if ( now >= app->next_publish ) {
        app->next_publish = now + PUBLISH_SECONDS;
        publish( app );
    }
}

static void run( struct app_t * app )
{
    double start = netcode_time(), next = start, period = 1.0 / app->options.tick_rate;
    while ( !signal_stop && ( app->options.seconds <= 0.0 || next - start < app->options.seconds ) ) {
        double now = netcode_time();
        if ( now < next ) {
            netcode_sleep( next - now );
            continue;
        }
        next = now - next > 0.25 ? now + period : next + period;
        tick( app );
    }
    netcode_server_stop( app->server );
    publish( app );
    say_stats( app );
}

/* ---- beginning and end ---- */

static int create_server( struct app_t * app )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.protocol_id = MATCH_PROTOCOL_ID;
    config.roaming = 1;
    /* A key that everybody knows is for loopback, so nothing else may reach the socket either. */
    config.bind_address = match_is_loopback( app->options.address ) ? app->options.address : NULL;
    if ( !match_key_for( "serve", app->options.address, config.private_key ) )
        return 0;
    app->server = netcode_server_create( app->options.address, &config, netcode_time() );
    sodium_memzero( config.private_key, sizeof( config.private_key ) );
    if ( !app->server ) {
        fprintf( stderr, "serve: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 0;
    }
    netcode_server_start( app->server, app->options.slots );
    int good = netcode_server_running( app->server );
    for ( int i = 0; good && i < app->options.slots; i++ )
        good = ( app->messages[i] = netcode_messages_create( NULL, netcode_time() ) ) != NULL;
    if ( !good )
        fprintf( stderr, "serve: there is no memory for %d slots\n", app->options.slots );
    return good;
}

/* Port 0 becomes a real one when the server is made. */
static void say_address( const struct app_t * app )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_address_t address;
    netcode_parse_address( app->options.address, &address );
    address.port = netcode_server_get_port( app->server );
    printf( "listening on %s\n", netcode_address_to_string( &address, text ) );
    fflush( stdout );
}

static int start_http( struct app_t * app )
{
    if ( app->options.metrics_port < 0 )
        return 1;
    app->http = metrics_http_start( "127.0.0.1", app->options.metrics_port );
    if ( app->http )
        printf( "metrics on 127.0.0.1:%d\n", metrics_http_port( app->http ) );
    else
        fprintf( stderr, "serve: --metrics %d: %s\n", app->options.metrics_port, strerror( errno ) );
    return app->http != NULL;
}

static void close_all( struct app_t * app )
{
    metrics_http_stop( app->http );
    for ( int i = 0; i < MAX_SLOTS; i++ )
        netcode_messages_destroy( app->messages[i] );
    netcode_server_destroy( app->server );
    metrics_text_free( &app->text );
}

static void print_help( void )
{
    printf( "usage: serve [options]\n"
            "\n"
            "  --address ADDRESS     as tokens name it; port 0: any (%s)\n"
            "  --slots N             up to %d (16)\n"
            "  --metrics PORT        http://127.0.0.1:PORT/metrics; 0: any port\n"
            "  --metrics-file FILE   the same as a file, for node_exporter's textfile collector\n"
            "  --tick-rate N         a second (60)\n"
            "  --seconds N           ends after them; 0: on SIGTERM or SIGINT (0)\n"
            "\n"
            "Exit status: 0, 1 when it could not start, 2 for wrong usage.\n",
            MATCH_ADDRESS, MAX_SLOTS );
}

static int parse_option( struct options_t * options, const char * name, const char * text )
{
    double number = 0.0;
    if ( !strcmp( name, "--address" ) )
        options->address = text;
    else if ( !strcmp( name, "--metrics-file" ) )
        options->metrics_file = text;
    else if ( !strcmp( name, "--slots" ) && match_number( text, 1.0, MAX_SLOTS, &number ) )
        options->slots = (int) number;
    else if ( !strcmp( name, "--metrics" ) && match_number( text, 0.0, 65535.0, &number ) )
        options->metrics_port = (int) number;
    else if ( !strcmp( name, "--tick-rate" ) && match_number( text, 1.0, 1000.0, &number ) )
        options->tick_rate = number;
    else if ( !strcmp( name, "--seconds" ) && match_number( text, 0.0, 1e6, &number ) )
        options->seconds = number;
    else
        return 0;
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    options->address = MATCH_ADDRESS;
    options->slots = 16;
    options->metrics_port = -1;
    options->tick_rate = 60.0;
    for ( int i = 1; i < argc; i += 2 )
        if ( i + 1 >= argc || !parse_option( options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "serve: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    return 1;
}

int main( int argc, char ** argv )
{
    static struct app_t app;
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
    signal( SIGUSR1, on_signal );
    signal( SIGPIPE, SIG_IGN );
    metrics_histogram_init_seconds( &app.updates );
    metrics_paths_init( &app.paths );
    int good = create_server( &app ) && start_http( &app );
    if ( good ) {
        say_address( &app );
        run( &app );
    }
    close_all( &app );
    netcode_term();
    return good ? 0 : 1;
}
