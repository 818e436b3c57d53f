/*  Story: hostile messages. A peer that holds the keys sends anything: forged acks, ids, orders, totals, limits, floods
    and noise. Nothing crashes, memory stays bounded, a refused packet has changed nothing, and what holds of an object
    holds after every packet (messages_check). Run: runner messages_hostile.c */

struct victim_t {
    struct netcode_messages_t * m;
    void * before;
    size_t size;
    struct craft_t craft;
    int64_t number; /* the attacker's next */
    double now;
    int taken, refused;
};

static uint8_t hostile_data[70000];

static void victim_open( struct victim_t * v, const struct netcode_messages_config_t * config )
{
    memset( v, 0, sizeof( *v ) );
    v->size = netcode_messages_memory( config );
    v->m = messages_create_zeroed( config );
    v->before = malloc( v->size );
    if ( !v->m || !v->before )
        abort();
    messages_drain( v->m, 0.01 ); /* its first LIMIT is in progress */
}

static void victim_close( struct victim_t * v )
{
    netcode_messages_destroy( v->m );
    free( v->before );
}

static void victim_begin( struct victim_t * v )
{
    craft_begin( &v->craft, v->number++, -1, 0 );
}

/* All of a packet counts, or nothing of it. */
static int victim_take( struct victim_t * v, const uint8_t * packet, int bytes )
{
    int compacted = test_random_below( 2 ); /* or nc_heap_fits does it later; no message changes by that */
    if ( compacted )
        nc_heap_compact( &v->m->in );
    memcpy( v->before, v->m, v->size );
    int reason = netcode_messages_process_packet( v->m, packet, bytes );
    v->taken += reason == NETCODE_MESSAGES_DROP_NONE;
    v->refused += reason != NETCODE_MESSAGES_DROP_NONE;
    const struct netcode_messages_t * before = (const struct netcode_messages_t *) v->before;
    if ( reason != NETCODE_MESSAGES_DROP_NONE ) { /* that may break it: that alone changed, and here it goes on */
        v->m->broken = before->broken;
        v->m->broken_event = before->broken_event;
        v->m->broken_due = before->broken_due;
        v->m->peer_is_broken = before->peer_is_broken;
        v->m->fresh = before->fresh; /* set if there was no room: acks may have counted */
    }
    int no_room = reason == NETCODE_MESSAGES_DROP_NO_ROOM; /* then acks and refusals count all the same */
    int has_acks = bytes > 9 && ( packet[0] & 0x10 || memchr( packet + 9, 0x2f, (size_t) bytes - 9 ) );
    if ( reason != NETCODE_MESSAGES_DROP_NONE && ( !no_room || ( compacted && !has_acks ) ) )
        CHECK( messages_same( v->m, v->before, v->size ) );
    return reason;
}

static int victim_hear( struct victim_t * v )
{
    int reason = victim_take( v, v->craft.data, craft_bytes( &v->craft ) );
    messages_check( v->m );
    return reason;
}

/* Further fragments of a message, and a second one in a packet, with a length of their own. */
/* Of two large messages the first is read: only the other one uses the receive buffer. */
TEST( messages_a_gap_in_the_buffer_is_free )
{
    struct victim_t v;
    struct netcode_messages_stats_t both, one;
    victim_open( &v, NULL );
    for ( int part = 0; part < 3; part++ ) {
        victim_begin( &v );
        craft_fragment( &v.craft, 2, 0, 0, 0, hostile_data, 2337, part );
        CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
        if ( part == 0 ) {
            victim_begin( &v );
            craft_fragment( &v.craft, 2, 0, 1, 0, hostile_data, 2337, 0 );
            CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
        }
    }
    netcode_messages_stats( v.m, &both );
    CHECK_EQ( messages_read( v.m ), 1 );
    netcode_messages_stats( v.m, &one );
    CHECK_EQ( (int) one.receive_buffer_used * 2, (int) both.receive_buffer_used );
    victim_close( &v );
}

