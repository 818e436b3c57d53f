/*  An OpenID Connect issuer's keys, fetched and kept fresh beside a program's own loop: the discovery document, then the JWK
    set that it names, over HTTPS alone. No call waits. Keys live on while the issuer is down, for a day at most.

        struct oidc_t oidc;
        oidc_open( &oidc, &requests, &rules, ca_file );     // 0: memory is short, or the issuer's URL is wrong
        for ( ;; ) {
            requests_update( &requests );
            oidc_update( &oidc, now );
            ... identity_verify( &oidc.keys, &oidc.rules, ... )
            if it says IDENTITY_UNKNOWN_KEY and oidc_ask( &oidc, now ): when oidc.rounds has grown, verify again
        }

    Include it behind ../fleet/request.h and identity.h. */

#ifndef BACKEND_OIDC_H
#define BACKEND_OIDC_H

#define OIDC_URL_BYTES 512
#define OIDC_REFRESH_SECONDS 600.0 /* a key that the issuer withdraws is good for so long at most */
#define OIDC_ASK_SECONDS 10.0      /* who sends unknown key ids makes us ask the issuer no more often than this */
#define OIDC_FIRST_RETRY_SECONDS 1.0
#define OIDC_LAST_RETRY_SECONDS 30.0
#define OIDC_KEYS_SECONDS 86400.0 /* after which keys that could not be fetched again are not believed any more */
#define OIDC_DISCOVERY "/.well-known/openid-configuration"

enum oidc_stage_t { OIDC_IDLE, OIDC_DISCOVERS, OIDC_FETCHES };

struct oidc_t {
    struct identity_rules_t rules;
    struct identity_keys_t keys;
    struct requests_t * requests;
    struct outgoing_t discovery;
    struct outgoing_t key_set;
    enum oidc_stage_t stage;
    double began_at;   /* the last fetch */
    double fetched_at; /* the keys */
    double next_at;
    double retry_seconds;
    uint64_t rounds; /* fetches that ended, however they did */
    uint64_t failed; /* of those */
    int is_fresh;    /* the last one did not */
};

static void oidc_log( const struct oidc_t * oidc, const char * format, ... )
{
    char text[OIDC_URL_BYTES + 256];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    oidc->requests->log( oidc->requests->context, text );
}

static int oidc_is_url( const char * url )
{
    return url && !strncmp( url, "https://", 8 ) && url[8] && strlen( url ) < OIDC_URL_BYTES - sizeof( OIDC_DISCOVERY );
}

/* HTTPS alone, also for the address that the discovery document names, with at least TLS 1.2. */
static int outgoing_secure( struct outgoing_t * request, const char * ca_file )
{
    CURL * easy = request->easy;
#if LIBCURL_VERSION_NUM >= 0x075500
    int good = curl_easy_setopt( easy, CURLOPT_PROTOCOLS_STR, "https" ) == CURLE_OK;
#else
    int good = curl_easy_setopt( easy, CURLOPT_PROTOCOLS, (long) CURLPROTO_HTTPS ) == CURLE_OK;
#endif
    good = good && curl_easy_setopt( easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2 ) == CURLE_OK;
    /* With an authority of its own, that one alone is trusted. */
    return good && request_set_authorities( request, ca_file );
}

static void oidc_close( struct oidc_t * oidc )
{
    request_close( &oidc->discovery );
    request_close( &oidc->key_set );
    identity_free_keys( &oidc->keys );
}

/* `rules`, and what they point to, must outlive it. 0 when it can not be. */
static int oidc_open( struct oidc_t * oidc, struct requests_t * requests, const struct identity_rules_t * rules,
                      const char * ca_file )
{
    char url[OIDC_URL_BYTES];
    memset( oidc, 0, sizeof( *oidc ) );
    oidc->requests = requests;
    oidc->rules = *rules;
    oidc->retry_seconds = OIDC_FIRST_RETRY_SECONDS;
    if ( !rules->issuer || !oidc_is_url( rules->issuer ) )
        return 0;
    /* A slash at the issuer's end belongs to its name, and not to the address (OpenID Connect Discovery 1.0, section 4). */
    size_t bytes = strlen( rules->issuer );
    if ( rules->issuer[bytes - 1] == '/' )
        bytes--;
    snprintf( url, sizeof( url ), "%.*s%s", (int) bytes, rules->issuer, OIDC_DISCOVERY );
    if ( request_open( &oidc->discovery, requests, "oidc discovery", url ) &&
         request_open( &oidc->key_set, requests, "oidc keys", url ) && outgoing_secure( &oidc->discovery, ca_file ) &&
         outgoing_secure( &oidc->key_set, ca_file ) )
        return 1;
    oidc_close( oidc );
    return 0;
}

