/*  Proofs of address: the reader and the printer of addresses. Run: tests/prove/run.sh address

    The longest address that the reader takes has 59 letters:
    [fe80:0000:ffff:ffff:ffff:ffff:255.255.255.255%65535]:65535. Texts stand at the end of a block: one letter further
    than their NUL is out of bounds. The longest have no NUL at all, and their block is longer than what is read of it,
    so what is proved of them holds for longer texts too. */

#include <stddef.h>
#include <stdio.h>

/*  What snprintf does with the conversions of netcode.h's addresses, %d, %x and %%: at most `bytes`, the NUL included. With a fixed
    number of arguments, because CBMC does not widen those of functions that take any number. */
static int prove_print( char * out, size_t bytes, const char * format, const int numbers[4] );
#define PRINT( out, bytes, format, a, b, c, d, ... ) \
    prove_print( out, bytes, format, ( const int[4] ){ (int) ( a ), (int) ( b ), (int) ( c ), (int) ( d ) } )
#define snprintf( ... ) PRINT( __VA_ARGS__, 0, 0, 0, 0, 0 )

#include "prove.h"

/* A whole address; all of one but its port; a part of one, an IPv4 address at most. */
enum { MOST = 64, WORDS = 48, PART = 20 };

static size_t put_letter( char * out, size_t bytes, size_t at, char letter )
{
    if ( at + 1 < bytes )
        out[at] = letter;
    return at + 1;
}

/* Numbers in addresses are never negative and have at most five digits. */
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

/* One place has one form: the address room's invariant. */
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

/* A number as an address wants it, given by its length: NULL where there is none. */
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

/*  ---- the whole reader, a floor at a time: where a function has its proof, the next one up is proved with a stand-in
    for it, which answers anything that this proof allows (FUNCTION=answer_... in proofs.list). It also claims that it
    is asked only what the proof is about: a place within the text, its NUL included ---- */

static char * text_block;
static size_t text_end, text_most; /* where its NUL is, or its end, behind which longer texts go on */

/* A text of any length whose first NUL is the block's last letter; or one that is longer, and has none. */
static const char * any_whole_text( size_t most )
{
    size_t start = any_size_up_to( most - 1 );
    text_block = (char *) any_bytes( most );
    text_most = most;
    text_end = start || any_int() ? most - 1 : most;
    for ( size_t i = 0; i < most; i++ )
        GIVEN( i < start || ( text_block[i] != 0 ) == ( i < text_end ) );
    return text_block + start;
}

/* Some place behind `text`, at most so many letters, all of which are there. */
static const char * answer_place( const char * text, size_t most )
{
    size_t at = (size_t) ( text - text_block ), letters = any_size_up_to( most );
    CLAIM( at <= text_end && ( at < text_end || text_end < text_most ) );
    GIVEN( letters > 0 && at + letters <= text_end );
    return text + letters;
}

typedef struct {
    int calls;
    const char * text;
    const char * end; /* NULL: it is none */
    uint32_t value;
} answer_t;

static answer_t number_answer, ipv4_answer, port_answer, ipv6_answer;
static uint8_t ipv4_given[4];
static uint16_t ipv6_given[8];

static const char * note_answer( answer_t * answer, const char * text, size_t most )
{
    answer->calls++;
    answer->text = text;
    answer->end = answer_place( text, most );
    if ( any_int() )
        answer->end = NULL;
    return answer->end;
}

/* prove_address_byte, _word, _port_number */
const char * answer_number( const char * text, int base, int digits, uint32_t max, uint32_t * value )
{
    CLAIM( base == 16 ? digits == 4 && max == 0xffff : base == 10 && digits == 5 && max == 65535 );
    if ( note_answer( &number_answer, text, (size_t) digits ) )
        *value = number_answer.value = any_below( max + 1 );
    return number_answer.end;
}

/* prove_address_parse_ipv4 */
const char * answer_ipv4( const char * text, uint8_t out[4] )
{
    for ( int i = 0; i < 4; i++ )
        out[i] = ipv4_given[i] = any_u8();
    return note_answer( &ipv4_answer, text, 15 );
}

