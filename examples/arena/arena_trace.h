/*  What a client drew of the others, line by line: tests/arena/views.py compares it with the server's own trace. Include it
    behind arena_client.h. */

#ifndef ARENA_TRACE_H
#define ARENA_TRACE_H

#include <stdio.h>

enum { ARENA_TRACE_FRAMES = 15 /* one frame in so many is written */ };

/* Its slot, the tick that it drew, and each player that it drew. */
static inline void arena_write_trace( FILE * trace, const struct arena_client_t * client )
{
    struct arena_drawn_t drawn;
    fprintf( trace, "%d %.3f", client->slot, client->render );
    for ( int i = 0; i < ARENA_PLAYERS; i++ )
        if ( i != client->slot && arena_client_other( client, i, &drawn ) )
            fprintf( trace, " %d:%.0f:%.0f:%d", i, drawn.x, drawn.y, drawn.health );
    fputc( '\n', trace );
}

#endif
