/*  Story: the guarantees of messages, examples/docs/MESSAGES.md. No size and no number of messages is a cliff, no channel takes the
    send buffer of others, no lower priority holds up a higher one, and what can not go on is reported on both sides. That all drains
    is in messages_mixes.c. Run: runner messages_guarantees.c */

/* Numbered messages of one channel, from the first end to the second. */
struct guarantee_flow_t {
    int channel, kind, bytes, sent, came;
    double times[4096], longest;
};

static void guarantee_send( struct link_t * link, struct guarantee_flow_t * flow )
{
    memcpy( flow_data, &flow->sent, sizeof( flow->sent ) );
    if ( netcode_messages_send( link->ends[0], flow->channel, flow->kind, flow_data, flow->bytes ) == NETCODE_OK )
        flow->times[flow->sent++] = link->now;
}

static void guarantee_read( struct link_t * link, struct guarantee_flow_t * flows )
{
    struct netcode_message_t message;
    while ( netcode_messages_receive( link->ends[1], &message ) ) {
        struct guarantee_flow_t * flow = &flows[message.channel];
        int number;
        memcpy( &number, message.data, sizeof( number ) );
        CHECK( message.bytes == flow->bytes && number >= 0 && number < flow->sent );
        flow->came++;
        flow->longest =
            link->now - flow->times[number] > flow->longest ? link->now - flow->times[number] : flow->longest;
    }
}

static int guarantee_accepts, guarantee_takes;

static void guarantee_stream_read( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    (void) context;
    (void) offset;
    memset( data, 7, (size_t) bytes );
}

static int guarantee_stream_write( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    (void) context;
    (void) offset;
    return data[bytes - 1] == 7;
}

static int guarantee_stream_accept( void * context, struct netcode_messages_stream_t * stream )
{
    (void) context;
    guarantee_accepts++;
    stream->write_function = guarantee_stream_write;
    return guarantee_takes;
}

static struct netcode_messages_stream_t guarantee_stream( int channel, uint32_t bytes )
{
    struct netcode_messages_stream_t stream;
    memset( &stream, 0, sizeof( stream ) );
    stream.channel = channel;
    stream.bytes = bytes;
    stream.read_function = guarantee_stream_read;
    guarantee_accepts = 0;
    guarantee_takes = 1;
    return stream;
}

/* 60 ordered messages a second over a round trip of 300 ms arrive as fast whether they are of one piece or of several. */
TEST( messages_guarantee_no_cliff_in_size )
{
    static const int sizes[] = { 1180, 1181, 2336, 2337, 4000, 4672 };
    for ( int i = 0; i < 6; i++ ) {
        static struct guarantee_flow_t flow;
        struct link_t link;
        memset( &flow, 0, sizeof( flow ) );
        flow.kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
        flow.bytes = sizes[i];
        link_open( &link, NULL, 1, 0.15, 0.0 );
        for ( int k = 0; k < 120; k++ ) /* so that the round trip is known */
            link_tick( &link );
        for ( int k = 0; k < 600; k++ ) {
            guarantee_send( &link, &flow );
            link_tick( &link );
            guarantee_read( &link, &flow );
        }
        CHECK_EQ( flow.sent, 600 );
        CHECK_GE( flow.came, 600 - 11 );
        CHECK_LE( flow.longest, 0.15 + 2.1 / 60.0 );
        link_close( &link );
    }
}

/* Hundreds of large messages are in flight at once, as many as the buffers hold. */
TEST( messages_guarantee_no_cliff_in_number )
{
    struct netcode_messages_config_t config;
    static struct guarantee_flow_t flow;
    struct link_t link;
    netcode_default_messages_config( &config );
    memset( &flow, 0, sizeof( flow ) );
    flow.kind = NETCODE_MESSAGE_RELIABLE;
    flow.bytes = 1300;
    link_open( &link, &config, 1, 0.15, 0.0 );
    link.ends[0]->config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
    for ( int k = 0; k < 120; k++ )
        link_tick( &link );
    for ( int k = 0; k < 300; k++ )
        guarantee_send( &link, &flow );
    link_tick( &link );
    CHECK_EQ( messages_begun( link.ends[0] ), 300 );
    for ( int k = 0; k < 240; k++ ) {
        link_tick( &link );
        guarantee_read( &link, &flow );
    }
    CHECK_EQ( flow.came, 300 );
    link_close( &link );
}

