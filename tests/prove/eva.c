/*  The entries for Frama-C's EVA, see eva.sh: the readers of addresses and of packets, on any input. */

#include <stddef.h>
#include <stdint.h>

#include <__fc_builtin.h>

/* stub/sodium.h speaks to CBMC; no reader here comes to it. */
#define __CPROVER_assert( claim, text ) ( (void) 0 )
#define __CPROVER_r_ok( place, bytes ) 1
#define __CPROVER_w_ok( place, bytes ) 1
#define __CPROVER_havoc_slice( place, bytes ) Frama_C_make_unknown( (char *) ( place ), bytes )

#define netcode_assert( condition ) ( (void) 0 )
#define NETCODE_NO_SOCKETS
#define NETCODE_STATIC
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

void eva_address( void )
{
    char text[64];
    struct netcode_address_t address;
    Frama_C_make_unknown( text, sizeof( text ) - 1 );
    text[63] = 0;
    netcode_parse_address( text, &address );
}

static void eva_parse( const uint8_t * data, int bytes )
{
    nc_packet_t packet;
    nc_request_t request;
    nc_packet_parse( &packet, data, bytes, Frama_C_interval( NC_TO_SERVER, NC_TO_CLIENT ) );
    nc_packet_parse_request( &request, data, bytes, (uint64_t) Frama_C_interval( 0, INT32_MAX ) );
}

/*  All lengths at once in one block; and those at which a parser begins to look further by themselves, at the end of the block:
    one byte further is out of bounds. */
void eva_packet( void )
{
    static const int lengths[] = { 0, 1, 13, 14, 17, 18, 19, 25, 26, 1061, 1062, 1063, 1077, 1078, 1079, 1225, 1226 };
    uint8_t data[NC_BUFFER_CAPACITY];
    Frama_C_make_unknown( (char *) data, sizeof( data ) );
    eva_parse( data, Frama_C_interval( 0, NC_BUFFER_CAPACITY ) );
    for ( unsigned i = 0; i < sizeof( lengths ) / sizeof( lengths[0] ); i++ )
        eva_parse( data + ( NC_BUFFER_CAPACITY - lengths[i] ), lengths[i] );
}
