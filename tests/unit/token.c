/*  Token: connect tokens and challenge tokens: what is valid, what is not, and what every tampered byte does.
    Standard: Connect Token; Challenge Token. attacks/rows.py, row 12 */

/* Where the fields of a token's public part stand. Standard: Connect Token */
enum {
    TOKEN_AT_PROTOCOL_ID = 13,
    TOKEN_AT_CREATE = 21,
    TOKEN_AT_EXPIRE = 29,
    TOKEN_AT_NONCE = 37,
    TOKEN_AT_PRIVATE = 61,
    TOKEN_AT_TIMEOUT = 1085,
    TOKEN_AT_COUNT = 1089,
    TOKEN_AT_ADDRESSES = 1093
};

static const uint8_t token_key[NETCODE_KEY_BYTES] = { 0x17, 0x22, 0x33, 4, 5, 6, 7 };
static const uint64_t token_protocol_id = 0xFEDCBA9876543210u;

/* One of our own tokens, for two servers: IPv4, then IPv6. */
static void token_make( uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    const char * addresses[] = { "127.0.0.1:40000", "[::1]:50000" };
    REQUIRE_EQ( netcode_generate_connect_token( 2, addresses, addresses, 30, 5, 77, token_protocol_id, token_key, NULL,
                                                token ),
                NETCODE_OK );
}

static nc_token_seal_t token_how( const uint8_t * token )
{
    nc_token_seal_t how;
    how.protocol_id = nc_load_u64( token + TOKEN_AT_PROTOCOL_ID );
    how.expire_timestamp = nc_load_u64( token + TOKEN_AT_EXPIRE );
    how.nonce = token + TOKEN_AT_NONCE;
    how.key = token_key;
    return how;
}

static int token_is_valid( const uint8_t * token )
{
    struct netcode_connect_token_info_t info;
    return netcode_connect_token_info( token, &info ) == NETCODE_OK;
}

