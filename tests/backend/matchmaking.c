/*  Tests examples/backend/matchmaking.h: rows for each rule, then random players from a seed, after each step of which
    the rules are checked from the outside.

        matchmaking [SEED [ROUNDS]]         a seed that failed is printed, and fails again */

#include "../../examples/backend/matchmaking.h"

#define REQUIRE( condition, ... )                                                                                  \
    do {                                                                                                           \
        if ( !( condition ) ) {                                                                                    \
            printf( "FAIL  line %d: ", __LINE__ );                                                                 \
            printf( __VA_ARGS__ );                                                                                 \
            printf( " (seed %llu, round %d, time %.1f)\n", (unsigned long long) test_seed, test_round, test_now ); \
            exit( 1 );                                                                                             \
        }                                                                                                          \
    } while ( 0 )

static struct mm_t mm;
static uint64_t test_seed = 1;
static int test_round;
static double test_now;
static uint64_t test_ids;

static void next_id( void * context, char id[MM_ID_BYTES] )
{
    (void) context;
    snprintf( id, MM_ID_BYTES, "%032llx", (unsigned long long) ++test_ids );
}

static void fresh( const char * first, const char * second )
{
    char text[256];
    mm_init( &mm, next_id, NULL );
    test_now = 1000.0;
    snprintf( text, sizeof( text ), "%s", first );
    REQUIRE( !mm_add_mode( &mm, text ), "the mode is refused: %s", first );
    if ( second ) {
        snprintf( text, sizeof( text ), "%s", second );
        REQUIRE( !mm_add_mode( &mm, text ), "the mode is refused: %s", second );
    }
}

/* `regions` are digits, the best first. */
static enum mm_refusal_t join_as( uint64_t client_id, int mode, const char * regions, const char * party, int size,
                                  struct mm_ticket_t ** ticket )
{
    struct mm_wish_t wish;
    memset( &wish, 0, sizeof( wish ) );
    wish.client_id = client_id;
    wish.mode = mode;
    for ( ; *regions; regions++ )
        wish.regions[wish.num_regions++] = (uint8_t) ( *regions - '0' );
    snprintf( wish.party, sizeof( wish.party ), "%s", party );
    wish.party_size = size;
    return mm_join( &mm, &wish, test_now, ticket );
}

static struct mm_ticket_t * join( uint64_t client_id, const char * regions, const char * party, int size )
{
    struct mm_ticket_t * ticket = NULL;
    enum mm_refusal_t refusal = join_as( client_id, 0, regions, party, size, &ticket );
    REQUIRE( refusal == MM_JOINED, "player %llu is refused with %d", (unsigned long long) client_id, refusal );
    return ticket;
}

static void join_party( uint64_t first, const char * party, int size, struct mm_ticket_t ** tickets )
{
    for ( int i = 0; i < size; i++ )
        tickets[i] = join( first + (uint64_t) i, "0", party, size );
}

static void poll_all( void )
{
    for ( int i = 0; i < MM_MAX_TICKETS; i++ )
        mm.tickets[i].seen_at = test_now;
}

/* Time goes on, and everyone keeps asking. */
static void pass( double seconds )
{
    test_now += seconds;
    poll_all();
    mm_run( &mm, test_now );
}

static void commit_all( void )
{
    struct mm_match_t * match = NULL;
    while ( ( match = mm_next( &mm ) ) != NULL )
        mm_commit( &mm, match, "somewhere", test_now, 30.0 );
}

/* ---- rows ---- */

static void test_modes( void )
{
    static const char * const wrong[] = {
        "",
        "duel",
        "duel 2",
        "du/el 2 2",
        "duel 0 1",
        "duel 65 1",
        "duel 3 2",
        "duel 2 17",
        "duel 8 2 min=3",
        "duel 8 2 min=10",
        "duel 8 2 x",
        "duel 8 2 x=1",
        "duel 8 2 widen=x",
        "duel 8 2 widen=-",
        "duel 8 2 expire=0",
        "duel 2 1 regions=",
        "duel 2 1 regions=eu,,us",
        "duel 2 1 regions=eu,eu",
        "duel 2 1 regions=a,b,c,d,e,f,g,h,i",
        "duel 2 1 fleet=",
        "duel 2 1 fleet=a,",
        "duel 2 1 fleet=a,a",
        "duel 2 1 fleet=a fleet=b",
        "duel 8 2 widen=999999",
        "duel 2x 2",
        "duel 2 1 regions=eu regions=us",
    };
    char text[256];
    mm_init( &mm, next_id, NULL );
    for ( size_t i = 0; i < sizeof( wrong ) / sizeof( wrong[0] ); i++ ) {
        snprintf( text, sizeof( text ), "%s", wrong[i] );
        REQUIRE( mm_add_mode( &mm, text ), "a mode is accepted: %s", wrong[i] );
    }
    snprintf( text, sizeof( text ), "  squad\t8 2  min=4 widen=5 shrink=20 expire=60 regions=eu,us fleet=a,b " );
    const char * why = mm_add_mode( &mm, text );
    REQUIRE( !why, "a good mode is refused: %s", why );
    const struct mm_mode_t * mode = &mm.modes[0];
    REQUIRE( !strcmp( mode->name, "squad" ) && mode->players == 8 && mode->teams == 2 && mode->minimum == 4,
             "numbers" );
    REQUIRE( mode->num_regions == 2 && mm_find_region( mode, "us" ) == 1 && mode->num_fleets == 2 &&
                 !strcmp( mode->fleets[1], "b" ),
             "names" );
    snprintf( text, sizeof( text ), "squad 2 2" );
    REQUIRE( mm_add_mode( &mm, text ), "a mode is accepted twice" );
    for ( int i = 1; i <= MM_MAX_MODES; i++ ) {
        snprintf( text, sizeof( text ), "mode%d 2 2", i );
        REQUIRE( !mm_add_mode( &mm, text ) == ( i < MM_MAX_MODES ), "%d modes", i + 1 );
    }
    printf( "ok: modes are read, and %zu wrong ones refused\n", sizeof( wrong ) / sizeof( wrong[0] ) );
}

