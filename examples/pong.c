/*  Pong for two, over messages (NETCODE_MESSAGES): an authoritative server at 60 Hz, and players in terminals. What goes
    how: inputs reliable and ordered, snapshots unreliable and sequenced, the score reliable and ordered, and a file of
    256 KiB in the background, reliable, with a receipt. Each snapshot says which input it has in it, so the player's own
    paddle is moved at once and corrected when the server sees it otherwise.

        cc examples/pong.c -lsodium -o pong
        ./pong server                                (one terminal)
        ./pong client                                (two others: w and s or the arrow keys move)
        ./pong client --bot --seconds 10             (plays by itself, says how it went, ends with 0 if all was well)
        ./pong client --via 127.0.0.1:41000          (through a relay that sends on to the server)

    Everybody can read the key below: it is an example's. A real client never has it, but gets its token from your backend. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"
#include "pong_step.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#endif

#define DEFAULT_ADDRESS "127.0.0.1:40000"
#define PROTOCOL_ID 0x506f6e6750000001ull
#define TOKEN_SECONDS 30
#define TIMEOUT_SECONDS 5
#define TICK_SECONDS ( 1.0 / PONG_HZ )
#define LONGEST_DELAY_SECONDS 0.25 /* a tick that is later is left out */
#define LAST_SECONDS 60.0          /* how long a bot waits for what is still in flight when its time is over */

enum {
    MATCHES = 8,
    SLOTS = 2 * MATCHES,
    FILE_BYTES = 262144,
    HASH_BYTES = 32,
    INPUT_BYTES = 5,                  /* number 4, move 1: 0 up, 1 stay, 2 down */
    SNAPSHOT_BYTES = 20 + PONG_BYTES, /* number 4, input 4, of the file 4, send buffer 4, retries 4, the match */
    WELCOME_BYTES = 5 + HASH_BYTES,   /* type 1, the file's size 4 and hash */
    MATCH_BYTES = 5,                  /* type 1, your side 1, is a player on the other 1, scores 1 each */
    SCORE_BYTES = 4,                  /* type 1, who has scored 1, scores 1 each */
    MAX_CREDIT = PONG_HZ / 2,         /* inputs that may come at once */
    INPUTS_REMEMBERED = 1024
};

enum { CHANNEL_INPUTS, CHANNEL_SNAPSHOTS, CHANNEL_EVENTS, CHANNEL_FILE, CHANNELS };
enum { EVENT_WELCOME, EVENT_MATCH, EVENT_SCORE };

static const uint8_t example_key[NETCODE_KEY_BYTES] = {
    0x70, 0x6f, 0x6e, 0x67, 0x20, 0x65, 0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x20, 0x6b, 0x65, 0x79,
    0x2c, 0x20, 0x6e, 0x6f, 0x74, 0x20, 0x61, 0x20, 0x73, 0x65, 0x63, 0x72, 0x65, 0x74, 0x21, 0x0a,
};

struct options_t {
    int server;
    int bot;
    const char * address;
    const char * via; /* a relay's address */
    double seconds;   /* 0: until a signal comes */
};

static volatile sig_atomic_t signal_stop; /* 2: at once, whatever is in flight */

static void on_signal( int number )
{
    (void) number;
    signal_stop = signal_stop ? 2 : 1;
}

static void install_signals( void )
{
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
#ifndef _WIN32
    signal( SIGHUP, on_signal );
    signal( SIGQUIT, on_signal );
    signal( SIGPIPE, SIG_IGN );
#endif
}

/* When the tick after `due` is due; what was missed for long is not made up for. */
static double next_tick( double due, double now )
{
    return due + TICK_SECONDS < now - LONGEST_DELAY_SECONDS ? now : due + TICK_SECONDS;
}

/* The file is the one channel that can wait. Both sides say the same. */
static struct netcode_messages_t * make_messages( double now )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = CHANNELS;
    config.max_message_bytes = FILE_BYTES;
    config.priorities[CHANNEL_FILE] = 1;
    return netcode_messages_create( &config, now );
}

static int move_paddle( int paddle, int move )
{
    return pong_clamp( paddle + move * PONG_PADDLE_SPEED, PONG_PADDLE_HALF, PONG_HEIGHT - PONG_PADDLE_HALF );
}

/* ---- the server ---- */

struct player_t {
    struct netcode_messages_t * messages;
    uint64_t session; /* 0: no player */
    uint64_t client_id;
    double joined_at;
    int match;
    int side;
    int credit;         /* inputs that it may send: one more each tick, so that no player is faster than others */
    uint32_t inputs;    /* that were taken, all of them in their order */
    uint32_t snapshots; /* that were sent */
    uint32_t file_done; /* bytes of the file that it has */
};

struct match_t {
    struct pong_t pong;
    int slots[2]; /* who plays on each side; -1: no player */
};

struct server_t {
    struct netcode_server_t * server;
    struct player_t players[SLOTS];
    struct match_t matches[MATCHES];
    uint8_t * file;
    uint8_t file_hash[HASH_BYTES];
    double start_time;
    uint64_t ticks, joined, files, scores, wrong;
    double longest_tick;
};

static void say( const struct server_t * server, const char * format, ... )
{
    va_list arguments;
    printf( "%9.3f  ", netcode_time() - server->start_time );
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    putchar( '\n' );
    fflush( stdout );
}

static void on_server_log( void * context, int level, const char * text )
{
    (void) level;
    say( (const struct server_t *) context, "netcode: %s", text );
}

