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

/* Where a number takes one byte more. */
TEST( messages_varints_at_their_edges )
{
    static const uint32_t edges[] = { 0x80, 0x4000, 0x200000 };
    for ( uint32_t i = 0; i < 3; i++ )
        for ( uint32_t more = 0; more < 2; more++ ) {
            uint8_t bytes[8];
            CHECK_EQ( nc_put_varint( bytes, edges[i] - 1 + more ) - bytes, i + 1 + more );
            CHECK_EQ( nc_varint_bytes( edges[i] - 1 + more ), i + 1 + more );
        }
}

TEST( messages_fragments_are_counted )
{
    static const uint32_t rows[][2] = { { 0, 0 },    { 1180, 0 }, { 1181, 2 }, { 2048, 2 },
                                        { 2049, 3 }, { 3072, 3 }, { 3073, 4 }, { 16777216, 16384 } };
    for ( int i = 0; i < 8; i++ ) {
        uint32_t count = nc_fragments_of( rows[i][0] ), sum = 0;
        CHECK_EQ( count, rows[i][1] );
        for ( uint32_t k = 0; k < count; k++ ) {
            uint32_t bytes = nc_fragment_bytes( rows[i][0], k );
            CHECK( bytes > 0 && ( k + 1 == count ? bytes <= 1024 : bytes == 1024 ) );
            sum += bytes;
        }
        CHECK( count == 0 || sum == rows[i][0] );
    }
}

/* Of the heap: two lists for each power of two of units, and blocks that hold what was asked and eight bytes. */
TEST( messages_heap_lists_by_size )
{
    for ( uint32_t units = 1; units < 1u << 21; units += 1 + units / 7 ) {
        int power = 0;
        while ( units >> ( power + 1 ) )
            power++;
        CHECK_EQ( nc_heap_highest( units ), power );
        int upper = power > 0 && units >= ( 3u << power ) / 2;
        CHECK_EQ( nc_heap_list( units * 32 ), power ? 2 * power + upper : 0 );
        CHECK_EQ( nc_heap_round( units * 32 - 8 ), units * 32 );
        CHECK_EQ( nc_heap_round( units * 32 - 7 ), units * 32 + 32 );
    }
    CHECK_EQ( nc_heap_highest( (uint64_t) 1 << 63 ), 63 );
}

/* A heap begins as one free block, whatever was in its memory and in its struct. */
TEST( messages_heap_begins_clean )
{
    static uint64_t block[512];
    nc_heap_t heap;
    memset( &heap, 0xff, sizeof( heap ) );
    memset( block, 0xff, sizeof( block ) );
    nc_heap_init( &heap, (uint8_t *) block, sizeof( block ) );
    heap_check( &heap );
    CHECK_EQ( check_block_count, 0 );
    CHECK_EQ( heap.bytes, 4064 );
    CHECK( !nc_heap_fits( &heap, 4096 ) && nc_heap_fits( &heap, 4064 ) );
    uint32_t all = nc_heap_take( &heap, 4056 );
    CHECK_EQ( all, 16 );
    CHECK_EQ( heap.used, 4064 );
    CHECK( !nc_heap_fits( &heap, 32 ) ); /* nothing is left: no list, no piece */
    CHECK_EQ( nc_heap_take( &heap, 1 ), 0 );
    nc_heap_free( &heap, all );
    CHECK_EQ( heap.used, 0 );
    heap_check( &heap );
}

/*  Places of up to 256 bytes are kept ready for the next of their size; the room they take is found again when
    nothing else is left. */
TEST( messages_heap_keeps_small_places_ready )
{
    static uint64_t block[1024];
    nc_heap_t heap;
    for ( uint32_t size = 32; size <= 320; size += 32 ) {
        nc_heap_init( &heap, (uint8_t *) block, sizeof( block ) );
        uint32_t first = nc_heap_take( &heap, size - 8 ), second = nc_heap_take( &heap, size - 8 );
        uint32_t wall = nc_heap_take( &heap, 8192 - 16 - 2 * size - 64 - 8 );
        CHECK( first && second && wall && first != second );
        nc_heap_free( &heap, first );
        nc_heap_free( &heap, second );
        heap_check( &heap );
        CHECK_EQ( heap.ready[0] || heap.ready[size <= 256 ? size / 32 - 1 : 7], size <= 256 );
        if ( size <= 256 )
            CHECK_EQ( nc_heap_take( &heap, size - 8 ), second ); /* the last one given back is the next */
        else
            CHECK_EQ( nc_heap_take( &heap, size - 8 ), first );
        nc_heap_free( &heap, size <= 256 ? second : first );
        CHECK_EQ( nc_heap_take( &heap, 2 * size - 8 ), first ); /* both as one */
        heap_check( &heap );
    }
}

