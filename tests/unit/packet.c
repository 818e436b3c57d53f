/*  Packet: which packets are read at all, in what order things are refused, and what is sealed.
    Standard: Packets; Reading Encrypted Packets; Processing Connection Requests */

/* What the standard says about each type: which side may receive it, and how large its data are. */
#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: what follows needs it"
#endif
static const struct {
    int to_server;
    int to_client;
    int min_body;
    int max_body;
    int replay_protected;
} packet_facts[16] = {
    { 0, 0, 0, 0, 0 },     /* request: not sealed, so never read here */
    { 0, 1, 0, 0, 0 },     /* denied */
    { 0, 1, 308, 308, 0 }, /* challenge */
    { 1, 0, 308, 308, 0 }, /* response */
    { 1, 1, 8, 8, 1 },     /* keep-alive */
    { 1, 1, 1, 1200, 1 },  /* payload */
    { 1, 1, 0, 0, 1 },     /* disconnect */
};

static const uint8_t packet_key[NETCODE_KEY_BYTES] = { 0x70, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static const uint64_t packet_protocol_id = 0x1122334455667788u;

/* Seals with libsodium alone, whatever the rules say: any prefix byte, any size. */
static int packet_forge( uint8_t * out, uint8_t prefix, uint64_t sequence, const uint8_t * body, int body_bytes )
{
    uint8_t associated[22], nonce[12] = { 0 };
    int sequence_bytes = prefix >> 4, i;
    memcpy( associated, "NETCODE 1.02", 13 );
    for ( i = 0; i < 8; i++ ) {
        associated[13 + i] = (uint8_t) ( packet_protocol_id >> ( 8 * i ) );
        nonce[4 + i] = (uint8_t) ( sequence >> ( 8 * i ) );
    }
    associated[21] = prefix;
    out[0] = prefix;
    for ( i = 0; i < sequence_bytes; i++ )
        out[1 + i] = (uint8_t) ( i < 8 ? sequence >> ( 8 * i ) : 0 );
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( out + 1 + sequence_bytes, NULL, body, (unsigned long long) body_bytes, associated, sizeof( associated ), NULL,
      nonce, packet_key );
    return 1 + sequence_bytes + body_bytes + 16;
}

static nc_packet_context_t packet_channel( void )
{
    nc_packet_context_t channel;
    channel.key = packet_key;
    channel.protocol_id = packet_protocol_id;
    return channel;
}

/* Reads what was forged: as a session does, or, what comes before there is one, without a window. */
static int packet_read( uint8_t * data, int bytes, int direction, nc_replay_t * replay )
{
    nc_packet_context_t channel = packet_channel();
    nc_packet_t packet;
    int reason = nc_packet_parse( &packet, data, bytes, direction );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    if ( packet_facts[packet.type].replay_protected )
        return nc_packet_accept( &packet, data, &channel, replay );
    return nc_packet_open( &packet, data, data + packet.header_bytes, &channel ) ? NETCODE_DROP_NONE
                                                                                 : NETCODE_DROP_AUTHENTICATION_FAILED;
}

/* The reason that the standard's order gives for a packet of this prefix and size. */
static int packet_expected( int prefix, int bytes, int direction )
{
    int type = prefix & 15, sequence_bytes = prefix >> 4, body = bytes - 1 - sequence_bytes - 16;
    if ( bytes < 18 )
        return NETCODE_DROP_TOO_SMALL;
    if ( type >= 7 )
        return NETCODE_DROP_UNKNOWN_PACKET_TYPE;
    if ( !( direction == NC_TO_SERVER ? packet_facts[type].to_server : packet_facts[type].to_client ) )
        return NETCODE_DROP_WRONG_DIRECTION;
    if ( sequence_bytes < 1 || sequence_bytes > 8 )
        return NETCODE_DROP_BAD_SEQUENCE_LENGTH;
    if ( body < packet_facts[type].min_body || body > packet_facts[type].max_body )
        return NETCODE_DROP_WRONG_BODY_SIZE;
    return NETCODE_DROP_NONE;
}

/* All 256 prefix bytes, both directions, every size up to beyond the largest: the reason is the standard's, and no
   decryption happens. attacks/rows.py, rows 2, 6 and 10 */
TEST( packet_every_prefix_direction_and_size )
{
    static const int directions[] = { NC_TO_SERVER, NC_TO_CLIENT };
    int64_t opens = ledger.opens;
    int prefix, d, bytes, accepted = 0;
    uint8_t data[18];
    memset( data, 0x42, sizeof( data ) );
    for ( prefix = 0; prefix < 256; prefix++ )
        for ( d = 0; d < 2; d++ )
            for ( bytes = 0; bytes <= 1300; bytes++ ) {
                nc_packet_t packet;
                int expected = packet_expected( prefix, bytes, directions[d] ), reason;
                data[0] = (uint8_t) prefix;
                reason = nc_packet_parse( &packet, data, bytes, directions[d] );
                if ( reason != expected ) {
                    test_fail( __FILE__, __LINE__, "prefix %02x, direction %d, %d bytes: %s and not %s", prefix,
                               directions[d], bytes, netcode_drop_reason_name( reason ),
                               netcode_drop_reason_name( expected ) );
                    return;
                }
                accepted += reason == NETCODE_DROP_NONE;
            }
    /* 8 sequence lengths; to each side: response or denied and challenge, keep-alive, 1200 payloads, disconnect */
    CHECK_EQ( accepted, 8 * ( 1 + 1 + 1200 + 1 ) + 8 * ( 2 + 1 + 1200 + 1 ) );
    CHECK_EQ( ledger.opens, opens );
}

/* Blocks of exactly the datagram's size: the sanitizer sees any read behind it. */
TEST( packet_parse_reads_nothing_past_the_end )
{
    int prefix, bytes;
    for ( prefix = 0; prefix < 256; prefix++ )
        for ( bytes = 0; bytes <= 40; bytes++ ) {
            uint8_t * data = (uint8_t *) malloc( bytes ? (size_t) bytes : 1 );
            nc_packet_t packet = { 0, 0, 0, 0 };
            memset( data, 0xff, (size_t) bytes );
            if ( bytes )
                data[0] = (uint8_t) prefix;
            CHECK_EQ( nc_packet_parse( &packet, data, bytes, NC_TO_SERVER ),
                      packet_expected( prefix, bytes, NC_TO_SERVER ) );
            CHECK_EQ( nc_packet_parse( &packet, data, bytes, NC_TO_CLIENT ),
                      packet_expected( prefix, bytes, NC_TO_CLIENT ) );
            free( data );
        }
}

/* An authentic tag does not help a wrong size: sizes 0..1300 by type, sealed with the right key. */
TEST( packet_body_sizes_behind_a_valid_tag )
{
    uint8_t body[1300], data[1400];
    int type, bytes, d;
    memset( body, 0x33, sizeof( body ) );
    for ( type = 0; type < 16; type++ )
        for ( bytes = 0; bytes <= 1300; bytes += bytes < 16 || ( bytes > 296 && bytes < 320 ) || bytes > 1190 ? 1 : 7 )
            for ( d = 1; d <= 2; d++ ) {
                nc_replay_t replay;
                int size = packet_forge( data, (uint8_t) ( 0x20 | type ), 1000, body, bytes );
                int expected = packet_expected( 0x20 | type, size, d );
                nc_replay_init( &replay, 1 );
                CHECK_EQ( packet_read( data, size, d, &replay ), expected );
                if ( expected == NETCODE_DROP_NONE )
                    CHECK_MEM( data + 3, body, bytes );
                CHECK_EQ( replay.newest,
                          expected == NETCODE_DROP_NONE && packet_facts[type].replay_protected ? 1000 : 1 );
            }
}

/* attacks/rows.py, row 8: a sequence in more bytes than it needs is accepted, since the prefix is authenticated. */
TEST( packet_over_long_sequences )
{
    static const uint64_t sequences[] = { 0,
                                          1,
                                          255,
                                          256,
                                          65535,
                                          65536,
                                          0xFFFFFF,
                                          0xFFFFFFFFu,
                                          (uint64_t) 1 << 32,
                                          ( (uint64_t) 1 << 48 ) - 1,
                                          (uint64_t) 1 << 56,
                                          UINT64_MAX };
    size_t i;
    int count;
    for ( i = 0; i < sizeof( sequences ) / sizeof( sequences[0] ); i++ )
        for ( count = 1; count <= 8; count++ ) {
            nc_packet_t packet = { 0, 0, 0, 0 };
            nc_packet_context_t channel = packet_channel();
            uint8_t data[64];
            int size;
            if ( count < 8 && sequences[i] >> ( 8 * count ) )
                continue;
            size = packet_forge( data, (uint8_t) ( count << 4 | 4 ), sequences[i], (const uint8_t *) "12345678", 8 );
            REQUIRE_EQ( nc_packet_parse( &packet, data, size, NC_TO_SERVER ), NETCODE_DROP_NONE );
            CHECK_EQ( packet.sequence, sequences[i] );
            CHECK_EQ( packet.header_bytes, 1 + count );
            CHECK_EQ( packet.body_bytes, 8 );
            CHECK( nc_packet_open( &packet, data, data + packet.header_bytes, &channel ) );
            CHECK_MEM( data + packet.header_bytes, "12345678", 8 );
        }
}

/* The writer leaves the high zero bytes out; 0 takes one byte. */
TEST( packet_sequences_are_written_short )
{
    static const struct {
        uint64_t sequence;
        int bytes;
    } rows[] = {
        { 0, 1 },
        { 1, 1 },
        { 255, 1 },
        { 256, 2 },
        { 1000, 2 },
        { 65535, 2 },
        { 65536, 3 },
        { 0xFFFFFF, 3 },
        { 0x1000000, 4 },
        { 0xFFFFFFFFu, 4 },
        { 0x100000000, 5 },
        { 0xFFFFFFFFFF, 5 },
        { 0x10000000000, 6 },
        { 0xFFFFFFFFFFFF, 6 },
        { 0x1000000000000, 7 },
        { 0xFFFFFFFFFFFFFF, 7 },
        { 0x100000000000000, 8 },
        { (uint64_t) 1 << 63, 8 },
        { UINT64_MAX, 8 },
    };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        nc_packet_context_t channel = packet_channel();
        nc_packet_t packet, read = { 0, 0, 0, 0 };
        uint8_t data[64], forged[64];
        int size, k;
        memset( &packet, 0, sizeof( packet ) );
        packet.type = NETCODE_PACKET_DISCONNECT;
        packet.sequence = rows[i].sequence;
        size = nc_packet_seal( data, &packet, NULL, &channel );
        CHECK_EQ( size, 1 + rows[i].bytes + 16 );
        CHECK_EQ( data[0], rows[i].bytes << 4 | 6 );
        for ( k = 0; k < rows[i].bytes; k++ )
            CHECK_EQ( data[1 + k], ( rows[i].sequence >> ( 8 * k ) ) & 255 );
        CHECK_EQ( packet_forge( forged, data[0], rows[i].sequence, NULL, 0 ), size );
        CHECK_MEM( data, forged, size );
        CHECK_EQ( nc_packet_parse( &read, data, size, NC_TO_CLIENT ), NETCODE_DROP_NONE );
        CHECK_EQ( read.sequence, rows[i].sequence );
    }
}

