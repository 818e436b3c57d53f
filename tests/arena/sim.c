/* Unit tests: arena_sim.h, the rules. */

static struct arena_t sim;
static struct arena_command_t sim_commands[ARENA_PLAYERS];
static struct arena_events_t sim_events;
static char sim_map[ARENA_MAP_BYTES + 1];

/* A floor with walls around it, and one place to start, at the middle of tile 60, 35. */
static void sim_draw_map( void )
{
    char * at = sim_map;
    for ( int row = 0; row < ARENA_MAP_HEIGHT; row++ ) {
        for ( int column = 0; column < ARENA_MAP_WIDTH; column++ )
            *at++ = row == 0 || column == 0 || row == ARENA_MAP_HEIGHT - 1 || column == ARENA_MAP_WIDTH - 1 ? '#' : '.';
        *at++ = '\n';
    }
    *at = 0;
    sim_map[35 * ( ARENA_MAP_WIDTH + 1 ) + 60] = 's';
}

static void sim_put( int column, int row, char character )
{
    sim_map[row * ( ARENA_MAP_WIDTH + 1 ) + column] = character;
}

static int sim_start( void )
{
    memset( sim_commands, 0, sizeof( sim_commands ) );
    return arena_init( &sim, (const uint8_t *) sim_map, ARENA_MAP_BYTES, 5 );
}

static struct arena_player_t * sim_join( int slot, int x, int y )
{
    arena_join( &sim, slot );
    sim.players[slot].x = (int16_t) x;
    sim.players[slot].y = (int16_t) y;
    return &sim.players[slot];
}

static void sim_steps( int count )
{
    while ( count-- )
        arena_step( &sim, sim_commands, &sim_events );
}

/* The first event of a type in the last step, or NULL. */
static const struct arena_event_t * sim_event( enum arena_event_type_t type )
{
    for ( int i = 0; i < sim_events.count; i++ )
        if ( sim_events.list[i].type == type )
            return &sim_events.list[i];
    return NULL;
}

/* Slot 0 fires in one step. The player that it hit, or ARENA_NOBODY; -1: no shot. */
static int sim_fire( int aim, int view_age )
{
    sim_commands[0].buttons = ARENA_FIRE;
    sim_commands[0].aim = (uint8_t) aim;
    sim_commands[0].view_age = (uint8_t) view_age;
    sim_steps( 1 );
    sim_commands[0].buttons = 0;
    const struct arena_event_t * shot = sim_event( ARENA_EVENT_SHOT );
    return shot ? shot->other : -1;
}

/* ---- whole games ---- */

static uint64_t sim_hash_number( uint64_t hash, int64_t number )
{
    return test_mix( hash ^ (uint64_t) number );
}

/* Of the numbers, not of their bytes: every compiler and machine has the same. */
static uint64_t sim_hash( const struct arena_t * arena, uint64_t hash )
{
    hash = sim_hash_number( hash, arena->tick );
    hash = sim_hash_number( hash, arena->random );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_player_t * p = &arena->players[i];
        int64_t numbers[] = { p->is_there, p->health, p->aim, p->wait_fire, p->wait_spawn,
                              p->rapid,    p->score,  p->x,   p->y };
        for ( int k = 0; k < 9; k++ )
            hash = sim_hash_number( hash, numbers[k] );
    }
    for ( int i = 0; i < ARENA_ITEMS; i++ )
        hash = sim_hash_number( hash, arena->items[i].wait );
    return hash;
}

static uint64_t sim_hash_events( const struct arena_events_t * events, uint64_t hash )
{
    for ( int i = 0; i < events->count; i++ ) {
        const struct arena_event_t * e = &events->list[i];
        int64_t numbers[] = { e->type, e->player, e->other, e->x, e->y };
        for ( int k = 0; k < 5; k++ )
            hash = sim_hash_number( hash, numbers[k] );
    }
    return hash;
}

/* What 64 players press: each holds it for a while, so that they get somewhere. */
static void sim_press( uint64_t * state, struct arena_command_t commands[ARENA_PLAYERS] )
{
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        *state = test_mix( *state );
        if ( *state % 20 == 0 )
            commands[i].buttons = (uint8_t) ( *state >> 8 & ARENA_BUTTONS );
        commands[i].aim = (uint8_t) ( commands[i].aim + ( *state >> 16 & 3 ) );
        commands[i].view_age = (uint8_t) ( *state >> 24 );
    }
}

/* Players come and go now and then. */
static void sim_come_and_go( uint64_t state, struct arena_t * arena )
{
    int slot = (int) ( state >> 40 & 63 );
    if ( state % 50 )
        return;
    if ( arena->players[slot].is_there )
        arena_leave( arena, slot );
    else
        arena_join( arena, slot );
}

