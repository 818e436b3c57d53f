/*  Queues: the pool, the inbox beside a naive model that is too slow to be wrong, and the outbox. */

/* ---- pool ---- */

TEST( table_pool )
{
    enum { BUFFERS = 37 };
    nc_pool_t * pool = NULL;
    nc_arena_t arena;
    void * block;
    uint32_t taken[BUFFERS], i, k;
    TABLE_PLACE( block, arena, pool = nc_pool_place( &arena, BUFFERS ) );
    REQUIRE( pool != NULL );
    CHECK_EQ( pool->free_count, BUFFERS );
    for ( i = 0; i < BUFFERS * NC_BUFFER_STRIDE; i++ )
        REQUIRE_EQ( pool->buffers[i], 0xA5 ); /* not touched before they are used */
    for ( i = 0; i < BUFFERS; i++ ) {
        uint8_t * data;
        CHECK_EQ( nc_pool_written_bytes( pool ),
                  (size_t) ( pool->buffers - (uint8_t *) block ) + i * NC_BUFFER_STRIDE );
        taken[i] = nc_pool_take( pool );
        REQUIRE( taken[i] < BUFFERS );
        for ( k = 0; k < i; k++ )
            CHECK_NE( taken[i], taken[k] );
        data = nc_pool_data( pool, taken[i] );
        memset( data, (int) i, NC_BUFFER_CAPACITY + 8 ); /* the largest datagram, and 8 readable bytes behind it */
        CHECK_EQ( (uintptr_t) data % 8, 0 );
        CHECK_EQ( nc_pool_find( pool, data ), taken[i] );
        CHECK_EQ( nc_pool_find( pool, data + 9 ), taken[i] );
        CHECK_EQ( nc_pool_find( pool, data + NC_BUFFER_CAPACITY ), taken[i] );
        CHECK_EQ( pool->states[taken[i]], NC_BUFFER_FREE );
    }
    CHECK_EQ( nc_pool_take( pool ), TABLE_NOWHERE );
    for ( i = 0; i < BUFFERS; i++ )
        CHECK_EQ( nc_pool_data( pool, taken[i] )[NC_BUFFER_CAPACITY + 7], i );
    CHECK_EQ( nc_pool_find( pool, pool->buffers - 1 ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, pool->buffers + (size_t) BUFFERS * NC_BUFFER_STRIDE ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, &arena ), TABLE_NOWHERE );
    CHECK_EQ( nc_pool_find( pool, NULL ), TABLE_NOWHERE );
    for ( i = 0; i < BUFFERS; i++ ) {
        pool->states[taken[i]] = NC_BUFFER_HELD;
        nc_pool_free( pool, taken[i] );
        CHECK_EQ( pool->states[taken[i]], NC_BUFFER_FREE );
        CHECK_EQ( nc_pool_take( pool ), taken[i] ); /* the warmest first */
        nc_pool_free( pool, taken[i] );
    }
    CHECK_EQ( pool->free_count, BUFFERS );
    free( block );
}

TEST( mutants_a_pool_begins_with_free_buffers )
{
    nc_arena_t arena;
    nc_pool_t * pool;
    void * block;
    int i;
    TABLE_PLACE( block, arena, pool = nc_pool_place( &arena, 3 ) );
    for ( i = 0; i < 3; i++ )
        CHECK_EQ( pool->states[i], NC_BUFFER_FREE );
    free( block );
}

/* ---- inbox ---- */

enum { INBOX_CLIENTS = 3, INBOX_BUFFERS = 36, INBOX_ITEMS = 2000 };

/* One event of the model at its true position; without config.events, payloads alone. */
struct inbox_item_t {
    int type;
    uint32_t client;
    uint64_t session;
    uint64_t sequence;
};

static struct {
    nc_inbox_t inbox;
    nc_pool_t * pool;
    void * block;
    struct inbox_item_t items[INBOX_ITEMS];
    int count;
    int open[INBOX_CLIENTS];
    uint64_t session[INBOX_CLIENTS];
    uint64_t sessions;
    uint64_t sequences;
    uint64_t goings;
    uint64_t left[INBOX_CLIENTS]; /* when its client went, leaving payloads behind */
    uint8_t * held[INBOX_BUFFERS];
    int held_count;
} inbox_world;

