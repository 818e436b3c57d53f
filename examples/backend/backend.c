/*  The token backend: it knows the players, hears from the servers or reads them in a file, and gives each player who
    asks a connect token for the servers with the most free slots. It speaks plain HTTP on loopback: TLS is the business
    of the proxy in front of it, for which nginx.conf beside this file is a tested template. README.md describes
    the endpoints and the files.

        cc examples/backend/backend.c $(pkg-config --cflags --libs libmicrohttpd libcjson libsodium) -o backend
        ./backend --listen 127.0.0.1:8080 --key-file game.key --players players --server-credential-file servers.credential

    With -DBACKEND_FULL it takes logins by OpenID Connect and by a platform's tickets too, and several of it share sessions,
    rates and revocations in a Redis: full.h.

    One thread does everything: libmicrohttpd is polled by the main loop, so nothing here needs a lock. */

#define NETCODE_IMPLEMENTATION
#include "../../netcode.h"

#include "../secret_file.h"
#include "matchmaking.h"
#include "wiping.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <microhttpd.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_LISTEN "127.0.0.1:8080"
#define DEFAULT_PROTOCOL_ID 0x1122334455667788ull
#define HASH_BYTES 32
#define NAME_BYTES 64 /* of players, servers and regions, with the zero at the end */
#define MAX_CREDENTIAL_BYTES 512
#define MAX_SERVER_CREDENTIALS 4 /* so that a new one can come before the old one goes */
#define MAX_PLAYERS 1000000
#define MAX_SERVERS 256 /* that report, and as many in the file */
#define LISTED_SLOTS 32 /* of a server in the file that does not say how many it has: as examples/server.c */
#define MAX_CONNECTIONS 256
#define MAX_LINE_BYTES 512
#define MAX_BODY_BYTES 8192
/* Who sends more than a body may have is heard out up to here, so that the answer is read and not lost in a reset. */
#define MAX_DRAINED_BYTES 1048576
#define CONNECTION_MEMORY_BYTES 16384 /* a request's line and headers, and what waits to be sent */
#define METRICS_BYTES 32768
#define SERVER_SILENT_SECONDS 5.0  /* a server that was not heard for so long is not picked */
#define RETRY_SECONDS 2            /* Retry-After where no server has a free slot */
#define LAST_ANSWERS_SECONDS 2.0   /* for requests in progress when a signal ends us */
#define CREDENTIAL_RANDOM_BYTES 32 /* of a credential that --credential makes */
#define MIN_CREDENTIAL_BYTES 16    /* that --hash takes: the hash of a shorter one, a password, gives it away */

/* clang-format off */
/*  Why a request was refused. One list gives the enum, the status, the name in the JSON and the metrics, the sentence.
    X( name, HTTP status, sentence ) */
#define REFUSAL_LIST( X )                                                                                                  \
    X( not_found,          404, "There is nothing at this address" )                                                       \
    X( method_not_allowed, 405, "This address takes another method: see Allow" )                                           \
    X( no_credential,      401, "Say who you are: Authorization: Bearer and your credential" )                             \
    X( unknown_credential, 401, "This credential is not known here" )                                                      \
    X( too_large,          413, "The body is too large" )                                                                  \
    X( not_json,           400, "The body is no JSON object" )                                                             \
    X( wrong_field,        400, "A field is missing, unknown, there twice, or has a value that it can not have" )          \
    X( wrong_protocol_id,  400, "This backend serves another protocol id" )                                                \
    X( rate_limited,       429, "You ask too often: see Retry-After" )                                                     \
    X( no_server,          503, "No server that fits has a free slot: see Retry-After" )                                   \
    X( too_many_servers,   503, "This backend knows as many servers as it can" )                                           \
    X( internal,           500, "The backend could not do it" )                                                            \
    X( unknown_ticket,     404, "You have no such ticket: it has ended long ago, or the backend was started anew. Ask for a match again" ) \
    X( not_matchmaker,     502, "Another backend finds matches, or will in a moment: see Retry-After" )                    \
    X( being_matched,      409, "Your match is being made: ask again, then it can be cancelled" )                          \
    MM_REFUSAL_LIST( X )
/* clang-format on */

struct player_t {
    uint8_t hash[HASH_BYTES]; /* of the credential, which we never keep */
    uint64_t client_id;
    char name[NAME_BYTES];
    double allowance; /* requests that are left now; refilled with time, up to the rate of a minute */
    double refilled_at;
    char home[NAME_BYTES]; /* the server that headed the last token */
};

#ifdef BACKEND_FULL
#include "full.h"
#else
#include "plain.h"
#endif

#define REFUSAL_ENUM( name, status, text ) REFUSAL_##name,
enum refusal_t { REFUSAL_LIST( REFUSAL_ENUM ) FULL_REFUSAL_LIST( REFUSAL_ENUM ) REFUSALS };
#undef REFUSAL_ENUM

struct refusal_info_t {
    const char * name;
    unsigned int status;
    const char * text;
};

#define REFUSAL_ROW( name, status, text ) { #name, status, text },
static const struct refusal_info_t refusal_infos[REFUSALS] = { REFUSAL_LIST( REFUSAL_ROW )
                                                                   FULL_REFUSAL_LIST( REFUSAL_ROW ) };
#undef REFUSAL_ROW

struct options_t {
    const char * listen;
    const char * players_file;
    const char * servers_file;
    const char * server_credential_file;
    const char * key_file;
    const char * gateway; /* where web pages play through; NULL: they do not */
    uint64_t protocol_id;
    int expire_seconds;
    int timeout_seconds;
    int rate; /* tokens per player and minute */
    int servers_per_token;
    int request_seconds;
    int allow_remote;
};

/* A server, as it reported last, or as the file says. */
struct server_t {
    char name[NAME_BYTES];            /* "" for a free place */
    struct netcode_address_t address; /* how it knows itself */
    struct netcode_address_t dialled[NETCODE_MAX_PUBLIC_ADDRESSES];
    int num_dialled;
    int slots;
    int clients;
    int promised; /* tokens that it headed since this report: their players are not among the clients yet */
    int reserved; /* slots for matches whose players are on their way: match.h */
    int draining;
    int listed; /* it stands in the file, and never reported */
    double heard_at;
};

/* What the files say. SIGHUP makes a new one, and takes it only as a whole. */
struct files_t {
    uint8_t * key; /* in locked memory between guard pages, kept out of core dumps */
    uint8_t server_hashes[MAX_SERVER_CREDENTIALS][HASH_BYTES];
    int num_server_hashes;
    struct server_t * listed; /* those of the file, but for who has reported since */
    int num_listed;
    struct player_t * players;
    size_t num_players;
    size_t max_players;
    uint32_t * by_hash; /* open addressing: index + 1, 0 for free */
    uint32_t * by_id;
    size_t mask;
    uint8_t index_key[crypto_shorthash_KEYBYTES]; /* no client can know which bucket a credential leads to */
};

/* What a player asks for; "" where he does not care. */
struct wish_t {
    char region[NAME_BYTES];
    char server[NAME_BYTES];
    char avoid[NAME_BYTES];
};

struct choice_t {
    struct server_t * server;
    int free_slots;
    int avoided;
};

/* An open connection. All of them are kept, so that slow ones can be cut. */
struct connection_t {
    int socket;
    double since; /* opened, or answered last */
    struct connection_t * next;
    struct connection_t ** link; /* what points to this one */
};

static const double duration_bounds[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0 };
#define DURATION_BOUNDS ( sizeof( duration_bounds ) / sizeof( duration_bounds[0] ) )

struct counts_t {
    uint64_t tokens;
    uint64_t reports;
    uint64_t refusals[REFUSALS];
    uint64_t reloads_good;
    uint64_t reloads_failed;
    uint64_t connections_cut;
    uint64_t durations[DURATION_BOUNDS + 1];
    double duration_sum;
};

struct app_t {
    struct options_t options;
    struct files_t files;
    struct server_t servers[MAX_SERVERS];
    struct connection_t * connections;
    struct MHD_Daemon * daemon;
    struct counts_t counts;
    double start_time;
    int requests_under_way;
    struct full_t full;
};

struct request_t {
    struct app_t * app;
    struct MHD_Connection * connection;
    double started_at;
    struct player_t * player; /* who asks, once with_player has found him */
    int is_free;              /* it costs nothing of the player's rate */
    char rest[NAME_BYTES];    /* of the path, where it is an address for many things */
    int deletes;
    struct full_request_t full;
    size_t bytes; /* of the body that came, kept or not */
    char body[MAX_BODY_BYTES + 1];
};

/* What goes back. */
struct answer_t {
    unsigned int status;
    char * body; /* from wiping_alloc, which the answer owns; NULL: there was no memory for it */
    const char * type;
    const char * allow; /* for 405 */
    int retry_after;    /* seconds; 0: not said */
};

static volatile sig_atomic_t signal_stop;
static volatile sig_atomic_t signal_reload;

