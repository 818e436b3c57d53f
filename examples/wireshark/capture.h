/*  Reads the UDP datagrams out of a capture file, pcap or pcapng, for `netcode-token decrypt`. A part of
    examples/token.c and built with it; it needs the C library alone.

        static struct capture_t capture;
        struct capture_packet_t packet;
        if ( capture_open( &capture, file ) )
            while ( ( kind = capture_next( &capture, &packet ) ) > CAPTURE_END )
                ...

    Link types: Ethernet (VLAN tags too), Linux cooked v1 and v2, raw IP, BSD null and loopback. IPv4 and IPv6.
    Nothing is put together again: fragments, and packets that the capture cut off, are named and left out. A capture
    holds whatever was sent; each length in it is checked against what is really there. Its memory is this one
    struct, however long the file is. */

#if !defined( CAPTURE_H )
#define CAPTURE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    CAPTURE_LARGEST = 262144, /* bytes of a packet, the most that capture tools write */
    CAPTURE_INTERFACES = 256, /* of a section of pcapng */
    CAPTURE_EXTENSIONS = 8    /* headers between IPv6 and UDP */
};

/* What capture_next found. */
enum {
    CAPTURE_BROKEN = -1,  /* the file ends within a packet or breaks its own format: capture->why */
    CAPTURE_END = 0,      /* nothing more */
    CAPTURE_UDP = 1,      /* a datagram */
    CAPTURE_FRAGMENT = 2, /* of an IP packet */
    CAPTURE_CUT = 3,      /* a UDP datagram of which the capture holds the beginning only */
    CAPTURE_DAMAGED = 4,  /* its headers contradict each other */
    CAPTURE_OTHER = 5,    /* not UDP over IP */
    CAPTURE_LINK = 6,     /* a link type that is not known here */
    CAPTURE_KINDS = 7
};

/* Link types, by their numbers in the file. */
enum {
    CAPTURE_LINK_NULL = 0,
    CAPTURE_LINK_ETHERNET = 1,
    CAPTURE_LINK_RAW_BSD = 12,
    CAPTURE_LINK_RAW_OPENBSD = 14,
    CAPTURE_LINK_RAW = 101,
    CAPTURE_LINK_LOOP = 108,
    CAPTURE_LINK_LINUX_COOKED = 113,
    CAPTURE_LINK_IPV4 = 228,
    CAPTURE_LINK_IPV6 = 229,
    CAPTURE_LINK_LINUX_COOKED_2 = 276
};

struct capture_address_t {
    int ip_bytes; /* 4 or 16 */
    uint8_t ip[16];
    uint16_t port;
};

struct capture_packet_t {
    uint64_t number;      /* of the packet in the file, from 1 */
    uint64_t seconds;     /* since 1970 */
    uint32_t nanoseconds; /* and these */
    struct capture_address_t from, to;
    uint8_t * data; /* within capture_t, until the next call; may be written to */
    size_t bytes;
};

struct capture_interface_t {
    uint32_t link;
    uint32_t snap_bytes; /* of a packet, at most; 0: no limit */
    uint64_t units;      /* of time in a second */
    uint64_t offset_seconds;
};

struct capture_t {
    FILE * file;
    int next_generation; /* pcapng */
    int big_endian;
    const char * why;
    uint64_t packets;
    uint32_t num_interfaces;
    struct capture_interface_t interfaces[CAPTURE_INTERFACES];
    uint8_t data[CAPTURE_LARGEST + 4096]; /* a block's header and options too */
};

static uint32_t capture_number( const uint8_t * data, int bytes, int big_endian )
{
    uint32_t value = 0;
    for ( int i = 0; i < bytes; i++ )
        value = value << 8 | data[big_endian ? i : bytes - 1 - i];
    return value;
}

static uint32_t capture_u32( const struct capture_t * capture, const uint8_t * data )
{
    return capture_number( data, 4, capture->big_endian );
}

static int capture_broken( struct capture_t * capture, const char * why )
{
    capture->why = why;
    return CAPTURE_BROKEN;
}

static int capture_read( struct capture_t * capture, uint8_t * data, size_t bytes )
{
    return fread( data, 1, bytes, capture->file ) == bytes;
}

/* Pipes can not seek. */
static int capture_pass( struct capture_t * capture, uint64_t bytes )
{
    uint8_t rest[4096];
    while ( bytes ) {
        size_t some = bytes < sizeof( rest ) ? (size_t) bytes : sizeof( rest );
        if ( !capture_read( capture, rest, some ) )
            return 0;
        bytes -= some;
    }
    return 1;
}

