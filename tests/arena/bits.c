/* Unit tests: bits.h, by what its comments promise. */

/* The bytes in a block of exactly their size, so that the address sanitizer sees a byte too far. */
static uint8_t * bits_block( const uint8_t * data, int bytes )
{
    uint8_t * block = (uint8_t *) malloc( bytes > 0 ? (size_t) bytes : 1 );
    REQUIRE( block != NULL );
    if ( bytes > 0 )
        memcpy( block, data, (size_t) bytes );
    return block;
}

/* A number of any size: small and large ones, and those at the ends, are as likely. */
static int32_t bits_any( void )
{
    static const int32_t ends[] = { INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX };
    if ( test_random_below( 4 ) == 0 )
        return ends[test_random_below( 7 )];
    uint32_t value = (uint32_t) test_random() >> test_random_below( 32 );
    return (int32_t) ( test_random_below( 2 ) ? value : 0u - value );
}

static int32_t bits_between( int32_t lowest, int32_t highest )
{
    uint64_t width = (uint64_t) ( (int64_t) highest - lowest ) + 1;
    switch ( test_random_below( 6 ) ) {
    case 0: return lowest;
    case 1: return highest;
    default: return (int32_t) ( lowest + (int64_t) ( test_random() % width ) );
    }
}

/* ---- values in a row, as a caller would write and read them ---- */

enum bits_kind_t { BITS_PLAIN, BITS_RANGE, BITS_DIFFERENCE, BITS_BYTES, BITS_KINDS };

struct bits_item_t {
    enum bits_kind_t kind;
    int count; /* of bits, or bytes */
    int32_t lowest, highest, base, value;
    uint32_t plain;
    uint8_t bytes[8];
};

enum { BITS_ITEMS = 24, BITS_ROOM = 512 };

static void bits_draw( struct bits_item_t * item )
{
    int32_t a = bits_any(), b = test_random_below( 8 ) ? bits_any() : a;
    memset( item, 0, sizeof( *item ) );
    item->kind = (enum bits_kind_t) test_random_below( BITS_KINDS );
    item->count = test_random_below( item->kind == BITS_BYTES ? 9 : 33 );
    item->plain = (uint32_t) test_random();
    item->lowest = a < b ? a : b;
    item->highest = a < b ? b : a;
    item->value = bits_between( item->lowest, item->highest );
    item->base = test_random_below( 2 ) ? bits_any() : bits_between( item->lowest, item->highest );
    if ( test_random_below( 2 ) ) /* near */
        item->base = (int32_t) ( (uint32_t) item->value + (uint32_t) test_random_below( 40 ) - 20u );
    for ( int i = 0; i < 8; i++ )
        item->bytes[i] = (uint8_t) test_random();
}

static void bits_put( struct bits_writer_t * writer, const struct bits_item_t * item )
{
    switch ( item->kind ) {
    case BITS_PLAIN: bits_write( writer, item->plain, item->count ); break;
    case BITS_RANGE: bits_write_range( writer, item->value, item->lowest, item->highest ); break;
    case BITS_DIFFERENCE: bits_write_difference( writer, item->value, item->base, item->lowest, item->highest ); break;
    default: bits_write_bytes( writer, item->bytes, item->count );
    }
}

/* Whether it is what was written. Within its range it must be always, and the lowest after a failure. */
static int bits_get( struct bits_reader_t * reader, const struct bits_item_t * item )
{
    uint32_t mask = item->count == 32 ? 0xffffffffu : ( 1u << ( item->count & 31 ) ) - 1u;
    uint8_t bytes[8];
    uint32_t plain;
    int32_t value;
    switch ( item->kind ) {
    case BITS_PLAIN:
        plain = bits_read( reader, item->count );
        CHECK( plain <= mask && ( !reader->failed || plain == 0 ) );
        return plain == ( item->plain & mask );
    case BITS_BYTES:
        memset( bytes, 0xee, sizeof( bytes ) );
        bits_read_bytes( reader, bytes, item->count );
        CHECK( !reader->failed || test_is_zeros( bytes, (size_t) item->count ) );
        CHECK( item->count == 8 || bytes[item->count] == 0xee );
        return memcmp( bytes, item->bytes, (size_t) item->count ) == 0;
    default:
        value = item->kind == BITS_RANGE ? bits_read_range( reader, item->lowest, item->highest )
                                         : bits_read_difference( reader, item->base, item->lowest, item->highest );
        CHECK( value >= item->lowest && value <= item->highest && ( !reader->failed || value == item->lowest ) );
        return value == item->value;
    }
}

