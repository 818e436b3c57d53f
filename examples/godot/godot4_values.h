/*  Godot 4's values in C, for options.h and methods.h, as godot3_values.h has Godot 3's. The header is made by the
    engine's own generator from Debian's source package: see headers4.sh. Values are reached through the engine's calls
    for variants, so that no hash of a method's signature is needed. */

#ifndef GODOT4_VALUES_H
#define GODOT4_VALUES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined( __GNUC__ )
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
#include <gdextension_interface.h>
#if defined( __GNUC__ )
#pragma GCC diagnostic pop
#endif

/* A Variant of a build with single precision, as the engine's own releases are. */
typedef struct {
    uint64_t opaque[3];
} value_t;

/* A String, and a StringName: a pointer each. Equal names are the same pointer. */
typedef struct {
    void * opaque;
} value_string_t;

enum {
    VALUE_NIL = GDEXTENSION_VARIANT_TYPE_NIL,
    VALUE_BOOL = GDEXTENSION_VARIANT_TYPE_BOOL,
    VALUE_INT = GDEXTENSION_VARIANT_TYPE_INT,
    VALUE_STRING = GDEXTENSION_VARIANT_TYPE_STRING,
    VALUE_DICTIONARY = GDEXTENSION_VARIANT_TYPE_DICTIONARY,
    VALUE_ARRAY = GDEXTENSION_VARIANT_TYPE_ARRAY,
    VALUE_BYTES = GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY,
    VALUE_TEXT = 512
};

#define VALUE_BYTES_NAME "PackedByteArray"

/* What is used of the engine: its name there, and the type of the function. */
#define GODOT_FUNCTIONS( X )                                                                              \
    X( print_error, GDExtensionInterfacePrintError )                                                      \
    X( variant_new_copy, GDExtensionInterfaceVariantNewCopy )                                             \
    X( variant_new_nil, GDExtensionInterfaceVariantNewNil )                                               \
    X( variant_destroy, GDExtensionInterfaceVariantDestroy )                                              \
    X( variant_call, GDExtensionInterfaceVariantCall )                                                    \
    X( variant_construct, GDExtensionInterfaceVariantConstruct )                                          \
    X( variant_get_type, GDExtensionInterfaceVariantGetType )                                             \
    X( variant_has_key, GDExtensionInterfaceVariantHasKey )                                               \
    X( variant_get_keyed, GDExtensionInterfaceVariantGetKeyed )                                           \
    X( variant_set_keyed, GDExtensionInterfaceVariantSetKeyed )                                           \
    X( variant_get_indexed, GDExtensionInterfaceVariantGetIndexed )                                       \
    X( get_variant_from_type_constructor, GDExtensionInterfaceGetVariantFromTypeConstructor )             \
    X( get_variant_to_type_constructor, GDExtensionInterfaceGetVariantToTypeConstructor )                 \
    X( variant_get_ptr_destructor, GDExtensionInterfaceVariantGetPtrDestructor )                          \
    X( variant_get_ptr_internal_getter, GDExtensionInterfaceVariantGetPtrInternalGetter )                 \
    X( string_new_with_utf8_chars, GDExtensionInterfaceStringNewWithUtf8Chars )                           \
    X( string_to_utf8_chars, GDExtensionInterfaceStringToUtf8Chars )                                      \
    X( string_name_new_with_latin1_chars, GDExtensionInterfaceStringNameNewWithLatin1Chars )              \
    X( packed_byte_array_operator_index, GDExtensionInterfacePackedByteArrayOperatorIndex )               \
    X( packed_byte_array_operator_index_const, GDExtensionInterfacePackedByteArrayOperatorIndexConst )    \
    X( object_set_instance, GDExtensionInterfaceObjectSetInstance )                                       \
    X( classdb_construct_object2, GDExtensionInterfaceClassdbConstructObject2 )                           \
    X( classdb_register_extension_class4, GDExtensionInterfaceClassdbRegisterExtensionClass4 )            \
    X( classdb_register_extension_class_method, GDExtensionInterfaceClassdbRegisterExtensionClassMethod ) \
    X( classdb_unregister_extension_class, GDExtensionInterfaceClassdbUnregisterExtensionClass )

