/* Peers that leave: what the others hear of it, and what becomes of their last messages. */

/* One leaves a lower slot free, and another one leaves in the server update in which the new one joins. */
TEST( who_leaves_as_another_one_joins_ends_no_connection )
{
    world_open( 4 );
    multiplayer_close( &world.clients[0] );
    world_run( 1.0 );
    for ( int delay = 0; delay < 12; delay++ ) {
        int32_t gone = ID( 2 );
        world.poll_every = 6;
        REQUIRE_EQ( world_join_as( 0, 200 + (uint64_t) delay ), MULTIPLAYER_OK );
        for ( int i = 0; i < delay; i++ )
            world_step();
        multiplayer_close( &world.clients[2] );
        world_run( 1.5 );
        if ( world.clients[0].status != MULTIPLAYER_CONNECTED )
            test_fail( __FILE__, __LINE__, "left %d ticks later: \"%s\"", delay, world.clients[0].why );
        CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_CONNECTED, gone ),
                  seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, gone ) );
        CHECK_EQ( SEEN_BY( 0 )->num_known, 3 ); /* the server, 1 and 3 */
        CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
        CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
        /* All as before: the next one leaves from a higher slot than the one that joins. */
        multiplayer_close( &world.clients[0] );
        world_run( 1.0 );
        world.poll_every = 0;
        REQUIRE_EQ( world_join_as( 0, 300 + (uint64_t) delay ), MULTIPLAYER_OK );
        world_run( 1.0 );
        REQUIRE_EQ( world_join_as( 2, 400 + (uint64_t) delay ), MULTIPLAYER_OK );
        world_run( 1.0 );
        multiplayer_close( &world.clients[0] );
        world_run( 1.0 );
    }
}

/* Has a client something that is not sent, or not acknowledged? */
static int leave_waits( struct netcode_messages_t * messages )
{
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( messages, &stats );
    return stats.send_buffer_used > 0.0;
}

/* The message layer acknowledges what the server does not read yet: its sender knows of nothing that is missing. */
TEST( what_a_client_had_acknowledged_outlives_it )
{
    static uint8_t large[8000];
    world_open( 2 );
    int32_t gone = ID( 0 );
    for ( int i = 0; i < 20; i++ )
        world_send( &world.clients[0], ID( 1 ), CHANNEL_RELIABLE, large, (int) sizeof( large ), MULTIPLAYER_OK );
    world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "goodbye, all", 12, MULTIPLAYER_OK );
    world_send( &world.clients[0], 1, CHANNEL_RELIABLE, "goodbye, server", 15, MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_EQ( leave_waits( world.clients[0].messages ), 0 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "goodbye" ), 0 ); /* it waits behind what has no credit */
    multiplayer_close( &world.clients[0] );
    world_run( 1.0 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "goodbye, all" ), 1 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "goodbye, server" ), 1 );
    CHECK_EQ( world.server_seen.unknown, 0 );
    /* What was for others is relayed as far as it had credit; the rest is counted. */
    CHECK_LE( SEEN_BY( 1 )->num_packets, 2 * MULTIPLAYER_RELAY_BYTES_PER_SECOND / (int) sizeof( large ) + 1 );
    CHECK_EQ( SEEN_BY( 1 )->num_packets + (int) world.server.unrelayed, 21 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), gone, "goodbye" ), 0 ); /* no hole in their order */
    char text[1024];
    multiplayer_report( &world.server, text, sizeof( text ) );
    CHECK( strstr( text, "were not relayed" ) != NULL );
}

/* More than the 512 that the server reads of one client in one poll. */
TEST( who_sends_much_and_leaves_is_read_to_the_end )
{
    world_open( 1 );
    int32_t gone = ID( 0 );
    world.poll_every = 6;
    for ( int i = 0; i < 3000; i++ )
        world_send( &world.clients[0], 1, CHANNEL_RELIABLE, "to be read", 10, MULTIPLAYER_OK );
    while ( world.clients[0].role != MULTIPLAYER_OFF && leave_waits( world.clients[0].messages ) )
        world_step();
    multiplayer_close( &world.clients[0] );
    world_run( 2.0 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "to be read" ), 3000 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
    CHECK_EQ( world.server_seen.unknown, 0 );
}

