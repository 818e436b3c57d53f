/*  Story: storms. Every function is called at random from every callback; and every datagram that was ever seen comes
    back, changed or not, from anywhere. Whatever happens, what the library counts about itself adds up after each
    call. */

/* ---- what holds after every call. Inside a callback an operation is in progress: `nested` asks for less ---- */

static void storm_check_inbox( const nc_inbox_t * inbox, uint32_t batch )
{
    uint32_t i, reserved = 0, queued = 0, unread = 0, left = 0;
    for ( i = 0; i < inbox->client_count; i++ ) {
        const nc_queue_t * queue = &inbox->queues[i];
        if ( queue->is_open && queue->list.count < inbox->share )
            reserved += inbox->share - queue->list.count;
        queued += queue->list.count;
        left += !queue->is_open && queue->list.count > 0;
    }
    CHECK_EQ( inbox->reserved, reserved );
    CHECK_EQ( inbox->queued, queued );
    CHECK_EQ( inbox->disconnected.count, left );
    for ( i = 0; inbox->has_events && i < inbox->client_count * NC_EVENTS; i++ )
        unread += inbox->unread[i].session != 0;
    CHECK_EQ( inbox->events.count, inbox->has_events ? inbox->queued + unread : 0 );
    CHECK_EQ( inbox->pool->count, inbox->pool->free_count + inbox->queued + inbox->pool->held + batch );
}

static uint32_t storm_table_count( const nc_table_t * table )
{
    uint32_t head, at, count = 0;
    for ( head = 0; head <= table->mask; head++ )
        for ( at = table->heads[head]; at != UINT32_MAX && count < 100000; at = table->entries[at].next )
            count++;
    return count;
}

/* Every timer that is set is in one list. */
static void storm_check_wheel( const nc_wheel_t * wheel )
{
    uint32_t i, set = 0, listed = 0;
    for ( i = 0; i < wheel->capacity; i++ )
        set += wheel->list_of[i] != NC_WHEEL_LISTS;
    for ( i = 0; i < NC_WHEEL_LISTS; i++ )
        listed += wheel->lists[i].count;
    CHECK_EQ( listed, set );
}

static void storm_check_slot( const struct netcode_server_t * s, uint32_t index, int nested )
{
    const nc_server_memory_t * memory = &s->memory;
    const nc_slot_t * slot = &memory->slot[index];
    int is_taken = slot->state != NC_SLOT_FREE, is_remote = is_taken && !slot->loopback;
    int has_timer = memory->wheel.list_of[index] != NC_WHEEL_LISTS;
    CHECK( nested || slot->state != NC_SLOT_CLOSING );
    CHECK( s->running || !is_taken );
    CHECK_EQ( memory->inbox.queues[index].is_open, is_taken );
    CHECK_EQ( memory->free_slots.words[index / 64] >> ( index % 64 ) & 1,
              !is_taken && nc_inbox_can_open( &memory->inbox, index ) );
    CHECK( has_timer ? is_remote : nested || !is_remote ); /* the one that expires is off the wheel meanwhile */
    CHECK_EQ( sodium_is_zero( slot->server_to_client_key, NETCODE_KEY_BYTES ), !is_remote );
    CHECK_EQ( sodium_is_zero( slot->client_to_server_key, NETCODE_KEY_BYTES ), !is_remote );
    if ( slot->state != NC_SLOT_CONNECTED )
        return;
    CHECK( nc_server_slot_of_id( s, slot->client_id, nc_handshake_id_hash( &s->handshakes, slot->client_id ) ) ==
           index );
    if ( slot->address.type != NETCODE_ADDRESS_NONE )
        CHECK_EQ( nc_server_slot_at( s, &slot->address, nc_handshake_address_hash( &s->handshakes, &slot->address ) ),
                  index );
}

static void storm_check_slots( const struct netcode_server_t * s, int nested )
{
    const nc_server_memory_t * memory = &s->memory;
    uint32_t i, taken = 0, remote = 0, walked = 0;
    for ( i = 0; i < memory->slot_count; i++ ) {
        const nc_slot_t * slot = &memory->slot[i];
        int is_remote = slot->state != NC_SLOT_FREE && !slot->loopback;
        storm_check_slot( s, i, nested );
        taken += slot->state != NC_SLOT_FREE;
        remote += is_remote && slot->address.type != NETCODE_ADDRESS_NONE; /* none: another client has moved there */
        CHECK( s->config.roaming || !is_remote || slot->address.type != NETCODE_ADDRESS_NONE );
    }
    for ( i = s->active.head; i != UINT32_MAX && walked <= taken; i = memory->active_links[i].next ) {
        CHECK_NE( memory->slot[i].state, NC_SLOT_FREE );
        walked++;
    }
    CHECK_EQ( s->active.count, taken );
    CHECK_EQ( walked, taken );
    CHECK_EQ( storm_table_count( &memory->slot_by_id ), taken );
    CHECK_EQ( storm_table_count( &memory->slot_by_address ), remote );
}

static void storm_check_pending( const struct netcode_server_t * s )
{
    const nc_server_memory_t * memory = &s->memory;
    uint32_t i, used = s->handshakes.in_progress.count, timers = 0, walked = 0;
    CHECK_EQ( used + s->handshakes.unused.count, s->handshakes.capacity );
    CHECK( s->running || used == 0 );
    for ( i = 0; i < s->handshakes.capacity; i++ )
        timers += memory->wheel.list_of[memory->slot_count + i] != NC_WHEEL_LISTS;
    for ( i = s->handshakes.in_progress.head; i != UINT32_MAX && walked <= used; i = s->handshakes.links[i].next ) {
        CHECK_NE( memory->wheel.list_of[memory->slot_count + i], NC_WHEEL_LISTS );
        CHECK( !sodium_is_zero( s->handshakes.pending[i].server_to_client_key, NETCODE_KEY_BYTES ) );
        walked++;
    }
    CHECK_EQ( timers, used );
    CHECK_EQ( walked, used );
    CHECK_EQ( storm_table_count( &s->handshakes.by_address ), used );
    CHECK_EQ( storm_table_count( &s->handshakes.by_tag ), used );
    CHECK_EQ( storm_table_count( &s->handshakes.by_id ), used );
}

