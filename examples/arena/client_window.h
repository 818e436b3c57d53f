/*  The arena's client as a program: options, login, and the loop around the frame of client.c, which includes it. */

#ifndef ARENA_CLIENT_WINDOW_H
#define ARENA_CLIENT_WINDOW_H

#include "arena_options.h"
#include "arena_trace.h"

struct options_t {
    struct arena_login_t login;
    double seconds;       /* 0: until the window is closed */
    const char * picture; /* a file: the last frame, as BMP */
    const char * trace;   /* a file: what was drawn of the others, and when */
};

static int usage( void )
{
    fprintf( stderr, "arena-client: the arena in a window\n"
                     "  --url U              https://HOST/v1/connect-token: log in at a backend\n"
                     "  --credential-file F  with this credential\n"
                     "  --ca F               and trust this certificate authority alone\n"
                     "  --address A          127.0.0.1:40000; without --url: a server on this machine\n"
                     "  --via A              what is dialled, where that is another address (a relay)\n"
                     "  --name N             your name; player\n"
                     "  --id N               your client id; 1\n"
                     "  --bot                plays by itself\n"
                     "  --seconds S          ends after S seconds, or at once if it can not connect\n"
                     "  --picture F          writes the last frame, as BMP\n"
                     "  --trace F            writes what it drew of the others\n" );
    return 2;
}

static int read_option( const char * name, const char * value, struct options_t * options )
{
    if ( !strcmp( name, "--url" ) )
        options->login.url = value;
    else if ( !strcmp( name, "--credential-file" ) )
        options->login.credential_file = value;
    else if ( !strcmp( name, "--ca" ) )
        options->login.ca_file = value;
    else if ( !strcmp( name, "--address" ) )
        options->login.address = value;
    else if ( !strcmp( name, "--via" ) )
        options->login.via = value;
    else if ( !strcmp( name, "--name" ) )
        options->login.name = value;
    else if ( !strcmp( name, "--id" ) )
        options->login.client_id = strtoull( value, NULL, 10 );
    else if ( !strcmp( name, "--seconds" ) )
        return arena_number( value, 0.0, 1e9, &options->seconds );
    else if ( !strcmp( name, "--picture" ) )
        options->picture = value;
    else if ( !strcmp( name, "--trace" ) )
        options->trace = value;
    else
        return 0;
    return 1;
}

static int read_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->login.address = "127.0.0.1:40000";
    options->login.name = "player";
    options->login.client_id = 1;
    for ( int i = 1; i < argc; i++ ) {
        if ( !strcmp( argv[i], "--bot" ) )
            app.is_bot = 1;
        else if ( i + 1 >= argc || !read_option( argv[i], argv[i + 1], options ) )
            return 0;
        else
            i++;
    }
    if ( !arena_is_text( options->login.name, ARENA_NAME_BYTES ) ) {
        fprintf( stderr, "arena-client: a name has 1 to %d bytes of text\n", ARENA_NAME_BYTES );
        return 0;
    }
    return 1;
}

static void log_in( const struct options_t * options, double now )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    if ( arena_login( &options->login, token, app.why, sizeof( app.why ) ) )
        begin( token, now );
    else
        app.phase = PHASE_SORRY;
    memset( token, 0, sizeof( token ) );
}

static void run( const struct options_t * options, FILE * trace )
{
    double until = options->seconds > 0.0 ? netcode_time() + options->seconds : 1e300, now = netcode_time();
    int wants_token = 0;
    while ( frame( now, &wants_token ) && now < until && ( options->seconds <= 0.0 || app.phase != PHASE_SORRY ) ) {
        if ( wants_token )
            log_in( options, now );
        if ( trace && app.phase == PHASE_PLAYING && app.frames % ARENA_TRACE_FRAMES == 0 )
            arena_write_trace( trace, &app.player );
        double next = now + 1.0 / 60.0; /* a display without a pace of its own gets this one */
        now = netcode_time();
        if ( now < next - 0.002 ) {
            netcode_sleep( next - 0.002 - now );
            now = netcode_time();
        }
    }
}

int main( int argc, char ** argv )
{
    struct options_t options;
    if ( !read_options( argc, argv, &options ) )
        return usage();
    if ( netcode_init() != NETCODE_OK || !screen_open( "Arena", WIDTH, HEIGHT ) ) {
        fprintf( stderr, "arena-client: no window: %s\n", SDL_GetError() );
        return 1;
    }
    FILE * trace = options.trace ? fopen( options.trace, "w" ) : NULL;
    if ( options.trace && !trace )
        fprintf( stderr, "arena-client: %s can not be written\n", options.trace );
    arena_bot_init( &app.bot, (uint32_t) options.login.client_id );
    run( &options, trace );

    int good = app.phase == PHASE_PLAYING;
    printf( "summary playing=%d frames=%d snapshots=%d corrections=%d round_trip_ms=%.1f\n", good, (int) app.frames,
            (int) app.player.snapshots, (int) app.player.corrections, app.player.round_trip * 1000.0 );
    if ( !good && app.why[0] )
        printf( "%s\n", app.why );
    if ( options.picture && !screen_save( options.picture ) )
        fprintf( stderr, "arena-client: %s can not be written\n", options.picture );
    if ( trace )
        fclose( trace );
    end();
    screen_close();
    netcode_term();
    return good ? 0 : 1;
}

#endif
