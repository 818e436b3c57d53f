/* Stories: the clients' clocks. Commands must be there when the server makes their step. */

TEST( clocks_from_a_cold_start )
{
    for ( int jitter = 0; jitter <= 20; jitter += 10 ) {
        play_close();
        play_open( 8, NULL );
        play_network( 100, jitter, 0, 0 );
        play_begin( 8, 1 ); /* and a second, or two, after its first snapshot */
        struct together_t worst = together_measure( 20.0 );
        CHECK_LE( worst.missed * 1e6, 10000 );
        CHECK_LE( worst.late_reports * 1e6, 10000 );
    }
}

TEST( clocks_two_seconds_after_the_first_command )
{
    play_open( 8, NULL );
    play_network( 100, 0, 0, 0 );
    for ( int i = 0; i < 8; i++ )
        play_join( i, 1 );
    while ( play.time < 5.0 && play.players[0].playing_at <= 0.0 )
        play_run( 1.0 / ARENA_HZ );
    REQUIRE( play.players[0].client->is_playing );
    play_run( 2.0 );
    struct together_t worst = together_measure( 10.0 );
    CHECK_LE( worst.missed * 1e6, 10000 );
    CHECK_LE( worst.late_reports * 1e6, 10000 );
}

/* Commands are in time, and not far too early: what is pressed should not wait at the server. */
TEST( clocks_do_not_run_too_far_ahead )
{
    play_open( 8, NULL );
    play_network( 50, 5, 0, 0 );
    play_begin( 8, 1 );
    play_run( 5.0 );
    for ( int i = 0; i < 8; i++ ) {
        const struct arena_client_t * client = play.players[i].client;
        double ahead = (double) client->command_tick - (double) play.game.arena.tick;
        CHECK( ahead >= 3.0 && ahead <= 3.0 + 6.0 ); /* 50 ms are three ticks */
        double behind = (double) play.game.arena.tick - client->render;
        CHECK( behind >= 3.0 && behind <= 3.0 + 12.0 );
    }
}

TEST( clocks_when_the_latency_jumps )
{
    play_open( 8, NULL );
    play_network( 20, 2, 0, 0 );
    play_begin( 8, 1 );
    play_run( 2.0 );
    for ( int round = 0; round < 4; round++ ) {
        play_network( round % 2 ? 20 : 150, 2, 0, 0 );
        play_run( 2.0 );
        struct together_t worst = together_measure( 3.0 );
        CHECK_LE( worst.missed * 1e6, 10000 );
        CHECK_LE( worst.late_reports * 1e6, 10000 );
        CHECK_LE( worst.far_views * 1e6, 10000 );
    }
    for ( int i = 0; i < 8; i++ ) /* at 20 ms it is no further ahead than at first */
        CHECK_LE( (int) play.players[i].client->command_tick - (int) play.game.arena.tick, 8 );
}

/*  From half a second to almost nothing: commands come by up to a second and a half too early, more than the server
    keeps or can report. It reports half a second at most: the clock needs three reports, up to 1.1 s from each other. */
TEST( clocks_when_a_long_latency_ends )
{
    for ( int latency = 200; latency <= 750; latency += 50 ) {
        play_close();
        play_open( 4, NULL );
        play_network( latency, 2, 0, 0 );
        for ( int i = 0; i < 4; i++ )
            play_join( i, 1 );
        play_run( 15.0 );
        struct together_t worst = together_measure( 2.0 );
        CHECK_LE( worst.missed * 1e6, 10000 );
        play_network( 20, 2, 0, 0 );
        play_run( 4.0 );
        worst = together_measure( 3.0 );
        CHECK_LE( worst.missed * 1e6, 10000 );
        CHECK_LE( worst.late_reports * 1e6, 10000 );
        for ( int i = 0; i < 4; i++ )
            CHECK_LE( (int) play.players[i].client->command_tick - (int) play.game.arena.tick, 12 );
    }
}

