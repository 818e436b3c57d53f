/*  Proofs of the messages' heap: one step from any heap of 10 units of 16 bytes, with two sizes that are kept ready
    and two blocks of a list that are looked at instead of eight (small.faults). Run: tests/prove/run.sh
    messages_heap

    messages_heap_few.c has the same with 6 units, for steps that change more, messages_heap_one.c with one place
    of a list that is looked at. For a function that must not be reached, or that has its own proof, stands
    another: FUNCTION=answer_... in proofs.list. */

#define PROVE_SMALL
#define NETCODE_MESSAGES
#include "prove.h"

#ifndef UNITS
#define UNITS 10
#endif

enum {
    UNIT = NC_HEAP_UNIT,
    WORDS = 4 + 4 * UNITS,
    LISTS = 8,
    READY_MOST = 2, /* of each size, and one more when it is given back */
    TAKEN_MOST = UNITS * UNIT
};

/* Which list has pieces of so many units: two lists for each power of two. */
static const uint8_t list_of[16] = { 0, 0, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7 };

static uint32_t memory[WORDS];
static struct netcode_messages_t messages;
#define heap messages.in

/*  What is where: sets of units, and for what begins at a unit how many it has and what stands before and behind
    it in its list. Ranks rise along a list, so none is a ring. NONE is no piece, BAD is no block. */
enum { NONE = 0x40, BAD = 0x80 };

typedef struct {
    uint32_t starts, free, ready, taken;
    uint8_t units[UNITS], next[UNITS], before[UNITS], rank[UNITS];
} pieces_t;

static uint32_t place_of( uint32_t unit )
{
    return 16 + UNIT * unit;
}

static uint8_t unit_of( uint32_t place )
{
    if ( place == 0 )
        return NONE;
    return place % UNIT == 0 && place >= 16 && place < place_of( UNITS ) ? (uint8_t) ( ( place - 16 ) / UNIT ) : BAD;
}

static int is_in( uint32_t set, uint32_t unit )
{
    return unit < UNITS && ( set >> unit & 1 );
}

/* The words in front agree with each other from one end to the other, and two free blocks are never side by side. */
static int are_pieces( pieces_t * it )
{
    uint32_t before = 0, next = 0, was_free = 0;
    int good = memory[3] == 0 && memory[2 + 4 * UNITS] == 1 && heap.bytes == UNIT * UNITS;
    it->starts = it->free = 0;
    for ( uint32_t i = 0; i < UNITS; i++ ) {
        uint32_t word = memory[2 + 4 * i], is_free = !( word & 1 );
        it->units[i] = 0;
        if ( i != next )
            continue;
        it->units[i] = (uint8_t) ( word / UNIT );
        it->starts |= 1u << i;
        it->free |= is_free << i;
        good &=
            ( word & ( UNIT - 2 ) ) == 0 && word / UNIT >= 1 && word / UNIT <= UNITS - i && !( was_free && is_free );
        good &= memory[3 + 4 * i] == before;
        was_free = is_free;
        before = word & ~1u;
        next = i + word / UNIT;
    }
    return good && next == UNITS && memory[3 + 4 * UNITS] == before;
}

/* A list begins with a free block of its size that none stands before. */
static int is_free_list( const pieces_t * it, uint32_t list )
{
    uint8_t head = unit_of( heap.lists[list] );
    if ( head == NONE )
        return !( heap.filled >> list & 1 );
    return is_in( it->free, head ) && list_of[it->units[head] & 15] == list && it->before[head] == NONE &&
           ( heap.filled >> list & 1 );
}

/* A free block is in the list of its size, between two that say so too. */
static int is_listed( const pieces_t * it, uint32_t unit )
{
    uint8_t list = list_of[it->units[unit] & 15], next = it->next[unit], before = it->before[unit];
    int good = next == NONE || ( is_in( it->free, next ) && it->before[next] == unit &&
                                 list_of[it->units[next] & 15] == list && it->rank[next] > it->rank[unit] );
    return good && ( before == NONE ? unit_of( heap.lists[list] ) == unit
                                    : is_in( it->free, before ) && it->next[before] == unit );
}

static void read_links( pieces_t * it )
{
    for ( uint32_t i = 0; i < UNITS; i++ ) {
        it->next[i] = unit_of( memory[4 * i + 4] );
        it->before[i] = unit_of( memory[4 * i + 5] );
    }
}

