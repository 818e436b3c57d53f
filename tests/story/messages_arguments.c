/*  Story: arguments of messages. What a caller may get wrong: an assert in debug builds, and in all builds a refusal that changes
    nothing. Configs that can and can not be, memory that is short, times that are none, the names of reasons.
    Run: runner messages_arguments.c */

/* ---- calls that are refused ---- */

/* An object whose every byte can be compared, and what it was before the call. */
struct argued_t {
    struct netcode_messages_t * m;
    uint8_t * before;
    size_t size;
};

static void argued_open( struct argued_t * a )
{
    a->size = netcode_messages_memory( small_config() );
    a->m = messages_create_zeroed( small_config() );
    a->before = (uint8_t *) malloc( a->size );
    REQUIRE( a->m && a->before );
    test_messages_log = &a->m->log;
    netcode_messages_send( a->m, 1, NETCODE_MESSAGE_RELIABLE, "waits", 5 );
    memcpy( a->before, a->m, a->size );
}

static void argued_close( struct argued_t * a )
{
    ( (struct netcode_messages_t *) a->before )->log.refusals = a->m->log.refusals;
    CHECK_MEM( a->m, a->before, a->size ); /* no refusal has left another trace */
    test_messages_log = NULL;
    netcode_messages_destroy( a->m );
    free( a->before );
}

