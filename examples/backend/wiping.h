/*  Memory that is wiped before it goes back, because tokens hold a session's keys: for cJSON and for answers, in backend.c
    and client_http.c, which include it. Needs libsodium and cJSON. */

#ifndef BACKEND_WIPING_H
#define BACKEND_WIPING_H

#include <cjson/cJSON.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WIPING_HEAD_BYTES 16 /* before each block: its size; as many, so that what follows is aligned for anything */

static void * wiping_alloc( size_t bytes )
{
    char * block = bytes > SIZE_MAX - WIPING_HEAD_BYTES ? NULL : (char *) malloc( bytes + WIPING_HEAD_BYTES );
    if ( !block )
        return NULL;
    memcpy( block, &bytes, sizeof( bytes ) );
    return block + WIPING_HEAD_BYTES;
}

static void wiping_free( void * pointer )
{
    size_t bytes = 0;
    if ( !pointer )
        return;
    char * block = (char *) pointer - WIPING_HEAD_BYTES;
    memcpy( &bytes, block, sizeof( bytes ) );
    sodium_memzero( pointer, bytes );
    free( block );
}

static void use_wiping_memory( void )
{
    cJSON_Hooks hooks = { wiping_alloc, wiping_free };
    cJSON_InitHooks( &hooks );
}

#endif
