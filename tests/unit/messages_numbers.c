/*  Messages, their numbers: round trips, timeouts, windows, rates and deadlines against models and tables that were worked out by
    hand. Many of the numbers are fractions of two, so that "just" and "just not" are exact. Run: runner messages_numbers.c */

static double numbers_pick( const double * from, int count )
{
    return from[test_random_below( count )];
}

#define NUMBERS_PICK( table ) numbers_pick( table, (int) ( sizeof( table ) / sizeof( ( table )[0] ) ) )
#define NUMBERS_SAME( a, b ) CHECK_NEAR( a, b, 1e-9 * ( 1.0 + fabs( b ) ) )

static struct netcode_messages_t * numbers_open( int congestion )
{
    struct netcode_messages_config_t config = *small_config();
    config.congestion = congestion;
    config.ping_seconds = -1.0;
    return netcode_messages_create( &config, 0.0 );
}

/* ---- small things ---- */

TEST( messages_stamps )
{
    static const struct {
        double time;
        uint32_t stamp;
    } rows[] = { { 0.0, 0 },         { 0.00015, 1 },          { 1.23456, 12345 },    { 429496.7296, 0 },
                 { 429496.7297, 1 }, { -0.0001, UINT32_MAX }, { 99999.5, 999995000 } };
    struct netcode_messages_t * m = numbers_open( 0 );
    for ( int i = 0; i < 7; i++ ) {
        m->now = rows[i].time + 1e-6;
        m->now -= rows[i].time < 0.0 ? 2e-6 : 0.0;
        CHECK_EQ( nc_messages_stamp( m ), rows[i].stamp );
    }
    m->now = 1e14; /* time that jumps forth and back two million times stands still before a stamp can not have it */
    netcode_messages_set_time( m, m->caller_time + 1.0 );
    CHECK_EQ( m->now, 1e14 );
    netcode_messages_destroy( m );
}

/* What was skipped is known of 128 blocks of numbers: an ack of one before them is not judged by the block in its place. */
TEST( messages_skipped_numbers_are_forgotten )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    nc_acks_t acks;
    memset( &acks, 0, sizeof( acks ) );
    acks.valid = 1;
    acks.ack = 27300; /* number 164 of block 106 */
    acks.number = 27300;
    m->skipped[106] = 164;
    m->next_number = 256 * ( 106 + 127 );
    CHECK_EQ( nc_messages_acks_skipped( m, &acks ), 1 );
    m->next_number = 256 * ( 106 + 128 );
    CHECK_EQ( nc_messages_acks_skipped( m, &acks ), 0 );
    netcode_messages_destroy( m );
}

/* Numbers that are cut short fail for good, and are 0. */
TEST( messages_numbers_cut_short )
{
    static const uint8_t bytes[] = { 0x81, 0x92, 0xa3, 0xb4 };
    for ( int there = 0; there <= 4; there++ )
        for ( int wanted = 1; wanted <= 4; wanted++ ) {
            nc_source_t source = { bytes, bytes + there, 0 }, text = source;
            uint32_t value = nc_source_number( &source, wanted ), expected = 0;
            for ( int i = 0; i < wanted; i++ )
                expected |= (uint32_t) bytes[i] << 8 * i;
            CHECK_EQ( value, wanted <= there ? expected : 0 );
            CHECK_EQ( source.failed, wanted > there );
            CHECK_EQ( source.at - bytes, wanted <= there ? wanted : there );
            CHECK( nc_source_bytes( &text, (uint32_t) wanted ) == bytes );
            CHECK_EQ( text.failed, wanted > there );
            CHECK_EQ( text.at - bytes, wanted <= there ? wanted : there );
        }
}

TEST( messages_fragments_are_counted )
{
    static const uint32_t rows[][2] = { { 0, 0 },    { 1180, 0 }, { 1181, 2 }, { 2336, 2 },
                                        { 2337, 3 }, { 3504, 3 }, { 3505, 4 }, { 16777216, 14365 } };
    for ( int i = 0; i < 8; i++ ) {
        uint32_t count = nc_fragments_of( NETCODE_MESSAGE_RELIABLE, rows[i][0] ), sum = 0;
        CHECK_EQ( count, rows[i][1] );
        for ( uint32_t k = 0; k < count; k++ ) {
            uint32_t bytes = nc_fragment_bytes( rows[i][0], k );
            CHECK( bytes > 0 && ( k + 1 == count ? bytes <= 1168 : bytes == 1168 ) );
            sum += bytes;
        }
        CHECK( count == 0 || sum == rows[i][0] );
    }
    CHECK_EQ( nc_fragments_of( NETCODE_MESSAGE_STREAM, 0 ), 1 );
    CHECK_EQ( nc_fragments_of( NETCODE_MESSAGE_STREAM, 1168 ), 1 );
    CHECK_EQ( nc_fragments_of( NETCODE_MESSAGE_STREAM, 1169 ), 2 );
    CHECK_EQ( nc_fragments_of( NETCODE_MESSAGE_STREAM, UINT32_MAX ), 3677199 );
    CHECK_EQ( nc_fragment_bytes( UINT32_MAX, 3677198 ), 31 );
}

/* ---- round trips: RFC 6298, and a minimum that is forgotten ---- */

struct trips_t {
    double rtt, variation, jitter, latest, least, least_time, reorder, reorder_time;
};

static void trips_note( struct trips_t * t, double sample, double now )
{
    int old = t->least <= 0.0 || now - t->least_time > 10.0;
    if ( old ) {
        t->least_time = now;
        if ( now - t->reorder_time > 60.0 )
            t->reorder = t->reorder > 0.02 ? t->reorder / 2.0 : 0.01;
    }
    if ( old || sample < t->least )
        t->least = sample;
    if ( t->rtt > 0.0 ) {
        t->variation = 0.75 * t->variation + 0.25 * fabs( sample - t->rtt );
        t->rtt = 0.875 * t->rtt + 0.125 * sample;
        t->jitter = 0.9375 * t->jitter + 0.0625 * fabs( sample - t->latest );
    } else {
        t->rtt = sample;
        t->variation = 0.5 * sample;
    }
    t->latest = sample;
}

TEST( messages_round_trips )
{
    static const double samples[] = { 0.02, 0.04, 0.0400001, 0.0399999, 0.05, 0.125, 0.019, 0.3 };
    static const double steps[] = { 0.0, 0.5, 1.0, 10.0, 10.5 }, reorders[] = { 0.01, 0.015, 0.02, 0.025, 0.1 };
    for ( int round = 0; round < 20; round++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        struct trips_t t;
        memset( &t, 0, sizeof( t ) );
        for ( int i = 0; i < 200; i++ ) {
            double sample = NUMBERS_PICK( samples );
            m->now += test_random_below( 4 ) ? 0.125 : NUMBERS_PICK( steps );
            m->reorder_seconds = t.reorder = NUMBERS_PICK( reorders );
            m->reorder_time = t.reorder_time = m->now - ( test_random_below( 2 ) ? 60.5 : 60.0 );
            nc_messages_measure( m, sample );
            trips_note( &t, sample, m->now );
            NUMBERS_SAME( m->stats.rtt, t.rtt );
            NUMBERS_SAME( m->stats.rtt_variation, t.variation );
            NUMBERS_SAME( m->stats.jitter, t.jitter );
            NUMBERS_SAME( m->stats.rtt_latest, t.latest );
            NUMBERS_SAME( m->stats.rtt_min, t.least );
            NUMBERS_SAME( m->rtt_min_time, t.least_time );
            NUMBERS_SAME( m->reorder_seconds, t.reorder );
        }
        netcode_messages_destroy( m );
    }
}

