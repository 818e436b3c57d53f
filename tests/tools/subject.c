/*  subject: the library as a line-driven program, so that peers written in another language can drive it. POSIX.

        cc tests/tools/subject.c -I. -lsodium -o subject

        subject server ADDRESS SLOTS PROTOCOL_ID KEYHEX [--replace] [--zero-base] [--echo] [--seconds N]
                       [--address2 ADDRESS] [--public ADDRESS]...
        subject client BIND_ADDRESS [--bind2 ADDRESS] [--zero-base] [--seconds N]
        subject mint KEYHEX PROTOCOL_ID CLIENT_ID EXPIRE_SECONDS TIMEOUT_SECONDS USERDATAHEX ADDRESS...

    Server and client update every 5 ms of real time. They end when standard input ends, on `quit`, or after
    --seconds (60). Each happening is one line on standard output, flushed at once. What can not be started says so on
    standard error, and ends with 1.

    The server writes                                          and reads
        listening ADDRESS:PORT (once more for --address2)          send INDEX HEX
        connected INDEX CLIENT_ID SESSION USERDATAHEX ADDRESS      kick INDEX
        payload INDEX SEQUENCE HEX                                 stop
        disconnected INDEX CLIENT_ID REASON                        start SLOTS
        drop REASON_NAME ADDRESS BYTES                             keys HEX[,HEX...]
        stats NAME=VALUE ...                                       stats, quit
    The client writes                                          and reads
        ready PORT                                                 connect HEX (a whole token)
        state NAME                                                 send HEX
        connected INDEX MAX_CLIENTS                                disconnect
        payload SEQUENCE HEX                                       report
        drop REASON_NAME ADDRESS BYTES                             stats
        report TEXT, stats NAME=VALUE ...                          quit
    Both answer `error TEXT` to a command that they do not know or can not carry out.

    mint prints the connect token (2048 bytes) as one line of hex. USERDATAHEX may be short or `-`: the rest is zero. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBJECT_TICK_MILLISECONDS 5
#define SUBJECT_DEFAULT_SECONDS 60.0
#define SUBJECT_LINE_BYTES 8192 /* a token in hex has 4096 */
#define SUBJECT_MAX_PUBLIC 8

struct subject_options_t {
    int replace;
    int zero_base;
    int echo;
    double seconds;
    const char * second_address; /* --address2 or --bind2 */
    const char * public_addresses[SUBJECT_MAX_PUBLIC];
    int num_public_addresses;
};

/* Exactly one of server and client is there: it decides which commands are known. */
struct subject_t {
    struct netcode_server_t * server;
    struct netcode_client_t * client;
    int echo;
    int quit;
    char input[SUBJECT_LINE_BYTES];
    size_t input_bytes;
    int input_overflow; /* the line that is being read is too long: it is skipped as a whole */
};

static void say( const char * format, ... )
{
    va_list arguments;
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    putchar( '\n' );
    fflush( stdout );
}

static void print_hex( const uint8_t * data, size_t bytes )
{
    static const char digits[] = "0123456789abcdef";
    for ( size_t i = 0; i < bytes; i++ ) {
        putchar( digits[data[i] >> 4] );
        putchar( digits[data[i] & 15] );
    }
}

static int hex_digit( char c )
{
    if ( c >= '0' && c <= '9' )
        return c - '0';
    if ( c >= 'a' && c <= 'f' )
        return c - 'a' + 10;
    if ( c >= 'A' && c <= 'F' )
        return c - 'A' + 10;
    return -1;
}

/* Reads hex up to a comma or the end, and returns how many bytes that were; -1 when it is no hex or does not fit. */
static int parse_hex( const char * text, uint8_t * data, int capacity )
{
    int bytes = 0;
    while ( *text != '\0' && *text != ',' ) {
        int high = hex_digit( text[0] );
        int low = high < 0 ? -1 : hex_digit( text[1] );
        if ( low < 0 || bytes == capacity )
            return -1;
        data[bytes++] = (uint8_t) ( high * 16 + low );
        text += 2;
    }
    return bytes;
}

