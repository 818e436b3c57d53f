/*  The arena for a player: in a window (SDL2), and, compiled by emscripten, in a browser's tab.

        make arena-client
        ./build/arena-client                            on this machine, against ./build/arena-server
        ./build/arena-client --url https://play.example.org/v1/connect-token --credential-file alice.credential

    W, A, S, D move, the mouse aims, its button fires, Enter begins and ends a line of chat.

    What the player knows and predicts is in arena_client.h, what is drawn with in screen.h. Here: how a player comes
    in, a frame, and the picture. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "arena_bot.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined( __EMSCRIPTEN__ )
#include "netcode_web.h"
#else
#include "arena_login.h"
#endif

enum {
    TILE = 20, /* pixels */
    WIDTH = ARENA_MAP_WIDTH * TILE,
    MAP_HEIGHT = ARENA_MAP_HEIGHT * TILE,
    HEIGHT = MAP_HEIGHT + 120, /* below the map: the net graph and the scores */
    SCORES = 12,
    LINES = 6, /* of chat and news */
    LINE_BYTES = ARENA_TEXT_BYTES + 40,
    SHOTS = 64,
    GRAPH = 120 /* points of the net graph: 10 a second */
};

#define LINE_SECONDS 10.0
#define SHOT_SECONDS 0.12
#define PIXELS( units ) ( ( units ) * (double) TILE / ARENA_TILE )

enum phase_t { PHASE_TOKEN, PHASE_CONNECTING, PHASE_PLAYING, PHASE_SORRY };

struct shot_t {
    double from_x, from_y, to_x, to_y, time;
};

struct app_t {
    enum phase_t phase;
    struct netcode_client_t * net;
    struct arena_client_t player;
    struct arena_bot_t bot;
    int is_bot;
    char why[300]; /* it did not work: a sentence for the dialog */
    double time, connect_time, frame_seconds, slowest_frame;
    uint64_t frames;
    char lines[LINES][LINE_BYTES]; /* the newest first */
    double line_times[LINES];
    char typing[ARENA_TEXT_BYTES + 1];
    int is_typing;
    struct shot_t shots[SHOTS];
    int shots_drawn;
    double own_shot_time;
    float graph[4][GRAPH]; /* round trip, jitter in ms; loss in percent; correction in units */
    double graph_time;
};

static struct app_t app;

/* ---- coming in ---- */

/* All that belongs to one connection. Another token gets another client object: its server may be of another family. */
static int begin( const uint8_t * token, double time )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    config.batch_sends = 1;
#if defined( __EMSCRIPTEN__ )
    struct netcode_socket_t socket;
    netcode_web_socket( &socket );
    config.socket = &socket;
    app.net = netcode_client_create( "0.0.0.0", &config, time );
#else
    app.net = netcode_client_create_dual( "0.0.0.0", "::", &config, time );
#endif
    if ( !app.net || !arena_client_create( &app.player, app.net, time ) ) {
        snprintf( app.why, sizeof( app.why ), "No client could be made: %s",
                  netcode_client_create_error_text( netcode_client_create_error() ) );
        app.phase = PHASE_SORRY;
        return 0;
    }
    netcode_client_connect( app.net, token );
    app.connect_time = time;
    app.phase = PHASE_CONNECTING;
    return 1;
}

static void end( void )
{
    netcode_client_destroy( app.net ); /* notifies the server, if it was connected */
    if ( app.net )
        arena_client_destroy( &app.player );
    app.net = NULL;
}

/* Connected, playing, or over; and if it is over, why. */
static void watch_connection( void )
{
    struct netcode_client_report_t report;
    if ( app.phase == PHASE_CONNECTING && app.player.is_playing )
        app.phase = PHASE_PLAYING;
    if ( netcode_client_state( app.net ) > NETCODE_CLIENT_STATE_DISCONNECTED )
        return;
    netcode_client_report( app.net, &report );
    snprintf( app.why, sizeof( app.why ), "%s", report.text );
    app.phase = PHASE_SORRY;
    end();
}

/* ---- a frame: what the player does ---- */

static void add_line( const char * text )
{
    memmove( app.lines[1], app.lines[0], ( LINES - 1 ) * sizeof( app.lines[0] ) );
    memmove( &app.line_times[1], &app.line_times[0], ( LINES - 1 ) * sizeof( app.line_times[0] ) );
    snprintf( app.lines[0], sizeof( app.lines[0] ), "%s", text );
    app.line_times[0] = app.time;
}

