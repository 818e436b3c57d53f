/*  Proofs of the memory of used tokens: the heap orders it, the table finds it, and what is forgotten is refused
    from then on. One step from any state, with any tokens, hashes and timestamps, at a small capacity. Run:
    tests/prove/run.sh heap

    For the hash table, which has its own proof (table.c), stand functions that do what this
    proof says and claim that they are asked for nothing else: FUNCTION=answer_... in proofs.list. */

#include "prove.h"

/* Six that expire, so that the heap has three levels, and three that never do. */
enum { EXPIRING = 6, NEVER = 3, CAPACITY = EXPIRING + NEVER };

/* The tables, by tag and by client id: which records are in them, and under which hash. */
typedef struct {
    int is_there;
    uint32_t hash;
} place_t;

enum { BY_TAG, BY_ID, TABLES }; /* nc_table_t.mask says which */

static place_t tables[TABLES][CAPACITY];
static place_t * const table = tables[BY_TAG];
static uint32_t inserted; /* the last record that got a tag */
static uint32_t crowded;  /* what nc_used_earliest_if_full answers where it has a proof of its own */

void answer_table_insert( nc_table_t * it, uint32_t hash, uint32_t index )
{
    place_t * places = tables[it->mask];
    CLAIM( index < ( it->mask == BY_TAG ? CAPACITY : EXPIRING ) && !places[index].is_there );
    places[index].is_there = 1;
    places[index].hash = hash;
    if ( it->mask == BY_TAG )
        inserted = index;
}

void answer_table_remove( nc_table_t * it, uint32_t index )
{
    place_t * places = tables[it->mask];
    CLAIM( index < CAPACITY && places[index].is_there );
    places[index].is_there = 0;
}

uint32_t answer_crowded( const nc_used_t * used, uint64_t client_id, uint32_t id_hash )
{
    (void) used, (void) client_id, (void) id_hash;
    return crowded;
}

/*  The records under a hash, in the order of their entries: which token has which entry is left to chance, so any order
    is among these. */
static uint32_t first_from( const place_t * places, uint32_t index, uint32_t hash )
{
    while ( index < CAPACITY && !( places[index].is_there && places[index].hash == hash ) )
        index++;
    return index < CAPACITY ? index : NOWHERE;
}

uint32_t answer_table_find( const nc_table_t * it, uint32_t hash )
{
    return first_from( tables[it->mask], 0, hash );
}

uint32_t answer_table_find_next( const nc_table_t * it, uint32_t index )
{
    const place_t * places = tables[it->mask];
    CLAIM( index < CAPACITY && places[index].is_there );
    return first_from( places, index + 1, places[index].hash );
}

typedef struct {
    nc_used_t used;
    nc_used_record_t records[EXPIRING];
    uint8_t never_tags[NEVER][NC_TOKEN_TAG_BYTES];
    nc_used_expiry_t heap[EXPIRING];
} any_used_t;

static any_used_t * proved; /* the memory that is at work */

static nc_used_record_t any_record( void )
{
    nc_used_record_t record;
    record.expire_timestamp = any_u64();
    record.client_id = any_u64();
    for ( int i = 0; i < NC_TOKEN_TAG_BYTES; i++ )
        record.tag[i] = any_u8();
    return record;
}

/*  Are the heap's entries in order, and does each know its record, and expire no later, and each record have its place
    and its entries in the tables? */
