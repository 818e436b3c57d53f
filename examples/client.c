/*  A client. Without arguments it reads ./demo.token, which the server beside it keeps; else it takes a token from
    a file or from standard input: the raw 2048 bytes, base64, or JSON with "connect_token". It never sees the
    private key. It sends payloads, checks that they come back as they were, and ends with a summary and an exit
    status by outcome: see --help.

        cc examples/client.c -lsodium -o client
        ./client                          (beside a ./server)
        ./client - < token_from_backend.json */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#define DEMO_TOKEN_FILE "demo.token"
#define MAX_INPUT_BYTES 65536
#define MIN_PAYLOAD_BYTES 8      /* its number */
#define NUMBERS_REMEMBERED 65536 /* payloads whose sending time is known; a power of two */
#define MAX_ROUND_TRIPS 1000000  /* measured for the summary */
#define IN_FLIGHT 32             /* payloads on their way at once with --rate 0 */
#define ECHO_SECONDS 1.0         /* how long the last echoes are waited for */
#define STALL_SECONDS 0.25       /* with --rate 0: what has not come back by then is given up */
#define STRICT_SECONDS 60.0      /* both, with --strict: a server that stands still for a moment has lost nothing */

/* The exit status. */
#define EXIT_FINE 0
#define EXIT_START 1
#define EXIT_USAGE 2
#define EXIT_DENIED 3
#define EXIT_REQUEST_TIMED_OUT 4
#define EXIT_RESPONSE_TIMED_OUT 5
#define EXIT_CONNECTION_TIMED_OUT 6
#define EXIT_TOKEN_EXPIRED 7
#define EXIT_TOKEN_INVALID 8
#define EXIT_SERVER_DISCONNECTED 9
#define EXIT_PAYLOADS 10
#define EXIT_INTERRUPTED 11

struct options_t {
    const char * token_file;
    const char * bind_address;
    const char * bind_address2;
    uint64_t count; /* payloads to send; 0: until a signal comes */
    double rate;    /* payloads a second; 0: as fast as they come back */
    int bytes;
    int listen; /* send nothing that has to come back */
    int strict;
    double seconds; /* 0: no limit */
    int sequence_base;
};