static void messages_null_is_refused_said( void )
{
    struct argued_t a;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    argued_open( &a );
    memset( packet, 0xee, sizeof( packet ) );
    memset( &message, 0, sizeof( message ) );
    BAD( netcode_default_messages_config( NULL ) );
    BAD( netcode_messages_reset( NULL, 1.0 ) );
    BAD( CHECK_EQ( netcode_messages_send_message( NULL, &message ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_send_message( a.m, NULL ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_send( NULL, 0, 0, "a", 1 ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_send( a.m, 0, NETCODE_MESSAGE_STREAM, "a", 1 ), NETCODE_MESSAGES_BAD_ARGUMENT ) );
    BAD( CHECK_EQ( netcode_messages_receive( NULL, &message ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_receive( a.m, NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_event( NULL, &event ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_event( a.m, NULL ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_process_packet( NULL, packet, 9 ), NETCODE_MESSAGES_DROP_HEADER ) );
    BAD( CHECK_EQ( netcode_messages_process_packet( a.m, NULL, 9 ), NETCODE_MESSAGES_DROP_HEADER ) );
    BAD( CHECK_EQ( netcode_messages_process_packet( a.m, packet, -1 ), NETCODE_MESSAGES_DROP_HEADER ) );
    BAD( CHECK_EQ( netcode_messages_generate_packet( NULL, packet, NETCODE_MAX_PACKET_SIZE ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_generate_packet( a.m, NULL, NETCODE_MAX_PACKET_SIZE ), 0 ) );
    BAD( CHECK_EQ( netcode_messages_generate_packet( a.m, packet, NETCODE_MAX_PACKET_SIZE - 1 ), 0 ) );
    CHECK_EQ( packet[0], 0xee );
    BAD( netcode_messages_flush( NULL ) );
    BAD( netcode_messages_set_time( NULL, 1.0 ) );
    BAD( netcode_messages_update( NULL, 1.0 ) );
    BAD( CHECK_EQ( (int) netcode_messages_next_deadline( NULL ), 0 ) );
    netcode_messages_destroy( NULL );
    argued_close( &a );
}

TEST( messages_null_is_refused )
{
    arguments_twice( messages_null_is_refused_said );
}

static void messages_statistics_of_nothing_are_refused_said( void )
{
    struct argued_t a;
    struct netcode_messages_stats_t stats;
    struct netcode_messages_channel_stats_t waits;
    argued_open( &a );
    stats.packets_sent = 77;
    waits.queued_messages = 77;
    BAD( netcode_messages_stats( NULL, &stats ) );
    BAD( netcode_messages_stats( a.m, NULL ) );
    BAD( netcode_messages_channel_stats( NULL, 0, &waits ) );
    BAD( netcode_messages_channel_stats( a.m, 0, NULL ) );
    CHECK( stats.packets_sent == 77 && waits.queued_messages == 77 );
    BAD( netcode_messages_channel_stats( a.m, -1, &waits ) );
    CHECK_EQ( waits.queued_messages, 0 ); /* of a channel that is not there nothing waits */
    waits.queued_messages = 77;
    BAD( netcode_messages_channel_stats( a.m, 4, &waits ) );
    CHECK_EQ( waits.queued_messages, 0 );
    netcode_messages_channel_stats( a.m, 3, &waits );
    netcode_messages_channel_stats( a.m, 1, &waits );
    CHECK_EQ( waits.queued_messages, 1 );
    argued_close( &a );
}

TEST( messages_statistics_of_nothing_are_refused )
{
    arguments_twice( messages_statistics_of_nothing_are_refused_said );
}

static void messages_glue_without_a_partner_is_refused_said( void )
{
    struct argued_t a;
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    argued_open( &a );
    BAD( netcode_messages_pull_from_client( NULL, w->clients[0], 1.0 ) );
    BAD( netcode_messages_pull_from_client( a.m, NULL, 1.0 ) );
    BAD( netcode_messages_push_to_client( NULL, w->clients[0], 1.0 ) );
    BAD( netcode_messages_push_to_client( a.m, NULL, 1.0 ) );
    BAD( netcode_messages_pull_from_server( NULL, w->servers[0], 0, 1.0 ) );
    BAD( netcode_messages_pull_from_server( a.m, NULL, 0, 1.0 ) );
    BAD( netcode_messages_push_to_server( NULL, w->servers[0], 0, 1.0 ) );
    BAD( netcode_messages_push_to_server( a.m, NULL, 0, 1.0 ) );
    netcode_messages_push_to_client( a.m, w->clients[0], 1.0 ); /* not connected: nothing is said, not even the time */
    netcode_messages_push_to_server( a.m, w->servers[0], 0, 1.0 );
    argued_close( &a );
}

TEST( messages_glue_without_a_partner_is_refused )
{
    arguments_twice( messages_glue_without_a_partner_is_refused_said );
}

/* ---- what can not be sent ---- */

struct send_row_t {
    int channel, kind, data, bytes;
    double ttl;
    int answer;
};

static void messages_that_can_not_be_sent_said( void )
{
    static const struct send_row_t rows[] = {
        { 0, -1, 1, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 5, 1, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 6, 1, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { -1, 0, 1, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 4, 0, 1, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 1, -1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 0, 1, 0.0, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 1, 1, 1e300, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 1, 1, ENDLESS, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 1, 1, NOT_A_NUMBER, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, NETCODE_MESSAGE_RELIABLE_ORDERED, 1, 1, 1e-9, NETCODE_MESSAGES_BAD_ARGUMENT },
        { 0, 0, 1, 1181, 0.0, NETCODE_MESSAGES_TOO_LARGE },
        { 0, 1, 1, 1181, 0.0, NETCODE_MESSAGES_TOO_LARGE },
        { 0, 2, 1, 8193, 0.0, NETCODE_MESSAGES_TOO_LARGE },
    };
    struct argued_t a;
    struct netcode_message_t message;
    argued_open( &a );
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        memset( &message, 0, sizeof( message ) );
        message.channel = rows[i].channel;
        message.kind = rows[i].kind;
        message.data = rows[i].data ? flow_data : NULL;
        message.bytes = rows[i].bytes;
        message.ttl_seconds = rows[i].ttl;
        if ( rows[i].answer == NETCODE_MESSAGES_BAD_ARGUMENT )
            BAD( CHECK_EQ( netcode_messages_send_message( a.m, &message ), rows[i].answer ) );
        else
            CHECK_EQ( netcode_messages_send_message( a.m, &message ), rows[i].answer );
    }
    argued_close( &a );
}

TEST( messages_that_can_not_be_sent )
{
    arguments_twice( messages_that_can_not_be_sent_said );
}

/* To the object's own log, once a second, and again after a reset: what was called, what it requires, and what it got. */
TEST( messages_refusals_reach_the_objects_log )
{
    struct netcode_messages_config_t config = *small_config();
    struct netcode_messages_stream_t stream;
    config.log_callback = logged_line;
    logged_lines[0] = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    struct netcode_messages_t * m = netcode_messages_create( &config, 5.0 );
    REQUIRE( m );
    for ( int i = 0; i < 100; i++ )
        TOLERATE( netcode_messages_send( m, 40, NETCODE_MESSAGE_RELIABLE, "a", 1 ) );
    CHECK_EQ( logged_times( "netcode_messages_send failed: requires a channel that this object has "
                            "(channel 40, and it has 4; kind 2; 1 bytes) (0 refusals before)\n" ),
              1 );
    netcode_messages_set_time( m, 6.1 );
    memset( &stream, 0, sizeof( stream ) );
    BAD( netcode_messages_send_stream( m, &stream ) );
    CHECK_EQ( logged_times( "netcode_messages_send_stream failed: requires stream != NULL && stream->read_function" ),
              1 );
    CHECK_EQ( logged_times( "(99 refusals before)\n" ), 1 );
    netcode_messages_reset( m, 2.0 );
    BAD( CHECK_EQ( netcode_messages_receive( m, NULL ), 0 ) );
    CHECK_EQ( logged_times( "netcode_messages_receive failed: requires message != NULL" ), 1 );
    netcode_messages_set_time( m, 3.1 );
    for ( int i = 0; i < 100; i++ ) {
        struct netcode_messages_channel_stats_t stats;
        TOLERATE( netcode_messages_channel_stats( m, 40, &stats ) );
    }
    CHECK_EQ( logged_times( "netcode_messages_channel_stats failed: requires channel >= 0 && channel < messages->" ),
              1 );
    CHECK_EQ( logged_times( "\n" ), 4 );
    for ( int i = 0; i < 4; i++ ) { /* half of what they need is there, and has a log */
        static const char * const lines[] = { "netcode_messages_pull_from_client failed: requires client != NULL",
                                              "netcode_messages_push_to_client failed: requires client != NULL",
                                              "netcode_messages_pull_from_server failed: requires server != NULL",
                                              "netcode_messages_push_to_server failed: requires server != NULL" };
        netcode_messages_set_time( m, 5.0 + 2.0 * (double) i );
        switch ( i ) {
        case 0: BAD( netcode_messages_pull_from_client( m, NULL, 5.0 ) ); break;
        case 1: BAD( netcode_messages_push_to_client( m, NULL, 7.0 ) ); break;
        case 2: BAD( netcode_messages_pull_from_server( m, NULL, 0, 9.0 ) ); break;
        default: BAD( netcode_messages_push_to_server( m, NULL, 0, 11.0 ) );
        }
        CHECK_EQ( logged_times( lines[i] ), 1 );
    }
    netcode_messages_destroy( m );
}

/* The edge of each limit, on the inside. */
TEST( messages_that_can_just_be_sent )
{
    static const struct send_row_t rows[] = {
        { 0, 0, 1, 1, 0.0, NETCODE_OK },     { 3, 4, 1, 1, 0.0, NETCODE_OK },  { 0, 0, 0, 0, 0.0, NETCODE_OK },
        { 0, 0, 1, 1, 9.9e299, NETCODE_OK }, { 0, 3, 1, 1, -1.0, NETCODE_OK }, { 0, 0, 1, 1180, 0.0, NETCODE_OK },
        { 0, 2, 1, 8192, 0.0, NETCODE_OK },
    };
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        struct netcode_message_t message;
        memset( &message, 0, sizeof( message ) );
        message.channel = rows[i].channel;
        message.kind = rows[i].kind;
        message.data = rows[i].data ? flow_data : NULL;
        message.bytes = rows[i].bytes;
        message.ttl_seconds = rows[i].ttl;
        CHECK_EQ( netcode_messages_send_message( m, &message ), NETCODE_OK );
        CHECK_EQ( m->queued_bytes, rows[i].bytes );
        messages_check( m );
        netcode_messages_destroy( m );
    }
}

/* ---- times ---- */

/* With a time that is none the clock stands still, and all goes on. */
TEST( messages_times_that_are_none )
{
    static const double times[] = { -1.01e16, 1.01e16, 1e300, ENDLESS, -ENDLESS, NOT_A_NUMBER };
    for ( int i = 0; i < 6; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), times[i] );
        REQUIRE( m != NULL );
        CHECK_NEAR( m->caller_time, 0.0, 1e-9 );
        netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "a", 1 );
        CHECK_EQ( messages_drain( m, times[i] ), 1 );
        CHECK_NEAR( netcode_messages_next_deadline( m ), 0.2, 2e-6 );
        netcode_messages_update( m, 5.0 );
        netcode_messages_update( m, times[i] );
        CHECK_NEAR( m->now, 5.0, 1e-9 );
        netcode_messages_reset( m, times[i] );
        CHECK_NEAR( m->caller_time, 5.0, 1e-9 );
        netcode_messages_update( m, 6.0 );
        CHECK_NEAR( m->now, 1.0, 1e-9 );
        messages_check( m );
        netcode_messages_destroy( m );
    }
}

/* However far from zero the caller's clock begins: messages arrive, in steps as small as such numbers have. Backwards it stands still. */
TEST( messages_times_at_the_edge )
{
    static const double times[] = { -1e15, -1e12, 1e12, 1e15 };
    for ( int i = 0; i < 4; i++ ) {
        struct netcode_messages_t * ends[2];
        for ( int k = 0; k < 2; k++ )
            REQUIRE( ( ends[k] = netcode_messages_create( small_config(), times[i] ) ) != NULL );
        int got = 0;
        for ( int k = 1; k < 100; k++ ) {
            CHECK_EQ( netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, flow_data, 3000 ),
                      NETCODE_OK );
            messages_talk( ends, times[i] + 0.125 * k, 0 );
            got += messages_read( ends[1] );
        }
        CHECK_GE( got, 98 );
        double now = ends[0]->now;
        CHECK_NEAR( now, 0.125 * 99, 1e-9 );
        netcode_messages_update( ends[0], times[i] - 1.0 );
        CHECK_NEAR( ends[0]->now, now, 1e-9 );
        netcode_messages_destroy( ends[0] );
        netcode_messages_destroy( ends[1] );
    }
}

/* A caller whose clock jumps back and forth: the steps forward add up, each as 30 years at most. */
TEST( messages_times_that_jump )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    for ( int i = 0; i < 200; i++ )
        netcode_messages_update( m, i & 1 ? 9.9e15 : -9.9e15 );
    CHECK_NEAR( m->now, 100e9, 1.0 );
    netcode_messages_destroy( m );
}

/* The glue passes the time of what has arrived, unless it is none. */
TEST( messages_glue_passes_the_time )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 5.0 );
    static const struct {
        double caller_time, now;
    } rows[] = { { 6.0, 1.0 }, { 5.5, 1.0 }, { 1e17, 1.0 }, { NOT_A_NUMBER, 1.0 }, { 7.0, 2.5 } };
    for ( int i = 0; i < 5; i++ ) {
        netcode_messages_pull_from_client( m, w->clients[0], rows[i].caller_time );
        CHECK_NEAR( m->now, rows[i].now, 1e-9 );
    }
    netcode_messages_pull_from_server( m, w->servers[0], 0, 8.0 );
    CHECK_NEAR( m->now, 3.5, 1e-9 ); /* the step back is no step, the steps behind it are */
    netcode_messages_pull_from_server( m, w->servers[0], 1, 9.0 ); /* a slot that the server does not have */
    netcode_server_stop( w->servers[0] );
    netcode_messages_pull_from_server( m, w->servers[0], 0, 11.0 );
    CHECK_EQ( m->session, 0 );
    CHECK_NEAR( m->now, 6.5, 1e-9 );
    netcode_messages_destroy( m );
}

