/*  Fuzz target: the packet reader, and what it uses of bytes, crypto and replay. Packets are sealed by the library and by a second hand that is written
    from the standard, must be equal, are opened in both directions, then changed: what is changed must not open, and must not
    move the replay window. The window itself runs beside a naive one. Built and run by run.sh. */

#include "fuzz.h"

enum { PACKET_ROOM = 1400, PACKET_SEEN = 96 };

#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: what follows needs it"
#endif
/* Here, and where `type > 6` stands below. */
static const uint8_t packet_is_for_server[NETCODE_PACKET_TYPES] = { 0, 0, 0, 1, 1, 1, 1 };
static const uint8_t packet_is_for_client[NETCODE_PACKET_TYPES] = { 0, 1, 1, 0, 1, 1, 1 };
static const uint8_t packet_is_replay_protected[NETCODE_PACKET_TYPES] = { 0, 0, 0, 0, 1, 1, 1 };
static const int packet_min_body[NETCODE_PACKET_TYPES] = { 0, 0, 308, 308, 8, 1, 0 };
static const int packet_max_body[NETCODE_PACKET_TYPES] = { 0, 0, 308, 308, 8, 1200, 0 };

/* One sealed packet and all that its seal depends on. */
struct packet_case_t {
    uint8_t key[NETCODE_KEY_BYTES];
    uint64_t protocol_id;
    int type;
    uint64_t sequence;
    int sequence_bytes; /* 0: as few as it takes */
    int body_bytes;
    uint8_t body[PACKET_ROOM];
    uint8_t data[PACKET_ROOM];
    int bytes;
};

/* Standard: Packets; Reading Encrypted Packets. Nothing of the library is used here. */
static int packet_seal_by_hand( const struct packet_case_t * it, uint8_t * out )
{
    uint8_t nonce[12] = { 0 }, associated[13 + 8 + 1] = FUZZ_VERSION;
    int sequence_bytes = it->sequence_bytes;
    for ( int i = 0; i < 8; i++ ) {
        nonce[4 + i] = (uint8_t) ( it->sequence >> ( 8 * i ) );
        associated[13 + i] = (uint8_t) ( it->protocol_id >> ( 8 * i ) );
    }
    while ( sequence_bytes < 8 && ( sequence_bytes == 0 || it->sequence >> ( 8 * sequence_bytes ) ) )
        sequence_bytes++;
    out[0] = associated[21] = (uint8_t) ( sequence_bytes << 4 | it->type );
    memcpy( out + 1, nonce + 4, (size_t) sequence_bytes );
    crypto_aead_chacha20poly1305_ietf_encrypt( out + 1 + sequence_bytes, NULL, it->body,
                                               (unsigned long long) it->body_bytes, associated, sizeof( associated ),
                                               NULL, nonce, it->key );
    return 1 + sequence_bytes + it->body_bytes + 16;
}

/* A copy that ends where its block ends, so that the address sanitizer sees a byte too far. */
static uint8_t * packet_copy( const uint8_t * data, int bytes )
{
    uint8_t * copy = (uint8_t *) malloc( bytes ? (size_t) bytes : 1 );
    if ( !copy )
        abort();
    memcpy( copy, data, (size_t) bytes );
    return copy;
}

/* The standard's steps before replay protection, written a second time. */
static int packet_expected_reason( const uint8_t * data, int bytes, int to_server )
{
    int type = bytes ? data[0] & 15 : 0, length = bytes ? data[0] >> 4 : 0, body = bytes - 1 - length - 16;
    if ( bytes < 18 )
        return NETCODE_DROP_TOO_SMALL;
    if ( type > 6 )
        return NETCODE_DROP_UNKNOWN_PACKET_TYPE;
    if ( !( to_server ? packet_is_for_server : packet_is_for_client )[type] )
        return NETCODE_DROP_WRONG_DIRECTION;
    if ( length == 0 || length > 8 )
        return NETCODE_DROP_BAD_SEQUENCE_LENGTH;
    return body < packet_min_body[type] || body > packet_max_body[type] ? NETCODE_DROP_WRONG_BODY_SIZE
                                                                        : NETCODE_DROP_NONE;
}

