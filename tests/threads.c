/*  make threads: several server objects, one on each thread, share one port (SO_REUSEPORT) and the players, under ThreadSanitizer. Crowds
    of clients on threads of their own connect, exchange payloads that are checked, leave and come again; some try to be in twice at
    once, some try a token a second time. The servers are strangers to one another, so what must hold for all of them together (a player
    is in once, a token is used once) is kept in common books, by the admit_callback: see `the books` below, which is all it takes.

        threads [SECONDS]

    Passes when nobody was ever in twice, no used token got in, every payload came back as it was sent, every player got in, the books
    are empty at the end, and the sanitizer found nothing. Where ports can not be shared, each server has a port of its own. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHARDS = 4, SLOTS = 64, CROWDS = 4, PLAYERS = 5, RIVALS = 2, CHEATS = 2, GUESTS = PLAYERS + RIVALS + CHEATS };
enum { RIVAL_IDS = 1000, MOST_IDS = RIVAL_IDS + RIVALS, PAYLOADS = 200, MIN_BYTES = 16, TIMEOUT_SECONDS = 2 };
#define PROTOCOL_ID 0x54485245414453u
#define PATIENCE_SECONDS 10.0

/* ---- the books: what all servers agree on, from their admit_callback and connect_disconnect_callback ---- */

enum { TAG_BYTES = 16, USED_TOKENS = 16384, NEIGHBOURS = 32 };

struct used_token_t {
    uint8_t tag[TAG_BYTES];
    uint64_t expire; /* when it may be forgotten, as it is good for nothing any more */
};

static struct {
    pthread_mutex_t lock;
    uint64_t inside[SHARDS * SLOTS];                    /* client ids that have a slot somewhere; 0: none */
    struct used_token_t used[USED_TOKENS + NEIGHBOURS]; /* found by the tag, which is as good as random */
    int refused_ids;
    int refused_tokens;
} books = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The place of an id; of 0: a free place. NULL where there is none. */
static uint64_t * books_find( uint64_t id )
{
    for ( int i = 0; i < SHARDS * SLOTS; i++ )
        if ( books.inside[i] == id )
            return &books.inside[i];
    return NULL;
}

/* A place to remember the token in. NULL where it was used, or where there is no place. */
static struct used_token_t * books_place( const uint8_t * tag )
{
    struct used_token_t * free_place = NULL;
    struct used_token_t * at = &books.used[( tag[0] | (unsigned) tag[1] << 8 ) % USED_TOKENS];
    uint64_t now = (uint64_t) time( NULL );
    for ( int i = 0; i < NEIGHBOURS; i++, at++ ) {
        if ( at->expire > now && memcmp( at->tag, tag, TAG_BYTES ) == 0 )
            return NULL;
        if ( at->expire <= now && !free_place )
            free_place = at;
    }
    return free_place;
}

static int admit( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    (void) context;
    pthread_mutex_lock( &books.lock );
    uint64_t * place = books_find( client_id ) ? NULL : books_find( 0 );
    struct used_token_t * token = books_place( token_tag );
    int admitted = place && token;
    if ( admitted ) {
        *place = client_id;
        memcpy( token->tag, token_tag, TAG_BYTES );
        token->expire = expire_timestamp;
    }
    books.refused_ids += !place;
    books.refused_tokens += place && !token;
    pthread_mutex_unlock( &books.lock );
    return admitted;
}

static void let_go( uint64_t client_id )
{
    pthread_mutex_lock( &books.lock );
    uint64_t * place = books_find( client_id );
    if ( place )
        *place = 0;
    pthread_mutex_unlock( &books.lock );
}

/* ---- the witness, who counts for himself ---- */

static struct {
    pthread_mutex_t lock;
    int inside[MOST_IDS];
    int twice; /* times that somebody was in more than once */
    int over;
} witness = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void witness_count( uint64_t id, int connected )
{
    pthread_mutex_lock( &witness.lock );
    witness.inside[id % MOST_IDS] += connected ? 1 : -1;
    witness.twice += witness.inside[id % MOST_IDS] > 1;
    pthread_mutex_unlock( &witness.lock );
}

