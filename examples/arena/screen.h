/*  A screen to draw on and the player's hands: the little that the arena needs of a system, so that client.c is the same
    in a window (screen_sdl.h, SDL2) and in a browser's tab (screen_web.h, a canvas). Another engine goes here.

        if ( !screen_open( "Arena", 1280, 800 ) ) ...
        each frame:
            struct screen_input_t input;
            if ( !screen_poll( &input ) ) the window was closed
            screen_clear( 0x102030 );
            screen_disc( x, y, 8, 0xff8800 );
            screen_show();

    Coordinates are pixels from the upper left corner, colours 0xRRGGBB. Text is 8 by 8 pixels a character, doubled. */

#ifndef ARENA_SCREEN_H
#define ARENA_SCREEN_H

#include <stdint.h>

enum { SCREEN_TEXT_WIDTH = 16, SCREEN_TEXT_HEIGHT = 16, SCREEN_TYPED_BYTES = 64 };

/* What the player does in this frame. */
struct screen_input_t {
    int up, down, left, right, fire; /* held */
    int enter, backspace, escape;    /* pressed since the last frame */
    double mouse_x, mouse_y;
    char typed[SCREEN_TYPED_BYTES]; /* text since the last frame, UTF-8 */
};

static int screen_open( const char * title, int width, int height );
static int screen_poll( struct screen_input_t * input );
static void screen_clear( uint32_t color );
static void screen_rectangle( double x, double y, double width, double height, uint32_t color );
static void screen_disc( double x, double y, double radius, uint32_t color );
static void screen_line( double x, double y, double to_x, double to_y, uint32_t color );
static void screen_text( double x, double y, const char * text, uint32_t color );
static void screen_show( void );
static int screen_save( const char * path ); /* a picture of the last frame, as BMP. 1, or 0 where there is none */
static void screen_close( void );

#if defined( __EMSCRIPTEN__ )
#include "screen_web.h"
#else
#include "screen_sdl.h"
#endif

#endif
