/*  Fuzz target: connect tokens and challenges. What is read from any bytes obeys the standard and survives writing and
    reading; what was sealed opens again, and after any change to a byte that the seal covers does not: a changed token gets
    no request past its server. Built and run by run.sh. */

#include "fuzz.h"

enum { TOKEN_PRIVATE_AT = 13 + 8 + 8 + 8 + 24, TOKEN_ROUTE_AT = TOKEN_PRIVATE_AT + 1024 };

static const uint8_t token_key[NETCODE_KEY_BYTES] = { 0x42, 1, 2, 3 };

static void token_check_route( const nc_route_t * route )
{
    FUZZ_CHECK( route->num_addresses >= 1 && route->num_addresses <= 32 );
    for ( int i = 0; i < route->num_addresses; i++ ) {
        const struct netcode_address_t * address = &route->addresses[i];
        struct netcode_address_t canonical = nc_address_canonical( address );
        FUZZ_CHECK( address->type == NETCODE_ADDRESS_IPV4 || address->type == NETCODE_ADDRESS_IPV6 );
        FUZZ_CHECK( address->port != 0 );
        FUZZ_CHECK( memcmp( &canonical.data, &address->data, 16 ) == 0 && canonical.type == address->type );
        FUZZ_CHECK( !nc_address_is_link_local( address ) || address->data.ipv6[1] == 0 );
    }
}

static void token_check_same_route( const nc_route_t * a, const nc_route_t * b )
{
    FUZZ_CHECK( a->timeout_seconds == b->timeout_seconds && a->num_addresses == b->num_addresses );
    for ( int i = 0; i < a->num_addresses; i++ )
        FUZZ_CHECK( nc_address_same( &a->addresses[i], &b->addresses[i] ) );
    FUZZ_CHECK( memcmp( a->client_to_server_key, b->client_to_server_key, NETCODE_KEY_BYTES ) == 0 );
    FUZZ_CHECK( memcmp( a->server_to_client_key, b->server_to_client_key, NETCODE_KEY_BYTES ) == 0 );
}

/* A block of its own, so that the address sanitizer sees a byte too far. */
static uint8_t * token_block( size_t bytes )
{
    uint8_t * block = (uint8_t *) calloc( 1, bytes );
    if ( !block )
        abort();
    return block;
}

/* The route of a token, from the input: what is not legal in it, too. Returns its size. */
static size_t token_spell_route( struct fuzz_input_t * input, uint8_t * out )
{
    uint8_t how = fuzz_u8( input );
    size_t at = 8;
    uint32_t count = how < 224 ? how & 31 : how == 255 ? 0xffffffffu : (uint32_t) ( how & 7 ) + 31;
    fuzz_bytes( input, out, 4 );
    for ( int i = 0; i < 4; i++ )
        out[4 + i] = (uint8_t) ( count >> ( 8 * i ) );
    for ( uint32_t i = 0; i < count && i < 40; i++ ) {
        uint8_t type = fuzz_u8( input );
        size_t bytes = type & 1 ? 4 : 16;
        out[at++] = type >= 248 ? type : (uint8_t) ( type & 1 ? 1 : 2 );
        if ( type & 2 )
            fuzz_bytes( input, out + at, bytes );
        else if ( type & 4 ) /* mapped, or link-local with an interface */
            memset( out + at + 10, 0xff, bytes == 16 ? 2 : 0 );
        else if ( type & 8 && bytes == 16 )
            memcpy( out + at, "\x80\xfe\x05", 3 );
        at += bytes;
        out[at++] = type & 16 ? 0 : fuzz_u8( input );
        out[at++] = type & 32 ? 1 : 0;
    }
    fuzz_fill( out + at, 64, how );
    return at + 64;
}

/* ---- the public part ---- */

