/*  The arena's rules: a step of a sixtieth of a second for up to 64 players, who move, shoot and pick up. Pure: the
    same state and commands give the same next state on every machine, in whole numbers only. It knows no network, no
    clock and no screen. The server runs arena_step; a client runs arena_player_step ahead of it for its own player.

        static struct arena_t arena;
        arena_init( &arena, text, bytes, 7 );             a map and a seed; 0 if the map is none
        arena_join( &arena, 3 );                          slot 3 has a player
        commands[3].buttons = ARENA_RIGHT | ARENA_FIRE;
        arena_step( &arena, commands, &events );          one for each slot; what happened in this step

    A copy of this file needs <stdint.h> and <string.h>. Change the rules, keep the shape. */

#ifndef ARENA_SIM_H
#define ARENA_SIM_H

#include <stdint.h>
#include <string.h>

enum {
    ARENA_HZ = 60,
    ARENA_PLAYERS = 64,
    ARENA_TILE = 256, /* positions are parts of a tile */
    ARENA_MAP_WIDTH = 64,
    ARENA_MAP_HEIGHT = 40,
    ARENA_MAP_BYTES = ( ARENA_MAP_WIDTH + 1 ) * ARENA_MAP_HEIGHT, /* as text, a line for each row */
    ARENA_WIDTH = ARENA_MAP_WIDTH * ARENA_TILE,
    ARENA_HEIGHT = ARENA_MAP_HEIGHT * ARENA_TILE,
    ARENA_SPAWNS = 64, /* at most, of a map */
    ARENA_ITEMS = 16,
    ARENA_RADIUS = 96, /* of a player, who collides with walls as a square and with shots as a disc */
    ARENA_SPEED = 26,  /* a step, along an axis */
    ARENA_SLANTED_SPEED = 18,
    ARENA_FULL_HEALTH = 100,
    ARENA_DAMAGE = 20,
    ARENA_MEDKIT_HEALTH = 50,
    ARENA_RELOAD_TICKS = 15,
    ARENA_RAPID_RELOAD_TICKS = 6,
    ARENA_RAPID_TICKS = 300,
    ARENA_RESPAWN_TICKS = 120,
    ARENA_ITEM_TICKS = 600, /* until an item is back */
    ARENA_RANGE = 20 * ARENA_TILE,
    ARENA_MAX_SCORE = 1023,
    ARENA_HISTORY = 64,   /* ticks whose positions are remembered */
    ARENA_VIEW_PARTS = 8, /* a command's view_age counts parts of a tick: this many make one */
    ARENA_MAX_VIEW_AGE = 255,
    ARENA_EVENTS = 256,
    ARENA_NOBODY = 255
};

/* The buttons of a command. */
enum { ARENA_UP = 1, ARENA_DOWN = 2, ARENA_LEFT = 4, ARENA_RIGHT = 8, ARENA_FIRE = 16, ARENA_BUTTONS = 31 };

enum { ARENA_FLOOR, ARENA_WALL };

enum { ARENA_MEDKIT, ARENA_RAPID };

enum arena_event_type_t { ARENA_EVENT_SHOT, ARENA_EVENT_KILL, ARENA_EVENT_PICKUP, ARENA_EVENT_SPAWN };

/* What one player does in one step. */
struct arena_command_t {
    uint8_t buttons;
    uint8_t aim;      /* 256ths of a turn: 0 is to the right, 64 is down */
    uint8_t view_age; /* how long ago the others stood where this player saw them, in parts of a tick */
};

struct arena_player_t {
    uint8_t is_there; /* the slot has a player */
    uint8_t health;   /* 0: out until wait_spawn has passed */
    uint8_t aim;
    uint8_t wait_fire; /* ticks until the next shot */
    uint8_t wait_spawn;
    uint16_t rapid; /* ticks of fast fire that are left */
    uint16_t score;
    int16_t x, y;
};

struct arena_item_t {
    uint8_t kind;
    uint16_t wait; /* ticks until it is there */
    int16_t x, y;
};

struct arena_map_t {
    uint8_t tiles[ARENA_MAP_HEIGHT][ARENA_MAP_WIDTH];
    int spawns, items;
    int16_t spawn_x[ARENA_SPAWNS], spawn_y[ARENA_SPAWNS];
    uint8_t item_kinds[ARENA_ITEMS];
    int16_t item_x[ARENA_ITEMS], item_y[ARENA_ITEMS];
};

