/*  How the full backend is run: its loop, metrics, options, and the commands that revoke. backend.c includes it behind its own
    metrics; full.h describes it. */

#ifndef BACKEND_OPERATE_H
#define BACKEND_OPERATE_H

#include <poll.h>

/* ---- the loop ---- */

/* 0: libmicrohttpd has no epoll here. */
static int full_use_daemon( struct full_t * full, struct MHD_Daemon * daemon )
{
    const union MHD_DaemonInfo * info = MHD_get_daemon_info( daemon, MHD_DAEMON_INFO_EPOLL_FD );
    full->epoll_fd = info ? info->epoll_fd : -1;
    return full->epoll_fd >= 0;
}

/*  Sleeps until something happens: to libmicrohttpd's connections, whose epoll is one descriptor, to Redis, or to a request
    that goes out, whose sockets libcurl adds. */
static void full_sleep( struct full_t * full, struct MHD_Daemon * daemon, int milliseconds )
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;
    struct curl_waitfd fds[2];
    unsigned int count = 1;
    memset( fds, 0, sizeof( fds ) );
    fds[0].fd = full->epoll_fd;
    fds[0].events = CURL_WAIT_POLLIN;
    if ( full->options.redis ) {
        double seconds = redis_sleep_seconds( &full->link, netcode_time() );
        if ( seconds * 1000.0 < milliseconds )
            milliseconds = (int) ( seconds * 1000.0 ) + 1;
        if ( redis_fd( &full->link ) >= 0 ) {
            fds[1].fd = redis_fd( &full->link );
            fds[1].events =
                (short) ( CURL_WAIT_POLLIN | ( redis_events( &full->link ) & POLLOUT ? CURL_WAIT_POLLOUT : 0 ) );
            count = 2;
        }
    }
    if ( MHD_get_timeout( daemon, &timeout ) == MHD_YES && timeout < (MHD_UNSIGNED_LONG_LONG) milliseconds )
        milliseconds = (int) timeout;
    curl_multi_poll( full->requests.multi, fds, count, milliseconds, NULL );
}

/* A Redis that throws keys away when its memory is full may throw revocations away. */
static void full_look_at_policy( struct full_t * full )
{
    const struct redis_link_t * link = &full->link;
    if ( full->policy_asked == link->connects )
        return;
    full->policy_asked = link->connects;
    if ( link->eviction[0] && strcmp( link->eviction, "noeviction" ) != 0 )
        full_log( full->requests.context,
                  "Redis: error: its maxmemory-policy is not noeviction: it may throw revocations away" );
}

/* One turn: as MHD_run_wait, for all that the full backend has to do with. */
static void full_turn( struct full_t * full, struct MHD_Daemon * daemon, int milliseconds )
{
    full_sleep( full, daemon, milliseconds );
    double now = netcode_time();
    MHD_run( daemon );
    requests_update( &full->requests );
    if ( full->options.oidc )
        oidc_update( &full->oidc, now );
    if ( full->options.ticket_url )
        tickets_update( &full->tickets );
    if ( full->options.redis ) {
        redis_update( &full->link, now );
        full_look_at_policy( full );
    } else {
        sessions_sweep( &full->sessions, now );
    }
    full_look_at_suspended( full, now );
    MHD_run( daemon ); /* what was resumed is answered in the same turn */
}

static int full_open_store( struct app_t * app )
{
    struct full_t * full = &app->full;
    struct redis_link_config_t config;
    if ( !full_has_store( app ) )
        return sessions_open( &full->sessions, (uint32_t) full->options.sessions, app->options.rate ) ||
               complain( "--sessions", "needs more memory than there is" );
    redis_default_config( &config );
    config.program = "backend";
    config.address = full->options.redis;
    config.user = full->options.redis_user;
    config.password_file = full->options.redis_password_file;
    config.prefix = full->options.redis_prefix;
    config.timeout_seconds = FULL_REDIS_SECONDS;
    config.log = full_log;
    config.context = app;
    return redis_open( &full->link, &config, netcode_time() ) || complain( "--redis:", full->link.why );
}

static int full_read_ticket_key( struct app_t * app )
{
    char key[TICKET_KEY_BYTES];
    struct full_t * full = &app->full;
    if ( !full->options.ticket_url )
        return 1;
    int good = secret_read_credential( "backend", full->options.ticket_key_file, key, sizeof( key ) );
    if ( good )
        memcpy( full->tickets.key, key, sizeof( key ) );
    sodium_memzero( key, sizeof( key ) );
    return good;
}