/* A message of 2,000 bytes does not wait for 64 streams of a lower priority, nor a small one behind it. */
TEST( messages_guarantee_priority_before_streams )
{
    struct netcode_messages_config_t config;
    static struct guarantee_flow_t flows[2];
    struct link_t link;
    struct netcode_messages_stats_t stats;
    memset( flows, 0, sizeof( flows ) );
    netcode_default_messages_config( &config );
    config.accept_stream_function = guarantee_stream_accept;
    config.send_buffer_bytes = 1 << 20;
    for ( int i = 1; i < NETCODE_MESSAGES_CHANNELS; i++ )
        config.priorities[i] = 1;
    link_open( &link, &config, 1, 0.05, 0.0 );
    link.ways[0].bytes_per_second = 125000.0;
    for ( int i = 0; i < 64; i++ ) {
        struct netcode_messages_stream_t stream = guarantee_stream( 1 + i % 31, 10000000 );
        CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
    }
    for ( int i = 0; i < 300; i++ )
        link_tick( &link );
    netcode_messages_stats( link.ends[0], &stats );
    CHECK_EQ( messages_begun( link.ends[0] ), 31 ); /* of one channel they are sent one behind the other */
    flows[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    for ( int round = 0; round < 20; round++ ) {
        flows[0].bytes = round & 1 ? 20 : 2000;
        guarantee_send( &link, &flows[0] );
        for ( int i = 0; i < 30; i++ ) {
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_EQ( flows[0].came, round + 1 );
    }
    CHECK_LE( flows[0].longest, 2.0 * stats.rtt + 3.0 / 60.0 );
    link_close( &link );
}

/*  Small messages go on beside large ones of a lower priority that have most of the other side's buffer, or wait for it, and
    beside a stream of their own priority. Then a large message of the best priority, where there is one, does not wait for those
    that began before it either, which the stream would keep from ending. */
TEST( messages_guarantee_small_ones_beside_full_buffers )
{
    static const struct {
        int larges, receive_buffer, per_tick, first; /* of the best priority, after the stream has begun */
        uint32_t stream;
        double rate, longest, first_longest;
    } rows[] = {
        { 1, 1, 1, 0, 0, 50000.0, 0.3, 0.0 },    { 2, 0, 16, 0, 0, 125000.0, 0.3, 0.0 },
        { 3, 0, 1, 0, 0, 40000.0, 0.35, 0.0 },   { 8, 0, 16, 0, 0, 500000.0, 0.3, 0.0 },
        { 2, 1, 1, 0, 0, 50000.0, 0.3, 0.0 },    { 1, 1, 4, 1, 1u << 30, 1e6, 0.2, 4.0 },
        { 2, 0, 4, 1, 1u << 30, 1e6, 0.2, 4.0 }, { 8, 0, 4, 1, 1u << 30, 1e6, 0.2, 4.0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_config_t config;
        static struct guarantee_flow_t flows[NETCODE_MESSAGES_CHANNELS];
        struct link_t link;
        netcode_default_messages_config( &config );
        config.receive_buffer_bytes = rows[i].receive_buffer;
        config.send_buffer_bytes = 4 << 20;
        config.accept_stream_function = guarantee_stream_accept;
        memset( flows, 0, sizeof( flows ) );
        for ( int k = 3; k < NETCODE_MESSAGES_CHANNELS; k++ )
            config.priorities[k] = 1;
        for ( int k = 0; k < NETCODE_MESSAGES_CHANNELS; k++ ) {
            flows[k].channel = k;
            flows[k].kind = NETCODE_MESSAGE_RELIABLE;
            flows[k].bytes = k ? 262144 : 40;
        }
        link_open( &link, &config, 1, 0.05, 0.0 );
        link.ways[0].bytes_per_second = rows[i].rate;
        for ( int k = 0; k < 1200; k++ ) {
            for ( int n = 0; n < rows[i].larges && k == 60; n++ )
                guarantee_send( &link, &flows[3 + n] );
            for ( int low = 0; low < 2; low++ ) /* a stream of the last priority, and one of the best */
                if ( k == ( low ? 60 : 72 ) && rows[i].stream ) {
                    struct netcode_messages_stream_t stream =
                        guarantee_stream( low ? NETCODE_MESSAGES_CHANNELS - 1 : 1, rows[i].stream );
                    CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
                }
            if ( k == 84 && rows[i].first )
                guarantee_send( &link, &flows[2] );
            for ( int n = 0; n < rows[i].per_tick && flows[0].sent < 4000; n++ )
                guarantee_send( &link, &flows[0] );
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_GE( flows[0].came, flows[0].sent - 32 * rows[i].per_tick );
        CHECK_LE( flows[0].longest, rows[i].longest );
        CHECK_EQ( flows[2].came, rows[i].first );
        CHECK_LE( flows[2].longest, rows[i].first_longest );
        CHECK( rows[i].stream || flows[3].came == 1 );
        link_close( &link );
    }
}

/* While the whole link is interrupted, a message in fragments of a lower priority begins: then its id holds up no others. */
TEST( messages_guarantee_a_lost_beginning_holds_up_no_ids )
{
    struct netcode_messages_config_t config;
    static struct guarantee_flow_t flows[3];
    struct link_t link;
    netcode_default_messages_config( &config );
    config.accept_stream_function = guarantee_stream_accept;
    config.priorities[2] = 1;
    memset( flows, 0, sizeof( flows ) );
    flows[0].kind = flows[2].kind = NETCODE_MESSAGE_RELIABLE;
    flows[0].bytes = 4;
    flows[2].channel = 2;
    flows[2].bytes = 5840;
    link_open( &link, &config, 1, 0.05, 0.0 );
    link.ways[0].bytes_per_second = 1e6;
    for ( int k = 0; k < 600; k++ ) {
        if ( k == 180 ) {
            guarantee_send( &link, &flows[2] );
            link.ways[0].loss = 1.0;
        }
        if ( k == 184 ) {
            struct netcode_messages_stream_t stream = guarantee_stream( 1, 1u << 30 );
            CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
            link.ways[0].loss = 0.0;
        }
        for ( int n = 0; n < 16 && k >= 120 && k < 360; n++ )
            guarantee_send( &link, &flows[0] );
        link_tick( &link );
        guarantee_read( &link, flows );
        CHECK_LE( link.ends[0]->next_id - link.ends[0]->oldest_id, 2048 );
    }
    CHECK_EQ( flows[0].came, flows[0].sent );
    CHECK_LE( flows[0].longest, 0.4 );
    link_close( &link );
}

/* A link on which channel 0 has the best priority, 2 the next, and 1 the last. */
static void guarantee_open( struct link_t * link, double delay, double loss, double rate, double queue )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.priorities[1] = 2;
    config.priorities[2] = 1;
    config.send_buffer_bytes = 589824; /* what it holds leaves within half a minute */
    link_open( link, &config, 1, delay, loss );
    link->ways[0].bytes_per_second = rate;
    link->ways[0].queue_seconds = queue;
}

/*  More small reliable messages than the link carries: they use it, hardly a packet is lost after the first seconds, and a message of
    2,000 bytes of a better priority does not wait for them, nor a large one. The second link carries less than the least rate. */
TEST( messages_guarantee_more_small_ones_than_fit )
{
    static const struct {
        double rate, delay, queue;
        int bytes, lost;
        double longest, large_longest, share;
    } rows[] = {
        { 125000.0, 0.05, 0.3, 200, 0, 0.25, 0.3, 0.75 },
        { 12500.0, 0.05, 0.3, 200, 15, 2.5, 2.5, 0.7 },
        { 625000.0, 0.02, 0.05, 1000, 0, 0.1, 0.15, 0.8 },
    };
    for ( int i = 0; i < 3; i++ ) {
        static struct guarantee_flow_t flows[3];
        struct link_t link;
        uint8_t small[1000];
        uint64_t lost = 0;
        int came = 0;
        memset( small, 0, sizeof( small ) );
        memset( flows, 0, sizeof( flows ) );
        guarantee_open( &link, rows[i].delay, 0.0, rows[i].rate, rows[i].queue );
        flows[0].kind = NETCODE_MESSAGE_RELIABLE;
        flows[0].bytes = 2000;
        flows[2].channel = 2;
        flows[2].kind = NETCODE_MESSAGE_RELIABLE;
        flows[2].bytes = 8000;
        flows[1].bytes = rows[i].bytes;
        flows[1].sent = 1; /* all have the number 0 */
        for ( int k = 0; k < 1800; k++ ) {
            for ( int left = 30; left > 0; left-- )
                netcode_messages_send( link.ends[0], 1, NETCODE_MESSAGE_RELIABLE, small, rows[i].bytes );
            if ( k == 900 ) {
                lost = link.ways[0].lost;
                came = flows[1].came;
            }
            if ( k >= 900 && k < 1740 && k % 60 == 0 )
                guarantee_send( &link, &flows[0] );
            if ( k >= 900 && k < 1500 && k % 300 == 30 )
                guarantee_send( &link, &flows[2] );
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_EQ( flows[0].came, 14 );
        CHECK_LE( flows[0].longest, rows[i].longest );
        CHECK_EQ( flows[2].came, 2 );
        CHECK_LE( flows[2].longest, rows[i].large_longest );
        CHECK_LE( link.ways[0].lost - lost, rows[i].lost );
        CHECK_GE( ( flows[1].came - came ) * rows[i].bytes + flows[2].came * 8000,
                  rows[i].share * 15.0 * rows[i].rate );
        CHECK( nc_messages_are_behind( link.ends[0] ) );
        for ( int k = 0; k < 1800; k++ ) {
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK( !nc_messages_are_behind( link.ends[0] ) );
        link_close( &link );
    }
}

/* Nor are unreliable ones of a lower priority sent before them. */
TEST( messages_guarantee_priority_before_unreliable_ones )
{
    static struct guarantee_flow_t flows[2];
    struct link_t link;
    memset( flows, 0, sizeof( flows ) );
    guarantee_open( &link, 0.05, 0.0, 20000.0, 1.0 );
    flows[0].kind = NETCODE_MESSAGE_RELIABLE;
    flows[0].bytes = 200;
    flows[1].bytes = 400;
    flows[1].sent = 1; /* all have the number 0 */
    for ( int k = 0; k < 2400; k++ ) {
        for ( int left = 2; left > 0 && k < 1200; left-- )
            guarantee_send( &link, &flows[0] );
        memset( flow_data, 0, 400 );
        for ( int left = 2; left > 0; left-- )
            netcode_messages_send( link.ends[0], 1, NETCODE_MESSAGE_UNRELIABLE, flow_data, 400 );
        link_tick( &link );
        guarantee_read( &link, flows );
    }
    CHECK_GT( flows[0].sent, 2000 );
    CHECK_EQ( flows[0].came, flows[0].sent );
    link_close( &link );
}

/*  A channel with as many reliable messages of one piece or a few fragments as its queue takes, of either priority, and however
    fast they are read: a large message of another channel arrives soon, and unreliable ones leave at the least rate. */
TEST( messages_guarantee_large_and_unreliable_ones_beside_a_flood )
{
    static const struct {
        int bytes, queued, large, priority, reads;
        double rate, delay, longest;
    } rows[] = {
        { 4000, 50000, 8000, 1, 0, 1250000.0, 0.05, 1.0 }, { 4000, 50000, 8000, 0, 0, 1250000.0, 0.05, 1.0 },
        { 4000, 50000, 8000, 0, 0, 125000.0, 0.05, 2.0 },  { 4000, 50000, 100000, 1, 0, 1250000.0, 0.05, 1.5 },
        { 2000, 50000, 8000, 0, 0, 1250000.0, 0.15, 1.5 }, { 4000, 100000, 8000, 0, 0, 5000000.0, 0.15, 1.0 },
        { 1200, 50000, 8000, 1, 0, 1250000.0, 0.02, 1.0 }, { 100, 20000, 200000, 1, 4, 0.0, 0.03, 30.0 },
        { 100, 20000, 200000, 0, 4, 0.0, 0.03, 30.0 },     { 4000, 50000, 8000, 0, 1, 0.0, 0.03, 4.0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct netcode_messages_config_t config;
        static struct guarantee_flow_t large, unreliable;
        struct netcode_messages_channel_stats_t flood;
        struct netcode_message_t message;
        struct link_t link;
        double heard = 0.0, gap = 0.0;
        netcode_default_messages_config( &config );
        config.priorities[0] = (uint8_t) rows[i].priority;
        memset( &large, 0, sizeof( large ) );
        memset( &unreliable, 0, sizeof( unreliable ) );
        large.channel = 1;
        large.kind = NETCODE_MESSAGE_RELIABLE;
        large.bytes = rows[i].large;
        unreliable.channel = 2;
        unreliable.bytes = 50;
        link_open( &link, &config, 1, rows[i].delay, 0.0 );
        link.ways[0].bytes_per_second = rows[i].rate;
        for ( int k = 0; k < ( rows[i].reads ? 2400 : 900 ); k++ ) {
            if ( k == 600 )
                guarantee_send( &link, &large );
            if ( rows[i].reads == 0 )
                guarantee_send( &link, &unreliable );
            do {
                netcode_messages_channel_stats( link.ends[0], 0, &flood );
            } while ( (int) flood.queued_bytes + rows[i].bytes <= rows[i].queued &&
                      netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, rows[i].bytes ) ==
                          NETCODE_OK );
            link_tick( &link );
            for ( int n = 0;
                  ( n < rows[i].reads || rows[i].reads == 0 ) && netcode_messages_receive( link.ends[1], &message );
                  n++ ) {
                if ( message.channel == 1 ) {
                    large.came++;
                    large.longest = link.now - large.times[0];
                }
                if ( message.channel == 2 ) {
                    gap = heard > 5.0 && link.now - heard > gap ? link.now - heard : gap;
                    heard = link.now;
                }
            }
        }
        CHECK_EQ( large.came, 1 );
        CHECK_LE( large.longest, rows[i].longest );
        CHECK( rows[i].reads || heard > link.now - 0.3 );
        CHECK_LE( gap, 0.3 );
        link_close( &link );
        if ( test_state.failures )
            printf( "    row %d: %.2f s, gap %.2f s\n", i, large.longest, gap );
    }
}

/*  More is sent than fits, by three channels; channel 0's messages are what the row is about, and those of channel 2 are large. They begin
    after a second, or come all the time, and wait for no more than what their priority and their share explain. */
TEST( messages_guarantee_what_fills_the_window_holds_up_nothing )
{
    enum { U = NETCODE_MESSAGE_UNRELIABLE, R = NETCODE_MESSAGE_RELIABLE };
    static const struct {
        double rate, delay, queue;
        struct {
            int kind, bytes, per_second, priority;
        } flows[3];
        double longest;
    } rows[] = {
        /* a few fragments beside unreliable ones and a large one, of one priority, and of a better one */
        { 125000.0, 0.025, 0.3, { { R, 3000, 20, 0 }, { U, 1000, 200, 0 }, { R, 100000, 0, 0 } }, 1.5 },
        { 125000.0, 0.025, 0.3, { { R, 3000, 20, 0 }, { U, 1000, 200, 1 }, { R, 100000, 0, 2 } }, 0.4 },
        /* a large one beside unreliable ones of a worse priority, of its own, and hardly more than fit */
        { 125000.0, 0.025, 0.3, { { R, 100000, 0, 0 }, { U, 1000, 250, 1 }, { R, 10, 0, 1 } }, 1.5 },
        { 125000.0, 0.025, 0.3, { { R, 100000, 0, 0 }, { U, 1000, 250, 0 }, { R, 10, 0, 1 } }, 6.0 },
        { 32000.0, 0.025, 0.3, { { R, 6000, 0, 0 }, { U, 600, 57, 0 }, { R, 10, 0, 1 } }, 1.5 },
        /* a large one beside small ones of its priority on a slow link, and of a worse one that nearly fill the link */
        { 16000.0, 0.025, 1.0, { { R, 20000, 0, 0 }, { R, 1000, 20, 0 }, { R, 10, 0, 1 } }, 12.0 },
        { 125000.0, 0.025, 0.3, { { R, 100000, 0, 0 }, { R, 1000, 110, 1 }, { R, 10, 0, 1 } }, 1.5 },
        /* a few fragments beside small ones of a worse priority, and a large one */
        { 50000.0, 0.1, 1.0, { { R, 3000, 7, 0 }, { R, 1000, 40, 9 }, { R, 200000, 0, 9 } }, 3.0 },
    };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        static struct guarantee_flow_t flows[3];
        struct netcode_messages_config_t config;
        struct link_t link;
        netcode_default_messages_config( &config );
        memset( flows, 0, sizeof( flows ) );
        for ( int k = 0; k < 3; k++ ) {
            flows[k].channel = k;
            flows[k].kind = rows[i].flows[k].kind;
            flows[k].bytes = rows[i].flows[k].bytes;
            config.priorities[k] = (uint8_t) rows[i].flows[k].priority;
        }
        link_open( &link, &config, 1, rows[i].delay, 0.0 );
        link.ways[0].bytes_per_second = rows[i].rate;
        link.ways[0].queue_seconds = rows[i].queue;
        for ( int tick = 0; tick < 1200; tick++ ) {
            for ( int k = 0; k < 3; k++ ) {
                int per_second = rows[i].flows[k].per_second;
                int due = per_second ? ( tick + 1 ) * per_second / 60 - tick * per_second / 60 : tick == 60;
                while ( due-- > 0 && flows[k].sent < 4096 )
                    guarantee_send( &link, &flows[k] );
            }
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_GE( flows[0].came, rows[i].flows[0].per_second ? flows[0].sent - 8 : 1 );
        CHECK_LE( flows[0].longest, rows[i].longest );
        link_close( &link );
        if ( test_state.failures )
            printf( "    row %d: %d of %d, %.2f s\n", i, flows[0].came, flows[0].sent, flows[0].longest );
    }
}

/* The same where its own channel has more of a few fragments than fit. */
TEST( messages_guarantee_a_large_one_beside_prompt_ones_of_its_channel )
{
    struct link_t link;
    struct netcode_message_t message;
    double came = 0.0;
    guarantee_open( &link, 0.025, 0.0, 125000.0, 0.3 );
    for ( int tick = 0; tick < 600; tick++ ) {
        if ( tick == 60 )
            CHECK_EQ( netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 100000 ),
                      NETCODE_OK );
        (void) netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 3000 );
        (void) netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 1500 );
        link_tick( &link );
        while ( netcode_messages_receive( link.ends[1], &message ) )
            came = message.bytes == 100000 ? link.now : came;
    }
    CHECK_GT( came, 1.0 );
    CHECK_LE( came, 10.0 );
    link_close( &link );
}

/* The priority that a message has lent ends with it, as when it expires: the large one that had it no longer holds up better ones. */
TEST( messages_guarantee_lent_priority_ends )
{
    struct netcode_messages_stream_t stream = guarantee_stream( 2, 50000 );
    struct netcode_messages_config_t config;
    struct netcode_messages_event_t event;
    struct netcode_message_t message;
    struct link_t link;
    double done = 0.0;
    netcode_default_messages_config( &config );
    config.receive_buffer_bytes = 1; /* the least: the first large one has all of it */
    config.priorities[0] = 9;
    config.priorities[2] = 5;
    config.accept_stream_function = guarantee_stream_accept;
    link_open( &link, &config, 1, 0.025, 0.0 );
    link.ways[0].bytes_per_second = 16000.0;
    link.ways[0].queue_seconds = 0.5;
    stream.receipt = 7;
    memset( &message, 0, sizeof( message ) );
    message.kind = NETCODE_MESSAGE_RELIABLE;
    message.data = flow_data;
    for ( int tick = 0; tick < 900; tick++ ) {
        message.channel = tick == 60;
        message.bytes = tick == 60 ? 200000 : 262144;
        message.ttl_seconds = tick == 60 ? 0.3f : 0.0f;
        if ( tick == 0 || tick == 60 )
            CHECK_EQ( netcode_messages_send_message( link.ends[0], &message ), NETCODE_OK );
        if ( tick == 120 )
            CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
        link_tick( &link );
        while ( netcode_messages_event( link.ends[0], &event ) )
            done = event.receipt == 7 && event.type == NETCODE_MESSAGES_EVENT_ACKED ? link.now : done;
    }
    CHECK_GT( done, 2.0 );
    CHECK_LE( done, 9.0 );
    link_close( &link );
}

/* However late packets once were, as after a jump of the clock, a lost one is waited for no longer than the patience. */
TEST( messages_guarantee_late_packets_delay_no_repeats )
{
    static struct guarantee_flow_t flows[2];
    struct link_t link;
    memset( flows, 0, sizeof( flows ) );
    guarantee_open( &link, 0.05, 0.0, 0.0, 0.0 );
    flows[0].kind = NETCODE_MESSAGE_RELIABLE;
    flows[0].bytes = 1000;
    for ( int tick = 0; tick < 900; tick++ ) {
        if ( tick >= 300 )
            link.ends[0]->reorder_seconds = 300.0;
        link.ways[0].loss = tick >= 400 && tick < 402;
        if ( tick < 600 )
            guarantee_send( &link, &flows[0] );
        link_tick( &link );
        guarantee_read( &link, flows );
    }
    CHECK_EQ( flows[0].came, flows[0].sent );
    CHECK_GT( flows[0].longest, 0.1 );
    CHECK_LE( flows[0].longest, 2.5 );
    link_close( &link );
}

/*  Two channels of one priority that always have messages share what leaves by weight, also where a third one sends now and then,
    which waits for none of what they have sent before. */
TEST( messages_guarantee_weights_beside_a_channel_that_pauses )
{
    for ( int i = 0; i < 2; i++ ) {
        static const int bytes[3] = { 1000, 1000, 4672 };
        static struct guarantee_flow_t flows[3];
        struct netcode_messages_config_t config;
        struct netcode_messages_channel_stats_t stats;
        struct netcode_message_t message;
        struct link_t link;
        double came[3] = { 0.0, 0.0, 0.0 }, longest = 0.0;
        netcode_default_messages_config( &config );
        memset( flows, 0, sizeof( flows ) );
        config.congestion = i ? NETCODE_MESSAGES_CONGESTION_FIXED : NETCODE_MESSAGES_CONGESTION_ADAPTIVE;
        config.bytes_per_second = 125000;
        config.weights[0] = config.weights[1] = 255;
        link_open( &link, &config, 1, 0.02, 0.0 );
        link.ways[0].bytes_per_second = i ? 0.0 : 125000.0;
        for ( int k = 0; k < 3600; k++ ) {
            for ( int channel = 1; channel < 3; channel++ )
                do {
                    netcode_messages_channel_stats( link.ends[0], channel, &stats );
                } while ( stats.queued_bytes < 40000 &&
                          netcode_messages_send( link.ends[0], channel, NETCODE_MESSAGE_RELIABLE, flow_data,
                                                 bytes[channel] ) == NETCODE_OK );
            if ( k % 3 == 0 ) {
                memcpy( flow_data, &link.now, sizeof( link.now ) );
                netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, bytes[0] );
            }
            link_tick( &link );
            while ( netcode_messages_receive( link.ends[1], &message ) )
                if ( k > 300 ) {
                    double sent;
                    memcpy( &sent, message.data, sizeof( sent ) );
                    came[message.channel] += message.bytes;
                    if ( message.channel == 0 && link.now - sent > longest )
                        longest = link.now - sent;
                }
        }
        CHECK_NEAR( came[0] / 55.0, 20000.0, 400.0 );
        CHECK_GE( came[1], 100.0 * came[2] );
        CHECK_GE( came[2], 4672.0 );
        CHECK_LE( longest, 0.3 );
        link_close( &link );
    }
}

/*  Large messages of the last priority have nearly all of the credit, and a stream of a better one keeps them from ending: small
    messages of the best priority, which find no credit, lend them theirs. */
TEST( messages_guarantee_what_holds_credit_inherits_priority )
{
    static const int rows[][2] = { { 18000, 29 }, { 28000, 30 } };
    for ( int i = 0; i < 2; i++ ) {
        int low = 0;
        static struct guarantee_flow_t flows[NETCODE_MESSAGES_CHANNELS];
        struct netcode_messages_config_t config;
        struct link_t link;
        netcode_default_messages_config( &config );
        memset( flows, 0, sizeof( flows ) );
        config.send_buffer_bytes = 2000000;
        config.accept_stream_function = guarantee_stream_accept;
        config.priorities[1] = 1;
        for ( int k = 0; k < NETCODE_MESSAGES_CHANNELS; k++ ) {
            if ( k > 1 )
                config.priorities[k] = 5;
            flows[k].channel = k;
            flows[k].kind = NETCODE_MESSAGE_RELIABLE;
            flows[k].bytes = k ? rows[i][0] : 1000;
        }
        link_open( &link, &config, 1, 0.05, 0.0 );
        link.ways[0].bytes_per_second = 300000.0;
        for ( int k = 0; k < 2400; k++ ) {
            for ( int n = 2; n < 2 + rows[i][1] && k == 180; n++ )
                guarantee_send( &link, &flows[n] );
            if ( k == 216 ) {
                struct netcode_messages_stream_t stream = guarantee_stream( 1, 1u << 30 );
                CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
            }
            if ( k > 240 && k < 1800 )
                guarantee_send( &link, &flows[0] );
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_EQ( flows[0].came, flows[0].sent );
        CHECK_LE( flows[0].longest, 0.5 );
        for ( int n = 2; n < NETCODE_MESSAGES_CHANNELS; n++ )
            low += flows[n].came;
        CHECK_LE( low, 6 ); /* no longer than that */
        link_close( &link );
    }
}

/*  Links that carry all of it: small messages, some of a few fragments, and beside them a stream or not. The latter take what is
    left, of the same priority; one of a better priority leaves one fragment of theirs in a round trip. */
TEST( messages_guarantee_fragments_on_links_that_carry_them )
{
    static const struct {
        double rate, longest, small_longest;
        int bytes, every, small, priority, stream; /* of the first channel; of the stream's */
    } rows[] = {
        { 20000.0, 0.4, 0.3, 2000, 30, 100, 0, 0 },
        { 100000.0, 0.3, 0.2, 4600, 4, 30, 0, 1 },
        { 100000.0, 0.5, 0.2, 1181, 60, 30, 1, 1 },
    };
    for ( int i = 0; i < 3; i++ ) {
        static struct guarantee_flow_t flows[3];
        struct netcode_messages_config_t config;
        struct link_t link;
        netcode_default_messages_config( &config );
        memset( flows, 0, sizeof( flows ) );
        config.priorities[0] = (uint8_t) rows[i].priority;
        config.accept_stream_function = guarantee_stream_accept;
        link_open( &link, &config, 1, 0.03, 0.0 );
        link.ways[0].bytes_per_second = rows[i].rate;
        for ( int channel = 0; channel < 3; channel++ ) {
            flows[channel].channel = channel;
            flows[channel].kind = channel < 2 ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_UNRELIABLE;
            flows[channel].bytes = channel == 0 ? rows[i].bytes : channel == 1 ? rows[i].small : 60;
        }
        for ( int k = 0; k < 3000; k++ ) {
            if ( k == 180 && rows[i].stream ) {
                struct netcode_messages_stream_t stream = guarantee_stream( 3, 1u << 30 );
                CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_OK );
            }
            if ( k > 480 && k % rows[i].every == 0 )
                guarantee_send( &link, &flows[0] );
            if ( k > 480 ) {
                guarantee_send( &link, &flows[1] );
                guarantee_send( &link, &flows[2] );
            }
            link_tick( &link );
            guarantee_read( &link, flows );
        }
        CHECK_GE( flows[0].came, flows[0].sent - 10 );
        CHECK_LE( flows[0].longest, rows[i].longest );
        CHECK_LE( flows[1].longest, rows[i].small_longest );
        link_close( &link );
        if ( test_state.failures )
            printf( "    row %d: %.2f, %.2f s\n", i, flows[0].longest, flows[1].longest );
    }
}

/* Beside a transfer whose window is small, because much is lost, a message of a few fragments leaves at the least rate. */
TEST( messages_guarantee_priority_beside_a_small_window )
{
    static struct guarantee_flow_t flows[3];
    struct link_t link;
    memset( flows, 0, sizeof( flows ) );
    guarantee_open( &link, 0.05, 0.15, 0.0, 0.3 );
    flows[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    flows[0].bytes = 2000;
    flows[1].channel = 1;
    flows[1].kind = NETCODE_MESSAGE_RELIABLE;
    flows[1].bytes = 100000;
    flows[2] = flows[1];
    flows[2].channel = 2;
    flows[2].bytes = 500;
    for ( int k = 0; k < 3600; k++ ) {
        if ( k % 330 == 180 )
            guarantee_send( &link, &flows[1] );
        guarantee_send( &link, &flows[2] );
        if ( k % 60 == 0 && k < 3300 )
            guarantee_send( &link, &flows[0] );
        link_tick( &link );
        guarantee_read( &link, flows );
    }
    CHECK_EQ( flows[0].came, 55 );
    CHECK_LE( flows[0].longest, 2.0 );
    link_close( &link );
}

/* Ordered messages that are large, and wait for the window, do not make small ones obey it. */
TEST( messages_guarantee_large_ones_are_no_flood )
{
    struct link_t link;
    link_open( &link, NULL, 1, 0.05, 0.0 );
    for ( int k = 0; k < 120; k++ )
        link_tick( &link );
    for ( int i = 0; i < 3; i++ )
        CHECK_EQ( netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, 100000 ),
                  NETCODE_OK );
    link.ends[0]->controller.full_rounds = 4;
    link_tick( &link );
    CHECK( link.ends[0]->active[NC_QUEUE_IN_ORDER] != 0 );
    link_tick( &link );
    CHECK( !nc_messages_are_behind( link.ends[0] ) );
    link_close( &link );
}

/* What a second without acks held up, and lost, has arrived 0.85 s after it, however small the window is. */
TEST( messages_guarantee_interruptions_leave_no_backlog )
{
    static struct guarantee_flow_t flow;
    struct link_t link;
    memset( &flow, 0, sizeof( flow ) );
    flow.kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    flow.bytes = 64;
    link_open( &link, NULL, 1, 0.05, 0.0 );
    for ( int k = 0; k < 240; k++ ) {
        link.ways[0].loss = link.ways[1].loss = k >= 120 && k < 180 ? 1.0 : 0.0;
        if ( k == 120 )
            link.ends[0]->controller.window = 6000.0;
        if ( k == 179 )
            link.ends[0]->controller.full_rounds = 4; /* as if more had been sent than the path carries */
        for ( int left = 16; left > 0; left-- )
            guarantee_send( &link, &flow );
        link_tick( &link );
        guarantee_read( &link, &flow );
        if ( k == 119 || k == 230 )
            CHECK_GE( flow.came, flow.sent - 16 * 4 );
    }
    link_close( &link );
}

/* Unordered and unreliable messages never wait for large ones of their channel. */
TEST( messages_guarantee_small_ones_pass_large_ones )
{
    for ( int kind = NETCODE_MESSAGE_UNRELIABLE; kind <= NETCODE_MESSAGE_RELIABLE; kind += 2 ) {
        struct link_t link;
        struct netcode_message_t message;
        double came = 0.0;
        link_open( &link, NULL, 1, 0.05, 0.0 );
        link.ways[0].bytes_per_second = 50000.0;
        for ( int i = 0; i < 60; i++ )
            link_tick( &link );
        for ( int i = 0; i < 2; i++ )
            CHECK_EQ( netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, mix_data, 200000 ),
                      NETCODE_OK );
        for ( int i = 0; i < 60; i++ )
            link_tick( &link );
        double sent = link.now;
        CHECK_EQ( netcode_messages_send( link.ends[0], 0, kind, "small", 5 ), NETCODE_OK );
        for ( int i = 0; i < 60; i++ ) {
            link_tick( &link );
            while ( netcode_messages_receive( link.ends[1], &message ) )
                came = message.bytes == 5 ? link.now : came;
        }
        CHECK( came > 0.0 && came - sent < 0.3 );
        link_close( &link );
    }
}