struct app_t {
    struct netcode_client_t * client;
    struct netcode_address_t server_address; /* the one that was logged last */
    struct options_t options;
    double start_time;
    uint64_t sent;
    uint64_t received; /* echoes that were right, each counted once */
    uint64_t wrong;    /* neither one of ours nor as it was sent */
    uint64_t repeated; /* came back more than once */
    uint64_t other;    /* with --listen: payloads received */
    uint64_t in_flight;
    double last_progress; /* when an echo last came */
    double sent_at[NUMBERS_REMEMBERED];
    unsigned char echoed[NUMBERS_REMEMBERED];
    double * round_trips;
    size_t num_round_trips;
    int connected; /* it was, at some time */
    double connected_at;
    double finished_at;
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

static void say( const struct app_t * app, const char * format, ... )
{
    va_list arguments;
    printf( "%9.3f  ", netcode_time() - app->start_time );
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    putchar( '\n' );
    fflush( stdout );
}

static void on_log( void * context, int level, const char * text )
{
    say( (const struct app_t *) context, "netcode: %s%s", level <= NETCODE_LOG_LEVEL_ERROR ? "error: " : "", text );
}

static void on_state( void * context, int previous, int state )
{
    const struct app_t * app = (const struct app_t *) context;
    say( app, "state %s -> %s", netcode_client_state_name( previous ), netcode_client_state_name( state ) );
}

/* ---- the token ---- */

/* Finds the string "connect_token" in a JSON text. A scan is enough: the name can not stand in base64. */
static const char * json_token( const char * text, size_t * bytes )
{
    static const char name[] = "\"connect_token\"";
    const char * at = strstr( text, name );
    if ( !at )
        return NULL;
    at += sizeof( name ) - 1;
    at += strspn( at, " \t\r\n" );
    if ( *at != ':' )
        return NULL;
    at++;
    at += strspn( at, " \t\r\n" );
    if ( *at != '"' )
        return NULL;
    at++;
    *bytes = strcspn( at, "\"" );
    return at;
}

/* `data` has a zero behind its end. */
static int parse_token( const char * data, size_t bytes, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    size_t token_bytes = 0;
    const char * text = data;
    size_t text_bytes = bytes;
    const char * end = NULL;
    if ( bytes == NETCODE_CONNECT_TOKEN_BYTES && !memcmp( data, "NETCODE", 7 ) ) {
        memcpy( token, data, NETCODE_CONNECT_TOKEN_BYTES );
        return 1;
    }
    if ( data[strspn( data, " \t\r\n" )] == '{' )
        text = json_token( data, &text_bytes );
    /* Some JSON writers put a backslash before each slash. */
    return text &&
           sodium_base642bin( token, NETCODE_CONNECT_TOKEN_BYTES, text, text_bytes, " \t\r\n\\", &token_bytes, &end,
                              sodium_base64_VARIANT_ORIGINAL ) == 0 &&
           token_bytes == NETCODE_CONNECT_TOKEN_BYTES && end == text + text_bytes;
}

static int read_token( const char * path, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    static char data[MAX_INPUT_BYTES + 1];
    FILE * file = strcmp( path, "-" ) ? fopen( path, "rb" ) : stdin;
    if ( !file ) {
        fprintf( stderr, "client: the token file %s can not be opened: %s\n", path, strerror( errno ) );
        if ( !strcmp( path, DEMO_TOKEN_FILE ) )
            fprintf( stderr, "client: start the server in this directory first, or give a token file; see --help\n" );
        return 0;
    }
#ifdef _WIN32
    _setmode( _fileno( file ), _O_BINARY );
#endif
    size_t bytes = fread( data, 1, MAX_INPUT_BYTES, file );
    if ( file != stdin )
        fclose( file );
    data[bytes] = '\0';
    int good = parse_token( data, bytes, token );
    sodium_memzero( data, sizeof( data ) );
    if ( !good )
        fprintf( stderr, "client: %s holds no connect token: 2048 bytes, base64, or JSON with \"connect_token\"\n",
                 path );
    return good;
}

/* ---- payloads: a number of 8 bytes, then bytes that follow from it ---- */

static void fill_payload( uint64_t number, uint8_t * data, int bytes )
{
    for ( int i = 0; i < bytes; i++ )
        data[i] = (uint8_t) ( i < MIN_PAYLOAD_BYTES ? number >> ( 8 * i ) : number * 31 + (uint64_t) i * 7 );
}

static void send_payload( struct app_t * app )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    uint64_t number = app->sent++;
    fill_payload( number, data, app->options.bytes );
    app->sent_at[number % NUMBERS_REMEMBERED] = netcode_time();
    app->echoed[number % NUMBERS_REMEMBERED] = 0;
    app->in_flight++;
    netcode_client_send_packet( app->client, data, app->options.bytes );
}

static void take_echo( struct app_t * app, const uint8_t * data, int bytes )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    double now = netcode_time();
    uint64_t number = 0;
    for ( int i = 0; i < MIN_PAYLOAD_BYTES && i < bytes; i++ )
        number |= (uint64_t) data[i] << ( 8 * i );
    fill_payload( number, expected, app->options.bytes );
    if ( bytes != app->options.bytes || memcmp( data, expected, (size_t) bytes ) != 0 || number >= app->sent ||
         app->sent - number > NUMBERS_REMEMBERED ) {
        app->wrong++;
    } else if ( app->echoed[number % NUMBERS_REMEMBERED] ) {
        app->repeated++;
    } else {
        app->echoed[number % NUMBERS_REMEMBERED] = 1;
        app->received++;
        app->last_progress = now;
        if ( app->in_flight )
            app->in_flight--;
        if ( app->num_round_trips < MAX_ROUND_TRIPS )
            app->round_trips[app->num_round_trips++] = now - app->sent_at[number % NUMBERS_REMEMBERED];
    }
}

