/*  What several backends share in one Redis: login sessions, players' rates, revocations. Each request of a player is one
    command, a script that Redis runs as a whole, by its own clock: two backends that ask at once can not both have the last
    of a rate, and no session outlives a revocation.

        store_ask_session( &link, now, hash, rate, on_answer, context )      // 0: not now, link.why says why
        ... in on_answer( context, what, reply ):  store_read( what, reply, &answer )

    Keys, behind the prefix:
        login:HASH_HEX          a session by the hash of its credential: id, listed, name; ends by itself
        logins:CLIENT_ID        the hashes of a player's sessions by their end, so that a revocation finds them;
                                ends with the last of them
        revoked:CLIENT_ID       the player is revoked, for a time or for ever
        rate:player:CLIENT_ID   what is left of the player's rate, and since when
        home:CLIENT_ID          the server that headed the player's last token, for a day

    A command whose answer did not come in time may still be done: a session that no player has then, which ends by
    itself, and is one of the eight of its player; one less of a rate; a logout or a revocation, as it was meant.

    The scripts make keys of what they read, so this is for one Redis (with replicas, if you like), not for a Redis cluster.
    Include it behind ../fleet/redis.h. */

#ifndef BACKEND_STORE_H
#define BACKEND_STORE_H

#define STORE_NAME_BYTES 64 /* as backend.c's NAME_BYTES */
#define STORE_HASH_BYTES 32
#define STORE_SESSIONS_PER_PLAYER "8" /* the oldest ends when one more begins */
#define STORE_HOME_SECONDS "86400"
#define STORE_MAX_WORDS 16
#define STORE_WHY_BYTES 128

enum store_result_t {
    STORE_OK,
    STORE_UNKNOWN, /* there is no such session */
    STORE_REVOKED,
    STORE_RATE_LIMITED,
    STORE_FULL, /* Redis has as much as maxmemory allows */
    STORE_UNREACHABLE
};

struct store_answer_t {
    enum store_result_t result;
    uint64_t client_id;
    int is_listed;
    int seconds; /* until the rate allows more */
    int count;   /* of sessions that a revocation ended */
    char name[STORE_NAME_BYTES];
    char home[STORE_NAME_BYTES];
    char why[STORE_WHY_BYTES]; /* an error that Redis should not have; "" else */
};

/*  A token bucket: 0 when one could be taken, else in how many seconds. Nothing is written for who is refused, or for what
    costs nothing (rate 0). A bucket of a later time is from before the clock of Redis was set back: what was taken since
    can not be known, and it counts as whole. */
#define STORE_TAKE                                                                                        \
    "local function take(key, rate) "                                                                     \
    "if rate == 0 then return 0 end "                                                                     \
    "local t = redis.call('TIME') "                                                                       \
    "local now = tonumber(t[1]) + tonumber(t[2]) / 1000000 "                                              \
    "local v = redis.call('HMGET', key, 'left', 'at') "                                                   \
    "local left, at = tonumber(v[1]) or rate, tonumber(v[2]) or now "                                     \
    "if at > now then left, at = rate, now end "                                                          \
    "left = math.min(rate, left + (now - at) * rate / 60) "                                               \
    "if left < 1 then return math.ceil((1 - left) * 60 / rate) end "                                      \
    "redis.call('HSET', key, 'left', string.format('%.6f', left - 1), 'at', string.format('%.6f', now)) " \
    "redis.call('EXPIRE', key, 61) "                                                                      \
    "return 0 end "                                                                                       \
    "local function admit(id, rate) "                                                                     \
    "if redis.call('EXISTS', p .. 'revoked:' .. id) == 1 then return {'revoked'} end "                    \
    "local wait = take(p .. 'rate:player:' .. id, tonumber(rate)) "                                       \
    "if wait > 0 then return {'rate', wait} end "                                                         \
    "end "

/* prefix, id, rate */
static const char store_player_script[] =
    "local p = ARGV[1] " STORE_TAKE
    "return admit(ARGV[2], ARGV[3]) or {'ok', ARGV[2], '1', '', redis.call('GET', p .. 'home:' .. ARGV[2]) or ''}";

/* prefix, hash, rate */
static const char store_session_script[] =
    "local p = ARGV[1] " STORE_TAKE "local s = redis.call('HMGET', p .. 'login:' .. ARGV[2], 'id', 'listed', 'name') "
    "if not s[1] then return {'unknown'} end "
    "return admit(s[1], ARGV[3]) or {'ok', s[1], s[2], s[3], redis.call('GET', p .. 'home:' .. s[1]) or ''}";

