/*  Who plays with whom: a queue by mode and region for parties of up to eight, which are never split. A module that
    computes and does nothing else: time and ids are passed in, memory is bounded, and the same calls give the same
    matches. match.h beside it puts HTTP and the allocation of servers around it.

        static struct mm_t mm;
        mm_init( &mm, random_id, context );
        mm_add_mode( &mm, "duel 2 2 regions=eu,us widen=10" );
        mm_join( &mm, &wish, now, &ticket );                // for each player; asked again it gives the same ticket
        mm_poll( &mm, id, client_id, now );                 // by each player, now and then: else the ticket expires
        mm_run( &mm, now );                                 // some times a second: expires tickets, forms matches
        while ( ( match = mm_next( &mm ) ) != NULL )        // a match that wants a server
            ... mm_commit( &mm, match, server, now, seconds ) or mm_give_back( &mm, match, now );

    A ticket is a player's request, a unit is what can not be split: a player alone, or a party whose members have all
    asked. The oldest unit is served first, in the first of its regions in which a match with it can be made:

        QUEUED --mm_run--> TAKEN --mm_commit--> MATCHED
           ^                 |                     | its time is over, or cancelled
           +--mm_give_back---+                     v
           +-- cancelled, silent, party broken, nothing found in time --> FAILED --MM_KEEP_SECONDS--> (free)

    All tickets of a match change together: TAKEN, MATCHED and back to QUEUED, in which they keep their age.

    One header, for one program unit. */

#ifndef BACKEND_MATCHMAKING_H
#define BACKEND_MATCHMAKING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a game may want otherwise; tests are less patient. */
#ifndef MM_SILENT_SECONDS
#define MM_SILENT_SECONDS 15.0 /* a player who has not asked for so long is gone */
#endif
#ifndef MM_PARTY_SECONDS
#define MM_PARTY_SECONDS 60.0 /* in which all members of a party must have asked */
#endif
#ifndef MM_KEEP_SECONDS
#define MM_KEEP_SECONDS 60.0 /* how long a ticket that failed says why */
#endif
#ifndef MM_RETRY_SECONDS
#define MM_RETRY_SECONDS 2.0 /* no further match in a mode and region after one found no server */
#endif
#ifndef MM_TRIES
#define MM_TRIES 10 /* of a ticket, to find a server in a region: then that region does not count for it any more */
#endif

#define MM_MAX_TICKETS 4096
#define MM_MAX_MODES 16
#define MM_MAX_REGIONS 8  /* of a mode */
#define MM_MAX_PLAYERS 64 /* of a match */
#define MM_MAX_TEAMS 16
#define MM_MAX_PARTY 8
#define MM_MAX_MATCHES 16   /* that want a server at the same time */
#define MM_NAME_BYTES 64    /* of modes, regions and parties, with the zero at the end */
#define MM_ID_BYTES 33      /* of tickets and matches: 32 characters and the zero */
#define MM_PLACE_BYTES 640  /* what the caller has to know of a match's server */
#define MM_MIN_PARTY_NAME 8 /* shorter ones would be guessed, and their places taken by others */
#define MM_FILL_STEPS 4000  /* of the search for parties that fill teams exactly */
#define MM_ANYWHERE "any"   /* the one region of a mode that has no list of them */

/* clang-format off */
/*  Why a request can not join. X( name, HTTP status, sentence ) */
#define MM_REFUSAL_LIST( X )                                                                                               \
    X( unknown_mode,       404, "There is no mode of this name" )                                                          \
    X( unknown_region,     400, "A region is not one of the mode's, or is there twice" )                                   \
    X( wrong_party,        400, "A party has an id of 8 to 63 letters, digits, dots, dashes and underscores, and a size of 1 to 8" ) \
    X( party_too_large,    400, "The party does not fit into a team of this mode" )                                        \
    X( party_mismatch,     409, "The party's other members asked for another mode, size, or for no region of yours" )      \
    X( party_full,         409, "The party has all of its members" )                                                       \
    X( already_queued,     409, "You have asked for another match: see its ticket, or cancel it first" )                   \
    X( match_given_up,     409, "You have given up a match whose tokens are not over yet: see Retry-After" )               \
    X( queue_full,         503, "The queue is full: see Retry-After" )

/*  Why a ticket has failed. X( name, sentence ) */
#define MM_REASON_LIST( X )                                                                                                \
    X( none,               "It has not failed" )                                                                           \
    X( cancelled,          "You have cancelled it" )                                                                       \
    X( silent,             "You have not asked for too long" )                                                             \
    X( party_left,         "A member of your party has cancelled, or is gone" )                                            \
    X( party_incomplete,   "Not all members of your party have asked in time" )                                            \
    X( no_match,           "Nobody was found to play with in time" )                                                       \
    X( no_server,          "No server was found for your match" )                                                          \
    X( too_late,           "Your match has begun, and its tokens are over" )
