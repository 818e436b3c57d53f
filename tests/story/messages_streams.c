/*  Story: streams of messages. Read from one application's memory and written to the other's: over a bad link, beside each other,
    refused, cancelled, ended by the connection, as large as a length can be. Run: runner messages_streams.c */

enum { STREAM_BYTES = 3000000, STREAM_ENDS = 8 };

/* What one stream's two applications saw. */
struct stream_end_t {
    const uint8_t * source;
    uint8_t *copy, *times; /* what was written, and how often each byte was */
    uint32_t bytes, tag, written, reads;
    int channel, begun, ended, complete, refuse, stop_after, no_write;
};

struct streams_t {
    struct stream_end_t ends[STREAM_ENDS]; /* by tag */
    uint8_t source[STREAM_BYTES];
};

static struct streams_t streams;

static void stream_read( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    struct stream_end_t * end = (struct stream_end_t *) context;
    CHECK( bytes > 0 && bytes <= NETCODE_MESSAGES_FRAGMENT_BYTES );
    CHECK_LE( (uint64_t) offset + (uint64_t) bytes, end->bytes );
    memcpy( data, end->source + offset % 65536, (size_t) bytes );
    end->reads++;
}

static int stream_write( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    struct stream_end_t * end = (struct stream_end_t *) context;
    CHECK( end->begun == 1 && end->ended == 0 && bytes > 0 );
    REQUIRE( (uint64_t) offset + (uint64_t) bytes <= end->bytes );
    CHECK_MEM( data, end->source + offset % 65536, bytes );
    for ( int i = 0; end->times && i < bytes; i++ )
        CHECK_EQ( end->times[offset + (uint32_t) i]++, 0 );
    end->written += (uint32_t) bytes;
    return !end->stop_after || --end->stop_after > 0;
}

static void stream_end( void * context, int complete )
{
    struct stream_end_t * end = (struct stream_end_t *) context;
    CHECK_EQ( end->ended++, 0 );
    end->complete = complete;
}

static int stream_accept( void * context, struct netcode_messages_stream_t * stream )
{
    struct streams_t * all = (struct streams_t *) context;
    REQUIRE( stream->tag < STREAM_ENDS );
    struct stream_end_t * end = &all->ends[stream->tag];
    CHECK_EQ( end->begun++, 0 );
    CHECK( stream->bytes == end->bytes && stream->channel == end->channel );
    CHECK( !stream->read_function && !stream->write_function && !stream->end_function && !stream->context );
    stream->context = end;
    stream->write_function = end->no_write ? NULL : stream_write;
    stream->end_function = stream_end;
    return !end->refuse;
}

static struct netcode_messages_config_t stream_config( void )
{
    struct netcode_messages_config_t config = *small_config();
    memset( &streams, 0, sizeof( streams.ends ) );
    for ( uint32_t i = 0; i < STREAM_BYTES; i++ )
        streams.source[i] = (uint8_t) ( i * 2654435761u >> 24 );
    config.accept_stream_function = stream_accept;
    config.accept_stream_context = &streams;
    config.window_packets = 256;
    config.send_buffer_bytes = 65536;
    return config;
}

static struct netcode_messages_stream_t stream_of( uint32_t tag, int channel, uint32_t bytes )
{
    struct netcode_messages_stream_t stream;
    struct stream_end_t * end = &streams.ends[tag];
    memset( &stream, 0, sizeof( stream ) );
    memset( end, 0, sizeof( *end ) );
    end->source = streams.source + 1000 * tag;
    end->bytes = bytes;
    end->channel = channel;
    stream.channel = channel;
    stream.bytes = bytes;
    stream.tag = tag;
    stream.receipt = 100 + tag;
    stream.context = end;
    stream.read_function = stream_read;
    return stream;
}

/* The events of one sender: the last of each receipt but PROGRESS, and what PROGRESS said. */
struct stream_reported_t {
    int last[STREAM_ENDS], progress[STREAM_ENDS];
    uint32_t done[STREAM_ENDS];
};