/* A heap of these sizes with a wall of 32 bytes behind each; places are in the same order. */
static void walled_open( nc_heap_t * heap, uint64_t * block, uint32_t bytes, const uint32_t * sizes, int count,
                         uint32_t * places )
{
    nc_heap_init( heap, (uint8_t *) block, bytes );
    for ( int i = 0; i < count; i++ ) {
        places[i] = nc_heap_take( heap, sizes[i] - 8 );
        REQUIRE( places[i] && nc_heap_take( heap, 24 ) );
    }
}

/* A list is searched eight places far, and no further: what is found then lies in the next larger list that has something. */
TEST( messages_heap_searches_eight_places )
{
    static uint64_t block[4096];
    uint32_t sizes[16], places[16];
    for ( int smaller = 6; smaller <= 9; smaller++ ) {
        nc_heap_t heap;
        for ( int i = 0; i < 16; i++ )
            sizes[i] = i == 0 ? 31 * 32 : i <= smaller ? 24 * 32 : i == 14 ? 40 * 32 : i == 15 ? 100 * 32 : 32;
        walled_open( &heap, block, sizeof( block ), sizes, 16, places );
        nc_heap_free( &heap, places[15] );
        nc_heap_free( &heap, places[14] );
        for ( int i = 0; i <= smaller; i++ )
            nc_heap_free( &heap, places[i] ); /* the last one given back is the first of its list */
        CHECK_EQ( nc_heap_find( &heap, 28 * 32 ), smaller < 8 ? places[0] : places[14] );
        CHECK_EQ( nc_heap_find( &heap, 24 * 32 ), places[smaller] );
        CHECK_EQ( nc_heap_find( &heap, 60 * 32 ), places[15] );
        CHECK_EQ( nc_heap_take( &heap, 28 * 32 - 8 ), smaller < 8 ? places[0] : places[14] );
        heap_check( &heap );
    }
}

/* What is kept ready counts as room once it is asked for, and only then. */
TEST( messages_heap_promises_what_is_kept_ready )
{
    static uint64_t block[256];
    nc_heap_t heap;
    uint32_t places[100];
    int count = 0;
    nc_heap_init( &heap, (uint8_t *) block, sizeof( block ) );
    while ( count < 100 && ( places[count] = nc_heap_take( &heap, 56 ) ) != 0 )
        count++;
    CHECK_GT( count, 20 );
    for ( int i = 0; i < count; i++ )
        nc_heap_free( &heap, places[i] );
    CHECK( heap.ready[1] != 0 && heap.used == 0 );
    CHECK( nc_heap_fits( &heap, heap.bytes ) );
    CHECK( heap.ready[1] == 0 && nc_heap_size( &heap, 16 ) == heap.bytes );
    places[0] = nc_heap_take( &heap, 56 );
    nc_heap_free( &heap, places[0] );
    CHECK( nc_heap_fits( &heap, 64 ) );
    CHECK_EQ( heap.ready[1], places[0] ); /* there was room enough without it */
    heap_check( &heap );
}

/* ---- round trips: RFC 6298, and a minimum that is forgotten ---- */

struct trips_t {
    double rtt, variation, jitter, latest, least, least_time, bulk, threshold, round, round_next, window;
    int transfers;
};

static double numbers_shrunk( double bulk, double part )
{
    bulk *= part < 0.5 ? 0.5 : part;
    return bulk > 2400.0 ? bulk : 2400.0;
}

