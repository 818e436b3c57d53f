/*  Proofs of token: connect tokens and challenge tokens, read and written. Sealing and opening are stub/sodium.h's.
    Run: tests/prove/run.sh token */

#include "prove.h"

static uint64_t number_at( const uint8_t * data, int bytes )
{
    uint64_t value = 0;
    while ( bytes-- > 0 )
        value = value << 8 | data[bytes];
    return value;
}

static void fill( void * place, size_t bytes )
{
    __CPROVER_havoc_slice( place, bytes );
}

/* ---- one address, anywhere in a token: the step of which a route is made ---- */

/* Longer than an address is; readers and writers see of a block only what is left of it (bytes.c). */
enum { MOST = 24 };

/* How many addresses the whole tokens below have at most. */
enum { ROUTE = 1 };

static int is_mapped( const struct netcode_address_t * address )
{
    for ( int i = 0; i < 5; i++ )
        if ( address->data.ipv6[i] )
            return 0;
    return address->data.ipv6[5] == 0xffff;
}

/* The words of an address as the token has them; the interface of a link-local one is not part of it. */
static uint16_t expected_word( const uint8_t * data, int nth )
{
    int is_link_local = ( number_at( data, 2 ) & 0xffc0 ) == 0xfe80;
    return nth == 1 && is_link_local ? 0 : (uint16_t) number_at( data + 2 * nth, 2 );
}

static void claim_ipv4( const struct netcode_address_t * address, const uint8_t ip[4] )
{
    int nth = any_int();
    GIVEN( nth >= 0 && nth < 16 );
    CLAIM( address->type == NETCODE_ADDRESS_IPV4 );
    CLAIM( ( (const uint8_t *) &address->data )[nth] == ( nth < 4 ? ip[nth] : 0 ) );
}

static void claim_ipv6( const struct netcode_address_t * address, const uint8_t * data )
{
    const uint8_t zeros_then_ones[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255 };
    const uint8_t mapped[4] = { data[13], data[12], data[15], data[14] };
    int nth = any_int();
    GIVEN( nth >= 0 && nth < 8 );
    if ( memcmp( data, zeros_then_ones, 12 ) == 0 ) {
        claim_ipv4( address, mapped );
        return;
    }
    CLAIM( address->type == NETCODE_ADDRESS_IPV6 && !is_mapped( address ) );
    CLAIM( address->data.ipv6[nth] == expected_word( data, nth ) );
}

/* Standard: Connect Token */
void prove_token_read_address( void )
{
    size_t end = any_size_up_to( MOST ), at = any_size_up_to( end );
    const uint8_t * data = any_bytes( MOST ) + ( MOST - end ); /* one byte further is out of bounds */
    struct netcode_address_t address;
    nc_reader_t reader = nc_reader_make( data, end );
    reader.at = at;
    reader.failed = any_int() != 0;
    int was_failed = reader.failed;
    nc_token_read_address( &reader, &address );
    size_t left = end - at, type = left ? data[at] : 0, bytes = type == NETCODE_ADDRESS_IPV4 ? 7 : 19;
    int fits = !was_failed && ( type == NETCODE_ADDRESS_IPV4 || type == NETCODE_ADDRESS_IPV6 ) && left >= bytes;
    int good = fits && number_at( data + at + bytes - 2, 2 ) != 0;
    CLAIM( reader.at <= end && reader.failed == !good );
    if ( !good )
        return;
    CLAIM( reader.at == at + bytes && address.port == number_at( data + at + bytes - 2, 2 ) );
    if ( type == NETCODE_ADDRESS_IPV4 )
        claim_ipv4( &address, data + at + 1 );
    else
        claim_ipv6( &address, data + at + 1 );
}

/* Any address that a token may name. */
static struct netcode_address_t any_address( void )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = any_int() ? NETCODE_ADDRESS_IPV4 : NETCODE_ADDRESS_IPV6;
    address.port = any_u16();
    GIVEN( address.port != 0 );
    if ( address.type == NETCODE_ADDRESS_IPV4 ) {
        fill( address.data.ipv4, 4 );
        return address;
    }
    fill( address.data.ipv6, 16 );
    if ( nc_address_is_link_local( &address ) )
        address.data.ipv6[1] = 0;
    GIVEN( !is_mapped( &address ) );
    return address;
}

static void claim_same( const struct netcode_address_t * a, const struct netcode_address_t * b )
{
    CLAIM( a->type == b->type && a->port == b->port );
    CLAIM( memcmp( &a->data, &b->data, 16 ) == 0 );
}

