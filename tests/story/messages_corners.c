/*  Story: corners of messages. States of a sender that an ordinary day does not bring: what is lost, given up and acknowledged at
    once, packets and places that are just full, windows, rates and priorities at their edges; each with what is then on the wire.
    Run: runner messages_corners.c */

static struct netcode_messages_t * corner_open( int window, int congestion, int max_retries )
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

static void corner_close( struct netcode_messages_t * m )
{
    messages_check( m );
    netcode_messages_destroy( m );
}

static void corner_send( struct netcode_messages_t * m, int channel, int kind, int bytes, double ttl, uint64_t receipt )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = channel;
    message.kind = kind;
    message.data = flow_data;
    message.bytes = bytes;
    message.ttl_seconds = ttl;
    message.receipt = receipt;
    CHECK_EQ( netcode_messages_send_message( m, &message ), NETCODE_OK );
}

/* A tick; the one packet that leaves. */
static void corner_tick( struct netcode_messages_t * m, double time, struct seen_t * seen )
{
    struct seen_t none;
    netcode_messages_update( m, time );
    messages_check( m );
    REQUIRE( seen_next( seen, m ) > 0 );
    CHECK_EQ( seen_next( &none, m ), 0 );
    messages_check( m );
}

static void corner_silence( struct netcode_messages_t * m, double time )
{
    netcode_messages_update( m, time );
    m->probe_due = 0;
    struct seen_t none;
    CHECK_EQ( seen_next( &none, m ), 0 );
    messages_check( m );
}

/* The other side says what it has heard of. */
static void corner_acks( struct netcode_messages_t * m, int ack, uint32_t bits )
{
    struct craft_t craft;
    craft_begin( &craft, m->newest_received + 1, ack, bits );
    craft.data[0] = 0x11;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    messages_check( m );
}

/* The next event: its type, and its receipt times ten. */
static int corner_event( struct netcode_messages_t * m )
{
    struct netcode_messages_event_t event;
    return netcode_messages_event( m, &event ) ? event.type + 10 * (int) event.receipt : 0;
}

/* A packet is called lost, unless it is already. */
static void corner_lose( struct netcode_messages_t * m, uint32_t number )
{
    for ( uint32_t i = m->sent_first; i != m->sent_end; i++ )
        if ( nc_sent_at( m, i )->number == number && nc_sent_at( m, i )->bytes & NC_SENT_IN_FLIGHT )
            nc_sent_lost( m, nc_sent_at( m, i ) );
    messages_check( m );
}

/* ---- lost, and then something else ---- */

/* It is lost, the rate does not let it go once more, and its time is over: a CANCEL leaves in its place, once. */
TEST( messages_lost_and_outlived )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, way == 2 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 1.0, 7 );
        corner_tick( m, 0.0, &seen );
        if ( way < 2 )
            corner_lose( m, 0 );
        m->tokens = -1e9;
        corner_silence( m, 0.9 );
        CHECK_EQ( corner_event( m ), 0 );
        corner_silence( m, 1.0 );
        CHECK_EQ( corner_event( m ), 70 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        m->tokens = 100.0;
        if ( way == 1 ) /* its packet is acknowledged when that is forgotten: it stays taken back */
            corner_acks( m, 0, 0 );
        if ( way == 2 ) /* only now its packet is lost: that changes nothing */
            corner_lose( m, 0 );
        CHECK_EQ( corner_event( m ), 0 );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        corner_tick( m, 1.1, &seen );
        CHECK( seen_count( &seen, 0x27, 0 ) == 1 && seen.count == 1 && seen.frames[0].bytes == 200 );
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        CHECK( m->out.used > 0 );
        corner_acks( m, 1, 0 );
        CHECK_EQ( corner_event( m ), 0 );
        corner_silence( m, 2.0 );
        CHECK_EQ( m->out.used, 0 );
        corner_close( m );
    }
}

/*  Two are given up while their packets are under way. The first packet is heard before a CANCEL could leave: SPURIOUS,
    and only the other one is taken back. */
TEST( messages_given_up_and_heard )
{
    for ( int told = 0; told < 2; told++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.2, 1 );
        corner_tick( m, 0.0, &seen );
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 201, 0.19, 2 );
        corner_tick( m, 0.01, &seen );
        m->tokens = -1e9;
        corner_silence( m, 0.2 );
        if ( told ) {
            CHECK_EQ( corner_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
            CHECK_EQ( corner_event( m ), 20 + NETCODE_MESSAGES_EVENT_LOST );
        }
        corner_acks( m, 0, 0 );
        CHECK_EQ( corner_event( m ), 10 + ( told ? NETCODE_MESSAGES_EVENT_SPURIOUS : NETCODE_MESSAGES_EVENT_ACKED ) );
        m->tokens = 100.0;
        corner_tick( m, 0.21, &seen );
        CHECK( seen_count( &seen, 0x27, 1 ) == 1 && seen.count == 1 );
        corner_acks( m, 2, 0 );
        CHECK_EQ( corner_event( m ), told ? 0 : 20 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK( m->reliable.head == 0 && m->lost_head == 0 );
        corner_lose( m, 1 ); /* its first packet holds it until that is settled and forgotten */
        corner_silence( m, 1.0 );
        CHECK_EQ( m->out.used, 0 );
        corner_close( m );
    }
}

/* The CANCEL is lost as well: it is sent until it is heard, and counts once, whatever max_retries says. */
TEST( messages_a_cancel_that_is_lost )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 1 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 5 );
    corner_tick( m, 0.0, &seen );
    for ( uint32_t i = 0; i < 6; i++ ) {
        corner_lose( m, i );
        corner_tick( m, 0.01 * ( i + 1 ), &seen );
        CHECK_EQ( seen_count( &seen, i < 1 ? 0 : 0x27, 0 ), 1 );
        CHECK_EQ( seen.count, 1 );
        CHECK_EQ( corner_event( m ), i == 1 ? 50 + NETCODE_MESSAGES_EVENT_LOST : 0 );
    }
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 1 );
    corner_acks( m, 6, 0 );
    CHECK_EQ( m->reliable.head, 0 );
    corner_silence( m, 1.0 ); /* the packets that were lost are forgotten */
    CHECK_EQ( m->out.used, 0 );
    CHECK_EQ( corner_event( m ), 0 );
    corner_close( m );
}

/* Room is always found before; who asks without that is told that there is none. */
TEST( messages_a_buffer_without_room )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    nc_frame_t frame;
    memset( &frame, 0, sizeof( frame ) );
    frame.bytes = 100;
    while ( nc_heap_take( &m->in, 100 ) )
        ;
    CHECK_EQ( nc_arrived_make( m, &frame, 0, 0 ), 0 );
    netcode_messages_destroy( m );
}

/* One that was taken back is not repeated in the flights behind it, as small ones are. */
TEST( messages_what_was_taken_back_is_not_repeated )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.005, 0 );
    corner_tick( m, 0.0, &seen );
    corner_tick( m, 0.01, &seen );
    CHECK( seen_count( &seen, 0x27, 0 ) == 1 && seen.count == 1 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.02, &seen );
    CHECK_EQ( seen_count( &seen, 0, 1 ), 1 );
    CHECK_EQ( seen_count( &seen, 0, 0 ), 0 );
    corner_close( m );
}

/* The first in the list was taken back and not heard of: those behind it have their time too, whole ones and large ones. */
TEST( messages_each_has_its_own_time )
{
    static const int lives[] = { 1, 3, 2 };
    for ( int bytes = 200; bytes <= 4200; bytes += 4000 ) {
        struct netcode_messages_t * m = corner_open( 64, 2, 0 );
        for ( int i = 0; i < 3; i++ )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0625 * lives[i], (uint64_t) lives[i] );
        messages_drain( m, 0.0 );
        for ( int i = 1; i <= 3; i++ ) {
            messages_drain( m, 0.0625 * i - 0.001 );
            CHECK_EQ( corner_event( m ), 0 );
            CHECK( m->next_expiry <= 0.0625 * i );
            messages_drain( m, 0.0625 * i );
            CHECK_EQ( corner_event( m ), 10 * i + NETCODE_MESSAGES_EVENT_LOST );
            messages_check( m );
        }
        CHECK_EQ( m->stats.reliable_timeouts_total, 3 );
        CHECK( m->next_expiry > 1e299 );
        corner_close( m );
    }
}

