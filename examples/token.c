/*  netcode-token: makes private keys and connect tokens, and shows what is in them. A web backend in any language
    can call it and pass the JSON that it prints on to the player.

        cc examples/token.c -lsodium -o netcode-token
        ./netcode-token keygen --output game.key
        ./netcode-token mint --key-file game.key --client-id 1001 --format json 203.0.113.5:40000 > token.json
        ./netcode-token inspect --key-file game.key token.json

    The private key never goes on the command line, where everyone on the machine could read it. */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

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

struct options_t {
    const char * key_file;
    const char * output;
    int format;
    uint64_t protocol_id;
    uint64_t client_id;
    int have_client_id;
    int expire_seconds;
    int timeout_seconds;
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
    printf( "usage: netcode-token keylog [TOKEN_FILE]\n"
            "\n"
            "Prints the two keys of the session that a token makes, for tools that decrypt captures. Who has them can "
            "read\n"
            "and forge the session. Each line, in hex: label, the token's nonce (a capture has it in the clear, bytes "
            "30 to\n"
            "53 of the connection request), key.\n"
            "\n"
            "  NETCODE_CLIENT_TO_SERVER <48 digits> <64 digits>\n"
            "  NETCODE_SERVER_TO_CLIENT <48 digits> <64 digits>\n" );
}

