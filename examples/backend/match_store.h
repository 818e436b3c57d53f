/*  One queue for several backends that share a Redis: one of them finds matches, for as long as it holds a lease there and
    renews it; each change of a ticket is written to Redis, and who gets the lease next reads them all. A backend without the
    lease answers "not_matchmaker", and the proxy asks the next one: nginx.conf.

    All or none: the tickets of a match are written as matched by one script, which Redis runs as a whole, and only for the
    holder of the lease; no player hears of his match before it has. A backend that is killed loses what it had not yet
    written: a tenth of a second of requests, whose players find their ticket unknown and ask again. A match whose server was
    being looked for is back in the queue.

    Keys, behind the prefix: match:lease, and the hash match:tickets: by the player's id a record, "version text". match.h
    includes this with -DBACKEND_FULL; without --redis nothing here is in use. */

#ifndef BACKEND_MATCH_STORE_H
#define BACKEND_MATCH_STORE_H

#define MATCH_LEASE_MILLISECONDS "3000"
#define MATCH_LEASE_SECONDS 3.0
#define MATCH_LEASE_MARGIN 0.3 /* so much earlier we do not believe in it any more */
#define MATCH_RENEW_SECONDS 0.8
#define MATCH_TRY_SECONDS 0.5
#define MATCH_RECORD_BYTES 2048
#define MATCH_FLUSH_TICKETS 32
#define MATCH_LOAD_COUNT "200"
#define MATCH_FARTHEST_SECONDS 100000.0 /* ahead; a match lives for a day at most, see --expire */
#define MATCH_ERROR_SECONDS 1.0         /* before the next write, when Redis answered one with an error */
#define MATCH_STOP_SECONDS 1.0          /* at the end, to write what has changed */
#define MATCH_WRITE_WORDS ( 6 + 2 * MM_MAX_PLAYERS )

/*  prefix, who, milliseconds. A lease that lasts longer than a lease is one from before the clock of Redis was set back: it
    is shortened, or no backend would find matches until the clock is where it was. */
static const char match_lease_script[] =
    "local k = ARGV[1] .. 'match:lease' local t = redis.call('TIME') local v = redis.call('GET', k) "
    "if v and v ~= ARGV[2] then "
    "if redis.call('PTTL', k) > tonumber(ARGV[3]) then redis.call('PEXPIRE', k, ARGV[3]) end "
    "return {'other', t[1], t[2]} end "
    "redis.call('SET', k, ARGV[2], 'PX', ARGV[3]) "
    "return {v and 'kept' or 'new', t[1], t[2]}";

/* prefix, who: gives it back */
static const char match_release_script[] = "local k = ARGV[1] .. 'match:lease' "
                                           "if redis.call('GET', k) == ARGV[2] then redis.call('DEL', k) end "
                                           "return {'ok'}";

/*  prefix, who, "match" or "tickets", then client id and record ("version": delete it): all are written, or none. No match
    is written of players of whom one is revoked: the answer names all such, who may be in the queue from before that. None when one of them has a
    newer record: a command that arrives late, on a link that was lost, does not undo what was written after it, and who
    counts behind others gets the version that is to be passed. 9e15 micros are the year 2255: no version of ours. */
static const char match_write_script[] =
    "local k = ARGV[1] .. 'match:tickets' "
    "if redis.call('GET', ARGV[1] .. 'match:lease') ~= ARGV[2] then return {'other'} end "
    "local newest, behind, revoked = 0, false, {'revoked'} "
    "for i = 4, #ARGV, 2 do "
    "if ARGV[3] == 'match' and redis.call('EXISTS', ARGV[1] .. 'revoked:' .. ARGV[i]) == 1 then "
    "table.insert(revoked, ARGV[i]) end "
    "local old = tonumber(string.match(redis.call('HGET', k, ARGV[i]) or '', '^%d+')) or 0 "
    "if old < 9e15 then newest = math.max(newest, old) "
    "behind = behind or old >= tonumber(string.match(ARGV[i + 1], '^%d+')) end end "
    "if #revoked > 1 then return revoked end "
    "if behind then return {'behind', string.format('%.0f', newest)} end "
    "for i = 4, #ARGV, 2 do "
    "if string.find(ARGV[i + 1], ' ', 1, true) then redis.call('HSET', k, ARGV[i], ARGV[i + 1]) "
    "else redis.call('HDEL', k, ARGV[i]) end end "
    "redis.call('EXPIRE', k, 86400) "
    "return {'ok'}";