/* A reset while something waits to be sent again: it is LOST, and nothing of it is left. */
TEST( messages_reset_with_something_lost )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 5 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    corner_lose( m, 0 );
    CHECK( m->lost_head != 0 && m->lost_head != m->lost_tail );
    netcode_messages_reset( m, 1.0 );
    messages_check( m );
    CHECK( m->lost_head == 0 && m->reliable.head == 0 );
    CHECK_EQ( corner_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 0 );
    CHECK_EQ( m->out.used, 0 );
    corner_close( m );
}

/* A reset while something waits in every queue: who is to be told of it is told, each once. */
TEST( messages_reset_with_full_queues )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    int told[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    for ( int i = 0; i < 8; i++ )
        corner_send( m, i / 2, i & 1 ? NETCODE_MESSAGE_RELIABLE_ORDERED : NETCODE_MESSAGE_UNRELIABLE, 9, 0.0,
                     1 + (uint64_t) i );
    netcode_messages_reset( m, 1.0 );
    for ( int event; ( event = corner_event( m ) ) != 0; ) {
        REQUIRE( event / 10 >= 1 && event / 10 <= 8 && event % 10 == NETCODE_MESSAGES_EVENT_LOST );
        told[event / 10 - 1]++;
    }
    for ( int i = 0; i < 8; i++ )
        CHECK_EQ( told[i], 1 );
    CHECK( m->out.used == 0 && m->active[0] == 0 && m->active[1] == 0 );
    corner_close( m );
}

/* Given up, and not read of before the reset: it is LOST, as it was. */
TEST( messages_reset_with_something_given_up )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.5, 5 );
    corner_tick( m, 0.0, &seen );
    m->tokens = -1e9;
    corner_silence( m, 0.5 );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    netcode_messages_reset( m, 1.0 );
    CHECK_EQ( corner_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 0 );
    CHECK_EQ( m->out.used, 0 );
    corner_close( m );
}

/* Two messages in a lost packet, one of them told LOST: its copy is kept for a late ack, the other's is not. */
TEST( messages_copies_of_a_lost_packet )
{
    for ( int first = 0; first < 2; first++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        for ( int i = 0; i < 2; i++ )
            if ( i == first )
                corner_send( m, i, NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT, 200, 0.0, 4 );
            else
                corner_send( m, i, NETCODE_MESSAGE_RELIABLE, 300, 0.0, 0 );
        corner_tick( m, 0.0, &seen );
        uint32_t both = m->out.used;
        corner_lose( m, 0 );
        CHECK_EQ( corner_event( m ), 40 + NETCODE_MESSAGES_EVENT_LOST );
        corner_tick( m, 0.01, &seen );
        CHECK( seen.count == 1 && seen.frames[0].bytes == 300 );
        corner_acks( m, 1, 0 );
        CHECK( m->out.used > 0 && m->out.used < both );
        CHECK_EQ( nc_heap_round( (uint32_t) sizeof( nc_message_t ) + 200 ), m->out.used );
        corner_acks( m, 1, 1 ); /* it comes late */
        CHECK_EQ( corner_event( m ), 40 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK_EQ( m->stats.packets_lost_spuriously, 1 );
        CHECK_EQ( m->out.used, 0 );
        CHECK_EQ( m->sent_first, m->sent_end );
        corner_close( m );
    }
}

/* The ack of a lost packet counts for three round trips, half a second at least; later it is too late. */
TEST( messages_late_acks )
{
    static const struct {
        double rtt, late;
        int spurious;
        uint16_t threshold, risen;
    } rows[] = { { 0.0, 0.49, 1, 3, 4 },
                 { 0.0, 0.5, 0, 3, 3 },
                 { 0.25, 0.74, 1, 31, 32 },
                 { 0.25, 0.75, 0, 31, 31 },
                 { 0.1, 0.49, 1, 32, 32 } };
    for ( int i = 0; i < 5; i++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT, 201, 0.0, 4 );
        corner_tick( m, 0.0, &seen );
        corner_lose( m, 0 );
        CHECK_EQ( corner_event( m ), 40 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( m->lost_head, 0 ); /* nothing unreliable is sent again */
        m->rtt = m->rtt_latest = rows[i].rtt;
        m->reorder_threshold = rows[i].threshold;
        corner_silence( m, rows[i].late ); /* making packets forgets */
        CHECK_EQ( m->out.used > 0, rows[i].spurious );
        corner_acks( m, 0, 0 );
        CHECK_EQ( corner_event( m ), rows[i].spurious ? 40 + NETCODE_MESSAGES_EVENT_SPURIOUS : 0 );
        CHECK_EQ( m->stats.packets_lost_spuriously, rows[i].spurious );
        CHECK_EQ( m->reorder_threshold, rows[i].risen );
        CHECK_EQ( m->round_samples, 0 ); /* it measures nothing */
        CHECK_NEAR( m->rtt, rows[i].rtt, 1e-9 );
        CHECK_NEAR( m->rtt_min, 0.0, 1e-9 );
        CHECK_EQ( m->out.used, 0 );
        corner_close( m );
    }
}

/* Parts of what was given up are acknowledged: that is no progress and no delivery, it is still taken back. */
TEST( messages_parts_of_what_was_given_up )
{
    for ( int heard = 0; heard < 2; heard++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 2000, 0.1, 5 );
        CHECK_EQ( messages_drain( m, 0.0 ), 2 );
        m->tokens = -1e9;
        corner_silence( m, 0.1 );
        CHECK_EQ( corner_event( m ), 50 + NETCODE_MESSAGES_EVENT_LOST );
        if ( heard )
            corner_acks( m, 1, 1 );
        else {
            corner_lose( m, 0 );
            corner_lose( m, 1 );
        }
        CHECK_EQ( corner_event( m ), 0 );
        m->tokens = 100.0;
        corner_tick( m, 0.11, &seen );
        CHECK( seen.count == 1 && seen_count( &seen, 0x27, 0 ) == 1 && seen.frames[0].bytes == 2000 );
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        corner_acks( m, 2, 0 );
        corner_silence( m, 1.0 );
        CHECK_EQ( corner_event( m ), 0 );
        CHECK( m->out.used == 0 && m->bulk.count == 0 && m->transfers[0] == 0 );
        corner_close( m );
    }
}

/* Heard by its repeat; then its first packet is called lost: there is nothing to be sent again. */
TEST( messages_acked_and_then_lost )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.01, &seen );
    CHECK_EQ( seen.count, 2 );
    m->rtt = 10.0; /* time alone says nothing yet */
    corner_acks( m, 1, 0 );
    CHECK_EQ( m->out.used, 0 );
    corner_lose( m, 0 );
    CHECK_EQ( m->lost_head, 0 );
    corner_silence( m, 0.02 );
    corner_close( m );
}

/* Lost in one packet, under way in another: it is not sent again before that is lost too. */
TEST( messages_another_copy_may_arrive )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.01, &seen );
    corner_lose( m, 0 );
    CHECK_EQ( m->lost_head, 0 );
    corner_lose( m, 1 );
    CHECK_NE( m->lost_head, 0 );
    corner_tick( m, 0.02, &seen );
    CHECK( seen.count == 2 && m->stats.reliable_retries_total == 2 );
    corner_close( m );
}

/* An ack that says nothing new does not end a silence. */
TEST( messages_acks_without_news )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 2; i++ ) {
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        corner_tick( m, 0.0, &seen );
    }
    corner_acks( m, 0, 0 );
    m->timeouts = 3;
    corner_acks( m, 0, 0 );
    CHECK_EQ( m->timeouts, 3 );
    corner_acks( m, 1, 1 );
    CHECK_EQ( m->timeouts, 0 );
    corner_close( m );
}

