/*  The arena's server: headless, authoritative, 60 ticks a second, 30 snapshots a second, up to 64 players.

        cc -I. -Iexamples examples/arena/server.c -lsodium -lm -o arena-server
        ./arena-server                                            for this machine alone, with a key that everybody has
        ./arena-server --address 203.0.113.5:40000 --key-file game.key      for players with tokens of your backend

    One tick, from top to bottom of this file: messages come in (commands, chat), the rules make a step, events and
    snapshots go out. The rules are in arena_sim.h, the messages in arena_net.h. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "secret_file.h"
#include "arena_map.h"
#include "arena_net.h"
#include "arena_options.h"
#include "dev_token.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVER_ADDRESS "127.0.0.1:40000"
#define COMMANDS_KEPT 64 /* of each player: those for the ticks to come */
#define REPEAT_TICKS 15  /* for so long a player whose commands do not come goes on as before; then it stands */
#define CHAT_SECONDS 1.0 /* a line of each player in so long, after the first three */
#define CHAT_BURST 3
#define LATE_SECONDS 0.25  /* a server that is so late lets the ticks go that it has missed */
#define TICK_BINS 20000    /* microseconds of a tick's work */
#define COUNTERS_SECONDS 1 /* how often bytes are added up */

struct options_t {
    const char * address;
    const char * public_address; /* what tokens name, where that is not the address */
    const char * key_file;
    const char * trace; /* a file: where everybody stood, tick by tick */
    int slots;
    double seconds; /* 0: until it is stopped */
};

struct slot_t {
    uint64_t session; /* 0: the slot is free */
    struct netcode_messages_t * messages;
    char name[ARENA_NAME_BYTES + 1];
    int must_leave;                                 /* it can not be sent what it has to know */
    int is_welcome;                                 /* it was sent the map and who plays */
    struct arena_command_t commands[COMMANDS_KEPT]; /* for tick t at t % COMMANDS_KEPT */
    uint32_t command_ticks[COMMANDS_KEPT];
    struct arena_command_t last; /* the one that was run last */
    uint32_t newest;             /* the newest tick that it sent a command for */
    uint32_t last_tick;          /* the last one that a command was there for */
    uint32_t acked;              /* the newest snapshot that it has */
    int margin;                  /* of its commands since the last snapshot, the least */
    double chat_credit;
};

struct game_t {
    struct netcode_server_t * server;
    struct arena_t arena;
    struct arena_kept_t kept; /* what was sent */
    struct slot_t slots[ARENA_PLAYERS];
    const char * map_text;
    FILE * trace;
    double time;
    uint64_t commands_run, commands_missed, messages_wrong, chat_refused, ticks_skipped, joined;
    uint64_t player_ticks; /* of all players together */
    uint32_t tick_bins[TICK_BINS];
};

/* ---- sending ---- */

/*  A client that does not acknowledge what it gets fills its buffer, and one that lies about it breaks its connection. News
    may not be lost, so there is nothing more to be said to it: it has to go. */
static void send_bytes( struct slot_t * slot, int channel, int kind, const uint8_t * data, int bytes )
{
    int sent = bytes > 0 ? netcode_messages_send( slot->messages, channel, kind, data, bytes ) : NETCODE_OK;
    if ( sent == NETCODE_MESSAGES_BROKEN || ( sent != NETCODE_OK && channel == ARENA_NEWS ) )
        slot->must_leave = 1;
}

static void send_news( struct slot_t * slot, const struct arena_news_t * news )
{
    uint8_t data[ARENA_MESSAGE_BYTES];
    send_bytes( slot, ARENA_NEWS, NETCODE_MESSAGE_RELIABLE_ORDERED, data,
                arena_write_news( data, sizeof( data ), news ) );
}

static void tell_all( struct game_t * game, const struct arena_news_t * news )
{
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( game->slots[i].is_welcome )
            send_news( &game->slots[i], news );
}

