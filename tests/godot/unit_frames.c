/* examples/godot/frames.h: bytes in, bytes out. */

TEST( numbers_are_little_endian_and_signed )
{
    const int32_t numbers[] = { 0, 1, -1, 2, 0x12345678, INT32_MAX, INT32_MIN, -0x12345678 };
    uint8_t bytes[4];
    for ( size_t i = 0; i < sizeof( numbers ) / sizeof( numbers[0] ); i++ ) {
        frame_write_number( bytes, numbers[i] );
        CHECK_EQ( frame_read_number( bytes ), numbers[i] );
    }
    frame_write_number( bytes, 0x12345678 );
    CHECK( bytes[0] == 0x78 && bytes[3] == 0x12 );
}

TEST( frames_come_back_as_they_were_written )
{
    uint8_t bytes[FRAME_CONTROL_BYTES];
    int32_t ids[FRAME_MAX_IDS];
    struct frame_t frame;
    for ( int i = 0; i < FRAME_MAX_IDS; i++ )
        ids[i] = 2 + i * 1000;
    REQUIRE( frame_read_at_server( bytes, frame_write_data( bytes, -5, (const uint8_t *) "abc", 3 ), &frame ) );
    CHECK( frame.type == FRAME_DATA && frame.peer == -5 && frame.bytes == 3 && memcmp( frame.data, "abc", 3 ) == 0 );
    REQUIRE( frame_read_at_client( bytes, frame_write_hello( bytes, FRAME_RELAYS, 77 ), CHANNEL_RELIABLE, &frame ) );
    CHECK( frame.type == FRAME_HELLO && frame.peer == 77 && frame.flags == FRAME_RELAYS );
    REQUIRE( frame_read_at_client( bytes, frame_write_ids( bytes, FRAME_ADD, ids, FRAME_MAX_IDS ), CHANNEL_RELIABLE,
                                   &frame ) );
    CHECK( frame.type == FRAME_ADD && frame.bytes == 4 * FRAME_MAX_IDS );
    CHECK_EQ( frame_read_number( frame.data + 4 * 255 ), ids[255] );
    REQUIRE(
        frame_read_at_client( bytes, frame_write_ids( bytes, FRAME_REMOVE, ids + 3, 1 ), CHANNEL_RELIABLE, &frame ) );
    CHECK( frame.type == FRAME_REMOVE && frame.peer == ids[3] );
    REQUIRE( frame_read_at_client( bytes, frame_write_goodbye( bytes, "why" ), CHANNEL_RELIABLE, &frame ) );
    CHECK( frame.type == FRAME_GOODBYE && frame.bytes == 3 );
}

TEST( a_server_reads_nothing_that_clients_do_not_send )
{
    struct frame_t frame;
    for ( int i = 0; i < MALFORMED; i++ ) {
        uint8_t * exact =
            (uint8_t *) malloc( (size_t) malformed[i].count + 1 ); /* a byte beyond it is the sanitizer's */
        memcpy( exact + 1, malformed[i].bytes, (size_t) malformed[i].count );
        if ( frame_read_at_server( exact + 1, malformed[i].count, &frame ) )
            test_fail( __FILE__, __LINE__, "accepted: %s", malformed[i].title );
        free( exact );
    }
}

