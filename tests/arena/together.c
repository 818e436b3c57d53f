/* Stories: the server, and clients that play, in virtual time. */

/* What is left of the numbers of all players, as shares. */
struct together_t {
    double missed, wrong_guesses, far_views, late_reports, corrections_a_minute, worst_view;
};

static double together_share( uint64_t part, uint64_t whole )
{
    return whole ? (double) part / (double) whole : 1.0;
}

/* The worst of all players. */
static struct together_t together_measure( double seconds )
{
    struct together_t worst;
    memset( &worst, 0, sizeof( worst ) );
    play_forget();
    play_run( seconds );
    for ( int i = 0; i < play.count; i++ ) {
        const struct play_player_t * p = &play.players[i];
        worst.missed = fmax( worst.missed, together_share( p->missed, p->ticks ) );
        worst.wrong_guesses = fmax( worst.wrong_guesses, together_share( p->wrong_guesses, p->guesses ) );
        worst.far_views = fmax( worst.far_views, together_share( p->far_views, p->views ) );
        worst.late_reports = fmax( worst.late_reports, together_share( p->late_reports, p->reports ) );
        worst.worst_view = fmax( worst.worst_view, p->worst_view );
        worst.corrections_a_minute =
            fmax( worst.corrections_a_minute, (double) p->client->corrections * 60.0 / seconds );
    }
    if ( getenv( "ARENA_SHOW" ) )
        printf( "    missed %.4f guesses %.4f views %.4f worst view %.0f late %.4f corrections/min %.1f\n",
                worst.missed, worst.wrong_guesses, worst.far_views, worst.worst_view, worst.late_reports,
                worst.corrections_a_minute );
    return worst;
}

TEST( together_without_loss )
{
    play_open( 8, NULL );
    play_network( 20, 0, 0, 0 );
    play_begin( 8, 1 );
    struct together_t worst = together_measure( 20.0 );
    CHECK_EQ( worst.missed * 1e6, 0 );
    CHECK_EQ( worst.wrong_guesses * 1e6, 0 );
    CHECK_EQ( worst.corrections_a_minute, 0 );
    CHECK_LE( worst.worst_view, 48 );
    CHECK_EQ( play.game.messages_wrong, 0 );
}

TEST( together_without_any_delay )
{
    play_open( 8, NULL );
    play_begin( 8, 1 );
    struct together_t worst = together_measure( 10.0 );
    CHECK_EQ( worst.missed * 1e6, 0 );
    CHECK_EQ( worst.wrong_guesses * 1e6, 0 );
    CHECK_LE( worst.worst_view, 48 );
}

/* 100 ms and 20 of jitter each way, one in 20 lost, one in 50 twice or late. */
TEST( together_on_a_bad_network )
{
    play_open( 8, NULL );
    play_network( 100, 20, 5, 2 );
    play_begin( 8, 1 );
    play_run( 2.0 );
    struct together_t worst = together_measure( 60.0 );
    CHECK_LE( worst.missed * 1e6, 10000 );
    CHECK_LE( worst.wrong_guesses * 1e6, 10000 );
    CHECK_LE( worst.far_views * 1e6, 10000 );
    CHECK_LE( worst.corrections_a_minute, 12 );
    int kills = 0;
    for ( int i = 0; i < 8; i++ )
        kills += play_truth( i )->score;
    CHECK_GT( kills, 4 ); /* they did play */
}

TEST( together_64_come_at_once )
{
    play_open( ARENA_PLAYERS, NULL );
    play_network( 30, 5, 1, 0 );
    play_begin( ARENA_PLAYERS, 1 );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_client_t * client = play.players[i].client;
        CHECK( client->has_map && memcmp( client->map_text, arena_default_map, ARENA_MAP_BYTES ) == 0 );
        for ( int k = 0; k < ARENA_PLAYERS; k++ ) {
            char name[32];
            snprintf( name, sizeof( name ), "name %d", k );
            CHECK_STR( client->names[play.players[k].client->slot], name );
        }
    }
    CHECK_EQ( play.game.joined, ARENA_PLAYERS );
    CHECK_EQ( play.game.messages_wrong, 0 );
}

