/*  One session for each player, and one use for each token, across all servers of a fleet: what admit_callback asks is
    agreed upon in Redis. The game loop never waits: the callback returns NETCODE_ADMIT_LATER until the answer is there, and
    the client, which repeats its response ten times a second, asks again.

        admission_default_config( &config );
        config.redis.address = "10.0.0.5:6379";
        config.name = "eu-1";
        config.slots = 64;
        if ( !admission_open( &admission, &config, now ) )       // admission.redis.why says what is wrong
            return 1;
        server_config.events = 1;
        server_config.admit_callback = ...                       // returns admission_ask( &admission, ..., netcode_time() )
        admission.server = netcode_server_create( ... );
        for ( ;; ) {                                             // the game loop
            netcode_server_update( server, now );
            while ( netcode_server_next_event( server, &event ) )
                admission_event( &admission, &event );           // beside what the game does with it, as saving a player
            wait at most admission_update( &admission, now ) seconds
        }
        netcode_server_stop( server ), and its events as above
        admission_close( &admission, netcode_time );             // gives all leases back

    A player who is let in holds a lease in Redis: a key that ends by itself. This server renews it while the player is
    connected, at a third of its time, and gives it back when he leaves; when the server dies, the lease ends. The server's
    own view of a lease ends first, as it counts from before the command was sent.

    Keys, guarantees and what happens when Redis is lost: REDIS.md and README.md beside this file.

    One header, for one program unit, after netcode.h; needs hiredis:
        cc program.c $(pkg-config --cflags --libs hiredis libsodium) */

#ifndef FLEET_ADMISSION_H
#define FLEET_ADMISSION_H

#include "redis.h"

#define ADMISSION_LEASE_SECONDS 15.0
#define ADMISSION_NAME_BYTES 64
#define ADMISSION_HOLDER_BYTES 128
#define ADMISSION_TAG_BYTES 16
#define ADMISSION_BATCH 64 /* players in one command */
/* Seconds. A client that asks comes ten times a second. */
#define ADMISSION_PRESENT 0.5      /* after which another token of the same player may take its place */
#define ADMISSION_GONE 1.0         /* after which it does not come any more */
#define ADMISSION_PATIENCE 3.0     /* it is kept waiting for a Redis that does not answer */
#define ADMISSION_CONNECT 1.0      /* from the callback's yes to the event CONNECTED */
#define ADMISSION_RETRY 0.25       /* before Redis is asked again about a player who is elsewhere */
#define ADMISSION_REMEMBER 1.0     /* a denial, for a client that asks again */
#define ADMISSION_TOKEN_MARGIN 60  /* used tokens are remembered beyond their end, and refused from then on */
#define ADMISSION_TOKEN_LIFE 86400 /* a token that lives longer is not taken */
#define ADMISSION_STUCK 1.0 /* beyond its time, after which a command does nothing; covers the error of clock_ahead */

#define ADMISSION_LINES_PER_SECOND 10
#define ADMISSION_NONE ( -1 )

/* What happens to players when Redis can not be reached. README.md says what each promises. */
#define ADMISSION_STRICT 0 /* no client is admitted, and players are disconnected when their lease has ended */
#define ADMISSION_DIRECT 1 /* the same, but while the address of Redis refuses connections, players stay */
#define ADMISSION_KEEP 2   /* no client is admitted, players stay */
#define ADMISSION_OPEN 3   /* players come in by this server's own knowledge, and stay */

/*  How a question ended, or why it has not yet. One list: name in metrics, sentence in the log, how Redis' script says it. */
#define ADMISSION_RESULTS( X )                                                                           \
    X( ADMITTED, "admitted", "Redis agrees" )                                                            \
    X( ADMITTED_OPEN, "open", "Redis can not be reached, so this server admits by its own knowledge" )   \
    X( ELSEWHERE, "elsewhere", "the player has a session on another server" )                            \
    X( USED, "used", "the token was used before" )                                                       \
    X( REVOKED, "revoked", "the player is revoked" )                                                     \
    X( EXPIRED, "expired", "the token is over by the clock of Redis" )                                   \
    X( ENDLESS, "endless", "the token lives longer than used ones are remembered" )                      \
    X( SETTLING, "settling", "Redis is new, and waits until the servers have registered their players" ) \
    X( UNREACHABLE, "unreachable", "Redis can not be reached" )                                          \
    X( FULL, "full", "Redis is full (maxmemory)" )                                                       \
    X( ERROR, "error", "Redis reports an error" )

enum {
#define X( name, word, sentence ) ADMISSION_##name,
    ADMISSION_RESULTS( X )
#undef X
        ADMISSION_RESULT_COUNT
};

/* Why a connected player was disconnected. */
#define ADMISSION_LOSSES( X )                                                              \
    X( TAKEN, "taken", "another server holds the session" )                                \
    X( WANTED, "wanted", "the same player comes in at another server with a newer token" ) \
    X( PLAYER_REVOKED, "revoked", "the player is revoked" )                                \
    X( ENDED, "ended", "the lease ended before Redis renewed it" )

enum {
#define X( name, word, sentence ) ADMISSION_##name,
    ADMISSION_LOSSES( X )
#undef X
        ADMISSION_LOSS_COUNT
};

/* A client's question. */
#define ADMISSION_ASK_NONE 0
#define ADMISSION_ASK_SENT 1     /* the command is in flight */
#define ADMISSION_ASK_WAITING 2  /* to be asked again, `result` says why */
#define ADMISSION_ASK_ADMITTED 3 /* the client has to come for it */
#define ADMISSION_ASK_LET_IN 4   /* it has: the event CONNECTED follows */
#define ADMISSION_ASK_DENIED 5

struct admission_ask_t {
    int state;
    int result;
    uint8_t tag[ADMISSION_TAG_BYTES];
    uint64_t expire;
    uint64_t counter;
    int was_sent; /* Redis may have done it, whatever we heard */
    double began;
    double seen; /* when the client asked last */
    double sent; /* or decided */
};

struct admission_player_t {
    uint64_t client_id;
    int next; /* with the same hash, or in the list of free ones */
    int used;
    int slot; /* of the connected client; ADMISSION_NONE */
    uint64_t session;
    int holds;        /* a lease, as far as we know */
    uint64_t counter; /* of the lease */
    uint64_t expire;  /* of the token that it was taken for */
    int ending;       /* the client was disconnected because of its lease; the event comes */
    double deadline;  /* by the loop's time: we may not count on it from then on */
    struct admission_ask_t ask;
};

/* A lease or a token that goes back. */
struct admission_return_t {
    uint64_t client_id;
    uint64_t counter;
    uint8_t tag[ADMISSION_TAG_BYTES];
    int what;     /* ADMISSION_RETURN_... */
    double until; /* it ends by itself then */
};

#define ADMISSION_RETURN_LEASE 0
#define ADMISSION_RETURN_BOTH 1 /* no client connected with the token */
#define ADMISSION_RETURN_TOKEN 2