static void inbox_open( uint32_t clients, uint32_t buffers, uint32_t quota, int has_events )
{
    nc_arena_t arena;
    nc_pool_t * pool = NULL;
    memset( &inbox_world, 0, sizeof( inbox_world ) );
    inbox_world.inbox.client_count = clients;
    inbox_world.inbox.has_events = has_events;
    TABLE_PLACE( inbox_world.block, arena,
                 ( pool = nc_pool_place( &arena, buffers ), nc_inbox_place( &inbox_world.inbox, &arena, buffers ) ) );
    inbox_world.pool = pool;
    nc_inbox_reset( &inbox_world.inbox, pool, quota );
}

static int inbox_queued( uint32_t client )
{
    int i, count = 0;
    for ( i = 0; i < inbox_world.count; i++ )
        count += inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && inbox_world.items[i].client == client;
    return count;
}

static int inbox_payloads( void )
{
    int i, count = 0;
    for ( i = 0; i < inbox_world.count; i++ )
        count += inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD;
    return count;
}

static void inbox_add( int type, uint32_t client, uint64_t sequence )
{
    if ( type != NETCODE_EVENT_PAYLOAD && !inbox_world.inbox.has_events )
        return;
    struct inbox_item_t * item = &inbox_world.items[inbox_world.count++];
    item->type = type;
    item->client = client;
    item->session = inbox_world.session[client];
    item->sequence = sequence;
}

static void inbox_drop( int index )
{
    memmove( &inbox_world.items[index], &inbox_world.items[index + 1],
             (size_t) ( --inbox_world.count - index ) * sizeof( inbox_world.items[0] ) );
}

/* What is kept back for the connected ones: what each lacks to its share. */
static int inbox_reserved( void )
{
    int client, sum = 0;
    for ( client = 0; client < (int) inbox_world.inbox.client_count; client++ ) {
        int lacks = (int) inbox_world.inbox.share - inbox_queued( (uint32_t) client );
        if ( inbox_world.open[client] && lacks > 0 )
            sum += lacks;
    }
    return sum;
}

static void inbox_check( void )
{
    uint32_t client;
    int payloads = inbox_payloads();
    REQUIRE_EQ( inbox_world.inbox.queued, payloads );
    REQUIRE_EQ( inbox_world.inbox.events.count, inbox_world.inbox.has_events ? inbox_world.count : 0 );
    REQUIRE_EQ( inbox_world.inbox.reserved, inbox_reserved() );
    REQUIRE_EQ( inbox_world.pool->held, inbox_world.held_count );
    REQUIRE_EQ( inbox_world.pool->free_count, (int) inbox_world.pool->count - payloads - inbox_world.held_count );
    for ( client = 0; client < inbox_world.inbox.client_count; client++ )
        REQUIRE_EQ( inbox_world.inbox.queues[client].list.count, inbox_queued( client ) );
}

/* The payload of a sequence: its size and bytes follow from it. */
static int inbox_fill( uint8_t * data, uint64_t sequence )
{
    int bytes = (int) ( test_mix( sequence ) % NETCODE_MAX_PACKET_SIZE ) + 1, i;
    for ( i = 0; i < bytes; i++ )
        data[i] = (uint8_t) ( sequence + (uint64_t) i );
    return bytes;
}

static void inbox_hold( uint8_t * data, int bytes, uint64_t sequence )
{
    static const uint8_t zeros[8];
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    CHECK_EQ( bytes, inbox_fill( expected, sequence ) );
    CHECK_MEM( data, expected, bytes );
    CHECK_MEM( data + bytes, zeros, 8 ); /* bit readers read ahead */
    inbox_world.held[inbox_world.held_count++] = data;
}

