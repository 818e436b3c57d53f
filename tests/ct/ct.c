/*  Row 49 of the threats: nothing branches on a secret, and no secret leads into a table, but for one branch: the verdict
    on a tag. Under valgrind's memcheck the private keys, the packet keys and the challenge key are declared undefined; the
    undefinedness follows every value that is made of them, and memcheck reports each branch and each address that depends
    on it. Whole sessions run through a server and its clients meanwhile.

    What is public again is declared defined where it becomes so: what libsodium has sealed, and what it has opened, behind
    the verdict. Around each call that opens, the reports are counted: there must be one, from the verdict, and outside of
    such calls there must be none. The tables' hash key is exempt, and so is the key that sequences start by: what is
    derived from it is sent in clear.

    `make ct` (run.sh) builds and runs it; run.sh --plants puts leaks into a copy of netcode.h. */

#include <valgrind/memcheck.h>

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "tests/test.h"

#include "tests/ledger.h"
#include "tests/world.h"

enum { KEY_BYTES = 32, TAG_BYTES = 16, TOKEN_BYTES = 1024, KINDS = 3 };
enum { PACKET_VERDICT, TOKEN_VERDICT, KEY_VERDICT };

static struct {
    int64_t calls;
    int64_t failures; /* forged ones */
    int64_t secret;   /* calls with a secret key */
    int64_t reports;  /* of memcheck, within */
    int64_t wrong;    /* calls with a secret key and another number of reports than one */
} verdicts[KINDS];

static int64_t random_keys;

/* ---- what is secret ---- */

static int is_secret( const void * data, size_t bytes )
{
    uint8_t bits[64] = { 0 };
    size_t i;
    if ( VALGRIND_GET_VBITS( data, bits, bytes ) != 1 )
        return 0;
    for ( i = 0; i < bytes; i++ )
        if ( bits[i] )
            return 1;
    return 0;
}

static void publish( const void * data, size_t bytes )
{
    (void) VALGRIND_MAKE_MEM_DEFINED( data, bytes );
}

static void hide( const void * data, size_t bytes )
{
    (void) VALGRIND_MAKE_MEM_UNDEFINED( data, bytes );
}

/* The session's keys within an opened private part. Standard: Connect Token */
static void hide_token_keys( const uint8_t * plain )
{
    size_t at = 16;
    uint64_t i, count = get( plain + 12, 4 );
    for ( i = 0; i < count && i < NETCODE_MAX_SERVERS_PER_CONNECT; i++ )
        at += plain[at] == NETCODE_ADDRESS_IPV4 ? 1 + 4 + 2 : 1 + 16 + 2;
    hide( plain + at, 2 * KEY_BYTES );
}

/* Notes a verdict, and returns it as something that is known. */
static int judged( int kind, int secret, int64_t before, int result )
{
    int64_t reports = (int64_t) VALGRIND_COUNT_ERRORS - before;
    publish( &result, sizeof( result ) );
    verdicts[kind].calls++;
    verdicts[kind].failures += result != 0;
    verdicts[kind].secret += secret;
    verdicts[kind].reports += reports;
    verdicts[kind].wrong += reports != secret;
    return result;
}

/* ---- libsodium's calls, wrapped by the linker ---- */

typedef unsigned long long size_of_t;

#define SEAL_ARGUMENTS                                                                                        \
    unsigned char *c, size_of_t *c_bytes, const unsigned char *m, size_of_t m_bytes, const unsigned char *ad, \
        size_of_t ad_bytes, const unsigned char *none, const unsigned char *nonce, const unsigned char *key
#define OPEN_ARGUMENTS                                                                                    \
    unsigned char *m, size_of_t *m_bytes, unsigned char *none, const unsigned char *c, size_of_t c_bytes, \
        const unsigned char *ad, size_of_t ad_bytes, const unsigned char *nonce, const unsigned char *key

int __real_crypto_aead_chacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS );
int __wrap_crypto_aead_chacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS );
int __real_crypto_aead_xchacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS );
int __wrap_crypto_aead_xchacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS );
int __real_crypto_aead_chacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS );
int __wrap_crypto_aead_chacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS );
int __real_crypto_aead_xchacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS );
int __wrap_crypto_aead_xchacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS );
int __real_sodium_memcmp( const void * a, const void * b, size_t bytes );
int __wrap_sodium_memcmp( const void * a, const void * b, size_t bytes );
void __real_randombytes_buf( void * data, size_t bytes );
void __wrap_randombytes_buf( void * data, size_t bytes );

int __wrap_crypto_aead_chacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS )
{
    int result =
        __real_crypto_aead_chacha20poly1305_ietf_encrypt( c, c_bytes, m, m_bytes, ad, ad_bytes, none, nonce, key );
    publish( c, (size_t) m_bytes + TAG_BYTES );
    return result;
}

