/*  Story: the edges of the public functions: indices past the end, addresses that are not there, loopback without a
    callback, what the log says of it. */

/* Every line that the objects of this file's worlds logged. */
static char edges_lines[1 << 16];

static void edges_log( void * context, int level, const char * text )
{
    size_t at = strlen( edges_lines );
    (void) context;
    (void) level;
    test_log_lines++;
    if ( at + strlen( text ) + 2 < sizeof( edges_lines ) )
        snprintf( edges_lines + at, sizeof( edges_lines ) - at, "%s\n", text );
}

/* How often the log says this. */
static int edges_said( const char * text )
{
    int count = 0;
    for ( const char * at = edges_lines; ( at = strstr( at, text ) ) != NULL; at++ )
        count++;
    return count;
}

static struct world_t * edges_world( int level )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.log_callback = w->client_config.log_callback = edges_log;
    edges_lines[0] = 0;
    netcode_log_level( level );
    return w;
}

/* Nothing is known of such a slot, and nothing is wrong with asking. */
static void edges_ask( struct netcode_server_t * s, int slot )
{
    struct netcode_server_client_stats_t stats;
    int bytes, asserts = test_state.asserts, lines = test_log_lines;
    memset( &stats, 0x55, sizeof( stats ) );
    CHECK_EQ( netcode_server_client_connected( s, slot ), 0 );
    CHECK_EQ( netcode_server_client_disconnect_reason( s, slot ), NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE );
    CHECK_EQ( netcode_server_client_loopback( s, slot ), 0 );
    CHECK_EQ( netcode_server_client_id( s, slot ), 0 );
    CHECK( netcode_server_client_address( s, slot ) == NULL );
    CHECK( netcode_server_client_user_data( s, slot ) == NULL );
    CHECK_EQ( netcode_server_client_session( s, slot ), 0 );
    CHECK_EQ( netcode_server_next_packet_sequence( s, slot ), 0 );
    CHECK( netcode_server_receive_packet( s, slot, &bytes, NULL ) == NULL );
    netcode_server_client_stats( s, slot, &stats );
    CHECK_EQ( stats.session, 0 );
    CHECK_EQ( test_state.asserts, asserts );
    CHECK_EQ( test_log_lines, lines );
}

TEST( slots_past_the_last_one_can_be_asked_for )
{
    static const int slots[] = { 2, 255, 65535, 2147483647 };
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    REQUIRE( world_join( w, 0, 1 ) );
    for ( int i = 0; i < 4; i++ )
        edges_ask( w->servers[0], slots[i] );
    netcode_server_stop( w->servers[0] );
    for ( int i = 0; i < 4; i++ )
        edges_ask( w->servers[0], slots[i] );
    world_make_server( w, ++w->server_count - 1 ); /* never started */
    for ( int i = 0; i < 256; i++ )
        edges_ask( w->servers[1], i );
}

/* Who does something to a slot that is not there makes a mistake, perhaps on every tick: it is said once a second. */
TEST( acting_on_slots_past_the_last_one_is_logged_once_a_second )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    uint8_t data[10] = { 0 };
    int asserts = test_state.asserts, calls = 0;
    world_add_server( w, 2 );
    struct netcode_server_t * s = w->servers[0];
    test_state.expecting = 1;
    for ( double end = w->time + 2.5; w->time < end; calls++ ) {
        netcode_server_send_packet( s, 2, data, 10 );
        netcode_server_send_packet_to_session( s, 3, 1, data, 10 );
        netcode_server_disconnect_client( s, 4 );
        netcode_server_connect_loopback_client( s, 5, 1, NULL );
        netcode_server_disconnect_loopback_client( s, 6 );
        netcode_server_process_loopback_packet( s, 7, data, 10, 1 );
        world_step( w );
    }
    test_state.expecting = 0;
    if ( TEST_ASSERTS_WORK )
        CHECK_EQ( test_state.asserts - asserts, 6 * calls );
    CHECK_EQ( edges_said( "a call for slot " ), 3 );
    CHECK_EQ( edges_said( "a call for slot 2 was refused: it has 2 slots (and 0 calls before it)" ), 1 );
    CHECK_EQ( edges_said( "was refused: it has 2 slots (and 599 calls before it)" ), 2 );
    netcode_server_stop( s ); /* nothing is there, and nothing is said */
    netcode_server_send_packet( s, 2, data, 10 );
    netcode_server_disconnect_client( s, 2 );
    CHECK_EQ( edges_said( "a call for slot " ), 3 );
}

/* NULL or nothing for the second address: one address, as in the known API. */
TEST( a_dual_object_without_its_second_address_has_one )
{
    static const char * const seconds[] = { NULL, "" };
    for ( int i = 0; i < 2; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct netcode_client_config_t client_config = w->client_config;
        struct netcode_server_config_t server_config = w->server_config;
        client_config.callback_context = &w->client_parties[0];
        server_config.callback_context = &w->server_parties[0];
        client_config.network_simulator = server_config.network_simulator = w->net;
        struct netcode_client_t * c =
            netcode_client_create_dual( "10.2.0.1:50000", seconds[i], &client_config, w->time );
        struct netcode_server_t * s =
            netcode_server_create_dual( "10.2.0.2:40000", seconds[i], &server_config, w->time );
        REQUIRE( c != NULL && s != NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_NONE );
        CHECK_EQ( netcode_client_get_port( c ), 50000 );
        CHECK_EQ( netcode_server_get_port( s ), 40000 );
        netcode_client_destroy( c );
        netcode_server_destroy( s );
        BAD( CHECK( netcode_client_create_dual( NULL, "10.2.0.1:1", &client_config, w->time ) == NULL ) );
        BAD( CHECK( netcode_server_create_dual( NULL, "10.2.0.1:1", &server_config, w->time ) == NULL ) );
        world_close( w );
    }
}

