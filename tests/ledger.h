/*  The nonce ledger, repeatable random numbers, and an allocator that counts and fails on demand.

    The ledger stands around libsodium's seal calls from outside (the linker's --wrap) and fails any test in which one
    key and nonce seals two different messages. Sealing the same message twice gives the same bytes and is harmless.
    Built with TEST_NO_WRAP, it is absent, and main.c says so. Tests that forge packets seal with LEDGER_REAL(
    function ), which the ledger does not see. */

#ifndef LEDGER_H
#define LEDGER_H

#include <sodium.h>

#include "test.h"

enum { LEDGER_ENTRIES = 1 << 19 };

struct ledger_entry_t {
    uint64_t name[2]; /* of the algorithm, key and nonce */
    uint64_t message; /* of the sealed bytes and the associated data */
    uint64_t generation;
};

static struct {
    struct ledger_entry_t entries[LEDGER_ENTRIES];
    uint64_t generation; /* of the running test: a new one empties the table */
    int used;
    int64_t seals;
    int64_t opens;       /* of packets and challenges */
    int64_t token_opens; /* of connect tokens, the expensive ones */
    int64_t repeats;     /* of one message: allowed */
} ledger;

static uint64_t ledger_hash( uint8_t salt, const void * data, size_t bytes )
{
    uint8_t key[crypto_shorthash_KEYBYTES] = { 0 };
    uint64_t hash;
    key[0] = salt;
    crypto_shorthash( (uint8_t *) &hash, (const uint8_t *) data, bytes, key );
    return hash;
}

static void ledger_reset( void )
{
    ledger.generation++;
    ledger.used = 0;
    ledger.seals = ledger.opens = ledger.token_opens = ledger.repeats = 0;
}

#if defined( TEST_NO_WRAP )

#define LEDGER_WORKS 0
#define LEDGER_REAL( function ) function

#else

#define LEDGER_WORKS 1
#define LEDGER_REAL( function ) __real_##function

/* One message was sealed: `cipher` and `mac` are what came out. */
static void ledger_note( int is_token, const uint8_t * key, const uint8_t * nonce, size_t nonce_bytes,
                         const uint8_t * cipher, size_t bytes, const uint8_t * mac, size_t mac_bytes,
                         const uint8_t * ad, size_t ad_bytes )
{
    uint8_t name[1 + 32 + 24] = { 0 };
    uint64_t a, b, message;
    size_t at;
    name[0] = (uint8_t) is_token;
    if ( sodium_is_zero( key, 32 ) )
        test_fail( __FILE__, __LINE__, "nonce ledger: a message was sealed with a key of zeros" );
    memcpy( name + 1, key, 32 );
    memcpy( name + 33, nonce, nonce_bytes );
    a = ledger_hash( 1, name, sizeof( name ) );
    b = ledger_hash( 2, name, sizeof( name ) );
    message = ledger_hash( 3, cipher, bytes ) ^
              test_mix( ledger_hash( 4, mac, mac_bytes ) ^ test_mix( ledger_hash( 5, ad, ad_bytes ) + bytes ) );
    ledger.seals++;
    for ( at = a % LEDGER_ENTRIES; ledger.entries[at].generation == ledger.generation;
          at = ( at + 1 ) % LEDGER_ENTRIES ) {
        if ( ledger.entries[at].name[0] != a || ledger.entries[at].name[1] != b )
            continue;
        ledger.repeats++;
        if ( ledger.entries[at].message != message )
            test_fail( __FILE__, __LINE__,
                       "nonce ledger: one key and nonce (sequence 0x%02x%02x%02x%02x%02x%02x%02x%02x) sealed two "
                       "messages",
                       nonce[11], nonce[10], nonce[9], nonce[8], nonce[7], nonce[6], nonce[5], nonce[4] );
        return;
    }
    if ( ++ledger.used > LEDGER_ENTRIES - 1024 ) {
        test_fail( __FILE__, __LINE__, "nonce ledger: full; a test may seal %d messages", LEDGER_ENTRIES - 1024 );
        ledger_reset();
        return;
    }
    ledger.entries[at].name[0] = a;
    ledger.entries[at].name[1] = b;
    ledger.entries[at].message = message;
    ledger.entries[at].generation = ledger.generation;
}

