/*  Story: losses of messages. What is lost, repeated, given up, cancelled and acknowledged at once, and the probes that
    ask whether a peer is there; each with what is then on the wire. Run: runner messages_losses.c */

static struct netcode_messages_t * sender_open( int window, int congestion, int max_retries )
{
    struct netcode_messages_config_t config = *small_config();
    config.window_packets = window;
    config.congestion = congestion;
    config.max_retries = max_retries;
    config.ping_seconds = -1.0;
    config.priorities[1] = 1;
    config.priorities[2] = 2;
    config.priorities[3] = 2;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    REQUIRE( m != NULL );
    m->limit_due = 0; /* it was heard, and so was the other side's */
    m->credit_granted = m->credit_window;
    m->credit_limit = 1u << 24;
    m->peer_max_bytes = 8192;
    return m;
}

static void sender_close( struct netcode_messages_t * m )
{
    messages_check( m );
    netcode_messages_destroy( m );
}

/* A tick; the one packet that leaves. */
static void sender_tick( struct netcode_messages_t * m, double time, struct seen_t * seen )
{
    struct seen_t none;
    netcode_messages_update( m, time );
    messages_check( m );
    REQUIRE( seen_next( seen, m ) > 0 );
    CHECK_EQ( seen_next( &none, m ), 0 );
    messages_check( m );
}

static void sender_silence( struct netcode_messages_t * m, double time )
{
    netcode_messages_update( m, time );
    m->probe_due = 0;
    struct seen_t none;
    CHECK_EQ( seen_next( &none, m ), 0 );
    messages_check( m );
}

/* The other side says what it has heard of. */
static void sender_acks( struct netcode_messages_t * m, int ack, uint32_t bits )
{
    struct craft_t craft;
    craft_begin( &craft, m->newest_received + 1, ack, bits );
    craft.data[0] = 0x13;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    messages_check( m );
}

/* The next event: its type, and its receipt times ten. */
static int sender_event( struct netcode_messages_t * m )
{
    struct netcode_messages_event_t event;
    return netcode_messages_event( m, &event ) ? event.type + 10 * (int) event.receipt : 0;
}

/* A packet is called lost, unless it is already. */
static void sender_lose( struct netcode_messages_t * m, uint32_t number )
{
    for ( uint32_t i = m->sent_first; i != m->sent_end; i++ )
        if ( nc_sent_at( m, i )->number == number && nc_sent_at( m, i )->flags & NC_SENT_IN_FLIGHT )
            nc_sent_lost( m, nc_sent_at( m, i ) );
    messages_check( m );
}

/* ---- lost, and then something else ---- */

/* It is lost, the rate does not let it go once more, and its time is over: a CANCEL leaves in its place, once. */
TEST( messages_lost_and_outlived )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, way == 2 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 1.0, 7 );
        sender_tick( m, 0.0, &seen );
        if ( way < 2 )
            sender_lose( m, 0 );
        messages_hold( m );
        sender_silence( m, 0.9 );
        CHECK_EQ( sender_event( m ), 0 );
        sender_silence( m, 1.0 );
        CHECK_EQ( sender_event( m ), 70 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        messages_let_go( m );
        if ( way == 1 ) /* its packet is acknowledged when that is forgotten: it stays cancelled */
            sender_acks( m, 0, 0 );
        if ( way == 2 ) /* only now its packet is lost: that changes nothing */
            sender_lose( m, 0 );
        CHECK_EQ( sender_event( m ), 0 );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        sender_tick( m, 1.1, &seen );
        CHECK( seen_count( &seen, 0x27, 0 ) == 1 && seen.count == 1 && seen.frames[0].bytes == 280 );
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        CHECK( m->out.used > 0 );
        sender_acks( m, 1, 0 );
        CHECK_EQ( sender_event( m ), 0 );
        sender_silence( m, 2.0 );
        CHECK_EQ( m->out.used, 0 );
        sender_close( m );
    }
}

/*  Two are given up while their packets are in flight. The first packet is heard before a CANCEL could leave: SPURIOUS,
    and only the other one is cancelled. */
TEST( messages_given_up_and_heard )
{
    for ( int reported = 0; reported < 2; reported++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        m->stats.rtt = 0.5;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.2, 1 );
        sender_tick( m, 0.0, &seen );
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 201, 0.19, 2 );
        sender_tick( m, 0.01, &seen );
        messages_hold( m );
        sender_silence( m, 0.2 );
        if ( reported ) {
            CHECK_EQ( sender_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
            CHECK_EQ( sender_event( m ), 20 + NETCODE_MESSAGES_EVENT_LOST );
        }
        sender_acks( m, 0, 0 );
        CHECK_EQ( sender_event( m ),
                  10 + ( reported ? NETCODE_MESSAGES_EVENT_SPURIOUS : NETCODE_MESSAGES_EVENT_ACKED ) );
        messages_let_go( m );
        sender_tick( m, 0.21, &seen );
        CHECK( seen_count( &seen, 0x27, 1 ) == 1 && seen.count == 1 );
        sender_acks( m, 2, 0 );
        CHECK_EQ( sender_event( m ), reported ? 0 : 20 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK( m->reliable.head == 0 && m->active[NC_QUEUE_LOST] == 0 );
        sender_lose( m, 1 ); /* its first packet holds it until that is settled and forgotten */
        sender_silence( m, 2.0 );
        CHECK_EQ( m->out.used, 0 );
        sender_close( m );
    }
}

/* The CANCEL is lost as well: it is sent until it is heard, and counts once, whatever max_retries says. */
TEST( messages_a_cancel_that_is_lost )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 1 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 5 );
    sender_tick( m, 0.0, &seen );
    for ( uint32_t i = 0; i < 6; i++ ) {
        sender_lose( m, i );
        sender_tick( m, 0.01 * ( i + 1 ), &seen );
        CHECK_EQ( seen_count( &seen, i < 1 ? 0 : 0x27, 0 ), 1 );
        CHECK_EQ( seen.count, 1 );
        CHECK_EQ( sender_event( m ), i == 1 ? 50 + NETCODE_MESSAGES_EVENT_LOST : 0 );
    }
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 1 );
    sender_acks( m, 6, 0 );
    CHECK_EQ( m->reliable.head, 0 );
    sender_silence( m, 1.0 ); /* the packets that were lost are forgotten */
    CHECK_EQ( m->out.used, 0 );
    CHECK_EQ( sender_event( m ), 0 );
    sender_close( m );
}

/* Room is always found before; a call without that returns that there is none. */
TEST( messages_a_buffer_without_room )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    nc_frame_t frame;
    memset( &frame, 0, sizeof( frame ) );
    frame.bytes = 100;
    while ( nc_heap_take( &m->in, 100 ) )
        ;
    CHECK_EQ( nc_arrived_make( m, &frame, 0 ), 0 );
    netcode_messages_destroy( m );
}

