/*  Proofs of the messages' writers of frames: what a packet is said to have room for is written within it, and read back
    as what it was; and what a packet in flight with a fragment is found by. A packet is here what is left of it. Run:
    tests/prove/run.sh messages_build */

#define NETCODE_MESSAGES
#include "prove.h"

enum { HANDLE = 1, DATA = 8, FRAGMENT_PACKET = 1200 };
#define NO_BLOCK 0x80000000u /* an entry of a free handle */

/* A send buffer with one message, whose handle is HANDLE. */
static struct {
    nc_block_t head;
    nc_message_t message;
    uint8_t data[DATA];
    uint32_t more, offset;
} block;

static struct netcode_messages_t messages;
static nc_carried_t carried[2 * NC_MESSAGES_CARRIED];
static nc_build_t build;

/* Any number of entries, and space for any number more. */
static void any_carried( void )
{
    messages.carried = carried;
    messages.carried_count = 2 * NC_MESSAGES_CARRIED;
    messages.carried_end = any_u32();
    build.count = any_below( NC_MESSAGES_CARRIED + 1 );
    build.most_carried = any_below( NC_MESSAGES_CARRIED + 1 );
}

/* So many bytes are left, at most. */
static void any_build( size_t most )
{
    size_t bytes = any_size_up_to( most );
    static uint8_t packet[24];
    build.start = build.at = packet + sizeof( packet ) - bytes;
    build.end = packet + sizeof( packet );
    build.tracked = any_int() != 0;
    any_carried();
}

static nc_message_t * any_message( uint32_t most )
{
    nc_message_t * message = &block.message;
    messages.out.base = (uint8_t *) &block;
    messages.out.bytes = sizeof( block );
    messages.out.handles = 1;
    block.offset = sizeof( nc_block_t );
    message->bytes = any_u32();
    GIVEN( message->bytes <= most );
    message->channel = (uint8_t) any_below( NETCODE_MESSAGES_CHANNELS );
    message->kind = (uint8_t) any_below( NETCODE_MESSAGE_STREAM + 1 );
    message->node.key = any_u16();
    message->order = any_u32();
    message->receipt = any_u64();
    message->serial = any_u32();
    message->packets = any_u32();
    message->fragments = nc_fragments_of( message->kind, message->bytes );
    GIVEN( message->kind == NETCODE_MESSAGE_STREAM || message->bytes <= NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( !message->fragments || nc_kind_is_reliable( message->kind ) );
    messages.next_number = any_u64();
    return message;
}

/* No writer here writes ACK_RANGES. */
int answer_no_ranges( nc_source_t * source, nc_acks_t * acks )
{
    (void) source;
    (void) acks;
    CLAIM( 0 );
    return 0;
}

void answer_no_message( nc_source_t * source, nc_frame_t * frame, uint32_t first )
{
    (void) source;
    (void) frame;
    (void) first;
    CLAIM( 0 );
}

static nc_frame_t read_back( void )
{
    nc_source_t source = { build.start, build.at, 0 };
    nc_frame_t frame;
    nc_acks_t acks;
    nc_frame_read( &source, &frame, &acks );
    CLAIM( !source.failed && source.at == source.end );
    return frame;
}

void prove_messages_build_message( void )
{
    any_build( 24 );
    nc_message_t * message = any_message( DATA );
    uint32_t probe = any_below( DATA );
    uint32_t at = build.count, packets = message->packets;
    int kind = message->kind;
    int remember = nc_kind_is_reliable( kind ) || message->receipt != 0;
    GIVEN( kind != NETCODE_MESSAGE_STREAM );
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_message( &messages, &build, HANDLE, remember );
    CLAIM( build.at <= build.end && build.last == build.start );
    CLAIM( build.count == at + (uint32_t) remember && message->packets == packets + (uint32_t) remember );
    CLAIM( build.last_data + message->bytes == build.at );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == -1 && frame.kind == kind && frame.channel == message->channel );
    CLAIM( frame.id == ( kind >= 2 ? message->node.key : 0 ) &&
           frame.order == ( kind == 3 ? message->order & 0xffff : 0 ) );
    CLAIM( frame.bytes == message->bytes && frame.data_bytes == message->bytes );
    CLAIM( probe >= message->bytes || frame.data[probe] == block.data[probe] );
}

