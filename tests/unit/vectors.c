/*  What an independent program sealed (tests/vectors.py, from the standard alone) opens here, and what is sealed
    here is the same to the byte. So the codec is not checked against itself.

    vector_addresses         how an address stands in a token: type, address, port
    vector_tokens            connect tokens: every field, the private part before encryption, the sealed 2048 bytes
                             and the connection request that presents the token
    vector_challenges        challenge tokens before and after encryption
    vector_packets           packets of every type in both directions; `sequence_bytes` above the shortest are over-long
    vector_refused_packets   authentic packets that a reader ignores before it decrypts: `why` says what is wrong

    Each table has a macro in capitals for its number of rows. Arrays end with zeros where their initialiser is shorter.
    Address bytes are in network order, as inet_pton gives them: 4 for type 1 and 16 for type 2. In `to_server`, 1 means
    that the client sends the packet, 0 that the server does. */

struct vector_address_t {
    int type;
    uint8_t bytes[16];
    uint16_t port;
    int wire_bytes;
    uint8_t wire[19];
};

struct vector_token_t {
    const char * name;
    uint64_t protocol_id;
    uint64_t create;
    uint64_t expire;
    uint8_t nonce[24];
    uint8_t private_key[32];
    uint64_t client_id;
    int32_t timeout;
    int num_addresses;
    struct vector_address_t addresses[32];
    uint8_t client_to_server_key[32];
    uint8_t server_to_client_key[32];
    uint8_t user_data[256];
    uint8_t private_plain[1024];
    uint8_t token[2048];
    uint8_t request[1078];
};

struct vector_challenge_t {
    const char * name;
    uint8_t key[32];
    uint64_t sequence;
    uint64_t client_id;
    uint8_t user_data[256];
    uint8_t plain[300];
    uint8_t sealed[300];
};

struct vector_packet_t {
    const char * name;
    int to_server;
    int type;
    uint8_t key[32];
    uint64_t protocol_id;
    uint64_t sequence;
    int sequence_bytes;
    int body_bytes;
    uint8_t body[1200];
    int sealed_bytes;
    uint8_t sealed[1225];
};

struct vector_refused_packet_t {
    const char * why;
    int to_server;
    uint8_t key[32];
    uint64_t protocol_id;
    int sealed_bytes;
    uint8_t sealed[1400];
};

#include "vectors.inc"

/* The address of a vector's row, in this library's form. */
static struct netcode_address_t vectors_address( const struct vector_address_t * row )
{
    struct netcode_address_t address;
    int i;
    memset( &address, 0, sizeof( address ) );
    address.port = row->port;
    address.type = (uint8_t) row->type;
    if ( row->type == NETCODE_ADDRESS_IPV4 )
        memcpy( address.data.ipv4, row->bytes, 4 );
    else
        for ( i = 0; i < 8; i++ )
            address.data.ipv6[i] = (uint16_t) ( row->bytes[2 * i] << 8 | row->bytes[2 * i + 1] );
    return address;
}

TEST( vectors_addresses )
{
    int i;
    for ( i = 0; i < VECTOR_ADDRESSES; i++ ) {
        const struct vector_address_t * row = &vector_addresses[i];
        struct netcode_address_t address = vectors_address( row ), read;
        uint8_t wire[19];
        nc_writer_t writer = nc_writer_make( wire, sizeof( wire ) );
        nc_reader_t reader = nc_reader_make( row->wire, (size_t) row->wire_bytes );
        nc_token_write_address( &writer, &address );
        CHECK( !writer.failed );
        CHECK_EQ( writer.at, row->wire_bytes );
        CHECK_MEM( wire, row->wire, row->wire_bytes );
        nc_token_read_address( &reader, &read );
        CHECK( !reader.failed );
        CHECK_EQ( reader.at, row->wire_bytes );
        CHECK_MEM( &read, &address, sizeof( address ) );
    }
}

static void vectors_route( nc_route_t * route, const struct vector_token_t * row )
{
    int i;
    route->timeout_seconds = row->timeout;
    route->num_addresses = row->num_addresses;
    for ( i = 0; i < row->num_addresses; i++ )
        route->addresses[i] = vectors_address( &row->addresses[i] );
    memcpy( route->client_to_server_key, row->client_to_server_key, NETCODE_KEY_BYTES );
    memcpy( route->server_to_client_key, row->server_to_client_key, NETCODE_KEY_BYTES );
}

static nc_token_seal_t vectors_how( const struct vector_token_t * row )
{
    nc_token_seal_t how;
    how.protocol_id = row->protocol_id;
    how.expire_timestamp = row->expire;
    how.nonce = row->nonce;
    how.key = row->private_key;
    return how;
}

