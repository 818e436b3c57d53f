/* Peers that keep the rules. */

TEST( a_client_joins_and_both_sides_hear_of_it_in_order )
{
    world_serve( 4, 0 );
    CHECK_EQ( world.server.unique_id, 1 );
    CHECK_EQ( world.server.status, MULTIPLAYER_CONNECTED );
    REQUIRE_EQ( world_join_as( 0, 100 ), MULTIPLAYER_OK );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTING );
    CHECK_EQ( ID( 0 ), MULTIPLAYER_UNKNOWN_ID );
    world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "early", 5, MULTIPLAYER_INACTIVE );
    world_run( 1.0 );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTED );
    CHECK( ID( 0 ) > 1 && ID( 0 ) < MULTIPLAYER_UNKNOWN_ID );
    REQUIRE_EQ( SEEN_BY( 0 )->num_events, 2 );
    CHECK_EQ( SEEN_BY( 0 )->events[0].type, MULTIPLAYER_PEER_CONNECTED );
    CHECK_EQ( SEEN_BY( 0 )->events[0].peer, 1 );
    CHECK_EQ( SEEN_BY( 0 )->events[1].type, MULTIPLAYER_CONNECTION_SUCCEEDED );
    REQUIRE_EQ( world.server_seen.num_events, 1 );
    CHECK_EQ( world.server_seen.events[0].peer, ID( 0 ) );
    struct multiplayer_slot_t * slot = multiplayer_slot( &world.server, ID( 0 ) );
    REQUIRE( slot != NULL );
    CHECK_EQ( netcode_server_client_id( world.server.server, multiplayer_slot_index( &world.server, slot ) ), 100 );
}

TEST( clients_are_notified_of_each_other_and_of_those_that_leave )
{
    world_open( 4 );
    for ( int i = 0; i < 4; i++ )
        for ( int k = 0; k < 4; k++ )
            CHECK_EQ( seen_event( SEEN_BY( i ), MULTIPLAYER_PEER_CONNECTED, ID( k ) ), i != k );
    int32_t gone = ID( 2 );
    multiplayer_close( &world.clients[2] );
    world_run( 1.0 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, gone ), 1 );
    world_send( &world.clients[0], gone, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.server, gone, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
}

TEST( targets_are_those_that_engines_name )
{
    world_open( 3 );
    const struct {
        int from; /* -1: the server */
        int32_t target;
        int to_server, to[3];
        const char * text;
    } rows[] = { { -1, 0, 0, { 1, 1, 1 }, "server to all" },
                 { -1, ID( 1 ), 0, { 0, 1, 0 }, "server to one" },
                 { -1, -ID( 1 ), 0, { 1, 0, 1 }, "server to all but one" },
                 { -1, -1, 0, { 1, 1, 1 }, "server to all but itself" },
                 { 0, 1, 1, { 0, 0, 0 }, "client to server" },
                 { 0, 0, 1, { 0, 1, 1 }, "client to all" },
                 { 0, ID( 2 ), 0, { 0, 0, 1 }, "client to client" },
                 { 0, -ID( 2 ), 1, { 0, 1, 0 }, "client to all but one" },
                 { 0, -1, 0, { 0, 1, 1 }, "client to all but the server" } };
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct multiplayer_t * from = rows[i].from < 0 ? &world.server : &world.clients[rows[i].from];
        int32_t id = from->unique_id;
        for ( int channel = 0; channel < CHANNELS; channel++ ) {
            char text[16];
            snprintf( text, sizeof( text ), "%d.%d;", (int) i, channel );
            world_send( from, rows[i].target, channel, text, (int) strlen( text ), MULTIPLAYER_OK );
            world_run( 0.3 );
            CHECK_EQ( seen_text( &world.server_seen, id, text ), rows[i].to_server );
            for ( int k = 0; k < 3; k++ )
                if ( seen_text( SEEN_BY( k ), id, text ) != rows[i].to[k] ||
                     seen_text( SEEN_BY( k ), 0, text ) != rows[i].to[k] )
                    test_fail( __FILE__, __LINE__, "%s, channel %d, client %d", rows[i].text, channel, k );
        }
    }
    for ( int i = 0; i < SEEN_BY( 1 )->num_packets; i++ )
        CHECK_EQ( SEEN_BY( 1 )->packets[i].channel, SEEN_BY( 1 )->packets[i].first[2] - '0' );
    for ( int i = 0; i < 3; i++ )
        CHECK_EQ( world.clients[i].unroutable, 0 ); /* no client gets back what it sent to all */
    world_send( &world.clients[0], ID( 0 ), CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.clients[0], INT32_MIN, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.server, 1, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.server, 0, CHANNEL_RELIABLE, "x", 0, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.server, 0, CHANNEL_RELIABLE, NULL, 5, MULTIPLAYER_BAD_ARGUMENT );
}