static void sim_check_player( const struct arena_t * arena, int slot )
{
    const struct arena_player_t * player = &arena->players[slot];
    if ( !player->is_there )
        return;
    CHECK( player->x >= ARENA_RADIUS && player->x < ARENA_WIDTH - ARENA_RADIUS );
    CHECK( player->y >= ARENA_RADIUS && player->y < ARENA_HEIGHT - ARENA_RADIUS );
    CHECK( !arena_is_blocked( &arena->map, player->x, player->y ) );
    CHECK( player->health <= ARENA_FULL_HEALTH && player->score <= ARENA_MAX_SCORE );
    CHECK( player->wait_fire <= ARENA_RELOAD_TICKS && player->rapid <= ARENA_RAPID_TICKS );
    CHECK( player->health ? player->wait_spawn == 0
                          : player->wait_spawn > 0 && player->wait_spawn <= ARENA_RESPAWN_TICKS );
}

static void sim_check_events( const struct arena_events_t * events )
{
    CHECK_LT( events->count, ARENA_EVENTS );
    for ( int i = 0; i < events->count; i++ ) {
        const struct arena_event_t * e = &events->list[i];
        int has_no_other = e->other == ARENA_NOBODY;
        CHECK( e->player < ARENA_PLAYERS && e->x >= 0 && e->x < ARENA_WIDTH && e->y >= 0 && e->y < ARENA_HEIGHT );
        switch ( e->type ) {
        case ARENA_EVENT_SHOT: CHECK( has_no_other || ( e->other < ARENA_PLAYERS && e->other != e->player ) ); break;
        case ARENA_EVENT_KILL: CHECK( e->other < ARENA_PLAYERS && e->other != e->player ); break;
        case ARENA_EVENT_PICKUP: CHECK_LT( e->other, ARENA_ITEMS ); break;
        default: CHECK( e->type == ARENA_EVENT_SPAWN && has_no_other );
        }
    }
}

/* A game of 64; its hash. No player is ever in a wall or beyond the map. */
static uint64_t sim_play( struct arena_t * arena, uint64_t seed, int steps, int come_and_go )
{
    struct arena_command_t commands[ARENA_PLAYERS];
    struct arena_events_t events;
    uint64_t state = seed, hash = seed;
    memset( commands, 0, sizeof( commands ) );
    memset( &events, 0, sizeof( events ) );
    REQUIRE( arena_init( arena, (const uint8_t *) arena_default_map, ARENA_MAP_BYTES, (uint32_t) seed ) );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        arena_join( arena, i );
    for ( int step = 0; step < steps && !test_state.failures; step++ ) {
        sim_press( &state, commands );
        if ( come_and_go )
            sim_come_and_go( state, arena );
        arena_step( arena, commands, &events );
        hash = sim_hash_events( &events, sim_hash( arena, hash ) );
        sim_check_events( &events );
        for ( int i = 0; i < ARENA_PLAYERS; i++ )
            sim_check_player( arena, i );
    }
    return hash;
}

TEST( sim_games_repeat )
{
    static struct arena_t a, b;
    uint64_t seed = test_random();
    memset( &a, 1, sizeof( a ) );
    memset( &b, 2, sizeof( b ) ); /* what was there before does not matter */
    uint64_t first = sim_play( &a, seed, 10000, 1 ), second = sim_play( &b, seed, 10000, 1 );
    CHECK_EQ( first, second );
    CHECK_MEM( &a, &b, sizeof( a ) );
    CHECK_NE( sim_play( &b, seed + 1, 1000, 1 ), sim_play( &a, seed, 1000, 1 ) );
}

/* Each compiler, level of optimization and machine must get here. A change of the rules needs another number. */
TEST( sim_golden_game )
{
    static struct arena_t arena;
    int kills = 0;
    uint64_t hash = sim_play( &arena, 20240601, 10000, 0 );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        kills += arena.players[i].score;
    CHECK_EQ( hash, 0xbaabe4c33e1301eeu );
    CHECK_GT( kills, 300 ); /* it was a game */
}

TEST( sim_no_player_is_ever_in_a_wall )
{
    static struct arena_t arena;
    for ( int game = 0; game < 20; game++ )
        sim_play( &arena, test_random(), 1000, 1 );
}

TEST( sim_a_step_has_room_for_all_events )
{
    sim_draw_map();
    for ( int i = 0; i < ARENA_ITEMS; i++ )
        sim_put( 2 + i, 2, i % 2 ? '+' : '!' );
    REQUIRE( sim_start() );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) { /* each before the next one's muzzle, with a shot's life left */
        sim_join( i, 600 + i % 8 * 1000, 1000 + i / 8 * 1000 );
        sim.players[i].health = 20;
        sim_commands[i].buttons = ARENA_FIRE;
        sim_commands[i].aim = (uint8_t) ( i % 2 ? 128 : 0 );
    }
    sim_steps( 2 );
    sim_check_events( &sim_events );
    CHECK_LE( ARENA_PLAYERS * 3 + ARENA_ITEMS, ARENA_EVENTS ); /* a shot, a kill, a return each; and the items */
}

/* ---- the map ---- */

