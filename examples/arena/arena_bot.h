/*  A player that plays by itself: it knows what a client knows and no more, presses buttons and turns. Include it
    behind arena_client.h. */

#ifndef ARENA_BOT_H
#define ARENA_BOT_H

#include "arena_client.h"

struct arena_bot_t {
    uint32_t random;
    int goal_x, goal_y;
    double goal_time; /* when another goal is chosen */
    double last_x, last_y, stuck_time;
    double aim_error; /* 256ths of a turn: it is no machine */
    double error_time;
};

static inline void arena_bot_init( struct arena_bot_t * bot, uint32_t seed )
{
    memset( bot, 0, sizeof( *bot ) );
    bot->random = seed * 2654435761u + 1;
    bot->random = bot->random ? bot->random : 1;
}

static inline int arena_bot_random( struct arena_bot_t * bot, int below )
{
    bot->random ^= bot->random << 13;
    bot->random ^= bot->random >> 17;
    bot->random ^= bot->random << 5;
    return (int) ( bot->random % (uint32_t) below );
}

/* The nearest player that it sees: its slot, or -1. */
static inline int arena_bot_enemy( const struct arena_client_t * client, double x, double y,
                                   struct arena_drawn_t * enemy )
{
    int nearest = -1, nearest_distance = ARENA_RANGE;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct arena_drawn_t other;
        if ( i == client->slot || !arena_client_other( client, i, &other ) )
            continue;
        int distance = arena_distance( (int) ( other.x - x ), (int) ( other.y - y ) );
        if ( distance < nearest_distance &&
             arena_sees( &client->map, (int) x, (int) y, (int) other.x, (int) other.y ) ) {
            nearest = i;
            nearest_distance = distance;
            *enemy = other;
        }
    }
    return nearest;
}

/* An item that is there, or any place on the map. */
static inline void arena_bot_choose_goal( struct arena_bot_t * bot, const struct arena_client_t * client )
{
    int item = client->map.items ? arena_bot_random( bot, client->map.items ) : -1;
    if ( item >= 0 && client->newest.items >> item & 1 && arena_bot_random( bot, 2 ) ) {
        bot->goal_x = client->map.item_x[item];
        bot->goal_y = client->map.item_y[item];
    } else {
        bot->goal_x = arena_bot_random( bot, ARENA_WIDTH );
        bot->goal_y = arena_bot_random( bot, ARENA_HEIGHT );
    }
    bot->goal_time = client->time + 1.0 + arena_bot_random( bot, 200 ) * 0.01;
}

/* What it does now. */
static inline void arena_bot_play( struct arena_bot_t * bot, const struct arena_client_t * client, int * buttons,
                                   int * aim )
{
    struct arena_drawn_t enemy;
    double x, y;
    arena_client_own( client, &x, &y );
    if ( client->time - bot->stuck_time > 0.5 ) {
        if ( fabs( x - bot->last_x ) + fabs( y - bot->last_y ) < ARENA_TILE )
            bot->goal_time = 0.0; /* a wall is in the way: elsewhere, then */
        bot->stuck_time = client->time;
        bot->last_x = x;
        bot->last_y = y;
    }
    if ( client->time >= bot->goal_time )
        arena_bot_choose_goal( bot, client );
    *buttons = ( bot->goal_x > x + ARENA_RADIUS   ? ARENA_RIGHT
                 : bot->goal_x < x - ARENA_RADIUS ? ARENA_LEFT
                                                  : 0 ) |
               ( bot->goal_y > y + ARENA_RADIUS   ? ARENA_DOWN
                 : bot->goal_y < y - ARENA_RADIUS ? ARENA_UP
                                                  : 0 );

    int other = arena_bot_enemy( client, x, y, &enemy );
    double at_x = other >= 0 ? enemy.x : bot->goal_x, at_y = other >= 0 ? enemy.y : bot->goal_y;
    if ( client->time >= bot->error_time ) {
        bot->aim_error = arena_bot_random( bot, 17 ) - 8;
        bot->error_time = client->time + 0.3;
    }
    double turn = atan2( at_y - y, at_x - x ) * 128.0 / 3.14159265358979 + bot->aim_error;
    *aim = ( (int) turn + 512 ) % 256;
    if ( other >= 0 )
        *buttons |= ARENA_FIRE;
}

#endif
