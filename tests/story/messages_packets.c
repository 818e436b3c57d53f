/*  Story: packets of messages. What fits into one, what waits for company, and what windows, rates and tables let
    through; each with what is then on the wire. Run: runner messages_packets.c */

/* ---- packets that are just full ---- */

/* What does not fit does not keep back what does. 1200 bytes are 9 of header, and a frame of 1 to 7 before its data. */
TEST( messages_a_packet_is_filled )
{
    static const struct {
        int kind, first, second, together;
    } rows[] = {
        { 0, 1000, 185, 1 },                      /* 9 + 3 + 1000 + 3 + 185 = 1200 */
        { 0, 1000, 186, 0 }, { 0, 1180, 3, 1 },   /* 9 + 3 + 1180 + 2 + 3 = 1197 */
        { 0, 1180, 7, 0 },   { 2, 1000, 181, 1 }, /* ids */
        { 2, 1000, 182, 0 }, { 3, 1000, 177, 1 }, /* and orders */
        { 3, 1000, 178, 0 }, { 4, 1000, 181, 1 }, { 4, 1000, 182, 0 }, { 1, 1000, 185, 1 }, { 1, 1000, 186, 0 },
    };
    for ( int i = 0; i < 12; i++ ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        sender_send( m, 0, rows[i].kind, rows[i].first, 0.0, 0 );
        sender_send( m, 0, rows[i].kind, rows[i].second, 0.0, 0 );
        netcode_messages_update( m, 0.0 );
        int bytes = seen_next( &seen, m );
        CHECK_EQ( seen.count, 1 + rows[i].together );
        CHECK_LE( bytes, NETCODE_MAX_PACKET_SIZE );
        CHECK( i != 0 || bytes == 1200 - 2 ); /* the last one's length is left out */
        CHECK_EQ( seen_next( &seen, m ) > 0, !rows[i].together );
        sender_close( m );
    }
}

/* On channels a byte more; one that is too long for the rest of the packet lets a shorter one by. */
TEST( messages_a_shorter_one_passes )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    sender_send( m, 1, 0, 1000, 0.0, 0 ); /* 9 + 4 + 1000 */
    sender_send( m, 2, 0, 185, 0.0, 0 );
    sender_send( m, 3, 0, 183, 0.0, 0 ); /* 4 + 183 = 187, all that is left */
    netcode_messages_update( m, 0.0 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 2 && seen.frames[1].channel == 3 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 && seen.frames[0].channel == 2 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    sender_close( m );
}

/* A CANCEL waits for the next packet where the one that was lost before it leaves no room. */
TEST( messages_a_cancel_without_room )
{
    for ( int bytes = 1177; bytes <= 1180; bytes++ ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        int room = 1200 - 9 - 5 - bytes >= 7;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 0 );
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 500, 0.01, 3 );
        netcode_messages_update( m, 0.0 );
        CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
        CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
        sender_lose( m, 0 );
        netcode_messages_update( m, 0.01 );
        CHECK( seen_next( &seen, m ) > 0 && seen_count( &seen, 0, 0 ) == 1 );
        CHECK_EQ( seen_count( &seen, 0x27, 1 ), room );
        CHECK_EQ( seen_next( &seen, m ) > 0, !room );
        CHECK( room || ( seen.count == 1 && seen_count( &seen, 0x27, 1 ) == 1 ) );
        sender_close( m );
    }
}

/* ---- windows, rates and tables that are used up ---- */

/*  What the window and the rates let through. The window is 12000 bytes. Reliable messages in one piece do not wait for it; while
    nothing is heard of the other side, fragments do not leave. */
