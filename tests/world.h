/*  A world for stories: a simulated network, servers and clients in virtual time, and an adversary that sees, records,
    drops and injects datagrams. Everything follows from the test's seed. Tokens and packets are written here from the
    standard alone, so that the library is not checked against itself.

        struct world_t * w = world_open( LOSSY, 1, 4, 2 );           one server of 4 slots, 2 clients
        world_connect( w, 0, 1001 );                                   client 0 starts to connect as player 1001
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );

    Worlds are closed, and checked for leaks, when the test ends. */

#ifndef WORLD_H
#define WORLD_H

#include "ledger.h"

enum {
    WORLD_SERVERS = 32,
    WORLD_CLIENTS = 80,
    WORLD_SOCKETS = WORLD_SERVERS + WORLD_CLIENTS,
    WORLD_LOG = 256,
    WORLD_RECORDS = 400000
};
enum { CLEAN, LOSSY };

#define WORLD_PROTOCOL 0x1122334455667788u
#define WORLD_TIMEOUT 5
#define WORLD_UNIX 1700000000u
#define FOREVER UINT64_MAX

struct world_t;

/* What happened to one client or server. */
struct world_party_t {
    struct world_t * world;
    int index;
    int is_server;
    int log[WORLD_LOG][2]; /* client: previous state, state. server: slot, connected */
    int log_count;
    int64_t drops[NETCODE_DROP_REASONS];
    int lines; /* logged */
    char line[512];
    void ( *on_change )( struct world_party_t * party, int a, int b );
    void ( *on_drop )( struct world_party_t * party, int reason );
    void ( *on_loopback )( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                           uint64_t sequence );
};

struct world_datagram_t {
    struct netcode_address_t from;
    struct netcode_address_t to;
    uint8_t * data;
    int bytes;
    int status; /* NETCODE_DATAGRAM_... */
    int error;
    int injected; /* by the adversary */
    int dropped;  /* by the adversary */
    double time;
};

struct world_list_t {
    struct world_datagram_t * items;
    int count;
    int capacity;
    int head; /* of an inbox: what was handed out before it is gone */
};

struct world_socket_t {
    struct world_t * world;
    struct netcode_socket_t inner;
    struct netcode_address_t address;
    struct world_list_t inbox;
    int open;
    int send_calls;
};

struct world_t {
    struct netcode_network_simulator_t * net;
    struct allocator_t allocator;     /* of the servers and clients */
    struct allocator_t net_allocator; /* of the simulator */
    double time;
    double step;
    int64_t unix_offset;
    struct netcode_server_config_t server_config; /* for the servers added from now on */
    struct netcode_client_config_t client_config;
    struct netcode_server_t * servers[WORLD_SERVERS];
    struct netcode_client_t * clients[WORLD_CLIENTS];
    struct world_party_t server_parties[WORLD_SERVERS];
    struct world_party_t client_parties[WORLD_CLIENTS];
    struct netcode_address_t server_addresses[WORLD_SERVERS];
    struct netcode_address_t client_addresses[WORLD_CLIENTS];
    uint8_t tokens[WORLD_CLIENTS][NETCODE_CONNECT_TOKEN_BYTES];
    int server_count;
    int client_count;
    struct world_socket_t sockets[WORLD_SOCKETS];
    int ( *hook )( struct world_t * w, const struct world_datagram_t * datagram ); /* 1: drop it */
    void ( *receive_hook )( struct world_t * w, const struct netcode_address_t * who );
    int ( *mapped )( void * context, struct netcode_datagram_t * datagrams, int count ); /* in place of world_receive */
    unsigned cut_types; /* bit n: datagrams of packet type n are lost */
    struct netcode_address_t cut_to;
    struct netcode_address_t cut_from;
    int recording;
    struct world_list_t records;
    struct world_t * next;
};

static struct world_t * world_list;

/* ---- tokens and packets, from the standard ---- */

struct recipe_t {
    char version[13];
    uint64_t protocol_id;
    uint64_t create;
    uint64_t expire;
    int timeout;
    uint64_t client_id;
    uint8_t nonce[24];
    uint8_t private_key[32];
    int public_count;
    int private_count;
    struct netcode_address_t public_addresses[40];
    struct netcode_address_t private_addresses[40];
    uint8_t to_server_key[32];
    uint8_t to_client_key[32];
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
};

static void put( uint8_t ** at, uint64_t value, int bytes )
{
    for ( ; bytes > 0; bytes--, value >>= 8 )
        *( *at )++ = (uint8_t) value;
}

static uint64_t get( const uint8_t * at, int bytes )
{
    uint64_t value = 0;
    while ( bytes-- > 0 )
        value = value << 8 | at[bytes];
    return value;
}

static void put_bytes( uint8_t ** at, const void * data, size_t bytes )
{
    if ( bytes )
        memcpy( *at, data, bytes );
    *at += bytes;
}

/* Standard: Connect Token */
static void put_addresses( uint8_t ** at, int count, const struct netcode_address_t * addresses )
{
    int i, word;
    put( at, (uint64_t) count, 4 );
    for ( i = 0; i < count; i++ ) {
        put( at, addresses[i].type, 1 );
        for ( word = 0; addresses[i].type == NETCODE_ADDRESS_IPV6 && word < 8; word++ )
            put( at, addresses[i].data.ipv6[word], 2 );
        if ( addresses[i].type != NETCODE_ADDRESS_IPV6 )
            put_bytes( at, addresses[i].data.ipv4, 4 );
        put( at, addresses[i].port, 2 );
    }
}