static void take_news( void )
{
    struct arena_news_t news;
    char line[LINE_BYTES];
    while ( arena_client_news( &app.player, &news ) ) {
        const char *name = app.player.names[news.player], *other = app.player.names[news.other];
        line[0] = '\0';
        if ( news.type == ARENA_NEWS_CHAT )
            snprintf( line, sizeof( line ), "%s: %s", name, news.text );
        else if ( news.type == ARENA_NEWS_JOINED && news.player != app.player.slot && app.phase == PHASE_PLAYING )
            snprintf( line, sizeof( line ), "%s joined", name );
        else if ( news.type == ARENA_NEWS_LEFT )
            snprintf( line, sizeof( line ), "%s left", name );
        else if ( news.type == ARENA_NEWS_KILLED &&
                  ( news.player == app.player.slot || news.other == app.player.slot ) )
            snprintf( line, sizeof( line ), "%s shot %s", name, other );
        if ( line[0] )
            add_line( line );
    }
}

static void add_shot( double x, double y, double to_x, double to_y )
{
    struct shot_t shot = { x, y, to_x, to_y, app.time };
    app.shots[app.shots_drawn++ % SHOTS] = shot;
}

/* The others' shots as the server reports them; the own ones are drawn when the trigger is pulled. */
static void take_shots( void )
{
    struct arena_shot_t shot;
    struct arena_drawn_t drawn;
    double x = 0.0, y = 0.0;
    while ( arena_client_shot( &app.player, &shot ) )
        if ( shot.player != app.player.slot && arena_client_other( &app.player, shot.player, &drawn ) )
            add_shot( drawn.x, drawn.y, shot.x, shot.y );
    const struct arena_player_t * own = &app.player.own;
    int reload = own->rapid ? ARENA_RAPID_RELOAD_TICKS : ARENA_RELOAD_TICKS;
    if ( own->health && own->wait_fire >= reload - 1 && app.time - app.own_shot_time > reload / 2.0 / ARENA_HZ ) {
        int reach = arena_shot_reach( &app.player.map, own->x, own->y, own->aim );
        arena_client_own( &app.player, &x, &y );
        add_shot( x, y, x + arena_cosine( own->aim ) * reach / 16384.0, y + arena_sine( own->aim ) * reach / 16384.0 );
        app.own_shot_time = app.time;
    }
}

/* A line of chat grows key by key. While it does, keys do not move the player. */
static void type( const struct screen_input_t * input )
{
    int was_typing = app.is_typing;
    size_t length = strlen( app.typing );
    if ( input->enter && !was_typing ) {
        app.is_typing = 1;
        length = 0;
    }
    if ( input->backspace && length ) {
        do /* the bytes of one character */
            length--;
        while ( length && ( (uint8_t) app.typing[length] & 0xc0 ) == 0x80 );
    }
    app.typing[length] = '\0';
    size_t more = strlen( input->typed );
    if ( app.is_typing && length + more < sizeof( app.typing ) )
        memcpy( app.typing + length, input->typed, more + 1 );
    if ( input->enter && was_typing )
        arena_client_chat( &app.player, app.typing ); /* nothing, where nothing was typed */
    if ( input->escape || ( input->enter && was_typing ) )
        app.is_typing = 0;
}

static void play( const struct screen_input_t * input )
{
    int buttons = 0, aim = app.player.own.aim;
    double x = 0.0, y = 0.0;
    arena_client_own( &app.player, &x, &y );
    if ( app.is_bot && app.player.is_playing ) {
        arena_bot_play( &app.bot, &app.player, &buttons, &aim );
    } else {
        if ( !app.is_typing )
            buttons = ( input->up ? ARENA_UP : 0 ) | ( input->down ? ARENA_DOWN : 0 ) |
                      ( input->left ? ARENA_LEFT : 0 ) | ( input->right ? ARENA_RIGHT : 0 ) |
                      ( input->fire ? ARENA_FIRE : 0 );
        double turn = atan2( input->mouse_y - PIXELS( y ), input->mouse_x - PIXELS( x ) ) * 128.0 / 3.14159265358979;
        aim = ( (int) turn + 512 ) % 256;
    }
    arena_client_update( &app.player, buttons, aim, app.time );
    take_news();
    take_shots();
    if ( app.phase == PHASE_PLAYING )
        type( input );
}

/* Ten points a second, of what was worst since the last one. */
static void add_graph_points( void )
{
    if ( app.time - app.graph_time < 0.1 )
        return;
    for ( int i = 0; i < 4; i++ )
        memmove( &app.graph[i][0], &app.graph[i][1], ( GRAPH - 1 ) * sizeof( app.graph[i][0] ) );
    app.graph[0][GRAPH - 1] = (float) ( app.player.round_trip * 1000.0 );
    app.graph[1][GRAPH - 1] = (float) ( app.player.jitter * 1000.0 );
    app.graph[2][GRAPH - 1] = (float) ( app.player.loss * 100.0 );
    app.graph[3][GRAPH - 1] = (float) fabs( app.player.error_x ) + (float) fabs( app.player.error_y );
    app.graph_time = app.time;
}

