/*  An authoritative server of many matches of Pong, two players each, with messages: 60 ticks a second;
    inputs are acknowledged by the application, snapshots go unreliable sequenced, the score reliable ordered, and files
    in the background if --file says so. At its end it reports how its ticks went and what was counted.
    examples/loadgen.c plays against it.

        cc examples/match_server.c -lsodium -o match_server
        ./match_server --slots 100 --seconds 60
        ./match_server --help */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"
#include "match.h"

#include <signal.h>
#include <time.h>

#define MAX_SLOTS 1024
#define LATE_SECONDS 0.25 /* a server that is so late lets the ticks go that it has missed */

struct options_t {
    const char * address;
    int slots;
    double seconds;
    int measured_clients; /* ticks count while so many are connected */
    int json;
    struct netcode_messages_config_t config;
    struct sending_t sending; /* how files are to be sent */
};

struct player_t {
    uint64_t session; /* 0: the slot is free */
    struct netcode_messages_t * messages;
    int move;
    uint32_t last_input, next_input; /* the number of the newest, and the one that follows in order */
    uint32_t scores_told;
    int wants_files;
    struct sending_t sending;
};

struct app_t {
    struct options_t options;
    struct netcode_server_t * server;
    struct player_t players[MAX_SLOTS];
    struct pong_t matches[( MAX_SLOTS + 1 ) / 2];
    double start_time;
    uint64_t ticks, ticks_skipped, second_ticks;
    int64_t second; /* the one that second_ticks are of */
    int second_counts;
    uint64_t slowest_second, fastest_second, seconds_counted, ticks_counted;
    struct durations_t tick_seconds, late_seconds;  /* a tick's work; how late it began: the machine was busy */
    struct durations_t input_seconds[MATCH_GROUPS]; /* an input's way from the client to here */
    uint64_t inputs, inputs_out_of_order, messages_wrong, messages_refused, points;
    uint64_t files_received, files_wrong, file_bytes_received;
    int files_sent, most_clients;
    uint64_t file_bytes_acked;
    struct durations_t file_seconds;
    struct netcode_messages_stats_t counters;
};

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

/* ---- messages ---- */

static void send_message( struct app_t * app, struct player_t * player, int channel, int kind, const uint8_t * data,
                          int bytes )
{
    if ( netcode_messages_send( player->messages, channel, kind, data, bytes ) != NETCODE_OK )
        app->messages_refused++;
}

/* Says to the client that its input is here, in the manner in which it came. */
static void take_input( struct app_t * app, struct player_t * player, const struct netcode_message_t * message,
                        double now )
{
    uint8_t data[MATCH_ACK_BYTES], *at = data;
    uint32_t number = (uint32_t) match_get( message->data + 3, 4 );
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED && number != player->next_input )
        app->inputs_out_of_order++;
    player->next_input = number + 1;
    player->last_input = number;
    player->move = message->data[2] - 1;
    player->wants_files = ( message->data[1] & MATCH_BESIDE ) != 0;
    app->inputs++;
    if ( message->data[1] & MATCH_MEASURED )
        durations_add_since( &app->input_seconds[player->wants_files], match_get( message->data + 7, 8 ), now );
    *at++ = MATCH_ACK;
    *at++ = message->data[1];
    at = match_put( at, number, 4 );
    memcpy( at, message->data + 7, 8 );
    match_put( at + 8, match_microseconds( now ), 8 );
    send_message( app, player, MATCH_INPUTS, message->kind, data, sizeof( data ) );
}

static void take_file( struct app_t * app, const struct netcode_message_t * message )
{
    app->files_received++;
    app->file_bytes_received += (uint64_t) message->bytes;
    if ( !match_file_is_right( message->data, message->bytes ) )
        app->files_wrong++;
}

static void take_messages( struct app_t * app, struct player_t * player, double now )
{
    struct netcode_message_t message;
    while ( netcode_messages_receive( player->messages, &message ) ) {
        if ( message.bytes == MATCH_INPUT_BYTES && message.data[0] == MATCH_INPUT )
            take_input( app, player, &message, now );
        else if ( message.bytes >= MATCH_FILE_HEADER_BYTES && message.data[0] == MATCH_FILE )
            take_file( app, &message );
        else
            app->messages_wrong++;
    }
}

