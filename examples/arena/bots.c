/*  Players without a window: up to 64 bots in one process, each a whole client with a socket of its own. They measure
    what a player would feel.

        cc -I. examples/arena/bots.c -lsodium -lm -o arena-bots
        ./arena-bots --bots 14 --seconds 60
        ./arena-bots --bots 64 --seconds 60 --via 127.0.0.1:40001          through a relay

    screen     an input's way to another player's screen: from the press to the moment at which another player sees
               what came of it
    confirmed  its way to the server and back
    corrections  how often a minute the server's word on a bot's own place was not what the bot had predicted */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "arena_bot.h"
#include "arena_options.h"
#include "arena_trace.h"
#include "dev_token.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_HZ = 60,
    GROUPS = 4, /* of bots: players' frames do not all begin at once */
    TIMES_KEPT = 1024,
    BINS = 10000, /* a tenth of a millisecond each: a second */
    WARM_SECONDS = 3
};

struct options_t {
    const char * address;
    const char * via;
    const char * trace; /* a file: what each bot saw of the others, and when */
    int bots, first_id;
    double seconds;
};

struct durations_t {
    uint64_t count;
    uint32_t bins[BINS];
};

struct player_t {
    struct netcode_client_t * net;
    struct arena_client_t * client;
    struct arena_bot_t bot;
    double command_times[TIMES_KEPT]; /* when the command of tick t was made, at t % TIMES_KEPT */
    uint32_t command_ticks[TIMES_KEPT];
    uint32_t confirmed_tick, seen_tick;
    uint64_t corrections_before;
    double playing_since; /* 0: not yet */
    int said_why;
};

