/*  Story: no key and nonce seals two messages (decision 1, rows 18 to 22 of the table of attacks). The ledger fails a test in which that
    happens. */

/* The sequence of a recorded packet, read from its head. */
static uint64_t sequence_of( const struct world_datagram_t * d )
{
    return get( d->data + 1, d->data[0] >> 4 );
}

TEST( decision_1_the_clients_sequence_never_goes_back )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 3 );
    uint64_t last = 0;
    int i, round;
    REQUIRE( world_join( w, 1, 900 ) ); /* server 0 is full: client 0 is denied, and moves on */
    for ( round = 0; round < 4; round++ ) {
        int mark = w->records.count;
        world_connect( w, 0, (uint64_t) round + 1 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
        client_send( w, 0, 20, round );
        world_run( w, 0.5 );
        netcode_client_disconnect( w->clients[0] );
        world_run( w, 0.2 );
        CHECK( netcode_client_next_packet_sequence( w->clients[0] ) > last );
        last = netcode_client_next_packet_sequence( w->clients[0] );
        if ( round == 0 )
            continue; /* where it begins is free */
        for ( i = mark; i < w->records.count; i++ ) {
            const struct world_datagram_t * d = &w->records.items[i];
            if ( netcode_address_equal( &d->from, &w->client_addresses[0] ) &&
                 ( d->data[0] & 15 ) != NETCODE_PACKET_REQUEST )
                CHECK( sequence_of( d ) < last );
        }
    }
    /* Within one token, over a denial and the next server: strictly up. */
    {
        int mark = w->records.count;
        uint64_t before = 0;
        world_connect( w, 0, 50 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
        world_run( w, 0.5 );
        for ( i = mark; i < w->records.count; i++ ) {
            const struct world_datagram_t * d = &w->records.items[i];
            if ( !netcode_address_equal( &d->from, &w->client_addresses[0] ) ||
                 ( d->data[0] & 15 ) == NETCODE_PACKET_REQUEST )
                continue;
            CHECK( sequence_of( d ) > before );
            before = sequence_of( d );
        }
    }
}

/* Each answer before there is a slot: challenges, then denials, and over a start. */
TEST( decision_1_the_servers_global_sequence_is_random_in_the_upper_half )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    uint64_t seen[40], ones = 0, zeros = 0;
    int i, j;
    for ( i = 0; i < 40; i++ ) {
        struct puppet_t p;
        if ( i == 10 )
            netcode_server_stop( w->servers[0] );
        if ( i == 10 )
            netcode_server_start( w->servers[0], 1 );
        if ( i == 20 )
            REQUIRE( world_join( w, 0, 1000 ) );
        puppet_make( &p, w, 0, (uint64_t) i + 1, "10.2.0.1:6000" );
        puppet_ask( &p );
        puppet_step( &p );
        REQUIRE_EQ( i < 20 ? p.challenges : p.denials, 1 );
        seen[i] = p.newest_sequence;
        CHECK( seen[i] >= (uint64_t) 1 << 63 );
        ones |= seen[i];
        zeros |= ~seen[i];
        for ( j = 0; j < i; j++ )
            CHECK( ( seen[i] > seen[j] ? seen[i] - seen[j] : seen[j] - seen[i] ) > (uint64_t) 1 << 40 );
    }
    CHECK( ones == UINT64_MAX );
    CHECK( zeros == UINT64_MAX >> 1 ); /* each of the 63 bits was seen as 1, and as 0 */
}