TEST( messages_fragments_that_disagree )
{
    struct victim_t v;
    victim_open( &v, NULL );
    for ( int together = 1; together >= 0; together-- ) {
        victim_begin( &v );
        craft_fragment( &v.craft, 2, 0, 0, 0, hostile_data, 2337, 2 );
        if ( !together ) {
            CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
            victim_begin( &v );
        }
        craft_fragment( &v.craft, 2, 0, 0, 0, hostile_data, 66000, 56 );
        CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_FRAGMENT );
    }
    victim_close( &v );
}

/*  An old id next to one that is as new as may be: what is old when the packet is checked stays old while it is
    taken. */
TEST( messages_ids_that_a_packet_moves )
{
    for ( int fragment = 0; fragment < 2; fragment++ ) {
        struct victim_t v;
        victim_open( &v, small_config() );
        for ( int i = 0; i < 40; i++ ) {
            int newest = (int) v.m->newest_id;
            victim_begin( &v );
            craft_message( &v.craft, 2, 0, newest + 1024, 0, hostile_data, 0 );
            for ( int k = 0; k < 50; k++ )
                if ( fragment && k == i )
                    craft_fragment( &v.craft, 2, 0, newest - 32768 + k, 0, hostile_data, 2337, 2 );
                else
                    craft_message( &v.craft, 2, 0, newest - 32768 + k, 0, hostile_data, 10 );
            victim_hear( &v );
        }
        victim_close( &v );
    }
}

/*  A message that the application still reads splits what is free: the packet of one that is larger than both parts is dropped,
    and nothing of it counts. With the next read it fits, and so it does for an application that always reads one. */
TEST( messages_no_room_until_the_next_read )
{
    struct victim_t v;
    struct netcode_messages_config_t config = *small_config();
    struct netcode_message_t message;
    config.max_message_bytes = 16384;
    victim_open( &v, &config );
    for ( int i = 0; i < 22; i++ ) {
        victim_begin( &v );
        craft_message( &v.craft, 2, 0, i, 0, hostile_data, 1000 );
        REQUIRE_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    }
    for ( int i = 0; i < 13; i++ )
        CHECK_EQ( netcode_messages_receive( v.m, &message ), 1 );
    messages_drain( v.m, 0.1 ); /* a LIMIT promises what was read */
    for ( int i = 0; i < 2; i++ ) {
        victim_begin( &v );
        craft_fragment( &v.craft, 2, 0, 22, 0, hostile_data, 12000, 0 );
        CHECK_EQ( victim_hear( &v ), i ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_NO_ROOM );
        CHECK_EQ( v.m->partial != 0, i );
        CHECK_EQ( netcode_messages_receive( v.m, &message ), 1 );
    }
    CHECK_EQ( v.m->stats.drops[NETCODE_MESSAGES_DROP_NO_ROOM], 1 );
    victim_close( &v );
}

/* ---- packets that are malformed in every respect that still looks like a packet ---- */

static int hostile_near( int64_t newest, int window )
{
    switch ( test_random_below( 10 ) ) {
    case 0: return (int) newest + window - test_random_below( 3 );
    case 1: return (int) newest - window + test_random_below( 3 );
    case 2: return (int) newest - 32768 + test_random_below( 1100 );
    case 3: return (int) newest + 32767 - test_random_below( 1100 );
    case 4: return (int) test_random();
    case 5: return (int) newest - test_random_below( 20 );
    default: return (int) newest + 1 + test_random_below( 3 );
    }
}

static int hostile_order( const struct victim_t * v, int channel )
{
    int expected = v->m->channels[channel % v->m->channel_count].expected_order, how = test_random_below( 8 );
    return expected + ( how < 4 ? 0 : how < 6 ? test_random_below( 4 ) : how < 7 ? 1023 - test_random_below( 3 ) : -1 );
}

/* What the victim's application does with streams: it takes, refuses and stops. Each that it takes has one end. */
struct hostile_stream_t {
    uint32_t bytes;
    int ended;
};

static struct hostile_stream_t hostile_streams[1024];
static int hostile_begun, hostile_ended, hostile_refused;

static int hostile_write( void * context, uint32_t offset, const uint8_t * data, int bytes )
{
    const struct hostile_stream_t * stream = (const struct hostile_stream_t *) context;
    (void) data;
    CHECK( bytes > 0 && !stream->ended && (uint64_t) offset + (uint64_t) bytes <= stream->bytes );
    return test_random_below( 8 ) != 0;
}

