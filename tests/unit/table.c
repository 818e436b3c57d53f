/*  Table: each structure does random work beside a naive model that is too slow to be wrong. */

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

/* Sizes beyond all memory do not wrap around: whoever asks for that much gets none. */
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

/* ---- sieve: against a list of who is in it ---- */

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

/* ---- sieve: neighbours in address or port, as a provider or a router makes them, spread as strangers do ---- */

enum { SIEVE_PLAYERS = 4096, SIEVE_SHAPES = 16, SIEVE_SHAPES_IPV4 = 8, SIEVE_SHAPE_STRANGERS = 15 };

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
                                                         "strangers of both families" };

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
    case SIEVE_SHAPE_STRANGERS:
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

/* ---- pool ---- */

TEST( table_pool )
{
    enum { BUFFERS = 37 };
    nc_pool_t * pool = NULL;
    nc_arena_t arena;
    void * block;
    uint32_t taken[BUFFERS], i, k;
    TABLE_PLACE( block, arena, pool = nc_pool_place( &arena, BUFFERS ) );
    REQUIRE( pool != NULL );
    CHECK_EQ( pool->free_count, BUFFERS );
    for ( i = 0; i < BUFFERS * NC_BUFFER_STRIDE; i++ )
        REQUIRE_EQ( pool->buffers[i], 0xA5 ); /* not touched before they are used */
    for ( i = 0; i < BUFFERS; i++ ) {
        uint8_t * data;
        CHECK_EQ( nc_pool_written_bytes( pool ),
                  (size_t) ( pool->buffers - (uint8_t *) block ) + i * NC_BUFFER_STRIDE );
        taken[i] = nc_pool_take( pool );
        REQUIRE( taken[i] < BUFFERS );
        for ( k = 0; k < i; k++ )
            CHECK_NE( taken[i], taken[k] );
        data = nc_pool_data( pool, taken[i] );
        memset( data, (int) i, NC_BUFFER_CAPACITY + 8 ); /* the largest datagram, and 8 readable bytes behind it */
        CHECK_EQ( (uintptr_t) data % 8, 0 );
        CHECK_EQ( nc_pool_find( pool, data ), taken[i] );
        CHECK_EQ( nc_pool_find( pool, data + 9 ), taken[i] );
        CHECK_EQ( nc_pool_find( pool, data + NC_BUFFER_CAPACITY ), taken[i] );
        CHECK_EQ( pool->states[taken[i]], NC_BUFFER_FREE );
    }
    CHECK_EQ( nc_pool_take( pool ), TABLE_NOWHERE );
    for ( i = 0; i < BUFFERS; i++ )
        CHECK_EQ( nc_pool_data( pool, taken[i] )[NC_BUFFER_CAPACITY + 7], i );
    CHECK_EQ( nc_pool_find( pool, pool->buffers - 1 ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, pool->buffers + (size_t) BUFFERS * NC_BUFFER_STRIDE ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, &arena ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, NULL ), TABLE_NOWHERE );
    for ( i = 0; i < BUFFERS; i++ ) {
        pool->states[taken[i]] = NC_BUFFER_HELD;
        nc_pool_give( pool, taken[i] );
        CHECK_EQ( pool->states[taken[i]], NC_BUFFER_FREE );
        CHECK_EQ( nc_pool_take( pool ), taken[i] ); /* the warmest first */
        nc_pool_give( pool, taken[i] );
    }
    CHECK_EQ( pool->free_count, BUFFERS );
    free( block );
}

/* ---- used tokens. PROTOCOL.md, decision 4 ---- */

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