static void send_snapshot( struct app_t * app, int slot, double now )
{
    struct player_t * player = &app->players[slot];
    uint8_t data[MATCH_SNAPSHOT_BYTES], *at = data;
    *at++ = MATCH_SNAPSHOT;
    *at++ = 0;
    at = match_put( at, match_microseconds( now ), 8 );
    at = match_put( at, player->last_input, 4 );
    pong_write( &app->matches[slot / 2], at );
    send_message( app, player, MATCH_SNAPSHOTS, NETCODE_MESSAGE_UNRELIABLE_SEQUENCED, data, sizeof( data ) );
}

static void send_score( struct app_t * app, int slot )
{
    struct player_t * player = &app->players[slot];
    uint8_t data[MATCH_SCORE_BYTES], *at = data;
    *at++ = MATCH_SCORE;
    at = match_put( at, player->scores_told++, 4 );
    at = match_put( at, (uint64_t) app->matches[slot / 2].scores[0], 1 );
    match_put( at, (uint64_t) app->matches[slot / 2].scores[1], 1 );
    send_message( app, player, MATCH_SCORES, NETCODE_MESSAGE_RELIABLE_ORDERED, data, sizeof( data ) );
}

/* ---- players ---- */

/* What the connection has counted is kept: the next one in this slot begins at zero. */
static void end_player( struct app_t * app, struct player_t * player )
{
    counters_add( &app->counters, player->messages );
    app->files_sent += player->sending.finished;
    app->file_bytes_acked += player->sending.acked_total;
    player->session = 0;
}

static int begin_player( struct app_t * app, struct player_t * player, uint64_t session, double now )
{
    struct netcode_messages_t * messages = player->messages;
    if ( !messages )
        messages = netcode_messages_create( &app->options.config, now );
    memset( player, 0, sizeof( *player ) );
    player->messages = messages;
    player->session = messages ? session : 0;
    player->sending = app->options.sending;
    return messages != NULL;
}

/* Who came, who went, and what they say. */
static void receive_all( struct app_t * app, double now )
{
    for ( int i = 0; i < app->options.slots; i++ ) {
        struct player_t * player = &app->players[i];
        uint64_t session = netcode_server_client_session( app->server, i );
        if ( player->session && player->session != session )
            end_player( app, player );
        if ( session && !player->session && !begin_player( app, player, session, now ) )
            netcode_server_disconnect_client( app->server, i ); /* out of memory */
        if ( !player->session )
            continue;
        netcode_messages_pull_from_server( player->messages, app->server, i, now );
        take_messages( app, player, now );
        sending_events( &player->sending, player->messages, now, 1, &app->file_seconds );
        if ( player->wants_files )
            sending_start( &player->sending, player->messages, now );
    }
}

/* One step of every match with a player in it; a bot stands in for a missing one. */
static void step_all( struct app_t * app )
{
    for ( int i = 0; i < app->options.slots; i += 2 ) {
        struct pong_t * pong = &app->matches[i / 2];
        int moves[2], scorer, playing[2];
        for ( int side = 0; side < 2; side++ ) {
            playing[side] = i + side < app->options.slots && app->players[i + side].session != 0;
            moves[side] = playing[side] ? app->players[i + side].move : pong_bot( pong, side );
        }
        if ( !playing[0] && !playing[1] )
            continue;
        scorer = pong_step( pong, moves );
        app->points += scorer >= 0;
        for ( int side = 0; side < 2; side++ )
            if ( scorer >= 0 && playing[side] )
                send_score( app, i + side );
    }
}

static void send_all( struct app_t * app, double now )
{
    for ( int i = 0; i < app->options.slots; i++ )
        if ( app->players[i].session ) {
            send_snapshot( app, i, now );
            netcode_messages_push_to_server( app->players[i].messages, app->server, i, now );
        }
}

/* ---- ticks ---- */

static void count_second( struct app_t * app )
{
    if ( app->seconds_counted == 0 || app->second_ticks < app->slowest_second )
        app->slowest_second = app->second_ticks;
    if ( app->second_ticks > app->fastest_second )
        app->fastest_second = app->second_ticks;
    app->seconds_counted++;
    app->ticks_counted += app->second_ticks;
}