static void hostile_end( void * context, int complete )
{
    struct hostile_stream_t * stream = (struct hostile_stream_t *) context;
    (void) complete;
    CHECK_EQ( stream->ended++, 0 );
    hostile_ended++;
}

static int hostile_accept( void * context, struct netcode_messages_stream_t * stream )
{
    struct hostile_stream_t * taken = &hostile_streams[hostile_begun % 1024];
    (void) context;
    CHECK( stream->channel >= 0 && stream->channel < 4 );
    if ( test_random_below( 4 ) == 0 ) {
        hostile_refused++;
        return 0;
    }
    hostile_begun++;
    taken->bytes = stream->bytes;
    taken->ended = 0;
    stream->context = taken;
    stream->write_function = hostile_write;
    stream->end_function = hostile_end;
    return 1;
}

static void hostile_read( void * context, uint32_t offset, uint8_t * data, int bytes )
{
    CHECK( bytes > 0 && (uint64_t) offset + (uint64_t) bytes <= *(const uint32_t *) context );
    memset( data, 7, (size_t) bytes );
}

static void hostile_message( struct victim_t * v )
{
    int channel = test_random_below( 40 ) == 0 ? 255 : test_random_below( 4 ), kind = test_random_below( 5 );
    int bytes = test_random_below( 6 ) ? test_random_below( 40 ) : test_random_below( 600 );
    craft_message( &v->craft, kind, channel, hostile_near( v->m->newest_id, 1024 ), hostile_order( v, channel ),
                   hostile_data, bytes );
}

/* A message of which fragments are missing, or 0: any of them. */
static uint32_t hostile_partial( const struct victim_t * v )
{
    uint32_t at = v->m->partial;
    for ( uint32_t next = at; next && test_random_below( 3 ); )
        if ( ( next = nc_arrived_at( v->m, at )->node.below[test_random_below( 2 )] ) != 0 )
            at = next;
    return at;
}

/* The id of a message in fragments: that of one that is here, or another. */
static int hostile_transfer( const struct victim_t * v )
{
    uint32_t partial = hostile_partial( v );
    return partial && test_random_below( 3 ) ? (int) nc_arrived_at( v->m, partial )->node.key
                                             : hostile_near( v->m->newest_id, NC_MESSAGES_IDS );
}

static void hostile_fragment( struct victim_t * v )
{
    static const int totals[] = { 1181, 2336, 2337, 3505, 8192, 8193, 60000 };
    static const uint32_t streams[] = { 0, 1, 1168, 1169, 3000, 60000, 0x80000000u, UINT32_MAX };
    const uint32_t place = hostile_partial( v );
    int kind = 2 + test_random_below( 4 ), channel = test_random_below( 4 ), order = hostile_order( v, channel );
    int id = hostile_transfer( v ), total = kind == 5 ? (int) streams[test_random_below( 8 )]
                                                      : totals[test_random_below( test_random_below( 9 ) ? 5 : 7 )];
    if ( place && test_random_below( 4 ) ) { /* as one that is here, or almost */
        nc_arrived_t * arrived = nc_arrived_at( v->m, place );
        id = (int) arrived->id;
        kind = arrived->kind;
        channel = arrived->channel;
        order = kind == 5 ? (int) arrived->order + ( test_random_below( 10 ) == 0 ) : (int) arrived->order;
        total = (int) arrived->bytes + ( test_random_below( 10 ) == 0 );
    }
    if ( kind != 5 ) {
        int last = ( total + 1167 ) / 1168 - 1;
        craft_fragment( &v->craft, kind, channel, id, order, hostile_data, total,
                        test_random_below( 3 ) ? last : test_random_below( last + 2 ) );
        return;
    }
    uint32_t bytes = (uint32_t) total, last = bytes ? ( bytes - 1 ) / 1168 : 0, index;
    index =
        test_random_below( 3 ) ? last : (uint32_t) test_random_below( 4 ) + (uint32_t) test_random_below( 2 ) * 4094;
    uint64_t rest = index <= last ? bytes - (uint64_t) index * 1168 : 0;
    craft_head( &v->craft, 5 | 8, channel, id, order );
    put( &v->craft.at, bytes, 4 );
    craft_varint( &v->craft, index );
    put_bytes( &v->craft.at, hostile_data, rest < 1168 ? (size_t) rest : 1168 );
}