/* Is a token with this id and expiry refused though nobody remembers it? */
static int used_is_refused( const nc_used_t * used, uint64_t client_id, uint64_t expire )
{
    uint32_t crowded = nc_used_crowded( used, client_id, used_id_hash( client_id ) );
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
            /* every expiry of its own, so that the model knows who goes; some are past already */
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
    earliest of all. Nobody but this id is refused for the former. */
TEST( table_used_shares_of_client_ids_against_a_model )
{
    static const int ids[] = { 1, 3, 20, 400 };
    size_t c;
    int step, i, live, count;
    for ( c = 0; c < sizeof( ids ) / sizeof( ids[0] ); c++ ) {
        uint64_t now = 1000;
        used_open( &used_world.used, &used_world.block, 80 ); /* 40 expiring ones */
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
            if ( live > 40 )
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

/* Six full levels of four children each, filled in some order; then each one gives way to somebody later, in its turn. */
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

/* With many equal expiries it does not matter who goes, but nobody who went may come back. */
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

/* The mark is the latest expiry that was ever forgotten, and it never goes back. THREATS.md, row 26 */
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
        CHECK( nc_used_has_room_for_never( &used_world.used ) );
        used_insert( UINT64_MAX );
    }
    CHECK( !nc_used_has_room_for_never( &used_world.used ) ); /* while bases are not random, new ones wait */
    CHECK( used_is_safe( &used_world.used ) );
    used_world.used.oldest_never_gives_way = 1;
    for ( i = 0; i < 35; i++ ) {
        CHECK( nc_used_has_room_for_never( &used_world.used ) );
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
        used_world.used.oldest_never_gives_way = 1;
        for ( i = 0; i < 50; i++ )
            used_insert( i % 2 ? UINT64_MAX : 100 + (uint64_t) ( i * 37 % 101 ) );
        used_open( &next, &block, capacities[c] );
        next.oldest_never_gives_way = 1;
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

/* ---- inbox ---- */

enum { INBOX_CLIENTS = 3, INBOX_BUFFERS = 36, INBOX_ITEMS = 2000 };

/* One event of the model: a note, or a payload in its true place. */
struct inbox_item_t {
    int type;
    uint32_t client;
    uint64_t session;
    uint64_t sequence;
    uint64_t orphaned; /* when; 0: it still lies in its client's queue */
};

static struct {
    nc_inbox_t inbox;
    nc_pool_t * pool;
    void * block;
    struct inbox_item_t items[INBOX_ITEMS];
    int count;
    int open[INBOX_CLIENTS];
    uint64_t session[INBOX_CLIENTS];
    uint64_t sessions;
    uint64_t sequences;
    uint64_t orphans;
    uint64_t left[INBOX_CLIENTS]; /* when its client went, leaving payloads behind */
    uint8_t * held[INBOX_BUFFERS];
    int held_count;
} inbox_world;

static void inbox_open( uint32_t clients, uint32_t buffers, uint32_t quota )
{
    nc_arena_t arena;
    nc_pool_t * pool = NULL;
    memset( &inbox_world, 0, sizeof( inbox_world ) );
    inbox_world.inbox.client_count = clients;
    inbox_world.inbox.note_count =
        2 * clients + (uint32_t) ( clients == 1 ? NC_INBOX_SPARE_NOTES_CLIENT : NC_INBOX_SPARE_NOTES_SERVER );
    TABLE_PLACE( inbox_world.block, arena,
                 ( pool = nc_pool_place( &arena, buffers ), nc_inbox_place( &inbox_world.inbox, &arena, buffers ) ) );
    inbox_world.pool = pool;
    nc_inbox_reset( &inbox_world.inbox, pool, quota );
}

static int inbox_queued( uint32_t client )
{
    int i, count = 0;
    for ( i = 0; i < inbox_world.count; i++ )
        count += inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && inbox_world.items[i].client == client &&
                 !inbox_world.items[i].orphaned;
    return count;
}

static int inbox_payloads( void )
{
    int i, count = 0;
    for ( i = 0; i < inbox_world.count; i++ )
        count += inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD;
    return count;
}

static void inbox_add( int type, uint32_t client, uint64_t sequence )
{
    struct inbox_item_t * item = &inbox_world.items[inbox_world.count++];
    item->type = type;
    item->client = client;
    item->session = inbox_world.session[client];
    item->sequence = sequence;
    item->orphaned = 0;
}

static void inbox_drop( int index )
{
    memmove( &inbox_world.items[index], &inbox_world.items[index + 1],
             (size_t) ( --inbox_world.count - index ) * sizeof( inbox_world.items[0] ) );
}

/* What is kept back for the connected ones: what each lacks to its share. */
static int inbox_reserved( void )
{
    int client, sum = 0;
    for ( client = 0; client < (int) inbox_world.inbox.client_count; client++ ) {
        int lacks = (int) inbox_world.inbox.share - inbox_queued( (uint32_t) client );
        if ( inbox_world.open[client] && lacks > 0 )
            sum += lacks;
    }
    return sum;
}

static void inbox_check( void )
{
    uint32_t client;
    int payloads = inbox_payloads();
    REQUIRE_EQ( inbox_world.inbox.queued, payloads );
    REQUIRE_EQ( inbox_world.inbox.events.count, inbox_world.count );
    REQUIRE_EQ( inbox_world.inbox.reserved, inbox_reserved() );
    REQUIRE_EQ( inbox_world.pool->held, inbox_world.held_count );
    REQUIRE_EQ( inbox_world.pool->free_count, (int) inbox_world.pool->count - payloads - inbox_world.held_count );
    REQUIRE_EQ( inbox_world.inbox.note_count - inbox_world.inbox.free_note_count, inbox_world.count - payloads );
    for ( client = 0; client < inbox_world.inbox.client_count; client++ )
        REQUIRE_EQ( inbox_world.inbox.queues[client].list.count, inbox_queued( client ) );
}

/* The payload of a sequence: its size and bytes follow from it. */
static int inbox_fill( uint8_t * data, uint64_t sequence )
{
    int bytes = (int) ( test_mix( sequence ) % NETCODE_MAX_PACKET_SIZE ) + 1, i;
    for ( i = 0; i < bytes; i++ )
        data[i] = (uint8_t) ( sequence + (uint64_t) i );
    return bytes;
}

static void inbox_hold( uint8_t * data, int bytes, uint64_t sequence )
{
    static const uint8_t zeros[8];
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    CHECK_EQ( bytes, inbox_fill( expected, sequence ) );
    CHECK_MEM( data, expected, bytes );
    CHECK_MEM( data + bytes, zeros, 8 ); /* bit readers read ahead */
    inbox_world.held[inbox_world.held_count++] = data;
}

static void inbox_begin_session( uint32_t client )
{
    int i;
    if ( inbox_world.open[client] )
        return;
    for ( i = 0; i < inbox_world.count; i++ )
        if ( inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && inbox_world.items[i].client == client &&
             !inbox_world.items[i].orphaned ) {
            if ( inbox_world.inbox.events_are_taken )
                inbox_world.items[i].orphaned = ++inbox_world.orphans;
            else
                inbox_drop( i-- );
        }
    inbox_world.open[client] = 1;
    inbox_world.session[client] = ++inbox_world.sessions;
    nc_inbox_open( &inbox_world.inbox, client, inbox_world.session[client], 500 + inbox_world.session[client] );
    inbox_add( NETCODE_EVENT_CONNECTED, client, 0 );
}

static void inbox_end_session( uint32_t client )
{
    if ( !inbox_world.open[client] )
        return;
    inbox_world.open[client] = 0;
    inbox_world.left[client] = ++inbox_world.orphans;
    nc_inbox_close( &inbox_world.inbox, client, inbox_world.session[client], 500 + inbox_world.session[client],
                    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
    inbox_add( NETCODE_EVENT_DISCONNECTED, client, 0 );
}

/* What is given up first when room is wanted: the oldest orphan, else the oldest payload of who went first; or -1. */
static int inbox_first_left( void )
{
    int i, first = -1;
    for ( i = 0; i < inbox_world.count; i++ )
        if ( inbox_world.items[i].orphaned &&
             ( first < 0 || inbox_world.items[i].orphaned < inbox_world.items[first].orphaned ) )
            first = i;
    for ( i = 0; i < inbox_world.count && ( first < 0 || !inbox_world.items[first].orphaned ); i++ )
        if ( inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && !inbox_world.open[inbox_world.items[i].client] &&
             ( first < 0 ||
               inbox_world.left[inbox_world.items[i].client] < inbox_world.left[inbox_world.items[first].client] ) )
            first = i;
    return first;
}

/* Quota, then who is gone makes room, then the pool, then the share of the others. */
static int inbox_expected( uint32_t client )
{
    int queued = inbox_queued( client ), first, room;
    int kept_back = queued < (int) inbox_world.inbox.share ? 0 : inbox_reserved();
    if ( queued >= (int) inbox_world.inbox.quota )
        return NETCODE_DROP_QUEUE_FULL;
    for ( ;; ) {
        room = (int) inbox_world.pool->count - inbox_payloads() - inbox_world.held_count;
        if ( room > kept_back )
            return NETCODE_DROP_NONE;
        first = inbox_first_left();
        if ( first < 0 )
            return room == 0 ? NETCODE_DROP_POOL_EMPTY : NETCODE_DROP_QUEUE_FULL;
        inbox_drop( first );
    }
}

static int inbox_send( uint32_t client )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    nc_buffer_t what;
    int expected;
    if ( !inbox_world.open[client] )
        return -1;
    expected = inbox_expected( client );
    memset( &what, 0, sizeof( what ) );
    what.client_index = client;
    what.session = inbox_world.session[client];
    what.client_id = 500 + what.session;
    what.sequence = ++inbox_world.sequences;
    what.bytes = (uint32_t) inbox_fill( data, what.sequence );
    CHECK_EQ( nc_inbox_copy( &inbox_world.inbox, what, data ), expected );
    if ( expected == NETCODE_DROP_NONE )
        inbox_add( NETCODE_EVENT_PAYLOAD, client, what.sequence );
    return expected;
}

static void inbox_receive( uint32_t client )
{
    uint64_t sequence = 0;
    int bytes = 0, i;
    uint8_t * data = nc_inbox_receive( &inbox_world.inbox, client, &bytes, test_random_below( 4 ) ? &sequence : NULL );
    for ( i = 0; i < inbox_world.count; i++ )
        if ( inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && inbox_world.items[i].client == client &&
             !inbox_world.items[i].orphaned )
            break;
    REQUIRE_EQ( data != NULL, i < inbox_world.count );
    if ( !data )
        return;
    CHECK( sequence == 0 || sequence == inbox_world.items[i].sequence );
    inbox_hold( data, bytes, inbox_world.items[i].sequence );
    inbox_drop( i );
}

static void inbox_event( void )
{
    struct netcode_event_t event;
    struct inbox_item_t item = inbox_world.items[0];
    memset( &event, 0xEE, sizeof( event ) );
    REQUIRE_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), inbox_world.count > 0 );
    if ( inbox_world.count == 0 ) {
        CHECK_EQ( event.type, NETCODE_EVENT_NONE );
        return;
    }
    CHECK_EQ( event.type, item.type );
    CHECK_EQ( event.client_index, item.client );
    CHECK_EQ( event.session, item.session );
    CHECK_EQ( event.client_id, 500 + item.session );
    if ( item.type == NETCODE_EVENT_PAYLOAD ) {
        CHECK_EQ( event.sequence, item.sequence );
        inbox_hold( event.data, event.bytes, item.sequence );
    } else {
        CHECK_EQ( event.reason, item.type == NETCODE_EVENT_DISCONNECTED ? 1 : 0 );
        CHECK( event.data == NULL );
    }
    inbox_drop( 0 );
}

static void inbox_free( void )
{
    int which;
    uint32_t index;
    if ( inbox_world.held_count == 0 )
        return;
    which = test_random_below( inbox_world.held_count );
    index = nc_pool_find( inbox_world.pool, inbox_world.held[which] );
    REQUIRE( index != TABLE_NOWHERE );
    CHECK_EQ( inbox_world.pool->states[index], NC_BUFFER_HELD );
    inbox_world.pool->held--;
    nc_pool_give( inbox_world.pool, index );
    inbox_world.held[which] = inbox_world.held[--inbox_world.held_count];
}

/* `takes_events` out of 100 steps read an event; 0: the caller uses the per-slot calls alone. */
static void inbox_run( uint32_t quota, int takes_events )
{
    int step, verdicts[3] = { 0 };
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, quota );
    CHECK_EQ( inbox_world.inbox.share, INBOX_BUFFERS / ( 2 * INBOX_CLIENTS ) );
    for ( step = 0; step < 20000; step++ ) {
        uint32_t client = (uint32_t) test_random_below( INBOX_CLIENTS );
        int dice = test_random_below( 100 ), verdict;
        /* notes run out elsewhere: see the next tests */
        int notes_left = inbox_world.inbox.free_note_count > 2;
        if ( dice < takes_events )
            inbox_event();
        else if ( dice < 60 ) {
            verdict = inbox_send( client );
            verdicts[0] += verdict == NETCODE_DROP_NONE;
            verdicts[1] += verdict == NETCODE_DROP_QUEUE_FULL;
            verdicts[2] += verdict == NETCODE_DROP_POOL_EMPTY;
        } else if ( dice < 70 )
            inbox_receive( client );
        else if ( dice < 85 )
            inbox_free();
        else if ( dice < 92 && notes_left )
            inbox_begin_session( client );
        else if ( dice < 95 && notes_left )
            inbox_end_session( client );
        inbox_check();
        if ( !notes_left && takes_events == 0 ) {
            free( inbox_world.block );
            inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, quota );
        }
    }
    CHECK( verdicts[0] > 500 && verdicts[1] > 100 );
    free( inbox_world.block );
}

