/*  A player's client: logs in at a backend over TLS with its credential, gets a connect token, and plays. When the
    connection is lost it asks the backend for a newer token and goes on, wherever that leads, and reports how long
    no payload was heard. Certificates are always verified: there is no option against that. The private key is not here
    and never will be; with -O1 or more even the code that makes tokens is left out by the compiler.

        cc -O2 examples/backend/client_http.c $(pkg-config --cflags --libs libcurl libcjson libsodium) -lm -o client_http
        ./client_http --url https://localhost:8443/v1/connect-token --ca ca.pem --credential-file alice.credential */

#define NETCODE_IMPLEMENTATION
#define NETCODE_STATIC /* what is not used, such as the making of tokens, does not get into the program */
#include "../../netcode.h"

#include "../secret_file.h"
#include "login.h"

#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PAYLOAD_BYTES 100
#define NUMBER_BYTES 8
#define FIRST_DELAY_SECONDS 0.1
#define MAX_DELAY_SECONDS 5.0
#define MAX_RETRY_AFTER_SECONDS 60.0
#define ECHO_SECONDS 1.0        /* how long the last echoes are waited for */
#define UNREACHABLE_SECONDS 0.2 /* of silence, when the network reports too that no server is there */

/* The exit status. */
#define EXIT_FINE 0
#define EXIT_START 1
#define EXIT_USAGE 2
#define EXIT_CERTIFICATE 3
#define EXIT_CREDENTIAL 4
#define EXIT_REFUSED 5
#define EXIT_NEVER_CONNECTED 6
#define EXIT_NO_ECHO 7

struct options_t {
    const char * url;
    const char * ca_file;
    const char * credential_file;
    const char * id_token_file;
    const char * region;
    const char * server;
    double seconds;
    double rate; /* payloads a second */
    double silence_seconds;
};

