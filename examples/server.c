/*  A dedicated server. Without arguments it is ready to try: it makes a throwaway key, keeps a fresh token in
    ./demo.token for the client beside it, and says payloads back. With a key it is a real one, which echoes with
    --echo: see --help.

        cc examples/server.c -lsodium -o server
        cc examples/client.c -lsodium -o client
        ./server                (one terminal)
        ./client                (another one, in the same directory)

    With -DSERVER_FULL (make build/server-full; libcurl, libmicrohttpd, cJSON and hiredis beside libsodium) it also
    reports to a backend, serves its metrics, lives in an Agones fleet and asks Redis who may come in: fleet/extras.h. */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include "metrics/metrics.h"
#include "secret_file.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#define DEFAULT_ADDRESS "127.0.0.1:40000"
#define DEFAULT_PROTOCOL_ID 0x1122334455667788ull
#define DEFAULT_SLOTS 32
#define DEMO_TOKEN_FILE "demo.token"
#define DEMO_TOKEN_TEMPORARY_FILE "demo-new.token"
#define DEMO_TOKEN_SECONDS 300
#define DEMO_TOKEN_SPARE_SECONDS 60 /* what is left of the demo token's life when a new one takes its place */
#define DEMO_TIMEOUT_SECONDS 10
#define DROP_REPORT_SECONDS 5.0
#define LIBRARY_LINES_PER_SECOND 10
#define LOG_LINE_BYTES 4096 /* a pipe of Linux that has any room has room for these; what is longer is cut */
#define PUBLISH_SECONDS 1.0 /* how old metrics get */
#define LOOP_SECONDS 0.1    /* short enough for a signal that comes just before the wait, or does not end it */

struct options_t {
    const char * address;
    const char * address2;
    const char * bind_address;
    const char * bind_address2;
    const char * public_addresses[NETCODE_MAX_PUBLIC_ADDRESSES];
    int num_public_addresses;
    const char * key_files[NETCODE_MAX_PRIVATE_KEYS]; /* tried in this order */
    int num_key_files;
    uint64_t protocol_id;
    int slots;
    int echo;
    int replace;
    int roaming;
    int sequence_base;
    double seconds; /* 0: until a signal comes */
    int publish;    /* metrics are wanted, in a file or by extras */
    const char * metrics_file;
    double drain_seconds; /* 0: a drain takes as long as the players do, and SIGTERM is none */
};

/* The private keys, the one that is tried first in front. */
struct keys_t {
    uint8_t data[NETCODE_MAX_PRIVATE_KEYS * NETCODE_KEY_BYTES];
    int count;
};