TEST( clocks_after_a_pause )
{
    play_open( 8, NULL );
    play_network( 50, 5, 0, 0 );
    play_begin( 8, 1 );
    for ( int round = 0; round < 3; round++ ) {
        play.players[0].is_paused = 1;
        play_run( 2.0 );
        play.players[0].is_paused = 0;
        play_run( 2.0 );
        struct together_t worst = together_measure( 3.0 );
        CHECK_LE( worst.missed * 1e6, 10000 );
        CHECK_LE( worst.far_views * 1e6, 10000 );
        CHECK( play.players[0].client->is_playing );
    }
}

static int clocks_shots;

static void clocks_count_shots( void )
{
    clocks_shots += play_truth( 0 )->wait_fire == ARENA_RELOAD_TICKS;
}

/*  What lies in a pause was never pressed: of commands from before it none is run, whatever the pause's length. What came
    meanwhile was too much for the socket. */
TEST( clocks_commands_from_before_a_pause_are_not_run )
{
    sim_draw_map();
    play_open( 2, sim_map );
    play_network( 50, 0, 0, 0 );
    play_begin( 1, 0 );
    for ( int length = 100; length <= 150; length++ ) {
        play.each_tick = NULL;
        play.players[0].buttons = ARENA_FIRE;
        play_run( 0.5 );
        play.players[0].is_paused = 1;
        play_network( 50, 0, 100, 0 );
        play_run( length / 60.0 );
        play_network( 50, 0, 0, 0 );
        play.players[0].is_paused = 0;
        play.players[0].buttons = 0;
        clocks_shots = 0;
        play.each_tick = clocks_count_shots;
        play_run( 1.0 );
        CHECK_EQ( clocks_shots, 0 );
    }
}

TEST( clocks_of_frames_at_another_pace )
{
    play_open( 2, NULL );
    play_network( 40, 0, 0, 0 );
    play_begin( 2, 1 );
    for ( int frame = 0; frame < 300; frame++ ) { /* player 0 has 20 frames a second: three commands in each */
        play.players[0].is_paused = frame % 3 != 0;
        play_run( 1.0 / ARENA_HZ );
    }
    play_forget();
    for ( int frame = 0; frame < 600; frame++ ) {
        play.players[0].is_paused = frame % 3 != 0;
        play_run( 1.0 / ARENA_HZ );
    }
    CHECK_LE( together_share( play.players[0].missed, play.players[0].ticks ) * 1e6, 10000 );
    CHECK_LE( together_share( play.players[0].wrong_guesses, play.players[0].guesses ) * 1e6, 10000 );
}

/* ---- the pieces ---- */

TEST( clocks_are_steered_or_set )
{
    CHECK_NEAR( arena_steer( 100.0, 101.0, 1.0 ), 101.0, 1e-9 );
    CHECK_NEAR( arena_steer( 100.0, 101.5, 1.0 ), 101.05, 1e-9 ); /* a tenth of what it is off */
    CHECK_NEAR( arena_steer( 100.0, 110.0, 1.0 ), 101.1, 1e-9 );  /* at most a tenth of its pace */
    CHECK_NEAR( arena_steer( 100.0, 90.0, 1.0 ), 100.9, 1e-9 );
    CHECK_NEAR( arena_steer( 100.0, 101.0 + 15.0, 1.0 ), 101.1, 1e-9 );
    CHECK_NEAR( arena_steer( 100.0, 101.0 + 15.1, 1.0 ), 116.1, 1e-9 );
    CHECK_NEAR( arena_steer( 100.0, 101.0 - 15.1, 1.0 ), 85.9, 1e-9 );
}

TEST( clocks_turn_the_shorter_way_round )
{
    CHECK_EQ( arena_turn( 10, 20, 0.5 ), 15 );
    CHECK_EQ( arena_turn( 250, 10, 0.5 ), 2 );
    CHECK_EQ( arena_turn( 10, 250, 0.5 ), 2 );
    CHECK_EQ( arena_turn( 0, 252, 1.0 ), 252 );
    for ( int from = 0; from < 256; from++ )
        for ( int to = 0; to < 256; to++ ) {
            CHECK_EQ( arena_turn( from, to, 0.0 ), from );
            CHECK_EQ( arena_turn( from, to, 1.0 ), to );
        }
}
