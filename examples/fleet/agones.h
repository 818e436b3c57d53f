/*  A game server's side of Agones: the seven calls of its SDK that a server needs, over the REST gateway that Agones puts
    beside every game server (localhost, AGONES_SDK_HTTP_PORT). None of them waits, but for the two that stand before and
    behind the game loop.

        struct agones_t agones;
        struct agones_gameserver_t self;
        const char * why;
        if ( agones_open( &agones, &requests ) && agones_gameserver( &agones, 30.0, &stop, &self, &why ) )
            ... create the server with self.address as one of its public_addresses, and start it ...
        for ( ;; ) {                                // the game loop
            while ( agones_next_allocation( &agones, &allocation ) )
                ... a matchmaker took this server: players are on their way
            agones_update( &agones, now, players > 0 || players are on their way );
            agones_count( &agones, now, players );
        }
        agones_shutdown( &agones );

    ready       once the server runs, and again when it has emptied
    health      every 2 seconds, from the game loop itself: a loop that hangs is not healthy, and Agones replaces it
    allocate    when the first player is in, so that a fleet that shrinks leaves this server alone
    shutdown    at the end: Agones takes the pod away and puts a fresh one in its place
    gameserver  before the start: the name, and the address and port that players dial
    watch       a stream of what changes: that the server was allocated from outside, with which labels and annotations
    counters    how many players are in, for allocations and autoscalers that go by them; where the SDK has counters

    One header, for one program unit, after netcode.h; needs libcurl and cJSON:
        cc program.c -lsodium $(pkg-config --cflags --libs libcurl libcjson) */

#ifndef FLEET_AGONES_H
#define FLEET_AGONES_H

#include "agones_address.h"
#include "request.h"

#include <cjson/cJSON.h>
#include <signal.h>

#define AGONES_DEFAULT_PORT 9358
#define AGONES_HEALTH_SECONDS 2.0
#define AGONES_RETRY_SECONDS 1.0
#define AGONES_SHUTDOWN_TRIES 2
#define AGONES_STATE_SECONDS 0.5        /* at most, until a state that is on its way is heard */
#define AGONES_WATCH_RETRY_SECONDS 30.0 /* at most, while the watch does not work */
#define AGONES_COUNT_SECONDS 0.5        /* between two counts */
#define AGONES_COUNTER "players"
#define AGONES_STALE_SECONDS 5.0 /* so long the watch may still tell of the state before the last call */
#define AGONES_LABEL_BYTES 64
#define AGONES_CLIENTS_BYTES 2048

/* The state that was reported to Agones last. */
#define AGONES_NOTHING 0
#define AGONES_READY 1
#define AGONES_ALLOCATED 2

/* What an allocation from outside says; "" and 0 where it does not. */
struct agones_allocation_t {
    char match[AGONES_LABEL_BYTES];     /* the label netcode-match */
    char mode[AGONES_LABEL_BYTES];      /* the label netcode-mode */
    char clients[AGONES_CLIENTS_BYTES]; /* the annotation netcode-clients: ids with commas */
    double seconds;                     /* the annotation netcode-seconds: how long their tokens live */
};

struct agones_t {
    struct request_t gameserver;
    struct request_t health;
    struct request_t ready;
    struct request_t allocate;
    struct request_t shutdown;
    struct request_t watch;   /* its answer is the beginning of the next line */
    struct request_t counter; /* v1beta1, or v1alpha1 where the SDK is older */
    int told;
    double next_health;
    double next_try;
    double next_watch;
    double watch_pause;
    uint64_t watched;  /* objects that came */
    int is_ready_seen; /* by the watch, since we said so */
    int is_taken;      /* from outside, since we said ready: that news can be quicker than the answer */
    double ready_at;
    char match[AGONES_LABEL_BYTES]; /* of the last allocation */
    struct agones_allocation_t allocation;
    int is_allocated;                /* and it was not fetched yet */
    struct agones_allocation_t seen; /* by the watch last */
    int is_allocated_seen;
    int counter_calls; /* that were tried and are not known; 2: there are no counters */
    int counted;       /* what was reported last; -1: nothing */
    int counting;      /* what is being reported */
    double next_count;
    double count_pause;
};