static void test_oldest_first( void )
{
    fresh( "duel 2 2", NULL );
    struct mm_ticket_t * tickets[5];
    for ( int i = 0; i < 5; i++ ) {
        tickets[i] = join( 10 - (uint64_t) i, "0", "", 1 ); /* the ids do not matter */
        test_now += 0.5;
    }
    mm_run( &mm, test_now );
    for ( int i = 0; i < 4; i++ )
        REQUIRE( tickets[i]->state == MM_TAKEN, "player %d is left over", i );
    REQUIRE( !strcmp( tickets[0]->match, tickets[1]->match ) && strcmp( tickets[1]->match, tickets[2]->match ) != 0,
             "the oldest two do not play together" );
    REQUIRE( tickets[0]->team != tickets[1]->team, "both are in one team" );
    REQUIRE( tickets[4]->state == MM_QUEUED, "the youngest is taken" );
    printf( "ok: the oldest are matched first, in teams\n" );
}

static void test_idempotence( void )
{
    fresh( "duel 2 2", "big 8 2" );
    struct mm_ticket_t * again = NULL;
    struct mm_ticket_t * ticket = join( 1, "0", "", 1 );
    char id[MM_ID_BYTES];
    memcpy( id, ticket->id, sizeof( id ) );
    REQUIRE( join( 1, "0", "", 1 ) == ticket && !strcmp( ticket->id, id ), "asked again, another ticket" );
    REQUIRE( join_as( 1, 1, "0", "", 1, &again ) == MM_REFUSAL_already_queued && again == ticket, "another wish" );
    join( 2, "0", "", 1 );
    mm_run( &mm, test_now );
    REQUIRE( join( 1, "0", "", 1 ) == ticket && ticket->state == MM_TAKEN, "asked again while a server is looked for" );
    REQUIRE( !mm_cancel( &mm, ticket, 0, test_now ), "cancelled while a server is looked for" );
    commit_all();
    REQUIRE( join( 1, "0", "", 1 ) == ticket && ticket->state == MM_MATCHED, "asked again when it is matched" );
    REQUIRE( mm_find( &mm, id, 1 ) == ticket && !mm_find( &mm, id, 2 ) && !mm_find( &mm, "", 1 ), "whose ticket" );
    REQUIRE( mm_cancel( &mm, ticket, 0, test_now ) && ticket->reason == MM_REASON_cancelled, "cancelled when matched" );
    REQUIRE( mm_cancel( &mm, ticket, 0, test_now ) && ticket->ended_at > test_now, "cancelled twice" );
    pass( 29.0 );
    REQUIRE( join_as( 1, 0, "0", "", 1, &again ) == MM_REFUSAL_match_given_up && again == ticket,
             "the next one at once" );
    REQUIRE( join_as( 1, 1, "0", "", 1, &again ) == MM_REFUSAL_match_given_up && again == ticket, "in another mode" );
    pass( 1.1 );
    REQUIRE( join( 1, "0", "", 1 ) == ticket && ticket->state == MM_QUEUED && strcmp( ticket->id, id ) != 0, "anew" );
    REQUIRE( mm_cancel( &mm, ticket, 0, test_now ) && join( 1, "0", "", 1 ) == ticket,
             "out of the queue, and in again" );

    /* The match's time may be longer than a ticket that failed is kept otherwise. */
    join( 3, "0", "", 1 );
    mm_run( &mm, test_now );
    mm_commit( &mm, mm_next( &mm ), "somewhere", test_now, 3 * MM_KEEP_SECONDS );
    mm_cancel( &mm, ticket, 0, test_now );
    pass( 2 * MM_KEEP_SECONDS );
    REQUIRE( join_as( 1, 0, "0", "", 1, &again ) == MM_REFUSAL_match_given_up, "forgotten too soon" );
    ticket = mm_find_client( &mm, 3 );
    REQUIRE( mm_cancel( &mm, ticket, 1, test_now ) && join( 3, "0", "", 1 )->state == MM_QUEUED, "all have come" );
    printf( "ok: asked again, a player has the ticket that he has, whatever became of it\n" );
}

