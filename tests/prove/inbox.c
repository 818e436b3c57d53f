/*  Proofs of room 8's pool and inbox, with two clients, three buffers of 32 bytes (small.edit) and four notes: every sequence of so
    many operations, whoever they are about. Run: tests/prove/run.sh inbox */

#define PROVE_SMALL
#include "prove.h"

enum { CLIENTS = 2, BUFFERS = 3, NOTES = 4, QUOTA = 2, BYTES = 8, STEPS = 3 };

typedef struct {
    nc_buffer_t header;
    uint8_t pad[NC_BUFFER_HEADER_BYTES - sizeof( nc_buffer_t )];
    uint8_t data[NC_BUFFER_STRIDE - NC_BUFFER_HEADER_BYTES];
} cell_t;

typedef struct {
    nc_inbox_t inbox;
    nc_pool_t pool;
    cell_t cells[BUFFERS];
    uint32_t free_list[BUFFERS];
    nc_queue_t queues[CLIENTS];
    nc_link_t queue_links[BUFFERS];
    nc_link_t left_links[CLIENTS];
    nc_link_t event_links[BUFFERS + NOTES];
    nc_note_t notes[NOTES];
    uint32_t free_notes[NOTES];
    nc_link_t ended_links[NOTES];
    uint64_t session;
    uint64_t sequence;            /* of the payload that came last, of all clients */
    uint64_t read_up_to[CLIENTS]; /* the sequence that was read last */
} box_t;

static void make_pool( box_t * box )
{
    memset( &box->pool, 0, sizeof( box->pool ) );
    box->pool.buffers = (uint8_t *) box->cells;
    box->pool.free_list = box->free_list;
    box->pool.count = box->pool.free_count = BUFFERS;
    for ( uint32_t i = 0; i < BUFFERS; i++ )
        box->free_list[i] = BUFFERS - 1 - i;
}

static void make_box( box_t * box )
{
    make_pool( box );
    memset( &box->inbox, 0, sizeof( box->inbox ) );
    box->inbox.queues = box->queues;
    box->inbox.queue_links = box->queue_links;
    box->inbox.left_links = box->left_links;
    box->inbox.event_links = box->event_links;
    box->inbox.notes = box->notes;
    box->inbox.free_notes = box->free_notes;
    box->inbox.ended_links = box->ended_links;
    box->inbox.client_count = CLIENTS;
    box->inbox.note_count = NOTES;
    box->inbox.events_are_taken = any_int() != 0;
    box->session = box->sequence = 0;
    nc_inbox_reset( &box->inbox, &box->pool, QUOTA );
    for ( int i = 0; i < CLIENTS; i++ )
        box->read_up_to[i] = 0;
}

/* What the inbox says of itself is true. Room 8 */
static void claim_box( const box_t * box )
{
    const nc_inbox_t * inbox = &box->inbox;
    uint32_t reserved = 0, in_queues = inbox->orphans.count, left = 0;
    for ( int i = 0; i < CLIENTS; i++ ) {
        const nc_queue_t * queue = &box->queues[i];
        uint32_t count = queue->list.count;
        CLAIM( count <= QUOTA && queue->is_left == ( !queue->is_open && count > 0 ) );
        reserved += queue->is_open && count < inbox->share ? inbox->share - count : 0;
        in_queues += count;
        left += queue->is_left;
    }
    CLAIM( inbox->reserved == reserved && inbox->left.count == left && inbox->queued == in_queues );
    CLAIM( inbox->events.count == in_queues + NOTES - inbox->free_note_count );
    CLAIM( box->pool.free_count + in_queues + box->pool.held == BUFFERS );
}

/* The caller has read a payload and gives it back, or keeps it. */
static void read_payload( box_t * box, uint32_t client, uint64_t sequence, const uint8_t * data )
{
    uint32_t index = nc_pool_find( &box->pool, data );
    CLAIM( index < BUFFERS && nc_pool_buffer( &box->pool, index )->state == NC_BUFFER_HELD );
    CLAIM( sequence > box->read_up_to[client] && sequence <= box->sequence );
    box->read_up_to[client] = sequence;
    if ( any_int() )
        return;
    box->pool.held--;
    nc_pool_give( &box->pool, index );
}

static void step_queue( box_t * box, uint32_t client )
{
    uint8_t data[BYTES];
    nc_buffer_t what = { box->session,          0, box->sequence + 1, client, NC_BUFFER_FREE, any_below( 10 ),
                         any_below( BYTES + 1 ) };
    if ( !box->queues[client].is_open )
        return;
    if ( nc_inbox_copy( &box->inbox, &what, data ) == NETCODE_DROP_NONE )
        box->sequence++;
}

static void step_receive( box_t * box, uint32_t client )
{
    int bytes = -1;
    uint64_t sequence = 0;
    const uint8_t * data = nc_inbox_receive( &box->inbox, client, &bytes, &sequence );
    CLAIM( !data || ( bytes >= 0 && bytes <= BYTES ) );
    if ( data )
        read_payload( box, client, sequence, data );
}

static void step_event( box_t * box )
{
    struct netcode_event_t event;
    uint32_t count = box->inbox.events.count;
    CLAIM( nc_inbox_next_event( &box->inbox, &event ) == ( count > 0 ) );
    CLAIM( count == 0 || ( event.client_index >= 0 && event.client_index < CLIENTS ) );
    if ( count && event.type == NETCODE_EVENT_PAYLOAD )
        read_payload( box, (uint32_t) event.client_index, event.sequence, event.data );
}

/* A slot opens, or what was open closes. */
static void step_session( box_t * box, uint32_t client )
{
    if ( box->queues[client].is_open )
        nc_inbox_close( &box->inbox, client, box->session, 0, 0 );
    else
        nc_inbox_open( &box->inbox, client, ++box->session, 0 );
}

void prove_inbox( void )
{
    box_t box;
    make_box( &box );
    for ( int i = 0; i < STEPS; i++ ) {
        uint32_t client = any_below( CLIENTS );
        switch ( any_int() ) {
        case 0: step_queue( &box, client ); break;
        case 1: step_receive( &box, client ); break;
        case 2: step_event( &box ); break;
        default: step_session( &box, client );
        }
        claim_box( &box );
    }
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
    nc_pool_give( &box.pool, taken[back] );
    CLAIM( nc_pool_take( &box.pool ) == taken[back] );
}