static int sim_reads( void )
{
    static struct arena_map_t map;
    return arena_map_read( &map, (const uint8_t *) sim_map, ARENA_MAP_BYTES );
}

TEST( sim_map_is_read )
{
    static struct arena_map_t map;
    sim_draw_map();
    sim_put( 2, 3, '#' );
    sim_put( 4, 5, '+' );
    sim_put( 6, 7, '!' );
    REQUIRE( arena_map_read( &map, (const uint8_t *) sim_map, ARENA_MAP_BYTES ) );
    CHECK( map.spawns == 1 && map.spawn_x[0] == 60 * 256 + 128 && map.spawn_y[0] == 35 * 256 + 128 );
    CHECK( map.items == 2 && map.item_kinds[0] == ARENA_MEDKIT && map.item_kinds[1] == ARENA_RAPID );
    CHECK( map.item_x[0] == 4 * 256 + 128 && map.item_y[1] == 7 * 256 + 128 );
    CHECK( map.tiles[3][2] == ARENA_WALL && map.tiles[3][3] == ARENA_FLOOR && map.tiles[5][4] == ARENA_FLOOR );
    CHECK( arena_is_wall( &map, 2 * 256, 3 * 256 ) && arena_is_wall( &map, 2 * 256 + 255, 3 * 256 + 255 ) );
    CHECK( !arena_is_wall( &map, 2 * 256 - 1, 3 * 256 ) && !arena_is_wall( &map, 3 * 256, 3 * 256 ) );
    CHECK( arena_is_wall( &map, -1, 5000 ) && arena_is_wall( &map, 5000, -1 ) );
    CHECK( arena_is_wall( &map, ARENA_WIDTH, 5000 ) && arena_is_wall( &map, 5000, ARENA_HEIGHT ) );
    CHECK( arena_is_wall( &map, INT32_MIN, 0 ) && arena_is_wall( &map, 0, INT32_MAX ) );
}

TEST( sim_map_of_another_size_is_none )
{
    static struct arena_map_t map;
    sim_draw_map();
    for ( int bytes = 0; bytes < ARENA_MAP_BYTES; bytes += bytes < 10 || bytes > ARENA_MAP_BYTES - 10 ? 1 : 97 ) {
        uint8_t * block = bits_block( (const uint8_t *) sim_map, bytes );
        CHECK( !arena_map_read( &map, block, bytes ) );
        free( block );
    }
    CHECK( !arena_map_read( &map, (const uint8_t *) sim_map, ARENA_MAP_BYTES + 1 ) );
    CHECK( !arena_map_read( &map, (const uint8_t *) sim_map, -1 ) );
    CHECK( sim_reads() );
}

TEST( sim_map_has_walls_around_it )
{
    for ( int column = 0; column < ARENA_MAP_WIDTH; column++ )
        for ( int row = 0; row < ARENA_MAP_HEIGHT; row++ ) {
            int is_border = row == 0 || column == 0 || row == ARENA_MAP_HEIGHT - 1 || column == ARENA_MAP_WIDTH - 1;
            for ( int i = 0; is_border && i < 4; i++ ) {
                sim_draw_map();
                sim_put( column, row, ".s+!"[i] );
                CHECK( !sim_reads() );
            }
        }
}

TEST( sim_map_has_its_characters_only )
{
    for ( int character = 0; character < 256; character++ ) {
        int is_known = character && strchr( "#.s+!", character ) != NULL;
        sim_draw_map();
        sim_put( 30, 20, (char) character );
        CHECK_EQ( sim_reads(), is_known );
        sim_draw_map();
        sim_put( ARENA_MAP_WIDTH, 20, (char) character );
        CHECK_EQ( sim_reads(), character == '\n' );
    }
}

TEST( sim_map_has_not_too_much_and_not_too_little )
{
    for ( int spawns = 0; spawns <= ARENA_SPAWNS + 1; spawns++ ) {
        sim_draw_map();
        sim_put( 60, 35, '.' );
        for ( int i = 0; i < spawns; i++ )
            sim_put( 1 + i % 62, 5 + i / 62, 's' );
        CHECK_EQ( sim_reads(), spawns >= 1 && spawns <= ARENA_SPAWNS );
    }
    for ( int items = 0; items <= ARENA_ITEMS + 1; items++ ) {
        sim_draw_map();
        for ( int i = 0; i < items; i++ )
            sim_put( 1 + i, 5, i % 2 ? '+' : '!' );
        CHECK_EQ( sim_reads(), items <= ARENA_ITEMS );
    }
}

TEST( sim_map_of_the_server_is_one )
{
    REQUIRE_EQ( strlen( arena_default_map ), ARENA_MAP_BYTES );
    REQUIRE( arena_init( &sim, (const uint8_t *) arena_default_map, ARENA_MAP_BYTES, 0 ) );
    for ( int i = 0; i < sim.map.spawns; i++ )
        CHECK( !arena_is_blocked( &sim.map, sim.map.spawn_x[i], sim.map.spawn_y[i] ) );
    CHECK_NE( sim.random, 0 ); /* xorshift would stay there */
}

