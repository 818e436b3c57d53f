/*  Fuzz target: messages. An input is a schedule: two message objects, the messages and streams that they are given, the packets
    between them (delivered, lost, repeated, reordered, changed, made up), the clock, and the application that reads, or does not,
    and that accepts, refuses, stops and cancels streams.

    Checked all the time: a packet that is refused changes nothing but its counter and what the drop itself means; messages arrive as they were sent, at most
    once, in their order where they have one; a receipt has one end; each byte of a stream is written once, and is right; a stream
    has one end, which is complete only if all of it was written, and a refused one is never ACKED; buffers hold what their lists
    and trees say; messages break only for a reason that there is; work for one call is bounded. Once a packet was changed or made up (it is the core that keeps these away), a peer may have said anything: then only
    the structure is checked. At the end, when the input asks for it, the network heals and all that is reliable must arrive.
    Built and run by run.sh. */

#ifndef NETCODE_MESSAGES
#define NETCODE_MESSAGES
#endif
#include "fuzz.h"

enum { MESSAGES_WIRE = 32, MESSAGES_SENT = 512, MESSAGES_OPS = 300, MESSAGES_CHANNELS = 4, MESSAGES_LARGEST = 4000 };
enum { MESSAGES_STREAMS = 48, MESSAGES_HEARD = 96, MESSAGES_STREAM_BYTES = 8000, MESSAGES_STREAM_RECEIPT = 0x10000 };

struct messages_sent_t {
    uint8_t kind, channel, arrived, reported, dropped;
    int bytes;
    int wants_receipt;
};

/* A stream that was sent. The last three are what its receiver saw. */
struct messages_stream_t {
    struct messages_end_t * from;
    uint32_t bytes, tag;
    uint8_t channel, reported, cancelled, accepted, complete, refused;
};

/* A stream that has begun to arrive, forged ones included. */
struct messages_heard_t {
    struct messages_stream_t * stream; /* NULL: a packet was changed or made up, and it may belong to none */
    uint32_t bytes, written;
    int writes_left, ended;
    uint8_t times[MESSAGES_STREAM_BYTES];
};

struct messages_packet_t {
    int bytes;
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
};

struct messages_end_t {
    struct netcode_messages_t * it;
    struct messages_sent_t sent[MESSAGES_SENT];
    int sent_count;
    struct messages_packet_t wire[MESSAGES_WIRE]; /* on the way to the other end */
    int wire_count;
    int newest[MESSAGES_CHANNELS]
              [NETCODE_MESSAGE_KINDS]; /* serials of the last that arrived here: ordered or sequenced */
    struct messages_stream_t streams[MESSAGES_STREAMS];
    struct messages_heard_t heard[MESSAGES_HEARD];
    int stream_count, heard_count;
};

static struct {
    struct fuzz_input_t * input;
    struct messages_end_t ends[2];
    double now;
    int tainted;  /* an end received what neither sent */
    int limited;  /* messages may be given up */
    int repeated; /* a packet may arrive twice */
    int ending;   /* the connection is over */
    int calls;    /* of streams' functions */
} mf;

static uint32_t messages_serial_bytes( uint8_t * out, int end, int serial, int bytes )
{
    fuzz_fill( out, (size_t) bytes, (uint64_t) serial * 2 + (uint64_t) end );
    if ( bytes >= 2 ) {
        out[0] = (uint8_t) serial;
        out[1] = (uint8_t) ( serial >> 8 );
    }
    return (uint32_t) bytes;
}

static void messages_say( int end, uint8_t how, uint8_t size )
{
    static uint8_t data[MESSAGES_LARGEST];
    struct messages_end_t * e = &mf.ends[end];
    struct netcode_message_t message;
    if ( e->sent_count == MESSAGES_SENT )
        return;
    struct messages_sent_t * sent = &e->sent[e->sent_count];
    memset( &message, 0, sizeof( message ) );
    memset( sent, 0, sizeof( *sent ) );
    message.kind = how % NETCODE_MESSAGE_KINDS;
    message.channel = how / NETCODE_MESSAGE_KINDS % MESSAGES_CHANNELS;
    message.bytes = size < 224 ? 2 + size : 2 + ( size - 223 ) * 120;
    message.data = data;
    if ( size & 1 )
        message.receipt = (uint64_t) e->sent_count + 1;
    if ( how & 0x80 && message.kind != NETCODE_MESSAGE_RELIABLE_ORDERED )
        message.ttl_seconds = 0.05;
    messages_serial_bytes( data, end, e->sent_count, message.bytes );
    int answer = netcode_messages_send_message( e->it, &message );
    FUZZ_CHECK( answer != NETCODE_MESSAGES_BAD_ARGUMENT );
    if ( answer != NETCODE_OK )
        return;
    sent->kind = (uint8_t) message.kind;
    sent->channel = (uint8_t) message.channel;
    sent->bytes = message.bytes;
    sent->dropped = message.ttl_seconds > 0.0;
    sent->wants_receipt = message.receipt != 0;
    e->sent_count++;
}

/* ---- streams ---- */

static uint8_t messages_stream_byte( uint32_t tag, uint32_t offset )
{
    return (uint8_t) ( offset * 31 + ( offset >> 8 ) * 7 + tag * 13 );
}