TEST( table_inbox_against_a_model )
{
    inbox_run( 256, 12 );
    inbox_run( 256, 5 );
    inbox_run( 9, 12 );
    inbox_run( 3, 3 );
}

TEST( table_inbox_without_events_against_a_model )
{
    inbox_run( 256, 0 );
    inbox_run( 8, 0 );
}

/* One who floods never takes the others' share. THREATS.md, rows 40 and 41 */
TEST( table_inbox_keeps_everyones_share )
{
    uint32_t client;
    int sent = 0, i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 1000 );
    for ( client = 0; client < INBOX_CLIENTS; client++ )
        inbox_begin_session( client );
    while ( inbox_send( 0 ) == NETCODE_DROP_NONE )
        sent++;
    CHECK_EQ( sent, INBOX_BUFFERS - 2 * (int) inbox_world.inbox.share );
    for ( client = 1; client < INBOX_CLIENTS; client++ ) {
        for ( i = 0; i < (int) inbox_world.inbox.share; i++ )
            CHECK_EQ( inbox_send( client ), NETCODE_DROP_NONE );
        CHECK_NE( inbox_send( client ), NETCODE_DROP_NONE );
    }
    CHECK_EQ( inbox_world.pool->free_count, 0 );
    inbox_check();
    free( inbox_world.block );
}

