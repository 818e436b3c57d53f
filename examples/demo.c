/*  What `make demo` runs: real server processes and real client processes (the examples beside this one) on
    loopback, and a line for each thing that the protocol promises: what was expected, and what happened. Every
    verdict is read from the other process's state or counters: the server's log and counters for a client's story,
    and the client's exit status and output for what it learned. Every token is minted here, as a web backend
    would, and handed over in a file. POSIX only.

        cc examples/server.c -lsodium -o server && cc examples/client.c -lsodium -o client
        cc examples/token.c -lsodium -o token && cc examples/demo.c -lsodium -o demo
        ./demo [--kill-server-halfway]

    It takes less than 20 s and ends with 0 only if every line held. The times in its lines are printed, not judged:
    where the machine, or one of the processes, stands still for seconds, it takes longer, and no line fails. With
    --kill-server-halfway, or DEMO_KILL_SERVER=1 in the environment, it kills the server in the middle: then it must
    fail, which shows that it can. */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifdef __GNUC__
#define NO_RETURN __attribute__( ( noreturn ) )
#else
#define NO_RETURN
#endif

#define PROTOCOL_ID 0x1122334455667788ull
#define TOKEN_SECONDS 300
#define TIMEOUT_SECONDS 10      /* of tokens that shall connect */
#define SHORT_TIMEOUT_SECONDS 2 /* of tokens that shall be refused: so long their clients keep trying */
#define LIMIT_SECONDS 300       /* for the whole demo, whatever happens */
#define STEP_SECONDS 60.0       /* for one thing to happen */
#define MAX_CHILDREN 32
#define MAX_OUTPUT_BYTES 1048576
#define MAX_RECORDED 4096
#define MAX_DATAGRAM_BYTES 2048
#define MAX_STATS_BYTES 4096
#define PATH_BYTES 512
#define FILE_PATH_BYTES ( (size_t) 2 * PATH_BYTES )
#define LINE_BYTES 1024
#define COLUMNS 110 /* of what is printed */
#define MARGIN 11

/* The exit statuses of the example client that the stories tell of. */
#define CLIENT_FINE 0
#define CLIENT_REQUEST_TIMED_OUT 4
#define CLIENT_TOKEN_EXPIRED 7
#define CLIENT_SERVER_DISCONNECTED 9

/* A process that we started, with everything that it has written. */
struct child_t {
    const char * name;
    pid_t pid;  /* 0: it has ended */
    int output; /* what it writes; -1 when that has ended */
    int status; /* as waitpid returns it */
    int is_server;
    char text[MAX_OUTPUT_BYTES];
    size_t bytes;
    size_t seen; /* where the next wait starts to search */
};

/* A relay between a client and a server, which keeps what the client sent. */
struct relay_t {
    int client_side; /* the client's packets come here; -1: there is no relay */
    int server_side; /* and leave from here */
    struct sockaddr_in client;
    int have_client;
    int count;
    int bytes[MAX_RECORDED];
    uint8_t data[MAX_RECORDED][MAX_DATAGRAM_BYTES];
};

/* A server's counters at one time: its line of NAME=VALUE. */
struct counters_t {
    char line[MAX_STATS_BYTES];
};

struct server_t {
    struct child_t * child;
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_address_t parsed;
};

struct demo_t {
    char programs[PATH_BYTES];  /* the directory with the example programs */
    char directory[PATH_BYTES]; /* ours, for keys and tokens; empty: there is none */
    uint8_t key[NETCODE_KEY_BYTES];
    struct server_t small; /* one slot */
    struct server_t large;
    struct child_t * children[MAX_CHILDREN];
    int num_children;
    struct relay_t relay;
    int terminal;
    double start_time;
    int story;
    const char * title;
    const char * expected;
    double story_start;
    double next_progress;
    int failures;
};

static struct demo_t demo;
static volatile sig_atomic_t interrupted;

static void on_signal( int number )
{
    interrupted = number;
}

/* ---- telling ---- */

static void clear_progress( void )
{
    if ( demo.terminal )
        printf( "\r\033[K" );
}

static void show_progress( void )
{
    static const char wheel[4] = { '|', '/', '-', '\\' };
    double now = netcode_time();
    if ( !demo.terminal || !demo.title || now < demo.next_progress )
        return;
    demo.next_progress = now + 0.1;
    clear_progress();
    printf( "%c    %2d  %s  %.1f s", wheel[(int) ( now * 10.0 ) & 3], demo.story, demo.title, now - demo.story_start );
    fflush( stdout );
}

/* A text of any length under its heading, in lines of COLUMNS. */
static void print_wrapped( const char * heading, const char * text )
{
    int column = printf( "%*s%s:", MARGIN, "", heading );
    while ( *text ) {
        int bytes = (int) strcspn( text, " " );
        if ( column + 1 + bytes > COLUMNS )
            column = printf( "\n%*s", MARGIN + (int) strlen( heading ) + 1, "" ) - 1;
        column += printf( " %.*s", bytes, text );
        text += bytes;
        text += strspn( text, " " );
    }
    printf( "\n" );
}

static void print_outcome( const char * mark, const char * happened )
{
    clear_progress();
    printf( "%-6s %2d  %s (%.1f s)\n", mark, demo.story, demo.title ? demo.title : "between two stories",
            demo.title ? netcode_time() - demo.story_start : 0.0 );
    if ( demo.title )
        print_wrapped( "expected", demo.expected );
    print_wrapped( "happened", happened );
    fflush( stdout );
}

/* Ends a story: what happened, and whether that is what was expected. */
static void verdict( int good, const char * format, ... )
{
    va_list arguments;
    char text[LINE_BYTES];
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    print_outcome( good ? "ok" : "FAILED", text );
    demo.title = NULL;
    demo.failures += !good;
}

/* Ends the demo: what happened leaves nothing to go on with. atexit cleans up. */
static NO_RETURN void give_up( const char * format, ... )
{
    va_list arguments;
    char text[LINE_BYTES];
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    print_outcome( "FAILED", text );
    printf( "\nthe demo failed after %.1f s\n", netcode_time() - demo.start_time );
    fflush( stdout );
    exit( 1 );
}

/* ---- processes ---- */

static void close_on_exec( int descriptor )
{
    fcntl( descriptor, F_SETFD, FD_CLOEXEC );
}

