/*  Story: kinds of messages. A model of the five delivery kinds and of streams, over bad links and wrapping counters; the table of what can not
    work in the sources that the room was made from, a test for each row; flow control, giving up, time to live, priorities, resets;
    clients and a server that talk in messages. Run: runner messages_kinds.c
    MESSAGES_SEEDS=100 MESSAGES_COUNT=10000 runner messages_kinds_model: so many links, so many messages each way. */

/* ---- a model of what was promised ---- */

enum { MODEL_CHANNELS = 6, MODEL_LARGE = 65536, MODEL_NONE = -1, MODEL_NAMELESS = -2 };

struct model_item_t {
    int bytes, next; /* the next ordered one of its channel */
    int written;     /* of a stream */
    uint8_t kind, channel, is_reported, seen, on_wire, outcome, spurious;
};

/* One direction. */
struct model_way_t {
    struct model_item_t * items;
    int count, sent_bytes;
    int expected[MODEL_CHANNELS], last[MODEL_CHANNELS]; /* ordered: the next to come, the last that was sent */
    int newest[MODEL_CHANNELS][2],
        final[MODEL_CHANNELS]; /* sequenced: the newest that came; the last reliable one sent */
    int short_sent, short_seen, outcomes, reported;
};

struct model_t {
    struct link_t link;
    struct model_way_t ways[2];
    int limit;
    uint8_t data[MODEL_LARGE];
};

static void model_fill( uint8_t * data, int index, int bytes )
{
    uint8_t * at = data;
    for ( int i = 4; i < bytes; i++ )
        data[i] = (uint8_t) ( index * 31 + i * 7 + i / 256 );
    if ( bytes >= 4 )
        put( &at, (uint64_t) index, 4 );
    else
        memset( data, index & 0xff, (size_t) bytes );
}

/* Every eleventh stream is refused when it begins. */
static int model_is_refused( const struct model_item_t * item, int index )
{
    return item->kind == NETCODE_MESSAGE_STREAM && index % 11 == 5;
}

static uint8_t model_stream_byte( const struct model_item_t * item, uint32_t offset )
{
    return (uint8_t) ( offset * 7 + offset / 256 + (uint32_t) item->bytes );
}

static void model_stream_read( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    const struct model_item_t * item = (const struct model_item_t *) context;
    CHECK( item->outcome == 0 && bytes > 0 );
    CHECK_LE( offset + (uint32_t) bytes, (uint32_t) item->bytes );
    for ( uint32_t i = 0; i < (uint32_t) bytes; i++ )
        data[i] = model_stream_byte( item, offset + i );
}

static int model_stream_write( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    struct model_item_t * item = (struct model_item_t *) context;
    CHECK( item->seen == 0 );
    REQUIRE( offset + (uint32_t) bytes <= (uint32_t) item->bytes );
    for ( uint32_t i = 0; i < (uint32_t) bytes; i++ )
        if ( data[i] != model_stream_byte( item, offset + i ) )
            CHECK_EQ( data[i], model_stream_byte( item, offset + i ) );
    item->written += bytes;
    return 1;
}

static void model_stream_end( void * context, int complete )
{
    struct model_item_t * item = (struct model_item_t *) context;
    CHECK( complete && item->seen++ == 0 );
    CHECK_EQ( item->written, item->bytes );
}

static int model_stream_accept( void * context, struct netcode_messages_stream_t * stream )
{
    struct model_way_t * way = (struct model_way_t *) context;
    REQUIRE( stream->tag < (uint32_t) way->count );
    struct model_item_t * item = &way->items[stream->tag];
    CHECK( item->kind == NETCODE_MESSAGE_STREAM && stream->bytes == (uint32_t) item->bytes );
    CHECK( stream->channel == item->channel && item->on_wire++ == 0 );
    stream->context = item;
    stream->write_function = model_stream_write;
    stream->end_function = model_stream_end;
    return !model_is_refused( item, (int) stream->tag );
}

static int model_send_stream( struct model_t * o, int from, struct model_item_t * item )
{
    struct netcode_messages_stream_t stream;
    memset( &stream, 0, sizeof( stream ) );
    stream.channel = item->channel;
    stream.bytes = (uint32_t) item->bytes;
    stream.tag = (uint32_t) o->ways[from].count;
    stream.receipt = (uint64_t) o->ways[from].count + 1;
    stream.context = item;
    stream.read_function = model_stream_read;
    return netcode_messages_send_stream( o->link.ends[from], &stream );
}

/* What is unreliable is in one packet, and never in another; and a packet has one fragment at most. */
static void model_tap( struct link_t * link, int from, const uint8_t * packet, int bytes )
{
    struct model_way_t * way = &( (struct model_t *) link->owner )->ways[from];
    nc_source_t source = { packet + 9 + ( packet[0] & 0x20 ? 2 : 0 ), packet + bytes, 0 };
    nc_frame_t frame;
    nc_acks_t acks;
    int fragments = 0;
    CHECK_LE( bytes, NETCODE_MAX_PACKET_SIZE );
    memset( &acks, 0, sizeof( acks ) );
    acks.valid = packet[0] & 0x10;
    while ( source.at != source.end && !source.failed ) {
        nc_frame_read( &source, &frame, &acks );
        fragments += frame.type == -2;
        if ( frame.type != -1 || frame.kind > NETCODE_MESSAGE_UNRELIABLE_SEQUENCED || frame.bytes < 4 )
            continue;
        int index = (int) get( frame.data, 4 );
        REQUIRE( index >= 0 && index < way->count );
        CHECK_EQ( way->items[index].on_wire++, 0 );
    }
    CHECK( !source.failed && fragments <= 1 );
}

static void model_open( struct model_t * o, const struct netcode_messages_config_t * config, uint64_t seed, int limit )
{
    memset( o->ways, 0, sizeof( o->ways ) );
    link_open( &o->link, config, seed, 0.02 + 0.001 * (double) ( seed % 40 ), 0.2 );
    o->link.owner = o;
    o->link.checked = 1;
    o->link.tap = model_tap;
    o->limit = limit;
    for ( int i = 0; i < 2; i++ ) {
        struct model_way_t * way = &o->ways[i];
        o->link.ways[i].jitter = 0.03;
        o->link.ways[i].doubles = 0.05;
        way->items = (struct model_item_t *) calloc( (size_t) limit, sizeof( *way->items ) );
        o->link.ends[!i]->config.accept_stream_function = model_stream_accept;
        o->link.ends[!i]->config.accept_stream_context = way;
        for ( int k = 0; k < MODEL_CHANNELS; k++ )
            way->expected[k] = way->last[k] = way->newest[k][0] = way->newest[k][1] = way->final[k] = MODEL_NONE;
    }
}

static void model_close( struct model_t * o )
{
    for ( int i = 0; i < 2; i++ )
        free( o->ways[i].items );
    link_close( &o->link );
}

static void model_note( struct model_way_t * way, int index )
{
    struct model_item_t * item = &way->items[index];
    int kind = item->kind;
    item->next = MODEL_NONE;
    way->outcomes += item->is_reported;
    if ( kind == NETCODE_MESSAGE_RELIABLE_ORDERED ) {
        if ( way->last[item->channel] != MODEL_NONE )
            way->items[way->last[item->channel]].next = index;
        if ( way->expected[item->channel] == MODEL_NONE )
            way->expected[item->channel] = index;
        way->last[item->channel] = index;
    } else if ( kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED )
        way->final[item->channel] = item->bytes >= 4 ? index : MODEL_NAMELESS;
    else if ( kind == NETCODE_MESSAGE_RELIABLE && item->bytes < 4 )
        way->short_sent++;
}

static int model_size( int kind )
{
    int how = test_random_below( 1000 ), reliable = nc_kind_is_reliable( kind );
    if ( how < 50 )
        return test_random_below( 4 );
    if ( how < 850 || ( !reliable && how >= 970 ) )
        return 4 + test_random_below( 200 );
    return how < 970   ? 4 + test_random_below( NETCODE_MESSAGES_WHOLE_BYTES - 3 )
           : how < 999 ? NETCODE_MESSAGES_WHOLE_BYTES - 2 + test_random_below( 5000 - NETCODE_MESSAGES_WHOLE_BYTES + 3 )
                       : MODEL_LARGE;
}

