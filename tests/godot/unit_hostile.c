/* Peers that break the rules: plain C over netcode.h, with a valid token. */

TEST( a_malformed_message_ends_its_own_connection_only )
{
    world_open( 2 );
    for ( int i = 0; i < MALFORMED; i++ ) {
        world_raw();
        raw_send_bytes( &world.raw, CHANNEL_RELIABLE, malformed[i].bytes, malformed[i].count );
        world_run( 2.5 );
        if ( netcode_client_state( world.raw.client ) == NETCODE_CLIENT_STATE_CONNECTED )
            test_fail( __FILE__, __LINE__, "still connected: %s", malformed[i].title );
        CHECK_STR( world.raw.goodbye, "it sent a malformed message" );
        CHECK_EQ( world.server.malformed, i + 1 );
        world_close_raw();
        world_run( 0.2 );
    }
    CHECK_EQ( world.clients[0].status + world.clients[1].status, 2 * MULTIPLAYER_CONNECTED );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, 0 ), MALFORMED );
    CHECK_EQ( world.server_seen.num_known, 2 );
}

TEST( a_source_can_not_be_forged_and_impossible_targets_go_nowhere )
{
    uint8_t frame[16] = { FRAME_DATA };
    world_open( 2 );
    world_raw();
    /* In the server's own format: "from client 0". It is read as "to client 0". */
    frame_write_number( frame + 1, ID( 0 ) );
    memcpy( frame + 5, "forged", 6 );
    raw_send_bytes( &world.raw, CHANNEL_RELIABLE, frame, 11 );
    const int32_t targets[] = { world.raw.id, 2, INT32_MAX, 0x01000000 };
    for ( size_t i = 0; i < sizeof( targets ) / sizeof( targets[0] ); i++ )
        raw_send( &world.raw, targets[i], CHANNEL_RELIABLE, "nowhere", 7 );
    world_run( 1.0 );
    CHECK_EQ( seen_text( SEEN_BY( 0 ), world.raw.id, "forged" ), 1 );
    CHECK_EQ( seen_text( SEEN_BY( 0 ), 0, "forged" ), 1 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), 0, "forged" ) + seen_text( &world.server_seen, 0, "forged" ), 0 );
    CHECK_EQ( seen_text( &world.server_seen, 0, "nowhere" ) + seen_text( SEEN_BY( 0 ), 0, "nowhere" ) +
                  world.raw.received,
              0 );
    CHECK_EQ( world.server.unroutable, 4 );
    CHECK_EQ( netcode_client_state( world.raw.client ), NETCODE_CLIENT_STATE_CONNECTED );
}

TEST( a_flood_is_relayed_no_faster_than_allowed )
{
    static uint8_t large[8000];
    world_open( 2 );
    world_raw();
    int sent = 0, before = SEEN_BY( 0 )->num_packets;
    for ( int i = 0; i < 4 * TICKS_PER_SECOND; i++ ) {
        for ( int k = 0; k < 3; k++ )
            sent += raw_send( &world.raw, ID( 0 ), CHANNEL_RELIABLE, large, (int) sizeof( large ) );
        world_send( &world.clients[1], ID( 0 ), CHANNEL_RELIABLE, "hello", 5, MULTIPLAYER_OK );
        world_step();
    }
    CHECK_GT( sent, 60 );
    int flood = 0, honest = seen_text( SEEN_BY( 0 ), ID( 1 ), "hello" );
    for ( int i = before; i < SEEN_BY( 0 )->num_packets; i++ )
        flood += SEEN_BY( 0 )->packets[i].from == world.raw.id;
    /* the first second's credit, four more seconds of it, and one message beyond */
    CHECK_LE( flood, 5 * MULTIPLAYER_RELAY_BYTES_PER_SECOND / (int) sizeof( large ) + 1 );
    CHECK_GT( flood, 10 );
    CHECK_GT( honest, 4 * TICKS_PER_SECOND - 20 );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTED );
}

