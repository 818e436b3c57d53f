/*  Proofs of pool and inbox, with two clients, two buffers of 32 bytes (small.faults) and five notes (netcode.h
    has two for each client and some to spare): one step from any state that they can be in. Run: tests/prove/run.sh inbox

    The invariant is is_box: whatever is kept twice agrees, and payloads stand in the order of their arrival.
    prove_inbox_reset shows that it holds at first, and the others that no call ends it. For lists and buffers, which
    have their proofs (prove_list, prove_pool), stand functions that do what these proofs say: FUNCTION=answer_... in
    proofs.list. */

#define PROVE_SMALL
#include "prove.h"

enum { CLIENTS = 2, BUFFERS = 2, NOTES = 2 * CLIENTS + 1, BYTES = 8 };

/* ---- pool ---- */

typedef struct {
    nc_buffer_t header;
    uint8_t pad[NC_BUFFER_HEADER_BYTES - sizeof( nc_buffer_t )];
    uint8_t data[NC_BUFFER_STRIDE - NC_BUFFER_HEADER_BYTES];
} cell_t;

typedef struct {
    nc_pool_t pool;
    cell_t cells[BUFFERS];
    uint32_t free_list[BUFFERS];
    uint8_t states[BUFFERS];
} box_t;

static void make_pool( box_t * box )
{
    memset( &box->pool, 0, sizeof( box->pool ) );
    box->pool.buffers = (uint8_t *) box->cells;
    box->pool.free_list = box->free_list;
    box->pool.states = box->states;
    box->pool.count = box->pool.free_count = box->pool.fresh = BUFFERS; /* the free list holds anything */
}

/* No buffer is given out twice, and one that was given back can be taken again. */
void prove_pool( void )
{
    box_t box;
    uint32_t taken[BUFFERS];
    make_pool( &box );
    uint32_t count = any_below( BUFFERS + 1 );
    for ( uint32_t i = 0; i < count; i++ ) {
        taken[i] = nc_pool_take( &box.pool );
        CLAIM( taken[i] < BUFFERS && nc_pool_find( &box.pool, nc_pool_data( &box.pool, taken[i] ) ) == taken[i] );
        for ( uint32_t k = 0; k < i; k++ )
            CLAIM( taken[k] != taken[i] );
    }
    CLAIM( count < BUFFERS || nc_pool_take( &box.pool ) == NOWHERE );
    uint32_t back = any_below( BUFFERS );
    if ( back >= count )
        return;
    nc_pool_free( &box.pool, taken[back] );
    CLAIM( nc_pool_take( &box.pool ) == taken[back] );
}

/* Whatever address a caller hands in: it is the buffer's in which it lies, and none's outside of all. */
void prove_pool_find( void )
{
    box_t box;
    make_pool( &box );
    uintptr_t first = (uintptr_t) box.pool.buffers, address = (uintptr_t) any_u64();
    uint32_t found = nc_pool_find( &box.pool, (const void *) address );
    if ( address < first || address - first >= (uintptr_t) BUFFERS * NC_BUFFER_STRIDE )
        CLAIM( found == NOWHERE );
    else
        CLAIM( found < BUFFERS && address - first >= (uintptr_t) found * NC_BUFFER_STRIDE &&
               address - first < (uintptr_t) ( found + 1 ) * NC_BUFFER_STRIDE );
}

/* ---- inbox: each array a thing of its own, which spares the solver much ---- */

static nc_inbox_t inbox;
static nc_pool_t pool;
static nc_buffer_t headers[BUFFERS];
static uint8_t payloads[BUFFERS][NC_BUFFER_STRIDE - NC_BUFFER_HEADER_BYTES];
static uint8_t states[BUFFERS];
static uint32_t free_list[BUFFERS], free_notes[NOTES];
static nc_queue_t queues[CLIENTS];
static nc_link_t queue_links[BUFFERS], disconnected_links[CLIENTS], event_links[BUFFERS + NOTES], ended_links[NOTES];
static nc_note_t notes[NOTES];
static uint64_t arrivals; /* the sequence of the payload that came last, of all clients */

/* prove_pool: a buffer's header, and its bytes. */
nc_buffer_t * answer_buffer( nc_pool_t * unused, uint32_t index )
{
    (void) unused;
    CLAIM( index < BUFFERS );
    return index == 0 ? &headers[0] : &headers[1];
}

