/*  How the window's player gets a token: from the backend by HTTPS where it has a --url, and else, on this machine
    alone, one of its own making. Built with -DARENA_LOGIN it has libcurl and cJSON; without, it plays on loopback only. */

#ifndef ARENA_ARENA_LOGIN_H
#define ARENA_ARENA_LOGIN_H

#include "arena_net.h"
#include "dev_token.h"

#include <stdio.h>

#if defined( ARENA_LOGIN )
#include "backend/login.h"
#include "secret_file.h"
#endif

struct arena_login_t {
    const char * url; /* https://...; NULL: loopback */
    const char * ca_file;
    const char * credential_file;
    const char * address; /* loopback: the server */
    const char * via;     /* what is dialled, where that is another address (a relay); NULL: the same */
    const char * name;
    uint64_t client_id;
};

#if defined( ARENA_LOGIN )

static inline int arena_login_https( const struct arena_login_t * wish, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES],
                                     char * why, int why_bytes )
{
    static struct login_t login;
    int good = 0;
    use_wiping_memory();
    login.url = wish->url;
    login.ca_file = wish->ca_file;
    if ( !wish->credential_file || !secret_read_credential( "arena-client", wish->credential_file, login.credential,
                                                            sizeof( login.credential ) ) ) {
        snprintf( why, (size_t) why_bytes, "The credential can not be read: --credential-file names a file of yours." );
    } else if ( !login_create( &login ) || login_fetch( &login ) != LOGIN_TOKEN ) {
        snprintf( why, (size_t) why_bytes, "No token from %s: %s", wish->url, login.why );
    } else {
        memcpy( token, login.token, sizeof( login.token ) );
        good = 1;
    }
    login_destroy( &login );
    return good;
}

#else

static inline int arena_login_https( const struct arena_login_t * wish, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES],
                                     char * why, int why_bytes )
{
    (void) wish, (void) token;
    snprintf( why, (size_t) why_bytes, "This arena-client was built without -DARENA_LOGIN: it has no HTTPS." );
    return 0;
}

#endif

/* 1, or 0 and why: a sentence for the player. */
static inline int arena_login( const struct arena_login_t * wish, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES],
                               char * why, int why_bytes )
{
    if ( wish->url )
        return arena_login_https( wish, token, why, why_bytes );
    if ( dev_is_loopback( wish->address ) &&
         dev_token( wish->address, wish->via, wish->client_id, ARENA_PROTOCOL_ID, wish->name, token ) == NETCODE_OK )
        return 1;
    snprintf( why, (size_t) why_bytes,
              "%s is no loopback address with a port. Elsewhere players need a token of the backend: --url.",
              wish->address );
    return 0;
}

#endif
