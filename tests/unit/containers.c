/*  Containers: arena, list, table, sieve, bits and wheel do random work beside naive models that are too slow to be
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

/* ---- sieve: against a list of its members ---- */

enum { SIEVE_MEMBERS = 100, SIEVE_KEYS = 40 };

static struct {
    nc_sieve_t sieve;
    uint64_t keys[SIEVE_KEYS]; /* that meet in few sets, and some of them in all that is kept of them */
    int key_of[SIEVE_MEMBERS]; /* -1: no member */
} sieve_world;

static int sieve_share_set( uint64_t a, uint64_t b )
{
    return ( ( a ^ b ) >> 32 & sieve_world.sieve.mask ) == 0;
}

static int sieve_share_tag( uint64_t a, uint64_t b )
{
    return ( ( a ^ b ) & 0x7fff0000 ) == 0;
}

static void sieve_check( uint64_t key )
{
    uint32_t found = nc_sieve_find( &sieve_world.sieve, key ),
             crowded = nc_sieve_set( &sieve_world.sieve, key )->crowded;
    int i, members = 0, in_set = 0;
    for ( i = 0; i < SIEVE_MEMBERS; i++ ) {
        uint64_t its;
        if ( sieve_world.key_of[i] < 0 )
            continue;
        its = sieve_world.keys[sieve_world.key_of[i]];
        in_set += sieve_share_set( its, key );
        members += sieve_share_set( its, key ) && sieve_share_tag( its, key );
    }
    if ( found < ( TABLE_NOWHERE - 1 ) ) {
        REQUIRE( found < SIEVE_MEMBERS && sieve_world.key_of[found] >= 0 );
        CHECK( sieve_share_set( sieve_world.keys[sieve_world.key_of[found]], key ) );
        CHECK( sieve_share_tag( sieve_world.keys[sieve_world.key_of[found]], key ) );
    } else
        CHECK_EQ( found == ( TABLE_NOWHERE - 1 ), crowded > 0 );
    CHECK( members == 0 || found != TABLE_NOWHERE );
    CHECK( members == 0 || crowded > 0 || found != ( TABLE_NOWHERE - 1 ) );
    CHECK( (int) crowded <= in_set );
}

static uint32_t sieve_count( void )
{
    uint32_t i, k, count = 0;
    for ( i = 0; i <= sieve_world.sieve.mask; i++ ) {
        count += sieve_world.sieve.sets[i].crowded;
        for ( k = 0; k < NC_SIEVE_WORDS; k++ )
            count += sieve_world.sieve.sets[i].words[k] != TABLE_NOWHERE;
    }
    return count;
}

TEST( table_sieve_against_a_model )
{
    nc_arena_t arena;
    void * block;
    uint32_t count = 0;
    int i, step;
    TABLE_PLACE( block, arena, nc_sieve_place( &sieve_world.sieve, &arena, 17 ) );
    CHECK_EQ( sieve_world.sieve.mask, 31 );
    nc_sieve_reset( &sieve_world.sieve );
    for ( i = 0; i < SIEVE_KEYS; i++ ) {
        uint64_t set = (uint64_t) test_random_below( 4 ) << 32, kept = 0x7fff0000, random = test_random();
        sieve_world.keys[i] = i % 4 ? set | ( random & 0xffffff80ffffffff )
                                    : sieve_world.keys[i ? i - 1 : 0] ^ ( random & ~( kept | 31ull << 32 ) );
    }
    for ( i = 0; i < SIEVE_MEMBERS; i++ )
        sieve_world.key_of[i] = -1;
    for ( step = 0; step < 20000; step++ ) {
        int joins, most = step / 1000 % 2 ? SIEVE_MEMBERS : 6; /* crowds come and go */
        i = test_random_below( most );
        joins = sieve_world.key_of[i] < 0;
        if ( joins )
            sieve_world.key_of[i] = test_random_below( SIEVE_KEYS );
        nc_sieve_change( &sieve_world.sieve, sieve_world.keys[sieve_world.key_of[i]], (uint32_t) i, joins );
        if ( !joins )
            sieve_world.key_of[i] = -1;
        count += joins ? 1u : UINT32_MAX;
        CHECK_EQ( sieve_count(), count );
        sieve_check( sieve_world.keys[test_random_below( SIEVE_KEYS )] );
        sieve_check( test_random() );
    }
    for ( i = 0; i < SIEVE_MEMBERS; i++ )
        if ( sieve_world.key_of[i] >= 0 )
            nc_sieve_change( &sieve_world.sieve, sieve_world.keys[sieve_world.key_of[i]], (uint32_t) i, 0 );
    CHECK_EQ( sieve_count(), 0 );
    for ( i = 0; i < SIEVE_KEYS; i++ )
        CHECK_EQ( nc_sieve_find( &sieve_world.sieve, sieve_world.keys[i] ), TABLE_NOWHERE );
    free( block );
}

/* ---- sieve: neighbours in address or port, as a provider or a router makes them, spread at random ---- */

enum { SIEVE_PLAYERS = 4096, SIEVE_SHAPES = 16, SIEVE_SHAPES_IPV4 = 8, SIEVE_SHAPE_RANDOM = 15 };

