/*  Story: what the decisions promise and no other story asks for. Each test here is named by an edit in tests/attacks that takes the
    defence out. Where a promise can not be seen from outside, the test looks into the library. */

/* ---- 1: no key and nonce seals two messages ---- */

/* Of the sessions of one server, and of two servers that do the same. */
TEST( defence_1_the_base_has_47_random_bits )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 0 );
    uint64_t ones = 0, zeros = 0;
    int i, same = 0;
    for ( i = 0; i < 200; i++ ) {
        uint64_t base[2];
        int k;
        for ( k = 0; k < 2; k++ ) {
            netcode_server_connect_loopback_client( w->servers[k], 0, 7, NULL );
            base[k] = netcode_server_next_packet_sequence( w->servers[k], 0 );
            netcode_server_disconnect_loopback_client( w->servers[k], 0 );
        }
        CHECK( base[0] >= (uint64_t) 1 << 46 );
        CHECK( base[0] < (uint64_t) 3 << 46 );
        ones |= base[0] - ( (uint64_t) 1 << 46 );
        zeros |= ~( base[0] - ( (uint64_t) 1 << 46 ) );
        same += base[0] == base[1];
    }
    CHECK_EQ( same, 0 );
    CHECK( ones == ( (uint64_t) 1 << 47 ) - 1 ); /* each of the 47 bits was seen as 1, and as 0 */
    CHECK( ( zeros & ( ( (uint64_t) 1 << 47 ) - 1 ) ) == ( (uint64_t) 1 << 47 ) - 1 );
}

/* Nothing is sent any more rather than with a number that was used, or that belongs to others. */
TEST( defence_1_sequences_end_and_do_not_wrap )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int i, mark;
    REQUIRE( world_join( w, 0, 1 ) );
    w->servers[0]->memory.slots[0].sequence = ( (uint64_t) 1 << 63 ) - 2;
    mark = w->records.count;
    for ( i = 0; i < 5; i++ )
        server_send( w, 0, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 2 );
    w->clients[0]->sequence = UINT64_MAX - 2;
    for ( i = 0; i < 5; i++ )
        client_send( w, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ), 2 );
}

/* The batch that an answer finds full leaves first, and the network's own callback takes the private keys away: the handshake is gone. */
static int defence_1_rotate( struct world_t * w, const struct world_datagram_t * datagram )
{
    static const uint8_t other[NETCODE_KEY_BYTES] = { 1 };
    (void) datagram;
    netcode_server_set_private_keys( w->servers[0], other, 1 );
    return 0;
}

TEST( defence_1_nothing_is_sealed_for_a_handshake_that_the_flush_before_it_ended )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    int i;
    w->server_config.batch_sends = 1;
    world_add_server( w, 4 );
    for ( i = 0; i <= NC_SEND_BATCH; i++ ) {
        puppet_make( &p, w, 0, (uint64_t) i + 1, "10.2.0.1:6000" );
        p.address.port = (uint16_t) ( 6000 + i );
        puppet_ask( &p );
    }
    w->hook = defence_1_rotate;
    world_step( w );
    CHECK_EQ( world_count( w, 0, &w->server_addresses[0], NULL, NETCODE_PACKET_CHALLENGE, 0 ), NC_SEND_BATCH );
    CHECK_EQ( server_stats( w, 0 ).handshakes, NC_SEND_BATCH + 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
}

/* ---- 2: a challenge answers only for its token ---- */

/* A challenge as the server would seal it, but for one changed byte of what is sealed. Standard: Challenge Token */
static void forge_challenge( const struct netcode_server_t * server, uint8_t * challenge, int changed )
{
    uint8_t plain[284], nonce[12] = { 0 };
    memcpy( nonce + 4, challenge, 8 );
    REQUIRE_EQ( LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_decrypt )( plain, NULL, NULL, challenge + 8, 300, NULL,
                                                                          0, nonce, server->challenge_key ),
                0 );
    plain[changed] ^= 1;
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( challenge + 8, NULL, plain, 284, NULL, 0, NULL, nonce, server->challenge_key );
}

