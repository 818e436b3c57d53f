/*  Many clients in one process, for tests/all/admission.py: it reports which player joins which server by which token,
    or starts a storm, in which players connect, leave, vanish and move between servers at random. Tokens are minted
    here, so this has the private key. The time in front of each line is the monotonic clock, which Python reads too.

        players KEY_FILE_IN_HEX
        server PORT                       the next server, numbered from 0
        mint TOKEN PLAYER PORT...         a token for these servers, kept under a name
        join CLIENT TOKEN [PORT]          a client, kept under a name; with PORT it sees only that one of the token's servers
        leave CLIENT | vanish CLIENT      with a word to the server, or without
        storm CONNECTS PLAYERS SEED       until so many connects
        down N | up N                     the storm's players avoid a server, as a backend would send them
        quit

    Lines: stall SECONDS, when this program had to wait for the machine; in CLIENT PLAYER PORT; out CLIENT PLAYER STATE; and of the storm: try, in, fail, out PLAYER SERVER; done. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SERVERS 8
#define MAX_NAMED 1024
#define MAX_PLAYERS 256
#define MAX_GONE 1024
#define PROTOCOL_ID 0x1122334455667788u
#define TOKEN_SECONDS 30
#define TIMEOUT_SECONDS 3 /* a client that vanished, or a server that is gone */
#define TRY_SECONDS 8.0   /* beyond it a client gives up by itself */
#define PUBLIC_PART ( 13 + 8 + 8 + 8 + 24 + 1024 )
#define FIRST_PLAYER 1000

struct named_token_t {
    char name[64];
    uint64_t player;
    uint8_t data[NETCODE_CONNECT_TOKEN_BYTES];
};

struct named_client_t {
    char name[64];
    uint64_t player;
    struct netcode_client_t * client;
    int port;
    int state;
};

/* A client of a storm's player: the present one, and the older one of a player that moved. */
struct session_t {
    struct netcode_client_t * client;
    int server;
    int is_in;
    double since;
    double until;
};

struct player_t {
    struct session_t now;
    struct session_t older;
    double next;
};

struct gone_t {
    struct netcode_client_t * client;
    double time;
};

static uint8_t key[NETCODE_KEY_BYTES];
static int ports[MAX_SERVERS];
static int is_down[MAX_SERVERS];
static int num_servers;
static struct named_token_t tokens[MAX_NAMED];
static int num_tokens;
static struct named_client_t clients[MAX_NAMED];
static int num_clients;
static struct player_t players[MAX_PLAYERS];
static int num_players;
static int connects;
static int connects_wanted;
static struct gone_t gone[MAX_GONE];
static int num_gone;
static double now;
static int is_over;

static double random_between( double low, double high )
{
    return low + ( high - low ) * (double) rand() / (double) RAND_MAX;
}

static void mint( uint64_t player, const int * where, int count, uint8_t * token )
{
    char texts[MAX_SERVERS][32];
    const char * names[MAX_SERVERS];
    uint8_t user_data[NETCODE_USER_DATA_BYTES] = { 0 };
    for ( int i = 0; i < count; i++ ) {
        snprintf( texts[i], sizeof( texts[i] ), "127.0.0.1:%d", where[i] );
        names[i] = texts[i];
    }
    if ( netcode_generate_connect_token( count, names, names, TOKEN_SECONDS, TIMEOUT_SECONDS, player, PROTOCOL_ID, key,
                                         user_data, token ) != NETCODE_OK )
        exit( 2 );
}

/* The client sees one server; the sealed part, and so the tag, stays the same. */
static void narrow( uint8_t * token, int port )
{
    uint8_t * at = token + PUBLIC_PART + 4;
    int count = at[0];
    uint8_t keys[2 * NETCODE_KEY_BYTES];
    uint8_t * entries = at + 4;
    memcpy( keys, entries + 7 * count, sizeof( keys ) );
    for ( int i = 0; i < count; i++ ) {
        if ( entries[7 * i + 5] + 256 * entries[7 * i + 6] == port )
            memmove( entries, entries + 7 * i, 7 );
    }
    at[0] = 1;
    memcpy( entries + 7, keys, sizeof( keys ) );
    memset( entries + 7 + sizeof( keys ), 0, (size_t) ( 7 * ( count - 1 ) ) );
}

static struct netcode_client_t * start( const uint8_t * token )
{
    struct netcode_client_config_t config;
    uint8_t copy[NETCODE_CONNECT_TOKEN_BYTES];
    netcode_default_client_config( &config );
    memcpy( copy, token, sizeof( copy ) );
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:0", &config, now );
    if ( !client ) {
        fprintf( stderr, "players: no client: %d\n", netcode_client_create_error() );
        exit( 2 );
    }
    netcode_client_connect( client, copy );
    return client;
}

