/*  Paths: what both sides measure of a connection, by probes in keep-alives and by the sequences of packets.
    examples/docs/PATHS.md. */

/* ---- a world in steps of a millisecond, whose packets are written down ---- */

enum { PATH_SEQUENCES = 1 << 16 };

static struct {
    uint64_t first; /* sequence to the server */
    uint8_t lost[PATH_SEQUENCES];
    double loss;
} walk;

static int path_hook( struct world_t * w, const struct world_datagram_t * d )
{
    int type = d->data[0] & 15;
    uint64_t sequence = get( d->data + 1, d->data[0] >> 4 );
    if ( !same_address( &d->from, &w->client_addresses[0] ) || type < NETCODE_PACKET_KEEP_ALIVE )
        return 0;
    if ( !walk.first )
        walk.first = sequence;
    REQUIRE( sequence - walk.first < PATH_SEQUENCES );
    walk.lost[sequence - walk.first] = test_random_below( 100000 ) < (int) ( walk.loss * 1e5 );
    return walk.lost[sequence - walk.first];
}

static struct world_t * path_world( float latency, float jitter, double loss )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    memset( &walk, 0, sizeof( walk ) );
    walk.loss = loss;
    w->step = 0.001;
    w->net->latency_milliseconds = latency;
    w->net->jitter_milliseconds = jitter;
    w->hook = path_hook;
    REQUIRE( world_join( w, 0, 5 ) );
    return w;
}

static struct netcode_server_client_stats_t path_slot( struct world_t * w, int slot )
{
    struct netcode_server_client_stats_t stats;
    netcode_server_client_stats( w->servers[0], slot, &stats );
    return stats;
}

/* ---- round trips ---- */

/* Both sides within 2 ms of what the network does, also beside payloads and where they are the only packets. */
TEST( paths_round_trips )
{
    static const float latencies[] = { 0.0f, 5.0f, 40.0f, 150.0f, 700.0f };
    int i, step, payloads;
    for ( i = 0; i < 5; i++ )
        for ( payloads = 0; payloads < 2; payloads++ ) {
            double way = 2.0 * (double) latencies[i] / 1000.0;
            struct world_t * w = path_world( latencies[i], 0.0f, 0.0 );
            for ( step = 0; step < 8000; step++ ) {
                world_step( w );
                if ( payloads && step % 17 == 0 )
                    client_send( w, 0, 20, step ), server_send( w, 0, 0, 20, step );
                client_drain( w, 0 ), server_drain( w, 0, 0 );
            }
            struct netcode_client_stats_t client = client_stats( w, 0 );
            struct netcode_server_client_stats_t slot = path_slot( w, 0 );
            CHECK_NEAR( client.round_trip_seconds, way, 0.0025 );
            CHECK_NEAR( slot.round_trip_seconds, way, 0.0025 );
            CHECK_NEAR( client.round_trip_lowest_seconds, way, 0.0025 );
            CHECK_NEAR( slot.round_trip_lowest_seconds, way, 0.0025 );
            CHECK_LE( client.round_trip_variation_seconds * 1000.0, 500.0 * way + 2.0 );
            CHECK_LE( slot.round_trip_variation_seconds * 1000.0, 500.0 * way + 2.0 );
            CHECK( slot.round_trip_seconds > 0.0 && client.round_trip_seconds > 0.0 );
            CHECK_GE( server_stats( w, 0 ).probes_sent, 7 );
            CHECK_GE( server_stats( w, 0 ).probes_answered + 2, server_stats( w, 0 ).probes_sent );
            world_close( w );
        }
}

/* The smoothed one follows a change within ten seconds, the lowest stays, and the variation shows it. */
TEST( paths_round_trips_that_change )
{
    struct world_t * w = path_world( 20.0f, 0.0f, 0.0 );
    world_run( w, 10.0 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, 0.04, 0.002 );
    w->net->latency_milliseconds = 100.0f;
    world_run( w, 3.0 );
    CHECK( client_stats( w, 0 ).round_trip_variation_seconds > 0.03 );
    world_run( w, 30.0 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, 0.2, 0.004 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 0.2, 0.004 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_lowest_seconds, 0.04, 0.002 );
    CHECK( client_stats( w, 0 ).round_trip_variation_seconds < 0.005 );
}

/* A peer that knows nothing of probes is asked once a second, and the statistics stay 0. Its session is not disturbed. */
TEST( paths_foreign_peers )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    int i;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    CHECK_EQ( p.probes, 0 ); /* before the client has confirmed, the numbers of a keep-alive are used */
    for ( i = 0; i < 500; i++ ) {
        if ( i % 10 == 0 )
            puppet_keep_alive( &p );
        puppet_step( &p );
    }
    CHECK_NEAR( p.probes, 5, 1 );
    CHECK_NEAR( p.keep_alives + p.probes, 50, 2 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 0.0, 0.0 );
    CHECK_EQ( server_stats( w, 0 ).probes_answered, 0 );
    CHECK_EQ( netcode_server_client_connected( w->servers[0], 0 ), 1 );
}

