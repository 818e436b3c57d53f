/*  Proofs of messages: whatever stands in a packet is read within its bounds and as the format says, what is written is read
    back, and numbers of 16 bits are put back in their place. 256 packets are remembered instead of 2048 (small.faults).
    Run: tests/prove/run.sh messages */

#define PROVE_SMALL
#define NETCODE_MESSAGES
#include "prove.h"

/* Longer ones than a packet may be. */
enum { MOST = NETCODE_MAX_PACKET_SIZE + 100 };

/* Some 10^18 packets or messages: no connection comes so far. */
#define FARTHEST ( (int64_t) 1 << 60 )

static nc_source_t any_source( size_t most )
{
    size_t bytes = any_size_up_to( most );
    const uint8_t * data = any_bytes( bytes );
    nc_source_t source = { data, data + bytes, 0 };
    source.at += any_size_up_to( bytes );
    source.failed = any_int() != 0;
    return source;
}

/* Where a source stands makes no difference to what reads with nothing but the readers above. */
static nc_source_t any_beginning( size_t most )
{
    size_t bytes = any_size_up_to( most );
    const uint8_t * data = any_bytes( bytes );
    nc_source_t source = { data, data + bytes, 0 };
    return source;
}

static size_t rest_of( const nc_source_t * source )
{
    return (size_t) ( source->end - source->at );
}

/* What every read leaves behind: a place between where it was and the end; a reader that failed stays failed. */
static void claim_moved( const nc_source_t * before, const nc_source_t * after )
{
    CLAIM( after->end == before->end && after->at >= before->at && after->at <= after->end );
    CLAIM( !before->failed || after->failed );
}

static uint32_t low_bytes( const uint8_t * data, size_t bytes )
{
    uint32_t value = 0;
    for ( size_t i = bytes; i-- > 0; )
        value = value << 8 | data[i];
    return value;
}

void prove_messages_number( void )
{
    nc_source_t source = any_source( MOST ), before = source;
    int bytes = any_int() ? 1 : any_int() ? 2 : 4;
    uint32_t value = nc_source_number( &source, bytes );
    int fits = rest_of( &before ) >= (size_t) bytes;
    claim_moved( &before, &source );
    CLAIM( ( source.failed != 0 ) == ( before.failed || !fits ) );
    CLAIM( source.at == ( fits ? before.at + bytes : before.end ) );
    CLAIM( value == ( fits ? low_bytes( before.at, (size_t) bytes ) : 0 ) );
}

void prove_messages_bytes( void )
{
    nc_source_t source = any_source( MOST ), before = source;
    uint32_t bytes = any_u32();
    const uint8_t * data = nc_source_bytes( &source, bytes );
    int fits = bytes <= rest_of( &before );
    claim_moved( &before, &source );
    CLAIM( data == before.at && ( source.failed != 0 ) == ( before.failed || !fits ) );
    CLAIM( source.at == ( fits ? before.at + bytes : before.end ) );
}

/* The bytes of the varint that stands here, or 0 if none does in its shortest form. */
static size_t varint_length( const nc_source_t * source )
{
    for ( size_t i = 0; i < 4 && i < rest_of( source ); i++ )
        if ( source->at[i] < 0x80 )
            return i == 0 || source->at[i] != 0 ? i + 1 : 0;
    return 0;
}

void prove_messages_varint( void )
{
    nc_source_t source = any_source( 8 ), before = source;
    size_t length = varint_length( &before ), nth = any_size_up_to( 3 );
    uint32_t value = nc_source_varint( &source );
    claim_moved( &before, &source );
    CLAIM( value < 1u << 28 );
    CLAIM( ( source.failed != 0 ) == ( before.failed || length == 0 ) );
    if ( length == 0 )
        return;
    CLAIM( source.at == before.at + length );
    CLAIM( ( value >> 7 * nth & 127 ) == ( nth < length ? before.at[nth] & 127u : 0 ) );
}

/* It takes the bytes that it was said to take, and not one more. */
void prove_messages_varint_round_trip( void )
{
    uint32_t value = any_below( 1u << 28 ), bytes = nc_varint_bytes( value );
    uint8_t * out = any_bytes( bytes );
    CLAIM( nc_put_varint( out, value ) == out + bytes );
    nc_source_t source = { out, out + bytes, 0 };
    CLAIM( nc_source_varint( &source ) == value && !source.failed && source.at == source.end );
}

