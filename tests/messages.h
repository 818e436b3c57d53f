/*  For tests of messages. A link: two message objects, and packets between them that are delayed, lost, doubled and reordered,
    all from a seed, in virtual time. messages_check: what must hold of an object at any time. craft_...: packets by hand, from
    the wire's description alone. */

#ifndef MESSAGES_H
#define MESSAGES_H

enum { LINK_PACKETS = 4096 };

struct link_packet_t {
    double arrives;
    int bytes;
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
};

/* One direction. */
struct link_way_t {
    struct link_packet_t * packets;
    int count;
    double delay, jitter;    /* seconds */
    double loss, doubles;    /* 0 to 1 */
    double bytes_per_second; /* 0: no bottleneck */
    double queue_seconds;    /* what the bottleneck's queue holds */
    double busy_until;
    uint64_t sent, lost;
};

struct link_t {
    struct netcode_messages_t * ends[2];
    struct link_way_t ways[2]; /* from 0 to 1, and back */
    double now, step;
    uint64_t random;
    int checked; /* 1: messages_check after every step */
    void ( *tap )( struct link_t * link, int from, const uint8_t * packet, int bytes ); /* sees what is sent */
    void * owner;                                                                       /* the tap's */
    int refused[NETCODE_MESSAGES_DROP_REASONS]; /* what the ends said of packets */
};

/* ---- what must hold of an object at any time ---- */

enum { CHECK_BLOCKS = 65536 };

/* A block of a heap that is in use, and what was found to need it. */
struct check_block_t {
    uint32_t handle;
    int listed;
    uint32_t packets, remembered; /* in flight with it and not overdue; all that are remembered */
};

static struct check_block_t check_blocks[CHECK_BLOCKS];
static int check_block_count;

static int check_index[CHECK_BLOCKS]; /* of each handle, its position in check_blocks, or -1 */

static struct check_block_t * check_find( uint32_t handle )
{
    REQUIRE( handle < CHECK_BLOCKS && check_index[handle] >= 0 );
    return &check_blocks[check_index[handle]];
}

/* Blocks and handles name each other, and all others are free. Leaves the blocks in use in check_blocks. */
static void heap_check( const nc_heap_t * heap )
{
    uint32_t used = 0, free_handles = 0;
    REQUIRE( heap->handles < CHECK_BLOCKS );
    CHECK_LE( heap->end, heap->high );
    CHECK_LE( heap->end + 4 * heap->handles, heap->bytes );
    check_block_count = 0;
    for ( uint32_t i = 0; i <= heap->handles; i++ )
        check_index[i] = -1;
    for ( uint32_t at = 0; at < heap->end; at += nc_heap_block( heap, at )->bytes ) {
        const nc_block_t * found = nc_heap_block( heap, at );
        REQUIRE( found->bytes >= 8 && found->bytes % 8 == 0 && found->bytes <= heap->end - at );
        if ( !found->handle )
            continue;
        struct check_block_t block = { found->handle, 0, 0, 0 };
        REQUIRE( found->handle <= heap->handles && check_index[found->handle] < 0 );
        CHECK_EQ( *nc_heap_entry( heap, found->handle ), at + 8 );
        check_index[found->handle] = check_block_count;
        check_blocks[check_block_count++] = block;
        used += found->bytes;
    }
    CHECK_EQ( used, heap->used );
    for ( uint32_t handle = heap->free_handle; handle; handle = *nc_heap_entry( heap, handle ) - 0x80000000u )
        REQUIRE( handle <= heap->handles && !nc_heap_has( heap, handle ) && check_index[handle] < 0 &&
                 free_handles++ < heap->handles );
    CHECK_EQ( (uint32_t) check_block_count + free_handles, heap->handles );
}

static uint32_t heap_blocks( const nc_heap_t * heap )
{
    heap_check( heap );
    return (uint32_t) check_block_count;
}

