/*  The screen as the canvas of a page. Its other half is `Module.screen`, which arena.mjs makes: a 2D context to draw on,
    and what keys and mouse did since the last frame. */

#include <emscripten.h>

#include <string.h>

/* clang-format off */
EM_JS( void, web_rectangle, ( double x, double y, double width, double height, uint32_t color ), {
    Module.screen.fill( color );
    Module.screen.context.fillRect( x, y, width, height );
} )

EM_JS( void, web_disc, ( double x, double y, double radius, uint32_t color ), {
    const context = Module.screen.context;
    Module.screen.fill( color );
    context.beginPath();
    context.arc( x, y, radius, 0, 2 * Math.PI );
    context.fill();
} )

EM_JS( void, web_line, ( double x, double y, double to_x, double to_y, uint32_t color ), {
    const context = Module.screen.context;
    Module.screen.stroke( color );
    context.beginPath();
    context.moveTo( x, y );
    context.lineTo( to_x, to_y );
    context.stroke();
} )

EM_JS( void, web_text, ( double x, double y, const char * text, uint32_t color ), {
    Module.screen.fill( color );
    Module.screen.context.fillText( UTF8ToString( text ), x, y );
} )

EM_JS( int, web_pressed, ( void ), {
    const screen = Module.screen, pressed = screen.held | screen.pressed;
    screen.pressed = 0;
    return pressed;
} )

EM_JS( double, web_mouse, ( int axis ), {
    return axis ? Module.screen.mouseY : Module.screen.mouseX;
} )

EM_JS( void, web_typed, ( char * text, int capacity ), {
    stringToUTF8( Module.screen.typed, text, capacity );
    Module.screen.typed = '';
} )
/* clang-format on */

/* The bits of web_pressed, as arena.mjs sets them. */
enum {
    WEB_UP = 1,
    WEB_DOWN = 2,
    WEB_LEFT = 4,
    WEB_RIGHT = 8,
    WEB_FIRE = 16,
    WEB_ENTER = 32,
    WEB_BACKSPACE = 64,
    WEB_ESCAPE = 128
};

static int web_width, web_height;

static int screen_open( const char * title, int width, int height )
{
    (void) title; /* the page has one */
    web_width = width;
    web_height = height;
    return 1;
}

static int screen_poll( struct screen_input_t * input )
{
    int pressed = web_pressed();
    memset( input, 0, sizeof( *input ) );
    input->up = ( pressed & WEB_UP ) != 0;
    input->down = ( pressed & WEB_DOWN ) != 0;
    input->left = ( pressed & WEB_LEFT ) != 0;
    input->right = ( pressed & WEB_RIGHT ) != 0;
    input->fire = ( pressed & WEB_FIRE ) != 0;
    input->enter = ( pressed & WEB_ENTER ) != 0;
    input->backspace = ( pressed & WEB_BACKSPACE ) != 0;
    input->escape = ( pressed & WEB_ESCAPE ) != 0;
    input->mouse_x = web_mouse( 0 );
    input->mouse_y = web_mouse( 1 );
    web_typed( input->typed, sizeof( input->typed ) );
    return 1;
}

static void screen_clear( uint32_t color )
{
    web_rectangle( 0, 0, web_width, web_height, color );
}

static void screen_rectangle( double x, double y, double width, double height, uint32_t color )
{
    web_rectangle( x, y, width, height, color );
}

static void screen_disc( double x, double y, double radius, uint32_t color )
{
    web_disc( x, y, radius, color );
}

static void screen_line( double x, double y, double to_x, double to_y, uint32_t color )
{
    web_line( x, y, to_x, to_y, color );
}

static void screen_text( double x, double y, const char * text, uint32_t color )
{
    web_text( x, y, text, color );
}

static void screen_show( void )
{
    /* the browser shows what was drawn when the frame's function returns */
}

static int screen_save( const char * path )
{
    (void) path;
    return 0;
}

static void screen_close( void )
{
}
