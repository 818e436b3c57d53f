/*  libsodium's random source in WebAssembly: crypto.getRandomValues, which browsers and Node.js have. libsodium's own
    code for Emscripten asks JavaScript once for each byte, ignores randombytes_set_implementation, and does not start in
    an ES module under Node.js, so build.sh compiles its randombytes.c as for any other system, with this as the default.
    It is part of the libsodium.a that build.sh makes. */

#include "random.h"

#include <emscripten.h>

/* 65,536 is the most that one call of getRandomValues fills. Without a source there is no safe way to go on: it throws. */
/* clang-format off */
EM_JS( void, netcode_web_js_random, ( void * data, int bytes ), {
    for ( let at = 0; at < bytes; at += 65536 )
        crypto.getRandomValues( HEAPU8.subarray( data + at, data + Math.min( at + 65536, bytes ) ) );
} );
/* clang-format on */

static const char * random_name( void )
{
    return "getRandomValues";
}

static uint32_t random_word( void )
{
    uint32_t word;
    netcode_web_js_random( &word, (int) sizeof( word ) );
    return word;
}

static void random_buffer( void * const data, const size_t bytes )
{
    netcode_web_js_random( data, (int) bytes );
}

struct randombytes_implementation netcode_web_random = { random_name, random_word, NULL, NULL, random_buffer, NULL };
