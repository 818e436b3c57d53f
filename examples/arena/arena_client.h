/*  A player's side of the arena, without window, sound or socket: it keeps the clocks, predicts its own player, draws
    the others where they were a moment ago, and says what happened. The window, the browser's tab, the bots and the
    tests all use it. Include it behind netcode.h with NETCODE_MESSAGES.

        struct arena_client_t * client = calloc( 1, sizeof( *client ) );
        arena_client_create( client, net, time );              net: a netcode_client_t; it stays yours
        netcode_client_connect( net, token );
        for ( ;; ) {                                           each frame
            arena_client_update( client, buttons, aim, time );
            if ( client->is_playing ) {
                arena_client_own( client, &x, &y );            where to draw this player
                arena_client_other( client, slot, &drawn );    and the others
            }
            while ( arena_client_news( client, &news ) ) ...
        }

    Three clocks, all in the server's ticks:
      - arrival   when which snapshot comes: smoothed, so that jitter does not shake the picture
      - render    arrival, less a delay that bridges a lost snapshot: the others are drawn as they were then
      - command   arrival, and a round trip, and a margin: so that a command is there when the server makes its step.
                  The library's round trip sets it. From then on the server's reports, how early commands came, steer
                  it: a smoothed round trip follows a network that has changed for ten seconds. */

#ifndef ARENA_CLIENT_H
#define ARENA_CLIENT_H

#include "arena_net.h"

#include <math.h>
#include <string.h>

enum {
    ARENA_PREDICTED = 128, /* ticks that are kept: two seconds of round trip */
    ARENA_MAX_AHEAD = ARENA_PREDICTED - 16,
    ARENA_NEWS_KEPT = 64,
    ARENA_SHOTS_KEPT = 64,
    ARENA_JUMP_TICKS = 15, /* a clock that is further off is set, and not steered */
    ARENA_TELEPORT = 2 * ARENA_TILE
};

/* How another player is to be drawn. */
struct arena_drawn_t {
    double x, y;
    int aim; /* 256ths of a turn */
    int health, rapid, score;
};

struct arena_client_t {
    struct netcode_client_t * net;
    struct netcode_messages_t * messages;
    double time;
    int is_playing; /* the map is there, and this player stands on it */
    int slot;       /* its own */

    struct arena_map_t map;
    int has_map;
    uint8_t map_text[ARENA_MAP_BYTES];

    struct arena_kept_t kept; /* snapshots that came, the newest `newest` */
    struct arena_snapshot_t newest;
    double arrival;                /* snapshot ticks at time 0: the newest is due at time * 60 + arrival */
    double render, command, ahead; /* the clocks; and by how much the command clock is ahead of arrival */

    int64_t settled; /* commands of later ticks were made after the last large change of `ahead` */

    uint32_t command_tick; /* the newest that was predicted; 0: none yet */
    struct arena_command_t commands[ARENA_PREDICTED];
    struct arena_player_t predicted[ARENA_PREDICTED]; /* after tick t at t % ARENA_PREDICTED */
    struct arena_player_t own;                        /* the newest of them */
    double last_x, last_y;                            /* one tick before: what is drawn lies between */
    double error_x, error_y;                          /* what the picture is off since the last correction: it fades */

    char names[ARENA_PLAYERS][ARENA_NAME_BYTES + 1];
    struct arena_news_t news[ARENA_NEWS_KEPT];
    struct arena_shot_t shots[ARENA_SHOTS_KEPT];
    int news_read, news_written, shots_read, shots_written;

    /* measured */
    uint64_t snapshots, snapshots_unread, corrections, messages_wrong, commands_made;
    double worst_correction;                   /* units */
    double round_trip, jitter, loss, down, up; /* seconds, seconds, share, bytes a second */
    double rates_time, bytes_down, bytes_up;   /* since when and from where `down` and `up` count */
    int margin;                                /* as the server reported last */
};

/* ---- what comes: the map, news, shots ---- */

static inline int arena_client_write_map( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    memcpy( ( (struct arena_client_t *) context )->map_text + offset, data, (size_t) bytes );
    return 1;
}

static inline void arena_client_end_map( void * context, int complete )
{
    struct arena_client_t * client = (struct arena_client_t *) context;
    client->has_map = complete && arena_map_read( &client->map, client->map_text, ARENA_MAP_BYTES );
}