static void inbox_begin_session( uint32_t client )
{
    int i, can = 1;
    if ( inbox_world.open[client] )
        return;
    for ( i = 0; i < inbox_world.count; i++ ) /* not before all events of sessions before the last one are read */
        can &= inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD || inbox_world.items[i].client != client ||
               inbox_world.items[i].session == inbox_world.session[client];
    REQUIRE_EQ( nc_inbox_can_open( &inbox_world.inbox, client ), can );
    if ( !can )
        return;
    for ( i = 0; i < inbox_world.count && !inbox_world.inbox.has_events; i++ )
        if ( inbox_world.items[i].client == client )
            inbox_drop( i-- );
    inbox_world.open[client] = 1;
    inbox_world.session[client] = ++inbox_world.sessions;
    nc_inbox_open( &inbox_world.inbox, client, inbox_world.session[client], 500 + inbox_world.session[client] );
    inbox_add( NETCODE_EVENT_CONNECTED, client, 0 );
}

static void inbox_end_session( uint32_t client )
{
    if ( !inbox_world.open[client] )
        return;
    inbox_world.open[client] = 0;
    inbox_world.left[client] = ++inbox_world.goings;
    nc_inbox_close( &inbox_world.inbox, client, inbox_world.session[client], 500 + inbox_world.session[client],
                    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
    inbox_add( NETCODE_EVENT_DISCONNECTED, client, 0 );
}

/* What is given up first when capacity is needed: the oldest payload of the client that went first; or -1. */
static int inbox_first_left( void )
{
    int i, first = -1;
    for ( i = 0; i < inbox_world.count; i++ )
        if ( inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && !inbox_world.open[inbox_world.items[i].client] &&
             ( first < 0 ||
               inbox_world.left[inbox_world.items[i].client] < inbox_world.left[inbox_world.items[first].client] ) )
            first = i;
    return first;
}

/* Quota, then a client that is gone frees capacity, then the pool, then the share of the others. */
static int inbox_expected( uint32_t client )
{
    int queued = inbox_queued( client ), first, room;
    int kept_back = queued < (int) inbox_world.inbox.share ? 0 : inbox_reserved();
    if ( queued >= (int) inbox_world.inbox.quota )
        return NETCODE_DROP_QUEUE_FULL;
    for ( ;; ) {
        room = (int) inbox_world.pool->count - inbox_payloads() - inbox_world.held_count;
        if ( room > kept_back )
            return NETCODE_DROP_NONE;
        first = inbox_first_left();
        if ( first < 0 )
            return room == 0 ? NETCODE_DROP_POOL_EMPTY : NETCODE_DROP_QUEUE_FULL;
        inbox_drop( first );
    }
}

static int inbox_send( uint32_t client )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    nc_buffer_t what;
    int expected;
    if ( !inbox_world.open[client] )
        return -1;
    expected = inbox_expected( client );
    memset( &what, 0, sizeof( what ) );
    what.client_index = client;
    what.session = inbox_world.session[client];
    what.client_id = 500 + what.session;
    what.sequence = ++inbox_world.sequences;
    what.bytes = (uint32_t) inbox_fill( data, what.sequence );
    CHECK_EQ( nc_inbox_copy( &inbox_world.inbox, what, data ), expected );
    if ( expected == NETCODE_DROP_NONE )
        inbox_add( NETCODE_EVENT_PAYLOAD, client, what.sequence );
    return expected;
}

static void inbox_receive( uint32_t client )
{
    uint64_t sequence = 0;
    int bytes = 0, i;
    uint8_t * data = nc_inbox_receive( &inbox_world.inbox, client, &bytes, test_random_below( 4 ) ? &sequence : NULL );
    for ( i = 0; i < inbox_world.count; i++ )
        if ( inbox_world.items[i].type == NETCODE_EVENT_PAYLOAD && inbox_world.items[i].client == client )
            break;
    REQUIRE_EQ( data != NULL, i < inbox_world.count );
    if ( !data )
        return;
    CHECK( sequence == 0 || sequence == inbox_world.items[i].sequence );
    inbox_hold( data, bytes, inbox_world.items[i].sequence );
    inbox_drop( i );
}