/* Any number with the top bit set is a probe, and comes back at once, unchanged; but not more than 4, and 20 a second. */
TEST( paths_probes_are_answered )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t body[8];
    int i, sent = 0, before;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_keep_alive( &p );
    puppet_step( &p );
    for ( i = 0; i < 200; i++ ) {
        uint64_t value = test_random() | (uint64_t) 1 << 63;
        uint8_t * at = body;
        put( &at, value, 8 );
        before = p.probes;
        world_run( w, 0.06 );
        puppet_poll( &p );
        before = p.probes;
        puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
        world_step( w ); /* at once: in the update that receives it */
        puppet_poll( &p );
        sent += p.probe == value && p.probes >= before + 1;
    }
    CHECK_GE( sent, 190 ); /* sometimes a probe of the server follows in the same update */
    before = p.probes;
    for ( i = 0; i < 300; i++ ) { /* ten each step, for three seconds */
        int k;
        for ( k = 0; k < 10; k++ ) {
            uint8_t * at = body;
            put( &at, test_random() | (uint64_t) 1 << 63, 8 );
            puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
        }
        puppet_step( &p );
    }
    CHECK_LE( p.probes - before, 4 + 60 + 4 );
    CHECK_GE( p.probes - before, 55 );
    memset( body, 0xff, 8 ), body[7] = 0x7f; /* no probe */
    world_run( w, 1.0 );
    puppet_poll( &p );
    before = p.probes;
    puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
    world_step( w );
    puppet_poll( &p );
    CHECK_LE( p.probes - before, 1 );
    CHECK( p.probe != get( body, 8 ) );
}

/* Neither does a client answer more of a server's: it would send as much as the server wants. */
TEST( paths_a_client_answers_few_probes )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r;
    uint8_t body[8], out[64];
    int i, second, mark;
    REQUIRE( world_joins( w, 0, 5, &r ) );
    uint64_t sequence = w->servers[0]->memory.slot[0].sequence + 1000;
    for ( second = 0; second < 3; second++ ) {
        mark = w->records.count;
        for ( i = 0; i < 100; i++ ) {
            uint8_t * at = body;
            put( &at, test_random() | (uint64_t) 1 << 63, 8 );
            int bytes = wire_seal( out, NETCODE_PACKET_KEEP_ALIVE, sequence++, 0, r.to_client_key, body, 8 );
            world_inject( w, &w->server_addresses[0], &w->client_addresses[0], out, bytes );
            world_run( w, 0.01 );
        }
        i = (int) world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_KEEP_ALIVE, 0 );
        CHECK_LE( i, 4 + 20 + 11 );
        CHECK_GE( i, 20 );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/* An echo that comes late, or twice, or was never asked for in this form, is not answered: two sides would go on for ever. */
TEST( paths_late_echoes_end )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct puppet_t p;
    uint8_t body[8], *at = body;
    int i, answers = 0;
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    for ( i = 0; i < 30 && !p.probes; i++ ) {
        puppet_keep_alive( &p );
        puppet_step( &p );
    }
    REQUIRE( p.probes > 0 );
    put( &at, p.probe, 8 );
    for ( i = 0; i < 50; i++ ) {
        uint64_t own = p.probe;
        world_run( w, 0.15 ); /* from the second on, too late as well */
        puppet_poll( &p );
        p.probe = own;
        puppet_send( &p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
        p.probe = 0;
        puppet_step( &p );
        answers += p.probe == get( body, 8 );
        p.probe = own;
    }
    CHECK_EQ( answers, 0 );
    CHECK_EQ( server_stats( w, 0 ).probes_answered, 1 );
}

/* Two seconds after it was sent, a probe's echo measures nothing. */
TEST( paths_echoes_are_good_for_two_seconds )
{
    struct world_t * w = path_world( 990.0f, 0.0f, 0.0 );
    world_run( w, 10.0 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, 1.98, 0.004 );
    w->net->latency_milliseconds = 1010.0f;
    world_run( w, 10.0 );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, 1.98, 0.004 );
    CHECK_NEAR( path_slot( w, 0 ).round_trip_seconds, 1.98, 0.004 );
}

/* What waited in the socket while the application did not update measures nothing either. */
TEST( paths_round_trips_while_asleep )
{
    struct world_t * w = path_world( 20.0f, 0.0f, 0.0 );
    struct netcode_client_t * client = w->clients[0];
    double lowest;
    int i;
    world_run( w, 5.0 );
    lowest = client_stats( w, 0 ).round_trip_seconds;
    for ( i = 0; i < 1000 && !client->probe.values[0]; i++ )
        world_step( w );
    REQUIRE( client->probe.values[0] != 0 );
    w->clients[0] = NULL;
    world_run( w, 3.0 );
    w->clients[0] = client;
    world_step( w );
    CHECK_NEAR( client_stats( w, 0 ).round_trip_seconds, lowest, 0.002 );
}

/* ---- losses and reordering ---- */

static void path_talk( struct world_t * w, int steps )
{
    int step;
    for ( step = 0; step < steps; step++ ) {
        world_step( w );
        if ( step % 10 == 0 )
            client_send( w, 0, 20, step );
        server_drain( w, 0, 0 );
    }
}

