/*  What the arena's server and clients say to each other: commands, snapshots and news, as bits with bounds. Nothing
    here knows a socket: each write fills a message, each read returns 1, or 0 for a message that is not to be used.
    Readers change nothing but their result, and what they return is within its range whatever the bytes were.

    channel    kind                   message
    COMMANDS   UNRELIABLE             the client's newest commands, and which snapshot it has: each tick
    SNAPSHOTS  UNRELIABLE_SEQUENCED   all players, as differences to that snapshot: 30 times a second
    SHOTS      UNRELIABLE             a shot to be drawn
    NEWS       RELIABLE_ORDERED       welcome, joined, left, killed, picked up, chat
    MAP        a stream               the map's text

    Positions of others are sent in eighths of what the rules count in, aims in 64ths of a turn: nobody sees the
    difference. A player's own state is exact, as its client predicts from it. */

#ifndef ARENA_NET_H
#define ARENA_NET_H

#include "arena_sim.h"
#include "bits.h"

#define ARENA_PROTOCOL_ID 0x4172656e61000001ull /* "Arena", version 1: another for each change of this file */

enum { ARENA_COMMANDS, ARENA_SNAPSHOTS, ARENA_SHOTS, ARENA_NEWS, ARENA_MAP, ARENA_CHANNELS };

enum {
    ARENA_SNAPSHOT_TICKS = 2, /* a snapshot each second tick: 30 Hz */
    ARENA_GRAIN = 8,          /* positions of others */
    ARENA_AIM_GRAIN = 4,
    ARENA_KEPT = 32,       /* snapshots that both sides remember, to build differences on */
    ARENA_REDUNDANCY = 12, /* commands in a message: each is sent so often before it is given up */
    ARENA_NO_SNAPSHOT = 1023,
    ARENA_MAX_MARGIN = 30,
    ARENA_NO_MARGIN = 31,
    ARENA_NAME_BYTES = 15,
    ARENA_TEXT_BYTES = 120,
    ARENA_MESSAGE_BYTES = 1100, /* the largest of these messages: a snapshot of 64 players has 473 at most */
    ARENA_MAP_TAG = 1           /* of the stream */
};

/* The commands of consecutive ticks, the newest first. */
struct arena_input_t {
    uint32_t tick;  /* of the newest command: the server is to run it in this step */
    uint32_t acked; /* the tick of the newest snapshot that the client has; 0: none */
    int count;
    struct arena_command_t commands[ARENA_REDUNDANCY];
};

/* What everybody sees of a player. */
struct arena_view_t {
    uint8_t is_there, health, aim, rapid;
    uint16_t score;
    uint16_t x, y; /* in ARENA_GRAIN */
};

struct arena_snapshot_t {
    uint32_t tick;  /* 0: none */
    uint16_t items; /* a bit for each that is there */
    struct arena_view_t players[ARENA_PLAYERS];
};

/* What only its own player gets, with a snapshot. */
struct arena_own_t {
    struct arena_player_t player;
    /* Ticks by which the newest command was early; negative: late; or ARENA_NO_MARGIN: none came. It steers the
       client's clock. */
    int margin;
};

struct arena_kept_t {
    struct arena_snapshot_t ring[ARENA_KEPT];
    int next;
};

enum arena_news_type_t {
    ARENA_NEWS_WELCOME, /* tick: the server's now */
    ARENA_NEWS_JOINED,  /* player, text: its name */
    ARENA_NEWS_LEFT,    /* player */
    ARENA_NEWS_KILLED,  /* player killed other */
    ARENA_NEWS_PICKUP,  /* player, other: the item's kind */
    ARENA_NEWS_CHAT,    /* player (from clients: anything), text */
    ARENA_NEWS_TYPES
};

struct arena_news_t {
    enum arena_news_type_t type;
    int player, other;
    uint32_t tick;
    char text[ARENA_TEXT_BYTES + 1];
};

struct arena_shot_t {
    int player, other; /* other: who was hit, or ARENA_NOBODY */
    int x, y;          /* where it ended */
};

/* ---- commands ---- */

static inline int arena_same_command( const struct arena_command_t * a, const struct arena_command_t * b )
{
    return a->buttons == b->buttons && a->aim == b->aim && a->view_age == b->view_age;
}

