/*  Story: channels of messages. What waits in each, against a model that sees only what was sent and what left; and
    which is served from a server down to a client: by priority, then by weight, however long the counts have run. Run:
    runner messages_channels.c */

/* ---- what waits in each ---- */

enum { LINES_CHANNELS = 4, LINES_LENGTH = 4096 };

struct line_item_t {
    int bytes;
    double since, until;
};

/* One queue of a channel. */
struct line_t {
    struct line_item_t items[LINES_LENGTH];
    int first, end;
};

static struct {
    struct netcode_messages_t * m;
    struct line_t lines[LINES_CHANNELS][4]; /* unreliable; in order; reliable in one piece, and larger */
    uint8_t begun[65536];                   /* ids */
    struct seen_t seen;
    int most;
    double oldest;
} lines;

static struct line_t * lines_of( int channel, int kind, int bytes )
{
    return &lines.lines[channel][kind < 2 ? 0 : kind > 2 ? 1 : bytes > 1180 ? 3 : 2];
}

static void lines_send( double now )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = test_random_below( LINES_CHANNELS );
    message.kind = test_random_below( 5 );
    message.data = flow_data;
    message.bytes = test_random_below( 20 ) || message.kind < 2 ? test_random_below( 400 ) : 1500;
    message.ttl_seconds =
        message.kind != 3 && test_random_below( 3 ) == 0 ? 0.125 * ( 1 + test_random_below( 8 ) ) : 0.0;
    if ( netcode_messages_send_message( lines.m, &message ) != NETCODE_OK )
        return;
    struct line_t * line = lines_of( message.channel, message.kind, message.bytes );
    struct line_item_t * item = &line->items[line->end++ % LINES_LENGTH];
    item->bytes = message.bytes;
    item->since = now;
    item->until = message.ttl_seconds > 0.0 ? now + message.ttl_seconds : message.kind < 2 ? now + 0.5 : 1e300;
}

/* A message that has outlived its time leaves the line, wherever it stands. */
static void lines_expire( double now )
{
    for ( int i = 0; i < 4 * LINES_CHANNELS; i++ ) {
        struct line_t * line = &lines.lines[i / 4][i % 4];
        int kept = line->first;
        for ( int at = line->first; at < line->end; at++ )
            if ( line->items[at % LINES_LENGTH].until > now )
                line->items[kept++ % LINES_LENGTH] = line->items[at % LINES_LENGTH];
        line->end = kept;
    }
}

/* What left for the first time was the first in its line. */
static void lines_leave( void )
{
    for ( int i = 0; i < lines.seen.count; i++ ) {
        const struct seen_frame_t * frame = &lines.seen.frames[i];
        if ( frame->type > 1 || ( frame->kind >= 2 && lines.begun[frame->id]++ ) )
            continue;
        struct line_t * line = lines_of( frame->channel, frame->kind, frame->bytes );
        REQUIRE( line->first < line->end );
        CHECK_EQ( line->items[line->first % LINES_LENGTH].bytes, frame->bytes );
        line->first++;
    }
}

static void lines_judge( double now )
{
    for ( int i = 0; i < LINES_CHANNELS; i++ ) {
        struct netcode_messages_channel_stats_t waits;
        int count = 0, bytes = 0;
        double age = 0.0;
        for ( int k = 0; k < 4; k++ ) {
            const struct line_t * line = &lines.lines[i][k];
            count += line->end - line->first;
            for ( int at = line->first; at < line->end; at++ ) {
                double since = now - line->items[at % LINES_LENGTH].since;
                bytes += line->items[at % LINES_LENGTH].bytes;
                age = since > age ? since : age;
            }
        }
        memset( &waits, 0xff, sizeof( waits ) );
        netcode_messages_channel_stats( lines.m, i, &waits );
        CHECK_EQ( waits.queued_messages, count );
        CHECK_EQ( waits.queued_bytes, bytes );
        CHECK_NEAR( waits.queued_seconds, age, 1e-9 );
        lines.most = count > lines.most ? count : lines.most;
        lines.oldest = age > lines.oldest ? age : lines.oldest;
    }
}

/* Packets leave slowly, and are heard of at once. */
static void lines_tick( double now, int sends )
{
    netcode_messages_update( lines.m, now );
    lines_expire( now );
    lines_judge( now );
    while ( sends-- > 0 )
        lines_send( now );
    lines_judge( now );
    while ( seen_next( &lines.seen, lines.m ) > 0 ) {
        struct craft_t craft;
        lines_leave();
        craft_begin( &craft, lines.m->newest_received + 1, messages_newest( lines.m ), 0 );
        craft.data[0] = 0x13;
        craft_limit( &craft, lines.m->credit_spent + 10000, 8192 );
        CHECK_EQ( craft_give( &craft, lines.m ), NETCODE_MESSAGES_DROP_NONE );
    }
    lines_judge( now );
}