/* A player's token is read only: it may lie in constant memory. */
TEST( a_constant_token_connects )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    mint( &r, w->tokens[0] );
    const uint8_t * token = w->tokens[0];
    void ( *connect_with )( struct netcode_client_t *, const uint8_t * ) = netcode_client_connect;
    connect_with( w->clients[0], token );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
}

/* Without a callback a loopback client is there all the same; what is sent to it or by it goes nowhere, said once. */
TEST( loopback_without_a_callback )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    w->client_config.send_loopback_packet_callback = NULL;
    w->server_config.send_loopback_packet_callback = NULL;
    world_add_server( w, 4 );
    world_add_client( w );
    netcode_client_connect_loopback( w->clients[0], 1, 4 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 7, NULL );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 1 ), 1 );
    CHECK_EQ( test_state.failures, 0 );
    for ( int i = 0; i < 3; i++ ) {
        client_send( w, 0, 10, i );
        server_send( w, 0, 1, 10, i );
        netcode_server_broadcast( w->servers[0], (const uint8_t *) "x", 1, -1 );
    }
    CHECK_EQ( edges_said( "client: loopback payloads go nowhere" ), 1 );
    CHECK_EQ( edges_said( "server: loopback payloads go nowhere" ), 1 );
    netcode_client_process_loopback_packet( w->clients[0], (const uint8_t *) "x", 1, 1 );
    netcode_server_process_loopback_packet( w->servers[0], 1, (const uint8_t *) "x", 1, 1 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( server_drain( w, 0, 1 ), 1 );
    CHECK_EQ( server_stats( w, 0 ).clients, 1 );
}

/* Each refusal of a loopback client says which it is. */
TEST( refused_loopback_clients_are_told_why )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    world_add_server( w, 4 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 7, NULL );
    netcode_server_connect_loopback_client( w->servers[0], 2, 7, NULL );
    CHECK_EQ( edges_said( "no loopback client 7 in slot 2: a client with this id is connected" ), 1 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 8, NULL );
    CHECK_EQ( edges_said( "no loopback client 8 in slot 1: the slot is in use" ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_EQ( edges_said( "\n" ), 2 );
}

/* 67: a private key that was never set works, as known programs use one in their tests; each start says so. */
TEST( threat_67_a_private_key_of_zeros )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
    uint8_t keys[2][NETCODE_KEY_BYTES] = { { 0 }, { 0 } };
    struct recipe_t r;
    memset( w->server_config.private_key, 0, NETCODE_KEY_BYTES );
    world_add_server( w, 2 );
    world_add_client( w );
    CHECK_EQ( edges_said( "a private key is all zeros" ), 1 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( edges_said( "a private key is all zeros" ), 2 );
    r = recipe_for( w, 1 );
    memset( r.private_key, 0, NETCODE_KEY_BYTES );
    world_connect_recipe( w, 0, &r );
    CHECK( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    keys[0][31] = keys[1][0] = 1;
    netcode_server_set_private_keys( w->servers[0], keys[0], 2 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( edges_said( "a private key is all zeros" ), 2 );
    keys[1][0] = 0; /* any one of them */
    netcode_server_set_private_keys( w->servers[0], keys[0], 2 );
    CHECK_EQ( edges_said( "a private key is all zeros" ), 3 );
    netcode_server_start( w->servers[0], 2 );
    CHECK_EQ( edges_said( "a private key is all zeros" ), 4 );
}

/*  70: a keep-alive that names a slot that can not be connects all the same, since a deployed server names its client ids
    there. */
TEST( threat_70_impossible_slots_connect )
{
    static const struct {
        uint32_t sent[2];
        int slot, slots;
    } rows[] = { { { 0, 1 }, 0, 1 },
                 { { 3, 4 }, 3, 4 },
                 { { 65534, 65535 }, 65534, 65535 },
                 { { 65534, UINT32_MAX }, 65534, 65535 },
                 { { 0, 0 }, -1, 0 },
                 { { 4, 4 }, -1, 4 },
                 { { 70001, 4 }, -1, 4 },
                 { { 65535, 65536 }, -1, 65535 },
                 { { 65536, 100000 }, -1, 65535 },
                 { { 0x7ffffffe, 0x7fffffff }, -1, 65535 },
                 { { 0x80000000u, 0x90000000u }, -1, 65535 },
                 { { UINT32_MAX, 0 }, -1, 0 },
                 { { UINT32_MAX, UINT32_MAX }, -1, 65535 } };
    for ( int i = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ ) {
        struct world_t * w = edges_world( NETCODE_LOG_LEVEL_ERROR );
        struct netcode_event_t event;
        struct recipe_t r;
        uint8_t body[2048], *at = body;
        const struct world_datagram_t * sent;
        int type;
        uint64_t sequence;
        world_add_server( w, 4 );
        world_add_client( w );
        w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
        r = world_connect( w, 0, 2 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
        put( &at, rows[i].sent[0], 4 );
        put( &at, rows[i].sent[1], 4 );
        send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, 1, body, 8 );
        send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, 2, "hello", 5 );
        w->cut_types = 0;
        world_run( w, 0.05 );
        REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
        CHECK_EQ( netcode_client_index( w->clients[0] ), rows[i].slot );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), rows[i].slots );
        CHECK_EQ( edges_said( "its index is -1" ), rows[i].slot < 0 );
        while ( netcode_client_next_event( w->clients[0], &event ) ) {
            CHECK_EQ( event.client_index, rows[i].slot );
            if ( event.type == NETCODE_EVENT_PAYLOAD )
                netcode_client_free_packet( w->clients[0], event.data );
        }
        world_run( w, 0.3 ); /* its own keep-alives carry the numbers as they came */
        sent = world_last( w, &w->client_addresses[0], &w->server_addresses[0], NETCODE_PACKET_KEEP_ALIVE );
        REQUIRE( sent != NULL );
        REQUIRE_EQ( wire_open( sent->data, sent->bytes, r.to_server_key, &type, &sequence, body ), 8 );
        CHECK_EQ( get( body, 4 ), rows[i].sent[0] );
        CHECK_EQ( get( body + 4, 4 ), rows[i].sent[1] );
        netcode_client_disconnect( w->clients[0] );
        CHECK_EQ( netcode_client_index( w->clients[0] ), 0 );
        CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 0 );
        world_close( w );
    }
}