TEST( messages_timeouts )
{
    static const struct {
        double rtt, variation, delay, least_rate, timeout;
    } rows[] = {
        { 0.0, 0.5, 0.25, 16e3, 0.2 },   { 0.1, 0.01, 0.025, 16e3, 0.165 }, { 1.0, 0.125, 0.25, 16e3, 1.75 },
        { 1.0, 0.25, 0.25, 16e3, 2.0 },  { 30.0, 1.0, 0.25, 16e3, 2.0 },    { 0.001, 0.0, 0.0, 16e3, 0.075 },
        { 0.001, 0.0, 0.0, 1e6, 0.002 }, { 0.1, 0.01, 0.025, 1e3, 1.2 },    { 0.1, 0.01, 0.025, 100.0, 2.0 },
    };
    struct netcode_messages_t * m = numbers_open( 0 );
    for ( int i = 0; i < 9; i++ ) {
        m->stats.rtt = rows[i].rtt;
        m->stats.rtt_variation = rows[i].variation;
        m->peer_delay = rows[i].delay;
        m->least_rate = rows[i].least_rate;
        NUMBERS_SAME( nc_messages_timeout( m ), rows[i].timeout );
    }
    netcode_messages_destroy( m );
}

/* ---- the window: it follows what packets wait ---- */

/* One that has been running for a while: no start, no cut, 1 MB/s over 0.1 s. */
static struct netcode_messages_t * numbers_running( int congestion )
{
    struct netcode_messages_config_t config = *small_config();
    config.congestion = congestion;
    config.ping_seconds = -1.0;
    config.window_packets = 1024;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    m->now = 100.0;
    m->stats.rtt = m->stats.rtt_latest = m->stats.rtt_min = 0.1;
    m->held_back = 1;
    m->controller.is_starting = 0;
    m->controller.window = 120000.0;
    m->controller.step = 2400.0;
    m->controller.base = m->controller.base_next = 0.1;
    m->controller.base_time = m->controller.round_time = 99.0;
    return m;
}

static nc_sent_t numbers_sent( double time, uint16_t bytes )
{
    nc_sent_t sent;
    memset( &sent, 0, sizeof( sent ) );
    sent.time = time;
    sent.bytes = (uint16_t) bytes;
    sent.flags = NC_SENT_IN_FLIGHT;
    return sent;
}

/* `count` round trips of `mean`, each off by `scatter`, in which `through` bytes were delivered. */
static void numbers_round( struct netcode_messages_t * m, uint32_t count, double mean, double scatter, double through )
{
    m->controller.round_samples = count;
    m->controller.round_ticks = ( count + 3 ) / 4;
    m->controller.round_sum = count * mean;
    m->controller.round_off = count * scatter;
    m->controller.round_through = through;
}

TEST( messages_windows_grow )
{
    static const struct {
        int congestion, held, starting, draining, shared, transfers;
        double small_time, sent, in_flight, window, step, ceiling, after;
    } rows[] = {
        { 0, 0, 0, 0, 0, 0, 0.0, 99.9, 60000.0, 120000.0, 2400.0, 0.0, 120012.0 }, /* half of it is used */
        { 0, 0, 0, 0, 0, 0, 0.0, 99.9, 59999.0, 120000.0, 2400.0, 0.0, 120000.0 }, /* not half */
        { 0, 1, 0, 0, 0, 0, 0.0, 99.9, 0.0, 120000.0, 2400.0, 0.0, 120012.0 },     /* something had to wait */
        { 0, 1, 0, 0, 1, 0, 0.0, 99.9, 0.0, 120000.0, 2400.0, 0.0, 120180.0 }, /* others fill the queue: three tenths */
        { 0, 1, 0, 0, 1, 0, 0.0, 99.9, 0.0, 120000.0, 48000.0, 0.0, 120240.0 },     /* or more */
        { 0, 1, 0, 1, 0, 0, 0.0, 99.9, 0.0, 120000.0, 2400.0, 0.0, 120000.0 },      /* the queue drains */
        { 0, 1, 0, 0, 0, 0, 0.0, 50.0, 0.0, 120000.0, 2400.0, 0.0, 120000.0 },      /* sent before the cut */
        { 0, 1, 0, 0, 0, 0, 0.0, 99.9, 0.0, 120000.0, 2400.0, 120005.0, 120005.0 }, /* held after a cut */
        { 0, 1, 0, 0, 0, 0, 0.0, 99.9, 0.0, 120000.0, 2400.0, 110000.0, 120000.0 }, /* the ceiling cuts nothing */
        { 0, 1, 1, 0, 0, 0, 0.0, 99.9, 0.0, 12000.0, 1200.0, 0.0, 14400.0 },        /* the start: five times */
        { 0, 1, 1, 0, 0, 0, 0.0, 99.9, 0.0, 153599.0, 1200.0, 0.0, 155999.0 },      /* until it is 128 packets */
        { 0, 1, 1, 0, 0, 0, 0.0, 99.9, 0.0, 153600.0, 1200.0, 0.0, 154800.0 },      /* then three times */
        { 0, 1, 1, 0, 0, 1, 99.8, 99.9, 0.0, 153600.0, 1200.0, 0.0, 153780.0 },  /* beside other messages: 1.3 times */
        { 0, 1, 1, 0, 0, 1, 99.7, 99.9, 0.0, 153600.0, 1200.0, 0.0, 154800.0 },  /* they were a while ago */
        { 0, 1, 1, 0, 0, 0, 99.8, 99.9, 0.0, 153600.0, 1200.0, 0.0, 154800.0 },  /* nothing but them */
        { 0, 1, 1, 0, 0, 0, 0.0, 99.9, 0.0, 1228700.0, 1200.0, 0.0, 1228800.0 }, /* 1024 packets are all there are */
        { 1, 1, 0, 0, 0, 0, 0.0, 99.9, 99999.0, 120000.0, 2400.0, 0.0, 120000.0 }, /* FIXED */
        { 2, 1, 0, 0, 0, 0, 0.0, 99.9, 99999.0, 120000.0, 2400.0, 0.0, 120000.0 }, /* NONE */
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_running( rows[i].congestion );
        nc_sent_t sent = numbers_sent( rows[i].sent, 600 );
        m->held_back = rows[i].held;
        m->large_count = (uint32_t) (uint32_t) rows[i].transfers;
        m->small_time = rows[i].small_time;
        m->in_flight = rows[i].in_flight;
        m->controller.is_starting = rows[i].starting;
        m->controller.draining = rows[i].draining;
        m->controller.is_shared = rows[i].shared;
        m->controller.cut_time = 50.0;
        m->controller.hold_until = rows[i].ceiling > 0.0 ? 1e9 : 0.0;
        m->controller.ceiling = rows[i].ceiling;
        m->controller.window = rows[i].window;
        m->controller.step = rows[i].step;
        nc_controller_acked( m, &sent );
        if ( !NUMBERS_SAME( m->controller.window, rows[i].after ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        NUMBERS_SAME( m->controller.delivered, 600.0 );
        NUMBERS_SAME( m->controller.settled, rows[i].sent > 50.0 ? 1.0 : 0.0 );
        m->large_count = 0;
        netcode_messages_destroy( m );
    }
}

/* The first packet of a connection may already open the window. */
TEST( messages_windows_move_from_the_start )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, -5.0 );
    nc_sent_t sent = numbers_sent( 0.0, 600 );
    NUMBERS_SAME( m->controller.window, 12000.0 );
    m->held_back = 1;
    nc_controller_acked( m, &sent );
    NUMBERS_SAME( m->controller.window, 14400.0 );
    netcode_messages_destroy( m );
}