static void test_parties( void )
{
    struct mm_ticket_t * a[8];
    struct mm_ticket_t * b[8];
    struct mm_ticket_t * other = NULL;
    fresh( "squad 8 2 regions=eu,us", "duel 2 2" );
    join_party( 1, "party-of-three", 3, a );
    join_party( 11, "party-of-four", 4, b );
    mm_run( &mm, test_now );
    REQUIRE( a[0]->state == MM_QUEUED, "seven play" );
    struct mm_ticket_t * alone = join( 20, "0", "", 1 );
    mm_run( &mm, test_now );
    REQUIRE( alone->state == MM_TAKEN && alone->players == 8, "eight do not play" );
    for ( int i = 0; i < 3; i++ )
        REQUIRE( a[i]->team == alone->team && b[i]->team != alone->team, "a party is split" );

    fresh( "squad 8 2 regions=eu,us", "duel 2 2" );
    a[0] = join( 1, "01", "first-party", 3 );
    REQUIRE( join_as( 2, 0, "1", "short", 3, &other ) == MM_REFUSAL_wrong_party, "a short name" );
    REQUIRE( join_as( 2, 0, "1", "party name", 3, &other ) == MM_REFUSAL_wrong_party, "a name with a blank" );
    REQUIRE( join_as( 2, 0, "1", "first-party", 0, &other ) == MM_REFUSAL_wrong_party, "no other party" );
    REQUIRE( join_as( 2, 0, "1", "first-party", 9, &other ) == MM_REFUSAL_wrong_party, "nine" );
    REQUIRE( join_as( 2, 0, "1", "", 2, &other ) == MM_REFUSAL_wrong_party, "two without a name" );
    REQUIRE( join_as( 2, 0, "1", "first-party", 5, &other ) == MM_REFUSAL_party_too_large, "five in a team of four" );
    REQUIRE( join_as( 2, 0, "1", "first-party", 2, &other ) == MM_REFUSAL_party_mismatch, "another size" );
    REQUIRE( join_as( 2, 1, "0", "first-party", 1, &other ) == MM_REFUSAL_party_mismatch, "another mode" );
    a[1] = join( 2, "1", "first-party", 3 );
    REQUIRE( join_as( 3, 0, "0", "first-party", 3, &other ) == MM_REFUSAL_party_mismatch, "no region of all three" );
    a[2] = join( 3, "10", "first-party", 3 );
    REQUIRE( join_as( 4, 0, "1", "first-party", 3, &other ) == MM_REFUSAL_party_full, "a fourth of three" );
    mm_cancel( &mm, a[1], 0, test_now );
    REQUIRE( a[0]->reason == MM_REASON_party_left && a[2]->reason == MM_REASON_party_left, "the others stay" );

    /* The first that fits is the wrong one: two and three leave a place that no party fills. */
    fresh( "six 12 2", NULL );
    join_party( 1, "oldest-pair", 2, a );
    join_party( 11, "first-three", 3, b );
    join_party( 21, "other-three", 3, b );
    join_party( 31, "second-pair", 2, b );
    join_party( 41, "third-pair-", 2, b );
    mm_run( &mm, test_now );
    REQUIRE( a[0]->state == MM_TAKEN && b[0]->team == a[0]->team, "two, two and two, and three and three" );

    fresh( "squad 4 2 regions=eu,us,asia", NULL );
    a[0] = join( 1, "120", "picky-party", 2 );
    a[1] = join( 2, "12", "picky-party", 2 );
    join( 3, "0", "other-party", 2 );
    join( 4, "0", "other-party", 2 );
    mm_run( &mm, test_now );
    REQUIRE( a[0]->state == MM_QUEUED, "a party plays where one of it does not want to" );

    fresh( "squad 8 2 regions=eu,us", "duel 2 2" );
    a[0] = join( 1, "01", "second-party", 2 );
    pass( MM_PARTY_SECONDS - 1.0 );
    REQUIRE( a[0]->state == MM_QUEUED, "the party is over too soon" );
    pass( 2.0 );
    REQUIRE( a[0]->reason == MM_REASON_party_incomplete, "a party that is never complete waits" );
    printf( "ok: parties are matched together, in one team; what breaks them has a name\n" );
}

/* A party that is being matched may come back: no other gets its places meanwhile. */
static void test_party_in_between( void )
{
    struct mm_ticket_t * other = NULL;
    struct mm_ticket_t * party[8];
    fresh( "coop 8 1", NULL );
    join_party( 1, "party-of-eight", 8, party );
    mm_run( &mm, test_now );
    REQUIRE( party[7]->state == MM_TAKEN, "eight do not play" );
    REQUIRE( join_as( 9, 0, "0", "party-of-eight", 8, &other ) == MM_REFUSAL_party_full, "a ninth comes in between" );
    mm_give_back( &mm, mm_next( &mm ), test_now );
    pass( MM_RETRY_SECONDS + 0.1 );
    REQUIRE( party[7]->state == MM_TAKEN, "the party is not matched again" );
    printf( "ok: the places of a party that is being matched are not free\n" );
}