/* Streams and what is no stream, in flight or not. */
static void hostile_refuse( struct victim_t * v )
{
    uint32_t count = (uint32_t) ( test_random_below( 20 ) ? 1 + test_random_below( 3 ) : test_random_below( 20 ) );
    put( &v->craft.at, 0x2f, 1 );
    put( &v->craft.at, count, 1 );
    for ( uint32_t i = 0; i < count; i++ )
        put( &v->craft.at, v->m->next_id - 1 - (uint32_t) test_random_below( 8 ), 2 );
}

static void hostile_cancel( struct victim_t * v )
{
    const uint32_t place = hostile_partial( v );
    uint32_t bytes = (uint32_t) test_random() & 0xfffffff;
    bytes >>= test_random_below( 28 );
    if ( place && test_random_below( 3 ) )
        craft_cancel( &v->craft, (int) nc_arrived_at( v->m, place )->id, nc_arrived_at( v->m, place )->bytes );
    else
        craft_cancel( &v->craft, test_random_below( 2 ) ? hostile_transfer( v ) : hostile_near( v->m->newest_id, 1024 ),
                      bytes );
}

static void hostile_control( struct victim_t * v )
{
    int how = test_random_below( 8 );
    if ( how < 3 )
        craft_limit( &v->craft,
                     v->m->credit_limit + ( test_random_below( 3 ) ? 0 : ( 1u << 30 ) + 1 ) +
                         (uint32_t) test_random_below( 9999 ),
                     1180 + (uint32_t) test_random_below( 20000 ) );
    else if ( how < 4 ) {
        put( &v->craft.at, 0x07, 1 );
        put( &v->craft.at, 2, 1 );
        put( &v->craft.at, test_random() & 0x7f7f7f7f, 4 );
    } else {
        put( &v->craft.at, how < 6 ? 0x0f : 0x17, 1 );
        put( &v->craft.at, test_random(), 4 );
    }
}

static void hostile_packet( struct victim_t * v )
{
    static const int sizes[] = { 20, 100, 400, 1200 };
    int64_t newest = v->m->newest_received, sent = (int64_t) v->m->next_number - 1;
    int64_t number = test_random_below( 12 ) ? newest + 1 : newest - 260 + test_random_below( 400 );
    int acks = test_random_below( 4 ) != 0 && sent >= 0, limit = sizes[test_random_below( 4 )];
    int64_t ack = sent - ( test_random_below( 20 ) ? test_random_below( 40 ) : -1 );
    ack = ack < 0 ? 0 : ack;
    uint32_t bits = (uint32_t) ( test_random() & test_random() );
    int fragments = 0;
    craft_begin( &v->craft, number, acks ? ack : -1, !acks ? 0 : ack < 32 ? bits & ( ( 1u << ack ) - 1 ) : bits );
    while ( craft_bytes( &v->craft ) < limit ) {
        int what = test_random_below( 20 );
        uint8_t * before = v->craft.at;
        if ( what >= 9 && what < 16 && fragments++ && test_random_below( 50 ) )
            what = 0; /* one in a packet */
        if ( what < 9 )
            hostile_message( v );
        else if ( what < 16 )
            hostile_fragment( v );
        else if ( what < 17 )
            hostile_cancel( v );
        else if ( what < 18 )
            hostile_refuse( v );
        else
            hostile_control( v );
        if ( craft_bytes( &v->craft ) > NETCODE_MAX_PACKET_SIZE ) {
            v->craft.at = before;
            return;
        }
    }
}