/* One that was cancelled is not repeated in the flights behind it, as small ones are. */
TEST( messages_what_was_taken_back_is_not_repeated )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.005, 0 );
    sender_tick( m, 0.0, &seen );
    sender_tick( m, 0.01, &seen );
    CHECK( seen_count( &seen, 0x27, 0 ) == 1 && seen.count == 1 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    sender_tick( m, 0.02, &seen );
    CHECK_EQ( seen_count( &seen, 0, 1 ), 1 );
    CHECK_EQ( seen_count( &seen, 0, 0 ), 0 );
    sender_close( m );
}

/*  The first in the list was cancelled and not heard of: those behind it have their time too, whole ones and large
    ones. */
TEST( messages_each_has_its_own_time )
{
    static const int lives[] = { 1, 3, 2 };
    for ( int bytes = 200; bytes <= 4200; bytes += 4000 ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        for ( int i = 0; i < 3; i++ )
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0625 * lives[i], (uint64_t) lives[i] );
        messages_drain( m, 0.0 );
        for ( int i = 1; i <= 3; i++ ) {
            messages_drain( m, 0.0625 * i - 0.001 );
            CHECK_EQ( sender_event( m ), 0 );
            CHECK( m->next_expiry <= 0.0625 * i );
            messages_drain( m, 0.0625 * i );
            CHECK_EQ( sender_event( m ), 10 * i + NETCODE_MESSAGES_EVENT_LOST );
            messages_check( m );
        }
        CHECK_EQ( m->stats.reliable_timeouts_total, 3 );
        CHECK( m->next_expiry > 1e299 );
        sender_close( m );
    }
}

/* A reset while something waits to be sent again: it is LOST, and nothing of it is left. */
TEST( messages_reset_with_something_lost )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 5 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    sender_lose( m, 0 );
    CHECK_EQ( m->channels[0].queues[NC_QUEUE_LOST].count, 2 );
    netcode_messages_reset( m, 1.0 );
    messages_check( m );
    CHECK( m->active[NC_QUEUE_LOST] == 0 && m->reliable.head == 0 );
    CHECK_EQ( sender_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( sender_event( m ), 0 );
    CHECK_EQ( m->out.used, 0 );
    sender_close( m );
}

/* A reset while something waits in every queue: what is to be reported of it is reported, each once. */
TEST( messages_reset_with_full_queues )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    int reported[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    for ( int i = 0; i < 8; i++ )
        sender_send( m, i / 2, i & 1 ? NETCODE_MESSAGE_RELIABLE_ORDERED : NETCODE_MESSAGE_UNRELIABLE, 9, 0.0,
                     1 + (uint64_t) i );
    netcode_messages_reset( m, 1.0 );
    for ( int event; ( event = sender_event( m ) ) != 0; ) {
        REQUIRE( event / 10 >= 1 && event / 10 <= 8 && event % 10 == NETCODE_MESSAGES_EVENT_LOST );
        reported[event / 10 - 1]++;
    }
    for ( int i = 0; i < 8; i++ )
        CHECK_EQ( reported[i], 1 );
    CHECK( m->out.used == 0 && m->active[0] == 0 && m->active[1] == 0 );
    sender_close( m );
}

/* Given up, and not read of before the reset: it is LOST, as it was. */
TEST( messages_reset_with_something_given_up )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.5, 5 );
    sender_tick( m, 0.0, &seen );
    messages_hold( m );
    sender_silence( m, 0.5 );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    netcode_messages_reset( m, 1.0 );
    CHECK_EQ( sender_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( sender_event( m ), 0 );
    CHECK_EQ( m->out.used, 0 );
    sender_close( m );
}

/* Two messages in a lost packet, one of them reported LOST: its copy is kept for a late ack, the other's is not. */
TEST( messages_copies_of_a_lost_packet )
{
    for ( int first = 0; first < 2; first++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        for ( int i = 0; i < 2; i++ )
            if ( i == first )
                sender_send( m, i, NETCODE_MESSAGE_UNRELIABLE, 200, 0.0, 4 );
            else
                sender_send( m, i, NETCODE_MESSAGE_RELIABLE, 300, 0.0, 0 );
        sender_tick( m, 0.0, &seen );
        uint32_t both = m->out.used;
        sender_lose( m, 0 );
        CHECK_EQ( sender_event( m ), 40 + NETCODE_MESSAGES_EVENT_LOST );
        sender_tick( m, 0.01, &seen );
        CHECK( seen.count == 1 && seen.frames[0].bytes == 300 );
        sender_acks( m, 1, 0 );
        CHECK( m->out.used > 0 && m->out.used < both );
        CHECK_EQ( heap_blocks( &m->out ), 1 );
        sender_acks( m, 1, 1 ); /* it comes late */
        CHECK_EQ( sender_event( m ), 40 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK_EQ( m->stats.packets_lost_spuriously, 1 );
        CHECK_EQ( m->out.used, 0 );
        CHECK_EQ( m->sent_first, m->sent_end );
        sender_close( m );
    }
}

/*  For a second no ack gets through, while much is sent whose arrival is reported: nothing of it is said to be lost, because the
    first ack that arrives has all. */
TEST( messages_a_second_without_acks )
{
    struct netcode_messages_t * ends[2];
    struct netcode_messages_event_t event;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct netcode_messages_config_t config = *small_config();
    int acked = 0, lost = 0, bytes;
    config.window_packets = 1024;
    config.send_buffer_bytes = 1 << 20;
    for ( int i = 0; i < 2; i++ )
        ends[i] = netcode_messages_create( &config, 0.0 );
    for ( int tick = 0; tick < 300; tick++ ) {
        double now = tick / 60.0;
        for ( int i = 0; i < 4 && tick < 240; i++ )
            sender_send( ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, 600, 0.0, 1 );
        for ( int from = 0; from < 2; from++ ) {
            netcode_messages_update( ends[from], now );
            netcode_messages_flush( ends[from] );
            while ( ( bytes = netcode_messages_generate_packet( ends[from], packet, (int) sizeof( packet ) ) ) > 0 )
                if ( from == 0 || tick < 120 || tick >= 180 )
                    netcode_messages_process_packet( ends[1 - from], packet, bytes );
        }
        messages_read( ends[1] );
        while ( netcode_messages_event( ends[0], &event ) ) {
            acked += event.type == NETCODE_MESSAGES_EVENT_ACKED;
            lost += event.type == NETCODE_MESSAGES_EVENT_LOST;
        }
    }
    CHECK_EQ( lost, 0 );
    CHECK_EQ( acked, 4 * 240 );
    for ( int i = 0; i < 2; i++ )
        netcode_messages_destroy( ends[i] );
}

/* The ack of a lost packet counts for three round trips, half a second at least; later it is too late. */
TEST( messages_late_acks )
{
    static const struct {
        double rtt, late;
        int spurious;
        double reorder, risen;
    } rows[] = { { 0.0, 0.49, 1, 0.01, 0.02 }, /* by a quarter of a round trip, to one at most, or 20 ms */
                 { 0.0, 0.5, 0, 0.01, 0.01 },     { 0.25, 0.74, 1, 0.125, 0.1875 }, { 0.25, 0.74, 1, 0.2, 0.25 },
                 { 0.25, 0.75, 0, 0.125, 0.125 }, { 0.1, 0.49, 1, 0.1, 0.1 } };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 201, 0.0, 4 );
        sender_tick( m, 0.0, &seen );
        sender_lose( m, 0 );
        CHECK_EQ( sender_event( m ), 40 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( m->active[NC_QUEUE_LOST], 0 ); /* nothing unreliable is sent again */
        m->stats.rtt = m->stats.rtt_latest = rows[i].rtt;
        m->stats.rtt_min = i ? rows[i].rtt : 0.04;
        m->reorder_seconds = rows[i].reorder;
        sender_silence( m, rows[i].late ); /* making packets forgets */
        CHECK_EQ( m->out.used > 0, rows[i].spurious );
        sender_acks( m, 0, 0 );
        CHECK_EQ( sender_event( m ), rows[i].spurious ? 40 + NETCODE_MESSAGES_EVENT_SPURIOUS : 0 );
        CHECK_EQ( m->stats.packets_lost_spuriously, rows[i].spurious );
        CHECK_NEAR( m->reorder_seconds, rows[i].risen, 1e-9 );
        CHECK_EQ( m->controller.round_samples, 0 ); /* it measures nothing */
        CHECK_NEAR( m->stats.rtt, rows[i].rtt, 1e-9 );
        CHECK_EQ( m->out.used, 0 );
        sender_close( m );
    }
}