int __wrap_crypto_aead_xchacha20poly1305_ietf_encrypt( SEAL_ARGUMENTS )
{
    int result =
        __real_crypto_aead_xchacha20poly1305_ietf_encrypt( c, c_bytes, m, m_bytes, ad, ad_bytes, none, nonce, key );
    publish( c, (size_t) m_bytes + TAG_BYTES );
    return result;
}

/* Without a place for the body, libsodium returns the verdict and does not branch on it. */
int __wrap_crypto_aead_chacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS )
{
    int secret = m != NULL && is_secret( key, KEY_BYTES );
    int64_t before = (int64_t) VALGRIND_COUNT_ERRORS;
    int result =
        __real_crypto_aead_chacha20poly1305_ietf_decrypt( m, m_bytes, none, c, c_bytes, ad, ad_bytes, nonce, key );
    result = judged( PACKET_VERDICT, secret, before, result );
    if ( m )
        publish( m, (size_t) c_bytes - TAG_BYTES );
    return result;
}

int __wrap_crypto_aead_xchacha20poly1305_ietf_decrypt( OPEN_ARGUMENTS )
{
    int secret = is_secret( key, KEY_BYTES );
    int64_t before = (int64_t) VALGRIND_COUNT_ERRORS;
    int result =
        __real_crypto_aead_xchacha20poly1305_ietf_decrypt( m, m_bytes, none, c, c_bytes, ad, ad_bytes, nonce, key );
    result = judged( TOKEN_VERDICT, secret, before, result );
    publish( m, (size_t) c_bytes - TAG_BYTES );
    if ( result == 0 )
        hide_token_keys( m );
    return result;
}

/*  Whether two private keys are the same is asked when the application replaces them. libsodium branches on nothing
    then; the caller acts on the one bit that comes out. */
int __wrap_sodium_memcmp( const void * a, const void * b, size_t bytes )
{
    int64_t before = (int64_t) VALGRIND_COUNT_ERRORS;
    int secret = is_secret( a, bytes ) || is_secret( b, bytes );
    int result = __real_sodium_memcmp( a, b, bytes );
    publish( &result, sizeof( result ) );
    verdicts[KEY_VERDICT].calls++;
    verdicts[KEY_VERDICT].failures += result != 0;
    verdicts[KEY_VERDICT].secret += secret;
    verdicts[KEY_VERDICT].reports += (int64_t) VALGRIND_COUNT_ERRORS - before;
    return result;
}

/* What is random and as long as a key is one: packet keys and challenge keys. */
void __wrap_randombytes_buf( void * data, size_t bytes )
{
    __real_randombytes_buf( data, bytes );
    if ( bytes == KEY_BYTES ) {
        hide( data, bytes );
        random_keys++;
    }
}

/* ---- sessions ---- */

static const char * const server_names[] = { "10.0.0.1:40000" };

static struct world_t * secret_world( int slots, int clients )
{
    struct world_t * w = world_new( CLEAN );
    hide( w->server_config.private_key, KEY_BYTES );
    w->server_config.replace_existing_clients = w->server_config.roaming = 1;
    world_add_server( w, slots );
    while ( clients-- > 0 )
        world_add_client( w );
    CHECK( is_secret( w->servers[0]->handshakes.private_keys[0], KEY_BYTES ) );
    CHECK( is_secret( w->servers[0]->handshakes.challenge_key, KEY_BYTES ) );
    return w;
}

/* The library mints the token, under a secret key and with secret keys in it. */
static void secret_connect( struct world_t * w, int client, uint64_t client_id )
{
    const char * names[1];
    names[0] = server_names[0];
    REQUIRE_EQ( netcode_generate_connect_token( 1, names, names, 30, WORLD_TIMEOUT, client_id, WORLD_PROTOCOL,
                                                w->server_config.private_key, NULL, w->tokens[client] ),
                NETCODE_OK );
    netcode_client_connect( w->clients[client], w->tokens[client] );
    CHECK( is_secret( w->clients[client]->token.route.client_to_server_key, KEY_BYTES ) );
    CHECK( is_secret( w->clients[client]->token.route.server_to_client_key, KEY_BYTES ) );
}

