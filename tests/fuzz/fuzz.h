/*  What the fuzz targets share: checks, repeatable random numbers and a clock, and a reader of the fuzzer's bytes.

    A target is a file beside this one that defines fuzz_NAME( data, bytes ) and ends with FUZZ_TARGET( NAME ). It includes
    netcode.h with its implementation, so that it sees the static functions. The same input does the same every time: nothing
    here reads a clock or a random source of the system. run.sh builds and runs the targets, replay.c runs their corpus. */

#ifndef FUZZ_H
#define FUZZ_H

#if defined( __linux__ ) && !defined( _GNU_SOURCE )
#define _GNU_SOURCE 1
#endif

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FUZZ_UNIX = 1700000000 };

static uint64_t fuzz_unix = FUZZ_UNIX; /* what the system's clock says, to the library */

static time_t fuzz_time( time_t * out )
{
    (void) out;
    return (time_t) fuzz_unix;
}

/* The library asks the system's clock in one place, with these words. */
#define time( out ) fuzz_time( out )
#define NETCODE_IMPLEMENTATION
#include "../../netcode.h"
#undef time

#define FUZZ_NOWHERE 0xFFFFFFFFu
#define FUZZ_VERSION "NETCODE 1.02"

/* For checks that no input should be kept for: the fuzzer does not count their edges, which also makes them faster. */
#if defined( __clang__ )
#define FUZZ_UNCOUNTED __attribute__( ( no_sanitize( "coverage" ) ) )
#else
#define FUZZ_UNCOUNTED
#endif

/* ---- findings ---- */

static const char * fuzz_input_name = ""; /* the replayer names the file that it runs */

static void fuzz_fail( const char * text, const char * file, int line )
{
    fflush( stdout );
    fprintf( stderr, "FINDING %s%s%s:%d: %s is false\n", fuzz_input_name, *fuzz_input_name ? ": " : "", file, line,
             text );
    abort();
}

#define FUZZ_CHECK( condition )                          \
    do {                                                 \
        if ( !( condition ) )                            \
            fuzz_fail( #condition, __FILE__, __LINE__ ); \
    } while ( 0 )

/* A failed assert of the library is a finding, unless the call was a mistake on purpose. */
static int fuzz_expecting;

static void fuzz_assert_handler( const char * condition, const char * function, const char * file, int line )
{
    (void) function;
    if ( !fuzz_expecting )
        fuzz_fail( condition, file, line );
}

/* A call that is the caller's mistake: an assert and a refusal, and no harm. */
#define FUZZ_BAD( call )    \
    do {                    \
        fuzz_expecting = 1; \
        call;               \
        fuzz_expecting = 0; \
    } while ( 0 )

static int fuzz_printf( const char * format, ... )
{
    (void) format;
    return 0;
}

/* ---- what an input did, as one number: two runs of one input must agree ---- */

static uint64_t fuzz_trace;

FUZZ_UNCOUNTED static uint64_t fuzz_mix( uint64_t x )
{
    x += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

FUZZ_UNCOUNTED static inline void fuzz_note( uint64_t value )
{
    fuzz_trace = fuzz_mix( fuzz_trace ^ value );
}

/* ---- random numbers ---- */

static uint64_t fuzz_random_state;

static const char * fuzz_random_name( void )
{
    return "fuzz";
}

static uint32_t fuzz_random_word( void )
{
    return (uint32_t) ( fuzz_mix( fuzz_random_state++ ) >> 32 );
}

FUZZ_UNCOUNTED static void fuzz_random_bytes( void * const buffer, const size_t bytes )
{
    uint8_t * out = (uint8_t *) buffer;
    uint32_t word = 0;
    for ( size_t i = 0; i < bytes; i++, word >>= 8 ) {
        if ( i % 4 == 0 )
            word = fuzz_random_word();
        out[i] = (uint8_t) word;
    }
}

static struct randombytes_implementation fuzz_random_source =
    { fuzz_random_name, fuzz_random_word, NULL, NULL, fuzz_random_bytes, NULL };

/* Bytes that a seed repeats, for bodies that no input need spell out. */
FUZZ_UNCOUNTED static inline void fuzz_fill( uint8_t * out, size_t bytes, uint64_t seed )
{
    uint64_t word = 0;
    for ( size_t i = 0; i < bytes; i++, word >>= 8 ) {
        if ( i % 8 == 0 )
            word = fuzz_mix( seed + i );
        out[i] = (uint8_t) word;
    }
}

/* ---- the input, read byte by byte; behind its end there are zeros ---- */

struct fuzz_input_t {
    const uint8_t * data;
    size_t at;
    size_t bytes;
};

static int fuzz_is_over( const struct fuzz_input_t * input )
{
    return input->at >= input->bytes;
}

static uint8_t fuzz_u8( struct fuzz_input_t * input )
{
    return fuzz_is_over( input ) ? 0 : input->data[input->at++];
}

static inline uint64_t fuzz_number( struct fuzz_input_t * input, int bytes )
{
    uint64_t value = 0;
    while ( bytes-- > 0 )
        value = value << 8 | fuzz_u8( input );
    return value;
}

/* A number of any length: small ones, ones near a power of two, and all others. */
static inline uint64_t fuzz_u64( struct fuzz_input_t * input )
{
    uint8_t how = fuzz_u8( input );
    if ( how < 64 )
        return how;
    if ( how < 192 )
        return ( (uint64_t) 1 << ( how & 63 ) ) + fuzz_u8( input ) - 128;
    return fuzz_number( input, 1 + ( how & 7 ) );
}

static inline void fuzz_bytes( struct fuzz_input_t * input, uint8_t * out, size_t bytes )
{
    for ( size_t i = 0; i < bytes; i++ )
        out[i] = fuzz_u8( input );
}

/* ---- around each input ---- */

static void fuzz_begin( void )
{
    static int ready;
    if ( !ready ) {
        randombytes_set_implementation( &fuzz_random_source );
        netcode_set_printf_function( fuzz_printf );
        netcode_set_assert_function( fuzz_assert_handler );
        if ( netcode_init() != NETCODE_OK )
            abort();
        ready = 1;
    }
    fuzz_unix = FUZZ_UNIX;
    fuzz_random_state = 1;
    fuzz_trace = 0;
    fuzz_expecting = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
}

#if defined( FUZZ_REPLAY )
#define FUZZ_TARGET( name )
#else
#define FUZZ_TARGET( name )                                           \
    int LLVMFuzzerTestOneInput( const uint8_t * data, size_t bytes ); \
    int LLVMFuzzerTestOneInput( const uint8_t * data, size_t bytes )  \
    {                                                                 \
        struct fuzz_input_t input = { data, 0, bytes };               \
        fuzz_begin();                                                 \
        fuzz_##name( &input );                                        \
        return 0;                                                     \
    }
#endif

#endif
