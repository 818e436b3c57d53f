/*  The full backend's endpoints: POST /v1/login, POST /v1/logout, who a bearer is, and how a request waits. backend.c includes
    it behind its own answers; full.h describes it, and operate.h has the loop. */

#ifndef BACKEND_LOGINS_H
#define BACKEND_LOGINS_H

static void full_log( void * context, const char * text )
{
    say( (const struct app_t *) context, "%s", text );
}

/* ---- requests that wait ---- */

static void full_unlink( struct request_t * request )
{
    struct full_request_t * own = &request->full;
    struct full_t * full = &request->app->full;
    *own->link = own->next_suspended;
    if ( own->next_suspended )
        own->next_suspended->full.link = own->link;
    own->link = NULL;
    full->num_suspended--;
    full->num_key_waits -= own->rounds != 0;
    own->rounds = 0;
    own->waiting = NULL;
}

/* Its answer is there: libmicrohttpd calls on_request again, which goes on with `then`. */
static void full_resume( struct waiting_t * waiting )
{
    struct request_t * request = waiting->request;
    free( waiting );
    if ( !request )
        return;
    full_unlink( request );
    MHD_resume_connection( request->connection );
}

/* NULL when as many wait as may. */
static struct waiting_t * full_wait( struct request_t * request )
{
    struct waiting_t * waiting = NULL;
    if ( request->app->full.num_suspended < FULL_MAX_SUSPENDED )
        waiting = (struct waiting_t *) calloc( 1, sizeof( *waiting ) );
    if ( waiting )
        waiting->request = request;
    return waiting;
}

static enum MHD_Result full_suspend( struct waiting_t * waiting, answerer_t then, enum refusal_t refusal )
{
    struct request_t * request = waiting->request;
    struct full_request_t * own = &request->full;
    struct full_t * full = &request->app->full;
    own->waiting = waiting;
    own->then = then;
    own->refusal = (unsigned int) refusal;
    if ( own->until <= 0.0 )
        own->until = netcode_time() + FULL_WAIT_SECONDS;
    own->next_suspended = full->suspended;
    own->link = &full->suspended;
    if ( own->next_suspended )
        own->next_suspended->full.link = &own->next_suspended;
    full->suspended = request;
    full->num_suspended++;
    full->num_key_waits += own->rounds != 0;
    MHD_suspend_connection( request->connection );
    return MHD_YES;
}

static enum MHD_Result refuse_late( struct request_t * request )
{
    return refuse_for( request, (enum refusal_t) request->full.refusal, FULL_RETRY_SECONDS );
}

/* It waited for too long, or we end. What it asked for may still be answered, and that answer is discarded. */
static void full_give_up( struct request_t * request )
{
    struct waiting_t * waiting = request->full.waiting;
    if ( waiting->is_asked )
        waiting->request = NULL;
    else
        free( waiting );
    full_unlink( request );
    request->full.then = refuse_late;
    MHD_resume_connection( request->connection );
}

/* A request is over, whatever became of it. */
static void full_end_request( struct request_t * request )
{
    if ( request->full.link ) {
        request->full.waiting->request = NULL;
        if ( !request->full.waiting->is_asked )
            free( request->full.waiting );
        full_unlink( request );
    }
    sodium_memzero( request, sizeof( *request ) );
}

/* Those whose time is over, and those who waited for the issuer's keys that came, or did not. */
static void full_look_at_suspended( const struct full_t * full, double now )
{
    struct request_t * next = NULL;
    for ( struct request_t * request = full->suspended; request; request = next ) {
        next = request->full.next_suspended;
        if ( request->full.rounds && request->full.rounds <= full->oidc.rounds )
            full_resume( request->full.waiting );
        else if ( now >= request->full.until )
            full_give_up( request );
    }
}

/* ---- Redis ---- */

static int full_has_store( const struct app_t * app )
{
    return app->full.options.redis != NULL;
}

static void on_store( void * context, int what, const redisReply * reply )
{
    struct waiting_t * waiting = (struct waiting_t *) context;
    if ( waiting->request ) {
        struct app_t * app = waiting->request->app;
        struct store_answer_t * answer = &waiting->request->full.answer;
        double now = netcode_time();
        store_read( what, reply, answer );
        if ( answer->why[0] && now - app->full.error_at >= FULL_ERROR_PAUSE_SECONDS ) {
            app->full.error_at = now;
            say( app, "Redis: error: it answers: %s", answer->why );
        }
    }
    full_resume( waiting );
}

