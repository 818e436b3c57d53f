/*  Proofs of room 8's memory of used tokens: the heap orders it, the table finds it, and what is forgotten is refused
    from then on. One step from any state, with any tokens, hashes and timestamps, at a small capacity. Run:
    tests/prove/run.sh heap

    For the hash table, which has its own proof (table.c), stand functions that do what this
    proof says and claim that they are asked for nothing else: FUNCTION=answer_... in proofs.list. */

#include "prove.h"

/* Six that expire, so that the heap has three levels, and three that never do. */
enum { EXPIRING = 6, NEVER = 3, CAPACITY = EXPIRING + NEVER };

/* The table: which records are in it, and under which hash. */
typedef struct {
    int is_there;
    uint32_t hash;
} place_t;

static place_t table[CAPACITY];

void answer_table_insert( nc_table_t * unused, uint32_t hash, uint32_t index )
{
    (void) unused;
    CLAIM( index < CAPACITY && !table[index].is_there );
    table[index].is_there = 1;
    table[index].hash = hash;
}

void answer_table_remove( nc_table_t * unused, uint32_t index )
{
    (void) unused;
    CLAIM( index < CAPACITY && table[index].is_there );
    table[index].is_there = 0;
}

/*  The records under a hash, in the order of their places: which token has which place is left to chance, so any order
    is among these. */
static uint32_t first_from( uint32_t index, uint32_t hash )
{
    while ( index < CAPACITY && !( table[index].is_there && table[index].hash == hash ) )
        index++;
    return index < CAPACITY ? index : NOWHERE;
}

uint32_t answer_table_find( const nc_table_t * unused, uint32_t hash )
{
    (void) unused;
    return first_from( 0, hash );
}

uint32_t answer_table_find_next( const nc_table_t * unused, uint32_t index )
{
    (void) unused;
    CLAIM( index < CAPACITY && table[index].is_there );
    return first_from( index + 1, table[index].hash );
}

typedef struct {
    nc_used_t used;
    nc_used_record_t records[CAPACITY];
    nc_used_expiry_t heap[EXPIRING];
} any_used_t;

static nc_used_record_t any_record( void )
{
    nc_used_record_t record;
    record.expire_timestamp = any_u64();
    for ( int i = 0; i < NC_TOKEN_TAG_BYTES; i++ )
        record.tag[i] = any_u8();
    return record;
}

/*  Are the heap's places in order, and does each know its record, and each record have its place and its entry in the
    table? */
static int is_heap( const any_used_t * it )
{
    const nc_used_t * used = &it->used;
    int good = used->expiring_count <= EXPIRING;
    for ( uint32_t i = 0; i < EXPIRING; i++ ) {
        const nc_used_expiry_t * place = &it->heap[i];
        good &= table[i].is_there == ( i < used->expiring_count );
        if ( !good || i >= used->expiring_count )
            continue;
        good &= place->record < used->expiring_count && place->expire_timestamp != UINT64_MAX;
        good &= i == 0 || it->heap[( i - 1 ) / 4].expire_timestamp <= place->expire_timestamp;
        good = good && it->records[place->record].expire_timestamp == place->expire_timestamp;
        for ( uint32_t k = 0; k < i; k++ )
            good &= it->heap[k].record != place->record;
    }
    return good;
}

/* Is it a ring, with the oldest somewhere once it is full? */
static int is_ring( const any_used_t * it )
{
    const nc_used_t * used = &it->used;
    int good = used->never_count <= NEVER && used->never_oldest < NEVER;
    good &= used->never_count == NEVER || used->never_oldest == 0;
    for ( uint32_t i = 0; i < NEVER; i++ )
        good &= table[EXPIRING + i].is_there == ( i < used->never_count );
    return good;
}

/* Any memory that can be: any tokens, any heap of those that expire, any ring of those that do not. */
static void make_used( any_used_t * it )
{
    nc_used_t * used = &it->used;
    memset( used, 0, sizeof( *used ) );
    used->records = it->records;
    used->heap = it->heap;
    used->expiring_capacity = EXPIRING;
    used->never_capacity = NEVER;
    used->expiring_count = any_u32();
    used->never_count = any_u32();
    used->never_oldest = any_u32();
    used->refused_up_to = any_u64();
    used->oldest_never_gives_way = any_int();
    for ( int i = 0; i < CAPACITY; i++ ) {
        it->records[i] = any_record();
        table[i].is_there = any_int() != 0;
        table[i].hash = any_u32();
    }
    for ( int i = 0; i < EXPIRING; i++ ) {
        it->heap[i].expire_timestamp = any_u64();
        it->heap[i].record = any_u32();
    }
    GIVEN( is_heap( it ) && is_ring( it ) );
}