TEST( defence_2_every_part_of_a_challenge_is_compared )
{
    /* client id, the bound address, the bound token: the first and the last byte of each */
    static const int changes[] = { 0, 7, 264, 271, 272, 283 };
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t genuine[308];
    int i;
    puppet_make( &p, w, 0, 7, "10.2.0.1:6000" );
    REQUIRE( puppet_challenged( &p ) );
    memcpy( genuine, p.challenge, 308 );
    for ( i = 0; i < 6; i++ ) {
        memcpy( p.challenge, genuine, 308 );
        forge_challenge( w->servers[0], p.challenge, changes[i] );
        puppet_respond( &p );
        puppet_step( &p );
        if ( !CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_FOR_ANOTHER ), i + 1 ) )
            printf( "    byte %d\n", changes[i] );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    memcpy( p.challenge, genuine, 308 );
    puppet_respond( &p );
    puppet_step( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* ---- 3: every pending handshake ends ---- */

/*  One token from nine addresses, nine tokens from one address: four of each, also where the client ids leave more room. The oldest is evicted, but
    not for copies of its own request before it had half a second to answer. */
TEST( defence_3_each_limit_by_itself )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    nc_server_hashes_t hashes;
    nc_pending_t entry;
    uint32_t index;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 9; i++ ) { /* entries of one tag whose client ids differ: no honest backend makes them */
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.address.port = (uint16_t) ( 6000 + i );
        entry.client_id = (uint64_t) i;
        hashes.id = nc_server_id_hash( w->servers[0], entry.client_id );
        hashes.tag = nc_server_tag_hash( w->servers[0], entry.tag );
        hashes.address = nc_server_address_hash( w->servers[0], &entry.address );
        entry.create_time = nc_server_milliseconds( w->servers[0] );
        if ( i == 4 )
            CHECK_EQ( nc_server_insert_pending( w->servers[0], &entry, &hashes, &index ),
                      NETCODE_DROP_REQUEST_TOO_SOON );
        if ( i >= 4 )
            w->servers[0]->clock.now += 0.51;
        entry.create_time = nc_server_milliseconds( w->servers[0] );
        CHECK_EQ( nc_server_insert_pending( w->servers[0], &entry, &hashes, &index ), NETCODE_DROP_NONE );
        CHECK_EQ( server_stats( w, 0 ).pending, i < 4 ? i + 1 : 4 );
    }
    for ( i = 0; i < 9; i++ ) {
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.tag[0] = (uint8_t) ( 100 + i );
        entry.client_id = 1000 + (uint64_t) i;
        hashes.id = nc_server_id_hash( w->servers[0], entry.client_id );
        hashes.tag = nc_server_tag_hash( w->servers[0], entry.tag );
        hashes.address = nc_server_address_hash( w->servers[0], &entry.address );
        CHECK_EQ( nc_server_insert_pending( w->servers[0], &entry, &hashes, &index ), NETCODE_DROP_NONE );
        CHECK_EQ( server_stats( w, 0 ).pending, 4 + ( i < 4 ? i + 1 : 4 ) );
    }
}

/* ---- 4: consumed tokens are remembered ---- */

TEST( defence_4_used_tokens_survive_a_start_with_other_slots )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].r.expire = i ? FOREVER : p[i].r.expire;
        puppet_mint( &p[i] );
        REQUIRE( puppet_connect( &p[i] ) );
        netcode_server_disconnect_client( w->servers[0], 0 );
        p[i].challenges = p[i].keep_alives = 0;
    }
    netcode_server_stop( w->servers[0] );
    netcode_server_start( w->servers[0], 50 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 2 );
    CHECK( !puppet_connect( &p[0] ) );
    CHECK( !puppet_connect( &p[1] ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 2 );
}

/* A server that remembers 4 expiring tokens. */
static struct world_t * forgetful_world( void )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.consumed_tokens = 8;
    world_add_server( w, 2 );
    return w;
}

TEST( defence_4_the_mark_survives_a_start_with_other_slots )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    consume_tokens( w, 8, expire, 100 );
    netcode_server_stop( w->servers[0] );
    netcode_server_start( w->servers[0], 5 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = expire;
    puppet_mint( &p );
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 1 );
}

/* The mark passes a token while its handshake is under way. */
TEST( defence_4_the_mark_is_asked_at_the_response )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = expire;
    puppet_mint( &p );
    REQUIRE( puppet_challenged( &p ) );
    consume_tokens( w, 6, expire + 1, 100 );
    puppet_respond( &p );
    puppet_step( &p );
    CHECK_EQ( p.keep_alives, 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ), 1 );
}