struct agones_gameserver_t {
    char name[64]; /* a Kubernetes name; empty when it has none that fits */
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

/* ---- what the gateway says about this game server ---- */

/* Names go into logs and reports, so only what Kubernetes allows is taken. */
static void agones_find_name( const cJSON * root, char name[64] )
{
    const cJSON * meta = cJSON_GetObjectItemCaseSensitive( root, "object_meta" );
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( meta, "name" );
    name[0] = '\0';
    if ( cJSON_IsString( item ) && strlen( item->valuestring ) < 64 &&
         strspn( item->valuestring, "abcdefghijklmnopqrstuvwxyz0123456789.-" ) == strlen( item->valuestring ) )
        snprintf( name, 64, "%s", item->valuestring );
}

/* Returns NULL, or why the text is not enough. */
static const char * agones_parse( const char * text, struct agones_gameserver_t * self )
{
    struct netcode_address_t address;
    cJSON * root = cJSON_Parse( text );
    const cJSON * status = cJSON_GetObjectItemCaseSensitive( root, "status" );
    const char * why = NULL;
    memset( self, 0, sizeof( *self ) );
    memset( &address, 0, sizeof( address ) );
    if ( !root )
        why = "the answer is no JSON";
    else if ( !cJSON_IsObject( status ) )
        why = "the answer has no status";
    else if ( !agones_find_address( status, &address ) )
        why = "the status has no IP address, neither as its address nor as an ExternalIP among its addresses";
    else if ( !( address.port = agones_find_port( status ) ) )
        why = "the status has no port: is there one in the Fleet, and is its portPolicy not None?";
    if ( !why ) {
        netcode_address_to_string( &address, self->address );
        agones_find_name( root, self->name );
    }
    cJSON_Delete( root );
    return why;
}

/* AGONES_SDK_HTTP_PORT, or 9358; 0 when it says nonsense. */
static int agones_port( void )
{
    const char * text = getenv( "AGONES_SDK_HTTP_PORT" );
    char * end = NULL;
    if ( !text || !*text )
        return AGONES_DEFAULT_PORT;
    long port = strtol( text, &end, 10 );
    return *end == '\0' && port >= 1 && port <= 65535 ? (int) port : 0;
}

/* ---- the watch ---- */

/* A label or an annotation; "" when it is not there, or too long. */
static void agones_read_text( const cJSON * map, const char * name, char * text, size_t bytes )
{
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( map, name );
    text[0] = '\0';
    if ( cJSON_IsString( item ) && strlen( item->valuestring ) < bytes )
        snprintf( text, bytes, "%s", item->valuestring );
}

static void agones_read_allocation( const cJSON * meta, struct agones_allocation_t * allocation )
{
    char number[16];
    char * end = NULL;
    const cJSON * labels = cJSON_GetObjectItemCaseSensitive( meta, "labels" );
    const cJSON * annotations = cJSON_GetObjectItemCaseSensitive( meta, "annotations" );
    agones_read_text( labels, "netcode-match", allocation->match, sizeof( allocation->match ) );
    agones_read_text( labels, "netcode-mode", allocation->mode, sizeof( allocation->mode ) );
    agones_read_text( annotations, "netcode-clients", allocation->clients, sizeof( allocation->clients ) );
    agones_read_text( annotations, "netcode-seconds", number, sizeof( number ) );
    long seconds = strtol( number, &end, 10 );
    allocation->seconds = number[0] && *end == '\0' && seconds >= 1 && seconds <= 86400 ? (double) seconds : 0.0;
}

/*  Labels and annotations stay when a match is over, so an allocation is a new one when its match is; or, where it names
    none, when the server was Ready before and we did not say *allocate* ourselves. */
static int agones_is_from_outside( const struct agones_t * agones, double now )
{
    int was_ready = agones->told == AGONES_READY || agones->ready.state != REQUEST_IDLE;
    if ( agones->seen.match[0] && strcmp( agones->seen.match, agones->match ) != 0 )
        return 1;
    return was_ready && agones->allocate.state == REQUEST_IDLE &&
           ( agones->is_ready_seen ||
             ( agones->ready.state == REQUEST_IDLE && now - agones->ready_at > AGONES_STALE_SECONDS ) );
}

/* The server is Allocated, by what the watch reported last: if that was not us, it is news. */
static void agones_judge( struct agones_t * agones, double now )
{
    if ( !agones->is_allocated_seen || !agones_is_from_outside( agones, now ) )
        return;
    agones->allocation = agones->seen;
    /* What an earlier allocation has left there says nothing of this one. */
    if ( !strcmp( agones->seen.match, agones->match ) )
        memset( &agones->allocation, 0, sizeof( agones->allocation ) );
    memcpy( agones->match, agones->seen.match, sizeof( agones->match ) );
    agones->told = AGONES_ALLOCATED;
    agones->is_taken = 1;
    agones->is_ready_seen = 0;
    agones->is_allocated = 1;
}

/* One object of the stream: {"result": the game server}. 0 when it is none. */
static int agones_read_event( struct agones_t * agones, double now, const char * text )
{
    cJSON * root = cJSON_Parse( text );
    const cJSON * result = cJSON_GetObjectItemCaseSensitive( root, "result" );
    const cJSON * status = cJSON_GetObjectItemCaseSensitive( result, "status" );
    const cJSON * state = cJSON_GetObjectItemCaseSensitive( status, "state" );
    int good = cJSON_IsString( state );
    if ( good ) {
        agones_read_allocation( cJSON_GetObjectItemCaseSensitive( result, "object_meta" ), &agones->seen );
        agones->is_allocated_seen = !strcmp( state->valuestring, "Allocated" );
        if ( !strcmp( state->valuestring, "Ready" ) )
            agones->is_ready_seen = 1;
        agones_judge( agones, now );
        agones->watched++;
    }
    cJSON_Delete( root );
    return good;
}

/* libcurl brings a piece of the stream: each line is an object. Garbage, and a line without end, end the stream. */
static size_t agones_take( char * data, size_t one, size_t bytes, void * context )
{
    struct agones_t * agones = (struct agones_t *) context;
    struct request_t * watch = &agones->watch;
    long status = 0;
    (void) one; /* always 1 */
    curl_easy_getinfo( watch->easy, CURLINFO_RESPONSE_CODE, &status );
    if ( status < 200 || status > 299 )
        return bytes; /* an error's text; the status says enough */
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( data[i] != '\n' ) {
            if ( watch->bytes == REQUEST_ANSWER_BYTES )
                return 0;
            watch->answer[watch->bytes++] = data[i];
            continue;
        }
        watch->answer[watch->bytes] = '\0';
        if ( watch->bytes && !agones_read_event( agones, netcode_time(), watch->answer ) )
            return 0;
        watch->bytes = 0;
    }
    return bytes;
}