/* ---- from the IP header on ---- */

/* What is left of a packet: `at` never passes `end`. */
struct capture_cursor_t {
    uint8_t * at;
    size_t bytes;
    int is_cut; /* the capture holds less than was sent */
};

static int capture_advance( struct capture_cursor_t * cursor, size_t bytes )
{
    if ( bytes > cursor->bytes )
        return 0;
    cursor->at += bytes;
    cursor->bytes -= bytes;
    return 1;
}

/* A header says how long what follows is: link layers pad, and captures cut. */
static void capture_limit( struct capture_cursor_t * cursor, size_t bytes )
{
    if ( bytes < cursor->bytes ) {
        cursor->bytes = bytes;
        cursor->is_cut = 0;
    } else {
        cursor->is_cut = bytes > cursor->bytes;
    }
}

static int capture_udp( struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    if ( cursor.bytes < 8 )
        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    packet->from.port = (uint16_t) capture_number( cursor.at, 2, 1 );
    packet->to.port = (uint16_t) capture_number( cursor.at + 2, 2, 1 );
    size_t bytes = capture_number( cursor.at + 4, 2, 1 );
    if ( bytes < 8 )
        return CAPTURE_DAMAGED;
    if ( bytes > cursor.bytes )
        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    packet->data = cursor.at + 8;
    packet->bytes = bytes - 8;
    return CAPTURE_UDP;
}

static int capture_ipv4( struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    if ( cursor.bytes < 20 )
        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    const uint8_t * header = cursor.at;
    size_t header_bytes = (size_t) ( header[0] & 15 ) * 4;
    size_t total_bytes = capture_number( header + 2, 2, 1 );
    if ( total_bytes ) /* 0: a network card cut it after the capture saw it */
        capture_limit( &cursor, total_bytes );
    if ( header_bytes < 20 || ( total_bytes && total_bytes < header_bytes ) )
        return CAPTURE_DAMAGED;
    if ( header[9] != 17 )
        return CAPTURE_OTHER;
    if ( capture_number( header + 6, 2, 1 ) & 0x3fff )
        return CAPTURE_FRAGMENT;
    packet->from.ip_bytes = packet->to.ip_bytes = 4;
    memcpy( packet->from.ip, header + 12, 4 );
    memcpy( packet->to.ip, header + 16, 4 );
    if ( !capture_advance( &cursor, header_bytes ) )
        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    return capture_udp( cursor, packet );
}

/* Hop-by-hop, routing and destination options. */
static int capture_is_extension( int next )
{
    return next == 0 || next == 43 || next == 60;
}

static int capture_ipv6( struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    if ( cursor.bytes < 40 )
        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    int next = cursor.at[6];
    size_t length = capture_number( cursor.at + 4, 2, 1 );
    packet->from.ip_bytes = packet->to.ip_bytes = 16;
    memcpy( packet->from.ip, cursor.at + 8, 16 );
    memcpy( packet->to.ip, cursor.at + 24, 16 );
    if ( length )
        capture_limit( &cursor, 40 + length );
    capture_advance( &cursor, 40 );
    for ( int i = 0; i < CAPTURE_EXTENSIONS && ( capture_is_extension( next ) || next == 44 ); i++ ) {
        if ( cursor.bytes < 8 )
            return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
        if ( next == 44 && capture_number( cursor.at + 2, 2, 1 ) & 0xfff9 )
            return CAPTURE_FRAGMENT; /* a fragment that is the whole packet is none */
        size_t bytes = next == 44 ? 8 : (size_t) 8 + (size_t) cursor.at[1] * 8;
        next = cursor.at[0];
        if ( !capture_advance( &cursor, bytes ) )
            return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;
    }
    return next == 17 ? capture_udp( cursor, packet ) : CAPTURE_OTHER;
}

static int capture_ip( struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    if ( cursor.bytes < 1 )
        return CAPTURE_DAMAGED;
    int version = cursor.at[0] >> 4;
    return version == 4   ? capture_ipv4( cursor, packet )
           : version == 6 ? capture_ipv6( cursor, packet )
                          : CAPTURE_DAMAGED;
}

/* ---- link types ---- */

static int capture_ethertype( struct capture_cursor_t cursor, uint32_t type, struct capture_packet_t * packet )
{
    for ( int i = 0; i < 2 && ( type == 0x8100 || type == 0x88a8 ); i++ ) { /* VLAN tags */
        if ( cursor.bytes < 4 )
            return CAPTURE_OTHER;
        type = capture_number( cursor.at + 2, 2, 1 );
        capture_advance( &cursor, 4 );
    }
    return type == 0x0800 || type == 0x86dd ? capture_ip( cursor, packet ) : CAPTURE_OTHER;
}

