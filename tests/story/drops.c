/* Story: every reason for which a datagram is dropped, by name. One row in NETCODE_DROP_LIST, one test here. */

/* One more drop for this reason, and for no other. */
static void expect_one_drop( const uint64_t * before, const uint64_t * after, int reason )
{
    int i;
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ )
        if ( after[i] != before[i] + ( i == reason ) )
            test_fail( __FILE__, __LINE__, "expected 1 drop for %s; %s went from %d to %d",
                       netcode_drop_reason_name( reason ), netcode_drop_reason_name( i ), (int) before[i],
                       (int) after[i] );
}

/* In the step that handles what was injected. */
static void expect_server_drop( struct world_t * w, int server, int reason )
{
    struct netcode_server_stats_t before = server_stats( w, server ), after;
    world_step( w );
    after = server_stats( w, server );
    expect_one_drop( before.dropped, after.dropped, reason );
}

static void expect_client_drop( struct world_t * w, int client, int reason )
{
    struct netcode_client_stats_t before = client_stats( w, client ), after;
    world_step( w );
    after = client_stats( w, client );
    expect_one_drop( before.dropped, after.dropped, reason );
}

TEST( drop_NONE )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    client_send( w, 0, 10, 1 );
    world_run( w, 1.0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NONE ), 0 );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_NONE ), 0 );
    CHECK_EQ( NETCODE_DROP_NONE, 0 );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_NONE ), "NONE" );
}

TEST( drop_names_and_sentences )
{
#define ROW( name, sentence )                                            \
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_##name ), #name ); \
    CHECK_STR( netcode_drop_reason_text( NETCODE_DROP_##name ), sentence );
    NETCODE_DROP_LIST( ROW )
#undef ROW
    CHECK_STR( netcode_drop_reason_name( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( NETCODE_DROP_REASONS ), "UNKNOWN" );
}

TEST( drop_EMPTY_DATAGRAM )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_raw( &p, NULL, 0 );
    expect_server_drop( w, 0, NETCODE_DROP_EMPTY_DATAGRAM );
    world_connect( w, 0, 1 );
    inject_to_client( w, NULL, 0 );
    expect_client_drop( w, 0, NETCODE_DROP_EMPTY_DATAGRAM );
}

TEST( drop_OVERSIZED_DATAGRAM )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t data[DATAGRAM_BYTES + 5] = { 0x15 };
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_raw( &p, data, DATAGRAM_BYTES + 1 );
    expect_server_drop( w, 0, NETCODE_DROP_OVERSIZED_DATAGRAM );
    world_connect( w, 0, 1 );
    inject_to_client( w, data, DATAGRAM_BYTES + 5 );
    expect_client_drop( w, 0, NETCODE_DROP_OVERSIZED_DATAGRAM );
}

TEST( drop_SOURCE_PORT_ZERO )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct netcode_address_t from;
    uint8_t data[40] = { 0x15 };
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.address.port = 0;
    puppet_ask( &p );
    expect_server_drop( w, 0, NETCODE_DROP_SOURCE_PORT_ZERO );
    puppet_poll( &p );
    CHECK_EQ( p.challenges, 0 );
    world_connect( w, 0, 1 );
    from = w->server_addresses[0];
    from.port = 0;
    world_inject( w, &from, &w->client_addresses[0], data, 40 );
    expect_client_drop( w, 0, NETCODE_DROP_SOURCE_PORT_ZERO );
}

TEST( drop_TOO_SMALL )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t data[17] = { 0x15 };
    int bytes;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( bytes = 1; bytes <= 17; bytes++ ) {
        puppet_raw( &p, data, bytes );
        expect_server_drop( w, 0, NETCODE_DROP_TOO_SMALL );
    }
    world_connect( w, 0, 1 );
    inject_to_client( w, data, 17 );
    expect_client_drop( w, 0, NETCODE_DROP_TOO_SMALL );
}

TEST( drop_UNKNOWN_PACKET_TYPE )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t data[40] = { 0 };
    int type;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    world_connect( w, 0, 1 );
    world_step( w );
    for ( type = 7; type < 16; type++ ) {
        data[0] = (uint8_t) ( 0x10 | type );
        puppet_raw( &p, data, 40 );
        expect_server_drop( w, 0, NETCODE_DROP_UNKNOWN_PACKET_TYPE );
        inject_to_client( w, data, 40 );
        expect_client_drop( w, 0, NETCODE_DROP_UNKNOWN_PACKET_TYPE );
    }
}