/* One packet of a type, sealed: its data are its type's own. */
static int packet_make( uint8_t * data, int type, uint64_t sequence )
{
    uint8_t body[308];
    memset( body, 0x50 + type, sizeof( body ) );
    return packet_forge( data, (uint8_t) ( 0x20 | type ), sequence, body,
                         type == NETCODE_PACKET_PAYLOAD ? 40 : packet_facts[type].min_body );
}

/* attacks/rows.py, row 1: each bit of every byte of every type. The window does not move, and the genuine one
   still comes. */
TEST( packet_flipped_bits_are_refused )
{
    int type, at, bit;
    for ( type = 1; type < NETCODE_PACKET_TYPES; type++ ) {
        uint8_t genuine[400], data[400];
        int direction = packet_facts[type].to_client ? NC_TO_CLIENT : NC_TO_SERVER;
        int size = packet_make( genuine, type, 0x1234 );
        nc_replay_t replay, before;
        nc_replay_init( &replay, 0x1000 );
        before = replay;
        for ( at = 0; at < size; at++ )
            for ( bit = 0; bit < 8; bit++ ) {
                memcpy( data, genuine, (size_t) size );
                data[at] ^= (uint8_t) ( 1 << bit );
                if ( packet_read( data, size, direction, &replay ) == NETCODE_DROP_NONE )
                    test_fail( __FILE__, __LINE__, "type %d, byte %d, bit %d: accepted", type, at, bit );
            }
        CHECK_MEM( &replay, &before, sizeof( replay ) );
        CHECK_EQ( packet_read( genuine, size, direction, &replay ), NETCODE_DROP_NONE );
    }
}