static void mint( const struct recipe_t * r, uint8_t * token )
{
    uint8_t part[1024] = { 0 }, ad[13 + 8 + 8], *at = part;
    put( &at, r->client_id, 8 );
    put( &at, (uint32_t) r->timeout, 4 );
    put_addresses( &at, r->private_count, r->private_addresses );
    put_bytes( &at, r->to_server_key, 32 );
    put_bytes( &at, r->to_client_key, 32 );
    put_bytes( &at, r->user_data, NETCODE_USER_DATA_BYTES );
    at = ad;
    put_bytes( &at, r->version, 13 );
    put( &at, r->protocol_id, 8 );
    put( &at, r->expire, 8 );
    LEDGER_REAL( crypto_aead_xchacha20poly1305_ietf_encrypt )
    ( part, NULL, part, 1008, ad, sizeof( ad ), NULL, r->nonce, r->private_key );
    memset( token, 0, NETCODE_CONNECT_TOKEN_BYTES );
    at = token;
    put_bytes( &at, r->version, 13 );
    put( &at, r->protocol_id, 8 );
    put( &at, r->create, 8 );
    put( &at, r->expire, 8 );
    put_bytes( &at, r->nonce, 24 );
    put_bytes( &at, part, 1024 );
    put( &at, (uint32_t) r->timeout, 4 );
    put_addresses( &at, r->public_count, r->public_addresses );
    put_bytes( &at, r->to_server_key, 32 );
    put_bytes( &at, r->to_client_key, 32 );
}

enum { REQUEST_BYTES = 1078, DATAGRAM_BYTES = 1225 };

/* Standard: Packets, connection request packet */
static void wire_request( const struct recipe_t * r, uint8_t * out )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], *at = out;
    mint( r, token );
    put( &at, 0, 1 );
    put_bytes( &at, r->version, 13 );
    put( &at, r->protocol_id, 8 );
    put( &at, r->expire, 8 );
    put_bytes( &at, r->nonce, 24 );
    put_bytes( &at, token + 13 + 8 + 8 + 8 + 24, 1024 );
}

static void wire_associated( uint8_t * ad, uint64_t protocol_id, uint8_t prefix )
{
    put_bytes( &ad, "NETCODE 1.02", 13 );
    put( &ad, protocol_id, 8 );
    put( &ad, prefix, 1 );
}

static int wire_sequence_bytes( uint64_t sequence )
{
    int bytes = 1;
    while ( sequence >>= 8 )
        bytes++;
    return bytes;
}

/* Standard: Packets. `sequence_bytes` 0: as few as it takes. Returns the datagram's size. */
static int wire_seal( uint8_t * out, int type, uint64_t sequence, int sequence_bytes, const uint8_t * key,
                      const void * body, int bytes )
{
    uint8_t nonce[12] = { 0 }, ad[22], *at = nonce + 4;
    int head;
    put( &at, sequence, 8 );
    if ( !sequence_bytes )
        sequence_bytes = wire_sequence_bytes( sequence );
    out[0] = (uint8_t) ( sequence_bytes << 4 | type );
    at = out + 1;
    put( &at, sequence, sequence_bytes );
    head = 1 + sequence_bytes;
    wire_associated( ad, WORLD_PROTOCOL, out[0] );
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( out + head, NULL, (const uint8_t *) body, (unsigned long long) bytes, ad, sizeof( ad ), NULL, nonce, key );
    return head + bytes + 16;
}

/* Returns the body's size, or -1. */
static int wire_open( const uint8_t * data, int bytes, const uint8_t * key, int * type, uint64_t * sequence,
                      uint8_t * body )
{
    uint8_t nonce[12] = { 0 }, ad[22], *at = nonce + 4;
    int sequence_bytes = bytes > 0 ? data[0] >> 4 : 0, head = 1 + sequence_bytes;
    if ( bytes < 18 || sequence_bytes < 1 || sequence_bytes > 8 || bytes < head + 16 )
        return -1;
    *type = data[0] & 15;
    *sequence = get( data + 1, sequence_bytes );
    put( &at, *sequence, 8 );
    wire_associated( ad, WORLD_PROTOCOL, data[0] );
    if ( LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_decrypt )( body, NULL, NULL, data + head,
                                                                   (unsigned long long) ( bytes - head ), ad,
                                                                   sizeof( ad ), nonce, key ) != 0 )
        return -1;
    return bytes - head - 16;
}

static struct netcode_address_t address_of( const char * text )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    if ( netcode_parse_address( text, &address ) != NETCODE_OK )
        test_fail( __FILE__, __LINE__, "the address %s can not be read", text );
    return address;
}

static int same_address( const struct netcode_address_t * a, const struct netcode_address_t * b )
{
    return a->type != NETCODE_ADDRESS_NONE && b->type != NETCODE_ADDRESS_NONE && netcode_address_equal( a, b );
}

/* ---- the network with the adversary on it ---- */

static struct world_datagram_t * world_push( struct world_list_t * list, const struct netcode_address_t * from,
                                             const struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    struct world_datagram_t * d;
    if ( list->count == list->capacity ) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->items =
            (struct world_datagram_t *) realloc( list->items, (size_t) list->capacity * sizeof( *list->items ) );
    }
    d = &list->items[list->count++];
    memset( d, 0, sizeof( *d ) );
    d->from = *from;
    d->to = *to;
    d->bytes = bytes;
    d->data = (uint8_t *) malloc( bytes > 0 ? (size_t) bytes : 1 );
    if ( bytes > 0 )
        memcpy( d->data, data, (size_t) bytes );
    return d;
}