TEST( token_generate_and_info )
{
    const char * public_addresses[] = { "1.2.3.4:5", "[2001:db8::1]:6", "[::ffff:9.8.7.6]:7" };
    const char * internal_addresses[] = { "10.0.0.1:5", "10.0.0.2:6", "[fd00::1]:7" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], again[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
    uint8_t plain[NC_PRIVATE_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    nc_private_token_t hidden;
    nc_connect_token_t shown;
    nc_token_seal_t how;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint64_t before = (uint64_t) time( NULL ), after;
    int i;
    for ( i = 0; i < NETCODE_USER_DATA_BYTES; i++ )
        user_data[i] = (uint8_t) ( i * 3 + 1 );
    REQUIRE_EQ( netcode_generate_connect_token( 3, public_addresses, internal_addresses, 45, -1, 0xABCDEF0123456789u,
                                                token_protocol_id, token_key, user_data, token ),
                NETCODE_OK );
    after = (uint64_t) time( NULL );
    REQUIRE_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
    CHECK_STR( info.version, "NETCODE 1.02" );
    CHECK_EQ( info.protocol_id, token_protocol_id );
    CHECK( info.create_timestamp >= before && info.create_timestamp <= after );
    CHECK_EQ( info.expire_timestamp - info.create_timestamp, 45 );
    CHECK_EQ( info.timeout_seconds, -1 );
    REQUIRE_EQ( info.num_server_addresses, 3 );
    CHECK_STR( netcode_address_to_string( &info.server_addresses[0], text ), "1.2.3.4:5" );
    CHECK_STR( netcode_address_to_string( &info.server_addresses[1], text ), "[2001:db8::1]:6" );
    CHECK_STR( netcode_address_to_string( &info.server_addresses[2], text ), "9.8.7.6:7" );
    CHECK_EQ( info.server_addresses[3].type, NETCODE_ADDRESS_NONE );
    how = token_how( token );
    REQUIRE( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
    REQUIRE( nc_token_read_private( plain, &hidden ) );
    REQUIRE( nc_token_read( token, &shown ) );
    CHECK_EQ( hidden.client_id, 0xABCDEF0123456789u );
    CHECK_EQ( hidden.route.timeout_seconds, -1 );
    CHECK_EQ( hidden.route.num_addresses, 3 );
    CHECK_STR( netcode_address_to_string( &hidden.route.addresses[0], text ), "10.0.0.1:5" );
    CHECK_STR( netcode_address_to_string( &hidden.route.addresses[1], text ), "10.0.0.2:6" );
    CHECK_STR( netcode_address_to_string( &hidden.route.addresses[2], text ), "[fd00::1]:7" );
    CHECK_MEM( hidden.user_data, user_data, sizeof( user_data ) );
    CHECK_MEM( hidden.route.client_to_server_key, shown.route.client_to_server_key, NETCODE_KEY_BYTES );
    CHECK_MEM( hidden.route.server_to_client_key, shown.route.server_to_client_key, NETCODE_KEY_BYTES );
    CHECK( memcmp( shown.route.client_to_server_key, shown.route.server_to_client_key, NETCODE_KEY_BYTES ) != 0 );
    /* keys and nonce are fresh each time */
    REQUIRE_EQ( netcode_generate_connect_token( 3, public_addresses, internal_addresses, 45, -1, 0xABCDEF0123456789u,
                                                token_protocol_id, token_key, user_data, again ),
                NETCODE_OK );
    CHECK( memcmp( token + TOKEN_AT_NONCE, again + TOKEN_AT_NONCE, NC_TOKEN_NONCE_BYTES ) != 0 );
    REQUIRE( nc_token_read( again, &shown ) );
    CHECK( memcmp( hidden.route.client_to_server_key, shown.route.client_to_server_key, NETCODE_KEY_BYTES ) != 0 );
}

/* Padding is zeros, so no memory of the backend leaves with it. attacks/rows.py, row 47 */
TEST( token_padding_is_zero )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES];
    nc_token_seal_t how;
    int i;
    memset( token, 0xDD, sizeof( token ) );
    token_make( token );
    for ( i = TOKEN_AT_ADDRESSES + 7 + 19 + 64; i < NETCODE_CONNECT_TOKEN_BYTES; i++ )
        CHECK_EQ( token[i], 0 );
    how = token_how( token );
    REQUIRE( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
    for ( i = 16 + 7 + 19 + 64; i < NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES; i++ )
        CHECK_EQ( plain[i], 0 ); /* user data NULL means zeros, and behind it the padding */
}

TEST( token_expiry_and_timeouts )
{
    static const struct {
        int expire_seconds;
        int timeout_seconds;
    } rows[] = { { 0, 0 },
                 { 1, 1 },
                 { 30, 10 },
                 { -1, -1 },
                 { -2147483647 - 1, -2147483647 - 1 },
                 { 2147483647, 2147483647 },
                 { -30, 5 },
                 { 5, -30 } };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        const char * address = "127.0.0.1:1";
        uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES];
        struct netcode_connect_token_info_t info;
        nc_private_token_t hidden;
        nc_token_seal_t how;
        REQUIRE_EQ( netcode_generate_connect_token( 1, &address, &address, rows[i].expire_seconds,
                                                    rows[i].timeout_seconds, 1, token_protocol_id, token_key, NULL,
                                                    token ),
                    NETCODE_OK );
        REQUIRE_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
        if ( rows[i].expire_seconds < 0 )
            CHECK_EQ( info.expire_timestamp, UINT64_MAX );
        else
            CHECK_EQ( info.expire_timestamp - info.create_timestamp, rows[i].expire_seconds );
        CHECK_EQ( info.timeout_seconds, rows[i].timeout_seconds );
        how = token_how( token );
        REQUIRE( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
        REQUIRE( nc_token_read_private( plain, &hidden ) );
        CHECK_EQ( hidden.route.timeout_seconds, rows[i].timeout_seconds );
    }
}

TEST( token_generate_refuses )
{
    static const char * const bad[] = { "127.0.0.1", "127.0.0.1:0",  "::1", "[::1]:0", "localhost:5",
                                        "",          "1.2.3.4:99999" };
    const char * good[33];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    size_t i;
    int lines;
    for ( i = 0; i < 33; i++ )
        good[i] = i % 2 ? "[2001:db8::1]:6" : "1.2.3.4:5";
    for ( i = 0; i < sizeof( bad ) / sizeof( bad[0] ); i++ ) {
        const char * mixed[2] = { "1.2.3.4:5", NULL };
        mixed[1] = bad[i];
        lines = test_log_lines;
        CHECK_EQ( netcode_generate_connect_token( 2, mixed, good, 1, 1, 1, 1, token_key, NULL, token ), NETCODE_ERROR );
        CHECK_EQ( netcode_generate_connect_token( 2, good, mixed, 1, 1, 1, 1, token_key, NULL, token ), NETCODE_ERROR );
        CHECK_GE( test_log_lines, lines + 2 );
    }
    good[1] = NULL;
    TOLERATE( CHECK_EQ( netcode_generate_connect_token( 2, good, good, 1, 1, 1, 1, token_key, NULL, token ),
                        NETCODE_ERROR ) );
    good[1] = "1.2.3.4:5";
    CHECK_EQ( netcode_generate_connect_token( 32, good, good, 1, 1, 1, 1, token_key, NULL, token ), NETCODE_OK );
    CHECK( token_is_valid( token ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( 33, good, good, 1, 1, 1, 1, token_key, NULL, token ),
                   NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( 0, good, good, 1, 1, 1, 1, token_key, NULL, token ),
                   NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( -1, good, good, 1, 1, 1, 1, token_key, NULL, token ),
                   NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( 1, NULL, good, 1, 1, 1, 1, token_key, NULL, token ),
                   NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( 1, good, NULL, 1, 1, 1, 1, token_key, NULL, token ),
                   NETCODE_ERROR ) );
    BAD( CHECK_EQ( netcode_generate_connect_token( 1, good, good, 1, 1, 1, 1, NULL, NULL, token ), NETCODE_ERROR ) );
    BAD(
        CHECK_EQ( netcode_generate_connect_token( 1, good, good, 1, 1, 1, 1, token_key, NULL, NULL ), NETCODE_ERROR ) );
    BAD( CHECK( !token_is_valid( NULL ) ) );
    BAD( CHECK_EQ( netcode_connect_token_info( token, NULL ), NETCODE_ERROR ) );
}

/* ---- the public part, one change at a time ---- */

struct token_row_t {
    const char * why;
    int at;
    int bytes;
    uint64_t value;
    int valid;
};

static const struct token_row_t token_rows[] = {
    { "as it was made", 0, 0, 0, 1 },
    { "version 1.01", 11, 1, '1', 0 },
    { "version without its NUL", 12, 1, ' ', 0 },
    { "protocol id 0", TOKEN_AT_PROTOCOL_ID, 8, 0, 1 },
    { "created at 0", TOKEN_AT_CREATE, 8, 0, 1 },
    { "created at 2^64 - 1, after it expires", TOKEN_AT_CREATE, 8, UINT64_MAX, 0 },
    { "expires at 0, before it is created", TOKEN_AT_EXPIRE, 8, 0, 0 },
    { "expires at 2^64 - 1: never", TOKEN_AT_EXPIRE, 8, UINT64_MAX, 1 },
    { "timeout 0", TOKEN_AT_TIMEOUT, 4, 0, 1 },
    { "timeout -1", TOKEN_AT_TIMEOUT, 4, 0xFFFFFFFFu, 1 },
    { "timeout 2^31 - 1", TOKEN_AT_TIMEOUT, 4, 0x7FFFFFFFu, 1 },
    { "no address", TOKEN_AT_COUNT, 4, 0, 0 },
    { "one address: the rest is read as keys", TOKEN_AT_COUNT, 4, 1, 1 },
    { "33 addresses", TOKEN_AT_COUNT, 4, 33, 0 },
    { "2^31 addresses", TOKEN_AT_COUNT, 4, 0x80000000u, 0 },
    { "-1 addresses", TOKEN_AT_COUNT, 4, 0xFFFFFFFFu, 0 },
    { "256 + 2 addresses", TOKEN_AT_COUNT, 4, 258, 0 },
    { "address of type 0", TOKEN_AT_ADDRESSES, 1, 0, 0 },
    { "address of type 3", TOKEN_AT_ADDRESSES, 1, 3, 0 },
    { "address of type 255", TOKEN_AT_ADDRESSES, 1, 255, 0 },
    { "second address of type 0", TOKEN_AT_ADDRESSES + 7, 1, 0, 0 },
    { "second address of type 3", TOKEN_AT_ADDRESSES + 7, 1, 3, 0 },
    { "port 0", TOKEN_AT_ADDRESSES + 5, 2, 0, 0 },
    { "port 65535", TOKEN_AT_ADDRESSES + 5, 2, 65535, 1 },
    { "second port 0", TOKEN_AT_ADDRESSES + 7 + 17, 2, 0, 0 },
};

TEST( token_public_part_grid )
{
    uint8_t made[NETCODE_CONNECT_TOKEN_BYTES], token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    size_t i;
    int k;
    token_make( made );
    for ( i = 0; i < sizeof( token_rows ) / sizeof( token_rows[0] ); i++ ) {
        const struct token_row_t * row = &token_rows[i];
        memcpy( token, made, sizeof( token ) );
        for ( k = 0; k < row->bytes; k++ )
            token[row->at + k] = (uint8_t) ( row->value >> ( 8 * k ) );
        memset( &info, 0xAA, sizeof( info ) );
        if ( ( netcode_connect_token_info( token, &info ) == NETCODE_OK ) != row->valid )
            test_fail( __FILE__, __LINE__, "%s: should be %s", row->why, row->valid ? "valid" : "invalid" );
        if ( !row->valid )
            CHECK_EQ( info.num_server_addresses, 0 );
    }
}

TEST( token_create_and_expire_may_be_equal )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    uint64_t create;
    token_make( token );
    create = nc_load_u64( token + TOKEN_AT_CREATE );
    nc_store_u64( token + TOKEN_AT_EXPIRE, create );
    CHECK( token_is_valid( token ) );
    nc_store_u64( token + TOKEN_AT_EXPIRE, create - 1 );
    CHECK( !token_is_valid( token ) );
    nc_store_u64( token + TOKEN_AT_CREATE, UINT64_MAX );
    nc_store_u64( token + TOKEN_AT_EXPIRE, UINT64_MAX );
    CHECK( token_is_valid( token ) );
}

