/*  A client of examples/godot's servers in plain C: netcode.h and frames.h, nothing of the plug-in. So it can also send
    what the plug-in never does. */

#ifndef GODOT_CLIENT_H
#define GODOT_CLIENT_H

#include "frames.h"

enum { RAW_MAX_PEERS = 64, RAW_TEXT = 256 };

struct raw_t {
    struct netcode_client_t * client;
    struct netcode_messages_t * messages;
    int32_t id; /* 0 until HELLO */
    int32_t peers[RAW_MAX_PEERS];
    int num_peers;
    char goodbye[RAW_TEXT];
    int32_t from; /* of the last DATA */
    uint8_t data[65536 + 8];
    int bytes, received;
    int deaf; /* reads nothing and acknowledges nothing, but keeps the connection */
};

/* 1, or 0 if the client can not be made. `simulator` NULL: the system's sockets. */
static int raw_open( struct raw_t * raw, const char * address, struct netcode_network_simulator_t * simulator,
                     const uint8_t * token, double time )
{
    struct netcode_client_config_t config;
    struct netcode_messages_config_t messages;
    memset( raw, 0, sizeof( *raw ) );
    netcode_default_client_config( &config );
    config.network_simulator = simulator;
    netcode_default_messages_config( &messages );
    messages.channels = CHANNELS;
    messages.upgrade_large = 1;
    messages.send_buffer_bytes = 8 * 1024 * 1024;
    raw->client = netcode_client_create( address, &config, time );
    raw->messages = netcode_messages_create( &messages, time );
    if ( raw->client == NULL || raw->messages == NULL )
        return 0;
    netcode_client_connect( raw->client, token );
    return 1;
}

static void raw_close( struct raw_t * raw )
{
    netcode_messages_destroy( raw->messages );
    netcode_client_destroy( raw->client );
    raw->messages = NULL;
    raw->client = NULL;
}

static void raw_read( struct raw_t * raw, const struct frame_t * frame )
{
    switch ( frame->type ) {
    case FRAME_HELLO: raw->id = frame->peer; break;
    case FRAME_ADD:
        for ( int at = 0; at < frame->bytes && raw->num_peers < RAW_MAX_PEERS; at += 4 )
            raw->peers[raw->num_peers++] = frame_read_number( frame->data + at );
        break;
    case FRAME_REMOVE:
        for ( int i = 0; i < raw->num_peers; i++ )
            if ( raw->peers[i] == frame->peer )
                raw->peers[i] = raw->peers[--raw->num_peers];
        break;
    case FRAME_GOODBYE: frame_copy_text( raw->goodbye, RAW_TEXT, frame->data, frame->bytes ); break;
    default:
        if ( frame->bytes <= (int) sizeof( raw->data ) ) {
            memcpy( raw->data, frame->data, (size_t) frame->bytes );
            raw->from = frame->peer;
            raw->bytes = frame->bytes;
            raw->received++;
        }
    }
}

static void raw_update( struct raw_t * raw, double time )
{
    struct netcode_message_t message;
    struct frame_t frame;
    netcode_client_update( raw->client, time );
    if ( raw->deaf ) {
        int bytes;
        uint8_t * packet;
        while ( ( packet = netcode_client_receive_packet( raw->client, &bytes, NULL ) ) != NULL )
            netcode_client_free_packet( raw->client, packet );
        return;
    }
    netcode_messages_pull_from_client( raw->messages, raw->client, time );
    while ( netcode_messages_receive( raw->messages, &message ) )
        if ( frame_read_at_client( message.data, message.bytes, message.channel, &frame ) )
            raw_read( raw, &frame );
    netcode_messages_push_to_client( raw->messages, raw->client, time );
}

static int raw_kind( int channel )
{
    return channel == CHANNEL_RELIABLE  ? NETCODE_MESSAGE_RELIABLE_ORDERED
           : channel == CHANNEL_ORDERED ? NETCODE_MESSAGE_UNRELIABLE_SEQUENCED
                                        : NETCODE_MESSAGE_UNRELIABLE;
}

/* Bytes as they are: a frame or none. */
static int raw_send_bytes( struct raw_t * raw, int channel, const void * bytes, int count )
{
    return netcode_messages_send( raw->messages, channel, raw_kind( channel ), bytes, count ) == NETCODE_OK;
}

static int raw_send( struct raw_t * raw, int32_t target, int channel, const void * data, int bytes )
{
    static uint8_t frame[FRAME_HEADER_BYTES + 65536];
    int size = frame_write_data( frame, target, (const uint8_t *) data, bytes );
    return raw_send_bytes( raw, channel, frame, size );
}

/*  What no client of this format sends: each of these ends the connection that it comes from. */
struct malformed_t {
    const char * title;
    int count;
    uint8_t bytes[12];
};

static const struct malformed_t malformed[] = { { "no bytes at all", 0, { 0 } },
                                                { "a header that is cut off", 4, { 0, 1, 0, 0 } },
                                                { "no payload", 5, { 0, 1, 0, 0, 0 } },
                                                { "a target that can not be negated",
                                                  8,
                                                  { 0, 0, 0, 0, 0x80, 4, 1, 2 } },
                                                { "a HELLO, as servers send it", 7, { 1, 1, 1, 1, 0, 0, 0 } },
                                                { "an ADD, as servers send it", 9, { 2, 5, 0, 0, 0, 6, 0, 0, 0 } },
                                                { "a REMOVE, as servers send it", 5, { 3, 5, 0, 0, 0 } },
                                                { "a GOODBYE, as servers send it", 3, { 4, 'h', 'i' } },
                                                { "a type that does not exist", 9, { 255, 1, 0, 0, 0, 4, 1, 2, 3 } } };

enum { MALFORMED = (int) ( sizeof( malformed ) / sizeof( malformed[0] ) ) };

#endif