static void model_send( struct model_t * o, int from )
{
    struct model_way_t * way = &o->ways[from];
    struct model_item_t item;
    struct netcode_message_t message;
    if ( way->count == o->limit )
        return;
    memset( &item, 0, sizeof( item ) );
    memset( &message, 0, sizeof( message ) );
    message.kind = item.kind = (uint8_t) test_random_below( NETCODE_MESSAGE_KINDS + 1 );
    message.channel = item.channel = (uint8_t) test_random_below( MODEL_CHANNELS );
    message.bytes = item.bytes = model_size( item.kind );
    message.data = o->data;
    item.is_reported = (uint8_t) ( item.kind == NETCODE_MESSAGE_STREAM || test_random_below( 2 ) );
    message.receipt = item.is_reported ? (uint64_t) way->count + 1 : 0;
    model_fill( o->data, way->count, item.bytes );
    way->items[way->count] = item;
    int answer = item.kind == NETCODE_MESSAGE_STREAM ? model_send_stream( o, from, &way->items[way->count] )
                                                     : netcode_messages_send_message( o->link.ends[from], &message );
    CHECK( answer == NETCODE_OK || answer == NETCODE_MESSAGES_FULL );
    if ( answer != NETCODE_OK )
        return;
    way->sent_bytes += item.bytes;
    model_note( way, way->count++ );
}

/* Which one this is, or MODEL_NONE where it is too short to say. */
static int model_identify( struct model_way_t * way, const struct netcode_message_t * message )
{
    int index = MODEL_NONE;
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED ) {
        index = way->expected[message->channel];
        REQUIRE( index != MODEL_NONE );
        way->expected[message->channel] = way->items[index].next;
    } else if ( message->bytes >= 4 ) {
        index = (int) get( message->data, 4 );
        REQUIRE( index >= 0 && index < way->count );
    } else
        way->short_seen += message->kind == NETCODE_MESSAGE_RELIABLE;
    return index;
}

static void model_receive( struct model_t * o, int to )
{
    struct model_way_t * way = &o->ways[!to];
    struct netcode_message_t message;
    while ( netcode_messages_receive( o->link.ends[to], &message ) ) {
        int index = model_identify( way, &message );
        if ( index == MODEL_NONE )
            continue;
        struct model_item_t * item = &way->items[index];
        REQUIRE_EQ( message.kind, item->kind );
        REQUIRE_EQ( message.channel, item->channel );
        REQUIRE_EQ( message.bytes, item->bytes );
        model_fill( o->data, index, item->bytes );
        CHECK_MEM( message.data, o->data, message.bytes );
        CHECK_EQ( item->seen++, 0 ); /* never twice, whatever its kind */
        if ( message.kind == NETCODE_MESSAGE_UNRELIABLE_SEQUENCED ||
             message.kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED ) {
            int * newest = &way->newest[message.channel][message.kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED];
            CHECK_GT( index, *newest ); /* never an older one behind a newer */
            *newest = index;
        }
    }
}

static void model_events( struct model_t * o, int end )
{
    struct model_way_t * way = &o->ways[end];
    struct netcode_messages_event_t event;
    while ( netcode_messages_event( o->link.ends[end], &event ) ) {
        REQUIRE( event.receipt >= 1 && event.receipt <= (uint64_t) way->count );
        struct model_item_t * item = &way->items[event.receipt - 1];
        CHECK( event.kind == item->kind && event.channel == item->channel && event.bytes == item->bytes );
        if ( event.type == NETCODE_MESSAGES_EVENT_PROGRESS ) {
            CHECK( item->outcome == 0 && event.bytes_done > 0 && event.bytes_done < event.bytes );
            continue;
        }
        if ( event.type == NETCODE_MESSAGES_EVENT_SPURIOUS ) {
            CHECK_EQ( item->outcome, NETCODE_MESSAGES_EVENT_LOST );
            CHECK_EQ( item->spurious++, 0 );
            continue;
        }
        CHECK_EQ( item->outcome, 0 ); /* one end for each */
        item->outcome = (uint8_t) event.type;
        way->reported++;
        if ( event.type == NETCODE_MESSAGES_EVENT_LOST )
            CHECK( !nc_kind_is_reliable( item->kind ) || model_is_refused( item, (int) event.receipt - 1 ) );
        else
            CHECK_EQ( event.type, NETCODE_MESSAGES_EVENT_ACKED );
    }
}

static int model_is_done( struct model_t * o )
{
    struct netcode_messages_stats_t stats;
    for ( int i = 0; i < 2; i++ ) {
        netcode_messages_stats( o->link.ends[i], &stats );
        if ( o->ways[i].count < o->limit || stats.send_buffer_used > 0.0 || o->link.ways[i].count )
            return 0;
    }
    return 1;
}

static void model_judge_item( const struct model_way_t * way, const struct model_item_t * item, int unstored )
{
    int kind = item->kind;
    if ( kind == NETCODE_MESSAGE_RELIABLE_ORDERED || ( kind == NETCODE_MESSAGE_RELIABLE && item->bytes >= 4 ) )
        CHECK_EQ( item->seen, 1 );
    if ( kind <= NETCODE_MESSAGE_UNRELIABLE_SEQUENCED && item->bytes >= 4 )
        CHECK_LE( item->seen, item->on_wire );
    if ( !item->is_reported )
        return;
    CHECK_NE( item->outcome, 0 );
    if ( model_is_refused( item, (int) ( item - way->items ) ) ) {
        CHECK( item->outcome == NETCODE_MESSAGES_EVENT_LOST && item->on_wire == 1 && item->seen == 0 );
        return;
    }
    CHECK( item->outcome == NETCODE_MESSAGES_EVENT_ACKED || !nc_kind_is_reliable( kind ) );
    if ( kind == NETCODE_MESSAGE_STREAM )
        CHECK_EQ( item->seen, 1 );
    int may_skip =
        kind == NETCODE_MESSAGE_UNRELIABLE_SEQUENCED || kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED || unstored;
    if ( ( item->outcome == NETCODE_MESSAGES_EVENT_ACKED || item->spurious ) && item->bytes >= 4 && !may_skip )
        CHECK_EQ( item->seen, 1 ); /* an ack is the truth */
}

static void model_judge( struct model_t * o )
{
    struct netcode_messages_stats_t stats;
    for ( int i = 0; i < 2; i++ ) {
        const struct model_way_t * way = &o->ways[i];
        netcode_messages_stats( o->link.ends[!i], &stats );
        CHECK_EQ( (int) stats.receive_buffer_used, 0 );
        CHECK_EQ( stats.reliable_timeouts_total, 0 );
        CHECK_EQ( way->reported, way->outcomes );
        CHECK_EQ( way->short_seen, way->short_sent );
        for ( int k = 0; k < MODEL_CHANNELS; k++ ) {
            CHECK_EQ( way->expected[k], MODEL_NONE );
            if ( way->final[k] != MODEL_NAMELESS )
                CHECK_EQ( way->newest[k][1], way->final[k] ); /* the newest comes, whatever is skipped */
        }
        for ( int k = 0; k < way->count; k++ )
            model_judge_item( way, &way->items[k], stats.messages_unstored > 0 );
    }
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        if ( i != NETCODE_MESSAGES_DROP_NONE && i != NETCODE_MESSAGES_DROP_DUPLICATE &&
             i != NETCODE_MESSAGES_DROP_OLD && i != NETCODE_MESSAGES_DROP_NO_ROOM )
            CHECK_EQ( o->link.refused[i], 0 ); /* an honest peer is never accused */
}

/* Until everything is reported and nothing is left. */
static void model_run( struct model_t * o )
{
    double end = 600.0 + o->limit;
    while ( !model_is_done( o ) && o->link.now < end ) {
        for ( int from = 0; from < 2; from++ )
            for ( int i = test_random_below( 3 ) ? 0 : test_random_below( 8 ); i > 0; i-- )
                model_send( o, from );
        link_tick( &o->link );
        for ( int end_index = 0; end_index < 2; end_index++ ) {
            if ( test_random_below( 10 ) )
                model_receive( o, end_index );
            if ( test_random_below( 4 ) )
                model_events( o, end_index );
        }
    }
    CHECK_LT( o->link.now, end );
    for ( int i = 0; i < 2; i++ ) {
        model_receive( o, i );
        model_events( o, i );
    }
    model_judge( o );
}

/* Both ends as if so many packets, messages and bytes had gone before. */
static void model_age( struct model_t * o, int64_t packets, int64_t ids, int orders, uint32_t credit )
{
    for ( int i = 0; i < 2; i++ ) {
        struct netcode_messages_t *a = o->link.ends[i], *b = o->link.ends[!i];
        a->next_number = (uint64_t) packets;
        messages_skip_nothing( a );
        a->newest_acked = a->next_number - 1;
        b->newest_received = packets - 1;
        nc_bit_set( b->numbers, (uint64_t) packets - 1, NC_MESSAGES_REMEMBERED, 1 );
        a->next_id = a->oldest_id = (uint32_t) ids;
        b->newest_id = ids - 1;
        a->credit_spent = b->credit_received = b->credit_released = credit;
        a->credit_limit = b->credit_granted = credit + NC_MESSAGES_FIRST_CREDIT;
        for ( int k = 0; k < MODEL_CHANNELS; k++ )
            a->channels[k].next_order = b->channels[k].expected_order = (uint16_t) orders;
    }
}