/* Goes on with `then` when Redis has answered; `ask` sends the command. */
static enum MHD_Result full_ask_store( struct request_t * request,
                                       int ( *ask )( struct request_t *, double, struct waiting_t * ), answerer_t then )
{
    struct waiting_t * waiting = full_wait( request );
    if ( !waiting )
        return refuse_for( request, REFUSAL_busy, FULL_RETRY_SECONDS );
    waiting->is_asked = ask( request, netcode_time(), waiting );
    if ( waiting->is_asked )
        return full_suspend( waiting, then, REFUSAL_store_unreachable );
    free( waiting );
    /* A link that works takes no more when its line is full. */
    return refuse_for( request, request->app->full.link.reachable ? REFUSAL_busy : REFUSAL_store_unreachable,
                       FULL_RETRY_SECONDS );
}

static enum MHD_Result refuse_by_store( struct request_t * request )
{
    switch ( request->full.answer.result ) {
    case STORE_UNKNOWN: return refuse( request, REFUSAL_unknown_credential, NULL );
    case STORE_REVOKED: return refuse( request, REFUSAL_revoked, NULL );
    case STORE_RATE_LIMITED: return refuse_for( request, REFUSAL_rate_limited, request->full.answer.seconds );
    case STORE_FULL: return refuse_for( request, REFUSAL_store_full, FULL_RETRY_SECONDS );
    case STORE_OK:
    case STORE_UNREACHABLE: break;
    }
    return refuse_for( request, REFUSAL_store_unreachable, FULL_RETRY_SECONDS );
}

/* ---- who asks ---- */

static int ask_who( struct request_t * request, double now, struct waiting_t * waiting )
{
    struct app_t * app = request->app;
    size_t place = 0;
    int rate = request->is_free ? 0 : app->options.rate;
    const struct player_t * player = find_hash( &app->files, request->full.hash, &place );
    return player ? store_ask_player( &app->full.link, now, player->client_id, rate, on_store, waiting )
                  : store_ask_session( &app->full.link, now, request->full.hash, rate, on_store, waiting );
}

/*  The player of a session. One of the file lives as long as his line there; no other player has the id of one. NULL:
    the session is good for nothing any more. */
static struct player_t * player_of_session( struct request_t * request, uint64_t client_id, int is_listed,
                                            struct player_t * guest )
{
    size_t place = 0;
    struct player_t * listed = find_id( &request->app->files, client_id, &place );
    if ( is_listed )
        return listed;
    return listed ? NULL : guest;
}

/* The files may have been read again while Redis was asked. */
static enum MHD_Result go_on_with_player( struct request_t * request )
{
    size_t place = 0;
    const struct store_answer_t * answer = &request->full.answer;
    struct player_t * guest = &request->full.guest;
    if ( answer->result != STORE_OK )
        return refuse_by_store( request );
    guest->client_id = answer->client_id;
    copy_name( guest->name, answer->name );
    request->player = find_hash( &request->app->files, request->full.hash, &place );
    if ( !request->player )
        request->player = player_of_session( request, answer->client_id, answer->is_listed, guest );
    if ( !request->player || request->player->client_id != answer->client_id )
        return refuse( request, REFUSAL_unknown_credential, NULL );
    if ( answer->home[0] )
        copy_name( request->player->home, answer->home );
    return request->full.next( request );
}

/* Without Redis: all is in our own memory, and nothing waits. */
static enum MHD_Result with_own_player( struct request_t * request )
{
    size_t place = 0;
    struct app_t * app = request->app;
    request->player = find_hash( &app->files, request->full.hash, &place );
    if ( !request->player ) {
        struct sessions_t * sessions = &app->full.sessions;
        const struct session_t * session = sessions_find( sessions, request->full.hash, netcode_time() );
        struct player_t * guest = session ? &sessions->owners[session->owner].player : NULL;
        if ( session )
            request->player = player_of_session( request, guest->client_id, session->is_listed, guest );
    }
    if ( !request->player )
        return refuse( request, REFUSAL_unknown_credential, NULL );
    int seconds = request->is_free ? 0 : take_allowance( request->player, app->options.rate );
    return seconds ? refuse_for( request, REFUSAL_rate_limited, seconds ) : request->full.next( request );
}