/* `version` is filled in any case, and only with what a terminal can show. */
TEST( token_info_names_foreign_versions )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    memset( token, 0, sizeof( token ) );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    CHECK_STR( info.version, "" );
    token_make( token );
    memcpy( token, "NETCODE 1.01", 13 );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    CHECK_STR( info.version, "NETCODE 1.01" );
    memset( token, 0x1b, sizeof( token ) );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    CHECK_STR( info.version, "?????????????" );
    CHECK_EQ( info.protocol_id, 0 );
    memset( token, 0xff, sizeof( token ) );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    CHECK_STR( info.version, "?????????????" );
}

/* 32 addresses of the larger kind still fit into both parts; the private part's sealed 1008 bytes hold them all. */
TEST( token_largest )
{
    const char * addresses[32];
    char texts[32][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
    nc_private_token_t hidden;
    nc_token_seal_t how;
    int i;
    memset( user_data, 0xff, sizeof( user_data ) );
    for ( i = 0; i < 32; i++ ) {
        snprintf( texts[i], sizeof( texts[i] ), "[2001:db8:1:2:3:4:5:%x]:%d", i, 65535 - i );
        addresses[i] = texts[i];
    }
    REQUIRE_EQ( netcode_generate_connect_token( 32, addresses, addresses, 1, 1, 1, token_protocol_id, token_key,
                                                user_data, token ),
                NETCODE_OK );
    CHECK( token_is_valid( token ) );
    how = token_how( token );
    REQUIRE( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
    REQUIRE( nc_token_read_private( plain, &hidden ) );
    CHECK_EQ( hidden.route.num_addresses, 32 );
    CHECK_EQ( hidden.route.addresses[31].port, 65535 - 31 );
    CHECK_MEM( hidden.user_data, user_data, sizeof( user_data ) );
}

/* ---- the private part ---- */

/* What a server that owns the key reads from `count` addresses of one family, with one field changed. */
static int token_private_is_valid( int count, int type, int port )
{
    uint8_t plain[NC_PRIVATE_TOKEN_BYTES];
    nc_private_token_t token;
    nc_writer_t writer = nc_writer_make( plain, sizeof( plain ) );
    int i;
    memset( plain, 0, sizeof( plain ) );
    nc_writer_number( &writer, 1, 8 );
    nc_writer_number( &writer, 5, 4 );
    nc_writer_number( &writer, (uint64_t) (uint32_t) count, 4 );
    for ( i = 0; i < count && i < 33; i++ ) {
        nc_writer_number( &writer, (uint64_t) type, 1 );
        nc_writer_number( &writer, 0x0100007F, 4 );
        if ( type == 2 )
            nc_writer_zeros( &writer ), writer.at = 16 + (size_t) i * 19 + 17;
        nc_writer_number( &writer, (uint64_t) port, 2 );
    }
    return nc_token_read_private( plain, &token );
}

TEST( token_private_part_grid )
{
    int count, type, port;
    for ( count = -1; count <= 40; count++ )
        for ( type = 0; type <= 3; type++ )
            for ( port = 0; port <= 2; port++ )
                CHECK_EQ( token_private_is_valid( count, type, port ),
                          count >= 1 && count <= 32 && ( type == 1 || type == 2 ) && port > 0 );
    CHECK( !token_private_is_valid( -2147483647 - 1, 1, 1 ) );
    CHECK( !token_private_is_valid( 256 + 1, 1, 1 ) );
}

/* A route that is cut inside each of its fields fails, and none of its cuts is read past the end. */
TEST( token_truncated_in_each_field )
{
    uint8_t made[NETCODE_CONNECT_TOKEN_BYTES];
    const size_t whole = 8 + 7 + 19 + 64;
    size_t bytes;
    token_make( made );
    for ( bytes = 0; bytes <= whole; bytes++ ) {
        uint8_t * data = (uint8_t *) malloc( bytes ? bytes : 1 );
        nc_reader_t reader = nc_reader_make( data, bytes );
        nc_route_t route;
        memset( &route, 0, sizeof( route ) );
        memcpy( data, made + TOKEN_AT_TIMEOUT, bytes );
        nc_token_read_route( &reader, &route );
        CHECK_EQ( reader.failed, bytes < whole );
        free( data );
    }
}

/* Each byte of the private part, of the nonce, the protocol id and the expiry, and of the key: none may change. */
TEST( token_tampered_private_parts_do_not_open )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES], key[NETCODE_KEY_BYTES];
    nc_token_seal_t how;
    int at;
    token_make( token );
    for ( at = TOKEN_AT_PROTOCOL_ID; at < TOKEN_AT_TIMEOUT; at++ ) {
        int counts = at < TOKEN_AT_CREATE || at >= TOKEN_AT_EXPIRE; /* the create timestamp is the client's matter */
        token[at] ^= (uint8_t) ( 1 << at % 8 );
        how = token_how( token );
        CHECK_EQ( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ), !counts );
        token[at] ^= (uint8_t) ( 1 << at % 8 );
    }
    memcpy( key, token_key, sizeof( key ) );
    how = token_how( token );
    how.key = key;
    for ( at = 0; at < NETCODE_KEY_BYTES; at++ ) {
        key[at] ^= 0x40;
        CHECK( !nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
        key[at] ^= 0x40;
    }
    CHECK( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
}

/* A wrong key leaves the sealed bytes as they are: the next key can be tried. */
TEST( token_failed_open_keeps_the_sealed_part )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], copy[NETCODE_CONNECT_TOKEN_BYTES], plain[NC_PRIVATE_TOKEN_BYTES];
    static const uint8_t wrong[NETCODE_KEY_BYTES] = { 1 };
    nc_token_seal_t how;
    token_make( token );
    memcpy( copy, token, sizeof( copy ) );
    how = token_how( token );
    how.key = wrong;
    CHECK( !nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
    CHECK_MEM( token, copy, sizeof( token ) );
    how.key = token_key;
    CHECK( nc_token_open_private( plain, token + TOKEN_AT_PRIVATE, &how ) );
}

