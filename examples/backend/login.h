/*  A player's login at the backend: one HTTPS request, and a connect token comes back. For client_http.c and the
    arena's window. Certificates are always verified: there is no option against that. Include it behind netcode.h.

        static struct login_t login;
        use_wiping_memory();                                       of wiping.h, once
        login.url = "https://play.example.org/v1/connect-token";
        secret_read_credential( "game", "alice.credential", login.credential, sizeof( login.credential ) );
        if ( !login_create( &login ) ) ... login.why says why
        switch ( login_fetch( &login ) ) ...                       login.token, or login.why
        login_destroy( &login );

    With an ID token of OpenID Connect in login.id_token, and no credential, it begins a session first, whose credential it
    uses from then on; that wants a full backend (full.h).

    Needs libcurl, cJSON and libsodium; curl_global_init is the program's. */

#ifndef BACKEND_LOGIN_H
#define BACKEND_LOGIN_H

#include "wiping.h"

#include <curl/curl.h>
#include <stdio.h>

#define LOGIN_CREDENTIAL_BYTES 512
#define LOGIN_ID_TOKEN_BYTES 7168
#define LOGIN_URL_BYTES 1024
#define LOGIN_ANSWER_BYTES 16384
#define LOGIN_NAME_BYTES 64
#define LOGIN_SECONDS 5L         /* for one request to the backend */
#define LOGIN_CONNECT_SECONDS 2L /* of these, until there is a connection */

/* What came of a login. AGAIN: later, it may go better. The others: it never will like this. */
enum login_result_t {
    LOGIN_TOKEN,
    LOGIN_AGAIN,
    LOGIN_WRONG_URL,
    LOGIN_WRONG_CERTIFICATE,
    LOGIN_WRONG_CREDENTIAL,
    LOGIN_REFUSED
};

struct login_answer_t {
    char data[LOGIN_ANSWER_BYTES + 1];
    size_t bytes;
};

struct login_t {
    const char * url;
    const char * ca_file; /* trust this authority alone; NULL: the system's */
    const char * region;  /* what is asked for; NULL: anything */
    const char * server;
    char avoid[LOGIN_NAME_BYTES];                /* the server that was lost: better not that one again */
    char credential[LOGIN_CREDENTIAL_BYTES + 2]; /* of an account, or of the session that the ID token began */
    char id_token[LOGIN_ID_TOKEN_BYTES + 2];     /* "": the credential is an account's */
    int ( *must_leave )( void * context );       /* 1 ends a request that waits; may be NULL */
    void * context;

    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char client_id[LOGIN_NAME_BYTES];
    char why[256];      /* what was wrong, as a line */
    double retry_after; /* seconds, as the backend said last */

    CURL * curl;
    struct curl_slist * headers;
    struct login_answer_t answer;
};

static size_t login_take_answer( char * data, size_t size, size_t count, void * context )
{
    struct login_answer_t * answer = (struct login_answer_t *) context;
    size_t bytes = size * count;
    if ( bytes > LOGIN_ANSWER_BYTES - answer->bytes )
        return 0; /* curl ends the request, with an error */
    memcpy( answer->data + answer->bytes, data, bytes );
    answer->bytes += bytes;
    answer->data[answer->bytes] = '\0';
    return bytes;
}

/* Who wants to leave need not wait for an answer that does not come. */
static int login_watch( void * context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d )
{
    const struct login_t * login = (const struct login_t *) context;
    (void) a, (void) b, (void) c, (void) d;
    return login->must_leave && login->must_leave( login->context );
}

/* Everything that stays the same for all logins. 1, or 0 and `why`. */
static int login_create( struct login_t * login )
{
    CURL * curl = login->curl = curl_easy_init();
    login->headers = curl_slist_append( NULL, "Content-Type: application/json" );
    int good = curl && login->headers && curl_easy_setopt( curl, CURLOPT_URL, login->url ) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075500
    good = good && curl_easy_setopt( curl, CURLOPT_PROTOCOLS_STR, "https" ) == CURLE_OK;
#else
    good = good && curl_easy_setopt( curl, CURLOPT_PROTOCOLS, (long) CURLPROTO_HTTPS ) == CURLE_OK;
#endif
    good = good && curl_easy_setopt( curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2 ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_SSL_VERIFYPEER, 1L ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_SSL_VERIFYHOST, 2L ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_FOLLOWLOCATION, 0L ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_HTTPHEADER, login->headers ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_CONNECTTIMEOUT, LOGIN_CONNECT_SECONDS ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_TIMEOUT, LOGIN_SECONDS ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_NOSIGNAL, 1L ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_NOPROGRESS, 0L ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_XFERINFOFUNCTION, login_watch ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_XFERINFODATA, login ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_WRITEFUNCTION, login_take_answer ) == CURLE_OK &&
           curl_easy_setopt( curl, CURLOPT_WRITEDATA, &login->answer ) == CURLE_OK;
    /* With a CA of its own, that one alone is trusted. */
    if ( good && login->ca_file )
        good = curl_easy_setopt( curl, CURLOPT_CAINFO, login->ca_file ) == CURLE_OK &&
               curl_easy_setopt( curl, CURLOPT_CAPATH, NULL ) == CURLE_OK;
    if ( !good )
        snprintf( login->why, sizeof( login->why ), "this libcurl can not do TLS as it must be done" );
    return good;
}

