/*  A networked multiplayer peer as game engines have it, over netcode.h with messages: peer ids, transfer modes, target
    peers, relaying. It knows nothing of any engine. A server has peer id 1. It gives each client a random id and reports
    the others to it. It passes on what clients send to each other.

    This file has the types and what both roles share; multiplayer_server.h and multiplayer_client.h have the roles, and
    multiplayer_api.h the calls. An engine's file includes the last one. Not for several threads at once.

    Each poll does the network's work, then there are events, and packets. The order is kept so that the engine never
    sees a packet of a peer that it does not know: first the peers that are new, then packets, then the peers that are
    gone, which are reported at the next poll. */

#ifndef MULTIPLAYER_H
#define MULTIPLAYER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"

#if !defined( NETCODE_SINGLE_FILE_H ) || !defined( NETCODE_MESSAGES )
#error "include netcode.h with NETCODE_MESSAGES before this file"
#endif

enum { MULTIPLAYER_OFF, MULTIPLAYER_SERVER, MULTIPLAYER_CLIENT };

/* Engines have these three in this order. */
enum { MULTIPLAYER_DISCONNECTED, MULTIPLAYER_CONNECTING, MULTIPLAYER_CONNECTED };

enum {
    MULTIPLAYER_PEER_CONNECTED = 1,
    MULTIPLAYER_PEER_DISCONNECTED,
    MULTIPLAYER_CONNECTION_SUCCEEDED, /* clients only, as the next two */
    MULTIPLAYER_CONNECTION_FAILED,
    MULTIPLAYER_SERVER_DISCONNECTED
};

/* What calls return; multiplayer_t has a sentence in `error`. */
enum {
    MULTIPLAYER_OK,
    MULTIPLAYER_BAD_ARGUMENT,
    MULTIPLAYER_IN_USE,    /* it is a server or a client already */
    MULTIPLAYER_INACTIVE,  /* it is neither, or not connected */
    MULTIPLAYER_NO_MEMORY, /* also: the buffer for reliable messages is full */
    MULTIPLAYER_NO_SOCKET, /* the address can not be bound */
    MULTIPLAYER_NO_PACKET
};

enum {
    MULTIPLAYER_SERVER_ID = 1,
    MULTIPLAYER_UNKNOWN_ID = INT32_MAX, /* a client's own id until the server has given it one; no peer has it */
    MULTIPLAYER_MAX_CLIENTS = 4095,     /* the engines' own limit */
    MULTIPLAYER_DEFAULT_CLIENTS = 32,
    MULTIPLAYER_LEAST_PACKET = 1200,
    MULTIPLAYER_DEFAULT_PACKET = 64 * 1024,
    MULTIPLAYER_MOST_PACKET = 4 * 1024 * 1024,
    MULTIPLAYER_SEND_BUFFER = 4 * 1024 * 1024,
    MULTIPLAYER_MOST_SEND_BUFFER = 64 * 1024 * 1024,
    /* What one client has relayed must not fill the buffer of another one, whose link is slow: that one would be dropped. */
    MULTIPLAYER_RELAY_BYTES_PER_SECOND = 32 * 1024,
    MULTIPLAYER_MESSAGE_COST = 32,       /* what a message costs its sender beside its bytes */
    MULTIPLAYER_READ_MESSAGES = 512,     /* of one peer in one poll, */
    MULTIPLAYER_READ_BYTES = 128 * 1024, /* and bytes beside one of the largest */
    MULTIPLAYER_FIRST_CREDIT = 16384,    /* what a connection may send until the other side's first LIMIT allows more */
    MULTIPLAYER_MAX_BANS = 65536,
    MULTIPLAYER_GOODBYES = 4, /* copies of the last message */
    MULTIPLAYER_TEXT = 512
};

#define MULTIPLAYER_LEAVE_SECONDS 2.0  /* in which a client gets the reason why it is disconnected */
#define MULTIPLAYER_HELLO_SECONDS 10.0 /* in which a server must have given an id */

struct multiplayer_event_t {
    int type;
    int32_t peer;
};

/* A received packet; its bytes follow it in the queue. */
struct multiplayer_packet_t {
    int32_t from; /* 0: forgotten, its sender was disconnected */
    int channel;
    int bytes;
};

enum { SLOT_EMPTY, SLOT_OPEN, SLOT_GONE, SLOT_LEAVING };

/* A server's entry for a client. */
struct multiplayer_slot_t {
    int state; /* GONE: disconnected, its last messages are to be read. LEAVING: no peer any more, gets the reason */
    int32_t id;
    int announce; /* the others are to be notified that it is gone */
    int met;      /* its limits are known, and the others were notified of it */
    int complete; /* GONE: no more of it can arrive */
    uint64_t client_id, session;
    double leave_time;
    double credit; /* bytes that it may have relayed now; negative after a large one */
    struct netcode_messages_t * messages;
};