/*  Parts of what was given up are acknowledged: that is no progress, it is still cancelled. Once all are, it has
    arrived. */
TEST( messages_parts_of_what_was_given_up )
{
    for ( int heard = 0; heard < 3; heard++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 2000, 0.1, 5 );
        CHECK_EQ( messages_drain( m, 0.0 ), 2 );
        messages_hold( m );
        sender_silence( m, 0.1 );
        CHECK_EQ( sender_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
        if ( heard )
            sender_acks( m, 1, heard == 2 );
        else {
            sender_lose( m, 0 );
            sender_lose( m, 1 );
        }
        CHECK_EQ( sender_event( m ), heard == 2 ? 50 + NETCODE_MESSAGES_EVENT_SPURIOUS : 0 );
        messages_let_go( m );
        if ( heard < 2 ) {
            sender_tick( m, 0.11, &seen );
            CHECK( seen.count == 1 && seen_count( &seen, 0x27, 0 ) == 1 &&
                   seen.frames[0].bytes == ( heard ? 0 : 2081 ) );
            sender_acks( m, 2, 0 );
        }
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        sender_silence( m, 1.0 );
        CHECK_EQ( sender_event( m ), 0 );
        CHECK( m->out.used == 0 && messages_begun( m ) == 0 );
        sender_close( m );
    }
}

/* Heard by its repeat; then its first packet is called lost: there is nothing to be sent again. */
TEST( messages_acked_and_then_lost )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    sender_tick( m, 0.005, &seen ); /* so soon that it may have overtaken the first */
    CHECK_EQ( seen.count, 2 );
    m->stats.rtt = 10.0; /* time alone says nothing yet */
    sender_acks( m, 1, 0 );
    CHECK_EQ( heap_blocks( &m->out ), 0 );
    CHECK_EQ( m->stats.packets_lost, 0 );
    sender_lose( m, 0 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    CHECK_EQ( m->active[NC_QUEUE_LOST], 0 );
    sender_silence( m, 0.02 );
    sender_close( m );
}

/* Lost in one packet, in flight in another: it is not sent again before that is lost too. */
TEST( messages_another_copy_may_arrive )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    sender_tick( m, 0.01, &seen );
    sender_lose( m, 0 );
    CHECK_EQ( m->active[NC_QUEUE_LOST], 0 );
    sender_lose( m, 1 );
    CHECK_NE( m->active[NC_QUEUE_LOST], 0 );
    sender_tick( m, 0.02, &seen );
    CHECK( seen.count == 2 && m->stats.reliable_retries_total == 2 );
    sender_close( m );
}

/*  The ack of any packet with a message says that it is there, also of one that was called lost before: it is not sent again, or no
    more often than it was. */
TEST( messages_an_earlier_packet_is_heard_late )
{
    for ( int heard = 0; heard < 3; heard++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 7 );
        for ( uint32_t i = 0; i < 3; i++ ) {
            sender_tick( m, 0.05 * i, &seen );
            CHECK_EQ( seen.count, 1 );
            sender_lose( m, i );
        }
        CHECK_NE( m->active[NC_QUEUE_LOST], 0 );
        sender_acks( m, heard, 0 );
        CHECK_EQ( sender_event( m ), 70 + NETCODE_MESSAGES_EVENT_ACKED );
        sender_silence( m, 0.15 );
        CHECK_EQ( m->stats.reliable_retries_total, 2 );
        CHECK( m->reliable.count == 0 && m->active[NC_QUEUE_LOST] == 0 && heap_blocks( &m->out ) == 0 );
        sender_close( m );
    }
}

/*  Given up after three packets, all called lost: that one of them did arrive is reported, whichever it was, and while
    CANCEL is on its way. */
TEST( messages_given_up_and_there_in_any_packet )
{
    for ( int heard = 0; heard < 6; heard++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 2 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 8 );
        for ( uint32_t i = 0; i < 3; i++ ) {
            sender_tick( m, 0.05 * i, &seen );
            sender_lose( m, i );
        }
        CHECK_EQ( sender_event( m ), 80 + NETCODE_MESSAGES_EVENT_LOST );
        if ( heard >= 3 ) {
            sender_tick( m, 0.15, &seen );
            CHECK( seen.count == 1 && seen_count( &seen, 0x0f, 0 ) + seen_count( &seen, 0x1f, 0 ) == 0 );
        }
        sender_acks( m, heard % 3, 0 );
        CHECK_EQ( sender_event( m ), 80 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK( m->reliable.count == 0 );
        if ( heard >= 3 )
            sender_acks( m, 3, 0 );
        CHECK_EQ( sender_event( m ), 0 );
        sender_silence( m, 0.2 );
        CHECK_EQ( heap_blocks( &m->out ), 0 );
        sender_close( m );
    }
}

/* An ack that says nothing new does not end a silence. */
TEST( messages_acks_without_news )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 2; i++ ) {
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        sender_tick( m, 0.0, &seen );
    }
    sender_acks( m, 0, 0 );
    m->timeouts = 3;
    sender_acks( m, 0, 0 );
    CHECK_EQ( m->timeouts, 3 );
    sender_acks( m, 1, 1 );
    CHECK_EQ( m->timeouts, 0 );
    sender_close( m );
}

/*  A message was in two packets, and one was acknowledged. The next message gets its handle: what becomes of the other packet
    is not of its business. */
