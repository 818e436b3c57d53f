/*  The messages between a server and its clients, as bytes. Numbers are little-endian. A client does not send its
    peer id, so it can not forge one: the id follows from its connection.

        client to server    DATA     0, target (4 bytes, signed), payload         on any channel
        server to client    DATA     0, source (4 bytes), payload                 on any channel
                            HELLO    1, version, flags, the client's peer id      these on the reliable channel,
                            ADD      2, 1 to 256 peer ids of other clients        so that peers are known before
                            REMOVE   3, a peer id                                 their reliable messages arrive
                            GOODBYE  4, 0 to 200 bytes of text: why

    target, as in the engine: 1 the server, 0 all others, a positive number that peer, a negative one all others but
    that peer. Needs the C library only. */

#ifndef FRAMES_H
#define FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    FRAME_DATA,
    FRAME_HELLO,
    FRAME_ADD,
    FRAME_REMOVE,
    FRAME_GOODBYE,

    FRAME_VERSION = 1,
    FRAME_RELAYS = 1, /* a flag of HELLO: the server passes messages on to other clients */
    FRAME_HEADER_BYTES = 5,
    FRAME_HELLO_BYTES = 7,
    FRAME_MAX_IDS = 256,
    FRAME_MAX_TEXT = 200,
    FRAME_CONTROL_BYTES = 1 + 4 * FRAME_MAX_IDS /* the largest frame that is not DATA */
};

/* The channels of the message layer: one for each transfer mode. */
enum { CHANNEL_RELIABLE, CHANNEL_ORDERED, CHANNEL_UNRELIABLE, CHANNELS };

struct frame_t {
    int type;
    int32_t peer;         /* DATA: target or source. HELLO, REMOVE: the id */
    const uint8_t * data; /* DATA: the payload. ADD: the ids. GOODBYE: the text, without a NUL */
    int bytes;
    int flags; /* HELLO */
};

static inline void frame_write_number( uint8_t * to, int32_t number )
{
    uint32_t bits = (uint32_t) number;
    for ( int i = 0; i < 4; i++ )
        to[i] = (uint8_t) ( bits >> 8 * i );
}

static inline int32_t frame_read_number( const uint8_t * from )
{
    uint32_t bits = from[0] | (uint32_t) from[1] << 8 | (uint32_t) from[2] << 16 | (uint32_t) from[3] << 24;
    int32_t number;
    memcpy( &number, &bits, sizeof( number ) ); /* two's complement, as everywhere */
    return number;
}

/* Peer ids are 1 for the server, and from 2 on for clients. */
static inline int frame_is_client_id( int32_t id )
{
    return id > 1;
}

/*  Reads what a client sent. 1, or 0 if no client of this format sends such a message: it is too short, has no payload,
    is of a type that only servers send, or its target can not be negated. */
static inline int frame_read_at_server( const uint8_t * bytes, int count, struct frame_t * frame )
{
    memset( frame, 0, sizeof( *frame ) );
    if ( count <= FRAME_HEADER_BYTES || bytes[0] != FRAME_DATA )
        return 0;
    frame->type = FRAME_DATA;
    frame->peer = frame_read_number( bytes + 1 );
    frame->data = bytes + FRAME_HEADER_BYTES;
    frame->bytes = count - FRAME_HEADER_BYTES;
    return frame->peer != INT32_MIN;
}

static inline int frame_read_ids( const uint8_t * bytes, int count, struct frame_t * frame )
{
    frame->data = bytes + 1;
    frame->bytes = count - 1;
    if ( frame->bytes < 4 || frame->bytes % 4 != 0 || frame->bytes > 4 * FRAME_MAX_IDS )
        return 0;
    if ( frame->type == FRAME_REMOVE && frame->bytes != 4 )
        return 0;
    for ( int at = 0; at < frame->bytes; at += 4 )
        if ( !frame_is_client_id( frame_read_number( frame->data + at ) ) )
            return 0;
    frame->peer = frame_read_number( frame->data );
    return 1;
}