/* A list of messages hangs together; each is in it once, and knows that it is. */
static void check_list( const struct netcode_messages_t * m, const nc_message_list_t * list, int index )
{
    uint32_t before = 0, count = 0, handle = list->head;
    for ( ; handle; handle = nc_message_at( m, handle )->next ) {
        struct check_block_t * block = check_find( handle );
        REQUIRE( count++ < list->count );
        CHECK_EQ( nc_message_at( m, handle )->previous, before );
        CHECK_EQ( nc_message_at( m, handle )->list, index );
        CHECK_EQ( block->listed++, 0 );
        before = handle;
    }
    CHECK_EQ( list->tail, before );
    CHECK_EQ( list->count, count );
}

/* In the queues of fragments those that were begun are first, and have something to send. */
static void check_queues( const struct netcode_messages_t * m )
{
    uint32_t total = 0, active = 0;
    for ( int i = 0; i < m->channel_count; i++ ) {
        const nc_message_channel_t * channel = &m->channels[i];
        uint32_t bytes = 0;
        for ( int queue = 0; queue < NC_QUEUES; queue++ ) {
            int begins = 0;
            check_list( m, &channel->queues[queue], queue );
            CHECK_EQ( m->active[queue] >> i & 1, channel->queues[queue].head != 0 );
            active |= (uint32_t) ( channel->queues[queue].head != 0 ) << queue;
            for ( uint32_t at = channel->queues[queue].head; at; at = nc_message_at( m, at )->next ) {
                const nc_message_t * message = nc_message_at( m, at );
                begins |= message->serial == 0;
                CHECK_EQ( message->channel, i );
                CHECK( message->is_cancelled || m->broken || message->expires >= m->next_expiry );
                CHECK( queue == NC_QUEUE_LOST ? message->serial != 0 : nc_message_queue( message ) == queue );
                CHECK( message->serial == 0 || queue == NC_QUEUE_LOST || ( !begins && nc_transfer_sends( message ) ) );
                bytes += message->serial ? 0 : nc_message_kept( message );
            }
        }
        CHECK_EQ( bytes, channel->queued_bytes );
        total += bytes;
    }
    CHECK_EQ( total, m->queued_bytes );
    (void) active;
}

/* How many messages in fragments are begun, and not given up. */
static uint32_t messages_begun( const struct netcode_messages_t * m )
{
    uint32_t count = 0;
    heap_check( &m->out );
    for ( int i = 0; i < check_block_count; i++ ) {
        const nc_message_t * message = nc_message_at( m, check_blocks[i].handle );
        count += message->fragments && message->serial && !message->is_cancelled;
    }
    return count;
}

/* How many unreliable messages were sent whose receipt is awaited. */
static uint32_t messages_watched( const struct netcode_messages_t * m )
{
    uint32_t count = 0;
    heap_check( &m->out );
    for ( int i = 0; i < check_block_count; i++ ) {
        const nc_message_t * message = nc_message_at( m, check_blocks[i].handle );
        count += message->serial && message->list == NC_LIST_NONE;
    }
    return count;
}

/* The ids of messages in fragments are a tree. */
static uint32_t check_tree_of_begun( const struct netcode_messages_t * m, uint32_t handle, uint32_t level,
                                     uint32_t bits )
{
    if ( !handle )
        return 0;
    const nc_message_t * message = nc_message_at( m, handle );
    REQUIRE( level <= 16 );
    CHECK( message->fragments && message->serial );
    CHECK_EQ( message->node.key & ( ( 1u << level ) - 1 ), bits );
    return 1 + check_tree_of_begun( m, message->node.below[0], level + 1, bits ) +
           check_tree_of_begun( m, message->node.below[1], level + 1, bits | 1u << level );
}