/* A producer that fills a channel whenever there is space takes no space from another one. */
TEST( messages_guarantee_each_channel_has_its_share )
{
    static struct guarantee_flow_t flows[2];
    struct link_t link;
    memset( flows, 0, sizeof( flows ) );
    flows[1].channel = 1;
    flows[1].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    flows[1].bytes = 100;
    flows[0].bytes = 1000;
    flows[0].kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    link_open( &link, NULL, 1, 0.05, 0.0 );
    link.ways[0].bytes_per_second = 100000.0;
    for ( int i = 0; i < 600; i++ ) {
        int before = flows[1].sent;
        for ( int sent = -1; sent != flows[0].sent && flows[0].sent < 4000; ) {
            sent = flows[0].sent;
            guarantee_send( &link, &flows[0] );
        }
        guarantee_send( &link, &flows[1] );
        CHECK_EQ( flows[1].sent, before + 1 );
        link_tick( &link );
        guarantee_read( &link, flows );
    }
    CHECK_GT( flows[0].sent, 600 );
    CHECK_GE( flows[1].came, 570 );
    link_close( &link );
}

/* ---- no silent death ---- */

static int guarantee_reason( struct netcode_messages_t * m )
{
    struct netcode_messages_event_t event;
    int reason = 0;
    while ( netcode_messages_event( m, &event ) )
        if ( event.type == NETCODE_MESSAGES_EVENT_BROKEN )
            reason = reason * 10 + event.reason;
    return reason;
}

