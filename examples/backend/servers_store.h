/*  What several backends know of the game servers: a report reaches one of them, and stands in Redis a moment later for the
    others. A proxy that takes turns may well send all reports of a server to the same backend: with two backends and an
    even number of servers it does.

        servers_store_share( app, report, text )    // each report that was accepted
        servers_store_update( app, now )            // each turn: once a second, all reports that are newer than ours

    Key, behind the prefix: the hash servers:PROTOCOL_ID, by the server's name "milliseconds report"; what is older than ten
    seconds is taken out, and what is dated ahead: it is from before the clock of Redis was set back. logins.h includes this
    with -DBACKEND_FULL; without --redis nothing here is in use. */

#ifndef BACKEND_SERVERS_STORE_H
#define BACKEND_SERVERS_STORE_H

#define SERVERS_STORE_SECONDS 1.0
#define SERVERS_STORE_MILLISECONDS "10000"
/* Milliseconds. Redis dates all reports itself, but a replica that takes over has a clock of its own. */
#define SERVERS_STORE_AHEAD "1000"
/* All of them fit into one answer (REDIS_LINK_ANSWER_BYTES). A report of one address has 250. */
#define SERVERS_STORE_REPORT_BYTES 3500
#define SERVERS_STORE_SERVERS "256"
#define SERVERS_STORE_NEWER_SECONDS \
    0.25 /* less is our own report: the clocks of Redis and of ours are compared only so well */

struct servers_store_t {
    int asked;
    double sent_at;
    double next;
};

static struct servers_store_t servers_store;

/* prefix, protocol id, name, report */
static const char servers_share_script[] =
    "local k, t = ARGV[1] .. 'servers:' .. ARGV[2], redis.call('TIME') "
    "redis.call('HSET', k, ARGV[3], t[1] * 1000 + math.floor(t[2] / 1000) .. ' ' .. ARGV[4]) "
    "redis.call('PEXPIRE', k, " SERVERS_STORE_MILLISECONDS ") "
    "return {'ok'}";

/* prefix, protocol id: age in milliseconds and report of each */
static const char servers_read_script[] =
    "local k, t, out = ARGV[1] .. 'servers:' .. ARGV[2], redis.call('TIME'), {} "
    "local now, all = t[1] * 1000 + math.floor(t[2] / 1000), redis.call('HGETALL', k) "
    "for i = 1, #all, 2 do "
    "local at, report = string.match(all[i + 1], '^(%d+) (.*)$') "
    "local age = now - tonumber(at or 0) "
    "if age > " SERVERS_STORE_MILLISECONDS " or age < -" SERVERS_STORE_AHEAD " then redis.call('HDEL', k, all[i]) "
    "elseif #out < 2 * " SERVERS_STORE_SERVERS " then "
    "out[#out + 1] = tostring(math.max(0, age)) out[#out + 1] = report end end "
    "return out";

static void servers_store_id( const struct app_t * app, char id[24] )
{
    snprintf( id, 24, "0x%llx", (unsigned long long) app->options.protocol_id );
}

/* A report that is too long, or that Redis does not take, is known here alone, as without Redis. */
static void servers_store_share( struct app_t * app, const struct server_t * report, const char * text )
{
    char id[24];
    const char * words[] = { id, report->name, text, NULL };
    if ( !full_has_store( app ) || strlen( text ) > SERVERS_STORE_REPORT_BYTES )
        return;
    servers_store_id( app, id );
    store_eval( &app->full.link, netcode_time(), servers_share_script, words, store_ignore, NULL );
}

/* Takes what is newer than what its entry holds. Another backend has checked it; a backend of another version may differ. */
static void servers_store_take( struct app_t * app, const char * age, const char * text )
{
    struct server_t report;
    uint64_t milliseconds = 0;
    cJSON * json = cJSON_Parse( text );
    if ( json && parse_u64( age, 10, &milliseconds ) && !read_report( json, &report ) ) {
        struct server_t * server = find_server( app, report.name );
        report.heard_at = servers_store.sent_at - (double) milliseconds / 1000.0;
        if ( server && ( !server->name[0] || report.heard_at > server->heard_at + SERVERS_STORE_NEWER_SECONDS ) ) {
            take_report( app, server, &report );
            match_read_report( json );
        }
    }
    cJSON_Delete( json );
}

static void servers_store_on_read( void * context, int what, const redisReply * reply )
{
    struct app_t * app = (struct app_t *) context;
    servers_store.asked = 0;
    if ( what != REDIS_LINK_ANSWER || reply->type != REDIS_REPLY_ARRAY )
        return;
    for ( size_t i = 0; i + 1 < reply->elements; i += 2 ) {
        if ( store_item( reply, i ) && store_item( reply, i + 1 ) )
            servers_store_take( app, store_item( reply, i ), store_item( reply, i + 1 ) );
    }
}

static void servers_store_update( struct app_t * app, double now )
{
    char id[24];
    const char * words[] = { id, NULL };
    if ( !full_has_store( app ) || servers_store.asked || now < servers_store.next )
        return;
    servers_store_id( app, id );
    servers_store.next = now + SERVERS_STORE_SECONDS;
    servers_store.sent_at = now;
    servers_store.asked = store_eval( &app->full.link, now, servers_read_script, words, servers_store_on_read, app );
}

#endif
