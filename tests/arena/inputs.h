/*  Messages of the arena for tests and for the fuzzer: valid ones at random, and what must be true of whatever a reader
    returns. It needs the arena's headers only. */

#ifndef ARENA_INPUTS_H
#define ARENA_INPUTS_H

#include "../../examples/arena/arena_map.h"
#include "../../examples/arena/arena_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS_COMMANDS, INPUTS_SNAPSHOT, INPUTS_NEWS, INPUTS_SHOT, INPUTS_BITS, INPUTS_KINDS };

enum { INPUTS_BASE_TICK = 1000 /* the newest of the snapshots that inputs_keep keeps */ };

/* ---- numbers ---- */

static uint64_t inputs_state = 1;

static uint32_t inputs_random( void )
{
    inputs_state ^= inputs_state << 13;
    inputs_state ^= inputs_state >> 7;
    inputs_state ^= inputs_state << 17;
    return (uint32_t) ( inputs_state >> 32 );
}

static int inputs_below( int limit )
{
    return (int) ( inputs_random() % (uint32_t) limit );
}

/* The ends of a range are as likely as all between them. */
static int inputs_within( int most )
{
    int how = inputs_below( 8 );
    return how == 0 ? 0 : how == 1 ? most : inputs_below( most + 1 );
}

static inline void inputs_fill( uint8_t * data, int bytes )
{
    for ( int i = 0; i < bytes; i++ )
        data[i] = (uint8_t) inputs_random();
}

/* ---- valid messages ---- */

static inline void inputs_draw_commands( struct arena_input_t * input )
{
    memset( input, 0, sizeof( *input ) );
    input->tick = inputs_random() >> inputs_below( 32 );
    uint32_t most = input->tick < ARENA_NO_SNAPSHOT ? input->tick : ARENA_NO_SNAPSHOT;
    input->acked = most && inputs_below( 4 ) ? input->tick - (uint32_t) inputs_below( (int) most ) : 0;
    input->count = 1 + inputs_below( ARENA_REDUNDANCY );
    for ( int i = 0; i < input->count; i++ ) {
        if ( i && inputs_below( 2 ) ) {
            input->commands[i] = input->commands[i - 1];
            continue;
        }
        input->commands[i].buttons = (uint8_t) inputs_within( ARENA_BUTTONS );
        input->commands[i].aim = (uint8_t) inputs_within( 255 );
        input->commands[i].view_age = (uint8_t) inputs_within( 255 );
    }
}

static inline void inputs_draw_view( struct arena_view_t * view )
{
    memset( view, 0, sizeof( *view ) );
    view->is_there = (uint8_t) ( inputs_below( 4 ) > 0 );
    if ( !view->is_there )
        return;
    view->health = (uint8_t) inputs_within( ARENA_FULL_HEALTH );
    view->aim = (uint8_t) inputs_within( 255 / ARENA_AIM_GRAIN );
    view->rapid = (uint8_t) inputs_below( 2 );
    view->score = (uint16_t) inputs_within( ARENA_MAX_SCORE );
    view->x = (uint16_t) inputs_within( ARENA_WIDTH / ARENA_GRAIN - 1 );
    view->y = (uint16_t) inputs_within( ARENA_HEIGHT / ARENA_GRAIN - 1 );
}

/* A new state of the same players: some stay, some move, some do anything. */
static inline void inputs_change_view( struct arena_view_t * view )
{
    int how = inputs_below( 4 ), x = view->x + inputs_below( 9 ) - 4;
    if ( how == 0 )
        inputs_draw_view( view );
    else if ( how == 1 && view->is_there && x >= 0 && x < ARENA_WIDTH / ARENA_GRAIN )
        view->x = (uint16_t) x;
}

