/*  Proofs of bytes: every reader and writer of bytes, in every state, on blocks of every size up to MOST. One more byte
    read or written than the block has is out of bounds. Run: tests/prove/run.sh bytes */

#include "prove.h"

enum { MOST = NETCODE_CONNECT_TOKEN_BYTES };

/* Any reader that nc_reader_make and the functions of this room can leave behind. */
static nc_reader_t any_reader( void )
{
    size_t end = any_size_up_to( MOST );
    nc_reader_t reader = nc_reader_make( any_bytes( end ), end );
    reader.at = any_size_up_to( end );
    reader.failed = any_int() != 0;
    return reader;
}

static nc_writer_t any_writer( void )
{
    size_t end = any_size_up_to( MOST );
    nc_writer_t writer = nc_writer_make( any_bytes( end ), end );
    writer.at = any_size_up_to( end );
    writer.failed = any_int() != 0;
    return writer;
}

/* What every read does to a reader: all or nothing, and a reader that failed stays failed and where it is. */
static void claim_read( const nc_reader_t * before, const nc_reader_t * after, size_t bytes )
{
    int fits = !before->failed && bytes <= before->end && before->at <= before->end - bytes;
    CLAIM( after->data == before->data && after->end == before->end && after->at <= after->end );
    CLAIM( !after->failed == fits );
    CLAIM( after->at == ( fits ? before->at + bytes : before->at ) );
}

void prove_reader_number( void )
{
    nc_reader_t reader = any_reader(), before = reader;
    size_t bytes = any_size_up_to( 8 ), nth = any_size_up_to( 7 );
    uint64_t value = nc_reader_number( &reader, bytes );
    claim_read( &before, &reader, bytes );
    CLAIM( !reader.failed || value == 0 );
    if ( !reader.failed )
        CLAIM( ( value >> 8 * nth & 255 ) == ( nth < bytes ? before.data[before.at + nth] : 0 ) );
}

void prove_reader_bytes( void )
{
    nc_reader_t reader = any_reader(), before = reader;
    size_t bytes = any_size_up_to( MOST ), nth = any_size();
    uint8_t * out = any_bytes( bytes );
    nc_reader_bytes( &reader, out, bytes );
    claim_read( &before, &reader, bytes );
    if ( nth < bytes )
        CLAIM( out[nth] == ( reader.failed ? 0 : before.data[before.at + nth] ) );
}

/* One byte of the block, whichever, shows what a writer changed: what it wrote, and nothing else. */
static void claim_written( const nc_writer_t * before, const nc_writer_t * after, size_t bytes )
{
    int fits = !before->failed && bytes <= before->end && before->at <= before->end - bytes;
    CLAIM( after->data == before->data && after->end == before->end && after->at <= after->end );
    CLAIM( !after->failed == fits );
    CLAIM( after->at == ( fits ? before->at + bytes : before->at ) );
}

static int is_between( size_t place, size_t from, size_t to )
{
    return place >= from && place < to;
}

void prove_writer_number( void )
{
    nc_writer_t writer = any_writer(), before = writer;
    size_t bytes = any_size_up_to( 8 ), place = any_size();
    uint64_t value = any_u64();
    uint8_t old = place < writer.end ? writer.data[place] : 0;
    nc_writer_number( &writer, value, bytes );
    claim_written( &before, &writer, bytes );
    if ( is_between( place, before.at, writer.at ) )
        CLAIM( writer.data[place] == ( value >> 8 * ( place - before.at ) & 255 ) );
    else if ( place < writer.end )
        CLAIM( writer.data[place] == old );
}

void prove_writer_bytes( void )
{
    nc_writer_t writer = any_writer(), before = writer;
    size_t bytes = any_size_up_to( MOST ), place = any_size();
    const uint8_t * data = any_bytes( bytes );
    uint8_t old = place < writer.end ? writer.data[place] : 0;
    nc_writer_bytes( &writer, data, bytes );
    claim_written( &before, &writer, bytes );
    if ( is_between( place, before.at, writer.at ) )
        CLAIM( writer.data[place] == data[place - before.at] );
    else if ( place < writer.end )
        CLAIM( writer.data[place] == old );
}

void prove_writer_zeros( void )
{
    nc_writer_t writer = any_writer(), before = writer;
    size_t place = any_size();
    uint8_t old = place < writer.end ? writer.data[place] : 0;
    nc_writer_zeros( &writer );
    CLAIM( writer.at == before.end && writer.failed == before.failed );
    if ( place < writer.end )
        CLAIM( writer.data[place] == ( place < before.at ? old : 0 ) );
}

/* What was written is read back, one number behind another, in a block of any size; what does not fit fails both. */
void prove_bytes_round_trip( void )
{
    size_t size = any_size_up_to( MOST ), at = any_size_up_to( size ), first = any_size_up_to( 8 ),
           second = any_size_up_to( 8 );
    uint64_t a = any_u64(), b = any_u64();
    GIVEN( first == 8 || a >> 8 * first == 0 );
    GIVEN( second == 8 || b >> 8 * second == 0 );
    nc_writer_t writer = nc_writer_make( any_bytes( size ), size );
    writer.at = at;
    nc_writer_number( &writer, a, first );
    nc_writer_number( &writer, b, second );
    nc_reader_t reader = nc_reader_make( writer.data, size );
    reader.at = at;
    uint64_t c = nc_reader_number( &reader, first ), d = nc_reader_number( &reader, second );
    CLAIM( reader.failed == writer.failed && reader.at == writer.at );
    CLAIM( reader.failed || ( a == c && b == d ) );
}

/* The forms that do without a reader: they touch exactly their bytes, and agree with it. */
void prove_load_and_store( void )
{
    uint64_t value = any_u64();
    uint8_t * place = any_bytes( 8 );
    nc_store_u64( place, value );
    nc_reader_t reader = nc_reader_make( place, 8 );
    CLAIM( nc_load_u64( place ) == value && nc_reader_number( &reader, 8 ) == value );
    uint8_t * four = any_bytes( 4 );
    reader = nc_reader_make( four, 4 );
    CLAIM( nc_load_u32( four ) == nc_reader_number( &reader, 4 ) );
}