/* A match whose server is found, on its way to Redis. */
struct match_commit_t {
    int is_open;
    int is_asked;
    uint64_t epoch;
    char server[MM_PLACE_BYTES];
    char place[MM_PLACE_BYTES];
    double ended_at;
};

struct match_store_t {
    char me[MM_ID_BYTES];
    uint64_t epoch; /* another one with each lease: answers to an older one's questions are not heard */
    int is_active;  /* we hold the lease, and have read all tickets */
    int is_loading;
    double lease_until;
    double other_until; /* until then another backend may well hold it */
    int lease_asked;
    double lease_sent_at;
    double next_lease;
    double offset; /* Redis' time less ours */
    uint64_t version;
    int load_asked;
    char cursor[24]; /* where HSCAN goes on */
    uint64_t load_epoch;
    int flush_asked;
    uint64_t flush_epoch;
    uint64_t flushed[MATCH_FLUSH_TICKETS]; /* client ids */
    int num_flushed;
    struct match_commit_t commits[MM_MAX_MATCHES];
    char text[MATCH_WRITE_WORDS / 2][MATCH_RECORD_BYTES];
    char ids[MATCH_WRITE_WORDS / 2][24];
    double next_flush;
    double full_until; /* until then we take it that Redis has no memory for a lease */
    int write_refused; /* Redis answers errors: there was a line */
    int lease_refused;
    uint64_t takeovers;
    struct app_t * app;
};

static struct match_store_t match_store;

static int match_has_store( const struct app_t * app )
{
    return full_has_store( app ) && matchmaker.modes_file;
}

/* ---- records ---- */

/* There is such a record, of another backend whose clock may be ahead of ours. */
static void match_pass_version( uint64_t version )
{
    if ( version > match_store.version && version < 9000000000000000ull )
        match_store.version = version;
}

/* Higher than all before it, also than those of a backend that had the lease before us. */
static uint64_t match_next_version( double now )
{
    uint64_t version = (uint64_t) ( ( now + match_store.offset ) * 1e6 );
    match_store.version = version > match_store.version ? version : match_store.version + 1;
    return match_store.version;
}

/*  "version 1 id state reason 0 sequence joined ended match region team players mode party size regions place": times by
    Redis' clock, names and not numbers where backends may count differently, "-" for what is empty. How often a server was
    looked for in vain is not kept: who gets the lease next may know others. */
static void match_print_record( const struct mm_ticket_t * ticket, uint64_t version, char text[MATCH_RECORD_BYTES] )
{
    const struct mm_mode_t * mode = &matchmaker.mm.modes[ticket->wish.mode];
    int at = snprintf( text, MATCH_RECORD_BYTES, "%llu", (unsigned long long) version );
    if ( ticket->state == MM_FREE )
        return;
    at +=
        snprintf( text + at, (size_t) ( MATCH_RECORD_BYTES - at ), " 1 %s %d %d 0 %llu %.3f %.3f %s %s %d %d %s %s %d ",
                  ticket->id, ticket->state, ticket->reason, (unsigned long long) ticket->sequence,
                  ticket->joined_at + match_store.offset, ticket->ended_at + match_store.offset,
                  ticket->match[0] ? ticket->match : "-", mode->regions[ticket->region], ticket->team, ticket->players,
                  mode->name, ticket->wish.party[0] ? ticket->wish.party : "-", ticket->wish.party_size );
    for ( int i = 0; i < ticket->wish.num_regions && at < MATCH_RECORD_BYTES; i++ )
        at += snprintf( text + at, (size_t) ( MATCH_RECORD_BYTES - at ), "%s%s", i ? "," : "",
                        mode->regions[ticket->wish.regions[i]] );
    if ( at < MATCH_RECORD_BYTES )
        snprintf( text + at, (size_t) ( MATCH_RECORD_BYTES - at ), " %s", ticket->place );
}

static int match_read_number( char ** text, int minimum, int maximum, int * value )
{
    return parse_int( take_word( text ), minimum, maximum, value );
}