static void name_player( const struct game_t * game, int index, struct arena_news_t * news )
{
    memset( news, 0, sizeof( *news ) );
    news->type = ARENA_NEWS_JOINED;
    news->player = index;
    memcpy( news->text, game->slots[index].name, sizeof( game->slots[index].name ) );
}

static void read_map( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    memcpy( data, ( (const struct game_t *) context )->map_text + offset, (size_t) bytes );
}

/*  Everything that a new player has to know, in the order in which it gets it. The map goes beside that as a stream,
    which is read from where it stands: 64 players who come at once do not need 64 copies. */
static void welcome( struct game_t * game, int index )
{
    struct slot_t * slot = &game->slots[index];
    struct arena_news_t news;
    struct netcode_messages_stream_t stream;
    memset( &news, 0, sizeof( news ) );
    news.type = ARENA_NEWS_WELCOME;
    news.tick = game->arena.tick;
    news.player = index;
    send_news( slot, &news );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( game->slots[i].session ) {
            name_player( game, i, &news );
            send_news( slot, &news );
        }

    memset( &stream, 0, sizeof( stream ) );
    stream.channel = ARENA_MAP;
    stream.bytes = ARENA_MAP_BYTES;
    stream.tag = ARENA_MAP_TAG;
    stream.context = game;
    stream.read_function = read_map;
    slot->is_welcome = netcode_messages_send_stream( slot->messages, &stream ) == NETCODE_OK;
}

static void send_snapshots( struct game_t * game )
{
    struct arena_snapshot_t snapshot;
    struct arena_own_t own;
    uint8_t data[ARENA_MESSAGE_BYTES];
    arena_take_snapshot( &game->arena, &snapshot );
    arena_keep( &game->kept, &snapshot );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct slot_t * slot = &game->slots[i];
        if ( !slot->is_welcome )
            continue;
        own.player = game->arena.players[i];
        own.margin = slot->margin;
        slot->margin = ARENA_NO_MARGIN;
        send_bytes( slot, ARENA_SNAPSHOTS, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED, data,
                    arena_write_snapshot( data, sizeof( data ), &snapshot, arena_find_kept( &game->kept, slot->acked ),
                                          &own ) );
    }
}

static void send_shot( struct game_t * game, const struct arena_event_t * event )
{
    struct arena_shot_t shot = { event->player, event->other, event->x, event->y };
    uint8_t data[ARENA_MESSAGE_BYTES];
    int bytes = arena_write_shot( data, sizeof( data ), &shot );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( game->slots[i].is_welcome )
            send_bytes( &game->slots[i], ARENA_SHOTS, NETCODE_MESSAGE_UNRELIABLE, data, bytes );
}

static void send_events( struct game_t * game, const struct arena_events_t * events )
{
    for ( int i = 0; i < events->count; i++ ) {
        const struct arena_event_t * event = &events->list[i];
        struct arena_news_t news;
        memset( &news, 0, sizeof( news ) );
        news.player = event->player;
        if ( event->type == ARENA_EVENT_SHOT ) {
            send_shot( game, event );
        } else if ( event->type == ARENA_EVENT_KILL ) {
            news.type = ARENA_NEWS_KILLED;
            news.other = event->other;
            tell_all( game, &news );
        } else if ( event->type == ARENA_EVENT_PICKUP ) {
            news.type = ARENA_NEWS_PICKUP;
            news.other = game->arena.items[event->other].kind;
            tell_all( game, &news );
        } /* who is back is in the next snapshot */
    }
}

/* ---- receiving: nothing that a client says is believed before it was looked at ---- */

static void note_margin( struct slot_t * slot, int64_t margin )
{
    int bound = (int) ( margin < -ARENA_MAX_MARGIN  ? -ARENA_MAX_MARGIN
                        : margin > ARENA_MAX_MARGIN ? ARENA_MAX_MARGIN
                                                    : margin );
    slot->margin = bound < slot->margin ? bound : slot->margin;
}