/* ---- chat ---- */

/* How many lines of chat a player has got, and how many of one speaker. */
static int together_lines( int index, int speaker )
{
    struct arena_news_t news;
    int lines = 0;
    while ( arena_client_news( play.players[index].client, &news ) )
        lines += news.type == ARENA_NEWS_CHAT && ( speaker < 0 || news.player == play.players[speaker].client->slot );
    return lines;
}

TEST( together_chat_reaches_all )
{
    play_open( 8, NULL );
    play_network( 100, 20, 5, 2 );
    play_begin( 8, 0 );
    for ( int i = 0; i < 8; i++ )
        together_lines( i, -1 );
    for ( int i = 0; i < 8; i++ )
        CHECK( arena_client_chat( play.players[i].client, "gr\xc3\xbc\xc3\x9f"
                                                          "e" ) );
    play_run( 2.0 );
    for ( int i = 0; i < 8; i++ )
        CHECK_EQ( together_lines( i, -1 ), 8 );
    CHECK( !arena_client_chat( play.players[0].client, "" ) );
    CHECK( !arena_client_chat( play.players[0].client, "a\nb" ) );
    CHECK_EQ( play.game.chat_refused, 0 );
}

static void together_talk( void )
{
    arena_client_chat( play.players[0].client, "me again" );
}

/* Three at once, then one a second; those of others are not refused for it. */
TEST( together_chat_is_limited )
{
    play_open( 4, NULL );
    play_begin( 4, 0 );
    for ( int i = 0; i < 4; i++ )
        together_lines( i, -1 );
    for ( int i = 0; i < 10; i++ )
        together_talk();
    play_run( 0.5 );
    CHECK_EQ( together_lines( 1, 0 ), 3 );
    CHECK_EQ( play.game.chat_refused, 7 );

    play_run( 10.0 ); /* no more than three are saved */
    play.each_tick = together_talk;
    for ( int i = 0; i < 3; i++ )
        CHECK( arena_client_chat( play.players[2].client, "hello" ) );
    play_run( 10.0 );
    play.each_tick = NULL;
    play_run( 0.5 );
    struct arena_news_t news;
    int lines[2] = { 0, 0 };
    while ( arena_client_news( play.players[1].client, &news ) )
        lines[news.player == play.players[2].client->slot] += news.type == ARENA_NEWS_CHAT;
    CHECK_NEAR( lines[0], 13, 1 );
    CHECK_EQ( lines[1], 3 );
}

/* ---- silence ---- */

TEST( together_a_silent_player_stands )
{
    sim_draw_map();
    play_open( 4, sim_map );
    play_network( 20, 0, 0, 0 );
    play_begin( 2, 0 );
    play_truth( 0 )->x = 3000;
    play_truth( 0 )->y = 5000;
    play.players[0].buttons = ARENA_RIGHT | ARENA_FIRE;
    play_run( 1.0 );
    int slot = play.players[0].client->slot;
    CHECK( play_truth( 0 )->wait_fire > 0 ); /* it does shoot */

    play.players[0].is_paused = 1;
    uint32_t last = 0, stood = 0;
    int moved = 0, shots = 0;
    for ( int tick = 0; tick < 60; tick++ ) {
        int before = play.game.arena.players[slot].x;
        play_run( 1.0 / ARENA_HZ );
        last = play.game.slots[slot].last_tick;
        if ( play.game.arena.tick == last )
            continue; /* its last commands */
        shots += play.game.arena.players[slot].wait_fire == ARENA_RELOAD_TICKS;
        moved += play.game.arena.players[slot].x - before;
        if ( play.game.arena.players[slot].x == before && !stood )
            stood = play.game.arena.tick;
    }
    CHECK_EQ( stood, last + REPEAT_TICKS + 1 );
    CHECK_EQ( moved, REPEAT_TICKS * ARENA_SPEED );
    CHECK_EQ( shots, 0 ); /* the trigger is not repeated */
}