/* Messages in parts have ids of their own: those in a piece that are far ahead of the oldest do not keep them waiting. */
TEST( messages_parts_do_not_wait_for_ids )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    messages_drain( m, 0.0 );
    m->next_id = 1024;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1500, 0.0, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    messages_drain( m, 0.01 );
    CHECK_EQ( m->stats.messages_sent, 2 );
    corner_close( m );
}

/* ---- repeats ---- */

struct repeat_row_t {
    int bytes;
    const char * flights[5]; /* which messages are in each, a digit for each */
};

/* Small reliable messages ride along for two flights, the newest first. */
TEST( messages_repeats_ride_along )
{
    static const struct repeat_row_t rows[] = {
        { 20, { "0", "10", "210", "321", "432" } },
        { 128, { "0", "10", "210", "321", "432" } },
        { 129, { "0", "1", "2", "3", "4" } },
        { 0, { "0", "10", "210", "321", "432" } },
    };
    for ( int row = 0; row < 4; row++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        for ( int flight = 0; flight < 5; flight++ ) {
            char text[8] = "";
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, rows[row].bytes, 0.0, 0 );
            netcode_messages_update( m, 0.001 * flight );
            netcode_messages_update( m, 0.001 * flight ); /* nothing left in between: it is no flight */
            REQUIRE( seen_next( &seen, m ) > 0 );
            for ( int i = 0; i < seen.count && i < 7; i++ )
                text[i] = (char) ( '0' + seen.frames[i].id );
            CHECK_STR( text, rows[row].flights[flight] );
            CHECK_EQ( seen_next( &seen, m ), 0 );
        }
        CHECK_EQ( m->stats.messages_repeated, row == 2 ? 0 : 7 );
        CHECK_EQ( m->stats.reliable_retries_total, 0 );
        corner_close( m );
    }
}

/*  What is to be taken back is not repeated either, as long as its CANCEL waits behind something lost that does not
    fit. */
TEST( messages_repeats_of_what_is_given_up )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 600, 0.0, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 700, 0.0, 0 );
    CHECK_EQ( messages_drain( m, 0.0 ), 2 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.015, 0 );
    corner_tick( m, 0.01, &seen );
    corner_lose( m, 0 );
    corner_lose( m, 1 );
    netcode_messages_update( m, 0.02 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 && seen.frames[0].bytes == 600 );
    CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].bytes == 700 && seen_count( &seen, 0x27, 2 ) == 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 2 );
    corner_close( m );
}

/* No packet leaves for repeats alone, but a part of a transfer takes them along. What was lost once is no repeat any more. */
TEST( messages_repeats_need_company )
{
    struct netcode_messages_t * m = corner_open( 64, 2, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    corner_silence( m, 0.01 );
    corner_send( m, 1, NETCODE_MESSAGE_RELIABLE, 1500, 0.0, 0 );
    netcode_messages_update( m, 0.02 );
    for ( int i = 0; i < 2; i++ ) {
        REQUIRE( seen_next( &seen, m ) > 0 );
        CHECK_EQ( seen_count( &seen, 1, 0 ), 1 );
        CHECK_EQ( seen_count( &seen, 0, 0 ), i ); /* the first part begins the transfer, the second is one under way */
    }
    corner_close( m );
    m = corner_open( 64, 2, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    corner_lose( m, 0 );
    corner_tick( m, 0.01, &seen );
    CHECK_EQ( m->stats.reliable_retries_total, 1 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 20, 0.0, 0 );
    corner_tick( m, 0.02, &seen );
    CHECK( seen.count == 1 && m->stats.messages_repeated == 0 );
    corner_close( m );
}

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
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
        struct seen_t seen;
        corner_send( m, 0, rows[i].kind, rows[i].first, 0.0, 0 );
        corner_send( m, 0, rows[i].kind, rows[i].second, 0.0, 0 );
        netcode_messages_update( m, 0.0 );
        int bytes = seen_next( &seen, m );
        CHECK_EQ( seen.count, 1 + rows[i].together );
        CHECK_LE( bytes, NETCODE_MAX_PACKET_SIZE );
        CHECK( i != 0 || bytes == 1200 - 2 ); /* the last one's length is left out */
        CHECK_EQ( seen_next( &seen, m ) > 0, !rows[i].together );
        corner_close( m );
    }
}

/* On channels a byte more; one that is too long for the rest of the packet lets a shorter one by. */
TEST( messages_a_shorter_one_passes )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
    struct seen_t seen;
    corner_send( m, 1, 0, 1000, 0.0, 0 ); /* 9 + 4 + 1000 */
    corner_send( m, 2, 0, 185, 0.0, 0 );
    corner_send( m, 3, 0, 183, 0.0, 0 ); /* 4 + 183 = 187, all that is left */
    netcode_messages_update( m, 0.0 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 2 && seen.frames[1].channel == 3 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 && seen.frames[0].channel == 2 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    corner_close( m );
}

/* A CANCEL waits for the next packet where the one that was lost before it leaves no room. */
TEST( messages_a_cancel_without_room )
{
    for ( int bytes = 1177; bytes <= 1180; bytes++ ) {
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
        struct seen_t seen;
        int room = 1200 - 9 - 5 - bytes >= 7;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 0 );
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 500, 0.01, 3 );
        netcode_messages_update( m, 0.0 );
        CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
        CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
        corner_lose( m, 0 );
        netcode_messages_update( m, 0.01 );
        CHECK( seen_next( &seen, m ) > 0 && seen_count( &seen, 0, 0 ) == 1 );
        CHECK_EQ( seen_count( &seen, 0x27, 1 ), room );
        CHECK_EQ( seen_next( &seen, m ) > 0, !room );
        CHECK( room || ( seen.count == 1 && seen_count( &seen, 0x27, 1 ) == 1 ) );
        corner_close( m );
    }
}

/* ---- windows, rates and places that are used up ---- */

struct gate_row_t {
    int congestion, probe;
    double tokens, bulk_tokens, in_flight, bulk_in_flight;
    int unreliable, reliable, bulk;
};

