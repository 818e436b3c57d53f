/*  Options of a method: a Dictionary, of which each entry is checked, and in which every name has to be one that was asked
    for. It knows the engine's values by godot3_values.h or godot4_values.h, which stands above it. */

#ifndef OPTIONS_H
#define OPTIONS_H

enum { OPTIONS_MOST = 16, OPTIONS_ADDRESS = VALUE_TEXT / 2 };

struct options_t {
    const value_t * dictionary; /* NULL: none was given */
    int asked;
    const char * names[OPTIONS_MOST]; /* that were asked for: any other one is a mistake of the caller's */
    char error[VALUE_TEXT];
};

static void options_fail( struct options_t * options, const char * name, const char * what )
{
    if ( options->error[0] == 0 )
        snprintf( options->error, sizeof( options->error ), "the option \"%s\" %s", name, what );
}

/* `value` NULL: no options. It has to stay until options_close. */
static void options_open( struct options_t * options, const value_t * value )
{
    memset( options, 0, sizeof( *options ) );
    if ( value == NULL || value_is( value, VALUE_NIL ) )
        return;
    if ( value_is( value, VALUE_DICTIONARY ) )
        options->dictionary = value;
    else
        snprintf( options->error, sizeof( options->error ), "the options are not a Dictionary" );
}

/* 1 and the value, which the caller destroys, or 0. */
static int options_find( struct options_t * options, const char * name, value_t * value )
{
    if ( options->asked < OPTIONS_MOST )
        options->names[options->asked++] = name;
    return options->dictionary != NULL && value_find( options->dictionary, name, value );
}

static int64_t options_number( struct options_t * options, const char * name, int64_t standard, int64_t least,
                               int64_t most )
{
    value_t value;
    int64_t number = standard;
    if ( !options_find( options, name, &value ) )
        return standard;
    if ( value_is( &value, VALUE_INT ) )
        number = value_as_int( &value );
    else
        options_fail( options, name, "is not a whole number" );
    if ( number < least || number > most ) {
        char what[128];
        snprintf( what, sizeof( what ), "is not from %lld to %lld", (long long) least, (long long) most );
        options_fail( options, name, what );
        number = standard;
    }
    value_destroy( &value );
    return number;
}

static int options_yes( struct options_t * options, const char * name, int standard )
{
    value_t value;
    int yes = standard;
    if ( !options_find( options, name, &value ) )
        return standard;
    if ( value_is( &value, VALUE_BOOL ) )
        yes = value_as_bool( &value );
    else
        options_fail( options, name, "is not true or false" );
    value_destroy( &value );
    return yes;
}

/* 1 if it was given and is a text that fits. */
static int options_text( struct options_t * options, const char * name, char * text, size_t capacity )
{
    value_t value;
    int there = 0;
    text[0] = 0;
    if ( !options_find( options, name, &value ) )
        return 0;
    if ( !value_is( &value, VALUE_STRING ) )
        options_fail( options, name, "is not a String" );
    else if ( !value_copy_text( &value, text, capacity ) )
        options_fail( options, name, "is too long" );
    else
        there = 1;
    value_destroy( &value );
    return there;
}

/* The bytes that were given, at least `least` and at most `most` of them; 0 if there are none. */
static int options_bytes( struct options_t * options, const char * name, uint8_t * bytes, int least, int most )
{
    value_t value;
    if ( !options_find( options, name, &value ) )
        return 0;
    int count = value_copy_bytes( &value, bytes, most );
    if ( count < least ) {
        char what[128];
        snprintf( what, sizeof( what ), "is not a " VALUE_BYTES_NAME " of %d%s bytes", most,
                  least < most ? " or fewer" : "" );
        options_fail( options, name, what );
        count = 0;
    }
    value_destroy( &value );
    return count;
}

/* Addresses in an Array: how many; `pointers` point into `texts`. */
static int options_addresses( struct options_t * options, const char * name, char ( *texts )[OPTIONS_ADDRESS],
                              const char ** pointers, int most )
{
    value_t value;
    int count = 0;
    if ( !options_find( options, name, &value ) )
        return 0;
    int size = value_is( &value, VALUE_ARRAY ) ? value_count( &value ) : -1;
    if ( size < 0 )
        options_fail( options, name, "is not an Array of Strings" );
    if ( size > most )
        options_fail( options, name, "has too many entries" );
    for ( int i = 0; i < size && i < most; i++ ) {
        value_t entry = value_at( &value, i );
        texts[i][0] = 0;
        if ( !value_is( &entry, VALUE_STRING ) || !value_copy_text( &entry, texts[i], sizeof( texts[i] ) ) )
            options_fail( options, name, "is not an Array of Strings that are addresses" );
        pointers[count++] = texts[i];
        value_destroy( &entry );
    }
    value_destroy( &value );
    return count;
}

static int options_asked( const struct options_t * options, const char * name )
{
    for ( int i = 0; i < options->asked; i++ )
        if ( strcmp( options->names[i], name ) == 0 )
            return 1;
    return 0;
}

/* 1, or 0 with a sentence in `error`. */
static int options_close( struct options_t * options )
{
    char name[VALUE_TEXT / 4];
    if ( options->dictionary == NULL )
        return options->error[0] == 0;
    value_t keys = value_keys( options->dictionary );
    for ( int i = 0; i < value_count( &keys ); i++ ) {
        value_t key = value_at( &keys, i );
        if ( !value_copy_text( &key, name, sizeof( name ) ) )
            snprintf( name, sizeof( name ), "(a long name)" );
        if ( !options_asked( options, name ) )
            options_fail( options, name, "is unknown here" );
        value_destroy( &key );
    }
    value_destroy( &keys );
    options->dictionary = NULL;
    return options->error[0] == 0;
}

#endif