/* Parses, and compares with what the standard says. Returns whether it passed. */
static int packet_parse( nc_packet_t * packet, const uint8_t * data, int bytes, int to_server )
{
    uint64_t sequence = 0;
    memset( packet, 0, sizeof( *packet ) );
    int reason = nc_packet_parse( packet, data, bytes, to_server ? NC_TO_SERVER : NC_TO_CLIENT );
    FUZZ_CHECK( reason == packet_expected_reason( data, bytes, to_server ) );
    fuzz_note( (uint64_t) reason );
    if ( reason != NETCODE_DROP_NONE )
        return 0;
    for ( int i = data[0] >> 4; i > 0; i-- )
        sequence = sequence << 8 | data[i];
    FUZZ_CHECK( packet->type == ( data[0] & 15 ) && packet->sequence == sequence );
    FUZZ_CHECK( packet->header_bytes == 1 + ( data[0] >> 4 ) );
    FUZZ_CHECK( packet->header_bytes + packet->body_bytes + 16 == bytes );
    return 1;
}

/* Does it open, on its own and, where it is of a session, through a window that would let it in? Both must say the same. */
static int packet_opens( const uint8_t * data, int bytes, int to_server, const uint8_t * key, uint64_t protocol_id,
                         const struct packet_case_t * original )
{
    static uint8_t body[PACKET_ROOM];
    nc_packet_t packet;
    nc_replay_t replay, before;
    nc_packet_context_t channel = { key, protocol_id };
    int reason, opened;
    if ( !packet_parse( &packet, data, bytes, to_server ) )
        return 0;
    opened = nc_packet_open( &packet, data, body, &channel );
    if ( opened && original )
        FUZZ_CHECK( memcmp( body, original->body, (size_t) packet.body_bytes ) == 0 );
    if ( !packet_is_replay_protected[packet.type] )
        return opened;
    nc_replay_init( &replay, packet.sequence ? packet.sequence - 1 : 0 );
    before = replay;
    uint8_t * copy = packet_copy( data, bytes ); /* it is opened in place */
    reason = nc_packet_accept( &packet, copy, &channel, &replay );
    free( copy );
    if ( packet.sequence == 0 )
        FUZZ_CHECK( reason == NETCODE_DROP_SEQUENCE_TOO_OLD );
    else
        FUZZ_CHECK( reason == ( opened ? NETCODE_DROP_NONE : NETCODE_DROP_AUTHENTICATION_FAILED ) );
    if ( reason != NETCODE_DROP_NONE )
        FUZZ_CHECK( memcmp( &replay, &before, sizeof( replay ) ) == 0 );
    else
        FUZZ_CHECK( nc_replay_seen( &replay, packet.sequence ) == NETCODE_DROP_REPLAYED );
    return opened;
}

/* ---- any bytes ---- */

static void packet_raw( struct fuzz_input_t * input )
{
    static const uint8_t key[NETCODE_KEY_BYTES] = { 7 };
    int bytes = (int) ( input->bytes - input->at );
    uint8_t * data = packet_copy( input->data + input->at, bytes );
    FUZZ_CHECK( !packet_opens( data, bytes, 1, key, 1, NULL ) );
    FUZZ_CHECK( !packet_opens( data, bytes, 0, key, 1, NULL ) );
    free( data );
}

/* ---- sealed packets, then changed ones ---- */

