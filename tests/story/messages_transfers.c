/*  Story: transfers of messages. Large ones in parts, beside each other and beside small ones; what parts must agree in, what is
    said twice, and the credit that all this takes. Run: runner messages_transfers.c */

/* ---- transfers ---- */

/* Which transfer the next part on the wire belongs to: its bytes. */
static int sender_part( struct netcode_messages_t * m )
{
    struct seen_t seen;
    if ( seen_next( &seen, m ) == 0 )
        return 0;
    CHECK( seen.count == 1 && seen.frames[0].type == 1 );
    return seen.frames[0].bytes;
}

/*  The better priority goes first, also before what is in progress; those of one channel one behind the other, those of
    equal channels side by side, a small one first. */
TEST( messages_transfers_by_priority )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    static const int expected[] = { 4001, 3002, 3002, 3002, 2000, 2000, 2500, 2500, 2500,
                                    4001, 4001, 4001, 5003, 5003, 5003, 5003, 5003, 0 };
    sender_send( m, 2, NETCODE_MESSAGE_RELIABLE, 4001, 0.0, 0 );
    sender_send( m, 3, NETCODE_MESSAGE_RELIABLE, 5003, 0.0, 0 );
    netcode_messages_update( m, 0.0 );
    for ( int i = 0; i < 18; i++ ) {
        if ( i == 1 ) {
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3002, 0.0, 0 );
            sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 2000, 0.0, 0 );
            sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 2500, 0.0, 0 );
        }
        CHECK_EQ( sender_part( m ), expected[i] );
        messages_check( m );
    }
    sender_close( m );
}

/* What leaves is taken off what may leave: anything that asks for an ack, but an ack alone is not. */
TEST( messages_what_leaves_is_taken_off )
{
    static const int bytes[] = { 1500, 300, 0 };
    for ( int i = 0; i < 3; i++ ) {
        struct netcode_messages_t * m = sender_open( 16, 0, 0 );
        struct seen_t seen;
        netcode_messages_update( m, 0.5 );
        m->paced = m->urgent = 2000.0;
        if ( bytes[i] )
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes[i], 0.0, 0 );
        else
            m->acks_due = 2;
        int left = seen_next( &seen, m );
        REQUIRE( left > 0 );
        CHECK_NEAR( m->paced, bytes[i] ? 2000.0 - left : 2000.0, 1e-9 );
        CHECK_NEAR( m->urgent, 2000.0 - ( i == 0 ? 1168.0 : i == 1 ? 300.0 : 0.0 ), 1e-9 );
        CHECK_NEAR( m->in_flight, bytes[i] ? left : 0.0, 1e-9 );
        sender_close( m );
    }
}

/* A lost part goes before the next one. */
TEST( messages_lost_parts_go_first )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    struct seen_t seen;
    static const int expected[] = { 1, 2, 3, 4, 5, 6 };
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 8000, 0.0, 6 );
    netcode_messages_update( m, 0.0 );
    for ( int i = 0; i < 3; i++ )
        CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].index == i );
    sender_lose( m, 1 );
    sender_lose( m, 2 );
    CHECK_EQ( m->stats.reliable_retries_total, 0 );
    for ( int i = 0; i < 6; i++ ) {
        CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].index == expected[i] );
        CHECK_EQ( m->stats.reliable_retries_total, i < 2 ? i + 1 : 2 );
        messages_check( m );
    }
    CHECK_EQ( seen_next( &seen, m ), 0 );
    sender_acks( m, 8, 0x9f ); /* 1 and 2 are missing, and were sent again in 3 and 4 */
    CHECK_EQ( sender_event( m ), 60 + NETCODE_MESSAGES_EVENT_ACKED );
    CHECK_EQ( m->out.used, 0 );
    sender_close( m );
}

/* A part may be lost as often as max_retries says; once more, and all of it is given up. */
TEST( messages_parts_are_given_up )
{
    static const int limits[] = { 1, 2, 60 };
    for ( int way = 0; way < 3; way++ ) {
        int retries = limits[way];
        struct netcode_messages_t * m = sender_open( 256, 2, retries );
        struct seen_t seen;
        int last = 0;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1500, 0.0, 8 );
        CHECK_EQ( messages_drain( m, 0.0 ), 2 );
        for ( int i = 0; i < retries; i++ ) {
            sender_lose( m, i ? (uint32_t) last : 1 );
            sender_tick( m, 0.0001 * i, &seen );
            CHECK( seen.count == 1 && seen.frames[0].type == 1 && seen.frames[0].index == 1 );
            CHECK_EQ( sender_event( m ), 0 );
            last = seen.number;
        }
        CHECK_EQ( m->stats.reliable_retries_total, retries );
        sender_lose( m, (uint32_t) last );
        CHECK_EQ( sender_event( m ), 80 + NETCODE_MESSAGES_EVENT_LOST );
        sender_tick( m, 0.1, &seen );
        CHECK( seen.count == 1 && seen_count( &seen, 0x27, 0 ) == 1 );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        sender_close( m );
    }
}