/* What an honest application does meanwhile. */
static void victim_live( struct victim_t * v )
{
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    memset( &message, 0, sizeof( message ) );
    v->now += 0.001 * test_random_below( 60 );
    message.kind = test_random_below( NETCODE_MESSAGE_KINDS );
    message.channel = test_random_below( 4 );
    message.data = hostile_data;
    message.bytes = test_random_below( nc_kind_is_reliable( message.kind ) ? 4000 : 300 );
    message.receipt = (uint64_t) test_random_below( 2 );
    if ( test_random_below( 3 ) == 0 )
        netcode_messages_send_message( v->m, &message );
    if ( test_random_below( 6 ) == 0 && v->m->config.accept_stream_function ) {
        static const uint32_t sizes[] = { 0, 1, 5000, UINT32_MAX };
        struct netcode_messages_stream_t stream;
        memset( &stream, 0, sizeof( stream ) );
        stream.bytes = sizes[test_random_below( 4 )];
        stream.context = (void *) (uintptr_t) &sizes[3];
        stream.receipt = 2 + (uint64_t) test_random_below( 3 );
        stream.read_function = hostile_read;
        netcode_messages_send_stream( v->m, &stream );
        if ( test_random_below( 2 ) )
            netcode_messages_cancel_stream( v->m, 2 + (uint64_t) test_random_below( 3 ) );
    }
    while ( netcode_messages_event( v->m, &event ) && event.type != NETCODE_MESSAGES_EVENT_BROKEN )
        ;
    if ( test_random_below( 4 ) == 0 )
        while ( netcode_messages_receive( v->m, &message ) && test_random_below( 30 ) )
            CHECK( message.bytes >= 0 && message.bytes <= 8192 && message.channel < 4 && message.kind < 5 );
    messages_drain( v->m, v->now );
}

/* After all that the next connection works. */
static void victim_recovers( struct victim_t * v )
{
    struct netcode_messages_t * ends[2] = { v->m, netcode_messages_create( small_config(), v->now ) };
    netcode_messages_reset( v->m, v->now );
    messages_check( v->m );
    for ( int i = 0; i < 9; i++ )
        CHECK_EQ( netcode_messages_send( ends[1], 2, NETCODE_MESSAGE_RELIABLE_ORDERED, hostile_data, 3000 ),
                  NETCODE_OK );
    int got = 0;
    for ( int i = 0; i < 120; i++ ) {
        messages_talk( ends, v->now += 1.0 / 60.0, 0 );
        got += messages_read( v->m );
    }
    CHECK_EQ( got, 9 );
    messages_check( v->m );
    netcode_messages_destroy( ends[1] );
}

TEST( messages_hostile_peer )
{
    int taken = 0, refused = 0, streams = 0;
    hostile_refused = 0;
    for ( int round = 0; round < 40; round++ ) {
        struct victim_t v;
        struct netcode_messages_config_t config = *small_config();
        config.accept_stream_function = hostile_accept;
        hostile_begun = hostile_ended = 0;
        config.max_retries = round % 3 == 0 ? 2 : 0;
        victim_open( &v, &config );
        for ( int i = 0; i < 600; i++ ) {
            hostile_packet( &v );
            victim_hear( &v );
            if ( test_random_below( 6 ) == 0 )
                victim_live( &v );
            messages_check( v.m );
        }
        taken += v.taken;
        refused += v.refused;
        victim_recovers( &v );
        CHECK_EQ( hostile_begun, hostile_ended );
        streams += hostile_begun;
        victim_close( &v );
    }
    CHECK_GT( taken, 1000 );
    CHECK_GT( refused, 1000 );
    CHECK_GT( streams, 50 );
    CHECK_GT( hostile_refused, 20 );
}

/* A valid header, and noise behind it. */
TEST( messages_noise )
{
    struct victim_t v;
    victim_open( &v, small_config() );
    for ( int i = 0; i < 20000; i++ ) {
        int bytes = test_random_below( test_random_below( 3 ) ? 30 : 1190 );
        craft_begin( &v.craft, v.m->newest_received + 1, -1, 0 );
        for ( int k = 0; k < bytes; k++ )
            put( &v.craft.at, test_random_below( 2 ) ? test_random() : (uint64_t) test_random_below( 40 ), 1 );
        victim_take( &v, v.craft.data, craft_bytes( &v.craft ) );
        if ( i % 16 == 0 ) {
            messages_check( v.m );
            victim_live( &v );
        }
    }
    CHECK_GT( v.refused, 5000 );
    CHECK_GT( v.taken, 10 ); /* few, where an accepted one has moved the window far ahead */
    victim_recovers( &v );
    victim_close( &v );
}

/* ---- honest packets with one byte changed ---- */

