/*  make threads: several server objects, one on each thread, share one port (SO_REUSEPORT) and the players, under ThreadSanitizer. Crowds
    of clients on threads of their own connect, exchange payloads that are checked, leave and come again; some try to be in twice at
    once, some try a token a second time. The servers share nothing, so what must hold for all of them together (a
    player is in once, a token is used once) is kept in common books, by the admit_callback: see `the books` below,
    which is all it takes.

        threads [SECONDS]

    Passes when no player was ever in twice, no used token got in, every payload came back as it was sent, every player
    had a whole session, the books are empty at the end, and the sanitizer found nothing. Where ports can not be shared,
    each server has a port of its own; on Linux that is a failure.

    Then a group of two servers that know of each other becomes one of three and again of two, while a thousand clients are connected, and
    some of them change their port: see `the group`. No player may be lost. SECONDS is for the first part; the second
    takes some 15 s.

    All of it is one process: where that stands still, all ends do. So nothing is judged by a time, what has to happen is waited for, and no
    session ends by such a pause, since it moves the clocks of all ends by 20 ms only. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SHARDS = 4, SLOTS = 64, CROWDS = 4, PLAYERS = 5, RIVALS = 2, CHEATS = 2, GUESTS = PLAYERS + RIVALS + CHEATS };
enum { RIVAL_IDS = 1000, MOST_IDS = RIVAL_IDS + RIVALS, PAYLOADS = 200, MIN_BYTES = 16, TIMEOUT_SECONDS = 2 };
#define PROTOCOL_ID 0x54485245414453u
#define LIMIT_SECONDS 60.0 /* for what has to happen */

/*  The clock of a thread: the real one, in which a pause is 20 ms. After a longer one each client would think that its path is gone, or its
    server. */
struct steady_t {
    double time, last;
};

static double steady_time( struct steady_t * it )
{
    double now = netcode_time(), step = now - it->last;
    it->time = it->last > 0.0 ? it->time + ( step < 0.02 ? step : 0.02 ) : now;
    it->last = now;
    return it->time;
}

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

/* The entry of an id; of 0: a free entry. NULL where there is none. */
static uint64_t * books_find( uint64_t id )
{
    for ( int i = 0; i < SHARDS * SLOTS; i++ )
        if ( books.inside[i] == id )
            return &books.inside[i];
    return NULL;
}

/* An entry to remember the token in. NULL where it was used, or where there is no entry. */
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

/* Have they refused both an id and a token? */
static int books_have_refused( void )
{
    pthread_mutex_lock( &books.lock );
    int both = books.refused_ids > 0 && books.refused_tokens > 0;
    pthread_mutex_unlock( &books.lock );
    return both;
}

static void let_go( uint64_t client_id )
{
    pthread_mutex_lock( &books.lock );
    uint64_t * place = books_find( client_id );
    if ( place )
        *place = 0;
    pthread_mutex_unlock( &books.lock );
}

/* ---- the witness, which counts for itself ---- */

static struct {
    pthread_mutex_t lock;
    int inside[MOST_IDS];
    int twice; /* times that a player was in more than once */
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

/* ---- payloads: the sender and its number, then bytes that follow from these ---- */

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

/* Every payload goes back to its sender. */
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
    struct steady_t clock = { 0.0, 0.0 };
    while ( !is_over() ) {
        netcode_server_update( shard->server, steady_time( &clock ) );
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
    config.events = 1;
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
    uint64_t sessions; /* that it has finished */
    uint64_t sent;     /* in all its sessions, as what follows */
    uint64_t next;     /* the lowest number that may come back */
    int left;          /* payloads that this session still waits for */
};

struct crowd_t {
    pthread_t thread;
    struct guest_t guests[GUESTS];
    double end;  /* when nobody comes any more */
    int is_over; /* and everything that it is for has happened */
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
        guest->sessions++;
        netcode_client_disconnect( guest->client );
        guest->phase = AWAY;
    }
}