/* Both sides report it once, within so many seconds. */
static void guarantee_both_report( struct link_t * link, int reason, double seconds )
{
    int reported[2] = { 0, 0 };
    for ( double until = link->now + seconds; link->now < until; ) {
        link_tick( link );
        for ( int i = 0; i < 2; i++ )
            reported[i] += guarantee_reason( link->ends[i] );
    }
    CHECK_EQ( reported[0], reason );
    CHECK_EQ( reported[1], reason );
    for ( int i = 0; i < 2; i++ ) {
        netcode_messages_reset( link->ends[i], link->now );
        link->ways[i].count = 0;
    }
    CHECK_EQ( netcode_messages_send( link->ends[0], 0, NETCODE_MESSAGE_RELIABLE, "again", 5 ), NETCODE_OK );
    for ( int i = 0; i < 60; i++ )
        link_tick( link );
    CHECK_EQ( messages_read( link->ends[1] ), 1 );
    for ( int i = 0; i < 2; i++ )
        CHECK_EQ( guarantee_reason( link->ends[i] ), 0 );
}

/*  A message for a channel that the other side does not have: once its LIMIT is known, send refuses. What was sent before breaks, as
    does a queued ordered one. */
TEST( messages_guarantee_a_missing_channel_is_reported )
{
    for ( int way = 0; way < 3; way++ ) {
        struct netcode_messages_config_t config;
        struct link_t link;
        netcode_default_messages_config( &config );
        link_open( &link, &config, 1, 0.05, 0.1 );
        config.channels = 4;
        netcode_messages_destroy( link.ends[1] );
        link.ends[1] = netcode_messages_create( &config, link.now );
        if ( way == 0 )
            for ( int i = 0; i < 60; i++ )
                link_tick( &link );
        int bytes = way == 2 ? 3000 : 5; /* a large one waits for the first LIMIT */
        CHECK_EQ( netcode_messages_send( link.ends[0], 3, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, bytes ),
                  NETCODE_OK );
        CHECK_EQ( netcode_messages_send( link.ends[0], 4, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, bytes ),
                  way == 0 ? NETCODE_MESSAGES_NO_CHANNEL : NETCODE_OK );
        struct netcode_messages_stream_t stream = guarantee_stream( 4, 10 );
        if ( way == 0 )
            CHECK_EQ( netcode_messages_send_stream( link.ends[0], &stream ), NETCODE_MESSAGES_NO_CHANNEL );
        if ( way > 0 )
            guarantee_both_report( &link, NETCODE_MESSAGES_REASON_CHANNEL, 3.0 );
        link_close( &link );
    }
}

