/*  The arena's server and up to 64 clients in virtual time, on the library's network simulator. Time goes in steps of a
    240th of a second: the server ticks in each fourth, and each client has its frame in one of the four. Every client has
    a clock of its own, far from the server's. */

#ifndef ARENA_PLAY_H
#define ARENA_PLAY_H

enum { PLAY_PLAYERS = ARENA_PLAYERS, PLAY_PARTS = 4, PLAY_HISTORY = 1 << 13 };

#define PLAY_SERVER "10.0.0.1:40000"

struct play_player_t {
    struct netcode_client_t * net;
    struct arena_client_t * client;
    struct arena_bot_t bot;
    int is_bot, is_paused; /* paused: no frames */
    int is_deaf;           /* it is there, and takes no message */
    int buttons, aim;      /* what it presses if it is no bot */
    int made;              /* commands in its last frame */
    double playing_at;     /* when it began to play; 0: not yet */
    /* measured at the server's ticks, while it plays */
    uint64_t ticks, missed;          /* steps of the rules, and those without its command */
    uint64_t guesses, wrong_guesses; /* own positions that were predicted for a step, and those that were wrong */
    uint64_t reports, late_reports;  /* of the server on its margin */
    uint64_t views, far_views;       /* others that it saw, and those that were further off than `far` */
    double worst_view;               /* units */
    uint64_t snapshots_before;
};

static struct {
    int is_open, count;
    struct netcode_network_simulator_t * net;
    struct game_t game;
    struct play_player_t players[PLAY_PLAYERS];
    struct arena_player_t history[PLAY_HISTORY][ARENA_PLAYERS]; /* after tick t at t % PLAY_HISTORY */
    double time, far;
    uint64_t parts;
    void ( *each_tick )( void ); /* after the server's */
} play;

static void play_leave( int index )
{
    struct play_player_t * player = &play.players[index];
    netcode_client_destroy( player->net );
    if ( player->client )
        arena_client_destroy( player->client );
    free( player->client );
    memset( player, 0, sizeof( *player ) );
}

static void play_close( void )
{
    if ( !play.is_open )
        return;
    for ( int i = 0; i < PLAY_PLAYERS; i++ )
        play_leave( i );
    game_destroy( &play.game );
    netcode_network_simulator_destroy( play.net );
    memset( &play, 0, sizeof( play ) );
}

static void play_network( int latency, int jitter, int loss, int others )
{
    play.net->latency_milliseconds = (float) latency;
    play.net->jitter_milliseconds = (float) jitter;
    play.net->packet_loss_percent = (float) loss;
    play.net->duplicate_packet_percent = (float) others;
    play.net->reorder_packet_percent = (float) others;
}

static void play_open( int slots, const char * map )
{
    struct netcode_server_config_t config;
    memset( &play, 0, sizeof( play ) );
    play.net = netcode_network_simulator_create( NULL, NULL, NULL );
    REQUIRE( play.net != NULL );
    play.is_open = 1;
    play.net->seed = test_random();
    netcode_network_simulator_reset( play.net );
    netcode_default_server_config( &config );
    config.network_simulator = play.net;
    config.events = 1;
    dev_key( config.private_key );
    REQUIRE( game_create( &play.game, PLAY_SERVER, slots, &config, 0.0 ) );
    if ( map ) {
        play.game.map_text = map;
        REQUIRE( arena_init( &play.game.arena, (const uint8_t *) map, ARENA_MAP_BYTES, 1 ) );
    }
    play.far = 64.0;
}

/* The clients' clocks are not the server's, and not those of each other. */
static double play_time_of( int index )
{
    return play.time + 1000.0 * ( index + 1 );
}

static void play_join_as( int index, uint64_t client_id, const char * name )
{
    static uint16_t port = 20000;
    struct play_player_t * player = &play.players[index];
    struct netcode_client_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char address[32];
    memset( player, 0, sizeof( *player ) );
    snprintf( address, sizeof( address ), "10.0.1.%d:%d", index + 1,
              port = (uint16_t) ( port < 60000 ? port + 1 : 20000 ) );
    netcode_default_client_config( &config );
    config.network_simulator = play.net;
    config.batch_sends = 1;
    player->net = netcode_client_create( address, &config, play_time_of( index ) );
    player->client = (struct arena_client_t *) malloc( sizeof( *player->client ) );
    REQUIRE( player->net && player->client &&
             arena_client_create( player->client, player->net, play_time_of( index ) ) );
    REQUIRE_EQ( dev_token( PLAY_SERVER, NULL, client_id, ARENA_PROTOCOL_ID, name, token ), NETCODE_OK );
    arena_bot_init( &player->bot, (uint32_t) index + 1 );
    netcode_client_connect( player->net, token );
    play.count = index < play.count ? play.count : index + 1;
}

static void play_join( int index, int is_bot )
{
    char name[32];
    snprintf( name, sizeof( name ), "name %d", index );
    play_join_as( index, 100 + (uint64_t) index, name );
    play.players[index].is_bot = is_bot;
}

/* ---- measuring ---- */

static const struct arena_player_t * play_stood( uint32_t tick, int slot )
{
    return &play.history[tick % PLAY_HISTORY][slot];
}