/* The record is full of tokens that expire later: the newcomer is the earliest itself, and is remembered by the mark. */
TEST( defence_4_the_earliest_newcomer_moves_the_mark )
{
    struct world_t * w = forgetful_world();
    struct puppet_t p;
    uint64_t expire = world_unix( w ) + 1000;
    consume_tokens( w, 4, expire + 1, 100 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.expire = expire;
    puppet_mint( &p );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    puppet_poll( &p );
    p.challenges = p.keep_alives = 0;
    CHECK( !puppet_connect( &p ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* max( 8 x slots, 1024 ), half of it for tokens that never expire; or what the config says. */
TEST( defence_4_the_capacity_of_the_record )
{
    static const int rows[][3] = { { 0, 1, 1024 }, { 0, 128, 1024 }, { 0, 200, 1600 }, { 40, 200, 40 } };
    int i;
    for ( i = 0; i < 4; i++ ) {
        struct world_t * w = world_new( CLEAN );
        const nc_used_t * used;
        w->server_config.consumed_tokens = rows[i][0];
        world_add_server( w, rows[i][1] );
        used = &w->servers[0]->memory.used;
        CHECK_EQ( used->expiring_capacity + used->never_capacity, rows[i][2] );
        CHECK_EQ( used->never_capacity, rows[i][2] / 2 );
        world_close( w );
    }
}

/* ---- 5: old traffic stays old ---- */

TEST( defence_5_the_clients_window_is_fresh_for_each_server )
{
    static const uint64_t starts[] = { (uint64_t) 1 << 40,
                                       5 }; /* the second server's numbers lie below the first one's */
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r;
    uint8_t body[308] = { 0 };
    int i;
    w->cut_to = w->server_addresses[0];
    body[4] = 2;
    for ( i = 0; i < 2; i++ ) {
        r = world_connect( w, 0, 1 );
        world_step( w );
        send_to_client( w, &r, NETCODE_PACKET_CHALLENGE, (uint64_t) 1 << 63, body, 308 );
        world_step( w );
        send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, starts[i], body, 8 );
        world_step( w );
        REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, starts[i] + 1, body, 10 );
        world_step( w );
        CHECK_EQ( client_drain( w, 0 ), 1 );
        netcode_client_disconnect( w->clients[0] );
    }
}

/* ---- 6: bounded work ---- */

/* A datagram that has the look of a payload and no key. */
static int junk_payload( uint8_t * out, uint64_t sequence )
{
    uint8_t * at = out;
    memset( out, 0x5a, 60 );
    put( &at, 8 << 4 | NETCODE_PACKET_PAYLOAD, 1 );
    put( &at, sequence, 8 );
    return 60;
}

TEST( defence_6_a_client_spends_its_budget_and_returns )
{
    struct world_t * w = world_new( CLEAN );
    struct recipe_t r;
    uint8_t junk[60];
    uint64_t before, newest;
    int i;
    w->client_config.update_budget = 40; /* 10 decryptions */
    world_add_server( w, 2 );
    world_add_client( w );
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    world_run( w, 0.3 );
    newest = newest_to_client( w, &r );
    before = client_stats( w, 0 ).datagrams_received;
    for ( i = 0; i < 300; i++ )
        inject_to_client( w, junk, junk_payload( junk, newest + 10 + (uint64_t) i ) );
    world_step( w );
    CHECK_GE( client_stats( w, 0 ).datagrams_received - before, 10 );
    CHECK_LE( client_stats( w, 0 ).datagrams_received - before, 10 + 8 );
    world_run( w, 0.6 );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 300 );
}

TEST( defence_6_forged_packets_cost_a_decryption )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint8_t junk[60], body[308] = { 0 };
    uint64_t before;
    int i, kind;
    w->server_config.update_budget = 320; /* 80 decryptions, or 64 behind a first look */
    world_add_server( w, 2 );
    for ( kind = 0; kind < 2; kind++ ) { /* forged payloads at a slot's address, forged responses at a handshake's */
        puppet_make( &p, w, 0, 1 + (uint64_t) kind, kind ? "10.2.0.2:6000" : "10.2.0.1:6000" );
        REQUIRE( kind ? puppet_challenged( &p ) : puppet_connect( &p ) );
        before = server_stats( w, 0 ).datagrams_received;
        memset( p.r.to_server_key, 0, 32 );
        for ( i = 0; i < 400; i++ ) {
            if ( kind )
                puppet_send( &p, NETCODE_PACKET_RESPONSE, body, 308 );
            else
                puppet_raw( &p, junk, junk_payload( junk, p.sequence + 10 + (uint64_t) i ) );
        }
        world_step( w );
        CHECK_GE( server_stats( w, 0 ).datagrams_received - before, 320 / 5 );
        /* of a handshake's responses 64 are opened in an update, and the others cost a look */
        CHECK_LE( server_stats( w, 0 ).datagrams_received - before, kind ? 64 + 64 + 32 : 80 + 32 );
        world_run( w, 0.3 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 400 * ( kind + 1 ) );
    }
}

TEST( defence_6_the_default_budget_grows_with_the_slots )
{
    static const int rows[][2] = { { 1, 1100 }, { 64, 1100 }, { 65, 1116 }, { 256, 1100 + 16 * 192 } };
    int i;
    for ( i = 0; i < 4; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, rows[i][0], 0 );
        CHECK_EQ( nc_server_budget( w->servers[0] ), rows[i][1] );
        world_close( w );
    }
}

