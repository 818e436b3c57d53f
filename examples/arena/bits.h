/*  Bits: a bounded writer and a bounded reader for game packets, with ranges and differences. One file to copy; it needs
    <stdint.h> and <string.h>, and allocates nothing.

        uint8_t data[64];
        struct bits_writer_t writer;
        bits_write_begin( &writer, data, sizeof( data ) );
        bits_write_range( &writer, health, 0, 100 );                   7 bits
        bits_write_difference( &writer, x, last_x, 0, 4095 );          1 bit if equal, 7 if near, 14 else
        int bytes = bits_write_end( &writer );                         -1 if it did not fit

        struct bits_reader_t reader;
        bits_read_begin( &reader, data, bytes );
        int health = bits_read_range( &reader, 0, 100 );
        int x = bits_read_difference( &reader, last_x, 0, 4095 );
        if ( !bits_read_end( &reader ) )
            drop the packet: it was too short, too long, or a value was out of its range

    Both are sticky: after the first failure nothing more is written or read, reads return the lowest value that was
    asked for, and the end reports it. So the caller checks once. What a reader returns is always within its range,
    whatever the bytes are: it can be used as an index before the check.

    On the wire the first value has the lowest bits of the first byte; a range takes as many bits as its width needs. */

#ifndef BITS_H
#define BITS_H

#include <stdint.h>
#include <string.h>

enum { BITS_NEAR = 16 /* a difference from -16 to 15, without 0's own form, takes 5 bits and 2 for its form */ };

struct bits_writer_t {
    uint8_t * data;
    int capacity; /* bits */
    int at;
    int failed;
};

struct bits_reader_t {
    const uint8_t * data;
    int size; /* bits */
    int at;
    int failed;
};

/* The bits that numbers from 0 to `most` need: 0 for 0, 32 for 2^32 - 1. */
static inline int bits_needed( uint32_t most )
{
    int count = 0;
    for ( ; most; most >>= 1 )
        count++;
    return count;
}

/* ---- writing ---- */

/* `capacity_bytes` up to 2^28. */
static inline void bits_write_begin( struct bits_writer_t * writer, uint8_t * data, int capacity_bytes )
{
    writer->data = data;
    writer->capacity = capacity_bytes * 8;
    writer->at = 0;
    writer->failed = 0;
}

/* The lowest `count` bits of `value`, 0 to 32 of them. */
static inline void bits_write( struct bits_writer_t * writer, uint32_t value, int count )
{
    if ( writer->failed || count > writer->capacity - writer->at ) {
        writer->failed = 1;
        return;
    }
    for ( int i = 0; i < count; i++, writer->at++ ) {
        uint8_t mask = (uint8_t) ( 1u << ( writer->at & 7 ) );
        uint8_t * byte = &writer->data[writer->at >> 3];
        if ( ( writer->at & 7 ) == 0 )
            *byte = 0; /* the bits behind the last one are zeros */
        if ( value >> i & 1 )
            *byte |= mask;
    }
}

/* A value out of its range fails: the other side could not read it as it was meant. */
static inline void bits_write_range( struct bits_writer_t * writer, int32_t value, int32_t lowest, int32_t highest )
{
    if ( value < lowest || value > highest ) {
        writer->failed = 1;
        return;
    }
    bits_write( writer, (uint32_t) value - (uint32_t) lowest, bits_needed( (uint32_t) highest - (uint32_t) lowest ) );
}

/*  A value that is often what it was, or near it. Both sides must have the same `base`, which may be out of the range.
    Forms: 0 equal; 10 and 5 bits: near; 11 and the range. */
static inline void bits_write_difference( struct bits_writer_t * writer, int32_t value, int32_t base, int32_t lowest,
                                          int32_t highest )
{
    int64_t difference = (int64_t) value - base;
    if ( value < lowest || value > highest ) {
        writer->failed = 1;
    } else if ( difference == 0 ) {
        bits_write( writer, 0, 1 );
    } else if ( difference >= -BITS_NEAR && difference < BITS_NEAR ) {
        bits_write( writer, 1, 2 );
        bits_write( writer, (uint32_t) ( difference + BITS_NEAR ), 5 );
    } else {
        bits_write( writer, 3, 2 );
        bits_write_range( writer, value, lowest, highest );
    }
}

static inline void bits_write_bytes( struct bits_writer_t * writer, const void * data, int bytes )
{
    for ( int i = 0; i < bytes; i++ )
        bits_write( writer, ( (const uint8_t *) data )[i], 8 );
}

/* The bytes that were written, or -1 if something did not fit. */
static inline int bits_write_end( const struct bits_writer_t * writer )
{
    return writer->failed ? -1 : ( writer->at + 7 ) / 8;
}

/* ---- reading ---- */

/* `bytes` up to 2^28. */
static inline void bits_read_begin( struct bits_reader_t * reader, const uint8_t * data, int bytes )
{
    reader->data = data;
    reader->size = bytes * 8;
    reader->at = 0;
    reader->failed = bytes < 0;
}

/* 0 to 32 bits. 0 after a failure. */
static inline uint32_t bits_read( struct bits_reader_t * reader, int count )
{
    uint32_t value = 0;
    if ( reader->failed || count > reader->size - reader->at ) {
        reader->failed = 1;
        return 0;
    }
    for ( int i = 0; i < count; i++, reader->at++ )
        value |= (uint32_t) ( reader->data[reader->at >> 3] >> ( reader->at & 7 ) & 1 ) << i;
    return value;
}

/* From `lowest` to `highest`, always. */
static inline int32_t bits_read_range( struct bits_reader_t * reader, int32_t lowest, int32_t highest )
{
    uint32_t width = (uint32_t) highest - (uint32_t) lowest;
    uint32_t value = bits_read( reader, bits_needed( width ) );
    if ( value > width )
        reader->failed = 1;
    return reader->failed ? lowest : (int32_t) ( (int64_t) lowest + value );
}

/* What bits_write_difference wrote, within the range, always. */
static inline int32_t bits_read_difference( struct bits_reader_t * reader, int32_t base, int32_t lowest,
                                            int32_t highest )
{
    int64_t value = base;
    if ( bits_read( reader, 1 ) ) {
        if ( bits_read( reader, 1 ) )
            return bits_read_range( reader, lowest, highest );
        value += (int64_t) bits_read( reader, 5 ) - BITS_NEAR;
    }
    if ( value < lowest || value > highest )
        reader->failed = 1;
    return reader->failed ? lowest : (int32_t) value;
}

/* All of `bytes`, or zeros. */
static inline void bits_read_bytes( struct bits_reader_t * reader, void * data, int bytes )
{
    memset( data, 0, (size_t) bytes );
    if ( reader->failed || bytes > ( reader->size - reader->at ) / 8 ) {
        reader->failed = 1;
        return;
    }
    for ( int i = 0; i < bytes; i++ )
        ( (uint8_t *) data )[i] = (uint8_t) bits_read( reader, 8 );
}

/* 1 if nothing failed, and what is left is less than a byte and all zeros. */
static inline int bits_read_end( struct bits_reader_t * reader )
{
    int left = reader->size - reader->at;
    return !reader->failed && left < 8 && bits_read( reader, left ) == 0 && !reader->failed;
}

#endif