static void messages_stream_read( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    const struct messages_stream_t * stream = (const struct messages_stream_t *) context;
    FUZZ_CHECK( bytes >= 1 && bytes <= NETCODE_MESSAGES_FRAGMENT_BYTES && !stream->reported && !stream->cancelled );
    FUZZ_CHECK( (uint64_t) offset + (uint64_t) bytes <= stream->bytes );
    for ( uint32_t i = 0; i < (uint32_t) bytes; i++ )
        data[i] = messages_stream_byte( stream->tag, offset + i );
    mf.calls++;
}

static int messages_stream_write( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    struct messages_heard_t * heard = (struct messages_heard_t *) context;
    FUZZ_CHECK( bytes >= 1 && bytes <= NETCODE_MESSAGES_FRAGMENT_BYTES && !heard->ended );
    FUZZ_CHECK( (uint64_t) offset + (uint64_t) bytes <= heard->bytes );
    for ( uint32_t i = 0; i < (uint32_t) bytes; i++ ) {
        FUZZ_CHECK( mf.tainted || data[i] == messages_stream_byte( heard->stream->tag, offset + i ) );
        FUZZ_CHECK( heard->bytes > MESSAGES_STREAM_BYTES || heard->times[offset + i]++ == 0 );
    }
    heard->written += (uint32_t) bytes;
    mf.calls++;
    if ( --heard->writes_left )
        return 1;
    if ( heard->stream )
        heard->stream->refused = 1;
    return 0;
}

static void messages_stream_end( void * context, int complete )
{
    struct messages_heard_t * heard = (struct messages_heard_t *) context;
    FUZZ_CHECK( heard->ended++ == 0 && ( !complete || heard->written == heard->bytes ) );
    if ( heard->stream )
        heard->stream->complete = (uint8_t) complete;
    fuzz_note( (uint64_t) complete );
    mf.calls++;
}

/* The tag says what the application does: it accepts, refuses, or stops after some writes. */
static int messages_stream_accept( void * context, struct netcode_messages_stream_t * stream )
{
    struct messages_end_t *e = (struct messages_end_t *) context, *other = &mf.ends[e == &mf.ends[0]];
    uint32_t index = stream->tag & 0xff;
    mf.calls++;
    FUZZ_CHECK( stream->channel >= 0 && stream->channel < MESSAGES_CHANNELS && !stream->context );
    FUZZ_CHECK( mf.tainted || index < (uint32_t) other->stream_count );
    struct messages_stream_t * sent = mf.tainted ? NULL : &other->streams[index];
    FUZZ_CHECK( !sent || ( sent->tag == stream->tag && sent->bytes == stream->bytes &&
                           sent->channel == stream->channel && sent->accepted++ == 0 ) );
    if ( e->heard_count == MESSAGES_HEARD || ( stream->tag >> 8 & 3 ) == 2 ) {
        if ( sent )
            sent->refused = 1;
        return 0;
    }
    struct messages_heard_t * heard = &e->heard[e->heard_count++];
    memset( heard, 0, sizeof( *heard ) );
    heard->stream = sent;
    heard->bytes = stream->bytes;
    heard->writes_left = ( stream->tag >> 8 & 3 ) == 3 ? 1 + (int) ( stream->tag >> 10 & 3 ) : -1;
    stream->context = heard;
    stream->write_function = messages_stream_write;
    stream->end_function = messages_stream_end;
    return 1;
}

static void messages_stream( int end, uint8_t how, uint8_t size )
{
    struct messages_end_t * e = &mf.ends[end];
    struct netcode_messages_stream_t stream;
    if ( e->stream_count == MESSAGES_STREAMS )
        return;
    struct messages_stream_t * sent = &e->streams[e->stream_count];
    memset( sent, 0, sizeof( *sent ) );
    memset( &stream, 0, sizeof( stream ) );
    sent->from = e;
    sent->bytes = stream.bytes = size < 200 ? size * 37u : UINT32_MAX - ( 255u - size ) * 500u;
    sent->tag = stream.tag = (uint32_t) e->stream_count | (uint32_t) ( how & 15 ) << 8;
    sent->channel = (uint8_t) ( stream.channel = how >> 4 & 3 );
    stream.receipt = MESSAGES_STREAM_RECEIPT + (uint64_t) e->stream_count;
    stream.context = sent;
    stream.read_function = messages_stream_read;
    int answer = netcode_messages_send_stream( e->it, &stream );
    FUZZ_CHECK( answer != NETCODE_MESSAGES_BAD_ARGUMENT );
    e->stream_count += answer == NETCODE_OK;
}

static void messages_cancel( int end, int index )
{
    struct messages_stream_t * sent = &mf.ends[end].streams[index];
    int answer = netcode_messages_cancel_stream( mf.ends[end].it, MESSAGES_STREAM_RECEIPT + (uint64_t) index );
    FUZZ_CHECK( answer == NETCODE_ERROR || mf.ends[end].it->broken || ( !sent->reported && !sent->cancelled ) );
    sent->cancelled |= answer == NETCODE_OK;
}