/* What the window and the rate let through. The window is 12000 bytes, that of bulk 4800. */
TEST( messages_what_may_leave )
{
    static const struct gate_row_t rows[] = {
        { 0, 0, 1.0, 1.0, 0.0, 0.0, 1, 1, 1 },           { 0, 0, 0.0, 1.0, 0.0, 0.0, 1, 1, 0 },
        { 0, 0, 1.0, 0.0, 0.0, 0.0, 1, 1, 0 },           { 0, 0, 0.5, 0.5, 0.0, 0.0, 1, 1, 1 },
        { 0, 0, -1199.0, 1.0, 0.0, 0.0, 1, 1, 0 },       { 0, 0, -1200.0, 1.0, 0.0, 0.0, 0, 0, 0 },
        { 0, 0, 1.0, 1.0, 11999.0, 0.0, 1, 1, 1 },       { 0, 0, 1.0, 1.0, 12000.0, 0.0, 1, 0, 1 },
        { 0, 0, 1.0, 1.0, 15600.0, 3601.0, 1, 1, 0 },    { 0, 0, 1.0, 1.0, 15600.0, 3600.0, 1, 0, 1 },
        { 0, 0, 1.0, 1.0, 3601.0, 3601.0, 1, 1, 0 },     { 1, 0, 1.0, 1.0, 99999.0, 50000.0, 1, 1, 1 },
        { 1, 0, -1200.0, 1.0, 0.0, 0.0, 0, 0, 0 },       { 2, 0, -9e9, -9e9, 99999.0, 50000.0, 1, 1, 1 },
        { 0, 1, -9e9, -9e9, 99999.0, 50000.0, 1, 1, 1 }, { 1, 1, -9e9, -9e9, 99999.0, 50000.0, 1, 1, 1 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = corner_open( 16, rows[i].congestion, 0 );
        uint8_t packet[NETCODE_MAX_PACKET_SIZE];
        nc_build_t build;
        memset( &build, 0xff, sizeof( build ) );
        m->probe_due = rows[i].probe;
        m->tokens = rows[i].tokens;
        m->bulk_tokens = rows[i].bulk_tokens;
        m->in_flight = rows[i].in_flight;
        m->bulk_in_flight = rows[i].bulk_in_flight;
        nc_build_begin( m, &build, packet );
        CHECK( build.tracked && build.delay == 0 && build.flags == 0 && build.asks == 0 && build.last == NULL );
        if ( build.unreliable != rows[i].unreliable || build.reliable != rows[i].reliable ||
             build.bulk != rows[i].bulk )
            test_fail( __FILE__, __LINE__, "row %d: %d %d %d", i, build.unreliable, build.reliable, build.bulk );
        m->in_flight = m->bulk_in_flight = 0.0;
        corner_close( m );
    }
}

/* What was held back is remembered, for what an ack may then open. */
TEST( messages_what_was_held_back )
{
    static const struct {
        int reliable, bulk, small_room, bulk_room, held;
    } rows[] = {
        { 0, 0, 0, 0, 0 }, { 1, 0, 1, 1, 0 }, { 1, 0, 0, 0, 3 }, { 0, 1, 0, 0, 3 },
        { 0, 1, 1, 0, 2 }, { 0, 1, 1, 1, 0 }, { 1, 0, 0, 1, 1 }, { 1, 0, 1, 0, 0 },
    };
    for ( int i = 0; i < 8; i++ ) {
        struct netcode_messages_t * m = corner_open( 16, 0, 0 );
        if ( rows[i].reliable )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        if ( rows[i].bulk )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1300, 0.0, 0 );
        netcode_messages_update( m, 0.0 );
        struct seen_t seen;
        m->bulk_in_flight = rows[i].bulk_room ? 0.0 : 4000.0;
        m->in_flight = ( rows[i].small_room ? 0.0 : 12000.0 ) + m->bulk_in_flight;
        while ( seen_next( &seen, m ) > 0 )
            ;
        if ( i == 1 || i == 5 || i == 7 ) /* all of it has left */
            CHECK_EQ( m->held_back, 0 );
        else
            CHECK_EQ( m->held_back, rows[i].held );
        netcode_messages_destroy( m );
    }
}

/*  Sixteen packets under way are all that are remembered. What needs to be remembered waits, what does not goes, and
    once the oldest is settled there is a place again. */
TEST( messages_no_place_for_another_packet )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        corner_tick( m, 0.001 * i, &seen );
        CHECK( seen.asks && seen.count == 1 );
    }
    corner_lose( m, 5 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_send( m, 1, NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT, 200, 0.0, 9 );
    corner_send( m, 2, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 0 );
    m->ping_due = m->limit_due = 1; /* nor these, which would have to be heard of */
    corner_silence( m, 0.02 );
    CHECK( m->ping_due && m->limit_due );
    m->ping_due = m->limit_due = 0;
    corner_send( m, 3, NETCODE_MESSAGE_UNRELIABLE, 201, 0.0, 0 );
    corner_tick( m, 0.021, &seen );
    CHECK( seen.count == 1 && seen.frames[0].bytes == 201 && !seen.asks );
    corner_lose( m, 0 ); /* not heard of, but settled: it makes place for one */
    netcode_messages_update( m, 0.022 );
    REQUIRE( seen_next( &seen, m ) > 0 );
    CHECK( seen.frames[0].id == 5 && seen.frames[1].id == 0 && seen.frames[1].kind == 2 ); /* those that were lost */
    CHECK_EQ( m->stats.reliable_retries_total, 2 );
    CHECK_EQ( seen.count, 4 ); /* and both of the small ones */
    CHECK_EQ( m->sent_end - m->sent_first, 16 );
    corner_silence( m, 0.023 );
    corner_close( m );
}

/* However many ask for a receipt, one packet holds as many as it has room for; each is told. */
TEST( messages_many_receipts_of_one_packet )
{
    for ( int lost = 0; lost < 2; lost++ ) {
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
        struct seen_t seen;
        for ( int i = 0; i < 64; i++ )
            corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT, 10, 0.0, 1 + (uint64_t) i );
        corner_tick( m, 0.0, &seen );
        CHECK_EQ( seen.count, 64 );
        if ( lost ) {
            corner_lose( m, 0 );
            CHECK_EQ( m->watched.count, 64 );
            corner_silence( m, 0.3 );
            for ( int i = 0; i < 64; i++ )
                CHECK_EQ( corner_event( m ), 10 * ( 1 + i ) + NETCODE_MESSAGES_EVENT_LOST );
        }
        corner_acks( m, 0, 0 );
        for ( int i = 0; i < 64; i++ )
            CHECK_EQ( corner_event( m ),
                      10 * ( 1 + i ) + ( lost ? NETCODE_MESSAGES_EVENT_SPURIOUS : NETCODE_MESSAGES_EVENT_ACKED ) );
        CHECK_EQ( m->out.used, 0 );
        corner_close( m );
    }
}

/*  Two messages, both lost and one of them begun later: what was begun in a later packet is no business of an earlier one, even
    where it was told to be lost before it was in any. */
TEST( messages_what_was_begun_later )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.1, 1 );
    corner_tick( m, 0.0, &seen );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 201, 0.1, 2 );
    corner_tick( m, 0.01, &seen );
    m->tokens = -1e9;
    corner_silence( m, 0.2 );
    CHECK_EQ( corner_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 20 + NETCODE_MESSAGES_EVENT_LOST );
    corner_lose( m, 0 );
    CHECK_EQ( m->reliable.count, 2 );
    corner_acks( m, 0, 0 );
    CHECK_EQ( corner_event( m ), 10 + NETCODE_MESSAGES_EVENT_SPURIOUS );
    CHECK_EQ( corner_event( m ), 0 );
    CHECK_EQ( m->reliable.count, 1 ); /* to be taken back yet */
    corner_close( m );
}

/* ---- probes ---- */

/* Given up with one of its parts; that the others are lost as well changes nothing, and is not counted again. */
TEST( messages_parts_lost_behind_a_last_try )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 1 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 6 );
    messages_drain( m, 0.0 );
    CHECK_EQ( m->packets_in_flight, 3 );
    for ( uint32_t i = 0; i < 3; i++ )
        corner_lose( m, i );
    messages_drain( m, 0.01 );
    CHECK_EQ( m->packets_in_flight, 3 );
    for ( uint32_t i = 3; i < 6; i++ )
        corner_lose( m, i );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
    CHECK_EQ( m->stats.reliable_retries_total, 3 );
    CHECK_EQ( corner_event( m ), 60 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 0 );
    corner_close( m );
}

/* The same message twice in one packet, and once more in the next: handed over once, counted twice. */
TEST( messages_twice_in_one_packet )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
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
    corner_close( m );
}