static void secret_join( struct world_t * w, int client, uint64_t client_id )
{
    int slot;
    secret_connect( w, client, client_id );
    REQUIRE( world_until( w, client, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    world_run( w, 0.3 );
    slot = world_slot( w, 0, client_id );
    REQUIRE( slot >= 0 );
    CHECK( is_secret( w->servers[0]->memory.slot[slot].client_to_server_key, KEY_BYTES ) );
    CHECK( is_secret( w->servers[0]->memory.slot[slot].server_to_client_key, KEY_BYTES ) );
}

/* Every datagram so far comes again with one bit changed: at the head, in the body, in the tag. */
static void forge( struct world_t * w )
{
    int i, place, count = w->records.count;
    for ( i = 0; i < count; i++ )
        for ( place = 0; place < 3; place++ ) {
            struct world_datagram_t d = w->records.items[i];
            uint8_t data[2048];
            int at = place == 0 ? 0 : place == 1 ? d.bytes / 2 : d.bytes - 1;
            if ( d.injected || !world_find_socket( w, &d.to ) )
                continue;
            memcpy( data, d.data, (size_t) d.bytes );
            data[at] ^= 1;
            world_inject( w, &d.from, &d.to, data, d.bytes );
        }
    world_run( w, 0.1 );
}

TEST( a_session )
{
    struct world_t * w = secret_world( 2, 2 );
    int i;
    secret_join( w, 0, 1 );
    secret_join( w, 1, 2 );
    for ( i = 1; i < 10; i++ ) {
        client_send( w, 0, i * 100, i );
        server_send( w, 0, 0, i * 100, i );
        world_run( w, 0.05 );
    }
    CHECK_EQ( client_drain( w, 0 ), 9 );
    CHECK_EQ( server_drain( w, 0, 0 ), 9 );
    world_run( w, 1.0 );
    netcode_client_disconnect( w->clients[0] );
    netcode_server_disconnect_client( w->servers[0], world_slot( w, 0, 2 ) );
    world_run( w, 0.3 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_client_state( w->clients[1] ), NETCODE_CLIENT_STATE_DISCONNECTED );
}

TEST( a_client_that_moves )
{
    struct world_t * w = secret_world( 2, 2 );
    secret_join( w, 0, 1 );
    secret_join( w, 1, 2 );
    world_move( w, 0, "10.9.0.1:777", 0 );
    client_send( w, 0, 100, 1 );
    forge( w );
    world_run( w, 2.5 );
    CHECK_EQ( server_stats( w, 0 ).moves, 1 );
    CHECK_GE( server_stats( w, 0 ).trials, 2 );
    CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 1 ) ), 1 );
}

TEST( forged_packets )
{
    struct world_t * w = secret_world( 2, 1 );
    secret_connect( w, 0, 1 );
    world_run( w, 0.02 );
    forge( w ); /* in the midst of the handshake */
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    client_send( w, 0, 100, 1 );
    server_send( w, 0, world_slot( w, 0, 1 ), 100, 1 );
    world_run( w, 0.3 );
    client_send( w, 0, 100, 2 ); /* the forgeries of these arrive before they do */
    server_send( w, 0, world_slot( w, 0, 1 ), 100, 2 );
    forge( w );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 2 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), 1 );
    CHECK_GE( client_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 2 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/* A response with a damaged challenge inside, sealed as it should be: the challenge's own tag decides. */
static int damaged;

static int damage_challenge( struct world_t * w, const struct world_datagram_t * d )
{
    (void) d;
    if ( netcode_client_state( w->clients[0] ) == NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE && !damaged++ )
        return 1;
    return 0;
}

TEST( a_forged_challenge )
{
    struct world_t * w = secret_world( 1, 1 );
    damaged = 0;
    w->hook = damage_challenge;
    secret_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 5.0 ) );
    w->clients[0]->challenge[100] ^= 1;
    world_run( w, 0.5 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_AUTHENTIC ), 1 );
    w->clients[0]->challenge[100] ^= 1;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
}

TEST( a_denial )
{
    struct world_t * w = secret_world( 1, 2 );
    secret_join( w, 0, 1 );
    secret_connect( w, 1, 2 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 5.0 ) );
}