static void storm_check_server( const struct netcode_server_t * s, int nested )
{
    uint64_t left = 0;
    int i;
    if ( !s || !s->memory.block )
        return;
    for ( i = 0; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        left += s->stats.disconnects[i];
    storm_check_inbox( &s->memory.inbox, NC_RECEIVE_BATCH );
    storm_check_wheel( &s->memory.wheel );
    storm_check_slots( s, nested );
    storm_check_pending( s );
    if ( nested )
        return;
    CHECK_EQ( s->stats.connects - left, s->active.count );
    CHECK( s->base.depth == 0 && !s->base.updating && !s->stopping && s->deferred == NC_DEFERRED_NOTHING && !s->walks );
    CHECK( !s->base.outbox.flushing && s->base.outbox.depth == 0 && s->base.outbox.sent == 0 );
}

static void storm_check_client( const struct netcode_client_t * c, int nested )
{
    int is_connected;
    if ( !c )
        return;
    is_connected = c->state == NETCODE_CLIENT_STATE_CONNECTED;
    storm_check_inbox( &c->inbox, NC_CLIENT_BATCH );
    CHECK_EQ( c->inbox.queues[0].is_open, is_connected );
    CHECK_EQ( c->connects - c->disconnects, is_connected );
    if ( nested )
        return;
    CHECK_EQ( sodium_is_zero( c->token.route.client_to_server_key, NETCODE_KEY_BYTES ), c->state <= 0 || c->loopback );
    CHECK_EQ( sodium_is_zero( c->token.route.server_to_client_key, NETCODE_KEY_BYTES ), c->state <= 0 || c->loopback );
    CHECK( c->base.depth == 0 && !c->base.updating && !c->disconnecting );
    CHECK( !c->base.outbox.flushing && c->base.outbox.depth == 0 && c->base.outbox.sent == 0 );
}

/* ---- events, as they are read: connected, payloads, disconnected, one session after the other in each slot ---- */

enum { STORM_CLIENTS = 4, STORM_SLOTS = 8 };

struct storm_reader_t {
    uint64_t open[STORM_SLOTS]; /* the session whose CONNECTED was read last; 0: and its DISCONNECTED too */
    uint64_t last;
};

static void storm_read( struct storm_reader_t * reader, const struct netcode_event_t * event, int slot )
{
    uint64_t * open = &reader->open[slot];
    switch ( event->type ) {
    case NETCODE_EVENT_CONNECTED:
        CHECK( *open == 0 );
        CHECK( event->session > reader->last );
        *open = reader->last = event->session;
        break;
    case NETCODE_EVENT_PAYLOAD:
        CHECK( *open == event->session );
        CHECK( event->bytes >= 1 && event->bytes <= NETCODE_MAX_PACKET_SIZE );
        break;
    case NETCODE_EVENT_MOVED: CHECK( *open == event->session ); break;
    default:
        CHECK_EQ( event->type, NETCODE_EVENT_DISCONNECTED );
        CHECK( *open == event->session || *open == 0 ); /* an attempt of a client that failed */
        *open = 0;
    }
}

/* ---- every function, from every callback ---- */

enum { STORM_TOKENS = 16, STORM_HELD = 64, STORM_SEEN = 32, STORM_DEPTH = 4, STORM_ROUNDS = 6, STORM_STEPS = 900 };
enum {
    STORM_IN_CHANGE,
    STORM_IN_DROP,
    STORM_IN_LOOPBACK,
    STORM_IN_LOG,
    STORM_IN_UNIX,
    STORM_IN_ADMIT,
    STORM_IN_STRAY,
    STORM_IN_SEND,
    STORM_IN_RECEIVE
};
enum { STORM_PLACES = STORM_IN_RECEIVE + 1, STORM_CLIENT_CALLS = 22, STORM_SERVER_CALLS = 30 };

struct storm_packet_t {
    uint8_t * data;
    int bytes;
};

struct storm_seen_t {
    struct netcode_address_t from;
    struct netcode_address_t to;
    double time; /* when it is let through, where it is held back */
    int bytes;
    uint8_t data[DATAGRAM_BYTES];
};

static struct {
    struct world_t * w;
    int depth;                 /* of callbacks in callbacks */
    int chaos;                 /* so many of a hundred callbacks call back */
    int destroy;               /* servers too */
    struct allocator_t memory; /* the server's own: it is asked only where there is a new memory */
    int memory_allocations;
    int in_slot[STORM_SLOTS]; /* by what the callback reported */
    int is_connected[STORM_CLIENTS];
    int connects;
    int disconnects;
    struct storm_reader_t server_reader;
    struct storm_reader_t client_readers[STORM_CLIENTS];
    uint8_t tokens[STORM_TOKENS][NETCODE_CONNECT_TOKEN_BYTES];
    struct storm_packet_t held[STORM_HELD];
    int held_count;
    struct storm_seen_t seen[STORM_SEEN];
    int seen_count;
    const char * of; /* the last call: whose, and its number */
    int number;
    int64_t calls[STORM_PLACES];
} storm;

static void storm_check( void )
{
    int i, nested = storm.depth > 0;
    const struct netcode_server_t * s = storm.w->servers[0];
    storm_check_server( s, nested );
    for ( i = 0; i < STORM_CLIENTS; i++ ) {
        const struct netcode_client_t * c = storm.w->clients[i];
        storm_check_client( c, nested );
        if ( c && !nested )
            CHECK_EQ( storm.is_connected[i], c->state == NETCODE_CLIENT_STATE_CONNECTED );
    }
    if ( !s || nested )
        return;
    CHECK_EQ( storm.connects - storm.disconnects, s->running ? (int) s->active.count : 0 );
    for ( i = 0; i < STORM_SLOTS; i++ )
        CHECK_EQ( storm.in_slot[i],
                  s->running && i < (int) s->memory.slot_count && s->memory.slot[i].state != NC_SLOT_FREE );
}

/* All payloads here are payload_fill's. */
static void storm_check_payload( const uint8_t * data, int bytes )
{
    int i, wrong = 0;
    for ( i = 0; i < bytes; i++ )
        wrong += data[i] != (uint8_t) ( data[0] + i * 7 );
    for ( i = 0; i < 8; i++ )
        wrong += data[bytes + i] != 0;
    CHECK_EQ( wrong, 0 );
}

static void storm_free_one( struct netcode_server_t * s )
{
    int i;
    if ( !storm.held_count )
        return;
    i = test_random_below( storm.held_count );
    storm_check_payload( storm.held[i].data, storm.held[i].bytes );
    netcode_server_free_packet( s, storm.held[i].data );
    storm.held[i] = storm.held[--storm.held_count];
}

static void storm_hold( struct netcode_server_t * s, uint8_t * data, int bytes )
{
    if ( !data )
        return;
    storm_check_payload( data, bytes );
    if ( storm.held_count == STORM_HELD )
        storm_free_one( s );
    storm.held[storm.held_count].data = data;
    storm.held[storm.held_count++].bytes = bytes;
}

static int storm_next_event( struct netcode_server_t * s )
{
    struct netcode_event_t event;
    if ( !s->config.events )
        return 0;
    if ( storm.memory.allocations != storm.memory_allocations ) /* a new memory: what was not read yet was given up */
        memset( storm.server_reader.open, 0, sizeof( storm.server_reader.open ) );
    storm.memory_allocations = storm.memory.allocations;
    if ( !netcode_server_next_event( s, &event ) )
        return 0;
    storm_read( &storm.server_reader, &event, event.client_index );
    storm_hold( s, event.data, event.bytes );
    return 1;
}

static int storm_next_client_event( int client )
{
    struct netcode_client_t * c = storm.w->clients[client];
    struct netcode_event_t event;
    if ( !c->config.events || !netcode_client_next_event( c, &event ) )
        return 0;
    storm_read( &storm.client_readers[client], &event, 0 );
    if ( event.data ) {
        storm_check_payload( event.data, event.bytes );
        netcode_client_free_packet( c, event.data );
    }
    return 1;
}

/* What an adversary may hand to either side: junk, a request under a good token, something that was seen. */
static int storm_datagram( uint8_t * data, struct netcode_address_t * from )
{
    const struct storm_seen_t * seen;
    int i, bytes = 1 + test_random_below( DATAGRAM_BYTES );
    *from = storm.w->client_addresses[test_random_below( STORM_CLIENTS )];
    switch ( test_random_below( 3 ) ) {
    case 0:
        data[0] = 0;
        i = test_random_below( STORM_TOKENS );
        memcpy( data + 1, storm.tokens[i], 13 + 8 );
        memcpy( data + 22, storm.tokens[i] + 13 + 8 + 8, 8 + 24 + 1024 );
        from->port = (uint16_t) ( from->port + test_random_below( 4 ) );
        return REQUEST_BYTES;
    case 1:
        if ( !storm.seen_count )
            break;
        seen = &storm.seen[test_random_below( storm.seen_count )];
        *from = seen->from;
        memcpy( data, seen->data, (size_t) seen->bytes );
        return seen->bytes;
    }
    for ( i = 0; i < bytes; i++ )
        data[i] = (uint8_t) test_random();
    return bytes;
}

/* One payload, sometimes more than a batch holds. The network's own function may end the sender, or the receiver. */
static void storm_burst( struct netcode_server_t * s, int slot, int client, const uint8_t * data, int bytes )
{
    struct netcode_client_t * c = storm.w->clients[client];
    int count = test_random_below( 8 ) ? 1 : 80;
    while ( count-- > 0 && s && s == storm.w->servers[0] && slot < netcode_server_max_clients( s ) )
        netcode_server_send_packet( s, slot, data, bytes );
    while ( count-- > 0 && !s && c && c == storm.w->clients[client] )
        netcode_client_send_packet( c, data, bytes );
}

static void storm_call_client( int client )
{
    struct netcode_client_t * c = storm.w->clients[client];
    struct netcode_client_stats_t stats;
    struct netcode_client_report_t report;
    struct netcode_address_t from;
    uint8_t data[DATAGRAM_BYTES], *packet;
    int bytes = 1 + test_random_below( NETCODE_MAX_PACKET_SIZE );
    if ( !c )
        return;
    storm.of = "client";
    payload_fill( data, bytes, test_random_below( 256 ) );
    switch ( storm.number = test_random_below( STORM_CLIENT_CALLS ) ) {
    case 0:
        if ( test_random_below( 6 ) == 0 ) {
            netcode_client_destroy( c );
            storm.w->clients[client] = NULL;
        }
        break;
    case 1:
    case 2: netcode_client_connect( c, storm.tokens[test_random_below( STORM_TOKENS )] ); break;
    case 3: netcode_client_disconnect( c ); break;
    case 4: netcode_client_update( c, storm.w->time + test_random_below( 3 ) ); break;
    case 5:
    case 6: storm_burst( NULL, 0, client, data, bytes ); break;
    case 7:
        while ( !c->config.events && ( packet = netcode_client_receive_packet( c, &bytes, NULL ) ) != NULL ) {
            storm_check_payload( packet, bytes );
            netcode_client_free_packet( c, packet );
        }
        break;
    case 8:
    case 9: storm_next_client_event( client ); break;
    case 10: netcode_client_flush( c ); break;
    case 11: netcode_client_connect_loopback( c, 0, 1 ); break;
    case 12: netcode_client_disconnect_loopback( c ); break;
    case 13:
    case 14: netcode_client_process_loopback_packet( c, data, bytes, 1 ); break;
    case 15: netcode_client_wait( c, 1e-9 ); break;
    case 16: netcode_client_stats( c, &stats ); break;
    case 17: netcode_client_report( c, &report ); break;
    case 18:
        bytes = storm_datagram( data, &from );
        netcode_client_process_packet( c, &storm.w->server_addresses[0], data, bytes );
        break;
    case 19: (void) netcode_client_next_packet_sequence( c ); break;
    case 20: CHECK( netcode_client_server_address( c ) != NULL && netcode_client_get_port( c ) == 50000 ); break;
    default: CHECK_LE( netcode_client_index( c ), netcode_client_max_clients( c ) );
    }
}

/* What does not end anything. `slot` is one of its slots; there is none while it is stopped. */
static void storm_ask_server( struct netcode_server_t * s, int slot )
{
    struct netcode_server_stats_t stats;
    struct netcode_server_client_stats_t slot_stats;
    uint8_t data[DATAGRAM_BYTES], *packet;
    int bytes = 1 + test_random_below( NETCODE_MAX_PACKET_SIZE );
    payload_fill( data, bytes, test_random_below( 256 ) );
    switch ( storm.number ) {
    case 12:
    case 13: storm_burst( s, slot, 0, data, bytes ); break;
    case 14:
        netcode_server_send_packet_to_session( s, slot, netcode_server_client_session( s, slot ), data, bytes );
        break;
    case 15: netcode_server_broadcast( s, data, bytes, slot ); break;
    case 16:
    case 17:
        packet = s->config.events ? NULL : netcode_server_receive_packet( s, slot, &bytes, NULL );
        storm_hold( s, packet, bytes );
        break;
    case 18: storm_free_one( s ); break;
    case 19:
    case 20: netcode_server_process_loopback_packet( s, slot, data, bytes, 1 ); break;
    case 21: storm_next_event( s ); break;
    case 22: netcode_server_flush( s ); break;
    case 23: netcode_server_wait( s, 1e-9 ); break;
    case 24: netcode_server_stats( s, &stats ); break;
    case 25:
        netcode_server_client_stats( s, slot, &slot_stats );
        CHECK_EQ( slot_stats.session, netcode_server_client_session( s, slot ) );
        break;
    case 26: CHECK_EQ( !netcode_server_client_user_data( s, slot ), !netcode_server_client_address( s, slot ) ); break;
    case 27: (void) netcode_server_next_packet_sequence( s, slot ); break;
    case 28: CHECK( netcode_server_client_connected( s, slot ) || !netcode_server_client_id( s, slot ) ); break;
    default: (void) netcode_server_client_disconnect_reason( s, slot );
    }
}

static void storm_call_server( void )
{
    struct netcode_server_t * s = storm.w->servers[0];
    struct netcode_address_t from;
    uint8_t data[DATAGRAM_BYTES];
    int slots = s ? netcode_server_max_clients( s ) : 0, slot = slots ? test_random_below( slots ) : 0, bytes;
    if ( !s )
        return;
    storm.of = "server";
    switch ( storm.number = test_random_below( STORM_SERVER_CALLS ) ) {
    case 0:
        if ( storm.destroy && test_random_below( 40 ) == 0 ) {
            netcode_server_destroy( s );
            storm.w->servers[0] = NULL;
            storm.held_count = 0;
        }
        break;
    case 1:
        if ( test_random_below( 20 ) == 0 )
            netcode_server_stop( s );
        break;
    case 2:
        if ( test_random_below( 10 ) == 0 )
            netcode_server_start( s, test_random_below( 3 ) && slots ? slots : 1 + test_random_below( STORM_SLOTS ) );
        break;
    case 3: netcode_server_update( s, storm.w->time + test_random_below( 2 ) ); break;
    case 4: netcode_server_disconnect_client( s, slot ); break;
    case 5:
        if ( test_random_below( 4 ) == 0 )
            netcode_server_disconnect_all_clients( s );
        break;
    case 6:
    case 7:
        bytes = storm_datagram( data, &from );
        netcode_server_process_packet( s, &from, data, bytes );
        break;
    case 8:
    case 9:
        if ( slots )
            netcode_server_connect_loopback_client( s, slot, 1000 + (uint64_t) test_random_below( 5 ), NULL );
        break;
    case 10: netcode_server_disconnect_loopback_client( s, slot ); break;
    case 11: CHECK_EQ( netcode_server_set_private_keys( s, world_key, 1 ), NETCODE_OK ); break;
    default: storm_ask_server( s, slot );
    }
}

static void storm_call( void )
{
    if ( test_random_below( 2 ) )
        storm_call_server();
    else
        storm_call_client( test_random_below( STORM_CLIENTS ) );
    storm_check();
}

static void storm_call_back( int place )
{
    if ( storm.depth >= STORM_DEPTH || test_random_below( 100 ) >= storm.chaos || test_state.failures )
        return;
    storm.depth++;
    storm.calls[place]++;
    storm_call();
    storm.depth--;
}

static void storm_slot_change( void * context, int slot, int connected )
{
    world_change_callback( context, slot, connected );
    storm.in_slot[slot] += connected ? 1 : -1;
    CHECK_EQ( storm.in_slot[slot], connected );
    storm.connects += connected;
    storm.disconnects += !connected;
    storm_call_back( STORM_IN_CHANGE );
}

static void storm_state_change( void * context, int previous, int state )
{
    int client = ( (struct world_party_t *) context )->index;
    world_change_callback( context, previous, state );
    storm.is_connected[client] +=
        ( state == NETCODE_CLIENT_STATE_CONNECTED ) - ( previous == NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( storm.is_connected[client], state == NETCODE_CLIENT_STATE_CONNECTED );
    storm_call_back( STORM_IN_CHANGE );
}

static void storm_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    world_drop_callback( context, reason, from, bytes );
    storm_call_back( STORM_IN_DROP );
}

static void storm_loopback( void * context, int slot, const uint8_t * data, int bytes, uint64_t sequence )
{
    world_loopback_callback( context, slot, data, bytes, sequence );
    storm_call_back( STORM_IN_LOOPBACK );
}

static void storm_log( void * context, int level, const char * text )
{
    world_log_callback( context, level, text );
    storm_call_back( STORM_IN_LOG );
}

static uint64_t storm_unix( void * context )
{
    storm_call_back( STORM_IN_UNIX );
    return world_unix_callback( context );
}

static int storm_admit( void * context, uint64_t client_id, const uint8_t * tag, uint64_t expire )
{
    (void) context;
    (void) client_id;
    (void) tag;
    (void) expire;
    storm_call_back( STORM_IN_ADMIT );
    return test_random_below( 5 ) > 0;
}

static int storm_stray( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    (void) context;
    (void) from;
    CHECK( data != NULL && bytes > 0 );
    storm_call_back( STORM_IN_STRAY );
    return test_random_below( 2 );
}

static int storm_send( struct world_t * w, const struct world_datagram_t * d )
{
    int full = storm.seen_count == STORM_SEEN;
    struct storm_seen_t * seen = &storm.seen[full ? test_random_below( STORM_SEEN ) : storm.seen_count++];
    (void) w;
    seen->from = d->from;
    seen->to = d->to;
    seen->bytes = d->bytes;
    memcpy( seen->data, d->data, (size_t) d->bytes );
    storm_call_back( STORM_IN_SEND );
    return 0;
}

static void storm_receive( struct world_t * w, const struct netcode_address_t * who )
{
    (void) w;
    (void) who;
    storm_call_back( STORM_IN_RECEIVE );
}

static void storm_mint( void )
{
    int i;
    for ( i = 0; i < STORM_TOKENS; i++ ) {
        struct recipe_t r = recipe_for( storm.w, 1 + (uint64_t) ( i % 6 ) );
        if ( i % 5 == 0 )
            r.expire = FOREVER;
        if ( i % 4 == 0 )
            r.timeout = -1;
        mint( &r, storm.tokens[i] );
    }
}

static void storm_revive( void )
{
    struct world_t * w = storm.w;
    int i;
    for ( i = 0; i < STORM_CLIENTS; i++ )
        if ( !w->clients[i] ) {
            CHECK_EQ( storm.is_connected[i], 0 );
            memset( &storm.client_readers[i], 0, sizeof( storm.client_readers[i] ) );
            w->client_config.batch_sends = test_random_below( 2 );
            world_make_client( w, i );
        }
    if ( !w->servers[0] ) {
        CHECK_EQ( storm.connects, storm.disconnects );
        CHECK_EQ( storm.memory.live, 0 );
        memset( &storm.server_reader, 0, sizeof( storm.server_reader ) );
        world_make_server( w, 0 );
    }
    if ( !netcode_server_running( w->servers[0] ) && test_random_below( 5 ) == 0 )
        netcode_server_start( w->servers[0], 1 + test_random_below( STORM_SLOTS ) );
}

/* A NAT gives a client one of a few addresses, where another one may have been, or its first one. */
static void storm_move( int client )
{
    struct world_t * w = storm.w;
    struct netcode_address_t to;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint8_t data[40];
    int away = test_random_below( 3 ), place = away ? test_random_below( STORM_CLIENTS ) : client;
    snprintf( text, sizeof( text ), "10.%d.0.%d:50000", away ? 2 : 1, place + 1 );
    to = address_of( text );
    if ( w->clients[client] && !world_find_socket( w, &to ) ) {
        world_move( w, client, text, 0 );
        payload_fill( data, sizeof( data ), client );
        storm_burst( NULL, 0, client, data, sizeof( data ) );
    }
}

static void storm_step( void )
{
    struct world_t * w = storm.w;
    int i;
    w->time += test_random_below( 60 ) ? 0.02 : 3.0;
    netcode_network_simulator_update( w->net, w->time );
    storm.of = "an update";
    if ( w->servers[0] )
        netcode_server_update( w->servers[0], w->time );
    storm_check();
    for ( i = 0; i < STORM_CLIENTS; i++ ) {
        if ( w->clients[i] )
            netcode_client_update( w->clients[i], w->time );
        storm_check();
        if ( test_random_below( 10 ) == 0 )
            storm_move( i );
        if ( w->clients[i] && netcode_client_state( w->clients[i] ) <= 0 && test_random_below( 3 ) == 0 )
            netcode_client_connect( w->clients[i], storm.tokens[test_random_below( STORM_TOKENS )] );
        while ( w->clients[i] && storm_next_client_event( i ) )
            continue;
    }
    for ( i = 0; i < 3; i++ )
        storm_call();
    for ( i = 0; w->servers[0] && i < 2 + storm.number; i++ ) /* sometimes all of them */
        storm_next_event( w->servers[0] );
    storm_revive();
    storm_check();
}

/* The small numbers make everything run out: buffers, handshakes, records. */
static void storm_begin( int round )
{
    static const int pools[] = { 0, 16, 1, 1 };
    struct world_t * w = world_new( CLEAN );
    int i;
    memset( &storm, 0, sizeof( storm ) );
    storm.w = w;
    w->recording = 0;
    w->net->latency_milliseconds = 15.0f;
    w->net->jitter_milliseconds = 10.0f;
    w->net->packet_loss_percent = 2.0f;
    w->net->duplicate_packet_percent = 5.0f;
    w->server_config.connect_disconnect_callback = storm_slot_change;
    w->client_config.state_change_callback = storm_state_change;
    w->server_config.drop_callback = w->client_config.drop_callback = storm_drop;
    w->server_config.send_loopback_packet_callback = w->client_config.send_loopback_packet_callback = storm_loopback;
    w->server_config.log_callback = w->client_config.log_callback = storm_log;
    w->server_config.unix_time = storm_unix;
    w->server_config.events = w->client_config.events = test_random_below( 2 );
    w->server_config.admit_callback = storm_admit;
    w->server_config.allocator_context = &storm.memory;
    w->server_config.batch_sends = test_random_below( 2 );
    w->server_config.replace_existing_clients = test_random_below( 2 );
    w->server_config.sequence_base = test_random_below( 3 ) ? NETCODE_SEQUENCE_BASE_RANDOM : NETCODE_SEQUENCE_BASE_ZERO;
    w->server_config.packet_pool_buffers = pools[test_random_below( 4 )];
    w->server_config.roaming = round % 3 > 0;
    w->server_config.stray_callback = round % 2 ? storm_stray : NULL;
    w->server_config.pending_handshakes = 8;
    w->server_config.consumed_tokens = 32;
    w->client_config.packet_pool_buffers = 16;
    w->hook = storm_send;
    w->receive_hook = storm_receive;
    storm.destroy = w->server_config.sequence_base == NETCODE_SEQUENCE_BASE_RANDOM; /* the others must remember */
    world_add_server( w, 3 );
    for ( i = 0; i < STORM_CLIENTS; i++ )
        world_add_client( w );
}

static void storm_end( void )
{
    struct world_t * w = storm.w;
    int i;
    storm.chaos = 0;
    if ( w->servers[0] ) {
        netcode_server_stop( w->servers[0] );
        storm_check();
        while ( storm_next_event( w->servers[0] ) )
            continue;
        for ( i = 0; i < STORM_SLOTS; i++ )
            CHECK_EQ( storm.server_reader.open[i], 0 );
    }
    while ( storm.held_count )
        storm_free_one( w->servers[0] );
    CHECK_EQ( storm.connects, storm.disconnects );
    world_close( w );
    CHECK_EQ( storm.memory.live, 0 );
    for ( i = 0; i < STORM_CLIENTS; i++ )
        CHECK_EQ( storm.is_connected[i], 0 );
}

TEST( storm_every_function_from_every_callback )
{
    int64_t connects = 0, calls[STORM_PLACES] = { 0 };
    int round, step, i;
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    for ( round = 0; round < STORM_ROUNDS && !test_state.failures; round++ ) {
        storm_begin( round );
        storm.chaos = 20 + test_random_below( 40 );
        for ( step = 0; step < STORM_STEPS && !test_state.failures; step++ ) {
            if ( step % 20 == 0 )
                storm_mint();
            storm_step();
        }
        if ( test_state.failures ) {
            printf( "    round %d, step %d, after %s %d\n", round, step, storm.of, storm.number );
            return;
        }
        connects += storm.connects;
        for ( i = 0; i < STORM_PLACES; i++ )
            calls[i] += storm.calls[i];
        storm_end();
    }
    CHECK_GE( connects, 100 );
    for ( i = 0; i < STORM_PLACES; i++ )
        CHECK_GE( calls[i], 50 );
}

/* ---- every datagram, changed, from anywhere, while honest clients come, talk and go ---- */

enum { HAIL_CLIENTS = 6, HAIL_SEEN = 512, HAIL_HELD = 64, HAIL_PAYLOADS = 4096, HAIL_STEPS = 3000, HAIL_PER_STEP = 20 };
enum { HAIL_TO_SERVER, HAIL_TO_CLIENT };

static struct {
    struct world_t * w;
    struct storm_seen_t seen[HAIL_SEEN];
    int seen_count;
    struct storm_seen_t held[HAIL_HELD]; /* genuine ones, which arrive late and in another order */
    int held_count;
    int sent[2][HAIL_CLIENTS];
    uint8_t delivered[2][HAIL_CLIENTS][HAIL_PAYLOADS];
    int delivered_count;
    double joined[HAIL_CLIENTS]; /* when it began to connect; 0: it is away */
    int is_in[HAIL_CLIENTS];
    int joins;
    struct storm_reader_t server_reader;
    struct storm_reader_t client_readers[HAIL_CLIENTS];
} hail;

/* Direction, client and number say what the other bytes are. Returns the size. */
static int hail_payload( uint8_t * data, int direction, int client, int number )
{
    uint64_t seed = test_mix( (uint64_t) ( number * 16 + client * 2 + direction ) );
    int bytes = 4 + (int) ( seed % ( NETCODE_MAX_PACKET_SIZE - 4 + 1 ) ), i;
    uint8_t * at = data;
    put( &at, (uint64_t) direction, 1 );
    put( &at, (uint64_t) client, 1 );
    put( &at, (uint64_t) number, 2 );
    for ( i = 4; i < bytes; i++ )
        data[i] = (uint8_t) ( seed >> ( i % 8 * 8 ) ) ^ (uint8_t) ( i * 31 );
    return bytes;
}

static void hail_take( int direction, int client, const struct netcode_event_t * event )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    int number = event->bytes >= 4 ? (int) get( event->data + 2, 2 ) : HAIL_PAYLOADS;
    REQUIRE( number < hail.sent[direction][client] );
    REQUIRE_EQ( event->bytes, hail_payload( expected, direction, client, number ) );
    REQUIRE_MEM( event->data, expected, event->bytes );
    CHECK_EQ( hail.delivered[direction][client][number], 0 );
    hail.delivered[direction][client][number] = 1;
    hail.delivered_count++;
}