static void stream_listen( struct netcode_messages_t * m, struct stream_reported_t * reported )
{
    struct netcode_messages_event_t event;
    while ( netcode_messages_event( m, &event ) ) {
        uint32_t tag = (uint32_t) event.receipt - 100;
        REQUIRE( tag < STREAM_ENDS && event.kind == NETCODE_MESSAGE_STREAM );
        CHECK( event.stream_bytes == streams.ends[tag].bytes && event.channel == streams.ends[tag].channel );
        if ( event.type == NETCODE_MESSAGES_EVENT_LOST )
            CHECK_EQ( event.stream_bytes_done, 0 );
        else
            CHECK_GE( event.stream_bytes_done, reported->done[tag] );
        reported->done[tag] = event.stream_bytes_done;
        if ( event.type == NETCODE_MESSAGES_EVENT_PROGRESS )
            reported->progress[tag]++;
        else
            reported->last[tag] = 10 * reported->last[tag] + event.type;
    }
}

/* Three at once, of every shape, over a link that loses, doubles and reorders, beside messages in one piece and in parts. */
TEST( messages_streams_over_a_bad_link )
{
    static const uint32_t bytes[STREAM_ENDS] = { 300001, 0, 1, 1168, 1169, 1180, 60000, 100000 };
    struct netcode_messages_config_t config = stream_config();
    struct stream_reported_t reported;
    struct link_t link;
    int others = 0;
    uint32_t most_out = 0, most_in = 0;
    memset( &reported, 0, sizeof( reported ) );
    link_open( &link, &config, test_random(), 0.03, 0.1 );
    link.checked = 1;
    for ( int i = 0; i < 2; i++ ) {
        link.ways[i].jitter = 0.04;
        link.ways[i].doubles = 0.05;
    }
    for ( uint32_t tag = 0; tag < STREAM_ENDS; tag++ ) {
        struct netcode_messages_stream_t stream = stream_of( tag, (int) tag % 4, bytes[tag] );
        streams.ends[tag].times = (uint8_t *) calloc( 1, bytes[tag] + 1 );
        CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    }
    for ( int i = 0; i < 6000 && link.ends[0]->out.used; i++ ) {
        struct netcode_message_t message;
        if ( i < 20 )
            netcode_messages_send( link.ends[0], i % 4, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data,
                                   i % 5 ? 50 : 3000 );
        link_tick( &link );
        stream_listen( link.ends[0], &reported );
        most_out = most_out > link.ends[0]->out.used ? most_out : link.ends[0]->out.used;
        most_in = most_in > link.ends[1]->in.used ? most_in : link.ends[1]->in.used;
        while ( netcode_messages_receive( link.ends[1], &message ) )
            others++;
    }
    stream_listen( link.ends[0], &reported );
    CHECK_EQ( others, 20 );
    CHECK_LT( most_out, 60000 ); /* neither side keeps what passes */
    CHECK_LT( most_in, 30000 );
    for ( uint32_t tag = 0; tag < STREAM_ENDS; tag++ ) {
        const struct stream_end_t * end = &streams.ends[tag];
        CHECK( end->begun == 1 && end->ended == 1 && end->complete == 1 );
        CHECK_EQ( end->written, bytes[tag] );
        CHECK_EQ( reported.last[tag], NETCODE_MESSAGES_EVENT_ACKED );
        CHECK_EQ( reported.done[tag], bytes[tag] );
        CHECK( bytes[tag] < 50000 || reported.progress[tag] > 3 );
        free( streams.ends[tag].times );
    }
    CHECK_EQ( link.ends[1]->in.used, 0 );
    CHECK_EQ( link.ends[1]->stats.messages_received, 20 + STREAM_ENDS );
    link_close( &link );
}

/*  Refused by one that has no function, by its answer, by one that sets nothing to write with, and in the middle: LOST,
    however many packets are lost, and never ACKED. */
