/*  What the dedicated server has beside the game when it is built with -DSERVER_FULL: metrics over HTTP, reports to the
    token backend, a life in an Agones fleet, and admission over Redis. examples/server.c includes it, and calls the extras_ functions at the
    bottom; none of them waits while the game runs.

        make build/server-full, or
        cc -DSERVER_FULL examples/server.c -o server-full \
            $(pkg-config --cflags --libs libsodium libcurl libmicrohttpd libcjson hiredis)
        ./server-full --address 0.0.0.0:40000 --key-file game.key --agones \
            --report https://backend.example/v1/servers --report-credential-file servers.credential */

#ifndef FLEET_EXTRAS_H
#define FLEET_EXTRAS_H

#include "../metrics/http.h"
#include "admission.h"
#include "agones.h"
#include "arrivals.h"
#include "report.h"

#define AGONES_WAIT_SECONDS 30
#define AGONES_HOLD_SECONDS 60
#define EXTRAS_MATCHES_BYTES 8192

struct extras_options_t {
    char metrics_address[64];
    int metrics_port;
    const char * report_url;
    const char * report_ca;
    const char * credential_file;
    const char * name;
    int agones;
    double agones_wait_seconds;
    double agones_hold_seconds;
    struct admission_config_t admission; /* its address is NULL: there is none */
};

struct extras_t {
    struct extras_options_t options;
    struct requests_t requests;
    int requests_are_open;
    struct report_t report;
    struct agones_t agones;
    struct agones_gameserver_t self;
    struct arrivals_t arrivals;
    int num_allocations; /* from outside, so far */
    struct metrics_http_t * metrics;
    struct app_t * app; /* for lines in its log */
    struct admission_t admission;
    int admission_is_open;
};

/* One process is one server. */
static struct extras_t extras = { .options = { .agones_wait_seconds = AGONES_WAIT_SECONDS,
                                               .agones_hold_seconds = AGONES_HOLD_SECONDS,
                                               .admission = { .redis = { .program = "server",
                                                                         .prefix = "netcode:",
                                                                         .commands = REDIS_LINK_COMMANDS,
                                                                         .timeout_seconds = 2.0 },
                                                              .lease_seconds = ADMISSION_LEASE_SECONDS,
                                                              .policy = ADMISSION_DIRECT } } };

/* ---- options ---- */

static int extras_is_reporting( void )
{
    return extras.options.report_url != NULL;
}

static int extras_has_admission( void )
{
    return extras.options.admission.redis.address != NULL;
}

static void extras_help( void )
{
    printf( "  --metrics PORT           serve the counters as Prometheus text at http://127.0.0.1:PORT/metrics; 0: any "
            "port;\n"
            "                           ADDRESS:PORT where a Prometheus elsewhere has to reach them: anybody there "
            "can\n"
            "  --report URL             tell the backend each second who and how full we are; https, or this machine\n"
            "  --report-credential-file FILE  the servers' own credential, mode 0600; SIGHUP reads it again\n"
            "  --report-ca FILE         the certificates that the backend's is verified with (the system's)\n"
            "  --name NAME              of this server, in reports; letters, digits, - _ . (the game server's in "
            "Agones)\n"
            "  --agones                 live in an Agones fleet: its SDK gives the address and port that players dial\n"
            "  --agones-wait N          end when the SDK has not given them for N seconds (%d)\n"
            "  --agones-hold N          a matchmaker that took this server and does not say how long its players' "
            "tokens\n"
            "                           live: it is not ready again for N seconds (%d)\n"
            "  --admission REDIS        ask Redis who may come in: one session for each player and one use for each "
            "token\n"
            "                           in the fleet; ADDRESS:PORT in numbers, or unix:PATH; see REDIS.md in "
            "examples/fleet\n"
            "  --admission-password-file FILE  of Redis, mode 0600; SIGHUP reads it again\n"
            "  --admission-user USER    of an ACL (the default user)\n"
            "  --admission-prefix TEXT  of all keys (netcode:)\n"
            "  --admission-lease N      seconds after which a dead server's players are free; the same for all servers "
            "(%.0f)\n"
            "  --admission-policy P     while Redis can not be reached: strict (no client is admitted, players stay "
            "until the\n"
            "                           lease ends), direct (the same, but a Redis that refuses connections ends no "
            "lease;\n"
            "                           default), keep (no client is admitted, players stay), open (clients are "
            "admitted)\n"
            "  --admission-older-stays  a player's newer session waits for the end of the older one, and does not "
            "replace it\n",
            AGONES_WAIT_SECONDS, AGONES_HOLD_SECONDS, ADMISSION_LEASE_SECONDS );
}

