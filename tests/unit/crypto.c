/*  Crypto: the nonce, sealing and opening, the place where sequences start, and the keyed hash. */

/* The nonce: 4 zero bytes, then the sequence as 64 bit little-endian. */
TEST( crypto_nonce_layout )
{
    static const struct {
        uint64_t sequence;
        uint8_t nonce[12];
    } rows[] = {
        { 0, { 0 } },
        { 1, { 0, 0, 0, 0, 1 } },
        { 1000, { 0, 0, 0, 0, 0xE8, 0x03 } },
        { 0x0102030405060708u, { 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1 } },
        { (uint64_t) 1 << 63, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80 } },
        { UINT64_MAX, { 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255 } },
    };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        uint8_t nonce[12];
        memset( nonce, 0xAA, sizeof( nonce ) );
        nc_crypto_nonce( nonce, rows[i].sequence );
        CHECK_MEM( nonce, rows[i].nonce, 12 );
    }
}

static nc_seal_t crypto_seal_for( const uint8_t * key, uint64_t sequence, const char * associated )
{
    nc_seal_t seal;
    seal.key = key;
    seal.sequence = sequence;
    seal.associated = (const uint8_t *) associated;
    seal.associated_bytes = associated ? strlen( associated ) : 0;
    return seal;
}

/* In place and elsewhere, of every size around a block; every ingredient counts. */
TEST( crypto_seal_and_open )
{
    uint8_t key[32], other_key[32], plain[200], sealed[216], in_place[216], out[216];
    size_t bytes;
    nc_crypto_random( key, sizeof( key ) );
    memcpy( other_key, key, sizeof( key ) );
    other_key[31] ^= 1;
    nc_crypto_random( plain, sizeof( plain ) );
    for ( bytes = 0; bytes <= sizeof( plain ); bytes++ ) {
        nc_seal_t seal = crypto_seal_for( key, 1000 + bytes, "associated" );
        nc_seal_t wrong = seal;
        nc_crypto_seal( sealed, plain, bytes, &seal );
        memcpy( in_place, plain, bytes );
        nc_crypto_seal( in_place, in_place, bytes, &seal );
        CHECK_MEM( in_place, sealed, bytes + 16 );
        CHECK( nc_crypto_open( out, sealed, bytes + 16, &seal ) );
        CHECK_MEM( out, plain, bytes );
        CHECK( nc_crypto_open( in_place, in_place, bytes + 16, &seal ) );
        CHECK_MEM( in_place, plain, bytes );
        wrong.key = other_key;
        CHECK( !nc_crypto_open( out, sealed, bytes + 16, &wrong ) );
        wrong = seal;
        wrong.sequence ^= (uint64_t) 1 << 63;
        CHECK( !nc_crypto_open( out, sealed, bytes + 16, &wrong ) );
        wrong = seal;
        wrong.associated_bytes--;
        CHECK( !nc_crypto_open( out, sealed, bytes + 16, &wrong ) );
        CHECK( !nc_crypto_open( out, sealed, bytes + 15, &seal ) );
    }
}

TEST( crypto_seal_and_open_tokens )
{
    uint8_t key[32] = { 0 }, nonce[NC_TOKEN_NONCE_BYTES], data[100 + 16], copy[100 + 16], out[100];
    nc_seal_t seal = crypto_seal_for( key, 0, "associated" );
    int i;
    nc_crypto_random( key, sizeof( key ) );
    nc_crypto_random( nonce, sizeof( nonce ) );
    for ( i = 0; i < 100; i++ )
        data[i] = (uint8_t) i;
    nc_crypto_seal_token( data, 100, nonce, &seal );
    memcpy( copy, data, sizeof( data ) );
    CHECK( nc_crypto_open_token( out, data, sizeof( data ), nonce, &seal ) );
    CHECK_MEM( data, copy, sizeof( data ) );
    for ( i = 0; i < 100; i++ )
        CHECK_EQ( out[i], i );
    for ( i = 0; i < NC_TOKEN_NONCE_BYTES; i++ ) {
        nonce[i] ^= 1;
        CHECK( !nc_crypto_open_token( out, data, sizeof( data ), nonce, &seal ) );
        nonce[i] ^= 1;
    }
    seal.sequence = 77; /* has no part in it */
    CHECK( nc_crypto_open_token( out, data, sizeof( data ), nonce, &seal ) );
}