static void world_clear( struct world_list_t * list )
{
    int i;
    for ( i = list->head; i < list->count; i++ )
        free( list->items[i].data );
    free( list->items );
    memset( list, 0, sizeof( *list ) );
}

static void world_record( struct world_t * w, const struct world_datagram_t * datagram )
{
    struct world_datagram_t * d;
    if ( !w->recording || w->records.count >= WORLD_RECORDS )
        return;
    d = world_push( &w->records, &datagram->from, &datagram->to, datagram->data, datagram->bytes );
    d->injected = datagram->injected;
    d->dropped = datagram->dropped;
    d->time = w->time;
}

static int world_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    struct world_t * w = s->world;
    struct world_datagram_t seen;
    int i;
    s->send_calls++;
    for ( i = 0; i < count; i++ ) {
        memset( &seen, 0, sizeof( seen ) );
        CHECK( datagrams[i].address.type != NETCODE_ADDRESS_NONE && datagrams[i].address.port != 0 );
        CHECK( datagrams[i].bytes >= 18 && datagrams[i].bytes <= DATAGRAM_BYTES );
        seen.from = s->address;
        seen.to = datagrams[i].address;
        seen.data = datagrams[i].data;
        seen.bytes = datagrams[i].bytes;
        seen.dropped = ( datagrams[i].bytes > 0 && ( w->cut_types >> ( datagrams[i].data[0] & 15 ) & 1 ) ) ||
                       same_address( &seen.to, &w->cut_to ) || same_address( &seen.from, &w->cut_from ) ||
                       ( w->hook && w->hook( w, &seen ) );
        world_record( w, &seen );
        if ( !seen.dropped )
            s->inner.send( s->inner.context, &datagrams[i], 1 );
    }
    return count;
}

static int world_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    struct world_datagram_t * d;
    int filled = 0, more;
    if ( s->world->receive_hook )
        s->world->receive_hook( s->world, &s->address );
    while ( filled < count && s->inbox.head < s->inbox.count ) {
        struct netcode_datagram_t * out = &datagrams[filled++];
        d = &s->inbox.items[s->inbox.head++];
        out->address = d->from;
        out->status = d->bytes > out->capacity ? NETCODE_DATAGRAM_TRUNCATED : d->status;
        out->error = d->error;
        out->bytes = d->bytes > out->capacity ? out->capacity : d->bytes;
        if ( out->bytes > 0 )
            memcpy( out->data, d->data, (size_t) out->bytes );
        free( d->data );
    }
    if ( s->inbox.head == s->inbox.count )
        s->inbox.head = s->inbox.count = 0;
    if ( filled == count )
        return filled;
    more = s->inner.receive( s->inner.context, datagrams + filled, count - filled );
    return more > 0 ? filled + more : filled;
}

static void world_close_socket( void * context )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    CHECK( s->open );
    s->open = 0;
    world_clear( &s->inbox );
    if ( s->inner.close )
        s->inner.close( s->inner.context );
}

static void world_socket_info( void * context, struct netcode_socket_info_t * info )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    memset( info, 0, sizeof( *info ) );
    info->address = s->address;
}

/* The socket has another address, or its owner has given it one. */
static void world_follow( struct world_t * w, struct world_socket_t * s )
{
    struct netcode_socket_info_t info;
    int i;
    s->inner.info( s->inner.context, &info );
    for ( i = 0; i < w->client_count; i++ )
        if ( netcode_address_equal( &w->client_addresses[i], &s->address ) )
            break;
    s->address = info.address;
    if ( i < w->client_count )
        w->client_addresses[i] = info.address;
}

static int world_rebind( void * context )
{
    struct world_socket_t * s = (struct world_socket_t *) context;
    int done = s->inner.rebind( s->inner.context );
    world_follow( s->world, s );
    return done;
}

static struct world_socket_t * world_socket( struct world_t * w, const struct netcode_address_t * address,
                                             struct netcode_socket_t * socket )
{
    int i;
    for ( i = 0; i < WORLD_SOCKETS && w->sockets[i].open; i++ )
        continue;
    REQUIRE( i < WORLD_SOCKETS );
    memset( &w->sockets[i], 0, sizeof( w->sockets[i] ) );
    w->sockets[i].world = w;
    w->sockets[i].address = *address;
    REQUIRE_EQ( netcode_network_simulator_socket( w->net, address, &w->sockets[i].inner ), NETCODE_OK );
    w->sockets[i].open = 1;
    memset( socket, 0, sizeof( *socket ) );
    socket->context = &w->sockets[i];
    socket->receive = w->mapped ? w->mapped : world_receive;
    socket->send = world_send;
    socket->close = world_close_socket;
    socket->info = world_socket_info;
    socket->rebind = world_rebind;
    return &w->sockets[i];
}

static struct world_socket_t * world_find_socket( struct world_t * w, const struct netcode_address_t * address )
{
    int i;
    for ( i = 0; i < WORLD_SOCKETS; i++ )
        if ( w->sockets[i].open && netcode_address_equal( &w->sockets[i].address, address ) )
            return &w->sockets[i];
    return NULL;
}

