/*  Proofs of pool and inbox, with two clients and two buffers of 32 bytes (small.faults), with and without config.events:
    one step from any state that they can be in. Run: tests/prove/run.sh inbox

    The invariant is is_box: whatever is kept twice agrees, and payloads stand in the order of their arrival.
    prove_inbox_reset shows that it holds at first, and the others that no call ends it. For lists and buffers, which
    have their proofs (prove_list, prove_pool), stand functions that do what these proofs say: FUNCTION=answer_... in
    proofs.list. */

#define PROVE_SMALL
#include "prove.h"

enum { CLIENTS = 2, BUFFERS = 2, EVENTS_MOST = NC_EVENTS * CLIENTS, BYTES = 8 };

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
static uint32_t free_list[BUFFERS];
static nc_queue_t queues[CLIENTS];
static nc_link_t queue_links[BUFFERS], disconnected_links[CLIENTS], event_links[BUFFERS + EVENTS_MOST];
static nc_event_t unread[EVENTS_MOST];
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

enum { QUEUE_0, QUEUE_1, EVENTS, LEFT, NO_LIST };

/* A list, as far as its proof says: its members, in the order in which they were inserted. */
typedef struct {
    uint8_t list;
    uint8_t stamp; /* lower for what was inserted earlier */
} member_t;

static member_t queue_members[BUFFERS], event_members[BUFFERS + EVENTS_MOST], left_members[CLIENTS];
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
    show( &inbox.events, event_links, event_members, BUFFERS + EVENTS_MOST, EVENTS );
    show( &inbox.disconnected, disconnected_links, left_members, CLIENTS, LEFT );
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
    nc_list_t * const lists[NO_LIST] = { &queues[0].list, &queues[1].list, &inbox.events, &inbox.disconnected };
    nc_link_t * const links_of[NO_LIST] = { queue_links, queue_links, event_links, disconnected_links };
    member_t * const members[NO_LIST] = { queue_members, queue_members, event_members, left_members };
    const uint32_t most[NO_LIST] = { BUFFERS, BUFFERS, BUFFERS + EVENTS_MOST, CLIENTS };
    int moves = 0;
    for ( uint8_t i = 0; i < NO_LIST; i++ )
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

/*  Of two payloads that are not read yet, which came first? A client's queue and the events say the same. */
static int is_in_order( uint32_t a, uint32_t b )
{
    int a_is_first = headers[a].sequence < headers[b].sequence;
    if ( states[a] != NC_BUFFER_QUEUED || states[b] != NC_BUFFER_QUEUED )
        return 1;
    if ( queue_members[a].list == queue_members[b].list &&
         ( queue_members[a].stamp < queue_members[b].stamp ) != a_is_first )
        return 0;
    return headers[a].sequence != headers[b].sequence &&
           ( !inbox.has_events || ( event_members[a].stamp < event_members[b].stamp ) == a_is_first );
}

/* Is it in just the lists where it belongs? */
static int is_buffer( uint32_t nth )
{
    const nc_buffer_t * header = &headers[nth];
    int is_queued = states[nth] == NC_BUFFER_QUEUED;
    int good = header->client_index < CLIENTS && states[nth] <= NC_BUFFER_HELD && header->bytes <= BYTES;
    good &= queue_members[nth].list == ( is_queued ? header->client_index : NO_LIST );
    good &= event_members[nth].list == ( is_queued && inbox.has_events ? EVENTS : NO_LIST );
    return good && ( !is_queued || header->sequence <= arrivals );
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
    int good = queue->is_open <= 1 && ( queue->first_event == 0 || queue->first_event == 2 ) && !queue->is_joined &&
               queue->is_disconnected == ( !queue->is_open && queue->list.count > 0 );
    return good && queue->list.count <= inbox.quota &&
           left_members[client].list == ( queue->is_disconnected ? LEFT : NO_LIST );
}

static uint8_t event_stamp( uint32_t at )
{
    return event_members[BUFFERS + at].stamp;
}

/*  Of one client: its unread events are in the list, CONNECTED before DISCONNECTED and the older session's before the
    newer one's. The current session has not ended. */
static int are_events( uint32_t client )
{
    uint32_t base = client * NC_EVENTS, now = base + queues[client].first_event,
             other = base + 2 - queues[client].first_event;
    uint32_t older = queues[client].is_open ? other : now, newer = queues[client].is_open ? now : other;
    int good = !queues[client].is_open || !unread[now + 1].session;
    for ( uint32_t at = base; at < base + NC_EVENTS; at++ )
        good &= event_members[BUFFERS + at].list == ( inbox.has_events && unread[at].session ? EVENTS : NO_LIST );
    for ( uint32_t at = older; at < older + 2; at++ )
        for ( uint32_t k = newer; k < newer + 2; k++ )
            good &= !unread[at].session || !unread[k].session || event_stamp( at ) < event_stamp( k );
    for ( uint32_t at = base; at < base + 4; at += 2 )
        good &= !unread[at].session || !unread[at + 1].session || event_stamp( at ) < event_stamp( at + 1 );
    return !inbox.has_events || good;
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
    uint32_t reserved = 0;
    int good = is_pool() && is_queue( 0 ) && is_queue( 1 );
    for ( uint32_t i = 0; i < CLIENTS; i++ )
        if ( queues[i].is_open && queues[i].list.count < inbox.share )
            reserved += inbox.share - queues[i].list.count;
    good = good && inbox.reserved == reserved;
    good = good && inbox.queued == count_of( NC_BUFFER_QUEUED );
    for ( uint32_t at = 0; at < EVENTS_MOST; at++ )
        good &= inbox.has_events || event_members[BUFFERS + at].list == NO_LIST;
    return good && are_events( 0 ) && are_events( 1 );
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
    inbox.unread = unread;
    inbox.client_count = CLIENTS;
    inbox.has_events = any_int() != 0;
    pool.free_count = any_u32();
    pool.held = any_u32();
    arrivals = any_u64();
    GIVEN( arrivals < UINT64_MAX );
}

