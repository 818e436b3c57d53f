/*  Story: messages on the wire. A reader of packets that was written from the description of the wire alone, and with it: what an
    object says of itself against what was seen to pass, which acks and ranges are sent, when, and what a packet would
    cost against what it did cost. Run: runner messages_wire.c */

/* ---- the reader ---- */

enum { SEEN_FRAMES = 320, SEEN_RANGES = 2048 };

struct seen_frame_t {
    int type; /* 0 MESSAGE, 1 FRAGMENT, else the first byte of what it is */
    int kind, channel, id, order, bytes, index;
    uint32_t value;
    const uint8_t * data;
    int data_bytes;
};

struct seen_t {
    int number, asks, valid, ack, delay; /* no delay: -1 */
    uint32_t bits;
    struct seen_frame_t frames[SEEN_FRAMES];
    int count;
    uint8_t reported[SEEN_RANGES]; /* by the ranges, how far below the ack */
    const uint8_t *at, *end;
};

static uint32_t seen_number( struct seen_t * seen, int bytes )
{
    REQUIRE( seen->end - seen->at >= bytes );
    seen->at += bytes;
    return (uint32_t) get( seen->at - bytes, bytes );
}

static int seen_varint( struct seen_t * seen )
{
    int value = 0;
    for ( int shift = 0;; shift += 7 ) {
        uint32_t octet = seen_number( seen, 1 );
        REQUIRE( shift < 28 );
        value |= (int) ( octet & 0x7f ) << shift;
        if ( octet < 0x80 )
            return value;
    }
}

static void seen_ranges( struct seen_t * seen )
{
    int below = 33, count = (int) seen_number( seen, 1 );
    CHECK( count >= 1 && count <= 16 );
    while ( count-- ) {
        below += seen_varint( seen );
        int run = seen_varint( seen );
        REQUIRE( run > 0 && below + run <= SEEN_RANGES );
        while ( run-- )
            seen->reported[below++] = 1;
    }
}

static void seen_message( struct seen_t * seen, struct seen_frame_t * frame, uint32_t first )
{
    frame->type = first >> 3 & 1;
    frame->kind = (int) ( first & 7 );
    frame->channel = first & 0x10 ? (int) seen_number( seen, 1 ) : 0;
    CHECK_EQ( frame->channel != 0, first >> 4 & 1 );
    if ( frame->kind >= 2 )
        frame->id = (int) seen_number( seen, 2 );
    if ( frame->kind == 5 || frame->kind == 3 )
        frame->order = (int) seen_number( seen, frame->kind == 5 ? 4 : 2 );
    if ( frame->type ) {
        frame->bytes = (int) seen_number( seen, 4 );
        frame->index = seen_varint( seen );
        frame->data_bytes = frame->bytes - frame->index * 1168;
        frame->data_bytes = frame->data_bytes > 1168 ? 1168 : frame->data_bytes;
    } else
        frame->bytes = frame->data_bytes = first & 0x20 ? (int) ( seen->end - seen->at ) : seen_varint( seen );
    REQUIRE( frame->data_bytes >= 0 && frame->data_bytes <= seen->end - seen->at );
    frame->data = seen->at;
    seen->at += frame->data_bytes;
}

static void seen_frame( struct seen_t * seen )
{
    struct seen_frame_t * frame = &seen->frames[seen->count];
    uint32_t first = seen_number( seen, 1 );
    REQUIRE( seen->count++ < SEEN_FRAMES );
    frame->type = (int) first;
    if ( ( first & 7 ) < 6 )
        seen_message( seen, frame, first );
    else if ( first == 0x07 )
        seen_ranges( seen );
    else if ( first == 0x27 ) {
        frame->id = (int) seen_number( seen, 2 );
        frame->bytes = seen_varint( seen );
    } else if ( first == 0x2f ) {
        int count = (int) seen_number( seen, 1 );
        CHECK( count >= 1 && count <= 16 );
        while ( count-- )
            frame->id = (int) seen_number( seen, 2 );
    } else if ( first == 0x37 )
        frame->value = seen_number( seen, 1 );
    else {
        REQUIRE( first == 0x0f || first == 0x17 || first == 0x1f );
        frame->value = seen_number( seen, 4 );
        frame->bytes = first == 0x1f ? seen_varint( seen ) : 0;
        frame->channel = first == 0x1f ? (int) seen_number( seen, 1 ) : 0;
        frame->order = first == 0x1f ? (int) seen_number( seen, 2 ) : 0;
    }
}