static int model_number( const char * name, int otherwise )
{
    const char * text = getenv( name );
    return text ? atoi( text ) : otherwise;
}

TEST( messages_kinds_model )
{
    static struct model_t o;
    int seeds = model_number( "MESSAGES_SEEDS", 20 ), count = model_number( "MESSAGES_COUNT", 600 );
    int64_t total = 0;
    for ( int seed = 0; seed < seeds && !test_state.failures; seed++ ) {
        struct netcode_messages_config_t config;
        memset( &config, 0, sizeof( config ) );
        config.window_packets = seed % 3 == 2 ? 256 : 0;
        model_open( &o, &config, test_random(), count );
        if ( seed & 1 )
            model_age( &o, 65536 * ( 1 + seed % 3 ) - 20, 65536 * 2 - 30, 65536 - 5, UINT32_MAX - 20000 );
        model_run( &o );
        total += o.ways[0].count + o.ways[1].count;
        model_close( &o );
        if ( test_state.failures )
            printf( "    model: link %d of %d\n", seed, seeds );
    }
    if ( getenv( "MESSAGES_SEEDS" ) )
        printf( "    model: %d links, %lld messages\n", seeds, (long long) total );
}

/* ---- where the sources can not work: a test for each row ---- */

/* Hears these packets, which ask for nothing but an ack, and returns what it acknowledges. */
static void row_acks( const int * numbers, int count, uint32_t * ack, uint32_t * bits, nc_acks_t * acks )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    for ( int i = 0; i < count; i++ ) {
        craft_begin( &craft, numbers[i], -1, 0 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    }
    netcode_messages_update( m, 0.02 );
    int bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) );
    REQUIRE( bytes >= 11 && packet[0] & 0x10 );
    nc_source_t source = { packet, packet + bytes, 0 };
    nc_plan_t plan;
    memset( &plan, 0, sizeof( plan ) );
    struct netcode_messages_t * other = netcode_messages_create( small_config(), 0.0 );
    other->next_number = 1000;
    messages_skip_nothing( other );
    CHECK_EQ( nc_messages_check_packet( other, &source, &plan ), NETCODE_MESSAGES_DROP_NONE );
    *ack = (uint32_t) get( packet + 3, 2 );
    *bits = (uint32_t) get( packet + 5, 4 );
    *acks = plan.acks;
    netcode_messages_destroy( m );
    netcode_messages_destroy( other );
}

TEST( messages_row_1_a_lost_packet_is_not_acknowledged )
{
    static const int numbers[] = { 10, 12 };
    uint32_t ack, bits;
    nc_acks_t acks;
    row_acks( numbers, 2, &ack, &bits, &acks );
    CHECK_EQ( ack, 12 );
    CHECK_EQ( bits, 2 );
    CHECK( nc_acks_hold( &acks, 12 ) && !nc_acks_hold( &acks, 11 ) && nc_acks_hold( &acks, 10 ) );
}

TEST( messages_row_2_a_gap_sets_no_bits )
{
    for ( int gap = 1; gap < 250; gap++ ) {
        int numbers[2] = { 10, 0 };
        uint32_t ack, bits;
        nc_acks_t acks;
        numbers[1] = 10 + gap;
        row_acks( numbers, 2, &ack, &bits, &acks );
        CHECK_EQ( bits, gap <= 32 ? 1u << ( gap - 1 ) : 0 );
        for ( uint32_t number = 0; number <= ack; number++ ) /* the ranges report what the bits do not reach */
            CHECK_EQ( nc_acks_hold( &acks, number ), number == ack || number == 10 );
    }
}

TEST( messages_row_3_the_bits_of_99_97_96 )
{
    static const int numbers[] = { 96, 97, 99, 100 };
    uint32_t ack, bits;
    nc_acks_t acks;
    row_acks( numbers, 4, &ack, &bits, &acks );
    CHECK_EQ( ack, 100 );
    CHECK_EQ( bits, 0xd );
}

/* Three packets are lost again and again: each try has a number of its own, the message keeps its id. */
TEST( messages_row_4_a_retry_has_a_new_number )
{
    struct netcode_messages_config_t config = *small_config();
    config.ping_seconds = -1.0;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct netcode_messages_t * other = netcode_messages_create( &config, 0.0 );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE], seen[65536];
    int bytes, tries = 0;
    memset( seen, 0, sizeof( seen ) );
    messages_drain( m, 0.0 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "the only one", 12 );
    for ( int i = 1; i < 400; i++ ) {
        netcode_messages_update( m, 0.05 * i );
        while ( ( bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) ) > 0 ) {
            CHECK_EQ( seen[get( packet + 1, 2 )]++, 0 );
            for ( int at = 9; at + 12 <= bytes; at++ )
                if ( memcmp( packet + at, "the only one", 12 ) == 0 ) {
                    tries++;
                    CHECK_EQ( get( packet + at - ( at + 12 == bytes ? 2 : 3 ), 2 ), 0 );
                }
        }
    }
    CHECK_GT( tries, 8 );
    struct netcode_messages_t * ends[2] = { m, other };
    for ( int i = 400; i < 500; i++ )
        messages_talk( ends, 0.05 * i, 0 );
    CHECK_EQ( messages_read( other ), 1 );
    CHECK_EQ( m->out.used, 0 );
    netcode_messages_destroy( m );
    netcode_messages_destroy( other );
}

TEST( messages_row_5_the_first_header_acknowledges_nothing )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    netcode_messages_update( m, 0.0 );
    CHECK_GT( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ), 0 );
    CHECK_EQ( packet[0], 0x43 );
    CHECK_EQ( get( packet + 3, 6 ), 0 );
    netcode_messages_destroy( m );
}

/* The second of two messages arrives first. */
TEST( messages_row_6_reliable_is_unordered )
{
    static const int read_at_once[5] = { 1, 1, 1, 0, 1 }, read_in_all[5] = { 2, 1, 2, 2, 1 };
    for ( int kind = 0; kind < 5; kind++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t first, second;
        craft_begin( &first, 0, -1, 0 );
        craft_message( &first, kind, 2, 0, 0, "a", 1 );
        craft_begin( &second, 1, -1, 0 );
        craft_message( &second, kind, 2, 1, 1, "b", 1 );
        craft_give( &second, m );
        int read = messages_read( m );
        CHECK_EQ( read, read_at_once[kind] );
        craft_give( &first, m );
        CHECK_EQ( read + messages_read( m ), read_in_all[kind] );
        netcode_messages_destroy( m );
    }
}

/* The gate of the source: 12, 10, 11. */
TEST( messages_reordered_all_arrive )
{
    static const int numbers[] = { 12, 10, 11, 12, 10 };
    for ( int kind = 0; kind < 5; kind++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct netcode_messages_stats_t stats;
        struct craft_t craft;
        for ( int i = 0; i < 5; i++ ) {
            int number = numbers[i];
            craft_begin( &craft, number, -1, 0 );
            craft_message( &craft, kind, 0, number - 10, number - 10, &number, sizeof( number ) );
            CHECK_EQ( craft_give( &craft, m ), i < 3 ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_DUPLICATE );
        }
        CHECK_EQ( messages_read( m ), kind == 1 || kind == 4 ? 1 : 3 );
        netcode_messages_stats( m, &stats );
        CHECK_EQ( stats.packets_received, 3 );
        CHECK_EQ( stats.dropped_duplicates_total, 2 );
        CHECK_EQ( stats.dropped_old_total + stats.dropped_window_total, 0 );
        messages_check( m );
        netcode_messages_destroy( m );
    }
}

/* What is older than what is remembered is counted as that, and what is too far ahead too. */
TEST( messages_old_and_far_packets_are_counted )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct netcode_messages_stats_t stats;
    static const int numbers[] = { 3000, 953, 952, 953, 27576, 27577, 27577 - 2047, 27577 - 2048 };
    static const int reasons[] = { NETCODE_MESSAGES_DROP_NONE, NETCODE_MESSAGES_DROP_NONE,
                                   NETCODE_MESSAGES_DROP_OLD,  NETCODE_MESSAGES_DROP_DUPLICATE,
                                   NETCODE_MESSAGES_DROP_NONE, NETCODE_MESSAGES_DROP_NONE,
                                   NETCODE_MESSAGES_DROP_NONE, NETCODE_MESSAGES_DROP_OLD };
    struct craft_t craft;
    for ( int i = 0; i < 8; i++ ) {
        craft_begin( &craft, numbers[i], -1, 0 );
        CHECK_EQ( craft_give( &craft, m ), reasons[i] );
    }
    craft_begin( &craft, 27577 + 24577, -1, 0 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_WINDOW );
    netcode_messages_stats( m, &stats );
    CHECK_EQ( stats.dropped_old_total, 2 );
    CHECK_EQ( stats.dropped_duplicates_total, 1 );
    CHECK_EQ( stats.dropped_window_total, 1 );
    netcode_messages_destroy( m );
}