/* PORT, or ADDRESS:PORT. */
static int extras_parse_metrics( const char * value, struct extras_options_t * options )
{
    struct netcode_address_t address;
    const char * colon = strrchr( value, ':' );
    uint64_t port = 0;
    size_t bytes = colon ? (size_t) ( colon - value ) : 0;
    if ( !parse_u64( colon ? colon + 1 : value, &port ) || port > 65535 || bytes >= sizeof( options->metrics_address ) )
        return 0;
    if ( colon && bytes >= 2 && value[0] == '[' && value[bytes - 1] == ']' ) {
        value++;
        bytes -= 2;
    }
    snprintf( options->metrics_address, sizeof( options->metrics_address ), "%.*s", (int) bytes, value );
    if ( !colon )
        snprintf( options->metrics_address, sizeof( options->metrics_address ), "127.0.0.1" );
    options->metrics_port = (int) port;
    return netcode_parse_address( options->metrics_address, &address ) == NETCODE_OK && !address.port;
}

/* ADMISSION_..., or -1. */
static int extras_parse_policy( const char * value )
{
    static const char * const names[] = { "strict", "direct", "keep", "open" };
    for ( int i = 0; i < 4; i++ ) {
        if ( !strcmp( value, names[i] ) )
            return i;
    }
    return -1;
}

/* 0, and what the value of the option has to be. */
static int extras_admission_complaint( const char * name )
{
    if ( !strcmp( name, "--admission" ) )
        fprintf( stderr, "server: --admission is ADDRESS:PORT in numbers, or unix:PATH\n" );
    else if ( !strcmp( name, "--admission-lease" ) )
        fprintf( stderr, "server: --admission-lease is 1 to 3600 seconds\n" );
    else if ( !strcmp( name, "--admission-policy" ) )
        fprintf( stderr, "server: --admission-policy is strict, direct, keep or open\n" );
    return 0;
}

/* Those that begin with --admission. Like extras_option. */
static int extras_admission_option( const char * name, const char * value )
{
    struct admission_config_t * config = &extras.options.admission;
    struct redis_link_t trial;
    uint64_t seconds = 0;
    if ( !strcmp( name, "--admission" ) && redis_parse_address( &trial, value ) )
        config->redis.address = value;
    else if ( !strcmp( name, "--admission-password-file" ) )
        config->redis.password_file = value;
    else if ( !strcmp( name, "--admission-user" ) )
        config->redis.user = value;
    else if ( !strcmp( name, "--admission-prefix" ) && redis_is_prefix( value ) )
        config->redis.prefix = value;
    else if ( !strcmp( name, "--admission-lease" ) && parse_u64( value, &seconds ) && seconds >= 1 && seconds <= 3600 )
        config->lease_seconds = (double) seconds;
    else if ( !strcmp( name, "--admission-policy" ) && extras_parse_policy( value ) >= 0 )
        config->policy = extras_parse_policy( value );
    else
        return extras_admission_complaint( name );
    return 2;
}

/* As in server.c: how many arguments it takes, or 0. */
static int extras_option( const char * name, const char * value, struct options_t * server_options )
{
    struct extras_options_t * options = &extras.options;
    uint64_t seconds = 0;
    if ( !strcmp( name, "--agones" ) ) {
        options->agones = 1;
        return 1;
    }
    if ( !strcmp( name, "--admission-older-stays" ) ) {
        options->admission.older_stays = 1;
        return 1;
    }
    if ( !value )
        return 0;
    if ( !strncmp( name, "--admission", 11 ) )
        return extras_admission_option( name, value );
    if ( !strcmp( name, "--report" ) && report_is_url( value ) )
        options->report_url = value;
    else if ( !strcmp( name, "--metrics" ) && extras_parse_metrics( value, options ) )
        server_options->publish = 1;
    else if ( !strcmp( name, "--report-ca" ) )
        options->report_ca = value;
    else if ( !strcmp( name, "--report-credential-file" ) )
        options->credential_file = value;
    else if ( !strcmp( name, "--name" ) && report_is_name( value ) )
        options->name = value;
    else if ( !strcmp( name, "--agones-wait" ) && parse_u64( value, &seconds ) && seconds >= 1 && seconds <= 3600 )
        options->agones_wait_seconds = (double) seconds;
    else if ( !strcmp( name, "--agones-hold" ) && parse_u64( value, &seconds ) && seconds >= 1 && seconds <= 86400 )
        options->agones_hold_seconds = (double) seconds;
    else {
        if ( !strcmp( name, "--report" ) )
            fprintf( stderr, "server: --report is an https:// URL, or http:// and an address of this machine\n" );
        return 0;
    }
    return 2;
}

