/* Must not compile: a log line's format and its arguments are compared. */
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

void compile_format( void );

void compile_format( void )
{
    nc_log_write( NULL, NETCODE_LOG_LEVEL_ERROR, "%s", 7 );
}
