/*  Runs every file of the fuzzers' corpus through its target, twice, without a fuzzer: an input must pass all checks, and do the
    same both times. One program unit, any C compiler; needs libsodium and the C library.

        cc -std=c99 -O1 -g -I. tests/fuzz/replay.c -lsodium -lm -o fuzz_replay
        fuzz_replay tests/fuzz/corpus             every file in corpus/address, corpus/messages and so on
        fuzz_replay session crash-0123 ...        these files through one target: what a fuzzer found, once more

    A finding is printed with its file, and ends the program. */

#define FUZZ_REPLAY
#define NETCODE_MESSAGES

#include "address.c"
#include "messages.c"
#include "packet.c"
#include "session.c"
#include "token.c"

#include <dirent.h>

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
    fuzz_input_name = path;
    uint64_t first = replay_once( target, data, bytes );
    uint64_t second = replay_once( target, data, bytes );
    FUZZ_CHECK( first == second );
    fuzz_input_name = "";
    return 1;
}

/* Returns how many files were run, or -1. */
static int replay_folder( const struct replay_target_t * target, const char * folder )
{
    char path[4096];
    int count = 0;
    struct dirent * entry;
    DIR * directory;
    snprintf( path, sizeof( path ), "%s/%s", folder, target->name );
    directory = opendir( path );
    if ( !directory ) {
        printf( "%s can not be opened\n", path );
        return -1;
    }
    while ( ( entry = readdir( directory ) ) != NULL ) {
        if ( entry->d_name[0] == '.' )
            continue;
        snprintf( path, sizeof( path ), "%s/%s/%s", folder, target->name, entry->d_name );
        if ( !replay_file( target, path ) ) {
            closedir( directory );
            return -1;
        }
        count++;
    }
    closedir( directory );
    return count;
}

static int replay_all( const char * folder )
{
    int inputs = 0;
    for ( int i = 0; i < REPLAY_TARGETS; i++ ) {
        int count = replay_folder( &replay_targets[i], folder );
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
