/*  Pong's rules, for one match: a step of a sixtieth of a second, in whole numbers, so that every machine computes
    the same from the same inputs. A server runs it and sends snapshots, which hold all of its state; a client may run
    it ahead of them. Used by examples/match_server.c, examples/loadgen.c and examples/pong.c. It needs nothing but
    <stdint.h>.

        struct pong_t pong;
        int moves[2] = { -1, 1 };                    -1 up, 0 stay, 1 down; side 0 is on the left
        pong_init( &pong, 7 );
        int side = pong_step( &pong, moves );        who has scored, or -1
        pong_write( &pong, bytes );                  PONG_BYTES of them
        pong_read( &pong, bytes, PONG_BYTES );       1, or 0 and nothing changed where these can not be a match's */

#ifndef PONG_STEP_H
#define PONG_STEP_H

#include <stdint.h>

enum {
    PONG_HZ = 60,
    PONG_UNIT = 256,             /* positions are parts of a character of an 80 x 24 screen */
    PONG_WIDTH = 80 * PONG_UNIT, /* 0 to this, as the height: 0 is the top */
    PONG_HEIGHT = 24 * PONG_UNIT,
    PONG_PADDLE_X = 2 * PONG_UNIT, /* of side 0; side 1 has its at PONG_WIDTH - PONG_PADDLE_X */
    PONG_PADDLE_HALF = 2 * PONG_UNIT + PONG_UNIT / 2,
    PONG_PADDLE_SPEED = 96, /* in a step */
    PONG_SERVE_SPEED = 112,
    PONG_MAX_SPEED = 384, /* less than the way from a paddle to the wall behind it */
    PONG_SERVE_TICKS = 60,
    PONG_POINTS = 11, /* to win; the serve after that begins a new match */
    PONG_BYTES = 25   /* of a snapshot */
};

struct pong_t {
    uint32_t tick;
    uint32_t random;
    int ball_x, ball_y, ball_dx, ball_dy; /* the ball's place, and what it moves in a step */
    int paddles[2];                       /* the middle of each */
    int scores[2];
    int serve_ticks; /* until the ball leaves the middle */
};

static inline uint32_t pong_random( struct pong_t * pong )
{
    pong->random ^= pong->random << 13;
    pong->random ^= pong->random >> 17;
    pong->random ^= pong->random << 5;
    return pong->random;
}

static inline int pong_clamp( int value, int lowest, int highest )
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* The ball waits in the middle, and will go to `side`. */
static inline void pong_serve( struct pong_t * pong, int side )
{
    pong->ball_x = PONG_WIDTH / 2;
    pong->ball_y = PONG_HEIGHT / 2;
    pong->ball_dx = side ? PONG_SERVE_SPEED : -PONG_SERVE_SPEED;
    pong->ball_dy = (int) ( pong_random( pong ) % 129 ) - 64;
    pong->serve_ticks = PONG_SERVE_TICKS;
}

static inline void pong_init( struct pong_t * pong, uint32_t seed )
{
    pong->tick = 0;
    pong->random = seed * 2654435761u + 1;
    if ( pong->random == 0 )
        pong->random = 1; /* zero would stay zero */
    pong->paddles[0] = pong->paddles[1] = PONG_HEIGHT / 2;
    pong->scores[0] = pong->scores[1] = 0;
    pong_serve( pong, (int) ( pong_random( pong ) & 1 ) );
}

/* Who has won, or -1. */
static inline int pong_winner( const struct pong_t * pong )
{
    return pong->scores[0] >= PONG_POINTS ? 0 : pong->scores[1] >= PONG_POINTS ? 1 : -1;
}

/* The walls above and below. */
static inline void pong_bounce_walls( struct pong_t * pong )
{
    if ( pong->ball_y < 0 || pong->ball_y > PONG_HEIGHT ) {
        pong->ball_y = pong->ball_y < 0 ? -pong->ball_y : 2 * PONG_HEIGHT - pong->ball_y;
        pong->ball_dy = -pong->ball_dy;
    }
}

/*  The paddle of `side`, if the ball has just come to it. Each hit makes the ball faster, one off the middle also
    steeper. */
static inline void pong_bounce_paddle( struct pong_t * pong, int side, int before )
{
    int plane = side ? PONG_WIDTH - PONG_PADDLE_X : PONG_PADDLE_X, off = pong->ball_y - pong->paddles[side];
    int crossed = side ? before < plane && pong->ball_x >= plane : before > plane && pong->ball_x <= plane;
    if ( !crossed || off > PONG_PADDLE_HALF || off < -PONG_PADDLE_HALF )
        return;
    int speed = pong_clamp( ( side ? pong->ball_dx : -pong->ball_dx ) + 8, 1, PONG_MAX_SPEED );
    pong->ball_x = 2 * plane - pong->ball_x;
    pong->ball_dx = side ? -speed : speed;
    pong->ball_dy = pong_clamp( pong->ball_dy + off / 8, -PONG_MAX_SPEED, PONG_MAX_SPEED );
}