static int parse_int( const char * text, int minimum, int maximum, int * value )
{
    char * end = NULL;
    errno = 0;
    long number = strtol( text, &end, 10 );
    if ( end == text || *end != '\0' || errno || number < minimum || number > maximum )
        return 0;
    *value = (int) number;
    return 1;
}

static int parse_u64( const char * text, uint64_t * value )
{
    char * end = NULL;
    errno = 0;
    unsigned long long number = strtoull( text, &end, 0 );
    if ( end == text || *end != '\0' || errno || text[0] == '-' )
        return 0;
    *value = (uint64_t) number;
    return 1;
}

static int fail( const char * what )
{
    fprintf( stderr, "subject: %s\n", what );
    return 1;
}

/* ---- what the library reports ---- */

static void on_log( void * context, int level, const char * text )
{
    (void) context;
    fprintf( stderr, "log %d %s\n", level, text );
}

static void on_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    (void) context;
    say( "drop %s %s %d", netcode_drop_reason_name( reason ), netcode_address_to_string( from, text ), bytes );
}

static void on_client_state( void * context, int previous, int state )
{
    struct subject_t * subject = (struct subject_t *) context;
    (void) previous;
    say( "state %s", netcode_client_state_name( state ) );
    if ( state == NETCODE_CLIENT_STATE_CONNECTED )
        say( "connected %d %d", netcode_client_index( subject->client ),
             netcode_client_max_clients( subject->client ) );
}

static void print_server_payloads( struct subject_t * subject, int client_index )
{
    for ( ;; ) {
        int bytes = 0;
        uint64_t sequence = 0;
        uint8_t * data = netcode_server_receive_packet( subject->server, client_index, &bytes, &sequence );
        if ( !data )
            return;
        printf( "payload %d %llu ", client_index, (unsigned long long) sequence );
        print_hex( data, (size_t) bytes );
        say( "" );
        if ( subject->echo )
            netcode_server_send_packet( subject->server, client_index, data, bytes );
        netcode_server_free_packet( subject->server, data );
    }
}

/* Comes from the callback, where the slot can still be read even if it is emptied in the same update. */
static void on_server_slot( void * context, int client_index, int connected )
{
    struct subject_t * subject = (struct subject_t *) context;
    struct netcode_server_t * server = subject->server;
    unsigned long long client_id = (unsigned long long) netcode_server_client_id( server, client_index );
    if ( !connected ) {
        print_server_payloads( subject, client_index );
        say( "disconnected %d %llu %d", client_index, client_id,
             netcode_server_client_disconnect_reason( server, client_index ) );
        return;
    }
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    printf( "connected %d %llu %llu ", client_index, client_id,
            (unsigned long long) netcode_server_client_session( server, client_index ) );
    print_hex( (const uint8_t *) netcode_server_client_user_data( server, client_index ), NETCODE_USER_DATA_BYTES );
    say( " %s", netcode_address_to_string( netcode_server_client_address( server, client_index ), text ) );
}

static void print_client_payloads( struct netcode_client_t * client )
{
    for ( ;; ) {
        int bytes = 0;
        uint64_t sequence = 0;
        uint8_t * data = netcode_client_receive_packet( client, &bytes, &sequence );
        if ( !data )
            return;
        printf( "payload %llu ", (unsigned long long) sequence );
        print_hex( data, (size_t) bytes );
        say( "" );
        netcode_client_free_packet( client, data );
    }
}

/* ---- stats ---- */

static void print_packets( const char * name, const uint64_t counts[NETCODE_PACKET_TYPES] )
{
#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: this table needs it"
#endif
    static const char * const types[NETCODE_PACKET_TYPES] = { "request",    "denied",  "challenge", "response",
                                                              "keep_alive", "payload", "disconnect" };
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        printf( " %s_%s=%llu", name, types[i], (unsigned long long) counts[i] );
}

/* Of the drops only those that happened, so that the line stays readable. */
static void print_drops( const uint64_t counts[NETCODE_DROP_REASONS] )
{
    for ( int i = 0; i < (int) NETCODE_DROP_REASONS; i++ ) {
        if ( counts[i] )
            printf( " drop_%s=%llu", netcode_drop_reason_name( i ), (unsigned long long) counts[i] );
    }
}

