/*  Proofs of the messages' writers of frames: what a packet is said to have room for is written within it, and read back
    as what it was; and what a packet in flight with a fragment is found by. A packet is here what is left of it. Run:
    tests/prove/run.sh messages_build */

#define NETCODE_MESSAGES
#include "prove.h"

enum { HANDLE = 1, DATA = 8, FRAGMENT_PACKET = 1200 };

/* A send buffer with one message, whose handle is HANDLE. */
static struct {
    nc_block_t head;
    nc_message_t message;
    uint8_t data[DATA];
    uint32_t more, offset;
} block;

static struct netcode_messages_t messages;
static nc_build_t build;

/* So many bytes are left, at most. */
static void any_build( size_t most )
{
    size_t bytes = any_size_up_to( most );
    static uint8_t packet[24];
    build.start = build.at = packet + sizeof( packet ) - bytes;
    build.end = packet + sizeof( packet );
    build.tracked = any_int() != 0;
    build.list.count = any_below( NC_MESSAGES_CARRIED + 1 );
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
    message->id = any_u16();
    message->order = any_u32();
    message->receipt = any_u64();
    message->serial = any_u32();
    message->packets = any_u32();
    message->wire = (uint8_t) nc_kind_on_wire( message->kind );
    message->fragments = nc_fragments_of( message->wire, message->bytes );
    GIVEN( message->wire == NC_KIND_STREAM || message->bytes <= NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( !message->fragments || nc_kind_is_reliable( message->wire ) );
    message->head_bytes = (uint8_t) nc_message_head_bytes( message );
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
    uint32_t at = build.list.count, packets = message->packets;
    int kind = nc_kind_on_wire( message->kind );
    int remember = nc_kind_is_reliable( kind ) || nc_message_wants_report( message );
    GIVEN( kind != NC_KIND_STREAM );
    nc_message_write_head( message );
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_message( &messages, &build, HANDLE, remember );
    CLAIM( build.at <= build.end && build.last == build.start );
    CLAIM( build.list.count == at + (uint32_t) remember && message->packets == packets + (uint32_t) remember );
    CLAIM( !remember || ( build.carried[at].handle == HANDLE && build.carried[at].serial == message->serial ) );
    CLAIM( build.start + build.last_head_bytes + message->bytes == build.at );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == -1 && frame.kind == kind && frame.channel == message->channel );
    CLAIM( frame.id == ( kind >= 2 ? message->id : 0 ) && frame.order == ( kind == 3 ? message->order & 0xffff : 0 ) );
    CLAIM( frame.bytes == message->bytes && frame.data_bytes == message->bytes );
    CLAIM( probe >= message->bytes || frame.data[probe] == block.data[probe] );
}

void prove_messages_build_cancel( void )
{
    any_build( 7 );
    nc_message_t * message = any_message( UINT32_MAX );
    int is_stream = message->wire == NC_KIND_STREAM, in_fragments = is_stream || message->bytes > 1180;
    GIVEN( nc_build_has_room( &build, 7 ) );
    GIVEN( nc_build_may_carry( &build ) );
    nc_build_cancel( &messages, &build, HANDLE );
    CLAIM( build.at <= build.end );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == ( in_fragments ? NC_FRAME_CANCEL_FRAGMENTS : NC_FRAME_CANCEL ) && frame.id == message->id );
    CLAIM( frame.bytes == ( is_stream ? 0 : message->bytes ) );
}

/* A refused id, and no other. */
void prove_messages_build_refusals( void )
{
    static uint8_t packet[3 * NC_MESSAGES_TRANSFERS];
    uint32_t entry = any_below( NC_MESSAGES_TRANSFERS ), generation = any_below( NC_MESSAGES_GENERATIONS );
    messages.generations[entry] = (uint16_t) generation;
    messages.refused = 1u << entry;
    build.start = build.at = packet;
    nc_build_refusals( &messages, &build );
    CLAIM( build.at == packet + 3 );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == NC_FRAME_REFUSE && frame.id == generation * 16 + entry );
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
    message->wire = NC_KIND_STREAM;
    message->bytes = any_u32();
    message->fragments = nc_fragments_of( NC_KIND_STREAM, message->bytes );
    message->channel = (uint8_t) any_below( NETCODE_MESSAGES_CHANNELS );
    message->id = any_u16();
    message->order = any_u32();
    message->head_bytes = (uint8_t) nc_message_head_bytes( message );
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
    read_index = any_below( message->fragments );
    build.start = build.at = packet;
    build.end = packet + any_size_up_to( FRAGMENT_PACKET );
    build.tracked = any_int() != 0;
    build.list.count = any_below( NC_MESSAGES_CARRIED + 1 );
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_fragment( &messages, &build, HANDLE, read_index );
    CLAIM( build.at <= build.end && build.tracked && build.asks && !build.last );
    CLAIM( build.flags == NC_SENT_BULK && build.transfer == message->id && build.fragment == (uint16_t) read_index );
    CLAIM( read_count == ( message->bytes != 0 ) );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == -2 && frame.kind == NC_KIND_STREAM && frame.channel == message->channel );
    CLAIM( frame.id == message->id && frame.order == message->order && frame.bytes == message->bytes );
    CLAIM( frame.index == read_index && frame.data_bytes == nc_fragment_bytes( message->bytes, read_index ) );
    CLAIM( message->bytes == 0 || ( frame.data[0] == 0x5a && frame.data[frame.data_bytes - 1] == 0x5a ) );
}