/* A ticket as another backend could have kept it. */
static int restore( uint64_t client_id, const char * party, int size, int mode, int state )
{
    struct mm_ticket_t ticket;
    memset( &ticket, 0, sizeof( ticket ) );
    snprintf( ticket.id, sizeof( ticket.id ), "kept-%llu", (unsigned long long) client_id );
    snprintf( ticket.wish.party, sizeof( ticket.wish.party ), "%s", party );
    ticket.wish.client_id = client_id;
    ticket.wish.mode = mode;
    ticket.wish.num_regions = 1;
    ticket.wish.party_size = size;
    ticket.state = state;
    ticket.sequence = client_id;
    ticket.joined_at = ticket.seen_at = test_now;
    return mm_restore( &mm, &ticket );
}

static void test_restored( void )
{
    fresh( "big 32 2", "duel 2 2" );
    for ( uint64_t id = 1; id <= 8; id++ )
        REQUIRE( restore( id, "party-of-eight", 8, 0, id % 2 ? MM_QUEUED : MM_TAKEN ), "member %d", (int) id );
    REQUIRE( !restore( 8, "", 1, 0, MM_QUEUED ), "a second ticket of a player" );
    REQUIRE( !restore( 9, "party-of-eight", 8, 0, MM_QUEUED ), "a ninth of eight, queued" );
    REQUIRE( !restore( 9, "party-of-eight", 8, 0, MM_TAKEN ), "a ninth of eight, being matched" );
    REQUIRE( !restore( 9, "party-of-three", 3, 1, MM_QUEUED ), "three in a team of one" );
    REQUIRE( !restore( 9, "", 2, 0, MM_QUEUED ), "two without a name" );
    REQUIRE( restore( 9, "party-of-eight", 8, 0, MM_FAILED ), "one that has failed takes no place in the party" );
    REQUIRE( restore( 10, "other-party", 2, 0, MM_QUEUED ), "the first of two" );
    REQUIRE( !restore( 11, "other-party", 3, 0, MM_QUEUED ), "a member with another size" );
    mm_run( &mm, test_now );
    REQUIRE( mm.num_units == 1 && mm.units[0].size == 8, "a party of %d", mm.units[0].size );

    /* Whatever is in the queue, nothing is written behind a unit's members. */
    fresh( "big 32 2", NULL );
    for ( uint64_t id = 1; id <= 20; id++ ) {
        restore( id, "", 1, 0, MM_QUEUED );
        snprintf( mm.tickets[id - 1].wish.party, MM_NAME_BYTES, "the-same-party" );
    }
    mm_run( &mm, test_now );
    for ( int i = 0; i < mm.num_units; i++ )
        REQUIRE( mm.units[i].size <= MM_MAX_PARTY && mm.units[i].mode == 0, "a unit of %d", mm.units[i].size );
    printf( "ok: tickets that were kept elsewhere come back, but for those that do not fit their party\n" );
}

static void test_widening( void )
{
    fresh( "duel 2 2 regions=eu,us,asia widen=10", NULL );
    struct mm_ticket_t * a = join( 1, "012", "", 1 );
    struct mm_ticket_t * b = join( 2, "210", "", 1 );
    pass( 9.0 );
    REQUIRE( a->state == MM_QUEUED, "matched before it is wider" );
    pass( 2.0 );
    REQUIRE( a->state == MM_TAKEN && b->state == MM_TAKEN && a->region == 1, "eu-us and asia-us do not meet in us" );
    fresh( "duel 2 2 regions=eu,us,asia widen=10", NULL );
    a = join( 1, "0", "", 1 );
    b = join( 2, "21", "", 1 );
    pass( 100.0 );
    REQUIRE( a->state == MM_QUEUED && b->state == MM_QUEUED, "matched where one of them does not want to play" );
    fresh( "duel 2 2 regions=eu,us,asia", NULL );
    a = join( 1, "102", "", 1 );
    b = join( 2, "210", "", 1 );
    pass( 0.0 );
    REQUIRE( a->state == MM_TAKEN && b->state == MM_TAKEN && a->region == 1,
             "without widen= all regions count at once, the older one's best first" );

    fresh( "squad 4 2 regions=eu,us,asia", NULL );
    join( 1, "021", "some-party", 2 );
    join( 2, "120", "some-party", 2 );
    join( 3, "012", "other-party", 2 );
    a = join( 4, "012", "other-party", 2 );
    pass( 0.0 );
    REQUIRE( a->state == MM_TAKEN && a->region == 0, "a party plays where the sum of its members' ranks is least" );
    printf( "ok: further regions count in the order that the player named, and no others\n" );
}

