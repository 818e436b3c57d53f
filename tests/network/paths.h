/*  Paths on which outsiders found faults: bursts that last for a time, shallow and deep queues, a policer, slow links, acks over a slow way
    back, uneven ticks. Three seconds of an empty path come first, then 40 s of traffic, and 20 in which all must arrive. A datagram has
    53 bytes around its messages. `peers` quotes what others reached on the same paths, measured by others with 28 bytes around theirs: ENet
    with 64 kB of a transfer outstanding, KCP, GameNetworkingSockets (GNS) with a rate that was set to 90 % of the link by hand, yojimbo,
    RakNet, picoquic with CUBIC (QUIC) and with BBR. GNS and picoquic send from a thread of a millisecond, the others in ticks. */

#define PATH_BEGINS 3.0
#define PATH_OVERHEAD 53

typedef struct {
    int side, channel, kind, bytes;
    int per_tick; /* 0: as many as are accepted, eight waiting at most */
    double hz;    /* instead of each tick */
    int is_mixed; /* 5 % of 20 to 200 kB, the others smaller than a packet, on two channels; at most 400 are on their way */
} flow_t;

typedef struct {
    const char * name;
    path_t there, back;
    double tick, longest_tick; /* seconds; 0: 60 Hz. If there is a longest one, each tick lasts between both */
    flow_t flows[2];           /* the first one's share and time, the second one's time if there is one */
    double seconds;            /* 0: 40 */
    double tcp_begins;         /* 0: no TCP beside it */
    double tcp_ends;           /* 0: never; only messages from 15 s after that on are timed */
    int shifts;                /* the delay is eight times as long in the middle third */
    struct {
        double share, lost,
            late;       /* at least % of the rate, or kB/s without one; % at most, and p99 in ms; 0: no limit */
    } aim, now;         /* where an aim is not reached: what it must not become worse than; 0: as the aim */
    const char * peers; /* share / lost / p99; one number is the first that has a limit */
} path_row_t;

/* A running flow: messages say which they are. */
typedef struct {
    const flow_t * flow;
    uint64_t offered, accepted, received;
    double received_bytes;
    samples_t due, times;
} flowing_t;

typedef struct {
    const path_row_t * row;
    flowing_t flows[2];
    double until;
    dice_t dice;
} traffic_t;

static void flow_offer( flowing_t * it, double now )
{
    samples_add( &it->due, now );
    it->offered++;
}

/* Returns whether the message was accepted. */
static int flow_send( end_t * end, flowing_t * it, int index, dice_t * dice )
{
    const flow_t * flow = it->flow;
    int bytes = flow->bytes, channel = flow->channel;
    uint64_t head[2] = { (uint64_t) index, it->accepted };
    dice_t tried = *dice; /* a refused one is tried again as it is */
    if ( flow->is_mixed ) {
        bytes = dice_real( &tried ) < 0.05 ? 20000 + (int) ( 180000.0 * dice_real( &tried ) )
                                           : 16 + (int) ( 1085.0 * dice_real( &tried ) );
        channel = bytes < 1180 ? (int) ( 2.0 * dice_real( &tried ) ) : 0;
    }
    memcpy( large, head, sizeof( head ) );
    if ( netcode_messages_send( end->messages, channel, flow->kind, large, bytes ) != NETCODE_OK &&
         flow->kind >= NETCODE_MESSAGE_RELIABLE )
        return 0;
    it->accepted++;
    *dice = tried;
    return 1;
}

