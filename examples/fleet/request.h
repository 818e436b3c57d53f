/*  HTTP requests that a game loop can afford: libcurl's multi interface, driven by one call a tick that never waits.
    A request that fails is counted, logged once, and logged again when it works again.

        struct requests_t requests;
        struct request_t health;
        requests_open( &requests, log, context );
        request_open( &health, &requests, "health", "http://localhost:9358/health" );
        request_send( &health, "{}" );              // NULL: a GET
        for ( ;; ) {                                // the game loop
            requests_update( &requests );
            if ( health.state == REQUEST_WORKED )   // or REQUEST_FAILED, or still REQUEST_UNDER_WAY
                ...
        }

    One header, for one program unit; needs libcurl, and libsodium to wipe credentials:
        cc program.c -lsodium $(pkg-config --cflags --libs libcurl) */

#ifndef FLEET_REQUEST_H
#define FLEET_REQUEST_H

#include <curl/curl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_CONNECT_MILLISECONDS 1000l
#define REQUEST_MILLISECONDS 2000l /* from the start to the last byte of the answer */
#define REQUEST_ANSWER_BYTES 65536 /* an answer that is longer is a failure */
#define REQUEST_BUSY_SECONDS 0.01  /* how long a loop may sleep while a request is in progress */
#define REQUEST_FINISH_MILLISECONDS 50

#define REQUEST_IDLE 0
#define REQUEST_UNDER_WAY 1
#define REQUEST_WORKED 2
#define REQUEST_FAILED 3

struct requests_t {
    CURLM * multi;
    int packets_in_flight;
    void ( *log )( void * context, const char * text ); /* one line, without its end */
    void * context;
};

struct request_t {
    struct requests_t * requests;
    const char * name; /* in the log */
    CURL * easy;
    struct curl_slist * headers;
    int state;          /* REQUEST_... */
    char * answer;      /* of the last one, ended by a zero; garbage is possible, NULL is not */
    size_t bytes;       /* of the answer */
    uint64_t worked;    /* how many did */
    uint64_t failed;    /* how many did not */
    uint64_t in_a_row;  /* of those, since one worked */
    long status;        /* of the last answer; 0: there was none */
    int may_be_unknown; /* the other side may not know this call (404, 405, 501): then nothing is logged */
    char error[CURL_ERROR_SIZE];
};

/* ---- all of them ---- */

/* 0 when libcurl can not start. */
static int requests_open( struct requests_t * requests, void ( *on_line )( void *, const char * ), void * context )
{
    memset( requests, 0, sizeof( *requests ) );
    requests->log = on_line;
    requests->context = context;
    if ( curl_global_init( CURL_GLOBAL_DEFAULT ) != CURLE_OK )
        return 0;
    const curl_version_info_data * info = curl_version_info( CURLVERSION_NOW );
    /* Before 7.87 the thread that looks up a name is waited for, even when its request has ended; c-ares has none. */
    if ( !( info->features & CURL_VERSION_ASYNCHDNS ) || ( info->version_num < 0x075700 && !info->ares ) )
        on_line( context, "this libcurl resolves names while its caller waits: give addresses, not names" );
    requests->multi = curl_multi_init();
    return requests->multi != NULL;
}

/* After every request of it. */
static void requests_close( struct requests_t * requests )
{
    if ( requests->multi )
        curl_multi_cleanup( requests->multi );
    requests->multi = NULL;
    curl_global_cleanup();
}

/* ---- one of them ---- */

static size_t request_take( char * data, size_t one, size_t bytes, void * context )
{
    struct request_t * request = (struct request_t *) context;
    (void) one; /* always 1 */
    if ( bytes > REQUEST_ANSWER_BYTES - request->bytes )
        return 0; /* which ends the request with an error */
    memcpy( request->answer + request->bytes, data, bytes );
    request->bytes += bytes;
    request->answer[request->bytes] = '\0';
    return bytes;
}