/* A packet from before CANCEL that arrives after it counts as the message's arrival: SPURIOUS, or ACKED if nothing was read. */
static void messages_hear_of_stream( struct messages_end_t * e, const struct netcode_messages_event_t * event )
{
    uint64_t index = event->receipt - MESSAGES_STREAM_RECEIPT;
    FUZZ_CHECK( index < (uint64_t) e->stream_count && event->kind == NETCODE_MESSAGE_STREAM );
    struct messages_stream_t * sent = &e->streams[index];
    FUZZ_CHECK( event->stream_bytes == sent->bytes && event->stream_bytes_done <= sent->bytes );
    if ( event->type == NETCODE_MESSAGES_EVENT_PROGRESS )
        return;
    FUZZ_CHECK( sent->reported ==
                ( event->type == NETCODE_MESSAGES_EVENT_SPURIOUS ? NETCODE_MESSAGES_EVENT_LOST : 0 ) );
    sent->reported = (uint8_t) event->type;
    if ( mf.tainted )
        return;
    if ( event->type == NETCODE_MESSAGES_EVENT_LOST )
        FUZZ_CHECK( sent->cancelled || sent->refused || mf.limited || mf.ending );
    else
        FUZZ_CHECK( sent->complete || ( ( sent->cancelled || mf.limited ) && !sent->refused ) );
}

/* No stream is left open, and each has one end for its receipt. */
static void messages_streams_are_over( struct messages_end_t * e )
{
    for ( int i = 0; i < e->stream_count; i++ )
        FUZZ_CHECK( e->streams[i].reported != 0 );
    for ( int i = 0; i < e->heard_count; i++ )
        FUZZ_CHECK( e->heard[i].ended == 1 );
}

/* Is this what the other end said, and its turn? */
static void messages_judge( int end, const struct netcode_message_t * message )
{
    static uint8_t expected[MESSAGES_LARGEST];
    struct messages_end_t *e = &mf.ends[end], *other = &mf.ends[!end];
    FUZZ_CHECK( message->channel >= 0 && message->channel < MESSAGES_CHANNELS && message->kind >= 0 &&
                message->kind < 5 );
    if ( mf.tainted )
        return;
    FUZZ_CHECK( message->bytes >= 2 );
    int serial = message->data[0] | message->data[1] << 8, kind = message->kind;
    FUZZ_CHECK( serial < other->sent_count );
    struct messages_sent_t * sent = &other->sent[serial];
    FUZZ_CHECK( sent->bytes == message->bytes && sent->channel == message->channel );
    messages_serial_bytes( expected, !end, serial, sent->bytes );
    FUZZ_CHECK( memcmp( expected, message->data, (size_t) sent->bytes ) == 0 );
    FUZZ_CHECK( sent->arrived++ == 0 );
    if ( kind == NETCODE_MESSAGE_UNRELIABLE || kind == NETCODE_MESSAGE_RELIABLE )
        return;
    int * newest = &e->newest[message->channel][kind];
    FUZZ_CHECK( serial > *newest );
    *newest = serial;
}

static void messages_read( int end, int count )
{
    struct netcode_message_t message;
    while ( count-- > 0 && netcode_messages_receive( mf.ends[end].it, &message ) ) {
        fuzz_note( (uint64_t) message.bytes * 8 + (uint64_t) message.kind );
        messages_judge( end, &message );
    }
}

static void messages_hear( int end )
{
    struct netcode_messages_event_t event;
    struct messages_end_t * e = &mf.ends[end];
    while ( netcode_messages_event( e->it, &event ) ) {
        fuzz_note( (uint64_t) event.type );
        FUZZ_CHECK( event.type >= NETCODE_MESSAGES_EVENT_ACKED && event.type <= NETCODE_MESSAGES_EVENT_BROKEN );
        if ( event.type == NETCODE_MESSAGES_EVENT_BROKEN ) {
            FUZZ_CHECK( event.reason >= NETCODE_MESSAGES_REASON_GIVEN_UP && event.reason == e->it->broken );
            FUZZ_CHECK( mf.tainted || ( event.reason == NETCODE_MESSAGES_REASON_GIVEN_UP && mf.limited ) ||
                        ( event.reason == NETCODE_MESSAGES_REASON_OUT_OF_STEP && mf.repeated ) );
            continue;
        }
        if ( event.receipt >= MESSAGES_STREAM_RECEIPT ) {
            messages_hear_of_stream( e, &event );
            continue;
        }
        FUZZ_CHECK( event.receipt >= 1 && event.receipt <= (uint64_t) e->sent_count );
        struct messages_sent_t * sent = &e->sent[event.receipt - 1];
        FUZZ_CHECK( sent->bytes == event.bytes && event.bytes_done <= event.bytes );
        if ( event.type == NETCODE_MESSAGES_EVENT_PROGRESS )
            continue;
        FUZZ_CHECK( sent->reported ==
                    ( event.type == NETCODE_MESSAGES_EVENT_SPURIOUS ? NETCODE_MESSAGES_EVENT_LOST : 0 ) );
        sent->reported = (uint8_t) event.type;
        FUZZ_CHECK( mf.tainted || event.type != NETCODE_MESSAGES_EVENT_LOST || mf.limited || mf.ending ||
                    sent->dropped || !nc_kind_is_reliable( sent->kind ) );
    }
}