/* It says nothing more, and is taken away when no server knows it any longer. */
static void vanish( struct netcode_client_t * client )
{
    if ( num_gone == MAX_GONE )
        exit( 2 );
    gone[num_gone].client = client;
    gone[num_gone++].time = now;
}

static void bury( double age )
{
    int kept = 0;
    for ( int i = 0; i < num_gone; i++ ) {
        if ( now - gone[i].time >= age )
            netcode_client_destroy( gone[i].client );
        else
            gone[kept++] = gone[i];
    }
    num_gone = kept;
}

/* ---- clients by name ---- */

static struct named_client_t * find_client( const char * name )
{
    for ( int i = 0; i < num_clients; i++ ) {
        if ( !strcmp( clients[i].name, name ) )
            return &clients[i];
    }
    return NULL;
}

static void command_mint( const char * name, uint64_t player, char * rest )
{
    int where[MAX_SERVERS], count = 0;
    for ( char * word = strtok( rest, " " ); word && count < MAX_SERVERS; word = strtok( NULL, " " ) )
        where[count++] = atoi( word );
    struct named_token_t * token = &tokens[num_tokens++ % MAX_NAMED];
    snprintf( token->name, sizeof( token->name ), "%s", name );
    token->player = player;
    mint( player, where, count, token->data );
}

static void command_join( const char * name, const char * token_name, int port )
{
    uint8_t data[NETCODE_CONNECT_TOKEN_BYTES];
    const struct named_token_t * token = NULL;
    struct named_client_t * client = find_client( name );
    for ( int i = 0; i < MAX_NAMED; i++ ) {
        if ( !strcmp( tokens[i].name, token_name ) )
            token = &tokens[i];
    }
    if ( !token || ( !client && num_clients == MAX_NAMED ) )
        exit( 2 );
    if ( !client )
        client = &clients[num_clients++];
    if ( client->client )
        vanish( client->client );
    memset( client, 0, sizeof( *client ) );
    snprintf( client->name, sizeof( client->name ), "%s", name );
    memcpy( data, token->data, sizeof( data ) );
    if ( port )
        narrow( data, port );
    client->player = token->player;
    client->client = start( data );
}

static void command_end( const char * name, int with_a_word )
{
    struct named_client_t * client = find_client( name );
    if ( !client || !client->client )
        return;
    if ( with_a_word ) {
        netcode_client_disconnect( client->client );
        netcode_client_destroy( client->client );
    } else {
        vanish( client->client );
    }
    client->client = NULL;
}

static void update_named( void )
{
    for ( int i = 0; i < num_clients; i++ ) {
        struct named_client_t * client = &clients[i];
        if ( !client->client )
            continue;
        netcode_client_update( client->client, now );
        int state = netcode_client_state( client->client );
        if ( state == client->state )
            continue;
        client->state = state;
        if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
            const struct netcode_address_t * server = netcode_client_server_address( client->client );
            client->port = server ? server->port : 0;
            printf( "%.6f in %s %llu %d\n", now, client->name, (unsigned long long) client->player, client->port );
        } else if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED ) {
            printf( "%.6f out %s %llu %d\n", now, client->name, (unsigned long long) client->player, state );
            netcode_client_destroy( client->client );
            client->client = NULL;
        }
    }
}

/* ---- the storm ---- */

static int choose_server( int other_than )
{
    int up = 0;
    for ( int i = 0; i < num_servers; i++ )
        up += !is_down[i];
    for ( ;; ) {
        int server = rand() % num_servers;
        if ( !up || ( !is_down[server] && ( server != other_than || up == 1 ) ) )
            return server;
    }
}

static void try_server( int index, int server )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct session_t * session = &players[index].now;
    mint( FIRST_PLAYER + (uint64_t) index, &ports[server], 1, token );
    memset( session, 0, sizeof( *session ) );
    session->client = start( token );
    session->server = server;
    session->since = now;
    printf( "%.6f try %d %d\n", now, FIRST_PLAYER + index, server );
}

static void end_session( struct session_t * session, int with_a_word )
{
    if ( !session->client )
        return;
    if ( with_a_word ) {
        netcode_client_disconnect( session->client );
        netcode_client_destroy( session->client );
    } else {
        vanish( session->client );
    }
    session->client = NULL;
}

static void act( int index )
{
    struct player_t * player = &players[index];
    int what = rand() % 100;
    if ( what < 10 && !player->older.client ) { /* the newer session is to win */
        player->older = player->now;
        player->older.until = now + 6.0;
        try_server( index, choose_server( player->older.server ) );
        return;
    }
    end_session( &player->now, what < 85 );
    printf( "%.6f out %d %d\n", now, FIRST_PLAYER + index, player->now.server );
    player->next = now + random_between( 0.0, 0.1 );
}