/* ---- counters that run on and on ---- */

/*  One side talks in unreliable messages, the other only acknowledges, and says nothing else, a hundred thousand
    times; then it has something to say. */
TEST( messages_quiet_periods )
{
    struct netcode_messages_t * ends[2] = { netcode_messages_create( small_config(), 0.0 ),
                                            netcode_messages_create( small_config(), 0.0 ) };
    double now = 0.0;
    int read = 0, said = 0;
    ends[1]->ping_seconds = 1e300;
    for ( int i = 0; i < 200000; i++ ) {
        said += netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, "x", 1 ) == NETCODE_OK;
        messages_talk( ends, now += 1.0 / 60.0, 0 );
        read += messages_read( ends[1] );
        CHECK_LE( nc_messages_gap( ends[1] ), 1030 ); /* now and then it asks, so that its numbers can not run away */
    }
    CHECK_EQ( read, said );
    CHECK_GT( ends[1]->next_number, 100000 );
    for ( int i = 0; i < 300; i++ ) {
        CHECK_EQ( netcode_messages_send( ends[1], 1, NETCODE_MESSAGE_RELIABLE_ORDERED, "y", 1 ), NETCODE_OK );
        messages_talk( ends, now += 1.0 / 60.0, 0 );
        CHECK_EQ( messages_read( ends[0] ), 1 );
    }
    for ( int i = 0; i < 2; i++ ) {
        messages_check( ends[i] );
        netcode_messages_destroy( ends[i] );
    }
}

/*  The other side acknowledges nothing. A side that only acknowledges asks in the end, so that its numbers do not
    run away. */
TEST( messages_who_only_acknowledges_asks_now_and_then )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    m->ping_seconds = 1e300;
    messages_drain( m, 0.01 );
    for ( int i = 0; i < 1100; i++ ) {
        uint64_t gap = nc_messages_gap( m );
        craft_begin( &craft, i, 0, 0 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( messages_drain( m, 0.02 * ( i + 1 ) ), 1 );
        CHECK_EQ( m->packets_in_flight > 0, gap >= 1024 );
    }
    netcode_messages_destroy( m );
}

/* Every counter that is 16 or 32 bits long runs over, in the middle of traffic. */
TEST( messages_counters_wrap )
{
    static struct model_t o;
    static const int64_t packets[] = { 65536 - 3, 131072 - 1, ( (int64_t) 1 << 32 ) - 10, ( (int64_t) 1 << 33 ) - 2 };
    for ( int i = 0; i < 4; i++ ) {
        model_open( &o, NULL, test_random(), 80 );
        model_age( &o, packets[i], packets[i] - 2, 65534, UINT32_MAX - 100 * (uint32_t) i );
        model_run( &o );
        CHECK_GT( (int64_t) o.link.ends[0]->next_number, packets[i] + 10 );
        model_close( &o );
    }
}

/* ---- what is lost, and how far ahead a sender goes ---- */

/* Packets of one message each, 0 to `last`, at one time. */
static void lost_send( struct netcode_messages_t * m, int last, double time )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    for ( int i = 0; i <= last; i++ ) {
        netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "abcd", 4 );
        netcode_messages_update( m, time );
        CHECK_GT( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ), 0 );
        CHECK_EQ( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ), 0 );
    }
}

/* A later packet was acknowledged that was sent longer after it than packets overtake others: 10 ms at first. */
TEST( messages_later_packets_mean_lost )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct craft_t craft;
    static const struct {
        int64_t ack;
        uint32_t bits;
        uint64_t lost, spurious;
        double reorder;
    } rows[] = {
        { 0, 0x0, 0, 0, 0.01 },    /* a round trip of 68 ms */
        { 2, 0x2, 0, 0, 0.01 },    /* 6 ms behind number 1 */
        { 3, 0x5, 1, 0, 0.01 },    /* 12 ms */
        { 3, 0x7, 1, 1, 0.027 },   /* it comes after all: from now on it takes a quarter of a round trip more */
        { 8, 0xf9, 1, 1, 0.027 },  /* 5 and 6 are missing, 8 is 18 ms later */
        { 9, 0x1f3, 1, 1, 0.027 }, /* 24 ms */
        { 10, 0x3e7, 2, 1, 0.027 }, { 11, 0x7cf, 3, 1, 0.027 },
    };
    for ( int i = 0; i <= 11; i++ ) {
        netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "abcd", 4 );
        netcode_messages_update( m, 0.006 * i );
        CHECK_GT( netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ), 0 );
    }
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        netcode_messages_set_time( m, 0.068 + 0.0001 * i );
        craft_begin( &craft, i, rows[i].ack, rows[i].bits );
        craft.data[0] = 0x13;                      /* asks for nothing */
        m->stats.rtt = m->stats.rtt_latest = 10.0; /* time alone says nothing yet */
        m->stats.rtt_min = 0.068;
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->stats.packets_lost, rows[i].lost );
        CHECK_EQ( m->stats.packets_lost_spuriously, rows[i].spurious );
        CHECK_NEAR( m->reorder_seconds, rows[i].reorder, 1e-9 );
        messages_check( m );
    }
    netcode_messages_destroy( m );
}

/* 10 ms after its ack was due, if a later one was acknowledged: lost, and not before. */
TEST( messages_time_means_lost )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    lost_send( m, 1, 0.0 );
    netcode_messages_update( m, 0.1 );
    craft_begin( &craft, 0, 1, 0 ); /* the second of two */
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    netcode_messages_update( m, 0.109 );
    CHECK_EQ( m->stats.packets_lost, 0 );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 0.11, 0.001 );
    netcode_messages_update( m, 0.111 );
    CHECK_EQ( m->stats.packets_lost, 1 );
    netcode_messages_destroy( m );
}

/* Acknowledges every packet but those with a part of the first message, and allows whatever is asked. */
static void far_run( struct netcode_messages_t * m, int rounds, int kind, int bytes, int first )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct craft_t craft;
    int count, number = 0;
    for ( int i = 0; i < rounds; i++ ) {
        while ( m->queued_bytes < 4000 && netcode_messages_send( m, 0, kind, flow_data, bytes ) == NETCODE_OK )
            ;
        netcode_messages_update( m, 0.01 * i );
        while ( ( count = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) ) ) > 0 ) {
            nc_source_t source = { packet + 9 + ( packet[0] & 0x20 ? 2 : 0 ), packet + count, 0 };
            nc_frame_t frame;
            nc_acks_t acks;
            int held = 0;
            memset( &acks, 0, sizeof( acks ) );
            acks.valid = 1;
            while ( source.at != source.end && !source.failed ) {
                nc_frame_read( &source, &frame, &acks );
                held |= frame.type == first && frame.id == 0;
                if ( frame.type == first )
                    CHECK( first == -2 || frame.id < 4096 );
            }
            craft_begin( &craft, number++, (int64_t) get( packet + 1, 2 ), 0 );
            craft_limit( &craft, m->credit_spent + 100000, 8192 );
            if ( !held )
                CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        }
    }
    messages_check( m );
}

/* The first message never arrives: those behind it go on until the other side could not remember it, and no further. */
TEST( messages_a_sender_does_not_run_away )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    far_run( m, 2000, NETCODE_MESSAGE_RELIABLE, 10, -1 );
    CHECK_EQ( m->next_id, 4096 );
    netcode_messages_destroy( m );
    m = netcode_messages_create( NULL, 0.0 );
    m->config.congestion =
        NETCODE_MESSAGES_CONGESTION_NONE; /* all that this link loses is one message: no window fits that */
    far_run( m, 3000, NETCODE_MESSAGE_RELIABLE, 1200, -2 );
    CHECK_EQ( m->next_id, 4096 );
    netcode_messages_destroy( m );
}

/* ---- flow control ---- */

struct flow_t {
    struct netcode_messages_t * ends[2];
    double now;
};

static void flow_open( struct flow_t * f, const struct netcode_messages_config_t * config )
{
    f->now = 0.0;
    for ( int i = 0; i < 2; i++ )
        f->ends[i] = netcode_messages_create( config, 0.0 );
    REQUIRE( f->ends[0] && f->ends[1] );
}

static void flow_close( struct flow_t * f )
{
    for ( int i = 0; i < 2; i++ ) {
        messages_check( f->ends[i] );
        netcode_messages_destroy( f->ends[i] );
    }
}

static void flow_run( struct flow_t * f, double seconds, int deaf )
{
    for ( double end = f->now + seconds; f->now < end; ) {
        messages_talk( f->ends, f->now += 1.0 / 60.0, deaf );
        messages_check( f->ends[0] );
        messages_check( f->ends[1] );
    }
}

static int flow_event( struct flow_t * f, uint64_t receipt, int type )
{
    struct netcode_messages_event_t event;
    int count = 0;
    while ( netcode_messages_event( f->ends[0], &event ) )
        count += event.type == type && event.receipt == receipt;
    return count;
}