struct changed_t {
    struct victim_t v;
    struct netcode_messages_t * peer;
    uint32_t sent, got;
};

/* What a changed packet does is undone, unless it was refused: then nothing is to be undone. */
static void changed_hear( struct changed_t * c, const uint8_t * packet, int bytes )
{
    uint8_t other[NETCODE_MAX_PACKET_SIZE + 4];
    for ( int i = 0; i < 6; i++ ) {
        int at = test_random_below( test_random_below( 2 ) ? bytes : bytes < 24 ? bytes : 24 ), length = bytes;
        memcpy( other, packet, (size_t) bytes );
        if ( i < 4 )
            other[at] = (uint8_t) ( i & 1 ? test_random() : other[at] ^ ( 1u << test_random_below( 8 ) ) );
        else if ( i < 5 )
            length = at;
        else
            other[length++] = (uint8_t) test_random_below( 48 );
        if ( victim_take( &c->v, other, length ) == NETCODE_MESSAGES_DROP_NONE ) {
            messages_check( c->v.m );
            messages_drain( c->v.m, c->v.m->now + 1.0 );
            messages_check( c->v.m );
            memcpy( c->v.m, c->v.before, c->v.size );
        }
    }
    CHECK_EQ( netcode_messages_process_packet( c->v.m, packet, bytes ), NETCODE_MESSAGES_DROP_NONE );
    messages_check( c->v.m );
}

static void changed_tick( struct changed_t * c, double now )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    struct netcode_message_t message;
    int bytes;
    for ( int i = test_random_below( 4 ); i > 0; i-- ) {
        int kind = test_random_below( 5 ), size = kind == 3 ? test_random_below( 3000 ) : test_random_below( 60 );
        int good = netcode_messages_send( c->peer, test_random_below( 4 ), kind, hostile_data, size ) == NETCODE_OK;
        c->sent += good && kind == NETCODE_MESSAGE_RELIABLE_ORDERED;
    }
    netcode_messages_send( c->v.m, 1, NETCODE_MESSAGE_RELIABLE, hostile_data, 20 );
    netcode_messages_update( c->peer, now );
    while ( ( bytes = netcode_messages_generate_packet( c->peer, packet, (int) sizeof( packet ) ) ) > 0 )
        if ( test_random_below( 10 ) )
            changed_hear( c, packet, bytes );
    while ( netcode_messages_receive( c->v.m, &message ) )
        c->got += message.kind == NETCODE_MESSAGE_RELIABLE_ORDERED;
    netcode_messages_update( c->v.m, now );
    while ( ( bytes = netcode_messages_generate_packet( c->v.m, packet, (int) sizeof( packet ) ) ) > 0 )
        netcode_messages_process_packet( c->peer, packet, bytes );
    messages_read( c->peer );
}

TEST( messages_changed_bytes )
{
    struct changed_t c;
    memset( &c, 0, sizeof( c ) );
    victim_open( &c.v, small_config() );
    netcode_messages_reset( c.v.m, 0.0 );
    c.peer = netcode_messages_create( small_config(), 0.0 );
    for ( int i = 1; i <= 400; i++ )
        changed_tick( &c, i / 60.0 );
    CHECK( c.v.refused > 500 && c.v.taken > 200 );
    CHECK_GT( c.got, 50 );
    CHECK_GE( c.sent, c.got );
    netcode_messages_destroy( c.peer );
    victim_close( &c.v );
}

/* ---- floods ---- */

/* As many frames as a packet holds, of each kind. The work is bounded: seconds would be thousands of times too many. */
TEST( messages_floods_of_tiny_frames )
{
    clock_t start = clock();
    for ( int kind = 0; kind < 7; kind++ ) {
        struct victim_t v;
        victim_open( &v, small_config() );
        for ( int i = 0; i < 100; i++ ) {
            int id = (int) v.m->newest_id + 1;
            victim_begin( &v );
            for ( int k = 0; craft_bytes( &v.craft ) < NETCODE_MAX_PACKET_SIZE - 8; k++ )
                if ( kind == 5 )
                    craft_cancel( &v.craft, id + k, 0 );
                else if ( kind == 6 )
                    put( &v.craft.at, 0x0f, 5 );
                else /* ordered ones come in the worst order: each behind all that wait */
                    craft_message( &v.craft, kind, 0, id + k, 1 + i * 10 + k % 10, "", 0 );
            victim_take( &v, v.craft.data, craft_bytes( &v.craft ) );
            messages_check( v.m );
            CHECK_LE( messages_drain( v.m, 0.02 * i ), 4 ); /* one packet or two, whatever was asked */
        }
        CHECK_LE( v.m->in.used, v.m->in.bytes );
        victim_close( &v );
    }
    CHECK_LT( (double) ( clock() - start ) / CLOCKS_PER_SEC, 20.0 );
}

