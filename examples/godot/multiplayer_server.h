/*  The server's part of multiplayer.h: slots and ids, which peers are reported to which, relaying. Nothing that a client sends is
    trusted: its sender follows from its connection, and a message that no client of this format sends ends that
    connection, and no other. */

#ifndef MULTIPLAYER_SERVER_H
#define MULTIPLAYER_SERVER_H

#include "multiplayer.h"

static struct multiplayer_slot_t * multiplayer_slot( const struct multiplayer_t * m, int32_t id )
{
    for ( int i = 0; frame_is_client_id( id ) && i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_OPEN && m->slots[i].id == id )
            return &m->slots[i];
    return NULL;
}

static int multiplayer_slot_index( const struct multiplayer_t * m, const struct multiplayer_slot_t * slot )
{
    return (int) ( slot - m->slots );
}

/* Random, so that it reveals nothing about others; and not an id that a slot has, or had last. */
static int32_t multiplayer_new_id( const struct multiplayer_t * m )
{
    for ( ;; ) {
        uint8_t bytes[4];
        netcode_random_bytes( bytes, (int) sizeof( bytes ) );
        bytes[3] &= 0x7F;
        int32_t id = frame_read_number( bytes );
        int used = !frame_is_client_id( id ) || id == MULTIPLAYER_UNKNOWN_ID;
        for ( int i = 0; i < m->num_slots && !used; i++ )
            used = m->slots[i].id == id;
        if ( !used )
            return id;
    }
}

/* ---- sending ---- */

static void multiplayer_announce( struct multiplayer_t * m );

/*  The peer is gone for the engine and the others now. Its connection ends at the next poll. */
static void multiplayer_drop( struct multiplayer_t * m, struct multiplayer_slot_t * slot, const char * why )
{
    if ( slot->state != SLOT_OPEN )
        return;
    snprintf( m->line, sizeof( m->line ), "peer %d is disconnected: %s", (int) slot->id, why );
    multiplayer_log( m, NETCODE_LOG_LEVEL_INFO, m->line );
    slot->state = SLOT_LEAVING;
    slot->leave_time = m->time;
    slot->announce = 1;
    multiplayer_forget( m, slot->id );
    multiplayer_event_now( m, MULTIPLAYER_PEER_DISCONNECTED, slot->id );
    multiplayer_announce( m );
}

/*  A frame of `bytes` bytes for one client. An unreliable one is dropped where the buffer is full; a reliable one can
    not be, so that a client which reads too slowly is disconnected. What another client sent, and is too large for this
    one, is dropped: no client can end another's connection so. */
static int multiplayer_send_frame( struct multiplayer_t * m, struct multiplayer_slot_t * slot, int32_t source,
                                   int channel, const uint8_t * frame, int bytes )
{
    int result = netcode_messages_send( slot->messages, channel, multiplayer_kind( channel ), frame, bytes );
    if ( result == NETCODE_OK )
        return MULTIPLAYER_OK;
    if ( result == NETCODE_MESSAGES_TOO_LARGE && source != MULTIPLAYER_SERVER_ID ) {
        m->too_large++;
        return MULTIPLAYER_OK;
    }
    if ( channel != CHANNEL_RELIABLE ) {
        m->unqueued++;
        return MULTIPLAYER_OK;
    }
    multiplayer_drop( m, slot,
                      result == NETCODE_MESSAGES_FULL
                          ? "it reads too slowly: the buffer for reliable messages is full (send_buffer_bytes)"
                      : result == NETCODE_MESSAGES_TOO_LARGE
                          ? "it accepts only smaller messages: its max_packet_bytes is below the server's"
                          : "its connection is broken" );
    return MULTIPLAYER_NO_MEMORY;
}

/*  Notifies the others of the peers that are gone. That may drop further ones, whose buffers are full: a loop and no
    recursion, because it may be all of them. */
static void multiplayer_announce( struct multiplayer_t * m )
{
    if ( m->announcing )
        return;
    m->announcing = 1;
    for ( int i = 0; i < m->num_slots; i++ ) {
        uint8_t frame[FRAME_HEADER_BYTES];
        if ( !m->slots[i].announce )
            continue;
        m->slots[i].announce = 0;
        int bytes = frame_write_ids( frame, FRAME_REMOVE, &m->slots[i].id, 1 );
        for ( int k = 0; m->relays && m->slots[i].met && k < m->num_slots; k++ )
            if ( m->slots[k].state == SLOT_OPEN )
                multiplayer_send_frame( m, &m->slots[k], MULTIPLAYER_SERVER_ID, CHANNEL_RELIABLE, frame, bytes );
        i = -1; /* from the start: earlier ones may be gone now */
    }
    m->announcing = 0;
}