#define GODOT_FUNCTION( name, type ) type name;
static struct {
    GODOT_FUNCTIONS( GODOT_FUNCTION )
    GDExtensionVariantFromTypeConstructorFunc from_bool, from_int, from_float, from_string, from_object;
    GDExtensionTypeFromVariantConstructorFunc to_bool, to_int, to_string;
    GDExtensionPtrDestructor destroy_string, destroy_string_name;
    GDExtensionVariantGetInternalPtrFunc bytes_of;
} godot;
#undef GODOT_FUNCTION

/* 1, or 0 if this engine lacks one of them. */
static int value_load( GDExtensionInterfaceGetProcAddress get )
{
    int there = 1;
#define GODOT_FUNCTION( name, type )                       \
    godot.name = (type) (void ( * )( void )) get( #name ); \
    there &= godot.name != NULL;
    GODOT_FUNCTIONS( GODOT_FUNCTION )
#undef GODOT_FUNCTION
    if ( !there )
        return 0;
    godot.from_bool = godot.get_variant_from_type_constructor( GDEXTENSION_VARIANT_TYPE_BOOL );
    godot.from_int = godot.get_variant_from_type_constructor( GDEXTENSION_VARIANT_TYPE_INT );
    godot.from_float = godot.get_variant_from_type_constructor( GDEXTENSION_VARIANT_TYPE_FLOAT );
    godot.from_string = godot.get_variant_from_type_constructor( GDEXTENSION_VARIANT_TYPE_STRING );
    godot.from_object = godot.get_variant_from_type_constructor( GDEXTENSION_VARIANT_TYPE_OBJECT );
    godot.to_bool = godot.get_variant_to_type_constructor( GDEXTENSION_VARIANT_TYPE_BOOL );
    godot.to_int = godot.get_variant_to_type_constructor( GDEXTENSION_VARIANT_TYPE_INT );
    godot.to_string = godot.get_variant_to_type_constructor( GDEXTENSION_VARIANT_TYPE_STRING );
    godot.destroy_string = godot.variant_get_ptr_destructor( GDEXTENSION_VARIANT_TYPE_STRING );
    godot.destroy_string_name = godot.variant_get_ptr_destructor( GDEXTENSION_VARIANT_TYPE_STRING_NAME );
    godot.bytes_of = godot.variant_get_ptr_internal_getter( GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY );
    return 1;
}

static void value_error( const char * function, const char * sentence )
{
    godot.print_error( sentence, function, "netcode_godot4.c", 0, 0 );
}

static void value_print( const char * text )
{
    printf( "%s\n", text );
    fflush( stdout );
}

static void value_destroy( value_t * value )
{
    godot.variant_destroy( value );
}

static value_string_t value_name( const char * text )
{
    value_string_t name = { NULL };
    godot.string_name_new_with_latin1_chars( &name, text, 0 );
    return name;
}

/* ---- to the engine: the caller destroys such a value, or returns it ---- */

static value_t value_nil( void )
{
    value_t value;
    godot.variant_new_nil( &value );
    return value;
}

static value_t value_int( int64_t number )
{
    value_t value;
    godot.from_int( &value, &number );
    return value;
}

static value_t value_real( double number )
{
    value_t value;
    godot.from_float( &value, &number );
    return value;
}

static value_t value_bool( int yes )
{
    value_t value;
    GDExtensionBool boolean = yes != 0;
    godot.from_bool( &value, &boolean );
    return value;
}

static value_t value_text( const char * text )
{
    value_t value;
    value_string_t string = { NULL };
    godot.string_new_with_utf8_chars( &string, text );
    godot.from_string( &value, &string );
    godot.destroy_string( &string );
    return value;
}

/* Calls a method of a value with up to two arguments. They stay the caller's, and so does what is returned. */
static value_t value_call( value_t * value, const char * method, const value_t * first, const value_t * second )
{
    value_t result;
    GDExtensionCallError error;
    value_string_t name = value_name( method );
    GDExtensionConstVariantPtr arguments[2] = { first, second };
    godot.variant_call( value, &name, arguments, first == NULL ? 0 : second == NULL ? 1 : 2, &result, &error );
    godot.destroy_string_name( &name );
    return result;
}

static value_t value_construct( GDExtensionVariantType type )
{
    value_t value;
    GDExtensionCallError error;
    godot.variant_construct( type, &value, NULL, 0, &error );
    return value;
}

static value_t value_bytes( const uint8_t * bytes, int count )
{
    value_t value = value_construct( GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY );
    if ( count > 0 ) {
        value_t size = value_int( count );
        value_t result = value_call( &value, "resize", &size, NULL );
        memcpy( godot.packed_byte_array_operator_index( godot.bytes_of( &value ), 0 ), bytes, (size_t) count );
        value_destroy( &result );
        value_destroy( &size );
    }
    return value;
}

static value_t value_array( void )
{
    return value_construct( GDEXTENSION_VARIANT_TYPE_ARRAY );
}

/* Takes `entry`. */
static void value_append( value_t * to, value_t entry )
{
    value_t result = value_call( to, "append", &entry, NULL );
    value_destroy( &result );
    value_destroy( &entry );
}

static value_t value_dictionary( void )
{
    return value_construct( GDEXTENSION_VARIANT_TYPE_DICTIONARY );
}

/* Takes `entry`. */
static void value_set( value_t * to, const char * name, value_t entry )
{
    GDExtensionBool valid;
    value_t key = value_text( name );
    godot.variant_set_keyed( to, &key, &entry, &valid );
    value_destroy( &key );
    value_destroy( &entry );
}

/* ---- from the engine ---- */

static int value_is( const value_t * value, int kind )
{
    return (int) godot.variant_get_type( value ) == kind;
}

/* The engine's calls that only read take a pointer that is not const. */
static value_t * value_mutable( const value_t * value )
{
    return (value_t *) (uintptr_t) value;
}

static int64_t value_as_int( const value_t * value )
{
    int64_t number = 0;
    godot.to_int( &number, value_mutable( value ) );
    return number;
}

static int value_as_bool( const value_t * value )
{
    GDExtensionBool yes = 0;
    godot.to_bool( &yes, value_mutable( value ) );
    return yes;
}

/* Copies it as UTF-8; 0 if it does not fit. */
static int value_copy_text( const value_t * value, char * text, size_t capacity )
{
    value_string_t string = { NULL };
    godot.to_string( &string, value_mutable( value ) );
    GDExtensionInt bytes = godot.string_to_utf8_chars( &string, NULL, 0 );
    int fits = bytes >= 0 && (size_t) bytes < capacity;
    text[0] = 0;
    if ( fits ) {
        godot.string_to_utf8_chars( &string, text, bytes );
        text[bytes] = 0;
    }
    godot.destroy_string( &string );
    return fits;
}

static int value_count( const value_t * value )
{
    value_t size = value_call( value_mutable( value ), "size", NULL, NULL );
    int64_t count = value_as_int( &size );
    value_destroy( &size );
    return count > INT32_MAX ? INT32_MAX : (int) count;
}

/* Copies an array of up to `most` bytes and returns how many it has, -1 if it is none or has more. */
static int value_copy_bytes( const value_t * value, uint8_t * bytes, int most )
{
    if ( !value_is( value, VALUE_BYTES ) )
        return -1;
    int count = value_count( value );
    if ( count > most )
        return -1;
    if ( count > 0 )
        memcpy( bytes, godot.packed_byte_array_operator_index_const( godot.bytes_of( value_mutable( value ) ), 0 ),
                (size_t) count );
    return count;
}

static value_t value_at( const value_t * value, int index )
{
    value_t entry;
    GDExtensionBool valid, outside;
    godot.variant_get_indexed( value, index, &entry, &valid, &outside );
    return entry;
}

/* 1 and the entry of this name in a Dictionary, or 0. */
static int value_find( const value_t * value, const char * name, value_t * entry )
{
    GDExtensionBool valid;
    value_t key = value_text( name );
    int found = godot.variant_has_key( value, &key, &valid );
    if ( found )
        godot.variant_get_keyed( value, &key, entry, &valid );
    value_destroy( &key );
    return found;
}

/* An Array of a Dictionary's keys. */
static value_t value_keys( const value_t * value )
{
    return value_call( value_mutable( value ), "keys", NULL, NULL );
}

#endif
