/*  Proofs of what finds and orders things: arena, list, table, bits and the heap of used tokens. Each
    function takes one step from any state that can be reached, for all hashes, indices and timestamps. Run:
    tests/prove/run.sh table */

#include "prove.h"

#define TOO_MUCH ( (size_t) -1 / 2 )

/* ---- arena: what it cuts does not overlap, is aligned, and lies within what it measured ---- */

void prove_arena( void )
{
    const size_t sizes[3] = { sizeof( nc_used_record_t ), sizeof( uint32_t ), NC_BUFFER_STRIDE };
    size_t counts[3], most = any_size();
    uint8_t * pieces[3];
    nc_arena_t measure = nc_arena_make( NULL );
    for ( int i = 0; i < 3; i++ ) {
        counts[i] = any_u32();
        CLAIM( nc_arena_take( &measure, counts[i], sizes[i] ) == NULL );
    }
    GIVEN( measure.at != TOO_MUCH );
    CLAIM( measure.at < TOO_MUCH );
    GIVEN( measure.at == most && most <= 65536 );
    size_t shift = any_size_up_to( NC_ARENA_ALIGN - 1 ); /* blocks begin anywhere */
    uint8_t * block = any_bytes( most + shift ) + shift;
    nc_arena_t arena = nc_arena_make( block );
    for ( int i = 0; i < 3; i++ ) {
        pieces[i] = (uint8_t *) nc_arena_take( &arena, counts[i], sizes[i] );
        CLAIM( (uintptr_t) pieces[i] % NC_ARENA_LINE == 0 );
        CLAIM( __CPROVER_w_ok( pieces[i], counts[i] * sizes[i] ) );
        CLAIM( i == 0 || pieces[i] - pieces[i - 1] >= (ptrdiff_t) ( counts[i - 1] * sizes[i - 1] ) );
    }
    CLAIM( arena.at <= most );
}

/* Too much is too much from then on, and no size wraps around: without a block, for every count and size. */
void prove_arena_too_much( void )
{
    nc_arena_t arena = nc_arena_make( NULL );
    arena.at = any_size();
    GIVEN( arena.at < TOO_MUCH - NC_ARENA_ALIGN || arena.at == TOO_MUCH );
    size_t before = arena.at, count = any_u32();
    nc_arena_take( &arena, count, NC_BUFFER_STRIDE );
    if ( before == TOO_MUCH )
        CLAIM( arena.at == TOO_MUCH );
    else
        CLAIM( arena.at == TOO_MUCH || ( arena.at >= before + count * NC_BUFFER_STRIDE && arena.at < TOO_MUCH ) );
}

/* ---- list ---- */

enum { LIST = 4 };

/* Any list over LIST links that can be: any of them, in any order. `order` says which. */
static nc_list_t any_list( nc_link_t links[LIST], uint32_t order[LIST] )
{
    nc_list_t list;
    uint32_t count = any_below( LIST + 1 );
    nc_list_init( &list );
    for ( uint32_t i = 0; i < count; i++ ) {
        order[i] = any_below( LIST );
        for ( uint32_t k = 0; k < i; k++ )
            GIVEN( order[k] != order[i] );
        nc_list_insert( &list, links, order[i] );
    }
    return list;
}

/* The list is `order`, from either end. */
static void claim_list( const nc_list_t * list, const nc_link_t links[LIST], const uint32_t order[LIST],
                        uint32_t count )
{
    uint32_t there = list->head, back = list->tail;
    CLAIM( list->count == count );
    for ( uint32_t i = 0; i < count; i++ ) {
        CLAIM( there == order[i] && back == order[count - 1 - i] );
        there = links[there].next;
        back = links[back].prev;
    }
    CLAIM( there == NOWHERE && back == NOWHERE );
}

void prove_list( void )
{
    nc_link_t links[LIST];
    uint32_t order[LIST];
    nc_list_t list = any_list( links, order );
    uint32_t count = list.count, gone = any_u32();
    claim_list( &list, links, order, count );
    if ( gone >= count )
        return;
    nc_list_remove( &list, links, order[gone] );
    for ( uint32_t i = gone; i + 1 < count; i++ )
        order[i] = order[i + 1];
    claim_list( &list, links, order, count - 1 );
}