static void inbox_event( void )
{
    struct netcode_event_t event;
    struct inbox_item_t item = inbox_world.items[0];
    memset( &event, 0, sizeof( event ) );
    REQUIRE_EQ( nc_inbox_next_event( &inbox_world.inbox, &event ), inbox_world.count > 0 );
    if ( inbox_world.count == 0 ) {
        CHECK_EQ( event.type, NETCODE_EVENT_NONE );
        return;
    }
    CHECK_EQ( event.type, item.type );
    CHECK_EQ( event.client_index, item.client );
    CHECK_EQ( event.session, item.session );
    CHECK_EQ( event.client_id, 500 + item.session );
    if ( item.type == NETCODE_EVENT_PAYLOAD ) {
        CHECK_EQ( event.sequence, item.sequence );
        inbox_hold( event.data, event.bytes, item.sequence );
    } else {
        CHECK_EQ( event.reason, item.type == NETCODE_EVENT_DISCONNECTED ? 1 : 0 );
        CHECK( event.data == NULL );
    }
    inbox_drop( 0 );
}

static void inbox_free( void )
{
    int which;
    uint32_t index;
    if ( inbox_world.held_count == 0 )
        return;
    which = test_random_below( inbox_world.held_count );
    index = nc_pool_find( inbox_world.pool, inbox_world.held[which] );
    REQUIRE( index != TABLE_NOWHERE );
    CHECK_EQ( inbox_world.pool->states[index], NC_BUFFER_HELD );
    inbox_world.pool->held--;
    nc_pool_free( inbox_world.pool, index );
    inbox_world.held[which] = inbox_world.held[--inbox_world.held_count];
}

/* `takes_events` out of 100 steps read an event; 0: the caller uses the per-slot calls alone. */
static void inbox_run( uint32_t quota, int takes_events )
{
    int step, verdicts[3] = { 0 };
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, quota, takes_events > 0 );
    CHECK_EQ( inbox_world.inbox.share, INBOX_BUFFERS / ( 2 * INBOX_CLIENTS ) );
    for ( step = 0; step < 20000; step++ ) {
        uint32_t client = (uint32_t) test_random_below( INBOX_CLIENTS );
        int dice = test_random_below( 100 ), verdict;
        if ( dice < takes_events )
            inbox_event();
        else if ( dice < 60 ) {
            verdict = inbox_send( client );
            verdicts[0] += verdict == NETCODE_DROP_NONE;
            verdicts[1] += verdict == NETCODE_DROP_QUEUE_FULL;
            verdicts[2] += verdict == NETCODE_DROP_POOL_EMPTY;
        } else if ( dice < 70 )
            inbox_receive( client );
        else if ( dice < 85 )
            inbox_free();
        else if ( dice < 92 )
            inbox_begin_session( client );
        else if ( dice < 95 )
            inbox_end_session( client );
        inbox_check();
    }
    CHECK( verdicts[0] > 500 && verdicts[1] > 100 );
    free( inbox_world.block );
}

TEST( table_inbox_against_a_model )
{
    inbox_run( 256, 12 );
    inbox_run( 256, 5 );
    inbox_run( 9, 12 );
    inbox_run( 3, 3 );
}

TEST( table_inbox_without_events_against_a_model )
{
    inbox_run( 256, 0 );
    inbox_run( 8, 0 );
}

/* One that floods never takes the others' share. attacks/rows.py, rows 40 and 41 */
TEST( table_inbox_keeps_everyones_share )
{
    uint32_t client;
    int sent = 0, i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 1000, 0 );
    for ( client = 0; client < INBOX_CLIENTS; client++ )
        inbox_begin_session( client );
    while ( inbox_send( 0 ) == NETCODE_DROP_NONE )
        sent++;
    CHECK_EQ( sent, INBOX_BUFFERS - 2 * (int) inbox_world.inbox.share );
    for ( client = 1; client < INBOX_CLIENTS; client++ ) {
        for ( i = 0; i < (int) inbox_world.inbox.share; i++ )
            CHECK_EQ( inbox_send( client ), NETCODE_DROP_NONE );
        CHECK_NE( inbox_send( client ), NETCODE_DROP_NONE );
    }
    CHECK_EQ( inbox_world.pool->free_count, 0 );
    inbox_check();
    free( inbox_world.block );
}

