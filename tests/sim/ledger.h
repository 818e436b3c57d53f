/*  The nonce ledger of the simulation: it stands around libsodium's calls from outside (the linker's --wrap) and keeps,
    for every key that the library ever sealed with, the runs of sequences that it used. A second use of one is a
    failure, whichever object, process or server made it. Sequences mostly count up, so a key takes a few runs and not
    an entry for each packet: a virtual day fits.

    The adversary seals with SIM_REAL( function ): what he does with keys that he holds is his affair. */

#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "base.h"

struct sim_run_t {
    uint64_t first;
    uint64_t last;
    uint32_t next; /* older run of the same key; 0: none */
};

struct sim_key_t {
    uint64_t name[2];
    uint32_t runs; /* the newest; 0: the entry is free */
};

static struct {
    struct sim_key_t * keys;
    uint32_t key_capacity; /* a power of two */
    uint32_t key_count;
    struct sim_run_t * runs;
    uint32_t run_capacity;
    uint32_t run_count; /* the first is not used */
    uint64_t seals;     /* of the call that is watched: see sim_meter */
    uint64_t opens;     /* of packets and challenges */
    uint64_t token_opens;
} sim_ledger;

/* Prints whose key that is, before the failure is reported. */
static void ( *sim_explain_key )( const uint8_t * key );

static void * sim_grow( void * old, size_t count, size_t bytes )
{
    void * grown = realloc( old, count * bytes );
    if ( !grown ) {
        printf( "the simulation needs more memory than there is\n" );
        exit( 2 );
    }
    return grown;
}

static void sim_ledger_reset( void )
{
    if ( !sim_ledger.keys ) {
        sim_ledger.key_capacity = 1 << 12;
        sim_ledger.keys = (struct sim_key_t *) sim_grow( NULL, sim_ledger.key_capacity, sizeof( *sim_ledger.keys ) );
    }
    memset( sim_ledger.keys, 0, sim_ledger.key_capacity * sizeof( *sim_ledger.keys ) );
    sim_ledger.key_count = 0;
    sim_ledger.run_count = 1;
}

#if defined( TEST_NO_WRAP )

#define SIM_LEDGER_WORKS 0
#define SIM_REAL( function ) function

#else

#define SIM_LEDGER_WORKS 1
#define SIM_REAL( function ) __real_##function

static struct sim_key_t * sim_ledger_place( const uint64_t name[2] )
{
    uint32_t at = (uint32_t) sim_mix( name[0] ) & ( sim_ledger.key_capacity - 1 );
    while ( sim_ledger.keys[at].runs &&
            ( sim_ledger.keys[at].name[0] != name[0] || sim_ledger.keys[at].name[1] != name[1] ) )
        at = ( at + 1 ) & ( sim_ledger.key_capacity - 1 );
    return &sim_ledger.keys[at];
}

static void sim_ledger_enlarge( void )
{
    struct sim_key_t * old = sim_ledger.keys;
    uint32_t i, count = sim_ledger.key_capacity;
    sim_ledger.key_capacity *= 2;
    sim_ledger.keys = (struct sim_key_t *) sim_grow( NULL, sim_ledger.key_capacity, sizeof( *old ) );
    memset( sim_ledger.keys, 0, sim_ledger.key_capacity * sizeof( *old ) );
    for ( i = 0; i < count; i++ )
        if ( old[i].runs )
            *sim_ledger_place( old[i].name ) = old[i];
    free( old );
}

static uint32_t sim_ledger_new_run( uint64_t sequence, uint32_t next )
{
    struct sim_run_t * run;
    if ( sim_ledger.run_count >= sim_ledger.run_capacity ) {
        sim_ledger.run_capacity = sim_ledger.run_capacity ? sim_ledger.run_capacity * 2 : 1 << 14;
        sim_ledger.runs =
            (struct sim_run_t *) sim_grow( sim_ledger.runs, sim_ledger.run_capacity, sizeof( *sim_ledger.runs ) );
    }
    run = &sim_ledger.runs[sim_ledger.run_count];
    run->first = run->last = sequence;
    run->next = next;
    return sim_ledger.run_count++;
}