static void test_shrinking( void )
{
    struct mm_ticket_t * tickets[8];
    fresh( "squad 8 2 min=4 shrink=30", NULL );
    for ( int i = 0; i < 7; i++ )
        tickets[i] = join( (uint64_t) i + 1, "0", "", 1 );
    pass( 29.0 );
    REQUIRE( tickets[0]->state == MM_QUEUED, "smaller too soon" );
    pass( 2.0 );
    REQUIRE( tickets[0]->state == MM_TAKEN && tickets[0]->players == 6, "six of seven should play, two times three" );
    REQUIRE( tickets[6]->state == MM_QUEUED, "the youngest waits" );
    fresh( "squad 8 2 min=4 shrink=30 expire=50", NULL );
    for ( int i = 0; i < 3; i++ )
        tickets[i] = join( (uint64_t) i + 1, "0", "", 1 );
    pass( 49.0 );
    REQUIRE( tickets[0]->state == MM_QUEUED, "three play" );
    pass( 2.0 );
    REQUIRE( tickets[0]->reason == MM_REASON_no_match, "they wait for ever" );
    printf( "ok: a smaller match after a while, no smaller than the mode allows; none at all ends by itself\n" );
}

/* A party of three needs one more; pairs that come later fit together without it, and those alone fill it up. */
static void test_starvation( void )
{
    struct mm_ticket_t * party[3];
    fresh( "squad 8 2 expire=1000", NULL );
    join_party( 1, "party-of-three", 3, party );
    uint64_t id = 100;
    for ( int i = 0; i < 40; i++ ) {
        char name[32];
        snprintf( name, sizeof( name ), "party-of-two-%d", i );
        join( id++, "0", name, 2 );
        join( id++, "0", name, 2 );
        pass( 1.0 );
        commit_all();
    }
    REQUIRE( party[0]->state == MM_QUEUED, "three and two make four" );
    join( id++, "0", "", 1 );
    for ( int i = 0; i < 2; i++ ) {
        char name[32];
        snprintf( name, sizeof( name ), "last-party-%d", i );
        join( id++, "0", name, 2 );
        join( id++, "0", name, 2 );
    }
    pass( 1.0 );
    REQUIRE( party[0]->state == MM_TAKEN, "the oldest is passed over, though it fits" );
    printf( "ok: the one that has waited longest is served as soon as it is possible\n" );
}

static void test_servers( void )
{
    fresh( "duel 2 2 regions=eu,us", NULL );
    struct mm_ticket_t * a = join( 1, "01", "", 1 );
    struct mm_ticket_t * b = join( 2, "01", "", 1 );
    double joined_at = a->joined_at;
    for ( int i = 0; i < 2 * MM_TRIES; i++ ) {
        REQUIRE( a->state == MM_QUEUED && a->joined_at <= joined_at, "its place in the queue is lost" );
        pass( MM_RETRY_SECONDS / 2 + 0.1 );
        struct mm_match_t * match = mm_next( &mm );
        REQUIRE( match && !mm_next( &mm ), "there is no match, or two, in try %d", i );
        /* While one region rests, the next one is tried. */
        REQUIRE( match->region == i % 2, "region %d in try %d", match->region, i );
        mm_give_back( &mm, match, test_now );
    }
    mm_run( &mm, test_now );
    REQUIRE( a->reason == MM_REASON_no_server && b->reason == MM_REASON_no_server, "tried for ever" );
    a = join( 1, "0", "", 1 );
    b = join( 2, "0", "", 1 );
    pass( MM_RETRY_SECONDS + 0.1 );
    mm_commit( &mm, mm_next( &mm ), "somewhere", test_now, 30.0 );
    REQUIRE( a->state == MM_MATCHED && b->state == MM_MATCHED && !strcmp( a->place, "somewhere" ), "all or none" );
    pass( 31.0 );
    REQUIRE( a->reason == MM_REASON_too_late, "a match is kept for ever" );
    pass( MM_KEEP_SECONDS + 1.0 );
    REQUIRE( a->state == MM_FREE && b->state == MM_FREE, "what has ended is kept for ever" );
    printf( "ok: without a server all go back to their old place, %d times in each region; then it fails\n", MM_TRIES );
}

/* A player asks again and again for the region without servers alone; others want that one as well. */
static void test_region_without_servers( void )
{
    struct mm_ticket_t * party[2];
    struct mm_ticket_t * other = NULL;
    fresh( "duel 2 2 regions=eu,us expire=1000", NULL );
    struct mm_ticket_t * a = join( 1, "10", "", 1 );
    for ( int i = 0; i < 5 * MM_TRIES; i++ ) {
        join( 2, "1", "", 1 );
        pass( MM_RETRY_SECONDS + 0.1 );
        struct mm_match_t * match = mm_next( &mm );
        REQUIRE( !match == ( i >= MM_TRIES ) && a->state != MM_FAILED, "try %d, %s", i, mm_reason_name( a->reason ) );
        if ( match )
            mm_give_back( &mm, match, test_now );
    }
    mm_cancel( &mm, mm_find_client( &mm, 2 ), 0, test_now );
    other = join( 3, "01", "", 1 );
    pass( 0.1 );
    REQUIRE( a->state == MM_TAKEN && a->region == 0 && other->region == 0, "the region with servers is given up too" );
    commit_all();

    /* A party has the regions that all members want: it fails together when none is left of those. */
    fresh( "squad 4 2 regions=eu,us expire=1000", NULL );
    party[0] = join( 1, "01", "a-party-of-two", 2 );
    party[1] = join( 2, "1", "a-party-of-two", 2 );
    for ( int i = 0; i < MM_TRIES; i++ ) {
        other = join( 3, "1", "", 1 );
        join( 4, "1", "", 1 );
        pass( MM_RETRY_SECONDS + 0.1 );
        mm_give_back( &mm, mm_next( &mm ), test_now );
    }
    pass( 0.1 );
    REQUIRE( party[0]->reason == MM_REASON_no_server && party[1]->reason == MM_REASON_no_server, "a part of a party" );
    REQUIRE( other->reason == MM_REASON_no_server, "it has no other region" );
    printf( "ok: a region without servers is given up by itself: other regions go on\n" );
}