TEST( sim_no_game_without_a_map )
{
    sim_draw_map();
    sim_put( 60, 35, '.' );
    CHECK( !sim_start() );
}

/* ---- moving ---- */

TEST( sim_players_move_by_their_speed )
{
    static const struct {
        int buttons, right, down;
    } rows[] = { { 0, 0, 0 },
                 { ARENA_RIGHT, 26, 0 },
                 { ARENA_LEFT, -26, 0 },
                 { ARENA_DOWN, 0, 26 },
                 { ARENA_UP, 0, -26 },
                 { ARENA_RIGHT | ARENA_DOWN, 18, 18 },
                 { ARENA_LEFT | ARENA_UP, -18, -18 },
                 { ARENA_LEFT | ARENA_DOWN, -18, 18 },
                 { ARENA_RIGHT | ARENA_UP, 18, -18 },
                 { ARENA_LEFT | ARENA_RIGHT, 0, 0 },
                 { ARENA_UP | ARENA_DOWN, 0, 0 },
                 { ARENA_LEFT | ARENA_RIGHT | ARENA_UP, 0, -26 } };
    sim_draw_map();
    REQUIRE( sim_start() );
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct arena_player_t * player = sim_join( 7, 5000, 5000 );
        sim_commands[7].buttons = (uint8_t) rows[i].buttons;
        sim_steps( 10 );
        CHECK_EQ( player->x, 5000 + 10 * rows[i].right );
        CHECK_EQ( player->y, 5000 + 10 * rows[i].down );
    }
    CHECK( 2 * 18 * 18 <= 26 * 26 && 2 * 19 * 19 > 26 * 26 ); /* slanted is as fast, to the whole number */
}

/* Against a wall from each side, at each distance, then along it. */
TEST( sim_players_slide_along_walls )
{
    static const uint8_t ways[4] = { ARENA_RIGHT, ARENA_LEFT, ARENA_DOWN, ARENA_UP };
    static const uint8_t sides[4] = { ARENA_DOWN, ARENA_UP, ARENA_LEFT, ARENA_RIGHT };
    sim_draw_map();
    for ( int i = 0; i < 4; i++ ) { /* a cross of walls around 20..23, 20..23 */
        sim_put( 20 + i, 18, '#' );
        sim_put( 20 + i, 25, '#' );
        sim_put( 18, 20 + i, '#' );
        sim_put( 25, 20 + i, '#' );
    }
    REQUIRE( sim_start() );
    for ( int way = 0; way < 4; way++ )
        for ( int offset = 0; offset < 26; offset++ ) {
            struct arena_player_t * player = sim_join( 0, 22 * 256 + offset, 22 * 256 + offset );
            sim_commands[0].buttons = ways[way];
            sim_steps( 40 );
            int stood_x = player->x, stood_y = player->y;
            switch ( ways[way] ) { /* as near as a player can stand, and no further */
            case ARENA_RIGHT: CHECK_EQ( player->x, 25 * 256 - ARENA_RADIUS - 1 ); break;
            case ARENA_LEFT: CHECK_EQ( player->x, 19 * 256 + ARENA_RADIUS ); break;
            case ARENA_DOWN: CHECK_EQ( player->y, 25 * 256 - ARENA_RADIUS - 1 ); break;
            default: CHECK_EQ( player->y, 19 * 256 + ARENA_RADIUS );
            }
            sim_steps( 3 );
            CHECK( player->x == stood_x && player->y == stood_y );
            sim_commands[0].buttons = (uint8_t) ( ways[way] | sides[way] );
            sim_steps( 3 );
            CHECK_EQ( abs( player->x - stood_x ) + abs( player->y - stood_y ), 3 * ARENA_SLANTED_SPEED );
        }
}

TEST( sim_corners_stop_players_too )
{
    sim_draw_map();
    sim_put( 20, 20, '#' );
    REQUIRE( sim_start() );
    struct arena_player_t * player = sim_join( 0, 20 * 256 - ARENA_RADIUS - 1, 20 * 256 - ARENA_RADIUS - 1 );
    sim_commands[0].buttons = ARENA_RIGHT | ARENA_DOWN;
    sim_steps( 20 );
    CHECK( !arena_is_blocked( &sim.map, player->x, player->y ) );
    CHECK_NE( player->x, 20 * 256 - ARENA_RADIUS - 1 ); /* it slid by */
}

TEST( sim_the_dead_and_the_absent_do_nothing )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    struct arena_player_t * player = sim_join( 0, 5000, 5000 );
    player->health = 0;
    player->wait_spawn = 100;
    for ( int i = 0; i < 2; i++ )
        sim_commands[i].buttons = ARENA_RIGHT | ARENA_FIRE;
    sim_commands[0].aim = 9;
    sim_steps( 5 );
    CHECK( player->x == 5000 && player->aim == 0 && sim_events.count == 0 );
    CHECK( test_is_zeros( &sim.players[1], sizeof( sim.players[1] ) ) );
}

