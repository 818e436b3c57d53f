/*  Addresses, tokens and packets of the simulation, written from the standard alone, so that the library is not checked
    against itself. The backend mints here; the adversary seals and opens here with the keys that he holds. */

#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "ledger.h"

#define SIM_PROTOCOL 0x1122334455667788u
#define SIM_UNIX 1700000000u
#define SIM_FOREVER UINT64_MAX

/*  Where sequences start at zero, tokens that may be older than a server's start are refused by their expiry: by
    max_connect_token_lifetime, 30 s there. Both count whole seconds, so a token lives one second less here: one of 30 s
    that is minted, used, and presented to the next process within one second would be taken twice. */
#ifndef SIM_ZERO_LIFETIME
#define SIM_ZERO_LIFETIME 29
#endif

enum { SIM_PORTS = 64, SIM_STRANGERS = 1024, SIM_REQUEST_BYTES = 1078, SIM_DATAGRAM_BYTES = 1225 };

/*  Every address has a number: servers, clients (each with the ports that its router gave it), unknown addresses,
    nowhere. */
enum {
    SIM_AT_SERVERS = 0,
    SIM_AT_CLIENTS = 2 * SIM_SERVERS,
    SIM_AT_STRANGERS = SIM_AT_CLIENTS + 2 * SIM_CLIENTS * SIM_PORTS,
    SIM_NOWHERE = SIM_AT_STRANGERS + 2 * SIM_STRANGERS,
    SIM_ADDRESSES
};

enum { SIM_NET_SERVERS = 0, SIM_NET_CLIENTS = 1, SIM_NET_NOBODY = 8, SIM_NET_STRANGERS = 9 };

static int sim_server_at( int server, int six )
{
    return SIM_AT_SERVERS + six * SIM_SERVERS + server;
}

static int sim_client_at( int client, int six, int port )
{
    return SIM_AT_CLIENTS + ( six * SIM_CLIENTS + client ) * SIM_PORTS + port;
}

static int sim_stranger_at( int index, int six )
{
    return SIM_AT_STRANGERS + six * SIM_STRANGERS + index;
}

static struct netcode_address_t sim_address_make( int net, int six, int index, int port )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.port = (uint16_t) port;
    address.type = six ? NETCODE_ADDRESS_IPV6 : NETCODE_ADDRESS_IPV4;
    if ( six ) {
        address.data.ipv6[0] = 0xfd00;
        address.data.ipv6[1] = (uint16_t) net;
        address.data.ipv6[7] = (uint16_t) index;
    } else {
        address.data.ipv4[0] = 10;
        address.data.ipv4[1] = (uint8_t) net;
        address.data.ipv4[2] = (uint8_t) ( index >> 8 );
        address.data.ipv4[3] = (uint8_t) index;
    }
    return address;
}

static struct netcode_address_t sim_address_of( int at )
{
    if ( at < SIM_AT_CLIENTS )
        return sim_address_make( SIM_NET_SERVERS, at / SIM_SERVERS, at % SIM_SERVERS, 40000 );
    if ( at < SIM_AT_STRANGERS ) {
        int n = ( at - SIM_AT_CLIENTS ) / SIM_PORTS;
        return sim_address_make( SIM_NET_CLIENTS, n / SIM_CLIENTS, n % SIM_CLIENTS,
                                 50000 + ( at - SIM_AT_CLIENTS ) % SIM_PORTS );
    }
    if ( at < SIM_NOWHERE )
        return sim_address_make( SIM_NET_STRANGERS, ( at - SIM_AT_STRANGERS ) / SIM_STRANGERS,
                                 ( at - SIM_AT_STRANGERS ) % SIM_STRANGERS, 7000 );
    return sim_address_make( SIM_NET_NOBODY, 0, 1, 1 );
}

