/*  A load generator: many clients in one process, each a player of examples/match_server.c with a connection and
    messages of its own, at a tick rate. It reports how long inputs took to be acknowledged by the application, what was
    sent, received and lost, and all counters of messages summed.

        cc examples/loadgen.c -lsodium -o loadgen
        ./loadgen --clients 100 --seconds 60
        ./loadgen --server 127.0.0.1:40000 --through 127.0.0.1:40001      (a relay in between)
        ./loadgen --help

    It makes its clients' tokens itself, so it has the private key: see examples/match.h. Real clients never do. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"
#include "match.h"

#include <signal.h>
#include <sodium.h>

#define MAX_CLIENTS 1024
#define NUMBERS_REMEMBERED 65536 /* inputs of a client that may be without an answer at once */
#define TOKEN_SECONDS 300
#define TIMEOUT_SECONDS 10
#define CONNECT_SECONDS 15.0
#define LATE_SECONDS 0.25

struct options_t {
    const char * server;
    const char * through; /* what clients connect to: the server, or a relay in front of it */
    int clients, first_id;
    double tick_rate, seconds, warm_up, drain;
    int kind;         /* of inputs */
    int num_inputs;   /* of each client; 0: a tick, an input */
    int file_clients; /* so many have files beside their game, both ways */
    int json;
    struct netcode_messages_config_t config;
    struct sending_t sending;
};

struct player_t {
    struct netcode_client_t * client;
    struct netcode_messages_t * messages;
    double next_tick;
    int was_connected, is_lost, group;
    uint32_t sent, acked, next_ack, next_score;
    uint64_t last_snapshot; /* its time */
    struct pong_t pong;     /* of the newest snapshot */
    struct sending_t sending;
    uint8_t answered[NUMBERS_REMEMBERED / 8];
};

enum { CONNECT, RUN, DRAIN };

struct app_t {
    struct options_t options;
    struct player_t * players;
    int phase, connected;
    double start_time, run_time, end_time;
    uint64_t inputs_sent, inputs_acked, acks_repeated, acks_out_of_order, inputs_refused;
    uint64_t snapshots, snapshots_old, scores, scores_out_of_order, messages_wrong, files_received, files_wrong;
    uint64_t file_bytes_received; /* while it is measured */
    uint64_t disconnects, dropped[NETCODE_DROP_REASONS], kernel_drops, send_errors, ticks_late;
    struct durations_t round_trips, file_seconds, late_seconds, one_way[MATCH_GROUPS], snapshot_one_way[MATCH_GROUPS];
    struct netcode_messages_stats_t counters;
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

static int is_measured( const struct app_t * app, double now )
{
    return app->phase == RUN && now - app->run_time >= app->options.warm_up;
}

/* ---- what arrives ---- */

/* The server has applied an input. */
static void take_ack( struct app_t * app, struct player_t * player, const struct netcode_message_t * message,
                      double now )
{
    uint32_t number = (uint32_t) match_get( message->data + 2, 4 ), place = number % NUMBERS_REMEMBERED;
    uint8_t bit = (uint8_t) ( 1 << place % 8 );
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED && number != player->next_ack )
        app->acks_out_of_order++;
    player->next_ack = number + 1;
    if ( number >= player->sent || player->sent - number > NUMBERS_REMEMBERED ) {
        app->messages_wrong++;
    } else if ( player->answered[place / 8] & bit ) {
        app->acks_repeated++;
    } else {
        player->answered[place / 8] |= bit;
        player->acked++;
        app->inputs_acked++;
        if ( message->data[1] & MATCH_MEASURED ) {
            durations_add_since( &app->round_trips, match_get( message->data + 6, 8 ), now );
            durations_add_since( &app->one_way[player->group], match_get( message->data + 14, 8 ), now );
        }
    }
}