static void test_limits( void )
{
    struct mm_ticket_t * ticket = NULL;
    fresh( "huge 64 1 expire=86400", NULL );
    for ( int i = 0; i < MM_MAX_TICKETS; i++ )
        join( (uint64_t) i, "0", "", 1 );
    REQUIRE( join_as( 99999, 0, "0", "", 1, &ticket ) == MM_REFUSAL_queue_full, "more than fit" );
    int rounds = 0;
    while ( mm.committed < MM_MAX_TICKETS / 64 && rounds++ < MM_MAX_TICKETS ) {
        pass( 0.1 );
        int handed_out = 0;
        struct mm_match_t * match = NULL;
        while ( ( match = mm_next( &mm ) ) != NULL && ++handed_out <= MM_MAX_MATCHES )
            mm_commit( &mm, match, "x", test_now, 30.0 );
    }
    REQUIRE( mm.committed == MM_MAX_TICKETS / 64, "%llu matches", (unsigned long long) mm.committed );
    printf( "ok: %d players are matched, %d at a time, and no more get in\n", MM_MAX_TICKETS, MM_MAX_MATCHES );
}

static void test_silence( void )
{
    fresh( "duel 2 2", NULL );
    struct mm_ticket_t * a = join( 1, "0", "", 1 );
    test_now += MM_SILENT_SECONDS + 0.1;
    struct mm_ticket_t * b = join( 2, "0", "", 1 );
    mm_run( &mm, test_now );
    REQUIRE( a->reason == MM_REASON_silent && b->state == MM_QUEUED, "matched with one that is gone" );
    REQUIRE( !mm_poll( &mm, a->id, 2, test_now ) && mm_poll( &mm, a->id, 1, test_now ) == a, "he does not learn why" );
    printf( "ok: a player that asks no more is in no match\n" );
}

/* ---- random players ---- */

static uint64_t random_state;

static uint64_t random_bits( void )
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1dull;
}

static int below( int limit )
{
    return (int) ( ( random_bits() >> 33 ) % (uint64_t) limit );
}

#define CROWD 160

/* What the test knows of a player by itself, and where he was seen in a match. */
struct player_t {
    struct mm_wish_t wish;
    int playing; /* he asks now and then */
    char id[MM_ID_BYTES];
};

static struct player_t crowd[CROWD];

static void check_match( const struct mm_match_t * match )
{
    int teams[MM_MAX_TEAMS] = { 0 };
    const struct mm_mode_t * mode = &mm.modes[match->mode];
    REQUIRE( match->count >= mode->minimum && match->count <= mode->players && match->count % mode->teams == 0,
             "%d players in %s", match->count, mode->name );
    for ( int i = 0; i < match->count; i++ ) {
        const struct mm_ticket_t * ticket = match->tickets[i];
        int party = 0;
        int rank = mm_rank( &ticket->wish, match->region );
        REQUIRE( ticket->state == MM_TAKEN && !strcmp( ticket->match, match->id ), "a ticket of another match" );
        REQUIRE( ticket->wish.mode == match->mode && ticket->players == match->count, "another mode or size" );
        REQUIRE( rank >= 0, "a region that he does not want" );
        if ( mode->widen_seconds > 0.0 && !ticket->wish.party[0] )
            REQUIRE( rank * mode->widen_seconds <= test_now - ticket->joined_at, "wider too soon" );
        REQUIRE( test_now - ticket->seen_at <= MM_SILENT_SECONDS, "with one that is gone" );
        for ( int k = 0; k < match->count; k++ ) {
            const struct mm_ticket_t * other = match->tickets[k];
            REQUIRE( k == i || other->wish.client_id != ticket->wish.client_id, "a player twice in a match" );
            if ( ticket->wish.party[0] && !strcmp( other->wish.party, ticket->wish.party ) ) {
                REQUIRE( other->team == ticket->team, "a party in two teams" );
                party++;
            }
        }
        REQUIRE( !ticket->wish.party[0] || party == ticket->wish.party_size, "%d of a party of %d", party,
                 ticket->wish.party_size );
        REQUIRE( ticket->team >= 0 && ticket->team < mode->teams, "team %d", ticket->team );
        teams[ticket->team]++;
    }
    for ( int i = 0; i < mode->teams; i++ )
        REQUIRE( teams[i] * mode->teams == match->count, "%d in team %d of %d players", teams[i], i, match->count );
}