/*  The two algorithms have the same four signatures. `token` is 1 for the one that seals connect tokens. */
#define LEDGER_WRAP( algorithm, nonce_bytes, token, counter )                                                          \
    int __real_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, const unsigned char * m,        \
                                      unsigned long long m_bytes, const unsigned char * ad,                            \
                                      unsigned long long ad_bytes, const unsigned char * secret,                       \
                                      const unsigned char * nonce, const unsigned char * key );                        \
    int __real_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               const unsigned char * m, unsigned long long m_bytes,                    \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * secret, const unsigned char * nonce,              \
                                               const unsigned char * key );                                            \
    int __real_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, const unsigned char * ad,   \
                                      unsigned long long ad_bytes, const unsigned char * nonce,                        \
                                      const unsigned char * key );                                                     \
    int __real_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * nonce, const unsigned char * key );               \
    int __wrap_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, const unsigned char * m,        \
                                      unsigned long long m_bytes, const unsigned char * ad,                            \
                                      unsigned long long ad_bytes, const unsigned char * secret,                       \
                                      const unsigned char * nonce, const unsigned char * key );                        \
    int __wrap_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               const unsigned char * m, unsigned long long m_bytes,                    \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * secret, const unsigned char * nonce,              \
                                               const unsigned char * key );                                            \
    int __wrap_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, const unsigned char * ad,   \
                                      unsigned long long ad_bytes, const unsigned char * nonce,                        \
                                      const unsigned char * key );                                                     \
    int __wrap_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * nonce, const unsigned char * key );               \
    int __wrap_##algorithm##_encrypt( unsigned char * c, unsigned long long * c_bytes, const unsigned char * m,        \
                                      unsigned long long m_bytes, const unsigned char * ad,                            \
                                      unsigned long long ad_bytes, const unsigned char * secret,                       \
                                      const unsigned char * nonce, const unsigned char * key )                         \
    {                                                                                                                  \
        int result = __real_##algorithm##_encrypt( c, c_bytes, m, m_bytes, ad, ad_bytes, secret, nonce, key );         \
        ledger_note( token, key, nonce, nonce_bytes, c, (size_t) m_bytes, c + m_bytes, 16, ad, (size_t) ad_bytes );    \
        return result;                                                                                                 \
    }                                                                                                                  \
    int __wrap_##algorithm##_encrypt_detached( unsigned char * c, unsigned char * mac, unsigned long long * mac_bytes, \
                                               const unsigned char * m, unsigned long long m_bytes,                    \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * secret, const unsigned char * nonce,              \
                                               const unsigned char * key )                                             \
    {                                                                                                                  \
        int result =                                                                                                   \
            __real_##algorithm##_encrypt_detached( c, mac, mac_bytes, m, m_bytes, ad, ad_bytes, secret, nonce, key );  \
        ledger_note( token, key, nonce, nonce_bytes, c, (size_t) m_bytes, mac, 16, ad, (size_t) ad_bytes );            \
        return result;                                                                                                 \
    }                                                                                                                  \
    int __wrap_##algorithm##_decrypt( unsigned char * m, unsigned long long * m_bytes, unsigned char * secret,         \
                                      const unsigned char * c, unsigned long long c_bytes, const unsigned char * ad,   \
                                      unsigned long long ad_bytes, const unsigned char * nonce,                        \
                                      const unsigned char * key )                                                      \
    {                                                                                                                  \
        counter++;                                                                                                     \
        return __real_##algorithm##_decrypt( m, m_bytes, secret, c, c_bytes, ad, ad_bytes, nonce, key );               \
    }                                                                                                                  \
    int __wrap_##algorithm##_decrypt_detached( unsigned char * m, unsigned char * secret, const unsigned char * c,     \
                                               unsigned long long c_bytes, const unsigned char * mac,                  \
                                               const unsigned char * ad, unsigned long long ad_bytes,                  \
                                               const unsigned char * nonce, const unsigned char * key )                \
    {                                                                                                                  \
        counter++;                                                                                                     \
        return __real_##algorithm##_decrypt_detached( m, secret, c, c_bytes, mac, ad, ad_bytes, nonce, key );          \
    }