/* As decision_6_nobody_is_timed_out_behind_a_backlog, for a handshake whose patience is 2 s. */
TEST( defence_6_a_handshake_is_not_timed_out_behind_a_backlog )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, flood;
    double start;
    int i, number = 0;
    w->step = 0.1;
    w->server_config.update_budget = 320;
    world_add_server( w, 2 );
    puppet_make( &flood, w, 0, 2, "10.2.0.9:6000" );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.r.timeout = 2;
    puppet_mint( &p );
    REQUIRE( puppet_challenged( &p ) );
    for ( start = w->time; w->time < start + 5.0; world_step( w ) ) {
        for ( i = 0; i < 60; i++ )
            junk_request( &flood, number++ );
        if ( w->time < start + 3.5 )
            CHECK_EQ( server_stats( w, 0 ).pending, 1 );
    }
    CHECK_GE( server_stats( w, 0 ).backlogs, 45 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 ); /* but at most one further timeout */
}

/* What a flood keeps the client from reading may be its server's answer: it waits, for at most one further timeout. */
TEST( defence_6_a_client_waits_for_what_it_has_not_read )
{
    struct world_t * w = world_new( CLEAN );
    struct recipe_t r;
    uint8_t junk[60];
    uint64_t number;
    double start;
    int i;
    w->step = 0.1;
    w->client_config.update_budget = 8;
    world_add_server( w, 2 );
    world_add_client( w );
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
    number = newest_to_client( w, &r ) + 1000;
    for ( start = w->time; w->time < start + 12.0; world_step( w ) ) {
        for ( i = 0; i < 3; i++ )
            inject_to_client( w, junk, junk_payload( junk, number++ ) );
        if ( w->time < start + 9.0 )
            CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
}

/* An error is reported every `interval` seconds, `count` times, about an address: where is the client 3 s after the first? */
static int server_after_errors( struct world_t * w, const struct netcode_address_t * about, double interval, int count )
{
    double start = w->time, next = w->time;
    for ( ; w->time < start + 3.0; world_step( w ) ) {
        if ( count == 0 || w->time < next )
            continue;
        world_inject_error( w, about, &w->client_addresses[0], 111 );
        next += interval;
        count--;
    }
    return w->clients[0]->server_index;
}

TEST( defence_6_two_errors_do_not_move_the_client )
{
    int count;
    for ( count = 2; count < 4; count++ ) {
        struct world_t * w = world_open( CLEAN, 2, 2, 1 );
        w->cut_from = w->client_addresses[0];
        world_connect( w, 0, 1 );
        world_step( w );
        CHECK_EQ( server_after_errors( w, &w->server_addresses[0], 1.2, count ), count == 3 );
        world_close( w );
    }
}

TEST( defence_6_errors_do_not_move_a_challenged_client )
{
    struct world_t * w = world_open( CLEAN, 2, 2, 1 );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    CHECK_EQ( server_after_errors( w, &w->server_addresses[0], 0.2, 100 ), 0 );
}

TEST( defence_6_errors_about_another_address_do_not_move_the_client )
{
    struct world_t * w = world_open( CLEAN, 2, 2, 1 );
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 1 );
    world_step( w );
    CHECK_EQ( server_after_errors( w, &w->server_addresses[1], 0.2, 100 ), 0 );
}

#if !defined( _WIN32 )

/* What a receive call fails with says something about one datagram, or nothing; only a bad handle is the end. */
TEST( defence_6_errors_of_the_system_are_about_one_datagram )
{
    CHECK_EQ( nc_socket_judge( EINTR ), NC_SOCKET_TRY_AGAIN );
    CHECK_EQ( nc_socket_judge( EAGAIN ), NC_SOCKET_TRY_LATER );
    CHECK_EQ( nc_socket_judge( ECONNREFUSED ), NC_SOCKET_PASSING );
    CHECK_EQ( nc_socket_judge( EHOSTUNREACH ), NC_SOCKET_PASSING );
    CHECK_EQ( nc_socket_judge( ENETUNREACH ), NC_SOCKET_PASSING );
    CHECK_EQ( nc_socket_judge( EBADF ), NC_SOCKET_BROKEN );
}

