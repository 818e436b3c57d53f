/*  Included before netcode.h: what the library asks select and nanosleep for is noted, so that no test has to measure how long it
    waits; a system without one family of addresses is played; and libsodium's starts are counted. */

#ifndef WAITS_H
#define WAITS_H

static double test_waited; /* the seconds of the last call. On Windows it stays as a test has set it */

#if defined( _WIN32 )
enum { test_notes_waits = 0 };
#else
enum { test_notes_waits = 1 };
#if !defined( _GNU_SOURCE )
#define _GNU_SOURCE 1 /* as netcode.h does, where it is included first */
#endif
#include <errno.h>
#include <sys/select.h>
#include <sys/socket.h>

static int test_select_error; /* select is refused with this; 0: it is not */

static int test_select( int count, fd_set * in, fd_set * out, fd_set * wrong, struct timeval * wait )
{
    test_waited = (double) wait->tv_sec + (double) wait->tv_usec * 1e-6;
    errno = test_select_error;
    return test_select_error ? -1 : select( count, in, out, wrong, wait );
}
static int
    test_lacks_family; /* AF_INET or AF_INET6: there are no sockets of it, or where test_lacks_addresses no addresses */
static int test_lacks_addresses;

static int test_socket( int family, int type, int protocol )
{
    errno = EAFNOSUPPORT;
    return family == test_lacks_family && !test_lacks_addresses ? -1 : socket( family, type, protocol );
}

static int test_bind( int handle, const struct sockaddr * address, socklen_t bytes )
{
    errno = EADDRNOTAVAIL;
    return address->sa_family == test_lacks_family ? -1 : bind( handle, address, bytes );
}
#define socket( family, type, protocol ) test_socket( family, type, protocol )
#define bind( handle, address, bytes ) test_bind( handle, address, bytes )

#if defined( __linux__ ) && defined( __LP64__ )
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int test_sleeps;

int nanosleep( const struct timespec * wait, struct timespec * left )
{
    test_sleeps++;
    test_waited = (double) wait->tv_sec + (double) wait->tv_nsec * 1e-9;
    return (int) syscall( SYS_nanosleep, wait, left );
}
#endif
#define select( count, in, out, wrong, wait ) test_select( count, in, out, wrong, wait )
#endif

#include <sodium.h>

static int test_sodium_starts, test_sodium_is_broken;

static int test_sodium_init( void )
{
    test_sodium_starts++;
    return test_sodium_is_broken ? -1 : sodium_init();
}
#define sodium_init() test_sodium_init()

#endif
