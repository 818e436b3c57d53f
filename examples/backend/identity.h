/*  Who an ID token of OpenID Connect (a signed JWT) names: verifies it against an issuer's public keys. Knows no network
    and no clock: oidc.h fetches the keys, backend.c passes the time. libcjose checks the signature; which algorithm, which
    key and which claims are good is decided here.

        struct identity_keys_t keys;
        struct identity_rules_t rules = { "https://issuer.example", "game", 30 };
        struct identity_t identity;
        memset( &keys, 0, sizeof( keys ) );
        if ( identity_read_keys( jwks, &keys ) && identity_verify( &keys, &rules, time( NULL ), token, &identity ) ==
             IDENTITY_OK ) ... identity.client_id, identity.name
        identity_free_keys( &keys );

    RS256 and ES256 alone. Each key is good for the one algorithm that its type has, whatever a token claims, and secret
    keys (HMAC) are never read: a public key can not be taken for one. Needs libcjose, cJSON and libsodium. */

#ifndef BACKEND_IDENTITY_H
#define BACKEND_IDENTITY_H

#include <cjose/cjose.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IDENTITY_NAME_BYTES 64 /* as backend.c's NAME_BYTES */
#define IDENTITY_TOKEN_BYTES 7168
#define IDENTITY_MAX_KEYS 32
#define IDENTITY_KID_BYTES 128
#define IDENTITY_SUBJECT_BYTES 256 /* 255 characters and the zero: OpenID Connect Core 1.0, section 2 */
#define IDENTITY_MIN_RSA_BYTES 256 /* 2048 bits */
#define IDENTITY_MAX_RSA_BYTES 1024
#define IDENTITY_P256_BYTES 32
#define IDENTITY_MAX_TIME 253402300799.0 /* the year 9999: what is above is no time */

/* clang-format off */
/*  Why a token names no player. One list gives the enum, the name in the metrics, the sentence.
    X( name, sentence ) */
#define IDENTITY_LIST( X )                                                                          \
    X( OK,          ok,          "it is good" )                                                     \
    X( TOO_LARGE,   too_large,   "it is longer than 7168 characters" )                              \
    X( MALFORMED,   malformed,   "it is no signed JWT in compact form" )                            \
    X( ALGORITHM,   algorithm,   "its algorithm is neither RS256 nor ES256" )                       \
    X( UNKNOWN_KEY, unknown_key, "the issuer has no key of its key id and algorithm" )              \
    X( SIGNATURE,   signature,   "its signature is wrong" )                                         \
    X( CLAIMS,      claims,      "a claim is missing, there twice, or has a value that it can not have" ) \
    X( ISSUER,      issuer,      "it is another issuer's" )                                         \
    X( AUDIENCE,    audience,    "it is for another audience" )                                     \
    X( EXPIRED,     expired,     "it has expired" )                                                 \
    X( NOT_YET,     not_yet,     "it is not valid yet" )
/* clang-format on */

#define IDENTITY_ENUM( name, word, text ) IDENTITY_##name,
enum identity_result_t { IDENTITY_LIST( IDENTITY_ENUM ) IDENTITY_RESULTS };
#undef IDENTITY_ENUM

struct identity_info_t {
    const char * name;
    const char * text;
};

#define IDENTITY_ROW( name, word, text ) { #word, text },
static const struct identity_info_t identity_infos[IDENTITY_RESULTS] = { IDENTITY_LIST( IDENTITY_ROW ) };
#undef IDENTITY_ROW

enum identity_algorithm_t { IDENTITY_NO_ALGORITHM, IDENTITY_RS256, IDENTITY_ES256 };

struct identity_key_t {
    cjose_jwk_t * jwk;
    enum identity_algorithm_t algorithm;
    char kid[IDENTITY_KID_BYTES]; /* "" where it has none */
};

struct identity_keys_t {
    struct identity_key_t keys[IDENTITY_MAX_KEYS];
    int count;
};

struct identity_rules_t {
    const char * issuer;
    const char * audience;
    int leeway_seconds; /* by which clocks may differ */
};