/* What is too large for another client harms no one: it is not delivered there. */
TEST( no_client_can_end_another_one_by_a_large_packet )
{
    static uint8_t large[3000] = "large";
    world_open( 2 );
    world.max_packet_bytes = 1200;
    REQUIRE_EQ( world_join_as( 2, 102 ), MULTIPLAYER_OK );
    world_run( 1.0 );
    for ( int channel = 0; channel < CHANNELS; channel++ ) {
        world_send( &world.clients[0], ID( 2 ), channel, large, (int) sizeof( large ), MULTIPLAYER_OK );
        world_send( &world.clients[0], 0, channel, large, (int) sizeof( large ), MULTIPLAYER_OK );
    }
    world_send( &world.clients[0], ID( 2 ), CHANNEL_RELIABLE, "small", 5, MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_EQ( world.clients[2].status, MULTIPLAYER_CONNECTED );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_PEER_DISCONNECTED, 0 ), 0 );
    CHECK_EQ( seen_text( SEEN_BY( 2 ), ID( 0 ), "large" ), 0 );
    CHECK_EQ( seen_text( SEEN_BY( 2 ), ID( 0 ), "small" ), 1 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), ID( 0 ), "large" ), CHANNELS );
    CHECK_EQ( world.server.too_large, 2 * CHANNELS );
    char text[1024];
    multiplayer_report( &world.server, text, sizeof( text ) );
    CHECK( strstr( text, "max_packet_bytes" ) != NULL );
    /* The server's own must not get lost in silence. */
    world_send( &world.server, ID( 2 ), CHANNEL_RELIABLE, large, (int) sizeof( large ), MULTIPLAYER_NO_MEMORY );
    world_run( 1.0 );
    CHECK_EQ( world.clients[2].status, MULTIPLAYER_DISCONNECTED );
}

/*  As long as a new client has not sent its limit, no other can send to it: what is too large could neither be
    delivered nor be dropped. */
TEST( no_client_can_end_a_new_one_by_large_packets )
{
    static uint8_t large[3000] = "large";
    world_open( 2 );
    world.max_packet_bytes = 1200;
    for ( int delay = 0; delay < 16; delay++ ) {
        REQUIRE_EQ( world_join_as( 2, 200 + (uint64_t) delay ), MULTIPLAYER_OK );
        for ( int i = 0; i < delay; i++ )
            world_step();
        world_send( &world.clients[0], 0, CHANNEL_RELIABLE, large, (int) sizeof( large ), MULTIPLAYER_OK );
        world_run( 1.0 );
        world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "small", 5, MULTIPLAYER_OK );
        world_run( 1.0 );
        if ( world.clients[2].status != MULTIPLAYER_CONNECTED || seen_text( SEEN_BY( 2 ), ID( 0 ), "small" ) != 1 )
            test_fail( __FILE__, __LINE__, "%d ticks later: status %d, \"%s\"", delay, world.clients[2].status,
                       world.clients[2].why );
        CHECK_EQ( seen_text( SEEN_BY( 2 ), ID( 0 ), "large" ), 0 );
        multiplayer_close( &world.clients[2] );
        world_run( 0.5 );
    }
    CHECK_EQ( seen_text( SEEN_BY( 1 ), ID( 0 ), "large" ), 16 );
}

TEST( a_client_that_reads_nothing_is_disconnected_and_holds_up_no_other )
{
    static uint8_t large[60000];
    world_open( 2 );
    world_raw();
    int32_t id = world.raw.id;
    world.raw.deaf = 1;
    int full = 0;
    for ( int i = 0; i < 120; i++ ) {
        world.server.target = 0;
        world.server.channel = CHANNEL_RELIABLE;
        full += multiplayer_put( &world.server, large, (int) sizeof( large ) ) == MULTIPLAYER_NO_MEMORY;
        world_run( 0.1 );
    }
    world_run( 2.0 );
    CHECK_EQ( full, 1 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, id ), 1 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, id ), 1 );
    CHECK_LE( netcode_client_state( world.raw.client ), 0 );
    CHECK_EQ( SEEN_BY( 0 )->num_packets, 120 );
    CHECK_EQ( SEEN_BY( 1 )->num_packets, 120 );
}