/* Reads what a server sent over this channel. 1, or 0 if no server of this format sends such a message there. */
static inline int frame_read_at_client( const uint8_t * bytes, int count, int channel, struct frame_t * frame )
{
    memset( frame, 0, sizeof( *frame ) );
    if ( count < 1 || ( bytes[0] != FRAME_DATA && channel != CHANNEL_RELIABLE ) )
        return 0;
    frame->type = bytes[0];
    switch ( frame->type ) {
    case FRAME_DATA:
        if ( count <= FRAME_HEADER_BYTES )
            return 0;
        frame->peer = frame_read_number( bytes + 1 );
        frame->data = bytes + FRAME_HEADER_BYTES;
        frame->bytes = count - FRAME_HEADER_BYTES;
        return frame->peer >= 1;
    case FRAME_HELLO:
        if ( count != FRAME_HELLO_BYTES || bytes[1] != FRAME_VERSION )
            return 0;
        frame->flags = bytes[2];
        frame->peer = frame_read_number( bytes + 3 );
        return frame_is_client_id( frame->peer );
    case FRAME_ADD:
    case FRAME_REMOVE: return frame_read_ids( bytes, count, frame );
    case FRAME_GOODBYE:
        frame->data = bytes + 1;
        frame->bytes = count - 1;
        return frame->bytes <= FRAME_MAX_TEXT;
    default: return 0;
    }
}

/* The functions that write return the number of bytes. */
static inline int frame_write_data( uint8_t * to, int32_t peer, const uint8_t * data, int bytes )
{
    to[0] = FRAME_DATA;
    frame_write_number( to + 1, peer );
    memcpy( to + FRAME_HEADER_BYTES, data, (size_t) bytes );
    return FRAME_HEADER_BYTES + bytes;
}

static inline int frame_write_hello( uint8_t * to, int flags, int32_t id )
{
    to[0] = FRAME_HELLO;
    to[1] = FRAME_VERSION;
    to[2] = (uint8_t) flags;
    frame_write_number( to + 3, id );
    return FRAME_HELLO_BYTES;
}

/* ADD or REMOVE, of up to FRAME_MAX_IDS. */
static inline int frame_write_ids( uint8_t * to, int type, const int32_t * ids, int count )
{
    to[0] = (uint8_t) type;
    for ( int i = 0; i < count; i++ )
        frame_write_number( to + 1 + 4 * i, ids[i] );
    return 1 + 4 * count;
}

/* Continuation bytes that follow this first byte of UTF-8; -1 if none begins with it. */
static inline int frame_utf8_following( uint8_t first )
{
    if ( first < 0x80 )
        return 0;
    if ( first >= 0xC2 && first <= 0xDF )
        return 1;
    if ( first >= 0xE0 && first <= 0xEF )
        return 2;
    return first >= 0xF0 && first <= 0xF4 ? 3 : -1;
}

/* Bytes of the character at `from`: 0 if it is no printable character in well-formed UTF-8. */
static inline int frame_utf8_character( const uint8_t * from, int bytes )
{
    int following = frame_utf8_following( from[0] );
    if ( following < 0 || following >= bytes || from[0] < 0x20 || from[0] == 0x7F )
        return 0;
    for ( int i = 1; i <= following; i++ )
        if ( ( from[i] & 0xC0 ) != 0x80 )
            return 0;
    if ( from[0] == 0xC2 && from[1] < 0xA0 ) /* control characters */
        return 0;
    if ( ( from[0] == 0xE0 && from[1] < 0xA0 ) || ( from[0] == 0xED && from[1] > 0x9F ) )
        return 0;
    if ( ( from[0] == 0xF0 && from[1] < 0x90 ) || ( from[0] == 0xF4 && from[1] > 0x8F ) )
        return 0;
    return following + 1;
}

/*  Copies text that a peer or a script wrote, to be shown: what is not printable becomes '?', and it ends at a whole
    character. `capacity` includes the NUL. Returns the bytes without it. */
static inline int frame_copy_text( char * to, int capacity, const uint8_t * from, int bytes )
{
    int written = 0;
    for ( int at = 0; at < bytes; ) {
        int character = frame_utf8_character( from + at, bytes - at );
        int length = character > 0 ? character : 1;
        if ( written + length >= capacity )
            break;
        if ( character > 0 )
            memcpy( to + written, from + at, (size_t) length );
        else
            to[written] = '?';
        written += length;
        at += length;
    }
    to[written] = 0;
    return written;
}

static inline int frame_write_goodbye( uint8_t * to, const char * text )
{
    char shown[FRAME_MAX_TEXT + 1];
    int bytes = frame_copy_text( shown, (int) sizeof( shown ), (const uint8_t *) text, (int) strlen( text ) );
    to[0] = FRAME_GOODBYE;
    memcpy( to + 1, shown, (size_t) bytes );
    return 1 + bytes;
}

#endif