struct identity_t {
    uint64_t client_id;
    char name[IDENTITY_NAME_BYTES];
    char subject[IDENTITY_SUBJECT_BYTES];
};

/* ---- JSON ---- */

/*  A name that stands twice means one thing to us and may mean another to someone else who reads the same token: such
    objects are refused. */
static int identity_has_twins( const cJSON * object )
{
    for ( const cJSON * item = object ? object->child : NULL; item; item = item->next ) {
        for ( const cJSON * other = item->next; other; other = other->next ) {
            if ( !strcmp( item->string, other->string ) )
                return 1;
        }
    }
    return 0;
}

/* An object, or NULL. A zero inside, as itself or escaped, would hide what stands behind it. */
static cJSON * identity_parse( const char * text, size_t bytes )
{
    cJSON * json = NULL;
    if ( strlen( text ) == bytes && !strstr( text, "\\u0000" ) )
        json = cJSON_ParseWithLengthOpts( text, bytes + 1, NULL, 1 );
    if ( cJSON_IsObject( json ) && !identity_has_twins( json ) )
        return json;
    cJSON_Delete( json );
    return NULL;
}

static const char * identity_text( const cJSON * object, const char * name )
{
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( object, name );
    return cJSON_IsString( item ) ? item->valuestring : NULL;
}

/* ---- the issuer's keys ---- */

/* The size of a number in base64url without leading zeros; 0 when it is none. */
static size_t identity_number_bytes( const char * text )
{
    uint8_t data[IDENTITY_MAX_RSA_BYTES + 1];
    size_t bytes = 0;
    if ( !text || sodium_base642bin( data, sizeof( data ), text, strlen( text ), NULL, &bytes, NULL,
                                     sodium_base64_VARIANT_URLSAFE_NO_PADDING ) != 0 )
        return 0;
    return bytes && data[0] ? bytes : 0;
}

static int identity_coordinate_is_good( const char * text )
{
    uint8_t data[IDENTITY_P256_BYTES];
    size_t bytes = 0;
    return text &&
           sodium_base642bin( data, sizeof( data ), text, strlen( text ), NULL, &bytes, NULL,
                              sodium_base64_VARIANT_URLSAFE_NO_PADDING ) == 0 &&
           bytes == IDENTITY_P256_BYTES;
}

/* What a key of this type and size is good for. Weak ones, other curves and secret keys are good for nothing. */
static enum identity_algorithm_t identity_algorithm_of( const cJSON * key )
{
    const char * type = identity_text( key, "kty" );
    size_t modulus = identity_number_bytes( identity_text( key, "n" ) );
    size_t exponent = identity_number_bytes( identity_text( key, "e" ) );
    const char * curve = identity_text( key, "crv" );
    if ( type && !strcmp( type, "RSA" ) && modulus >= IDENTITY_MIN_RSA_BYTES && modulus <= IDENTITY_MAX_RSA_BYTES &&
         exponent >= 1 && exponent <= 4 )
        return IDENTITY_RS256;
    if ( type && !strcmp( type, "EC" ) && curve && !strcmp( curve, "P-256" ) &&
         identity_coordinate_is_good( identity_text( key, "x" ) ) &&
         identity_coordinate_is_good( identity_text( key, "y" ) ) )
        return IDENTITY_ES256;
    return IDENTITY_NO_ALGORITHM;
}

static const char * identity_algorithm_name( enum identity_algorithm_t algorithm )
{
    return algorithm == IDENTITY_RS256 ? "RS256" : algorithm == IDENTITY_ES256 ? "ES256" : "";
}

/* "use" and "alg" are optional, but bind where they stand. */
static int identity_key_is_for( const cJSON * key, enum identity_algorithm_t algorithm )
{
    const cJSON * use = cJSON_GetObjectItemCaseSensitive( key, "use" );
    const cJSON * alg = cJSON_GetObjectItemCaseSensitive( key, "alg" );
    return ( !use || ( cJSON_IsString( use ) && !strcmp( use->valuestring, "sig" ) ) ) &&
           ( !alg || ( cJSON_IsString( alg ) && !strcmp( alg->valuestring, identity_algorithm_name( algorithm ) ) ) );
}

