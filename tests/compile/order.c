/*  A client whose token names a dead server first, on loopback. It gets to the second one within two seconds, since the system says
    that nothing listens at the first; where the error queues were left out, it would wait for its timeout of 5 s. Built twice:
    with netcode.h in front of the system's headers, and, with ORDER_LAST, behind them. */
#if defined( ORDER_LAST )
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#endif

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

int main( void )
{
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    struct netcode_server_t *servers[2], *dead;
    struct netcode_client_t * client;
    char names[2][32];
    const char * list[2];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    double start;
    int i;
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_default_server_config( &server_config );
    netcode_default_client_config( &client_config );
    netcode_random_bytes( server_config.private_key, NETCODE_KEY_BYTES );
    for ( i = 0; i < 2; i++ ) {
        servers[i] = netcode_server_create( "127.0.0.1:0", &server_config, 0.0 );
        if ( !servers[i] )
            return 2;
        netcode_server_start( servers[i], 1 );
        snprintf( names[i], sizeof( names[i] ), "127.0.0.1:%d", (int) netcode_server_get_port( servers[i] ) );
        list[i] = names[i];
    }
    dead = servers[0];
    netcode_server_destroy( dead );
    client = netcode_client_create( "127.0.0.1:0", &client_config, 0.0 );
    if ( !client || netcode_generate_connect_token( 2, list, list, 60, 5, 1, 0, server_config.private_key, NULL,
                                                    token ) != NETCODE_OK )
        return 3;
    netcode_client_connect( client, token );
    start = netcode_time();
    while ( netcode_client_state( client ) != NETCODE_CLIENT_STATE_CONNECTED && netcode_time() < start + 3.0 ) {
        netcode_client_update( client, netcode_time() - start );
        netcode_server_update( servers[1], netcode_time() - start );
        netcode_sleep( 0.01 );
    }
    start = netcode_time() - start;
    printf( "connected after %.2f s\n", start );
    netcode_client_destroy( client );
    netcode_server_destroy( servers[1] );
    netcode_term();
    return start < 2.0 ? 0 : 4;
}
