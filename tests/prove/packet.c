/*  Proofs of packet: whatever arrives is read within its bounds and judged as the standard says, and what is written is read
    back. Sealing and opening are stub/sodium.h's. Run: tests/prove/run.sh packet */

#define STUB_HEAD 16
#include "prove.h"

/* Longer ones end at nc_received_screen; the readers are proved beyond. */
enum { MOST = NC_BUFFER_CAPACITY };

#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: what follows needs it"
#endif
/* The sizes that a body of each type may have. Standard: Packets */
static int body_fits( int type, int bytes )
{
    switch ( type ) {
    case NETCODE_PACKET_DENIED:
    case NETCODE_PACKET_DISCONNECT: return bytes == 0;
    case NETCODE_PACKET_CHALLENGE:
    case NETCODE_PACKET_RESPONSE: return bytes == 8 + 300;
    case NETCODE_PACKET_KEEP_ALIVE: return bytes == 4 + 4;
    case NETCODE_PACKET_PAYLOAD: return bytes >= 1 && bytes <= 1200;
    }
    return 0;
}

static int may_go( int type, int direction )
{
    if ( type == NETCODE_PACKET_RESPONSE )
        return direction == NC_TO_SERVER;
    if ( type == NETCODE_PACKET_DENIED || type == NETCODE_PACKET_CHALLENGE )
        return direction == NC_TO_CLIENT;
    return type >= NETCODE_PACKET_KEEP_ALIVE && type <= NETCODE_PACKET_DISCONNECT;
}

/* Standard: Reading Encrypted Packets, in its order. */
static int expected_verdict( const uint8_t * data, int bytes, int direction )
{
    if ( bytes < 1 + 1 + 16 )
        return NETCODE_DROP_TOO_SMALL;
    int type = data[0] % 16, sequence_bytes = data[0] / 16;
    if ( type > NETCODE_PACKET_DISCONNECT )
        return NETCODE_DROP_UNKNOWN_PACKET_TYPE;
    if ( !may_go( type, direction ) )
        return NETCODE_DROP_WRONG_DIRECTION;
    if ( sequence_bytes == 0 || sequence_bytes > 8 )
        return NETCODE_DROP_BAD_SEQUENCE_LENGTH;
    return body_fits( type, bytes - 1 - sequence_bytes - 16 ) ? NETCODE_DROP_NONE : NETCODE_DROP_WRONG_BODY_SIZE;
}

static int any_direction( void )
{
    return any_int() ? NC_TO_SERVER : NC_TO_CLIENT;
}

static void claim_parsed( const nc_packet_t * packet, const uint8_t * data, int bytes )
{
    int nth = any_int();
    GIVEN( nth >= 0 && nth < 8 );
    CLAIM( packet->type == data[0] % 16 && packet->header_bytes == 1 + data[0] / 16 );
    CLAIM( packet->header_bytes + packet->body_bytes + 16 == bytes );
    CLAIM( ( packet->sequence >> 8 * nth & 255 ) == ( nth < data[0] / 16 ? data[1 + nth] : 0 ) );
}

void prove_packet_parse( void )
{
    size_t bytes = any_size_up_to( MOST );
    const uint8_t * data = any_bytes( bytes );
    int direction = any_direction();
    nc_packet_t packet;
    int reason = nc_packet_parse( &packet, data, (int) bytes, direction );
    CLAIM( reason == expected_verdict( data, (int) bytes, direction ) );
    if ( reason == NETCODE_DROP_NONE )
        claim_parsed( &packet, data, (int) bytes );
}

/* ---- requests ---- */

/* What a request of version 1.0x says of itself. */
static int says_version( const uint8_t * data, char last )
{
    const uint8_t text[13] = { 'N', 'E', 'T', 'C', 'O', 'D', 'E', ' ', '1', '.', '0', (uint8_t) last, 0 };
    for ( int i = 0; i < 13; i++ )
        if ( data[1 + i] != text[i] )
            return 0;
    return 1;
}

static uint64_t number_at( const uint8_t * data )
{
    uint64_t value = 0;
    for ( int i = 7; i >= 0; i-- )
        value = value << 8 | data[i];
    return value;
}

/* Standard: Processing Connection Requests */
static int expected_request_verdict( const uint8_t * data, int bytes, uint64_t protocol_id )
{
    if ( bytes == 1062 && says_version( data, '1' ) )
        return NETCODE_DROP_REQUEST_OLD_VERSION;
    if ( bytes != 1 + 13 + 8 + 8 + 24 + 1024 )
        return NETCODE_DROP_REQUEST_WRONG_SIZE;
    if ( says_version( data, '1' ) )
        return NETCODE_DROP_REQUEST_OLD_VERSION;
    if ( !says_version( data, '2' ) )
        return NETCODE_DROP_REQUEST_WRONG_VERSION;
    return number_at( data + 14 ) == protocol_id ? NETCODE_DROP_NONE : NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID;
}

void prove_packet_parse_request( void )
{
    size_t bytes = any_size_up_to( MOST );
    const uint8_t * data = any_bytes( bytes );
    uint64_t protocol_id = any_u64();
    nc_request_t request;
    int reason = nc_packet_parse_request( &request, data, (int) bytes, protocol_id );
    CLAIM( reason == expected_request_verdict( data, (int) bytes, protocol_id ) );
    if ( reason != NETCODE_DROP_NONE )
        return;
    CLAIM( request.expire_timestamp == number_at( data + 22 ) );
    CLAIM( request.nonce == data + 30 && request.sealed_private == data + 54 );
    CLAIM( request.tag == data + bytes - 16 );
}

static void fill( uint8_t * place, size_t bytes )
{
    __CPROVER_havoc_slice( place, bytes );
}