void prove_messages_build_cancel( void )
{
    any_build( 7 );
    nc_message_t * message = any_message( UINT32_MAX );
    uint32_t cost = nc_messages_cost( message->kind, message->bytes );
    message->is_cancelled = 1;
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_cancel( &messages, &build, HANDLE );
    CLAIM( build.at <= build.end );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == NC_FRAME_CANCEL && frame.id == message->node.key );
    CLAIM( frame.bytes == ( message->acked_bytes ? 0 : cost ) );
}

/* All refused ids, in their order, and no others. */
void prove_messages_build_refusals( void )
{
    static uint8_t packet[2 + 2 * NC_MESSAGES_REFUSED];
    uint32_t count = any_below( NC_MESSAGES_REFUSED + 1 ), nth = any_below( NC_MESSAGES_REFUSED );
    for ( int i = 0; i < NC_MESSAGES_REFUSED; i++ )
        messages.refused[i] = any_u16();
    messages.refused_count = count;
    build.start = build.at = packet;
    nc_build_refusals( &messages, &build );
    CLAIM( build.at == packet + ( count ? 2 + 2 * count : 0 ) );
    if ( count == 0 )
        return;
    nc_frame_t frame = read_back();
    CLAIM( frame.type == NC_FRAME_REFUSE && frame.bytes == count );
    CLAIM( nth >= count || ( frame.data[1 + 2 * nth] | frame.data[2 + 2 * nth] << 8 ) == messages.refused[nth] );
}

/* Numbers are counted elsewhere. */
void answer_count_number( struct netcode_messages_t * it )
{
    it->next_number++;
}

/* A packet that says nothing but why: the other side reads it, with a number that it has not had, and no ack. */
void prove_messages_build_broken( void )
{
    static struct netcode_messages_t other;
    static nc_plan_t plan;
    static uint8_t packet[11];
    int reason = 1 + (int) any_below( NETCODE_MESSAGES_REASON_VERSION );
    messages.next_number = any_u64();
    GIVEN( messages.next_number < (uint64_t) 1 << 60 );
    messages.broken = (uint8_t) reason;
    messages.broken_due = 1;
    int64_t number = (int64_t) messages.next_number;
    nc_build_broken( &messages, &build, packet );
    int bytes = nc_build_end( &messages, &build );
    CLAIM( bytes == 11 && !messages.broken_due && messages.broken == reason );
    CLAIM( messages.next_number == (uint64_t) number + 1 );
    nc_source_t source = { packet, packet + bytes, 0 };
    other.newest_received = number - 1;
    CLAIM( nc_messages_read_header( &other, &source, &plan ) == NETCODE_MESSAGES_DROP_NONE );
    CLAIM( plan.number == number && !plan.acks.valid && !plan.asks );
    build.start = packet + 9;
    build.at = packet + bytes;
    CLAIM( source.at == build.start );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == NC_FRAME_BROKEN && frame.value == (uint32_t) reason );
}

/* ---- fragments ---- */

static struct {
    nc_block_t head;
    nc_message_t message;
    netcode_messages_stream_t stream;
    uint8_t states[NC_MESSAGES_FRAGMENTS];
    uint32_t more, offset;
} transfer;

static uint32_t read_index, read_count;

/* The application's function: it is asked for bytes of the stream alone, and for as many as fit. */
static void read_stream( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    uint64_t total = transfer.message.bytes;
    CLAIM( context == &transfer && offset == (uint64_t) read_index * 1168 && bytes >= 1 && bytes <= 1168 );
    CLAIM( (uint64_t) offset + (uint64_t) bytes <= total && ( bytes == 1168 || offset + (uint64_t) bytes == total ) );
    CLAIM( data + bytes <= build.end );
    data[0] = data[bytes - 1] = 0x5a;
    read_count++;
}