/* 71: the clock made a step past the timeout: the slot ends, and no keep-alive goes to it first. */
TEST( threat_71_a_slot_that_times_out_gets_no_packet )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    int mark;
    REQUIRE( world_join( w, 0, 1 ) );
    world_destroy_client( w, 1 );
    w->cut_from = w->client_addresses[0];
    mark = w->records.count;
    w->time += 1000.0;
    netcode_server_update( w->servers[0], w->time );
    CHECK_EQ( netcode_server_client_disconnect_reason( w->servers[0], 0 ),
              NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 0 );
}

/* ---- the client's report where a server speaks and its packets are refused ---- */

static struct netcode_client_report_t edges_report( struct world_t * w )
{
    struct netcode_client_report_t report;
    netcode_client_report( w->clients[0], &report );
    return report;
}

/* Denied packets with a byte of body, as one deployed server sends them: refused unread. */
TEST( the_report_names_refused_denials )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r;
    w->cut_from = w->server_addresses[0];
    r = world_connect( w, 0, 1 );
    world_step( w );
    CHECK_EQ( edges_report( w ).refused, 0 );
    CHECK_EQ( edges_report( w ).refused_as, NETCODE_DROP_NONE );
    CHECK_STR( edges_report( w ).text, "Asking the server; no answer yet." );
    for ( int i = 0; i < 49; i++ ) {
        send_to_client( w, &r, NETCODE_PACKET_DENIED, (uint64_t) i + 1, "x", 1 );
        world_run( w, 0.1 );
    }
    CHECK_EQ( edges_report( w ).refused, 49 );
    CHECK_STR( edges_report( w ).text, "The server's packets were refused (49, the last one as WRONG_BODY_SIZE): the "
                                       "packet's data has not the size that its type demands." );
    REQUIRE(
        world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 5.5 ) ); /* they kept nothing alive */
    CHECK_EQ( edges_report( w ).refused, 49 );
    CHECK_EQ( edges_report( w ).refused_as, NETCODE_DROP_WRONG_BODY_SIZE );
    CHECK( strstr( edges_report( w ).text, "(49, the last one as WRONG_BODY_SIZE)" ) != NULL );
}

/* A server that answers under other keys, at first and behind the challenge and in the middle of a connection. */
TEST( the_report_names_a_server_with_other_keys )
{
    static const int states[] = { NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT,
                                  NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT,
                                  NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT };
    for ( int i = 0; i < 3; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct recipe_t r, other;
        uint8_t body[308] = { 0 };
        r = world_connect( w, 0, 1 );
        if ( i == 1 ) {
            w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
        }
        if ( i == 2 )
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        w->cut_from = w->server_addresses[0];
        world_run( w, 0.1 );
        CHECK_EQ( edges_report( w ).refused, 0 );
        other = r;
        other.to_client_key[0] ^= 1;
        for ( int k = 0; k < 45; k++ ) {
            send_to_client( w, &other, i ? NETCODE_PACKET_KEEP_ALIVE : NETCODE_PACKET_CHALLENGE,
                            ( (uint64_t) 1 << 63 ) + (uint64_t) k, body, i ? 8 : 308 );
            world_run( w, 0.1 );
        }
        REQUIRE( world_until( w, 0, states[i], 1.0 ) );
        CHECK_EQ( edges_report( w ).refused, 45 );
        CHECK_EQ( edges_report( w ).refused_as,
                  i == 2 ? NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD : NETCODE_DROP_AUTHENTICATION_FAILED );
        CHECK( strncmp( edges_report( w ).text, "The server's packets were refused (45, ", 39 ) == 0 );
        world_close( w );
    }
}

/* What was accepted since, what came twice, and what was for a full queue, is no refusal. */
TEST( the_report_forgets_refusals_when_a_packet_is_accepted )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t junk[40] = { 0x15 };
    struct recipe_t r;
    uint64_t sequence;
    w->client_config.packet_quota = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    r = world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    sequence = newest_to_client( w, &r ) + 1;
    w->cut_from = w->server_addresses[0];
    inject_to_client( w, junk, 40 );
    send_to_client( w, &r, NETCODE_PACKET_DENIED, sequence + 9, NULL, 0 ); /* a state that is over */
    world_step( w );
    CHECK_EQ( edges_report( w ).refused, 1 );
    CHECK_STR( edges_report( w ).text, "Connected." );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, "a", 1 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, "a", 1 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence + 1, "b", 1 );
    world_step( w );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_REPLAYED ), 1 );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 1 );
    CHECK_EQ( edges_report( w ).refused, 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT, 6.0 ) );
    CHECK_STR( edges_report( w ).text, "The connection was lost: nothing came from the server any more." );
}