static void token_check_public( const uint8_t * data )
{
    static nc_connect_token_t first, second;
    static uint8_t again[NETCODE_CONNECT_TOKEN_BYTES];
    static struct netcode_connect_token_info_t info;
    uint64_t create = nc_load_u64( data + 21 ), expire = nc_load_u64( data + 29 );
    memset( &first, 0, sizeof( first ) );
    int good = nc_token_read( data, &first );
    fuzz_note( (uint64_t) good );
    FUZZ_CHECK( netcode_connect_token_info( data, &info ) == ( good ? NETCODE_OK : NETCODE_ERROR ) );
    for ( size_t i = 0; i < sizeof( info.version ) && info.version[i]; i++ )
        FUZZ_CHECK( info.version[i] >= 0x20 && info.version[i] < 0x7f );
    FUZZ_CHECK( info.version[13] == 0 );
    if ( memcmp( data, FUZZ_VERSION, 13 ) != 0 || create > expire )
        FUZZ_CHECK( !good );
    if ( !good ) {
        FUZZ_CHECK( info.num_server_addresses == 0 && info.expire_timestamp == 0 );
        return;
    }
    token_check_route( &first.route );
    FUZZ_CHECK( first.create_timestamp == create && first.expire_timestamp == expire );
    FUZZ_CHECK( info.create_timestamp == create && info.expire_timestamp == expire );
    FUZZ_CHECK( info.protocol_id == first.protocol_id && info.timeout_seconds == first.route.timeout_seconds );
    FUZZ_CHECK( info.num_server_addresses == first.route.num_addresses );
    FUZZ_CHECK( memcmp( info.server_addresses, first.route.addresses, sizeof( info.server_addresses ) ) == 0 );
    nc_token_write( again, &first );
    FUZZ_CHECK( memcmp( again, data, TOKEN_ROUTE_AT ) == 0 );
    memset( &second, 0xee, sizeof( second ) );
    FUZZ_CHECK( nc_token_read( again, &second ) );
    token_check_same_route( &first.route, &second.route );
}

static void token_public( struct fuzz_input_t * input )
{
    uint8_t * data = token_block( NETCODE_CONNECT_TOKEN_BYTES );
    uint8_t how = fuzz_u8( input );
    memcpy( data, FUZZ_VERSION, 13 );
    fuzz_fill( data + 13, TOKEN_ROUTE_AT - 13, how );
    for ( int i = 0; i < 16; i++ )
        data[21 + i] = how & 1 ? fuzz_u8( input ) : i < 8 ? 0 : data[21 + i];
    token_spell_route( input, data + TOKEN_ROUTE_AT );
    if ( how & 2 )
        data[fuzz_u8( input ) % 37] ^= fuzz_u8( input );
    if ( how & 4 )
        fuzz_bytes( input, data, input->bytes - input->at < 2048 ? input->bytes - input->at : 2048 );
    token_check_public( data );
    free( data );
}

/* ---- the private part ---- */

static void token_check_sealed( struct fuzz_input_t * input, const nc_private_token_t * token )
{
    static uint8_t sealed[NC_PRIVATE_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES];
    static nc_private_token_t opened;
    uint8_t key[NETCODE_KEY_BYTES], nonce[NC_TOKEN_NONCE_BYTES];
    uint8_t how = fuzz_u8( input ), bits = fuzz_u8( input );
    nc_token_seal_t seal = { fuzz_u64( input ), fuzz_u64( input ), nonce, key };
    memcpy( key, token_key, sizeof( key ) );
    fuzz_fill( nonce, sizeof( nonce ), how );
    nc_token_seal_private( sealed, token, &seal );
    FUZZ_CHECK( nc_token_open_private( plain, sealed, &seal ) );
    memset( &opened, 0xee, sizeof( opened ) );
    FUZZ_CHECK( nc_token_read_private( plain, &opened ) );
    FUZZ_CHECK( opened.client_id == token->client_id );
    FUZZ_CHECK( memcmp( opened.user_data, token->user_data, sizeof( opened.user_data ) ) == 0 );
    token_check_same_route( &opened.route, &token->route );
    int at = (int) fuzz_number( input, 2 );
    if ( bits == 0 )
        return;
    switch ( how % 5 ) {
    case 0: sealed[at % NC_PRIVATE_TOKEN_BYTES] ^= bits; break;
    case 1: nonce[at % NC_TOKEN_NONCE_BYTES] ^= bits; break;
    case 2: key[at % NETCODE_KEY_BYTES] ^= bits; break;
    case 3: seal.protocol_id ^= (uint64_t) bits << ( 8 * ( at & 7 ) ); break;
    default: seal.expire_timestamp ^= (uint64_t) bits << ( 8 * ( at & 7 ) );
    }
    FUZZ_CHECK( !nc_token_open_private( plain, sealed, &seal ) );
}