/* clang-format on */

#define MM_ENUM( name, status, text ) MM_REFUSAL_##name,
enum mm_refusal_t { MM_JOINED, MM_REFUSAL_LIST( MM_ENUM ) MM_REFUSALS };
#undef MM_ENUM
#define MM_ENUM( name, text ) MM_REASON_##name,
enum mm_reason_t { MM_REASON_LIST( MM_ENUM ) MM_REASONS };
#undef MM_ENUM

enum mm_state_t { MM_FREE, MM_QUEUED, MM_TAKEN, MM_MATCHED, MM_FAILED };

struct mm_mode_t {
    char name[MM_NAME_BYTES];
    char regions[MM_MAX_REGIONS][MM_NAME_BYTES];
    int num_regions;
    char fleets[MM_MAX_REGIONS][MM_NAME_BYTES]; /* where an allocator looks for servers, region by region */
    int num_fleets;                             /* 0: the caller's default */
    int players;                                /* of a full match: a multiple of the teams */
    int teams;
    int minimum;          /* of players, after shrink_seconds; as many as `players` where a match must be full */
    double widen_seconds; /* after each of these another region counts; 0: all count at once */
    double shrink_seconds;
    double expire_seconds; /* in the queue */
};

/* What a player asks for. */
struct mm_wish_t {
    uint64_t client_id;
    int mode;
    uint8_t regions[MM_MAX_REGIONS]; /* of the mode, the best first */
    int num_regions;
    char party[MM_NAME_BYTES]; /* "": alone */
    int party_size;
};

struct mm_ticket_t {
    char id[MM_ID_BYTES];
    struct mm_wish_t wish;
    int state;                     /* MM_... */
    int reason;                    /* why it failed */
    uint8_t tries[MM_MAX_REGIONS]; /* without a server */
    uint64_t sequence;             /* the order of those who joined at the same time */
    double joined_at;
    double seen_at;
    double ended_at; /* when it failed; of a match, also of one that was given up: when its time is over */
    char match[MM_ID_BYTES];
    int region;
    int team;
    int players;
    char place[MM_PLACE_BYTES];
    int is_changed; /* since the caller last cleared it: for those who keep tickets elsewhere as well */
};

/* A match that wants a server. */
struct mm_match_t {
    char id[MM_ID_BYTES]; /* "": none */
    int mode;
    int region;
    int count;
    int handed_out; /* mm_next has returned it */
    struct mm_ticket_t * tickets[MM_MAX_PLAYERS];
};

/* What can not be split; of the tickets as they are in one run. */
struct mm_unit_t {
    struct mm_ticket_t * tickets[MM_MAX_PARTY];
    int size;
    int mode;
    uint8_t regions[MM_MAX_REGIONS]; /* that all members want, the best first */
    int num_regions;
    unsigned int eligible; /* those that count now, a bit each */
    double since;          /* the last member has asked */
    uint64_t sequence;
    int taken;
    int team;
};

struct mm_t {
    struct mm_mode_t modes[MM_MAX_MODES];
    int num_modes;
    struct mm_ticket_t tickets[MM_MAX_TICKETS];
    uint64_t clients[MM_MAX_TICKETS]; /* of the tickets, close together: they are searched with each request */
    struct mm_match_t matches[MM_MAX_MATCHES];
    double blocked_until[MM_MAX_MODES][MM_MAX_REGIONS];
    int waiting[MM_MAX_MODES]; /* players in the queue, as of the last run */
    uint64_t sequence;
    uint64_t formed;
    uint64_t committed;
    uint64_t given_back;
    uint64_t failures[MM_REASONS];
    void ( *random_id )( void * context, char id[MM_ID_BYTES] );
    void * context;
    struct mm_unit_t units[MM_MAX_TICKETS];
    int num_units;
    int counts[MM_MAX_MODES][MM_MAX_REGIONS][MM_MAX_PARTY + 1]; /* units that could be matched there, by size */
    uint8_t hopeless[MM_MAX_MODES][MM_MAX_REGIONS][2][MM_MAX_PARTY + 1]; /* no match with one of this size: known */
};

/* The search for units that fill the teams: `used` says how many of each size go into each team. */
struct mm_fill_t {
    int counts[MM_MAX_PARTY + 1];
    int used[MM_MAX_TEAMS][MM_MAX_PARTY + 1];
    int teams;
    int team_size;
    int steps;
};

static const char * mm_reason_name( int reason )
{
#define MM_NAME( name, text ) #name,
    static const char * const names[MM_REASONS] = { MM_REASON_LIST( MM_NAME ) };
#undef MM_NAME
    return names[reason];
}