uint8_t * answer_data( nc_pool_t * unused, uint32_t index )
{
    (void) unused;
    CLAIM( index < BUFFERS );
    return index == 0 ? payloads[0] : payloads[1];
}

enum { QUEUE_0, QUEUE_1, ORPHANS, EVENTS, LEFT, ENDED, NO_LIST };

/* A note is only forgotten with its pair: of more than two notes a client there is always one. */
void answer_never( nc_inbox_t * unused )
{
    (void) unused;
    CLAIM( 0 );
}

/* A list, as far as its proof says: its members, in the order in which they were inserted. */
typedef struct {
    uint8_t list;
    uint8_t stamp; /* lower for what was inserted earlier */
} member_t;

static member_t queue_members[BUFFERS], event_members[BUFFERS + NOTES], left_members[CLIENTS], ended_members[NOTES];
static uint8_t latest_stamp = 15;

/* The member that was inserted first after this stamp. */
static uint32_t first_after( const member_t * members, uint32_t most, uint8_t list, int stamp )
{
    uint32_t first = NOWHERE;
    int least = 256;
    for ( uint32_t i = 0; i < most; i++ )
        if ( members[i].list == list && members[i].stamp > stamp && members[i].stamp < least ) {
            first = i;
            least = members[i].stamp;
        }
    return first;
}

/* What the inbox sees of a list: its head, how many there are, and which comes next. The harness sees its tail too. */
static void show( nc_list_t * list, nc_link_t * links, const member_t * members, uint32_t most, uint8_t id )
{
    list->head = first_after( members, most, id, -1 );
    list->tail = NOWHERE;
    list->count = 0;
    for ( uint32_t i = 0; i < most; i++ )
        if ( members[i].list == id ) {
            links[i].next = first_after( members, most, id, members[i].stamp );
            list->tail = links[i].next == NOWHERE ? i : list->tail;
            list->count++;
        }
}

static void show_lists( void )
{
    show( &queues[0].list, queue_links, queue_members, BUFFERS, QUEUE_0 );
    show( &queues[1].list, queue_links, queue_members, BUFFERS, QUEUE_1 );
    show( &inbox.orphans, queue_links, queue_members, BUFFERS, ORPHANS );
    show( &inbox.events, event_links, event_members, BUFFERS + NOTES, EVENTS );
    show( &inbox.disconnected, disconnected_links, left_members, CLIENTS, LEFT );
    show( &inbox.ended, ended_links, ended_members, NOTES, ENDED );
}

static void put( member_t * member, uint8_t from, uint8_t to )
{
    CLAIM( member->list == from );
    member->list = to;
    member->stamp = ++latest_stamp;
}

/* Into a list, or out of it. */
static void move( nc_list_t * list, nc_link_t * links, uint32_t index, int is_inserted )
{
    nc_list_t * const lists[6] = { &queues[0].list, &queues[1].list,     &inbox.orphans,
                                   &inbox.events,   &inbox.disconnected, &inbox.ended };
    nc_link_t * const links_of[6] = { queue_links, queue_links,        queue_links,
                                      event_links, disconnected_links, ended_links };
    member_t * const members[6] = { queue_members, queue_members, queue_members,
                                    event_members, left_members,  ended_members };
    const uint32_t most[6] = { BUFFERS, BUFFERS, BUFFERS, BUFFERS + NOTES, CLIENTS, NOTES };
    int moves = 0;
    for ( uint8_t i = 0; i < 6; i++ )
        if ( list == lists[i] ) {
            CLAIM( links == links_of[i] && index < most[i] );
            put( &members[i][index], is_inserted ? NO_LIST : i, is_inserted ? i : NO_LIST );
            show( lists[i], links_of[i], members[i], most[i], i );
            moves++;
        }
    CLAIM( moves == 1 );
}

void answer_list_insert( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    move( list, links, index, 1 );
}

void answer_list_remove( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    move( list, links, index, 0 );
}

static void any_members( member_t * members, uint32_t most )
{
    for ( uint32_t i = 0; i < most; i++ ) {
        members[i].list = any_u8();
        members[i].stamp = any_u8();
        GIVEN( members[i].list <= NO_LIST && members[i].stamp < 15 );
        for ( uint32_t k = 0; k < i; k++ )
            GIVEN( members[k].stamp != members[i].stamp );
    }
}