/* Nothing is heard: the oldest message once more, each time after twice as long, and every time within two seconds. */
TEST( messages_probes_back_off )
{
    struct netcode_messages_t * m = corner_open( 16, 0, 0 );
    static const double times[] = { 0.2, 0.6, 1.4, 3.0, 5.0, 7.0 };
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    for ( int i = 0; i < 6; i++ ) {
        netcode_messages_update( m, times[i] - 0.001 );
        CHECK_EQ( seen_next( &seen, m ), 0 );
        corner_tick( m, times[i] + 0.0001 * ( i + 1 ), &seen );
        CHECK( seen.asks && seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 );
        CHECK_EQ( m->stats.probes, i + 1 );
        CHECK_EQ( (int) m->window_bytes, i < 1 ? 12000 : 2400 ); /* one silence may be chance, two are not */
        CHECK_EQ( (int) m->bulk_bytes, i < 1 ? 4800 : 2400 );
    }
    CHECK_EQ( m->stats.reliable_retries_total, 0 );
    corner_acks( m, 6, 0 );
    CHECK_EQ( m->timeouts, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_tick( m, 8.0, &seen );
    CHECK_EQ( m->out.used > 0, 1 );
    corner_close( m );
    m = corner_open( 16, 1, 0 ); /* a fixed rate stays as it is */
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    for ( int i = 0; i < 5; i++ )
        messages_drain( m, 2.0 * i );
    CHECK( m->timeouts >= 3 && (int) m->window_bytes == 12000 );
    corner_close( m );
}

/* Beside a PONG there is no room for the largest message once more: a ping, then. */
TEST( messages_a_probe_that_does_not_fit )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, NETCODE_MESSAGES_WHOLE_BYTES, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    m->pong_due = 1;
    corner_tick( m, 0.21, &seen );
    CHECK_EQ( m->stats.probes, 1 );
    CHECK( seen.count == 2 && seen.frames[0].type == 0x17 && seen.frames[1].type == 0x0f && seen.asks );
    corner_tick( m, 0.62, &seen ); /* 0.21 and twice 0.2 */
    CHECK( m->stats.probes == 2 && seen.count == 1 && seen_count( &seen, 0, 0 ) == 1 );
    corner_close( m );
}

/* More probes than a message remembers packets by: it is known by the newest, and once all that it knows are lost it is sent again. */
TEST( messages_probes_beyond_what_is_remembered )
{
    for ( int lost = 0; lost < 2; lost++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 3 );
        for ( int i = 0; i < 5; i++ )
            corner_tick( m, 2.5 * i, &seen );
        const nc_message_t * message = nc_message_at( m, m->reliable.head );
        CHECK_EQ( message->carrier_count, NC_MESSAGES_CARRIERS );
        CHECK_EQ( m->stats.probes, 4 );
        for ( uint32_t i = 0; i < 3; i++ )
            corner_lose( m, i );
        CHECK_EQ( m->lost_head, 0 );
        if ( lost ) {
            corner_lose( m, 4 );
            corner_lose( m, 3 );
            CHECK_EQ( m->lost_head, m->reliable.head );
            corner_tick( m, 12.5, &seen );
            CHECK_EQ( m->stats.reliable_retries_total, 1 );
            corner_acks( m, 5, 0 );
        } else
            corner_acks( m, 4, 0 );
        CHECK_EQ( corner_event( m ), 30 + NETCODE_MESSAGES_EVENT_ACKED );
        CHECK_EQ( m->reliable.head, 0 );
        corner_close( m );
    }
}

/* What a probe is: the message, or a ping where that is in parts, taken back, or not there. */
TEST( messages_what_a_probe_is )
{
    struct seen_t seen;
    for ( int way = 0; way < 4; way++ ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        if ( way == 0 )
            corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 200, 0.0, 0 );
        if ( way == 1 )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1181, 0.0, 0 );
        if ( way >= 2 )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, way == 2 ? 0.0 : 0.05, 0 );
        messages_drain( m, 0.0 );
        messages_drain( m, 0.05 );
        netcode_messages_update( m, 0.2001 + 0.05 * ( way == 3 ) );
        CHECK( m->probe_due && netcode_messages_next_deadline( m ) <= m->now );
        REQUIRE( seen_next( &seen, m ) > 0 );
        CHECK( seen.count == 1 && seen.asks );
        CHECK_EQ( seen.frames[0].type, way == 2 ? 0 : 0x0f );
        CHECK_EQ( m->stats.probes, 1 );
        corner_close( m );
    }
    struct netcode_messages_t * m = corner_open( 16, 1, 0 ); /* something leaves anyway: that is the probe */
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    messages_drain( m, 0.0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 201, 0.0, 0 );
    corner_tick( m, 0.25, &seen );
    CHECK( seen.count == 1 && seen_count( &seen, 0, 1 ) == 1 && m->stats.probes == 1 );
    corner_close( m );
}

/* A probe leaves even where the window is full: the oldest packet under way is called lost for it. */
TEST( messages_a_probe_finds_a_place )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        corner_tick( m, 0.0, &seen );
    }
    corner_tick( m, 0.2, &seen );
    CHECK( seen.asks && seen_count( &seen, 0, 0 ) == 1 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    CHECK_EQ( m->sent_end - m->sent_first, 16 );
    CHECK_EQ( m->packets_in_flight, 16 );
    corner_close( m );
}

/* The oldest was lost before and is only remembered: the probe takes its place, and nothing else is called lost. */
TEST( messages_a_probe_takes_the_place_of_what_was_lost )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    for ( int i = 0; i < 16; i++ ) {
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        corner_tick( m, 0.0, &seen );
    }
    corner_lose( m, 0 );
    m->tokens = -1e9;
    corner_tick( m, 0.2, &seen );
    CHECK( seen.asks && seen.frames[0].id == 0 && m->stats.probes == 1 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    CHECK_EQ( m->packets_in_flight, 16 );
    CHECK_EQ( nc_sent_at( m, m->sent_first )->number, 1 );
    corner_close( m );
}

/* Pings do not put off the moment at which a message is sent again. */
TEST( messages_pings_put_nothing_off )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_tick( m, 0.0, &seen );
    m->ping_due = 1;
    corner_tick( m, 0.1, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x0f );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 0.2, 1e-9 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
    corner_tick( m, 0.15, &seen );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 0.35, 1e-9 ); /* a message does */
    corner_acks( m, 2, 3 );
    m->ping_due = 1; /* and so does a ping that is alone under way */
    corner_tick( m, 1.0, &seen );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 1.0 + nc_messages_timeout( m ), 1e-9 );
    corner_close( m );
}

/*  Unreliable messages to somebody who never answers: 16384 packets, and then a probe every two seconds. One answer, and
    it goes on. */
TEST( messages_nobody_answers )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
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
    m->last_asked = m->now;
    netcode_messages_update( m, m->now + 1.999 );
    CHECK_EQ( m->probe_due, 0 );
    netcode_messages_update( m, m->now + 0.001 );
    CHECK_EQ( m->probe_due, 1 );
    m->packets_in_flight = 16;
    corner_acks( m, (int) ( messages_newest( m ) & 0xffff ), 0 );
    CHECK_EQ( nc_messages_gap( m ), 0 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    netcode_messages_update( m, m->now );
    CHECK( seen_next( &seen, m ) > 0 && seen_count( &seen, 0, 0 ) == 1 );
    netcode_messages_destroy( m );
}

/* Each ack brings the newest that was acknowledged nearer, an old one does not take it back. */
TEST( messages_the_newest_acknowledged )
{
    struct netcode_messages_t * m = corner_open( 16, 2, 0 );
    struct seen_t seen;
    static const int acks[] = { 0, 1, 2, 1, 5, 3, 5 }, gaps[] = { 7, 6, 5, 5, 2, 2, 2 };
    for ( int i = 0; i < 8; i++ ) {
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 200, 0.0, 0 );
        corner_tick( m, 0.0, &seen );
    }
    CHECK_EQ( nc_messages_gap( m ), 8 );
    for ( int i = 0; i < 7; i++ ) {
        corner_acks( m, acks[i], 0 );
        CHECK_EQ( nc_messages_gap( m ), gaps[i] );
    }
    corner_close( m );
}