/* ---- the start ---- */

static void extras_say( void * context, const char * text )
{
    say( (const struct app_t *) context, "%s", text );
}

/* 0, and a line on standard error, when there is none in the file. */
static int extras_read_credential( void )
{
    char text[REPORT_CREDENTIAL_BYTES + 2];
    int good = secret_read_credential( "server", extras.options.credential_file, text, sizeof( text ) ) &&
               report_set_credential( &extras.report, text );
    sodium_memzero( text, sizeof( text ) );
    return good;
}

static int extras_open_report( void )
{
    struct report_t * report = &extras.report;
    const char * name = extras.options.name ? extras.options.name : extras.self.name;
    if ( !extras.options.credential_file || !*name ) {
        fprintf( stderr, "server: --report needs --report-credential-file, and --name outside Agones\n" );
        return 0;
    }
    if ( !report_open( report, &extras.requests, extras.options.report_url, extras.options.report_ca ) ) {
        fprintf( stderr, "server: the reports can not be set up\n" );
        return 0;
    }
    snprintf( report->name, sizeof( report->name ), "%s", name );
    return extras_read_credential();
}

/* Learns our name outside the container, and adds it to those by which tokens may call us. */
static int extras_open_agones( const struct app_t * app, struct options_t * options )
{
    const char * why = NULL;
    if ( !agones_open( &extras.agones, &extras.requests ) ) {
        fprintf( stderr, "server: Agones can not be set up: is AGONES_SDK_HTTP_PORT a port?\n" );
        return 0;
    }
    if ( options->num_public_addresses == NETCODE_MAX_PUBLIC_ADDRESSES ) {
        fprintf( stderr, "server: --agones brings a public address, and there are %d already\n",
                 NETCODE_MAX_PUBLIC_ADDRESSES );
        return 0;
    }
    sig_atomic_t drains = term_drains;
    term_drains = 0; /* there is no player yet to wait for: SIGTERM ends it */
    int known =
        agones_gameserver( &extras.agones, extras.options.agones_wait_seconds, &signal_stop, &extras.self, &why );
    term_drains = drains;
    if ( !known ) {
        fprintf( stderr, "server: Agones does not tell our address: %s\n", why );
        return 0;
    }
    options->public_addresses[options->num_public_addresses++] = extras.self.address;
    say( app, "Agones: game server %s, players dial %s", extras.self.name[0] ? extras.self.name : "-",
         extras.self.address );
    return 1;
}

/* Before there is a server: reads files, and learns the public address. 0 on error. */
static int extras_prepare( struct app_t * app, struct options_t * options )
{
    extras.app = app;
    if ( !extras.options.agones && !extras_is_reporting() )
        return 1;
    if ( !requests_open( &extras.requests, extras_say, app ) ) {
        fprintf( stderr, "server: libcurl can not start\n" );
        return 0;
    }
    extras.requests_are_open = 1;
    if ( extras.options.agones && !extras_open_agones( app, options ) )
        return 0;
    return !extras_is_reporting() || extras_open_report();
}

/*  In reports, the address is the one by which no other server is known: in Agones what players dial, as all containers
    may bind the same. What players dial are the public ones, so a dual-stack server without any lists both of its own. */