/*  Finds the player by the credential that the request brings, an account's or a session's, takes one of his rate, and goes
    on with `next`: at once, or when Redis has answered. Then request->player is he, and good until `next` returns. */
static enum MHD_Result with_player( struct request_t * request, answerer_t next )
{
    if ( !read_bearer( request, request->full.hash ) )
        return refuse( request, REFUSAL_no_credential, NULL );
    request->full.next = next;
    return full_has_store( request->app ) ? full_ask_store( request, ask_who, go_on_with_player )
                                          : with_own_player( request );
}

/* Where the player's last token led to: he finds it again, whichever backend he asks next. */
static void keep_home( struct app_t * app, const struct player_t * player )
{
    if ( full_has_store( app ) )
        store_keep_home( &app->full.link, netcode_time(), player->client_id, player->home );
}

/* ---- POST /v1/login ---- */

/* As many random bytes as a credential of --credential has, and of the same shape. */
static void make_session( struct full_request_t * own )
{
    uint8_t data[CREDENTIAL_RANDOM_BYTES];
    netcode_random_bytes( data, CREDENTIAL_RANDOM_BYTES );
    sodium_bin2base64( own->session, sizeof( own->session ), data, sizeof( data ),
                       sodium_base64_VARIANT_URLSAFE_NO_PADDING );
    sodium_memzero( data, sizeof( data ) );
    hash_credential( own->session, strlen( own->session ), own->hash );
}

static enum MHD_Result send_session( struct request_t * request )
{
    char client_id[32];
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    struct full_request_t * own = &request->full;
    cJSON * json = cJSON_CreateObject();
    snprintf( client_id, sizeof( client_id ), "%llu", (unsigned long long) own->guest.client_id );
    int good = cJSON_AddStringToObject( json, "session", own->session ) &&
               cJSON_AddStringToObject( json, "client_id", client_id ) &&
               cJSON_AddStringToObject( json, "name", own->guest.name ) &&
               cJSON_AddNumberToObject( json, "expires_in", (double) request->app->full.options.session_seconds );
    request->app->full.counts.logins[own->login]++;
    sodium_memzero( own->session, sizeof( own->session ) );
    return send_json( request, &answer, json, good );
}

static int ask_login( struct request_t * request, double now, struct waiting_t * waiting )
{
    struct app_t * app = request->app;
    struct store_login_t login = { request->full.guest.client_id, request->full.guest.name, request->full.is_listed,
                                   app->options.rate, app->full.options.session_seconds };
    return store_login( &app->full.link, now, &login, request->full.hash, on_store, waiting );
}

static enum MHD_Result finish_login( struct request_t * request )
{
    return request->full.answer.result == STORE_OK ? send_session( request ) : refuse_by_store( request );
}

/* Without Redis. `listed` is the player in the file, or NULL. */
static enum MHD_Result login_here( struct request_t * request, struct player_t * listed )
{
    struct app_t * app = request->app;
    struct sessions_t * sessions = &app->full.sessions;
    double now = netcode_time();
    struct session_owner_t * owner = sessions_owner( sessions, request->full.guest.client_id, now );
    if ( !owner )
        return refuse_for( request, REFUSAL_too_many_sessions, FULL_RETRY_SECONDS );
    int seconds = take_allowance( listed ? listed : &owner->player, app->options.rate );
    if ( seconds )
        return refuse_for( request, REFUSAL_rate_limited, seconds );
    sessions_end_expired( sessions, owner, now );
    copy_name( owner->player.name, request->full.guest.name );
    struct session_t * session =
        sessions_add( sessions, request->full.hash, owner, now + app->full.options.session_seconds );
    if ( !session )
        return refuse_for( request, REFUSAL_too_many_sessions, FULL_RETRY_SECONDS );
    session->is_listed = listed != NULL;
    return send_session( request );
}