/* 0, and a line, when it can not be. That Redis, the issuer or the platform can not be reached is no reason. */
static int full_open( struct app_t * app )
{
    struct full_t * full = &app->full;
    const struct full_options_t * options = &full->options;
    struct identity_rules_t rules = { options->oidc, options->oidc_audience, FULL_LEEWAY_SECONDS };
    full->error_at = -FULL_ERROR_PAUSE_SECONDS;
    if ( !requests_open( &full->requests, full_log, app ) )
        return complain( "libcurl", "could not be initialised" );
    if ( !full_open_store( app ) )
        return 0;
    if ( options->oidc && !oidc_open( &full->oidc, &full->requests, &rules, options->oidc_ca ) )
        return complain( "--oidc", "could not be set up: is it an https address, and --oidc-ca a file?" );
    full->tickets.url = options->ticket_url;
    full->tickets.app_id = (uint32_t) options->ticket_app_id;
    if ( !full_read_ticket_key( app ) )
        return 0;
    if ( options->ticket_url && !tickets_open( &full->tickets, &full->requests, options->ticket_ca ) )
        return complain( "--ticket-url", "could not be set up" );
    return 1;
}

/* When no request is left. */
static void full_close( struct app_t * app )
{
    struct full_t * full = &app->full;
    if ( full_has_store( app ) )
        redis_close( &full->link );
    else
        sessions_close( &full->sessions );
    oidc_close( &full->oidc );
    for ( int i = 0; i < TICKET_SLOTS; i++ ) {
        if ( full->tickets.slots[i].done )
            full->tickets.slots[i].done( full->tickets.slots[i].context, TICKET_UNREACHABLE, 0 );
    }
    tickets_close( &full->tickets );
    requests_close( &full->requests );
}

/* We end: whoever still waits hears that he may come again. libmicrohttpd does not stop while one is suspended. */
static void full_give_up_all( struct full_t * full, struct MHD_Daemon * daemon )
{
    while ( full->suspended )
        full_give_up( full->suspended );
    MHD_run( daemon );
    MHD_run( daemon );
}

static void full_reload( struct app_t * app )
{
    if ( !full_read_ticket_key( app ) || ( full_has_store( app ) && !redis_read_password( &app->full.link ) ) )
        say( app, "error: the platform's key or Redis' password could not be read again; what was read before stays" );
}

/* ---- metrics ---- */

static void print_logins( struct text_t * text, const struct full_t * full )
{
    static const char * const names[FULL_LOGINS] = { "credential", "id_token", "ticket" };
    print_head( text, "logins_total", "counter", "Sessions that began, by what proved who it was." );
    for ( int i = 0; i < FULL_LOGINS; i++ )
        print( text, "netcode_backend_logins_total{by=\"%s\"} %llu\n", names[i],
               (unsigned long long) full->counts.logins[i] );
    print_number( text, "logouts_total", "counter", "Sessions that their players ended.",
                  (double) full->counts.logouts );
    print_number( text, "suspended_requests", "gauge", "Requests that wait for Redis, the issuer or the platform.",
                  full->num_suspended );
}

static void print_identities( struct text_t * text, const struct full_t * full )
{
    print_head( text, "id_tokens_total", "counter", "ID tokens, by what came of them." );
    for ( int i = 0; i < IDENTITY_RESULTS; i++ )
        print( text, "netcode_backend_id_tokens_total{result=\"%s\"} %llu\n", identity_infos[i].name,
               (unsigned long long) full->counts.identities[i] );
    print_number( text, "issuer_keys", "gauge", "Keys of the issuer that are known.", full->oidc.keys.count );
    print_head( text, "issuer_fetches_total", "counter", "Times that the issuer's keys were asked for." );
    print( text, "netcode_backend_issuer_fetches_total{result=\"good\"} %llu\n",
           (unsigned long long) ( full->oidc.rounds - full->oidc.failed ) );
    print( text, "netcode_backend_issuer_fetches_total{result=\"failed\"} %llu\n",
           (unsigned long long) full->oidc.failed );
}

static void print_store( struct text_t * text, const struct redis_link_t * link )
{
    static const char name[] = "netcode_backend_store_commands_total";
    print_number( text, "store_reachable", "gauge", "1 while Redis answers in time.", link->reachable );
    print_number( text, "store_connects_total", "counter", "Links to Redis that were made.", (double) link->connects );
    print_head( text, "store_commands_total", "counter", "Commands to Redis, by what came of them." );
    print( text, "%s{result=\"answered\"} %llu\n%s{result=\"timed_out\"} %llu\n", name,
           (unsigned long long) link->answers, name, (unsigned long long) link->timeouts );
    print( text, "%s{result=\"lost\"} %llu\n%s{result=\"refused\"} %llu\n", name, (unsigned long long) link->lost, name,
           (unsigned long long) link->refused );
}