/* How many bits it takes on the wire. */
static int bits_cost( const struct bits_item_t * item )
{
    int64_t difference = (int64_t) item->value - item->base, width = (int64_t) item->highest - item->lowest;
    int range = 0;
    while ( range < 32 && width >> range )
        range++;
    switch ( item->kind ) {
    case BITS_PLAIN: return item->count;
    case BITS_RANGE: return range;
    case BITS_DIFFERENCE: return difference == 0 ? 1 : difference >= -16 && difference <= 15 ? 7 : 2 + range;
    default: return 8 * item->count;
    }
}

/* ---- the tests ---- */

TEST( bits_needed_for_numbers )
{
    CHECK_EQ( bits_needed( 0 ), 0 );
    for ( int i = 0; i < 32; i++ ) {
        CHECK_EQ( bits_needed( 1u << i ), i + 1 );
        CHECK_EQ( bits_needed( ( 1u << i ) - 1u ), i );
    }
    CHECK_EQ( bits_needed( 0xffffffffu ), 32 );
}

TEST( bits_of_every_width_keep_the_lowest )
{
    for ( int count = 0; count <= 32; count++ )
        for ( int before = 0; before < 9; before++ ) {
            uint32_t value = (uint32_t) test_random(), mask = count == 32 ? 0xffffffffu : ( 1u << count ) - 1u;
            uint8_t data[8];
            struct bits_writer_t writer;
            struct bits_reader_t reader;
            memset( data, 0xff, sizeof( data ) );
            bits_write_begin( &writer, data, sizeof( data ) );
            bits_write( &writer, 0, before );
            bits_write( &writer, value, count );
            CHECK_EQ( bits_write_end( &writer ), ( before + count + 7 ) / 8 );
            bits_read_begin( &reader, data, bits_write_end( &writer ) );
            CHECK_EQ( bits_read( &reader, before ), 0 );
            CHECK_EQ( bits_read( &reader, count ), value & mask );
            CHECK( bits_read_end( &reader ) );
        }
}

TEST( bits_on_the_wire )
{
    uint8_t data[8];
    struct bits_writer_t writer;
    memset( data, 0xff, sizeof( data ) );
    bits_write_begin( &writer, data, sizeof( data ) );
    bits_write( &writer, 5, 3 );                         /* the lowest bits of the first byte: 101 */
    bits_write_range( &writer, 70, 0, 100 );             /* 7 bits: 1000110 */
    bits_write_difference( &writer, 9, 9, 0, 4095 );     /* 0 */
    bits_write_difference( &writer, 9, 10, 0, 4095 );    /* 10, and 15 in 5 bits */
    bits_write_difference( &writer, 2000, 10, 0, 4095 ); /* 11, and 12 bits */
    CHECK_EQ( bits_write_end( &writer ), 4 );
    CHECK_EQ( writer.at, 3 + 7 + 1 + 7 + 14 );
    uint32_t word = data[0] | (uint32_t) data[1] << 8 | (uint32_t) data[2] << 16 | (uint32_t) data[3] << 24;
    CHECK_EQ( word, 5u | 70u << 3 | 0u << 10 | 1u << 11 | 15u << 13 | 3u << 18 | 2000u << 20 );
    CHECK_EQ( data[4], 0xff );
}

TEST( bits_behind_the_last_are_zeros )
{
    for ( int count = 1; count < 8; count++ ) {
        uint8_t data[1] = { 0xff };
        struct bits_writer_t writer;
        bits_write_begin( &writer, data, 1 );
        bits_write( &writer, 0xff, count );
        CHECK_EQ( data[0], ( 1 << count ) - 1 );
    }
}

