/*  Messages, piece by piece: the worked examples of its wire are read from the header's text, every respect in which a
    packet can be wrong has a row with its reason, and the heap, the history of packets and the ids are held against
    models. Run: runner messages.c */

/* ---- bytes as text: hex, | between parts, aa*157 for repeats ---- */

/* Up to the end of the line. Returns the bytes, or -1. */
static int wire_parse( const char * text, uint8_t * out, int capacity )
{
    int bytes = 0, used;
    unsigned value, times;
    for ( ; *text && *text != '\n'; text += used ) {
        used = 1;
        if ( *text == ' ' || *text == '|' )
            continue;
        if ( sscanf( text, "%2x*%u%n", &value, &times, &used ) != 2 ) {
            times = 1;
            if ( sscanf( text, "%2x%n", &value, &used ) != 1 || used != 2 )
                return -1;
        }
        if ( bytes + (int) times > capacity )
            return -1;
        while ( times-- )
            out[bytes++] = (uint8_t) value;
    }
    return bytes;
}

static char wire_header_path[1024];

static void wire_note_path( const char * condition, const char * function, const char * file, int line )
{
    (void) condition;
    (void) function;
    (void) line;
    snprintf( wire_header_path, sizeof( wire_header_path ), "%s", file );
}

/* The header as it was compiled: an assert names it. Else beside the tests, or in the working directory. */
static FILE * wire_open_header( void )
{
    static const char * const places[] = { "netcode.h", "../netcode.h", "../../netcode.h" };
    FILE * file = NULL;
    netcode_set_assert_function( wire_note_path );
    netcode_messages_flush( NULL );
    netcode_messages_set_time( NULL, 1.0 );
    netcode_set_assert_function( test_assert_handler );
    if ( wire_header_path[0] )
        file = fopen( wire_header_path, "rb" );
    for ( int i = 0; !file && i < 3; i++ )
        file = fopen( places[i], "rb" );
    return file;
}

enum { WIRE_EXAMPLES = 16 };

static uint8_t wire_examples[WIRE_EXAMPLES][NETCODE_MAX_PACKET_SIZE];
static int wire_example_bytes[WIRE_EXAMPLES];

/* Returns how many there are, or -1 where the header can not be found. */
static int wire_read_examples( void )
{
    FILE * file = wire_open_header();
    char line[512];
    int count = 0;
    if ( !file )
        return -1;
    while ( fgets( line, (int) sizeof( line ), file ) ) {
        const char * at = strstr( line, "wire: " );
        if ( !at || strspn( line, " " ) != (size_t) ( at - line ) || count == WIRE_EXAMPLES )
            continue;
        wire_example_bytes[count] = wire_parse( at + 6, wire_examples[count], NETCODE_MAX_PACKET_SIZE );
        CHECK_GT( wire_example_bytes[count], 0 );
        count++;
    }
    fclose( file );
    return count;
}

/* What the sentences under the examples say. */
struct wire_frame_t {
    int example, type, kind, channel, id, order;
    uint32_t bytes, index, value;
    const char * data;
};

static const struct wire_frame_t wire_frames[] = {
    { 0, -1, 2, 0, 0, 0, 2, 0, 0, "hi" },
    { 1, -1, 0, 0, 0, 0, 1, 0, 0, "a" },
    { 1, -1, 3, 1, 5, 2, 1, 0, 0, "b" },
    { 3, 0x07, 7, 0, 0, 0, 0, 0, 0, NULL },
    { 3, 0x1f, 7, 32, 0, 0x1234, 262144, 0, 65536, NULL },
    { 3, 0x0f, 7, 0, 0, 0, 0, 0, 0x12345678, NULL },
    { 4, -2, 3, 0, 16, 4, 1181, 1, 0, "\xaa\xaa" },
    { 5, -2, 5, 2, 10, 7, 0x80000000, 4095, 0, "\xaa\xaa" },
};

struct wire_packet_t {
    int number, asks, valid, delay;
    int acks[48]; /* all of them, -1 at the end */
};

static const struct wire_packet_t wire_packets[] = {
    { 0, 1, 0, 0, { -1 } },
    { 2, 1, 1, 0, { 7, 6, 4, -1 } },
    { 3, 0, 1, 25, { 100, 99, 97, 96, -1 } },
    { 4, 1, 1, 0, { 100, 99, 98, 97, 96, 95, 94, 93, 92, 91, 90, 89, 88, 87, 86, 85, 84, 83, 82,
                    81,  80, 79, 78, 77, 76, 75, 74, 73, 72, 71, 70, 69, 68, 67, 66, 65, 62, -1 } },
    { 5, 1, 0, 0, { -1 } },
    { 6, 1, 0, 0, { -1 } },
};

static void wire_check_acks( const nc_acks_t * acks, const struct wire_packet_t * expected )
{
    CHECK_EQ( acks->valid, expected->valid );
    CHECK_EQ( acks->delay, expected->delay );
    for ( int number = 0; acks->valid && number <= (int) acks->ack + 1; number++ ) {
        int listed = 0;
        for ( int i = 0; expected->acks[i] >= 0; i++ )
            listed |= expected->acks[i] == number;
        CHECK_EQ( nc_acks_hold( acks, (uint32_t) number ), listed );
    }
}

static void wire_check_frame( const nc_frame_t * frame, const struct wire_frame_t * expected )
{
    CHECK_EQ( frame->type, expected->type );
    CHECK_EQ( frame->kind, expected->kind );
    CHECK_EQ( frame->channel, expected->channel );
    if ( expected->type < 0 ) {
        CHECK_EQ( frame->id, expected->id );
        CHECK_EQ( frame->order, expected->order );
        CHECK_EQ( frame->index, expected->index );
        REQUIRE( frame->data_bytes >= strlen( expected->data ) );
        CHECK_MEM( frame->data, expected->data, strlen( expected->data ) );
    }
    if ( expected->type < 0 || expected->type == 0x1f )
        CHECK_EQ( frame->bytes, expected->bytes );
    if ( expected->type >= 0 && expected->type != 0x07 )
        CHECK_EQ( frame->value, expected->value );
}

