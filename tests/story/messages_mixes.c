/*  Story: mixes of messages. Any mix of sizes, kinds, channels and readers, over buffers from the least to the default, through
    losses, pauses and outages: every reliable message that was accepted arrives, once and as it was sent (a sequenced one unless
    a newer one was first), soon after the network heals. Each mix is drawn from a number of its own. Run: runner messages_mixes.c;
    MESSAGES_MIXES=10000 MESSAGES_MIX=1 runner messages_mixes_drain for the numbers from 1 on. */

enum { MIX_FLOWS = 5, MIX_BYTES = 262144, MIX_SECONDS = 60 };

/* Messages of one kind in one channel, numbered. */
struct mix_flow_t {
    int from, channel, kind;
    double per_second, due;
    int most_queued;   /* it sends nothing while more wait in its channel; 0: any */
    int small, large;  /* bytes */
    double large_part; /* of its messages */
    uint32_t sent;     /* messages that were accepted */
    uint32_t seen;     /* that were read, or, for ordered and sequenced ones, the number after the last */
    uint32_t * unread; /* bits of those that were accepted and not read */
    uint32_t unread_words;
};

struct mix_t {
    struct link_t link;
    struct mix_flow_t flows[MIX_FLOWS];
    int flow_count;
    double outage_end;   /* nothing arrives until then */
    double pause_end[2]; /* this end reads nothing until then */
    int is_calm;         /* no outage and no pause is drawn */
    int reads[2];        /* messages that it reads in a tick */
    uint64_t random;
};

static uint8_t mix_data[MIX_BYTES];

static double mix_real( struct mix_t * mix, double low, double high )
{
    mix->random ^= mix->random << 13;
    mix->random ^= mix->random >> 7;
    mix->random ^= mix->random << 17;
    return low + ( high - low ) * (double) ( mix->random >> 11 ) / 9007199254740992.0;
}

static int mix_below( struct mix_t * mix, int end )
{
    return (int) mix_real( mix, 0.0, end );
}

static int mix_pick( struct mix_t * mix, const int * values, int count )
{
    return values[mix_below( mix, count )];
}

static void mix_open_flow( struct mix_t * mix, struct mix_flow_t * flow,
                           const struct netcode_messages_config_t * config )
{
    static const int kinds[] = { 0, 1, 2, 3, 3, 3, 3, 4 }; /* most are ordered */
    int most = config->max_message_bytes;
    memset( flow, 0, sizeof( *flow ) );
    flow->from = mix_below( mix, 2 );
    flow->channel = mix_below( mix, config->channels );
    flow->kind = mix_pick( mix, kinds, 8 );
    flow->per_second = mix_real( mix, 1.0, mix_below( mix, 3 ) ? 60.0 : 480.0 );
    flow->small = mix_below( mix, mix_below( mix, 2 ) ? 100 : 1180 );
    flow->large_part =
        flow->kind >= 2 && mix_below( mix, 3 ) ? mix_real( mix, 0.0, mix_below( mix, 4 ) ? 0.05 : 1.0 ) : 0.0;
    flow->large = 12 + mix_below( mix, most - 11 );
}