static void messages_write( int end )
{
    struct messages_end_t * e = &mf.ends[end];
    int bytes, told = 0;
    netcode_messages_update( e->it, mf.now );
    for ( int i = 0; i < 64; i++ ) {
        struct messages_packet_t packet;
        int was_broken = e->it->broken; /* what it can not send may break it while it writes a packet: that leaves */
        bytes = netcode_messages_generate_packet( e->it, packet.data, NETCODE_MAX_PACKET_SIZE );
        FUZZ_CHECK( bytes == 0 || ( bytes >= 9 && bytes <= NETCODE_MAX_PACKET_SIZE ) );
        FUZZ_CHECK( !was_broken || bytes == 0 || ( bytes == 11 && told++ == 0 ) ); /* no more than that it is */
        if ( bytes == 0 )
            return;
        packet.bytes = bytes;
        fuzz_note( (uint64_t) bytes );
        if ( e->wire_count == MESSAGES_WIRE )
            memmove( e->wire, e->wire + 1, (size_t) --e->wire_count * sizeof( e->wire[0] ) );
        e->wire[e->wire_count++] = packet;
    }
}

/*  What a drop itself does to an object that is otherwise as it was. All packets being dropped for 10 s breaks it, as do a channel that
    does not exist and the ack of a number that was skipped; once it is broken, the other side is told at most each 0.1 s. */
static void messages_expect_drop( struct netcode_messages_t * it, int reason, int names_skipped )
{
    int breaks = reason == NETCODE_MESSAGES_DROP_CHANNEL ? NETCODE_MESSAGES_REASON_CHANNEL
                 : names_skipped                         ? NETCODE_MESSAGES_REASON_FORGED_ACK
                                                         : 0;
    it->stats.drops[reason]++;
    if ( reason == NETCODE_MESSAGES_DROP_BROKEN ) {
        if ( !it->peer_is_broken && it->now - it->ack_time >= 0.1 )
            it->broken_due = 1;
        return;
    }
    if ( reason == NETCODE_MESSAGES_DROP_NO_ROOM )
        return;
    if ( it->useless++ == 0 )
        it->useless_since = it->now;
    if ( !breaks && it->useless >= 8 && it->now - it->useless_since > 10.0 )
        breaks = reason == NETCODE_MESSAGES_DROP_VERSION ? NETCODE_MESSAGES_REASON_VERSION
                                                         : NETCODE_MESSAGES_REASON_OUT_OF_STEP;
    if ( breaks ) {
        it->broken = (uint8_t) breaks;
        it->broken_event = it->broken_due = 1;
    }
}

/* A block of exactly the packet's size, so that a byte too far is seen. A refused packet leaves everything as it was. */
static void messages_give( int end, const struct messages_packet_t * packet )
{
    static struct netcode_messages_t before;
    struct netcode_messages_t * it = mf.ends[end].it;
    uint8_t * block = (uint8_t *) malloc( (size_t) packet->bytes + !packet->bytes );
    if ( !block )
        abort();
    memcpy( block, packet->data, (size_t) packet->bytes );
    before = *it;
    int calls = mf.calls;
    int reason = netcode_messages_process_packet( it, block, packet->bytes );
    FUZZ_CHECK( reason >= 0 && reason < NETCODE_MESSAGES_DROP_REASONS );
    fuzz_note( (uint64_t) reason );
    if ( reason != NETCODE_MESSAGES_DROP_NONE ) {
        FUZZ_CHECK( mf.calls == calls );
        int names_skipped = reason == NETCODE_MESSAGES_DROP_ACK && it->broken == NETCODE_MESSAGES_REASON_FORGED_ACK;
        FUZZ_CHECK( mf.tainted || !names_skipped );
        messages_expect_drop( &before, reason, names_skipped );
        if ( packet->bytes > 9 && !( packet->data[0] & 0x30 ) && packet->data[9] == NC_FRAME_BROKEN &&
             reason == NETCODE_MESSAGES_DROP_BROKEN ) { /* it was heard */
            before.peer_is_broken = 1;
            before.broken_due &= it->broken_due;
        }
        if ( packet->bytes > 9 && !( packet->data[0] & 0x30 ) && packet->data[9] == NC_FRAME_LIMIT &&
             ( reason == NETCODE_MESSAGES_DROP_DUPLICATE || reason == NETCODE_MESSAGES_DROP_OLD ) && !before.broken &&
             it->broken ) { /* of another life */
            FUZZ_CHECK( it->broken == NETCODE_MESSAGES_REASON_OUT_OF_STEP && it->peer_channels );
            before.broken = it->broken;
            before.broken_event = before.broken_due = 1;
        }
        before.in = it->in; /* looking for memory may have tidied it up */
        FUZZ_CHECK( memcmp( &before, it, sizeof( before ) ) == 0 );
    }
    free( block );
}