static void extras_name_report( const struct app_t * app, const struct options_t * options )
{
    char names[NETCODE_MAX_PUBLIC_ADDRESSES + 2][NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int count = 0;
    print_name( app, extras.options.agones ? extras.self.address : options->address, names[count++] );
    for ( int i = 0; i < options->num_public_addresses; i++ )
        print_name( app, options->public_addresses[i], names[count++] );
    if ( options->address2 && !options->num_public_addresses ) {
        print_name( app, options->address, names[count++] );
        print_name( app, options->address2, names[count++] );
    }
    report_set_addresses( &extras.report, names, count );
    extras.report.protocol_id = options->protocol_id;
}

static int extras_start_metrics( const struct app_t * app )
{
    const struct extras_options_t * options = &extras.options;
    int six = strchr( options->metrics_address, ':' ) != NULL;
    extras.metrics = metrics_http_start( options->metrics_address, options->metrics_port );
    if ( extras.metrics )
        say( app, "metrics on http://%s%s%s:%d/metrics", six ? "[" : "", options->metrics_address, six ? "]" : "",
             metrics_http_port( extras.metrics ) );
    else
        fprintf( stderr, "server: metrics can not be served at %s, port %d: %s\n", options->metrics_address,
                 options->metrics_port, strerror( errno ) );
    return extras.metrics != NULL;
}

/* Leases bear our name, so that a log says where a player is: the one in reports, or the address that players dial. */
static int extras_start_admission( const struct app_t * app, const struct options_t * options )
{
    struct admission_config_t * config = &extras.options.admission;
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    print_name( app, options->num_public_addresses ? options->public_addresses[0] : options->address, address );
    config->name = extras.options.name ? extras.options.name : extras.self.name[0] ? extras.self.name : address;
    config->slots = options->slots;
    config->log = extras_say;
    config->context = extras.app;
    extras.admission_is_open = 1;
    if ( !admission_open( &extras.admission, config, netcode_time() ) ) {
        fprintf( stderr, "server: --admission can not start: %s\n", extras.admission.redis.why );
        return 0;
    }
    extras.admission.server = app->server;
    say( app, "admission: %s by %s, leases of %.0f s", config->name, config->redis.address, config->lease_seconds );
    return 1;
}

/* There is a server, and it runs. 0 on error. */
static int extras_start( const struct app_t * app, const struct options_t * options )
{
    struct report_state_t state = { options->slots, 0, 0, "" };
    if ( extras_is_reporting() ) {
        extras_name_report( app, options );
        report_begin( &extras.report, netcode_time(), &state );
    }
    if ( extras_has_admission() && !extras_start_admission( app, options ) )
        return 0;
    return !options->publish || extras_start_metrics( app );
}

/* ---- matches whose players are on their way ---- */

/* A match was announced. Who is in already may have been quicker than the news. */
static void extras_expect( const struct app_t * app, double now, const struct agones_allocation_t * news )
{
    const struct arrival_t * arrival =
        arrivals_add( &extras.arrivals, now, news->match, news->mode, news->clients, news->seconds );
    if ( !arrival )
        return;
    for ( int i = 0; i < netcode_server_max_clients( app->server ); i++ ) {
        if ( netcode_server_client_connected( app->server, i ) )
            arrivals_connected( &extras.arrivals, netcode_server_client_id( app->server, i ) );
    }
    say( app, "match %s: %s, %d players are on their way, for %.0f s", arrival->match, arrival->mode, arrival->count,
         news->seconds );
}

/* Agones gave this server to a matchmaker, which may be one that says nothing of its match. */
static void extras_take_allocation( const struct app_t * app, double now, struct agones_allocation_t * news )
{
    extras.num_allocations++;
    if ( news->seconds <= 0.0 )
        news->seconds = extras.options.agones_hold_seconds;
    if ( !arrivals_is_name( news->match ) || arrivals_find( &extras.arrivals, news->match ) )
        snprintf( news->match, sizeof( news->match ), "unnamed-%d", extras.num_allocations );
    say( app, "Agones: allocated from outside, match %s", news->match );
    extras_expect( app, now, news );
}

/* The backend's answer to a report: {"status":"ok","matches":[{"id":...,"mode":...,"clients":"1,2","seconds":30}]}. */
static void extras_read_answer( const struct app_t * app, double now, const char * text )
{
    const cJSON * each = NULL;
    cJSON * root = cJSON_Parse( text );
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( root, "matches" ) )
    {
        struct agones_allocation_t news;
        const cJSON * seconds = cJSON_GetObjectItemCaseSensitive( each, "seconds" );
        memset( &news, 0, sizeof( news ) );
        agones_read_text( each, "id", news.match, sizeof( news.match ) );
        agones_read_text( each, "mode", news.mode, sizeof( news.mode ) );
        agones_read_text( each, "clients", news.clients, sizeof( news.clients ) );
        if ( cJSON_IsNumber( seconds ) && seconds->valuedouble >= 1.0 && seconds->valuedouble <= 86400.0 )
            news.seconds = seconds->valuedouble;
        extras_expect( app, now, &news );
    }
    cJSON_Delete( root );
}

