/*  Story: lives of messages. What an outsider tried and found: messages that arrive with the end of their connection,
    peers that are silent, clocks that step back, slow ticks, deadlines at which nothing can be done. Run: runner
    messages_lives.c */

/*  The last messages of a connection arrive in the same update as its end, and are heard; the next connection begins
    anew. */
TEST( messages_last_words_are_heard )
{
    struct glue_t g;
    uint32_t heard = 0;
    glue_open( &g, CLEAN, 1 );
    for ( int round = 0; round < 2; round++ ) {
        heard = 0;
        REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
        CHECK( glue_say( g.slots[0], 9, 0 ) );
        netcode_messages_push_to_server( g.slots[0], g.w->servers[0], 0, g.w->time );
        netcode_server_disconnect_client( g.w->servers[0], 0 );
        world_run( g.w, 0.5 );
        CHECK_LE( netcode_client_state( g.w->clients[0] ), 0 );
        netcode_messages_pull_from_client( g.clients[0], g.w->clients[0], g.w->time );
        glue_hear( g.clients[0], 9, &heard );
        CHECK_EQ( heard, 1 );
        netcode_messages_pull_from_client( g.clients[0], g.w->clients[0], g.w->time );
        CHECK_EQ( g.clients[0]->newest_received, -1 );
    }
    glue_close( &g );
}

/* A whole connection comes and goes while the messages are not asked: its numbers do not count in the next one. */
TEST( messages_of_a_connection_that_was_slept_through )
{
    struct glue_t g;
    uint32_t heard = 0;
    glue_open( &g, CLEAN, 1 );
    world_connect( g.w, 0, 100 );
    for ( int i = 0; i < 500 && world_slot( g.w, 0, 100 ) < 0; i++ )
        world_step( g.w );
    world_run( g.w, 0.5 );
    netcode_messages_pull_from_server( g.slots[0], g.w->servers[0], 0, g.w->time );
    CHECK( glue_say( g.slots[0], 9, 0 ) );
    netcode_messages_push_to_server( g.slots[0], g.w->servers[0], 0, g.w->time );
    netcode_server_disconnect_client( g.w->servers[0], 0 );
    world_run( g.w, 0.5 );
    netcode_messages_pull_from_client( g.clients[0], g.w->clients[0], g.w->time );
    glue_hear( g.clients[0], 9, &heard );
    CHECK_EQ( heard, 1 );
    REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
    heard = 0;
    for ( uint32_t i = 0; i < 20; i++ ) {
        CHECK( glue_say( g.slots[0], 9, i ) );
        glue_run( &g, 0.1 );
        glue_hear( g.clients[0], 9, &heard );
    }
    CHECK_EQ( heard, 20 );
    glue_close( &g );
}

/* A client that is back, and sends before it receives: nothing that was meant for the last connection leaves. */
TEST( messages_of_the_last_connection_do_not_leave )
{
    struct glue_t g;
    glue_open( &g, CLEAN, 1 );
    REQUIRE_EQ( glue_connect( &g, 0, 100 ), 0 );
    netcode_client_disconnect( g.w->clients[0] );
    world_run( g.w, 0.5 );
    CHECK( glue_say( g.clients[0], 8, 0 ) ); /* it has not been notified yet */
    REQUIRE( world_join( g.w, 0, 100 ) );
    uint64_t sent = g.clients[0]->stats.packets_sent;
    for ( int i = 0; i < 30; i++ ) {
        netcode_messages_push_to_client( g.clients[0], g.w->clients[0], g.w->time );
        world_step( g.w );
        netcode_messages_pull_from_server( g.slots[0], g.w->servers[0], 0, g.w->time );
    }
    CHECK_EQ( g.clients[0]->stats.packets_sent, sent );
    CHECK_EQ( messages_read( g.slots[0] ), 0 );
    glue_run( &g, 0.5 );
    CHECK_EQ( messages_read( g.slots[0] ), 0 );
    CHECK_GT( g.clients[0]->stats.packets_sent, 0 );
    glue_close( &g );
}

/* max_retries holds where nothing at all is acknowledged: nothing is called lost there. */
TEST( messages_a_silent_peer_is_given_up )
{
    for ( int bulk = 0; bulk < 2; bulk++ )
        for ( int kind = NETCODE_MESSAGE_RELIABLE; kind <= NETCODE_MESSAGE_RELIABLE_SEQUENCED; kind++ ) {
            struct flow_t f;
            struct netcode_messages_config_t config = *small_config();
            struct netcode_messages_event_t event;
            memset( &event, 0, sizeof( event ) );
            uint8_t packet[NETCODE_MAX_PACKET_SIZE];
            config.max_retries = 5;
            config.window_packets = 1024; /* nothing is lost because it can not be remembered any more */
            flow_open( &f, &config );
            flow_run( &f, 0.5, 0 );
            CHECK_EQ( flow_send( &f, kind, bulk ? 5000 : 10, 0.0, 9 ), NETCODE_OK );
            double begin = f.now;
            while ( f.now < begin + 60.0 && !netcode_messages_event( f.ends[0], &event ) ) {
                netcode_messages_update( f.ends[0], f.now += 1.0 / 60.0 );
                while ( netcode_messages_generate_packet( f.ends[0], packet, (int) sizeof( packet ) ) )
                    ;
            }
            CHECK_EQ( event.type, kind == NETCODE_MESSAGE_RELIABLE_ORDERED ? NETCODE_MESSAGES_EVENT_BROKEN
                                                                           : NETCODE_MESSAGES_EVENT_LOST );
            CHECK( f.now > begin + 1.0 && f.now < begin + 30.0 );
            CHECK_EQ( flow_stats( &f, 0 ).reliable_timeouts_total, 1 );
            flow_close( &f );
        }
}

