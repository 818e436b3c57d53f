/*  netcode-token: makes private keys and connect tokens, shows what is in them, and reads captures. A web backend in
    any language can call it and pass the JSON that it prints on to the player.

        cc examples/token.c -lsodium -o netcode-token
        ./netcode-token keygen --output game.key
        ./netcode-token mint --key-file game.key --client-id 1001 --format json 203.0.113.5:40000 > token.json
        ./netcode-token inspect --key-file game.key token.json
        ./netcode-token decrypt --key-file game.key capture.pcap

    The private key never goes on the command line, where everyone on the machine could read it. */

#define NETCODE_IMPLEMENTATION /* and what it knows of packets: decrypt judges packets by the library's own code */
#include "../netcode.h"
#include "secret_file.h"
#include "wireshark/capture.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#ifdef _WIN32
#include <io.h>
#else
#include <sys/stat.h>
#include <unistd.h>
#endif

#define DEFAULT_PROTOCOL_ID 0x1122334455667788ull
#define DEFAULT_EXPIRE_SECONDS 45
#define DEFAULT_TIMEOUT_SECONDS 10
#define MAX_INPUT_BYTES 65536
#define ADDRESS_PAIR_BYTES ( (size_t) 2 * NETCODE_MAX_ADDRESS_STRING_LENGTH )
#define ANSWER_BYTES 16384 /* the longest output: JSON with a token in base64 and 32 addresses */

/* The exit status. */
#define EXIT_FINE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NO_TOKEN 3
#define EXIT_NOT_OPENED 4

/* The layout of a token. Standard: Connect Token */
#define VERSION_BYTES 13
#define AT_PROTOCOL_ID 13
#define AT_EXPIRE 29
#define AT_NONCE 37
#define NONCE_BYTES 24
#define AT_PRIVATE 61
#define PRIVATE_BYTES 1024
#define SESSION_KEYS_BYTES ( (size_t) 2 * NETCODE_KEY_BYTES )
#define AT_TIMEOUT 1085
#define AT_COUNT 1089

#define FORMAT_DEFAULT 0 /* the command's own */
#define FORMAT_HEX 1
#define FORMAT_RAW 2
#define FORMAT_BASE64 3
#define FORMAT_JSON 4

#define NETWORK_ORDER_FIRST 1
#define NETWORK_ORDER_LAST 2

#define PAYLOAD_HIDDEN 0
#define PAYLOAD_HEX 1
#define PAYLOAD_TEXT 2

#define MAX_PRIVATE_KEYS 4
#define MAX_TOKEN_FILES 64
#define MAX_KEYLOG_FILES 16
#define MAX_SESSIONS 1024     /* tokens whose keys are known */
#define MAX_CONNECTIONS 512   /* of a capture; the one that was silent for longest gives way */
#define CONNECTION_SESSIONS 4 /* tokens of one client's address */
#define MAX_PROBES 8          /* packets of a connection without a request that are tried with every key */
#define PROBE_BUDGET 1000000  /* decryptions for that, in all */
#define MAX_NAMED 20          /* packets of each kind that are left out by name; then they are counted */

struct options_t {
    const char * key_file; /* the last of them */
    const char * output;
    const char * key_files[MAX_PRIVATE_KEYS];
    const char * token_files[MAX_TOKEN_FILES];
    const char * keylog_files[MAX_KEYLOG_FILES];
    const char * capture;
    int num_key_files, num_token_files, num_keylog_files;
    int payload;
    int port; /* 0: none was given */
    int have_protocol_id;
    int format;
    uint64_t protocol_id;
    uint64_t client_id;
    int have_client_id;
    int expire_seconds;
    int timeout_seconds;
    int network_order;
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
    const char * names[NETCODE_MAX_SERVERS_PER_CONNECT]; /* what stands there without an option: addresses or a file */
    int num_names;
};