/* ---- one after the other in a slot ---- */

TEST( together_a_slot_is_not_inherited )
{
    play_open( 2, NULL );
    play_network( 20, 0, 0, 0 );
    play_begin( 2, 0 );
    int slot = play.players[0].client->slot;
    play.players[0].buttons = ARENA_RIGHT | ARENA_FIRE;
    play_truth( 0 )->score = 77;
    play_truth( 0 )->rapid = 200;
    for ( int i = 0; i < 5; i++ )
        arena_client_chat( play.players[0].client, "last words" );
    play_run( 1.0 );
    while ( arena_client_news( play.players[1].client, &( struct arena_news_t ){ ARENA_NEWS_LEFT, 0, 0, 0, "" } ) )
        ;
    play_leave( 0 );
    play_run( 0.2 );
    CHECK( !play.game.arena.players[slot].is_there );
    CHECK_EQ( play.game.slots[slot].session, 0 );

    play_join_as( 0, 9000, "another" );
    play_run( 1.0 );
    REQUIRE( play.players[0].client->is_playing );
    REQUIRE_EQ( play.players[0].client->slot, slot );
    const struct arena_player_t * player = play_truth( 0 );
    CHECK( player->score == 0 && player->rapid == 0 && player->wait_fire == 0 && player->health == 100 );
    CHECK_EQ( play.players[0].client->corrections, 0 );      /* no other player's commands were run */
    CHECK_EQ( play.players[0].client->snapshots_unread, 0 ); /* nor are they built on what another one has */
    CHECK_STR( play.game.slots[slot].name, "another" );
    CHECK_STR( play.players[1].client->names[slot], "another" );
    CHECK_STR( play.players[0].client->names[slot], "another" );
    CHECK_NEAR( play.game.slots[slot].chat_credit, CHAT_BURST, 0.01 );
    struct arena_news_t news;
    int left = 0, joined = 0;
    while ( arena_client_news( play.players[1].client, &news ) ) {
        left += news.type == ARENA_NEWS_LEFT && news.player == slot;
        joined += news.type == ARENA_NEWS_JOINED && news.player == slot;
    }
    CHECK( left == 1 && joined == 1 );
}

/* Its game crashed: it is back at once, and the old session does not keep the place. */
TEST( together_a_crashed_player_is_back )
{
    play_open( 4, NULL );
    play_begin( 2, 0 );
    play.players[0].is_paused = 1;
    play_run( 0.5 );
    play_join_as( 2, 100, "name 0" );
    play_run( 1.0 );
    CHECK( play.players[2].client->is_playing );
    int there = 0;
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        there += play.game.arena.players[i].is_there;
    CHECK_EQ( there, 2 );
}

TEST( together_names_are_looked_at )
{
    static const struct {
        const char *name, *shown;
    } rows[] = { { "Ann", "Ann" },
                 { "", "player 1" },
                 { "\x1b[2J", "player 2" },
                 { "a\nb", "player 3" },
                 { "123456789012345", "123456789012345" },
                 { "1234567890123456", "123456789012345" },
                 { "12345678901234\xc3\xa4", "12345678901234" }, /* not cut within a character */
                 { "\xc2\x9b"
                   "31m",
                   "player 7" } };
    play_open( 8, NULL );
    for ( int i = 0; i < 8; i++ ) {
        play_join_as( i, 500 + (uint64_t) i, rows[i].name );
        play_run( 0.5 );
        REQUIRE_EQ( play.players[i].client->slot, i );
    }
    play_run( 1.0 );
    for ( int i = 0; i < 8; i++ ) {
        CHECK_STR( play.game.slots[i].name, rows[i].shown );
        CHECK_STR( play.players[7 - i].client->names[i], rows[i].shown );
    }
    CHECK( strchr( said, 27 ) == NULL ); /* nor did the server print it */
}