/* ---- configs ---- */

struct config_row_t {
    struct netcode_messages_config_t config;
    int good;
};

/* clang-format off */
static const struct config_row_t config_rows[] = {
    { { .channels = 1 }, 1 },                         { { .channels = 32 }, 1 },
    { { .channels = 33 }, 0 },                        { { .channels = -1 }, 1 },
    { { .max_message_bytes = 1 }, 1 },                { { .max_message_bytes = 16777216 }, 1 },
    { { .max_send_message_bytes = 16777217 }, 0 },    { { .max_receive_message_bytes = 16777217 }, 0 },
    { { .max_message_bytes = 16777217 }, 0 },         { { .window_packets = 16 }, 1 },
    { { .window_packets = 15 }, 0 },                  { { .window_packets = 4096 }, 1 },
    { { .window_packets = 4097 }, 0 },                { { .max_retries = -1 }, 0 },
    { { .max_retries = 60 }, 1 },                     { { .max_retries = 61 }, 0 },
    { { .congestion = -1 }, 0 },                      { { .congestion = 2 }, 1 },
    { { .congestion = 3 }, 0 },                       { { .send_buffer_bytes = 67108864 }, 1 },
    { { .send_buffer_bytes = 67108865 }, 0 },         { { .receive_buffer_bytes = 67108864 }, 1 },
    { { .receive_buffer_bytes = 67108865 }, 0 },      { { .repeats = -1 }, 0 },
    { { .repeats = 2 }, 1 },                          { { .repeats = 3 }, 0 },
    { { .window_packets = -1 }, 1 },
};
/* clang-format on */