static int request_add_header( struct request_t * request, const char * header )
{
    struct curl_slist * headers = curl_slist_append( request->headers, header );
    if ( headers )
        request->headers = headers;
    return headers != NULL;
}

/* What goes in a header may be a secret. libcurl's own copies are freed by it, and not wiped. */
static void request_wipe_headers( struct request_t * request )
{
    for ( struct curl_slist * at = request->headers; at; at = at->next )
        sodium_memzero( at->data, strlen( at->data ) );
    curl_slist_free_all( request->headers );
    request->headers = NULL;
}

/*  `file` holds the certificates of the only authorities that are trusted; NULL: the system's. libcurl reads them while its
    caller waits, and keeps them for the next connection (7.87), but not where it also looks into a directory, as it does
    by default in Debian. The system's file holds what its directory does. 0 on error. */
static int request_set_authorities( struct request_t * request, const char * file )
{
    char * known = NULL;
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_getinfo( request->easy, CURLINFO_CAINFO, &known );
#endif
    if ( file || known )
        curl_easy_setopt( request->easy, CURLOPT_CAPATH, NULL );
    return !file || curl_easy_setopt( request->easy, CURLOPT_CAINFO, file ) == CURLE_OK;
}

/*  Only http and https, no redirects (they would carry a credential elsewhere), no proxy from the environment, certificates
    verified, which is libcurl's default. */
static int request_set_up( struct request_t * request, const char * url )
{
    CURL * easy = request->easy;
    int good = curl_easy_setopt( easy, CURLOPT_URL, url ) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075500
    good = good && curl_easy_setopt( easy, CURLOPT_PROTOCOLS_STR, "http,https" ) == CURLE_OK;
#else
    good = good && curl_easy_setopt( easy, CURLOPT_PROTOCOLS, (long) ( CURLPROTO_HTTP | CURLPROTO_HTTPS ) ) == CURLE_OK;
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name that no server answers for must not hold up the game: the thread that looks it up is left to itself. */
    curl_easy_setopt( easy, CURLOPT_QUICK_EXIT, 1l );
#endif
    return good && request_set_authorities( request, NULL ) &&
           curl_easy_setopt( easy, CURLOPT_PROXY, "" ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_NOSIGNAL, 1l ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_CONNECTTIMEOUT_MS, REQUEST_CONNECT_MILLISECONDS ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_TIMEOUT_MS, REQUEST_MILLISECONDS ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_ERRORBUFFER, request->error ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_PRIVATE, request ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_WRITEFUNCTION, request_take ) == CURLE_OK &&
           curl_easy_setopt( easy, CURLOPT_WRITEDATA, request ) == CURLE_OK;
}

static void request_forget( struct request_t * request )
{
    if ( request->state == REQUEST_UNDER_WAY ) {
        curl_multi_remove_handle( request->requests->multi, request->easy );
        request->requests->packets_in_flight--;
    }
    request->state = REQUEST_IDLE;
}

/* One that was never opened, or closed before, is ignored. */
static void request_close( struct request_t * request )
{
    if ( !request->requests )
        return;
    request_forget( request );
    if ( request->easy )
        curl_easy_cleanup( request->easy );
    request_wipe_headers( request );
    free( request->answer );
    memset( request, 0, sizeof( *request ) );
}

/* 0 when memory is short. `name` must outlive it. */
static int request_open( struct request_t * request, struct requests_t * requests, const char * name, const char * url )
{
    memset( request, 0, sizeof( *request ) );
    request->requests = requests;
    request->name = name;
    request->easy = curl_easy_init();
    request->answer = (char *) calloc( 1, REQUEST_ANSWER_BYTES + 1 );
    /* No "Expect": a server that does not know it would cost a second. */
    if ( request->easy && request->answer && request_set_up( request, url ) &&
         request_add_header( request, "Content-Type: application/json" ) && request_add_header( request, "Expect:" ) )
        return 1;
    request_close( request );
    return 0;
}

static int request_is_unknown( const struct request_t * request )
{
    return request->status == 404 || request->status == 405 || request->status == 501;
}