/* The bytes, or -1. */
static inline int arena_write_input( uint8_t * data, int capacity, const struct arena_input_t * input )
{
    struct bits_writer_t writer;
    uint32_t age = input->acked && input->acked <= input->tick && input->tick - input->acked < ARENA_NO_SNAPSHOT
                       ? input->tick - input->acked
                       : ARENA_NO_SNAPSHOT;
    bits_write_begin( &writer, data, capacity );
    bits_write( &writer, input->tick, 32 );
    bits_write( &writer, age, 10 );
    bits_write_range( &writer, input->count, 1, ARENA_REDUNDANCY );
    for ( int i = 0; i < input->count && !writer.failed; i++ ) {
        const struct arena_command_t * command = &input->commands[i];
        int is_same = i > 0 && arena_same_command( command, command - 1 );
        bits_write( &writer, (uint32_t) is_same, 1 );
        if ( is_same )
            continue;
        bits_write_range( &writer, command->buttons, 0, ARENA_BUTTONS );
        bits_write( &writer, command->aim, 8 );
        bits_write( &writer, command->view_age, 8 );
    }
    return bits_write_end( &writer );
}

static inline int arena_read_input( const uint8_t * data, int bytes, struct arena_input_t * input )
{
    struct bits_reader_t reader;
    memset( input, 0, sizeof( *input ) );
    bits_read_begin( &reader, data, bytes );
    input->tick = bits_read( &reader, 32 );
    uint32_t age = bits_read( &reader, 10 );
    input->acked = age < ARENA_NO_SNAPSHOT && age < input->tick ? input->tick - age : 0;
    input->count = bits_read_range( &reader, 1, ARENA_REDUNDANCY );
    for ( int i = 0; i < input->count; i++ ) {
        struct arena_command_t * command = &input->commands[i];
        if ( bits_read( &reader, 1 ) ) {
            if ( i == 0 )
                return 0; /* the first has none before it */
            *command = *( command - 1 );
            continue;
        }
        command->buttons = (uint8_t) bits_read_range( &reader, 0, ARENA_BUTTONS );
        command->aim = (uint8_t) bits_read( &reader, 8 );
        command->view_age = (uint8_t) bits_read( &reader, 8 );
    }
    return bits_read_end( &reader );
}

/* ---- snapshots ---- */

/* What is sent of this state, and so what the next differences are built on. */
static inline void arena_take_snapshot( const struct arena_t * arena, struct arena_snapshot_t * snapshot )
{
    memset( snapshot, 0, sizeof( *snapshot ) );
    snapshot->tick = arena->tick;
    for ( int i = 0; i < arena->map.items; i++ )
        if ( !arena->items[i].wait )
            snapshot->items |= (uint16_t) ( 1u << i );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_player_t * player = &arena->players[i];
        struct arena_view_t * view = &snapshot->players[i];
        if ( !player->is_there )
            continue;
        view->is_there = 1;
        view->health = player->health;
        view->aim = (uint8_t) ( player->aim / ARENA_AIM_GRAIN );
        view->rapid = player->rapid > 0;
        view->score = player->score;
        view->x = (uint16_t) ( player->x / ARENA_GRAIN );
        view->y = (uint16_t) ( player->y / ARENA_GRAIN );
    }
}

static inline struct arena_snapshot_t * arena_keep( struct arena_kept_t * kept,
                                                    const struct arena_snapshot_t * snapshot )
{
    struct arena_snapshot_t * place = &kept->ring[kept->next];
    kept->next = ( kept->next + 1 ) % ARENA_KEPT;
    *place = *snapshot;
    return place;
}

/* NULL if it is not kept any more. */
static inline const struct arena_snapshot_t * arena_find_kept( const struct arena_kept_t * kept, uint32_t tick )
{
    for ( int i = 0; tick && i < ARENA_KEPT; i++ )
        if ( kept->ring[i].tick == tick )
            return &kept->ring[i];
    return NULL;
}