/* What arrives while nobody reads is dropped before it is opened, and not lost on its way. */
TEST( paths_what_is_not_opened_is_not_lost )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    REQUIRE( world_join( w, 0, 5 ) );
    for ( int i = 0; i < 4000; i++ ) {
        client_send( w, 0, 20, i );
        if ( i % 4 == 3 )
            world_step( w );
    }
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 3000 );
    CHECK_EQ( path_slot( w, 0 ).packets_lost, 0 );
    CHECK_NEAR( path_slot( w, 0 ).loss_share, 0.0, 0.0 );
}

/* Nor is it where the first packets of all, or more than a window at once, are not opened. */
TEST( paths_what_is_not_opened_at_once_is_not_lost )
{
    static const struct {
        int quota, at_once, read;
        int reason;
    } rows[] = { { 4, 4, 0, NETCODE_DROP_QUEUE_FULL },
                 { 4, 900, 0, NETCODE_DROP_QUEUE_FULL },
                 { 0, 900, 1, NETCODE_DROP_OVER_SHARE } };
    for ( int row = 0; row < 3; row++ ) {
        struct world_t * w = world_new( CLEAN );
        w->server_config.packet_quota = rows[row].quota;
        world_add_server( w, 4 );
        world_add_client( w );
        REQUIRE( world_join( w, 0, 5 ) );
        for ( int i = 0; i < 300 * rows[row].at_once && i < 20000; i++ ) {
            client_send( w, 0, 20, i );
            if ( i % rows[row].at_once == rows[row].at_once - 1 )
                world_step( w );
            if ( rows[row].read )
                server_drain( w, 0, 0 );
        }
        CHECK_GE( server_drops( w, 0, rows[row].reason ), 500 );
        CHECK_EQ( path_slot( w, 0 ).packets_lost, 0 );
        CHECK_NEAR( path_slot( w, 0 ).loss_share, 0.0, 0.0 );
        world_close( w );
    }
}

/* Exactly those that were lost, of all that have left the window. */
TEST( paths_losses_are_counted )
{
    static const double losses[] = { 0.0, 0.01, 0.05, 0.2, 0.6 };
    int i;
    for ( i = 0; i < 5; i++ ) {
        struct world_t * w = path_world( 30.0f, 0.0f, losses[i] );
        uint64_t newest, last, s, first = walk.first, lost = 0, recent = 0;
        struct netcode_server_client_stats_t slot;
        path_talk( w, 20000 );
        newest = w->servers[0]->memory.slot[0].replay.newest;
        last = ( newest / 64 - ( NC_REPLAY_WORDS - 1 ) ) * 64; /* the first that is in the window yet */
        while ( walk.lost[first - walk.first] )
            first++;
        for ( s = first; s < last; s++ ) {
            lost += walk.lost[s - walk.first];
            recent += s >= last - 256 ? walk.lost[s - walk.first] : 0;
        }
        slot = path_slot( w, 0 );
        CHECK_EQ( slot.packets_lost, lost );
        CHECK_NEAR( slot.loss_share, (double) recent / 256.0, 1e-9 );
        CHECK_EQ( slot.packets_reordered, 0 );
        if ( losses[i] < 0.5 )
            CHECK_NEAR( (double) slot.packets_lost / (double) ( last - first ), losses[i], 0.035 );
        world_close( w );
    }
}

/* The client counts what the server sends, in the same way. */
TEST( paths_losses_of_the_server )
{
    struct world_t * w = path_world( 10.0f, 0.0f, 0.0 );
    int step;
    w->hook = NULL;
    for ( step = 0; step < 20000; step++ ) {
        world_step( w );
        if ( step == 10000 )
            w->net->packet_loss_percent = 10.0f;
        if ( step % 5 == 0 )
            server_send( w, 0, 0, 20, step );
        client_drain( w, 0 );
        if ( step == 9999 )
            CHECK_EQ( client_stats( w, 0 ).packets_lost, 0 );
    }
    CHECK_NEAR( client_stats( w, 0 ).loss_share, 0.1, 0.06 );
    CHECK_NEAR( (double) client_stats( w, 0 ).packets_lost, 0.1 * ( 2000.0 - 350.0 ), 60.0 );
}

/* What arrives behind a newer one is reordered, and not lost. */
TEST( paths_reordering_is_counted )
{
    struct world_t * w = path_world( 30.0f, 25.0f, 0.0 );
    path_talk( w, 20000 );
    CHECK_EQ( path_slot( w, 0 ).packets_lost, 0 );
    CHECK_GE( path_slot( w, 0 ).packets_reordered, 200 );
    CHECK_LE( path_slot( w, 0 ).packets_reordered, 1900 );
    CHECK_NEAR( path_slot( w, 0 ).loss_share, 0.0, 0.0 );
}

/* The responses that follow the one that connected are no losses, however long the path. */
TEST( paths_responses_are_no_losses )
{
    struct world_t * w = path_world( 400.0f, 0.0f, 0.0 );
    path_talk( w, 20000 );
    CHECK_EQ( path_slot( w, 0 ).packets_lost, 0 );
    CHECK_EQ( client_stats( w, 0 ).packets_lost, 0 );
}