static void packet_read_case( struct fuzz_input_t * input, struct packet_case_t * it )
{
    uint8_t how = fuzz_u8( input );
    uint8_t seed = fuzz_u8( input );
    fuzz_fill( it->key, sizeof( it->key ), seed );
    it->protocol_id = how & 8 ? fuzz_u64( input ) : seed;
    it->type = ( how & 7 ) % NETCODE_PACKET_TYPES;
    it->sequence = fuzz_u64( input );
    it->sequence_bytes = how >> 4 & 1 ? how >> 5 : 0; /* of the second hand: 0 to 7, and more where it takes more */
    it->body_bytes = packet_min_body[it->type];
    if ( it->type == NETCODE_PACKET_PAYLOAD )
        it->body_bytes += (int) ( fuzz_u64( input ) % 1200 );
    else if ( how & 128 ) /* of another size than its type has */
        it->body_bytes = (int) ( fuzz_u64( input ) % 1300 );
    fuzz_fill( it->body, sizeof( it->body ), seed );
    fuzz_bytes( input, it->body, 4 );
}

/* Changes the datagram, the key or the protocol id as an attacker can. */
static void packet_change( struct fuzz_input_t * input, struct packet_case_t * it )
{
    uint8_t how = fuzz_u8( input );
    int at = (int) ( fuzz_number( input, 2 ) % (uint64_t) it->bytes );
    uint8_t bits = fuzz_u8( input );
    switch ( how % 8 ) {
    case 0: it->data[at] ^= (uint8_t) ( 1 << ( bits & 7 ) ); break;
    case 1: it->data[at] ^= bits; break;
    case 2: it->bytes = at; break; /* cut */
    case 3:                        /* made longer */
        for ( int i = 0; i <= bits % 64 && it->bytes < PACKET_ROOM; i++ )
            it->data[it->bytes++] = fuzz_u8( input );
        break;
    case 4: it->data[0] ^= bits; break; /* another type, or another length of the sequence */
    case 5: it->protocol_id ^= (uint64_t) bits << ( 8 * ( at & 7 ) ); break;
    case 6: it->key[at % NETCODE_KEY_BYTES] ^= bits; break;
    default: /* a byte of the sequence more, or less, and the prefix says so */
        if ( bits & 1 && it->bytes < PACKET_ROOM ) {
            memmove( it->data + 2, it->data + 1, (size_t) it->bytes++ - 1 );
            it->data[0] = (uint8_t) ( it->data[0] + 16 );
        } else {
            memmove( it->data + 1, it->data + 2, (size_t) --it->bytes - 1 );
            it->data[0] = (uint8_t) ( it->data[0] - 16 );
        }
    }
}

static int packet_is_changed( const struct packet_case_t * a, const struct packet_case_t * b )
{
    return a->bytes != b->bytes || memcmp( a->data, b->data, (size_t) a->bytes ) != 0 ||
           a->protocol_id != b->protocol_id || memcmp( a->key, b->key, sizeof( a->key ) ) != 0;
}

static void packet_check_whole( const struct packet_case_t * it )
{
    int fits = it->body_bytes >= packet_min_body[it->type] && it->body_bytes <= packet_max_body[it->type];
    uint8_t * data = packet_copy( it->data, it->bytes );
    int by_server = packet_opens( data, it->bytes, 1, it->key, it->protocol_id, it );
    int by_client = packet_opens( data, it->bytes, 0, it->key, it->protocol_id, it );
    FUZZ_CHECK( by_server == ( packet_is_for_server[it->type] && fits && it->bytes >= 18 ) );
    FUZZ_CHECK( by_client == ( packet_is_for_client[it->type] && fits && it->bytes >= 18 ) );
    free( data );
}

static void packet_check_changed( const struct packet_case_t * it )
{
    uint8_t * data = packet_copy( it->data, it->bytes );
    FUZZ_CHECK( !packet_opens( data, it->bytes, 1, it->key, it->protocol_id, NULL ) );
    FUZZ_CHECK( !packet_opens( data, it->bytes, 0, it->key, it->protocol_id, NULL ) );
    free( data );
}