/* 200 datagrams wait at the IPv4 socket, a client asks at the IPv6 one, and an update may handle 16: the client does not wait for the end. */
TEST( defence_6_both_sockets_are_served_in_turn )
{
    struct real_t r;
    struct sockaddr_in to;
    struct netcode_server_stats_t stats;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], junk[60];
    int raw, i;
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    memset( &r, 0, sizeof( r ) );
    real_server( &r, "127.0.0.1:0", "[::1]:0" );
    raw = real_raw( r.address[0], &to );
    real_client( &r, "[::1]:0", NULL );
    netcode_address_to_string( &r.server->addresses[1], r.address[1] );
    real_token( r.address[1], 1, token );
    r.server->config.update_budget = 16;
    junk_payload( junk, 1 );
    for ( i = 0; i < 200; i++ )
        (void) sendto( raw, junk, sizeof( junk ), 0, (struct sockaddr *) &to, sizeof( to ) );
    netcode_client_connect( r.client, token );
    for ( i = 0; i < 60 && netcode_server_num_connected_clients( r.server ) == 0; i++ ) {
        netcode_client_update( r.client, netcode_time() );
        netcode_server_update( r.server, netcode_time() );
        netcode_sleep( 0.002 );
    }
    netcode_server_stats( r.server, &stats );
    CHECK_EQ( netcode_server_num_connected_clients( r.server ), 1 );
    CHECK_LT( stats.dropped[NETCODE_DROP_UNKNOWN_ADDRESS], 100 ); /* the others still wait */
    close( raw );
    real_close( &r );
}

#endif

/* ---- 7: cheap refusal ---- */

static void expect_no_decryption( struct puppet_t * p, int reason )
{
    int64_t opens = ledger.opens + ledger.token_opens;
    puppet_ask( p );
    expect_server_drop( p->w, p->server, reason );
    CHECK_EQ( ledger.opens + ledger.token_opens, opens );
}

TEST( defence_7_refused_tokens_are_not_decrypted )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint64_t now = world_unix( w );
    int i;
    if ( !LEDGER_WORKS )
        SKIP( "no --wrap" );
    w->server_config.consumed_tokens = 8;
    w->server_config.max_connect_token_lifetime = 60;
    w->step = 0.001;
    world_add_server( w, 2 );
    consume_tokens( w, 8, now + 100, 100 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 4; i++ ) {
        static const int lives[] = { 0, 50, 100, 200 }; /* from now: expired, maybe used, up to the mark, good */
        static const int reasons[] = { NETCODE_DROP_TOKEN_EXPIRED, NETCODE_DROP_TOKEN_MAYBE_USED,
                                       NETCODE_DROP_TOKEN_REFUSED_UP_TO };
        p.r.expire = now + (uint64_t) lives[i];
        puppet_mint( &p );
        if ( i < 3 )
            expect_no_decryption( &p, reasons[i] );
    }
    for ( i = 0; i < 4; i++ )
        REQUIRE( puppet_challenged( &p ) );
    expect_no_decryption( &p, NETCODE_DROP_REQUEST_TOO_SOON );
    puppet_respond( &p );
    puppet_step( &p );
    REQUIRE( p.keep_alives > 0 );
    expect_no_decryption( &p, NETCODE_DROP_TOKEN_CONSUMED );
}

/* Who saw a request can copy it with other bytes in it; it is refused, and uses up nothing of what the owner is granted. */
TEST( defence_7_forged_copies_are_not_charged )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t forged[REQUEST_BYTES];
    int i, j;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memcpy( forged, p.request, REQUEST_BYTES );
    forged[500] ^= 1;
    for ( i = 0; i < 30; i++ ) {
        puppet_ask( &p );
        puppet_step( &p );
        for ( j = 0; j < 9; j++ ) {
            puppet_raw( &p, forged, REQUEST_BYTES );
            puppet_step( &p );
        }
    }
    CHECK_EQ( p.challenges, 30 );
}

TEST( defence_7_tables_are_keyed_with_a_secret_of_each_server )
{
    static const uint8_t zeros[crypto_shorthash_KEYBYTES];
    struct world_t * w = world_open( CLEAN, 2, 4, 0 );
    struct netcode_server_t * a = w->servers[0];
    struct netcode_server_t * b = w->servers[1];
    struct netcode_address_t address = address_of( "10.2.0.1:6000" );
    CHECK( memcmp( a->hash_key, zeros, sizeof( zeros ) ) != 0 );
    CHECK( memcmp( a->hash_key, b->hash_key, sizeof( zeros ) ) != 0 );
    CHECK( a->address_factor != b->address_factor && a->address_factor % 2 == 1 && b->address_factor % 2 == 1 );
    CHECK( nc_address_hash( &address, a->hash_key ) != nc_address_hash( &address, b->hash_key ) );
    CHECK( nc_server_id_hash( a, 7 ) != nc_server_id_hash( b, 7 ) );
    CHECK( nc_server_tag_hash( a, world_key ) != nc_server_tag_hash( b, world_key ) );
}