/* The default pool lets 256 clients each send 16 packets between two updates, and none is dropped. */
TEST( table_inbox_default_pool )
{
    static nc_inbox_t inbox;
    nc_pool_t * pool = NULL;
    nc_arena_t arena;
    void * block;
    uint32_t client;
    int i, dropped = 0;
    inbox.client_count = 256;
    TABLE_PLACE( block, arena, ( pool = nc_pool_place( &arena, 4096 ), nc_inbox_place( &inbox, &arena, 4096 ) ) );
    nc_inbox_reset( &inbox, pool, NC_SERVER_QUOTA );
    for ( client = 0; client < 256; client++ )
        nc_inbox_open( &inbox, client, client + 1, client );
    for ( client = 0; client < 256; client++ )
        for ( i = 0; i < 16; i++ ) {
            nc_buffer_t what;
            memset( &what, 0, sizeof( what ) );
            what.client_index = client;
            what.session = client + 1;
            what.bytes = 1;
            dropped += nc_inbox_copy( &inbox, what, (const uint8_t *) "x" ) != NETCODE_DROP_NONE;
        }
    CHECK_EQ( dropped, 0 );
    CHECK_EQ( inbox.reserved, 0 );
    free( block );
}

/*  A slot is used again at most once before the events of its sessions are read; of a client's moves the last one's end takes the unread
    event along. */
TEST( table_inbox_a_slot_waits_for_its_events )
{
    static const int types[] = { NETCODE_EVENT_CONNECTED, NETCODE_EVENT_DISCONNECTED, NETCODE_EVENT_CONNECTED,
                                 NETCODE_EVENT_DISCONNECTED };
    struct netcode_event_t event;
    nc_inbox_t * inbox = &inbox_world.inbox;
    int i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 256, 1 );
    for ( i = 1; i <= 2; i++ ) {
        const nc_event_t moved = { (uint64_t) i, 7, 0 };
        CHECK( nc_inbox_can_open( inbox, 1 ) );
        nc_inbox_open( inbox, 1, (uint64_t) i, 7 );
        CHECK_EQ( nc_inbox_can_open( inbox, 1 ), i == 1 );
        nc_inbox_report( inbox, 1, NC_EVENT_MOVED, &moved );
        nc_inbox_report( inbox, 1, NC_EVENT_MOVED, &moved );
        nc_inbox_close( inbox, 1, (uint64_t) i, 7, 3 );
    }
    for ( i = 0; i < 4; i++ ) {
        CHECK_EQ( nc_inbox_can_open( inbox, 1 ), i >= 2 );
        CHECK( nc_inbox_can_open( inbox, 0 ) );
        REQUIRE( nc_inbox_next_event( inbox, &event ) );
        CHECK( event.type == types[i] && event.client_index == 1 && event.session == 1 + (uint64_t) i / 2 );
        CHECK( event.client_id == 7 && event.reason == ( i % 2 ? 3 : 0 ) );
    }
    CHECK_EQ( nc_inbox_next_event( inbox, &event ), 0 );
    free( inbox_world.block );
}

/*  What was queued when a client left can be read until its slot is used again, whichever clients come and go
    elsewhere. */
TEST( table_inbox_keeps_what_a_client_left )
{
    int i;
    inbox_open( INBOX_CLIENTS, INBOX_BUFFERS, 256, 0 );
    inbox_begin_session( 0 );
    CHECK_EQ( inbox_send( 0 ), NETCODE_DROP_NONE );
    CHECK_EQ( inbox_send( 0 ), NETCODE_DROP_NONE );
    inbox_end_session( 0 );
    for ( i = 100; i < 300; i++ ) {
        nc_inbox_open( &inbox_world.inbox, 1, (uint64_t) i, 0 );
        nc_inbox_close( &inbox_world.inbox, 1, (uint64_t) i, 0, 1 );
    }
    inbox_receive( 0 );
    inbox_receive( 0 );
    free( inbox_world.block );
}