/* One side says what it has, whatever the other thinks of it. */
static void lives_talk( struct flow_t * f, int from )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    netcode_messages_update( f->ends[from], f->now += 1.0 / 120.0 );
    while ( ( bytes = netcode_messages_generate_packet( f->ends[from], packet, (int) sizeof( packet ) ) ) > 0 )
        netcode_messages_process_packet( f->ends[!from], packet, bytes );
}

/*  Larger than the other side takes, and queued before it could say so: reported, counted, and an order never has a
    hole. */
TEST( messages_too_large_and_ordered )
{
    for ( int bytes = 3000; bytes <= 5000; bytes += 2000 ) {
        struct flow_t f;
        struct netcode_messages_config_t smaller = *small_config();
        struct netcode_messages_event_t event;
        memset( &event, 0, sizeof( event ) );
        smaller.max_message_bytes = 4000;
        flow_open( &f, small_config() );
        netcode_messages_destroy( f.ends[1] );
        f.ends[1] = netcode_messages_create( &smaller, 0.0 );
        CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, bytes, 0.0, 0 ), NETCODE_OK );
        CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, 10, 0.0, 0 ), NETCODE_OK );
        for ( int i = 0; i < 240; i++ )
            lives_talk( &f, i % 2 );
        CHECK_EQ( netcode_messages_event( f.ends[0], &event ), bytes > 4000 );
        CHECK_EQ( event.type, bytes > 4000 ? NETCODE_MESSAGES_EVENT_BROKEN : NETCODE_MESSAGES_EVENT_NONE );
        CHECK_EQ( messages_read( f.ends[1] ), bytes > 4000 ? 0 : 2 );
        CHECK_EQ( flow_stats( &f, 0 ).messages_expired, bytes > 4000 ? 1 : 0 );
        flow_close( &f );
    }
}

/* The caller's clock steps back by an hour, and forward again: what is in flight goes on as if nothing had been. */
TEST( messages_clocks_that_step_back )
{
    static const double steps[] = { -3600.0, -0.02, -1e6 };
    for ( size_t i = 0; i < sizeof( steps ) / sizeof( steps[0] ); i++ ) {
        struct flow_t f;
        int said = 0, heard = 0;
        flow_open( &f, small_config() );
        for ( int tick = 0; tick < 600; tick++ ) {
            f.now += tick == 200 ? steps[i] : 0.0;
            said += tick < 500 && flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, 20, 0.0, 0 ) == NETCODE_OK;
            flow_run( &f, 0.01, tick % 10 == 0 );
            heard += messages_read( f.ends[1] );
            double deadline = netcode_messages_next_deadline( f.ends[0] );
            CHECK( deadline >= f.now && deadline <= f.now + 3600.0 );
        }
        CHECK_EQ( said, 500 );
        CHECK_EQ( heard, said );
        flow_close( &f );
    }
}

/* FIXED keeps its rate however rare ticks are, and is not faster for it. */
TEST( messages_slow_ticks_keep_the_rate )
{
    static const int rates[] = { 5, 10, 20, 60, 128 };
    for ( size_t i = 0; i < sizeof( rates ) / sizeof( rates[0] ); i++ ) {
        struct flow_t f;
        struct netcode_messages_config_t config;
        netcode_default_messages_config( &config );
        config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
        config.bytes_per_second = 50000;
        config.window_packets = 256;
        flow_open( &f, &config );
        messages_talk( f.ends, f.now += 1.0 / rates[i], 0 );
        CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 100000, 0.0, 9 ), NETCODE_OK );
        double begin = f.now;
        while ( f.now < begin + 20.0 && !flow_event( &f, 9, NETCODE_MESSAGES_EVENT_ACKED ) )
            messages_talk( f.ends, f.now += 1.0 / rates[i], 0 );
        CHECK( f.now - begin > 1.7 && f.now - begin < 2.6 );
        flow_close( &f );
    }
}

/*  Three minutes of transfers that follow one another without a gap, so that the queue at the bottleneck is never empty by
    itself: a sender that fills the path does not take its own queue for the path's length, and add another to it. What else
    is sent waits no longer in the last half minute than in the first. */
