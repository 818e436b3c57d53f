/*  Platform: the clock for every time that a caller may give, what reaches the log, sleeping, counting init, names. */

#if !defined( _WIN32 )
#include <sys/wait.h>
#include <unistd.h>
#endif

/* ---- clock. Decision 12 ---- */

/* One step of a clock: what the caller says, and how far the library's own clock is then from its start. */
struct clock_row_t {
    const char * why;
    double start;
    double times[4];
    double now; /* after all of them */
};

static const struct clock_row_t clock_rows[] = {
    { "forward steps add up", 10.0, { 10.5, 11.0, 12.0, 13.0 }, 3.0 },
    { "standing still adds nothing", 10.0, { 10.0, 10.0, 10.0, 10.0 }, 0.0 },
    { "a step back adds nothing", 10.0, { 9.0, 9.0, 9.0, 9.0 }, 0.0 },
    { "after a step back, time goes on from there", 10.0, { 11.0, 2.0, 3.0, 4.0 }, 3.0 },
    { "an hour back", 10000.0, { 10001.0, 6400.0, 6400.5, 6401.0 }, 2.0 },
    { "NaN adds nothing", 10.0, { 11.0, (double) NAN, 12.0, 12.0 }, 2.0 },
    { "NaN alone adds nothing", 10.0, { (double) NAN, (double) NAN, (double) NAN, (double) NAN }, 0.0 },
    { "infinity adds nothing", 10.0, { 11.0, (double) INFINITY, 12.0, 12.0 }, 2.0 },
    { "minus infinity adds nothing", 10.0, { 11.0, -(double) INFINITY, 12.0, 12.0 }, 2.0 },
    { "a jump of 10^9 s counts in full", 0.0, { 1e9, 1e9, 1e9 + 1.0, 1e9 + 1.0 }, 1e9 + 1.0 },
    { "a day forward and back", 100.0, { 86500.0, 100.0, 101.0, 101.0 }, 86401.0 },
    { "negative times run as well", -50.0, { -49.0, -48.0, 0.0, 1.0 }, 51.0 },
    { "minus zero is zero", 0.0, { -0.0, 0.0, -0.0, 1.0 }, 1.0 },
    { "started with NaN: as if at 0", (double) NAN, { 1.0, 2.0, 2.0, 2.0 }, 2.0 },
    { "started with infinity: as if at 0", (double) INFINITY, { 1.0, 2.0, 2.0, 2.0 }, 2.0 },
    { "started with minus infinity: as if at 0", -(double) INFINITY, { 1.0, 2.0, 2.0, 2.0 }, 2.0 },
};

TEST( platform_clock_adds_forward_steps_only )
{
    size_t i, k;
    for ( i = 0; i < sizeof( clock_rows ) / sizeof( clock_rows[0] ); i++ ) {
        const struct clock_row_t * row = &clock_rows[i];
        nc_clock_t clock;
        nc_clock_init( &clock, row->start );
        CHECK( clock.now >= 0.0 && clock.now <= 0.0 );
        for ( k = 0; k < 4; k++ )
            nc_clock_advance( &clock, row->times[k] );
        if ( !CHECK_NEAR( clock.now, row->now, 1e-6 ) )
            printf( "    in the row: %s\n", row->why );
    }
}