/* ---- 68: numbers at the edge, in every field and every argument ---- */

static const int edges_numbers[] = { (int) 0x80000000, -1, 0, 1, 0x3fffffff, 0x40000000, 0x7fffffff };
enum { EDGES_NUMBERS = sizeof( edges_numbers ) / sizeof( edges_numbers[0] ) };

/* Memory as on a small machine: what is larger than 64 MiB is not there. */
static void * edges_allocate( void * context, size_t bytes )
{
    return bytes > ( (size_t) 64 << 20 ) ? NULL : allocator_allocate( context, bytes );
}

/* Every int but override_send_and_receive, a flag that is refused by name where its callbacks are missing. */
#define EDGES_FIELD( type, field )                                  \
    {                                                               \
#field, offsetof( struct netcode_##type##_config_t, field ) \
    }

static const struct {
    const char * name;
    size_t offset;
} edges_client_fields[] = { EDGES_FIELD( client, sequence_base ),    EDGES_FIELD( client, packet_pool_buffers ),
                            EDGES_FIELD( client, packet_quota ),     EDGES_FIELD( client, update_budget ),
                            EDGES_FIELD( client, batch_sends ),      EDGES_FIELD( client, receive_buffer_bytes ),
                            EDGES_FIELD( client, send_buffer_bytes ) },
  edges_server_fields[] = { EDGES_FIELD( server, max_connect_token_lifetime ),
                            EDGES_FIELD( server, sequence_base ),
                            EDGES_FIELD( server, packet_pool_buffers ),
                            EDGES_FIELD( server, packet_quota ),
                            EDGES_FIELD( server, update_budget ),
                            EDGES_FIELD( server, batch_sends ),
                            EDGES_FIELD( server, receive_buffer_bytes ),
                            EDGES_FIELD( server, send_buffer_bytes ),
                            EDGES_FIELD( server, num_public_addresses ),
                            EDGES_FIELD( server, replace_existing_clients ),
                            EDGES_FIELD( server, pending_handshakes ),
                            EDGES_FIELD( server, consumed_tokens ),
                            EDGES_FIELD( server, kernel_filter ),
                            EDGES_FIELD( server, share_port ) };

/* Whoever could be made connects, and a payload goes each way; who could not says why. */
static void edges_talk( struct world_t * w, struct netcode_client_t * c, struct netcode_server_t * s )
{
    if ( !c || !s || !netcode_server_running( s ) )
        return;
    struct recipe_t r = recipe_for( w, 1 );
    r.expire = FOREVER;
    world_connect_recipe( w, 0, &r );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 3.0 ) );
    world_run( w, 0.2 );
    client_send( w, 0, 100, 1 );
    server_send( w, 0, 0, 100, 2 );
    netcode_client_flush( c );
    netcode_server_flush( s );
    world_run( w, 0.2 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

static void edges_client_field( size_t offset, int number )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.allocate_function = edges_allocate;
    world_add_server( w, 2 );
    memcpy( (char *) &w->client_config + offset, &number, sizeof( int ) );
    if ( netcode_client_memory( &w->client_config ) > ( (size_t) 64 << 20 ) ) {
        struct netcode_client_config_t config = w->client_config;
        config.network_simulator = w->net;
        config.callback_context = &w->client_parties[0];
        CHECK( netcode_client_create( "10.9.0.1:1", &config, w->time ) == NULL );
        CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED );
        world_close( w );
        return;
    }
    world_add_client( w );
    edges_talk( w, w->clients[0], w->servers[0] );
    world_close( w );
}

static void edges_server_field( size_t offset, int number )
{
    struct world_t * w = world_new( CLEAN );
    size_t bytes;
    w->server_config.allocate_function = edges_allocate;
    w->server_config.callback_context = &w->server_parties[0];
    memcpy( (char *) &w->server_config + offset, &number, sizeof( int ) );
    bytes = netcode_server_memory( &w->server_config, 1 );
    CHECK_GT( bytes, 100000 );
    CHECK( bytes <= netcode_server_memory( &w->server_config, NETCODE_MAX_SLOTS ) );
    if ( offset == offsetof( struct netcode_server_config_t, num_public_addresses ) && number > 0 ) {
        CHECK( netcode_server_create( "10.0.0.1:40000", &w->server_config, w->time ) == NULL );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
        world_close( w );
        return;
    }
    world_make_server( w, w->server_count++ );
    world_add_client( w );
    netcode_server_start( w->servers[0], 2 );
    CHECK( netcode_server_running( w->servers[0] ) || bytes > ( (size_t) 64 << 20 ) );
    edges_talk( w, w->clients[0], w->servers[0] );
    world_close( w );
}