static void take_snapshot( struct app_t * app, struct player_t * player, const struct netcode_message_t * message,
                           double now )
{
    uint64_t time = match_get( message->data + 2, 8 );
    app->snapshots++;
    if ( time <= player->last_snapshot )
        app->snapshots_old++; /* never: they are sequenced */
    player->last_snapshot = time;
    if ( !pong_read( &player->pong, message->data + 14, message->bytes - 14 ) )
        app->messages_wrong++;
    if ( is_measured( app, now ) )
        durations_add_since( &app->snapshot_one_way[player->group], time, now );
}

static void take_score( struct app_t * app, struct player_t * player, const struct netcode_message_t * message )
{
    uint32_t number = (uint32_t) match_get( message->data + 1, 4 );
    app->scores++;
    if ( number != player->next_score )
        app->scores_out_of_order++;
    player->next_score = number + 1;
}

static void take_messages( struct app_t * app, struct player_t * player, double now )
{
    struct netcode_message_t message;
    while ( netcode_messages_receive( player->messages, &message ) ) {
        int type = message.bytes > 0 ? message.data[0] : 0;
        if ( type == MATCH_ACK && message.bytes == MATCH_ACK_BYTES )
            take_ack( app, player, &message, now );
        else if ( type == MATCH_SNAPSHOT && message.bytes == MATCH_SNAPSHOT_BYTES )
            take_snapshot( app, player, &message, now );
        else if ( type == MATCH_SCORE && message.bytes == MATCH_SCORE_BYTES )
            take_score( app, player, &message );
        else if ( type == MATCH_FILE ) {
            app->files_received++;
            app->files_wrong += !match_file_is_right( message.data, message.bytes );
            app->file_bytes_received += is_measured( app, now ) ? (uint64_t) message.bytes : 0;
        } else
            app->messages_wrong++;
    }
}

/* ---- what is sent ---- */

static void send_input( struct app_t * app, struct player_t * player, double now )
{
    uint8_t data[MATCH_INPUT_BYTES], *at = data;
    uint32_t place = player->sent % NUMBERS_REMEMBERED;
    if ( app->options.num_inputs && player->sent >= (uint32_t) app->options.num_inputs )
        return;
    *at++ = MATCH_INPUT;
    *at++ = (uint8_t) ( ( is_measured( app, now ) ? MATCH_MEASURED : 0 ) | ( player->group ? MATCH_BESIDE : 0 ) );
    *at++ = (uint8_t) ( 1 + pong_bot( &player->pong, netcode_client_index( player->client ) & 1 ) );
    at = match_put( at, player->sent, 4 );
    match_put( at, match_microseconds( now ), 8 );
    if ( netcode_messages_send( player->messages, MATCH_INPUTS, app->options.kind, data, sizeof( data ) ) !=
         NETCODE_OK ) {
        app->inputs_refused++;
        return;
    }
    player->answered[place / 8] &= ( uint8_t ) ~( 1 << place % 8 );
    player->sent++;
    app->inputs_sent++;
}

static void note_state( struct app_t * app, struct player_t * player )
{
    int state = netcode_client_state( player->client );
    if ( state == NETCODE_CLIENT_STATE_CONNECTED && !player->was_connected ) {
        player->was_connected = 1;
        app->connected++;
    } else if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED && !player->is_lost ) {
        player->is_lost = 1; /* it never came in, or fell out */
        app->disconnects++;
    }
}

static void tick_player( struct app_t * app, struct player_t * player, double now )
{
    netcode_client_update( player->client, now );
    note_state( app, player );
    if ( netcode_client_state( player->client ) != NETCODE_CLIENT_STATE_CONNECTED )
        return;
    netcode_messages_pull_from_client( player->messages, player->client, now );
    take_messages( app, player, now );
    sending_events( &player->sending, player->messages, now, is_measured( app, now ), &app->file_seconds );
    if ( app->phase == RUN ) {
        send_input( app, player, now );
        if ( player->group )
            sending_start( &player->sending, player->messages, now );
    }
    netcode_messages_push_to_client( player->messages, player->client, now );
}