TEST( messages_a_handle_that_was_used_before )
{
    for ( int acked = 0; acked < 2; acked++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 1 );
        sender_tick( m, 0.0, &seen ); /* packet 0 */
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 100, 0.0, 0 );
        sender_tick( m, 0.01, &seen ); /* packet 1 has both */
        CHECK_EQ( seen.count, 2 );
        uint32_t handle = m->reliable.head;
        sender_acks( m, 0, 0 );
        CHECK_EQ( sender_event( m ), 10 + NETCODE_MESSAGES_EVENT_ACKED );
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 30, 0.0, 2 );
        m->config.repeats = NETCODE_MESSAGES_REPEATS_NEVER;
        sender_tick( m, 0.02, &seen ); /* packet 2 */
        CHECK_EQ( m->reliable.tail, handle );
        if ( acked )
            sender_acks( m, 1, 0 );
        else
            sender_lose( m, 1 );
        CHECK_EQ( sender_event( m ), 0 );
        CHECK_EQ( m->reliable.count, 1 );
        CHECK_EQ( m->channels[0].queues[NC_QUEUE_LOST].count, !acked );
        CHECK( nc_heap_has( &m->out, handle ) && nc_message_at( m, handle )->packets == 1 );
        sender_close( m );
    }
}

/* Given up with one of its parts; that the others are lost as well changes nothing, and is not counted again. */
TEST( messages_parts_lost_behind_a_last_try )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 1 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 6 );
    messages_drain( m, 0.0 );
    CHECK_EQ( m->packets_in_flight, 3 );
    for ( uint32_t i = 0; i < 3; i++ )
        sender_lose( m, i );
    messages_drain( m, 0.01 );
    CHECK_EQ( m->packets_in_flight, 3 );
    for ( uint32_t i = 3; i < 6; i++ )
        sender_lose( m, i );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 3 );
    CHECK_EQ( sender_event( m ), 60 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( sender_event( m ), 0 );
    sender_close( m );
}

/* Too old to be begun when its packet is made, though no update has said so: it is dropped, and counted. */
TEST( messages_outlived_between_update_and_packet )
{
    for ( int bytes = 100; bytes <= 2000; bytes += 1900 ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.5, 3 );
        sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, bytes, 0.6, 4 );
        m->flush = 1;
        netcode_messages_set_time( m, 0.5 ); /* as receiving does */
        REQUIRE( seen_next( &seen, m ) > 0 );
        CHECK( seen.count == 1 && seen.frames[0].channel == 1 );
        CHECK_EQ( m->stats.messages_expired, 1 );
        CHECK_EQ( sender_event( m ), 30 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( sender_event( m ), 0 );
        sender_close( m );
    }
}

/* What is given up may have arrived with each of its packets: that is reported, whichever is heard of first or late. */
TEST( messages_given_up_and_there )
{
    for ( int packet = 0; packet < 4; packet++ ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, packet == 3 ? 200 : 10, 0.05, 7 );
        for ( int i = 0; i < 3; i++ ) { /* a small one is in all three, a large one in the first */
            sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 5, 0.0, 0 );
            sender_tick( m, 0.01 * i, &seen );
        }
        sender_tick( m, 0.06, &seen );
        CHECK_EQ( seen_count( &seen, 0x27, 0 ), 1 );
        CHECK_EQ( sender_event( m ), 70 + NETCODE_MESSAGES_EVENT_LOST );
        if ( packet == 3 ) { /* its packet and then the one with CANCEL are called lost */
            sender_lose( m, 0 );
            sender_lose( m, 3 );
        }
        sender_acks( m, packet % 3, 0 );
        CHECK_EQ( sender_event( m ), 70 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK_EQ( m->reliable.count, 0 );
        sender_close( m );
    }
}

/* A CANCEL may have overtaken the message: that both arrived does not show that it was delivered, and nothing is reported. */
TEST( messages_given_up_and_overtaken )
{
    for ( int overtaken = 0; overtaken < 2; overtaken++ ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.01, 7 );
        sender_tick( m, 0.0, &seen );
        sender_tick( m, 0.02, &seen );
        CHECK( seen_count( &seen, 0x27, 0 ) == 1 && sender_event( m ) == 70 + NETCODE_MESSAGES_EVENT_LOST );
        sender_acks( m, overtaken, (uint32_t) overtaken );
        CHECK_EQ( sender_event( m ), overtaken ? 0 : 70 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK_EQ( heap_blocks( &m->out ), 0 );
        sender_close( m );
    }
}

/* More messages are given up at once than a packet remembers: the CANCELs of the others are in the next one. */
TEST( messages_more_cancels_than_a_packet_remembers )
{
    struct netcode_messages_t * m = sender_open( 64, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 70; i++ )
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 10, 0.01, 0 );
    messages_drain( m, 0.0 );
    netcode_messages_update( m, 0.02 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 64 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 6 && seen_count( &seen, 0x27, 69 ) == 1 );
    sender_close( m );
}

/*  Where there is no space to remember what a packet has, nothing is sent that might have to be sent again. What is overdue makes
    space, and is sent again in its place. */
TEST( messages_what_can_not_be_remembered_waits )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    m->config.repeats = NETCODE_MESSAGES_REPEATS_NEVER;
    m->stats.rtt = 0.1;
    m->peer_delay = 0.0;
    m->carried_count = 64;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 2000, 0.0, 0 );
    CHECK_EQ( messages_drain( m, 0.005 ), 2 );
    for ( int i = 0; i < 100; i++ )
        sender_send( m, 0, i ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_UNRELIABLE, 2, 0.0, (uint64_t) ( i == 0 ) );
    sender_tick( m, 0.01, &seen );
    CHECK_EQ( m->reliable.count, 61 + 1 ); /* beside two fragments, and the one with a receipt */
    sender_silence( m, 0.1 );
    m->silent_since = 0.1; /* no probe */
    netcode_messages_update( m, 0.12 );
    while ( seen_next( &seen, m ) > 0 )
        ;
    CHECK( m->stats.reliable_retries_total == 61 && nc_carried_space( m ) == 0 );
    CHECK_EQ( m->channels[0].queues[NC_QUEUE_PROMPT].count, 1 );
    CHECK_EQ( sender_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
    messages_check( m );
    sender_close( m );
}

/* ---- repeats ---- */

struct repeat_row_t {
    int mode, bytes;
    double loss;             /* that was measured */
    const char * flights[5]; /* which messages are in each, a digit for each */
};

/*  Small reliable messages ride along for two flights, the newest first; or as long as the measured loss makes it
    worth it. */