struct admission_used_t {
    uint8_t tag[ADMISSION_TAG_BYTES];
    uint64_t expire;
    uint64_t counter;
};

/* A command in flight, and whom it is about. */
struct admission_call_t {
    struct admission_t * admission;
    int next_free;
    int count;
    double sent;
    int index[ADMISSION_BATCH];
    uint64_t counter[ADMISSION_BATCH];
    struct admission_return_t returns[ADMISSION_BATCH];
};

/* The words of a command. Of one item: 2 keys of up to 104 bytes, a holder, a number. */
struct admission_words_t {
    const char * words[5 + 4 * ADMISSION_BATCH + 8];
    int count;
    size_t bytes;
    char text[ADMISSION_BATCH * 400 + 1024];
};

struct admission_config_t {
    struct redis_link_config_t redis;
    const char * name; /* of this server: no other has it; no spaces */
    int slots;
    double lease_seconds; /* all servers of a fleet have the same; 15 */
    int policy;           /* ADMISSION_DIRECT */
    int older_stays;      /* 1: a player's older session stays, and the newer one waits; 0: the newer one wins */
    void ( *log )( void * context, const char * text ); /* one line, without its end; Redis' as well */
    void * context;
};

struct admission_t {
    struct netcode_server_t * server; /* yours; NULL until there is one */
    struct redis_link_t redis;
    void ( *log )( void * context, const char * text );
    void * log_context;
    char own[ADMISSION_HOLDER_BYTES]; /* what all our leases begin with: name, boot, and a slash each */
    double lease;
    double margin; /* so much before its end we do not count on a lease */
    int policy;
    int older_stays;
    int closing;

    double now;
    uint64_t counter;
    double excused_until; /* ADMISSION_DIRECT: no lease can have been taken over before */
    double next_renewal;
    double next_sweep;
    uint64_t known_connects;
    double second; /* in which `lines` were written */
    int lines;
    int renew_from;    /* ADMISSION_NONE: all were renewed */
    int announce_from; /* ADMISSION_NONE: all were announced */

    int capacity; /* of the table of players */
    struct admission_player_t * players;
    int * heads; /* by hash */
    struct admission_call_t * calls;
    struct admission_return_t * returns; /* a ring */
    struct admission_used_t * tokens;    /* a ring of those used here, for a Redis that forgot them */
    int free_player;
    int free_call;
    int returns_capacity;
    int returns_first;
    int returns_count;
    int tokens_capacity;
    int tokens_next;
    int tokens_count;
    struct admission_words_t words;

    /* To read. */
    uint64_t results[ADMISSION_RESULT_COUNT]; /* of questions that ended */
    uint64_t losses[ADMISSION_LOSS_COUNT];
    uint64_t no_entry;   /* questions for which there was no entry: the client asks again */
    uint64_t recreated;  /* leases that Redis had lost */
    uint64_t given_back; /* leases whose client did not connect */
    int pending;         /* questions without an answer */
    int leases;
    int overdue;            /* of these, which ended as far as we know, and whose players stay by the policy */
    double longest_seconds; /* what one call took at most */
};

/* ---- the scripts: each is one step for Redis, in which nothing else happens ---- */

/*  A command that was stuck on its way, and comes when its sender has long given it up, does nothing. And: when was this
    Redis first heard of? A new run_id is a process that may have lost everything, or its last second: no client
    is admitted for the time of a lease, in which the servers report their players and used tokens to it. Where that was
    in the future, its clock was set back, and it is heard of now. */
#define ADMISSION_LUA_EPOCH                                                          \
    "local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000) "          \
    "if now>tonumber(ARGV[2]) then return {'late'} end "                             \
    "local run,since=string.match(redis.call('GET',KEYS[1]) or '','^(%S+) (%d+)$') " \
    "if run~=ARGV[1] or tonumber(since)>now then "                                   \
    "  since=now redis.pcall('SET',KEYS[1],ARGV[1]..' '..string.format('%.0f',now)) end "

/*  KEYS epoch session token revoked; ARGV run_id until lease own holder expire margin newer_wins life. A lease reads
    "HOLDER EXPIRE", and "HOLDER EXPIRE WANTED_BY" when a newer session waits for it. What this server took before is its
    own: it knows what became of it, and netcode.h connects no token twice here. A lease that lasts longer than a lease is
    one from before the clock of Redis was set back. */
static const char admission_lua_ask[] = ADMISSION_LUA_EPOCH
    "local life=ARGV[6]*1000+ARGV[7]*1000-now "
    "if redis.call('EXISTS',KEYS[4])==1 then return {'revoked'} end "
    "if life<=0 then return {'expired'} end "
    "if life>ARGV[9]*1000 then return {'endless'} end "
    "local used=redis.call('GET',KEYS[3]) "
    "if used and string.sub(used,1,#ARGV[4])~=ARGV[4] then return {'used'} end "
    "if since+ARGV[3]>now then return {'settling'} end "
    "local lease=redis.call('GET',KEYS[2]) "
    "if lease then "
    "  local holder,expire=string.match(lease,'^(%S+) (%d+)') "
    "  holder=holder or '?' expire=expire or 0 "
    "  if string.sub(holder,1,#ARGV[4])~=ARGV[4] then "
    "    local left=redis.call('PTTL',KEYS[2]) "
    "    if left>tonumber(ARGV[3]) then left=tonumber(ARGV[3]) redis.call('PEXPIRE',KEYS[2],left) end "
    "    if ARGV[8]=='1' and left>0 and tonumber(ARGV[6])>=tonumber(expire) then "
    "      redis.call('SET',KEYS[2],holder..' '..expire..' '..ARGV[5],'PX',left) end "
    "    return {'elsewhere',left} end end "
    "redis.call('SET',KEYS[2],ARGV[5]..' '..ARGV[6],'PX',ARGV[3]) "
    "redis.call('SET',KEYS[3],ARGV[5],'PX',string.format('%.0f',life)) "
    "return {'admitted'}";

/*  KEYS epoch, then session revoked for each; ARGV run_id until lease own, then holder expire for each. 1 renewed, 2 was missing and
    is there again, 3 revoked, 4 taken, 5 wanted, 6 can not be set: Redis is full, or the key is none of ours. Where it is wanted, the key stays until this
    server has disconnected the player and gives it back. */
static const char admission_lua_renew[] =
    ADMISSION_LUA_EPOCH "local out={} "
                        "for i=1,(#KEYS-1)/2 do "
                        "  local key,holder=KEYS[2*i],ARGV[3+2*i] "
                        "  local lease=redis.pcall('GET',key) "
                        "  if type(lease)=='table' then out[i]=6 else " /* a key that is none of ours */
                        "  local has,_,wanted=string.match(lease or '','^(%S+) (%d+) ?(%S*)$') "
                        "  if redis.call('EXISTS',KEYS[2*i+1])==1 then out[i]=3 "
                        "  elseif not lease or ( has~=holder and string.sub(has or '',1,#ARGV[4])==ARGV[4] ) then "
                        "    local done=redis.pcall('SET',key,holder..' '..ARGV[4+2*i],'PX',ARGV[3]) "
                        "    out[i]=done.err and 6 or lease and 1 or 2 "
                        "  elseif string.sub(has or '',1,#ARGV[4])~=ARGV[4] then out[i]=4 "
                        "  elseif wanted~='' then out[i]=5 "
                        "  else redis.call('PEXPIRE',key,ARGV[3]) out[i]=1 end end end "
                        "return out";