/* Whatever comes, the clock stays finite, never goes back, and a small step afterwards still counts. */
TEST( platform_clock_survives_every_double )
{
    static const double odd[] = { 1e300,
                                  -1e300,
                                  1.7976931348623157e308,
                                  -1.7976931348623157e308,
                                  5e-324,
                                  1e18,
                                  -1e18,
                                  4294967296.0,
                                  1e299,
                                  -1e299,
                                  (double) NAN,
                                  (double) INFINITY,
                                  -(double) INFINITY };
    const int count = (int) ( sizeof( odd ) / sizeof( odd[0] ) );
    nc_clock_t clock;
    double before;
    int i;
    nc_clock_init( &clock, 0.0 );
    for ( i = 0; i < 20000; i++ ) {
        uint64_t bits = test_random();
        double time = 0.0;
        if ( test_random_below( 3 ) == 0 )
            time = odd[test_random_below( count )];
        else
            memcpy( &time, &bits, sizeof( time ) );
        before = clock.now;
        nc_clock_advance( &clock, time );
        if ( !CHECK( isfinite( clock.now ) && clock.now >= before ) )
            return;
    }
    CHECK( isfinite( clock.last ) );
    nc_clock_init( &clock, 0.0 );
    nc_clock_advance( &clock, 1e18 );
    nc_clock_advance( &clock, 0.0 );
    before = clock.now;
    nc_clock_advance( &clock, 0.25 );
    CHECK_NEAR( clock.now - before, 0.25, 1e-6 );
}

TEST( platform_time_and_sleep )
{
    static const double nothing[] = { 0.0, -0.0, -1.0, -1e300, (double) NAN, (double) INFINITY, -(double) INFINITY };
    double start = netcode_time(), then;
    size_t i;
    test_waited = -1.0;
    for ( i = 0; i < sizeof( nothing ) / sizeof( nothing[0] ); i++ )
        netcode_sleep( nothing[i] );
    then = netcode_time();
    CHECK( then >= start );
    CHECK( test_waited < 0.0 );
    netcode_sleep( 0.02 );
    CHECK( netcode_time() - then >= 0.0195 );
}

TEST( platform_unix_time_is_the_systems )
{
    uint64_t before = (uint64_t) time( NULL ), ours = nc_unix_default( NULL ), after = (uint64_t) time( NULL );
    CHECK( ours >= before && ours <= after );
}

/* ---- log. attacks/rows.py, row 50 ---- */

/* Every byte alone between two letters: printable ASCII stands as it is, all else as \xNN. */
TEST( platform_log_escapes_every_byte )
{
    int byte;
    for ( byte = 1; byte < 256; byte++ ) {
        char text[4], out[64], expected[64];
        text[0] = 'a';
        text[1] = (char) byte;
        text[2] = 'z';
        text[3] = 0;
        if ( byte >= 0x20 && byte <= 0x7e )
            snprintf( expected, sizeof( expected ), "a%cz", byte );
        else
            snprintf( expected, sizeof( expected ), "a\\x%02xz", (unsigned) byte );
        nc_log_escape( out, sizeof( out ), text );
        CHECK_STR( out, expected );
    }
}

/* However small the room, the text ends inside it, and no escape is cut in two. */
TEST( platform_log_escape_stays_in_its_room )
{
    char text[100], out[200];
    size_t room, i, used;
    memset( text, '\n', sizeof( text ) );
    text[99] = 0;
    for ( room = 1; room < sizeof( out ); room++ ) {
        memset( out, '#', sizeof( out ) );
        nc_log_escape( out, room, text );
        used = strlen( out );
        CHECK( used < room );
        CHECK_EQ( used % 4, 0 );
        for ( i = 0; i < used; i++ )
            CHECK_EQ( out[i], "\\x0a"[i % 4] );
        for ( i = room; i < sizeof( out ); i++ )
            CHECK_EQ( out[i], '#' );
    }
    nc_log_escape( out, sizeof( out ), "" );
    CHECK_STR( out, "" );
}

static struct {
    char text[4096];
    int level;
    int calls;
    void * context;
} platform_log;

static void platform_log_callback( void * context, int level, const char * text )
{
    platform_log.context = context;
    platform_log.level = level;
    platform_log.calls++;
    snprintf( platform_log.text, sizeof( platform_log.text ), "%s", text );
}

static int platform_printf( const char * format, ... )
{
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( platform_log.text, sizeof( platform_log.text ), format, arguments );
    va_end( arguments );
    return ++platform_log.calls;
}

