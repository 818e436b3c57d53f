/*  The watch of make torture: sees every block and every handle that the library takes and gives back, refuses the n-th
    one on demand, and knows where the run is when something goes wrong. Part of tests/torture.c. */

#ifndef TORTURE_WATCH_H
#define TORTURE_WATCH_H

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined( __has_feature )
#if __has_feature( address_sanitizer )
#define TORTURE_SANITIZED 1
#endif
#elif defined( __SANITIZE_ADDRESS__ )
#define TORTURE_SANITIZED 1
#endif
#ifndef TORTURE_SANITIZED
#define TORTURE_SANITIZED 0
#endif
#if TORTURE_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif

enum { WATCH_FINDINGS = 20, WATCH_HANDLES = 1024, WATCH_SECONDS = 240 };

/* A block that is not freed yet. */
struct watch_block_t {
    void * pointer;
    const void * context; /* of its allocator */
    const void * owner;   /* the object in whose create or start it was allocated; NULL: allocated at another time */
    int64_t serial;
    int stale; /* of a test that is over: it may still free it */
    struct watch_block_t * next;
};

/* What the parent can still read when the child has died. */
struct watch_shared_t {
    char where[256];
    int finished;
};

static struct {
    struct watch_block_t * blocks; /* the newest first */
    int live;
    int64_t serial;  /* of the newest block */
    int allocations; /* asked for since watch_arm */
    int fail_at;     /* this one is refused; 0: none */
    int fail_for;    /* and so many in a row */
    int refused;
    uint8_t handles[WATCH_HANDLES]; /* 1: opened and not closed yet */
    int open_handles;
    int depth;       /* calls into the library within calls */
    int findings;    /* of the whole program */
    int cpu_seconds; /* that a run may take: it takes a hundredth of that */
    int report;      /* the handle to which the report goes */
    struct watch_shared_t * shared;
    int hurry;         /* real time is not waited for */
    int updates;       /* since watch_arm */
    int updates_limit; /* a run of the runner's tests ends behind so many; 0: never */
} watcher;

/* ---- the report ---- */

__attribute__( ( format( printf, 1, 2 ) ) ) static void watch_print( const char * format, ... )
{
    char line[1024];
    va_list arguments;
    va_start( arguments, format );
    int length = vsnprintf( line, sizeof( line ), format, arguments );
    va_end( arguments );
    if ( length > (int) sizeof( line ) - 1 )
        length = (int) sizeof( line ) - 1;
    if ( length > 0 && write( watcher.report, line, (size_t) length ) < 0 )
        _exit( 3 );
}

__attribute__( ( format( printf, 1, 2 ) ) ) static void watch_where( const char * format, ... )
{
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( watcher.shared->where, sizeof( watcher.shared->where ), format, arguments );
    va_end( arguments );
}

__attribute__( ( format( printf, 1, 2 ) ) ) static void watch_finding( const char * format, ... )
{
    char text[512];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    watch_print( "FAILED %s: %s\n", watcher.shared->where, text );
    if ( ++watcher.findings < WATCH_FINDINGS )
        return;
    watch_print( "torture: ended after %d failures\n", watcher.findings );
    watcher.shared->finished = 1;
    _exit( 1 );
}

static void watch_stuck( int number )
{
    (void) number;
    watch_print( "FAILED %s: it is stuck\n", watcher.shared->where );
    watcher.shared->finished = 1;
    _exit( 3 );
}

/* A run that computes or waits for ever is ended, and the program with it. */
static void watch_limit( void )
{
    struct itimerval limit = { { 0, 0 }, { watcher.cpu_seconds, 0 } };
    setitimer( ITIMER_PROF, &limit, NULL );
    alarm( WATCH_SECONDS );
}

static void watch_open( void )
{
    void * shared = mmap( NULL, sizeof( *watcher.shared ), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0 );
    watcher.report = dup( 1 );
    if ( shared == MAP_FAILED || watcher.report < 0 )
        _exit( 2 );
    watcher.shared = (struct watch_shared_t *) shared;
    signal( SIGALRM, watch_stuck );
    signal( SIGPROF, watch_stuck );
}

/*  The sweeps run in a child: a sanitizer ends the program that it finds a fault in, and another process has to say in
    which run that was. Returns the exit status. */
static int watch_child( int ( *sweeps )( int count, char ** arguments ), int count, char ** arguments )
{
    int status = 0;
    pid_t child = fork();
    if ( child < 0 )
        return 2;
    if ( child == 0 ) {
        int result = sweeps( count, arguments );
        watcher.shared->finished = 1;
        exit( result );
    }
    if ( waitpid( child, &status, 0 ) != child )
        return 2;
    if ( !watcher.shared->finished )
        watch_print( "FAILED %s: the program died there\n", watcher.shared->where );
    return WIFEXITED( status ) && watcher.shared->finished ? WEXITSTATUS( status ) : 1;
}

/* ---- blocks ---- */

/* From now on allocation `fail_at` is refused, and those behind it, `fail_for` in all. */
static void watch_arm( int fail_at, int fail_for )
{
    watcher.allocations = watcher.refused = watcher.updates = 0;
    watcher.fail_at = fail_at;
    watcher.fail_for = fail_for;
    watch_limit();
}