TEST( messages_streams_are_refused )
{
    for ( int way = 0; way < 5; way++ )
        for ( uint32_t bytes = 1; bytes <= 30000; bytes += 29999 ) {
            struct netcode_messages_config_t config = stream_config();
            struct stream_reported_t reported;
            struct link_t link;
            memset( &reported, 0, sizeof( reported ) );
            link_open( &link, &config, test_random(), 0.03, 0.3 );
            link.checked = 1;
            struct netcode_messages_stream_t stream = stream_of( 2, 1, bytes );
            streams.ends[2].refuse = way == 1;
            streams.ends[2].stop_after = way == 2 ? 1 : way == 3 ? 7 : 0;
            streams.ends[2].no_write = way == 4;
            if ( way == 0 )
                link.ends[1]->config.accept_stream_function = NULL;
            CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
            for ( int i = 0; i < 600; i++ ) {
                link_tick( &link );
                stream_listen( link.ends[0], &reported );
            }
            int passes = way == 3 && bytes == 1; /* it is over before the seventh write */
            CHECK_EQ( reported.last[2], passes ? NETCODE_MESSAGES_EVENT_ACKED : NETCODE_MESSAGES_EVENT_LOST );
            CHECK_EQ( streams.ends[2].begun, way > 0 );
            CHECK_EQ( streams.ends[2].ended, way == 2 || way == 3 );
            CHECK_EQ( streams.ends[2].complete, passes );
            CHECK( link.ends[0]->out.used == 0 && link.ends[1]->in.used == 0 );
            CHECK_EQ( link.ends[1]->refused_count, 0 ); /* the sender is known to know */
            CHECK_EQ( link.ends[1]->credit_received, link.ends[1]->credit_released );
            CHECK_EQ( link.ends[0]->credit_spent, link.ends[1]->credit_received );
            link_close( &link );
        }
}

/* A later fragment with another tag, length, channel or kind is none of the stream's; the stream goes on. */
TEST( messages_streams_that_disagree )
{
    static const struct {
        int kind, channel, tag, bytes, reason;
    } later[] = { { 5, 0, 2, 3000, NETCODE_MESSAGES_DROP_FRAGMENT },
                  { 5, 0, 1, 3001, NETCODE_MESSAGES_DROP_FRAGMENT },
                  { 5, 1, 1, 3000, NETCODE_MESSAGES_DROP_FRAGMENT },
                  { 2, 0, 1, 3000, NETCODE_MESSAGES_DROP_FRAGMENT },
                  { 5, 0, 1, 3000, NETCODE_MESSAGES_DROP_NONE } };
    struct netcode_messages_config_t config = stream_config();
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct craft_t craft;
    stream_of( 1, 0, 3000 );
    craft_begin( &craft, 0, -1, 0 );
    craft_fragment( &craft, 5, 0, 0, 1, streams.ends[1].source, 3000, 2 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    for ( int i = 0; i < 5; i++ ) {
        craft_begin( &craft, 1 + i, -1, 0 );
        craft_fragment( &craft, later[i].kind, later[i].channel, 0, later[i].tag, streams.ends[1].source,
                        later[i].bytes, 0 );
        CHECK_EQ( craft_give( &craft, m ), later[i].reason );
        CHECK_EQ( streams.ends[1].written, i < 4 ? 664 : 664 + 1168 );
        messages_check( m );
    }
    netcode_messages_destroy( m );
    CHECK( streams.ends[1].ended && !streams.ends[1].complete );
}

/*  Cancelled while it waits, and while it is sent: LOST here, an end that is not complete there, and all memory is free
    again. */
/* Receipt 0 is none: it names no stream. */
TEST( messages_streams_without_a_receipt_are_not_cancelled )
{
    struct netcode_messages_config_t config = stream_config();
    struct netcode_messages_stream_t stream = stream_of( 0, 0, 10000 );
    struct link_t link;
    link_open( &link, &config, test_random(), 0.03, 0.0 );
    stream.receipt = 0;
    CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 0 ), NETCODE_ERROR );
    for ( int i = 0; i < 200; i++ )
        link_tick( &link );
    CHECK( streams.ends[0].complete );
    link_close( &link );
}