/* The default pool lets 256 clients each send 16 packets between two updates, and none is dropped. API.md */
TEST( table_inbox_default_pool )
{
    static nc_inbox_t inbox;
    nc_pool_t * pool = NULL;
    nc_arena_t arena;
    void * block;
    uint32_t client;
    int i, dropped = 0;
    inbox.client_count = 256;
    inbox.note_count = 2 * 256 + NC_INBOX_SPARE_NOTES_SERVER;
    TABLE_PLACE( block, arena, ( pool = nc_pool_place( &arena, 4096 ), nc_inbox_place( &inbox, &arena, 4096 ) ) );
    nc_inbox_reset( &inbox, pool, NC_SERVER_QUOTA );
    inbox.events_are_taken = 0;
    for ( client = 0; client < 256; client++ )
        nc_inbox_open( &inbox, client, client + 1, client );
    for ( client = 0; client < 256; client++ )
        for ( i = 0; i < 16; i++ ) {
            nc_buffer_t what;
            memset( &what, 0, sizeof( what ) );
            what.client_index = client;
            what.session = client + 1;
            what.bytes = 1;
            dropped += nc_inbox_copy( &inbox, what, (const uint8_t *) "x" ) != NETCODE_DROP_NONE;
        }
    CHECK_EQ( dropped, 0 );
    CHECK_EQ( inbox.reserved, 0 );
    free( block );
}

