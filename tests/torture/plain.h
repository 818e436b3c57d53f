/*  The system itself, in the place of what tests/story/linux.c puts before it: for builds of make torture without the
    tests of the runner. Part of tests/torture.c. */

#ifndef TORTURE_PLAIN_H
#define TORTURE_PLAIN_H

#include "system.h"

int runner_setsockopt( int handle, int level, int option, const void * value, socklen_t bytes )
{
    return (int) syscall( SYS_setsockopt, handle, level, option, value, bytes );
}

int runner_sendmmsg( int handle, struct mmsghdr * headers, unsigned int count, int flags )
{
    return (int) syscall( SYS_sendmmsg, handle, headers, count, flags );
}

int runner_connect( int handle, const struct sockaddr * address, socklen_t bytes )
{
    return (int) syscall( SYS_connect, handle, address, bytes );
}

int runner_recvmmsg( int handle, struct mmsghdr * headers, unsigned count, int flags, struct timespec * timeout )
{
    return (int) syscall( SYS_recvmmsg, handle, headers, count, flags, timeout );
}

ssize_t runner_sendto( int handle, const void * data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
                       socklen_t length )
{
    return (ssize_t) syscall( SYS_sendto, handle, data, bytes, flags, to.__sockaddr__, length );
}

#endif
