/*  Files that hold a secret: private keys and credentials. The programs in this folder and below it read them here, so
    that none is more careless than another: others than the owner can not use the file, what went through memory on the
    way is wiped, and half of a key is no key.

        uint8_t key[SECRET_KEY_BYTES];
        if ( !secret_read_key( "server", "game.key", key ) )   // else a line on standard error has said why
            return 1;

    Needs libsodium and the C library. On Windows, who may open a file is not looked at. */

#ifndef EXAMPLES_SECRET_FILE_H
#define EXAMPLES_SECRET_FILE_H

#include <errno.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef _WIN32
#include <sys/stat.h>
#endif

#define SECRET_KEY_BYTES 32
#define SECRET_KEY_FILE_BYTES 256 /* more than any way to write a key takes */

/* NULL, or why this file is not to be read. */
static inline const char * secret_refuse( FILE * file )
{
#ifdef _WIN32
    (void) file;
#else
    struct stat status;
    if ( fstat( fileno( file ), &status ) != 0 || S_ISDIR( status.st_mode ) )
        return "it is no file";
    if ( status.st_mode & ( S_IRWXG | S_IRWXO ) )
        return "others than its owner can use it: chmod 600";
#endif
    return NULL;
}

/* NULL, and a line on standard error that begins with the program's name, when it can not or must not be opened. */
static inline FILE * secret_open( const char * program, const char * path )
{
    FILE * file = fopen( path, "rb" );
    const char * why = file ? secret_refuse( file ) : NULL;
    if ( !file )
        fprintf( stderr, "%s: the file %s can not be opened: %s\n", program, path, strerror( errno ) );
    if ( why ) {
        fprintf( stderr, "%s: the file %s is refused, because %s\n", program, path, why );
        fclose( file );
        return NULL;
    }
    if ( file )
        setvbuf( file, NULL, _IONBF, 0 ); /* no copy of the secret in a buffer of the C library */
    return file;
}

/* How many bytes of it there are, up to `capacity`; -1, and a line on standard error, when it can not be read. */
static inline int secret_read( const char * program, const char * path, char * data, int capacity )
{
    FILE * file = secret_open( program, path );
    if ( !file )
        return -1;
    int bytes = (int) fread( data, 1, (size_t) capacity, file );
    if ( ferror( file ) ) {
        fprintf( stderr, "%s: the file %s can not be read: %s\n", program, path, strerror( errno ) );
        sodium_memzero( data, (size_t) capacity );
        bytes = -1;
    }
    fclose( file );
    return bytes;
}

/*  A credential, ended by a zero: one word of visible ASCII, as it stands in a header. `capacity` counts two characters
    more. 0, and a line on standard error, when there is none. */
static inline int secret_read_credential( const char * program, const char * path, char * text, int capacity )
{
    int found = secret_read( program, path, text, capacity );
    int bytes = found;
    while ( bytes > 0 && strchr( " \t\r\n", text[bytes - 1] ) )
        bytes--;
    int good = bytes > 0 && found < capacity;
    for ( int i = 0; i < bytes; i++ )
        good = good && text[i] >= '!' && text[i] <= '~';
    if ( good ) {
        text[bytes] = '\0';
        return 1;
    }
    sodium_memzero( text, (size_t) capacity );
    if ( found >= 0 )
        fprintf( stderr, "%s: the file %s holds no credential: one word of visible ASCII, up to %d characters\n",
                 program, path, capacity - 2 );
    return 0;
}

/* Hex or base64. 0 when it is neither. */
static inline int secret_parse_key( const char * text, size_t bytes, uint8_t key[SECRET_KEY_BYTES] )
{
    size_t key_bytes = 0;
    const char * end = NULL;
    while ( bytes && strchr( " \t\r\n", text[bytes - 1] ) )
        bytes--;
    if ( sodium_hex2bin( key, SECRET_KEY_BYTES, text, bytes, NULL, &key_bytes, &end ) == 0 &&
         key_bytes == SECRET_KEY_BYTES && end == text + bytes )
        return 1;
    return sodium_base642bin( key, SECRET_KEY_BYTES, text, bytes, NULL, &key_bytes, &end,
                              sodium_base64_VARIANT_ORIGINAL ) == 0 &&
           key_bytes == SECRET_KEY_BYTES && end == text + bytes;
}

/*  A file that was read while it was written may hold 32 letters of a longer text. Taken for a key, they would be half
    of one. Of random keys, one in 10^13 looks so. */
static inline int secret_is_text( const char * data, size_t bytes )
{
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( ( data[i] < ' ' || data[i] > '~' ) && data[i] != '\t' && data[i] != '\r' && data[i] != '\n' )
            return 0;
    }
    return 1;
}

/* Hex, base64, or the 32 bytes themselves. 0, and a line on standard error, when there is none. */
static inline int secret_read_key( const char * program, const char * path, uint8_t key[SECRET_KEY_BYTES] )
{
    char data[SECRET_KEY_FILE_BYTES];
    int bytes = secret_read( program, path, data, SECRET_KEY_FILE_BYTES );
    int good = 0;
    if ( bytes == SECRET_KEY_BYTES && !secret_is_text( data, SECRET_KEY_BYTES ) ) {
        memcpy( key, data, SECRET_KEY_BYTES );
        good = 1;
    } else if ( bytes > 0 && bytes < SECRET_KEY_FILE_BYTES ) {
        good = secret_parse_key( data, (size_t) bytes, key );
    }
    sodium_memzero( data, sizeof( data ) );
    if ( !good )
        sodium_memzero( key, SECRET_KEY_BYTES );
    if ( bytes >= 0 && !good )
        fprintf( stderr, "%s: the file %s holds no key: 32 random bytes, or the same in hex or base64\n", program,
                 path );
    return good;
}

#endif