/* What has to arrive. Who has no room for it any more has not been reading for very long. */
static void server_send( struct server_t * server, int slot, const struct netcode_message_t * message )
{
    if ( netcode_messages_send_message( server->players[slot].messages, message ) == NETCODE_OK )
        return;
    say( server, "slot %d takes nothing any more", slot );
    netcode_server_disconnect_client( server->server, slot );
}

static void server_send_event( struct server_t * server, int slot, const uint8_t * data, int bytes )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = CHANNEL_EVENTS;
    message.kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    message.data = data;
    message.bytes = bytes;
    server_send( server, slot, &message );
}

/* The session is the receipt, so that no player is notified of the file of the slot's former player. */
static void server_send_file( struct server_t * server, int slot )
{
    uint8_t welcome[WELCOME_BYTES];
    struct netcode_message_t message;
    welcome[0] = EVENT_WELCOME;
    memcpy( pong_put( welcome + 1, FILE_BYTES, 4 ), server->file_hash, HASH_BYTES );
    server_send_event( server, slot, welcome, sizeof( welcome ) );
    memset( &message, 0, sizeof( message ) );
    message.channel = CHANNEL_FILE;
    message.kind = NETCODE_MESSAGE_RELIABLE;
    message.data = server->file;
    message.bytes = FILE_BYTES;
    message.receipt = server->players[slot].session;
    server_send( server, slot, &message );
}

static int match_is_full( const struct match_t * match )
{
    return match->slots[0] >= 0 && match->slots[1] >= 0;
}

static int match_is_empty( const struct match_t * match )
{
    return match->slots[0] < 0 && match->slots[1] < 0;
}

/* Notifies the players of a match that one joined or left. */
static void server_send_match( struct server_t * server, const struct match_t * match )
{
    for ( int side = 0; side < 2; side++ ) {
        uint8_t event[MATCH_BYTES];
        event[0] = EVENT_MATCH;
        event[1] = (uint8_t) side;
        event[2] = (uint8_t) match_is_full( match );
        event[3] = (uint8_t) match->pong.scores[0];
        event[4] = (uint8_t) match->pong.scores[1];
        if ( match->slots[side] >= 0 )
            server_send_event( server, match->slots[side], event, sizeof( event ) );
    }
}

/* A match in which a player waits, or an empty one: there is room for as many as there are slots. */
static int server_find_match( const struct server_t * server )
{
    int empty = 0;
    for ( int i = MATCHES - 1; i >= 0; i-- ) {
        if ( match_is_empty( &server->matches[i] ) )
            empty = i;
        else if ( !match_is_full( &server->matches[i] ) )
            return i;
    }
    return empty;
}

/* The match begins anew; only the paddle of who has waited stays where it is. */
static void match_begin( struct match_t * match, int side )
{
    uint32_t seed = 0;
    int other = match->pong.paddles[!side];
    netcode_random_bytes( (uint8_t *) &seed, sizeof( seed ) );
    pong_init( &match->pong, seed );
    if ( match->slots[!side] >= 0 )
        match->pong.paddles[!side] = other;
}

static void server_join( struct server_t * server, int slot )
{
    struct player_t * player = &server->players[slot];
    player->client_id = netcode_server_client_id( server->server, slot );
    player->joined_at = netcode_time();
    player->match = server_find_match( server );
    player->credit = MAX_CREDIT;
    player->inputs = player->snapshots = player->file_done = 0;
    struct match_t * match = &server->matches[player->match];
    player->side = match->slots[0] >= 0;
    match_begin( match, player->side );
    match->slots[player->side] = slot;
    server->joined++;
    say( server, "player %016llx plays %s in match %d", (unsigned long long) player->client_id,
         player->side ? "right" : "left", player->match );
    server_send_file( server, slot );
    server_send_match( server, match );
}

static void server_leave( struct server_t * server, int slot )
{
    const struct player_t * player = &server->players[slot];
    struct match_t * match = &server->matches[player->match];
    match->slots[player->side] = -1;
    say( server, "player %016llx has left match %d, having sent %u inputs", (unsigned long long) player->client_id,
         player->match, player->inputs );
    server_send_match( server, match );
}

static void server_take_input( struct server_t * server, int slot, const struct netcode_message_t * message )
{
    struct player_t * player = &server->players[slot];
    int * paddle = &server->matches[player->match].pong.paddles[player->side];
    const uint8_t * at = message->data;
    int good = message->channel == CHANNEL_INPUTS && message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED &&
               message->bytes == INPUT_BYTES;
    uint32_t number = good ? pong_get( &at, 4 ) : 0;
    int move = good ? (int) pong_get( &at, 1 ) - 1 : 0;
    if ( !good || number != player->inputs + 1 || move > 1 ) {
        server->wrong++;
        say( server, "slot %d sends what is no input", slot );
        netcode_server_disconnect_client( server->server, slot );
        return;
    }
    player->inputs = number;
    if ( player->credit > 0 ) {
        player->credit--;
        *paddle = move_paddle( *paddle, move );
    }
}

/* How far the file is. */
static void server_take_receipts( struct server_t * server, int slot )
{
    struct player_t * player = &server->players[slot];
    struct netcode_messages_event_t event;
    while ( netcode_messages_event( player->messages, &event ) ) {
        if ( event.receipt != player->session )
            continue;
        if ( event.type == NETCODE_MESSAGES_EVENT_PROGRESS )
            player->file_done = (uint32_t) event.bytes_done;
        if ( event.type == NETCODE_MESSAGES_EVENT_ACKED ) {
            player->file_done = FILE_BYTES;
            server->files++;
            say( server, "player %016llx has the file after %.2f s", (unsigned long long) player->client_id,
                 netcode_time() - player->joined_at );
        }
    }
}

