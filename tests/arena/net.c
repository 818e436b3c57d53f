/* Unit tests: arena_net.h, what server and clients say to each other. */

static struct arena_kept_t net_kept;

static void net_begin( void )
{
    inputs_state = test_random() | 1;
    inputs_keep( &net_kept );
}

/* The bytes go through a block of exactly their size. */
static int net_read_snapshot( const uint8_t * data, int bytes, const struct arena_kept_t * kept,
                              struct arena_snapshot_t * snapshot, struct arena_own_t * own )
{
    uint8_t * block = bits_block( data, bytes );
    int result = arena_read_snapshot( block, bytes, kept, snapshot, own );
    free( block );
    return result;
}

/* ---- round trips ---- */

TEST( net_commands_make_the_round_trip )
{
    net_begin();
    for ( int round = 0; round < 50000; round++ ) {
        struct arena_input_t input, read;
        uint8_t data[ARENA_MESSAGE_BYTES];
        inputs_draw_commands( &input );
        int bytes = arena_write_input( data, sizeof( data ), &input );
        REQUIRE( bytes > 0 && arena_read_input( data, bytes, &read ) );
        REQUIRE_MEM( &input, &read, sizeof( input ) );
    }
}

TEST( net_commands_are_small )
{
    struct arena_input_t input;
    uint8_t data[ARENA_MESSAGE_BYTES];
    memset( &input, 0, sizeof( input ) );
    input.tick = 1000;
    input.acked = 990;
    input.count = ARENA_REDUNDANCY;
    CHECK_EQ( arena_write_input( data, sizeof( data ), &input ), ( 32 + 10 + 4 + 22 + 11 + 7 ) / 8 );
    for ( int i = 0; i < ARENA_REDUNDANCY; i++ )
        input.commands[i].aim = (uint8_t) i;
    CHECK_EQ( arena_write_input( data, sizeof( data ), &input ), ( 32 + 10 + 4 + 12 * 22 + 7 ) / 8 );
}

/* Which snapshot it has: the age fits into ten bits, or it is none. */
TEST( net_commands_and_the_snapshot_that_they_name )
{
    static const struct {
        uint32_t tick, acked, read;
    } rows[] = { { 5000, 5000, 5000 },
                 { 5000, 4999, 4999 },
                 { 5000, 5000 - 1022, 5000 - 1022 },
                 { 5000, 5000 - 1023, 0 },
                 { 5000, 1, 0 },
                 { 5000, 0, 0 },
                 { 5000, 5001, 0 }, /* from the future */
                 { 1, 1, 1 },
                 { 700, 1, 1 },
                 { 700, 0, 0 },
                 { 0, 0, 0 },
                 { 0xffffffffu, 0xffffffffu, 0xffffffffu },
                 { 3, 0xfffffffeu, 0 } };
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct arena_input_t input, read;
        uint8_t data[ARENA_MESSAGE_BYTES];
        memset( &input, 0, sizeof( input ) );
        input.tick = rows[i].tick;
        input.acked = rows[i].acked;
        input.count = 1;
        int bytes = arena_write_input( data, sizeof( data ), &input );
        REQUIRE( bytes > 0 && arena_read_input( data, bytes, &read ) );
        CHECK_EQ( read.tick, rows[i].tick );
        CHECK_EQ( read.acked, rows[i].read );
    }
}

TEST( net_commands_out_of_bounds_are_not_written )
{
    struct arena_input_t input;
    uint8_t data[ARENA_MESSAGE_BYTES];
    memset( &input, 0, sizeof( input ) );
    input.tick = 10;
    for ( int count = -1; count <= ARENA_REDUNDANCY + 1; count++ ) {
        input.count = count;
        CHECK_EQ( arena_write_input( data, sizeof( data ), &input ) > 0, count >= 1 && count <= ARENA_REDUNDANCY );
    }
    input.count = 2;
    input.commands[1].buttons = ARENA_BUTTONS + 1;
    CHECK_EQ( arena_write_input( data, sizeof( data ), &input ), -1 );
}