/* What is free: so many different ones. */
static int is_free_list( uint32_t * set, const uint32_t * list, uint32_t count, uint32_t most )
{
    *set = 0;
    if ( count > most )
        return 0;
    for ( uint32_t i = 0; i < most; i++ ) {
        if ( i >= count )
            continue;
        if ( list[i] >= most || ( *set >> list[i] & 1 ) )
            return 0;
        *set |= (uint32_t) 1 << list[i];
    }
    return 1;
}

static int is_unread( uint32_t buffer )
{
    return states[buffer] == NC_BUFFER_QUEUED || states[buffer] == NC_BUFFER_ORPHANED;
}

/*  Of two payloads that are not read yet, which came first? A client's queue and the events say the same. The orphans
    stand in the order in which their slots were filled. */
static int is_in_order( uint32_t a, uint32_t b )
{
    int a_is_first = headers[a].sequence < headers[b].sequence;
    if ( !is_unread( a ) || !is_unread( b ) )
        return 1;
    if ( queue_members[a].list == queue_members[b].list && queue_members[a].list != ORPHANS &&
         ( queue_members[a].stamp < queue_members[b].stamp ) != a_is_first )
        return 0;
    return headers[a].sequence != headers[b].sequence &&
           ( event_members[a].stamp < event_members[b].stamp ) == a_is_first;
}

/* Is it in just the lists where it belongs? */
static int is_buffer( uint32_t nth )
{
    const nc_buffer_t * header = &headers[nth];
    uint32_t list = states[nth] == NC_BUFFER_QUEUED     ? header->client_index
                    : states[nth] == NC_BUFFER_ORPHANED ? ORPHANS
                                                        : NO_LIST;
    int good = header->client_index < CLIENTS && states[nth] <= NC_BUFFER_HELD && header->bytes <= BYTES;
    good &= queue_members[nth].list == list && event_members[nth].list == ( is_unread( nth ) ? EVENTS : NO_LIST );
    return good && ( !is_unread( nth ) || header->sequence <= arrivals );
}

static uint32_t count_of( uint32_t state )
{
    uint32_t count = 0;
    for ( int i = 0; i < BUFFERS; i++ )
        count += states[i] == state;
    return count;
}

static int is_queue( uint32_t client )
{
    const nc_queue_t * queue = &queues[client];
    int good = queue->is_open <= 1 && queue->is_disconnected == ( !queue->is_open && queue->list.count > 0 );
    return good && queue->list.count <= inbox.quota &&
           left_members[client].list == ( queue->is_disconnected ? LEFT : NO_LIST );
}

/*  A note of a session's one end knows the other end's, where both are unread; a queue knows the unread CONNECTED of
    its present session. */
static int is_note( uint32_t nth, uint32_t used )
{
    const nc_note_t * note = &notes[nth];
    int is_connected = note->type == NETCODE_EVENT_CONNECTED;
    if ( note->client_index >= CLIENTS || ( !is_connected && note->type != NETCODE_EVENT_DISCONNECTED ) )
        return 0;
    if ( note->pair == NOWHERE )
        return !is_connected || queues[note->client_index].connected_note == nth;
    if ( note->pair >= NOTES || !( used >> note->pair & 1 ) || notes[note->pair].pair != nth )
        return 0;
    return notes[note->pair].client_index == note->client_index && notes[note->pair].type != note->type;
}

static int is_present( uint32_t client, uint32_t used )
{
    uint32_t note = queues[client].connected_note;
    if ( note == NOWHERE )
        return 1;
    return note < NOTES && queues[client].is_open && ( used >> note & 1 ) && notes[note].pair == NOWHERE &&
           notes[note].type == NETCODE_EVENT_CONNECTED && notes[note].client_index == client;
}

/*  Of one client: a DISCONNECTED whose CONNECTED was read comes before all other notes, the present session's CONNECTED
    behind them, and between a pair there is none. Where the present session's CONNECTED was read there is none at
    all. */
static int is_reported_in_order( uint32_t nth, uint32_t used )
{
    const nc_note_t * note = &notes[nth];
    int is_connected = note->type == NETCODE_EVENT_CONNECTED, good = 1;
    uint8_t stamp = event_members[BUFFERS + nth].stamp;
    for ( uint32_t i = 0; i < NOTES; i++ ) {
        uint8_t other = event_members[BUFFERS + i].stamp;
        if ( i == nth || !( used >> i & 1 ) || notes[i].client_index != note->client_index )
            continue;
        if ( note->pair == NOWHERE )
            good &= is_connected == ( other < stamp );
        else if ( note->pair == i )
            good &= is_connected == ( stamp < other );
        else
            good &= ( other < stamp ) == ( other < event_members[BUFFERS + note->pair].stamp );
    }
    return good && !( queues[note->client_index].is_open && queues[note->client_index].connected_note == NOWHERE );
}