/* The private part, opened. */
struct private_t {
    uint64_t client_id;
    int timeout_seconds;
    int num_addresses;
    char addresses[NETCODE_MAX_SERVERS_PER_CONNECT][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const uint8_t * keys; /* both, client to server first */
    const uint8_t * user_data;
};

/* ---- help ---- */

static void help_keygen( void )
{
    printf( "usage: netcode-token keygen [options]\n"
            "\n"
            "Makes a private key: 32 random bytes. Give it to the web backend and to the servers, and to nobody else.\n"
            "\n"
            "  --output FILE    write it to a new file for your eyes only (mode 0600); else to standard output\n"
            "  --format FORMAT  hex (the default), base64 or raw\n" );
}

static void help_mint( void )
{
    printf(
        "usage: netcode-token mint [options] ADDRESS...\n"
        "\n"
        "Makes a connect token, which lets one player connect once to one of up to 32 servers, tried in this order.\n"
        "An ADDRESS has a port: 203.0.113.5:40000 or [2001:db8::5]:40000. Where servers know themselves by another\n"
        "address than the one that players dial (NAT), write PUBLIC=INTERNAL.\n"
        "\n"
        "  --key-file FILE    the private key: 32 bytes, or the same in hex or base64. Refused when others than its\n"
        "                     owner can use the file. Without it: the environment's NETCODE_PRIVATE_KEY\n"
        "  --client-id N      the player, decimal or 0x... Required\n"
        "  --protocol-id N    unique to the game and its version (0x1122334455667788, the example server's)\n"
        "  --expire N         seconds in which to connect; negative: it never expires (%d)\n"
        "  --timeout N        seconds of silence that end the connection; 0 or negative: none do (%d)\n"
        "  --user-data TEXT   up to %d bytes for the server's application, or\n"
        "  --user-data-hex H  the same in hex\n"
        "  --network-order first|last\n"
        "                     for peers that take the bytes of an IPv6 address to be in network order (renet, "
        "benny-n,\n"
        "                     netcode.io.net, lightyear to 0.19): each IPv6 address a second time, as these read it,\n"
        "                     before or behind the standard's. A client tries the first one first, and the other, "
        "which\n"
        "                     is another machine's address to it, after --timeout seconds without an answer\n"
        "  --format FORMAT    json (the default), base64 or raw (%d bytes)\n"
        "  --output FILE      write to this file (mode 0600), in place of one that is there\n"
        "\n"
        "JSON: connect_token (base64), client_id and protocol_id (strings, because JavaScript's numbers end at 2^53),\n"
        "create_timestamp, expire_timestamp (seconds since 1970; \"never\"), timeout_seconds, server_addresses.\n",
        DEFAULT_EXPIRE_SECONDS, DEFAULT_TIMEOUT_SECONDS, NETCODE_USER_DATA_BYTES, NETCODE_CONNECT_TOKEN_BYTES );
}

static void help_inspect( void )
{
    printf(
        "usage: netcode-token inspect [options] [TOKEN_FILE]\n"
        "\n"
        "Shows what a token says (raw, base64 or JSON; standard input without a file or with -). The public part "
        "always;\n"
        "the private part when there is a key. The session's keys are not shown: keylog prints them.\n"
        "\n"
        "  --key-file FILE    the private key; without it the environment's NETCODE_PRIVATE_KEY, where that is set\n" );
}

static void help_keylog( void )
{
    printf( "usage: netcode-token keylog [--output FILE] [TOKEN_FILE]\n"
            "       netcode-token keylog [--output FILE] --key-file FILE --capture FILE\n"
            "\n"
            "Prints the two keys of the session that a token makes, for tools that decrypt captures. Who has them can "
            "read\n"
            "and forge the session. Each line, in hex: label, the token's nonce (a capture has it in the clear, bytes "
            "30 to\n"
            "53 of the connection request), key. The protocol id, a number, is needed for captures that do not hold "
            "the request.\n"
            "\n"
            "  NETCODE_CLIENT_TO_SERVER <48 digits> <64 digits>\n"
            "  NETCODE_SERVER_TO_CLIENT <48 digits> <64 digits>\n"
            "  NETCODE_PROTOCOL_ID      <48 digits> <16 digits>\n"
            "\n"
            "  --capture FILE     not of a token, but of each connection request in a capture that the key opens\n"
            "  --key-file FILE    the private key for that, up to %d times\n"
            "  --output FILE      write to this file (mode 0600), in place of one that is there\n",
            MAX_PRIVATE_KEYS );
}

static void help_decrypt( void )
{
    printf(
        "usage: netcode-token decrypt [options] CAPTURE\n"
        "\n"
        "Prints a line for each netcode packet of a capture (pcap or pcapng; - for standard input): number, seconds\n"
        "since the first packet, from, to, direction, type, sequence, bytes, and ok, sealed (no key is known for it)\n"
        "or refused with the reason that the library has for it. Everything is verified: sizes, tags, replays.\n"
        "\n"
        "  --key-file FILE    the private key, up to %d times. It opens the connection requests, which hold the\n"
        "                     session's keys: enough for what was captured from its beginning on. Without it: the\n"
        "                     environment's NETCODE_PRIVATE_KEY, where that is set\n"
        "  --token FILE       a connect token, as its client got it; up to %d\n"
        "  --keylog FILE      lines of netcode-token keylog; up to %d files\n"
        "  --payload FORMAT   show payloads too: hex or text\n"
        "  --port N           all UDP to and from this port is netcode; a packet that is none is shown as refused\n"
        "  --protocol-id N    requests of another protocol id are refused; also the id for keys without one\n"
        "\n"
        "What is remembered is limited: %d connections, the last 4 tokens of each, and %d tokens.\n"
        "Exit status: %d fine, %d the file or a key can not be read to its end, %d nothing that is sealed was "
        "opened.\n",
        MAX_PRIVATE_KEYS, MAX_TOKEN_FILES, MAX_KEYLOG_FILES, MAX_CONNECTIONS, MAX_SESSIONS, EXIT_FINE, EXIT_FAILED,
        EXIT_NOT_OPENED );
}

static void print_help( void )
{
    printf( "usage: netcode-token COMMAND [options]; netcode-token COMMAND --help says more\n"
            "\n"
            "  keygen     makes a private key\n"
            "  mint       makes a connect token\n"
            "  inspect    shows what is in a token\n"
            "  keylog     prints a token's session keys, for capture tools\n"
            "  decrypt    shows the packets of a capture, verified and opened\n"
            "\n"
            "Exit status: %d fine, %d it could not be done (files, keys, addresses), %d wrong usage, %d no connect "
            "token was\n"
            "found in the input, or a client would refuse it, %d the key does not open the token's private part, or "
            "nothing\n"
            "of a capture.\n",
            EXIT_FINE, EXIT_FAILED, EXIT_USAGE, EXIT_NO_TOKEN, EXIT_NOT_OPENED );
}

static int fail( int status, const char * what, const char * detail )
{
    fprintf( stderr, "netcode-token: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "" );
    return status;
}

/* ---- numbers and bytes ---- */

static uint64_t load( const uint8_t * data, int bytes )
{
    uint64_t value = 0;
    for ( int i = 0; i < bytes; i++ )
        value |= (uint64_t) data[i] << ( 8 * i );
    return value;
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

static int parse_seconds( const char * text, int * value )
{
    char * end = NULL;
    errno = 0;
    long number = strtol( text, &end, 10 );
    if ( end == text || *end != '\0' || errno || number < -1000000000 || number > 1000000000 )
        return 0;
    *value = (int) number;
    return 1;
}

static void print_hex( const uint8_t * data, size_t bytes )
{
    for ( size_t i = 0; i < bytes; i++ )
        printf( "%02x", data[i] );
}

/* ---- files ---- */

/* Raw bytes must not be changed on their way, as Windows does with line ends. */
static void set_binary( FILE * file )
{
#ifdef _WIN32
    _setmode( _fileno( file ), _O_BINARY );
#else
    (void) file;
#endif
}

/* A file for its owner's eyes only. A key never takes the place of another file, which may be a key in use. */
static FILE * create_private_file( const char * path, int may_replace )
{
#ifdef _WIN32
    FILE * existing = may_replace ? NULL : fopen( path, "rb" );
    if ( existing ) {
        fclose( existing );
        errno = EEXIST;
        return NULL;
    }
    return fopen( path, "wb" );
#else
    if ( may_replace )
        unlink( path );
    int descriptor = open( path, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR );
    return descriptor < 0 ? NULL : fdopen( descriptor, "wb" );
#endif
}

static int write_output( const char * path, int may_replace, const uint8_t * data, size_t bytes )
{
    FILE * file = path ? create_private_file( path, may_replace ) : stdout;
    if ( !file )
        return fail( EXIT_FAILED, path, strerror( errno ) );
    set_binary( file );
    int good = fwrite( data, 1, bytes, file ) == bytes && fflush( file ) == 0;
    if ( path )
        good = fclose( file ) == 0 && good;
    return good ? EXIT_FINE : fail( EXIT_FAILED, path ? path : "standard output", strerror( errno ) );
}

static int is_terminal( void )
{
#ifdef _WIN32
    return _isatty( _fileno( stdout ) );
#else
    return isatty( STDOUT_FILENO );
#endif
}

/* ---- the private key ---- */

static int read_key_file( const char * path, uint8_t key[NETCODE_KEY_BYTES] )
{
    return secret_read_key( "netcode-token", path, key ) ? EXIT_FINE : EXIT_FAILED;
}

/* From the file, else from the environment. `found` is 0 when there is neither. */
static int find_key( const struct options_t * options, uint8_t key[NETCODE_KEY_BYTES], int * found )
{
    const char * environment = getenv( "NETCODE_PRIVATE_KEY" );
    *found = 1;
    if ( options->key_file )
        return read_key_file( options->key_file, key );
    if ( environment && *environment ) {
        if ( secret_parse_key( environment, strlen( environment ), key ) )
            return EXIT_FINE;
        return fail( EXIT_FAILED, "NETCODE_PRIVATE_KEY holds no key: 32 bytes in hex or base64", NULL );
    }
    *found = 0;
    return EXIT_FINE;
}

static int command_keygen( struct options_t * options )
{
    uint8_t key[NETCODE_KEY_BYTES];
    char text[2 * NETCODE_KEY_BYTES + 2];
    int status = EXIT_FINE;
    if ( options->num_names || options->format == FORMAT_JSON )
        return fail( EXIT_USAGE, "keygen takes --output FILE and --format hex, base64 or raw", NULL );
    if ( options->format == FORMAT_RAW && !options->output && is_terminal() )
        return fail( EXIT_USAGE, "raw bytes do not belong on a terminal; give --output FILE or redirect", NULL );
    netcode_random_bytes( key, NETCODE_KEY_BYTES );
    if ( options->format == FORMAT_RAW ) {
        status = write_output( options->output, 0, key, sizeof( key ) );
    } else {
        if ( options->format == FORMAT_BASE64 )
            sodium_bin2base64( text, sizeof( text ), key, sizeof( key ), sodium_base64_VARIANT_ORIGINAL );
        else
            sodium_bin2hex( text, sizeof( text ), key, sizeof( key ) );
        size_t bytes = strlen( text );
        text[bytes] = '\n';
        status = write_output( options->output, 0, (const uint8_t *) text, bytes + 1 );
    }
    sodium_memzero( key, sizeof( key ) );
    sodium_memzero( text, sizeof( text ) );
    return status;
}

/* ---- mint ---- */

/* Where the next piece of an answer goes; `bytes` is what is written so far. The answer's size is known to suffice. */
struct text_t {
    char data[ANSWER_BYTES];
    size_t bytes;
};

static void text_add( struct text_t * text, const char * piece )
{
    size_t bytes = strlen( piece );
    if ( bytes >= sizeof( text->data ) - text->bytes )
        return;
    memcpy( text->data + text->bytes, piece, bytes + 1 );
    text->bytes += bytes;
}

static void text_add_number( struct text_t * text, const char * before, uint64_t number, const char * after )
{
    char digits[32];
    snprintf( digits, sizeof( digits ), "%llu", (unsigned long long) number );
    text_add( text, before );
    text_add( text, digits );
    text_add( text, after );
}

static void text_add_token( struct text_t * text, const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    char base64[sodium_base64_ENCODED_LEN( NETCODE_CONNECT_TOKEN_BYTES, sodium_base64_VARIANT_ORIGINAL )];
    sodium_bin2base64( base64, sizeof( base64 ), token, NETCODE_CONNECT_TOKEN_BYTES, sodium_base64_VARIANT_ORIGINAL );
    text_add( text, base64 );
    sodium_memzero( base64, sizeof( base64 ) );
}

static void write_json( struct text_t * text, const struct options_t * options, const uint8_t * token )
{
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_connect_token_info_t info;
    netcode_connect_token_info( token, &info );
    text_add_number( text, "{\"client_id\":\"", options->client_id, "\"" );
    text_add_number( text, ",\"protocol_id\":\"", info.protocol_id, "\"" );
    text_add_number( text, ",\"create_timestamp\":", info.create_timestamp, "" );
    if ( info.expire_timestamp == UINT64_MAX )
        text_add( text, ",\"expire_timestamp\":\"never\"" );
    else
        text_add_number( text, ",\"expire_timestamp\":", info.expire_timestamp, "" );
    if ( info.timeout_seconds > 0 )
        text_add_number( text, ",\"timeout_seconds\":", (uint64_t) info.timeout_seconds, "" );
    else
        text_add( text, ",\"timeout_seconds\":-1" );
    text_add( text, ",\"server_addresses\":[" );
    for ( int i = 0; i < info.num_server_addresses; i++ ) {
        text_add( text, i ? ",\"" : "\"" );
        text_add( text, netcode_address_to_string( &info.server_addresses[i], address ) );
        text_add( text, "\"" );
    }
    text_add( text, "],\"connect_token\":\"" );
    text_add_token( text, token );
    text_add( text, "\"}\n" );
}

static int write_token( const struct options_t * options, const uint8_t * token )
{
    static struct text_t text;
    if ( options->format == FORMAT_RAW )
        return write_output( options->output, 1, token, NETCODE_CONNECT_TOKEN_BYTES );
    if ( options->format == FORMAT_BASE64 ) {
        text_add_token( &text, token );
        text_add( &text, "\n" );
    } else {
        write_json( &text, options, token );
    }
    int status = write_output( options->output, 1, (const uint8_t *) text.data, text.bytes );
    sodium_memzero( &text, sizeof( text ) );
    return status;
}

/* Standard error names what is no address with a port. */
static int parse_address( const char * text, struct netcode_address_t * address )
{
    if ( netcode_parse_address( text, address ) == NETCODE_OK && address->port )
        return 1;
    fail( EXIT_USAGE, text,
          "is no address with a port, like 203.0.113.5:40000 or [2001:db8::5]:40000; resolve host names first "
          "(getent ahosts NAME)" );
    return 0;
}

/* Parts PUBLIC=INTERNAL; one address is both. */
static int parse_server( const char * name, struct netcode_address_t pair[2] )
{
    char text[ADDRESS_PAIR_BYTES];
    const char * equals = strchr( name, '=' );
    if ( !equals || strlen( name ) >= sizeof( text ) ) {
        int good = parse_address( name, &pair[0] );
        pair[1] = pair[0];
        return good;
    }
    memcpy( text, name, strlen( name ) + 1 );
    text[equals - name] = '\0';
    return parse_address( text, &pair[0] ) && parse_address( equals + 1, &pair[1] );
}

/* What the token names. */
struct servers_t {
    int count;
    char texts[NETCODE_MAX_SERVERS_PER_CONNECT][2][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const char * publics[NETCODE_MAX_SERVERS_PER_CONNECT];
    const char * internals[NETCODE_MAX_SERVERS_PER_CONNECT];
};

/* `swapped`: IPv6 addresses as they are read by peers that take a token's address to be in network order. */
static int add_server( struct servers_t * servers, const struct netcode_address_t pair[2], int swapped )
{
    if ( servers->count == NETCODE_MAX_SERVERS_PER_CONNECT )
        return 0;
    char( *texts )[NETCODE_MAX_ADDRESS_STRING_LENGTH] = servers->texts[servers->count];
    for ( int k = 0; k < 2; k++ ) {
        struct netcode_address_t address = nc_address_without_interface( &pair[k] );
        for ( int i = 0; swapped && address.type == NETCODE_ADDRESS_IPV6 && i < 8; i++ )
            address.data.ipv6[i] = (uint16_t) ( address.data.ipv6[i] >> 8 | address.data.ipv6[i] << 8 );
        netcode_address_to_string( &address, texts[k] );
    }
    servers->publics[servers->count] = texts[0];
    servers->internals[servers->count++] = texts[1];
    return 1;
}

static int collect_servers( const struct options_t * options, struct servers_t * servers )
{
    struct netcode_address_t pair[2];
    for ( int i = 0; i < options->num_names; i++ ) {
        if ( !parse_server( options->names[i], pair ) )
            return EXIT_USAGE;
        int twice =
            options->network_order && ( pair[0].type == NETCODE_ADDRESS_IPV6 || pair[1].type == NETCODE_ADDRESS_IPV6 );
        int first_swapped = twice && options->network_order == NETWORK_ORDER_FIRST;
        if ( !add_server( servers, pair, first_swapped ) || ( twice && !add_server( servers, pair, !first_swapped ) ) )
            return fail( EXIT_USAGE, "a token has up to 32 addresses; --network-order names each IPv6 address twice",
                         NULL );
    }
    return EXIT_FINE;
}

static int command_mint( struct options_t * options )
{
    static struct servers_t servers;
    uint8_t key[NETCODE_KEY_BYTES];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int found = 0;
    if ( options->format == FORMAT_HEX )
        return fail( EXIT_USAGE, "mint writes json, base64 or raw", NULL );
    if ( !options->num_names || !options->have_client_id )
        return fail( EXIT_USAGE, "mint wants --client-id and at least one address; see --help", NULL );
    if ( options->format == FORMAT_RAW && !options->output && is_terminal() )
        return fail( EXIT_USAGE, "raw bytes do not belong on a terminal; give --output FILE or redirect", NULL );
    int status = collect_servers( options, &servers );
    if ( status != EXIT_FINE )
        return status;
    status = find_key( options, key, &found );
    if ( status == EXIT_FINE && !found )
        status = fail( EXIT_USAGE, "mint wants --key-file or NETCODE_PRIVATE_KEY in the environment", NULL );
    if ( status != EXIT_FINE )
        return status;
    if ( netcode_generate_connect_token( servers.count, servers.publics, servers.internals, options->expire_seconds,
                                         options->timeout_seconds, options->client_id, options->protocol_id, key,
                                         options->user_data, token ) == NETCODE_OK )
        status = write_token( options, token );
    else
        status = fail( EXIT_FAILED, "the token could not be made", NULL );
    sodium_memzero( key, sizeof( key ) );
    sodium_memzero( token, sizeof( token ) );
    return status;
}

/* ---- reading tokens ---- */

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

static int read_token_file( const char * path, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    static char data[MAX_INPUT_BYTES + 1];
    FILE * file = strcmp( path, "-" ) ? fopen( path, "rb" ) : stdin;
    if ( !file )
        return fail( EXIT_FAILED, path, strerror( errno ) );
    set_binary( file );
    size_t bytes = fread( data, 1, MAX_INPUT_BYTES, file );
    if ( file != stdin )
        fclose( file );
    data[bytes] = '\0';
    int good = parse_token( data, bytes, token );
    sodium_memzero( data, sizeof( data ) );
    return good ? EXIT_FINE
                : fail( EXIT_NO_TOKEN,
                        "no connect token in the input: 2048 bytes, base64, or JSON with \"connect_token\"", NULL );
}

static int read_token( const struct options_t * options, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    if ( options->num_names > 1 )
        return fail( EXIT_USAGE, "one token at a time", NULL );
    return read_token_file( options->num_names ? options->names[0] : "-", token );
}

/* Reads an address at `at`, and returns where it ends; -1 when it is no address. Standard: Connect Token */
static int read_address( const uint8_t * data, int at, int end, struct netcode_address_t * address )
{
    memset( address, 0, sizeof( *address ) );
    if ( at + 7 > end )
        return -1;
    address->type = data[at++];
    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        memcpy( address->data.ipv4, data + at, 4 );
        at += 4;
    } else if ( address->type == NETCODE_ADDRESS_IPV6 && at + 18 <= end ) {
        for ( int i = 0; i < 8; i++ )
            address->data.ipv6[i] = (uint16_t) load( data + at + (size_t) i * 2, 2 );
        at += 16;
    } else {
        return -1;
    }
    address->port = (uint16_t) load( data + at, 2 );
    return at + 2;
}

/* Where the session's keys stand in the public part of a token that is known to be sound. */
static const uint8_t * public_keys( const uint8_t * token )
{
    struct netcode_address_t address;
    int count = (int) load( token + AT_COUNT, 4 );
    int at = AT_COUNT + 4;
    for ( int i = 0; i < count && at >= 0; i++ )
        at = read_address( token, at, NETCODE_CONNECT_TOKEN_BYTES - 2 * NETCODE_KEY_BYTES, &address );
    return at < 0 ? NULL : token + at;
}

/* Opens the private part into `plain`, with libsodium directly, as the standard says. 0 when the key is a wrong one. */
static int open_private( const uint8_t * token, const uint8_t * key, uint8_t plain[PRIVATE_BYTES] )
{
    uint8_t associated[VERSION_BYTES + 8 + 8];
    memcpy( associated, token, VERSION_BYTES );
    memcpy( associated + VERSION_BYTES, token + AT_PROTOCOL_ID, 8 );
    memcpy( associated + VERSION_BYTES + 8, token + AT_EXPIRE, 8 );
    return crypto_aead_xchacha20poly1305_ietf_decrypt( plain, NULL, NULL, token + AT_PRIVATE, PRIVATE_BYTES, associated,
                                                       sizeof( associated ), token + AT_NONCE, key ) == 0;
}

static int parse_private( const uint8_t * plain, struct private_t * part )
{
    const int end = PRIVATE_BYTES - NETCODE_MAC_BYTES - 2 * NETCODE_KEY_BYTES - NETCODE_USER_DATA_BYTES;
    struct netcode_address_t address;
    uint64_t count = load( plain + 12, 4 );
    int at = 16;
    part->client_id = load( plain, 8 );
    part->timeout_seconds = (int) (int32_t) load( plain + 8, 4 );
    if ( count < 1 || count > NETCODE_MAX_SERVERS_PER_CONNECT )
        return 0;
    part->num_addresses = (int) count;
    for ( int i = 0; i < part->num_addresses; i++ ) {
        at = read_address( plain, at, end, &address );
        if ( at < 0 || at > end )
            return 0;
        netcode_address_to_string( &address, part->addresses[i] );
    }
    part->keys = plain + at;
    part->user_data = part->keys + SESSION_KEYS_BYTES;
    return 1;
}

/* ---- inspect ---- */

static void print_time( const char * name, uint64_t timestamp, uint64_t now )
{
    char text[64] = "";
    time_t seconds = (time_t) timestamp;
    const struct tm * utc = timestamp < 253402300800ull ? gmtime( &seconds ) : NULL;
    if ( utc )
        strftime( text, sizeof( text ), "%Y-%m-%d %H:%M:%S UTC, ", utc );
    if ( timestamp > now )
        printf( "%-16s  %llu (%sin %llu s)\n", name, (unsigned long long) timestamp, text,
                (unsigned long long) ( timestamp - now ) );
    else
        printf( "%-16s  %llu (%s%llu s ago)\n", name, (unsigned long long) timestamp, text,
                (unsigned long long) ( now - timestamp ) );
}

static void print_timeout( int timeout_seconds )
{
    if ( timeout_seconds > 0 )
        printf( "%-16s  %d s\n", "timeout", timeout_seconds );
    else
        printf( "%-16s  none (%d)\n", "timeout", timeout_seconds );
}

static void print_public( const struct netcode_connect_token_info_t * info )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint64_t now = (uint64_t) time( NULL );
    printf( "public part\n" );
    printf( "%-16s  %s\n", "version", info->version );
    printf( "%-16s  %llu (0x%016llx)\n", "protocol id", (unsigned long long) info->protocol_id,
            (unsigned long long) info->protocol_id );
    print_time( "created", info->create_timestamp, now );
    if ( info->expire_timestamp == UINT64_MAX )
        printf( "%-16s  never\n", "expires" );
    else
        print_time( info->expire_timestamp > now ? "expires" : "EXPIRED", info->expire_timestamp, now );
    print_timeout( info->timeout_seconds );
    for ( int i = 0; i < info->num_server_addresses; i++ )
        printf( "%-16s  %s\n", "server", netcode_address_to_string( &info->server_addresses[i], text ) );
}

/* As text where it is text up to its zeros, else in hex. */
static void print_user_data( const uint8_t * data )
{
    size_t bytes = NETCODE_USER_DATA_BYTES;
    int printable = 1;
    while ( bytes && !data[bytes - 1] )
        bytes--;
    for ( size_t i = 0; i < bytes; i++ )
        printable = printable && data[i] >= 32 && data[i] < 127;
    printf( "%-16s  ", "user data" );
    if ( !bytes )
        printf( "zeros" );
    else if ( printable )
        printf( "\"%.*s\"", (int) bytes, (const char *) data );
    else
        print_hex( data, bytes );
    printf( "\n" );
}

static void print_private( const struct private_t * part, const uint8_t * keys )
{
    printf( "\nprivate part\n" );
    printf( "%-16s  %llu (0x%016llx)\n", "client id", (unsigned long long) part->client_id,
            (unsigned long long) part->client_id );
    print_timeout( part->timeout_seconds );
    for ( int i = 0; i < part->num_addresses; i++ )
        printf( "%-16s  %s\n", "server", part->addresses[i] );
    printf( "%-16s  %s\n", "session keys",
            keys && !memcmp( keys, part->keys, SESSION_KEYS_BYTES ) ? "the same as in the public part"
                                                                    : "NOT THE SAME as in the public part" );
    print_user_data( part->user_data );
}

static int inspect_private( const uint8_t * token, const uint8_t * key )
{
    uint8_t plain[PRIVATE_BYTES];
    struct private_t part;
    int status = EXIT_FINE;
    if ( !open_private( token, key, plain ) ) {
        printf( "\nprivate part\n%-16s  it was not sealed with this key, or the token was changed\n", "NOT OPENED" );
        status = EXIT_NOT_OPENED;
    } else if ( !parse_private( plain, &part ) ) {
        printf( "\nprivate part\n%-16s  it opens with this key, but breaks the standard's format\n", "MALFORMED" );
        status = EXIT_NO_TOKEN;
    } else {
        print_private( &part, public_keys( token ) );
    }
    sodium_memzero( plain, sizeof( plain ) );
    return status;
}

/* Why a client would refuse the token. */
static int fail_unsound( const struct netcode_connect_token_info_t * info )
{
    if ( strcmp( info->version, "NETCODE 1.02" ) != 0 )
        return fail( EXIT_NO_TOKEN, "a client would refuse this token, because it does not say NETCODE 1.02 but",
                     info->version );
    return fail( EXIT_NO_TOKEN, "a client would refuse this token: its public part breaks the standard's format",
                 NULL );
}

static int command_inspect( struct options_t * options )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    uint8_t key[NETCODE_KEY_BYTES];
    struct netcode_connect_token_info_t info;
    int found = 0;
    int status = find_key( options, key, &found );
    if ( status == EXIT_FINE )
        status = read_token( options, token );
    if ( status != EXIT_FINE )
        return status;
    if ( netcode_connect_token_info( token, &info ) == NETCODE_OK )
        print_public( &info );
    else
        status = fail_unsound( &info );
    if ( status == EXIT_FINE && found )
        status = inspect_private( token, key );
    else if ( status == EXIT_FINE )
        printf( "\nprivate part\n%-16s  no key was given\n", "sealed" );
    sodium_memzero( key, sizeof( key ) );
    sodium_memzero( token, sizeof( token ) );
    return status;
}

/* ---- keys of sessions ---- */

#define TO_SERVER 0
#define TO_CLIENT 1
#define WAYS 2

/* What a token gives: the nonce by which its requests are known, and a key for each way. */
struct session_t {
    uint8_t nonce[NONCE_BYTES];
    uint8_t keys[WAYS][NETCODE_KEY_BYTES];
    int has_keys[WAYS];
    int has_protocol_id;
    uint64_t protocol_id;
};

struct keyring_t {
    int num_private_keys;
    uint8_t private_keys[MAX_PRIVATE_KEYS][NETCODE_KEY_BYTES];
    uint64_t num_sessions; /* ever: beyond the limit the oldest give way */
    struct session_t sessions[MAX_SESSIONS];
};

static int known_sessions( const struct keyring_t * ring )
{
    return ring->num_sessions < MAX_SESSIONS ? (int) ring->num_sessions : MAX_SESSIONS;
}

static struct session_t * find_session( struct keyring_t * ring, const uint8_t * nonce )
{
    for ( int i = 0; i < known_sessions( ring ); i++ )
        if ( !memcmp( ring->sessions[i].nonce, nonce, NONCE_BYTES ) )
            return &ring->sessions[i];
    return NULL;
}

static struct session_t * add_session( struct keyring_t * ring, const uint8_t * nonce )
{
    struct session_t * session = find_session( ring, nonce );
    if ( session )
        return session;
    session = &ring->sessions[ring->num_sessions++ % MAX_SESSIONS];
    memset( session, 0, sizeof( *session ) );
    memcpy( session->nonce, nonce, NONCE_BYTES );
    return session;
}

static void add_session_keys( struct keyring_t * ring, const uint8_t * nonce, uint64_t protocol_id,
                              const uint8_t * to_server, const uint8_t * to_client )
{
    struct session_t * session = add_session( ring, nonce );
    memcpy( session->keys[TO_SERVER], to_server, NETCODE_KEY_BYTES );
    memcpy( session->keys[TO_CLIENT], to_client, NETCODE_KEY_BYTES );
    session->has_keys[TO_SERVER] = session->has_keys[TO_CLIENT] = session->has_protocol_id = 1;
    session->protocol_id = protocol_id;
}

/* Status EXIT_FINE, and where its keys stand, when the token is sound. */
static int find_token_keys( const uint8_t * token, const uint8_t ** keys )
{
    struct netcode_connect_token_info_t info;
    *keys = netcode_connect_token_info( token, &info ) == NETCODE_OK ? public_keys( token ) : NULL;
    return *keys ? EXIT_FINE : fail_unsound( &info );
}

static int add_token( struct keyring_t * ring, const char * path )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    const uint8_t * keys = NULL;
    int status = read_token_file( path, token );
    if ( status == EXIT_FINE )
        status = find_token_keys( token, &keys );
    if ( keys )
        add_session_keys( ring, token + AT_NONCE, load( token + AT_PROTOCOL_ID, 8 ), keys, keys + NETCODE_KEY_BYTES );
    sodium_memzero( token, sizeof( token ) );
    return status;
}