TEST( drop_WRONG_DIRECTION )
{
    static const int to_server[] = { NETCODE_PACKET_CHALLENGE, NETCODE_PACKET_DENIED };
    static const int to_client[] = { NETCODE_PACKET_REQUEST, NETCODE_PACKET_RESPONSE };
    static const int sizes[] = { 308, 0, 1060, 308 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t body[1100] = { 0 };
    int i;
    struct recipe_t r;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    for ( i = 0; i < 2; i++ ) {
        puppet_send( &p, to_server[i], body, sizes[i] );
        expect_server_drop( w, 0, NETCODE_DROP_WRONG_DIRECTION );
        send_to_client( w, &r, to_client[i], newest_to_client( w, &r ) + 1, body, sizes[2 + i] );
        expect_client_drop( w, 0, NETCODE_DROP_WRONG_DIRECTION );
    }
}

TEST( drop_BAD_SEQUENCE_LENGTH )
{
    static const int lengths[] = { 0, 9, 10, 11, 12, 13, 14, 15 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t data[40] = { 0 };
    int i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    world_connect( w, 0, 2 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    for ( i = 0; i < 8; i++ ) {
        data[0] = (uint8_t) ( lengths[i] << 4 | NETCODE_PACKET_PAYLOAD );
        puppet_raw( &p, data, 40 );
        expect_server_drop( w, 0, NETCODE_DROP_BAD_SEQUENCE_LENGTH );
        inject_to_client( w, data, 40 );
        expect_client_drop( w, 0, NETCODE_DROP_BAD_SEQUENCE_LENGTH );
    }
}

TEST( drop_WRONG_BODY_SIZE )
{
    static const int rows[][2] = { { NETCODE_PACKET_RESPONSE, 307 }, { NETCODE_PACKET_RESPONSE, 309 },
                                   { NETCODE_PACKET_KEEP_ALIVE, 7 }, { NETCODE_PACKET_KEEP_ALIVE, 9 },
                                   { NETCODE_PACKET_PAYLOAD, 0 },    { NETCODE_PACKET_PAYLOAD, 1201 },
                                   { NETCODE_PACKET_DISCONNECT, 1 }, { NETCODE_PACKET_RESPONSE, 0 },
                                   { NETCODE_PACKET_KEEP_ALIVE, 0 } };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t body[1300] = { 0 };
    int i;
    struct recipe_t r;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    for ( i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        puppet_send( &p, rows[i][0], body, rows[i][1] );
        expect_server_drop( w, 0, NETCODE_DROP_WRONG_BODY_SIZE );
    }
    send_to_client( w, &r, NETCODE_PACKET_CHALLENGE, (uint64_t) 1 << 63, body, 300 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_BODY_SIZE );
    send_to_client( w, &r, NETCODE_PACKET_DENIED, (uint64_t) 1 << 63, body, 1 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_BODY_SIZE );
}

TEST( drop_UNKNOWN_ADDRESS )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_say( &p, 10, 1 );
    expect_server_drop( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS );
    REQUIRE( puppet_connect( &p ) );
    p.address.port++;
    puppet_say( &p, 10, 1 );
    expect_server_drop( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS );
}

TEST( drop_NOT_CONNECTED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_say( &p, 10, 1 );
    expect_server_drop( w, 0, NETCODE_DROP_NOT_CONNECTED );
    netcode_server_stop( w->servers[0] );
    netcode_server_process_packet( w->servers[0], &p.address, p.request, REQUEST_BYTES );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_CONNECTED ), 2 );
}

TEST( drop_WRONG_SERVER )
{
    struct world_t * w = world_open( CLEAN, 2, 2, 1 );
    struct recipe_t r = world_connect( w, 0, 1 );
    uint8_t out[64], body[8] = { 0 };
    int bytes;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    bytes = wire_seal( out, NETCODE_PACKET_KEEP_ALIVE, newest_to_client( w, &r ) + 1, 0, r.to_client_key, body, 8 );
    world_inject( w, &w->server_addresses[1], &w->client_addresses[0], out, bytes );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_SERVER );
}