static void print_help( void )
{
    printf( "usage: netcode-token COMMAND [options]; netcode-token COMMAND --help says more\n"
            "\n"
            "  keygen     makes a private key\n"
            "  mint       makes a connect token\n"
            "  inspect    shows what is in a token\n"
            "  keylog     prints a token's session keys, for capture tools\n"
            "\n"
            "Exit status: %d fine, %d it could not be done (files, keys, addresses), %d wrong usage, %d no connect "
            "token was\n"
            "found in the input, or a client would refuse it, %d the key does not open the token's private part.\n",
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

/* Hex or base64 in text, or the 32 bytes themselves. 0 when it is none of these. */
static int parse_key( const char * data, size_t bytes, uint8_t key[NETCODE_KEY_BYTES] )
{
    size_t key_bytes = 0;
    const char * end = NULL;
    if ( bytes == NETCODE_KEY_BYTES ) {
        memcpy( key, data, NETCODE_KEY_BYTES );
        return 1;
    }
    while ( bytes && strchr( " \t\r\n", data[bytes - 1] ) )
        bytes--;
    if ( sodium_hex2bin( key, NETCODE_KEY_BYTES, data, bytes, NULL, &key_bytes, &end ) == 0 &&
         key_bytes == NETCODE_KEY_BYTES && end == data + bytes )
        return 1;
    return sodium_base642bin( key, NETCODE_KEY_BYTES, data, bytes, NULL, &key_bytes, &end,
                              sodium_base64_VARIANT_ORIGINAL ) == 0 &&
           key_bytes == NETCODE_KEY_BYTES && end == data + bytes;
}

static int read_key_file( const char * path, uint8_t key[NETCODE_KEY_BYTES] )
{
    char data[256];
    FILE * file = fopen( path, "rb" );
    if ( !file )
        return fail( EXIT_FAILED, path, strerror( errno ) );
#ifndef _WIN32
    struct stat status;
    if ( fstat( fileno( file ), &status ) != 0 || ( status.st_mode & ( S_IRWXG | S_IRWXO ) ) != 0 ) {
        fclose( file );
        return fail( EXIT_FAILED, path, "refused, because others than its owner can use this key file; chmod 600 it" );
    }
#endif
    setvbuf( file, NULL, _IONBF, 0 ); /* no copy of the key in a buffer of the C library */
    size_t bytes = fread( data, 1, sizeof( data ), file );
    fclose( file );
    int good = parse_key( data, bytes, key );
    sodium_memzero( data, sizeof( data ) );
    return good ? EXIT_FINE : fail( EXIT_FAILED, path, "holds no key: 32 bytes, or the same in hex or base64" );
}

/* From the file, else from the environment. `found` is 0 when there is neither. */
static int find_key( const struct options_t * options, uint8_t key[NETCODE_KEY_BYTES], int * found )
{
    const char * environment = getenv( "NETCODE_PRIVATE_KEY" );
    *found = 1;
    if ( options->key_file )
        return read_key_file( options->key_file, key );
    if ( environment && *environment ) {
        if ( strlen( environment ) != NETCODE_KEY_BYTES && parse_key( environment, strlen( environment ), key ) )
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

/* Parts PUBLIC=INTERNAL. 0, and a line on standard error, when an address can not be read or has no port. */
static int split_address( const char * name, char text[ADDRESS_PAIR_BYTES], const char ** internal )
{
    struct netcode_address_t address;
    size_t bytes = strlen( name );
    *internal = text;
    if ( bytes < ADDRESS_PAIR_BYTES ) {
        memcpy( text, name, bytes + 1 );
        char * equals = strchr( text, '=' );
        if ( equals ) {
            *equals = '\0';
            *internal = equals + 1;
        }
        if ( netcode_parse_address( text, &address ) == NETCODE_OK && address.port &&
             netcode_parse_address( *internal, &address ) == NETCODE_OK && address.port )
            return 1;
    }
    fail( EXIT_USAGE, name, "is no address with a port, like 203.0.113.5:40000 or [2001:db8::5]:40000" );
    return 0;
}

static int command_mint( struct options_t * options )
{
    static char texts[NETCODE_MAX_SERVERS_PER_CONNECT][ADDRESS_PAIR_BYTES];
    const char * publics[NETCODE_MAX_SERVERS_PER_CONNECT];
    const char * internals[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint8_t key[NETCODE_KEY_BYTES];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int found = 0;
    if ( options->format == FORMAT_HEX )
        return fail( EXIT_USAGE, "mint writes json, base64 or raw", NULL );
    if ( !options->num_names || !options->have_client_id )
        return fail( EXIT_USAGE, "mint wants --client-id and at least one address; see --help", NULL );
    if ( options->format == FORMAT_RAW && !options->output && is_terminal() )
        return fail( EXIT_USAGE, "raw bytes do not belong on a terminal; give --output FILE or redirect", NULL );
    for ( int i = 0; i < options->num_names; i++ ) {
        if ( !split_address( options->names[i], texts[i], &internals[i] ) )
            return EXIT_USAGE;
        publics[i] = texts[i];
    }
    int status = find_key( options, key, &found );
    if ( status == EXIT_FINE && !found )
        status = fail( EXIT_USAGE, "mint wants --key-file or NETCODE_PRIVATE_KEY in the environment", NULL );
    if ( status != EXIT_FINE )
        return status;
    if ( netcode_generate_connect_token( options->num_names, publics, internals, options->expire_seconds,
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

static int read_token( const struct options_t * options, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    static char data[MAX_INPUT_BYTES + 1];
    const char * path = options->num_names ? options->names[0] : "-";
    if ( options->num_names > 1 )
        return fail( EXIT_USAGE, "one token at a time", NULL );
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

/* ---- inspect and keylog ---- */

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
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
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

static int command_keylog( struct options_t * options )
{
    static const char * const labels[2] = { "NETCODE_CLIENT_TO_SERVER", "NETCODE_SERVER_TO_CLIENT" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    int status = read_token( options, token );
    if ( status != EXIT_FINE )
        return status;
    const uint8_t * keys = netcode_connect_token_info( token, &info ) == NETCODE_OK ? public_keys( token ) : NULL;
    if ( !keys )
        return fail_unsound( &info );
    for ( int i = 0; i < 2; i++ ) {
        printf( "%s ", labels[i] );
        print_hex( token + AT_NONCE, NONCE_BYTES );
        printf( " " );
        print_hex( keys + (size_t) i * NETCODE_KEY_BYTES, NETCODE_KEY_BYTES );
        printf( "\n" );
    }
    sodium_memzero( token, sizeof( token ) );
    return EXIT_FINE;
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

static int parse_client_id( const char * value, struct options_t * options )
{
    options->have_client_id = 1;
    return parse_u64( value, &options->client_id );
}

/* Options with a value; 0 when it is none of them or its value is wrong. */
static int parse_value( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--key-file" ) )
        options->key_file = value;
    else if ( !strcmp( name, "--output" ) )
        options->output = value;
    else if ( !strcmp( name, "--format" ) )
        return parse_format( value, options );
    else if ( !strcmp( name, "--client-id" ) )
        return parse_client_id( value, options );
    else if ( !strcmp( name, "--protocol-id" ) )
        return parse_u64( value, &options->protocol_id );
    else if ( !strcmp( name, "--expire" ) )
        return parse_seconds( value, &options->expire_seconds );
    else if ( !strcmp( name, "--timeout" ) )
        return parse_seconds( value, &options->timeout_seconds );
    else if ( !strcmp( name, "--user-data" ) )
        return parse_user_data( value, 0, options );
    else if ( !strcmp( name, "--user-data-hex" ) )
        return parse_user_data( value, 1, options );
    else
        return 0;
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
                                                 { "keylog", help_keylog, command_keylog } };
    if ( argc > 1 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return EXIT_FINE;
    }
    for ( size_t i = 0; argc > 1 && i < sizeof( commands ) / sizeof( commands[0] ); i++ ) {
        if ( !strcmp( argv[1], commands[i].name ) )
            return run_command( &commands[i], argc, argv );
    }
    return fail( EXIT_USAGE, "give a command: keygen, mint, inspect or keylog; --help says more", NULL );
}