static void guest_step( struct crowd_t * crowd, struct guest_t * guest, double now )
{
    if ( guest->phase == AWAY ) {
        if ( !crowd->is_over )
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

/* Its time is over, everybody has finished a session, and the books have refused what they have to. */
static int crowd_is_over( const struct crowd_t * crowd )
{
    int all = netcode_time() >= crowd->end && books_have_refused();
    for ( int i = 0; i < GUESTS && all; i++ )
        all = crowd->guests[i].sessions > 0;
    return all;
}

static void * crowd_run( void * context )
{
    struct crowd_t * crowd = (struct crowd_t *) context;
    struct steady_t clock = { 0.0, 0.0 };
    while ( !crowd->failed && !( crowd->is_over && crowd_is_away( crowd ) ) &&
            netcode_time() < crowd->end + LIMIT_SECONDS ) {
        double now = steady_time( &clock );
        for ( int i = 0; i < GUESTS && !crowd->failed; i++ )
            guest_step( crowd, &crowd->guests[i], now );
        crowd->is_over = crowd->is_over || crowd_is_over( crowd );
        netcode_sleep( 0.001 );
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

/* Has everybody finished a session? Of rivals, one of the twins at least. */
static int everybody_finished( void )
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

/* No player is left in the books, and the witness agrees. */
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
    good &= check( sum.lost == 0, "a session ended before its time" );
    good &= check( everybody_finished(), "a player never had all of its payloads back" );
    good &= check( everybody_left(), "a player is still in the books" );
    good &= check( books.refused_ids > 0, "no rival was ever refused for its id" );
    good &= check( sum.second_uses > 0 && books.refused_tokens > 0, "no used token was ever refused by the books" );
    good &= check( denied == (uint64_t) ( books.refused_ids + books.refused_tokens ),
                   "the servers count other refusals than the books" );
    return good;
}

/*  ---- the group: servers on one port, whose number changes while a thousand clients are connected ----
A third server joins, and the system leads a part of the clients to it, which are unknown there; it leaves again. Some clients take a new
port in each of the three phases, and the system leads half of them or more to another server. A server hands each stray to the others:
it is copied into their rings, and each reads its own on its own thread. A stray from a ring goes no further. */

enum { MEMBERS = 3, BAND = 500, BANDS = 2, RING = 1024, RATE = 4, GROUP_TIMEOUT_SECONDS = 300 };
enum { ROAMERS_IN = 5, ROAMERS = BAND * BANDS / ROAMERS_IN };
/* Clients whose turn it is together: after a pause all have something to send, more than a socket's buffer holds. */
enum { TURN = 50 };
#define PHASE_SECONDS 4.0

struct stray_t {
    struct netcode_address_t from;
    int bytes;
    uint8_t data[NETCODE_MAX_PACKET_SIZE + 64];
};

struct ring_t {
    pthread_mutex_t lock;
    int is_open;
    unsigned first, count;
    uint64_t refused; /* strays for which there was no entry */
    struct stray_t strays[RING];
};

struct member_t {
    pthread_t thread;
    struct netcode_server_t * server;
    struct ring_t ring;
    int is_from_ring; /* what is being processed */
    uint64_t handed, taken, moved_from_ring, wrong;
    struct netcode_server_stats_t stats;
};

static struct member_t members[MEMBERS];

static int ring_put( struct ring_t * ring, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    pthread_mutex_lock( &ring->lock );
    int has_place = ring->is_open && ring->count < RING && bytes <= (int) sizeof( ring->strays[0].data );
    if ( has_place ) {
        struct stray_t * stray = &ring->strays[( ring->first + ring->count++ ) % RING];
        stray->from = *from;
        stray->bytes = bytes;
        memcpy( stray->data, data, (size_t) bytes );
    } else
        ring->refused += (uint64_t) ring->is_open;
    pthread_mutex_unlock( &ring->lock );
    return has_place;
}

static int ring_take( struct ring_t * ring, struct stray_t * stray )
{
    pthread_mutex_lock( &ring->lock );
    int is_there = ring->count > 0;
    if ( is_there ) {
        *stray = ring->strays[ring->first];
        ring->first = ( ring->first + 1 ) % RING;
        ring->count--;
    }
    pthread_mutex_unlock( &ring->lock );
    return is_there;
}

static void ring_open( struct ring_t * ring, int open )
{
    pthread_mutex_lock( &ring->lock );
    ring->is_open = open;
    pthread_mutex_unlock( &ring->lock );
}

static int ring_is_open( struct ring_t * ring )
{
    pthread_mutex_lock( &ring->lock );
    int open = ring->is_open;
    pthread_mutex_unlock( &ring->lock );
    return open;
}

static int member_on_stray( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    struct member_t * member = (struct member_t *) context;
    int taken = 0;
    for ( int i = 0; i < MEMBERS && !member->is_from_ring; i++ )
        if ( &members[i] != member )
            taken |= ring_put( &members[i].ring, from, data, bytes );
    member->handed += (uint64_t) taken;
    return taken;
}

static void member_take_strays( struct member_t * member )
{
    struct stray_t stray;
    struct netcode_server_stats_t before, after;
    netcode_server_stats( member->server, &before );
    member->is_from_ring = 1;
    for ( int i = 0; i < RING && ring_take( &member->ring, &stray ); i++, member->taken++ )
        netcode_server_process_packet( member->server, &stray.from, stray.data, stray.bytes );
    member->is_from_ring = 0;
    netcode_server_stats( member->server, &after );
    member->moved_from_ring += after.moves - before.moves;
}

/* Until its ring is closed. Every payload goes back to its sender. */
static void * member_run( void * context )
{
    struct member_t * member = (struct member_t *) context;
    struct steady_t clock = { 0.0, 0.0 };
    while ( ring_is_open( &member->ring ) ) {
        struct netcode_event_t event;
        netcode_server_update( member->server, steady_time( &clock ) );
        member_take_strays( member );
        while ( netcode_server_next_event( member->server, &event ) ) {
            if ( event.type != NETCODE_EVENT_PAYLOAD )
                continue;
            member->wrong += payload_read( event.data, event.bytes, event.client_id ) == UINT64_MAX;
            netcode_server_send_packet_to_session( member->server, event.client_index, event.session, event.data,
                                                   event.bytes );
            netcode_server_free_packet( member->server, event.data );
        }
        netcode_server_flush( member->server );
        netcode_server_wait( member->server, 0.002 );
    }
    netcode_server_stats( member->server, &member->stats );
    netcode_server_destroy( member->server );
    return NULL;
}

static int member_begin( struct member_t * member, const char * address )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = PROTOCOL_ID;
    memcpy( config.private_key, private_key, NETCODE_KEY_BYTES );
    config.callback_context = member;
    config.bind_address = "127.0.0.1";
    config.share_port = 1;
    config.batch_sends = 1;
    config.roaming = 1;
    config.stray_callback = member_on_stray;
    member->server = netcode_server_create( address, &config, netcode_time() );
    if ( !member->server )
        return 0;
    netcode_server_start( member->server, BAND * BANDS );
    ring_open( &member->ring, 1 );
    return 1;
}

/* It leaves the port, and its thread ends. */
static void member_end( struct member_t * member )
{
    ring_open( &member->ring, 0 );
    pthread_join( member->thread, NULL );
}

/* A client's socket whose rebind takes a new port, as a NAT or another network would give it one. */
struct line_t {
    int handle;
    struct sockaddr_in server;
};

static int line_rebind( void * context )
{
    struct line_t * line = (struct line_t *) context;
    int bytes = 1 << 18, handle = socket( AF_INET, SOCK_DGRAM, 0 );
    if ( handle < 0 || connect( handle, (const struct sockaddr *) &line->server, sizeof( line->server ) ) != 0 ||
         fcntl( handle, F_SETFL, O_NONBLOCK ) != 0 ) {
        if ( handle >= 0 )
            close( handle );
        return 0;
    }
    setsockopt( handle, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof( bytes ) );
    if ( line->handle >= 0 )
        close( line->handle ); /* after the new one is there, so that it has another port */
    line->handle = handle;
    return 1;
}

static int line_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    const struct line_t * line = (const struct line_t *) context;
    int filled = 0;
    while ( filled < count ) {
        struct netcode_datagram_t * it = &datagrams[filled];
        ssize_t bytes = recv( line->handle, it->data, (size_t) it->capacity, 0 );
        if ( bytes < 0 )
            break;
        memset( &it->address, 0, sizeof( it->address ) );
        it->address.type = NETCODE_ADDRESS_IPV4;
        memcpy( it->address.data.ipv4, &line->server.sin_addr, 4 );
        it->address.port = ntohs( line->server.sin_port );
        it->bytes = (int) bytes;
        it->status = NETCODE_DATAGRAM_OK;
        filled++;
    }
    return filled;
}

static int line_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    const struct line_t * line = (const struct line_t *) context;
    int sent = 0;
    for ( int i = 0; i < count; i++ )
        sent += send( line->handle, datagrams[i].data, (size_t) datagrams[i].bytes, 0 ) == datagrams[i].bytes;
    return sent;
}