/* What the first snapshot is a difference to: no player, in the middle. */
static inline struct arena_view_t arena_no_view( void )
{
    struct arena_view_t view;
    memset( &view, 0, sizeof( view ) );
    view.health = ARENA_FULL_HEALTH;
    view.x = ARENA_WIDTH / ARENA_GRAIN / 2;
    view.y = ARENA_HEIGHT / ARENA_GRAIN / 2;
    return view;
}

static inline void arena_write_view( struct bits_writer_t * writer, const struct arena_view_t * view,
                                     const struct arena_view_t * base )
{
    struct arena_view_t rest = *view; /* what is seldom different, all of it together */
    rest.x = base->x;
    rest.y = base->y;
    rest.aim = base->aim;
    rest.is_there = base->is_there;
    int is_other = memcmp( &rest, base, sizeof( rest ) ) != 0;
    bits_write_difference( writer, view->x, base->x, 0, ARENA_WIDTH / ARENA_GRAIN - 1 );
    bits_write_difference( writer, view->y, base->y, 0, ARENA_HEIGHT / ARENA_GRAIN - 1 );
    bits_write_difference( writer, view->aim, base->aim, 0, 255 / ARENA_AIM_GRAIN );
    bits_write( writer, (uint32_t) is_other, 1 );
    if ( !is_other )
        return;
    bits_write_range( writer, view->health, 0, ARENA_FULL_HEALTH );
    bits_write_difference( writer, view->score, base->score, 0, ARENA_MAX_SCORE );
    bits_write_range( writer, view->rapid, 0, 1 );
}

static inline void arena_read_view( struct bits_reader_t * reader, struct arena_view_t * view )
{
    view->is_there = 1;
    view->x = (uint16_t) bits_read_difference( reader, view->x, 0, ARENA_WIDTH / ARENA_GRAIN - 1 );
    view->y = (uint16_t) bits_read_difference( reader, view->y, 0, ARENA_HEIGHT / ARENA_GRAIN - 1 );
    view->aim = (uint8_t) bits_read_difference( reader, view->aim, 0, 255 / ARENA_AIM_GRAIN );
    if ( !bits_read( reader, 1 ) )
        return;
    view->health = (uint8_t) bits_read_range( reader, 0, ARENA_FULL_HEALTH );
    view->score = (uint16_t) bits_read_difference( reader, view->score, 0, ARENA_MAX_SCORE );
    view->rapid = (uint8_t) bits_read_range( reader, 0, 1 );
}

static inline void arena_write_own( struct bits_writer_t * writer, const struct arena_own_t * own )
{
    const struct arena_player_t * player = &own->player;
    bits_write_range( writer, arena_clamp( own->margin, -ARENA_MAX_MARGIN, ARENA_NO_MARGIN ), -ARENA_MAX_MARGIN,
                      ARENA_NO_MARGIN );
    bits_write_range( writer, player->is_there, 0, 1 );
    if ( !player->is_there )
        return;
    bits_write_range( writer, player->x, 0, ARENA_WIDTH - 1 );
    bits_write_range( writer, player->y, 0, ARENA_HEIGHT - 1 );
    bits_write( writer, player->aim, 8 );
    bits_write_range( writer, player->health, 0, ARENA_FULL_HEALTH );
    bits_write_range( writer, player->wait_fire, 0, ARENA_RELOAD_TICKS );
    bits_write_range( writer, player->wait_spawn, 0, ARENA_RESPAWN_TICKS );
    bits_write_range( writer, player->rapid, 0, ARENA_RAPID_TICKS );
    bits_write_range( writer, player->score, 0, ARENA_MAX_SCORE );
}

static inline void arena_read_own( struct bits_reader_t * reader, struct arena_own_t * own )
{
    struct arena_player_t * player = &own->player;
    memset( own, 0, sizeof( *own ) );
    own->margin = bits_read_range( reader, -ARENA_MAX_MARGIN, ARENA_NO_MARGIN );
    player->is_there = (uint8_t) bits_read_range( reader, 0, 1 );
    if ( !player->is_there )
        return;
    player->x = (int16_t) bits_read_range( reader, 0, ARENA_WIDTH - 1 );
    player->y = (int16_t) bits_read_range( reader, 0, ARENA_HEIGHT - 1 );
    player->aim = (uint8_t) bits_read( reader, 8 );
    player->health = (uint8_t) bits_read_range( reader, 0, ARENA_FULL_HEALTH );
    player->wait_fire = (uint8_t) bits_read_range( reader, 0, ARENA_RELOAD_TICKS );
    player->wait_spawn = (uint8_t) bits_read_range( reader, 0, ARENA_RESPAWN_TICKS );
    player->rapid = (uint16_t) bits_read_range( reader, 0, ARENA_RAPID_TICKS );
    player->score = (uint16_t) bits_read_range( reader, 0, ARENA_MAX_SCORE );
}