/* Where everybody stood after a step; y is -1 where no player could be hit. */
struct arena_past_t {
    int16_t x[ARENA_PLAYERS], y[ARENA_PLAYERS];
};

struct arena_t {
    uint32_t tick; /* steps that were made */
    uint32_t random;
    struct arena_map_t map;
    struct arena_player_t players[ARENA_PLAYERS];
    struct arena_item_t items[ARENA_ITEMS];
    struct arena_past_t past[ARENA_HISTORY]; /* of tick t at t % ARENA_HISTORY */
};

/*  SHOT: `player` hit `other` (or ARENA_NOBODY) and the shot ended at x, y. KILL: `player` killed `other`. PICKUP:
    `other` is the item. SPAWN: `player` is back at x, y. */
struct arena_event_t {
    uint8_t type;
    uint8_t player, other;
    int16_t x, y;
};

struct arena_events_t {
    int count;
    struct arena_event_t list[ARENA_EVENTS];
};

/* ---- numbers ---- */

/* The sine of an angle in 256ths of a turn, times 16384. */
static inline int arena_sine( int angle )
{
    static const int16_t quarter[65] = { 0,     402,   804,   1205,  1606,  2006,  2404,  2801,  3196,  3590,  3981,
                                         4370,  4756,  5139,  5520,  5897,  6270,  6639,  7005,  7366,  7723,  8076,
                                         8423,  8765,  9102,  9434,  9760,  10080, 10394, 10702, 11003, 11297, 11585,
                                         11866, 12140, 12406, 12665, 12916, 13160, 13395, 13623, 13842, 14053, 14256,
                                         14449, 14635, 14811, 14978, 15137, 15286, 15426, 15557, 15679, 15791, 15893,
                                         15986, 16069, 16143, 16207, 16261, 16305, 16340, 16364, 16379, 16384 };
    int at = angle & 63;
    switch ( angle >> 6 & 3 ) {
    case 0: return quarter[at];
    case 1: return quarter[64 - at];
    case 2: return -quarter[at];
    default: return -quarter[64 - at];
    }
}

static inline int arena_cosine( int angle )
{
    return arena_sine( angle + 64 );
}

static inline uint32_t arena_random( struct arena_t * arena )
{
    arena->random ^= arena->random << 13;
    arena->random ^= arena->random >> 17;
    arena->random ^= arena->random << 5;
    return arena->random;
}

static inline int arena_clamp( int value, int lowest, int highest )
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* ---- the map ---- */

static inline int16_t arena_middle( int tile )
{
    return (int16_t) ( tile * ARENA_TILE + ARENA_TILE / 2 );
}

/* One character: '#' wall, '.' floor, 's' a place to start, '+' a medkit, '!' rapid fire. 0 if it is none, or too many. */
static inline int arena_map_put( struct arena_map_t * map, int column, int row, char character )
{
    map->tiles[row][column] = character == '#' ? ARENA_WALL : ARENA_FLOOR;
    if ( character == 's' ) {
        if ( map->spawns == ARENA_SPAWNS )
            return 0;
        map->spawn_x[map->spawns] = arena_middle( column );
        map->spawn_y[map->spawns++] = arena_middle( row );
    } else if ( character == '+' || character == '!' ) {
        if ( map->items == ARENA_ITEMS )
            return 0;
        map->item_kinds[map->items] = character == '+' ? ARENA_MEDKIT : ARENA_RAPID;
        map->item_x[map->items] = arena_middle( column );
        map->item_y[map->items++] = arena_middle( row );
    }
    return character == '#' || character == '.' || character == 's' || character == '+' || character == '!';
}

/*  Reads a map from its text, ARENA_MAP_BYTES long. 1, or 0 if it is none: another size or character, nowhere to start,
    or no wall around it, which is what keeps positions within the map. */
static inline int arena_map_read( struct arena_map_t * map, const uint8_t * text, int bytes )
{
    memset( map, 0, sizeof( *map ) );
    if ( bytes != ARENA_MAP_BYTES )
        return 0;
    for ( int row = 0; row < ARENA_MAP_HEIGHT; row++ ) {
        const uint8_t * line = text + row * ( ARENA_MAP_WIDTH + 1 );
        for ( int column = 0; column < ARENA_MAP_WIDTH; column++ ) {
            int is_border = row == 0 || column == 0 || row == ARENA_MAP_HEIGHT - 1 || column == ARENA_MAP_WIDTH - 1;
            if ( ( is_border && line[column] != '#' ) || !arena_map_put( map, column, row, (char) line[column] ) )
                return 0;
        }
        if ( line[ARENA_MAP_WIDTH] != '\n' )
            return 0;
    }
    return map->spawns > 0;
}