/* A reset of one side alone, however many packets they have exchanged, and whether pings are sent or not. */
TEST( messages_guarantee_a_reset_of_one_side_is_reported )
{
    static const int ticks[] = { 10, 30, 60, 120, 300, 450, 600, 900 };
    for ( int i = 0; i < 32; i++ ) {
        struct netcode_messages_config_t config;
        struct link_t link;
        netcode_default_messages_config( &config );
        config.ping_seconds = i & 1 ? -1.0 : 0.0;
        link_open( &link, &config, 1, 0.05, 0.1 );
        for ( int k = 0; k < ticks[i / 4]; k++ ) {
            netcode_messages_send( link.ends[k & 1], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 100 );
            link_tick( &link );
        }
        netcode_messages_reset( link.ends[i >> 1 & 1], link.now );
        link.ways[0].loss = link.ways[1].loss = 0.0;
        netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 100 );
        netcode_messages_send( link.ends[1], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 100 );
        guarantee_both_report( &link, NETCODE_MESSAGES_REASON_OUT_OF_STEP, 25.0 );
        link_close( &link );
    }
}

/* The same when both have sent more packets than the other side remembers: it is reported at once. */
TEST( messages_guarantee_a_late_reset_of_one_side_is_reported )
{
    for ( int i = 0; i < 12; i++ ) {
        struct link_t link;
        link_open( &link, NULL, 1, 0.02, 0.0 );
        for ( int k = 0; k < 2200 + 40 * i; k++ ) {
            for ( int end = 0; end < 2; end++ )
                netcode_messages_send( link.ends[end], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, 1 );
            link_tick( &link );
            for ( int end = 0; end < 2; end++ )
                messages_read( link.ends[end] );
        }
        netcode_messages_reset( link.ends[i & 1], link.now );
        for ( int end = 0; end < 2; end++ )
            netcode_messages_send( link.ends[end], 0, NETCODE_MESSAGE_RELIABLE, flow_data, 100 );
        guarantee_both_report( &link, NETCODE_MESSAGES_REASON_OUT_OF_STEP, 1.0 );
        link_close( &link );
    }
}