static void mix_open( struct mix_t * mix, uint32_t number )
{
    static const int sizes[] = { 1181, 4096, 20000, 100000, MIX_BYTES };
    struct netcode_messages_config_t config;
    memset( mix, 0, sizeof( *mix ) );
    mix->random = ledger_random_state = number * 0x9E3779B97F4A7C15u + 1; /* the library's, too */
    mix_real( mix, 0.0, 1.0 );
    memset( &config, 0, sizeof( config ) );
    config.channels = 1 + mix_below( mix, 4 );
    config.max_message_bytes = mix_pick( mix, sizes, 5 );
    if ( mix_below( mix, 2 ) ) /* the least, or something above it */
        config.send_buffer_bytes = config.receive_buffer_bytes = 1 + mix_below( mix, 2 ) * mix_below( mix, 600000 );
    config.window_packets = mix_below( mix, 4 ) ? 0 : 16 << mix_below( mix, 5 );
    for ( int i = 0; i < config.channels; i++ )
        config.priorities[i] = (uint8_t) mix_below( mix, 2 );

    double loss = mix_below( mix, 4 ) ? mix_real( mix, 0.0, 0.1 ) : 0.0, delay = mix_real( mix, 0.001, 0.15 );
    link_open( &mix->link, &config, mix->random, delay, loss );
    for ( int i = 0; i < 2; i++ ) {
        struct link_way_t * way = &mix->link.ways[i];
        way->jitter = mix_below( mix, 2 ) ? mix_real( mix, 0.0, 0.05 ) : 0.0;
        way->doubles = mix_below( mix, 4 ) ? 0.0 : 0.02;
        way->bytes_per_second = mix_below( mix, 2 ) ? mix_real( mix, 20e3, 2e6 ) : 0.0;
        mix->reads[i] = mix_below( mix, 4 ) ? 1 << 30 : 1 + mix_below( mix, 20 );
    }
    mix->flow_count = 1 + mix_below( mix, 4 );
    for ( int i = 0; i < mix->flow_count; i++ )
        mix_open_flow( mix, &mix->flows[i], &config );
}

static void mix_close( struct mix_t * mix )
{
    link_close( &mix->link );
    for ( int i = 0; i < mix->flow_count; i++ )
        free( mix->flows[i].unread );
}

/* At the start of a message: its flow, its number and its size; its other bytes follow from the number. */
static void mix_send( struct mix_t * mix, int index )
{
    struct mix_flow_t * flow = &mix->flows[index];
    struct netcode_messages_channel_stats_t stats;
    netcode_messages_channel_stats( mix->link.ends[flow->from], flow->channel, &stats );
    if ( flow->most_queued && stats.queued_messages > flow->most_queued )
        return;
    int bytes = mix_real( mix, 0.0, 1.0 ) < flow->large_part ? (int) mix_real( mix, 12, flow->large ) : flow->small;
    uint32_t head[3] = { (uint32_t) index, flow->sent, (uint32_t) ( bytes < 12 ? 12 : bytes ) };
    memcpy( mix_data, head, sizeof( head ) );
    memset( mix_data + sizeof( head ), (int) ( flow->sent & 0xff ), head[2] - sizeof( head ) );
    if ( netcode_messages_send( mix->link.ends[flow->from], flow->channel, flow->kind, mix_data, (int) head[2] ) !=
         NETCODE_OK )
        return;
    if ( flow->sent / 32 >= flow->unread_words ) {
        uint32_t words = 2 * flow->unread_words + 64;
        flow->unread = (uint32_t *) realloc( flow->unread, words * sizeof( uint32_t ) );
        REQUIRE( flow->unread != NULL );
        memset( flow->unread + flow->unread_words, 0, ( words - flow->unread_words ) * sizeof( uint32_t ) );
        flow->unread_words = words;
    }
    flow->unread[flow->sent / 32] |= 1u << flow->sent % 32;
    flow->sent++;
}

static void mix_read_message( struct mix_t * mix, int end, const struct netcode_message_t * message )
{
    uint32_t head[3];
    REQUIRE( message->bytes >= 12 );
    memcpy( head, message->data, sizeof( head ) );
    REQUIRE( head[0] < (uint32_t) mix->flow_count && head[2] == (uint32_t) message->bytes );
    struct mix_flow_t * flow = &mix->flows[head[0]];
    REQUIRE( flow->from != end && head[1] < flow->sent && flow->channel == message->channel );
    for ( int i = 12; i < message->bytes; i += i < 24 ? 1 : message->bytes / 16 + 1 )
        CHECK_EQ( message->data[i], head[1] & 0xff );
    CHECK( flow->unread[head[1] / 32] >> head[1] % 32 & 1 ); /* once */
    flow->unread[head[1] / 32] &= ~( 1u << head[1] % 32 );

    int in_order = flow->kind != NETCODE_MESSAGE_UNRELIABLE && flow->kind != NETCODE_MESSAGE_RELIABLE;
    CHECK( !in_order || head[1] >= flow->seen );
    CHECK( flow->kind != NETCODE_MESSAGE_RELIABLE_ORDERED || head[1] == flow->seen );
    flow->seen = in_order ? head[1] + 1 : flow->seen + 1;
}