TEST( net_first_command_is_not_the_one_before_it )
{
    struct arena_input_t input;
    uint8_t data[16];
    struct bits_writer_t writer;
    for ( int is_same = 0; is_same < 2; is_same++ ) {
        bits_write_begin( &writer, data, sizeof( data ) );
        bits_write( &writer, 100, 32 );
        bits_write( &writer, 3, 10 );
        bits_write_range( &writer, 1, 1, ARENA_REDUNDANCY );
        bits_write( &writer, (uint32_t) is_same, 1 );
        if ( !is_same )
            bits_write( &writer, 0, 21 );
        CHECK_EQ( arena_read_input( data, bits_write_end( &writer ), &input ), !is_same );
    }
}

TEST( net_snapshots_make_the_round_trip )
{
    net_begin();
    for ( int round = 0; round < 5000; round++ ) {
        struct arena_snapshot_t snapshot, read;
        const struct arena_snapshot_t * base = round % 3 ? &net_kept.ring[inputs_below( ARENA_KEPT )] : NULL;
        struct arena_own_t own, own_read;
        uint8_t data[ARENA_MESSAGE_BYTES];
        inputs_draw_own( &own );
        inputs_draw_snapshot( &snapshot, INPUTS_BASE_TICK + 1 + (uint32_t) inputs_below( 60 ) );
        if ( base && round % 2 )
            memcpy( snapshot.players, base->players, sizeof( snapshot.players ) );
        for ( int i = 0; i < ARENA_PLAYERS; i++ )
            inputs_change_view( &snapshot.players[i] );
        int bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, base, &own );
        REQUIRE( bytes > 0 && net_read_snapshot( data, bytes, &net_kept, &read, &own_read ) );
        REQUIRE_MEM( &snapshot, &read, sizeof( snapshot ) );
        REQUIRE_MEM( &own, &own_read, sizeof( own ) );
    }
}

/* Age 0 on the wire is no base: bits 32 to 38. */
static int net_age( const uint8_t * data )
{
    return data[4] & 127;
}

TEST( net_snapshots_on_a_base_that_is_kept_or_not )
{
    static struct arena_kept_t none;
    struct arena_snapshot_t snapshot, read, base;
    struct arena_own_t own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    net_begin();
    inputs_draw_own( &own );
    for ( uint32_t age = 1; age < 200; age++ ) {
        base = net_kept.ring[5];
        inputs_draw_snapshot( &snapshot, base.tick + age );
        int bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
        CHECK_EQ( net_age( data ), age < 128 ? age : 0 );
        CHECK( net_read_snapshot( data, bytes, &net_kept, &read, &own ) );
        CHECK_MEM( &snapshot, &read, sizeof( read ) );
        CHECK_EQ( net_read_snapshot( data, bytes, &none, &read, &own ), age >= 128 );
    }
    base.tick = INPUTS_BASE_TICK + 1; /* never kept: the ring has even ticks */
    snapshot.tick = base.tick + 1;
    int bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
    CHECK_EQ( net_age( data ), 1 );
    CHECK_EQ( net_read_snapshot( data, bytes, &net_kept, &read, &own ), 0 );

    memset( &base, 0, sizeof( base ) ); /* nothing in it, and nothing new: it is a difference all the same */
    base.tick = INPUTS_BASE_TICK + 1;
    snapshot = base;
    snapshot.tick++;
    bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
    CHECK_EQ( net_read_snapshot( data, bytes, &net_kept, &read, &own ), 0 );

    base.tick = snapshot.tick + 1; /* newer, or the same: no base */
    arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
    CHECK_EQ( net_age( data ), 0 );
    base.tick = snapshot.tick;
    arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
    CHECK_EQ( net_age( data ), 0 );
}

TEST( net_kept_are_the_last )
{
    static struct arena_kept_t kept;
    struct arena_snapshot_t snapshot;
    memset( &kept, 0, sizeof( kept ) );
    CHECK( arena_find_kept( &kept, 0 ) == NULL );
    for ( uint32_t tick = 1; tick <= 100; tick++ ) {
        memset( &snapshot, 0, sizeof( snapshot ) );
        snapshot.tick = tick;
        CHECK_EQ( arena_keep( &kept, &snapshot )->tick, tick );
        for ( uint32_t asked = 0; asked <= tick + 1; asked++ ) {
            const struct arena_snapshot_t * found = arena_find_kept( &kept, asked );
            int is_kept = asked >= 1 && asked <= tick && tick - asked < ARENA_KEPT;
            CHECK_EQ( found != NULL, is_kept );
            CHECK( !found || found->tick == asked );
        }
    }
}