/* KEYS session token for each; ARGV holder what for each. What is not ours stays. */
static const char admission_lua_return[] =
    "for i=1,#KEYS/2 do "
    "  local holder,what=ARGV[2*i-1],ARGV[2*i] "
    "  if what~='2' and string.match(redis.call('GET',KEYS[2*i-1]) or '','^%S+')==holder then "
    "    redis.call('DEL',KEYS[2*i-1]) end "
    "  if what~='0' and redis.call('GET',KEYS[2*i])==holder then redis.call('DEL',KEYS[2*i]) end end "
    "return 1";

/* KEYS epoch, then a token for each; ARGV run_id until margin, then holder expire for each. */
static const char admission_lua_announce[] = ADMISSION_LUA_EPOCH
    "for i=1,#KEYS-1 do "
    "  local life=ARGV[3+2*i]*1000+ARGV[3]*1000-now "
    "  if life>0 then redis.call('SET',KEYS[1+i],ARGV[2+2*i],'NX','PX',string.format('%.0f',life)) end end "
    "return 1";

/* ---- small things ---- */

static inline const char * admission_result_name( int result )
{
    static const char * const names[] = {
#define X( name, word, sentence ) word,
        ADMISSION_RESULTS( X )
#undef X
    };
    return names[result];
}

static inline const char * admission_result_text( int result )
{
    static const char * const texts[] = {
#define X( name, word, sentence ) sentence,
        ADMISSION_RESULTS( X )
#undef X
    };
    return texts[result];
}

static inline const char * admission_loss_name( int loss )
{
    static const char * const names[] = {
#define X( name, word, sentence ) word,
        ADMISSION_LOSSES( X )
#undef X
    };
    return names[loss];
}

static inline const char * admission_loss_text( int loss )
{
    static const char * const texts[] = {
#define X( name, word, sentence ) sentence,
        ADMISSION_LOSSES( X )
#undef X
    };
    return texts[loss];
}

/* Many players may be lost in one moment: some lines, and how many more there were. */
static inline void admission_say( struct admission_t * admission, const char * what, const char * why )
{
    char line[320];
    if ( !admission->log )
        return;
    if ( admission->now - admission->second >= 1.0 ) {
        snprintf( line, sizeof( line ), "admission: %d more lines were left out",
                  admission->lines - ADMISSION_LINES_PER_SECOND );
        if ( admission->lines > ADMISSION_LINES_PER_SECOND )
            admission->log( admission->log_context, line );
        admission->second = admission->now;
        admission->lines = 0;
    }
    if ( ++admission->lines > ADMISSION_LINES_PER_SECOND )
        return;
    snprintf( line, sizeof( line ), "admission: %.80s%s%.200s", what, why[0] ? ": " : "", why );
    admission->log( admission->log_context, line );
}

static inline void admission_say_player( struct admission_t * admission, uint64_t client_id, const char * what,
                                         const char * why )
{
    char text[96];
    snprintf( text, sizeof( text ), "client=%llu %.60s", (unsigned long long) client_id, what );
    admission_say( admission, text, why );
}

/* ---- the words of commands ---- */

/* The last one that was added ends with a zero; the whole can not be too long, as the parts have limits. */
static inline void admission_word( struct admission_words_t * words, const char * format, ... )
{
    va_list arguments;
    char * text = words->text + words->bytes;
    va_start( arguments, format );
    int bytes = vsnprintf( text, sizeof( words->text ) - words->bytes, format, arguments );
    va_end( arguments );
    words->words[words->count++] = text;
    words->bytes += (size_t) bytes + 1;
}

static inline void admission_begin_words( struct admission_words_t * words, const char * script, int keys )
{
    words->count = 0;
    words->bytes = 0;
    words->words[words->count++] = "EVAL";
    words->words[words->count++] = script;
    admission_word( words, "%d", keys );
}

static inline void admission_key( struct admission_t * admission, const char * kind, uint64_t client_id )
{
    admission_word( &admission->words, "%s%s:%llu", admission->redis.prefix, kind, (unsigned long long) client_id );
}

static inline void admission_epoch_key( struct admission_t * admission )
{
    admission_word( &admission->words, "%sepoch", admission->redis.prefix );
}

static inline void admission_token_key( struct admission_t * admission, const uint8_t tag[ADMISSION_TAG_BYTES] )
{
    char hex[2 * ADMISSION_TAG_BYTES + 1];
    sodium_bin2hex( hex, sizeof( hex ), tag, ADMISSION_TAG_BYTES );
    admission_word( &admission->words, "%stoken:%s", admission->redis.prefix, hex );
}

static inline void admission_holder( struct admission_t * admission, uint64_t counter )
{
    admission_word( &admission->words, "%s%llu", admission->own, (unsigned long long) counter );
}

/* Redis' scripts count in doubles, so a token without an end gets one that fits. */
static inline void admission_expire( struct admission_t * admission, uint64_t expire )
{
    uint64_t limit = (uint64_t) 1 << 42;
    admission_word( &admission->words, "%llu", (unsigned long long) ( expire < limit ? expire : limit ) );
}

/* Which Redis this is meant for, and until when by its time: a little longer than we wait for the answer. */
static inline void admission_validity( struct admission_t * admission )
{
    double until = admission->now + admission->redis.clock_ahead + admission->redis.timeout_seconds + ADMISSION_STUCK;
    admission_word( &admission->words, "%s", admission->redis.run_id );
    admission_word( &admission->words, "%.0f", until * 1000.0 );
}

static inline void admission_lease_word( struct admission_t * admission )
{
    admission_word( &admission->words, "%.0f", admission->lease * 1000.0 );
}

/* NULL when all are in flight. */
static inline struct admission_call_t * admission_take_call( struct admission_t * admission )
{
    if ( admission->free_call == ADMISSION_NONE || !redis_room( &admission->redis ) )
        return NULL;
    struct admission_call_t * call = &admission->calls[admission->free_call];
    admission->free_call = call->next_free;
    call->count = 0;
    call->sent = admission->now;
    return call;
}

static inline void admission_free_call( struct admission_call_t * call )
{
    struct admission_t * admission = call->admission;
    call->next_free = admission->free_call;
    admission->free_call = (int) ( call - admission->calls );
}

static inline int admission_send( struct admission_call_t * call, redis_callback_t callback )
{
    struct admission_t * admission = call->admission;
    if ( redis_send( &admission->redis, admission->now, admission->words.count, admission->words.words, NULL, callback,
                     call ) )
        return 1;
    admission_free_call( call );
    return 0;
}

/* ---- the table of players ---- */