TEST( drop_WRONG_STATE )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = world_connect( w, 0, 1 );
    uint8_t body[308] = { 0 };
    w->cut_to = w->server_addresses[0];
    world_step( w );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, 5, body, 10 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_STATE );
    send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, 5, body, 8 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_STATE );
    memset( &w->cut_to, 0, sizeof( w->cut_to ) );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    send_to_client( w, &r, NETCODE_PACKET_CHALLENGE, (uint64_t) 1 << 63, body, 308 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_STATE );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 ); /* an echo is in flight */
    send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, 5, body, 8 );
    expect_client_drop( w, 0, NETCODE_DROP_WRONG_STATE );
}

TEST( drop_REPLAYED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    uint64_t sequence;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_say( &p, 10, 1 );
    world_step( w );
    p.sequence--;
    puppet_say( &p, 10, 1 );
    expect_server_drop( w, 0, NETCODE_DROP_REPLAYED );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    sequence = newest_to_client( w, &r ) + 3;
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, body, 10 );
    world_step( w );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, body, 10 );
    expect_client_drop( w, 0, NETCODE_DROP_REPLAYED );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

TEST( drop_SEQUENCE_TOO_OLD )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    uint64_t first;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    p.sequence += 5000;
    puppet_say( &p, 10, 1 );
    world_step( w );
    p.sequence -= 4500; /* it never came, but lies far behind the window */
    puppet_say( &p, 10, 2 );
    expect_server_drop( w, 0, NETCODE_DROP_SEQUENCE_TOO_OLD );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    world_run( w, 0.05 ); /* the first probes are answered */
    first = newest_to_client( w, &r );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + 5000, body, 10 );
    world_step( w );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + 500, body, 10 );
    expect_client_drop( w, 0, NETCODE_DROP_SEQUENCE_TOO_OLD );
}

TEST( drop_SEQUENCE_TOO_FAR_AHEAD )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    p.sequence += ( (uint64_t) 1 << 32 ) + 1;
    puppet_say( &p, 10, 1 );
    expect_server_drop( w, 0, NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, newest_to_client( w, &r ) + ( (uint64_t) 1 << 33 ), body, 10 );
    expect_client_drop( w, 0, NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD );
}

TEST( drop_AUTHENTICATION_FAILED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    struct recipe_t r;
    uint8_t body[10] = { 0 }, out[64];
    int bytes;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, p.sequence++, 0, p.r.to_client_key, body, 10 );
    puppet_raw( &p, out, bytes );
    expect_server_drop( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    bytes = wire_seal( out, NETCODE_PACKET_PAYLOAD, newest_to_client( w, &r ) + 1, 0, r.to_client_key, body, 10 );
    out[bytes - 1] ^= 1;
    inject_to_client( w, out, bytes );
    expect_client_drop( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED );
}

TEST( drop_QUEUE_FULL )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    struct netcode_server_client_stats_t stats;
    int i;
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    w->server_config.packet_quota = 4;
    w->client_config.packet_quota = 3;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 4; i++ )
        puppet_say( &p, 10, i );
    world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 0 );
    puppet_say( &p, 10, 9 );
    expect_server_drop( w, 0, NETCODE_DROP_QUEUE_FULL );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK_EQ( stats.packets_dropped, 1 );
    CHECK_EQ( stats.packets_queued, 4 );
    CHECK_EQ( server_drain( w, 0, 0 ), 4 );
    REQUIRE( world_joins( w, 0, 2, &r ) );
    for ( i = 1; i <= 3; i++ )
        send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, newest_to_client( w, &r ) + (uint64_t) i + 100, body, 10 );
    world_step( w );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, newest_to_client( w, &r ) + 150, body, 10 );
    expect_client_drop( w, 0, NETCODE_DROP_QUEUE_FULL );
    CHECK_EQ( client_drain( w, 0 ), 3 );
}