TEST( messages_channels_report_what_waits )
{
    struct netcode_messages_config_t config = *small_config();
    config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    config.bytes_per_second = 40000;
    config.priorities[0] = 1;
    config.priorities[3] = 1;
    config.weights[3] = 3;
    memset( &lines, 0, sizeof( lines ) );
    lines.m = netcode_messages_create( &config, 0.0 );
    double now = 0.0;
    for ( int i = 0; i < 1200; i++ )
        lines_tick( now += 0.015625, i / 100 % 3 == 1 ? 12 : test_random_below( 4 ) );
    CHECK_GT( lines.most, 20 );
    CHECK( lines.oldest > 0.75 );
    for ( int i = 0; i < 400; i++ )
        lines_tick( now += 0.015625, 0 );
    CHECK_EQ( lines.m->queued_bytes, 0 );
    messages_check( lines.m );
    netcode_messages_reset( lines.m, now );
    memset( lines.lines, 0, sizeof( lines.lines ) );
    lines_judge( now );
    netcode_messages_destroy( lines.m );
}

/*  What a channel has sent while others had nothing to send is no debt, however much it was, and they have no claim to as much:
    but for one message of a few fragments, two of one priority send by turns at once. */
TEST( messages_channels_that_begin_again )
{
    static const uint32_t before[] = { 0, 400000, 1u << 30, ( 1u << 31 ) - 100000, ( 1u << 31 ) + 100000, 3u << 30 };
    for ( int bulk = 0; bulk < 2; bulk++ )
        for ( int i = 0; i < 12; i++ ) {
            struct netcode_messages_config_t config = *small_config();
            struct seen_t seen;
            int counts[2] = { 0, 0 };
            config.congestion = NETCODE_MESSAGES_CONGESTION_NONE;
            struct netcode_messages_t * m = netcode_messages_create( &config, 0.0 );
            m->peer_max_bytes = 8192;
            m->credit_limit = 1u << 24;
            m->channels[i & 1].served[bulk] = UINT32_MAX - 5000 + before[i / 2];
            m->channels[1 - ( i & 1 )].served[bulk] = UINT32_MAX - 5000;
            m->channels[0].turn[bulk] = m->channels[i & 1].served[bulk];
            for ( int k = 0; k < ( bulk ? 6 : 20 ); k++ )
                netcode_messages_send( m, k & 1, NETCODE_MESSAGE_RELIABLE, flow_data, bulk ? 8000 : 1000 );
            netcode_messages_update( m, 0.1 );
            for ( int k = 0; k < 12; k++ ) {
                REQUIRE( seen_next( &seen, m ) > 0 );
                counts[seen.frames[seen.count - 1].channel]++;
            }
            CHECK_LE( counts[0] - counts[1], 5 );
            CHECK_LE( counts[1] - counts[0], 5 );
            netcode_messages_destroy( m );
        }
}

/* ---- from a server down to its clients ---- */

enum { DOWN_CHANNELS = 4 };

struct down_t {
    struct world_t * w;
    struct netcode_messages_t *server, *client;
    double got[DOWN_CHANNELS], slowest; /* bytes on each; how long the last one waited at most */
};

static void down_open( struct down_t * d, const uint8_t * priorities, const uint8_t * weights, uint32_t served )
{
    struct netcode_messages_config_t config;
    memset( d, 0, sizeof( *d ) );
    memset( &config, 0, sizeof( config ) );
    config.channels = DOWN_CHANNELS;
    config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    config.bytes_per_second = 60000;
    memcpy( config.priorities, priorities, DOWN_CHANNELS );
    memcpy( config.weights, weights, DOWN_CHANNELS );
    d->w = world_open( CLEAN, 1, 1, 1 );
    REQUIRE( world_join( d->w, 0, 100 ) );
    d->server = netcode_messages_create( &config, d->w->time );
    d->client = netcode_messages_create( &config, d->w->time );
    netcode_messages_pull_from_server( d->server, d->w->servers[0], 0, d->w->time ); /* joined: counts from here on */
    for ( int i = 0; i < DOWN_CHANNELS; i++ )
        d->server->channels[i].served[0] = served;
}