static void flow_play( end_t * end, traffic_t * traffic, int index )
{
    flowing_t * it = &traffic->flows[index];
    const flow_t * flow = it->flow;
    double now = end->world->now;
    if ( flow->side != end->link || now < PATH_BEGINS )
        return;
    if ( !flow->per_tick && flow->hz <= 0.0 ) {
        struct netcode_messages_channel_stats_t stats;
        for ( int full = 0; now < traffic->until && !full; ) {
            netcode_messages_channel_stats( end->messages, flow->channel, &stats );
            full = stats.queued_messages >= 8 || !flow_send( end, it, index, &traffic->dice );
            if ( !full )
                flow_offer( it, now );
        }
        return;
    }
    if ( now < traffic->until && flow->hz > 0.0 )
        while ( PATH_BEGINS + (double) it->offered / flow->hz <= now + 1e-9 )
            flow_offer( it, now );
    for ( int i = 0; now < traffic->until && i < flow->per_tick; i++ )
        if ( !flow->is_mixed || it->offered - it->received < 400 )
            flow_offer( it, now );
    while ( it->accepted < it->offered && flow_send( end, it, index, &traffic->dice ) )
        ;
}

static void path_play( end_t * end )
{
    traffic_t * traffic = (traffic_t *) end->context;
    const path_row_t * row = traffic->row;
    for ( int i = 0; i < 2; i++ )
        if ( traffic->flows[i].flow->bytes )
            flow_play( end, traffic, i );
    if ( row->longest_tick > 0.0 )
        end->tick = row->tick + ( row->longest_tick - row->tick ) * dice_real( &end->world->dice );
}

static void path_deliver( end_t * end, const struct netcode_message_t * message )
{
    traffic_t * traffic = (traffic_t *) end->context;
    uint64_t head[2];
    memcpy( head, message->data, sizeof( head ) );
    flowing_t * it = &traffic->flows[head[0]];
    it->received++;
    it->received_bytes += end->world->now <= traffic->until ? (double) message->bytes : 0.0;
    double due = it->due.values[head[1]], ends = traffic->row->tcp_ends;
    if ( ends <= 0.0 || due > PATH_BEGINS + ends + 15.0 )
        samples_add( &it->times, end->world->now - due );
}

typedef struct {
    double share, lost, late;
    uint64_t missing; /* of what was to arrive for sure, but for a transfer's */
} path_figures_t;

static path_figures_t path_run( const path_row_t * row, uint64_t seed )
{
    world_t world;
    traffic_t traffic;
    path_figures_t figures;
    struct netcode_messages_config_t config;
    path_t there = path_of( row->there.delay, 0.0 ), back = path_of( row->back.delay, 0.0 );
    double seconds = row->seconds > 0.0 ? row->seconds : 40.0, rate = row->there.rate + row->there.policed;
    memset( &traffic, 0, sizeof( traffic ) );
    memset( &figures, 0, sizeof( figures ) );
    memset( &config, 0, sizeof( config ) );
    config.priorities[1] = row->flows[0].channel == 1;
    world_open( &world, &there, &back, seed );
    world.overhead = PATH_OVERHEAD;
    traffic.row = row;
    traffic.until = PATH_BEGINS + seconds;
    traffic.dice.state = seed * 77;
    end_t * ends = world_messages( &world, &config, 0.0, dice_real( &world.dice ) );
    for ( int i = 0; i < 2; i++ ) {
        traffic.flows[i].flow = &row->flows[i];
        ends[i].context = &traffic;
        ends[i].prepare = path_play;
        ends[i].deliver = path_deliver;
        ends[i].tick = row->tick > 0.0 ? row->tick : NETWORK_TICK;
    }
    if ( row->tcp_begins > 0.0 )
        world_tcp( &world, PATH_BEGINS + row->tcp_begins )->end_time =
            row->tcp_ends > 0.0 ? PATH_BEGINS + row->tcp_ends : 0.0;

    world_run( &world, PATH_BEGINS - 1e-6, NULL );
    link_t * link = &world.links[0];
    memset( link->sent_to, 0, sizeof( link->sent_to ) );
    for ( int i = 0; i < 2; i++ ) {
        world.links[i].path = i ? row->back : row->there;
        world.links[i].tokens = world.links[i].path.bucket;
        world.links[i].tokens_at = world.now;
    }
    for ( int third = 1; row->shifts && third < 3; third++ ) {
        world_run( &world, PATH_BEGINS + seconds * third / 3.0, NULL );
        for ( int i = 0; i < 2; i++ )
            world.links[i].path.delay = ( third == 1 ? 8.0 : 1.0 ) * ( i ? row->back : row->there ).delay;
    }
    world_run( &world, traffic.until + 20.0, NULL );

    flowing_t * timed = &traffic.flows[row->flows[1].bytes != 0];
    double carried = traffic.flows[0].received_bytes / seconds;
    samples_sort( &timed->times );
    figures.share = rate > 0.0 ? 100.0 * carried / rate : carried / 1000.0;
    figures.lost = 100.0 * (double) link->overflowed_to[1] / (double) link->sent_to[1];
    figures.late = 1000.0 * samples_part( &timed->times, 0.99 );
    for ( int i = 0; i < 2; i++ ) {
        const flow_t * flow = traffic.flows[i].flow;
        if ( flow->kind >= NETCODE_MESSAGE_RELIABLE && ( flow->per_tick || flow->hz > 0.0 ) )
            figures.missing += traffic.flows[i].offered - traffic.flows[i].received;
        samples_free( &traffic.flows[i].due );
        samples_free( &traffic.flows[i].times );
    }
    world_close( &world );
    return figures;
}