/* prove_address_parse_port */
int answer_port( const char * text, uint16_t * port )
{
    if ( note_answer( &port_answer, text, 1 ) )
        *port = (uint16_t) ( port_answer.value = any_u16() );
    return port_answer.end != NULL;
}

/*  One group of an IPv6 address: a word, or two that are written as IPv4. A count says how many words are there
    already. */
void prove_address_parse_group( void )
{
    const char * text = any_whole_text( MOST );
    uint16_t words[8] = { 0 };
    int before = (int) any_below( 9 ), count = before;
    const char *end = nc_address_parse_group( text, words, &count ), *at = number_answer.end;
    CLAIM( number_answer.calls == 1 && number_answer.text == text && count >= before && count <= 8 );
    if ( at && *at == '.' && before <= 6 ) {
        CLAIM( ipv4_answer.calls == 1 && ipv4_answer.text == text );
        at = ipv4_answer.end && *ipv4_answer.end != ':' ? ipv4_answer.end : NULL;
        CLAIM( end == at );
        CLAIM( !at || ( count == before + 2 && words[before] == ipv4_given[0] * 256 + ipv4_given[1] &&
                        words[before + 1] == ipv4_given[2] * 256 + ipv4_given[3] ) );
        return;
    }
    CLAIM( end == ( before < 8 ? at : NULL ) );
    CLAIM( !end || ( count == before + 1 && words[before] == number_answer.value ) );
}

/* What the groups of a text are, the first, the second and so on. */
static struct {
    size_t letters;
    int words; /* 0: it is none */
    uint16_t word[2];
} groups[9];

static void any_groups( void )
{
    for ( int i = 0; i < 9; i++ ) {
        groups[i].words = (int) any_below( 3 );
        groups[i].letters = any_size();
        GIVEN( groups[i].letters >= 1 && groups[i].letters <= ( groups[i].words == 2 ? 15 : 4 ) );
        groups[i].word[0] = any_u16();
        groups[i].word[1] = any_u16();
    }
}

/* Where the nth group ends that stands at `at` behind so many words, or NOWHERE. */
static size_t group_end( size_t at, int nth, int before )
{
    CLAIM( at <= text_end && nth < 9 );
    if ( groups[nth].words == 0 || before + groups[nth].words > 8 )
        return NOWHERE;
    at += groups[nth].letters;
    GIVEN( at <= text_end );
    GIVEN( groups[nth].words == 1 || text_block[at] != ':' );
    return at;
}

static void add_group( uint16_t words[8], int * count, int nth )
{
    words[( *count )++] = groups[nth].word[0];
    if ( groups[nth].words == 2 )
        words[( *count )++] = groups[nth].word[1];
}

static int group_calls;

/* prove_address_parse_group */
const char * answer_group( const char * text, uint16_t words[8], int * count )
{
    int nth = group_calls++;
    CLAIM( *count >= 0 && *count <= 8 );
    size_t end = group_end( (size_t) ( text - text_block ), nth, *count );
    if ( end == NOWHERE )
        return NULL;
    add_group( words, count, nth );
    return text_block + end;
}

static int is_end( size_t at )
{
    return text_block[at] == 0 || text_block[at] == ']' || text_block[at] == '%';
}

/* Standard notation: eight words, or fewer and a gap. Returns where it ends, or NOWHERE. */
static size_t expected_words( size_t at, uint16_t words[8], int * count, int * gap )
{
    for ( int nth = 0; nth < 9; nth++ ) {
        if ( *gap < 0 && text_block[at] == ':' && text_block[at + 1] == ':' ) {
            *gap = *count;
            at += 2;
            if ( is_end( at ) )
                break;
        } else if ( nth > 0 && text_block[at] != ':' )
            break;
        else if ( nth > 0 && text_block[++at] == ':' )
            return NOWHERE;
        size_t end = is_end( at ) ? NOWHERE : group_end( at, nth, *count );
        if ( end == NOWHERE )
            return NOWHERE;
        add_group( words, count, nth );
        at = end;
    }
    return ( *gap < 0 ? *count == 8 : *count < 8 ) ? at : NOWHERE;
}