static void on_signal( int number )
{
    if ( number == SIGHUP )
        signal_reload = 1;
    else
        signal_stop = 1;
}

static void install_signals( void )
{
    struct sigaction action;
    memset( &action, 0, sizeof( action ) );
    action.sa_handler = on_signal;
    sigaction( SIGINT, &action, NULL );
    sigaction( SIGTERM, &action, NULL );
    sigaction( SIGHUP, &action, NULL );
    action.sa_handler = SIG_IGN;
    sigaction( SIGPIPE, &action, NULL );
}

/* One line of the log. Never a credential, a token or a key. */
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
    fprintf( stderr, "backend: %s %s\n", what, why );
    return 0;
}

/* ---- numbers and words ---- */

static int parse_u64( const char * text, int base, uint64_t * value )
{
    char * end = NULL;
    errno = 0;
    if ( !isdigit( (unsigned char) *text ) )
        return 0;
    unsigned long long number = strtoull( text, &end, base );
    if ( *end != '\0' || errno )
        return 0;
    *value = (uint64_t) number;
    return 1;
}

static int parse_int( const char * text, int minimum, int maximum, int * value )
{
    uint64_t number = 0;
    if ( !parse_u64( text, 10, &number ) || number < (uint64_t) minimum || number > (uint64_t) maximum )
        return 0;
    *value = (int) number;
    return 1;
}

/* What names are made of; `more` are further characters, as addresses have them. */
static int is_word( const char * text, const char * more )
{
    size_t bytes = strlen( text );
    if ( bytes < 1 || bytes >= NAME_BYTES )
        return 0;
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( !isalnum( (unsigned char) text[i] ) && !strchr( "._-", text[i] ) && !strchr( more, text[i] ) )
            return 0;
    }
    return 1;
}

/* Cut, where it is too long. */
static void copy_name( char to[NAME_BYTES], const char * from )
{
    snprintf( to, NAME_BYTES, "%.*s", NAME_BYTES - 1, from );
}

static char * trim( char * text )
{
    size_t bytes = strlen( text );
    while ( bytes && isspace( (unsigned char) text[bytes - 1] ) )
        text[--bytes] = '\0';
    while ( isspace( (unsigned char) *text ) )
        text++;
    return text;
}

/* Cuts the first word off, and moves to what follows it. */
static char * take_word( char ** text )
{
    char * word = trim( *text );
    size_t bytes = strcspn( word, " \t" );
    *text = word + bytes;
    if ( word[bytes] )
        *( *text )++ = '\0';
    return word;
}

static int hash_credential( const char * credential, size_t bytes, uint8_t hash[HASH_BYTES] )
{
    return bytes >= 1 && bytes <= MAX_CREDENTIAL_BYTES &&
           crypto_generichash( hash, HASH_BYTES, (const unsigned char *) credential, bytes, NULL, 0 ) == 0;
}

/* ---- files ---- */

/* NULL, and a line, when it can not be opened, or when whoever likes could have written it. */
static FILE * open_list( const char * path )
{
    struct stat status;
    FILE * file = fopen( path, "rb" );
    if ( !file ) {
        complain( path, strerror( errno ) );
        return NULL;
    }
    if ( fstat( fileno( file ), &status ) == 0 && S_ISREG( status.st_mode ) && !( status.st_mode & S_IWOTH ) )
        return file;
    fclose( file );
    complain( path, "is refused, because it is no file, or everyone can write to it" );
    return NULL;
}

static int read_key( const char * path, struct files_t * files )
{
    files->key = (uint8_t *) sodium_malloc( NETCODE_KEY_BYTES );
    if ( !files->key )
        return complain( path, "needs locked memory, and there is none left" );
    return secret_read_key( "backend", path, files->key ) && sodium_mprotect_readonly( files->key ) == 0;
}

/*  A line without its end; 0 at the end of the file, -1 when it is longer than lines are or can not be read. Skips empty
    ones and notes. */
static int read_line( FILE * file, char line[MAX_LINE_BYTES], char ** text, int * number )
{
    while ( fgets( line, MAX_LINE_BYTES, file ) ) {
        ( *number )++;
        if ( !strchr( line, '\n' ) && !feof( file ) )
            return -1;
        *text = trim( line );
        if ( **text && **text != '#' )
            return 1;
    }
    if ( !ferror( file ) )
        return 0;
    ( *number )++;
    return -1;
}

/*  Gives each line to `take`, which returns NULL, or what is wrong with it. 0, and a line that says where, when one is
    wrong. */
static int read_list( const char * path, const char * ( *take )(struct files_t *, char *), struct files_t * files )
{
    char line[MAX_LINE_BYTES];
    char why[256];
    char * text = NULL;
    int number = 0;
    int more = 0;
    const char * wrong = NULL;
    FILE * file = open_list( path );
    if ( !file )
        return 0;
    while ( !wrong && ( more = read_line( file, line, &text, &number ) ) != 0 )
        wrong = more < 0 ? "it is too long, or can not be read" : take( files, text );
    fclose( file );
    snprintf( why, sizeof( why ), "is wrong in line %d: %s", number, wrong ? wrong : "" );
    return wrong ? complain( path, why ) : 1;
}

static int read_server_credentials( const char * path, struct files_t * files )
{
    char line[MAX_LINE_BYTES];
    char * text = NULL;
    int number = 0;
    int more = 0;
    FILE * file = path ? secret_open( "backend", path ) : NULL;
    if ( !file )
        return !path;
    while ( ( more = read_line( file, line, &text, &number ) ) > 0 &&
            files->num_server_hashes < MAX_SERVER_CREDENTIALS )
        hash_credential( text, strlen( text ), files->server_hashes[files->num_server_hashes++] );
    fclose( file );
    sodium_memzero( line, sizeof( line ) );
    if ( more == 0 && files->num_server_hashes )
        return 1;
    return complain( path, "holds no servers' credential, more than four, or a line that can not be one" );
}

/* ---- players ---- */

static size_t place_of( const struct files_t * files, const void * data, size_t bytes )
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint64_t place = 0;
    crypto_shorthash( hash, (const unsigned char *) data, bytes, files->index_key );
    memcpy( &place, hash, sizeof( place ) );
    return (size_t) place & files->mask;
}

/* The player, or NULL. Hashes are compared in constant time. `place` is where he is, or could be put. */
static struct player_t * find_hash( const struct files_t * files, const uint8_t * hash, size_t * place )
{
    for ( *place = place_of( files, hash, HASH_BYTES ); files->by_hash[*place];
          *place = ( *place + 1 ) & files->mask ) {
        struct player_t * player = &files->players[files->by_hash[*place] - 1];
        if ( sodium_memcmp( player->hash, hash, HASH_BYTES ) == 0 )
            return player;
    }
    return NULL;
}

static struct player_t * find_id( const struct files_t * files, uint64_t client_id, size_t * place )
{
    *place = place_of( files, &client_id, sizeof( client_id ) );
    for ( ; files->by_id[*place]; *place = ( *place + 1 ) & files->mask ) {
        struct player_t * player = &files->players[files->by_id[*place] - 1];
        if ( player->client_id == client_id )
            return player;
    }
    return NULL;
}

/* Players may be called as they like: any text without control characters. */
static int is_name( const char * text )
{
    for ( const char * at = text; *at; at++ ) {
        if ( (unsigned char) *at < 0x20 || *at == 0x7f )
            return 0;
    }
    return *text && strlen( text ) < NAME_BYTES;
}

/* "credential-hash client_id name". 0 when it is not. */
static int parse_player( char * text, struct player_t * player )
{
    size_t bytes = 0;
    const char * hash = take_word( &text );
    const char * id = take_word( &text );
    const char * name = trim( text );
    memset( player, 0, sizeof( *player ) );
    if ( !is_name( name ) || strlen( hash ) != (size_t) 2 * HASH_BYTES )
        return 0;
    copy_name( player->name, name );
    return sodium_hex2bin( player->hash, HASH_BYTES, hash, strlen( hash ), NULL, &bytes, NULL ) == 0 &&
           bytes == HASH_BYTES && parse_u64( id, 10, &player->client_id );
}

static const char * take_player( struct files_t * files, char * text )
{
    if ( files->num_players == MAX_PLAYERS )
        return "no more than a million players fit";
    if ( files->num_players == files->max_players ) {
        size_t count = files->max_players ? files->max_players * 2 : 64;
        struct player_t * players = (struct player_t *) realloc( files->players, count * sizeof( *players ) );
        if ( !players )
            return "there is no memory for more players";
        files->players = players;
        files->max_players = count;
    }
    return parse_player( text, &files->players[files->num_players++] ) ? NULL : "credential-hash client_id name";
}

