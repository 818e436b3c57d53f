/* Story: what known peers do otherwise, so that nothing of it surprises. (README: other implementations) */

/* They write sequences in more bytes than needed. Threat 8 */
TEST( quirk_sequences_in_more_bytes_than_needed )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct recipe_t r;
    uint8_t out[128], body[10] = { 1 };
    int length, bytes;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.sequence = 5;
    REQUIRE( puppet_connect( &p ) );
    for ( length = 1; length <= 8; length++ ) {
        bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, p.sequence++, length, p.r.to_server_key, body, 10 );
        CHECK_EQ( bytes, 1 + length + 10 + 16 );
        puppet_raw( &p, out, bytes );
        world_step( w );
        CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    }
    REQUIRE( world_joins( w, 0, 2, &r ) );
    bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, newest_to_client( w, &r ) + 1, 8, r.to_client_key, body, 10 );
    inject_to_client( w, out, bytes );
    world_step( w );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

/* A server that writes sequence 0 in zero bytes: ignored by the standard, and the handshake completes on its retry. */
TEST( quirk_a_challenge_with_its_sequence_in_zero_bytes )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r;
    uint8_t out[400], body[308] = { 0 }, nonce[12] = { 0 }, ad[22];
    w->cut_to = w->server_addresses[0];
    r = world_connect( w, 0, 1 );
    world_step( w );
    out[0] = NETCODE_PACKET_CHALLENGE;
    wire_associated( ad, WORLD_PROTOCOL, out[0] );
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( out + 1, NULL, body, 308, ad, 22, NULL, nonce, r.to_client_key );
    inject_to_client( w, out, 1 + 308 + 16 );
    expect_client_drop( w, 0, NETCODE_DROP_BAD_SEQUENCE_LENGTH );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    memset( &w->cut_to, 0, sizeof( w->cut_to ) );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

/* The global sequence of a peer's server may start anywhere, 0 included, and its per-client ones as well. */
TEST( quirk_a_servers_sequences_may_start_anywhere )
{
    static const uint64_t starts[][2] = { { 0, 0 },
                                          { 1, 0 },
                                          { (uint64_t) 1 << 63, 0 },
                                          { 5, 1000 },
                                          { UINT64_MAX - 5, (uint64_t) 1 << 40 } };
    int i;
    for ( i = 0; i < 5; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct recipe_t r;
        uint8_t body[308] = { 0 };
        w->cut_to = w->server_addresses[0];
        r = world_connect( w, 0, 1 );
        world_step( w );
        send_to_client( w, &r, NETCODE_PACKET_CHALLENGE, starts[i][0], body, 308 );
        world_step( w );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
        body[4] = 255; /* a peer that always announces 255 clients */
        send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, starts[i][1], body, 8 );
        world_step( w );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 255 );
        send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, starts[i][1] + 1, body, 100 );
        world_step( w );
        CHECK_EQ( client_drain( w, 0 ), 1 );
        world_close( w );
    }
}