/* Where nobody takes events, sessions that came and went are forgotten as pairs, and nobody who stays is. */
TEST( table_inbox_notes_run_out )
{
    struct netcode_event_t event;
    uint64_t last = 1;
    uint32_t other;
    int i, events = 0, unmatched = 0;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 256 );
    nc_inbox_open( &inbox_world.inbox, 0, 1, 501 );
    for ( i = 2; i < 1000; i++ ) {
        nc_inbox_open( &inbox_world.inbox, 1, (uint64_t) i, 500 + (uint64_t) i );
        nc_inbox_close( &inbox_world.inbox, 1, (uint64_t) i, 500 + (uint64_t) i, 1 );
    }
    CHECK_EQ( inbox_world.inbox.note_count - inbox_world.inbox.free_note_count, inbox_world.inbox.events.count );
    REQUIRE_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), 1 );
    CHECK_EQ( event.type, NETCODE_EVENT_CONNECTED );
    CHECK_EQ( event.session, 1 ); /* the one who stays */
    while ( nc_inbox_next_event( &inbox_world.inbox, &event ) ) {
        other = event.type == NETCODE_EVENT_CONNECTED ? 1 : 0;
        events++;
        unmatched += other ? 1 : -1;
        CHECK_EQ( event.client_index, 1 );
        CHECK( unmatched == 0 || unmatched == 1 );
        CHECK_EQ( event.session, last + ( other ? ( last == 1 ? event.session - 1 : 1 ) : 0 ) );
        last = event.session;
    }
    CHECK_EQ( last, 999 );
    CHECK_EQ( unmatched, 0 );
    CHECK_GE( events, NC_INBOX_SPARE_NOTES_SERVER );
    CHECK_EQ( inbox_world.inbox.ended.count, 0 );
    free( inbox_world.block );
}