/* One step with what each side does: -1 up, 0 stay, 1 down. Returns the side that has scored, or -1. */
static inline int pong_step( struct pong_t * pong, const int moves[2] )
{
    int before = pong->ball_x;
    pong->tick++;
    for ( int i = 0; i < 2; i++ )
        pong->paddles[i] = pong_clamp( pong->paddles[i] + pong_clamp( moves[i], -1, 1 ) * PONG_PADDLE_SPEED,
                                       PONG_PADDLE_HALF, PONG_HEIGHT - PONG_PADDLE_HALF );
    if ( pong->serve_ticks > 0 ) {
        if ( --pong->serve_ticks == 0 && pong_winner( pong ) >= 0 )
            pong->scores[0] = pong->scores[1] = 0;
        return -1;
    }
    pong->ball_x += pong->ball_dx;
    pong->ball_y += pong->ball_dy;
    pong_bounce_walls( pong );
    pong_bounce_paddle( pong, 0, before );
    pong_bounce_paddle( pong, 1, before );
    if ( pong->ball_x > 0 && pong->ball_x < PONG_WIDTH )
        return -1;
    int scorer = pong->ball_x <= 0;
    pong->scores[scorer]++;
    pong_serve( pong, !scorer );
    return scorer;
}

/*  What a middling player does: follows the ball when it comes, and is wrong by a little more than a paddle now and
    then. */
static inline int pong_bot( const struct pong_t * pong, int side )
{
    int comes = side ? pong->ball_dx > 0 : pong->ball_dx < 0;
    uint32_t mood = ( pong->tick / 32 + (uint32_t) side * 77u ) * 2654435761u >> 16;
    int wrong = (int) ( mood % ( 2 * PONG_PADDLE_HALF + 257 ) ) - PONG_PADDLE_HALF - 128;
    int target = comes && pong->serve_ticks == 0 ? pong->ball_y + wrong : PONG_HEIGHT / 2;
    int off = target - pong->paddles[side];
    return off > PONG_PADDLE_SPEED ? 1 : off < -PONG_PADDLE_SPEED ? -1 : 0;
}

static inline uint8_t * pong_put( uint8_t * out, uint32_t value, int bytes )
{
    for ( ; bytes--; value >>= 8 )
        *out++ = (uint8_t) value;
    return out;
}

static inline uint32_t pong_get( const uint8_t ** at, int bytes )
{
    uint32_t value = 0;
    for ( int i = 0; i < bytes; i++ )
        value |= (uint32_t) ( *at )[i] << ( 8 * i );
    *at += bytes;
    return value;
}

/* Two's complement, whatever the machine has. */
static inline int pong_get_signed( const uint8_t ** at )
{
    int value = (int) pong_get( at, 2 );
    return value >= 0x8000 ? value - 0x10000 : value;
}

/*  Little-endian: tick 4, random 4, ball x, y, dx, dy 2 each, paddles 2 each, scores 1 each, ticks until the serve 1,
    all 25. */
static inline void pong_write( const struct pong_t * pong, uint8_t bytes[PONG_BYTES] )
{
    uint8_t * at = pong_put( bytes, pong->tick, 4 );
    at = pong_put( at, pong->random, 4 );
    at = pong_put( at, (uint32_t) pong->ball_x, 2 );
    at = pong_put( at, (uint32_t) pong->ball_y, 2 );
    at = pong_put( at, (uint32_t) pong->ball_dx, 2 );
    at = pong_put( at, (uint32_t) pong->ball_dy, 2 );
    at = pong_put( at, (uint32_t) pong->paddles[0], 2 );
    at = pong_put( at, (uint32_t) pong->paddles[1], 2 );
    at = pong_put( at, (uint32_t) pong->scores[0], 1 );
    at = pong_put( at, (uint32_t) pong->scores[1], 1 );
    pong_put( at, (uint32_t) pong->serve_ticks, 1 );
}

static inline int pong_within( int value, int lowest, int highest )
{
    return value >= lowest && value <= highest;
}

/* A state that a match can be in. */
static inline int pong_is_possible( const struct pong_t * pong )
{
    int good = pong->random != 0 && pong_within( pong->ball_x, 0, PONG_WIDTH ) &&
               pong_within( pong->ball_y, 0, PONG_HEIGHT ) && pong->ball_dx != 0 &&
               pong_within( pong->ball_dx, -PONG_MAX_SPEED, PONG_MAX_SPEED ) &&
               pong_within( pong->ball_dy, -PONG_MAX_SPEED, PONG_MAX_SPEED ) &&
               pong_within( pong->serve_ticks, 0, PONG_SERVE_TICKS );
    for ( int i = 0; i < 2; i++ )
        good = good && pong_within( pong->scores[i], 0, PONG_POINTS ) &&
               pong_within( pong->paddles[i], PONG_PADDLE_HALF, PONG_HEIGHT - PONG_PADDLE_HALF );
    return good;
}

/* 1, or 0 and nothing is changed. */
static inline int pong_read( struct pong_t * pong, const uint8_t * data, int bytes )
{
    struct pong_t read;
    if ( bytes != PONG_BYTES )
        return 0;
    read.tick = pong_get( &data, 4 );
    read.random = pong_get( &data, 4 );
    read.ball_x = (int) pong_get( &data, 2 );
    read.ball_y = (int) pong_get( &data, 2 );
    read.ball_dx = pong_get_signed( &data );
    read.ball_dy = pong_get_signed( &data );
    read.paddles[0] = (int) pong_get( &data, 2 );
    read.paddles[1] = (int) pong_get( &data, 2 );
    read.scores[0] = (int) pong_get( &data, 1 );
    read.scores[1] = (int) pong_get( &data, 1 );
    read.serve_ticks = (int) pong_get( &data, 1 );
    if ( !pong_is_possible( &read ) )
        return 0;
    *pong = read;
    return 1;
}

#endif