static void check_transfers( const struct netcode_messages_t * m )
{
    uint32_t ordered[NETCODE_MESSAGES_CHANNELS] = { 0 }, begun = 0, counted, large = 0, streams = 0;
    for ( int i = 0; i < check_block_count; i++ ) {
        const nc_message_t * message = nc_message_at( m, check_blocks[i].handle );
        const nc_message_channel_t * channel = &m->channels[message->channel];
        if ( !message->fragments || !message->serial )
            continue;
        begun++;
        large += !nc_message_is_prompt( message );
        streams += message->kind == NETCODE_MESSAGE_STREAM;
        ordered[message->channel] += message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED;
        if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
            CHECK_LE( (uint16_t) ( channel->next_order - message->order ), NC_MESSAGES_IDS );
        if ( message->list == NC_LIST_RELIABLE && !message->is_cancelled )
            CHECK( !nc_transfer_sends( message ) );
    }
    for ( int i = 0; i < m->channel_count; i++ ) {
        const uint16_t * counts = m->channels[i].ordered_count;
        counted = (uint32_t) counts[0] + counts[1] + counts[2] + counts[3];
        CHECK_EQ( ordered[i], counted );
    }
    CHECK( m->large_count == large && m->stream_count == streams );
    CHECK_EQ( check_tree_of_begun( m, m->begun, 0, 0 ), begun );
}

/* What has been sent of the buffer's blocks belongs to a channel. */
static void check_shares( const struct netcode_messages_t * m )
{
    uint32_t kept[NETCODE_MESSAGES_CHANNELS] = { 0 };
    for ( int i = 0; i < check_block_count; i++ )
        kept[nc_message_at( m, check_blocks[i].handle )->channel] += nc_heap_size( &m->out, check_blocks[i].handle );
    for ( int i = 0; i < m->channel_count; i++ )
        CHECK_EQ( kept[i], m->channels[i].kept_bytes );
}

/* Exactly the ids are known of which all was acknowledged, or a part, or which were left out. */
static void check_ids( const struct netcode_messages_t * m )
{
    static uint8_t unknown[NC_MESSAGES_IDS];
    memset( unknown, 0, sizeof( unknown ) );
    REQUIRE( m->next_id - m->oldest_id <= NC_MESSAGES_IDS );
    for ( int i = 0; i < check_block_count; i++ ) {
        const nc_message_t * message = nc_message_at( m, check_blocks[i].handle );
        if ( !message->serial || !nc_kind_is_reliable( message->kind ) || nc_transfer_is_known( message ) )
            continue;
        CHECK_LE( ( m->next_id - message->node.key ) & 0xffff, m->next_id - m->oldest_id );
        unknown[message->node.key % NC_MESSAGES_IDS] = 1;
    }
    for ( uint32_t id = m->oldest_id; id != m->next_id; id++ )
        CHECK_EQ( nc_bit_get( m->known_ids, id, NC_MESSAGES_IDS ), !unknown[id % NC_MESSAGES_IDS] );
}

static void check_fragments( const struct netcode_messages_t * m, uint32_t handle )
{
    nc_message_t * message = nc_message_at( m, handle );
    uint32_t first = message->first_fragment, lost = 0;
    uint64_t acked_bytes = (uint64_t) first * NETCODE_MESSAGES_FRAGMENT_BYTES;
    static uint8_t here[NC_MESSAGES_FRAGMENTS]; /* acknowledged, to be sent again, or in a packet in flight */
    if ( !message->fragments || message->is_cancelled || message->list == NC_LIST_NONE )
        return;
    if ( !message->serial ) {
        CHECK( message->next_fragment == 0 && message->acked_bytes == 0 );
        return;
    }
    CHECK( first < message->fragments && first <= message->next_fragment );
    CHECK( message->next_fragment <= message->fragments && message->next_fragment - first <= NC_MESSAGES_FRAGMENTS );
    for ( uint32_t i = first; i < message->next_fragment; i++ ) {
        uint8_t state = *nc_message_state( message, i );
        CHECK_NE( state & ( NC_FRAGMENT_ACKED | NC_FRAGMENT_LOST ), NC_FRAGMENT_ACKED | NC_FRAGMENT_LOST );
        acked_bytes += state & NC_FRAGMENT_ACKED ? nc_fragment_bytes( message->bytes, i ) : 0;
        lost += ( state & NC_FRAGMENT_LOST ) != 0;
        here[i % NC_MESSAGES_FRAGMENTS] = ( state & ( NC_FRAGMENT_ACKED | NC_FRAGMENT_LOST ) ) != 0;
    }
    CHECK_EQ( acked_bytes, message->acked_bytes );
    CHECK_EQ( lost, message->lost_fragments );
    for ( uint32_t i = m->sent_first; i != m->sent_end; i++ ) {
        const nc_sent_t * sent = nc_sent_at( m, i );
        uint32_t index = first + (uint16_t) ( sent->fragment - first );
        for ( uint32_t k = 0; sent->flags & NC_SENT_IN_FLIGHT && k < sent->count; k++ ) {
            const nc_carried_t * carried = nc_carried_at( m, sent->carried + k );
            if ( carried->handle & NC_CARRIED_FRAGMENT && nc_carried_message( m, carried ) == message &&
                 index < message->next_fragment )
                here[index % NC_MESSAGES_FRAGMENTS] = 1;
        }
    }
    for ( uint32_t i = first; i < message->next_fragment && !m->broken; i++ )
        CHECK( here[i % NC_MESSAGES_FRAGMENTS] );
}

