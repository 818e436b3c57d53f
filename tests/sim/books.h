/*  The books of every object balance: what the library counts about itself adds up after each call. */

#ifndef SIM_BOOKS_H
#define SIM_BOOKS_H

#include "model.h"

#define SIM_BOOK( condition ) SIM_CHECK( invariants, condition, "not: %s", #condition )

static void sim_check_inbox( const nc_inbox_t * inbox, uint32_t batch )
{
    uint32_t reserved = 0, queued = 0, unread = 0, left = 0, joined = 0;
    for ( uint32_t i = 0; i < inbox->client_count; i++ ) {
        const nc_queue_t * queue = &inbox->queues[i];
        if ( queue->is_open && queue->list.count < inbox->share )
            reserved += inbox->share - queue->list.count;
        queued += queue->list.count;
        joined += queue->is_joined ? queue->list.count : 0; /* messages read them: no events */
        left += !queue->is_open && queue->list.count > 0;
    }
    SIM_BOOK( inbox->reserved == reserved );
    SIM_BOOK( inbox->queued == queued );
    SIM_BOOK( inbox->disconnected.count == left );
    for ( uint32_t i = 0; i < inbox->client_count * NC_EVENTS; i++ )
        unread += inbox->unread[i].session != 0;
    SIM_BOOK( inbox->events.count == inbox->queued - joined + unread );
    SIM_BOOK( inbox->pool->count == inbox->pool->free_count + inbox->queued + inbox->pool->held + batch );
}

static uint32_t sim_table_count( const nc_table_t * table )
{
    uint32_t count = 0;
    for ( uint32_t head = 0; head <= table->mask; head++ )
        for ( uint32_t at = table->heads[head]; at != UINT32_MAX && count < 100000; at = table->entries[at].next )
            count++;
    return count;
}

/* Every timer that is set is in one list. */
static void sim_check_wheel( const nc_wheel_t * wheel )
{
    uint32_t set = 0, listed = 0;
    for ( uint32_t i = 0; i < wheel->capacity; i++ )
        set += wheel->list_of[i] != NC_WHEEL_LISTS;
    for ( uint32_t i = 0; i < NC_WHEEL_LISTS; i++ )
        listed += wheel->lists[i].count;
    SIM_BOOK( listed == set );
}

static void sim_check_slot( const struct netcode_server_t * s, uint32_t index )
{
    const nc_server_memory_t * memory = &s->memory;
    const nc_slot_t * slot = &memory->slot[index];
    int is_taken = slot->state != NC_SLOT_FREE;
    int is_free = (int) ( memory->free_slots.words[index / 64] >> ( index % 64 ) & 1 );
    SIM_BOOK( slot->state != NC_SLOT_CLOSING );
    SIM_BOOK( s->running || !is_taken );
    SIM_BOOK( memory->inbox.queues[index].is_open == is_taken );
    SIM_BOOK( is_free == ( !is_taken && nc_inbox_can_open( &memory->inbox, index ) ) );
    SIM_BOOK( ( memory->wheel.list_of[index] != NC_WHEEL_LISTS ) == is_taken );
    SIM_BOOK( sodium_is_zero( slot->server_to_client_key, NETCODE_KEY_BYTES ) == !is_taken );
    SIM_BOOK( sodium_is_zero( slot->client_to_server_key, NETCODE_KEY_BYTES ) == !is_taken );
    if ( !is_taken )
        return;
    SIM_BOOK( nc_server_slot_of_id( s, slot->client_id, nc_handshake_id_hash( &s->handshakes, slot->client_id ) ) ==
              index );
    SIM_BOOK( slot->sequence >> 63 == 0 );
    SIM_BOOK( s->config.roaming || slot->address.type != NETCODE_ADDRESS_NONE );
    if ( slot->address.type == NETCODE_ADDRESS_NONE )
        return;
    SIM_BOOK( nc_server_slot_at( s, &slot->address, nc_handshake_address_hash( &s->handshakes, &slot->address ) ) ==
              index );
}

