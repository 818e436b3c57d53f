/*  What the harnesses of tests/prove take for libsodium: the prototypes that netcode.h uses, each with a body that checks
    what it was given and then does anything at all within the promise of the real function. So whatever is proved holds
    for every cipher, every random number and every verdict on a tag. tests/prove/run.sh puts this folder on the path. */

#ifndef PROVE_SODIUM_H
#define PROVE_SODIUM_H

#include <stddef.h>
#include <stdint.h>

enum { STUB_KEY_BYTES = 32, STUB_TAG_BYTES = 16, STUB_NONCE_BYTES = 12, STUB_LONG_NONCE_BYTES = 24 };

#define STUB_READABLE( place, bytes ) \
    __CPROVER_assert( ( bytes ) == 0 || __CPROVER_r_ok( place, bytes ), "readable: " #place )
#define STUB_WRITABLE( place, bytes ) \
    __CPROVER_assert( ( bytes ) == 0 || __CPROVER_w_ok( place, bytes ), "writable: " #place )

/* What the harnesses want to know about the last seal or opening. */
typedef struct {
    const uint8_t * out;
    const uint8_t * in;
    unsigned long long bytes; /* of `in` */
    const uint8_t * key;
    uint8_t nonce[STUB_LONG_NONCE_BYTES];
    unsigned long long associated_bytes;
    uint8_t associated[32];
    unsigned long long probe; /* which byte of what is sealed the harness wants to see: `probed` */
    uint8_t probed;
    int seals;
    int openings;
} stub_crypto_t;

static stub_crypto_t stub_crypto;

/* CBMC takes a function of such a name for one that returns anything. */
int nondet_verdict( void );
uint8_t nondet_sealed( void );

/*  Any bytes: sealed ones, opened ones, random ones, a hash. A harness that looks at the first few only, in a block that held
    anything before, defines STUB_HEAD: that spares the solver the rest. */
static void stub_havoc( uint8_t * out, unsigned long long bytes )
{
    STUB_WRITABLE( out, bytes );
#if defined( STUB_HEAD )
    for ( int i = 0; i < STUB_HEAD; i++ )
        if ( (unsigned long long) i < bytes )
            out[i] = nondet_sealed();
#else
    if ( bytes )
        __CPROVER_havoc_slice( out, bytes );
#endif
}

static void stub_note( const uint8_t * out, const uint8_t * in, unsigned long long bytes, const uint8_t * key )
{
    STUB_READABLE( key, STUB_KEY_BYTES );
    STUB_READABLE( in, bytes );
    stub_crypto.out = out;
    stub_crypto.in = in;
    stub_crypto.bytes = bytes;
    stub_crypto.key = key;
    stub_crypto.probed = stub_crypto.probe < bytes ? in[stub_crypto.probe] : 0;
}

static void stub_note_nonce( const uint8_t * nonce, int bytes, const uint8_t * associated, unsigned long long count )
{
    STUB_READABLE( nonce, bytes );
    STUB_READABLE( associated, count );
    for ( int i = 0; i < STUB_LONG_NONCE_BYTES; i++ )
        stub_crypto.nonce[i] = i < bytes ? nonce[i] : 0;
    stub_crypto.associated_bytes = count;
    for ( int i = 0; i < 32; i++ )
        stub_crypto.associated[i] = (unsigned long long) i < count ? associated[i] : 0;
}

/* Seals: any bytes of the right number, the tag included. */
static int crypto_aead_chacha20poly1305_ietf_encrypt( unsigned char * c, unsigned long long * clen,
                                                      const unsigned char * m, unsigned long long mlen,
                                                      const unsigned char * ad, unsigned long long adlen,
                                                      const unsigned char * nsec, const unsigned char * npub,
                                                      const unsigned char * k )
{
    (void) clen;
    (void) nsec;
    stub_note( c, m, mlen, k );
    stub_note_nonce( npub, STUB_NONCE_BYTES, ad, adlen );
    stub_crypto.seals++;
    stub_havoc( c, mlen + STUB_TAG_BYTES );
    return 0;
}

/* Opens: any verdict; any bytes where it is good, zeros where it is bad. */
static int stub_verdict( unsigned char * m, unsigned long long clen )
{
    int verdict = nondet_verdict() ? -1 : 0;
    __CPROVER_assert( clen >= STUB_TAG_BYTES, "a tag fits into what is opened" );
    stub_crypto.openings++;
    stub_havoc( m, clen - STUB_TAG_BYTES );
    return verdict;
}

static int crypto_aead_chacha20poly1305_ietf_decrypt( unsigned char * m, unsigned long long * mlen,
                                                      unsigned char * nsec, const unsigned char * c,
                                                      unsigned long long clen, const unsigned char * ad,
                                                      unsigned long long adlen, const unsigned char * npub,
                                                      const unsigned char * k )
{
    (void) mlen;
    (void) nsec;
    stub_note( m, c, clen, k );
    stub_note_nonce( npub, STUB_NONCE_BYTES, ad, adlen );
    return stub_verdict( m, clen );
}

static int crypto_aead_xchacha20poly1305_ietf_encrypt( unsigned char * c, unsigned long long * clen,
                                                       const unsigned char * m, unsigned long long mlen,
                                                       const unsigned char * ad, unsigned long long adlen,
                                                       const unsigned char * nsec, const unsigned char * npub,
                                                       const unsigned char * k )
{
    (void) clen;
    (void) nsec;
    stub_note( c, m, mlen, k );
    stub_note_nonce( npub, STUB_LONG_NONCE_BYTES, ad, adlen );
    stub_crypto.seals++;
    stub_havoc( c, mlen + STUB_TAG_BYTES );
    return 0;
}

static int crypto_aead_xchacha20poly1305_ietf_decrypt( unsigned char * m, unsigned long long * mlen,
                                                       unsigned char * nsec, const unsigned char * c,
                                                       unsigned long long clen, const unsigned char * ad,
                                                       unsigned long long adlen, const unsigned char * npub,
                                                       const unsigned char * k )
{
    (void) mlen;
    (void) nsec;
    stub_note( m, c, clen, k );
    stub_note_nonce( npub, STUB_LONG_NONCE_BYTES, ad, adlen );
    return stub_verdict( m, clen );
}

/* A keyed hash: any number. */
static void randombytes_buf( void * const out, const size_t bytes )
{
    stub_havoc( (uint8_t *) out, bytes );
}

static void sodium_memzero( void * const place, const size_t bytes )
{
    STUB_WRITABLE( place, bytes );
    __builtin_memset( place, 0, bytes );
}

static int sodium_memcmp( const void * const a, const void * const b, size_t bytes )
{
    return __builtin_memcmp( a, b, bytes ) == 0 ? 0 : -1;
}

static int sodium_init( void )
{
    return 0;
}

#endif