static int sim_at_of( const struct netcode_address_t * address )
{
    int six = address->type == NETCODE_ADDRESS_IPV6;
    int net = six ? address->data.ipv6[1] : address->data.ipv4[1];
    int index = six ? address->data.ipv6[7] : address->data.ipv4[2] << 8 | address->data.ipv4[3];
    if ( address->type == NETCODE_ADDRESS_NONE || address->port == 0 )
        return SIM_NOWHERE;
    switch ( net ) {
    case SIM_NET_SERVERS: return sim_server_at( index, six );
    case SIM_NET_CLIENTS: return sim_client_at( index, six, address->port - 50000 );
    case SIM_NET_STRANGERS: return sim_stranger_at( index, six );
    default: return SIM_NOWHERE;
    }
}

static int sim_is_server_at( int at )
{
    return at < SIM_AT_CLIENTS;
}

/* ---- bytes ---- */

static void sim_put( uint8_t ** at, uint64_t value, int bytes )
{
    for ( ; bytes > 0; bytes--, value >>= 8 )
        *( *at )++ = (uint8_t) value;
}

static void sim_put_bytes( uint8_t ** at, const void * data, size_t bytes )
{
    memcpy( *at, data, bytes );
    *at += bytes;
}

/* ---- tokens ---- */

enum { SIM_TOKEN_SERVERS = 5, SIM_HOLDERS = 8, SIM_ADVERSARY = 255 };

struct sim_token_t {
    uint64_t client_id;
    uint64_t create;
    uint64_t expire;
    int32_t timeout;
    uint32_t serial;
    uint32_t key;                         /* the generation of the private key */
    uint32_t process_of_use[SIM_SERVERS]; /* the server process that it connected on; 0: none */
    uint16_t servers[SIM_TOKEN_SERVERS];  /* addresses, in the order in which they are tried */
    uint16_t holders[SIM_HOLDERS];        /* addresses at which a client holds it */
    uint32_t holder_count;                /* ever */
    uint32_t object;                      /* the client object that used it last */
    uint32_t objects;                     /* how many did */
    uint8_t server_count;
    uint8_t owner; /* a client, or SIM_ADVERSARY */
    uint8_t was_connected_with;
    uint8_t is_stolen; /* the adversary uses it too */
    uint8_t to_server_key[32];
    uint8_t to_client_key[32];
};

/* The numbers distinguish tokens, and their order does not depend on the processor's. */
static void sim_user_data( uint32_t serial, uint8_t data[NETCODE_USER_DATA_BYTES] )
{
    uint64_t state = sim.seed * 1000003u + serial;
    uint8_t * at = data;
    sim_fill_random( &state, data, NETCODE_USER_DATA_BYTES );
    sim_put( &at, serial, 4 );
}

static void sim_private_key( uint32_t generation, uint8_t key[32] )
{
    uint64_t state = sim_mix( sim.seed ) + generation;
    sim_fill_random( &state, key, 32 );
}

/* Standard: Connect Token */
static void sim_put_servers( uint8_t ** at, const struct sim_token_t * token )
{
    sim_put( at, token->server_count, 4 );
    for ( int i = 0; i < token->server_count; i++ ) {
        struct netcode_address_t address = sim_address_of( token->servers[i] );
        sim_put( at, address.type, 1 );
        for ( int word = 0; address.type == NETCODE_ADDRESS_IPV6 && word < 8; word++ )
            sim_put( at, address.data.ipv6[word], 2 );
        if ( address.type == NETCODE_ADDRESS_IPV4 )
            sim_put_bytes( at, address.data.ipv4, 4 );
        sim_put( at, address.port, 2 );
    }
}

/* Seals the private part; the same token gives the same bytes each time. */
static void sim_mint_private( const struct sim_token_t * token, uint8_t part[1024], uint8_t nonce[24] )
{
    uint8_t user_data[NETCODE_USER_DATA_BYTES], key[32], ad[13 + 8 + 8], *at = part;
    uint64_t state = sim_mix( sim.seed + 77 ) ^ token->serial;
    sim_user_data( token->serial, user_data );
    sim_private_key( token->key, key );
    sim_fill_random( &state, nonce, 24 );
    memset( part, 0, 1024 );
    sim_put( &at, token->client_id, 8 );
    sim_put( &at, (uint32_t) token->timeout, 4 );
    sim_put_servers( &at, token );
    sim_put_bytes( &at, token->to_server_key, 32 );
    sim_put_bytes( &at, token->to_client_key, 32 );
    sim_put_bytes( &at, user_data, sizeof( user_data ) );
    at = ad;
    sim_put_bytes( &at, "NETCODE 1.02", 13 );
    sim_put( &at, SIM_PROTOCOL, 8 );
    sim_put( &at, token->expire, 8 );
    SIM_REAL( crypto_aead_xchacha20poly1305_ietf_encrypt )
    ( part, NULL, part, 1008, ad, sizeof( ad ), NULL, nonce, key );
}