/* 47 random bits and six bytes on the wire, on both sides; a new start for each connection. */
TEST( decision_1_sequences_start_at_a_random_base )
{
    struct world_t * w = world_open( CLEAN, 1, 16, 16 );
    uint64_t all_client = 0, all_server = 0;
    int i, high = 0;
    for ( i = 0; i < 16; i++ ) {
        uint64_t c, s;
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
        c = netcode_client_next_packet_sequence( w->clients[i] );
        s = netcode_server_next_packet_sequence( w->servers[0], world_slot( w, 0, (uint64_t) i + 1 ) );
        CHECK( c < (uint64_t) 1 << 48 );
        CHECK( s < (uint64_t) 1 << 48 );
        high += c >= (uint64_t) 1 << 40;
        high += s >= (uint64_t) 1 << 40;
        all_client |= c;
        all_server |= s;
        CHECK_EQ( world_last( w, &w->client_addresses[i], NULL, NETCODE_PACKET_KEEP_ALIVE )->data[0] >> 4, 6 );
        CHECK_EQ( world_last( w, NULL, &w->client_addresses[i], NETCODE_PACKET_KEEP_ALIVE )->data[0] >> 4, 6 );
    }
    CHECK_GE( high, 28 );
    CHECK( all_client >> 40 != 0 && all_server >> 40 != 0 );
}

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

TEST( decision_1_sequence_base_zero_counts_from_zero )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK( netcode_client_next_packet_sequence( w->clients[0] ) < 100 );
    CHECK( netcode_server_next_packet_sequence( w->servers[0], 0 ) < 100 );
}

#if !defined( _WIN32 )

/* Decision 1: requests are counted, and the last number is not followed by the first. */
TEST( mutants_requests_count_and_the_counter_ends )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 1 );
    world_add_client( w );
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_connect( w, 0, 1 );
    world_step( w );
    CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ), 1 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ), 2 );
    w->clients[0]->sequence = UINT64_MAX;
    world_run( w, 0.5 );
    CHECK( netcode_client_next_packet_sequence( w->clients[0] ) == UINT64_MAX );
}

#endif

/* Nothing is sent any more rather than with a number that was used, or that belongs to others. */
TEST( defence_1_sequences_end_and_do_not_wrap )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    int i, mark;
    REQUIRE( world_join( w, 0, 1 ) );
    w->servers[0]->memory.slot[0].sequence = ( (uint64_t) 1 << 63 ) - 2;
    mark = w->records.count;
    for ( i = 0; i < 5; i++ )
        server_send( w, 0, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 2 );
    w->clients[0]->sequence = UINT64_MAX - 2;
    for ( i = 0; i < 5; i++ )
        client_send( w, 0, 10, i );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ), 2 );
}

/* What the callback of a full batch may have made of a client: without keys, or with its last sequence used, it seals nothing. */
TEST( a_client_without_a_session_seals_nothing )
{
    static const uint8_t body[8] = { 0 };
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    REQUIRE( world_join( w, 0, 1 ) );
    for ( int i = 0; i < 4; i++ ) {
        uint64_t sequence = client->sequence = i == 2 ? UINT64_MAX : 1 << 20;
        int mark = w->records.count;
        client->state = i == 0 ? NETCODE_CLIENT_STATE_DISCONNECTED : NETCODE_CLIENT_STATE_CONNECTED;
        client->loopback = i == 1;
        nc_client_seal( client, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
        nc_outbox_flush( &client->base.outbox );
        CHECK_EQ( w->records.count - mark, i == 3 );
        CHECK_EQ( client->sequence - sequence, (uint64_t) ( i == 3 ) );
    }
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

/* ---- 18 and 19: one token again ---- */

/* 18: a token that has connected, in the same client object and in new ones, at the same address and at another. */
TEST( threat_18_reconnecting_with_the_same_token )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 2 );
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int round, mark;
    REQUIRE( world_join( w, 0, 1 ) );
    memcpy( token, w->tokens[0], sizeof( token ) );
    client_send( w, 0, 100, 1 );
    server_send( w, 0, 0, 100, 1 );
    world_run( w, 0.2 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.2 );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    netcode_client_connect( w->clients[0], token );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    for ( round = 0; round < 3; round++ ) {
        int client = round == 1;
        world_destroy_client( w, client );
        world_make_client( w, client );
        mark = w->records.count;
        netcode_client_connect( w->clients[client], token );
        CHECK( world_until( w, client, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 6.0 ) );
        CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 0 );
        if ( round == 1 ) { /* the server's memory of it outlives a stop */
            world_restart( w, 0, 4 );
        }
    }
    CHECK_EQ( server_stats( w, 0 ).connects, 1 );
    CHECK( !LEDGER_WORKS || ledger.seals > 10 );
}