static inline int admission_hash( const struct admission_t * admission, uint64_t client_id )
{
    uint64_t hash = ( client_id ^ client_id >> 32 ) * 0x9E3779B97F4A7C15u;
    return (int) ( ( hash >> 33 ) % (uint64_t) admission->capacity );
}

static inline struct admission_player_t * admission_find( struct admission_t * admission, uint64_t client_id )
{
    int at = admission->heads[admission_hash( admission, client_id )];
    while ( at != ADMISSION_NONE && admission->players[at].client_id != client_id )
        at = admission->players[at].next;
    return at == ADMISSION_NONE ? NULL : &admission->players[at];
}

static inline void admission_remove( struct admission_t * admission, struct admission_player_t * player )
{
    int index = (int) ( player - admission->players );
    int * link = &admission->heads[admission_hash( admission, player->client_id )];
    while ( *link != index )
        link = &admission->players[*link].next;
    *link = player->next;
    memset( player, 0, sizeof( *player ) );
    player->next = admission->free_player;
    admission->free_player = index;
}

/* Nothing is left to be known about it. */
static inline void admission_remove_idle( struct admission_t * admission, struct admission_player_t * player )
{
    if ( player->used && player->slot == ADMISSION_NONE && player->ask.state == ADMISSION_ASK_NONE && !player->holds )
        admission_remove( admission, player );
}

/* ---- giving back ---- */

/* When the ring is full the oldest goes: it ends by itself. */
static inline void admission_queue_return( struct admission_t * admission, const struct admission_return_t * what )
{
    if ( admission->returns_count == admission->returns_capacity ) {
        admission->returns_first = ( admission->returns_first + 1 ) % admission->returns_capacity;
        admission->returns_count--;
    }
    int at = ( admission->returns_first + admission->returns_count++ ) % admission->returns_capacity;
    admission->returns[at] = *what;
}

/* The lease, which a connected player no longer needs. */
static inline void admission_return_lease( struct admission_t * admission, struct admission_player_t * player )
{
    struct admission_return_t what = { player->client_id,
                                       player->counter,
                                       { 0 },
                                       ADMISSION_RETURN_LEASE,
                                       admission->now + admission->lease };
    if ( player->holds )
        admission_queue_return( admission, &what );
    player->holds = 0;
}

static inline void admission_queue_ask( struct admission_t * admission, const struct admission_player_t * player,
                                        int what )
{
    struct admission_return_t it = { player->client_id,
                                     player->ask.counter,
                                     { 0 },
                                     what,
                                     admission->now + admission->lease };
    memcpy( it.tag, player->ask.tag, sizeof( it.tag ) );
    admission_queue_return( admission, &it );
}

/*  What a question took, for which the client never came: the token is as good as before. A lease that a connected session of
    the same player has adopted stays. */
static inline void admission_return_ask( struct admission_t * admission, struct admission_player_t * player )
{
    struct admission_ask_t * ask = &player->ask;
    int adopted = player->slot != ADMISSION_NONE;
    if ( ask->was_sent || player->holds )
        admission_queue_ask( admission, player, adopted ? ADMISSION_RETURN_TOKEN : ADMISSION_RETURN_BOTH );
    if ( ask->state == ADMISSION_ASK_ADMITTED || ask->state == ADMISSION_ASK_LET_IN )
        admission->given_back++;
    else if ( ask->state != ADMISSION_ASK_DENIED )
        admission->results[ask->result]++; /* the client gave up first */
    if ( !adopted )
        player->holds = 0;
    ask->state = ADMISSION_ASK_NONE;
    ask->was_sent = 0;
}

/* NULL when all entries are in use, and none only remembers a denial. */
static inline struct admission_player_t * admission_insert( struct admission_t * admission, uint64_t client_id )
{
    for ( int i = 0; i < admission->capacity && admission->free_player == ADMISSION_NONE; i++ ) {
        struct admission_player_t * player = &admission->players[i];
        if ( player->ask.state != ADMISSION_ASK_DENIED || player->slot != ADMISSION_NONE || player->holds )
            continue;
        admission_return_ask( admission, player );
        admission_remove( admission, player );
    }
    int index = admission->free_player;
    if ( index == ADMISSION_NONE )
        return NULL;
    struct admission_player_t * player = &admission->players[index];
    int * head = &admission->heads[admission_hash( admission, client_id )];
    admission->free_player = player->next;
    player->client_id = client_id;
    player->next = *head;
    player->used = 1;
    player->slot = ADMISSION_NONE;
    *head = index;
    return player;
}

static inline void admission_on_return( void * context, int what, const redisReply * reply )
{
    struct admission_call_t * call = (struct admission_call_t *) context;
    struct admission_t * admission = call->admission;
    int done = what == REDIS_LINK_ANSWER && !redis_is_error( reply );
    for ( int i = 0; i < call->count && !done; i++ ) {
        if ( admission->now < call->returns[i].until )
            admission_queue_return( admission, &call->returns[i] );
    }
    admission_free_call( call );
}

/* 0: not now. */
static inline int admission_send_returns( struct admission_t * admission )
{
    int count = admission->returns_count < ADMISSION_BATCH ? admission->returns_count : ADMISSION_BATCH;
    struct admission_call_t * call = admission_take_call( admission );
    if ( !call )
        return 0;
    for ( call->count = 0; call->count < count; call->count++ )
        call->returns[call->count] =
            admission->returns[( admission->returns_first + call->count ) % admission->returns_capacity];
    admission_begin_words( &admission->words, admission_lua_return, 2 * count );
    for ( int i = 0; i < count; i++ ) {
        admission_key( admission, "session", call->returns[i].client_id );
        admission_token_key( admission, call->returns[i].tag );
    }
    for ( int i = 0; i < count; i++ ) {
        admission_holder( admission, call->returns[i].counter );
        admission_word( &admission->words, "%d", call->returns[i].what );
    }
    if ( !admission_send( call, admission_on_return ) )
        return 0;
    admission->returns_first = ( admission->returns_first + count ) % admission->returns_capacity;
    admission->returns_count -= count;
    return 1;
}

/* ---- the end of a session, because of its lease ---- */

/*  The event DISCONNECTED follows. Only when the application has handled it the lease goes back, so that what it saves of the
    player is saved before another server lets him in. */
static inline void admission_lose( struct admission_t * admission, struct admission_player_t * player, int loss )
{
    struct admission_ask_t * ask = &player->ask;
    int was_asking = ask->state == ADMISSION_ASK_ADMITTED || ask->state == ADMISSION_ASK_LET_IN;
    if ( was_asking )
        admission_queue_ask( admission, player,
                             player->slot == ADMISSION_NONE ? ADMISSION_RETURN_BOTH : ADMISSION_RETURN_TOKEN );
    if ( player->slot != ADMISSION_NONE ) {
        admission->losses[loss]++;
        admission_say_player( admission, player->client_id, "is disconnected", admission_loss_text( loss ) );
        if ( netcode_server_client_session( admission->server, player->slot ) == player->session )
            netcode_server_disconnect_client( admission->server, player->slot );
        player->ending = 1;
    } else {
        player->holds = 0;
    }
    if ( was_asking ) {
        ask->state = ADMISSION_ASK_WAITING; /* it has no session yet: it asks again, for another lease */
        ask->result = loss == ADMISSION_ENDED ? ADMISSION_UNREACHABLE : ADMISSION_ELSEWHERE;
        ask->counter = ++admission->counter;
        ask->sent = admission->now;
    }
}