/* IPv4-mapped addresses in a token are IPv4. */
/* The interface of a link-local address is this machine's own: it is neither written nor read. */
TEST( token_link_local_addresses )
{
    uint8_t wire[19];
    nc_writer_t writer = nc_writer_make( wire, sizeof( wire ) );
    nc_reader_t reader = nc_reader_make( wire, sizeof( wire ) );
    struct netcode_address_t address;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    REQUIRE_EQ( netcode_parse_address( "[fe80::1%7]:5", &address ), NETCODE_OK );
    nc_token_write_address( &writer, &address );
    CHECK_EQ( wire[3], 0 );
    wire[3] = 7; /* the second word's lower byte */
    nc_token_read_address( &reader, &address );
    CHECK( !reader.failed );
    CHECK_STR( netcode_address_to_string( &address, text ), "[fe80::1]:5" );
}

TEST( token_mapped_addresses )
{
    uint8_t wire[19];
    nc_writer_t writer = nc_writer_make( wire, sizeof( wire ) );
    nc_reader_t reader = nc_reader_make( wire, sizeof( wire ) );
    struct netcode_address_t address;
    static const uint16_t words[8] = { 0, 0, 0, 0, 0, 0xffff, 0x0102, 0x0304 };
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i;
    nc_writer_number( &writer, NETCODE_ADDRESS_IPV6, 1 );
    for ( i = 0; i < 8; i++ )
        nc_writer_number( &writer, words[i], 2 );
    nc_writer_number( &writer, 5, 2 );
    nc_token_read_address( &reader, &address );
    CHECK( !reader.failed );
    CHECK_STR( netcode_address_to_string( &address, text ), "1.2.3.4:5" );
}