TEST( vectors_tokens_are_sealed_the_same )
{
    int i;
    for ( i = 0; i < VECTOR_TOKENS; i++ ) {
        const struct vector_token_t * row = &vector_tokens[i];
        nc_token_seal_t how = vectors_how( row );
        nc_private_token_t hidden;
        nc_connect_token_t token;
        uint8_t out[NETCODE_CONNECT_TOKEN_BYTES], request[NC_REQUEST_BYTES];
        memset( &hidden, 0, sizeof( hidden ) );
        memset( &token, 0, sizeof( token ) );
        memset( out, 0xEE, sizeof( out ) );
        memset( token.sealed_private, 0xEE, sizeof( token.sealed_private ) );
        hidden.client_id = row->client_id;
        vectors_route( &hidden.route, row );
        memcpy( hidden.user_data, row->user_data, NETCODE_USER_DATA_BYTES );
        token.protocol_id = row->protocol_id;
        token.create_timestamp = row->create;
        token.expire_timestamp = row->expire;
        memcpy( token.nonce, row->nonce, sizeof( token.nonce ) );
        vectors_route( &token.route, row );
        nc_token_seal_private( token.sealed_private, &hidden, &how );
        nc_token_write( out, &token );
        if ( !CHECK_MEM( out, row->token, sizeof( out ) ) )
            printf( "    in the row: %s\n", row->name );
        CHECK_EQ( nc_packet_write_request( request, &token ), (int) sizeof( row->request ) );
        CHECK_MEM( request, row->request, sizeof( request ) );
    }
}

TEST( vectors_tokens_are_read )
{
    int i;
    for ( i = 0; i < VECTOR_TOKENS; i++ ) {
        const struct vector_token_t * row = &vector_tokens[i];
        nc_connect_token_t token;
        nc_private_token_t hidden;
        nc_request_t request;
        nc_route_t route;
        nc_token_seal_t how;
        struct netcode_connect_token_info_t info;
        uint8_t plain[NC_PRIVATE_TOKEN_BYTES];
        memset( &token, 0, sizeof( token ) );
        memset( &hidden, 0, sizeof( hidden ) );
        memset( &route, 0, sizeof( route ) );
        vectors_route( &route, row );
        REQUIRE( nc_token_read( row->token, &token ) );
        CHECK_EQ( token.protocol_id, row->protocol_id );
        CHECK_EQ( token.create_timestamp, row->create );
        CHECK_EQ( token.expire_timestamp, row->expire );
        CHECK_MEM( token.nonce, row->nonce, sizeof( token.nonce ) );
        CHECK_MEM( &token.route, &route, sizeof( route ) );
        REQUIRE_EQ( nc_packet_parse_request( &request, row->request, sizeof( row->request ), row->protocol_id ),
                    NETCODE_DROP_NONE );
        how.protocol_id = row->protocol_id;
        how.expire_timestamp = request.expire_timestamp;
        how.nonce = request.nonce;
        how.key = row->private_key;
        REQUIRE( nc_token_open_private( plain, request.sealed_private, &how ) );
        CHECK_MEM( plain, row->private_plain, NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES );
        REQUIRE( nc_token_read_private( plain, &hidden ) );
        CHECK_EQ( hidden.client_id, row->client_id );
        CHECK_MEM( &hidden.route, &route, sizeof( route ) );
        CHECK_MEM( hidden.user_data, row->user_data, NETCODE_USER_DATA_BYTES );
        REQUIRE_EQ( netcode_connect_token_info( row->token, &info ), NETCODE_OK );
        CHECK_STR( info.version, "NETCODE 1.02" );
        CHECK_EQ( info.protocol_id, row->protocol_id );
        CHECK_EQ( info.create_timestamp, row->create );
        CHECK_EQ( info.expire_timestamp, row->expire );
        CHECK_EQ( info.timeout_seconds, row->timeout );
        CHECK_EQ( info.num_server_addresses, row->num_addresses );
        CHECK_MEM( info.server_addresses, route.addresses, sizeof( route.addresses ) );
    }
}

/* The spare 20 bytes are zero in the standard's challenge: what this library puts there is its server's
   own matter. */
TEST( vectors_challenges )
{
    int i;
    for ( i = 0; i < VECTOR_CHALLENGES; i++ ) {
        const struct vector_challenge_t * row = &vector_challenges[i];
        static const uint8_t spare[NC_CHALLENGE_BIND_BYTES];
        nc_challenge_t challenge, read;
        uint8_t out[NC_CHALLENGE_BYTES], copy[NC_CHALLENGE_BYTES];
        memset( &challenge, 0, sizeof( challenge ) );
        challenge.client_id = row->client_id;
        memcpy( challenge.user_data, row->user_data, NETCODE_USER_DATA_BYTES );
        nc_challenge_seal( out, &challenge, row->sequence, row->key );
        if ( !CHECK_MEM( out, row->sealed, NC_CHALLENGE_BYTES ) )
            printf( "    in the row: %s\n", row->name );
        memcpy( copy, row->sealed, sizeof( copy ) );
        REQUIRE( nc_challenge_open( copy, &read, row->sequence, row->key ) );
        CHECK_EQ( read.client_id, row->client_id );
        CHECK_MEM( read.user_data, row->user_data, NETCODE_USER_DATA_BYTES );
        CHECK_MEM( read.bind, spare, sizeof( spare ) );
    }
}