/* Until when may this server count on the lease? */
static inline double admission_end( const struct admission_t * admission, const struct admission_player_t * player )
{
    int excused = admission->policy == ADMISSION_DIRECT && admission->excused_until > player->deadline;
    return excused ? admission->excused_until : player->deadline;
}

static inline int admission_stays( const struct admission_t * admission )
{
    return admission->policy == ADMISSION_KEEP || admission->policy == ADMISSION_OPEN;
}

/* ---- questions ---- */

static inline void admission_finish_ask( struct admission_t * admission, struct admission_player_t * player, int state,
                                         int result )
{
    struct admission_ask_t * ask = &player->ask;
    ask->state = state;
    ask->result = result;
    ask->sent = admission->now;
    admission->results[result]++;
    if ( state == ADMISSION_ASK_DENIED )
        admission_say_player( admission, player->client_id, "is denied", admission_result_text( result ) );
}

/* The lease counts from before the command was sent, so that it ends here before it ends in Redis. */
static inline void admission_hold( struct admission_t * admission, struct admission_player_t * player, double sent )
{
    player->holds = 1;
    player->counter = player->ask.counter;
    player->expire = player->ask.expire;
    player->deadline = sent + admission->lease - admission->margin;
}

static inline void admission_wait( struct admission_t * admission, struct admission_player_t * player, int result )
{
    int is_for_operators = result == ADMISSION_FULL || result == ADMISSION_SETTLING;
    if ( is_for_operators && player->ask.result != result )
        admission_say_player( admission, player->client_id, "has to wait", admission_result_text( result ) );
    player->ask.state = ADMISSION_ASK_WAITING;
    player->ask.result = result;
    player->ask.sent = admission->now;
}

/* Which result is it? ADMISSION_ERROR for what the script never says. */
static inline int admission_read_result( const redisReply * reply )
{
    if ( redis_is_error( reply ) )
        return !strncmp( reply->str, "OOM ", 4 ) ? ADMISSION_FULL : ADMISSION_ERROR;
    if ( reply->type != REDIS_REPLY_ARRAY || !reply->elements || reply->element[0]->type != REDIS_REPLY_STRING )
        return ADMISSION_ERROR;
    for ( int i = 0; i < ADMISSION_RESULT_COUNT; i++ ) {
        if ( !strcmp( reply->element[0]->str, admission_result_name( i ) ) )
            return i;
    }
    return ADMISSION_ERROR;
}

static inline void admission_on_ask( void * context, int what, const redisReply * reply )
{
    struct admission_call_t * call = (struct admission_call_t *) context;
    struct admission_t * admission = call->admission;
    struct admission_player_t * player = &admission->players[call->index[0]];
    double sent = call->sent;
    int is_its = player->used && player->ask.state == ADMISSION_ASK_SENT && player->ask.counter == call->counter[0];
    admission_free_call( call );
    if ( !is_its )
        return; /* it was given up, and goes back or has gone back */
    if ( what != REDIS_LINK_ANSWER ) {
        admission_wait( admission, player, ADMISSION_UNREACHABLE );
        return;
    }
    int result = admission_read_result( reply );
    if ( result == ADMISSION_ERROR && redis_is_error( reply ) )
        admission_say_player( admission, player->client_id, "can not be checked", reply->str );
    switch ( result ) {
    case ADMISSION_ADMITTED:
        admission_hold( admission, player, sent );
        admission_finish_ask( admission, player, ADMISSION_ASK_ADMITTED, result );
        if ( admission->now - sent > admission->lease / 6.0 )
            admission->next_renewal = admission->now; /* a slow Redis: the next renewal would come too late */
        break;
    case ADMISSION_REVOKED:
    case ADMISSION_EXPIRED:
    case ADMISSION_ENDLESS:
        player->ask.was_sent = 0; /* nothing was taken */
        admission_finish_ask( admission, player, ADMISSION_ASK_DENIED, result );
        break;
    default: admission_wait( admission, player, result );
    }
}

static inline void admission_send_ask( struct admission_t * admission, struct admission_player_t * player )
{
    struct admission_ask_t * ask = &player->ask;
    struct admission_call_t * call = admission_take_call( admission );
    if ( !call )
        return;
    call->count = 1;
    call->index[0] = (int) ( player - admission->players );
    call->counter[0] = ask->counter;
    admission_begin_words( &admission->words, admission_lua_ask, 4 );
    admission_epoch_key( admission );
    admission_key( admission, "session", player->client_id );
    admission_token_key( admission, ask->tag );
    admission_key( admission, "revoked", player->client_id );
    admission_validity( admission );
    admission_lease_word( admission );
    admission_word( &admission->words, "%s", admission->own );
    admission_holder( admission, ask->counter );
    admission_expire( admission, ask->expire );
    admission_word( &admission->words, "%d", ADMISSION_TOKEN_MARGIN );
    admission_word( &admission->words, "%d", !admission->older_stays );
    admission_word( &admission->words, "%d", ADMISSION_TOKEN_LIFE + ADMISSION_TOKEN_MARGIN );
    if ( !admission_send( call, admission_on_ask ) )
        return;
    ask->state = ADMISSION_ASK_SENT;
    ask->sent = admission->now;
    ask->was_sent = 1;
}

/* Has Redis been lost for longer than a client is kept waiting? */
static inline int admission_is_cut( const struct admission_t * admission, double seconds )
{
    return !admission->redis.reachable && admission->now - admission->redis.since >= seconds;
}

/*  How long may a client wait for a change of this? A used token goes back when the server that took it has sent the
    client on, because it is full or drains: that server waits for ADMISSION_GONE. */
static inline double admission_patience( const struct admission_t * admission, int result )
{
    if ( result == ADMISSION_USED )
        return ADMISSION_GONE + 0.5;
    return result == ADMISSION_ELSEWHERE || result == ADMISSION_SETTLING ? admission->lease + 1.0 : ADMISSION_PATIENCE;
}

static inline int admission_is_lost( int result )
{
    return result == ADMISSION_UNREACHABLE || result == ADMISSION_FULL || result == ADMISSION_ERROR;
}

/* Redis gives no answer, and the operator lets players in all the same. */
static inline void admission_let_in_open( struct admission_t * admission, struct admission_player_t * player )
{
    admission_hold( admission, player, admission->now );
    admission_finish_ask( admission, player, ADMISSION_ASK_ADMITTED, ADMISSION_ADMITTED_OPEN );
    admission_say_player( admission, player->client_id, "is admitted",
                          admission_result_text( ADMISSION_ADMITTED_OPEN ) );
}