static void full_print_metrics( struct text_t * text, const struct app_t * app )
{
    const struct full_t * full = &app->full;
    print_logins( text, full );
    if ( full->options.oidc )
        print_identities( text, full );
    if ( full_has_store( app ) )
        print_store( text, &full->link );
    else
        print_number( text, "sessions", "gauge", "Sessions in this backend's memory.", full->sessions.count );
}

/* ---- options ---- */

static void full_print_help( void )
{
    printf( "\n"
            "Logins with sessions (POST /v1/login), and what several backends share:\n"
            "\n"
            "  --session-seconds N            a session's life, 1..%d (%d)\n"
            "  --sessions N                   kept at most in our own memory, 1..10000000 (%d)\n"
            "  --redis ADDRESS:PORT|unix:PATH keep sessions, rates and revocations there instead\n"
            "  --redis-user NAME              of its ACL (its default user)\n"
            "  --redis-password-file FILE\n"
            "  --redis-prefix TEXT            of all keys (netcode:)\n"
            "  --oidc URL                     take ID tokens of this issuer, https alone\n"
            "  --oidc-audience NAME           and only those that were made for this one\n"
            "  --oidc-ca FILE                 trust this authority alone for the issuer (the system's)\n"
            "  --ticket-url URL               take tickets that this web API knows, as Steam's AuthenticateUserTicket\n"
            "  --ticket-key-file FILE         the publisher's key for it\n"
            "  --ticket-app-id N              the game's number there\n"
            "  --ticket-ca FILE               trust this authority alone for it (the system's)\n"
            "\n"
            "  backend revoke CLIENT_ID [SECONDS] --redis ...  ends the player's sessions, and refuses him for so "
            "long\n"
            "                                                  or for ever\n"
            "  backend restore CLIENT_ID --redis ...           takes that back\n"
            "  backend client-id ISSUER SUBJECT                the id that an ID token's player gets\n",
            FULL_MAX_SESSION_SECONDS, FULL_SESSION_SECONDS, FULL_SESSIONS );
}

static void full_default_options( struct full_t * full )
{
    struct full_options_t * options = &full->options;
    memset( options, 0, sizeof( *options ) );
    options->redis_prefix = "netcode:";
    options->session_seconds = FULL_SESSION_SECONDS;
    options->sessions = FULL_SESSIONS;
}

static int full_parse_value( const char * name, const char * value, struct full_t * full )
{
    struct full_options_t * options = &full->options;
    const struct {
        const char * name;
        const char ** to;
    } texts[] = {
        { "--redis", &options->redis },
        { "--redis-user", &options->redis_user },
        { "--redis-password-file", &options->redis_password_file },
        { "--redis-prefix", &options->redis_prefix },
        { "--oidc", &options->oidc },
        { "--oidc-audience", &options->oidc_audience },
        { "--oidc-ca", &options->oidc_ca },
        { "--ticket-url", &options->ticket_url },
        { "--ticket-key-file", &options->ticket_key_file },
        { "--ticket-ca", &options->ticket_ca },
    };
    for ( size_t i = 0; i < sizeof( texts ) / sizeof( texts[0] ); i++ ) {
        if ( strcmp( name, texts[i].name ) != 0 )
            continue;
        *texts[i].to = value;
        return *value != '\0';
    }
    if ( !strcmp( name, "--ticket-app-id" ) )
        return parse_int( value, 1, INT_MAX, &options->ticket_app_id );
    if ( !strcmp( name, "--session-seconds" ) )
        return parse_int( value, 1, FULL_MAX_SESSION_SECONDS, &options->session_seconds );
    return !strcmp( name, "--sessions" ) && parse_int( value, 1, 10000000, &options->sessions );
}

/* Those that make sense only together. */
static int full_check_options( const struct full_t * full )
{
    const struct full_options_t * options = &full->options;
    if ( options->oidc && ( !oidc_is_url( options->oidc ) || !options->oidc_audience ) )
        return complain( "--oidc", "wants https://..., and --oidc-audience with it" );
    if ( options->ticket_url && ( !oidc_is_url( options->ticket_url ) || strchr( options->ticket_url, '#' ) ||
                                  !options->ticket_key_file || !options->ticket_app_id ) )
        return complain( "--ticket-url", "wants https://..., and --ticket-key-file and --ticket-app-id with it" );
    if ( !options->redis && ( options->redis_user || options->redis_password_file ) )
        return complain( "--redis-user and --redis-password-file", "are of use with --redis alone" );
    return 1;
}