/* A transfer that begins beside a game starts with four packets. */
TEST( messages_transfers_begin_gently )
{
    for ( int i = 0; i < 8; i++ ) {
        struct netcode_messages_t * m = numbers_running( 0 );
        int game = i & 1, starting = i >> 1 & 1, other = i >> 2;
        m->controller.is_starting = starting;
        m->controller.window = 12000.0;
        m->peer_max_bytes = 8192;
        if ( other )
            netcode_messages_send( m, 1, NETCODE_MESSAGE_RELIABLE, flow_data, 5000 );
        messages_drain( m, 100.0 );
        m->small_time = m->now - ( game ? 0.2 : 0.3 );
        m->controller.window = 12000.0;
        netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, flow_data, 6000 );
        nc_message_start( m, m->channels[0].queues[NC_QUEUE_LARGE].head );
        NUMBERS_SAME( m->controller.window, game && starting && !other ? 4800.0 : 12000.0 );
        netcode_messages_destroy( m );
    }
}

/*  More than two losses, and more than 3 % or 1.5 times what the link loses by itself, at most 10 %: the window becomes what was
    delivered lately, less a twentieth, or a tenth more where nothing was held back, and is held. */
TEST( messages_losses_that_count )
{
    static const struct {
        double lost, settled, own, through, before;
        int held, shared;
        double after;
        int is_idle; /* nothing was held back */
    } rows[] = {
        { 3.0, 34.0, 0.0, 1e5, 9e4, 0, 0, 120000.0, 0 },   /* 3.02 may be its own */
        { 3.0, 33.0, 0.0, 1e5, 9e4, 0, 0, 95000.0, 0 },    /* 2.99 */
        { 3.0, 33.0, 0.0, 9e4, 1e5, 0, 0, 95000.0, 0 },    /* the round trip before */
        { 3.0, 33.0, 0.0, 2e5, 1e5, 0, 0, 120000.0, 0 },   /* it is held, and not wider */
        { 3.0, 33.0, 0.0, 100.0, 0.0, 0, 0, 36000.0, 0 },  /* nothing came through: three tenths */
        { 9.0, 100.0, 0.05, 1e5, 0.0, 0, 0, 120000.0, 0 }, /* 9.5 */
        { 10.0, 100.0, 0.05, 1e5, 0.0, 0, 0, 95000.0, 0 },
        { 12.0, 100.0, 0.5, 1e5, 0.0, 0, 0, 120000.0, 0 }, /* never more than 10 % */
        { 12.1, 100.0, 0.5, 1e5, 0.0, 0, 0, 95000.0, 0 },
        { 12.0, 100.0, 0.0, 1e5, 0.0, 1, 0, 120000.0, 0 }, /* while it is held, so many */
        { 12.1, 100.0, 0.0, 1e5, 0.0, 1, 0, 95000.0, 0 },
        { 3.0, 33.0, 0.0, 1e5, 0.0, 0, 1, 95000.0, 0 },
        { 3.0, 33.0, 0.0, 1e5, 9e4, 0, 0, 110000.0, 1 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_running( 0 );
        nc_controller_t * controller = &m->controller;
        int cut = rows[i].after < 120000.0 || i == 3;
        controller->is_starting = 1;
        controller->cut_time = 50.0;
        controller->lost = rows[i].lost;
        controller->settled = rows[i].settled;
        controller->own_loss = rows[i].own;
        controller->through = rows[i].through;
        controller->through_before = rows[i].before;
        controller->is_shared = rows[i].shared;
        controller->hold_until = rows[i].held ? 100.5 : 0.0;
        m->held_back = !rows[i].is_idle;
        nc_controller_cut( m );
        if ( !NUMBERS_SAME( controller->window, rows[i].after ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        NUMBERS_SAME( controller->cut_time, cut ? 100.0 : 50.0 );
        NUMBERS_SAME( controller->hold_until, cut ? rows[i].shared ? 0.0 : 105.0 : rows[i].held ? 100.5 : 0.0 );
        CHECK_EQ( controller->is_starting, !cut );
        NUMBERS_SAME( controller->lost, cut ? 0.0 : rows[i].lost );
        NUMBERS_SAME( controller->settled, cut ? 0.0 : rows[i].settled );
        if ( cut )
            NUMBERS_SAME( controller->ceiling, controller->window );
        netcode_messages_destroy( m );
    }
}

/* What is lost while the window is held is the link's own part; of older packets each hundred counts half. */
TEST( messages_losses_of_the_link_itself )
{
    static const double times[] = { 49.0, 50.0, 50.1, 60.0 };
    struct netcode_messages_t * m = numbers_running( 0 );
    nc_controller_t * controller = &m->controller;
    controller->cut_time = 50.0;
    for ( int i = 0; i < 4; i++ ) {
        nc_sent_t sent = numbers_sent( times[i], 600 );
        nc_controller_count( controller, &sent, 1.0 );
        nc_controller_count( controller, &sent, 0.0 );
    }
    CHECK( controller->settled == 4.0 && controller->lost == 2.0 );
    controller->hold_until = 100.5;
    numbers_round( m, 10, 0.1, 0.0, 5e4 );
    nc_controller_end_round( m );
    CHECK( controller->hold_until > 0.0 && controller->own_loss == 0.0 && controller->settled == 4.0 );
    CHECK( controller->round_samples == 0 && controller->round_sum == 0.0 && controller->round_off == 0.0 );
    CHECK( controller->through == 5e4 && controller->through_before == 0.0 && controller->round_through == 0.0 );
    m->now = 100.5;
    nc_controller_end_round( m );
    CHECK( controller->own_loss == 0.5 && controller->settled == 0.0 && controller->lost == 0.0 );
    CHECK( controller->hold_until == 0.0 && controller->through_before == 5e4 );
    controller->settled = 100.0;
    controller->lost = 4.0;
    nc_controller_end_round( m );
    CHECK( controller->settled == 100.0 && controller->lost == 4.0 && controller->own_loss == 0.5 );
    controller->settled = 101.0;
    nc_controller_end_round( m );
    CHECK( controller->settled == 50.5 && controller->lost == 2.0 );
    controller->hold_until = 1e9; /* four of a hundred are not chance: the time is not waited for */
    controller->settled = 96.0;
    controller->lost = 3.0;
    nc_controller_end_round( m );
    CHECK( controller->hold_until > 0.0 );
    controller->lost = 4.0;
    nc_controller_end_round( m );
    CHECK( controller->hold_until == 0.0 && controller->own_loss > 0.04 && controller->own_loss < 0.05 );
    controller->settled = controller->lost = 0.0;
    controller->hold_until = 1e-9;
    nc_controller_end_round( m ); /* nothing was sent meanwhile */
    CHECK( controller->hold_until == 0.0 && controller->own_loss == 0.0 );
    netcode_messages_destroy( m );
}

/* An independent account of a round trip's judgement, for a connection that neither starts nor settles. */
TEST( messages_delay_is_judged )
{
    static const double bases[] = { 0.0, 0.02, 0.0625, 0.1, 0.25 }, means[] = { 0.02, 0.0625, 0.0701, 0.11, 0.5, 2.0 };
    static const double scatters[] = { 0.0, 0.001, 0.01 }, waits[] = { 0.09, 0.1001, 0.125 };
    static const double windows[] = { 2400.0, 12000.0, 120000.0, 480000.0 };
    for ( int i = 0; i < 4000; i++ ) {
        struct netcode_messages_t * m = numbers_running( 0 );
        double base = NUMBERS_PICK( bases ), mean = NUMBERS_PICK( means ), passed = NUMBERS_PICK( waits );
        double window = NUMBERS_PICK( windows );
        uint32_t count = 3 + (uint32_t) test_random_below( 30 );
        double scatter = NUMBERS_PICK( scatters ), noise = scatter / sqrt( 2 * ( ( count + 3 ) / 4 ) );
        int judged = count >= 4 && passed >= m->stats.rtt, shared = test_random_below( 4 ) == 0;
        m->controller.base = base;
        m->controller.window = window;
        m->controller.is_shared = shared;
        m->controller.round_time = m->now - passed;
        m->controller.base_time = m->now - 10.0;
        numbers_round( m, count, mean, scatter, 1e5 );
        nc_controller_judge( m );

        if ( judged ) {
            base = base <= 0.0 || mean + noise < base ? mean + noise : base;
            double wait = mean - noise - base, part = 0.25 * wait / ( base > 0.08 ? base : 0.08 );
            part = part < 0.0 || shared ? 0.0 : part > 0.5 ? 0.5 : part;
            window = window * ( 1.0 - part ) > 2400.0 ? window * ( 1.0 - part ) : 2400.0;
            CHECK_NEAR( m->controller.step, sqrt( window * 1200.0 ) / 2.0, 1e-6 * window );
        }
        CHECK_NEAR( m->controller.window, window, 1e-6 * window );
        NUMBERS_SAME( m->controller.base, base );
        CHECK_EQ( m->controller.round_samples, judged ? 0 : count );
        NUMBERS_SAME( m->controller.round_time, judged ? m->now : m->now - passed );
        netcode_messages_destroy( m );
    }
}

/* The start ends when packets wait, even within a round trip, and what was delivered, in an empty one, is the window. */
TEST( messages_starts_end )
{
    static const struct {
        uint32_t count;
        double mean, passed, through;
        int starting;
        double after;
    } rows[] = {
        { 4, 0.1126, 0.02, 56300.0, 0, 50000.0 },   /* 12.6 ms of 100 */
        { 4, 0.1124, 0.02, 56300.0, 1, 120000.0 },  /* not an eighth */
        { 3, 0.1126, 0.02, 56300.0, 1, 120000.0 },  /* too few to decide */
        { 4, 0.1126, 0.02, 225200.0, 0, 200000.0 }, /* more than the window is believed, too */
        { 8, 0.2, 0.2, 100000.0, 0, 50000.0 },      { 8, 0.1, 0.2, 50000.0, 1, 120000.0 },
    };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = numbers_running( 0 );
        m->controller.is_starting = 1;
        m->controller.round_time = m->now - rows[i].passed;
        numbers_round( m, rows[i].count, rows[i].mean, 0.0, rows[i].through );
        nc_controller_judge( m );
        if ( !NUMBERS_SAME( m->controller.window, rows[i].after ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        CHECK_EQ( m->controller.is_starting, rows[i].starting );
        CHECK_EQ( m->controller.draining, rows[i].starting ? 0 : 2 );
        netcode_messages_destroy( m );
    }
}

/* In the two round trips after a start the window may rise to what the link has carried, and is not judged. */
TEST( messages_windows_settle )
{
    struct netcode_messages_t * m = numbers_running( 0 );
    m->controller.draining = 2;
    m->controller.window = 50000.0;
    for ( int i = 0; i < 3; i++ ) {
        static const double through[] = { 160e3, 120e3, 180e3 }, windows[] = { 80000.0, 80000.0, 60000.0 };
        m->now += 0.2;
        numbers_round( m, 10, 0.2, 0.0, through[i] );
        nc_controller_judge( m );
        NUMBERS_SAME( m->controller.window,
                      windows[i] ); /* at last, by a quarter of the wait, which is as long as the path */
        CHECK_EQ( m->controller.draining, i == 0 );
    }
    netcode_messages_destroy( m );
}

/*  Every ten seconds the queue drains, so that the path is measured anew; and only where the window holds something
    back. If a round trip is still long then, others fill the queue. */
TEST( messages_queues_are_drained )
{
    static const struct {
        double window, drained, through, shortest;
        int held, shared;
    } rows[] = {
        { 120000.0, 72000.0, 1e5, 0.13, 1, 0 },  { 120000.0, 120000.0, 1e5, 0.13, 0, 0 },
        { 120000.0, 72000.0, 1e5, 0.183, 1, 0 }, /* 1.25 times 0.125, 25 ms, and 2.4 ms for two packets of its own */
        { 120000.0, 72000.0, 1e5, 0.184, 1, 1 }, { 120000.0, 72000.0, 1e5, 0.09, 1, 0 },
        { 9600.0, 4800.0, 1e4, 0.2, 1, 0 }, /* 24 ms for them */
        { 9600.0, 4800.0, 1e4, 0.21, 1, 1 },     { 3600.0, 1200.0, 100.0, 0.38, 1, 0 },
        { 3600.0, 1200.0, 100.0, 0.385, 1, 1 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_running( 0 );
        nc_controller_t * controller = &m->controller;
        controller->base_time = 89.9;
        controller->window = rows[i].window;
        controller->shortest = 0.1;
        m->held_back = rows[i].held;
        numbers_round( m, 10, 0.1, 0.0, rows[i].through );
        nc_controller_judge( m );
        NUMBERS_SAME( controller->window, rows[i].drained );
        CHECK_EQ( controller->draining, rows[i].held ? 2 : 0 );
        if ( rows[i].held ) {
            NUMBERS_SAME( controller->base_time, 100.0 );
            CHECK( controller->shortest == 0.0 && controller->shortest_ever == 0.1 );
            for ( int k = 0; k < 2; k++ ) { /* a path that has become longer, say */
                NUMBERS_SAME( controller->window, rows[i].drained );
                m->now += 0.2;
                controller->shortest = rows[i].shortest;
                numbers_round( m, 10, k ? 0.13 : 0.15, 0.0, rows[i].through );
                nc_controller_judge( m );
            }
            if ( !CHECK_EQ( controller->is_shared, rows[i].shared ) )
                test_fail( __FILE__, __LINE__, "row %d", i );
            double least = rows[i].shared ? 2.0 * fmin( 1600.0, rows[i].through ) : 0.0;
            NUMBERS_SAME( controller->window, fmax( 0.85 * rows[i].window, least ) );
            NUMBERS_SAME( controller->base, 0.13 );
            NUMBERS_SAME( controller->saved, 0.0 );
            NUMBERS_SAME( controller->shortest_ever, rows[i].shortest < 0.125 ? rows[i].shortest : 0.125 );
        }
        netcode_messages_destroy( m );
    }
    struct netcode_messages_t * m = numbers_running( 0 );
    m->controller.is_shared = 1; /* then all of its own, to see whether that of others stays */
    nc_controller_drain( m );
    NUMBERS_SAME( m->controller.window, 1200.0 );
    m->controller.lost = 9.0; /* a cut meanwhile is for the window after it */
    m->controller.settled = 10.0;
    m->controller.through = 50e3;
    nc_controller_cut( m );
    NUMBERS_SAME( m->controller.window, 1200.0 );
    NUMBERS_SAME( m->controller.saved, 47500.0 );
    NUMBERS_SAME( m->controller.ceiling, 47500.0 );
    netcode_messages_destroy( m );
}

/*  Never below two packets, nor, where others fill the queue, below what the least rate needs in two round trips, or below twice
    what the link delivers in one if that is less. */
TEST( messages_windows_have_a_floor )
{
    struct netcode_messages_t * m = numbers_running( 0 );
    m->stats.rtt = 0.5;
    nc_controller_set( m, 1.0 );
    NUMBERS_SAME( m->controller.window, 2400.0 );
    m->controller.is_shared = 1;
    m->controller.through = 9000.0;
    nc_controller_set( m, 1.0 );
    NUMBERS_SAME( m->controller.window, 16000.0 ); /* 16,000 bytes a second */
    m->controller.through = 3000.0;
    nc_controller_set( m, 1.0 );
    NUMBERS_SAME( m->controller.window, 6000.0 );
    nc_controller_set( m, 1e9 );
    NUMBERS_SAME( m->controller.window, 1024.0 * 1200.0 );
    netcode_messages_destroy( m );
    for ( double value = 1.0; value < 2e9; value *= 1.7 )
        CHECK_NEAR( nc_real_root( value ), sqrt( value ), 1e-9 * value );
}

/* Each loss is one more of 64 and of 512 that were lost, each packet that is heard one less. */
TEST( messages_losses_are_measured )
{
    for ( int limit = 0; limit < 2; limit++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        m->packets_in_flight = 2;
        m->sent_end = 2;
        m->limit_due = 0;
        m->in_flight = 1500.0;
        for ( uint32_t k = 0; k < 2; k++ ) {
            nc_sent_t * sent = nc_sent_at( m, k );
            *sent = numbers_sent( 0.0, 600 );
            sent->number = k;
            sent->flags |= (uint8_t) ( limit ? NC_SENT_LIMIT : 0 );
        }
        nc_sent_at( m, 0 )->count = 1; /* of nothing */
        nc_carried_at( m, 0 )->handle = 99;
        nc_sent_lost( m, nc_sent_at( m, 0 ) );
        NUMBERS_SAME( m->in_flight, 900.0 );
        NUMBERS_SAME( m->stats.loss_sent, 1.0 / 64.0 );
        NUMBERS_SAME( m->loss_long, 0.003 + ( 1.0 - 0.003 ) / 512.0 );
        CHECK_EQ( m->limit_due, limit );
        CHECK( m->packets_in_flight == 1 && m->stats.packets_lost == 1 );
        nc_sent_acked( m, nc_sent_at( m, 1 ) );
        NUMBERS_SAME( m->in_flight, 300.0 );
        NUMBERS_SAME( m->stats.loss_sent, 63.0 / 64.0 / 64.0 );
        NUMBERS_SAME( m->loss_long, ( 0.003 + ( 1.0 - 0.003 ) / 512.0 ) * 511.0 / 512.0 );
        CHECK_EQ( m->packets_in_flight, 0 );

        m->stats.rtt = m->stats.rtt_min = 0.1;
        CHECK_EQ( m->controller.lost, 1 );
        m->controller.cut_time = limit ? 0.0 : -1.0;
        nc_sent_acked( m, nc_sent_at( m, 0 ) ); /* late: packets may overtake it by a quarter of a round trip more */
        CHECK_EQ( m->controller.lost, limit );  /* what was before a cut does not count */
        CHECK_EQ( m->stats.packets_lost_spuriously, 1 );
        NUMBERS_SAME( m->reorder_seconds, 0.035 );
        NUMBERS_SAME( m->reorder_time, m->now );
        netcode_messages_destroy( m );
    }
}

/*  The round trips of a round are summed, and how far they are from the mean; the shortest is kept, but none that can not be, as its
    ack claims a long delay or the clock stood still. */
TEST( messages_samples_of_a_round_trip )
{
    static const double samples[] = { 0.09, 0.12, 0.1 };
    struct netcode_messages_t * m = numbers_running( 0 );
    for ( int i = 0; i < 3; i++ ) {
        m->now += i == 2 ? 0.01 : 0.0;
        nc_controller_sample( m, samples[i] + 0.01, 0.01 );
    }
    NUMBERS_SAME( m->controller.round_sum, 0.31 );
    CHECK_NEAR( m->controller.round_off, 0.03, 1e-9 );
    CHECK_EQ( m->controller.round_samples, 3 );
    CHECK_EQ( m->controller.round_ticks, 2 );
    m->controller.round_samples = m->controller.round_ticks = 0; /* a new one may begin within a tick */
    nc_controller_sample( m, 0.1, 0.0 );
    CHECK_EQ( m->controller.round_ticks, 1 );
    NUMBERS_SAME( m->controller.shortest, 0.09 );
    nc_controller_sample( m, 0.0, 0.0 );
    NUMBERS_SAME( m->controller.shortest, 0.09 );
    nc_controller_sample( m, 0.1, 0.1 );
    NUMBERS_SAME( m->controller.shortest, 0.05 );
    netcode_messages_destroy( m );
}

/* How often small messages are repeated, by loss and by choice. */
TEST( messages_repeats_follow_losses )
{
    static const struct {
        int choice;
        double loss, lately, wait;
        uint32_t repeats;
    } rows[] = {
        { 0, 0.0, 0.0, 0.0, 0 },  { 0, 0.0009, 0.0, 0.0, 0 },   { 0, 0.001, 0.0, 0.0, 1 }, { 0, 0.0099, 0.0, 0.0, 1 },
        { 0, 0.01, 0.0, 0.0, 2 }, { 0, 0.0, 0.0299, 0.249, 0 }, { 0, 0.0, 0.03, 0.0, 2 },  { 0, 0.0, 0.0, 0.251, 5 },
        { 0, 0.01, 0.0, 1.0, 5 }, { 1, 0.0, 0.0, 0.0, 2 },      { 1, 0.5, 0.5, 1.0, 2 },   { 2, 0.5, 0.5, 0.0, 0 },
        { 2, 0.5, 0.5, 1.0, 0 },
    };
    struct netcode_messages_t * m = numbers_open( 0 );
    CHECK_EQ( nc_messages_repeats( m ), 1 ); /* at first */
    m->controller.fast_time = m->now;
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        m->config.repeats = rows[i].choice;
        m->loss_long = rows[i].loss;
        m->stats.loss_sent = rows[i].lately;
        m->controller.wait = rows[i].wait;
        if ( !CHECK_EQ( nc_messages_repeats( m ), rows[i].repeats ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
    }
    m->config.repeats = 0; /* a slow link's queue is of its own packets */
    m->loss_long = m->stats.loss_sent = 0.0;
    m->controller.fast_time = m->now - 10.1;
    CHECK_EQ( nc_messages_repeats( m ), 2 );
    netcode_messages_destroy( m );
}

/* The first that is remembered with a number or a later one, wherever the buffer and the numbers wrap. */
TEST( messages_packets_are_found_by_number )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    for ( int round = 0; round < 300; round++ ) {
        uint32_t number =
            round % 3 ? (uint32_t) test_random_below( 1000 ) : UINT32_MAX - (uint32_t) test_random_below( 40 );
        uint32_t lowest = number;
        m->sent_first =
            round % 2 ? UINT32_MAX - (uint32_t) test_random_below( 20 ) : (uint32_t) test_random_below( 50 );
        m->sent_end = m->sent_first + (uint32_t) test_random_below( 17 );
        for ( uint32_t i = m->sent_first; i != m->sent_end; i++ ) {
            nc_sent_at( m, i )->number = number;
            number += 1 + (uint32_t) test_random_below( 3 );
        }
        for ( uint32_t wanted = lowest - 3; wanted != number + 3; wanted++ ) {
            uint32_t found = m->sent_first;
            while ( found != m->sent_end && (int32_t) ( nc_sent_at( m, found )->number - wanted ) < 0 )
                found++;
            CHECK_EQ( nc_sent_find( m, wanted ), found );
        }
    }
    m->sent_first = m->sent_end = 0;
    netcode_messages_destroy( m );
}

/* A receiver that does nothing for 0.3 s acknowledges all that came meanwhile: nothing counts as lost. */
TEST( messages_a_receiver_that_was_away )
{
    static uint8_t packets[800][NETCODE_MAX_PACKET_SIZE];
    static int bytes[800];
    struct netcode_messages_config_t config;
    memset( &config, 0, sizeof( config ) );
    config.max_message_bytes = 1 << 20;
    config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
    struct netcode_messages_t * ends[2];
    int count = 0;
    for ( int i = 0; i < 2; i++ )
        ends[i] = netcode_messages_create( &config, 0.0 );
    for ( int i = 0; i < 300; i++ ) {
        sender_send( ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, 1000, 0.0, 1 );
        sender_send( ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, 1000, 0.0, 1 );
        netcode_messages_update( ends[0], 0.001 * i );
        while ( count < 800 && ( bytes[count] = netcode_messages_generate_packet( ends[0], packets[count],
                                                                                  NETCODE_MAX_PACKET_SIZE ) ) > 0 )
            count++;
    }
    CHECK( count >= 600 && count < 800 );
    netcode_messages_set_time( ends[1], 0.3 );
    for ( int i = 0; i < count; i++ )
        CHECK_EQ( netcode_messages_process_packet( ends[1], packets[i], bytes[i] ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_update( ends[1], 0.3 );
    bytes[0] = netcode_messages_generate_packet( ends[1], packets[0], NETCODE_MAX_PACKET_SIZE );
    REQUIRE( bytes[0] > 0 );
    netcode_messages_set_time( ends[0], 0.31 );
    CHECK_EQ( netcode_messages_process_packet( ends[0], packets[0], bytes[0] ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_update( ends[0], 0.32 );
    CHECK_EQ( ends[0]->stats.packets_lost, 0 );
    CHECK_LE( ends[0]->packets_in_flight, 2 ); /* probes */
    for ( int i = 0; i < 2; i++ )
        netcode_messages_destroy( ends[i] );
}

/* What an ack measures: the round trip of the newest packet less what the other side held it back, and the sum of all. */
TEST( messages_acks_measure )
{
    static const struct {
        int ack;
        uint32_t bits;
        int delay;
        double rtt, peer_delay, sum;
        uint32_t samples;
    } rows[] = {
        { 2, 0x0, 0, 0.09375, 0.024609375, 0.09375, 1 },
        { 2, 0x3, 0, 0.09375, 0.024609375, 0.328125, 3 },
        { 2, 0x3, 100, 0.08375, 0.024765625, 0.298125, 3 },
        { 2, 0x3, 300, 0.06375, 0.03, 0.238125, 3 },
        { 1, 0x1, 999, 0.009475, 0.0999, 0.034575, 2 },
        { 1, 0x1, 1000, 0.009375, 0.1, 0.034375, 2 },
        { 1, 0x1, 1001, 0.009375, 0.1, 0.034375, 2 }, /* more is not believed */
        { 1, 0x1, 65535, 0.009375, 0.1, 0.034375, 2 },
        { 3, 0x3, 0, 0.0, 0.025, 0.203125, 2 }, /* the newest held nothing: it is not asked about */
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        struct craft_t craft;
        lost_send( m, 2, 0.0 );
        for ( uint32_t k = 0; k < 3; k++ )
            nc_sent_at( m, k )->time = 0.015625 * k, nc_sent_at( m, k )->delivered = 10 * k;
        m->next_number = 4;
        messages_skip_nothing( m );
        netcode_messages_set_time( m, 0.125 );
        m->controller.round_time = 1.0; /* nothing is judged yet */
        m->stats.rtt = m->stats.rtt_latest = 0.0;
        craft_begin( &craft, 0, rows[i].ack, rows[i].bits );
        craft.data[0] = 0x33;
        put( &craft.at, (uint64_t) rows[i].delay, 2 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        NUMBERS_SAME( m->stats.rtt, rows[i].rtt );
        NUMBERS_SAME( m->peer_delay, rows[i].peer_delay );
        NUMBERS_SAME( m->controller.round_sum, rows[i].sum );
        CHECK_EQ( m->controller.round_samples, rows[i].samples );
        int known = rows[i].ack < 3; /* what had been delivered when the newest was sent */
        CHECK_EQ( m->controller.round_through, m->controller.delivered - ( known ? 10 * (uint32_t) rows[i].ack : 0 ) );
        CHECK_EQ( m->newest_acked, rows[i].ack );
        netcode_messages_destroy( m );
    }
}

/* ---- rates ---- */

TEST( messages_rates )
{
    static const struct {
        int congestion;
        double rtt, window, rate;
    } rows[] = { { 0, 0.0, 12000.0, 150000.0 }, { 0, 0.05, 12000.0, 300000.0 }, { 0, 0.0005, 800.0, 1000000.0 },
                 { 0, 0.002, 800.0, 500000.0 }, { 1, 0.05, 12000.0, 125000.0 }, { 2, 0.05, 12000.0, 1e18 } };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = numbers_open( rows[i].congestion );
        m->stats.rtt = rows[i].rtt;
        m->controller.window = rows[i].window;
        NUMBERS_SAME( nc_messages_rate( m, 1.25 ), rows[i].rate );
        netcode_messages_destroy( m );
    }
    struct netcode_messages_t * m = numbers_open( 0 );
    m->stats.rtt = 0.5;
    m->controller.window = 2400.0;
    NUMBERS_SAME( nc_messages_rate( m, 1.25 ), 16000.0 ); /* never less, unless the config says so */
    m->least_rate = 100.0;
    NUMBERS_SAME( nc_messages_rate( m, 1.25 ), 6000.0 );
    m->stats.rtt_latest = 0.75;
    NUMBERS_SAME( nc_messages_rate( m, 1.25 ), 4000.0 ); /* a queue that grows is known before the mean knows it */
    netcode_messages_destroy( m );
}

/* Time fills the buckets, which hold a tick's worth, and more where that is allowed. */
TEST( messages_tokens_are_filled )
{
    static const struct {
        double before, rate, passed, after;
    } rows[] = {
        { -1000.0, 1e5, 0.004, -600.0 }, { 100.0, 1e5, 0.0, 100.0 },    { 1700.0, 1e5, 0.001, 1700.0 },
        { 0.0, 1e4, 0.2, 2000.0 },       { 1100.0, 1e4, 0.02, 1200.0 }, /* a packet may always be saved */
        { 0.0, 1e5, 0.1, 1e4 },                                         /* or the time that has passed */
        { 0.0, 1e5, 1.0, 25e3 },                                        /* but never more than 250 ms */
        { 17e3, 1e6, 0.001, 17e3 },      { 16.5e3, 1e6, 0.001, 17e3 },  /* 17 ms are a tick */
        { -9e9, 1e6, 0.001, -25e4 },     { -9e9, 1e3, 0.001, -2400.0 }, /* as much may be owed */
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ )
        if ( !NUMBERS_SAME( nc_messages_fill( rows[i].before, rows[i].rate, rows[i].passed ), rows[i].after ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
}

/* Reliable messages may be faster than others, but not after a long silence; a fixed rate is one. */
TEST( messages_rates_of_reliable_messages )
{
    static const struct {
        int congestion, starting;
        uint32_t timeouts;
        double paced, urgent;
    } rows[] = {
        { 0, 1, 0, 1250.0, 4000.0 }, { 0, 0, 0, 1050.0, 4000.0 }, { 0, 0, 16, 1050.0, 4000.0 },
        { 0, 0, 17, 1050.0, 16.0 },  { 1, 0, 0, 1000.0, 1000.0 }, { 1, 0, 17, 1000.0, 16.0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_open( rows[i].congestion );
        m->controller.is_starting = rows[i].starting;
        m->timeouts = rows[i].timeouts;
        m->stats.rtt = m->stats.rtt_latest = 0.1;
        m->controller.window = 1e5;
        m->fixed_rate = 1e6;
        m->paced = m->urgent = m->least = 0.0;
        for ( int again = 0; again < 3; again++ ) /* no more time passes */
            netcode_messages_update( m, again < 2 ? 0.001 : 0.0005 );
        if ( !NUMBERS_SAME( m->paced, rows[i].paced ) || !NUMBERS_SAME( m->urgent, rows[i].urgent ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        NUMBERS_SAME( m->least, 16.0 );
        netcode_messages_destroy( m );
    }
}

/* What was sent and received a second, reported after a quarter of a second at the earliest. */
TEST( messages_rates_are_measured )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    struct netcode_messages_stats_t stats;
    static const struct {
        double now;
        uint64_t sent, received;
        double send_rate, receive_rate;
    } rows[] = {
        { 0.2, 1000, 100, 0.0, 0.0 },        { 0.25, 1000, 100, 1000.0, 100.0 }, { 0.375, 9000, 100, 1000.0, 100.0 },
        { 0.75, 2000, 600, 1500.0, 550.0 },  { 2.75, 8000, 600, 3000.0, 0.0 },   { 3.0, 8000, 600, 2250.0, 0.0 },
        { 4.0, 9000, 1600, 1000.0, 1000.0 },
    };
    for ( int i = 0; i < 7; i++ ) {
        m->now = rows[i].now;
        m->stats.bytes_sent = rows[i].sent;
        m->stats.bytes_received = rows[i].received;
        nc_messages_measure_rates( m );
        netcode_messages_stats( m, &stats );
        NUMBERS_SAME( stats.send_rate, rows[i].send_rate );
        NUMBERS_SAME( stats.receive_rate, rows[i].receive_rate );
    }
    netcode_messages_destroy( m );
}

/* What is not counted in the statistics themselves is measured when they are asked for. */
TEST( messages_statistics_by_name )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    struct netcode_messages_stats_t stats;
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        m->stats.drops[i] = 50 + (uint32_t) i;
    m->stats.probes = 7;
    m->controller.window = 1.1;
    m->in_flight = 1.2;
    m->out.used = m->out.end = m->out.high = 96;
    m->in.used = m->in.end = m->in.high = 128;
    m->credit_limit = 500;
    m->credit_spent = 300;
    netcode_messages_stats( m, &stats );
    CHECK_EQ( stats.dropped_duplicates_total, 50 + NETCODE_MESSAGES_DROP_DUPLICATE );
    CHECK_EQ( stats.dropped_old_total, 50 + NETCODE_MESSAGES_DROP_OLD );
    CHECK_EQ( stats.dropped_window_total, 50 + NETCODE_MESSAGES_DROP_WINDOW );
    CHECK_EQ( stats.probes, 7 );
    NUMBERS_SAME( stats.congestion_window, 1.1 );
    NUMBERS_SAME( stats.bytes_in_flight, 1.2 );
    CHECK( (int) stats.send_buffer_used == 96 && (int) stats.receive_buffer_used == 128 && (int) stats.credit == 200 );
    netcode_messages_destroy( m );
}

/* The same over time: ten packets of 100 bytes a second are reported as about a thousand. */
TEST( messages_rates_are_reported )
{
    struct netcode_messages_t * ends[2] = { numbers_open( 0 ), numbers_open( 0 ) };
    struct netcode_messages_stats_t stats;
    for ( int i = 1; i <= 100; i++ ) {
        netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, flow_data, 90 );
        messages_talk( ends, 0.1 * i, 0 );
        messages_read( ends[1] );
    }
    netcode_messages_stats( ends[0], &stats );
    CHECK_NEAR( stats.send_rate, 1010.0, 50.0 );
    netcode_messages_stats( ends[1], &stats );
    CHECK_NEAR( stats.receive_rate, 1010.0, 50.0 );
    netcode_messages_destroy( ends[0] );
    netcode_messages_destroy( ends[1] );
}

/* The share of the last 256 numbers that did not come, but for those that their sender skips. */
TEST( messages_loss_of_what_was_received )
{
    static const struct {
        int numbers[6];
        double loss;
    } rows[] = {
        { { -1 }, 0.0 },
        { { 0, -1 }, 0.0 },
        { { 0, 1, -1 }, 0.0 },
        { { 1, -1 }, 0.5 },
        { { 3, 1, -1 }, 0.5 },
        { { 31, -1 }, 31.0 / 32.0 },
        { { 32, -1 }, 31.0 / 33.0 }, /* the first that may be skipped */
        { { 254, -1 }, 253.0 / 255.0 },
        { { 255, -1 }, 254.0 / 256.0 },
        { { 256, 255, 1, -1 }, 252.0 / 256.0 },
        { { 256, 255, 0, -1 }, 253.0 / 256.0 }, /* it is out of sight: refused as old */
        { { 9, 1000, -1 }, 254.0 / 256.0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        struct netcode_messages_stats_t stats;
        struct craft_t craft;
        for ( int k = 0; rows[i].numbers[k] >= 0; k++ ) {
            craft_begin( &craft, rows[i].numbers[k], -1, 0 );
            craft_give( &craft, m );
        }
        netcode_messages_stats( m, &stats );
        NUMBERS_SAME( stats.loss_received, rows[i].loss );
        netcode_messages_destroy( m );
    }
}

/* ---- deadlines: when there is something to do if nothing arrives ---- */

/* An object that waits for nothing, at ten seconds. */
static struct netcode_messages_t * deadline_open( double ping )
{
    struct netcode_messages_config_t config = *small_config();
    config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    config.bytes_per_second = 1000;
    config.ping_seconds = ping;
    struct netcode_messages_t * m = netcode_messages_create( &config, 10.0 );
    m->limit_due = 0;
    m->credit_granted = m->credit_window;
    m->now = m->ping_time = m->silent_since = m->tokens_time = 10.0;
    return m;
}

static void deadline_is( struct netcode_messages_t * m, double expected )
{
    CHECK_NEAR( netcode_messages_next_deadline( m ), expected, 2e-6 );
    netcode_messages_destroy( m );
}

TEST( messages_deadlines_of_what_is_due )
{
    struct netcode_messages_t * m = deadline_open( -1.0 );
    deadline_is( m, 3610.0 ); /* nothing, for an hour */
    m = deadline_open( 5000.0 );
    deadline_is( m, 3610.0 );
    m = deadline_open( 0.5 );
    deadline_is( m, 10.5 );
    m = deadline_open( 0.5 );
    m->now = m->caller_time = 12.0;
    deadline_is( m, 12.0 ); /* never in the past */
    m = deadline_open( 0.5 );
    m->limit_due = 1;
    deadline_is( m, 10.0 );
    m = deadline_open( 0.5 );
    m->pong_due = 1;
    deadline_is( m, 10.0 );
    m = deadline_open( 0.5 );
    m->probe_due = 1;
    deadline_is( m, 10.0 );
    m = deadline_open( 0.5 );
    m->credit_received = m->credit_released = m->credit_window / 2; /* read since the last update */
    deadline_is( m, 10.0 );
    for ( int i = 0; i < 2; i++ ) { /* too far ahead of what was acknowledged, only a probe leaves */
        m = deadline_open( 0.5 );
        m->next_number = (uint64_t) ( NC_MESSAGES_AHEAD - 1 + i );
        m->silent_since = 10.4;
        m->pong_due = 1;
        deadline_is( m, i ? 10.5 : 10.0 );
    }
    m = deadline_open( 0.5 );
    m->broken = NETCODE_MESSAGES_REASON_GIVEN_UP;
    m->limit_due = 1;
    deadline_is( m, 3610.0 );
    m = deadline_open( 0.5 );
    m->acks_due = 1;
    m->ack_since = 9.995;
    deadline_is( m, 10.005 );
    m = deadline_open( 0.5 );
    m->acks_due = 1; /* the ping comes first */
    m->ack_since = 10.495;
    deadline_is( m, 10.5 );
}

/* One reliable message in flight, and then one lost: the timeout, and 10 ms after the round trip. */
TEST( messages_deadlines_of_what_is_in_flight )
{
    struct craft_t craft;
    struct netcode_messages_t * m = deadline_open( -1.0 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "a", 1 );
    CHECK_EQ( messages_drain( m, 10.0 ), 1 );
    deadline_is( m, 10.2 );
    m = deadline_open( -1.0 );
    lost_send( m, 1, 10.0 );
    netcode_messages_update( m, 10.0625 );
    craft_begin( &craft, 0, 1, 0 );
    craft.data[0] = 0x13;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    m->stats.rtt_variation = 1.0;
    CHECK_NEAR( netcode_messages_next_deadline( m ), 10.0725, 2e-6 );
    m->stats.rtt = 0.0625;
    m->stats.rtt_latest = 0.125; /* the larger of both */
    CHECK_NEAR( netcode_messages_next_deadline( m ), 10.135, 2e-6 );
    m->stats.rtt = 30.0; /* two seconds at most */
    m->silent_since = 20.0;
    CHECK_NEAR( netcode_messages_next_deadline( m ), 12.01, 2e-6 );
    m->reorder_seconds = 0.25; /* packets were seen to overtake others by more */
    CHECK_NEAR( netcode_messages_next_deadline( m ), 12.25, 2e-6 );
    m->stats.rtt = m->stats.rtt_latest = 1e-6;
    m->now = m->caller_time = 10.001;
    deadline_is( m, 10.250001 );
}

/* The same as what is done: at the time that was said it is lost, and not a moment before. */
TEST( messages_lost_at_the_deadline )
{
    struct craft_t craft;
    struct netcode_messages_t * m = deadline_open( -1.0 );
    lost_send( m, 1, 10.0 );
    netcode_messages_update( m, 10.125 );
    craft_begin( &craft, 0, 1, 0 );
    craft.data[0] = 0x13;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_update( m, 10.134999 );
    CHECK_EQ( m->stats.packets_lost, 0 );
    netcode_messages_update( m, 10.135001 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    netcode_messages_destroy( m );
}

TEST( messages_deadlines_of_what_waits )
{
    static const struct {
        int kind, bytes;
        double tokens, deadline;
    } rows[] = {
        { NETCODE_MESSAGE_UNRELIABLE, 1, 5.0, 10.001 },
        { NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 10.001 },
        { NETCODE_MESSAGE_UNRELIABLE, 1, -0.5, 10.001 },
        { NETCODE_MESSAGE_UNRELIABLE, 1, -300.0, 10.3 },
        { NETCODE_MESSAGE_RELIABLE_ORDERED, 1, -1199.0, 10.001 },
        { NETCODE_MESSAGE_RELIABLE_ORDERED, 1, -1220.0, 10.02 },
        { NETCODE_MESSAGE_RELIABLE, 3000, -20.0, 10.001 },
        { NETCODE_MESSAGE_RELIABLE, 5000, -20.0, 10.02 },
        { NETCODE_MESSAGE_RELIABLE, 1, -9e6, 3610.0 },
    };
    for ( int i = 0; i < 9; i++ ) {
        struct netcode_messages_t * m = deadline_open( -1.0 );
        netcode_messages_send( m, 2, rows[i].kind, flow_data, rows[i].bytes );
        m->paced = m->urgent = rows[i].tokens;
        deadline_is( m, rows[i].deadline );
    }
    struct netcode_messages_t * m =
        deadline_open( -1.0 ); /* what the window holds back waits for an ack, not for time */
    netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    m->fresh = 0;
    deadline_is( m, 10.5 );    /* until its time is over */
    m = deadline_open( -1.0 ); /* but what the rate holds back does */
    netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    m->fresh = 0;
    m->paced = 0.0;
    deadline_is( m, 10.001 );
    m = deadline_open( -1.0 );
    netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    m->fresh = 0;
    m->paced = 0.5; /* it lets a packet go */
    deadline_is( m, 10.5 );
    m = deadline_open( -1.0 ); /* a large ordered one that was not begun, too */
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, 5000 );
    m->fresh = 0;
    m->paced = -20.0;
    deadline_is( m, 10.02 );
    m = deadline_open( -1.0 ); /* and where nothing waits there is nothing to hold back */
    m->paced = -100.0;
    deadline_is( m, 3610.0 );
    m = deadline_open( -1.0 ); /* a caller's clock that went back is answered in its own time */
    m->pong_due = 1;
    m->caller_time = 7.0;
    deadline_is( m, 7.0 );
    m = deadline_open( 0.5 );
    m->caller_time = 7.0;
    deadline_is( m, 7.5 );
    m = deadline_open( -1.0 ); /* a transfer that was begun */
    m->peer_max_bytes = 8192;
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 8000 );
    messages_drain( m, 10.0 );
    CHECK_EQ( m->active[1], 0 );
    m->paced = -100.0;
    m->silent_since = 20.0;
    deadline_is( m, 10.1 );
    m = deadline_open( -1.0 ); /* and what was lost */
    lost_send( m, 0, 10.0 );
    nc_sent_lost( m, nc_sent_at( m, m->sent_first ) );
    m->urgent = -1300.0;
    deadline_is( m, 10.1 );
}

/* Each rate has a deadline of its own. */
TEST( messages_deadlines_of_each_rate )
{
    struct netcode_messages_t * m = deadline_open( -1.0 ); /* small ones that wait for credit hide nothing */
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 1 );
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 5000 );
    m->fresh = 0;
    m->paced = -20.0;
    m->urgent = 100.0;
    deadline_is( m, 10.02 );
    m = deadline_open( -1.0 ); /* in a long silence small ones leave at the least rate */
    m->config.congestion = NETCODE_MESSAGES_CONGESTION_ADAPTIVE;
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 1 );
    m->least_rate = 100.0;
    m->timeouts = 17;
    m->urgent = -1210.0;
    deadline_is( m, 10.1 );
    m = deadline_open(
        -1.0 ); /* more are sent than the path carries: they leave within the window, or at the least rate */
    m->config.congestion = NETCODE_MESSAGES_CONGESTION_ADAPTIVE;
    m->controller.full_rounds = 4;
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 1 );
    m->fresh = 0;
    m->paced = -12000.0; /* of 120000 bytes a second */
    m->least = -8000.0;
    deadline_is( m, 10.1 );
    m = deadline_open( -1.0 ); /* of a prompt one that was begun */
    m->peer_max_bytes = 8192;
    netcode_messages_send( m, 2, NETCODE_MESSAGE_RELIABLE, flow_data, 4000 );
    nc_message_start( m, m->channels[2].queues[NC_QUEUE_PROMPT].head );
    m->paced = -100.0;
    m->urgent = -1220.0;
    deadline_is( m, 10.02 );
    m = deadline_open( -1.0 ); /* a LIMIT can not leave before there is space to remember its packet */
    m->limit_due = 1;
    m->sent_end = m->sent_overdue = m->window;
    nc_sent_at( m, 0 )->flags = NC_SENT_IN_FLIGHT;
    CHECK_GT( netcode_messages_next_deadline( m ), 10.0 );
    nc_sent_at( m, 0 )->flags = 0;
    CHECK_EQ( netcode_messages_next_deadline( m ), 10.0 );
    netcode_messages_destroy( m );
}

#undef NUMBERS_PICK
#undef NUMBERS_SAME
