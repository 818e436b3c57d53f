/*  Containers: arena, list, table, bits and wheel do random work beside naive models that are too slow to be
    wrong. */

#define TABLE_NOWHERE 0xFFFFFFFFu

/* Lays something out twice, first to measure, as the library does; the block is of exactly the measured size. */
#define TABLE_PLACE( block, arena, layout )      \
    do {                                         \
        ( arena ) = nc_arena_make( NULL );       \
        layout;                                  \
        ( block ) = malloc( ( arena ).at );      \
        memset( ( block ), 0xA5, ( arena ).at ); \
        ( arena ) = nc_arena_make( block );      \
        layout;                                  \
    } while ( 0 )

TEST( table_arena )
{
    int shift, i;
    for ( shift = 0; shift < 70; shift++ ) {
        uint8_t * memory = (uint8_t *) malloc( 4096 + 256 );
        nc_arena_t measure = nc_arena_make( NULL ), arena = nc_arena_make( memory + shift );
        uint8_t * before = NULL;
        for ( i = 0; i < 20; i++ ) {
            size_t count = (size_t) i, bytes = (size_t) ( i % 7 + 1 );
            uint8_t * piece = (uint8_t *) nc_arena_take( &arena, count, bytes );
            CHECK( nc_arena_take( &measure, count, bytes ) == NULL );
            CHECK_EQ( (uintptr_t) piece % ( i == 0 ? NC_ARENA_ALIGN : NC_ARENA_LINE ), 0 );
            CHECK( piece >= memory + shift );
            CHECK( !before || piece >= before );
            before = piece + count * bytes;
        }
        CHECK( before <= memory + shift + measure.at ); /* what was measured is enough, wherever the block begins */
        CHECK( arena.at <= measure.at );
        free( memory );
    }
}

/* Sizes beyond all memory do not wrap around: a request for that much gets none. */
TEST( table_arena_of_impossible_sizes )
{
    static const size_t counts[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8 + 2, SIZE_MAX / 64 + 1 };
    size_t i;
    for ( i = 0; i < sizeof( counts ) / sizeof( counts[0] ); i++ ) {
        nc_arena_t arena = nc_arena_make( NULL );
        nc_arena_take( &arena, counts[i], 64 );
        CHECK( arena.at >= SIZE_MAX / 4 );
        nc_arena_take( &arena, 1, 64 );
        CHECK( arena.at >= SIZE_MAX / 4 );
    }
}