/* None that is no number or years away: tickets would have no end, and seconds do not fit into an int. */
static int match_read_time( char ** text, double * value )
{
    char * end = NULL;
    const char * word = take_word( text );
    *value = strtod( word, &end ) - match_store.offset;
    return end != word && *end == '\0' && *value > -1e10 && *value < netcode_time() + MATCH_FARTHEST_SECONDS;
}

static int match_read_word( char ** text, char * to, size_t bytes )
{
    const char * word = take_word( text );
    snprintf( to, bytes, "%s", strcmp( word, "-" ) ? word : "" );
    return *word && strlen( word ) < bytes;
}

static int match_read_region_names( const struct mm_mode_t * mode, char * text, struct mm_wish_t * wish )
{
    while ( *text && wish->num_regions < MM_MAX_REGIONS ) {
        char * next = text + strcspn( text, "," );
        if ( *next )
            *next++ = '\0';
        int region = mm_find_region( mode, text );
        if ( region < 0 || mm_rank( wish, region ) >= 0 )
            return 0;
        wish->regions[wish->num_regions++] = (uint8_t) region;
        text = next;
    }
    return wish->num_regions && !*text;
}

/* 0 when it is none of ours, or of a mode that we do not have. The text is cut into words. */
static int match_read_record( char * text, struct mm_ticket_t * ticket )
{
    char region[MM_NAME_BYTES];
    char mode_name[MM_NAME_BYTES];
    uint64_t version = 0;
    int tries = 0; /* of those that wrote them */
    memset( ticket, 0, sizeof( *ticket ) );
    if ( !parse_u64( take_word( &text ), 10, &version ) || strcmp( take_word( &text ), "1" ) != 0 ||
         !match_read_word( &text, ticket->id, sizeof( ticket->id ) ) ||
         !match_read_number( &text, MM_QUEUED, MM_FAILED, &ticket->state ) ||
         !match_read_number( &text, 0, MM_REASONS - 1, &ticket->reason ) ||
         !match_read_number( &text, 0, 1000, &tries ) || !parse_u64( take_word( &text ), 10, &ticket->sequence ) ||
         !match_read_time( &text, &ticket->joined_at ) || !match_read_time( &text, &ticket->ended_at ) ||
         !match_read_word( &text, ticket->match, sizeof( ticket->match ) ) ||
         !match_read_word( &text, region, sizeof( region ) ) ||
         !match_read_number( &text, 0, MM_MAX_TEAMS - 1, &ticket->team ) ||
         !match_read_number( &text, 0, MM_MAX_PLAYERS, &ticket->players ) ||
         !match_read_word( &text, mode_name, sizeof( mode_name ) ) ||
         !match_read_word( &text, ticket->wish.party, sizeof( ticket->wish.party ) ) ||
         !match_read_number( &text, 1, MM_MAX_PARTY, &ticket->wish.party_size ) )
        return 0;
    ticket->wish.mode = mm_find_mode( &matchmaker.mm, mode_name );
    if ( ticket->wish.mode < 0 )
        return 0;
    const struct mm_mode_t * mode = &matchmaker.mm.modes[ticket->wish.mode];
    ticket->region = mm_find_region( mode, region );
    int good = ticket->region >= 0 && match_read_region_names( mode, take_word( &text ), &ticket->wish );
    snprintf( ticket->place, sizeof( ticket->place ), "%s", trim( text ) );
    return good && ( ticket->state != MM_MATCHED || ticket->place[0] );
}

/* ---- the lease ---- */

/* Redis answers, but with an error. A line, when it begins. 1: it is full. */
static int match_on_error( const redisReply * reply, const char * what, int * is_said )
{
    struct store_answer_t answer;
    store_read( REDIS_LINK_ANSWER, reply, &answer );
    int is_full = answer.result == STORE_FULL;
    if ( !*is_said )
        say( match_store.app, "matchmaking: Redis does not take %s: %s", what, is_full ? "it is full" : answer.why );
    *is_said = 1;
    return is_full;
}

