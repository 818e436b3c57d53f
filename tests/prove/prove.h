/*  What every harness of tests/prove begins with: the whole of netcode.h, its asserts as claims to be proved, and values
    that may be anything. Run by tests/prove/run.sh. */

#ifndef PROVE_H
#define PROVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A mistake of the caller's would be a mistake of the library's own code here. */
#define netcode_assert( condition ) __CPROVER_assert( condition, "netcode_assert: " #condition )

#define NETCODE_NO_SOCKETS
#define NETCODE_IMPLEMENTATION
#if defined( PROVE_SMALL )
double prove_left( uint64_t tick, double now );
#include "netcode_small.h" /* with smaller tables: small.faults */
#else
#include "netcode.h"
#endif

/* The header takes its own macros back at its end. */
#define NOWHERE 0xFFFFFFFFu

#define CLAIM( condition ) __CPROVER_assert( condition, #condition )
#define GIVEN( condition ) __CPROVER_assume( condition )

/* CBMC takes a function of such a name for one that returns anything. */
uint8_t nondet_u8( void );
uint16_t nondet_u16( void );
uint32_t nondet_u32( void );
uint64_t nondet_u64( void );
int nondet_int( void );
size_t nondet_size( void );
double nondet_double( void );

#define any_u8 nondet_u8
#define any_u16 nondet_u16
#define any_u32 nondet_u32
#define any_u64 nondet_u64
#define any_int nondet_int
#define any_size nondet_size
#define any_double nondet_double

/* CBMC's own is lost where calls are replaced: run.py. */
int printf( const char * format, ... )
{
    (void) format;
    return any_int();
}

static size_t any_size_up_to( size_t most )
{
    size_t size = any_size();
    GIVEN( size <= most );
    return size;
}

static uint32_t any_below( uint32_t end )
{
    uint32_t number = any_u32();
    GIVEN( number < end );
    return number;
}

/* A block of exactly so many bytes, of any content: one byte further is out of bounds. */
static uint8_t * any_bytes( size_t bytes )
{
    return (uint8_t *) __CPROVER_allocate( bytes, 0 );
}

#endif