static void mix_read( struct mix_t * mix, int end, int most )
{
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    while ( most-- && netcode_messages_receive( mix->link.ends[end], &message ) )
        mix_read_message( mix, end, &message );
    while ( netcode_messages_event( mix->link.ends[end], &event ) )
        CHECK( !"no event was asked for, and nothing breaks" );
}

static void mix_tick( struct mix_t * mix )
{
    double now = mix->link.now;
    for ( int i = 0; i < mix->flow_count; i++ )
        for ( ; mix->flows[i].due <= now; mix->flows[i].due += 1.0 / mix->flows[i].per_second )
            mix_send( mix, i );
    if ( !mix->is_calm && now >= mix->outage_end && mix_real( mix, 0.0, 1.0 ) < 0.001 )
        mix->outage_end = now + mix_real( mix, 0.1, 3.0 );
    for ( int i = 0; i < 2; i++ ) {
        if ( !mix->is_calm && now >= mix->pause_end[i] && mix_real( mix, 0.0, 1.0 ) < 0.001 )
            mix->pause_end[i] = now + mix_real( mix, 0.1, 3.0 );
        if ( now < mix->outage_end )
            mix->link.ways[i].count = 0;
        if ( now >= mix->pause_end[i] )
            mix_read( mix, i, mix->reads[i] );
    }
    link_tick( &mix->link );
}

static int mix_is_empty( const struct mix_t * mix )
{
    return mix->link.ends[0]->out.used + mix->link.ends[1]->out.used + mix->link.ends[0]->in.used +
               mix->link.ends[1]->in.used ==
           0;
}

/* How long all takes to arrive after the network has healed: so many seconds at most, or it does not. */
static double mix_drain( struct mix_t * mix, double limit )
{
    double healed = mix->link.now;
    for ( int i = 0; i < 2; i++ ) {
        mix->link.ways[i].loss = 0.0;
        mix->link.ways[i].bytes_per_second = 0.0;
    }
    while ( !mix_is_empty( mix ) && mix->link.now - healed <= limit ) {
        mix_read( mix, 0, 1 << 30 );
        mix_read( mix, 1, 1 << 30 );
        link_tick( &mix->link );
    }
    CHECK_LE( mix->link.now - healed, limit );
    return mix->link.now - healed;
}