static const char * mm_reason_text( int reason )
{
#define MM_TEXT( name, text ) text,
    static const char * const texts[MM_REASONS] = { MM_REASON_LIST( MM_TEXT ) };
#undef MM_TEXT
    return texts[reason];
}

/* ---- modes ---- */

/* Letters, digits, dots, dashes and underscores: what is safe in logs, labels and JSON. */
static int mm_is_name( const char * text, size_t minimum )
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t bytes = strlen( text );
    return bytes >= minimum && bytes < MM_NAME_BYTES && strspn( text, letters ) == bytes;
}

static int mm_parse_number( const char * text, int minimum, int maximum, int * value )
{
    char * end = NULL;
    if ( text[0] < '0' || text[0] > '9' || strlen( text ) > 6 )
        return 0;
    *value = (int) strtol( text, &end, 10 );
    return *end == '\0' && *value >= minimum && *value <= maximum;
}

static int mm_find_region( const struct mm_mode_t * mode, const char * name )
{
    for ( int i = 0; i < mode->num_regions; i++ ) {
        if ( !strcmp( mode->regions[i], name ) )
            return i;
    }
    return -1;
}

static int mm_find_mode( const struct mm_t * mm, const char * name )
{
    for ( int i = 0; i < mm->num_modes; i++ ) {
        if ( !strcmp( mm->modes[i].name, name ) )
            return i;
    }
    return -1;
}

/* "eu,us,asia" */
static int mm_parse_names( char names[MM_MAX_REGIONS][MM_NAME_BYTES], int * count, const char * text )
{
    for ( ;; ) {
        char name[MM_NAME_BYTES];
        size_t bytes = strcspn( text, "," );
        if ( bytes >= sizeof( name ) || *count == MM_MAX_REGIONS )
            return 0;
        memcpy( name, text, bytes );
        name[bytes] = '\0';
        for ( int i = 0; i < *count; i++ ) {
            if ( !strcmp( names[i], name ) )
                return 0;
        }
        if ( !mm_is_name( name, 1 ) )
            return 0;
        memcpy( names[( *count )++], name, bytes + 1 );
        if ( text[bytes] == '\0' )
            return 1;
        text += bytes + 1;
    }
}

/* NULL, or what is wrong with a "key=value". */
static const char * mm_parse_option( struct mm_mode_t * mode, const char * word )
{
    int number = 0;
    const char * equals = strchr( word, '=' );
    const char * value = equals ? equals + 1 : "";
    size_t bytes = equals ? (size_t) ( equals - word ) : 0;
    if ( bytes == 7 && !strncmp( word, "regions", bytes ) ) {
        return !mode->num_regions && mm_parse_names( mode->regions, &mode->num_regions, value )
                   ? NULL
                   : "regions= is up to 8 different names, with commas";
    }
    if ( bytes == 5 && !strncmp( word, "fleet", bytes ) ) {
        return !mode->num_fleets && mm_parse_names( mode->fleets, &mode->num_fleets, value )
                   ? NULL
                   : "fleet= is a name, or up to 8 different ones, with commas";
    }
    if ( bytes == 3 && !strncmp( word, "min", bytes ) )
        return mm_parse_number( value, 1, MM_MAX_PLAYERS, &mode->minimum ) ? NULL : "min= is a number of players";
    if ( !mm_parse_number( value, 0, 86400, &number ) )
        return "behind the teams come min=, widen=, shrink=, expire=, regions= and fleet=";
    if ( bytes == 5 && !strncmp( word, "widen", bytes ) )
        mode->widen_seconds = number;
    else if ( bytes == 6 && !strncmp( word, "shrink", bytes ) )
        mode->shrink_seconds = number;
    else if ( bytes == 6 && !strncmp( word, "expire", bytes ) && number )
        mode->expire_seconds = number;
    else
        return "behind the teams come min=, widen=, shrink=, expire=, regions= and fleet=";
    return NULL;
}

static const char * mm_check_mode( const struct mm_t * mm, struct mm_mode_t * mode )
{
    if ( !mode->num_regions )
        snprintf( mode->regions[mode->num_regions++], MM_NAME_BYTES, MM_ANYWHERE );
    if ( !mode->minimum )
        mode->minimum = mode->players;
    if ( mode->players % mode->teams )
        return "the players are a multiple of the teams";
    if ( mode->minimum > mode->players || mode->minimum % mode->teams )
        return "min= is a multiple of the teams, and no more than the players";
    if ( mm_find_mode( mm, mode->name ) >= 0 )
        return "this name stands there already";
    return mm->num_modes == MM_MAX_MODES ? "no more than 16 modes fit" : NULL;
}

/*  "name players teams [min=N] [widen=S] [shrink=S] [expire=S] [regions=A,B] [fleet=A,B]". NULL, or what is wrong. The
    text is cut into its words. */