TEST( messages_repeats_ride_along )
{
    static const struct repeat_row_t rows[] = {
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 20, 0.0, { "0", "10", "210", "321", "432" } },
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 128, 0.0, { "0", "10", "210", "321", "432" } },
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 129, 0.0, { "0", "1", "2", "3", "4" } },
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 0, 0.0, { "0", "10", "210", "321", "432" } },
        { NETCODE_MESSAGES_REPEATS_NEVER, 20, 1.0, { "0", "1", "2", "3", "4" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.0, { "0", "1", "2", "3", "4" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.00099, { "0", "1", "2", "3", "4" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.001, { "0", "10", "21", "32", "43" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.0099, { "0", "10", "21", "32", "43" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.01, { "0", "10", "210", "321", "432" } },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 129, 0.5, { "0", "1", "2", "3", "4" } },
    };
    for ( int row = 0; row < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); row++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct seen_t seen;
        int repeated = -5; /* all that left, but each message for the first time */
        m->config.repeats = rows[row].mode;
        m->loss_long = rows[row].loss;
        for ( int flight = 0; flight < 5; flight++ ) {
            char text[8] = "";
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, rows[row].bytes, 0.0, 0 );
            netcode_messages_update( m, 0.001 * flight );
            netcode_messages_update( m, 0.001 * flight ); /* nothing left in between: it is no flight */
            REQUIRE( seen_next( &seen, m ) > 0 );
            for ( int i = 0; i < seen.count && i < 7; i++ )
                text[i] = (char) ( '0' + seen.frames[i].id );
            CHECK_STR( text, rows[row].flights[flight] );
            repeated += (int) strlen( rows[row].flights[flight] );
            CHECK_EQ( seen_next( &seen, m ), 0 );
        }
        CHECK_EQ( m->stats.messages_repeated, repeated );
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        sender_close( m );
    }
}

/*  A sender of little learns little from its own packets: the losses of those that arrive count too, but not what may
    only have been overtaken, or skipped by the sender. */
TEST( messages_repeats_by_the_losses_of_what_arrives )
{
    static const struct {
        int newest, first, step, count; /* of the missing numbers */
        uint32_t repeats;
    } rows[] = { { 400, 0, 0, 0, 0 },   { 400, 150, 50, 2, 0 }, { 400, 150, 50, 3, 1 }, { 400, 150, 50, 4, 2 },
                 { 400, 113, 1, 4, 2 }, { 400, 112, 1, 4, 1 },  { 400, 365, 1, 5, 2 },  { 400, 369, 1, 30, 0 },
                 { 59, 10, 1, 1, 2 },   { 31, 10, 1, 20, 0 },   { 32, 0, 1, 1, 2 },     { 200, 10, 40, 1, 0 } };
    for ( int row = 0; row < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); row++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        struct craft_t craft;
        m->loss_long = 0.0;
        for ( int number = 0; number <= rows[row].newest; number++ ) {
            int from = number - rows[row].first, step = rows[row].step;
            if ( step && from >= 0 && from % step == 0 && from / step < rows[row].count )
                continue;
            craft_begin( &craft, number, -1, 0 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        CHECK_EQ( nc_messages_repeats( m ), 0 );
        netcode_messages_update( m, 0.25 );
        CHECK_EQ( nc_messages_repeats( m ), rows[row].repeats );
        m->config.repeats = NETCODE_MESSAGES_REPEATS_NEVER;
        CHECK_EQ( nc_messages_repeats( m ), 0 );
        sender_close( m );
    }
}

/*  What is to be cancelled is not repeated either, as long as its CANCEL waits behind something lost that does not
    fit. */
TEST( messages_repeats_of_what_is_given_up )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 600, 0.0, 0 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 700, 0.0, 0 );
    CHECK_EQ( messages_drain( m, 0.0 ), 2 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.015, 0 );
    sender_tick( m, 0.01, &seen );
    sender_lose( m, 0 );
    sender_lose( m, 1 );
    netcode_messages_update( m, 0.02 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 && seen.frames[0].bytes == 600 );
    CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == 700 && seen_count( &seen, 0x27, 2 ) == 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 2 );
    sender_close( m );
}

/*  No packet leaves for repeats alone, but beside a transfer one does, before its first part: by measured loss too, once, even
    where nothing was lost. */
TEST( messages_repeats_need_company )
{
    for ( int mode = NETCODE_MESSAGES_REPEATS_ADAPTIVE; mode <= NETCODE_MESSAGES_REPEATS_NEVER; mode++ ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct seen_t seen;
        m->config.repeats = mode;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
        sender_tick( m, 0.0, &seen );
        sender_silence( m, 0.01 );
        sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 5000, 0.0, 0 );
        netcode_messages_update( m, 0.02 );
        for ( int i = 0; i < 3; i++ ) {
            int repeat = mode != NETCODE_MESSAGES_REPEATS_NEVER && i == 0;
            REQUIRE( seen_next( &seen, m ) > 0 );
            CHECK_EQ( seen_count( &seen, 1, 1 ), !repeat );
            CHECK_EQ( seen_count( &seen, 0, 0 ), repeat );
        }
        sender_close( m );
    }
}

/*  What was lost once is no repeat any more: if it is small it is sent again in the next flight too, by itself, where
    repeats are on; and then no more, until it is lost once more. */
TEST( messages_lost_ones_are_sent_again_twice )
{
    static const struct {
        int mode, bytes;
        double loss; /* before; each loss of this test adds 1/512 */
        int twice;
    } rows[] = {
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 20, 0.0, 1 },    { NETCODE_MESSAGES_REPEATS_ALWAYS, 128, 0.0, 1 },
        { NETCODE_MESSAGES_REPEATS_ALWAYS, 129, 0.0, 0 },   { NETCODE_MESSAGES_REPEATS_NEVER, 20, 0.5, 0 },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, 0.0, 1 },  { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 129, 0.5, 0 },
        { NETCODE_MESSAGES_REPEATS_ADAPTIVE, 20, -1.0, 0 }, /* as if those losses were nothing */
    };
    for ( int row = 0; row < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); row++ ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct seen_t seen;
        m->config.repeats = rows[row].mode;
        m->loss_long = rows[row].loss;
        m->stats.loss_sent = rows[row].loss < 0.0 ? -1.0 : 0.0;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, rows[row].bytes, 0.0, 7 );
        sender_tick( m, 0.0, &seen );
        for ( int loss = 0; loss < 2; loss++ ) {
            double time = 0.1 * loss;
            for ( int64_t newest = messages_newest( m ), number = 0; number <= newest; number++ )
                sender_lose( m, (uint32_t) number );
            sender_tick( m, time + 0.01, &seen );
            CHECK( seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 );
            CHECK_EQ( m->active[NC_QUEUE_LOST], 0 );
            if ( rows[row].twice ) {
                sender_tick( m, time + 0.02, &seen );
                CHECK( seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 && seen.asks );
            }
            CHECK_EQ( m->active[NC_QUEUE_LOST], 0 );
            sender_silence( m, time + 0.03 );
            sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 20, 0.0, 0 );
            sender_tick( m, time + 0.04, &seen );
            CHECK( seen.count == 1 && seen.frames[0].kind == NETCODE_MESSAGE_UNRELIABLE );
            CHECK_EQ( m->stats.reliable_retries_total, 1 + loss );
            CHECK_EQ( m->stats.messages_repeated, rows[row].twice * ( 1 + loss ) );
        }
        sender_acks( m, 3 + rows[row].twice, 0 ); /* the first that it was in after the second loss */
        CHECK_EQ( sender_event( m ), 70 + NETCODE_MESSAGES_EVENT_ACKED );
        CHECK_EQ( m->reliable.head, 0 );
        sender_close( m );
    }
}