TEST( net_snapshots_where_ticks_wrap_around )
{
    static struct arena_kept_t kept;
    struct arena_snapshot_t snapshot, read, base;
    struct arena_own_t own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    net_begin();
    memset( &kept, 0, sizeof( kept ) );
    inputs_draw_own( &own );
    inputs_draw_snapshot( &base, 0xfffffffeu );
    arena_keep( &kept, &base );
    for ( uint32_t tick = 0xfffffffcu; tick != 6; tick++ ) {
        inputs_draw_snapshot( &snapshot, tick );
        int bytes = arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own );
        REQUIRE( bytes > 0 );
        CHECK_EQ( net_read_snapshot( data, bytes, &kept, &read, &own ), tick != 0 ); /* 0: none */
        if ( tick )
            CHECK_MEM( &snapshot, &read, sizeof( read ) );
    }
}

static void net_fill_worst( struct arena_snapshot_t * snapshot, struct arena_own_t * own )
{
    memset( snapshot, 0, sizeof( *snapshot ) );
    memset( own, 0, sizeof( *own ) );
    snapshot->tick = 5000;
    snapshot->items = 0xffff;
    own->player.is_there = 1;
    own->player.health = 100;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct arena_view_t * view = &snapshot->players[i];
        view->is_there = 1;
        view->health = 1;
        view->score = 1023;
        view->aim = 63;
        view->rapid = 1;
        view->x = 1;
        view->y = 1;
    }
}

/* As the comment at ARENA_MESSAGE_BYTES has it. */
TEST( net_snapshot_of_64_players_fits )
{
    struct arena_snapshot_t snapshot, base;
    struct arena_own_t own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    net_fill_worst( &snapshot, &own );
    int none = arena_write_snapshot( data, sizeof( data ), &snapshot, NULL, &own );
    CHECK_EQ( none, 473 );
    net_fill_worst( &base, &own );
    base.tick = 4998;
    base.items = 0;
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        base.players[i].x = base.players[i].y = 700;
        base.players[i].aim = 10;
        base.players[i].score = 500;
    }
    CHECK_EQ( arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own ), none );
    CHECK_LE( none, ARENA_MESSAGE_BYTES );
    CHECK_EQ( arena_write_snapshot( data, none, &snapshot, &base, &own ), none );
    CHECK_EQ( arena_write_snapshot( data, none - 1, &snapshot, &base, &own ), -1 );
    base = snapshot;
    base.tick = 4998;
    CHECK_EQ( arena_write_snapshot( data, sizeof( data ), &snapshot, &base, &own ), ( 32 + 7 + 80 + 1 + 64 + 7 ) / 8 );
}

TEST( net_snapshots_out_of_bounds_are_not_written )
{
    struct arena_snapshot_t good, snapshot;
    struct arena_own_t good_own, own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    net_fill_worst( &good, &good_own );
    CHECK_GT( arena_write_snapshot( data, sizeof( data ), &good, NULL, &good_own ), 0 );
    for ( int how = 0; how < 14; how++ ) {
        snapshot = good;
        own = good_own;
        struct arena_view_t * view = &snapshot.players[17];
        switch ( how ) {
        case 0: view->x = ARENA_WIDTH / ARENA_GRAIN; break;
        case 1: view->y = ARENA_HEIGHT / ARENA_GRAIN; break;
        case 2: view->aim = 64; break;
        case 3: view->health = 101; break;
        case 4: view->score = 1024; break;
        case 5: view->rapid = 2; break;
        case 6: own.player.x = -1; break;
        case 7: own.player.y = ARENA_HEIGHT; break;
        case 8: own.player.health = 101; break;
        case 9: own.player.wait_fire = ARENA_RELOAD_TICKS + 1; break;
        case 10: own.player.wait_spawn = ARENA_RESPAWN_TICKS + 1; break;
        case 11: own.player.rapid = ARENA_RAPID_TICKS + 1; break;
        case 12: own.player.score = 1024; break;
        default: own.player.is_there = 2;
        }
        CHECK_EQ( arena_write_snapshot( data, sizeof( data ), &snapshot, NULL, &own ), -1 );
    }
    for ( int margin = -40; margin <= 40; margin++ ) { /* a margin is cut to what can be said */
        struct arena_snapshot_t read;
        own = good_own;
        own.margin = margin;
        int bytes = arena_write_snapshot( data, sizeof( data ), &good, NULL, &own );
        REQUIRE( bytes > 0 && net_read_snapshot( data, bytes, &net_kept, &read, &own ) );
        CHECK_EQ( own.margin, arena_clamp( margin, -ARENA_MAX_MARGIN, ARENA_NO_MARGIN ) );
    }
}