/* 1 for a wall, and for everything beyond the map. */
static inline int arena_is_wall( const struct arena_map_t * map, int x, int y )
{
    if ( x < 0 || y < 0 || x >= ARENA_WIDTH || y >= ARENA_HEIGHT )
        return 1;
    return map->tiles[y / ARENA_TILE][x / ARENA_TILE] == ARENA_WALL;
}

/* Whether a player can not stand here. */
static inline int arena_is_blocked( const struct arena_map_t * map, int x, int y )
{
    return arena_is_wall( map, x - ARENA_RADIUS, y - ARENA_RADIUS ) ||
           arena_is_wall( map, x + ARENA_RADIUS, y - ARENA_RADIUS ) ||
           arena_is_wall( map, x - ARENA_RADIUS, y + ARENA_RADIUS ) ||
           arena_is_wall( map, x + ARENA_RADIUS, y + ARENA_RADIUS );
}

/* Whether a straight line between two points meets no wall. */
static inline int arena_sees( const struct arena_map_t * map, int x, int y, int to_x, int to_y )
{
    int far = to_x - x, down = to_y - y;
    int steps = ( ( far < 0 ? -far : far ) + ( down < 0 ? -down : down ) ) / 64 + 1;
    for ( int i = 1; i < steps; i++ )
        if ( arena_is_wall( map, x + far * i / steps, y + down * i / steps ) )
            return 0;
    return 1;
}

/* ---- one player: what a client predicts ---- */

/* A new coordinate at a wall that was run into: as near to it as a player can stand. */
static inline int arena_at_wall( int coordinate, int change )
{
    return change > 0 ? ( coordinate + ARENA_RADIUS ) / ARENA_TILE * ARENA_TILE - ARENA_RADIUS - 1
                      : ( ( coordinate - ARENA_RADIUS ) / ARENA_TILE + 1 ) * ARENA_TILE + ARENA_RADIUS;
}

/* Along one axis after the other, so that players slide along walls. */
static inline void arena_move( const struct arena_map_t * map, struct arena_player_t * player, int right, int down )
{
    int x = player->x + right, y = player->y + down;
    if ( right && arena_is_blocked( map, x, player->y ) )
        x = arena_at_wall( x, right );
    if ( down && arena_is_blocked( map, x, y ) )
        y = arena_at_wall( y, down );
    player->x = (int16_t) x;
    player->y = (int16_t) y;
}

/*  What a command does to its player alone. 1 if the player fires. Nothing of it depends on other players, so a client
    that has the same state and commands computes the same. */
static inline int arena_player_step( const struct arena_map_t * map, struct arena_player_t * player,
                                     const struct arena_command_t * command )
{
    int right = !!( command->buttons & ARENA_RIGHT ) - !!( command->buttons & ARENA_LEFT );
    int down = !!( command->buttons & ARENA_DOWN ) - !!( command->buttons & ARENA_UP );
    int speed = right && down ? ARENA_SLANTED_SPEED : ARENA_SPEED;
    if ( player->wait_fire )
        player->wait_fire--;
    if ( player->rapid )
        player->rapid--;
    if ( !player->is_there || player->health == 0 )
        return 0;
    player->aim = command->aim;
    arena_move( map, player, right * speed, down * speed );
    if ( !( command->buttons & ARENA_FIRE ) || player->wait_fire )
        return 0;
    player->wait_fire = player->rapid ? ARENA_RAPID_RELOAD_TICKS : ARENA_RELOAD_TICKS;
    return 1;
}

/* How far a shot from here gets before it meets a wall. */
static inline int arena_shot_reach( const struct arena_map_t * map, int x, int y, int aim )
{
    int reach = 0;
    while ( reach < ARENA_RANGE && !arena_is_wall( map, x + arena_cosine( aim ) * ( reach + 16 ) / 16384,
                                                   y + arena_sine( aim ) * ( reach + 16 ) / 16384 ) )
        reach += 16;
    return reach;
}

/* Where along a shot it hits a disc at x, y: a distance, or -1 if it passes. */
static inline int arena_shot_hits( const struct arena_player_t * shooter, int x, int y )
{
    int right = x - shooter->x, down = y - shooter->y;
    int along = ( right * arena_cosine( shooter->aim ) + down * arena_sine( shooter->aim ) ) / 16384;
    int aside = ( down * arena_cosine( shooter->aim ) - right * arena_sine( shooter->aim ) ) / 16384;
    return along > 0 && aside <= ARENA_RADIUS && aside >= -ARENA_RADIUS ? along : -1;
}