/* Whole seconds count, during all of which enough clients were connected. */
static void count_tick( struct app_t * app, double now )
{
    int64_t second = (int64_t) ( now - app->start_time );
    int clients = netcode_server_num_connected_clients( app->server );
    app->most_clients = clients > app->most_clients ? clients : app->most_clients;
    if ( second != app->second ) {
        if ( app->second_counts )
            count_second( app );
        app->second = second;
        app->second_ticks = 0;
        app->second_counts = 1;
    }
    app->ticks++;
    app->second_ticks++;
    if ( clients < app->options.measured_clients )
        app->second_counts = 0;
}

static void tick( struct app_t * app, double now )
{
    netcode_server_update( app->server, now );
    receive_all( app, now );
    step_all( app );
    send_all( app, now );
    netcode_server_flush( app->server );
    if ( netcode_server_num_connected_clients( app->server ) >= app->options.measured_clients )
        durations_add( &app->tick_seconds, netcode_time() - now );
}

static void run( struct app_t * app )
{
    double next = app->start_time;
    while ( !signal_stop ) {
        double now = netcode_time();
        if ( app->options.seconds > 0.0 && now - app->start_time >= app->options.seconds )
            break;
        if ( now < next ) {
            netcode_sleep( next - now );
            continue;
        }
        durations_add( &app->late_seconds, now - next );
        while ( now - next > LATE_SECONDS ) {
            app->ticks_skipped++;
            next += 1.0 / PONG_HZ;
        }
        next += 1.0 / PONG_HZ;
        count_tick( app, now );
        tick( app, now );
    }
}

/* ---- the report ---- */

static void report_ticks( struct report_t * report, const struct app_t * app )
{
    double seconds = (double) app->seconds_counted;
    report_count( report, "ticks", app->ticks );
    report_count( report, "ticks_skipped", app->ticks_skipped );
    report_count( report, "seconds_counted", app->seconds_counted );
    report_real( report, "ticks_per_second", seconds > 0.0 ? (double) app->ticks_counted / seconds : 0.0 );
    report_count( report, "slowest_second", app->slowest_second );
    report_count( report, "fastest_second", app->fastest_second );
    report_durations( report, "tick_ms", &app->tick_seconds );
    report_durations( report, "late_ms", &app->late_seconds );
    report_real( report, "cpu_seconds", (double) clock() / CLOCKS_PER_SEC );
}

static void report_memory( struct report_t * report, const struct app_t * app )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    size_t all = netcode_server_memory( &config, app->options.slots );
    report_open( report, "memory_bytes_per_client" );
    report_count( report, "messages", netcode_messages_memory( &app->options.config ) );
    report_count( report, "server", all / (size_t) app->options.slots );
    report_close( report );
}