static int are_notes( uint32_t used )
{
    int good = is_present( 0, used ) && is_present( 1, used );
    for ( uint32_t i = 0; i < NOTES; i++ ) {
        int is_used = (int) ( used >> i & 1 );
        good = good && ( !is_used || ( is_note( i, used ) && is_reported_in_order( i, used ) ) );
        int is_ended = is_used && notes[i].pair != NOWHERE && notes[i].type == NETCODE_EVENT_DISCONNECTED;
        good &= ended_members[i].list == ( is_ended ? ENDED : NO_LIST );
        good &= event_members[BUFFERS + i].list == ( is_used ? EVENTS : NO_LIST );
    }
    return good;
}

static int is_pool( void )
{
    uint32_t set;
    int good = pool.count == BUFFERS && is_free_list( &set, free_list, pool.free_count, BUFFERS );
    for ( uint32_t i = 0; i < BUFFERS; i++ )
        good = good && is_buffer( i ) && ( set >> i & 1 ) == ( states[i] == NC_BUFFER_FREE );
    good = good && is_in_order( 0, 1 );
    return good && pool.held == count_of( NC_BUFFER_HELD );
}

/* What the inbox says of itself is true. */
static int is_box( void )
{
    uint32_t unused_notes, reserved = 0;
    int good = is_pool() && is_queue( 0 ) && is_queue( 1 );
    for ( uint32_t i = 0; i < CLIENTS; i++ )
        if ( queues[i].is_open && queues[i].list.count < inbox.share )
            reserved += inbox.share - queues[i].list.count;
    good = good && inbox.reserved == reserved;
    good = good && inbox.queued == count_of( NC_BUFFER_QUEUED ) + count_of( NC_BUFFER_ORPHANED );
    good = good && is_free_list( &unused_notes, free_notes, inbox.free_note_count, NOTES );
    return good && are_notes( ( ( 1 << NOTES ) - 1 ) & ~unused_notes );
}

static void place_inbox( void )
{
    pool.free_list = free_list;
    pool.states = states;
    pool.fresh = 0; /* all were used: what the others are is prove_pool's */
    pool.count = BUFFERS;
    inbox.pool = &pool;
    inbox.queues = queues;
    inbox.queue_links = queue_links;
    inbox.disconnected_links = disconnected_links;
    inbox.event_links = event_links;
    inbox.notes = notes;
    inbox.free_notes = free_notes;
    inbox.ended_links = ended_links;
    inbox.client_count = CLIENTS;
    inbox.note_count = NOTES;
    inbox.events_are_read = any_int() != 0;
    pool.free_count = any_u32();
    pool.held = any_u32();
    arrivals = any_u64();
    GIVEN( arrivals < UINT64_MAX );
}

static void any_queue( nc_queue_t * queue )
{
    queue->connected_note = any_u32();
    queue->moved_note = NOWHERE; /* clients that move are not in these proofs */
    queue->is_open = any_u8();
    queue->is_disconnected = any_u8();
}

static void any_cells( void )
{
    for ( int i = 0; i < BUFFERS; i++ ) {
        nc_buffer_t header = { any_u64(), any_u64(), any_u64(), any_u32(), any_u32() };
        headers[i] = header;
        states[i] = any_u8();
        free_list[i] = any_u32();
    }
    for ( int i = 0; i < NOTES; i++ ) {
        nc_note_t note = { any_u64(), any_u64(), any_u32(), any_u32(), any_int(), any_int() };
        notes[i] = note;
        free_notes[i] = any_u32();
    }
}

static void any_inbox_with( uint32_t free_note_count )
{
    place_inbox();
    any_cells();
    any_queue( &queues[0] );
    any_queue( &queues[1] );
    any_members( queue_members, BUFFERS );
    any_members( event_members, BUFFERS + NOTES );
    any_members( left_members, CLIENTS );
    any_members( ended_members, NOTES );
    show_lists();
    inbox.quota = any_below( BUFFERS + 1 );
    inbox.share = any_below( BUFFERS + 1 );
    inbox.reserved = any_u32();
    inbox.queued = any_u32();
    inbox.free_note_count = free_note_count;
    GIVEN( is_box() );
}

static void any_inbox( void )
{
    any_inbox_with( any_u32() );
}