static void print_traffic( uint64_t datagrams_received, uint64_t bytes_received, uint64_t bytes_sent,
                           uint64_t send_errors, uint64_t receive_errors )
{
    printf( " datagrams_received=%llu bytes_received=%llu bytes_sent=%llu send_errors=%llu receive_errors=%llu",
            (unsigned long long) datagrams_received, (unsigned long long) bytes_received,
            (unsigned long long) bytes_sent, (unsigned long long) send_errors, (unsigned long long) receive_errors );
}

static void print_server_stats( struct netcode_server_t * server )
{
    struct netcode_server_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_server_stats( server, &stats );
    printf( "stats clients=%d pending=%d consumed=%d connects=%llu slots=%d running=%d", stats.clients, stats.pending,
            stats.consumed, (unsigned long long) stats.connects, stats.max_clients, netcode_server_running( server ) );
    for ( int i = 1; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        printf( " disconnects_%d=%llu", i, (unsigned long long) stats.disconnects[i] );
    printf( " handshakes=%llu handshakes_expired=%llu handshakes_evicted=%llu backlogs=%llu",
            (unsigned long long) stats.handshakes, (unsigned long long) stats.handshakes_expired,
            (unsigned long long) stats.handshakes_evicted, (unsigned long long) stats.backlogs );
    print_traffic( stats.datagrams_received, stats.bytes_received, stats.bytes_sent, stats.send_errors,
                   stats.receive_errors );
    print_packets( "sent", stats.packets_sent );
    print_packets( "received", stats.packets_received );
    print_drops( stats.dropped );
    say( "" );
}

static void print_client_stats( struct netcode_client_t * client )
{
    struct netcode_client_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_client_stats( client, &stats );
    printf( "stats state=%d connects=%llu disconnects=%llu", netcode_client_state( client ),
            (unsigned long long) stats.connects, (unsigned long long) stats.disconnects );
    print_traffic( stats.datagrams_received, stats.bytes_received, stats.bytes_sent, stats.send_errors,
                   stats.receive_errors );
    print_packets( "sent", stats.packets_sent );
    print_packets( "received", stats.packets_received );
    print_drops( stats.dropped );
    say( "" );
}

/* ---- commands: each returns NULL, or what is wrong ---- */

static const char * server_send( struct subject_t * subject, const char * argument )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE] = { 0 };
    char * end = NULL;
    long client_index = strtol( argument, &end, 10 );
    if ( end == argument || *end != ' ' || client_index < 0 ||
         client_index >= netcode_server_max_clients( subject->server ) )
        return "send wants INDEX HEX";
    int bytes = parse_hex( end + 1, data, NETCODE_MAX_PACKET_SIZE );
    if ( bytes < 1 )
        return "send wants 1..1200 bytes in hex";
    netcode_server_send_packet( subject->server, (int) client_index, data, bytes );
    return NULL;
}

static const char * server_kick( struct subject_t * subject, const char * argument )
{
    int client_index = 0;
    if ( !parse_int( argument, 0, netcode_server_max_clients( subject->server ) - 1, &client_index ) )
        return "kick wants an INDEX";
    netcode_server_disconnect_client( subject->server, client_index );
    return NULL;
}

static const char * server_keys( struct subject_t * subject, const char * argument )
{
    uint8_t keys[NETCODE_MAX_PRIVATE_KEYS * NETCODE_KEY_BYTES] = { 0 };
    int count = 0;
    while ( argument ) {
        if ( count == NETCODE_MAX_PRIVATE_KEYS ||
             parse_hex( argument, keys + (size_t) count * NETCODE_KEY_BYTES, NETCODE_KEY_BYTES ) != NETCODE_KEY_BYTES )
            return "keys wants 1..4 keys of 32 bytes in hex, with commas between";
        count++;
        argument = strchr( argument, ',' );
        if ( argument )
            argument++;
    }
    return netcode_server_set_private_keys( subject->server, keys, count ) == NETCODE_OK ? NULL
                                                                                         : "the keys were refused";
}