static void receive_payloads( struct app_t * app )
{
    int bytes = 0;
    uint8_t * data = NULL;
    while ( ( data = netcode_client_receive_packet( app->client, &bytes, NULL ) ) != NULL ) {
        if ( app->options.listen )
            app->other++;
        else
            take_echo( app, data, bytes );
        netcode_client_free_packet( app->client, data );
    }
}

/* Sends what is due. Returns the seconds until the next is. */
static double send_payloads( struct app_t * app, double now )
{
    const struct options_t * options = &app->options;
    if ( options->listen )
        return 0.1;
    if ( options->rate > 0.0 ) {
        double due = ( now - app->connected_at ) * options->rate + 1.0;
        while ( (double) app->sent + 1.0 <= due && ( !options->count || app->sent < options->count ) )
            send_payload( app );
        return app->connected_at + (double) app->sent / options->rate - now;
    }
    if ( now - app->last_progress > ( options->strict ? STRICT_SECONDS : STALL_SECONDS ) ) {
        app->in_flight = 0;
        app->last_progress = now;
    }
    while ( app->in_flight < IN_FLIGHT && ( !options->count || app->sent < options->count ) )
        send_payload( app );
    return STALL_SECONDS;
}

/* ---- the connection ---- */

static int is_connecting( int state )
{
    return state == NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST ||
           state == NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE;
}

static void on_connected( struct app_t * app, double now )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    app->connected = 1;
    app->connected_at = now;
    app->last_progress = now;
    say( app, "connected to %s as slot %d of %d, after %.0f ms",
         netcode_address_to_string( netcode_client_server_address( app->client ), text ),
         netcode_client_index( app->client ), netcode_client_max_clients( app->client ),
         ( now - app->start_time ) * 1000.0 );
}

/* Logs when the token's next server is tried: the state does not show that. */
static void log_server( struct app_t * app )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const struct netcode_address_t * address = netcode_client_server_address( app->client );
    if ( !netcode_address_equal( address, &app->server_address ) )
        say( app, "trying %s", netcode_address_to_string( address, text ) );
    app->server_address = *address;
}

/* A signal stopped us, or the time that we were given is over. */
static int must_leave( const struct app_t * app, double now )
{
    return signal_stop || ( app->options.seconds > 0.0 && now - app->start_time >= app->options.seconds );
}

/* What was sent came back, or had its time to. */
static int has_echoes( const struct app_t * app, double now )
{
    return app->options.listen || app->received == app->sent ||
           now - app->sent_at[( app->sent - 1 ) % NUMBERS_REMEMBERED] >
               ( app->options.strict ? STRICT_SECONDS : ECHO_SECONDS );
}

/*  Everything was sent and came back; or we must leave, which --strict does not while an echo is on its way: it would
    count as lost. */
static int is_done( const struct app_t * app, double now )
{
    const struct options_t * options = &app->options;
    if ( must_leave( app, now ) )
        return !options->strict || has_echoes( app, now );
    return options->count && !options->listen && app->sent >= options->count && has_echoes( app, now );
}

/* Runs until the connection ends, and returns the state that it ended in: CONNECTED when it was we who are done. */
static int run( struct app_t * app, uint8_t * token )
{
    int state = NETCODE_CLIENT_STATE_DISCONNECTED;
    netcode_client_connect( app->client, token );
    for ( ;; ) {
        double now = netcode_time();
        double wait_seconds = 0.1;
        netcode_client_update( app->client, now );
        state = netcode_client_state( app->client );
        log_server( app );
        receive_payloads( app );
        if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
            if ( !app->connected )
                on_connected( app, now );
            if ( is_done( app, now ) )
                break;
            if ( !must_leave( app, now ) )
                wait_seconds = send_payloads( app, now );
        } else if ( !is_connecting( state ) || must_leave( app, now ) ) {
            break;
        }
        if ( wait_seconds > 0.0 )
            netcode_client_wait( app->client, wait_seconds < 0.1 ? wait_seconds : 0.1 );
    }
    app->finished_at = netcode_time();
    return state;
}

