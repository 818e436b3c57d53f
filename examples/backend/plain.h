/*  In place of full.h, logins.h and operate.h, where the backend is built without -DBACKEND_FULL: there is nothing beside the
    demo accounts, and libmicrohttpd is the whole loop. */

#ifndef BACKEND_PLAIN_H
#define BACKEND_PLAIN_H

#define FULL_REFUSAL_LIST( X )
#define FULL_DAEMON_FLAGS ( (unsigned int) MHD_USE_AUTO )

struct app_t;
struct request_t;
struct text_t;

struct full_t {
    int nothing;
};

struct full_request_t {
    enum MHD_Result ( *then )( struct request_t * request );
};

static void keep_home( struct app_t * app, const struct player_t * player )
{
    (void) app, (void) player;
}

static int full_is_without_store( const struct app_t * app )
{
    return (void) app, 0;
}

static int full_tell_health( const struct app_t * app, cJSON * json )
{
    return (void) app, (void) json, 1;
}

static void full_print_metrics( struct text_t * text, const struct app_t * app )
{
    (void) text, (void) app;
}

static void full_reload( struct app_t * app )
{
    (void) app;
}

static void full_end_request( struct request_t * request )
{
    (void) request;
}

static void full_print_help( void )
{
}

static void full_default_options( struct full_t * full )
{
    full->nothing = 0;
}

static int full_parse_value( const char * name, const char * value, struct full_t * full )
{
    static const char * const options[] = { "--redis", "--session", "--oidc", "--ticket-", "--allocator" };
    (void) value;
    (void) full;
    for ( size_t i = 0; i < sizeof( options ) / sizeof( options[0] ); i++ )
        if ( !strncmp( name, options[i], strlen( options[i] ) ) )
            fprintf( stderr, "backend: %s is one of the full backend's: make build/backend-full\n", name );
    return 0;
}

static int full_check_options( const struct full_t * full )
{
    return (void) full, 1;
}

static int full_has_issuer( const struct full_t * full )
{
    return (void) full, 0;
}

static int full_open( struct app_t * app )
{
    return (void) app, 1;
}

static int full_use_daemon( struct full_t * full, struct MHD_Daemon * daemon )
{
    return (void) full, daemon != NULL;
}

static void full_turn( struct full_t * full, struct MHD_Daemon * daemon, int milliseconds )
{
    (void) full;
    MHD_run_wait( daemon, milliseconds );
}

static void full_give_up_all( struct full_t * full, struct MHD_Daemon * daemon )
{
    (void) full, (void) daemon;
}

static void full_close( struct app_t * app )
{
    (void) app;
}

/* -1: it is no command of ours. */
static int full_command( struct app_t * app, int argc, char ** argv )
{
    return (void) app, (void) argc, (void) argv, -1;
}

#endif