TEST( net_snapshot_of_the_rules )
{
    static struct arena_t arena;
    struct arena_snapshot_t snapshot;
    REQUIRE( arena_init( &arena, (const uint8_t *) arena_default_map, ARENA_MAP_BYTES, 3 ) );
    arena.tick = 9;
    for ( int i = 0; i < ARENA_PLAYERS; i += 3 )
        arena_join( &arena, i );
    arena.items[0].wait = 5;
    arena.players[3].rapid = 7;
    arena.players[3].score = 1023;
    arena.players[3].aim = 255;
    arena_take_snapshot( &arena, &snapshot );
    CHECK_EQ( snapshot.tick, 9 );
    CHECK_EQ( snapshot.items, ( ( 1u << arena.map.items ) - 1u ) & ~1u );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_view_t * view = &snapshot.players[i];
        CHECK_EQ( view->is_there, i % 3 == 0 );
        CHECK( inputs_is_view( view ) );
        CHECK_EQ( view->x, arena.players[i].x / 8 );
        CHECK_EQ( view->y, arena.players[i].y / 8 );
        CHECK_EQ( view->health, i % 3 == 0 ? 100 : 0 );
    }
    CHECK( snapshot.players[3].rapid == 1 && snapshot.players[3].score == 1023 && snapshot.players[3].aim == 63 );
}

TEST( net_news_make_the_round_trip )
{
    net_begin();
    for ( int round = 0; round < 20000; round++ ) {
        struct arena_news_t news, read;
        uint8_t data[ARENA_MESSAGE_BYTES];
        inputs_draw_news( &news );
        int bytes = arena_write_news( data, sizeof( data ), &news );
        REQUIRE( bytes > 0 && arena_read_news( data, bytes, &read ) );
        REQUIRE_MEM( &news, &read, sizeof( news ) );
    }
}

TEST( net_news_out_of_bounds_are_not_written )
{
    struct arena_news_t news;
    uint8_t data[ARENA_MESSAGE_BYTES];
    for ( int type = 0; type <= ARENA_NEWS_TYPES; type++ )
        for ( int how = 0; how < 6; how++ ) {
            int is_good = type < ARENA_NEWS_TYPES && how == 0;
            int has_other = type == ARENA_NEWS_KILLED || type == ARENA_NEWS_PICKUP;
            memset( &news, 0, sizeof( news ) );
            news.type = (enum arena_news_type_t) type;
            strcpy( news.text, "name" );
            switch ( how ) {
            case 1: news.player = ARENA_PLAYERS; break;
            case 2: news.player = -1; break;
            case 3:
                news.other = ARENA_PLAYERS;
                is_good = type < ARENA_NEWS_TYPES && !has_other;
                break;
            case 4:
                news.text[0] = 0;
                is_good = type < ARENA_NEWS_TYPES && type != ARENA_NEWS_JOINED && type != ARENA_NEWS_CHAT;
                break;
            case 5:
                memset( news.text, 'a', ARENA_NAME_BYTES + 1 );
                is_good = type < ARENA_NEWS_TYPES && type != ARENA_NEWS_JOINED;
            }
            CHECK_EQ( arena_write_news( data, sizeof( data ), &news ) > 0, is_good );
        }
}

/* ---- text ---- */

