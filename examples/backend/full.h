/*  What the backend has beside its demo accounts when it is built with -DBACKEND_FULL: logins with sessions, by an account's
    credential, by an ID token of OpenID Connect (oidc.h) or by a platform's ticket (ticket.h); sessions, rates and
    revocations in its own memory (sessions.h) or in a Redis that several backends share (store.h). backend.c includes this
    behind its players, and logins.h, where the endpoints are, behind its answers.

        cc -DBACKEND_FULL examples/backend/backend.c -o backend-full -lm \
            $(pkg-config --cflags --libs libmicrohttpd libcjson libsodium libcurl hiredis cjose)

    No request waits for Redis, the issuer or the platform in the way of others: libmicrohttpd suspends it, and the answer
    resumes it. Their number is bounded, and so is the time. For Linux: the loop sleeps on libmicrohttpd's epoll. */

#ifndef BACKEND_FULL_H
#define BACKEND_FULL_H

/* backend.c's own requests are those that come in; these go out. */
#define request_t outgoing_t
#include "../fleet/request.h"
#undef request_t

#include "../fleet/redis.h"
#include "identity.h"
#include "oidc.h"
#include "sessions.h"
#include "store.h"
#include "ticket.h"

#define FULL_DAEMON_FLAGS ( (unsigned int) MHD_USE_EPOLL | (unsigned int) MHD_ALLOW_SUSPEND_RESUME )

#define FULL_MAX_SUSPENDED 128 /* of MAX_CONNECTIONS, so that health and metrics are always answered */
#define FULL_MAX_KEY_WAITS 32  /* of these, for an issuer's keys: whoever sends unknown key ids gets no more */
#define FULL_WAIT_SECONDS 4.0  /* for all that a request waits for; nginx waits for 5 */
#define FULL_REDIS_SECONDS 1.0 /* for one command */
#define FULL_TURN_MILLISECONDS 100
#define FULL_RETRY_SECONDS 2
#define FULL_REVOKE_SECONDS 5.0 /* the command, in all */
#define FULL_SESSION_SECONDS 43200
#define FULL_MAX_SESSION_SECONDS 604800
#define FULL_SESSIONS 100000
#define FULL_LEEWAY_SECONDS 30
#define FULL_ERROR_PAUSE_SECONDS 5.0 /* between two lines about errors that Redis answers */

/* clang-format off */
#define FULL_REFUSAL_LIST( X )                                                                                             \
    X( wrong_identity,       401, "The ID token is refused" )                                                              \
    X( wrong_ticket,         401, "The platform does not know this ticket" )                                               \
    X( banned,               403, "The platform has banned this player" )                                                  \
    X( revoked,              403, "This player may not play" )                                                             \
    X( identity_taken,       403, "An account of the players file has the id that this player would get" )                 \
    X( not_offered,          400, "This backend does not take such a login" )                                              \
    X( issuer_unreachable,   503, "The issuer's keys are not known yet: see Retry-After" )                                 \
    X( platform_unreachable, 503, "The platform does not say whose ticket it is: see Retry-After" )                        \
    X( store_unreachable,    503, "The store of sessions can not be reached: see Retry-After" )                            \
    X( store_full,           503, "The store of sessions is full: see Retry-After" )                                       \
    X( too_many_sessions,    503, "This backend keeps as many sessions as it can: see Retry-After" )                       \
    X( busy,                 503, "As many requests wait as may: see Retry-After" )
/* clang-format on */

struct request_t;

typedef enum MHD_Result ( *answerer_t )( struct request_t * request );

struct full_options_t {
    const char * redis; /* NULL: sessions stay in our own memory */
    const char * redis_user;
    const char * redis_password_file;
    const char * redis_prefix;
    const char * oidc; /* the issuer; NULL: no ID tokens */
    const char * oidc_audience;
    const char * oidc_ca;
    const char * ticket_url; /* NULL: no tickets */
    const char * ticket_key_file;
    const char * ticket_ca;
    int ticket_app_id;
    int session_seconds;
    int sessions;
};

/* One request's wait for an answer from elsewhere, which may come when the request is gone: then `request` is NULL. */
struct waiting_t {
    struct request_t * request;
    int is_asked; /* a callback will come, and free this */
};

enum full_login_t { FULL_BY_CREDENTIAL, FULL_BY_ID_TOKEN, FULL_BY_TICKET, FULL_LOGINS };

/* What a request that comes in has in addition. */
struct full_request_t {
    answerer_t then;      /* goes on here, when it is resumed; NULL: it was never suspended */
    answerer_t next;      /* goes on there, when the player is known */
    unsigned int refusal; /* what it gets when its time is over */
    double until;
    uint64_t rounds; /* of the issuer's keys: goes on when there are more; 0: waits for no keys */
    int keys_asked;  /* once is enough */
    struct waiting_t * waiting;
    struct request_t * next_suspended;
    struct request_t ** link; /* what points to this one; NULL: it is not suspended */
    uint8_t hash[HASH_BYTES]; /* of the credential that it brought, or that it gets */
    struct store_answer_t answer;
    enum ticket_result_t ticket_result;
    struct player_t guest; /* a player who is not in the file */
    int is_listed;
    enum full_login_t login;
    char session[64]; /* the new credential */
};

struct full_counts_t {
    uint64_t logins[FULL_LOGINS];
    uint64_t logouts;
    uint64_t identities[IDENTITY_RESULTS];
};

struct full_t {
    struct full_options_t options;
    struct requests_t requests;
    struct redis_link_t link;
    struct sessions_t sessions;
    struct oidc_t oidc;
    struct tickets_t tickets;
    struct full_counts_t counts;
    struct request_t * suspended;
    int num_suspended;
    int num_key_waits;
    double error_at;       /* the last line about an error that Redis answered */
    uint64_t policy_asked; /* links whose maxmemory-policy was looked at */
    int epoll_fd;
};

#endif
