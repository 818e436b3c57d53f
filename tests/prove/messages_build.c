/*  Proofs of the messages' writers of frames: what a packet is said to have room for is written within it, and read back
    as what it was. A packet is here what is left of it. Run: tests/prove/run.sh messages_build */

#define NETCODE_MESSAGES
#include "prove.h"

enum { PLACE = 16, DATA = 8 };

static struct {
    uint8_t front[PLACE];
    nc_message_t message;
    uint8_t data[DATA];
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
}

static nc_message_t * any_message( uint32_t most )
{
    nc_message_t * message = &block.message;
    messages.out.base = (uint8_t *) &block;
    message->bytes = any_below( most + 1 );
    message->fragments = nc_fragments_of( message->bytes );
    message->channel = (uint8_t) any_below( NETCODE_MESSAGES_CHANNELS );
    message->kind = (uint8_t) any_below( NETCODE_MESSAGE_KINDS );
    message->id = any_u16();
    message->order = any_u16();
    message->receipt = any_u64();
    message->carrier_count = (uint8_t) any_below( NC_MESSAGES_CARRIERS + 1 );
    message->wire = (uint8_t) nc_kind_on_wire( message->kind );
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
    int kind = nc_kind_on_wire( message->kind ), held = message->carrier_count,
        remember = nc_kind_is_reliable( kind ) || nc_message_wants_report( message );
    nc_message_write_head( message );
    GIVEN( nc_build_fits( &build, message ) );
    nc_build_message( &messages, &build, PLACE, remember );
    CLAIM( build.at <= build.end && build.last == build.start );
    CLAIM( message->carrier_count == ( remember && held < NC_MESSAGES_CARRIERS ? held + 1 : held ) );
    CLAIM( !remember || message->carriers[held < NC_MESSAGES_CARRIERS ? held : 0] == (uint32_t) messages.next_number );
    CLAIM( build.start + build.last_head_bytes + message->bytes == build.at );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == -1 && frame.kind == kind && frame.channel == message->channel );
    CLAIM( frame.id == ( kind >= 2 ? message->id : 0 ) && frame.order == ( kind == 3 ? message->order : 0 ) );
    CLAIM( frame.bytes == message->bytes && frame.data_bytes == message->bytes );
    CLAIM( probe >= message->bytes || frame.data[probe] == block.data[probe] );
}

void prove_messages_build_cancel( void )
{
    any_build( 7 );
    nc_message_t * message = any_message( NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( nc_build_has_room( &build, 7 ) );
    nc_build_cancel( &messages, &build, PLACE );
    CLAIM( build.at <= build.end );
    nc_frame_t frame = read_back();
    CLAIM( frame.type == NC_FRAME_CANCEL && frame.id == message->id && frame.bytes == message->bytes );
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
    messages.max_message_bytes = any_below( NETCODE_MESSAGES_MAX_BYTES + 1 );
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
        CLAIM( frame.value == messages.credit_granted && frame.bytes == messages.max_message_bytes );
    else
        CLAIM( frame.value == ( which == NC_FRAME_PONG ? messages.pong_value : nc_messages_stamp( &messages ) ) );
}

/* The packets under way with a message: the new one is among them, beside three others, and is so until it is settled. */
void prove_messages_carriers( void )
{
    nc_message_t * message = any_message( DATA );
    uint32_t probe = any_u32(), number = (uint32_t) messages.next_number;
    int count = message->carrier_count, at = -1;
    for ( int i = 0; i < count; i++ ) {
        message->carriers[i] = any_u32();
        GIVEN( message->carriers[i] != number );
        for ( int k = 0; k < i; k++ )
            GIVEN( message->carriers[i] != message->carriers[k] );
        at = message->carriers[i] == probe ? i : at;
    }
    nc_build_carry( &messages, &build, message );
    CLAIM( build.holds && message->carrier_count <= NC_MESSAGES_CARRIERS );
    int held = nc_message_remove_carrier( message, probe );
    CLAIM( held == ( probe == number || ( at >= 0 && !( at == 0 && count == NC_MESSAGES_CARRIERS ) ) ) );
    CLAIM( !nc_message_remove_carrier( message, probe ) );
    CLAIM( probe == number || nc_message_remove_carrier( message, number ) );
}