#if STACK_SEARCHED

static uint8_t token_left_token[NETCODE_CONNECT_TOKEN_BYTES];
static uint8_t token_left_user_data[NETCODE_USER_DATA_BYTES];

static void token_left_generate( void )
{
    static const char * address = "127.0.0.1:40000";
    static const uint8_t key[NETCODE_KEY_BYTES] = { 9, 8, 7 };
    CHECK_EQ( netcode_generate_connect_token( 1, &address, &address, 30, 5, 1, 2, key, token_left_user_data,
                                              token_left_token ),
              NETCODE_OK );
}

static void token_left_info( void )
{
    struct netcode_connect_token_info_t info;
    CHECK_EQ( netcode_connect_token_info( token_left_token, &info ), NETCODE_OK );
}

/* Decision 9, for what a backend's and a client's own calls leave behind. */
TEST( mutants_tokens_leave_nothing_on_the_stack )
{
    /* public part: 61 bytes, the sealed part, timeout, count, one IPv4 address of 7 bytes; then both keys */
    const uint8_t * keys = token_left_token + 61 + 1024 + 8 + 7;
    size_t i;
    for ( i = 0; i < sizeof( token_left_user_data ); i++ )
        token_left_user_data[i] = (uint8_t) ( test_random() >> 7 );
    token_left_generate(); /* a first call may put every register on the stack, while the dynamic linker looks for it */
    token_left_info();
    stack_run( token_left_generate );
    CHECK_EQ( stack_holds( token_left_user_data + 64, 32 ), 0 );
    CHECK_EQ( stack_holds( keys, 16 ), 0 );
    CHECK_EQ( stack_holds( keys + 32, 16 ), 0 );
    stack_free();
    stack_run( token_left_info );
    CHECK_EQ( stack_holds( keys, 16 ), 0 );
    CHECK_EQ( stack_holds( keys + 48, 16 ), 0 );
    stack_free();
}