/* The glue makes the messages new for a new session, so what we send to it comes behind that. */
static void server_receive( struct server_t * server, int slot, double now )
{
    struct player_t * player = &server->players[slot];
    struct netcode_message_t message;
    uint64_t session = netcode_server_client_session( server->server, slot );
    uint64_t last = player->session;
    if ( last && session != last )
        server_leave( server, slot );
    player->session = session;
    netcode_messages_pull_from_server( player->messages, server->server, slot, now );
    if ( session && session != last )
        server_join( server, slot );
    while ( netcode_server_client_session( server->server, slot ) == player->session && player->session &&
            netcode_messages_receive( player->messages, &message ) )
        server_take_input( server, slot, &message );
    server_take_receipts( server, slot );
}

static void server_step_match( struct server_t * server, struct match_t * match )
{
    static const int no_moves[2] = { 0, 0 }; /* inputs have moved the paddles when they came */
    int scorer = match_is_full( match ) ? pong_step( &match->pong, no_moves ) : -1;
    if ( scorer < 0 )
        return;
    uint8_t event[SCORE_BYTES] = { EVENT_SCORE, 0, 0, 0 };
    event[1] = (uint8_t) scorer;
    event[2] = (uint8_t) match->pong.scores[0];
    event[3] = (uint8_t) match->pong.scores[1];
    server->scores++;
    for ( int side = 0; side < 2; side++ )
        server_send_event( server, match->slots[side], event, sizeof( event ) );
}

/* Not every snapshot arrives, and no one is missed. */
static void server_send_snapshot( struct server_t * server, struct player_t * player )
{
    uint8_t snapshot[SNAPSHOT_BYTES];
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( player->messages, &stats );
    uint8_t * at = pong_put( snapshot, ++player->snapshots, 4 );
    at = pong_put( at, player->inputs, 4 );
    at = pong_put( at, player->file_done, 4 );
    at = pong_put( at, (uint32_t) stats.send_buffer_used, 4 );
    at = pong_put( at, (uint32_t) stats.reliable_retries_total, 4 );
    pong_write( &server->matches[player->match].pong, at );
    netcode_messages_send( player->messages, CHANNEL_SNAPSHOTS, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED, snapshot,
                           sizeof( snapshot ) );
}

static void server_tick( struct server_t * server, double now )
{
    for ( int i = 0; i < MATCHES; i++ )
        server_step_match( server, &server->matches[i] );
    for ( int slot = 0; slot < SLOTS; slot++ ) {
        struct player_t * player = &server->players[slot];
        if ( !player->session )
            continue;
        player->credit += player->credit < MAX_CREDIT;
        server_send_snapshot( server, player );
        netcode_messages_push_to_server( player->messages, server->server, slot, now );
    }
    server->ticks++;
    if ( netcode_time() - now > server->longest_tick )
        server->longest_tick = netcode_time() - now;
}

/* Takes in what comes when it comes, and answers at ticks. */
static void server_run( struct server_t * server, double seconds )
{
    double due = netcode_time();
    while ( !signal_stop ) {
        double now = netcode_time();
        if ( seconds > 0.0 && now - server->start_time >= seconds )
            break;
        netcode_server_update( server->server, now );
        for ( int slot = 0; slot < SLOTS; slot++ )
            server_receive( server, slot, now );
        if ( now >= due ) {
            server_tick( server, now );
            due = next_tick( due, now );
        }
        netcode_server_wait( server->server, due - netcode_time() );
    }
}