void prove_messages_number_round_trip( void )
{
    int bytes = any_int() ? 2 : 4;
    uint32_t value = any_u32();
    uint8_t * out = any_bytes( (size_t) bytes );
    CLAIM( nc_put_number( out, value, bytes ) == out + bytes );
    nc_source_t source = { out, out + bytes, 0 };
    CLAIM( nc_source_number( &source, bytes ) == ( bytes == 4 ? value : value & 0xffff ) && !source.failed );
}

/* ---- frames ---- */

static uint32_t
    varints[2 * NC_MESSAGES_RANGES]; /* those that were read, and whether the reader had failed behind each */
static int varint_failed[2 * NC_MESSAGES_RANGES], varint_count;
static const uint8_t * varint_end; /* where the last ended */

/* Where one stands for the reader of varints: all that prove_messages_varint allows. */
uint32_t answer_varint( nc_source_t * source )
{
    uint32_t value = any_below( 1u << 28 );
    size_t bytes = any_size_up_to( 4 );
    GIVEN( bytes <= rest_of( source ) );
    source->at += bytes;
    varint_end = source->at;
    source->failed |= any_int() != 0;
    GIVEN( bytes > 0 || source->failed );
    if ( varint_count < 2 * NC_MESSAGES_RANGES ) {
        varints[varint_count] = value;
        varint_failed[varint_count++] = source->failed;
    }
    return value;
}

/* Ranges that are accepted go downwards from 33 below the newest, apart from each other, and end 2047 below it: 255 in the small header. */
static void claim_ranges( const nc_acks_t * acks )
{
    int nth = any_int();
    CLAIM( acks->count >= 1 && acks->count <= NC_MESSAGES_RANGES );
    GIVEN( nth >= 0 && nth < acks->count );
    CLAIM( acks->high[nth] >= 33 && acks->high[nth] <= acks->low[nth] && acks->low[nth] < NC_MESSAGES_REMEMBERED );
    CLAIM( nth == 0 || acks->high[nth] > acks->low[nth - 1] );
}

/*  Any frame of ranges is read: `before` is where, `had` how many ranges there were, the result whether it is
    accepted. */
static int read_any_ranges( nc_source_t * before, nc_acks_t * acks, int * had, int * failed )
{
    nc_source_t source = any_beginning( 1 + NC_MESSAGES_RANGES * 8 + 1 );
    *before = source;
    acks->valid = any_int();
    *had = acks->count = any_int();
    GIVEN( *had >= 0 && *had <= NC_MESSAGES_RANGES );
    int good = nc_frame_read_ranges( &source, acks );
    claim_moved( before, &source );
    CLAIM( good || acks->count == *had );
    *failed = source.failed;
    return good;
}

void prove_messages_read_ranges( void )
{
    nc_source_t before;
    nc_acks_t acks;
    int had, failed, good = read_any_ranges( &before, &acks, &had, &failed );
    if ( good ) {
        CLAIM( acks.valid && had == 0 && !failed );
        claim_ranges( &acks );
    }
}

/* The same from both sides: what is accepted, and that nothing else is refused. */
void prove_messages_read_ranges_exact( void )
{
    nc_source_t before;
    nc_acks_t acks;
    int had, failed, good = read_any_ranges( &before, &acks, &had, &failed );

    /*  The other side: it is accepted exactly if an ack is valid, there was no such frame before, and each range
        fits. */
    uint32_t wanted = rest_of( &before ) ? *before.at : 0, at = 33;
    int fits = acks.valid && had == 0 && wanted >= 1 && wanted <= NC_MESSAGES_RANGES;
    for ( uint32_t i = 0; i < NC_MESSAGES_RANGES && fits; i++ ) {
        uint32_t skip = varints[2 * i], run = varints[2 * i + 1];
        if ( i >= wanted )
            break;
        fits = !varint_failed[2 * i + 1] && run > 0 && skip < NC_MESSAGES_REMEMBERED && run <= NC_MESSAGES_REMEMBERED &&
               at + skip + run <= NC_MESSAGES_REMEMBERED;
        CLAIM( !good || ( acks.high[i] == at + skip && acks.low[i] == at + skip + run - 1 ) );
        at += skip + run;
    }
    CLAIM( good == fits );
    if ( good ) {
        CLAIM( (uint32_t) acks.count == wanted );
        claim_ranges( &acks );
    }
}

