/*  A game server's reports to the token backend, one each second, so that players are sent to servers that live and have
    room:

        POST URL                    Authorization: Bearer CREDENTIAL
        {"name":"eu-1","address":"203.0.113.5:40000","public_addresses":["203.0.113.5:40000"],"slots":32,"clients":5,
         "draining":false,"protocol_id":"0x1122334455667788"}

    While players of a match are on their way it has a field more: "matches":[{"id":"4711","mode":"duel","players":2,
    "seen":1}]. The backend's answer may name such matches: report_next_answer hands it out, once.

    The credential is the servers' own: it can mint no tokens, but who has it could send players anywhere. So it travels
    over https, or to this machine itself, and nowhere else.

    One header, for one program unit, after netcode.h; needs libcurl:
        cc program.c -lsodium $(pkg-config --cflags --libs libcurl) */

#ifndef FLEET_REPORT_H
#define FLEET_REPORT_H

#include "request.h"

#define REPORT_SECONDS 1.0
#define REPORT_NAME_BYTES 64
#define REPORT_CREDENTIAL_BYTES 512
#define REPORT_BYTES 16384 /* 34 addresses of up to 255 characters fit */

struct report_t {
    struct request_t request;
    char name[REPORT_NAME_BYTES];
    char addresses[NETCODE_MAX_ADDRESS_STRING_LENGTH *
                   ( NETCODE_MAX_PUBLIC_ADDRESSES + 4 )]; /* as JSON: a part of each */
    uint64_t protocol_id;
    int is_secure; /* over https */
    double next;
    int draining;      /* as last reported */
    int slots;         /* as last reported; 0: nothing was */
    uint64_t answered; /* reports whose answer was handed out */
};

/* What changes from report to report. */
struct report_state_t {
    int slots;
    int clients;
    int draining;
    const char * matches; /* whose players are on their way, as JSON; "": none */
};

/* 1 for what needs no escaping in JSON, logs and file names: letters, digits, and - _ . in 1 to 63 characters. */
static int report_is_name( const char * text )
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return *text && strlen( text ) < REPORT_NAME_BYTES && strspn( text, letters ) == strlen( text );
}

/* Does `url` begin with `start`, whatever its case? */
static int report_url_begins( const char * url, const char * start )
{
    for ( ; *start; url++, start++ ) {
        int letter = *url >= 'A' && *url <= 'Z' ? *url - 'A' + 'a' : *url;
        if ( letter != *start )
            return 0;
    }
    return 1;
}

/* https, or http to this machine by its address: what stands between host and path must be a port, so that
   http://127.0.0.1@elsewhere is not taken for it. */
static int report_is_url( const char * url )
{
    static const char * const here[] = { "http://127.0.0.1", "http://[::1]", "http://localhost" };
    if ( report_url_begins( url, "https://" ) )
        return 1;
    for ( size_t i = 0; i < sizeof( here ) / sizeof( here[0] ); i++ ) {
        if ( !report_url_begins( url, here[i] ) )
            continue;
        const char * rest = url + strlen( here[i] );
        if ( *rest == ':' )
            rest += 1 + strspn( rest + 1, "0123456789" );
        if ( *rest == '/' || *rest == '\0' )
            return 1;
    }
    return 0;
}

/*  Once, before the game loop. What libcurl has read of the authorities' certificates serves as long as the process lives,
    as reading them anew would stop the game for 30 to 130 ms. `authorities` is their file, NULL: the system's. 0 on error. */
static int report_open( struct report_t * report, struct requests_t * requests, const char * url,
                        const char * authorities )
{
    int once = 0;
    if ( !request_open( &report->request, requests, "report", url ) )
        return 0;
#if LIBCURL_VERSION_NUM >= 0x075700
    once = curl_easy_setopt( report->request.easy, CURLOPT_CA_CACHE_TIMEOUT, -1l ) == CURLE_OK;
#endif
    report->is_secure = report_url_begins( url, "https://" );
    if ( report->is_secure && !once )
        requests->log( requests->context, "this libcurl reads the authorities' certificates for each connection of the "
                                          "reports while its caller waits: have 7.87 or newer" );
    return request_set_authorities( &report->request, authorities );
}

/* Takes another credential; the old one is wiped. 0 when memory is short: then there is none. */
static int report_set_credential( struct report_t * report, const char * credential )
{
    char header[REPORT_CREDENTIAL_BYTES + 32];
    request_forget( &report->request );
    request_wipe_headers( &report->request );
    snprintf( header, sizeof( header ), "Authorization: Bearer %s", credential );
    int good = request_add_header( &report->request, header ) &&
               request_add_header( &report->request, "Content-Type: application/json" ) &&
               request_add_header( &report->request, "Expect:" );
    sodium_memzero( header, sizeof( header ) );
    return good;
}

/* The part of every report that never changes. `names[0]` is the address, all behind it are the public ones. */
static void report_set_addresses( struct report_t * report, char ( *names )[NETCODE_MAX_ADDRESS_STRING_LENGTH],
                                  int count )
{
    size_t at = 0;
    at += (size_t) snprintf( report->addresses, sizeof( report->addresses ),
                             "\"address\":\"%s\",\"public_addresses\":[", names[0] );
    for ( int i = 1; i < count; i++ )
        at += (size_t) snprintf( report->addresses + at, sizeof( report->addresses ) - at, "%s\"%s\"", i > 1 ? "," : "",
                                 names[i] );
    snprintf( report->addresses + at, sizeof( report->addresses ) - at, "]" );
}

static void report_send( struct report_t * report, const struct report_state_t * state )
{
    char body[REPORT_BYTES];
    snprintf( body, sizeof( body ),
              "{\"name\":\"%s\",%s,\"slots\":%d,\"clients\":%d,\"draining\":%s,\"protocol_id\":\"0x%016llx\"%s%s}",
              report->name, report->addresses, state->slots, state->clients, state->draining ? "true" : "false",
              (unsigned long long) report->protocol_id, state->matches[0] ? ",\"matches\":" : "", state->matches );
    report->draining = state->draining;
    report->slots = state->slots;
    request_send( &report->request, body );
}

/*  The server runs, and its game loop has not begun: the first report over https waits for its answer, two seconds at most,
    so that the certificates are read and the connection is made before a player can notice. */
static void report_begin( struct report_t * report, double now, const struct report_state_t * state )
{
    if ( !report->is_secure )
        return;
    report->next = now + REPORT_SECONDS;
    report_send( report, state );
    request_wait( &report->request );
}

/* Once a tick, behind requests_update; never waits. That this server drains is reported at once. */
static void report_update( struct report_t * report, double now, const struct report_state_t * state )
{
    int news = state->draining != report->draining;
    if ( !news && ( now < report->next || report->request.state == REQUEST_UNDER_WAY ) )
        return;
    /* A clock that stood still for long does not bring a row of reports. */
    report->next = report->next + REPORT_SECONDS > now ? report->next + REPORT_SECONDS : now + REPORT_SECONDS;
    report_send( report, state );
}

/* What the backend answered to the last report, once; NULL when there is nothing new. */
static const char * report_next_answer( struct report_t * report )
{
    if ( report->request.state != REQUEST_WORKED || report->answered == report->request.worked )
        return NULL;
    report->answered = report->request.worked;
    return report->request.answer;
}

/* Behind the game loop: the last report, so that no player is sent here in the seconds until the backend forgets us. */
static void report_end( struct report_t * report )
{
    struct report_state_t state = { report->slots, 0, 1, "" };
    if ( !report->slots )
        return;
    report_send( report, &state );
    request_wait( &report->request );
}

#endif