/* 0, and a line, when two players have the same credential or the same id. */
static int index_players( const char * path, struct files_t * files )
{
    char why[128];
    size_t place = 0;
    size_t id_place = 0;
    files->mask = 63;
    while ( files->mask < files->num_players * 2 )
        files->mask = files->mask * 2 + 1;
    files->by_hash = (uint32_t *) calloc( files->mask + 1, sizeof( uint32_t ) );
    files->by_id = (uint32_t *) calloc( files->mask + 1, sizeof( uint32_t ) );
    crypto_shorthash_keygen( files->index_key );
    if ( !files->by_hash || !files->by_id )
        return complain( path, "holds more players than memory does" );
    for ( size_t i = 0; i < files->num_players; i++ ) {
        const struct player_t * player = &files->players[i];
        if ( find_hash( files, player->hash, &place ) || find_id( files, player->client_id, &id_place ) ) {
            snprintf( why, sizeof( why ), "holds player %llu twice, or another one with the same credential",
                      (unsigned long long) player->client_id );
            return complain( path, why );
        }
        files->by_hash[place] = files->by_id[id_place] = (uint32_t) ( i + 1 );
    }
    return 1;
}

static int read_players( const char * path, struct files_t * files )
{
    return ( !path || read_list( path, take_player, files ) ) && index_players( path ? path : "--players", files );
}

/* ---- servers of the file ---- */

static int is_wildcard( const struct netcode_address_t * address )
{
    static const uint16_t zeros[8] = { 0 };
    return address->type == NETCODE_ADDRESS_IPV4 ? !memcmp( address->data.ipv4, zeros, sizeof( address->data.ipv4 ) )
                                                 : !memcmp( address->data.ipv6, zeros, sizeof( zeros ) );
}

/* "address [name [slots]]". NULL, or what is wrong. Without a name it goes by its address. */
static const char * parse_listed( char * text, struct server_t * server )
{
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const char * first = take_word( &text );
    const char * name = take_word( &text );
    const char * slots = take_word( &text );
    memset( server, 0, sizeof( *server ) );
    server->listed = 1;
    server->slots = LISTED_SLOTS;
    server->heard_at = HUGE_VAL; /* it is never silent */
    if ( netcode_parse_address( first, &server->address ) != NETCODE_OK || !server->address.port ||
         is_wildcard( &server->address ) )
        return "first comes ADDRESS:PORT or [IPV6]:PORT, as players dial it";
    if ( *name && !is_word( name, "" ) )
        return "the name is up to 63 letters, digits, dots, dashes and underscores";
    if ( ( *slots && !parse_int( slots, 1, NETCODE_MAX_SLOTS, &server->slots ) ) || *trim( text ) )
        return "the slots are a number from 1 to 65535, and the last word";
    copy_name( server->name, *name ? name : netcode_address_to_string( &server->address, address ) );
    server->dialled[server->num_dialled++] = server->address;
    return NULL;
}

static const char * take_listed( struct files_t * files, char * text )
{
    struct server_t server;
    const char * wrong = parse_listed( text, &server );
    if ( !wrong && files->num_listed == MAX_SERVERS )
        return "no more than 256 servers fit";
    for ( int i = 0; i < files->num_listed && !wrong; i++ ) {
        struct server_t * other = &files->listed[i];
        if ( !strcmp( other->name, server.name ) || netcode_address_equal( &other->address, &server.address ) )
            wrong = "this name or this address stands there already";
    }
    if ( !wrong )
        files->listed[files->num_listed++] = server;
    return wrong;
}

static int read_listed( const char * path, struct files_t * files )
{
    if ( !path )
        return 1;
    files->listed = (struct server_t *) calloc( MAX_SERVERS, sizeof( *files->listed ) );
    return files->listed ? read_list( path, take_listed, files ) : complain( path, "holds more than memory does" );
}

/* ---- all files ---- */

static void free_files( struct files_t * files )
{
    sodium_free( files->key );
    free( files->listed );
    free( files->players );
    free( files->by_hash );
    free( files->by_id );
    sodium_memzero( files, sizeof( *files ) );
}

/* All files or nothing. */
static int read_files( const struct options_t * options, struct files_t * files )
{
    memset( files, 0, sizeof( *files ) );
    if ( read_key( options->key_file, files ) && read_server_credentials( options->server_credential_file, files ) &&
         read_listed( options->servers_file, files ) && read_players( options->players_file, files ) ) {
        double now = netcode_time();
        for ( size_t i = 0; i < files->num_players; i++ ) {
            files->players[i].allowance = options->rate;
            files->players[i].refilled_at = now;
        }
        return 1;
    }
    free_files( files );
    return 0;
}

/* What players have used up, and where they play, outlives the files. */
static void keep_players( const struct files_t * from, struct files_t * to )
{
    size_t place = 0;
    for ( size_t i = 0; i < to->num_players; i++ ) {
        struct player_t * player = &to->players[i];
        const struct player_t * known = find_id( from, player->client_id, &place );
        if ( known ) {
            player->allowance = known->allowance;
            player->refilled_at = known->refilled_at;
            memcpy( player->home, known->home, sizeof( player->home ) );
        }
    }
}

static void say_files( const struct app_t * app, const char * what )
{
    say( app, "%s: %zu players, %d servers, %d servers' credentials, the key", what, app->files.num_players,
         app->files.num_listed, app->files.num_server_hashes );
}

/* ---- servers ---- */

static int is_silent( const struct server_t * server, double now )
{
    return now - server->heard_at > SERVER_SILENT_SECONDS;
}

static int free_slots( const struct server_t * server )
{
    int count = server->slots - server->clients - server->promised - server->reserved;
    return count > 0 ? count : 0;
}

/*  "eu-1" stands in the region "eu", and so does "eu-llg4x-rx6rc", as Agones calls a server of the Fleet "eu"; so "eu"
    has those of "eu-west" too. A server that is called as the region is stands in it. */
static int is_in_region( const struct server_t * server, const char * region )
{
    size_t bytes = strlen( region );
    return !strncmp( server->name, region, bytes ) && ( !server->name[bytes] || server->name[bytes] == '-' );
}

static int is_dialled( const struct server_t * server, const struct netcode_address_t * address )
{
    for ( int i = 0; i < server->num_dialled; i++ ) {
        if ( netcode_address_equal( &server->dialled[i], address ) )
            return 1;
    }
    return 0;
}

/* Servers go by their name, or by an address at which players dial them. */
static int is_called( const struct server_t * server, const char * name )
{
    struct netcode_address_t address;
    return !strcmp( server->name, name ) ||
           ( netcode_parse_address( name, &address ) == NETCODE_OK && is_dialled( server, &address ) );
}

static int fits( const struct server_t * server, const struct wish_t * wish, double now )
{
    return server->name[0] && !server->draining && !is_silent( server, now ) &&
           ( !wish->region[0] || is_in_region( server, wish->region ) ) &&
           ( !wish->server[0] || is_called( server, wish->server ) );
}

/* All servers: those that have reported, then those of the file. One without a name is a free place. */
static struct server_t * server_at( struct app_t * app, int i )
{
    return i < MAX_SERVERS ? &app->servers[i] : &app->files.listed[i - MAX_SERVERS];
}

/* A server that reports is what it says, and no longer what the file says. */
static void unlist( struct files_t * files, const struct server_t * report )
{
    for ( int i = 0; i < files->num_listed; i++ ) {
        const struct server_t * listed = &files->listed[i];
        if ( !strcmp( report->name, listed->name ) || is_dialled( report, &listed->address ) )
            files->listed[i--] = files->listed[--files->num_listed];
    }
}

/* Most free slots first; what the player would rather avoid goes last. */
static int compare_choices( const void * a, const void * b )
{
    const struct choice_t * left = (const struct choice_t *) a;
    const struct choice_t * right = (const struct choice_t *) b;
    if ( left->avoided != right->avoided )
        return left->avoided - right->avoided;
    if ( left->free_slots != right->free_slots )
        return right->free_slots - left->free_slots;
    return strcmp( left->server->name, right->server->name );
}

/*  All servers that the player can go to, the best first. A full one counts where his last token led to it: the slot
    that he lost in a crash may be his own, and --replace gives it back. */
static int choose_servers( struct app_t * app, const struct player_t * player, const struct wish_t * wish,
                           struct choice_t choices[2 * MAX_SERVERS] )
{
    int count = 0;
    double now = netcode_time();
    for ( int i = 0; i < MAX_SERVERS + app->files.num_listed; i++ ) {
        struct server_t * server = server_at( app, i );
        struct choice_t choice = { server, free_slots( server ), 0 };
        if ( !fits( server, wish, now ) || ( !choice.free_slots && strcmp( player->home, server->name ) != 0 ) )
            continue;
        choice.avoided = wish->avoid[0] && is_called( server, wish->avoid );
        choices[count++] = choice;
    }
    qsort( choices, (size_t) count, sizeof( choices[0] ), compare_choices );
    return count;
}

/*  A token heads a player there. A server in the file does not report when players leave it: when all of its slots were
    given away, it is taken to be empty again. */
static void promise( struct server_t * server )
{
    server->promised++;
    if ( server->listed && !free_slots( server ) )
        server->promised = 0;
}

/*  The entry of a server by its name, or one that it can have: an empty one, else that of the server that has been silent
    longest, or servers that end and start by other names would shut new ones out. NULL when there is none. */