TEST( bits_ranges_at_their_ends )
{
    static const struct {
        int32_t lowest, highest;
        int bits;
    } rows[] = { { INT32_MIN, INT32_MAX, 32 },
                 { INT32_MIN, INT32_MIN, 0 },
                 { INT32_MAX, INT32_MAX, 0 },
                 { 0, 0, 0 },
                 { -7, -7, 0 },
                 { 0, 1, 1 },
                 { -1, 1, 2 },
                 { INT32_MIN, -1, 31 },
                 { INT32_MIN, 0, 32 },
                 { 0, INT32_MAX, 31 },
                 { 100, 163, 6 },
                 { 100, 164, 7 } };
    for ( size_t row = 0; row < sizeof( rows ) / sizeof( rows[0] ); row++ ) {
        int32_t lowest = rows[row].lowest, highest = rows[row].highest;
        int64_t tried[] = { lowest,
                            (int64_t) lowest + 1,
                            ( (int64_t) lowest + highest ) / 2,
                            (int64_t) highest - 1,
                            highest,
                            (int64_t) lowest - 1,
                            (int64_t) highest + 1 };
        for ( int i = 0; i < 7; i++ ) {
            uint8_t data[4];
            struct bits_writer_t writer;
            struct bits_reader_t reader;
            int is_in = tried[i] >= lowest && tried[i] <= highest;
            if ( tried[i] < INT32_MIN || tried[i] > INT32_MAX )
                continue;
            bits_write_begin( &writer, data, sizeof( data ) );
            bits_write_range( &writer, (int32_t) tried[i], lowest, highest );
            CHECK_EQ( bits_write_end( &writer ), is_in ? ( rows[row].bits + 7 ) / 8 : -1 );
            CHECK_EQ( writer.at, is_in ? rows[row].bits : 0 );
            if ( !is_in )
                continue;
            bits_read_begin( &reader, data, bits_write_end( &writer ) );
            CHECK_EQ( bits_read_range( &reader, lowest, highest ), tried[i] );
            CHECK( bits_read_end( &reader ) );
        }
    }
}

TEST( bits_beyond_a_range_fail_the_reader )
{
    for ( int value = 0; value < 128; value++ ) {
        uint8_t data[1] = { (uint8_t) value };
        struct bits_reader_t reader;
        bits_read_begin( &reader, data, 1 );
        CHECK_EQ( bits_read_range( &reader, 10, 110 ), value <= 100 ? value + 10 : 10 );
        CHECK_EQ( bits_read_end( &reader ), value <= 100 );
    }
}

/* One difference, there and back. */
static void bits_check_difference( int64_t value, int32_t base, int32_t lowest, int32_t highest )
{
    struct bits_item_t item = { BITS_DIFFERENCE, 0, lowest, highest, base, (int32_t) value, 0, { 0 } };
    uint8_t data[8];
    struct bits_writer_t writer;
    struct bits_reader_t reader;
    if ( value < INT32_MIN || value > INT32_MAX )
        return;
    bits_write_begin( &writer, data, sizeof( data ) );
    bits_put( &writer, &item );
    if ( value < lowest || value > highest ) {
        CHECK_EQ( bits_write_end( &writer ), -1 );
        return;
    }
    CHECK_EQ( writer.at, bits_cost( &item ) );
    bits_read_begin( &reader, data, bits_write_end( &writer ) );
    CHECK( bits_get( &reader, &item ) );
    CHECK( bits_read_end( &reader ) );
}

TEST( bits_differences_near_and_far )
{
    static const int32_t bases[] = { INT32_MIN, INT32_MIN + 15, -1, 0, 1, 100, 4000, 4095, 4096, INT32_MAX };
    for ( int b = 0; b < 10; b++ )
        for ( int step = -40; step <= 40; step++ ) {
            bits_check_difference( (int64_t) bases[b] + step, bases[b], INT32_MIN, INT32_MAX );
            bits_check_difference( (int64_t) bases[b] + step, bases[b], 0, 4095 );
            bits_check_difference( (int64_t) INT32_MIN + step, bases[b], INT32_MIN, INT32_MAX ); /* as far as can be */
            bits_check_difference( (int64_t) INT32_MAX + step, bases[b], INT32_MIN, INT32_MAX );
        }
}