static inline int arena_client_accept_stream( void * context, struct netcode_messages_stream_t * stream )
{
    if ( stream->tag != ARENA_MAP_TAG || stream->bytes != ARENA_MAP_BYTES )
        return 0;
    stream->context = context;
    stream->write_function = arena_client_write_map;
    stream->end_function = arena_client_end_map;
    return 1;
}

static inline void arena_client_take_news( struct arena_client_t * client, const struct arena_news_t * news )
{
    if ( news->type == ARENA_NEWS_JOINED )
        memcpy( client->names[news->player], news->text, sizeof( client->names[0] ) );
    if ( client->news_written - client->news_read < ARENA_NEWS_KEPT )
        client->news[client->news_written++ % ARENA_NEWS_KEPT] = *news;
}

/* ---- the clocks ---- */

/* Towards `target` by at most a tenth of its pace, or at once if it is far off. */
static inline double arena_steer( double clock, double target, double passed )
{
    double off = target - ( clock + passed );
    if ( off > ARENA_JUMP_TICKS || off < -ARENA_JUMP_TICKS )
        return target;
    double most = passed * 0.1, change = off * 0.1;
    return clock + passed + ( change > most ? most : change < -most ? -most : change );
}

/* Two snapshots, so that one may be lost, and twice the jitter. */
static inline double arena_render_delay( const struct arena_client_t * client )
{
    double delay = 2.0 * ARENA_SNAPSHOT_TICKS + 2.0 * client->jitter * ARENA_HZ;
    return delay < ARENA_HISTORY / 2 ? delay : ARENA_HISTORY / 2;
}

static inline double arena_wanted_margin( const struct arena_client_t * client )
{
    double margin = 1.0 + 2.0 * client->jitter * ARENA_HZ;
    return margin < 12.0 ? margin : 12.0;
}

static inline void arena_client_measure( struct arena_client_t * client, double time )
{
    struct netcode_client_stats_t stats;
    netcode_client_stats( client->net, &stats );
    client->round_trip = stats.round_trip_seconds;
    client->loss = stats.loss_share;
    if ( time - client->rates_time < 1.0 )
        return;
    client->down = ( (double) stats.bytes_received - client->bytes_down ) / ( time - client->rates_time );
    client->up = ( (double) stats.bytes_sent - client->bytes_up ) / ( time - client->rates_time );
    client->bytes_down = (double) stats.bytes_received;
    client->bytes_up = (double) stats.bytes_sent;
    client->rates_time = time;
}

static inline void arena_client_advance( struct arena_client_t * client, double time )
{
    double passed = ( time - client->time ) * ARENA_HZ, now = time * ARENA_HZ + client->arrival;
    client->render = arena_steer( client->render, now - arena_render_delay( client ), passed );
    client->command = arena_steer( client->command, now + client->ahead, passed );
}

/*  Before the first command, when nothing was reported yet: the round trip says how far ahead it has to be. The library
    measures it once a second; in the first second the messages know it already. */
static inline void arena_client_start_command_clock( struct arena_client_t * client )
{
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( client->messages, &stats );
    double round_trip = client->round_trip > 0.0 ? client->round_trip : stats.rtt;
    client->ahead = round_trip * ARENA_HZ + arena_wanted_margin( client );
    client->ahead = client->ahead < ARENA_MAX_AHEAD ? client->ahead : ARENA_MAX_AHEAD;
    client->command = client->time * ARENA_HZ + client->arrival + client->ahead;
}

/* A snapshot of this tick has come. Snapshots have their tick in them, so their jitter can be measured. */
static inline void arena_client_arrived( struct arena_client_t * client, uint32_t tick, int margin )
{
    double off = (double) tick - ( client->time * ARENA_HZ + client->arrival );
    if ( client->snapshots == 0 || off > ARENA_JUMP_TICKS || off < -ARENA_JUMP_TICKS )
        client->arrival += off;
    else
        client->arrival += off * 0.05;
    if ( client->snapshots )
        client->jitter += ( fabs( off ) / ARENA_HZ - client->jitter ) * 0.05;
    client->margin = margin;
    if ( client->command_tick == 0 || margin == ARENA_NO_MARGIN )
        return; /* no command of ours has arrived since the last snapshot */
    double wrong = arena_wanted_margin( client ) - margin;
    if ( wrong <= 4.0 && wrong >= -4.0 ) {
        /* A report is a round trip old. Over a long one, the full step would swing to and fro. */
        client->ahead += wrong * 0.03 * fmin( 1.0, 0.4 / fmax( client->round_trip, 0.001 ) );
    } else if ( (int64_t) tick + margin > client->settled ) {
        /* Far off: at once, and not again before the report is on a command that was made since. That one's tick is
           the report's tick and margin, or one less. */
        client->ahead += wrong;
        client->command += wrong;
        client->settled = (int64_t) client->command_tick + 1 + ( wrong > 0.0 ? (int64_t) ( wrong / 2.0 ) : 0 );
    }
    client->ahead = client->ahead < ARENA_MAX_AHEAD ? client->ahead : ARENA_MAX_AHEAD;
    client->ahead = client->ahead > 1.0 ? client->ahead : 1.0; /* a command for the past would be none */
}