/* Only a slot that roams is filed by its sequence, under a number that it had; its candidates are other addresses. */
static void sim_check_paths( const struct netcode_server_t * s, uint32_t index )
{
    static const nc_paths_t none;
    const nc_slot_t * slot = &s->memory.slot[index];
    const nc_paths_t * paths = &s->memory.paths[index];
    const nc_table_t * table = &s->memory.slot_by_sequence;
    uint32_t at = paths->indexed_as ? nc_table_find( table, paths->indexed_as ) : index;
    SIM_BOOK( slot->state != NC_SLOT_FREE || memcmp( paths, &none, sizeof( none ) ) == 0 );
    SIM_BOOK( !paths->indexed_as || ( slot->confirmed && slot->replay.newest >> 20 ) );
    SIM_BOOK( slot->replay.newest >> 48 || paths->indexed_as <= slot->replay.newest >> 16 );
    while ( at != index && at != UINT32_MAX )
        at = nc_table_find_next( table, at );
    SIM_BOOK( at == index );
    for ( int i = 0; i < NC_PATH_CANDIDATES; i++ ) {
        const nc_candidate_t * it = &paths->candidates[i];
        SIM_BOOK( it->credit >= 0 && it->credit <= NC_PATH_PROBES * NC_KEEP_ALIVE_BYTES );
        SIM_BOOK( it->address.type == NETCODE_ADDRESS_NONE || !nc_address_same( &it->address, &slot->address ) );
    }
}

static void sim_check_memory( const struct netcode_server_t * s )
{
    const nc_server_memory_t * memory = &s->memory;
    uint32_t taken = 0, placed = 0, filed = 0, walked = 0, used = s->handshakes.in_progress.count, timers = 0;
    for ( uint32_t i = 0; i < memory->slot_count; i++ ) {
        sim_check_slot( s, i );
        taken += memory->slot[i].state != NC_SLOT_FREE;
        placed += memory->slot[i].address.type != NETCODE_ADDRESS_NONE;
        if ( s->config.roaming ) {
            sim_check_paths( s, i );
            filed += memory->paths[i].indexed_as != 0;
        }
    }
    SIM_BOOK( s->active.count == taken );
    SIM_BOOK( sim_table_count( &memory->slot_by_id ) == taken );
    SIM_BOOK( sim_table_count( &memory->slot_by_address ) == placed );
    SIM_BOOK( !s->config.roaming || sim_table_count( &memory->slot_by_sequence ) == filed );
    SIM_BOOK( used + s->handshakes.unused.count == s->handshakes.capacity );
    SIM_BOOK( s->running || used == 0 );
    for ( uint32_t i = 0; i < s->handshakes.capacity; i++ )
        timers += memory->wheel.list_of[memory->slot_count + i] != NC_WHEEL_LISTS;
    for ( uint32_t i = s->handshakes.in_progress.head; i != UINT32_MAX && walked <= used;
          i = s->handshakes.links[i].next ) {
        SIM_BOOK( !sodium_is_zero( s->handshakes.pending[i].server_to_client_key, NETCODE_KEY_BYTES ) );
        walked++;
    }
    SIM_BOOK( timers == used );
    SIM_BOOK( walked == used );
    SIM_BOOK( sim_table_count( &s->handshakes.by_address ) == used );
    SIM_BOOK( sim_table_count( &s->handshakes.by_tag ) == used );
    SIM_BOOK( sim_table_count( &s->handshakes.by_id ) == used );
}

/*  A payload that finds no room was accepted before it was dropped, unless a server has seen before that its client's queue is full; everything else
    is one or the other. */
static void sim_check_counters( const nc_counters_t * counters )
{
    uint64_t sum = 0, full = counters->dropped[NETCODE_DROP_QUEUE_FULL];
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        sum += counters->dropped[i];
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        sum += counters->packets_received[i];
    sum -= counters->dropped[NETCODE_DROP_POOL_EMPTY];
    SIM_CHECK( counters, sum >= counters->datagrams_received && sum - full <= counters->datagrams_received,
               "%" PRIu64 " datagrams were received, %" PRIu64 " counted", counters->datagrams_received, sum );
}

