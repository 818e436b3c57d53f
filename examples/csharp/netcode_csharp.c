/*  The native library behind Netcode.cs: netcode.h with messages as one shared library, and two functions that only C can
    write. build.sh compiles it; on other systems see README.md.

    Netcode.cs mirrors the structs of netcode.h. So that a library of another version is refused when it is loaded, and
    never writes beyond a struct of the other side, it asks this file for the size of each. */

#if defined( _WIN32 )
#define NETCODE_API __declspec( dllexport )
#elif defined( __GNUC__ )
#define NETCODE_API __attribute__( ( visibility( "default" ) ) )
#endif
#define NETCODE_MESSAGES
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <stdarg.h>
#include <stdio.h>

/* Of each struct that Netcode.cs mirrors, in its order (Native.layouts there). 0 behind the last. */
NETCODE_API int netcode_csharp_size( int index );
NETCODE_API int netcode_csharp_size( int index )
{
    static const int sizes[] = {
        (int) sizeof( struct netcode_address_t ),
        (int) sizeof( struct netcode_datagram_t ),
        (int) sizeof( struct netcode_socket_info_t ),
        (int) sizeof( struct netcode_socket_t ),
        (int) sizeof( struct netcode_network_simulator_t ),
        (int) sizeof( struct netcode_client_config_t ),
        (int) sizeof( struct netcode_server_config_t ),
        (int) sizeof( struct netcode_event_t ),
        (int) sizeof( struct netcode_client_stats_t ),
        (int) sizeof( struct netcode_server_stats_t ),
        (int) sizeof( struct netcode_server_client_stats_t ),
        (int) sizeof( struct netcode_client_report_server_t ),
        (int) sizeof( struct netcode_client_report_t ),
        (int) sizeof( struct netcode_connect_token_info_t ),
        (int) sizeof( struct netcode_message_t ),
        (int) sizeof( struct netcode_messages_stream_t ),
        (int) sizeof( struct netcode_messages_config_t ),
        (int) sizeof( struct netcode_messages_event_t ),
        (int) sizeof( struct netcode_messages_stats_t ),
        (int) sizeof( struct netcode_messages_channel_stats_t ),
    };
    return index >= 0 && index < (int) ( sizeof( sizes ) / sizeof( sizes[0] ) ) ? sizes[index] : 0;
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