static void trips_note( struct trips_t * t, double sample, double now )
{
    int old = t->least <= 0.0 || now - t->least_time > 10.0;
    if ( old ) {
        double part = 0.65 * t->round / t->rtt; /* to what leaves no queue behind, with room to spare */
        if ( t->transfers && t->round > 0.0 && ( t->bulk >= t->threshold || t->bulk >= t->window ) )
            t->bulk = t->threshold = numbers_shrunk( t->bulk, part < 1.0 ? part : 1.0 );
        t->round = t->round_next;
        t->round_next = 0.0;
        t->least_time = now;
    }
    if ( old || sample < t->least )
        t->least = sample;
    if ( sample > t->least + 0.02 && t->threshold > t->bulk )
        t->bulk = t->threshold = numbers_shrunk( t->bulk, t->least / sample > 0.9 ? 0.9 : t->least / sample );
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

static void trips_compare( const struct netcode_messages_t * m, const struct trips_t * t )
{
    NUMBERS_SAME( m->rtt, t->rtt );
    NUMBERS_SAME( m->rtt_variation, t->variation );
    NUMBERS_SAME( m->jitter, t->jitter );
    NUMBERS_SAME( m->rtt_latest, t->latest );
    NUMBERS_SAME( m->rtt_min, t->least );
    NUMBERS_SAME( m->rtt_min_time, t->least_time );
    NUMBERS_SAME( m->bulk_bytes, t->bulk );
    NUMBERS_SAME( m->bulk_threshold, t->threshold );
    NUMBERS_SAME( m->round_min, t->round );
    NUMBERS_SAME( m->round_min_next, t->round_next );
}

TEST( messages_round_trips )
{
    static const double samples[] = { 0.02, 0.04, 0.0400001, 0.0399999, 0.05, 0.125, 0.019, 0.3 };
    static const double steps[] = { 0.0, 0.5, 1.0, 10.0, 10.5 }, bulks[] = { 2400.0, 3000.0, 9600.0, 60000.0 };
    for ( int round = 0; round < 20; round++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        struct trips_t t;
        memset( &t, 0, sizeof( t ) );
        for ( int i = 0; i < 200; i++ ) {
            double sample = NUMBERS_PICK( samples );
            m->now += test_random_below( 4 ) ? 0.125 : NUMBERS_PICK( steps );
            m->bulk_bytes = t.bulk = NUMBERS_PICK( bulks );
            m->bulk_threshold = t.threshold = NUMBERS_PICK( bulks );
            m->window_bytes = t.window = NUMBERS_PICK( bulks );
            m->bulk.count = (uint32_t) ( t.transfers = test_random_below( 2 ) );
            m->round_min = t.round = test_random_below( 3 ) * 0.03125;
            m->round_min_next = t.round_next = test_random_below( 3 ) * 0.5;
            nc_messages_measure( m, sample );
            trips_note( &t, sample, m->now );
            trips_compare( m, &t );
        }
        m->bulk.count = 0;
        netcode_messages_destroy( m );
    }
}

TEST( messages_timeouts )
{
    static const struct {
        double rtt, variation, delay;
        uint32_t timeouts;
        double timeout;
    } rows[] = {
        { 0.0, 0.5, 0.25, 0, 0.2 },     { 0.0, 0.5, 0.25, 1, 0.4 },     { 0.0, 0.5, 0.25, 3, 1.6 },
        { 0.0, 0.5, 0.25, 4, 2.0 },     { 0.1, 0.01, 0.025, 0, 0.165 }, { 0.1, 0.01, 0.025, 2, 0.66 },
        { 0.1, 0.01, 0.025, 100, 2.0 }, { 1.0, 0.125, 0.25, 0, 1.75 },  { 1.0, 0.25, 0.25, 0, 2.0 },
        { 30.0, 1.0, 0.25, 0, 2.0 },    { 30.0, 1.0, 0.25, 5, 2.0 },    { 0.001, 0.0, 0.0, 10, 1.024 },
    };
    struct netcode_messages_t * m = numbers_open( 0 );
    for ( int i = 0; i < 12; i++ ) {
        m->rtt = rows[i].rtt;
        m->rtt_variation = rows[i].variation;
        m->peer_delay = rows[i].delay;
        m->timeouts = rows[i].timeouts;
        NUMBERS_SAME( nc_messages_timeout( m ), rows[i].timeout );
    }
    netcode_messages_destroy( m );
}

/* ---- delay: bulk gives way before anything is lost ---- */

struct delay_t {
    double now, start, rtt, sum, round, round_next, bulk, threshold, window;
    uint32_t samples, transfers;
};

static void delay_judge( struct delay_t * d )
{
    if ( d->samples < 4 || d->now - d->start < d->rtt )
        return;
    double mean = d->sum / d->samples;
    if ( d->round <= 0.0 || mean < d->round )
        d->round = mean;
    if ( d->round_next <= 0.0 || mean < d->round_next )
        d->round_next = mean;
    double empty = d->round > 0.06 ? d->round : 0.06;
    if ( d->transfers && d->round > 0.0 &&
         ( d->bulk >= d->threshold ||
           d->bulk >= d->window ) ) /* what grows shrinks, in proportion to what packets wait */
        d->bulk = d->threshold = numbers_shrunk( d->bulk, 1.0 - 0.25 * ( mean - d->round ) / empty );
    d->start = d->now;
    d->sum = 0.0;
    d->samples = 0;
}

static void delay_give( struct netcode_messages_t * m, const struct delay_t * d )
{
    m->now = d->now;
    m->bulk_start = d->start;
    m->rtt = d->rtt;
    m->round_sum = d->sum;
    m->round_samples = d->samples;
    m->round_min = d->round;
    m->round_min_next = d->round_next;
    m->bulk_bytes = d->bulk;
    m->bulk_threshold = d->threshold;
    m->window_bytes = d->window;
    m->bulk.count = d->transfers;
}

TEST( messages_delay_is_judged )
{
    static const double rounds[] = { 0.0, 0.0625, 0.03125, 0.046875, 0.25 };
    static const double means[] = { 0.03125, 0.04, 0.0625, 0.078125, 0.0785, 0.09375, 0.0938, 0.125, 0.5, 2.0 };
    static const double bulks[] = { 2400.0, 7200.0, 10000.0, 14400.0, 28800.0, 60000.0 };
    static const double waits[] = { 0.125, 0.0625, 0.25 };
    struct netcode_messages_t * m = numbers_open( 0 );
    for ( int i = 0; i < 4000; i++ ) {
        struct delay_t d;
        d.start = 0.25 * test_random_below( 3 );
        d.now = d.start + NUMBERS_PICK( waits );
        d.rtt = 0.125;
        d.samples = 2 + (uint32_t) test_random_below( 4 );
        d.sum = d.samples * NUMBERS_PICK( means );
        d.round = NUMBERS_PICK( rounds );
        d.round_next = NUMBERS_PICK( rounds );
        d.bulk = NUMBERS_PICK( bulks );
        d.threshold = NUMBERS_PICK( bulks );
        d.window = NUMBERS_PICK( bulks );
        d.transfers = (uint32_t) test_random_below( 3 );
        delay_give( m, &d );
        nc_messages_judge_delay( m );
        delay_judge( &d );
        NUMBERS_SAME( m->bulk_bytes, d.bulk );
        NUMBERS_SAME( m->round_min, d.round );
        NUMBERS_SAME( m->round_min_next, d.round_next );
        NUMBERS_SAME( m->bulk_start, d.start );
        NUMBERS_SAME( m->round_sum, d.sum );
        CHECK_EQ( m->round_samples, d.samples );
        NUMBERS_SAME( m->bulk_threshold, d.threshold ); /* no doubling from here on */
    }
    m->bulk.count = 0;
    netcode_messages_destroy( m );
}

/* ---- windows ---- */

TEST( messages_windows_grow )
{
    static const struct {
        int congestion, held;
        double sent, in_flight, window, threshold, bulk, bulk_threshold, window_after, bulk_after;
    } rows[] = {
        /* mode, held back, sent, in flight, window and threshold, bulk and threshold, both afterwards */
        { 0, 0, 1.0, 6000.0, 12000.0, 1e300, 4800.0, 1e300, 12600.0, 4800.0 }, /* half of it is used */
        { 0, 0, 1.0, 5999.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 4800.0 }, /* not half */
        { 0, 1, 1.0, 0.0, 12000.0, 1e300, 4800.0, 1e300, 12600.0, 4800.0 },    /* something had to wait */
        { 0, 2, 1.0, 0.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 5400.0 },    /* bulk had to wait */
        { 0, 3, 1.0, 0.0, 12000.0, 12000.0, 4800.0, 4800.0, 12060.0, 4950.0 }, /* above the thresholds: slowly */
        { 0, 3, 1.0, 0.0, 12000.0, 12001.0, 4800.0, 4801.0, 12600.0, 5400.0 }, /* just below them */
        { 0, 3, 0.5, 0.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 4800.0 },    /* sent before the last cut */
        { 0, 3, 0.25, 0.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 4800.0 },
        { 0, 3, 1.0, 0.0, 19000.0, 1e300, 4800.0, 1e300, 19200.0, 5400.0 },    /* 16 packets are all there are */
        { 0, 3, 1.0, 0.0, 2400.0, 1.0, 2800.0, 1e300, 2700.0, 2700.0 },        /* bulk within the whole */
        { 1, 3, 1.0, 9999.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 4800.0 }, /* FIXED */
        { 2, 3, 1.0, 9999.0, 12000.0, 1e300, 4800.0, 1e300, 12000.0, 4800.0 }, /* NONE */
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = numbers_open( rows[i].congestion );
        m->recovery_start = 0.5;
        m->held_back = rows[i].held;
        m->window_bytes = rows[i].window;
        m->threshold_bytes = rows[i].threshold;
        m->bulk_bytes = rows[i].bulk;
        m->bulk_threshold = rows[i].bulk_threshold;
        nc_messages_grow( m, 600.0, rows[i].sent, rows[i].in_flight );
        if ( !NUMBERS_SAME( m->window_bytes, rows[i].window_after ) ||
             !NUMBERS_SAME( m->bulk_bytes, rows[i].bulk_after ) )
            test_fail( __FILE__, __LINE__, "row %d", i );
        netcode_messages_destroy( m );
    }
}

/* The first packet of a connection may already open the window, and the loss of it close it. */
TEST( messages_windows_move_from_the_start )
{
    for ( int lost = 0; lost < 2; lost++ ) {
        struct netcode_messages_t * m = netcode_messages_create( NULL, -5.0 );
        NUMBERS_SAME( m->window_bytes, 12000.0 );
        NUMBERS_SAME( m->bulk_bytes, 4800.0 );
        NUMBERS_SAME( m->bulk_start, -5.0 ); /* delays are judged from here on */
        m->held_back = NC_HELD_SMALL;
        if ( lost )
            nc_messages_cut( m, -5.0 );
        else
            nc_messages_grow( m, 600.0, -5.0, 0.0 );
        NUMBERS_SAME( m->window_bytes, lost ? 6000.0 : 12600.0 );
        netcode_messages_destroy( m );
    }
}

TEST( messages_windows_are_cut )
{
    static const struct {
        int congestion;
        double sent, window, bulk, window_after, bulk_after;
    } rows[] = {
        { 0, 1.0, 12000.0, 6000.0, 6000.0, 3000.0 },  { 0, 0.5, 12000.0, 6000.0, 12000.0, 6000.0 },
        { 0, 1.0, 4700.0, 4700.0, 2400.0, 2400.0 },   { 0, 1.0, 4900.0, 4900.0, 2450.0, 2450.0 },
        { 1, 1.0, 12000.0, 6000.0, 12000.0, 6000.0 }, { 2, 1.0, 12000.0, 6000.0, 12000.0, 6000.0 },
    };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = numbers_open( rows[i].congestion );
        int cut = rows[i].window_after < rows[i].window;
        m->now = 2.0;
        m->recovery_start = 0.5;
        m->window_bytes = rows[i].window;
        m->bulk_bytes = rows[i].bulk;
        nc_messages_cut( m, rows[i].sent );
        NUMBERS_SAME( m->window_bytes, rows[i].window_after );
        NUMBERS_SAME( m->bulk_bytes, rows[i].bulk_after );
        NUMBERS_SAME( m->recovery_start, cut ? 2.0 : 0.5 );
        NUMBERS_SAME( m->threshold_bytes, cut ? m->window_bytes : 1e300 );
        NUMBERS_SAME( m->bulk_threshold, cut ? m->bulk_bytes : 1e300 );
        netcode_messages_destroy( m );
    }
}

