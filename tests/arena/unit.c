/*  The arena's tests, one program unit: its bits, its messages, its rules, and its server with clients in virtual time.
    They need libsodium only:

    cc -std=c99 -O1 -g -I. -Iexamples tests/arena/unit.c -lsodium -lm -o arena-unit
    arena-unit [FILTER] [--seed N] [--list]      FILTER is a part of a test's or a file's name: bits, net, sim, ...
    arena-unit --corpus DIRECTORY                writes what fuzz.c begins with, and runs no test
    ARENA_SHOW=1 arena-unit together             prints what is measured of the worst player */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../../netcode.h"

#include "../test.h"

/* The server sends which players join, and what they chat. The tests listen. */
static char said[65536];
static int said_bytes;

static int arena_say( const char * format, ... )
{
    va_list arguments;
    int room = (int) sizeof( said ) - said_bytes;
    va_start( arguments, format );
    int bytes = vsnprintf( said + said_bytes, (size_t) room, format, arguments );
    va_end( arguments );
    said_bytes += bytes < room ? bytes : room - 1;
    return bytes;
}

#define ARENA_NO_MAIN
#define printf arena_say
#include "../../examples/arena/server.c"
#undef printf

#include "../../examples/arena/arena_bot.h"

#include "inputs.h"
#include "play.h"

/* One line for each file. */
#include "bits.c"
#include "net.c"
#include "sim.c"
#include "together.c"
#include "hostile.c"
#include "clocks.c"

/* ---- libsodium's random numbers, from the seed: runs in virtual time repeat ---- */

static uint64_t unit_random_state;

static const char * unit_random_name( void )
{
    return "arena-unit";
}

static uint32_t unit_random_word( void )
{
    unit_random_state += 0x9e3779b97f4a7c15u;
    return (uint32_t) ( test_mix( unit_random_state ) >> 32 );
}

static void unit_random_bytes( void * const buffer, const size_t bytes )
{
    for ( size_t i = 0; i < bytes; i++ )
        ( (uint8_t *) buffer )[i] = (uint8_t) unit_random_word();
}

static struct randombytes_implementation unit_random_source =
    { unit_random_name, unit_random_word, NULL, NULL, unit_random_bytes, NULL };

/* ---- the runner ---- */

static int unit_passed, unit_failed;

static void test_begin( uint64_t seed )
{
    unit_random_state = seed;
    said_bytes = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
}

static void test_end( void )
{
    play_close();
    unit_passed += test_state.failures == 0;
    unit_failed += test_state.failures != 0;
}

int main( int count, char ** arguments )
{
    if ( count == 3 && strcmp( arguments[1], "--corpus" ) == 0 )
        return inputs_write_corpus( arguments[2] );
    randombytes_set_implementation( &unit_random_source );
    netcode_set_assert_function( test_assert_handler );
    netcode_set_printf_function( test_printf );
    if ( netcode_init() != NETCODE_OK )
        return 1;
    int result = test_main( count, arguments );
    netcode_term();
    printf( "arena-unit: %d passed, %d failed\n", unit_passed, unit_failed );
    return result;
}
