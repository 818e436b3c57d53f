/*  Address: what is read as an address and what is not, how it is printed (RFC 5952), and that one place has one form.
    The public API: "1.2.3.4:5", "1.2.3.4", "[::1]:5", "::1". attacks/rows.py, row 45 */

/* A text that is read, and how it is written back. */
struct address_row_t {
    const char * text;
    const char * printed;
};

static const struct address_row_t address_good[] = {
    { "1.2.3.4:5", "1.2.3.4:5" },
    { "1.2.3.4", "1.2.3.4" },
    { "0.0.0.0", "0.0.0.0" },
    { "0.0.0.0:1", "0.0.0.0:1" },
    { "255.255.255.255:65535", "255.255.255.255:65535" },
    { "127.0.0.1:40000", "127.0.0.1:40000" },
    { "10.0.0.100:9", "10.0.0.100:9" },
    { "1.2.3.4:0", "1.2.3.4" },
    { "::", "::" },
    { "::1", "::1" },
    { "[::1]", "::1" },
    { "[::1]:5", "[::1]:5" },
    { "[::]:65535", "[::]:65535" },
    { "[::1]:0", "::1" },
    { "1::", "1::" },
    { "[1::]:7", "[1::]:7" },
    { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" },
    { "[1:2:3:4:5:6:7:8]:9", "[1:2:3:4:5:6:7:8]:9" },
    { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    /* RFC 5952, section 4.1: no leading zeros; 4.3: lower case */
    { "2001:0DB8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1" },
    { "2001:db8::0001", "2001:db8::1" },
    { "2001:DB8::AbCd", "2001:db8::abcd" },
    { "[2001:0db8:0:0:0:0:2:1]:80", "[2001:db8::2:1]:80" },
    /* 4.2.1: as short as possible; 4.2.2: not for one word; 4.2.3: the longest run, the first of equals */
    { "2001:db8:0:0:0:0:2:1", "2001:db8::2:1" },
    { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
    { "2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
    { "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
    { "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
    { "0:0:1:1:0:0:1:1", "::1:1:0:0:1:1" },
    { "1:0:0:2:3:4:0:0", "1::2:3:4:0:0" },
    { "1:0:2:0:3:0:4:0", "1:0:2:0:3:0:4:0" },
    { "0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7" },
    { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
    { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
    { "1:2:3::5:6:7:8", "1:2:3:0:5:6:7:8" },
    { "0:0:0:0:0:0:0:0", "::" },
    { "1:0:0:0:0:0:0:0", "1::" },
    { "0:0:0:0:0:0:0:1", "::1" },
    { "1:2:3:4:5:6:0:0", "1:2:3:4:5:6::" },
    /* IPv4 inside IPv6 */
    { "::ffff:1.2.3.4", "1.2.3.4" },
    { "[::ffff:1.2.3.4]:5", "1.2.3.4:5" },
    { "::FFFF:102:304", "1.2.3.4" },
    { "[0:0:0:0:0:ffff:127.0.0.1]:40000", "127.0.0.1:40000" },
    { "[0:0:0:0:0:ffff:c0a8:0101]:6", "192.168.1.1:6" },
    { "::ffff:0:0", "0.0.0.0" },
    { "::1.2.3.4", "::102:304" },
    { "64:ff9b::192.0.2.33", "64:ff9b::c000:221" },
    { "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
    { "::fffe:1.2.3.4", "::fffe:102:304" },
    { "::1:ffff:1.2.3.4", "::1:ffff:102:304" },
    { "1::ffff:1.2.3.4", "1::ffff:102:304" },
    /* link-local, with the number of its interface */
    { "fe80::1", "fe80::1" },
    { "fe80::1%2", "fe80::1%2" },
    { "[fe80::1%2]:5", "[fe80::1%2]:5" },
    { "fe80::%65535", "fe80::%65535" },
    { "febf::1%3", "febf::1%3" },
    { "[FE80::AB:CD%12]:65535", "[fe80::ab:cd%12]:65535" },
    { "[fe80::1]:5", "[fe80::1]:5" },
};

static const char * const address_bad[] = {
    "",
    " ",
    "a",
    "NONE",
    "localhost",
    "localhost:80",
    "http://1.2.3.4",
    "1",
    "1.2",
    "1.2.3",
    "1.2.3.",
    ".1.2.3",
    "1..2.3",
    "1.2.3.4.",
    "1.2.3.4.5",
    "1.2.3.256",
    "256.2.3.4",
    "1.2.3.999",
    "1.2.3.1000",
    "1.2.3.-4",
    "-1.2.3.4",
    "+1.2.3.4",
    "01.2.3.4",
    "1.2.3.04",
    "1.2.3.00",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.4\n",
    "0x1.2.3.4",
    "1.2.3.a",
    "1.2.3.4:",
    "1.2.3.4::5",
    "1.2.3.4:a",
    "1.2.3.4:-1",
    "1.2.3.4:+1",
    "1.2.3.4:65536",
    "1.2.3.4:99999",
    "1.2.3.4:100000",
    "1.2.3.4:4294967297",
    "1.2.3.4:05",
    "1.2.3.4:00",
    "1.2.3.4:5 ",
    "1.2.3.4: 5",
    "1.2.3.4:5:6",
    "1.2.3.4:5a",
    "1.2.3.4]",
    "[1.2.3.4]",
    "[1.2.3.4]:5",
    "1.2.3.4%1",
    "1.2.3.4/24",
    "1,2,3,4",
    ":",
    ":1",
    "1:",
    ":::",
    "1:::2",
    "::1:",
    "::1::",
    "1::2::3",
    ":1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "::1:2:3:4:5:6:7:8",
    "1::2:3:4:5:6:7:8",
    "1:2:3:4::5:6:7:8",
    "12345::",
    "::12345",
    "::00001",
    "::g",
    "::1g",
    "::-1",
    "::1 ",
    " ::1",
    "::1/64",
    "[",
    "]",
    "[]",
    "[]:5",
    "[::1",
    "::1]",
    "[::1]]",
    "[[::1]]",
    "[::1]5",
    "[::1]:",
    "[::1]:65536",
    "[::1]:a",
    "[::1]:05",
    "[::1] :5",
    "[::1]:5 ",
    "[::1]::5",
    "[::1]:5]",
    "x[::1]:5",
    "[::1:5",
    "[ ::1]:5",
    "::1.2.3",
    "::1.2.3.4.5",
    "::1.2.3.256",
    "::1.2.3.4:5",
    "::01.2.3.4",
    "1.2.3.4::",
    "1.2.3.4:5::",
    "::1.2.3.",
    "1:2:3:4:5:6:7:1.2.3.4",
    "::1:2:3:4:5:6:1.2.3.4",
    "1:2:3:4:5:1.2.3.4",
    "::ffff:1.2.3.4:5",
    "::fffff:1.2.3.4",
    "fe80::1%",
    "fe80::1%eth0",
    "fe80::1%-1",
    "fe80::1%65536",
    "fe80::1%99999",
    "fe80::1%4294967298",
    "fe80::1%2x",
    "fe80::1%2:5",
    "fe80::1%%2",
    "fe80%2::1",
    "[fe80::1]%2:5",
    "[fe80::1%2",
    "fe80::1%02",
    "::1%1",
    "2001:db8::1%1",
    "[::1%1]:5",
    "fec0::1%1",
    "%1",
    "::ffff:1.2.3.4%1",
};

TEST( address_good_texts )
{
    size_t i;
    for ( i = 0; i < sizeof( address_good ) / sizeof( address_good[0] ); i++ ) {
        const struct address_row_t * row = &address_good[i];
        struct netcode_address_t address, again;
        char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        memset( &address, 0xAB, sizeof( address ) );
        if ( netcode_parse_address( row->text, &address ) != NETCODE_OK ) {
            test_fail( __FILE__, __LINE__, "\"%s\" was not read", row->text );
            continue;
        }
        CHECK( netcode_address_to_string( &address, text ) == text );
        CHECK_STR( text, row->printed );
        CHECK_EQ( netcode_parse_address( text, &again ), NETCODE_OK );
        CHECK( netcode_address_equal( &address, &again ) );
        CHECK_EQ( address.type,
                  strchr( row->printed, ':' ) && strchr( row->printed, ':' ) != strrchr( row->printed, ':' )
                      ? NETCODE_ADDRESS_IPV6
                      : NETCODE_ADDRESS_IPV4 );
    }
}

TEST( address_bad_texts )
{
    static const struct netcode_address_t none;
    size_t i;
    for ( i = 0; i < sizeof( address_bad ) / sizeof( address_bad[0] ); i++ ) {
        struct netcode_address_t address;
        memset( &address, 0xAB, sizeof( address ) );
        if ( netcode_parse_address( address_bad[i], &address ) != NETCODE_ERROR )
            test_fail( __FILE__, __LINE__, "\"%s\" was read", address_bad[i] );
        CHECK_EQ( address.type, NETCODE_ADDRESS_NONE );
        CHECK_MEM( &address, &none, sizeof( none ) );
    }
}

/* Every text of the lists, cut and changed at each place, in blocks of its own size: no read past the end, and what is
   read can be written and read again. */
TEST( address_broken_texts_are_harmless )
{
    static const char odd[] = "0123456789abcdfxg:.[]% \x01\xff";
    size_t i, at, size;
    for ( i = 0; i < sizeof( address_good ) / sizeof( address_good[0] ); i++ ) {
        size = strlen( address_good[i].text );
        for ( at = 0; at <= size; at++ ) {
            char * text = (char *) malloc( size + 1 );
            char printed[NETCODE_MAX_ADDRESS_STRING_LENGTH];
            struct netcode_address_t address, again;
            size_t k;
            for ( k = 0; k < sizeof( odd ); k++ ) {
                memcpy( text, address_good[i].text, size + 1 );
                text[at] = at == size ? 0 : odd[k]; /* its last is the NUL, which cuts the text */
                if ( netcode_parse_address( text, &address ) != NETCODE_OK ) {
                    CHECK_EQ( address.type, NETCODE_ADDRESS_NONE );
                    continue;
                }
                netcode_address_to_string( &address, printed );
                CHECK_EQ( netcode_parse_address( printed, &again ), NETCODE_OK );
                CHECK( netcode_address_equal( &address, &again ) );
            }
            free( text );
        }
    }
}

TEST( address_fields )
{
    struct netcode_address_t address;
    static const uint16_t words[8] = { 0x2001, 0xdb8, 1, 2, 3, 4, 5, 0xffff };
    CHECK_EQ( netcode_parse_address( "1.2.3.4:5", &address ), NETCODE_OK );
    CHECK_EQ( address.type, NETCODE_ADDRESS_IPV4 );
    CHECK_EQ( address.port, 5 );
    CHECK_MEM( address.data.ipv4, "\1\2\3\4", 4 );
    CHECK_EQ( netcode_parse_address( "[2001:db8:1:2:3:4:5:ffff]:40001", &address ), NETCODE_OK );
    CHECK_EQ( address.type, NETCODE_ADDRESS_IPV6 );
    CHECK_EQ( address.port, 40001 );
    CHECK_MEM( address.data.ipv6, words, 16 ); /* host byte order */
    CHECK_EQ( netcode_parse_address( "fe80::1%7", &address ), NETCODE_OK );
    CHECK_EQ( address.data.ipv6[1], 7 );
    CHECK( nc_address_is_link_local( &address ) );
    CHECK_EQ( netcode_parse_address( "fec0::1", &address ), NETCODE_OK );
    CHECK( !nc_address_is_link_local( &address ) );
    CHECK_EQ( netcode_parse_address( "254.128.0.1", &address ), NETCODE_OK );
    CHECK( !nc_address_is_link_local( &address ) );
}

/* The longest texts stay inside the buffer, and nothing behind the text's own end is promised. */
TEST( address_buffer )
{
    char * buffer = (char *) malloc( NETCODE_MAX_ADDRESS_STRING_LENGTH );
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    memset( buffer, 'x', NETCODE_MAX_ADDRESS_STRING_LENGTH );
    CHECK_STR( netcode_address_to_string( &address, buffer ), "NONE" );
    address.port = 80;
    CHECK_STR( netcode_address_to_string( &address, buffer ), "NONE" );
    address.type = 9;
    CHECK_STR( netcode_address_to_string( &address, buffer ), "NONE" );
    memset( &address, 0xff, sizeof( address ) );
    address.type = NETCODE_ADDRESS_IPV6;
    CHECK_STR( netcode_address_to_string( &address, buffer ), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535" );
    address.data.ipv6[0] = 0xfebf;
    CHECK_STR( netcode_address_to_string( &address, buffer ), "[febf:0:ffff:ffff:ffff:ffff:ffff:ffff%65535]:65535" );
    free( buffer );
}

TEST( address_bad_arguments )
{
    struct netcode_address_t address;
    char buffer[NETCODE_MAX_ADDRESS_STRING_LENGTH] = "?";
    memset( &address, 0xAB, sizeof( address ) );
    BAD( CHECK_EQ( netcode_parse_address( NULL, &address ), NETCODE_ERROR ) );
    CHECK_EQ( address.type, NETCODE_ADDRESS_NONE );
    BAD( CHECK_EQ( netcode_parse_address( "1.2.3.4", NULL ), NETCODE_ERROR ) );
    BAD( CHECK( netcode_address_to_string( NULL, buffer ) == buffer ) );
    CHECK_STR( buffer, "" );
    BAD( CHECK( netcode_address_to_string( &address, NULL ) == NULL ) );
    BAD( CHECK_EQ( netcode_address_equal( NULL, &address ), 0 ) );
    BAD( CHECK_EQ( netcode_address_equal( &address, NULL ), 0 ) );
}

static struct netcode_address_t address_random( void )
{
    struct netcode_address_t address;
    int i;
    memset( &address, 0, sizeof( address ) );
    address.port = (uint16_t) ( test_random_below( 4 ) ? test_random() : 0 );
    if ( test_random_below( 2 ) ) {
        address.type = NETCODE_ADDRESS_IPV4;
        for ( i = 0; i < 4; i++ )
            address.data.ipv4[i] = (uint8_t) test_random();
        return address;
    }
    address.type = NETCODE_ADDRESS_IPV6;
    for ( i = 0; i < 8; i++ )
        address.data.ipv6[i] = (uint16_t) ( test_random_below( 2 ) ? test_random() >> test_random_below( 64 ) : 0 );
    if ( test_random_below( 8 ) == 0 )
        address.data.ipv6[0] = 0xfe80;
    return nc_address_canonical( &address );
}

TEST( address_random_round_trips )
{
    int i;
    for ( i = 0; i < 20000; i++ ) {
        struct netcode_address_t address = address_random(), again;
        char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        netcode_address_to_string( &address, text );
        if ( !CHECK_EQ( netcode_parse_address( text, &again ), NETCODE_OK ) ||
             !CHECK_MEM( &address, &again, sizeof( address ) ) ) {
            printf( "    with \"%s\"\n", text );
            return;
        }
    }
}

static struct netcode_address_t address_parsed( const char * text )
{
    struct netcode_address_t address;
    CHECK_EQ( netcode_parse_address( text, &address ), NETCODE_OK );
    return address;
}

TEST( address_equal )
{
    static const char * const all[] = { "1.2.3.4",       "1.2.3.4:5", "1.2.3.5:5", "4.2.3.4:5",
                                        "0.0.0.0",       "::",        "::1",       "[::1]:5",
                                        "[::1]:6",       "[1::]:5",   "1::",       "::102:304",
                                        "[fe80::1]:5",   "fe80::1",   "fe80::1%2", "fe80::1%3",
                                        "fe80::2%2",     "[::2]:5",   "[::1]:261", "1.2.3.4:261",
                                        "[fe80::1%2]:5", "::1:0:0:0" };
    const int count = (int) ( sizeof( all ) / sizeof( all[0] ) );
    static const uint8_t key[crypto_shorthash_KEYBYTES] = { 1, 2, 3 };
    int i, k;
    for ( i = 0; i < count; i++ )
        for ( k = 0; k < count; k++ ) {
            struct netcode_address_t a = address_parsed( all[i] ), b = address_parsed( all[k] );
            if ( netcode_address_equal( &a, &b ) != ( i == k ) || nc_address_same( &a, &b ) != ( i == k ) )
                test_fail( __FILE__, __LINE__, "%s and %s", all[i], all[k] );
            CHECK_EQ( nc_address_hash( &a, key ) == nc_address_hash( &b, key ), i == k );
        }
}

/* Bytes that an address does not use never make two of one place. */
TEST( address_equal_ignores_unused_bytes )
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = { 9 };
    struct netcode_address_t a, b, none;
    memset( &a, 0x00, sizeof( a ) );
    memset( &b, 0xff, sizeof( b ) );
    a.type = b.type = NETCODE_ADDRESS_IPV4;
    a.port = b.port = 77;
    memcpy( a.data.ipv4, "\1\2\3\4", 4 );
    memcpy( b.data.ipv4, "\1\2\3\4", 4 );
    CHECK( netcode_address_equal( &a, &b ) );
    CHECK_EQ( nc_address_hash( &a, key ), nc_address_hash( &b, key ) );
    b = nc_address_canonical( &b );
    CHECK_MEM( &a, &b, sizeof( a ) );
    memset( &none, 0, sizeof( none ) );
    CHECK( netcode_address_equal( &none, &none ) );
    CHECK( !netcode_address_equal( &a, &none ) );
    memset( &b, 0xff, sizeof( b ) );
    b.type = NETCODE_ADDRESS_NONE;
    CHECK( netcode_address_equal( &b, &none ) );
    b.type = 7; /* no type at all is no address */
    b = nc_address_canonical( &b );
    CHECK_EQ( b.type, NETCODE_ADDRESS_NONE );
}

/* IPv4-mapped IPv6 is the IPv4 place, wherever it was made. */
TEST( address_mapped_is_ipv4 )
{
    struct netcode_address_t mapped, plain = address_parsed( "1.2.3.4:5" ), canonical;
    int word;
    memset( &mapped, 0, sizeof( mapped ) );
    mapped.type = NETCODE_ADDRESS_IPV6;
    mapped.port = 5;
    mapped.data.ipv6[5] = 0xffff;
    mapped.data.ipv6[6] = 0x0102;
    mapped.data.ipv6[7] = 0x0304;
    canonical = nc_address_canonical( &mapped );
    CHECK_MEM( &canonical, &plain, sizeof( plain ) );
    CHECK( netcode_address_equal( &mapped, &plain ) );
    for ( word = 0; word < 6; word++ ) {
        mapped.data.ipv6[word] ^= 1;
        CHECK( !netcode_address_equal( &mapped, &plain ) );
        CHECK_EQ( nc_address_canonical( &mapped ).type, NETCODE_ADDRESS_IPV6 );
        mapped.data.ipv6[word] ^= 1;
    }
}

TEST( mutants_every_byte_of_an_address_is_hashed )
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = { 3 };
    struct netcode_address_t address;
    uint64_t hash;
    int bit;
    memset( &address, 0, sizeof( address ) );
    address.type = NETCODE_ADDRESS_IPV6;
    hash = nc_address_hash( &address, key );
    for ( bit = 0; bit < 128; bit++ ) {
        address.data.ipv6[bit / 16] ^= (uint16_t) ( 1 << bit % 16 );
        CHECK_NE( nc_address_hash( &address, key ), hash );
        address.data.ipv6[bit / 16] ^= (uint16_t) ( 1 << bit % 16 );
    }
    address.type = NETCODE_ADDRESS_IPV4;
    hash = nc_address_hash( &address, key );
    for ( bit = 0; bit < 32; bit++ ) {
        address.data.ipv4[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
        CHECK_NE( nc_address_hash( &address, key ), hash );
        address.data.ipv4[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
    }
}

TEST( mutants_a_parsed_ipv6_address_is_written_whole )
{
    uint16_t words[8];
    int i;
    memset( words, 0xff, sizeof( words ) );
    CHECK( nc_address_parse_ipv6( "::", words ) != NULL );
    for ( i = 0; i < 8; i++ )
        CHECK_EQ( words[i], 0 );
}

/* An address can name its interface once. */
TEST( corners_address_with_two_interfaces )
{
    struct netcode_address_t address;
    CHECK_EQ( netcode_parse_address( "fe80:5::1%2", &address ), NETCODE_ERROR );
    CHECK_EQ( netcode_parse_address( "fe80::1%2", &address ), NETCODE_OK );
}