static void report_clients( struct report_t * report, struct app_t * app )
{
    static const char * const reasons[NETCODE_SERVER_CLIENT_DISCONNECT_REASONS] = { "none", "timed_out", "client",
                                                                                    "server", "replaced" };
    struct netcode_server_stats_t stats;
    netcode_server_stats( app->server, &stats );
    report_count( report, "most_clients", (uint64_t) app->most_clients );
    report_count( report, "connects", stats.connects );
    report_open( report, "disconnects" );
    for ( int i = 1; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        report_count( report, reasons[i], stats.disconnects[i] );
    report_close( report );
    report_count( report, "kernel_drops", stats.kernel_drops );
    report_count( report, "send_errors", stats.send_errors );
    report_drops( report, stats.dropped );
}

static void report_all( struct app_t * app )
{
    struct report_t report = { 0, 0, 0 };
    report.json = app->options.json;
    report_open( &report, NULL );
    report_real( &report, "seconds", netcode_time() - app->start_time );
    report_ticks( &report, app );
    report_memory( &report, app );
    report_clients( &report, app );
    report_count( &report, "inputs", app->inputs );
    report_count( &report, "inputs_out_of_order", app->inputs_out_of_order );
    report_groups( &report, "input_one_way_ms", app->input_seconds );
    report_count( &report, "points", app->points );
    report_count( &report, "messages_wrong", app->messages_wrong );
    report_count( &report, "messages_refused", app->messages_refused );
    report_count( &report, "files_received", app->files_received );
    report_count( &report, "files_wrong", app->files_wrong );
    report_count( &report, "file_bytes_received", app->file_bytes_received );
    report_count( &report, "files_sent", (uint64_t) app->files_sent );
    report_count( &report, "file_bytes_acked", app->file_bytes_acked );
    report_durations( &report, "file_ms", &app->file_seconds );
    report_counters( &report, &app->counters );
    report_close( &report );
}

/* ---- options ---- */

static void print_help( void )
{
    printf( "usage: match_server [options]\n"
            "\n"
            "  --address ADDRESS    what tokens call this server, and the port to bind, 0 for any (" MATCH_ADDRESS ")\n"
            "  --slots N            players, two a match (100, up to %d)\n"
            "  --seconds N          ends after them; 0: on SIGINT or SIGTERM (0)\n"
            "  --measure-clients N  ticks count while so many are connected (1)\n"
            "  --file BYTES         sends files of so many bytes, one after the other, to players who want them; 0: "
            "none (0)\n"
            "  --files N            so many to each; 0: until the end (0)\n"
            "  --file-pause S       between two files (0)\n"
            "  --congestion NAME    adaptive, fixed or none (adaptive)\n"
            "  --rate BYTES         a second, of fixed\n"
            "  --json               the report as JSON\n"
            "\n"
            "NETCODE_PRIVATE_KEY: 64 hex digits. Without it everybody knows the key, and only loopback addresses are "
            "served.\n"
            "Exit status: 0 after a clean end, 1 when it could not start, 2 for wrong usage.\n",
            MAX_SLOTS );
}

static int parse_option( struct options_t * options, const char * name, const char * text )
{
    double number = 0.0;
    if ( !strcmp( name, "--address" ) )
        options->address = text;
    else if ( !strcmp( name, "--slots" ) && match_number( text, 1.0, MAX_SLOTS, &number ) )
        options->slots = (int) number;
    else if ( !strcmp( name, "--measure-clients" ) && match_number( text, 1.0, MAX_SLOTS, &number ) )
        options->measured_clients = (int) number;
    else if ( !strcmp( name, "--seconds" ) && match_number( text, 0.0, 1e9, &number ) )
        options->seconds = number;
    else
        return match_option( name, text, &options->config, &options->sending );
    return 1;
}

static int parse_options( int argc, char ** argv, struct options_t * options )
{
    options->address = MATCH_ADDRESS;
    options->slots = 100;
    options->measured_clients = 1;
    for ( int i = 1; i < argc; i++ ) {
        if ( !strcmp( argv[i], "--json" ) ) {
            options->json = 1;
        } else if ( i + 1 >= argc || !parse_option( options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "match_server: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        } else {
            i++;
        }
    }
    return 1;
}

/* ---- beginning and end ---- */

static int create_server( struct app_t * app )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.protocol_id = MATCH_PROTOCOL_ID;
    config.bind_address = match_is_loopback( app->options.address ) ? app->options.address : NULL;
    int known = match_key( config.private_key );
    if ( !match_is_address( "match_server", app->options.address ) )
        return 0;
    if ( known < 0 || ( known == 0 && !config.bind_address ) ) {
        fprintf( stderr, "match_server: %s\n",
                 known < 0 ? "NETCODE_PRIVATE_KEY is not 64 hex digits" : MATCH_PUBLIC_KEY_NOTE );
        return 0;
    }
    app->server = netcode_server_create( app->options.address, &config, netcode_time() );
    memset( config.private_key, 0, sizeof( config.private_key ) );
    if ( !app->server ) {
        fprintf( stderr, "match_server: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 0;
    }
    netcode_server_start( app->server, app->options.slots );
    for ( int i = 0; i < app->options.slots; i += 2 )
        pong_init( &app->matches[i / 2], (uint32_t) i + 1 );
    fprintf( stderr, "match_server: port %d, %d slots%s%s\n", netcode_server_get_port( app->server ),
             app->options.slots, known ? "" : "; ", known ? "" : MATCH_PUBLIC_KEY_NOTE );
    return netcode_server_running( app->server );
}

static void stop( struct app_t * app )
{
    for ( int i = 0; i < app->options.slots; i++ ) {
        if ( app->players[i].session )
            end_player( app, &app->players[i] );
        netcode_messages_destroy( app->players[i].messages );
    }
    netcode_server_stop( app->server );
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
    app.tick_seconds.bin = 1e-5;
    app.late_seconds.bin = app.input_seconds[0].bin = app.input_seconds[1].bin = 1e-4;
    app.file_seconds.bin = 1e-3;
    int good = create_server( &app );
    if ( good ) {
        app.start_time = netcode_time();
        run( &app );
        stop( &app );
        report_all( &app );
    }
    netcode_server_destroy( app.server );
    netcode_term();
    return good ? 0 : 1;
}