/* In the new process, and never back from it. */
static void become( const char * program, const char * const * arguments, int output )
{
    char path[FILE_PATH_BYTES];
    char * copies[MAX_CHILDREN];
    int count = 0;
#ifdef __linux__
    prctl( PR_SET_PDEATHSIG, SIGKILL ); /* should the demo be killed, where nothing else can clean up */
#endif
    snprintf( path, sizeof( path ), "%s/%s", demo.programs, program );
    copies[count++] = path;
    for ( ; arguments[count - 1] && count < MAX_CHILDREN - 1; count++ )
        copies[count] = strdup( arguments[count - 1] );
    copies[count] = NULL;
    dup2( output, STDOUT_FILENO );
    dup2( output, STDERR_FILENO );
    signal( SIGPIPE, SIG_DFL );
    execv( path, copies );
    fprintf( stderr, "%s can not be started: %s\n", path, strerror( errno ) );
    _exit( 127 );
}

static struct child_t * start( const char * program, const char * const * arguments )
{
    int ends[2];
    if ( demo.num_children == MAX_CHILDREN || pipe( ends ) != 0 )
        give_up( "no more processes can be started" );
    struct child_t * child = (struct child_t *) calloc( 1, sizeof( struct child_t ) );
    if ( !child )
        give_up( "out of memory" );
    close_on_exec( ends[0] );
    close_on_exec( ends[1] );
    fflush( stdout );
    child->name = program;
    child->output = ends[0];
    child->pid = fork();
    if ( child->pid == 0 )
        become( program, arguments, ends[1] );
    close( ends[1] );
    if ( child->pid < 0 ) {
        child->pid = 0;
        give_up( "no process can be started: %s", strerror( errno ) );
    }
    demo.children[demo.num_children++] = child;
    return child;
}

static void read_output( struct child_t * child )
{
    char data[16384];
    ssize_t bytes = read( child->output, data, sizeof( data ) );
    if ( bytes < 0 && ( errno == EINTR || errno == EAGAIN ) )
        return;
    if ( bytes <= 0 ) {
        close( child->output );
        child->output = -1;
        return;
    }
    size_t room = sizeof( child->text ) - 1 - child->bytes;
    size_t kept = (size_t) bytes < room ? (size_t) bytes : room;
    memcpy( child->text + child->bytes, data, kept );
    child->bytes += kept;
}

/* Takes the exit status of those that have ended; a server that ends unasked ends the demo. */
static void reap( void )
{
    for ( int i = 0; i < demo.num_children; i++ ) {
        struct child_t * child = demo.children[i];
        pid_t pid = child->pid;
        if ( !pid || waitpid( pid, &child->status, WNOHANG ) != pid )
            continue;
        child->pid = 0;
        if ( child->is_server && WIFSIGNALED( child->status ) )
            give_up( "the server process %d was killed by signal %d", (int) pid, WTERMSIG( child->status ) );
        if ( child->is_server )
            give_up( "the server process %d ended by itself, status %d: %s", (int) pid, WEXITSTATUS( child->status ),
                     child->text );
    }
}

/* ---- the relay ---- */

static int open_loopback_socket( struct sockaddr_in * address )
{
    socklen_t bytes = sizeof( *address );
    int descriptor = socket( AF_INET, SOCK_DGRAM, 0 );
    memset( address, 0, sizeof( *address ) );
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    if ( descriptor < 0 || bind( descriptor, (struct sockaddr *) address, sizeof( *address ) ) != 0 ||
         getsockname( descriptor, (struct sockaddr *) address, &bytes ) != 0 )
        give_up( "no socket on loopback: %s", strerror( errno ) );
    close_on_exec( descriptor );
    fcntl( descriptor, F_SETFL, O_NONBLOCK );
    return descriptor;
}

static void send_to_server( int descriptor, const struct server_t * server, const uint8_t * data, int bytes )
{
    struct sockaddr_in to;
    memset( &to, 0, sizeof( to ) );
    to.sin_family = AF_INET;
    to.sin_port = htons( server->parsed.port );
    to.sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    if ( sendto( descriptor, data, (size_t) bytes, 0, (struct sockaddr *) &to, sizeof( to ) ) != bytes )
        give_up( "a recorded packet could not be sent: %s", strerror( errno ) );
}

static void relay_from_client( struct relay_t * relay )
{
    while ( relay->count < MAX_RECORDED ) {
        uint8_t * data = relay->data[relay->count];
        socklen_t address_bytes = sizeof( relay->client );
        ssize_t bytes = recvfrom( relay->client_side, data, MAX_DATAGRAM_BYTES, 0, (struct sockaddr *) &relay->client,
                                  &address_bytes );
        if ( bytes <= 0 )
            return;
        relay->have_client = 1;
        relay->bytes[relay->count++] = (int) bytes;
        send_to_server( relay->server_side, &demo.small, data, (int) bytes );
    }
    give_up( "the recorded session is longer than the relay can hold" );
}

static void relay_from_server( struct relay_t * relay )
{
    uint8_t data[MAX_DATAGRAM_BYTES];
    for ( ;; ) {
        ssize_t bytes = recv( relay->server_side, data, sizeof( data ), 0 );
        if ( bytes <= 0 )
            return;
        /* What the client does not get it asks for again; after its end no process waits for it. */
        if ( relay->have_client && sendto( relay->client_side, data, (size_t) bytes, 0,
                                           (struct sockaddr *) &relay->client, sizeof( relay->client ) ) != bytes )
            return;
    }
}

/* ---- waiting ---- */

/* Lets the world go on for up to `seconds`: what processes write is read, packets are relayed, ends are noticed. */
static void pump( double seconds )
{
    struct pollfd descriptors[MAX_CHILDREN + 2];
    struct child_t * owners[MAX_CHILDREN];
    nfds_t count = 0;
    if ( interrupted )
        give_up( interrupted == SIGALRM ? "it took longer than it may" : "interrupted" );
    show_progress();
    for ( int i = 0; i < demo.num_children; i++ ) {
        if ( demo.children[i]->output >= 0 ) {
            owners[count] = demo.children[i];
            descriptors[count].fd = demo.children[i]->output;
            descriptors[count++].events = POLLIN;
        }
    }
    nfds_t num_owners = count;
    if ( demo.relay.client_side >= 0 ) {
        descriptors[count].fd = demo.relay.client_side;
        descriptors[count++].events = POLLIN;
        descriptors[count].fd = demo.relay.server_side;
        descriptors[count++].events = POLLIN;
    }
    if ( poll( descriptors, count, (int) ( seconds * 1000.0 ) ) > 0 ) {
        for ( nfds_t i = 0; i < num_owners; i++ ) {
            if ( descriptors[i].revents )
                read_output( owners[i] );
        }
        if ( demo.relay.client_side >= 0 ) {
            relay_from_client( &demo.relay );
            relay_from_server( &demo.relay );
        }
    }
    reap();
}

