/*  A program beside the library in a shared object of its own: the one variable of the API, netcode_assert_function, is the same on both sides,
    set and read directly. */
#include "netcode.h"

static int asserts;

static void count( const char * condition, const char * function, const char * file, int line )
{
    asserts += condition && function && file && line > 0;
}

int main( void )
{
    netcode_assert_function = count;
    netcode_client_update( NULL, 0.0 ); /* a mistake of the caller, noticed within the library */
    if ( asserts != 1 )
        return 1;
    netcode_set_assert_function( NULL );
    if ( netcode_assert_function == count || !netcode_assert_function )
        return 2;
    netcode_set_assert_function( count );
    return netcode_assert_function == count ? 0 : 3;
}