/* What a client writes, its server reads. */
void prove_packet_request_round_trip( void )
{
    nc_connect_token_t token;
    nc_request_t request;
    uint8_t * out = any_bytes( NC_REQUEST_BYTES );
    size_t nth = any_size_up_to( NC_PRIVATE_TOKEN_BYTES - 1 );
    token.protocol_id = any_u64();
    token.expire_timestamp = any_u64();
    fill( token.nonce, sizeof( token.nonce ) );
    fill( token.sealed_private, sizeof( token.sealed_private ) );
    CLAIM( nc_packet_write_request( out, &token ) == NC_REQUEST_BYTES && out[0] == NETCODE_PACKET_REQUEST );
    CLAIM( nc_packet_parse_request( &request, out, NC_REQUEST_BYTES, token.protocol_id ) == NETCODE_DROP_NONE );
    CLAIM( request.expire_timestamp == token.expire_timestamp );
    CLAIM( request.sealed_private[nth] == token.sealed_private[nth] );
    CLAIM( nth >= NC_TOKEN_NONCE_BYTES || request.nonce[nth] == token.nonce[nth] );
}

/* ---- seal, open, accept ---- */

static void claim_sealed_with( uint64_t protocol_id, uint8_t prefix, uint64_t sequence )
{
    int nth = any_int();
    GIVEN( nth >= 0 && nth < 8 );
    CLAIM( stub_crypto.associated_bytes == 13 + 8 + 1 && stub_crypto.associated[21] == prefix );
    CLAIM( stub_crypto.associated[13 + nth] == ( protocol_id >> 8 * nth & 255 ) );
    CLAIM( stub_crypto.nonce[4 + nth] == ( sequence >> 8 * nth & 255 ) && stub_crypto.nonce[nth / 2] == 0 );
}

/*  For every sequence, type and body: the header is the shortest, it is read back, and the packet is no byte longer than what
    was promised. NC_OUT_STRIDE is what nc_outbox_begin hands out. */
void prove_packet_seal_round_trip( void )
{
    uint8_t key[NETCODE_KEY_BYTES];
    nc_packet_context_t channel = { key, any_u64() };
    nc_packet_t packet = { any_int(), 0, any_int(), any_u64() }, read;
    int direction = any_direction();
    GIVEN( may_go( packet.type, direction ) && body_fits( packet.type, packet.body_bytes ) );
    const uint8_t * body = any_bytes( (size_t) packet.body_bytes );
    uint8_t * out = any_bytes( NC_OUT_STRIDE );
    size_t nth = stub_crypto.probe = any_size();
    int bytes = nc_packet_seal( out, &packet, body, &channel );
    CLAIM( nth >= (size_t) packet.body_bytes || stub_crypto.probed == body[nth] );
    CLAIM( bytes <= NC_MAX_DATAGRAM_BYTES );
    CLAIM( nc_packet_parse( &read, out, bytes, direction ) == NETCODE_DROP_NONE );
    CLAIM( read.type == packet.type && read.sequence == packet.sequence && read.body_bytes == packet.body_bytes );
    CLAIM( read.header_bytes == 2 || packet.sequence >> 8 * ( read.header_bytes - 2 ) != 0 );
    CLAIM( stub_crypto.seals == 1 && stub_crypto.in == body && stub_crypto.bytes == (unsigned) packet.body_bytes );
    CLAIM( stub_crypto.out == out + read.header_bytes );
    claim_sealed_with( channel.protocol_id, out[0], packet.sequence );
}

static nc_replay_t any_replay( void )
{
    nc_replay_t replay;
    replay.floor = any_u64();
    replay.newest = any_u64();
    GIVEN( replay.newest >= replay.floor );
    for ( int i = 0; i < NC_REPLAY_WORDS; i++ )
        replay.bits[i] = any_u64();
    return replay;
}

/* Nothing is opened that the window refuses, the window moves for nothing that is not authentic, and only it is touched. */
void prove_packet_accept( void )
{
    uint8_t key[NETCODE_KEY_BYTES];
    size_t bytes = any_size_up_to( MOST );
    uint8_t * data = any_bytes( bytes );
    nc_packet_context_t channel = { key, any_u64() };
    nc_replay_t replay = any_replay(), before = replay;
    nc_packet_t packet;
    if ( nc_packet_parse( &packet, data, (int) bytes, any_direction() ) != NETCODE_DROP_NONE )
        return;
    GIVEN( packet.type >= NETCODE_PACKET_KEEP_ALIVE ); /* what a session consists of */
    uint8_t prefix = data[0];
    int seen = nc_replay_seen( &replay, packet.sequence );
    int reason = nc_packet_accept( &packet, data, &channel, &replay );
    CLAIM( seen == NETCODE_DROP_NONE ? stub_crypto.openings == 1 : reason == seen && stub_crypto.openings == 0 );
    CLAIM( reason == seen || reason == NETCODE_DROP_AUTHENTICATION_FAILED );
    int word = any_int();
    GIVEN( word >= 0 && word < NC_REPLAY_WORDS );
    if ( reason != NETCODE_DROP_NONE )
        CLAIM( replay.newest == before.newest && replay.bits[word] == before.bits[word] );
    else
        CLAIM( replay.newest == ( packet.sequence > before.newest ? packet.sequence : before.newest ) );
    if ( seen == NETCODE_DROP_NONE ) {
        CLAIM( stub_crypto.in == data + packet.header_bytes && stub_crypto.out == stub_crypto.in );
        CLAIM( stub_crypto.bytes == (unsigned) packet.body_bytes + 16 );
        claim_sealed_with( channel.protocol_id, prefix, packet.sequence );
    }
}