TEST( drop_POOL_EMPTY )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint8_t * held[80];
    int count = 0, i, bytes;
    w->server_config.packet_pool_buffers = 64;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 400 && server_drops( w, 0, NETCODE_DROP_POOL_EMPTY ) == 0; i++ ) {
        puppet_say( &p, 10, i );
        world_step( w );
        if ( count < 80 && ( held[count] = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL ) ) != NULL )
            count++;
    }
    CHECK_GE( count, 1 );
    CHECK_LE( count, 64 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_POOL_EMPTY ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 0 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
    for ( i = 0; i < count; i++ )
        netcode_server_free_packet( w->servers[0], held[i] );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

/* A request that a server refuses for this reason; it gets no answer. */
static void expect_refusal( struct puppet_t * p, int reason )
{
    int before = p->challenges + p->denials + p->unreadable;
    puppet_mint( p );
    puppet_ask( p );
    expect_server_drop( p->w, p->server, reason );
    puppet_poll( p );
    CHECK_EQ( p->challenges + p->denials + p->unreadable, before );
}

TEST( drop_REQUEST_WRONG_SIZE )
{
    static const int sizes[] = { 18, 100, 1077, 1079, 1225 };
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    uint8_t data[DATAGRAM_BYTES] = { 0 };
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memcpy( data, p.request, REQUEST_BYTES );
    for ( i = 0; i < 5; i++ ) {
        puppet_raw( &p, data, sizes[i] );
        expect_server_drop( w, 0, NETCODE_DROP_REQUEST_WRONG_SIZE );
    }
    puppet_poll( &p );
    CHECK_EQ( p.challenges, 0 );
}

TEST( drop_REQUEST_OLD_VERSION )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    uint8_t old[1062];
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memcpy( p.r.version, "NETCODE 1.01", 13 );
    expect_refusal( &p, NETCODE_DROP_REQUEST_OLD_VERSION );
    memcpy( old, p.request, sizeof( old ) ); /* its own size: an 8 byte sequence in place of the nonce */
    puppet_raw( &p, old, sizeof( old ) );
    expect_server_drop( w, 0, NETCODE_DROP_REQUEST_OLD_VERSION );
}

TEST( drop_REQUEST_WRONG_VERSION )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memcpy( p.r.version, "NETCODE 1.03", 13 );
    expect_refusal( &p, NETCODE_DROP_REQUEST_WRONG_VERSION );
    memcpy( p.r.version, "NETCODE 1.02", 13 );
    p.r.version[12] = ' ';
    expect_refusal( &p, NETCODE_DROP_REQUEST_WRONG_VERSION );
}

TEST( drop_REQUEST_WRONG_PROTOCOL_ID )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.protocol_id++;
    expect_refusal( &p, NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID );
}

/* Decision 7: a burst of 4 answers, then 10 a second. */
TEST( drop_REQUEST_TOO_SOON )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i;
    w->step = 0.0001;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 4; i++ )
        REQUIRE( puppet_challenged( &p ) );
    CHECK_EQ( p.challenges, 4 );
    puppet_ask( &p );
    expect_server_drop( w, 0, NETCODE_DROP_REQUEST_TOO_SOON );
    puppet_poll( &p );
    CHECK_EQ( p.challenges, 4 );
}

TEST( drop_TOKEN_EXPIRED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = world_unix( w );
    expect_refusal( &p, NETCODE_DROP_TOKEN_EXPIRED );
    p.r.expire = 0;
    expect_refusal( &p, NETCODE_DROP_TOKEN_EXPIRED );
    puppet_expires( &p, world_unix( w ) + 2 );
    REQUIRE( puppet_challenged( &p ) );
}

TEST( drop_TOKEN_MAYBE_USED )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint64_t start;
    w->server_config.max_connect_token_lifetime = 60;
    start = world_unix( w );
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = start + 59;
    expect_refusal( &p, NETCODE_DROP_TOKEN_MAYBE_USED );
    puppet_expires( &p, start + 61 );
    CHECK( puppet_challenged( &p ) );
}

TEST( drop_TOKEN_REFUSED_UP_TO )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint64_t expire;
    w->server_config.consumed_tokens = 8;
    world_add_server( w, 2 );
    expire = world_unix( w ) + 100;
    consume_tokens( w, 24, expire, 100 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = expire;
    expect_refusal( &p, NETCODE_DROP_TOKEN_REFUSED_UP_TO );
    puppet_expires( &p, expire + 100 );
    CHECK( puppet_connect( &p ) );
}

TEST( drop_TOKEN_CONSUMED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_poll( &p );
    expect_refusal( &p, NETCODE_DROP_TOKEN_CONSUMED );
    p.address.port++;
    expect_refusal( &p, NETCODE_DROP_TOKEN_CONSUMED );
    world_run( w, 200.0 );
    expect_refusal( &p, NETCODE_DROP_TOKEN_CONSUMED );
}