/* ACK_RANGES has its own proof: prove_messages_read_ranges. */
int answer_ranges( nc_source_t * source, nc_acks_t * acks )
{
    (void) acks;
    source->at += any_size_up_to( rest_of( source ) );
    source->failed |= any_int() != 0;
    return any_int() && !source->failed;
}

static void claim_control( const nc_frame_t * frame )
{
    CLAIM( frame->type == NC_FRAME_ACK_RANGES || frame->type == NC_FRAME_PING || frame->type == NC_FRAME_PONG ||
           frame->type == NC_FRAME_LIMIT || frame->type == NC_FRAME_CANCEL || frame->type == NC_FRAME_REFUSE ||
           frame->type == NC_FRAME_BROKEN );
    CLAIM( frame->id <= 0xffff );
    if ( frame->type == NC_FRAME_LIMIT )
        CLAIM( frame->bytes < 1u << 28 && frame->channel >= 0 && frame->channel <= 255 );
    else if ( frame->type == NC_FRAME_CANCEL )
        CLAIM( frame->bytes < 1u << 28 && ( frame->bytes == 0 || frame->bytes >= 80 ) );
    else if ( frame->type == NC_FRAME_REFUSE )
        CLAIM( frame->bytes >= 1 && frame->bytes <= 16 );
    else if ( frame->type == NC_FRAME_BROKEN )
        CLAIM( frame->value >= 1 && frame->value <= 6 );
}

/* What the format says of a message's first byte, and what follows from the rest. */
static void claim_message( const nc_frame_t * frame, uint8_t first, const nc_source_t * after )
{
    CLAIM( frame->kind == ( first & 7 ) && frame->kind <= 5 && first < 0x40 );
    CLAIM( ( frame->type == -2 ) == ( first >> 3 & 1 ) );
    CLAIM( first & 0x10 ? frame->channel >= 1 && frame->channel <= 255 : frame->channel == 0 );
    CLAIM( frame->id <= 0xffff && ( frame->kind == 5 || frame->order <= 0xffff ) );
    CLAIM( frame->kind >= 2 || frame->id == 0 );
    CLAIM( frame->data + frame->data_bytes == after->at );
    CLAIM( frame->kind == 3 || frame->kind == 5 || frame->order == 0 );
    if ( frame->type == -1 ) {
        CLAIM( frame->bytes == frame->data_bytes && frame->bytes <= 1180 );
        CLAIM( frame->kind <= 4 && ( !( first & 0x20 ) || after->at == after->end ) );
        return;
    }
    CLAIM( frame->kind >= 2 && frame->known == ( first >> 5 & 1 ) && frame->index < 1u << 28 &&
           frame->data_bytes <= 1168 );
    if ( frame->index < nc_fragments_of( frame->kind, frame->bytes ) )
        CLAIM( (uint64_t) frame->index * 1168 + frame->data_bytes <= frame->bytes );
    else
        CLAIM( frame->data_bytes == 0 );
}

/*  Whatever it is, a frame is read within the packet, and never less than a byte of it. A fragment of a message that has no
    such fragment is for nc_frame_check_message to refuse. */
void prove_messages_read_frame( void )
{
    nc_source_t source = any_beginning( MOST ), before = source;
    nc_acks_t acks;
    nc_frame_t frame;
    GIVEN( rest_of( &before ) > 0 );
    nc_frame_read( &source, &frame, &acks );
    claim_moved( &before, &source );
    CLAIM( source.failed || source.at > before.at );
    if ( source.failed )
        return;
    if ( frame.type >= 0 )
        claim_control( &frame );
    else
        claim_message( &frame, before.at[0], &source );
}

/* No control frame is a message. */
void answer_no_message( nc_source_t * source, nc_frame_t * frame, uint32_t first )
{
    (void) source;
    (void) frame;
    (void) first;
    CLAIM( 0 );
}