/* ---- table ---- */

enum { TABLE = 3, HEADS = 16 };

typedef struct {
    nc_table_t table;
    uint32_t hashes[TABLE];
    uint32_t order[TABLE]; /* the earliest first */
    uint32_t count;
    uint32_t heads[HEADS];
    nc_table_entry_t entries[TABLE];
} any_table_t;

/*  A chain holds what was inserted, the latest first, so every state that can be reached is one that insertions alone
    reach. */
static void make_table( any_table_t * it )
{
    it->table.heads = it->heads;
    it->table.entries = it->entries;
    it->table.mask = HEADS - 1;
    nc_table_reset( &it->table );
    it->count = any_below( TABLE + 1 );
    for ( uint32_t i = 0; i < it->count; i++ ) {
        it->order[i] = any_below( TABLE );
        for ( uint32_t k = 0; k < i; k++ )
            GIVEN( it->order[k] != it->order[i] );
        it->hashes[i] = any_u32();
        nc_table_insert( &it->table, it->hashes[i], it->order[i] );
    }
}

/* All under any hash are found, the latest first, and nothing else is. */
static void claim_table( const any_table_t * it )
{
    uint32_t hash = any_u32(), found = nc_table_find( &it->table, hash );
    for ( uint32_t i = it->count; i-- > 0; )
        if ( it->hashes[i] == hash ) {
            CLAIM( found == it->order[i] );
            found = nc_table_find_next( &it->table, found );
        }
    CLAIM( found == NOWHERE );
}

void prove_table( void )
{
    any_table_t it;
    make_table( &it );
    claim_table( &it );
    uint32_t gone = any_u32();
    if ( gone >= it.count )
        return;
    nc_table_remove( &it.table, it.order[gone] );
    for ( uint32_t i = gone; i + 1 < it.count; i++ ) {
        it.order[i] = it.order[i + 1];
        it.hashes[i] = it.hashes[i + 1];
    }
    it.count--;
    claim_table( &it );
}

/* ---- bits ---- */

enum { BITS = 1024 };

static nc_bits_t any_bits( void )
{
    nc_bits_t bits;
    bits.word_count = ( 1 + any_below( BITS ) + 63 ) / 64;
    bits.words = (uint64_t *) (void *) any_bytes( bits.word_count * sizeof( uint64_t ) );
    return bits;
}

static int is_member( const nc_bits_t * bits, uint32_t index )
{
    return (int) ( bits->words[index / 64] >> ( index % 64 ) & 1 );
}

void prove_bits_step( void )
{
    nc_bits_t bits = any_bits();
    uint32_t index = any_below( bits.word_count * 64 ), probe = any_below( bits.word_count * 64 );
    int inserts = any_int() != 0, was_member = is_member( &bits, probe );
    if ( inserts )
        nc_bits_insert( &bits, index );
    else
        nc_bits_remove( &bits, index );
    CLAIM( is_member( &bits, probe ) == ( probe == index ? inserts : was_member ) );
}

/* None is below the lowest, and it is one of them; where there is none, the answer is none. */
void prove_bits_lowest( void )
{
    nc_bits_t bits = any_bits();
    uint32_t lowest = nc_bits_lowest( &bits ), probe = any_below( bits.word_count * 64 );
    if ( lowest == NOWHERE ) {
        CLAIM( !is_member( &bits, probe ) );
        return;
    }
    CLAIM( lowest < bits.word_count * 64 );
    CLAIM( is_member( &bits, lowest ) && ( !is_member( &bits, probe ) || probe >= lowest ) );
}

/* ---- wheel: how many ticks a time is; the rest is in wheel.c ---- */

/*  The whole ticks of 1/1024 s that have passed, for all times that a clock of the library can show, and for those that
    are none. */
void prove_wheel_tick( void )
{
    double seconds = any_double();
    GIVEN( !( seconds > 9007199254740992.0 ) );
    uint64_t tick = nc_wheel_tick( seconds );
    double ticks = (double) tick, exact = seconds * 1024.0;
    CLAIM( tick <= (uint64_t) 1 << 63 && (uint64_t) ticks == tick );
    CLAIM( seconds > 0.0 ? ticks <= exact && exact - ticks < 1.0 : tick == 0 );
}