TEST( platform_log_goes_to_the_callback_or_the_hook )
{
    nc_log_t log;
    int marker;
    memset( &platform_log, 0, sizeof( platform_log ) );
    log.callback = platform_log_callback;
    log.context = &marker;
    netcode_set_printf_function( platform_printf );
    nc_log_write( &log, NETCODE_LOG_LEVEL_INFO, "%s has %d\n", "one", 7 );
    CHECK_STR( platform_log.text, "one has 7\\x0a" );
    CHECK_EQ( platform_log.level, NETCODE_LOG_LEVEL_INFO );
    CHECK( platform_log.context == &marker );
    CHECK_EQ( platform_log.calls, 1 );
    log.callback = NULL;
    nc_log_write( &log, NETCODE_LOG_LEVEL_INFO, "two" );
    CHECK_STR( platform_log.text, "two\n" );
    nc_log_write( NULL, NETCODE_LOG_LEVEL_DEBUG, "%%n %s", "%n%s" );
    CHECK_STR( platform_log.text, "%n %n%s\n" );
    nc_log_write( NULL, NETCODE_LOG_LEVEL_ERROR, "three" );
    CHECK( strstr( platform_log.text, "three" ) != NULL );
    CHECK_EQ( platform_log.calls, 4 );
}

/* A text without end is cut, wherever its escapes lie, and nothing is written behind the buffers. */
TEST( platform_log_cuts_long_texts )
{
    char text[3000];
    nc_log_t log;
    int shift;
    log.callback = platform_log_callback;
    log.context = NULL;
    for ( shift = 0; shift < 8; shift++ ) {
        memset( text, 'x', sizeof( text ) );
        memset( text + shift, 7, sizeof( text ) - 1 - (size_t) shift );
        text[sizeof( text ) - 1] = 0;
        nc_log_write( &log, NETCODE_LOG_LEVEL_ERROR, "%s", text );
        CHECK( strlen( platform_log.text ) >= 500 );
        CHECK( strlen( platform_log.text ) < 2048 );
        CHECK_EQ( ( strlen( platform_log.text ) - (size_t) shift ) % 4, 0 );
    }
}

/* What peers write comes to the log escaped: here through a call of the API. */
TEST( platform_log_levels )
{
    const char * bad = "\x1b[31m not an address \x07";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], key[NETCODE_KEY_BYTES] = { 1 };
    netcode_set_printf_function( platform_printf );
    memset( &platform_log, 0, sizeof( platform_log ) );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    CHECK_EQ( netcode_generate_connect_token( 1, &bad, &bad, 10, 10, 1, 1, key, NULL, token ), NETCODE_ERROR );
    CHECK_EQ( platform_log.calls, 1 );
    CHECK( strstr( platform_log.text, "\\x1b[31m not an address \\x07" ) != NULL );
    CHECK( strchr( platform_log.text, 0x1b ) == NULL );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    CHECK_EQ( netcode_generate_connect_token( 1, &bad, &bad, 10, 10, 1, 1, key, NULL, token ), NETCODE_ERROR );
    CHECK_EQ( platform_log.calls, 1 );
}

/* What most often can not be read as an address is a host name: each text says that names are resolved elsewhere. */
TEST( platform_log_says_that_host_names_are_resolved_first )
{
    const char * name = "game.example.com:40000";
    const char * hint = "resolve host names first";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], key[NETCODE_KEY_BYTES] = { 1 };
    netcode_set_printf_function( platform_printf );
    memset( &platform_log, 0, sizeof( platform_log ) );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    CHECK_EQ( netcode_generate_connect_token( 1, &name, &name, 10, 10, 1, 1, key, NULL, token ), NETCODE_ERROR );
    CHECK( strstr( platform_log.text, name ) != NULL && strstr( platform_log.text, hint ) != NULL );
    struct netcode_client_config_t client;
    netcode_default_client_config( &client );
    CHECK( netcode_client_create( name, &client, 0.0 ) == NULL );
    CHECK( strstr( netcode_client_create_error_text( netcode_client_create_error() ), hint ) != NULL );
    struct netcode_server_config_t server;
    netcode_default_server_config( &server );
    CHECK( netcode_server_create( name, &server, 0.0 ) == NULL );
    CHECK( strstr( netcode_server_create_error_text( netcode_server_create_error() ), hint ) != NULL );
    CHECK_EQ( platform_log.calls, 3 );
    CHECK( strstr( platform_log.text, hint ) != NULL );
}