/* We do not find matches any more, or not yet: what is true stands in Redis. */
static void match_step_down( const char * why )
{
    if ( match_store.is_active || match_store.is_loading )
        say( match_store.app, "matchmaking: this backend stops finding matches: %s", why );
    match_store.is_active = match_store.is_loading = 0;
    match_store.lease_until = 0.0;
    match_store.epoch++;
    for ( int i = 0; i < MM_MAX_MATCHES; i++ )
        match_store.commits[i].is_open = 0;
    match_allocator_forget();
    mm_clear( &matchmaker.mm );
    memset( matchmaker.reservations, 0, sizeof( matchmaker.reservations ) );
    matchmaker.num_reservations = 0;
}

static void match_on_lease( void * context, int what, const redisReply * reply )
{
    uint64_t seconds = 0;
    uint64_t micros = 0;
    (void) context;
    match_store.lease_asked = 0;
    if ( what == REDIS_LINK_ANSWER && reply->type == REDIS_REPLY_ERROR &&
         match_on_error( reply, "our lease", &match_store.lease_refused ) )
        match_store.full_until = netcode_time() + MATCH_LEASE_SECONDS;
    if ( what != REDIS_LINK_ANSWER || reply->type != REDIS_REPLY_ARRAY )
        return;
    const char * word = store_item( reply, 0 );
    if ( !word || !store_item( reply, 1 ) || !store_item( reply, 2 ) ||
         !parse_u64( store_item( reply, 1 ), 10, &seconds ) || !parse_u64( store_item( reply, 2 ), 10, &micros ) )
        return;
    match_store.lease_refused = 0;
    match_store.full_until = 0.0;
    if ( !strcmp( word, "other" ) ) {
        match_store.other_until = netcode_time() + MATCH_LEASE_SECONDS;
        if ( match_store.is_active || match_store.is_loading )
            match_step_down( "another one has the lease" );
        return;
    }
    if ( !match_store.is_active && !match_store.is_loading ) {
        match_store.offset = (double) seconds + (double) micros / 1e6 - netcode_time();
        match_store.is_loading = 1;
        snprintf( match_store.cursor, sizeof( match_store.cursor ), "0" );
    } else if ( !strcmp( word, "new" ) ) {
        match_step_down( "Redis has forgotten our lease" ); /* and, it may be, all tickets: begin anew */
        return;
    }
    match_store.lease_until = match_store.lease_sent_at + MATCH_LEASE_SECONDS - MATCH_LEASE_MARGIN;
}

static void match_renew_lease( struct app_t * app, double now )
{
    const char * words[] = { match_store.me, MATCH_LEASE_MILLISECONDS, NULL };
    int holds = match_store.is_active || match_store.is_loading;
    if ( holds && now >= match_store.lease_until )
        match_step_down( "its lease in Redis could not be renewed" );
    if ( match_store.lease_asked || now < match_store.next_lease )
        return;
    match_store.next_lease = now + ( holds ? MATCH_RENEW_SECONDS : MATCH_TRY_SECONDS );
    match_store.lease_sent_at = now;
    match_store.lease_asked = store_eval( &app->full.link, now, match_lease_script, words, match_on_lease, NULL );
}

/* ---- reading all tickets ---- */

/* Slots are kept for the players of matches that another backend made, also for one who gave his place up. */
static void match_restore_reservation( const struct mm_ticket_t * ticket, double now )
{
    struct reservation_t * reservation = NULL;
    char id[24];
    int is_kept = ticket->state == MM_MATCHED || ( ticket->state == MM_FAILED && ticket->ended_at > now );
    if ( !is_kept || !ticket->match[0] || match_has_allocator() )
        return;
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && !reservation; i++ ) {
        if ( !strcmp( matchmaker.reservations[i].match, ticket->match ) )
            reservation = &matchmaker.reservations[i];
    }
    if ( !reservation ) {
        reservation = match_free_reservation();
        if ( !reservation )
            return;
        memcpy( reservation->match, ticket->match, sizeof( reservation->match ) );
        snprintf( reservation->server, sizeof( reservation->server ), "%.*s", (int) strcspn( ticket->place, " " ),
                  ticket->place );
        reservation->mode = ticket->wish.mode;
        reservation->until = ticket->ended_at;
        matchmaker.num_reservations++;
    }
    reservation->count++;
    snprintf( id, sizeof( id ), "%s%llu", reservation->clients[0] ? "," : "",
              (unsigned long long) ticket->wish.client_id );
    strncat( reservation->clients, id, sizeof( reservation->clients ) - strlen( reservation->clients ) - 1 );
}