struct multiplayer_t {
    int role, status, refuses, polling, relays, announcing;
    double time;
    int32_t unique_id, target;
    int channel; /* of the next packet that is sent */
    int max_packet_bytes, send_buffer_bytes, relay_bytes_per_second;
    struct netcode_server_t * server;
    struct multiplayer_slot_t * slots;
    int num_slots, turn;
    struct netcode_event_t held; /* a client that waits for its slot: the last one's messages are not read yet */
    int holds, events_read;      /* if there is a held event; if there are no further ones */
    uint64_t * bans;
    int num_bans;
    struct netcode_client_t * client;
    struct netcode_messages_t * messages; /* a client's */
    int32_t * peers;                      /* a client's: the other clients */
    int num_peers, ended, finished;
    double connected_time; /* a client's: -1 until netcode's handshake is done */
    struct multiplayer_event_t *now, *later;
    int num_now, num_later, max_events, most_events;
    uint8_t * queue; /* received packets */
    size_t queue_head, queue_tail, queue_capacity;
    int queue_packets;
    uint8_t * frame;                          /* a message that is being written */
    uint64_t malformed, unroutable, unqueued; /* messages refused; without such a target; unreliable, buffer full */
    uint64_t unrelayed;                       /* of clients that left, beyond what they may have relayed */
    uint64_t too_large;                       /* relayed, but the receiver's max_packet_bytes is below the server's */
    char error[MULTIPLAYER_TEXT];             /* of the last call */
    char line[MULTIPLAYER_TEXT];              /* of the log */
    char why[MULTIPLAYER_TEXT];               /* why the connection ended, or could not be made */
    void ( *log )( void * context, int level, const char * text );
    void * log_context;
};

static int multiplayer_fail( struct multiplayer_t * m, int result, const char * sentence )
{
    snprintf( m->error, sizeof( m->error ), "%s", sentence );
    return result;
}

static void multiplayer_log( void * context, int level, const char * text )
{
    const struct multiplayer_t * m = (const struct multiplayer_t *) context;
    if ( m->log != NULL )
        m->log( m->log_context, level, text );
}

/* Not optimized away: for keys in memory that is given back. */
static void multiplayer_wipe( void * memory, size_t bytes )
{
    volatile uint8_t * at = (volatile uint8_t *) memory;
    while ( bytes-- > 0 )
        *at++ = 0;
}

static int multiplayer_clamp( int value, int standard, int least, int most )
{
    if ( value <= 0 )
        return standard;
    return value < least ? least : value > most ? most : value;
}

static int multiplayer_kind( int channel )
{
    return channel == CHANNEL_RELIABLE  ? NETCODE_MESSAGE_RELIABLE_ORDERED
           : channel == CHANNEL_ORDERED ? NETCODE_MESSAGE_UNRELIABLE_SEQUENCED
                                        : NETCODE_MESSAGE_UNRELIABLE;
}

/* ---- memory ---- */

/*  What both roles need, for this many peers. The queue and the message buffers are large, but the system provides
    pages of them only when they are used. */
static int multiplayer_allocate( struct multiplayer_t * m, int peers )
{
    size_t most = (size_t) m->max_packet_bytes + FRAME_HEADER_BYTES + sizeof( struct multiplayer_packet_t ) + 16;
    m->most_events = 2 * peers + FRAME_MAX_IDS;
    m->max_events = m->most_events + peers + FRAME_MAX_IDS + 8; /* what one frame, or all clients that go, can add */
    m->queue_capacity = 1024 * 1024 + 4 * most;
    m->now = (struct multiplayer_event_t *) calloc( (size_t) m->max_events, sizeof( *m->now ) );
    m->later = (struct multiplayer_event_t *) calloc( (size_t) m->max_events, sizeof( *m->later ) );
    m->queue = (uint8_t *) malloc( m->queue_capacity );
    m->frame = (uint8_t *) malloc( most > FRAME_CONTROL_BYTES ? most : FRAME_CONTROL_BYTES );
    return m->now != NULL && m->later != NULL && m->queue != NULL && m->frame != NULL;
}

static struct netcode_messages_t * multiplayer_messages( const struct multiplayer_t * m )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = CHANNELS;
    config.max_message_bytes = m->max_packet_bytes + FRAME_HEADER_BYTES;
    int least = 2 * config.max_message_bytes + 64 * 1024;
    config.send_buffer_bytes = m->send_buffer_bytes > least ? m->send_buffer_bytes : least;
    config.upgrade_large = 1; /* engines let unreliable packets be of any size */
    return netcode_messages_create( &config, m->time );
}

/* ---- events and packets ---- */