/* Commands for ticks to come are kept, those for ticks that were are too late. */
static void take_commands( struct game_t * game, struct slot_t * slot, const struct arena_input_t * input )
{
    uint32_t next = game->arena.tick + 1;
    int64_t margin = (int64_t) input->tick - next;
    if ( margin >= COMMANDS_KEPT || input->tick < (uint32_t) input->count ) {
        game->messages_wrong++; /* further ahead than any clock should be */
        if ( margin >= COMMANDS_KEPT )
            note_margin( slot, margin ); /* its client hears of it */
        return;
    }
    if ( input->acked > slot->acked && input->acked <= game->arena.tick )
        slot->acked = input->acked;
    for ( int i = 0; i < input->count; i++ ) {
        uint32_t tick = input->tick - (uint32_t) i;
        if ( tick >= next ) {
            slot->commands[tick % COMMANDS_KEPT] = input->commands[i];
            slot->command_ticks[tick % COMMANDS_KEPT] = tick;
        }
    }
    if ( input->tick <= slot->newest )
        return; /* an older message that was overtaken: only its commands count */
    slot->newest = input->tick;
    note_margin( slot, margin );
}

static void take_chat( struct game_t * game, int index, struct arena_news_t * news )
{
    struct slot_t * slot = &game->slots[index];
    if ( news->type != ARENA_NEWS_CHAT || slot->chat_credit < 1.0 ) {
        game->chat_refused++;
        return;
    }
    slot->chat_credit -= 1.0;
    news->player = index; /* whoever it said it was */
    printf( "%s: %s\n", slot->name, news->text );
    tell_all( game, news );
}

static void take_messages( struct game_t * game, int index )
{
    struct slot_t * slot = &game->slots[index];
    struct netcode_message_t message;
    struct arena_input_t input;
    struct arena_news_t news;
    while ( netcode_messages_receive( slot->messages, &message ) ) {
        if ( !slot->session )
            continue; /* the last words of one who has left */
        if ( message.channel == ARENA_COMMANDS && arena_read_input( message.data, message.bytes, &input ) )
            take_commands( game, slot, &input );
        else if ( message.channel == ARENA_NEWS && arena_read_news( message.data, message.bytes, &news ) )
            take_chat( game, index, &news );
        else
            game->messages_wrong++;
    }
}

/* ---- players come and go ---- */

/* The name that the backend put into the token, as much of it as fits. Where it is none to be shown, a number. */
static void take_name( struct game_t * game, int index )
{
    struct slot_t * slot = &game->slots[index];
    const char * name = (const char *) netcode_server_client_user_data( game->server, index );
    memset( slot->name, 0, sizeof( slot->name ) );
    if ( name )
        memcpy( slot->name, name, ARENA_NAME_BYTES );
    for ( int i = ARENA_NAME_BYTES; i > ARENA_NAME_BYTES - 4 && !arena_is_text( slot->name, ARENA_NAME_BYTES ); )
        slot->name[--i] = '\0'; /* a long one may have been cut within a character */
    if ( !arena_is_text( slot->name, ARENA_NAME_BYTES ) )
        snprintf( slot->name, sizeof( slot->name ), "player %d", index );
}

static void join( struct game_t * game, const struct netcode_event_t * event )
{
    struct slot_t * slot = &game->slots[event->client_index];
    struct netcode_messages_t * messages = slot->messages;
    struct arena_news_t news;
    memset( slot, 0, sizeof( *slot ) );
    slot->messages = messages;
    slot->session = event->session;
    slot->margin = ARENA_NO_MARGIN;
    slot->chat_credit = CHAT_BURST;
    take_name( game, event->client_index );
    arena_join( &game->arena, event->client_index );
    game->joined++;
    name_player( game, event->client_index, &news );
    tell_all( game, &news );
    printf( "%s joined slot %d\n", slot->name, event->client_index );
}