/*  What waits to be sent again a second time is heard, outlived, or all of it ends: it is not sent, and reported
    once. Or it is lost once more: it is sent once. */
TEST( messages_sent_again_and_then_something_else )
{
    for ( int way = 0; way < 4; way++ ) {
        struct netcode_messages_t * m = sender_open( 64, 2, 0 );
        struct seen_t seen;
        m->config.repeats = NETCODE_MESSAGES_REPEATS_ALWAYS;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.015, 7 );
        sender_tick( m, 0.0, &seen );
        sender_lose( m, 0 );
        sender_tick( m, 0.01, &seen );
        if ( way == 0 ) {
            sender_acks( m, 1, 0 );
            sender_silence( m, 0.012 );
        } else if ( way == 1 ) {
            sender_tick( m, 0.02, &seen );
            CHECK( seen.count == 1 && seen_count( &seen, 0x27, 0 ) == 1 );
        } else if ( way == 2 )
            netcode_messages_reset( m, 0.012 );
        else {
            sender_lose( m, 1 );
            sender_tick( m, 0.012, &seen );
            sender_acks( m, 2, 0 );
        }
        int is_lost = way == 1 || way == 2;
        CHECK_EQ( sender_event( m ), 70 + ( is_lost ? NETCODE_MESSAGES_EVENT_LOST : NETCODE_MESSAGES_EVENT_ACKED ) );
        CHECK_EQ( sender_event( m ), 0 );
        CHECK( m->active[NC_QUEUE_LOST] == 0 && m->stats.messages_repeated == 0 );
        CHECK_EQ( m->reliable.count, way == 1 );
        sender_close( m );
    }
}

/* ---- interruptions ---- */

/*  The path is interrupted for up to three seconds, at full rate, beside nothing or with nothing but a transfer: delivery goes on
    within four round trips and three ticks of the path's return, after more than a second within ten, and soon nothing waits. */
TEST( messages_after_an_interruption )
{
    static const double outages[] = { 0.1, 0.35, 0.55, 1.0, 3.0 };
    static const int per_tick[] = { 1, 16, 0 };
    for ( int i = 0; i < 15 && !test_state.failures; i++ ) {
        struct link_t link;
        struct netcode_message_t message;
        int messages = per_tick[i % 3], read = 0, bulk = messages ? 64 : 8000;
        double end = 5.0 + outages[i / 3], delivered = 0.0;
        link_open( &link, NULL, (uint64_t) i, 0.05, 0.0 );
        for ( int tick = 0; tick < 900; tick++ ) {
            link_tick( &link );
            if ( link.now >= 5.0 && link.now < end )
                link.ways[0].count = link.ways[1].count = 0;
            while ( netcode_messages_receive( link.ends[1], &message ) )
                if ( link.now > end && ++read && delivered == 0.0 )
                    delivered = link.now - end;
            for ( int k = 0; k < ( messages ? messages : 4 ) && link.now < 9.0; k++ )
                netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, bulk );
        }
        CHECK( delivered > 0.0 && delivered <= ( outages[i / 3] > 1.0 ? 1.0 : 0.4 ) + 3.0 / 60.0 );
        CHECK_EQ( link.ends[0]->out.used, 0 );
        if ( test_state.failures )
            printf( "    outage of %.2f s, %d messages a tick: %.3f s\n", outages[i / 3], messages, delivered );
        link_close( &link );
    }
}

/*  Up to the least rate, each message leaves in its tick, however small the window is and however long the round trip; unreliable
    ones also beside a flood of reliable ones that the window holds back. */
TEST( messages_least_rate_holds )
{
    for ( int i = 0; i < 5; i++ ) {
        static const int kinds[] = { 0, 1, 2, 3, 0 };
        struct link_t link;
        struct netcode_messages_channel_stats_t stats;
        int flood = i == 4, most = 0;
        link_open( &link, NULL, 7, 0.5, 0.0 );
        for ( int tick = 0; tick < 600; tick++ ) {
            netcode_messages_send( link.ends[0], 0, kinds[i], flow_data, 220 ); /* 13.2 kB/s, and what packets cost */
            for ( int k = 0; flood && k < 20; k++ )
                netcode_messages_send( link.ends[0], 1, NETCODE_MESSAGE_RELIABLE, flow_data, 1000 );
            link.ends[0]->controller.window = 2400.0;
            link_tick( &link );
            messages_read( link.ends[1] );
            netcode_messages_channel_stats( link.ends[0], 0, &stats );
            most = stats.queued_messages > most ? stats.queued_messages : most;
        }
        CHECK_EQ( most, 0 );
        netcode_messages_channel_stats( link.ends[0], 1, &stats );
        CHECK( !flood || stats.queued_messages > 100 );
        link_close( &link );
    }
}

/* Any round trip, also one longer than any timer: all arrives, is known to have arrived, and nothing is sent again for ever. */
TEST( messages_over_any_round_trip )
{
    static const double delays[] = { 0.0, 0.02, 0.09, 0.3, 1.0, 2.5, 6.0 };
    for ( int i = 0; i < 7; i++ ) {
        struct link_t link;
        struct netcode_message_t message;
        int read = 0;
        link_open( &link, NULL, (uint64_t) i, delays[i], 0.0 );
        for ( int tick = 0; tick < 6000; tick++ ) {
            if ( tick < 300 )
                netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data,
                                       tick % 60 ? 64 : 4000 );
            link_tick( &link );
            while ( netcode_messages_receive( link.ends[1], &message ) )
                read++;
        }
        CHECK_EQ( read, 300 );
        CHECK_EQ( link.ends[0]->out.used, 0 );
        CHECK_LT( link.ends[0]->stats.bytes_sent, 400000 );
        link_close( &link );
    }
}

/* What a packet carries whose ack is overdue is sent again, but for unreliable messages. If its ack comes, it counts all the same. */
TEST( messages_overdue_packets_still_acknowledge )
{
    for ( int watched = 0; watched < 2; watched++ ) {
        struct netcode_messages_t * m = sender_open( 16, 0, 0 );
        struct seen_t seen;
        m->stats.rtt = 0.1;
        m->peer_delay = 0.0;
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 100, 0.0, 0 );
        sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 100, 0.0, 0 );
        if ( watched )
            sender_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, 100, 0.0, 7 );
        sender_tick( m, 0.0, &seen );
        CHECK_EQ( seen.count, 2 + watched );
        sender_silence( m, 0.099 );
        CHECK( m->in_flight > 200.0 && m->active[NC_QUEUE_LOST] == 0 );
        m->silent_since = 0.09; /* no probe */
        sender_tick( m, 0.101, &seen );
        CHECK( seen.count == 2 && seen_count( &seen, 0, 0 ) == 1 && seen_count( &seen, 0, 1 ) == 1 );
        CHECK( nc_sent_at( m, 0 )->flags & NC_SENT_IN_FLIGHT );
        CHECK_EQ( m->packets_in_flight, 2 );
        CHECK( m->in_flight < 300.0 );
        CHECK( m->stats.packets_lost == 0 && m->stats.reliable_retries_total == 2 );
        sender_acks( m, 0, 0 );
        CHECK_EQ( sender_event( m ), watched ? 70 + NETCODE_MESSAGES_EVENT_ACKED : 0 );
        CHECK_EQ( m->reliable.count, 0 );
        sender_acks( m, 1, 1 );
        CHECK( m->in_flight == 0.0 && m->packets_in_flight == 0 );
        sender_close( m );
    }
}