static void messages_deliver( int end, uint8_t which, uint8_t how )
{
    struct messages_end_t * from = &mf.ends[!end];
    if ( from->wire_count == 0 )
        return;
    int index = which % from->wire_count;
    struct messages_packet_t packet = from->wire[index];
    if ( how & 2 ) { /* changed in transit */
        packet.data[fuzz_number( mf.input, 2 ) % (uint64_t) packet.bytes] ^= (uint8_t) ( fuzz_u8( mf.input ) | 1 );
        mf.tainted = 1;
    }
    if ( how & 4 && packet.bytes > 1 ) {
        packet.bytes -= 1 + fuzz_u8( mf.input ) % ( packet.bytes - 1 );
        mf.tainted = 1;
    }
    mf.repeated |= how & 8;
    if ( !( how & 8 ) ) {
        memmove( from->wire + index, from->wire + index + 1,
                 (size_t) ( from->wire_count - index - 1 ) * sizeof( from->wire[0] ) );
        from->wire_count--;
    }
    if ( !( how & 1 ) )
        messages_give( end, &packet );
}

/* The id of a message that is in fragments and on its way here, or one near the newest. */
static uint32_t messages_pick_id( const struct netcode_messages_t * it, uint8_t how, uint32_t tag )
{
    uint32_t newest = (uint32_t) it->newest_id;
    if ( ( how & 3 ) == 0 || ( ( how & 3 ) < 3 && !it->partial ) )
        return ( newest + 1 ) & 0xffff;
    if ( ( how & 3 ) == 3 )
        return ( newest - tag % 8 ) & 0xffff;
    const nc_node_t * node = nc_tree_node( &it->in, it->partial );
    uint32_t below = node->below[tag & 1];
    return ( how & 3 ) == 2 && below ? nc_tree_node( &it->in, below )->key : node->key;
}

static uint8_t * messages_make_fragment( uint8_t * at, uint8_t how, uint32_t id, uint32_t tag )
{
    if ( ( how & 7 ) < 3 ) { /* a stream's */
        uint32_t total = how & 0x20 ? fuzz_u8( mf.input ) * 37u : UINT32_MAX - tag;
        uint32_t index = fuzz_u8( mf.input ) % 4 + ( how & 0x40 ? 4094u : 0 );
        uint32_t bytes =
            index < nc_fragments_of( NETCODE_MESSAGE_STREAM, total ) ? nc_fragment_bytes( total, index ) : 0;
        *at++ = (uint8_t) ( NETCODE_MESSAGE_STREAM | NC_FRAME_FRAGMENT | ( tag & 2 ? NC_FRAME_KNOWN : 0 ) );
        at = nc_put_number( at, id, 2 );
        at = nc_put_number( at, tag << 8, 4 );
        at = nc_put_number( at, total, 4 );
        at = nc_put_varint( at, index );
        memset( at, how, bytes );
        return at + bytes;
    }
    uint32_t total = 1181 + tag; /* a message's: its last, which is small */
    int kind = NETCODE_MESSAGE_RELIABLE + ( how >> 5 ) % 3;
    *at++ = (uint8_t) ( kind | NC_FRAME_FRAGMENT );
    at = nc_put_number( at, id, 2 );
    at = nc_put_number( at, tag, (int) nc_kind_order_bytes( kind ) );
    at = nc_put_number( at, total, 4 );
    at = nc_put_varint( at, 1 );
    memset( at, how, total - 1168 );
    return at + total - 1168;
}

/* A frame of a transfer, as a malicious peer writes it. A second fragment in a packet is written as a message in one piece, but for some. */
static uint8_t * messages_make_frame( const struct netcode_messages_t * it, uint8_t * at, uint8_t how, int * fragments )
{
    uint32_t tag = fuzz_u8( mf.input ), id = messages_pick_id( it, how >> 3, tag );
    switch ( how & 7 ) {
    case 0:
    case 1:
    case 2:
    case 3:
        if ( ( *fragments )++ == 0 || how & 0x80 )
            return messages_make_fragment( at, how, id, tag );
        *at++ = NETCODE_MESSAGE_RELIABLE;
        at = nc_put_number( at, id, 2 );
        *at++ = 0;
        return at;
    case 4:
    case 5:
        *at++ = NC_FRAME_CANCEL;
        at = nc_put_number( at, id, 2 );
        return nc_put_varint( at, how & 0x20 ? 1181 + NC_MESSAGES_COST + tag : NC_MESSAGES_COST + tag % 16 );
    case 6:
        *at++ = NC_FRAME_REFUSE;
        *at++ = 2;
        at = nc_put_number( at, it->begun ? nc_tree_node( &it->out, it->begun )->key : tag, 2 );
        return nc_put_number( at, it->next_id - 1u - tag % 4, 2 );
    default:
        if ( tag < 8 ) {
            *at++ = NC_FRAME_BROKEN;
            *at++ = (uint8_t) tag;
            return at;
        }
        *at++ = NC_FRAME_LIMIT;
        at = nc_put_number( at, it->credit_limit + tag * 16, 4 );
        at = nc_put_varint( at, how & 0x20 ? 1180 + tag : MESSAGES_LARGEST );
        *at++ = (uint8_t) ( how & 0x40 ? tag % 34 : MESSAGES_CHANNELS );
        return nc_put_number( at, tag % 16 ? it->peer_epoch : tag, 2 );
    }
}