static void hail_read( void )
{
    struct netcode_event_t event;
    int i;
    while ( netcode_server_next_event( hail.w->servers[0], &event ) ) {
        storm_read( &hail.server_reader, &event, event.client_index );
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        REQUIRE( event.client_id >= 1 && event.client_id <= HAIL_CLIENTS );
        hail_take( HAIL_TO_SERVER, (int) event.client_id - 1, &event );
        netcode_server_free_packet( hail.w->servers[0], event.data );
    }
    for ( i = 0; i < HAIL_CLIENTS; i++ )
        while ( netcode_client_next_event( hail.w->clients[i], &event ) ) {
            storm_read( &hail.client_readers[i], &event, 0 );
            if ( event.type != NETCODE_EVENT_PAYLOAD )
                continue;
            hail_take( HAIL_TO_CLIENT, i, &event );
            netcode_client_free_packet( hail.w->clients[i], event.data );
        }
}

/* Everything genuine is seen; a little of it is kept for later. */
static int hail_hook( struct world_t * w, const struct world_datagram_t * d )
{
    int full = hail.seen_count == HAIL_SEEN;
    struct storm_seen_t * seen = &hail.seen[full ? test_random_below( HAIL_SEEN ) : hail.seen_count++];
    seen->from = d->from;
    seen->to = d->to;
    seen->bytes = d->bytes;
    memcpy( seen->data, d->data, (size_t) d->bytes );
    if ( hail.held_count == HAIL_HELD || test_random_below( 100 ) >= 4 )
        return 0;
    hail.held[hail.held_count] = *seen;
    hail.held[hail.held_count++].time = w->time + 0.01 * test_random_below( 40 );
    return 1;
}