static inline void inputs_draw_own( struct arena_own_t * own )
{
    struct arena_player_t * player = &own->player;
    memset( own, 0, sizeof( *own ) );
    own->margin = inputs_within( ARENA_MAX_MARGIN + ARENA_NO_MARGIN ) - ARENA_MAX_MARGIN;
    player->is_there = (uint8_t) ( inputs_below( 4 ) > 0 );
    if ( !player->is_there )
        return;
    player->health = (uint8_t) inputs_within( ARENA_FULL_HEALTH );
    player->aim = (uint8_t) inputs_within( 255 );
    player->wait_fire = (uint8_t) inputs_within( ARENA_RELOAD_TICKS );
    player->wait_spawn = (uint8_t) inputs_within( ARENA_RESPAWN_TICKS );
    player->rapid = (uint16_t) inputs_within( ARENA_RAPID_TICKS );
    player->score = (uint16_t) inputs_within( ARENA_MAX_SCORE );
    player->x = (int16_t) inputs_within( ARENA_WIDTH - 1 );
    player->y = (int16_t) inputs_within( ARENA_HEIGHT - 1 );
}

static inline void inputs_draw_snapshot( struct arena_snapshot_t * snapshot, uint32_t tick )
{
    memset( snapshot, 0, sizeof( *snapshot ) );
    snapshot->tick = tick;
    snapshot->items = (uint16_t) inputs_random();
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        inputs_draw_view( &snapshot->players[i] );
}

/* A full ring of snapshots, the newest of INPUTS_BASE_TICK. The same each time. */
static inline void inputs_keep( struct arena_kept_t * kept )
{
    struct arena_snapshot_t snapshot;
    uint64_t state = inputs_state;
    inputs_state = 77;
    memset( kept, 0, sizeof( *kept ) );
    inputs_draw_snapshot( &snapshot, 0 );
    for ( int i = ARENA_KEPT - 1; i >= 0; i-- ) {
        snapshot.tick = (uint32_t) ( INPUTS_BASE_TICK - i * ARENA_SNAPSHOT_TICKS );
        for ( int k = 0; k < ARENA_PLAYERS; k++ )
            inputs_change_view( &snapshot.players[k] );
        arena_keep( kept, &snapshot );
    }
    inputs_state = state;
}

/* Text of up to `most` bytes, of characters from one to four bytes long. */
static inline void inputs_draw_text( char * text, int most )
{
    static const char * const characters[] = { "a",
                                               " ",
                                               "~",
                                               "\xc2\xa0",
                                               "\xc3\xa4",
                                               "\xdf\xbf",
                                               "\xe0\xa0\x80",
                                               "\xed\x9f\xbf",
                                               "\xee\x80\x80",
                                               "\xf0\x90\x80\x80",
                                               "\xf4\x8f\xbf\xbf" };
    int length = 1 + inputs_within( most - 1 ), at = 0;
    while ( at < length ) {
        const char * character = characters[inputs_below( 3 ) ? inputs_below( 3 ) : inputs_below( 11 )];
        int bytes = (int) strlen( character );
        if ( at + bytes > length )
            character = "x", bytes = 1;
        memcpy( text + at, character, (size_t) bytes );
        at += bytes;
    }
    text[at] = 0;
}

static inline void inputs_draw_news( struct arena_news_t * news )
{
    memset( news, 0, sizeof( *news ) );
    news->type = (enum arena_news_type_t) inputs_below( ARENA_NEWS_TYPES );
    news->player = inputs_within( ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_KILLED || news->type == ARENA_NEWS_PICKUP )
        news->other = inputs_within( ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_WELCOME )
        news->tick = inputs_random() >> inputs_below( 32 );
    if ( news->type == ARENA_NEWS_JOINED )
        inputs_draw_text( news->text, ARENA_NAME_BYTES );
    if ( news->type == ARENA_NEWS_CHAT )
        inputs_draw_text( news->text, ARENA_TEXT_BYTES );
}

