/*  A server for the tests of web pages: says each message back, on its channel and in its kind.

    messages_server KEY-FILE    prints `listening on 127.0.0.1:PORT`, and ends when its parent does */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include <stdio.h>
#include <unistd.h>

enum { SLOTS = 4 };

int main( int count, char ** arguments )
{
    struct netcode_server_config_t config;
    struct netcode_messages_t * messages[SLOTS];
    FILE * file;
    pid_t parent = getppid();
    if ( count != 2 || netcode_init() != NETCODE_OK )
        return 2;

    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = 0x1122334455667788ull;
    file = fopen( arguments[1], "rb" );
    if ( !file || fread( config.private_key, 1, NETCODE_KEY_BYTES, file ) != NETCODE_KEY_BYTES )
        return 2;
    fclose( file );

    struct netcode_server_t * server = netcode_server_create( "127.0.0.1:0", &config, netcode_time() );
    if ( !server )
        return 1;
    netcode_server_start( server, SLOTS );
    for ( int i = 0; i < SLOTS; i++ )
        messages[i] = netcode_messages_create( NULL, netcode_time() );
    printf( "listening on 127.0.0.1:%d\n", netcode_server_get_port( server ) );
    fflush( stdout );

    while ( getppid() == parent ) {
        struct netcode_event_t event;
        struct netcode_message_t message;
        double now = netcode_time();
        netcode_server_update( server, now );
        while ( netcode_server_next_event( server, &event ) )
            if ( event.type == NETCODE_EVENT_PAYLOAD )
                netcode_server_free_packet( server, event.data );
        for ( int i = 0; i < SLOTS; i++ ) {
            netcode_messages_pull_from_server( messages[i], server, i, now );
            while ( netcode_messages_receive( messages[i], &message ) )
                netcode_messages_send( messages[i], message.channel, message.kind, message.data, message.bytes );
            netcode_messages_push_to_server( messages[i], server, i, now );
        }
        netcode_server_wait( server, 1.0 / 60.0 );
    }
    return 0;
}