static const char * mm_add_mode( struct mm_t * mm, char * text )
{
    struct mm_mode_t mode;
    int words = 0;
    memset( &mode, 0, sizeof( mode ) );
    mode.expire_seconds = 120.0;
    for ( char * word = text + strspn( text, " \t" ); *word; words++ ) {
        const char * wrong = NULL;
        char * next = word + strcspn( word, " \t" );
        if ( *next )
            *next++ = '\0';
        if ( words == 0 && mm_is_name( word, 1 ) )
            snprintf( mode.name, sizeof( mode.name ), "%.*s", MM_NAME_BYTES - 1, word );
        else if ( words == 0 )
            wrong = "first comes the mode's name: letters, digits, dots, dashes and underscores";
        else if ( words == 1 && !mm_parse_number( word, 1, MM_MAX_PLAYERS, &mode.players ) )
            wrong = "behind the name come the players of a match, 1 to 64";
        else if ( words == 2 && !mm_parse_number( word, 1, MM_MAX_TEAMS, &mode.teams ) )
            wrong = "behind the players come the teams, 1 to 16";
        else if ( words > 2 )
            wrong = mm_parse_option( &mode, word );
        if ( wrong )
            return wrong;
        word = next + strspn( next, " \t" );
    }
    if ( words < 3 )
        return "a mode has a name, players and teams";
    const char * wrong = mm_check_mode( mm, &mode );
    if ( !wrong )
        mm->modes[mm->num_modes++] = mode;
    return wrong;
}

static void mm_init( struct mm_t * mm, void ( *random_id )( void *, char * ), void * context )
{
    memset( mm, 0, sizeof( *mm ) );
    mm->random_id = random_id;
    mm->context = context;
}

/* ---- tickets ---- */

/* Each player has one ticket at most. */
static struct mm_ticket_t * mm_find_client( struct mm_t * mm, uint64_t client_id )
{
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        if ( mm->clients[i] == client_id && mm->tickets[i].state != MM_FREE )
            return &mm->tickets[i];
    }
    return NULL;
}

/* Of this player alone: for all others there is no such ticket. */
static struct mm_ticket_t * mm_find( struct mm_t * mm, const char * id, uint64_t client_id )
{
    struct mm_ticket_t * ticket = mm_find_client( mm, client_id );
    return ticket && !strcmp( ticket->id, id ) ? ticket : NULL;
}

static void mm_fail( struct mm_t * mm, struct mm_ticket_t * ticket, int reason, double now )
{
    ticket->state = MM_FAILED;
    ticket->is_changed = 1;
    ticket->reason = reason;
    ticket->ended_at = now;
    mm->failures[reason]++;
}

/* One that is being matched may come back to the queue: its place in the party is not free. */
static int mm_is_same_party( const struct mm_ticket_t * ticket, const struct mm_wish_t * wish )
{
    return ( ticket->state == MM_QUEUED || ticket->state == MM_TAKEN ) && wish->party[0] &&
           !strcmp( ticket->wish.party, wish->party );
}

/* One who leaves the queue breaks the party: the others fail as well, and may ask anew. */
static void mm_fail_with_party( struct mm_t * mm, struct mm_ticket_t * ticket, int reason, double now )
{
    struct mm_wish_t wish = ticket->wish;
    mm_fail( mm, ticket, reason, now );
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        if ( mm->tickets[i].state == MM_QUEUED && mm_is_same_party( &mm->tickets[i], &wish ) )
            mm_fail( mm, &mm->tickets[i], MM_REASON_party_left, now );
    }
}

static int mm_is_same_wish( const struct mm_wish_t * a, const struct mm_wish_t * b )
{
    return a->mode == b->mode && a->num_regions == b->num_regions && a->party_size == b->party_size &&
           !memcmp( a->regions, b->regions, (size_t) a->num_regions ) && !strcmp( a->party, b->party );
}

/* Is there a region that all members of the party so far want, and this one? */
static int mm_party_has_region( const struct mm_t * mm, const struct mm_wish_t * wish )
{
    for ( int i = 0; i < wish->num_regions; i++ ) {
        int good = 1;
        for ( int k = 0; k < MM_MAX_TICKETS && good; k++ ) {
            const struct mm_ticket_t * ticket = &mm->tickets[k];
            if ( mm_is_same_party( ticket, wish ) )
                good = memchr( ticket->wish.regions, wish->regions[i], (size_t) ticket->wish.num_regions ) != NULL;
        }
        if ( good )
            return 1;
    }
    return 0;
}

