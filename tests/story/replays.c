/*  Story: old traffic stays old (decision 5, rows 13 to 17 and 23 to 25 of the table of attacks). */

/* ---- the window ---- */

TEST( decision_5_the_replay_window_starts_at_the_response )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint64_t response;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    p.sequence = (uint64_t) 1 << 40;
    REQUIRE( puppet_challenged( &p ) );
    response = p.sequence;
    puppet_answer( &p );
    REQUIRE( p.keep_alives > 0 );
    p.sequence = response; /* a payload with the response's own number, and ones from before it */
    puppet_say( &p, 10, 1 );
    p.sequence = response - 1;
    puppet_say( &p, 10, 2 );
    p.sequence = response - 100;
    puppet_say( &p, 10, 3 );
    p.sequence = 0;
    puppet_say( &p, 10, 4 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SEQUENCE_TOO_OLD ) + server_drops( w, 0, NETCODE_DROP_REPLAYED ), 4 );
    p.sequence = response + 1;
    puppet_say( &p, 10, 5 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

TEST( decision_5_a_jump_of_more_than_2_32_is_refused )
{
    static const struct {
        uint64_t ahead;
        int accepted;
    } rows[] = { { 1, 1 },
                 { 257, 1 },
                 { (uint64_t) 1 << 32, 1 },
                 { ( (uint64_t) 1 << 32 ) + 1, 0 },
                 { (uint64_t) 1 << 40, 0 },
                 { (uint64_t) 1 << 62, 0 } };
    int i;
    for ( i = 0; i < 6; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 4, 0 );
        struct puppet_t p;
        REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
        p.sequence = p.sequence - 1 + rows[i].ahead; /* the response was the newest */
        puppet_say( &p, 10, 1 );
        world_step( w );
        if ( !CHECK_EQ( server_drain( w, 0, 0 ), rows[i].accepted ) )
            printf( "    row %d\n", i );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD ), !rows[i].accepted );
        world_close( w );
    }
}

TEST( decision_5_the_clients_window_starts_at_its_keep_alive )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r;
    uint8_t body[10] = { 0 };
    uint64_t first;
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    world_run( w, 0.05 );
    first = sequence_of( world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_KEEP_ALIVE ) ) + 10;
    body[4] = 4;
    send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, first, body, 8 );
    world_step( w );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first - 1, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first - 1000000, body, 10 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + ( (uint64_t) 1 << 32 ) + 1, body, 10 );
    world_step( w );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, first + ( (uint64_t) 1 << 32 ), body, 10 );
    world_step( w );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

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

/* 13: numbered rows over the window. offset: from the newest; accepted or not, in this order. */
TEST( hostile_13_the_replay_window )
{
    static const struct {
        int64_t offset; /* from the first payload */
        int accepted;
    } rows[] = {
        { 0, 1 },    { 0, 0 },    { 1, 1 },    { 1, 0 },      { 0, 0 },    { 5, 1 },     { 3, 1 },
        { 3, 0 },    { 4, 1 },    { 2, 1 },    { 2, 0 },      { 255, 1 },  { 6, 1 },     { 6, 0 },
        { 255, 0 },  { 1000, 1 }, { 999, 1 },  { 999, 0 },    { 801, 1 },  { 1000, 0 },  { 255, 0 },
        { 254, 0 },  { 0, 0 },    { -1, 0 },   { 1001, 1 },   { 5000, 1 }, { 1002, 0 },  { 4999, 1 },
        { 4999, 0 }, { 4800, 1 }, { 4800, 0 }, { 100000, 1 }, { 5001, 0 }, { 99999, 1 },
    };
    struct puppet_t p;
    struct world_t * w = world_new( CLEAN );
    uint64_t first;
    int i, slot;
    w->server_config.packet_pool_buffers = 1024;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( &p, w, 0, 9, "10.2.0.9:6000" ) );
    slot = world_slot( w, 0, 9 );
    first = p.sequence;
    for ( i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        p.sequence = (uint64_t) ( (int64_t) first + rows[i].offset );
        puppet_say( &p, 10, i );
        world_step( w );
        if ( !CHECK_EQ( server_drain( w, 0, slot ), rows[i].accepted ) )
            printf( "    row %d\n", i );
    }
    for ( i = 0; i < 256; i++ ) /* a full window up */
    {
        p.sequence = first + 200000 + (uint64_t) i;
        puppet_say( &p, 10, i );
    }
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 256 );
    for ( i = 255; i >= 0; i-- ) /* the same again: none */
    {
        p.sequence = first + 200000 + (uint64_t) i;
        puppet_say( &p, 10, i );
    }
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 0 );
    p.sequence = first + 300000;
    puppet_say( &p, 10, 1 );
    for ( i = 1; i < 256; i++ ) /* and a full window down */
    {
        p.sequence = first + 300000 - (uint64_t) i;
        puppet_say( &p, 10, i );
    }
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 256 );
}