TEST( mutants_inbox_writes_nothing_behind_its_queues )
{
    nc_inbox_t inbox;
    nc_queue_t queues[2];
    nc_pool_t pool;
    const uint8_t * bytes = (const uint8_t *) &queues[1];
    size_t i;
    memset( &inbox, 0, sizeof( inbox ) );
    memset( &pool, 0, sizeof( pool ) );
    memset( queues, 0xee, sizeof( queues ) );
    inbox.queues = queues;
    inbox.client_count = 1;
    nc_inbox_reset( &inbox, &pool, 1 );
    for ( i = 0; i < sizeof( queues[1] ); i++ )
        CHECK_EQ( bytes[i], 0xee );
}

/* ---- outbox ---- */

static struct {
    int calls;
    int datagrams;
    int refuse; /* of each call */
    int bytes;
    int sizes[512];
} outbox_sink;

static int outbox_sink_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    CHECK( context == &outbox_sink );
    outbox_sink.calls++;
    for ( i = 0; i < count; i++ ) {
        int k;
        for ( k = 0; k < datagrams[i].bytes; k++ )
            CHECK_EQ( datagrams[i].data[k], datagrams[i].bytes & 255 );
        outbox_sink.sizes[outbox_sink.datagrams++] = datagrams[i].bytes;
        outbox_sink.bytes += datagrams[i].bytes;
    }
    return outbox_sink.refuse < 0 ? -1 : count - outbox_sink.refuse;
}

static void outbox_write( nc_outbox_t * outbox, int bytes )
{
    struct netcode_address_t to;
    uint8_t spare[NC_OUT_STRIDE];
    uint8_t * out = nc_outbox_begin( outbox, spare );
    CHECK_EQ( netcode_parse_address( "1.2.3.4:5", &to ), NETCODE_OK );
    memset( out, bytes, (size_t) bytes );
    nc_outbox_end( outbox, out, &to, NETCODE_PACKET_PAYLOAD, bytes );
}

/* Without batches each leaves at once; with them, when they are full or flushed. Order, sizes and errors are kept. */
TEST( socket_outbox )
{
    int capacity, i;
    for ( capacity = 0; capacity <= NC_SEND_BATCH; capacity += NC_SEND_BATCH ) {
        struct netcode_socket_t socket;
        nc_counters_t counters;
        nc_outbox_t outbox;
        nc_arena_t arena;
        void * block;
        memset( &outbox, 0, sizeof( outbox ) );
        memset( &counters, 0, sizeof( counters ) );
        memset( &socket, 0, sizeof( socket ) );
        memset( &outbox_sink, 0, sizeof( outbox_sink ) );
        socket.context = &outbox_sink;
        socket.send = outbox_sink_send;
        TABLE_PLACE( block, arena, nc_outbox_place( &outbox, &arena, capacity ) );
        outbox.socket = &socket;
        outbox.counters = &counters;
        nc_outbox_flush( &outbox );
        CHECK_EQ( outbox_sink.calls, 0 );
        for ( i = 0; i < 200; i++ ) {
            outbox_write( &outbox, 1225 - i );
            if ( capacity == 0 )
                CHECK_EQ( outbox_sink.datagrams, i + 1 );
        }
        nc_outbox_flush( &outbox );
        CHECK_EQ( outbox_sink.datagrams, 200 );
        CHECK_EQ( outbox_sink.calls, capacity == 0 ? 200 : 4 );
        for ( i = 0; i < 200; i++ )
            CHECK_EQ( outbox_sink.sizes[i], 1225 - i );
        CHECK_EQ( counters.packets_sent[NETCODE_PACKET_PAYLOAD], 200 );
        CHECK_EQ( counters.bytes_sent, outbox_sink.bytes );
        CHECK_EQ( counters.send_errors, 0 );
        outbox_sink.refuse = 1;
        outbox_write( &outbox, 10 );
        nc_outbox_flush( &outbox );
        CHECK_EQ( counters.send_errors, 1 );
        outbox_sink.refuse = -1; /* a broken socket: all are errors */
        outbox_write( &outbox, 10 );
        nc_outbox_flush( &outbox );
        CHECK_EQ( counters.send_errors, 2 );
        free( block );
    }
}