static void line_close( void * context )
{
    const struct line_t * line = (const struct line_t *) context;
    if ( line->handle >= 0 )
        close( line->handle );
}

struct roamer_t {
    struct netcode_client_t * client;
    struct line_t line;
    uint64_t id, sent, received;
    double next, due; /* when it sends, and when it takes a new port */
    uint64_t since;   /* `sent` when the phase began */
    int unheard;      /* payloads that it has sent since it last received one */
    int ports, moves; /* new ports that it has taken since it was connected; those at which it has heard */
    int phase, heard; /* that it has seen begin; the last in which it had an answer to what it said in it */
};

struct band_t {
    pthread_t thread;
    struct roamer_t roamers[BAND];
    uint64_t first_id, wrong, ports, sent, received;
    int most_unheard;
    int lost, failed;
};

static struct band_t bands[BANDS];

struct stage_t {
    int connected;    /* clients, of all bands */
    int heard, moves; /* of these: in this phase, and in all */
    int phase;        /* 0: not all are connected; 1 to 3 */
    int over;
};

static pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stage_t stage;

/* Adds what a band has seen in this phase. Returns how it stands. */
static struct stage_t stage_add( const struct stage_t * more )
{
    pthread_mutex_lock( &stage_lock );
    stage.connected += more->connected;
    stage.heard += more->phase == stage.phase ? more->heard : 0;
    stage.moves += more->moves;
    struct stage_t now = stage;
    pthread_mutex_unlock( &stage_lock );
    return now;
}