/* libcjose gets the public numbers and nothing else of what the issuer sent. */
static cjose_jwk_t * identity_import_key( const cJSON * key, enum identity_algorithm_t algorithm )
{
    static const char * const names[3][4] = { { NULL }, { "kty", "n", "e", NULL }, { "kty", "crv", "x", "y" } };
    cjose_jwk_t * jwk = NULL;
    cjose_err error;
    cJSON * copy = cJSON_CreateObject();
    int good = copy != NULL;
    for ( int i = 0; i < 4 && names[algorithm][i]; i++ )
        good = good &&
               cJSON_AddStringToObject( copy, names[algorithm][i], identity_text( key, names[algorithm][i] ) ) != NULL;
    char * text = good ? cJSON_PrintUnformatted( copy ) : NULL;
    if ( text )
        jwk = cjose_jwk_import( text, strlen( text ), &error );
    cJSON_free( text );
    cJSON_Delete( copy );
    return jwk;
}

static void identity_add_key( const cJSON * key, struct identity_keys_t * keys )
{
    const char * kid = identity_text( key, "kid" );
    enum identity_algorithm_t algorithm = cJSON_IsObject( key ) ? identity_algorithm_of( key ) : IDENTITY_NO_ALGORITHM;
    struct identity_key_t * to = &keys->keys[keys->count];
    if ( algorithm == IDENTITY_NO_ALGORITHM || !identity_key_is_for( key, algorithm ) || identity_has_twins( key ) ||
         ( kid && strlen( kid ) >= IDENTITY_KID_BYTES ) )
        return;
    to->jwk = identity_import_key( key, algorithm );
    to->algorithm = algorithm;
    snprintf( to->kid, sizeof( to->kid ), "%s", kid ? kid : "" );
    if ( to->jwk )
        keys->count++;
}

static void identity_free_keys( struct identity_keys_t * keys )
{
    for ( int i = 0; i < keys->count; i++ )
        cjose_jwk_release( keys->keys[i].jwk );
    keys->count = 0;
}

/*  Replaces the keys by those of a JWK set. Keys that are of no use here are left out, as the standard wants it (RFC 7517,
    section 5), and where none is of use there are none any more. 0 when it is no set: then those from before stay. */
static int identity_read_keys( const char * text, struct identity_keys_t * keys )
{
    struct identity_keys_t found;
    const cJSON * key = NULL;
    cJSON * json = identity_parse( text, strlen( text ) );
    const cJSON * list = cJSON_GetObjectItemCaseSensitive( json, "keys" );
    memset( &found, 0, sizeof( found ) );
    if ( cJSON_IsArray( list ) ) {
        cJSON_ArrayForEach( key, list )
        {
            if ( found.count < IDENTITY_MAX_KEYS )
                identity_add_key( key, &found );
        }
    }
    int is_set = cJSON_IsArray( list );
    cJSON_Delete( json );
    if ( !is_set )
        return 0;
    identity_free_keys( keys );
    *keys = found;
    return 1;
}

/* ---- the token's parts ---- */

struct identity_parts_t {
    cJSON * header;
    cJSON * claims;
};

/*  Decodes base64url, and nothing that is only nearly so: no padding, no leftover bits. Then a token has one spelling.
    Returns where the part ended, or NULL. */
static const char * identity_decode( const char * text, char data[IDENTITY_TOKEN_BYTES + 1], size_t * bytes )
{
    const char * end = text + strcspn( text, "." );
    if ( end == text || sodium_base642bin( (unsigned char *) data, IDENTITY_TOKEN_BYTES, text, (size_t) ( end - text ),
                                           NULL, bytes, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING ) != 0 )
        return NULL;
    data[*bytes] = '\0';
    return end;
}

static void identity_free_parts( struct identity_parts_t * parts )
{
    cJSON_Delete( parts->header );
    cJSON_Delete( parts->claims );
}