static void hail_let_through( void )
{
    int i;
    for ( i = 0; i < hail.held_count; i++ )
        if ( hail.held[i].time <= hail.w->time ) {
            if ( world_find_socket( hail.w, &hail.held[i].to ) ) /* else it answers a spoofed source */
                world_inject( hail.w, &hail.held[i].from, &hail.held[i].to, hail.held[i].data, hail.held[i].bytes );
            hail.held[i--] = hail.held[--hail.held_count];
        }
}

/* Changes a datagram, which has room for `capacity` bytes. */
static int hail_change( uint8_t * data, int bytes, int capacity )
{
    const struct storm_seen_t * other = &hail.seen[test_random_below( hail.seen_count )];
    int i, size, count = 1 + test_random_below( 4 );
    switch ( test_random_below( 7 ) ) {
    case 0: /* flipped bits */
        for ( i = 0; i < count && bytes > 0; i++ )
            data[test_random_below( bytes )] ^= (uint8_t) ( 1 << test_random_below( 8 ) );
        return bytes;
    case 1: return test_random_below( bytes + 1 ); /* cut */
    case 2:                                        /* extended */
        size = bytes + 1 + test_random_below( test_random_below( 2 ) ? 8 : capacity - bytes );
        for ( i = bytes; i < size; i++ )
            data[i] = (uint8_t) test_random();
        return size;
    case 3: /* another type or length of the sequence */ data[0] = (uint8_t) test_random(); return bytes;
    case 4: /* the head of the one, the tail of the other */
        i = test_random_below( bytes < other->bytes ? bytes + 1 : other->bytes + 1 );
        memcpy( data + i, other->data + i, (size_t) ( other->bytes - i ) );
        return other->bytes;
    case 5: /* another sequence */
        if ( bytes > 1 )
            data[1 + test_random_below( bytes < 8 ? bytes - 1 : 7 )] = (uint8_t) test_random();
        return bytes;
    default: /* noise */
        size = test_random_below( capacity );
        for ( i = 0; i < size; i++ )
            data[i] = (uint8_t) test_random();
        return size;
    }
}