/* ---- prediction ---- */

static inline void arena_client_predict( struct arena_client_t * client, uint32_t tick )
{
    client->last_x = client->own.x;
    client->last_y = client->own.y;
    arena_player_step( &client->map, &client->own, &client->commands[tick % ARENA_PREDICTED] );
    client->predicted[tick % ARENA_PREDICTED] = client->own;
}

static inline int arena_same_player( const struct arena_player_t * a, const struct arena_player_t * b )
{
    return a->x == b->x && a->y == b->y && a->is_there == b->is_there && a->health == b->health &&
           a->wait_fire == b->wait_fire && a->rapid == b->rapid;
}

/*  The server's word on how this player stood after `tick`. If that is not what was predicted, all later commands are
    run again from it, and the picture goes from where it was to where it should be in a tenth of a second. */
static inline void arena_client_reconcile( struct arena_client_t * client, uint32_t tick,
                                           const struct arena_player_t * truth )
{
    struct arena_player_t * guess = &client->predicted[tick % ARENA_PREDICTED];
    if ( client->command_tick == 0 || tick > client->command_tick ||
         client->command_tick - tick >= ARENA_PREDICTED - 1 ) {
        client->own = *truth; /* the server is ahead of us: begin anew from there */
        client->command_tick = tick;
        client->settled = client->settled < tick ? client->settled : tick;
        client->predicted[tick % ARENA_PREDICTED] = *truth;
        client->last_x = truth->x;
        client->last_y = truth->y;
        return;
    }
    guess->aim = truth->aim;
    guess->wait_spawn = truth->wait_spawn;
    guess->score = truth->score;
    client->own.wait_spawn = truth->wait_spawn;
    client->own.score = truth->score;
    if ( arena_same_player( guess, truth ) )
        return;

    double off = arena_distance( guess->x - truth->x, guess->y - truth->y );
    int was_alive = guess->health > 0 && truth->health > 0, before_x = client->own.x, before_y = client->own.y;
    if ( off > 0.0 && was_alive ) {
        client->corrections++;
        client->worst_correction = off > client->worst_correction ? off : client->worst_correction;
    }
    client->own = *guess = *truth;
    for ( uint32_t at = tick; at != client->command_tick; )
        arena_client_predict( client, ++at ); /* the last of all ticks may be among them */
    if ( off < ARENA_TELEPORT && was_alive ) {
        client->error_x += before_x - client->own.x;
        client->error_y += before_y - client->own.y;
    }
    if ( tick == client->command_tick || off >= ARENA_TELEPORT || !was_alive ) {
        client->last_x = client->own.x; /* not drawn between two places that do not belong together */
        client->last_y = client->own.y;
    }
}

/* All commands up to the command clock, each predicted at once. */
static inline int arena_client_make_commands( struct arena_client_t * client, int buttons, int aim )
{
    int made = 0;
    uint32_t until =
        client->command > 0.0 ? (uint32_t) ( client->command < UINT32_MAX ? client->command : UINT32_MAX ) : 0;
    if ( until > client->command_tick && until - client->command_tick > ARENA_PREDICTED / 2 ) {
        client->command_tick = until - 1; /* the clock was set: what lies between was never played */
        memset( client->commands, 0, sizeof( client->commands ) );
    }
    while ( client->command_tick < until ) {
        uint32_t tick = ++client->command_tick;
        struct arena_command_t * command = &client->commands[tick % ARENA_PREDICTED];
        double age = ( (double) tick - client->render ) * ARENA_VIEW_PARTS;
        command->buttons = (uint8_t) buttons;
        command->aim = (uint8_t) aim;
        command->view_age = (uint8_t) ( age < 0.0 ? 0.0 : age > ARENA_MAX_VIEW_AGE ? ARENA_MAX_VIEW_AGE : age );
        arena_client_predict( client, tick );
        made++;
    }
    client->commands_made += (uint64_t) made;
    return made;
}

