/*  The native library behind Netcode.cs: netcode.h with messages as one shared library, and two functions that only C can
    write. build.sh compiles it; on other systems see README.md.

    Netcode.cs mirrors the structs of netcode.h. So that a library of another version is refused when it is loaded, and
    no side ever reads or writes where the other has something else, this file knows where each field lies. */

#if defined( _WIN32 )
#define NETCODE_API __declspec( dllexport )
#elif defined( __GNUC__ )
#define NETCODE_API __attribute__( ( visibility( "default" ) ) )
#endif
#define NETCODE_MESSAGES
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include "netcode_csharp_layout.h"

#include <stdarg.h>
#include <stdio.h>

/*  A number for where all fields of all structs lie, and for their sizes. Netcode.cs has the number of those that it knows. */
NETCODE_API uint64_t netcode_csharp_layout( void );
NETCODE_API uint64_t netcode_csharp_layout( void )
{
    uint64_t hash = (uint64_t) 0xcbf29ce484222325; /* FNV-1a, of whole numbers */
    for ( size_t i = 0; i < sizeof( netcode_csharp_offsets ) / sizeof( netcode_csharp_offsets[0] ); i++ )
        hash = ( hash ^ netcode_csharp_offsets[i] ) * (uint64_t) 0x100000001b3;
    return hash;
}

static void ( *log_function )( const char * text );

/* C# can not have a function of any number of arguments, as netcode_set_printf_function wants one. */
static int log_printf( const char * format, ... )
{
    char text[1024];
    va_list arguments;
    va_start( arguments, format );
    int bytes = vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    if ( bytes >= 0 && log_function )
        log_function( text );
    return bytes;
}

/* The function gets each log line of objects without a log_callback; NULL: they are printed again. Process-wide. */
NETCODE_API void netcode_csharp_set_log( void ( *function )( const char * text ) );
NETCODE_API void netcode_csharp_set_log( void ( *function )( const char * text ) )
{
    if ( function ) {
        log_function = function;
        netcode_set_printf_function( log_printf );
    } else {
        netcode_set_printf_function( NULL );
        log_function = NULL;
    }
}