TEST( messages_streams_are_cancelled )
{
    struct netcode_messages_config_t config = stream_config();
    struct stream_reported_t reported;
    struct link_t link;
    memset( &reported, 0, sizeof( reported ) );
    link_open( &link, &config, test_random(), 0.03, 0.1 );
    link.checked = 1;
    for ( uint32_t tag = 0; tag < 3; tag++ ) {
        struct netcode_messages_stream_t stream = stream_of( tag, 0, 1000000 );
        CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    }
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 102 ), NETCODE_OK );
    for ( int i = 0; i < 20; i++ )
        link_tick( &link );
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 7 ), NETCODE_ERROR );
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 100 ), NETCODE_OK );
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 100 ), NETCODE_ERROR );
    uint32_t reads = streams.ends[0].reads;
    for ( int i = 0; i < 2000 && !reported.last[1]; i++ ) {
        link_tick( &link );
        stream_listen( link.ends[0], &reported );
    }
    CHECK_EQ( streams.ends[0].reads, reads ); /* nothing is read any more */
    CHECK( streams.ends[0].ended == 1 && !streams.ends[0].complete && streams.ends[2].begun == 0 );
    CHECK( streams.ends[1].ended == 1 && streams.ends[1].complete );
    CHECK_EQ( reported.last[0], NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( reported.last[1], NETCODE_MESSAGES_EVENT_ACKED );
    CHECK_EQ( reported.last[2], NETCODE_MESSAGES_EVENT_LOST );
    CHECK_EQ( link.ends[0]->stats.reliable_timeouts_total, 1 );
    CHECK_EQ( netcode_messages_cancel_stream( link.ends[0], 101 ), NETCODE_ERROR );
    for ( int i = 0; i < 60; i++ )
        link_tick( &link );
    CHECK( link.ends[0]->out.used == 0 && link.ends[1]->in.used == 0 );
    link_close( &link );
}

/* A reset or destroy of either side: the receiver hears an end, the sender LOST; nothing is read or written afterwards. */
TEST( messages_streams_end_with_the_connection )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_config_t config = stream_config();
        struct stream_reported_t reported;
        struct link_t link;
        memset( &reported, 0, sizeof( reported ) );
        link_open( &link, &config, test_random(), 0.03, 0.0 );
        struct netcode_messages_stream_t stream = stream_of( 1, 0, 1000000 );
        CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
        for ( int i = 0; i < 20; i++ )
            link_tick( &link );
        CHECK( streams.ends[1].begun && !streams.ends[1].ended );
        if ( way < 2 )
            netcode_messages_reset( link.ends[1], link.now );
        else {
            netcode_messages_destroy( link.ends[1] );
            link.ends[1] = NULL;
        }
        CHECK( streams.ends[1].ended == 1 && !streams.ends[1].complete );
        uint32_t reads = streams.ends[1].reads, written = streams.ends[1].written;
        if ( way == 1 ) {
            netcode_messages_reset( link.ends[0], link.now );
            stream_listen( link.ends[0], &reported );
            CHECK_EQ( reported.last[1], NETCODE_MESSAGES_EVENT_LOST );
            link.ways[0].count = link.ways[1].count = 0;
            for ( int i = 0; i < 20; i++ )
                link_tick( &link );
            CHECK_EQ( streams.ends[1].reads, reads );
            CHECK_EQ( streams.ends[1].written, written );
            messages_check( link.ends[0] );
        }
        link_close( &link );
    }
}