/*  HELLO and the others' ids for a new client. Those that are GONE are among the others: their last messages and their
    REMOVE follow, which a client only accepts of peers that it knows. */
static void multiplayer_introduce( struct multiplayer_t * m, struct multiplayer_slot_t * slot )
{
    uint8_t frame[FRAME_CONTROL_BYTES];
    int32_t ids[FRAME_MAX_IDS];
    int count = 0;
    int bytes = frame_write_hello( frame, m->relays ? FRAME_RELAYS : 0, slot->id );
    multiplayer_send_frame( m, slot, MULTIPLAYER_SERVER_ID, CHANNEL_RELIABLE, frame, bytes );

    for ( int i = 0; m->relays && i < m->num_slots; i++ ) {
        int there = m->slots[i].state == SLOT_OPEN || m->slots[i].state == SLOT_GONE;
        if ( there && m->slots[i].met && &m->slots[i] != slot )
            ids[count++] = m->slots[i].id;
        if ( count == FRAME_MAX_IDS || ( count > 0 && i + 1 == m->num_slots ) ) {
            bytes = frame_write_ids( frame, FRAME_ADD, ids, count );
            multiplayer_send_frame( m, slot, MULTIPLAYER_SERVER_ID, CHANNEL_RELIABLE, frame, bytes );
            count = 0;
        }
    }
}

/*  Announces a new client to the others as soon as its LIMIT is here. Before that it is not known what is too large
    for it: a reliable message that proves to be so ends its connection. */
static void multiplayer_meet( struct multiplayer_t * m, struct multiplayer_slot_t * slot )
{
    struct netcode_messages_stats_t stats;
    uint8_t frame[FRAME_HEADER_BYTES];
    if ( slot->met || slot->state == SLOT_LEAVING )
        return;
    netcode_messages_stats( slot->messages, &stats );
    if ( stats.credit <= (double) MULTIPLAYER_FIRST_CREDIT )
        return;
    slot->met = 1;
    int bytes = frame_write_ids( frame, FRAME_ADD, &slot->id, 1 );
    for ( int i = 0; m->relays && i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_OPEN && &m->slots[i] != slot )
            multiplayer_send_frame( m, &m->slots[i], MULTIPLAYER_SERVER_ID, CHANNEL_RELIABLE, frame, bytes );
}

static int multiplayer_wanted( int32_t target, int32_t id )
{
    return target == 0 || target == id || ( target < 0 && target != -id );
}

/* To all clients that `target` names, except the sender, and those of which other clients do not know yet. */
static int multiplayer_spread( struct multiplayer_t * m, int32_t source, int32_t target, int channel,
                               const uint8_t * data, int bytes )
{
    int result = MULTIPLAYER_OK;
    int size = frame_write_data( m->frame, source, data, bytes );
    for ( int i = 0; i < m->num_slots; i++ ) {
        struct multiplayer_slot_t * slot = &m->slots[i];
        int reached = slot->state == SLOT_OPEN && ( slot->met || source == MULTIPLAYER_SERVER_ID );
        if ( reached && slot->id != source && multiplayer_wanted( target, slot->id ) ) {
            int sent = multiplayer_send_frame( m, slot, source, channel, m->frame, size );
            result = sent == MULTIPLAYER_OK ? result : sent;
        }
    }
    return result;
}

/*  Sends a client the reason, and disconnects it when it has had the time to read that. For the engine and the others it is
    gone at once. */
static void multiplayer_dismiss( struct multiplayer_t * m, struct multiplayer_slot_t * slot, const char * why )
{
    uint8_t frame[1 + FRAME_MAX_TEXT];
    int bytes = frame_write_goodbye( frame, why );
    netcode_messages_send( slot->messages, CHANNEL_RELIABLE, NETCODE_MESSAGE_RELIABLE_ORDERED, frame, bytes );
    multiplayer_drop( m, slot, why );
    slot->leave_time = m->time + MULTIPLAYER_LEAVE_SECONDS;
}

/* ---- receiving ---- */