/* ---- the run ---- */

static int everything_is_answered( const struct app_t * app )
{
    for ( int i = 0; i < app->options.clients; i++ )
        if ( !app->players[i].is_lost &&
             ( app->players[i].acked < app->players[i].sent || app->players[i].sending.busy ) )
            return 0;
    return 1;
}

/* 0 when all is over. */
static int next_phase( struct app_t * app, double now )
{
    const struct options_t * options = &app->options;
    if ( app->phase == CONNECT && ( app->connected == options->clients || now - app->start_time >= CONNECT_SECONDS ) ) {
        app->phase = RUN;
        app->run_time = now;
    } else if ( app->phase == RUN && now - app->run_time >= options->warm_up + options->seconds ) {
        app->phase = DRAIN;
        app->end_time = now;
    }
    return app->phase != DRAIN || ( !everything_is_answered( app ) && now - app->end_time < options->drain );
}

/* Each client ticks at its own time within a tick, as players do. Returns when the next one is due. */
static double tick_all( struct app_t * app, double now )
{
    double next = now + 1.0, period = 1.0 / app->options.tick_rate;
    for ( int i = 0; i < app->options.clients; i++ ) {
        struct player_t * player = &app->players[i];
        if ( player->next_tick <= now ) {
            durations_add( &app->late_seconds, now - player->next_tick );
            tick_player( app, player, now );
            while ( now - player->next_tick > LATE_SECONDS ) {
                app->ticks_late++;
                player->next_tick += period;
            }
            player->next_tick += period;
        }
        next = player->next_tick < next ? player->next_tick : next;
    }
    return next;
}

static void run( struct app_t * app )
{
    while ( !signal_stop ) {
        double now = netcode_time();
        if ( !next_phase( app, now ) )
            break;
        double next = tick_all( app, now );
        netcode_sleep( next - netcode_time() );
    }
    if ( app->phase != DRAIN )
        app->end_time = netcode_time();
}

/* ---- beginning and end ---- */

static int connect_player( struct app_t * app, int index, const uint8_t * key )
{
    struct player_t * player = &app->players[index];
    struct netcode_client_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    const char * through = app->options.through;
    double now = netcode_time();
    netcode_default_client_config( &config );
    player->client = netcode_client_create( match_client_address( through ), &config, now );
    player->messages = netcode_messages_create( &app->options.config, now );
    if ( !player->client || !player->messages ||
         netcode_generate_connect_token( 1, &through, &app->options.server, TOKEN_SECONDS, TIMEOUT_SECONDS,
                                         (uint64_t) ( app->options.first_id + index ), MATCH_PROTOCOL_ID, key, NULL,
                                         token ) != NETCODE_OK )
        return 0;
    pong_init( &player->pong, 1 );
    player->sending = app->options.sending;
    player->group = index < app->options.file_clients;
    player->next_tick = now + (double) index / (double) app->options.clients / app->options.tick_rate;
    netcode_client_connect( player->client, token );
    sodium_memzero( token, sizeof( token ) );
    return 1;
}

static int connect_all( struct app_t * app )
{
    uint8_t key[NETCODE_KEY_BYTES];
    int good = match_key_for( "loadgen", app->options.server, key );
    if ( !good )
        return 0;
    app->players = (struct player_t *) calloc( (size_t) app->options.clients, sizeof( struct player_t ) );
    for ( int i = 0; good && app->players && i < app->options.clients; i++ )
        good = connect_player( app, i, key );
    sodium_memzero( key, sizeof( key ) );
    if ( !app->players || !good )
        fprintf( stderr, "loadgen: a client could not be made: an address, a socket or memory\n" );
    return app->players && good;
}