/* ---- the picture ---- */

static uint32_t player_color( int slot )
{
    static const uint32_t colors[8] = { 0xff6b6b, 0x4dabf7, 0x69db7c, 0xffd43b,
                                        0xda77f2, 0xff922b, 0x38d9a9, 0xf783ac };
    return colors[slot % 8];
}

/* Walls that stand side by side are one rectangle. */
static void draw_map( void )
{
    for ( int row = 0; row < ARENA_MAP_HEIGHT; row++ )
        for ( int column = 0, from = 0; column <= ARENA_MAP_WIDTH; column++ ) {
            if ( column < ARENA_MAP_WIDTH && app.player.map.tiles[row][column] == ARENA_WALL )
                continue;
            if ( column > from )
                screen_rectangle( from * TILE, row * TILE, ( column - from ) * TILE, TILE, 0x495057 );
            from = column + 1;
        }
    for ( int i = 0; i < app.player.map.items; i++ ) {
        double x = PIXELS( app.player.map.item_x[i] ), y = PIXELS( app.player.map.item_y[i] );
        if ( !( app.player.newest.items >> i & 1 ) )
            continue;
        screen_disc( x, y, 7, 0xf1f3f5 );
        if ( app.player.map.item_kinds[i] == ARENA_MEDKIT ) {
            screen_rectangle( x - 5, y - 2, 10, 4, 0xe03131 );
            screen_rectangle( x - 2, y - 5, 4, 10, 0xe03131 );
        } else {
            screen_disc( x, y, 4, 0xf59f00 );
        }
    }
}

static void draw_player( int slot, double x, double y, int aim, int health, int is_rapid )
{
    double radius = PIXELS( ARENA_RADIUS ), at_x = PIXELS( x ), at_y = PIXELS( y );
    if ( is_rapid )
        screen_disc( at_x, at_y, radius + 2, 0xf59f00 );
    screen_disc( at_x, at_y, radius, player_color( slot ) );
    screen_line( at_x, at_y, at_x + arena_cosine( aim ) * 14.0 / 16384, at_y + arena_sine( aim ) * 14.0 / 16384,
                 0xffffff );
    screen_rectangle( at_x - 8, at_y - radius - 6, 16, 3, 0x343a40 );
    screen_rectangle( at_x - 8, at_y - radius - 6, 16.0 * health / ARENA_FULL_HEALTH, 3, 0x51cf66 );
}

static void draw_players( void )
{
    struct arena_drawn_t drawn;
    double x = 0.0, y = 0.0;
    for ( int i = 0; i < SHOTS; i++ )
        if ( app.shots[i].time > 0.0 && app.time - app.shots[i].time < SHOT_SECONDS )
            screen_line( PIXELS( app.shots[i].from_x ), PIXELS( app.shots[i].from_y ), PIXELS( app.shots[i].to_x ),
                         PIXELS( app.shots[i].to_y ), 0xffe066 );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( i != app.player.slot && arena_client_other( &app.player, i, &drawn ) )
            draw_player( i, drawn.x, drawn.y, drawn.aim, drawn.health, drawn.rapid );
    if ( app.player.own.health ) {
        arena_client_own( &app.player, &x, &y );
        screen_disc( PIXELS( x ), PIXELS( y ), PIXELS( ARENA_RADIUS ) + 3, 0xffffff );
        draw_player( app.player.slot, x, y, app.player.own.aim, app.player.own.health, app.player.own.rapid > 0 );
    } else {
        screen_text( 0.5 * WIDTH - 8 * SCREEN_TEXT_WIDTH, 0.5 * MAP_HEIGHT, "You are out ...", 0xffffff );
    }
}

/* The best of all, in two columns. */
static void draw_scores( void )
{
    int drawn = 0;
    for ( int score = ARENA_MAX_SCORE; score >= 0 && drawn < SCORES; score-- )
        for ( int i = 0; i < ARENA_PLAYERS && drawn < SCORES; i++ ) {
            const struct arena_view_t * view = &app.player.newest.players[i];
            char line[LINE_BYTES];
            if ( !view->is_there || view->score != score )
                continue;
            snprintf( line, sizeof( line ), "%3d %s%s", score, app.player.names[i], i == app.player.slot ? " <" : "" );
            int column = drawn / ( SCORES / 2 ), row = drawn % ( SCORES / 2 );
            screen_text( 650 + column * 310, MAP_HEIGHT + 8 + row * 18, line, player_color( i ) );
            drawn++;
        }
}

static void draw_lines( void )
{
    char line[LINE_BYTES];
    for ( int i = 0; i < LINES; i++ )
        if ( app.lines[i][0] && app.time - app.line_times[i] < LINE_SECONDS )
            screen_text( 30, MAP_HEIGHT - 76 - i * 20, app.lines[i], 0xf8f9fa );
    snprintf( line, sizeof( line ), "> %s_", app.typing );
    if ( app.is_typing )
        screen_text( 30, MAP_HEIGHT - 50, line, 0xffffff );
}