static void pump_for( double seconds )
{
    double end = netcode_time() + seconds;
    while ( netcode_time() < end )
        pump( 0.01 );
}

/* Copies the first whole line that holds `text`, among those that no wait has passed yet. 0: there is none. */
static int find_line( struct child_t * child, const char * text, char * line, size_t line_bytes )
{
    char * at = child->text + child->seen;
    char * end = NULL;
    while ( ( end = (char *) memchr( at, '\n', (size_t) ( child->text + child->bytes - at ) ) ) != NULL ) {
        size_t bytes = (size_t) ( end - at ) < line_bytes - 1 ? (size_t) ( end - at ) : line_bytes - 1;
        memcpy( line, at, bytes );
        line[bytes] = '\0';
        at = end + 1;
        if ( strstr( line, text ) ) {
            child->seen = (size_t) ( at - child->text );
            return 1;
        }
    }
    return 0;
}

/*  Waits for a line of a process. 0, and an empty line, when it does not come in time or the process ends without it. Its output
    ends before its exit status can be read: the pump that reads the status is the one that says why a server ended. */
static int wait_line( struct child_t * child, const char * text, double seconds, char * line, size_t line_bytes )
{
    double end = netcode_time() + seconds;
    for ( ;; ) {
        int ended = child->output < 0 && !child->pid;
        if ( find_line( child, text, line, line_bytes ) )
            return 1;
        line[0] = '\0';
        if ( ended || netcode_time() >= end )
            return 0;
        pump( 0.01 );
    }
}

/* Waits for the end of a process: its exit status, or -1 when it does not end in time or not by itself. */
static int wait_exit( struct child_t * child, double seconds )
{
    double end = netcode_time() + seconds;
    while ( ( child->pid || child->output >= 0 ) && netcode_time() < end )
        pump( 0.01 );
    return !child->pid && WIFEXITED( child->status ) ? WEXITSTATUS( child->status ) : -1;
}

static void send_signal( const struct child_t * child, int number )
{
    if ( child->pid )
        kill( child->pid, number );
}

/* Everything of the child that no wait has passed yet is passed. */
static void skip_output( struct child_t * child )
{
    child->seen = child->bytes;
}

/* ---- a server's counters ---- */

/*  Asks twice: the first answer may come from between the server's last look at its socket and its next one. In the second is all that
    had arrived before the question. */
static struct counters_t read_counters( struct server_t * server )
{
    struct counters_t counters = { "" };
    size_t seen = server->child->seen;
    for ( int i = 0; i < 2; i++ ) {
        send_signal( server->child, SIGUSR1 );
        skip_output( server->child );
        if ( !wait_line( server->child, "  stats ", STEP_SECONDS, counters.line, sizeof( counters.line ) ) )
            give_up( "the server at %s does not tell its counters", server->address );
    }
    server->child->seen = seen; /* the log up to there stays for those who look for a line in it */
    return counters;
}

static long long counter( const struct counters_t * counters, const char * name )
{
    char wanted[128];
    snprintf( wanted, sizeof( wanted ), " %s=", name );
    const char * at = strstr( counters->line, wanted );
    return at ? strtoll( at + strlen( wanted ), NULL, 10 ) : 0;
}

static long long difference( const struct counters_t * before, const struct counters_t * after, const char * name )
{
    return counter( after, name ) - counter( before, name );
}

/* All counters of dropped packets together. */
static long long drops( const struct counters_t * counters )
{
    long long sum = 0;
    for ( const char * at = strstr( counters->line, " drop_" ); at; at = strstr( at + 1, " drop_" ) )
        sum += strtoll( strchr( at, '=' ) + 1, NULL, 10 );
    return sum;
}

/* Asks until the counter has the value, or the time is over: then the caller's verdict sees what it has. */
static struct counters_t wait_counter( struct server_t * server, const char * name, long long value )
{
    double end = netcode_time() + STEP_SECONDS;
    struct counters_t counters = read_counters( server );
    while ( counter( &counters, name ) != value && netcode_time() < end ) {
        pump_for( 0.03 );
        counters = read_counters( server );
    }
    return counters;
}

/* ---- tokens, servers and clients ---- */

static void path_of( const char * name, char path[FILE_PATH_BYTES] )
{
    snprintf( path, FILE_PATH_BYTES, "%s/%s", demo.directory, name );
}

static void write_file( const char * name, const uint8_t * data, size_t bytes )
{
    char path[FILE_PATH_BYTES];
    path_of( name, path );
    int descriptor = open( path, O_WRONLY | O_CREAT | O_TRUNC, S_IRUSR | S_IWUSR );
    if ( descriptor < 0 || write( descriptor, data, bytes ) != (ssize_t) bytes || close( descriptor ) != 0 )
        give_up( "%s can not be written: %s", path, strerror( errno ) );
}

static size_t read_file( const char * name, uint8_t * data, size_t capacity )
{
    char path[FILE_PATH_BYTES];
    path_of( name, path );
    int descriptor = open( path, O_RDONLY );
    ssize_t bytes = descriptor < 0 ? -1 : read( descriptor, data, capacity );
    if ( bytes < 0 )
        give_up( "%s can not be read: %s", path, strerror( errno ) );
    close( descriptor );
    return (size_t) bytes;
}

struct mint_t {
    int expire_seconds;
    int timeout_seconds;
    int count;
    const char * publics[2];
    const char * internals[2];
};

/* For servers that players dial by the name by which they know themselves. `second` may be NULL. */
static struct mint_t token_for( const char * first, const char * second, int timeout_seconds )
{
    struct mint_t mint;
    mint.expire_seconds = TOKEN_SECONDS;
    mint.timeout_seconds = timeout_seconds;
    mint.count = second ? 2 : 1;
    mint.publics[0] = first;
    mint.publics[1] = second;
    mint.internals[0] = first;
    mint.internals[1] = second;
    return mint;
}

static void write_token( const char * name, struct mint_t * mint, uint64_t client_id )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    if ( netcode_generate_connect_token( mint->count, mint->publics, mint->internals, mint->expire_seconds,
                                         mint->timeout_seconds, client_id, PROTOCOL_ID, demo.key, NULL,
                                         token ) != NETCODE_OK )
        give_up( "no token could be made for %s", mint->publics[0] );
    write_file( name, token, sizeof( token ) );
}

