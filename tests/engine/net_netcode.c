/*  Chocolate Doom's network module over netcode.h. It takes the place of the engine's own `net_sdl.c`: the same module,
    under the same name, written from what the engine's headers declare (net_defs.h, net_packet.h) and its callers expect.
    No line of the engine stands here, and no other C file of it is changed; examples/docs/ENGINES.md says what is, and
    why.

        server:  chocolate-server -netkey FILE -netaddress ADDRESS:PORT [-port PORT] [-netprotocol ID]
        client:  chocolate-doom -connect ADDRESS:PORT -nettoken FILE

    -netkey       the private key that the server shares with the web backend: 32 bytes, or the same in hex or base64
    -netaddress   the server's address in tokens; -port is the port to bind, where that differs
    -nettoken     the connect token from the backend: 2048 bytes, or the same in base64
    -netprotocol  unique to the game and its version

    Every datagram of the engine travels inside a netcode connection, queries and rejections included. The client opens
    one with the first packet that it sends to a server; packets wait until it is connected. On the server each session
    is an address of the engine, which compares addresses by their pointers. When a session ends, or none begins, the
    module makes the packet that the engine knows for it: DISCONNECT, or REJECTED with the reason. */

#define NETCODE_IMPLEMENTATION
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wdeclaration-after-statement" /* the engine's rule, for C89 */
#pragma GCC diagnostic ignored "-Wredundant-decls"
#endif
#include "netcode.h"
#include "secret_file.h"

#ifdef _WIN32
#include <ws2tcpip.h>
#else
#include <netdb.h>
#endif

#ifdef __bool_true_false_are_defined
#error "include no <stdbool.h> before the engine's headers: their `boolean` would have another size here"
#endif
#include "doomtype.h"
#include "i_system.h"
#include "m_argv.h"
#include "net_defs.h"
#include "net_io.h"
#include "net_packet.h"
#include "net_sdl.h"

#define DEFAULT_PORT 2342
#define DEFAULT_PROTOCOL_ID 0x1122334455667788ull

/*  The engine knows 16 nodes. The other slots are for clients that only ask for the server's state, and for sessions
    that the engine has finished with. */
#define SLOTS ( 2 * MAXNETNODES )
#ifndef UNUSED_SECONDS
#define UNUSED_SECONDS 10.0 /* a session that the engine holds no client for gives its slot back */
#endif

/* The engine gives up a server that it has not heard from for 5 seconds; the player should get the reason before. */
#ifndef PATIENCE_SECONDS
#define PATIENCE_SECONDS 4.5
#endif

/* Packets that wait until the client is connected. The engine repeats its first one each second. */
#define MAX_WAITING 4

/*  The engine's larger packets (resent tics of eight players) exceed a payload of 1200 bytes. So each payload begins with
    a byte: the packet's number (4 bits), whether this is its last part (1), the part's index (3). A part that is lost
    loses its packet, as a lost fragment of IP does: the engine repeats what it misses. */
#define PART_BYTES ( NETCODE_MAX_PACKET_SIZE - 1 )
#define MAX_PARTS 8
#define MAX_ENGINE_BYTES ( MAX_PARTS * PART_BYTES )
#define LAST_PART 0x08
#define PART_INDEX 0x07

#define TOKEN_FILE_BYTES 4096

struct peer_t {
    net_addr_t net_addr; /* what the engine holds; the first member, so that both have the same address */
    struct peer_t * next;
    struct netcode_address_t address;
    int open;              /* there is a connection, or one is being made */
    int connected;         /* it was connected */
    int engine_knows;      /* the last packet from there ended the engine's own connection */
    int notice;            /* the next packet for the engine is one that the module makes: NET_PACKET_TYPE_..., or 0 */
    double since;          /* when the client began to connect; when the server's engine released the address */
    char reason[256];      /* why it could not connect, or ended */
    uint8_t packet_number; /* of the next packet that is sent */

    /* A packet that arrives in parts. */
    uint8_t * joined; /* MAX_ENGINE_BYTES; allocated for the first such packet */
    int joined_bytes;
    int joined_number;
    int joined_parts; /* 0: none */