TEST( a_takeover )
{
    struct world_t * w = secret_world( 1, 2 );
    secret_join( w, 0, 1 );
    secret_join( w, 1, 1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
}

TEST( a_restart )
{
    struct world_t * w = secret_world( 2, 2 );
    secret_join( w, 0, 1 );
    netcode_server_start( w->servers[0], 3 );
    world_run( w, 0.3 );
    CHECK( is_secret( w->servers[0]->handshakes.challenge_key, KEY_BYTES ) );
    secret_join( w, 1, 2 );
    netcode_server_stop( w->servers[0] );
}

/*  A message's content is as secret as a key until it is sealed: it is copied, split into fragments and sent again after a
    loss, and none of that branches on it. */
TEST( messages_of_secrets )
{
    enum { LETTER_BYTES = 200, MAP_BYTES = 20000 };
    static uint8_t map[MAP_BYTES], letter[LETTER_BYTES];
    struct world_t * w = secret_world( 2, 1 );
    struct netcode_messages_t * ends[2];
    struct netcode_messages_config_t config;
    struct netcode_message_t message;
    int i, arrived = 0;
    secret_join( w, 0, 1 );
    netcode_default_messages_config( &config );
    config.max_message_bytes = 65536;
    for ( i = 0; i < 2; i++ ) {
        ends[i] = netcode_messages_create( &config, w->time );
        REQUIRE( ends[i] != NULL );
    }
    payload_fill( map, MAP_BYTES, 1 );
    payload_fill( letter, LETTER_BYTES, 2 );
    hide( map, MAP_BYTES );
    hide( letter, LETTER_BYTES );
    for ( i = 0; i < 300 && arrived < 2; i++ ) {
        netcode_messages_pull_from_server( ends[1], w->servers[0], 0, w->time );
        netcode_messages_pull_from_client( ends[0], w->clients[0], w->time );
        if ( i == 10 ) {
            REQUIRE_EQ( netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, letter, LETTER_BYTES ),
                        NETCODE_OK );
            REQUIRE_EQ( netcode_messages_send( ends[0], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, map, MAP_BYTES ),
                        NETCODE_OK );
            CHECK( is_secret( nc_message_data( nc_message_at( ends[0], ends[0]->reliable.head ) ), 64 ) );
        }
        w->cut_types = i >= 12 && i < 16 ? 1u << NETCODE_PACKET_PAYLOAD : 0;
        netcode_messages_push_to_client( ends[0], w->clients[0], w->time );
        netcode_messages_push_to_server( ends[1], w->servers[0], 0, w->time );
        world_step( w );
        while ( netcode_messages_receive( ends[1], &message ) ) {
            publish( letter, LETTER_BYTES );
            publish( map, MAP_BYTES );
            CHECK_EQ( message.bytes, arrived ? MAP_BYTES : LETTER_BYTES );
            CHECK( memcmp( message.data, arrived ? map : letter, (size_t) message.bytes ) == 0 );
            hide( letter, LETTER_BYTES );
            hide( map, MAP_BYTES );
            arrived++;
        }
    }
    CHECK_EQ( arrived, 2 );
    for ( i = 0; i < 2; i++ )
        netcode_messages_destroy( ends[i] );
}

/* Handshakes stand meanwhile, so that old and new keys are compared. */
TEST( private_keys_are_replaced )
{
    struct world_t * w = secret_world( 2, 2 );
    uint8_t keys[2][KEY_BYTES];
    int64_t compared = verdicts[KEY_VERDICT].secret;
    netcode_random_bytes( keys[0], KEY_BYTES );
    memcpy( keys[1], w->server_config.private_key, KEY_BYTES );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    secret_connect( w, 0, 1 );
    world_run( w, 0.3 );
    REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[0], 2 ), NETCODE_OK );
    w->cut_types = 0;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    secret_join( w, 1, 2 ); /* its token is sealed under the second key: both are tried */
    CHECK_GE( verdicts[KEY_VERDICT].secret, compared + 2 );
}

/* ---- the runner ---- */

static void test_begin( uint64_t seed )
{
    world_begin_test( seed );
}

static void test_end( void )
{
    world_close_all();
}

static int verdict_line( int kind, const char * title )
{
    printf( "%-34s %6" PRId64 " calls, %4" PRId64 " refused, %6" PRId64 " with a secret key: %6" PRId64 " reports\n",
            title, verdicts[kind].calls, verdicts[kind].failures, verdicts[kind].secret, verdicts[kind].reports );
    return verdicts[kind].secret == 0 || verdicts[kind].wrong != 0;
}

int main( int count, char ** arguments )
{
    int64_t elsewhere;
    int failed;
    if ( !RUNNING_ON_VALGRIND ) {
        printf( "without valgrind this shows nothing\n" );
        return 2;
    }
    randombytes_set_implementation( &ledger_random_source );
    if ( netcode_init() != NETCODE_OK )
        return 2;
    failed = test_main( count, arguments );
    elsewhere = (int64_t) VALGRIND_COUNT_ERRORS - verdicts[PACKET_VERDICT].reports - verdicts[TOKEN_VERDICT].reports;
    printf( "%" PRId64 " keys were drawn at random and declared secret\n", random_keys );
    failed |= verdict_line( PACKET_VERDICT, "packets and challenges opened:" );
    failed |= verdict_line( TOKEN_VERDICT, "connect tokens opened:" );
    failed |= verdict_line( KEY_VERDICT, "comparisons in constant time:" );
    printf( "reports elsewhere: %" PRId64 "\n", elsewhere );
    netcode_term();
    return failed || elsewhere != 0;
}