/* ---- all players: what the server runs ---- */

static inline void arena_event( struct arena_events_t * events, enum arena_event_type_t type, int player, int other,
                                int x, int y )
{
    struct arena_event_t * event = &events->list[events->count];
    if ( events->count == ARENA_EVENTS )
        return; /* never: a step has a shot, a kill, a pick-up and a return at most for each player */
    events->count++;
    event->type = (uint8_t) type;
    event->player = (uint8_t) player;
    event->other = (uint8_t) other;
    event->x = (int16_t) x;
    event->y = (int16_t) y;
}

static inline int arena_distance( int x, int y )
{
    x = x < 0 ? -x : x;
    y = y < 0 ? -y : y;
    return x > y ? x + y / 2 : y + x / 2; /* near enough, and the same everywhere */
}

static inline int arena_nearest_enemy( const struct arena_t * arena, int slot, int x, int y )
{
    int nearest = ARENA_WIDTH + ARENA_HEIGHT;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_player_t * other = &arena->players[i];
        int distance = arena_distance( other->x - x, other->y - y );
        if ( i != slot && other->is_there && other->health && distance < nearest )
            nearest = distance;
    }
    return nearest;
}

/* The best of four places that were drawn, so that no player comes back before an enemy. */
static inline void arena_spawn( struct arena_t * arena, int slot, struct arena_events_t * events )
{
    struct arena_player_t * player = &arena->players[slot];
    int best = 0, best_distance = -1;
    for ( int i = 0; i < 4; i++ ) {
        int spawn = (int) ( arena_random( arena ) % (uint32_t) arena->map.spawns );
        int distance = arena_nearest_enemy( arena, slot, arena->map.spawn_x[spawn], arena->map.spawn_y[spawn] );
        if ( distance > best_distance ) {
            best = spawn;
            best_distance = distance;
        }
    }
    player->x = arena->map.spawn_x[best];
    player->y = arena->map.spawn_y[best];
    player->health = ARENA_FULL_HEALTH;
    player->rapid = 0;
    player->wait_fire = 0;
    player->wait_spawn = 0;
    if ( events )
        arena_event( events, ARENA_EVENT_SPAWN, slot, ARENA_NOBODY, player->x, player->y );
}

/* 1, or 0 if the text is no map. */
static inline int arena_init( struct arena_t * arena, const uint8_t * map_text, int map_bytes, uint32_t seed )
{
    memset( arena, 0, sizeof( *arena ) );
    arena->random = seed ? seed : 1;
    memset( arena->past, 0xff, sizeof( arena->past ) );
    if ( !arena_map_read( &arena->map, map_text, map_bytes ) )
        return 0;
    for ( int i = 0; i < arena->map.items; i++ ) {
        arena->items[i].kind = arena->map.item_kinds[i];
        arena->items[i].x = arena->map.item_x[i];
        arena->items[i].y = arena->map.item_y[i];
    }
    return 1;
}

static inline void arena_join( struct arena_t * arena, int slot )
{
    memset( &arena->players[slot], 0, sizeof( arena->players[slot] ) );
    arena->players[slot].is_there = 1;
    for ( int i = 0; i < ARENA_HISTORY; i++ )
        arena->past[i].x[slot] = arena->past[i].y[slot] = -1; /* the one before it in this slot stood there */
    arena_spawn( arena, slot, NULL );
}

static inline void arena_leave( struct arena_t * arena, int slot )
{
    memset( &arena->players[slot], 0, sizeof( arena->players[slot] ) );
}

/* Positions after this step are remembered: shots are judged by what their players saw. */
static inline void arena_remember( struct arena_t * arena )
{
    struct arena_past_t * past = &arena->past[arena->tick % ARENA_HISTORY];
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_player_t * player = &arena->players[i];
        int can_be_hit = player->is_there && player->health;
        past->x[i] = can_be_hit ? player->x : -1;
        past->y[i] = can_be_hit ? player->y : -1;
    }
}

/*  Where `slot` stood `age` parts of a tick before this step's end: between two ticks on a straight line, as clients
    draw it. 0 if it could not be hit then. */