/* The longest chain of a table, walked as a look-up walks it. */
static int longest_chain( const nc_table_t * table )
{
    uint32_t head;
    int longest = 0;
    for ( head = 0; head <= table->mask; head++ ) {
        uint32_t index = table->heads[head];
        int length = 0;
        for ( ; index != UINT32_MAX; index = table->entries[index].next )
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

TEST( defence_7_chains_are_short )
{
    struct world_t * w = world_open( CLEAN, 1, 256, 0 );
    const nc_server_memory_t * memory = &w->servers[0]->memory;
    struct puppet_t p;
    int i;
    w->recording = 0;
    for ( i = 0; i < 1200; i++ ) { /* neighbours in address, port and id: what a careless hash puts into one place */
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.3.0.0:4096" );
        p.address.data.ipv4[3] = (uint8_t) ( i / 16 );
        p.address.port = (uint16_t) ( 4096 + i % 16 * 256 );
        puppet_ask( &p );
        if ( i % 50 == 49 )
            world_step( w );
    }
    world_run( w, 0.5 );
    CHECK_GE( server_stats( w, 0 ).pending, 1000 );
    CHECK_LE( longest_chain( &memory->pending_by_address ), 20 ); /* 4 on average */
    CHECK_LE( longest_chain( &memory->pending_by_id ), 20 );      /* 4 on average */
    CHECK_LE( longest_chain( &memory->pending_by_tag ), 20 );     /* 4 on average */
}

/* ---- 8: every reply is smaller than its request ---- */

/* Good responses to a full server, 100 a second: denials follow the same allowance as every other answer. */
TEST( defence_8_denials_to_responses_are_limited )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p, q;
    int i;
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &q ) );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    for ( i = 0; i < 300; i++ ) {
        puppet_respond( &q );
        puppet_step( &q );
    }
    CHECK_GE( q.denials, 1 );
    CHECK_LE( q.denials, 4 + 30 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SERVER_FULL ), 300 );
}

/* ---- 9: secrets are wiped ---- */

/* How often this stands in the blocks that were given out. */
static int remains( struct world_t * w, const void * secret, size_t bytes )
{
    return allocator_search( &w->allocator, secret, bytes );
}

static struct world_t * searched_world( int clients )
{
    struct world_t * w = world_new( CLEAN );
    w->allocator.keep = 1;
    world_add_server( w, 2 );
    while ( clients-- > 0 )
        world_add_client( w );
    return w;
}

TEST( defence_9_user_data_are_wiped )
{
    struct world_t * w = searched_world( 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    CHECK_GE( remains( w, p.r.user_data, NETCODE_USER_DATA_BYTES ), 1 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK_EQ( remains( w, p.r.user_data, NETCODE_USER_DATA_BYTES ), 0 );
}

TEST( defence_9_a_clients_keys_end_with_its_session )
{
    struct world_t * w = searched_world( 1 );
    struct recipe_t r;
    int round;
    for ( round = 0; round < 2; round++ ) {
        r = world_connect( w, 0, 1 + (uint64_t) round );
        world_step( w );
        CHECK_GE( remains( w, r.to_server_key, 32 ), 1 );
        if ( round == 1 )
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        world_destroy_server( w, 0 ); /* so that the client's copies are the only ones */
        netcode_client_disconnect( w->clients[0] );
        CHECK_EQ( remains( w, r.to_server_key, 32 ), 0 );
        CHECK_EQ( remains( w, r.to_client_key, 32 ), 0 );
        world_make_server( w, 0 );
        netcode_server_start( w->servers[0], 2 );
    }
}

TEST( defence_9_replaced_private_keys_are_wiped )
{
    struct world_t * w = searched_world( 0 );
    uint8_t keys[2][NETCODE_KEY_BYTES];
    memset( keys[0], 0x11, sizeof( keys[0] ) );
    memset( keys[1], 0x22, sizeof( keys[1] ) );
    CHECK_EQ( remains( w, world_key, 32 ), 1 );
    REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[0], 2 ), NETCODE_OK );
    CHECK_EQ( remains( w, world_key, 32 ), 0 );
    REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[0], 1 ), NETCODE_OK );
    CHECK_EQ( remains( w, keys[1], 32 ), 0 );
}

TEST( defence_9_the_challenge_key_ends_with_the_start )
{
    struct world_t * w = searched_world( 0 );
    uint8_t key[NETCODE_KEY_BYTES];
    memcpy( key, w->servers[0]->challenge_key, sizeof( key ) );
    CHECK_EQ( remains( w, key, 32 ), 1 );
    netcode_server_stop( w->servers[0] );
    CHECK_EQ( remains( w, key, 32 ), 0 );
}

static size_t bytes_left( const void * block, size_t bytes )
{
    size_t i, left = 0;
    for ( i = 0; i < bytes; i++ )
        left += ( (const uint8_t *) block )[i] != 0;
    return left;
}