/* Decision 1: 47 random bits, always 6 sequence bytes, below 2^48; or zero where it is switched off. */
TEST( crypto_sequence_base )
{
    uint64_t low = UINT64_MAX, high = 0, ones = 0, zeros = 0;
    int i;
    CHECK_EQ( nc_crypto_sequence_base( NETCODE_SEQUENCE_BASE_ZERO, UINT64_MAX ), 0 );
    for ( i = 0; i < 4096; i++ ) {
        uint64_t base = nc_crypto_sequence_base( NETCODE_SEQUENCE_BASE_RANDOM, nc_crypto_random_u64() );
        CHECK( base >> 40 );       /* six bytes */
        CHECK_EQ( base >> 48, 0 ); /* and no more */
        low = base < low ? base : low;
        high = base > high ? base : high;
        ones |= base;
        zeros |= ~base;
    }
    CHECK_EQ( ones & zeros & 0xFFFFFFFFFFu, 0xFFFFFFFFFFu ); /* every low bit was seen as 0 and as 1 */
    CHECK( high - low > ( (uint64_t) 1 << 47 ) / 16 * 15 );
    CHECK( high - low <= (uint64_t) 1 << 47 );
}

TEST( crypto_random_wipe_and_equal )
{
    uint8_t a[64], b[64], zeros[64] = { 0 };
    int i;
    nc_crypto_random( a, sizeof( a ) );
    nc_crypto_random( b, sizeof( b ) );
    CHECK( memcmp( a, b, sizeof( a ) ) != 0 );
    CHECK( !nc_crypto_equal( a, b, sizeof( a ) ) );
    memcpy( b, a, sizeof( a ) );
    for ( i = 0; i < 64; i++ ) {
        CHECK( nc_crypto_equal( a, b, sizeof( a ) ) );
        b[i] ^= 0x80;
        CHECK( !nc_crypto_equal( a, b, sizeof( a ) ) );
        b[i] ^= 0x80;
    }
    nc_crypto_wipe( a, sizeof( a ) );
    CHECK_MEM( a, zeros, sizeof( a ) );
    CHECK( nc_crypto_random_u64() != nc_crypto_random_u64() );
}

TEST( crypto_random_bytes_of_the_api )
{
    uint8_t data[48], untouched[48];
    int i, changed = 0;
    memset( data, 0x11, sizeof( data ) );
    memset( untouched, 0x11, sizeof( untouched ) );
    netcode_random_bytes( data, 0 );
    CHECK_MEM( data, untouched, sizeof( data ) );
    netcode_random_bytes( data, 32 );
    for ( i = 0; i < 32; i++ )
        changed += data[i] != 0x11;
    CHECK_GT( changed, 24 );
    CHECK_MEM( data + 32, untouched, 16 );
    memcpy( data, untouched, sizeof( data ) );
    BAD( netcode_random_bytes( data, -1 ) );
    BAD( netcode_random_bytes( NULL, 8 ) );
    CHECK_MEM( data, untouched, sizeof( data ) );
}

/* The first and the last vectors that SipHash's authors give: the key is 0 to 15, the data 0 to n - 1. */
TEST( crypto_hash_is_siphash_2_4 )
{
    uint8_t key[NC_HASH_KEY_BYTES], data[64];
    for ( int i = 0; i < 64; i++ )
        data[i] = (uint8_t) i;
    memcpy( key, data, sizeof( key ) );
    CHECK_EQ( nc_crypto_hash( key, data, 0 ), 0x726fdb47dd0e0e31u );
    CHECK_EQ( nc_crypto_hash( key, data, 1 ), 0x74f839c593dc67fdu );
    CHECK_EQ( nc_crypto_hash( key, data, 15 ), 0xa129ca6149be45e5u );
    CHECK_EQ( nc_crypto_hash( key, data, 63 ), 0x958a324ceb064572u );
}

/* The keyed hash is the same as libsodium's, and the key matters: without it no attacker can choose collisions. */
TEST( crypto_hash_is_keyed )
{
    uint8_t key[crypto_shorthash_KEYBYTES], other[crypto_shorthash_KEYBYTES], data[300], raw[crypto_shorthash_BYTES];
    size_t bytes;
    nc_crypto_random( key, sizeof( key ) );
    memcpy( other, key, sizeof( key ) );
    other[0] ^= 1;
    nc_crypto_random( data, sizeof( data ) );
    for ( bytes = 0; bytes <= sizeof( data ); bytes++ ) {
        crypto_shorthash( raw, data, bytes, key );
        CHECK_EQ( nc_crypto_hash( key, data, bytes ), nc_load_u64( raw ) );
        CHECK_NE( nc_crypto_hash( key, data, bytes ), nc_crypto_hash( other, data, bytes ) );
    }
}
