/*  Playing without a backend, on one machine: server and clients share a key that everybody can read here, so the server
    listens on loopback alone, and clients make their own tokens. What players get is made by the
    backend (examples/backend), and no client ever holds its key: client.c with --url. Include it behind netcode.h. */

#ifndef ARENA_DEV_TOKEN_H
#define ARENA_DEV_TOKEN_H

#include <string.h>

static inline void dev_key( uint8_t key[NETCODE_KEY_BYTES] )
{
    for ( int i = 0; i < NETCODE_KEY_BYTES; i++ )
        key[i] = (uint8_t) ( 0x80 + i );
}

static inline int dev_is_loopback( const char * text )
{
    struct netcode_address_t address;
    if ( netcode_parse_address( text, &address ) != NETCODE_OK )
        return 0;
    return address.type == NETCODE_ADDRESS_IPV4 ? address.data.ipv4[0] == 127
                                                : !strncmp( text, "[::1]", 5 ) || !strcmp( text, "::1" );
}

/*  For a server at a loopback address: the key, and no address but that one is bound, so that no other machine can come in
    with the key that everybody has. `address` must outlive the create. */
static inline void dev_server_config( struct netcode_server_config_t * config, const char * address )
{
    dev_key( config->private_key );
    config->bind_address = address;
}

/*  A token for the server at `address`, which the client reaches at `dial` (a relay's; NULL: the same). The name is
    what the others see. NETCODE_OK, or NETCODE_ERROR. */
static inline int dev_token( const char * address, const char * dial, uint64_t client_id, uint64_t protocol_id,
                             const char * name, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    uint8_t key[NETCODE_KEY_BYTES], user_data[NETCODE_USER_DATA_BYTES];
    const char * inner[1] = { address };
    const char * outer[1] = { dial ? dial : address };
    size_t length = strlen( name );
    memset( user_data, 0, sizeof( user_data ) );
    memcpy( user_data, name, length < sizeof( user_data ) ? length : sizeof( user_data ) - 1 );
    dev_key( key );
    return netcode_generate_connect_token( 1, outer, inner, 60, 10, client_id, protocol_id, key, user_data, token );
}

#endif