/* ---- key logs: a label, a token's nonce and a value in each line ---- */

static const char * const keylog_labels[3] = { "NETCODE_CLIENT_TO_SERVER", "NETCODE_SERVER_TO_CLIENT",
                                               "NETCODE_PROTOCOL_ID" };

/* The number of bytes that a word of hex holds, up to `capacity`; -1 when it is none. */
static int parse_hex( const char * text, uint8_t * data, size_t capacity )
{
    size_t bytes = 0;
    const char * end = NULL;
    int good = sodium_hex2bin( data, capacity, text, strlen( text ), NULL, &bytes, &end ) == 0 && *end == '\0';
    return good ? (int) bytes : -1;
}

/* 0 when a line with a label of ours is wrong. Comments, empty lines and other tools' labels are passed over: -1. */
static int parse_keylog_line( struct keyring_t * ring, const char * line )
{
    char label[32], nonce_text[64], value_text[80];
    uint8_t nonce[NONCE_BYTES], value[NETCODE_KEY_BYTES];
    int count = sscanf( line, "%31s %63s %79s", label, nonce_text, value_text ), good = -1;
    for ( int i = 0; count >= 1 && i < 3; i++ ) {
        if ( strcmp( label, keylog_labels[i] ) != 0 )
            continue;
        int bytes = count == 3 ? parse_hex( value_text, value, sizeof( value ) ) : -1;
        good = bytes == ( i < 2 ? NETCODE_KEY_BYTES : 8 ) &&
               parse_hex( nonce_text, nonce, sizeof( nonce ) ) == NONCE_BYTES;
        if ( !good )
            break;
        struct session_t * session = add_session( ring, nonce );
        if ( i < 2 ) {
            memcpy( session->keys[i], value, NETCODE_KEY_BYTES );
            session->has_keys[i] = 1;
        } else {
            session->protocol_id = 0;
            for ( int j = 0; j < 8; j++ )
                session->protocol_id = session->protocol_id << 8 | value[j];
            session->has_protocol_id = 1;
        }
    }
    sodium_memzero( value, sizeof( value ) );
    sodium_memzero( value_text, sizeof( value_text ) );
    return good;
}