/* A packet of the input's own bytes, or of frames of transfers, behind a header that fits. */
static void messages_make_up( int end )
{
    struct messages_packet_t packet;
    const struct netcode_messages_t * it = mf.ends[end].it;
    uint8_t flags = fuzz_u8( mf.input );
    uint8_t * at = packet.data;
    *at++ = (uint8_t) ( NC_MESSAGES_VERSION | ( flags & 0x70 ) );
    at = nc_put_number( at, (uint32_t) ( it->newest_received + 1 + ( flags & 7 ) ), 2 );
    at = nc_put_number( at, flags & 0x10 ? (uint32_t) it->next_number - 1 - fuzz_u8( mf.input ) % 40 : 0, 2 );
    at = nc_put_number( at, flags & 0x10 ? (uint32_t) fuzz_number( mf.input, 2 ) * 0x10001 : 0, 4 );
    if ( flags & 0x20 )
        at = nc_put_number( at, 10, 2 );
    int fragments = 0;
    if ( flags & 0x80 )
        for ( int count = fuzz_u8( mf.input ) % 8; count >= 0; count-- ) {
            static uint8_t frame[NETCODE_MAX_PACKET_SIZE];
            uint8_t how = fuzz_u8( mf.input );
            size_t bytes = (size_t) ( messages_make_frame( it, frame, how, &fragments ) - frame );
            if ( bytes > (size_t) ( packet.data + NETCODE_MAX_PACKET_SIZE - at ) )
                break;
            memcpy( at, frame, bytes );
            at += bytes;
        }
    else
        for ( int count = fuzz_u8( mf.input ) % 64; count > 0; count-- )
            *at++ = fuzz_u8( mf.input );
    if ( !( flags & 0x80 ) && flags & 8 )
        for ( int i = 0; i < 1024; i++ )
            *at++ = (uint8_t) i;
    packet.bytes = (int) ( at - packet.data );
    mf.tainted = 1;
    messages_give( end, &packet );
}

/* Another connection: what waits for a receipt is reported, and nothing of the old one is left. */
static void messages_renew( void )
{
    mf.ending = 1;
    for ( int end = 0; end < 2; end++ ) {
        struct messages_end_t * e = &mf.ends[end];
        netcode_messages_reset( e->it, mf.now );
        messages_hear( end );
        for ( int i = 0; i < e->sent_count; i++ )
            FUZZ_CHECK( ( e->sent[i].reported != 0 ) == e->sent[i].wants_receipt );
        FUZZ_CHECK( e->it->out.used == 0 && e->it->in.used == 0 && e->it->queued_bytes == 0 );
        FUZZ_CHECK( !e->it->begun && !e->it->partial && !e->it->broken && !e->it->channels[0].kept_bytes );
        messages_streams_are_over( e );
        e->sent_count = e->wire_count = e->stream_count = e->heard_count = 0;
        memset( e->newest, 0xff, sizeof( e->newest ) );
    }
    mf.ending = mf.tainted = mf.repeated = 0;
}

/*  Returns how many blocks a tree has. None is deeper than a key has bits, and all below one agree with it in as many bits as they are
    deep, so that a search finds each. */
static uint32_t messages_count_tree( const nc_heap_t * heap, uint32_t handle, uint32_t depth, uint32_t path )
{
    if ( handle == 0 )
        return 0;
    FUZZ_CHECK( nc_heap_has( heap, handle ) );
    const nc_node_t * node = nc_tree_node( heap, handle );
    FUZZ_CHECK( depth <= 16 && node->key <= 0xffff && ( ( node->key ^ path ) & ( ( 1u << depth ) - 1 ) ) == 0 );
    return 1 + messages_count_tree( heap, node->below[0], depth + 1, path ) +
           messages_count_tree( heap, node->below[1], depth + 1, path | 1u << depth );
}

/* The trees of an object, and what else has to fit to its lists: all that was begun, and what its channels have in the send buffer. */
static void messages_look_inside( const struct netcode_messages_t * it )
{
    uint32_t kept = 0;
    messages_count_tree( &it->in, it->partial, 0, 0 );
    for ( int i = 0; i < it->channel_count; i++ ) {
        const nc_message_channel_t * channel = &it->channels[i];
        messages_count_tree( &it->in, channel->waiting, 0, 0 );
        for ( int queue = 0; queue < NC_QUEUES; queue++ )
            FUZZ_CHECK( ( channel->queues[queue].head != 0 ) == (int) ( it->active[queue] >> i & 1 ) );
        kept += channel->kept_bytes;
    }
    messages_count_tree( &it->out, it->begun, 0, 0 );
    FUZZ_CHECK( kept == it->out.used );
    FUZZ_CHECK( it->next_id - it->oldest_id <= NC_MESSAGES_IDS && it->refused_count <= NC_MESSAGES_REFUSED );
}

