/*  Says, on one line, what a program of a platform finds there when it runs: compiler, C library, libsodium, byte order and
    width, system. tests/platforms/run.sh makes a row of its table of it, so that nothing in that table is a mere claim.

        cc about.c -lsodium -o about */

#if !defined( _WIN32 )
#define _GNU_SOURCE 1
#include <sys/utsname.h>
#else
#include <windows.h>
#endif

#include <errno.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>

#if defined( __GLIBC__ )
#include <gnu/libc-version.h>
#endif

#if defined( __clang__ )
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void print_library( void )
{
#if defined( __GLIBC__ )
    printf( "glibc %s", gnu_get_libc_version() );
#elif defined( _WIN32 )
    printf( "msvcrt, mingw-w64 %s", __MINGW64_VERSION_STR );
#else
    printf( "musl" ); /* it has no name for itself; no other one is tried here */
#endif
}

static void print_system( void )
{
#if defined( _WIN32 )
    FARPROC version = GetProcAddress( GetModuleHandleA( "ntdll.dll" ), "wine_get_version" );
    if ( version )
        printf( "wine %s", ( ( const char * (*) (void) )(void ( * )( void )) version )() );
    else
        printf( "Windows" );
#else
    struct utsname name;
    if ( uname( &name ) == 0 )
        printf( "%s %s %s", name.sysname, name.release, name.machine );
#endif
}

int main( void )
{
    const uint16_t one = 1;
    if ( sodium_init() < 0 )
        return 1;
    printf( "about|" COMPILER "|" );
    print_library();
    printf( "|%s|%s, %d bits|", sodium_version_string(), *(const uint8_t *) &one ? "little" : "big",
            (int) ( 8 * sizeof( void * ) ) );
    print_system();
    printf( "\n" );
    return 0;
}