static struct server_t * find_server( struct app_t * app, const char * name )
{
    struct server_t * empty = NULL;
    struct server_t * oldest = &app->servers[0];
    for ( int i = 0; i < MAX_SERVERS; i++ ) {
        struct server_t * server = &app->servers[i];
        if ( !strcmp( server->name, name ) )
            return server;
        if ( !server->name[0] )
            empty = server;
        else if ( server->heard_at < oldest->heard_at )
            oldest = server;
    }
    if ( empty )
        return empty;
    return is_silent( oldest, netcode_time() ) ? oldest : NULL;
}

/* ---- answers ---- */

static enum MHD_Result send_answer( struct request_t * request, struct answer_t * answer )
{
    char seconds[16];
    if ( !answer->body )
        return MHD_NO;
    struct MHD_Response * response =
        MHD_create_response_from_buffer_with_free_callback( strlen( answer->body ), answer->body, wiping_free );
    if ( !response ) {
        wiping_free( answer->body );
        return MHD_NO;
    }
    MHD_add_response_header( response, "Content-Type", answer->type );
    MHD_add_response_header( response, "Cache-Control", "no-store" );
    MHD_add_response_header( response, "X-Content-Type-Options", "nosniff" );
    if ( answer->status == 401 )
        MHD_add_response_header( response, "WWW-Authenticate", "Bearer realm=\"netcode\"" );
    if ( answer->allow )
        MHD_add_response_header( response, "Allow", answer->allow );
    snprintf( seconds, sizeof( seconds ), "%d", answer->retry_after );
    if ( answer->retry_after )
        MHD_add_response_header( response, "Retry-After", seconds );
    enum MHD_Result result = MHD_queue_response( request->connection, answer->status, response );
    MHD_destroy_response( response );
    return result;
}

/* Prints and deletes the JSON; `good` is 0 when it could not be made as a whole. */
static enum MHD_Result send_json( struct request_t * request, struct answer_t * answer, cJSON * json, int good )
{
    answer->body = good ? cJSON_PrintUnformatted( json ) : NULL;
    answer->type = "application/json";
    cJSON_Delete( json );
    return send_answer( request, answer );
}

/* Counts the refusal, and answers with it. `detail` says which field, or is NULL. */
static enum MHD_Result refuse_with( struct request_t * request, enum refusal_t refusal, const char * detail,
                                    struct answer_t * answer )
{
    char message[256];
    const struct refusal_info_t * info = &refusal_infos[refusal];
    cJSON * json = cJSON_CreateObject();
    request->app->counts.refusals[refusal]++;
    snprintf( message, sizeof( message ), "%s%s%s.", info->text, detail ? ": " : "", detail ? detail : "" );
    answer->status = info->status;
    int good =
        cJSON_AddStringToObject( json, "error", info->name ) && cJSON_AddStringToObject( json, "message", message );
    return send_json( request, answer, json, good );
}

static enum MHD_Result refuse( struct request_t * request, enum refusal_t refusal, const char * detail )
{
    struct answer_t answer = { 0, NULL, NULL, NULL, 0 };
    return refuse_with( request, refusal, detail, &answer );
}

static enum MHD_Result refuse_for( struct request_t * request, enum refusal_t refusal, int seconds )
{
    struct answer_t answer = { 0, NULL, NULL, NULL, seconds };
    return refuse_with( request, refusal, NULL, &answer );
}

/* ---- who asks ---- */

/* The hash of the bearer's credential. 0 when the request has none that can be one. X-Forwarded-For is ignored. */
static int read_bearer( struct request_t * request, uint8_t hash[HASH_BYTES] )
{
    static const char scheme[] = "Bearer ";
    const char * value = MHD_lookup_connection_value( request->connection, MHD_HEADER_KIND, "Authorization" );
    if ( !value || strncasecmp( value, scheme, sizeof( scheme ) - 1 ) != 0 )
        return 0;
    value += sizeof( scheme ) - 1;
    value += strspn( value, " " );
    size_t bytes = strlen( value );
    while ( bytes && value[bytes - 1] == ' ' )
        bytes--; /* space behind a header's value is none of it */
    return hash_credential( value, bytes, hash );
}

/* Looks at all of them, so that the time does not tell which one it was. */
static int is_server_credential( const struct files_t * files, const uint8_t hash[HASH_BYTES] )
{
    int found = 0;
    for ( int i = 0; i < files->num_server_hashes; i++ )
        found |= sodium_memcmp( files->server_hashes[i], hash, HASH_BYTES ) == 0;
    return found;
}

/* 0 when the player may ask now; else in how many seconds. */
static int take_allowance( struct player_t * player, int rate )
{
    double now = netcode_time();
    double per_second = rate / 60.0;
    player->allowance += ( now - player->refilled_at ) * per_second;
    if ( player->allowance > rate )
        player->allowance = rate;
    player->refilled_at = now;
    if ( player->allowance < 1.0 )
        return (int) ceil( ( 1.0 - player->allowance ) / per_second );
    player->allowance -= 1.0;
    return 0;
}

/* ---- JSON that comes in ---- */

/* The body as an object, or NULL. */
static cJSON * parse_body( struct request_t * request )
{
    cJSON * json = NULL;
    request->body[request->bytes] = '\0';
    /* A zero inside, as itself or escaped, would hide what stands behind it. */
    if ( strlen( request->body ) == request->bytes && !strstr( request->body, "\\u0000" ) )
        json = cJSON_ParseWithLengthOpts( request->body, request->bytes + 1, NULL, 1 );
    if ( json && !cJSON_IsObject( json ) ) {
        cJSON_Delete( json );
        json = NULL;
    }
    return json;
}

static int take_wish( const cJSON * item, const char * more, char wish[NAME_BYTES] )
{
    if ( wish[0] || !cJSON_IsString( item ) || !is_word( item->valuestring, more ) )
        return 0;
    copy_name( wish, item->valuestring );
    return 1;
}

/* NULL when all is well; else what is wrong with the fields. */
static const char * read_wish( const cJSON * json, struct wish_t * wish )
{
    const cJSON * item = NULL;
    cJSON_ArrayForEach( item, json )
    {
        if ( !strcmp( item->string, "region" ) ) {
            if ( !take_wish( item, "", wish->region ) )
                return "region is a name, once";
        } else if ( !strcmp( item->string, "server" ) ) {
            if ( !take_wish( item, ":[]%", wish->server ) )
                return "server is a name or an address, once";
        } else if ( !strcmp( item->string, "avoid" ) ) {
            if ( !take_wish( item, ":[]%", wish->avoid ) )
                return "avoid is a name or an address, once";
        } else {
            return "only region, server and avoid are known";
        }
    }
    return NULL;
}

static int read_count( const cJSON * json, const char * name, int minimum, int maximum, int * value )
{
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( json, name );
    /* Written so that NaN fails too. */
    if ( !cJSON_IsNumber( item ) || !( item->valuedouble >= minimum && item->valuedouble <= maximum ) ||
         item->valuedouble != floor( item->valuedouble ) )
        return 0;
    *value = (int) item->valuedouble;
    return 1;
}

static int read_address( const cJSON * item, struct netcode_address_t * address )
{
    return cJSON_IsString( item ) && netcode_parse_address( item->valuestring, address ) == NETCODE_OK && address->port;
}

/* What players dial: the public addresses, or where there are none the server's own. */
static int read_dialled( const cJSON * json, struct server_t * server )
{
    const cJSON * item = NULL;
    const cJSON * list = cJSON_GetObjectItemCaseSensitive( json, "public_addresses" );
    if ( list && ( !cJSON_IsArray( list ) || cJSON_GetArraySize( list ) > NETCODE_MAX_PUBLIC_ADDRESSES ) )
        return 0;
    cJSON_ArrayForEach( item, list )
    {
        if ( !read_address( item, &server->dialled[server->num_dialled++] ) )
            return 0;
    }
    if ( !server->num_dialled )
        server->dialled[server->num_dialled++] = server->address;
    for ( int i = 0; i < server->num_dialled; i++ ) {
        if ( is_wildcard( &server->dialled[i] ) )
            return 0;
    }
    return 1;
}

/* NULL when all is well; else which field is wrong. What is not known is left alone: servers may be newer than we. */
static const char * read_report( const cJSON * json, struct server_t * server )
{
    const cJSON * name = cJSON_GetObjectItemCaseSensitive( json, "name" );
    const cJSON * draining = cJSON_GetObjectItemCaseSensitive( json, "draining" );
    memset( server, 0, sizeof( *server ) );
    if ( !cJSON_IsString( name ) || !is_word( name->valuestring, "" ) )
        return "name is up to 63 letters, digits, dots, dashes and underscores";
    if ( !read_address( cJSON_GetObjectItemCaseSensitive( json, "address" ), &server->address ) )
        return "address is ADDRESS:PORT";
    if ( !read_dialled( json, server ) )
        return "public_addresses, and address where there are none, are up to 32 that players can dial";
    if ( !read_count( json, "slots", 1, NETCODE_MAX_SLOTS, &server->slots ) )
        return "slots is a number from 1 to 65535";
    if ( !read_count( json, "clients", 0, server->slots, &server->clients ) )
        return "clients is a number from 0 to slots";
    if ( draining && !cJSON_IsBool( draining ) )
        return "draining is true or false";
    copy_name( server->name, name->valuestring );
    server->draining = cJSON_IsTrue( draining );
    server->heard_at = netcode_time();
    return NULL;
}