static inline void inputs_draw_shot( struct arena_shot_t * shot )
{
    shot->player = inputs_within( ARENA_PLAYERS - 1 );
    shot->other = inputs_below( 3 ) ? inputs_within( ARENA_PLAYERS - 1 ) : ARENA_NOBODY;
    shot->x = inputs_within( ARENA_WIDTH / ARENA_GRAIN - 1 ) * ARENA_GRAIN;
    shot->y = inputs_within( ARENA_HEIGHT / ARENA_GRAIN - 1 ) * ARENA_GRAIN;
}

/* A valid message of a kind. `kept` is of inputs_keep. Returns its bytes, or -1: then the writer is wrong. */
static inline int inputs_write( int kind, uint8_t * data, int capacity, const struct arena_kept_t * kept )
{
    struct arena_input_t input;
    struct arena_snapshot_t snapshot;
    struct arena_own_t own;
    struct arena_news_t news;
    struct arena_shot_t shot;
    const struct arena_snapshot_t * base = NULL;
    switch ( kind ) {
    case INPUTS_COMMANDS: inputs_draw_commands( &input ); return arena_write_input( data, capacity, &input );
    case INPUTS_NEWS: inputs_draw_news( &news ); return arena_write_news( data, capacity, &news );
    case INPUTS_SHOT: inputs_draw_shot( &shot ); return arena_write_shot( data, capacity, &shot );
    case INPUTS_SNAPSHOT:
        inputs_draw_own( &own );
        inputs_draw_snapshot( &snapshot, INPUTS_BASE_TICK + 2 );
        if ( inputs_below( 4 ) ) {
            base = &kept->ring[inputs_below( ARENA_KEPT )];
            memcpy( snapshot.players, base->players, sizeof( base->players ) );
            for ( int i = 0; i < ARENA_PLAYERS; i++ )
                inputs_change_view( &snapshot.players[i] );
        }
        return arena_write_snapshot( data, capacity, &snapshot, base, &own );
    default: inputs_fill( data, 40 ); return 40;
    }
}

/* ---- what must be true of whatever a reader returns: NULL, or what is wrong ---- */

static inline const char * inputs_judge_commands( const uint8_t * data, int bytes, int * was_read )
{
    struct arena_input_t input, again;
    uint8_t copy[ARENA_MESSAGE_BYTES];
    *was_read = arena_read_input( data, bytes, &input );
    if ( !*was_read )
        return NULL;
    if ( input.count < 1 || input.count > ARENA_REDUNDANCY || input.acked > input.tick )
        return "commands: count or acked";
    for ( int i = 0; i < input.count; i++ )
        if ( input.commands[i].buttons > ARENA_BUTTONS )
            return "commands: buttons";
    int size = arena_write_input( copy, sizeof( copy ), &input );
    if ( size < 0 || !arena_read_input( copy, size, &again ) || memcmp( &input, &again, sizeof( input ) ) != 0 )
        return "commands: written and read again they are others";
    return NULL;
}

static inline int inputs_is_view( const struct arena_view_t * view )
{
    return view->is_there <= 1 && view->health <= ARENA_FULL_HEALTH && view->aim <= 255 / ARENA_AIM_GRAIN &&
           view->rapid <= 1 && view->score <= ARENA_MAX_SCORE && view->x < ARENA_WIDTH / ARENA_GRAIN &&
           view->y < ARENA_HEIGHT / ARENA_GRAIN;
}

static inline int inputs_is_own( const struct arena_own_t * own )
{
    const struct arena_player_t * player = &own->player;
    return own->margin >= -ARENA_MAX_MARGIN && own->margin <= ARENA_NO_MARGIN && player->is_there <= 1 &&
           player->health <= ARENA_FULL_HEALTH && player->wait_fire <= ARENA_RELOAD_TICKS &&
           player->wait_spawn <= ARENA_RESPAWN_TICKS && player->rapid <= ARENA_RAPID_TICKS &&
           player->score <= ARENA_MAX_SCORE && player->x >= 0 && player->x < ARENA_WIDTH && player->y >= 0 &&
           player->y < ARENA_HEIGHT;
}