static void request_end( struct request_t * request, int worked )
{
    char text[CURL_ERROR_SIZE + 256];
    request->state = worked ? REQUEST_WORKED : REQUEST_FAILED;
    text[0] = '\0';
    if ( worked && request->in_a_row )
        snprintf( text, sizeof( text ), "%s: works again, after %llu failures", request->name,
                  (unsigned long long) request->in_a_row );
    else if ( !worked && !request->in_a_row )
        snprintf( text, sizeof( text ), "%s: failed, and is tried again without a word: %s", request->name,
                  request->error );
    request->worked += worked ? 1 : 0;
    request->failed += worked ? 0 : 1;
    request->in_a_row = worked ? 0 : request->in_a_row + 1;
    if ( text[0] && !( request->may_be_unknown && request_is_unknown( request ) ) )
        request->requests->log( request->requests->context, text );
}

/* Begins one: a POST of `body`, which is copied, or a GET. One that is in progress is given up. */
static void request_send( struct request_t * request, const char * body )
{
    CURL * easy = request->easy;
    request_forget( request );
    request->bytes = 0;
    request->answer[0] = '\0';
    request->error[0] = '\0';
    request->status = 0;
    CURLcode result = curl_easy_setopt( easy, CURLOPT_HTTPHEADER, request->headers );
    if ( result == CURLE_OK && body ) {
        curl_easy_setopt( easy, CURLOPT_POSTFIELDSIZE, -1l );
        result = curl_easy_setopt( easy, CURLOPT_COPYPOSTFIELDS, body );
    } else if ( result == CURLE_OK ) {
        result = curl_easy_setopt( easy, CURLOPT_HTTPGET, 1l );
    }
    if ( result != CURLE_OK || curl_multi_add_handle( request->requests->multi, easy ) != CURLM_OK ) {
        snprintf( request->error, sizeof( request->error ), "it could not be begun" );
        request_end( request, 0 );
        return;
    }
    request->state = REQUEST_UNDER_WAY;
    request->requests->packets_in_flight++;
}

/* libcurl is done with it; 2xx is what worked. */
static void request_finish( struct request_t * request, CURLcode result )
{
    curl_easy_getinfo( request->easy, CURLINFO_RESPONSE_CODE, &request->status );
    long status = request->status;
    request_forget( request );
    if ( result != CURLE_OK && !request->error[0] )
        snprintf( request->error, sizeof( request->error ), "%s", curl_easy_strerror( result ) );
    else if ( result == CURLE_OK && ( status < 200 || status > 299 ) )
        snprintf( request->error, sizeof( request->error ), "the answer was %ld", status );
    request_end( request, result == CURLE_OK && status >= 200 && status <= 299 );
}

/* Advances all requests in progress as far as they go by themselves. Call it once a tick. */
static void requests_update( struct requests_t * requests )
{
    int running = 0;
    int queued = 0;
    CURLMsg * message = NULL;
    if ( !requests->packets_in_flight )
        return;
    curl_multi_perform( requests->multi, &running );
    while ( ( message = curl_multi_info_read( requests->multi, &queued ) ) != NULL ) {
        struct request_t * request = NULL;
        CURLcode result = message->data.result; /* `message` ends with the handle's removal */
        if ( message->msg == CURLMSG_DONE &&
             curl_easy_getinfo( message->easy_handle, CURLINFO_PRIVATE, (char **) &request ) == CURLE_OK && request )
            request_finish( request, result );
    }
}

/* Waits for one, for the start and the end of a program: never in a game loop. Its own timeout bounds it. 1: it worked. */
static inline int request_wait( struct request_t * request )
{
    int descriptors = 0;
    while ( request->state == REQUEST_UNDER_WAY ) {
        requests_update( request->requests );
        if ( request->state == REQUEST_UNDER_WAY )
            curl_multi_poll( request->requests->multi, NULL, 0, REQUEST_FINISH_MILLISECONDS, &descriptors );
    }
    return request->state == REQUEST_WORKED;
}

#endif