static inline int arena_rewind( const struct arena_t * arena, int slot, int age, int * x, int * y )
{
    uint32_t newer = arena->tick - (uint32_t) ( age / ARENA_VIEW_PARTS );
    const struct arena_past_t * after = &arena->past[newer % ARENA_HISTORY];
    const struct arena_past_t * before = &arena->past[( newer - 1 ) % ARENA_HISTORY];
    int part = age % ARENA_VIEW_PARTS;
    if ( after->y[slot] < 0 || ( part && before->y[slot] < 0 ) )
        return 0;
    *x = after->x[slot] + ( before->x[slot] - after->x[slot] ) * part / ARENA_VIEW_PARTS;
    *y = after->y[slot] + ( before->y[slot] - after->y[slot] ) * part / ARENA_VIEW_PARTS;
    return 1;
}

static inline void arena_kill( struct arena_t * arena, int killer, int victim, struct arena_events_t * events )
{
    struct arena_player_t * dead = &arena->players[victim];
    dead->wait_spawn = ARENA_RESPAWN_TICKS;
    if ( arena->players[killer].score < ARENA_MAX_SCORE )
        arena->players[killer].score++;
    arena_event( events, ARENA_EVENT_KILL, killer, victim, dead->x, dead->y );
}

/* The shot hits whom its player saw before the muzzle, if that one still lives and no wall is nearer. */
static inline void arena_shoot( struct arena_t * arena, int slot, const struct arena_command_t * command,
                                struct arena_events_t * events )
{
    const struct arena_player_t * shooter = &arena->players[slot];
    int reach = arena_shot_reach( &arena->map, shooter->x, shooter->y, shooter->aim ), victim = ARENA_NOBODY;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        int x = 0, y = 0;
        if ( i == slot || !arena->players[i].is_there || arena->players[i].health == 0 ||
             !arena_rewind( arena, i, command->view_age, &x, &y ) )
            continue;
        int along = arena_shot_hits( shooter, x, y );
        if ( along >= 0 && along <= reach ) {
            reach = along;
            victim = i;
        }
    }
    arena_event( events, ARENA_EVENT_SHOT, slot, victim, shooter->x + arena_cosine( shooter->aim ) * reach / 16384,
                 shooter->y + arena_sine( shooter->aim ) * reach / 16384 );
    if ( victim == ARENA_NOBODY )
        return;
    struct arena_player_t * hit = &arena->players[victim];
    hit->health = (uint8_t) ( hit->health > ARENA_DAMAGE ? hit->health - ARENA_DAMAGE : 0 );
    if ( hit->health == 0 )
        arena_kill( arena, slot, victim, events );
}

static inline void arena_pick_up( struct arena_t * arena, int slot, struct arena_events_t * events )
{
    struct arena_player_t * player = &arena->players[slot];
    for ( int i = 0; i < arena->map.items; i++ ) {
        struct arena_item_t * item = &arena->items[i];
        if ( item->wait || arena_distance( item->x - player->x, item->y - player->y ) > ARENA_TILE * 3 / 4 ||
             ( item->kind == ARENA_MEDKIT && player->health == ARENA_FULL_HEALTH ) )
            continue;
        if ( item->kind == ARENA_MEDKIT )
            player->health = (uint8_t) arena_clamp( player->health + ARENA_MEDKIT_HEALTH, 0, ARENA_FULL_HEALTH );
        else
            player->rapid = ARENA_RAPID_TICKS;
        item->wait = ARENA_ITEM_TICKS;
        arena_event( events, ARENA_EVENT_PICKUP, slot, i, item->x, item->y );
    }
}

/*  A sixtieth of a second: all move, then all shots are judged in the order of the slots, then items are picked up and
    the dead come back. */
static inline void arena_step( struct arena_t * arena, const struct arena_command_t commands[ARENA_PLAYERS],
                               struct arena_events_t * events )
{
    uint8_t fires[ARENA_PLAYERS];
    events->count = 0;
    arena->tick++;
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        fires[i] = (uint8_t) arena_player_step( &arena->map, &arena->players[i], &commands[i] );
    arena_remember( arena );

    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( fires[i] && arena->players[i].health ) /* not if a shot of this step was faster */
            arena_shoot( arena, i, &commands[i], events );

    for ( int i = 0; i < ARENA_ITEMS; i++ )
        if ( arena->items[i].wait )
            arena->items[i].wait--;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct arena_player_t * player = &arena->players[i];
        if ( player->is_there && player->health )
            arena_pick_up( arena, i, events );
        else if ( player->is_there && --player->wait_spawn == 0 )
            arena_spawn( arena, i, events );
    }
}

#endif