/* Whatever there is room for is written and read back, byte for byte as far; nothing before it is touched. */
void prove_token_address_round_trip( void )
{
    size_t end = any_size_up_to( MOST ), at = any_size_up_to( end ), probe = any_size();
    uint8_t * data = any_bytes( MOST ) + ( MOST - end );
    struct netcode_address_t address = any_address(), back;
    uint8_t old = probe < at ? data[probe] : 0;
    nc_writer_t writer = nc_writer_make( data, end );
    writer.at = at;
    nc_token_write_address( &writer, &address );
    CLAIM( writer.at <= end );
    CLAIM( probe >= at || data[probe] == old );
    CLAIM( writer.failed == ( end - at < ( address.type == NETCODE_ADDRESS_IPV4 ? 7 : 19 ) ) );
    nc_reader_t reader = nc_reader_make( data, writer.at );
    reader.at = at;
    nc_token_read_address( &reader, &back );
    if ( writer.failed )
        return;
    CLAIM( !reader.failed && reader.at == writer.at );
    claim_same( &address, &back );
}

/*  ---- whole tokens: all that may arrive, but for counts of 2 to 32, which a solver would not end with: each further
    address is read from some state at some place, and that is prove_token_read_address ---- */

static void leave_out_long_routes( const uint8_t * count )
{
    uint64_t number = number_at( count, 4 );
    GIVEN( number <= ROUTE || number > NETCODE_MAX_SERVERS_PER_CONNECT );
}

static void claim_route( const nc_route_t * route )
{
    int nth = any_int();
    CLAIM( route->num_addresses >= 1 && route->num_addresses <= NETCODE_MAX_SERVERS_PER_CONNECT );
    GIVEN( nth >= 0 && nth < route->num_addresses );
    const struct netcode_address_t * address = &route->addresses[nth];
    CLAIM( address->port != 0 );
    CLAIM( address->type == NETCODE_ADDRESS_IPV4 || address->type == NETCODE_ADDRESS_IPV6 );
}

/* Standard: Connect Token. All 2048 bytes may be anything. */
void prove_token_read( void )
{
    const uint8_t * data = any_bytes( NETCODE_CONNECT_TOKEN_BYTES );
    const uint8_t version[13] = { 'N', 'E', 'T', 'C', 'O', 'D', 'E', ' ', '1', '.', '0', '2', 0 };
    nc_connect_token_t token;
    leave_out_long_routes( data + 1089 );
    int good = nc_token_read( data, &token );
    uint64_t create = number_at( data + 21, 8 ), expire = number_at( data + 29, 8 ),
             count = number_at( data + 1089, 4 );
    CLAIM( token.protocol_id == number_at( data + 13, 8 ) );
    CLAIM( token.create_timestamp == create && token.expire_timestamp == expire );
    CLAIM( !good || ( memcmp( data, version, 13 ) == 0 && create <= expire ) );
    CLAIM( !good || ( count >= 1 && count <= 32 && (uint64_t) token.route.num_addresses == count ) );
    if ( good )
        claim_route( &token.route );
}

/* Standard: Connect Token. All 1008 bytes of a private part may be anything, its tag being what it is. */
void prove_token_read_private( void )
{
    const uint8_t * plain = any_bytes( NC_PRIVATE_TOKEN_BYTES );
    nc_private_token_t token;
    leave_out_long_routes( plain + 12 );
    int good = nc_token_read_private( plain, &token );
    uint64_t count = number_at( plain + 12, 4 );
    CLAIM( token.client_id == number_at( plain, 8 ) );
    CLAIM( token.route.timeout_seconds == (int32_t) number_at( plain + 8, 4 ) );
    CLAIM( !good || (uint64_t) token.route.num_addresses == count );
    if ( good )
        claim_route( &token.route );
}

void prove_token_info( void )
{
    const uint8_t * data = any_bytes( NETCODE_CONNECT_TOKEN_BYTES );
    struct netcode_connect_token_info_t info;
    leave_out_long_routes( data + 1089 );
    netcode_connect_token_info( data, &info );
    size_t nth = any_size_up_to( sizeof( info.version ) - 1 );
    CLAIM( info.version[sizeof( info.version ) - 1] == 0 );
    CLAIM( info.version[nth] == 0 || ( info.version[nth] >= 0x20 && info.version[nth] < 0x7f ) );
    CLAIM( info.num_server_addresses >= 0 && info.num_server_addresses <= NETCODE_MAX_SERVERS_PER_CONNECT );
}

/* ---- whole tokens: what is written is read back ---- */

static void any_route( nc_route_t * route, int most )
{
    fill( route, sizeof( *route ) );
    route->num_addresses = any_int();
    GIVEN( route->num_addresses >= 1 && route->num_addresses <= most );
    for ( int i = 0; i < most; i++ )
        route->addresses[i] = any_address();
}