/* 0 when they are not three parts, of which two are objects. Nothing in them is believed yet. */
static int identity_split( const char * token, struct identity_parts_t * parts )
{
    static char data[IDENTITY_TOKEN_BYTES + 1];
    size_t bytes = 0;
    parts->header = parts->claims = NULL;
    const char * at = identity_decode( token, data, &bytes );
    if ( !at || *at != '.' )
        return 0;
    parts->header = identity_parse( data, bytes );
    at = identity_decode( at + 1, data, &bytes );
    if ( !at || *at != '.' )
        return 0;
    parts->claims = identity_parse( data, bytes );
    at = identity_decode( at + 1, data, &bytes );
    sodium_memzero( data, sizeof( data ) );
    return at && *at == '\0' && parts->header && parts->claims;
}

/*  Extensions that we must understand ("crit") we do not, and an unencoded payload (RFC 7797) is one of them. A type that is
    given must be JWT: an access token ("at+jwt", RFC 9068) is no proof of who brings it. */
static enum identity_result_t identity_read_header( const cJSON * header, enum identity_algorithm_t * algorithm,
                                                    const char ** kid )
{
    const char * name = identity_text( header, "alg" );
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( header, "kid" );
    const cJSON * type = cJSON_GetObjectItemCaseSensitive( header, "typ" );
    if ( type && ( !cJSON_IsString( type ) || strcasecmp( type->valuestring, "JWT" ) != 0 ) )
        return IDENTITY_MALFORMED;
    if ( cJSON_GetObjectItemCaseSensitive( header, "crit" ) || cJSON_GetObjectItemCaseSensitive( header, "b64" ) ||
         ( item && !cJSON_IsString( item ) ) )
        return IDENTITY_MALFORMED;
    *algorithm = !name                      ? IDENTITY_NO_ALGORITHM
                 : !strcmp( name, "RS256" ) ? IDENTITY_RS256
                 : !strcmp( name, "ES256" ) ? IDENTITY_ES256
                                            : IDENTITY_NO_ALGORITHM;
    *kid = item ? item->valuestring : NULL;
    return *algorithm == IDENTITY_NO_ALGORITHM ? IDENTITY_ALGORITHM : IDENTITY_OK;
}

/* Keys come from the issuer's set alone: a key or an address inside a token ("jwk", "jku", "x5u") is not even looked at. */
static const struct identity_key_t * identity_find_key( const struct identity_keys_t * keys, const char * kid,
                                                        enum identity_algorithm_t algorithm )
{
    const struct identity_key_t * found = NULL;
    int count = 0;
    for ( int i = 0; i < keys->count; i++ ) {
        if ( keys->keys[i].algorithm == algorithm && ( !kid || !strcmp( keys->keys[i].kid, kid ) ) ) {
            found = &keys->keys[i];
            count++;
        }
    }
    return count == 1 ? found : NULL; /* a token without a key id is clear only where there is no choice */
}

/*  libcjose verifies by the algorithm that it finds in the header, so its reading of it must be ours. What it verified is
    what we parsed: the parts have one spelling. */
static int identity_signature_is_good( const char * token, const struct identity_key_t * key )
{
    cjose_err error;
    cjose_jws_t * jws = cjose_jws_import( token, strlen( token ), &error );
    const char * algorithm = jws ? cjose_header_get( cjose_jws_get_protected( jws ), CJOSE_HDR_ALG, &error ) : NULL;
    int good = algorithm && !strcmp( algorithm, identity_algorithm_name( key->algorithm ) ) &&
               cjose_jws_verify( jws, key->jwk, &error );
    cjose_jws_release( jws );
    return good;
}

/* ---- the claims ---- */

/* 1 when there is a time, 0 when there is none; -1 when there is something else. */
static int identity_read_time( const cJSON * claims, const char * name, double * seconds )
{
    const cJSON * item = cJSON_GetObjectItemCaseSensitive( claims, name );
    if ( !item )
        return 0;
    /* Written so that NaN fails too. */
    if ( !cJSON_IsNumber( item ) || !( item->valuedouble >= 0.0 && item->valuedouble <= IDENTITY_MAX_TIME ) )
        return -1;
    *seconds = item->valuedouble;
    return 1;
}