static void extras_update_matches( const struct app_t * app, double now )
{
    struct agones_allocation_t news;
    const char * answer = extras_is_reporting() ? report_next_answer( &extras.report ) : NULL;
    if ( answer )
        extras_read_answer( app, now, answer );
    if ( extras.options.agones && agones_next_allocation( &extras.agones, &news ) )
        extras_take_allocation( app, now, &news );
    arrivals_update( &extras.arrivals, now, extras_say, extras.requests.context );
}

/* ---- while the game runs ---- */

static void extras_state( const struct app_t * app, struct report_state_t * state )
{
    state->slots = netcode_server_max_clients( app->server );
    state->clients = netcode_server_num_connected_clients( app->server );
    state->draining = app->draining;
}

/* What admit_callback returns. */
static int extras_admit( uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    if ( !extras_has_admission() )
        return 1;
    return admission_ask( &extras.admission, client_id, token_tag, expire_timestamp, netcode_time() );
}

static void extras_event( const struct netcode_event_t * event )
{
    if ( event->type == NETCODE_EVENT_CONNECTED )
        arrivals_connected( &extras.arrivals, event->client_id );
    if ( extras_has_admission() )
        admission_event( &extras.admission, event );
}

/* Once a tick; never waits. Returns how long the loop may sleep: the watch, which mostly brings nothing, is no reason. */
static double extras_update( const struct app_t * app, double now )
{
    char matches[EXTRAS_MATCHES_BYTES];
    struct report_state_t state;
    int watching = 0;
    extras_state( app, &state );
    requests_update( &extras.requests );
    extras_update_matches( app, now );
    arrivals_print( &extras.arrivals, matches, sizeof( matches ) );
    state.matches = matches;
    if ( extras.options.agones ) {
        agones_update( &extras.agones, now, state.clients > 0 || arrivals_pending( &extras.arrivals ) > 0 );
        agones_count( &extras.agones, now, state.clients );
        watching = extras.agones.watch.state == REQUEST_UNDER_WAY;
    }
    if ( extras_is_reporting() )
        report_update( &extras.report, now, &state );
    double sleep = extras.requests.packets_in_flight > watching ? REQUEST_BUSY_SECONDS : LOOP_SECONDS;
    double other = extras_has_admission() ? admission_update( &extras.admission, now ) : sleep;
    return other < sleep ? other : sleep;
}

static uint64_t extras_agones_failures( void )
{
    const struct agones_t * agones = &extras.agones;
    return agones->health.failed + agones->ready.failed + agones->allocate.failed + agones->shutdown.failed;
}

static void extras_publish_admission( struct metrics_text_t * text )
{
    const struct admission_t * admission = &extras.admission;
    metrics_family( text, "netcode_server_admissions_total", "counter",
                    "Questions about players that ended, by result." );
    for ( int i = 0; i < (int) ADMISSION_RESULT_COUNT; i++ )
        metrics_labelled( text, "netcode_server_admissions_total", "result", admission_result_name( i ),
                          admission->results[i] );
    metrics_family( text, "netcode_server_admission_losses_total", "counter",
                    "Players who were disconnected because their lease was lost, by reason." );
    for ( int i = 0; i < (int) ADMISSION_LOSS_COUNT; i++ )
        metrics_labelled( text, "netcode_server_admission_losses_total", "reason", admission_loss_name( i ),
                          admission->losses[i] );
    metrics_gauge( text, "netcode_server_admission_pending", admission->pending, "Clients that wait for an answer." );
    metrics_gauge( text, "netcode_server_admission_leases", admission->leases, "Leases that this server holds." );
    metrics_gauge( text, "netcode_server_admission_leases_overdue", admission->overdue,
                   "Of these, not renewed in time: the policy lets the players stay." );
    metrics_counter( text, "netcode_server_admission_leases_recreated_total", admission->recreated,
                     "Leases that Redis had lost." );
    metrics_counter( text, "netcode_server_admission_given_back_total", admission->given_back,
                     "Leases for which the client never came." );
    metrics_gauge( text, "netcode_server_redis_reachable", admission->redis.reachable, "1: Redis answers in time." );
    metrics_counter( text, "netcode_server_redis_commands_total", admission->redis.sent, "Commands sent to Redis." );
    metrics_counter( text, "netcode_server_redis_timeouts_total", admission->redis.timeouts,
                     "Of these, without an answer in time." );
    metrics_counter( text, "netcode_server_redis_connects_total", admission->redis.connects, "Links to Redis." );
    metrics_gauge( text, "netcode_server_admission_longest_seconds", admission->longest_seconds,
                   "The longest that the game loop spent in one call for admission." );
}

