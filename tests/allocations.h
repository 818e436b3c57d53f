/*  Counts what asks for memory: include it once in a program that is linked with --wrap for malloc, calloc and realloc.
    With MALLOC_NO_WRAP, where the linker can not do that, `malloc_is_wrapped` is 0 and the program's own allocator hooks
    have to count. */

static uint64_t allocations;

#if defined( MALLOC_NO_WRAP )

enum { malloc_is_wrapped = 0 };

#else

enum { malloc_is_wrapped = 1 };

void * __real_malloc( size_t bytes );
void * __real_calloc( size_t count, size_t bytes );
void * __real_realloc( void * pointer, size_t bytes );
void * __wrap_malloc( size_t bytes );
void * __wrap_calloc( size_t count, size_t bytes );
void * __wrap_realloc( void * pointer, size_t bytes );

void * __wrap_malloc( size_t bytes )
{
    allocations++;
    return __real_malloc( bytes );
}

void * __wrap_calloc( size_t count, size_t bytes )
{
    allocations++;
    return __real_calloc( count, bytes );
}

void * __wrap_realloc( void * pointer, size_t bytes )
{
    allocations++;
    return __real_realloc( pointer, bytes );
}

#endif