/* What a client sent: for this server, for others, or for both. */
static void multiplayer_route( struct multiplayer_t * m, struct multiplayer_slot_t * slot, int channel,
                               const struct frame_t * frame )
{
    int32_t target = frame->peer;
    const struct multiplayer_slot_t * to = multiplayer_slot( m, target );
    int known = target <= 1 || ( to != NULL && to->met );
    if ( !known || target == slot->id || frame->bytes > m->max_packet_bytes ) {
        m->unroutable++; /* it may have left just now */
        return;
    }
    if ( multiplayer_wanted( target, MULTIPLAYER_SERVER_ID ) )
        multiplayer_queue( m, slot->id, channel, frame->data, frame->bytes );
    if ( !m->relays || target == MULTIPLAYER_SERVER_ID )
        return;
    if ( slot->state == SLOT_GONE && ( slot->credit < 0.0 || !slot->met ) ) {
        m->unrelayed++; /* it does not get more, so that there is no hole: this is the end of what the others get */
        return;
    }
    slot->credit -= frame->bytes + MULTIPLAYER_MESSAGE_COST;
    multiplayer_spread( m, slot->id, target, channel, frame->data, frame->bytes );
}

/*  Reads what waits in a slot, up to its share of this poll. A client that has used up what it may have relayed is read
    later: its messages wait here, as far as its receive buffer holds them, and then on its own machine. Of one that is
    GONE everything is read. 1 if nothing is left. */
static int multiplayer_read_slot( struct multiplayer_t * m, struct multiplayer_slot_t * slot )
{
    struct netcode_message_t message;
    struct frame_t frame;
    int messages = 0, bytes = 0;
    while ( slot->state == SLOT_OPEN || slot->state == SLOT_GONE ) {
        if ( multiplayer_queue_full( m ) || multiplayer_events_full( m ) )
            return 0;
        if ( slot->state == SLOT_OPEN && ( !slot->met || slot->credit < 0.0 || messages >= MULTIPLAYER_READ_MESSAGES ||
                                           bytes > MULTIPLAYER_READ_BYTES ) )
            return 0;
        if ( !netcode_messages_receive( slot->messages, &message ) )
            break;
        if ( !frame_read_at_server( message.data, message.bytes, &frame ) ) {
            m->malformed++;
            multiplayer_dismiss( m, slot, "it sent a malformed message" );
            slot->complete = 1;
            break;
        }
        messages++;
        bytes += message.bytes;
        multiplayer_route( m, slot, message.channel, &frame );
    }
    return 1;
}

static void multiplayer_slot_empty( struct multiplayer_t * m, struct multiplayer_slot_t * slot )
{
    if ( slot->state == SLOT_GONE ) {
        multiplayer_event_later( m, MULTIPLAYER_PEER_DISCONNECTED, slot->id );
        slot->announce = 1;
        slot->state = SLOT_EMPTY;
        multiplayer_announce( m );
    }
    slot->state = SLOT_EMPTY;
}

/*  Reads the rest of a slot that is GONE, and empties it; if the queue is full it stays as it is until the next poll.
    What was acknowledged comes first: the call that gets the last packets resets the messages if there are none. */
static void multiplayer_finish_slot( struct multiplayer_t * m, int index )
{
    struct multiplayer_slot_t * slot = &m->slots[index];
    if ( !multiplayer_read_slot( m, slot ) )
        return;
    if ( !slot->complete && !( m->holds && m->held.client_index == index ) ) {
        if ( !m->events_read )
            return; /* packets that wait may be another client's, which had the slot since then */
        slot->complete = 1;
        netcode_messages_pull_from_server( slot->messages, m->server, index, m->time );
        multiplayer_meet( m, slot );
        if ( !multiplayer_read_slot( m, slot ) )
            return;
    }
    multiplayer_slot_empty( m, slot );
}

static int multiplayer_banned( const struct multiplayer_t * m, uint64_t client_id )
{
    for ( int i = 0; i < m->num_bans; i++ )
        if ( m->bans[i] == client_id )
            return 1;
    return 0;
}

/* Called by netcode before a client gets its slot. */
static int multiplayer_admit( void * context, uint64_t client_id, const uint8_t * tag, uint64_t expires )
{
    struct multiplayer_t * m = (struct multiplayer_t *) context;
    (void) tag;
    (void) expires;
    return !m->refuses && !multiplayer_banned( m, client_id );
}

static void multiplayer_accept( struct multiplayer_t * m, int index, uint64_t session, uint64_t client_id )
{
    struct multiplayer_slot_t * slot = &m->slots[index];
    if ( netcode_server_client_session( m->server, index ) != session )
        return; /* it has ended already: its DISCONNECTED follows */
    if ( slot->messages == NULL )
        slot->messages = multiplayer_messages( m );
    if ( slot->messages == NULL ) {
        netcode_server_disconnect_client( m->server, index );
        return;
    }
    /* From this call on the slot's payloads are messages, and none of the last client is left. */
    netcode_messages_pull_from_server( slot->messages, m->server, index, m->time );
    slot->id = multiplayer_new_id( m );
    slot->session = session;
    slot->client_id = client_id;
    slot->credit = (double) m->relay_bytes_per_second;
    slot->met = 0;
    slot->state = SLOT_OPEN;
    multiplayer_event_now( m, MULTIPLAYER_PEER_CONNECTED, slot->id );
    multiplayer_introduce( m, slot );
}