/* A NAT gives a client another address, or its network is gone until it rebinds. */
static void world_move( struct world_t * w, int client, const char * text, int at_rebind )
{
    struct netcode_address_t to = address_of( text );
    struct world_socket_t * s = world_find_socket( w, &w->client_addresses[client] );
    REQUIRE( s != NULL );
    REQUIRE_EQ( netcode_network_simulator_move( w->net, &s->address, &to, at_rebind ), NETCODE_OK );
    world_follow( w, s );
}

/* The datagram waits at `to` as if it came from `from`, before what the simulator brings. */
static struct world_datagram_t * world_inject( struct world_t * w, const struct netcode_address_t * from,
                                               const struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    struct world_socket_t * s = world_find_socket( w, to );
    struct world_datagram_t * d;
    REQUIRE( s != NULL );
    d = world_push( &s->inbox, from, to, data, bytes );
    d->injected = 1;
    world_record( w, d );
    return d;
}

/* The system reports an error about a datagram that was sent to `about`. */
static void world_inject_error( struct world_t * w, const struct netcode_address_t * about,
                                const struct netcode_address_t * to, int error )
{
    struct world_datagram_t * d = world_inject( w, about, to, NULL, 0 );
    d->status = NETCODE_DATAGRAM_ERROR;
    d->error = error;
}

/* ---- callbacks ---- */

static uint64_t world_unix( const struct world_t * w )
{
    return (uint64_t) ( (int64_t) WORLD_UNIX + (int64_t) w->time + w->unix_offset );
}

static uint64_t world_unix_callback( void * context )
{
    return world_unix( ( (struct world_party_t *) context )->world );
}

static void world_change_callback( void * context, int a, int b )
{
    struct world_party_t * party = (struct world_party_t *) context;
    if ( party->log_count < WORLD_LOG ) {
        party->log[party->log_count][0] = a;
        party->log[party->log_count++][1] = b;
    }
    if ( party->on_change )
        party->on_change( party, a, b );
}

static void world_drop_callback( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    struct world_party_t * party = (struct world_party_t *) context;
    REQUIRE( reason > NETCODE_DROP_NONE && reason < NETCODE_DROP_REASONS );
    CHECK( from != NULL );
    CHECK_GE( bytes, 0 );
    party->drops[reason]++;
    if ( party->on_drop )
        party->on_drop( party, reason );
}

static void world_log_callback( void * context, int level, const char * text )
{
    struct world_party_t * party = (struct world_party_t *) context;
    (void) level;
    party->lines++;
    test_log_lines++;
    snprintf( party->line, sizeof( party->line ), "%s", text );
}

static void world_loopback_callback( void * context, int client_index, const uint8_t * data, int bytes,
                                     uint64_t sequence )
{
    struct world_party_t * party = (struct world_party_t *) context;
    if ( party->on_loopback )
        party->on_loopback( party, client_index, data, bytes, sequence );
}

/* ---- making and ending ---- */

static const uint8_t world_key[NETCODE_KEY_BYTES] = { 0x13, 0x37, 0x02, 0xA9, 0x5C, 0x4D, 0x21, 0xF0, 0x88, 0x76, 0x1E,
                                                      0xBB, 0x05, 0x90, 0x6A, 0xC7, 0x31, 0x42, 0x9E, 0xD8, 0x0F, 0x64,
                                                      0xAA, 0x5B, 0x17, 0xE2, 0x3C, 0x99, 0x48, 0x7D, 0xB6, 0x01 };

static nc_log_t * test_messages_log; /* of the one object of messages that a test makes refuse, or NULL */

static void test_allow_refusals( void )
{
    if ( test_messages_log )
        test_messages_log->refusals.next = 0.0;
    for ( struct world_t * w = world_list; w; w = w->next ) {
        for ( int i = 0; i < WORLD_SERVERS; i++ )
            if ( w->servers[i] )
                w->servers[i]->base.log.refusals.next = 0.0;
        for ( int i = 0; i < WORLD_CLIENTS; i++ )
            if ( w->clients[i] )
                w->clients[i]->base.log.refusals.next = 0.0;
    }
}

static struct world_t * world_new( int net )
{
    struct world_t * w = (struct world_t *) calloc( 1, sizeof( *w ) );
    REQUIRE( w != NULL );
    w->next = world_list;
    world_list = w;
    w->time = 100.0;
    w->step = 0.01;
    w->recording = 1;
    w->net = netcode_network_simulator_create( &w->net_allocator, allocator_allocate, allocator_free );
    REQUIRE( w->net != NULL );
    w->net->seed = test_random();
    netcode_network_simulator_reset( w->net );
    if ( net == LOSSY ) {
        w->net->latency_milliseconds = 250.0f;
        w->net->jitter_milliseconds = 250.0f;
        w->net->packet_loss_percent = 5.0f;
        w->net->duplicate_packet_percent = 10.0f;
    }
    netcode_network_simulator_update( w->net, w->time );
    netcode_default_server_config( &w->server_config );
    w->server_config.protocol_id = WORLD_PROTOCOL;
    memcpy( w->server_config.private_key, world_key, NETCODE_KEY_BYTES );
    w->server_config.allocator_context = &w->allocator;
    w->server_config.allocate_function = allocator_allocate;
    w->server_config.free_function = allocator_free;
    w->server_config.connect_disconnect_callback = world_change_callback;
    w->server_config.send_loopback_packet_callback = world_loopback_callback;
    w->server_config.unix_time = world_unix_callback;
    w->server_config.log_callback = world_log_callback;
    w->server_config.drop_callback = world_drop_callback;
    netcode_default_client_config( &w->client_config );
    w->client_config.allocator_context = &w->allocator;
    w->client_config.allocate_function = allocator_allocate;
    w->client_config.free_function = allocator_free;
    w->client_config.state_change_callback = world_change_callback;
    w->client_config.send_loopback_packet_callback = world_loopback_callback;
    w->client_config.log_callback = world_log_callback;
    w->client_config.drop_callback = world_drop_callback;
    return w;
}