static void close_all( struct app_t * app )
{
    for ( int i = 0; app->players && i < app->options.clients; i++ ) {
        struct player_t * player = &app->players[i];
        struct netcode_client_stats_t stats;
        if ( player->client && player->messages ) {
            counters_add( &app->counters, player->messages );
            netcode_client_stats( player->client, &stats );
            for ( int reason = 0; reason < (int) NETCODE_DROP_REASONS; reason++ )
                app->dropped[reason] += stats.dropped[reason];
            app->kernel_drops += stats.kernel_drops;
            app->send_errors += stats.send_errors;
        }
        if ( player->client )
            netcode_client_disconnect( player->client );
        netcode_client_destroy( player->client );
        netcode_messages_destroy( player->messages );
    }
}

/* ---- the report ---- */

static void report_inputs( struct report_t * report, const struct app_t * app )
{
    report_count( report, "inputs_sent", app->inputs_sent );
    report_count( report, "inputs_acked", app->inputs_acked );
    report_count( report, "inputs_lost", app->inputs_sent - app->inputs_acked );
    report_count( report, "inputs_refused", app->inputs_refused );
    report_count( report, "acks_repeated", app->acks_repeated );
    report_count( report, "acks_out_of_order", app->acks_out_of_order );
    report_count( report, "snapshots", app->snapshots );
    report_count( report, "snapshots_old", app->snapshots_old );
    report_count( report, "scores", app->scores );
    report_count( report, "scores_out_of_order", app->scores_out_of_order );
    report_count( report, "messages_wrong", app->messages_wrong );
    report_durations( report, "round_trip_ms", &app->round_trips );
    report_groups( report, "ack_one_way_ms", app->one_way );
    report_groups( report, "snapshot_one_way_ms", app->snapshot_one_way );
}

static void report_files( struct report_t * report, const struct app_t * app )
{
    uint64_t begun = 0, finished = 0, acked = 0;
    for ( int i = 0; app->players && i < app->options.clients; i++ ) {
        begun += (uint64_t) app->players[i].sending.begun;
        finished += (uint64_t) app->players[i].sending.finished;
        acked += app->players[i].sending.acked_total;
    }
    report_count( report, "files_begun", begun );
    report_count( report, "files_finished", finished );
    report_count( report, "file_bytes_acked", acked );
    report_durations( report, "file_ms", &app->file_seconds );
    report_count( report, "files_received", app->files_received );
    report_count( report, "files_wrong", app->files_wrong );
    report_count( report, "file_bytes_received", app->file_bytes_received );
}

static void report_all( const struct app_t * app )
{
    struct report_t report = { 0, 0, 0 };
    report.json = app->options.json;
    report_open( &report, NULL );
    report_count( &report, "clients", (uint64_t) app->options.clients );
    report_count( &report, "connected", (uint64_t) app->connected );
    report_count( &report, "disconnects", app->disconnects );
    report_real( &report, "seconds", app->run_time > 0.0 ? app->end_time - app->run_time : 0.0 );
    report_count( &report, "ticks_late", app->ticks_late );
    report_durations( &report, "late_ms", &app->late_seconds );
    report_inputs( &report, app );
    report_files( &report, app );
    report_drops( &report, app->dropped );
    report_count( &report, "kernel_drops", app->kernel_drops );
    report_count( &report, "send_errors", app->send_errors );
    report_counters( &report, &app->counters );
    report_close( &report );
}

/* ---- options ---- */

static void print_help( void )
{
    printf( "usage: loadgen [options]\n"
            "\n"
            "  --server ADDRESS     the server, as it calls itself (" MATCH_ADDRESS ")\n"
            "  --through ADDRESS    where clients connect to, if it is not the server: a relay\n"
            "  --clients N          up to %d (50)\n"
            "  --first-id N         the first client's id (1000)\n"
            "  --tick-rate N        a second (60)\n"
            "  --seconds N          that are measured (60)\n"
            "  --warm-up N          seconds before them, with the same load (2)\n"
            "  --drain N            seconds at most until everything sent is answered (10)\n"
            "  --kind NAME          of inputs: unreliable, sequenced, reliable or ordered (ordered)\n"
            "  --inputs N           of each client, one a tick; 0: until the end (0)\n"
            "  --file BYTES         each client sends files of so many bytes, one after the other; 0: none (0)\n"
            "  --files N            so many; 0: until the end (0)\n"
            "  --file-clients N     only the first so many do, and want the server's (all)\n"
            "  --file-pause S       between two files (0)\n"
            "  --congestion NAME    adaptive, fixed or none (adaptive)\n"
            "  --rate BYTES         a second, of fixed\n"
            "  --json               the report as JSON\n"
            "\n"
            "Exit status: 0 if all clients connected and stayed, 3 if not, 1 when it could not start, 2 for wrong "
            "usage.\n",
            MAX_CLIENTS );
}