static inline const char * inputs_judge_snapshot( const uint8_t * data, int bytes, const struct arena_kept_t * kept,
                                                  int * was_read )
{
    struct arena_snapshot_t snapshot, again;
    struct arena_own_t own, own_again;
    uint8_t copy[ARENA_MESSAGE_BYTES];
    *was_read = arena_read_snapshot( data, bytes, kept, &snapshot, &own );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( !inputs_is_view( &snapshot.players[i] ) )
            return "snapshot: a player out of its bounds";
    if ( !*was_read )
        return NULL;
    if ( snapshot.tick == 0 || !inputs_is_own( &own ) )
        return "snapshot: tick, or the own player";
    int size = arena_write_snapshot( copy, sizeof( copy ), &snapshot, NULL, &own );
    if ( size < 0 || !arena_read_snapshot( copy, size, kept, &again, &own_again ) ||
         memcmp( &snapshot, &again, sizeof( snapshot ) ) != 0 || memcmp( &own, &own_again, sizeof( own ) ) != 0 )
        return "snapshot: written and read again it is another";
    return NULL;
}

/* UTF-8 as the standard's table 3-7 has it, row by row, and none of the control characters. */
static inline int inputs_is_text( const uint8_t * at, int length )
{
    static const uint8_t rows[][6] = { { 0x20, 0x7e, 0, 0, 0 },       { 0xc2, 0xc2, 1, 0xa0, 0xbf },
                                       { 0xc3, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf },
                                       { 0xe1, 0xec, 2, 0x80, 0xbf }, { 0xed, 0xed, 2, 0x80, 0x9f },
                                       { 0xee, 0xef, 2, 0x80, 0xbf }, { 0xf0, 0xf0, 3, 0x90, 0xbf },
                                       { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f } };
    const uint8_t * end = at + length;
    while ( at < end ) {
        int row = 0;
        while ( row < 10 && ( *at < rows[row][0] || *at > rows[row][1] ) )
            row++;
        if ( row == 10 || end - at <= rows[row][2] )
            return 0;
        for ( int i = 1; i <= rows[row][2]; i++ )
            if ( at[i] < ( i == 1 ? rows[row][3] : 0x80 ) || at[i] > ( i == 1 ? rows[row][4] : 0xbf ) )
                return 0;
        at += 1 + rows[row][2];
    }
    return length > 0;
}

static inline const char * inputs_judge_news( const uint8_t * data, int bytes, int * was_read )
{
    struct arena_news_t news, again;
    uint8_t copy[ARENA_MESSAGE_BYTES];
    *was_read = arena_read_news( data, bytes, &news );
    if ( !*was_read )
        return NULL;
    int length = (int) strlen( news.text );
    int most = news.type == ARENA_NEWS_JOINED ? ARENA_NAME_BYTES : news.type == ARENA_NEWS_CHAT ? ARENA_TEXT_BYTES : 0;
    if ( (int) news.type < 0 || news.type >= ARENA_NEWS_TYPES || news.player < 0 || news.player >= ARENA_PLAYERS ||
         news.other < 0 || news.other >= ARENA_PLAYERS )
        return "news: a number out of its bounds";
    if ( length > most || ( most && !inputs_is_text( (const uint8_t *) news.text, length ) ) )
        return "news: no text";
    int size = arena_write_news( copy, sizeof( copy ), &news );
    if ( size < 0 || !arena_read_news( copy, size, &again ) || memcmp( &news, &again, sizeof( news ) ) != 0 )
        return "news: written and read again they are others";
    if ( size != bytes || memcmp( data, copy, (size_t) size ) != 0 )
        return "news: there is another form of them";
    return NULL;
}