static void token_private( struct fuzz_input_t * input )
{
    static nc_private_token_t token;
    uint8_t * plain = token_block( NC_PRIVATE_TOKEN_BYTES + 64 );
    uint8_t * exact = token_block( NC_PRIVATE_TOKEN_BYTES );
    fuzz_bytes( input, plain, 8 );
    size_t at = 8 + token_spell_route( input, plain + 8 );
    if ( at < NC_PRIVATE_TOKEN_BYTES - 300 )
        fuzz_fill( plain + at, NETCODE_USER_DATA_BYTES, at );
    memcpy( exact, plain, NC_PRIVATE_TOKEN_BYTES );
    memset( &token, 0, sizeof( token ) );
    int good = nc_token_read_private( exact, &token );
    fuzz_note( (uint64_t) good );
    if ( good ) {
        token_check_route( &token.route );
        FUZZ_CHECK( memcmp( plain, &token.client_id, 8 ) == 0 || token.client_id == nc_load_u64( plain ) );
        token_check_sealed( input, &token );
    }
    free( plain );
    free( exact );
}

/* ---- challenges ---- */

static void token_challenge( struct fuzz_input_t * input )
{
    uint8_t key[NETCODE_KEY_BYTES], sealed[NC_CHALLENGE_BYTES], copy[NC_CHALLENGE_BYTES];
    nc_challenge_t challenge, opened;
    uint8_t how = fuzz_u8( input ), bits = fuzz_u8( input );
    uint64_t sequence = fuzz_u64( input );
    int at = (int) fuzz_number( input, 2 );
    memcpy( key, token_key, sizeof( key ) );
    memset( &opened, 0xee, sizeof( opened ) );
    fuzz_fill( (uint8_t *) &challenge, sizeof( challenge ), how );
    challenge.client_id = fuzz_u64( input );
    nc_challenge_seal( sealed, &challenge, sequence, key );
    memcpy( copy, sealed, sizeof( copy ) );
    FUZZ_CHECK( nc_challenge_open( copy, &opened, sequence, key ) );
    FUZZ_CHECK( opened.client_id == challenge.client_id );
    FUZZ_CHECK( memcmp( opened.user_data, challenge.user_data, NETCODE_USER_DATA_BYTES ) == 0 );
    FUZZ_CHECK( memcmp( opened.bind, challenge.bind, NC_CHALLENGE_BIND_BYTES ) == 0 );
    if ( bits == 0 )
        return;
    switch ( how % 3 ) {
    case 0: sealed[at % NC_CHALLENGE_BYTES] ^= bits; break;
    case 1: key[at % NETCODE_KEY_BYTES] ^= bits; break;
    default: sequence ^= (uint64_t) bits << ( 8 * ( at & 7 ) );
    }
    memset( &opened, 0xee, sizeof( opened ) );
    FUZZ_CHECK( !nc_challenge_open( sealed, &opened, sequence, key ) );
    FUZZ_CHECK( opened.client_id == 0xeeeeeeeeeeeeeeeeu ); /* nothing of it leaves */
}

/* ---- the path from the backend to the server ---- */

static const char * const token_texts[] = { "10.0.0.1:40000",     "[fd00::1:2]:50000", "[fe80::7%3]:9",  "127.0.0.1:1",
                                            "[::ffff:1.2.3.4]:5", "1.2.3.4",           "not an address", NULL };
enum { TOKEN_TEXTS = 8, TOKEN_GOOD_TEXTS = 5 };

struct token_wish_t {
    const char * public_texts[NETCODE_MAX_SERVERS_PER_CONNECT];
    const char * private_texts[NETCODE_MAX_SERVERS_PER_CONNECT];
    int count;
    int expire_seconds;
    int timeout_seconds;
    uint64_t client_id;
    uint64_t protocol_id;
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
    int has_user_data;
    int good;
};