/* ---- shooting ---- */

TEST( sim_reload_times )
{
    sim_draw_map();
    for ( int rapid = 0; rapid < 2; rapid++ ) {
        int wait = rapid ? ARENA_RAPID_RELOAD_TICKS : ARENA_RELOAD_TICKS, last = -1, shots = 0;
        REQUIRE( sim_start() );
        struct arena_player_t * player = sim_join( 0, 5000, 5000 );
        player->rapid = (uint16_t) ( rapid ? ARENA_RAPID_TICKS : 0 );
        sim_commands[0].buttons = ARENA_FIRE;
        for ( int step = 0; step < 200; step++ ) {
            sim_steps( 1 );
            if ( !sim_event( ARENA_EVENT_SHOT ) )
                continue;
            CHECK( last < 0 || step - last == wait );
            last = step;
            shots++;
        }
        CHECK_EQ( shots, 1 + 199 / wait );
    }
}

TEST( sim_fast_fire_ends )
{
    int shots = 0;
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 )->rapid = ARENA_RAPID_TICKS;
    sim_commands[0].buttons = ARENA_FIRE;
    for ( int step = 0; step < 2 * ARENA_RAPID_TICKS; step++ ) {
        sim_steps( 1 );
        shots += sim_event( ARENA_EVENT_SHOT ) != NULL;
    }
    CHECK_NEAR( shots, ARENA_RAPID_TICKS / ARENA_RAPID_RELOAD_TICKS + ARENA_RAPID_TICKS / ARENA_RELOAD_TICKS, 1 );
}

TEST( sim_shots_hit_hurt_and_kill )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 );
    struct arena_player_t * target = sim_join( 9, 6000, 5050 );
    sim_steps( 2 );
    for ( int shot = 1; shot <= 5; shot++ ) {
        CHECK_EQ( sim_fire( 0, 0 ), 9 );
        CHECK_EQ( target->health, 100 - 20 * shot );
        const struct arena_event_t * kill = sim_event( ARENA_EVENT_KILL );
        CHECK_EQ( kill != NULL, shot == 5 );
        CHECK( !kill || ( kill->player == 0 && kill->other == 9 ) );
        CHECK_EQ( sim.players[0].score, shot == 5 );
        if ( shot < 5 )
            sim_steps( ARENA_RELOAD_TICKS );
    }
    int waited = 0;
    sim_commands[9].buttons = ARENA_FIRE; /* the dead do not shoot */
    while ( target->health == 0 && waited < 1000 ) {
        sim_steps( 1 );
        CHECK( sim_event( ARENA_EVENT_SHOT ) == NULL );
        waited++;
    }
    const struct arena_event_t * spawn = sim_event( ARENA_EVENT_SPAWN );
    CHECK_NEAR( waited, ARENA_RESPAWN_TICKS, 1 );
    REQUIRE( spawn != NULL );
    CHECK( spawn->player == 9 && spawn->x == target->x && spawn->y == target->y );
    CHECK( target->health == 100 && target->x == 60 * 256 + 128 && target->y == 35 * 256 + 128 );
    CHECK( target->rapid == 0 && target->wait_spawn == 0 && target->score == 0 );
}

TEST( sim_little_health_does_not_wrap )
{
    sim_draw_map();
    for ( int health = 1; health <= 21; health++ ) {
        REQUIRE( sim_start() );
        sim_join( 0, 5000, 5000 );
        struct arena_player_t * target = sim_join( 1, 6000, 5000 );
        sim_steps( 2 );
        target->health = (uint8_t) health;
        CHECK_EQ( sim_fire( 0, 0 ), 1 );
        CHECK_EQ( target->health, health > 20 ? health - 20 : 0 );
    }
}

TEST( sim_score_stays_at_its_most )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    struct arena_player_t * shooter = sim_join( 0, 5000, 5000 );
    for ( int kill = 0; kill < 3; kill++ ) {
        shooter->score = (uint16_t) ( kill ? ARENA_MAX_SCORE : ARENA_MAX_SCORE - 1 );
        sim_join( 1, 6000, 5000 );
        sim_steps( ARENA_RELOAD_TICKS );
        sim.players[1].health = 1;
        CHECK_EQ( sim_fire( 0, 0 ), 1 );
        CHECK_EQ( shooter->score, ARENA_MAX_SCORE );
        arena_leave( &sim, 1 );
    }
}