/* The last fragments of 2^32 - 1 bytes: offsets, lengths and what PROGRESS says do not wrap. */
TEST( messages_a_stream_of_four_gibibytes )
{
    struct netcode_messages_config_t config = stream_config();
    struct stream_reported_t reported;
    struct link_t link;
    const uint32_t skipped = 3677100;
    memset( &reported, 0, sizeof( reported ) );
    link_open( &link, &config, 1, 0.03, 0.05 );
    struct netcode_messages_stream_t stream = stream_of( 3, 0, UINT32_MAX );
    CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    while ( !streams.ends[3].begun )
        link_tick( &link );
    struct netcode_messages_t *sender = link.ends[0], *receiver = link.ends[1];
    nc_message_t * message = nc_message_at( sender, sender->begun );
    nc_arrived_t * arrived = nc_arrived_at( receiver, receiver->partial );
    link.ways[0].count = link.ways[1].count = 0; /* all but the end is taken as done */
    for ( uint32_t i = sender->sent_first; i != sender->sent_end; i++ )
        nc_sent_at( sender, i )->count = 0, nc_sent_at( sender, i )->flags = NC_SENT_IN_FLIGHT;
    sender->fragments_in_flight = sender->large_in_flight = 0;
    nc_bit_set( sender->known_ids, message->node.key, NC_MESSAGES_IDS, 1 );
    memset( nc_message_state( message, 0 ), 0, NC_MESSAGES_FRAGMENTS );
    memset( nc_arrived_bits( arrived, 0 ), 0, NC_MESSAGES_FRAGMENTS / 8 );
    message->first_fragment = message->next_fragment = arrived->first_fragment = skipped;
    message->lost_fragments = 0;
    message->acked_bytes = skipped * NETCODE_MESSAGES_FRAGMENT_BYTES;
    streams.ends[3].written = 0;
    link.checked = 1;
    struct netcode_messages_event_t event;
    int at_the_end = 0;
    for ( int i = 0; i < 600 && !reported.last[3]; i++ ) {
        link_tick( &link );
        while ( netcode_messages_event( sender, &event ) ) {
            CHECK( event.bytes == INT32_MAX && event.bytes_done == INT32_MAX && event.stream_bytes == UINT32_MAX );
            CHECK_GE( event.stream_bytes_done, skipped * NETCODE_MESSAGES_FRAGMENT_BYTES );
            at_the_end |= event.type == NETCODE_MESSAGES_EVENT_ACKED && event.stream_bytes_done == UINT32_MAX;
        }
    }
    CHECK( at_the_end );
    CHECK_EQ( streams.ends[3].written, UINT32_MAX - skipped * NETCODE_MESSAGES_FRAGMENT_BYTES );
    CHECK( streams.ends[3].ended && streams.ends[3].complete );
    link_close( &link );
}

/* A fragment that never arrives: no other is sent that is 4,096 or more behind it. */
TEST( messages_streams_do_not_run_ahead )
{
    struct netcode_messages_config_t config = stream_config();
    config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct netcode_messages_stream_t stream = stream_of( 1, 0, 10000000 );
    struct seen_t seen;
    int largest = 0;
    CHECK_EQ( netcode_messages_send_stream( m, &stream ), NETCODE_OK );
    for ( int i = 0; i < 300; i++ ) {
        messages_skip_nothing( m );
        netcode_messages_update( m, 0.1 * i );
        while ( seen_next( &seen, m ) > 0 )
            if ( seen_count( &seen, 1, 0 ) )
                largest = seen.frames[seen.count - 1].index > largest ? seen.frames[seen.count - 1].index : largest;
        for ( uint32_t k = m->sent_first; k != m->sent_end; k++ ) {
            nc_sent_t * sent = nc_sent_at( m, k );
            if ( sent->flags & NC_SENT_IN_FLIGHT && ( !( sent->flags & NC_SENT_FRAGMENT ) || sent->fragment ) )
                nc_sent_acked( m, sent );
            else if ( sent->flags & NC_SENT_IN_FLIGHT )
                nc_sent_lost( m, sent );
        }
        m->newest_acked = m->next_number - 1;
        messages_check( m );
    }
    CHECK_EQ( largest, 4095 );
    for ( int i = 300; i < 302; i++ ) { /* it arrives: the stream goes on */
        netcode_messages_update( m, 0.1 * i );
        while ( seen_next( &seen, m ) > 0 )
            if ( seen_count( &seen, 1, 0 ) )
                largest = seen.frames[seen.count - 1].index > largest ? seen.frames[seen.count - 1].index : largest;
        for ( uint32_t k = m->sent_first; k != m->sent_end; k++ )
            if ( nc_sent_at( m, k )->flags & NC_SENT_IN_FLIGHT )
                nc_sent_acked( m, nc_sent_at( m, k ) );
        messages_check( m );
    }
    CHECK_GT( largest, 4095 );
    netcode_messages_destroy( m );
}

