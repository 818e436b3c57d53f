/*  Asks an Agones allocator service for a game server, over its REST interface (POST /gameserverallocation, TLS with
    certificates of both sides), without waiting: the body of the request, what stands in the answer, and nothing else.
    match.h beside it uses this; ../fleet/request.h moves the bytes.

    The request takes a Ready server by its label netcode-region where the mode has regions, and by agones.dev/fleet
    where the mode names Fleets or has no regions. It gives it the labels netcode-match and netcode-mode, and the
    annotations netcode-clients (the ids of the players, with commas) and netcode-seconds (how long their tokens live):
    the server learns them by `watch`.

    One header, for one program unit, behind full.h and matchmaking.h; needs libcurl and cJSON. */

#ifndef BACKEND_ALLOCATOR_H
#define BACKEND_ALLOCATOR_H

#include "../fleet/agones_address.h"

#include <cjson/cJSON.h>

#define ALLOCATOR_MILLISECONDS 5000l /* an allocation may go on to another cluster */
#define ALLOCATOR_PATH "/gameserverallocation"
#define ALLOCATOR_FLEET "netcode" /* of modes that name none, and have no regions */

struct allocator_options_t {
    const char * url;     /* https://HOST[:PORT]; NULL: there is no allocator */
    const char * ca_file; /* the only authority that is trusted; NULL: the system's are */
    const char * certificate_file;
    const char * key_file;
    const char * kubernetes_namespace;
};

/* What came of it. */
struct allocator_answer_t {
    char name[64];
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
};

/* 0 when memory is short, or libcurl does not take the files. */
static int allocator_open( struct outgoing_t * request, struct requests_t * requests,
                           const struct allocator_options_t * options )
{
    char url[512];
    int bytes = snprintf( url, sizeof( url ), "%s" ALLOCATOR_PATH, options->url );
    return bytes > 0 && (size_t) bytes < sizeof( url ) && request_open( request, requests, "allocator", url ) &&
           outgoing_secure( request, options->ca_file ) &&
           curl_easy_setopt( request->easy, CURLOPT_SSLCERT, options->certificate_file ) == CURLE_OK &&
           curl_easy_setopt( request->easy, CURLOPT_SSLKEY, options->key_file ) == CURLE_OK &&
           /* A connection that is used again may be dead; libcurl then asks a second time, which could allocate twice. */
           curl_easy_setopt( request->easy, CURLOPT_FRESH_CONNECT, 1l ) == CURLE_OK &&
           curl_easy_setopt( request->easy, CURLOPT_FORBID_REUSE, 1l ) == CURLE_OK &&
           curl_easy_setopt( request->easy, CURLOPT_TIMEOUT_MS, ALLOCATOR_MILLISECONDS ) == CURLE_OK;
}

/* What Kubernetes takes for the value of a label, of what mm_is_name takes. */
static int allocator_is_label( const char * name )
{
    return !strchr( "-_.", name[0] ) && !strchr( "-_.", name[strlen( name ) - 1] );
}

/*  All servers of a Fleet have the labels of its template, and so one region: there are as many Fleets as regions, and
    no two have one name. Where the mode names none, the region's label alone finds them. */
static int allocator_add_labels( cJSON * labels, const struct mm_mode_t * mode, int region )
{
    int is_anywhere = !strcmp( mode->regions[region], MM_ANYWHERE );
    const char * fleet = mode->num_fleets ? mode->fleets[region] : is_anywhere ? ALLOCATOR_FLEET : NULL;
    return ( !fleet || cJSON_AddStringToObject( labels, "agones.dev/fleet", fleet ) ) &&
           ( is_anywhere || cJSON_AddStringToObject( labels, "netcode-region", mode->regions[region] ) );
}

static int allocator_add_selector( cJSON * root, const struct mm_mode_t * mode, int region )
{
    cJSON * selectors = cJSON_AddArrayToObject( root, "gameServerSelectors" );
    cJSON * selector = cJSON_CreateObject();
    cJSON * labels = cJSON_AddObjectToObject( selector, "matchLabels" );
    if ( !cJSON_AddItemToArray( selectors, selector ) ) {
        cJSON_Delete( selector );
        return 0;
    }
    return allocator_add_labels( labels, mode, region ) &&
           cJSON_AddStringToObject( selector, "gameServerState", "READY" );
}

static int allocator_add_metadata( cJSON * root, const struct mm_match_t * match, const char * mode,
                                   const char * clients, int seconds )
{
    char number[16];
    cJSON * metadata = cJSON_AddObjectToObject( root, "metadata" );
    cJSON * labels = cJSON_AddObjectToObject( metadata, "labels" );
    cJSON * annotations = cJSON_AddObjectToObject( metadata, "annotations" );
    snprintf( number, sizeof( number ), "%d", seconds );
    return cJSON_AddStringToObject( labels, "netcode-match", match->id ) &&
           cJSON_AddStringToObject( labels, "netcode-mode", mode ) &&
           cJSON_AddStringToObject( annotations, "netcode-clients", clients ) &&
           cJSON_AddStringToObject( annotations, "netcode-seconds", number );
}

/* Begins an allocation for this match; its players, `clients`, have `seconds` to connect. 0 when memory is short. */
static int allocator_send( struct outgoing_t * request, const struct allocator_options_t * options,
                           const struct mm_mode_t * mode, const struct mm_match_t * match, const char * clients,
                           int seconds )
{
    cJSON * root = cJSON_CreateObject();
    int good = cJSON_AddStringToObject( root, "namespace", options->kubernetes_namespace ) &&
               allocator_add_selector( root, mode, match->region ) &&
               cJSON_AddStringToObject( root, "scheduling", "Packed" ) &&
               allocator_add_metadata( root, match, mode->name, clients, seconds );
    char * body = good ? cJSON_PrintUnformatted( root ) : NULL;
    cJSON_Delete( root );
    if ( body )
        request_send( request, body );
    cJSON_free( body );
    return body != NULL;
}

/* ---- the answer ---- */

/* Returns NULL, or why the answer names no server that players can dial. */
static const char * allocator_read( const char * text, struct allocator_answer_t * answer )
{
    struct netcode_address_t address;
    const char * why = NULL;
    cJSON * root = cJSON_Parse( text );
    const cJSON * name = cJSON_GetObjectItemCaseSensitive( root, "gameServerName" );
    memset( answer, 0, sizeof( *answer ) );
    memset( &address, 0, sizeof( address ) );
    if ( !cJSON_IsObject( root ) )
        why = "the answer is no JSON object";
    else if ( !cJSON_IsString( name ) || !mm_is_name( name->valuestring, 1 ) )
        why = "the answer has no gameServerName";
    else if ( !agones_find_address( root, &address ) )
        why = "the answer has no IP address, neither as its address nor as an ExternalIP among its addresses";
    else if ( !( address.port = agones_find_port( root ) ) )
        why = "the answer has no port";
    if ( !why ) {
        netcode_address_to_string( &address, answer->address );
        snprintf( answer->name, sizeof( answer->name ), "%s", name->valuestring );
    }
    cJSON_Delete( root );
    return why;
}

#endif
