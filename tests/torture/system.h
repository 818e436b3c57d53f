/*  The system calls of make torture: a program's own function comes before the C library's of the same name, so these
    stand between netcode.h and the system. They count, refuse the n-th call with any error, pass all others on, and
    reckon what the library's counters must say afterwards. Part of tests/torture.c. */

#ifndef TORTURE_SYSTEM_H
#define TORTURE_SYSTEM_H

#include "watch.h"

/*  Elsewhere than here the types of these functions differ, or the C library offers no way past them, or the tests of the
    runner do not have theirs. */
#if defined( __linux__ ) && defined( __GLIBC__ ) && defined( __LP64__ ) && \
    ( defined( __x86_64__ ) || defined( TORTURE_STORIES_ONLY ) )
#define TORTURE_SYSTEM 1
#else
#define TORTURE_SYSTEM 0
#endif

#define SYSTEM_CALLS( X )         \
    X( SOCKET, socket )           \
    X( BIND, bind )               \
    X( CONNECT, connect )         \
    X( SETSOCKOPT, setsockopt )   \
    X( GETSOCKOPT, getsockopt )   \
    X( GETSOCKNAME, getsockname ) \
    X( FCNTL, fcntl )             \
    X( SENDTO, sendto )           \
    X( SENDMMSG, sendmmsg )       \
    X( RECVFROM, recvfrom )       \
    X( RECVMSG, recvmsg )         \
    X( RECVMMSG, recvmmsg )       \
    X( SELECT, select )           \
    X( CLOSE, close )

#define SYSTEM_ENUM( name, text ) SYSTEM_##name,
#define SYSTEM_TEXT( name, text ) #text,
enum system_call_t { SYSTEM_CALLS( SYSTEM_ENUM ) SYSTEM_CALL_KINDS };
static const char * const system_names[] = { SYSTEM_CALLS( SYSTEM_TEXT ) };

static struct {
    int armed;    /* calls are counted and refused */
    int only_io;  /* of those that send, receive and wait alone */
    int calls;    /* since system_arm */
    int fail_at;  /* this one is refused; 0: none */
    int fail_for; /* and so many in a row */
    int error;    /* with this */
    int refused;
    int refused_kind;             /* of the first one */
    int refused_option;           /* of a setsockopt or an fcntl, that one's */
    int kinds[SYSTEM_CALL_KINDS]; /* calls of each kind that were refused */
    int refused_in_a_row;         /* sends of one datagram that were refused with an error that passes */
    int expected_send_errors;     /* by the library's rules: see system_refused_send */
    int expected_receive_errors;
    int owed_kind;   /* the call that has to follow a refused one, */
    int owed_handle; /* on this handle; -1: none has to */
    int steps;       /* of the story, since the first call was refused */
} system_state;

static void system_arm( int fail_at, int fail_for, int error, int only_io )
{
    memset( &system_state, 0, sizeof( system_state ) );
    system_state.armed = 1;
    system_state.fail_at = fail_at;
    system_state.fail_for = fail_for;
    system_state.error = error;
    system_state.only_io = only_io;
    system_state.owed_handle = -1;
}

/* The fault is gone; calls are counted on. */
static void system_heal( void )
{
    system_state.fail_at = 0;
}

static void system_disarm( void )
{
    system_state.armed = 0;
    system_state.owed_handle = -1;
}

#if TORTURE_SYSTEM

#include <sys/mman.h>
#include <sys/syscall.h>

/*  An interrupted call is made again at once, and a receive that met an error of one datagram goes on to the next (on the
    other handle, if its share of the batch is full): what is refused costs no other datagram its turn. */
static void system_pay( int kind, int handle )
{
    int same = handle == system_state.owed_handle || system_state.error != EINTR;
    if ( system_state.owed_handle < 0 )
        return;
    if ( kind != system_state.owed_kind || !same )
        watch_finding( "behind a refused %s came %s", system_names[system_state.owed_kind], system_names[kind] );
    system_state.owed_handle = -1;
}

static void system_owe( int kind, int handle )
{
    system_state.owed_kind = kind;
    system_state.owed_handle = system_state.fail_for == 1 ? handle : -1;
}

static int system_fails( int n )
{
    return system_state.fail_at && n >= system_state.fail_at && n - system_state.fail_at < system_state.fail_for;
}

static int system_refuses( int kind, int handle, int option )
{
    if ( !system_state.armed || ( system_state.only_io && ( kind < SYSTEM_SENDTO || kind > SYSTEM_SELECT ) ) )
        return 0;
    system_pay( kind, handle );
    if ( !system_fails( ++system_state.calls ) )
        return 0;
    if ( system_state.refused++ == 0 ) {
        system_state.refused_kind = kind;
        system_state.refused_option = option;
    }
    system_state.kinds[kind]++;
    errno = system_state.error;
    return 1;
}

/*  A datagram counts as a send error when the system refuses it; one that may have met the error of an earlier one is tried
    NC_SEND_TRIES times. */
static void system_note_send( int refused, int handle )
{
    int passes = refused && errno != EAGAIN && errno != ENOBUFS && errno != EBADF;
    system_state.refused_in_a_row = passes ? system_state.refused_in_a_row + 1 : 0;
    if ( system_state.refused_in_a_row == NC_SEND_TRIES || ( refused && !passes ) ) {
        system_state.expected_send_errors++;
        system_state.refused_in_a_row = 0;
    }
    if ( passes )
        system_owe( SYSTEM_SENDTO, handle );
}

