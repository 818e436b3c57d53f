/*  Login sessions in the backend's own memory, of a bounded number: by the hash of their credential, with a time to live. For
    one backend without Redis; where several share them, store.h keeps them. backend.c includes this behind its players.

        sessions_open( &sessions, 100000, rate )
        struct session_owner_t * owner = sessions_owner( &sessions, client_id, now );     // NULL: there is no place
        struct session_t * session = sessions_add( &sessions, hash, owner, until );       // NULL: as well
        session->is_listed = ...
        session = sessions_find( &sessions, hash, now );     // and sessions.owners[session->owner] is its player
        sessions_remove( &sessions, hash, now );
        sessions_sweep( &sessions, now );                                  // in each turn of the loop

    A player who is not in the players file is kept here, with what he used up of his rate, for as long as he has a session,
    and then until his rate is whole again: who logs out and in gets no more than who stays. */

#ifndef BACKEND_SESSIONS_H
#define BACKEND_SESSIONS_H

#define SESSIONS_PER_PLAYER 8 /* the oldest ends when one more begins */
#define SESSIONS_SWEPT 16     /* owners that are looked at in a turn */
#define SESSIONS_NONE 0xffffffffu

struct session_t {
    uint8_t hash[HASH_BYTES];
    double until;
    uint32_t owner;
    uint32_t next;  /* in its bucket, or in the list of free ones */
    uint32_t older; /* of the same owner */
    int is_listed;  /* an account's, which ends with its line of the players file; a guest's ends where there is one */
};

struct session_owner_t {
    struct player_t player; /* id, name, rate and home; of listed players the file's are used instead */
    uint32_t newest;        /* session; SESSIONS_NONE: he has none */
    uint32_t next;          /* in its bucket, or in the list of free ones */
    int count;
    int used;
};

struct sessions_t {
    struct session_t * all;
    struct session_owner_t * owners;
    uint32_t * by_hash; /* buckets */
    uint32_t * by_id;
    uint32_t capacity;
    uint32_t mask;
    uint32_t free_session;
    uint32_t free_owner;
    uint32_t count;
    uint32_t swept; /* the owner that is looked at next */
    int rate;
    uint8_t index_key[crypto_shorthash_KEYBYTES];
};

static void sessions_close( struct sessions_t * sessions )
{
    free( sessions->all );
    free( sessions->owners );
    free( sessions->by_hash );
    free( sessions->by_id );
    memset( sessions, 0, sizeof( *sessions ) );
}

/* 0 when memory is short. As many owners as sessions fit. `rate` is that of players, per minute. */
static int sessions_open( struct sessions_t * sessions, uint32_t capacity, int rate )
{
    memset( sessions, 0, sizeof( *sessions ) );
    sessions->capacity = capacity;
    sessions->rate = rate;
    sessions->mask = 63;
    while ( sessions->mask < capacity )
        sessions->mask = sessions->mask * 2 + 1;
    size_t buckets = (size_t) sessions->mask + 1;
    sessions->all = (struct session_t *) calloc( capacity, sizeof( struct session_t ) );
    sessions->owners = (struct session_owner_t *) calloc( capacity, sizeof( struct session_owner_t ) );
    sessions->by_hash = (uint32_t *) malloc( buckets * sizeof( uint32_t ) );
    sessions->by_id = (uint32_t *) malloc( buckets * sizeof( uint32_t ) );
    if ( !sessions->all || !sessions->owners || !sessions->by_hash || !sessions->by_id ) {
        sessions_close( sessions );
        return 0;
    }
    memset( sessions->by_hash, 0xff, buckets * sizeof( uint32_t ) );
    memset( sessions->by_id, 0xff, buckets * sizeof( uint32_t ) );
    for ( uint32_t i = 0; i < capacity; i++ )
        sessions->all[i].next = sessions->owners[i].next = i + 1 < capacity ? i + 1 : SESSIONS_NONE;
    crypto_shorthash_keygen( sessions->index_key );
    return 1;
}

static uint32_t * sessions_bucket( const struct sessions_t * sessions, uint32_t * buckets, const void * data,
                                   size_t bytes )
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t place = 0;
    crypto_shorthash( hash, (const unsigned char *) data, bytes, sessions->index_key );
    memcpy( &place, hash, sizeof( place ) );
    return &buckets[place & sessions->mask];
}

/* What points to the session of this hash, or to the end of its bucket's list. Hashes are compared in constant time. */
static uint32_t * sessions_link( struct sessions_t * sessions, const uint8_t hash[HASH_BYTES] )
{
    uint32_t * link = sessions_bucket( sessions, sessions->by_hash, hash, HASH_BYTES );
    while ( *link != SESSIONS_NONE && sodium_memcmp( sessions->all[*link].hash, hash, HASH_BYTES ) != 0 )
        link = &sessions->all[*link].next;
    return link;
}

static uint32_t * sessions_owner_link( struct sessions_t * sessions, uint64_t client_id )
{
    uint32_t * link = sessions_bucket( sessions, sessions->by_id, &client_id, sizeof( client_id ) );
    while ( *link != SESSIONS_NONE && sessions->owners[*link].player.client_id != client_id )
        link = &sessions->owners[*link].next;
    return link;
}

