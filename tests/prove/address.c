/*  Proofs of room 4: the reader and the printer of addresses. Run: tests/prove/run.sh address

    The longest address that the reader takes has 59 letters: [fe80:0000:ffff:ffff:ffff:ffff:255.255.255.255%65535]:65535.
    Texts stand at the end of a block: one letter further than their NUL is out of bounds. The longest have no NUL at all, and
    their block is longer than what is read of it, so what is proved of them holds for longer texts too. */

#include <stddef.h>
#include <stdio.h>

/*  What snprintf does with the conversions of room 4, %d, %x and %%: at most `bytes`, the NUL included. With a fixed number of
    arguments, because CBMC does not widen those of functions that take any number. */
static int prove_print( char * out, size_t bytes, const char * format, const int numbers[4] );
#define PRINT( out, bytes, format, a, b, c, d, ... ) \
    prove_print( out, bytes, format, ( const int[4] ){ (int) ( a ), (int) ( b ), (int) ( c ), (int) ( d ) } )
#define snprintf( ... ) PRINT( __VA_ARGS__, 0, 0, 0, 0, 0 )

#include "prove.h"

enum { MOST = 64, PART = 20 }; /* a whole address; a part of one, an IPv4 address at most */

static size_t put_letter( char * out, size_t bytes, size_t at, char letter )
{
    if ( at + 1 < bytes )
        out[at] = letter;
    return at + 1;
}

/* Numbers of room 4 are never negative and have at most five digits. */
static size_t put_number( char * out, size_t bytes, size_t at, unsigned number, unsigned base )
{
    unsigned unit = base == 10 ? 10000 : 0x10000;
    int begun = 0;
    for ( int i = 0; i < 5; i++, unit /= base ) {
        unsigned digit = number / unit % base;
        begun |= digit || i == 4;
        if ( begun )
            at = put_letter( out, bytes, at, (char) ( digit < 10 ? '0' + digit : 'a' + digit - 10 ) );
    }
    return at;
}

static int prove_print( char * out, size_t bytes, const char * format, const int numbers[4] )
{
    size_t at = 0;
    for ( ; *format; format++ ) {
        if ( *format == '%' && format[1] != '%' ) {
            format++;
            CLAIM( ( *format == 'x' || *format == 'd' ) && *numbers >= 0 && *numbers < 65536 );
            at = put_number( out, bytes, at, (unsigned) *numbers++, *format == 'x' ? 16 : 10 );
        } else {
            at = put_letter( out, bytes, at, *format );
            format += *format == '%';
        }
    }
    if ( bytes )
        out[at < bytes ? at : bytes - 1] = 0;
    return (int) at;
}

/* A text of any length up to `most`; the letters after a first NUL are any too. */
static const char * any_text( size_t most )
{
    const char * block = (const char *) any_bytes( most );
    size_t start = any_size_up_to( most - 1 );
    GIVEN( start == 0 || block[most - 1] == 0 );
    return block + start;
}

static int is_mapped( const struct netcode_address_t * address )
{
    for ( int i = 0; i < 5; i++ )
        if ( address->data.ipv6[i] )
            return 0;
    return address->type == NETCODE_ADDRESS_IPV6 && address->data.ipv6[5] == 0xffff;
}

/* One place has one form: room 4's invariant. */
static void claim_canonical( const struct netcode_address_t * address )
{
    CLAIM( address->type == NETCODE_ADDRESS_IPV4 || address->type == NETCODE_ADDRESS_IPV6 );
    CLAIM( !is_mapped( address ) );
    for ( int i = 4; i < 16; i++ )
        CLAIM( address->type == NETCODE_ADDRESS_IPV6 || ( (const uint8_t *) &address->data )[i] == 0 );
}

static void claim_empty( const struct netcode_address_t * address )
{
    for ( int i = 0; i < 8; i++ )
        CLAIM( address->data.ipv6[i] == 0 );
    CLAIM( address->type == NETCODE_ADDRESS_NONE && address->port == 0 );
}

void prove_address_parse( void )
{
    struct netcode_address_t address;
    if ( netcode_parse_address( any_text( MOST ), &address ) == NETCODE_OK )
        claim_canonical( &address );
    else
        claim_empty( &address );
}

/* ---- the parts of the reader against specifications of their own ---- */

static int digit_of( char letter, int base )
{
    if ( letter >= '0' && letter <= '9' )
        return letter - '0';
    if ( letter >= 'a' && letter <= 'f' && base == 16 )
        return letter - 'a' + 10;
    if ( letter >= 'A' && letter <= 'F' && base == 16 )
        return letter - 'A' + 10;
    return -1;
}

/* A number as room 4 wants it, told by its length: NULL where there is none. */
static const char * expected_number( const char * text, int base, int digits, uint32_t max, uint32_t * value )
{
    int length = 0;
    *value = 0;
    while ( length < digits && digit_of( text[length], base ) >= 0 )
        *value = *value * (uint32_t) base + (uint32_t) digit_of( text[length++], base );
    if ( length == 0 || *value > max )
        return NULL;
    return base == 10 && length > 1 && text[0] == '0' ? NULL : text + length;
}

static void claim_number( int base, int digits, uint32_t max )
{
    const char * text = any_text( PART );
    uint32_t value = 0, expected = 0;
    const char * end = nc_address_number( text, base, digits, max, &value );
    CLAIM( end == expected_number( text, base, digits, max, &expected ) );
    CLAIM( !end || value == expected );
}