/* Nothing there, and interrupted, are no errors. All others of threat 52 fill one entry each. */
static void system_note_receive( int kind, int handle )
{
    if ( errno != EAGAIN )
        system_owe( kind, handle );
    system_state.expected_receive_errors += errno != EAGAIN && errno != EINTR;
}

int socket( int family, int type, int protocol )
{
    int handle;
    if ( system_refuses( SYSTEM_SOCKET, -1, 0 ) )
        return -1;
    handle = (int) syscall( SYS_socket, family, type, protocol );
    watch_handle_opened( handle );
    return handle;
}

/* An interrupted close has closed all the same, and so has one that reports an error. */
int close( int handle )
{
    int refused = system_refuses( SYSTEM_CLOSE, handle, 0 ), result;
    watch_handle_closed( handle );
    result = (int) syscall( SYS_close, handle );
    if ( refused )
        errno = system_state.error;
    return refused ? -1 : result;
}

int fcntl( int handle, int command, ... )
{
    va_list arguments;
    long value;
    if ( system_refuses( SYSTEM_FCNTL, handle, command ) )
        return -1;
    va_start( arguments, command );
    value = va_arg( arguments, long );
    va_end( arguments );
    return (int) syscall( SYS_fcntl, handle, command, value );
}

/* What tests/unit/socket.c and tests/story/linux.c have in the place of these. */
int runner_setsockopt( int handle, int level, int option, const void * value, socklen_t bytes );
int runner_sendmmsg( int handle, struct mmsghdr * headers, unsigned int count, int flags );
int runner_recvmmsg( int handle, struct mmsghdr * headers, unsigned count, int flags, struct timespec * timeout );
int runner_connect( int handle, const struct sockaddr * address, socklen_t bytes );
ssize_t runner_sendto( int handle, const void * data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
                       socklen_t length );

int setsockopt( int handle, int level, int option, const void * value, socklen_t bytes )
{
    return system_refuses( SYSTEM_SETSOCKOPT, handle, option )
               ? -1
               : runner_setsockopt( handle, level, option, value, bytes );
}

int getsockopt( int handle, int level, int option, void * value, socklen_t * bytes )
{
    if ( system_refuses( SYSTEM_GETSOCKOPT, handle, option ) )
        return -1;
    return (int) syscall( SYS_getsockopt, handle, level, option, value, bytes );
}

int sendmmsg( int handle, struct mmsghdr * headers, unsigned int count, int flags )
{
    return system_refuses( SYSTEM_SENDMMSG, handle, 0 ) ? -1 : runner_sendmmsg( handle, headers, count, flags );
}

int recvmmsg( int handle, struct mmsghdr * headers, unsigned int count, int flags, struct timespec * timeout )
{
    if ( system_refuses( SYSTEM_RECVMMSG, handle, 0 ) ) {
        system_note_receive( SYSTEM_RECVMMSG, handle );
        return -1;
    }
    return runner_recvmmsg( handle, headers, count, flags, timeout );
}

/* To read the error queue is part of what follows a refused receive. */
ssize_t recvmsg( int handle, struct msghdr * header, int flags )
{
    int queue = flags & MSG_ERRQUEUE, owed = system_state.owed_handle, refused;
    if ( queue )
        system_state.owed_handle = -1;
    refused = system_refuses( SYSTEM_RECVMSG, handle, 0 );
    if ( refused && !queue )
        system_note_receive( SYSTEM_RECVMSG, handle );
    if ( queue )
        system_state.owed_handle = owed;
    return refused ? -1 : (ssize_t) syscall( SYS_recvmsg, handle, header, flags );
}

int select( int highest, fd_set * read, fd_set * write, fd_set * except, struct timeval * timeout )
{
    if ( system_refuses( SYSTEM_SELECT, -1, 0 ) )
        return -1;
    return (int) syscall( SYS_select, highest, read, write, except, timeout );
}

/* The C library declares addresses as a union of pointers. */

int bind( int handle, __CONST_SOCKADDR_ARG address, socklen_t bytes )
{
    return system_refuses( SYSTEM_BIND, handle, 0 ) ? -1
                                                    : (int) syscall( SYS_bind, handle, address.__sockaddr__, bytes );
}

int connect( int handle, __CONST_SOCKADDR_ARG address, socklen_t bytes )
{
    return system_refuses( SYSTEM_CONNECT, handle, 0 ) ? -1 : runner_connect( handle, address.__sockaddr__, bytes );
}

int getsockname( int handle, __SOCKADDR_ARG address, socklen_t * bytes )
{
    if ( system_refuses( SYSTEM_GETSOCKNAME, handle, 0 ) )
        return -1;
    return (int) syscall( SYS_getsockname, handle, address.__sockaddr__, bytes );
}

ssize_t sendto( int handle, const void * data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t length )
{
    int refused = system_refuses( SYSTEM_SENDTO, handle, 0 );
    system_note_send( refused, handle );
    return refused ? -1 : runner_sendto( handle, data, bytes, flags, to, length );
}

ssize_t recvfrom( int handle, void * data, size_t bytes, int flags, __SOCKADDR_ARG from, socklen_t * length )
{
    if ( system_refuses( SYSTEM_RECVFROM, handle, 0 ) ) {
        system_note_receive( SYSTEM_RECVFROM, handle );
        return -1;
    }
    return (ssize_t) syscall( SYS_recvfrom, handle, data, bytes, flags, from.__sockaddr__, length );
}

#endif

#endif
