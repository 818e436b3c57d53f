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
    int armed;          /* calls are counted and refused */
    unsigned int kinds; /* of these kinds alone, a bit each */
    int option;         /* and with this option or command alone; 0: any */
    int calls;          /* since system_arm */
    int fail_at;        /* this one is refused; 0: none */
    int fail_for;       /* and so many in a row, */
    int every;          /* or one in so many, without a period; 0: as fail_for says */
    int error;          /* with this */
    int refused;
    int refused_kind;              /* of the first one */
    int refused_option;            /* of a setsockopt or an fcntl, that one's */
    int counts[SYSTEM_CALL_KINDS]; /* calls of each kind that were refused */
    int refused_in_a_row;          /* sends of one datagram that were refused with an error that passes */
    int expected_send_errors;      /* by the library's rules: see system_refused_send */
    int expected_receive_errors;
    int owed_kind;   /* the call that has to follow a refused one, */
    int owed_handle; /* on this handle; -1: none has to */
    int starts;      /* after so many steps of the story */
    int steps;       /* of the story, since the first call was refused */
    int sick_steps;  /* after so many no more is refused; 0: for good */
    int all_calls;   /* since the step began */
    int woke;        /* what select returned: not 0 is before its time */
    int datagrams;   /* received */
} system_state;

#define SYSTEM_OPTION( level, option ) ( ( level ) << 16 | ( option ) )
#define SYSTEM_BIT( kind ) ( 1u << SYSTEM_##kind )
#define SYSTEM_ALL ( ( 1u << SYSTEM_CALL_KINDS ) - 1 )
#define SYSTEM_SENDS ( SYSTEM_BIT( SENDTO ) | SYSTEM_BIT( SENDMMSG ) )
#define SYSTEM_RECEIVES ( SYSTEM_BIT( RECVFROM ) | SYSTEM_BIT( RECVMSG ) | SYSTEM_BIT( RECVMMSG ) )

static void system_arm( int fail_at, int fail_for, int error, unsigned int kinds )
{
    memset( &system_state, 0, sizeof( system_state ) );
    system_state.armed = 1;
    system_state.fail_at = fail_at;
    system_state.fail_for = fail_for;
    system_state.error = error;
    system_state.kinds = kinds;
    system_state.owed_handle = -1;
    system_state.sick_steps = 20;
}

/* The fault is gone; calls are counted on. */
static void system_heal( void )
{
    system_state.fail_at = system_state.every = 0;
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
    int receives = ( SYSTEM_RECEIVES & 1u << kind ) && ( SYSTEM_RECEIVES & 1u << system_state.owed_kind );
    if ( ( kind != system_state.owed_kind && !receives ) || !same )
        watch_finding( "behind a refused %s came %s", system_names[system_state.owed_kind], system_names[kind] );
    system_state.owed_handle = -1;
}

static void system_owe( int kind, int handle )
{
    system_state.owed_kind = kind;
    system_state.owed_handle = system_state.fail_for == 1 ? handle : -1;
}

/* Multiples of the golden ratio: a period of three would always meet the same one of three sockets that are read in turn. */
static int system_fails( int n )
{
    if ( system_state.every )
        return (uint32_t) n * 2654435769u < UINT32_MAX / (uint32_t) system_state.every;
    return system_state.fail_at && n >= system_state.fail_at && n - system_state.fail_at < system_state.fail_for;
}

static int system_refuses( int kind, int handle, int option )
{
    system_state.all_calls++;
    if ( !system_state.armed || !( system_state.kinds & 1u << kind ) ||
         ( system_state.option && system_state.option != option ) || system_state.starts )
        return 0;
    system_pay( kind, handle );
    if ( !system_fails( ++system_state.calls ) )
        return 0;
    if ( system_state.refused++ == 0 ) {
        system_state.refused_kind = kind;
        system_state.refused_option = option;
    }
    system_state.counts[kind]++;
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
static void system_note_receive( int handle )
{
    if ( errno != EAGAIN )
        system_owe( SYSTEM_RECVMSG, handle );
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
    return system_refuses( SYSTEM_SETSOCKOPT, handle, SYSTEM_OPTION( level, option ) )
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
        system_note_receive( handle );
        return -1;
    }
    int received = runner_recvmmsg( handle, headers, count, flags, timeout );
    system_state.datagrams += received > 0 ? received : 0;
    return received;
}

/* To read the error queue is part of what follows a refused receive. */
ssize_t recvmsg( int handle, struct msghdr * header, int flags )
{
    int queue = flags & MSG_ERRQUEUE, owed = system_state.owed_handle, refused;
    if ( queue )
        system_state.owed_handle = -1;
    refused = system_refuses( SYSTEM_RECVMSG, handle, 0 );
    if ( refused && !queue )
        system_note_receive( handle );
    if ( queue )
        system_state.owed_handle = owed;
    ssize_t received = refused ? -1 : (ssize_t) syscall( SYS_recvmsg, handle, header, flags );
    system_state.datagrams += received >= 0 && !queue;
    return received;
}

int select( int highest, fd_set * read, fd_set * write, fd_set * except, struct timeval * timeout )
{
    int ready = system_refuses( SYSTEM_SELECT, -1, 0 )
                    ? -1
                    : (int) syscall( SYS_select, highest, read, write, except, timeout );
    system_state.woke = ready;
    return ready;
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
        system_note_receive( handle );
        return -1;
    }
    return (ssize_t) syscall( SYS_recvfrom, handle, data, bytes, flags, from.__sockaddr__, length );
}

#endif

#endif
