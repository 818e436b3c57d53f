/*  Fuzz target: addresses. What is read, printed and read again is the same; glibc's inet_pton accepts and understands
    the same texts; canonical form, comparison, hash and the form in tokens agree. Built and run by run.sh. */

#include "fuzz.h"

#if defined( __GLIBC__ )
#include <arpa/inet.h>
#endif

static int address_same_bytes( const struct netcode_address_t * a, const struct netcode_address_t * b )
{
    return memcmp( &a->data, &b->data, sizeof( a->data ) ) == 0 && a->port == b->port && a->type == b->type;
}

/* In canonical form, unused bytes are zero and IPv4-mapped IPv6 does not exist. */
static void address_check_canonical( const struct netcode_address_t * address )
{
    static const uint8_t zeros[16] = { 0 };
    const uint8_t * raw = (const uint8_t *) &address->data;
    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        FUZZ_CHECK( memcmp( raw + 4, zeros, 12 ) == 0 );
    } else if ( address->type == NETCODE_ADDRESS_IPV6 ) {
        FUZZ_CHECK( memcmp( raw, zeros, 10 ) != 0 || address->data.ipv6[5] != 0xffff );
    } else {
        FUZZ_CHECK( address->type == NETCODE_ADDRESS_NONE && address->port == 0 );
        FUZZ_CHECK( memcmp( raw, zeros, 16 ) == 0 );
    }
}

/* Does the system understand what was printed, and as the same place? */
static void address_check_with_system( const struct netcode_address_t * address, const char * printed )
{
#if defined( __GLIBC__ )
    uint8_t raw[16];
    if ( address->port || strchr( printed, '%' ) )
        return;
    FUZZ_CHECK( inet_pton( address->type == NETCODE_ADDRESS_IPV4 ? AF_INET : AF_INET6, printed, raw ) == 1 );
    if ( address->type == NETCODE_ADDRESS_IPV4 )
        FUZZ_CHECK( memcmp( raw, address->data.ipv4, 4 ) == 0 );
    for ( int i = 0; i < 8 && address->type == NETCODE_ADDRESS_IPV6; i++ )
        FUZZ_CHECK( address->data.ipv6[i] == ( raw[2 * i] << 8 | raw[2 * i + 1] ) );
#else
    (void) address;
    (void) printed;
#endif
}

static void address_check_printed( const struct netcode_address_t * address )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH + 16];
    char again[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct netcode_address_t parsed;
    memset( text, 0x55, sizeof( text ) );
    FUZZ_CHECK( netcode_address_to_string( address, text ) == text );
    for ( size_t i = NETCODE_MAX_ADDRESS_STRING_LENGTH; i < sizeof( text ); i++ )
        FUZZ_CHECK( text[i] == 0x55 );
    FUZZ_CHECK( strlen( text ) < 64 ); /* the longest: brackets, eight words, an interface, a port */
    fuzz_note( strlen( text ) );
    if ( address->type == NETCODE_ADDRESS_NONE ) {
        FUZZ_CHECK( strcmp( text, "NONE" ) == 0 );
        return;
    }
    FUZZ_CHECK( netcode_parse_address( text, &parsed ) == NETCODE_OK );
    FUZZ_CHECK( address_same_bytes( &parsed, address ) );
    FUZZ_CHECK( strcmp( netcode_address_to_string( &parsed, again ), text ) == 0 );
    address_check_with_system( address, text );
}

/* A token carries every address that has a port, but for its interface. */
static void address_check_in_token( const struct netcode_address_t * address )
{
    uint8_t wire[19];
    struct netcode_address_t read, bare = nc_address_without_interface( address );
    nc_writer_t writer = nc_writer_make( wire, sizeof( wire ) );
    nc_token_write_address( &writer, address );
    FUZZ_CHECK( !writer.failed && writer.at == ( address->type == NETCODE_ADDRESS_IPV4 ? 7u : 19u ) );
    nc_reader_t reader = nc_reader_make( wire, writer.at );
    nc_token_read_address( &reader, &read );
    FUZZ_CHECK( reader.failed == ( address->port == 0 || address->type == NETCODE_ADDRESS_NONE ) );
    if ( !reader.failed )
        FUZZ_CHECK( reader.at == writer.at && address_same_bytes( &read, &bare ) );
}

static void address_check( const struct netcode_address_t * address )
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = { 1 };
    struct netcode_address_t copy = nc_address_canonical( address );
    FUZZ_CHECK( address_same_bytes( &copy, address ) );
    FUZZ_CHECK( netcode_address_equal( address, &copy ) && nc_address_same( address, &copy ) );
    FUZZ_CHECK( nc_address_hash( address, key ) == nc_address_hash( &copy, key ) );
    address_check_canonical( address );
    address_check_printed( address );
    address_check_in_token( address );
    copy.port ^= 1;
    if ( address->type != NETCODE_ADDRESS_NONE )
        FUZZ_CHECK( !netcode_address_equal( address, &copy ) );
}

#if defined( __GLIBC__ )
static int address_system_accepts( const char * text )
{
    uint8_t raw[16];
    return inet_pton( AF_INET, text, raw ) == 1 || inet_pton( AF_INET6, text, raw ) == 1;
}

