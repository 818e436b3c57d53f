/*  Handshake: the memory of used tokens beside a naive model that is too slow to be wrong. */

/* ---- used tokens. Decision 4 ---- */

enum { USED_HISTORY = 3000 };

static struct {
    nc_used_t used;
    void * block;
    nc_used_record_t history[USED_HISTORY];
    int live[USED_HISTORY];
    int count;
    int ids; /* client ids; 0: every token has its own */
    uint64_t refused_up_to;
} used_world;

static void used_open( nc_used_t * used, void ** block, uint32_t capacity )
{
    nc_arena_t arena;
    memset( used, 0, sizeof( *used ) );
    TABLE_PLACE( *block, arena, nc_used_place( used, &arena, capacity ) );
    nc_used_reset( used );
}

/* Few values, so that records share them. */
static uint32_t used_hash( const uint8_t * tag )
{
    return (uint32_t) tag[0] * 0x01010101u;
}

static uint32_t used_id_hash( uint64_t client_id )
{
    return (uint32_t) client_id % 5;
}

static const nc_used_record_t * used_insert( uint64_t expire )
{
    nc_used_record_t * record = &used_world.history[used_world.count];
    memset( record, 0, sizeof( *record ) );
    record->expire_timestamp = expire;
    nc_store_u64( record->tag, test_random() );
    nc_store_u64( record->tag + 8, (uint64_t) used_world.count );
    record->client_id = (uint64_t) ( used_world.ids ? test_random_below( used_world.ids ) : used_world.count );
    nc_used_insert( &used_world.used, record, used_hash( record->tag ), used_id_hash( record->client_id ) );
    used_world.live[used_world.count++] = 1;
    return record;
}

/* The live one of the history that expires first, or -1. */
static int used_earliest( int * live_count )
{
    int i, earliest = -1;
    *live_count = 0;
    for ( i = 0; i < used_world.count; i++ )
        if ( used_world.live[i] ) {
            ++*live_count;
            if ( earliest < 0 ||
                 used_world.history[i].expire_timestamp < used_world.history[earliest].expire_timestamp )
                earliest = i;
        }
    return earliest;
}

static void used_forget( int index )
{
    used_world.live[index] = 0;
    if ( used_world.history[index].expire_timestamp > used_world.refused_up_to )
        used_world.refused_up_to = used_world.history[index].expire_timestamp;
}

/* Is a token with this id and expiry refused though no record has it? */
static int used_is_refused( const nc_used_t * used, uint64_t client_id, uint64_t expire )
{
    uint32_t crowded = nc_used_earliest_if_full( used, client_id, used_id_hash( client_id ) );
    return expire <= used->refused_up_to ||
           ( crowded != TABLE_NOWHERE && expire <= used->records[crowded].expire_timestamp );
}

/* No token that was used is ever believed to be new: it is remembered, or a mark refuses it. */
static int used_is_safe( const nc_used_t * used )
{
    int i;
    for ( i = 0; i < used_world.count; i++ )
        if ( !nc_used_seen( used, used_world.history[i].tag, used_hash( used_world.history[i].tag ) ) &&
             !used_is_refused( used, used_world.history[i].client_id, used_world.history[i].expire_timestamp ) )
            return 0;
    return 1;
}

TEST( table_used_against_a_model )
{
    static const uint32_t capacities[] = { 2, 3, 4, 7, 64, 201 };
    size_t c;
    int step, i, live;
    for ( c = 0; c < sizeof( capacities ) / sizeof( capacities[0] ); c++ ) {
        int room = (int) ( capacities[c] - capacities[c] / 2 );
        uint64_t now = 1000;
        used_open( &used_world.used, &used_world.block, capacities[c] );
        used_world.count = 0;
        used_world.refused_up_to = 0;
        for ( step = 0; step < 1000; step++ ) {
            /* every expiry of its own, so that the model knows which is evicted; some are past already */
            now += (uint64_t) test_random_below( 10 );
            used_insert( ( now + (uint64_t) test_random_below( 400 ) ) * 4096 + (uint64_t) step );
            used_earliest( &live );
            for ( ; live > room; live-- )
                used_forget( used_earliest( &i ) );
            used_earliest( &live );
            REQUIRE_EQ( used_world.used.expiring_count, live );
            REQUIRE_EQ( used_world.used.refused_up_to, used_world.refused_up_to );
            for ( i = step % 7; i < used_world.count; i += 7 )
                REQUIRE_EQ( nc_used_seen( &used_world.used, used_world.history[i].tag,
                                          used_hash( used_world.history[i].tag ) ),
                            used_world.live[i] );
        }
        CHECK( used_is_safe( &used_world.used ) );
        free( used_world.block );
    }
}

/* The live one of a client id that expires first, and how many it has. */
static int used_earliest_of( uint64_t client_id, int * count )
{
    int i, earliest = -1;
    *count = 0;
    for ( i = 0; i < used_world.count; i++ ) {
        const nc_used_record_t * record = &used_world.history[i];
        if ( !used_world.live[i] || record->client_id != client_id )
            continue;
        ++*count;
        if ( earliest < 0 || record->expire_timestamp < used_world.history[earliest].expire_timestamp )
            earliest = i;
    }
    return earliest;
}