/* Every library key is random, so half of it names it. */
static void sim_ledger_note( const uint8_t * key, uint64_t sequence )
{
    uint64_t name[2];
    struct sim_key_t * entry;
    struct sim_run_t * grows = NULL;
    uint32_t at;
    name[0] = sim_load( key, 8 );
    name[1] = sim_load( key + 8, 8 );
    entry = sim_ledger_place( name );
    sim_total.checks[SIM_CHECK_nonce_ledger]++;
    for ( at = entry->runs; at; at = sim_ledger.runs[at].next ) {
        struct sim_run_t * run = &sim_ledger.runs[at];
        if ( sequence - run->first <= run->last - run->first && sim_explain_key )
            sim_explain_key( key );
        if ( sequence - run->first <= run->last - run->first )
            sim_fail( SIM_CHECK_nonce_ledger, "one key has sealed twice with sequence 0x%" PRIx64, sequence );
        if ( run->last + 1 == sequence )
            grows = run;
    }
    if ( grows ) {
        grows->last = sequence;
        return;
    }
    entry->name[0] = name[0];
    entry->name[1] = name[1];
    sim_ledger.key_count += entry->runs == 0;
    entry->runs = sim_ledger_new_run( sequence, entry->runs );
    if ( sim_ledger.key_count * 2 > sim_ledger.key_capacity )
        sim_ledger_enlarge();
}

/* A nonce of 12 bytes is 4 zeros and the sequence; one of 24 is random, and is known by 8 bytes. */
static void sim_note_seal( const uint8_t * key, const uint8_t * nonce, int nonce_bytes )
{
    sim_ledger.seals++;
    if ( nonce_bytes == 12 && ( nonce[0] | nonce[1] | nonce[2] | nonce[3] ) )
        sim_fail( SIM_CHECK_nonce_ledger, "a nonce does not begin with four zeros" );
    sim_ledger_note( key, sim_load( nonce + ( nonce_bytes == 12 ? 4 : 0 ), 8 ) );
}

#define SIM_SEAL_ARGUMENTS                                                                                    \
    const unsigned char *m, unsigned long long m_bytes, const unsigned char *ad, unsigned long long ad_bytes, \
        const unsigned char *secret, const unsigned char *nonce, const unsigned char *key
#define SIM_OPEN_ARGUMENTS \
    const unsigned char *ad, unsigned long long ad_bytes, const unsigned char *nonce, const unsigned char *key

/* The two algorithms have the same four signatures. */
#define SIM_WRAP( algorithm, nonce_bytes, counter )                                                                    \
    int __real_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, SIM_SEAL_ARGUMENTS );           \
    int __wrap_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, SIM_SEAL_ARGUMENTS );           \
    int __real_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               SIM_SEAL_ARGUMENTS );                                                   \
    int __wrap_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               SIM_SEAL_ARGUMENTS );                                                   \
    int __real_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, SIM_OPEN_ARGUMENTS );       \
    int __wrap_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, SIM_OPEN_ARGUMENTS );       \
    int __real_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               SIM_OPEN_ARGUMENTS );                                                   \
    int __wrap_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               SIM_OPEN_ARGUMENTS );                                                   \
    int __wrap_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, SIM_SEAL_ARGUMENTS )            \
    {                                                                                                                  \
        sim_note_seal( key, nonce, nonce_bytes );                                                                      \
        return __real_##algorithm##_encrypt( c, c_bytes, m, m_bytes, ad, ad_bytes, secret, nonce, key );               \
    }                                                                                                                  \
    int __wrap_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               SIM_SEAL_ARGUMENTS )                                                    \
    {                                                                                                                  \
        sim_note_seal( key, nonce, nonce_bytes );                                                                      \
        return __real_##algorithm##_encrypt_detached( c, mac, mac_bytes, m, m_bytes, ad, ad_bytes, secret, nonce,      \
                                                      key );                                                           \
    }                                                                                                                  \
    int __wrap_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, SIM_OPEN_ARGUMENTS )        \
    {                                                                                                                  \
        counter++;                                                                                                     \
        return __real_##algorithm##_decrypt( m, m_bytes, secret, c, c_bytes, ad, ad_bytes, nonce, key );               \
    }                                                                                                                  \
    int __wrap_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               SIM_OPEN_ARGUMENTS )                                                    \
    {                                                                                                                  \
        counter++;                                                                                                     \
        return __real_##algorithm##_decrypt_detached( m, secret, c, c_bytes, mac, ad, ad_bytes, nonce, key );          \
    }

SIM_WRAP( crypto_aead_chacha20poly1305_ietf, 12, sim_ledger.opens )
SIM_WRAP( crypto_aead_xchacha20poly1305_ietf, 24, sim_ledger.token_opens )

#endif

#endif