/* The very packet at which a sender stops: 16384 ahead, two seconds after the last that asked. */
TEST( messages_too_far_ahead_to_go_on )
{
    for ( uint64_t ahead = 16383; ahead <= 16385; ahead++ ) {
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
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

/* ---- transfers ---- */

/* Which transfer the next part on the wire belongs to: its bytes. */
static int corner_part( struct netcode_messages_t * m )
{
    struct seen_t seen;
    if ( seen_next( &seen, m ) == 0 )
        return 0;
    CHECK( seen.count == 1 && seen.frames[0].type == 1 );
    return seen.frames[0].bytes;
}

/* The better priority goes first, also before what is under way; equals one behind the other. */
TEST( messages_transfers_by_priority )
{
    struct netcode_messages_t * m = corner_open( 64, 2, 0 );
    static const int expected[] = { 4001, 3002, 3002, 3002, 2000, 2000, 2500, 2500, 2500,
                                    4001, 4001, 4001, 5003, 5003, 5003, 5003, 5003, 0 };
    corner_send( m, 2, NETCODE_MESSAGE_RELIABLE, 4001, 0.0, 0 );
    corner_send( m, 3, NETCODE_MESSAGE_RELIABLE, 5003, 0.0, 0 );
    netcode_messages_update( m, 0.0 );
    for ( int i = 0; i < 18; i++ ) {
        if ( i == 1 ) {
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3002, 0.0, 0 );
            corner_send( m, 1, NETCODE_MESSAGE_RELIABLE, 2000, 0.0, 0 );
            corner_send( m, 1, NETCODE_MESSAGE_RELIABLE, 2500, 0.0, 0 );
        }
        CHECK_EQ( corner_part( m ), expected[i] );
        messages_check( m );
    }
    corner_close( m );
}

/* What leaves is taken off what may leave: a part off both, anything else that asks off one, an ack alone off none. */
TEST( messages_what_leaves_is_taken_off )
{
    static const int bytes[] = { 1500, 300, 0 };
    for ( int i = 0; i < 3; i++ ) {
        struct netcode_messages_t * m = corner_open( 16, 0, 0 );
        struct seen_t seen;
        netcode_messages_update( m, 0.5 );
        m->tokens = 2000.0;
        m->bulk_tokens = 1000.0;
        if ( bytes[i] )
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes[i], 0.0, 0 );
        else
            m->acks_due = 2;
        int left = seen_next( &seen, m );
        REQUIRE( left > 0 );
        CHECK_NEAR( m->tokens, bytes[i] ? 2000.0 - left : 2000.0, 1e-9 );
        CHECK_NEAR( m->bulk_tokens, i == 0 ? 1000.0 - left : 1000.0, 1e-9 );
        CHECK_NEAR( m->in_flight, bytes[i] ? left : 0.0, 1e-9 );
        corner_close( m );
    }
}

/* A lost part goes before the next one. */
TEST( messages_lost_parts_go_first )
{
    struct netcode_messages_t * m = corner_open( 64, 2, 0 );
    struct seen_t seen;
    static const int expected[] = { 1, 2, 3, 4, 5, 6, 7 };
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_WITH_RECEIPT, 8000, 0.0, 6 );
    netcode_messages_update( m, 0.0 );
    for ( int i = 0; i < 3; i++ )
        CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].index == i );
    corner_lose( m, 1 );
    corner_lose( m, 2 );
    CHECK_EQ( m->stats.reliable_retries_total, 0 );
    for ( int i = 0; i < 7; i++ ) {
        CHECK( seen_next( &seen, m ) > 0 && seen.frames[0].index == expected[i] );
        CHECK_EQ( m->stats.reliable_retries_total, i < 2 ? i + 1 : 2 );
        messages_check( m );
    }
    CHECK_EQ( seen_next( &seen, m ), 0 );
    corner_acks( m, 9, 0x13f ); /* 1 and 2 are missing, and were sent again in 3 and 4 */
    CHECK_EQ( corner_event( m ), 60 + NETCODE_MESSAGES_EVENT_ACKED );
    CHECK_EQ( m->out.used, 0 );
    corner_close( m );
}

/* A part may be lost as often as max_retries says; once more, and all of it is given up. */
TEST( messages_parts_are_given_up )
{
    static const int limits[] = { 1, 2, 60 };
    for ( int way = 0; way < 3; way++ ) {
        int retries = limits[way];
        struct netcode_messages_t * m = corner_open( 256, 2, retries );
        struct seen_t seen;
        int last = 0;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1500, 0.0, 8 );
        CHECK_EQ( messages_drain( m, 0.0 ), 2 );
        for ( int i = 0; i < retries; i++ ) {
            corner_lose( m, i ? (uint32_t) last : 1 );
            corner_tick( m, 0.0001 * i, &seen );
            CHECK( seen.count == 1 && seen.frames[0].type == 1 && seen.frames[0].index == 1 );
            CHECK_EQ( corner_event( m ), 0 );
            last = seen.number;
        }
        CHECK_EQ( m->stats.reliable_retries_total, retries );
        corner_lose( m, (uint32_t) last );
        CHECK_EQ( corner_event( m ), 80 + NETCODE_MESSAGES_EVENT_LOST );
        corner_tick( m, 0.1, &seen );
        CHECK( seen.count == 1 && seen_count( &seen, 0x27, 0 ) == 1 );
        CHECK_EQ( m->stats.reliable_timeouts_total, 1 );
        corner_close( m );
    }
}

/* Without a limit it goes on for ever, in parts and in a piece, far beyond what is counted of one message. */
TEST( messages_nothing_is_given_up_for_losses )
{
    for ( int bytes = 300; bytes <= 1500; bytes += 1200 ) {
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 8 );
        messages_drain( m, 0.0 );
        uint32_t last = (uint32_t) messages_newest( m );
        if ( bytes > 1180 )
            corner_acks( m, 0, 0 );
        for ( int i = 0; i < 300; i++ ) {
            corner_lose( m, last );
            corner_tick( m, 0.0001 * i, &seen );
            CHECK( seen.count == 1 && seen.frames[0].bytes == bytes );
            last = (uint32_t) seen.number;
        }
        CHECK_EQ( m->stats.reliable_retries_total, 300 );
        corner_acks( m, (int) last, 0 );
        while ( corner_event( m ) == 80 + NETCODE_MESSAGES_EVENT_PROGRESS )
            ;
        CHECK( m->reliable.count == 0 && m->bulk.count == 0 );
        netcode_messages_destroy( m );
    }
}

/* How much of it is there: whole parts, and the last one as long as it is. */
TEST( messages_progress_in_bytes )
{
    for ( int last_first = 0; last_first < 2; last_first++ ) {
        struct netcode_messages_t * m = corner_open( 64, 2, 0 );
        struct netcode_messages_event_t event;
        static const int in_order[] = { 1024, 2048, 3000 }, from_behind[] = { 952, 1976, 3000 };
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 3000, 0.0, 6 );
        CHECK_EQ( messages_drain( m, 0.0 ), 3 );
        m->reorder_threshold = 32;
        for ( int i = 0; i < 3; i++ ) {
            corner_acks( m, last_first ? 2 - i : i, 0 );
            REQUIRE( netcode_messages_event( m, &event ) );
            CHECK_EQ( event.type, i < 2 ? NETCODE_MESSAGES_EVENT_PROGRESS : NETCODE_MESSAGES_EVENT_ACKED );
            CHECK( event.bytes == 3000 && event.receipt == 6 && event.kind == NETCODE_MESSAGE_RELIABLE );
            CHECK_EQ( event.bytes_done, last_first ? from_behind[i] : in_order[i] );
        }
        corner_close( m );
    }
}

/* Sixteen transfers at a time, the seventeenth waits, whatever room there is. */
TEST( messages_sixteen_transfers )
{
    struct netcode_messages_config_t config;
    memset( &config, 0, sizeof( config ) );
    config.window_packets = 256;
    config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    m->peer_max_bytes = 100000;
    m->credit_limit = 1u << 24;
    for ( int i = 0; i < 20; i++ )
        corner_send( m, i, NETCODE_MESSAGE_RELIABLE_ORDERED, 1200 + i, 0.0, 0 );
    messages_drain( m, 0.0 );
    CHECK_EQ( m->stats.messages_sent, 16 );
    CHECK_EQ( m->bulk.count, 16 );
    corner_acks( m, 1, 1 ); /* one of them has arrived */
    messages_drain( m, 0.001 );
    CHECK_EQ( m->stats.messages_sent, 17 );
    corner_send( m, 30, NETCODE_MESSAGE_RELIABLE, 5, 0.0, 0 ); /* what is small has nothing to do with that */
    messages_drain( m, 0.002 );
    CHECK_EQ( m->stats.messages_sent, 18 );
    corner_close( m );
}