/* Packets that can not be used for less than ten seconds break nothing, nor do seven of them; and silence of any length does not. */
TEST( messages_guarantee_silence_breaks_nothing )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    for ( int i = 0; i < 200; i++ ) {
        netcode_messages_update( m, 100.0 * i );
        craft_begin( &craft, i, -1, 0 );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        for ( int k = 0; k < 10; k++ ) { /* copies of it */
            netcode_messages_update( m, 100.0 * i + k );
            CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_DUPLICATE );
        }
        CHECK_EQ( guarantee_reason( m ), 0 );
    }
    for ( int i = 0; i < 7; i++ ) {
        netcode_messages_update( m, 1e6 + 100.0 * i );
        craft_begin( &craft, 200, -1, 0 );
        CHECK_EQ( craft_give( &craft, m ), i ? NETCODE_MESSAGES_DROP_DUPLICATE : NETCODE_MESSAGES_DROP_NONE );
    }
    CHECK_EQ( guarantee_reason( m ), 0 );
    netcode_messages_update( m, 2e6 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_DUPLICATE );
    CHECK_EQ( guarantee_reason( m ), 0 );
    netcode_messages_update( m, 2e6 + 1.0 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_DUPLICATE );
    CHECK_EQ( guarantee_reason( m ), NETCODE_MESSAGES_REASON_OUT_OF_STEP );
    netcode_messages_destroy( m );
}