static int watch_refuses( void )
{
    int n = ++watcher.allocations;
    int refused = watcher.fail_at && n >= watcher.fail_at && n < watcher.fail_at + watcher.fail_for;
    watcher.refused += refused;
    return refused;
}

static void watch_insert( void * pointer, const void * context )
{
    struct watch_block_t * block;
    if ( !pointer )
        return;
    block = (struct watch_block_t *) calloc( 1, sizeof( *block ) );
    if ( !block ) {
        watch_print( "out of memory\n" );
        _exit( 3 );
    }
    block->pointer = pointer;
    block->context = context;
    block->serial = ++watcher.serial;
    block->next = watcher.blocks;
    watcher.blocks = block;
    watcher.live++;
}

static void watch_remove( void * pointer, const void * context )
{
    struct watch_block_t ** link = &watcher.blocks;
    if ( !pointer )
        return;
    while ( *link && ( *link )->pointer != pointer )
        link = &( *link )->next;
    if ( !*link ) {
        watch_finding( "a block was freed that was not allocated" );
        return;
    }
    struct watch_block_t * block = *link;
    if ( block->context != context )
        watch_finding( "a block was freed with the context of another allocator" );
    *link = block->next;
    watcher.live -= !block->stale;
    free( block );
}

/* The default allocator: in netcode.h, and nowhere else, malloc and free are these. */
static void * watch_malloc( size_t bytes )
{
    void * pointer = watch_refuses() ? NULL : malloc( bytes );
    watch_insert( pointer, NULL );
    return pointer;
}

static void watch_free( void * pointer )
{
    watch_remove( pointer, NULL );
    free( pointer );
}

/* An allocator for the hooks; `context` is any pointer. Its blocks hold no zeros, so that nothing relies on them. */
static void * watch_allocate( void * context, size_t bytes )
{
    void * pointer = watch_refuses() ? NULL : malloc( bytes );
    if ( pointer )
        memset( pointer, 0xA5, bytes );
    watch_insert( pointer, context );
    return pointer;
}

static void watch_release( void * context, void * pointer )
{
    watch_remove( pointer, context );
    free( pointer );
}

static int watch_count_owned( const void * owner )
{
    const struct watch_block_t * block;
    int count = 0;
    for ( block = watcher.blocks; block; block = block->next )
        count += block->owner == owner;
    return count;
}

/* What is left counts as lost no more. */
static void watch_forget_blocks( void )
{
    struct watch_block_t * block;
    for ( block = watcher.blocks; block; block = block->next ) {
        block->stale = 1;
        block->owner = NULL;
    }
    watcher.live = 0;
}

/* ---- handles ---- */

static void watch_handle_opened( int handle )
{
    if ( handle < 0 || handle >= WATCH_HANDLES || watcher.handles[handle] )
        return;
    watcher.handles[handle] = 1;
    watcher.open_handles++;
}

static void watch_handle_closed( int handle )
{
    if ( handle < 0 || handle >= WATCH_HANDLES || !watcher.handles[handle] )
        return;
    watcher.handles[handle] = 0;
    watcher.open_handles--;
}

/* Closes what a test left open when it was ended. */
static void watch_close_handles( void )
{
    int i;
    for ( i = 0; i < WATCH_HANDLES && watcher.open_handles; i++ )
        if ( watcher.handles[i] )
            close( i );
}

/* How many handles the process has, as the system reports them. */
static int watch_count_handles( void )
{
    int i, count = 0;
    for ( i = 0; i < WATCH_HANDLES; i++ )
        count += fcntl( i, F_GETFD ) != -1;
    return count;
}

/* ---- calls that take and give back ----
    A create that fails keeps nothing; destroy gives back all that its object took. */

struct watch_mark_t {
    int64_t serial;
    int live;
    int handles;
};

static struct watch_mark_t watch_enter( void )
{
    struct watch_mark_t mark = { watcher.serial, watcher.live, watcher.open_handles };
    watcher.depth++;
    return mark;
}

/* What was allocated since the mark belongs to `object`; if there is none, nothing may have been allocated. */
static void watch_leave( struct watch_mark_t mark, const void * object, const char * call )
{
    struct watch_block_t * block;
    watcher.depth--;
    if ( object ) {
        for ( block = watcher.blocks; block && block->serial > mark.serial; block = block->next )
            block->owner = object;
        return;
    }
    if ( watcher.live > mark.live )
        watch_finding( "%s failed and kept %d blocks", call, watcher.live - mark.live );
    if ( watcher.open_handles > mark.handles )
        watch_finding( "%s failed and kept %d handles open", call, watcher.open_handles - mark.handles );
}

/*  Destroyed from within one of its own callbacks, an object may live until the outermost call returns: until then its
    blocks belong to a ghost. At the end of a run there shall be no ghosts. */
static const char watch_ghost[] = "ghost";

static void watch_destroyed( const void * object )
{
    struct watch_block_t * block;
    for ( block = watcher.blocks; block && object; block = block->next )
        if ( block->owner == object )
            block->owner = watch_ghost;
}

#endif
