/*  The driver of the conformance kit for netcode.h: it carries out the lines that README.md lists, and writes what happens. POSIX.

        cc tests/conform/driver.c -I. -lsodium -lm -o conform-driver
        python3 tests/conform/conform.py --peer ./conform-driver */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_LINE_BYTES 8192 /* a token in hex has 4096 */
#define DRIVER_WORDS 9
#define DRIVER_TICK_MILLISECONDS 5

static struct netcode_server_t * server;
static struct netcode_client_t * client;

/* ---- hex ---- */

static void print_hex( const uint8_t * data, int bytes )
{
    for ( int i = 0; i < bytes; i++ )
        printf( "%02x", data[i] );
    putchar( '\n' );
}

static int hex_digit( char c )
{
    const char * digits = "0123456789abcdef";
    const char * found = c ? strchr( digits, c ) : NULL;
    return found ? (int) ( found - digits ) : -1;
}

/* Returns how many bytes `text` is, -1 if it is no hex or has more than `capacity`. */
static int read_hex( const char * text, uint8_t * data, int capacity )
{
    int bytes = 0;
    for ( ; *text; text += 2 ) {
        int high = hex_digit( text[0] ), low = high < 0 ? -1 : hex_digit( text[1] );
        if ( low < 0 || bytes == capacity )
            return -1;
        data[bytes++] = (uint8_t) ( high * 16 + low );
    }
    return bytes;
}

static int number( const char * text )
{
    return (int) strtol( text, NULL, 10 );
}

/* ---- what happens ---- */

static void on_state( void * context, int previous, int state )
{
    (void) context;
    (void) previous;
    if ( state == NETCODE_CLIENT_STATE_CONNECTED )
        printf( "state 3 %d %d\n", netcode_client_index( client ), netcode_client_max_clients( client ) );
    else
        printf( "state %d\n", state );
}

static void print_payload( int client_index, const uint8_t * data, int bytes )
{
    printf( "payload %d ", client_index );
    print_hex( data, bytes );
}

static void print_server_payloads( int client_index )
{
    int bytes = 0;
    uint8_t * data;
    while ( ( data = netcode_server_receive_packet( server, client_index, &bytes, NULL ) ) != NULL ) {
        print_payload( client_index, data, bytes );
        netcode_server_free_packet( server, data );
    }
}

/* In the callback the slot can be read even if it is emptied in the same update. */
static void on_slot( void * context, int client_index, int connected )
{
    (void) context;
    if ( connected ) {
        printf( "connected %d %llu ", client_index,
                (unsigned long long) netcode_server_client_id( server, client_index ) );
        print_hex( (const uint8_t *) netcode_server_client_user_data( server, client_index ), NETCODE_USER_DATA_BYTES );
        return;
    }
    print_server_payloads( client_index );
    printf( "disconnected %d\n", client_index );
}

static void update( void )
{
    double now = netcode_time();
    if ( client ) {
        int bytes = 0;
        uint8_t * data;
        netcode_client_update( client, now );
        while ( ( data = netcode_client_receive_packet( client, &bytes, NULL ) ) != NULL ) {
            print_payload( 0, data, bytes );
            netcode_client_free_packet( client, data );
        }
    }
    if ( server ) {
        netcode_server_update( server, now );
        for ( int i = 0; i < netcode_server_max_clients( server ); i++ )
            print_server_payloads( i );
    }
}

/* ---- the lines that it is given: each returns what is wrong, or NULL ---- */

static const char * run_server( char ** words )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.protocol_id = strtoull( words[2], NULL, 10 );
    config.connect_disconnect_callback = on_slot;
    if ( read_hex( words[3], config.private_key, NETCODE_KEY_BYTES ) != NETCODE_KEY_BYTES )
        return "no key of 32 bytes";
    server = netcode_server_create( words[1], &config, netcode_time() );
    if ( !server )
        return netcode_server_create_error_text( netcode_server_create_error() );
    netcode_server_start( server, number( words[4] ) );
    printf( "listening\n" );
    return NULL;
}

static const char * run_connect( const char * hex )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    if ( !client || read_hex( hex, token, (int) sizeof( token ) ) != (int) sizeof( token ) )
        return "no token of 2048 bytes, or no client";
    netcode_client_connect( client, token );
    return NULL;
}