static void packet_sealed( struct fuzz_input_t * input )
{
    static struct packet_case_t it, changed;
    packet_read_case( input, &it );
    it.bytes = packet_seal_by_hand( &it, it.data );
    packet_check_whole( &it ); /* longer sequences than needed are accepted, too */
    it.sequence_bytes = 0;
    it.bytes = packet_seal_by_hand( &it, it.data );
    nc_packet_t packet = { it.type, 0, it.body_bytes, it.sequence };
    nc_packet_context_t channel = { it.key, it.protocol_id };
    memset( changed.data, 0x77, sizeof( changed.data ) );
    FUZZ_CHECK( nc_packet_seal( changed.data, &packet, it.body, &channel ) == it.bytes );
    FUZZ_CHECK( memcmp( changed.data, it.data, (size_t) it.bytes ) == 0 );
    FUZZ_CHECK( it.bytes >= 9 && changed.data[it.bytes] == 0x77 );
    packet_check_whole( &it );
    changed = it;
    do
        packet_change( input, &changed );
    while ( changed.bytes > 1 && fuzz_u8( input ) & 1 );
    if ( packet_is_changed( &it, &changed ) )
        packet_check_changed( &changed );
}

/* ---- the replay window beside a naive one ---- */

struct packet_window_t {
    uint64_t floor;
    uint64_t newest;
    uint64_t accepted[PACKET_SEEN];
    int count;
};

static int packet_window_verdict( const struct packet_window_t * w, uint64_t sequence )
{
    if ( sequence <= w->floor )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    if ( sequence > w->newest )
        return sequence - w->newest > 0x100000000u ? NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD : NETCODE_DROP_NONE;
    if ( w->newest - sequence >= 320 )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    for ( int i = 0; i < w->count; i++ )
        if ( w->accepted[i] == sequence )
            return NETCODE_DROP_REPLAYED;
    return NETCODE_DROP_NONE;
}

static void packet_window( struct fuzz_input_t * input )
{
    struct packet_window_t w;
    nc_replay_t replay;
    w.floor = w.newest = fuzz_u64( input );
    w.count = 0;
    nc_replay_init( &replay, w.floor );
    while ( !fuzz_is_over( input ) && w.count < PACKET_SEEN ) {
        uint8_t how = fuzz_u8( input );
        uint64_t near_the_edge = 304 + (uint64_t) ( how >> 2 & 31 ); /* of 320 */
        uint64_t step = how & 2 ? fuzz_u64( input ) : how & 128 ? near_the_edge : how >> 2;
        uint64_t sequence = how & 1 ? w.newest - step : w.newest + step;
        int reason = nc_replay_seen( &replay, sequence );
        FUZZ_CHECK( reason == packet_window_verdict( &w, sequence ) );
        fuzz_note( (uint64_t) reason );
        if ( reason != NETCODE_DROP_NONE )
            continue;
        nc_replay_advance( &replay, sequence );
        w.accepted[w.count++] = sequence;
        if ( sequence > w.newest )
            w.newest = sequence;
        FUZZ_CHECK( nc_replay_seen( &replay, sequence ) != NETCODE_DROP_NONE );
    }
    for ( int i = 0; i < w.count; i++ )
        FUZZ_CHECK( nc_replay_seen( &replay, w.accepted[i] ) != NETCODE_DROP_NONE );
}

/* ---- connection requests ---- */

static int packet_expected_request( const uint8_t * data, int bytes, uint64_t protocol_id )
{
    int is_new = bytes >= 14 && memcmp( data + 1, FUZZ_VERSION, 13 ) == 0;
    int is_old = bytes >= 14 && memcmp( data + 1, "NETCODE 1.01", 13 ) == 0;
    uint64_t id = 0;
    if ( bytes != 1078 )
        return bytes == 1062 && is_old ? NETCODE_DROP_REQUEST_OLD_VERSION : NETCODE_DROP_REQUEST_WRONG_SIZE;
    if ( !is_new )
        return is_old ? NETCODE_DROP_REQUEST_OLD_VERSION : NETCODE_DROP_REQUEST_WRONG_VERSION;
    for ( int i = 7; i >= 0; i-- )
        id = id << 8 | data[14 + i];
    return id == protocol_id ? NETCODE_DROP_NONE : NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID;
}