static const char * server_command( struct subject_t * subject, const char * verb, const char * argument )
{
    int slots = 0;
    if ( !strcmp( verb, "send" ) )
        return server_send( subject, argument );
    if ( !strcmp( verb, "kick" ) )
        return server_kick( subject, argument );
    if ( !strcmp( verb, "keys" ) )
        return server_keys( subject, argument );
    if ( !strcmp( verb, "stop" ) ) {
        netcode_server_stop( subject->server );
        return NULL;
    }
    if ( !strcmp( verb, "start" ) ) {
        if ( !parse_int( argument, 1, NETCODE_MAX_SLOTS, &slots ) )
            return "start wants SLOTS";
        netcode_server_start( subject->server, slots );
        return netcode_server_running( subject->server ) ? NULL : "the server did not start";
    }
    if ( !strcmp( verb, "stats" ) ) {
        print_server_stats( subject->server );
        return NULL;
    }
    return "unknown command";
}

static const char * client_connect( struct subject_t * subject, const char * argument )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    if ( parse_hex( argument, token, NETCODE_CONNECT_TOKEN_BYTES ) != NETCODE_CONNECT_TOKEN_BYTES )
        return "connect wants a token of 2048 bytes in hex";
    netcode_client_connect( subject->client, token );
    return NULL;
}

static const char * client_send( struct subject_t * subject, const char * argument )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE] = { 0 };
    int bytes = parse_hex( argument, data, NETCODE_MAX_PACKET_SIZE );
    if ( bytes < 1 )
        return "send wants 1..1200 bytes in hex";
    netcode_client_send_packet( subject->client, data, bytes );
    return NULL;
}

static const char * client_command( struct subject_t * subject, const char * verb, const char * argument )
{
    if ( !strcmp( verb, "connect" ) )
        return client_connect( subject, argument );
    if ( !strcmp( verb, "send" ) )
        return client_send( subject, argument );
    if ( !strcmp( verb, "disconnect" ) ) {
        netcode_client_disconnect( subject->client );
        return NULL;
    }
    if ( !strcmp( verb, "report" ) ) {
        struct netcode_client_report_t report;
        netcode_client_report( subject->client, &report );
        say( "report %s", report.text );
        return NULL;
    }
    if ( !strcmp( verb, "stats" ) ) {
        print_client_stats( subject->client );
        return NULL;
    }
    return "unknown command";
}

static void run_command( struct subject_t * subject, char * line )
{
    size_t length = strlen( line );
    if ( length && line[length - 1] == '\r' )
        line[--length] = '\0';
    if ( !length )
        return;
    char * argument = strchr( line, ' ' );
    if ( argument )
        *argument++ = '\0';
    else
        argument = line + length;
    if ( !strcmp( line, "quit" ) ) {
        subject->quit = 1;
        return;
    }
    const char * error =
        subject->server ? server_command( subject, line, argument ) : client_command( subject, line, argument );
    if ( error )
        say( "error %s", error );
}

/* ---- the loop ---- */

static void take_input_byte( struct subject_t * subject, char c )
{
    if ( c != '\n' ) {
        if ( subject->input_bytes + 1 < sizeof( subject->input ) )
            subject->input[subject->input_bytes++] = c;
        else
            subject->input_overflow = 1;
        return;
    }
    subject->input[subject->input_bytes] = '\0';
    if ( subject->input_overflow )
        say( "error the line is too long" );
    else
        run_command( subject, subject->input );
    subject->input_bytes = 0;
    subject->input_overflow = 0;
}

/* Waits one tick for input, which is the loop's clock as well; what came is carried out until the next tick is due. */
static void take_input( struct subject_t * subject, double until )
{
    for ( ;; ) {
        double left = until - netcode_time();
        struct pollfd descriptor = { STDIN_FILENO, POLLIN, 0 };
        int ready = poll( &descriptor, 1, left > 0.0 ? (int) ( left * 1000.0 ) + 1 : 0 );
        if ( ready <= 0 || subject->quit )
            return;
        char data[4096];
        ssize_t bytes = read( STDIN_FILENO, data, sizeof( data ) );
        if ( bytes == 0 || ( bytes < 0 && errno != EINTR && errno != EAGAIN ) ) {
            subject->quit = 1;
            return;
        }
        for ( ssize_t i = 0; i < bytes && !subject->quit; i++ )
            take_input_byte( subject, data[i] );
    }
}

