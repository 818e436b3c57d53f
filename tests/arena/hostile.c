/* Stories: clients and servers that send what they should not. The other side goes on, and counts it. */

static int hostile_send( int index, int channel, int kind, const uint8_t * data, int bytes )
{
    return netcode_messages_send( play.players[index].client->messages, channel, kind, data, bytes ) == NETCODE_OK;
}

static void hostile_send_commands( int index, uint32_t tick, uint32_t acked, int count, int buttons )
{
    struct arena_input_t input;
    uint8_t data[ARENA_MESSAGE_BYTES];
    memset( &input, 0, sizeof( input ) );
    input.tick = tick;
    input.acked = acked;
    input.count = count;
    for ( int i = 0; i < count; i++ )
        input.commands[i].buttons = (uint8_t) buttons;
    int bytes = arena_write_input( data, sizeof( data ), &input );
    REQUIRE( bytes > 0 );
    hostile_send( index, ARENA_COMMANDS, NETCODE_MESSAGE_UNRELIABLE, data, bytes );
}

/* Player 0 is hostile, the others are bots: they must not notice. */
static void hostile_begin( void )
{
    play_open( 8, NULL );
    play_network( 20, 0, 0, 0 );
    play_begin( 4, 1 );
    play.players[0].is_bot = 0;
    play_run( 1.0 );
    play_forget();
}