/* 14: sessions that began near the ends of the numbers: each sequence once, and never a wrap. */
TEST( hostile_14_sequences_near_the_ends )
{
    static const uint64_t starts[] = { 0, 1, 0x7ffffffffffffffeu, 0x8000000000000000u, 0xfffffffffffffff0u };
    int i, j;
    for ( i = 0; i < 5; i++ ) {
        struct puppet_t p;
        struct world_t * w = hostile_world( &p );
        int slot, got = 0;
        p.sequence = starts[i];
        puppet_raw( &p, p.request, REQUEST_BYTES );
        puppet_step( &p );
        REQUIRE( p.challenges == 1 );
        puppet_answer( &p );
        REQUIRE( p.keep_alives > 0 );
        slot = world_slot( w, 0, 9 );
        for ( j = 1; j < 16; j++ ) {
            p.sequence = starts[i] + (uint64_t) j;
            puppet_say( &p, 10, j );
            p.sequence = starts[i] + (uint64_t) j;
            puppet_say( &p, 10, j );
            world_step( w );
            got += server_drain( w, 0, slot );
        }
        if ( !CHECK_EQ( got, 15 ) )
            printf( "    row %d\n", i );
        for ( j = 0; j < 16; j++ ) /* over and over: none, the highest of all included */
        {
            p.sequence = starts[i] + (uint64_t) j;
            puppet_say( &p, 10, j );
            p.sequence = UINT64_MAX;
            if ( i == 4 )
                puppet_say( &p, 10, j );
        }
        world_step( w );
        CHECK_EQ( server_drain( w, 0, slot ), 0 );
        world_close( w );
    }
}

/* 15 and 16: the window moves only after authentication; a copy from elsewhere burns nothing. */
TEST( hostile_15_16_the_window_moves_only_for_authentic_packets )
{
    struct puppet_t p;
    struct world_t * w = hostile_world( &p );
    struct netcode_address_t elsewhere = address_of( "10.66.0.1:666" );
    uint8_t data[64], body[10] = { 0 };
    int bytes, slot;
    REQUIRE( puppet_connect( &p ) );
    slot = world_slot( w, 0, 9 );
    bytes = wire_seal( data, NETCODE_PACKET_PAYLOAD, p.sequence + 1000000, 0, p.r.to_client_key, body,
                       10 ); /* forged, far ahead */
    puppet_raw( &p, data, bytes );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 1 );
    bytes = wire_seal( data, NETCODE_PACKET_PAYLOAD, p.sequence, 0, p.r.to_server_key, body, 10 );
    world_inject( w, &elsewhere, &w->server_addresses[0], data, bytes );
    world_inject( w, &w->client_addresses[0], &w->server_addresses[0], data, bytes );
    world_step( w );
    puppet_raw( &p, data, bytes );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 1 );
}

/* ---- what was recorded ---- */