/* The worst case: all clients have one read CONNECTED and unread ends, then new sessions without end. */
TEST( table_inbox_notes_in_random_churn )
{
    struct netcode_event_t event;
    uint64_t session[8] = { 0 }, sessions = 0;
    int connected[8] = { 0 }, told[8] = { 0 }, step;
    inbox_open( 8, 64, 256 );
    for ( step = 0; step < 30000; step++ ) {
        uint32_t client = (uint32_t) test_random_below( 8 );
        if ( connected[client] )
            nc_inbox_close( &inbox_world.inbox, client, session[client], 0, 3 );
        else {
            session[client] = ++sessions;
            nc_inbox_open( &inbox_world.inbox, client, session[client], 0 );
        }
        connected[client] = !connected[client];
        if ( test_random_below( 300 ) )
            continue;
        /* now the caller reads everything: each end follows its own beginning, and the state is true at the end */
        while ( nc_inbox_next_event( &inbox_world.inbox, &event ) ) {
            CHECK_EQ( told[event.client_index], event.type == NETCODE_EVENT_DISCONNECTED );
            told[event.client_index] = event.type == NETCODE_EVENT_CONNECTED;
        }
        for ( client = 0; client < 8; client++ )
            REQUIRE_EQ( told[client], connected[client] );
        CHECK_EQ( inbox_world.inbox.free_note_count, inbox_world.inbox.note_count );
        CHECK_EQ( inbox_world.inbox.ended.count, 0 );
    }
    free( inbox_world.block );
}