/* prefix, id, rate, hash, seconds, sessions, listed, name */
static const char store_login_script[] =
    "local p = ARGV[1] " STORE_TAKE "local refusal = admit(ARGV[2], ARGV[3]) "
    "if refusal then return refusal end "
    "local logins, t = p .. 'logins:' .. ARGV[2], redis.call('TIME') "
    "local now = tonumber(t[1]) + tonumber(t[2]) / 1000000 "
    "redis.call('ZREMRANGEBYSCORE', logins, '-inf', string.format('%.6f', now)) "
    "while redis.call('ZCARD', logins) >= tonumber(ARGV[6]) do "
    "redis.call('DEL', p .. 'login:' .. redis.call('ZPOPMIN', logins)[1]) end "
    "redis.call('HSET', p .. 'login:' .. ARGV[4], 'id', ARGV[2], 'listed', ARGV[7], 'name', ARGV[8]) "
    "redis.call('EXPIRE', p .. 'login:' .. ARGV[4], ARGV[5]) "
    "redis.call('ZADD', logins, string.format('%.6f', now + tonumber(ARGV[5])), ARGV[4]) "
    "local last = redis.call('ZRANGE', logins, -1, -1, 'WITHSCORES')[2] "
    "redis.call('EXPIRE', logins, math.ceil(tonumber(last) - now)) "
    "return {'ok', ARGV[2], ARGV[7], ARGV[8], ''}";

/* prefix, hash */
static const char store_logout_script[] =
    "local p = ARGV[1] local id = redis.call('HGET', p .. 'login:' .. ARGV[2], 'id') "
    "if not id then return {'unknown'} end "
    "redis.call('DEL', p .. 'login:' .. ARGV[2]) "
    "redis.call('ZREM', p .. 'logins:' .. id, ARGV[2]) "
    "return {'ok', id, '0', '', ''}";

/* prefix, id, seconds (0: for ever) */
static const char store_revoke_script[] = "local p, id = ARGV[1], ARGV[2] local logins = p .. 'logins:' .. id "
                                          "local since = redis.call('TIME')[1] "
                                          "if ARGV[3] == '0' then redis.call('SET', p .. 'revoked:' .. id, since) "
                                          "else redis.call('SET', p .. 'revoked:' .. id, since, 'EX', ARGV[3]) end "
                                          "local all = redis.call('ZRANGE', logins, 0, -1) "
                                          "for _, hash in ipairs(all) do redis.call('DEL', p .. 'login:' .. hash) end "
                                          "redis.call('DEL', logins) "
                                          "return {'revokes', #all}";

/* prefix, id */
static const char store_restore_script[] = "return {'revokes', redis.call('DEL', ARGV[1] .. 'revoked:' .. ARGV[2])}";

/* ---- asking ---- */

/* `words` are what the script gets behind the prefix, and end with NULL. */
static int store_eval( struct redis_link_t * link, double now, const char * script, const char * const * words,
                       redis_callback_t done, void * context )
{
    const char * all[STORE_MAX_WORDS] = { "EVAL", script, "0", link->prefix };
    int count = 4;
    while ( *words && count < STORE_MAX_WORDS )
        all[count++] = *words++;
    return redis_send( link, now, count, all, NULL, done, context );
}

struct store_words_t {
    char id[24];
    char rate[16];
    char seconds[16];
    char hash[2 * STORE_HASH_BYTES + 1];
};

static void store_fill( struct store_words_t * words, uint64_t client_id, const uint8_t * hash, int rate, int seconds )
{
    memset( words, 0, sizeof( *words ) );
    snprintf( words->id, sizeof( words->id ), "%llu", (unsigned long long) client_id );
    snprintf( words->rate, sizeof( words->rate ), "%d", rate );
    snprintf( words->seconds, sizeof( words->seconds ), "%d", seconds );
    if ( hash )
        sodium_bin2hex( words->hash, sizeof( words->hash ), hash, STORE_HASH_BYTES );
}

/* May this player, who is in the players file, ask once more? */
static int store_ask_player( struct redis_link_t * link, double now, uint64_t client_id, int rate,
                             redis_callback_t done, void * context )
{
    struct store_words_t words;
    store_fill( &words, client_id, NULL, rate, 0 );
    const char * list[] = { words.id, words.rate, NULL };
    return store_eval( link, now, store_player_script, list, done, context );
}

/* Whose session is it, and may he ask once more? */
static int store_ask_session( struct redis_link_t * link, double now, const uint8_t hash[STORE_HASH_BYTES], int rate,
                              redis_callback_t done, void * context )
{
    struct store_words_t words;
    store_fill( &words, 0, hash, rate, 0 );
    const char * list[] = { words.hash, words.rate, NULL };
    return store_eval( link, now, store_session_script, list, done, context );
}

struct store_login_t {
    uint64_t client_id;
    const char * name;
    int is_listed;
    int rate;
    int seconds;
};

static int store_login( struct redis_link_t * link, double now, const struct store_login_t * login,
                        const uint8_t hash[STORE_HASH_BYTES], redis_callback_t done, void * context )
{
    struct store_words_t words;
    store_fill( &words, login->client_id, hash, login->rate, login->seconds );
    const char * list[] =
        { words.id,    words.rate, words.hash, words.seconds, STORE_SESSIONS_PER_PLAYER, login->is_listed ? "1" : "0",
          login->name, NULL };
    return store_eval( link, now, store_login_script, list, done, context );
}