static enum identity_result_t identity_check_times( const cJSON * claims, double now, double leeway )
{
    double expires = 0.0;
    double issued = 0.0;
    double begins = 0.0;
    if ( identity_read_time( claims, "exp", &expires ) != 1 || identity_read_time( claims, "iat", &issued ) != 1 ||
         identity_read_time( claims, "nbf", &begins ) < 0 )
        return IDENTITY_CLAIMS;
    if ( now >= expires + leeway )
        return IDENTITY_EXPIRED;
    return issued > now + leeway || begins > now + leeway ? IDENTITY_NOT_YET : IDENTITY_OK;
}

/*  "aud" is one, or a list of which one must be we. A token for others too says in "azp" for whom it was made: for us.
    In one for us alone, "azp" is the extensions' business (OpenID Connect Core 1.0, section 3.1.3.7): an issuer may name
    there the app that asked for it, with a client id of its own, as Google's does. */
static enum identity_result_t identity_check_audience( const cJSON * claims, const char * audience )
{
    const cJSON * list = cJSON_GetObjectItemCaseSensitive( claims, "aud" );
    const cJSON * party = cJSON_GetObjectItemCaseSensitive( claims, "azp" );
    const cJSON * item = NULL;
    int found = cJSON_IsString( list ) && !strcmp( list->valuestring, audience );
    if ( ( !cJSON_IsString( list ) && !cJSON_IsArray( list ) ) || ( party && !cJSON_IsString( party ) ) )
        return IDENTITY_CLAIMS;
    cJSON_ArrayForEach( item, list )
    {
        if ( !cJSON_IsString( item ) )
            return IDENTITY_CLAIMS;
        found |= !strcmp( item->valuestring, audience );
    }
    if ( cJSON_GetArraySize( list ) > 1 && ( !party || strcmp( party->valuestring, audience ) != 0 ) )
        return IDENTITY_AUDIENCE;
    return found ? IDENTITY_OK : IDENTITY_AUDIENCE;
}

/* Visible ASCII, which OpenID Connect wants, so that a log line is what it seems to be. */
static int identity_subject_is_good( const char * subject )
{
    size_t bytes = subject ? strlen( subject ) : 0;
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( subject[i] < '!' || subject[i] > '~' )
            return 0;
    }
    return bytes >= 1 && bytes < IDENTITY_SUBJECT_BYTES;
}

/* How many bytes the UTF-8 character here has; 0 when it is none (RFC 3629, section 4). Reads no further than the zero. */
static size_t identity_character_bytes( const char * text )
{
    const unsigned char * at = (const unsigned char *) text;
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    for ( size_t i = 1; i < bytes; i++ ) {
        if ( ( at[i] & 0xc0 ) != 0x80 )
            return 0;
    }
    /* Spelt longer than it has to be, half of a pair of UTF-16, beyond U+10FFFF. */
    int is_wrong = ( at[0] == 0xe0 && at[1] < 0xa0 ) || ( at[0] == 0xed && at[1] > 0x9f ) ||
                   ( at[0] == 0xf0 && at[1] < 0x90 ) || ( at[0] == 0xf4 && at[1] > 0x8f );
    return is_wrong ? 0 : bytes;
}

static int identity_is_utf8( const char * text )
{
    size_t bytes = 1;
    while ( *text && bytes ) {
        bytes = identity_character_bytes( text );
        text += bytes;
    }
    return !*text;
}

/*  1 when the text can stand in a token's user data, in JSON and in a line: cut between characters, where it is too long.
    cJSON takes any bytes for a string. */
static int identity_take_name( const char * text, char name[IDENTITY_NAME_BYTES] )
{
    size_t bytes = text && identity_is_utf8( text ) ? strlen( text ) : 0;
    if ( bytes >= IDENTITY_NAME_BYTES ) {
        bytes = IDENTITY_NAME_BYTES - 1;
        while ( bytes && ( (unsigned char) text[bytes] & 0xc0 ) == 0x80 )
            bytes--;
    }
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( (unsigned char) text[i] < 0x20 || text[i] == 0x7f )
            return 0;
    }
    if ( bytes )
        memcpy( name, text, bytes );
    name[bytes] = '\0';
    return bytes > 0;
}