static void seen_read( struct seen_t * seen, const uint8_t * packet, int bytes )
{
    memset( seen, 0, sizeof( *seen ) );
    seen->at = packet;
    seen->end = packet + bytes;
    uint32_t flags = seen_number( seen, 1 );
    CHECK_EQ( flags & 0x8f, 3 );
    seen->valid = ( flags & 0x10 ) != 0;
    seen->asks = ( flags & 0x40 ) != 0;
    seen->number = (int) seen_number( seen, 2 );
    seen->ack = (int) seen_number( seen, 2 );
    seen->bits = seen_number( seen, 4 );
    seen->delay = flags & 0x20 ? (int) seen_number( seen, 2 ) : -1;
    while ( seen->at != seen->end )
        seen_frame( seen );
}

/* The next packet of an object; 0 where there is none. */
static int seen_next( struct seen_t * seen, struct netcode_messages_t * m )
{
    static uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) );
    if ( bytes > 0 )
        seen_read( seen, packet, bytes );
    return bytes;
}

/* How many frames of a type; of messages: of this id, unless it is -1. */
static int seen_count( const struct seen_t * seen, int type, int id )
{
    int count = 0;
    for ( int i = 0; i < seen->count; i++ )
        count += seen->frames[i].type == type && ( id < 0 || seen->frames[i].id == id );
    return count;
}

/* ---- the accounts: what passes over a bad link is counted by hand, and is what the statistics say ---- */

enum { BOOKS_IDS = 4096 };

struct books_way_t {
    uint64_t packets, bytes, got_packets, got_bytes;
    uint64_t messages, again, fragments_again; /* sent first, sent once more */
    uint64_t most_again;                       /* in one packet */
    uint64_t got_again, read;
    int sent[BOOKS_IDS], came[BOOKS_IDS], done[BOOKS_IDS]; /* by id */
    uint64_t parts[BOOKS_IDS], parts_came[BOOKS_IDS];      /* by id, a bit for each fragment */
};

static struct {
    struct books_way_t ways[2];
    struct seen_t seen;
} books;

static void books_tap( struct link_t * link, int from, const uint8_t * packet, int bytes )
{
    struct books_way_t * way = &books.ways[from];
    uint64_t again = way->again;
    int needs = 0;
    (void) link;
    way->packets++;
    way->bytes += (uint64_t) bytes;
    seen_read( &books.seen, packet, bytes );
    for ( int i = 0; i < books.seen.count; i++ ) {
        const struct seen_frame_t * frame = &books.seen.frames[i];
        needs |= frame->type != 0x07 && frame->type != 0x17;
        if ( frame->type == 0 && frame->kind < 2 )
            way->messages++;
        else if ( frame->type == 0 ) {
            way->messages += way->sent[frame->id] == 0;
            way->again += way->sent[frame->id]++ != 0;
        } else if ( frame->type == 1 ) {
            uint64_t bit = (uint64_t) 1 << frame->index;
            way->messages += way->parts[frame->id] == 0;
            way->fragments_again += ( way->parts[frame->id] & bit ) != 0;
            way->parts[frame->id] |= bit;
        }
    }
    again = way->again - again;
    way->most_again = again > way->most_again ? again : way->most_again;
    CHECK( !books.seen.asks || needs ); /* what only acknowledges is not acknowledged */
}

static void books_hear( struct books_way_t * way, const uint8_t * packet, int bytes )
{
    way->got_packets++;
    way->got_bytes += (uint64_t) bytes;
    seen_read( &books.seen, packet, bytes );
    for ( int i = 0; i < books.seen.count; i++ ) {
        const struct seen_frame_t * frame = &books.seen.frames[i];
        if ( frame->type == 0 && frame->kind >= 2 )
            way->got_again += way->came[frame->id]++ != 0;
        if ( frame->type == 1 ) {
            uint64_t bit = (uint64_t) 1 << frame->index;
            way->got_again += ( way->parts_came[frame->id] & bit ) != 0;
            way->parts_came[frame->id] |= bit;
        }
    }
}