static void down_fill( struct down_t * d, int kind )
{
    struct netcode_messages_channel_stats_t waits;
    for ( int channel = 0; channel < DOWN_CHANNELS - 1; channel++ )
        for ( int k = 0; k < 12; k++ ) {
            netcode_messages_channel_stats( d->server, channel, &waits );
            if ( waits.queued_messages < 20 )
                netcode_messages_send( d->server, channel, kind, flow_data, 300 );
        }
    netcode_messages_send( d->server, DOWN_CHANNELS - 1, NETCODE_MESSAGE_RELIABLE, flow_data, 20 );
}

static void down_run( struct down_t * d, int kind, int ticks )
{
    struct netcode_message_t message;
    struct netcode_messages_channel_stats_t waits;
    for ( int i = 0; i < ticks; i++ ) {
        world_step( d->w );
        netcode_messages_pull_from_server( d->server, d->w->servers[0], 0, d->w->time );
        netcode_messages_pull_from_client( d->client, d->w->clients[0], d->w->time );
        while ( netcode_messages_receive( d->client, &message ) )
            d->got[message.channel] += message.bytes + 16;
        down_fill( d, kind );
        netcode_messages_push_to_server( d->server, d->w->servers[0], 0, d->w->time );
        netcode_messages_push_to_client( d->client, d->w->clients[0], d->w->time );
        netcode_messages_channel_stats( d->server, DOWN_CHANNELS - 1, &waits );
        d->slowest = waits.queued_seconds > d->slowest ? waits.queued_seconds : d->slowest;
    }
    messages_check( d->server );
    messages_check( d->client );
}

static void down_close( struct down_t * d )
{
    netcode_messages_destroy( d->server );
    netcode_messages_destroy( d->client );
}

/* Weights are shares, of unreliable and of reliable messages, before the count of bytes runs over and while it does. */
TEST( messages_weights_down_to_a_client )
{
    static const uint8_t priorities[] = { 1, 1, 1, 0 }, weights[] = { 1, 2, 5, 1 };
    static const uint32_t served[] = { 0, UINT32_MAX - 200000, INT32_MAX - 200000 };
    for ( int i = 0; i < 6; i++ ) {
        struct down_t d;
        down_open( &d, priorities, weights, served[i / 2] );
        down_run( &d, i & 1 ? NETCODE_MESSAGE_RELIABLE_ORDERED : NETCODE_MESSAGE_UNRELIABLE, 600 );
        double total = d.got[0] + d.got[1] + d.got[2];
        CHECK_GT( (int) total, 200000 );
        for ( int k = 0; k < 3; k++ )
            CHECK_NEAR( d.got[k] / total, weights[k] / 8.0, 0.02 );
        CHECK_GT( (int) d.got[3], 500 * 36 ); /* the better priority: one in each tick, none waits for two */
        CHECK_LT( (int) ( d.slowest * 1000.0 ), 60 );
        down_close( &d );
    }
}

/* A worse priority is served with what is left over, whatever its weight. */
TEST( messages_priorities_down_to_a_client )
{
    static const uint8_t priorities[] = { 3, 2, 4, 0 }, weights[] = { 255, 1, 255, 1 };
    struct down_t d;
    down_open( &d, priorities, weights, 0 );
    down_run( &d, NETCODE_MESSAGE_RELIABLE, 600 );
    CHECK_GT( (int) d.got[1], 50 * (int) d.got[0] );
    CHECK_GE( (int) d.got[0], (int) d.got[2] );
    CHECK_LT( (int) d.got[2], 1000 );
    CHECK_GT( (int) d.got[3], 500 * 36 );
    down_close( &d );
}

/* What a client queues before it is connected waits for the connection, and so does what it queues between two. */
TEST( messages_queued_before_the_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_messages_t * client = netcode_messages_create( small_config(), w->time );
    struct netcode_messages_t * server = netcode_messages_create( small_config(), w->time );
    for ( int round = 0; round < 2; round++ ) {
        struct netcode_message_t message;
        int read = 0;
        netcode_messages_pull_from_client( client, w->clients[0], w->time );
        CHECK_EQ( netcode_messages_send( client, 1, NETCODE_MESSAGE_RELIABLE, "early", 5 ), NETCODE_OK );
        REQUIRE( world_join( w, 0, 100 ) );
        for ( int i = 0; i < 30; i++ ) {
            world_step( w );
            netcode_messages_pull_from_server( server, w->servers[0], 0, w->time );
            netcode_messages_pull_from_client( client, w->clients[0], w->time );
            while ( netcode_messages_receive( server, &message ) )
                read += message.bytes == 5 && memcmp( message.data, "early", 5 ) == 0;
            netcode_messages_push_to_server( server, w->servers[0], 0, w->time );
            netcode_messages_push_to_client( client, w->clients[0], w->time );
        }
        CHECK_EQ( read, 1 );
        netcode_client_disconnect( w->clients[0] );
        world_run( w, 0.5 );
    }
    netcode_messages_destroy( client );
    netcode_messages_destroy( server );
}