static int add_keylog( struct keyring_t * ring, const char * path )
{
    char line[512], number[32];
    unsigned long lines = 0, good_lines = 0;
    int status = EXIT_FINE;
    FILE * file = fopen( path, "rb" );
    if ( !file )
        return fail( EXIT_FAILED, path, strerror( errno ) );
    setvbuf( file, NULL, _IONBF, 0 );
    while ( status == EXIT_FINE && fgets( line, sizeof( line ), file ) ) {
        lines++;
        int good = parse_keylog_line( ring, line );
        good_lines += good > 0;
        if ( !good ) {
            snprintf( number, sizeof( number ), "line %lu", lines );
            fail( EXIT_FAILED, path, number );
            status = fail( EXIT_FAILED, "no key log: a line is LABEL NONCE VALUE; see keylog --help", NULL );
        }
    }
    fclose( file );
    sodium_memzero( line, sizeof( line ) );
    if ( status == EXIT_FINE && lines && !good_lines )
        status = fail( EXIT_FAILED, path, "is no key log: none of its lines is one that netcode-token keylog prints" );
    return status;
}

static int add_private_keys( struct keyring_t * ring, const struct options_t * options )
{
    int found = 0, status = EXIT_FINE;
    for ( int i = 0; status == EXIT_FINE && i < options->num_key_files; i++ )
        status = read_key_file( options->key_files[i], ring->private_keys[ring->num_private_keys++] );
    if ( options->num_key_files || options->num_token_files || options->num_keylog_files )
        return status;
    status = find_key( options, ring->private_keys[0], &found );
    ring->num_private_keys = found;
    return status;
}

