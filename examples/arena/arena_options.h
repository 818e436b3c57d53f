/* Numbers on the command line, for the arena's programs. */

#ifndef ARENA_OPTIONS_H
#define ARENA_OPTIONS_H

#include <stdlib.h>

/* 1 if the whole text is a number from `lowest` to `highest`; else 0, and `value` stays. */
static inline int arena_number( const char * text, double lowest, double highest, double * value )
{
    char * end = NULL;
    double number = strtod( text, &end );
    if ( end == text || *end != '\0' || !( number >= lowest && number <= highest ) )
        return 0;
    *value = number;
    return 1;
}

static inline int arena_integer( const char * text, int lowest, int highest, int * value )
{
    double number = 0.0;
    if ( !arena_number( text, lowest, highest, &number ) || number - (int) number > 0.0 )
        return 0;
    *value = (int) number;
    return 1;
}

#endif
