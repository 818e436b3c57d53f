/*  Story: messages. What is promised of each kind of message, over links that lose, delay, double and reorder packets.
    Run: runner messages.c */

/* Ordered messages arrive, each once and in order, whatever happens to packets; nothing stays behind. */
TEST( messages_ordered_over_a_bad_link )
{
    static const double losses[] = { 0.0, 0.03, 0.2 };
    for ( int round = 0; round < 3; round++ ) {
        struct link_t link;
        struct netcode_message_t message;
        struct netcode_messages_stats_t stats;
        uint32_t next = 0, expected = 0;
        link_open( &link, NULL, test_random() + (uint64_t) round, 0.05, losses[round] );
        link.ways[0].jitter = link.ways[1].jitter = 0.03;
        link.ways[0].doubles = link.ways[1].doubles = 0.02;
        while ( link.now < 20.0 ) {
            if ( link.now < 10.0 ) {
                CHECK_EQ( netcode_messages_send( link.ends[0], 3, NETCODE_MESSAGE_RELIABLE_ORDERED, &next,
                                                 sizeof( next ) ),
                          NETCODE_OK );
                next++;
            }
            link_tick( &link );
            while ( netcode_messages_receive( link.ends[1], &message ) ) {
                REQUIRE_EQ( message.bytes, (int) sizeof( expected ) );
                CHECK_EQ( message.channel, 3 );
                CHECK_MEM( message.data, &expected, sizeof( expected ) );
                expected++;
            }
        }
        CHECK_EQ( expected, next );
        netcode_messages_stats( link.ends[0], &stats );
        CHECK_EQ( (int) stats.send_buffer_used, 0 );
        CHECK_EQ( stats.reliable_timeouts_total, 0 );
        CHECK( losses[round] > 0.0 || stats.reliable_retries_total == 0 );
        link_close( &link );
    }
}

/* A large message arrives whole beside small ones, and its receipt comes after its progress. */
TEST( messages_large_with_receipt )
{
    enum { LARGE = 262144 };
    static uint8_t data[LARGE];
    struct link_t link;
    struct netcode_message_t message, large;
    struct netcode_messages_event_t event;
    int arrived = 0, acked = 0, progress = 0;
    for ( int i = 0; i < LARGE; i++ )
        data[i] = (uint8_t) ( i * 7 + i / 251 );
    memset( &large, 0, sizeof( large ) );
    large.kind = NETCODE_MESSAGE_RELIABLE;
    large.data = data;
    large.bytes = LARGE;
    large.receipt = 77;
    link_open( &link, NULL, test_random(), 0.02, 0.05 );
    CHECK_EQ( netcode_messages_send_message( link.ends[0], &large ), NETCODE_OK );
    while ( link.now < 60.0 && !acked ) {
        link_tick( &link );
        while ( netcode_messages_receive( link.ends[1], &message ) ) {
            REQUIRE_EQ( message.bytes, LARGE );
            CHECK_MEM( message.data, data, LARGE );
            arrived++;
        }
        while ( netcode_messages_event( link.ends[0], &event ) ) {
            CHECK_EQ( event.receipt, 77 );
            CHECK_EQ( event.bytes, LARGE );
            if ( event.type == NETCODE_MESSAGES_EVENT_PROGRESS ) {
                CHECK( event.bytes_done > progress && event.bytes_done < LARGE );
                progress = event.bytes_done;
            } else {
                CHECK_EQ( event.type, NETCODE_MESSAGES_EVENT_ACKED );
                acked++;
            }
        }
    }
    CHECK_EQ( arrived, 1 );
    CHECK_EQ( acked, 1 );
    CHECK( progress > LARGE / 2 );
    link_close( &link );
}