static void leave( struct game_t * game, const struct netcode_event_t * event )
{
    struct slot_t * slot = &game->slots[event->client_index];
    struct arena_news_t news;
    if ( slot->session != event->session )
        return;
    printf( "%s left slot %d (%d)\n", slot->name, event->client_index, event->reason );
    slot->session = 0;
    slot->is_welcome = slot->must_leave = 0;
    arena_leave( &game->arena, event->client_index );
    memset( &news, 0, sizeof( news ) );
    news.type = ARENA_NEWS_LEFT;
    news.player = event->client_index;
    tell_all( game, &news );
}

static void take_events( struct game_t * game )
{
    struct netcode_event_t event;
    while ( netcode_server_next_event( game->server, &event ) ) {
        if ( event.type == NETCODE_EVENT_CONNECTED )
            join( game, &event );
        else if ( event.type == NETCODE_EVENT_DISCONNECTED )
            leave( game, &event );
        else if ( event.type == NETCODE_EVENT_MOVED )
            printf( "%s has another address, and plays on\n", game->slots[event.client_index].name );
        else if ( event.type == NETCODE_EVENT_PAYLOAD )
            netcode_server_free_packet( game->server, event.data ); /* never, while all slots are joined to messages */
    }
}

/* ---- the tick ---- */

/*  The command of each player for this step. If it has not come, the last one counts again, but for the trigger: a
    player whose packets are late runs on, and does not shoot where it did not aim. */
static void choose_commands( struct game_t * game, struct arena_command_t commands[ARENA_PLAYERS] )
{
    uint32_t tick = game->arena.tick + 1;
    memset( commands, 0, ARENA_PLAYERS * sizeof( commands[0] ) );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        struct slot_t * slot = &game->slots[i];
        if ( !slot->session || !slot->newest )
            continue;
        if ( slot->command_ticks[tick % COMMANDS_KEPT] == tick ) {
            slot->last = slot->commands[tick % COMMANDS_KEPT];
            slot->last_tick = tick;
            game->commands_run++;
            commands[i] = slot->last;
        } else {
            game->commands_missed++;
            commands[i] = slot->last;
            commands[i].buttons =
                (uint8_t) ( tick - slot->last_tick <= REPEAT_TICKS ? slot->last.buttons & ~ARENA_FIRE : 0 );
        }
    }
}

static void write_trace( const struct game_t * game )
{
    fprintf( game->trace, "%u", game->arena.tick );
    for ( int i = 0; i < ARENA_PLAYERS; i++ ) {
        const struct arena_player_t * player = &game->arena.players[i];
        if ( player->is_there )
            fprintf( game->trace, " %d:%d:%d:%d", i, player->x, player->y, player->health );
    }
    fputc( '\n', game->trace );
}

static void game_tick( struct game_t * game, double time )
{
    struct arena_command_t commands[ARENA_PLAYERS];
    struct arena_events_t events;
    game->time = time;
    netcode_server_update( game->server, time );
    take_events( game );
    int slots = netcode_server_max_clients( game->server );
    for ( int i = 0; i < slots; i++ ) {
        struct slot_t * slot = &game->slots[i];
        netcode_messages_pull_from_server( slot->messages, game->server, i, time );
        take_messages( game, i );
        if ( slot->session && !slot->is_welcome )
            welcome( game, i );
        if ( slot->chat_credit < CHAT_BURST )
            slot->chat_credit += 1.0 / ( ARENA_HZ * CHAT_SECONDS );
        game->player_ticks += slot->session != 0;
    }

    choose_commands( game, commands );
    arena_step( &game->arena, commands, &events );
    if ( game->trace )
        write_trace( game );

    send_events( game, &events );
    if ( game->arena.tick % ARENA_SNAPSHOT_TICKS == 0 )
        send_snapshots( game );
    for ( int i = 0; i < slots; i++ )
        netcode_messages_push_to_server( game->slots[i].messages, game->server, i, time );
    for ( int i = 0; i < slots; i++ )
        if ( game->slots[i].must_leave ) {
            printf( "%s takes no more messages\n", game->slots[i].name );
            netcode_server_disconnect_client( game->server, i ); /* its event comes with the next update */
            game->slots[i].must_leave = 0;
        }
    netcode_server_flush( game->server );
}