/* ---- what is printed at the end ---- */

static void print_report( const struct app_t * app )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_client_report_t report;
    netcode_client_report( app->client, &report );
    say( app, "report: %s", report.text );
    for ( int i = 0; i < report.num_servers && i <= report.server_index && i < NETCODE_MAX_SERVERS_PER_CONNECT; i++ ) {
        const struct netcode_client_report_server_t * server = &report.servers[i];
        say( app, "report: %s: %llu requests, %llu responses, %schallenged, %sdenied, %d socket errors%s%s, %.1f s",
             netcode_address_to_string( &server->address, text ), (unsigned long long) server->requests_sent,
             (unsigned long long) server->responses_sent, server->challenged ? "" : "not ",
             server->denied ? "" : "not ", server->errors, server->errors ? ", the last: " : "",
             server->errors ? strerror( server->last_error ) : "", server->seconds_waited );
    }
}

static int compare_doubles( const void * a, const void * b )
{
    double left = *(const double *) a;
    double right = *(const double *) b;
    return ( left > right ) - ( left < right );
}

/* What the library measured of the path, beside the echoes: of keep-alives, so update to update. */
static void print_path( const struct app_t * app )
{
    struct netcode_client_stats_t stats;
    netcode_client_stats( app->client, &stats );
    say( app, "path round_trip_ms=%.3f lowest=%.3f loss=%.4f packets_lost=%llu reordered=%llu rebinds=%llu",
         stats.round_trip_seconds * 1000.0, stats.round_trip_lowest_seconds * 1000.0, stats.loss_share,
         (unsigned long long) stats.packets_lost, (unsigned long long) stats.packets_reordered,
         (unsigned long long) stats.rebinds );
}

static void print_summary( struct app_t * app )
{
    double seconds = app->finished_at - app->connected_at;
    if ( app->options.listen ) {
        say( app, "summary received=%llu seconds=%.3f", (unsigned long long) app->other, seconds );
        return;
    }
    printf( "%9.3f  summary sent=%llu received=%llu lost=%llu wrong=%llu repeated=%llu bytes=%d seconds=%.3f "
            "per_second=%.0f",
            netcode_time() - app->start_time, (unsigned long long) app->sent, (unsigned long long) app->received,
            (unsigned long long) ( app->sent - app->received ), (unsigned long long) app->wrong,
            (unsigned long long) app->repeated, app->options.bytes, seconds,
            seconds > 0.0 ? (double) app->received / seconds : 0.0 );
    if ( app->num_round_trips ) {
        size_t count = app->num_round_trips;
        const double * sorted = app->round_trips;
        qsort( app->round_trips, count, sizeof( double ), compare_doubles );
        printf( " round_trip_ms_min=%.3f median=%.3f p90=%.3f p99=%.3f", sorted[0] * 1000.0, sorted[count / 2] * 1000.0,
                sorted[count * 9 / 10] * 1000.0, sorted[count * 99 / 100] * 1000.0 );
    }
    putchar( '\n' );
    fflush( stdout );
}

