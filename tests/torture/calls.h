/*  The library's calls that take and give back, with the watch around them: a create that fails keeps nothing, a start
    that fails keeps nothing, destroy gives back all. tests/torture.c gives their names to these when it reads the tests of
    the runner. */

#ifndef TORTURE_CALLS_H
#define TORTURE_CALLS_H

#include "watch.h"

static struct netcode_server_t * calls_server_create( const char * address,
                                                      const struct netcode_server_config_t * config, double time )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_server_t * server = netcode_server_create( address, config, time );
    watch_leave( mark, server, "netcode_server_create" );
    return server;
}

static struct netcode_server_t * calls_server_create_dual( const char * address1, const char * address2,
                                                           const struct netcode_server_config_t * config, double time )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_server_t * server = netcode_server_create_dual( address1, address2, config, time );
    watch_leave( mark, server, "netcode_server_create_dual" );
    return server;
}

static struct netcode_client_t * calls_client_create( const char * address,
                                                      const struct netcode_client_config_t * config, double time )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_client_t * client = netcode_client_create( address, config, time );
    watch_leave( mark, client, "netcode_client_create" );
    return client;
}

static struct netcode_client_t * calls_client_create_dual( const char * address1, const char * address2,
                                                           const struct netcode_client_config_t * config, double time )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_client_t * client = netcode_client_create_dual( address1, address2, config, time );
    watch_leave( mark, client, "netcode_client_create_dual" );
    return client;
}

static struct netcode_network_simulator_t * calls_simulator_create( void * context, void * ( *take )( void *, size_t ),
                                                                    void ( *release )( void *, void * ) )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_network_simulator_t * simulator = netcode_network_simulator_create( context, take, release );
    watch_leave( mark, simulator, "netcode_network_simulator_create" );
    return simulator;
}

static int calls_simulator_socket( struct netcode_network_simulator_t * simulator,
                                   const struct netcode_address_t * address, struct netcode_socket_t * socket )
{
    struct watch_mark_t mark = watch_enter();
    int result = netcode_network_simulator_socket( simulator, address, socket );
    watch_leave( mark, result == NETCODE_OK ? simulator : NULL, "netcode_network_simulator_socket" );
    return result;
}

static struct netcode_messages_t * calls_messages_create( const struct netcode_messages_config_t * config, double time )
{
    struct watch_mark_t mark = watch_enter();
    struct netcode_messages_t * messages = netcode_messages_create( config, time );
    watch_leave( mark, messages, "netcode_messages_create" );
    return messages;
}

/* Whatever becomes of it: what it takes is the server's, and none of it is kept when there is not enough. */
static int calls_server_start( struct netcode_server_t * server, int max_clients )
{
    int owned = watch_count_owned( server );
    struct watch_mark_t mark = watch_enter();
    int result = netcode_server_start( server, max_clients );
    watch_leave( mark, server, "netcode_server_start" );
    int has_memory =
        server && server->memory.slot_count == (uint32_t) max_clients; /* a callback has stopped it since */
    if ( server && !netcode_server_running( server ) && !has_memory && watch_count_owned( server ) > owned )
        watch_finding( "netcode_server_start failed and kept %d blocks", watch_count_owned( server ) - owned );
    return result;
}

static void calls_server_destroy( struct netcode_server_t * server )
{
    netcode_server_destroy( server );
    watch_destroyed( server );
}

static void calls_client_destroy( struct netcode_client_t * client )
{
    netcode_client_destroy( client );
    watch_destroyed( client );
}

static void calls_messages_destroy( struct netcode_messages_t * messages )
{
    netcode_messages_destroy( messages );
    watch_destroyed( messages );
}

static void calls_simulator_destroy( struct netcode_network_simulator_t * simulator )
{
    netcode_network_simulator_destroy( simulator );
    watch_destroyed( simulator );
}

#endif