/* Without a limit it goes on for ever, in parts and in a piece, far beyond what is counted of one message. */
TEST( messages_nothing_is_given_up_for_losses )
{
    for ( int bytes = 300; bytes <= 1500; bytes += 1200 ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 8 );
        messages_drain( m, 0.0 );
        uint32_t last = (uint32_t) messages_newest( m );
        if ( bytes > 1180 )
            sender_acks( m, 0, 0 );
        for ( int i = 0; i < 300; i++ ) {
            sender_lose( m, last );
            sender_tick( m, 0.0001 * i, &seen );
            CHECK( seen.count == 1 && seen.frames[0].bytes == bytes );
            last = (uint32_t) seen.number;
        }
        CHECK_EQ( m->stats.reliable_retries_total, 300 );
        sender_acks( m, (int) last, 0 );
        while ( sender_event( m ) == 80 + NETCODE_MESSAGES_EVENT_PROGRESS )
            ;
        CHECK( m->reliable.count == 0 && messages_begun( m ) == 0 );
        netcode_messages_destroy( m );
    }
}

/* How much of it is there: whole parts, and the last one as long as it is. */
TEST( messages_progress_in_bytes )
{
    for ( int last_first = 0; last_first < 2; last_first++ ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct netcode_messages_event_t event;
        static const int in_order[] = { 1168, 2336, 3000 }, from_behind[] = { 664, 1832, 3000 };
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 6 );
        CHECK_EQ( messages_drain( m, 0.0 ), 3 );
        m->reorder_seconds = 1e9;
        for ( int i = 0; i < 3; i++ ) {
            sender_acks( m, last_first ? 2 - i : i, 0 );
            REQUIRE( netcode_messages_event( m, &event ) );
            CHECK_EQ( event.type, i < 2 ? NETCODE_MESSAGES_EVENT_PROGRESS : NETCODE_MESSAGES_EVENT_ACKED );
            CHECK( event.bytes == 3000 && event.receipt == 6 && event.kind == NETCODE_MESSAGE_RELIABLE );
            CHECK_EQ( event.bytes_done, last_first ? from_behind[i] : in_order[i] );
        }
        sender_close( m );
    }
}

/*  An ordered message in parts does not arrive. Those behind it on its channel go on for 4095 more, those on another
    channel without end, and those without order even then. One fragment of it was acknowledged, so that its id keeps none waiting. */
TEST( messages_ordered_ones_do_not_run_away_from_a_transfer )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_t * m = sender_open( 4096, 2, 0 );
        int channel = way == 1, kind = way == 2 ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_RELIABLE_ORDERED;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 1500, 0.0, 0 );
        messages_drain( m, 0.0 );
        sender_acks( m, 0, 0 );
        for ( int i = 1; i <= 4200; i += 2 ) { /* two in a packet, or it would be the window that ends it */
            for ( int k = i; k < i + 2; k++ )
                sender_send( m, channel, k < 4096 ? NETCODE_MESSAGE_RELIABLE_ORDERED : kind, 1, 0.0, 0 );
            messages_drain( m, 0.0001 * i );
            m->reorder_seconds = 1e9;
            m->stats.rtt = 10.0;
            struct craft_t craft; /* all but those with a part: they have numbers that are in flight for ever */
            craft_begin( &craft, m->newest_received + 1, messages_newest( m ), 0 );
            craft.data[0] = 0x13;
            if ( m->next_number > 2 )
                CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
            if ( m->stats.messages_sent < (uint64_t) i )
                break;
        }
        CHECK_EQ( messages_begun( m ), 1 );
        CHECK_EQ( m->stats.messages_sent, way == 0 ? 4096 : 4201 );
        sender_close( m );
    }
}