/* The newest commands, back to the last that a snapshot has answered: a lost packet costs none of them. */
static inline void arena_client_send_commands( struct arena_client_t * client )
{
    struct arena_input_t input;
    uint8_t data[ARENA_MESSAGE_BYTES];
    memset( &input, 0, sizeof( input ) );
    input.tick = client->command_tick;
    input.acked = client->newest.tick;
    while ( input.count < ARENA_REDUNDANCY && client->command_tick - (uint32_t) input.count > client->newest.tick ) {
        input.commands[input.count] =
            client->commands[( client->command_tick - (uint32_t) input.count ) % ARENA_PREDICTED];
        input.count++;
    }
    int bytes = input.count ? arena_write_input( data, sizeof( data ), &input ) : 0;
    if ( bytes > 0 )
        netcode_messages_send( client->messages, ARENA_COMMANDS, NETCODE_MESSAGE_UNRELIABLE, data, bytes );
}

/* ---- the update ---- */

static inline void arena_client_take_snapshot( struct arena_client_t * client,
                                               const struct netcode_message_t * message )
{
    struct arena_snapshot_t snapshot;
    struct arena_own_t own;
    if ( !arena_read_snapshot( message->data, message->bytes, &client->kept, &snapshot, &own ) ||
         snapshot.tick <= client->newest.tick ) {
        client->snapshots_unread++;
        return;
    }
    arena_keep( &client->kept, &snapshot );
    client->newest = snapshot;
    arena_client_arrived( client, snapshot.tick, own.margin );
    if ( client->snapshots++ == 0 ) {
        client->render = snapshot.tick;
        client->command = snapshot.tick;
    }
    if ( client->has_map && own.player.is_there )
        arena_client_reconcile( client, snapshot.tick, &own.player );
    if ( !client->is_playing && client->has_map && own.player.is_there )
        arena_client_start_command_clock( client );
    client->is_playing = client->has_map && own.player.is_there;
}

static inline void arena_client_receive( struct arena_client_t * client )
{
    struct netcode_message_t message;
    struct arena_news_t news;
    struct arena_shot_t shot;
    while ( netcode_messages_receive( client->messages, &message ) ) {
        if ( message.channel == ARENA_SNAPSHOTS ) {
            arena_client_take_snapshot( client, &message );
        } else if ( message.channel == ARENA_NEWS && arena_read_news( message.data, message.bytes, &news ) ) {
            arena_client_take_news( client, &news );
        } else if ( message.channel == ARENA_SHOTS && arena_read_shot( message.data, message.bytes, &shot ) ) {
            if ( client->shots_written - client->shots_read < ARENA_SHOTS_KEPT )
                client->shots[client->shots_written++ % ARENA_SHOTS_KEPT] = shot;
        } else {
            client->messages_wrong++;
        }
    }
}

/* 1, or 0 without memory. */
static inline int arena_client_create( struct arena_client_t * client, struct netcode_client_t * net, double time )
{
    struct netcode_messages_config_t config;
    memset( client, 0, sizeof( *client ) );
    client->net = net;
    client->time = time;
    client->rates_time = time;
    netcode_default_messages_config( &config );
    config.channels = ARENA_CHANNELS;
    config.max_message_bytes = 2 * ARENA_MESSAGE_BYTES;
    config.accept_stream_function = arena_client_accept_stream;
    config.accept_stream_context = client;
    client->messages = netcode_messages_create( &config, time );
    return client->messages != NULL;
}

static inline void arena_client_destroy( struct arena_client_t * client )
{
    netcode_messages_destroy( client->messages );
    client->messages = NULL;
}

/* Each frame: what the player does now. Returns how many new ticks it was counted for. */
static inline int arena_client_update( struct arena_client_t * client, int buttons, int aim, double time )
{
    int made = 0;
    netcode_client_update( client->net, time );
    netcode_messages_pull_from_client( client->messages, client->net, time );
    if ( client->snapshots )
        arena_client_advance( client, time );
    double fade = exp( -( time - client->time ) / 0.1 );
    client->error_x *= fade;
    client->error_y *= fade;
    client->time = time;
    client->slot = netcode_client_index( client->net );
    arena_client_measure( client, time );
    arena_client_receive( client );
    if ( client->is_playing ) {
        made = arena_client_make_commands( client, buttons, aim );
        if ( made )
            arena_client_send_commands( client );
    }
    netcode_messages_push_to_client( client->messages, client->net, time );
    netcode_client_flush( client->net );
    return made;
}