static void sim_mint( const struct sim_token_t * token, uint8_t out[NETCODE_CONNECT_TOKEN_BYTES] )
{
    uint8_t part[1024], nonce[24], *at = out;
    sim_mint_private( token, part, nonce );
    memset( out, 0, NETCODE_CONNECT_TOKEN_BYTES );
    sim_put_bytes( &at, "NETCODE 1.02", 13 );
    sim_put( &at, SIM_PROTOCOL, 8 );
    sim_put( &at, token->create, 8 );
    sim_put( &at, token->expire, 8 );
    sim_put_bytes( &at, nonce, sizeof( nonce ) );
    sim_put_bytes( &at, part, sizeof( part ) );
    sim_put( &at, (uint32_t) token->timeout, 4 );
    sim_put_servers( &at, token );
    sim_put_bytes( &at, token->to_server_key, 32 );
    sim_put_bytes( &at, token->to_client_key, 32 );
}

/* Standard: Packets, connection request packet */
static void sim_wire_request( const struct sim_token_t * token, uint8_t out[SIM_REQUEST_BYTES] )
{
    uint8_t part[1024], nonce[24], *at = out;
    sim_mint_private( token, part, nonce );
    sim_put( &at, 0, 1 );
    sim_put_bytes( &at, "NETCODE 1.02", 13 );
    sim_put( &at, SIM_PROTOCOL, 8 );
    sim_put( &at, token->expire, 8 );
    sim_put_bytes( &at, nonce, sizeof( nonce ) );
    sim_put_bytes( &at, part, sizeof( part ) );
}

/* ---- sealed packets. Standard: Packets ---- */

static void sim_associated( uint8_t ad[22], uint8_t prefix )
{
    sim_put_bytes( &ad, "NETCODE 1.02", 13 );
    sim_put( &ad, SIM_PROTOCOL, 8 );
    sim_put( &ad, prefix, 1 );
}

/* Returns the datagram's size. */
static int sim_seal( uint8_t * out, int type, uint64_t sequence, const uint8_t * key, const void * body, int bytes )
{
    uint8_t nonce[12] = { 0 }, ad[22], *at = nonce + 4;
    int sequence_bytes = 1, head;
    uint64_t rest = sequence;
    while ( rest >>= 8 )
        sequence_bytes++;
    sim_put( &at, sequence, 8 );
    out[0] = (uint8_t) ( sequence_bytes << 4 | type );
    at = out + 1;
    sim_put( &at, sequence, sequence_bytes );
    head = 1 + sequence_bytes;
    sim_associated( ad, out[0] );
    SIM_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( out + head, NULL, (const uint8_t *) body, (unsigned long long) bytes, ad, sizeof( ad ), NULL, nonce, key );
    return head + bytes + 16;
}

/* Returns the body's size, or -1. */
static int sim_open( const uint8_t * data, int bytes, const uint8_t * key, uint8_t * body )
{
    uint8_t nonce[12] = { 0 }, ad[22], *at = nonce + 4;
    int sequence_bytes = bytes > 0 ? data[0] >> 4 : 0, head = 1 + sequence_bytes;
    if ( sequence_bytes < 1 || sequence_bytes > 8 || bytes < head + 16 )
        return -1;
    sim_put( &at, sim_load( data + 1, sequence_bytes ), 8 );
    sim_associated( ad, data[0] );
    if ( SIM_REAL( crypto_aead_chacha20poly1305_ietf_decrypt )( body, NULL, NULL, data + head,
                                                                (unsigned long long) ( bytes - head ), ad, sizeof( ad ),
                                                                nonce, key ) != 0 )
        return -1;
    return bytes - head - 16;
}

#endif