/*  A lost packet cuts the window where that was in use: half of it by others than transfers; or where it held a part of
    one. Each is one more of 64 that were lost, each that is heard one less. */
TEST( messages_losses_that_count )
{
    static const struct {
        uint16_t flags;
        double in_flight, bulk_in_flight, window_after;
    } rows[] = {
        { 0, 6000.0, 0.0, 6000.0 },
        { 0, 5999.0, 0.0, 12000.0 },
        { 0, 9000.0, 3000.0, 6000.0 },
        { 0, 9000.0, 3001.0, 12000.0 },
        { NC_SENT_BULK, 600.0, 600.0, 6000.0 },
        { NC_SENT_LIMIT, 600.0, 0.0, 12000.0 },
    };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = numbers_open( 0 );
        m->recovery_start = -1.0;
        m->packets_in_flight = 2;
        m->sent_end = 2;
        m->limit_due = 0;
        for ( uint32_t k = 0; k < 2; k++ ) {
            nc_sent_t * sent = nc_sent_at( m, k );
            memset( sent, 0, sizeof( *sent ) );
            sent->number = k;
            sent->bytes = (uint16_t) ( 600 | NC_SENT_IN_FLIGHT | rows[i].flags );
        }
        m->in_flight = rows[i].in_flight;
        m->bulk_in_flight = rows[i].bulk_in_flight;
        nc_sent_lost( m, nc_sent_at( m, 0 ) );
        NUMBERS_SAME( m->window_bytes, rows[i].window_after );
        NUMBERS_SAME( m->in_flight, rows[i].in_flight - 600.0 );
        NUMBERS_SAME( m->bulk_in_flight, rows[i].bulk_in_flight - ( rows[i].flags & NC_SENT_BULK ? 600.0 : 0.0 ) );
        NUMBERS_SAME( m->loss_sent, 1.0 / 64.0 );
        CHECK_EQ( m->limit_due, rows[i].flags == NC_SENT_LIMIT );
        CHECK( m->packets_in_flight == 1 && m->stats.packets_lost == 1 );
        double window = m->window_bytes;
        m->held_back = NC_HELD_SMALL;
        nc_sent_acked( m, nc_sent_at( m, 1 ) );
        NUMBERS_SAME( m->loss_sent, 63.0 / 64.0 / 64.0 );
        NUMBERS_SAME( m->window_bytes, window < 12000.0 ? window : 12600.0 );
        CHECK_EQ( m->packets_in_flight, 0 );
        netcode_messages_destroy( m );
    }
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
        { 2, 0x0, 0, 0.09375, 0.025, 0.09375, 1 },
        { 2, 0x3, 0, 0.09375, 0.025, 0.328125, 3 },
        { 2, 0x3, 100, 0.08375, 0.025, 0.298125, 3 },
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
            nc_sent_at( m, k )->time = 0.015625 * k;
        m->next_number = 4;
        messages_skip_nothing( m );
        nc_messages_set_time( m, 0.125 );
        m->bulk_start = 1.0; /* nothing is judged yet */
        m->rtt = m->rtt_latest = 0.0;
        craft_begin( &craft, 0, rows[i].ack, rows[i].bits );
        craft.data[0] = 0x31;
        put( &craft.at, (uint64_t) rows[i].delay, 2 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        NUMBERS_SAME( m->rtt, rows[i].rtt );
        NUMBERS_SAME( m->peer_delay, rows[i].peer_delay );
        NUMBERS_SAME( m->round_sum, rows[i].sum );
        CHECK_EQ( m->round_samples, rows[i].samples );
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
                 { 0, 0.002, 800.0, 500000.0 }, { 1, 0.05, 12000.0, 125000.0 }, { 2, 0.05, 12000.0, 300000.0 } };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = numbers_open( rows[i].congestion );
        m->rtt = rows[i].rtt;
        NUMBERS_SAME( nc_messages_rate( m, rows[i].window ), rows[i].rate );
        netcode_messages_destroy( m );
    }
    NUMBERS_SAME( nc_tokens_filled( -500.0, 1000.0, 0.25, 0.03 ), -250.0 );
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 1000.0, 0.25, 0.03 ), 2400.0 );   /* two packets may always be saved */
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 100000.0, 0.01, 0.03 ), 3000.0 ); /* or 30 ms of the rate */
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 1e6, 0.002, 0.01 ), 4300.0 );
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 1e6, 0.009, 0.01 ), 10000.0 );      /* of bulk 10 */
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 100000.0, 0.125, 0.03 ), 12500.0 ); /* or the time that has passed */
    NUMBERS_SAME( nc_tokens_filled( 2300.0, 100000.0, 1.0, 0.03 ), 25000.0 );   /* but never more than 250 ms */
    NUMBERS_SAME( nc_tokens_filled( 0.0, 1e6, 0.001, 0.03 ), 1000.0 );
}