static enum mm_refusal_t mm_check_party( const struct mm_t * mm, const struct mm_wish_t * wish )
{
    int members = 0;
    int mismatches = 0;
    const struct mm_mode_t * mode = &mm->modes[wish->mode];
    if ( !wish->party[0] )
        return wish->party_size == 1 ? MM_JOINED : MM_REFUSAL_wrong_party;
    if ( !mm_is_name( wish->party, MM_MIN_PARTY_NAME ) || wish->party_size < 1 || wish->party_size > MM_MAX_PARTY )
        return MM_REFUSAL_wrong_party;
    if ( wish->party_size > mode->players / mode->teams )
        return MM_REFUSAL_party_too_large;
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        const struct mm_ticket_t * ticket = &mm->tickets[i];
        if ( !mm_is_same_party( ticket, wish ) )
            continue;
        members++;
        mismatches += ticket->wish.mode != wish->mode || ticket->wish.party_size != wish->party_size;
    }
    if ( mismatches || !mm_party_has_region( mm, wish ) )
        return MM_REFUSAL_party_mismatch;
    return members < wish->party_size ? MM_JOINED : MM_REFUSAL_party_full;
}

/* NULL when the queue is full. */
static struct mm_ticket_t * mm_take_ticket( struct mm_t * mm )
{
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        if ( mm->tickets[i].state == MM_FREE )
            return &mm->tickets[i];
    }
    return NULL;
}

/*  A player asks for a match. Asked again with the same wish, he has the ticket that he has: an answer that was lost
    costs nothing. With another wish he has to cancel first; one that has failed is replaced, but for a match that he gave
    up, before its time is over: its slots are kept so long, and else a few players could have all of them. `found` is the
    new ticket, or the one that is in the way. */
static enum mm_refusal_t mm_join( struct mm_t * mm, const struct mm_wish_t * wish, double now,
                                  struct mm_ticket_t ** found )
{
    struct mm_ticket_t * ticket = mm_find_client( mm, wish->client_id );
    *found = ticket;
    if ( ticket && ticket->state != MM_FAILED ) {
        if ( !mm_is_same_wish( &ticket->wish, wish ) )
            return MM_REFUSAL_already_queued;
        ticket->seen_at = now;
        return MM_JOINED;
    }
    if ( ticket && now < ticket->ended_at )
        return MM_REFUSAL_match_given_up;
    enum mm_refusal_t refusal = mm_check_party( mm, wish );
    if ( refusal != MM_JOINED )
        return refusal;
    if ( !ticket )
        ticket = mm_take_ticket( mm );
    if ( !ticket )
        return MM_REFUSAL_queue_full;
    memset( ticket, 0, sizeof( *ticket ) );
    mm->clients[ticket - mm->tickets] = wish->client_id;
    mm->random_id( mm->context, ticket->id );
    ticket->wish = *wish;
    ticket->state = MM_QUEUED;
    ticket->joined_at = ticket->seen_at = now;
    ticket->sequence = mm->sequence++;
    ticket->is_changed = 1;
    *found = ticket;
    return MM_JOINED;
}

/* The player asks how it stands, which keeps the ticket alive. NULL when there is none of his. */
static struct mm_ticket_t * mm_poll( struct mm_t * mm, const char * id, uint64_t client_id, double now )
{
    struct mm_ticket_t * ticket = mm_find( mm, id, client_id );
    if ( ticket )
        ticket->seen_at = now;
    return ticket;
}

/*  0 while a server is looked for: then it is too late for that match, and too early for the next. A player who is
    matched gives up his own place alone: the others may have their tokens already. Where the match is `complete`, as all
    of its players were seen on the server, he gives up nothing, and may ask for the next one at once. */
static int mm_cancel( struct mm_t * mm, struct mm_ticket_t * ticket, int complete, double now )
{
    if ( ticket->state == MM_TAKEN )
        return 0;
    if ( ticket->state == MM_QUEUED )
        mm_fail_with_party( mm, ticket, MM_REASON_cancelled, now );
    else if ( ticket->state == MM_MATCHED )
        mm_fail( mm, ticket, MM_REASON_cancelled, complete ? now : ticket->ended_at );
    return 1;
}

/* ---- a run: what has ended ---- */

static void mm_expire_tickets( struct mm_t * mm, double now )
{
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        struct mm_ticket_t * ticket = &mm->tickets[i];
        if ( ticket->state == MM_QUEUED && now - ticket->seen_at > MM_SILENT_SECONDS ) {
            mm_fail_with_party( mm, ticket, MM_REASON_silent, now );
        } else if ( ticket->state == MM_MATCHED && now >= ticket->ended_at ) {
            mm_fail( mm, ticket, MM_REASON_too_late, now );
        } else if ( ticket->state == MM_FAILED && now - ticket->ended_at > MM_KEEP_SECONDS ) {
            memset( ticket, 0, sizeof( *ticket ) );
            ticket->is_changed = 1;
        }
    }
}

/* ---- a run: units ---- */

