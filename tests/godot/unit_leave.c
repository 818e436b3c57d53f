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
