/*  The screen as a window, by SDL2. Its font is the one of SDL's own tests (libSDL2_test), so that no file is needed. */

#include <SDL2/SDL.h>
#include <SDL2/SDL_test_font.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static SDL_Window * screen_window;
static SDL_Renderer * screen_renderer;

static int screen_open( const char * title, int width, int height )
{
    if ( SDL_Init( SDL_INIT_VIDEO ) != 0 )
        return 0;
    screen_window =
        SDL_CreateWindow( title, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width, height, SDL_WINDOW_RESIZABLE );
    screen_renderer = screen_window ? SDL_CreateRenderer( screen_window, -1, SDL_RENDERER_PRESENTVSYNC ) : NULL;
    if ( screen_window && !screen_renderer )
        screen_renderer = SDL_CreateRenderer( screen_window, -1, SDL_RENDERER_SOFTWARE );
    if ( !screen_renderer )
        return 0;
    SDL_RenderSetLogicalSize( screen_renderer, width, height );
    SDL_StartTextInput();
    return 1;
}

static int screen_poll( struct screen_input_t * input )
{
    SDL_Event event;
    int x = 0, y = 0;
    float scaled_x = 0.0f, scaled_y = 0.0f;
    memset( input, 0, sizeof( *input ) );
    while ( SDL_PollEvent( &event ) ) {
        if ( event.type == SDL_QUIT )
            return 0;
        if ( event.type == SDL_TEXTINPUT &&
             strlen( input->typed ) + strlen( event.text.text ) < sizeof( input->typed ) )
            memcpy( input->typed + strlen( input->typed ), event.text.text, strlen( event.text.text ) );
        if ( event.type == SDL_KEYDOWN ) {
            SDL_Keycode key = event.key.keysym.sym;
            input->enter |= key == SDLK_RETURN || key == SDLK_KP_ENTER;
            input->backspace |= key == SDLK_BACKSPACE;
            input->escape |= key == SDLK_ESCAPE;
        }
    }
    const uint8_t * keys = SDL_GetKeyboardState( NULL );
    uint32_t mouse = SDL_GetMouseState( &x, &y );
    SDL_RenderWindowToLogical( screen_renderer, x, y, &scaled_x, &scaled_y );
    input->mouse_x = (double) scaled_x;
    input->mouse_y = (double) scaled_y;
    input->up = keys[SDL_SCANCODE_W] || keys[SDL_SCANCODE_UP];
    input->down = keys[SDL_SCANCODE_S] || keys[SDL_SCANCODE_DOWN];
    input->left = keys[SDL_SCANCODE_A] || keys[SDL_SCANCODE_LEFT];
    input->right = keys[SDL_SCANCODE_D] || keys[SDL_SCANCODE_RIGHT];
    input->fire = ( mouse & SDL_BUTTON_LMASK ) != 0 || keys[SDL_SCANCODE_SPACE];
    return 1;
}

static void screen_color( uint32_t color )
{
    SDL_SetRenderDrawColor( screen_renderer, (uint8_t) ( color >> 16 ), (uint8_t) ( color >> 8 ), (uint8_t) color,
                            255 );
}

static void screen_clear( uint32_t color )
{
    screen_color( color );
    SDL_RenderClear( screen_renderer );
}

static void screen_rectangle( double x, double y, double width, double height, uint32_t color )
{
    SDL_FRect rectangle = { (float) x, (float) y, (float) width, (float) height };
    screen_color( color );
    SDL_RenderFillRectF( screen_renderer, &rectangle );
}

/* A fan of triangles. */
static void screen_disc( double x, double y, double radius, uint32_t color )
{
    enum { CORNERS = 16 };
    SDL_Vertex vertices[CORNERS + 1];
    int indices[3 * CORNERS];
    memset( vertices, 0, sizeof( vertices ) );
    for ( int i = 0; i <= CORNERS; i++ ) {
        double turn = i * 2.0 * 3.14159265358979 / CORNERS, away = i < CORNERS ? radius : 0.0;
        vertices[i].position.x = (float) ( x + cos( turn ) * away );
        vertices[i].position.y = (float) ( y + sin( turn ) * away );
        vertices[i].color.r = (uint8_t) ( color >> 16 );
        vertices[i].color.g = (uint8_t) ( color >> 8 );
        vertices[i].color.b = (uint8_t) color;
        vertices[i].color.a = 255;
    }
    for ( int i = 0; i < CORNERS; i++ ) {
        indices[3 * i] = CORNERS;
        indices[3 * i + 1] = i;
        indices[3 * i + 2] = ( i + 1 ) % CORNERS;
    }
    SDL_RenderGeometry( screen_renderer, NULL, vertices, CORNERS + 1, indices, 3 * CORNERS );
}

static void screen_line( double x, double y, double to_x, double to_y, uint32_t color )
{
    screen_color( color );
    SDL_RenderDrawLineF( screen_renderer, (float) x, (float) y, (float) to_x, (float) to_y );
}

static void screen_text( double x, double y, const char * text, uint32_t color )
{
    float scale_x = 1.0f, scale_y = 1.0f;
    SDL_RenderGetScale( screen_renderer, &scale_x, &scale_y );
    SDL_RenderSetScale( screen_renderer, 2.0f * scale_x, 2.0f * scale_y );
    screen_color( color );
    SDLTest_DrawString( screen_renderer, (int) ( x / 2.0 ), (int) ( y / 2.0 ), text );
    SDL_RenderSetScale( screen_renderer, scale_x, scale_y );
}

static void screen_show( void )
{
    SDL_RenderPresent( screen_renderer );
}

static int screen_save( const char * path )
{
    int width = 0, height = 0;
    SDL_GetRendererOutputSize( screen_renderer, &width, &height );
    SDL_Surface * surface = SDL_CreateRGBSurfaceWithFormat( 0, width, height, 32, SDL_PIXELFORMAT_ARGB8888 );
    int good =
        surface &&
        SDL_RenderReadPixels( screen_renderer, NULL, SDL_PIXELFORMAT_ARGB8888, surface->pixels, surface->pitch ) == 0 &&
        SDL_SaveBMP( surface, path ) == 0;
    SDL_FreeSurface( surface );
    return good;
}

static void screen_close( void )
{
    SDLTest_CleanupTextDrawing();
    SDL_DestroyRenderer( screen_renderer );
    SDL_DestroyWindow( screen_window );
    SDL_Quit();
}
