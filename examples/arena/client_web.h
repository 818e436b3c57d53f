/*  The arena's client in a page: what arena.mjs calls around the frame of client.c, which includes it. JavaScript has the
    login, the transport, and the pace of the frames. */

#ifndef ARENA_CLIENT_WEB_H
#define ARENA_CLIENT_WEB_H

static uint8_t web_token[NETCODE_CONNECT_TOKEN_BYTES];
static char web_text[16384]; /* what goes to JavaScript, or comes from it */

/* Where JavaScript writes a token. */
EMSCRIPTEN_KEEPALIVE uint8_t * arena_token( void )
{
    return web_token;
}

EMSCRIPTEN_KEEPALIVE char * arena_text( void )
{
    return web_text;
}

/* Once, before all others. 1, or 0. */
EMSCRIPTEN_KEEPALIVE int arena_open( uint32_t seed )
{
    arena_bot_init( &app.bot, seed );
    return netcode_init() == NETCODE_OK && screen_open( "Arena", WIDTH, HEIGHT );
}

/* The servers of the token, a line each, for the transport; their number, or 0 if it is no token. */
EMSCRIPTEN_KEEPALIVE int arena_servers( void )
{
    return netcode_web_servers( web_token, web_text, (int) sizeof( web_text ) );
}

/* Connects with the token; the transport is open. */
EMSCRIPTEN_KEEPALIVE int arena_begin( double now )
{
    end();
    int good = begin( web_token, now );
    memset( web_token, 0, sizeof( web_token ) );
    return good;
}

/* There is no token, or no transport: arena_text says why. */
EMSCRIPTEN_KEEPALIVE void arena_sorry( void )
{
    end();
    snprintf( app.why, sizeof( app.why ), "%s", web_text );
    app.phase = PHASE_SORRY;
}

/* The page goes away. */
EMSCRIPTEN_KEEPALIVE void arena_end( void )
{
    end();
    app.phase = PHASE_SORRY;
}

/* 1: the player wants to come in, and waits for arena_begin or arena_sorry. */
EMSCRIPTEN_KEEPALIVE int arena_frame( double now )
{
    int wants_token = 0;
    frame( now, &wants_token );
    return wants_token;
}

EMSCRIPTEN_KEEPALIVE void arena_bot( int on )
{
    app.is_bot = on;
}

/* For tests and curious players: how it stands, as JSON in arena_text. */
EMSCRIPTEN_KEEPALIVE void arena_state( void )
{
    static const char * phases[] = { "token", "connecting", "playing", "sorry" };
    struct arena_drawn_t drawn;
    char why[sizeof( app.why )];
    memcpy( why, app.why, sizeof( why ) );
    for ( char * at = why; *at; at++ ) /* what would need care in JSON */
        if ( *at == '"' || *at == '\\' || ( *at > 0 && *at < ' ' ) )
            *at = '_';
    int at =
        snprintf( web_text, sizeof( web_text ),
                  "{\"phase\":\"%s\",\"why\":\"%s\",\"slot\":%d,\"health\":%d,\"score\":%d,\"frames\":%d,\"snapshots\":"
                  "%d,"
                  "\"corrections\":%d,\"roundTrip\":%.4f,\"loss\":%.4f,\"render\":%.3f,\"x\":%d,\"y\":%d,\"others\":[",
                  phases[app.phase], why, app.player.slot, app.player.own.health, app.player.own.score,
                  (int) app.frames, (int) app.player.snapshots, (int) app.player.corrections, app.player.round_trip,
                  app.player.loss, app.player.render, app.player.own.x, app.player.own.y );
    for ( int i = 0, count = 0; app.phase == PHASE_PLAYING && i < ARENA_PLAYERS; i++ )
        if ( i != app.player.slot && arena_client_other( &app.player, i, &drawn ) )
            at += snprintf( web_text + at, sizeof( web_text ) - (size_t) at, "%s[%d,%.0f,%.0f,%d]", count++ ? "," : "",
                            i, drawn.x, drawn.y, drawn.health );
    snprintf( web_text + at, sizeof( web_text ) - (size_t) at, "]}" );
}

#endif