/*  Times by a clock that was ahead of ours, as that of Redis before it was set back: no one has joined later than now, and
    no match has more time than one that begins now. 1 when there were such. */
static int match_bound_times( struct mm_ticket_t * ticket, double now )
{
    double latest = now + match_store.app->options.expire_seconds;
    int is_ahead = ticket->joined_at > now || ticket->ended_at > latest;
    if ( ticket->joined_at > now )
        ticket->joined_at = now;
    if ( ticket->ended_at > latest )
        ticket->ended_at = latest;
    return is_ahead;
}

static void match_take_record( uint64_t client_id, char * text, double now )
{
    struct mm_ticket_t ticket;
    if ( !match_read_record( text, &ticket ) )
        return;
    ticket.wish.client_id = client_id;
    ticket.seen_at = now; /* when he asked last is not known */
    int is_ahead = match_bound_times( &ticket, now );
    if ( !mm_restore( &matchmaker.mm, &ticket ) )
        return;
    match_restore_reservation( &ticket, now );
    if ( is_ahead ) /* or who takes over from us would give the match as much time again */
        mm_find_client( &matchmaker.mm, client_id )->is_changed = 1;
}

static void match_on_page( void * context, int what, const redisReply * reply )
{
    double now = netcode_time();
    (void) context;
    match_store.load_asked = 0;
    if ( match_store.load_epoch != match_store.epoch || !match_store.is_loading || what != REDIS_LINK_ANSWER )
        return;
    const char * cursor = reply->type == REDIS_REPLY_ARRAY ? store_item( reply, 0 ) : NULL;
    if ( !cursor || reply->elements != 2 || reply->element[1]->type != REDIS_REPLY_ARRAY ) {
        match_step_down( "the tickets in Redis can not be read" );
        return;
    }
    const redisReply * list = reply->element[1];
    for ( size_t i = 0; i + 1 < list->elements; i += 2 ) {
        uint64_t client_id = 0;
        const char * id = store_item( list, i );
        const char * record = store_item( list, i + 1 );
        char text[MATCH_RECORD_BYTES];
        if ( !id || !record || !parse_u64( id, 10, &client_id ) || strlen( record ) >= sizeof( text ) )
            continue;
        memcpy( text, record, strlen( record ) + 1 );
        match_pass_version( strtoull( text, NULL, 10 ) );
        match_take_record( client_id, text, now );
    }
    snprintf( match_store.cursor, sizeof( match_store.cursor ), "%.20s", cursor );
    if ( strcmp( cursor, "0" ) != 0 )
        return;
    int count = 0;
    for ( int i = 0; i < MM_MAX_TICKETS; i++ )
        count += matchmaker.mm.tickets[i].state != MM_FREE;
    match_store.is_loading = 0;
    match_store.is_active = 1;
    match_store.takeovers++;
    say( match_store.app, "matchmaking: this backend finds matches now, %d tickets are known", count );
}

static void match_load( struct app_t * app, double now )
{
    char key[REDIS_LINK_PREFIX_BYTES + 16];
    const char * words[] = { "HSCAN", key, match_store.cursor, "COUNT", MATCH_LOAD_COUNT };
    snprintf( key, sizeof( key ), "%smatch:tickets", app->full.link.prefix );
    match_store.load_epoch = match_store.epoch;
    match_store.load_asked = redis_send( &app->full.link, now, 5, words, NULL, match_on_page, NULL );
}

/* ---- writing ---- */

/*  What came of a script that writes: 1 done, 0 not done, -1 unknown, or to be done again with newer versions. Steps down
    when the lease is another's. */
static int match_was_written( int what, const redisReply * reply )
{
    uint64_t version = 0;
    const char * word = what == REDIS_LINK_ANSWER && reply->type == REDIS_REPLY_ARRAY ? store_item( reply, 0 ) : NULL;
    if ( what != REDIS_LINK_ANSWER )
        return -1;
    if ( !word ) {
        match_store.next_flush = netcode_time() + MATCH_ERROR_SECONDS;
        match_on_error( reply, "our tickets", &match_store.write_refused );
        return 0;
    }
    match_store.write_refused = 0;
    if ( !strcmp( word, "ok" ) )
        return 1;
    if ( !strcmp( word, "revoked" ) )
        return 0;
    if ( !strcmp( word, "behind" ) && store_item( reply, 1 ) && parse_u64( store_item( reply, 1 ), 10, &version ) ) {
        say( match_store.app, "matchmaking: Redis has newer tickets than ours, which are written again" );
        match_pass_version( version );
        return -1;
    }
    match_step_down( "another one has the lease" );
    return 0;
}