/* ---- init, names, asserts, memory ---- */

TEST( platform_init_is_counted )
{
    int before = nc_init_count;
    CHECK_EQ( netcode_init(), NETCODE_OK );
    CHECK_EQ( netcode_init(), NETCODE_OK );
    CHECK_EQ( nc_init_count, before + 2 );
    netcode_term();
    netcode_term();
    CHECK_EQ( nc_init_count, before );
    while ( nc_init_count )
        netcode_term();
    BAD( netcode_term() );
    CHECK_EQ( nc_init_count, 0 );
    test_sodium_is_broken = 1;
    CHECK_EQ( netcode_init(), NETCODE_ERROR );
    CHECK_EQ( nc_init_count, 0 );
    test_sodium_is_broken = 0;
    while ( nc_init_count < before )
        if ( !CHECK_EQ( netcode_init(), NETCODE_OK ) )
            return;
}

TEST( platform_version )
{
    char expected[64];
    snprintf( expected, sizeof( expected ), "%d.%d.%d", NETCODE_VERSION_MAJOR, NETCODE_VERSION_MINOR,
              NETCODE_VERSION_PATCH );
    CHECK_STR( netcode_version(), expected );
    CHECK_STR( netcode_version(), NETCODE_VERSION_FULL );
}

TEST( platform_state_names )
{
    static const struct {
        int state;
        const char * name;
    } rows[] = {
        { -7, "UNKNOWN" },
        { -6, "CONNECT_TOKEN_EXPIRED" },
        { -5, "INVALID_CONNECT_TOKEN" },
        { -4, "CONNECTION_TIMED_OUT" },
        { -3, "CONNECTION_RESPONSE_TIMED_OUT" },
        { -2, "CONNECTION_REQUEST_TIMED_OUT" },
        { -1, "CONNECTION_DENIED" },
        { 0, "DISCONNECTED" },
        { 1, "SENDING_CONNECTION_REQUEST" },
        { 2, "SENDING_CONNECTION_RESPONSE" },
        { 3, "CONNECTED" },
        { 4, "UNKNOWN" },
        { 2147483647, "UNKNOWN" },
        { -2147483647 - 1, "UNKNOWN" },
    };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ )
        CHECK_STR( netcode_client_state_name( rows[i].state ), rows[i].name );
}

TEST( platform_drop_reasons_have_names_and_sentences )
{
    int i, k;
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ ) {
        const char * name = netcode_drop_reason_name( i );
        const char * text = netcode_drop_reason_text( i );
        CHECK( strlen( name ) >= 4 && strspn( name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_" ) == strlen( name ) );
        CHECK( strlen( text ) > 10 && strchr( text, ' ' ) );
        for ( k = 0; k < i; k++ ) {
            CHECK( strcmp( name, netcode_drop_reason_name( k ) ) != 0 );
            CHECK( strcmp( text, netcode_drop_reason_text( k ) ) != 0 );
        }
    }
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_TOKEN_EXPIRED ), "TOKEN_EXPIRED" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_REPLAYED ), "REPLAYED" );
    CHECK_STR( netcode_drop_reason_name( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( NETCODE_DROP_REASONS ), "UNKNOWN" );
}

#if !defined( _WIN32 )