/* A base out of the range: what is equal to it, or near it and out of the range, was never written. */
TEST( bits_differences_from_a_base_out_of_range )
{
    for ( int form = 0; form < 33; form++ )
        for ( int base = -40; base <= 140; base++ ) {
            uint8_t data[1] = { (uint8_t) ( form == 32 ? 0 : 1 | form << 2 ) }; /* equal; or near, by each difference */
            int value = base + ( form == 32 ? 0 : form - 16 ), is_in = value >= 0 && value <= 100;
            struct bits_reader_t reader;
            bits_read_begin( &reader, data, 1 );
            CHECK_EQ( bits_read_difference( &reader, base, 0, 100 ), is_in ? value : 0 );
            CHECK_EQ( bits_read_end( &reader ), is_in );
        }
}

TEST( bits_writer_is_sticky )
{
    for ( int how = 0; how < 4; how++ ) {
        uint8_t data[4], before[4];
        struct bits_writer_t writer;
        memset( data, 0xaa, sizeof( data ) );
        bits_write_begin( &writer, data, 3 );
        bits_write( &writer, 0x155, 9 );
        memcpy( before, data, sizeof( data ) );
        int at = writer.at;
        switch ( how ) {
        case 0: bits_write( &writer, 0, 16 ); break;
        case 1: bits_write_range( &writer, 11, 0, 10 ); break;
        case 2: bits_write_range( &writer, -1, 0, 10 ); break;
        default: bits_write_difference( &writer, 5000, 4999, 0, 4095 );
        }
        CHECK_EQ( bits_write_end( &writer ), -1 );
        bits_write( &writer, 0, 1 );
        bits_write_range( &writer, 1, 0, 1 );
        bits_write_difference( &writer, 5, 5, 0, 9 );
        bits_write_difference( &writer, 9, 5, 0, 9 );
        bits_write_bytes( &writer, "x", 1 );
        CHECK_EQ( bits_write_end( &writer ), -1 );
        CHECK_EQ( writer.at, at );
        CHECK_MEM( data, before, 4 );
    }
}

TEST( bits_reader_is_sticky )
{
    static const uint8_t data[3] = { 0xff, 0xff, 0xff };
    for ( int how = 0; how < 4; how++ ) {
        uint8_t bytes[3] = { 1, 2, 3 };
        struct bits_reader_t reader;
        bits_read_begin( &reader, data, 3 );
        CHECK_EQ( bits_read( &reader, 5 ), 31 );
        switch ( how ) {
        case 0: CHECK_EQ( bits_read( &reader, 20 ), 0 ); break;
        case 1: CHECK_EQ( bits_read_range( &reader, -9, 0 ), -9 ); break;
        case 2: CHECK_EQ( bits_read_difference( &reader, 5, 3, 12 ), 3 ); break;
        default: bits_read_bytes( &reader, bytes, 3 ); CHECK( test_is_zeros( bytes, 3 ) );
        }
        int at = reader.at;
        CHECK_EQ( bits_read( &reader, 1 ), 0 );
        CHECK_EQ( bits_read_range( &reader, 7, 9 ), 7 );
        CHECK_EQ( bits_read_range( &reader, 6, 6 ), 6 );
        CHECK_EQ( bits_read_difference( &reader, 8, 7, 9 ), 7 );
        bits_read_bytes( &reader, bytes, 2 );
        CHECK( bytes[0] == 0 && bytes[1] == 0 );
        CHECK_EQ( reader.at, at );
        CHECK_EQ( bits_read_end( &reader ), 0 );
    }
}

TEST( bits_capacity_to_the_bit )
{
    for ( int capacity = 0; capacity <= 8; capacity++ )
        for ( int round = 0; round < 50; round++ ) {
            uint8_t data[9];
            struct bits_writer_t writer;
            memset( data, 0x5a, sizeof( data ) );
            bits_write_begin( &writer, data, capacity );
            for ( int left = capacity * 8; left; ) {
                int count = test_random_below( left < 32 ? left + 1 : 33 );
                bits_write( &writer, (uint32_t) test_random(), count );
                left -= count;
            }
            bits_write( &writer, 1, 0 );
            CHECK_EQ( bits_write_end( &writer ), capacity );
            bits_write( &writer, 1, 1 );
            CHECK_EQ( bits_write_end( &writer ), -1 );
            CHECK_EQ( data[capacity], 0x5a );
        }
}