static struct netcode_messages_t * stream_caller;

/* Everything but to send is refused inside a stream's functions. */
static int stream_write_that_calls( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct netcode_message_t message;
    (void) context;
    (void) offset;
    (void) data;
    (void) bytes;
    memset( packet, 0, sizeof( packet ) );
    BAD( CHECK_EQ( netcode_messages_receive( stream_caller, &message ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_process_packet( stream_caller, packet, 9 ), NETCODE_MESSAGES_DROP_HEADER ) );
    BAD( CHECK_EQ( netcode_messages_generate_packet( stream_caller, packet, NETCODE_MAX_PACKET_SIZE ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_cancel_stream( stream_caller, 1 ), NETCODE_ERROR ) );
    BAD( netcode_messages_reset( stream_caller, 1.0 ) );
    BAD( netcode_messages_destroy( stream_caller ) );
    CHECK_EQ( netcode_messages_send( stream_caller, 0, NETCODE_MESSAGE_RELIABLE, "a", 1 ), NETCODE_OK );
    return 1;
}

static int stream_accept_that_calls( void * context, struct netcode_messages_stream_t * stream )
{
    (void) context;
    stream->write_function = stream_write_that_calls;
    return stream_write_that_calls( NULL, 0, NULL, 0 );
}

static void messages_streams_that_call_said( void )
{
    struct netcode_messages_config_t config = stream_config();
    struct craft_t craft;
    config.accept_stream_function = stream_accept_that_calls;
    stream_caller = netcode_messages_create( &config, 0.0 );
    test_messages_log = &stream_caller->log;
    craft_begin( &craft, 0, -1, 0 );
    craft_fragment( &craft, 5, 0, 0, 7, flow_data, 100, 0 );
    CHECK_EQ( craft_give( &craft, stream_caller ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( stream_caller->stats.messages_received, 1 );
    CHECK_EQ( messages_drain( stream_caller, 0.1 ), 1 );
    messages_check( stream_caller );
    test_messages_log = NULL;
    netcode_messages_destroy( stream_caller );
}

TEST( messages_streams_that_call )
{
    arguments_twice( messages_streams_that_call_said );
}

static void messages_streams_that_can_not_be_said( void )
{
    struct argued_t a;
    argued_open( &a );
    struct netcode_messages_stream_t stream = stream_of( 1, 0, 1 );
    BAD( CHECK_EQ( netcode_messages_send_stream( NULL, &stream ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_send_stream( a.m, NULL ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_cancel_stream( NULL, 1 ), NETCODE_ERROR ) );
    stream.channel = 4;
    BAD( CHECK_EQ( netcode_messages_send_stream( a.m, &stream ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    stream.channel = -1;
    BAD( CHECK_EQ( netcode_messages_send_stream( a.m, &stream ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    stream.channel = 0;
    stream.read_function = NULL;
    BAD( CHECK_EQ( netcode_messages_send_stream( a.m, &stream ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    argued_close( &a );
}

/* The stream that it is called for is moved by what it sends. */
static void read_and_send( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    static const uint8_t more[1000];
    (void) offset;
    memset( data, 7, (size_t) bytes );
    for ( int i = 0; i < 6; i++ )
        netcode_messages_send( (struct netcode_messages_t *) context, 2, NETCODE_MESSAGE_RELIABLE, more, 1000 );
}

TEST( messages_a_stream_whose_function_sends )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct netcode_messages_stream_t stream = stream_of( 7, 0, 3000 );
    struct netcode_messages_event_t event;
    struct craft_t craft;
    uint8_t data[1100];
    int acked = 0;
    memset( data, 0xaa, sizeof( data ) );
    stream.channel = 3;
    stream.context = m;
    stream.read_function = read_and_send;
    messages_skip_nothing( m );
    for ( int i = 0; i < 7; i++ ) /* free when they have been sent: the stream is behind them, and others behind it */
        CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, data, 1100 ), NETCODE_OK );
    CHECK_EQ( netcode_messages_send_stream( m, &stream ), NETCODE_OK );
    while ( netcode_messages_send( m, 1, NETCODE_MESSAGE_RELIABLE, data, 1000 ) == NETCODE_OK )
        ;
    m->credit_limit = m->credit_spent + 700; /* for the stream alone */
    for ( int i = 0; i < 200 && !acked; i++ ) {
        messages_drain( m, 0.02 * i );
        messages_check( m );
        int64_t newest = messages_newest( m );
        craft_begin( &craft, i, newest, newest < 32 ? ( 1u << newest ) - 1 : 0xffffffff );
        if ( i > 50 )
            craft_limit( &craft, 1 << 20, 8192 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        while ( netcode_messages_event( m, &event ) )
            acked |= event.receipt == stream.receipt && event.type == NETCODE_MESSAGES_EVENT_ACKED;
    }
    CHECK( acked );
    netcode_messages_destroy( m );
}

TEST( messages_streams_that_can_not_be )
{
    arguments_twice( messages_streams_that_can_not_be_said );
    struct netcode_messages_config_t config = stream_config();
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct netcode_messages_stream_t stream = stream_of( 1, 0, UINT32_MAX );
    int count = 0, answer;
    while ( ( answer = netcode_messages_send_stream( m, &stream ) ) == NETCODE_OK )
        count++;
    CHECK_EQ( answer, NETCODE_MESSAGES_FULL );
    CHECK_EQ( count, 11 ); /* each keeps a byte for 4,096 fragments */
    while ( netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, flow_data, 10 ) == NETCODE_OK )
        ;
    CHECK_GE( m->out.bytes - m->out.used - 4 * m->out.handles, m->out.bytes / 64 );
    CHECK_EQ( netcode_messages_cancel_stream( m, 0 ), NETCODE_ERROR ); /* 0 is no receipt */
    m->broken = NETCODE_MESSAGES_REASON_GIVEN_UP;
    CHECK_EQ( netcode_messages_send_stream( m, &stream ), NETCODE_MESSAGES_BROKEN );
    CHECK_EQ( netcode_messages_cancel_stream( m, 101 ), NETCODE_ERROR ); /* nothing would come of it */
    netcode_messages_destroy( m );
}

/* A stream that is cancelled before anything of it has arrived costs the other side what it cost this one. */
TEST( messages_a_stream_that_never_came_is_cancelled )
{
    struct netcode_messages_config_t config = stream_config();
    struct flow_t f;
    flow_open( &f, &config );
    flow_run( &f, 0.5, 0 );
    struct netcode_messages_stream_t stream = stream_of( 1, 0, 200000 );
    CHECK_EQ( netcode_messages_send_stream( f.ends[0], &stream ), NETCODE_OK );
    flow_run( &f, 0.3, 2 );
    CHECK_EQ( netcode_messages_cancel_stream( f.ends[0], stream.receipt ), NETCODE_OK );
    flow_run( &f, 5.0, 0 );
    CHECK( streams.ends[1].begun == 0 && messages_begun( f.ends[0] ) == 0 );
    CHECK_EQ( f.ends[0]->credit_spent, f.ends[1]->credit_received );
    CHECK_EQ( f.ends[1]->credit_received, f.ends[1]->credit_released );
    flow_close( &f );
}

/* A REFUSE that names a message that is no stream changes nothing. */
TEST( messages_a_refusal_of_no_stream )
{
    struct netcode_messages_t * m = sender_open( 16, 1, 0 );
    struct craft_t craft;
    sender_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 3000, 0.0, 9 );
    messages_drain( m, 0.0 );
    craft_begin( &craft, 0, -1, 0 );
    put( &craft.at, 0x2f, 1 );
    put( &craft.at, 1, 1 );
    put( &craft.at, 0, 2 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( messages_begun( m ), 1 );
    CHECK_EQ( sender_event( m ), 0 );
    sender_close( m );
}

/* ---- functions of streams that end what they came through ---- */

static struct world_t * stream_world;
static int stream_ends_server;

/* The client or the server is destroyed inside the call that calls a stream's function: it goes when that call returns. */
static void stream_destroys( void )
{
    int depth = stream_ends_server ? stream_world->servers[0]->base.depth : stream_world->clients[0]->base.depth;
    CHECK_GT( depth, 0 );
    if ( depth > 0 && stream_ends_server ) {
        netcode_server_destroy( stream_world->servers[0] );
        stream_world->servers[0] = NULL;
    } else if ( depth > 0 ) {
        netcode_client_destroy( stream_world->clients[0] );
        stream_world->clients[0] = NULL;
    }
}

static void stream_read_that_destroys( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    memset( data, 1, (size_t) bytes );
    if ( context && offset == 0 )
        stream_destroys();
}

static int stream_write_that_destroys( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    (void) data;
    (void) bytes;
    if ( context && offset == 0 )
        stream_destroys();
    return 1;
}

static int stream_accept_that_destroys( void * context, struct netcode_messages_stream_t * stream )
{
    stream->context = context;
    stream->write_function = stream_write_that_destroys;
    return 1;
}

/* The side that sends destroys its own object in its push, or the side that receives its own in its pull. */
static void stream_ends_its_path( int to_server, int by_sender )
{
    struct netcode_messages_config_t config = stream_config();
    struct glue_t g;
    stream_ends_server = to_server != by_sender;
    struct netcode_messages_stream_t stream = { 0,    50000, 0, 0, by_sender ? &g : NULL, stream_read_that_destroys,
                                                NULL, NULL };
    config.accept_stream_function = stream_accept_that_destroys;
    config.accept_stream_context = by_sender ? NULL : &g;
    glue_open( &g, CLEAN, 1 );
    netcode_messages_destroy( g.clients[0] );
    netcode_messages_destroy( g.slots[0] );
    g.clients[0] = netcode_messages_create( &config, g.w->time );
    g.slots[0] = netcode_messages_create( &config, g.w->time );
    stream_world = g.w;
    REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
    CHECK_EQ( netcode_messages_send_stream( to_server ? g.clients[0] : g.slots[0], &stream ), NETCODE_OK );
    for ( int i = 0; i < 100 && g.w->clients[0] && g.w->servers[0]; i++ ) {
        world_step( g.w );
        netcode_messages_pull_from_client( g.clients[0], g.w->clients[0], g.w->time );
        if ( g.w->clients[0] )
            netcode_messages_push_to_client( g.clients[0], g.w->clients[0], g.w->time );
        netcode_messages_pull_from_server( g.slots[0], g.w->servers[0], 0, g.w->time );
        if ( g.w->servers[0] )
            netcode_messages_push_to_server( g.slots[0], g.w->servers[0], 0, g.w->time );
    }
    CHECK( !( stream_ends_server ? (void *) g.w->servers[0] : (void *) g.w->clients[0] ) );
    glue_close( &g );
}

TEST( messages_streams_may_end_what_they_came_through )
{
    for ( int i = 0; i < 4; i++ )
        stream_ends_its_path( i & 1, i >> 1 );
}