/* What is reported of an object fits together. */
static void messages_look( int end )
{
    struct netcode_messages_t * it = mf.ends[end].it;
    struct netcode_messages_stats_t stats;
    struct netcode_messages_channel_stats_t channel;
    int queued = 0;
    messages_look_inside( it );
    netcode_messages_stats( it, &stats );
    FUZZ_CHECK( stats.bytes_in_flight >= 0.0 && stats.loss_sent >= 0.0 && stats.loss_sent <= 1.0 );
    FUZZ_CHECK( stats.loss_received >= 0.0 && stats.loss_received <= 1.0 && stats.rtt >= 0.0 && stats.jitter >= 0.0 );
    int drains = it->controller.draining && it->controller.saved > 0.0; /* the queue is let drain */
    FUZZ_CHECK( stats.congestion_window >= ( drains ? 1.0 : 2.0 ) * NETCODE_MAX_PACKET_SIZE );
    for ( int i = 0; i < MESSAGES_CHANNELS; i++ ) {
        netcode_messages_channel_stats( it, i, &channel );
        FUZZ_CHECK( channel.queued_messages > 0 || channel.queued_bytes == 0 );
        FUZZ_CHECK( channel.queued_seconds >= 0.0 );
        queued += channel.queued_bytes;
    }
    FUZZ_CHECK( queued == (int) it->queued_bytes );
}

/* Calls that are mistakes: refused, and nothing changes. */
static void messages_mistake( int end )
{
    static const struct {
        int channel, kind, bytes;
        double seconds;
    } wrong[] = { { -1, 0, 4, 0.0 }, { 4, 0, 4, 0.0 }, { 0, 5, 4, 0.0 },  { 0, -1, 4, 0.0 },
                  { 0, 0, -4, 0.0 }, { 0, 3, 4, 1.0 }, { 0, 0, 4, 1e301 } };
    struct netcode_messages_t * it = mf.ends[end].it;
    struct netcode_message_t message;
    struct netcode_messages_stats_t stats;
    struct netcode_messages_event_t event;
    struct netcode_messages_channel_stats_t channel;
    struct netcode_messages_stream_t stream;
    uint8_t data[16] = { 0 };
    memset( &stream, 0, sizeof( stream ) );
    FUZZ_BAD( netcode_messages_send_stream( it, &stream ) );
    FUZZ_BAD( netcode_messages_send_stream( it, NULL ) );
    FUZZ_BAD( netcode_messages_send_stream( NULL, &stream ) );
    FUZZ_BAD( netcode_messages_cancel_stream( NULL, 1 ) );
    for ( size_t i = 0; i < sizeof( wrong ) / sizeof( wrong[0] ); i++ ) {
        memset( &message, 0, sizeof( message ) );
        message.channel = wrong[i].channel;
        message.kind = wrong[i].kind;
        message.bytes = wrong[i].bytes;
        message.ttl_seconds = wrong[i].seconds;
        message.data = data;
        FUZZ_BAD( FUZZ_CHECK( netcode_messages_send_message( it, &message ) == NETCODE_MESSAGES_BAD_ARGUMENT ) );
    }
    FUZZ_BAD( netcode_messages_send( it, 0, 0, NULL, 4 ) );
    FUZZ_BAD( netcode_messages_send_message( it, NULL ) );
    FUZZ_BAD( netcode_messages_send_message( NULL, &message ) );
    FUZZ_BAD( netcode_messages_receive( NULL, &message ) );
    FUZZ_BAD( netcode_messages_receive( it, NULL ) );
    FUZZ_BAD( netcode_messages_event( NULL, &event ) );
    FUZZ_BAD( netcode_messages_event( it, NULL ) );
    FUZZ_BAD( netcode_messages_process_packet( NULL, data, 9 ) );
    FUZZ_BAD( netcode_messages_process_packet( it, NULL, 9 ) );
    FUZZ_BAD( netcode_messages_process_packet( it, data, -1 ) );
    FUZZ_BAD( netcode_messages_generate_packet( NULL, data, 1200 ) );
    FUZZ_BAD( netcode_messages_generate_packet( it, NULL, 1200 ) );
    FUZZ_BAD( netcode_messages_generate_packet( it, data, 16 ) );
    FUZZ_BAD( netcode_messages_update( NULL, 1.0 ) );
    FUZZ_BAD( netcode_messages_reset( NULL, 1.0 ) );
    FUZZ_BAD( netcode_messages_flush( NULL ) );
    FUZZ_BAD( netcode_messages_set_time( NULL, 1.0 ) );
    FUZZ_BAD( netcode_messages_next_deadline( NULL ) );
    FUZZ_BAD( netcode_messages_stats( NULL, &stats ) );
    FUZZ_BAD( netcode_messages_stats( it, NULL ) );
    FUZZ_BAD( netcode_messages_channel_stats( NULL, 0, &channel ) );
    FUZZ_BAD( netcode_messages_channel_stats( it, 0, NULL ) );
    FUZZ_BAD( netcode_messages_channel_stats( it, -1, &channel ) );
    FUZZ_BAD( netcode_messages_channel_stats( it, MESSAGES_CHANNELS, &channel ) );
}