TEST( threat_68_numbers_at_the_edge_in_configs )
{
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    for ( int i = 0; i < EDGES_NUMBERS; i++ ) {
        for ( size_t k = 0; k < sizeof( edges_client_fields ) / sizeof( edges_client_fields[0] ); k++ ) {
            int before = test_state.failures;
            edges_client_field( edges_client_fields[k].offset, edges_numbers[i] );
            if ( test_state.failures != before )
                printf( "    client: %s = %d\n", edges_client_fields[k].name, edges_numbers[i] );
        }
        for ( size_t k = 0; k < sizeof( edges_server_fields ) / sizeof( edges_server_fields[0] ); k++ ) {
            int before = test_state.failures;
            edges_server_field( edges_server_fields[k].offset, edges_numbers[i] );
            if ( test_state.failures != before )
                printf( "    server: %s = %d\n", edges_server_fields[k].name, edges_numbers[i] );
        }
    }
}

/* Every field of the simulator, its times too. */
TEST( threat_68_numbers_at_the_edge_in_the_simulator )
{
    static const float numbers[] = { -1.0f, 0.0f, 1.0f, 99.9f, 100.0f, 1e9f, 3.4e38f, -3.4e38f };
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    for ( int field = 0; field < 5; field++ )
        for ( int i = 0; i < 8 + 3; i++ ) {
            struct world_t * w = world_open( CLEAN, 1, 2, 1 );
            struct netcode_socket_t a, b;
            struct netcode_address_t to = address_of( "10.9.0.2:2" ), from = address_of( "10.9.0.1:1" );
            uint8_t data[8] = { 1 }, in[8];
            struct netcode_datagram_t out = { to, data, 8, 8, 0, 0 }, place = { to, in, 0, 8, 0, 0 };
            float * fields[] = { &w->net->latency_milliseconds, &w->net->jitter_milliseconds,
                                 &w->net->packet_loss_percent, &w->net->duplicate_packet_percent,
                                 &w->net->reorder_packet_percent };
            int copies = 0;
            *fields[field] = i < 8    ? numbers[i]
                             : i == 8 ? (float) NOT_A_NUMBER
                             : i == 9 ? (float) ENDLESS
                                      : (float) -ENDLESS;
            REQUIRE_EQ( netcode_network_simulator_socket( w->net, &from, &a ), NETCODE_OK );
            REQUIRE_EQ( netcode_network_simulator_socket( w->net, &to, &b ), NETCODE_OK );
            for ( int k = 0; k < 50; k++ )
                CHECK_EQ( a.send( a.context, &out, 1 ), 1 );
            netcode_network_simulator_update( w->net, w->time + 1e6 );
            while ( b.receive( b.context, &place, 1 ) == 1 )
                copies++;
            CHECK_GE( copies, 0 );
            CHECK_LE( copies, 100 );
            if ( field == 2 && i < 2 ) /* at or below no loss, nothing is lost */
                CHECK_EQ( copies, 50 );
            netcode_network_simulator_reset( w->net );
            a.close( a.context );
            b.close( b.context );
            world_close( w );
        }
}