/* 19: connect twice with one token: what it sealed before, it seals never again. Counting from zero shows it best. */
TEST( threat_19_connecting_twice_with_one_token )
{
    struct world_t * w = world_new( CLEAN );
    struct recipe_t r;
    uint64_t sequence = 0;
    int round;
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    w->server_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 2 );
    world_add_client( w );
    r = recipe_for( w, 1 );
    mint( &r, w->tokens[0] );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    for ( round = 0; round < 5; round++ ) {
        int64_t seals = ledger.seals;
        netcode_client_connect( w->clients[0], w->tokens[0] );
        CHECK( netcode_client_next_packet_sequence( w->clients[0] ) >= sequence );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 2.0 ) );
        world_run( w, 0.5 );
        CHECK( netcode_client_next_packet_sequence( w->clients[0] ) >= sequence + 5 );
        sequence = netcode_client_next_packet_sequence( w->clients[0] );
        CHECK( !LEDGER_WORKS || ledger.seals >= seals + 5 );
    }
    w->cut_types = 0;
    netcode_client_connect( w->clients[0], w->tokens[0] );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
}

/* ---- 20: one token at many servers ---- */

TEST( decision_1_two_servers_of_one_token_share_no_nonce )
{
    struct world_t * w = world_open( CLEAN, 32, 2, 0 );
    struct puppet_t p;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 32; i++ ) {
        p.server = i;
        REQUIRE( puppet_again( &p ) );
        server_send( w, i, 0, 50, i );
        world_run( w, 0.2 );
    }
}

/*  20: a client that gets a challenge from each of its token's 32 servers, answers each, and is heard by the last alone: all that is sealed
    under the token's two keys, on 33 sides, differs. */
static int threat_deaf_but_one( struct world_t * w, const struct world_datagram_t * d )
{
    return ( d->data[0] & 15 ) == NETCODE_PACKET_RESPONSE && !netcode_address_equal( &d->to, &w->server_addresses[31] );
}

TEST( threat_20_one_token_at_32_servers )
{
    struct world_t * w = world_open( CLEAN, 32, 1, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    int i;
    r.timeout = 1;
    w->step = 0.02;
    w->hook = threat_deaf_but_one;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 40.0 ) );
    world_run( w, 1.0 );
    for ( i = 0; i < 32; i++ ) {
        CHECK_GE( world_count( w, 0, &w->server_addresses[i], NULL, NETCODE_PACKET_CHALLENGE, 0 ), 1 );
        CHECK_GE( world_count( w, 0, NULL, &w->server_addresses[i], NETCODE_PACKET_RESPONSE, 0 ), 1 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[i] ), i == 31 );
    }
    CHECK( !LEDGER_WORKS || ledger.seals >= 32 * 3 );
}

/* ---- 21 and 22: lives of one server ---- */

/* The same token before and after a crash of the server, at every step of the handshake: the ledger watches. */
TEST( decision_1_restart_of_the_server_at_every_step )
{
    int at;
    for ( at = 0; at < 40; at++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        int i;
        w->net->latency_milliseconds = 20.0f;
        world_connect( w, 0, 1 );
        for ( i = 0; i < at; i++ )
            world_step( w );
        if ( at % 2 )
            w->cut_from = w->server_addresses[0]; /* a crash: no client is notified */
        world_destroy_server( w, 0 );
        world_make_server( w, 0 );
        memset( &w->cut_from, 0, sizeof( w->cut_from ) );
        netcode_server_start( w->servers[0], 2 );
        world_run( w, 7.0 );
        world_close( w );
    }
    CHECK( !LEDGER_WORKS || ledger.seals > 1000 );
}

/* Replays what was sent to the server, with its own times. */
static void replay_to_server( struct world_t * w, const struct netcode_address_t * from, int first, int last )
{
    int i;
    for ( i = first; i < last; i++ ) {
        struct world_datagram_t d = w->records.items[i];
        if ( d.injected || !netcode_address_equal( &d.from, from ) )
            continue;
        world_inject( w, &d.from, &d.to, d.data, d.bytes );
        world_step( w );
    }
}