/* Packets in flight. */
static void check_sent( const struct netcode_messages_t * m )
{
    uint32_t count = 0, packets_in_flight = 0, fragments_in_flight = 0, large_in_flight = 0, before = 0;
    double bytes = 0.0;
    REQUIRE( m->sent_end - m->sent_first <= m->window );
    for ( uint32_t i = m->sent_first; i != m->sent_end; i++ ) {
        const nc_sent_t * sent = nc_sent_at( m, i );
        int out = ( sent->flags & NC_SENT_IN_FLIGHT ) != 0;
        CHECK( count++ == 0 || (int32_t) ( sent->number - before ) > 0 );
        CHECK( !out || !( sent->flags & NC_SENT_ACKED ) );
        before = sent->number;
        packets_in_flight += (uint32_t) out;
        fragments_in_flight += out && sent->flags & NC_SENT_FRAGMENT;
        large_in_flight += out && sent->flags & NC_SENT_LARGE;
        bytes += out && !( sent->flags & NC_SENT_OVERDUE ) ? sent->bytes : 0;
    }
    CHECK_EQ( packets_in_flight, m->packets_in_flight );
    CHECK_EQ( fragments_in_flight, m->fragments_in_flight );
    CHECK_EQ( large_in_flight, m->large_in_flight );
    CHECK_EQ( (int64_t) bytes, (int64_t) m->in_flight );
}

/* What packets remember, one behind the other: how many of those in flight have each message. */
static void check_carried( const struct netcode_messages_t * m )
{
    REQUIRE( m->sent_end - m->carried_first <= m->sent_end - m->sent_first );
    for ( uint32_t i = m->sent_first; i != m->sent_end; i++ ) {
        const nc_sent_t * sent = nc_sent_at( m, i );
        uint32_t end = i + 1 == m->sent_end ? m->carried_end : nc_sent_at( m, i + 1 )->carried, fragments = 0;
        CHECK_LE( sent->count, ( end - sent->carried ) & 0xffff );
        CHECK_LE( ( end - sent->carried ) & 0xffff, NC_MESSAGES_CARRIED );
        CHECK( sent->count == 0 || ( !( sent->flags & NC_SENT_ACKED ) && (int32_t) ( i - m->carried_first ) >= 0 ) );
        for ( uint32_t k = 0; k < sent->count; k++ ) {
            const nc_carried_t * carried = nc_carried_at( m, sent->carried + k );
            int is_fragment = ( carried->handle & NC_CARRIED_FRAGMENT ) != 0;
            int is_out = sent->flags & NC_SENT_IN_FLIGHT && !( sent->flags & NC_SENT_OVERDUE );
            fragments += (uint32_t) is_fragment;
            if ( !nc_carried_message( m, carried ) || is_fragment )
                continue;
            check_find( carried->handle & NC_CARRIED_HANDLE )->packets += (uint32_t) is_out;
            check_find( carried->handle & NC_CARRIED_HANDLE )->remembered++;
        }
        CHECK( sent->count == 0 || fragments == ( ( sent->flags & NC_SENT_FRAGMENT ) != 0 ) );
    }
    CHECK_LE( nc_carried_space( m ), m->carried_count );
}