/* Every number that a function of client or server takes. What is a mistake is refused; nothing else happens. */
TEST( threat_68_numbers_at_the_edge_in_arguments )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 2 );
    struct netcode_client_t * c = w->clients[0];
    struct netcode_server_t * s = w->servers[0];
    struct netcode_address_t odd = w->client_addresses[1];
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    static uint8_t data[NETCODE_MAX_PACKET_SIZE + 1];
    const char * names[1] = { "10.0.0.1:40000" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    test_state.expecting = 1;
    for ( int i = 0; i < EDGES_NUMBERS; i++ ) {
        int n = edges_numbers[i], bad_size = n == 1 ? 0 : n,
            small = n > NETCODE_MAX_PACKET_SIZE ? NETCODE_MAX_PACKET_SIZE + 1 : n;
        netcode_client_send_packet( c, data, bad_size );
        netcode_server_send_packet( s, 0, data, bad_size );
        netcode_server_send_packet( s, n == 0 ? 1 : n, data, 10 );
        netcode_server_send_packet_to_session( s, n, UINT64_MAX, data, 10 );
        netcode_server_broadcast( s, data, bad_size, n );
        netcode_server_disconnect_client( s, n == 0 ? 1 : n );
        netcode_client_process_packet( c, &w->server_addresses[0], data, small );
        netcode_client_process_packet( c, &w->server_addresses[0], data, n > 1300 ? n : 0 );
        netcode_server_process_packet( s, &w->client_addresses[0], data, small );
        netcode_server_process_packet( s, &w->client_addresses[0], data, n > 1300 ? n : 0 );
        netcode_client_connect_loopback( w->clients[1], n, n );
        netcode_client_connect_loopback( w->clients[1], 0, n );
        netcode_client_process_loopback_packet( w->clients[1], data, bad_size, UINT64_MAX );
        netcode_client_disconnect_loopback( w->clients[1] );
        netcode_server_connect_loopback_client( s, n == 1 ? 2 : n, UINT64_MAX, NULL );
        netcode_server_process_loopback_packet( s, n, data, bad_size, UINT64_MAX );
        netcode_server_disconnect_loopback_client( s, n );
        netcode_client_update( c, w->time + (double) n * 0.0 );
        netcode_client_wait( c, (double) ( n < 0 ? n : 0 ) );
        netcode_server_wait( s, (double) ( n < 0 ? n : 0 ) );
        CHECK_EQ( netcode_server_set_private_keys( s, world_key, n == 1 ? 5 : n ), NETCODE_ERROR );
        if ( n < 1 || n > NETCODE_MAX_SLOTS ) {
            netcode_server_start( s, n );
            CHECK_EQ( netcode_server_memory( &w->server_config, n ), 0 );
        }
        CHECK_EQ( netcode_server_max_clients( s ), 2 );
        CHECK_EQ( netcode_generate_connect_token( n == 1 ? 33 : n, names, names, 30, 5, 1, 2, world_key, NULL, token ),
                  NETCODE_ERROR );
        REQUIRE_EQ( netcode_generate_connect_token( 1, names, names, n, n, UINT64_MAX, UINT64_MAX, world_key, NULL,
                                                    token ),
                    NETCODE_OK );
        REQUIRE_EQ( netcode_connect_token_info( token, &info ), NETCODE_OK );
        CHECK_EQ( info.timeout_seconds, n );
        CHECK( n < 0 ? info.expire_timestamp == UINT64_MAX
                     : info.expire_timestamp == info.create_timestamp + (uint64_t) n );
        CHECK( netcode_client_state_name( n ) && netcode_drop_reason_name( n ) && netcode_drop_reason_text( n ) );
        CHECK( netcode_client_create_error_text( n ) && netcode_server_create_error_text( n ) );
        odd.type = (uint8_t) n;
        CHECK( netcode_address_to_string( &odd, text ) == text );
        netcode_server_process_packet( s, &odd, data, 100 );
        netcode_client_process_packet( c, &odd, data, 100 );
    }
    test_state.expecting = 0;
    world_run( w, 1.0 );
    CHECK_EQ( netcode_client_state( c ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_server_num_connected_clients( s ), 1 );
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( client_drain( w, 0 ), 0 );
}

/* ---- what the log tells a server's operator ---- */

/* What keeps a player out, each at INFO: one line a second, which counts the others. */
TEST( the_log_names_what_keeps_a_player_out )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_INFO );
    struct puppet_t in, full, consumed, forged, foreign, expired;
    world_add_server( w, 1 );
    puppet_make( &in, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &in ) );
    puppet_make( &full, w, 0, 2, "10.2.0.2:6000" );
    consumed = in;
    consumed.address.port++;
    puppet_make( &forged, w, 0, 3, "10.2.0.3:6000" );
    forged.r.private_key[0] ^= 1;
    puppet_mint( &forged );
    puppet_make( &foreign, w, 0, 4, "10.2.0.4:6000" );
    foreign.r.protocol_id++;
    puppet_mint( &foreign );
    puppet_make( &expired, w, 0, 5, "10.2.0.5:6000" );
    expired.r.create -= 100;
    expired.r.expire = expired.r.create + 50;
    puppet_mint( &expired );
    for ( int i = 0; i < 25; i++ ) {
        puppet_ask( &full );
        puppet_ask( &consumed );
        puppet_ask( &forged );
        puppet_ask( &foreign );
        puppet_ask( &expired );
        puppet_ask( &in ); /* its own request, late: nothing is wrong with that */
        puppet_keep_alive( &in );
        world_run( w, 0.1 );
    }
    CHECK_EQ( edges_said( "server kept 10.2.0.2:6000 out: the server has no free slot: the client was denied" ), 3 );
    CHECK_EQ( edges_said( "server kept 10.2.0.1:6001 out: the connect token has connected someone already" ), 3 );
    CHECK_EQ( edges_said( "server kept 10.2.0.3:6000 out: the connect token was not sealed with any" ), 3 );
    CHECK_EQ( edges_said( "server kept 10.2.0.4:6000 out: the request's protocol id is not this server's" ), 3 );
    CHECK_EQ( edges_said( "server kept 10.2.0.5:6000 out: the connect token has expired" ), 3 );
    CHECK_EQ( edges_said( "server kept 10.2.0.1:6000 out" ), 0 );
    CHECK_EQ( edges_said( "(and 0 such requests before it)" ), 5 );
    CHECK_EQ( edges_said( "server kept " ), 15 );
}

/* Why a client left is said in words. */
TEST( the_log_says_in_words_why_a_client_left )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_INFO );
    struct recipe_t r;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    CHECK_EQ( edges_said( "client 1 at 10.1.0.1:50000 disconnected from slot 0: it disconnected" ), 1 );
    REQUIRE( world_join( w, 0, 2 ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK_EQ( edges_said( "disconnected from slot 0: the server disconnected it" ), 1 );
    world_run( w, 0.1 );
    REQUIRE( world_join( w, 0, 3 ) );
    r = recipe_for( w, 3 );
    r.expire++;
    world_connect_recipe( w, 1, &r );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
    CHECK_EQ( edges_said( "disconnected from slot 0: a newer token of the same client took over" ), 1 );
    w->cut_from = w->client_addresses[1];
    world_run( w, 6.0 );
    CHECK_EQ( edges_said( "disconnected from slot 0: it timed out" ), 1 );
    CHECK_EQ( edges_said( "reason" ), 0 );
}

/* The nine further packets of a goodbye are not worth a line at DEBUG; a tenth one from there is. */
TEST( the_log_is_quiet_about_goodbyes )
{
    struct world_t * w = edges_world( NETCODE_LOG_LEVEL_DEBUG );
    struct puppet_t p;
    world_add_server( w, 2 );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &p ) );
    for ( int i = 0; i < 10; i++ )
        puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 9 );
    CHECK_EQ( edges_said( "server dropped" ), 0 );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( edges_said( "bytes from 10.2.0.1:6000: no client or handshake is known" ), 1 );
}

/* ---- callbacks that do not return ---- */