/* Makes the server of this place (again), stopped. */
static void world_make_server( struct world_t * w, int server )
{
    struct netcode_server_config_t config = w->server_config;
    struct netcode_socket_t socket;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    snprintf( text, sizeof( text ), "10.0.0.%d:40000", server + 1 );
    w->server_addresses[server] = address_of( text );
    w->server_parties[server].world = w;
    w->server_parties[server].index = server;
    w->server_parties[server].is_server = 1;
    memset( w->server_parties[server].drops, 0, sizeof( w->server_parties[server].drops ) );
    world_socket( w, &w->server_addresses[server], &socket );
    config.socket = &socket;
    config.callback_context = &w->server_parties[server];
    w->servers[server] = netcode_server_create( text, &config, w->time );
    REQUIRE( w->servers[server] != NULL );
}

static int world_add_server( struct world_t * w, int slots )
{
    int server = w->server_count;
    REQUIRE( server < WORLD_SERVERS );
    world_make_server( w, server );
    w->server_count++;
    netcode_server_start( w->servers[server], slots );
    REQUIRE_EQ( netcode_server_running( w->servers[server] ), 1 );
    return server;
}

static void world_make_client( struct world_t * w, int client )
{
    struct netcode_client_config_t config = w->client_config;
    struct netcode_socket_t socket;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    snprintf( text, sizeof( text ), "10.1.0.%d:50000", client + 1 );
    w->client_addresses[client] = address_of( text );
    w->client_parties[client].world = w;
    w->client_parties[client].index = client;
    memset( w->client_parties[client].drops, 0, sizeof( w->client_parties[client].drops ) );
    world_socket( w, &w->client_addresses[client], &socket );
    config.socket = &socket;
    config.callback_context = &w->client_parties[client];
    w->clients[client] = netcode_client_create( text, &config, w->time );
    REQUIRE( w->clients[client] != NULL );
}

static int world_add_client( struct world_t * w )
{
    REQUIRE( w->client_count < WORLD_CLIENTS );
    world_make_client( w, w->client_count );
    return w->client_count++;
}

static struct world_t * world_fill( struct world_t * w, int servers, int slots, int clients )
{
    while ( servers-- > 0 )
        world_add_server( w, slots );
    while ( clients-- > 0 )
        world_add_client( w );
    return w;
}

static struct world_t * world_open( int net, int servers, int slots, int clients )
{
    return world_fill( world_new( net ), servers, slots, clients );
}

/* The same with config.events. */
static struct world_t * world_open_with_events( int net, int servers, int slots, int clients )
{
    struct world_t * w = world_new( net );
    w->server_config.events = w->client_config.events = 1;
    return world_fill( w, servers, slots, clients );
}

static void world_destroy_server( struct world_t * w, int server )
{
    struct netcode_server_stats_t stats;
    int reason;
    if ( !w->servers[server] )
        return;
    netcode_server_stats( w->servers[server], &stats );
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ )
        if ( stats.dropped[reason] != (uint64_t) w->server_parties[server].drops[reason] )
            test_fail( __FILE__, __LINE__, "server %d: %s was counted %d times and reported %d times", server,
                       netcode_drop_reason_name( reason ), (int) stats.dropped[reason],
                       (int) w->server_parties[server].drops[reason] );
    netcode_server_destroy( w->servers[server] );
    w->servers[server] = NULL;
}

static void world_destroy_client( struct world_t * w, int client )
{
    struct netcode_client_stats_t stats;
    int reason;
    if ( !w->clients[client] )
        return;
    netcode_client_stats( w->clients[client], &stats );
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ )
        if ( stats.dropped[reason] != (uint64_t) w->client_parties[client].drops[reason] )
            test_fail( __FILE__, __LINE__, "client %d: %s was counted %d times and reported %d times", client,
                       netcode_drop_reason_name( reason ), (int) stats.dropped[reason],
                       (int) w->client_parties[client].drops[reason] );
    netcode_client_destroy( w->clients[client] );
    w->clients[client] = NULL;
}

static void world_close( struct world_t * w )
{
    struct world_t ** link = &world_list;
    int i;
    while ( *link != w )
        link = &( *link )->next;
    *link = w->next;
    w->hook = NULL;
    w->receive_hook = NULL;
    for ( i = 0; i < WORLD_CLIENTS; i++ )
        w->client_parties[i].on_change = NULL;
    for ( i = 0; i < WORLD_SERVERS; i++ )
        w->server_parties[i].on_change = NULL;
    for ( i = 0; i < w->client_count; i++ )
        world_destroy_client( w, i );
    for ( i = 0; i < w->server_count; i++ )
        world_destroy_server( w, i );
    for ( i = 0; i < WORLD_SOCKETS; i++ )
        CHECK( !w->sockets[i].open );
    netcode_network_simulator_destroy( w->net );
    CHECK_EQ( w->allocator.live, 0 );
    CHECK_EQ( w->net_allocator.live, 0 );
    allocator_release( &w->allocator );
    world_clear( &w->records );
    free( w );
}

