/*  Bytes: readers and writers at every end, and that they stay failed. Standard: General Conventions */

/* Little-endian, in every width and at every distance from the end, in blocks of exactly that size. */
TEST( bytes_reader_at_every_boundary )
{
    static const size_t widths[] = { 1, 2, 4, 8 };
    size_t total, at, w, i;
    for ( total = 0; total <= 20; total++ )
        for ( at = 0; at <= total; at++ )
            for ( w = 0; w < 4; w++ ) {
                uint8_t * data = (uint8_t *) malloc( total ? total : 1 );
                nc_reader_t reader = nc_reader_make( data, total );
                uint64_t expected = 0, value;
                for ( i = 0; i < total; i++ )
                    data[i] = (uint8_t) ( 0x81 + i * 7 );
                for ( i = 0; i < at; i++ )
                    nc_reader_number( &reader, 1 );
                CHECK( !reader.failed );
                value = nc_reader_number( &reader, widths[w] );
                if ( total - at >= widths[w] ) {
                    for ( i = widths[w]; i > 0; i-- )
                        expected = expected << 8 | data[at + i - 1];
                    CHECK( !reader.failed );
                    CHECK_EQ( reader.at, at + widths[w] );
                } else {
                    CHECK( reader.failed );
                    CHECK_EQ( reader.at, at );
                }
                CHECK_EQ( value, expected );
                free( data );
            }
}

TEST( bytes_reader_stays_failed )
{
    static const uint8_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    nc_reader_t reader = nc_reader_make( data, sizeof( data ) );
    uint8_t out[4] = { 9, 9, 9, 9 };
    CHECK_EQ( nc_reader_number( &reader, 4 ), 0x04030201 );
    CHECK_EQ( nc_reader_number( &reader, 8 ), 0 );
    CHECK( reader.failed );
    CHECK_EQ( nc_reader_number( &reader, 1 ), 0 );
    CHECK_EQ( nc_reader_number( &reader, 2 ), 0 );
    CHECK_EQ( nc_reader_number( &reader, 4 ), 0 );
    nc_reader_bytes( &reader, out, 4 );
    CHECK_EQ( out[0] | out[1] | out[2] | out[3], 0 );
    nc_reader_bytes( &reader, out, 0 );
    CHECK( reader.failed );
    CHECK_EQ( reader.at, 4 );
}

TEST( bytes_reader_bytes_at_every_boundary )
{
    size_t total, take;
    for ( total = 0; total <= 40; total++ )
        for ( take = 0; take <= 44; take++ ) {
            uint8_t * data = (uint8_t *) malloc( total ? total : 1 );
            uint8_t out[48], zeros[48] = { 0 };
            nc_reader_t reader = nc_reader_make( data, total );
            memset( data, 0x5A, total );
            memset( out, 0x77, sizeof( out ) );
            nc_reader_bytes( &reader, out, take );
            CHECK_EQ( reader.failed, take > total );
            CHECK_MEM( out, take > total ? zeros : data, take );
            CHECK_EQ( out[take], 0x77 );
            free( data );
        }
}

/* Sizes near the largest number must not wrap around. */
TEST( bytes_huge_sizes_fail )
{
    uint8_t data[4] = { 0 };
    nc_reader_t reader = nc_reader_make( data, sizeof( data ) );
    nc_writer_t writer = nc_writer_make( data, sizeof( data ) );
    nc_reader_number( &reader, 2 );
    CHECK_EQ( nc_reader_number( &reader, SIZE_MAX ), 0 );
    CHECK( reader.failed );
    nc_writer_number( &writer, 1, 2 );
    nc_writer_bytes( &writer, data, SIZE_MAX );
    CHECK( writer.failed );
    CHECK_EQ( writer.at, 2 );
}

TEST( bytes_writer_at_every_boundary )
{
    size_t total, at, width, i;
    for ( total = 0; total <= 20; total++ )
        for ( at = 0; at <= total; at++ )
            for ( width = 1; width <= 8; width++ ) {
                uint8_t * data = (uint8_t *) malloc( total ? total : 1 );
                nc_writer_t writer = nc_writer_make( data, total );
                const uint64_t value = 0x8877665544332211u;
                memset( data, 0xEE, total );
                for ( i = 0; i < at; i++ )
                    nc_writer_number( &writer, 0xAB, 1 );
                nc_writer_number( &writer, value, width );
                CHECK_EQ( writer.failed, total - at < width );
                CHECK_EQ( writer.at, at + ( writer.failed ? 0 : width ) );
                for ( i = 0; i < total; i++ )
                    CHECK_EQ( data[i], i < at                                  ? 0xAB
                                       : i < at + width && total - at >= width ? 0x11 * ( i - at + 1 )
                                                                               : 0xEE );
                free( data );
            }
}

TEST( bytes_writer_stays_failed )
{
    uint8_t data[8];
    static const uint8_t more[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    nc_writer_t writer = nc_writer_make( data, sizeof( data ) );
    memset( data, 0, sizeof( data ) );
    nc_writer_bytes( &writer, more, 5 );
    nc_writer_number( &writer, 0xFFFFFFFF, 4 );
    CHECK( writer.failed );
    nc_writer_number( &writer, 0xFF, 1 );
    nc_writer_bytes( &writer, more, 1 );
    CHECK_EQ( writer.at, 5 );
    CHECK( writer.failed );
    CHECK_EQ( data[5] | data[6] | data[7], 0 );
    CHECK_MEM( data, more, 5 );
}

TEST( bytes_writer_zeros_fill_the_rest )
{
    size_t at, i;
    for ( at = 0; at <= 16; at++ ) {
        uint8_t data[17];
        nc_writer_t writer = nc_writer_make( data, 16 );
        memset( data, 0xCC, sizeof( data ) );
        for ( i = 0; i < at; i++ )
            nc_writer_number( &writer, 0xCC, 1 );
        nc_writer_zeros( &writer );
        for ( i = 0; i < 16; i++ )
            CHECK_EQ( data[i], i < at ? 0xCC : 0 );
        CHECK_EQ( data[16], 0xCC );
        CHECK_EQ( writer.at, 16 );
    }
}

TEST( bytes_numbers_survive_the_round_trip )
{
    int i;
    for ( i = 0; i < 2000; i++ ) {
        uint64_t value = test_random() >> test_random_below( 64 );
        uint8_t data[15];
        nc_writer_t writer = nc_writer_make( data, sizeof( data ) );
        nc_reader_t reader = nc_reader_make( data, sizeof( data ) );
        nc_writer_number( &writer, value, 8 );
        nc_writer_number( &writer, value, 4 );
        nc_writer_number( &writer, value, 2 );
        nc_writer_number( &writer, value, 1 );
        CHECK( !writer.failed );
        CHECK_EQ( nc_load_u64( data ), value );
        CHECK_EQ( nc_load_u32( data ), (uint32_t) value );
        CHECK_EQ( nc_reader_number( &reader, 8 ), value );
        CHECK_EQ( nc_reader_number( &reader, 4 ), (uint32_t) value );
        CHECK_EQ( nc_reader_number( &reader, 2 ), (uint16_t) value );
        CHECK_EQ( nc_reader_number( &reader, 1 ), (uint8_t) value );
        CHECK( !reader.failed );
        memset( data, 0, sizeof( data ) );
        nc_store_u64( data + 1, value );
        CHECK_EQ( nc_load_u64( data + 1 ), value );
    }
}