TEST( messages_configs_that_can_be )
{
    for ( size_t i = 0; i < sizeof( config_rows ) / sizeof( config_rows[0] ); i++ ) {
        const struct netcode_messages_config_t * config = &config_rows[i].config;
        struct netcode_messages_t * m = netcode_messages_create( config, 0.0 );
        if ( ( m != NULL ) != config_rows[i].good || ( netcode_messages_memory( config ) != 0 ) != config_rows[i].good )
            test_fail( __FILE__, __LINE__, "config %d", (int) i );
        netcode_messages_destroy( m );
    }
}

/* What the object is made of, for what it was asked. A tenth of what is sent, or more, is for its packets. */
struct layout_row_t {
    struct netcode_messages_config_t config;
    int channels, window;
    uint32_t largest, out, in;
};

/* clang-format off */
static const struct layout_row_t layout_rows[] = {
    { { .channels = 0 },                                           32, 1024, 262144, 564736, 622592 },
    { { .channels = 4, .window_packets = 17 },                      4, 32, 262144, 617216, 622592 },
    { { .window_packets = 64 },                                    32, 64, 262144, 616448, 622592 },
    { { .window_packets = 65 },                                    32, 128, 262144, 614912, 622592 },
    { { .window_packets = 4096 },                                  32, 4096, 262144, 392704, 622592 },
    { { .max_message_bytes = 1179 },                               32, 256, 1180, 85816, 100664 },
    { { .max_message_bytes = 1180 },                               32, 256, 1180, 85816, 100664 },
    { { .max_message_bytes = 1181 },                               32, 256, 1181, 85818, 100666 },
    { { .max_message_bytes = 100000, .send_buffer_bytes = 1 },     32, 512, 100000, 150000, 298304 },
    { { .max_message_bytes = 100000, .send_buffer_bytes = 160000 }, 32, 512, 100000, 150000, 298304 },
    { { .max_message_bytes = 100000, .send_buffer_bytes = 175000 }, 32, 512, 100000, 150000, 298304 },
    { { .max_message_bytes = 100000, .receive_buffer_bytes = 150000 }, 32, 1024, 100000, 240448, 150000 },
    { { .max_message_bytes = 100000, .receive_buffer_bytes = 150001 }, 32, 1024, 100000, 240448, 150001 },
    { { .max_message_bytes = 1181, .send_buffer_bytes = 32767, .receive_buffer_bytes = 32769 },
                                                                   32, 64, 1181, 32768, 32769 },
    { { .max_message_bytes = 5000000, .send_buffer_bytes = 1, .receive_buffer_bytes = 1 },
                                                                   32, 1024, 5000000, 5625000, 5625000 },
    { { .max_message_bytes = 1, .max_send_message_bytes = 5000000, .max_receive_message_bytes = 2000 },
                                                                   32, 1024, 2000, 11192144, 102304 },
};
/* clang-format on */