TEST( a_client_reads_nothing_that_servers_do_not_send )
{
    const struct {
        int channel, count;
        uint8_t bytes[12];
    } rows[] = { { 0, 0, { 0 } },
                 { 0, 5, { 0, 1, 0, 0, 0 } },             /* no payload */
                 { 0, 6, { 0, 0, 0, 0, 0, 9 } },          /* from peer 0 */
                 { 0, 6, { 0, 255, 255, 255, 255, 9 } },  /* from peer -1 */
                 { 0, 7, { 1, 2, 0, 5, 0, 0, 0 } },       /* another version */
                 { 0, 6, { 1, 1, 0, 5, 0, 0 } },          /* cut off */
                 { 0, 7, { 1, 1, 0, 1, 0, 0, 0 } },       /* the server's own id */
                 { 1, 7, { 1, 1, 0, 5, 0, 0, 0 } },       /* on an unreliable channel */
                 { 0, 1, { 2 } },                         /* no id */
                 { 0, 6, { 2, 5, 0, 0, 0, 1 } },          /* one and a quarter */
                 { 0, 5, { 2, 1, 0, 0, 0 } },             /* the server as a client */
                 { 0, 5, { 2, 255, 255, 255, 255 } },     /* a negative one */
                 { 0, 9, { 3, 5, 0, 0, 0, 6, 0, 0, 0 } }, /* two to remove */
                 { 2, 5, { 3, 5, 0, 0, 0 } },             /* on an unreliable channel */
                 { 0, 5, { 5, 5, 0, 0, 0 } } };           /* no such type */
    struct frame_t frame;
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ )
        if ( frame_read_at_client( rows[i].bytes, rows[i].count, rows[i].channel, &frame ) )
            test_fail( __FILE__, __LINE__, "row %d was accepted", (int) i );
    uint8_t long_one[FRAME_CONTROL_BYTES + 8] = { FRAME_ADD };
    for ( int i = 0; i <= FRAME_MAX_IDS; i++ )
        frame_write_number( long_one + 1 + 4 * i, 5 + i );
    CHECK( frame_read_at_client( long_one, 1 + 4 * FRAME_MAX_IDS, CHANNEL_RELIABLE, &frame ) );
    CHECK( !frame_read_at_client( long_one, 1 + 4 * ( FRAME_MAX_IDS + 1 ), CHANNEL_RELIABLE, &frame ) );
    long_one[0] = FRAME_GOODBYE;
    CHECK( frame_read_at_client( long_one, 1 + FRAME_MAX_TEXT, CHANNEL_RELIABLE, &frame ) );
    CHECK( !frame_read_at_client( long_one, 2 + FRAME_MAX_TEXT, CHANNEL_RELIABLE, &frame ) );
}

TEST( texts_of_peers_become_printable )
{
    const struct {
        const char *from, *to;
    } rows[] = { { "hello", "hello" },
                 { "two\nlines\x1b[31m", "two?lines?[31m" },
                 { "gr\xc3\xbc\xc3\x9f dich", "gr\xc3\xbc\xc3\x9f dich" },
                 { "\xe2\x82\xac and \xf0\x9f\x8e\xae", "\xe2\x82\xac and \xf0\x9f\x8e\xae" },
                 { "cut \xe2\x82", "cut ??" },
                 { "\xc0\xaf", "??" },           /* a slash, too long */
                 { "\xed\xa0\x80", "???" },      /* half a pair */
                 { "\xf4\x90\x80\x80", "????" }, /* beyond the last character */
                 { "\xc2\x85", "??" },           /* a control character */
                 { "\xff\xfe", "??" } };
    char text[64];
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        frame_copy_text( text, (int) sizeof( text ), (const uint8_t *) rows[i].from, (int) strlen( rows[i].from ) );
        if ( strcmp( text, rows[i].to ) != 0 )
            test_fail( __FILE__, __LINE__, "row %d became \"%s\"", (int) i, text );
    }
    CHECK_EQ( frame_copy_text( text, 4, (const uint8_t *) "ab\xe2\x82\xac", 5 ), 2 ); /* it ends at a whole character */
    uint8_t frame[1 + FRAME_MAX_TEXT];
    char long_one[3 * FRAME_MAX_TEXT];
    memset( long_one, 'x', sizeof( long_one ) - 1 );
    long_one[sizeof( long_one ) - 1] = 0;
    CHECK_EQ( frame_write_goodbye( frame, long_one ), 1 + FRAME_MAX_TEXT );
}

TEST( random_bytes_never_break_the_readers )
{
    for ( int i = 0; i < 200000; i++ ) {
        uint8_t noise[48];
        int count = test_random_below( 48 );
        struct frame_t frame;
        for ( int k = 0; k < count; k++ )
            noise[k] = (uint8_t) test_random_below( k == 0 ? 6 : 256 );
        uint8_t * exact = (uint8_t *) malloc( (size_t) count + 1 );
        memcpy( exact, noise, (size_t) count );
        if ( frame_read_at_server( exact, count, &frame ) )
            CHECK( frame.bytes > 0 && frame.data + frame.bytes == exact + count );
        if ( frame_read_at_client( exact, count, test_random_below( CHANNELS ), &frame ) && frame.type != FRAME_HELLO )
            CHECK( frame.bytes >= 0 && frame.data + frame.bytes == exact + count );
        free( exact );
    }
}