static void oidc_begin( struct oidc_t * oidc, double now )
{
    oidc->began_at = now;
    oidc->stage = OIDC_DISCOVERS;
    request_send( &oidc->discovery, NULL );
}

/* Twice as long after each failure, up to a limit: an issuer that comes back is not met by a storm. */
static void oidc_end( struct oidc_t * oidc, double now, int worked )
{
    oidc->stage = OIDC_IDLE;
    oidc->rounds++;
    oidc->is_fresh = worked;
    if ( worked ) {
        oidc->fetched_at = now;
        oidc->retry_seconds = OIDC_FIRST_RETRY_SECONDS;
        oidc->next_at = now + OIDC_REFRESH_SECONDS;
        return;
    }
    oidc->failed++;
    oidc->next_at = now + oidc->retry_seconds;
    oidc->retry_seconds *= 2.0;
    if ( oidc->retry_seconds > OIDC_LAST_RETRY_SECONDS )
        oidc->retry_seconds = OIDC_LAST_RETRY_SECONDS;
}

/* The document must be this issuer's, to the letter: else its keys are another issuer's. Goes on to the keys. */
static int oidc_read_discovery( struct oidc_t * oidc )
{
    cJSON * json = identity_parse( oidc->discovery.answer, oidc->discovery.bytes );
    const char * issuer = identity_text( json, "issuer" );
    const char * keys = identity_text( json, "jwks_uri" );
    int good = issuer && !strcmp( issuer, oidc->rules.issuer ) && oidc_is_url( keys ) &&
               curl_easy_setopt( oidc->key_set.easy, CURLOPT_URL, keys ) == CURLE_OK;
    cJSON_Delete( json );
    if ( !good ) {
        oidc_log( oidc, "error: oidc discovery: the document is not %s's, or names no https address of keys",
                  oidc->rules.issuer );
        return 0;
    }
    oidc->stage = OIDC_FETCHES;
    request_send( &oidc->key_set, NULL );
    return 1;
}

/* A set without a key that is of use is an answer too: the issuer has withdrawn those from before. */
static int oidc_read_keys( struct oidc_t * oidc )
{
    int before = oidc->keys.count;
    if ( strlen( oidc->key_set.answer ) != oidc->key_set.bytes ||
         !identity_read_keys( oidc->key_set.answer, &oidc->keys ) ) {
        oidc_log( oidc, "error: oidc keys: the answer is no key set; those from before stay" );
        return 0;
    }
    if ( !oidc->keys.count )
        oidc_log( oidc, "error: oidc keys: the issuer has none for RS256 or ES256 any more: no ID token is good" );
    else if ( !before )
        oidc_log( oidc, "oidc: %d keys of %s", oidc->keys.count, oidc->rules.issuer );
    return 1;
}

static void oidc_expire_keys( struct oidc_t * oidc, double now )
{
    if ( oidc->keys.count && now - oidc->fetched_at > OIDC_KEYS_SECONDS ) {
        oidc_log( oidc,
                  "error: oidc: the issuer's keys could not be fetched for a day, and are not believed any more" );
        identity_free_keys( &oidc->keys );
    }
}

/* Call it in each turn of the loop. */
static void oidc_update( struct oidc_t * oidc, double now )
{
    oidc_expire_keys( oidc, now );
    if ( oidc->stage == OIDC_IDLE && now >= oidc->next_at )
        oidc_begin( oidc, now );
    if ( oidc->stage == OIDC_DISCOVERS && oidc->discovery.state != REQUEST_UNDER_WAY ) {
        if ( oidc->discovery.state != REQUEST_WORKED || !oidc_read_discovery( oidc ) )
            oidc_end( oidc, now, 0 );
    }
    if ( oidc->stage == OIDC_FETCHES && oidc->key_set.state != REQUEST_UNDER_WAY )
        oidc_end( oidc, now, oidc->key_set.state == REQUEST_WORKED && oidc_read_keys( oidc ) );
}

/* A key is unknown: the issuer may have a new one. 1 when `rounds` will grow; 0 when it was asked just now. */
static int oidc_ask( struct oidc_t * oidc, double now )
{
    if ( oidc->stage == OIDC_IDLE && now - oidc->began_at >= OIDC_ASK_SECONDS )
        oidc_begin( oidc, now );
    return oidc->stage != OIDC_IDLE;
}

/* When it may be asked again: 1 at least. */
static int oidc_ask_seconds( const struct oidc_t * oidc, double now )
{
    double seconds = oidc->began_at + OIDC_ASK_SECONDS - now;
    return seconds > 1.0 ? (int) ceil( seconds ) : 1;
}

#endif