static void books_pump( struct link_t * link, int end )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    netcode_messages_set_time( link->ends[end], link->now );
    while ( ( bytes = link_get( link, end, packet ) ) > 0 ) {
        int reason = netcode_messages_process_packet( link->ends[end], packet, bytes );
        link->refused[reason]++;
        if ( reason == NETCODE_MESSAGES_DROP_NONE )
            books_hear( &books.ways[!end], packet, bytes );
    }
    books.ways[!end].read += (uint64_t) messages_read( link->ends[end] );
    netcode_messages_update( link->ends[end], link->now );
    while ( ( bytes = netcode_messages_generate_packet( link->ends[end], packet, (int) sizeof( packet ) ) ) > 0 )
        link_put( link, end, packet, bytes );
}

static void books_judge( struct link_t * link, int end )
{
    const struct books_way_t *out = &books.ways[end], *in = &books.ways[!end];
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( link->ends[end], &stats );
    CHECK_EQ( stats.packets_sent, out->packets );
    CHECK_EQ( stats.bytes_sent, out->bytes );
    CHECK_EQ( stats.packets_received, in->got_packets );
    CHECK_EQ( stats.bytes_received, in->got_bytes );
    CHECK_EQ( stats.messages_sent, out->messages );
    CHECK_EQ( stats.messages_received, in->read );
    CHECK_EQ( stats.messages_duplicate, in->got_again );
    uint64_t again = out->again + out->fragments_again,
             counted = stats.reliable_retries_total + stats.messages_repeated;
    CHECK_LE( counted, again );
    CHECK_LE( again, counted + stats.probes * out->most_again ); /* a probe is messages once more, or a ping */
    CHECK_LE( stats.messages_repeated, out->again );
    CHECK_LE( out->fragments_again, stats.reliable_retries_total );
    CHECK_EQ( stats.dropped_duplicates_total, stats.drops[NETCODE_MESSAGES_DROP_DUPLICATE] );
    CHECK_EQ( stats.drops[NETCODE_MESSAGES_DROP_NONE], 0 );
}

static void books_run( double loss, int large, int mode, uint64_t * retries, uint64_t * repeats )
{
    static const int kinds[] = { 0, 1, 2, 2, 3, 3, 4 };
    struct link_t link;
    struct netcode_messages_config_t config;
    struct netcode_messages_stats_t stats;
    memset( &books, 0, sizeof( books ) );
    netcode_default_messages_config( &config );
    config.repeats = mode;
    link_open( &link, &config, test_random(), 0.03, loss );
    link.tap = books_tap;
    link.ends[0]->loss_long = link.ends[1]->loss_long = 0.0; /* as if this link had been good for long */
    for ( int i = 0; i < 900; i++ ) {
        for ( int end = 0; end < 2 && i < 500; end++ )
            netcode_messages_send( link.ends[end], i % 4, kinds[i % 7], flow_data, 20 + i % 200 );
        if ( large && i < 500 && i % 50 == 0 )
            netcode_messages_send( link.ends[0], 5, NETCODE_MESSAGE_RELIABLE, flow_data, 30000 );
        link.now += link.step;
        books_pump( &link, 0 );
        books_pump( &link, 1 );
        if ( i % 100 == 99 ) {
            books_judge( &link, 0 );
            books_judge( &link, 1 );
        }
    }
    netcode_messages_stats( link.ends[0], &stats );
    *retries = stats.reliable_retries_total;
    *repeats = stats.messages_repeated;
    CHECK_EQ( (int) stats.send_buffer_used, 0 );
    CHECK( stats.bytes_in_flight == 0.0 ||
           ( loss > 0.0 && stats.bytes_in_flight <= 98.0 &&
             (int) stats.bytes_in_flight % 14 == 0 ) ); /* but a ping of 14 bytes, and its probes if it is lost */
    link_close( &link );
}

TEST( messages_statistics_are_what_passed )
{
    uint64_t retries, repeats;
    books_run( 0.0, 0, NETCODE_MESSAGES_REPEATS_ALWAYS, &retries, &repeats );
    CHECK( retries == 0 && repeats > 100 );
    books_run( 0.0, 0, NETCODE_MESSAGES_REPEATS_ADAPTIVE, &retries, &repeats );
    CHECK( retries == 0 && repeats == 0 ); /* nothing was lost */
    for ( int mode = NETCODE_MESSAGES_REPEATS_ADAPTIVE; mode <= NETCODE_MESSAGES_REPEATS_NEVER; mode++ ) {
        books_run( 0.0, 1, mode, &retries, &repeats );
        CHECK_EQ( retries, 0 );
        books_run( 0.1, 1, mode, &retries, &repeats );
        CHECK( retries > 3 && ( mode == NETCODE_MESSAGES_REPEATS_NEVER ? repeats == 0 : repeats > 100 ) );
    }
}