/* Who it is has been found out, and is in full.guest. */
static enum MHD_Result begin_session( struct request_t * request, enum full_login_t login )
{
    size_t place = 0;
    struct player_t * listed = find_id( &request->app->files, request->full.guest.client_id, &place );
    request->full.login = login;
    request->full.is_listed = login == FULL_BY_CREDENTIAL;
    if ( listed && !request->full.is_listed )
        return refuse( request, REFUSAL_identity_taken, NULL );
    make_session( &request->full );
    return full_has_store( request->app ) ? full_ask_store( request, ask_login, finish_login )
                                          : login_here( request, listed );
}

static enum MHD_Result login_by_credential( struct request_t * request )
{
    uint8_t hash[HASH_BYTES];
    size_t place = 0;
    if ( !read_bearer( request, hash ) )
        return refuse( request, REFUSAL_no_credential, NULL );
    const struct player_t * player = find_hash( &request->app->files, hash, &place );
    if ( !player )
        return refuse( request, REFUSAL_unknown_credential, NULL );
    request->full.guest.client_id = player->client_id;
    copy_name( request->full.guest.name, player->name );
    return begin_session( request, FULL_BY_CREDENTIAL );
}

/* ---- by an ID token ---- */

static enum MHD_Result login_again( struct request_t * request );

/* An unknown key may be a new one: waits for the issuer's set, once. */
static enum MHD_Result wait_for_keys( struct request_t * request )
{
    double now = netcode_time();
    struct full_t * full = &request->app->full;
    if ( request->full.keys_asked && full->oidc.is_fresh )
        return refuse( request, REFUSAL_wrong_identity, identity_infos[IDENTITY_UNKNOWN_KEY].text );
    if ( request->full.keys_asked || !oidc_ask( &full->oidc, now ) )
        return refuse_for( request, REFUSAL_issuer_unreachable, oidc_ask_seconds( &full->oidc, now ) );
    struct waiting_t * waiting = full->num_key_waits < FULL_MAX_KEY_WAITS ? full_wait( request ) : NULL;
    if ( !waiting )
        return refuse_for( request, REFUSAL_busy, FULL_RETRY_SECONDS );
    request->full.keys_asked = 1;
    request->full.rounds = full->oidc.rounds + 1;
    return full_suspend( waiting, login_again, REFUSAL_issuer_unreachable );
}

static enum MHD_Result login_by_id_token( struct request_t * request, const char * token )
{
    struct identity_t identity;
    struct full_t * full = &request->app->full;
    if ( !full->options.oidc )
        return refuse( request, REFUSAL_not_offered, "it has no --oidc" );
    enum identity_result_t result =
        identity_verify( &full->oidc.keys, &full->oidc.rules, (double) time( NULL ), token, &identity );
    if ( result == IDENTITY_UNKNOWN_KEY && !request->full.keys_asked )
        return wait_for_keys( request );
    full->counts.identities[result]++;
    if ( result == IDENTITY_UNKNOWN_KEY )
        return wait_for_keys( request );
    if ( result != IDENTITY_OK )
        return refuse( request, REFUSAL_wrong_identity, identity_infos[result].text );
    request->full.guest.client_id = identity.client_id;
    copy_name( request->full.guest.name, identity.name );
    return begin_session( request, FULL_BY_ID_TOKEN );
}

/* ---- by a ticket ---- */

static void on_ticket( void * context, enum ticket_result_t result, uint64_t id )
{
    struct waiting_t * waiting = (struct waiting_t *) context;
    if ( waiting->request ) {
        struct full_request_t * own = &waiting->request->full;
        own->ticket_result = result;
        own->guest.client_id = id;
        snprintf( own->guest.name, sizeof( own->guest.name ), "%llu", (unsigned long long) id );
    }
    full_resume( waiting );
}

static enum MHD_Result finish_ticket( struct request_t * request )
{
    switch ( request->full.ticket_result ) {
    case TICKET_OK: return begin_session( request, FULL_BY_TICKET );
    case TICKET_UNKNOWN: return refuse( request, REFUSAL_wrong_ticket, NULL );
    case TICKET_BANNED: return refuse( request, REFUSAL_banned, NULL );
    case TICKET_UNREACHABLE: break;
    }
    return refuse_for( request, REFUSAL_platform_unreachable, FULL_RETRY_SECONDS );
}