static int exit_status( const struct app_t * app, int state )
{
    switch ( state ) {
    case NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED: return EXIT_TOKEN_EXPIRED;
    case NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN: return EXIT_TOKEN_INVALID;
    case NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT: return EXIT_CONNECTION_TIMED_OUT;
    case NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT: return EXIT_RESPONSE_TIMED_OUT;
    case NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT: return EXIT_REQUEST_TIMED_OUT;
    case NETCODE_CLIENT_STATE_CONNECTION_DENIED: return EXIT_DENIED;
    case NETCODE_CLIENT_STATE_DISCONNECTED: return EXIT_SERVER_DISCONNECTED;
    case NETCODE_CLIENT_STATE_CONNECTED: break;
    default: return EXIT_INTERRUPTED;
    }
    if ( app->options.listen )
        return EXIT_FINE;
    if ( app->wrong || app->repeated )
        return EXIT_PAYLOADS;
    if ( app->sent && !app->received && app->finished_at - app->connected_at > ECHO_SECONDS )
        return EXIT_PAYLOADS;
    return app->options.strict && app->received < app->sent ? EXIT_PAYLOADS : EXIT_FINE;
}

/* ---- options ---- */

static void print_help( void )
{
    printf(
        "usage: client [options] [TOKEN_FILE]\n"
        "\n"
        "Connects with a connect token, sends payloads and checks that the server says them back.\n"
        "TOKEN_FILE holds the raw 2048 bytes, base64, or JSON with \"connect_token\"; - is standard input.\n"
        "Without it: ./" DEMO_TOKEN_FILE ", which a server that was started without arguments keeps.\n"
        "\n"
        "  --count N                payloads to send; 0: until SIGINT or SIGTERM (300)\n"
        "  --rate N                 payloads a second; 0: as fast as they come back, %d on their way (60)\n"
        "  --bytes N                size of a payload, %d..%d (100)\n"
        "  --listen                 send nothing, only receive; for servers that do not echo\n"
        "  --strict                 a lost payload is a failure\n"
        "  --seconds N              leave after N seconds at the latest\n"
        "  --bind ADDRESS           send from this address (any, of the families that the token names)\n"
        "  --bind2 ADDRESS          and from this one, of the other family\n"
        "  --sequence-base-zero     sequences start at zero: shorter packets, weaker: examples/docs/SECURITY.md\n"
        "  --help                   this text\n"
        "\n"
        "Exit status: %d fine, %d could not start (file, address, socket), %d wrong usage, %d denied: the server is "
        "full,\n"
        "%d the server did not answer the request, %d nor the response to its challenge, %d the connection timed out,\n"
        "%d the token expired, %d the token is invalid, %d the server ended the connection, %d payloads came back "
        "wrong,\n"
        "or not at all, or (--strict) not all of them, %d it had to leave before it was connected.\n",
        IN_FLIGHT, MIN_PAYLOAD_BYTES, NETCODE_MAX_PACKET_SIZE, EXIT_FINE, EXIT_START, EXIT_USAGE, EXIT_DENIED,
        EXIT_REQUEST_TIMED_OUT, EXIT_RESPONSE_TIMED_OUT, EXIT_CONNECTION_TIMED_OUT, EXIT_TOKEN_EXPIRED,
        EXIT_TOKEN_INVALID, EXIT_SERVER_DISCONNECTED, EXIT_PAYLOADS, EXIT_INTERRUPTED );
}

