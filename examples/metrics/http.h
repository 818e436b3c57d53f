/*  Serves the text of metrics.h over HTTP, at /metrics, with libmicrohttpd in a thread of its own. That thread only ever
    copies the text that was published last, so it touches no object of netcode, and the game never waits for a reader.

        struct metrics_http_t * http = metrics_http_start( "127.0.0.1", 9101 );       NULL: errno says why
        each second:
            metrics_http_publish( http, &text );
        at the end:
            metrics_http_stop( http );

    It speaks plain HTTP without authentication: leave it on loopback, or on a network of your own. A game loop
    that stands still must not look healthy: when nothing was published for ten seconds, the answer is 503, and
    Prometheus' `up` turns 0.

        cc ... $(pkg-config --cflags --libs libmicrohttpd) -pthread */

#ifndef METRICS_HTTP_H
#define METRICS_HTTP_H

#include "metrics.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

enum {
    METRICS_HTTP_CONNECTIONS = 16,
    METRICS_HTTP_CONNECTIONS_OF_ONE = 4, /* address: a reader that trickles its request can hold these for ever */
    METRICS_HTTP_TIMEOUT_SECONDS = 5     /* of a reader that neither asks nor reads */
};

#if !defined( METRICS_HTTP_STALE_SECONDS )
#define METRICS_HTTP_STALE_SECONDS 10
#endif

#define METRICS_HTTP_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics_http_t {
    struct MHD_Daemon * daemon;
    pthread_mutex_t lock; /* of what stands below it */
    char * data;
    size_t bytes, capacity;
    time_t published;
    uint64_t refused; /* texts that were not whole, or found no memory */
};

static inline time_t metrics_http_now( void )
{
    struct timespec now;
    clock_gettime( CLOCK_MONOTONIC, &now );
    return now.tv_sec;
}