/* Of two messages that were queued at once, one is sent in full before the next begins: else a sequenced one would outdate it. */
TEST( messages_one_goes_on_before_the_next_begins )
{
    for ( int bytes = 2000; bytes <= 6000; bytes += 4000 ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct seen_t seen;
        int before = 0;
        for ( int i = 0; i < 3; i++ )
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_SEQUENCED, bytes, 0.0, 0 );
        netcode_messages_update( m, 0.0 );
        while ( seen_next( &seen, m ) > 0 ) {
            CHECK_GE( seen.frames[0].id, before );
            before = seen.frames[0].id;
        }
        CHECK_EQ( before, 2 );
        sender_close( m );
    }
}

/* One ordered message in fragments is always in flight: 4,096 orders later nothing waits. */
TEST( messages_guarantee_no_pause_after_4096_orders )
{
    struct link_t link;
    link_open( &link, NULL, 1, 0.1, 0.0 );
    for ( int tick = 0; tick < 400; tick++ ) {
        for ( int k = 0; k < 30; k++ )
            CHECK_EQ( netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data,
                                             k ? 24 : 2000 ),
                      NETCODE_OK );
        link_tick( &link );
        messages_read( link.ends[1] );
        if ( tick > 60 )
            CHECK_LE( link.ends[0]->channels[0].queues[NC_QUEUE_IN_ORDER].count, 0 );
    }
    CHECK_GT( link.ends[0]->channels[0].next_order, 11000 );
    link_close( &link );
}

/*  A message in fragments of which one was acknowledged does not keep others waiting, however far they are ahead. Their ids run over
    and leave out those of all that is in flight. */
TEST( messages_ids_leave_out_those_in_flight )
{
    struct netcode_messages_t * m = sender_open( 4096, 2, 0 );
    uint32_t last = 57999;
    for ( int i = 0; i < 3; i++ )
        sender_send( m, i, NETCODE_MESSAGE_RELIABLE_ORDERED, 1500, 0.0, 0 );
    CHECK_EQ( messages_drain( m, 0.0 ), 6 );
    m->reorder_seconds = m->stats.rtt = 1e9;
    sender_acks( m, 4, 0x0a ); /* the first fragment of each; the others are in flight until the end */
    m->next_id = m->oldest_id = 58000;
    for ( int i = 0; i < 9000; i += 50 ) {
        m->credit_limit = m->credit_spent + 10000;
        for ( int k = 0; k < 50; k++ )
            sender_send( m, 3, NETCODE_MESSAGE_RELIABLE, 1, 0.0, 0 );
        messages_drain( m, 1e-6 * i );
        for ( uint32_t at = m->reliable.head; at; at = nc_message_at( m, at )->next )
            if ( !nc_message_at( m, at )->fragments )
                CHECK_EQ( nc_message_at( m, at )->node.key, last = last == 0xffff ? 3 : last + 1 );
        sender_acks( m, (int) messages_newest( m ), 0 );
    }
    CHECK( messages_begun( m ) == 3 && last < 10000 );
    while ( m->next_id % NC_MESSAGES_IDS > 2 || m->next_id % NC_MESSAGES_IDS == 0 )
        nc_bit_set( m->known_ids, m->next_id++, NC_MESSAGES_IDS, 1 );
    sender_send( m, 3, NETCODE_MESSAGE_RELIABLE, 1, 0.0, 0 );
    messages_drain( m, 0.1 );
    nc_sent_acked( m, nc_sent_at( m, 3 ) ); /* the transfer's end says nothing of the one in its id's place */
    CHECK_EQ( messages_begun( m ), 2 );
    sender_close( m );
}

/*  A message in fragments is over, and 65,535 ids have passed since it began. A fragment of it that was sent twice, and a CANCEL, come
    late: they begin nothing, for the id is also that of the next message. */