/* A client object that fails to connect again and again: its newest failures are told. */
TEST( table_inbox_failures_of_a_client )
{
    struct netcode_event_t event;
    uint64_t expected;
    int i;
    inbox_open( 1, 8, 8 );
    for ( i = 1; i <= 100; i++ )
        nc_inbox_close( &inbox_world.inbox, 0, (uint64_t) i, 0, NETCODE_CLIENT_STATE_CONNECTION_DENIED );
    CHECK_EQ( inbox_world.inbox.free_note_count, 0 );
    for ( expected = 101 - inbox_world.inbox.note_count; expected <= 100; expected++ ) {
        REQUIRE_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), 1 );
        CHECK_EQ( event.type, NETCODE_EVENT_DISCONNECTED );
        CHECK_EQ( event.session, expected );
        CHECK_EQ( event.reason, NETCODE_CLIENT_STATE_CONNECTION_DENIED );
    }
    CHECK_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), 0 );
    free( inbox_world.block );
}

/* What was queued when a client left can be read until its slot is used again, whoever comes and goes elsewhere. */
TEST( table_inbox_keeps_what_a_client_left )
{
    int i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 256 );
    inbox_begin_session( 0 );
    CHECK_EQ( inbox_send( 0 ), NETCODE_DROP_NONE );
    CHECK_EQ( inbox_send( 0 ), NETCODE_DROP_NONE );
    inbox_end_session( 0 );
    for ( i = 100; i < 300; i++ ) {
        nc_inbox_open( &inbox_world.inbox, 1, (uint64_t) i, 0 );
        nc_inbox_close( &inbox_world.inbox, 1, (uint64_t) i, 0, 1 );
    }
    inbox_receive( 0 );
    inbox_receive( 0 );
    free( inbox_world.block );
}

/* Who takes events, but too slowly: the oldest session that came and went is forgotten with all that it sent. */
TEST( table_inbox_forgets_what_a_pair_sent )
{
    struct netcode_event_t event;
    uint64_t session;
    int payloads = 0, connected = 0, i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 256 );
    CHECK_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), 0 );
    for ( session = 1; session <= 200; session++ ) {
        nc_buffer_t what;
        uint32_t client = (uint32_t) ( session % 2 );
        memset( &what, 0, sizeof( what ) );
        what.client_index = client;
        what.session = session;
        what.bytes = 1;
        nc_inbox_open( &inbox_world.inbox, client, session, session );
        if ( session % 5 == 0 )
            CHECK_EQ( nc_inbox_copy( &inbox_world.inbox, what, (const uint8_t *) "x" ), NETCODE_DROP_NONE );
        nc_inbox_close( &inbox_world.inbox, client, session, session, 1 );
    }
    session = 0;
    while ( nc_inbox_next_event( &inbox_world.inbox, &event ) ) {
        if ( event.type == NETCODE_EVENT_CONNECTED ) {
            CHECK( !connected && event.session > session );
            session = event.session;
        }
        CHECK_EQ( event.session, session ); /* no payload without its session */
        connected = event.type != NETCODE_EVENT_DISCONNECTED;
        payloads += event.type == NETCODE_EVENT_PAYLOAD;
    }
    CHECK_EQ( session, 200 );
    CHECK_GE( payloads, 6 );
    CHECK_LE( payloads, 8 );
    CHECK_EQ( inbox_world.pool->free_count, INBOX_BUFFERS - payloads );
    for ( i = 0; i < INBOX_CLIENTS; i++ )
        CHECK_EQ( inbox_world.inbox.queues[i].list.count, 0 );
    free( inbox_world.block );
}