    /* Of a server. */
    int client_index;
    uint64_t session;

    /* Of a client. */
    struct netcode_client_t * client;
    net_packet_t * waiting[MAX_WAITING];
    int num_waiting;
};

static struct peer_t * peers; /* those that the engine holds, and on a server all sessions */
static struct peer_t * slots[SLOTS];
static struct netcode_server_t * server;
static int initialized;
static int in_round; /* the engine receives until nothing is left: that is one round, with one update */
static int port = DEFAULT_PORT;
static uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
static int have_token;

/* ---- peers ---- */

static struct peer_t * peer_of( net_addr_t * addr )
{
    return (struct peer_t *) addr;
}

static struct peer_t * peer_add( const struct netcode_address_t * address )
{
    struct peer_t * peer = calloc( 1, sizeof( *peer ) );

    if ( !peer )
        I_Error( "netcode: no memory for another address" );
    peer->net_addr.module = &net_sdl_module;
    peer->net_addr.handle = peer;
    peer->address = *address;
    peer->since = netcode_time();
    peer->next = peers;
    peers = peer;
    return peer;
}

static void peer_remove( struct peer_t * peer )
{
    struct peer_t ** at = &peers;

    while ( *at && *at != peer )
        at = &( *at )->next;
    if ( !*at )
        I_Error( "netcode: the engine frees an address that it does not have" );
    *at = peer->next;
    netcode_client_destroy( peer->client );
    for ( int i = 0; i < peer->num_waiting; i++ )
        NET_FreePacket( peer->waiting[i] );
    free( peer->joined );
    free( peer );
}

static const char * peer_name( const struct peer_t * peer )
{
    static char name[NETCODE_MAX_ADDRESS_STRING_LENGTH];

    return netcode_address_to_string( &peer->address, name );
}

/*  The connection has ended, or there will be none: the engine is notified in the order of its packets. Not where it
    has just ended its own connection there: a second DISCONNECT makes it wait for five seconds more. */
static void peer_end( struct peer_t * peer, const char * reason )
{
    peer->open = 0;
    if ( !peer->engine_knows )
        peer->notice = peer->connected ? NET_PACKET_TYPE_DISCONNECT : NET_PACKET_TYPE_REJECTED;
    snprintf( peer->reason, sizeof( peer->reason ), "%s", reason );
}

/* The types are in network order, the first byte zero; only those without content are of interest. */
static int is_end( const net_packet_t * packet )
{
    return packet->len == 2 && packet->data[0] == 0 &&
           ( packet->data[1] == NET_PACKET_TYPE_DISCONNECT || packet->data[1] == NET_PACKET_TYPE_DISCONNECT_ACK );
}

/* ---- parts ---- */

static void send_payload( struct peer_t * peer, const uint8_t * data, int bytes )
{
    if ( server )
        netcode_server_send_packet_to_session( server, peer->client_index, peer->session, data, bytes );
    else
        netcode_client_send_packet( peer->client, data, bytes );
}

static void send_parts( struct peer_t * peer, const uint8_t * data, int bytes )
{
    uint8_t payload[NETCODE_MAX_PACKET_SIZE];
    uint8_t number = (uint8_t) ( peer->packet_number++ << 4 );
    int parts = ( bytes + PART_BYTES - 1 ) / PART_BYTES;

    for ( int part = 0; part < parts; part++ ) {
        int part_bytes = part == parts - 1 ? bytes - part * PART_BYTES : PART_BYTES;
        payload[0] = (uint8_t) ( number | ( part == parts - 1 ? LAST_PART : 0 ) | part );
        memcpy( payload + 1, data + part * PART_BYTES, (size_t) part_bytes );
        send_payload( peer, payload, part_bytes + 1 );
    }
}

static net_packet_t * copy_packet( const uint8_t * data, int bytes )
{
    net_packet_t * packet = NET_NewPacket( bytes );

    memcpy( packet->data, data, (size_t) bytes );
    packet->len = (size_t) bytes;
    return packet;
}