/* Begins the stream, and begins it anew when it has ended: soon where it had worked, else after longer and longer. */
static void agones_keep_watching( struct agones_t * agones, double now )
{
    struct request_t * watch = &agones->watch;
    if ( watch->state == REQUEST_UNDER_WAY ) {
        agones_judge( agones, now );
        return;
    }
    agones->is_allocated_seen = 0; /* no watch reports changes now */
    if ( watch->state != REQUEST_IDLE ) {
        agones->watch_pause =
            agones->watched || agones->watch_pause <= 0.0 ? AGONES_RETRY_SECONDS : agones->watch_pause * 2.0;
        if ( agones->watch_pause > AGONES_WATCH_RETRY_SECONDS )
            agones->watch_pause = AGONES_WATCH_RETRY_SECONDS;
        agones->watched = 0;
        agones->next_watch = now + agones->watch_pause;
        watch->state = REQUEST_IDLE;
    }
    if ( now >= agones->next_watch )
        request_send( watch, NULL );
}

/* 1, once for each time that the server was allocated from outside. */
static int agones_next_allocation( struct agones_t * agones, struct agones_allocation_t * allocation )
{
    if ( !agones->is_allocated )
        return 0;
    *allocation = agones->allocation;
    agones->is_allocated = 0;
    return 1;
}

/* ---- the counter of players ---- */