/* All buffers full at once: each disconnect is announced to others that are full as well. */
TEST( everyone_can_be_too_slow_at_once )
{
    static uint8_t large[60000];
    struct multiplayer_t * server = &world.server;
    world_open( PEERS );
    server->target = 0;
    server->channel = CHANNEL_RELIABLE;
    int failed = 0;
    for ( int i = 0; i < 120; i++ )
        failed += multiplayer_put( server, large, (int) sizeof( large ) ) != MULTIPLAYER_OK;
    CHECK_GT( failed, 0 );
    world_run( 5.0 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, 0 ), PEERS );
    CHECK_EQ( netcode_server_num_connected_clients( server->server ), 0 );
    for ( int i = 0; i < PEERS; i++ )
        CHECK_EQ( world.clients[i].status, MULTIPLAYER_DISCONNECTED );
}

TEST( an_engine_that_does_not_read_loses_nothing_reliable )
{
    static uint8_t large[40000];
    world_open( 1 );
    world.idle_reader = 1;
    for ( int i = 0; i < 60; i++ ) {
        world_send( &world.clients[0], 1, CHANNEL_RELIABLE, large, (int) sizeof( large ), MULTIPLAYER_OK );
        world_run( 0.1 );
    }
    world_run( 5.0 );
    CHECK_LE( world.server.queue_tail, world.server.queue_capacity );
    CHECK( world.server.queue_packets > 20 && world.server.queue_packets < 60 );
    world.idle_reader = 0;
    world_run( 10.0 );
    CHECK_EQ( world.server_seen.num_packets, 60 );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTED );
}

TEST( random_messages_harm_no_other )
{
    world_open( 2 );
    for ( int round = 0; round < 20; round++ ) {
        world_raw();
        for ( int i = 0; i < 50; i++ ) {
            uint8_t noise[600];
            int count = test_random_below( (int) sizeof( noise ) );
            for ( int k = 0; k < count; k++ )
                noise[k] = (uint8_t) test_random_below( k == 0 && i < 40 ? 1 : 256 );
            raw_send_bytes( &world.raw, test_random_below( CHANNELS ), noise, count );
        }
        world_run( 0.5 );
        world_close_raw();
    }
    world_run( 4.0 );
    CHECK_EQ( world.server_seen.num_known, 2 );
    world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "still here", 10, MULTIPLAYER_OK );
    world_run( 0.5 );
    CHECK_EQ( seen_text( &world.server_seen, ID( 0 ), "still here" ), 1 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), ID( 0 ), "still here" ), 1 );
}

/* ---- a hostile server ---- */

struct hostile_t {
    const char * title;
    int channel, count;
    uint8_t bytes[40];
    int connects; /* the client gets as far as that */
};

/* The id 5 in HELLO; others are 6 and 7. */
#define HOSTILE_HELLO       \
    {                       \
        1, 1, 1, 5, 0, 0, 0 \
    }

static const struct hostile_t hostiles[] =
    { { "no HELLO, but data", CHANNEL_RELIABLE, 6, { 0, 1, 0, 0, 0, 9 }, 0 },
      { "noise", CHANNEL_RELIABLE, 8, { 77, 1, 2, 3, 4, 5, 6, 7 }, 0 },
      { "an id that is the server's", CHANNEL_RELIABLE, 7, { 1, 1, 1, 1, 0, 0, 0 }, 0 },
      { "another version", CHANNEL_RELIABLE, 7, { 1, 9, 1, 5, 0, 0, 0 }, 0 },
      { "a second HELLO", CHANNEL_RELIABLE, 7, HOSTILE_HELLO, 1 },
      { "the client itself as another", CHANNEL_RELIABLE, 5, { 2, 5, 0, 0, 0 }, 1 },
      { "a peer twice", CHANNEL_RELIABLE, 9, { 2, 6, 0, 0, 0, 6, 0, 0, 0 }, 1 },
      { "a peer removed that is not there", CHANNEL_RELIABLE, 5, { 3, 7, 0, 0, 0 }, 1 },
      { "control on an unreliable channel", CHANNEL_UNRELIABLE, 5, { 2, 6, 0, 0, 0 }, 1 } };