static int parse_kind( const char * text, int * kind )
{
    static const char * const names[] = { "unreliable", "sequenced", "reliable", "ordered" };
    for ( *kind = 0; *kind < 4; ++*kind )
        if ( !strcmp( text, names[*kind] ) )
            return 1;
    return 0;
}

static int parse_option( struct options_t * options, const char * name, const char * text )
{
    double number = 0.0;
    if ( !strcmp( name, "--server" ) )
        options->server = text;
    else if ( !strcmp( name, "--through" ) )
        options->through = text;
    else if ( !strcmp( name, "--kind" ) )
        return parse_kind( text, &options->kind );
    else if ( !strcmp( name, "--clients" ) && match_number( text, 1.0, MAX_CLIENTS, &number ) )
        options->clients = (int) number;
    else if ( !strcmp( name, "--first-id" ) && match_number( text, 0.0, 1e9, &number ) )
        options->first_id = (int) number;
    else if ( !strcmp( name, "--inputs" ) && match_number( text, 0.0, 1e9, &number ) )
        options->num_inputs = (int) number;
    else if ( !strcmp( name, "--file-clients" ) && match_number( text, 0.0, MAX_CLIENTS, &number ) )
        options->file_clients = (int) number;
    else if ( !strcmp( name, "--tick-rate" ) && match_number( text, 1.0, 1000.0, &number ) )
        options->tick_rate = number;
    else if ( !strcmp( name, "--seconds" ) && match_number( text, 0.1, 1e6, &number ) )
        options->seconds = number;
    else if ( !strcmp( name, "--warm-up" ) && match_number( text, 0.0, 1e6, &number ) )
        options->warm_up = number;
    else if ( !strcmp( name, "--drain" ) && match_number( text, 0.0, 1e6, &number ) )
        options->drain = number;
    else
        return match_option( name, text, &options->config, &options->sending );
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    options->server = MATCH_ADDRESS;
    options->clients = 50;
    options->file_clients = MAX_CLIENTS;
    options->first_id = 1000;
    options->tick_rate = PONG_HZ;
    options->seconds = 60.0;
    options->warm_up = 2.0;
    options->drain = 10.0;
    options->kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    for ( int i = 1; i < argc; i++ ) {
        if ( !strcmp( argv[i], "--json" ) ) {
            options->json = 1;
        } else if ( i + 1 >= argc || !parse_option( options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "loadgen: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        } else {
            i++;
        }
    }
    if ( !options->through )
        options->through = options->server;
    return 1;
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    if ( !parse_options( argc, argv, &app.options ) )
        return 2;
    if ( netcode_init() != NETCODE_OK )
        return 1;
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    app.round_trips.bin = app.late_seconds.bin = 1e-4;
    for ( int i = 0; i < MATCH_GROUPS; i++ )
        app.one_way[i].bin = app.snapshot_one_way[i].bin = 1e-4;
    app.file_seconds.bin = 1e-3;
    app.start_time = netcode_time();
    int status = 1;
    if ( connect_all( &app ) ) {
        run( &app );
        status = app.connected == app.options.clients && app.disconnects == 0 ? 0 : 3;
    }
    close_all( &app );
    if ( status != 1 )
        report_all( &app );
    free( app.players );
    netcode_term();
    return status;
}