static int flow_send( struct flow_t * f, int kind, int bytes, double ttl, uint64_t receipt )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.kind = kind;
    message.data = flow_data;
    message.bytes = bytes;
    message.ttl_seconds = ttl;
    message.receipt = receipt;
    return netcode_messages_send_message( f->ends[0], &message );
}

static struct netcode_messages_stats_t flow_stats( struct flow_t * f, int end )
{
    struct netcode_messages_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_messages_stats( f->ends[end], &stats );
    return stats;
}

/*  The receiver does not read for half a minute: the sender gets FULL, neither gives up, and once it reads all is
    there. */
TEST( messages_a_reader_that_never_reads )
{
    struct flow_t f;
    int sent = 0, full = 0, read = 0;
    flow_open( &f, small_config() );
    for ( int i = 0; i < 600; i++ ) {
        int answer = flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, i % 20 ? 300 : 6000, 0.0, 0 );
        sent += answer == NETCODE_OK;
        full += answer == NETCODE_MESSAGES_FULL;
        flow_run( &f, 0.05, 0 );
    }
    CHECK( full > 100 && sent > 20 );
    CHECK_LE( (int) flow_stats( &f, 1 ).receive_buffer_used, 32768 );
    CHECK_GT( (int) flow_stats( &f, 0 ).send_buffer_used, 20000 );
    CHECK_EQ( flow_stats( &f, 0 ).reliable_timeouts_total, 0 );
    for ( int i = 0; i < 600; i++ ) {
        read += messages_read( f.ends[1] );
        flow_run( &f, 0.02, 0 );
    }
    CHECK_EQ( read, sent );
    CHECK_EQ( (int) ( flow_stats( &f, 0 ).send_buffer_used + flow_stats( &f, 1 ).receive_buffer_used ), 0 );
    flow_close( &f );
}

/*  Unreliable messages that are not read are counted, and reliable ones still find the room that was promised to
    them. */
TEST( messages_unreliable_ones_take_no_promised_room )
{
    struct flow_t f;
    flow_open( &f, small_config() );
    flow_run( &f, 0.1, 0 );
    for ( int i = 0; i < 200; i++ ) {
        flow_send( &f, NETCODE_MESSAGE_UNRELIABLE, 400, 0.0, 0 );
        flow_run( &f, 0.02, 0 );
    }
    CHECK_GT( flow_stats( &f, 1 ).messages_unstored, 50 );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 8000, 0.0, 7 ), NETCODE_OK );
    flow_run( &f, 1.0, 0 );
    CHECK_EQ( flow_event( &f, 7, NETCODE_MESSAGES_EVENT_ACKED ), 1 );
    CHECK_EQ( flow_stats( &f, 1 ).drops[NETCODE_MESSAGES_DROP_NO_ROOM], 0 );
    flow_close( &f );
}

/* The sender waits for a LIMIT, and the packets that hold it are lost for a while. */
TEST( messages_a_limit_that_is_lost )
{
    struct flow_t f;
    int sent = 0, read = 0;
    flow_open( &f, small_config() );
    while ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 1000, 0.0, 0 ) == NETCODE_OK )
        sent++;
    flow_run( &f, 3.0, 0 );
    CHECK_LT( flow_stats( &f, 0 ).credit, 1064 );
    read += messages_read( f.ends[1] );
    flow_run( &f, 1.0, 1 ); /* the sender is deaf */
    CHECK_LT( read, sent );
    for ( int i = 0; i < 100; i++ ) {
        flow_run( &f, 0.1, 0 );
        read += messages_read( f.ends[1] );
    }
    CHECK_EQ( read, sent );
    flow_close( &f );
}

/*  However little the buffer holds beside it, and whatever came before: the largest message is never kept waiting for
    ever. */
TEST( messages_the_largest_message_in_the_smallest_buffer )
{
    static const int largest[] = { 1180, 8192, 30000, 65536, 262144 };
    for ( int i = 0; i < 5; i++ )
        for ( int before = 0; before < 20; before++ ) {
            struct flow_t f;
            struct netcode_messages_config_t config;
            memset( &config, 0, sizeof( config ) );
            config.max_message_bytes = largest[i];
            config.receive_buffer_bytes = config.send_buffer_bytes = 1;
            config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
            flow_open( &f, &config );
            int read = 0;
            for ( int k = 0; k < before; k++ )
                CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, largest[i] / 50, 0.0, 0 ), NETCODE_OK );
            for ( int k = 0; k < 40 && read < before; k++ ) {
                messages_talk( f.ends, f.now += 1.0 / 60.0, 0 );
                read += messages_read( f.ends[1] );
            }
            CHECK_EQ( read, before );
            CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, largest[i], 0.0, 0 ), NETCODE_OK );
            for ( int k = 0; k < 200 && read == before; k++ ) {
                messages_talk( f.ends, f.now += 1.0 / 60.0, 0 );
                read += messages_read( f.ends[1] );
            }
            CHECK_EQ( read, before + 1 );
            flow_close( &f );
        }
}

/* Too large for the other side: refused once it has said so, given back as LOST where it was queued before. */
TEST( messages_too_large_for_the_peer )
{
    struct flow_t f;
    struct netcode_messages_config_t smaller = *small_config();
    smaller.max_message_bytes = 4000;
    flow_open( &f, small_config() );
    netcode_messages_destroy( f.ends[1] );
    f.ends[1] = netcode_messages_create( &smaller, 0.0 );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 4001, 0.0, 1 ), NETCODE_OK );
    messages_drain( f.ends[1], 0.001 ); /* its first LIMIT is lost: nothing is known yet */
    flow_run( &f, 3.0, 0 );
    CHECK_EQ( flow_event( &f, 1, NETCODE_MESSAGES_EVENT_LOST ), 1 );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 4001, 0.0, 0 ), NETCODE_MESSAGES_TOO_LARGE );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 4000, 0.0, 0 ), NETCODE_OK );
    flow_run( &f, 1.0, 0 );
    CHECK_EQ( messages_read( f.ends[1] ), 1 );
    flow_close( &f );
}

/* ---- giving up ---- */

/* Packets with messages are lost; pings get through, and their acks report what was lost before them. */
struct deaf_t {
    struct flow_t f;
    int acked, lost, spurious, broken, progress, cancels;
    int through; /* packets that get through to the other side first */
};

static void deaf_events( struct deaf_t * d )
{
    struct netcode_messages_event_t event;
    while ( netcode_messages_event( d->f.ends[0], &event ) ) {
        d->acked += event.type == NETCODE_MESSAGES_EVENT_ACKED;
        d->lost += event.type == NETCODE_MESSAGES_EVENT_LOST;
        d->spurious += event.type == NETCODE_MESSAGES_EVENT_SPURIOUS;
        d->broken += event.type == NETCODE_MESSAGES_EVENT_BROKEN;
        d->progress += event.type == NETCODE_MESSAGES_EVENT_PROGRESS;
    }
}

/* The kinds of frames in a packet, a bit for each: 0 messages and fragments, 1 CANCEL. */
static int deaf_frames( const uint8_t * packet, int bytes )
{
    nc_source_t source = { packet + 9 + ( packet[0] & 0x20 ? 2 : 0 ), packet + bytes, 0 };
    nc_frame_t frame;
    nc_acks_t acks;
    int found = 0;
    memset( &acks, 0, sizeof( acks ) );
    acks.valid = packet[0] & 0x10;
    while ( source.at != source.end && !source.failed ) {
        nc_frame_read( &source, &frame, &acks );
        found |= frame.type < 0 ? 1 : frame.type == 0x27 || frame.type == 0x2f ? 2 : 0;
    }
    return found;
}

static void deaf_run( struct deaf_t * d, int ticks )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    for ( int i = 0; i < ticks; i++ ) {
        d->f.now += 0.02;
        netcode_messages_update( d->f.ends[0], d->f.now );
        while ( ( bytes = netcode_messages_generate_packet( d->f.ends[0], packet, (int) sizeof( packet ) ) ) > 0 ) {
            int frames = deaf_frames( packet, bytes );
            d->cancels += frames >> 1;
            if ( !( frames & 1 ) || d->through-- > 0 )
                CHECK_EQ( netcode_messages_process_packet( d->f.ends[1], packet, bytes ), NETCODE_MESSAGES_DROP_NONE );
        }
        netcode_messages_update( d->f.ends[1], d->f.now );
        while ( ( bytes = netcode_messages_generate_packet( d->f.ends[1], packet, (int) sizeof( packet ) ) ) > 0 )
            netcode_messages_process_packet( d->f.ends[0], packet, bytes );
        messages_check( d->f.ends[0] );
        messages_check( d->f.ends[1] );
        deaf_events( d );
    }
}