#endif

TEST( mutants_info_of_an_unreadable_token_is_empty )
{
    static const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    const uint8_t * bytes = (const uint8_t *) &info;
    size_t i;
    memset( &info, 0xff, sizeof( info ) );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    for ( i = 0; i < sizeof( info ); i++ )
        CHECK_EQ( bytes[i], 0 );
}

/* ---- challenge tokens ---- */

TEST( token_challenge_round_trip_and_tampering )
{
    uint8_t key[NETCODE_KEY_BYTES], wrong[NETCODE_KEY_BYTES], sealed[NC_CHALLENGE_BYTES], data[NC_CHALLENGE_BYTES];
    nc_challenge_t challenge, read;
    int at;
    nc_crypto_random( key, sizeof( key ) );
    memcpy( wrong, key, sizeof( key ) );
    wrong[0] ^= 1;
    challenge.client_id = 0x8000000000000001u;
    nc_crypto_random( challenge.user_data, sizeof( challenge.user_data ) );
    nc_crypto_random( challenge.bind, sizeof( challenge.bind ) );
    nc_challenge_seal( sealed, &challenge, 42, key );
    memcpy( data, sealed, sizeof( data ) );
    REQUIRE( nc_challenge_open( data, &read, 42, key ) );
    CHECK_EQ( read.client_id, challenge.client_id );
    CHECK_MEM( read.user_data, challenge.user_data, sizeof( read.user_data ) );
    CHECK_MEM( read.bind, challenge.bind, sizeof( read.bind ) );
    for ( at = 0; at < NC_CHALLENGE_BYTES; at++ ) {
        memcpy( data, sealed, sizeof( data ) );
        data[at] ^= (uint8_t) ( 1 << at % 8 );
        CHECK( !nc_challenge_open( data, &read, 42, key ) );
    }
    memcpy( data, sealed, sizeof( data ) );
    CHECK( !nc_challenge_open( data, &read, 43, key ) );
    memcpy( data, sealed, sizeof( data ) );
    CHECK( !nc_challenge_open( data, &read, 42, wrong ) );
}