static void messages_step( uint8_t op )
{
    int end = op & 1;
    switch ( op >> 1 & 15 ) {
    case 0:
    case 1:
    case 2: {
        uint8_t how = fuzz_u8( mf.input ), size = fuzz_u8( mf.input );
        if ( ( op >> 1 & 15 ) == 2 && op & 0x20 )
            messages_stream( end, how, size );
        else
            messages_say( end, how, size );
        break;
    }
    case 3:
    case 4:
        mf.now += 1.0 / 60.0;
        messages_write( end );
        break;
    case 5:
        mf.now += ( fuzz_u8( mf.input ) + 1 ) * 0.01;
        messages_write( end );
        break;
    case 6:
    case 7: messages_deliver( end, 0, 0 ); break;
    case 8: messages_deliver( end, fuzz_u8( mf.input ), op >> 5 ); break;
    case 9: messages_deliver( end, fuzz_u8( mf.input ), (uint8_t) ( 8 | op >> 5 ) ); break;
    case 10: messages_read( end, 1 + fuzz_u8( mf.input ) % 8 ); break;
    case 11:
        if ( op >> 5 == 7 && mf.ends[end].stream_count )
            messages_cancel( end, fuzz_u8( mf.input ) % mf.ends[end].stream_count );
        else
            messages_hear( end );
        break;
    case 12: messages_make_up( end ); break;
    case 13:
        if ( op >> 5 == 7 )
            messages_renew();
        netcode_messages_flush( mf.ends[end].it );
        messages_look( end );
        break;
    case 14:
        if ( op >> 5 == 7 )
            messages_mistake( end );
        else
            mf.ends[end].wire_count = 0;
        break;
    default:
        for ( int i = op >> 5; i >= 0; i-- ) { /* a good network for a while */
            mf.now += 0.02;
            messages_write( end );
            while ( mf.ends[end].wire_count )
                messages_deliver( !end, 0, 0 );
            end = !end;
        }
    }
    FUZZ_CHECK( netcode_messages_next_deadline( mf.ends[end].it ) >= mf.now - 1e9 );
    messages_look_inside( mf.ends[end].it );
}

/* The network heals, both ends read: what is reliable arrives, each receipt is reported, and the buffers are empty. */
static void messages_heal( void )
{
    if ( mf.tainted || mf.limited )
        return;
    for ( int end = 0; end < 2; end++ ) /* or it would take hours */
        for ( int i = 0; i < mf.ends[end].stream_count; i++ )
            if ( mf.ends[end].streams[i].bytes > MESSAGES_STREAM_BYTES )
                messages_cancel( end, i );
    for ( int round = 0; round < 4000; round++ ) {
        mf.now += 0.02;
        for ( int end = 0; end < 2; end++ ) {
            messages_write( end );
            while ( mf.ends[end].wire_count )
                messages_deliver( !end, 0, 0 );
            messages_read( !end, 1000 );
            messages_hear( end );
            if ( mf.ends[end].it->broken ) /* which messages_hear has judged */
                return;
        }
        if ( round > 200 && mf.ends[0].it->out.used + mf.ends[1].it->out.used == 0 )
            break;
    }
    for ( int end = 0; end < 2; end++ ) {
        struct messages_end_t * e = &mf.ends[end];
        FUZZ_CHECK( e->it->out.used == 0 && e->it->in.used == 0 );
        messages_streams_are_over( e );
        for ( int i = 0; i < e->stream_count; i++ )
            FUZZ_CHECK( e->streams[i].complete || e->streams[i].cancelled || e->streams[i].refused );
        for ( int i = 0; i < e->sent_count; i++ ) {
            FUZZ_CHECK( ( e->sent[i].reported != 0 ) == e->sent[i].wants_receipt );
            FUZZ_CHECK( e->sent[i].arrived || e->sent[i].dropped ||
                        e->sent[i].kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED ||
                        !nc_kind_is_reliable( e->sent[i].kind ) );
        }
    }
}

static void fuzz_messages( struct fuzz_input_t * input )
{
    struct netcode_messages_config_t config;
    uint8_t how = fuzz_u8( input );
    mf.now = 0.0;
    mf.tainted = mf.limited = mf.repeated = mf.ending = mf.calls = 0;
    for ( int i = 0; i < 2; i++ )
        mf.ends[i].sent_count = mf.ends[i].wire_count = mf.ends[i].stream_count = mf.ends[i].heard_count = 0;
    memset( mf.ends[0].newest, 0xff, sizeof( mf.ends[0].newest ) );
    memset( mf.ends[1].newest, 0xff, sizeof( mf.ends[1].newest ) );
    mf.input = input;
    netcode_default_messages_config( &config );
    config.channels = MESSAGES_CHANNELS;
    config.max_message_bytes = MESSAGES_LARGEST;
    config.window_packets = 16;
    config.upgrade_large = 1;
    config.accept_stream_function = messages_stream_accept;
    config.congestion = ( how & 3 ) % 3;
    config.weights[1] = 3;
    config.priorities[2] = 1;
    config.max_retries = how & 4 ? 2 : 0;
    mf.limited = config.max_retries;
    for ( int i = 0; i < 2; i++ ) {
        config.accept_stream_context = &mf.ends[i];
        mf.ends[i].it = netcode_messages_create( &config, 0.0 );
        if ( !mf.ends[i].it )
            abort();
    }
    for ( int i = 0; i < MESSAGES_OPS && input->at < input->bytes; i++ )
        messages_step( fuzz_u8( input ) );
    if ( how & 8 )
        messages_heal();
    for ( int i = 0; i < 2; i++ ) {
        netcode_messages_destroy( mf.ends[i].it );
        for ( int k = 0; k < mf.ends[i].heard_count; k++ )
            FUZZ_CHECK( mf.ends[i].heard[k].ended == 1 );
    }
}

FUZZ_TARGET( messages )