static int fill_keyring( struct keyring_t * ring, const struct options_t * options )
{
    int status = add_private_keys( ring, options );
    for ( int i = 0; status == EXIT_FINE && i < options->num_token_files; i++ )
        status = add_token( ring, options->token_files[i] );
    for ( int i = 0; status == EXIT_FINE && i < options->num_keylog_files; i++ )
        status = add_keylog( ring, options->keylog_files[i] );
    return status;
}

/* Where a key log goes: nothing takes an old one's place before there is a line to write. */
struct keylog_t {
    const char * path; /* NULL: standard output */
    FILE * file;
};

static void print_keylog( struct keylog_t * keylog, const struct session_t * session )
{
    if ( !keylog->file )
        keylog->file = keylog->path ? create_private_file( keylog->path, 1 ) : stdout;
    FILE * file = keylog->file;
    if ( !file )
        return;
    char nonce[2 * NONCE_BYTES + 1], key[2 * NETCODE_KEY_BYTES + 1];
    sodium_bin2hex( nonce, sizeof( nonce ), session->nonce, NONCE_BYTES );
    for ( int i = 0; i < WAYS; i++ ) {
        sodium_bin2hex( key, sizeof( key ), session->keys[i], NETCODE_KEY_BYTES );
        fprintf( file, "%s %s %s\n", keylog_labels[i], nonce, key );
    }
    fprintf( file, "%s %s %016llx\n", keylog_labels[2], nonce, (unsigned long long) session->protocol_id );
    sodium_memzero( key, sizeof( key ) );
}

/*  Opens a request's private part with each key, and remembers what it holds. NETCODE_DROP_NONE, or why a server would
    refuse it. */
static int open_request( struct keyring_t * ring, const nc_request_t * request, uint64_t protocol_id,
                         nc_private_token_t * token )
{
    uint8_t plain[NC_PRIVATE_TOKEN_BYTES];
    nc_token_seal_t how = { protocol_id, request->expire_timestamp, request->nonce, NULL };
    int reason = NETCODE_DROP_TOKEN_NOT_AUTHENTIC;
    for ( int i = 0; reason == NETCODE_DROP_TOKEN_NOT_AUTHENTIC && i < ring->num_private_keys; i++ ) {
        how.key = ring->private_keys[i];
        if ( nc_token_open_private( plain, request->sealed_private, &how ) )
            reason = nc_token_read_private( plain, token ) ? NETCODE_DROP_NONE : NETCODE_DROP_TOKEN_MALFORMED;
    }
    if ( reason == NETCODE_DROP_NONE )
        add_session_keys( ring, request->nonce, protocol_id, token->route.client_to_server_key,
                          token->route.server_to_client_key );
    sodium_memzero( plain, sizeof( plain ) );
    return reason;
}

/* ---- decrypt ---- */

/* A token that a connection uses: its keys, and what each way has received under them. */
struct use_t {
    struct session_t session;
    nc_replay_t replay[WAYS];
    int is_replay_started[WAYS];
    int has_opened; /* a packet */
};

struct connection_t {
    struct capture_address_t client, server; /* before is_sided, in the order in which they were seen */
    int is_sided;                            /* which of them is the client is known */
    int is_netcode;                          /* a request was seen, or a key opened something */
    int is_proven;                           /* a key opened something */
    int probes;
    uint64_t last_packet;
    int num_uses;
    struct use_t uses[CONNECTION_SESSIONS]; /* the newest is first */
};

struct decrypt_t {
    const struct options_t * options;
    struct keylog_t * keylog; /* keylog --capture: where keys go, in place of everything else */
    struct capture_t capture;
    struct keyring_t ring;
    int num_connections;
    struct connection_t connections[MAX_CONNECTIONS];
    uint64_t first_seconds;
    uint32_t first_nanoseconds;
    uint64_t probe_budget;
    uint64_t left_out[CAPTURE_KINDS]; /* by what capture_next said */
    uint64_t others;                  /* UDP that is not netcode */
    uint64_t opened, sealed, requests, opened_requests, given_way;
    uint64_t refused[NETCODE_DROP_REASONS];
    uint32_t unknown_link;
};

/* The packet at hand, on its way through. */
struct reading_t {
    const struct capture_packet_t * packet;
    struct connection_t * connection;
    int way;
    int part, parts; /* of one large send */
    nc_packet_t header;
    uint8_t plain[NC_MAX_DATAGRAM_BYTES];
};

static int is_same_address( const struct capture_address_t * a, const struct capture_address_t * b )
{
    return a->port == b->port && a->ip_bytes == b->ip_bytes && !memcmp( a->ip, b->ip, sizeof( a->ip ) );
}

static struct connection_t * find_connection( struct decrypt_t * decrypt, const struct capture_packet_t * packet )
{
    for ( int i = 0; i < decrypt->num_connections; i++ ) {
        struct connection_t * it = &decrypt->connections[i];
        if ( ( is_same_address( &it->client, &packet->from ) && is_same_address( &it->server, &packet->to ) ) ||
             ( is_same_address( &it->client, &packet->to ) && is_same_address( &it->server, &packet->from ) ) )
            return it;
    }
    return NULL;
}

/* What no key ever opened gives way first, then what was silent for longest. */
static int goes_first( const struct connection_t * a, const struct connection_t * b )
{
    return a->is_netcode != b->is_netcode ? b->is_netcode : a->last_packet < b->last_packet;
}

static struct connection_t * add_connection( struct decrypt_t * decrypt, const struct capture_packet_t * packet )
{
    struct connection_t * it = &decrypt->connections[0];
    if ( decrypt->num_connections < MAX_CONNECTIONS ) {
        it = &decrypt->connections[decrypt->num_connections++];
    } else {
        for ( int i = 1; i < MAX_CONNECTIONS; i++ )
            if ( goes_first( &decrypt->connections[i], it ) )
                it = &decrypt->connections[i];
        decrypt->given_way += (uint64_t) it->is_netcode;
    }
    memset( it, 0, sizeof( *it ) );
    it->client = packet->from;
    it->server = packet->to;
    return it;
}

static void set_sides( struct connection_t * connection, const struct capture_packet_t * packet, int way )
{
    connection->client = way == TO_SERVER ? packet->from : packet->to;
    connection->server = way == TO_SERVER ? packet->to : packet->from;
    connection->is_sided = 1;
}

/* Anyone can replay requests from another client's address: a token that never opened a packet is evicted first. */
static void add_use( struct connection_t * connection, const struct session_t * session )
{
    for ( int i = 0; i < connection->num_uses; i++ )
        if ( !memcmp( connection->uses[i].session.nonce, session->nonce, NONCE_BYTES ) )
            return;
    int last = connection->num_uses < CONNECTION_SESSIONS ? connection->num_uses++ : CONNECTION_SESSIONS - 1;
    int place = last;
    while ( place > 0 && connection->uses[place].has_opened )
        place--;
    if ( connection->uses[place].has_opened )
        place = last;
    memmove( &connection->uses[1], &connection->uses[0], (size_t) place * sizeof( struct use_t ) );
    memset( &connection->uses[0], 0, sizeof( struct use_t ) );
    connection->uses[0].session = *session;
}

/* ---- lines ---- */

#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: this table needs it"
#endif
static const char * const type_names[NETCODE_PACKET_TYPES] = { "REQUEST",    "DENIED",  "CHALLENGE", "RESPONSE",
                                                               "KEEP_ALIVE", "PAYLOAD", "DISCONNECT" };

static const char * address_text( const struct capture_address_t * from, char * text )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = from->ip_bytes == 4 ? NETCODE_ADDRESS_IPV4 : NETCODE_ADDRESS_IPV6;
    address.port = from->port;
    if ( from->ip_bytes == 4 )
        memcpy( address.data.ipv4, from->ip, 4 );
    for ( int i = 0; from->ip_bytes == 16 && i < 8; i++ )
        address.data.ipv6[i] = (uint16_t) ( from->ip[2 * i] << 8 | from->ip[2 * i + 1] );
    return netcode_address_to_string( &address, text );
}

static void print_number_and_time( const struct decrypt_t * decrypt, const struct capture_packet_t * packet )
{
    double passed = (double) (int64_t) ( packet->seconds - decrypt->first_seconds ) +
                    1e-9 * ( (double) packet->nanoseconds - (double) decrypt->first_nanoseconds );
    printf( "%llu %.6f ", (unsigned long long) packet->number, passed );
}

static void print_start( const struct decrypt_t * decrypt, const struct reading_t * reading, const char * type )
{
    static const char * const ways[WAYS] = { "to_server", "to_client" };
    char from[NETCODE_MAX_ADDRESS_STRING_LENGTH], to[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    print_number_and_time( decrypt, reading->packet );
    printf( "%s > %s %s %s ", address_text( &reading->packet->from, from ), address_text( &reading->packet->to, to ),
            reading->connection->is_sided ? ways[reading->way] : "either_way", type );
    if ( reading->parts )
        printf( "part=%d/%d ", reading->part, reading->parts );
}

static void print_refusal( struct decrypt_t * decrypt, const struct reading_t * reading, const char * type, int reason )
{
    decrypt->refused[reason]++;
    if ( decrypt->keylog )
        return;
    print_start( decrypt, reading, type );
    if ( reading->header.header_bytes )
        printf( "sequence=%llu ", (unsigned long long) reading->header.sequence );
    printf( "bytes=%llu refused=%s (%s)\n", (unsigned long long) reading->packet->bytes,
            netcode_drop_reason_name( reason ), netcode_drop_reason_text( reason ) );
}

/* Text in quotes, whatever the other side sent: nothing in it reaches a terminal as a command. */
static void print_text( const uint8_t * data, size_t bytes )
{
    printf( "\"" );
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( data[i] < 32 || data[i] > 126 || data[i] == '"' || data[i] == '\\' )
            printf( "\\x%02x", data[i] );
        else
            printf( "%c", data[i] );
    }
    printf( "\"" );
}