/* `options` ends with NULL. The token's file is one of ours. */
static struct child_t * start_client( const char * token_name, const char * const * options )
{
    char path[FILE_PATH_BYTES];
    const char * arguments[MAX_CHILDREN];
    int count = 0;
    path_of( token_name, path );
    while ( options[count] ) {
        arguments[count] = options[count];
        count++;
    }
    arguments[count++] = path;
    arguments[count] = NULL;
    return start( "client", arguments );
}

/* A client that stays until a signal stops it. */
static struct child_t * start_staying_client( const char * token_name )
{
    static const char * const options[] = { "--count", "0", "--rate", "60", "--strict", NULL };
    return start_client( token_name, options );
}

/* A client that has a few payloads said back, and leaves. */
static struct child_t * start_short_client( const char * token_name )
{
    static const char * const options[] = { "--count", "20", "--rate", "60", "--strict", NULL };
    return start_client( token_name, options );
}

static void start_server( struct server_t * server, const char * slots )
{
    char key_path[FILE_PATH_BYTES];
    char line[LINE_BYTES];
    path_of( "game.key", key_path );
    const char * const arguments[] = { "--address", "127.0.0.1:0", "--bind", "127.0.0.1:0", "--slots",
                                       slots,       "--key-file",  key_path, "--echo",      "--replace",
                                       "--roaming", "--seconds",   "600",    NULL };
    server->child = start( "server", arguments );
    server->child->is_server = 1;
    if ( !wait_line( server->child, "listening on ", STEP_SECONDS, line, sizeof( line ) ) )
        give_up( "the server did not start: %s", server->child->text );
    const char * address = strstr( line, "listening on " ) + strlen( "listening on " );
    snprintf( server->address, sizeof( server->address ), "%.*s", (int) strcspn( address, "," ), address );
    if ( netcode_parse_address( server->address, &server->parsed ) != NETCODE_OK || !server->parsed.port )
        give_up( "the server reports no address: %s", line );
}

/* The part of a client's last line that follows `name`, or -1. */
static double summary_value( const struct child_t * client, const char * name )
{
    char wanted[64];
    snprintf( wanted, sizeof( wanted ), " %s=", name );
    const char * summary = strstr( client->text, "  summary " );
    const char * at = summary ? strstr( summary, wanted ) : NULL;
    return at ? strtod( at + strlen( wanted ), NULL ) : -1.0;
}

/* ---- the stories ---- */

/* Each begins with the servers alone: a client that a failed story left behind would disturb the next one. */
static void begin( const char * title, const char * expected )
{
    for ( int i = 0; i < demo.num_children; i++ ) {
        if ( demo.children[i]->pid && !demo.children[i]->is_server )
            kill( demo.children[i]->pid, SIGKILL );
    }
    demo.story++;
    demo.title = title;
    demo.expected = expected;
    demo.story_start = netcode_time();
    show_progress();
}

/* Runs netcode-token to its end: its exit status. */
static int run_token( const char * const * arguments, struct child_t ** child )
{
    *child = start( "token", arguments );
    return wait_exit( *child, STEP_SECONDS );
}

/* The servers need the key, and the first token needs a server's address, so all three are made here. */
static void make_key_and_start_servers( const char * key_path )
{
    char text[3 * NETCODE_KEY_BYTES];
    size_t key_bytes = 0;
    struct child_t * child = NULL;
    const char * const keygen[] = { "keygen", "--output", key_path, NULL };
    if ( run_token( keygen, &child ) != 0 )
        give_up( "netcode-token keygen failed: %s", child->text );
    size_t text_bytes = read_file( "game.key", (uint8_t *) text, sizeof( text ) );
    sodium_hex2bin( demo.key, sizeof( demo.key ), text, text_bytes, NULL, &key_bytes, NULL );
    sodium_memzero( text, sizeof( text ) );
    if ( key_bytes != NETCODE_KEY_BYTES )
        give_up( "netcode-token keygen wrote no key" );
    start_server( &demo.small, "1" );
    start_server( &demo.large, "4" );
}

static void keys_and_tokens( void )
{
    char key_path[FILE_PATH_BYTES];
    char other_path[FILE_PATH_BYTES];
    char token_path[FILE_PATH_BYTES];
    struct stat status;
    struct child_t * child = NULL;
    begin( "keys and tokens",
           "netcode-token makes a key that only its owner can read, and a token that only this key opens" );
    path_of( "game.key", key_path );
    path_of( "other.key", other_path );
    path_of( "first.json", token_path );
    make_key_and_start_servers( key_path );
    int private_key = stat( key_path, &status ) == 0 && ( status.st_mode & 0777 ) == 0600;
    const char * const mint[] = { "mint", "--key-file", key_path,   "--client-id",      "1001", "--timeout",
                                  "10",   "--output",   token_path, demo.small.address, NULL };
    const char * const inspect[] = { "inspect", "--key-file", key_path, token_path, NULL };
    const char * const other_keygen[] = { "keygen", "--output", other_path, NULL };
    const char * const other_inspect[] = { "inspect", "--key-file", other_path, token_path, NULL };
    int minted = run_token( mint, &child );
    int opened = run_token( inspect, &child );
    int complete = strstr( child->text, "1001 (0x" ) && strstr( child->text, demo.small.address ) &&
                   strstr( child->text, "the same as in the public part" );
    run_token( other_keygen, &child );
    int refused = run_token( other_inspect, &child );
    verdict( private_key && minted == 0 && opened == 0 && complete && refused == 4,
             "key file mode %o; a token for client 1001 at %s; inspect with the key: status %d, %s; with another key: "
             "status %d",
             (unsigned int) status.st_mode & 0777u, demo.small.address, opened,
             complete ? "client, address and session keys are right" : "it says something else", refused );
}