static void update( struct subject_t * subject )
{
    double now = netcode_time();
    if ( subject->client ) {
        netcode_client_update( subject->client, now );
        print_client_payloads( subject->client );
        return;
    }
    netcode_server_update( subject->server, now );
    for ( int i = 0; i < netcode_server_max_clients( subject->server ); i++ )
        print_server_payloads( subject, i );
}

static void loop( struct subject_t * subject, double seconds )
{
    double end = netcode_time() + seconds;
    /* Should the reader of our lines stall, a blocked write must not keep the process for ever. */
    alarm( (unsigned int) seconds + 10u );
    while ( !subject->quit && netcode_time() < end ) {
        update( subject );
        take_input( subject, netcode_time() + SUBJECT_TICK_MILLISECONDS / 1000.0 );
    }
}

/* ---- the three roles ---- */

/* Reads the options behind the fixed arguments; 0 when one is not known. */
static int parse_options( int argc, char ** argv, int first, struct subject_options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->seconds = SUBJECT_DEFAULT_SECONDS;
    for ( int i = first; i < argc; i++ ) {
        const char * value = i + 1 < argc ? argv[i + 1] : NULL;
        if ( !strcmp( argv[i], "--replace" ) ) {
            options->replace = 1;
        } else if ( !strcmp( argv[i], "--zero-base" ) ) {
            options->zero_base = 1;
        } else if ( !strcmp( argv[i], "--echo" ) ) {
            options->echo = 1;
        } else if ( !strcmp( argv[i], "--seconds" ) && value ) {
            options->seconds = strtod( value, NULL );
            i++;
        } else if ( ( !strcmp( argv[i], "--address2" ) || !strcmp( argv[i], "--bind2" ) ) && value ) {
            options->second_address = value;
            i++;
        } else if ( !strcmp( argv[i], "--public" ) && value && options->num_public_addresses < SUBJECT_MAX_PUBLIC ) {
            options->public_addresses[options->num_public_addresses++] = value;
            i++;
        } else {
            return 0;
        }
    }
    return options->seconds > 0.0 && options->seconds <= 3600.0;
}

/* The address as it was given, with the port that was bound. */
static void say_listening( struct netcode_server_t * server, const char * address )
{
    struct netcode_address_t parsed;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    netcode_parse_address( address, &parsed );
    if ( !parsed.port )
        parsed.port = netcode_server_get_port( server );
    say( "listening %s", netcode_address_to_string( &parsed, text ) );
}

static int run_server( int argc, char ** argv )
{
    static struct subject_t subject;
    struct subject_options_t options;
    struct netcode_server_config_t config;
    int slots = 0;
    netcode_default_server_config( &config );
    if ( argc < 6 || !parse_int( argv[3], 1, NETCODE_MAX_SLOTS, &slots ) ||
         !parse_u64( argv[4], &config.protocol_id ) ||
         parse_hex( argv[5], config.private_key, NETCODE_KEY_BYTES ) != NETCODE_KEY_BYTES ||
         !parse_options( argc, argv, 6, &options ) )
        return fail(
            "usage: subject server ADDRESS SLOTS PROTOCOL_ID KEYHEX [--replace] [--zero-base] [--echo] [--seconds N] "
            "[--address2 ADDRESS] [--public ADDRESS]" );
    config.callback_context = &subject;
    config.connect_disconnect_callback = on_server_slot;
    config.drop_callback = on_drop;
    config.log_callback = on_log;
    config.replace_existing_clients = options.replace;
    config.sequence_base = options.zero_base ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    config.public_addresses = options.public_addresses;
    config.num_public_addresses = options.num_public_addresses;
    subject.echo = options.echo;
    subject.server = options.second_address
                         ? netcode_server_create_dual( argv[2], options.second_address, &config, netcode_time() )
                         : netcode_server_create( argv[2], &config, netcode_time() );
    if ( !subject.server )
        return fail( netcode_server_create_error_text( netcode_server_create_error() ) );
    netcode_server_start( subject.server, slots );
    if ( !netcode_server_running( subject.server ) ) {
        netcode_server_destroy( subject.server );
        return fail( "the server did not start" );
    }
    say_listening( subject.server, argv[2] );
    if ( options.second_address )
        say_listening( subject.server, options.second_address );
    loop( &subject, options.seconds );
    netcode_server_destroy( subject.server );
    return 0;
}

