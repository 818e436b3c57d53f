/*  Story: what the decisions promise and no other story asks for. Each test here is named by an edit in tests/attacks that takes the
    defence out. Where a promise can not be seen from outside, the test looks into the library. */

/* ---- 1: no key and nonce seals two messages ---- */

TEST( defence_1_the_base_has_47_random_bits )
{
    uint64_t ones = 0, zeros = 0;
    int i;
    for ( i = 0; i < 200; i++ ) {
        uint64_t base = nc_crypto_sequence_base( NETCODE_SEQUENCE_BASE_RANDOM );
        CHECK( base >= (uint64_t) 1 << 46 );
        CHECK( base < (uint64_t) 3 << 46 );
        ones |= base - ( (uint64_t) 1 << 46 );
        zeros |= ~( base - ( (uint64_t) 1 << 46 ) );
    }
    CHECK( ones == ( (uint64_t) 1 << 47 ) - 1 ); /* each of the 47 bits was seen as 1, and as 0 */
    CHECK( ( zeros & ( ( (uint64_t) 1 << 47 ) - 1 ) ) == ( (uint64_t) 1 << 47 ) - 1 );
}

/* Nothing is sent any more rather than with a number that was used, or that belongs to others. */
TEST( defence_1_sequences_end_and_do_not_wrap )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct puppet_t p;
    int i, mark;
    REQUIRE( world_join( w, 0, 1 ) );
    w->servers[0]->hall.slots[0].sequence = ( (uint64_t) 1 << 63 ) - 2;
    mark = w->records.count;
    for ( i = 0; i < 5; i++ )
        server_send( w, 0, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 2 );
    w->clients[0]->sequence = UINT64_MAX - 2;
    for ( i = 0; i < 5; i++ )
        client_send( w, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ), 2 );
    w->servers[0]->global_sequence = UINT64_MAX - 1;
    for ( i = 0; i < 3; i++ ) {
        puppet_make( &p, w, 0, 10 + (uint64_t) i, "10.2.0.1:6000" );
        CHECK_EQ( puppet_challenged( &p ), i == 0 );
    }
}

/* ---- 2: a challenge answers only for its token ---- */

/* A challenge as the server would seal it, but for one changed byte of what is sealed. Standard: Challenge Token */
static void forge_challenge( const struct netcode_server_t * server, uint8_t * challenge, int changed )
{
    uint8_t plain[284], nonce[12] = { 0 };
    memcpy( nonce + 4, challenge, 8 );
    REQUIRE_EQ( LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_decrypt )( plain, NULL, NULL, challenge + 8, 300, NULL, 0,
                                                                          nonce, server->challenge_key ),
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

/* One token from five addresses, five tokens from one address: four of each, also where the client ids leave more room. */
TEST( defence_3_each_limit_by_itself )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 0 );
    struct puppet_t p;
    nc_pending_t entry;
    uint32_t index;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 9; i++ ) { /* entries of one tag whose client ids differ: no honest backend makes them */
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.address.port = (uint16_t) ( 6000 + i );
        entry.client_id = (uint64_t) i;
        CHECK_EQ( nc_server_insert_pending( w->servers[0], &entry, &index ), NETCODE_DROP_NONE );
        CHECK_EQ( server_stats( w, 0 ).pending, i < 4 ? i + 1 : 4 );
    }
    for ( i = 0; i < 9; i++ ) {
        memset( &entry, 0, sizeof( entry ) );
        entry.address = p.address;
        entry.tag[0] = (uint8_t) ( 100 + i );
        entry.client_id = 1000 + (uint64_t) i;
        CHECK_EQ( nc_server_insert_pending( w->servers[0], &entry, &index ), NETCODE_DROP_NONE );
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
        used = &w->servers[0]->hall.used;
        CHECK_EQ( used->expiring_capacity + used->never_capacity, rows[i][2] );
        CHECK_EQ( used->never_capacity, rows[i][2] / 2 );
        world_close( w );
    }
}

/* ---- 5: old traffic stays old ---- */

TEST( defence_5_the_clients_window_is_fresh_for_each_server )
{
    static const uint64_t starts[] = { (uint64_t) 1 << 40, 5 }; /* the second server's numbers lie below the first one's */
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
    w->server_config.update_budget = 320; /* 80 decryptions */
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
        CHECK_GE( server_stats( w, 0 ).datagrams_received - before, 80 );
        CHECK_LE( server_stats( w, 0 ).datagrams_received - before, 80 + 32 );
        world_run( w, 0.3 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 400 * ( kind + 1 ) );
    }
}

TEST( defence_6_the_default_budget_grows_with_the_slots )
{
    static const int rows[][2] = { { 1, 2048 }, { 64, 2048 }, { 65, 2144 }, { 256, 2048 + 96 * 192 } };
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

/* 300 datagrams wait at the IPv4 socket, a client asks at the IPv6 one, and an update may handle 16: the client does not wait for the end. */
TEST( defence_6_both_sockets_are_served_in_turn )
{
    struct real_t r;
    struct sockaddr_in to;
    struct netcode_server_stats_t stats;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], junk[60];
    struct netcode_address_t a;
    int raw, i;
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    memset( &r, 0, sizeof( r ) );
    real_server( &r, "127.0.0.1:0", "[::1]:0" );
    raw = real_raw( r.address[0], &to );
    real_client( &r, "[::1]:0", NULL );
    a = *netcode_server_client_address( r.server, 0 ) ? a : r.server->addresses[1];
    netcode_address_to_string( &a, r.address[1] );
    real_token( r.address[1], 1, token );
    r.server->config.update_budget = 16;
    junk_payload( junk, 1 );
    for ( i = 0; i < 300; i++ )
        (void) sendto( raw, junk, sizeof( junk ), 0, (struct sockaddr *) &to, sizeof( to ) );
    netcode_client_connect( r.client, token );
    for ( i = 0; i < 60 && netcode_server_num_connected_clients( r.server ) == 0; i++ ) {
        netcode_client_update( r.client, netcode_time() );
        netcode_server_update( r.server, netcode_time() );
        netcode_sleep( 0.002 );
    }
    netcode_server_stats( r.server, &stats );
    CHECK_EQ( netcode_server_num_connected_clients( r.server ), 1 );
    CHECK_LT( stats.dropped[NETCODE_DROP_UNKNOWN_ADDRESS], 250 ); /* the others still wait */
    close( raw );
    real_close( &r );
}

#endif