static int store_logout( struct redis_link_t * link, double now, const uint8_t hash[STORE_HASH_BYTES],
                         redis_callback_t done, void * context )
{
    struct store_words_t words;
    store_fill( &words, 0, hash, 0, 0 );
    const char * list[] = { words.hash, NULL };
    return store_eval( link, now, store_logout_script, list, done, context );
}

/* For so many seconds, or for ever with 0. */
static int store_revoke( struct redis_link_t * link, double now, uint64_t client_id, int seconds, redis_callback_t done,
                         void * context )
{
    struct store_words_t words;
    store_fill( &words, client_id, NULL, 0, seconds );
    const char * list[] = { words.id, words.seconds, NULL };
    return store_eval( link, now, store_revoke_script, list, done, context );
}

static int store_restore( struct redis_link_t * link, double now, uint64_t client_id, redis_callback_t done,
                          void * context )
{
    struct store_words_t words;
    store_fill( &words, client_id, NULL, 0, 0 );
    const char * list[] = { words.id, NULL };
    return store_eval( link, now, store_restore_script, list, done, context );
}

static void store_ignore( void * context, int what, const redisReply * reply )
{
    (void) context, (void) what, (void) reply;
}

/* A help for players who come back, and no more: whether it arrives is not waited for. */
static void store_keep_home( struct redis_link_t * link, double now, uint64_t client_id, const char * home )
{
    char key[REDIS_LINK_PREFIX_BYTES + 32];
    snprintf( key, sizeof( key ), "%shome:%llu", link->prefix, (unsigned long long) client_id );
    const char * words[] = { "SET", key, home, "EX", STORE_HOME_SECONDS };
    redis_send( link, now, 5, words, NULL, store_ignore, NULL );
}

/* ---- answers ---- */

static const char * store_item( const redisReply * reply, size_t index )
{
    return index < reply->elements && reply->element[index]->type == REDIS_REPLY_STRING ? reply->element[index]->str
                                                                                        : NULL;
}

static int store_number( const redisReply * reply, size_t index )
{
    return index < reply->elements && reply->element[index]->type == REDIS_REPLY_INTEGER
               ? (int) reply->element[index]->integer
               : 0;
}

/* 0 when it is not what the scripts return: another program wrote to our keys. */
static int store_read_player( const redisReply * reply, struct store_answer_t * answer )
{
    char * end = NULL;
    const char * id = store_item( reply, 1 );
    const char * listed = store_item( reply, 2 );
    const char * name = store_item( reply, 3 );
    const char * home = store_item( reply, 4 );
    if ( !id || !listed || !name || !home || strlen( name ) >= STORE_NAME_BYTES || strlen( home ) >= STORE_NAME_BYTES )
        return 0;
    errno = 0;
    answer->client_id = (uint64_t) strtoull( id, &end, 10 );
    answer->is_listed = !strcmp( listed, "1" );
    snprintf( answer->name, sizeof( answer->name ), "%s", name );
    snprintf( answer->home, sizeof( answer->home ), "%s", home );
    return *id >= '0' && *id <= '9' && !*end && !errno;
}

static enum store_result_t store_read_array( const redisReply * reply, struct store_answer_t * answer )
{
    const char * word = store_item( reply, 0 );
    answer->seconds = answer->count = store_number( reply, 1 );
    if ( word && !strcmp( word, "unknown" ) )
        return STORE_UNKNOWN;
    if ( word && !strcmp( word, "revoked" ) )
        return STORE_REVOKED;
    if ( word && !strcmp( word, "rate" ) && answer->seconds > 0 )
        return STORE_RATE_LIMITED;
    if ( word && ( !strcmp( word, "revokes" ) || ( !strcmp( word, "ok" ) && store_read_player( reply, answer ) ) ) )
        return STORE_OK;
    snprintf( answer->why, sizeof( answer->why ), "an answer that our scripts do not give" );
    return STORE_UNREACHABLE;
}

/* While Redis loads its files or has no master, it says so: that passes. Other errors are the operator's to read. */
static enum store_result_t store_read_error( const char * text, struct store_answer_t * answer )
{
    if ( !strncmp( text, "OOM ", 4 ) )
        return STORE_FULL;
    snprintf( answer->why, sizeof( answer->why ), "%.100s", text );
    for ( char * at = answer->why; *at; at++ )
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    return STORE_UNREACHABLE;
}

static void store_read( int what, const redisReply * reply, struct store_answer_t * answer )
{
    memset( answer, 0, sizeof( *answer ) );
    answer->result = STORE_UNREACHABLE;
    if ( what != REDIS_LINK_ANSWER )
        return;
    if ( reply->type == REDIS_REPLY_ERROR )
        answer->result = store_read_error( reply->str, answer );
    else if ( reply->type == REDIS_REPLY_ARRAY )
        answer->result = store_read_array( reply, answer );
    else
        snprintf( answer->why, sizeof( answer->why ), "an answer that our scripts do not give" );
}

#endif