/* ---- acks: which, when, and how often ---- */

struct reported_t {
    struct netcode_messages_t * m;
    int64_t newest;
    uint8_t came[4096];
    int64_t since[2][600]; /* what came since the last ack left, and before that one */
    int counts[2];
};

static void reported_hear( struct reported_t * t, int64_t number )
{
    struct craft_t craft;
    craft_begin( &craft, number, -1, 0 );
    int reason = craft_give( &craft, t->m );
    int late = t->newest - number >= 2048, twice = number <= t->newest && t->came[number];
    CHECK_EQ( reason, late    ? NETCODE_MESSAGES_DROP_OLD
                      : twice ? NETCODE_MESSAGES_DROP_DUPLICATE
                              : NETCODE_MESSAGES_DROP_NONE );
    if ( reason != NETCODE_MESSAGES_DROP_NONE )
        return;
    t->came[number] = 1;
    t->since[0][t->counts[0]++] = number;
    t->newest = number > t->newest ? number : t->newest;
}

static int reported_holds( const struct seen_t * seen, int64_t below )
{
    if ( below == 0 )
        return 1;
    return below <= 32 ? (int) ( seen->bits >> ( below - 1 ) & 1 ) : below < SEEN_RANGES && seen->reported[below];
}

/* The next packet acknowledges nothing that did not arrive, and all that came since the last packet but one. */
static void reported_judge( struct reported_t * t )
{
    struct seen_t seen;
    int runs = 0;
    REQUIRE( seen_next( &seen, t->m ) > 0 );
    CHECK( seen.valid && seen.ack == (int) t->newest );
    for ( int64_t below = 0; below <= 2047 && below <= t->newest; below++ ) {
        CHECK( !reported_holds( &seen, below ) || t->came[t->newest - below] );
        CHECK( below > 32 || reported_holds( &seen, below ) == t->came[t->newest - below] );
        runs += below > 33 && seen.reported[below] && !seen.reported[below - 1];
    }
    for ( int k = 0; k < 2 && runs < 15; k++ )
        for ( int i = 0; i < t->counts[k]; i++ )
            if ( t->newest - t->since[k][i] < 2048 )
                CHECK( reported_holds( &seen, t->newest - t->since[k][i] ) );
    memcpy( t->since[1], t->since[0], sizeof( t->since[0] ) );
    t->counts[1] = t->counts[0];
    t->counts[0] = 0;
}

TEST( messages_acks_report_what_arrived )
{
    static struct reported_t t;
    for ( int round = 0; round < 30; round++ ) {
        memset( &t, 0, sizeof( t ) );
        t.m = netcode_messages_create( small_config(), 0.0 );
        t.m->ping_seconds = 1e300;
        messages_drain( t.m, 0.0 );
        t.newest = -1;
        reported_hear( &t, test_random_below( 3 ) );
        for ( int i = 1; i < 60; i++ ) {
            for ( int k = 1 + test_random_below( round % 3 ? 8 : 60 ); k > 0; k-- ) {
                int64_t number = t.newest + 1 + test_random_below( round & 1 ? 3 : 20 );
                if ( round % 5 == 0 ) /* few gaps, and wide ones: ranges reach all that is remembered */
                    number = t.newest + 1 + ( test_random_below( 80 ) ? 0 : test_random_below( 400 ) );
                if ( test_random_below( 3 ) == 0 )
                    number = t.newest - test_random_below( round % 3 ? 300 : 2300 );
                if ( number >= 0 && number < 4096 )
                    reported_hear( &t, number );
            }
            netcode_messages_update( t.m, 0.1 * i );
            if ( nc_messages_ack_is_due( t.m ) )
                reported_judge( &t );
            messages_check( t.m );
        }
        netcode_messages_destroy( t.m );
    }
}