static void deaf_open( struct deaf_t * d, int max_retries )
{
    struct netcode_messages_config_t config = *small_config();
    memset( d, 0, sizeof( *d ) );
    config.max_retries = max_retries;
    config.ping_seconds = 0.1;
    flow_open( &d->f, &config );
    flow_run( &d->f, 0.5, 0 );
}

TEST( messages_max_retries )
{
    for ( int kind = NETCODE_MESSAGE_RELIABLE; kind < NETCODE_MESSAGE_KINDS; kind++ )
        for ( int bytes = 10; bytes <= 5000; bytes += 4990 ) {
            struct deaf_t d;
            int ordered = kind == NETCODE_MESSAGE_RELIABLE_ORDERED;
            deaf_open( &d, 2 );
            d.through = bytes > 10;
            CHECK_EQ( flow_send( &d.f, kind, bytes, 0.0, 9 ), NETCODE_OK );
            deaf_run( &d, 1 );
            CHECK_EQ( d.f.ends[1]->in.used > 0, bytes > 10 ); /* one fragment has come */
            d.through = 0;
            deaf_run( &d, 500 );
            CHECK_EQ( d.broken, ordered );
            CHECK_EQ( d.lost, !ordered );
            CHECK_EQ( d.acked + d.spurious, 0 );
            CHECK_EQ( d.cancels > 0, !ordered );
            CHECK_EQ( flow_stats( &d.f, 0 ).reliable_timeouts_total, 1 );
            CHECK_EQ( flow_send( &d.f, kind, 10, 0.0, 0 ), ordered ? NETCODE_MESSAGES_BROKEN : NETCODE_OK );
            if ( !ordered ) { /* nothing of it is left on either side */
                d.through = 1000;
                deaf_run( &d, 50 );
                CHECK_EQ( messages_read( d.f.ends[1] ), 1 );
                CHECK_EQ( (int) ( flow_stats( &d.f, 0 ).send_buffer_used + flow_stats( &d.f, 1 ).receive_buffer_used ),
                          0 );
            }
            flow_close( &d.f );
        }
}

/* By default nothing is given up, however long it takes. */
TEST( messages_never_give_up )
{
    struct deaf_t d;
    deaf_open( &d, 0 );
    CHECK_EQ( flow_send( &d.f, NETCODE_MESSAGE_RELIABLE_ORDERED, 10, 0.0, 9 ), NETCODE_OK );
    CHECK_EQ( flow_send( &d.f, NETCODE_MESSAGE_RELIABLE, 5000, 0.0, 10 ), NETCODE_OK );
    deaf_run( &d, 5000 );
    CHECK_EQ( d.acked + d.lost + d.broken, 0 );
    d.through = 1 << 20;
    deaf_run( &d, 500 );
    CHECK_EQ( d.acked, 2 );
    CHECK_EQ( messages_read( d.f.ends[1] ), 2 );
    flow_close( &d.f );
}

/*  A message that was reported LOST and still waits for the ack of its CANCEL is not reported again when the connection
    ends. */
TEST( messages_lost_is_reported_once )
{
    for ( int bytes = 10; bytes <= 5000; bytes += 4990 ) {
        struct flow_t f;
        flow_open( &f, small_config() );
        flow_run( &f, 0.5, 0 );
        flow_send( &f, NETCODE_MESSAGE_RELIABLE, bytes, 0.05, 3 );
        flow_run( &f, 0.3, 2 );
        CHECK_EQ( flow_event( &f, 3, NETCODE_MESSAGES_EVENT_LOST ), 1 );
        netcode_messages_reset( f.ends[0], f.now );
        CHECK_EQ( flow_event( &f, 3, NETCODE_MESSAGES_EVENT_LOST ), 0 );
        CHECK_EQ( f.ends[0]->out.used, 0 );
        flow_close( &f );
    }
}

/* The ack of a CANCEL is not the ack of its message. */
TEST( messages_a_cancel_is_no_delivery )
{
    struct flow_t f;
    struct netcode_messages_event_t event;
    int lost = 0, other = 0;
    flow_open( &f, small_config() );
    flow_run( &f, 0.5, 0 );
    flow_send( &f, NETCODE_MESSAGE_RELIABLE, 10, 0.05, 3 );
    flow_run( &f, 0.3, 2 );
    flow_run( &f, 5.0, 0 );
    while ( netcode_messages_event( f.ends[0], &event ) ) {
        lost += event.type == NETCODE_MESSAGES_EVENT_LOST;
        other += event.type != NETCODE_MESSAGES_EVENT_LOST;
    }
    CHECK( lost == 1 && other == 0 );
    CHECK_EQ( messages_read( f.ends[1] ), 0 );
    CHECK_EQ( f.ends[0]->out.used, 0 );
    CHECK_EQ( f.ends[1]->credit_received, f.ends[1]->credit_released );
    flow_close( &f );
}

/* ---- time to live ---- */

TEST( messages_time_to_live )
{
    struct flow_t f;
    flow_open( &f, small_config() );
    flow_run( &f, 0.5, 0 );
    messages_hold( f.ends[0] ); /* the rate lets nothing go for now */
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_UNRELIABLE, 10, 0.0, 1 ),
              NETCODE_OK ); /* half a second, unless it is said */
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_UNRELIABLE, 10, 2.0, 2 ), NETCODE_OK );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 10, 1.0, 3 ), NETCODE_OK );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 10, 0.0, 4 ), NETCODE_OK );
    TOLERATE(
        CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, 10, 1.0, 5 ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    static const double until[] = { 0.45, 0.2, 0.5, 1.2 };
    static const uint64_t dropped[] = { 0, 1, 2, 3 };
    for ( int i = 0; i < 4; i++ ) {
        flow_run( &f, until[i], 0 );
        messages_hold( f.ends[0] );
        CHECK_EQ( flow_stats( &f, 0 ).messages_expired, dropped[i] );
        CHECK_EQ( flow_event( &f,
                              dropped[i] == 1   ? 1
                              : dropped[i] == 2 ? 3
                                                : 2,
                              NETCODE_MESSAGES_EVENT_LOST ),
                  dropped[i] != 0 );
    }
    messages_let_go( f.ends[0] );
    flow_run( &f, 1.0, 0 );
    CHECK_EQ( messages_read( f.ends[1] ), 1 );
    CHECK_EQ( flow_event( &f, 4, NETCODE_MESSAGES_EVENT_ACKED ), 1 );
    flow_close( &f );
}

/* Begun, and outlived: the other side's half of it is given back. */
TEST( messages_time_to_live_of_what_was_begun )
{
    struct deaf_t d;
    deaf_open( &d, 0 );
    d.through = 1;
    CHECK_EQ( flow_send( &d.f, NETCODE_MESSAGE_RELIABLE_SEQUENCED, 6000, 1.0, 8 ), NETCODE_OK );
    deaf_run( &d, 45 );
    CHECK( d.lost == 0 && d.progress > 0 && d.f.ends[1]->in.used > 6000 );
    deaf_run( &d, 60 );
    CHECK_EQ( d.lost, 1 );
    CHECK_EQ( d.acked, 0 );
    CHECK_EQ( d.f.ends[1]->in.used + d.f.ends[0]->out.used, 0 );
    flow_close( &d.f );
}

TEST( messages_upgrade_large )
{
    static const int kinds[] = { NETCODE_MESSAGE_UNRELIABLE, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED,
                                 NETCODE_MESSAGE_UNRELIABLE };
    static const int become[] = { NETCODE_MESSAGE_RELIABLE, NETCODE_MESSAGE_RELIABLE_SEQUENCED,
                                  NETCODE_MESSAGE_RELIABLE };
    for ( int i = 0; i < 6; i++ ) {
        struct flow_t f;
        struct netcode_message_t message;
        struct netcode_messages_config_t config = *small_config();
        config.upgrade_large = i / 3;
        flow_open( &f, &config );
        CHECK_EQ( flow_send( &f, kinds[i % 3], 1180, 0.0, 0 ), NETCODE_OK );
        CHECK_EQ( flow_send( &f, kinds[i % 3], 1181, 0.0, 0 ), i / 3 ? NETCODE_OK : NETCODE_MESSAGES_TOO_LARGE );
        CHECK_EQ( flow_send( &f, kinds[i % 3], 8193, 0.0, 0 ), NETCODE_MESSAGES_TOO_LARGE );
        flow_run( &f, 1.0, 0 );
        CHECK( netcode_messages_receive( f.ends[1], &message ) && message.bytes == 1180 &&
               message.kind == kinds[i % 3] );
        CHECK_EQ( netcode_messages_receive( f.ends[1], &message ), i / 3 );
        CHECK( !( i / 3 ) || ( message.bytes == 1181 && message.kind == become[i % 3] ) );
        messages_read( f.ends[1] );
        if ( i / 3 ) { /* it does not become too old, as an unreliable one does */
            CHECK_EQ( flow_send( &f, kinds[i % 3], 1181, 0.0, 0 ), NETCODE_OK );
            flow_run( &f, 3.0, 2 );
            flow_run( &f, 2.0, 0 );
            CHECK( netcode_messages_receive( f.ends[1], &message ) && message.bytes == 1181 );
        }
        flow_close( &f );
    }
}