static void token_read_wish( struct fuzz_input_t * input, struct token_wish_t * wish )
{
    uint8_t how = fuzz_u8( input );
    int texts = how & 128 ? TOKEN_TEXTS : TOKEN_GOOD_TEXTS;
    wish->count = 1 + how % NETCODE_MAX_SERVERS_PER_CONNECT;
    wish->good = 1;
    for ( int i = 0; i < wish->count; i++ ) {
        uint8_t which = fuzz_u8( input );
        int first = ( which & 15 ) % texts, second = ( which >> 4 ) % texts;
        wish->public_texts[i] = token_texts[first];
        wish->private_texts[i] = token_texts[second];
        wish->good &= first < TOKEN_GOOD_TEXTS && second < TOKEN_GOOD_TEXTS;
    }
    wish->expire_seconds = (int) (uint32_t) fuzz_u64( input );
    wish->timeout_seconds = (int) (uint32_t) fuzz_u64( input );
    wish->client_id = fuzz_u64( input );
    wish->protocol_id = fuzz_u64( input );
    wish->has_user_data = fuzz_u8( input ) & 1;
    fuzz_fill( wish->user_data, sizeof( wish->user_data ), how );
    fuzz_unix = fuzz_u8( input ) & 1 ? fuzz_u64( input ) >> 1 : FUZZ_UNIX;
}

static int token_generate( struct token_wish_t * wish, uint8_t * out )
{
    return netcode_generate_connect_token( wish->count, wish->public_texts, wish->private_texts, wish->expire_seconds,
                                           wish->timeout_seconds, wish->client_id, wish->protocol_id, token_key,
                                           wish->has_user_data ? wish->user_data : NULL, out );
}

static void token_check_texts( const nc_route_t * route, const char * const * texts, int count )
{
    FUZZ_CHECK( route->num_addresses == count );
    for ( int i = 0; i < count; i++ ) {
        struct netcode_address_t address;
        FUZZ_CHECK( netcode_parse_address( texts[i], &address ) == NETCODE_OK );
        address = nc_address_without_interface( &address );
        FUZZ_CHECK( netcode_address_equal( &address, &route->addresses[i] ) );
    }
}

/*  What a server would make of a client's request with this token, as far as keys and format go. */
static int token_passes( const uint8_t * token_bytes, const struct token_wish_t * wish, nc_private_token_t * out )
{
    static nc_connect_token_t token;
    static uint8_t data[NC_REQUEST_BYTES], plain[NC_PRIVATE_TOKEN_BYTES];
    nc_request_t request;
    memset( &token, 0, sizeof( token ) );
    if ( !nc_token_read( token_bytes, &token ) )
        return 0;
    FUZZ_CHECK( nc_packet_write_request( data, &token ) == NC_REQUEST_BYTES );
    if ( nc_packet_parse_request( &request, data, NC_REQUEST_BYTES, wish->protocol_id ) != NETCODE_DROP_NONE )
        return 0;
    nc_token_seal_t how = { wish->protocol_id, request.expire_timestamp, request.nonce, token_key };
    return nc_token_open_private( plain, request.sealed_private, &how ) && nc_token_read_private( plain, out );
}

static void token_check_generated( const uint8_t * bytes, const struct token_wish_t * wish )
{
    static nc_private_token_t private_token;
    static nc_connect_token_t token;
    FUZZ_CHECK( nc_token_read( bytes, &token ) );
    FUZZ_CHECK( token.create_timestamp == fuzz_unix );
    FUZZ_CHECK( token.expire_timestamp ==
                ( wish->expire_seconds < 0 ? UINT64_MAX : fuzz_unix + (uint64_t) wish->expire_seconds ) );
    FUZZ_CHECK( token_passes( bytes, wish, &private_token ) );
    FUZZ_CHECK( private_token.client_id == wish->client_id );
    FUZZ_CHECK( wish->has_user_data ? memcmp( private_token.user_data, wish->user_data, 256 ) == 0
                                    : sodium_is_zero( private_token.user_data, 256 ) );
    FUZZ_CHECK( private_token.route.timeout_seconds == wish->timeout_seconds );
    FUZZ_CHECK( token.route.timeout_seconds == wish->timeout_seconds );
    FUZZ_CHECK( memcmp( token.route.client_to_server_key, private_token.route.client_to_server_key, 64 ) == 0 );
    FUZZ_CHECK( memcmp( token.route.client_to_server_key, token.route.server_to_client_key, 32 ) != 0 );
    token_check_texts( &token.route, wish->public_texts, wish->count );
    token_check_texts( &private_token.route, wish->private_texts, wish->count );
}

