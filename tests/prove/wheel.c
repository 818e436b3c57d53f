/*  Proofs of the wheel of timers, at 8 buckets and a few timers (small.faults): one step from any state that it can
    be in, at every tick that the wheel can stand at. Run: tests/prove/run.sh wheel

    What is proved elsewhere has a stand-in here: how many ticks a time is (prove_wheel_tick, table.c, at the true size) answer_tick says, any number
    of them; and lists have the members that were inserted and not removed (prove_list, table.c), of which any may be
    the first. */

#define PROVE_SMALL
#include "prove.h"

/* How long it is up to a tick: (double) tick / NC_WHEEL_BUCKETS - now, which small.faults gives this name. */
static double said_time, said_left;
static uint64_t said_tick, left_tick;
static int left_calls;

double prove_left( uint64_t tick, double now )
{
    CLAIM( now == said_time );
    left_tick = tick;
    left_calls++;
    return said_left;
}

enum { TIMERS = 2, BUCKETS = NC_WHEEL_BUCKETS };

/* The library's clock would take 2^21 of its longest steps to get to 2^53 seconds, which is this tick. */
#define LAST_TICK ( (uint64_t) 1 << 63 )

typedef struct {
    nc_wheel_t wheel;
    uint16_t list_of[TIMERS];
} any_wheel_t;

static any_wheel_t it;
static uint8_t member_of[TIMERS]; /* which list has it; NC_WHEEL_LISTS: none */

#define NEVER UINT64_MAX

static uint64_t any_tick( void )
{
    uint64_t tick = any_u64();
    GIVEN( tick <= LAST_TICK );
    return tick;
}

uint64_t answer_tick( double seconds )
{
    CLAIM( seconds == said_time );
    return said_tick;
}

static double any_time( void )
{
    said_time = any_u32();
    said_tick = any_tick();
    return said_time;
}

/* What the wheel sees of a list: how many there are, and one of them. */
static void show_list( uint32_t nth )
{
    nc_list_t * list = &it.wheel.lists[nth];
    list->head = list->tail = NOWHERE;
    list->count = 0;
    for ( uint32_t i = 0; i < TIMERS; i++ )
        if ( member_of[i] == nth ) {
            list->head = list->head == NOWHERE || any_int() ? i : list->head;
            list->count++;
        }
}

static void show_lists( void )
{
    for ( uint32_t i = 0; i < NC_WHEEL_LISTS; i++ )
        show_list( i );
}

void answer_list_insert( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    (void) links;
    CLAIM( index < TIMERS && member_of[index] == NC_WHEEL_LISTS );
    for ( uint8_t i = 0; i < NC_WHEEL_LISTS; i++ )
        if ( list == &it.wheel.lists[i] )
            member_of[index] = i;
    show_lists();
}

void answer_list_remove( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    (void) links;
    CLAIM( index < TIMERS && member_of[index] < NC_WHEEL_LISTS && list == &it.wheel.lists[member_of[index]] );
    member_of[index] = NC_WHEEL_LISTS;
    show_lists();
}

/* The invariant: every timer is in the list that it says or in none. */
static int is_wheel( void )
{
    int good = it.wheel.tick <= LAST_TICK + 1;
    for ( int i = 0; i < TIMERS; i++ )
        good &= it.list_of[i] == member_of[i];
    return good;
}

static void make_wheel( void )
{
    it.wheel.list_of = it.list_of;
    it.wheel.capacity = TIMERS;
    it.wheel.tick = any_u64();
    for ( int i = 0; i < TIMERS; i++ ) {
        member_of[i] = any_u8();
        GIVEN( member_of[i] <= NC_WHEEL_LISTS );
        it.list_of[i] = member_of[i];
    }
    show_lists();
    GIVEN( is_wheel() );
}

/* Where a timer stands: which tick of the turn that begins now its bucket is. */
static uint64_t tick_of( uint32_t timer )
{
    uint64_t list = it.list_of[timer];
    return list < BUCKETS ? it.wheel.tick + ( list - it.wheel.tick ) % BUCKETS : NEVER;
}