/* What was sent, oldest first: packets in flight have it, all of it if it is in fragments. */
static void check_reliable( const struct netcode_messages_t * m )
{
    uint32_t before = 0;
    check_list( m, &m->reliable, NC_LIST_RELIABLE );
    for ( uint32_t handle = m->reliable.head; handle; handle = nc_message_at( m, handle )->next ) {
        const nc_message_t * message = nc_message_at( m, handle );
        CHECK( handle == m->reliable.head || (int32_t) ( message->born - before ) >= 0 );
        before = message->born;
        CHECK_EQ( message->packets, check_find( handle )->packets );
        CHECK( message->packets || m->broken || message->fragments );
    }
}

static void check_reported( const struct netcode_messages_t * m )
{
    uint32_t tail = 0;
    int reported = 0;
    for ( uint32_t at = m->event_head; at; tail = at, at = nc_message_at( m, at )->next_event ) {
        REQUIRE( reported++ < check_block_count );
        check_find( at );
        CHECK_NE( nc_message_at( m, at )->event, 0 );
    }
    CHECK( m->event_head == 0 || m->event_tail == tail );
    for ( int i = 0; i < check_block_count; i++ )
        reported -= nc_message_at( m, check_blocks[i].handle )->event != 0;
    CHECK_EQ( reported, 0 );
}

static void check_sending( const struct netcode_messages_t * m )
{
    heap_check( &m->out );
    check_queues( m );
    check_carried( m );
    check_reliable( m );
    check_transfers( m );
    check_shares( m );
    check_ids( m );
    check_sent( m );
    check_reported( m );
    for ( int i = 0; i < check_block_count; i++ ) {
        const struct check_block_t * block = &check_blocks[i];
        const nc_message_t * message = nc_message_at( m, block->handle );
        CHECK_EQ( block->listed, message->list != NC_LIST_NONE );
        if ( !block->listed ) /* an unreliable one that a packet has, or it should have been freed */
            CHECK( message->serial ? block->remembered == 1 : message->event );
        uint32_t kept =
            message->kind == NETCODE_MESSAGE_STREAM ? (uint32_t) sizeof( netcode_messages_stream_t ) : message->bytes;
        CHECK_EQ( nc_heap_size( &m->out, block->handle ) + sizeof( uint32_t ),
                  nc_heap_cost( (uint32_t) sizeof( nc_message_t ) + kept +
                                nc_u32_smaller( message->fragments, NC_MESSAGES_FRAGMENTS ) ) );
        check_fragments( m, block->handle );
    }
    CHECK_GE( (int32_t) ( m->credit_limit - m->credit_spent ), 0 );
    CHECK_GE( (int64_t) m->controller.window, ( m->controller.saved > 0.0 ? 1 : 2 ) * NETCODE_MAX_PACKET_SIZE );
    CHECK_LE( (int64_t) m->controller.window, (int64_t) m->window * NETCODE_MAX_PACKET_SIZE );
}

/* What a reliable message costs of the credit. */
static uint32_t messages_cost( int kind, uint32_t bytes )
{
    uint32_t fragments = kind != 5 && bytes <= 1180 ? 0 : bytes ? ( bytes - 1 ) / 1168 + 1 : 1;
    return 80 + ( kind == 5 ? 32 : bytes ) + ( ( fragments < 4096 ? fragments : 4096 ) + 7 ) / 8;
}

static void check_arrived( const struct netcode_messages_t * m, uint32_t handle, uint32_t * cost )
{
    const nc_arrived_t * arrived = nc_arrived_at( m, handle );
    struct check_block_t * block = check_find( handle );
    CHECK_EQ( block->listed++, 0 );
    CHECK_LT( arrived->channel, m->channel_count );
    CHECK_EQ( arrived->id >= 0, nc_kind_is_reliable( arrived->kind ) );
    CHECK_EQ( nc_heap_size( &m->in, handle ) + sizeof( uint32_t ),
              nc_heap_cost( nc_arrived_bytes( arrived->kind, arrived->bytes ) ) );
    if ( arrived->id >= 0 )
        *cost += messages_cost( arrived->kind, arrived->bytes );
}