static int is_same( const nc_used_record_t * a, const nc_used_record_t * b )
{
    return a->expire_timestamp == b->expire_timestamp && memcmp( a->tag, b->tag, NC_TOKEN_TAG_BYTES ) == 0;
}

/* Whatever was in a record's place is there yet, and is found under its hash. */
static void claim_kept( const any_used_t * it, const any_used_t * before, const place_t * place, uint32_t record )
{
    CLAIM( table[record].is_there == place->is_there && table[record].hash == place->hash );
    CLAIM( is_same( &it->records[record], &before->records[record] ) );
}

static void claim_remembered( const any_used_t * it, const nc_used_record_t * newcomer, uint32_t hash, uint32_t record )
{
    CLAIM( table[record].is_there && table[record].hash == hash && is_same( &it->records[record], newcomer ) );
}

/*  A token that expires is remembered, and nothing but the earliest one gives way for it; whatever was forgotten,
    newcomer or not, expires at or before the mark. */
void prove_used_insert( void )
{
    any_used_t it, before;
    nc_used_record_t newcomer = any_record();
    make_used( &it );
    before = it;
    uint32_t hash = any_u32(), probe = any_below( CAPACITY ), count = it.used.expiring_count;
    place_t place = table[probe];
    GIVEN( newcomer.expire_timestamp != UINT64_MAX );
    nc_used_insert( &it.used, &newcomer, hash );
    uint64_t mark = before.used.refused_up_to, earliest = before.heap[0].expire_timestamp;
    uint32_t record = count < EXPIRING ? count : before.heap[0].record;
    int is_refused = count == EXPIRING && newcomer.expire_timestamp <= earliest;
    uint64_t forgotten = count < EXPIRING ? 0 : is_refused ? newcomer.expire_timestamp : earliest;
    CLAIM( is_heap( &it ) && is_ring( &it ) && it.used.expiring_count == count + ( count < EXPIRING ) );
    CLAIM( it.used.refused_up_to == ( forgotten > mark ? forgotten : mark ) );
    if ( probe == record && !is_refused )
        claim_remembered( &it, &newcomer, hash, probe );
    else
        claim_kept( &it, &before, &place, probe );
}

/* Of tokens that never expire the oldest gives way, and no other. Whether it may is asked before. */
void prove_used_insert_never( void )
{
    any_used_t it, before;
    nc_used_record_t newcomer = any_record();
    make_used( &it );
    before = it;
    uint32_t hash = any_u32(), probe = any_below( CAPACITY ), count = it.used.never_count;
    place_t place = table[probe];
    newcomer.expire_timestamp = UINT64_MAX;
    CLAIM( nc_used_has_room_for_never( &it.used ) == ( it.used.oldest_never_gives_way || count < NEVER ) );
    nc_used_insert( &it.used, &newcomer, hash );
    uint32_t oldest = before.used.never_oldest, record = EXPIRING + ( count < NEVER ? count : oldest );
    CLAIM( is_heap( &it ) && is_ring( &it ) && it.used.never_count == count + ( count < NEVER ) );
    CLAIM( it.used.never_oldest == ( count < NEVER ? 0 : ( oldest + 1 ) % NEVER ) );
    CLAIM( it.used.refused_up_to == before.used.refused_up_to );
    if ( probe == record )
        claim_remembered( &it, &newcomer, hash, probe );
    else
        claim_kept( &it, &before, &place, probe );
}

/* A token was seen exactly if one of its tag is in the table under this hash. */
void prove_used_seen( void )
{
    any_used_t it;
    nc_used_record_t newcomer = any_record();
    uint32_t hash = any_u32();
    int expected = 0;
    make_used( &it );
    for ( int i = 0; i < CAPACITY; i++ )
        expected |= table[i].is_there && table[i].hash == hash &&
                    memcmp( it.records[i].tag, newcomer.tag, NC_TOKEN_TAG_BYTES ) == 0;
    CLAIM( nc_used_seen( &it.used, newcomer.tag, hash ) == expected );
}
