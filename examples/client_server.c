/*  The shortest complete program: a server and a client in one process, over a bad network that is simulated in
    memory. It prints the payloads that they exchange and ends with 0 if all went well. Without `network_simulator`:
    real sockets.

        cc examples/client_server.c -lsodium -o client_server && ./client_server */

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"

#include <stdio.h>

#define PROTOCOL_ID 0x1122334455667788ull /* yours: unique to your game, and to each incompatible version of it */

int main( void )
{
    const char * server_address = "127.0.0.1:40000";
    uint8_t connect_token[NETCODE_CONNECT_TOKEN_BYTES];
    int echoes = 0, server_saw_it_leave = 0;
    if ( netcode_init() != NETCODE_OK )
        return 1;
    struct netcode_network_simulator_t * network = netcode_network_simulator_create( NULL, NULL, NULL );
    network->latency_milliseconds = 100;
    network->packet_loss_percent = 5;

    /* The server opens 16 slots. It shares its private key with the web backend only. */
    struct netcode_server_config_t server_config;
    netcode_default_server_config( &server_config );
    server_config.events = 1; /* netcode_server_next_event reports what happens */
    server_config.protocol_id = PROTOCOL_ID;
    server_config.network_simulator = network;
    netcode_random_bytes( server_config.private_key, NETCODE_KEY_BYTES );
    struct netcode_server_t * server = netcode_server_create( server_address, &server_config, 0.0 );
    netcode_server_start( server, 16 );

    /* The web backend gives player 1001 a token: good for 30 seconds; 5 seconds of silence end the connection. */
    if ( netcode_generate_connect_token( 1, &server_address, &server_address, 30, 5, 1001, PROTOCOL_ID,
                                         server_config.private_key, NULL, connect_token ) != NETCODE_OK )
        return 1;

    /* The client connects with the token. It never sees the private key. */
    struct netcode_client_config_t client_config;
    netcode_default_client_config( &client_config );
    client_config.events = 1;
    client_config.network_simulator = network;
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:50000", &client_config, 0.0 );
    netcode_client_connect( client, connect_token );

    for ( int tick = 0; tick < 200 && !server_saw_it_leave; tick++ ) {
        struct netcode_event_t event;
        double time = tick * 0.1; /* yours is the game's clock */
        netcode_network_simulator_update( network, time );
        netcode_server_update( server, time );
        while ( netcode_server_next_event( server, &event ) ) {
            if ( event.type == NETCODE_EVENT_CONNECTED )
                printf( "server: player %d connected\n", (int) event.client_id );
            if ( event.type == NETCODE_EVENT_DISCONNECTED )
                server_saw_it_leave = printf( "server: player %d left\n", (int) event.client_id );
            if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                netcode_server_send_packet( server, event.client_index, event.data, event.bytes ); /* say it back */
                netcode_server_free_packet( server, event.data );
            }
        }
        netcode_client_update( client, time );
        while ( netcode_client_next_event( client, &event ) ) {
            if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                printf( "client: the server said \"%.*s\" at %.1f s\n", event.bytes, (const char *) event.data, time );
                netcode_client_free_packet( client, event.data );
                if ( ++echoes == 5 )
                    netcode_client_disconnect( client );
            }
        }
        netcode_client_send_packet( client, (const uint8_t *) "hello", 5 ); /* silent while not connected */
    }

    netcode_client_destroy( client );
    netcode_server_destroy( server );
    netcode_network_simulator_destroy( network );
    netcode_term();
    return echoes >= 5 && server_saw_it_leave ? 0 : 1;
}