/* A number in the range, or -1. */
static double parse_number( const char * text, double minimum, double maximum )
{
    char * end = NULL;
    double number = strtod( text, &end );
    return end != text && *end == '\0' && number >= minimum && number <= maximum ? number : -1.0;
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_value( const char * name, const char * value, struct options_t * options )
{
    double number = 0.0;
    if ( !strcmp( name, "--count" ) && ( number = parse_number( value, 0.0, 1e15 ) ) >= 0.0 )
        options->count = (uint64_t) number;
    else if ( !strcmp( name, "--rate" ) && ( number = parse_number( value, 0.0, 1e6 ) ) >= 0.0 )
        options->rate = number;
    else if ( !strcmp( name, "--bytes" ) &&
              ( number = parse_number( value, MIN_PAYLOAD_BYTES, NETCODE_MAX_PACKET_SIZE ) ) >= 0.0 )
        options->bytes = (int) number;
    else if ( !strcmp( name, "--seconds" ) && ( number = parse_number( value, 0.001, 1e9 ) ) >= 0.0 )
        options->seconds = number;
    else if ( !strcmp( name, "--bind" ) )
        options->bind_address = value;
    else if ( !strcmp( name, "--bind2" ) )
        options->bind_address2 = value;
    else
        return 0;
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->token_file = DEMO_TOKEN_FILE;
    options->count = 300;
    options->rate = 60.0;
    options->bytes = 100;
    options->sequence_base = NETCODE_SEQUENCE_BASE_RANDOM;
    for ( int i = 1; i < argc; i++ ) {
        if ( !strcmp( argv[i], "--listen" ) ) {
            options->listen = 1;
        } else if ( !strcmp( argv[i], "--strict" ) ) {
            options->strict = 1;
        } else if ( !strcmp( argv[i], "--sequence-base-zero" ) ) {
            options->sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
        } else if ( argv[i][0] != '-' || !strcmp( argv[i], "-" ) ) {
            options->token_file = argv[i];
        } else if ( i + 1 < argc && parse_value( argv[i], argv[i + 1], options ) ) {
            i++;
        } else {
            fprintf( stderr, "client: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    }
    return 1;
}

/* ---- the client ---- */

/* Sends from wildcard addresses of the families that the token names, unless an option says otherwise. */
static void choose_bind_addresses( const uint8_t * token, struct options_t * options )
{
    struct netcode_connect_token_info_t info;
    int ipv4 = 0;
    int ipv6 = 0;
    if ( options->bind_address )
        return;
    if ( netcode_connect_token_info( token, &info ) == NETCODE_OK ) {
        for ( int i = 0; i < info.num_server_addresses; i++ ) {
            ipv4 |= info.server_addresses[i].type == NETCODE_ADDRESS_IPV4;
            ipv6 |= info.server_addresses[i].type == NETCODE_ADDRESS_IPV6;
        }
    }
    options->bind_address = ipv6 && !ipv4 ? "::" : "0.0.0.0";
    if ( ipv6 && ipv4 && !options->bind_address2 )
        options->bind_address2 = "::";
}

static int create_client( struct app_t * app, const uint8_t * token )
{
    struct options_t * options = &app->options;
    struct netcode_client_config_t config;
    choose_bind_addresses( token, options );
    netcode_default_client_config( &config );
    config.callback_context = app;
    config.log_callback = on_log;
    config.state_change_callback = on_state;
    config.sequence_base = options->sequence_base;
    app->client = options->bind_address2 ? netcode_client_create_dual( options->bind_address, options->bind_address2,
                                                                       &config, netcode_time() )
                                         : netcode_client_create( options->bind_address, &config, netcode_time() );
    if ( !app->client )
        fprintf( stderr, "client: %s\n", netcode_client_create_error_text( netcode_client_create_error() ) );
    return app->client != NULL;
}

/* Connects, and reports how it went. */
static int play( struct app_t * app, uint8_t * token )
{
    int state = run( app, token );
    if ( !app->connected ) {
        print_report( app );
    } else {
        netcode_client_disconnect( app->client );
        print_path( app );
        print_summary( app );
    }
    return exit_status( app, state );
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int status = EXIT_START;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return EXIT_FINE;
    }
    if ( !parse_options( argc, argv, &app.options ) )
        return EXIT_USAGE;
    if ( netcode_init() != NETCODE_OK ) {
        fprintf( stderr, "client: netcode_init failed\n" );
        return EXIT_START;
    }
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    app.start_time = netcode_time();
    app.round_trips = (double *) malloc( MAX_ROUND_TRIPS * sizeof( double ) );
    if ( !app.round_trips )
        fprintf( stderr, "client: out of memory\n" );
    else if ( read_token( app.options.token_file, token ) && create_client( &app, token ) )
        status = play( &app, token );
    netcode_client_destroy( app.client );
    free( app.round_trips );
    sodium_memzero( token, sizeof( token ) );
    netcode_term();
    return status;
}