TEST( messages_late_fragments_begin_nothing )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    struct craft_t craft;
    int64_t number = 0;
    messages_drain( m, 0.0 );
    craft_begin( &craft, number++, -1, 0 );
    craft_fragment( &craft, 2, 0, 0, 0, flow_data, 2000, 0 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    for ( int id = 1; id < 65536; id += 100 ) {
        m->credit_granted = m->credit_received + 20000;
        craft_begin( &craft, number++, -1, 0 );
        for ( int k = id; k < id + 100 && k < 65536; k++ )
            craft_message( &craft, 2, 0, k, 0, "x", 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        messages_read( m );
    }
    for ( int i = 0; i < 4; i++ ) { /* the last fragment; once more; a CANCEL; the next message */
        craft_begin( &craft, number++, -1, 0 );
        uint8_t * frame = craft.at;
        if ( i < 2 ) {
            craft_fragment( &craft, 2, 0, 0, 0, flow_data, 2000, 1 );
            *frame |= 0x20;
        } else if ( i == 2 ) {
            craft_cancel( &craft, 0, 0 );
            craft.at = frame + 3;
            put( &craft.at, 0, 1 );
        } else
            craft_message( &craft, 2, 0, 0, 0, "next", 4 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( messages_read( m ), i == 0 || i == 3 );
        CHECK_EQ( m->partial, 0 );
        CHECK_EQ( m->newest_id, i < 3 ? 65535 : 65536 );
    }
    sender_close( m );
}

/* All frames after the first ack of a part are marked. */
TEST( messages_known_ones_are_sent_as_such )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 9 );
    netcode_messages_update( m, 0.0 );
    for ( int i = 0; i < 3; i++ ) {
        CHECK_GT( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ), 0 );
        CHECK_EQ( packet[9 + 2 * ( packet[0] >> 5 & 1 )], i ? 0x2a : 0x0a );
        if ( i == 0 )
            sender_acks( m, 0, 0 );
    }
    nc_message_give_up( m, m->begun );
    netcode_messages_update( m, 0.01 );
    struct seen_t seen;
    CHECK( seen_next( &seen, m ) > 0 && seen_count( &seen, 0x27, 0 ) == 1 && seen.frames[seen.count - 1].bytes == 0 );
    sender_close( m );
}

/* ---- sequenced and in parts ---- */