struct app_t {
    struct options_t options;
    struct login_t login;
    struct netcode_client_t * client;
    double start_time;
    int attempts;      /* logins in a row that led to no connection */
    int status;        /* the exit status of a fatal login */
    int connected;     /* this connection was, at some time */
    uint64_t packets;  /* heard on this connection, of any kind */
    uint64_t errors;   /* that the network reported, before the last packet */
    double heard_at;   /* the last of them */
    double paced_from; /* payloads are due since */
    uint64_t paced;    /* payloads sent since */
    uint64_t sent;
    uint64_t heard;
    uint64_t wrong;
    uint64_t next_expected; /* behind the highest number that was heard */
    double payload_at;      /* when one was heard last; 0: never */
    double longest_gap;
    int gap_open; /* the connection was lost since */
    int connects;
    int tokens;
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

static int complain( const char * what, const char * why )
{
    fprintf( stderr, "client_http: %s %s\n", what, why );
    return 0;
}

/* A signal stopped us, or our time is over. */
static int must_leave( void * context )
{
    const struct app_t * app = (const struct app_t *) context;
    return signal_stop || netcode_time() - app->start_time >= app->options.seconds;
}

/* ---- the login ---- */

/*  Twice as long each time, and never the same for all players: a backend that comes back must not meet them all at
    once. What the backend asked for comes on top, as it asks the same of all of them. */
static double delay_seconds( const struct app_t * app )
{
    uint8_t random = 0;
    double seconds = FIRST_DELAY_SECONDS;
    for ( int i = 1; i < app->attempts && seconds < MAX_DELAY_SECONDS; i++ )
        seconds *= 2.0;
    if ( seconds > MAX_DELAY_SECONDS )
        seconds = MAX_DELAY_SECONDS;
    netcode_random_bytes( &random, 1 );
    seconds *= 0.5 + random / 510.0;
    return seconds +
           ( app->login.retry_after < MAX_RETRY_AFTER_SECONDS ? app->login.retry_after : MAX_RETRY_AFTER_SECONDS );
}

static void back_off( struct app_t * app )
{
    double until = netcode_time() + delay_seconds( app );
    while ( !must_leave( app ) && netcode_time() < until )
        netcode_sleep( 0.02 );
}

static int fatal_status( enum login_result_t result )
{
    return result == LOGIN_WRONG_CERTIFICATE  ? EXIT_CERTIFICATE
           : result == LOGIN_WRONG_CREDENTIAL ? EXIT_CREDENTIAL
           : result == LOGIN_REFUSED          ? EXIT_REFUSED
                                              : EXIT_START;
}

/* Asks until there is a token. 0 when that is not to be, or our time is over. */
static int fetch_token( struct app_t * app )
{
    while ( !must_leave( app ) ) {
        /* A connection that does not come about counts as one that was asked for in vain. */
        if ( app->attempts++ )
            back_off( app );
        if ( must_leave( app ) )
            break;
        enum login_result_t result = login_fetch( &app->login );
        if ( result == LOGIN_TOKEN ) {
            app->tokens++;
            return 1;
        }
        say( app, "%s", app->login.why );
        if ( result != LOGIN_AGAIN ) {
            app->status = fatal_status( result );
            return 0;
        }
    }
    return 0;
}

/* ---- payloads: a number of 8 bytes, then bytes that follow from it ---- */

static void fill_payload( uint64_t number, uint8_t data[PAYLOAD_BYTES] )
{
    for ( int i = 0; i < PAYLOAD_BYTES; i++ )
        data[i] = (uint8_t) ( i < NUMBER_BYTES ? number >> ( 8 * i ) : number * 31 + (uint64_t) i * 7 );
}

static void send_payloads( struct app_t * app, double now )
{
    uint8_t data[PAYLOAD_BYTES];
    while ( (double) app->paced <= ( now - app->paced_from ) * app->options.rate ) {
        fill_payload( app->sent++, data );
        app->paced++;
        netcode_client_send_packet( app->client, data, PAYLOAD_BYTES );
    }
}

static void note_payload( struct app_t * app, uint64_t number, double now )
{
    double gap = app->payload_at > 0.0 ? now - app->payload_at : 0.0;
    if ( gap > app->longest_gap )
        app->longest_gap = gap;
    if ( app->gap_open )
        say( app, "payload gap %.0f ms", gap * 1000.0 );
    app->gap_open = 0;
    app->payload_at = now;
    app->heard++;
    if ( number >= app->next_expected )
        app->next_expected = number + 1;
}

static void receive_payloads( struct app_t * app, double now )
{
    uint8_t expected[PAYLOAD_BYTES];
    uint64_t number = 0;
    int bytes = 0;
    uint8_t * data = NULL;
    while ( ( data = netcode_client_receive_packet( app->client, &bytes, NULL ) ) != NULL ) {
        number = 0;
        for ( int i = 0; i < NUMBER_BYTES && i < bytes; i++ )
            number |= (uint64_t) data[i] << ( 8 * i );
        fill_payload( number, expected );
        if ( bytes == PAYLOAD_BYTES && number < app->sent && !memcmp( data, expected, PAYLOAD_BYTES ) )
            note_payload( app, number, now );
        else
            app->wrong++;
        netcode_client_free_packet( app->client, data );
    }
}

/* ---- the connection ---- */

/* Sends from wildcard addresses of the families that the token names. */
static int create_client( struct app_t * app )
{
    struct netcode_client_config_t config;
    struct netcode_connect_token_info_t info;
    int ipv4 = 0;
    int ipv6 = 0;
    netcode_default_client_config( &config );
    netcode_connect_token_info( app->login.token, &info );
    for ( int i = 0; i < info.num_server_addresses; i++ ) {
        ipv4 |= info.server_addresses[i].type == NETCODE_ADDRESS_IPV4;
        ipv6 |= info.server_addresses[i].type == NETCODE_ADDRESS_IPV6;
    }
    app->client = ipv4 && ipv6 ? netcode_client_create_dual( "0.0.0.0", "::", &config, netcode_time() )
                               : netcode_client_create( ipv6 ? "::" : "0.0.0.0", &config, netcode_time() );
    return app->client ? 1 : complain( "client:", netcode_client_create_error_text( netcode_client_create_error() ) );
}

/* Each token has a client object of its own: a token is for one, and the next may lead to another family of addresses. */
static int start_client( struct app_t * app )
{
    if ( !create_client( app ) )
        return 0;
    netcode_client_connect( app->client, app->login.token );
    sodium_memzero( app->login.token, sizeof( app->login.token ) );
    app->connected = 0;
    app->packets = 0;
    app->errors = 0;
    app->heard_at = netcode_time();
    return 1;
}

static void on_connected( struct app_t * app, double now )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    app->connected = 1;
    app->connects++;
    app->attempts = 0;
    app->login.avoid[0] = '\0';
    app->heard_at = now;
    app->paced_from = now;
    app->paced = 0;
    say( app, "connected to %s as slot %d of %d, player %s",
         netcode_address_to_string( netcode_client_server_address( app->client ), text ),
         netcode_client_index( app->client ), netcode_client_max_clients( app->client ), app->login.client_id );
}