#ifdef BACKEND_FULL
#include "logins.h"
#else
/* Finds the player by the credential that the request brings, takes one of his rate, and goes on with `next`. */
static enum MHD_Result with_player( struct request_t * request,
                                    enum MHD_Result ( *next )( struct request_t * request ) )
{
    uint8_t hash[HASH_BYTES];
    size_t place = 0;
    struct app_t * app = request->app;
    if ( !read_bearer( request, hash ) )
        return refuse( request, REFUSAL_no_credential, NULL );
    request->player = find_hash( &app->files, hash, &place );
    if ( !request->player )
        return refuse( request, REFUSAL_unknown_credential, NULL );
    int seconds = request->is_free ? 0 : take_allowance( request->player, app->options.rate );
    return seconds ? refuse_for( request, REFUSAL_rate_limited, seconds ) : next( request );
}
#endif

/* ---- POST /v1/connect-token ---- */

/* Fills the token for these servers, up to as many addresses as a token has. */
static int make_token( struct app_t * app, const struct player_t * player, const struct choice_t * choices, int count,
                       uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    static char texts[2][NETCODE_MAX_SERVERS_PER_CONNECT][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const char * dialled[NETCODE_MAX_SERVERS_PER_CONNECT];
    const char * internal[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint8_t user_data[NETCODE_USER_DATA_BYTES] = { 0 };
    int n = 0;
    for ( int i = 0; i < count; i++ ) {
        const struct server_t * server = choices[i].server;
        for ( int k = 0; k < server->num_dialled && n < NETCODE_MAX_SERVERS_PER_CONNECT; k++, n++ ) {
            dialled[n] = netcode_address_to_string( &server->dialled[k], texts[0][n] );
            internal[n] = netcode_address_to_string( &server->address, texts[1][n] );
        }
    }
    memcpy( user_data, player->name, strlen( player->name ) ); /* so the server knows it, and only from us */
    return n &&
           netcode_generate_connect_token( n, dialled, internal, app->options.expire_seconds,
                                           app->options.timeout_seconds, player->client_id, app->options.protocol_id,
                                           app->files.key, user_data, token ) == NETCODE_OK;
}

/* 64-bit ids are strings, because JavaScript's numbers end at 2^53. 0 when memory is short. */
static int add_token( cJSON * json, const struct player_t * player, const char * gateway,
                      const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    char text[sodium_base64_ENCODED_LEN( NETCODE_CONNECT_TOKEN_BYTES, sodium_base64_VARIANT_ORIGINAL )];
    char client_id[32];
    char protocol_id[32];
    struct netcode_connect_token_info_t info;
    int good = netcode_connect_token_info( token, &info ) == NETCODE_OK;
    sodium_bin2base64( text, sizeof( text ), token, NETCODE_CONNECT_TOKEN_BYTES, sodium_base64_VARIANT_ORIGINAL );
    snprintf( client_id, sizeof( client_id ), "%llu", (unsigned long long) player->client_id );
    snprintf( protocol_id, sizeof( protocol_id ), "0x%016llx", (unsigned long long) info.protocol_id );
    good = good && cJSON_AddStringToObject( json, "client_id", client_id ) &&
           cJSON_AddStringToObject( json, "protocol_id", protocol_id ) &&
           cJSON_AddStringToObject( json, "connect_token", text ) &&
           cJSON_AddNumberToObject( json, "expires_at", (double) info.expire_timestamp ) &&
           cJSON_AddNumberToObject( json, "server_time", (double) time( NULL ) ) &&
           ( !gateway || cJSON_AddStringToObject( json, "gateway", gateway ) );
    sodium_memzero( text, sizeof( text ) );
    return good;
}

static enum MHD_Result send_token( struct request_t * request, const struct player_t * player, const char * gateway,
                                   const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    cJSON * json = cJSON_CreateObject();
    return send_json( request, &answer, json, add_token( json, player, gateway, token ) );
}

static enum MHD_Result issue( struct request_t * request, struct player_t * player, const struct wish_t * wish )
{
    static struct choice_t choices[2 * MAX_SERVERS];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct app_t * app = request->app;
    int count = choose_servers( app, player, wish, choices );
    if ( !count )
        return refuse_for( request, REFUSAL_no_server, RETRY_SECONDS );
    if ( count > app->options.servers_per_token )
        count = app->options.servers_per_token;
    if ( !make_token( app, player, choices, count, token ) )
        return refuse( request, REFUSAL_internal, NULL );
    promise( choices[0].server );
    copy_name( player->home, choices[0].server->name );
    keep_home( app, player );
    app->counts.tokens++;
    enum MHD_Result result = send_token( request, player, app->options.gateway, token );
    sodium_memzero( token, sizeof( token ) );
    return result;
}

static enum MHD_Result answer_player( struct request_t * request )
{
    struct wish_t wish;
    if ( request->bytes > MAX_BODY_BYTES )
        return refuse( request, REFUSAL_too_large, NULL );
    memset( &wish, 0, sizeof( wish ) );
    if ( request->bytes ) {
        cJSON * json = parse_body( request );
        const char * wrong = json ? read_wish( json, &wish ) : NULL;
        cJSON_Delete( json );
        if ( !json || wrong )
            return refuse( request, json ? REFUSAL_wrong_field : REFUSAL_not_json, wrong );
    }
    return issue( request, request->player, &wish );
}

static enum MHD_Result answer_connect_token( struct request_t * request )
{
    return with_player( request, answer_player );
}

/* ---- /v1/match ---- */

#include "match.h"

/* ---- POST /v1/servers ---- */

/* What a server said of itself, to us or to another backend. */
static void take_report( struct app_t * app, struct server_t * server, const struct server_t * report )
{
    int reserved = !strcmp( server->name, report->name ) ? server->reserved : 0;
    if ( strcmp( server->name, report->name ) != 0 || is_silent( server, netcode_time() ) )
        say( app, "server %s is heard: %d slots, %d clients", report->name, report->slots, report->clients );
    *server = *report;
    server->reserved = reserved; /* what is kept for matches the report does not know */
    unlist( &app->files, server );
}

#ifdef BACKEND_FULL
#include "servers_store.h"
#else
static void servers_store_share( struct app_t * app, const struct server_t * report, const char * text )
{
    (void) app, (void) report, (void) text;
}

static void servers_store_update( struct app_t * app, double now )
{
    (void) app, (void) now;
}
#endif

static enum MHD_Result accept_report( struct request_t * request, const struct server_t * report )
{
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    struct app_t * app = request->app;
    struct server_t * server = find_server( app, report->name );
    if ( !server )
        return refuse_for( request, REFUSAL_too_many_servers, RETRY_SECONDS );
    take_report( app, server, report );
    servers_store_share( app, report, request->body );
    app->counts.reports++;
    /* Heard, and known to all; but which players are on their way to this server, that one knows. */
    if ( match_store_is_elsewhere( app ) )
        return refuse_for( request, REFUSAL_not_matchmaker, MATCH_POLL_SECONDS );
    cJSON * json = cJSON_CreateObject();
    int good = cJSON_AddStringToObject( json, "status", "ok" ) && match_answer_report( server, json );
    return send_json( request, &answer, json, good );
}

static enum MHD_Result answer_servers( struct request_t * request )
{
    uint8_t hash[HASH_BYTES];
    struct server_t report;
    uint64_t protocol_id = 0;
    if ( !read_bearer( request, hash ) )
        return refuse( request, REFUSAL_no_credential, NULL );
    if ( !is_server_credential( &request->app->files, hash ) )
        return refuse( request, REFUSAL_unknown_credential, NULL );
    if ( request->bytes > MAX_BODY_BYTES )
        return refuse( request, REFUSAL_too_large, NULL );
    cJSON * json = parse_body( request );
    if ( !json )
        return refuse( request, REFUSAL_not_json, NULL );
    const char * wrong = read_report( json, &report );
    const cJSON * id = cJSON_GetObjectItemCaseSensitive( json, "protocol_id" );
    if ( !wrong && ( !cJSON_IsString( id ) || !parse_u64( id->valuestring, 0, &protocol_id ) ) )
        wrong = "protocol_id is a string with a number, 0x... or decimal";
    if ( !wrong && protocol_id == request->app->options.protocol_id )
        match_read_report( json );
    cJSON_Delete( json );
    if ( wrong )
        return refuse( request, REFUSAL_wrong_field, wrong );
    if ( protocol_id != request->app->options.protocol_id )
        return refuse( request, REFUSAL_wrong_protocol_id, NULL );
    return accept_report( request, &report );
}

/* ---- GET /healthz, GET /metrics ---- */

struct census_t {
    int free_slots; /* of those that can be picked */
    int open;
    int full;
    int draining;
    int silent;
};

static void count_servers( struct app_t * app, struct census_t * census )
{
    double now = netcode_time();
    memset( census, 0, sizeof( *census ) );
    for ( int i = 0; i < MAX_SERVERS + app->files.num_listed; i++ ) {
        const struct server_t * server = server_at( app, i );
        if ( !server->name[0] )
            continue;
        if ( is_silent( server, now ) ) {
            census->silent++;
        } else if ( server->draining ) {
            census->draining++;
        } else if ( free_slots( server ) ) {
            census->open++;
            census->free_slots += free_slots( server );
        } else {
            census->full++;
        }
    }
}

/* Healthy: there is a server to send players to, or at least one that is full. */
static enum MHD_Result answer_health( struct request_t * request )
{
    struct census_t census;
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    cJSON * json = cJSON_CreateObject();
    count_servers( request->app, &census );
    const char * status = census.open || census.full ? "ok" : "no_server";
    if ( full_is_without_store( request->app ) )
        status = "store_unreachable";
    if ( strcmp( status, "ok" ) != 0 ) {
        answer.status = 503;
        answer.retry_after = RETRY_SECONDS;
    }
    int good = cJSON_AddStringToObject( json, "status", status ) &&
               cJSON_AddNumberToObject( json, "servers", census.open + census.full ) &&
               cJSON_AddNumberToObject( json, "free_slots", census.free_slots ) &&
               full_tell_health( request->app, json );
    return send_json( request, &answer, json, good );
}

struct text_t {
    char * data;
    size_t bytes;
};

static void print( struct text_t * text, const char * format, ... )
{
    va_list arguments;
    va_start( arguments, format );
    int bytes = vsnprintf( text->data + text->bytes, METRICS_BYTES - text->bytes, format, arguments );
    va_end( arguments );
    if ( bytes > 0 && (size_t) bytes < METRICS_BYTES - text->bytes )
        text->bytes += (size_t) bytes;
    text->data[text->bytes] = '\0'; /* a line that did not fit is left out as a whole */
}

static void print_head( struct text_t * text, const char * name, const char * type, const char * help )
{
    print( text, "# HELP netcode_backend_%s %s\n# TYPE netcode_backend_%s %s\n", name, help, name, type );
}

static void print_number( struct text_t * text, const char * name, const char * type, const char * help, double value )
{
    print_head( text, name, type, help );
    print( text, "netcode_backend_%s %.15g\n", name, value );
}

static void print_refusals( struct text_t * text, const struct counts_t * counts )
{
    print_head( text, "refusals_total", "counter", "Requests that were refused." );
    for ( int i = 0; i < REFUSALS; i++ )
        print( text, "netcode_backend_refusals_total{reason=\"%s\"} %llu\n", refusal_infos[i].name,
               (unsigned long long) counts->refusals[i] );
}

static void print_durations( struct text_t * text, const struct counts_t * counts )
{
    static const char name[] = "netcode_backend_request_duration_seconds";
    unsigned long long sum = 0;
    print_head( text, "request_duration_seconds", "histogram", "From a request's headers to the end of its answer." );
    for ( size_t i = 0; i < DURATION_BOUNDS; i++ ) {
        sum += counts->durations[i];
        print( text, "%s_bucket{le=\"%g\"} %llu\n", name, duration_bounds[i], sum );
    }
    sum += counts->durations[DURATION_BOUNDS];
    print( text, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name, sum, name, counts->duration_sum,
           name, sum );
}

static void print_servers( struct text_t * text, const struct census_t * census )
{
    print_head( text, "servers", "gauge",
                "Servers, by what they can be used for. Those that never reported are open." );
    print( text, "netcode_backend_servers{state=\"open\"} %d\n", census->open );
    print( text, "netcode_backend_servers{state=\"full\"} %d\n", census->full );
    print( text, "netcode_backend_servers{state=\"draining\"} %d\n", census->draining );
    print( text, "netcode_backend_servers{state=\"silent\"} %d\n", census->silent );
    print_number( text, "free_slots", "gauge", "Free slots of the open servers.", census->free_slots );
}

static void print_matches( struct text_t * text, const struct app_t * app )
{
    const struct mm_t * mm = &matchmaker.mm;
    if ( !matchmaker.modes_file )
        return;
    print_head( text, "match_players_waiting", "gauge", "Players in the queue, by mode." );
    for ( int i = 0; i < mm->num_modes; i++ )
        print( text, "netcode_backend_match_players_waiting{mode=\"%s\"} %d\n", mm->modes[i].name, mm->waiting[i] );
    print_number( text, "match_active", "gauge", "1: this backend finds matches, of those that share a Redis.",
                  match_store_is_active( app ) );
    print_number( text, "matches_total", "counter", "Matches that have a server.", (double) mm->committed );
    print_number( text, "matches_given_back_total", "counter", "Times that a match found no server.",
                  (double) mm->given_back );
    print_head( text, "match_tickets_failed_total", "counter", "Tickets that ended without a match, or after it." );
    for ( int i = 1; i < MM_REASONS; i++ )
        print( text, "netcode_backend_match_tickets_failed_total{reason=\"%s\"} %llu\n", mm_reason_name( i ),
               (unsigned long long) mm->failures[i] );
}
#ifdef BACKEND_FULL
#include "operate.h"
#endif

static enum MHD_Result answer_metrics( struct request_t * request )
{
    struct census_t census;
    struct text_t text = { (char *) wiping_alloc( METRICS_BYTES ), 0 };
    struct answer_t answer = { 200, text.data, "text/plain; version=0.0.4; charset=utf-8", NULL, 0 };
    struct app_t * app = request->app;
    const struct counts_t * counts = &app->counts;
    if ( !text.data )
        return MHD_NO;
    count_servers( app, &census );
    print_number( &text, "tokens_issued_total", "counter", "Connect tokens that players got.",
                  (double) counts->tokens );
    print_refusals( &text, counts );
    print_number( &text, "reports_total", "counter", "Servers' reports that were taken.", (double) counts->reports );
    print_servers( &text, &census );
    print_number( &text, "players", "gauge", "Players in the file.", (double) app->files.num_players );
    print_head( &text, "reloads_total", "counter", "Times that the files were read again." );
    print( &text, "netcode_backend_reloads_total{result=\"good\"} %llu\n", (unsigned long long) counts->reloads_good );
    print( &text, "netcode_backend_reloads_total{result=\"failed\"} %llu\n",
           (unsigned long long) counts->reloads_failed );
    print_number( &text, "connections_cut_total", "counter", "Connections that were idle or slow for too long.",
                  (double) counts->connections_cut );
    print_matches( &text, app );
    print_durations( &text, counts );
    full_print_metrics( &text, app );
    return send_answer( request, &answer );
}

/* ---- HTTP ---- */

struct route_t {
    const char * path;
    const char * method;
    const char * allow;
    enum MHD_Result ( *answer )( struct request_t * request );
};

static const struct route_t routes[] = {
    { "/v1/connect-token", "POST", "POST", answer_connect_token },
#ifdef BACKEND_FULL
    { "/v1/login", "POST", "POST", answer_login },
    { "/v1/logout", "POST", "POST", answer_logout },
#endif
    { "/v1/servers", "POST", "POST", answer_servers },
    { "/v1/match", "POST", "POST", answer_match },
    { "/v1/match/", "GET", "GET, HEAD, DELETE", answer_match }, /* and what follows it */
    { "/v1/match/", "DELETE", "GET, HEAD, DELETE", answer_match },
    { "/healthz", "GET", "GET, HEAD", answer_health },
    { "/metrics", "GET", "GET, HEAD", answer_metrics },
};

/* A path that ends with a slash stands for all that has one thing more. */
static int is_route( const struct route_t * candidate, const char * path )
{
    size_t bytes = strlen( candidate->path );
    return !strcmp( path, candidate->path )
               ? candidate->path[bytes - 1] != '/'
               : candidate->path[bytes - 1] == '/' && !strncmp( path, candidate->path, bytes ) &&
                     is_word( path + bytes, "" );
}

static enum MHD_Result route( struct request_t * request, const char * path, const char * method )
{
    const struct route_t * other = NULL;
    for ( size_t i = 0; i < sizeof( routes ) / sizeof( routes[0] ); i++ ) {
        const struct route_t * candidate = &routes[i];
        if ( !is_route( candidate, path ) )
            continue;
        other = candidate;
        if ( strcmp( method, candidate->method ) != 0 &&
             ( strcmp( method, "HEAD" ) != 0 || strcmp( candidate->method, "GET" ) != 0 ) )
            continue;
        copy_name( request->rest, path + strlen( candidate->path ) );
        request->deletes = !strcmp( method, "DELETE" );
        return candidate->answer( request );
    }
    if ( !other )
        return refuse( request, REFUSAL_not_found, NULL );
    struct answer_t answer = { 0, NULL, NULL, other->allow, 0 };
    return refuse_with( request, REFUSAL_method_not_allowed, NULL, &answer );
}

/* What the request says that its body will have; 0 where it does not say. */
static uint64_t announced_bytes( struct MHD_Connection * connection )
{
    uint64_t bytes = 0;
    const char * text = MHD_lookup_connection_value( connection, MHD_HEADER_KIND, "Content-Length" );
    return text && parse_u64( text, 10, &bytes ) ? bytes : 0;
}

/* The headers are here: begins the request. Who announces far too much is answered at once. */
static enum MHD_Result begin_request( struct app_t * app, struct MHD_Connection * connection, void ** context )
{
    struct request_t * request = (struct request_t *) calloc( 1, sizeof( *request ) );
    if ( !request )
        return MHD_NO;
    request->app = app;
    request->connection = connection;
    request->started_at = netcode_time();
    app->requests_under_way++;
    *context = request;
    if ( announced_bytes( connection ) > MAX_DRAINED_BYTES )
        return refuse( request, REFUSAL_too_large, NULL );
    return MHD_YES;
}

/* Keeps what a body may have, and counts the rest. Without a stated length there is no end: then it is cut. */
static enum MHD_Result take_body( struct request_t * request, const char * data, size_t bytes )
{
    if ( request->bytes + bytes <= MAX_BODY_BYTES )
        memcpy( request->body + request->bytes, data, bytes );
    request->bytes += bytes;
    if ( request->bytes <= MAX_DRAINED_BYTES )
        return MHD_YES;
    request->app->counts.refusals[REFUSAL_too_large]++;
    return MHD_NO;
}

/* libmicrohttpd calls this for the headers, for each piece of the body, and for its end. */
static enum MHD_Result on_request( void * cls, struct MHD_Connection * connection, const char * path,
                                   const char * method, const char * version, const char * data, size_t * bytes,
                                   void ** context )
{
    struct request_t * request = (struct request_t *) *context;
    size_t count = *bytes;
    (void) version;
    if ( !request )
        return begin_request( (struct app_t *) cls, connection, context );
    *bytes = 0;
    if ( count )
        return take_body( request, data, count );
    /* One that was suspended goes on where it waits no more. */
    return request->full.then ? request->full.then( request ) : route( request, path, method );
}

static void count_duration( struct counts_t * counts, double seconds )
{
    size_t i = 0;
    while ( i < DURATION_BOUNDS && seconds > duration_bounds[i] )
        i++;
    counts->durations[i]++;
    counts->duration_sum += seconds;
}

static void on_completed( void * cls, struct MHD_Connection * connection, void ** context,
                          enum MHD_RequestTerminationCode code )
{
    struct app_t * app = (struct app_t *) cls;
    struct request_t * request = (struct request_t *) *context;
    const union MHD_ConnectionInfo * info = MHD_get_connection_info( connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT );
    double now = netcode_time();
    (void) code;
    if ( info && info->socket_context )
        ( (struct connection_t *) info->socket_context )->since = now;
    if ( !request )
        return;
    count_duration( &app->counts, now - request->started_at );
    app->requests_under_way--;
    full_end_request( request );
    free( request );
    *context = NULL;
}

/* ---- connections ---- */

static void open_connection( struct app_t * app, struct MHD_Connection * connection, void ** context )
{
    const union MHD_ConnectionInfo * info = MHD_get_connection_info( connection, MHD_CONNECTION_INFO_CONNECTION_FD );
    struct connection_t * entry = (struct connection_t *) calloc( 1, sizeof( *entry ) );
    if ( !info || !entry ) {
        free( entry );
        return;
    }
    entry->socket = info->connect_fd;
    entry->since = netcode_time();
    entry->next = app->connections;
    entry->link = &app->connections;
    if ( entry->next )
        entry->next->link = &entry->next;
    app->connections = entry;
    *context = entry;
}

static void on_connection( void * cls, struct MHD_Connection * connection, void ** context,
                           enum MHD_ConnectionNotificationCode code )
{
    struct connection_t * entry = (struct connection_t *) *context;
    if ( code == MHD_CONNECTION_NOTIFY_STARTED ) {
        open_connection( (struct app_t *) cls, connection, context );
    } else if ( entry ) {
        *entry->link = entry->next;
        if ( entry->next )
            entry->next->link = entry->link;
        free( entry );
        *context = NULL;
    }
}

/*  Cuts who takes longer than a request may, however busily: a byte now and then would keep libmicrohttpd's own timeout
    from coming. */
static void cut_slow_connections( struct app_t * app )
{
    double now = netcode_time();
    for ( struct connection_t * entry = app->connections; entry; entry = entry->next ) {
        if ( entry->socket >= 0 && now - entry->since > app->options.request_seconds ) {
            shutdown( entry->socket, SHUT_RDWR );
            entry->socket = -1;
            app->counts.connections_cut++;
        }
    }
}

/* ---- options ---- */

static void print_help( void )
{
    printf( "usage: backend [options]\n"
            "       backend --credential                   makes a credential: a line on standard output\n"
            "       backend --hash [CLIENT_ID NAME] < FILE makes of a credential what the players file holds\n"
            "\n"
            "Gives players connect tokens, for the servers that report to it or stand in a file. README.md beside it\n"
            "describes the rest.\n"
            "\n"
            "  --listen ADDRESS:PORT          loopback, port 0 for any (" DEFAULT_LISTEN ")\n"
            "  --allow-remote                 lets --listen be no loopback address: the proxy with TLS is elsewhere\n"
            "  --key-file FILE                the private key: 32 bytes, or the same in hex or base64. Required\n"
            "  --players FILE                 lines \"credential-hash client_id name\". Required\n"
            "  --server-credential-file FILE  the servers' credential, to report with; up to four lines. This, or\n"
            "  --servers FILE                 lines \"address:port [name [slots]]\", or both\n"
            "  --gateway URL                  https://HOST[:PORT]: what web pages play through, named with each token\n"
            "  --protocol-id N                unique to the game and its version (0x1122334455667788)\n"
            "  --expire SECONDS               in which a token must have connected, 1..86400 (30)\n"
            "  --timeout SECONDS              of silence that end a connection, 1..3600 (5)\n"
            "  --rate N                       requests per player and minute, 1..100000 (30)\n"
            "  --servers-per-token N          1..%d (3)\n"
            "  --request-seconds N            a slower request is cut, 1..600 (10)\n",
            NETCODE_MAX_SERVERS_PER_CONNECT );
    match_help();
    printf( "  --help                         this text\n"
            "\n"
            "Key and credential files are refused when others than their owner can use them. SIGHUP reads all files\n"
            "again, SIGINT and SIGTERM end it. Exit status: 0 after a clean end, 1 when it could not start, 2 for\n"
            "wrong usage.\n" );
    full_print_help();
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_value( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--listen" ) )
        options->listen = value;
    else if ( !strcmp( name, "--key-file" ) )
        options->key_file = value;
    else if ( !strcmp( name, "--players" ) )
        options->players_file = value;
    else if ( !strcmp( name, "--servers" ) )
        options->servers_file = value;
    else if ( !strcmp( name, "--server-credential-file" ) )
        options->server_credential_file = value;
    else if ( !strcmp( name, "--gateway" ) )
        return ( options->gateway = value ) && !strncmp( value, "https://", 8 ) && value[8];
    else if ( !strcmp( name, "--protocol-id" ) )
        return parse_u64( value, 0, &options->protocol_id );
    else if ( !strcmp( name, "--expire" ) )
        return parse_int( value, 1, 86400, &options->expire_seconds );
    else if ( !strcmp( name, "--timeout" ) )
        return parse_int( value, 1, 3600, &options->timeout_seconds );
    else if ( !strcmp( name, "--rate" ) )
        return parse_int( value, 1, 100000, &options->rate );
    else if ( !strcmp( name, "--servers-per-token" ) )
        return parse_int( value, 1, NETCODE_MAX_SERVERS_PER_CONNECT, &options->servers_per_token );
    else if ( !strcmp( name, "--request-seconds" ) )
        return parse_int( value, 1, 600, &options->request_seconds );
    else
        return match_option( name, value );
    return 1;
}

static int parse_options( int argc, char ** argv, struct app_t * app )
{
    struct options_t * options = &app->options;
    memset( options, 0, sizeof( *options ) );
    options->listen = DEFAULT_LISTEN;
    options->protocol_id = DEFAULT_PROTOCOL_ID;
    options->expire_seconds = 30;
    options->timeout_seconds = 5;
    options->rate = 30;
    options->servers_per_token = 3;
    options->request_seconds = 10;
    full_default_options( &app->full );
    for ( int i = 1; i < argc; i++ ) {
        if ( !strcmp( argv[i], "--allow-remote" ) )
            options->allow_remote = 1;
        else if ( i + 1 < argc && ( parse_value( argv[i], argv[i + 1], options ) ||
                                    full_parse_value( argv[i], argv[i + 1], &app->full ) ) )
            i++;
        else
            return complain( argv[i], "is no option, or its value is missing or wrong; see --help" );
    }
    if ( !options->key_file || !( options->players_file || full_has_issuer( &app->full ) ) ||
         !( options->servers_file || options->server_credential_file ) )
        return complain( "--key-file, --players, and --servers or --server-credential-file",
                         "are required; see --help" );
    return full_check_options( &app->full );
}

/* ---- credentials and their hashes ---- */

static int make_credential( void )
{
    uint8_t data[CREDENTIAL_RANDOM_BYTES];
    char text[sodium_base64_ENCODED_LEN( CREDENTIAL_RANDOM_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING )];
    netcode_random_bytes( data, CREDENTIAL_RANDOM_BYTES );
    sodium_bin2base64( text, sizeof( text ), data, sizeof( data ), sodium_base64_VARIANT_URLSAFE_NO_PADDING );
    int good = puts( text ) >= 0 && fflush( stdout ) == 0;
    sodium_memzero( data, sizeof( data ) );
    sodium_memzero( text, sizeof( text ) );
    return good ? 0 : 1;
}

/* The credential comes from standard input: a command line can be read by everyone on the machine. */
static int read_credential_hash( uint8_t hash[HASH_BYTES] )
{
    char line[MAX_LINE_BYTES];
    char * text = NULL;
    int number = 0;
    setvbuf( stdin, NULL, _IONBF, 0 );
    size_t bytes = read_line( stdin, line, &text, &number ) == 1 ? strlen( text ) : 0;
    int good = hash_credential( text, bytes, hash );
    sodium_memzero( line, sizeof( line ) );
    if ( good && bytes < MIN_CREDENTIAL_BYTES )
        return complain( "--hash", "wants a credential that can not be guessed; see --credential" );
    return good ? 1 : complain( "--hash", "wants a credential on standard input" );
}

/* Prints the hash alone, or the whole line of a player. */
static int print_hash( int argc, char ** argv )
{
    char hex[2 * HASH_BYTES + 1];
    uint8_t hash[HASH_BYTES];
    uint64_t client_id = 0;
    if ( argc != 2 && ( argc != 4 || !parse_u64( argv[2], 10, &client_id ) || !is_name( argv[3] ) ) ) {
        complain( "--hash", "takes a CLIENT_ID (decimal) and a NAME, or nothing" );
        return 2;
    }
    if ( !read_credential_hash( hash ) )
        return 1;
    sodium_bin2hex( hex, sizeof( hex ), hash, sizeof( hash ) );
    if ( argc == 4 )
        printf( "%s %llu %s\n", hex, (unsigned long long) client_id, argv[3] );
    else
        printf( "%s\n", hex );
    return fflush( stdout ) == 0 ? 0 : 1;
}

/* ---- the backend ---- */

static int is_loopback( const struct netcode_address_t * address )
{
    static const uint16_t ipv6[8] = { 0, 0, 0, 0, 0, 0, 0, 1 };
    return address->type == NETCODE_ADDRESS_IPV4 ? address->data.ipv4[0] == 127
                                                 : !memcmp( address->data.ipv6, ipv6, sizeof( ipv6 ) );
}

static const struct sockaddr * to_system( const struct netcode_address_t * address, struct sockaddr_storage * storage )
{
    memset( storage, 0, sizeof( *storage ) );
    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        struct sockaddr_in ipv4;
        memset( &ipv4, 0, sizeof( ipv4 ) );
        ipv4.sin_family = AF_INET;
        ipv4.sin_port = htons( address->port );
        memcpy( &ipv4.sin_addr, address->data.ipv4, sizeof( address->data.ipv4 ) );
        memcpy( storage, &ipv4, sizeof( ipv4 ) );
    } else {
        struct sockaddr_in6 ipv6;
        memset( &ipv6, 0, sizeof( ipv6 ) );
        ipv6.sin6_family = AF_INET6;
        ipv6.sin6_port = htons( address->port );
        for ( int i = 0; i < 8; i++ ) {
            ipv6.sin6_addr.s6_addr[2 * i] = (uint8_t) ( address->data.ipv6[i] >> 8 );
            ipv6.sin6_addr.s6_addr[2 * i + 1] = (uint8_t) address->data.ipv6[i];
        }
        memcpy( storage, &ipv6, sizeof( ipv6 ) );
    }
    return (const struct sockaddr *) storage;
}

static int start_daemon( struct app_t * app )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_address_t address;
    struct sockaddr_storage storage;
    if ( netcode_parse_address( app->options.listen, &address ) != NETCODE_OK )
        return complain( app->options.listen,
                         "is no address in numbers, like 127.0.0.1:8080; host names are not resolved" );
    if ( !is_loopback( &address ) && !app->options.allow_remote )
        return complain( app->options.listen, "is refused, because credentials and tokens would travel in the clear: "
                                              "listen on loopback, behind a proxy with TLS" );
    unsigned int flags =
        FULL_DAEMON_FLAGS | ( address.type == NETCODE_ADDRESS_IPV6 ? (unsigned int) MHD_USE_IPv6 : 0u );
    app->daemon =
        MHD_start_daemon( flags, 0, NULL, NULL, on_request, app, MHD_OPTION_SOCK_ADDR, to_system( &address, &storage ),
                          MHD_OPTION_CONNECTION_LIMIT, (unsigned int) MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                          (unsigned int) app->options.request_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t) CONNECTION_MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                          MHD_OPTION_NOTIFY_COMPLETED, on_completed, app, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                          app, MHD_OPTION_END );
    const union MHD_DaemonInfo * info =
        app->daemon ? MHD_get_daemon_info( app->daemon, MHD_DAEMON_INFO_BIND_PORT ) : NULL;
    if ( !info )
        return complain( app->options.listen, strerror( errno ) );
    if ( !full_use_daemon( &app->full, app->daemon ) )
        return complain( "libmicrohttpd", "has no epoll here" );
    address.port = info->port;
    printf( "listening on %s\n", netcode_address_to_string( &address, text ) );
    fflush( stdout );
    return 1;
}