TEST( messages_what_may_leave )
{
    static const struct {
        int congestion, probe;
        uint32_t timeouts;
        double paced, urgent, in_flight, least;
        int unreliable, reliable, bulk;
    } rows[] = {
        { 0, 0, 0, 1.0, 1.0, 0.0, 0.0, 1, 1, 1 },         { 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 1, 1, 0 },
        { 0, 0, 0, 0.5, 0.5, 0.0, 0.0, 1, 1, 1 },         { 0, 0, 0, -1199.0, -1200.0, 0.0, 0.0, 1, 0, 0 },
        { 0, 0, 0, -1200.0, -1199.0, 0.0, 0.0, 0, 1, 0 }, { 0, 0, 0, 1.0, 1.0, 10800.0, 0.0, 1, 1, 1 },
        { 0, 0, 0, 1.0, 1.0, 10801.0, 0.0, 1, 1, 0 },     { 0, 0, 0, 1.0, 1.0, 11999.0, 0.0, 1, 1, 0 },
        { 0, 0, 0, 1.0, 1.0, 12000.0, 0.0, 0, 1, 0 },     { 0, 0, 0, 1.0, 1.0, 12000.0, 0.1, 1, 1, 1 },
        { 0, 0, 0, -9e9, -9e9, 12000.0, 0.1, 1, 0, 1 },   { 0, 0, 1, 1.0, 1.0, 0.0, 0.0, 1, 1, 0 },
        { 0, 1, 1, 1.0, 1.0, 99999.0, 0.0, 1, 1, 0 },     { 1, 0, 1, 1.0, 1.0, 99999.0, 0.0, 1, 1, 1 },
        { 1, 0, 0, -1200.0, -1200.0, 0.0, 0.1, 0, 0, 0 }, { 2, 0, 0, -9e9, -9e9, 99999.0, 0.0, 1, 1, 1 },
        { 0, 1, 0, -9e9, -9e9, 0.0, 0.0, 1, 1, 0 },       { 1, 1, 0, -9e9, -9e9, 99999.0, 0.0, 1, 1, 0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = sender_open( 16, rows[i].congestion, 0 );
        uint8_t packet[NETCODE_MAX_PACKET_SIZE];
        nc_build_t build;
        memset( &build, 0xff, sizeof( build ) );
        m->probe_due = (uint8_t) ( rows[i].probe );
        m->timeouts = rows[i].timeouts;
        m->paced = rows[i].paced;
        m->urgent = rows[i].urgent;
        m->in_flight = rows[i].in_flight;
        m->least = rows[i].least;
        nc_build_begin( m, &build, packet );
        CHECK( build.tracked && build.delay == 0 && build.flags == 0 && build.asks == 0 && build.last == NULL );
        if ( build.unreliable != rows[i].unreliable || build.reliable != rows[i].reliable ||
             build.bulk != rows[i].bulk )
            test_fail( __FILE__, __LINE__, "row %d: %d %d %d", i, build.unreliable, build.reliable, build.bulk );
        m->in_flight = 0.0;
        sender_close( m );
    }
}

/* What was held back is remembered, for what an ack may then open. */
TEST( messages_what_was_held_back )
{
    static const struct {
        int kind, bytes;
        double in_flight, urgent;
        int held;
    } rows[] = {
        { NETCODE_MESSAGE_RELIABLE, 1300, 11000.0, 0.0, 1 }, /* beside a large one */
        { NETCODE_MESSAGE_RELIABLE, 0, 0.0, 0.0, 0 },         { NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0.0, 0 },
        { NETCODE_MESSAGE_RELIABLE, 200, 12000.0, 0.0, 0 },   { NETCODE_MESSAGE_RELIABLE, 200, 0.0, -1200.0, 1 },
        { NETCODE_MESSAGE_RELIABLE, 1300, 11000.0, 0.0, 0 },  { NETCODE_MESSAGE_RELIABLE, 6000, 11000.0, 0.0, 1 },
        { NETCODE_MESSAGE_UNRELIABLE, 200, 11000.0, 0.0, 0 }, { NETCODE_MESSAGE_UNRELIABLE, 200, 12000.0, 0.0, 1 },
    };
    for ( int i = 0; i < 9; i++ ) {
        struct netcode_messages_t * m = sender_open( 16, 0, 0 );
        struct seen_t seen;
        m->large_count = (uint32_t) i == 0;
        if ( rows[i].bytes )
            sender_send( m, 0, rows[i].kind, rows[i].bytes, 0.0, 0 );
        netcode_messages_update( m, 0.0 );
        m->in_flight = rows[i].in_flight;
        m->urgent = rows[i].urgent;
        m->least = 0.0;
        while ( seen_next( &seen, m ) > 0 )
            ;
        if ( !CHECK_EQ( m->held_back, rows[i].held ) ||
             !CHECK_EQ( m->stats.messages_sent, rows[i].bytes && !rows[i].held ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        m->large_count = 0;
        netcode_messages_destroy( m );
    }
}

/*  Sixteen packets in flight are all that are remembered. What needs to be remembered waits, what does not goes, and
    once the oldest is settled there is an entry again. */
TEST( messages_no_place_for_another_packet )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        sender_tick( m, 0.001 * i, &seen );
        CHECK( seen.asks && seen.count == 1 );
    }
    sender_lose( m, 5 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    sender_send( m, 1, NETCODE_MESSAGE_UNRELIABLE, 200, 0.0, 9 );
    sender_send( m, 2, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 0 );
    m->ping_due = m->limit_due = 1; /* nor these, which would have to be heard of */
    sender_silence( m, 0.02 );
    CHECK( m->ping_due && m->limit_due );
    m->ping_due = m->limit_due = 0;
    sender_send( m, 3, NETCODE_MESSAGE_UNRELIABLE, 201, 0.0, 0 );
    sender_tick( m, 0.021, &seen );
    CHECK( seen.count == 1 && seen.frames[0].bytes == 201 && !seen.asks );
    sender_lose( m, 0 ); /* not heard of, but settled: it frees an entry for one */
    netcode_messages_update( m, 0.022 );
    REQUIRE( seen_next( &seen, m ) > 0 );
    CHECK( seen.frames[0].id == 5 && seen.frames[1].id == 0 && seen.frames[1].kind == 2 ); /* those that were lost */
    CHECK_EQ( m->stats.reliable_retries_total, 2 );
    CHECK_EQ( seen.count, 4 ); /* and both of the small ones */
    CHECK_EQ( m->sent_end - m->sent_first, 16 );
    sender_silence( m, 0.023 );
    sender_close( m );
}

/* However many ask for a receipt, one packet holds as many as it has room for; each is reported. */
TEST( messages_many_receipts_of_one_packet )
{
    for ( int lost = 0; lost < 2; lost++ ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct seen_t seen;
        for ( int i = 0; i < 64; i++ )
            sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 10, 0.0, 1 + (uint64_t) i );
        sender_tick( m, 0.0, &seen );
        CHECK_EQ( seen.count, 64 );
        if ( lost ) {
            sender_lose( m, 0 );
            CHECK_EQ( messages_watched( m ), 64 );
            sender_silence( m, 0.3 );
            for ( int i = 0; i < 64; i++ )
                CHECK_EQ( sender_event( m ), 10 * ( 1 + i ) + NETCODE_MESSAGES_EVENT_LOST );
        }
        sender_acks( m, 0, 0 );
        for ( int i = 0; i < 64; i++ )
            CHECK_EQ( sender_event( m ),
                      10 * ( 1 + i ) + ( lost ? NETCODE_MESSAGES_EVENT_SPURIOUS : NETCODE_MESSAGES_EVENT_ACKED ) );
        CHECK_EQ( m->out.used, 0 );
        sender_close( m );
    }
}

/* ---- flush, pings, broken ---- */

/* Small messages wait for company until 1100 bytes are there, or until they are flushed. */
TEST( messages_small_ones_wait_for_company )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    sender_silence( m, 0.0 );
    sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 549, 0.0, 0 );
    sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 550, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 3 );
    sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    netcode_messages_flush( m );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 ); /* one flush, and what was queued by then */
    sender_tick( m, 0.1, &seen );
    sender_close( m );
}