static void connect_and_echo( void )
{
    static const char * const steady_options[] = { "--count", "60",  "--rate",   "60",
                                                   "--bytes", "100", "--strict", NULL };
    static const char * const fast_options[] = { "--count", "10000", "--rate",   "0",
                                                 "--bytes", "1000",  "--strict", NULL };
    begin( "connect and echo",
           "60 payloads at 60 a second, then 10000 as fast as they return: each comes back once and unchanged" );
    struct mint_t mint = token_for( demo.small.address, NULL, TIMEOUT_SECONDS );
    write_token( "fast.token", &mint, 1002 );
    struct counters_t before = read_counters( &demo.small );
    struct child_t * steady = start_client( "first.json", steady_options );
    int steady_status = wait_exit( steady, STEP_SECONDS );
    wait_counter( &demo.small, "clients", 0 );
    struct child_t * fast = start_client( "fast.token", fast_options );
    int fast_status = wait_exit( fast, STEP_SECONDS );
    struct counters_t after = wait_counter( &demo.small, "clients", 0 );
    long long received = difference( &before, &after, "received_payload" );
    long long sent = difference( &before, &after, "sent_payload" );
    double per_second = summary_value( fast, "per_second" );
    verdict( steady_status == CLIENT_FINE && fast_status == CLIENT_FINE && received == 60 + 10000 && sent == received &&
                 difference( &before, &after, "connects" ) == 2 &&
                 difference( &before, &after, "disconnects_client" ) == 2,
             "the server received %lld and sent %lld payloads; round trip min %.2f, median %.2f, p99 %.2f ms; "
             "%.0f echoes of 1000 bytes a second (%.1f MB/s each way); clients' statuses %d and %d",
             received, sent, summary_value( steady, "round_trip_ms_min" ), summary_value( steady, "median" ),
             summary_value( steady, "p99" ), per_second, per_second / 1000.0, steady_status, fast_status );
}

static void full_server( void )
{
    char line[LINE_BYTES];
    begin( "server full, so the client moves on to the token's second address",
           "the first server, whose only slot is taken, denies; the second one connects the player" );
    struct mint_t first_only = token_for( demo.small.address, NULL, TIMEOUT_SECONDS );
    struct mint_t both = token_for( demo.small.address, demo.large.address, TIMEOUT_SECONDS );
    write_token( "occupant.token", &first_only, 1003 );
    write_token( "both.token", &both, 1004 );
    struct child_t * occupant = start_staying_client( "occupant.token" );
    struct counters_t before = wait_counter( &demo.small, "clients", 1 );
    struct counters_t large_before = read_counters( &demo.large );
    skip_output( demo.large.child );
    struct child_t * second = start_short_client( "both.token" );
    int second_status = wait_exit( second, STEP_SECONDS );
    int seen = wait_line( demo.large.child, "connected slot=0 client=1004 ", STEP_SECONDS, line, sizeof( line ) );
    struct counters_t after = read_counters( &demo.small );
    struct counters_t large_after = wait_counter( &demo.large, "clients", 0 );
    send_signal( occupant, SIGTERM );
    int occupant_status = wait_exit( occupant, STEP_SECONDS );
    wait_counter( &demo.small, "clients", 0 );
    long long denied = difference( &before, &after, "sent_denied" );
    long long connects = difference( &large_before, &large_after, "connects" );
    verdict( counter( &before, "clients" ) == 1 && denied > 0 &&
                 difference( &before, &after, "drop_SERVER_FULL" ) >= denied &&
                 difference( &before, &after, "connects" ) == 0 && connects == 1 && seen &&
                 second_status == CLIENT_FINE && occupant_status == CLIENT_FINE,
             "%s denied it %lld time%s; %s connected it (%lld connect); its echoes: status %d; the other player's: "
             "status %d",
             demo.small.address, denied, denied == 1 ? "" : "s", demo.large.address, connects, second_status,
             occupant_status );
}

/* Refused by a server that serves no other client at the time: so it must not have sent a single byte. */
static int refused_in_silence( const struct counters_t * before, const struct counters_t * after, const char * drop )
{
    return difference( before, after, drop ) > 0 && difference( before, after, "connects" ) == 0 &&
           difference( before, after, "bytes_sent" ) == 0 &&
           difference( before, after, drop ) == drops( after ) - drops( before );
}

static void expired_token( void )
{
    begin( "expired token", "no answer: the server counts it as expired; the client says so too" );
    struct counters_t before = read_counters( &demo.small );
    static const char * const options[] = { "--count", "1", NULL };
    struct child_t * client = start_client( "expired.token", options );
    int status = wait_exit( client, STEP_SECONDS );
    struct counters_t after = read_counters( &demo.small );
    verdict( refused_in_silence( &before, &after, "drop_TOKEN_EXPIRED" ) && status == CLIENT_TOKEN_EXPIRED,
             "%lld requests dropped as TOKEN_EXPIRED, %lld bytes sent in answer; client's status %d (token expired)",
             difference( &before, &after, "drop_TOKEN_EXPIRED" ), difference( &before, &after, "bytes_sent" ), status );
}

static void used_token( void )
{
    static const char * const options[] = { "--count", "1", NULL };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    const size_t at_timeout = 1085; /* Standard: Connect Token. In the public part, which is the client's alone */
    begin( "used token from another address",
           "the token that connected client 1002 connects no client again; no answer" );
    read_file( "fast.token", token, sizeof( token ) );
    token[at_timeout] = SHORT_TIMEOUT_SECONDS; /* so long it keeps trying, not as long as the session might be silent */
    write_file( "used.token", token, sizeof( token ) );
    struct counters_t before = read_counters( &demo.small );
    struct child_t * client = start_client( "used.token", options );
    int status = wait_exit( client, STEP_SECONDS );
    struct counters_t after = read_counters( &demo.small );
    verdict( refused_in_silence( &before, &after, "drop_TOKEN_CONSUMED" ) && status == CLIENT_REQUEST_TIMED_OUT,
             "%lld requests dropped as TOKEN_CONSUMED, %lld bytes sent in answer; client's status %d (no answer)",
             difference( &before, &after, "drop_TOKEN_CONSUMED" ), difference( &before, &after, "bytes_sent" ),
             status );
}

