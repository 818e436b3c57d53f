/*  A listen server: the host plays on its own server, beside remote players. The host's client sits in the server's
    process and takes slot 0 by loopback: no handshake, no encryption, no socket, and the game's code can not tell
    the difference. The two remote players connect with tokens over real UDP sockets (on this machine, so that the
    program can run by itself).

        cc examples/listen_server.c -lsodium -o listen_server && ./listen_server

    The game: every player sends an input each tick, and the server broadcasts a world that counts the inputs of
    each. The run ends with 0 only if each player saw the world count up to the last input of each player. */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL_ID 0x1122334455667788ull
#define SLOTS 4
#define HOST_SLOT 0
#define PLAYERS 3 /* player 0 is the host */
#define HOST_CLIENT_ID 1
#define TICKS_PER_SECOND 60
#define INPUTS 120 /* each player sends as many */
#define LIMIT_SECONDS 10.0

struct player_t {
    struct netcode_client_t * client;
    uint64_t client_id;
    int inputs_sent;
    uint8_t world[SLOTS]; /* as last reported by the server: the inputs counted for each slot */
};

struct game_t {
    struct netcode_server_t * server;
    struct player_t players[PLAYERS];
    uint8_t world[SLOTS];
    int remote_connects;
};

/* The two halves of the loopback: what one side sends is handed to the other at once. */
static void server_to_host( void * context, int client_index, const uint8_t * data, int bytes, uint64_t sequence )
{
    struct game_t * game = (struct game_t *) context;
    (void) client_index;
    netcode_client_process_loopback_packet( game->players[0].client, data, bytes, sequence );
}

static void host_to_server( void * context, int client_index, const uint8_t * data, int bytes, uint64_t sequence )
{
    struct game_t * game = (struct game_t *) context;
    netcode_server_process_loopback_packet( game->server, client_index, data, bytes, sequence );
}

/* ---- setting up ---- */

static int start_host( struct game_t * game, const uint8_t * private_key, double time )
{
    struct netcode_server_config_t server_config;
    netcode_default_server_config( &server_config );
    server_config.events = 1;
    server_config.protocol_id = PROTOCOL_ID;
    memcpy( server_config.private_key, private_key, NETCODE_KEY_BYTES );
    server_config.callback_context = game;
    server_config.roaming = 1; /* players whose address changes stay */
    server_config.send_loopback_packet_callback = server_to_host;
    /* Port 0: any that is free. A server that friends shall reach has a fixed one and its public address here. */
    game->server = netcode_server_create( "127.0.0.1:0", &server_config, time );
    if ( !game->server )
        return 0;
    netcode_server_start( game->server, SLOTS );

    struct netcode_client_config_t client_config;
    netcode_default_client_config( &client_config );
    client_config.callback_context = game;
    client_config.send_loopback_packet_callback = host_to_server;
    struct player_t * host = &game->players[0];
    host->client_id = HOST_CLIENT_ID;
    host->client = netcode_client_create( "127.0.0.1", &client_config, time );
    if ( !host->client || !netcode_server_running( game->server ) )
        return 0;
    netcode_client_connect_loopback( host->client, HOST_SLOT, SLOTS );
    netcode_server_connect_loopback_client( game->server, HOST_SLOT, host->client_id, NULL );
    return 1;
}

/* What a web backend and a player on another machine would do. */
static int start_remote_player( struct game_t * game, struct player_t * player, const uint8_t * private_key,
                                double time )
{
    char address[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    const char * addresses[1] = { address };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    snprintf( address, sizeof( address ), "127.0.0.1:%d", (int) netcode_server_get_port( game->server ) );
    if ( netcode_generate_connect_token( 1, addresses, addresses, 30, 5, player->client_id, PROTOCOL_ID, private_key,
                                         NULL, token ) != NETCODE_OK )
        return 0;
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    player->client = netcode_client_create( "0.0.0.0", &config, time );
    if ( !player->client )
        return 0;
    netcode_client_connect( player->client, token );
    return 1;
}

/* ---- playing ---- */

static void server_tick( struct game_t * game, double time )
{
    struct netcode_event_t event;
    netcode_server_update( game->server, time );
    while ( netcode_server_next_event( game->server, &event ) ) {
        int index = event.client_index;
        if ( event.type == NETCODE_EVENT_CONNECTED ) {
            printf( "server: player %d connected to slot %d%s\n", (int) event.client_id, index,
                    netcode_server_client_loopback( game->server, index ) ? ", by loopback" : "" );
            game->remote_connects += !netcode_server_client_loopback( game->server, index );
        } else if ( event.type == NETCODE_EVENT_DISCONNECTED ) {
            printf( "server: player %d disconnected from slot %d\n", (int) event.client_id, index );
        } else if ( event.type == NETCODE_EVENT_MOVED ) {
            printf( "server: player %d in slot %d has another address\n", (int) event.client_id, index );
        } else if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            game->world[index]++;
            netcode_server_free_packet( game->server, event.data );
        }
    }
    netcode_server_broadcast( game->server, game->world, sizeof( game->world ), -1 );
}

