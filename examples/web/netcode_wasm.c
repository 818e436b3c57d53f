/*  The library as a module for web pages: one client, with messages if wanted, behind calls that JavaScript can make.
    netcode.mjs is the other half, which checks every argument; a page uses that one. build.sh compiles both.

    Numbers go in as arguments and come out in `result` (32-bit words) or `numbers` (doubles); bytes go in through `input`,
    and come out as addresses that stay valid until the next call of the same function. Nothing is allocated after create. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include "netcode_web.h"

#include <emscripten.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 8, NUMBERS = 40 };

static struct {
    struct netcode_client_t * client;
    struct netcode_messages_t * messages;
    double time;        /* of the last update */
    uint8_t * payload;  /* given to JavaScript by the last receive, and freed by the next */
    uint8_t * input;    /* JavaScript writes here what is sent */
    int input_capacity; /* a payload's size, or the largest message's */
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char servers[NETCODE_WEB_SERVERS_BYTES];
    int32_t result[RESULTS];
    double numbers[NUMBERS];
    struct netcode_client_report_t report;
} app;

/* clang-format off */
EM_JS( void, js_log, ( int level, const char * text ), {
    if ( Module.netcodeLog )
        Module.netcodeLog( level, UTF8ToString( text ) );
} );
/* clang-format on */

static void on_log( void * context, int level, const char * text )
{
    (void) context;
    js_log( level, text );
}

static void destroy( void )
{
    if ( app.payload )
        netcode_client_free_packet( app.client, app.payload );
    netcode_messages_destroy( app.messages );
    netcode_client_destroy( app.client );
    if ( app.input )
        sodium_memzero( app.input, (size_t) app.input_capacity );
    free( app.input );
    sodium_memzero( &app, sizeof( app ) );
}

/*  `channels` 0: no messages, payloads only. 1 if all is there. A page's module has one client, so the memory that this
    takes is all that it will ever take. */
EMSCRIPTEN_KEEPALIVE int netcode_wasm_create( double time, int log_level, int channels, int max_message_bytes )
{
    struct netcode_client_config_t config;
    struct netcode_socket_t socket;
    if ( app.client || netcode_init() != NETCODE_OK )
        return 0;

    netcode_log_level( log_level );
    netcode_web_socket( &socket );
    netcode_default_client_config( &config );
    config.socket = &socket;
    config.log_callback = on_log;
    app.time = time;
    app.client = netcode_client_create( "0.0.0.0", &config, time );
    app.input_capacity = NETCODE_MAX_PACKET_SIZE;

    if ( channels > 0 ) {
        struct netcode_messages_config_t messages;
        netcode_default_messages_config( &messages );
        messages.channels = channels;
        messages.max_message_bytes = max_message_bytes;
        app.messages = netcode_messages_create( &messages, time );
        if ( max_message_bytes > app.input_capacity )
            app.input_capacity = max_message_bytes;
    }

    app.input = (uint8_t *) malloc( (size_t) app.input_capacity );
    if ( app.client && app.input && ( app.messages || channels <= 0 ) )
        return 1;
    destroy();
    netcode_term();
    return 0;
}

EMSCRIPTEN_KEEPALIVE void netcode_wasm_destroy( void )
{
    destroy();
    netcode_term();
}

EMSCRIPTEN_KEEPALIVE uint8_t * netcode_wasm_token( void )
{
    return app.token;
}

EMSCRIPTEN_KEEPALIVE uint8_t * netcode_wasm_input( void )
{
    return app.input;
}

EMSCRIPTEN_KEEPALIVE int32_t * netcode_wasm_result( void )
{
    return app.result;
}

/* The addresses of the token that was written to netcode_wasm_token, as lines; NULL if it can not be read. */
EMSCRIPTEN_KEEPALIVE const char * netcode_wasm_servers( void )
{
    return netcode_web_servers( app.token, app.servers, (int) sizeof( app.servers ) ) > 0 ? app.servers : NULL;
}

/* Connects with that token, of which no copy is left outside of the client. */
EMSCRIPTEN_KEEPALIVE void netcode_wasm_connect( void )
{
    netcode_client_connect( app.client, app.token );
    sodium_memzero( app.token, sizeof( app.token ) );
}

EMSCRIPTEN_KEEPALIVE void netcode_wasm_flush( void )
{
    if ( app.messages )
        netcode_messages_push_to_client( app.messages, app.client, app.time );
    netcode_client_flush( app.client );
}

EMSCRIPTEN_KEEPALIVE int netcode_wasm_update( double time )
{
    app.time = time;
    netcode_client_update( app.client, time );
    if ( app.messages )
        netcode_messages_pull_from_client( app.messages, app.client, time );
    netcode_wasm_flush();
    return netcode_client_state( app.client );
}

EMSCRIPTEN_KEEPALIVE int netcode_wasm_state( void )
{
    return netcode_client_state( app.client );
}

EMSCRIPTEN_KEEPALIVE int netcode_wasm_client_index( void )
{
    return netcode_client_index( app.client );
}

EMSCRIPTEN_KEEPALIVE int netcode_wasm_max_clients( void )
{
    return netcode_client_max_clients( app.client );
}

EMSCRIPTEN_KEEPALIVE void netcode_wasm_send( int bytes )
{
    netcode_client_send_packet( app.client, app.input, bytes );
}