static struct netcode_address_t hail_address( void )
{
    struct netcode_address_t unknown = address_of( "10.9.0.1:7000" );
    unknown.port = (uint16_t) test_random_below( 8 ); /* 0 among them */
    switch ( test_random_below( 3 ) ) {
    case 0: return unknown;
    case 1: return hail.w->server_addresses[0];
    default: return hail.w->client_addresses[test_random_below( HAIL_CLIENTS )];
    }
}

/* One hostile datagram: something seen, as it was or changed; from where it came or from elsewhere; also sent back. */
static void hail_throw( void )
{
    struct world_t * w = hail.w;
    struct storm_seen_t d = hail.seen[test_random_below( hail.seen_count )];
    uint8_t data[DATAGRAM_BYTES + 100];
    int bytes = d.bytes, i, changes = test_random_below( 4 ) - 1;
    memcpy( data, d.data, (size_t) bytes );
    for ( i = 0; i < changes && bytes > 0 && bytes <= DATAGRAM_BYTES; i++ )
        bytes = hail_change( data, bytes, (int) sizeof( data ) );
    switch ( test_random_below( 6 ) ) {
    case 0: /* reflected */
        d.to = d.from;
        d.from = hail.w->server_addresses[0];
        break;
    case 1: d.from = hail_address(); break;
    case 2: d.to = hail_address(); break;
    }
    if ( !world_find_socket( w, &d.to ) ) /* no socket is there */
        d.to = w->server_addresses[0];
    if ( test_random_below( 2 ) || !netcode_address_equal( &d.to, &w->server_addresses[0] ) ) {
        world_inject( w, &d.from, &d.to, data, bytes );
        return;
    }
    netcode_server_process_packet( w->servers[0], &d.from, data, bytes );
    storm_check_server( w->servers[0], 0 );
}