void prove_address_byte( void )
{
    claim_number( 10, 3, 255 );
}

void prove_address_word( void )
{
    claim_number( 16, 4, 0xffff );
}

void prove_address_port_number( void )
{
    claim_number( 10, 5, 65535 );
}

/* Four numbers with dots between them, and nothing is read behind the last. */
static const char * expected_ipv4( const char * text, uint32_t out[4] )
{
    for ( int i = 0; i < 4; i++ ) {
        if ( i && *text != '.' )
            return NULL;
        text = expected_number( text + ( i != 0 ), 10, 3, 255, &out[i] );
        if ( !text )
            return NULL;
    }
    return text;
}

void prove_address_parse_ipv4( void )
{
    const char *text = any_text( PART ), *at;
    uint8_t out[4];
    uint32_t expected[4];
    at = expected_ipv4( text, expected );
    CLAIM( nc_address_parse_ipv4( text, out ) == at );
    for ( int i = 0; i < 4; i++ )
        CLAIM( !at || out[i] == expected[i] );
}

void prove_address_parse_port( void )
{
    const char *text = any_text( PART ), *at = NULL;
    uint32_t expected = 0;
    uint16_t port = 0;
    if ( *text == ':' )
        at = expected_number( text + 1, 10, 5, 65535, &expected );
    CLAIM( nc_address_parse_port( text, &port ) == ( *text == 0 || ( at && *at == 0 ) ) );
    CLAIM( !at || *at || port == expected );
}

/*  One group of an IPv6 address: a word, or two that are written as IPv4. A count says how many words are there already. */
void prove_address_parse_group( void )
{
    const char *text = any_text( PART ), *at, *end;
    uint16_t words[8] = { 0 };
    uint32_t value = 0, ip[4];
    int before = any_int(), count = before;
    GIVEN( before >= 0 && before <= 8 );
    end = nc_address_parse_group( text, words, &count );
    CLAIM( count >= before && count <= 8 );
    at = expected_number( text, 16, 4, 0xffff, &value );
    if ( at && *at == '.' && before <= 6 ) {
        at = expected_ipv4( text, ip );
        at = at && *at != ':' ? at : NULL;
        CLAIM( end == at );
        CLAIM( !at || ( count == before + 2 && words[before] == ip[0] * 256 + ip[1] &&
                        words[before + 1] == ip[2] * 256 + ip[3] ) );
        return;
    }
    CLAIM( end == ( before < 8 ? at : NULL ) );
    CLAIM( !end || ( count == before + 1 && words[before] == value ) );
}

/* ---- the printer, and the way there and back ---- */

/* Any address in the form that the library keeps. */
static struct netcode_address_t any_address( uint8_t type )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = type;
    address.port = any_u16();
    for ( int i = 0; i < 4 && type == NETCODE_ADDRESS_IPV4; i++ )
        address.data.ipv4[i] = any_u8();
    for ( int i = 0; i < 8 && type == NETCODE_ADDRESS_IPV6; i++ )
        address.data.ipv6[i] = any_u16();
    return address;
}

/* netcode_parse_address goes this way where the first step gives an answer. */
void prove_address_round_trip_ipv4( void )
{
    struct netcode_address_t address = any_address( NETCODE_ADDRESS_IPV4 );
    char * text = (char *) any_bytes( NETCODE_MAX_ADDRESS_STRING_LENGTH );
    uint8_t ip[4];
    uint16_t port = 0;
    CLAIM( netcode_address_to_string( &address, text ) == text );
    const char * at = nc_address_parse_ipv4( text, ip );
    CLAIM( at && nc_address_parse_port( at, &port ) && port == address.port );
    for ( int i = 0; i < 4; i++ )
        CLAIM( ip[i] == address.data.ipv4[i] );
}

/* The printer by itself: whatever the address, it stays within its 256 bytes, and within the longest address there is. */
void prove_address_print( void )
{
    struct netcode_address_t address = any_address( NETCODE_ADDRESS_IPV6 );
    address.type = any_u8();
    char * text = (char *) any_bytes( NETCODE_MAX_ADDRESS_STRING_LENGTH );
    size_t length = 0;
    netcode_address_to_string( &address, text );
    while ( length < MOST && text[length] )
        length++;
    CLAIM( length <= 53 );
}

/* Canonical forms are the same exactly if port and place are, and a copy of a copy is the copy. */
void prove_address_canonical( void )
{
    struct netcode_address_t raw = any_address( NETCODE_ADDRESS_IPV6 );
    raw.type = any_u8();
    struct netcode_address_t once = nc_address_canonical( &raw ), twice = nc_address_canonical( &once );
    CLAIM( nc_address_same( &once, &twice ) && netcode_address_equal( &raw, &once ) );
    CLAIM( raw.type == NETCODE_ADDRESS_IPV4 || raw.type == NETCODE_ADDRESS_IPV6 || once.type == NETCODE_ADDRESS_NONE );
    CLAIM( !is_mapped( &once ) );
    for ( int i = 4; i < 16; i++ )
        CLAIM( once.type != NETCODE_ADDRESS_IPV4 || ( (const uint8_t *) &once.data )[i] == 0 );
}