TEST( messages_transfers_know_their_own_queue )
{
    static uint8_t file[200000];
    struct netcode_messages_config_t config;
    struct netcode_message_t message;
    struct link_t link;
    double longest[2] = { 0.0, 0.0 }, said;
    int heard[2] = { 0, 0 };
    netcode_default_messages_config( &config );
    link_open( &link, &config, 1, 0.025, 0.0 );
    link.ways[0].bytes_per_second = 250000.0;
    link.ways[0].queue_seconds = 2.0;
    while ( link.now < 180.0 ) {
        while ( netcode_messages_send( link.ends[0], 1, NETCODE_MESSAGE_RELIABLE, file, (int) sizeof( file ) ) ==
                NETCODE_OK )
            ;
        memcpy( file, &link.now, sizeof( link.now ) );
        CHECK_EQ( netcode_messages_send( link.ends[0], 0, NETCODE_MESSAGE_UNRELIABLE, file, 64 ), NETCODE_OK );
        link_tick( &link );
        while ( netcode_messages_receive( link.ends[1], &message ) ) {
            int late = link.now > 150.0;
            if ( message.channel != 0 || ( !late && link.now > 30.0 ) )
                continue;
            memcpy( &said, message.data, sizeof( said ) );
            longest[late] = link.now - said > longest[late] ? link.now - said : longest[late];
            heard[late]++;
        }
    }
    CHECK( heard[0] > 1700 && heard[1] > 1700 );
    CHECK( longest[1] <= longest[0] + 1e-6 && longest[1] < 0.12 );
    link_close( &link );
}

/* The other side takes no more: deadlines do not ask for work that can not be done. And what expires has a deadline. */
TEST( messages_deadlines_do_not_poll )
{
    struct flow_t f;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int wakes = 0;
    flow_open( &f, small_config() );
    flow_run( &f, 0.5, 0 );
    while ( flow_send( &f, NETCODE_MESSAGE_RELIABLE_ORDERED, 1000, 0.0, 0 ) == NETCODE_OK )
        flow_run( &f, 0.1, 0 );
    for ( double end = f.now + 10.0; f.now < end; wakes++ ) {
        double next = netcode_messages_next_deadline( f.ends[0] );
        f.now = next > f.now ? next : f.now + 0.001;
        netcode_messages_update( f.ends[0], f.now );
        while ( netcode_messages_generate_packet( f.ends[0], packet, (int) sizeof( packet ) ) )
            ;
    }
    CHECK( wakes > 5 && wakes < 300 ); /* two a probe */
    flow_close( &f );
}

TEST( messages_what_expires_has_a_deadline )
{
    struct flow_t f;
    flow_open( &f, small_config() );
    flow_run( &f, 0.5, 0 );
    messages_talk( f.ends, f.now += 0.01, 1 );
    CHECK_EQ( flow_send( &f, NETCODE_MESSAGE_RELIABLE, 5000, 0.05, 7 ), NETCODE_OK );
    messages_hold( f.ends[0] ); /* the rate allows nothing for a long time */
    double wanted = f.now + 0.05, next = netcode_messages_next_deadline( f.ends[0] );
    while ( next < wanted - 1e-6 && f.now < wanted ) {
        netcode_messages_update( f.ends[0], f.now = next );
        next = netcode_messages_next_deadline( f.ends[0] );
        if ( next <= f.now )
            next = f.now + 0.001;
    }
    CHECK_NEAR( next, wanted, 2e-6 );
    netcode_messages_update( f.ends[0], next );
    CHECK_EQ( flow_event( &f, 7, NETCODE_MESSAGES_EVENT_LOST ), 1 );
    flow_close( &f );
}

/* No packet is longer than the core can carry. */
TEST( messages_packets_that_are_too_long )
{
    static uint8_t packet[70000];
    struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
    struct craft_t craft;
    for ( int i = 0; i < 2; i++ ) {
        craft_begin( &craft, i, -1, 0 );
        memcpy( packet, craft.data, (size_t) craft_bytes( &craft ) );
        for ( int at = craft_bytes( &craft ); at < NETCODE_MAX_PACKET_SIZE + i; at += 5 ) { /* pings */
            memset( packet + at, 0, 5 );
            packet[at] = 0x0f;
        }
        int bytes = craft_bytes( &craft ) + ( NETCODE_MAX_PACKET_SIZE - craft_bytes( &craft ) ) / 5 * 5 + 5 * i;
        CHECK_EQ( netcode_messages_process_packet( m, packet, bytes ),
                  i ? NETCODE_MESSAGES_DROP_HEADER : NETCODE_MESSAGES_DROP_NONE );
    }
    CHECK_EQ( netcode_messages_process_packet( m, packet, (int) sizeof( packet ) ), NETCODE_MESSAGES_DROP_HEADER );
    netcode_messages_destroy( m );
}
