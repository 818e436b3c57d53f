/*  The screen as the canvas of a page. Its other half is `Module.screen`, which arena.mjs makes: a 2D context to draw on,
    and what keys and mouse did since the last frame. */

#include <emscripten.h>

#include <string.h>

/* clang-format off */
EM_JS( void, canvas_rectangle, ( double x, double y, double width, double height, uint32_t color ), {
    Module.screen.fill( color );
    Module.screen.context.fillRect( x, y, width, height );
} )

EM_JS( void, canvas_disc, ( double x, double y, double radius, uint32_t color ), {
    const context = Module.screen.context;
    Module.screen.fill( color );
    context.beginPath();
    context.arc( x, y, radius, 0, 2 * Math.PI );
    context.fill();
} )

EM_JS( void, canvas_line, ( double x, double y, double to_x, double to_y, uint32_t color ), {
    const context = Module.screen.context;
    Module.screen.stroke( color );
    context.beginPath();
    context.moveTo( x, y );
    context.lineTo( to_x, to_y );
    context.stroke();
} )

EM_JS( void, canvas_text, ( double x, double y, const char * text, uint32_t color ), {
    Module.screen.fill( color );
    Module.screen.context.fillText( UTF8ToString( text ), x, y );
} )

EM_JS( int, canvas_pressed, (), {
    const screen = Module.screen, pressed = screen.held | screen.pressed;
    screen.pressed = 0;
    return pressed;
} )

EM_JS( double, canvas_mouse, ( int axis ), {
    return axis ? Module.screen.mouseY : Module.screen.mouseX;
} )

EM_JS( void, canvas_typed, ( char * text, int capacity ), {
    stringToUTF8( Module.screen.typed, text, capacity );
    Module.screen.typed = '';
} )
/* clang-format on */

/* The bits of canvas_pressed, as arena.mjs sets them. */
enum {
    CANVAS_UP = 1,
    CANVAS_DOWN = 2,
    CANVAS_LEFT = 4,
    CANVAS_RIGHT = 8,
    CANVAS_FIRE = 16,
    CANVAS_ENTER = 32,
    CANVAS_BACKSPACE = 64,
    CANVAS_ESCAPE = 128
};

static int canvas_width, canvas_height;

static int screen_open( const char * title, int width, int height )
{
    (void) title; /* the page has one */
    canvas_width = width;
    canvas_height = height;
    return 1;
}

static int screen_poll( struct screen_input_t * input )
{
    int pressed = canvas_pressed();
    memset( input, 0, sizeof( *input ) );
    input->up = ( pressed & CANVAS_UP ) != 0;
    input->down = ( pressed & CANVAS_DOWN ) != 0;
    input->left = ( pressed & CANVAS_LEFT ) != 0;
    input->right = ( pressed & CANVAS_RIGHT ) != 0;
    input->fire = ( pressed & CANVAS_FIRE ) != 0;
    input->enter = ( pressed & CANVAS_ENTER ) != 0;
    input->backspace = ( pressed & CANVAS_BACKSPACE ) != 0;
    input->escape = ( pressed & CANVAS_ESCAPE ) != 0;
    input->mouse_x = canvas_mouse( 0 );
    input->mouse_y = canvas_mouse( 1 );
    canvas_typed( input->typed, sizeof( input->typed ) );
    return 1;
}

static void screen_clear( uint32_t color )
{
    canvas_rectangle( 0, 0, canvas_width, canvas_height, color );
}

static void screen_rectangle( double x, double y, double width, double height, uint32_t color )
{
    canvas_rectangle( x, y, width, height, color );
}

static void screen_disc( double x, double y, double radius, uint32_t color )
{
    canvas_disc( x, y, radius, color );
}

static void screen_line( double x, double y, double to_x, double to_y, uint32_t color )
{
    canvas_line( x, y, to_x, to_y, color );
}

static void screen_text( double x, double y, const char * text, uint32_t color )
{
    canvas_text( x, y, text, color );
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