/* At each aim, a disc that the shot just meets, and one that it just misses. */
TEST( sim_shots_meet_discs )
{
    sim_draw_map();
    for ( int aim = 0; aim < 256; aim += 5 )
        for ( int side = -130; side <= 130; side += 10 ) {
            double turn = aim * 3.14159265358979 / 128.0;
            REQUIRE( sim_start() );
            sim_join( 0, 8000, 5000 );
            sim_join( 1, (int) ( 8000 + 2000 * cos( turn ) - side * sin( turn ) ),
                      (int) ( 5000 + 2000 * sin( turn ) + side * cos( turn ) ) );
            sim_steps( 2 );
            int hit = sim_fire( aim, 0 );
            if ( abs( side ) <= ARENA_RADIUS - 6 )
                CHECK_EQ( hit, 1 );
            if ( abs( side ) >= ARENA_RADIUS + 6 )
                CHECK_EQ( hit, ARENA_NOBODY );
        }
}

TEST( sim_shots_hit_the_nearest_and_none_behind )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 );
    sim_join( 1, 7000, 5000 );
    sim_join( 2, 6000, 5000 );
    sim_join( 3, 8000, 5000 );
    sim_join( 4, 4500, 5000 ); /* behind */
    sim_steps( 2 );
    CHECK_EQ( sim_fire( 0, 0 ), 2 );
    sim_steps( ARENA_RELOAD_TICKS );
    CHECK_EQ( sim_fire( 128, 0 ), 4 );
}

TEST( sim_shots_stop_at_walls_and_at_their_range )
{
    sim_draw_map();
    sim_put( 30, 20, '#' );
    REQUIRE( sim_start() );
    sim_join( 0, 25 * 256, 20 * 256 + 128 );
    struct arena_player_t * target = sim_join( 1, 33 * 256, 20 * 256 + 128 );
    sim_steps( 2 );
    CHECK_EQ( sim_fire( 0, 0 ), ARENA_NOBODY );
    const struct arena_event_t * shot = sim_event( ARENA_EVENT_SHOT );
    CHECK( shot->x <= 30 * 256 && shot->x >= 30 * 256 - 32 && shot->y == 20 * 256 + 128 );
    CHECK( !arena_is_wall( &sim.map, shot->x - 1, shot->y ) );

    target->x = 28 * 256; /* before the wall */
    sim_steps( ARENA_RELOAD_TICKS );
    CHECK_EQ( sim_fire( 0, 0 ), 1 );
    CHECK_EQ( sim_event( ARENA_EVENT_SHOT )->x, 28 * 256 );

    sim.players[0].y = target->y = 10 * 256; /* an open field: 20 tiles, and no more */
    target->x = (int16_t) ( 25 * 256 + ARENA_RANGE - 100 );
    sim_steps( ARENA_RELOAD_TICKS );
    CHECK_EQ( sim_fire( 0, 0 ), 1 );
    target->x = (int16_t) ( 25 * 256 + ARENA_RANGE + 100 );
    sim_steps( ARENA_RELOAD_TICKS );
    CHECK_EQ( sim_fire( 0, 0 ), ARENA_NOBODY );
    CHECK_NEAR( sim_event( ARENA_EVENT_SHOT )->x, 25 * 256 + ARENA_RANGE, 16 );
}

TEST( sim_a_faster_shot_of_the_same_step_counts )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 )->health = 20;
    sim_join( 1, 6000, 5000 )->health = 20;
    sim_steps( 2 );
    sim_commands[0].buttons = sim_commands[1].buttons = ARENA_FIRE;
    sim_commands[1].aim = 128;
    sim_steps( 1 );
    CHECK( sim.players[0].health == 20 && sim.players[1].health == 0 );
    CHECK( sim.players[0].score == 1 && sim.players[1].score == 0 );
}

/* ---- shots are judged by what their players saw ---- */

/* A target that runs down past the line of fire: after so many steps it is 26 a step further. */
static struct arena_player_t * sim_runner( int steps )
{
    sim_draw_map();
    sim_start();
    sim_join( 0, 5000, 5000 );
    struct arena_player_t * target = sim_join( 1, 6000, 5000 );
    sim_commands[1].buttons = ARENA_DOWN;
    sim_steps( steps );
    return target;
}

TEST( sim_targets_are_hit_where_they_were )
{
    for ( int age = 0; age <= ARENA_MAX_VIEW_AGE; age++ ) {
        struct arena_player_t * target = sim_runner( 40 );
        int hit = sim_fire( 0, age ); /* the 41st step */
        double stood = 5000 + 26.0 * ( 41 - age / 8.0 );
        CHECK_EQ( target->y, 5000 + 26 * 41 );
        if ( stood - 5000 <= ARENA_RADIUS )
            CHECK_EQ( hit, 1 );
        if ( stood - 5000 > ARENA_RADIUS + 1 )
            CHECK_EQ( hit, ARENA_NOBODY );
    }
    for ( int steps = 8; steps <= 31; steps++ ) { /* where it was, not where it is */
        sim_runner( steps );
        CHECK_EQ( sim_fire( 0, 0 ), ARENA_NOBODY );
        sim_runner( steps );
        CHECK_EQ( sim_fire( 0, 8 * ( steps - 1 ) ), 1 );
    }
}