/* What was a client, a server or the memory of a start, is given back to the allocator as zeros. */
TEST( defence_9_what_is_given_back_is_empty )
{
    struct world_t * w = searched_world( 1 );
    const void * client = w->clients[0];
    const void * server = w->servers[0];
    const void * memory = w->servers[0]->memory.block;
    size_t memory_bytes = w->servers[0]->memory.bytes;
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    CHECK_NE( bytes_left( memory, memory_bytes ), 0 );
    netcode_server_start( w->servers[0], 3 );
    CHECK_EQ( bytes_left( memory, memory_bytes ), 0 );
    memory = w->servers[0]->memory.block;
    memory_bytes = w->servers[0]->memory.bytes;
    world_destroy_server( w, 0 );
    CHECK_EQ( bytes_left( memory, memory_bytes ), 0 );
    CHECK_EQ( bytes_left( server, sizeof( struct netcode_server_t ) ), 0 );
    world_destroy_client( w, 0 );
    CHECK_EQ( bytes_left( client, sizeof( struct netcode_client_t ) ), 0 );
}

/* A server that can not be made has had the private key in its hands. */
TEST( defence_9_a_server_that_fails_leaves_no_key )
{
    static const char * const nonsense[] = { "10.0.0.9:70000" };
    struct world_t * w = searched_world( 0 );
    struct netcode_server_config_t config = w->server_config;
    CHECK_EQ( remains( w, world_key, 32 ), 1 );
    config.callback_context = &w->server_parties[0];
    config.public_addresses = nonsense;
    config.num_public_addresses = 1;
    CHECK( netcode_server_create( "10.0.0.9:40000", &config, w->time ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    CHECK_EQ( remains( w, world_key, 32 ), 1 );
}

/*  The stack below the caller, where the functions that it called have left what they did not wipe. Reading it is outside of what C
    promises; where a compiler or a sanitizer keeps variables elsewhere, nothing is found and the tests below can not fail. */
enum { STACK_BYTES = 48 * 1024 };

static const volatile uint8_t * volatile stack_bottom; /* read back, so that no compiler sees what it leads to */

__attribute__( ( noinline ) ) static int stack_visit( const uint8_t * needle, int bytes )
{
    volatile uint8_t area[STACK_BYTES];
    const volatile uint8_t * p;
    int at, i, found = 0;
    stack_bottom = area;
    p = stack_bottom;
    stack_bottom = NULL; /* it must not lead to what is gone */
    if ( !needle ) {     /* clears it */
        for ( at = 0; at < STACK_BYTES; at++ )
            area[at] = 0;
        return 0;
    }
    for ( at = 0; at + bytes <= STACK_BYTES; at++ ) {
        for ( i = 0; i < bytes && p[at + i] == needle[i]; i++ )
            continue;
        found += i == bytes;
    }
    return found;
}

static int on_the_stack( const struct recipe_t * r )
{
    return stack_visit( r->to_server_key, 32 ) + stack_visit( r->to_client_key, 32 ) + stack_visit( r->user_data, 64 );
}

/*  How many copies of the key of its last call libsodium itself leaves on the stack. Debian's build for i386 leaves one: so many are not
    this library's, and the test says so. */
static int left_by_sodium( void )
{
    static const uint8_t nonce[12] = { 1 };
    static uint8_t key[32], sealed[316];
    int i, found;
    for ( i = 0; i < 32; i++ )
        key[i] = (uint8_t) test_random();
    for ( i = 0; i < 2; i++ ) {
        (void) stack_visit( NULL, 0 );
        LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
        ( sealed, NULL, sealed, 300, NULL, 0, NULL, nonce, key );
    }
    found = stack_visit( key, 32 );
    if ( found )
        printf( "    note: %s: this libsodium leaves its last key on the stack (%d), only more is a fault\n",
                test_state.current->name, found );
    return found;
}

/*  Each test does its work twice and looks after the second time: the first call of a function of a shared library goes through the
    system's linker, which saves whatever stands in the registers. */
TEST( defence_9_a_request_leaves_nothing_on_the_stack )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    int i, found;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        (void) stack_visit( NULL, 0 );
        netcode_server_process_packet( w->servers[0], &p.address, p.request, REQUEST_BYTES );
    }
    found = on_the_stack( &p.r );
    CHECK( found == 0 || found <= left_by_sodium() );
    CHECK_EQ( server_stats( w, 0 ).pending, 2 );
}

/* The same for the first step alone, before later ones cover up what it left. */
TEST( defence_9_an_opened_token_leaves_nothing_on_the_stack )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    nc_server_request_t it;
    nc_arrival_t arrival;
    int i;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        memset( &it, 0, sizeof( it ) );
        memset( &arrival, 0, sizeof( arrival ) );
        REQUIRE_EQ( nc_packet_parse_request( &it.request, p.request, REQUEST_BYTES, WORLD_PROTOCOL ),
                    NETCODE_DROP_NONE );
        (void) stack_visit( NULL, 0 );
        CHECK_EQ( nc_server_open_token( w->servers[0], &it, &arrival ), NETCODE_DROP_NONE );
    }
    CHECK_EQ( on_the_stack( &p.r ), 0 );
    CHECK_MEM( it.token.user_data, p.r.user_data, NETCODE_USER_DATA_BYTES );
}