/* Whatever the groups are: the words are where they belong, with zeros in the gap. */
void prove_address_parse_ipv6( void )
{
    const char * text = any_whole_text( WORDS );
    uint16_t out[8], words[8] = { 0 };
    int count = 0, gap = -1, nth = (int) any_below( 8 );
    any_groups();
    const char * end = nc_address_parse_ipv6( text, out );
    size_t start = (size_t) ( text - text_block ), at = expected_words( start, words, &count, &gap );
    CLAIM( ( end == NULL ) == ( at == NOWHERE ) );
    if ( !end )
        return;
    CLAIM( end == text_block + at && at > start && at - start <= 45 );
    if ( gap < 0 || nth < gap )
        CLAIM( out[nth] == words[nth] );
    else
        CLAIM( out[nth] == ( nth < gap + 8 - count ? 0 : words[nth - ( 8 - count )] ) );
}

/* prove_address_parse_ipv6 */
const char * answer_ipv6( const char * text, uint16_t out[8] )
{
    for ( int i = 0; i < 8; i++ )
        out[i] = ipv6_given[i] = any_u16();
    return note_answer( &ipv6_answer, text, 45 );
}

/*  IPv4, IPv6 in brackets or without, an interface where there may be one, a port where there may be one, and nothing
    else. What it gives is one canonical form or nothing. */
void prove_address_parse( void )
{
    struct netcode_address_t address;
    const char * text = any_whole_text( MOST );
    if ( netcode_parse_address( text, &address ) != NETCODE_OK ) {
        claim_empty( &address );
        return;
    }
    claim_canonical( &address );
    CLAIM( address.port == ( port_answer.calls ? port_answer.value : 0 ) );
    if ( ipv4_answer.end ) {
        CLAIM( memcmp( address.data.ipv4, ipv4_given, 4 ) == 0 && port_answer.text == ipv4_answer.end );
        return;
    }
    int brackets = *text == '[', has_interface = *ipv6_answer.end == '%';
    const char * end = has_interface ? number_answer.end : ipv6_answer.end;
    CLAIM( ipv6_answer.text == text + brackets && ( !has_interface || number_answer.text == ipv6_answer.end + 1 ) );
    CLAIM( brackets ? *end == ']' && port_answer.text == end + 1 : *end == 0 && !port_answer.calls );
    for ( int i = 0; i < 8 && address.type == NETCODE_ADDRESS_IPV6; i++ )
        CLAIM( address.data.ipv6[i] == ( i == 1 && has_interface ? number_answer.value : ipv6_given[i] ) );
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

/*  The printer by itself: whatever the address, it stays within its 256 bytes, and within the longest address that
    there is. */
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

/*  The canonical form, byte by byte: an IPv4 address and the one that an IPv6 address maps have their port and four bytes, and
    zeros behind them; any other IPv6 address is as it was; what is neither is empty. A copy of a copy is the copy. */
void prove_address_canonical( void )
{
    struct netcode_address_t raw = any_address( NETCODE_ADDRESS_IPV6 ), wanted;
    raw.type = any_u8();
    memset( &wanted, 0, sizeof( wanted ) );
    if ( raw.type == NETCODE_ADDRESS_IPV4 || raw.type == NETCODE_ADDRESS_IPV6 ) {
        wanted.type = is_mapped( &raw ) ? NETCODE_ADDRESS_IPV4 : raw.type;
        wanted.port = raw.port;
    }
    for ( int i = 0; i < 4; i++ )
        if ( wanted.type == NETCODE_ADDRESS_IPV4 )
            wanted.data.ipv4[i] = raw.type == NETCODE_ADDRESS_IPV4
                                      ? raw.data.ipv4[i]
                                      : (uint8_t) ( raw.data.ipv6[6 + i / 2] >> ( i % 2 ? 0 : 8 ) );
    for ( int i = 0; i < 8; i++ )
        if ( wanted.type == NETCODE_ADDRESS_IPV6 )
            wanted.data.ipv6[i] = raw.data.ipv6[i];

    struct netcode_address_t once = nc_address_canonical( &raw ), twice = nc_address_canonical( &once );
    CLAIM( once.type == wanted.type && once.port == wanted.port );
    for ( int i = 0; i < 16; i++ )
        CLAIM( ( (const uint8_t *) &once.data )[i] == ( (const uint8_t *) &wanted.data )[i] );
    CLAIM( nc_address_same( &once, &twice ) && netcode_address_equal( &raw, &once ) );
}