static inline enum MHD_Result metrics_http_answer( struct MHD_Connection * connection, unsigned int status,
                                                   const char * words )
{
    struct MHD_Response * response =
        MHD_create_response_from_buffer_with_free_callback( strlen( words ), strdup( words ), free );
    if ( !response )
        return MHD_NO;
    MHD_add_response_header( response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8" );
    if ( status == MHD_HTTP_METHOD_NOT_ALLOWED )
        MHD_add_response_header( response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD" );
    enum MHD_Result result = MHD_queue_response( connection, status, response );
    MHD_destroy_response( response );
    return result;
}

/* A copy of what was published, for libmicrohttpd to free; NULL when it is too old or memory is short. */
static inline char * metrics_http_copy( struct metrics_http_t * http, size_t * bytes )
{
    char * copy = NULL;
    pthread_mutex_lock( &http->lock );
    if ( http->bytes && metrics_http_now() - http->published <= METRICS_HTTP_STALE_SECONDS )
        copy = (char *) malloc( http->bytes );
    if ( copy ) {
        memcpy( copy, http->data, http->bytes );
        *bytes = http->bytes;
    }
    pthread_mutex_unlock( &http->lock );
    return copy;
}

static inline enum MHD_Result metrics_http_metrics( struct metrics_http_t * http, struct MHD_Connection * connection )
{
    size_t bytes = 0;
    char * copy = metrics_http_copy( http, &bytes );
    if ( !copy )
        return metrics_http_answer( connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                                    "nothing was published in the last seconds: the game stands still\n" );
    struct MHD_Response * response = MHD_create_response_from_buffer_with_free_callback( bytes, copy, free );
    if ( !response ) {
        free( copy );
        return MHD_NO;
    }
    MHD_add_response_header( response, MHD_HTTP_HEADER_CONTENT_TYPE, METRICS_HTTP_TYPE );
    enum MHD_Result result = MHD_queue_response( connection, MHD_HTTP_OK, response );
    MHD_destroy_response( response );
    return result;
}

static inline enum MHD_Result metrics_http_handle( void * context, struct MHD_Connection * connection, const char * url,
                                                   const char * method, const char * version, const char * upload,
                                                   size_t * upload_bytes, void ** state )
{
    (void) version;
    (void) upload;
    (void) upload_bytes;
    if ( strcmp( method, MHD_HTTP_METHOD_GET ) != 0 && strcmp( method, MHD_HTTP_METHOD_HEAD ) != 0 )
        return metrics_http_answer( connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n" );
    /* The first call comes before the request was read to its end: an answer then would end the connection. */
    if ( !*state ) {
        *state = context;
        return MHD_YES;
    }
    if ( strcmp( url, "/metrics" ) != 0 )
        return metrics_http_answer( connection, MHD_HTTP_NOT_FOUND, "look at /metrics\n" );
    return metrics_http_metrics( (struct metrics_http_t *) context, connection );
}

/* 0 when `address` is neither IPv4 nor IPv6 in digits. */
static inline int metrics_http_address( const char * address, int port, struct sockaddr_storage * out )
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memset( &in, 0, sizeof( in ) );
    memset( &in6, 0, sizeof( in6 ) );
    memset( out, 0, sizeof( *out ) );
    in.sin_family = AF_INET;
    in.sin_port = htons( (uint16_t) port );
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons( (uint16_t) port );
    if ( inet_pton( AF_INET, address, &in.sin_addr ) == 1 )
        memcpy( out, &in, sizeof( in ) );
    else if ( inet_pton( AF_INET6, address, &in6.sin6_addr ) == 1 )
        memcpy( out, &in6, sizeof( in6 ) );
    return out->ss_family != AF_UNSPEC;
}

/* Signals are the game's: the thread is born with all of them blocked. AUTO: select ends at 1024 open files. */
static inline struct MHD_Daemon * metrics_http_daemon( struct metrics_http_t * http, struct sockaddr_storage * address )
{
    sigset_t all, before;
    unsigned int flags = MHD_USE_AUTO_INTERNAL_THREAD | ( address->ss_family == AF_INET6 ? MHD_USE_IPv6 : 0 );
    sigfillset( &all );
    pthread_sigmask( SIG_SETMASK, &all, &before );
    errno = 0;
    struct MHD_Daemon * daemon =
        MHD_start_daemon( flags, 0, NULL, NULL, metrics_http_handle, http, MHD_OPTION_SOCK_ADDR,
                          (struct sockaddr *) address, MHD_OPTION_CONNECTION_LIMIT,
                          (unsigned int) METRICS_HTTP_CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                          (unsigned int) METRICS_HTTP_CONNECTIONS_OF_ONE, MHD_OPTION_CONNECTION_TIMEOUT,
                          (unsigned int) METRICS_HTTP_TIMEOUT_SECONDS, MHD_OPTION_END );
    int error = errno;
    pthread_sigmask( SIG_SETMASK, &before, NULL );
    errno = error ? error : EADDRNOTAVAIL;
    return daemon;
}

/* `port` 0: the system chooses one, which metrics_http_port returns. NULL on error, and errno says why. */
static inline struct metrics_http_t * metrics_http_start( const char * address, int port )
{
    struct sockaddr_storage where;
    struct metrics_http_t * http = (struct metrics_http_t *) calloc( 1, sizeof( *http ) );
    if ( !http )
        return NULL;
    errno = EINVAL;
    pthread_mutex_init( &http->lock, NULL );
    if ( port >= 0 && port <= 65535 && metrics_http_address( address, port, &where ) )
        http->daemon = metrics_http_daemon( http, &where );
    if ( http->daemon )
        return http;
    int error = errno;
    pthread_mutex_destroy( &http->lock );
    free( http );
    errno = error;
    return NULL;
}

static inline int metrics_http_port( const struct metrics_http_t * http )
{
    const union MHD_DaemonInfo * info = MHD_get_daemon_info( http->daemon, MHD_DAEMON_INFO_BIND_PORT );
    return info ? info->port : 0;
}

/* Readers get this text from now on. 0 when it is not whole or memory is short: they keep the one before then. */
static inline int metrics_http_publish( struct metrics_http_t * http, const struct metrics_text_t * text )
{
    int good = !text->failed && text->bytes > 0;
    pthread_mutex_lock( &http->lock );
    if ( good && text->bytes > http->capacity ) {
        char * data = (char *) realloc( http->data, text->bytes );
        good = data != NULL;
        http->data = good ? data : http->data;
        http->capacity = good ? text->bytes : http->capacity;
    }
    if ( good ) {
        memcpy( http->data, text->data, text->bytes );
        http->bytes = text->bytes;
        http->published = metrics_http_now();
    }
    http->refused += !good;
    pthread_mutex_unlock( &http->lock );
    return good;
}

/* Ends the thread; NULL is allowed. */
static inline void metrics_http_stop( struct metrics_http_t * http )
{
    if ( !http )
        return;
    MHD_stop_daemon( http->daemon );
    pthread_mutex_destroy( &http->lock );
    free( http->data );
    free( http );
}

#endif
