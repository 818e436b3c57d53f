/*  Godot 3's values in C: what a script gave as arguments and options, checked, and what it gets back. The headers are
    the engine's own, from Debian's source package: see headers.sh. */

#ifndef GODOT3_VALUES_H
#define GODOT3_VALUES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The engine's headers are not clean at the warnings that this library is compiled with. */
#if defined( __GNUC__ )
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wundef"
#endif
#include <gdnative_api_struct.gen.h>
#if defined( __GNUC__ )
#pragma GCC diagnostic pop
#endif

static const godot_gdnative_core_api_struct * godot;

enum { VALUE_TEXT = 512 };

static void value_error( const char * function, const char * sentence )
{
    godot->godot_print_error( sentence, function, "netcode_godot.c", 0 );
}

/* ---- to the engine ---- */

static godot_variant value_nil( void )
{
    godot_variant value;
    godot->godot_variant_new_nil( &value );
    return value;
}

static godot_variant value_int( int64_t number )
{
    godot_variant value;
    godot->godot_variant_new_int( &value, number );
    return value;
}

static godot_variant value_real( double number )
{
    godot_variant value;
    godot->godot_variant_new_real( &value, number );
    return value;
}

static godot_variant value_bool( int yes )
{
    godot_variant value;
    godot->godot_variant_new_bool( &value, yes != 0 );
    return value;
}

static godot_variant value_text( const char * text )
{
    godot_variant value;
    godot_string string = godot->godot_string_chars_to_utf8( text );
    godot->godot_variant_new_string( &value, &string );
    godot->godot_string_destroy( &string );
    return value;
}

static godot_variant value_bytes( const uint8_t * bytes, int count )
{
    godot_variant value;
    godot_pool_byte_array array;
    godot->godot_pool_byte_array_new( &array );
    if ( count > 0 ) {
        godot->godot_pool_byte_array_resize( &array, count );
        godot_pool_byte_array_write_access * access = godot->godot_pool_byte_array_write( &array );
        memcpy( godot->godot_pool_byte_array_write_access_ptr( access ), bytes, (size_t) count );
        godot->godot_pool_byte_array_write_access_destroy( access );
    }
    godot->godot_variant_new_pool_byte_array( &value, &array );
    godot->godot_pool_byte_array_destroy( &array );
    return value;
}

/* Takes `value`, which the caller does not destroy. */
static void value_set( godot_dictionary * dictionary, const char * name, godot_variant value )
{
    godot_variant key = value_text( name );
    godot->godot_dictionary_set( dictionary, &key, &value );
    godot->godot_variant_destroy( &key );
    godot->godot_variant_destroy( &value );
}

static godot_variant value_dictionary( godot_dictionary * dictionary )
{
    godot_variant value;
    godot->godot_variant_new_dictionary( &value, dictionary );
    godot->godot_dictionary_destroy( dictionary );
    return value;
}

/* ---- from the engine ---- */

static int value_is( const godot_variant * value, godot_variant_type type )
{
    return godot->godot_variant_get_type( value ) == type;
}

/* Copies a string as UTF-8; 0 if it does not fit. */
static int value_copy_text( const godot_variant * value, char * text, size_t capacity )
{
    godot_string string = godot->godot_variant_as_string( value );
    godot_char_string chars = godot->godot_string_utf8( &string );
    const char * from = godot->godot_char_string_get_data( &chars );
    size_t bytes = strlen( from );
    int fits = bytes < capacity;
    text[0] = 0;
    if ( fits )
        memcpy( text, from, bytes + 1 );
    godot->godot_char_string_destroy( &chars );
    godot->godot_string_destroy( &string );
    return fits;
}

/* Copies a PoolByteArray of up to `most` bytes and returns how many it has, -1 if it is none or has more. */
static int value_copy_bytes( const godot_variant * value, uint8_t * bytes, int most )
{
    if ( !value_is( value, GODOT_VARIANT_TYPE_POOL_BYTE_ARRAY ) )
        return -1;
    godot_pool_byte_array array = godot->godot_variant_as_pool_byte_array( value );
    int count = godot->godot_pool_byte_array_size( &array );
    if ( count > 0 && count <= most ) {
        godot_pool_byte_array_read_access * access = godot->godot_pool_byte_array_read( &array );
        memcpy( bytes, godot->godot_pool_byte_array_read_access_ptr( access ), (size_t) count );
        godot->godot_pool_byte_array_read_access_destroy( access );
    }
    godot->godot_pool_byte_array_destroy( &array );
    return count <= most ? count : -1;
}

/* ---- options: a Dictionary ---- */

enum { OPTIONS_MOST = 16 };

struct options_t {
    godot_dictionary dictionary;
    int given; /* a Dictionary was given */
    int asked;
    const char * names[OPTIONS_MOST]; /* that were asked for: any other one is a mistake of the caller's */
    char error[VALUE_TEXT];
};

static void options_fail( struct options_t * options, const char * name, const char * what )
{
    if ( options->error[0] == 0 )
        snprintf( options->error, sizeof( options->error ), "the option \"%s\" %s", name, what );
}

/* `value` NULL: no options. */
static void options_open( struct options_t * options, const godot_variant * value )
{
    memset( options, 0, sizeof( *options ) );
    if ( value == NULL || value_is( value, GODOT_VARIANT_TYPE_NIL ) )
        return;
    if ( !value_is( value, GODOT_VARIANT_TYPE_DICTIONARY ) ) {
        snprintf( options->error, sizeof( options->error ), "the options are not a Dictionary" );
        return;
    }
    options->dictionary = godot->godot_variant_as_dictionary( value );
    options->given = 1;
}