/* An honest client's step: it connects within 5 s, stays connected, talks, and goes when it wants to. */
static void hail_client( int i )
{
    struct world_t * w = hail.w;
    struct netcode_client_t * c = w->clients[i];
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    int bytes, slot;
    if ( hail.joined[i] <= 0.0 ) {
        if ( test_random_below( 50 ) == 0 ) {
            world_connect( w, i, 1 + (uint64_t) i );
            hail.joined[i] = w->time;
        }
        return;
    }
    if ( !hail.is_in[i] ) {
        hail.is_in[i] = netcode_client_state( c ) == NETCODE_CLIENT_STATE_CONNECTED;
        hail.joins += hail.is_in[i];
        CHECK( netcode_client_state( c ) > 0 && w->time - hail.joined[i] < 5.0 );
        return;
    }
    CHECK_EQ( netcode_client_state( c ), NETCODE_CLIENT_STATE_CONNECTED );
    slot = world_slot( w, 0, 1 + (uint64_t) i );
    CHECK_GE( slot, 0 );
    bytes = hail_payload( data, HAIL_TO_SERVER, i, hail.sent[HAIL_TO_SERVER][i]++ );
    netcode_client_send_packet( c, data, bytes );
    if ( slot >= 0 ) {
        bytes = hail_payload( data, HAIL_TO_CLIENT, i, hail.sent[HAIL_TO_CLIENT][i]++ );
        netcode_server_send_packet( w->servers[0], slot, data, bytes );
    }
    if ( i >= 2 && test_random_below( 150 ) == 0 ) {
        netcode_client_disconnect( c );
        hail.joined[i] = 0.0;
        hail.is_in[i] = 0;
    }
}

