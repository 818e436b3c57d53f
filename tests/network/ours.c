/*  netcode.h's messages in the workloads that peers are compared in (peers.h), and 5 MB by TCP with a modelled CUBIC. */

#include "peers.h"

static end_t * ours_open( world_t * world, int transfer, double start_time, double phase )
{
    struct netcode_messages_config_t config;
    memset( &config, 0, sizeof( config ) );
    if ( transfer ) {
        config.max_message_bytes = TRANSFER_BYTES;
        config.priorities[CHANNEL_OTHER] = 1;
    }
    return world_messages( world, &config, start_time, phase );
}

static int ours_send( end_t * end, int channel, int kind, const void * data, int bytes )
{
    return netcode_messages_send( end->messages, channel, kind, data, bytes ) == NETCODE_OK;
}

/* world_close does it */
static void ours_close( end_t * end )
{
    (void) end;
}

static const library_t library = { ours_open, ours_send, ours_close };

static void cubic( uint64_t seed )
{
    for ( int i = 0; i < TRANSFER_PATHS; i++ ) {
        world_t world;
        path_t path = transfer_path( i );
        double now = 0.0;
        world_open( &world, &path, &path, seed );
        const end_t * first = world_tcp( &world, 0.0 );
        while ( first[1].receiver->bytes < TRANSFER_BYTES && now < 200.0 )
            world_run( &world, now += 0.001, NULL );
        figure( "transfer", transfer_paths[i].name, "CUBIC kB/s", now < 200.0 ? TRANSFER_BYTES / 1000.0 / now : 0.0 );
        world_close( &world );
    }
}

/* What others have measured, in the same form. */
static void quote( void )
{
    char row[64];
    for ( int d = 0; d < CELL_DELAYS; d++ )
        for ( int l = 0; l < CELL_LOSSES; l++ )
            for ( int c = 0; c < CELL_COUNTS; c++ ) {
                snprintf( row, sizeof( row ), "%g ms, %g %%, %d a tick", cell_delays[d] * 1000.0,
                          cell_losses[l] * 100.0, cell_counts[c] );
                figure( "cells", row, "quoted p50", cell_gns[d][l][c][0] );
                figure( "cells", row, "quoted p99", cell_gns[d][l][c][1] );
            }
}

int main( int argc, char ** argv )
{
    if ( world_random_begin() != 0 || netcode_init() != NETCODE_OK )
        return 2;
    int status = peers_main( argc, argv, "netcode.h" );
    for ( uint64_t seed = 1; status == 0 && seed <= 3; seed++ )
        cubic( seed );
    quote();
    netcode_term();
    return status;
}