static int multiplayer_events_full( const struct multiplayer_t * m )
{
    return m->num_now >= m->most_events || m->num_later >= m->most_events;
}

static void multiplayer_event_now( struct multiplayer_t * m, int type, int32_t peer )
{
    if ( m->num_now < m->max_events )
        m->now[m->num_now++] = ( struct multiplayer_event_t ){ type, peer };
}

static void multiplayer_event_later( struct multiplayer_t * m, int type, int32_t peer )
{
    if ( m->num_later < m->max_events )
        m->later[m->num_later++] = ( struct multiplayer_event_t ){ type, peer };
}

/*  1 if the peer is gone, and the engine is not notified yet: what it sends there meanwhile is no mistake. */
static int multiplayer_leaves( const struct multiplayer_t * m, int32_t id )
{
    for ( int i = 0; i < m->num_now + m->num_later; i++ ) {
        const struct multiplayer_event_t * event = i < m->num_now ? &m->now[i] : &m->later[i - m->num_now];
        if ( event->type == MULTIPLAYER_PEER_DISCONNECTED && event->peer == id )
            return 1;
    }
    for ( int i = 0; i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_GONE && m->slots[i].id == id )
            return 1;
    return 0;
}

/* At the start of a poll: what was for later is due. */
static void multiplayer_events_turn( struct multiplayer_t * m )
{
    int count = m->max_events - m->num_now < m->num_later ? m->max_events - m->num_now : m->num_later;
    memcpy( m->now + m->num_now, m->later, (size_t) count * sizeof( *m->now ) );
    memmove( m->later, m->later + count, (size_t) ( m->num_later - count ) * sizeof( *m->later ) );
    m->num_now += count;
    m->num_later -= count;
}

static size_t multiplayer_packet_size( int bytes )
{
    return ( sizeof( struct multiplayer_packet_t ) + (size_t) bytes + 7 ) / 8 * 8;
}

static int multiplayer_queue_full( const struct multiplayer_t * m )
{
    return m->queue_capacity - m->queue_tail < multiplayer_packet_size( m->max_packet_bytes );
}

/* The caller has made sure that there is space: multiplayer_queue_full. */
static void multiplayer_queue( struct multiplayer_t * m, int32_t from, int channel, const uint8_t * data, int bytes )
{
    struct multiplayer_packet_t packet = { from, channel, bytes };
    if ( bytes > m->max_packet_bytes || multiplayer_queue_full( m ) )
        return;
    memcpy( m->queue + m->queue_tail, &packet, sizeof( packet ) );
    memcpy( m->queue + m->queue_tail + sizeof( packet ), data, (size_t) bytes );
    m->queue_tail += multiplayer_packet_size( bytes );
    m->queue_packets++;
}

/* Moves unread packets to the front, or starts anew where there are none. Packets that were returned end here. */
static void multiplayer_queue_compact( struct multiplayer_t * m )
{
    if ( m->queue_head > 0 )
        memmove( m->queue, m->queue + m->queue_head, m->queue_tail - m->queue_head );
    m->queue_tail -= m->queue_head;
    m->queue_head = 0;
}

static struct multiplayer_packet_t multiplayer_packet_at( const struct multiplayer_t * m, size_t at )
{
    struct multiplayer_packet_t packet;
    memcpy( &packet, m->queue + at, sizeof( packet ) );
    return packet;
}

/* Nothing more of a peer that was disconnected reaches the engine. */
static void multiplayer_forget( struct multiplayer_t * m, int32_t from )
{
    for ( size_t at = m->queue_head; at < m->queue_tail; ) {
        struct multiplayer_packet_t packet = multiplayer_packet_at( m, at );
        if ( packet.from == from ) {
            int32_t none = 0;
            memcpy( m->queue + at + offsetof( struct multiplayer_packet_t, from ), &none, sizeof( none ) );
            m->queue_packets--;
        }
        at += multiplayer_packet_size( packet.bytes );
    }
}

/* Goes to the first packet that was not forgotten; 0 if there is none. */
static int multiplayer_first( struct multiplayer_t * m, struct multiplayer_packet_t * packet )
{
    while ( m->queue_head < m->queue_tail ) {
        *packet = multiplayer_packet_at( m, m->queue_head );
        if ( packet->from != 0 )
            return 1;
        m->queue_head += multiplayer_packet_size( packet->bytes );
    }
    return 0;
}

/*  BROKEN is the only event that is asked for: the other side acknowledged what was never sent, or the like. 1 if the
    connection can not go on. */
static int multiplayer_broken( struct netcode_messages_t * messages )
{
    struct netcode_messages_event_t event;
    int broken = 0;
    while ( netcode_messages_event( messages, &event ) )
        broken |= event.type == NETCODE_MESSAGES_EVENT_BROKEN;
    return broken;
}

#endif