/* A question that waits: asks again, or ends. */
static inline void admission_step_ask( struct admission_t * admission, struct admission_player_t * player )
{
    struct admission_ask_t * ask = &player->ask;
    int lost = admission_is_lost( ask->result );
    int open = admission->policy == ADMISSION_OPEN && lost;
    if ( open && ( admission_is_cut( admission, 1.0 ) || admission->now - ask->began >= 1.0 ) )
        admission_let_in_open( admission, player );
    else if ( admission->now - ask->began >= admission_patience( admission, ask->result ) ||
              ( lost && admission_is_cut( admission, ADMISSION_PATIENCE ) ) )
        admission_finish_ask( admission, player, ADMISSION_ASK_DENIED, ask->result );
    else if ( !ask->was_sent || admission->now - ask->sent >= ADMISSION_RETRY )
        admission_send_ask( admission, player );
}

static inline void admission_begin_ask( struct admission_t * admission, struct admission_player_t * player,
                                        const uint8_t * tag, uint64_t expire )
{
    struct admission_ask_t * ask = &player->ask;
    memset( ask, 0, sizeof( *ask ) );
    memcpy( ask->tag, tag, sizeof( ask->tag ) );
    ask->state = ADMISSION_ASK_WAITING;
    ask->result = ADMISSION_UNREACHABLE; /* until it was sent */
    ask->expire = expire;
    ask->counter = ++admission->counter;
    ask->began = admission->now;
}

/* Does the client still ask? One that was let in need not. */
static inline int admission_is_present( const struct admission_t * admission, const struct admission_ask_t * ask )
{
    return ask->state == ADMISSION_ASK_LET_IN || admission->now - ask->seen < ADMISSION_PRESENT;
}

/*  What admit_callback returns: 1, 0, or NETCODE_ADMIT_LATER. `now` is the time of the call: the loop may have stood still
    since the last admission_update, and a lease may have ended meanwhile. */
static inline int admission_ask( struct admission_t * admission, uint64_t client_id, const uint8_t * tag,
                                 uint64_t expire, double now )
{
    admission->now = now;
    struct admission_player_t * player = admission_find( admission, client_id );
    if ( admission->closing )
        return 0;
    if ( !player )
        player = admission_insert( admission, client_id );
    if ( !player ) {
        admission->no_entry++;
        return NETCODE_ADMIT_LATER;
    }
    struct admission_ask_t * ask = &player->ask;
    int is_its = !memcmp( ask->tag, tag, sizeof( ask->tag ) );
    /* The same player by another token: in place of a client that was denied, or asks no longer. */
    if ( ask->state != ADMISSION_ASK_NONE && !is_its &&
         ( ask->state == ADMISSION_ASK_DENIED || !admission_is_present( admission, ask ) ) )
        admission_return_ask( admission, player );
    if ( ask->state == ADMISSION_ASK_NONE )
        admission_begin_ask( admission, player, tag, expire );
    else if ( !is_its )
        return NETCODE_ADMIT_LATER; /* when that question has ended */

    ask->seen = admission->now;
    if ( ask->state == ADMISSION_ASK_WAITING )
        admission_step_ask( admission, player );
    if ( ask->state == ADMISSION_ASK_DENIED )
        return 0;
    if ( ask->state == ADMISSION_ASK_ADMITTED &&
         ( admission->now < admission_end( admission, player ) || admission_stays( admission ) ) ) {
        ask->state = ADMISSION_ASK_LET_IN;
        ask->sent = admission->now;
        return 1;
    }
    return NETCODE_ADMIT_LATER;
}

/* ---- events ---- */

static inline void admission_remember_token( struct admission_t * admission, const struct admission_ask_t * ask )
{
    struct admission_used_t * used = &admission->tokens[admission->tokens_next];
    memcpy( used->tag, ask->tag, sizeof( used->tag ) );
    used->expire = ask->expire;
    used->counter = ask->counter;
    admission->tokens_next = ( admission->tokens_next + 1 ) % admission->tokens_capacity;
    admission->tokens_count += admission->tokens_count < admission->tokens_capacity;
}

static inline void admission_connected( struct admission_t * admission, const struct netcode_event_t * event )
{
    struct admission_player_t * player = admission_find( admission, event->client_id );
    int here = netcode_server_client_session( admission->server, event->client_index ) == event->session;
    if ( here && netcode_server_client_loopback( admission->server, event->client_index ) )
        return; /* Redis was not asked about this one */
    if ( !player || player->ask.state != ADMISSION_ASK_LET_IN ) {
        admission_say_player( admission, event->client_id, "is disconnected", "no lease was requested" );
        if ( here )
            netcode_server_disconnect_client( admission->server, event->client_index );
        return;
    }
    player->slot = event->client_index;
    player->session = event->session;
    admission_remember_token( admission, &player->ask );
    memset( &player->ask, 0, sizeof( player->ask ) );
    if ( !player->holds && here ) /* lost between the callback and now */
        netcode_server_disconnect_client( admission->server, event->client_index );
}

static inline void admission_disconnected( struct admission_t * admission, const struct netcode_event_t * event )
{
    struct admission_player_t * player = admission_find( admission, event->client_id );
    if ( !player || player->slot == ADMISSION_NONE || player->session != event->session )
        return;
    player->slot = ADMISSION_NONE;
    player->ending = 0;
    /* A newer session of the same player, which took over the slot, goes on with the lease. */
    if ( player->ask.state != ADMISSION_ASK_LET_IN && player->ask.state != ADMISSION_ASK_ADMITTED )
        admission_return_lease( admission, player );
    admission_remove_idle( admission, player );
}

/*  Every event that netcode_server_next_event returned. What the application does when a player is disconnected it does
    before the next admission_update: then the lease goes back, and another server may let him in. */
static inline void admission_event( struct admission_t * admission, const struct netcode_event_t * event )
{
    if ( event->type == NETCODE_EVENT_CONNECTED )
        admission_connected( admission, event );
    else if ( event->type == NETCODE_EVENT_DISCONNECTED )
        admission_disconnected( admission, event );
}

/* ---- renewals ---- */

/* At this time there was no Redis that could have given a lease to others. */
static inline void admission_excuse( struct admission_t * admission, double at )
{
    double until = at + admission->lease - admission->margin;
    if ( until > admission->excused_until )
        admission->excused_until = until;
}

static inline void admission_renewed( struct admission_t * admission, struct admission_player_t * player,
                                      long long result, double sent )
{
    double deadline = sent + admission->lease - admission->margin;
    if ( result == 1 || result == 2 ) {
        if ( deadline > player->deadline )
            player->deadline = deadline;
        if ( result == 2 && player->slot != ADMISSION_NONE ) {
            admission->recreated++;
            if ( admission->announce_from == ADMISSION_NONE )
                admission->announce_from = 0; /* it has lost more than leases */
        }
    } else if ( result == 3 )
        admission_lose( admission, player, ADMISSION_PLAYER_REVOKED );
    else if ( result == 4 )
        admission_lose( admission, player, ADMISSION_TAKEN );
    else if ( result == 5 )
        admission_lose( admission, player, ADMISSION_WANTED );
}