static void tampered_token( void )
{
    static const char * const options[] = { "--count", "1", NULL };
    const size_t at_expire = 29;  /* Standard: Connect Token */
    const size_t at_private = 61; /* Standard: Connect Token */
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    begin( "tampered token",
           "one with a bit flipped in its sealed part, one with a later expiry: neither is authentic; no answer" );
    struct mint_t mint = token_for( demo.small.address, NULL, SHORT_TIMEOUT_SECONDS );
    write_token( "flipped.token", &mint, 1005 );
    write_token( "prolonged.token", &mint, 1006 );
    memset( token, 0, sizeof( token ) );
    read_file( "flipped.token", token, sizeof( token ) );
    token[at_private + 8] ^= 1;
    write_file( "flipped.token", token, sizeof( token ) );
    read_file( "prolonged.token", token, sizeof( token ) );
    token[at_expire + 4] ^= 1; /* 2^32 seconds later */
    write_file( "prolonged.token", token, sizeof( token ) );
    struct counters_t before = read_counters( &demo.small );
    struct child_t * flipped = start_client( "flipped.token", options );
    struct child_t * prolonged = start_client( "prolonged.token", options );
    int flipped_status = wait_exit( flipped, STEP_SECONDS );
    int prolonged_status = wait_exit( prolonged, STEP_SECONDS );
    struct counters_t after = read_counters( &demo.small );
    verdict( refused_in_silence( &before, &after, "drop_TOKEN_NOT_AUTHENTIC" ) &&
                 flipped_status == CLIENT_REQUEST_TIMED_OUT && prolonged_status == CLIENT_REQUEST_TIMED_OUT,
             "%lld requests dropped as TOKEN_NOT_AUTHENTIC, %lld bytes sent in answer; clients' statuses %d and %d (no "
             "answer)",
             difference( &before, &after, "drop_TOKEN_NOT_AUTHENTIC" ), difference( &before, &after, "bytes_sent" ),
             flipped_status, prolonged_status );
}

static void token_for_another_server( void )
{
    static const char * const options[] = { "--count", "1", NULL };
    char line[LINE_BYTES];
    begin( "token for another server's address", "no answer, and the server's log names both addresses" );
    struct mint_t mint = token_for( demo.small.address, NULL, SHORT_TIMEOUT_SECONDS );
    mint.internals[0] = demo.large.address;
    write_token( "elsewhere.token", &mint, 1007 );
    struct counters_t before = read_counters( &demo.small );
    skip_output( demo.small.child );
    struct child_t * client = start_client( "elsewhere.token", options );
    int status = wait_exit( client, STEP_SECONDS );
    struct counters_t after = read_counters( &demo.small );
    int named = 0;
    while ( !named && wait_line( demo.small.child, demo.large.address, 0.0, line, sizeof( line ) ) )
        named = strstr( line, demo.small.address ) != NULL;
    verdict( refused_in_silence( &before, &after, "drop_TOKEN_FOR_ANOTHER_SERVER" ) &&
                 status == CLIENT_REQUEST_TIMED_OUT && named,
             "%lld requests dropped as TOKEN_FOR_ANOTHER_SERVER, %lld bytes sent in answer; client's status %d; the "
             "log: \"%s\"",
             difference( &before, &after, "drop_TOKEN_FOR_ANOTHER_SERVER" ),
             difference( &before, &after, "bytes_sent" ), status, line + strspn( line, " .0123456789" ) );
}

/*  Sends what the client once sent, and waits until the server has dropped it: after each few, so that no socket buffer loses any,
    however long the server stands still. */
static void replay( int from, int count )
{
    double end = netcode_time() + STEP_SECONDS;
    struct counters_t before = read_counters( &demo.small );
    for ( int i = 0; i < count; i++ ) {
        send_to_server( from, &demo.small, demo.relay.data[i], demo.relay.bytes[i] );
        while ( ( i % 16 == 15 || i == count - 1 ) && netcode_time() < end ) {
            struct counters_t now = read_counters( &demo.small );
            if ( drops( &now ) - drops( &before ) > i )
                break;
        }
    }
}

/* Between clients and the small server. The token is for a client that comes through it. */
static void open_relay( struct relay_t * relay, const char * token_name, uint64_t client_id )
{
    char relay_address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct sockaddr_in address;
    relay->count = relay->have_client = 0;
    relay->server_side = open_loopback_socket( &address );
    relay->client_side = open_loopback_socket( &address );
    snprintf( relay_address, sizeof( relay_address ), "127.0.0.1:%d", (int) ntohs( address.sin_port ) );
    struct mint_t mint = token_for( relay_address, NULL, TIMEOUT_SECONDS );
    mint.internals[0] = demo.small.address;
    write_token( token_name, &mint, client_id );
}

static void close_relay( struct relay_t * relay )
{
    close( relay->client_side );
    close( relay->server_side );
    relay->client_side = -1;
    relay->server_side = -1;
}

/* As a router that has forgotten the port that it had given: the server sees the client at another one, which is returned. */
static int change_port( struct relay_t * relay )
{
    struct sockaddr_in address;
    int fresh = open_loopback_socket( &address );
    close( relay->server_side );
    relay->server_side = fresh;
    return (int) ntohs( address.sin_port );
}

/* Until the client has sent so many more: a number of packets, not a time, whatever else the machine has to do. */
static void pump_packets( const struct relay_t * relay, int more )
{
    double end = netcode_time() + STEP_SECONDS;
    int wanted = relay->count + more;
    while ( relay->count < wanted && netcode_time() < end )
        pump( 0.01 );
}

static void replayed_session( void )
{
    struct sockaddr_in address;
    struct relay_t * relay = &demo.relay;
    begin( "a recorded session is replayed in vain", "every packet of it is dropped: while the player is there, after "
                                                     "that, and from elsewhere; nothing is sent in answer" );
    open_relay( relay, "relayed.token", 1008 );
    struct counters_t start_counters = read_counters( &demo.small );
    struct child_t * client = start_staying_client( "relayed.token" );
    wait_counter( &demo.small, "clients", 1 );
    pump_packets( relay, 31 );

    int live = relay->count;
    struct counters_t before = read_counters( &demo.small );
    replay( relay->server_side, live );
    struct counters_t after = read_counters( &demo.small );
    long long live_drops = drops( &after ) - drops( &before );
    int live_unharmed = difference( &before, &after, "connects" ) == 0 && counter( &after, "clients" ) == 1;

    send_signal( client, SIGTERM );
    int status = wait_exit( client, STEP_SECONDS );
    struct counters_t left = wait_counter( &demo.small, "clients", 0 );
    int all = relay->count;
    int elsewhere = open_loopback_socket( &address );
    before = read_counters( &demo.small );
    replay( relay->server_side, all );
    replay( elsewhere, all );
    after = read_counters( &demo.small );
    close( elsewhere );
    close_relay( relay );
    long long late_drops = drops( &after ) - drops( &before );
    long long payloads = difference( &start_counters, &after, "received_payload" );
    long long sent = (long long) summary_value( client, "sent" );
    verdict( live > 30 && live_drops == live && live_unharmed && status == CLIENT_FINE &&
                 counter( &left, "clients" ) == 0 && late_drops == 2 * (long long) all &&
                 difference( &before, &after, "bytes_sent" ) == 0 &&
                 difference( &start_counters, &after, "connects" ) == 1 && payloads == sent,
             "%lld of %d dropped during the session, %lld of %d after it; 1 connect was expected: %lld; the client "
             "sent %lld "
             "payloads, the server accepted %lld; client's status %d",
             live_drops, live, late_drops, 2 * all, difference( &start_counters, &after, "connects" ), sent, payloads,
             status );
}