/* Another version of the format is named. */
TEST( messages_guarantee_another_version_is_reported )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    for ( int i = 0; i <= 11; i++ ) {
        netcode_messages_update( m, i );
        craft_begin( &craft, i, -1, 0 );
        craft.data[0] = 0x42;
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_VERSION );
    }
    CHECK_EQ( guarantee_reason( m ), NETCODE_MESSAGES_REASON_VERSION );
    netcode_messages_destroy( m );
}

/* ---- O( what a packet carried ) ---- */

/* New streams are accepted at a limited rate, and none while 16 refusals are unacknowledged. */
TEST( messages_guarantee_streams_are_accepted_at_a_limited_rate )
{
    for ( int takes = 0; takes < 2; takes++ ) {
        struct netcode_messages_config_t config = *small_config();
        config.accept_stream_function = guarantee_stream_accept;
        struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
        struct craft_t craft;
        int taken = 0;
        guarantee_accepts = 0;
        guarantee_takes = takes;
        for ( int i = 0; i < 2000; i++ ) {
            netcode_messages_update( m, i < 1000 ? 0.0 : 1.0 );
            m->credit_granted = m->credit_received + 1000;
            craft_begin( &craft, taken, -1, 0 );
            craft_head( &craft, 5 | 8, 0, taken, 0 );
            put( &craft.at, 0, 4 );
            craft_varint( &craft, 0 );
            int reason = craft_give( &craft, m );
            CHECK( reason == NETCODE_MESSAGES_DROP_NONE || reason == NETCODE_MESSAGES_DROP_NO_ROOM );
            taken += reason == NETCODE_MESSAGES_DROP_NONE;
        }
        CHECK_EQ( taken, takes ? 512 : 16 );
        CHECK_EQ( guarantee_accepts, taken );
        messages_check( m );
        netcode_messages_destroy( m );
    }
}

/*  The acks of a packet count even if there is no room for its messages: or two sides that refuse each other's streams
    would never hear that their refusals have arrived. */