/*  A new client. 0 if it has to wait: what the last one in its slot sent is not read yet, because the queue is full. */
static int multiplayer_connected( struct multiplayer_t * m, const struct netcode_event_t * event )
{
    struct multiplayer_slot_t * slot = &m->slots[event->client_index];
    m->held = *event;
    m->holds = 1;
    if ( slot->state == SLOT_GONE )
        multiplayer_finish_slot( m, event->client_index );
    if ( slot->state == SLOT_GONE )
        return 0;
    m->holds = 0;
    multiplayer_slot_empty( m, slot );
    multiplayer_accept( m, event->client_index, event->session, event->client_id );
    return 1;
}

static void multiplayer_server_events( struct multiplayer_t * m )
{
    struct netcode_event_t event;
    m->events_read = 0;
    while ( !multiplayer_events_full( m ) ) {
        if ( m->holds ) {
            event = m->held;
        } else if ( !netcode_server_next_event( m->server, &event ) ) {
            m->events_read = 1;
            return;
        }
        struct multiplayer_slot_t * slot = &m->slots[event.client_index];
        if ( event.type == NETCODE_EVENT_PAYLOAD ) {
            netcode_server_free_packet( m->server, event.data ); /* of a session that has ended: no slot is read so */
        } else if ( event.type == NETCODE_EVENT_CONNECTED ) {
            if ( !multiplayer_connected( m, &event ) )
                return;
        } else if ( event.type == NETCODE_EVENT_DISCONNECTED ) {
            slot->complete = 0;
            if ( slot->state == SLOT_OPEN )
                slot->state = SLOT_GONE;
            else
                slot->state = SLOT_EMPTY;
        }
    }
}

static void multiplayer_poll_slot( struct multiplayer_t * m, int index, double elapsed )
{
    struct multiplayer_slot_t * slot = &m->slots[index];
    if ( slot->state == SLOT_GONE )
        multiplayer_finish_slot( m, index );
    if ( slot->state == SLOT_EMPTY || slot->state == SLOT_GONE ||
         netcode_server_client_session( m->server, index ) != slot->session )
        return; /* an OPEN one's session has ended, and the events that say so are not read yet */
    double most = (double) m->relay_bytes_per_second;
    slot->credit += elapsed * most;
    slot->credit = slot->credit > most ? most : slot->credit;
    netcode_messages_pull_from_server( slot->messages, m->server, index, m->time );
    multiplayer_meet( m, slot );
    multiplayer_read_slot( m, slot );
    if ( multiplayer_broken( slot->messages ) )
        multiplayer_drop( m, slot, "its connection is broken: it acknowledged what was never sent" );
    if ( slot->state == SLOT_LEAVING && m->time >= slot->leave_time )
        netcode_server_disconnect_client( m->server, index ); /* its DISCONNECTED event empties the slot */
}

/* What is queued is sent. */
static void multiplayer_server_flush( struct multiplayer_t * m, double time )
{
    for ( int i = 0; i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_OPEN || m->slots[i].state == SLOT_LEAVING )
            netcode_messages_push_to_server( m->slots[i].messages, m->server, i, time );
}

static void multiplayer_server_poll( struct multiplayer_t * m, double time )
{
    double elapsed = time > m->time ? time - m->time : 0.0;
    m->time = time;
    netcode_server_update( m->server, time );
    multiplayer_server_events( m );
    /* Another slot is the first one each time: what little space there may be goes around. */
    m->turn = ( m->turn + 1 ) % m->num_slots;
    for ( int i = 0; i < m->num_slots; i++ )
        multiplayer_poll_slot( m, ( m->turn + i ) % m->num_slots, elapsed );
    multiplayer_server_flush( m, time );
}

/* 0 for all but one, as engines' target ids have it. */
static int multiplayer_server_put( struct multiplayer_t * m, const uint8_t * data, int bytes )
{
    if ( m->target > 0 && multiplayer_slot( m, m->target ) == NULL )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "the target peer is not connected" );
    if ( multiplayer_spread( m, MULTIPLAYER_SERVER_ID, m->target, m->channel, data, bytes ) != MULTIPLAYER_OK )
        return multiplayer_fail( m, MULTIPLAYER_NO_MEMORY,
                                 "a client that reads too slowly was disconnected: its buffer for reliable messages is "
                                 "full" );
    return MULTIPLAYER_OK;
}

#endif