/* A PING goes every so often and comes back as it was; what it takes is reported, if it is less than a minute. */
TEST( messages_pings )
{
    struct netcode_messages_config_t config = *small_config();
    config.ping_seconds = 0.25;
    struct netcode_messages_t * m = netcode_messages_create( &config, 2.0 );
    struct seen_t seen;
    struct craft_t craft;
    int number = 0;
    messages_drain( m, 2.0 );
    static const double trips[] = { 0.0625, 59.99992, 60.00002, 60.5 },
                        reported[] = { 0.0625, 59.9999, 59.9999, 59.9999 };
    sender_acks( m, number++, 0 );
    sender_silence( m, 2.249 );
    sender_tick( m, 2.25, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x0f && seen.frames[0].value == 2500 );
    sender_acks( m, seen.number, 0 );
    sender_silence( m, 2.499 );
    sender_tick( m, 2.5, &seen );
    for ( int i = 0; i < 4; i++ ) {
        netcode_messages_set_time( m, 2.5 + trips[i] );
        craft_begin( &craft, m->newest_received + 1, -1, 0 );
        put( &craft.at, 0x17, 1 );
        put( &craft.at, 5000, 4 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_NEAR( m->stats.ping, reported[i], 1e-9 );
    }
    craft_begin( &craft, m->newest_received + 1, -1, 0 );
    put( &craft.at, 0x0f, 1 );
    put( &craft.at, 0xfedcba98, 4 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    REQUIRE( seen_next( &seen, m ) > 0 );
    CHECK( seen_count( &seen, 0x17, -1 ) == 1 );
    for ( int i = 0; i < seen.count; i++ )
        CHECK( seen.frames[i].type != 0x17 || seen.frames[i].value == 0xfedcba98 );
    CHECK( seen_next( &seen, m ) == 0 || seen_count( &seen, 0x17, -1 ) == 0 );
    netcode_messages_destroy( m );
}

/* An ordered message was given up: nothing goes out, nothing comes in, nothing is due, until a reset. */
TEST( messages_broken_is_broken )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 1 );
    struct seen_t seen;
    struct craft_t craft;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 200, 0.0, 1 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 200, 0.0, 2 );
    sender_tick( m, 0.0, &seen );
    sender_lose( m, 0 );
    sender_tick( m, 0.01, &seen );
    messages_hold( m );
    sender_send( m, 1, NETCODE_MESSAGE_UNRELIABLE, 5, 0.5, 0 );
    sender_lose( m, 1 );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 ); /* the second one makes it no worse */
    CHECK_EQ( sender_event( m ), NETCODE_MESSAGES_EVENT_BROKEN );
    CHECK_EQ( sender_event( m ), 0 );
    sender_tick( m, 0.02, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x37 && seen.frames[0].value == NETCODE_MESSAGES_REASON_GIVEN_UP );
    sender_silence( m, 5.0 );
    CHECK_NEAR( m->now, 5.0, 1e-9 );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 3605.0, 1e-9 );
    craft_begin( &craft, 0, -1, 0 );
    for ( int i = 0; i < 2;
          i++ ) { /* the other side may not know it: BROKEN is sent once more, ten times a second at most */
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_BROKEN );
        sender_tick( m, 5.0 + 0.2 * i, &seen );
        CHECK( seen.count == 1 && seen.frames[0].type == 0x37 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_BROKEN );
        sender_silence( m, 5.15 + 0.2 * i );
    }
    CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 ), NETCODE_MESSAGES_BROKEN );
    CHECK_EQ( m->stats.messages_expired, 0 ); /* nothing is dropped meanwhile */
    netcode_messages_reset( m, 6.0 );
    CHECK_EQ( sender_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( sender_event( m ), 20 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( sender_event( m ), 0 );
    CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, "a", 1 ), NETCODE_OK );
    sender_tick( m, 6.0, &seen );
    CHECK( seen.number == 0 && seen_count( &seen, 0, 0 ) == 1 );
    sender_close( m );
}