/* Each kind of dropped packet is logged when it first happens, and then counted. */
struct drop_log_t {
    uint64_t count;
    uint64_t logged;
    char last_sender[NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

struct app_t {
    struct netcode_server_t * server;
    double start_time;
    struct drop_log_t drops[NETCODE_DROP_REASONS];
    double next_drop_report;
    double library_second; /* the second in which library_lines were written */
    int library_lines;
    char last_line[256]; /* of the library, and how often it came again */
    int last_line_again;
    int draining; /* no new client is accepted, and the server ends when the last player has left */
    double drain_until;
    int num_keys;
    struct metrics_text_t metrics;
    struct metrics_histogram_t update_seconds;
    struct metrics_paths_t paths;
    double next_publish;
    int metrics_file_failed;
    int demo; /* a throwaway key, and a token for the client beside us */
    uint64_t protocol_id;
    uint8_t demo_key[NETCODE_KEY_BYTES];
    uint64_t demo_client_id;
    double demo_token_until;
    char demo_address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

static volatile sig_atomic_t signal_stop;
static volatile sig_atomic_t signal_stats;
static volatile sig_atomic_t signal_drain;
static volatile sig_atomic_t signal_reload;
static volatile sig_atomic_t
    term_drains; /* the next SIGTERM does what SIGUSR2 does, the one after it ends the server */

#ifdef _WIN32
static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}
#else
static void on_signal( int number )
{
    if ( number == SIGUSR1 ) {
        signal_stats = 1;
    } else if ( number == SIGHUP ) {
        signal_reload = 1;
    } else if ( number == SIGUSR2 || ( number == SIGTERM && term_drains ) ) {
        signal_drain = 1;
        if ( number == SIGTERM )
            term_drains = 0;
    } else {
        signal_stop = 1;
    }
}
#endif

static void install_signals( void )
{
#ifdef _WIN32
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
#else
    struct sigaction action;
    memset( &action, 0, sizeof( action ) );
    action.sa_handler = on_signal;
    sigaction( SIGINT, &action, NULL );
    sigaction( SIGTERM, &action, NULL );
    sigaction( SIGUSR1, &action, NULL );
    sigaction( SIGUSR2, &action, NULL );
    sigaction( SIGHUP, &action, NULL );
    /* A reader of our log that goes away must not take the players with it. */
    action.sa_handler = SIG_IGN;
    sigaction( SIGPIPE, &action, NULL );
#endif
}

/* ---- the log, on standard output ---- */

struct log_line_t {
    char text[LOG_LINE_BYTES];
    size_t bytes;
};

static uint64_t log_lines_lost; /* since a line was last written */

/*  0 when it found no room: a reader of the log that stands still must not stop the game. The other end may share what is
    open here, so it is asked for room, and not made non-blocking. Windows has no such question for all kinds of output. */
static int log_write( const struct log_line_t * line )
{
#ifdef _WIN32
    return fwrite( line->text, 1, line->bytes, stdout ) == line->bytes && fflush( stdout ) == 0;
#else
    struct pollfd room = { STDOUT_FILENO, POLLOUT, 0 };
    return poll( &room, 1, 0 ) == 1 && write( STDOUT_FILENO, line->text, line->bytes ) == (ssize_t) line->bytes;
#endif
}

static void log_add_list( struct log_line_t * line, const char * format, va_list arguments )
{
    size_t room = sizeof( line->text ) - line->bytes; /* the zero's place is the end of line's */
    int bytes = vsnprintf( line->text + line->bytes, room, format, arguments );
    if ( bytes > 0 )
        line->bytes += (size_t) bytes < room ? (size_t) bytes : room - 1;
}

static void log_add( struct log_line_t * line, const char * format, ... )
{
    va_list arguments;
    va_start( arguments, format );
    log_add_list( line, format, arguments );
    va_end( arguments );
}

/* Each line begins with the seconds since the start. */
static void log_begin( const struct app_t * app, struct log_line_t * line )
{
    line->bytes = 0;
    log_add( line, "%9.3f  ", netcode_time() - app->start_time );
}

/* Written whole and at once, so that it can be followed through a pipe; or lost, and counted. */
static void log_end( const struct app_t * app, struct log_line_t * line )
{
    struct log_line_t news;
    line->text[line->bytes++] = '\n';
    if ( log_lines_lost ) {
        log_begin( app, &news );
        log_add( &news, "%llu lines of log were lost: they were not read\n", (unsigned long long) log_lines_lost );
        if ( log_write( &news ) )
            log_lines_lost = 0;
    }
    if ( log_lines_lost || !log_write( line ) )
        log_lines_lost++;
}

static void say( const struct app_t * app, const char * format, ... )
{
    struct log_line_t line;
    va_list arguments;
    log_begin( app, &line );
    va_start( arguments, format );
    log_add_list( &line, format, arguments );
    va_end( arguments );
    log_end( app, &line );
}

/* The name by which tokens know the server, with the port that was really bound. */
static void print_name( const struct app_t * app, const char * name, char text[NETCODE_MAX_ADDRESS_STRING_LENGTH] )
{
    struct netcode_address_t address;
    netcode_parse_address( name, &address );
    if ( !address.port )
        address.port = netcode_server_get_port( app->server );
    netcode_address_to_string( &address, text );
}

static int parse_u64( const char * text, uint64_t * value )
{
    char * end = NULL;
    errno = 0;
    unsigned long long number = strtoull( text, &end, 0 );
    if ( end == text || *end != '\0' || errno || strchr( text, '-' ) )
        return 0;
    *value = (uint64_t) number;
    return 1;
}

/* ---- what the library reports ---- */

static void log_repeats( struct app_t * app )
{
    if ( app->last_line_again )
        say( app, "netcode: the same %d more times: %s", app->last_line_again, app->last_line );
    app->last_line_again = 0;
}

/* A client that tries ten times a second gives the same line as often: it is logged once, and then counted. */
static int is_again( struct app_t * app, const char * text )
{
    if ( !strncmp( app->last_line, text, sizeof( app->last_line ) - 1 ) ) {
        app->last_line_again++;
        return 1;
    }
    log_repeats( app );
    snprintf( app->last_line, sizeof( app->last_line ), "%s", text );
    return 0;
}

static void on_log( void * context, int level, const char * text )
{
    struct app_t * app = (struct app_t *) context;
    double now = netcode_time();
    if ( is_again( app, text ) )
        return;
    /* Anyone with a token can provoke these lines, so they are rationed; errors always pass. */
    if ( now - app->library_second >= 1.0 ) {
        if ( app->library_lines > LIBRARY_LINES_PER_SECOND )
            say( app, "netcode: %d more lines were left out", app->library_lines - LIBRARY_LINES_PER_SECOND );
        app->library_second = now;
        app->library_lines = 0;
    }
    if ( ++app->library_lines <= LIBRARY_LINES_PER_SECOND || level <= NETCODE_LOG_LEVEL_ERROR )
        say( app, "netcode: %s%s", level <= NETCODE_LOG_LEVEL_ERROR ? "error: " : "", text );
}

static void on_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    struct app_t * app = (struct app_t *) context;
    struct drop_log_t * drop = &app->drops[reason];
    netcode_address_to_string( from, drop->last_sender );
    if ( ++drop->count == 1 ) {
        drop->logged = 1;
        say( app, "dropped %s: %s (%d bytes from %s)", netcode_drop_reason_name( reason ),
             netcode_drop_reason_text( reason ), bytes, drop->last_sender );
    }
}

static void report_drops( struct app_t * app, double now )
{
    if ( now < app->next_drop_report )
        return;
    app->next_drop_report = now + DROP_REPORT_SECONDS;
    log_repeats( app );
    for ( int i = 0; i < (int) NETCODE_DROP_REASONS; i++ ) {
        struct drop_log_t * drop = &app->drops[i];
        if ( drop->count > drop->logged )
            say( app, "dropped %s: %llu more, the last from %s", netcode_drop_reason_name( i ),
                 (unsigned long long) ( drop->count - drop->logged ), drop->last_sender );
        drop->logged = drop->count;
    }
}

static const char * disconnect_reason_text( int reason )
{
    switch ( reason ) {
    case NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT: return "timed out";
    case NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT: return "the client left";
    case NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT: return "the server ended it";
    case NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED: return "replaced by the same player's newer token";
    default: return "unknown";
    }
}

/* One line of NAME=VALUE, at the end and on SIGUSR1. Of the drops only the kinds that happened. */
static void say_stats( const struct app_t * app )
{
#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: this table needs it"
#endif
    static const char * const types[NETCODE_PACKET_TYPES] = { "request",    "denied",  "challenge", "response",
                                                              "keep_alive", "payload", "disconnect" };
    static const char * const reasons[NETCODE_SERVER_CLIENT_DISCONNECT_REASONS] = { "none", "timed_out", "client",
                                                                                    "server", "replaced" };
    struct netcode_server_stats_t stats;
    struct log_line_t line;
    netcode_server_stats( app->server, &stats );
    log_begin( app, &line );
    log_add( &line, "stats clients=%d slots=%d pending=%d consumed=%d connects=%llu", stats.clients, stats.max_clients,
             stats.pending, stats.consumed, (unsigned long long) stats.connects );
    for ( int i = 1; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        log_add( &line, " disconnects_%s=%llu", reasons[i], (unsigned long long) stats.disconnects[i] );
    log_add( &line, " datagrams_received=%llu bytes_received=%llu bytes_sent=%llu kernel_drops=%llu backlogs=%llu",
             (unsigned long long) stats.datagrams_received, (unsigned long long) stats.bytes_received,
             (unsigned long long) stats.bytes_sent, (unsigned long long) stats.kernel_drops,
             (unsigned long long) stats.backlogs );
    log_add( &line,
             " probes_sent=%llu probes_answered=%llu moves=%llu path_candidates=%llu trials=%llu trials_refused=%llu",
             (unsigned long long) stats.probes_sent, (unsigned long long) stats.probes_answered,
             (unsigned long long) stats.moves, (unsigned long long) stats.path_candidates,
             (unsigned long long) stats.trials, (unsigned long long) stats.trials_refused );
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        log_add( &line, " sent_%s=%llu received_%s=%llu", types[i], (unsigned long long) stats.packets_sent[i],
                 types[i], (unsigned long long) stats.packets_received[i] );
    for ( int i = 0; i < (int) NETCODE_DROP_REASONS; i++ ) {
        if ( stats.dropped[i] )
            log_add( &line, " drop_%s=%llu", netcode_drop_reason_name( i ), (unsigned long long) stats.dropped[i] );
    }
    log_end( app, &line );
}

/* ---- the private keys ---- */

/* One that is there already is left out: the server tries each key on a forged token. */
static void add_key( struct keys_t * keys, const uint8_t key[NETCODE_KEY_BYTES] )
{
    for ( int i = 0; i < keys->count; i++ ) {
        if ( sodium_memcmp( keys->data + (size_t) i * NETCODE_KEY_BYTES, key, NETCODE_KEY_BYTES ) == 0 )
            return;
    }
    memcpy( keys->data + (size_t) keys->count * NETCODE_KEY_BYTES, key, NETCODE_KEY_BYTES );
    keys->count++;
}

/* All of the files, or 0. */
static int read_key_files( const struct options_t * options, struct keys_t * keys )
{
    uint8_t key[NETCODE_KEY_BYTES];
    int good = 1;
    keys->count = 0;
    for ( int i = 0; i < options->num_key_files && good; i++ ) {
        good = secret_read_key( "server", options->key_files[i], key );
        if ( good )
            add_key( keys, key );
    }
    sodium_memzero( key, sizeof( key ) );
    return good;
}

/* From the files, else from the environment, else a throwaway key. 0 on error. */
static int choose_keys( struct app_t * app, const struct options_t * options, struct keys_t * keys )
{
    const char * environment = getenv( "NETCODE_PRIVATE_KEY" );
    if ( options->num_key_files )
        return read_key_files( options, keys );
    keys->count = 1;
    if ( environment && *environment ) {
        if ( secret_parse_key( environment, strlen( environment ), keys->data ) )
            return 1;
        fprintf( stderr, "server: NETCODE_PRIVATE_KEY holds no key: 32 bytes in hex or base64\n" );
        return 0;
    }
    app->demo = 1;
    netcode_random_bytes( app->demo_key, NETCODE_KEY_BYTES );
    memcpy( keys->data, app->demo_key, NETCODE_KEY_BYTES );
    return 1;
}

/*  SIGHUP. All files or none: with half of the keys, players whose tokens were sealed with the other half would be locked
    out. */
static void reload_keys( struct app_t * app, const struct options_t * options )
{
    struct keys_t keys;
    int good = options->num_key_files && read_key_files( options, &keys ) &&
               netcode_server_set_private_keys( app->server, keys.data, keys.count ) == NETCODE_OK;
    if ( good )
        app->num_keys = keys.count;
    sodium_memzero( &keys, sizeof( keys ) );
    if ( !options->num_key_files )
        say( app, "keys: there is no --key-file to read again" );
    else if ( good )
        say( app, "keys: read again, %d in use", app->num_keys );
    else
        say( app, "keys: error: not all files could be read, so the keys stay as they were" );
}

/* ---- extras: what the plain server leaves out ---- */

#ifdef SERVER_FULL
#include "fleet/extras.h"
#else
/* How many arguments the option takes, itself included; 0 when it is none of these, or its value is wrong. */
static int extras_option( const char * name, const char * value, struct options_t * options )
{
    static const char * const full[] = { "--metrics", "--report", "--agones", "--admission" };
    (void) value;
    (void) options;
    for ( size_t i = 0; i < sizeof( full ) / sizeof( full[0] ); i++ )
        if ( !strncmp( name, full[i], strlen( full[i] ) ) && strcmp( name, "--metrics-file" ) != 0 )
            fprintf( stderr, "server: %s is one of the full server's: make build/server-full\n", name );
    return 0;
}

static void extras_help( void )
{
}

/* Before there is a server: reads files, and learns the public address. 0 on error. */
static int extras_prepare( struct app_t * app, struct options_t * options )
{
    (void) app;
    (void) options;
    return 1;
}

/* There is a server, and it runs. 0 on error. */
static int extras_start( const struct app_t * app, const struct options_t * options )
{
    (void) app;
    (void) options;
    return 1;
}

/* What admit_callback returns for this client. */
static int extras_admit( uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    (void) client_id;
    (void) token_tag;
    (void) expire_timestamp;
    return 1;
}

/* Hears every event. */
static void extras_event( const struct netcode_event_t * event )
{
    (void) event;
}

/* Once a tick; never waits. Returns how long the loop may sleep. */
static double extras_update( const struct app_t * app, double now )
{
    (void) app;
    (void) now;
    return LOOP_SECONDS;
}

/* Adds its own counters to a text that is otherwise done, and shows it. */
static void extras_publish( struct metrics_text_t * text )
{
    (void) text;
}

static void extras_reload( const struct app_t * app )
{
    (void) app;
}

/* Also after a start that failed half-way. `served`: there was a server. */
static void extras_stop( const struct app_t * app, int served )
{
    (void) app;
    (void) served;
}
#endif

/* ---- the demo token ---- */

/* Puts a file for our eyes only in its place in one step: a reader sees the old token or the new one, never a half. */
static int write_private_file( const char * path, const char * temporary_path, const uint8_t * data, size_t bytes )
{
    remove( temporary_path );
#ifdef _WIN32
    FILE * file = fopen( temporary_path, "wb" );
#else
    int descriptor = open( temporary_path, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR );
    FILE * file = descriptor < 0 ? NULL : fdopen( descriptor, "wb" );
#endif
    if ( !file )
        return 0;
    int good = fwrite( data, 1, bytes, file ) == bytes;
    good = fclose( file ) == 0 && good;
#ifdef _WIN32
    good = good && MoveFileExA( temporary_path, path, MOVEFILE_REPLACE_EXISTING );
#else
    good = good && rename( temporary_path, path ) == 0;
#endif
    if ( !good )
        remove( temporary_path );
    return good;
}

static void write_demo_token( struct app_t * app, double now )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * addresses[1] = { app->demo_address };
    app->demo_token_until = now + DEMO_TOKEN_SECONDS - DEMO_TOKEN_SPARE_SECONDS;
    app->demo_client_id++;
    if ( netcode_generate_connect_token( 1, addresses, addresses, DEMO_TOKEN_SECONDS, DEMO_TIMEOUT_SECONDS,
                                         app->demo_client_id, app->protocol_id, app->demo_key, NULL,
                                         token ) == NETCODE_OK &&
         write_private_file( DEMO_TOKEN_FILE, DEMO_TOKEN_TEMPORARY_FILE, token, sizeof( token ) ) )
        say( app, "a token for client %llu waits in ./" DEMO_TOKEN_FILE " for %d s",
             (unsigned long long) app->demo_client_id, DEMO_TOKEN_SECONDS - DEMO_TOKEN_SPARE_SECONDS );
    else
        say( app, "error: ./" DEMO_TOKEN_FILE " could not be written: %s", strerror( errno ) );
    sodium_memzero( token, sizeof( token ) );
}

/* ---- options ---- */

static void print_help( void )
{
    printf( "usage: server [options]\n"
            "\n"
            "Without a key it makes a throwaway one, keeps a token in ./" DEMO_TOKEN_FILE " and says payloads back.\n"
            "\n"
            "  --address ADDRESS        what tokens call this server; also the port to bind, 0 for any "
            "(" DEFAULT_ADDRESS ")\n"
            "  --address2 ADDRESS       the same of the other family, for a dual-stack server\n"
            "  --bind ADDRESS           bind this instead of the wildcard address\n"
            "  --bind2 ADDRESS          the same for --address2\n"
            "  --public ADDRESS         another name of this server in tokens (NAT, container); up to %d times\n"
            "  --slots N                how many clients (%d, up to %d)\n"
            "  --protocol-id N          unique to the game and its version, decimal or 0x... (0x1122334455667788)\n"
            "  --key-file FILE          the private key: 32 bytes, or the same in hex or base64. Refused when others\n"
            "                           than its owner can use the file. `netcode-token keygen` makes one. Up to %d\n"
            "                           times, the first is tried first; SIGHUP reads all of them again\n"
            "  --echo                   say every payload back to its sender\n"
            "  --replace                a newer token of a connected client id takes over its slot\n"
            "  --roaming                a connected client whose address changes stays connected; see 16 in the manual "
            "in "
            "netcode.h\n"
            "  --sequence-base-zero     sequences start at zero: shorter packets, weaker: examples/docs/SECURITY.md\n"
            "  --seconds N              end after N seconds\n"
            "  --metrics-file FILE      write the counters as Prometheus text each second, for node_exporter's "
            "textfile "
            "collector\n"
            "  --drain N                SIGTERM drains (see below), a second one ends; a drain takes N seconds at "
            "most\n",
            NETCODE_MAX_PUBLIC_ADDRESSES, DEFAULT_SLOTS, NETCODE_MAX_SLOTS, NETCODE_MAX_PRIVATE_KEYS );
    extras_help();
    printf(
        "  --help                   this text\n"
        "\n"
        "The key can also come from the environment: NETCODE_PRIVATE_KEY, hex or base64.\n"
        "SIGINT and SIGTERM end it, with a word to the clients. SIGUSR1 prints the counters.\n"
        "SIGUSR2 drains it: who is in stays, newcomers are denied (their client tries the next server of its token), "
        "and\n"
        "it ends when the last one has left. SIGHUP reads the key files again.\n"
        "A client that leaves says so ten times: what comes after the first is counted as dropped, "
        "UNKNOWN_ADDRESS.\n"
        "Exit status: 0 after a clean end, 1 when it could not start, 2 for wrong usage.\n" );
}

/* Options without a value; 0 when it is none of them. */
static int parse_flag( const char * name, struct options_t * options )
{
    if ( !strcmp( name, "--echo" ) )
        options->echo = 1;
    else if ( !strcmp( name, "--replace" ) )
        options->replace = 1;
    else if ( !strcmp( name, "--roaming" ) )
        options->roaming = 1;
    else if ( !strcmp( name, "--sequence-base-zero" ) )
        options->sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    else
        return 0;
    return 1;
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_value( const char * name, const char * value, struct options_t * options )
{
    uint64_t number = 0;
    if ( !strcmp( name, "--address" ) )
        options->address = value;
    else if ( !strcmp( name, "--address2" ) )
        options->address2 = value;
    else if ( !strcmp( name, "--bind" ) )
        options->bind_address = value;
    else if ( !strcmp( name, "--bind2" ) )
        options->bind_address2 = value;
    else if ( !strcmp( name, "--key-file" ) && options->num_key_files < NETCODE_MAX_PRIVATE_KEYS )
        options->key_files[options->num_key_files++] = value;
    else if ( !strcmp( name, "--public" ) && options->num_public_addresses < NETCODE_MAX_PUBLIC_ADDRESSES )
        options->public_addresses[options->num_public_addresses++] = value;
    else if ( !strcmp( name, "--slots" ) && parse_u64( value, &number ) && number >= 1 && number <= NETCODE_MAX_SLOTS )
        options->slots = (int) number;
    else if ( !strcmp( name, "--protocol-id" ) && parse_u64( value, &number ) )
        options->protocol_id = number;
    else if ( !strcmp( name, "--seconds" ) && parse_u64( value, &number ) && number >= 1 && number <= 1000000000 )
        options->seconds = (double) number;
    else if ( !strcmp( name, "--metrics-file" ) )
        options->metrics_file = value;
    else if ( !strcmp( name, "--drain" ) && parse_u64( value, &number ) && number >= 1 && number <= 1000000000 )
        options->drain_seconds = (double) number;
    else
        return 0;
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->address = DEFAULT_ADDRESS;
    options->protocol_id = DEFAULT_PROTOCOL_ID;
    options->slots = DEFAULT_SLOTS;
    options->sequence_base = NETCODE_SEQUENCE_BASE_RANDOM;
    for ( int i = 1, taken = 0; i < argc; i += taken ) {
        taken = parse_flag( argv[i], options );
        if ( !taken && i + 1 < argc && parse_value( argv[i], argv[i + 1], options ) )
            taken = 2;
        if ( !taken )
            taken = extras_option( argv[i], argv[i + 1], options ); /* NULL behind the last */
        if ( !taken ) {
            fprintf( stderr, "server: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    }
    return 1;
}

/* ---- the server ---- */

/* The address of an event's client. The event is history: its client may have left the slot by now. */
static const char * address_of( const struct app_t * app, const struct netcode_event_t * event,
                                char text[NETCODE_MAX_ADDRESS_STRING_LENGTH] )
{
    if ( netcode_server_client_session( app->server, event->client_index ) != event->session )
        return "-";
    return netcode_address_to_string( netcode_server_client_address( app->server, event->client_index ), text );
}

static void handle_event( struct app_t * app, const struct netcode_event_t * event, int echo )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_server_t * server = app->server;
    extras_event( event );
    if ( event->type == NETCODE_EVENT_PAYLOAD ) {
        if ( echo )
            netcode_server_send_packet_to_session( server, event->client_index, event->session, event->data,
                                                   event->bytes );
        netcode_server_free_packet( server, event->data );
    } else if ( event->type == NETCODE_EVENT_CONNECTED ) {
        say( app, "connected slot=%d client=%llu session=%llu from=%s (%d of %d slots in use)", event->client_index,
             (unsigned long long) event->client_id, (unsigned long long) event->session, address_of( app, event, text ),
             netcode_server_num_connected_clients( server ), netcode_server_max_clients( server ) );
        if ( app->demo && event->client_id == app->demo_client_id )
            write_demo_token( app, netcode_time() );
    } else if ( event->type == NETCODE_EVENT_DISCONNECTED ) {
        say( app, "disconnected slot=%d client=%llu session=%llu: %s", event->client_index,
             (unsigned long long) event->client_id, (unsigned long long) event->session,
             disconnect_reason_text( event->reason ) );
    } else if ( event->type == NETCODE_EVENT_MOVED ) {
        say( app, "moved slot=%d client=%llu session=%llu to=%s", event->client_index,
             (unsigned long long) event->client_id, (unsigned long long) event->session,
             address_of( app, event, text ) );
    }
}

/* Asked before a client gets its slot. A denied client goes on to the next server of its token at once. */
static int on_admit( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    if ( ( (const struct app_t *) context )->draining )
        return 0;
    return extras_admit( client_id, token_tag, expire_timestamp );
}

static void start_drain( struct app_t * app, const struct options_t * options, double now )
{
    if ( app->draining )
        return;
    app->draining = 1;
    app->drain_until = options->drain_seconds > 0.0 ? now + options->drain_seconds : 1e300;
    say( app, "draining: no new client is accepted, %d clients are still connected",
         netcode_server_num_connected_clients( app->server ) );
}

static int is_over( const struct app_t * app, const struct options_t * options, double now )
{
    if ( signal_stop || ( options->seconds > 0.0 && now - app->start_time >= options->seconds ) )
        return 1;
    if ( !app->draining || ( netcode_server_num_connected_clients( app->server ) && now < app->drain_until ) )
        return 0;
    say( app, "drained: %d clients are left", netcode_server_num_connected_clients( app->server ) );
    return 1;
}

static void obey_signals( struct app_t * app, const struct options_t * options, double now )
{
    if ( signal_stats ) {
        signal_stats = 0;
        say_stats( app );
    }
    if ( signal_reload ) {
        signal_reload = 0;
        reload_keys( app, options );
        extras_reload( app );
    }
    if ( signal_drain ) {
        signal_drain = 0;
        start_drain( app, options, now );
    }
}

/* Logged once, and again when it works again: a full disk must not fill the log as well. */
static void write_metrics_file( struct app_t * app, const char * path )
{
    int good = metrics_write_file( &app->metrics, path );
    if ( !good && !app->metrics_file_failed )
        say( app, "metrics: error: %s can not be written: %s", path, strerror( errno ) );
    if ( good && app->metrics_file_failed )
        say( app, "metrics: %s is written again", path );
    app->metrics_file_failed = !good;
}

static void publish( struct app_t * app, const struct options_t * options, double now )
{
    struct netcode_server_stats_t stats;
    if ( now < app->next_publish )
        return;
    app->next_publish = now + PUBLISH_SECONDS;
    netcode_server_stats( app->server, &stats );
    metrics_begin( &app->metrics );
    metrics_server( &app->metrics, &stats, &app->update_seconds );
    metrics_paths( &app->metrics, &app->paths, app->server );
    metrics_gauge( &app->metrics, "netcode_server_draining", app->draining, "1: it takes no new clients." );
    metrics_gauge( &app->metrics, "netcode_server_private_keys", app->num_keys, "Keys in use; 2 during a rotation." );
    extras_publish( &app->metrics );
    if ( options->metrics_file )
        write_metrics_file( app, options->metrics_file );
}

static void update( struct app_t * app, double now )
{
    netcode_server_update( app->server, now );
    metrics_observe( &app->update_seconds, netcode_time() - now );
}

static void run( struct app_t * app, const struct options_t * options )
{
    struct netcode_event_t event;
    int echo = options->echo || app->demo;
    for ( ;; ) {
        double now = netcode_time();
        update( app, now );
        while ( netcode_server_next_event( app->server, &event ) )
            handle_event( app, &event, echo );
        report_drops( app, now );
        if ( app->demo && now >= app->demo_token_until )
            write_demo_token( app, now );
        obey_signals( app, options, now );
        if ( options->publish || options->metrics_file )
            publish( app, options, now );
        if ( is_over( app, options, now ) )
            break;
        netcode_server_wait( app->server, extras_update( app, now ) );
    }
    netcode_server_stop( app->server );
    while ( netcode_server_next_event( app->server, &event ) )
        handle_event( app, &event, 0 );
    app->next_publish = 0.0;
    if ( options->publish || options->metrics_file )
        publish( app, options, netcode_time() );
    metrics_text_free( &app->metrics );
    say_stats( app );
}

static void fill_config( struct app_t * app, const struct options_t * options, struct netcode_server_config_t * config )
{
    netcode_default_server_config( config );
    config->events = 1;
    config->protocol_id = options->protocol_id;
    config->callback_context = app;
    config->log_callback = on_log;
    config->drop_callback = on_drop;
    config->admit_callback = on_admit;
    config->bind_address = options->bind_address;
    config->bind_address2 = options->bind_address2;
    config->public_addresses = options->public_addresses;
    config->num_public_addresses = options->num_public_addresses;
    config->replace_existing_clients = options->replace;
    config->sequence_base = options->sequence_base;
    config->roaming = options->roaming;
}

static int create_server( struct app_t * app, const struct options_t * options )
{
    struct netcode_server_config_t config;
    struct keys_t keys;
    int good = choose_keys( app, options, &keys );
    if ( good ) {
        fill_config( app, options, &config );
        memcpy( config.private_key, keys.data, NETCODE_KEY_BYTES );
        app->server = options->address2
                          ? netcode_server_create_dual( options->address, options->address2, &config, netcode_time() )
                          : netcode_server_create( options->address, &config, netcode_time() );
        sodium_memzero( config.private_key, sizeof( config.private_key ) );
        if ( !app->server )
            fprintf( stderr, "server: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        good = app->server && netcode_server_set_private_keys( app->server, keys.data, keys.count ) == NETCODE_OK;
        app->num_keys = keys.count;
    }
    sodium_memzero( &keys, sizeof( keys ) );
    if ( good )
        netcode_server_start( app->server, options->slots );
    return good && netcode_server_running( app->server );
}

static void start_demo( struct app_t * app, const struct options_t * options )
{
    print_name( app, options->num_public_addresses ? options->public_addresses[0] : options->address,
                app->demo_address );
    say( app, "no key was given: this run has a throwaway key, and says payloads back (--help shows real ones)" );
    app->demo_client_id = 1000;
    write_demo_token( app, netcode_time() );
}

/* From a server that runs to its end. Returns the exit status. */
static int serve( struct app_t * app, const struct options_t * options )
{
    char name[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    print_name( app, options->address, name );
    say( app, "listening on %s, %d slots, netcode %s", name, options->slots, netcode_version() );
    if ( app->demo )
        start_demo( app, options );
    int started = extras_start( app, options );
    if ( started )
        run( app, options );
    if ( app->demo )
        remove( DEMO_TOKEN_FILE );
    return started ? 0 : 1;
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    struct options_t options;
    int status = 1;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    if ( !parse_options( argc, argv, &options ) )
        return 2;
    if ( netcode_init() != NETCODE_OK ) {
        fprintf( stderr, "server: netcode_init failed\n" );
        return 1;
    }
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    app.start_time = netcode_time();
    app.protocol_id = options.protocol_id;
    metrics_histogram_init_seconds( &app.update_seconds );
    metrics_paths_init( &app.paths );
    term_drains = options.drain_seconds > 0.0;
    install_signals();
    if ( extras_prepare( &app, &options ) && create_server( &app, &options ) )
        status = serve( &app, &options );
    extras_stop( &app, status == 0 );
    netcode_server_destroy( app.server );
    sodium_memzero( &app, sizeof( app ) );
    netcode_term();
    return status;
}