/* Whether a player lived and moved on by steps, from tick to tick: it did not come back elsewhere. */
static int play_is_steady( uint32_t from, uint32_t to, int slot )
{
    for ( uint32_t tick = from; tick < to; tick++ ) {
        const struct arena_player_t *a = play_stood( tick, slot ), *b = play_stood( tick + 1, slot );
        if ( !a->is_there || !a->health || !b->is_there || !b->health ||
             arena_distance( a->x - b->x, a->y - b->y ) > 2 * ARENA_SPEED )
            return 0;
    }
    return 1;
}

/* What a client draws of the others, and where the server had them at that moment. */
static void play_measure_views( struct play_player_t * player )
{
    const struct arena_client_t * client = player->client;
    double at = client->render;
    if ( at < 20.0 || at >= (double) play.game.arena.tick )
        return;
    uint32_t tick = (uint32_t) at;
    for ( int slot = 0; slot < ARENA_PLAYERS; slot++ ) {
        struct arena_drawn_t drawn;
        uint32_t until = tick + 8 < play.game.arena.tick ? tick + 8 : play.game.arena.tick;
        if ( slot == client->slot || until <= tick || !arena_client_other( client, slot, &drawn ) ||
             !play_is_steady( tick - 8, until, slot ) )
            continue;
        const struct arena_player_t *a = play_stood( tick, slot ), *b = play_stood( tick + 1, slot );
        double part = at - tick, x = a->x + ( b->x - a->x ) * part, y = a->y + ( b->y - a->y ) * part;
        double off = hypot( drawn.x - x, drawn.y - y );
        player->views++;
        player->far_views += off > play.far;
        player->worst_view = off > player->worst_view ? off : player->worst_view;
    }
}

static void play_measure_frame( struct play_player_t * player )
{
    const struct arena_client_t * client = player->client;
    if ( client->is_playing && player->playing_at <= 0.0 )
        player->playing_at = play.time;
    if ( client->snapshots != player->snapshots_before && client->margin != ARENA_NO_MARGIN ) {
        player->reports++;
        player->late_reports += client->margin < 0;
    }
    player->snapshots_before = client->snapshots;
    if ( client->is_playing )
        play_measure_views( player );
}

static void play_measure_tick( void )
{
    uint32_t tick = play.game.arena.tick;
    memcpy( play.history[tick % PLAY_HISTORY], play.game.arena.players, sizeof( play.game.arena.players ) );
    for ( int i = 0; i < play.count; i++ ) {
        struct play_player_t * player = &play.players[i];
        const struct arena_client_t * client = player->client;
        if ( !client || !client->is_playing )
            continue;
        const struct arena_player_t * truth = &play.game.arena.players[client->slot];
        const struct arena_player_t * guess = &client->predicted[tick % ARENA_PREDICTED];
        player->ticks++;
        player->missed += play.game.slots[client->slot].last_tick != tick;
        if ( client->command_tick < tick || client->command_tick - tick >= ARENA_PREDICTED || !truth->health ||
             !guess->health || !play_is_steady( tick - 1, tick, client->slot ) )
            continue;
        player->guesses++;
        player->wrong_guesses += guess->x != truth->x || guess->y != truth->y;
    }
}

/* The measured numbers begin anew. */
static void play_forget( void )
{
    for ( int i = 0; i < play.count; i++ ) {
        struct play_player_t * player = &play.players[i];
        player->ticks = player->missed = player->guesses = player->wrong_guesses = 0;
        player->reports = player->late_reports = player->views = player->far_views = 0;
        player->worst_view = 0.0;
        if ( player->client )
            player->client->corrections = 0;
    }
}

/* ---- time ---- */

static void play_frame( int index )
{
    struct play_player_t * player = &play.players[index];
    int buttons = player->buttons, aim = player->aim;
    if ( !player->client || player->is_paused )
        return;
    if ( player->is_deaf ) {
        netcode_client_update( player->net, play_time_of( index ) );
        return;
    }
    if ( player->is_bot && player->client->is_playing )
        arena_bot_play( &player->bot, player->client, &buttons, &aim );
    player->made = arena_client_update( player->client, buttons, aim, play_time_of( index ) );
    play_measure_frame( player );
}

static void play_run( double seconds )
{
    uint64_t until = play.parts + (uint64_t) ( seconds * ARENA_HZ * PLAY_PARTS + 0.5 );
    while ( play.parts < until ) {
        play.time = (double) ++play.parts / ( ARENA_HZ * PLAY_PARTS );
        netcode_network_simulator_update( play.net, play.time );
        if ( play.parts % PLAY_PARTS == 0 ) {
            game_tick( &play.game, play.time );
            play_measure_tick();
            if ( play.each_tick )
                play.each_tick();
        }
        for ( int i = (int) ( play.parts % PLAY_PARTS ); i < play.count; i += PLAY_PARTS )
            play_frame( i );
    }
}

/* Bots from the start, until all play: at most 3 seconds. */
static void play_begin( int count, int are_bots )
{
    for ( int i = 0; i < count; i++ )
        play_join( i, are_bots );
    play_run( 3.0 );
    for ( int i = 0; i < count; i++ )
        REQUIRE( play.players[i].client->is_playing );
}

static struct arena_player_t * play_truth( int index )
{
    return &play.game.arena.players[play.players[index].client->slot];
}

#endif