/* Time fills both buckets, each at its own rate. */
TEST( messages_tokens_are_filled )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    m->rtt = 0.125;
    m->window_bytes = 10000.0; /* 100,000 bytes a second */
    m->bulk_bytes = 2500.0;    /* 25,000 */
    m->tokens = m->bulk_tokens = -3000.0;
    for ( int i = 1; i <= 4; i++ ) {
        netcode_messages_update( m, 0.01 * i );
        NUMBERS_SAME( m->tokens, -3000.0 + 1000.0 * i );
        NUMBERS_SAME( m->bulk_tokens, -3000.0 + 250.0 * i );
    }
    netcode_messages_update( m, 0.04 ); /* no time has passed */
    netcode_messages_update( m, 0.01 );
    NUMBERS_SAME( m->tokens, 1000.0 );
    m->bulk_bytes = 12500.0; /* 125,000 */
    m->tokens = m->bulk_tokens = 2300.0;
    netcode_messages_update( m, m->caller_time + 0.02 );
    NUMBERS_SAME( m->tokens, 3000.0 );                  /* 30 ms are saved */
    NUMBERS_SAME( m->bulk_tokens, 2500.0 );             /* of bulk not more than the tick */
    netcode_messages_update( m, m->caller_time + 0.1 ); /* late: half of the window */
    NUMBERS_SAME( m->bulk_tokens, 6250.0 );
    m->rtt = 0.0125;
    netcode_messages_update( m, m->caller_time + 0.1 ); /* or a tick's, where round trips are shorter than ticks */
    NUMBERS_SAME( m->bulk_tokens, 21250.0 );
    m->congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    m->fixed_rate = 1e6;
    netcode_messages_update( m, m->caller_time + 0.1 ); /* a fixed rate knows no window */
    NUMBERS_SAME( m->bulk_tokens, 100000.0 );
    netcode_messages_destroy( m );
}