TEST( mutants_arena_says_no_for_ever )
{
    nc_arena_t arena = nc_arena_make( NULL );
    size_t most = ( ( SIZE_MAX / 2 ) - arena.at - NC_ARENA_ALIGN ) / 64;
    nc_arena_take( &arena, most, 64 );
    CHECK( arena.at < ( SIZE_MAX / 2 ) );
    nc_arena_take( &arena, 1, 64 );
    nc_arena_take( &arena, 8, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
    arena = nc_arena_make( NULL );
    nc_arena_take( &arena, most + 1, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
    nc_arena_take( &arena, 1, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
}

TEST( table_list_against_a_model )
{
    enum { ITEMS = 50 };
    nc_link_t links[ITEMS];
    nc_list_t list;
    uint32_t model[ITEMS], index;
    int in[ITEMS] = { 0 }, count = 0, step, i;
    nc_list_init( &list );
    CHECK_EQ( list.head, TABLE_NOWHERE );
    for ( step = 0; step < 5000; step++ ) {
        index = (uint32_t) test_random_below( ITEMS );
        if ( in[index] ) {
            nc_list_remove( &list, links, index );
            for ( i = 0; model[i] != index; i++ )
                ;
            memmove( &model[i], &model[i + 1], (size_t) ( --count - i ) * sizeof( model[0] ) );
        } else {
            nc_list_insert( &list, links, index );
            model[count++] = index;
        }
        in[index] = !in[index];
        REQUIRE_EQ( list.count, count );
        for ( i = 0, index = list.head; i < count; i++, index = links[index].next ) {
            REQUIRE_EQ( index, model[i] );
            REQUIRE_EQ( links[index].prev, i ? model[i - 1] : TABLE_NOWHERE );
        }
        REQUIRE_EQ( index, TABLE_NOWHERE );
        REQUIRE_EQ( list.tail, count ? model[count - 1] : TABLE_NOWHERE );
    }
}

/* Few hashes, so that many indices share one, or only a chain. */
TEST( table_map_against_a_model )
{
    static const uint32_t capacities[] = { 1, 2, 15, 16, 17, 100, 300 };
    size_t c;
    for ( c = 0; c < sizeof( capacities ) / sizeof( capacities[0] ); c++ ) {
        uint32_t capacity = capacities[c], i;
        uint32_t hashes[300], choice[12];
        int in[300] = { 0 }, step, k;
        nc_table_t table;
        nc_arena_t arena;
        void * block;
        TABLE_PLACE( block, arena, nc_table_place( &table, &arena, capacity, capacity / ( 1 + (uint32_t) c % 3 ) ) );
        nc_table_reset( &table );
        for ( k = 0; k < 12; k++ )
            choice[k] = k < 4 ? (uint32_t) test_random() : choice[k % 4] ^ ( k < 8 ? 1u << 30 : 1u << 3 );
        for ( step = 0; step < 3000; step++ ) {
            uint32_t index = (uint32_t) test_random_below( (int) capacity ), found;
            if ( in[index] )
                nc_table_remove( &table, index );
            else {
                hashes[index] = choice[test_random_below( 12 )];
                nc_table_insert( &table, hashes[index], index );
            }
            in[index] = !in[index];
            k = test_random_below( 12 );
            {
                int expected = 0, met = 0;
                for ( i = 0; i < capacity; i++ )
                    expected += in[i] && hashes[i] == choice[k];
                for ( found = nc_table_find( &table, choice[k] ); found != TABLE_NOWHERE && met <= expected;
                      found = nc_table_find_next( &table, found ) ) {
                    REQUIRE( found < capacity && in[found] && hashes[found] == choice[k] );
                    met++;
                }
                CHECK_EQ( met, expected );
            }
        }
        CHECK_EQ( nc_table_find( &table, (uint32_t) test_random() | 0xFF00 ), TABLE_NOWHERE );
        free( block );
    }
}

TEST( table_bits_against_a_model )
{
    static const uint32_t capacities[] = { 1, 2, 63, 64, 65, 128, 4095, 4096, 4097, 65535 };
    static uint8_t in[65535];
    size_t c;
    for ( c = 0; c < sizeof( capacities ) / sizeof( capacities[0] ); c++ ) {
        uint32_t capacity = capacities[c], lowest;
        int step;
        nc_bits_t bits;
        nc_arena_t arena;
        void * block;
        TABLE_PLACE( block, arena, nc_bits_place( &bits, &arena, capacity ) );
        nc_bits_reset( &bits );
        memset( in, 0, sizeof( in ) );
        CHECK_EQ( nc_bits_lowest( &bits ), TABLE_NOWHERE );
        for ( step = 0; step < 600; step++ ) {
            uint32_t index = (uint32_t) test_random_below( (int) capacity );
            if ( step % 3 == 0 && nc_bits_lowest( &bits ) != TABLE_NOWHERE )
                index = nc_bits_lowest( &bits );
            if ( in[index] || step % 3 == 0 )
                nc_bits_remove( &bits, index ); /* of what is absent, too */
            else
                nc_bits_insert( &bits, index );
            in[index] = (uint8_t) ( !in[index] && step % 3 != 0 );
            for ( lowest = 0; lowest < capacity && !in[lowest]; lowest++ )
                ;
            CHECK_EQ( nc_bits_lowest( &bits ), lowest < capacity ? lowest : TABLE_NOWHERE );
        }
        nc_bits_reset( &bits );
        nc_bits_insert( &bits, capacity - 1 );
        CHECK_EQ( nc_bits_lowest( &bits ), capacity - 1 );
        nc_bits_insert( &bits, 0 );
        CHECK_EQ( nc_bits_lowest( &bits ), 0 );
        free( block );
    }
}

TEST( table_lowest_bit_of_a_word )
{
    uint32_t bit;
    for ( bit = 0; bit < 64; bit++ ) {
        CHECK_EQ( nc_bits_lowest_of_word( (uint64_t) 1 << bit ), bit );
        CHECK_EQ( nc_bits_lowest_of_word( UINT64_MAX << bit ), bit );
    }
}

/* ---- wheel: at most a bucket late, early only where the deadline is further away than the wheel is long ---- */

enum { WHEEL_TIMERS = 40 };

static struct {
    nc_wheel_t wheel;
    void * block;
    int set[WHEEL_TIMERS];
    double deadline[WHEEL_TIMERS];
    double set_at[WHEEL_TIMERS];
    double now;
} wheel_world;

static void wheel_open( double now )
{
    nc_arena_t arena;
    TABLE_PLACE( wheel_world.block, arena, nc_wheel_place( &wheel_world.wheel, &arena, WHEEL_TIMERS ) );
    nc_wheel_reset( &wheel_world.wheel, now );
    memset( wheel_world.set, 0, sizeof( wheel_world.set ) );
    wheel_world.now = now;
}

static void wheel_set( uint32_t timer, double deadline )
{
    nc_wheel_insert( &wheel_world.wheel, timer, deadline );
    wheel_world.set[timer] = 1;
    wheel_world.deadline[timer] = deadline;
    wheel_world.set_at[timer] = wheel_world.now;
}

static void wheel_ring( double now )
{
    const double bucket = 1.0 / 1024.0;
    uint32_t timer;
    nc_wheel_advance( &wheel_world.wheel, now );
    if ( now > wheel_world.now )
        wheel_world.now = now;
    while ( ( timer = nc_wheel_take( &wheel_world.wheel ) ) != TABLE_NOWHERE ) {
        REQUIRE( timer < WHEEL_TIMERS && wheel_world.set[timer] );
        wheel_world.set[timer] = 0;
        if ( wheel_world.deadline[timer] - wheel_world.set_at[timer] < 1.0 - 2.0 * bucket )
            CHECK( wheel_world.now >= wheel_world.deadline[timer] - bucket );
        else
            CHECK( wheel_world.now >= wheel_world.set_at[timer] + 1.0 - 2.0 * bucket );
    }
    for ( timer = 0; timer < WHEEL_TIMERS; timer++ )
        if ( wheel_world.set[timer] ) {
            double due = wheel_world.deadline[timer];
            CHECK( wheel_world.now <
                   ( due > wheel_world.set_at[timer] ? due : wheel_world.set_at[timer] ) + 1.001 * bucket );
        }
}

TEST( table_wheel_against_a_model )
{
    static const double starts[] = { 0.0, 0.5, 1e6, 4294967296.0 };
    size_t s;
    int step;
    uint32_t timer;
    for ( s = 0; s < sizeof( starts ) / sizeof( starts[0] ); s++ ) {
        wheel_open( starts[s] );
        for ( step = 0; step < 6000; step++ ) {
            int dice = test_random_below( 100 );
            timer = (uint32_t) test_random_below( WHEEL_TIMERS );
            if ( dice < 40 )
                wheel_set( timer, wheel_world.now + (double) ( test_random_below( 3000 ) - 300 ) / 1000.0 );
            else if ( dice < 45 ) {
                nc_wheel_remove( &wheel_world.wheel, timer ); /* of one that is not set, too */
                wheel_world.set[timer] = 0;
            } else if ( dice < 90 )
                wheel_ring( wheel_world.now + (double) test_random_below( 40 ) / 2048.0 );
            else if ( dice < 96 )
                wheel_ring( wheel_world.now + (double) test_random_below( 2500 ) / 1000.0 );
            else if ( dice < 97 )
                wheel_ring( wheel_world.now + 1e5 );
            else
                wheel_ring( wheel_world.now - 3.0 ); /* does nothing */
        }
        wheel_ring( wheel_world.now + 1e9 );
        for ( timer = 0; timer < WHEEL_TIMERS; timer++ )
            CHECK( !wheel_world.set[timer] );
        free( wheel_world.block );
    }
}

TEST( table_wheel_seconds_left )
{
    int step;
    uint32_t timer;
    wheel_open( 10.0 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel_world.wheel, 10.0 ), 1.0, 1e-9 );
    for ( step = 0; step < 300; step++ ) {
        double first = 1.0, left;
        timer = (uint32_t) test_random_below( WHEEL_TIMERS );
        wheel_set( timer, wheel_world.now + (double) test_random_below( 1500 ) / 1000.0 );
        left = nc_wheel_seconds_left( &wheel_world.wheel, wheel_world.now );
        for ( timer = 0; timer < WHEEL_TIMERS; timer++ )
            if ( wheel_world.set[timer] && wheel_world.deadline[timer] - wheel_world.now < first )
                first = wheel_world.deadline[timer] - wheel_world.now;
        CHECK( left >= 0.0 && left <= 1.0 );
        CHECK( left <= ( first > 0.0 ? first : 0.0 ) + 1.5 / 1024.0 ); /* never sleeps past one */
        wheel_ring( wheel_world.now + (double) test_random_below( 100 ) / 1000.0 );
    }
    CHECK_NEAR( nc_wheel_seconds_left( &wheel_world.wheel, wheel_world.now + 1e6 ), 0.0, 1.0 );
    free( wheel_world.block );
}

TEST( mutants_an_empty_wheel_has_a_second )
{
    nc_wheel_t wheel;
    memset( &wheel, 0xff, sizeof( wheel ) );
    wheel.capacity = 0;
    nc_wheel_reset( &wheel, 0.0 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 0.0 ), 1.0, 0.0 );
    nc_wheel_reset( &wheel, 5.3 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 5.3 ), 1.0, 0.0 );
}

TEST( mutants_a_wheel_reports_when_it_expires )
{
    nc_wheel_t wheel;
    nc_link_t links[2];
    uint16_t list_of[2];
    memset( &wheel, 0, sizeof( wheel ) );
    wheel.capacity = 2;
    wheel.links = links;
    wheel.list_of = list_of;
    nc_wheel_reset( &wheel, 10.0 );
    nc_wheel_insert( &wheel, 1, 10.5 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.0 ), 0.5, 0.001 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.25 ), 0.25, 0.001 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.75 ), 0.0, 0.0 );
}