static double mix_run( uint32_t number )
{
    static struct mix_t mix;
    mix_open( &mix, number );
    while ( mix.link.now < MIX_SECONDS && !test_state.failures )
        mix_tick( &mix );
    double drained = mix_drain( &mix, 30.0 );
    for ( int i = 0; i < mix.flow_count; i++ )
        if ( mix.flows[i].kind == NETCODE_MESSAGE_RELIABLE || mix.flows[i].kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
            CHECK_EQ( mix.flows[i].seen, mix.flows[i].sent );
    mix_close( &mix );
    if ( test_state.failures )
        printf( "    mix %u\n", (unsigned) number );
    return drained;
}

TEST( messages_mixes_drain )
{
    int mixes = model_number( "MESSAGES_MIXES", 6 ),
        first = model_number( "MESSAGES_MIX", test_random_below( 1 << 20 ) );
    double longest = 0.0;
    for ( int i = 0; i < mixes && !test_state.failures; i++ ) {
        double drained = mix_run( (uint32_t) ( first + i ) );
        longest = drained > longest ? drained : longest;
    }
    if ( getenv( "MESSAGES_MIXES" ) )
        printf( "    %d mixes, the last drained after %.1f s at most\n", mixes, longest );
}

/* With blocks that could not move, these stopped for ever. */
TEST( messages_mixes_that_stopped )
{
    static const uint32_t numbers[] = { 191, 415, 671, 1110 };
    for ( size_t i = 0; i < sizeof( numbers ) / sizeof( numbers[0] ) && !test_state.failures; i++ )
        mix_run( numbers[i] );
}

/*  The default config, one ordered channel, 480 messages a second, 20 ms one way; one of twenty is large. With blocks that could
    not move, small ones that waited split the receiver's memory, and a large one never fitted: three of eight connections that
    lost 1 % stopped within ten minutes. */
TEST( messages_default_config_drains )
{
    static const double losses[] = { 0.0, 0.01, 0.02, 0.05 };
    static struct mix_t mix;
    struct mix_flow_t * flow = mix.flows;
    int seeds = model_number( "MESSAGES_DEFAULT_SEEDS", 1 ), seconds = seeds > 1 ? 600 : 20;
    for ( int i = 0; i < 4 * seeds && !test_state.failures; i++ ) {
        memset( &mix, 0, sizeof( mix ) );
        mix.random = ledger_random_state = (uint32_t) i * 0x9E3779B97F4A7C15u + 1;
        link_open( &mix.link, NULL, mix.random, 0.02, losses[i % 4] );
        mix.flow_count = 1;
        flow->kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
        flow->per_second = 480.0;
        flow->small = 64;
        flow->large = 260000;
        flow->large_part = 0.05;
        mix.reads[0] = mix.reads[1] = 1 << 30;
        while ( mix.link.now < seconds && !test_state.failures )
            mix_tick( &mix );
        mix_drain( &mix, 10.0 );
        CHECK_EQ( flow->seen, flow->sent );
        mix_close( &mix );
        if ( test_state.failures )
            printf( "    link %d\n", i );
    }
}

/*  A large message waits for its whole cost in credit, and small ones of four other channels spend what is granted, as fast as the
    other side reads: it begins soon all the same, with any size of theirs, over any round trip, in the smallest buffers, also with
    the lower priority. */
TEST( messages_a_large_one_begins_among_small_ones )
{
    static const int small_bytes[] = { 12, 64, 500, 1100 };
    for ( int i = 0; i < 32 && !test_state.failures; i++ ) {
        static struct mix_t mix;
        struct netcode_messages_config_t config;
        struct netcode_messages_channel_stats_t waiting;
        double longest = 0.0;
        netcode_default_messages_config( &config );
        memset( &mix, 0, sizeof( mix ) );
        config.max_message_bytes = i & 4 ? MIX_BYTES : 20000;
        config.send_buffer_bytes = 1 << 20;
        config.receive_buffer_bytes = 1;
        config.priorities[4] = (uint8_t) ( i >> 4 );
        mix.is_calm = 1;
        mix.random = ledger_random_state = (uint32_t) i * 0x9E3779B97F4A7C15u + 1;
        link_open( &mix.link, &config, mix.random, i & 8 ? 0.1 : 0.02, 0.0 );
        mix.reads[0] = mix.reads[1] = 1 << 30;
        mix.flow_count = 5;
        for ( int k = 0; k < 5; k++ ) {
            mix.flows[k].channel = k;
            mix.flows[k].kind = NETCODE_MESSAGE_RELIABLE;
            mix.flows[k].per_second = k == 4 ? 0.5 : small_bytes[i & 3] > 100 ? 480.0 : 1920.0;
            mix.flows[k].most_queued = k == 4 ? 0 : 50;
            mix.flows[k].small = k == 4 ? config.max_message_bytes : small_bytes[i & 3];
        }
        while ( mix.link.now < 20.0 && !test_state.failures ) {
            mix_tick( &mix );
            netcode_messages_channel_stats( mix.link.ends[0], 4, &waiting );
            longest = waiting.queued_seconds > longest ? waiting.queued_seconds : longest;
        }
        CHECK_LT( longest, 6.0 );
        CHECK_GE( mix.flows[4].seen, 3 );
        mix_close( &mix );
        if ( test_state.failures )
            printf( "    case %d: %.1f s\n", i, longest );
    }
}