TEST( net_text_row_by_row )
{
    static const struct {
        const char * text;
        int good;
    } rows[] = { { "", 0 },
                 { "a", 1 },
                 { " ~", 1 },
                 { "\xc2\xa0", 1 },     /* the first beyond C1 */
                 { "\xdf\xbf", 1 },     /* U+07FF */
                 { "\xe0\xa0\x80", 1 }, /* U+0800 */
                 { "\xed\x9f\xbf", 1 }, /* U+D7FF */
                 { "\xee\x80\x80", 1 }, /* U+E000 */
                 { "\xef\xbf\xbf", 1 },
                 { "\xf0\x90\x80\x80", 1 }, /* U+10000 */
                 { "\xf4\x8f\xbf\xbf", 1 }, /* U+10FFFF */
                 { "\x1f", 0 },
                 { "\t", 0 },
                 { "a\n", 0 },
                 { "\x7f", 0 },
                 { "\xc2\x80", 0 }, /* C1 */
                 { "\xc2\x9b", 0 }, /* CSI, which terminals obey */
                 { "\xc2\x9f", 0 },
                 { "\x80", 0 }, /* no first byte */
                 { "\xbf", 0 },
                 { "\xc0\x80", 0 }, /* too long a form */
                 { "\xc1\xbf", 0 },
                 { "\xe0\x80\x80", 0 },
                 { "\xe0\x9f\xbf", 0 },
                 { "\xf0\x80\x80\x80", 0 },
                 { "\xf0\x8f\xbf\xbf", 0 },
                 { "\xed\xa0\x80", 0 }, /* surrogates */
                 { "\xed\xbf\xbf", 0 },
                 { "\xf4\x90\x80\x80", 0 }, /* beyond U+10FFFF */
                 { "\xf5\x80\x80\x80", 0 },
                 { "\xff", 0 },
                 { "\xfe", 0 },
                 { "a\xc3", 0 }, /* cut off */
                 { "a\xe2\x82", 0 },
                 { "a\xf0\x9f\x98", 0 },
                 { "\xe2(\xa1", 0 },
                 { "\xc3\xc3\xa4", 0 } };
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ )
        if ( arena_is_text( rows[i].text, 20 ) != rows[i].good )
            test_fail( __FILE__, __LINE__, "row %d should be %d", (int) i, rows[i].good );
    CHECK( arena_is_text( "12345", 5 ) );
    CHECK( !arena_is_text( "123456", 5 ) );
    CHECK( arena_is_text( "123\xc3\xa4", 5 ) );
    CHECK( !arena_is_text( "1234\xc3\xa4", 5 ) );
}

/* All of up to three bytes, and four of them at random, against the standard's table. */
TEST( net_text_as_the_table_has_it )
{
    char text[8];
    for ( int first = 1; first < 256; first++ )
        for ( int second = 0; second < 256; second++ )
            for ( int third = 0; third < 256; third += second < 0x80 ? 85 : 1 ) {
                memset( text, 0, sizeof( text ) );
                text[0] = (char) first;
                text[1] = (char) second;
                text[2] = (char) third;
                int length = (int) strlen( text ), expected = inputs_is_text( (const uint8_t *) text, length );
                if ( arena_is_text( text, 7 ) != expected ) {
                    test_fail( __FILE__, __LINE__, "%02x %02x %02x should be %d", first, second, third, expected );
                    return;
                }
            }
    for ( int i = 0; i < 300000; i++ ) {
        memset( text, 0, sizeof( text ) );
        text[0] = (char) ( 0xef + test_random_below( 7 ) );
        for ( int k = 1; k < 4; k++ )
            text[k] = (char) ( 0x80 + test_random_below( 64 ) );
        int expected = inputs_is_text( (const uint8_t *) text, 4 );
        REQUIRE_EQ( arena_is_text( text, 7 ), expected );
    }
}