static size_t layout_rounded( size_t bytes )
{
    while ( bytes % 16 )
        bytes++;
    return bytes;
}

TEST( messages_default_buffers_hold_two_of_the_largest )
{
    static uint8_t data[NETCODE_MESSAGES_MAX_BYTES];
    for ( int bytes = 1; bytes <= NETCODE_MESSAGES_MAX_BYTES; bytes += bytes / 3 + 1 ) {
        struct netcode_messages_config_t config;
        netcode_default_messages_config( &config );
        config.max_message_bytes = bytes;
        struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
        REQUIRE( m != NULL );
        for ( int i = 0; i < 2; i++ )
            CHECK_EQ( netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, data, bytes ), NETCODE_OK );
        CHECK_GE( m->credit_window, 2 * nc_messages_cost( NETCODE_MESSAGE_RELIABLE, (uint32_t) bytes ) );
        netcode_messages_destroy( m );
    }
}

TEST( messages_memory_is_what_was_asked_for )
{
    for ( size_t i = 0; i < sizeof( layout_rows ) / sizeof( layout_rows[0] ); i++ ) {
        const struct layout_row_t * row = &layout_rows[i];
        struct netcode_messages_t * m = netcode_messages_create( &row->config, 0.0 );
        size_t window = (size_t) row->window, channels = (size_t) row->channels;
        size_t out = row->out, carried = window < 128 ? 512 : 4 * window, known = 4096 / 8;
        REQUIRE( m != NULL );
        CHECK_EQ( m->channel_count, row->channels );
        CHECK_EQ( m->window, row->window );
        CHECK_EQ( m->max_receive_bytes, row->largest );
        CHECK_EQ( m->max_send_bytes, row->config.max_send_message_bytes ? 5000000 : row->largest );
        CHECK_EQ( m->out.bytes, out / 8 * 8 );
        CHECK_EQ( m->in.bytes, row->in / 8 * 8 );
        CHECK_EQ( m->credit_window, row->in - ( row->in > 12 * 49152  ? row->in / 12
                                                : row->in > 4 * 49152 ? 49152
                                                                      : row->in / 4 ) );
        size_t channels_at = layout_rounded( sizeof( struct netcode_messages_t ) );
        size_t sent_at = channels_at + layout_rounded( channels * sizeof( nc_message_channel_t ) );
        size_t carried_at = sent_at + layout_rounded( window * sizeof( nc_sent_t ) );
        size_t known_at = carried_at + layout_rounded( carried * sizeof( nc_carried_t ) ), out_at = known_at + known;
        size_t in_at = out_at + layout_rounded( out );
        CHECK_EQ( (const uint8_t *) m->channels - (const uint8_t *) m, channels_at );
        CHECK_EQ( (const uint8_t *) m->sent - (const uint8_t *) m, sent_at );
        CHECK_EQ( (const uint8_t *) m->carried - (const uint8_t *) m, carried_at );
        CHECK_EQ( (const uint8_t *) m->known_ids - (const uint8_t *) m, known_at );
        CHECK_EQ( m->out.base - (const uint8_t *) m, out_at );
        CHECK_EQ( m->in.base - (const uint8_t *) m, in_at );
        CHECK_EQ( netcode_messages_memory( &row->config ), in_at + layout_rounded( row->in ) );
        for ( size_t k = 0; k < window * sizeof( nc_sent_t ); k++ ) /* what lies behind the channels is untouched */
            CHECK_EQ( ( (const uint8_t *) m->sent )[k], 0 );
        messages_check( m );
        netcode_messages_destroy( m );
    }
    CHECK_EQ( netcode_messages_memory( NULL ), netcode_messages_memory( &layout_rows[0].config ) );
}