/*  21: the server is killed and restarted at every step of a client's handshake. In the new life everything that the
    client sent is replayed, and the client itself asks again with the same token, unless it was connected with it: then
    it refuses. */
static int threat_next_life( int at )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int i, state, sent;
    w->net->latency_milliseconds = 20.0f;
    world_connect( w, 0, 1 );
    for ( i = 0; i < at; i++ ) {
        client_send( w, 0, 30, i );
        server_send( w, 0, 0, 30, i );
        world_step( w );
    }
    state = netcode_client_state( w->clients[0] );
    sent = w->records.count;
    w->cut_from = w->server_addresses[0]; /* no client is notified */
    world_destroy_server( w, 0 );
    memset( &w->cut_from, 0, sizeof( w->cut_from ) );
    world_make_server( w, 0 );
    netcode_server_start( w->servers[0], 2 );
    netcode_client_connect( w->clients[0], w->tokens[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), state == NETCODE_CLIENT_STATE_CONNECTED
                                                         ? NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN
                                                         : NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    replay_to_server( w, &w->client_addresses[0], 0, sent );
    for ( i = 0; i < 50; i++ ) {
        client_send( w, 0, 30, 1000 + i );
        server_send( w, 0, 0, 30, 1000 + i );
        world_step( w );
    }
    if ( state == NETCODE_CLIENT_STATE_CONNECTED )
        CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    else
        state = -netcode_client_state( w->clients[0] );
    world_close( w );
    return state;
}

TEST( threat_21_a_server_killed_at_every_step )
{
    int at, refused = 0, connected = 0;
    for ( at = 0; at < 30; at++ ) {
        int state = threat_next_life( at );
        refused += state == NETCODE_CLIENT_STATE_CONNECTED;
        connected += state == -NETCODE_CLIENT_STATE_CONNECTED;
    }
    CHECK_GE( refused, 15 );
    CHECK_GE( connected, 5 ); /* not all: a challenge of the old life may arrive first, and is answered in vain */
    CHECK( !LEDGER_WORKS || ledger.seals > 1000 );
}

/*  The same puppet, with the same token and the same sequences, connects to each life of the server: the server's own
    packets differ. */
TEST( decision_1_two_lives_of_a_server_share_no_nonce )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i, j;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 30; i++ ) {
        REQUIRE( puppet_again( &p ) );
        for ( j = 0; j < 10; j++ )
            server_send( w, 0, 0, 50, i * 10 + j );
        world_run( w, 0.3 );
        world_destroy_server( w, 0 );
        world_make_server( w, 0 );
        netcode_server_start( w->servers[0], 2 );
    }
}

/* 21: the same token after a crash of the server; the client that was connected with it does not take it again. */
TEST( hostile_21_a_connected_client_does_not_take_the_old_token_to_a_new_life )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    w->cut_from = w->server_addresses[0];
    world_destroy_server( w, 0 );
    memset( &w->cut_from, 0, sizeof( w->cut_from ) );
    world_make_server( w, 0 );
    netcode_server_start( w->servers[0], 2 );
    netcode_client_connect( w->clients[0], w->tokens[0] );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    world_run( w, 1.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    /*  The recorded session in the new life: the token connects (the server can not know), the old payloads do not
        get in. */
    replay_to_server( w, &w->client_addresses[0], 0, w->records.count );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
}

/*  22: a handshake with the same token before and after a stop and start: the ledger sees no nonce twice, the old
    challenge is void. */
TEST( hostile_22_stop_and_start_in_the_middle_of_a_handshake )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 50; i++ ) {
        p.challenges = 0;
        REQUIRE( puppet_challenged( &p ) );
        world_restart( w, 0, 2 );
        puppet_answer( &p );
        CHECK_EQ( p.keep_alives, 0 );
    }
    CHECK( puppet_connect( &p ) ); /* the token itself was never used */
}
