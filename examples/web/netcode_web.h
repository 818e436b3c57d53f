/*  netcode.h's network in a web page: a netcode_socket_t over Module.netcodeTransport. Include it behind netcode.h, in the
    program unit that creates the client, and compile as `sh examples/web/build.sh --flags` says (NETCODE_NO_SOCKETS).

        #define NETCODE_IMPLEMENTATION
        #include "netcode.h"
        #include "netcode_web.h"

        struct netcode_socket_t socket;
        netcode_web_socket( &socket );
        config.socket = &socket;                                   // of a client config; any address does for create
        client = netcode_client_create( "0.0.0.0", &config, time );

        netcode_web_servers( token, text, sizeof( text ) );        // before each connect
        netcode_client_connect( client, token );

    JavaScript sets Module.netcodeTransport, before the first connect, to an object with

        send( bytes, server )    one datagram: a view of the program's memory, to be copied; and the index of the server
                                 in the token. Returns false if it was refused, which counts as a send error
        receive()                { data: Uint8Array, server: index }, or null if none waits. It may return the same
                                 object each time: it is read at once
        rebind()                 optional: the client hears nothing, so the path may be gone. Returns true if a fresh one
                                 is taken

    The sockets know servers by their place in the token that netcode_web_servers read last, so one module has one
    client at a time. To leave one token's server for another's: netcode_client_disconnect, then netcode_web_servers,
    then netcode_client_connect; the last packets of the old session would else have no address. */

#ifndef NETCODE_WEB_H
#define NETCODE_WEB_H

#if !defined( NETCODE_SINGLE_FILE_H ) || !defined( __EMSCRIPTEN__ )
#error "include netcode_web.h behind netcode.h, and compile it with emcc"
#endif

#include <emscripten.h>
#include <string.h>

/* A line for each of the token's servers: what netcode_web_servers writes at most. */
#define NETCODE_WEB_SERVERS_BYTES ( NETCODE_MAX_SERVERS_PER_CONNECT * 64 )

static struct {
    struct netcode_address_t addresses[NETCODE_MAX_SERVERS_PER_CONNECT];
    int count;
} netcode_web;

/* clang-format off */

/* 1 if the transport has accepted it. An exception may not pass through C: netcode.h's calls have to return. */
EM_JS( int, netcode_web_js_send, ( const uint8_t * data, int bytes, int server ), {
    try {
        return Module.netcodeTransport && Module.netcodeTransport.send( HEAPU8.subarray( data, data + bytes ), server ) !== false ? 1 : 0;
    } catch ( error ) {
        console.error( error );
        return 0;
    }
} );

/* Copies as much as fits, and returns the datagram's own size, or -1 where none waits. */
EM_JS( int, netcode_web_js_receive, ( uint8_t * data, int capacity, int * server ), {
    try {
        const packet = Module.netcodeTransport ? Module.netcodeTransport.receive() : null;
        if ( !packet )
            return -1;
        const bytes = packet.data.length;
        HEAPU8.set( bytes > capacity ? packet.data.subarray( 0, capacity ) : packet.data, data );
        HEAP32[server >> 2] = packet.server;
        return bytes;
    } catch ( error ) {
        console.error( error );
        return -1;
    }
} );

EM_JS( int, netcode_web_js_rebind, (), {
    try {
        return Module.netcodeTransport && Module.netcodeTransport.rebind && Module.netcodeTransport.rebind() ? 1 : 0;
    } catch ( error ) {
        console.error( error );
        return 0;
    }
} );

/* clang-format on */

static int netcode_web_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int sent = 0;
    (void) context;
    for ( int i = 0; i < count; i++ )
        for ( int server = 0; server < netcode_web.count; server++ )
            if ( netcode_address_equal( &datagrams[i].address, &netcode_web.addresses[server] ) ) {
                sent += netcode_web_js_send( datagrams[i].data, datagrams[i].bytes, server );
                break;
            }
    return sent;
}

static int netcode_web_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int filled = 0;
    (void) context;
    while ( filled < count ) {
        struct netcode_datagram_t * datagram = &datagrams[filled];
        int server = -1, bytes = netcode_web_js_receive( datagram->data, datagram->capacity, &server );
        if ( bytes < 0 )
            break;
        if ( server < 0 || server >= netcode_web.count )
            continue; /* from none of the token's servers: the other side of the transport is not trusted */
        datagram->address = netcode_web.addresses[server];
        datagram->status = bytes > datagram->capacity ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK;
        datagram->bytes = bytes > datagram->capacity ? datagram->capacity : bytes;
        datagram->error = 0;
        filled++;
    }
    return filled;
}

/* A page's thread must not sleep: the browser calls the program again when it is time. */
static void netcode_web_wait( void * context, double seconds )
{
    (void) context;
    (void) seconds;
}

static int netcode_web_rebind( void * context )
{
    (void) context;
    return netcode_web_js_rebind();
}

/* Fills a socket for netcode_client_config_t. */
static void netcode_web_socket( struct netcode_socket_t * socket )
{
    memset( socket, 0, sizeof( *socket ) );
    socket->send = netcode_web_send;
    socket->receive = netcode_web_receive;
    socket->wait = netcode_web_wait;
    socket->rebind = netcode_web_rebind;
}

/*  Remembers the servers of a connect token (NETCODE_CONNECT_TOKEN_BYTES) and writes their addresses as lines, in the
    token's order, for the transport to open; NETCODE_WEB_SERVERS_BYTES are enough. JavaScript may call it too: it is
    exported. Returns their number; 0 if the token can not be read or `capacity` is too small, and nothing changes. */
EMSCRIPTEN_KEEPALIVE int netcode_web_servers( const uint8_t * token, char * out, int capacity )
{
    struct netcode_connect_token_info_t info;
    char line[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int at = 0;
    if ( capacity > 0 )
        out[0] = 0;
    if ( netcode_connect_token_info( token, &info ) != NETCODE_OK )
        return 0;

    for ( int i = 0; i < info.num_server_addresses; i++ ) {
        int bytes = (int) strlen( netcode_address_to_string( &info.server_addresses[i], line ) );
        if ( bytes + 2 > capacity - at ) {
            if ( capacity > 0 )
                out[0] = 0;
            return 0;
        }
        memcpy( out + at, line, (size_t) bytes );
        out[at + bytes] = '\n';
        out[at + bytes + 1] = 0;
        at += bytes + 1;
    }

    netcode_web.count = info.num_server_addresses;
    memcpy( netcode_web.addresses, info.server_addresses, sizeof( netcode_web.addresses ) );
    return netcode_web.count;
}

#endif