/* At 288 ticks a second, acks leave 80 times at most, and each packet is acknowledged within four ticks. */
TEST( messages_acks_are_thinned )
{
    struct netcode_messages_t * m = sender_open( 16, 0, 0 );
    struct craft_t craft;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int acks = 0, unacked = 0;
    for ( int tick = 1; tick <= 288; tick++ ) {
        netcode_messages_set_time( m, tick / 288.0 );
        craft_begin( &craft, m->newest_received + 1, messages_newest( m ), 0 );
        craft_message( &craft, NETCODE_MESSAGE_UNRELIABLE, 0, 0, 0, "a", 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        netcode_messages_update( m, tick / 288.0 );
        int sent = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) > 0;
        acks += sent;
        unacked = sent ? 0 : unacked + 1;
        CHECK_LE( unacked, 3 );
    }
    CHECK_LE( acks, 80 );
    CHECK_GE( acks, 40 );
    sender_close( m );
}

/* ---- probes ---- */

/* Nothing is heard: the oldest message once more, each time after the same wait. */
TEST( messages_probes_go_on )
{
    struct netcode_messages_t * m = sender_open( 16, 0, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    for ( int i = 0; i < 6; i++ ) {
        netcode_messages_update( m, 0.2 * ( i + 1 ) - 0.001 );
        CHECK_EQ( seen_next( &seen, m ), 0 );
        sender_tick( m, 0.2 * ( i + 1 ) + 0.0001 * ( i + 1 ), &seen );
        CHECK( seen.asks && seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 );
        CHECK_EQ( m->stats.probes, i + 1 );
    }
    CHECK_EQ( m->stats.reliable_retries_total, 6 );
    sender_acks( m, 6, 0 );
    CHECK_EQ( m->timeouts, 0 );
    sender_close( m );
}

/* Beside a PONG there is no room for the largest message once more: a ping, then, and the message in the next packet. */
TEST( messages_a_probe_that_does_not_fit )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, NETCODE_MESSAGES_WHOLE_BYTES, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    m->pong_due = 1;
    netcode_messages_update( m, 0.21 );
    CHECK( seen_next( &seen, m ) > 0 && m->stats.probes == 1 );
    CHECK( seen.count == 2 && seen.frames[0].type == 0x17 && seen.frames[1].type == 0x0f && seen.asks );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 );
    sender_close( m );
}

/* What a probe is: the message, its CANCEL, or a ping, also for fragments. */
TEST( messages_what_a_probe_is )
{
    struct seen_t seen;
    for ( int way = 0; way < 4; way++ ) {
        struct netcode_messages_t * m = sender_open( 16, 1, 0 );
        if ( way == 0 )
            sender_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 200, 0.0, 0 );
        if ( way == 1 )
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1181, 0.0, 0 );
        if ( way >= 2 )
            sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, way == 2 ? 0.0 : 0.05, 0 );
        messages_drain( m, 0.0 );
        messages_drain( m, 0.05 );
        netcode_messages_update( m, 0.2001 + 0.05 * ( way == 3 ) );
        CHECK( m->probe_due && netcode_messages_next_deadline( m ) <= m->now );
        REQUIRE( seen_next( &seen, m ) > 0 );
        CHECK( seen.count == 1 && seen.asks );
        CHECK_EQ( seen.frames[0].type, way == 3 ? 0x27 : way == 2 ? 0 : 0x0f );
        CHECK_EQ( m->stats.probes, 1 );
        sender_close( m );
    }
    struct netcode_messages_t * m = sender_open( 16, 1, 0 ); /* and something new, if there is */
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    messages_drain( m, 0.0 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 201, 0.0, 0 );
    sender_tick( m, 0.25, &seen );
    CHECK( seen.count == 2 && seen_count( &seen, 0, 1 ) == 1 && m->stats.probes == 1 );
    sender_close( m );
}

/* A probe leaves even where the window is full: the oldest packet in flight is called lost for it. */
TEST( messages_a_probe_finds_a_place )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        sender_tick( m, 0.0, &seen );
    }
    sender_tick( m, 0.2, &seen );
    CHECK( seen.asks && seen_count( &seen, 0, 0 ) == 1 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    CHECK_EQ( m->sent_end - m->sent_first, 16 );
    CHECK_EQ( m->packets_in_flight, 16 );
    sender_close( m );
}

/* The oldest was lost before and is only remembered: the probe takes its place, and nothing else is called lost. */
TEST( messages_a_probe_takes_the_place_of_what_was_lost )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        sender_tick( m, 0.002 * i, &seen );
    }
    sender_lose( m, 0 );
    messages_hold( m );
    sender_tick( m, 0.24, &seen );
    CHECK( seen.asks && seen.frames[0].id == 0 && m->stats.probes == 1 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    CHECK_EQ( m->packets_in_flight, 16 );
    CHECK_EQ( nc_sent_at( m, m->sent_first )->number, 1 );
    sender_close( m );
}

/* What is sent meanwhile does not put a probe off, and an ack of all ends the wait. */
TEST( messages_probes_are_not_put_off )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct seen_t seen;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    m->ping_due = 1;
    sender_tick( m, 0.1, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x0f );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    sender_tick( m, 0.15, &seen );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 0.2, 2e-6 );
    sender_acks( m, 1, 1 );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 0.15 + nc_messages_timeout( m ), 2e-6 );
    sender_acks( m, 2, 3 );
    m->ping_due = 1;
    sender_tick( m, 1.0, &seen );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 1.0 + nc_messages_timeout( m ), 2e-6 );
    sender_close( m );
}

/*  Unreliable messages to a peer that never answers: 16384 packets, and then a probe every two seconds. One answer, and
    it goes on. */
