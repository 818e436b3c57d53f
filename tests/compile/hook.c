/* A program's own assert and export attribute in place of the library's. */
void compile_assert( int good );

#define NETCODE_ASSERT( condition ) compile_assert( !!( condition ) )
#if defined( __cplusplus )
#define NETCODE_API extern "C" __attribute__( ( visibility( "default" ) ) )
#else
#define NETCODE_API __attribute__( ( visibility( "default" ) ) ) extern
#endif
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

void compile_assert( int good )
{
    (void) good;
}