static void print_body( const struct decrypt_t * decrypt, const struct reading_t * reading )
{
    const uint8_t * body = reading->plain;
    size_t bytes = (size_t) reading->header.body_bytes;
    switch ( reading->header.type ) {
    case NETCODE_PACKET_CHALLENGE:
    case NETCODE_PACKET_RESPONSE: printf( " challenge_sequence=%llu", (unsigned long long) load( body, 8 ) ); break;
    case NETCODE_PACKET_KEEP_ALIVE:
        if ( body[7] & 0x80 ) /* no count of clients has it: a probe, or one that comes back */
            printf( " probe=0x%016llx", (unsigned long long) load( body, 8 ) );
        else
            printf( " client_index=%lu max_clients=%lu", (unsigned long) load( body, 4 ),
                    (unsigned long) load( body + 4, 4 ) );
        break;
    case NETCODE_PACKET_PAYLOAD:
        printf( " payload_bytes=%llu", (unsigned long long) bytes );
        if ( decrypt->options->payload == PAYLOAD_HEX ) {
            printf( " payload=" );
            print_hex( body, bytes );
        } else if ( decrypt->options->payload == PAYLOAD_TEXT ) {
            printf( " payload=" );
            print_text( body, bytes );
        }
        break;
    default: break;
    }
}

/* ---- sealed packets ---- */

/*  The window opens at the first packet that proves authentic: at the response where the capture has it, which is where
    the server's does; else, since it began in the middle, as far back as it reaches. Returns a drop reason. */
static int judge_replay( struct use_t * use, int way, const nc_packet_t * header )
{
    nc_replay_t * replay = &use->replay[way];
    int is_protected = header->type >= NETCODE_PACKET_KEEP_ALIVE; /* payloads and disconnects, too */
    if ( header->type == NETCODE_PACKET_RESPONSE && !use->is_replay_started[way] ) {
        nc_replay_init( replay, header->sequence );
        use->is_replay_started[way] = 1;
    }
    if ( !is_protected )
        return NETCODE_DROP_NONE;
    if ( !use->is_replay_started[way] ) {
        nc_replay_init( replay, header->sequence > NC_REPLAY_WINDOW ? header->sequence - NC_REPLAY_WINDOW : 0 );
        use->is_replay_started[way] = 1;
        nc_replay_advance( replay, header->sequence );
        return NETCODE_DROP_NONE;
    }
    int reason = nc_replay_seen( replay, header->sequence );
    if ( reason == NETCODE_DROP_NONE )
        nc_replay_advance( replay, header->sequence );
    return reason;
}

static int open_with( struct decrypt_t * decrypt, struct reading_t * reading, const struct session_t * session )
{
    nc_packet_context_t context = { session->keys[reading->way],
                                    session->has_protocol_id ? session->protocol_id : decrypt->options->protocol_id };
    return session->has_keys[reading->way] &&
           nc_packet_open( &reading->header, reading->packet->data, reading->plain, &context );
}

static int parse_sealed( struct reading_t * reading )
{
    size_t bytes = reading->packet->bytes;
    if ( bytes == 0 )
        return NETCODE_DROP_EMPTY_DATAGRAM;
    if ( bytes > NC_MAX_DATAGRAM_BYTES )
        return NETCODE_DROP_OVERSIZED_DATAGRAM;
    return nc_packet_parse( &reading->header, reading->packet->data, (int) bytes,
                            reading->way == TO_SERVER ? NC_TO_SERVER : NC_TO_CLIENT );
}

/* The use whose key opens the packet, or NULL. */
static struct use_t * open_sealed( struct decrypt_t * decrypt, struct reading_t * reading )
{
    struct connection_t * connection = reading->connection;
    for ( int i = 0; i < connection->num_uses; i++ )
        if ( open_with( decrypt, reading, &connection->uses[i].session ) )
            return &connection->uses[i];
    return NULL;
}

static int has_key( const struct connection_t * connection, int way )
{
    int count = 0;
    for ( int i = 0; i < connection->num_uses; i++ )
        count += connection->uses[i].session.has_keys[way];
    return count > 0;
}

static void read_sealed_one( struct decrypt_t * decrypt, struct reading_t * reading )
{
    int reason = parse_sealed( reading );
    if ( reason != NETCODE_DROP_NONE ) {
        int type = reading->packet->bytes ? reading->packet->data[0] & 15 : NETCODE_PACKET_TYPES;
        print_refusal( decrypt, reading, type < NETCODE_PACKET_TYPES ? type_names[type] : "UNKNOWN", reason );
        return;
    }
    const char * name = type_names[reading->header.type];
    struct use_t * use = open_sealed( decrypt, reading );
    if ( !use && has_key( reading->connection, reading->way ) ) {
        print_refusal( decrypt, reading, name, NETCODE_DROP_AUTHENTICATION_FAILED );
        return;
    }
    reason = use ? judge_replay( use, reading->way, &reading->header ) : NETCODE_DROP_NONE;
    if ( reason != NETCODE_DROP_NONE ) {
        print_refusal( decrypt, reading, name, reason );
        return;
    }
    decrypt->opened += use != NULL;
    decrypt->sealed += use == NULL;
    if ( use )
        use->has_opened = reading->connection->is_proven = 1;
    if ( decrypt->keylog )
        return;
    print_start( decrypt, reading, name );
    printf( "sequence=%llu bytes=%llu %s", (unsigned long long) reading->header.sequence,
            (unsigned long long) reading->packet->bytes, use ? "ok" : "sealed" );
    if ( use )
        print_body( decrypt, reading );
    printf( "\n" );
}

/*  With batch_sends, several packets leave a Linux machine as one send, which its system cuts into pieces of one size
    (the last may be shorter). A capture there sees what was not cut yet. The size is nowhere in it, but each packet's
    sequence is one more than the one before it. 0 when that is so for no size. */
static size_t find_pieces( const uint8_t * data, size_t bytes )
{
    for ( size_t size = NC_MIN_SEALED_BYTES; size < bytes && size <= NC_MAX_DATAGRAM_BYTES; size++ ) {
        nc_packet_t first, next;
        size_t at = 0;
        int good = nc_packet_parse( &first, data, (int) size, NC_TO_SERVER ) == NETCODE_DROP_NONE;
        while ( good && ( at += size ) < bytes ) {
            size_t some = bytes - at < size ? bytes - at : size;
            good = nc_packet_parse( &next, data + at, (int) some, NC_TO_SERVER ) == NETCODE_DROP_NONE &&
                   next.sequence == first.sequence + at / size;
        }
        if ( good )
            return size;
    }
    return 0;
}

/* The packet itself for a moment, when it is made of `size` bytes of the datagram. */
static int opens_as( struct decrypt_t * decrypt, struct reading_t * reading, size_t size )
{
    struct capture_packet_t piece = *reading->packet;
    const struct capture_packet_t * whole = reading->packet;
    piece.bytes = size;
    reading->packet = &piece;
    int good = parse_sealed( reading ) == NETCODE_DROP_NONE && open_sealed( decrypt, reading );
    reading->packet = whole;
    memset( &reading->header, 0, sizeof( reading->header ) );
    return good;
}

/* 0: it is one packet. Whatever opens as one is one; without a key, only what is too large for one is none. */
static size_t piece_bytes( struct decrypt_t * decrypt, struct reading_t * reading )
{
    size_t bytes = reading->packet->bytes, size = find_pieces( reading->packet->data, bytes );
    if ( !size || !reading->connection->is_sided )
        return 0;
    if ( has_key( reading->connection, reading->way ) )
        return !opens_as( decrypt, reading, bytes ) && opens_as( decrypt, reading, size ) ? size : 0;
    return bytes > NC_MAX_DATAGRAM_BYTES ? size : 0;
}

static void read_sealed( struct decrypt_t * decrypt, struct reading_t * reading )
{
    const struct capture_packet_t * whole = reading->packet;
    struct capture_packet_t piece = *whole;
    size_t size = piece_bytes( decrypt, reading );
    reading->parts = size ? (int) ( ( whole->bytes + size - 1 ) / size ) : 0;
    for ( size_t at = 0; at < whole->bytes || at == 0; at += piece.bytes ) {
        piece.data = whole->data + at;
        piece.bytes = size && size < whole->bytes - at ? size : whole->bytes - at;
        reading->packet = &piece;
        reading->part++;
        memset( &reading->header, 0, sizeof( reading->header ) );
        read_sealed_one( decrypt, reading );
        if ( !piece.bytes )
            break;
    }
    reading->packet = whole;
}

/* ---- requests ---- */

static void print_request( const struct decrypt_t * decrypt, const struct reading_t * reading,
                           const nc_request_t * request, const nc_private_token_t * token )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    print_start( decrypt, reading, "REQUEST" );
    printf( "bytes=%llu %s protocol_id=0x%016llx expire=%llu nonce=", (unsigned long long) reading->packet->bytes,
            token                           ? "ok"
            : reading->connection->num_uses ? "private_part_sealed"
                                            : "sealed",
            (unsigned long long) load( reading->packet->data + 14, 8 ),
            (unsigned long long) request->expire_timestamp );
    print_hex( request->nonce, NONCE_BYTES );
    if ( token ) {
        printf( " client_id=%llu timeout=%d servers=", (unsigned long long) token->client_id,
                (int) token->route.timeout_seconds );
        for ( int i = 0; i < token->route.num_addresses; i++ )
            printf( "%s%s", i ? "," : "", netcode_address_to_string( &token->route.addresses[i], text ) );
    }
    printf( "\n" );
}