struct app_t {
    struct options_t options;
    struct player_t players[ARENA_PLAYERS];
    struct durations_t screen, confirmed;
    FILE * trace;
    uint64_t frames;
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

/* ---- measuring ---- */

static void durations_add( struct durations_t * durations, double seconds )
{
    int bin = (int) ( seconds * 1e4 );
    durations->bins[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    durations->count++;
}

static double durations_milliseconds( const struct durations_t * durations, double share )
{
    uint64_t seen = 0;
    for ( int i = 0; i < BINS; i++ ) {
        seen += durations->bins[i];
        if ( durations->count && (double) seen >= share * (double) durations->count )
            return ( i + 1 ) * 0.1;
    }
    return 0.0;
}

/* How long ago this player's command of this tick was made, if it is still known. */
static void measure( struct durations_t * durations, const struct player_t * player, uint32_t tick, double now )
{
    if ( player->command_ticks[tick % TIMES_KEPT] == tick && player->playing_since > 0.0 &&
         player->command_times[tick % TIMES_KEPT] > player->playing_since + WARM_SECONDS )
        durations_add( durations, now - player->command_times[tick % TIMES_KEPT] );
}

/* ---- playing ---- */

static int create_player( struct app_t * app, int index, double time )
{
    struct player_t * player = &app->players[index];
    struct netcode_client_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char name[ARENA_NAME_BYTES + 1];
    snprintf( name, sizeof( name ), "bot %d", index + 1 );
    netcode_default_client_config( &config );
    config.batch_sends = 1;
    player->net = netcode_client_create( "127.0.0.1:0", &config, time );
    player->client = (struct arena_client_t *) malloc( sizeof( *player->client ) );
    if ( !player->net || !player->client || !arena_client_create( player->client, player->net, time ) ||
         dev_token( app->options.address, app->options.via, (uint64_t) ( app->options.first_id + index ),
                    ARENA_PROTOCOL_ID, name, token ) != NETCODE_OK )
        return 0;
    arena_bot_init( &player->bot, (uint32_t) index + 1 );
    netcode_client_connect( player->net, token );
    return 1;
}

static void play( struct app_t * app, int index, double now )
{
    struct player_t * player = &app->players[index];
    struct player_t * neighbour = &app->players[( index + 1 ) % app->options.bots];
    struct arena_client_t * client = player->client;
    struct arena_news_t news;
    struct arena_shot_t shot;
    int buttons = 0, aim = 0;
    if ( client->is_playing )
        arena_bot_play( &player->bot, client, &buttons, &aim );
    int made = arena_client_update( client, buttons, aim, now );
    for ( int i = 0; i < made; i++ ) {
        uint32_t tick = client->command_tick - (uint32_t) i;
        player->command_ticks[tick % TIMES_KEPT] = tick;
        player->command_times[tick % TIMES_KEPT] = now;
    }
    if ( client->is_playing && player->playing_since <= 0.0 )
        player->playing_since = now;
    if ( player->corrections_before == 0 && client->is_playing && now - player->playing_since > WARM_SECONDS )
        player->corrections_before = client->corrections + 1;
    for ( ; player->confirmed_tick < client->newest.tick; player->confirmed_tick++ )
        measure( &app->confirmed, player, player->confirmed_tick + 1, now );
    for ( ; client->is_playing && player->seen_tick < (uint32_t) client->render; player->seen_tick++ )
        measure( &app->screen, neighbour, player->seen_tick + 1, now );
    while ( arena_client_news( client, &news ) || arena_client_shot( client, &shot ) )
        ;
    if ( netcode_client_state( player->net ) < NETCODE_CLIENT_STATE_DISCONNECTED && !player->said_why++ ) {
        struct netcode_client_report_t report;
        netcode_client_report( player->net, &report );
        printf( "bot %d: %s\n", index + 1, report.text );
    }
    if ( app->trace && client->is_playing && now - player->playing_since > WARM_SECONDS &&
         ( app->frames / GROUPS + (uint64_t) index ) % ARENA_TRACE_FRAMES == 0 )
        arena_write_trace( app->trace, client );
}

static void run( struct app_t * app )
{
    double start = netcode_time();
    while ( !signal_stop && netcode_time() - start < app->options.seconds ) {
        double now = netcode_time(), due = start + (double) app->frames / ( FRAME_HZ * GROUPS );
        if ( now < due ) {
            netcode_sleep( due - now );
            continue;
        }
        for ( int i = (int) ( app->frames % GROUPS ); i < app->options.bots; i += GROUPS )
            play( app, i, now );
        app->frames++;
    }
}

/* 1 if all bots played to the end. */
static int print_summary( struct app_t * app )
{
    int playing = 0, shots = 0;
    double minutes = 0.0, down = 0.0, up = 0.0, worst = 0.0, corrections = 0.0, round_trip = 0.0, jitter = 0.0;
    for ( int i = 0; i < app->options.bots; i++ ) {
        const struct player_t * player = &app->players[i];
        const struct arena_client_t * client = player->client;
        if ( player->corrections_before ) {
            corrections += (double) ( client->corrections + 1 - player->corrections_before );
            minutes += ( client->time - player->playing_since - WARM_SECONDS ) / 60.0;
        }
        playing += client->is_playing && netcode_client_state( player->net ) == NETCODE_CLIENT_STATE_CONNECTED;
        shots += client->shots_written;
        down += client->down;
        up += client->up;
        round_trip += client->round_trip;
        jitter += client->jitter;
        worst = client->worst_correction > worst ? client->worst_correction : worst;
    }
    double bots = app->options.bots;
    printf( "summary bots=%d playing=%d shots=%d round_trip_ms=%.1f jitter_ms=%.1f screen_p50_ms=%.1f "
            "screen_p99_ms=%.1f "
            "confirmed_p50_ms=%.1f confirmed_p99_ms=%.1f corrections_per_minute=%.2f worst_correction=%.0f "
            "bytes_down=%.0f bytes_up=%.0f\n",
            app->options.bots, playing, shots, 1000.0 * round_trip / bots, 1000.0 * jitter / bots,
            durations_milliseconds( &app->screen, 0.5 ), durations_milliseconds( &app->screen, 0.99 ),
            durations_milliseconds( &app->confirmed, 0.5 ), durations_milliseconds( &app->confirmed, 0.99 ),
            minutes > 0.0 ? corrections / minutes : 0.0, worst, down / bots, up / bots );
    return playing == app->options.bots;
}

static int usage( void )
{
    fprintf( stderr, "arena-bots: players without a window, for a server on this machine that runs without --key-file\n"
                     "  --address A      127.0.0.1:40000; the server\n"
                     "  --via A          what is dialled, where that is another address (a relay)\n"
                     "  --bots N         1 to 64; 8\n"
                     "  --first-id N     the first bot's client id; the others follow; 1000\n"
                     "  --seconds S      how long they play; 60\n"
                     "  --trace F        writes what each saw of the others\n" );
    return 2;
}

static int read_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->address = "127.0.0.1:40000";
    options->bots = 8;
    options->first_id = 1000;
    options->seconds = 60.0;
    for ( int i = 1; i < argc; i += 2 ) {
        const char * value = i + 1 < argc ? argv[i + 1] : NULL;
        if ( !value )
            return 0;
        if ( !strcmp( argv[i], "--address" ) )
            options->address = value;
        else if ( !strcmp( argv[i], "--via" ) )
            options->via = value;
        else if ( !strcmp( argv[i], "--trace" ) )
            options->trace = value;
        else if ( !( !strcmp( argv[i], "--bots" ) && arena_integer( value, 1, ARENA_PLAYERS, &options->bots ) ) &&
                  !( !strcmp( argv[i], "--first-id" ) && arena_integer( value, 1, 1000000, &options->first_id ) ) &&
                  !( !strcmp( argv[i], "--seconds" ) && arena_number( value, 0.1, 1e9, &options->seconds ) ) )
            return 0;
    }
    return 1;
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    if ( !read_options( argc, argv, &app.options ) )
        return usage();
    if ( netcode_init() != NETCODE_OK )
        return 1;
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    app.trace = app.options.trace ? fopen( app.options.trace, "w" ) : NULL;
    if ( app.options.trace && !app.trace ) {
        fprintf( stderr, "arena-bots: %s can not be written\n", app.options.trace );
        return 1;
    }
    for ( int i = 0; i < app.options.bots; i++ )
        if ( !create_player( &app, i, netcode_time() ) ) {
            fprintf( stderr, "arena-bots: no client, or no token for %s\n", app.options.address );
            return 1;
        }
    run( &app );
    int good = print_summary( &app );
    for ( int i = 0; i < app.options.bots; i++ ) {
        netcode_client_destroy( app.players[i].net );
        arena_client_destroy( app.players[i].client );
        free( app.players[i].client );
    }
    if ( app.trace )
        fclose( app.trace );
    netcode_term();
    return good ? 0 : 1;
}