static nc_message_t * any_transfer( void )
{
    nc_message_t * message = &transfer.message;
    messages.out.base = (uint8_t *) &transfer;
    messages.out.bytes = sizeof( transfer );
    messages.out.handles = 1;
    transfer.offset = sizeof( nc_block_t );
    message->kind = NETCODE_MESSAGE_STREAM;
    message->bytes = any_u32();
    message->fragments = nc_fragments_of( NETCODE_MESSAGE_STREAM, message->bytes );
    message->channel = (uint8_t) any_below( NETCODE_MESSAGES_CHANNELS );
    message->node.key = any_u16();
    message->order = any_u32();
    message->serial = any_u32();
    transfer.stream.context = &transfer;
    transfer.stream.read_function = read_stream;
    return message;
}

void prove_messages_build_fragment( void )
{
    static uint8_t packet[FRAGMENT_PACKET];
    static nc_message_channel_t channels[NETCODE_MESSAGES_CHANNELS];
    nc_message_t * message = any_transfer();
    GIVEN( message->channel < NETCODE_MESSAGES_CHANNELS );
    messages.channels = channels;
    channels[message->channel].weight = 1;
    message->next_fragment = read_index = any_below( message->fragments );
    build.start = build.at = packet;
    build.end = packet + any_size_up_to( FRAGMENT_PACKET );
    build.tracked = any_int() != 0;
    any_carried();
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_fragment( &messages, &build, HANDLE );
    CLAIM( build.at <= build.end && build.tracked && build.asks && !build.last );
    CLAIM( build.flags == NC_SENT_FRAGMENT && build.fragment == (uint16_t) read_index );
    CLAIM( read_count == ( message->bytes != 0 ) );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == -2 && frame.kind == NETCODE_MESSAGE_STREAM && frame.channel == message->channel );
    CLAIM( frame.id == message->node.key && frame.order == message->order && frame.bytes == message->bytes );
    CLAIM( frame.known == ( message->acked_bytes != 0 ) );
    CLAIM( frame.index == read_index && frame.data_bytes == nc_fragment_bytes( message->bytes, read_index ) );
    CLAIM( message->bytes == 0 || ( frame.data[0] == 0x5a && frame.data[frame.data_bytes - 1] == 0x5a ) );
}

/*  A packet knows its message by the serial, which no other one of this handle has, and 16 bits of its fragment's index. Exactly those within
    the window are found, whatever of the others is up to 61440 before it, as far as no packet stays remembered. */
void prove_messages_sent_fragment( void )
{
    nc_message_t * message = any_transfer();
    nc_carried_t entry = { HANDLE | NC_CARRIED_FRAGMENT, any_u32() };
    nc_sent_t sent;
    uint32_t true_index = any_u32();
    int is_free = any_int() != 0; /* no block has the handle any more */
    transfer.offset = is_free ? NO_BLOCK + any_below( 2 ) : transfer.offset;
    message->first_fragment = any_below( message->fragments );
    message->next_fragment = any_u32();
    GIVEN( message->next_fragment >= message->first_fragment && message->next_fragment <= message->fragments &&
           message->next_fragment - message->first_fragment <= NC_MESSAGES_FRAGMENTS );
    GIVEN( true_index < message->next_fragment && (uint64_t) true_index + 61440 >= message->first_fragment );
    transfer.states[true_index % NC_MESSAGES_FRAGMENTS] = any_u8();
    sent.fragment = (uint16_t) true_index;
    nc_message_t * found = nc_carried_message( &messages, &entry );
    CLAIM( found == ( !is_free && entry.serial == message->serial ? message : NULL ) );
    uint8_t expected = transfer.states[true_index % NC_MESSAGES_FRAGMENTS];
    int is_there = true_index >= message->first_fragment && !( expected & NC_FRAGMENT_ACKED );
    CLAIM( nc_sent_fragment( message, &sent ) == ( is_there ? true_index : UINT32_MAX ) );
}