/* What was sent and received a second, told after a quarter of a second at the earliest. */
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

/* Every statistic is the count or the measure of its name. */
TEST( messages_statistics_by_name )
{
    struct netcode_messages_t * m = numbers_open( 0 );
    struct netcode_messages_stats_t stats;
    nc_messages_counters_t * counts = &m->stats;
    const uint64_t * all = (const uint64_t *) (const void *) counts;
    for ( size_t i = 0; i < offsetof( nc_messages_counters_t, drops ) / 8; i++ )
        ( (uint64_t *) (void *) counts )[i] = 1000 + i;
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        counts->drops[i] = 50 + (uint32_t) i;
    m->rtt = 0.1;
    m->rtt_variation = 0.2;
    m->rtt_min = 0.3;
    m->rtt_latest = 0.4;
    m->jitter = 0.5;
    m->ping = 0.6;
    m->loss_sent = 0.7;
    m->rate_sent = 0.8;
    m->rate_received = 0.9;
    m->window_bytes = 1.1;
    m->in_flight = 1.2;
    m->out.used = 96;
    m->in.used = 128;
    m->credit_limit = 500;
    m->credit_spent = 300;
    netcode_messages_stats( m, &stats );
    const uint64_t told[] = { stats.reliable_retries_total,
                              stats.reliable_timeouts_total,
                              stats.packets_sent,
                              stats.packets_received,
                              stats.packets_lost,
                              stats.packets_lost_spuriously,
                              stats.bytes_sent,
                              stats.bytes_received,
                              stats.messages_sent,
                              stats.messages_received,
                              stats.messages_repeated,
                              stats.messages_duplicate,
                              stats.messages_outdated,
                              stats.messages_expired,
                              stats.messages_unstored,
                              stats.probes };
    CHECK_MEM( told, all, offsetof( nc_messages_counters_t, drops ) );
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        CHECK_EQ( stats.drops[i], 50 + i );
    CHECK_EQ( stats.dropped_duplicates_total, 50 + NETCODE_MESSAGES_DROP_DUPLICATE );
    CHECK_EQ( stats.dropped_old_total, 50 + NETCODE_MESSAGES_DROP_OLD );
    CHECK_EQ( stats.dropped_window_total, 50 + NETCODE_MESSAGES_DROP_WINDOW );
    const double measures[] = { stats.rtt,
                                stats.rtt_variation,
                                stats.rtt_min,
                                stats.rtt_latest,
                                stats.jitter,
                                stats.ping,
                                stats.loss_sent,
                                stats.send_rate,
                                stats.receive_rate,
                                1.0,
                                stats.congestion_window,
                                stats.bytes_in_flight };
    for ( int i = 0; i < 12; i++ )
        NUMBERS_SAME( measures[i], 0.1 * ( i + 1 ) );
    CHECK( (int) stats.send_buffer_used == 96 && (int) stats.receive_buffer_used == 128 && (int) stats.credit == 200 );
    netcode_messages_destroy( m );
}