/* Two large sequenced ones, begun one behind the other before anything else was: in order both count, else the newer. */
TEST( messages_large_sequenced_ones_in_order )
{
    static const int orders[][2] = { { 0, 1 }, { 1, 0 } };
    for ( int way = 0; way < 2; way++ ) {
        struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
        struct craft_t craft;
        messages_drain( m, 0.01 );
        for ( int i = 0; i < 4; i++ ) {
            craft_begin( &craft, i, -1, 0 );
            craft_fragment( &craft, 4, 0, orders[way][i / 2], 0, flow_data, 1300, i & 1 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        CHECK_EQ( messages_read( m ), 2 - way );
        CHECK_EQ( m->stats.messages_outdated, way );
        craft_begin( &craft, 4, -1, 0 ); /* one in a piece, begun behind them, is newer than both */
        craft_message( &craft, 4, 0, 3, 0, flow_data, 5 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        for ( int i = 0; i < 2; i++ ) { /* and one in parts that says it was begun before that one is not */
            craft_begin( &craft, 5 + i, -1, 0 );
            craft_fragment( &craft, 4, 0, 2, 2, flow_data, 1300, i & 1 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        struct netcode_message_t message;
        CHECK( netcode_messages_receive( m, &message ) && message.bytes == 5 );
        CHECK_EQ( messages_read( m ), 0 );
        CHECK_EQ( m->stats.messages_outdated, way + 1 );
        sender_close( m );
    }
}

/* ---- parts that do not fit to each other ---- */

/*  All parts of a message are of one kind, channel, order and length; whichever of these is another one, it is
    malformed. */
TEST( messages_parts_of_one_shape )
{
    static const struct {
        int kind, channel, order, bytes, good;
    } rows[] = { { 3, 1, 0, 2337, 1 },
                 { 4, 1, 0, 2337, 0 },
                 { 3, 2, 0, 2337, 0 },
                 { 3, 1, 1, 2337, 0 },
                 { 3, 1, 0, 2338, 0 } };
    for ( int i = 0; i < 5; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t craft;
        messages_drain( m, 0.0 );
        craft_begin( &craft, 0, -1, 0 );
        craft_fragment( &craft, 3, 1, 7, 0, flow_data, 2337, 2 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        craft_begin( &craft, 1, -1, 0 );
        craft_fragment( &craft, rows[i].kind, rows[i].channel, 7, rows[i].order, flow_data, rows[i].bytes, 0 );
        CHECK_EQ( craft_give( &craft, m ), rows[i].good ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_FRAGMENT );
        CHECK_GT( m->in.used, 0 );
        sender_close( m );
    }
}

/* ---- said twice, and one behind the other ---- */

/* What came before is counted and changes nothing: parts, orders under another id, cancelled messages. */
TEST( messages_said_twice )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    messages_drain( m, 0.0 );
    for ( int i = 0; i < 3; i++ ) {
        craft_begin( &craft, 3 * i, -1, 0 );
        craft_fragment( &craft, 2, 0, 0, 0, flow_data, 2100, 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->stats.messages_duplicate, i < 1 ? 0 : 2 * i - 1 );
        craft_begin( &craft, 3 * i + 1, -1, 0 );
        craft_message( &craft, 3, 1, 20 + i, 2, "abc", 3 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->stats.messages_duplicate, 2 * i );
        craft_begin( &craft, 3 * i + 2, -1, 0 );
        craft_cancel( &craft, 9, 5 );
        craft_cancel( &craft, 9, 1500 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->credit_received - m->credit_released, 2100 + 3 + 2 * 80 + 1 );
        messages_check( m );
    }
    CHECK_EQ( m->stats.messages_duplicate, 4 );
    sender_close( m );
}

/* The same message twice in one packet, and once more in the next: handed over once, counted twice. */
TEST( messages_twice_in_one_packet )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct netcode_message_t message;
    struct craft_t craft;
    for ( int i = 0; i < 2; i++ ) {
        craft_begin( &craft, i, -1, 0 );
        craft_message( &craft, NETCODE_MESSAGE_RELIABLE, 0, 0, 0, "once", 4 );
        if ( i == 0 )
            craft_message( &craft, NETCODE_MESSAGE_RELIABLE, 0, 0, 0, "once", 4 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( netcode_messages_receive( m, &message ), i == 0 );
        CHECK_EQ( m->stats.messages_duplicate, 1 + i );
    }
    CHECK_EQ( netcode_messages_receive( m, &message ), 0 );
    sender_close( m );
}

/* Sequenced ones of one packet are all as new as it is; of the next packet's only what is not behind them. */
TEST( messages_sequenced_ones_of_one_packet )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct netcode_message_t message;
    struct craft_t craft;
    for ( int packet = 2; packet >= 1; packet-- ) {
        craft_begin( &craft, packet, -1, 0 );
        for ( int i = 0; i < 3; i++ )
            craft_message( &craft, 1, 1 + i / 2, 0, 0, &"abc"[i], 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    }
    for ( int i = 0; i < 3; i++ )
        CHECK( netcode_messages_receive( m, &message ) && message.data[0] == "abc"[i] && message.channel == 1 + i / 2 );
    CHECK_EQ( messages_read( m ), 0 );
    CHECK_EQ( m->stats.messages_outdated, 3 );
    sender_close( m );
}

/* ---- credit ---- */

/* The last byte of credit may be used: a message costs its length and 80, and one for eight fragments. */
TEST( messages_credit_to_the_last_byte )
{
    for ( int bytes = 200; bytes <= 2000; bytes += 1800 )
        for ( int off = -1; off <= 1; off++ ) {
            struct netcode_messages_t * m = sender_open( 16, 1, 0 );
            int cost = bytes + ( bytes > 1180 ? 81 : 80 );
            m->credit_spent = UINT32_MAX - 100;
            m->credit_limit = m->credit_spent + (uint32_t) ( cost + off );
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 0 );
            messages_drain( m, 0.0 );
            CHECK_EQ( m->stats.messages_sent, off >= 0 );
            struct netcode_messages_stats_t stats;
            netcode_messages_stats( m, &stats );
            CHECK_EQ( (int) stats.credit, off >= 0 ? off : cost - 1 );
            sender_close( m );
        }
}

/* Nothing in parts is begun before the other side has said how much it takes. */
TEST( messages_transfers_wait_for_the_first_limit )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct craft_t craft;
    m->peer_max_bytes = 0;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1181, 0.0, 0 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1180, 0.0, 0 );
    sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 1180, 0.0, 0 );
    messages_drain( m, 0.0 );
    CHECK_EQ( m->stats.messages_sent, 2 );
    craft_begin( &craft, 0, -1, 0 );
    craft_limit( &craft, m->credit_limit + 1, 1181 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    messages_drain( m, 0.001 );
    CHECK_EQ( m->stats.messages_sent, 3 );
    sender_close( m );
}

/*  A LIMIT leaves when a quarter of the window is free again, sooner where the largest message would have to wait, and
    once more where its packet is lost. */
TEST( messages_limits_leave_in_time )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    CHECK_EQ( m->credit_window, 24576 );
    for ( int round = 0; round < 3; round++ ) {
        m->credit_received = m->credit_released += 6143;
        sender_silence( m, round );
        m->credit_received = m->credit_released += 1;
        sender_tick( m, round + 0.1, &seen );
        CHECK( seen.count == 1 && seen.asks && seen.frames[0].type == 0x1f );
        CHECK_EQ( seen.frames[0].value, 24576 + 6144 * ( (uint32_t) round + 1 ) );
        CHECK_EQ( seen.frames[0].bytes, 8192 );
        CHECK_EQ( m->credit_granted, seen.frames[0].value );
        sender_lose( m, (uint32_t) seen.number );
        sender_tick( m, round + 0.2, &seen );
        CHECK( seen.count == 1 && seen.frames[0].type == 0x1f );
        sender_acks( m, seen.number, 0 );
    }
    sender_close( m );
    m = sender_open( 16, 1, 0 );
    m->max_receive_bytes = 24576 - 83 - 100;
    m->credit_received = m->credit_released = 99;
    sender_silence( m, 0.0 );
    m->credit_received = m->credit_released = 100;
    sender_tick( m, 0.1, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x1f );
    netcode_messages_destroy( m );
}

/*  A stream without an end, and what is large and begun later on other channels: it is there in three times the time that it would
    need alone, by weight, and does not wait for the stream. One on the stream's own channel does, unless it is small. */
TEST( messages_large_ones_do_not_wait_for_a_stream )
{
    struct netcode_messages_config_t config = stream_config();
    struct netcode_message_t message;
    struct link_t link;
    int came[4] = { 0, 0, 0, 0 };
    config.weights[2] = 3;
    link_open( &link, &config, 1, 0.02, 0.0 );
    struct netcode_messages_stream_t stream = stream_of( 1, 0, UINT32_MAX );
    link.ends[0]->config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    link.ends[0]->fixed_rate = 120000.0;
    CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    for ( int i = 0; i < 420; i++ ) {
        if ( i >= 60 && link.ends[0]->channels[1].queues[NC_QUEUE_LARGE].count == 0 )
            netcode_messages_send( link.ends[0], 1, NETCODE_MESSAGE_RELIABLE, flow_data, 4673 );
        if ( i >= 60 && link.ends[0]->channels[2].queues[NC_QUEUE_LARGE].count == 0 )
            netcode_messages_send( link.ends[0], 2, NETCODE_MESSAGE_RELIABLE, flow_data, 4673 );
        for ( int bytes = 1181; i == 60 && bytes <= 4673; bytes += 1746 )
            netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, bytes );
        link_tick( &link );
        while ( netcode_messages_receive( link.ends[1], &message ) )
            came[message.channel]++;
    }
    CHECK_NEAR( came[1], 29, 4 ); /* six seconds: 720 kB, a fifth and three fifths of it, of 5 kB each, and overhead */
    CHECK_NEAR( came[2], 87, 9 );
    CHECK_EQ( came[0], 2 );
    link_close( &link );
}