/*  A control frame but ACK_RANGES, from both sides: it is accepted exactly if the format allows it, and each field is what stands
    there. */
void prove_messages_read_control( void )
{
    nc_source_t source = any_beginning( 64 ), before = source;
    nc_acks_t acks;
    nc_frame_t frame;
    GIVEN( rest_of( &before ) > 0 && before.at[0] != NC_FRAME_ACK_RANGES );
    GIVEN( before.at[0] >= 0x40 || ( before.at[0] & 7 ) > 5 );
    uint8_t first = before.at[0];
    const uint8_t * at = before.at + 1;
    size_t rest = rest_of( &before ) - 1;
    nc_frame_read( &source, &frame, &acks );
    claim_moved( &before, &source );
    CLAIM( frame.type == first );
    if ( first == 0x0f || first == 0x17 ) {
        CLAIM( ( source.failed != 0 ) == ( rest < 4 ) );
        CLAIM( source.failed || ( source.at == at + 4 && frame.value == low_bytes( at, 4 ) ) );
    } else if ( first == 0x1f ) {
        CLAIM( varint_count == 1 );
        CLAIM( ( source.failed != 0 ) == ( rest < 4 || varint_failed[0] || before.end - varint_end < 3 ) );
        CLAIM( source.failed || frame.order == low_bytes( varint_end + 1, 2 ) );
        CLAIM( source.failed || ( source.at == varint_end + 3 && frame.value == low_bytes( at, 4 ) ) );
        CLAIM( source.failed || ( frame.bytes == varints[0] && frame.channel == *varint_end ) );
    } else if ( first == 0x27 ) {
        CLAIM( varint_count == 1 );
        CLAIM( ( source.failed != 0 ) == ( rest < 2 || varint_failed[0] || ( varints[0] && varints[0] < 80 ) ) );
        CLAIM( source.failed || ( source.at == varint_end && frame.id == low_bytes( at, 2 ) ) );
        CLAIM( source.failed || frame.bytes == varints[0] );
    } else if ( first == 0x2f ) {
        uint32_t count = rest ? at[0] : 0;
        CLAIM( ( source.failed != 0 ) == ( count < 1 || count > 16 || rest < 1 + 2 * count ) );
        CLAIM( source.failed || ( frame.bytes == count && frame.data == at && source.at == at + 1 + 2 * count ) );
    } else if ( first == 0x37 ) {
        CLAIM( ( source.failed != 0 ) == ( rest < 1 || at[0] < 1 || at[0] > 6 ) );
        CLAIM( source.failed || ( source.at == at + 1 && frame.value == at[0] ) );
    } else
        CLAIM( source.failed );
}

/*  A fragment's head, from both sides: it is accepted exactly if the format allows it, and each field is what stands
    there. */
void prove_messages_read_fragment( void )
{
    nc_source_t source = any_beginning( MOST ), before = source;
    nc_acks_t acks;
    nc_frame_t frame;
    GIVEN( rest_of( &before ) > 0 && before.at[0] < 0x40 && before.at[0] & 8 && ( before.at[0] & 7 ) <= 5 );
    uint8_t first = before.at[0], kind = first & 7;
    size_t channel = first >> 4 & 1, order = kind == 5 ? 4 : kind == 3 ? 2 : 0, head = 1 + channel + 2 + order + 4;
    nc_frame_read( &source, &frame, &acks );
    if ( kind < 2 || rest_of( &before ) < head || ( channel && before.at[1] == 0 ) ) {
        CLAIM( source.failed );
        return;
    }
    const uint8_t * at = before.at + 1 + channel;
    uint64_t total = low_bytes( at + 2 + order, 4 ), offset = (uint64_t) varints[0] * 1168;
    uint64_t rest = offset <= total && ( total > 1180 || kind == 5 ) ? total - offset : 0;
    uint64_t bytes = rest < 1168 ? rest : 1168;
    CLAIM( varint_count == 1 );
    CLAIM( ( source.failed != 0 ) == ( varint_failed[0] || bytes > (size_t) ( before.end - varint_end ) ) );
    if ( source.failed )
        return;
    CLAIM( frame.type == -2 && frame.kind == kind && frame.channel == ( channel ? before.at[1] : 0 ) );
    CLAIM( frame.id == low_bytes( at, 2 ) && frame.order == low_bytes( at + 2, order ) );
    CLAIM( frame.bytes == total && frame.index == varints[0] && frame.known == ( first >> 5 & 1 ) );
    CLAIM( frame.data_bytes == bytes && frame.data == varint_end && source.at == varint_end + bytes );
}