/* The packet that this payload completes, or NULL. */
static net_packet_t * join_parts( struct peer_t * peer, const uint8_t * payload, int bytes )
{
    int number = payload[0] >> 4, index = payload[0] & PART_INDEX, last = payload[0] & LAST_PART;
    int part_bytes = bytes - 1;

    if ( part_bytes < 1 || ( !last && part_bytes != PART_BYTES ) )
        return NULL;
    if ( index == 0 && last )
        return copy_packet( payload + 1, part_bytes );

    if ( !peer->joined && !( peer->joined = malloc( MAX_ENGINE_BYTES ) ) )
        return NULL;
    if ( index == 0 ) {
        peer->joined_number = number;
        peer->joined_parts = peer->joined_bytes = 0;
    } else if ( peer->joined_parts != index || peer->joined_number != number ) {
        peer->joined_parts = 0; /* one before it was lost, or was overtaken */
        return NULL;
    }
    memcpy( peer->joined + peer->joined_bytes, payload + 1, (size_t) part_bytes );
    peer->joined_bytes += part_bytes;
    peer->joined_parts++;
    if ( !last )
        return NULL;
    peer->joined_parts = 0;
    return copy_packet( peer->joined, peer->joined_bytes );
}

/* ---- options ---- */

static const char * option( const char * name )
{
    int at = M_CheckParmWithArgs( name, 1 );

    return at > 0 ? myargv[at + 1] : NULL;
}

/* 1 to 65535, or 0. */
static int parse_port( const char * text )
{
    char * end = NULL;
    unsigned long number = text[0] >= '0' && text[0] <= '9' ? strtoul( text, &end, 10 ) : 0;

    return number <= 65535 && end && !*end ? (int) number : 0;
}

static void read_port( void )
{
    const char * text = option( "-port" );

    if ( text && !( port = parse_port( text ) ) )
        I_Error( "netcode: -port %s is no port", text );
}

static uint64_t read_protocol_id( void )
{
    const char * text = option( "-netprotocol" );
    char * end = NULL;
    uint64_t id = text ? strtoull( text, &end, 0 ) : DEFAULT_PROTOCOL_ID;

    if ( text && ( !*text || *end ) )
        I_Error( "netcode: -netprotocol %s is no number", text );
    return id;
}

static void read_token( const char * path )
{
    char data[TOKEN_FILE_BYTES];
    FILE * file = fopen( path, "rb" );
    size_t bytes = file ? fread( data, 1, sizeof( data ), file ) : 0, token_bytes = 0;
    const char * end = NULL;

    if ( !file )
        I_Error( "netcode: the token file %s can not be opened: %s", path, strerror( errno ) );
    fclose( file );
    if ( bytes == NETCODE_CONNECT_TOKEN_BYTES ) {
        memcpy( token, data, NETCODE_CONNECT_TOKEN_BYTES );
        have_token = 1;
    } else {
        have_token = sodium_base642bin( token, sizeof( token ), data, bytes, " \t\r\n", &token_bytes, &end,
                                        sodium_base64_VARIANT_ORIGINAL ) == 0 &&
                     token_bytes == NETCODE_CONNECT_TOKEN_BYTES && end == data + bytes;
    }
    sodium_memzero( data, sizeof( data ) );
    if ( !have_token )
        I_Error( "netcode: the file %s holds no connect token: 2048 bytes, or the same in base64", path );
}

static void log_line( void * context, int level, const char * text )
{
    (void) context;
    (void) level;
    printf( "netcode: %s\n", text );
}

/* ---- client ---- */

/* 1 if the token names this server. */
static int token_names( const struct netcode_address_t * address )
{
    struct netcode_connect_token_info_t info;

    if ( netcode_connect_token_info( token, &info ) != NETCODE_OK )
        return 1; /* netcode_client_connect says what is wrong with it */
    for ( int i = 0; i < info.num_server_addresses; i++ ) {
        if ( netcode_address_equal( address, &info.server_addresses[i] ) )
            return 1;
    }
    return 0;
}