static int capture_null( struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    if ( cursor.bytes < 4 )
        return CAPTURE_DAMAGED;
    /* An address family, in the byte order of whoever wrote it; that of IPv6 is another one on each system. */
    uint32_t family = capture_number( cursor.at, 4, 0 );
    if ( family > 0xffff )
        family = capture_number( cursor.at, 4, 1 );
    capture_advance( &cursor, 4 );
    return family == 2 || family == 10 || family == 24 || family == 28 || family == 30 ? capture_ip( cursor, packet )
                                                                                       : CAPTURE_OTHER;
}

static int capture_link( uint32_t link, struct capture_cursor_t cursor, struct capture_packet_t * packet )
{
    /* clang-format off */
    static const struct {
        uint32_t link;
        uint8_t header_bytes, type_at;
    } rows[] = { { CAPTURE_LINK_ETHERNET, 14, 12 }, { CAPTURE_LINK_LINUX_COOKED, 16, 14 }, { CAPTURE_LINK_LINUX_COOKED_2, 20, 0 } };
    /* clang-format on */
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        if ( rows[i].link != link )
            continue;
        if ( cursor.bytes < rows[i].header_bytes )
            return CAPTURE_DAMAGED;
        uint32_t type = capture_number( cursor.at + rows[i].type_at, 2, 1 );
        capture_advance( &cursor, rows[i].header_bytes );
        return capture_ethertype( cursor, type, packet );
    }
    if ( link == CAPTURE_LINK_NULL || link == CAPTURE_LINK_LOOP )
        return capture_null( cursor, packet );
    if ( link == CAPTURE_LINK_RAW || link == CAPTURE_LINK_RAW_BSD || link == CAPTURE_LINK_RAW_OPENBSD ||
         link == CAPTURE_LINK_IPV4 || link == CAPTURE_LINK_IPV6 )
        return capture_ip( cursor, packet );
    return CAPTURE_LINK;
}

/* The packet's bytes stand in capture->data; `wire_bytes` is what it had on its way. */
static int capture_dissect( struct capture_t * capture, uint32_t link, size_t bytes, size_t wire_bytes,
                            struct capture_packet_t * packet )
{
    struct capture_cursor_t cursor = { capture->data, bytes, wire_bytes > bytes };
    return capture_link( link, cursor, packet );
}

/* ---- pcap ---- */

static int capture_open_pcap( struct capture_t * capture, int big_endian, uint64_t units )
{
    uint8_t header[20];
    if ( !capture_read( capture, header, sizeof( header ) ) )
        return 0;
    capture->big_endian = big_endian;
    capture->num_interfaces = 1;
    capture->interfaces[0].link = capture_u32( capture, header + 16 ) & 0x0fffffff; /* above: the frame check's size */
    capture->interfaces[0].units = units;
    return 1;
}

static int capture_next_pcap( struct capture_t * capture, struct capture_packet_t * packet )
{
    uint8_t header[16];
    size_t got = fread( header, 1, sizeof( header ), capture->file );
    if ( got == 0 )
        return CAPTURE_END;
    if ( got < sizeof( header ) )
        return capture_broken( capture, "the file ends within a packet's header" );
    size_t bytes = capture_u32( capture, header + 8 ), wire_bytes = capture_u32( capture, header + 12 );
    if ( bytes > CAPTURE_LARGEST )
        return capture_broken( capture, "a packet says that it is larger than a capture's packets can be" );
    if ( !capture_read( capture, capture->data, bytes ) )
        return capture_broken( capture, "the file ends within a packet" );
    packet->number = ++capture->packets;
    packet->seconds = capture_u32( capture, header );
    packet->nanoseconds = capture->interfaces[0].units == 1000000 ? capture_u32( capture, header + 4 ) % 1000000 * 1000
                                                                  : capture_u32( capture, header + 4 ) % 1000000000;
    return capture_dissect( capture, capture->interfaces[0].link, bytes, wire_bytes, packet );
}

/* ---- pcapng: blocks of type, length, body, length ---- */

enum { CAPTURE_BLOCK_INTERFACE = 1, CAPTURE_BLOCK_PACKET_OLD = 2, CAPTURE_BLOCK_SIMPLE = 3, CAPTURE_BLOCK_PACKET = 6 };