/* Players can log in without a players file. */
static int full_has_issuer( const struct full_t * full )
{
    return full->options.oidc || full->options.ticket_url;
}

/* ---- commands ---- */

struct full_command_t {
    struct app_t * app;
    struct store_answer_t answer;
    int is_over;
};

static void on_command( void * context, int what, const redisReply * reply )
{
    struct full_command_t * command = (struct full_command_t *) context;
    store_read( what, reply, &command->answer );
    command->is_over = 1;
}

/* Redis' address and so on stand behind the words of the command. */
static int parse_command( int argc, char ** argv, int first, struct full_t * full )
{
    full_default_options( full );
    for ( int i = first; i < argc; i += 2 ) {
        if ( i + 1 >= argc || strncmp( argv[i], "--redis", 7 ) != 0 || !full_parse_value( argv[i], argv[i + 1], full ) )
            return complain( argv[i], "is no option of this command, or its value is missing or wrong; see --help" );
    }
    return full->options.redis ? 1 : complain( "--redis", "is required: that is where revocations are; see --help" );
}

/* 1 when Redis has done it. Waits, as a command may. */
static int run_command( struct full_command_t * command, uint64_t client_id, int seconds, int is_restore )
{
    struct redis_link_t * link = &command->app->full.link;
    int is_sent = 0;
    double until = netcode_time() + FULL_REVOKE_SECONDS;
    while ( !command->is_over && netcode_time() < until ) {
        double now = netcode_time();
        redis_update( link, now );
        if ( !is_sent )
            is_sent = is_restore ? store_restore( link, now, client_id, on_command, command )
                                 : store_revoke( link, now, client_id, seconds, on_command, command );
        netcode_sleep( 0.002 );
    }
    return command->is_over && command->answer.result == STORE_OK;
}

static int revoke_or_restore( struct app_t * app, uint64_t client_id, int seconds, int is_restore )
{
    struct full_command_t command = { app, { STORE_UNREACHABLE, 0, 0, 0, 0, "", "", "" }, 0 };
    if ( !full_open_store( app ) )
        return 2;
    app->full.link.log = NULL; /* what is wrong stands at the end */
    int good = run_command( &command, client_id, seconds, is_restore );
    if ( good && is_restore )
        printf( "%llu %s\n", (unsigned long long) client_id,
                command.answer.count ? "may play again" : "was not revoked" );
    else if ( good )
        printf( "%llu is revoked, and %d sessions have ended\n", (unsigned long long) client_id, command.answer.count );
    else
        complain( command.answer.result == STORE_FULL ? "Redis is full:" : "Redis did not confirm it:",
                  command.answer.why[0] ? command.answer.why : app->full.link.why );
    command.is_over = 1;
    redis_close( &app->full.link );
    return good ? 0 : 1;
}

static int command_revoke( struct app_t * app, int argc, char ** argv )
{
    uint64_t client_id = 0;
    int seconds = 0;
    int is_restore = !strcmp( argv[1], "restore" );
    int has_seconds = argc > 3 && !is_restore && argv[3][0] != '-';
    if ( argc < 3 || !parse_u64( argv[2], 10, &client_id ) ||
         ( has_seconds && !parse_int( argv[3], 1, INT_MAX, &seconds ) ) ) {
        complain( argv[1], "takes a CLIENT_ID (decimal), and revoke the SECONDS as you like; see --help" );
        return 2;
    }
    if ( !parse_command( argc, argv, has_seconds ? 4 : 3, &app->full ) )
        return 2;
    return revoke_or_restore( app, client_id, seconds, is_restore );
}

static int command_client_id( int argc, char ** argv )
{
    if ( argc != 4 || !oidc_is_url( argv[2] ) || !identity_subject_is_good( argv[3] ) ) {
        complain( "client-id", "takes an ISSUER (https://...) and a SUBJECT; see --help" );
        return 2;
    }
    printf( "%llu\n", (unsigned long long) identity_client_id( argv[2], argv[3] ) );
    return 0;
}

/* The exit status; -1 when it is no command of ours. */
static int full_command( struct app_t * app, int argc, char ** argv )
{
    if ( argc > 1 && ( !strcmp( argv[1], "revoke" ) || !strcmp( argv[1], "restore" ) ) )
        return command_revoke( app, argc, argv );
    return argc > 1 && !strcmp( argv[1], "client-id" ) ? command_client_id( argc, argv ) : -1;
}

#endif