static int is_free_part( pieces_t * it )
{
    int good = are_pieces( it );
    read_links( it );
    for ( uint32_t i = 0; i < LISTS; i++ )
        good = good && is_free_list( it, i );
    for ( uint32_t i = 0; i < UNITS; i++ )
        good = good && ( !( it->free >> i & 1 ) || is_listed( it, i ) );
    return good && heap.filled >> LISTS == 0;
}

/* What is ready is in use for those around it. */
static int is_ready_list( pieces_t * it, uint32_t units )
{
    uint8_t at = unit_of( heap.ready[units - 1] );
    int good = 1;
    for ( uint32_t i = 0; i <= READY_MOST && at != NONE && good; i++ ) {
        good = is_in( it->starts & ~it->free & ~it->ready, at ) && it->units[at] == units;
        if ( !good )
            break;
        it->ready |= 1u << at;
        at = it->next[at];
    }
    return good && at == NONE;
}

/* What the heap says of itself is true. */
static int is_heap( pieces_t * it )
{
    uint32_t used = 0;
    int good = is_free_part( it );
    it->ready = 0;
    for ( uint32_t i = 1; i <= NC_HEAP_SMALL; i++ )
        good = good && is_ready_list( it, i );
    it->taken = it->starts & ~it->free & ~it->ready;
    for ( uint32_t i = 0; i < UNITS; i++ )
        used += it->taken >> i & 1 ? it->units[i] : 0;
    return good && heap.used == UNIT * used;
}

static void any_cells( void )
{
    heap.base = (uint8_t *) memory;
    heap.bytes = UNIT * UNITS;
    heap.used = any_u32();
    heap.filled = any_u64();
    for ( int i = 0; i < NC_HEAP_LISTS; i++ )
        heap.lists[i] = i < LISTS ? any_u32() : 0;
    for ( int i = 0; i < NC_HEAP_SMALL; i++ )
        heap.ready[i] = any_u32();
    for ( int i = 0; i < WORDS; i++ )
        memory[i] = any_u32();
}

/* The heap before the step, and one word of what is allocated in it. */
static pieces_t state;
static uint32_t probe, probe_value;

/* A step may add one. */
static int has_few_ready( void )
{
    uint32_t count[NC_HEAP_SMALL + 1] = { 0 };
    for ( uint32_t i = 0; i < UNITS; i++ )
        count[state.ready >> i & 1 ? state.units[i] & 3 : 0]++;
    return count[1] <= READY_MOST && count[2] <= READY_MOST;
}

static void any_heap( void )
{
    uint32_t unit = any_below( UNITS );
    any_cells();
    for ( int i = 0; i < UNITS; i++ )
        state.rank[i] = any_u8() & 15;
    GIVEN( is_heap( &state ) && has_few_ready() );
    probe = any_below( WORDS );
    GIVEN( !( state.taken >> unit & 1 ) || ( probe >= 4 + 4 * unit && probe < 2 + 4 * ( unit + state.units[unit] ) ) );
    GIVEN( state.taken >> unit & 1 || probe == 0 );
    probe_value = memory[probe];
}

static int is_head( uint32_t unit )
{
    int found = 0;
    for ( int i = 0; i < LISTS; i++ )
        found |= unit_of( heap.lists[i] ) == unit;
    return found;
}

/* What the heap says of itself is still true, so much more and so much less is allocated, and what is in it stays. */
static void claim_heap( uint32_t more, uint32_t less )
{
    pieces_t after;
    int same = 1;
    for ( uint32_t i = 0; i < UNITS; i++ )
        after.rank[i] = is_head( i ) ? 0 : (uint8_t) ( state.rank[i] + 1 );
    CLAIM( is_heap( &after ) );
    CLAIM( after.taken == ( ( state.taken | more ) & ~less ) && memory[probe] == probe_value );
    for ( uint32_t i = 0; i < UNITS; i++ )
        same &= !( after.taken & state.taken & 1u << i ) || after.units[i] == state.units[i];
    CLAIM( same );
}

/* Is there a block of so many bytes among those of its list that are looked at? The first of a list always is. */
static int is_found( uint32_t bytes )
{
    int found = 0;
    for ( uint32_t i = 0; i < LISTS; i++ ) {
        uint32_t place = heap.lists[i];
        for ( int tries = 0; tries < PROVE_TRIES && place; tries++ ) {
            found |= memory[place / 4 - 2] >= bytes;
            place = memory[place / 4];
        }
    }
    return found;
}

void answer_never( nc_heap_t * it )
{
    (void) it;
    CLAIM( 0 );
    GIVEN( 0 );
}

