/*  Godot 3's values in C: what options.h and methods.h need of them. godot4_values.h has the same for Godot 4. The
    headers are the engine's own, from Debian's source package: see headers.sh. */

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

typedef godot_variant value_t;

enum {
    VALUE_NIL = GODOT_VARIANT_TYPE_NIL,
    VALUE_BOOL = GODOT_VARIANT_TYPE_BOOL,
    VALUE_INT = GODOT_VARIANT_TYPE_INT,
    VALUE_STRING = GODOT_VARIANT_TYPE_STRING,
    VALUE_DICTIONARY = GODOT_VARIANT_TYPE_DICTIONARY,
    VALUE_ARRAY = GODOT_VARIANT_TYPE_ARRAY,
    VALUE_BYTES = GODOT_VARIANT_TYPE_POOL_BYTE_ARRAY,
    VALUE_TEXT = 512
};

#define VALUE_BYTES_NAME "PoolByteArray"

static const godot_gdnative_core_api_struct * godot;

static void value_error( const char * function, const char * sentence )
{
    godot->godot_print_error( sentence, function, "netcode_godot.c", 0 );
}

static void value_print( const char * text )
{
    godot_string string = godot->godot_string_chars_to_utf8( text );
    godot->godot_print( &string );
    godot->godot_string_destroy( &string );
}

static void value_destroy( value_t * value )
{
    godot->godot_variant_destroy( value );
}

/* ---- to the engine: the caller destroys such a value, or returns it ---- */

static value_t value_nil( void )
{
    value_t value;
    godot->godot_variant_new_nil( &value );
    return value;
}

static value_t value_int( int64_t number )
{
    value_t value;
    godot->godot_variant_new_int( &value, number );
    return value;
}

static value_t value_real( double number )
{
    value_t value;
    godot->godot_variant_new_real( &value, number );
    return value;
}

static value_t value_bool( int yes )
{
    value_t value;
    godot->godot_variant_new_bool( &value, yes != 0 );
    return value;
}

static value_t value_text( const char * text )
{
    value_t value;
    godot_string string = godot->godot_string_chars_to_utf8( text );
    godot->godot_variant_new_string( &value, &string );
    godot->godot_string_destroy( &string );
    return value;
}

static value_t value_bytes( const uint8_t * bytes, int count )
{
    value_t value;
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

static value_t value_array( void )
{
    value_t value;
    godot_array array;
    godot->godot_array_new( &array );
    godot->godot_variant_new_array( &value, &array );
    godot->godot_array_destroy( &array );
    return value;
}

/* Takes `entry`. */
static void value_append( value_t * to, value_t entry )
{
    godot_array array = godot->godot_variant_as_array( to ); /* the same array, and no copy */
    godot->godot_array_append( &array, &entry );
    godot->godot_array_destroy( &array );
    value_destroy( &entry );
}

static value_t value_dictionary( void )
{
    value_t value;
    godot_dictionary dictionary;
    godot->godot_dictionary_new( &dictionary );
    godot->godot_variant_new_dictionary( &value, &dictionary );
    godot->godot_dictionary_destroy( &dictionary );
    return value;
}

/* Takes `entry`. */
static void value_set( value_t * to, const char * name, value_t entry )
{
    value_t key = value_text( name );
    godot_dictionary dictionary = godot->godot_variant_as_dictionary( to );
    godot->godot_dictionary_set( &dictionary, &key, &entry );
    godot->godot_dictionary_destroy( &dictionary );
    value_destroy( &key );
    value_destroy( &entry );
}

/* ---- from the engine ---- */

static int value_is( const value_t * value, int kind )
{
    return (int) godot->godot_variant_get_type( value ) == kind;
}

static int64_t value_as_int( const value_t * value )
{
    return godot->godot_variant_as_int( value );
}

static int value_as_bool( const value_t * value )
{
    return godot->godot_variant_as_bool( value );
}

/* Copies it as UTF-8; 0 if it does not fit. */
static int value_copy_text( const value_t * value, char * text, size_t capacity )
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

/* Copies an array of up to `most` bytes and returns how many it has, -1 if it is none or has more. */
static int value_copy_bytes( const value_t * value, uint8_t * bytes, int most )
{
    if ( !value_is( value, VALUE_BYTES ) )
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

static int value_count( const value_t * value )
{
    godot_array array = godot->godot_variant_as_array( value );
    int count = godot->godot_array_size( &array );
    godot->godot_array_destroy( &array );
    return count;
}

static value_t value_at( const value_t * value, int index )
{
    godot_array array = godot->godot_variant_as_array( value );
    value_t entry = godot->godot_array_get( &array, index );
    godot->godot_array_destroy( &array );
    return entry;
}

/* 1 and the entry of this name in a Dictionary, or 0. */
static int value_find( const value_t * value, const char * name, value_t * entry )
{
    value_t key = value_text( name );
    godot_dictionary dictionary = godot->godot_variant_as_dictionary( value );
    int found = godot->godot_dictionary_has( &dictionary, &key );
    if ( found )
        *entry = godot->godot_dictionary_get( &dictionary, &key );
    godot->godot_dictionary_destroy( &dictionary );
    value_destroy( &key );
    return found;
}

/* An Array of a Dictionary's keys. */
static value_t value_keys( const value_t * value )
{
    value_t result;
    godot_dictionary dictionary = godot->godot_variant_as_dictionary( value );
    godot_array keys = godot->godot_dictionary_keys( &dictionary );
    godot->godot_variant_new_array( &result, &keys );
    godot->godot_array_destroy( &keys );
    godot->godot_dictionary_destroy( &dictionary );
    return result;
}

#endif