static int mm_compare_members( const void * a, const void * b )
{
    const struct mm_ticket_t * left = *(struct mm_ticket_t * const *) a;
    const struct mm_ticket_t * right = *(struct mm_ticket_t * const *) b;
    int order = strcmp( left->wish.party, right->wish.party );
    if ( order )
        return order;
    return left->sequence < right->sequence ? -1 : left->sequence > right->sequence;
}

static int mm_compare_units( const void * a, const void * b )
{
    const struct mm_unit_t * left = (const struct mm_unit_t *) a;
    const struct mm_unit_t * right = (const struct mm_unit_t *) b;
    if ( left->since < right->since || left->since > right->since )
        return left->since < right->since ? -1 : 1;
    return left->sequence < right->sequence ? -1 : left->sequence > right->sequence;
}

/* The rank of a region in a wish; -1 when it is none of it. */
static int mm_rank( const struct mm_wish_t * wish, int region )
{
    for ( int i = 0; i < wish->num_regions; i++ ) {
        if ( wish->regions[i] == region )
            return i;
    }
    return -1;
}

/*  The regions that all members want, the one with the lowest sum of ranks first; but for those in which no server was
    found too often. Other regions go on: who wants one alone that has no servers ends no one else's ticket. */
static void mm_join_regions( const struct mm_mode_t * mode, struct mm_unit_t * unit )
{
    int sums[MM_MAX_REGIONS];
    for ( int region = 0; region < mode->num_regions; region++ ) {
        int sum = 0;
        for ( int i = 0; i < unit->size && sum >= 0; i++ ) {
            const struct mm_ticket_t * ticket = unit->tickets[i];
            int rank = ticket->tries[region] < MM_TRIES ? mm_rank( &ticket->wish, region ) : -1;
            sum = rank < 0 ? -1 : sum + rank;
        }
        if ( sum < 0 )
            continue;
        int at = unit->num_regions++;
        for ( ; at > 0 && sums[at - 1] > sum; at-- ) {
            sums[at] = sums[at - 1];
            unit->regions[at] = unit->regions[at - 1];
        }
        sums[at] = sum;
        unit->regions[at] = (uint8_t) region;
    }
}

/* Which regions count now: the first at once, one more after each widen_seconds. */
static unsigned int mm_eligible( const struct mm_mode_t * mode, const struct mm_unit_t * unit, double now )
{
    unsigned int eligible = 0;
    int count = unit->num_regions;
    if ( mode->widen_seconds > 0.0 ) {
        double wider = ( now - unit->since ) / mode->widen_seconds;
        count = wider >= unit->num_regions ? unit->num_regions : 1 + (int) wider;
    }
    for ( int i = 0; i < count && i < unit->num_regions; i++ )
        eligible |= 1u << unit->regions[i];
    return eligible;
}

/* `members` are all tickets of a party, or one alone. A party that is not complete makes no unit. */
static void mm_add_unit( struct mm_t * mm, struct mm_ticket_t ** members, int count, double now )
{
    const struct mm_wish_t * wish = &members[0]->wish;
    const struct mm_mode_t * mode = &mm->modes[wish->mode];
    mm->waiting[wish->mode] += count;
    if ( count < wish->party_size ) {
        if ( now - members[0]->joined_at <= MM_PARTY_SECONDS )
            return;
        for ( int i = 0; i < count; i++ )
            mm_fail( mm, members[i], MM_REASON_party_incomplete, now );
        return;
    }
    struct mm_unit_t * unit = &mm->units[mm->num_units];
    memset( unit, 0, sizeof( *unit ) );
    unit->size = count;
    unit->mode = wish->mode;
    for ( int i = 0; i < count; i++ )
        unit->tickets[i] = members[i];
    unit->since = members[count - 1]->joined_at; /* they stand in the order in which they have asked */
    unit->sequence = members[count - 1]->sequence;
    mm_join_regions( mode, unit );
    if ( !unit->num_regions || now - unit->since > mode->expire_seconds ) {
        for ( int i = 0; i < count; i++ )
            mm_fail( mm, members[i], unit->num_regions ? MM_REASON_no_match : MM_REASON_no_server, now );
        return;
    }
    unit->eligible = mm_eligible( mode, unit, now );
    mm->num_units++;
}

/* Adds a unit to the counts of where it could be matched, or takes it out of them. */
static void mm_count_unit( struct mm_t * mm, const struct mm_unit_t * unit, int change )
{
    for ( int region = 0; region < MM_MAX_REGIONS; region++ ) {
        if ( unit->eligible & ( 1u << region ) )
            mm->counts[unit->mode][region][unit->size] += change;
    }
}

