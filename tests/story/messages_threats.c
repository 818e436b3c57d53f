/*  Story: the rows of the attack table that are about messages. A player that holds the keys, and what it can not do
    with them. Run: runner messages_threats.c */

/* ---- 59: orders that make a receiver work ---- */

enum { ORDERS_PACKETS = 60, ORDERS_ROUNDS = 15, ORDERS_FRAMES = 198, ORDERS_WINDOW = 1023 };

static double threat_cpu_seconds( void )
{
#if defined( CLOCK_THREAD_CPUTIME_ID )
    struct timespec now;
    clock_gettime( CLOCK_THREAD_CPUTIME_ID, &now );
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#else
    return (double) clock() / (double) CLOCKS_PER_SEC;
#endif
}

enum orders_shape_t { ORDERS_IN_TURN, ORDERS_TAKEN, ORDERS_RISING, ORDERS_FALLING, ORDERS_SCATTERED, ORDERS_SHAPES };

struct orders_t {
    struct victim_t v;
    int shape, next;
};

/* The nth order that is sent; none of the last three shapes has a hole longer than the window. */
static int orders_nth( const struct orders_t * it, int n )
{
    int turn = n / ( ORDERS_WINDOW + 1 ) * ( ORDERS_WINDOW + 1 ), at = n % ( ORDERS_WINDOW + 1 );
    if ( it->shape == ORDERS_IN_TURN )
        return n;
    if ( it->shape == ORDERS_TAKEN )
        return n < ORDERS_WINDOW ? n + 1 : ORDERS_WINDOW;
    if ( at == ORDERS_WINDOW )
        return turn; /* the first comes last, and lets all that wait go */
    return turn + 1 +
           ( it->shape == ORDERS_RISING    ? at
             : it->shape == ORDERS_FALLING ? ORDERS_WINDOW - 1 - at
                                           : at * 512 % ORDERS_WINDOW );
}

/* Packets full of the shortest ordered messages; a turn of a window ends with its packet. Returns their bytes. */
static int orders_send( struct orders_t * it, int packets, double * seconds )
{
    int bytes = 0;
    for ( int i = 0; i < packets; i++ ) {
        craft_begin( &it->v.craft, it->v.number++, messages_newest( it->v.m ), 0 );
        for ( int k = 0; k < ORDERS_FRAMES && ( k == 0 || it->next % ( ORDERS_WINDOW + 1 ) ); k++, it->next++ )
            craft_message( &it->v.craft, 3, 0, (int) it->v.m->newest_id + 1 + k, orders_nth( it, it->next ), NULL, 0 );
        bytes += craft_bytes( &it->v.craft );
        double before = threat_cpu_seconds();
        CHECK_EQ( craft_give( &it->v.craft, it->v.m ), NETCODE_MESSAGES_DROP_NONE );
        messages_read( it->v.m );
        *seconds += threat_cpu_seconds() - before;
        it->v.now += 0.01;
        messages_drain( it->v.m, it->v.now );
    }
    return bytes;
}

TEST( threat_59_no_order_costs_more_than_honest_ones )
{
#if defined( TEST_EMULATED )
    SKIP( "an emulated processor's time says nothing" );
#endif
    static const char * const names[] = { "in turn", "taken", "rising", "falling", "scattered" };
    static struct orders_t all[ORDERS_SHAPES];
    double least[ORDERS_SHAPES];
    memset( all, 0, sizeof( all ) );
    for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
        victim_open( &all[shape].v, NULL );
        all[shape].shape = shape;
        least[shape] = 1e9;
    }
    for ( int round = 0; round < ORDERS_ROUNDS; round++ )
        for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
            double seconds = 0.0;
            int bytes = orders_send( &all[shape], ORDERS_PACKETS, &seconds );
            least[shape] = nc_real_smaller( least[shape], seconds / bytes );
        }
    for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
        double ratio = least[shape] / least[ORDERS_IN_TURN];
        printf( "    measured: orders %s: %.2f times the work of honest ones for each byte\n", names[shape], ratio );
        if ( ratio > 4.0 )
            test_fail( __FILE__, __LINE__, "orders %s cost %.1f times what honest ones do; the limit is 4",
                       names[shape], ratio );
        messages_check( all[shape].v.m );
        victim_close( &all[shape].v );
    }
}