/*  A player's id from what the issuer calls him: the first 63 bits of BLAKE2b over both, so it is the same on all backends
    and after each login, and fits into a signed number. It needs no key: who wants the id of a certain player would have to
    be given 2^63 subjects by the issuer. Among a million players the chance that any two share an id is 1 in 18 million.
    The zero between the two keeps one pair from being spelt like another. */
static uint64_t identity_client_id( const char * issuer, const char * subject )
{
    static const char domain[] = "netcode player";
    uint8_t hash[crypto_generichash_BYTES];
    uint64_t id = 0;
    crypto_generichash_state state;
    crypto_generichash_init( &state, NULL, 0, sizeof( hash ) );
    crypto_generichash_update( &state, (const unsigned char *) domain, sizeof( domain ) );
    crypto_generichash_update( &state, (const unsigned char *) issuer, strlen( issuer ) + 1 );
    crypto_generichash_update( &state, (const unsigned char *) subject, strlen( subject ) );
    crypto_generichash_final( &state, hash, sizeof( hash ) );
    for ( int i = 0; i < 8; i++ )
        id = id << 8 | hash[i];
    return id >> 1;
}

static enum identity_result_t identity_read_claims( const cJSON * claims, const struct identity_rules_t * rules,
                                                    double now, struct identity_t * identity )
{
    char number[24];
    const char * issuer = identity_text( claims, "iss" );
    const char * subject = identity_text( claims, "sub" );
    if ( !issuer || !identity_subject_is_good( subject ) )
        return IDENTITY_CLAIMS;
    if ( strcmp( issuer, rules->issuer ) != 0 )
        return IDENTITY_ISSUER;
    enum identity_result_t result = identity_check_audience( claims, rules->audience );
    if ( result == IDENTITY_OK )
        result = identity_check_times( claims, now, rules->leeway_seconds );
    if ( result != IDENTITY_OK )
        return result;
    identity->client_id = identity_client_id( issuer, subject );
    snprintf( identity->subject, sizeof( identity->subject ), "%s", subject );
    snprintf( number, sizeof( number ), "%llu", (unsigned long long) identity->client_id );
    if ( !identity_take_name( identity_text( claims, "name" ), identity->name ) &&
         !identity_take_name( identity_text( claims, "preferred_username" ), identity->name ) )
        identity_take_name( number, identity->name );
    return IDENTITY_OK;
}

/* ---- all of it ---- */

static enum identity_result_t identity_verify_parts( const struct identity_keys_t * keys,
                                                     const struct identity_rules_t * rules, double now,
                                                     const char * token, const struct identity_parts_t * parts,
                                                     struct identity_t * identity )
{
    enum identity_algorithm_t algorithm = IDENTITY_NO_ALGORITHM;
    const char * kid = NULL;
    enum identity_result_t result = identity_read_header( parts->header, &algorithm, &kid );
    if ( result != IDENTITY_OK )
        return result;
    const struct identity_key_t * key = identity_find_key( keys, kid, algorithm );
    if ( !key )
        return IDENTITY_UNKNOWN_KEY;
    return identity_signature_is_good( token, key ) ? identity_read_claims( parts->claims, rules, now, identity )
                                                    : IDENTITY_SIGNATURE;
}

/* IDENTITY_OK and who it is, or why not. No claim is believed before the signature is. */
static enum identity_result_t identity_verify( const struct identity_keys_t * keys,
                                               const struct identity_rules_t * rules, double now, const char * token,
                                               struct identity_t * identity )
{
    struct identity_parts_t parts;
    memset( identity, 0, sizeof( *identity ) );
    if ( strlen( token ) > IDENTITY_TOKEN_BYTES )
        return IDENTITY_TOO_LARGE;
    enum identity_result_t result = IDENTITY_MALFORMED;
    if ( identity_split( token, &parts ) )
        result = identity_verify_parts( keys, rules, now, token, &parts, identity );
    identity_free_parts( &parts );
    if ( result != IDENTITY_OK )
        memset( identity, 0, sizeof( *identity ) );
    return result;
}

#endif