/* The bytes of ranges: in each packet until one with them is acknowledged; nothing where nothing lies within reach. */
TEST( messages_ranges_byte_by_byte )
{
    static const struct {
        int numbers[6], bytes;
        const char * text;
    } rows[] = {
        { { 0, 32, -1 }, 11, "" },                 /* the bits reach it */
        { { 0, 33, -1 }, 15, "\x07\x01\x00\x01" }, /* they just do not */
        { { 0, 34, -1 }, 15, "\x07\x01\x01\x01" },
        { { 0, 1, 40, -1 }, 15, "\x07\x01\x06\x02" },
        { { 0, 2, 40, -1 }, 17, "\x07\x02\x05\x01\x01\x01" },
        { { 0, 255, -1 }, 16, "\x07\x01\xde\x01\x01" },
        { { 0, 2047, -1 }, 16, "\x07\x01\xde\x0f\x01" }, /* the last that is remembered */
        { { 0, 2048, -1 }, 11, "" },
        { { 0, 10000, -1 }, 11, "" },
        { { 5, 255, 300, -1 }, 18, "\x07\x02\x0c\x01\xf9\x01\x01" },
        { { 1, 2, 2049, -1 }, 16, "\x07\x01\xde\x0f\x01" }, /* 1 is out of reach, 2 just is not */
        { { 5, 2047, 2100, -1 }, 15, "\x07\x01\x14\x01" },  /* 5 is out of reach, 2047 is not */
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        uint8_t packet[NETCODE_MAX_PACKET_SIZE];
        struct craft_t craft;
        m->ping_seconds = 1e300;
        messages_drain( m, 0.0 );
        for ( int k = 0; rows[i].numbers[k] >= 0; k++ ) {
            craft_begin( &craft, rows[i].numbers[k], -1, 0 );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        for ( int time = 0; time < 4; time++ ) {
            m->acks_due = 2;
            m->ack_time = m->long_acks_time = -1.0;
            int bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) );
            CHECK_EQ( bytes, time < 3 ? rows[i].bytes : 11 );
            if ( bytes == rows[i].bytes )
                CHECK_MEM( packet + 11, rows[i].text, bytes - 11 );
            craft_begin( &craft, (int) m->newest_received + 1, (int) m->next_number - 1, 0 );
            if ( time == 2 )
                CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        netcode_messages_destroy( m );
    }
}

static struct netcode_messages_t * reports_open( void )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    m->ping_seconds = 1e300;
    messages_drain( m, 0.0 );
    messages_skip_nothing( m );
    return m;
}

static void reports_hear( struct netcode_messages_t * m, int number, int64_t ack, uint32_t bits )
{
    struct craft_t craft;
    craft_begin( &craft, number, ack, bits );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
}

static void reports_send( struct netcode_messages_t * m )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    m->acks_due = 2;
    m->ack_time = m->long_acks_time = -1.0;
    CHECK( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) > 11 ); /* it has ranges */
}

/*  A packet that arrives confirms all reports before it. Beyond 16 that are awaited, the last one stands for those after it, too; one
    below the others is not forgotten in it. */
TEST( messages_reports_are_confirmed )
{
    for ( int lower = 0; lower < 2; lower++ ) {
        struct netcode_messages_t * m = reports_open();
        int first = (int) m->next_number;
        reports_hear( m, 0, -1, 0 );
        for ( int i = 0; i < 30; i++ ) {
            if ( i < 21 )
                reports_hear( m, i == 18 && lower ? 2 : 40 + i, -1, 0 );
            reports_send( m );
        }
        CHECK_EQ( m->report_end - m->report_first, 16 );
        CHECK_EQ( nc_report_at( m, m->report_end - 1 )->low, lower ? 2 : 55 );
        reports_hear( m, 61, first + 14, 0 );
        CHECK_EQ( m->report_end - m->report_first, 1 );
        reports_hear( m, 62, first + 19, 0 );
        CHECK_EQ( m->report_end - m->report_first, 1 );
        reports_hear( m, 63, first + 20, 0 );
        CHECK_EQ( m->report_end - m->report_first, 0 );
        CHECK_EQ( m->unacked, 61 );
        netcode_messages_destroy( m );
    }
}