/*  An ordered message in parts does not arrive. Those behind it on its channel go on for 1023 more, those on another
    channel without end, and those without order even then. */
TEST( messages_ordered_ones_do_not_run_away_from_a_transfer )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_t * m = corner_open( 2048, 2, 0 );
        int channel = way == 1, kind = way == 2 ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_RELIABLE_ORDERED;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 1500, 0.0, 0 );
        messages_drain( m, 0.0 );
        for ( int i = 1; i <= 1100; i++ ) {
            corner_send( m, channel, i < 1024 ? NETCODE_MESSAGE_RELIABLE_ORDERED : kind, 1, 0.0, 0 );
            messages_drain( m, 0.0001 * i );
            m->reorder_threshold = UINT16_MAX;
            m->rtt = 10.0;
            struct craft_t craft; /* all but those with a part: they have numbers that are under way for ever */
            craft_begin( &craft, m->newest_received + 1, messages_newest( m ), 0 );
            craft.data[0] = 0x11;
            if ( m->next_number > 2 )
                CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
            if ( m->stats.messages_sent < (uint64_t) i )
                break;
        }
        CHECK_EQ( m->bulk.count, 1 );
        CHECK_EQ( m->stats.messages_sent, way == 0 ? 1024 : 1101 );
        corner_close( m );
    }
}

/* Too old to be begun when its packet is made, though no update has said so: it is dropped, and counted. */
TEST( messages_outlived_between_update_and_packet )
{
    for ( int bytes = 100; bytes <= 2000; bytes += 1900 ) {
        struct netcode_messages_t * m = corner_open( 16, 1, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.5, 3 );
        corner_send( m, 1, NETCODE_MESSAGE_RELIABLE, bytes, 0.6, 4 );
        m->flush = 1;
        nc_messages_set_time( m, 0.5 ); /* as receiving does */
        REQUIRE( seen_next( &seen, m ) > 0 );
        CHECK( seen.count == 1 && seen.frames[0].channel == 1 );
        CHECK_EQ( m->stats.messages_expired, 1 );
        CHECK_EQ( corner_event( m ), 30 + NETCODE_MESSAGES_EVENT_LOST );
        CHECK_EQ( corner_event( m ), 0 );
        corner_close( m );
    }
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
        craft_message( &craft, 4, 0, 0, 0, flow_data, 5 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        for ( int i = 0; i < 2; i++ ) { /* and one in parts that says it was begun before that one is not */
            craft_begin( &craft, 5 + i, -1, 0 );
            craft_fragment( &craft, 4, 0, 2, 0, flow_data, 1300, i & 1 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        struct netcode_message_t message;
        CHECK( netcode_messages_receive( m, &message ) && message.bytes == 5 );
        CHECK_EQ( messages_read( m ), 0 );
        CHECK_EQ( m->stats.messages_outdated, way + 1 );
        corner_close( m );
    }
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
    corner_close( m );
}

/* ---- said twice ---- */

/* What came before is counted and changes nothing: parts, orders under another id, messages taken back. */
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
        craft_message( &craft, 3, 1, i, 2, "abc", 3 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->stats.messages_duplicate, 2 * i );
        craft_begin( &craft, 3 * i + 2, -1, 0 );
        craft_cancel( &craft, 9, 5 );
        craft_cancel( &craft, 9, 1500 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->credit_received - m->credit_released, 2100 + 3 + 2 * 80 );
        messages_check( m );
    }
    CHECK_EQ( m->stats.messages_duplicate, 4 );
    corner_close( m );
}

/* ---- parts that do not fit to each other ---- */

/* All parts of a message are of one kind, channel, order and length; whichever of these is another one, it is a lie. */
TEST( messages_parts_of_one_shape )
{
    static const struct {
        int kind, channel, order, bytes, good;
    } rows[] = { { 3, 1, 0, 2100, 1 },
                 { 4, 1, 0, 2100, 0 },
                 { 3, 2, 0, 2100, 0 },
                 { 3, 1, 1, 2100, 0 },
                 { 3, 1, 0, 2099, 0 } };
    for ( int i = 0; i < 10; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t craft;
        messages_drain( m, 0.0 );
        craft_begin( &craft, 0, -1, 0 );
        craft_fragment( &craft, 3, 1, 7, 0, flow_data, 2100, 2 );
        if ( i < 5 ) { /* in the next packet, or in the same one */
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
            craft_begin( &craft, 1, -1, 0 );
        }
        craft_fragment( &craft, rows[i % 5].kind, rows[i % 5].channel, 7, rows[i % 5].order, flow_data,
                        rows[i % 5].bytes, 0 );
        CHECK_EQ( craft_give( &craft, m ),
                  rows[i % 5].good ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_FRAGMENT );
        CHECK_EQ( m->in.used > 0, i < 5 || rows[i % 5].good );
        corner_close( m );
    }
}