TEST( sim_targets_are_not_hit_where_they_came_to )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 );
    struct arena_player_t * target = sim_join( 1, 6000, 5000 + 26 * 41 );
    sim_commands[1].buttons = ARENA_UP;
    sim_steps( 40 );
    CHECK_EQ( target->y, 5026 );
    CHECK_EQ( sim_fire( 0, 100 ), ARENA_NOBODY );
    sim_steps( ARENA_RELOAD_TICKS );
    CHECK_EQ( sim_fire( 0, 8 * 15 ), 1 );
}

/* Parts of a tick before the step's end, on a straight line between two ticks. */
TEST( sim_the_past_lies_on_lines )
{
    sim_runner( 60 );
    for ( int age = 0; age <= ARENA_MAX_VIEW_AGE; age++ ) {
        int x = 0, y = 0;
        REQUIRE( arena_rewind( &sim, 1, age, &x, &y ) );
        CHECK_EQ( x, 6000 );
        CHECK_NEAR( y, 5000 + 26.0 * ( 60 - age / 8.0 ), 1 );
    }
}

TEST( sim_the_past_begins_with_the_player )
{
    sim_runner( 5 );
    for ( int age = 0; age <= ARENA_MAX_VIEW_AGE; age++ ) {
        int x = 0, y = 0;
        CHECK_EQ( arena_rewind( &sim, 1, age, &x, &y ),
                  age <= 4 * 8 );                            /* its first tick, and nothing between that and none */
        CHECK_EQ( arena_rewind( &sim, 2, age, &x, &y ), 0 ); /* no player */
    }
}

TEST( sim_the_past_where_ticks_wrap_around )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim.tick = 0xfffffff0u;
    sim_join( 0, 5000, 5000 );
    sim_join( 1, 6000, 5000 );
    sim_commands[1].buttons = ARENA_DOWN;
    sim_steps( 39 );
    CHECK_EQ( sim.tick, 23 );
    CHECK_EQ( sim_fire( 0, 255 ), ARENA_NOBODY ); /* after 8 steps it was 212 away */
    sim_steps( 0 );
    int x = 0, y = 0;
    for ( int age = 0; age <= 255; age += 5 ) {
        REQUIRE( arena_rewind( &sim, 1, age, &x, &y ) );
        CHECK_NEAR( y, 5000 + 26.0 * ( 40 - age / 8.0 ), 1 );
    }
}

TEST( sim_the_dead_are_not_hit_where_they_lived )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 5000, 5000 );
    sim_join( 2, 5000, 6000 );
    struct arena_player_t * target = sim_join( 1, 6000, 5000 );
    sim_steps( 40 );
    target->health = 1;
    CHECK_EQ( sim_fire( 0, 0 ), 1 );
    CHECK_EQ( target->health, 0 );
    int killed_at = (int) sim.tick;
    while ( (int) sim.tick < killed_at + 300 ) { /* dead; then back, elsewhere: never hit where it died */
        int hit = sim_fire( 0, (int) sim.tick * 8 % 256 );
        CHECK( hit == -1 || hit == ARENA_NOBODY );
        sim_steps( 3 );
    }
    CHECK_EQ( target->health, 100 );
}

/* Its first steps: it can be hit where it is, and through no history. */
TEST( sim_the_returned_have_no_past )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    sim_join( 0, 55 * 256, 35 * 256 + 128 ); /* looks at the place to start */
    struct arena_player_t * target = sim_join( 1, 6000, 5000 );
    target->health = 0;
    target->wait_spawn = 1;
    sim_steps( 1 );
    REQUIRE( sim_event( ARENA_EVENT_SPAWN ) != NULL && target->health == 100 );
    sim_steps( 1 );
    for ( int age = 0; age <= 255; age++ ) {
        int x = 0, y = 0;
        CHECK_EQ( arena_rewind( &sim, 1, age, &x, &y ), age == 0 );
    }
    sim_steps( 1 );
    CHECK_EQ( sim_fire( 0, 0 ), 1 );
}

/* A player that comes into a slot is not hit where the one before it stood. */
TEST( sim_the_next_in_a_slot_has_no_past )
{
    for ( int gone = 0; gone < 3; gone++ ) {
        sim_draw_map();
        REQUIRE( sim_start() );
        sim_join( 0, 5000, 5000 );
        sim_join( 1, 6000, 5000 );
        sim_steps( 20 );
        arena_leave( &sim, 1 );
        sim_steps( gone );
        arena_join( &sim, 1 ); /* at the place to start, far away */
        CHECK_EQ( sim_fire( 0, 8 * ( gone + 3 ) ), ARENA_NOBODY );
        CHECK_EQ( sim.players[1].health, 100 );
    }
}

/* ---- items ---- */