/* A network that sends again from inside its own send. */
static struct {
    nc_outbox_t * outbox;
    int left;
} outbox_echo;

static int outbox_echo_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count; i++ )
        outbox_sink.sizes[outbox_sink.datagrams++] = datagrams[i].bytes;
    if ( outbox_echo.left-- > 0 )
        outbox_write( outbox_echo.outbox, 100 + outbox_echo.left );
    nc_outbox_flush( outbox_echo.outbox );
    return count;
}

/* Nothing is sent twice, nothing is lost uncounted, and a network that would send for ever comes to an end. */
TEST( socket_outbox_inside_itself )
{
    static const int echoes[] = { 0, 1, 2, NC_SENDS_WITHIN_SENDS - 1, 100, 300 };
    size_t e;
    int capacity, i;
    for ( capacity = 0; capacity <= 4; capacity += 4 )
        for ( e = 0; e < sizeof( echoes ) / sizeof( echoes[0] ); e++ ) {
            struct netcode_socket_t socket;
            nc_counters_t counters;
            nc_outbox_t outbox;
            nc_arena_t arena;
            void * block;
            memset( &outbox, 0, sizeof( outbox ) );
            memset( &counters, 0, sizeof( counters ) );
            memset( &socket, 0, sizeof( socket ) );
            memset( &outbox_sink, 0, sizeof( outbox_sink ) );
            socket.send = outbox_echo_send;
            TABLE_PLACE( block, arena, nc_outbox_place( &outbox, &arena, capacity ) );
            outbox.socket = &socket;
            outbox.counters = &counters;
            outbox_echo.outbox = &outbox;
            outbox_echo.left = echoes[e];
            outbox_write( &outbox, 1000 );
            nc_outbox_flush( &outbox );
            CHECK_EQ( outbox.count, 0 );
            CHECK_EQ( outbox_sink.datagrams + (int64_t) counters.send_errors,
                      counters.packets_sent[NETCODE_PACKET_PAYLOAD] );
            if ( echoes[e] < NC_SENDS_WITHIN_SENDS ) {
                CHECK_EQ( outbox_sink.datagrams, 1 + echoes[e] );
                CHECK_EQ( counters.send_errors, 0 );
            }
            for ( i = 100; i < 100 + echoes[e]; i++ ) {
                int k, times = 0;
                for ( k = 0; k < outbox_sink.datagrams; k++ )
                    times += outbox_sink.sizes[k] == i;
                CHECK( times == 1 || ( times == 0 && echoes[e] >= NC_SENDS_WITHIN_SENDS ) );
            }
            free( block );
        }
}

TEST( mutants_a_place_to_receive_into_begins_empty )
{
    struct netcode_datagram_t place;
    nc_pool_t pool;
    uint8_t buffers[NC_BUFFER_STRIDE];
    memset( &place, 0xee, sizeof( place ) );
    memset( &pool, 0, sizeof( pool ) );
    pool.buffers = buffers;
    nc_received_prepare( &place, &pool, 0 );
    CHECK( place.data == buffers + NC_BUFFER_HEADER_BYTES - NC_USUAL_HEADER_BYTES );
    CHECK_EQ( place.capacity, NC_BUFFER_CAPACITY );
    CHECK( place.bytes == 0 && place.status == NETCODE_DATAGRAM_OK && place.error == 0 );
    CHECK_EQ( place.address.type, NETCODE_ADDRESS_NONE );
    place.bytes = place.status = place.error = 5;
    place.address.type = NETCODE_ADDRESS_IPV6;
    nc_received_reset( &place );
    CHECK( place.bytes == 0 && place.status == NETCODE_DATAGRAM_OK && place.error == 0 );
    CHECK_EQ( place.address.type, NETCODE_ADDRESS_NONE );
}