static enum MHD_Result login_by_ticket( struct request_t * request, const char * hex )
{
    struct full_t * full = &request->app->full;
    if ( !full->options.ticket_url )
        return refuse( request, REFUSAL_not_offered, "it has no --ticket-url" );
    if ( !ticket_is_hex( hex ) )
        return refuse( request, REFUSAL_wrong_field, "ticket is 16 to 5120 characters of hex" );
    struct waiting_t * waiting = full_wait( request );
    if ( waiting )
        waiting->is_asked = tickets_ask( &full->tickets, hex, on_ticket, waiting );
    if ( waiting && waiting->is_asked )
        return full_suspend( waiting, finish_ticket, REFUSAL_platform_unreachable );
    free( waiting );
    return refuse_for( request, REFUSAL_busy, FULL_RETRY_SECONDS );
}

/* ---- what a login brings ---- */

/* NULL when all is well; else what is wrong with the fields. */
static const char * read_login( const cJSON * json, const char ** id_token, const char ** ticket )
{
    const cJSON * item = NULL;
    *id_token = *ticket = NULL;
    cJSON_ArrayForEach( item, json )
    {
        const char ** to = !strcmp( item->string, "id_token" ) ? id_token
                           : !strcmp( item->string, "ticket" ) ? ticket
                                                               : NULL;
        if ( !to )
            return "only id_token and ticket are known";
        if ( *to || !cJSON_IsString( item ) )
            return "id_token and ticket are strings, once";
        *to = item->valuestring;
    }
    return *id_token && *ticket ? "id_token or ticket, not both" : NULL;
}

static enum MHD_Result answer_login( struct request_t * request )
{
    const char * id_token = NULL;
    const char * ticket = NULL;
    if ( request->bytes > MAX_BODY_BYTES )
        return refuse( request, REFUSAL_too_large, NULL );
    if ( !request->bytes )
        return login_by_credential( request );
    cJSON * json = parse_body( request );
    if ( !json )
        return refuse( request, REFUSAL_not_json, NULL );
    const char * wrong = read_login( json, &id_token, &ticket );
    enum MHD_Result result = wrong      ? refuse( request, REFUSAL_wrong_field, wrong )
                             : id_token ? login_by_id_token( request, id_token )
                             : ticket   ? login_by_ticket( request, ticket )
                                        : login_by_credential( request );
    cJSON_Delete( json );
    return result;
}

/* With the body that it came with, and the issuer's newer keys. */
static enum MHD_Result login_again( struct request_t * request )
{
    return answer_login( request );
}

/* ---- POST /v1/logout ---- */

static enum MHD_Result send_logged_out( struct request_t * request )
{
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    cJSON * json = cJSON_CreateObject();
    request->app->full.counts.logouts++;
    int good = cJSON_AddStringToObject( json, "status", "ok" ) != NULL;
    return send_json( request, &answer, json, good );
}

static int ask_logout( struct request_t * request, double now, struct waiting_t * waiting )
{
    return store_logout( &request->app->full.link, now, request->full.hash, on_store, waiting );
}

static enum MHD_Result finish_logout( struct request_t * request )
{
    return request->full.answer.result == STORE_OK ? send_logged_out( request ) : refuse_by_store( request );
}

static enum MHD_Result answer_logout( struct request_t * request )
{
    if ( !read_bearer( request, request->full.hash ) )
        return refuse( request, REFUSAL_no_credential, NULL );
    if ( full_has_store( request->app ) )
        return full_ask_store( request, ask_logout, finish_logout );
    return sessions_remove( &request->app->full.sessions, request->full.hash, netcode_time() )
               ? send_logged_out( request )
               : refuse( request, REFUSAL_unknown_credential, NULL );
}

/* ---- GET /healthz ---- */

static int full_is_without_store( const struct app_t * app )
{
    return full_has_store( app ) && !app->full.link.reachable;
}

static int full_tell_health( const struct app_t * app, cJSON * json )
{
    const struct full_t * full = &app->full;
    const char * store = full_is_without_store( app ) ? "unreachable" : "reachable";
    return ( !full_has_store( app ) || cJSON_AddStringToObject( json, "store", store ) ) &&
           ( !full->options.oidc || cJSON_AddNumberToObject( json, "issuer_keys", full->oidc.keys.count ) );
}

#endif