/*  What came with the last packets of a connection can still be read when that has ended; and to the next connection nothing
    is said before the messages were asked what came. */
TEST( messages_at_the_end_of_a_connection )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_messages_t * client = netcode_messages_create( small_config(), w->time );
    struct netcode_messages_t * server = netcode_messages_create( small_config(), w->time );
    REQUIRE( world_join( w, 0, 100 ) );
    netcode_messages_push_to_client( client, w->clients[0], w->time ); /* the first one may be spoken to at once */
    CHECK_EQ( client->next_number, 1 );
    netcode_messages_pull_from_client( client, w->clients[0], w->time );
    CHECK_EQ( client->next_number, 1 );
    netcode_messages_pull_from_server( server, w->servers[0], 0, w->time );
    CHECK_EQ( netcode_messages_send( server, 1, NETCODE_MESSAGE_RELIABLE, "goodbye", 7 ), NETCODE_OK );
    netcode_messages_push_to_server( server, w->servers[0], 0, w->time );
    world_run( w, 0.3 ); /* it arrives, and is not asked for */
    netcode_server_disconnect_client( w->servers[0], 0 );
    world_run( w, 0.5 );
    CHECK_NE( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    netcode_messages_pull_from_client( client, w->clients[0], w->time );
    CHECK_EQ( messages_read( client ), 1 );
    CHECK_GE( client->newest_received, 0 );
    netcode_messages_pull_from_client( client, w->clients[0], w->time ); /* now it has ended for the messages too */
    CHECK_EQ( client->newest_received, -1 );
    REQUIRE( world_join( w, 0, 100 ) );
    netcode_messages_pull_from_client( client, w->clients[0], w->time );
    netcode_messages_push_to_client( client, w->clients[0], w->time );
    uint64_t said = client->next_number;
    CHECK_EQ( said, 1 );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.5 );
    REQUIRE( world_join( w, 0, 100 ) );
    netcode_messages_send( client, 0, NETCODE_MESSAGE_RELIABLE, "to the last one", 15 );
    netcode_messages_push_to_client( client, w->clients[0], w->time + 0.1 );
    CHECK_EQ( client->next_number, said );
    netcode_messages_pull_from_client( client, w->clients[0], w->time + 0.1 );
    CHECK( client->next_number == 0 && client->queued_bytes == 0 );
    netcode_messages_push_to_client( client, w->clients[0], w->time + 0.1 );
    CHECK_EQ( client->next_number, 1 );
    netcode_messages_destroy( client );
    netcode_messages_destroy( server );
}

/* Nothing is sent to a client that the server does not know yet, and nothing of the last one's to the next. */
TEST( messages_to_another_session_wait )
{
    static const uint8_t zeros[DOWN_CHANNELS] = { 0, 0, 0, 0 };
    struct down_t d;
    down_open( &d, zeros, zeros, 0 );
    down_run( &d, NETCODE_MESSAGE_RELIABLE, 60 );
    uint64_t said = d.server->next_number;
    CHECK_GT( (int64_t) said, 30 );
    netcode_client_disconnect( d.w->clients[0] );
    world_run( d.w, 0.5 );
    netcode_messages_push_to_server( d.server, d.w->servers[0], 0, d.w->time ); /* no client is there */
    CHECK_EQ( d.server->next_number, said );
    REQUIRE( world_join( d.w, 0, 100 ) );
    netcode_messages_push_to_server( d.server, d.w->servers[0], 0, d.w->time + 1.0 ); /* another one is */
    CHECK_EQ( d.server->next_number, said );
    netcode_messages_pull_from_server( d.server, d.w->servers[0], 0, d.w->time );
    CHECK( d.server->next_number == 0 && d.server->queued_bytes == 0 );
    netcode_messages_push_to_server( d.server, d.w->servers[0], 0, d.w->time );
    CHECK_EQ( d.server->next_number, 1 );
    down_close( &d );
}