static void world_close_all( void )
{
    test_messages_log = NULL;
    while ( world_list )
        world_close( world_list );
}

/* What a runner of tests in a world does before each. */
static void world_begin_test( uint64_t seed )
{
    ledger_reset();
    ledger_random_state = seed;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    netcode_set_printf_function( test_printf );
    netcode_set_assert_function( test_assert_handler );
}

/* ---- time ---- */

static void world_step( struct world_t * w )
{
    int i;
    w->time += w->step;
    netcode_network_simulator_update( w->net, w->time );
    for ( i = 0; i < w->server_count; i++ )
        if ( w->servers[i] )
            netcode_server_update( w->servers[i], w->time );
    for ( i = 0; i < w->client_count; i++ )
        if ( w->clients[i] )
            netcode_client_update( w->clients[i], w->time );
}

static void world_run( struct world_t * w, double seconds )
{
    double end = w->time + seconds - w->step * 0.5;
    while ( w->time < end )
        world_step( w );
}

/* Runs until the client is in the state: 1, or 0 when the virtual time is up. */
static int world_until( struct world_t * w, int client, int state, double seconds )
{
    double end = w->time + seconds;
    while ( netcode_client_state( w->clients[client] ) != state ) {
        if ( w->time >= end ) {
            printf( "    client %d is %s, not %s, after %g s\n", client,
                    netcode_client_state_name( netcode_client_state( w->clients[client] ) ),
                    netcode_client_state_name( state ), seconds );
            return 0;
        }
        world_step( w );
    }
    return 1;
}

/* ---- players ---- */

/* A good token for this player that names all servers of the world. */
static struct recipe_t recipe_for( struct world_t * w, uint64_t client_id )
{
    struct recipe_t r;
    int i;
    memset( &r, 0, sizeof( r ) );
    memcpy( r.version, "NETCODE 1.02", 13 );
    r.protocol_id = WORLD_PROTOCOL;
    r.create = world_unix( w );
    r.expire = r.create + 300;
    r.timeout = WORLD_TIMEOUT;
    r.client_id = client_id;
    memcpy( r.private_key, world_key, 32 );
    r.public_count = r.private_count = w->server_count;
    for ( i = 0; i < w->server_count; i++ )
        r.public_addresses[i] = r.private_addresses[i] = w->server_addresses[i];
    ledger_random_bytes( r.nonce, sizeof( r.nonce ) );
    ledger_random_bytes( r.to_server_key, 32 );
    ledger_random_bytes( r.to_client_key, 32 );
    for ( i = 0; i < NETCODE_USER_DATA_BYTES; i++ )
        r.user_data[i] = (uint8_t) ( client_id * 31 + (uint64_t) i );
    return r;
}

static void world_connect_recipe( struct world_t * w, int client, const struct recipe_t * r )
{
    mint( r, w->tokens[client] );
    netcode_client_connect( w->clients[client], w->tokens[client] );
}

static struct recipe_t world_connect( struct world_t * w, int client, uint64_t client_id )
{
    struct recipe_t r = recipe_for( w, client_id );
    world_connect_recipe( w, client, &r );
    return r;
}

/* The slot in which the server has this player, or -1. */
static int world_slot( struct world_t * w, int server, uint64_t client_id )
{
    int i, slots = netcode_server_max_clients( w->servers[server] );
    for ( i = 0; i < slots; i++ )
        if ( netcode_server_client_connected( w->servers[server], i ) &&
             netcode_server_client_id( w->servers[server], i ) == client_id )
            return i;
    return -1;
}

/* Within a second; `r` is its token's recipe. */
static int world_joins( struct world_t * w, int client, uint64_t client_id, struct recipe_t * r )
{
    *r = world_connect( w, client, client_id );
    return world_until( w, client, NETCODE_CLIENT_STATE_CONNECTED, 1.0 );
}

static void world_restart( struct world_t * w, int server, int slots )
{
    netcode_server_stop( w->servers[server] );
    netcode_server_start( w->servers[server], slots );
}

/* Connected, and the server knows that the client knows. */
static int world_join( struct world_t * w, int client, uint64_t client_id )
{
    world_connect( w, client, client_id );
    if ( !world_until( w, client, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) )
        return 0;
    world_run( w, w->net->latency_milliseconds > 0.0f ? 2.0 : 0.3 );
    return netcode_client_state( w->clients[client] ) == NETCODE_CLIENT_STATE_CONNECTED;
}

static int64_t server_drops( struct world_t * w, int server, int reason )
{
    struct netcode_server_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_server_stats( w->servers[server], &stats );
    return (int64_t) stats.dropped[reason];
}

static int64_t client_drops( struct world_t * w, int client, int reason )
{
    struct netcode_client_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_client_stats( w->clients[client], &stats );
    return (int64_t) stats.dropped[reason];
}

static struct netcode_server_stats_t server_stats( struct world_t * w, int server )
{
    struct netcode_server_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_server_stats( w->servers[server], &stats );
    return stats;
}

static struct netcode_client_stats_t client_stats( struct world_t * w, int client )
{
    struct netcode_client_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_client_stats( w->clients[client], &stats );
    return stats;
}