/* How many packets of this channel came from a peer; -1 if one of them was not newer than the one before. */
static int play_rising( const struct seen_t * seen, int32_t from, int channel )
{
    int count = 0, last = -1;
    for ( int i = 0; i < seen->num_packets; i++ )
        if ( seen->packets[i].from == from && seen->packets[i].channel == channel ) {
            int number = seen->packets[i].first[0] | seen->packets[i].first[1] << 8;
            if ( number <= last )
                return -1;
            last = number;
            count++;
        }
    return count;
}

TEST( transfer_modes_keep_their_word_on_a_bad_network )
{
    world_open( 2 );
    world.network->packet_loss_percent = 20.0f;
    world.network->jitter_milliseconds = 30.0f;
    world.network->duplicate_packet_percent = 5.0f;
    for ( int i = 0; i < 300; i++ ) {
        uint8_t number[2] = { (uint8_t) i, (uint8_t) ( i >> 8 ) };
        for ( int channel = 0; channel < CHANNELS; channel++ ) {
            world_send( &world.clients[0], ID( 1 ), channel, number, 2, MULTIPLAYER_OK );
            world_send( &world.server, ID( 0 ), channel, number, 2, MULTIPLAYER_OK );
        }
        world_step();
    }
    world_run( 5.0 );
    CHECK_EQ( play_rising( SEEN_BY( 1 ), ID( 0 ), CHANNEL_RELIABLE ), 300 );
    CHECK_EQ( play_rising( SEEN_BY( 0 ), 1, CHANNEL_RELIABLE ), 300 );
    CHECK_GT( play_rising( SEEN_BY( 1 ), ID( 0 ), CHANNEL_ORDERED ),
              60 ); /* two links that lose a fifth, and what is late */
    CHECK_GT( play_rising( SEEN_BY( 0 ), 1, CHANNEL_ORDERED ), 120 );
    CHECK_LT( play_rising( SEEN_BY( 0 ), 1, CHANNEL_ORDERED ), 300 );
    int unreliable = 0;
    for ( int i = 0; i < SEEN_BY( 0 )->num_packets; i++ )
        unreliable += SEEN_BY( 0 )->packets[i].channel == CHANNEL_UNRELIABLE;
    CHECK( unreliable > 200 && unreliable < 300 );
    CHECK_EQ( SEEN_BY( 0 )->unknown + SEEN_BY( 1 )->unknown + world.server_seen.unknown, 0 );
}

TEST( packets_may_be_large_in_every_mode )
{
    static uint8_t large[MULTIPLAYER_DEFAULT_PACKET + 1];
    world_open( 2 );
    for ( int channel = 0; channel < CHANNELS; channel++ ) {
        memset( large, 'a' + channel, sizeof( large ) );
        world_send( &world.clients[0], ID( 1 ), channel, large, MULTIPLAYER_DEFAULT_PACKET, MULTIPLAYER_OK );
        world_send( &world.clients[0], ID( 1 ), channel, large, MULTIPLAYER_DEFAULT_PACKET + 1,
                    MULTIPLAYER_BAD_ARGUMENT );
    }
    world_run( 4.0 );
    CHECK_EQ( SEEN_BY( 1 )->num_packets, 3 );
    for ( int i = 0; i < SEEN_BY( 1 )->num_packets; i++ )
        CHECK_EQ( SEEN_BY( 1 )->packets[i].bytes, MULTIPLAYER_DEFAULT_PACKET );
}