/* A packet remembers one fragment: behind a short last one there is space for another, which leaves in the next packet. */
TEST( messages_one_fragment_in_a_packet )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    struct seen_t seen;
    int fragments = 0;
    for ( int i = 0; i < 4; i++ )
        sender_send( m, i & 1, NETCODE_MESSAGE_RELIABLE, ( i < 2 ? 2 : 5 ) * NETCODE_MESSAGES_FRAGMENT_BYTES + 1, 0.0,
                     0 );
    netcode_messages_update( m, 0.0 );
    while ( seen_next( &seen, m ) > 0 ) {
        CHECK_LE( seen_count( &seen, 1, -1 ), 1 );
        fragments += seen_count( &seen, 1, -1 );
    }
    CHECK_EQ( fragments, 2 * 3 + 2 * 6 );
    sender_close( m );
}

/* Of two on a channel the older goes first; but one of a few fragments before larger ones. */
TEST( messages_the_older_transfer_of_a_channel )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1501, 0.0, 0 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1502, 0.0, 0 );
    CHECK_EQ( messages_drain( m, 0.0 ), 4 );
    sender_acks( m, 1, 1 ); /* the first is there */
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 5000, 0.0, 0 );
    netcode_messages_update( m, 0.001 );
    CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == 5000 && seen.frames[0].id == 2 );
    sender_lose( m, 3 );
    CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == 1502 && seen.frames[0].index == 1 );
    CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == 5000 && seen.frames[0].index == 1 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1503, 0.0, 0 );
    for ( int i = 0; i < 3; i++ )
        CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == ( i < 2 ? 1503 : 5000 ) );
    sender_close( m );
}