/* The same over time: ten packets of 100 bytes a second are told as about a thousand. */
TEST( messages_rates_are_told )
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
    return m;
}

static void deadline_is( struct netcode_messages_t * m, double expected )
{
    CHECK_NEAR( netcode_messages_next_deadline( m ), expected, 1e-9 );
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
    m->broken = NC_MESSAGES_BROKEN_REPORTED;
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

/* One reliable message under way, and then one lost: the timeout, and 9/8 of the round trip. */
TEST( messages_deadlines_of_what_is_under_way )
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
    craft.data[0] = 0x11;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    m->rtt_variation = 1.0;
    CHECK_NEAR( netcode_messages_next_deadline( m ), 10.0703125, 1e-9 );
    m->rtt = 0.0625;
    m->rtt_latest = 0.125; /* the larger of both */
    CHECK_NEAR( netcode_messages_next_deadline( m ), 10.140625, 1e-9 );
    m->rtt = 30.0; /* two seconds at most */
    m->last_asked = 20.0;
    CHECK_NEAR( netcode_messages_next_deadline( m ), 12.25, 1e-9 );
    m->rtt = m->rtt_latest = 1e-6; /* and two milliseconds at least */
    m->now = m->caller_time = 10.001;
    deadline_is( m, 10.002 );
}