void prove_messages_build_control( void )
{
    static const int types[] = { NC_FRAME_LIMIT, NC_FRAME_PING, NC_FRAME_PONG };
    any_build( 11 );
    int which = types[any_below( 3 )];
    messages.limit_due = which == NC_FRAME_LIMIT;
    messages.ping_due = which == NC_FRAME_PING;
    messages.pong_due = which == NC_FRAME_PONG;
    messages.pong_value = any_u32();
    messages.now = any_double();
    messages.max_receive_bytes = any_below( NETCODE_MESSAGES_MAX_BYTES + 1 );
    messages.credit_released = any_u32();
    messages.credit_window = any_u32();
    messages.channel_count = 1 + (int) any_below( NETCODE_MESSAGES_CHANNELS );
    GIVEN( nc_messages_is_time( messages.now ) && build.end - build.at >= 12 );
    nc_build_control( &messages, &build );
    CLAIM( build.at <= build.end && ( build.at != build.start ) == ( build.tracked || which == NC_FRAME_PONG ) );
    if ( build.at == build.start )
        return;
    nc_frame_t frame = read_back();
    CLAIM( frame.type == which );
    if ( which == NC_FRAME_LIMIT )
        CLAIM( frame.value == messages.credit_granted && frame.bytes == messages.max_receive_bytes &&
               frame.channel == messages.channel_count && frame.order == ( messages.epoch & 0xffff ) );
    else
        CLAIM( frame.value == ( which == NC_FRAME_PONG ? messages.pong_value : nc_messages_stamp( &messages ) ) );
}

/*  What a reliable message costs of the credit is enough for its block and handle, so that what was promised has room; and no CANCEL of
    what a side accepts is refused for its cost. */
void prove_messages_cost( void )
{
    int kind = (int) ( 2 + any_below( 4 ) );
    uint32_t bytes = any_u32(), largest = any_u32();
    GIVEN( largest >= NETCODE_MESSAGES_WHOLE_BYTES && largest <= NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( kind == NETCODE_MESSAGE_STREAM || bytes <= largest );
    uint32_t cost = nc_messages_cost( kind, bytes );
    CLAIM( nc_heap_cost( nc_arrived_bytes( kind, bytes ) ) <= cost );
    CLAIM( cost >= NC_MESSAGES_COST && cost <= nc_messages_cost( NETCODE_MESSAGE_RELIABLE, largest ) );
}

/* What a packet carries is remembered, and what it is; the entries before it stay. */
void prove_messages_carry( void )
{
    nc_message_t the_message, *message = &the_message;
    uint32_t handle = 1 + any_below( NC_CARRIED_HANDLE ), before = any_below( NC_MESSAGES_CARRIED );
    uint32_t what = any_int() ? NC_CARRIED_FRAGMENT : 0;
    nc_carried_t entry = { any_u32(), any_u32() };
    any_carried();
    message->serial = any_u32();
    message->packets = 5;
    GIVEN( before < build.count && build.count < NC_MESSAGES_CARRIED );
    *nc_carried_at( &messages, messages.carried_end + before ) = entry;
    nc_build_carry( &messages, &build, message, handle, what );
    const nc_carried_t * last = nc_carried_at( &messages, messages.carried_end + build.count - 1 );
    CLAIM( message->packets == 5 + ( what != NC_CARRIED_FRAGMENT ) );
    CLAIM( last->serial == message->serial && ( last->handle & NC_CARRIED_HANDLE ) == handle );
    CLAIM( ( last->handle & ~NC_CARRIED_HANDLE ) == what );
    const nc_carried_t * first = nc_carried_at( &messages, messages.carried_end + before );
    CLAIM( first->handle == entry.handle && first->serial == entry.serial );
}