/* The part of a game's snapshots, in %, that a queue loses beside a transfer of another connection, or beside TCP. */
static double path_neighbour( const path_t * there, const path_t * back, int beside_tcp, uint64_t seed )
{
    static const path_row_t game = {
        .flows = { { .channel = 1, .kind = NETCODE_MESSAGE_UNRELIABLE, .bytes = 1000, .per_tick = 1 } } };
    static const path_row_t transfer = { .flows = { { .kind = NETCODE_MESSAGE_RELIABLE, .bytes = 32000 } } };
    world_t world;
    traffic_t traffics[2];
    memset( traffics, 0, sizeof( traffics ) );
    world_open( &world, there, back, seed );
    world.overhead = PATH_OVERHEAD;
    for ( int i = 0; i < 2 - beside_tcp; i++ ) {
        end_t * ends = world_messages( &world, NULL, 5.0 * i, dice_real( &world.dice ) );
        traffics[i].row = i ? &transfer : &game;
        traffics[i].until = 45.0;
        for ( int k = 0; k < 2; k++ ) {
            traffics[i].flows[k].flow = &traffics[i].row->flows[k];
            ends[k].context = &traffics[i];
            ends[k].prepare = path_play;
            ends[k].deliver = path_deliver;
        }
    }
    if ( beside_tcp )
        world_tcp( &world, 5.0 );
    world_run( &world, 45.0, NULL );
    double lost = 100.0 * (double) world.links[0].overflowed_to[1] / (double) world.links[0].sent_to[1];
    for ( int i = 0; i < 4; i++ ) {
        samples_free( &traffics[i / 2].flows[i % 2].due );
        samples_free( &traffics[i / 2].flows[i % 2].times );
    }
    world_close( &world );
    return lost;
}

#define PATH_DELAY( seconds, part )    \
    {                                  \
        .delay = seconds, .loss = part \
    }
#define PATH_QUEUE( seconds, bytes, queue )                     \
    {                                                           \
        .delay = seconds, .rate = bytes, .queue_seconds = queue \
    }
#define PATH_POLICED( seconds, bytes, at_once )               \
    {                                                         \
        .delay = seconds, .policed = bytes, .bucket = at_once \
    }
#define PATH_BURSTS( part, ticks )                                 \
    {                                                              \
        .delay = 0.05, .loss = part, .burst_seconds = ticks / 60.0 \
    }
#define PATH_ORDERED .kind = NETCODE_MESSAGE_RELIABLE_ORDERED
#define PATH_TRANSFER                                                  \
    {                                                                  \
        .channel = 1, .kind = NETCODE_MESSAGE_RELIABLE, .bytes = 32000 \
    }
#define PATH_GAME( size, count )                           \
    {                                                      \
        {                                                  \
            PATH_ORDERED, .bytes = size, .per_tick = count \
        }                                                  \
    }
#define PATH_TRANSFER_AND( size, count, rate )                         \
    {                                                                  \
        PATH_TRANSFER,                                                 \
        {                                                              \
            PATH_ORDERED, .bytes = size, .per_tick = count, .hz = rate \
        }                                                              \
    }