/* The same as what is done: at the time that was said it is lost, and not a moment before. */
TEST( messages_lost_at_the_deadline )
{
    struct craft_t craft;
    struct netcode_messages_t * m = deadline_open( -1.0 );
    lost_send( m, 1, 10.0 );
    netcode_messages_update( m, 10.125 );
    craft_begin( &craft, 0, 1, 0 );
    craft.data[0] = 0x11;
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_update( m, 10.140624 );
    CHECK_EQ( m->stats.packets_lost, 0 );
    netcode_messages_update( m, 10.140625 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    netcode_messages_destroy( m );
}

TEST( messages_deadlines_of_what_waits )
{
    static const struct {
        int kind, bytes;
        double tokens, deadline;
    } rows[] = {
        { NETCODE_MESSAGE_UNRELIABLE, 1, 5.0, 10.001 },        { NETCODE_MESSAGE_UNRELIABLE, 1, 0.0, 10.001 },
        { NETCODE_MESSAGE_UNRELIABLE, 1, -0.5, 10.001 },       { NETCODE_MESSAGE_UNRELIABLE, 1, -300.0, 10.3 },
        { NETCODE_MESSAGE_RELIABLE_ORDERED, 1, -20.0, 10.02 }, { NETCODE_MESSAGE_RELIABLE, 3000, -20.0, 10.02 },
        { NETCODE_MESSAGE_RELIABLE, 1, -9e6, 3610.0 },
    };
    for ( int i = 0; i < 7; i++ ) {
        struct netcode_messages_t * m = deadline_open( -1.0 );
        netcode_messages_send( m, 2, rows[i].kind, flow_data, rows[i].bytes );
        m->tokens = rows[i].tokens;
        deadline_is( m, rows[i].deadline );
    }
    struct netcode_messages_t * m =
        deadline_open( -1.0 ); /* what the window holds back waits for an ack, not for time */
    netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    m->fresh = 0;
    deadline_is( m, 10.5 );                  /* until its time is over */
    for ( int bulk = 0; bulk < 2; bulk++ ) { /* but what the rate holds back does */
        m = deadline_open( -1.0 );
        netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
        m->fresh = 0;
        *( bulk ? &m->bulk_tokens : &m->tokens ) = 0.0;
        deadline_is( m, 10.001 );
    }
    m = deadline_open( -1.0 );
    netcode_messages_send( m, 2, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    m->fresh = 0;
    m->tokens = m->bulk_tokens = 0.5; /* it lets a packet go */
    deadline_is( m, 10.5 );
    m = deadline_open( -1.0 ); /* and where nothing waits there is nothing to hold back */
    m->tokens = -100.0;
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
    m->tokens = -100.0;
    m->last_asked = 20.0;
    deadline_is( m, 10.1 );
    m = deadline_open( -1.0 ); /* and what was lost */
    lost_send( m, 0, 10.0 );
    nc_sent_lost( m, nc_sent_at( m, m->sent_first ) );
    m->tokens = -100.0;
    deadline_is( m, 10.1 );
}

#undef NUMBERS_PICK
#undef NUMBERS_SAME