/* Payloads of up to 1300 bytes: what is over 1200 is ignored, and the connection stays. */
TEST( quirk_payloads_over_1200_bytes )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    uint8_t body[1300] = { 0 };
    int size;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( size = 1195; size <= 1300; size++ ) {
        puppet_send( &p, NETCODE_PACKET_PAYLOAD, body, size );
        world_step( w );
        CHECK_EQ( server_drain( w, 0, 0 ), size <= 1200 );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* One disconnect packet instead of ten; keep-alives at 4 Hz; a response at once. */
TEST( quirk_a_client_that_says_goodbye_once_and_sends_at_4_hz )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 80; i++ ) {
        puppet_keep_alive( &p );
        world_run( w, 0.25 );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* Clients answer the first challenge while later ones still arrive; a first response is not sequence 0. */
TEST( quirk_late_challenges_and_repeated_responses )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    uint8_t first[308];
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.sequence = 3;
    REQUIRE( puppet_challenged( &p ) );
    memcpy( first, p.challenge, 308 );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( p.challenge, first, 308 );
    for ( i = 0; i < 5; i++ ) /* responses until the keep-alive is seen: only one connects, the others do no harm */
    {
        puppet_answer( &p );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( w->server_parties[0].log_count, 1 );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

/* IPv6 in tokens: eight 16-bit words, each little-endian. The other kind (network order) is a foreign address. */
TEST( quirk_ipv6_words_in_tokens )
{
    const char * list[1] = { "[102:304:506:708:90a:b0c:d0e:f10]:4660" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    int i;
    REQUIRE_EQ( netcode_generate_connect_token( 1, list, list, 30, 5, 1, 2, world_key, NULL, token ), NETCODE_OK );
    CHECK_EQ( token[13 + 8 + 8 + 8 + 24 + 1024 + 4], 1 );
    CHECK_EQ( token[13 + 8 + 8 + 8 + 24 + 1024 + 8], 2 );
    for ( i = 0; i < 8; i++ ) {
        CHECK_EQ( token[1094 + 2 * i], 2 * i + 2 );
        CHECK_EQ( token[1094 + 2 * i + 1], 2 * i + 1 );
    }
    CHECK_EQ( get( token + 1110, 2 ), 4660 );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
    CHECK_EQ( info.server_addresses[0].data.ipv6[0], 0x102 );
}

/*  The library's token is the standard's: a private part that opens with the right key and associated data, field by
    field. */
TEST( quirk_a_generated_token_byte_by_byte )
{
    const char * names[2] = { "1.2.3.4:5", "[::9]:10" };
    const char * inner[2] = { "10.0.0.1:40000", "[fd00::1]:40001" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], part[1024], ad[29], *at = ad, user_data[NETCODE_USER_DATA_BYTES],
                                                                    zeros[1024] = { 0 };
    uint64_t now = (uint64_t) time( NULL );
    const uint8_t * p = part;
    payload_fill( user_data, NETCODE_USER_DATA_BYTES, 8 );
    REQUIRE_EQ( netcode_generate_connect_token( 2, names, inner, 45, -7, 0x0102030405060708u, WORLD_PROTOCOL, world_key,
                                                user_data, token ),
                NETCODE_OK );
    CHECK_MEM( token, "NETCODE 1.02", 13 );
    CHECK( get( token + 13, 8 ) == WORLD_PROTOCOL );
    CHECK_LE( get( token + 21, 8 ) - now, 2 );
    CHECK_EQ( get( token + 29, 8 ), get( token + 21, 8 ) + 45 );
    put_bytes( &at, token, 13 );
    put( &at, WORLD_PROTOCOL, 8 );
    put_bytes( &at, token + 29, 8 );
    REQUIRE_EQ( LEDGER_REAL( crypto_aead_xchacha20poly1305_ietf_decrypt )( part, NULL, NULL, token + 61, 1024, ad, 29,
                                                                           token + 37, world_key ),
                0 );
    CHECK( get( p, 8 ) == 0x0102030405060708u );
    CHECK_EQ( (int32_t) get( p + 8, 4 ), -7 );
    CHECK_EQ( get( p + 12, 4 ), 2 );
    CHECK_EQ( p[16], 1 );
    CHECK_EQ( p[17], 10 );
    CHECK_EQ( get( p + 21, 2 ), 40000 );
    CHECK_EQ( p[23], 2 );
    CHECK_EQ( get( p + 24, 2 ), 0xfd00 );
    CHECK_EQ( get( p + 40, 2 ), 40001 );
    CHECK_MEM( p + 42, token + 61 + 1024 + 8 + 7 + 19, 64 ); /* the keys stand in both parts */
    CHECK_MEM( p + 106, user_data, NETCODE_USER_DATA_BYTES );
    CHECK_MEM( p + 362, zeros, 1008 - 362 );
    CHECK_EQ( (int32_t) get( token + 1085, 4 ), -7 );
    CHECK_EQ( get( token + 1089, 4 ), 2 );
    CHECK_MEM( token + 1093 + 26 + 64, zeros, NETCODE_CONNECT_TOKEN_BYTES - 1093 - 26 - 64 );
}