static int any_reliable_kind( void )
{
    return (int) ( 2 + any_below( 4 ) );
}

/* In 64 bits, so that nothing wraps unseen. */
void prove_messages_fragments( void )
{
    int kind = any_reliable_kind();
    uint32_t total = any_u32(), count = nc_fragments_of( kind, total ), index = any_u32();
    CLAIM( ( count == 0 ) == ( kind != NETCODE_MESSAGE_STREAM && total <= 1180 ) );
    GIVEN( index < count );
    uint64_t offset = (uint64_t) index * 1168, bytes = nc_fragment_bytes( total, index );
    CLAIM( index * NETCODE_MESSAGES_FRAGMENT_BYTES == offset );
    CLAIM( ( bytes >= 1 || ( total == 0 && count == 1 ) ) && offset + bytes <= total );
    CLAIM( index + 1 < count ? bytes == 1168 : offset + bytes == total );
}

/* The bits of fragments that may be in flight together are within the message's block, behind its data, and apart. */
void prove_messages_arrived_ring( void )
{
    int kind = any_reliable_kind();
    uint32_t bytes = any_u32(), fragments = nc_fragments_of( kind, bytes ), index = any_u32(), other = any_u32();
    GIVEN( kind == NETCODE_MESSAGE_STREAM || bytes <= NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( index < fragments && other < index && index - other < NC_MESSAGES_FRAGMENTS );
    uint32_t size = nc_arrived_bytes( kind, bytes ),
             data = kind == NETCODE_MESSAGE_STREAM ? sizeof( nc_stream_t ) : bytes;
    uint8_t * block = any_bytes( size );
    nc_arrived_t * arrived = (nc_arrived_t *) (void *) block;
    arrived->kind = (uint8_t) kind;
    arrived->bytes = bytes;
    size_t at = (size_t) ( nc_arrived_bits( arrived, index ) - block ),
           beside = (size_t) ( nc_arrived_bits( arrived, other ) - block );
    CLAIM( at >= sizeof( nc_arrived_t ) + data && at < size && beside >= sizeof( nc_arrived_t ) + data &&
           beside < size );
    CLAIM( at != beside || index % 8 != other % 8 );
}

/* The same of what a sender knows of its fragments. */
void prove_messages_state_ring( void )
{
    int kind = any_reliable_kind();
    uint32_t bytes = any_u32(), fragments = nc_fragments_of( kind, bytes ), index = any_u32(), other = any_u32();
    uint32_t data = kind == NETCODE_MESSAGE_STREAM ? sizeof( netcode_messages_stream_t ) : bytes;
    GIVEN( kind == NETCODE_MESSAGE_STREAM || bytes <= NETCODE_MESSAGES_MAX_BYTES );
    GIVEN( index < fragments && other < index && index - other < NC_MESSAGES_FRAGMENTS );
    size_t size = sizeof( nc_message_t ) + data + nc_u32_smaller( fragments, NC_MESSAGES_FRAGMENTS );
    uint8_t * block = any_bytes( size );
    nc_message_t * message = (nc_message_t *) (void *) block;
    message->kind = (uint8_t) kind;
    message->bytes = bytes;
    size_t at = (size_t) ( nc_message_state( message, index ) - block ),
           beside = (size_t) ( nc_message_state( message, other ) - block );
    CLAIM( at >= sizeof( nc_message_t ) + data && at < size && beside >= sizeof( nc_message_t ) + data &&
           beside < size );
    CLAIM( at != beside );
}

/* ---- numbers ---- */

static int64_t any_newest( void )
{
    int64_t newest = (int64_t) any_u64();
    GIVEN( newest >= -1 && newest <= FARTHEST );
    return newest;
}

/* Sixteen bits are enough for an index that is less than 2^15 away. */
void prove_messages_near( void )
{
    int64_t newest = any_newest(), number = (int64_t) any_u64();
    GIVEN( number >= newest - 0x8000 && number <= newest + 0x7fff );
    CLAIM( nc_messages_near( newest, (uint32_t) ( (uint64_t) number & 0xffff ) ) == number );
}

/* What was received stays received as far as `count` positions back, and nothing else becomes so. */
void prove_messages_bit_take( void )
{
    enum { count = 128 };
    uint64_t bits[2] = { any_u64(), any_u64() }, before[2] = { bits[0], bits[1] };
    int64_t first = any_newest(), newest = first, at = (int64_t) any_u64(), probe = (int64_t) any_u64();
    GIVEN( at >= 0 && at > newest - count && at <= FARTHEST );
    GIVEN( at <= newest + 6 || at >= newest + count ); /* the loop between is the same */
    nc_bit_take( bits, &newest, at, count );
    CLAIM( newest == ( at > first ? at : first ) );
    GIVEN( probe > newest - count && probe <= newest );
    int was = probe <= first && nc_bit_get( before, (uint64_t) probe, count );
    CLAIM( nc_bit_get( bits, (uint64_t) probe, count ) == ( was || probe == at ) );
}

/* ---- ids ---- */

static uint32_t in_flight; /* bit n: the nth next id is that of a message in fragments that is in flight */
static uint32_t first_next;

/* Where one stands for nc_tree_find: prove_messages_tree_find. */
uint32_t * answer_in_flight( const nc_heap_t * heap, uint32_t * root, uint32_t key )
{
    static uint32_t link;
    uint32_t nth = ( key - first_next ) & 0xffff;
    (void) heap;
    (void) root;
    CLAIM( key <= 0xffff && nth <= 2 );
    link = in_flight >> nth & 1;
    return &link;
}

/*  Ids of messages in fragments that are in flight are left out, and no more than these, nor so many that more than 4096 are between the
    oldest that is not known and the next. */
void prove_messages_has_id( void )
{
    static struct netcode_messages_t messages;
    static uint64_t bits[NC_MESSAGES_IDS / 64];
    uint32_t begun = any_below( NC_MESSAGES_IDS + 1 );
    messages.known_ids = bits;
    messages.next_id = first_next = any_u32();
    messages.oldest_id = first_next - begun;
    int is_known = any_int() != 0; /* the oldest one; the one after it is not */
    nc_bit_set( bits, messages.oldest_id, NC_MESSAGES_IDS, is_known );
    nc_bit_set( bits, messages.oldest_id + 1, NC_MESSAGES_IDS, 0 );
    begun -= begun && is_known;
    in_flight = any_below( 4 ); /* of the next two ids, and not the third */
    uint32_t left_out = 0;
    while ( left_out < 2 && begun + left_out < 4096 && in_flight >> left_out & 1 )
        left_out++;
    int has = nc_messages_has_id( &messages );
    CLAIM( messages.next_id == first_next + left_out && has == ( begun + left_out < 4096 ) );
    CLAIM( messages.next_id - messages.oldest_id == begun + left_out || ( begun == 0 && left_out ) );
    CLAIM( !has || !( in_flight >> left_out & 1 ) );
    for ( uint32_t i = 0; i < left_out; i++ )
        CLAIM( nc_bit_get( bits, first_next + i, NC_MESSAGES_IDS ) );
}

/* ---- trees ---- */

enum { NODES = 4, BLOCK = 32 };

/* Blocks of a heap with a node each, and their offsets: handle 1 is the last. */
static struct {
    uint32_t blocks[NODES][BLOCK / 4];
    uint32_t offsets[NODES];
} forest;

static nc_heap_t trees;
static uint32_t tree_root;
static uint32_t keys[NODES + 1];

static nc_node_t * node_of( uint32_t handle )
{
    return (nc_node_t *) (void *) &forest.blocks[handle - 1];
}

/* Links to this block. */
static uint32_t links_to( uint32_t handle, uint32_t members )
{
    uint32_t links = tree_root == handle;
    for ( uint32_t i = 1; i <= NODES; i++ )
        for ( int side = 0; side < 2; side++ )
            links += members >> i & 1 && node_of( i )->below[side] == handle;
    return links;
}

/* The way that a key says, from the root on, leads to this block, and to no other with the same key before it. */
static int is_found( uint32_t handle )
{
    uint32_t at = tree_root, bits = keys[handle];
    for ( int i = 0; i < NODES; i++, bits >>= 1 ) {
        if ( at == handle )
            return 1;
        if ( at == 0 || keys[at] == keys[handle] )
            return 0;
        at = node_of( at )->below[bits & 1];
    }
    return 0;
}

/* A tree of exactly these blocks, bit n for handle n: each has one link to it and is found, and no link leads elsewhere. */
static int is_tree( uint32_t members )
{
    int good = tree_root <= NODES;
    for ( uint32_t i = 1; i <= NODES; i++ )
        for ( int side = 0; side < 2; side++ )
            good &= !( members >> i & 1 ) || node_of( i )->below[side] <= NODES;
    if ( !good )
        return 0;
    for ( uint32_t i = 1; i <= NODES; i++ ) {
        good &= links_to( i, members ) == ( members >> i & 1 );
        if ( !good )
            return 0;
    }
    for ( uint32_t i = 1; i <= NODES; i++ )
        good &= !( members >> i & 1 ) || ( node_of( i )->key == keys[i] && is_found( i ) );
    return good;
}

/* Any tree of up to four, whatever was inserted and removed before. Returns its blocks. */
static uint32_t any_tree( void )
{
    uint32_t members = any_below( 16 ) << 1;
    trees.base = (uint8_t *) &forest;
    trees.bytes = sizeof( forest );
    trees.handles = NODES;
    tree_root = any_u32();
    for ( uint32_t i = 1; i <= NODES; i++ ) {
        forest.offsets[NODES - i] = ( i - 1 ) * BLOCK;
        keys[i] = any_u16();
        node_of( i )->key = any_u32();
        node_of( i )->below[0] = any_u32();
        node_of( i )->below[1] = any_u32();
    }
    GIVEN( is_tree( members ) );
    return members;
}

/* The block with a key, or 0. */
static uint32_t member_of( uint32_t members, uint32_t key )
{
    for ( uint32_t i = 1; i <= NODES; i++ )
        if ( members >> i & 1 && keys[i] == key )
            return i;
    return 0;
}

/* Whatever has the key is found, and nothing else is; where nothing has it, an empty link is. */
void prove_messages_tree_find( void )
{
    uint32_t members = any_tree(), key = any_u16();
    uint32_t * link = nc_tree_find( &trees, &tree_root, key );
    CLAIM( *link == member_of( members, key ) );
    CLAIM( is_tree( members ) );
}

void prove_messages_tree_insert( void )
{
    uint32_t members = any_tree(), handle = 1 + any_below( NODES ), key = any_u16();
    GIVEN( !( members >> handle & 1 ) && member_of( members, key ) == 0 );
    keys[handle] = key;
    nc_tree_insert( &trees, &tree_root, handle, key );
    CLAIM( is_tree( members | 1u << handle ) );
}

/* It is not found any more, and all others still are. */
static void remove_any( uint32_t members )
{
    uint32_t handle = 1 + any_below( NODES );
    GIVEN( members >> handle & 1 );
    CLAIM( nc_tree_remove( &trees, nc_tree_find( &trees, &tree_root, keys[handle] ) ) == handle );
    CLAIM( is_tree( members & ~( 1u << handle ) ) );
    CLAIM( *nc_tree_find( &trees, &tree_root, keys[handle] ) == 0 );
}

void prove_messages_tree_remove( void )
{
    uint32_t members = any_tree();
    GIVEN( members < 1u << NODES ); /* the last one is in no tree */
    remove_any( members );
}

void prove_messages_tree_remove_full( void )
{
    uint32_t members = any_tree();
    GIVEN( members == 15u << 1 );
    remove_any( members );
}

/* ---- acks ---- */

/* A number is acknowledged exactly if its bit or one of the ranges says so. */
void prove_messages_acks( void )
{
    nc_acks_t acks;
    uint32_t number = any_u32(), below;
    int expected = 0;
    acks.ack = any_u32();
    acks.bits = any_u32();
    acks.count = any_int();
    GIVEN( acks.count >= 0 && acks.count <= NC_MESSAGES_RANGES );
    for ( int i = 0; i < NC_MESSAGES_RANGES; i++ ) {
        acks.high[i] = any_u32();
        acks.low[i] = any_u32();
        GIVEN( acks.high[i] >= 33 && acks.high[i] <= acks.low[i] && acks.low[i] < NC_MESSAGES_REMEMBERED );
    }
    below = acks.ack - number;
    for ( int i = 0; i < acks.count; i++ )
        expected |= below >= acks.high[i] && below <= acks.low[i];
    expected |= below == 0 || ( below <= 32 && ( acks.bits & 1u << ( below - 1 ) ) );
    CLAIM( !nc_acks_hold( &acks, number ) == !expected );
}

/* ---- the header ---- */

/* What the format says of a header, in the order in which it is judged. */
static int expected_verdict( const uint8_t * data, size_t bytes, const struct netcode_messages_t * messages )
{
    if ( bytes < 9 || ( data[0] & 0x20 && bytes < 11 ) )
        return NETCODE_MESSAGES_DROP_HEADER;
    if ( ( data[0] & 0x0f ) != 3 )
        return NETCODE_MESSAGES_DROP_VERSION;
    if ( data[0] & 0x80 || ( data[0] & 0x20 && !( data[0] & 0x10 ) ) ||
         ( !( data[0] & 0x10 ) && ( low_bytes( data + 3, 4 ) | low_bytes( data + 5, 4 ) ) ) )
        return NETCODE_MESSAGES_DROP_HEADER;
    int64_t number = nc_messages_near( messages->newest_received, low_bytes( data + 1, 2 ) );
    if ( number > messages->newest_received + 24576 )
        return NETCODE_MESSAGES_DROP_WINDOW;
    if ( number < 0 || number <= messages->newest_received - NC_MESSAGES_REMEMBERED )
        return NETCODE_MESSAGES_DROP_OLD;
    if ( number <= messages->newest_received &&
         nc_bit_get( messages->numbers, (uint64_t) number, NC_MESSAGES_REMEMBERED ) )
        return NETCODE_MESSAGES_DROP_DUPLICATE;
    if ( !( data[0] & 0x10 ) )
        return NETCODE_MESSAGES_DROP_NONE;
    int64_t sent = (int64_t) messages->next_number, ack = nc_messages_near( sent - 1, low_bytes( data + 3, 2 ) );
    uint64_t bits = low_bytes( data + 5, 4 );
    int never_sent = ack < 0 || ack >= sent || ( ack < 32 && bits >> ack );
    return never_sent ? NETCODE_MESSAGES_DROP_ACK : NETCODE_MESSAGES_DROP_NONE;
}

void prove_messages_header( void )
{
    struct netcode_messages_t messages;
    size_t bytes = any_size_up_to( 16 );
    const uint8_t * data = any_bytes( bytes );
    nc_source_t source = { data, data + bytes, 0 };
    nc_plan_t plan;
    memset( &plan, 0, sizeof( plan ) );
    for ( int i = 0; i < NC_MESSAGES_REMEMBERED / 64; i++ )
        messages.numbers[i] = any_u64();
    messages.newest_received = any_newest();
    messages.next_number = (uint64_t) any_newest() + 1;
    int verdict = nc_messages_read_header( &messages, &source, &plan );
    CLAIM( verdict == expected_verdict( data, bytes, &messages ) );
    if ( verdict != NETCODE_MESSAGES_DROP_NONE )
        return;
    CLAIM( source.at == data + ( data[0] & 0x20 ? 11 : 9 ) &&
           ( (uint64_t) plan.number & 0xffff ) == low_bytes( data + 1, 2 ) );
    CLAIM( !plan.acks.valid ||
           ( (uint64_t) plan.acks.number < messages.next_number && plan.acks.ack == (uint32_t) plan.acks.number ) );
    uint64_t delay = data[0] & 0x20 ? low_bytes( data + 9, 2 ) : 0;
    CLAIM( plan.acks.delay == ( delay < 1000 ? delay : 1000 ) ); /* a tenth of a second is believed */
}