static void changed_port( void )
{
    static const char * const options[] = { "--count", "0", "--rate", "60", NULL };
    char line[LINE_BYTES], wanted[64];
    struct relay_t * relay = &demo.relay;
    begin( "the player's port changes in mid-game",
           "as a router does that forgets it: the server asks at the new port, and the game goes on in the same slot" );
    open_relay( relay, "moved.token", 1014 );
    struct counters_t before = read_counters( &demo.small );
    struct child_t * client = start_client( "moved.token", options );
    wait_counter( &demo.small, "clients", 1 );
    pump_for( 0.5 );
    skip_output( demo.small.child );
    snprintf( wanted, sizeof( wanted ), " to=127.0.0.1:%d", change_port( relay ) );
    double changed = netcode_time();
    int moved = wait_line( demo.small.child, "  moved slot=0 client=1014 ", STEP_SECONDS, line, LINE_BYTES ) &&
                strstr( line, wanted ) != NULL;
    double seconds = netcode_time() - changed;
    struct counters_t then = read_counters( &demo.small );
    pump_packets( relay, 30 );
    struct counters_t played = read_counters( &demo.small ); /* once the client has left, nothing is echoed */
    send_signal( client, SIGTERM );
    int status = wait_exit( client, STEP_SECONDS );
    struct counters_t after = wait_counter( &demo.small, "clients", 0 );
    close_relay( relay );
    long long more = difference( &then, &played, "received_payload" );
    long long echoed = difference( &then, &played, "sent_payload" );
    double lost = summary_value( client, "lost" );
    verdict( moved && more > 15 && echoed > 15 && lost >= 0.0 && status == CLIENT_FINE &&
                 difference( &before, &after, "moves" ) == 1 && difference( &before, &after, "connects" ) == 1 &&
                 difference( &before, &after, "disconnects_client" ) == 1,
             "\"%s\" after %.0f ms; %.0f of %.0f echoes were lost, %lld payloads came after it, %lld were echoed; "
             "connects: %lld; client's status %d",
             moved ? line + strspn( line, " .0123456789" ) : "no line", seconds * 1000.0, lost,
             summary_value( client, "sent" ), more, echoed, difference( &before, &after, "connects" ), status );
}

static void clean_disconnect( void )
{
    char first_line[LINE_BYTES];
    char left_line[LINE_BYTES];
    char second_line[LINE_BYTES];
    begin( "clean disconnect, and its slot is used again",
           "the only slot is free at once, though its timeout is 10 s away" );
    struct mint_t mint = token_for( demo.small.address, NULL, TIMEOUT_SECONDS );
    write_token( "leaver.token", &mint, 1010 );
    write_token( "next.token", &mint, 1011 );
    struct counters_t before = read_counters( &demo.small );
    skip_output( demo.small.child );
    int first_status = wait_exit( start_short_client( "leaver.token" ), STEP_SECONDS );
    double first_left = netcode_time();
    struct child_t * next = start_short_client( "next.token" );
    int first = wait_line( demo.small.child, " connected slot=0 client=1010 ", STEP_SECONDS, first_line, LINE_BYTES );
    int left = wait_line( demo.small.child, " disconnected slot=0 client=1010 ", STEP_SECONDS, left_line, LINE_BYTES );
    int second = wait_line( demo.small.child, " connected slot=0 client=1011 ", STEP_SECONDS, second_line, LINE_BYTES );
    double seconds = netcode_time() - first_left;
    int next_status = wait_exit( next, STEP_SECONDS );
    struct counters_t after = wait_counter( &demo.small, "clients", 0 );
    verdict( first && left && second && strstr( left_line, "the client left" ) && first_status == CLIENT_FINE &&
                 next_status == CLIENT_FINE && difference( &before, &after, "connects" ) == 2 &&
                 difference( &before, &after, "disconnects_client" ) == 2 &&
                 difference( &before, &after, "sent_denied" ) == 0,
             "\"%s\"; the next player has slot 0 after %.0f ms; statuses %d and %d",
             left_line + strspn( left_line, " .0123456789" ), seconds * 1000.0, first_status, next_status );
}

static void crash( void )
{
    char line[LINE_BYTES];
    begin( "a crash (kill -9), and the player is back with a newer token",
           "the newer token takes over the only slot at once, though the old session's timeout is 10 s away" );
    struct mint_t mint = token_for( demo.small.address, NULL, TIMEOUT_SECONDS );
    write_token( "crash.token", &mint, 1012 );
    struct child_t * first = start_staying_client( "crash.token" );
    struct counters_t before = wait_counter( &demo.small, "clients", 1 );
    pump_for( 0.2 );
    skip_output( demo.small.child );
    send_signal( first, SIGKILL );
    wait_exit( first, STEP_SECONDS );
    double crashed = netcode_time();
    write_token( "back.token", &mint, 1012 );
    struct child_t * second = start_short_client( "back.token" );
    int replaced = wait_line( demo.small.child, " disconnected slot=0 client=1012 ", STEP_SECONDS, line, LINE_BYTES ) &&
                   strstr( line, "replaced" ) != NULL;
    int back = wait_line( demo.small.child, " connected slot=0 client=1012 ", STEP_SECONDS, line, LINE_BYTES );
    double seconds = netcode_time() - crashed;
    int status = wait_exit( second, STEP_SECONDS );
    struct counters_t after = wait_counter( &demo.small, "clients", 0 );
    int killed = WIFSIGNALED( first->status ) && WTERMSIG( first->status ) == SIGKILL;
    verdict( killed && replaced && back && status == CLIENT_FINE &&
                 difference( &before, &after, "disconnects_replaced" ) == 1 &&
                 difference( &before, &after, "drop_CLIENT_ID_CONNECTED" ) == 0 && /* at once: it is never refused */
                 difference( &before, &after, "connects" ) == 1 &&
                 difference( &before, &after, "disconnects_timed_out" ) == 0,
             "%s; back in slot 0 after %.0f ms (%lld session replaced, %lld timed out); its echoes: status %d",
             killed ? "killed by signal 9" : "it was not killed", seconds * 1000.0,
             difference( &before, &after, "disconnects_replaced" ),
             difference( &before, &after, "disconnects_timed_out" ), status );
}