static int run_client( int argc, char ** argv )
{
    static struct subject_t subject;
    struct subject_options_t options;
    struct netcode_client_config_t config;
    if ( argc < 3 || !parse_options( argc, argv, 3, &options ) )
        return fail( "usage: subject client BIND_ADDRESS [--bind2 ADDRESS] [--zero-base] [--seconds N]" );
    netcode_default_client_config( &config );
    config.callback_context = &subject;
    config.state_change_callback = on_client_state;
    config.drop_callback = on_drop;
    config.log_callback = on_log;
    config.sequence_base = options.zero_base ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    subject.client = options.second_address
                         ? netcode_client_create_dual( argv[2], options.second_address, &config, netcode_time() )
                         : netcode_client_create( argv[2], &config, netcode_time() );
    if ( !subject.client )
        return fail( netcode_client_create_error_text( netcode_client_create_error() ) );
    say( "ready %d", (int) netcode_client_get_port( subject.client ) );
    loop( &subject, options.seconds );
    netcode_client_destroy( subject.client );
    return 0;
}

static int run_mint( int argc, char ** argv )
{
    uint8_t key[NETCODE_KEY_BYTES];
    uint8_t user_data[NETCODE_USER_DATA_BYTES] = { 0 };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    const char * addresses[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint64_t protocol_id = 0;
    uint64_t client_id = 0;
    int expire_seconds = 0;
    int timeout_seconds = 0;
    int count = argc - 8;
    if ( count < 1 || count > NETCODE_MAX_SERVERS_PER_CONNECT ||
         parse_hex( argv[2], key, NETCODE_KEY_BYTES ) != NETCODE_KEY_BYTES || !parse_u64( argv[3], &protocol_id ) ||
         !parse_u64( argv[4], &client_id ) || !parse_int( argv[5], -0x7fffffff, 0x7fffffff, &expire_seconds ) ||
         !parse_int( argv[6], -0x7fffffff, 0x7fffffff, &timeout_seconds ) ||
         ( strcmp( argv[7], "-" ) != 0 && parse_hex( argv[7], user_data, NETCODE_USER_DATA_BYTES ) < 0 ) )
        return fail(
            "usage: subject mint KEYHEX PROTOCOL_ID CLIENT_ID EXPIRE_SECONDS TIMEOUT_SECONDS USERDATAHEX ADDRESS..." );
    for ( int i = 0; i < count; i++ )
        addresses[i] = argv[8 + i];
    if ( netcode_generate_connect_token( count, addresses, addresses, expire_seconds, timeout_seconds, client_id,
                                         protocol_id, key, user_data, token ) != NETCODE_OK )
        return fail( "the token could not be made" );
    print_hex( token, sizeof( token ) );
    say( "" );
    return 0;
}

int main( int argc, char ** argv )
{
    int status = 2;
    if ( netcode_init() != NETCODE_OK )
        return fail( "netcode_init failed" );
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    if ( argc > 1 && !strcmp( argv[1], "server" ) )
        status = run_server( argc, argv );
    else if ( argc > 1 && !strcmp( argv[1], "client" ) )
        status = run_client( argc, argv );
    else if ( argc > 1 && !strcmp( argv[1], "mint" ) )
        status = run_mint( argc, argv );
    else
        fail( "usage: subject server|client|mint ...; the comment at the top of subject.c says it all" );
    netcode_term();
    return status;
}