/* attacks/rows.py, rows 2 and 3: shorter and longer ones. */
TEST( packet_cut_and_extended_are_refused )
{
    int type, cut;
    for ( type = 1; type < NETCODE_PACKET_TYPES; type++ ) {
        uint8_t genuine[400], data[1600];
        int direction = packet_facts[type].to_client ? NC_TO_CLIENT : NC_TO_SERVER;
        int size = packet_make( genuine, type, 77 );
        nc_replay_t replay;
        nc_replay_init( &replay, 1 );
        for ( cut = 0; cut <= 1500; cut += cut < 400 ? 1 : 50 ) {
            memset( data, 0, sizeof( data ) );
            memcpy( data, genuine, (size_t) size );
            if ( cut != size )
                CHECK_NE( packet_read( data, cut, direction, &replay ), NETCODE_DROP_NONE );
        }
        CHECK_EQ( replay.newest, 1 );
    }
}

/* attacks/rows.py, row 7: another type, version, protocol id or key under the same ciphertext. */
TEST( packet_ingredients_are_authenticated )
{
    int a, b;
    nc_replay_t replay;
    for ( a = 1; a < NETCODE_PACKET_TYPES; a++ )
        for ( b = 1; b < NETCODE_PACKET_TYPES; b++ ) {
            uint8_t data[400];
            int size = packet_make( data, a, 500 + (uint64_t) a );
            nc_packet_t packet = { 0, 0, 0, 0 };
            nc_packet_context_t channel = packet_channel();
            data[0] = (uint8_t) ( 0x20 | b );
            memset( &packet, 0, sizeof( packet ) );
            packet.type = b; /* past the size checks, straight to the seal */
            packet.header_bytes = 3;
            packet.body_bytes = size - 3 - 16;
            packet.sequence = 500 + (uint64_t) a;
            CHECK_EQ( nc_packet_open( &packet, data, data + 3, &channel ), a == b );
        }
    for ( a = 0; a < 32 + 8; a++ ) {
        uint8_t data[100], key[NETCODE_KEY_BYTES];
        nc_packet_context_t channel = packet_channel();
        nc_packet_t packet = { 0, 0, 0, 0 };
        int size = packet_make( data, NETCODE_PACKET_PAYLOAD, 9 );
        memcpy( key, packet_key, sizeof( key ) );
        channel.key = key;
        if ( a < 32 )
            key[a] ^= 0x10;
        else
            channel.protocol_id ^= (uint64_t) 1 << ( 8 * ( a - 32 ) );
        nc_replay_init( &replay, 1 );
        CHECK_EQ( nc_packet_parse( &packet, data, size, NC_TO_SERVER ), NETCODE_DROP_NONE );
        CHECK_EQ( nc_packet_accept( &packet, data, &channel, &replay ), NETCODE_DROP_AUTHENTICATION_FAILED );
        CHECK_EQ( replay.newest, 1 );
    }
}