static void client_open( struct peer_t * peer )
{
    struct netcode_client_config_t config;

    peer->since = netcode_time();
    if ( !have_token ) {
        peer_end( peer,
                  "this server accepts players with a connect token only: get one, and start with -nettoken FILE" );
        return;
    }
    if ( !token_names( &peer->address ) ) {
        peer_end( peer, "the connect token is for another server" );
        return;
    }
    netcode_default_client_config( &config );
    config.events = 1;
    config.log_callback = log_line;
    peer->client =
        netcode_client_create( peer->address.type == NETCODE_ADDRESS_IPV6 ? "::" : "0.0.0.0", &config, netcode_time() );
    if ( !peer->client ) {
        peer_end( peer, netcode_client_create_error_text( netcode_client_create_error() ) );
        return;
    }
    peer->open = 1;
    netcode_client_connect( peer->client, token );
}

static void client_end( struct peer_t * peer )
{
    struct netcode_client_report_t report;

    netcode_client_report( peer->client, &report );
    netcode_client_disconnect( peer->client );
    if ( report.state == NETCODE_CLIENT_STATE_DISCONNECTED )
        peer_end( peer, "the server ended the connection" );
    else if ( report.state > NETCODE_CLIENT_STATE_DISCONNECTED )
        peer_end( peer, "no answer yet: the server is down, a firewall is in between, or it refuses the token" );
    else
        peer_end( peer, report.text );
}

static void client_send( struct peer_t * peer, net_packet_t * packet )
{
    if ( !peer->client && !peer->notice && !peer->reason[0] )
        client_open( peer );
    if ( peer->connected )
        send_parts( peer, packet->data, (int) packet->len );
    else if ( peer->open && peer->num_waiting < MAX_WAITING )
        peer->waiting[peer->num_waiting++] = NET_PacketDup( packet );
}

static void client_connected( struct peer_t * peer )
{
    peer->connected = 1;
    for ( int i = 0; i < peer->num_waiting; i++ ) {
        send_parts( peer, peer->waiting[i]->data, (int) peer->waiting[i]->len );
        NET_FreePacket( peer->waiting[i] );
    }
    peer->num_waiting = 0;
}

static void client_update( double time )
{
    for ( struct peer_t * peer = peers; peer; peer = peer->next ) {
        if ( peer->open )
            netcode_client_update( peer->client, time );
        if ( peer->open && !peer->connected && time - peer->since > PATIENCE_SECONDS &&
             netcode_client_state( peer->client ) != NETCODE_CLIENT_STATE_CONNECTED )
            client_end( peer );
    }
}

/* The next packet that came from this server, or NULL. */
static net_packet_t * client_receive( struct peer_t * peer )
{
    struct netcode_event_t event;
    net_packet_t * packet = NULL;

    while ( peer->open && !packet && netcode_client_next_event( peer->client, &event ) ) {
        if ( event.type == NETCODE_EVENT_CONNECTED )
            client_connected( peer );
        if ( event.type == NETCODE_EVENT_DISCONNECTED )
            client_end( peer );
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            packet = join_parts( peer, event.data, event.bytes );
            netcode_client_free_packet( peer->client, event.data );
        }
    }
    return packet;
}

/* ---- server ---- */

static void server_update( double time )
{
    netcode_server_update( server, time );
    for ( struct peer_t * peer = peers; peer; peer = peer->next ) {
        if ( peer->open && peer->net_addr.refcount <= 0 && time - peer->since > UNUSED_SECONDS &&
             netcode_server_client_session( server, peer->client_index ) == peer->session )
            netcode_server_disconnect_client( server, peer->client_index );
    }
}

static void server_connected( const struct netcode_event_t * event )
{
    static const struct netcode_address_t gone; /* the session ended before this event was read */
    int there = netcode_server_client_session( server, event->client_index ) == event->session;
    struct peer_t * peer = peer_add( there ? netcode_server_client_address( server, event->client_index ) : &gone );

    peer->open = peer->connected = 1;
    peer->client_index = event->client_index;
    peer->session = event->session;
    slots[event->client_index] = peer;
}

/* 1 if the engine is to be notified. The library's log says why it ended. */
static int server_disconnected( struct peer_t * peer )
{
    slots[peer->client_index] = NULL;
    if ( peer->net_addr.refcount <= 0 ) {
        peer_remove( peer );
        return 0;
    }
    peer_end( peer, "" );
    return peer->notice;
}