static int roamer_begin( struct roamer_t * roamer, int port )
{
    struct netcode_client_config_t config;
    struct netcode_socket_t line;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char text[64];
    const char * address[1] = { text };
    snprintf( text, sizeof( text ), "127.0.0.1:%d", port );
    roamer->line.handle = -1;
    roamer->line.server.sin_family = AF_INET;
    roamer->line.server.sin_port = htons( (uint16_t) port );
    roamer->line.server.sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    memset( &line, 0, sizeof( line ) );
    line.context = &roamer->line;
    line.receive = line_receive;
    line.send = line_send;
    line.close = line_close;
    line.rebind = line_rebind;
    netcode_default_client_config( &config );
    config.socket = &line;
    config.packet_pool_buffers = 64;
    if ( !line_rebind( &roamer->line ) ||
         ( roamer->client = netcode_client_create( "127.0.0.1", &config, netcode_time() ) ) == NULL ||
         netcode_generate_connect_token( 1, address, address, 60, GROUP_TIMEOUT_SECONDS, roamer->id, PROTOCOL_ID,
                                         private_key, NULL, token ) != NETCODE_OK )
        return 0;
    netcode_client_connect( roamer->client, token );
    return 1;
}

static void roamer_hear( struct band_t * band, struct roamer_t * roamer, struct stage_t * seen )
{
    uint8_t * packet;
    int bytes;
    while ( ( packet = netcode_client_receive_packet( roamer->client, &bytes, NULL ) ) != NULL ) {
        uint64_t number = payload_read( packet, bytes, roamer->id );
        netcode_client_free_packet( roamer->client, packet );
        band->wrong += number >= roamer->sent;
        roamer->received++;
        roamer->unheard = 0;
        seen->moves += roamer->moves < roamer->ports;
        roamer->moves = roamer->ports;
        seen->heard += number >= roamer->since && roamer->heard < roamer->phase;
        roamer->heard = number >= roamer->since ? roamer->phase : roamer->heard;
    }
}