/* 1 and the value, which the caller destroys, or 0. */
static int options_find( struct options_t * options, const char * name, godot_variant * value )
{
    if ( options->asked < OPTIONS_MOST )
        options->names[options->asked++] = name;
    if ( !options->given )
        return 0;
    godot_variant key = value_text( name );
    int found = godot->godot_dictionary_has( &options->dictionary, &key );
    if ( found )
        *value = godot->godot_dictionary_get( &options->dictionary, &key );
    godot->godot_variant_destroy( &key );
    return found;
}

static int64_t options_number( struct options_t * options, const char * name, int64_t standard, int64_t least,
                               int64_t most )
{
    godot_variant value;
    int64_t number = standard;
    if ( !options_find( options, name, &value ) )
        return standard;
    if ( value_is( &value, GODOT_VARIANT_TYPE_INT ) )
        number = godot->godot_variant_as_int( &value );
    else
        options_fail( options, name, "is not a whole number" );
    if ( number < least || number > most ) {
        char what[128];
        snprintf( what, sizeof( what ), "is not from %lld to %lld", (long long) least, (long long) most );
        options_fail( options, name, what );
        number = standard;
    }
    godot->godot_variant_destroy( &value );
    return number;
}

static int options_yes( struct options_t * options, const char * name, int standard )
{
    godot_variant value;
    int yes = standard;
    if ( !options_find( options, name, &value ) )
        return standard;
    if ( value_is( &value, GODOT_VARIANT_TYPE_BOOL ) )
        yes = godot->godot_variant_as_bool( &value );
    else
        options_fail( options, name, "is not true or false" );
    godot->godot_variant_destroy( &value );
    return yes;
}

/* 1 if it was given and is a text that fits. */
static int options_text( struct options_t * options, const char * name, char * text, size_t capacity )
{
    godot_variant value;
    int there = 0;
    text[0] = 0;
    if ( !options_find( options, name, &value ) )
        return 0;
    if ( !value_is( &value, GODOT_VARIANT_TYPE_STRING ) )
        options_fail( options, name, "is not a String" );
    else if ( !value_copy_text( &value, text, capacity ) )
        options_fail( options, name, "is too long" );
    else
        there = 1;
    godot->godot_variant_destroy( &value );
    return there;
}

/* The bytes that were given, at least `least` and at most `most` of them; 0 if there are none. */
static int options_bytes( struct options_t * options, const char * name, uint8_t * bytes, int least, int most )
{
    godot_variant value;
    if ( !options_find( options, name, &value ) )
        return 0;
    int count = value_copy_bytes( &value, bytes, most );
    if ( count < least ) {
        char what[128];
        snprintf( what, sizeof( what ), "is not a PoolByteArray of %d%s bytes", most, least < most ? " or fewer" : "" );
        options_fail( options, name, what );
        count = 0;
    }
    godot->godot_variant_destroy( &value );
    return count;
}

/* Texts in an Array, such as addresses: how many; `pointers` point into `texts`. */
static int options_texts( struct options_t * options, const char * name, char ( *texts )[VALUE_TEXT / 2],
                          const char ** pointers, int most )
{
    godot_variant value;
    int count = 0;
    if ( !options_find( options, name, &value ) )
        return 0;
    if ( !value_is( &value, GODOT_VARIANT_TYPE_ARRAY ) ) {
        options_fail( options, name, "is not an Array of Strings" );
        godot->godot_variant_destroy( &value );
        return 0;
    }
    godot_array array = godot->godot_variant_as_array( &value );
    int size = godot->godot_array_size( &array );
    if ( size > most )
        options_fail( options, name, "has too many entries" );
    for ( int i = 0; i < size && i < most; i++ ) {
        godot_variant entry = godot->godot_array_get( &array, i );
        if ( !value_is( &entry, GODOT_VARIANT_TYPE_STRING ) ||
             !value_copy_text( &entry, texts[i], sizeof( texts[i] ) ) )
            options_fail( options, name, "is not an Array of Strings that are addresses" );
        pointers[count++] = texts[i];
        godot->godot_variant_destroy( &entry );
    }
    godot->godot_array_destroy( &array );
    godot->godot_variant_destroy( &value );
    return count;
}

static int options_asked( const struct options_t * options, const char * name )
{
    for ( int i = 0; i < options->asked; i++ )
        if ( strcmp( options->names[i], name ) == 0 )
            return 1;
    return 0;
}

static void options_find_unknown( struct options_t * options )
{
    char name[VALUE_TEXT / 4];
    godot_array keys = godot->godot_dictionary_keys( &options->dictionary );
    for ( int i = 0; i < godot->godot_array_size( &keys ); i++ ) {
        godot_variant key = godot->godot_array_get( &keys, i );
        if ( !value_copy_text( &key, name, sizeof( name ) ) )
            snprintf( name, sizeof( name ), "(a long name)" );
        if ( !options_asked( options, name ) )
            options_fail( options, name, "is unknown here" );
        godot->godot_variant_destroy( &key );
    }
    godot->godot_array_destroy( &keys );
}

/* 1, or 0 with a sentence in `error`. */
static int options_close( struct options_t * options )
{
    if ( options->given ) {
        options_find_unknown( options );
        godot->godot_dictionary_destroy( &options->dictionary );
    }
    options->given = 0;
    return options->error[0] == 0;
}

#endif