TEST( sim_items_are_picked_up_and_come_back )
{
    sim_draw_map();
    sim_put( 20, 20, '+' );
    sim_put( 40, 20, '!' );
    REQUIRE( sim_start() );
    struct arena_player_t * player = sim_join( 3, 20 * 256 + 128, 20 * 256 + 128 );
    sim_steps( 5 );
    CHECK( sim_event( ARENA_EVENT_PICKUP ) == NULL ); /* in full health a medkit stays */
    CHECK_EQ( sim.items[0].wait, 0 );
    player->health = 30;
    sim_steps( 1 );
    const struct arena_event_t * event = sim_event( ARENA_EVENT_PICKUP );
    REQUIRE( event != NULL );
    CHECK( event->player == 3 && event->other == 0 && player->health == 80 );
    CHECK_EQ( sim.items[0].wait, ARENA_ITEM_TICKS );
    for ( int step = 1; step <= ARENA_ITEM_TICKS; step++ ) {
        sim_steps( 1 );
        CHECK_EQ( sim_event( ARENA_EVENT_PICKUP ) != NULL, step == ARENA_ITEM_TICKS );
    }
    CHECK_EQ( player->health, 100 ); /* and no more */

    player->x = 40 * 256 + 128;
    sim_steps( 1 );
    event = sim_event( ARENA_EVENT_PICKUP );
    REQUIRE( event != NULL );
    CHECK( event->other == 1 && player->rapid == ARENA_RAPID_TICKS );
    sim_steps( ARENA_RAPID_TICKS );
    CHECK_EQ( player->rapid, 0 );
}

TEST( sim_items_are_not_for_the_dead_or_the_distant )
{
    sim_draw_map();
    sim_put( 20, 20, '!' );
    REQUIRE( sim_start() );
    struct arena_player_t * player = sim_join( 3, 20 * 256 + 128, 20 * 256 + 128 );
    player->health = 0;
    player->wait_spawn = 100;
    sim_steps( 5 );
    CHECK_EQ( sim.items[0].wait, 0 );
    player->health = 100;
    player->wait_spawn = 0;
    player->x = 20 * 256 + 128 + 200;
    sim_steps( 5 );
    CHECK_EQ( sim.items[0].wait, 0 );
    player->x = (int16_t) ( player->x - 10 );
    sim_steps( 1 );
    CHECK_EQ( sim.items[0].wait, ARENA_ITEM_TICKS );
}

TEST( sim_an_item_is_for_one )
{
    sim_draw_map();
    sim_put( 20, 20, '!' );
    REQUIRE( sim_start() );
    sim_join( 3, 20 * 256 + 128, 20 * 256 + 128 );
    sim_join( 4, 20 * 256 + 128, 20 * 256 + 128 );
    sim_steps( 1 );
    CHECK( sim.players[3].rapid == ARENA_RAPID_TICKS && sim.players[4].rapid == 0 );
}

/* ---- coming and going ---- */

TEST( sim_players_come_fresh_and_go_wholly )
{
    sim_draw_map();
    REQUIRE( sim_start() );
    memset( &sim.players[5], 0x55, sizeof( sim.players[5] ) );
    arena_join( &sim, 5 );
    const struct arena_player_t * player = &sim.players[5];
    CHECK( player->is_there && player->health == 100 && player->score == 0 && player->rapid == 0 );
    CHECK( player->wait_fire == 0 && player->wait_spawn == 0 && player->aim == 0 );
    arena_leave( &sim, 5 );
    CHECK( test_is_zeros( player, sizeof( *player ) ) );
}

TEST( sim_players_come_back_away_from_enemies )
{
    sim_draw_map();
    sim_put( 3, 3, 's' );
    int far = 0;
    REQUIRE( sim_start() );
    sim_join( 0, 3 * 256 + 128, 3 * 256 + 128 );
    for ( int i = 0; i < 200; i++ ) {
        arena_join( &sim, 1 );
        far += sim.players[1].x > 5000;
    }
    CHECK_GT( far, 170 ); /* the best of four places: 15 of 16, were they drawn one by one */
}

/* ---- numbers ---- */

TEST( sim_sines )
{
    for ( int angle = -512; angle <= 512; angle++ ) {
        CHECK_NEAR( arena_sine( angle ), 16384.0 * sin( angle * 3.14159265358979 / 128.0 ), 1.0 );
        CHECK_NEAR( arena_cosine( angle ), 16384.0 * cos( angle * 3.14159265358979 / 128.0 ), 1.0 );
    }
}

TEST( sim_lines_of_sight )
{
    sim_draw_map();
    sim_put( 30, 20, '#' );
    REQUIRE( sim_start() );
    CHECK( arena_sees( &sim.map, 25 * 256, 10 * 256, 35 * 256, 10 * 256 ) );
    CHECK( !arena_sees( &sim.map, 25 * 256, 20 * 256 + 128, 35 * 256, 20 * 256 + 128 ) );
    CHECK( !arena_sees( &sim.map, 35 * 256, 20 * 256 + 128, 25 * 256, 20 * 256 + 128 ) );
    CHECK( !arena_sees( &sim.map, 30 * 256 + 128, 15 * 256, 30 * 256 + 128, 25 * 256 ) );
    CHECK( arena_sees( &sim.map, 5000, 5000, 5000, 5000 ) );
}