TEST( messages_default_config_is_zeros )
{
    struct netcode_messages_config_t config, zeros;
    memset( &config, 0xa5, sizeof( config ) );
    memset( &zeros, 0, sizeof( zeros ) );
    netcode_default_messages_config( &config );
    CHECK_MEM( &config, &zeros, sizeof( config ) );
}

/* What is measured in seconds and bytes has its default too. */
TEST( messages_rates_and_pings_of_a_config )
{
    static const struct {
        int rate;
        double ping, fixed_rate, ping_seconds;
    } rows[] = { { 0, 0.0, 125000.0, 1.0 },
                 { -5, -0.1, 125000.0, 1e300 },
                 { 1, 0.25, 1.0, 0.25 },
                 { 9e6, 7.0, 9e6, 7.0 } };
    for ( int i = 0; i < 4; i++ ) {
        struct netcode_messages_config_t config = *small_config();
        config.bytes_per_second = rows[i].rate;
        config.ping_seconds = rows[i].ping;
        config.weights[2] = 9;
        config.priorities[2] = 8;
        struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
        CHECK_NEAR( m->fixed_rate, rows[i].fixed_rate, 1e-9 );
        CHECK_NEAR( m->ping_seconds / rows[i].ping_seconds, 1.0, 1e-9 );
        CHECK( m->channels[2].weight == 9 && m->channels[2].priority == 8 );
        CHECK( m->channels[3].weight == 1 && m->channels[3].priority == 0 );
        netcode_messages_destroy( m );
    }
}

/* Without a config all channels are alike. */
TEST( messages_channels_by_default )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
    for ( int i = 0; i < NETCODE_MESSAGES_CHANNELS; i++ )
        CHECK( m->channels[i].weight == 1 && m->channels[i].priority == 0 );
    netcode_messages_destroy( m );
}

/* ---- what is handed out ---- */