/* All units, the oldest first, and how many of each size could be matched where. */
static void mm_make_units( struct mm_t * mm, double now )
{
    static struct mm_ticket_t * queued[MM_MAX_TICKETS];
    int count = 0;
    int next = 0;
    mm->num_units = 0;
    memset( mm->waiting, 0, sizeof( mm->waiting ) );
    memset( mm->counts, 0, sizeof( mm->counts ) );
    memset( mm->hopeless, 0, sizeof( mm->hopeless ) );
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        if ( mm->tickets[i].state == MM_QUEUED )
            queued[count++] = &mm->tickets[i];
    }
    qsort( queued, (size_t) count, sizeof( queued[0] ), mm_compare_members );
    for ( int i = 0; i < count; i = next ) {
        next = i + 1;
        while ( next < count && next - i < MM_MAX_PARTY && queued[i]->wish.party[0] &&
                !strcmp( queued[next]->wish.party, queued[i]->wish.party ) )
            next++;
        mm_add_unit( mm, queued + i, next - i, now );
    }
    qsort( mm->units, (size_t) mm->num_units, sizeof( mm->units[0] ), mm_compare_units );
    for ( int i = 0; i < mm->num_units; i++ )
        mm_count_unit( mm, &mm->units[i], 1 );
}

/* ---- a run: matches ---- */

/* Fills what is left of this team, then all teams behind it, larger units first. 1: done, and `used` says how. */
static int mm_fill_teams( struct mm_fill_t * fill, int team, int largest, int left )
{
    if ( !left ) {
        if ( team + 1 == fill->teams )
            return 1;
        team++;
        largest = MM_MAX_PARTY;
        left = fill->team_size;
    }
    for ( int size = largest < left ? largest : left; size > 0; size-- ) {
        if ( !fill->counts[size] )
            continue;
        if ( fill->steps-- <= 0 )
            return 0;
        fill->counts[size]--;
        fill->used[team][size]++;
        if ( mm_fill_teams( fill, team, size, left - size ) )
            return 1;
        fill->counts[size]++;
        fill->used[team][size]--;
    }
    return 0;
}

/* Looks for a match with a unit of this size in the first team. */
static int mm_fill( struct mm_fill_t * fill, const int counts[MM_MAX_PARTY + 1], int teams, int team_size, int size )
{
    int players = 0;
    memset( fill, 0, sizeof( *fill ) );
    memcpy( fill->counts, counts, sizeof( fill->counts ) );
    for ( int i = 1; i <= MM_MAX_PARTY; i++ )
        players += i * counts[i];
    if ( size > team_size || players < teams * team_size || !counts[size] )
        return 0;
    fill->teams = teams;
    fill->team_size = team_size;
    fill->steps = MM_FILL_STEPS;
    fill->counts[size]--;
    fill->used[0][size]++;
    return mm_fill_teams( fill, 0, MM_MAX_PARTY, team_size - size );
}

static struct mm_match_t * mm_free_match( struct mm_t * mm )
{
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        if ( !mm->matches[i].id[0] )
            return &mm->matches[i];
    }
    return NULL;
}

static void mm_take_unit( struct mm_t * mm, struct mm_match_t * match, struct mm_unit_t * unit, int team, int players )
{
    unit->taken = 1;
    mm_count_unit( mm, unit, -1 );
    for ( int i = 0; i < unit->size; i++ ) {
        struct mm_ticket_t * ticket = unit->tickets[i];
        ticket->state = MM_TAKEN;
        ticket->region = match->region;
        ticket->team = team;
        ticket->players = players;
        memcpy( ticket->match, match->id, sizeof( ticket->match ) );
        match->tickets[match->count++] = ticket;
    }
}

/* Takes the anchor, and for each team the oldest units of the sizes that were found. */
static void mm_form( struct mm_t * mm, struct mm_match_t * match, struct mm_unit_t * anchor, int region,
                     struct mm_fill_t * fill )
{
    int players = fill->teams * fill->team_size;
    memset( match, 0, sizeof( *match ) );
    mm->random_id( mm->context, match->id );
    match->mode = anchor->mode;
    match->region = region;
    fill->used[0][anchor->size]--;
    mm_take_unit( mm, match, anchor, 0, players );
    for ( int i = 0; i < mm->num_units; i++ ) {
        struct mm_unit_t * unit = &mm->units[i];
        if ( unit->taken || unit->mode != match->mode || !( unit->eligible & ( 1u << region ) ) )
            continue;
        for ( int team = 0; team < fill->teams; team++ ) {
            if ( fill->used[team][unit->size] ) {
                fill->used[team][unit->size]--;
                mm_take_unit( mm, match, unit, team, players );
                break;
            }
        }
    }
    mm->formed++;
    /* Fewer units make no match possible that was not: what is hopeless stays so. */
}

/*  A match with this unit, in the first of its regions where there can be one; a full one, or after shrink_seconds the
    fullest that there can be. */