static int is_over( void )
{
    pthread_mutex_lock( &witness.lock );
    int over = witness.over;
    pthread_mutex_unlock( &witness.lock );
    return over;
}

/* ---- payloads: who sends it and its number, then bytes that follow from these ---- */

static uint64_t mix( uint64_t x )
{
    x += 0x9e3779b97f4a7c15u;
    x = ( x ^ ( x >> 30 ) ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ ( x >> 27 ) ) * 0x94d049bb133111ebu;
    return x ^ ( x >> 31 );
}

static int payload_make( uint8_t * data, uint64_t id, uint64_t number )
{
    uint64_t head[2] = { id, number }, seed = mix( id << 32 ^ number );
    int bytes = MIN_BYTES + (int) ( seed % ( NETCODE_MAX_PACKET_SIZE - MIN_BYTES + 1 ) );
    memcpy( data, head, sizeof( head ) );
    for ( int i = MIN_BYTES; i < bytes; i++ )
        data[i] = (uint8_t) ( seed >> ( 8 * ( i % 8 ) ) ^ (uint64_t) i );
    return bytes;
}

/* Its number, or UINT64_MAX where it is not as it was sent. */
static uint64_t payload_read( const uint8_t * data, int bytes, uint64_t id )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    uint64_t head[2];
    if ( bytes < MIN_BYTES )
        return UINT64_MAX;
    memcpy( head, data, sizeof( head ) );
    if ( head[0] != id || payload_make( expected, id, head[1] ) != bytes ||
         memcmp( expected, data, (size_t) bytes ) != 0 )
        return UINT64_MAX;
    return head[1];
}

/* ---- a shard: one server on its own thread ---- */

struct shard_t {
    pthread_t thread;
    struct netcode_server_t * server;
    char address[64]; /* what tokens call it */
    struct netcode_server_stats_t stats;
    uint64_t wrong;
};

static uint8_t private_key[NETCODE_KEY_BYTES];
static struct shard_t shards[SHARDS];
static int port_is_shared;

static void came_or_left( void * context, int client_index, int connected )
{
    struct shard_t * shard = (struct shard_t *) context;
    uint64_t id = netcode_server_client_id( shard->server, client_index );
    witness_count( id, connected );
    if ( !connected )
        let_go( id );
}

/* Every payload goes back to whom it came from. */
static void shard_serve( struct shard_t * shard )
{
    struct netcode_event_t event;
    while ( netcode_server_next_event( shard->server, &event ) ) {
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        shard->wrong += payload_read( event.data, event.bytes, event.client_id ) == UINT64_MAX;
        netcode_server_send_packet_to_session( shard->server, event.client_index, event.session, event.data,
                                               event.bytes );
        netcode_server_free_packet( shard->server, event.data );
    }
}

static void * shard_run( void * context )
{
    struct shard_t * shard = (struct shard_t *) context;
    while ( !is_over() ) {
        netcode_server_update( shard->server, netcode_time() );
        shard_serve( shard );
        netcode_server_wait( shard->server, 0.005 );
    }
    netcode_server_stats( shard->server, &shard->stats );
    netcode_server_destroy( shard->server );
    return NULL;
}

static struct netcode_server_t * shard_create( struct shard_t * shard, const char * address, int share_port )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.protocol_id = PROTOCOL_ID;
    memcpy( config.private_key, private_key, NETCODE_KEY_BYTES );
    config.callback_context = shard;
    config.connect_disconnect_callback = came_or_left;
    config.admit_callback = admit;
    config.bind_address = "127.0.0.1";
    config.share_port = share_port;
    config.batch_sends = 1;
    return netcode_server_create( address, &config, netcode_time() );
}

static void shards_destroy( int count )
{
    while ( count-- > 0 )
        netcode_server_destroy( shards[count].server );
}

