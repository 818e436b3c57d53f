/*  The client's part of multiplayer.h. The server is trusted no more than it has to be: what breaks the format ends the
    connection, and nothing else happens. */

#ifndef MULTIPLAYER_CLIENT_H
#define MULTIPLAYER_CLIENT_H

#include "multiplayer.h"

static int multiplayer_peer_index( const struct multiplayer_t * m, int32_t id )
{
    for ( int i = 0; i < m->num_peers; i++ )
        if ( m->peers[i] == id )
            return i;
    return -1;
}

/* The connection ends; packets that are here already can still be read. */
static void multiplayer_end( struct multiplayer_t * m, const char * why )
{
    if ( m->ended )
        return;
    m->ended = 1;
    snprintf( m->why, sizeof( m->why ), "%s", why );
    netcode_client_disconnect( m->client );
}

static int multiplayer_client_add( struct multiplayer_t * m, const struct frame_t * frame )
{
    for ( int at = 0; at < frame->bytes; at += 4 ) {
        int32_t id = frame_read_number( frame->data + at );
        if ( id == m->unique_id || m->num_peers == MULTIPLAYER_MAX_CLIENTS || multiplayer_peer_index( m, id ) >= 0 )
            return 0;
        m->peers[m->num_peers++] = id;
        multiplayer_event_now( m, MULTIPLAYER_PEER_CONNECTED, id );
    }
    return 1;
}

static int multiplayer_client_remove( struct multiplayer_t * m, int32_t id )
{
    int index = multiplayer_peer_index( m, id );
    if ( index < 0 )
        return 0;
    m->peers[index] = m->peers[--m->num_peers];
    multiplayer_event_later( m, MULTIPLAYER_PEER_DISCONNECTED, id );
    return 1;
}

static int multiplayer_client_hello( struct multiplayer_t * m, const struct frame_t * frame )
{
    if ( m->status == MULTIPLAYER_CONNECTED )
        return 0;
    m->status = MULTIPLAYER_CONNECTED;
    m->unique_id = frame->peer;
    m->relays = frame->flags & FRAME_RELAYS;
    multiplayer_event_now( m, MULTIPLAYER_PEER_CONNECTED, MULTIPLAYER_SERVER_ID );
    multiplayer_event_now( m, MULTIPLAYER_CONNECTION_SUCCEEDED, 0 );
    return 1;
}

static void multiplayer_client_goodbye( struct multiplayer_t * m, const struct frame_t * frame )
{
    char text[FRAME_MAX_TEXT + 1], why[MULTIPLAYER_TEXT];
    frame_copy_text( text, (int) sizeof( text ), frame->data, frame->bytes );
    snprintf( why, sizeof( why ), "the server ended the connection: %s", text[0] != 0 ? text : "it gave no reason" );
    multiplayer_end( m, why );
}

/* 1, or 0 if a server does not send such a message now. */
static int multiplayer_client_frame( struct multiplayer_t * m, int channel, const uint8_t * bytes, int count )
{
    struct frame_t frame;
    if ( !frame_read_at_client( bytes, count, channel, &frame ) )
        return 0;
    if ( frame.type == FRAME_HELLO )
        return multiplayer_client_hello( m, &frame );
    if ( frame.type == FRAME_GOODBYE ) {
        multiplayer_client_goodbye( m, &frame );
        return 1;
    }
    if ( m->status != MULTIPLAYER_CONNECTED ) {
        m->unroutable++;
        return frame.type == FRAME_DATA && channel != CHANNEL_RELIABLE; /* it has overtaken the HELLO */
    }
    if ( frame.type == FRAME_ADD )
        return multiplayer_client_add( m, &frame );
    if ( frame.type == FRAME_REMOVE )
        return multiplayer_client_remove( m, frame.peer );
    if ( frame.bytes > m->max_packet_bytes )
        return 0;
    if ( frame.peer == MULTIPLAYER_SERVER_ID || multiplayer_peer_index( m, frame.peer ) >= 0 )
        multiplayer_queue( m, frame.peer, channel, frame.data, frame.bytes );
    else
        m->unroutable++; /* an unreliable message of a peer that is not known yet, or has left */
    return 1;
}

/* 1 if nothing is left that could be read now or later. */
static int multiplayer_client_read( struct multiplayer_t * m )
{
    struct netcode_message_t message;
    while ( !m->finished ) {
        if ( multiplayer_queue_full( m ) || multiplayer_events_full( m ) )
            return 0;
        if ( !netcode_messages_receive( m->messages, &message ) )
            break;
        if ( !multiplayer_client_frame( m, message.channel, message.data, message.bytes ) ) {
            m->malformed++;
            multiplayer_end( m, "the server sent a malformed message, or is of another version" );
            break;
        }
    }
    return 1;
}

static void multiplayer_client_watch( struct multiplayer_t * m )
{
    struct netcode_client_report_t report;
    int state = netcode_client_state( m->client );
    if ( multiplayer_broken( m->messages ) )
        multiplayer_end( m, "the connection is broken: the server acknowledged what was never sent" );
    if ( state <= 0 && !m->ended ) {
        netcode_client_report( m->client, &report );
        multiplayer_end( m, report.text );
    }
    if ( state != NETCODE_CLIENT_STATE_CONNECTED )
        return;
    if ( m->connected_time < 0.0 )
        m->connected_time = m->time;
    if ( m->status == MULTIPLAYER_CONNECTING && m->time - m->connected_time > MULTIPLAYER_HELLO_SECONDS )
        multiplayer_end( m, "the server accepted the token, but gave no peer id: is it one of this plug-in?" );
}

static void multiplayer_client_flush( struct multiplayer_t * m, double time )
{
    if ( !m->ended )
        netcode_messages_push_to_client( m->messages, m->client, time );
}

static void multiplayer_client_poll( struct multiplayer_t * m, double time )
{
    m->time = time > m->time ? time : m->time;
    if ( !m->ended ) {
        netcode_client_update( m->client, m->time );
        netcode_messages_pull_from_client( m->messages, m->client, m->time );
    }
    int read = multiplayer_client_read( m );
    multiplayer_client_watch( m );
    multiplayer_client_flush( m, m->time );
    if ( m->ended && read && !m->finished ) {
        m->finished = 1;
        int failed = m->status == MULTIPLAYER_CONNECTING;
        multiplayer_event_later( m, failed ? MULTIPLAYER_CONNECTION_FAILED : MULTIPLAYER_SERVER_DISCONNECTED, 0 );
    }
}

static int multiplayer_client_put( struct multiplayer_t * m, const uint8_t * data, int bytes )
{
    int32_t target = m->target;
    if ( target == m->unique_id || ( target > 1 && multiplayer_peer_index( m, target ) < 0 ) )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "the target peer is not connected" );
    int size = frame_write_data( m->frame, target, data, bytes );
    int result = netcode_messages_send( m->messages, m->channel, multiplayer_kind( m->channel ), m->frame, size );
    if ( result == NETCODE_OK )
        return MULTIPLAYER_OK;
    if ( m->channel != CHANNEL_RELIABLE ) {
        m->unqueued++;
        return MULTIPLAYER_OK;
    }
    if ( result == NETCODE_MESSAGES_TOO_LARGE )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT,
                                 "the packet is larger than the server accepts (its max_packet_bytes)" );
    /* Engines ignore this result, and a reliable message must not get lost: the connection can not go on. */
    multiplayer_end( m, "the buffer for reliable messages is full (send_buffer_bytes): more was sent than the link "
                        "takes" );
    return multiplayer_fail( m, MULTIPLAYER_NO_MEMORY, m->why );
}

#endif