/* A byte of the token is changed: whatever the request carries of it is sealed, all else is the client's own affair. */
static void token_check_changed( struct fuzz_input_t * input, uint8_t * bytes, const struct token_wish_t * wish )
{
    static nc_private_token_t first, second;
    static nc_connect_token_t token;
    size_t at = (size_t) fuzz_number( input, 2 ) % NETCODE_CONNECT_TOKEN_BYTES;
    uint8_t bits = fuzz_u8( input );
    if ( bits == 0 )
        return;
    memset( &first, 0, sizeof( first ) );
    memset( &second, 0, sizeof( second ) );
    FUZZ_CHECK( token_passes( bytes, wish, &first ) );
    bytes[at] ^= bits;
    int passes = token_passes( bytes, wish, &second );
    fuzz_note( (uint64_t) passes );
    if ( at < TOKEN_ROUTE_AT && !( at >= 21 && at < 29 ) ) { /* the creation's time is not sealed */
        FUZZ_CHECK( !passes );
        return;
    }
    FUZZ_CHECK( passes == nc_token_read( bytes, &token ) );
    if ( passes )
        FUZZ_CHECK( memcmp( &first, &second, sizeof( first ) ) == 0 );
}

static void token_round_trip( struct fuzz_input_t * input )
{
    static struct token_wish_t wish;
    uint8_t * bytes = token_block( NETCODE_CONNECT_TOKEN_BYTES );
    token_read_wish( input, &wish );
    if ( wish.count & 1 )
        netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    if ( wish.expire_seconds >= 0 && fuzz_unix + (uint64_t) wish.expire_seconds < fuzz_unix )
        fuzz_unix = FUZZ_UNIX;
    int made = token_generate( &wish, bytes ) == NETCODE_OK;
    FUZZ_CHECK( made == wish.good );
    if ( made ) {
        token_check_generated( bytes, &wish );
        token_check_changed( input, bytes, &wish );
    } else
        FUZZ_CHECK( sodium_is_zero( bytes, NETCODE_CONNECT_TOKEN_BYTES ) );
    free( bytes );
}

static void token_mistakes( struct fuzz_input_t * input )
{
    static uint8_t out[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    const char * texts[] = { token_texts[0], token_texts[1] };
    const char ** lists[] = { texts, NULL };
    uint8_t which = fuzz_u8( input );
    static const int counts[] = { 0, -1, 33, 1 };
    netcode_log_level( which & 64 ? NETCODE_LOG_LEVEL_NONE : NETCODE_LOG_LEVEL_ERROR );
    const uint8_t * key = which & 4 ? NULL : token_key;
    uint8_t * token = which & 8 ? NULL : out;
    int count = counts[which & 3], made = 0;
    FUZZ_BAD( made = netcode_generate_connect_token( count, lists[which >> 4 & 1], lists[which >> 5 & 1], 30, 5, 1, 1,
                                                     key, NULL, token ) );
    FUZZ_CHECK( made == ( ( which & 63 ) == 3 ? NETCODE_OK : NETCODE_ERROR ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_connect_token_info( NULL, &info ) == NETCODE_ERROR ) );
    FUZZ_BAD( FUZZ_CHECK( netcode_connect_token_info( out, NULL ) == NETCODE_ERROR ) );
}

static void fuzz_token( struct fuzz_input_t * input )
{
    switch ( fuzz_u8( input ) % 8 ) {
    case 0: token_mistakes( input ); break;
    case 1:
    case 2: token_public( input ); break;
    case 3:
    case 4: token_private( input ); break;
    case 5: token_challenge( input ); break;
    default: token_round_trip( input );
    }
}

FUZZ_TARGET( token )