/* The same for the host and for everyone else. */
static void player_tick( struct player_t * player, double time, int may_send )
{
    uint8_t * data = NULL;
    int bytes = 0;
    netcode_client_update( player->client, time );
    while ( ( data = netcode_client_receive_packet( player->client, &bytes, NULL ) ) != NULL ) {
        if ( bytes == SLOTS )
            memcpy( player->world, data, SLOTS );
        netcode_client_free_packet( player->client, data );
    }
    if ( may_send && player->inputs_sent < INPUTS ) {
        uint8_t input = (uint8_t) player->inputs_sent++;
        netcode_client_send_packet( player->client, &input, 1 );
    }
}

/* Every player saw every input of every player. Nothing is lost on one machine with so few packets. */
static int everyone_saw_everything( const struct game_t * game )
{
    for ( int i = 0; i < PLAYERS; i++ ) {
        int counted = 0;
        for ( int slot = 0; slot < SLOTS; slot++ )
            counted += game->players[i].world[slot];
        if ( counted != PLAYERS * INPUTS || game->players[i].world[HOST_SLOT] != INPUTS )
            return 0;
    }
    return 1;
}

static int play( struct game_t * game )
{
    double start = netcode_time();
    double time = start;
    while ( time - start < LIMIT_SECONDS ) {
        server_tick( game, time );
        for ( int i = 0; i < PLAYERS; i++ )
            player_tick( &game->players[i], time, game->remote_connects == PLAYERS - 1 );
        if ( everyone_saw_everything( game ) )
            return 1;
        netcode_sleep( 1.0 / TICKS_PER_SECOND );
        time = netcode_time();
    }
    return 0;
}

/* The host leaves; the remote players play on. */
static int host_leaves( struct game_t * game )
{
    netcode_server_disconnect_loopback_client( game->server, HOST_SLOT );
    netcode_client_disconnect_loopback( game->players[0].client );
    server_tick( game, netcode_time() );
    return netcode_server_num_connected_clients( game->server ) == PLAYERS - 1 &&
           netcode_client_state( game->players[0].client ) == NETCODE_CLIENT_STATE_DISCONNECTED;
}

int main( void )
{
    static struct game_t game;
    uint8_t private_key[NETCODE_KEY_BYTES];
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_random_bytes( private_key, NETCODE_KEY_BYTES );
    double time = netcode_time();
    int good = start_host( &game, private_key, time );
    for ( int i = 1; good && i < PLAYERS; i++ ) {
        game.players[i].client_id = (uint64_t) ( HOST_CLIENT_ID + i );
        good = start_remote_player( &game, &game.players[i], private_key, time );
    }
    good = good && play( &game );
    for ( int i = 0; i < PLAYERS; i++ )
        printf( "player %d sent %d inputs; its world: %d %d %d %d\n", (int) game.players[i].client_id,
                game.players[i].inputs_sent, game.players[i].world[0], game.players[i].world[1],
                game.players[i].world[2], game.players[i].world[3] );
    good = good && host_leaves( &game );
    for ( int i = 0; i < PLAYERS; i++ )
        netcode_client_destroy( game.players[i].client );
    netcode_server_destroy( game.server );
    netcode_term();
    printf( "%s\n", good ? "the host and the remote players saw the same world" : "it did not work" );
    return good ? 0 : 1;
}
