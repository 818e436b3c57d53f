/* The second unit of a program whose first one is stub.c, in the same or the other language. */
#include "netcode.h"

#include <string.h>

/* Some callers declare this one themselves. */
#if defined( __cplusplus )
extern "C" void netcode_random_bytes( uint8_t * data, int bytes );
#else
extern void netcode_random_bytes( uint8_t * data, int bytes );
#endif

int main( void )
{
    struct netcode_server_config_t config;
    struct netcode_server_t * server;
    uint16_t port;
    if ( netcode_init() != NETCODE_OK || strcmp( netcode_version(), NETCODE_VERSION_FULL ) != 0 )
        return 1;
    netcode_default_server_config( &config );
    netcode_random_bytes( config.private_key, NETCODE_KEY_BYTES );
    server = netcode_server_create( "127.0.0.1:0", &config, 0.0 );
    if ( !server )
        return 2;
    port = netcode_server_get_port( server );
    netcode_server_destroy( server );
    netcode_term();
    return port != 0 ? 0 : 3;
}