/* Sixty-four messages in parts ahead of one that is not complete, in whichever place that is, is too far. */
TEST( messages_parts_too_far_ahead )
{
    for ( int last = 0; last < 16; last++ ) {
        struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
        struct craft_t craft;
        int64_t number = 0;
        messages_drain( m, 0.0 );
        for ( int i = 0; i <= last; i++ ) {
            craft_begin( &craft, number++, -1, 0 );
            craft_fragment( &craft, 2, 0, i, 0, flow_data, 1200, 1 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        craft_begin( &craft, number++, -1, 0 );
        for ( int i = 0; i < 30; i++ )
            if ( i != last )
                craft_cancel( &craft, i, 1200 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        craft_begin( &craft, number++, -1, 0 );
        craft_cancel( &craft, last + 63, 1200 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_NE( m->partial[last], 0 );
        craft_begin( &craft, number, -1, 0 );
        craft_fragment( &craft, 2, 0, last + 64, 0, flow_data, 1200, 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_WINDOW );
        craft_begin( &craft, number, -1, 0 ); /* once that is complete it is not */
        craft_fragment( &craft, 2, 0, last, 0, flow_data, 1200, 0 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        craft_begin( &craft, number + 1, -1, 0 );
        craft_fragment( &craft, 2, 0, last + 64, 0, flow_data, 1200, 1 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        corner_close( m );
    }
}

/* ---- credit ---- */

/* The last byte of credit may be used: a message costs its length and 80. */
TEST( messages_credit_to_the_last_byte )
{
    for ( int bytes = 200; bytes <= 2000; bytes += 1800 )
        for ( int off = -1; off <= 1; off++ ) {
            struct netcode_messages_t * m = corner_open( 16, 1, 0 );
            m->credit_spent = UINT32_MAX - 100;
            m->credit_limit = m->credit_spent + (uint32_t) ( bytes + 80 + off );
            corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, bytes, 0.0, 0 );
            messages_drain( m, 0.0 );
            CHECK_EQ( m->stats.messages_sent, off >= 0 );
            struct netcode_messages_stats_t stats;
            netcode_messages_stats( m, &stats );
            CHECK_EQ( (int) stats.credit, off >= 0 ? off : bytes + 79 );
            corner_close( m );
        }
}

/* Nothing in parts is begun before the other side has said how much it takes. */
TEST( messages_transfers_wait_for_the_first_limit )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct craft_t craft;
    m->peer_max_bytes = 0;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1181, 0.0, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE, 1180, 0.0, 0 );
    corner_send( m, 1, NETCODE_MESSAGE_RELIABLE, 1180, 0.0, 0 );
    messages_drain( m, 0.0 );
    CHECK_EQ( m->stats.messages_sent, 1 );
    craft_begin( &craft, 0, -1, 0 );
    craft_limit( &craft, m->credit_limit + 1, 1181 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    messages_drain( m, 0.001 );
    CHECK_EQ( m->stats.messages_sent, 3 );
    corner_close( m );
}

/*  A LIMIT leaves when a quarter of the window is free again, sooner where the largest message would have to wait, and
    once more where its packet is lost. */
TEST( messages_limits_leave_in_time )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    CHECK_EQ( m->credit_window, 24576 );
    for ( int round = 0; round < 3; round++ ) {
        m->credit_received = m->credit_released += 6143;
        corner_silence( m, round );
        m->credit_received = m->credit_released += 1;
        corner_tick( m, round + 0.1, &seen );
        CHECK( seen.count == 1 && seen.asks && seen.frames[0].type == 0x1f );
        CHECK_EQ( seen.frames[0].value, 24576 + 6144 * ( (uint32_t) round + 1 ) );
        CHECK_EQ( seen.frames[0].bytes, 8192 );
        CHECK_EQ( m->credit_granted, seen.frames[0].value );
        corner_lose( m, (uint32_t) seen.number );
        corner_tick( m, round + 0.2, &seen );
        CHECK( seen.count == 1 && seen.frames[0].type == 0x1f );
        corner_acks( m, seen.number, 0 );
    }
    corner_close( m );
    m = corner_open( 16, 1, 0 );
    m->max_message_bytes = 24576 - 80 - 100;
    m->credit_received = m->credit_released = 99;
    corner_silence( m, 0.0 );
    m->credit_received = m->credit_released = 100;
    corner_tick( m, 0.1, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x1f );
    netcode_messages_destroy( m );
}

/* ---- flush, pings, broken ---- */

/* Small messages wait for company until 1100 bytes are there, or until they are told to go. */
TEST( messages_small_ones_wait_for_company )
{
    struct netcode_messages_t * m = corner_open( 16, 1, 0 );
    struct seen_t seen;
    corner_silence( m, 0.0 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 549, 0.0, 0 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 550, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 3 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    netcode_messages_flush( m );
    CHECK( seen_next( &seen, m ) > 0 && seen.count == 1 );
    CHECK_EQ( seen_next( &seen, m ), 0 );
    corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 0 );
    CHECK_EQ( seen_next( &seen, m ), 0 ); /* one flush, and what was queued by then */
    corner_tick( m, 0.1, &seen );
    corner_close( m );
}

/* A PING goes every so often and comes back as it was; what it takes is told, if it is less than a minute. */
TEST( messages_pings )
{
    struct netcode_messages_config_t config = *small_config();
    config.ping_seconds = 0.25;
    struct netcode_messages_t * m = netcode_messages_create( &config, 2.0 );
    struct seen_t seen;
    struct craft_t craft;
    int number = 0;
    messages_drain( m, 2.0 );
    static const double trips[] = { 0.0625, 59.99992, 60.00002, 60.5 }, told[] = { 0.0625, 59.9999, 59.9999, 59.9999 };
    corner_acks( m, number++, 0 );
    corner_silence( m, 2.249 );
    corner_tick( m, 2.25, &seen );
    CHECK( seen.count == 1 && seen.frames[0].type == 0x0f && seen.frames[0].value == 22500 );
    corner_acks( m, seen.number, 0 );
    corner_silence( m, 2.499 );
    corner_tick( m, 2.5, &seen );
    for ( int i = 0; i < 4; i++ ) {
        nc_messages_set_time( m, 2.5 + trips[i] );
        craft_begin( &craft, m->newest_received + 1, -1, 0 );
        put( &craft.at, 0x17, 1 );
        put( &craft.at, 25000, 4 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_NEAR( m->ping, told[i], 1e-9 );
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
    struct netcode_messages_t * m = corner_open( 16, 1, 1 );
    struct seen_t seen;
    struct craft_t craft;
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED_WITH_RECEIPT, 200, 0.0, 1 );
    corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED_WITH_RECEIPT, 200, 0.0, 2 );
    corner_tick( m, 0.0, &seen );
    corner_lose( m, 0 );
    corner_tick( m, 0.01, &seen );
    m->tokens = -1e9;
    corner_send( m, 1, NETCODE_MESSAGE_UNRELIABLE, 5, 0.5, 0 );
    corner_lose( m, 1 );
    CHECK_EQ( m->stats.reliable_timeouts_total, 1 ); /* the second one makes it no worse */
    CHECK_EQ( corner_event( m ), NETCODE_MESSAGES_EVENT_BROKEN );
    CHECK_EQ( corner_event( m ), 0 );
    corner_silence( m, 5.0 );
    CHECK_NEAR( m->now, 5.0, 1e-9 );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 3605.0, 1e-9 );
    craft_begin( &craft, 0, -1, 0 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_BROKEN );
    CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 ), NETCODE_MESSAGES_BROKEN );
    CHECK_EQ( m->stats.messages_expired, 0 ); /* nothing is dropped meanwhile */
    netcode_messages_reset( m, 6.0 );
    CHECK_EQ( corner_event( m ), 10 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 20 + NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( corner_event( m ), 0 );
    CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, "a", 1 ), NETCODE_OK );
    corner_tick( m, 6.0, &seen );
    CHECK( seen.number == 0 && seen_count( &seen, 0, 0 ) == 1 );
    corner_close( m );
}

/* A few bytes of acks do not make a sender walk all receipts it waits for, once for each packet that they settle. */
TEST( messages_settling_many_receipts )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.window_packets = 4096;
    config.send_buffer_bytes = 16 << 20;
    config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
    config.ping_seconds = -1.0;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct netcode_messages_event_t event;
    struct craft_t craft;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    REQUIRE( m != NULL );
    netcode_messages_update( m, 0.1 );
    clock_t start = clock();
    while ( m->packets_in_flight < 2048 ) {
        corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT, 20, 0.0, 1 );
        if ( m->queued_bytes >= 900 ) {
            netcode_messages_flush( m );
            while ( netcode_messages_generate_packet( m, packet, sizeof( packet ) ) )
                ;
        }
    }
    uint32_t watched = m->watched.count;
    craft_begin( &craft, 0, messages_newest( m ), 7 ); /* the newest four: all others are lost */
    clock_t sent = clock();
    CHECK_EQ( netcode_messages_process_packet( m, craft.data, craft_bytes( &craft ) ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_LE( clock() - sent,
              10 * ( sent - start ) ); /* to send them was not for nothing either; a walk for each is 60 times that */
    CHECK_EQ( m->stats.packets_lost, 2044 );
    CHECK_GT( watched, 80000 );
    CHECK_EQ( netcode_messages_event( m, &event ), 1 );
    CHECK_EQ( event.type, NETCODE_MESSAGES_EVENT_ACKED );
    netcode_messages_destroy( m );
}

/* What is given up may have arrived with each of its packets: that is told, whichever is heard of first or late. */
TEST( messages_given_up_and_there )
{
    for ( int packet = 0; packet < 4; packet++ ) {
        struct netcode_messages_t * m = corner_open( 16, 2, 0 );
        struct seen_t seen;
        corner_send( m, 0, NETCODE_MESSAGE_RELIABLE_WITH_RECEIPT, packet == 3 ? 200 : 10, 0.05, 7 );
        for ( int i = 0; i < 3; i++ ) { /* a small one is in all three, a large one in the first */
            corner_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, 5, 0.0, 0 );
            corner_tick( m, 0.01 * i, &seen );
        }
        corner_tick( m, 0.06, &seen );
        CHECK_EQ( seen_count( &seen, 0x27, 0 ), 1 );
        CHECK_EQ( corner_event( m ), 70 + NETCODE_MESSAGES_EVENT_LOST );
        if ( packet == 3 ) { /* its packet and then the one with CANCEL are called lost */
            corner_lose( m, 0 );
            corner_lose( m, 3 );
        }
        corner_acks( m, packet % 3, 0 );
        CHECK_EQ( corner_event( m ), 70 + NETCODE_MESSAGES_EVENT_SPURIOUS );
        CHECK_EQ( m->reliable.count, 0 );
        corner_close( m );
    }
}