static void hail_step( int hostile )
{
    int i;
    for ( i = 0; i < HAIL_PER_STEP && hostile; i++ )
        hail_throw();
    hail_let_through();
    world_step( hail.w );
    storm_check_server( hail.w->servers[0], 0 );
    for ( i = 0; i < HAIL_CLIENTS; i++ )
        storm_check_client( hail.w->clients[i], 0 );
    hail_read();
    for ( i = 0; i < HAIL_CLIENTS; i++ )
        hail_client( i );
}

static void hail_begin( void )
{
    struct world_t * w = world_new( CLEAN );
    int i;
    memset( &hail, 0, sizeof( hail ) );
    hail.w = w;
    w->step = 0.02;
    w->recording = 0;
    w->net->latency_milliseconds = 15.0f;
    w->net->jitter_milliseconds = 10.0f;
    w->net->packet_loss_percent = 2.0f;
    w->net->duplicate_packet_percent = 3.0f;
    w->net->reorder_packet_percent = 5.0f;
    w->hook = hail_hook;
    w->server_config.events = w->client_config.events = 1;
    world_add_server( w, STORM_SLOTS );
    for ( i = 0; i < HAIL_CLIENTS; i++ )
        world_add_client( w );
}

TEST( storm_of_hostile_datagrams )
{
    struct netcode_server_stats_t stats;
    uint64_t left = 0;
    int step, i, sent = 0;
    hail_begin();
    for ( step = 0; step < HAIL_STEPS && !test_state.failures; step++ )
        hail_step( step >= 100 );
    if ( test_state.failures ) {
        printf( "    step %d\n", step );
        return;
    }
    for ( i = 0; i < HAIL_CLIENTS; i++ )
        sent += hail.sent[HAIL_TO_SERVER][i] + hail.sent[HAIL_TO_CLIENT][i];
    CHECK_GE( sent, 2000 );
    CHECK_GE( hail.delivered_count, sent * 3 / 4 );
    CHECK_GE( hail.joins, HAIL_CLIENTS );
    netcode_server_stop( hail.w->servers[0] );
    storm_check_server( hail.w->servers[0], 0 );
    hail_read();
    for ( i = 0; i < STORM_SLOTS; i++ )
        CHECK_EQ( hail.server_reader.open[i], 0 );
    stats = server_stats( hail.w, 0 );
    for ( i = 0; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        left += stats.disconnects[i];
    CHECK_EQ( stats.connects, left );
    CHECK_EQ( stats.disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT], 0 );
}