TEST( who_is_kicked_learns_why_and_is_gone_at_once )
{
    world_open( 3 );
    int32_t kicked = ID( 1 );
    world_send( &world.clients[1], 1, CHANNEL_RELIABLE, "too late", 8, MULTIPLAYER_OK );
    world.idle_reader = 1;
    world_run( 0.3 );
    CHECK_EQ( world.server.queue_packets, 1 ); /* its packet waits, and is never read */
    CHECK_EQ( multiplayer_kick( &world.server, kicked, "you were rude" ), MULTIPLAYER_OK );
    CHECK_EQ( world.server.queue_packets, 0 );
    CHECK_EQ( multiplayer_kick( &world.server, kicked, "again" ), MULTIPLAYER_BAD_ARGUMENT );
    CHECK_EQ( multiplayer_kick( &world.clients[0], ID( 2 ), "me?" ), MULTIPLAYER_INACTIVE );
    world_send( &world.server, kicked, CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_OK ); /* the engine does not know yet */
    world.idle_reader = 0;
    world_run( 1.0 );
    CHECK_EQ( seen_text( &world.server_seen, 0, "too late" ), 0 );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_SERVER_DISCONNECTED, 0 ), 1 );
    CHECK_STR( world.clients[1].why, "the server ended the connection: you were rude" );
    CHECK_EQ( world.clients[1].status, MULTIPLAYER_DISCONNECTED );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, kicked ), 1 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_PEER_DISCONNECTED, kicked ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( world.server.server ), 2 );
    REQUIRE_EQ( world_join_as( 1, 555 ), MULTIPLAYER_OK ); /* the same object, another player */
    world_run( 1.0 );
    CHECK_EQ( world.clients[1].status, MULTIPLAYER_CONNECTED );
    CHECK( ID( 1 ) != kicked && seen_event( SEEN_BY( 1 ), MULTIPLAYER_SERVER_DISCONNECTED, 0 ) == 0 );
}

TEST( banned_players_and_those_that_come_too_late_are_denied )
{
    world_open( 2 );
    CHECK_EQ( multiplayer_ban( &world.server, 101 ), MULTIPLAYER_OK );
    CHECK_EQ( multiplayer_ban( &world.server, 101 ), MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_STR( world.clients[1].why, "the server ended the connection: this player is banned" );
    REQUIRE_EQ( world_join_as( 1, 101 ), MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_CONNECTION_FAILED, 0 ), 1 );
    CHECK( strstr( world.clients[1].why, "does not admit" ) != NULL );
    CHECK_EQ( multiplayer_unban( &world.server, 101 ), MULTIPLAYER_OK );
    CHECK_EQ( multiplayer_unban( &world.server, 101 ), MULTIPLAYER_BAD_ARGUMENT );
    world.server.refuses = 1;
    REQUIRE_EQ( world_join_as( 1, 101 ), MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_CONNECTION_FAILED, 0 ), 1 );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_CONNECTED ); /* those that are in stay */
    world.server.refuses = 0;
    REQUIRE_EQ( world_join_as( 1, 101 ), MULTIPLAYER_OK );
    world_run( 1.0 );
    CHECK_EQ( world.clients[1].status, MULTIPLAYER_CONNECTED );
    REQUIRE_EQ( multiplayer_ban( &world.server, 1000000 ), MULTIPLAYER_OK );
    while ( world.server.num_bans < MULTIPLAYER_MAX_BANS - 1 )
        world.server.bans[world.server.num_bans++] = 1000000;
    CHECK_EQ( multiplayer_ban( &world.server, 4 ), MULTIPLAYER_OK );
    CHECK_EQ( multiplayer_ban( &world.server, 5 ), MULTIPLAYER_NO_MEMORY );
}