/* Two large sequenced messages, one behind the other: the first is never read behind the second. */
TEST( messages_large_sequenced_ones_keep_their_age )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    struct netcode_message_t message;
    struct craft_t craft;
    messages_drain( m, 0.01 );
    static const int order[][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } }; /* message, fragment */
    for ( int i = 0; i < 4; i++ ) {
        craft_begin( &craft, i, -1, 0 );
        craft_fragment( &craft, 4, 0, order[i][0], 0, flow_data, 1300 + order[i][0], order[i][1] );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    }
    CHECK( netcode_messages_receive( m, &message ) && message.bytes == 1301 );
    CHECK_EQ( messages_read( m ), 0 );
    CHECK_EQ( m->stats.messages_outdated, 1 );
    messages_check( m );
    netcode_messages_destroy( m );
}

/* ---- priorities and weights ---- */

/* Three channels that always have something to send, at a fixed rate: what each of them gets. */
static void shares_measure( const uint8_t * priorities, const uint8_t * weights, int kind, int bytes, double * shares )
{
    struct netcode_messages_config_t config;
    struct netcode_message_t message;
    struct flow_t f;
    double total = 0.0;
    memset( &config, 0, sizeof( config ) );
    config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    config.bytes_per_second = 60000;
    memcpy( config.priorities, priorities, 3 );
    memcpy( config.weights, weights, 3 );
    flow_open( &f, &config );
    shares[0] = shares[1] = shares[2] = 0.0;
    for ( int i = 0; i < 600; i++ ) {
        for ( int channel = 0; channel < 3; channel++ )
            for ( int k = 0; k < 12; k++ ) {
                struct netcode_messages_channel_stats_t waits;
                memset( &waits, 0, sizeof( waits ) );
                netcode_messages_channel_stats( f.ends[0], channel, &waits );
                if ( waits.queued_messages < 20 )
                    netcode_messages_send( f.ends[0], channel, kind, flow_data, bytes + channel );
            }
        messages_talk( f.ends, f.now += 1.0 / 60.0, 0 );
        while ( netcode_messages_receive( f.ends[1], &message ) )
            shares[message.channel] += message.bytes + 16;
    }
    for ( int i = 0; i < 3; i++ )
        total += shares[i];
    for ( int i = 0; i < 3; i++ )
        shares[i] /= total;
    flow_close( &f );
}

TEST( messages_weights_are_shares )
{
    static const uint8_t equal[3] = { 1, 1, 1 }, weights[3] = { 1, 2, 5 };
    double shares[3];
    for ( int kind = 0; kind < 5; kind += 3 ) {
        shares_measure( equal, weights, kind, 300, shares );
        CHECK_NEAR( shares[0], 1.0 / 8.0, 0.02 );
        CHECK_NEAR( shares[1], 2.0 / 8.0, 0.02 );
        CHECK_NEAR( shares[2], 5.0 / 8.0, 0.02 );
    }
}

TEST( messages_a_better_priority_goes_first )
{
    static const uint8_t priorities[3] = { 1, 0, 2 }, weights[3] = { 200, 1, 255 };
    double shares[3];
    shares_measure( priorities, weights, NETCODE_MESSAGE_RELIABLE, 300, shares );
    CHECK_GT( (int) ( shares[1] * 100.0 ), 97 );
    CHECK_LT( (int) ( shares[2] * 1000.0 ), 1 );
}

/* A channel that was silent has no claim to what the others were served meanwhile. */
TEST( messages_silence_saves_no_shares )
{
    struct flow_t f;
    struct netcode_message_t message;
    struct netcode_messages_config_t config;
    int counts[2] = { 0, 0 };
    memset( &config, 0, sizeof( config ) );
    config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    config.bytes_per_second = 60000;
    config.weights[0] = config.weights[1] = 255;
    flow_open( &f, &config );
    for ( int i = 0; i < 600; i++ ) {
        for ( int channel = 0; channel < ( i < 300 ? 1 : 2 ); channel++ )
            for ( int k = 0; k < 6; k++ )
                netcode_messages_send( f.ends[0], channel, NETCODE_MESSAGE_UNRELIABLE, flow_data, 300 );
        messages_talk( f.ends, f.now += 1.0 / 60.0, 0 );
        while ( netcode_messages_receive( f.ends[1], &message ) )
            counts[message.channel] += i >= 330 && i < 400;
    }
    CHECK_NEAR( (double) counts[0] / ( counts[0] + counts[1] ), 0.5, 0.1 );
    flow_close( &f );
}

/* ---- resets ---- */