static void payload_fill( uint8_t * data, int bytes, int tag )
{
    int i;
    for ( i = 0; i < bytes; i++ )
        data[i] = (uint8_t) ( tag * 131 + i * 7 );
}

static void client_send( struct world_t * w, int client, int bytes, int tag )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    payload_fill( data, bytes, tag );
    netcode_client_send_packet( w->clients[client], data, bytes );
}

static void server_send( struct world_t * w, int server, int slot, int bytes, int tag )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    payload_fill( data, bytes, tag );
    netcode_server_send_packet( w->servers[server], slot, data, bytes );
}

/* Reads and frees all that waits: how many. */
static int client_drain( struct world_t * w, int client )
{
    int count = 0, bytes;
    uint8_t * packet;
    while ( ( packet = netcode_client_receive_packet( w->clients[client], &bytes, NULL ) ) != NULL ) {
        count++;
        netcode_client_free_packet( w->clients[client], packet );
    }
    return count;
}

static int server_drain( struct world_t * w, int server, int slot )
{
    int count = 0, bytes;
    uint8_t * packet;
    while ( ( packet = netcode_server_receive_packet( w->servers[server], slot, &bytes, NULL ) ) != NULL ) {
        count++;
        netcode_server_free_packet( w->servers[server], packet );
    }
    return count;
}

/* The newest recorded datagram of a type from one address to another (NULL: any), or NULL. */
static const struct world_datagram_t * world_last( struct world_t * w, const struct netcode_address_t * from,
                                                   const struct netcode_address_t * to, int type )
{
    int i;
    for ( i = w->records.count - 1; i >= 0; i-- ) {
        const struct world_datagram_t * d = &w->records.items[i];
        if ( d->bytes > 0 && ( d->data[0] & 15 ) == type && ( !from || netcode_address_equal( &d->from, from ) ) &&
             ( !to || netcode_address_equal( &d->to, to ) ) )
            return d;
    }
    return NULL;
}

/* Packets (or bytes) recorded from one address to another, from record `since` on; type -1: all. */
static int64_t world_count( struct world_t * w, int since, const struct netcode_address_t * from,
                            const struct netcode_address_t * to, int type, int in_bytes )
{
    int64_t sum = 0;
    int i;
    for ( i = since; i < w->records.count; i++ ) {
        const struct world_datagram_t * d = &w->records.items[i];
        if ( ( type < 0 || ( d->bytes > 0 && ( d->data[0] & 15 ) == type ) ) &&
             ( !from || netcode_address_equal( &d->from, from ) ) && ( !to || netcode_address_equal( &d->to, to ) ) )
            sum += in_bytes ? d->bytes : 1;
    }
    return sum;
}

/* ---- puppets: clients that do as the test says, written from the standard ---- */

struct puppet_t {
    struct world_t * w;
    int server;
    struct netcode_address_t address;
    struct recipe_t r;
    uint8_t request[REQUEST_BYTES];
    uint64_t sequence; /* of the next packet */
    int seen;          /* records looked at */
    uint8_t challenge[308];
    uint64_t challenge_packet_sequence;
    int challenges;
    int denials;
    int keep_alives; /* but for probes and echoes */
    int probes;      /* and echoes */
    uint64_t probe;  /* the last one */
    int payloads;
    int disconnects;
    int unreadable; /* sent to this address under other keys */
    uint64_t newest_sequence;
    uint32_t client_index;
    uint32_t max_clients;
};

/* Prepares the request again after a change of the recipe. */
static void puppet_mint( struct puppet_t * p )
{
    wire_request( &p->r, p->request );
}

static void puppet_make( struct puppet_t * p, struct world_t * w, int server, uint64_t client_id, const char * address )
{
    memset( p, 0, sizeof( *p ) );
    p->w = w;
    p->server = server;
    p->address = address_of( address );
    p->r = recipe_for( w, client_id );
    p->sequence = 1000;
    p->seen = w->records.count;
    puppet_mint( p );
}

static void puppet_expires( struct puppet_t * p, uint64_t expire )
{
    p->r.expire = expire;
    puppet_mint( p );
}

static void puppet_raw( struct puppet_t * p, const uint8_t * data, int bytes )
{
    world_inject( p->w, &p->address, &p->w->server_addresses[p->server], data, bytes );
}

static void puppet_ask( struct puppet_t * p )
{
    puppet_raw( p, p->request, REQUEST_BYTES );
    p->sequence++;
}

static void puppet_send( struct puppet_t * p, int type, const void * body, int bytes )
{
    uint8_t out[2048];
    puppet_raw( p, out, wire_seal( out, type, p->sequence++, 0, p->r.to_server_key, body, bytes ) );
}

static void puppet_respond( struct puppet_t * p )
{
    puppet_send( p, NETCODE_PACKET_RESPONSE, p->challenge, 308 );
}

static void puppet_say( struct puppet_t * p, int bytes, int tag )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    payload_fill( data, bytes, tag );
    puppet_send( p, NETCODE_PACKET_PAYLOAD, data, bytes );
}