/* `base`: a snapshot that the client has, or NULL. The bytes, or -1. */
static inline int arena_write_snapshot( uint8_t * data, int capacity, const struct arena_snapshot_t * snapshot,
                                        const struct arena_snapshot_t * base, const struct arena_own_t * own )
{
    struct bits_writer_t writer;
    uint32_t age =
        base && base->tick < snapshot->tick && snapshot->tick - base->tick < 128 ? snapshot->tick - base->tick : 0;
    uint16_t base_items = age ? base->items : 0;
    bits_write_begin( &writer, data, capacity );
    bits_write( &writer, snapshot->tick, 32 );
    bits_write( &writer, age, 7 );
    arena_write_own( &writer, own );
    bits_write( &writer, snapshot->items != base_items, 1 );
    if ( snapshot->items != base_items )
        bits_write( &writer, snapshot->items, ARENA_ITEMS );

    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_view_t * view = &snapshot->players[i];
        struct arena_view_t before = age ? base->players[i] : arena_no_view();
        int has_changed = age ? memcmp( view, &before, sizeof( before ) ) != 0 : view->is_there;
        bits_write( &writer, (uint32_t) has_changed, 1 );
        if ( !has_changed )
            continue;
        bits_write( &writer, view->is_there, 1 );
        if ( !before.is_there )
            before = arena_no_view();
        if ( view->is_there )
            arena_write_view( &writer, view, &before );
    }
    return bits_write_end( &writer );
}

/* 1, or 0: it is none, or it is a difference to a snapshot that is not in `kept`. */
static inline int arena_read_snapshot( const uint8_t * data, int bytes, const struct arena_kept_t * kept,
                                       struct arena_snapshot_t * snapshot, struct arena_own_t * own )
{
    struct bits_reader_t reader;
    bits_read_begin( &reader, data, bytes );
    memset( snapshot, 0, sizeof( *snapshot ) );
    uint32_t tick = bits_read( &reader, 32 ), age = bits_read( &reader, 7 );
    if ( age ) {
        const struct arena_snapshot_t * base = arena_find_kept( kept, tick - age );
        if ( !base )
            return 0;
        *snapshot = *base;
    }
    snapshot->tick = tick;
    arena_read_own( &reader, own );
    if ( bits_read( &reader, 1 ) )
        snapshot->items = (uint16_t) bits_read( &reader, ARENA_ITEMS );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct arena_view_t * view = &snapshot->players[i];
        if ( !bits_read( &reader, 1 ) )
            continue;
        int is_there = (int) bits_read( &reader, 1 );
        if ( !is_there )
            memset( view, 0, sizeof( *view ) );
        else if ( !view->is_there )
            *view = arena_no_view();
        if ( is_there )
            arena_read_view( &reader, view );
    }
    return bits_read_end( &reader ) && tick > 0;
}

/* ---- news and shots ---- */

/*  Text for players' eyes: 1 to `most` bytes of UTF-8 without control characters, in shortest form. Others would be for
    terminals and logs to trip over. */
static inline int arena_is_text( const char * text, int most )
{
    int length = (int) strlen( text );
    for ( int i = 0; i < length; ) {
        uint8_t first = (uint8_t) text[i++];
        int more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : 3;
        uint32_t code = more ? first & ( 0x3fu >> more ) : first;
        if ( ( first >= 0x80 && first < 0xc2 ) || first > 0xf4 || first < 0x20 || first == 0x7f )
            return 0;
        for ( int k = 0; k < more; k++, i++ ) {
            if ( ( (uint8_t) text[i] & 0xc0 ) != 0x80 )
                return 0; /* the end, too */
            code = code << 6 | ( (uint8_t) text[i] & 0x3fu );
        }
        if ( ( more == 1 && code < 0xa0 ) || ( more == 2 && ( code < 0x800 || ( code >= 0xd800 && code < 0xe000 ) ) ) ||
             ( more == 3 && ( code < 0x10000 || code > 0x10ffff ) ) )
            return 0;
    }
    return length >= 1 && length <= most;
}