/* A game that crashed comes back with a newer token, while the server still waits for the old connection's timeout. */
TEST( a_newer_token_of_the_same_player_takes_over )
{
    world_open( 2 );
    int32_t old = ID( 0 );
    world.later = 2; /* of two tokens the newer one is that which expires later */
    REQUIRE_EQ( world_join_as( 2, 100 ), MULTIPLAYER_OK );
    world_run( 2.0 );
    CHECK_EQ( world.clients[2].status, MULTIPLAYER_CONNECTED );
    CHECK_NE( ID( 2 ), old );
    CHECK_EQ( world.clients[0].status, MULTIPLAYER_DISCONNECTED );
    CHECK_EQ( seen_event( &world.server_seen, MULTIPLAYER_PEER_DISCONNECTED, old ), 1 );
    CHECK_EQ( seen_event( SEEN_BY( 1 ), MULTIPLAYER_PEER_DISCONNECTED, old ), 1 );
    CHECK_EQ( world.server_seen.num_known, 2 );
    CHECK_EQ( SEEN_BY( 1 )->num_known, 2 ); /* the server, and the new one */
    CHECK_EQ( SEEN_BY( 2 )->num_known, 2 );
}

TEST( last_words_arrive_before_the_goodbye )
{
    world_open( 2 );
    int32_t first = ID( 0 );
    world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "farewell", 8, MULTIPLAYER_OK );
    multiplayer_close( &world.clients[0] );
    world_run( 1.0 );
    CHECK_EQ( seen_text( &world.server_seen, first, "farewell" ), 1 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), first, "farewell" ), 1 );
    world_send( &world.server, 0, CHANNEL_RELIABLE, "the end", 7, MULTIPLAYER_OK );
    multiplayer_close( &world.server );
    world_run( 1.0 );
    CHECK_EQ( seen_text( SEEN_BY( 1 ), 1, "the end" ), 1 );
    CHECK_STR( world.clients[1].why, "the server ended the connection: the server closes" );
    CHECK_EQ( world.server_seen.unknown + SEEN_BY( 1 )->unknown, 0 );
}

TEST( most_clients_learn_why_a_server_closes_on_a_bad_network )
{
    world_open( PEERS );
    world.network->packet_loss_percent = 20.0f;
    multiplayer_close( &world.server );
    world_run( 1.0 );
    int know = 0;
    for ( int i = 0; i < PEERS; i++ )
        know += strstr( world.clients[i].why, "the server closes" ) != NULL;
    CHECK_GE( know, PEERS - 1 ); /* one copy would reach four of five */
}

TEST( without_relaying_clients_know_the_server_only )
{
    world_serve( 4, 1 );
    world_join_as( 0, 100 );
    world_join_as( 1, 101 );
    world_run( 1.0 );
    CHECK_EQ( SEEN_BY( 0 )->num_known, 1 );
    world_send( &world.clients[0], ID( 1 ), CHANNEL_RELIABLE, "x", 1, MULTIPLAYER_BAD_ARGUMENT );
    world_send( &world.clients[0], 0, CHANNEL_RELIABLE, "to all", 6, MULTIPLAYER_OK );
    world_run( 0.5 );
    CHECK_EQ( seen_text( &world.server_seen, ID( 0 ), "to all" ), 1 );
    CHECK_EQ( SEEN_BY( 1 )->num_packets, 0 );
}