static int match_write( struct app_t * app, double now, int count, redis_callback_t done,
                        struct match_commit_t * match )
{
    const char * words[MATCH_WRITE_WORDS] = { "EVAL",         match_write_script,         "0", app->full.link.prefix,
                                              match_store.me, match ? "match" : "tickets" };
    int n = 6;
    for ( int i = 0; i < count; i++ ) {
        words[n++] = match_store.ids[i];
        words[n++] = match_store.text[i];
    }
    return redis_send( &app->full.link, now, n, words, NULL, done, match );
}

static void match_fill( int at, const struct mm_ticket_t * ticket, uint64_t client_id, uint64_t version )
{
    snprintf( match_store.ids[at], sizeof( match_store.ids[at] ), "%llu", (unsigned long long) client_id );
    match_print_record( ticket, version, match_store.text[at] );
}

static void match_on_flush( void * context, int what, const redisReply * reply )
{
    (void) context;
    match_store.flush_asked = 0;
    if ( match_store.flush_epoch != match_store.epoch || match_was_written( what, reply ) == 1 )
        return;
    for ( int i = 0; i < match_store.num_flushed; i++ ) { /* once more */
        for ( int k = 0; k < MM_MAX_TICKETS; k++ ) {
            if ( matchmaker.mm.clients[k] == match_store.flushed[i] )
                matchmaker.mm.tickets[k].is_changed = 1;
        }
    }
}

/* Tickets that have changed, but for those of a match whose script is on its way: that one writes them. */
static void match_flush( struct app_t * app, double now )
{
    int count = 0;
    for ( int i = 0; i < MM_MAX_TICKETS && count < MATCH_FLUSH_TICKETS; i++ ) {
        struct mm_ticket_t * ticket = &matchmaker.mm.tickets[i];
        if ( !ticket->is_changed || ticket->state == MM_TAKEN )
            continue;
        if ( ticket->state == MM_FREE && mm_find_client( &matchmaker.mm, matchmaker.mm.clients[i] ) ) {
            ticket->is_changed = 0; /* the player has come back, and his new ticket is not to be deleted */
            continue;
        }
        match_store.flushed[count] = matchmaker.mm.clients[i];
        match_fill( count, ticket, matchmaker.mm.clients[i], match_next_version( now ) );
        ticket->is_changed = 0;
        count++;
    }
    match_store.num_flushed = count;
    match_store.flush_epoch = match_store.epoch;
    if ( !count )
        return;
    match_store.flush_asked = match_write( app, now, count, match_on_flush, NULL );
    if ( !match_store.flush_asked )
        match_on_flush( NULL, REDIS_LINK_LOST, NULL );
}

/* ---- a match ---- */

/* Those whom Redis named are out of the queue, and their parties with them. Their next request hears that they are revoked. */
static void match_drop_revoked( const redisReply * reply )
{
    for ( size_t i = 1; i < reply->elements; i++ ) {
        uint64_t client_id = 0;
        const char * id = store_item( reply, i );
        struct mm_ticket_t * ticket = NULL;
        if ( id && parse_u64( id, 10, &client_id ) )
            ticket = mm_find_client( &matchmaker.mm, client_id );
        if ( ticket )
            mm_cancel( &matchmaker.mm, ticket, 0, netcode_time() );
    }
}

static void match_on_commit( void * context, int what, const redisReply * reply )
{
    struct match_commit_t * commit = (struct match_commit_t *) context;
    struct mm_match_t * match = &matchmaker.mm.matches[commit - match_store.commits];
    commit->is_asked = 0;
    if ( commit->epoch != match_store.epoch || !commit->is_open )
        return;
    int written = match_was_written( what, reply );
    if ( written < 0 || !commit->is_open )
        return; /* not known: it is written again, which does no harm, until our lease is over */
    commit->is_open = 0;
    if ( written ) {
        match_finish_commit( match_store.app, match, commit->server, commit->place, commit->ended_at );
        return;
    }
    const char * word = reply->type == REDIS_REPLY_ARRAY ? store_item( reply, 0 ) : NULL;
    match_give_back( match_store.app, match, word ? "a player is revoked" : "Redis does not take it" );
    if ( word )
        match_drop_revoked( reply );
}