static void sim_check_server_books( const struct netcode_server_t * s )
{
    uint64_t left = 0;
    if ( !s->memory.block )
        return;
    for ( int i = 0; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        left += s->stats.disconnects[i];
    sim_check_inbox( &s->memory.inbox, NC_RECEIVE_BATCH );
    sim_check_wheel( &s->memory.wheel );
    sim_check_memory( s );
    sim_check_counters( &s->base.counters );
    SIM_BOOK( s->stats.connects - left == s->active.count );
    SIM_BOOK( s->base.depth == 0 && !s->base.updating && !s->stopping && s->deferred == NC_DEFERRED_NOTHING &&
              !s->walks );
    SIM_BOOK( !s->base.outbox.flushing && s->base.outbox.depth == 0 && s->base.outbox.sent == 0 );
}

static void sim_check_client_books( const struct netcode_client_t * c )
{
    int is_connected = c->state == NETCODE_CLIENT_STATE_CONNECTED;
    sim_check_inbox( &c->inbox, NC_CLIENT_BATCH );
    sim_check_counters( &c->base.counters );
    SIM_BOOK( c->inbox.queues[0].is_open == is_connected );
    SIM_BOOK( c->connects - c->disconnects == (uint64_t) is_connected );
    SIM_BOOK( sodium_is_zero( c->token.route.client_to_server_key, NETCODE_KEY_BYTES ) == ( c->state <= 0 ) );
    SIM_BOOK( sodium_is_zero( c->token.route.server_to_client_key, NETCODE_KEY_BYTES ) == ( c->state <= 0 ) );
    SIM_BOOK( c->base.depth == 0 && !c->base.updating && !c->disconnecting );
    SIM_BOOK( !c->base.outbox.flushing && c->base.outbox.depth == 0 && c->base.outbox.sent == 0 );
}

/* ---- silence ends everything: the longest that decision 3 and 6 allow, a backlog included ---- */

static double sim_patience( double timeout, double most )
{
    return 2.0 * ( timeout <= 0.0 ? 10.0 : timeout < most ? timeout : most ) + 0.01;
}

static void sim_check_ends( const struct netcode_server_t * s )
{
    const nc_server_memory_t * memory = &s->memory;
    for ( uint32_t i = s->active.head; i != UINT32_MAX; i = memory->active_links[i].next ) {
        const nc_slot_t * slot = &memory->slot[i];
        double silent = s->base.clock.now - ( slot->confirmed ? slot->receive_time : slot->connect_time );
        SIM_CHECK( slot_ends,
                   ( slot->confirmed && slot->timeout_seconds <= 0 ) ||
                       silent < sim_patience( slot->timeout_seconds, slot->confirmed ? 1e9 : 60.0 ),
                   "slot %u has been silent for %g s", i, silent );
    }
    for ( uint32_t i = s->handshakes.in_progress.head; i != UINT32_MAX; i = s->handshakes.links[i].next ) {
        const nc_pending_t * pending = &s->handshakes.pending[i];
        double waits = s->base.clock.now - pending->answer_time;
        SIM_CHECK( pending_ends, waits < sim_patience( pending->timeout_seconds, 10.0 ),
                   "a handshake has waited for %g s", waits );
    }
}

/* ---- what one update may cost. examples/docs/LIMITS.md ---- */

static void sim_check_server_work( const struct sim_server_t * s )
{
    int budget = nc_server_part( s->server, NC_SERVER_BUDGET, NC_SERVER_BUDGET_PER_SLOT );
    int pending = (int) s->server->handshakes.in_progress.count;
    int tokens =
        nc_server_part( s->server, NC_SERVER_TOKENS, 1 ) / NC_COST_REQUEST + s->key_count * ( 1 + 4 * pending );
    /* responses pay for being opened, and what is inside them is opened then; the others are of the shares and what is spare */
    int opens =
        2 * budget / NC_COST_OPEN + nc_server_part( s->server, NC_SERVER_SPARE_MOST + NC_SERVER_SHARE * SIM_SLOTS, 4 );
    if ( SIM_LEDGER_WORKS )
        SIM_CHECK( update_opens, sim_ledger.token_opens <= (uint64_t) tokens && sim_ledger.opens <= (uint64_t) opens,
                   "server %d opened %" PRIu64 " tokens and %" PRIu64 " packets", s->port.index, sim_ledger.token_opens,
                   sim_ledger.opens );
    SIM_CHECK( update_datagrams, s->port.taken <= budget, "server %d took %d datagrams, its budget is %d",
               s->port.index, s->port.taken, budget );
    SIM_CHECK( update_seals, sim_ledger.seals <= (uint64_t) ( 13 * s->port.taken + 2 * SIM_SLOTS ),
               "server %d sealed %" PRIu64 " messages after %d datagrams", s->port.index, sim_ledger.seals,
               s->port.taken );
}

static void sim_check_client_work( const struct sim_client_t * c )
{
    int budget = c->client->config.update_budget;
    if ( SIM_LEDGER_WORKS )
        SIM_CHECK( update_opens, 4 * sim_ledger.opens <= (uint64_t) ( budget + 3 ) && sim_ledger.token_opens == 0,
                   "client %d opened %" PRIu64 " packets, its budget is %d", c->port.index, sim_ledger.opens, budget );
    SIM_CHECK( update_datagrams, c->port.taken <= budget, "client %d took %d datagrams, its budget is %d",
               c->port.index, c->port.taken, budget );
    SIM_CHECK( update_seals, sim_ledger.seals <= 1 + NC_PROBE_ANSWER_BURST,
               "client %d sealed %" PRIu64 " messages in one update", c->port.index, sim_ledger.seals );
}

#endif