/* The steps of a server that need no state of its own. Standard: Processing Connection Requests */
static int judge_request( struct decrypt_t * decrypt, const struct reading_t * reading, nc_request_t * request,
                          nc_private_token_t * token, int * has_token )
{
    const struct capture_packet_t * packet = reading->packet;
    uint64_t protocol_id = packet->bytes >= 22 ? load( packet->data + 14, 8 ) : 0;
    uint64_t wanted = decrypt->options->have_protocol_id ? decrypt->options->protocol_id : protocol_id;
    if ( packet->bytes > NC_MAX_DATAGRAM_BYTES )
        return NETCODE_DROP_OVERSIZED_DATAGRAM;
    int reason = nc_packet_parse_request( request, packet->data, (int) packet->bytes, wanted );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    struct session_t * session = find_session( &decrypt->ring, request->nonce );
    int is_new = !session;
    if ( decrypt->ring.num_private_keys ) {
        reason = open_request( &decrypt->ring, request, protocol_id, token );
        *has_token = reason == NETCODE_DROP_NONE;
        session = *has_token ? find_session( &decrypt->ring, request->nonce ) : session;
    }
    if ( decrypt->keylog && *has_token && is_new && session )
        print_keylog( decrypt->keylog, session );
    if ( session && !session->has_protocol_id ) {
        session->protocol_id = protocol_id;
        session->has_protocol_id = 1;
    }
    if ( session )
        add_use( reading->connection, session );
    return reason == NETCODE_DROP_NONE && request->expire_timestamp <= packet->seconds ? NETCODE_DROP_TOKEN_EXPIRED
                                                                                       : reason;
}

static void read_request( struct decrypt_t * decrypt, struct reading_t * reading )
{
    nc_request_t request;
    nc_private_token_t token;
    int has_token = 0;
    memset( &token, 0, sizeof( token ) );
    int reason = judge_request( decrypt, reading, &request, &token, &has_token );
    if ( reason != NETCODE_DROP_NONE ) {
        print_refusal( decrypt, reading, "REQUEST", reason );
    } else {
        decrypt->requests++;
        decrypt->opened_requests += (uint64_t) has_token;
        if ( !decrypt->keylog )
            print_request( decrypt, reading, &request, has_token ? &token : NULL );
    }
    sodium_memzero( &token, sizeof( token ) );
}

/* ---- from datagrams to packets ---- */

static int is_request( const struct capture_packet_t * packet )
{
    return packet->bytes >= 14 && packet->data[0] == NETCODE_PACKET_REQUEST &&
           !memcmp( packet->data + 1, "NETCODE 1.", 10 );
}

/*  A connection whose request was not captured: tries the packet with every key that is known, both ways. Work that a
    hostile capture can ask for is limited twice. */
static int probe( struct decrypt_t * decrypt, struct reading_t * reading )
{
    struct keyring_t * ring = &decrypt->ring;
    struct connection_t * connection = reading->connection;
    int tried = 0;
    if ( connection->probes >= MAX_PROBES )
        return 0;
    for ( reading->way = 0; reading->way < WAYS; reading->way++ ) {
        if ( parse_sealed( reading ) != NETCODE_DROP_NONE )
            continue;
        connection->probes += !tried;
        tried = 1;
        for ( int i = 0; i < known_sessions( ring ) && decrypt->probe_budget; i++ ) {
            decrypt->probe_budget--;
            if ( !open_with( decrypt, reading, &ring->sessions[i] ) )
                continue;
            set_sides( connection, reading->packet, reading->way );
            add_use( connection, &ring->sessions[i] );
            return 1;
        }
    }
    return 0;
}

/* Where the port says which side is the server's, and the packets themselves do not. */
static void assume_sides( const struct decrypt_t * decrypt, struct reading_t * reading )
{
    int port = decrypt->options->port;
    int to = reading->packet->to.port == port, from = reading->packet->from.port == port;
    if ( to != from )
        set_sides( reading->connection, reading->packet, to ? TO_SERVER : TO_CLIENT );
}

/* Which connection, which way, and whether it is netcode at all. */
static int place_packet( struct decrypt_t * decrypt, struct reading_t * reading )
{
    const struct capture_packet_t * packet = reading->packet;
    int is_port = decrypt->options->port &&
                  ( packet->to.port == decrypt->options->port || packet->from.port == decrypt->options->port );
    struct connection_t * connection = find_connection( decrypt, packet );
    reading->connection = connection = connection ? connection : add_connection( decrypt, packet );
    connection->last_packet = packet->number;
    if ( !connection->is_proven && is_request( packet ) ) /* it may be forged: the latest one counts until then */
        set_sides( connection, packet, TO_SERVER );
    if ( !connection->is_sided && is_port )
        assume_sides( decrypt, reading );
    if ( !connection->num_uses && !is_request( packet ) )
        connection->is_netcode |= probe( decrypt, reading );
    connection->is_netcode |= is_request( packet ) || is_port;
    reading->way = is_same_address( &connection->client, &packet->from ) ? TO_SERVER : TO_CLIENT;
    memset( &reading->header, 0, sizeof( reading->header ) );
    return connection->is_netcode;
}

static void read_datagram( struct decrypt_t * decrypt, const struct capture_packet_t * packet )
{
    static struct reading_t reading;
    memset( &reading, 0, sizeof( reading ) );
    reading.packet = packet;
    if ( !place_packet( decrypt, &reading ) )
        decrypt->others++;
    else if ( packet->from.port == 0 )
        print_refusal( decrypt, &reading, "UNKNOWN", NETCODE_DROP_SOURCE_PORT_ZERO );
    else if ( packet->bytes && packet->data[0] == NETCODE_PACKET_REQUEST && reading.way == TO_SERVER )
        read_request( decrypt, &reading );
    else
        read_sealed( decrypt, &reading );
    sodium_memzero( reading.plain, sizeof( reading.plain ) );
}

static void leave_out( struct decrypt_t * decrypt, const struct capture_packet_t * packet, int kind )
{
    if ( decrypt->keylog || kind == CAPTURE_OTHER || kind == CAPTURE_LINK || decrypt->left_out[kind] > MAX_NAMED )
        return;
    print_number_and_time( decrypt, packet );
    printf( "left out: %s\n", capture_kind_name( kind ) );
}

static void print_summary( const struct decrypt_t * decrypt )
{
    uint64_t refused = 0;
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        refused += decrypt->refused[i];
    printf( "# netcode: %llu packets: %llu requests (%llu opened), %llu opened, "
            "%llu sealed (no key), %llu refused\n",
            (unsigned long long) ( decrypt->requests + decrypt->opened + decrypt->sealed + refused ),
            (unsigned long long) decrypt->requests, (unsigned long long) decrypt->opened_requests,
            (unsigned long long) decrypt->opened, (unsigned long long) decrypt->sealed, (unsigned long long) refused );
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        if ( decrypt->refused[i] )
            printf( "# refused: %s %llu\n", netcode_drop_reason_name( i ), (unsigned long long) decrypt->refused[i] );
    for ( int i = CAPTURE_FRAGMENT; i < CAPTURE_KINDS; i++ )
        if ( decrypt->left_out[i] )
            printf( "# left out: %s %llu\n", capture_kind_name( i ), (unsigned long long) decrypt->left_out[i] );
    if ( decrypt->others )
        printf( "# left out: UDP that is not netcode, or of which no key is known %llu\n",
                (unsigned long long) decrypt->others );
    if ( decrypt->given_way )
        printf( "# more than %d connections: %llu were forgotten\n", MAX_CONNECTIONS,
                (unsigned long long) decrypt->given_way );
    if ( decrypt->ring.num_sessions > MAX_SESSIONS )
        printf( "# more than %d tokens: %llu were forgotten\n", MAX_SESSIONS,
                (unsigned long long) ( decrypt->ring.num_sessions - MAX_SESSIONS ) );
    if ( !decrypt->probe_budget )
        printf( "# too many packets of unknown connections: the last were not tried with every key\n" );
}

static int read_capture( struct decrypt_t * decrypt, const char * path )
{
    struct capture_packet_t packet;
    int kind;
    while ( ( kind = capture_next( &decrypt->capture, &packet ) ) > CAPTURE_END ) {
        if ( packet.number == 1 ) {
            decrypt->first_seconds = packet.seconds;
            decrypt->first_nanoseconds = packet.nanoseconds;
        }
        decrypt->left_out[kind]++;
        if ( kind == CAPTURE_UDP )
            read_datagram( decrypt, &packet );
        else
            leave_out( decrypt, &packet, kind );
    }
    fflush( stdout ); /* before the words on standard error */
    return kind == CAPTURE_BROKEN ? fail( EXIT_FAILED, path, decrypt->capture.why ) : EXIT_FINE;
}

/* With everything in `decrypt` set up but the keys and the capture. */
static int run_decrypt( struct decrypt_t * decrypt, const char * path )
{
    int status = fill_keyring( &decrypt->ring, decrypt->options );
    if ( status != EXIT_FINE )
        return status;
    FILE * file = strcmp( path, "-" ) ? fopen( path, "rb" ) : stdin;
    if ( !file )
        return fail( EXIT_FAILED, path, strerror( errno ) );
    set_binary( file );
    decrypt->probe_budget = PROBE_BUDGET;
    status = capture_open( &decrypt->capture, file ) ? read_capture( decrypt, path )
                                                     : fail( EXIT_FAILED, path, "is no capture (pcap or pcapng)" );
    if ( file != stdin )
        fclose( file );
    return status;
}