static void claim_same_route( const nc_route_t * a, const nc_route_t * b, int most )
{
    size_t nth = any_size_up_to( NETCODE_KEY_BYTES - 1 );
    CLAIM( a->timeout_seconds == b->timeout_seconds && a->num_addresses == b->num_addresses );
    CLAIM( a->client_to_server_key[nth] == b->client_to_server_key[nth] );
    CLAIM( a->server_to_client_key[nth] == b->server_to_client_key[nth] );
    for ( int i = 0; i < most; i++ )
        if ( i < a->num_addresses )
            claim_same( &a->addresses[i], &b->addresses[i] );
}

void prove_token_round_trip( void )
{
    nc_connect_token_t token, back;
    uint8_t * data = any_bytes( NETCODE_CONNECT_TOKEN_BYTES );
    size_t nth = any_size_up_to( NC_PRIVATE_TOKEN_BYTES - 1 );
    fill( &token, sizeof( token ) );
    GIVEN( token.create_timestamp <= token.expire_timestamp );
    any_route( &token.route, ROUTE );
    nc_token_write( data, &token );
    CLAIM( nc_token_read( data, &back ) );
    CLAIM( back.protocol_id == token.protocol_id && back.create_timestamp == token.create_timestamp );
    CLAIM( back.expire_timestamp == token.expire_timestamp );
    CLAIM( back.sealed_private[nth] == token.sealed_private[nth] );
    CLAIM( nth >= NC_TOKEN_NONCE_BYTES || back.nonce[nth] == token.nonce[nth] );
    claim_same_route( &token.route, &back.route, ROUTE );
}

/*  Of 1 to 32 addresses in any mixture. For the writers stand functions that take as many bytes as the proofs of the
    true ones say (FUNCTION=answer_... in proofs.list), and note which addresses they are given. */
static nc_route_t long_route;
static int addresses_written;

static void answer_writer( nc_writer_t * writer, size_t bytes )
{
    writer->failed |= writer->end - writer->at < bytes;
    if ( !writer->failed )
        writer->at += bytes;
}

/* prove_token_address_round_trip */
void answer_write_address( nc_writer_t * writer, const struct netcode_address_t * address )
{
    int nth = addresses_written++;
    CLAIM( nth < long_route.num_addresses && address == &long_route.addresses[nth] );
    answer_writer( writer, address->type == NETCODE_ADDRESS_IPV4 ? 7 : 19 );
}

/* prove_writer_number */
void answer_writer_number( nc_writer_t * writer, uint64_t value, size_t bytes )
{
    (void) value;
    answer_writer( writer, bytes );
}

/* prove_writer_bytes */
void answer_writer_bytes( nc_writer_t * writer, const uint8_t * data, size_t bytes )
{
    CLAIM( __CPROVER_r_ok( data, bytes ) );
    answer_writer( writer, bytes );
}

/* The largest token there is fits, and every address is written once. */
void prove_token_write_fits( void )
{
    nc_route_t * route = &long_route;
    route->num_addresses = 1 + (int) any_below( NETCODE_MAX_SERVERS_PER_CONNECT );
    for ( int i = 0; i < NETCODE_MAX_SERVERS_PER_CONNECT; i++ )
        route->addresses[i].type = any_u8();
    nc_writer_t writer = nc_writer_make( NULL, NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES );
    writer.at = 8;
    nc_token_write_route( &writer, route );
    CLAIM( !writer.failed && writer.at + NETCODE_USER_DATA_BYTES <= writer.end );
    CLAIM( addresses_written == route->num_addresses );
}

/* ---- sealing and opening: with what, and where to ---- */

static void claim_associated( uint64_t protocol_id, uint64_t expire )
{
    int nth = any_int();
    GIVEN( nth >= 0 && nth < 8 );
    CLAIM( stub_crypto.associated_bytes == 13 + 8 + 8 && stub_crypto.associated[11] == '2' );
    CLAIM( stub_crypto.associated[13 + nth] == ( protocol_id >> 8 * nth & 255 ) );
    CLAIM( stub_crypto.associated[21 + nth] == ( expire >> 8 * nth & 255 ) );
}

void prove_token_open_private( void )
{
    uint8_t nonce[NC_TOKEN_NONCE_BYTES], key[NETCODE_KEY_BYTES];
    const uint8_t * sealed = any_bytes( NC_PRIVATE_TOKEN_BYTES );
    uint8_t * plain = any_bytes( NC_PRIVATE_TOKEN_BYTES );
    nc_token_seal_t how = { any_u64(), any_u64(), nonce, key };
    size_t nth = any_size_up_to( NC_TOKEN_NONCE_BYTES - 1 );
    nc_token_open_private( plain, sealed, &how );
    CLAIM( stub_crypto.openings == 1 && stub_crypto.key == key && stub_crypto.in == sealed &&
           stub_crypto.out == plain );
    CLAIM( stub_crypto.bytes == NC_PRIVATE_TOKEN_BYTES && stub_crypto.nonce[nth] == nonce[nth] );
    claim_associated( how.protocol_id, how.expire_timestamp );
}