/* All at the first one's port, or each at its own. Returns whether all are there. */
static int shards_open( int share_port )
{
    for ( int i = 0; i < SHARDS; i++ ) {
        struct shard_t * shard = &shards[i];
        const char * address = share_port && i > 0 ? shards[0].address : "127.0.0.1:0";
        shard->server = shard_create( shard, address, share_port );
        if ( !shard->server ) {
            shards_destroy( i );
            return 0;
        }
        snprintf( shard->address, sizeof( shard->address ), "127.0.0.1:%d", netcode_server_get_port( shard->server ) );
        netcode_server_start( shard->server, SLOTS );
    }
    return 1;
}

/* ---- a crowd: many clients on one thread ---- */

/* A player is alone with its id. A rival has a twin in every crowd. A cheat tries each of its tokens twice. */
enum { PLAYER, RIVAL, CHEAT };
enum { AWAY, COMING, TALKING };

struct guest_t {
    struct netcode_client_t * client;
    int kind;
    int phase;
    uint64_t id;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int token_is_spent; /* it was in with it, and has not tried that again */
    int comes_again;    /* it tries that now */
    uint64_t tries;
    uint64_t sessions;
    uint64_t sent; /* in all its sessions, as what follows */
    uint64_t next; /* the lowest number that may come back */
    int left;      /* payloads that this session still waits for */
};

struct crowd_t {
    pthread_t thread;
    struct guest_t guests[GUESTS];
    double end;
    uint64_t payloads;
    uint64_t wrong;
    uint64_t refused;         /* tries that ended without a connection */
    uint64_t lost;            /* sessions that ended before their time */
    uint64_t second_uses;     /* tokens tried again */
    uint64_t second_sessions; /* those that got in */
    int failed;               /* a client could not be made */
};

static struct crowd_t crowds[CROWDS];

static void guest_make( struct guest_t * guest, int crowd, int number )
{
    guest->kind = number < PLAYERS ? PLAYER : number < PLAYERS + RIVALS ? RIVAL : CHEAT;
    guest->id =
        guest->kind == RIVAL ? (uint64_t) ( RIVAL_IDS + number - PLAYERS ) : (uint64_t) ( 1 + crowd * GUESTS + number );
}

/* A new client object has a new port, by which the system chooses its shard. */
static int guest_renew( struct guest_t * guest )
{
    struct netcode_client_config_t config;
    if ( guest->client && guest->kind == PLAYER )
        return 1;
    netcode_client_destroy( guest->client );
    netcode_default_client_config( &config );
    guest->client = netcode_client_create( "127.0.0.1:0", &config, netcode_time() );
    return guest->client != NULL;
}

/* A token for the one address of all servers, or for all of their addresses, beginning with another one each time. */
static int guest_get_token( struct guest_t * guest )
{
    const char * addresses[SHARDS];
    for ( int i = 0; i < SHARDS; i++ )
        addresses[i] = shards[( guest->id + guest->tries + (uint64_t) i ) % SHARDS].address;
    return netcode_generate_connect_token( port_is_shared ? 1 : SHARDS, addresses, addresses, 60, TIMEOUT_SECONDS,
                                           guest->id, PROTOCOL_ID, private_key, NULL, guest->token ) == NETCODE_OK;
}

/* Sets out with a new token, or with one that it has used. */
static void guest_come( struct crowd_t * crowd, struct guest_t * guest )
{
    guest->tries++;
    guest->comes_again = guest->kind == CHEAT && guest->token_is_spent;
    guest->token_is_spent = 0;
    crowd->second_uses += (uint64_t) guest->comes_again;
    if ( !guest_renew( guest ) || ( !guest->comes_again && !guest_get_token( guest ) ) ) {
        crowd->failed = 1;
        return;
    }
    netcode_client_connect( guest->client, guest->token );
    guest->phase = COMING;
}