/* Does the system take the text for the same place? To it, IPv4-mapped addresses are IPv6. */
static void address_check_meaning( const struct netcode_address_t * address, const char * text )
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    uint8_t raw[16];
    if ( inet_pton( AF_INET, text, raw ) == 1 ) {
        FUZZ_CHECK( address->type == NETCODE_ADDRESS_IPV4 && memcmp( raw, address->data.ipv4, 4 ) == 0 );
    } else if ( inet_pton( AF_INET6, text, raw ) == 1 && memcmp( raw, mapped, 12 ) == 0 ) {
        FUZZ_CHECK( address->type == NETCODE_ADDRESS_IPV4 && memcmp( raw + 12, address->data.ipv4, 4 ) == 0 );
    } else if ( inet_pton( AF_INET6, text, raw ) == 1 ) {
        FUZZ_CHECK( address->type == NETCODE_ADDRESS_IPV6 );
        for ( int i = 0; i < 8; i++ )
            FUZZ_CHECK( address->data.ipv6[i] == ( raw[2 * i] << 8 | raw[2 * i + 1] ) );
    }
}
#endif

/* A port is what stands behind the last colon. */
static void address_check_port( const struct netcode_address_t * address, const char * text )
{
    const char * colon = strrchr( text, ':' );
    if ( address->port )
        FUZZ_CHECK( colon && strtol( colon + 1, NULL, 10 ) == address->port );
}

static void address_text( struct fuzz_input_t * input )
{
    static const uint8_t zeros[16] = { 0 };
    char text[128];
    size_t bytes = input->bytes - input->at;
    struct netcode_address_t address;
    if ( bytes >= sizeof( text ) )
        bytes = sizeof( text ) - 1;
    fuzz_bytes( input, (uint8_t *) text, bytes );
    text[bytes] = 0;
    memset( &address, 0xee, sizeof( address ) );
    int good = netcode_parse_address( text, &address ) == NETCODE_OK;
    fuzz_note( (uint64_t) good );
#if defined( __GLIBC__ )
    if ( text[0] != '[' && !strchr( text, '%' ) && !( strchr( text, '.' ) && strchr( text, ':' ) ) )
        FUZZ_CHECK( good == address_system_accepts( text ) );
    else if ( address_system_accepts( text ) ) /* it knows no ports and interfaces, so only this way round */
        FUZZ_CHECK( good );
#endif
    if ( good ) {
        FUZZ_CHECK( address.type != NETCODE_ADDRESS_NONE );
        address_check( &address );
        address_check_port( &address, text );
#if defined( __GLIBC__ )
        address_check_meaning( &address, text );
#endif
    } else
        FUZZ_CHECK( address.type == NETCODE_ADDRESS_NONE && address.port == 0 && !memcmp( &address.data, zeros, 16 ) );
}

/* Any bytes where an address should be. */
static struct netcode_address_t address_raw( struct fuzz_input_t * input )
{
    struct netcode_address_t address;
    uint8_t how = fuzz_u8( input );
    memset( &address, 0, sizeof( address ) );
    address.type = how & 3;
    address.port = how & 4 ? (uint16_t) fuzz_number( input, 2 ) : 0;
    if ( how & 8 ) { /* IPv4-mapped, or link-local, is hard to find by chance */
        address.data.ipv6[5] = 0xffff;
        fuzz_bytes( input, (uint8_t *) &address.data.ipv6[6], 4 );
        if ( how & 64 ) /* almost */
            address.data.ipv6[fuzz_u8( input ) & 7] ^= (uint16_t) ( how & 128 ? 1 : 256 );
    } else
        for ( int i = 0; i < 8; i++ )
            if ( how & 16 || fuzz_u8( input ) & 1 )
                address.data.ipv6[i] = (uint16_t) fuzz_number( input, 2 );
    if ( how & 32 )
        address.data.ipv6[0] = (uint16_t) ( 0xfe80 + ( how >> 6 ) );
    return address;
}

/* Is it IPv4 in IPv6? All words before the sixth must be zero. */
static int address_is_mapped( const struct netcode_address_t * address )
{
    int others = 0;
    for ( int i = 0; i < 5; i++ )
        others |= address->data.ipv6[i];
    return address->type == NETCODE_ADDRESS_IPV6 && others == 0 && address->data.ipv6[5] == 0xffff;
}

static void address_binary( struct fuzz_input_t * input )
{
    struct netcode_address_t a = address_raw( input ), b = address_raw( input );
    struct netcode_address_t left = nc_address_canonical( &a ), right = nc_address_canonical( &b );
    int equal = netcode_address_equal( &a, &b );
    FUZZ_CHECK( equal == netcode_address_equal( &b, &a ) );
    FUZZ_CHECK( equal == address_same_bytes( &left, &right ) );
    FUZZ_CHECK( netcode_address_equal( &a, &left ) );
    FUZZ_CHECK( left.type == ( address_is_mapped( &a ) ? 1 : a.type == 3 ? 0 : a.type ) );
    fuzz_note( (uint64_t) equal );
    address_check( &left );
}

static void address_mistakes( uint8_t how )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH] = "?";
    struct netcode_address_t address;
    netcode_log_level( how & 1 ? NETCODE_LOG_LEVEL_NONE : NETCODE_LOG_LEVEL_ERROR );
    memset( &address, 0xee, sizeof( address ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_parse_address( NULL, &address ) == NETCODE_ERROR ) );
    FUZZ_CHECK( address.type == NETCODE_ADDRESS_NONE );
    FUZZ_BAD( FUZZ_CHECK( netcode_parse_address( "::1", NULL ) == NETCODE_ERROR ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_address_to_string( &address, NULL ) == NULL ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_address_to_string( NULL, text ) == text && text[0] == 0 ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_address_equal( NULL, &address ) == 0 ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_address_equal( &address, NULL ) == 0 ) );
}

static void fuzz_address( struct fuzz_input_t * input )
{
    uint8_t how = fuzz_u8( input );
    if ( how == 0 )
        address_mistakes( fuzz_u8( input ) );
    else if ( how & 1 )
        address_text( input );
    else
        address_binary( input );
}

FUZZ_TARGET( address )