/* An SDK that does not know the call is asked by its older name, and then no more. */
static void agones_finish_count( struct agones_t * agones, double now )
{
    char url[96];
    struct request_t * counter = &agones->counter;
    if ( counter->state == REQUEST_WORKED ) {
        agones->counted = agones->counting;
        agones->count_pause = AGONES_COUNT_SECONDS;
    } else if ( request_is_unknown( counter ) ) {
        agones->counter_calls++;
        agones->count_pause = 0.0;
        snprintf( url, sizeof( url ), "http://localhost:%d/v1alpha1/counters/" AGONES_COUNTER, agones_port() );
        if ( agones->counter_calls == 1 && curl_easy_setopt( counter->easy, CURLOPT_URL, url ) == CURLE_OK )
            return;
        agones->counter_calls = 2;
        counter->requests->log( counter->requests->context,
                                "Agones: its SDK counts no players: the Fleet needs a "
                                "counter \"" AGONES_COUNTER "\", and Agones 1.37 or newer" );
    } else {
        agones->count_pause =
            agones->count_pause < AGONES_RETRY_SECONDS ? AGONES_RETRY_SECONDS : agones->count_pause * 2.0;
        if ( agones->count_pause > AGONES_WATCH_RETRY_SECONDS )
            agones->count_pause = AGONES_WATCH_RETRY_SECONDS;
    }
    agones->next_count = now + agones->count_pause;
}

/* Once a tick, behind requests_update; never waits. Reports how many players are in, when that has changed. */
static void agones_count( struct agones_t * agones, double now, int players )
{
    char body[32];
    struct request_t * counter = &agones->counter;
    if ( counter->state == REQUEST_UNDER_WAY || agones->counter_calls > 1 )
        return;
    if ( counter->state != REQUEST_IDLE )
        agones_finish_count( agones, now );
    counter->state = REQUEST_IDLE;
    if ( agones->counter_calls > 1 || agones->told == AGONES_NOTHING || players == agones->counted ||
         now < agones->next_count )
        return;
    agones->counting = players;
    snprintf( body, sizeof( body ), "{\"count\":\"%d\"}", players ); /* 64-bit numbers are strings there */
    request_send( counter, body );
}

/* ---- the calls ---- */

static int agones_open_one( struct request_t * request, struct requests_t * requests, const char * name, int port )
{
    char url[64];
    snprintf( url, sizeof( url ), "http://localhost:%d/%s", port, strrchr( name, ' ' ) + 1 );
    return request_open( request, requests, name, url );
}

/* The stream has no end that could be late, and what it brings is taken line by line. */
static int agones_open_watch( struct agones_t * agones, struct requests_t * requests, int port )
{
    char url[64];
    struct request_t * watch = &agones->watch;
    snprintf( url, sizeof( url ), "http://localhost:%d/watch/gameserver", port );
    int good = request_open( watch, requests, "Agones watch", url ) &&
               curl_easy_setopt( watch->easy, CURLOPT_TIMEOUT_MS, 0l ) == CURLE_OK &&
               curl_easy_setopt( watch->easy, CURLOPT_WRITEFUNCTION, agones_take ) == CURLE_OK &&
               curl_easy_setopt( watch->easy, CURLOPT_WRITEDATA, agones ) == CURLE_OK;
    watch->may_be_unknown = 1;
    return good;
}

static int agones_open_counter( struct agones_t * agones, struct requests_t * requests, int port )
{
    char url[96];
    struct request_t * counter = &agones->counter;
    snprintf( url, sizeof( url ), "http://localhost:%d/v1beta1/counters/" AGONES_COUNTER, port );
    int good = request_open( counter, requests, "Agones counters", url ) &&
               curl_easy_setopt( counter->easy, CURLOPT_CUSTOMREQUEST, "PATCH" ) == CURLE_OK;
    counter->may_be_unknown = 1;
    agones->counted = -1;
    return good;
}

static void agones_close( struct agones_t * agones )
{
    request_close( &agones->gameserver );
    request_close( &agones->health );
    request_close( &agones->ready );
    request_close( &agones->allocate );
    request_close( &agones->shutdown );
    request_close( &agones->watch );
    request_close( &agones->counter );
}

/* 0 when memory is short, or AGONES_SDK_HTTP_PORT is no port. */
static int agones_open( struct agones_t * agones, struct requests_t * requests )
{
    int port = agones_port();
    memset( agones, 0, sizeof( *agones ) );
    if ( port && agones_open_one( &agones->gameserver, requests, "Agones gameserver", port ) &&
         agones_open_one( &agones->health, requests, "Agones health", port ) &&
         agones_open_one( &agones->ready, requests, "Agones ready", port ) &&
         agones_open_one( &agones->allocate, requests, "Agones allocate", port ) &&
         agones_open_one( &agones->shutdown, requests, "Agones shutdown", port ) &&
         agones_open_watch( agones, requests, port ) && agones_open_counter( agones, requests, port ) )
        return 1;
    agones_close( agones );
    return 0;
}