/* Without a function of the caller's, a failed assert says so and aborts. */
TEST( platform_default_assert_aborts )
{
    int status = 0;
    pid_t child;
    fflush( NULL );
    child = fork();
    REQUIRE( child >= 0 );
    if ( child == 0 ) {
        if ( !freopen( "/dev/null", "w", stderr ) )
            _exit( 3 );
        netcode_set_assert_function( NULL );
        netcode_assert_function( "1 == 2", "here", "file.c", 7 );
        _exit( 4 );
    }
    REQUIRE( waitpid( child, &status, 0 ) == child );
    CHECK( WIFSIGNALED( status ) && WTERMSIG( status ) == SIGABRT );
}

#endif

TEST( platform_allocator_is_completed_by_malloc )
{
    struct allocator_t counter;
    nc_allocator_t allocator = nc_allocator_make( NULL, NULL, NULL );
    void * block = allocator.allocate( allocator.context, 100 );
    REQUIRE( block != NULL );
    memset( block, 1, 100 );
    allocator.release( allocator.context, block );
    memset( &counter, 0, sizeof( counter ) );
    allocator = nc_allocator_make( &counter, allocator_allocate, allocator_free );
    block = allocator.allocate( allocator.context, 10 );
    CHECK_EQ( counter.live, 1 );
    allocator.release( allocator.context, block );
    CHECK_EQ( counter.live, 0 );
}

/* However many of the longest steps there are, the clock stays within what the wheel can count. */
TEST( platform_clock_ends )
{
    nc_clock_t clock;
    int i;
    nc_clock_init( &clock, 0.0 );
    clock.now = 9007199254740000.0;
    for ( i = 0; i < 4; i++ ) {
        nc_clock_advance( &clock, 4294967296.0 );
        nc_clock_advance( &clock, 0.0 );
    }
    CHECK_GT( clock.now, 9007199254740992.0 - 1.0 );
    CHECK_LT( clock.now, 9007199254740992.0 + 8589934592.0 );
}

#if !defined( _WIN32 )

TEST( mutants_log_lines_are_cut_at_the_same_place )
{
    char out[16];
    memset( out, 'x', sizeof( out ) );
    nc_log_escape( out, 6, "abc" );
    CHECK_STR( out, "a" ); /* room is kept for one escaped letter and the NUL */
    nc_log_escape( out, 7, "abc" );
    CHECK_STR( out, "ab" );
    nc_log_escape( out, 6, "\n\n" );
    CHECK_STR( out, "\\x0a" );
}

TEST( mutants_finite_ends_at_1e300 )
{
    CHECK_EQ( nc_number_is_finite( 1e300 ), 0 );
    CHECK_EQ( nc_number_is_finite( -1e300 ), 0 );
    CHECK_EQ( nc_number_is_finite( 9.99e299 ), 1 );
    CHECK_EQ( nc_number_is_finite( -9.99e299 ), 1 );
}

TEST( mutants_time_is_the_monotonic_clock )
{
#if defined( CLOCK_MONOTONIC )
    struct timespec now;
    double seconds;
    REQUIRE_EQ( clock_gettime( CLOCK_MONOTONIC, &now ), 0 );
    seconds = (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
    CHECK_NEAR( netcode_time(), seconds, 600.0 );
#else
    SKIP( "this system has no monotonic clock" );
#endif
}

TEST( mutants_sleep_of_more_than_a_second )
{
    double start = netcode_time();
    netcode_sleep( 1.05 );
    CHECK_GE( ( netcode_time() - start ) * 100.0, 104 );
    CHECK_NEAR( test_waited, 1.05, 2e-6 );
}

TEST( mutants_names_of_what_does_not_exist )
{
    CHECK_STR( netcode_drop_reason_name( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_NONE ), "NONE" );
}

TEST( mutants_libsodium_was_initialised )
{
    CHECK_EQ( sodium_init(), 1 );
}

#endif