static inline const char * inputs_judge_shot( const uint8_t * data, int bytes, int * was_read )
{
    struct arena_shot_t shot;
    uint8_t copy[ARENA_MESSAGE_BYTES];
    *was_read = arena_read_shot( data, bytes, &shot );
    if ( shot.player < 0 || shot.player >= ARENA_PLAYERS || shot.other < 0 ||
         ( shot.other >= ARENA_PLAYERS && shot.other != ARENA_NOBODY ) || shot.x < 0 || shot.x >= ARENA_WIDTH ||
         shot.y < 0 || shot.y >= ARENA_HEIGHT )
        return "shot: a number out of its bounds";
    if ( *was_read &&
         ( arena_write_shot( copy, sizeof( copy ), &shot ) != bytes || memcmp( copy, data, (size_t) bytes ) ) )
        return "shot: written again it is another";
    return NULL;
}

/* The bytes say what is read, and are what is read. */
static inline const char * inputs_judge_bits( const uint8_t * data, int bytes, int * was_read )
{
    struct bits_reader_t reader;
    bits_read_begin( &reader, data, bytes );
    for ( int i = 0; i + 8 < bytes; i += 8 ) {
        int32_t a, b, base, value;
        uint8_t copy[8];
        memcpy( &a, data + i, 4 );
        memcpy( &b, data + i + 4, 4 );
        int32_t lowest = a < b ? a : b, highest = a < b ? b : a;
        base = (int32_t) ( (uint32_t) lowest + data[i + 8] - 128u );
        switch ( data[i + 8] & 3 ) {
        case 0: value = bits_read_range( &reader, lowest, highest ); break;
        case 1: value = bits_read_difference( &reader, base, lowest, highest ); break;
        case 2:
            value = lowest;
            if ( bits_read( &reader, data[i] & 31 ) >> ( data[i] & 31 ) )
                return "bits: more than were asked for";
            break;
        default: value = lowest; bits_read_bytes( &reader, copy, data[i] & 7 );
        }
        if ( value < lowest || value > highest || ( reader.failed && value != lowest ) )
            return "bits: out of its range";
        if ( reader.at > reader.size )
            return "bits: beyond the end";
    }
    *was_read = bits_read_end( &reader );
    return NULL;
}

static inline const char * inputs_judge( int kind, const uint8_t * data, int bytes, const struct arena_kept_t * kept,
                                         int * was_read )
{
    switch ( kind ) {
    case INPUTS_COMMANDS: return inputs_judge_commands( data, bytes, was_read );
    case INPUTS_SNAPSHOT: return inputs_judge_snapshot( data, bytes, kept, was_read );
    case INPUTS_NEWS: return inputs_judge_news( data, bytes, was_read );
    case INPUTS_SHOT: return inputs_judge_shot( data, bytes, was_read );
    default: return inputs_judge_bits( data, bytes, was_read );
    }
}

/* ---- the fuzzer's first inputs: a byte for the reader, and a message ---- */

/* 0, or 1 where they can not be written. */
static inline int inputs_write_corpus( const char * directory )
{
    static struct arena_kept_t kept;
    inputs_keep( &kept );
    for ( int i = 0; i < 8 * INPUTS_KINDS; i++ ) {
        char path[512];
        uint8_t data[1 + ARENA_MESSAGE_BYTES] = { (uint8_t) ( i % INPUTS_KINDS ) };
        int bytes = inputs_write( i % INPUTS_KINDS, data + 1, ARENA_MESSAGE_BYTES, &kept );
        snprintf( path, sizeof( path ), "%s/%02d", directory, i );
        FILE * file = fopen( path, "wb" );
        if ( !file || bytes < 0 || fwrite( data, 1, (size_t) bytes + 1, file ) != (size_t) bytes + 1 ||
             fclose( file ) ) {
            fprintf( stderr, "arena-unit: %s can not be written\n", path );
            return 1;
        }
    }
    return 0;
}

#endif