/* With nothing set, at any time, whatever was there before. */
void prove_wheel_reset( void )
{
    make_wheel();
    nc_wheel_reset( &it.wheel, any_time() );
    for ( int i = 0; i < TIMERS; i++ )
        member_of[i] = NC_WHEEL_LISTS;
    CLAIM( is_wheel() && it.wheel.tick == said_tick );
    for ( int i = 0; i < NC_WHEEL_LISTS; i++ )
        CLAIM( it.wheel.lists[i].count == 0 && it.wheel.lists[i].head == NOWHERE && it.wheel.lists[i].tail == NOWHERE );
}

/* A timer is set to its tick: not before the next one to look at, and within one turn of the wheel. No other moves. */
void prove_wheel_set( void )
{
    uint32_t timer = any_below( TIMERS ), probe = any_below( TIMERS );
    make_wheel();
    uint64_t before = tick_of( probe ), tick = it.wheel.tick;
    uint16_t list = it.list_of[probe];
    nc_wheel_insert( &it.wheel, timer, any_time() );
    uint64_t expected = said_tick < tick ? tick : said_tick - tick < BUCKETS ? said_tick : tick + BUCKETS - 1;
    CLAIM( is_wheel() && it.wheel.tick == tick );
    CLAIM( tick_of( probe ) == ( probe == timer ? expected : before ) );
    CLAIM( probe == timer || it.list_of[probe] == list );
}

/* No other moves. */
void prove_wheel_remove( void )
{
    uint32_t timer = any_below( TIMERS ), probe = any_below( TIMERS );
    make_wheel();
    uint16_t list = it.list_of[probe];
    nc_wheel_remove( &it.wheel, timer );
    CLAIM( is_wheel() && it.list_of[probe] == ( probe == timer ? NC_WHEEL_LISTS : list ) );
}

/*  A timer that is due is collected, and no other: those whose tick the clock has reached, however far it jumped. In
    cases, because a solver is done with each far sooner than with all: which bucket is the next. */
static void claim_advance( uint32_t bucket )
{
    uint32_t probe = any_below( TIMERS );
    make_wheel();
    uint64_t before = it.wheel.tick, tick = tick_of( probe );
    uint16_t list = it.list_of[probe];
    GIVEN( before % BUCKETS == bucket );
    nc_wheel_advance( &it.wheel, any_time() );
    CLAIM( is_wheel() && it.wheel.tick == ( said_tick < before ? before : said_tick + 1 ) );
    if ( tick != NEVER && said_tick >= before && tick <= said_tick )
        CLAIM( it.list_of[probe] == NC_WHEEL_DUE );
    else
        CLAIM( it.list_of[probe] == list && tick_of( probe ) == tick );
}

/* A timer that is due is taken, once, and no other. */
void prove_wheel_take( void )
{
    uint32_t probe = any_below( TIMERS );
    make_wheel();
    uint16_t list = it.list_of[probe];
    uint32_t timer = nc_wheel_take( &it.wheel );
    CLAIM( is_wheel() && ( timer < TIMERS || timer == NOWHERE ) );
    CLAIM( timer != NOWHERE || list != NC_WHEEL_DUE );
    CLAIM( timer != probe || list == NC_WHEEL_DUE );
    CLAIM( it.list_of[probe] == ( timer == probe ? NC_WHEEL_LISTS : list ) );
}

/*  A wait as long as is returned is late for no timer: it is the time up to the earliest tick where one
    stands. With no timer there it is a second. */
void prove_wheel_seconds_left( void )
{
    uint64_t earliest = NEVER;
    make_wheel();
    for ( uint32_t i = 0; i < TIMERS; i++ )
        earliest = tick_of( i ) < earliest ? tick_of( i ) : earliest;
    said_time = any_u32();
    said_left = any_double();
    GIVEN( said_left == said_left );
    double left = nc_wheel_seconds_left( &it.wheel, said_time );
    if ( earliest == NEVER )
        CLAIM( left == 1.0 && left_calls == 0 );
    else
        CLAIM( left == ( said_left > 0.0 ? said_left : 0.0 ) && left_calls == 1 && left_tick == earliest );
}

#define PROVE_ADVANCE( bucket )               \
    void prove_wheel_advance_##bucket( void ) \
    {                                         \
        claim_advance( bucket );              \
    }

PROVE_ADVANCE( 0 )
PROVE_ADVANCE( 1 )
PROVE_ADVANCE( 2 )
PROVE_ADVANCE( 3 )
PROVE_ADVANCE( 4 )
PROVE_ADVANCE( 5 )
PROVE_ADVANCE( 6 )
PROVE_ADVANCE( 7 )