static int is_empty( const nc_list_t * list )
{
    return list->head == NOWHERE && list->tail == NOWHERE && list->count == 0;
}

static void no_members( member_t * members, uint32_t most )
{
    for ( uint32_t i = 0; i < most; i++ )
        members[i].list = NO_LIST;
}

void prove_inbox_reset( void )
{
    place_inbox();
    any_cells();
    any_queue( &queues[0] );
    any_queue( &queues[1] );
    no_members( queue_members, BUFFERS );
    no_members( event_members, BUFFERS + NOTES );
    no_members( left_members, CLIENTS );
    no_members( ended_members, NOTES );
    pool.free_count = BUFFERS;
    pool.held = 0;
    for ( uint32_t i = 0; i < BUFFERS; i++ ) {
        free_list[i] = i;
        states[i] = NC_BUFFER_FREE;
        headers[i].client_index = headers[i].bytes = 0;
    }
    nc_inbox_reset( &inbox, &pool, any_u32() );
    CLAIM( is_empty( &queues[0].list ) && is_empty( &queues[1].list ) && is_empty( &inbox.orphans ) );
    CLAIM( is_empty( &inbox.disconnected ) && is_empty( &inbox.events ) && is_empty( &inbox.ended ) );
    CLAIM( is_box() );
}

/*  A payload is queued behind all others, or refused; then its client has its quota, or no buffer is free that it may
    have. */
void prove_inbox_copy( void )
{
    uint8_t data[BYTES];
    any_inbox();
    uint32_t client = any_below( CLIENTS ), count = queues[client].list.count, queued = inbox.queued;
    nc_buffer_t what = { any_u64(), any_u64(), arrivals + 1, client, any_below( BYTES + 1 ) };
    GIVEN( queues[client].is_open );
    int reason = nc_inbox_copy( &inbox, what, data );
    arrivals += reason == NETCODE_DROP_NONE;
    CLAIM( is_box() );
    if ( reason == NETCODE_DROP_NONE )
        CLAIM( queues[client].list.count == count + 1 && inbox.queued <= queued + 1 );
    else
        CLAIM( queues[client].list.count == count && ( count >= inbox.quota || pool.free_count <= inbox.reserved ) );
}

/* A client's oldest payload is read, which the others of its queue came after. */
void prove_inbox_receive( void )
{
    int bytes = -1;
    uint64_t sequence = 0;
    any_inbox();
    uint32_t client = any_below( CLIENTS ), count = queues[client].list.count, held = pool.held,
             probe = any_below( BUFFERS );
    const uint8_t * data = nc_inbox_receive( &inbox, client, &bytes, &sequence );
    CLAIM( is_box() && ( data != NULL ) == ( count > 0 ) && pool.held == held + ( data != NULL ) );
    CLAIM( !data || ( bytes >= 0 && bytes <= BYTES && queues[client].list.count == count - 1 ) );
    if ( data && states[probe] == NC_BUFFER_QUEUED && headers[probe].client_index == client )
        CLAIM( headers[probe].sequence > sequence );
}

/* The oldest event is read, which all payloads that are left came after. */
void prove_inbox_next_event( void )
{
    struct netcode_event_t event;
    any_inbox();
    uint32_t count = inbox.events.count, probe = any_below( BUFFERS );
    CLAIM( nc_inbox_next_event( &inbox, &event ) == ( count > 0 ) );
    CLAIM( is_box() && inbox.events.count == count - ( count > 0 ) );
    CLAIM( count == 0 || ( event.client_index >= 0 && event.client_index < CLIENTS ) );
    if ( count && event.type == NETCODE_EVENT_PAYLOAD &&
         ( states[probe] == NC_BUFFER_QUEUED || states[probe] == NC_BUFFER_ORPHANED ) )
        CLAIM( headers[probe].sequence > event.sequence );
}

/* The caller gives back what it has read. */
void prove_inbox_give( void )
{
    any_inbox();
    uint32_t index = any_below( BUFFERS );
    GIVEN( states[index] == NC_BUFFER_HELD );
    pool.held--;
    nc_pool_free( &pool, index );
    CLAIM( is_box() );
}

/* Any payload and any note, as they are before a session begins or ends. */
typedef struct {
    uint32_t buffer, note;
    nc_buffer_t header;
    uint32_t state;
    uint8_t is_reported; /* the note is an event */
    uint32_t pair[2];    /* the notes that are dropped because none is free: the oldest pair */
    uint64_t session;    /* theirs */
    uint32_t pair_client;
} before_t;