static inline void admission_on_renew( void * context, int what, const redisReply * reply )
{
    struct admission_call_t * call = (struct admission_call_t *) context;
    struct admission_t * admission = call->admission;
    int good = what == REDIS_LINK_ANSWER && reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t) call->count;
    if ( what == REDIS_LINK_ANSWER && redis_is_error( reply ) ) {
        admission_say( admission, "error: leases are not renewed", reply->str );
        /* It reads its data, and gives no lease to others; with its new run_id it settles after that. */
        if ( !strncmp( reply->str, "LOADING ", 8 ) )
            admission_excuse( admission, call->sent );
    }
    for ( int i = 0; i < call->count && good; i++ ) {
        struct admission_player_t * player = &admission->players[call->index[i]];
        if ( reply->element[i]->type == REDIS_REPLY_INTEGER && player->used && player->holds && !player->ending &&
             player->counter == call->counter[i] )
            admission_renewed( admission, player, reply->element[i]->integer, call->sent );
    }
    admission_free_call( call );
}

/* From renew_from on. 0: not now. */
static inline int admission_send_renewals( struct admission_t * admission )
{
    struct admission_call_t * call = admission_take_call( admission );
    int at = admission->renew_from;
    if ( !call )
        return 0;
    for ( ; at < admission->capacity && call->count < ADMISSION_BATCH; at++ ) {
        const struct admission_player_t * player = &admission->players[at];
        if ( !player->used || !player->holds || player->ending )
            continue;
        call->index[call->count] = at;
        call->counter[call->count++] = player->counter;
    }
    admission_begin_words( &admission->words, admission_lua_renew, 1 + 2 * call->count );
    admission_epoch_key( admission );
    for ( int i = 0; i < call->count; i++ ) {
        admission_key( admission, "session", admission->players[call->index[i]].client_id );
        admission_key( admission, "revoked", admission->players[call->index[i]].client_id );
    }
    admission_validity( admission );
    admission_lease_word( admission );
    admission_word( &admission->words, "%s", admission->own );
    for ( int i = 0; i < call->count; i++ ) {
        admission_holder( admission, call->counter[i] );
        admission_expire( admission, admission->players[call->index[i]].expire );
    }
    /* Without players it still reports to a new Redis that there is a fleet, so that its first player need not wait. */
    if ( !admission_send( call, admission_on_renew ) )
        return 0;
    admission->renew_from = at < admission->capacity ? at : ADMISSION_NONE;
    return 1;
}

/* ---- used tokens, for a Redis that has lost them ---- */

static inline void admission_on_announce( void * context, int what, const redisReply * reply )
{
    struct admission_call_t * call = (struct admission_call_t *) context;
    if ( what == REDIS_LINK_ANSWER && redis_is_error( reply ) )
        admission_say( call->admission, "error: used tokens are not announced", reply->str );
    admission_free_call( call );
}

/* From announce_from on. 0: not now. */
static inline int admission_send_tokens( struct admission_t * admission )
{
    int from = admission->announce_from;
    int count = admission->tokens_count - from < ADMISSION_BATCH ? admission->tokens_count - from : ADMISSION_BATCH;
    if ( count <= 0 ) {
        admission->announce_from = ADMISSION_NONE;
        return 0;
    }
    struct admission_call_t * call = admission_take_call( admission );
    if ( !call )
        return 0;
    admission_begin_words( &admission->words, admission_lua_announce, 1 + count );
    admission_epoch_key( admission );
    for ( int i = 0; i < count; i++ )
        admission_token_key( admission, admission->tokens[from + i].tag );
    admission_validity( admission );
    admission_word( &admission->words, "%d", ADMISSION_TOKEN_MARGIN );
    for ( int i = 0; i < count; i++ ) {
        admission_holder( admission, admission->tokens[from + i].counter );
        admission_expire( admission, admission->tokens[from + i].expire );
    }
    if ( !admission_send( call, admission_on_announce ) )
        return 0;
    admission->announce_from += count;
    return 1;
}

/* ---- once a tick ---- */

/* A question whose client does not come any more, or whose yes led to nothing. */
static inline void admission_sweep_ask( struct admission_t * admission, struct admission_player_t * player )
{
    struct admission_ask_t * ask = &player->ask;
    double unseen = admission->now - ask->seen, old = admission->now - ask->sent;
    if ( ask->state == ADMISSION_ASK_DENIED ) {
        if ( old >= ADMISSION_REMEMBER )
            admission_return_ask( admission, player );
    } else if ( ask->state == ADMISSION_ASK_LET_IN ? old >= ADMISSION_CONNECT : unseen >= ADMISSION_GONE )
        admission_return_ask( admission, player );
    else if ( ask->state == ADMISSION_ASK_WAITING && admission_is_present( admission, ask ) )
        admission_step_ask( admission, player );
}

static inline void admission_sweep( struct admission_t * admission )
{
    admission->pending = admission->leases = admission->overdue = 0;
    for ( int i = 0; i < admission->capacity; i++ ) {
        struct admission_player_t * player = &admission->players[i];
        if ( !player->used )
            continue;
        if ( player->ask.state != ADMISSION_ASK_NONE )
            admission_sweep_ask( admission, player );
        int ended = player->holds && admission->now >= admission_end( admission, player );
        if ( ended && !player->ending && !admission_stays( admission ) )
            admission_lose( admission, player, ADMISSION_ENDED );
        admission->pending += player->ask.state == ADMISSION_ASK_SENT || player->ask.state == ADMISSION_ASK_WAITING;
        admission->leases += player->holds;
        admission->overdue += player->holds && ended;
        admission_remove_idle( admission, player );
    }
}

static inline void admission_warn_of_eviction( struct admission_t * admission )
{
    char line[160];
    if ( !admission->log || !admission->redis.eviction[0] || !strcmp( admission->redis.eviction, "noeviction" ) )
        return;
    snprintf( line, sizeof( line ),
              "admission: error: Redis has maxmemory-policy %s and may throw leases away; set noeviction",
              admission->redis.eviction );
    admission->log( admission->log_context, line );
}

/* A new link: what Redis knows of us may be old, or nothing. */
static inline void admission_greet( struct admission_t * admission )
{
    if ( admission->known_connects == admission->redis.connects )
        return;
    admission->known_connects = admission->redis.connects;
    admission->next_renewal = admission->now;
    admission->announce_from = 0;
    admission_warn_of_eviction( admission );
}

/* Leases first: they have a time. */
static inline void admission_send_all( struct admission_t * admission )
{
    if ( admission->now >= admission->next_renewal && admission->redis.state == REDIS_LINK_READY ) {
        admission->next_renewal = admission->now + admission->lease / 3.0;
        admission->renew_from = 0;
    }
    while ( admission->renew_from != ADMISSION_NONE && admission_send_renewals( admission ) )
        ;
    while ( admission->returns_count && admission_send_returns( admission ) )
        ;
    while ( admission->announce_from != ADMISSION_NONE && admission_send_tokens( admission ) )
        ;
}