TEST( vectors_packets )
{
    int i;
    for ( i = 0; i < VECTOR_PACKETS; i++ ) {
        const struct vector_packet_t * row = &vector_packets[i];
        int direction = row->to_server ? NC_TO_SERVER : NC_TO_CLIENT, shortest = 1;
        nc_packet_t packet;
        nc_packet_context_t channel;
        uint8_t out[NC_MAX_DATAGRAM_BYTES], data[NC_MAX_DATAGRAM_BYTES];
        channel.key = row->key;
        channel.protocol_id = row->protocol_id;
        memcpy( data, row->sealed, (size_t) row->sealed_bytes );
        if ( nc_packet_parse( &packet, data, row->sealed_bytes, direction ) != NETCODE_DROP_NONE ||
             !nc_packet_open( &packet, data, data + packet.header_bytes, &channel ) ) {
            test_fail( __FILE__, __LINE__, "not read: %s", row->name );
            continue;
        }
        CHECK_EQ( packet.type, row->type );
        CHECK_EQ( packet.sequence, row->sequence );
        CHECK_EQ( packet.header_bytes, 1 + row->sequence_bytes );
        CHECK_EQ( packet.body_bytes, row->body_bytes );
        CHECK_MEM( data + packet.header_bytes, row->body, row->body_bytes );
        while ( shortest < 8 && row->sequence >> ( 8 * shortest ) )
            shortest++;
        if ( row->sequence_bytes != shortest )
            continue; /* over-long: read, never written */
        CHECK_EQ( nc_packet_seal( out, &packet, row->body, &channel ), row->sealed_bytes );
        if ( !CHECK_MEM( out, row->sealed, row->sealed_bytes ) )
            printf( "    in the row: %s\n", row->name );
    }
}

/* Packets cross only in their own direction, and another session's key opens none. */
TEST( vectors_packets_in_the_wrong_direction )
{
    int i;
    for ( i = 0; i < VECTOR_PACKETS; i++ ) {
        const struct vector_packet_t * row = &vector_packets[i];
        int both = row->type >= NETCODE_PACKET_KEEP_ALIVE;
        nc_packet_t packet = { 0, 0, 0, 0 };
        uint8_t data[NC_MAX_DATAGRAM_BYTES];
        CHECK_EQ( nc_packet_parse( &packet, row->sealed, row->sealed_bytes,
                                   row->to_server ? NC_TO_CLIENT : NC_TO_SERVER ),
                  both ? NETCODE_DROP_NONE : NETCODE_DROP_WRONG_DIRECTION );
        if ( both ) { /* reflected to its sender, which opens with the other direction's key. attacks/rows.py, row 9 */
            nc_packet_context_t channel;
            channel.key = vector_packets[( i + 1 ) % VECTOR_PACKETS].key;
            channel.protocol_id = row->protocol_id;
            memcpy( data, row->sealed, (size_t) row->sealed_bytes );
            CHECK( !nc_packet_open( &packet, data, data + packet.header_bytes, &channel ) );
        }
    }
}

TEST( vectors_refused_packets )
{
    int64_t opens = ledger.opens;
    int i;
    for ( i = 0; i < VECTOR_REFUSED_PACKETS; i++ ) {
        const struct vector_refused_packet_t * row = &vector_refused_packets[i];
        nc_packet_t packet;
        int reason =
            nc_packet_parse( &packet, row->sealed, row->sealed_bytes, row->to_server ? NC_TO_SERVER : NC_TO_CLIENT );
        int expected = strstr( row->why, "sequence" ) ? NETCODE_DROP_BAD_SEQUENCE_LENGTH
                       : strstr( row->why, "goes" )   ? NETCODE_DROP_WRONG_DIRECTION
                       : strstr( row->why, "type" )   ? NETCODE_DROP_UNKNOWN_PACKET_TYPE
                                                      : NETCODE_DROP_WRONG_BODY_SIZE;
        if ( row->sealed_bytes < 18 )
            expected = NETCODE_DROP_TOO_SMALL;
        if ( reason != expected )
            test_fail( __FILE__, __LINE__, "%s (%s): %s and not %s", row->why,
                       row->to_server ? "to server" : "to client", netcode_drop_reason_name( reason ),
                       netcode_drop_reason_name( expected ) );
    }
    CHECK_EQ( ledger.opens, opens );
}