/* The callbacks of story/callbacks.c's list, and the application's own question. */
enum { JUMP_CHANGE, JUMP_DROP, JUMP_LOOPBACK, JUMP_LOG, JUMP_UNIX, JUMP_SEND, JUMP_RECEIVE, JUMP_ADMIT, JUMP_PLACES };

static struct {
    jmp_buf back;
    int armed; /* the callback jumps when it is called so many times more; 0: never */
    int where;
    int jumps;
} jump;

static void jump_from( int where )
{
    if ( where == jump.where && jump.armed && --jump.armed == 0 ) {
        jump.jumps++;
        longjmp( jump.back, 1 );
    }
}

static void jump_change( void * context, int a, int b )
{
    world_change_callback( context, a, b );
    jump_from( JUMP_CHANGE );
}

static void jump_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    world_drop_callback( context, reason, from, bytes );
    jump_from( JUMP_DROP );
}

static void jump_loopback( void * context, int client_index, const uint8_t * data, int bytes, uint64_t sequence )
{
    (void) context, (void) client_index, (void) data, (void) bytes, (void) sequence;
    jump_from( JUMP_LOOPBACK );
}

static void jump_log( void * context, int level, const char * text )
{
    world_log_callback( context, level, text );
    jump_from( JUMP_LOG );
}

static uint64_t jump_unix( void * context )
{
    jump_from( JUMP_UNIX );
    return world_unix_callback( context );
}

static int jump_admit( void * context, uint64_t client_id, const uint8_t * tag, uint64_t expire )
{
    (void) context, (void) client_id, (void) tag, (void) expire;
    jump_from( JUMP_ADMIT );
    return 1;
}

static int jump_send( struct world_t * w, const struct world_datagram_t * d )
{
    (void) w, (void) d;
    jump_from( JUMP_SEND );
    return 0;
}

static void jump_receive( struct world_t * w, const struct netcode_address_t * who )
{
    (void) w, (void) who;
    jump_from( JUMP_RECEIVE );
}

/* One of the calls in which a callback may come, at a depth of the stack that is the same for all. */
static void jump_call( struct world_t * w, int number )
{
    static uint8_t data[20], junk[40] = { 0x15 };
    switch ( number ) {
    case 0: world_step( w ); break;
    case 1: netcode_server_send_packet( w->servers[0], 0, data, 20 ); break;
    case 2: netcode_client_send_packet( w->clients[0], data, 20 ); break;
    case 3: netcode_server_broadcast( w->servers[0], data, 20, -1 ); break;
    case 4: netcode_server_process_packet( w->servers[0], &w->client_addresses[0], junk, 40 ); break;
    case 5: netcode_client_process_packet( w->clients[0], &w->server_addresses[0], junk, 40 ); break;
    case 6: netcode_client_flush( w->clients[0] ); break;
    case 7: netcode_server_flush( w->servers[0] ); break;
    case 8: netcode_client_disconnect( w->clients[1] ); break;
    case 9: netcode_server_disconnect_all_clients( w->servers[0] ); break;
    case 10: netcode_client_disconnect( w->clients[0] ); break;
    case 11: world_step( w ); break;
    case 12: world_connect( w, 0, 3 + test_random() % 1000000 ); break;
    case 13: netcode_server_connect_loopback_client( w->servers[0], 3, 99, NULL ); break;
    case 14: netcode_server_disconnect_loopback_client( w->servers[0], 3 ); break;
    case 15: netcode_server_start( w->servers[0], 4 ); break;
    default: netcode_server_stop( w->servers[0] );
    }
}

static void jump_life( struct world_t * w )
{
    static const uint8_t calls[] = { 0, 0,  0, 0,  1, 2,  13, 3, 4, 5,  6,  7, 0, 8,
                                     0, 14, 9, 10, 0, 12, 0,  0, 0, 15, 12, 0, 0, 16 };
    for ( volatile size_t i = 0; i < sizeof( calls ); i++ )
        if ( setjmp( jump.back ) == 0 )
            jump_call( w, calls[i] );
}