/* Ranges that reach too far, each by one of its numbers alone; the largest ones must not add up to a small one. */
TEST( messages_ranges_that_reach_too_far )
{
    static const char * const rows[] = { "00 8010", "00 8110",     "00 ffffff7f",       "8010 01",
                                         "8110 01", "ffffff7f 01", "ffffff7f ffffff7f", "e807 f807",
                                         "00 df0f", "de0f 01",     "e807 f707" };
    for ( int i = 0; i < 11; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        uint8_t packet[64];
        char text[128];
        m->next_number = 3000;
        messages_skip_nothing( m );
        snprintf( text, sizeof( text ), "53 0000 b70b 00000000 07 01 %s", rows[i] );
        int bytes = wire_parse( text, packet, (int) sizeof( packet ) );
        REQUIRE( bytes > 0 );
        CHECK_EQ( netcode_messages_process_packet( m, packet, bytes ),
                  i < 8 ? NETCODE_MESSAGES_DROP_FRAME : NETCODE_MESSAGES_DROP_NONE );
        netcode_messages_destroy( m );
    }
}

/* One packet that asks is answered after ten milliseconds, two at once, and so is one that does not come in its turn. */
TEST( messages_acks_in_time )
{
    static const struct {
        int numbers[3];
        uint8_t first[3]; /* 0x43 asks, 0x03 does not */
        double wait;
        int answered;
    } rows[] = {
        { { 0, -1 }, { 0x43 }, 0.009, 0 },        { { 0, -1 }, { 0x43 }, 0.01, 1 },
        { { 0, -1 }, { 0x03 }, 1.0, 0 },          { { 0, 1, -1 }, { 0x43, 0x43 }, 0.0, 1 },
        { { 0, 1, -1 }, { 0x43, 0x03 }, 0.0, 0 }, { { 1, -1 }, { 0x43 }, 0.0, 1 },          /* 0 is missing */
        { { 1, -1 }, { 0x03 }, 0.0, 0 },          { { 1, 0, -1 }, { 0x03, 0x43 }, 0.0, 1 }, /* it was missing */
    };
    for ( int i = 0; i < 8; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t craft;
        struct seen_t seen;
        m->ping_seconds = 1e300;
        messages_drain( m, 0.0 );
        for ( int k = 0; k < 3 && rows[i].numbers[k] >= 0 && rows[i].first[k]; k++ ) {
            craft_begin( &craft, rows[i].numbers[k], -1, 0 );
            craft.data[0] = rows[i].first[k];
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        netcode_messages_update( m, rows[i].wait );
        m->probe_due = 0;
        CHECK_EQ( seen_next( &seen, m ) > 0, rows[i].answered );
        if ( rows[i].answered ) {
            CHECK( !seen.asks && seen.valid && seen.count == 0 );
            CHECK_EQ( seen.delay, (int) ( rows[i].wait * 1e4 + 0.5 ) );
        }
        CHECK_EQ( seen_next( &seen, m ), 0 ); /* once is enough */
        netcode_messages_destroy( m );
    }
}

/* How long an ack was held back, in tenths of a millisecond, at most 6.5535 s; none where none was owed. */
TEST( messages_ack_delays )
{
    static const double waits[] = { 0.0, 0.00025, 0.0101, 1.0, 6.5534, 6.6, 100.0 };
    static const int delays[] = { 0, 2, 101, 10000, 65534, 65535, 65535 };
    for ( int i = 0; i < 7; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t craft;
        struct seen_t seen;
        netcode_messages_update( m, 5.0 );
        craft_begin( &craft, 0, -1, 0 );
        craft_give( &craft, m );
        netcode_messages_update( m, 5.0 + waits[i] + 1e-6 );
        CHECK( seen_next( &seen, m ) > 0 && seen.delay == delays[i] );
        netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
        netcode_messages_update( m, 6.0 + waits[i] );
        CHECK( seen_next( &seen, m ) > 0 && seen.delay == -1 && seen.valid );
        netcode_messages_destroy( m );
    }
}

/* ---- what a packet would cost is what it does cost ---- */

static void cost_packet( struct craft_t * craft, const struct netcode_messages_t * m, int64_t number )
{
    int id = (int) m->newest_id + 1, fragments = 0, order = m->channels[2].expected_order;
    craft_begin( craft, number, -1, 0 );
    for ( int i = test_random_below( 5 ); i >= 0; i-- ) {
        int total = 1181 + test_random_below( 70 ) + 1168 * test_random_below( 3 ), bytes = test_random_below( 70 );
        switch ( test_random_below( 6 ) ) {
        case 0: craft_message( craft, 0, 1, 0, 0, hostile_data, bytes ); break;
        case 1: craft_message( craft, 2, 1, id++, 0, hostile_data, bytes ); break;
        case 2: craft_message( craft, 3, 2, id++, order++, hostile_data, bytes ); break;
        case 3: craft_cancel( craft, id++, (uint32_t) bytes ); break;
        case 4:
            if ( fragments++ == 0 )
                craft_fragment( craft, 2, 0, id++, 0, hostile_data, total, ( total + 1167 ) / 1168 - 1 );
            break;
        default: craft_cancel( craft, id++, (uint32_t) total ); break;
        }
    }
}

TEST( messages_a_packet_costs_what_was_reckoned )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    struct craft_t craft;
    nc_plan_t plan;
    for ( int i = 0; i < 1500; i++ ) {
        cost_packet( &craft, m, i );
        nc_source_t source = { craft.data, craft.at, 0 };
        memset( &plan, 0, sizeof( plan ) );
        messages_drain( m, 0.02 * i );
        CHECK_EQ( nc_messages_check_packet( m, &source, &plan ), NETCODE_MESSAGES_DROP_NONE );
        uint32_t used = m->in.used, received = m->credit_received, blocks = heap_blocks( &m->in );
        REQUIRE_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_LE( m->in.used - used + 4 * ( heap_blocks( &m->in ) - blocks ), plan.cost + plan.room );
        CHECK_GE( m->in.used - used + 4 * ( heap_blocks( &m->in ) - blocks ), plan.room );
        CHECK_EQ( m->credit_received - received, plan.cost );
        messages_check( m );
        while ( m->partial ) {
            craft_begin( &craft, ++i, -1, 0 );
            craft_cancel( &craft, (int) nc_arrived_at( m, m->partial )->id, nc_arrived_at( m, m->partial )->bytes );
            REQUIRE_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
        messages_read( m );
        messages_read( m );
        CHECK_EQ( m->in.used, 0 );
    }
    netcode_messages_destroy( m );
}

/*  What a tick's calls are, in the orders that the manual shows: joined objects set the time before packets are processed, others
    call set_time themselves, or update first; a second update changes nothing. */
static void path_tick( struct link_t * link, int end, int order )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct netcode_messages_t * m = link->ends[end];
    int bytes;
    if ( order == 1 )
        netcode_messages_update( m, link->now );
    else
        netcode_messages_set_time( m, link->now );
    while ( ( bytes = link_get( link, end, packet ) ) > 0 )
        CHECK_EQ( netcode_messages_process_packet( m, packet, bytes ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, 20 );
    for ( int i = order == 1; i < 1 + ( order == 2 ); i++ )
        netcode_messages_update( m, link->now );
    netcode_messages_flush( m );
    while ( ( bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) ) > 0 )
        link_put( link, end, packet, bytes );
}