static inline int arena_text_limit( enum arena_news_type_t type )
{
    return type == ARENA_NEWS_JOINED ? ARENA_NAME_BYTES : type == ARENA_NEWS_CHAT ? ARENA_TEXT_BYTES : 0;
}

static inline int arena_write_news( uint8_t * data, int capacity, const struct arena_news_t * news )
{
    struct bits_writer_t writer;
    int most = arena_text_limit( news->type ), length = most ? (int) strlen( news->text ) : 0;
    bits_write_begin( &writer, data, capacity );
    bits_write_range( &writer, (int) news->type, 0, ARENA_NEWS_TYPES - 1 );
    bits_write_range( &writer, news->player, 0, ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_KILLED || news->type == ARENA_NEWS_PICKUP )
        bits_write_range( &writer, news->other, 0, ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_WELCOME )
        bits_write( &writer, news->tick, 32 );
    if ( most ) {
        bits_write_range( &writer, length, 1, most );
        bits_write_bytes( &writer, news->text, writer.failed ? 0 : length );
    }
    return most && !arena_is_text( news->text, most ) ? -1 : bits_write_end( &writer );
}

static inline int arena_read_news( const uint8_t * data, int bytes, struct arena_news_t * news )
{
    struct bits_reader_t reader;
    memset( news, 0, sizeof( *news ) );
    bits_read_begin( &reader, data, bytes );
    news->type = (enum arena_news_type_t) bits_read_range( &reader, 0, ARENA_NEWS_TYPES - 1 );
    news->player = bits_read_range( &reader, 0, ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_KILLED || news->type == ARENA_NEWS_PICKUP )
        news->other = bits_read_range( &reader, 0, ARENA_PLAYERS - 1 );
    if ( news->type == ARENA_NEWS_WELCOME )
        news->tick = bits_read( &reader, 32 );
    int most = arena_text_limit( news->type ), length = most ? bits_read_range( &reader, 1, most ) : 0;
    bits_read_bytes( &reader, news->text, length );
    return bits_read_end( &reader ) &&
           ( !most || ( (int) strlen( news->text ) == length && arena_is_text( news->text, most ) ) );
}

static inline int arena_write_shot( uint8_t * data, int capacity, const struct arena_shot_t * shot )
{
    struct bits_writer_t writer;
    bits_write_begin( &writer, data, capacity );
    bits_write_range( &writer, shot->player, 0, ARENA_PLAYERS - 1 );
    bits_write_range( &writer, shot->other == ARENA_NOBODY ? ARENA_PLAYERS : shot->other, 0, ARENA_PLAYERS );
    bits_write_range( &writer, shot->x / ARENA_GRAIN, 0, ARENA_WIDTH / ARENA_GRAIN - 1 );
    bits_write_range( &writer, shot->y / ARENA_GRAIN, 0, ARENA_HEIGHT / ARENA_GRAIN - 1 );
    return bits_write_end( &writer );
}

static inline int arena_read_shot( const uint8_t * data, int bytes, struct arena_shot_t * shot )
{
    struct bits_reader_t reader;
    bits_read_begin( &reader, data, bytes );
    shot->player = bits_read_range( &reader, 0, ARENA_PLAYERS - 1 );
    shot->other = bits_read_range( &reader, 0, ARENA_PLAYERS );
    shot->other = shot->other == ARENA_PLAYERS ? ARENA_NOBODY : shot->other;
    shot->x = bits_read_range( &reader, 0, ARENA_WIDTH / ARENA_GRAIN - 1 ) * ARENA_GRAIN;
    shot->y = bits_read_range( &reader, 0, ARENA_HEIGHT / ARENA_GRAIN - 1 ) * ARENA_GRAIN;
    return bits_read_end( &reader );
}

#endif