/* A zero is a control character like any other, though C's strings end there. */
TEST( net_news_with_a_zero_in_the_text )
{
    for ( int type = ARENA_NEWS_JOINED; type <= ARENA_NEWS_CHAT; type += ARENA_NEWS_CHAT - ARENA_NEWS_JOINED )
        for ( int zero = 0; zero <= 4; zero++ ) {
            char text[5] = "abcd";
            struct arena_news_t news;
            struct bits_writer_t writer;
            uint8_t data[32];
            if ( zero < 4 )
                text[zero] = 0;
            bits_write_begin( &writer, data, sizeof( data ) );
            bits_write_range( &writer, type, 0, ARENA_NEWS_TYPES - 1 );
            bits_write_range( &writer, 5, 0, ARENA_PLAYERS - 1 );
            bits_write_range( &writer, 4, 1, type == ARENA_NEWS_JOINED ? ARENA_NAME_BYTES : ARENA_TEXT_BYTES );
            bits_write_bytes( &writer, text, 4 );
            CHECK_EQ( arena_read_news( data, bits_write_end( &writer ), &news ), zero == 4 );
        }
}

TEST( net_shots_make_the_round_trip )
{
    net_begin();
    for ( int round = 0; round < 20000; round++ ) {
        struct arena_shot_t shot, read;
        uint8_t data[8];
        inputs_draw_shot( &shot );
        int bytes = arena_write_shot( data, sizeof( data ), &shot );
        REQUIRE_EQ( bytes, ( 6 + 7 + 11 + 11 + 7 ) / 8 );
        REQUIRE( arena_read_shot( data, bytes, &read ) );
        REQUIRE_MEM( &shot, &read, sizeof( shot ) );
    }
    for ( int how = 0; how < 5; how++ ) {
        struct arena_shot_t shot = { 1, 2, 300, 400 };
        uint8_t data[8];
        switch ( how ) {
        case 0: shot.player = ARENA_PLAYERS; break;
        case 1: shot.other = ARENA_PLAYERS + 1; break;
        case 2: shot.x = ARENA_WIDTH; break;
        case 3: shot.y = ARENA_HEIGHT; break;
        default: shot.x = -8;
        }
        CHECK_EQ( arena_write_shot( data, sizeof( data ), &shot ), -1 );
    }
}

/* ---- what is no message ---- */

TEST( net_messages_cut_off_or_too_long_are_none )
{
    net_begin();
    for ( int kind = 0; kind < INPUTS_BITS; kind++ )
        for ( int round = 0; round < 100; round++ ) {
            uint8_t data[ARENA_MESSAGE_BYTES + 1];
            int was_read = 0, bytes = inputs_write( kind, data, ARENA_MESSAGE_BYTES, &net_kept );
            REQUIRE( bytes > 0 );
            data[bytes] = 0;
            for ( int cut = 0; cut <= bytes + 1; cut++ ) {
                uint8_t * block = bits_block( data, cut );
                const char * wrong = inputs_judge( kind, block, cut, &net_kept, &was_read );
                free( block );
                if ( wrong || was_read != ( cut == bytes ) ) {
                    test_fail( __FILE__, __LINE__, "%d of %d bytes: %s", cut, bytes, wrong ? wrong : "read" );
                    return;
                }
            }
        }
}

/* A million, a quarter of each kind: bits of valid ones are turned, or bytes are anything. */
TEST( net_readers_stay_within_their_bounds )
{
    int read[INPUTS_BITS] = { 0 };
    net_begin();
    for ( int kind = 0; kind < INPUTS_BITS; kind++ )
        for ( int base = 0; base < 2500; base++ ) {
            uint8_t valid[ARENA_MESSAGE_BYTES];
            int size = inputs_write( kind, valid, sizeof( valid ), &net_kept );
            REQUIRE( size > 0 );
            uint8_t * block = bits_block( valid, size );
            for ( int round = 0; round < 100; round++ ) {
                int was_read = 0;
                memcpy( block, valid, (size_t) size );
                if ( round % 4 == 0 )
                    inputs_fill( block, size );
                else
                    for ( int i = inputs_below( 4 ); i >= 0; i-- )
                        block[inputs_below( size )] ^= (uint8_t) ( 1 << inputs_below( 8 ) );
                const char * wrong = inputs_judge( kind, block, size, &net_kept, &was_read );
                if ( wrong ) {
                    test_fail( __FILE__, __LINE__, "%s", wrong );
                    free( block );
                    return;
                }
                read[kind] += was_read;
            }
            free( block );
        }
    for ( int kind = 0; kind < INPUTS_BITS; kind++ )
        CHECK_GT( read[kind], 1000 ); /* enough of them are messages still */
}