TEST( bits_end_sees_what_trails )
{
    for ( int used = 0; used <= 16; used++ )
        for ( int bytes = 0; bytes <= 3; bytes++ )
            for ( int bit = -1; bit < bytes * 8; bit++ ) {
                uint8_t data[3] = { 0, 0, 0 };
                struct bits_reader_t reader;
                int is_good = used <= bytes * 8 && bytes * 8 - used < 8 && ( bit < used );
                if ( bit >= 0 )
                    data[bit / 8] = (uint8_t) ( 1 << bit % 8 );
                bits_read_begin( &reader, data, bytes );
                bits_read( &reader, used );
                CHECK_EQ( bits_read_end( &reader ), is_good );
            }
}

TEST( bits_of_a_failed_writer_are_none_to_read )
{
    struct bits_reader_t reader;
    bits_read_begin( &reader, (const uint8_t *) "", -1 );
    CHECK_EQ( bits_read_end( &reader ), 0 );
    CHECK_EQ( bits_read( &reader, 0 ), 0 );
    CHECK_EQ( bits_read_range( &reader, 4, 8 ), 4 );
    CHECK_EQ( bits_read_end( &reader ), 0 );
    bits_read_begin( &reader, (const uint8_t *) "", 0 );
    CHECK_EQ( bits_read_end( &reader ), 1 );
}

TEST( bits_round_trips_of_random_values )
{
    for ( int round = 0; round < 100000; round++ ) {
        struct bits_item_t items[BITS_ITEMS];
        uint8_t data[BITS_ROOM];
        struct bits_writer_t writer;
        struct bits_reader_t reader;
        int count = 1 + test_random_below( 6 ), cost = 0, good = 1;
        bits_write_begin( &writer, data, sizeof( data ) );
        for ( int i = 0; i < count; i++ ) {
            bits_draw( &items[i] );
            bits_put( &writer, &items[i] );
            cost += bits_cost( &items[i] );
        }
        if ( !CHECK_EQ( writer.at, cost ) )
            return;
        bits_read_begin( &reader, data, bits_write_end( &writer ) );
        for ( int i = 0; i < count; i++ )
            good &= bits_get( &reader, &items[i] );
        if ( !CHECK( good && bits_read_end( &reader ) ) )
            return;
    }
}

TEST( bits_cut_off_at_every_length )
{
    for ( int round = 0; round < 300; round++ ) {
        struct bits_item_t items[BITS_ITEMS];
        uint8_t data[BITS_ROOM];
        struct bits_writer_t writer;
        bits_write_begin( &writer, data, sizeof( data ) );
        for ( int i = 0; i < BITS_ITEMS; i++ ) {
            bits_draw( &items[i] );
            bits_put( &writer, &items[i] );
        }
        int bytes = bits_write_end( &writer );
        REQUIRE( bytes >= 0 );
        for ( int cut = 0; cut <= bytes; cut++ ) {
            uint8_t * block = bits_block( data, cut );
            struct bits_reader_t reader;
            bits_read_begin( &reader, block, cut );
            for ( int i = 0; i < BITS_ITEMS; i++ )
                bits_get( &reader, &items[i] );
            CHECK_EQ( bits_read_end( &reader ), cut == bytes );
            free( block );
        }
    }
}

TEST( bits_of_garbage_are_within_their_ranges )
{
    for ( int round = 0; round < 20000; round++ ) {
        uint8_t data[40];
        int bytes = test_random_below( sizeof( data ) + 1 );
        inputs_fill( data, bytes );
        uint8_t * block = bits_block( data, bytes );
        struct bits_reader_t reader;
        bits_read_begin( &reader, block, bytes );
        for ( int i = 0; i < 12; i++ ) {
            struct bits_item_t item;
            bits_draw( &item );
            bits_get( &reader, &item ); /* checks */
        }
        bits_read_end( &reader );
        free( block );
    }
}