LEDGER_WRAP( crypto_aead_chacha20poly1305_ietf, 12, 0, ledger.opens )
LEDGER_WRAP( crypto_aead_xchacha20poly1305_ietf, 24, 1, ledger.token_opens )

#endif

/* ---- random numbers for libsodium that the seed repeats ---- */

static uint64_t ledger_random_state;

static const char * ledger_random_name( void )
{
    return "test";
}

static uint32_t ledger_random_word( void )
{
    ledger_random_state += 0x9e3779b97f4a7c15u;
    return (uint32_t) ( test_mix( ledger_random_state ) >> 32 );
}

static void ledger_random_bytes( void * const buffer, const size_t bytes )
{
    uint8_t * p = (uint8_t *) buffer;
    size_t i;
    uint32_t word = 0;
    for ( i = 0; i < bytes; i++ ) {
        if ( i % 4 == 0 )
            word = ledger_random_word();
        p[i] = (uint8_t) ( word >> ( 8 * ( i % 4 ) ) );
    }
}

static struct randombytes_implementation ledger_random_source =
    { ledger_random_name, ledger_random_word, NULL, NULL, ledger_random_bytes, NULL };

/* ---- an allocator that counts ---- */

struct allocator_t {
    int allocations; /* calls that succeeded */
    int frees;
    int live;     /* blocks not freed yet */
    size_t bytes; /* asked for in all */
    int fail_at;  /* this call (counted from 1) fails; 0: none */
    int calls;
    int keep; /* freed blocks are not given back but searched later: see blocks */
    struct {
        uint8_t * data;
        size_t bytes;
    } blocks[4096]; /* every block, while `keep` is set */
    int block_count;
};

static void * allocator_allocate( void * context, size_t bytes )
{
    struct allocator_t * a = (struct allocator_t *) context;
    void * pointer;
    if ( ++a->calls == a->fail_at )
        return NULL;
    pointer = malloc( bytes ? bytes : 1 );
    if ( !pointer )
        return NULL;
    memset( pointer, 0xA5, bytes ); /* so that nothing relies on zeros */
    a->allocations++;
    a->live++;
    a->bytes += bytes;
    if ( a->keep && a->block_count < (int) ( sizeof( a->blocks ) / sizeof( a->blocks[0] ) ) ) {
        a->blocks[a->block_count].data = (uint8_t *) pointer;
        a->blocks[a->block_count++].bytes = bytes;
    }
    return pointer;
}

static void allocator_free( void * context, void * pointer )
{
    struct allocator_t * a = (struct allocator_t *) context;
    if ( !pointer )
        return;
    a->frees++;
    a->live--;
    if ( !a->keep )
        free( pointer );
}

/* Ends the keeping: gives back what is held. */
static void allocator_release( struct allocator_t * a )
{
    int i;
    for ( i = 0; i < a->block_count; i++ )
        free( a->blocks[i].data );
    a->block_count = 0;
    a->keep = 0;
}

/* How often the needle stands in the kept blocks. */
static int allocator_search( const struct allocator_t * a, const void * needle, size_t bytes )
{
    int i, found = 0;
    size_t at;
    for ( i = 0; i < a->block_count; i++ )
        for ( at = 0; at + bytes <= a->blocks[i].bytes; at++ )
            if ( a->blocks[i].data[at] == *(const uint8_t *) needle &&
                 memcmp( a->blocks[i].data + at, needle, bytes ) == 0 )
                found++;
    return found;
}

#endif