/* ---- what to draw ---- */

/* The own player, now: between its last two ticks. */
static inline void arena_client_own( const struct arena_client_t * client, double * x, double * y )
{
    double part = client->command - (double) client->command_tick;
    part = part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
    *x = client->last_x + ( client->own.x - client->last_x ) * part + client->error_x;
    *y = client->last_y + ( client->own.y - client->last_y ) * part + client->error_y;
}

/* The newest snapshot that is not after `tick`, and the oldest that is after it. Either may be NULL. */
static inline void arena_client_between( const struct arena_client_t * client, double tick,
                                         const struct arena_snapshot_t ** before,
                                         const struct arena_snapshot_t ** after )
{
    *before = *after = NULL;
    for ( int i = 0; i < ARENA_KEPT; i++ ) {
        const struct arena_snapshot_t * kept = &client->kept.ring[i];
        if ( !kept->tick )
            continue;
        if ( kept->tick <= tick && ( !*before || kept->tick > ( *before )->tick ) )
            *before = kept;
        if ( kept->tick > tick && ( !*after || kept->tick < ( *after )->tick ) )
            *after = kept;
    }
}

static inline int arena_turn( int from, int to, double part )
{
    int change = ( to - from + 384 ) % 256 - 128; /* the shorter way round */
    return ( from + (int) ( change * part ) + 256 ) % 256;
}

/*  Another player at the render clock: on a straight line between two snapshots. 0 if it is not there, or out. None is
    drawn ahead of what is known: without news, players stand. */
static inline int arena_client_other( const struct arena_client_t * client, int slot, struct arena_drawn_t * drawn )
{
    const struct arena_snapshot_t *before, *after;
    arena_client_between( client, client->render, &before, &after );
    if ( !before )
        before = after;
    if ( !before || !before->players[slot].is_there || !before->players[slot].health )
        return 0;
    const struct arena_view_t *from = &before->players[slot], *to = after ? &after->players[slot] : from;
    double part = after && after != before ? ( client->render - before->tick ) / ( after->tick - before->tick ) : 0.0;
    if ( !to->is_there || !to->health ||
         arena_distance( to->x - from->x, to->y - from->y ) > ARENA_TELEPORT / ARENA_GRAIN )
        to = from;
    drawn->x = ( from->x + ( to->x - from->x ) * part + 0.5 ) * ARENA_GRAIN;
    drawn->y = ( from->y + ( to->y - from->y ) * part + 0.5 ) * ARENA_GRAIN;
    drawn->aim = arena_turn( from->aim * ARENA_AIM_GRAIN, to->aim * ARENA_AIM_GRAIN, part );
    drawn->health = to->health;
    drawn->rapid = to->rapid;
    drawn->score = to->score;
    return 1;
}

/* ---- what happened, and what to say ---- */

/* The next news, oldest first: 1, or 0. */
static inline int arena_client_news( struct arena_client_t * client, struct arena_news_t * news )
{
    if ( client->news_read == client->news_written )
        return 0;
    *news = client->news[client->news_read++ % ARENA_NEWS_KEPT];
    return 1;
}

static inline int arena_client_shot( struct arena_client_t * client, struct arena_shot_t * shot )
{
    if ( client->shots_read == client->shots_written )
        return 0;
    *shot = client->shots[client->shots_read++ % ARENA_SHOTS_KEPT];
    return 1;
}

/* Says a line to all. 0: it is empty, too long, or no text. */
static inline int arena_client_chat( struct arena_client_t * client, const char * text )
{
    struct arena_news_t news;
    uint8_t data[ARENA_MESSAGE_BYTES];
    memset( &news, 0, sizeof( news ) );
    if ( !arena_is_text( text, ARENA_TEXT_BYTES ) )
        return 0;
    news.type = ARENA_NEWS_CHAT;
    memcpy( news.text, text, strlen( text ) );
    int bytes = arena_write_news( data, sizeof( data ), &news );
    return bytes > 0 && netcode_messages_send( client->messages, ARENA_NEWS, NETCODE_MESSAGE_RELIABLE_ORDERED, data,
                                               bytes ) == NETCODE_OK;
}

#endif