/* Standard: Reading Encrypted Packets: replay is tested before decryption, and the window moves after it alone. */
TEST( packet_replay_comes_before_decryption )
{
    int type;
    for ( type = 1; type < NETCODE_PACKET_TYPES; type++ ) {
        int direction = packet_facts[type].to_client ? NC_TO_CLIENT : NC_TO_SERVER;
        int guarded = packet_facts[type].replay_protected;
        uint8_t genuine[400], data[400];
        int size = packet_make( genuine, type, 300 );
        nc_replay_t replay;
        int64_t opens;
        nc_replay_init( &replay, 200 );
        memcpy( data, genuine, sizeof( data ) );
        CHECK_EQ( packet_read( data, size, direction, &replay ), NETCODE_DROP_NONE );
        CHECK_EQ( replay.newest, guarded ? 300 : 200 );
        opens = ledger.opens;
        memcpy( data, genuine, sizeof( data ) );
        CHECK_EQ( packet_read( data, size, direction, &replay ), guarded ? NETCODE_DROP_REPLAYED : NETCODE_DROP_NONE );
        if ( LEDGER_WORKS )
            CHECK_EQ( ledger.opens - opens, !guarded );
        nc_replay_init( &replay, 300 );
        memcpy( data, genuine, sizeof( data ) );
        CHECK_EQ( packet_read( data, size, direction, &replay ),
                  guarded ? NETCODE_DROP_SEQUENCE_TOO_OLD : NETCODE_DROP_NONE );
    }
}