/* A tree of what has arrived: below a message on level n are keys that agree with its own in their lowest n bits. */
static void check_tree( const struct netcode_messages_t * m, uint32_t handle, uint32_t level, uint32_t bits,
                        int is_partial, uint32_t * cost )
{
    if ( !handle )
        return;
    REQUIRE( level <= 16 );
    check_arrived( m, handle, cost );
    nc_arrived_t * arrived = nc_arrived_at( m, handle );
    uint32_t fragments = nc_fragments_of( arrived->kind, arrived->bytes );
    uint16_t ahead = (uint16_t) ( arrived->order - m->channels[arrived->channel].expected_order );
    CHECK_EQ( arrived->node.key & ( ( 1u << level ) - 1 ), bits );
    if ( is_partial ) {
        CHECK_EQ( arrived->node.key, (uint16_t) arrived->id );
        CHECK( arrived->first_fragment < fragments && !nc_arrived_has( arrived, arrived->first_fragment ) );
        for ( uint32_t i = fragments; i < nc_u32_smaller( fragments + 7, NC_MESSAGES_FRAGMENTS ) / 8 * 8; i++ )
            CHECK_EQ( *nc_arrived_bits( arrived, i ) >> i % 8 & 1, 0 );
    } else
        CHECK( ahead != 0 && ahead < NC_MESSAGES_IDS && arrived->node.key == arrived->order &&
               arrived->kind == NETCODE_MESSAGE_RELIABLE_ORDERED );
    for ( uint32_t i = 0; i < 2; i++ )
        check_tree( m, arrived->node.below[i], level + 1, bits | i << level, is_partial, cost );
}

static void check_receiving( const struct netcode_messages_t * m )
{
    uint32_t cost = 0, tail = 0;
    heap_check( &m->in );
    for ( uint32_t at = m->ready_head; at; tail = at, at = nc_arrived_at( m, at )->next )
        check_arrived( m, at, &cost );
    CHECK( m->ready_head == 0 || m->ready_tail == tail );
    if ( m->in.fixed )
        check_arrived( m, m->in.fixed, &cost );
    for ( int i = 0; i < m->channel_count; i++ )
        check_tree( m, m->channels[i].waiting, 0, 0, 0, &cost );
    check_tree( m, m->partial, 0, 0, 1, &cost );
    for ( int i = 0; i < check_block_count; i++ )
        CHECK_EQ( check_blocks[i].listed, 1 );
    /* All that was received is here or was released; not more than was promised has come. */
    CHECK_EQ( m->credit_received - m->credit_released, cost );
    CHECK_GE( (int32_t) ( m->credit_granted - m->credit_received ), 0 );
    CHECK( m->newest_received < 0 || nc_messages_had_number( m, 0 ) );
}

static void messages_check( const struct netcode_messages_t * m )
{
    check_sending( m );
    check_receiving( m );
}

/* ---- packets by hand ---- */

struct craft_t {
    uint8_t data[4096];
    uint8_t * at;
};

static void craft_varint( struct craft_t * craft, uint32_t value )
{
    for ( ; value > 0x7f; value >>= 7 )
        put( &craft->at, value | 0x80, 1 );
    put( &craft->at, value, 1 );
}

/* `ack` -1: nothing is acknowledged. It asks for an ack. */
static void craft_begin( struct craft_t * craft, int64_t number, int64_t ack, uint32_t bits )
{
    craft->at = craft->data;
    put( &craft->at, ack < 0 ? 0x43 : 0x53, 1 );
    put( &craft->at, (uint64_t) number, 2 );
    put( &craft->at, ack < 0 ? 0 : (uint64_t) ack, 2 );
    put( &craft->at, bits, 4 );
}

static void craft_head( struct craft_t * craft, int first, int channel, int id, int order )
{
    int kind = first & 7;
    put( &craft->at, (uint64_t) ( first | ( channel ? 0x10 : 0 ) ), 1 );
    if ( channel )
        put( &craft->at, (uint64_t) channel, 1 );
    if ( kind >= 2 )
        put( &craft->at, (uint64_t) id, 2 );
    if ( kind == 5 || kind == 3 )
        put( &craft->at, (uint64_t) order, kind == 5 ? 4 : 2 );
}