static const char * run_client( char ** words )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    config.state_change_callback = on_state;
    config.next_server_seconds = 0.0; /* the next server in turn, as the standard says */
    client = netcode_client_create( words[1], &config, netcode_time() );
    return client ? run_connect( words[2] ) : netcode_client_create_error_text( netcode_client_create_error() );
}

static const char * run_generate( char ** words )
{
    uint8_t key[NETCODE_KEY_BYTES], user_data[NETCODE_USER_DATA_BYTES], token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * addresses[NETCODE_MAX_SERVERS_PER_CONNECT];
    int count = 0;
    for ( char * next = strtok( words[7], "," ); next && count < NETCODE_MAX_SERVERS_PER_CONNECT;
          next = strtok( NULL, "," ) )
        addresses[count++] = next;
    if ( read_hex( words[2], key, (int) sizeof( key ) ) != (int) sizeof( key ) ||
         read_hex( words[6], user_data, (int) sizeof( user_data ) ) != (int) sizeof( user_data ) )
        return "no key or user data";
    if ( netcode_generate_connect_token( count, addresses, addresses, number( words[4] ), number( words[5] ),
                                         strtoull( words[3], NULL, 10 ), strtoull( words[1], NULL, 10 ), key, user_data,
                                         token ) != NETCODE_OK )
        return "the token was refused";
    printf( "token " );
    print_hex( token, (int) sizeof( token ) );
    return NULL;
}

/* Two bytes more than a payload may have: the library is to refuse what is too long. */
static const char * run_send( char ** words )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE + 2] = { 0 };
    int bytes = read_hex( words[2], data, (int) sizeof( data ) );
    if ( bytes < 0 )
        return "no payload";
    if ( client )
        netcode_client_send_packet( client, data, bytes );
    if ( server )
        netcode_server_send_packet( server, number( words[1] ), data, bytes );
    return NULL;
}

static const char * run_disconnect( char ** words )
{
    if ( client )
        netcode_client_disconnect( client );
    if ( server )
        netcode_server_disconnect_client( server, number( words[1] ) );
    return NULL;
}

static int run_line( char * line )
{
    char * words[DRIVER_WORDS] = { NULL };
    const char * error = "unknown line, or too few words";
    int count = 0;
    for ( char * next = strtok( line, " \r" ); next && count < DRIVER_WORDS; next = strtok( NULL, " \r" ) )
        words[count++] = next;
    if ( count == 0 )
        return 1;
    if ( !strcmp( words[0], "stop" ) )
        return 0;
    if ( !strcmp( words[0], "server" ) && count == 5 && !server )
        error = run_server( words );
    else if ( !strcmp( words[0], "client" ) && count == 3 && !client )
        error = run_client( words );
    else if ( !strcmp( words[0], "connect" ) && count == 2 )
        error = run_connect( words[1] );
    else if ( !strcmp( words[0], "generate" ) && count == 8 )
        error = run_generate( words );
    else if ( !strcmp( words[0], "send" ) && count == 3 )
        error = run_send( words );
    else if ( !strcmp( words[0], "disconnect" ) && count == 2 )
        error = run_disconnect( words );
    if ( error )
        printf( "error %s\n", error );
    return 1;
}

/* Waits for input for one tick, and carries out whole lines. Returns 0 on `stop` and at the end of the input. */
static int read_input( void )
{
    static char input[2 * DRIVER_LINE_BYTES];
    static size_t filled;
    struct pollfd descriptor = { STDIN_FILENO, POLLIN, 0 };
    if ( poll( &descriptor, 1, DRIVER_TICK_MILLISECONDS ) <= 0 )
        return 1;
    ssize_t bytes = read( STDIN_FILENO, input + filled, sizeof( input ) - filled );
    if ( bytes <= 0 )
        return 0;
    filled += (size_t) bytes;
    for ( ;; ) {
        char * end = (char *) memchr( input, '\n', filled );
        if ( !end )
            return filled < sizeof( input ); /* a line that never ends is no line */
        *end++ = '\0';
        if ( !run_line( input ) )
            return 0;
        filled -= (size_t) ( end - input );
        memmove( input, end, filled );
    }
}

int main( void )
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE ); /* standard output is for the kit's lines */
    do {
        update();
        fflush( stdout );
    } while ( read_input() );
    if ( client )
        netcode_client_destroy( client );
    if ( server )
        netcode_server_destroy( server );
    fflush( stdout );
    netcode_term();
    return 0;
}