/*  17, 23: a whole recorded session after it ended: by goodbye, by a kick, by timeout; on a server that stopped and
    started; the same port in use again. */
TEST( hostile_17_23_a_recorded_session_is_replayed_in_vain )
{
    int end;
    for ( end = 0; end < 5; end++ ) {
        struct world_t * w = world_open( CLEAN, 1, 4, 1 );
        int i, count;
        REQUIRE( world_join( w, 0, 1 ) );
        for ( i = 0; i < 20; i++ ) {
            client_send( w, 0, 50, i );
            world_step( w );
        }
        world_run( w, 0.1 );
        CHECK_EQ( server_drain( w, 0, 0 ), 20 );
        count = w->records.count;
        if ( end == 0 || end == 4 )
            netcode_client_disconnect( w->clients[0] );
        if ( end == 1 )
            netcode_server_disconnect_client( w->servers[0], 0 );
        if ( end == 2 ) {
            w->cut_from = w->client_addresses[0];
            world_run( w, 6.0 );
            memset( &w->cut_from, 0, sizeof( w->cut_from ) );
        }
        if ( end == 3 ) {
            world_restart( w, 0, 4 );
        }
        world_run( w, 0.5 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        if ( end == 4 )
            REQUIRE( world_join( w, 0, 1 ) ); /* the player is back with a new token, from the same address */
        replay_to_server( w, &w->client_addresses[0], 0, count );
        replay_to_server( w, &w->client_addresses[0], 0, count );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), end == 4 );
        for ( i = 0; i < 4; i++ )
            CHECK_EQ( server_drain( w, 0, i ), 0 );
        world_close( w );
    }
}

/* 24: an old response on a fresh handshake of the same player from the same address. */
TEST( hostile_24_an_old_response_on_a_fresh_handshake )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    uint8_t old[400];
    int bytes;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    bytes = wire_seal( old, NETCODE_PACKET_RESPONSE, p.sequence++, 0, p.r.to_server_key, p.challenge, 308 );
    puppet_raw( &p, old, bytes );
    puppet_step( &p );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    netcode_server_disconnect_client( w->servers[0], 0 );
    REQUIRE( puppet_begin( &q, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_raw( &p, old, bytes );
    world_step( w );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK( puppet_connect( &q ) );
}

/*  24: the very bytes of a response, recorded in a handshake that ended without it; a new one of the same token is
    pending. */
TEST( threat_24_a_recorded_response_in_a_new_handshake )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p;
    uint8_t old[400];
    int bytes, i;
    REQUIRE( puppet_begin( &p, w, 0, 1, "10.2.0.1:6000" ) );
    bytes = wire_seal( old, NETCODE_PACKET_RESPONSE, p.sequence++, 0, p.r.to_server_key, p.challenge, 308 );
    world_run( w, 11.0 );
    REQUIRE_EQ( server_stats( w, 0 ).pending, 0 );
    REQUIRE( puppet_challenged( &p ) );
    for ( i = 0; i < 5; i++ ) {
        puppet_raw( &p, old, bytes );
        expect_server_drop( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    puppet_answer( &p );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/* 25: recorded denied and disconnect packets of another session are harmless. */
TEST( hostile_25_denials_and_goodbyes_of_another_session )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 2 );
    struct world_datagram_t denied, goodbye;
    REQUIRE( world_join( w, 1, 2 ) );
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 1.0 ) );
    denied = *world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_DENIED );
    netcode_client_disconnect( w->clients[1] );
    world_run( w, 0.2 );
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    goodbye = *world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_DISCONNECT );
    world_run( w, 0.2 );
    world_connect( w, 0, 1 );
    world_step( w );
    inject_to_client( w, denied.data, denied.bytes );
    world_step( w );
    CHECK( netcode_client_state( w->clients[0] ) > 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    inject_to_client( w, goodbye.data, goodbye.bytes );
    inject_to_client( w, denied.data, denied.bytes );
    world_run( w, 0.2 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}