static void packet_request( struct fuzz_input_t * input )
{
    static nc_connect_token_t token;
    static uint8_t data[PACKET_ROOM];
    nc_request_t request;
    uint8_t seed = fuzz_u8( input );
    fuzz_fill( (uint8_t *) &token, sizeof( token ), seed );
    token.protocol_id = seed;
    token.expire_timestamp = fuzz_u64( input );
    memset( data, 0x77, sizeof( data ) );
    FUZZ_CHECK( nc_packet_write_request( data, &token ) == 1078 && data[0] == 0 && data[1078] == 0x77 );
    FUZZ_CHECK( nc_packet_parse_request( &request, data, 1078, seed ) == NETCODE_DROP_NONE );
    FUZZ_CHECK( request.expire_timestamp == token.expire_timestamp );
    FUZZ_CHECK( memcmp( request.nonce, token.nonce, 24 ) == 0 );
    FUZZ_CHECK( memcmp( request.sealed_private, token.sealed_private, 1024 ) == 0 );
    FUZZ_CHECK( request.tag == data + 1078 - 16 );
    uint8_t how = fuzz_u8( input ); /* change the head, the size, the protocol id */
    int bytes = how & 1 ? 1062 : how & 2 ? 1 + (int) ( fuzz_number( input, 2 ) % 1300 ) : 1078;
    if ( how & 4 )
        data[12] = '1';
    if ( how & 8 )
        data[1 + fuzz_u8( input ) % 22] ^= fuzz_u8( input );
    uint64_t id = how & 16 ? fuzz_u64( input ) : seed;
    uint8_t * copy = packet_copy( data, bytes );
    int reason = nc_packet_parse_request( &request, copy, bytes, id );
    FUZZ_CHECK( reason == packet_expected_request( copy, bytes, id ) );
    fuzz_note( (uint64_t) reason );
    free( copy );
}

/* ---- readers and writers beside plain arithmetic ---- */

static void packet_numbers( struct fuzz_input_t * input )
{
    uint8_t data[64], out[64];
    size_t end = fuzz_u8( input ) % 65, at = 0;
    int failed = 0;
    fuzz_fill( data, sizeof( data ), end );
    memset( out, 0x77, sizeof( out ) );
    nc_reader_t reader = nc_reader_make( data, end );
    nc_writer_t writer = nc_writer_make( out, end );
    while ( !fuzz_is_over( input ) ) {
        uint8_t how = fuzz_u8( input ), piece[64];
        size_t bytes = how & 8 ? how >> 4 : (size_t) 1 << ( how & 3 );
        uint64_t value = 0;
        failed |= end - at < bytes;
        for ( size_t i = bytes < 8 ? bytes : 8; i > 0 && !failed; i-- )
            value = value << 8 | data[at + i - 1];
        if ( how & 8 ) {
            nc_reader_bytes( &reader, piece, bytes );
            FUZZ_CHECK( failed ? sodium_is_zero( piece, bytes ) : memcmp( piece, data + at, bytes ) == 0 );
            nc_writer_bytes( &writer, piece, bytes );
        } else {
            uint64_t read = nc_reader_number( &reader, bytes );
            FUZZ_CHECK( read == value );
            nc_writer_number( &writer, value, bytes );
        }
        at += failed ? 0 : bytes;
        FUZZ_CHECK( !reader.failed == !failed && !writer.failed == !failed );
        FUZZ_CHECK( reader.at == at && writer.at == at );
    }
    FUZZ_CHECK( memcmp( out, data, at ) == 0 && ( at == 64 || out[at] == 0x77 ) );
    nc_writer_zeros( &writer );
    FUZZ_CHECK( sodium_is_zero( out + at, end - at ) && ( end == 64 || out[end] == 0x77 ) );
}

static void fuzz_packet( struct fuzz_input_t * input )
{
    switch ( fuzz_u8( input ) % 8 ) {
    case 0: packet_raw( input ); break;
    case 1: packet_window( input ); break;
    case 2: packet_request( input ); break;
    case 3: packet_numbers( input ); break;
    default: packet_sealed( input );
    }
}

FUZZ_TARGET( packet )