#define CAPTURE_BLOCK_SECTION 0x0a0d0d0au

/* A power of ten, or, with the highest bit, of two. Times finer than 64 bits can hold are read as nanoseconds. */
static uint64_t capture_units( uint8_t resolution )
{
    uint64_t units = 1;
    int power = resolution & 0x7f;
    if ( resolution & 0x80 )
        return power < 60 ? (uint64_t) 1 << power : 1000000000u;
    if ( power > 18 )
        return 1000000000u;
    while ( power-- )
        units *= 10;
    return units;
}

static void capture_interface_options( const struct capture_t * capture, const uint8_t * data, size_t bytes,
                                       struct capture_interface_t * interface )
{
    while ( bytes >= 4 ) {
        uint32_t code = capture_number( data, 2, capture->big_endian );
        size_t length = capture_number( data + 2, 2, capture->big_endian );
        size_t padded = 4 + ( length + 3 ) / 4 * 4;
        if ( code == 0 || padded > bytes )
            return;
        if ( code == 9 && length == 1 )
            interface->units = capture_units( data[4] );
        if ( code == 14 && length == 8 ) {
            uint64_t first = capture_u32( capture, data + 4 ), second = capture_u32( capture, data + 8 );
            interface->offset_seconds = capture->big_endian ? first << 32 | second : second << 32 | first;
        }
        data += padded;
        bytes -= padded;
    }
}

static int capture_add_interface( struct capture_t * capture, size_t bytes )
{
    if ( bytes < 8 )
        return capture_broken( capture, "an interface's block is too short" );
    if ( capture->num_interfaces == CAPTURE_INTERFACES )
        return capture_broken( capture, "it has more than 256 interfaces" );
    struct capture_interface_t * interface = &capture->interfaces[capture->num_interfaces++];
    memset( interface, 0, sizeof( *interface ) );
    interface->link = capture_number( capture->data, 2, capture->big_endian );
    interface->snap_bytes = capture_u32( capture, capture->data + 4 );
    interface->units = 1000000;
    capture_interface_options( capture, capture->data + 8, bytes - 8, interface );
    return CAPTURE_OTHER;
}

/* A section's header: its byte order is known only when 4 bytes more have been read. */
static int capture_begin_section( struct capture_t * capture )
{
    uint8_t rest[8]; /* length and byte-order magic */
    if ( !capture_read( capture, rest, sizeof( rest ) ) )
        return capture_broken( capture, "the file ends within a section's header" );
    if ( capture_number( rest + 4, 4, 1 ) == 0x1a2b3c4du )
        capture->big_endian = 1;
    else if ( capture_number( rest + 4, 4, 0 ) == 0x1a2b3c4du )
        capture->big_endian = 0;
    else
        return capture_broken( capture, "a section's header has no byte order" );
    uint32_t length = capture_u32( capture, rest );
    if ( length < 28 || length % 4 || !capture_pass( capture, (uint64_t) length - 12 ) )
        return capture_broken( capture, "the file ends within a section's header" );
    capture->num_interfaces = 0;
    return CAPTURE_OTHER;
}

/* Where a block that holds a packet says what. */
struct capture_block_t {
    uint32_t interface;
    size_t header_bytes, bytes, wire_bytes;
    uint64_t time;
};

static int capture_read_block( const struct capture_t * capture, uint32_t type, size_t bytes,
                               struct capture_block_t * block )
{
    const uint8_t * data = capture->data;
    memset( block, 0, sizeof( *block ) );
    block->header_bytes = type == CAPTURE_BLOCK_SIMPLE ? 4 : 20;
    if ( bytes < block->header_bytes )
        return 0;
    if ( type ==
         CAPTURE_BLOCK_SIMPLE ) { /* no time; how much of the packet is there, the interface says, and the block */
        size_t snap = capture->interfaces[0].snap_bytes;
        block->wire_bytes = capture_u32( capture, data );
        block->bytes = snap && snap < block->wire_bytes ? snap : block->wire_bytes;
        block->bytes = bytes - 4 < block->bytes ? bytes - 4 : block->bytes;
        return 1;
    }
    block->interface =
        type == CAPTURE_BLOCK_PACKET ? capture_u32( capture, data ) : capture_number( data, 2, capture->big_endian );
    block->time = (uint64_t) capture_u32( capture, data + 4 ) << 32 | capture_u32( capture, data + 8 );
    block->bytes = capture_u32( capture, data + 12 );
    block->wire_bytes = capture_u32( capture, data + 16 );
    return block->bytes <= bytes - 20;
}