TEST( wrong_options_are_errors_with_a_sentence )
{
    struct multiplayer_server_options_t server;
    struct multiplayer_client_options_t client;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    memset( &server, 0, sizeof( server ) );
    memset( &client, 0, sizeof( client ) );
    memset( token, 77, sizeof( token ) );
    server.simulator = client.simulator = world.network;
    server.address = "127.0.0.1:40000";
    CHECK_EQ( multiplayer_create_server( &world.server, &server, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    server.private_key = world.key;
    server.max_clients = MULTIPLAYER_MAX_CLIENTS + 1;
    CHECK_EQ( multiplayer_create_server( &world.server, &server, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    server.max_clients = 0;
    server.address = "localhost:1";
    CHECK_EQ( multiplayer_create_server( &world.server, &server, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    server.address = NULL;
    CHECK_EQ( multiplayer_create_server( &world.server, &server, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    CHECK_NE( world.server.error[0], 0 );
    CHECK_EQ( multiplayer_create_client( &world.clients[0], &client, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    client.connect_token = token;
    CHECK_EQ( multiplayer_create_client( &world.clients[0], &client, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    world_serve( 2, 0 );
    CHECK_EQ( multiplayer_create_server( &world.server, &server, world.time ), MULTIPLAYER_IN_USE );
    world_token( 5, token );
    client.bind_address = "nowhere";
    CHECK_EQ( multiplayer_create_client( &world.clients[0], &client, world.time ), MULTIPLAYER_BAD_ARGUMENT );
    CHECK_EQ( multiplayer_create_client( &world.server, &client, world.time ), MULTIPLAYER_IN_USE );
}

TEST( an_expired_token_and_one_of_another_key_end_with_a_reason )
{
    uint8_t key[NETCODE_KEY_BYTES];
    char text[1024];
    world_serve( 2, 0 );
    memcpy( key, world.key, sizeof( key ) );
    world.key[0] ^= 1;
    world_join_as( 0, 100 );
    memcpy( world.key, key, sizeof( key ) );
    world_run( 5.0 );
    CHECK_EQ( seen_event( SEEN_BY( 0 ), MULTIPLAYER_CONNECTION_FAILED, 0 ), 1 );
    multiplayer_report( &world.clients[0], text, sizeof( text ) );
    CHECK( strstr( text, "never answered" ) != NULL );
    multiplayer_report( &world.server, text, sizeof( text ) );
    CHECK( strstr( text, "TOKEN_NOT_AUTHENTIC" ) != NULL );
    multiplayer_report( &world.clients[1], text, sizeof( text ) );
    CHECK( strstr( text, "neither" ) != NULL );
}

/* Peers come, leave, are kicked, and talk: whenever it is quiet, all know the same ones. */
TEST( all_agree_on_the_connected_players )
{
    world_serve( PEERS - 2, 0 ); /* fewer slots than clients */
    world.network->packet_loss_percent = 5.0f;
    for ( int round = 0; round < 12; round++ ) {
        for ( int step = 0; step < 40; step++ ) {
            int i = test_random_below( PEERS );
            struct multiplayer_t * m = &world.clients[i];
            if ( m->role == MULTIPLAYER_OFF )
                world_join_as( i, 100 + (uint64_t) i );
            else if ( test_random_below( 4 ) == 0 )
                multiplayer_close( m );
            else if ( m->status == MULTIPLAYER_CONNECTED && test_random_below( 4 ) == 0 )
                multiplayer_kick( &world.server, m->unique_id, "at random" );
            else if ( m->status == MULTIPLAYER_CONNECTED )
                world_send( m, 0, test_random_below( CHANNELS ), "hello", 5, MULTIPLAYER_OK );
            world_run( 0.05 * test_random_below( 4 ) );
        }
        world_run( 6.0 );
        int there = 0;
        for ( int i = 0; i < PEERS; i++ )
            there += world.clients[i].status == MULTIPLAYER_CONNECTED;
        CHECK_EQ( world.server_seen.num_known, there );
        for ( int i = 0; i < PEERS; i++ )
            if ( world.clients[i].status == MULTIPLAYER_CONNECTED )
                CHECK_EQ( SEEN_BY( i )->num_known, there );
        CHECK_EQ( world.server_seen.unknown, 0 );
    }
}
