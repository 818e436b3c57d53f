/*  Proofs of room 8's memory of used tokens: the heap orders it, the table finds it, and what is forgotten is refused from then
    on. One step from any state, with any tokens, hashes and timestamps, at a small capacity. Run: tests/prove/run.sh heap */

#include "prove.h"

/* Six that expire, so that the heap has three levels, and three that never do. */
enum { EXPIRING = 6, NEVER = 3, CAPACITY = EXPIRING + NEVER, HEADS = 32 };

typedef struct {
    nc_used_t used;
    uint32_t heads[HEADS];
    nc_table_entry_t entries[CAPACITY];
    nc_used_record_t records[CAPACITY];
    nc_used_expiry_t heap[EXPIRING];
    uint32_t hashes[CAPACITY]; /* by record */
} any_used_t;

static uint64_t expiry_of( uint64_t timestamp )
{
    GIVEN( timestamp != UINT64_MAX );
    return timestamp;
}

static void make_empty( any_used_t * it )
{
    nc_used_t * used = &it->used;
    used->table.heads = it->heads;
    used->table.entries = it->entries;
    used->table.mask = HEADS - 1;
    used->records = it->records;
    used->heap = it->heap;
    used->expiring_capacity = EXPIRING;
    used->never_capacity = NEVER;
    nc_used_reset( used );
    used->oldest_never_gives_way = any_int() != 0;
}

/* Are the heap's places in order, and does each know its record? */
static int is_heap( const any_used_t * it )
{
    int good = 1;
    for ( uint32_t i = 0; i < EXPIRING; i++ ) {
        const nc_used_expiry_t * place = &it->heap[i];
        if ( i >= it->used.expiring_count )
            break;
        good &= place->record < it->used.expiring_count;
        good &= i == 0 || it->heap[( i - 1 ) / 4].expire_timestamp <= place->expire_timestamp;
        good = good && it->records[place->record].expire_timestamp == place->expire_timestamp;
        for ( uint32_t k = 0; k < i; k++ )
            good &= it->heap[k].record != place->record;
    }
    return good;
}

/* Any heap that is one, its records under any hashes in the table, in any order. */
static void make_expiring( any_used_t * it )
{
    uint32_t order[EXPIRING];
    make_empty( it );
    it->used.expiring_count = any_below( EXPIRING + 1 );
    GIVEN( is_heap( it ) );
    for ( uint32_t i = 0; i < it->used.expiring_count; i++ ) {
        order[i] = any_below( it->used.expiring_count );
        for ( uint32_t k = 0; k < i; k++ )
            GIVEN( order[k] != order[i] );
        expiry_of( it->records[order[i]].expire_timestamp );
        nc_table_insert( &it->used.table, it->hashes[order[i]], order[i] );
    }
}

/* Is this record found under its hash? */
static int is_found( const any_used_t * it, uint32_t record, uint32_t hash )
{
    uint32_t index = nc_table_find( &it->used.table, hash );
    while ( index != NOWHERE && index != record )
        index = nc_table_find_next( &it->used.table, index );
    return index == record;
}

/*  A token that expires is remembered, and nothing but the earliest one gives way for it; whatever was forgotten, newcomer
    or not, expires at or before the mark. */
void prove_used_insert( void )
{
    any_used_t it;
    make_expiring( &it );
    nc_used_record_t newcomer;
    newcomer.expire_timestamp = expiry_of( any_u64() );
    uint32_t hash = any_u32(), count = it.used.expiring_count, probe = any_below( EXPIRING );
    uint64_t mark = it.used.refused_up_to, probe_expiry = it.records[probe].expire_timestamp;
    uint8_t probe_tag = it.records[probe].tag[0];
    int was_there = probe < count;
    nc_used_insert( &it.used, &newcomer, hash );
    CLAIM( it.used.expiring_count == ( count < EXPIRING ? count + 1 : EXPIRING ) && is_heap( &it ) );
    CLAIM( it.used.refused_up_to >= mark );
    int is_new = it.records[probe].expire_timestamp != probe_expiry || it.records[probe].tag[0] != probe_tag;
    if ( was_there && !is_new )
        CLAIM( is_found( &it, probe, it.hashes[probe] ) || is_found( &it, probe, hash ) );
    if ( was_there && is_new )
        CLAIM( count == EXPIRING && probe_expiry <= it.used.refused_up_to &&
               probe_expiry <= newcomer.expire_timestamp );
    if ( was_there && is_new )
        CLAIM( is_found( &it, probe, hash ) );
}

/* The newcomer itself is found by its tag, or the mark has risen to where it is refused. */
void prove_used_seen( void )
{
    any_used_t it;
    make_expiring( &it );
    nc_used_record_t newcomer;
    newcomer.expire_timestamp = expiry_of( any_u64() );
    uint32_t hash = any_u32();
    nc_used_insert( &it.used, &newcomer, hash );
    CLAIM( nc_used_seen( &it.used, newcomer.tag, hash ) || newcomer.expire_timestamp <= it.used.refused_up_to );
}

/* Any ring of tokens that never expire. */
static void make_never( any_used_t * it )
{
    make_empty( it );
    it->used.never_count = any_below( NEVER + 1 );
    it->used.never_oldest = it->used.never_count == NEVER ? any_below( NEVER ) : 0;
    for ( uint32_t i = 0; i < it->used.never_count; i++ ) {
        uint32_t record = EXPIRING + ( it->used.never_oldest + i ) % NEVER;
        nc_table_insert( &it->used.table, it->hashes[record], record );
    }
}

/* Of tokens that never expire the oldest gives way, and no other; the newcomer is found. */
void prove_used_insert_never( void )
{
    any_used_t it;
    make_never( &it );
    nc_used_record_t newcomer;
    newcomer.expire_timestamp = UINT64_MAX;
    uint32_t hash = any_u32(), nth = any_below( NEVER ), oldest = it.used.never_oldest, count = it.used.never_count;
    uint32_t probe = EXPIRING + ( oldest + nth ) % NEVER;
    int has_room = nc_used_has_room_for_never( &it.used );
    CLAIM( has_room == ( it.used.oldest_never_gives_way || count < NEVER ) );
    nc_used_insert( &it.used, &newcomer, hash );
    CLAIM( it.used.never_count == ( count < NEVER ? count + 1 : NEVER ) && it.used.expiring_count == 0 );
    CLAIM( it.used.never_oldest == ( count < NEVER ? oldest : ( oldest + 1 ) % NEVER ) );
    CLAIM( nc_used_seen( &it.used, newcomer.tag, hash ) );
    if ( nth < count && ( nth > 0 || count < NEVER ) )
        CLAIM( is_found( &it, probe, it.hashes[probe] ) );
}
