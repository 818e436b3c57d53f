/* Everything static, for use in this unit alone: no symbol but main leaves it. And nobody called netcode_init: libsodium is ready all the same. */
#include <sodium.h>

static int inits;

static int counted_sodium_init( void )
{
    inits++;
    return sodium_init();
}

#define sodium_init counted_sodium_init
#define NETCODE_STATIC
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

static void send_nothing( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    (void) context;
    (void) to;
    (void) data;
    (void) bytes;
}

static int receive_nothing( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    (void) context;
    (void) from;
    (void) data;
    (void) capacity;
    return 0;
}

int main( void )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    config.override_send_and_receive = 1;
    config.send_packet_override = send_nothing;
    config.receive_packet_override = receive_nothing;
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:40000", &config, 0.0 );
    if ( !client || inits != 1 )
        return 1;
    netcode_client_destroy( client );
    return 0;
}