static net_packet_t * server_receive( struct peer_t ** from )
{
    struct netcode_event_t event;
    net_packet_t * packet = NULL;

    while ( !packet && netcode_server_next_event( server, &event ) ) {
        struct peer_t * peer = slots[event.client_index];
        if ( event.type == NETCODE_EVENT_CONNECTED ) {
            server_connected( &event );
        } else if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            packet = peer && peer->session == event.session ? join_parts( peer, event.data, event.bytes ) : NULL;
            netcode_server_free_packet( server, event.data );
            *from = peer;
        } else if ( peer && peer->session == event.session && event.type == NETCODE_EVENT_MOVED ) {
            peer->address = *netcode_server_client_address( server, event.client_index );
        } else if ( peer && peer->session == event.session && event.type == NETCODE_EVENT_DISCONNECTED ) {
            if ( server_disconnected( peer ) )
                return NULL; /* before the packets of the others */
        }
    }
    return packet;
}

/* ---- the module ---- */

static void start_library( void )
{
    if ( netcode_init() != NETCODE_OK )
        I_Error( "netcode: libsodium can not be initialized" );
    initialized = 1;
}

static boolean module_init_client( void )
{
    const char * path = option( "-nettoken" );

    if ( initialized )
        return true;
    start_library();
    read_port();
    if ( path )
        read_token( path );
    return true;
}

static boolean module_init_server( void )
{
    const char *key_path = option( "-netkey" ), *address = option( "-netaddress" );
    struct netcode_server_config_t config;
    char bind_address[32];

    if ( initialized )
        return true;
    start_library();
    read_port();
    if ( !key_path || !address )
        I_Error( "netcode: a server needs -netkey FILE, the private key that it shares with the backend, and "
                 "-netaddress ADDRESS:PORT, its address in the backend's tokens" );
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = read_protocol_id();
    if ( !secret_read_key( "netcode", key_path, config.private_key ) )
        I_Error( "netcode: no private key" );
    snprintf( bind_address, sizeof( bind_address ), address[0] == '[' ? "[::]:%d" : "0.0.0.0:%d", port );
    if ( option( "-port" ) )
        config.bind_address = bind_address;
    config.replace_existing_clients = 1; /* a player whose game crashed is back at once */
    config.roaming = 1;
    config.log_callback = log_line;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    server = netcode_server_create( address, &config, netcode_time() );
    sodium_memzero( config.private_key, sizeof( config.private_key ) );
    if ( !server )
        I_Error( "netcode: no server at %s: %s", address,
                 netcode_server_create_error_text( netcode_server_create_error() ) );
    netcode_server_start( server, SLOTS );
    if ( !netcode_server_running( server ) )
        I_Error( "netcode: no memory for %d slots", SLOTS );
    return true;
}

static void module_send_packet( net_addr_t * addr, net_packet_t * packet )
{
    struct peer_t * peer = peer_of( addr );

    if ( addr == &net_broadcast_addr ) {
        fprintf( stderr, "netcode: servers do not answer to all of a network: the backend knows which there are\n" );
        return;
    }
    if ( packet->len < 1 || packet->len > MAX_ENGINE_BYTES ) {
        fprintf( stderr, "netcode: a packet of %u bytes is dropped: from 1 to %d can be sent\n",
                 (unsigned int) packet->len, MAX_ENGINE_BYTES );
        return;
    }
    if ( !server )
        client_send( peer, packet );
    else if ( peer->open )
        send_parts( peer, packet->data, (int) packet->len );
}

/* The packet that the module makes for a connection that has ended, if there is one. */
static net_packet_t * receive_end( struct peer_t ** from )
{
    for ( struct peer_t * peer = peers; peer; peer = peer->next ) {
        net_packet_t * packet;
        if ( !peer->notice )
            continue;
        if ( !server )
            fprintf( stderr, "netcode: %s: %s\n", peer_name( peer ), peer->reason );
        packet = NET_NewPacket( (int) sizeof( peer->reason ) + 2 );
        NET_WriteInt16( packet, (unsigned int) peer->notice );
        if ( peer->notice == NET_PACKET_TYPE_REJECTED )
            NET_WriteString( packet, peer->reason );
        peer->notice = 0;
        *from = peer;
        return packet;
    }
    return NULL;
}