static void login_destroy( struct login_t * login )
{
    curl_easy_cleanup( login->curl );
    curl_slist_free_all( login->headers );
    sodium_memzero( login, sizeof( *login ) );
}

/* What we ask for, as JSON from wiping_alloc. */
static char * login_print_wish( const struct login_t * login )
{
    cJSON * json = cJSON_CreateObject();
    int good = json != NULL;
    if ( login->region )
        good = good && cJSON_AddStringToObject( json, "region", login->region );
    if ( login->server )
        good = good && cJSON_AddStringToObject( json, "server", login->server );
    if ( login->avoid[0] )
        good = good && cJSON_AddStringToObject( json, "avoid", login->avoid );
    char * text = good ? cJSON_PrintUnformatted( json ) : NULL;
    cJSON_Delete( json );
    return text;
}

static int login_is_certificate_error( CURLcode code )
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CRL_BADFILE || code == CURLE_SSL_INVALIDCERTSTATUS;
}

/* No answer came. A wrong certificate is not to be tried again; a backend that is down is. */
static enum login_result_t login_explain_curl( struct login_t * login, CURLcode code )
{
    snprintf( login->why, sizeof( login->why ), "login failed: %s", curl_easy_strerror( code ) );
    if ( login_is_certificate_error( code ) )
        return LOGIN_WRONG_CERTIFICATE;
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ? LOGIN_WRONG_URL : LOGIN_AGAIN;
}

/* What the backend says is printed, so it must be a plain word: of these letters alone. */
static int login_is_made_of( const cJSON * item, const char * letters )
{
    return cJSON_IsString( item ) && *item->valuestring && strlen( item->valuestring ) < LOGIN_NAME_BYTES &&
           strspn( item->valuestring, letters ) == strlen( item->valuestring );
}

/* Takes the token out of the answer. */
static int login_take_token( struct login_t * login, const cJSON * json )
{
    struct netcode_connect_token_info_t info;
    size_t bytes = 0;
    const cJSON * token = cJSON_GetObjectItemCaseSensitive( json, "connect_token" );
    const cJSON * id = cJSON_GetObjectItemCaseSensitive( json, "client_id" );
    if ( !cJSON_IsString( token ) || !login_is_made_of( id, "0123456789" ) )
        return 0;
    if ( sodium_base642bin( login->token, sizeof( login->token ), token->valuestring, strlen( token->valuestring ),
                            NULL, &bytes, NULL, sodium_base64_VARIANT_ORIGINAL ) != 0 ||
         bytes != NETCODE_CONNECT_TOKEN_BYTES || netcode_connect_token_info( login->token, &info ) != NETCODE_OK )
        return 0;
    memcpy( login->client_id, id->valuestring, strlen( id->valuestring ) + 1 );
    return 1;
}

/* The backend's name for what is wrong, if it gave one. */
static const char * login_error_name( const cJSON * json )
{
    const cJSON * error = cJSON_GetObjectItemCaseSensitive( json, "error" );
    return login_is_made_of( error, "abcdefghijklmnopqrstuvwxyz_" ) ? error->valuestring : "no reason given";
}