/*  Paths of 20 to 300 ms, in ticks of 1 ms and of a sixtieth of a second that the path is a multiple of: the round trip is right to
    1 ms, and the ping to a tick of each side more. */
TEST( messages_round_trips_are_right )
{
    static const double ticks[] = { 0.001, 1.0 / 60.0 }, paths[] = { 0.02, 0.1, 0.2, 0.3 };
    for ( int order = 0; order < 3; order++ )
        for ( int way = 0; way < 8; way++ ) {
            struct link_t link;
            struct netcode_messages_stats_t stats;
            double tick = ticks[way & 1], path = paths[way / 2];
            double half = way & 1 ? ( (int) ( path * 30.0 ) + ( path < 0.03 ) ) * tick : path / 2.0;
            link_open( &link, NULL, 1, half - 1e-6, 0.0 );
            for ( int i = 0; i < (int) ( 4.0 / tick ); i++ ) {
                link.now += tick;
                path_tick( &link, 0, order );
                path_tick( &link, 1, order );
            }
            for ( int i = 0; i < 2; i++ ) {
                netcode_messages_stats( link.ends[i], &stats );
                CHECK_NEAR( stats.rtt, 2.0 * half, 0.001 );
                CHECK_NEAR( stats.rtt_min, 2.0 * half, 0.001 );
                CHECK_NEAR( stats.ping, 2.0 * half, 0.001 + 2.0 * tick );
                CHECK_EQ( stats.packets_lost, 0 );
            }
            link_close( &link );
        }
}