/* A server of the same protocol that sends a HELLO, if asked for, and then these bytes. 1 if the client was in. */
static int hostile_server( const struct hostile_t * hostile )
{
    struct netcode_server_config_t config;
    struct netcode_event_t event;
    struct netcode_messages_config_t messages;
    const uint8_t hello[] = HOSTILE_HELLO;
    int was_in = 0;
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = 7;
    memcpy( config.private_key, world.key, NETCODE_KEY_BYTES );
    config.network_simulator = world.network;
    struct netcode_server_t * server = netcode_server_create( "127.0.0.1:40000", &config, world.time );
    REQUIRE( server != NULL );
    netcode_server_start( server, 2 );
    netcode_default_messages_config( &messages );
    messages.channels = CHANNELS;
    struct netcode_messages_t * slot = netcode_messages_create( &messages, world.time );
    REQUIRE_EQ( world_join_as( 0, 100 ), MULTIPLAYER_OK );
    for ( int i = 0; i < 14 * TICKS_PER_SECOND; i++ ) {
        world_step();
        netcode_server_update( server, world.time );
        while ( netcode_server_next_event( server, &event ) )
            if ( event.type == NETCODE_EVENT_CONNECTED ) {
                netcode_messages_pull_from_server( slot, server, 0, world.time );
                if ( hostile->connects )
                    netcode_messages_send( slot, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, hello, (int) sizeof( hello ) );
            }
        was_in |= world.clients[0].status == MULTIPLAYER_CONNECTED;
        if ( i == TICKS_PER_SECOND && hostile->count > 0 )
            netcode_messages_send( slot, hostile->channel, raw_kind( hostile->channel ), hostile->bytes,
                                   hostile->count );
        netcode_messages_pull_from_server( slot, server, 0, world.time );
        netcode_messages_push_to_server( slot, server, 0, world.time );
    }
    netcode_messages_destroy( slot );
    netcode_server_destroy( server );
    return was_in;
}

TEST( a_hostile_server_ends_its_own_connection_only )
{
    for ( size_t i = 0; i < sizeof( hostiles ) / sizeof( hostiles[0] ); i++ ) {
        int was_in = hostile_server( &hostiles[i] );
        if ( was_in != hostiles[i].connects || world.clients[0].status != MULTIPLAYER_DISCONNECTED ||
             strstr( world.clients[0].why, "malformed" ) == NULL )
            test_fail( __FILE__, __LINE__, "%s: in %d, status %d, \"%s\"", hostiles[i].title, was_in,
                       world.clients[0].status, world.clients[0].why );
        CHECK_EQ( seen_event( SEEN_BY( 0 ),
                              hostiles[i].connects ? MULTIPLAYER_SERVER_DISCONNECTED : MULTIPLAYER_CONNECTION_FAILED,
                              0 ),
                  1 );
        multiplayer_close( &world.clients[0] );
    }
}

TEST( a_server_that_gives_no_id_is_given_up )
{
    const struct hostile_t silent = { "nothing", 0, 0, { 0 }, 0 };
    CHECK_EQ( hostile_server( &silent ), 0 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_CONNECTION_FAILED, 0 ), 1 );
    CHECK( strstr( world.clients[0].why, "no peer id" ) != NULL );
}

/* It may be late, or early: no reason to end the connection. The engine must not see it. */
TEST( packets_of_unknown_peers_do_not_reach_the_engine )
{
    const struct hostile_t unknown = { "a packet of an unknown peer", CHANNEL_UNRELIABLE, 6, { 0, 9, 0, 0, 0, 7 }, 1 };
    CHECK_EQ( hostile_server( &unknown ), 1 );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTED );
    CHECK_EQ( SEEN_BY( 0 )->num_packets, 0 );
    CHECK_EQ( world.clients[0].unroutable, 1 );
}
