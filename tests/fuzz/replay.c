/*  Runs every input of the fuzzers' corpus through its target, twice, without a fuzzer: an input must pass all checks, and do the
    same both times. One program unit, any C compiler; needs libsodium and the C library.

        cc -std=c99 -O1 -g -I. tests/fuzz/replay.c -lsodium -lm -o fuzz_replay
        fuzz_replay tests/fuzz/corpus             every line of corpus/address.txt, corpus/messages.txt and so on
        fuzz_replay session crash-0123 ...        these files through one target: what a fuzzer found, once more

    A finding is printed with its file and line, and ends the program. */

#define FUZZ_REPLAY
#define NETCODE_MESSAGES

#include "address.c"
#include "messages.c"
#include "packet.c"
#include "session.c"
#include "token.c"

enum { REPLAY_LARGEST = 1 << 16 };

struct replay_target_t {
    const char * name;
    void ( *run )( struct fuzz_input_t * input );
};

static const struct replay_target_t replay_targets[] = {
    { "address", fuzz_address }, { "messages", fuzz_messages }, { "packet", fuzz_packet },
    { "session", fuzz_session }, { "token", fuzz_token },
};
enum { REPLAY_TARGETS = sizeof( replay_targets ) / sizeof( replay_targets[0] ) };

static uint64_t replay_once( const struct replay_target_t * target, const uint8_t * data, size_t bytes )
{
    struct fuzz_input_t input = { data, 0, bytes };
    fuzz_begin();
    target->run( &input );
    return fuzz_trace;
}

static void replay_twice( const struct replay_target_t * target, const uint8_t * data, size_t bytes, const char * name )
{
    fuzz_input_name = name;
    uint64_t first = replay_once( target, data, bytes );
    uint64_t second = replay_once( target, data, bytes );
    FUZZ_CHECK( first == second );
    fuzz_input_name = "";
}

/* Returns 1, or 0 where the file can not be read. */
static int replay_file( const struct replay_target_t * target, const char * path )
{
    static uint8_t data[REPLAY_LARGEST];
    FILE * file = fopen( path, "rb" );
    if ( !file ) {
        printf( "%s can not be read\n", path );
        return 0;
    }
    size_t bytes = fread( data, 1, sizeof( data ), file );
    fclose( file );
    replay_twice( target, data, bytes, path );
    return 1;
}

/* Returns how many bytes the line stands for, or -1 where it is no line of pairs of hexadecimal digits. */
static int replay_line( const char * line, uint8_t * data )
{
    static const char digits[] = "0123456789abcdef";
    int count = 0;
    for ( ; line[0] != '\n'; line += 2 ) {
        const char * high = line[0] ? strchr( digits, line[0] ) : NULL;
        const char * low = high && line[1] ? strchr( digits, line[1] ) : NULL;
        if ( !low )
            return -1;
        data[count++] = (uint8_t) ( ( high - digits ) << 4 | ( low - digits ) );
    }
    return count;
}

/* Returns how many inputs were run, or -1. */
static int replay_archive( const struct replay_target_t * target, const char * folder )
{
    static char line[2 * REPLAY_LARGEST + 2];
    static uint8_t data[REPLAY_LARGEST];
    char path[4096], name[4200];
    int count = 0;
    snprintf( path, sizeof( path ), "%s/%s.txt", folder, target->name );
    FILE * file = fopen( path, "r" );
    if ( !file ) {
        printf( "%s can not be opened\n", path );
        return -1;
    }
    while ( fgets( line, sizeof( line ), file ) ) {
        int bytes = replay_line( line, data );
        snprintf( name, sizeof( name ), "%s:%d", path, ++count );
        if ( bytes < 0 ) {
            printf( "%s is no input in hexadecimal\n", name );
            fclose( file );
            return -1;
        }
        replay_twice( target, data, (size_t) bytes, name );
    }
    fclose( file );
    return count;
}

static int replay_all( const char * folder )
{
    int inputs = 0;
    for ( int i = 0; i < REPLAY_TARGETS; i++ ) {
        int count = replay_archive( &replay_targets[i], folder );
        if ( count <= 0 ) {
            printf( "%s: no corpus for %s\n", folder, replay_targets[i].name );
            return 1;
        }
        inputs += count;
    }
    printf( "%d inputs, 0 findings\n", inputs );
    return 0;
}

int main( int count, char ** arguments )
{
    if ( count == 2 )
        return replay_all( arguments[1] );
    for ( int i = 0; i < REPLAY_TARGETS && count > 2; i++ ) {
        if ( strcmp( arguments[1], replay_targets[i].name ) != 0 )
            continue;
        for ( int k = 2; k < count; k++ )
            if ( !replay_file( &replay_targets[i], arguments[k] ) )
                return 1;
        printf( "%d inputs, 0 findings\n", count - 2 );
        return 0;
    }
    printf( "usage: %s CORPUS, or: %s TARGET FILE ...\n", arguments[0], arguments[0] );
    return 2;
}