/* A payload in the server's last update before the end: the message layer is not reset in that one. */
TEST( who_floods_and_leaves_is_relayed_no_more_than_allowed )
{
    static uint8_t large[8000];
    world_open( 2 );
    world_raw();
    int32_t id = world.raw.id;
    for ( int i = 0; i < 40; i++ )
        raw_send( &world.raw, ID( 0 ), CHANNEL_RELIABLE, large, (int) sizeof( large ) );
    world_run( 1.0 );
    raw_send( &world.raw, 1, CHANNEL_UNRELIABLE, "last", 4 );
    raw_update( &world.raw, world.time );
    world_close_raw();
    world_run( 2.0 );
    int flood = 0;
    for ( int i = 0; i < SEEN_BY( 0 )->num_packets; i++ )
        flood += SEEN_BY( 0 )->packets[i].from == id;
    CHECK_GT( flood, 4 );
    /* the credit of the first second and of the next one, and one message beyond */
    CHECK_LE( flood, 2 * MULTIPLAYER_RELAY_BYTES_PER_SECOND / (int) sizeof( large ) + 1 );
    CHECK_EQ( seen_text( &world.server_seen, id, "last" ), 1 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, id ), 1 );
}

/* What the engine has no room for waits, and so does the one that gets the slot next. */
TEST( an_engine_that_does_not_read_loses_nothing_of_one_that_left )
{
    static uint8_t large[40000];
    world_open( 2 );
    int32_t gone = ID( 0 );
    world.idle_reader = 1;
    for ( int i = 0; i < 34; i++ ) {
        memcpy( large, i < 33 ? "many" : "last", 4 );
        world_send( &world.clients[0], 1, CHANNEL_RELIABLE, large, (int) sizeof( large ), MULTIPLAYER_OK );
        world_run( 0.1 );
    }
    world_run( 3.0 );
    CHECK_EQ( leave_waits( world.clients[0].messages ), 0 );
    CHECK( multiplayer_queue_full( &world.server ) && world.server.queue_packets < 34 );
    multiplayer_close( &world.clients[0] );
    world_run( 0.5 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 0 );
    world_send( &world.server, gone, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_OK ); /* the engine does not know yet */
    CHECK_EQ( multiplayer_kick( &world.server, gone, "too late" ), MULTIPLAYER_BAD_ARGUMENT );
    for ( int i = 3; i < 6; i++ ) { /* one that takes the slot, and leaves; then others */
        REQUIRE_EQ( world_join_as( i, 300 + (uint64_t) i ), MULTIPLAYER_OK );
        world_run( 0.5 );
        CHECK_EQ( world.server.holds, 1 );
        if ( i == 3 )
            multiplayer_close( &world.clients[i] );
        world_run( 0.5 );
    }
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 0 );
    world.idle_reader = 0;
    world_run( 2.0 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "many" ), 33 );
    CHECK_EQ( seen_text( &world.server_seen, gone, "last" ), 1 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
    CHECK_EQ( world.server_seen.unknown, 0 );
    CHECK_EQ( world.server_seen.num_known, 3 ); /* 1, 4 and 5 */
    for ( int i = 4; i < 6; i++ ) {
        CHECK_EQ( world.clients[i].status, MULTIPLAYER_CONNECTED );
        CHECK_EQ( SEEN_BY( i )->num_known, 3 );
    }
}

/* The others do not know of it yet, and must not hear of it any more. */
TEST( who_is_kicked_as_it_joins_is_no_ghost_for_the_others )
{
    world_open( 2 );
    REQUIRE_EQ( world_join_as( 2, 102 ), MULTIPLAYER_OK );
    while ( world.server_seen.num_known < 3 )
        world_step();
    CHECK_EQ( multiplayer_kick( &world.server, world.server_seen.known[2], "not you" ), MULTIPLAYER_OK );
    world_run( 4.0 );
    CHECK_EQ( SEEN_BY( 0 )->num_known, 2 );
    CHECK_EQ( SEEN_BY( 1 )->num_known, 2 );
    CHECK_STR( world.clients[2].why, "the server ended the connection: not you" );
}
