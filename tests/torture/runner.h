/*  The tests of the runner under make torture: tests/torture.c includes this in front of tests/main.c, so that their
    allocators and the library's calls that take and give back are the watched ones. Part of tests/torture.c. */

#ifndef TORTURE_RUNNER_H
#define TORTURE_RUNNER_H

#include "../test.h"

#include "../ledger.h"
#include "calls.h"
#include "system.h"

/*  A run of a test is ended behind so many updates: what a fault breaks shows soon, and the rest of a long story would be
    run a hundred times. Not from within a callback, where the library would be left in the middle of a call. */
static void calls_count_update( void )
{
    watcher.updates++;
    if ( watcher.updates_limit && watcher.updates > watcher.updates_limit && watcher.depth == 0 )
        test_escape();
}

static void calls_server_update( struct netcode_server_t * server, double time )
{
    calls_count_update();
    watcher.depth++;
    netcode_server_update( server, time );
    watcher.depth--;
}

static void calls_client_update( struct netcode_client_t * client, double time )
{
    calls_count_update();
    watcher.depth++;
    netcode_client_update( client, time );
    watcher.depth--;
}

/* What waits for real time, as long as a server or a client does not come, need not wait long. */
static void runner_sleep( double seconds )
{
    netcode_sleep( watcher.hurry && seconds > 0.0001 ? 0.0001 : seconds );
}

/*  A test that goes on without what it asked for would read what was not written: it ends here. Not from within a
    callback, as above. */
static void runner_need( int good )
{
    if ( !good && watcher.refused && watcher.depth == 0 )
        test_escape();
}

static struct netcode_server_t * runner_server_create( const char * address,
                                                       const struct netcode_server_config_t * config, double time )
{
    struct netcode_server_t * server = calls_server_create( address, config, time );
    runner_need( server != NULL );
    return server;
}

static struct netcode_server_t * runner_server_create_dual( const char * address1, const char * address2,
                                                            const struct netcode_server_config_t * config, double time )
{
    struct netcode_server_t * server = calls_server_create_dual( address1, address2, config, time );
    runner_need( server != NULL );
    return server;
}

static struct netcode_client_t * runner_client_create( const char * address,
                                                       const struct netcode_client_config_t * config, double time )
{
    struct netcode_client_t * client = calls_client_create( address, config, time );
    runner_need( client != NULL );
    return client;
}

static struct netcode_client_t * runner_client_create_dual( const char * address1, const char * address2,
                                                            const struct netcode_client_config_t * config, double time )
{
    struct netcode_client_t * client = calls_client_create_dual( address1, address2, config, time );
    runner_need( client != NULL );
    return client;
}

static struct netcode_network_simulator_t * runner_simulator_create( void * context, void * ( *take )( void *, size_t ),
                                                                     void ( *release )( void *, void * ) )
{
    struct netcode_network_simulator_t * simulator = calls_simulator_create( context, take, release );
    runner_need( simulator != NULL );
    return simulator;
}

static int runner_simulator_socket( struct netcode_network_simulator_t * simulator,
                                    const struct netcode_address_t * address, struct netcode_socket_t * socket )
{
    int result = calls_simulator_socket( simulator, address, socket );
    runner_need( result == NETCODE_OK );
    return result;
}

static struct netcode_messages_t * runner_messages_create( const struct netcode_messages_config_t * config,
                                                           double time )
{
    struct netcode_messages_t * messages = calls_messages_create( config, time );
    runner_need( messages != NULL );
    return messages;
}

/* The allocator of the worlds, with the watch in front of it. */
static void * runner_allocate( void * context, size_t bytes )
{
    void * pointer;
    if ( watch_refuses() )
        return NULL;
    pointer = allocator_allocate( context, bytes );
    watch_insert( pointer, context );
    return pointer;
}

static void runner_free( void * context, void * pointer )
{
    watch_remove( pointer, context );
    allocator_free( context, pointer );
}

#define allocator_allocate runner_allocate
#define allocator_free runner_free
#define netcode_sleep runner_sleep
#define netcode_server_create runner_server_create
#define netcode_server_create_dual runner_server_create_dual
#define netcode_server_start calls_server_start
#define netcode_server_destroy calls_server_destroy
#define netcode_server_update calls_server_update
#define netcode_client_create runner_client_create
#define netcode_client_create_dual runner_client_create_dual
#define netcode_client_destroy calls_client_destroy
#define netcode_client_update calls_client_update
#define netcode_messages_create runner_messages_create
#define netcode_messages_destroy calls_messages_destroy
#define netcode_network_simulator_create runner_simulator_create
#define netcode_network_simulator_socket runner_simulator_socket
#define netcode_network_simulator_destroy calls_simulator_destroy

/* tests/unit/socket.c and tests/story/linux.c stand before the system too: torture/system.h passes on to them. */
#if TORTURE_SYSTEM
#define setsockopt runner_setsockopt
#define sendmmsg runner_sendmmsg
#define recvmmsg runner_recvmmsg
#define sendto runner_sendto
#define connect runner_connect
#endif
#define main runner_main

#endif