/* What comes under an order that is in use is counted, and nothing of it is kept: no room, no credit, no id. */
TEST( threat_59_a_taken_order_is_refused_before_anything_is_stored )
{
    struct victim_t v;
    victim_open( &v, NULL );
    victim_begin( &v );
    craft_message( &v.craft, 3, 0, 0, 1, hostile_data, 100 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    uint32_t used = v.m->in.used, received = v.m->credit_received;
    int64_t newest = v.m->newest_id;
    victim_begin( &v );
    craft_message( &v.craft, 3, 0, 1, 1, hostile_data, 100 );
    craft_fragment( &v.craft, 3, 0, 0, 1, hostile_data, 1181, 1 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( v.m->stats.messages_duplicate, 2 );
    CHECK_EQ( v.m->in.used, used );
    CHECK_EQ( v.m->credit_received, received );
    CHECK_EQ( v.m->newest_id, newest );
    victim_begin( &v ); /* two of one order in one packet, and one that its packet has let pass */
    craft_message( &v.craft, 3, 0, 1, 3, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 2, 3, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 3, 0, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 4, 0, hostile_data, 100 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( v.m->stats.messages_duplicate, 4 );
    CHECK_EQ( v.m->channels[0].expected_order, 2 );
    CHECK_EQ( messages_read( v.m ), 2 );
    victim_close( &v );
}

/* ---- 66: acknowledgements for what never arrived ---- */

enum { LINE_BYTES_PER_SECOND = 20000, FORGER_SECONDS = 10 };
enum forger_t { FORGER_ALL, FORGER_HALF, FORGER_AHEAD, FORGERS };

/* One number of the wire, next to the newest that was seen. */
static int64_t forger_number( int64_t newest, const uint8_t * packet )
{
    return newest + (int16_t) (uint16_t) ( packet[1] + 256u * packet[2] - (uint32_t) newest );
}

/* What the forger acknowledges of all that its link did not carry. */
static void forger_acks( struct craft_t * craft, int forger, int64_t number, int64_t newest )
{
    uint32_t bits = forger == FORGER_HALF ? (uint32_t) test_random() : 0xffffffff;
    int64_t ack = forger == FORGER_AHEAD ? newest + 8 : newest;
    craft_begin( craft, number, ack, ack < 32 ? bits & ( ( 1u << ack ) - 1 ) : bits );
    craft->data[0] = 0x13;
    if ( ack > 255 && forger != FORGER_HALF ) {
        put( &craft->at, 0x07, 1 );
        put( &craft->at, 1, 1 );
        craft_varint( craft, 0 );
        craft_varint( craft, 256 - 33 );
    }
}

/* A sender with more to send than fits, and a peer that hears what 20 kB a second carry and acknowledges the rest, too. */
static void forger_plays( int forger )
{
    static uint8_t part[1000];
    struct netcode_messages_config_t config;
    struct link_t link;
    struct craft_t craft;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int64_t newest = -1, number = 0;
    int64_t after = 0;
    int bytes, broken = 0;
    memset( &config, 0, sizeof( config ) );
    config.window_packets = 4096;
    link_open( &link, &config, test_random(), 0.025, 0.0 );
    struct netcode_messages_t * m = link.ends[0];
    link.ways[0].bytes_per_second = LINE_BYTES_PER_SECOND;
    while ( link.now < FORGER_SECONDS ) {
        struct netcode_messages_event_t event;
        link.now += link.step;
        netcode_messages_set_time( m, link.now );
        while ( ( bytes = link_get( &link, 0, packet ) ) > 0 )
            link.refused[netcode_messages_process_packet( m, packet, bytes )]++;
        while ( netcode_messages_event( m, &event ) )
            broken += event.type == NETCODE_MESSAGES_EVENT_BROKEN;
        after -= broken ? (int64_t) m->stats.bytes_sent : 0;
        while ( netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, part, sizeof( part ) ) == NETCODE_OK )
            ;
        netcode_messages_update( m, link.now );
        while ( ( bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) ) > 0 )
            link_put( &link, 0, packet, bytes );
        after += broken ? (int64_t) m->stats.bytes_sent : 0;
        while ( ( bytes = link_get( &link, 1, packet ) ) > 0 ) {
            int64_t seen = forger_number( newest, packet );
            newest = seen > newest ? seen : newest;
        }
        if ( newest < 0 )
            continue;
        forger_acks( &craft, forger, number++, newest );
        craft_limit( &craft, m->credit_spent + 1000000, 262144 );
        link_put( &link, 1, craft.data, craft_bytes( &craft ) );
    }
    static const char * const names[FORGERS] = { "all", "half", "what is ahead, too" };
    printf( "    measured: acknowledging %s over %d kB/s: %.0f kB were emitted in %d s; %s\n", names[forger],
            LINE_BYTES_PER_SECOND / 1000, (double) m->stats.bytes_sent / 1000.0, FORGER_SECONDS,
            broken ? "the connection was broken" : "it goes on" );
    /* Losses that are half admitted shrink the window: then it need not break. */
    CHECK( broken == 1 ||
           ( forger == FORGER_HALF && m->stats.bytes_sent <= LINE_BYTES_PER_SECOND * FORGER_SECONDS * 3 / 2 ) );
    CHECK_LE( m->stats.bytes_sent, 2000000 );
    CHECK_LE( after, 11 * 10 * FORGER_SECONDS ); /* BROKEN */
    CHECK( !broken || link.refused[NETCODE_MESSAGES_DROP_ACK] > 0 );
    link_close( &link );
}

TEST( threat_66_acks_for_what_never_arrived )
{
    for ( int forger = 0; forger < FORGERS; forger++ )
        forger_plays( forger );
}

/* The ack of a skipped number, by each of the three ways to say it, breaks; that of its neighbours does not. */
TEST( threat_66_a_skipped_number_breaks )
{
    static const int64_t aheads[] = { 0, 1, 32, 33, 200 };
    for ( int row = 0; row < 15; row++ ) {
        struct victim_t v;
        struct netcode_messages_event_t event;
        int64_t ahead = aheads[row / 3], off = row % 3 - 1;
        victim_open( &v, NULL );
        while ( v.m->next_number < 1000 ) {
            netcode_messages_send( v.m, 0, NETCODE_MESSAGE_UNRELIABLE, "x", 1 );
            messages_drain( v.m, v.now += 0.01 );
            craft_begin( &v.craft, v.number++, messages_newest( v.m ), 0 );
            v.craft.data[0] = 0x13;
            CHECK_EQ( craft_give( &v.craft, v.m ), NETCODE_MESSAGES_DROP_NONE );
        }
        int64_t named = 512 + v.m->skipped[2] + off, ack = named + ahead;
        craft_begin( &v.craft, v.number, ack, ahead > 0 && ahead < 33 ? 1u << ( ahead - 1 ) : 0 );
        if ( ahead >= 33 ) {
            put( &v.craft.at, 0x07, 1 );
            put( &v.craft.at, 1, 1 );
            craft_varint( &v.craft, (uint32_t) ( ahead - 33 ) );
            craft_varint( &v.craft, 1 );
        }
        if ( ack == 768 + v.m->skipped[3] || ( ahead && ack == 512 + v.m->skipped[2] ) )
            off = 0; /* the newest is one itself */
        CHECK_EQ( craft_give( &v.craft, v.m ), off ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_ACK );
        CHECK_EQ( v.m->stats.drops[NETCODE_MESSAGES_DROP_ACK], off == 0 );
        CHECK_EQ( netcode_messages_event( v.m, &event ), off == 0 );
        CHECK( off || event.type == NETCODE_MESSAGES_EVENT_BROKEN );
        CHECK_EQ( netcode_messages_send( v.m, 0, 0, "x", 1 ), off ? NETCODE_OK : NETCODE_MESSAGES_BROKEN );
        CHECK( off || messages_drain( v.m, v.now + 1.0 ) == 1 ); /* BROKEN */
        victim_close( &v );
    }
}

/* An honest peer meets skipped numbers for ever: it breaks nothing, and neither side takes them for losses. */
TEST( threat_66_skipped_numbers_are_no_losses )
{
    for ( int lossy = 0; lossy < 2; lossy++ ) {
        struct netcode_messages_stats_t stats;
        struct link_t link;
        double sum = 0.0;
        int count = 0;
        link_open( &link, NULL, test_random(), 0.03, lossy ? 0.05 : 0.0 );
        link.ways[0].jitter = link.ways[1].jitter = lossy ? 0.03 : 0.0;
        for ( int i = 0; i < 70000; i++ ) {
            CHECK_EQ( netcode_messages_send( link.ends[i & 1], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, "honest", 6 ),
                      NETCODE_OK );
            link_tick( &link );
            messages_read( link.ends[0] );
            messages_read( link.ends[1] );
            netcode_messages_stats( link.ends[i & 1], &stats );
            CHECK( lossy || stats.loss_received <= 0.0 );
            sum += i > 600 ? stats.loss_received : 0.0;
            count += i > 600;
        }
        for ( int end = 0; end < 2; end++ ) {
            const struct netcode_messages_t * m = link.ends[end];
            CHECK_EQ( m->broken, 0 );
            CHECK_GT( m->next_number, 32768 ); /* what is remembered of skips has come round */
            CHECK_EQ( m->next_number - m->stats.packets_sent,
                      ( m->next_number - 1 ) / 256 +
                          ( ( m->next_number - 1 ) % 256 >= m->skipped[( m->next_number - 1 ) / 256 % 128] ) );
            CHECK( lossy || ( m->stats.packets_lost == 0 && m->stats.loss_sent <= 0.0 && m->acks_due <= 1 ) );
        }
        for ( int reason = 1; reason < NETCODE_MESSAGES_DROP_REASONS; reason++ )
            CHECK_EQ( link.refused[reason], 0 );
        CHECK_NEAR( sum / count, lossy ? 0.05 : 0.0, 0.006 );
        link_close( &link );
    }
}

/* Where the skipped numbers lie is drawn for each connection and each block, over all of it. */
TEST( threat_66_skips_can_not_be_foreseen )
{
    int seen[2][256] = { { 0 }, { 0 } }, different = 0;
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    for ( int i = 0; i < 5000; i++ ) {
        int before = m->skipped[0];
        netcode_messages_reset( m, 0.0 );
        different += before != m->skipped[0];
        seen[0][m->skipped[0]]++;
        m->next_number = 255 + 256 * (uint64_t) i;
        nc_messages_count_number( m );
        seen[1][m->skipped[( i + 1 ) % NC_MESSAGES_BLOCKS]]++;
    }
    CHECK_GT( different, 4900 );
    for ( int at = 0; at < 256; at++ ) {
        CHECK_EQ( seen[0][at] > 0, at >= 32 && at < 255 );
        CHECK_EQ( seen[1][at] > 0, at >= 1 && at < 255 );
        CHECK( seen[0][at] < 60 && seen[1][at] < 60 );
    }
    netcode_messages_destroy( m );
}

/* ---- 88: acks that are withheld ---- */

enum { WITHHELD_MARK = 0x7b, WITHHELD_SMALL = 100, WITHHELD_DELAY = 3, WITHHELD_TICKS = 600, WITHHELD_PACKETS = 64 };

/* A sender, and a peer that acknowledges each packet, or none that carries one of the first messages. */
struct withheld_t {
    struct netcode_messages_t * m;
    int64_t number, newest; /* of the peer's packets, and of those that it acknowledges */
    uint32_t bits;
    int withholds, withheld;
    double seconds; /* of processing acks */
    struct {
        int count;
        int64_t numbers[WITHHELD_PACKETS];
    } ticks[WITHHELD_DELAY]; /* what is on its way */
};

static int withheld_carries( const uint8_t * packet, int bytes )
{
    for ( int i = 0; i + 8 <= bytes; i++ )
        if ( packet[i] == WITHHELD_MARK && memcmp( packet + i, packet + i + 1, 7 ) == 0 )
            return 1;
    return 0;
}

static void withheld_ack( struct withheld_t * it, int64_t number )
{
    struct craft_t craft;
    int64_t ahead = number - it->newest;
    it->bits = ahead > 32    ? 0
               : ahead == 32 ? 0x80000000
                             : it->bits << ahead | ( it->newest >= 0 ? 1u << ( ahead - 1 ) : 0 );
    it->newest = number;
    craft_begin( &craft, it->number++, number, it->bits );
    craft_limit( &craft, it->m->credit_spent + 1000000, 262144 );
    double before = threat_cpu_seconds();
    CHECK_EQ( craft_give( &craft, it->m ), NETCODE_MESSAGES_DROP_NONE );
    it->seconds += threat_cpu_seconds() - before;
}

static void withheld_tick( struct withheld_t * it, int tick )
{
    static uint8_t data[NETCODE_MAX_PACKET_SIZE], packet[NETCODE_MAX_PACKET_SIZE], small[40];
    double now = tick / 60.0;
    int at = tick % WITHHELD_DELAY, bytes;
    netcode_messages_set_time( it->m, now );
    for ( int i = 0; i < it->ticks[at].count; i++ )
        withheld_ack( it, it->ticks[at].numbers[i] );
    it->ticks[at].count = 0;
    memset( small, WITHHELD_MARK, sizeof( small ) );
    for ( int i = 0; i < WITHHELD_SMALL && tick == 1; i++ )
        REQUIRE_EQ( netcode_messages_send( it->m, 0, NETCODE_MESSAGE_RELIABLE, small, sizeof( small ) ), NETCODE_OK );
    while ( netcode_messages_send( it->m, 1, NETCODE_MESSAGE_RELIABLE, data, 1100 ) == NETCODE_OK )
        ;
    netcode_messages_update( it->m, now );
    while ( ( bytes = netcode_messages_generate_packet( it->m, packet, (int) sizeof( packet ) ) ) > 0 ) {
        int withhold = it->withholds && withheld_carries( packet, bytes );
        it->withheld += withhold;
        if ( !withhold && it->ticks[at].count < WITHHELD_PACKETS )
            it->ticks[at].numbers[it->ticks[at].count++] = forger_number( (int64_t) it->m->next_number, packet );
    }
}

/* The seconds that sealing 1,100 bytes takes here. */
static double withheld_floor( void )
{
    static uint8_t data[1200], key[32] = { 1 };
    uint8_t nonce[12] = { 0 };
    double before = threat_cpu_seconds();
    for ( int i = 0; i < 2000; i++ )
        crypto_stream_chacha20_ietf_xor( data, data, 1100, nonce, key );
    return ( threat_cpu_seconds() - before ) / 2000;
}

TEST( threat_88_acks_that_are_withheld )
{
#if defined( TEST_EMULATED )
    SKIP( "an emulated processor's time says nothing" );
#endif
    static struct withheld_t both[2];
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = 2;
    memset( both, 0, sizeof( both ) );
    for ( int i = 0; i < 2; i++ ) {
        struct craft_t craft;
        both[i].withholds = i;
        both[i].newest = -1;
        both[i].m = netcode_messages_create( &config, 0.0 );
        REQUIRE( both[i].m != NULL );
        craft_begin( &craft, both[i].number++, -1, 0 );
        craft_limit( &craft, 1000000, 262144 );
        CHECK_EQ( craft_give( &craft, both[i].m ), NETCODE_MESSAGES_DROP_NONE );
    }
    for ( int tick = 1; tick < WITHHELD_TICKS; tick++ )
        for ( int i = 0; i < 2; i++ )
            withheld_tick( &both[i], tick );
    double floor_ = withheld_floor();
    for ( int i = 0; i < 2; i++ ) {
        double ratio = both[i].seconds / (double) both[i].number / floor_;
        printf( "    measured: %d acks, %d packets without: an ack costs %.2f times what sealing 1,100 bytes does\n",
                (int) both[i].number, both[i].withheld, ratio );
        if ( ratio > 12.0 )
            test_fail( __FILE__, __LINE__, "an ack costs %.2f times what sealing 1,100 bytes does; the limit is 12",
                       ratio );
    }
    CHECK( both[1].seconds <= 2.0 * both[0].seconds ); /* in the same time */
    CHECK_GE( both[1].withheld, 50 );
    CHECK_GE( both[1].number, 300 );
    for ( int i = 0; i < 2; i++ )
        netcode_messages_destroy( both[i].m );
}

/* ---- 69: what a former player said ---- */

static const char former[] = "what a former player said, and was sent, is gone";

/* Messages of all kinds and sizes: queued, in flight, acknowledged, received, waiting for their order, half there, being read. */
static void former_talks( struct link_t * link )
{
    static uint8_t words[6000];
    struct netcode_message_t message;
    for ( size_t i = 0; i < sizeof( words ); i++ )
        words[i] = (uint8_t) former[i % ( sizeof( former ) - 1 )];
    for ( int i = 0; i < 400; i++ ) {
        memset( &message, 0, sizeof( message ) );
        message.kind = i % NETCODE_MESSAGE_KINDS;
        message.channel = i % 2;
        message.data = words;
        message.bytes = message.kind < 2 || i % 5 ? 60 + i % 900 : 6000 - i;
        message.receipt = i % 3 ? 0 : (uint64_t) i;
        netcode_messages_send_message( link->ends[i / 2 & 1], &message );
        if ( i < 300 || i % 10 == 0 )
            link_tick( link );
        if ( i % 7 == 0 )
            netcode_messages_receive( link->ends[i & 1], &message );
    }
}

static int former_is_there( const struct allocator_t * memory )
{
    return allocator_search( memory, former, 16 );
}

TEST( threat_69_nothing_of_a_former_player_is_left )
{
    for ( int read_events = 0; read_events < 2; read_events++ ) {
        static struct allocator_t memory;
        struct netcode_messages_config_t config = *small_config();
        struct netcode_messages_event_t event;
        struct link_t link;
        int events = 0;
        memset( &memory, 0, sizeof( memory ) );
        memory.keep = 1;
        config.allocator_context = &memory;
        config.allocate_function = allocator_allocate;
        config.free_function = allocator_free;
        config.max_message_bytes = 8192;
        link_open( &link, &config, test_random(), 0.05, 0.2 );
        former_talks( &link );
        CHECK_GT( former_is_there( &memory ), 500 );
        CHECK( link.ends[0]->in.used && link.ends[1]->in.used && link.ends[0]->in.fixed && link.ends[1]->in.fixed );
        for ( int end = 0; end < 2; end++ ) {
            while ( read_events && netcode_messages_event( link.ends[end], &event ) )
                events++;
            CHECK( link.ends[end]->in.used || link.ends[end]->out.used );
            netcode_messages_reset( link.ends[end], 50.0 );
            messages_check( link.ends[end] );
        }
        CHECK_EQ( former_is_there( &memory ), 0 );
        for ( int end = 0; end < 2; end++ )
            while ( netcode_messages_event( link.ends[end], &event ) )
                events++;
        CHECK_GT( events, 50 );
        link.ways[0].count = link.ways[1].count = 0;
        former_talks( &link );
        CHECK_GT( former_is_there( &memory ), 500 );
        link_close( &link );
        CHECK_EQ( former_is_there( &memory ), 0 );
        allocator_release( &memory );
    }
}
