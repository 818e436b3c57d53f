/*  Story: mixes of messages. Any mix of sizes, kinds, channels and readers, over buffers from the least to the default, through
    losses, pauses and outages: all that was accepted arrives, once and as it was sent, soon after the network heals. Each mix is
    drawn from a number of its own. Run: runner messages_mixes.c; MESSAGES_MIXES=10000 MESSAGES_MIX=1 for the numbers from 1 on. */

enum { MIX_FLOWS = 4, MIX_BYTES = 262144, MIX_SECONDS = 60 };

/* Messages of one kind in one channel, numbered. */
struct mix_flow_t {
    int from, channel, kind;
    double per_second, due;
    int small, large;    /* bytes */
    double large_part;   /* of its messages */
    uint32_t sent, seen; /* accepted; read, or the next number if it is ordered */
    uint32_t * unread;   /* of an unordered one: bits of those that were accepted and not read */
    uint32_t unread_words;
};

struct mix_t {
    struct link_t link;
    struct mix_flow_t flows[MIX_FLOWS];
    int flow_count;
    double outage_end;   /* nothing arrives until then */
    double pause_end[2]; /* this end reads nothing until then */
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
    mix->flow_count = 1 + mix_below( mix, MIX_FLOWS );
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
    int bytes = mix_real( mix, 0.0, 1.0 ) < flow->large_part ? (int) mix_real( mix, flow->large / 13, flow->large )
                                                             : flow->small;
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
    if ( now >= mix->outage_end && mix_real( mix, 0.0, 1.0 ) < 0.001 )
        mix->outage_end = now + mix_real( mix, 0.1, 3.0 );
    for ( int i = 0; i < 2; i++ ) {
        if ( now >= mix->pause_end[i] && mix_real( mix, 0.0, 1.0 ) < 0.001 )
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

/* How long all takes to arrive after the network has healed; 1e9: it does not. */
static double mix_drain( struct mix_t * mix )
{
    double healed = mix->link.now;
    for ( int i = 0; i < 2; i++ ) {
        mix->link.ways[i].loss = 0.0;
        mix->link.ways[i].bytes_per_second = 0.0;
    }
    for ( ; mix->link.now < healed + 60.0; link_tick( &mix->link ) ) {
        mix_read( mix, 0, 1 << 30 );
        mix_read( mix, 1, 1 << 30 );
        if ( mix_is_empty( mix ) )
            return mix->link.now - healed;
    }
    return 1e9;
}

static double mix_run( uint32_t number )
{
    static struct mix_t mix;
    mix_open( &mix, number );
    while ( mix.link.now < MIX_SECONDS && !test_state.failures )
        mix_tick( &mix );
    double drained = mix_drain( &mix );
    CHECK_LT( drained, 30.0 );
    for ( int i = 0; i < mix.flow_count; i++ )
        if ( mix.flows[i].kind == NETCODE_MESSAGE_RELIABLE || mix.flows[i].kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
            CHECK_EQ( mix.flows[i].seen, mix.flows[i].sent );
    mix_close( &mix );
    return drained;
}

/*  The default config, one ordered channel, 480 messages a second, 20 ms one way; one of twenty is large. With blocks that could
    not move, small ones that waited split the receiver's memory, and a large one never fitted. */
static void mix_run_default( uint32_t number, double loss, double seconds )
{
    static struct mix_t mix;
    struct mix_flow_t * flow = mix.flows;
    memset( &mix, 0, sizeof( mix ) );
    mix.random = ledger_random_state = number * 0x9E3779B97F4A7C15u + 1;
    link_open( &mix.link, NULL, mix.random, 0.02, loss );
    mix.flow_count = 1;
    flow->kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    flow->per_second = 480.0;
    flow->small = 64;
    flow->large = 260000;
    flow->large_part = 0.05;
    mix.reads[0] = mix.reads[1] = 1 << 30;
    while ( mix.link.now < seconds && !test_state.failures )
        mix_tick( &mix );
    CHECK_LT( mix_drain( &mix ), 10.0 );
    CHECK_EQ( flow->seen, flow->sent );
    mix_close( &mix );
}

TEST( messages_mixes_drain_in_one_channel )
{
    static const double losses[] = { 0.0, 0.01, 0.02, 0.05 };
    int seeds = model_number( "MESSAGES_MIXES", 1 ), seconds = seeds > 1 ? 600 : 20;
    for ( int i = 0; i < 4 * seeds && !test_state.failures; i++ )
        mix_run_default( (uint32_t) i, losses[i % 4], seconds );
}

TEST( messages_mixes_drain )
{
    int mixes = model_number( "MESSAGES_MIXES", 6 ),
        first = model_number( "MESSAGES_MIX", test_random_below( 1 << 20 ) );
    double longest = 0.0;
    for ( int i = 0; i < mixes && !test_state.failures; i++ ) {
        double drained = mix_run( (uint32_t) ( first + i ) );
        longest = drained > longest ? drained : longest;
        if ( test_state.failures )
            printf( "    mix %d\n", first + i );
    }
    if ( getenv( "MESSAGES_MIXES" ) )
        printf( "    %d mixes, the last drained after %.1f s at most\n", mixes, longest );
}