/* What it has seen is added to `seen`, which has the phase that `at` has. */
static void roamer_talk( struct band_t * band, struct roamer_t * roamer, double now, const struct stage_t * at,
                         struct stage_t * seen )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    if ( roamer->phase != at->phase ) {
        roamer->phase = at->phase;
        roamer->since = roamer->sent;
        /* In the middle of each phase, not all at once. */
        roamer->due = now + PHASE_SECONDS * ( 0.3 + 0.4 * (double) ( roamer->id % 97 ) / 97.0 );
    }
    roamer_hear( band, roamer, seen );
    if ( now >= roamer->next ) {
        roamer->next = now + 1.0 / RATE;
        netcode_client_send_packet( roamer->client, data, payload_make( data, roamer->id, roamer->sent++ ) );
        roamer->unheard++;
    }
    if ( at->phase > 0 && roamer->unheard > band->most_unheard )
        band->most_unheard = roamer->unheard;
    if ( roamer->id % ROAMERS_IN == 0 && roamer->ports < at->phase && now >= roamer->due ) {
        roamer->ports++;
        netcode_client_rebind( roamer->client );
    }
}

static void * band_run( void * context )
{
    struct band_t * band = (struct band_t *) context;
    struct stage_t at = { .phase = 0 };
    struct steady_t clock = { 0.0, 0.0 };
    int is_lost[BAND] = { 0 }, is_in[BAND] = { 0 };
    for ( int first = 0; !at.over; first = ( first + TURN ) % BAND ) {
        struct stage_t seen = { .phase = at.phase };
        double now = steady_time( &clock );
        for ( int i = first; i < first + TURN; i++ ) {
            struct roamer_t * roamer = &band->roamers[i];
            netcode_client_update( roamer->client, now );
            int state = netcode_client_state( roamer->client );
            if ( state == NETCODE_CLIENT_STATE_CONNECTED ) {
                seen.connected += !is_in[i];
                is_in[i] = 1;
                roamer_talk( band, roamer, now, &at, &seen );
            } else if ( state <= NETCODE_CLIENT_STATE_DISCONNECTED )
                is_lost[i] = 1;
        }
        at = stage_add( &seen );
        netcode_sleep( 0.001 );
    }
    for ( int i = 0; i < BAND; i++ ) {
        band->lost += is_lost[i] || !is_in[i];
        band->ports += (uint64_t) band->roamers[i].ports;
        band->sent += band->roamers[i].sent;
        band->received += band->roamers[i].received;
        netcode_client_destroy( band->roamers[i].client );
    }
    return NULL;
}

/* Waits until so many are connected, so many of them have heard something in this phase, and so many moves are done. */
static int stage_reaches( int connected, int heard, int moves )
{
    static const struct stage_t nothing = { .phase = 0 };
    double end = netcode_time() + LIMIT_SECONDS;
    struct stage_t at = stage_add( &nothing );
    while ( ( at.connected < connected || at.heard < heard || at.moves < moves ) && netcode_time() < end ) {
        netcode_sleep( 0.01 );
        at = stage_add( &nothing );
    }
    return at.connected >= connected && at.heard >= heard && at.moves >= moves;
}

/* A phase lasts its time, and until all clients have an answer to what they said in it, and those that take a new port have one there. */
static int stage_phase( int phase )
{
    pthread_mutex_lock( &stage_lock );
    stage.phase = phase;
    stage.heard = 0;
    pthread_mutex_unlock( &stage_lock );
    netcode_sleep( PHASE_SECONDS );
    return stage_reaches( 0, BAND * BANDS, phase * ROAMERS );
}

static void stage_end( void )
{
    pthread_mutex_lock( &stage_lock );
    stage.over = 1;
    pthread_mutex_unlock( &stage_lock );
}