/* The oldest payload, its size in result[0]; NULL if there is none. */
EMSCRIPTEN_KEEPALIVE uint8_t * netcode_wasm_receive( void )
{
    int bytes = 0;
    if ( app.payload )
        netcode_client_free_packet( app.client, app.payload );
    app.payload = netcode_client_receive_packet( app.client, &bytes, NULL );
    app.result[0] = bytes;
    return app.payload;
}

/* NETCODE_OK, or NETCODE_MESSAGES_FULL and so on. `receipt` is a whole number; 0 is none. */
EMSCRIPTEN_KEEPALIVE int netcode_wasm_send_message( int channel, int kind, int bytes, double ttl_seconds,
                                                    double receipt )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = channel;
    message.kind = kind;
    message.data = app.input;
    message.bytes = bytes;
    message.ttl_seconds = ttl_seconds;
    message.receipt = (uint64_t) receipt;
    return netcode_messages_send_message( app.messages, &message );
}

/* 1: result has channel, kind, bytes and the address of the message's data. */
EMSCRIPTEN_KEEPALIVE int netcode_wasm_receive_message( void )
{
    struct netcode_message_t message;
    if ( !netcode_messages_receive( app.messages, &message ) )
        return 0;
    app.result[0] = message.channel;
    app.result[1] = message.kind;
    app.result[2] = message.bytes;
    app.result[3] = (int32_t) (intptr_t) message.data;
    return 1;
}

/* 1: result has type, channel, kind, bytes, bytes_done and reason; numbers has the receipt. */
EMSCRIPTEN_KEEPALIVE double * netcode_wasm_message_event( void )
{
    struct netcode_messages_event_t event;
    if ( !netcode_messages_event( app.messages, &event ) )
        return NULL;
    app.result[0] = event.type;
    app.result[1] = event.channel;
    app.result[2] = event.kind;
    app.result[3] = event.bytes;
    app.result[4] = event.bytes_done;
    app.result[5] = event.reason;
    app.numbers[0] = (double) event.receipt;
    return app.numbers;
}

/* netcode.mjs has the names of these numbers in the same order. */
EMSCRIPTEN_KEEPALIVE double * netcode_wasm_stats( void )
{
    struct netcode_client_stats_t stats;
    double * number = app.numbers;
    double sent = 0.0, received = 0.0, dropped = 0.0;
    netcode_client_stats( app.client, &stats );
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ ) {
        sent += (double) stats.packets_sent[i];
        received += (double) stats.packets_received[i];
    }
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        dropped += (double) stats.dropped[i];

    *number++ = sent;
    *number++ = received;
    *number++ = dropped;
    *number++ = (double) stats.bytes_sent;
    *number++ = (double) stats.bytes_received;
    *number++ = (double) stats.send_errors;
    *number++ = (double) stats.connects;
    *number++ = (double) stats.disconnects;
    *number++ = (double) stats.rebinds;
    *number++ = stats.round_trip_seconds;
    *number++ = stats.round_trip_lowest_seconds;
    *number++ = stats.round_trip_variation_seconds;
    *number++ = (double) stats.packets_lost;
    *number++ = (double) stats.packets_reordered;
    *number++ = stats.loss_share;
    *number++ = (double) stats.packets_queued;
    if ( app.messages ) {
        struct netcode_messages_stats_t messages;
        netcode_messages_stats( app.messages, &messages );
        *number++ = (double) messages.messages_sent;
        *number++ = (double) messages.messages_received;
        *number++ = (double) messages.reliable_retries_total;
        *number++ = messages.rtt;
        *number++ = messages.ping;
        *number++ = messages.loss_sent;
        *number++ = messages.loss_received;
        *number++ = messages.send_rate;
        *number++ = messages.send_buffer_used;
        *number++ = messages.receive_buffer_used;
    }
    return app.numbers;
}

/*  Why it does not connect: returns the sentence. result: state, servers in the token, the index of the one that is tried,
    and how many packets of it were dropped since the last accepted one; numbers: the seconds that the token has left. */
EMSCRIPTEN_KEEPALIVE const char * netcode_wasm_report( void )
{
    netcode_client_report( app.client, &app.report );
    app.result[0] = app.report.state;
    app.result[1] = app.report.num_servers;
    app.result[2] = app.report.server_index;
    app.result[3] = app.report.refused > 0x7fffffff ? 0x7fffffff : (int32_t) app.report.refused;
    app.numbers[0] = app.report.token_seconds_left;
    return app.report.text;
}

/* The name of the reason for which the last of those packets was dropped: call it after netcode_wasm_report. */
EMSCRIPTEN_KEEPALIVE const char * netcode_wasm_refused_as( void )
{
    return netcode_drop_reason_name( app.report.refused_as );
}

EMSCRIPTEN_KEEPALIVE double * netcode_wasm_numbers( void )
{
    return app.numbers;
}

EMSCRIPTEN_KEEPALIVE const char * netcode_wasm_state_name( int state )
{
    return netcode_client_state_name( state );
}

EMSCRIPTEN_KEEPALIVE int netcode_wasm_rebind( void )
{
    return netcode_client_rebind( app.client );
}

EMSCRIPTEN_KEEPALIVE void netcode_wasm_disconnect( void )
{
    netcode_client_disconnect( app.client );
}

/* For the tests: libsodium's random bytes, at most as many as the input takes, which come from the page's crypto. */
EMSCRIPTEN_KEEPALIVE void netcode_wasm_random( int bytes )
{
    netcode_random_bytes( app.input, bytes < app.input_capacity ? bytes : app.input_capacity );
}