static void craft_message( struct craft_t * craft, int kind, int channel, int id, int order, const void * data,
                           int bytes )
{
    craft_head( craft, kind, channel, id, order );
    craft_varint( craft, (uint32_t) bytes );
    put_bytes( &craft->at, data, (size_t) bytes );
}

/* `data`: the whole message's. */
static void craft_fragment( struct craft_t * craft, int kind, int channel, int id, int order, const uint8_t * data,
                            int total, int index )
{
    int rest = total - index * 1168, bytes = rest < 0 ? 0 : rest < 1168 ? rest : 1168;
    craft_head( craft, kind | 8, channel, id, order );
    put( &craft->at, (uint64_t) total, 4 );
    craft_varint( craft, (uint32_t) index );
    put_bytes( &craft->at, data + index * 1168, (size_t) bytes );
}

static void craft_limit( struct craft_t * craft, uint32_t credit, uint32_t largest )
{
    put( &craft->at, 0x1f, 1 );
    put( &craft->at, credit, 4 );
    craft_varint( craft, largest );
    put( &craft->at, 32, 1 );
    put( &craft->at, 0, 2 );
}

/* Of a message of so many bytes. */
static void craft_cancel( struct craft_t * craft, int id, uint32_t bytes )
{
    put( &craft->at, 0x27, 1 );
    put( &craft->at, (uint64_t) id, 2 );
    craft_varint( craft, messages_cost( 2, bytes ) );
}

static int craft_bytes( const struct craft_t * craft )
{
    return (int) ( craft->at - craft->data );
}

static int craft_give( const struct craft_t * craft, struct netcode_messages_t * to )
{
    return netcode_messages_process_packet( to, craft->data, craft_bytes( craft ) );
}

/* The newest number that a packet had. */
static int64_t messages_newest( const struct netcode_messages_t * m )
{
    uint64_t newest = m->next_number - 1;
    uint32_t skipped = m->skipped[newest / NC_MESSAGES_BLOCK % NC_MESSAGES_BLOCKS];
    return (int64_t) newest - ( skipped && newest % NC_MESSAGES_BLOCK == skipped );
}

/* For peers of a test that acknowledge what they did not see: no number of the present block will be, or was, skipped. */
static void messages_skip_nothing( struct netcode_messages_t * m )
{
    memset( m->skipped, 0, sizeof( m->skipped ) );
}

static uint8_t flow_data[300000];

static void sender_send( struct netcode_messages_t * m, int channel, int kind, int bytes, double ttl, uint64_t receipt )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = channel;
    message.kind = kind;
    message.data = flow_data;
    message.bytes = bytes;
    message.ttl_seconds = ttl;
    message.receipt = receipt;
    CHECK_EQ( netcode_messages_send_message( m, &message ), NETCODE_OK );
}

/* The rate lets nothing go, until messages_let_go. */
static void messages_hold( struct netcode_messages_t * m )
{
    m->config.congestion = NETCODE_MESSAGES_CONGESTION_FIXED;
    m->fixed_rate = 0.0;
    m->paced = m->urgent = -NETCODE_MAX_PACKET_SIZE;
}

static void messages_let_go( struct netcode_messages_t * m )
{
    m->fixed_rate = 125000.0;
    m->paced = m->urgent = NETCODE_MAX_PACKET_SIZE;
}

/* All that an object has to say at a time, to no peer. */
static int messages_drain( struct netcode_messages_t * from, double time )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int count = 0;
    netcode_messages_update( from, time );
    while ( netcode_messages_generate_packet( from, packet, (int) sizeof( packet ) ) > 0 )
        count++;
    return count;
}

/* Everything that waits to be read: how many. */
static int messages_read( struct netcode_messages_t * from )
{
    struct netcode_message_t message;
    int count = 0;
    while ( netcode_messages_receive( from, &message ) )
        count++;
    return count;
}

/*  Both ends, and nothing between them: what one says the other hears at once, unless `deaf` (a bit for each
    listener). */
