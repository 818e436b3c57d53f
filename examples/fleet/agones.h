/*  A game server's side of Agones: the five calls of its SDK that a server needs, over the REST gateway that Agones puts
    beside every game server (localhost, AGONES_SDK_HTTP_PORT). None of them waits, but for the two that stand before and
    behind the game loop.

        struct agones_t agones;
        struct agones_gameserver_t self;
        const char * why;
        if ( agones_open( &agones, &requests ) && agones_gameserver( &agones, 30.0, &stop, &self, &why ) )
            ... create the server with self.address as one of its public_addresses, and start it ...
        for ( ;; )                                  // the game loop
            agones_update( &agones, now, players > 0 );
        agones_shutdown( &agones );

    ready       once the server runs, and again when it has emptied
    health      every 2 seconds, from the game loop itself: a loop that hangs is not healthy, and Agones replaces it
    allocate    when the first player is in, so that a fleet that shrinks leaves this server alone
    shutdown    at the end: Agones takes the pod away and puts a fresh one in its place
    gameserver  before the start: the name, and the address and port that players dial

    One header, for one program unit, after netcode.h; needs libcurl and cJSON:
        cc program.c -lsodium $(pkg-config --cflags --libs libcurl libcjson) */

#ifndef FLEET_AGONES_H
#define FLEET_AGONES_H

#include "request.h"

#include <cjson/cJSON.h>
#include <signal.h>

#define AGONES_DEFAULT_PORT 9358
#define AGONES_HEALTH_SECONDS 2.0
#define AGONES_RETRY_SECONDS 1.0
#define AGONES_PORT_NAME "netcode" /* of several ports, the one of this name; else the first */
#define AGONES_SHUTDOWN_TRIES 2

/* What Agones was told last. */
#define AGONES_NOTHING 0
#define AGONES_READY 1
#define AGONES_ALLOCATED 2

struct agones_t {
    struct request_t gameserver;
    struct request_t health;
    struct request_t ready;
    struct request_t allocate;
    struct request_t shutdown;
    int told;
    double next_health;
    double next_try;
};

struct agones_gameserver_t {
    char name[64]; /* a Kubernetes name; empty when it has none that fits */
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

/* ---- what the gateway says about this game server ---- */

static int agones_is_address( const cJSON * item, struct netcode_address_t * address )
{
    return cJSON_IsString( item ) && netcode_parse_address( item->valuestring, address ) == NETCODE_OK &&
           !address->port;
}

/*  status.address; where that is a host's name, which tokens can not carry, the first ExternalIP among
    status.addresses. */
static int agones_find_address( const cJSON * status, struct netcode_address_t * address )
{
    const cJSON * each = NULL;
    if ( agones_is_address( cJSON_GetObjectItemCaseSensitive( status, "address" ), address ) )
        return 1;
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( status, "addresses" ) )
    {
        const cJSON * type = cJSON_GetObjectItemCaseSensitive( each, "type" );
        if ( cJSON_IsString( type ) && !strcmp( type->valuestring, "ExternalIP" ) &&
             agones_is_address( cJSON_GetObjectItemCaseSensitive( each, "address" ), address ) )
            return 1;
    }
    return 0;
}

/* 0 when there is none. */
static uint16_t agones_find_port( const cJSON * status )
{
    uint16_t found = 0;
    const cJSON * each = NULL;
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( status, "ports" ) )
    {
        const cJSON * name = cJSON_GetObjectItemCaseSensitive( each, "name" );
        const cJSON * port = cJSON_GetObjectItemCaseSensitive( each, "port" );
        int ours = cJSON_IsString( name ) && !strcmp( name->valuestring, AGONES_PORT_NAME );
        if ( !cJSON_IsNumber( port ) || !( port->valuedouble >= 1.0 && port->valuedouble <= 65535.0 ) ||
             port->valuedouble != (double) port->valueint )
            continue;
        if ( !found || ours )
            found = (uint16_t) port->valueint;
        if ( ours )
            break;
    }
    return found;
}

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

/* ---- the calls ---- */

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

static int agones_open_one( struct request_t * request, struct requests_t * requests, const char * name, int port )
{
    char url[64];
    snprintf( url, sizeof( url ), "http://localhost:%d/%s", port, strrchr( name, ' ' ) + 1 );
    return request_open( request, requests, name, url );
}

static void agones_close( struct agones_t * agones )
{
    request_close( &agones->gameserver );
    request_close( &agones->health );
    request_close( &agones->ready );
    request_close( &agones->allocate );
    request_close( &agones->shutdown );
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
         agones_open_one( &agones->shutdown, requests, "Agones shutdown", port ) )
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
    *why = "it was told to stop";
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

/* Ready or allocated, whichever is meant and was not told yet: one at a time, so that they arrive in their order. */
static void agones_tell( struct agones_t * agones, double now, int wanted )
{
    struct request_t * request = wanted == AGONES_ALLOCATED ? &agones->allocate : &agones->ready;
    if ( agones->ready.state == REQUEST_UNDER_WAY || agones->allocate.state == REQUEST_UNDER_WAY )
        return;
    if ( agones->ready.state == REQUEST_FAILED || agones->allocate.state == REQUEST_FAILED )
        agones->next_try = now + AGONES_RETRY_SECONDS;
    if ( agones->ready.state == REQUEST_WORKED )
        agones->told = AGONES_READY;
    if ( agones->allocate.state == REQUEST_WORKED )
        agones->told = AGONES_ALLOCATED;
    agones->ready.state = REQUEST_IDLE;
    agones->allocate.state = REQUEST_IDLE;
    /* A server has to be Ready once before it can be Allocated. */
    if ( agones->told == AGONES_NOTHING )
        request = &agones->ready;
    if ( agones->told != wanted && now >= agones->next_try )
        request_send( request, "{}" );
}

/* Once a tick, behind requests_update; never waits. `busy`: somebody plays here. */
static void agones_update( struct agones_t * agones, double now, int busy )
{
    agones_tell( agones, now, busy ? AGONES_ALLOCATED : AGONES_READY );
    if ( now >= agones->next_health && agones->health.state != REQUEST_UNDER_WAY ) {
        agones->next_health = now + AGONES_HEALTH_SECONDS;
        request_send( &agones->health, "{}" );
    }
}

/* Behind the game loop. Waits for the answer, a few seconds at most. 1: Agones has heard it. */
static int agones_shutdown( struct agones_t * agones )
{
    int heard = 0;
    request_forget( &agones->ready );
    request_forget( &agones->allocate );
    for ( int i = 0; i < AGONES_SHUTDOWN_TRIES && !heard; i++ ) {
        request_send( &agones->shutdown, "{}" );
        heard = request_wait( &agones->shutdown );
    }
    return heard;
}

#endif