/*  Orders that come twice, under ids of their own: the first of each counts, the rest is given back, nothing is
    stuck. */
TEST( messages_orders_that_are_forged )
{
    struct victim_t v;
    int read = 0;
    victim_open( &v, small_config() );
    for ( int i = 0; i < 200; i++ ) {
        int expected = v.m->channels[1].expected_order;
        craft_begin( &v.craft, v.number++, messages_newest( v.m ), 0 );
        for ( int k = 0; k < 20; k++ )
            craft_message( &v.craft, 3, 1, (int) v.m->newest_id + 1 + k, expected + k * 7 % 5 % ( 1 + i % 5 ),
                           hostile_data, 4 );
        CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
        CHECK_EQ( (uint16_t) ( v.m->channels[1].expected_order - expected ), 1 + i % 5 );
        read += messages_read( v.m );
        CHECK_EQ( v.m->in.used, 0 );
        messages_drain( v.m, 0.1 * i );
    }
    CHECK_EQ( read, 600 );
    victim_close( &v );
}

/* Acks of everything, again and again, of what is lost, of what is on its way: no more than once each. */
TEST( messages_acks_that_are_forged )
{
    struct victim_t v;
    struct netcode_messages_event_t event;
    struct netcode_message_t message;
    int acked = 0;
    victim_open( &v, small_config() );
    memset( &message, 0, sizeof( message ) );
    message.kind = NETCODE_MESSAGE_RELIABLE;
    message.data = hostile_data;
    message.bytes = 100;
    for ( uint32_t i = 1; i <= 300; i++ ) {
        message.receipt = i;
        REQUIRE_EQ( netcode_messages_send_message( v.m, &message ), NETCODE_OK );
        messages_skip_nothing( v.m );
        messages_drain( v.m, 0.05 * i );
        craft_begin( &v.craft, v.number++, messages_newest( v.m ), v.m->next_number > 32 ? 0xffffffff : 0 );
        craft_limit( &v.craft, v.m->credit_limit + 1000, 8192 );
        CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
        while ( netcode_messages_event( v.m, &event ) )
            acked += event.type == NETCODE_MESSAGES_EVENT_ACKED;
    }
    CHECK_EQ( acked, 300 );
    CHECK_EQ( v.m->out.used, 0 );
    craft_begin( &v.craft, v.number++, (int64_t) v.m->next_number, 0 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_ACK );
    victim_close( &v );
}

/* Limits to the edge of their numbers, and over it: what the sender may send is never so much that it seems to be nothing. */
TEST( messages_limits_that_are_forged )
{
    struct victim_t v;
    uint64_t begun;
    victim_open( &v, small_config() );
    for ( int i = 0; i < 12; i++ ) {
        craft_begin( &v.craft, v.number++, messages_newest( v.m ), 0 );
        craft_limit( &v.craft, v.m->credit_limit + ( 1u << 29 ), 1180 );
        CHECK_EQ( victim_hear( &v ), i < 1 ? NETCODE_MESSAGES_DROP_NONE : NETCODE_MESSAGES_DROP_LIMIT );
        v.number -= i >= 1;
        craft_begin( &v.craft, v.number++, messages_newest( v.m ), 0 ); /* what was refused did not acknowledge */
        CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
        begun = v.m->stats.messages_sent;
        CHECK_EQ( netcode_messages_send( v.m, 0, NETCODE_MESSAGE_RELIABLE, hostile_data, 1000 ), NETCODE_OK );
        messages_drain( v.m, 0.1 * i );
        CHECK_EQ( v.m->stats.messages_sent, begun + 1 );
        messages_check( v.m );
    }
    victim_close( &v );
}