/* One curve over the last twelve seconds. `most` is its full height. */
static void draw_curve( const float values[GRAPH], double top, double most, uint32_t color )
{
    for ( int i = 0; i < GRAPH; i++ ) {
        double height = (double) values[i] / most * 20.0;
        height = height > 20.0 ? 20.0 : height;
        screen_rectangle( 30 + i * 2, top + 20.0 - height, 2, height, color );
    }
}

/* How the network is, in a corner: what a player can send to whoever asks why it lags. */
static void draw_net_graph( void )
{
    static const uint32_t colors[4] = { 0x4dabf7, 0xb197fc, 0xff8787, 0xffd43b };
    static const double most[4] = { 250.0, 50.0, 10.0, ARENA_TILE };
    char lines[4][LINE_BYTES];
    snprintf( lines[0], LINE_BYTES, "round trip %3.0f ms", app.player.round_trip * 1000.0 );
    snprintf( lines[1], LINE_BYTES, "jitter     %3.0f ms", app.player.jitter * 1000.0 );
    snprintf( lines[2], LINE_BYTES, "loss       %3.1f %%", app.player.loss * 100.0 );
    snprintf( lines[3], LINE_BYTES, "corrected  %3.2f tiles",
              ( fabs( app.player.error_x ) + fabs( app.player.error_y ) ) / ARENA_TILE );
    for ( int i = 0; i < 4; i++ ) {
        draw_curve( app.graph[i], MAP_HEIGHT + 4 + i * 23, most[i], colors[i] );
        screen_text( 280, MAP_HEIGHT + 8 + i * 23, lines[i], colors[i] );
    }
    snprintf( lines[0], LINE_BYTES, "%.1f kB/s down, %.1f up, %d fps", app.player.down / 1000.0, app.player.up / 1000.0,
              app.frame_seconds > 0.0 ? (int) ( 1.0 / app.frame_seconds + 0.5 ) : 0 );
    screen_text( 30, MAP_HEIGHT + 100, lines[0], 0xadb5bd );
}

/* A dialog of up to 60 characters a line, broken at spaces. */
static void draw_dialog( const char * title, const char * text, const char * hint )
{
    char line[64];
    int row = 0;
    screen_rectangle( 120, 240, WIDTH - 240, 280, 0x343a40 );
    screen_text( 150, 270, title, 0xffffff );
    while ( *text ) {
        size_t length = strlen( text ), taken = length > 60 ? 60 : length;
        while ( taken < length && taken > 0 && text[taken] != ' ' )
            taken--;
        taken = taken ? taken : 60;
        snprintf( line, sizeof( line ), "%.*s", (int) taken, text );
        screen_text( 150, 320 + row++ * 24, line, 0xced4da );
        text += taken;
        while ( *text == ' ' )
            text++;
    }
    screen_text( 150, 480, hint, 0x74c0fc );
}

static void draw( void )
{
    struct netcode_client_report_t report;
    screen_clear( 0x212529 );
    if ( app.net && app.player.has_map )
        draw_map();
    if ( app.phase == PHASE_PLAYING ) {
        draw_players();
        draw_scores();
        draw_lines();
        draw_net_graph();
    } else if ( app.phase == PHASE_SORRY ) {
        draw_dialog( "It did not work", app.why, "Enter: try again" );
    } else if ( app.phase == PHASE_TOKEN ) {
        draw_dialog( "Arena", "Asking for a token ...", "" );
    } else {
        netcode_client_report( app.net, &report ); /* how far it has come: a sentence */
        draw_dialog( "Arena", app.time - app.connect_time < 1.0 ? "Connecting ..." : report.text, "" );
    }
    screen_show();
}

/* One frame. 0: the window was closed. `wants_token` is set when the player wants to come in, or again. */
static int frame( double now, int * wants_token )
{
    struct screen_input_t input;
    double passed = app.time > 0.0 ? now - app.time : 0.0;
    app.frame_seconds += ( passed - app.frame_seconds ) * 0.05;
    app.slowest_frame = passed > app.slowest_frame ? passed : app.slowest_frame;
    app.frames++;
    app.time = now;
    *wants_token = 0;
    if ( !screen_poll( &input ) )
        return 0;
    if ( app.net ) {
        play( &input );
        watch_connection();
        add_graph_points();
    } else if ( app.phase == PHASE_SORRY && input.enter ) {
        app.phase = PHASE_TOKEN;
    }
    *wants_token = app.phase == PHASE_TOKEN;
    draw();
    return 1;
}

#if defined( __EMSCRIPTEN__ )
#include "client_web.h"
#else
#include "client_window.h"
#endif