static void update_older( struct player_t * player )
{
    struct session_t * session = &player->older;
    if ( !session->client )
        return;
    netcode_client_update( session->client, now );
    if ( now >= session->until || netcode_client_state( session->client ) <= NETCODE_CLIENT_STATE_DISCONNECTED ) {
        netcode_client_destroy( session->client );
        session->client = NULL;
    }
}

static void update_player( int index )
{
    struct player_t * player = &players[index];
    struct session_t * session = &player->now;
    update_older( player );
    if ( !session->client ) {
        if ( now >= player->next && connects < connects_wanted )
            try_server( index, choose_server( session->server ) );
        return;
    }
    netcode_client_update( session->client, now );
    int state = netcode_client_state( session->client );
    if ( state == NETCODE_CLIENT_STATE_CONNECTED && !session->is_in ) {
        session->is_in = 1;
        session->until = now + random_between( 0.05, 0.45 );
        connects++;
        printf( "%.6f in %d %d\n", now, FIRST_PLAYER + index, session->server );
    } else if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED ||
                ( !session->is_in && now - session->since > TRY_SECONDS ) ) {
        printf( "%.6f %s %d %d %d\n", now, session->is_in ? "out" : "fail", FIRST_PLAYER + index, session->server,
                state );
        netcode_client_destroy( session->client );
        session->client = NULL;
        player->next = now + random_between( 0.0, 0.1 );
    } else if ( session->is_in && now >= session->until ) {
        act( index );
    }
}

static void update_storm( void )
{
    static int reported;
    for ( int i = 0; i < num_players; i++ )
        update_player( i );
    if ( num_players && connects >= connects_wanted && !reported ) {
        reported = 1;
        printf( "%.6f done %d\n", now, connects );
    }
}

/* ---- commands ---- */

static void obey( char * line )
{
    char a[64] = "", b[64] = "", c[64] = "";
    int rest = 0;
    int count = sscanf( line, "%*s %63s %63s %n%63s", a, b, &rest, c );
    if ( !strncmp( line, "server ", 7 ) && num_servers < MAX_SERVERS )
        ports[num_servers++] = atoi( a );
    else if ( !strncmp( line, "mint ", 5 ) && count == 3 )
        command_mint( a, strtoull( b, NULL, 10 ), line + rest );
    else if ( !strncmp( line, "join ", 5 ) )
        command_join( a, b, atoi( c ) );
    else if ( !strncmp( line, "leave ", 6 ) || !strncmp( line, "vanish ", 7 ) )
        command_end( a, line[0] == 'l' );
    else if ( !strncmp( line, "storm ", 6 ) && atoi( b ) <= MAX_PLAYERS ) {
        connects_wanted = atoi( a );
        num_players = atoi( b );
        srand( (unsigned) atoi( c ) );
    } else if ( !strncmp( line, "down ", 5 ) || !strncmp( line, "up ", 3 ) )
        is_down[atoi( a )] = line[0] == 'd';
    else if ( !strncmp( line, "quit", 4 ) )
        is_over = 1;
    else {
        fprintf( stderr, "players: what is \"%s\"?\n", line );
        exit( 2 );
    }
}

static void read_commands( void )
{
    static char text[65536];
    static size_t bytes;
    ssize_t got = read( STDIN_FILENO, text + bytes, sizeof( text ) - 1 - bytes );
    if ( got == 0 )
        is_over = 1;
    if ( got <= 0 )
        return;
    bytes += (size_t) got;
    text[bytes] = '\0';
    char * line = text;
    for ( char * end = strchr( line, '\n' ); end; end = strchr( line, '\n' ) ) {
        *end = '\0';
        obey( line );
        line = end + 1;
    }
    bytes -= (size_t) ( line - text );
    memmove( text, line, bytes );
}

int main( int argc, char ** argv )
{
    if ( argc != 2 || netcode_init() != NETCODE_OK ||
         sodium_hex2bin( key, sizeof( key ), argv[1], strlen( argv[1] ), NULL, NULL, NULL ) != 0 )
        return 2;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    fcntl( STDIN_FILENO, F_SETFL, O_NONBLOCK );
    while ( !is_over ) {
        double then = now;
        now = netcode_time();
        if ( then > 0.0 && now - then > 0.5 )
            printf( "%.6f stall %.3f\n", now, now - then ); /* the machine had other things to do */
        read_commands();
        update_named();
        update_storm();
        bury( 6.0 );
        fflush( stdout );
        netcode_sleep( 0.008 );
    }
    for ( int i = 0; i < num_players; i++ ) {
        end_session( &players[i].now, 1 );
        end_session( &players[i].older, 1 );
    }
    for ( int i = 0; i < num_clients; i++ )
        command_end( clients[i].name, 1 );
    bury( -1.0 );
    netcode_term();
    return 0;
}