/* A life in which the nth call of one callback does not return. Afterwards all is well again. Returns whether it was called. */
static int jump_at( int where, int nth, int batched )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.connect_disconnect_callback = w->client_config.state_change_callback = jump_change;
    w->server_config.drop_callback = w->client_config.drop_callback = jump_drop;
    w->server_config.send_loopback_packet_callback = w->client_config.send_loopback_packet_callback = jump_loopback;
    w->server_config.log_callback = w->client_config.log_callback = jump_log;
    w->server_config.unix_time = w->client_config.unix_time = jump_unix;
    w->server_config.admit_callback = jump_admit;
    w->server_config.batch_sends = w->client_config.batch_sends = batched;
    world_add_server( w, 4 );
    world_add_client( w );
    world_add_client( w );
    REQUIRE( world_join( w, 1, 2 ) );
    world_connect( w, 0, 1 );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    jump.where = where;
    jump.armed = nth;
    jump.jumps = 0;
    w->hook = jump_send;
    w->receive_hook = jump_receive;
    jump_life( w );
    jump.armed = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    w->hook = NULL;
    w->receive_hook = NULL;
    netcode_server_start( w->servers[0], 4 );
    REQUIRE_EQ( netcode_server_running( w->servers[0] ), 1 );
    for ( int i = 0; i < 2; i++ ) {
        netcode_client_disconnect( w->clients[i] );
        CHECK( world_join( w, i, (uint64_t) ( 7000000 + i ) ) );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    check_counts( w );
    w->cut_from = w->client_addresses[0]; /* timers ring */
    world_run( w, 6.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    for ( int i = 0; i < NETCODE_DROP_REASONS;
          i++ ) { /* a log line that did not return has kept a drop from its callback */
        w->server_parties[0].drops[i] = server_drops( w, 0, i );
        w->client_parties[0].drops[i] = client_drops( w, 0, i );
        w->client_parties[1].drops[i] = client_drops( w, 1, i );
    }
    world_close( w ); /* and all memory comes back */
    return jump.jumps;
}

TEST( a_callback_that_does_not_return_bricks_nothing )
{
    for ( int where = 0; where < JUMP_PLACES; where++ ) {
        int count = 0;
        for ( int nth = 1; nth <= 60; nth++ ) {
            int before = test_state.failures, jumped = jump_at( where, nth, nth % 2 );
            if ( test_state.failures != before )
                printf( "    callback %d, call %d\n", where, nth );
            count += jumped;
            if ( !jumped && nth > 1 )
                break;
        }
        CHECK_GE( count, 1 );
    }
}

/* What a callback of destroy itself leaves half done, the next destroy does. */
TEST( destroy_after_a_callback_that_did_not_return )
{
    for ( volatile int side = 0; side < 2; side++ ) {
        struct world_t * volatile w = world_new( CLEAN );
        w->server_config.connect_disconnect_callback = w->client_config.state_change_callback = jump_change;
        world_add_server( w, 4 );
        world_add_client( w );
        REQUIRE( world_join( w, 0, 1 ) );
        jump.where = JUMP_CHANGE;
        jump.armed = 1;
        for ( volatile int i = 0; i < 2; i++ )
            if ( setjmp( jump.back ) == 0 ) {
                if ( side )
                    netcode_server_destroy( w->servers[0] );
                else
                    netcode_client_destroy( w->clients[0] );
            }
        if ( side )
            w->servers[0] = NULL;
        else
            w->clients[0] = NULL;
        world_close( w ); /* nothing is open, nothing is left */
    }
}

/* ---- invariants: each call looks at them in debug builds ---- */

TEST( broken_invariants_trip_the_next_call )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_server_t * s = w->servers[0];
    struct netcode_client_t * c = w->clients[0];
    if ( !TEST_ASSERTS_WORK )
        SKIP( "asserts are off in this build" );
    test_log_lines = 0;
    test_state.silent = 1; /* an assert, and no line: nothing is refused */
    s->private_key_count = 5;
    BAD( netcode_server_flush( s ) );
    s->private_key_count = 1;
    s->pending_free.count--;
    BAD( netcode_server_flush( s ) );
    s->pending_free.count++;
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

/* ---- what no test noticed ---- */

/* The timeout of a response begins with the challenge, however long the request has waited. */
TEST( the_response_times_out_from_the_challenge_on )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    double challenged;
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_connect( w, 0, 1 );
    world_run( w, 4.0 ); /* of the 5 s of its timeout */
    w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 0.5 ) );
    challenged = w->time;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT, 6.0 ) );
    CHECK_NEAR( w->time - challenged, (double) WORLD_TIMEOUT, 0.02 );
}

/* A client's events name its slot on the server, which need not be the first. */
TEST( a_clients_events_name_its_slot )
{
    static const int types[] = { NETCODE_EVENT_CONNECTED, NETCODE_EVENT_PAYLOAD, NETCODE_EVENT_DISCONNECTED };
    struct world_t * w = world_open( CLEAN, 1, 3, 3 );
    struct netcode_event_t event;
    int next = 0;
    for ( int i = 0; i < 3; i++ )
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
    REQUIRE_EQ( netcode_client_index( w->clients[2] ), 2 );
    server_send( w, 0, 2, 10, 1 );
    world_run( w, 0.1 );
    netcode_server_disconnect_client( w->servers[0], 2 );
    world_run( w, 0.1 );
    while ( netcode_client_next_event( w->clients[2], &event ) ) {
        REQUIRE( next < 3 );
        CHECK_EQ( event.type, types[next++] );
        CHECK_EQ( event.client_index, 2 );
        if ( event.type == NETCODE_EVENT_PAYLOAD )
            netcode_client_free_packet( w->clients[2], event.data );
    }
    CHECK_EQ( next, 3 );
}

/* The operator's log names refusals that keep a player out, and no others. */
TEST( which_refusals_keep_a_player_out )
{
    static const int rows[] = {
        NETCODE_DROP_REQUEST_OLD_VERSION,  NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID,
        NETCODE_DROP_TOKEN_EXPIRED,        NETCODE_DROP_TOKEN_MAYBE_USED,
        NETCODE_DROP_TOKEN_REFUSED_UP_TO,  NETCODE_DROP_TOKEN_CONSUMED,
        NETCODE_DROP_TOKEN_NO_RECORD_FREE, NETCODE_DROP_TOKEN_NOT_AUTHENTIC,
        NETCODE_DROP_TOKEN_MALFORMED,      NETCODE_DROP_SERVER_FULL,
        NETCODE_DROP_NOT_ADMITTED,
    };
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct netcode_address_t from = address_of( "10.2.0.1:6000" );
    int reason, i, keeps_out;
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ ) {
        for ( i = keeps_out = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ )
            keeps_out |= rows[i] == reason;
        CHECK_EQ( nc_server_keeps_out( w->servers[0], reason, &from ), keeps_out );
    }
}