static void sessions_end( struct sessions_t * sessions, uint32_t index )
{
    struct session_t * session = &sessions->all[index];
    struct session_owner_t * owner = &sessions->owners[session->owner];
    uint32_t * link = &owner->newest;
    while ( *link != index )
        link = &sessions->all[*link].older;
    *link = session->older;
    owner->count--;
    *sessions_link( sessions, session->hash ) = session->next;
    sodium_memzero( session, sizeof( *session ) );
    session->next = sessions->free_session;
    sessions->free_session = index;
    sessions->count--;
}

static void sessions_end_oldest( struct sessions_t * sessions, const struct session_owner_t * owner )
{
    uint32_t index = owner->newest;
    while ( sessions->all[index].older != SESSIONS_NONE )
        index = sessions->all[index].older;
    sessions_end( sessions, index );
}

static void sessions_end_expired( struct sessions_t * sessions, const struct session_owner_t * owner, double now )
{
    uint32_t older = SESSIONS_NONE;
    for ( uint32_t index = owner->newest; index != SESSIONS_NONE; index = older ) {
        older = sessions->all[index].older;
        if ( now >= sessions->all[index].until )
            sessions_end( sessions, index );
    }
}

/* The session, or NULL. Good until the next call. */
static const struct session_t * sessions_find( struct sessions_t * sessions, const uint8_t hash[HASH_BYTES],
                                               double now )
{
    uint32_t index = *sessions_link( sessions, hash );
    if ( index == SESSIONS_NONE )
        return NULL;
    if ( now < sessions->all[index].until )
        return &sessions->all[index];
    sessions_end( sessions, index );
    return NULL;
}

/* The player by his id, if we keep him; else a new one, whose rate is whole. NULL when all places are taken. */
static struct session_owner_t * sessions_owner( struct sessions_t * sessions, uint64_t client_id, double now )
{
    uint32_t * link = sessions_owner_link( sessions, client_id );
    if ( *link != SESSIONS_NONE )
        return &sessions->owners[*link];
    uint32_t index = sessions->free_owner;
    if ( index == SESSIONS_NONE )
        return NULL;
    struct session_owner_t * owner = &sessions->owners[index];
    sessions->free_owner = owner->next;
    memset( owner, 0, sizeof( *owner ) );
    owner->used = 1;
    owner->newest = owner->next = SESSIONS_NONE;
    owner->player.client_id = client_id;
    owner->player.allowance = sessions->rate;
    owner->player.refilled_at = now;
    *link = index;
    return owner;
}

/* NULL when there is no place. */
static struct session_t * sessions_add( struct sessions_t * sessions, const uint8_t hash[HASH_BYTES],
                                        struct session_owner_t * owner, double until )
{
    if ( owner->count >= SESSIONS_PER_PLAYER )
        sessions_end_oldest( sessions, owner );
    uint32_t index = sessions->free_session;
    if ( index == SESSIONS_NONE )
        return NULL;
    struct session_t * session = &sessions->all[index];
    uint32_t * bucket = sessions_bucket( sessions, sessions->by_hash, hash, HASH_BYTES );
    sessions->free_session = session->next;
    memcpy( session->hash, hash, HASH_BYTES );
    session->until = until;
    session->owner = (uint32_t) ( owner - sessions->owners );
    session->next = *bucket;
    *bucket = index;
    session->older = owner->newest;
    owner->newest = index;
    owner->count++;
    sessions->count++;
    return session;
}

/* 0 when there is none. */
static int sessions_remove( struct sessions_t * sessions, const uint8_t hash[HASH_BYTES], double now )
{
    int found = sessions_find( sessions, hash, now ) != NULL;
    if ( found )
        sessions_end( sessions, *sessions_link( sessions, hash ) );
    return found;
}

static int sessions_owner_is_whole( const struct sessions_t * sessions, const struct session_owner_t * owner,
                                    double now )
{
    return owner->player.allowance + ( now - owner->player.refilled_at ) * sessions->rate / 60.0 >= sessions->rate;
}

static void sessions_forget( struct sessions_t * sessions, uint32_t index )
{
    struct session_owner_t * owner = &sessions->owners[index];
    *sessions_owner_link( sessions, owner->player.client_id ) = owner->next;
    sodium_memzero( owner, sizeof( *owner ) );
    owner->next = sessions->free_owner;
    sessions->free_owner = index;
}

/* Ends what has expired, a few players at a time, so that no turn of the loop is long. */
static void sessions_sweep( struct sessions_t * sessions, double now )
{
    for ( int i = 0; i < SESSIONS_SWEPT; i++ ) {
        uint32_t index = sessions->swept;
        struct session_owner_t * owner = &sessions->owners[index];
        sessions->swept = index + 1 < sessions->capacity ? index + 1 : 0;
        if ( !owner->used )
            continue;
        sessions_end_expired( sessions, owner, now );
        if ( !owner->count && sessions_owner_is_whole( sessions, owner, now ) )
            sessions_forget( sessions, index );
    }
}

#endif