TEST( messages_without_an_answer )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    uint64_t probes = 0;
    for ( int i = 0; i < 20000; i++ ) {
        netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
        messages_drain( m, 0.01 * i );
        if ( i == 17000 )
            probes = m->stats.probes;
    }
    CHECK( nc_messages_gap( m ) >= 16384 && nc_messages_gap( m ) < 16384 + 40 );
    CHECK_NEAR( (int) ( m->stats.probes - probes ), 15.0, 1.0 );
    m->packets_in_flight = 0; /* as if all of them were given up */
    m->silent_since = m->now;
    netcode_messages_update( m, m->now + 1.999 );
    CHECK_EQ( m->probe_due, 0 );
    CHECK_LE( netcode_messages_next_deadline( m ), m->now + 0.01 );
    netcode_messages_update( m, m->now + 0.001 );
    CHECK_EQ( m->probe_due, 1 );
    m->packets_in_flight = 16;
    sender_acks( m, (int) ( messages_newest( m ) & 0xffff ), 0 );
    CHECK_EQ( nc_messages_gap( m ), 0 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    netcode_messages_update( m, m->now );
    CHECK( seen_next( &seen, m ) > 0 && seen_count( &seen, 0, 0 ) == 1 );
    netcode_messages_destroy( m );
}

/* Each ack brings the newest that was acknowledged nearer, an old one does not take it back. */
TEST( messages_the_newest_acknowledged )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    static const int acks[] = { 0, 1, 2, 1, 5, 3, 5 }, gaps[] = { 7, 6, 5, 5, 2, 2, 2 };
    for ( int i = 0; i < 8; i++ ) {
        sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        sender_tick( m, 0.0, &seen );
    }
    CHECK_EQ( nc_messages_gap( m ), 8 );
    for ( int i = 0; i < 7; i++ ) {
        sender_acks( m, acks[i], 0 );
        CHECK_EQ( nc_messages_gap( m ), gaps[i] );
    }
    sender_close( m );
}

/* The very packet at which a sender stops: 16384 ahead, two seconds after the last that asked. */
TEST( messages_too_far_ahead_to_go_on )
{
    for ( uint64_t ahead = 16383; ahead <= 16385; ahead++ ) {
        struct netcode_messages_t * m = sender_open( 16, 2, 0 );
        struct seen_t seen;
        m->next_number = ahead;
        messages_skip_nothing( m );
        netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
        netcode_messages_update( m, 0.0 );
        CHECK_EQ( seen_next( &seen, m ) > 0, ahead < 16384 );
        CHECK( ahead > 16383 || seen_next( &seen, m ) == 0 );
        m->next_number = ahead;
        messages_skip_nothing( m );
        m->packets_in_flight = 0;
        netcode_messages_update( m, 1.999 );
        CHECK_EQ( m->probe_due, 0 );
        netcode_messages_update( m, 2.0 );
        CHECK_EQ( m->probe_due, ahead >= 16384 );
        netcode_messages_destroy( m );
    }
}

/*  An application that updates before it reads packets, on a link without delay: each ack finds nothing else in flight, and arrives
    with the next packet or with the one after it. Nothing is sent again. */
TEST( messages_nothing_is_overdue_where_all_is_acknowledged_at_once )
{
    struct netcode_messages_t * ends[2];
    for ( int end = 0; end < 2; end++ )
        ends[end] = netcode_messages_create( NULL, 0.0 );
    for ( int tick = 1; tick < 4000; tick++ ) {
        for ( int k = 0; k < 24; k++ )
            CHECK_EQ( netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 32 ), NETCODE_OK );
        messages_talk( ends, tick / 60.0, 0 );
        messages_read( ends[1] );
    }
    CHECK_EQ( ends[0]->stats.reliable_retries_total, 0 );
    for ( int end = 0; end < 2; end++ )
        sender_close( ends[end] );
}

/* What was lost is sent again before what is new on its channel, but after what is new on a better one. */
TEST( messages_lost_ones_obey_priorities )
{
    struct netcode_messages_t * m = sender_open( 16, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 8; i++ )
        sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 140, 0.0, 0 );
    sender_tick( m, 0.0, &seen );
    sender_lose( m, 0 );
    sender_send( m, 1, NETCODE_MESSAGE_RELIABLE, 140, 0.0, 0 );
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE, 140, 0.0, 0 );
    netcode_messages_update( m, 0.1 );
    REQUIRE( seen_next( &seen, m ) > 0 && seen.count > 2 );
    CHECK_EQ( seen.frames[0].channel, 0 );
    for ( int i = 1; i < seen.count; i++ )
        CHECK( seen.frames[i].channel == 1 && seen.frames[i].id == i - 1 );
    sender_close( m );
}

/*  A link of three ticks that loses nothing, in ticks that are all alike: nothing is sent again, whether an application sets the time
    before it processes packets, or not, or updates first. When the link gets a tick longer, those of four ticks at most. */
TEST( messages_nothing_is_overdue_on_an_even_link )
{
    static const double rates[] = { 30.0, 60.0, 64.0, 144.0, 240.0 };
    for ( int i = 0; i < 5 * 3; i++ ) {
        static uint8_t packets[2][5][4][NETCODE_MAX_PACKET_SIZE];
        static int bytes[2][5][4];
        struct netcode_messages_t * ends[2];
        double step = 1.0 / rates[i / 3];
        int way = i % 3;
        memset( bytes, 0, sizeof( bytes ) );
        for ( int end = 0; end < 2; end++ )
            ends[end] = netcode_messages_create( NULL, 0.0 );
        for ( int tick = 4; tick < 8000; tick++ )
            for ( int end = 0; end < 2; end++ ) {
                int now = tick % 5, due = ( tick - ( tick < 4000 ? 3 : 4 ) ) % 5, count = 0;
                if ( way == 2 )
                    netcode_messages_update( ends[end], step * tick );
                else if ( way == 1 )
                    netcode_messages_set_time( ends[end], step * tick );
                for ( ; count < 4 && bytes[!end][due][count] > 0; count++ ) {
                    netcode_messages_process_packet( ends[end], packets[!end][due][count], bytes[!end][due][count] );
                    bytes[!end][due][count] = 0;
                }
                messages_read( ends[end] );
                for ( int k = 0; k < 8 && end == 0; k++ )
                    CHECK_EQ( netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 32 ),
                              NETCODE_OK );
                if ( way != 2 )
                    netcode_messages_update( ends[end], step * tick );
                netcode_messages_flush( ends[end] );
                for ( count = 0; count < 4; count++ )
                    if ( ( bytes[end][now][count] =
                               netcode_messages_generate_packet( ends[end], packets[end][now][count],
                                                                 NETCODE_MAX_PACKET_SIZE ) ) <= 0 )
                        break;
                CHECK_LT( count, 4 );
                if ( tick == 3999 )
                    CHECK_EQ( ends[0]->stats.reliable_retries_total, 0 );
            }
        CHECK_EQ( ends[0]->stats.packets_lost, 0 );
        CHECK_LE( ends[0]->stats.reliable_retries_total, 32 );
        int between = (int) ceil( 0.0125 * rates[i / 3] ); /* ticks between acks; the link has four each way */
        CHECK_LE( (int) ends[0]->reliable.count, 8 * ( 8 + between ) );
        for ( int end = 0; end < 2; end++ )
            sender_close( ends[end] );
    }
}