#define PATH_TRANSFER_AND_BACK( size )                         \
    {                                                          \
        PATH_TRANSFER,                                         \
        {                                                      \
            PATH_ORDERED, .side = 1, .bytes = size, .hz = 20.0 \
        }                                                      \
    }
#define PATH_UNRELIABLE_AND( count )                                                            \
    {                                                                                           \
        { .channel = 1, .kind = NETCODE_MESSAGE_UNRELIABLE, .bytes = 1000, .per_tick = count }, \
        {                                                                                       \
            PATH_ORDERED, .bytes = 64, .per_tick = 1                                            \
        }                                                                                       \
    }
#define PATH_MIXED                                                  \
    {                                                               \
        {                                                           \
            PATH_ORDERED, .bytes = 16, .per_tick = 8, .is_mixed = 1 \
        }                                                           \
    }

/* clang-format off: a table */
static const path_row_t path_rows[] = {
    /* a burst of losses lasts for so many ticks, as a mean: in each seed the longest ones decide */
    { "2 %, bursts of 5 ticks, 1 a tick", .there = PATH_BURSTS( 0.02, 5 ), .back = PATH_BURSTS( 0.02, 5 ),
      .seconds = 400, .flows = PATH_GAME( 64, 1 ), .aim = { 0, 0, 300 },
      .peers = "KCP 259, yojimbo 225, RakNet 255, QUIC 302, BBR 299" },
    { "2 %, bursts of 5 ticks, 16 a tick", .there = PATH_BURSTS( 0.02, 5 ), .back = PATH_BURSTS( 0.02, 5 ),
      .seconds = 400, .flows = PATH_GAME( 64, 16 ), .aim = { 0, 0, 300 },
      .peers = "KCP 272, yojimbo 225, RakNet 1499, QUIC 375, BBR 469" },
    { "2 %, bursts of 20 ticks, 1 a tick", .there = PATH_BURSTS( 0.02, 20 ), .back = PATH_BURSTS( 0.02, 20 ),
      .seconds = 400, .flows = PATH_GAME( 64, 1 ), .aim = { 0, 0, 800 },
      .peers = "KCP 305, yojimbo 235, RakNet 365, QUIC 479, BBR 492" },
    { "2 %, bursts of 20 ticks, 16 a tick", .there = PATH_BURSTS( 0.02, 20 ), .back = PATH_BURSTS( 0.02, 20 ),
      .seconds = 400, .flows = PATH_GAME( 64, 16 ), .aim = { 0, 0, 800 },
      .peers = "KCP 525, yojimbo 272, RakNet 1242, QUIC 685, BBR 762" },
    { "5 %, bursts of 5 ticks, 16 a tick", .there = PATH_BURSTS( 0.05, 5 ), .back = PATH_BURSTS( 0.05, 5 ),
      .seconds = 400, .flows = PATH_GAME( 64, 16 ), .aim = { 0, 0, 420 },
      .peers = "KCP 492, yojimbo 335, QUIC 859, BBR 719" },
    { "5 %, bursts of 20 ticks, 16 a tick", .there = PATH_BURSTS( 0.05, 20 ), .back = PATH_BURSTS( 0.05, 20 ),
      .seconds = 400, .flows = PATH_GAME( 64, 16 ), .aim = { 0, 0, 1200 },
      .peers = "KCP 1615, yojimbo 875, RakNet 3639, QUIC 1642, BBR 1815" },
    { "5 %, bursts of 60 ticks, 5 a tick", .there = PATH_BURSTS( 0.05, 60 ), .back = PATH_BURSTS( 0.05, 60 ),
      .seconds = 400, .flows = PATH_GAME( 64, 5 ), .aim = { 0, 0, 8000 } },
    { "15 ms, then 120, then 15 again, a transfer", .there = PATH_QUEUE( 0.015, 1e6, 0.2 ),
      .back = PATH_DELAY( 0.015, 0 ), .shifts = 1, .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 60, 1, 250 } },
    /* a queue of a second, alone and beside TCP */
    { "1 Mbit/s, queue of 1 s", .there = PATH_QUEUE( 0.025, 125e3, 1 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 84, 0.5, 105 }, .now = { 84, 0.5, 120 },
      .peers = "ENet 86/0/1703, KCP 77/39/2314, GNS 82/0/53, RakNet 90/0/698, QUIC 90/8/3075, BBR 86/0/103" },
    { "1 Mbit/s, queue of 1 s, beside TCP", .there = PATH_QUEUE( 0.025, 125e3, 1 ), .back = PATH_DELAY( 0.025, 0 ),
      .tcp_begins = 5, .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 30, 4, 2400 }, .now = { 23, 9.5, 3200 },
      .peers = "ENet 20/12/11020, KCP 59/43/2603, GNS 76/4.5/4125, RakNet 21/0.3/11353, QUIC 77/6/3886" },
    { "1 Mbit/s, queue of 1 s, when TCP has ended", .there = PATH_QUEUE( 0.025, 125e3, 1 ),
      .back = PATH_DELAY( 0.025, 0 ), .tcp_begins = 5, .tcp_ends = 20, .flows = PATH_TRANSFER_AND( 64, 1, 0 ),
      .aim = { 0, 0, 180 } },
    { "10 Mbit/s, queue of 1 s, beside TCP", .there = PATH_QUEUE( 0.02, 1.25e6, 1 ), .back = PATH_DELAY( 0.02, 0 ),
      .tcp_begins = 5, .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 20, 2, 3000 },
      .peers = "ENet 11/3.5/9192, KCP 31/3.5/2286, GNS 58/3.3/4898, RakNet 38/1.5/2270, QUIC 28/1.5/2931" },
    { "10 Mbit/s, queue of 200 ms, a game's snapshots beside TCP", .there = PATH_QUEUE( 0.02, 1.25e6, 0.2 ),
      .back = PATH_DELAY( 0.02, 0 ), .tcp_begins = 5, .flows = PATH_UNRELIABLE_AND( 1 ), .aim = { 0, 2, 500 },
      .peers = "KCP -/2.7/831, yojimbo 2.8/498, RakNet 1.6/475, QUIC 1.2/542, BBR 1.8/492" },
    { "policer, 1 Mbit/s, 15 kB", .there = PATH_POLICED( 0.025, 125e3, 15e3 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 80, 5, 60 },
      .peers = "ENet 28/43/1409, KCP 13/60/31, GNS 82/0/42, yojimbo 43/0/31, RakNet 91/3/92, QUIC 90/19/114, BBR "
               "90/26/531" },
    /* slow links, with a game of 20 Hz */
    { "64 kbit/s, queue of 1 s", .there = PATH_QUEUE( 0.025, 8e3, 1 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 32, 0, 20 ), .aim = { 70, 3, 800 }, .now = { 60, 3, 850 },
      .peers = "GNS 70/0/448, RakNet 80/2.7/1770, BBR 80/18/8825" },
    { "128 kbit/s, queue of 1 s", .there = PATH_QUEUE( 0.025, 16e3, 1 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 32, 0, 20 ), .aim = { 80, 1, 400 }, .now = { 75, 1, 400 },
      .peers = "GNS 80/0/198, RakNet 85/0.9/1775, BBR 85/8/3564" },
    { "48 kbit/s, queue of 3 s", .there = PATH_QUEUE( 0.025, 6e3, 3 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 32, 0, 20 ), .aim = { 40, 3, 1300 } },
    { "96 kbit/s, queue of 1 s, 128 bytes at 20 Hz", .there = PATH_QUEUE( 0.025, 12e3, 1 ),
      .back = PATH_DELAY( 0.025, 0 ), .flows = PATH_TRANSFER_AND( 128, 0, 20 ), .aim = { 35, 1, 650 } },
    { "96 kbit/s, queue of 1 s, 2 % lost on the way back", .there = PATH_QUEUE( 0.025, 12e3, 1 ),
      .back = PATH_DELAY( 0.025, 0.02 ), .flows = PATH_TRANSFER_AND( 128, 0, 20 ), .aim = { 35, 1, 900 } },
    { "128 kbit/s, queue of 1 s, 64 bytes at 60 Hz", .there = PATH_QUEUE( 0.025, 16e3, 1 ),
      .back = PATH_DELAY( 0.025, 0 ), .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 35, 1, 600 } },
    { "256 kbit/s, queue of 1 s", .there = PATH_QUEUE( 0.025, 32e3, 1 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 32, 0, 20 ), .aim = { 83, 1, 250 }, .now = { 82, 1, 250 },
      .peers = "KCP 46/65/6675, GNS 82/0/114, RakNet 90/0.1/1136, QUIC 87/17/4175, BBR 90/0/986" },
    /* shallow queues: what is sent in one tick may fill 56, 56 and 59 % of the link at most */
    { "0.5 Mbit/s, queue of 10 ms", .there = PATH_QUEUE( 0.025, 62.5e3, 0.01 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 60, 5, 100 }, .now = { 20, 9, 100 },
      .peers = "GNS 79/0.1/75, RakNet 25/35/8559, BBR 75/26/442" },
    { "5 Mbit/s, queue of 10 ms", .there = PATH_QUEUE( 0.025, 625e3, 0.01 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 60, 2, 50 }, .now = { 39, 3.5, 50 },
      .peers = "KCP 1/48/98, GNS 85/0/36, yojimbo 8/0/36, RakNet 80/0.1/59, QUIC 84/5.7/70, BBR 92/0.5/75" },
    { "20 Mbit/s, queue of 10 ms", .there = PATH_QUEUE( 0.025, 2.5e6, 0.01 ), .back = PATH_DELAY( 0.025, 0 ),
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 55, 1, 45 }, .now = { 38, 1.3, 45 },
      .peers = "ENet 14/22/236, KCP 33/48/136, GNS 86/0/36, yojimbo 2/0/36, RakNet 33/0.1/70, QUIC 87/1.4/70, BBR "
               "82/0.4/42" },
    /* 64 kbit/s back: the time is a game's, in the direction of the acks */
    { "10 Mbit/s, acks over 64 kbit/s, 60 Hz", .there = PATH_QUEUE( 0.025, 1.25e6, 0.2 ),
      .back = PATH_QUEUE( 0.025, 8e3, 1 ), .flows = PATH_TRANSFER_AND_BACK( 16 ), .aim = { 92, 1, 50 },
      .now = { 91, 1, 60 },
      .peers = "ENet 52/0/52, KCP 21/0.3/5108, GNS 86/0/47, RakNet 95/0.7/52, QUIC 85/2.2/5352, BBR 57/0/302" },
    { "10 Mbit/s, acks over 64 kbit/s, 144 Hz", .there = PATH_QUEUE( 0.025, 1.25e6, 0.2 ),
      .back = PATH_QUEUE( 0.025, 8e3, 1 ), .tick = 1.0 / 144.0, .flows = PATH_TRANSFER_AND_BACK( 16 ),
      .aim = { 92, 1, 50 },
      .peers = "ENet 36/0/156, KCP 21/0.6/3028, GNS 86/0/40, RakNet 95/0.7/42, QUIC 85/2.6/4922, BBR 50/0/299" },
    /* sizes: none is a cliff */
    { "150 ms, 1180 bytes, 1 a tick", .there = PATH_DELAY( 0.15, 0 ), .back = PATH_DELAY( 0.15, 0 ),
      .flows = PATH_GAME( 1180, 1 ), .aim = { 0, 0, 175 },
      .peers = "KCP 153, yojimbo 153, RakNet 636, QUIC 1436, BBR 169" },
    { "150 ms, 1181 bytes, 1 a tick", .there = PATH_DELAY( 0.15, 0 ), .back = PATH_DELAY( 0.15, 0 ),
      .flows = PATH_GAME( 1181, 1 ), .aim = { 0, 0, 175 },
      .peers = "KCP 153, yojimbo 153, RakNet 636, QUIC 1436, BBR 169" },
    { "150 ms, 4000 bytes, 1 a tick", .there = PATH_DELAY( 0.15, 0 ), .back = PATH_DELAY( 0.15, 0 ),
      .flows = PATH_GAME( 4000, 1 ), .aim = { 0, 0, 175 }, .peers = "KCP 153, RakNet 1119, QUIC 4736, BBR 486" },
    { "50 ms, 1300 bytes, 4 a tick", .there = PATH_DELAY( 0.05, 0 ), .back = PATH_DELAY( 0.05, 0 ),
      .flows = PATH_GAME( 1300, 4 ), .aim = { 0, 0, 75 },
      .peers = "KCP 53, yojimbo 53, RakNet 169, QUIC 1003, BBR 119" },
    /* large among small, for ten minutes: kB/s */
    { "mixed sizes, 1 %", .there = PATH_DELAY( 0.03, 0.01 ), .back = PATH_DELAY( 0.03, 0.01 ), .seconds = 600,
      .flows = PATH_MIXED, .aim = { 2000, 0, 0 }, .peers = "KCP 2344, QUIC 2884, BBR 1525" },
    { "mixed sizes, 3 %", .there = PATH_DELAY( 0.03, 0.03 ), .back = PATH_DELAY( 0.03, 0.03 ), .seconds = 600,
      .flows = PATH_MIXED, .aim = { 1700, 0, 0 }, .peers = "KCP 1871, QUIC 1163, BBR 854" },
    { "mixed sizes, 5 %", .there = PATH_DELAY( 0.03, 0.05 ), .back = PATH_DELAY( 0.03, 0.05 ), .seconds = 600,
      .flows = PATH_MIXED, .aim = { 1400, 0, 0 }, .peers = "KCP 1643, QUIC 536, BBR 525" },
    /* ordered beside unreliable that fills the link */
    { "1 Mbit/s, queue of 200 ms, unreliable, 2 a tick", .there = PATH_QUEUE( 0.025, 125e3, 0.2 ),
      .back = PATH_DELAY( 0.025, 0 ), .flows = PATH_UNRELIABLE_AND( 2 ), .aim = { 80, 0, 150 },
      .peers = "GNS 64, RakNet 492, QUIC 386, BBR 92" },
    { "480 kbit/s, queue of 1 s, unreliable, 1 a tick", .there = PATH_QUEUE( 0.025, 60e3, 1 ),
      .back = PATH_DELAY( 0.025, 0 ), .flows = PATH_UNRELIABLE_AND( 1 ), .aim = { 70, 0, 200 },
      .peers = "GNS 131, RakNet 9164, QUIC 3575, BBR 136" },
    /* ticks */
    { "10 Mbit/s, 10 Hz", .there = PATH_QUEUE( 0.025, 1.25e6, 0.2 ), .back = PATH_DELAY( 0.025, 0 ), .tick = 0.1,
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 60, 1, 350 } },
    { "10 Mbit/s, 30 Hz", .there = PATH_QUEUE( 0.025, 1.25e6, 0.2 ), .back = PATH_DELAY( 0.025, 0 ), .tick = 1.0 / 30.0,
      .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 80, 1, 150 } },
    { "10 Mbit/s, 128 Hz", .there = PATH_QUEUE( 0.025, 1.25e6, 0.2 ), .back = PATH_DELAY( 0.025, 0 ),
      .tick = 1.0 / 128.0, .flows = PATH_TRANSFER_AND( 64, 1, 0 ), .aim = { 90, 1, 100 } },
    { "10 Mbit/s, 3 %, ticks of 5 to 60 ms",
      .there = { .delay = 0.025, .loss = 0.03, .rate = 1.25e6, .queue_seconds = 0.2 },
      .back = PATH_DELAY( 0.025, 0.03 ), .tick = 0.005, .longest_tick = 0.06, .flows = PATH_TRANSFER_AND( 64, 1, 0 ),
      .aim = { 60, 1, 250 } },
};
/* clang-format on */
