/*  A program that uses an installed or fetched netcode.h: it prints the library's version, plays a short session in memory
    (a server, a client, a bad network between them, no sockets), and ends with 0 if all went well. The library itself is
    compiled in netcode.c. From the top of the repository:

        cd examples/packaging/consumer
        cc -I../../.. main.c netcode.c -lsodium -o consumer && ./consumer */

#include <netcode.h>

#include <stdio.h>
#include <string.h>

#define PROTOCOL_ID 0x1122334455667788ull
#define WANTED_ECHOES 5

struct session_t {
    struct netcode_network_simulator_t * network;
    struct netcode_server_t * server;
    struct netcode_client_t * client;
    int echoes;
};

/* The server, and a token of its own key for the client. */
static int open_server( struct session_t * session, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    const char * address = "127.0.0.1:40000"; /* on the simulated network */
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = PROTOCOL_ID;
    config.network_simulator = session->network;
    netcode_random_bytes( config.private_key, NETCODE_KEY_BYTES );
    session->server = netcode_server_create( address, &config, 0.0 );
    if ( session->server == NULL )
        return 0;
    netcode_server_start( session->server, 4 );
    return netcode_generate_connect_token( 1, &address, &address, 30, 5, 1001, PROTOCOL_ID, config.private_key, NULL,
                                           token ) == NETCODE_OK;
}

static int open_client( struct session_t * session, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    config.events = 1;
    config.network_simulator = session->network;
    session->client = netcode_client_create( "127.0.0.1:50000", &config, 0.0 );
    if ( session->client == NULL )
        return 0;
    netcode_client_connect( session->client, token );
    return 1;
}

static void step( struct session_t * session, double time )
{
    struct netcode_event_t event;
    netcode_network_simulator_update( session->network, time );
    netcode_server_update( session->server, time );
    while ( netcode_server_next_event( session->server, &event ) ) {
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        netcode_server_send_packet( session->server, event.client_index, event.data, event.bytes );
        netcode_server_free_packet( session->server, event.data );
    }
    netcode_client_update( session->client, time );
    while ( netcode_client_next_event( session->client, &event ) ) {
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        session->echoes += event.bytes == 5 && memcmp( event.data, "hello", 5 ) == 0;
        netcode_client_free_packet( session->client, event.data );
    }
    netcode_client_send_packet( session->client, (const uint8_t *) "hello", 5 );
}

static void play( struct session_t * session )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    if ( session->network == NULL || !open_server( session, token ) || !open_client( session, token ) )
        return;
    session->network->latency_milliseconds = 50;
    session->network->packet_loss_percent = 5;
    for ( int tick = 0; tick < 200 && session->echoes < WANTED_ECHOES; tick++ )
        step( session, tick * 0.1 );
}

int main( void )
{
    struct session_t session = { NULL, NULL, NULL, 0 };
    if ( netcode_init() != NETCODE_OK )
        return 1;
    session.network = netcode_network_simulator_create( NULL, NULL, NULL );
    play( &session );
    netcode_client_destroy( session.client );
    netcode_server_destroy( session.server );
    netcode_network_simulator_destroy( session.network );
    netcode_term();
    printf( "C, header %s, library %s, %d payloads came back\n", NETCODE_VERSION_FULL, netcode_version(),
            session.echoes );
    return session.echoes == WANTED_ECHOES && strcmp( NETCODE_VERSION_FULL, netcode_version() ) == 0 ? 0 : 1;
}