/*  Before the game loop: asks until the gateway, which may start after us, knows our address and port. Gives up after
    `seconds`, or when *stop is set: then `self->address` is empty, and `why` says what was last missing. */
static int agones_gameserver( struct agones_t * agones, double seconds, const volatile sig_atomic_t * stop,
                              struct agones_gameserver_t * self, const char ** why )
{
    double until = netcode_time() + seconds;
    memset( self, 0, sizeof( *self ) );
    *why = "a signal stopped it";
    while ( !*stop ) {
        request_send( &agones->gameserver, NULL );
        *why = request_wait( &agones->gameserver ) ? agones_parse( agones->gameserver.answer, self )
                                                   : agones->gameserver.error;
        if ( !*why )
            return 1;
        if ( netcode_time() >= until )
            return 0;
        netcode_sleep( AGONES_RETRY_SECONDS / 4 );
    }
    return 0;
}

/* Ready or allocated, whichever is meant and was not reported yet: one at a time, so that they arrive in order. */
static void agones_tell( struct agones_t * agones, double now, int wanted )
{
    struct request_t * request = wanted == AGONES_ALLOCATED ? &agones->allocate : &agones->ready;
    if ( agones->ready.state == REQUEST_UNDER_WAY || agones->allocate.state == REQUEST_UNDER_WAY )
        return;
    if ( agones->ready.state == REQUEST_FAILED || agones->allocate.state == REQUEST_FAILED )
        agones->next_try = now + AGONES_RETRY_SECONDS;
    if ( agones->ready.state == REQUEST_WORKED ) {
        agones->told = agones->is_taken ? AGONES_ALLOCATED : AGONES_READY;
        agones->ready_at = now;
        agones->is_allocated_seen = 0; /* what came before is our own allocation; a late watch says so for long */
    }
    if ( agones->allocate.state == REQUEST_WORKED )
        agones->told = AGONES_ALLOCATED;
    agones->ready.state = REQUEST_IDLE;
    agones->allocate.state = REQUEST_IDLE;
    /* A server has to be Ready once before it can be Allocated. */
    if ( agones->told == AGONES_NOTHING )
        request = &agones->ready;
    if ( agones->told != wanted && now >= agones->next_try ) {
        agones->is_ready_seen = 0;
        agones->is_taken = 0;
        request_send( request, "{}" );
    }
}

/* Once a tick, behind requests_update; never waits. `busy`: a player is connected, or expected. */
static void agones_update( struct agones_t * agones, double now, int busy )
{
    agones_tell( agones, now, busy ? AGONES_ALLOCATED : AGONES_READY );
    agones_keep_watching( agones, now );
    if ( now >= agones->next_health && agones->health.state != REQUEST_UNDER_WAY ) {
        agones->next_health = now + AGONES_HEALTH_SECONDS;
        request_send( &agones->health, "{}" );
    }
}

/* A state that is on its way on one connection must not arrive behind the shutdown on another, so it is heard first. */
static void agones_finish_state( struct agones_t * agones )
{
    double until = netcode_time() + AGONES_STATE_SECONDS;
    int descriptors = 0;
    while ( ( agones->ready.state == REQUEST_UNDER_WAY || agones->allocate.state == REQUEST_UNDER_WAY ) &&
            netcode_time() < until ) {
        requests_update( agones->ready.requests );
        curl_multi_poll( agones->ready.requests->multi, NULL, 0, 10, &descriptors );
    }
}

/* Behind the game loop. Waits for the answer, a few seconds at most. 1: Agones has heard it. */
static int agones_shutdown( struct agones_t * agones )
{
    int heard = 0;
    agones_finish_state( agones );
    request_forget( &agones->ready );
    request_forget( &agones->allocate );
    request_forget( &agones->watch );
    request_forget( &agones->counter );
    for ( int i = 0; i < AGONES_SHUTDOWN_TRIES && !heard; i++ ) {
        request_send( &agones->shutdown, "{}" );
        heard = request_wait( &agones->shutdown );
    }
    return heard;
}

#endif