/* Every field is filled in, those too of which there is nothing to say. */
TEST( messages_what_is_handed_out_is_whole )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    struct craft_t craft;
    craft_begin( &craft, 0, -1, 0 );
    craft_message( &craft, 2, 3, 0, 0, "abc", 3 );
    CHECK_EQ( craft_give( &craft, m ), NETCODE_MESSAGES_DROP_NONE );
    for ( int there = 1; there >= 0; there-- ) {
        memset( &message, 0xff, sizeof( message ) );
        CHECK_EQ( netcode_messages_receive( m, &message ), there );
        CHECK( message.channel == 3 * there && message.kind == 2 * there && message.bytes == 3 * there );
        CHECK( message.receipt == 0 && !( message.ttl_seconds > 0.0 ) && ( message.data != NULL ) == there );
    }
    nc_messages_break( m, NETCODE_MESSAGES_REASON_CHANNEL );
    for ( int there = 1; there >= 0; there-- ) {
        memset( &event, 0xff, sizeof( event ) );
        CHECK_EQ( netcode_messages_event( m, &event ), there );
        CHECK_EQ( event.type, there ? NETCODE_MESSAGES_EVENT_BROKEN : NETCODE_MESSAGES_EVENT_NONE );
        CHECK_EQ( event.reason, there ? NETCODE_MESSAGES_REASON_CHANNEL : 0 );
        CHECK( event.channel == 0 && event.kind == 0 && event.bytes == 0 && event.bytes_done == 0 );
        CHECK_EQ( event.receipt, 0 );
    }
    netcode_messages_destroy( m );
}

/* A reset forgets every count. */
TEST( messages_reset_forgets_every_count )
{
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    memset( &m->stats, 0xff, sizeof( m->stats ) );
    netcode_messages_reset( m, 1.0 );
    for ( size_t i = 0; i < sizeof( m->stats ); i++ )
        CHECK_EQ( ( (const uint8_t *) &m->stats )[i], 0 );
    netcode_messages_destroy( m );
}

/* ---- memory ---- */

struct lender_t {
    size_t asked;
    void *lent, *returned;
    int refuse;
};

static void * lender_lend( void * context, size_t bytes )
{
    struct lender_t * lender = (struct lender_t *) context;
    lender->asked = bytes;
    return lender->lent = lender->refuse ? NULL : malloc( bytes );
}

static void lender_take( void * context, void * block )
{
    ( (struct lender_t *) context )->returned = block;
    free( block );
}

static void messages_memory_is_lent_said( void )
{
    struct lender_t lender = { 0, NULL, NULL, 0 };
    struct netcode_messages_config_t config = *small_config();
    config.allocator_context = &lender;
    config.allocate_function = lender_lend;
    config.free_function = lender_take;
    struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
    CHECK( m != NULL && (void *) m == lender.lent );
    CHECK_EQ( lender.asked, netcode_messages_memory( &config ) );
    netcode_messages_destroy( m );
    CHECK( lender.returned == lender.lent );
    lender.refuse = 1;
    CHECK( netcode_messages_create( &config, 0.0 ) == NULL );
    config.free_function = NULL;
    BAD( CHECK( netcode_messages_create( &config, 0.0 ) == NULL ) );
    config.allocate_function = NULL;
    config.free_function = lender_take;
    BAD( CHECK( netcode_messages_create( &config, 0.0 ) == NULL ) );
    CHECK( lender.returned != NULL );
}

TEST( messages_memory_is_lent )
{
    arguments_twice( messages_memory_is_lent_said );
}

/* ---- names ---- */

#define ARGUED_NAME( name, sentence ) #name,
#define ARGUED_TEXT( name, sentence ) sentence,

TEST( messages_reasons_have_names )
{
    static const char * const names[] = { NETCODE_MESSAGES_DROP_LIST( ARGUED_NAME ) };
    static const char * const texts[] = { NETCODE_MESSAGES_DROP_LIST( ARGUED_TEXT ) };
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ ) {
        CHECK_STR( netcode_messages_drop_reason_name( i ), names[i] );
        CHECK_STR( netcode_messages_drop_reason_text( i ), texts[i] );
    }
    CHECK_STR( netcode_messages_drop_reason_name( NETCODE_MESSAGES_DROP_BROKEN ), "BROKEN" );
    for ( int i = -1; i <= NETCODE_MESSAGES_DROP_REASONS; i += NETCODE_MESSAGES_DROP_REASONS + 1 ) {
        CHECK_STR( netcode_messages_drop_reason_name( i ), "UNKNOWN" );
        CHECK_STR( netcode_messages_drop_reason_text( i ), "UNKNOWN" );
    }
}

#undef ARGUED_NAME
#undef ARGUED_TEXT