/* Of the last connection nothing is left but what is to be reported: the object is as a new one. */
TEST( messages_reset )
{
    static struct link_t link;
    struct netcode_messages_t * fresh = netcode_messages_create( small_config(), 50.0 );
    struct netcode_messages_event_t event;
    uint64_t reported = 0;
    link_open( &link, small_config(), test_random(), 0.05, 0.1 );
    link.checked = 1;
    struct netcode_messages_t * m = link.ends[0];
    for ( uint64_t i = 0; i < 300; i++ ) {
        struct netcode_message_t message;
        memset( &message, 0, sizeof( message ) );
        message.kind = (int) i % NETCODE_MESSAGE_KINDS;
        message.data = flow_data;
        message.bytes = i % 13 == 6 ? 3000 : 100;
        message.receipt = i + 1;
        reported += netcode_messages_send_message( m, &message ) == NETCODE_OK;
        netcode_messages_send( link.ends[1], 2, (int) i % 5, flow_data, 50 );
        link_tick( &link );
        while ( netcode_messages_event( m, &event ) )
            reported -= event.type != NETCODE_MESSAGES_EVENT_PROGRESS && event.type != NETCODE_MESSAGES_EVENT_SPURIOUS;
    }
    CHECK_GT( reported, 0 );
    CHECK( m->stats.rtt > 0.0 && m->in.used > 0 );
    netcode_messages_reset( m, 50.0 );
    messages_check( m );
    for ( ; netcode_messages_event( m, &event ); reported-- )
        CHECK_EQ( event.type, NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( reported, 0 );
    CHECK_EQ( m->out.used + m->in.used, 0 );
    CHECK_EQ( messages_read( m ), 0 );
    netcode_messages_reset( m, 50.0 ); /* now that all is reported, even the buffers are as new */
    m->out.base = fresh->out.base;
    m->in.base = fresh->in.base;
    messages_skip_nothing( m ); /* which it skips is drawn anew */
    messages_skip_nothing( fresh );
    m->epoch = fresh->epoch;
    m->event_tail = fresh->event_tail; /* of no use without a head */
    size_t from = offsetof( struct netcode_messages_t, out );
    CHECK_MEM( (const uint8_t *) m + from, (const uint8_t *) fresh + from, sizeof( *m ) - from );
    CHECK_MEM( m->channels, fresh->channels, (size_t) m->channel_count * sizeof( *m->channels ) );
    netcode_messages_destroy( fresh );
    link_close( &link );
}

/* ---- joined to clients and a server ---- */

enum { GLUE_CLIENTS = 2, GLUE_SLOTS = 2 };

struct glue_t {
    struct world_t * w;
    struct netcode_messages_t * clients[GLUE_CLIENTS];
    struct netcode_messages_t * slots[GLUE_SLOTS];
    int slot_count;
};

static void glue_open( struct glue_t * g, int net, int slots )
{
    g->w = world_open( net, 1, slots, GLUE_CLIENTS );
    g->slot_count = slots;
    for ( int i = 0; i < GLUE_CLIENTS; i++ )
        g->clients[i] = netcode_messages_create( small_config(), g->w->time );
    for ( int i = 0; i < GLUE_SLOTS; i++ )
        g->slots[i] = netcode_messages_create( small_config(), g->w->time );
}

static void glue_close( struct glue_t * g )
{
    for ( int i = 0; i < GLUE_CLIENTS; i++ )
        netcode_messages_destroy( g->clients[i] );
    for ( int i = 0; i < GLUE_SLOTS; i++ )
        netcode_messages_destroy( g->slots[i] );
}

static void glue_receive( struct glue_t * g )
{
    world_step( g->w );
    for ( int i = 0; i < GLUE_CLIENTS; i++ )
        netcode_messages_pull_from_client( g->clients[i], g->w->clients[i], g->w->time );
    for ( int i = 0; i < g->slot_count; i++ )
        netcode_messages_pull_from_server( g->slots[i], g->w->servers[0], i, g->w->time );
}

static void glue_send( struct glue_t * g )
{
    for ( int i = 0; i < GLUE_CLIENTS; i++ ) {
        netcode_messages_push_to_client( g->clients[i], g->w->clients[i], g->w->time );
        messages_check( g->clients[i] );
    }
    for ( int i = 0; i < g->slot_count; i++ ) {
        netcode_messages_push_to_server( g->slots[i], g->w->servers[0], i, g->w->time );
        messages_check( g->slots[i] );
    }
}

static void glue_run( struct glue_t * g, double seconds )
{
    for ( double end = g->w->time + seconds; g->w->time < end; ) {
        glue_receive( g );
        glue_send( g );
    }
}

static int glue_connect( struct glue_t * g, int client, uint64_t id )
{
    world_connect( g->w, client, id );
    for ( int i = 0; i < 2000 && world_slot( g->w, 0, id ) < 0; i++ )
        glue_run( g, g->w->step );
    glue_run( g, 1.0 );
    return world_slot( g->w, 0, id );
}

/* Numbers upwards, each from one to another. */
static int glue_say( struct netcode_messages_t * from, int tag, uint32_t number )
{
    uint8_t data[600], *at = data;
    memset( data, tag, sizeof( data ) );
    put( &at, number, 4 );
    return netcode_messages_send( from, tag % 4, NETCODE_MESSAGE_RELIABLE_ORDERED, data, (int) ( 5 + number % 590 ) ) ==
           NETCODE_OK;
}

static void glue_hear( struct netcode_messages_t * to, int tag, uint32_t * expected )
{
    struct netcode_message_t message;
    while ( netcode_messages_receive( to, &message ) ) {
        REQUIRE( message.bytes >= 5 );
        CHECK_EQ( message.data[4], tag ); /* it is from the expected client */
        CHECK_EQ( get( message.data, 4 ), *expected );
        CHECK_EQ( message.channel, tag % 4 );
        ( *expected )++;
    }
}

TEST( messages_between_clients_and_a_server )
{
    for ( int net = CLEAN; net <= LOSSY; net++ ) {
        struct glue_t g;
        uint32_t said[4] = { 0, 0, 0, 0 }, heard[4] = { 0, 0, 0, 0 };
        int slots[2];
        glue_open( &g, net, 2 );
        for ( int i = 0; i < 2; i++ ) {
            slots[i] = glue_connect( &g, i, 100 + (uint64_t) i );
            REQUIRE( slots[i] >= 0 );
        }
        double begin = g.w->time; /* six seconds of talk, and as long as the rate needs to bring it all */
        while ( g.w->time < begin + 6.0 ||
                ( g.w->time < begin + 90.0 && memcmp( said, heard, sizeof( said ) ) != 0 ) ) {
            glue_receive( &g );
            for ( int i = 0; i < 2; i++ ) {
                glue_hear( g.clients[i], 1 + i, &heard[i] );
                glue_hear( g.slots[slots[i]], 3 + i, &heard[2 + i] );
                if ( g.w->time < begin + 6.0 && test_random_below( 2 ) ) {
                    said[i] += (uint32_t) glue_say( g.slots[slots[i]], 1 + i, said[i] );
                    said[2 + i] += (uint32_t) glue_say( g.clients[i], 3 + i, said[2 + i] );
                }
            }
            glue_send( &g );
        }
        for ( int i = 0; i < 4; i++ ) {
            CHECK_EQ( heard[i], said[i] );
            CHECK_GT( said[i], 100 );
        }
        glue_close( &g );
    }
}

/*  The network swallows what the server says to the first client. The client that comes behind it into the slot hears
    nothing of it. */
TEST( messages_of_the_last_one_in_the_slot )
{
    struct glue_t g;
    struct netcode_messages_event_t event;
    uint32_t said = 0, heard = 0;
    int lost = 0;
    glue_open( &g, CLEAN, 1 );
    REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
    CHECK( glue_say( g.clients[0], 9, 0 ) ); /* arrives, and is never read */
    glue_run( &g, 0.5 );
    g.w->cut_types = 1u << 5; /* payloads */
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    message.data = flow_data;
    for ( int i = 0; i < 30; i++ ) {
        message.bytes = 10 + i * 50;
        message.receipt = 1 + (uint64_t) i;
        CHECK_EQ( netcode_messages_send_message( g.slots[0], &message ), NETCODE_OK );
        glue_run( &g, 0.05 );
    }
    CHECK_GT( (int) g.slots[0]->out.used, 5000 );
    netcode_client_disconnect( g.w->clients[0] );
    g.w->cut_types = 0;
    REQUIRE_EQ( glue_connect( &g, 1, 200 ), 0 );
    while ( netcode_messages_event( g.slots[0], &event ) )
        lost += event.type == NETCODE_MESSAGES_EVENT_LOST;
    CHECK_EQ( lost, 30 );
    CHECK_EQ( messages_read( g.clients[1] ) + messages_read( g.slots[0] ), 0 );
    for ( int i = 0; i < 200; i++ ) {
        glue_receive( &g );
        glue_hear( g.clients[1], 5, &heard );
        said += (uint32_t) glue_say( g.slots[0], 5, said );
        glue_send( &g );
    }
    glue_run( &g, 1.0 );
    glue_hear( g.clients[1], 5, &heard );
    CHECK_EQ( said, heard );
    CHECK_EQ( said, 200 );
    glue_close( &g );
}

/* What was sent to a client that was gone before its first packets were read is not for the next one in its slot. */
TEST( messages_of_one_that_was_gone_at_once )
{
    struct glue_t g;
    struct netcode_message_t message;
    glue_open( &g, CLEAN, 1 );
    glue_run( &g, 0.5 );
    world_connect( g.w, 0, 100 );
    for ( int i = 0; i < 200 && world_slot( g.w, 0, 100 ) < 0; i++ )
        world_step( g.w );
    CHECK( glue_say( g.slots[0], 1, 0 ) );
    netcode_server_disconnect_client( g.w->servers[0], 0 );
    world_connect( g.w, 1, 200 );
    for ( int i = 0; i < 2000 && world_slot( g.w, 0, 200 ) < 0; i++ )
        world_step( g.w );
    glue_run( &g, 1.0 );
    CHECK( glue_say( g.slots[0], 2, 0 ) );
    glue_run( &g, 1.0 );
    REQUIRE( netcode_messages_receive( g.clients[1], &message ) );
    CHECK_EQ( message.data[4], 2 );
    CHECK_EQ( netcode_messages_receive( g.clients[1], &message ), 0 );
    glue_close( &g );
}

/* The same player comes again: both sides begin anew, with the first number and nothing measured. */
TEST( messages_begin_anew_with_each_connection )
{
    struct glue_t g;
    glue_open( &g, CLEAN, 1 );
    for ( int round = 0; round < 4; round++ ) {
        uint32_t said = 0, heard[2] = { 0, 0 };
        REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
        CHECK_LT( (int64_t) g.clients[0]->next_number, 200 );
        CHECK_LT( (int64_t) g.slots[0]->next_number, 200 );
        for ( int i = 0; i < 150; i++ ) {
            glue_receive( &g );
            glue_hear( g.clients[0], 6, &heard[0] );
            glue_hear( g.slots[0], 7, &heard[1] );
            if ( i < 100 )
                said += (uint32_t) ( glue_say( g.slots[0], 6, said ) & glue_say( g.clients[0], 7, said ) );
            glue_send( &g );
        }
        CHECK( said == 100 && heard[0] == said && heard[1] == said );
        netcode_client_disconnect( g.w->clients[0] );
        glue_run( &g, 1.0 );
        CHECK_EQ( g.clients[0]->newest_received, -1 );
        CHECK_EQ( (int64_t) g.slots[0]->next_number, 0 );
        CHECK( g.clients[0]->stats.rtt <= 0.0 && g.slots[0]->stats.rtt <= 0.0 );
    }
    glue_close( &g );
}

/* A player that loses the connection, and is back before the messages were asked: they notice. */
TEST( messages_notice_a_connection_that_nobody_saw_end )
{
    struct glue_t g;
    uint32_t heard[2] = { 0, 0 };
    glue_open( &g, CLEAN, 1 );
    REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
    for ( uint32_t i = 0; i < 100; i++ ) {
        glue_say( g.clients[0], 8, i );
        glue_run( &g, 0.02 );
    }
    netcode_client_disconnect( g.w->clients[0] );
    world_run( g.w, 0.5 );
    REQUIRE( world_join( g.w, 0, 100 ) );
    glue_run( &g, 0.5 );
    messages_read( g.slots[0] );
    messages_read( g.clients[0] );
    for ( uint32_t i = 0; i < 20; i++ ) {
        CHECK( glue_say( g.clients[0], 8, i ) && glue_say( g.slots[0], 9, i ) );
        glue_run( &g, 0.05 );
        glue_hear( g.clients[0], 9, &heard[0] );
        glue_hear( g.slots[0], 8, &heard[1] );
    }
    CHECK( heard[0] == 20 && heard[1] == 20 );
    glue_close( &g );
}