static const char * const sieve_shapes[SIEVE_SHAPES] = { "neighbouring ports of one router",
                                                         "every other port of one router",
                                                         "every 64th port of 4 routers",
                                                         "every 256th port of 16 routers",
                                                         "16 ports of each of 256 routers",
                                                         "neighbouring IPv4 addresses, one port",
                                                         "IPv4 networks side by side, one port",
                                                         "a /16 of IPv4, random",
                                                         "neighbouring ports of one IPv6 address",
                                                         "a /64 of IPv6, in order",
                                                         "a /64 of IPv6, random (privacy addresses)",
                                                         "the /64 networks of a /48, one host each",
                                                         "/48 networks side by side, one host each",
                                                         "the /64 networks of a /48, hosts 16 apart",
                                                         "ports of one router beside hosts of a /64",
                                                         "random ones of both families" };

static void sieve_random_words( uint16_t * words, int count )
{
    while ( count-- > 0 )
        words[count] = (uint16_t) test_random();
}

static struct netcode_address_t sieve_address_ipv4( int shape, int i )
{
    struct netcode_address_t address = address_of( "203.0.113.7:20000" );
    uint8_t * ip = address.data.ipv4;
    switch ( shape ) {
    case 0: address.port = (uint16_t) ( 20000 + i ); break;
    case 1: address.port = (uint16_t) ( 20000 + 2 * i ); break;
    case 2: address.port = (uint16_t) ( 1 + 64 * i ); break; /* they begin anew after 1,024 */
    case 3: address.port = (uint16_t) ( 1 + 256 * i ); break;
    case 4: address.port = (uint16_t) ( 20000 + i / 256 ); break;
    case 5: ip[2] = (uint8_t) ( i >> 8 ); break;
    case 6: ip[0] = (uint8_t) i; break;
    default:
        sieve_random_words( address.data.ipv6 + 1, 1 );
        address.port = (uint16_t) ( 1024 + test_random_below( 64000 ) );
    }
    if ( shape == 2 || shape == 3 )
        ip[3] = (uint8_t) ( i / ( shape == 2 ? 1024 : 256 ) );
    if ( shape == 4 || shape == 5 )
        ip[3] = (uint8_t) i;
    if ( shape == 6 )
        ip[1] = (uint8_t) ( i >> 8 );
    return address;
}

static struct netcode_address_t sieve_address( int shape, int i )
{
    struct netcode_address_t address = address_of( "[2001:db8:1:2::1]:20000" );
    uint16_t * words = address.data.ipv6;
    if ( shape < SIEVE_SHAPES_IPV4 )
        return sieve_address_ipv4( shape, i );
    switch ( shape ) {
    case 8: address.port = (uint16_t) ( 20000 + i ); break;
    case 10: sieve_random_words( words + 4, 4 ); break;
    case 11: words[3] = (uint16_t) i; break;
    case 12: words[2] = (uint16_t) i; break;
    case 13:
        words[3] = (uint16_t) i;
        words[7] = (uint16_t) ( 16 * i + 1 );
        break;
    case SIEVE_SHAPE_RANDOM:
        address = i % 2 ? address_of( "1.2.3.4:5" ) : address;
        sieve_random_words( address.data.ipv6, i % 2 ? 2 : 8 );
        address.port = (uint16_t) test_random();
        break;
    default:
        if ( shape == 14 && i % 2 )
            return sieve_address_ipv4( 0, i );
        words[7] = (uint16_t) i;
    }
    return address;
}

/* How many of these players find no word free in their sets. */
static uint32_t sieve_crowded( nc_sieve_t * sieve, const struct netcode_address_t * addresses, uint64_t factor )
{
    uint32_t crowded = 0;
    nc_sieve_reset( sieve );
    for ( uint32_t i = 0; i < SIEVE_PLAYERS; i++ )
        nc_sieve_change( sieve, nc_address_key( &addresses[i], factor ), i, 1 );
    for ( uint32_t i = 0; i <= sieve->mask; i++ )
        crowded += sieve->sets[i].crowded;
    return crowded;
}

/* SIEVE_FACTORS=10000 tries as many factors, that a server may draw, on each shape. */
TEST( table_sieve_spreads_neighbours )
{
    static struct netcode_address_t addresses[SIEVE_PLAYERS];
    const char * wanted = getenv( "SIEVE_FACTORS" );
    int factors = wanted ? atoi( wanted ) : 50, shape, i, worst_shape = 0;
    uint32_t worst_of_all = 0;
    nc_sieve_t sieve;
    nc_arena_t arena;
    void * block;
    TABLE_PLACE( block, arena, nc_sieve_place( &sieve, &arena, SIEVE_PLAYERS ) );
    for ( shape = 0; shape < SIEVE_SHAPES; shape++ ) {
        uint32_t worst = 0;
        for ( i = 0; i < SIEVE_PLAYERS; i++ )
            addresses[i] = sieve_address( shape, i );
        for ( i = 0; i < factors; i++ ) {
            uint32_t crowded = sieve_crowded( &sieve, addresses, test_random() | 1 );
            worst = crowded > worst ? crowded : worst;
        }
        if ( wanted )
            printf( "    worst of %d factors: %4u of %d players crowded: %s\n", factors, (unsigned) worst,
                    (int) SIEVE_PLAYERS, sieve_shapes[shape] );
        CHECK_LE( worst, SIEVE_PLAYERS / 24 ); /* 1 in 43 on the average, where chance alone rules; 1 in 28 at worst */
        worst_shape = worst > worst_of_all ? shape : worst_shape;
        worst_of_all = worst > worst_of_all ? worst : worst_of_all;
    }
    printf( "    measured: of %d players %u crowded at worst, %s\n", (int) SIEVE_PLAYERS, (unsigned) worst_of_all,
            sieve_shapes[worst_shape] );
    free( block );
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