/*  Few client ids and many tokens: of an id that has its share the earliest goes, and no other; else, in a full table, the
    earliest of all. No client but this id is refused for the former. */
TEST( table_used_shares_of_client_ids_against_a_model )
{
    static const int ids[] = { 1, 3, 20, 400 };
    size_t c;
    int step, i, live, count;
    for ( c = 0; c < sizeof( ids ) / sizeof( ids[0] ); c++ ) {
        uint64_t now = 1000;
        used_open( &used_world.used, &used_world.block, 320 ); /* 160 expiring ones */
        used_world.count = 0;
        used_world.refused_up_to = 0;
        used_world.ids = ids[c];
        for ( step = 0; step < 1500; step++ ) {
            const nc_used_record_t * newest;
            now += (uint64_t) test_random_below( 10 );
            newest = used_insert( ( now + (uint64_t) test_random_below( 400 ) ) * 4096 + (uint64_t) step );
            i = used_earliest_of( newest->client_id, &count );
            if ( count > NC_USED_PER_ID )
                used_world.live[i] = 0;
            i = used_earliest( &live );
            if ( live > 160 )
                used_forget( i );
            used_earliest( &live );
            REQUIRE_EQ( used_world.used.expiring_count, live );
            REQUIRE_EQ( used_world.used.refused_up_to, used_world.refused_up_to );
            for ( i = step % 7; i < used_world.count; i += 7 )
                REQUIRE_EQ( nc_used_seen( &used_world.used, used_world.history[i].tag,
                                          used_hash( used_world.history[i].tag ) ),
                            used_world.live[i] );
        }
        CHECK( used_is_safe( &used_world.used ) );
        CHECK_EQ( used_world.refused_up_to > 0, ids[c] > 10 );
        CHECK( !used_is_refused( &used_world.used, 1000, used_world.refused_up_to + 1 ) );
        free( used_world.block );
    }
    used_world.ids = 0;
}

static int used_order( const void * a, const void * b )
{
    const nc_used_record_t * p = (const nc_used_record_t *) a;
    const nc_used_record_t * q = (const nc_used_record_t *) b;
    return ( p->expire_timestamp > q->expire_timestamp ) - ( p->expire_timestamp < q->expire_timestamp );
}

/* Puts `count` expiries in an order: 0 rising, 1 falling, else at random. No two are the same. */
static void used_shuffle( uint64_t * expiries, int count, int order )
{
    int i;
    for ( i = 0; i < count; i++ ) {
        int k = order > 1 ? test_random_below( i + 1 ) : i;
        expiries[i] = expiries[k];
        expiries[k] = 1000 + 7 * (uint64_t) ( order == 1 ? count - i : i );
    }
}

/* Six full levels of four children each, filled in some order; then each one is evicted by a later one, in its turn. */
TEST( table_used_full_heap_gives_way_in_order )
{
    enum { ROOM = 1 + 4 + 16 + 64 + 256 + 1024 };
    static uint64_t expiries[ROOM];
    static nc_used_record_t sorted[ROOM];
    int order, i;
    for ( order = 0; order < 4; order++ ) {
        used_open( &used_world.used, &used_world.block, 2 * ROOM );
        used_world.count = 0;
        used_shuffle( expiries, ROOM, order );
        for ( i = 0; i < ROOM; i++ )
            used_insert( expiries[i] );
        REQUIRE_EQ( used_world.used.expiring_count, ROOM );
        CHECK_EQ( used_world.used.refused_up_to, 0 );
        memcpy( sorted, used_world.history, sizeof( sorted ) );
        qsort( sorted, ROOM, sizeof( sorted[0] ), used_order );
        used_shuffle( expiries, ROOM, 2 );
        for ( i = 0; i < ROOM; i++ ) {
            REQUIRE( nc_used_seen( &used_world.used, sorted[i].tag, used_hash( sorted[i].tag ) ) );
            used_insert( 1000000 + expiries[i] );
            REQUIRE_EQ( used_world.used.refused_up_to, sorted[i].expire_timestamp );
            REQUIRE( !nc_used_seen( &used_world.used, sorted[i].tag, used_hash( sorted[i].tag ) ) );
        }
        CHECK( used_is_safe( &used_world.used ) );
        free( used_world.block );
    }
}

/* With many equal expiries it does not matter which is evicted, but none that was may be accepted again. */
TEST( table_used_with_equal_expiries )
{
    int step;
    used_open( &used_world.used, &used_world.block, 20 );
    used_world.count = 0;
    for ( step = 0; step < 500; step++ ) {
        used_insert( 100 + (uint64_t) ( step / 40 ) + (uint64_t) test_random_below( 3 ) );
        CHECK_LE( used_world.used.expiring_count, 10 );
        CHECK( used_is_safe( &used_world.used ) );
    }
    free( used_world.block );
}