static before_t before_any( void )
{
    before_t it = { any_below( BUFFERS ), any_below( NOTES ), { 0, 0, 0, 0, 0 }, 0, 0, { NOWHERE, NOWHERE }, 0, 0 };
    it.header = headers[it.buffer];
    it.state = states[it.buffer];
    it.is_reported = event_members[BUFFERS + it.note].list == EVENTS;
    if ( inbox.free_note_count == 0 ) {
        it.pair[0] = inbox.ended.head;
        it.pair[1] = notes[it.pair[0]].pair;
        it.session = notes[it.pair[0]].session;
        it.pair_client = notes[it.pair[0]].client_index;
    }
    return it;
}

/*  Nothing happened to it but what had to: with the dropped pair go its payloads, where events are read, and no others; no
    other note is dropped. `state`: what the payload's would be without the pair. `added`: the new note. */
static void claim_others( const before_t * it, uint32_t state, uint32_t added )
{
    int goes =
        it->pair[0] != NOWHERE && inbox.events_are_read && it->header.session == it->session &&
        ( state == NC_BUFFER_ORPHANED || ( state == NC_BUFFER_QUEUED && it->header.client_index == it->pair_client ) );
    CLAIM( states[it->buffer] == ( goes ? (uint32_t) NC_BUFFER_FREE : state ) );
    int is_dropped = it->note == it->pair[0] || it->note == it->pair[1];
    CLAIM( event_members[BUFFERS + it->note].list ==
           ( ( it->is_reported && !is_dropped ) || it->note == added ? EVENTS : NO_LIST ) );
}

static void claim_note( uint32_t nth, const nc_note_t * expected )
{
    const nc_note_t * note = &notes[nth];
    CLAIM( note->session == expected->session && note->client_id == expected->client_id &&
           note->client_index == expected->client_index && note->pair == expected->pair &&
           note->type == expected->type && note->reason == expected->reason );
}

/*  A session begins in a slot that is free: nothing of before is in its queue. A reader of events gets it yet. In
    cases, because a solver is done with each far sooner than with all: whose slot, and whether a note is free or a pair
    has to go. */
static void claim_open( uint32_t client )
{
    before_t it = before_any();
    uint64_t session = any_u64(), client_id = any_u64();
    GIVEN( !queues[client].is_open );
    nc_inbox_open( &inbox, client, session, client_id );
    CLAIM( is_box() && queues[client].is_open && queues[client].list.count == 0 );
    CLAIM( queues[client].connected_note < NOTES && inbox.events.tail == BUFFERS + queues[client].connected_note );
    nc_note_t note = { session, client_id, client, NOWHERE, NETCODE_EVENT_CONNECTED, 0 };
    claim_note( queues[client].connected_note, &note );
    int was_queued = it.state == NC_BUFFER_QUEUED && it.header.client_index == client;
    claim_others( &it,
                  !was_queued             ? it.state
                  : inbox.events_are_read ? (uint32_t) NC_BUFFER_ORPHANED
                                          : (uint32_t) NC_BUFFER_FREE,
                  queues[client].connected_note );
}

/* A session ends: what it sent can be read yet. */
static void claim_close( uint32_t client )
{
    before_t it = before_any();
    uint64_t session = any_u64(), client_id = any_u64();
    int reason = any_int();
    uint32_t connected = queues[client].connected_note;
    GIVEN( queues[client].is_open );
    nc_inbox_close( &inbox, client, session, client_id, reason );
    CLAIM( is_box() && !queues[client].is_open );
    CLAIM( inbox.events.tail >= BUFFERS );
    nc_note_t note = { session, client_id, client, connected, NETCODE_EVENT_DISCONNECTED, reason };
    claim_note( inbox.events.tail - BUFFERS, &note );
    claim_others( &it, it.state, inbox.events.tail - BUFFERS );
}

#define PROVE_CASES( what, client )                 \
    void prove_inbox_##what##_##client( void )      \
    {                                               \
        any_inbox();                                \
        GIVEN( inbox.free_note_count > 0 );         \
        claim_##what( client );                     \
    }                                               \
    void prove_inbox_##what##_full_##client( void ) \
    {                                               \
        any_inbox_with( 0 );                        \
        claim_##what( client );                     \
    }

PROVE_CASES( open, 0 )
PROVE_CASES( open, 1 )
PROVE_CASES( close, 0 )
PROVE_CASES( close, 1 )