/* Can these sizes fill the teams? By trying each unit in each team: slow, and nothing like the module's search. */
static int can_fill( const int * sizes, int count, int * teams, int num_teams, int team_size )
{
    int full = 1;
    for ( int i = 0; i < num_teams; i++ )
        full = full && teams[i] == team_size;
    if ( full || !count )
        return full;
    for ( int i = 0; i < num_teams; i++ ) {
        if ( teams[i] + sizes[0] > team_size )
            continue;
        teams[i] += sizes[0];
        if ( can_fill( sizes + 1, count - 1, teams, num_teams, team_size ) )
            return 1;
        teams[i] -= sizes[0];
    }
    return can_fill( sizes + 1, count - 1, teams, num_teams, team_size );
}

/* After a run with matches to spare, nothing is left in a region that could have been one. */
static void check_nothing_left( void )
{
    if ( !mm_free_match( &mm ) )
        return;
    for ( int mode = 0; mode < mm.num_modes; mode++ ) {
        for ( int region = 0; region < mm.modes[mode].num_regions; region++ ) {
            int sizes[10];
            int teams[MM_MAX_TEAMS] = { 0 };
            int count = 0;
            for ( int i = 0; i < mm.num_units; i++ ) {
                const struct mm_unit_t * unit = &mm.units[i];
                if ( !unit->taken && unit->mode == mode && ( unit->eligible & ( 1u << region ) ) && count < 10 )
                    sizes[count++] = unit->size;
            }
            if ( test_now < mm.blocked_until[mode][region] )
                continue;
            REQUIRE( !can_fill( sizes, count, teams, mm.modes[mode].teams,
                                mm.modes[mode].players / mm.modes[mode].teams ),
                     "%s has a match left in region %d", mm.modes[mode].name, region );
        }
    }
}

static void check_tickets( void )
{
    int taken = 0;
    int in_matches = 0;
    for ( int i = 0; i < MM_MAX_TICKETS; i++ ) {
        const struct mm_ticket_t * ticket = &mm.tickets[i];
        if ( ticket->state == MM_FREE )
            continue;
        taken += ticket->state == MM_TAKEN;
        REQUIRE( mm_find_client( &mm, ticket->wish.client_id ) == ticket, "a player has two tickets" );
        double limit = mm.modes[ticket->wish.mode].expire_seconds + MM_PARTY_SECONDS + 0.5;
        REQUIRE( ticket->state != MM_QUEUED || test_now - ticket->joined_at <= limit, "queued for ever" );
        REQUIRE( ticket->state != MM_FAILED || test_now - ticket->ended_at <= MM_KEEP_SECONDS + 0.5, "kept for ever" );
    }
    for ( int i = 0; i < MM_MAX_MATCHES; i++ )
        in_matches += mm.matches[i].id[0] ? mm.matches[i].count : 0;
    REQUIRE( taken == in_matches, "%d tickets are taken, %d are in matches", taken, in_matches );
}

static void random_wish( struct player_t * player, int index )
{
    const struct mm_mode_t * mode = NULL;
    memset( player, 0, sizeof( *player ) );
    player->wish.client_id = (uint64_t) index + 1;
    player->wish.mode = below( mm.num_modes );
    mode = &mm.modes[player->wish.mode];
    for ( int i = below( mode->num_regions ) + 1; i > 0; i-- ) {
        int region = below( mode->num_regions );
        if ( mm_rank( &player->wish, region ) < 0 )
            player->wish.regions[player->wish.num_regions++] = (uint8_t) region;
    }
    player->wish.party_size = 1;
}

/* Some next to each other form a party, most of which are complete soon. */
static void random_party( int first )
{
    static int number = 0;
    int largest = mm.modes[crowd[first].wish.mode].players / mm.modes[crowd[first].wish.mode].teams;
    int size = below( largest < MM_MAX_PARTY ? largest : MM_MAX_PARTY ) + 1;
    if ( first + size > CROWD )
        return;
    for ( int i = 0; i < size; i++ ) {
        if ( i && crowd[first + i].playing )
            return;
    }
    number++;
    for ( int i = 0; i < size; i++ ) {
        struct mm_wish_t wish = crowd[first].wish;
        wish.client_id = crowd[first + i].wish.client_id;
        wish.party_size = size;
        snprintf( wish.party, sizeof( wish.party ), "party-%06d", number );
        crowd[first + i].wish = wish;
    }
}

static void random_join( int index )
{
    struct mm_ticket_t * ticket = NULL;
    struct player_t * player = &crowd[index];
    if ( !player->wish.party[0] || below( 8 ) == 0 ) {
        random_wish( player, index );
        if ( below( 3 ) == 0 )
            random_party( index );
    }
    enum mm_refusal_t refusal = mm_join( &mm, &player->wish, test_now, &ticket );
    if ( refusal != MM_JOINED ) {
        player->wish.party[0] = '\0';
        return;
    }
    memcpy( player->id, ticket->id, sizeof( player->id ) );
    player->playing = 1;
}