static int group_verdict( int all_in, int all_heard )
{
    uint64_t handed = 0, taken = 0, refused = 0, moved = 0, moves = 0, wrong = 0, ports = 0, sent = 0, received = 0;
    int lost = 0, unheard = 0;
    for ( int i = 0; i < MEMBERS; i++ ) {
        handed += members[i].handed;
        taken += members[i].taken;
        refused += members[i].ring.refused;
        moved += members[i].moved_from_ring;
        moves += members[i].stats.moves;
        wrong += members[i].wrong;
    }
    for ( int i = 0; i < BANDS; i++ ) {
        lost += bands[i].lost;
        wrong += bands[i].wrong;
        ports += bands[i].ports;
        sent += bands[i].sent;
        received += bands[i].received;
        unheard = bands[i].most_unheard > unheard ? bands[i].most_unheard : unheard;
    }
    printf( "a group of 2, 3 and 2 servers at one port, %d clients: %d lost, %" PRIu64 " of %" PRIu64
            " payloads echoed, %" PRIu64 " wrong, at most %d sent in a row without an answer; %" PRIu64
            " strays handed over (%d of them by the third), %" PRIu64 " taken, %" PRIu64 " refused; %" PRIu64
            " new ports, %" PRIu64 " moves, %" PRIu64 " of them by strays\n",
            BAND * BANDS, lost, received, sent, wrong, unheard, handed, (int) members[2].handed, taken, refused, ports,
            moves, moved );
    int good = check( all_in, "a client of the group did not connect" );
    good &= check( lost == 0, "a client of the group was lost" );
    good &= check( wrong == 0, "a payload of the group was changed, or another client's" );
    good &= check( members[2].handed > 0, "the third server got no strays" );
    good &= check( moved > 0, "no client that another server heard has moved" );
    good &= check( ports == (uint64_t) ( 3 * ROAMERS ), "a client did not take its new ports" );
    good &= check( moves >= ports, "a client took a new port and did not move" );
    good &= check( all_heard, "a client had no answer in one of the phases, or none at its new port" );
    return good;
}

static int group_begin( void )
{
    char address[64] = "127.0.0.1:0";
    for ( int i = 0; i < MEMBERS; i++ )
        pthread_mutex_init( &members[i].ring.lock, NULL );
    for ( int i = 0; i < 2; i++ ) {
        if ( !member_begin( &members[i], address ) )
            return 0;
        snprintf( address, sizeof( address ), "127.0.0.1:%d", netcode_server_get_port( members[0].server ) );
    }
    for ( int i = 0; i < BANDS * BAND; i++ ) {
        struct roamer_t * roamer = &bands[i / BAND].roamers[i % BAND];
        roamer->id = (uint64_t) ( 1 + i );
        if ( !roamer_begin( roamer, netcode_server_get_port( members[0].server ) ) )
            return 0;
    }
    return 1;
}

static int group( void )
{
    char address[64];
    if ( !group_begin() )
        return check( 0, "the group could not be made" );
    snprintf( address, sizeof( address ), "127.0.0.1:%d", netcode_server_get_port( members[0].server ) );
    for ( int i = 0; i < 2; i++ )
        if ( pthread_create( &members[i].thread, NULL, member_run, &members[i] ) != 0 )
            return 0;
    for ( int i = 0; i < BANDS; i++ )
        if ( pthread_create( &bands[i].thread, NULL, band_run, &bands[i] ) != 0 )
            return 0;
    int all_in = stage_reaches( BAND * BANDS, 0, 0 ), grown = 0, heard = 0;
    if ( all_in ) {
        heard += stage_phase( 1 );
        grown = member_begin( &members[2], address ) &&
                pthread_create( &members[2].thread, NULL, member_run, &members[2] ) == 0;
        heard += stage_phase( 2 );
        if ( grown )
            member_end( &members[2] );
        heard += stage_phase( 3 );
    }
    stage_end();
    for ( int i = 0; i < BANDS; i++ )
        pthread_join( bands[i].thread, NULL );
    for ( int i = 0; i < 2; i++ )
        member_end( &members[i] );
    return check( grown, "the third server could not be made" ) & group_verdict( all_in, heard == 3 );
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
    i = verdict( seconds );
#ifdef __linux__
    i &= check( port_is_shared, "the servers can not share a port" );
#endif
    if ( port_is_shared )
        i &= group();
    netcode_term();
    printf( i ? "threads passed\n" : "threads FAILED\n" );
    return i ? 0 : 1;
}