TEST( messages_guarantee_acks_count_without_room )
{
    struct netcode_messages_config_t config = *small_config();
    config.accept_stream_function = guarantee_stream_accept;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct craft_t craft;
    uint8_t data[100] = { 0 };
    guarantee_takes = 0;
    for ( int i = 0; i < 18; i++ ) {
        if ( i == 16 )
            CHECK_GT( messages_drain( m, 0.1 ), 0 );
        craft_begin( &craft, i < 17 ? i : 16, i < 16 ? -1 : messages_newest( m ), 0 );
        craft_fragment( &craft, 5, 0, i < 17 ? i : 16, 0, data, 100, 0 );
        CHECK_EQ( craft_give( &craft, m ), i == 16 ? NETCODE_MESSAGES_DROP_NO_ROOM : NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( m->refused_count, i < 16 ? i + 1 : i - 16 );
        CHECK_EQ( m->packets_in_flight, 0 );
    }
    messages_check( m );
    netcode_messages_destroy( m );
}

/* They begin at half of that rate: none is refused, and nothing of a packet that also has other messages is lost by it. */
TEST( messages_guarantee_streams_are_begun_as_they_are_accepted )
{
    struct netcode_messages_config_t config;
    struct netcode_messages_stats_t stats;
    struct link_t link;
    netcode_default_messages_config( &config );
    config.accept_stream_function = guarantee_stream_accept;
    link_open( &link, &config, 1, 0.02, 0.0 );
    struct netcode_messages_stream_t stream = guarantee_stream( 1, 100 );
    int held = 0;
    for ( int i = 0; i < 121; i++ ) { /* two seconds */
        while ( netcode_messages_send_stream( link.ends[0], &stream ) == NETCODE_OK )
            ;
        link_tick( &link );
        if ( link.ends[0]->streams_to_begin < 1.0 &&
             link.ends[0]->paced >= 0.0 ) { /* who sleeps until the deadline does not miss the next ones */
            CHECK_NEAR( netcode_messages_next_deadline( link.ends[0] ), link.now, 0.002 );
            held++;
        }
    }
    CHECK_GT( held, 9 );
    netcode_messages_stats( link.ends[1], &stats );
    CHECK_EQ( stats.drops[NETCODE_MESSAGES_DROP_NO_ROOM], 0 );
    CHECK( guarantee_accepts > 1000 && guarantee_accepts <= 128 + 512 * 2 + 9 );
    link_close( &link );
}

/* What waits for a channel that the other side turns out not to have is LOST and is not sent: nothing breaks. */
TEST( messages_guarantee_a_missing_channel_is_dropped )
{
    struct netcode_messages_config_t config;
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    struct link_t link;
    int lost = 0;
    netcode_default_messages_config( &config );
    link_open( &link, &config, 1, 0.05, 0.0 );
    config.channels = 4;
    netcode_messages_destroy( link.ends[1] );
    link.ends[1] = netcode_messages_create( &config, link.now );
    memset( &message, 0, sizeof( message ) );
    message.channel = 4;
    message.kind = NETCODE_MESSAGE_RELIABLE;
    message.receipt = 1;
    message.data = flow_data;
    message.bytes = 3000; /* it waits for the first LIMIT */
    CHECK_EQ( netcode_messages_send_message( link.ends[0], &message ), NETCODE_OK );
    for ( int i = 0; i < 120; i++ ) {
        link_tick( &link );
        while ( netcode_messages_event( link.ends[0], &event ) )
            lost += event.type == NETCODE_MESSAGES_EVENT_LOST ? 1 : 100;
    }
    CHECK_EQ( lost, 1 );
    CHECK_EQ( link.refused[NETCODE_MESSAGES_DROP_CHANNEL], 0 );
    CHECK( !link.ends[0]->broken && !link.ends[1]->broken );
    link_close( &link );
}

/* The side that has received BROKEN does not answer it, also where both break at once. */
TEST( messages_guarantee_broken_is_not_answered )
{
    for ( int both = 0; both < 2; both++ ) {
        struct link_t link;
        link_open( &link, NULL, 1, 0.15, 0.0 );
        for ( int i = 0; i < 60; i++ )
            link_tick( &link );
        for ( int i = 0; i <= both; i++ )
            nc_messages_break( link.ends[i], NETCODE_MESSAGES_REASON_GIVEN_UP );
        for ( int i = 0; i < 120; i++ )
            link_tick( &link );
        uint64_t sent = link.ways[0].sent + link.ways[1].sent;
        for ( int i = 0; i < 600; i++ )
            link_tick( &link );
        CHECK_EQ( link.ways[0].sent + link.ways[1].sent, sent );
        CHECK_EQ( guarantee_reason( link.ends[1] ), NETCODE_MESSAGES_REASON_GIVEN_UP );
        link_close( &link );
    }
}

/* A BROKEN that is to be sent is due at once, and only that. */
TEST( messages_guarantee_broken_has_a_deadline )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 7.0 );
    nc_messages_break( m, NETCODE_MESSAGES_REASON_GIVEN_UP );
    nc_messages_break( m, NETCODE_MESSAGES_REASON_CHANNEL ); /* the first reason counts */
    CHECK_EQ( guarantee_reason( m ), NETCODE_MESSAGES_REASON_GIVEN_UP );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 7.0, 1e-9 );
    CHECK_EQ( messages_drain( m, 7.0 ), 1 );
    CHECK_NEAR( netcode_messages_next_deadline( m ), 3607.0, 1e-9 );
    netcode_messages_destroy( m );
}

/* The limited rate is for streams that begin, not for those that were accepted. */
TEST( messages_guarantee_accepted_streams_are_not_limited )
{
    struct netcode_messages_config_t config = stream_config();
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    struct craft_t craft;
    stream_of( 1, 0, 3000 );
    for ( int i = 0; i < 3; i++ ) {
        craft_begin( &craft, i, -1, 0 );
        craft_fragment( &craft, 5, 0, 0, 1, streams.ends[1].source, 3000, i );
        CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
        m->stream_tokens = 0.0;
    }
    CHECK( streams.ends[1].ended && streams.ends[1].complete );
    netcode_messages_destroy( m );
}

/*  Both sides send as much as they can, and the links lose a tenth: acks in ranges, which are in all packets until one of them is
    acknowledged, leave room for messages of every size. */
TEST( messages_guarantee_acks_crowd_out_nothing )
{
    static const int sizes[] = { 100, 1100, 1180, 1181, 4672, 20000 };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_config_t config;
        struct netcode_message_t message;
        struct link_t link;
        netcode_default_messages_config( &config );
        config.accept_stream_function = guarantee_stream_accept;
        link_open( &link, &config, 1, 0.05, 0.1 );
        link.ways[0].bytes_per_second = link.ways[1].bytes_per_second = 1e6;
        struct netcode_messages_stream_t stream = guarantee_stream( 1, 100000000 );
        CHECK_EQ( netcode_messages_send_stream( link.ends[1], &stream ), NETCODE_OK );
        int sent = 0, came = 0;
        for ( int k = 0; k < 1200; k++ ) {
            if ( k >= 120 && k % 60 == 0 && k < 1080 )
                sent += netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_RELIABLE, flow_data, sizes[i] ) ==
                        NETCODE_OK;
            link_tick( &link );
            while ( netcode_messages_receive( link.ends[1], &message ) )
                came++;
        }
        CHECK_EQ( sent, 16 );
        CHECK_EQ( came, sent );
        link_close( &link );
    }
}

/* A copy of a number that begins with a LIMIT: only one of another epoch, in full, and after the first LIMIT, breaks. */
TEST( messages_guarantee_copies_with_a_limit )
{
    for ( int way = 0; way < 4; way++ ) { /* no LIMIT before; cut short; the same epoch; another */
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct craft_t craft;
        for ( int i = 0; i < 2; i++ ) {
            craft_begin( &craft, 0, -1, 0 );
            if ( i || way )
                craft_limit( &craft, 16384, 8192 );
            if ( i && way != 2 )
                craft.at[-1] = 1;
            craft.at -= i && way == 1 ? 1 : 0;
            CHECK_EQ( craft_give( &craft, m ), i ? NETCODE_MESSAGES_DROP_DUPLICATE : NETCODE_MESSAGES_DROP_NONE );
        }
        CHECK_EQ( guarantee_reason( m ), way == 3 ? NETCODE_MESSAGES_REASON_OUT_OF_STEP : 0 );
        netcode_messages_destroy( m );
    }
}
