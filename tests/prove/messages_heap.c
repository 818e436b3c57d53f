/*  Proofs of the messages' heap: one step from any heap of 56 bytes with up to 3 handles, whatever was taken, freed and
    moved before. Run: tests/prove/run.sh messages_heap */

#define PROVE_SMALL
#define NETCODE_MESSAGES
#include <stdint.h>

enum { CELLS = 7, BYTES = 8 * CELLS, HANDLES = 3, NO_CELL = 0xff };

/* Blocks are moved towards the start, in whole cells. */
static void move_cells( void * to, const void * from, unsigned long bytes )
{
    for ( unsigned long i = 0; i < CELLS; i++ )
        if ( 8 * i < bytes )
            ( (uint64_t *) to )[i] = ( (const uint64_t *) from )[i];
}

#include <string.h>
#define memmove move_cells
#include "prove.h"

static uint64_t memory[CELLS];
static nc_heap_t heap;

/* Where the block of each handle is, and of how many cells; NO_CELL is none. */
typedef struct {
    uint8_t at[HANDLES + 1], cells[HANDLES + 1];
    uint32_t used;
} blocks_t;

static blocks_t before;
static uint32_t probe_handle, probe_at; /* one word of one block */
static uint32_t probe_value;

static uint32_t * word_of( uint32_t at )
{
    return (uint32_t *) (void *) memory + at;
}

static int is_handle( uint32_t handle )
{
    return handle >= 1 && handle <= heap.handles;
}

/* Blocks stand behind each other up to the end, and each that is in use has one handle, which has its offset. */
static int are_blocks( blocks_t * blocks )
{
    uint32_t next = 0, good = 1;
    blocks->used = 0;
    for ( int i = 0; i <= HANDLES; i++ )
        blocks->at[i] = NO_CELL;
    for ( uint32_t cell = 0; cell < CELLS; cell++ ) {
        uint32_t bytes = *word_of( 2 * cell ), handle = *word_of( 2 * cell + 1 );
        if ( cell != next || 8 * cell >= heap.end )
            continue;
        good &= bytes >= 8 && bytes % 8 == 0 && bytes <= heap.end - 8 * cell;
        if ( !good )
            return 0;
        next = cell + bytes / 8;
        if ( handle == 0 )
            continue;
        good &= is_handle( handle );
        if ( !good || blocks->at[handle] != NO_CELL || !nc_heap_has( &heap, handle ) ||
             *nc_heap_entry( &heap, handle ) != 8 * cell + 8 )
            return 0;
        blocks->at[handle] = (uint8_t) cell;
        blocks->cells[handle] = (uint8_t) ( bytes / 8 );
        blocks->used += bytes;
    }
    return 8 * next == heap.end && blocks->used == heap.used;
}

/* The other handles are a chain. */
static int are_handles( const blocks_t * blocks )
{
    uint32_t live = 0, free_count = 0, seen = 0, handle = heap.free_handle;
    for ( int i = 1; i <= HANDLES; i++ )
        live += blocks->at[i] != NO_CELL;
    for ( int i = 0; i < HANDLES && handle; i++ ) {
        if ( !is_handle( handle ) || nc_heap_has( &heap, handle ) || blocks->at[handle] != NO_CELL ||
             seen >> handle & 1 )
            return 0;
        seen |= 1u << handle;
        free_count++;
        handle = *nc_heap_entry( &heap, handle ) - 0x80000000u;
    }
    return handle == 0 && live + free_count == heap.handles;
}

static int is_store( blocks_t * blocks )
{
    if ( heap.bytes != BYTES || heap.handles > HANDLES || heap.end > heap.high || heap.high > BYTES ||
         heap.end % 8 != 0 || heap.end + 4 * heap.handles > BYTES )
        return 0;
    return are_blocks( blocks ) && are_handles( blocks ) &&
           ( heap.fixed == 0 || ( is_handle( heap.fixed ) && blocks->at[heap.fixed] != NO_CELL ) );
}

static void any_store( void )
{
    for ( int i = 0; i < CELLS; i++ )
        memory[i] = any_u64();
    heap.base = (uint8_t *) memory;
    heap.bytes = BYTES;
    heap.used = any_u32();
    heap.end = any_u32();
    heap.high = any_u32();
    heap.handles = any_u32();
    heap.free_handle = any_u32();
    heap.fixed = any_u32();
    GIVEN( is_store( &before ) );
    probe_handle = any_below( HANDLES + 1 );
    probe_at = any_below( 2 * CELLS );
    GIVEN( probe_handle == 0 || ( is_handle( probe_handle ) && before.at[probe_handle] != NO_CELL ) );
    if ( probe_handle ) {
        GIVEN( probe_at >= 2 && probe_at < 2u * before.cells[probe_handle] );
        probe_value = *word_of( 2u * before.at[probe_handle] + probe_at );
    }
}

/* All that was in use and was not freed still is, with what it had, and the fixed block where it was; `taken` is new. */
static void claim_store( uint32_t taken, uint32_t freed )
{
    blocks_t after;
    CLAIM( is_store( &after ) );
    for ( uint32_t i = 1; i <= HANDLES; i++ ) {
        int was = before.at[i] != NO_CELL, is = after.at[i] != NO_CELL;
        CLAIM( is == ( ( was && i != freed ) || i == taken ) );
        CLAIM( !was || !is || i == taken || after.cells[i] == before.cells[i] );
    }
    if ( probe_handle && probe_handle != freed )
        CLAIM( *word_of( 2u * after.at[probe_handle] + probe_at ) == probe_value );
    if ( heap.fixed )
        CLAIM( after.at[heap.fixed] == before.at[heap.fixed] );
}

/* What is free fits, but for what is free before the fixed block. */
void prove_messages_heap_fits( void )
{
    any_store();
    uint32_t cost = any_u32();
    GIVEN( cost <= 4 * BYTES );
    int fits = nc_heap_fits( &heap, cost ), is_free = heap.used + cost + 4 * heap.handles <= BYTES;
    CLAIM( !fits || heap.end + cost + 4 * heap.handles <= BYTES );
    CLAIM( fits == is_free || ( heap.fixed && is_free ) );
    claim_store( 0, 0 );
}

/* What fits is taken, and leaves room for the rest of what was said to fit. */
void prove_messages_heap_take( void )
{
    any_store();
    uint32_t bytes = any_below( 4 * BYTES ), rest = any_below( BYTES ), had = heap.handles;
    GIVEN( heap.handles < HANDLES || heap.free_handle );
    int all_fits = heap.end + nc_heap_cost( bytes ) + rest + 4 * had <= BYTES;
    uint32_t handle = nc_heap_take( &heap, bytes );
    CLAIM( !all_fits || ( handle && heap.end + rest + 4 * heap.handles <= BYTES ) );
    CLAIM( handle == 0 || ( before.at[handle] == NO_CELL &&
                            (uint8_t *) nc_heap_at( &heap, handle ) + bytes <= heap.base + heap.end ) );
    claim_store( handle, 0 );
}

void prove_messages_heap_free( void )
{
    any_store();
    uint32_t handle = any_u32();
    GIVEN( is_handle( handle ) && before.at[handle] != NO_CELL && handle != heap.fixed );
    nc_heap_free( &heap, handle );
    claim_store( 0, handle );
}

void prove_messages_heap_wipe_free( void )
{
    any_store();
    nc_heap_wipe_free( &heap );
    CLAIM( heap.high == heap.end && ( heap.fixed || heap.end == heap.used ) );
    claim_store( 0, 0 );
}