static int command_decrypt( struct options_t * options )
{
    static struct decrypt_t decrypt;
    if ( options->num_names != 1 )
        return fail( EXIT_USAGE, "decrypt wants one capture; see --help", NULL );
    decrypt.options = options;
    int status = run_decrypt( &decrypt, options->names[0] );
    if ( decrypt.capture.packets )
        print_summary( &decrypt );
    int tried = decrypt.sealed || decrypt.requests || decrypt.refused[NETCODE_DROP_AUTHENTICATION_FAILED] ||
                decrypt.refused[NETCODE_DROP_TOKEN_NOT_AUTHENTIC];
    if ( status == EXIT_FINE && tried && !decrypt.opened && !decrypt.opened_requests )
        status = EXIT_NOT_OPENED;
    if ( fflush( stdout ) != 0 || ferror( stdout ) )
        status = fail( EXIT_FAILED, "standard output", strerror( errno ) );
    sodium_memzero( &decrypt, sizeof( decrypt ) );
    return status;
}

/* ---- keylog ---- */

static int keylog_of_capture( const struct options_t * options, struct keylog_t * keylog )
{
    static struct decrypt_t decrypt;
    decrypt.options = options;
    decrypt.keylog = keylog;
    int status = run_decrypt( &decrypt, options->capture );
    if ( status == EXIT_FINE && !decrypt.ring.num_private_keys )
        status =
            fail( EXIT_USAGE, "keylog --capture wants --key-file or NETCODE_PRIVATE_KEY in the environment", NULL );
    if ( status == EXIT_FINE && !decrypt.ring.num_sessions )
        status = fail( EXIT_NOT_OPENED, "the key opens no connection request of this capture", NULL );
    sodium_memzero( &decrypt, sizeof( decrypt ) );
    return status;
}

static int keylog_of_token( const struct options_t * options, struct keylog_t * keylog )
{
    static struct keyring_t ring;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    const uint8_t * keys = NULL;
    int status = read_token( options, token );
    if ( status == EXIT_FINE )
        status = find_token_keys( token, &keys );
    if ( keys ) {
        add_session_keys( &ring, token + AT_NONCE, load( token + AT_PROTOCOL_ID, 8 ), keys, keys + NETCODE_KEY_BYTES );
        print_keylog( keylog, &ring.sessions[0] );
    }
    sodium_memzero( token, sizeof( token ) );
    sodium_memzero( &ring, sizeof( ring ) );
    return status;
}

static int command_keylog( struct options_t * options )
{
    struct keylog_t keylog = { options->output, NULL };
    if ( options->num_token_files || options->num_keylog_files ||
         ( options->capture ? options->num_names : options->num_key_files ) )
        return fail( EXIT_USAGE, "keylog takes one token, or --capture FILE and --key-file FILE; see --help", NULL );
    int status = options->capture ? keylog_of_capture( options, &keylog ) : keylog_of_token( options, &keylog );
    int good = keylog.file && !ferror( keylog.file ) && fflush( keylog.file ) == 0;
    if ( keylog.file && options->output )
        good = fclose( keylog.file ) == 0 && good;
    if ( status == EXIT_FINE && !good )
        status = fail( EXIT_FAILED, options->output ? options->output : "standard output", strerror( errno ) );
    return status;
}

/* ---- options ---- */

static int parse_format( const char * name, struct options_t * options )
{
    static const char * const names[4] = { "hex", "raw", "base64", "json" };
    for ( int i = 0; i < 4; i++ ) {
        if ( !strcmp( name, names[i] ) ) {
            options->format = FORMAT_HEX + i;
            return 1;
        }
    }
    return 0;
}

static int parse_user_data( const char * value, int hex, struct options_t * options )
{
    size_t bytes = 0;
    const char * end = NULL;
    memset( options->user_data, 0, sizeof( options->user_data ) );
    if ( hex )
        return sodium_hex2bin( options->user_data, NETCODE_USER_DATA_BYTES, value, strlen( value ), NULL, &bytes,
                               &end ) == 0 &&
               *end == '\0';
    if ( strlen( value ) > NETCODE_USER_DATA_BYTES )
        return 0;
    memcpy( options->user_data, value, strlen( value ) );
    return 1;
}

/* Another file of its kind; 0 when there are too many. */
static int add_file( const char * path, const char ** files, int * count, int most )
{
    if ( *count == most )
        return 0;
    files[( *count )++] = path;
    return 1;
}

static int parse_key_file( const char * path, struct options_t * options )
{
    options->key_file = path;
    return add_file( path, options->key_files, &options->num_key_files, MAX_PRIVATE_KEYS );
}

static int parse_port( const char * value, struct options_t * options )
{
    uint64_t port = 0;
    options->port = parse_u64( value, &port ) && port <= 65535 ? (int) port : 0;
    return options->port != 0;
}

static int parse_payload( const char * value, struct options_t * options )
{
    options->payload = !strcmp( value, "hex" ) ? PAYLOAD_HEX : !strcmp( value, "text" ) ? PAYLOAD_TEXT : PAYLOAD_HIDDEN;
    return options->payload != PAYLOAD_HIDDEN;
}

static int parse_protocol_id( const char * value, struct options_t * options )
{
    options->have_protocol_id = 1;
    return parse_u64( value, &options->protocol_id );
}

static int parse_client_id( const char * value, struct options_t * options )
{
    options->have_client_id = 1;
    return parse_u64( value, &options->client_id );
}

/* Those of keylog and decrypt. */
static int parse_capture_value( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--token" ) )
        return add_file( value, options->token_files, &options->num_token_files, MAX_TOKEN_FILES );
    if ( !strcmp( name, "--keylog" ) )
        return add_file( value, options->keylog_files, &options->num_keylog_files, MAX_KEYLOG_FILES );
    if ( !strcmp( name, "--payload" ) )
        return parse_payload( value, options );
    if ( !strcmp( name, "--port" ) )
        return parse_port( value, options );
    if ( strcmp( name, "--capture" ) != 0 )
        return 0;
    options->capture = value;
    return 1;
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_network_order( const char * value, struct options_t * options )
{
    int last = !strcmp( value, "last" );
    options->network_order = last ? NETWORK_ORDER_LAST : NETWORK_ORDER_FIRST;
    return last || !strcmp( value, "first" );
}

static int parse_value( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--key-file" ) )
        return parse_key_file( value, options );
    else if ( !strcmp( name, "--output" ) )
        options->output = value;
    else if ( !strcmp( name, "--format" ) )
        return parse_format( value, options );
    else if ( !strcmp( name, "--client-id" ) )
        return parse_client_id( value, options );
    else if ( !strcmp( name, "--protocol-id" ) )
        return parse_protocol_id( value, options );
    else if ( !strcmp( name, "--expire" ) )
        return parse_seconds( value, &options->expire_seconds );
    else if ( !strcmp( name, "--timeout" ) )
        return parse_seconds( value, &options->timeout_seconds );
    else if ( !strcmp( name, "--network-order" ) )
        return parse_network_order( value, options );
    else if ( !strcmp( name, "--user-data" ) )
        return parse_user_data( value, 0, options );
    else if ( !strcmp( name, "--user-data-hex" ) )
        return parse_user_data( value, 1, options );
    else
        return parse_capture_value( name, value, options );
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->protocol_id = DEFAULT_PROTOCOL_ID;
    options->expire_seconds = DEFAULT_EXPIRE_SECONDS;
    options->timeout_seconds = DEFAULT_TIMEOUT_SECONDS;
    for ( int i = 2; i < argc; i++ ) {
        if ( argv[i][0] != '-' || !strcmp( argv[i], "-" ) ) {
            if ( options->num_names == NETCODE_MAX_SERVERS_PER_CONNECT )
                return fail( EXIT_USAGE, "a token has up to 32 addresses", NULL );
            options->names[options->num_names++] = argv[i];
        } else if ( i + 1 < argc && parse_value( argv[i], argv[i + 1], options ) ) {
            i++;
        } else {
            return fail( EXIT_USAGE, argv[i], "is no option, or its value is missing or wrong; see --help" );
        }
    }
    return EXIT_FINE;
}

struct command_t {
    const char * name;
    void ( *help )( void );
    int ( *run )( struct options_t * options );
};

static int run_command( const struct command_t * command, int argc, char ** argv )
{
    struct options_t options;
    if ( argc > 2 && !strcmp( argv[2], "--help" ) ) {
        command->help();
        return EXIT_FINE;
    }
    int status = parse_options( argc, argv, &options );
    if ( status != EXIT_FINE )
        return status;
    if ( netcode_init() != NETCODE_OK )
        return fail( EXIT_FAILED, "netcode_init failed", NULL );
    status = command->run( &options );
    netcode_term();
    return status;
}

int main( int argc, char ** argv )
{
    static const struct command_t commands[] = { { "keygen", help_keygen, command_keygen },
                                                 { "mint", help_mint, command_mint },
                                                 { "inspect", help_inspect, command_inspect },
                                                 { "keylog", help_keylog, command_keylog },
                                                 { "decrypt", help_decrypt, command_decrypt } };
    if ( argc > 1 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return EXIT_FINE;
    }
    for ( size_t i = 0; argc > 1 && i < sizeof( commands ) / sizeof( commands[0] ); i++ ) {
        if ( !strcmp( argv[1], commands[i].name ) )
            return run_command( &commands[i], argc, argv );
    }
    return fail( EXIT_USAGE, "give a command: keygen, mint, inspect, keylog or decrypt; --help says more", NULL );
}
