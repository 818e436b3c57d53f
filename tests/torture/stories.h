/*  The stories of make torture: what the library's objects live through while calls are refused. Each ends connected, with
    payloads both ways. Part of tests/torture.c. */

#ifndef TORTURE_STORIES_H
#define TORTURE_STORIES_H

#include "stage.h"

static void script_open( void )
{
    stage_make_net();
    if ( !stage.failed )
        stage_make_server( 0 );
    if ( !stage.failed )
        stage_start( 0, stage.story->slots );
    if ( !stage.failed )
        stage_make_client();
}

static void script_visit( void )
{
    if ( stage.failed )
        return;
    stage_join();
    stage_talk();
}

/* Connects, talks, leaves, comes back: a client that is aimed at its server lets go of it in between. */
static void script_visits( void )
{
    script_open();
    script_visit();
    stage_leave();
    script_visit();
}

/* Started with other slots while a client is connected, and while the application holds a packet; stopped, started. */
static void script_restart( void )
{
    uint8_t * held = NULL;
    int bytes, steps;
    script_open();
    script_visit();
    for ( steps = 0; steps < STAGE_STEPS && !held && !stage.failed; steps++ ) {
        stage_send();
        stage_step( steps );
        held = netcode_server_receive_packet( stage.servers[0], 0, &bytes, NULL );
    }
    if ( stage.failed || !held )
        return;
    stage_start( 0, stage.story->slots + 3 );
    stage_abandoned();
    script_visit();
    stage_known( held, bytes, 'c' );
    netcode_server_free_packet( stage.servers[0], held );
    netcode_server_stop( stage.servers[0] );
    stage_abandoned();
    if ( !stage.failed )
        stage_start( 0, stage.story->slots + 3 );
    script_visit();
}

/* Both objects end and are made again, while the simulator or the system stays. */
static void script_again( void )
{
    script_open();
    script_visit();
    stage_end_client();
    stage_end_server( 0 );
    script_open();
    script_visit();
}

/* Its socket is replaced between payloads, as where a network changes. Where the port can not be had, another one is. */
static void script_rebind( void )
{
    int rebinds;
    script_open();
    script_visit();
    for ( rebinds = 0; rebinds < 3 && !stage.failed; rebinds++ ) {
        netcode_client_rebind( stage.client );
        stage_talk();
    }
}

/*  Two servers at one port. Where the system refused to share it for the first one, the second can not be made, and both
    have to be made again. */
static void script_share( void )
{
    int tries;
    for ( tries = 0; tries < STAGE_TRIES && !stage.servers[1] && !stage.failed; tries++ ) {
        stage_end_server( 0 );
        stage_make_server( 0 );
        if ( !stage.failed )
            stage.servers[1] = stage_try_server( 1 );
    }
    if ( !stage.servers[1] )
        stage_fail( "no second server at the port" );
    if ( stage.failed )
        return;
    stage_start( 0, stage.story->slots );
    stage_start( 1, stage.story->slots );
    stage_make_client();
    script_visit();
    stage_leave();
    script_visit();
}

/* A port where no server is any more: it stays silent, and the client asks the next server as well. */
static void script_dead_first( void )
{
    stage_make_server( 0 );
    if ( stage.failed )
        return;
    memcpy( stage.address[0], stage.address[1], sizeof( stage.address[0] ) );
    stage_end_server( 0 );
    script_open();
    script_visit();
    stage_leave();
    script_visit();
}

/* A client of the same process takes a slot beside one that comes through the network. */
static void script_loopback( void )
{
    int bytes;
    uint8_t data[10] = { 1 };
    script_open();
    if ( stage.failed )
        return;
    netcode_server_connect_loopback_client( stage.servers[0], 1, 77, NULL );
    netcode_server_process_loopback_packet( stage.servers[0], 1, data, 10, 1 );
    uint8_t * packet = netcode_server_receive_packet( stage.servers[0], 1, &bytes, NULL );
    if ( packet )
        netcode_server_free_packet( stage.servers[0], packet );
    script_visit();
    netcode_server_disconnect_loopback_client( stage.servers[0], 1 );
    stage_leave();
    script_visit();
}

/* Messages both ways, in two sessions of the same objects. */
static void script_messages( void )
{
    int visits;
    script_open();
    if ( !stage.failed )
        stage_make_messages();
    for ( visits = 0; visits < 2 && !stage.failed; visits++ ) {
        stage_join();
        stage_chat();
        stage_leave();
    }
}

static const struct story_t stories[] = {
    /* name                        transport           script             dual batch share waits dead slots */
    { "visits", STAGE_UDP, script_visits, 0, 0, 0, 0, 0, 2 },
    { "visits, batch_sends", STAGE_UDP, script_visits, 0, 1, 0, 0, 0, 2 },
    { "visits, dual stack", STAGE_UDP, script_visits, 1, 0, 0, 0, 0, 2 },
    { "visits, waiting", STAGE_UDP, script_visits, 0, 0, 0, 1, 0, 2 },
    { "two at one port, filtered", STAGE_UDP, script_share, 0, 0, 1, 0, 0, 2 },
    { "the first server is gone", STAGE_UDP, script_dead_first, 0, 0, 0, 0, 1, 2 },
    { "restart", STAGE_UDP, script_restart, 0, 1, 0, 0, 0, 2 },
    { "restart with large buffers", STAGE_UDP, script_restart, 0, 0, 0, 0, 0, 1100 },
    { "rebinds", STAGE_UDP, script_rebind, 0, 0, 0, 0, 0, 2 },
    { "rebinds, dual stack", STAGE_UDP, script_rebind, 1, 0, 0, 0, 0, 2 },
    { "made again", STAGE_UDP, script_again, 0, 0, 0, 0, 0, 2 },
    { "simulator", STAGE_SIMULATOR, script_visits, 0, 0, 0, 0, 0, 2 },
    { "simulator, restart", STAGE_SIMULATOR, script_restart, 0, 1, 0, 0, 0, 2 },
    { "simulator, made again", STAGE_SIMULATOR, script_again, 0, 0, 0, 0, 0, 2 },
    { "own sockets", STAGE_OWN_SOCKETS, script_again, 0, 0, 0, 0, 0, 2 },
    { "override callbacks", STAGE_OVERRIDE, script_restart, 0, 0, 0, 0, 0, 2 },
    { "messages", STAGE_UDP, script_messages, 0, 0, 0, 0, 0, 2 },
    { "simulator, messages", STAGE_SIMULATOR, script_messages, 0, 1, 0, 0, 0, 2 },
    { "loopback clients", STAGE_SIMULATOR, script_loopback, 0, 0, 0, 0, 0, 2 },
};

enum { STORIES = sizeof( stories ) / sizeof( stories[0] ) };

#endif