static void any_queue( nc_queue_t * queue )
{
    queue->first_event = any_u8();
    queue->is_joined = any_u8();
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
    for ( int i = 0; i < EVENTS_MOST; i++ ) {
        nc_event_t event = { any_u64(), any_u64(), any_int() };
        unread[i] = event;
    }
}

static void any_inbox( void )
{
    place_inbox();
    any_cells();
    any_queue( &queues[0] );
    any_queue( &queues[1] );
    any_members( queue_members, BUFFERS );
    any_members( event_members, BUFFERS + EVENTS_MOST );
    any_members( left_members, CLIENTS );
    show_lists();
    inbox.quota = any_below( BUFFERS + 1 );
    inbox.share = any_below( BUFFERS + 1 );
    inbox.reserved = any_u32();
    inbox.queued = any_u32();
    GIVEN( is_box() );
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
    no_members( event_members, BUFFERS + EVENTS_MOST );
    no_members( left_members, CLIENTS );
    pool.free_count = BUFFERS;
    pool.held = 0;
    for ( uint32_t i = 0; i < BUFFERS; i++ ) {
        free_list[i] = i;
        states[i] = NC_BUFFER_FREE;
        headers[i].client_index = headers[i].bytes = 0;
    }
    nc_inbox_reset( &inbox, &pool, any_u32() );
    CLAIM( is_empty( &queues[0].list ) && is_empty( &queues[1].list ) );
    CLAIM( is_empty( &inbox.disconnected ) && is_empty( &inbox.events ) );
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
    memset( &event, 0, sizeof( event ) );
    any_inbox();
    uint32_t count = inbox.events.count, probe = any_below( BUFFERS );
    CLAIM( nc_inbox_next_event( &inbox, &event ) == ( count > 0 ) );
    CLAIM( is_box() && inbox.events.count == count - ( count > 0 ) );
    CLAIM( count == 0 || ( event.client_index >= 0 && event.client_index < CLIENTS ) );
    if ( count && event.type == NETCODE_EVENT_PAYLOAD && states[probe] == NC_BUFFER_QUEUED )
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

/*  A session begins in a slot that is free, and whose events before the last session's are read: without events nothing of
    before is in its queue; with them, its event is the last one. Each payload of the others stays. In cases, because a
    solver is done with each far sooner than with all: whose slot. */
static void claim_open( uint32_t client )
{
    any_inbox();
    uint32_t buffer = any_below( BUFFERS ), state = states[buffer], owner = headers[buffer].client_index;
    uint64_t session = any_u64();
    GIVEN( session && !queues[client].is_open && nc_inbox_can_open( &inbox, client ) );
    nc_inbox_open( &inbox, client, session, any_u64() );
    CLAIM( is_box() && queues[client].is_open && ( inbox.has_events || queues[client].list.count == 0 ) );
    uint32_t at = client * NC_EVENTS + queues[client].first_event;
    CLAIM( !inbox.has_events || ( inbox.events.tail == BUFFERS + at && unread[at].session == session ) );
    int goes = state == NC_BUFFER_QUEUED && owner == client && !inbox.has_events;
    CLAIM( states[buffer] == ( goes ? (uint32_t) NC_BUFFER_FREE : state ) );
}

/* A session ends: what it sent can be read yet, before its event. */
static void claim_close( uint32_t client )
{
    any_inbox();
    uint32_t buffer = any_below( BUFFERS ), state = states[buffer],
             at = client * NC_EVENTS + queues[client].first_event + 1;
    uint64_t session = any_u64();
    int reason = any_int();
    GIVEN( session && queues[client].is_open );
    nc_inbox_close( &inbox, client, session, any_u64(), reason );
    CLAIM( is_box() && !queues[client].is_open && states[buffer] == state );
    CLAIM( !inbox.has_events ||
           ( inbox.events.tail == BUFFERS + at && unread[at].session == session && unread[at].reason == reason &&
             !unread[client * NC_EVENTS + NC_EVENT_MOVED].session ) );
}

void prove_inbox_open_0( void )
{
    claim_open( 0 );
}

void prove_inbox_open_1( void )
{
    claim_open( 1 );
}

void prove_inbox_close_0( void )
{
    claim_close( 0 );
}

void prove_inbox_close_1( void )
{
    claim_close( 1 );
}