/* Writes all tickets of the match as they will be. */
static void match_send_commit( struct app_t * app, double now, struct match_commit_t * commit )
{
    const struct mm_match_t * match = &matchmaker.mm.matches[commit - match_store.commits];
    for ( int i = 0; i < match->count; i++ ) {
        struct mm_ticket_t ticket = *match->tickets[i];
        ticket.state = MM_MATCHED;
        ticket.ended_at = commit->ended_at;
        memcpy( ticket.place, commit->place, sizeof( ticket.place ) );
        match_fill( i, &ticket, ticket.wish.client_id, match_next_version( now ) );
    }
    commit->epoch = match_store.epoch;
    commit->is_asked = match_write( app, now, match->count, match_on_commit, commit );
}

static void match_store_commit( struct app_t * app, struct mm_match_t * match, const char * server, const char * place,
                                double ended_at )
{
    struct match_commit_t * commit = &match_store.commits[match - matchmaker.mm.matches];
    commit->is_open = 1;
    commit->ended_at = ended_at;
    snprintf( commit->server, sizeof( commit->server ), "%s", server );
    snprintf( commit->place, sizeof( commit->place ), "%s", place );
    if ( !commit->is_asked )
        match_send_commit( app, netcode_time(), commit );
}

/* ---- the loop ---- */

/* 1: this backend finds matches. */
static int match_store_update( struct app_t * app, double now )
{
    match_store.app = app;
    match_renew_lease( app, now );
    if ( match_store.is_loading && !match_store.load_asked )
        match_load( app, now );
    if ( !match_store.is_active )
        return 0;
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        struct match_commit_t * commit = &match_store.commits[i];
        if ( commit->is_open && !commit->is_asked )
            match_send_commit( app, now, commit );
    }
    if ( !match_store.flush_asked && now >= match_store.next_flush )
        match_flush( app, now );
    return 1;
}

static int match_store_is_active( const struct app_t * app )
{
    return !match_has_store( app ) || ( match_store.is_active && netcode_time() < match_store.lease_until );
}

/* Why this backend finds no matches now. */
static enum refusal_t match_store_refusal( void )
{
    return netcode_time() < match_store.full_until ? REFUSAL_store_full : REFUSAL_not_matchmaker;
}

/* Another backend finds matches, as far as we know. */
static int match_store_is_elsewhere( const struct app_t * app )
{
    return !match_store_is_active( app ) && netcode_time() < match_store.other_until;
}

static void match_ignore( void * context, int what, const redisReply * reply )
{
    (void) context, (void) what, (void) reply;
}

static int match_has_changes( void )
{
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        if ( matchmaker.mm.tickets[i].is_changed && matchmaker.mm.tickets[i].state != MM_TAKEN )
            return 1;
    }
    return 0;
}

/*  We end in order: the next one need not wait for the lease to run out. From now on nothing is answered out of our memory,
    and what was answered is written before the lease is given back. */
static void match_store_stop( struct app_t * app )
{
    const char * words[] = { match_store.me, NULL };
    double until = netcode_time() + MATCH_STOP_SECONDS;
    if ( !match_has_store( app ) || !match_store.is_active )
        return;
    match_store.is_active = 0;
    while ( netcode_time() < until && ( match_store.flush_asked || match_has_changes() ) ) {
        if ( !match_store.flush_asked && netcode_time() >= match_store.next_flush )
            match_flush( app, netcode_time() );
        redis_update( &app->full.link, netcode_time() );
        netcode_sleep( 0.001 );
    }
    store_eval( &app->full.link, netcode_time(), match_release_script, words, match_ignore, NULL );
    for ( int i = 0; i < 20 && app->full.link.count; i++ ) {
        redis_update( &app->full.link, netcode_time() );
        netcode_sleep( 0.01 );
    }
}

#endif