TEST( defence_9_a_response_leaves_nothing_on_the_stack )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t response[400];
    int i, bytes, found;
    for ( i = 0; i < 2; i++ ) {
        puppet_make( &p, w, 0, 1 + (uint64_t) i, i ? "10.2.0.2:6000" : "10.2.0.1:6000" );
        REQUIRE( puppet_challenged( &p ) );
        bytes = wire_seal( response, NETCODE_PACKET_RESPONSE, p.sequence++, 0, p.r.to_server_key, p.challenge, 308 );
        (void) stack_visit( NULL, 0 );
        netcode_server_process_packet( w->servers[0], &p.address, response, bytes );
    }
    found = on_the_stack( &p.r );
    CHECK( found == 0 || found <= left_by_sodium() );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

TEST( defence_9_a_generated_token_leaves_nothing_on_the_stack )
{
    static uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
    const char * names[1] = { "10.0.0.1:40000" };
    int i;
    for ( i = 0; i < 2; i++ ) {
        payload_fill( user_data, NETCODE_USER_DATA_BYTES, 3 + i );
        (void) stack_visit( NULL, 0 );
        REQUIRE_EQ( netcode_generate_connect_token( 1, names, names, 30, 5, 1, WORLD_PROTOCOL, world_key, user_data,
                                                    token ),
                    NETCODE_OK );
    }
    CHECK_EQ( stack_visit( token + 1093 + 7, 32 ), 0 );
    CHECK_EQ( stack_visit( token + 1093 + 7 + 32, 32 ), 0 );
    CHECK_EQ( stack_visit( user_data, 64 ), 0 );
}

#if !defined( _WIN32 )

/* Stands in for libsodium's, where the linker takes a weak definition of the program over one of a library. */
static int64_t comparisons;

__attribute__( ( weak ) ) int sodium_memcmp( const void * const a, const void * const b, size_t bytes )
{
    const volatile uint8_t * p = (const volatile uint8_t *) a;
    const volatile uint8_t * q = (const volatile uint8_t *) b;
    unsigned different = 0;
    size_t i;
    comparisons++;
    for ( i = 0; i < bytes; i++ )
        different |= (unsigned) ( p[i] ^ q[i] );
    return different ? -1 : 0;
}

TEST( defence_9_secrets_are_compared_in_constant_time )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int64_t before = comparisons;
    uint8_t keys[2][NETCODE_KEY_BYTES];
    if ( sodium_memcmp( world_key, world_key, 1 ) != 0 || comparisons == before )
        SKIP( "sodium_memcmp can not be watched here" );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_challenged( &p ) );
    before = comparisons;
    memcpy( keys[0], world_key, NETCODE_KEY_BYTES );
    memset( keys[1], 0x22, NETCODE_KEY_BYTES );
    REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[0], 2 ), NETCODE_OK );
    CHECK_GE( comparisons - before, 1 ); /* private keys, to see which handshakes stay */
    before = comparisons;
    puppet_respond( &p );
    puppet_step( &p );
    CHECK( p.keep_alives > 0 );
    CHECK_GE( comparisons - before, 1 ); /* what is bound inside a challenge */
}

#endif

/* ---- 10: a crashed player comes back at once ---- */

TEST( defence_10_the_same_slot_is_taken_over )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q, other;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 4 );
    puppet_make( &other, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &other ) );
    puppet_make( &p, w, 0, 7, "10.2.0.2:6000" );
    REQUIRE( puppet_connect( &p ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK_EQ( world_slot( w, 0, 7 ), 1 );
    puppet_make( &q, w, 0, 7, "10.2.0.3:6000" );
    REQUIRE( puppet_connect( &q ) );
    CHECK_EQ( world_slot( w, 0, 7 ), 1 );
    CHECK_EQ( q.client_index, 1 );
}

/* ---- 13: a client object takes a token once ---- */

TEST( defence_13_the_report_names_the_reason )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_client_report_t report;
    uint8_t damaged[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    netcode_client_connect( w->clients[0], w->tokens[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    netcode_client_report( w->clients[0], &report );
    CHECK( strstr( report.text, "before" ) != NULL );
    netcode_client_connect( w->clients[0], damaged );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    netcode_client_report( w->clients[0], &report );
    CHECK( strstr( report.text, "before" ) == NULL );
}