/* ---- start and end ---- */

/* Small buffers: nothing here is larger than a packet but the map, which is not copied. */
static int create_messages( struct game_t * game, int slots, double time )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = ARENA_CHANNELS;
    config.max_message_bytes = 2 * ARENA_MESSAGE_BYTES;
    config.priorities[ARENA_NEWS] = 1;
    config.priorities[ARENA_MAP] = 2;
    for ( int i = 0; i < slots; i++ ) {
        game->slots[i].messages = netcode_messages_create( &config, time );
        if ( !game->slots[i].messages )
            return 0;
    }
    return 1;
}

/* `config` has the key and, in tests, a simulator. 0, and a line has said why. */
static int game_create( struct game_t * game, const char * address, int slots, struct netcode_server_config_t * config,
                        double time )
{
    memset( game, 0, sizeof( *game ) );
    config->protocol_id = ARENA_PROTOCOL_ID;
    config->roaming = 1;                  /* a phone that changes networks plays on */
    config->replace_existing_clients = 1; /* a player who crashed is back at once */
    config->batch_sends = 1;
    game->map_text = arena_default_map;
    uint32_t seed = 0;
    netcode_random_bytes( (uint8_t *) &seed, sizeof( seed ) );
    if ( !arena_init( &game->arena, (const uint8_t *) game->map_text, (int) strlen( game->map_text ), seed ) ) {
        fprintf( stderr, "arena-server: the map is none\n" );
        return 0;
    }
    game->server = netcode_server_create( address, config, time );
    if ( game->server )
        netcode_server_start( game->server, slots );
    if ( !game->server || !netcode_server_running( game->server ) || !create_messages( game, slots, time ) ) {
        fprintf( stderr, "arena-server: %s\n",
                 game->server ? "out of memory" : netcode_server_create_error_text( netcode_server_create_error() ) );
        return 0;
    }
    return 1;
}

static void game_destroy( struct game_t * game )
{
    netcode_server_destroy( game->server );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        netcode_messages_destroy( game->slots[i].messages );
}

#if !defined( ARENA_NO_MAIN ) /* the tests bring their own, and their own time */

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

/* The tick that `share` of all took no longer than, in milliseconds. */
static double tick_milliseconds( const struct game_t * game, double share )
{
    uint64_t count = 0, seen = 0;
    for ( int i = 0; i < TICK_BINS; i++ )
        count += game->tick_bins[i];
    for ( int i = 0; i < TICK_BINS; i++ ) {
        seen += game->tick_bins[i];
        if ( (double) seen >= share * (double) count )
            return ( i + 1 ) * 1e-3;
    }
    return 0.0;
}

static void print_summary( struct game_t * game )
{
    struct netcode_server_stats_t stats;
    netcode_server_stats( game->server, &stats );
    double player_seconds = (double) game->player_ticks / ARENA_HZ;
    uint64_t commands = game->commands_run + game->commands_missed;
    printf( "summary ticks=%u skipped=%d joined=%d moves=%d tick_p50_ms=%.3f tick_p99_ms=%.3f tick_max_ms=%.3f "
            "commands=%.0f missed_percent=%.2f wrong=%d bytes_down=%.0f bytes_up=%.0f\n",
            game->arena.tick, (int) game->ticks_skipped, (int) game->joined, (int) stats.moves,
            tick_milliseconds( game, 0.5 ), tick_milliseconds( game, 0.99 ), tick_milliseconds( game, 1.0 ),
            (double) commands, commands ? 100.0 * (double) game->commands_missed / (double) commands : 0.0,
            (int) game->messages_wrong, player_seconds > 0.0 ? (double) stats.bytes_sent / player_seconds : 0.0,
            player_seconds > 0.0 ? (double) stats.bytes_received / player_seconds : 0.0 );
}