/*  A packet knows 16 bits of its fragment's index. Exactly those within the window are found, whatever of the others is up
    to 61440 before it, as far as no packet stays remembered. */
void prove_messages_sent_fragment( void )
{
    nc_message_t * message = any_transfer();
    nc_sent_t sent;
    uint32_t true_index = any_u32(), handle, index;
    memset( messages.transfers, 0, sizeof( messages.transfers ) );
    messages.transfers[message->id % NC_MESSAGES_TRANSFERS] = HANDLE;
    message->first_fragment = any_below( message->fragments );
    message->next_fragment = any_u32();
    GIVEN( message->next_fragment >= message->first_fragment && message->next_fragment <= message->fragments &&
           message->next_fragment - message->first_fragment <= NC_MESSAGES_FRAGMENTS );
    GIVEN( true_index < message->next_fragment && (uint64_t) true_index + 61440 >= message->first_fragment );
    transfer.states[true_index % NC_MESSAGES_FRAGMENTS] = any_u8();
    sent.bytes = any_u16();
    sent.transfer = any_u16();
    sent.fragment = (uint16_t) true_index;
    uint8_t * state = nc_sent_fragment( &messages, &sent, &handle, &index );
    uint8_t * expected = &transfer.states[true_index % NC_MESSAGES_FRAGMENTS];
    int is_there = sent.bytes & NC_SENT_BULK && sent.transfer == message->id && true_index >= message->first_fragment &&
                   !( *expected & NC_FRAGMENT_ACKED );
    CLAIM( state == ( is_there ? expected : NULL ) );
    CLAIM( !is_there || ( handle == HANDLE && index == true_index ) );
}

void prove_messages_build_control( void )
{
    static const int types[] = { NC_FRAME_LIMIT, NC_FRAME_PING, NC_FRAME_PONG };
    any_build( 10 );
    int which = types[any_below( 3 )];
    messages.limit_due = which == NC_FRAME_LIMIT;
    messages.ping_due = which == NC_FRAME_PING;
    messages.pong_due = which == NC_FRAME_PONG;
    messages.pong_value = any_u32();
    messages.now = any_double();
    messages.max_receive_bytes = any_below( NETCODE_MESSAGES_MAX_BYTES + 1 );
    messages.credit_released = any_u32();
    messages.credit_window = any_u32();
    GIVEN( nc_messages_is_time( messages.now ) && nc_build_has_room( &build, 9 ) );
    nc_build_control( &messages, &build );
    CLAIM( build.at <= build.end && ( build.at != build.start ) == ( build.tracked || which == NC_FRAME_PONG ) );
    if ( build.at == build.start )
        return;
    nc_frame_t frame = read_back();
    CLAIM( frame.type == which );
    if ( which == NC_FRAME_LIMIT )
        CLAIM( frame.value == messages.credit_granted && frame.bytes == messages.max_receive_bytes );
    else
        CLAIM( frame.value == ( which == NC_FRAME_PONG ? messages.pong_value : nc_messages_stamp( &messages ) ) );
}

/*  What a reliable message costs of the credit is enough for its block and handle, so that what was promised has room. A stream's block
    may be 16 bytes larger, for at most 16 streams: that is taken from what is not promised. */
void prove_messages_cost( void )
{
    int kind = (int) ( 2 + any_below( 4 ) );
    uint32_t bytes = any_u32(), fragments = nc_fragments_of( kind, bytes );
    GIVEN( kind == NC_KIND_STREAM || bytes <= NETCODE_MESSAGES_MAX_BYTES );
    uint64_t cost = nc_messages_cost( kind == NC_KIND_STREAM ? 0 : bytes, fragments != 0 );
    CLAIM( nc_arrived_bytes( kind, bytes ) <= cost );
    CLAIM( nc_heap_cost( nc_arrived_bytes( kind, bytes ) ) <= cost + ( kind == NC_KIND_STREAM ? 16 : 0 ) );
    CLAIM( 16 * NC_MESSAGES_TRANSFERS <= NC_MESSAGES_LEAST_BUFFER / 4 );
}

/* What a packet has of a message is remembered, and whether it is its CANCEL; the entries before stay. */
void prove_messages_carry( void )
{
    nc_message_t the_message, *message = &the_message;
    uint32_t count = any_below( NC_MESSAGES_CARRIED ), before = any_below( NC_MESSAGES_CARRIED ), handle = any_u32();
    nc_carried_t entry = { any_u32(), any_u32() };
    int cancelled = any_int() != 0;
    GIVEN( handle < 0x80000000u );
    message->flags = cancelled ? NC_MESSAGE_CANCELLED : 0;
    message->serial = any_u32();
    message->packets = 5;
    build.list.count = count;
    build.carried[before] = entry;
    nc_build_carry( &build, message, handle );
    CLAIM( build.list.count == count + 1 && message->packets == 6 );
    CLAIM( build.carried[count].serial == message->serial );
    CLAIM( build.carried[count].handle == ( cancelled ? 0x80000000u | handle : handle ) );
    CLAIM( before == count ||
           ( build.carried[before].handle == entry.handle && build.carried[before].serial == entry.serial ) );
}