/* The mark is the latest expiry that was ever forgotten, and it never goes back. attacks/rows.py, row 26 */
TEST( table_used_mark )
{
    static const struct {
        uint64_t expire;
        uint64_t refused_up_to; /* afterwards, with room for two */
    } rows[] = { { 500, 0 },   { 400, 0 },   { 300, 300 }, { 300, 300 }, { 450, 400 }, { 350, 400 }, { 450, 450 },
                 { 900, 450 }, { 800, 500 }, { 100, 500 }, { 0, 500 },   { 800, 800 }, { 901, 800 } };
    size_t i;
    used_open( &used_world.used, &used_world.block, 4 );
    used_world.count = 0;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        used_insert( rows[i].expire );
        CHECK_EQ( used_world.used.refused_up_to, rows[i].refused_up_to );
        CHECK( used_is_safe( &used_world.used ) );
    }
    free( used_world.block );
}

/* Never-expiring tokens have a half of their own: they push out no expiring one, and the mark knows nothing of them. */
TEST( table_used_never_expiring )
{
    int i, k;
    used_open( &used_world.used, &used_world.block, 21 ); /* 11 expiring ones and 10 others */
    used_world.count = 0;
    for ( i = 0; i < 11; i++ )
        used_insert( 1000 + (uint64_t) i );
    for ( i = 0; i < 10; i++ ) {
        CHECK( nc_used_can_insert_never( &used_world.used ) );
        used_insert( UINT64_MAX );
    }
    CHECK( !nc_used_can_insert_never( &used_world.used ) ); /* while bases are not random, new ones wait */
    CHECK( used_is_safe( &used_world.used ) );
    used_world.used.evicts_oldest_never = 1;
    for ( i = 0; i < 35; i++ ) {
        CHECK( nc_used_can_insert_never( &used_world.used ) );
        used_insert( UINT64_MAX );
        for ( k = 11; k < used_world.count; k++ )
            CHECK_EQ( nc_used_seen( &used_world.used, used_world.history[k].tag,
                                    used_hash( used_world.history[k].tag ) ),
                      k >= used_world.count - 10 );
    }
    for ( i = 0; i < 11; i++ )
        CHECK( nc_used_seen( &used_world.used, used_world.history[i].tag, used_hash( used_world.history[i].tag ) ) );
    CHECK_EQ( used_world.used.refused_up_to, 0 );
    used_insert( 5000 ); /* and expiring ones push out none of the others */
    CHECK_EQ( used_world.used.never_count, 10 );
    CHECK_EQ( used_world.used.refused_up_to, 1000 );
    free( used_world.block );
}

/* Stop and start: a larger or smaller table takes over everything that it can, and the mark stands for the rest. */
TEST( table_used_adopt )
{
    static const uint32_t capacities[] = { 2, 9, 40, 200 };
    size_t c;
    int i;
    for ( c = 0; c < sizeof( capacities ) / sizeof( capacities[0] ); c++ ) {
        nc_used_t next;
        void * block;
        int nevers = 0, never_room = (int) capacities[c] / 2;
        used_open( &used_world.used, &used_world.block, 40 );
        used_world.count = 0;
        used_world.used.evicts_oldest_never = 1;
        for ( i = 0; i < 50; i++ )
            used_insert( i % 2 ? UINT64_MAX : 100 + (uint64_t) ( i * 37 % 101 ) );
        used_open( &next, &block, capacities[c] );
        next.evicts_oldest_never = 1;
        next.refused_up_to = used_world.used.refused_up_to; /* a server has one, through each start */
        nc_used_adopt( &next, &used_world.used );
        CHECK_GE( next.refused_up_to, used_world.used.refused_up_to );
        for ( i = used_world.count - 1; i >= 0; i-- ) {
            int seen = nc_used_seen( &next, used_world.history[i].tag, used_hash( used_world.history[i].tag ) );
            if ( used_world.history[i].expire_timestamp == UINT64_MAX )
                CHECK_EQ( seen, nevers++ < ( never_room < 20 ? never_room : 20 ) ); /* the newest of them */
            else
                CHECK( seen || used_world.history[i].expire_timestamp <= next.refused_up_to );
        }
        if ( capacities[c] >= 40 )
            CHECK_EQ( next.refused_up_to, used_world.used.refused_up_to );
        free( block );
        free( used_world.block );
    }
}

TEST( mutants_used_tokens_are_distinguished_by_every_byte )
{
    nc_arena_t arena;
    nc_used_t used;
    nc_used_record_t record;
    void * block;
    int at;
    memset( &used, 0, sizeof( used ) );
    memset( &record, 7, sizeof( record ) );
    TABLE_PLACE( block, arena, nc_used_place( &used, &arena, 8 ) );
    nc_used_reset( &used );
    nc_used_insert( &used, &record, 5, 5 );
    CHECK_EQ( nc_used_seen( &used, record.tag, 5 ), 1 );
    for ( at = 0; at < NC_TOKEN_TAG_BYTES; at++ ) {
        record.tag[at] ^= 0x80;
        CHECK_EQ( nc_used_seen( &used, record.tag, 5 ), 0 );
        record.tag[at] ^= 0x80;
    }
    free( block );
}

/* ---- what it binds ---- */