/* Ticks at even times. A server that was stopped for a while does not make up for it: its players have seen it stand. */
static void run( struct game_t * game, const struct options_t * options )
{
    double start = netcode_time(), next = start;
    while ( !signal_stop && ( options->seconds <= 0.0 || netcode_time() - start < options->seconds ) ) {
        double now = netcode_time();
        if ( now < next ) {
            netcode_sleep( next - now );
            continue;
        }
        if ( now - next > LATE_SECONDS ) {
            game->ticks_skipped += (uint64_t) ( ( now - next ) * ARENA_HZ );
            next = now;
        }
        game_tick( game, now );
        int bin = (int) ( ( netcode_time() - now ) * 1e6 );
        game->tick_bins[bin < 0 ? 0 : bin >= TICK_BINS ? TICK_BINS - 1 : bin]++;
        next += 1.0 / ARENA_HZ;
        if ( game->arena.tick % ARENA_HZ == 0 )
            fflush( stdout );
    }
}

static int usage( void )
{
    fprintf( stderr, "arena-server: the server of the arena\n"
                     "  --address A      127.0.0.1:40000; its own address, as tokens name it\n"
                     "  --public A       the address that tokens name, where that is another (NAT, relay)\n"
                     "  --key-file F     the key that it shares with the backend; without it: loopback only\n"
                     "  --slots N        players, 1 to 64; 64\n"
                     "  --seconds S      ends after so long; 0: when it is stopped\n"
                     "  --trace F        writes where everybody stood at each tick\n" );
    return 2;
}

static int read_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->address = SERVER_ADDRESS;
    options->slots = ARENA_PLAYERS;
    for ( int i = 1; i < argc; i += 2 ) {
        const char * value = i + 1 < argc ? argv[i + 1] : NULL;
        if ( !value )
            return 0;
        if ( !strcmp( argv[i], "--address" ) )
            options->address = value;
        else if ( !strcmp( argv[i], "--public" ) )
            options->public_address = value;
        else if ( !strcmp( argv[i], "--key-file" ) )
            options->key_file = value;
        else if ( !strcmp( argv[i], "--trace" ) )
            options->trace = value;
        else if ( !( !strcmp( argv[i], "--slots" ) && arena_integer( value, 1, ARENA_PLAYERS, &options->slots ) ) &&
                  !( !strcmp( argv[i], "--seconds" ) && arena_number( value, 0.0, 1e9, &options->seconds ) ) )
            return 0;
    }
    return 1;
}

int main( int argc, char ** argv )
{
    static struct game_t game;
    struct options_t options;
    struct netcode_server_config_t config;
    if ( !read_options( argc, argv, &options ) )
        return usage();
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO ); /* who is kept out, and why */
    netcode_default_server_config( &config );
    config.events = 1;
    if ( options.key_file ) {
        if ( !secret_read_key( "arena-server", options.key_file, config.private_key ) )
            return 1;
    } else if ( dev_is_loopback( options.address ) ) {
        dev_server_config( &config, options.address );
        printf( "no --key-file: everybody has the key, so only this machine can play\n" );
    } else {
        fprintf( stderr, "arena-server: without --key-file only loopback addresses are served, not %s\n",
                 options.address );
        return 1;
    }
    if ( options.public_address ) {
        config.public_addresses = &options.public_address;
        config.num_public_addresses = 1;
    }
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    if ( !game_create( &game, options.address, options.slots, &config, netcode_time() ) )
        return 1;
    game.trace = options.trace ? fopen( options.trace, "w" ) : NULL;
    if ( options.trace && !game.trace ) {
        fprintf( stderr, "arena-server: %s can not be written\n", options.trace );
        return 1;
    }
    printf( "the arena is open at %s, for %d players\n", options.address, options.slots );
    fflush( stdout );
    run( &game, &options );
    print_summary( &game );
    if ( game.trace )
        fclose( game.trace );
    game_destroy( &game );
    netcode_term();
    return 0;
}

#endif