static net_packet_t * receive( struct peer_t ** from )
{
    net_packet_t * packet = receive_end( from );

    if ( packet )
        return packet;
    if ( server ) {
        packet = server_receive( from );
        return packet ? packet : receive_end( from );
    }
    for ( struct peer_t * peer = peers; peer; peer = peer->next ) {
        packet = client_receive( peer );
        *from = peer;
        if ( packet )
            return packet;
    }
    return receive_end( from );
}

static boolean module_recv_packet( net_addr_t ** addr, net_packet_t ** packet )
{
    struct peer_t * from = NULL;

    if ( !in_round && server )
        server_update( netcode_time() );
    if ( !in_round && !server )
        client_update( netcode_time() );
    in_round = 1;
    *packet = receive( &from );
    if ( !*packet ) {
        in_round = 0;
        return false;
    }
    from->engine_knows = is_end( *packet );
    *addr = &from->net_addr;
    return true;
}

static void module_addr_to_string( net_addr_t * addr, char * buffer, int buffer_len )
{
    snprintf( buffer, (size_t) buffer_len, "%s", peer_name( peer_of( addr ) ) );
}

/* The engine holds the address no more. A client's connection ends here; a server's session may ask again. */
static void module_free_address( net_addr_t * addr )
{
    struct peer_t * peer = peer_of( addr );

    if ( server && peer->open )
        peer->since = netcode_time();
    else
        peer_remove( peer );
}

/*  Of a name's addresses the one that the token names, or else the first. A name may have addresses of both kinds, or of
    several machines, where the token is for one. 0 if there is none. */
static int choose_address( const struct addrinfo * found, int number, struct netcode_address_t * address )
{
    char host[NI_MAXHOST];
    int good = 0;

    for ( ; found; found = found->ai_next ) {
        struct netcode_address_t one;
        if ( getnameinfo( found->ai_addr, found->ai_addrlen, host, sizeof( host ), NULL, 0, NI_NUMERICHOST ) != 0 ||
             netcode_parse_address( host, &one ) != NETCODE_OK )
            continue;
        one.port = (uint16_t) number;
        if ( !good )
            *address = one;
        good = 1;
        if ( token_names( &one ) ) {
            *address = one;
            break;
        }
    }
    return good;
}

/* Reads "host", "host:port", "1.2.3.4:5" or "[::1]:5". 0 if there is no such host. */
static int resolve( const char * text, struct netcode_address_t * address )
{
    const char * colon = strrchr( text, ':' );
    int number = colon ? parse_port( colon + 1 ) : port, good = 0;
    struct addrinfo hints, *found = NULL;
    char host[NI_MAXHOST];

    if ( netcode_parse_address( text, address ) == NETCODE_OK ) {
        address->port = address->port ? address->port : (uint16_t) port;
        return 1;
    }
    snprintf( host, sizeof( host ), "%.*s", colon ? (int) ( colon - text ) : (int) sizeof( host ) - 1, text );
    memset( &hints, 0, sizeof( hints ) );
    hints.ai_socktype = SOCK_DGRAM;
    if ( !number || !host[0] || getaddrinfo( host, NULL, &hints, &found ) != 0 )
        return 0;
    good = choose_address( found, number, address );
    freeaddrinfo( found );
    return good;
}

/* A server sends to its clients only, so it has no use for names: the master server does not speak netcode. */
static net_addr_t * module_resolve_address( const char * text )
{
    struct netcode_address_t address;

    if ( server || !resolve( text, &address ) )
        return NULL;
    for ( struct peer_t * peer = peers; peer; peer = peer->next ) {
        if ( netcode_address_equal( &peer->address, &address ) )
            return &peer->net_addr;
    }
    return &peer_add( &address )->net_addr;
}

net_module_t net_sdl_module = {
    module_init_client,    module_init_server,  module_send_packet,     module_recv_packet,
    module_addr_to_string, module_free_address, module_resolve_address,
};