/*  A server sends ten times a second, so silence means that it or the way to it is gone, long before the token's timeout
    would say so. Sooner still where the network reports that no server is there; alone that proves nothing: anyone
    can forge it. */
static int is_silent( struct app_t * app, double now )
{
    struct netcode_client_stats_t stats;
    uint64_t packets = 0;
    netcode_client_stats( app->client, &stats );
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        packets += stats.packets_received[i];
    if ( packets != app->packets ) {
        app->packets = packets;
        app->errors = stats.receive_errors + stats.send_errors;
        app->heard_at = now;
    }
    double silence = now - app->heard_at;
    return silence > app->options.silence_seconds ||
           ( silence > UNREACHABLE_SECONDS && stats.receive_errors + stats.send_errors > app->errors );
}

static void lose( struct app_t * app, const char * why )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_client_report_t report;
    netcode_client_report( app->client, &report );
    netcode_address_to_string( netcode_client_server_address( app->client ), text );
    say( app, "%s %s: %s", app->connected ? "lost" : "could not connect to", text, why ? why : report.text );
    if ( strlen( text ) < sizeof( app->login.avoid ) )
        memcpy( app->login.avoid, text, strlen( text ) + 1 );
    app->gap_open = app->payload_at > 0.0;
}

/* One turn of the game's loop. 0 when the connection is over. */
static int step( struct app_t * app )
{
    double now = netcode_time();
    netcode_client_update( app->client, now );
    int state = netcode_client_state( app->client );
    receive_payloads( app, now );
    if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED ) {
        lose( app, NULL );
        return 0;
    }
    if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
        if ( !app->connected )
            on_connected( app, now );
        if ( is_silent( app, now ) ) {
            lose( app, "it is silent" );
            return 0;
        }
        send_payloads( app, now );
    }
    netcode_client_wait( app->client, 0.5 / app->options.rate < 0.05 ? 0.5 / app->options.rate : 0.05 );
    return 1;
}

/* What was sent last gets a moment to come back. */
static void await_echoes( struct app_t * app )
{
    double until = netcode_time() + ECHO_SECONDS;
    while ( app->next_expected < app->sent && netcode_time() < until ) {
        netcode_client_wait( app->client, 0.05 );
        netcode_client_update( app->client, netcode_time() );
        receive_payloads( app, netcode_time() );
    }
}

static void play( struct app_t * app )
{
    while ( fetch_token( app ) && start_client( app ) ) {
        int going = 1;
        while ( going && !must_leave( app ) )
            going = step( app );
        if ( going && app->connected )
            await_echoes( app );
        netcode_client_destroy( app->client ); /* says goodbye, where there is someone to hear it */
        app->client = NULL;
    }
}

static int exit_status( const struct app_t * app )
{
    if ( app->status )
        return app->status;
    if ( !app->connects )
        return EXIT_NEVER_CONNECTED;
    return app->heard && !app->wrong ? EXIT_FINE : EXIT_NO_ECHO;
}

static void print_summary( struct app_t * app )
{
    /* A gap that nothing ended counts as well. */
    if ( app->gap_open && netcode_time() - app->payload_at > app->longest_gap )
        app->longest_gap = netcode_time() - app->payload_at;
    say( app,
         "summary client_id=%s tokens=%d connects=%d sent=%llu heard=%llu wrong=%llu longest_gap_ms=%.0f seconds=%.1f",
         app->login.client_id[0] ? app->login.client_id : "-", app->tokens, app->connects,
         (unsigned long long) app->sent, (unsigned long long) app->heard, (unsigned long long) app->wrong,
         app->longest_gap * 1000.0, netcode_time() - app->start_time );
}

/* ---- options ---- */