static void puppet_keep_alive( struct puppet_t * p )
{
    uint8_t body[8] = { 0 };
    puppet_send( p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
}

/* Looks at what was sent to its address since the last look. */
static void puppet_poll( struct puppet_t * p )
{
    for ( ; p->seen < p->w->records.count; p->seen++ ) {
        const struct world_datagram_t * d = &p->w->records.items[p->seen];
        uint8_t body[2048];
        int type = 0, bytes;
        uint64_t sequence = 0;
        if ( d->injected || !netcode_address_equal( &d->to, &p->address ) )
            continue;
        bytes = wire_open( d->data, d->bytes, p->r.to_client_key, &type, &sequence, body );
        p->unreadable += bytes < 0;
        if ( bytes < 0 )
            continue;
        p->newest_sequence = sequence;
        if ( type == NETCODE_PACKET_CHALLENGE && bytes == 308 ) {
            memcpy( p->challenge, body, 308 );
            p->challenge_packet_sequence = sequence;
        }
        if ( type == NETCODE_PACKET_KEEP_ALIVE && body[7] & 0x80 ) { /* as a foreign peer, it does not answer */
            p->probe = get( body, 8 );
            p->probes++;
            continue;
        }
        if ( type == NETCODE_PACKET_KEEP_ALIVE ) {
            p->client_index = (uint32_t) get( body, 4 );
            p->max_clients = (uint32_t) get( body + 4, 4 );
        }
        p->challenges += type == NETCODE_PACKET_CHALLENGE;
        p->denials += type == NETCODE_PACKET_DENIED;
        p->keep_alives += type == NETCODE_PACKET_KEEP_ALIVE;
        p->payloads += type == NETCODE_PACKET_PAYLOAD;
        p->disconnects += type == NETCODE_PACKET_DISCONNECT;
    }
}

/* One step of the world, then a look. */
static void puppet_step( struct puppet_t * p )
{
    world_step( p->w );
    puppet_poll( p );
}

static int puppet_challenged( struct puppet_t * p )
{
    puppet_ask( p );
    puppet_step( p );
    return p->challenges > 0;
}

static void puppet_answer( struct puppet_t * p )
{
    puppet_respond( p );
    puppet_step( p );
}

/* Request and response: 1 when the server answered with a keep-alive. */
static int puppet_connect( struct puppet_t * p )
{
    if ( !puppet_challenged( p ) )
        return 0;
    puppet_answer( p );
    return p->keep_alives > 0;
}

/* Once more, whatever it was answered before. */
static int puppet_again( struct puppet_t * p )
{
    p->challenges = p->keep_alives = 0;
    return puppet_connect( p );
}

/* A new one, in the middle of its handshake. */
static int puppet_begin( struct puppet_t * p, struct world_t * w, int server, uint64_t client_id, const char * address )
{
    puppet_make( p, w, server, client_id, address );
    return puppet_challenged( p );
}

/* A new one, connected. */
static int puppet_join( struct puppet_t * p, struct world_t * w, int server, uint64_t client_id, const char * address )
{
    puppet_make( p, w, server, client_id, address );
    return puppet_connect( p );
}

/* ---- and what a malicious server, or a crowd, would send ---- */

/* A datagram to client 0 that looks as if its server had sent it. */
static void inject_to_client( struct world_t * w, const uint8_t * data, int bytes )
{
    world_inject( w, &w->server_addresses[0], &w->client_addresses[0], data, bytes );
}

static void send_to_client( struct world_t * w, const struct recipe_t * r, int type, uint64_t sequence,
                            const void * body, int bytes )
{
    uint8_t out[2048];
    inject_to_client( w, out, wire_seal( out, type, sequence, 0, r->to_client_key, body, bytes ) );
}

/* The sequence of the newest packet that the server sent to client 0. */
static uint64_t newest_to_client( struct world_t * w, const struct recipe_t * r )
{
    uint64_t sequence = 0;
    int i, type;
    uint8_t body[2048];
    for ( i = w->records.count - 1; i >= 0; i-- )
        if ( netcode_address_equal( &w->records.items[i].to, &w->client_addresses[0] ) &&
             wire_open( w->records.items[i].data, w->records.items[i].bytes, r->to_client_key, &type, &sequence,
                        body ) >= 0 )
            return sequence;
    test_fail( __FILE__, __LINE__, "the server sent nothing" );
    return 0;
}

/* Fills the table of used tokens with `count` players of this expire timestamp, and lets them leave. */
static void consume_tokens( struct world_t * w, int count, uint64_t expire, uint64_t first_id )
{
    int i;
    for ( i = 0; i < count; i++ ) {
        struct puppet_t p;
        puppet_make( &p, w, 0, first_id + (uint64_t) i, "10.3.0.1:7000" );
        p.address.port = (uint16_t) ( 7000 + i );
        p.r.expire = expire == FOREVER ? FOREVER : expire + (uint64_t) i;
        puppet_mint( &p );
        REQUIRE( puppet_connect( &p ) );
        puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
        puppet_step( &p );
        REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    }
}

/* ---- what worlds log ---- */

/* Every line that the objects of logged_world() logged. */
static char logged_lines[1 << 16];

static void logged_line( void * context, int level, const char * text )
{
    size_t at = strlen( logged_lines );
    (void) context;
    (void) level;
    test_log_lines++;
    if ( at + strlen( text ) + 2 < sizeof( logged_lines ) )
        snprintf( logged_lines + at, sizeof( logged_lines ) - at, "%s\n", text );
}

/* How often the log says this. */
static int logged_times( const char * text )
{
    int count = 0;
    for ( const char * at = logged_lines; ( at = strstr( at, text ) ) != NULL; at++ )
        count++;
    return count;
}

static struct world_t * logged_world( int level )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.log_callback = w->client_config.log_callback = logged_line;
    logged_lines[0] = 0;
    netcode_log_level( level );
    return w;
}

#endif