/* Never-expiring tokens have a half of their own; where bases are not random the oldest record may not be evicted. */
TEST( drop_TOKEN_NO_RECORD_FREE )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int i, refused = 0;
    w->server_config.consumed_tokens = 8;
    w->server_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 2 );
    for ( i = 0; i < 9 && !refused; i++ ) {
        puppet_make( &p, w, 0, 100 + (uint64_t) i, "10.3.0.1:7000" );
        p.address.port = (uint16_t) ( 7000 + i );
        puppet_expires( &p, FOREVER );
        if ( puppet_connect( &p ) ) {
            netcode_server_disconnect_client( w->servers[0], 0 );
            continue;
        }
        refused = 1;
        CHECK_GE( i, 4 );
        CHECK_GE( server_drops( w, 0, NETCODE_DROP_TOKEN_NO_RECORD_FREE ), 1 );
    }
    CHECK( refused );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    CHECK( puppet_connect( &p ) ); /* one that expires has its own half */
}

TEST( drop_TOKEN_NOT_AUTHENTIC )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.private_key[31] ^= 1;
    expect_refusal( &p, NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
    p.r.private_key[31] ^= 1;
    puppet_mint( &p );
    p.request[1 + 13 + 8] ^= 1; /* another expire timestamp over the same private part */
    puppet_ask( &p );
    expect_server_drop( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
}

TEST( drop_TOKEN_MALFORMED )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.private_count = 0;
    expect_refusal( &p, NETCODE_DROP_TOKEN_MALFORMED );
    for ( i = 0; i < 33; i++ )
        p.r.private_addresses[i] = w->server_addresses[0];
    p.r.private_count = 33;
    expect_refusal( &p, NETCODE_DROP_TOKEN_MALFORMED );
    p.r.private_count = 1;
    p.r.private_addresses[0].type = 3;
    expect_refusal( &p, NETCODE_DROP_TOKEN_MALFORMED );
    p.r.private_addresses[0].type = 0;
    expect_refusal( &p, NETCODE_DROP_TOKEN_MALFORMED );
}

TEST( drop_TOKEN_FOR_ANOTHER_SERVER )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.private_addresses[0].port++;
    expect_refusal( &p, NETCODE_DROP_TOKEN_FOR_ANOTHER_SERVER );
    p.r.private_addresses[0] = address_of( "10.0.0.99:40000" );
    expect_refusal( &p, NETCODE_DROP_TOKEN_FOR_ANOTHER_SERVER );
    p.r.private_addresses[1] = w->server_addresses[0];
    p.r.private_count = 2;
    puppet_mint( &p );
    CHECK( puppet_challenged( &p ) );
}

TEST( drop_TOKEN_OUTLIVED )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    int i;
    for ( i = 0; i < 4; i++ ) {
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.address.port = (uint16_t) ( p.address.port + i );
        puppet_expires( &p, p.r.expire + 100 );
        REQUIRE( puppet_challenged( &p ) );
    }
    puppet_make( &p, w, 0, 1, "10.2.0.9:6000" );
    expect_refusal( &p, NETCODE_DROP_TOKEN_OUTLIVED );
}

TEST( drop_ADDRESS_CONNECTED )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_make( &q, w, 0, 2, "10.2.0.1:6000" );
    expect_refusal( &q, NETCODE_DROP_ADDRESS_CONNECTED );
}

TEST( drop_CLIENT_ID_CONNECTED )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_begin( &q, w, 0, 1, "10.2.0.2:6000" ) );
    REQUIRE( puppet_connect( &p ) );
    puppet_respond( &q ); /* challenged before the other one connected */
    expect_server_drop( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED );
    puppet_make( &q, w, 0, 1, "10.2.0.3:6000" );
    expect_refusal( &q, NETCODE_DROP_CLIENT_ID_CONNECTED );
}

TEST( drop_SERVER_FULL )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p, q;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_begin( &q, w, 0, 2, "10.2.0.2:6000" ) );
    REQUIRE( puppet_connect( &p ) );
    puppet_respond( &q );
    expect_server_drop( w, 0, NETCODE_DROP_SERVER_FULL );
    puppet_poll( &q );
    CHECK_EQ( q.denials, 1 );
    puppet_make( &q, w, 0, 3, "10.2.0.3:6000" );
    puppet_ask( &q );
    expect_server_drop( w, 0, NETCODE_DROP_SERVER_FULL );
    puppet_poll( &q );
    CHECK_EQ( q.denials, 1 );
}