/* Once a tick, with the loop's time. Never waits. Returns how long the loop may sleep. */
static inline double admission_update( struct admission_t * admission, double now )
{
    double start = netcode_time();
    admission->now = now;
    redis_update( &admission->redis, now );
    if ( admission->redis.refused_at >= 0.0 )
        admission_excuse( admission, admission->redis.refused_at );
    admission_greet( admission );
    admission_send_all( admission ); /* what goes back goes before new questions */
    if ( now >= admission->next_sweep ) {
        admission->next_sweep = now + ( admission->capacity > 4096 ? 0.1 : 0.02 );
        admission_sweep( admission );
        admission_send_all( admission );
    }
    redis_update( &admission->redis, now ); /* what was queued goes now */
    double took = netcode_time() - start;
    if ( took > admission->longest_seconds )
        admission->longest_seconds = took;
    return admission->redis.count || admission->pending ? 0.005 : 0.05;
}

/* ---- the beginning and the end ---- */

static inline void admission_default_config( struct admission_config_t * config )
{
    memset( config, 0, sizeof( *config ) );
    redis_default_config( &config->redis );
    config->lease_seconds = ADMISSION_LEASE_SECONDS;
    config->policy = ADMISSION_DIRECT;
}

/* Behind the leases' name stands a nonce of this process: what an earlier one took is not ours. */
static inline void admission_name( struct admission_t * admission, const char * name )
{
    uint8_t boot[8];
    char hex[2 * sizeof( boot ) + 1];
    randombytes_buf( boot, sizeof( boot ) );
    sodium_bin2hex( hex, sizeof( hex ), boot, sizeof( boot ) );
    snprintf( admission->own, sizeof( admission->own ), "%s/%s/", name, hex );
}

static inline int admission_is_name( const char * name )
{
    size_t bytes = strlen( name );
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( name[i] < '!' || name[i] > '~' || name[i] == '/' )
            return 0;
    }
    return bytes && bytes < ADMISSION_NAME_BYTES;
}

static inline int admission_allocate( struct admission_t * admission, int slots, int commands )
{
    admission->capacity = slots + ( slots > 256 ? slots : 256 );
    admission->returns_capacity = 2 * admission->capacity;
    admission->tokens_capacity = slots > 128 ? 8 * slots : 1024;
    admission->players =
        (struct admission_player_t *) calloc( (size_t) admission->capacity, sizeof( *admission->players ) );
    admission->heads = (int *) calloc( (size_t) admission->capacity, sizeof( *admission->heads ) );
    admission->returns =
        (struct admission_return_t *) calloc( (size_t) admission->returns_capacity, sizeof( *admission->returns ) );
    admission->tokens =
        (struct admission_used_t *) calloc( (size_t) admission->tokens_capacity, sizeof( *admission->tokens ) );
    admission->calls = (struct admission_call_t *) calloc( (size_t) commands, sizeof( *admission->calls ) );
    if ( !admission->players || !admission->heads || !admission->returns || !admission->tokens || !admission->calls )
        return 0;
    admission->free_player = admission->free_call = ADMISSION_NONE;
    for ( int i = admission->capacity - 1; i >= 0; i-- ) {
        admission->heads[i] = ADMISSION_NONE;
        admission->players[i].next = admission->free_player;
        admission->free_player = i;
    }
    for ( int i = 0; i < commands; i++ ) {
        admission->calls[i].admission = admission;
        admission->calls[i].next_free = admission->free_call;
        admission->free_call = i;
    }
    return 1;
}

/* Also after an open that failed. Waiting commands call back, so the tables are freed last. */
static inline void admission_free( struct admission_t * admission )
{
    admission->log = NULL;
    redis_close( &admission->redis );
    free( admission->players );
    free( admission->heads );
    free( admission->returns );
    free( admission->tokens );
    free( admission->calls );
    memset( admission, 0, sizeof( *admission ) );
    admission->redis.fd = -1;
}

/* 0: admission->redis.why says what is wrong. That Redis is not there is no error. */
static inline int admission_open( struct admission_t * admission, const struct admission_config_t * config, double now )
{
    struct redis_link_config_t redis = config->redis;
    const char * why = NULL;
    memset( admission, 0, sizeof( *admission ) );
    admission->redis.fd = -1;
    redis.log = config->log;
    redis.context = config->context;
    /* Renewals of all players, twice, beside questions. */
    if ( redis.commands < 4 * ( config->slots / ADMISSION_BATCH ) + REDIS_LINK_COMMANDS )
        redis.commands = 4 * ( config->slots / ADMISSION_BATCH ) + REDIS_LINK_COMMANDS;
    if ( !config->name || !admission_is_name( config->name ) )
        why = "a server's name has 1 to 63 visible ASCII letters, and no slash";
    else if ( config->slots < 1 || !( config->lease_seconds >= 1.0 && config->lease_seconds <= 3600.0 ) )
        why = "there is at least one slot, and a lease takes 1 to 3600 seconds";
    else if ( !admission_allocate( admission, config->slots, redis.commands ) )
        why = "memory is short";
    if ( why ) {
        admission_free( admission );
        snprintf( admission->redis.why, sizeof( admission->redis.why ), "%s", why );
        return 0;
    }
    admission->log = config->log;
    admission->log_context = config->context;
    admission->lease = config->lease_seconds;
    admission->margin = config->lease_seconds < 2.5 ? config->lease_seconds / 10.0 : 0.25;
    admission->policy = config->policy;
    admission->older_stays = config->older_stays;
    admission->now = admission->next_renewal = now;
    admission->second = now - 1.0;
    admission->renew_from = admission->announce_from = ADMISSION_NONE;
    admission_name( admission, config->name );
    return redis_open( &admission->redis, &redis, now );
}

/*  Behind netcode_server_stop and its events: gives all leases back, and waits a second at most until Redis has heard it.
    What it has not heard ends by itself. Also after an open that failed. */
static inline void admission_close( struct admission_t * admission, double ( *clock_seconds )( void ) )
{
    admission->closing = 1;
    admission->now = clock_seconds();
    for ( int i = 0; i < admission->capacity && admission->players; i++ ) {
        struct admission_player_t * player = &admission->players[i];
        if ( player->used && player->ask.state != ADMISSION_ASK_NONE )
            admission_return_ask( admission, player );
        if ( player->used )
            admission_return_lease( admission, player );
    }
    double until = admission->now + 1.0;
    while ( admission->players && admission->redis.state == REDIS_LINK_READY && clock_seconds() < until &&
            ( admission->returns_count || admission->redis.count ) ) {
        admission->now = clock_seconds();
        while ( admission->returns_count && admission_send_returns( admission ) )
            ;
        redis_finish( &admission->redis, until - admission->now, clock_seconds );
    }
    admission_free( admission );
}

#endif