/* Any heap with the same in use and nothing ready: prove_messages_heap_tidy. */
void answer_tidy( nc_heap_t * it )
{
    pieces_t before = state;
    uint32_t had = probe, value = probe_value;
    any_heap();
    GIVEN( it == &heap && state.taken == before.taken && state.ready == 0 );
    for ( int i = 0; i < UNITS; i++ )
        GIVEN( !( state.taken >> i & 1 ) || state.units[i] == before.units[i] );
    probe = had;
    probe_value = value;
    GIVEN( memory[probe] == probe_value );
}

/*  Nothing, or any free block that is large enough: prove_messages_heap_search. Where that is not the heap from
    before, it is another one with nothing ready and the same in use: one of those that the proof begins with. */
uint32_t answer_search( nc_heap_t * it, uint32_t size )
{
    uint32_t unit = any_below( UNITS + 1 );
    GIVEN( it == &heap && ( unit == UNITS || ( state.free >> unit & 1 && UNIT * state.units[unit] >= size ) ) );
    return unit == UNITS ? 0 : place_of( unit );
}

/*  The rule that what a packet needs is found by: where a block among those that are looked at is large enough for it,
    each of its parts is found, in any order, without tidying, and such a block is large enough for the rest. */
void prove_messages_heap_rule( void )
{
    any_heap();
    uint32_t room = UNIT * any_below( UNITS + 1 ), bytes = any_below( TAKEN_MOST ), size = nc_heap_round( bytes );
    GIVEN( size <= room && is_found( room ) );
    CLAIM( nc_heap_take( &heap, bytes ) != 0 );
    CLAIM( room == size || is_found( room - size ) );
}

/* No frames: what they would have asked for is any plan. */
int answer_header( struct netcode_messages_t * it, nc_source_t * source, nc_plan_t * plan )
{
    (void) it;
    (void) source;
    (void) plan;
    return NETCODE_MESSAGES_DROP_NONE;
}

/* And so it is for all that a packet was promised. */
void prove_messages_heap_promise( void )
{
    uint8_t byte = 0;
    nc_source_t source = { &byte, &byte, 0 };
    nc_plan_t plan;
    any_heap();
    plan.acks.count = 0;
    plan.cost = any_u32();
    plan.reliable_room = UNIT * any_below( UNITS + 2 );
    plan.room = UNIT * any_below( UNITS + 2 );
    messages.credit_granted = any_u32();
    messages.credit_received = any_u32();
    int reason = nc_messages_check_packet( &messages, &source, &plan );
    uint32_t room = plan.reliable_room + plan.room;
    CLAIM( reason != NETCODE_MESSAGES_DROP_NONE || room == 0 || is_found( room ) );
}

void prove_messages_heap_search( void )
{
    any_heap();
    uint32_t size = UNIT * ( 1 + any_below( UNITS ) ), place = nc_heap_search( &heap, size );
    CLAIM( place == 0 || ( is_in( state.free, unit_of( place ) ) && UNIT * state.units[unit_of( place )] >= size ) );
    claim_heap( 0, 0 );
}

void prove_messages_heap_take( void )
{
    any_heap();
    uint32_t bytes = any_below( TAKEN_MOST ), place = nc_heap_take( &heap, bytes );
    uint8_t unit = unit_of( place );
    if ( place == 0 ) {
        claim_heap( 0, 0 );
        return;
    }
    CLAIM( unit < UNITS && !( state.taken >> unit & 1 ) );
    CLAIM( memory[place / 4 - 2] > bytes + 8 && memory[place / 4 - 2] <= bytes + 8 + UNIT );
    claim_heap( 1u << unit, 0 );
}

void prove_messages_heap_give( void )
{
    any_heap();
    uint32_t unit = any_below( UNITS );
    GIVEN( state.taken >> unit & 1 && ( probe < 4 + 4 * unit || probe >= 4 + 4 * ( unit + state.units[unit] ) ) );
    nc_heap_free( &heap, place_of( unit ) );
    claim_heap( 0, 1u << unit );
}

/* One step of it: a block is ready, or none is. */
void prove_messages_heap_tidy( void )
{
    any_heap();
    GIVEN( ( state.ready & ( state.ready - 1 ) ) == 0 );
    nc_heap_tidy( &heap );
    CLAIM( heap.ready[0] == 0 && heap.ready[1] == 0 );
    claim_heap( 0, 0 );
}

void prove_messages_heap_init( void )
{
    any_cells();
    probe_value = memory[probe];
    nc_heap_init( &heap, (uint8_t *) memory, WORDS * 4 );
    claim_heap( 0, 0 );
}