/* Adds our own counters to the server's, and shows the text. */
static void extras_publish( struct metrics_text_t * text )
{
    metrics_counter( text, "netcode_server_report_failures_total", extras.report.request.failed,
                     "Reports that the backend did not take." );
    metrics_counter( text, "netcode_server_agones_failures_total", extras_agones_failures(),
                     "Calls that the SDK of Agones did not take." );
    metrics_gauge( text, "netcode_server_arrivals", arrivals_pending( &extras.arrivals ),
                   "Players of matches who are on their way." );
    if ( extras_has_admission() )
        extras_publish_admission( text );
    if ( extras.metrics )
        metrics_http_publish( extras.metrics, text );
}

static void extras_reload( const struct app_t * app )
{
    if ( extras_is_reporting() )
        say( app, extras_read_credential() ? "report: the credential was read again"
                                           : "report: error: the credential stays as it was" );
    if ( extras_has_admission() && extras.options.admission.redis.password_file )
        say( app, redis_read_password( &extras.admission.redis ) ? "Redis: the password was read again"
                                                                 : "Redis: error: the password stays as it was" );
}

/* ---- the end ---- */

static void extras_say_counts( const struct app_t * app )
{
    const struct agones_t * agones = &extras.agones;
    if ( extras_is_reporting() )
        say( app, "report: %llu worked, %llu failed", (unsigned long long) extras.report.request.worked,
             (unsigned long long) extras.report.request.failed );
    if ( extras.options.agones )
        say( app, "Agones: %llu calls worked, %llu failed",
             (unsigned long long) ( agones->health.worked + agones->ready.worked + agones->allocate.worked +
                                    agones->shutdown.worked ),
             (unsigned long long) extras_agones_failures() );
}

static void extras_say_admission( const struct app_t * app )
{
    const struct admission_t * admission = &extras.admission;
    say( app, "admission: %llu admitted, %llu by this server alone, %llu leases lost, longest call %.3f ms",
         (unsigned long long) admission->results[ADMISSION_ADMITTED],
         (unsigned long long) admission->results[ADMISSION_ADMITTED_OPEN],
         (unsigned long long) ( admission->losses[ADMISSION_TAKEN] + admission->losses[ADMISSION_WANTED] +
                                admission->losses[ADMISSION_PLAYER_REVOKED] + admission->losses[ADMISSION_ENDED] ),
         admission->longest_seconds * 1000.0 );
}

/*  Also after a start that failed half-way. `served`: there was a server, which has stopped, and admission has heard all of
    its events. The leases go back first: players wait for them, and the rest may wait for a backend that hangs. */
static void extras_stop( const struct app_t * app, int served )
{
    if ( served && extras_has_admission() )
        extras_say_admission( app );
    if ( extras.admission_is_open )
        admission_close( &extras.admission, netcode_time );
    extras.admission_is_open = 0;
    if ( served && extras_is_reporting() )
        report_end( &extras.report );
    if ( served && extras.options.agones && !agones_shutdown( &extras.agones ) )
        say( app, "Agones: error: it did not hear that we end: %s", extras.agones.shutdown.error );
    if ( served )
        extras_say_counts( app );
    metrics_http_stop( extras.metrics );
    extras.metrics = NULL;
    request_close( &extras.report.request );
    agones_close( &extras.agones );
    if ( extras.requests_are_open )
        requests_close( &extras.requests );
    extras.requests_are_open = 0;
}

#endif