TEST( drop_CHALLENGE_NOT_ISSUED )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    p.challenge[7] ^= 0x40; /* a challenge sequence far outside what was issued to this handshake */
    puppet_respond( &p );
    expect_server_drop( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED );
    REQUIRE( puppet_begin( &q, w, 0, 2, "10.2.0.2:6000" ) );
    memcpy( q.challenge, p.challenge, 308 );
    q.challenge[7] ^= 0x40; /* issued before this handshake began */
    puppet_respond( &q );
    expect_server_drop( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED );
}

TEST( drop_CHALLENGE_NOT_AUTHENTIC )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    p.challenge[100] ^= 1;
    puppet_respond( &p );
    expect_server_drop( w, 0, NETCODE_DROP_CHALLENGE_NOT_AUTHENTIC );
    p.challenge[100] ^= 1;
    puppet_answer( &p );
    CHECK_GE( p.keep_alives, 1 );
}

/*  The later challenge of another handshake passes the test of the first sequence; what is bound inside it does not
    fit. */
TEST( drop_CHALLENGE_FOR_ANOTHER )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &p ) );
    REQUIRE( puppet_challenged( &q ) );
    memcpy( p.challenge, q.challenge, 308 );
    puppet_respond( &p );
    expect_server_drop( w, 0, NETCODE_DROP_CHALLENGE_FOR_ANOTHER );
    puppet_poll( &p );
    CHECK_EQ( p.keep_alives, 0 );
}

TEST( drop_REQUEST_NOT_OPENED )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    int64_t opened;
    int i;
    for ( i = 0; i < 300; i++ ) { /* sealed with another key, and none like the other */
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p.request[700] ^= 1;
        puppet_ask( &p );
    }
    world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), NC_SERVER_TOKENS / NC_COST_REQUEST + 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_REQUEST_NOT_OPENED ), 300 - NC_SERVER_TOKENS / NC_COST_REQUEST - 1 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_challenged( &p ) ); /* the next update opens tokens again */

    /* Copies of a handshake's request, with another bit in each: as many, and four more for its own repeated ones. */
    opened = server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
    for ( i = 0; i < 300; i++ ) {
        p.request[500 + i % 100] ^= (uint8_t) ( 1 << i / 100 );
        puppet_raw( &p, p.request, REQUEST_BYTES );
    }
    world_step( w );
    opened = server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ) - opened;
    CHECK_EQ( opened, NC_SERVER_TOKENS / NC_COST_REQUEST + 1 + 4 );
    puppet_answer( &p );
    CHECK( p.keep_alives > 0 );
}

TEST( drop_OVER_SHARE )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    int i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 1090; i++ )
        puppet_keep_alive( &p );
    world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_OVER_SHARE ), 1090 - NC_SERVER_SHARE - NC_SERVER_SPARE_MOST );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

/* What is spare and not used is kept, also by updates in which nothing arrives, up to NC_SERVER_SPARE_MOST. */
TEST( what_is_spare_is_kept )
{
    static const int quiet[] = { 0, 2, 30 };
    static const int spare[] = { NC_SERVER_SPARE, 3 * NC_SERVER_SPARE, NC_SERVER_SPARE_MOST };
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    int row, i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 1090; i++ )
        puppet_keep_alive( &p );
    world_step( w );
    for ( row = 0; row < 3; row++ ) {
        int64_t before = server_drops( w, 0, NETCODE_DROP_OVER_SHARE );
        for ( i = 0; i < quiet[row]; i++ )
            world_step( w );
        for ( i = 0; i < 1090; i++ )
            puppet_keep_alive( &p );
        world_step( w );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_OVER_SHARE ) - before, 1090 - NC_SERVER_SHARE - spare[row] );
    }
}

/* What is dropped is reported to the log alone. */
TEST( corners_drops_without_a_callback )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t data[30] = { 0x15 };
    int lines;
    w->server_config.drop_callback = NULL;
    world_make_server( w, 0 );
    netcode_server_start( w->servers[0], 2 );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    lines = test_log_lines;
    netcode_server_process_packet( w->servers[0], &w->server_addresses[0], data, 30 );
    CHECK_EQ( test_log_lines, lines + 1 );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    netcode_server_process_packet( w->servers[0], &w->server_addresses[0], data, 30 );
    CHECK_EQ( test_log_lines, lines + 1 );
    netcode_server_destroy( w->servers[0] );
    w->servers[0] = NULL;
}