/* ---- a broken invariant trips the next call, in debug builds ---- */

TEST( broken_invariants_trip_the_next_call )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_server_t * s = w->servers[0];
    struct netcode_client_t * c = w->clients[0];
    if ( !TEST_ASSERTS_WORK )
        SKIP( "asserts are off in this build" );
    test_log_lines = 0;
    test_state.silent = 1; /* an assert, and no line: nothing is refused */
    s->handshakes.private_key_count = 5;
    BAD( netcode_server_flush( s ) );
    s->handshakes.private_key_count = 1;
    s->handshakes.unused.count--;
    BAD( netcode_server_flush( s ) );
    s->handshakes.unused.count++;
    s->active.count += 3;
    BAD( netcode_server_flush( s ) );
    s->active.count -= 3;
    s->memory.inbox.pool->held += s->memory.inbox.pool->count;
    BAD( netcode_server_flush( s ) );
    s->memory.inbox.pool->held -= s->memory.inbox.pool->count;
    netcode_server_flush( s );
    c->client_index = -2;
    BAD( netcode_client_flush( c ) );
    c->client_index = 0;
    c->inbox.pool->held += c->inbox.pool->count;
    BAD( netcode_client_flush( c ) );
    c->inbox.pool->held -= c->inbox.pool->count;
    netcode_client_flush( c );
}

/* ---- noise of every kind ---- */

/* Noise of every kind at once, from every side, for a while: no honest client is lost, nothing dishonest gets in. */
TEST( hostile_storm )
{
    struct world_t * w = world_open( LOSSY, 1, 8, 4 );
    struct puppet_t p;
    uint8_t data[DATAGRAM_BYTES];
    int i, j;
    for ( i = 0; i < 4; i++ )
        REQUIRE( world_join( w, i, 1 + (uint64_t) i ) );
    puppet_make( &p, w, 0, 50, "10.2.0.1:6000" );
    for ( i = 0; i < 1000; i++ ) {
        for ( j = 0; j < 8; j++ ) {
            const struct world_datagram_t * d = &w->records.items[test_random_below( w->records.count )];
            int bytes = d->bytes;
            if ( bytes > DATAGRAM_BYTES )
                continue;
            memcpy( data, d->data, (size_t) bytes );
            if ( j % 2 && bytes > 0 )
                data[test_random_below( bytes )] ^= (uint8_t) ( 1 + test_random_below( 255 ) );
            if ( j % 4 == 3 )
                bytes = test_random_below( bytes + 1 );
            world_inject( w, j % 3 ? &w->client_addresses[test_random_below( 4 )] : &p.address, &w->server_addresses[0],
                          data, bytes );
            world_inject( w, &w->server_addresses[0], &w->client_addresses[test_random_below( 4 )], data, bytes );
        }
        world_step( w );
        for ( j = 0; j < 8; j++ )
            CHECK_EQ( server_drain( w, 0, j ), 0 ); /* no honest client sent a payload */
        for ( j = 0; j < 4; j++ )
            CHECK_EQ( client_drain( w, j ), 0 );
    }
    world_run( w, 5.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 4 );
    for ( i = 0; i < 4; i++ )
        CHECK_EQ( netcode_client_state( w->clients[i] ), NETCODE_CLIENT_STATE_CONNECTED );
}