static int is_heap( const any_used_t * it )
{
    const nc_used_t * used = &it->used;
    int good = used->expiring_count <= EXPIRING;
    for ( uint32_t i = 0; i < EXPIRING; i++ ) {
        const nc_used_expiry_t * place = &it->heap[i];
        good &= table[i].is_there == ( i < used->expiring_count );
        good &= tables[BY_ID][i].is_there == ( i < used->expiring_count );
        if ( !good || i >= used->expiring_count )
            continue;
        good &= place->record < used->expiring_count && it->records[i].expire_timestamp != UINT64_MAX;
        good &= i == 0 || it->heap[( i - 1 ) / 4].expire_timestamp <= place->expire_timestamp;
        good = good && it->records[place->record].expire_timestamp >= place->expire_timestamp;
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
    used->never_tags = it->never_tags;
    used->heap = it->heap;
    used->by_id.mask = BY_ID;
    used->expiring_capacity = EXPIRING;
    used->never_capacity = NEVER;
    used->expiring_count = any_u32();
    used->never_count = any_u32();
    used->never_oldest = any_u32();
    used->refused_up_to = any_u64();
    used->evicts_oldest_never = any_int();
    for ( int i = 0; i < CAPACITY; i++ ) {
        nc_used_record_t record = any_record();
        if ( i < EXPIRING )
            it->records[i] = record;
        else
            memcpy( it->never_tags[i - EXPIRING], record.tag, NC_TOKEN_TAG_BYTES );
        for ( int k = 0; k < TABLES; k++ ) {
            tables[k][i].is_there = any_int() != 0;
            tables[k][i].hash = any_u32();
        }
    }
    for ( int i = 0; i < EXPIRING; i++ ) {
        it->heap[i].expire_timestamp = any_u64();
        it->heap[i].record = any_u32();
    }
    crowded = any_u32();
    proved = it;
    GIVEN( is_heap( it ) && is_ring( it ) && ( crowded == NOWHERE || crowded < used->expiring_count ) );
}

/* When does the earliest-expiring record expire? */
static uint64_t earliest_of( const any_used_t * it )
{
    uint64_t earliest = UINT64_MAX;
    for ( uint32_t i = 0; i < EXPIRING; i++ )
        if ( i < it->used.expiring_count && it->records[i].expire_timestamp < earliest )
            earliest = it->records[i].expire_timestamp;
    return earliest;
}

/* Stands for nc_used_earliest, which has its own proof: any heap of the same records, with the earliest of them on top. */
uint64_t answer_earliest( nc_used_t * used )
{
    CLAIM( used->expiring_count == EXPIRING );
    for ( int i = 0; i < EXPIRING; i++ ) {
        proved->heap[i].expire_timestamp = any_u64();
        proved->heap[i].record = any_below( EXPIRING );
    }
    GIVEN( is_heap( proved ) );
    GIVEN( proved->heap[0].expire_timestamp == earliest_of( proved ) );
    GIVEN( proved->records[proved->heap[0].record].expire_timestamp == earliest_of( proved ) );
    return proved->heap[0].expire_timestamp;
}

/* What is in an entry; of those that never expire only the tag is kept. */
static nc_used_record_t record_of( const any_used_t * it, uint32_t place )
{
    nc_used_record_t record = { UINT64_MAX, 0, { 0 } };
    if ( place < EXPIRING )
        return it->records[place];
    memcpy( record.tag, it->never_tags[place - EXPIRING], NC_TOKEN_TAG_BYTES );
    return record;
}

static int is_same( const any_used_t * it, uint32_t place, const nc_used_record_t * b )
{
    nc_used_record_t record = record_of( it, place ), *a = &record;
    if ( place >= EXPIRING )
        return b->expire_timestamp == UINT64_MAX && memcmp( a->tag, b->tag, NC_TOKEN_TAG_BYTES ) == 0;
    return a->expire_timestamp == b->expire_timestamp && a->client_id == b->client_id &&
           memcmp( a->tag, b->tag, NC_TOKEN_TAG_BYTES ) == 0;
}

/* Whatever was in a record's entry is there yet, and is found under its hash. */
static void claim_kept( const any_used_t * it, const any_used_t * before, const place_t * place, uint32_t record )
{
    CLAIM( table[record].is_there == place->is_there && table[record].hash == place->hash );
    nc_used_record_t was = record_of( before, record );
    CLAIM( is_same( it, record, &was ) );
}

static void claim_remembered( const any_used_t * it, const nc_used_record_t * newcomer, uint32_t hash, uint32_t record )
{
    CLAIM( table[record].is_there && table[record].hash == hash && is_same( it, record, newcomer ) );
}

/*  A token that expires is remembered, and nothing is evicted for it but the record that its client id has too many by,
    or one that expires first of all; what this one was, newcomer or not, expires at or before the mark. */
void prove_used_insert( void )
{
    any_used_t it, before;
    nc_used_record_t newcomer = any_record();
    make_used( &it );
    before = it;
    uint32_t hash = any_u32(), id_hash = any_u32(), probe = any_below( CAPACITY ), count = it.used.expiring_count;
    place_t place = table[probe];
    uint64_t mark = before.used.refused_up_to, earliest = earliest_of( &before ), forgotten = 0;
    int is_full = crowded == NOWHERE && count == EXPIRING;
    uint64_t bar = crowded != NOWHERE ? before.records[crowded].expire_timestamp : earliest;
    int is_refused = ( crowded != NOWHERE || is_full ) && newcomer.expire_timestamp <= bar;
    GIVEN( newcomer.expire_timestamp != UINT64_MAX );
    inserted = NOWHERE;
    nc_used_insert( &it.used, &newcomer, hash, id_hash );
    if ( is_full )
        forgotten = is_refused ? newcomer.expire_timestamp : earliest;
    CLAIM( is_heap( &it ) && is_ring( &it ) );
    CLAIM( it.used.expiring_count == count + ( crowded == NOWHERE && count < EXPIRING ) );
    CLAIM( it.used.refused_up_to == ( forgotten > mark ? forgotten : mark ) );
    CLAIM( ( inserted == NOWHERE ) == is_refused );
    if ( !is_refused && crowded != NOWHERE )
        CLAIM( inserted == crowded );
    else if ( !is_refused && is_full )
        CLAIM( before.records[inserted].expire_timestamp == earliest );
    else if ( !is_refused )
        CLAIM( inserted == count );
    if ( probe == inserted ) {
        claim_remembered( &it, &newcomer, hash, probe );
        CLAIM( tables[BY_ID][probe].hash == id_hash );
    } else
        claim_kept( &it, &before, &place, probe );
}

/* Of tokens that never expire the oldest is evicted, and no other. Whether it may is asked before. */
void prove_used_insert_never( void )
{
    any_used_t it, before;
    nc_used_record_t newcomer = any_record();
    make_used( &it );
    before = it;
    uint32_t hash = any_u32(), probe = any_below( CAPACITY ), count = it.used.never_count;
    place_t place = table[probe];
    newcomer.expire_timestamp = UINT64_MAX;
    CLAIM( nc_used_can_insert_never( &it.used ) == ( it.used.evicts_oldest_never || count < NEVER ) );
    nc_used_insert( &it.used, &newcomer, hash, any_u32() );
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
                    memcmp( record_of( &it, (uint32_t) i ).tag, newcomer.tag, NC_TOKEN_TAG_BYTES ) == 0;
    CLAIM( nc_used_seen( &it.used, newcomer.tag, hash ) == expected );
}

/* A client id is crowded exactly if it has as many records as it may have: then the earliest-expiring of them is named. */
void prove_used_crowded( void )
{
    any_used_t it;
    uint64_t client_id = any_u64(), earliest = UINT64_MAX;
    uint32_t hash = any_u32(), count = 0;
    make_used( &it );
    for ( uint32_t i = 0; i < EXPIRING; i++ ) {
        if ( !tables[BY_ID][i].is_there || tables[BY_ID][i].hash != hash || it.records[i].client_id != client_id )
            continue;
        count++;
        if ( it.records[i].expire_timestamp < earliest )
            earliest = it.records[i].expire_timestamp;
    }
    for ( uint32_t i = EXPIRING; i < CAPACITY; i++ )
        GIVEN( !tables[BY_ID][i].is_there );
    uint32_t index = nc_used_earliest_if_full( &it.used, client_id, hash );
    CLAIM( ( index != NOWHERE ) == ( count >= 4 ) );
    if ( index != NOWHERE )
        CLAIM( index < EXPIRING && it.records[index].client_id == client_id &&
               it.records[index].expire_timestamp == earliest );
}

/* The earliest-expiring record comes to the top, whatever the heap knew of it. */
void prove_used_earliest( void )
{
    any_used_t it, before;
    make_used( &it );
    before = it;
    uint32_t probe = any_below( CAPACITY );
    GIVEN( it.used.expiring_count == EXPIRING );
    CLAIM( nc_used_earliest( &it.used ) == earliest_of( &before ) );
    CLAIM( is_heap( &it ) && it.heap[0].expire_timestamp == earliest_of( &before ) );
    CLAIM( it.records[it.heap[0].record].expire_timestamp == earliest_of( &before ) );
    nc_used_record_t was = record_of( &before, probe );
    CLAIM( is_same( &it, probe, &was ) && it.used.expiring_count == EXPIRING );
}