static void random_player( int index )
{
    struct player_t * player = &crowd[index];
    int dice = below( 1000 );
    if ( !player->playing ) {
        if ( dice < 60 )
            random_join( index );
        return;
    }
    if ( dice < 3 ) { /* gone without a word */
        player->playing = 0;
        player->wish.party[0] = '\0';
    } else if ( dice < 6 ) {
        struct mm_ticket_t * ticket = mm_find( &mm, player->id, player->wish.client_id );
        if ( ticket )
            mm_cancel( &mm, ticket, 0, test_now );
    } else if ( dice < 12 ) { /* an answer was lost, so it is asked again */
        struct mm_ticket_t * ticket = NULL;
        struct mm_ticket_t * before = mm_find( &mm, player->id, player->wish.client_id );
        if ( before && before->state != MM_FAILED )
            REQUIRE( mm_join( &mm, &player->wish, test_now, &ticket ) == MM_JOINED && ticket == before,
                     "another ticket" );
    } else if ( dice < 500 ) {
        struct mm_ticket_t * ticket = mm_poll( &mm, player->id, player->wish.client_id, test_now );
        if ( !ticket || ticket->state == MM_MATCHED || ticket->state == MM_FAILED ) {
            player->playing = 0;
            player->wish.party[0] = '\0';
        }
    }
}

static struct mm_match_t * open_matches[MM_MAX_MATCHES];
static int no_servers; /* in this round */

/* Servers are found, or not, sooner or later. */
static void random_servers( void )
{
    struct mm_match_t * match = NULL;
    while ( ( match = mm_next( &mm ) ) != NULL ) {
        check_match( match );
        for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
            if ( !open_matches[i] ) {
                open_matches[i] = match;
                break;
            }
        }
    }
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        if ( !open_matches[i] || below( 4 ) )
            continue;
        if ( !no_servers && below( 5 ) )
            mm_commit( &mm, open_matches[i], "somewhere", test_now, 10.0 );
        else
            mm_give_back( &mm, open_matches[i], test_now );
        open_matches[i] = NULL;
    }
}

/* All players stop joining and go on asking: in bounded time, none is left in the queue. */
static void random_end( void )
{
    for ( int i = 0; i < 8000; i++ ) {
        test_now += 0.1;
        poll_all();
        mm_run( &mm, test_now );
        check_tickets();
        random_servers();
        int left = 0;
        for ( int k = 0; k < MM_MAX_TICKETS; k++ )
            left += mm.tickets[k].state == MM_QUEUED || mm.tickets[k].state == MM_TAKEN;
        if ( !left )
            return;
    }
    REQUIRE( 0, "some are in the queue for ever" );
}

static void test_random( int rounds )
{
    static const char * const modes[] = { "duel 2 2 regions=eu,us widen=5",
                                          "squad 8 2 min=4 shrink=20 widen=8 regions=eu,us,asia expire=60", "coop 6 1",
                                          "trio 9 3 min=3 shrink=10" };
    uint64_t committed = 0;
    uint64_t given_back = 0;
    uint64_t failures[MM_REASONS] = { 0 };
    for ( test_round = 0; test_round < rounds; test_round++ ) {
        random_state = ( test_seed * 1000003 + (uint64_t) test_round ) * 0x9e3779b97f4a7c15ull | 1u;
        fresh( modes[below( 4 )], NULL );
        for ( int i = 0; i < 4; i++ ) {
            char text[256];
            snprintf( text, sizeof( text ), "%s", modes[i] );
            mm_add_mode( &mm, text ); /* the one that is there already is refused */
        }
        memset( crowd, 0, sizeof( crowd ) );
        memset( open_matches, 0, sizeof( open_matches ) );
        int players = 8 + below( CROWD - 8 );
        no_servers = test_round % 8 == 7;
        for ( int step = 0; step < 600; step++ ) {
            test_now += 0.25;
            for ( int i = 0; i < players; i++ )
                random_player( i );
            mm_run( &mm, test_now );
            check_nothing_left();
            check_tickets();
            random_servers();
        }
        random_end();
        committed += mm.committed;
        given_back += mm.given_back;
        for ( int i = 0; i < MM_REASONS; i++ )
            failures[i] += mm.failures[i];
    }
    printf( "ok: %d rounds of random players from seed %llu: %llu matches, %llu given back", rounds,
            (unsigned long long) test_seed, (unsigned long long) committed, (unsigned long long) given_back );
    for ( int i = 1; i < MM_REASONS; i++ ) {
        printf( ", %s %llu", mm_reason_name( i ), (unsigned long long) failures[i] );
        REQUIRE( failures[i] || rounds < 40, "%s never happened (\"%s\")", mm_reason_name( i ), mm_reason_text( i ) );
    }
    printf( "\n" );
}

int main( int argc, char ** argv )
{
    int rounds = argc > 2 ? (int) strtol( argv[2], NULL, 10 ) : 60;
    test_seed = argc > 1 ? strtoull( argv[1], NULL, 0 ) : 1;
    test_modes();
    test_oldest_first();
    test_idempotence();
    test_parties();
    test_party_in_between();
    test_restored();
    test_widening();
    test_shrinking();
    test_starvation();
    test_servers();
    test_region_without_servers();
    test_limits();
    test_silence();
    test_random( rounds );
    return 0;
}