static void guest_arrive( struct crowd_t * crowd, struct guest_t * guest )
{
    crowd->second_sessions += (uint64_t) guest->comes_again;
    guest->token_is_spent = 1;
    guest->sessions++;
    guest->left = PAYLOADS;
    guest->next = guest->sent;
    guest->phase = TALKING;
}

/* What comes back is what was sent, in its order; then more is said. */
static void guest_talk( struct crowd_t * crowd, struct guest_t * guest )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE], *packet;
    int bytes;
    while ( ( packet = netcode_client_receive_packet( guest->client, &bytes, NULL ) ) != NULL ) {
        uint64_t number = payload_read( packet, bytes, guest->id );
        netcode_client_free_packet( guest->client, packet );
        crowd->wrong += number < guest->next || number >= guest->sent;
        guest->next = number + 1;
        guest->left--;
        crowd->payloads++;
    }
    for ( int i = 0; i < 3 && guest->left > 0; i++, guest->sent++ )
        netcode_client_send_packet( guest->client, data, payload_make( data, guest->id, guest->sent ) );
    if ( guest->left <= 0 ) {
        netcode_client_disconnect( guest->client );
        guest->phase = AWAY;
    }
}

static void guest_step( struct crowd_t * crowd, struct guest_t * guest, double now )
{
    if ( guest->phase == AWAY ) {
        if ( now < crowd->end )
            guest_come( crowd, guest );
        return;
    }
    netcode_client_update( guest->client, now );
    int state = netcode_client_state( guest->client );
    if ( guest->phase == COMING && state == NETCODE_CLIENT_STATE_CONNECTED )
        guest_arrive( crowd, guest );
    if ( guest->phase == TALKING && state == NETCODE_CLIENT_STATE_CONNECTED )
        guest_talk( crowd, guest );
    else if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED ) {
        crowd->refused += guest->phase == COMING;
        crowd->lost += guest->phase == TALKING;
        guest->phase = AWAY;
    }
}

static int crowd_is_away( const struct crowd_t * crowd )
{
    for ( int i = 0; i < GUESTS; i++ )
        if ( crowd->guests[i].phase != AWAY )
            return 0;
    return 1;
}

static void * crowd_run( void * context )
{
    struct crowd_t * crowd = (struct crowd_t *) context;
    double now = netcode_time();
    while ( !crowd->failed && ( now < crowd->end || !crowd_is_away( crowd ) ) && now < crowd->end + PATIENCE_SECONDS ) {
        for ( int i = 0; i < GUESTS && !crowd->failed; i++ )
            guest_step( crowd, &crowd->guests[i], now );
        netcode_sleep( 0.001 );
        now = netcode_time();
    }
    for ( int i = 0; i < GUESTS; i++ )
        netcode_client_destroy( crowd->guests[i].client );
    return NULL;
}

/* ---- the verdict ---- */

static int check( int good, const char * sentence )
{
    if ( !good )
        printf( "FAILED: %s\n", sentence );
    return good;
}

/* Did everybody get in? Of rivals, one of the twins at least. */
static int everybody_joined( void )
{
    uint64_t of_rival[RIVALS] = { 0 };
    int good = 1;
    for ( int c = 0; c < CROWDS; c++ )
        for ( int i = 0; i < GUESTS; i++ ) {
            const struct guest_t * guest = &crowds[c].guests[i];
            if ( guest->kind == RIVAL )
                of_rival[guest->id - RIVAL_IDS] += guest->sessions;
            else
                good = good && guest->sessions > 0;
        }
    for ( int i = 0; i < RIVALS; i++ )
        good = good && of_rival[i] > 0;
    return good;
}

/* Nobody is left in the books, and the witness agrees. */
static int everybody_left( void )
{
    for ( int i = 0; i < SHARDS * SLOTS; i++ )
        if ( books.inside[i] )
            return 0;
    for ( int i = 0; i < MOST_IDS; i++ )
        if ( witness.inside[i] )
            return 0;
    return 1;
}

