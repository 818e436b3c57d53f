/*  A platform's tickets: the game's client gets one from the platform, and this asks the platform's web API whose it is, as
    Steam's ISteamUserAuth/AuthenticateUserTicket answers it. No call waits; so many are asked at a time, and no more.

        tickets_open( &tickets, &requests, url, key, app_id, ca_file )
        if ( !tickets_ask( &tickets, hex, on_ticket, context ) ) ...     // 0: all are busy
        for ( ;; ) {
            requests_update( &requests );
            tickets_update( &tickets );                                  // calls on_ticket, once for each that was asked
        }

    Include it behind ../fleet/request.h, identity.h and oidc.h. */

#ifndef BACKEND_TICKET_H
#define BACKEND_TICKET_H

#define TICKET_URL_BYTES 512
#define TICKET_KEY_BYTES 128
#define TICKET_MIN_CHARACTERS 16
#define TICKET_MAX_CHARACTERS 5120 /* hex of 2560 bytes, the most that Steam's are */
#define TICKET_SLOTS 16            /* asked at a time */

enum ticket_result_t { TICKET_OK, TICKET_UNKNOWN, TICKET_BANNED, TICKET_UNREACHABLE };

/* `id` is 0 but for TICKET_OK. */
typedef void ( *ticket_done_t )( void * context, enum ticket_result_t result, uint64_t id );

struct ticket_slot_t {
    struct outgoing_t request;
    ticket_done_t done; /* NULL: free */
    void * context;
};

struct tickets_t {
    const char * url;
    char key[TICKET_KEY_BYTES];
    uint32_t app_id;
    struct ticket_slot_t slots[TICKET_SLOTS];
};

static int ticket_is_hex( const char * text )
{
    size_t bytes = text ? strlen( text ) : 0;
    return bytes >= TICKET_MIN_CHARACTERS && bytes <= TICKET_MAX_CHARACTERS && bytes % 2 == 0 &&
           strspn( text, "0123456789abcdefABCDEF" ) == bytes;
}

static void tickets_close( struct tickets_t * tickets )
{
    for ( int i = 0; i < TICKET_SLOTS; i++ )
        request_close( &tickets->slots[i].request );
    sodium_memzero( tickets, sizeof( *tickets ) );
}

/* 0 when memory is short. `url` must outlive it; the key is copied to it before. */
static int tickets_open( struct tickets_t * tickets, struct requests_t * requests, const char * ca_file )
{
    for ( int i = 0; i < TICKET_SLOTS; i++ ) {
        struct outgoing_t * request = &tickets->slots[i].request;
        if ( !request_open( request, requests, "platform", tickets->url ) || !outgoing_secure( request, ca_file ) ) {
            tickets_close( tickets );
            return 0;
        }
    }
    return 1;
}

/* The key stands in the address, as the platform wants it: neither libcurl's errors nor our log hold addresses. */
static int ticket_send( const struct tickets_t * tickets, struct outgoing_t * request, const char * hex )
{
    static char url[TICKET_URL_BYTES + 3 * TICKET_KEY_BYTES + TICKET_MAX_CHARACTERS + 64];
    char * key = curl_easy_escape( request->easy, tickets->key, 0 );
    if ( !key )
        return 0;
    snprintf( url, sizeof( url ), "%s%ckey=%s&appid=%lu&ticket=%s", tickets->url,
              strchr( tickets->url, '?' ) ? '&' : '?', key, (unsigned long) tickets->app_id, hex );
    int good = curl_easy_setopt( request->easy, CURLOPT_URL, url ) == CURLE_OK;
    sodium_memzero( url, sizeof( url ) );
    sodium_memzero( key, strlen( key ) );
    curl_free( key );
    if ( good )
        request_send( request, NULL );
    return good;
}

/* 0 when it can not be asked now. Else `done` is called once, from tickets_update. */
static int tickets_ask( struct tickets_t * tickets, const char * hex, ticket_done_t done, void * context )
{
    for ( int i = 0; i < TICKET_SLOTS; i++ ) {
        struct ticket_slot_t * slot = &tickets->slots[i];
        if ( slot->done )
            continue;
        if ( !ticket_send( tickets, &slot->request, hex ) )
            return 0;
        slot->done = done;
        slot->context = context;
        return 1;
    }
    return 0;
}

/* A decimal number of 64 bits other than 0, or 0: ids are strings, because JavaScript's numbers end at 2^53. */
static uint64_t ticket_read_id( const char * text )
{
    char * end = NULL;
    errno = 0;
    if ( !text || *text < '1' || *text > '9' )
        return 0;
    unsigned long long id = strtoull( text, &end, 10 );
    return *end || errno ? 0 : (uint64_t) id;
}

/* Bans must be reported: an answer without them is none. */
static enum ticket_result_t ticket_read_params( const cJSON * params, uint64_t * id )
{
    const char * result = identity_text( params, "result" );
    const cJSON * platform = cJSON_GetObjectItemCaseSensitive( params, "vacbanned" );
    const cJSON * publisher = cJSON_GetObjectItemCaseSensitive( params, "publisherbanned" );
    if ( !result )
        return TICKET_UNREACHABLE;
    if ( strcmp( result, "OK" ) != 0 )
        return TICKET_UNKNOWN;
    *id = ticket_read_id( identity_text( params, "steamid" ) );
    if ( !*id || !cJSON_IsBool( platform ) || !cJSON_IsBool( publisher ) )
        return TICKET_UNREACHABLE;
    return cJSON_IsTrue( platform ) || cJSON_IsTrue( publisher ) ? TICKET_BANNED : TICKET_OK;
}

/* What the platform says: response.params for a good ticket, response.error for another; anything else is no answer. */
static enum ticket_result_t ticket_read_answer( const struct outgoing_t * request, uint64_t * id )
{
    enum ticket_result_t result = TICKET_UNREACHABLE;
    *id = 0;
    if ( request->state != REQUEST_WORKED )
        return result;
    cJSON * json = identity_parse( request->answer, request->bytes );
    const cJSON * response = cJSON_GetObjectItemCaseSensitive( json, "response" );
    const cJSON * params = cJSON_GetObjectItemCaseSensitive( response, "params" );
    const cJSON * error = cJSON_GetObjectItemCaseSensitive( response, "error" );
    if ( cJSON_IsObject( error ) && !params )
        result = TICKET_UNKNOWN;
    else if ( cJSON_IsObject( params ) && !error && !identity_has_twins( params ) )
        result = ticket_read_params( params, id );
    cJSON_Delete( json );
    if ( result != TICKET_OK )
        *id = 0;
    return result;
}

/* Call it in each turn of the loop. */
static void tickets_update( struct tickets_t * tickets )
{
    for ( int i = 0; i < TICKET_SLOTS; i++ ) {
        struct ticket_slot_t * slot = &tickets->slots[i];
        if ( !slot->done || slot->request.state == REQUEST_UNDER_WAY )
            continue;
        uint64_t id = 0;
        enum ticket_result_t result = ticket_read_answer( &slot->request, &id );
        ticket_done_t done = slot->done;
        slot->done = NULL; /* before the call, which may ask again */
        done( slot->context, result, id );
    }
}

#endif