static int server_open( struct server_t * server, const char * address )
{
    struct netcode_server_config_t config;
    double now = netcode_time();
    server->start_time = now;
    server->file = (uint8_t *) malloc( FILE_BYTES );
    netcode_default_server_config( &config );
    config.protocol_id = PROTOCOL_ID;
    memcpy( config.private_key, example_key, sizeof( example_key ) );
    config.bind_address =
        address; /* and no wildcard: with this key it should not be on more networks than its options name */
    config.callback_context = server;
    config.log_callback = on_server_log;
    config.roaming = 1;
    server->server = netcode_server_create( address, &config, now );
    if ( !server->server || !server->file ) {
        fprintf( stderr, "pong: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 0;
    }
    netcode_random_bytes( server->file, FILE_BYTES );
    crypto_generichash( server->file_hash, HASH_BYTES, server->file, FILE_BYTES, NULL, 0 );
    for ( int i = 0; i < MATCHES; i++ )
        server->matches[i].slots[0] = server->matches[i].slots[1] = -1;
    for ( int slot = 0; slot < SLOTS; slot++ ) {
        server->players[slot].messages = make_messages( now );
        if ( !server->players[slot].messages )
            return 0;
    }
    netcode_server_start( server->server, SLOTS );
    return netcode_server_running( server->server );
}

static int run_server( const struct options_t * options )
{
    static struct server_t server;
    struct netcode_server_stats_t stats;
    int good = server_open( &server, options->address );
    if ( good ) {
        say( &server, "listening on port %d, %d slots", (int) netcode_server_get_port( server.server ), (int) SLOTS );
        server_run( &server, options->seconds );
        netcode_server_stats( server.server, &stats );
        say( &server,
             "summary ticks=%llu ticks_per_second=%.2f longest_tick_ms=%.2f players=%llu files=%llu scores=%llu "
             "wrong=%llu moves=%llu",
             (unsigned long long) server.ticks, (double) server.ticks / ( netcode_time() - server.start_time ),
             server.longest_tick * 1000.0, (unsigned long long) server.joined, (unsigned long long) server.files,
             (unsigned long long) server.scores, (unsigned long long) server.wrong, (unsigned long long) stats.moves );
    }
    netcode_server_destroy( server.server );
    for ( int slot = 0; slot < SLOTS; slot++ )
        netcode_messages_destroy( server.players[slot].messages );
    free( server.file );
    return good ? 0 : 1;
}

/* ---- the client ---- */

struct input_t {
    int move;
    int paddle; /* where it is with this input, as far as we know */
};

struct client_t {
    const struct options_t * options;
    struct netcode_client_t * client;
    struct netcode_messages_t * messages;
    struct netcode_messages_stats_t stats; /* of the last tick */
    char log[256];                         /* the library's last line */
    double connected_at;
    int connected; /* it was, at some time */
    int state;     /* it ended in */
    uint32_t ticks;

    struct pong_t world; /* of the newest snapshot, with our paddle where it will be */
    int side;            /* -1 until the server reports it */
    int playing;
    int was_playing;
    int move; /* of the player */
    int leaving;
    double leaving_at;
    struct input_t inputs[INPUTS_REMEMBERED];
    uint32_t sent, acknowledged, corrections;
    uint32_t snapshots, newest_snapshot;
    int scores[2]; /* as reported by events */
    uint32_t points;
    uint32_t server_buffer, server_retries;
    uint32_t wrong; /* messages that the server should not have sent */

    uint32_t file_bytes, file_done;
    uint8_t file_hash[HASH_BYTES];    /* of the file that was promised */
    uint8_t arrived_hash[HASH_BYTES]; /* of what has come */
    uint32_t arrived_bytes;
    double file_seconds;
};

static int file_is_good( const struct client_t * client )
{
    return client->file_bytes && client->arrived_bytes == client->file_bytes &&
           !memcmp( client->arrived_hash, client->file_hash, HASH_BYTES );
}

/*  The snapshot holds our inputs up to `acknowledged`; those behind it are played again on top. Where it does not have our
    paddle where we had it with that input, that was a correction. */
static void client_reconcile( struct client_t * client )
{
    int * paddle = &client->world.paddles[client->side];
    const struct input_t * last = &client->inputs[client->acknowledged % INPUTS_REMEMBERED];
    if ( client->acknowledged && last->paddle != *paddle )
        client->corrections++;
    for ( uint32_t i = client->acknowledged + 1; i <= client->sent; i++ ) {
        struct input_t * input = &client->inputs[i % INPUTS_REMEMBERED];
        *paddle = input->paddle = move_paddle( *paddle, input->move );
    }
}

static int client_take_snapshot( struct client_t * client, const uint8_t * at, int bytes )
{
    struct pong_t world;
    if ( bytes != SNAPSHOT_BYTES || !pong_read( &world, at + SNAPSHOT_BYTES - PONG_BYTES, PONG_BYTES ) )
        return 0;
    uint32_t number = pong_get( &at, 4 ), acknowledged = pong_get( &at, 4 );
    if ( number <= client->newest_snapshot || acknowledged < client->acknowledged || acknowledged > client->sent )
        return 0;
    client->newest_snapshot = number;
    client->acknowledged = acknowledged;
    client->file_done = pong_get( &at, 4 );
    client->server_buffer = pong_get( &at, 4 );
    client->server_retries = pong_get( &at, 4 );
    client->snapshots++;
    client->world = world;
    if ( client->side >= 0 )
        client_reconcile( client );
    return 1;
}

/* Each point is reported once, in order, so each makes the score one higher; after the last of a match it is 0:0. */
static int client_take_score( struct client_t * client, const uint8_t * event )
{
    int over = client->scores[0] >= PONG_POINTS || client->scores[1] >= PONG_POINTS;
    if ( over )
        client->scores[0] = client->scores[1] = 0;
    if ( event[1] > 1 )
        return 0;
    client->scores[event[1]]++;
    client->points++;
    return client->scores[0] == event[2] && client->scores[1] == event[3];
}

static int client_take_match( struct client_t * client, const uint8_t * event )
{
    if ( event[1] > 1 || ( client->side >= 0 && client->side != event[1] ) )
        return 0;
    if ( client->side < 0 )
        client->world.paddles[0] = client->world.paddles[1] = PONG_HEIGHT / 2;
    client->side = event[1];
    client->playing = event[2];
    client->was_playing |= client->playing;
    client->scores[0] = event[3];
    client->scores[1] = event[4];
    return 1;
}

static int client_take_event( struct client_t * client, const uint8_t * event, int bytes )
{
    const uint8_t * at = event + 1;
    if ( bytes == WELCOME_BYTES && event[0] == EVENT_WELCOME ) {
        client->file_bytes = pong_get( &at, 4 );
        memcpy( client->file_hash, at, HASH_BYTES );
        return 1;
    }
    if ( bytes == MATCH_BYTES && event[0] == EVENT_MATCH )
        return client_take_match( client, event );
    return bytes == SCORE_BYTES && event[0] == EVENT_SCORE && client_take_score( client, event );
}

static int client_take_file( struct client_t * client, const uint8_t * data, int bytes )
{
    if ( client->arrived_bytes || !bytes )
        return 0;
    client->arrived_bytes = (uint32_t) bytes;
    client->file_seconds = netcode_time() - client->connected_at;
    crypto_generichash( client->arrived_hash, HASH_BYTES, data, (unsigned long long) bytes, NULL, 0 );
    return 1;
}

static int client_take( struct client_t * client, const struct netcode_message_t * message )
{
    if ( message->channel == CHANNEL_SNAPSHOTS && message->kind == NETCODE_MESSAGE_UNRELIABLE_SEQUENCED )
        return client_take_snapshot( client, message->data, message->bytes );
    if ( message->channel == CHANNEL_EVENTS && message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
        return client_take_event( client, message->data, message->bytes );
    return message->channel == CHANNEL_FILE && message->kind == NETCODE_MESSAGE_RELIABLE &&
           client_take_file( client, message->data, message->bytes );
}

/* How high the ball will be when it comes to `side`, if it is on its way there: steps of our own tell. */
static int find_landing( const struct pong_t * world, int side )
{
    static const int no_moves[2] = { 0, 0 };
    struct pong_t ahead = *world;
    while ( ( side ? ahead.ball_dx > 0 : ahead.ball_dx < 0 ) &&
            ( side ? PONG_WIDTH - ahead.ball_x : ahead.ball_x ) > PONG_PADDLE_X + PONG_MAX_SPEED )
        pong_step( &ahead, no_moves );
    return ahead.ball_y;
}

/* A middling player. So that there are points to report, the two let the ball pass by turns. */
static int bot_move( const struct client_t * client )
{
    int lets_pass = ( client->scores[0] + client->scores[1] ) % 2 == client->side;
    if ( !lets_pass )
        return pong_bot( &client->world, client->side );
    return find_landing( &client->world, client->side ) < PONG_HEIGHT / 2 ? 1 : -1;
}

/* Sends the input of this tick, and moves our paddle as the server will. */
static void client_send_input( struct client_t * client )
{
    uint8_t data[INPUT_BYTES];
    int move = client->options->bot ? bot_move( client ) : client->move;
    if ( client->sent - client->acknowledged >= INPUTS_REMEMBERED - 1 )
        return; /* the server is silent: what we do now would not be known to it for long */
    pong_put( pong_put( data, client->sent + 1, 4 ), (uint32_t) ( move + 1 ), 1 );
    if ( netcode_messages_send( client->messages, CHANNEL_INPUTS, NETCODE_MESSAGE_RELIABLE_ORDERED, data,
                                sizeof( data ) ) != NETCODE_OK )
        return;
    int * paddle = &client->world.paddles[client->side];
    struct input_t * input = &client->inputs[++client->sent % INPUTS_REMEMBERED];
    input->move = move;
    *paddle = input->paddle = move_paddle( *paddle, move );
}

static void client_tick( struct client_t * client, double now )
{
    client->ticks++;
    if ( client->side >= 0 && !client->leaving )
        client_send_input( client );
    netcode_messages_push_to_client( client->messages, client->client, now );
    netcode_messages_stats( client->messages, &client->stats );
}

/* The events say what the snapshots say. After the last point of a match these say 0:0, and those nothing new. */
static int score_is_known( const struct client_t * client )
{
    const int *reported = client->scores, *seen = client->world.scores;
    return ( reported[0] == seen[0] && reported[1] == seen[1] ) ||
           ( ( reported[0] == PONG_POINTS || reported[1] == PONG_POINTS ) && seen[0] == 0 && seen[1] == 0 );
}

/* It came as it was sent, and the server has the receipt. */
static int file_is_done( const struct client_t * client )
{
    return file_is_good( client ) && client->file_done == client->file_bytes;
}

/* A player leaves at once; a bot when all is there, or will not come any more. */
static int client_is_done( struct client_t * client, double now )
{
    const struct options_t * options = client->options;
    int over = options->seconds > 0.0 && now - client->connected_at >= options->seconds;
    if ( !client->leaving && ( signal_stop || over ) ) {
        client->leaving = 1;
        client->leaving_at = now;
    }
    if ( !client->leaving || !options->bot || !client->connected || signal_stop > 1 )
        return client->leaving;
    return ( client->acknowledged == client->sent && file_is_done( client ) && score_is_known( client ) ) ||
           now - client->leaving_at >= LAST_SECONDS;
}

/* ---- the screen: 80 x 24 ---- */

enum { FIELD_COLUMNS = 78, FIELD_ROWS = 16, BAR = 16 };

struct frame_t {
    char text[16384];
    size_t used;
};

static void frame_add( struct frame_t * frame, const char * text, size_t bytes )
{
    if ( sizeof( frame->text ) - frame->used < bytes )
        return;
    memcpy( frame->text + frame->used, text, bytes );
    frame->used += bytes;
}

/* Another line, with all of its row. */
static void frame_line( struct frame_t * frame, const char * format, ... )
{
    char line[FIELD_COLUMNS + 3];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( line, sizeof( line ), format, arguments );
    va_end( arguments );
    frame_add( frame, line, strlen( line ) );
    frame_add( frame, "\033[K\r\n", 5 );
}

static void draw_paddle( char field[FIELD_ROWS][FIELD_COLUMNS + 1], const struct pong_t * pong, int side )
{
    int column = ( side ? PONG_WIDTH - PONG_PADDLE_X : PONG_PADDLE_X ) * FIELD_COLUMNS / PONG_WIDTH;
    int from = ( pong->paddles[side] - PONG_PADDLE_HALF ) * FIELD_ROWS / PONG_HEIGHT;
    int to = ( pong->paddles[side] + PONG_PADDLE_HALF ) * FIELD_ROWS / PONG_HEIGHT;
    for ( int row = from; row <= to && row < FIELD_ROWS; row++ )
        field[row][side ? column - 1 : column] = '#';
}

static void draw_text( char field[FIELD_ROWS][FIELD_COLUMNS + 1], int row, const char * text )
{
    memcpy( field[row] + ( FIELD_COLUMNS - strlen( text ) ) / 2, text, strlen( text ) );
}

static void draw_field( const struct client_t * client, struct frame_t * frame )
{
    static const char border[] = "+------------------------------------------------------------------------------+";
    char field[FIELD_ROWS][FIELD_COLUMNS + 1];
    const struct pong_t * pong = &client->world;
    memset( field, ' ', sizeof( field ) );
    for ( int row = 0; row < FIELD_ROWS; row++ ) {
        field[row][FIELD_COLUMNS / 2] = ':';
        field[row][FIELD_COLUMNS] = '\0';
    }
    if ( client->side < 0 || !client->newest_snapshot )
        draw_text( field, FIELD_ROWS / 2, " connecting " );
    else {
        draw_paddle( field, pong, 0 );
        draw_paddle( field, pong, 1 );
        field[pong_clamp( pong->ball_y * FIELD_ROWS / PONG_HEIGHT, 0, FIELD_ROWS - 1 )]
             [pong_clamp( pong->ball_x * FIELD_COLUMNS / PONG_WIDTH, 0, FIELD_COLUMNS - 1 )] = 'O';
        if ( !client->playing )
            draw_text( field, FIELD_ROWS / 2 - 3, " waiting for another player " );
    }
    frame_line( frame, "%s", border );
    for ( int row = 0; row < FIELD_ROWS; row++ )
        frame_line( frame, "|%s|", field[row] );
    frame_line( frame, "%s", border );
}

static int count_queued( const struct client_t * client )
{
    struct netcode_messages_channel_stats_t channel;
    int queued = 0;
    for ( int i = 0; i < CHANNELS; i++ ) {
        netcode_messages_channel_stats( client->messages, i, &channel );
        queued += channel.queued_messages;
    }
    return queued;
}

static void draw_numbers( const struct client_t * client, struct frame_t * frame )
{
    const struct netcode_messages_stats_t * stats = &client->stats;
    frame_line( frame, "round trip %5.1f ms, felt %5.1f ms, jitter %4.1f ms | loss out %4.1f %%, in %4.1f %%",
                stats->rtt * 1000.0, stats->ping * 1000.0, stats->jitter * 1000.0, stats->loss_sent * 100.0,
                stats->loss_received * 100.0 );
    frame_line( frame, "out %5.1f KiB/s, in %5.1f KiB/s | queue %d, in flight %.0f B | repeats %llu",
                stats->send_rate / 1024.0, stats->receive_rate / 1024.0, count_queued( client ), stats->bytes_in_flight,
                (unsigned long long) stats->messages_repeated );
    frame_line( frame, "inputs %u, %u in flight | snapshots %u of %u | retries %llu", client->sent,
                client->sent - client->acknowledged, client->snapshots, client->newest_snapshot,
                (unsigned long long) stats->reliable_retries_total );
}

static void draw_server( const struct client_t * client, struct frame_t * frame )
{
    char bar[BAR + 1], file[32];
    uint32_t total = client->file_bytes ? client->file_bytes : FILE_BYTES;
    uint32_t done = client->arrived_bytes || client->file_done > total ? total : client->file_done;
    memset( bar, '.', BAR );
    memset( bar, '=', (size_t) done * BAR / total );
    bar[BAR] = '\0';
    if ( !client->arrived_bytes )
        snprintf( file, sizeof( file ), "%u of %u KiB", done / 1024, total / 1024 );
    else if ( file_is_good( client ) )
        snprintf( file, sizeof( file ), "whole after %.1f s", client->file_seconds );
    else
        snprintf( file, sizeof( file ), "IS NOT AS IT WAS SENT" );
    frame_line( frame, "server: %u KiB to send, %u retries | file [%s] %s", client->server_buffer / 1024,
                client->server_retries, bar, file );
}

static void draw( const struct client_t * client, struct frame_t * frame )
{
    const struct options_t * options = client->options;
    static const char keys[] = "w s or arrows: move, space: stay, q: leave\033[K\033[J";
    frame->used = 0;
    frame_add( frame, "\033[H", 3 );
    frame_line( frame, "%-8s %2d : %-2d %8s   %s%s%s", client->side == 0 ? "YOU" : "left", client->scores[0],
                client->scores[1], client->side == 1 ? "YOU" : "right", options->address,
                options->via ? " through " : "", options->via ? options->via : "" );
    draw_field( client, frame );
    draw_numbers( client, frame );
    draw_server( client, frame );
    frame_add( frame, keys, sizeof( keys ) - 1 );
}

#ifdef _WIN32

static int screen_open( void )
{
    fprintf( stderr, "pong: there is only --bot on this system\n" );
    return 0;
}

static void screen_close( void )
{
}

static void screen_show( const struct frame_t * frame )
{
    (void) frame;
}

static void read_keys( struct client_t * client )
{
    (void) client;
}

#else

static struct termios screen_before;
static volatile sig_atomic_t screen_is_open;

/* Only what a signal handler may call. */
static void screen_close( void )
{
    static const char end[] = "\033[?25h\033[?1049l";
    if ( !screen_is_open )
        return;
    screen_is_open = 0;
    ssize_t written = write( STDOUT_FILENO, end, sizeof( end ) - 1 );
    (void) written;
    tcsetattr( STDIN_FILENO, TCSANOW, &screen_before );
}

/* A crash must not leave a terminal that nobody can type in. */
static void on_crash( int number )
{
    screen_close();
    signal( number, SIG_DFL );
    raise( number );
}

static void screen_show( const struct frame_t * frame )
{
    for ( size_t at = 0; at < frame->used; ) {
        ssize_t written = write( STDOUT_FILENO, frame->text + at, frame->used - at );
        if ( written <= 0 )
            return; /* the next frame is complete again */
        at += (size_t) written;
    }
}

static int screen_is_small( void )
{
    struct winsize size;
    return ioctl( STDOUT_FILENO, TIOCGWINSZ, &size ) == 0 && size.ws_col > 0 &&
           ( size.ws_col < FIELD_COLUMNS + 2 || size.ws_row < FIELD_ROWS + 8 );
}

/* Keys come one by one, unseen, and no key makes a signal. */
static int screen_open( void )
{
    static const int crashes[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    static const char begin[] = "\033[?1049h\033[?25l\033[2J";
    struct termios raw;
    if ( !isatty( STDIN_FILENO ) || !isatty( STDOUT_FILENO ) || tcgetattr( STDIN_FILENO, &screen_before ) != 0 ) {
        fprintf( stderr, "pong: this is no terminal; --bot plays without one\n" );
        return 0;
    }
    if ( screen_is_small() ) {
        fprintf( stderr, "pong: the terminal must have 80 x 24 characters\n" );
        return 0;
    }
    raw = screen_before;
    raw.c_lflag &= ~(tcflag_t) ( ICANON | ECHO | ISIG | IEXTEN );
    raw.c_iflag &= ~(tcflag_t) ( IXON | ICRNL );
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    screen_is_open = 1;
    for ( size_t i = 0; i < sizeof( crashes ) / sizeof( crashes[0] ); i++ )
        signal( crashes[i], on_crash );
    tcsetattr( STDIN_FILENO, TCSANOW, &raw );
    return write( STDOUT_FILENO, begin, sizeof( begin ) - 1 ) > 0;
}

/* A terminal does not tell when a key is let go, so a paddle moves until another key is pressed. */
static void take_key( struct client_t * client, char key )
{
    static int escape; /* how much of ESC [ A was there */
    int arrow = escape == 2;
    escape = key == '\033' ? 1 : escape == 1 && ( key == '[' || key == 'O' ) ? 2 : 0;
    if ( escape )
        return;
    if ( arrow ? key == 'A' : key == 'w' || key == 'W' )
        client->move = -1;
    else if ( arrow ? key == 'B' : key == 's' || key == 'S' )
        client->move = 1;
    else if ( !arrow && ( key == 'q' || key == 'Q' || key == '\003' ) )
        client->leaving = 1;
    else
        client->move = 0;
}

static void read_keys( struct client_t * client )
{
    char keys[64];
    ssize_t count = read( STDIN_FILENO, keys, sizeof( keys ) );
    for ( ssize_t i = 0; i < count; i++ )
        take_key( client, keys[i] );
}

#endif

/* ---- the client's run ---- */

static void on_client_log( void * context, int level, const char * text )
{
    struct client_t * client = (struct client_t *) context;
    (void) level;
    snprintf( client->log, sizeof( client->log ), "%s", text );
}

/* What a backend does for a player. Behind a relay the client dials another address than the server knows itself by. */
static int make_token( const struct options_t * options, uint8_t * token )
{
    const char * known = options->address;
    const char * dialled = options->via ? options->via : known;
    uint64_t client_id = 0;
    netcode_random_bytes( (uint8_t *) &client_id, sizeof( client_id ) );
    if ( netcode_generate_connect_token( 1, &dialled, &known, TOKEN_SECONDS, TIMEOUT_SECONDS, client_id, PROTOCOL_ID,
                                         example_key, NULL, token ) == NETCODE_OK )
        return 1;
    fprintf( stderr, "pong: an address is numbers and a port, like 127.0.0.1:40000; host names are not resolved\n" );
    return 0;
}

static int client_open( struct client_t * client, const struct options_t * options )
{
    struct netcode_client_config_t config;
    struct netcode_address_t dialled;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    double now = netcode_time();
    memset( client, 0, sizeof( *client ) );
    client->options = options;
    client->side = -1;
    client->connected_at = now;
    if ( !make_token( options, token ) )
        return 0;
    netcode_parse_address( options->via ? options->via : options->address, &dialled );
    netcode_default_client_config( &config );
    config.callback_context = client;
    config.log_callback = on_client_log;
    client->client = netcode_client_create( dialled.type == NETCODE_ADDRESS_IPV6 ? "::" : "0.0.0.0", &config, now );
    client->messages = make_messages( now );
    if ( !client->client || !client->messages ) {
        fprintf( stderr, "pong: %s\n", netcode_client_create_error_text( netcode_client_create_error() ) );
        return 0;
    }
    netcode_client_connect( client->client, token );
    return 1;
}

/* 0: the connection has ended, or never came to be. */
static int client_receive( struct client_t * client, double now )
{
    struct netcode_message_t message;
    netcode_client_update( client->client, now );
    client->state = netcode_client_state( client->client );
    netcode_messages_pull_from_client( client->messages, client->client, now );
    while ( netcode_messages_receive( client->messages, &message ) )
        client->wrong += !client_take( client, &message );
    if ( client->state == NETCODE_CLIENT_STATE_CONNECTED && !client->connected ) {
        client->connected = 1;
        client->connected_at = now;
    }
    return client->state > NETCODE_CLIENT_STATE_DISCONNECTED;
}

static void client_run( struct client_t * client )
{
    static struct frame_t frame;
    double due = netcode_time();
    for ( ;; ) {
        double now = netcode_time();
        if ( !client_receive( client, now ) || client_is_done( client, now ) )
            return;
        if ( now >= due ) {
            if ( !client->options->bot )
                read_keys( client );
            client_tick( client, now );
            due = next_tick( due, now );
            if ( !client->options->bot && client->ticks % 2 ) {
                draw( client, &frame );
                screen_show( &frame );
            }
        }
        netcode_client_wait( client->client, due - netcode_time() );
    }
}

static void print_summary( const struct client_t * client )
{
    const struct netcode_messages_stats_t * stats = &client->stats;
    printf( "summary ticks=%u score=%d:%d points=%u snapshots=%u of=%u inputs=%u acknowledged=%u corrections=%u "
            "file=%s file_seconds=%.2f round_trip_ms=%.2f felt_ms=%.2f jitter_ms=%.2f loss_sent=%.3f "
            "loss_received=%.3f retries=%llu timeouts=%llu repeats=%llu server_retries=%u wrong=%u\n",
            client->ticks, client->scores[0], client->scores[1], client->points, client->snapshots,
            client->newest_snapshot, client->sent, client->acknowledged, client->corrections,
            file_is_good( client )  ? "ok"
            : client->arrived_bytes ? "wrong"
                                    : "missing",
            client->file_seconds, stats->rtt * 1000.0, stats->ping * 1000.0, stats->jitter * 1000.0, stats->loss_sent,
            stats->loss_received, (unsigned long long) stats->reliable_retries_total,
            (unsigned long long) stats->reliable_timeouts_total, (unsigned long long) stats->messages_repeated,
            client->server_retries, client->wrong );
}

/* What must hold, whatever the network did. Says what did not. */
static int is_all_well( const struct client_t * client )
{
    const struct {
        int holds;
        const char * what;
    } claims[] = {
        { client->state == NETCODE_CLIENT_STATE_CONNECTED, "it was connected until it left" },
        { client->was_playing, "it had another player to play with" },
        { client->sent > 0 && client->acknowledged == client->sent, "the server has all of its inputs" },
        { client->snapshots > 0 && client->snapshots >= client->newest_snapshot / 2, "half of the snapshots came" },
        { file_is_good( client ), "the file came as it was sent" },
        { file_is_done( client ), "the server has the receipt for the file" },
        { score_is_known( client ), "it received the score" },
        { client->wrong == 0, "all messages were as they must be" },
        { client->stats.reliable_timeouts_total == 0, "no reliable message was given up" },
    };
    int good = 1;
    for ( size_t i = 0; i < sizeof( claims ) / sizeof( claims[0] ); i++ ) {
        if ( !claims[i].holds )
            fprintf( stderr, "pong: it is not so that %s\n", claims[i].what );
        good &= claims[i].holds;
    }
    return good;
}

/* 0: it could be played, and for a bot: all is well. */
static int client_report( struct client_t * client )
{
    struct netcode_client_report_t report;
    if ( client->log[0] )
        fprintf( stderr, "pong: netcode: %s\n", client->log );
    if ( client->state <= NETCODE_CLIENT_STATE_DISCONNECTED ) {
        netcode_client_report( client->client, &report );
        fprintf( stderr, "pong: %s\n", report.text );
    }
    if ( !client->options->bot )
        return client->state > NETCODE_CLIENT_STATE_DISCONNECTED ? 0 : 1;
    print_summary( client );
    return is_all_well( client ) ? 0 : 1;
}

static int run_client( const struct options_t * options )
{
    static struct client_t client;
    int status = 1;
    if ( client_open( &client, options ) && ( options->bot || screen_open() ) ) {
        client_run( &client );
        screen_close();
        status = client_report( &client );
    }
    screen_close();
    netcode_client_destroy( client.client );
    netcode_messages_destroy( client.messages );
    return status;
}

/* ---- options ---- */

static int print_help( int status )
{
    fprintf( status ? stderr : stdout,
             "usage: pong server [ADDRESS] [--seconds N]\n"
             "       pong client [ADDRESS] [--bot] [--seconds N] [--via RELAY_ADDRESS]\n"
             "\n"
             "ADDRESS is the server's, " DEFAULT_ADDRESS " where it is not given.\n"
             "\n"
             "  --bot            play without a terminal, print a summary, and end with 0 only if all was well\n"
             "  --seconds N      end by itself; a bot then waits up to %.0f s for what is still in flight\n"
             "  --via ADDRESS    dial a relay, which must send on to the server\n",
             LAST_SECONDS );
    return status;
}

static int parse_seconds( const char * text, double * seconds )
{
    char * end = NULL;
    *seconds = strtod( text, &end );
    return end != text && *end == '\0' && *seconds > 0.0 && *seconds <= 1e6;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    memset( options, 0, sizeof( *options ) );
    options->address = DEFAULT_ADDRESS;
    if ( argc < 2 || ( strcmp( argv[1], "server" ) != 0 && strcmp( argv[1], "client" ) != 0 ) )
        return 0;
    options->server = !strcmp( argv[1], "server" );
    for ( int i = 2; i < argc; i++ ) {
        if ( argv[i][0] != '-' )
            options->address = argv[i];
        else if ( !strcmp( argv[i], "--seconds" ) && i + 1 < argc && parse_seconds( argv[i + 1], &options->seconds ) )
            i++;
        else if ( !strcmp( argv[i], "--bot" ) && !options->server )
            options->bot = 1;
        else if ( !strcmp( argv[i], "--via" ) && !options->server && i + 1 < argc )
            options->via = argv[++i];
        else
            return 0;
    }
    return 1;
}

int main( int argc, char ** argv )
{
    static struct options_t options;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) )
        return print_help( 0 );
    if ( !parse_options( argc, argv, &options ) )
        return print_help( 2 );
    if ( netcode_init() != NETCODE_OK ) {
        fprintf( stderr, "pong: netcode_init failed\n" );
        return 1;
    }
    install_signals();
    int status = options.server ? run_server( &options ) : run_client( &options );
    netcode_term();
    return status;
}
