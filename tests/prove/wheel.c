/*  Proofs of room 8's wheel of timers, at 64 buckets (small.edit) and a few timers: for every tick that the wheel can stand at,
    and every time a caller's clock can show. Run: tests/prove/run.sh wheel */

#define PROVE_SMALL
#include "prove.h"

enum { TIMERS = 1 };

/* The library's clock would take 2^21 of its longest steps to get here. */
#define LATEST 9007199254740992.0

typedef struct {
    nc_wheel_t wheel;
    nc_link_t links[TIMERS];
    uint16_t list_of[TIMERS];
    uint64_t ticks[TIMERS]; /* where each timer stands; NEVER where it is not set */
} any_wheel_t;

#define NEVER UINT64_MAX

static double any_time( void )
{
    double time = any_double();
    GIVEN( time >= 0.0 && time < LATEST );
    return time;
}

/* Where a timer for this tick is to stand: not before the next tick to look at, and within one turn of the wheel. */
static uint64_t expected_tick( const nc_wheel_t * wheel, double deadline )
{
    uint64_t tick = (uint64_t) ( deadline * 64.0 );
    if ( tick < wheel->tick )
        return wheel->tick;
    return tick - wheel->tick < 64 ? tick : wheel->tick + 63;
}

/* Any wheel at any tick, its timers set or not, in any order. */
static void make_wheel( any_wheel_t * it )
{
    it->wheel.links = it->links;
    it->wheel.list_of = it->list_of;
    it->wheel.capacity = TIMERS;
    nc_wheel_reset( &it->wheel, 0.0 );
    it->wheel.tick = any_u64();
    GIVEN( it->wheel.tick <= (uint64_t) ( LATEST * 64.0 ) );
    int last_is_first = any_int() != 0;
    for ( uint32_t i = 0; i < TIMERS; i++ ) {
        uint32_t timer = last_is_first ? TIMERS - 1 - i : i;
        double deadline = any_time();
        it->ticks[timer] = NEVER;
        if ( any_int() )
            continue;
        it->ticks[timer] = expected_tick( &it->wheel, deadline );
        nc_wheel_insert( &it->wheel, timer, deadline );
    }
}

/* A timer stands where it is said to, and a bucket is busy exactly if somebody stands in it. Told at one of each. */
static void claim_wheel( const any_wheel_t * it )
{
    uint32_t timer = any_below( TIMERS ), bucket = any_below( NC_WHEEL_BUCKETS ), count = 0;
    uint32_t list = it->ticks[timer] == NEVER ? NC_WHEEL_LISTS : (uint32_t) ( it->ticks[timer] % 64 );
    CLAIM( it->list_of[timer] == list );
    for ( uint32_t i = 0; i < TIMERS; i++ )
        count += it->ticks[i] != NEVER && it->ticks[i] % 64 == bucket;
    CLAIM( it->wheel.lists[bucket].count == count );
    CLAIM( ( it->wheel.busy[bucket / 64] >> bucket % 64 & 1 ) == ( count != 0 ) );
}

void prove_wheel_set( void )
{
    any_wheel_t it;
    make_wheel( &it );
    claim_wheel( &it );
    uint32_t timer = any_below( TIMERS );
    double deadline = any_time();
    if ( any_int() ) {
        nc_wheel_insert( &it.wheel, timer, deadline );
        it.ticks[timer] = expected_tick( &it.wheel, deadline );
    } else {
        nc_wheel_remove( &it.wheel, timer );
        it.ticks[timer] = NEVER;
    }
    claim_wheel( &it );
}

/* Who is due is taken, once, and nobody else: those whose tick the clock has reached, however far it jumped. */
void prove_wheel_advance( void )
{
    any_wheel_t it;
    make_wheel( &it );
    double now = any_time();
    uint64_t before = it.wheel.tick, end = (uint64_t) ( now * 64.0 );
    int taken[TIMERS] = { 0 };
    nc_wheel_advance( &it.wheel, now );
    CLAIM( it.wheel.tick == ( end < before ? before : end + 1 ) );
    for ( int i = 0; i < TIMERS + 1; i++ ) {
        uint32_t timer = nc_wheel_take( &it.wheel );
        CLAIM( timer == NOWHERE || timer < TIMERS );
        if ( timer != NOWHERE )
            taken[timer]++;
    }
    CLAIM( nc_wheel_take( &it.wheel ) == NOWHERE );
    for ( uint32_t i = 0; i < TIMERS; i++ ) {
        CLAIM( taken[i] == ( it.ticks[i] != NEVER && end >= before && it.ticks[i] <= end ) );
        if ( taken[i] )
            it.ticks[i] = NEVER;
    }
    claim_wheel( &it );
}

/* Whoever waits as long as it is told is late for nobody by more than a bucket. */
void prove_wheel_seconds_left( void )
{
    any_wheel_t it;
    make_wheel( &it );
    double now = any_time(), left = nc_wheel_seconds_left( &it.wheel, now );
    uint32_t timer = any_below( TIMERS );
    CLAIM( left >= 0.0 );
    CLAIM( it.ticks[timer] == NEVER || left == 0.0 || left <= (double) it.ticks[timer] / 64.0 - now );
}