static void print_help( void )
{
    printf( "usage: client_http --url URL --credential-file FILE [options]\n"
            "\n"
            "Logs in at a backend over TLS, gets a connect token, sends payloads and hears their echo. When the\n"
            "connection is lost it gets a newer token and goes on, and prints `payload gap N ms`.\n"
            "\n"
            "  --url URL              https://HOST:PORT/v1/connect-token; nothing but https\n"
            "  --ca FILE              trust this certificate authority alone (the system's)\n"
            "  --credential-file FILE the player's credential; refused when others than its owner can use it\n"
            "  --oidc-token FILE      an ID token of OpenID Connect instead, which begins a session; as carefully "
            "kept\n"
            "  --seconds N            play so long (10)\n"
            "  --rate N               payloads a second, 1..1000 (30)\n"
            "  --silence-ms N         after this silence the server is given up, 150..60000 (500)\n"
            "  --region NAME          ask for a server of this region\n"
            "  --server NAME          ask for this server, by its name or address\n"
            "  --help                 this text\n"
            "\n"
            "Certificates are always verified. Exit status: %d fine, %d could not start, %d wrong usage, %d the\n"
            "certificate is wrong, %d the credential is refused, %d the backend refuses the request, %d never\n"
            "connected, %d nothing came back, or not as it was sent.\n",
            EXIT_FINE, EXIT_START, EXIT_USAGE, EXIT_CERTIFICATE, EXIT_CREDENTIAL, EXIT_REFUSED, EXIT_NEVER_CONNECTED,
            EXIT_NO_ECHO );
}

static int parse_number( const char * text, double minimum, double maximum, double * number )
{
    char * end = NULL;
    *number = strtod( text, &end );
    return end != text && *end == '\0' && *number >= minimum && *number <= maximum;
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_value( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--url" ) )
        options->url = value;
    else if ( !strcmp( name, "--ca" ) )
        options->ca_file = value;
    else if ( !strcmp( name, "--credential-file" ) )
        options->credential_file = value;
    else if ( !strcmp( name, "--oidc-token" ) )
        options->id_token_file = value;
    else if ( !strcmp( name, "--region" ) )
        options->region = value;
    else if ( !strcmp( name, "--server" ) )
        options->server = value;
    else if ( !strcmp( name, "--seconds" ) )
        return parse_number( value, 0.1, 1e9, &options->seconds );
    else if ( !strcmp( name, "--rate" ) )
        return parse_number( value, 1.0, 1000.0, &options->rate );
    else if ( !strcmp( name, "--silence-ms" ) && parse_number( value, 150.0, 60000.0, &options->silence_seconds ) )
        options->silence_seconds /= 1000.0;
    else
        return 0;
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->seconds = 10.0;
    options->rate = 30.0;
    options->silence_seconds = 0.5;
    for ( int i = 1; i < argc; i += 2 ) {
        if ( i + 1 >= argc || !parse_value( argv[i], argv[i + 1], options ) )
            return complain( argv[i], "is no option, or its value is missing or wrong; see --help" );
    }
    if ( !options->url || !options->credential_file == !options->id_token_file )
        return complain( "--url, and one of --credential-file and --oidc-token,", "are required; see --help" );
    if ( strncasecmp( options->url, "https://", 8 ) != 0 )
        return complain( "--url", "is refused, because it does not begin with https://" );
    return 1;
}

static int run( struct app_t * app )
{
    use_wiping_memory();
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    app->login.url = app->options.url;
    app->login.ca_file = app->options.ca_file;
    app->login.region = app->options.region;
    app->login.server = app->options.server;
    app->login.must_leave = must_leave;
    app->login.context = app;
    if ( app->options.id_token_file
             ? !secret_read_credential( "client_http", app->options.id_token_file, app->login.id_token,
                                        sizeof( app->login.id_token ) )
             : !secret_read_credential( "client_http", app->options.credential_file, app->login.credential,
                                        sizeof( app->login.credential ) ) )
        return EXIT_START;
    if ( !login_create( &app->login ) ) {
        complain( "libcurl:", app->login.why );
        return EXIT_START;
    }
    play( app );
    print_summary( app );
    return exit_status( app );
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return EXIT_FINE;
    }
    if ( !parse_options( argc, argv, &app.options ) )
        return EXIT_USAGE;
    if ( curl_global_init( CURL_GLOBAL_DEFAULT ) != CURLE_OK || netcode_init() != NETCODE_OK ) {
        complain( "libcurl or netcode", "could not be initialised" );
        return EXIT_START;
    }
    app.start_time = netcode_time();
    int status = run( &app );
    login_destroy( &app.login );
    netcode_client_destroy( app.client );
    sodium_memzero( &app, sizeof( app ) );
    netcode_term();
    curl_global_cleanup();
    return status;
}