/* ---- connection requests ---- */

static void packet_make_request( uint8_t request[1078], const char * version )
{
    int i;
    for ( i = 0; i < 1078; i++ )
        request[i] = (uint8_t) ( i * 31 + 7 );
    request[0] = 0;
    memcpy( request + 1, version, 13 );
    for ( i = 0; i < 8; i++ ) {
        request[14 + i] = (uint8_t) ( packet_protocol_id >> ( 8 * i ) );
        request[22 + i] = (uint8_t) ( 0x0102030405060708u >> ( 8 * i ) );
    }
}

TEST( packet_requests_are_read )
{
    uint8_t data[1078];
    nc_request_t request;
    packet_make_request( data, "NETCODE 1.02" );
    CHECK_EQ( nc_packet_parse_request( &request, data, 1078, packet_protocol_id ), NETCODE_DROP_NONE );
    CHECK_EQ( request.expire_timestamp, 0x0102030405060708u );
    CHECK( request.nonce == data + 30 );
    CHECK( request.sealed_private == data + 54 );
    CHECK( request.tag == data + 1062 );
}

/* Every size, in blocks of that size; 1062 is version 1.01's, and only with its name. STANDARD.md */
TEST( packet_request_sizes )
{
    uint8_t whole[1078];
    nc_request_t request;
    int bytes;
    for ( bytes = 1; bytes <= 1300; bytes++ ) {
        uint8_t * data = (uint8_t *) malloc( (size_t) bytes );
        memset( data, 0, (size_t) bytes );
        packet_make_request( whole, "NETCODE 1.02" );
        memcpy( data, whole, (size_t) ( bytes < 1078 ? bytes : 1078 ) );
        CHECK_EQ( nc_packet_parse_request( &request, data, bytes, packet_protocol_id ),
                  bytes == 1078 ? NETCODE_DROP_NONE : NETCODE_DROP_REQUEST_WRONG_SIZE );
        packet_make_request( whole, "NETCODE 1.01" );
        memcpy( data, whole, (size_t) ( bytes < 1078 ? bytes : 1078 ) );
        CHECK_EQ( nc_packet_parse_request( &request, data, bytes, packet_protocol_id ),
                  bytes == 1078 || bytes == 1062 ? NETCODE_DROP_REQUEST_OLD_VERSION : NETCODE_DROP_REQUEST_WRONG_SIZE );
        free( data );
    }
}

/* Each byte of version and protocol id counts, the version's NUL included, and the version comes first. */
TEST( packet_request_version_and_protocol_id )
{
    uint8_t data[1078];
    nc_request_t request;
    int at;
    for ( at = 1; at < 22; at++ ) {
        packet_make_request( data, "NETCODE 1.02" );
        data[at] ^= 0x20;
        CHECK_EQ( nc_packet_parse_request( &request, data, 1078, packet_protocol_id ),
                  at < 14 ? NETCODE_DROP_REQUEST_WRONG_VERSION : NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID );
    }
    packet_make_request( data, "NETCODE 1.03" );
    CHECK_EQ( nc_packet_parse_request( &request, data, 1078, 0 ), NETCODE_DROP_REQUEST_WRONG_VERSION );
    packet_make_request( data, "NETCODE 1.01" );
    CHECK_EQ( nc_packet_parse_request( &request, data, 1078, 0 ), NETCODE_DROP_REQUEST_OLD_VERSION );
}

TEST( mutants_every_letter_of_the_old_version_counts )
{
    uint8_t data[1078];
    nc_request_t request;
    int at;
    for ( at = 1; at < 14; at++ ) {
        packet_make_request( data, "NETCODE 1.01" );
        data[at] ^= 0x20;
        CHECK_EQ( nc_packet_parse_request( &request, data, 1062, packet_protocol_id ),
                  NETCODE_DROP_REQUEST_WRONG_SIZE );
        CHECK_EQ( nc_packet_parse_request( &request, data, 1078, packet_protocol_id ),
                  NETCODE_DROP_REQUEST_WRONG_VERSION );
    }
}
