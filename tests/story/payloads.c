/*  Story: where payloads lie. Programs cast what they receive to a struct: it is aligned to 16 bytes however it came, and 8
    zero bytes follow it. */

enum { PAYLOADS_SOCKET, PAYLOADS_PROCESS, PAYLOADS_LOOPBACK, PAYLOADS_WAYS };

/* A block that is aligned to 8 bytes and no more, as an allocator of the application may give. */
static void * payloads_allocate( void * context, size_t bytes )
{
    (void) context;
    uint8_t * block = (uint8_t *) malloc( bytes + 8 );
    return block ? block + 8 : NULL;
}

static void payloads_free( void * context, void * pointer )
{
    (void) context;
    if ( pointer )
        free( (uint8_t *) pointer - 8 );
}

static struct world_t * payloads_open( int has_events )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.allocate_function = w->client_config.allocate_function = payloads_allocate;
    w->server_config.free_function = w->client_config.free_function = payloads_free;
    w->server_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO; /* so that each sequence fits into one byte */
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    w->server_config.events = w->client_config.events = has_events;
    return world_fill( w, 1, 2, 1 );
}

static void payloads_check( const uint8_t * data, int got, int bytes, int tag )
{
    static const uint8_t zeros[8] = { 0 };
    uint8_t want[NETCODE_MAX_PACKET_SIZE];
    REQUIRE( data != NULL );
    REQUIRE_EQ( got, bytes );
    CHECK_EQ( (uintptr_t) data % 16, 0 );
    payload_fill( want, bytes, tag );
    CHECK_MEM( data, want, (size_t) bytes );
    CHECK_MEM( data + bytes, zeros, 8 );
}

/* Reads one payload, of the server or else of the client: as an event, or by its own call. */
static void payloads_read( struct world_t * w, int of_server, int as_event, int bytes, int tag )
{
    struct netcode_event_t event;
    int got = 0;
    memset( &event, 0, sizeof( event ) );
    if ( !as_event )
        event.data = of_server ? netcode_server_receive_packet( w->servers[0], 0, &got, NULL )
                               : netcode_client_receive_packet( w->clients[0], &got, NULL );
    while ( as_event && event.type != NETCODE_EVENT_PAYLOAD )
        REQUIRE( of_server ? netcode_server_next_event( w->servers[0], &event )
                           : netcode_client_next_event( w->clients[0], &event ) );
    payloads_check( event.data, as_event ? event.bytes : got, bytes, tag );
    if ( of_server )
        netcode_server_free_packet( w->servers[0], event.data );
    else
        netcode_client_free_packet( w->clients[0], event.data );
}

/* Brings one payload in. `sequence_bytes` are those of its packet's sequence. */
static void payloads_bring( struct world_t * w, const struct recipe_t * r, int to_server, int way, int sequence_bytes,
                            int bytes, int tag, uint64_t sequence )
{
    uint8_t body[NETCODE_MAX_PACKET_SIZE], out[NETCODE_MAX_PACKET_SIZE + 32];
    const struct netcode_address_t * addresses[2] = { &w->server_addresses[0], &w->client_addresses[0] };
    struct netcode_address_t from = *addresses[to_server];
    payload_fill( body, bytes, tag );
    if ( way == PAYLOADS_LOOPBACK && to_server )
        netcode_server_process_loopback_packet( w->servers[0], 0, body, bytes, sequence );
    else if ( way == PAYLOADS_LOOPBACK )
        netcode_client_process_loopback_packet( w->clients[0], body, bytes, sequence );
    if ( way == PAYLOADS_LOOPBACK )
        return;
    int size = wire_seal( out, NETCODE_PACKET_PAYLOAD, sequence, sequence_bytes,
                          to_server ? r->to_server_key : r->to_client_key, body, bytes );
    if ( way == PAYLOADS_SOCKET ) {
        world_inject( w, &from, addresses[!to_server], out, size );
        world_step( w );
    } else if ( to_server )
        netcode_server_process_packet( w->servers[0], &from, out, size );
    else
        netcode_client_process_packet( w->clients[0], &from, out, size );
}

/* Client 0 stands in slot 0, over the network or by loopback. */
static struct recipe_t payloads_connect( struct world_t * w, int by_loopback )
{
    struct recipe_t r = recipe_for( w, 1 );
    if ( by_loopback ) {
        netcode_client_connect_loopback( w->clients[0], 0, 2 );
        netcode_server_connect_loopback_client( w->servers[0], 0, 1, NULL );
    } else {
        world_connect_recipe( w, 0, &r );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    }
    return r;
}

static void payloads_all_lengths( int to_server, int way, int as_event )
{
    static const int sizes[] = { 1, 7, 8, 15, 16, 17, 100, 1199, 1200 };
    struct world_t * w = payloads_open( as_event );
    struct recipe_t r = payloads_connect( w, way == PAYLOADS_LOOPBACK );
    uint64_t sequence = 60; /* newer than all that the real ones sent */
    int size, length;
    for ( size = 0; size < (int) ( sizeof( sizes ) / sizeof( sizes[0] ) ); size++ )
        for ( length = 1; length <= 8; length++ ) {
            payloads_bring( w, &r, to_server, way, length, sizes[size], length, ++sequence );
            payloads_read( w, to_server, as_event, sizes[size], length );
        }
    world_close( w );
}

TEST( payloads_are_aligned_whatever_the_sequences_length )
{
    int to_server, way, as_event;
    for ( to_server = 0; to_server < 2; to_server++ )
        for ( way = 0; way < PAYLOADS_WAYS; way++ )
            for ( as_event = 0; as_event < 2; as_event++ )
                payloads_all_lengths( to_server, way, as_event );
}