static int verdict( double seconds )
{
    struct crowd_t sum;
    uint64_t connects = 0, denied = 0, wrong = 0;
    int served = 0;
    memset( &sum, 0, sizeof( sum ) );
    for ( int i = 0; i < CROWDS; i++ ) {
        sum.payloads += crowds[i].payloads;
        sum.wrong += crowds[i].wrong;
        sum.refused += crowds[i].refused;
        sum.lost += crowds[i].lost;
        sum.second_uses += crowds[i].second_uses;
        sum.second_sessions += crowds[i].second_sessions;
        sum.failed |= crowds[i].failed;
    }
    for ( int i = 0; i < SHARDS; i++ ) {
        connects += shards[i].stats.connects;
        denied += shards[i].stats.dropped[NETCODE_DROP_NOT_ADMITTED];
        wrong += shards[i].wrong;
        served += shards[i].stats.connects > 0;
    }
    printf( "%d servers at %s, %d clients on %d threads, %.1f s: %" PRIu64 " sessions, %" PRIu64
            " payloads echoed, %" PRIu64 " wrong; %d times refused for the id, %d times for a used token, %" PRIu64
            " tries in vain, %" PRIu64 " sessions lost; in twice at once: %d times\n",
            SHARDS, port_is_shared ? "one port" : "a port each", CROWDS * GUESTS, CROWDS, seconds, connects,
            sum.payloads, wrong + sum.wrong, books.refused_ids, books.refused_tokens, sum.refused, sum.lost,
            witness.twice );
    int good = check( !sum.failed, "a client or a token could not be made" );
    good &= check( witness.twice == 0, "a player was in twice at once" );
    good &= check( sum.second_sessions == 0, "a used token got in" );
    good &= check( wrong + sum.wrong == 0, "a payload came back changed, twice or out of order" );
    good &= check( sum.payloads > 0 && served == SHARDS, "a server got no client" );
    good &= check( everybody_joined(), "a player never got in" );
    good &= check( everybody_left(), "somebody is still in the books" );
    good &= check( books.refused_ids > 0, "no rival was ever refused for its id" );
    good &= check( sum.second_uses > 0 && books.refused_tokens > 0, "no used token was ever refused by the books" );
    good &= check( denied == (uint64_t) ( books.refused_ids + books.refused_tokens ),
                   "the servers count other refusals than the books" );
    return good;
}

int main( int count, char ** arguments )
{
    double seconds = count > 1 ? atof( arguments[1] ) : 5.0, start;
    int i, c;
    if ( seconds <= 0.0 || netcode_init() != NETCODE_OK ) /* before any thread starts */
        return 2;
    netcode_random_bytes( private_key, sizeof( private_key ) );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    port_is_shared = shards_open( 1 );
    if ( !port_is_shared && !shards_open( 0 ) ) {
        printf( "no server: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 1;
    }
    start = netcode_time();
    for ( i = 0; i < SHARDS; i++ )
        if ( pthread_create( &shards[i].thread, NULL, shard_run, &shards[i] ) != 0 )
            return 2;
    for ( c = 0; c < CROWDS; c++ ) {
        crowds[c].end = start + seconds;
        for ( i = 0; i < GUESTS; i++ )
            guest_make( &crowds[c].guests[i], c, i );
        if ( pthread_create( &crowds[c].thread, NULL, crowd_run, &crowds[c] ) != 0 )
            return 2;
    }
    for ( c = 0; c < CROWDS; c++ )
        pthread_join( crowds[c].thread, NULL );
    netcode_sleep( 0.2 ); /* the last farewells are read */
    pthread_mutex_lock( &witness.lock );
    witness.over = 1;
    pthread_mutex_unlock( &witness.lock );
    for ( i = 0; i < SHARDS; i++ )
        pthread_join( shards[i].thread, NULL );
    seconds = netcode_time() - start;
    netcode_term();
    i = verdict( seconds );
    printf( i ? "threads passed\n" : "threads FAILED\n" );
    return i ? 0 : 1;
}