/* The byte at `place` of the private part's plain text is what the standard puts there: id, route, user data, zeros. */
static void claim_private( const nc_private_token_t * token, size_t place, uint8_t byte )
{
    size_t user_data = 8 + 8 + 2 * NETCODE_KEY_BYTES;
    for ( int i = 0; i < token->route.num_addresses; i++ )
        user_data += token->route.addresses[i].type == NETCODE_ADDRESS_IPV4 ? 7 : 19;
    if ( place < 8 )
        CLAIM( byte == ( token->client_id >> 8 * place & 255 ) );
    else if ( place >= user_data + NETCODE_USER_DATA_BYTES )
        CLAIM( byte == 0 );
    else if ( place >= user_data )
        CLAIM( byte == token->user_data[place - user_data] );
    else if ( place >= user_data - NETCODE_KEY_BYTES )
        CLAIM( byte == token->route.server_to_client_key[place - ( user_data - NETCODE_KEY_BYTES )] );
}

void prove_token_seal_private( void )
{
    uint8_t nonce[NC_TOKEN_NONCE_BYTES], key[NETCODE_KEY_BYTES];
    uint8_t * out = any_bytes( NC_PRIVATE_TOKEN_BYTES );
    nc_token_seal_t how = { any_u64(), any_u64(), nonce, key };
    nc_private_token_t token;
    size_t nth = any_size_up_to( NC_TOKEN_NONCE_BYTES - 1 );
    fill( &token, sizeof( token ) );
    any_route( &token.route, ROUTE );
    stub_crypto.probe = any_size_up_to( NC_PRIVATE_TOKEN_BYTES - 16 - 1 );
    nc_token_seal_private( out, &token, &how );
    claim_private( &token, stub_crypto.probe, stub_crypto.probed );
    CLAIM( stub_crypto.seals == 1 && stub_crypto.key == key && stub_crypto.in == out && stub_crypto.out == out );
    CLAIM( stub_crypto.bytes == NC_PRIVATE_TOKEN_BYTES - 16 && stub_crypto.nonce[nth] == nonce[nth] );
    claim_associated( how.protocol_id, how.expire_timestamp );
}

/* ---- challenges ---- */

void prove_challenge_open( void )
{
    uint8_t key[NETCODE_KEY_BYTES];
    uint8_t * data = any_bytes( NC_CHALLENGE_BYTES );
    nc_challenge_t challenge;
    uint64_t sequence = any_u64();
    size_t nth = any_size_up_to( NETCODE_USER_DATA_BYTES - 1 );
    int good = nc_challenge_open( data, &challenge, sequence, key );
    CLAIM( stub_crypto.openings == 1 && stub_crypto.bytes == 300 && stub_crypto.associated_bytes == 0 );
    CLAIM( number_at( stub_crypto.nonce + 4, 8 ) == sequence && number_at( stub_crypto.nonce, 4 ) == 0 );
    if ( !good )
        return;
    CLAIM( challenge.client_id == number_at( data, 8 ) && challenge.user_data[nth] == data[8 + nth] );
    CLAIM( nth >= NC_CHALLENGE_BIND_BYTES || challenge.bind[nth] == data[264 + nth] );
}

void prove_challenge_seal( void )
{
    uint8_t key[NETCODE_KEY_BYTES];
    uint8_t * out = any_bytes( NC_CHALLENGE_BYTES );
    nc_challenge_t challenge;
    uint64_t sequence = any_u64();
    fill( &challenge, sizeof( challenge ) );
    size_t nth = stub_crypto.probe = any_size_up_to( 300 - 16 - 1 );
    nc_challenge_seal( out, &challenge, sequence, key );
    if ( nth < 8 )
        CLAIM( stub_crypto.probed == ( challenge.client_id >> 8 * nth & 255 ) );
    else
        CLAIM( stub_crypto.probed == ( nth < 264 ? challenge.user_data[nth - 8] : challenge.bind[nth - 264] ) );
    CLAIM( stub_crypto.seals == 1 && stub_crypto.bytes == 300 - 16 && stub_crypto.out == out && stub_crypto.in == out );
    CLAIM( number_at( stub_crypto.nonce + 4, 8 ) == sequence && stub_crypto.associated_bytes == 0 );
}