/* ---- shots and news, from end to end ---- */

/* One shoots from afar, at 100 ms, at a runner where it sees it: that is where it is hit. */
TEST( together_what_is_seen_is_hit )
{
    int hits = 0, shots = 0;
    sim_draw_map();
    play_open( 4, sim_map );
    play_network( 100, 0, 0, 0 );
    play_begin( 2, 0 );
    play_truth( 0 )->x = 3000;
    play_truth( 0 )->y = 5000;
    play_run( 0.5 );
    for ( int round = 0; round < 40; round++ ) {
        struct arena_client_t * shooter = play.players[0].client;
        struct arena_drawn_t seen;
        struct arena_shot_t shot;
        play_truth( 1 )->health = 100;
        play_truth( 1 )->x = 6000;
        play_truth( 1 )->y = (int16_t) ( round % 2 ? 3000 : 7000 );
        play.players[1].buttons = round % 2 ? ARENA_DOWN : ARENA_UP;
        play_run( 0.8 + 0.01 * round );
        REQUIRE( arena_client_other( shooter, play.players[1].client->slot, &seen ) );
        double turn = atan2( seen.y - shooter->own.y, seen.x - shooter->own.x ) * 128.0 / 3.14159265358979;
        while ( arena_client_shot( shooter, &shot ) )
            ;
        play.players[0].aim = ( (int) floor( turn + 0.5 ) + 256 ) % 256;
        play.players[0].buttons = ARENA_FIRE;
        play_run( 1.0 / ARENA_HZ );
        play.players[0].buttons = 0;
        play_run( 0.5 );
        while ( arena_client_shot( shooter, &shot ) ) {
            CHECK_EQ( shot.player, shooter->slot );
            shots++;
            hits += shot.other == play.players[1].client->slot;
        }
    }
    CHECK_GE( shots, 40 );
    CHECK_EQ( hits, shots );
}

TEST( together_news_reach_all )
{
    struct arena_news_t news;
    int seen[4][ARENA_NEWS_TYPES];
    memset( seen, 0, sizeof( seen ) );
    sim_draw_map();
    sim_put( 12, 20, '!' );
    play_open( 8, sim_map );
    play_network( 50, 10, 5, 0 );
    play_begin( 4, 0 );
    play_truth( 0 )->x = 3000;
    play_truth( 1 )->x = 5000;
    play_truth( 0 )->y = play_truth( 1 )->y = 5000;
    play_run( 0.5 );
    play_truth( 1 )->health = 1;
    play.players[0].buttons = ARENA_FIRE;
    play_run( 0.2 );
    play.players[0].buttons = 0;
    play_run( 0.5 );
    play_truth( 2 )->x = 12 * 256 + 128;
    play_truth( 2 )->y = 20 * 256 + 128;
    play_run( 0.5 );
    play_leave( 3 );
    play_run( 2.0 );
    for ( int i = 0; i < 3; i++ ) {
        while ( arena_client_news( play.players[i].client, &news ) ) {
            seen[i][news.type]++;
            if ( news.type == ARENA_NEWS_KILLED )
                CHECK( news.player == play.players[0].client->slot && news.other == play.players[1].client->slot );
            if ( news.type == ARENA_NEWS_PICKUP )
                CHECK( news.player == play.players[2].client->slot && news.other == ARENA_RAPID );
            if ( news.type == ARENA_NEWS_WELCOME )
                CHECK( news.tick > 0 && news.player == play.players[i].client->slot );
        }
        CHECK( seen[i][ARENA_NEWS_WELCOME] == 1 && seen[i][ARENA_NEWS_JOINED] == 4 && seen[i][ARENA_NEWS_LEFT] == 1 );
        CHECK( seen[i][ARENA_NEWS_KILLED] == 1 && seen[i][ARENA_NEWS_PICKUP] == 1 );
    }
}