/* Takes no new connections, and gives the requests in progress a moment to be answered. */
static void stop_daemon( struct app_t * app )
{
    double until = netcode_time() + LAST_ANSWERS_SECONDS;
    MHD_socket listener = MHD_quiesce_daemon( app->daemon );
    while ( app->requests_under_way && netcode_time() < until )
        full_turn( &app->full, app->daemon, 50 );
    full_give_up_all( &app->full, app->daemon );
    MHD_stop_daemon( app->daemon );
    if ( listener != MHD_INVALID_SOCKET )
        close( listener );
}

static void reload( struct app_t * app )
{
    struct files_t files;
    if ( !read_files( &app->options, &files ) ) {
        app->counts.reloads_failed++;
        say( app, "error: the files could not be read again; what was read before stays" );
        return;
    }
    keep_players( &app->files, &files );
    free_files( &app->files );
    app->files = files;
    sodium_memzero( &files, sizeof( files ) );
    full_reload( app );
    app->counts.reloads_good++;
    say_files( app, "read again" );
    for ( int i = 0; i < MAX_SERVERS; i++ ) {
        if ( app->servers[i].name[0] )
            unlist( &app->files, &app->servers[i] );
    }
}

static void run( struct app_t * app )
{
    while ( !signal_stop ) {
        /* Short, for a signal that comes just before it. */
        full_turn( &app->full, app->daemon, match_update( app ) );
        servers_store_update( app, netcode_time() );
        cut_slow_connections( app );
        if ( signal_reload ) {
            signal_reload = 0;
            reload( app );
        }
    }
    match_store_stop( app );
    stop_daemon( app );
    say( app, "ends: %llu tokens issued, %llu reports taken", (unsigned long long) app->counts.tokens,
         (unsigned long long) app->counts.reports );
}

static int run_backend( struct app_t * app )
{
    if ( !read_files( &app->options, &app->files ) )
        return 1;
    int good = full_open( app ) && match_start( app ) && start_daemon( app );
    if ( good ) {
        say_files( app, "read" );
        run( app );
    }
    match_stop();
    full_close( app );
    free_files( &app->files );
    return good ? 0 : 1;
}

/* The exit status. */
static int run_command_line( struct app_t * app, int argc, char ** argv )
{
    int status = full_command( app, argc, argv );
    if ( status >= 0 )
        return status;
    if ( argc == 2 && !strcmp( argv[1], "--credential" ) )
        return make_credential();
    if ( argc > 1 && !strcmp( argv[1], "--hash" ) )
        return print_hash( argc, argv );
    if ( !parse_options( argc, argv, app ) )
        return 2;
    install_signals();
    use_wiping_memory();
    return run_backend( app );
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    if ( netcode_init() != NETCODE_OK ) {
        complain( "netcode_init", "failed" );
        return 1;
    }
    app.start_time = netcode_time();
    int status = run_command_line( &app, argc, argv );
    netcode_term();
    return status;
}