static void hostile_others_play_on( void )
{
    play_forget();
    play_run( 3.0 );
    for ( int i = 1; i < 4; i++ ) {
        const struct play_player_t * player = &play.players[i];
        CHECK( player->client->is_playing && netcode_client_state( player->net ) == NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_GT( player->ticks, 100 );
        CHECK_EQ( player->missed, 0 );
        CHECK_EQ( player->wrong_guesses, 0 );
        CHECK_EQ( player->client->corrections, 0 );
        CHECK_EQ( player->client->messages_wrong, 0 );
        CHECK( player->views == 0 || player->worst_view < 48.0 );
    }
}

/* ---- clients ---- */

/* Further ahead than any clock should be, or of ticks that never were. */
static void hostile_far_ahead( void )
{
    uint32_t tick = play.game.arena.tick;
    play_truth( 0 )->health = 100; /* the bots hunt it, and it is to stay where it is */
    hostile_send_commands( 0, tick + 2000, 0, 12, ARENA_RIGHT );
    hostile_send_commands( 0, 0xffffffffu, 0xffffffffu, 12, ARENA_RIGHT );
    hostile_send_commands( 0, 0x80000000u, 0, 1, ARENA_RIGHT );
    hostile_send_commands( 0, 0, 0, 12, ARENA_RIGHT );
    hostile_send_commands( 0, 11, 0, 12, ARENA_RIGHT ); /* its oldest would be of tick 0 */
}

TEST( hostile_commands_of_the_future )
{
    hostile_begin();
    int x = play_truth( 0 )->x;
    play.each_tick = hostile_far_ahead;
    hostile_others_play_on();
    CHECK_NEAR( (double) play.game.messages_wrong, 5 * 180, 5 * 6 );
    CHECK_EQ( play_truth( 0 )->x, x );     /* none of them was run */
    CHECK_EQ( play.players[0].missed, 0 ); /* its own were, all the time */
}

/* One that is there and acknowledges nothing: news for it pile up, until there is no room for them. It has to go. */
static void hostile_deaf_news( void )
{
    struct arena_news_t news;
    memset( &news, 0, sizeof( news ) );
    news.type = ARENA_NEWS_PICKUP;
    for ( int i = 0; i < 40; i++ )
        tell_all( &play.game, &news );
}

TEST( hostile_client_that_acknowledges_nothing )
{
    hostile_begin();
    int slot = play.players[0].client->slot;
    play.players[0].is_deaf = 1;
    play.each_tick = hostile_deaf_news;
    hostile_others_play_on();
    CHECK_EQ( netcode_client_state( play.players[0].net ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( play.game.slots[slot].session, 0 );
    const char * words = strstr( said, "takes no more messages" );
    CHECK( words != NULL && strstr( words + 1, "takes no more messages" ) == NULL ); /* once */
}

/* What is too late is too late: it is no error, and nothing of it is run. */
static void hostile_far_behind( void )
{
    uint32_t tick = play.game.arena.tick;
    play_truth( 0 )->health = 100; /* the bots hunt it, and it is to stay where it is */
    for ( uint32_t age = 0; age < 240; age += 40 )
        hostile_send_commands( 0, tick - age, 0, 1, ARENA_RIGHT );
    hostile_send_commands( 0, 12, 12, 12, ARENA_RIGHT );
}

TEST( hostile_commands_of_the_past )
{
    hostile_begin();
    int x = play_truth( 0 )->x;
    play.each_tick = hostile_far_behind;
    hostile_others_play_on();
    CHECK_EQ( play_truth( 0 )->x, x );
    CHECK_EQ( play.players[0].missed, 0 );
    CHECK_EQ( play.game.messages_wrong, 0 );
}

/* Nor do they take the place of those for ticks to come. */
TEST( hostile_late_commands_replace_none )
{
    struct arena_input_t input;
    memset( &play.game, 0, sizeof( play.game ) );
    struct slot_t * slot = &play.game.slots[0];
    for ( uint32_t tick = 200; tick < 400; tick++ ) {
        play.game.arena.tick = tick;
        for ( int late = 0; late < 2; late++ ) {
            memset( &input, 0, sizeof( input ) );
            input.tick = tick + 10 - ( late ? COMMANDS_KEPT : 0 );
            input.count = ARENA_REDUNDANCY;
            for ( int i = 0; i < ARENA_REDUNDANCY; i++ )
                input.commands[i].buttons = (uint8_t) ( late ? ARENA_LEFT : ARENA_RIGHT );
            take_commands( &play.game, slot, &input );
        }
        for ( uint32_t next = tick + 1; next <= tick + 10; next++ ) {
            CHECK_EQ( slot->command_ticks[next % COMMANDS_KEPT], next );
            CHECK_EQ( slot->commands[next % COMMANDS_KEPT].buttons, ARENA_RIGHT );
        }
    }
    CHECK_EQ( play.game.messages_wrong, 0 );
}

/* Many for one tick count once: no player is faster than the others. */
static void hostile_twice( void )
{
    for ( uint32_t i = 0; i < 8; i++ )
        hostile_send_commands( 0, play.game.arena.tick + 6 + i, 0, 12, ARENA_RIGHT );
}

TEST( hostile_commands_give_no_speed )
{
    sim_draw_map();
    play_open( 8, sim_map );
    play_network( 20, 0, 0, 0 );
    play_begin( 1, 0 );
    play_truth( 0 )->x = 1000;
    play_truth( 0 )->y = 5000;
    play.players[0].buttons = ARENA_RIGHT;
    play.each_tick = hostile_twice;
    play_run( 1.0 );
    int x = play_truth( 0 )->x;
    play_run( 1.0 );
    CHECK_LE( play_truth( 0 )->x - x, 60 * ARENA_SPEED );
}

static void hostile_ack( void )
{
    static const uint32_t offsets[] = { 0, 1, 2, 7, 30, 0xffffffffu, 0xfffffff0u };
    uint32_t tick = play.game.arena.tick;
    hostile_send_commands( 0, tick + 4, tick + offsets[tick % 7], 1, 0 );
}

/* It claims snapshots that it has not, or that were never sent: that is its own affair. */
TEST( hostile_acknowledgements )
{
    hostile_begin();
    play.each_tick = hostile_ack;
    hostile_others_play_on();
}

static void hostile_garbage( void )
{
    static const int kinds[] = { NETCODE_MESSAGE_UNRELIABLE, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED,
                                 NETCODE_MESSAGE_RELIABLE, NETCODE_MESSAGE_RELIABLE_ORDERED };
    for ( int channel = 0; channel < ARENA_CHANNELS; channel++ ) {
        uint8_t data[200];
        int bytes = 1 + test_random_below( sizeof( data ) );
        inputs_fill( data, bytes );
        data[0] = 0xff; /* no command of a tick to come, and no news */
        data[3] = 0xff;
        hostile_send( 0, channel, kinds[test_random_below( 4 )], data, bytes );
    }
}

TEST( hostile_garbage_on_each_channel )
{
    hostile_begin();
    play.each_tick = hostile_garbage;
    hostile_others_play_on();
    play.each_tick = NULL;
    play_run( 2.0 );
    CHECK_GT( play.game.messages_wrong, 4 * 180 );
}

static void hostile_flood_chat( void )
{
    for ( int i = 0; i < 20; i++ )
        arena_client_chat( play.players[0].client, "buy my things" );
}

TEST( hostile_thousand_lines_of_chat )
{
    hostile_begin();
    play.each_tick = hostile_flood_chat;
    play_run( 1.0 ); /* 20 a tick: 1200 lines */
    play.each_tick = NULL;
    hostile_others_play_on();
    play_run( 5.0 );
    CHECK_GE( play.game.chat_refused, 1000 );
    for ( int i = 1; i < 4; i++ )
        CHECK_LE( together_lines( i, 0 ), 3 + 10 );
}

TEST( hostile_news_of_other_types )
{
    hostile_begin();
    for ( int i = 1; i < 4; i++ )
        together_lines( i, -1 );
    for ( int type = 0; type < ARENA_NEWS_TYPES; type++ ) {
        struct arena_news_t news;
        uint8_t data[ARENA_MESSAGE_BYTES];
        memset( &news, 0, sizeof( news ) );
        news.type = (enum arena_news_type_t) type;
        news.player = play.players[1].client->slot; /* another one */
        strcpy( news.text, "I am not I" );
        int bytes = arena_write_news( data, sizeof( data ), &news );
        REQUIRE( bytes > 0 && hostile_send( 0, ARENA_NEWS, NETCODE_MESSAGE_RELIABLE_ORDERED, data, bytes ) );
    }
    play_run( 1.0 );
    CHECK_EQ( play.game.chat_refused, ARENA_NEWS_TYPES - 1 );
    for ( int i = 1; i < 4; i++ ) {
        struct arena_news_t news;
        int lines = 0;
        while ( arena_client_news( play.players[i].client, &news ) ) {
            CHECK( news.type != ARENA_NEWS_WELCOME && news.type != ARENA_NEWS_JOINED && news.type != ARENA_NEWS_LEFT );
            if ( news.type != ARENA_NEWS_CHAT )
                continue;
            lines++;
            CHECK_EQ( news.player,
                      play.players[0].client->slot ); /* the sender, and not the one that it claimed to be */
        }
        CHECK_EQ( lines, 1 );
    }
    hostile_others_play_on();
}

TEST( hostile_streams_to_the_server_are_refused )
{
    hostile_begin();
    struct netcode_messages_stream_t stream;
    memset( &stream, 0, sizeof( stream ) );
    stream.channel = ARENA_MAP;
    stream.bytes = ARENA_MAP_BYTES;
    stream.tag = ARENA_MAP_TAG;
    stream.context = &play.game;
    stream.read_function = read_map;
    CHECK_EQ( netcode_messages_send_stream( play.players[0].client->messages, &stream ), NETCODE_OK );
    hostile_others_play_on();
}

/* ---- servers ---- */

static void hostile_server_begin( void )
{
    play_open( 4, NULL );
    play_network( 20, 0, 0, 0 );
    play_begin( 2, 1 );
}

static struct netcode_messages_t * hostile_to( int index )
{
    return play.game.slots[play.players[index].client->slot].messages;
}

static void hostile_server_garbage( void )
{
    static const int kinds[] = { NETCODE_MESSAGE_UNRELIABLE, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED,
                                 NETCODE_MESSAGE_RELIABLE };
    for ( int channel = 0; channel < ARENA_CHANNELS; channel++ ) {
        uint8_t data[600];
        int bytes = 1 + test_random_below( sizeof( data ) );
        inputs_fill( data, bytes );
        data[0] = 0xff;
        netcode_messages_send( hostile_to( 0 ), channel, kinds[test_random_below( 3 )], data, bytes );
    }
}

TEST( hostile_server_sends_garbage )
{
    hostile_server_begin();
    struct arena_client_t * client = play.players[0].client;
    uint64_t unread = client->snapshots_unread, wrong = client->messages_wrong;
    play.each_tick = hostile_server_garbage;
    play_run( 3.0 );
    play.each_tick = NULL;
    CHECK_GT( client->snapshots_unread - unread, 100 );
    CHECK_GT( client->messages_wrong - wrong, 300 );
    play_run( 2.0 );
    uint64_t snapshots = client->snapshots;
    play_run( 1.0 );
    CHECK_GE( client->snapshots - snapshots, 25 ); /* and plays on */
    CHECK( client->is_playing );
}

/* A snapshot that is one, of any tick and with any player anywhere. */
static void hostile_send_snapshot( uint32_t tick )
{
    struct arena_snapshot_t snapshot;
    struct arena_own_t own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    inputs_draw_snapshot( &snapshot, tick );
    inputs_draw_own( &own );
    own.player.is_there = 1;
    own.player.health = 100;
    int bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, NULL, &own );
    REQUIRE( bytes > 0 );
    netcode_messages_send( hostile_to( 0 ), ARENA_SNAPSHOTS, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED, data, bytes );
}

static uint32_t hostile_tick;

static void hostile_server_ticks( void )
{
    hostile_send_snapshot( hostile_tick );
    hostile_tick += hostile_tick < 0xffffffffu;
}

/* Ticks up to the last that there is, with players in walls: the client neither hangs nor leaves its tables. */
TEST( hostile_server_at_the_end_of_all_ticks )
{
    for ( uint32_t before = 0; before < 200; before += 20 ) {
        play_close();
        hostile_server_begin();
        inputs_state = test_random() | 1;
        hostile_tick = 0xffffffffu - before;
        play.each_tick = hostile_server_ticks;
        play_run( 4.0 );
        CHECK_EQ( play.players[0].client->newest.tick, 0xffffffffu );
        CHECK( play.players[1].client->is_playing );
    }
}

static void hostile_server_leaps( void )
{
    hostile_tick += (uint32_t) test_random_below( 1000 );
    hostile_send_snapshot( hostile_tick );
}

TEST( hostile_server_whose_ticks_leap )
{
    hostile_server_begin();
    inputs_state = test_random() | 1;
    hostile_tick = 1000;
    play.each_tick = hostile_server_leaps;
    play_run( 10.0 );
    CHECK_GT( play.players[0].client->snapshots, 200 );
}

static char hostile_map[ARENA_MAP_BYTES + 1];

TEST( hostile_server_with_another_map )
{
    for ( int how = 0; how < 3; how++ ) {
        play_close();
        play_open( 4, NULL );
        play_network( 20, 0, 0, 0 );
        memcpy( hostile_map, arena_default_map, sizeof( hostile_map ) );
        hostile_map[how == 0 ? 0 : how == 1 ? 500 : ARENA_MAP_BYTES - 1] = '?';
        play.game.map_text = hostile_map;
        play_join( 0, 1 );
        play_run( 3.0 );
        const struct arena_client_t * client = play.players[0].client;
        CHECK( !client->has_map && !client->is_playing );
        CHECK_GT( client->snapshots, 50 );
        CHECK_EQ( client->commands_made, 0 );
    }
}

static void hostile_read_stream( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    (void) context;
    (void) offset;
    memset( data, '#', (size_t) bytes );
}

static int hostile_stream( uint32_t bytes, uint32_t tag )
{
    struct netcode_messages_stream_t stream;
    memset( &stream, 0, sizeof( stream ) );
    stream.channel = ARENA_MAP;
    stream.bytes = bytes;
    stream.tag = tag;
    stream.read_function = hostile_read_stream;
    return netcode_messages_send_stream( hostile_to( 0 ), &stream ) == NETCODE_OK;
}

TEST( hostile_server_with_streams_of_other_sizes )
{
    static const uint32_t sizes[] = { 1, ARENA_MAP_BYTES - 1, ARENA_MAP_BYTES + 1, 1u << 20, 0xffffffffu };
    hostile_server_begin();
    for ( int i = 0; i < 5; i++ ) {
        CHECK( hostile_stream( sizes[i], ARENA_MAP_TAG ) );
        play_run( 1.0 );
        CHECK( play.players[0].client->has_map && play.players[0].client->is_playing );
    }
    CHECK( hostile_stream( ARENA_MAP_BYTES, ARENA_MAP_TAG + 1 ) );
    play_run( 1.0 );
    CHECK_MEM( play.players[0].client->map_text, arena_default_map, ARENA_MAP_BYTES );

    CHECK( hostile_stream( ARENA_MAP_BYTES, ARENA_MAP_TAG ) ); /* a map that is none, after one that was */
    play_run( 1.0 );
    CHECK( !play.players[0].client->has_map && !play.players[0].client->is_playing );
    CHECK( netcode_client_state( play.players[0].net ) == NETCODE_CLIENT_STATE_CONNECTED );
}

/* News and shots that are not read: the newest are left out, and what is kept stays in order. */
TEST( hostile_server_with_news_that_are_not_read )
{
    hostile_server_begin();
    struct arena_client_t * client = play.players[0].client;
    struct arena_news_t news;
    struct arena_shot_t shot = { 1, ARENA_NOBODY, 80, 80 };
    uint8_t data[ARENA_MESSAGE_BYTES];
    together_lines( 0, -1 );
    while ( arena_client_shot( client, &shot ) )
        ;
    for ( int i = 0; i < 300; i++ ) {
        memset( &news, 0, sizeof( news ) );
        news.type = ARENA_NEWS_CHAT;
        snprintf( news.text, sizeof( news.text ), "%d", i );
        netcode_messages_send( hostile_to( 0 ), ARENA_NEWS, NETCODE_MESSAGE_RELIABLE_ORDERED, data,
                               arena_write_news( data, sizeof( data ), &news ) );
        netcode_messages_send( hostile_to( 0 ), ARENA_SHOTS, NETCODE_MESSAGE_UNRELIABLE, data,
                               arena_write_shot( data, sizeof( data ), &shot ) );
    }
    play_run( 2.0 );
    int count = 0;
    while ( arena_client_news( client, &news ) )
        if ( news.type == ARENA_NEWS_CHAT ) {
            CHECK_EQ( atoi( news.text ), count );
            count++;
        }
    CHECK( count > 0 && count <= ARENA_NEWS_KEPT );
    count = 0;
    while ( arena_client_shot( client, &shot ) )
        count++;
    CHECK_EQ( count, ARENA_SHOTS_KEPT );
}