static int capture_packet_block( struct capture_t * capture, uint32_t type, size_t bytes,
                                 struct capture_packet_t * packet )
{
    struct capture_block_t block;
    packet->number = ++capture->packets;
    if ( !capture_read_block( capture, type, bytes, &block ) )
        return capture_broken( capture, "a packet's block is too short" );
    if ( block.interface >= capture->num_interfaces )
        return capture_broken( capture, "a packet names an interface that the file does not describe" );
    const struct capture_interface_t * interface = &capture->interfaces[block.interface];
    uint64_t rest = block.time % interface->units;
    packet->seconds = block.time / interface->units + interface->offset_seconds;
    packet->nanoseconds = (uint32_t) ( (double) rest * 1e9 / (double) interface->units ) % 1000000000u;
    memmove( capture->data, capture->data + block.header_bytes, block.bytes );
    return capture_dissect( capture, interface->link, block.bytes, block.wire_bytes, packet );
}

/* One block. CAPTURE_KINDS: it held no packet, so the next one is due. */
static int capture_next_block( struct capture_t * capture, struct capture_packet_t * packet )
{
    uint8_t header[8] = { 0 };
    size_t got = fread( header, 1, 4, capture->file );
    uint32_t type = capture_u32( capture, header );
    if ( got == 0 )
        return CAPTURE_END;
    if ( got == 4 && type == CAPTURE_BLOCK_SECTION )
        return capture_begin_section( capture ) < 0 ? CAPTURE_BROKEN : CAPTURE_KINDS;
    if ( got < 4 || !capture_read( capture, header + 4, 4 ) )
        return capture_broken( capture, "the file ends within a block" );
    uint32_t length = capture_u32( capture, header + 4 );
    if ( length < 12 || length % 4 )
        return capture_broken( capture, "a block has an impossible length" );
    uint64_t bytes = (uint64_t) length - 12, kept = bytes <= sizeof( capture->data ) ? bytes : 0;
    int is_packet = type == CAPTURE_BLOCK_PACKET || type == CAPTURE_BLOCK_PACKET_OLD || type == CAPTURE_BLOCK_SIMPLE;
    if ( ( is_packet || type == CAPTURE_BLOCK_INTERFACE ) && kept < bytes )
        return capture_broken( capture, "a block is larger than a capture's packets can be" );
    if ( !capture_read( capture, capture->data, (size_t) kept ) || !capture_pass( capture, bytes - kept + 4 ) )
        return capture_broken( capture, "the file ends within a block" );
    if ( is_packet )
        return capture_packet_block( capture, type, (size_t) bytes, packet );
    if ( type == CAPTURE_BLOCK_INTERFACE && capture_add_interface( capture, (size_t) bytes ) < 0 )
        return CAPTURE_BROKEN;
    return CAPTURE_KINDS;
}

/* ---- for users ---- */

/* 0 when it is no capture. `file` is read from where it stands, and stays the caller's. */
static int capture_open( struct capture_t * capture, FILE * file )
{
    uint8_t magic[4];
    memset( capture, 0, sizeof( *capture ) );
    capture->file = file;
    if ( !capture_read( capture, magic, 4 ) )
        return 0;
    for ( int big_endian = 0; big_endian < 2; big_endian++ ) {
        uint32_t value = capture_number( magic, 4, big_endian );
        if ( value == 0xa1b2c3d4u || value == 0xa1b23c4du )
            return capture_open_pcap( capture, big_endian, value == 0xa1b2c3d4u ? 1000000 : 1000000000 );
    }
    capture->next_generation = 1;
    return capture_number( magic, 4, 1 ) == CAPTURE_BLOCK_SECTION && capture_begin_section( capture ) > 0;
}

/* The next packet of any kind. Its time and number are set where one was read, the rest for CAPTURE_UDP alone. */
static int capture_next( struct capture_t * capture, struct capture_packet_t * packet )
{
    int kind = CAPTURE_KINDS;
    memset( packet, 0, sizeof( *packet ) );
    if ( !capture->next_generation )
        return capture_next_pcap( capture, packet );
    while ( kind == CAPTURE_KINDS )
        kind = capture_next_block( capture, packet );
    return kind;
}

static const char * capture_kind_name( int kind )
{
    static const char * const names[CAPTURE_KINDS] =
        { "", "UDP", "fragment of an IP packet", "cut off by the capture", "damaged", "not UDP", "unknown link type" };
    return kind > 0 && kind < CAPTURE_KINDS ? names[kind] : "";
}

#endif
