/*  A stack that can be searched: what a function leaves on it is there when the function has returned. STACK_SEARCHED is 0
    where that can not be had. */

#ifndef TEST_STACK_H
#define TEST_STACK_H

#if !defined( _WIN32 )
#include <signal.h>
#endif

#if defined( __SANITIZE_ADDRESS__ )
#define STACK_SEARCHED 0
#elif defined( __has_feature )
#if __has_feature( address_sanitizer ) || __has_feature( memory_sanitizer )
#define STACK_SEARCHED 0
#endif
#endif
/*  Elsewhere than on x86-64 what is found there need not be the library's: Debian's libsodium for i386 leaves its last key, and for s390x it
    is not known yet which function leaves a copy. */
#if !defined( STACK_SEARCHED ) && defined( SA_ONSTACK ) && defined( __x86_64__ )
#define STACK_SEARCHED 1
#endif
#if !defined( STACK_SEARCHED )
#define STACK_SEARCHED 0
#endif

#if STACK_SEARCHED

static struct {
    uint8_t * memory;
    size_t bytes;
    void ( *run )( void );
} stack_searched;

static void stack_on_signal( int number )
{
    (void) number;
    stack_searched.run();
}

/* Runs a function on a stack of its own, by a signal that is handled there. */
static void stack_run( void ( *run )( void ) )
{
    struct sigaction action, before;
    stack_t stack, old;
    memset( &stack, 0, sizeof( stack ) );
    memset( &action, 0, sizeof( action ) );
    stack_searched.bytes = (size_t) 1 << 20;
    stack_searched.memory = (uint8_t *) calloc( 1, stack_searched.bytes );
    stack_searched.run = run;
    stack.ss_sp = stack_searched.memory;
    stack.ss_size = stack_searched.bytes;
    action.sa_handler = stack_on_signal;
    action.sa_flags = SA_ONSTACK;
    sigemptyset( &action.sa_mask );
    REQUIRE( sigaltstack( &stack, &old ) == 0 && sigaction( SIGUSR1, &action, &before ) == 0 );
    raise( SIGUSR1 );
    CHECK_EQ( sigaction( SIGUSR1, &before, NULL ), 0 );
    CHECK_EQ( sigaltstack( &old, NULL ), 0 );
}

/* How often the needle lies on that stack. */
static int stack_holds( const void * needle, size_t bytes )
{
    int found = 0;
    size_t at;
    for ( at = 0; at + bytes <= stack_searched.bytes; at++ )
        found += memcmp( stack_searched.memory + at, needle, bytes ) == 0;
    return found;
}

static void stack_free( void )
{
    free( stack_searched.memory );
    stack_searched.memory = NULL;
}

#endif

#endif