static void messages_talk( struct netcode_messages_t * const ends[2], double time, int deaf )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    for ( int from = 0; from < 2; from++ ) {
        netcode_messages_update( ends[from], time );
        while ( ( bytes = netcode_messages_generate_packet( ends[from], packet, (int) sizeof( packet ) ) ) > 0 )
            if ( !( deaf >> !from & 1 ) ) {
                netcode_messages_set_time( ends[!from], time );
                CHECK_EQ( netcode_messages_process_packet( ends[!from], packet, bytes ), NETCODE_MESSAGES_DROP_NONE );
            }
    }
}

/* ---- the link ---- */

static double link_random( struct link_t * link )
{
    link->random ^= link->random << 13;
    link->random ^= link->random >> 7;
    link->random ^= link->random << 17;
    return (double) ( link->random >> 11 ) / 9007199254740992.0;
}

static void link_open( struct link_t * link, const struct netcode_messages_config_t * config, uint64_t seed,
                       double delay, double loss )
{
    memset( link, 0, sizeof( *link ) );
    link->random = seed * 0x9E3779B97F4A7C15u + 1;
    link->step = 1.0 / 60.0;
    for ( int i = 0; i < 2; i++ ) {
        link->ends[i] = netcode_messages_create( config, 0.0 );
        link->ways[i].packets = (struct link_packet_t *) malloc( LINK_PACKETS * sizeof( struct link_packet_t ) );
        if ( !link->ends[i] || !link->ways[i].packets )
            abort();
        link->ways[i].delay = delay;
        link->ways[i].loss = loss;
        link->ways[i].queue_seconds = 0.3;
    }
}

static void link_close( struct link_t * link )
{
    for ( int i = 0; i < 2; i++ ) {
        netcode_messages_destroy( link->ends[i] );
        free( link->ways[i].packets );
    }
}

static void link_put( struct link_t * link, int from, const uint8_t * data, int bytes )
{
    struct link_way_t * way = &link->ways[from];
    int copies = 1 + ( link_random( link ) < way->doubles );
    way->sent++;
    if ( link->tap )
        link->tap( link, from, data, bytes );
    if ( link_random( link ) < way->loss ) {
        way->lost++;
        return;
    }
    while ( copies-- && way->count < LINK_PACKETS ) {
        struct link_packet_t * packet = &way->packets[way->count];
        packet->arrives = link->now + way->delay + way->jitter * link_random( link );
        if ( way->bytes_per_second > 0.0 ) {
            way->busy_until = way->busy_until > link->now ? way->busy_until : link->now;
            if ( way->busy_until - link->now > way->queue_seconds ) {
                way->lost++;
                return;
            }
            way->busy_until += ( bytes + 28 ) / way->bytes_per_second;
            packet->arrives = way->busy_until + way->delay;
        }
        packet->bytes = bytes;
        memcpy( packet->data, data, (size_t) bytes );
        way->count++;
    }
}

/* The next packet for an end that has arrived by now, or 0. */
static int link_get( struct link_t * link, int to, uint8_t * data )
{
    struct link_way_t * way = &link->ways[!to];
    int best = -1;
    for ( int i = 0; i < way->count; i++ )
        if ( way->packets[i].arrives <= link->now &&
             ( best < 0 || way->packets[i].arrives < way->packets[best].arrives ) )
            best = i;
    if ( best < 0 )
        return 0;
    int bytes = way->packets[best].bytes;
    memcpy( data, way->packets[best].data, (size_t) bytes );
    way->packets[best] = way->packets[--way->count];
    return bytes;
}

static void link_pump( struct link_t * link, int end )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    netcode_messages_set_time( link->ends[end],
                               link->now ); /* as the glue does: what arrived is processed in its time */
    while ( ( bytes = link_get( link, end, packet ) ) > 0 )
        link->refused[netcode_messages_process_packet( link->ends[end], packet, bytes )]++;
    netcode_messages_update( link->ends[end], link->now );
    while ( ( bytes = netcode_messages_generate_packet( link->ends[end], packet, (int) sizeof( packet ) ) ) > 0 )
        link_put( link, end, packet, bytes );
    if ( link->checked )
        messages_check( link->ends[end] );
}

/* One tick of both ends. */
static void link_tick( struct link_t * link )
{
    link->now += link->step;
    link_pump( link, 0 );
    link_pump( link, 1 );
}

#endif