TEST( messages_wire_examples_are_read )
{
    const struct wire_frame_t *expected = wire_frames, *end = expected + sizeof( wire_frames ) / sizeof( *wire_frames );
    int count = wire_read_examples();
    if ( count < 0 )
        SKIP( "netcode.h can not be opened from here" );
    REQUIRE_EQ( count, (int) ( sizeof( wire_packets ) / sizeof( wire_packets[0] ) ) );
    for ( int i = 0; i < count; i++ ) {
        struct netcode_messages_t * m = netcode_messages_create( NULL, 0.0 );
        nc_source_t source = { wire_examples[i], wire_examples[i] + wire_example_bytes[i], 0 };
        nc_plan_t plan;
        nc_frame_t frame;
        memset( &plan, 0, sizeof( plan ) );
        m->next_number = 200;
        messages_skip_nothing( m );
        CHECK_EQ( nc_messages_check_packet( m, &source, &plan ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( plan.number, wire_packets[i].number );
        CHECK_EQ( plan.asks, wire_packets[i].asks );
        wire_check_acks( &plan.acks, &wire_packets[i] );
        plan.acks.count = 0;
        source.at =
            wire_examples[i] + NC_MESSAGES_FIXED_HEADER + ( wire_examples[i][0] & NC_MESSAGES_ACK_DELAY ? 2 : 0 );
        for ( ; source.at != source.end; expected++ ) {
            nc_frame_read( &source, &frame, &plan.acks );
            REQUIRE( !source.failed && expected < end && expected->example == i );
            wire_check_frame( &frame, expected );
        }
        netcode_messages_destroy( m );
    }
    CHECK( expected == end );
}

/* The library's own writer, brought into the state that an example describes. */
static struct netcode_messages_t * wire_writer( int number, int newest, uint64_t received )
{
    struct netcode_messages_t * m = netcode_messages_create( NULL, 1.0 );
    m->next_number = (uint64_t) number;
    messages_skip_nothing( m );
    m->newest_acked = m->next_number - 1;
    m->newest_received = newest;
    for ( int below = 0; below < 64; below++ )
        nc_bit_set( m->numbers, (uint64_t) ( newest - below ), NC_MESSAGES_REMEMBERED, received >> below & 1 );
    m->limit_due = 0;
    return m;
}

static void wire_expect( struct netcode_messages_t * m, int example, int last )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    m->flush = 1;
    int bytes = netcode_messages_generate_packet( m, packet, (int) sizeof( packet ) );
    if ( !last )
        return;
    CHECK_EQ( bytes, wire_example_bytes[example] );
    if ( bytes == wire_example_bytes[example] )
        CHECK_MEM( packet, wire_examples[example], bytes );
    messages_check( m );
    netcode_messages_destroy( m );
}

TEST( messages_wire_examples_are_written )
{
    uint8_t large[1181];
    struct netcode_messages_t * m;
    if ( wire_read_examples() < 0 )
        SKIP( "netcode.h can not be opened from here" );
    memset( large, 0xaa, sizeof( large ) );
    m = wire_writer( 0, -1, 0 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE, "hi", 2 );
    wire_expect( m, 0, 1 );
    m = wire_writer( 2, 7, 0x0b );
    m->next_id = m->oldest_id = 5;
    m->channels[1].next_order = 2;
    netcode_messages_send( m, 1, NETCODE_MESSAGE_RELIABLE_ORDERED, "b", 1 );
    netcode_messages_send( m, 0, NETCODE_MESSAGE_UNRELIABLE, "a", 1 );
    wire_expect( m, 1, 1 );
    m = wire_writer( 3, 100, 0x1b );
    m->newest_time = m->now - 0.00251;
    m->acks_due = 2;
    wire_expect( m, 2, 1 );
    m = wire_writer( 4, 100, 0x4fffffffff );
    m->now = 30541.98965;
    m->unacked = 62;
    m->credit_window = 65536;
    m->limit_due = m->ping_due = 1;
    m->epoch = 0x1234;
    wire_expect( m, 3, 1 );
    m = wire_writer( 4, -1, 0 );
    m->peer_max_bytes = NETCODE_MESSAGES_MAX_BYTES;
    m->next_id = m->oldest_id = 16;
    m->channels[0].next_order = 4;
    netcode_messages_send( m, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, large, (int) sizeof( large ) );
    wire_expect( m, 4, 0 );
    wire_expect( m, 4, 1 );
}

/* ---- each respect in which a packet can be malformed ---- */

#define H "43 0000 0000 00000000 " /* number 0, no ack */
#define A "53 0000 c700 00000000 " /* acks 199 */

struct reason_row_t {
    const char * bytes;
    int reason;
    const char * why;
};

/* clang-format off */
static const struct reason_row_t reason_rows[] = {
    { "",                                       NETCODE_MESSAGES_DROP_HEADER,   "nothing" },
    { "43",                                     NETCODE_MESSAGES_DROP_HEADER,   "one byte" },
    { "43 0000 0000 000000",                    NETCODE_MESSAGES_DROP_HEADER,   "one byte short of a header" },
    { "43 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_NONE,     "a header alone" },
    { "03 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_NONE,     "it asks for nothing" },
    { "40 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_VERSION,  "version 0" },
    { "41 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_VERSION,  "version 1" },
    { "42 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_VERSION,  "version 2" },
    { "49 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_VERSION,  "version 9" },
    { "41 0000 0000 000000",                    NETCODE_MESSAGES_DROP_HEADER,   "version 1, one byte short of a header" },
    { "c3 0000 0000 00000000",                  NETCODE_MESSAGES_DROP_HEADER,   "bit 7" },
    { "43 0000 0100 00000000",                  NETCODE_MESSAGES_DROP_HEADER,   "an ack that is not valid" },
    { "43 0000 0000 01000000",                  NETCODE_MESSAGES_DROP_HEADER,   "ack bits that are not valid" },
    { "63 0000 0000 00000000 0000",             NETCODE_MESSAGES_DROP_HEADER,   "a delay without an ack" },
    { "73 0000 c700 00000000",                  NETCODE_MESSAGES_DROP_HEADER,   "no delay where one follows" },
    { "73 0000 c700 00000000 00",               NETCODE_MESSAGES_DROP_HEADER,   "half a delay" },
    { "73 0000 c700 00000000 ffff",             NETCODE_MESSAGES_DROP_NONE,     "the longest delay" },
    { "43 ff5f 0000 00000000",                  NETCODE_MESSAGES_DROP_NONE,     "24576 ahead" },
    { "43 0060 0000 00000000",                  NETCODE_MESSAGES_DROP_WINDOW,   "24577 ahead" },
    { "43 fe7f 0000 00000000",                  NETCODE_MESSAGES_DROP_WINDOW,   "32767 ahead" },
    { "43 ffff 0000 00000000",                  NETCODE_MESSAGES_DROP_OLD,      "number -1" },
    { "43 0080 0000 00000000",                  NETCODE_MESSAGES_DROP_OLD,      "number -32768" },
    { "53 0000 c700 00000000",                  NETCODE_MESSAGES_DROP_NONE,     "acks the newest sent" },
    { "53 0000 c800 00000000",                  NETCODE_MESSAGES_DROP_ACK,      "acks the next" },
    { "53 0000 ffff 00000000",                  NETCODE_MESSAGES_DROP_ACK,      "acks number -1" },
    { "53 0000 0000 01000000",                  NETCODE_MESSAGES_DROP_ACK,      "acks 0 and -1" },
    { "53 0000 0300 07000000",                  NETCODE_MESSAGES_DROP_NONE,     "acks 3 to 0" },
    { "53 0000 0300 08000000",                  NETCODE_MESSAGES_DROP_ACK,      "acks 3 and -1" },
    { "53 0000 1f00 00000080",                  NETCODE_MESSAGES_DROP_ACK,      "acks 31 and -1" },
    { "53 0000 2000 00000080",                  NETCODE_MESSAGES_DROP_NONE,     "acks 32 and 0" },
    { "53 0000 2800 00000000 07 01 00 08",      NETCODE_MESSAGES_DROP_NONE,     "a range down to 0" },
    { "53 0000 2800 00000000 07 01 00 09",      NETCODE_MESSAGES_DROP_ACK,      "a range down to -1" },
    { "53 0000 2800 00000000 07 02 00 01 06 02",NETCODE_MESSAGES_DROP_ACK,      "the second range down to -1" },
    { A "07 00",                                NETCODE_MESSAGES_DROP_FRAME,    "no ranges" },
    { A "07 10 0101*31",                        NETCODE_MESSAGES_DROP_NONE,     "16 ranges" },
    { A "07 11 0101*33",                        NETCODE_MESSAGES_DROP_FRAME,    "17 ranges" },
    { A "07 01 00 00",                          NETCODE_MESSAGES_DROP_FRAME,    "an empty range" },
    { A "07 01 00 a701",                        NETCODE_MESSAGES_DROP_NONE,     "a range of 167 down to 0" },
    { "53 0000 c700 00000000 07 01 00 df0f",    NETCODE_MESSAGES_DROP_ACK,      "a range to 2047 below" },
    { A "07 01 00 e00f",                        NETCODE_MESSAGES_DROP_FRAME,    "a range to 2048 below" },
    { A "07 01 de0f 01",                        NETCODE_MESSAGES_DROP_ACK,      "one number 2047 below" },
    { A "07 01 df0f 01",                        NETCODE_MESSAGES_DROP_FRAME,    "one number 2048 below" },
    { A "07 01 ffffff7f ffffff7f",              NETCODE_MESSAGES_DROP_FRAME,    "the largest range" },
    { A "07 01 80808080",                       NETCODE_MESSAGES_DROP_FRAME,    "a number of five bytes" },
    { A "07 01 00",                             NETCODE_MESSAGES_DROP_FRAME,    "a range cut short" },
    { A "07 01 00 01 07 01 00 01",              NETCODE_MESSAGES_DROP_FRAME,    "ranges twice" },
    { H "07 01 00 01",                          NETCODE_MESSAGES_DROP_FRAME,    "ranges without an ack" },
    { H "05 0000 00000000 00",                  NETCODE_MESSAGES_DROP_FRAME,    "a stream in one piece" },
    { H "06",                                   NETCODE_MESSAGES_DROP_FRAME,    "kind 6" },
    { H "0e 0000 00",                           NETCODE_MESSAGES_DROP_FRAME,    "kind 6 in fragments" },
    { H "0d 0000 07000000 00000000 00",         NETCODE_MESSAGES_DROP_NONE,     "a stream of nothing" },
    { H "0d 0000 07000000 01000000 00 aa",      NETCODE_MESSAGES_DROP_NONE,     "a stream of one byte" },
    { H "0d 0000 07000000 ffffffff 818000 aa*1168", NETCODE_MESSAGES_DROP_FRAME, "an index in too long a form" },
    { H "0d 0000 07000000 ffffffff ff1f aa*1168", NETCODE_MESSAGES_DROP_NONE,   "fragment 4095 of 2^32 - 1 bytes" },
    { H "0d 0000 07000000 ffffffff 8020 aa*1168", NETCODE_MESSAGES_DROP_FRAGMENT, "fragment 4096, and none before it" },
    { H "0d 0000 07000000 00000000 01",         NETCODE_MESSAGES_DROP_FRAGMENT, "fragment 1 of a stream of nothing" },
    { H "2d 0000 07000000 01000000 00 aa",      NETCODE_MESSAGES_DROP_NONE,     "a stream that is known, and is over" },
    { H "0d 0000 070000",                       NETCODE_MESSAGES_DROP_FRAME,    "half a tag" },
    { H "27 0000 cf00",                         NETCODE_MESSAGES_DROP_FRAME,    "takes back in too long a form" },
    { H "27 0000 00",                           NETCODE_MESSAGES_DROP_NONE,     "takes back what is known, and is over" },
    { H "27 0010 00",                           NETCODE_MESSAGES_DROP_NONE,     "the same, of an id that is far" },
    { H "27 0000 4f",                           NETCODE_MESSAGES_DROP_FRAME,    "takes back what costs less than an empty message" },
    { H "27 0000 50",                           NETCODE_MESSAGES_DROP_NONE,     "takes back an empty message" },
    { H "2f 01 0000",                           NETCODE_MESSAGES_DROP_NONE,     "refuses a stream that is not sent" },
    { H "2f 01 00",                             NETCODE_MESSAGES_DROP_FRAME,    "half of what it refuses" },
    { H "2f 02 0000",                           NETCODE_MESSAGES_DROP_FRAME,    "one of two that it refuses" },
    { H "2f 00",                                NETCODE_MESSAGES_DROP_FRAME,    "refuses nothing" },
    { H "2f 10 00*32",                          NETCODE_MESSAGES_DROP_NONE,     "refuses 16" },
    { H "2f 11 00*34",                          NETCODE_MESSAGES_DROP_FRAME,    "refuses 17" },
    { H "2f 01 0000 2f 01 0000",                NETCODE_MESSAGES_DROP_FRAME,    "refuses twice" },
    { H "37",                                   NETCODE_MESSAGES_DROP_FRAME,    "broken, for no reason" },
    { H "37 00",                                NETCODE_MESSAGES_DROP_FRAME,    "broken for reason 0" },
    { H "37 07",                                NETCODE_MESSAGES_DROP_FRAME,    "broken for reason 7" },
    { H "37 06",                                NETCODE_MESSAGES_DROP_NONE,     "broken for reason 6" },
     { H "3f", NETCODE_MESSAGES_DROP_FRAME, "type 3f" },
    { H "40 00", NETCODE_MESSAGES_DROP_FRAME, "bit 6" }, { H "80 00", NETCODE_MESSAGES_DROP_FRAME, "bit 7" },
    { H "47 01 00 01", NETCODE_MESSAGES_DROP_FRAME, "type 47" }, { H "ff", NETCODE_MESSAGES_DROP_FRAME, "type ff" },
    { H "00 00",                                NETCODE_MESSAGES_DROP_NONE,     "an empty message" },
    { H "20",                                   NETCODE_MESSAGES_DROP_NONE,     "an empty message to the end" },
    { H "00 01 61 05",                          NETCODE_MESSAGES_DROP_FRAME,    "a byte too many" },
    { H "00",                                   NETCODE_MESSAGES_DROP_FRAME,    "no length" },
    { H "00 02 61",                             NETCODE_MESSAGES_DROP_FRAME,    "a message cut short" },
    { H "00 8100 61",                           NETCODE_MESSAGES_DROP_FRAME,    "a length of two bytes where one is enough" },
    { H "00 818000 61",                         NETCODE_MESSAGES_DROP_FRAME,    "a length of three bytes where one is enough" },
    { H "00 80808000",                          NETCODE_MESSAGES_DROP_FRAME,    "a length of four bytes where one is enough" },
    { H "00 8080808001",                        NETCODE_MESSAGES_DROP_FRAME,    "a length of five bytes" },
    { H "00 ffffff7f",                          NETCODE_MESSAGES_DROP_FRAME,    "the longest length" },
    { H "00 9c09 61*1180",                      NETCODE_MESSAGES_DROP_NONE,     "1180 bytes" },
    { H "00 9d09 61*1181",                      NETCODE_MESSAGES_DROP_FRAME,    "1181 bytes in one piece" },
    { H "20 61*1190",                           NETCODE_MESSAGES_DROP_FRAME,    "1190 bytes to the end" },
    { H "10 01 00",                             NETCODE_MESSAGES_DROP_NONE,     "channel 1" },
    { H "10 00 00",                             NETCODE_MESSAGES_DROP_FRAME,    "channel 0 with its byte" },
    { H "10 03 00",                             NETCODE_MESSAGES_DROP_NONE,     "the last channel" },
    { H "10 04 00",                             NETCODE_MESSAGES_DROP_CHANNEL,  "a channel that is not open" },
    { H "10 ff 00",                             NETCODE_MESSAGES_DROP_CHANNEL,  "channel 255" },
    { H "1a 04 0000 9d040000 01 aa*13",            NETCODE_MESSAGES_DROP_CHANNEL,  "a fragment for a channel that is not open" },
    { H "10",                                   NETCODE_MESSAGES_DROP_FRAME,    "no channel" },
    { H "02 00",                                NETCODE_MESSAGES_DROP_FRAME,    "half an id" },
    { H "03 0000 00",                           NETCODE_MESSAGES_DROP_FRAME,    "half an order" },
    { H "02 ff0f 00",                           NETCODE_MESSAGES_DROP_NONE,     "id 4095" },
    { H "02 0010 00",                           NETCODE_MESSAGES_DROP_WINDOW,   "id 4096" },
    { H "03 0000 ff0f 00",                      NETCODE_MESSAGES_DROP_NONE,     "order 4095" },
    { H "03 0000 0010 00",                      NETCODE_MESSAGES_DROP_WINDOW,   "order 4096" },
    { H "03 0000 ffff 00",                      NETCODE_MESSAGES_DROP_WINDOW,   "order -1" },
    { H "0a ff0f 9d040000 01 aa*13",               NETCODE_MESSAGES_DROP_NONE,     "a fragment of id 4095" },
    { H "0a 0010 9d040000 01 aa*13",               NETCODE_MESSAGES_DROP_WINDOW,   "a fragment of id 4096" },
    { H "08 9d040000 01 aa*13",                    NETCODE_MESSAGES_DROP_FRAME,    "an unreliable fragment" },
    { H "09 9d040000 01 aa*13",                    NETCODE_MESSAGES_DROP_FRAME,    "an unreliable sequenced fragment" },
    { H "2a 0000 9d040000 01 aa*13",               NETCODE_MESSAGES_DROP_NONE,     "a fragment that is known, and is over" },
    { H "2a 0010 9d040000 01 aa*13",               NETCODE_MESSAGES_DROP_NONE,     "the same, of an id that is far" },
    { H "2a 0000 9d040000 01 aa*12",               NETCODE_MESSAGES_DROP_FRAME,    "the same, cut short" },
    { H "28 9d040000 01 aa*13",                    NETCODE_MESSAGES_DROP_FRAME,    "an unreliable fragment that is known" },
    { H "0a 0000 9c040000 01 aa*12",               NETCODE_MESSAGES_DROP_FRAGMENT, "1180 bytes in fragments" },
    { H "0a 0000 00000000 00",                        NETCODE_MESSAGES_DROP_FRAGMENT, "nothing in fragments" },
    { H "0a 0000 9d040000 02",                      NETCODE_MESSAGES_DROP_FRAGMENT, "fragment 2 of 2" },
    { H "0a 0000 9d040000 ffffff7f",                NETCODE_MESSAGES_DROP_FRAGMENT, "the last fragment of all" },
    { H "0a 0000 01200000 07 aa*17",                   NETCODE_MESSAGES_DROP_FRAGMENT, "8193 bytes where 8192 are accepted" },
    { H "0a 0000 00200000 07 aa*16",              NETCODE_MESSAGES_DROP_NONE,     "8192 bytes" },
    { H "0a 0000 9d040000 01 aa*12",               NETCODE_MESSAGES_DROP_FRAME,    "a fragment cut short" },
    { H "0a 0000 9d040000 8100 aa*13",             NETCODE_MESSAGES_DROP_FRAME,    "an index of two bytes where one is enough" },
    { H "0a 0000 9d040000",                         NETCODE_MESSAGES_DROP_FRAME,    "no index" },
    { H "0a 0000 21090000 02 aa 0a 0000 21090000 02 aa", NETCODE_MESSAGES_DROP_FRAGMENT, "two fragments" },
    { H "0a 0000 21090000 02 aa 02 0000 00",       NETCODE_MESSAGES_DROP_NONE,     "a message with the id of a fragment" },
    { H "0f 00000000",                          NETCODE_MESSAGES_DROP_NONE,     "a ping" },
    { H "0f 000000",                            NETCODE_MESSAGES_DROP_FRAME,    "a ping cut short" },
    { H "17 00000000",                          NETCODE_MESSAGES_DROP_NONE,     "a pong without a ping" },
    { H "17 000000",                            NETCODE_MESSAGES_DROP_FRAME,    "a pong cut short" },
    { H "1f 00000040 9c09 01 0000",                  NETCODE_MESSAGES_DROP_NONE,     "2^30 more than was used" },
    { H "1f 01000040 9c09 20 0000",                  NETCODE_MESSAGES_DROP_LIMIT,    "2^30 + 1 more than was used" },
    { H "1f 00000000 9c09 20 0000",                  NETCODE_MESSAGES_DROP_NONE,     "less than before: an old one" },
    { H "1f 00400000 9b09 20 0000",                  NETCODE_MESSAGES_DROP_LIMIT,    "takes less than 1180 bytes" },
    { H "1f 00400000 9c8900 20 0000",                NETCODE_MESSAGES_DROP_FRAME,    "not in its shortest form" },
    { H "1f 00400000 9c09 00 0000",                  NETCODE_MESSAGES_DROP_LIMIT,    "no channel" },
    { H "1f 00400000 9c09 21 0000",                  NETCODE_MESSAGES_DROP_LIMIT,    "33 channels" },
    { H "1f 00400000 9c09",                     NETCODE_MESSAGES_DROP_FRAME,    "a limit cut short" },
    { H "27 ff0f 55",                           NETCODE_MESSAGES_DROP_NONE,     "takes back id 4095" },
    { H "27 0010 55",                           NETCODE_MESSAGES_DROP_WINDOW,   "takes back id 4096" },
    { H "27 0000 d140",                         NETCODE_MESSAGES_DROP_NONE,     "takes back 8192 bytes" },
    { H "27 0000 d240",                         NETCODE_MESSAGES_DROP_LIMIT,    "takes back more than a message may have" },
    { H "27 0000 d140 27 0100 af3f",            NETCODE_MESSAGES_DROP_NONE,     "takes back all of the first credit" },
    { H "27 0000 d140 27 0100 b03f",            NETCODE_MESSAGES_DROP_LIMIT,    "takes back more than it may send" },
    { H "27 0000 ffffff7f",                     NETCODE_MESSAGES_DROP_LIMIT,    "takes back 2^28 - 1" },
    { H "27 0000",                              NETCODE_MESSAGES_DROP_FRAME,    "takes back cut short" },
    { H "00 01 61 02 0000 01 62 02 0010 00",    NETCODE_MESSAGES_DROP_WINDOW,   "the last of three frames is too far ahead" },
};
/* clang-format on */

static void * allocate_zeros( void * context, size_t bytes )
{
    (void) context;
    return calloc( 1, bytes );
}

static void free_zeros( void * context, void * block )
{
    (void) context;
    free( block );
}

/* An object that messages_same may read: also what was not written yet has a value. */
static struct netcode_messages_t * messages_create_zeroed( const struct netcode_messages_config_t * config )
{
    struct netcode_messages_config_t zeroed;
    if ( config )
        zeroed = *config;
    else
        netcode_default_messages_config( &zeroed );
    zeroed.allocate_function = allocate_zeros;
    zeroed.free_function = free_zeros;
    return netcode_messages_create( &zeroed, 0.0 );
}

/* Small, so that all of it can be compared. */
static const struct netcode_messages_config_t * small_config( void )
{
    static struct netcode_messages_config_t config;
    memset( &config, 0, sizeof( config ) );
    config.channels = 4;
    config.max_message_bytes = 8192;
    config.send_buffer_bytes = config.receive_buffer_bytes = 32768;
    config.window_packets = 16;
    return &config;
}

/* Whether anything but the counters of drops is another than in a copy from before. */
static int messages_same( const struct netcode_messages_t * m, const void * before, size_t bytes )
{
    size_t drops = offsetof( struct netcode_messages_t, stats ) + offsetof( netcode_messages_stats_t, drops );
    size_t behind = drops + sizeof( m->stats.drops ), since = offsetof( struct netcode_messages_t, useless_since );
    const uint8_t *p = (const uint8_t *) m, *q = (const uint8_t *) before;
    return memcmp( p, q, since ) == 0 && memcmp( p + since + 16, q + since + 16, drops - since - 16 ) == 0 &&
           memcmp( p + behind, q + behind, bytes - behind ) == 0;
}

TEST( messages_reasons )
{
    uint8_t packet[4096];
    size_t size = netcode_messages_memory( small_config() );
    void * before = malloc( size );
    for ( size_t i = 0; i < sizeof( reason_rows ) / sizeof( reason_rows[0] ); i++ ) {
        const struct reason_row_t * row = &reason_rows[i];
        struct netcode_messages_t * m = messages_create_zeroed( small_config() );
        int bytes = wire_parse( row->bytes, packet, (int) sizeof( packet ) );
        REQUIRE( bytes >= 0 && m && before );
        m->next_number = 200;
        messages_skip_nothing( m );
        memcpy( before, m, size );
        int reason = netcode_messages_process_packet( m, packet, bytes );
        if ( reason != row->reason )
            test_fail( __FILE__, __LINE__, "%s: %s and not %s", row->why, netcode_messages_drop_reason_name( reason ),
                       netcode_messages_drop_reason_name( row->reason ) );
        CHECK_EQ( m->broken, reason == NETCODE_MESSAGES_DROP_CHANNEL          ? NETCODE_MESSAGES_REASON_CHANNEL
                             : strcmp( row->why, "broken for reason 6" ) == 0 ? 6
                                                                              : 0 );
        if ( reason != NETCODE_MESSAGES_DROP_NONE ) {
            m->broken = m->broken_event = m->broken_due = 0;
            CHECK( messages_same( m, before, size ) );
            CHECK_EQ( m->stats.drops[reason], 1 );
        }
        messages_check( m );
        netcode_messages_destroy( m );
    }
    free( before );
}

/* A packet that is right and another that is not, whatever stands in front of the fault. */
TEST( messages_no_packet_is_taken_in_part )
{
    static const char * const faults[] =
        { "05", "10 04 00", "02 0010 00", "0a 0000 00 00", "1f 00000000 00 20 0000", "00 02 61" };
    static const char * const frames[] =
        { "00 01 61",           "02 0000 01 62", "03 0100 0000 01 63",         "04 0200 01 64",
          "0a 0000 8110 02 aa", "0f 01020304",   "1f 00800000 a08d06 20 0000", "27 0300 55",
          "07 01 00 05" };
    char text[256];
    uint8_t packet[2048];
    size_t size = netcode_messages_memory( small_config() );
    struct netcode_messages_t * m = messages_create_zeroed( small_config() );
    void * before = malloc( size );
    m->next_number = 200;
    messages_skip_nothing( m );
    for ( int round = 0; round < 2000; round++ ) {
        int at = snprintf( text, sizeof( text ), A ), ranges = 0;
        for ( int i = test_random_below( 4 ); i >= 0; i-- ) {
            int frame = test_random_below( 9 );
            ranges += frame == 8;
            at += snprintf( text + at, sizeof( text ) - (size_t) at, "%s ",
                            frame == 8 && ranges > 1 ? "00 00" : frames[frame] );
        }
        snprintf( text + at, sizeof( text ) - (size_t) at, "%s", faults[round % 6] );
        int bytes = wire_parse( text, packet, (int) sizeof( packet ) );
        memcpy( before, m, size );
        CHECK_NE( netcode_messages_process_packet( m, packet, bytes ), NETCODE_MESSAGES_DROP_NONE );
        CHECK( m->broken == 0 || round % 6 == 1 );
        m->broken = m->broken_event = m->broken_due = 0;
        CHECK( messages_same( m, before, size ) );
    }
    netcode_messages_destroy( m );
    free( before );
}

/* ---- numbers of one to four bytes ---- */

TEST( messages_varints )
{
    static const uint32_t edges[] = { 0x7f, 0x80, 0x3fff, 0x4000, 0x1fffff, 0x200000 };
    for ( int i = 0; i < 20000; i++ ) {
        uint8_t bytes[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
        uint32_t value = i < 6 ? edges[i] : (uint32_t) ( test_random() & 0xfffffff ) >> test_random_below( 28 );
        uint32_t length = (uint32_t) ( nc_put_varint( bytes, value ) - bytes );
        nc_source_t source = { bytes, bytes + length, 0 }, shorter = { bytes, bytes + length - 1, 0 };
        CHECK_EQ( length, value < 1u << 7 ? 1 : value < 1u << 14 ? 2 : value < 1u << 21 ? 3 : 4 );
        CHECK_EQ( nc_varint_bytes( value ), length );
        CHECK_EQ( nc_source_varint( &source ), value );
        CHECK( !source.failed && source.at == source.end );
        nc_source_varint( &shorter );
        CHECK( shorter.failed );
        bytes[length - 1] |= 0x80; /* the same once more with a zero behind it */
        bytes[length] = 0;
        nc_source_t longer = { bytes, bytes + length + 1, 0 };
        nc_source_varint( &longer );
        CHECK( longer.failed );
    }
}

/* ---- the heap against a model ---- */

enum { HEAP_BYTES = 60000, HEAP_PIECES = 400 };

struct heap_piece_t {
    uint32_t handle, bytes;
    uint8_t mark;
};

struct heap_model_t {
    nc_heap_t heap;
    uint64_t block[HEAP_BYTES / 8];
    struct heap_piece_t pieces[HEAP_PIECES];
    int count;
    uint32_t most; /* that was in use at a time */
};

static void heap_model_open( struct heap_model_t * model, uint32_t bytes )
{
    memset( &model->heap, 0, sizeof( model->heap ) );
    memset( model->block, 0, sizeof( model->block ) );
    model->heap.base = (uint8_t *) model->block;
    model->heap.bytes = bytes / 8 * 8;
    model->count = 0;
    model->most = 0;
}

static uint32_t heap_model_bytes( void )
{
    int how = test_random_below( 10 );
    return (uint32_t) ( how < 6   ? test_random_below( 200 )
                        : how < 9 ? test_random_below( 2000 )
                                  : test_random_below( 20000 ) );
}

static int heap_model_take( struct heap_model_t * model, uint32_t bytes )
{
    struct heap_piece_t * piece = &model->pieces[model->count];
    if ( model->count == HEAP_PIECES )
        return 0;
    piece->bytes = bytes;
    piece->mark = (uint8_t) test_random();
    piece->handle = nc_heap_take( &model->heap, bytes );
    if ( !piece->handle )
        return 0;
    uint8_t * data = (uint8_t *) nc_heap_at( &model->heap, piece->handle );
    CHECK_EQ( ( data - model->heap.base ) % 8, 0 );
    memset( data, piece->mark, bytes );
    model->most = model->heap.used > model->most ? model->heap.used : model->most;
    model->count++;
    return 1;
}

static void heap_model_free( struct heap_model_t * model )
{
    if ( model->count == 0 )
        return;
    struct heap_piece_t * piece = &model->pieces[test_random_below( model->count )];
    const uint8_t * data = (const uint8_t *) nc_heap_at( &model->heap, piece->handle );
    for ( uint32_t i = 0; i < piece->bytes; i++ )
        REQUIRE_EQ( data[i], piece->mark ); /* wherever it was moved to */
    if ( model->heap.fixed == piece->handle )
        model->heap.fixed = 0;
    nc_heap_free( &model->heap, piece->handle );
    *piece = model->pieces[--model->count];
}

/* All that is free has been wiped, and nothing that is in use. */
static void heap_model_wipe( struct heap_model_t * model )
{
    uint32_t table = model->heap.bytes - 4 * model->heap.handles, high = model->heap.high;
    nc_heap_wipe_free( &model->heap );
    for ( uint32_t at = model->heap.end; at < high && at < table; at++ )
        REQUIRE_EQ( model->heap.base[at], 0 );
}

/* Whatever was taken and freed before, what is free fits. */
TEST( messages_heap_fits_what_is_free )
{
    static struct heap_model_t model;
    for ( int round = 0; round < 40; round++ ) {
        heap_model_open( &model, (uint32_t) ( 64 + test_random_below( HEAP_BYTES - 64 ) ) );
        for ( int i = 0; i < 400; i++ ) {
            uint32_t bytes = heap_model_bytes(), cost = nc_heap_cost( bytes );
            int fits = model.heap.used + cost + 4 * model.heap.handles <= model.heap.bytes;
            if ( test_random_below( 100 ) < ( i / 100 % 2 ? 30 : 70 ) )
                CHECK_EQ( heap_model_take( &model, bytes ), fits && model.count < HEAP_PIECES );
            else
                heap_model_free( &model );
            if ( i % 8 == 0 )
                heap_check( &model.heap );
            if ( i % 64 == 0 )
                heap_model_wipe( &model );
        }
        while ( model.count )
            heap_model_free( &model );
        CHECK_EQ( model.heap.used + model.heap.end + model.heap.handles, 0 );
    }
}

/*  Packets in flight keep handles while all blocks are freed and the table with them. What stands in its place, the data of another
    block, is not taken for an entry. */
TEST( messages_heap_forgets_handles_when_it_is_empty )
{
    static uint64_t memory[512];
    nc_heap_t heap;
    uint32_t handles[64];
    memset( &heap, 0, sizeof( heap ) );
    heap.base = (uint8_t *) memory;
    heap.bytes = sizeof( memory );
    for ( int i = 0; i < 64; i++ )
        REQUIRE( ( handles[i] = nc_heap_take( &heap, 16 ) ) != 0 );
    for ( int i = 0; i < 64; i++ )
        nc_heap_free( &heap, handles[i] );
    uint32_t bytes = heap.bytes - 32, block = nc_heap_take( &heap, bytes );
    REQUIRE( block != 0 );
    memset( nc_heap_at( &heap, block ), 0x41, bytes );
    for ( int i = 0; i < 64; i++ )
        CHECK_EQ( nc_heap_has( &heap, handles[i] ), handles[i] == block );
}

/* A connection whose messages are few needs few pages of its buffers, however many have passed. */
TEST( messages_heap_touches_little_memory )
{
    static struct heap_model_t model;
    heap_model_open( &model, HEAP_BYTES );
    for ( int i = 0; i < 10000; i++ ) {
        heap_model_take( &model, (uint32_t) test_random_below( 300 ) );
        if ( model.count > test_random_below( 20 ) )
            heap_model_free( &model );
    }
    CHECK_LE( model.heap.high, 2 * model.most + NC_HEAP_SPARE + nc_heap_cost( 300 ) - sizeof( uint32_t ) );
}

/* What fits together fits in any order, and the message that the application reads stays where it is. */
TEST( messages_heap_keeps_its_promise )
{
    static struct heap_model_t model;
    int promises = 0, refusals = 0;
    for ( int round = 0; round < 3000; round++ ) {
        if ( round % 50 == 0 )
            heap_model_open( &model, HEAP_BYTES );
        for ( int i = 0; i < 20; i++ )
            if ( test_random_below( 5 ) < 3 )
                heap_model_take( &model, heap_model_bytes() );
            else
                heap_model_free( &model );
        if ( !model.heap.fixed && model.count )
            model.heap.fixed = model.pieces[test_random_below( model.count )].handle;

        const void * fixed = model.heap.fixed ? nc_heap_at( &model.heap, model.heap.fixed ) : NULL;
        uint32_t rest = HEAP_BYTES - model.heap.used - 4 * model.heap.handles;
        rest -= (uint32_t) test_random_below( 1 + (int) ( round & 1 && rest > 64 ? 64 : rest ) ); /* or nearly all */
        int fits = nc_heap_fits( &model.heap, rest );
        promises += fits;
        refusals += !fits;
        while ( fits && rest >= nc_heap_cost( 0 ) && model.count < HEAP_PIECES / 2 ) {
            uint32_t bytes = (uint32_t) test_random_below( (int) ( rest - nc_heap_cost( 0 ) + 1 ) ) / 8 * 8;
            REQUIRE( heap_model_take( &model, bytes ) );
            rest -= nc_heap_cost( bytes );
        }
        CHECK( !model.heap.fixed || nc_heap_at( &model.heap, model.heap.fixed ) == fixed );
        heap_check( &model.heap );
    }
    CHECK_GT( promises, 200 );
    CHECK_GT( refusals, 200 ); /* beside a fixed one in the middle */
}

/* ---- what was received: bits against a list of numbers ---- */

TEST( messages_numbers )
{
    static uint8_t model[300 * 4000 + 1];
    for ( int round = 0; round < 20; round++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        memset( model, 0, sizeof( model ) );
        for ( int i = 0; i < 300; i++ ) {
            static const int jumps[] = { 1,   1,   2,   3,   63,   64,   65,   127,  128,  191, 192,
                                         255, 256, 257, 600, 1983, 1984, 2047, 2048, 2049, 4000 };
            int behind = test_random_below( round & 2 ? 256 : NC_MESSAGES_REMEMBERED );
            int by = round & 1 ? jumps[test_random_below( round & 4 ? 15 : 21 )] : 1 + test_random_below( 4 );
            int newest = (int) m->newest_received + by;
            nc_messages_take_number( m, newest, 0 );
            model[newest] = 1;
            if ( behind <= newest ) {
                nc_messages_take_number( m, newest - behind, 0 );
                model[newest - behind] = 1;
            }
            for ( int below = 0; below < NC_MESSAGES_REMEMBERED; below++ )
                CHECK_EQ( nc_messages_had_number( m, (uint32_t) below ), below <= newest && model[newest - below] );
            for ( int bit = 0; bit < 32; bit++ )
                CHECK_EQ( nc_messages_had_number( m, (uint32_t) bit + 1 ), bit < newest && model[newest - 1 - bit] );
        }
        netcode_messages_destroy( m );
    }
}

TEST( messages_ids )
{
    static uint8_t model[402 * ( NC_MESSAGES_IDS + 1 )];
    const int64_t count = NC_MESSAGES_IDS;
    for ( int round = 0; round < 4; round++ ) {
        struct netcode_messages_t * m = netcode_messages_create( small_config(), 0.0 );
        memset( model, 0, sizeof( model ) );
        for ( int i = 0; i < 400; i++ ) {
            int64_t id = m->newest_id + 1 + count - test_random_below( 2 * (int) count );
            id = id < 0 ? 0 : id;
            int had = nc_messages_had( m, id );
            CHECK_EQ( had, id <= m->newest_id - count || model[id] );
            if ( !had ) {
                nc_bit_take( m->ids, &m->newest_id, id, NC_MESSAGES_IDS );
                model[id] = 1;
            }
            for ( int64_t k = m->newest_id - 2 * count; i % 16 == 0 && k <= m->newest_id + 2 * count; k++ )
                CHECK_EQ( nc_messages_had( m, k ), k < 0 || k <= m->newest_id - count || model[k] );
        }
        netcode_messages_destroy( m );
    }
}

/* The number that is meant is the nearest one. */
TEST( messages_near_numbers )
{
    CHECK_EQ( nc_messages_near( -1, 0 ), 0 );
    CHECK_EQ( nc_messages_near( -1, 0xffff ), -1 );
    CHECK_EQ( nc_messages_near( 65535, 0 ), 65536 );
    CHECK_EQ( nc_messages_near( 65536, 0xffff ), 65535 );
    for ( int i = 0; i < 2000; i++ ) {
        int64_t newest = (int64_t) ( test_random() >> 20 ), off = test_random_below( 65536 ) - 32768;
        CHECK_EQ( nc_messages_near( newest, (uint32_t) ( newest + off ) & 0xffff ), newest + off );
    }
}

#undef H
#undef A