static void servers_end( void )
{
    begin( "the servers end on SIGTERM",
           "they tell the connected player, who need not wait for a timeout, and end with status 0" );
    struct mint_t mint = token_for( demo.large.address, NULL, TIMEOUT_SECONDS );
    write_token( "last.token", &mint, 1013 );
    struct child_t * client = start_staying_client( "last.token" );
    wait_counter( &demo.large, "clients", 1 );
    demo.small.child->is_server = 0; /* from here on they may end */
    demo.large.child->is_server = 0;
    double signalled = netcode_time();
    send_signal( demo.small.child, SIGTERM );
    send_signal( demo.large.child, SIGTERM );
    int client_status = wait_exit( client, STEP_SECONDS );
    double seconds = netcode_time() - signalled;
    int small_status = wait_exit( demo.small.child, STEP_SECONDS );
    int large_status = wait_exit( demo.large.child, STEP_SECONDS );
    verdict( client_status == CLIENT_SERVER_DISCONNECTED && small_status == 0 && large_status == 0,
             "client's status %d (the server ended it) after %.0f ms; servers' statuses %d and %d", client_status,
             seconds * 1000.0, small_status, large_status );
}

/* ---- beginning and end ---- */

static void remove_files( void )
{
    static const char * const names[] = { "game.key",       "other.key",       "first.json",      "fast.token",
                                          "occupant.token", "both.token",      "expired.token",   "used.token",
                                          "flipped.token",  "prolonged.token", "elsewhere.token", "relayed.token",
                                          "moved.token",    "leaver.token",    "next.token",      "crash.token",
                                          "back.token",     "last.token" };
    char path[FILE_PATH_BYTES];
    for ( size_t i = 0; i < sizeof( names ) / sizeof( names[0] ); i++ ) {
        path_of( names[i], path );
        unlink( path );
    }
    rmdir( demo.directory );
}

/* On every way out: no process of ours stays, and no key. */
static void clean_up( void )
{
    for ( int i = 0; i < demo.num_children; i++ ) {
        struct child_t * child = demo.children[i];
        if ( child->pid ) {
            kill( child->pid, SIGKILL );
            waitpid( child->pid, &child->status, 0 );
        }
        if ( child->output >= 0 )
            close( child->output );
        free( child );
    }
    demo.num_children = 0;
    if ( demo.directory[0] )
        remove_files();
    sodium_memzero( demo.key, sizeof( demo.key ) );
}

static void install_signals( void )
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM };
    struct sigaction action;
    memset( &action, 0, sizeof( action ) );
    action.sa_handler = on_signal;
    for ( size_t i = 0; i < sizeof( numbers ) / sizeof( numbers[0] ); i++ )
        sigaction( numbers[i], &action, NULL );
    action.sa_handler = SIG_IGN;
    sigaction( SIGPIPE, &action, NULL );
    alarm( LIMIT_SECONDS );
}

/* The other programs stand where this one does. */
static int find_programs( const char * self )
{
    static const char * const names[] = { "server", "client", "token" };
    char path[FILE_PATH_BYTES];
    const char * slash = strrchr( self, '/' );
    snprintf( demo.programs, sizeof( demo.programs ), "%.*s", slash ? (int) ( slash - self ) : 1, slash ? self : "." );
    for ( size_t i = 0; i < sizeof( names ) / sizeof( names[0] ); i++ ) {
        snprintf( path, sizeof( path ), "%s/%s", demo.programs, names[i] );
        if ( access( path, X_OK ) != 0 ) {
            fprintf( stderr, "demo: %s is not there; `make demo` builds it\n", path );
            return 0;
        }
    }
    return 1;
}

static int make_directory( void )
{
    const char * base = getenv( "TMPDIR" );
    snprintf( demo.directory, sizeof( demo.directory ), "%s/netcode-demo-XXXXXX", base && *base ? base : "/tmp" );
    if ( mkdtemp( demo.directory ) )
        return 1;
    fprintf( stderr, "demo: no directory for keys and tokens: %s\n", strerror( errno ) );
    demo.directory[0] = '\0';
    return 0;
}

/* A token that is long expired when its story comes. */
static void mint_expired_token( void )
{
    struct mint_t mint = token_for( demo.small.address, NULL, TIMEOUT_SECONDS );
    mint.expire_seconds = 1;
    write_token( "expired.token", &mint, 1009 );
}

static void run_stories( int kill_server )
{
    keys_and_tokens();
    mint_expired_token();
    connect_and_echo();
    full_server();
    expired_token();
    used_token();
    if ( kill_server ) {
        printf( "       now the server process %d is killed, as was asked for\n", (int) demo.small.child->pid );
        send_signal( demo.small.child, SIGKILL );
    }
    tampered_token();
    token_for_another_server();
    replayed_session();
    changed_port();
    clean_disconnect();
    crash();
    servers_end();
}

int main( int argc, char ** argv )
{
    const char * environment = getenv( "DEMO_KILL_SERVER" );
    int kill_server = environment && !strcmp( environment, "1" );
    if ( argc == 2 && !strcmp( argv[1], "--kill-server-halfway" ) ) {
        kill_server = 1;
    } else if ( argc > 1 ) {
        printf( "usage: demo [--kill-server-halfway]\n"
                "\n"
                "Starts real servers and clients on loopback and prints what happens. Exit status 0 only if every line "
                "held.\n"
                "With the option, or with DEMO_KILL_SERVER=1, it kills the server in the middle, and must fail.\n" );
        return strcmp( argv[1], "--help" ) ? 2 : 0;
    }
    demo.start_time = netcode_time();
    demo.terminal = isatty( STDOUT_FILENO );
    demo.relay.client_side = -1;
    demo.relay.server_side = -1;
    if ( netcode_init() != NETCODE_OK || !find_programs( argv[0] ) || !make_directory() )
        return 1;
    atexit( clean_up );
    install_signals();
    run_stories( kill_server );
    printf( "\n%s: %d of %d lines held, %.1f s\n", demo.failures ? "the demo failed" : "the demo is over",
            demo.story - demo.failures, demo.story, netcode_time() - demo.start_time );
    netcode_term();
    return demo.failures ? 1 : 0;
}