/* Takes the session out of the answer: its credential is one word, as all are. */
static int login_take_session( struct login_t * login, const cJSON * json )
{
    const cJSON * session = cJSON_GetObjectItemCaseSensitive( json, "session" );
    if ( !login_is_made_of( session, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" ) )
        return 0;
    memcpy( login->credential, session->valuestring, strlen( session->valuestring ) + 1 );
    return 1;
}

/* Where to go from an answer: go on with what `take` took out of it, ask again later, or give up. */
static enum login_result_t login_read_answer( struct login_t * login,
                                              int ( *take )( struct login_t * login, const cJSON * json ) )
{
    long status = 0;
    curl_off_t retry_after = 0;
    enum login_result_t result = LOGIN_AGAIN;
    cJSON * json = cJSON_ParseWithLength( login->answer.data, login->answer.bytes );
    curl_easy_getinfo( login->curl, CURLINFO_RESPONSE_CODE, &status );
    curl_easy_getinfo( login->curl, CURLINFO_RETRY_AFTER, &retry_after );
    login->retry_after = (double) retry_after;
    if ( status == 200 && take( login, json ) ) {
        result = LOGIN_TOKEN;
    } else {
        snprintf( login->why, sizeof( login->why ), "login refused: %ld %s", status,
                  status != 200              ? login_error_name( json )
                  : take == login_take_token ? "no connect token"
                                             : "no session" );
        if ( status == 401 || status == 403 )
            result = LOGIN_WRONG_CREDENTIAL;
        else if ( status != 200 && status != 408 && status != 429 && status < 500 )
            result = LOGIN_REFUSED;
    }
    cJSON_Delete( json );
    return result;
}

/*  One request to the backend, as this bearer, or without one (NULL): then libcurl has no name to send with its basic
    authentication. Blocks for LOGIN_SECONDS at most. */
static enum login_result_t login_post( struct login_t * login, const char * url, const char * bearer, const char * body,
                                       int ( *take )( struct login_t * login, const cJSON * json ) )
{
    CURL * curl = login->curl;
    enum login_result_t result = LOGIN_AGAIN;
    login->retry_after = 0.0;
    login->answer.bytes = 0;
    snprintf( login->why, sizeof( login->why ), "login failed: out of memory" );
    if ( body && curl_easy_setopt( curl, CURLOPT_URL, url ) == CURLE_OK &&
         curl_easy_setopt( curl, CURLOPT_HTTPAUTH, (long) ( bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC ) ) == CURLE_OK &&
         curl_easy_setopt( curl, CURLOPT_XOAUTH2_BEARER, bearer ) == CURLE_OK &&
         curl_easy_setopt( curl, CURLOPT_POSTFIELDSIZE, (long) strlen( body ) ) == CURLE_OK &&
         curl_easy_setopt( curl, CURLOPT_POSTFIELDS, body ) == CURLE_OK ) {
        CURLcode code = curl_easy_perform( curl );
        result = code == CURLE_OK ? login_read_answer( login, take ) : login_explain_curl( login, code );
    }
    sodium_memzero( &login->answer, sizeof( login->answer ) );
    return result;
}

/* The address of logins stands beside that of tokens. */
static int login_make_url( const struct login_t * login, char url[LOGIN_URL_BYTES] )
{
    static const char tokens[] = "/v1/connect-token";
    size_t bytes = strlen( login->url );
    size_t tail = sizeof( tokens ) - 1;
    if ( bytes < tail || bytes >= LOGIN_URL_BYTES || strcmp( login->url + bytes - tail, tokens ) != 0 )
        return 0;
    snprintf( url, LOGIN_URL_BYTES, "%.*s/v1/login", (int) ( bytes - tail ), login->url );
    return 1;
}

/* LOGIN_TOKEN when login->credential is a session's now. */
static enum login_result_t login_begin_session( struct login_t * login )
{
    char url[LOGIN_URL_BYTES];
    if ( !login_make_url( login, url ) ) {
        snprintf( login->why, sizeof( login->why ), "login failed: the URL does not end with /v1/connect-token" );
        return LOGIN_WRONG_URL;
    }
    cJSON * json = cJSON_CreateObject();
    char * body = cJSON_AddStringToObject( json, "id_token", login->id_token ) ? cJSON_PrintUnformatted( json ) : NULL;
    enum login_result_t result = login_post( login, url, NULL, body, login_take_session );
    cJSON_Delete( json );
    wiping_free( body );
    return result;
}

/*  A connect token, in one request to the backend, or in two with an ID token. A session that has ended is begun again, as
    long as the ID token is good. */
static enum login_result_t login_fetch( struct login_t * login )
{
    enum login_result_t result = LOGIN_TOKEN;
    if ( login->id_token[0] && !login->credential[0] )
        result = login_begin_session( login );
    if ( result != LOGIN_TOKEN )
        return result;
    char * wish = login_print_wish( login );
    result = login_post( login, login->url, login->credential, wish, login_take_token );
    wiping_free( wish );
    if ( result == LOGIN_WRONG_CREDENTIAL && login->id_token[0] ) {
        sodium_memzero( login->credential, sizeof( login->credential ) );
        result = LOGIN_AGAIN;
    }
    return result;
}

#endif