static void mm_try_unit( struct mm_t * mm, struct mm_match_t * match, struct mm_unit_t * unit, double now )
{
    struct mm_fill_t fill;
    const struct mm_mode_t * mode = &mm->modes[unit->mode];
    int shrunk = mode->minimum < mode->players && now - unit->since >= mode->shrink_seconds;
    int smallest = ( shrunk ? mode->minimum : mode->players ) / mode->teams;
    for ( int i = 0; i < unit->num_regions; i++ ) {
        int region = unit->regions[i];
        uint8_t * hopeless = &mm->hopeless[unit->mode][region][shrunk][unit->size];
        if ( !( unit->eligible & ( 1u << region ) ) || *hopeless || now < mm->blocked_until[unit->mode][region] )
            continue;
        for ( int team_size = mode->players / mode->teams; team_size >= smallest; team_size-- ) {
            if ( mm_fill( &fill, mm->counts[unit->mode][region], mode->teams, team_size, unit->size ) ) {
                mm_form( mm, match, unit, region, &fill );
                return;
            }
        }
        *hopeless = 1;
    }
}

/* Ends what is over, then forms as many matches as can wait for a server. */
static void mm_run( struct mm_t * mm, double now )
{
    struct mm_match_t * match = mm_free_match( mm );
    mm_expire_tickets( mm, now );
    mm_make_units( mm, now );
    for ( int i = 0; i < mm->num_units && match; i++ ) {
        if ( mm->units[i].taken )
            continue;
        mm_try_unit( mm, match, &mm->units[i], now );
        if ( match->id[0] )
            match = mm_free_match( mm );
    }
}

/* ---- matches and their servers ---- */

/* Forgets all tickets and matches, but not the modes and what was counted. */
static inline void mm_clear( struct mm_t * mm )
{
    memset( mm->tickets, 0, sizeof( mm->tickets ) );
    memset( mm->matches, 0, sizeof( mm->matches ) );
    memset( mm->blocked_until, 0, sizeof( mm->blocked_until ) );
    memset( mm->waiting, 0, sizeof( mm->waiting ) );
}

/*  Puts a ticket in that was kept elsewhere, as a copy. 0 when there is no place for it, its player has one already, or it
    does not fit its party: what others wrote is checked as what a player asks for. One that was being matched is queued. */
static inline int mm_restore( struct mm_t * mm, const struct mm_ticket_t * ticket )
{
    int is_queued = ticket->state == MM_QUEUED || ticket->state == MM_TAKEN;
    struct mm_ticket_t * place = mm_find_client( mm, ticket->wish.client_id ) ? NULL : mm_take_ticket( mm );
    if ( !place || ( is_queued && mm_check_party( mm, &ticket->wish ) != MM_JOINED ) )
        return 0;
    *place = *ticket;
    place->is_changed = 0;
    if ( place->state == MM_TAKEN )
        place->state = MM_QUEUED;
    mm->clients[place - mm->tickets] = ticket->wish.client_id;
    if ( ticket->sequence >= mm->sequence )
        mm->sequence = ticket->sequence + 1;
    return 1;
}

/* A match that wants a server and was not handed out before; NULL when there is none. */
static struct mm_match_t * mm_next( struct mm_t * mm )
{
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        struct mm_match_t * match = &mm->matches[i];
        if ( match->id[0] && !match->handed_out ) {
            match->handed_out = 1;
            return match;
        }
    }
    return NULL;
}

/* There is a server for all of them: each has `seconds` to fetch a token and to connect. */
static void mm_commit( struct mm_t * mm, struct mm_match_t * match, const char * place, double now, double seconds )
{
    for ( int i = 0; i < match->count; i++ ) {
        struct mm_ticket_t * ticket = match->tickets[i];
        ticket->state = MM_MATCHED;
        ticket->is_changed = 1;
        ticket->ended_at = now + seconds;
        snprintf( ticket->place, sizeof( ticket->place ), "%.*s", MM_PLACE_BYTES - 1, place );
    }
    mm->committed++;
    memset( match, 0, sizeof( *match ) );
}

/*  There is none: all go back to where they were, and the mode rests for a while in this region. Who has come back from
    all of his regions too often fails in the next run. */
static void mm_give_back( struct mm_t * mm, struct mm_match_t * match, double now )
{
    mm->blocked_until[match->mode][match->region] = now + MM_RETRY_SECONDS;
    for ( int i = 0; i < match->count; i++ ) {
        struct mm_ticket_t * ticket = match->tickets[i];
        ticket->state = MM_QUEUED;
        ticket->is_changed = 1;
        ticket->match[0] = '\0';
        ticket->tries[match->region]++; /* no further match is formed there at MM_TRIES */
    }
    mm->given_back++;
    memset( match, 0, sizeof( *match ) );
}

#endif
