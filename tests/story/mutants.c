/*  What the mutation run (make mutate) found unwatched in client and server: each test here fails under a change of
    netcode.h that no other test noticed. `make test T=mutant` runs them, and those of unit/mutants.c. */

#if !defined( _WIN32 )

static int mutant_zeros( const void * data, size_t bytes )
{
    const uint8_t * at = (const uint8_t *) data;
    while ( bytes && !*at ) {
        at++;
        bytes--;
    }
    return bytes == 0;
}

/* ---- defaults and creation ---- */

/* Whatever was in it before. */
TEST( mutants_default_configs_are_written_whole )
{
    struct netcode_client_config_t client[2];
    struct netcode_server_config_t server[2];
    int i;
    for ( i = 0; i < 2; i++ ) {
        memset( &client[i], i ? 0xff : 0, sizeof( client[i] ) );
        memset( &server[i], i ? 0xff : 0, sizeof( server[i] ) );
        netcode_default_client_config( &client[i] );
        netcode_default_server_config( &server[i] );
    }
    CHECK_MEM( &client[0], &client[1], sizeof( client[0] ) );
    CHECK_MEM( &server[0], &server[1], sizeof( server[0] ) );
    CHECK( client[0].allocate_function != NULL && client[0].free_function != NULL );
    CHECK( server[0].allocate_function != NULL && server[0].free_function != NULL );
}

/* "A config of zeros is the same." */
TEST( mutants_a_config_of_zeros_takes_as_much_memory )
{
    struct netcode_client_config_t client, client_zeros;
    struct netcode_server_config_t server, server_zeros;
    memset( &client_zeros, 0, sizeof( client_zeros ) );
    memset( &server_zeros, 0, sizeof( server_zeros ) );
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    CHECK_EQ( netcode_client_memory( &client ), netcode_client_memory( &client_zeros ) );
    CHECK_EQ( netcode_server_memory( &server, 16 ), netcode_server_memory( &server_zeros, 16 ) );
}

TEST( mutants_the_first_address_may_not_be_missing )
{
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    netcode_default_client_config( &client );
    netcode_default_server_config( &server );
    BAD( CHECK( netcode_client_create_dual( NULL, "::1", &client, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    BAD( CHECK( netcode_server_create_dual( NULL, "[::1]:40000", &server, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
}

/* A socket of one's own comes first, and needs no port as a simulator does. */
TEST( mutants_a_socket_beside_a_simulator )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_config_t config = w->client_config;
    struct netcode_socket_t socket;
    struct netcode_address_t at = address_of( "10.9.0.1:50000" );
    struct netcode_client_t * client;
    world_socket( w, &at, &socket );
    config.socket = &socket;
    config.network_simulator = w->net;
    config.callback_context = &w->client_parties[0];
    client = netcode_client_create( "10.9.0.1", &config, w->time );
    CHECK( client != NULL );
    netcode_client_destroy( client );
}

/* ---- client ---- */

static int mutant_holds_no_secret( const struct netcode_client_t * client )
{
    return mutant_zeros( client->challenge, sizeof( client->challenge ) ) &&
           mutant_zeros( client->token.sealed_private, sizeof( client->token.sealed_private ) ) &&
           mutant_zeros( client->token.route.client_to_server_key, NETCODE_KEY_BYTES ) &&
           mutant_zeros( client->token.route.server_to_client_key, NETCODE_KEY_BYTES );
}

TEST( mutants_a_client_that_left_holds_no_secret )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK( !mutant_holds_no_secret( w->clients[0] ) );
    netcode_client_disconnect( w->clients[0] );
    CHECK( mutant_holds_no_secret( w->clients[0] ) );
}

TEST( mutants_remembered_tokens_are_told_apart_by_every_byte )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    int at;
    CHECK_EQ( client->remembered_count, 0 );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK_EQ( client->remembered_count, 1 );
    CHECK_EQ( nc_client_remembers_token( client ), 1 );
    for ( at = 0; at < NC_TOKEN_TAG_BYTES; at++ ) {
        client->remembered[0][at] ^= 1;
        CHECK_EQ( nc_client_remembers_token( client ), 0 );
        client->remembered[0][at] ^= 1;
    }
}

/* Else sixteen of them would make a client forget its tokens. Errors of a socket that it does not use are nothing to it. */
TEST( mutants_a_loopback_client_has_no_token_and_no_socket )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    struct netcode_datagram_t error;
    uint8_t data[NETCODE_MAX_PACKET_SIZE + 1] = { 1 };
    netcode_client_connect_loopback( client, 0, 1 );
    CHECK_EQ( client->remembered_count, 0 );
    CHECK( mutant_zeros( client->trials, sizeof( client->trials ) ) );
    memset( &error, 0, sizeof( error ) );
    error.status = NETCODE_DATAGRAM_ERROR;
    error.error = 111;
    nc_client_on_socket_error( client, &error );
    CHECK( mutant_zeros( client->trials, sizeof( client->trials ) ) );
    CHECK_EQ( client_stats( w, 0 ).receive_errors, 1 );
    BAD( netcode_client_process_loopback_packet( client, data, NETCODE_MAX_PACKET_SIZE + 1, 0 ) );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    netcode_client_process_loopback_packet( client, data, NETCODE_MAX_PACKET_SIZE, 0 );
    CHECK_EQ( client_stats( w, 0 ).packets_received[NETCODE_PACKET_PAYLOAD], 1 );
    CHECK_EQ( client_stats( w, 0 ).packets_received[NETCODE_PACKET_DISCONNECT], 0 );
    CHECK_EQ( client_drain( w, 0 ), 1 );
}

/* Every byte in either direction, from the record of the network. */
TEST( mutants_bytes_are_counted )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    const struct netcode_address_t *client = &w->client_addresses[0], *server = &w->server_addresses[0];
    int i;
    REQUIRE( world_join( w, 0, 1 ) );
    for ( i = 0; i < 5; i++ ) {
        client_send( w, 0, 100 + i, i );
        server_send( w, 0, 0, 200 + i, i );
        world_step( w );
    }
    w->cut_types = ~0u;
    world_run( w, 0.05 );
    CHECK_EQ( client_stats( w, 0 ).bytes_sent, world_count( w, 0, client, server, -1, 1 ) );
    CHECK_EQ( server_stats( w, 0 ).bytes_sent, world_count( w, 0, server, client, -1, 1 ) );
    CHECK( client_stats( w, 0 ).bytes_received > 0 );
    for ( i = 0; i < w->records.count; i++ )
        if ( w->records.items[i].dropped )
            w->records.items[i].bytes = 0;
    CHECK_EQ( client_stats( w, 0 ).bytes_received, world_count( w, 0, server, client, -1, 1 ) );
    CHECK_EQ( server_stats( w, 0 ).bytes_received, world_count( w, 0, client, server, -1, 1 ) );
}

/* Decision 6: three errors, and exactly one second. */
TEST( mutants_errors_spread_over_one_second_are_enough )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 1 );
    struct netcode_client_t * client = w->clients[0];
    struct netcode_datagram_t error;
    double start;
    w->cut_from = w->client_addresses[0];
    world_connect( w, 0, 1 );
    world_step( w );
    memset( &error, 0, sizeof( error ) );
    error.error = 111;
    start = client->clock.now;
    nc_client_on_socket_error( client, &error );
    nc_client_on_socket_error( client, &error );
    client->clock.now = start + 0.999;
    nc_client_on_socket_error( client, &error );
    CHECK_EQ( client->server_index, 0 );
    client->first_error_time = 4.0; /* exact in binary */
    client->clock.now = 5.0;
    nc_client_on_socket_error( client, &error );
    CHECK_EQ( client->server_index, 1 );
    client->clock.now = start;
}

/* Decision 1: requests are counted, and the last number is not followed by the first. */
TEST( mutants_requests_count_and_the_counter_ends )
{
    struct world_t * w = world_new( CLEAN );
    w->client_config.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    world_add_server( w, 1 );
    world_add_client( w );
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_connect( w, 0, 1 );
    world_step( w );
    CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ), 1 );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_client_next_packet_sequence( w->clients[0] ), 2 );
    w->clients[0]->sequence = UINT64_MAX;
    world_run( w, 0.5 );
    CHECK( netcode_client_next_packet_sequence( w->clients[0] ) == UINT64_MAX );
}

TEST( mutants_a_client_that_asks_says_one_thing_at_a_time )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_report_t report;
    struct netcode_datagram_t error;
    int mark;
    world_run( w, 3.0 ); /* so that its clock does not stand at 0 */
    world_connect( w, 0, 1 );
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_run( w, 0.5 );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text, "Asking the server; no answer yet." );
    CHECK_NEAR( report.servers[0].seconds_waited, 0.49, 0.03 );
    memset( &error, 0, sizeof( error ) );
    error.error = 111;
    nc_client_on_socket_error( w->clients[0], &error );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text,
               "The network says that the server can not be reached: is it running, and is its port open?" );
    mark = w->records.count;
    netcode_client_disconnect( w->clients[0] ); /* no server has anything to end */
    CHECK_EQ( w->records.count, mark );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    world_connect( w, 0, 2 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 2.0 ) );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text, "The server has answered; waiting for it to let the client in." );
    nc_client_on_socket_error( w->clients[0], &error );
    CHECK_EQ( w->clients[0]->errors, 0 ); /* which count towards the next server while it asks, and only then */
    mark = w->records.count;
    world_run( w, 1.0 );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_RESPONSE, 0 ),
              world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ) );
}

/* The second server of the last token is no part of an attempt with a token that can not be used. */
TEST( mutants_a_bad_token_has_no_server )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 1 );
    struct netcode_client_report_t report;
    uint8_t bad[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    w->cut_to = w->server_addresses[0];
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.server_index, 1 );
    netcode_client_connect( w->clients[0], bad );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.state, NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    CHECK_EQ( report.server_index, 0 );
    CHECK_EQ( report.num_servers, 0 );
}

static double mutant_waited;

static void mutant_wait( void * context, double seconds )
{
    (void) context;
    mutant_waited = seconds;
}

/* Not longer than until the next packet is due. */
TEST( mutants_wait_ends_when_something_is_due )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    w->clients[0]->socket.wait = mutant_wait;
    w->servers[0]->socket.wait = mutant_wait;
    client_send( w, 0, 10, 1 );
    mutant_waited = 0.0;
    netcode_client_wait( w->clients[0], 5.0 );
    CHECK_NEAR( mutant_waited, 0.1, 0.002 );
    netcode_client_wait( w->clients[0], 0.03 );
    CHECK_NEAR( mutant_waited, 0.03, 1e-9 );
    w->clients[0]->clock.now += 0.2; /* something is due already */
    mutant_waited = -1.0;
    netcode_client_wait( w->clients[0], 5.0 );
    CHECK_NEAR( mutant_waited, -1.0, 0.0 );
    netcode_server_wait( w->servers[0], 5.0 );
    CHECK( mutant_waited > 0.0 && mutant_waited <= 0.11 );
    netcode_server_wait( w->servers[0], 0.001 );
    CHECK( mutant_waited <= 0.001 );
    w->servers[0]->clock.now += 0.2;
    mutant_waited = -1.0;
    netcode_server_wait( w->servers[0], 5.0 );
    CHECK_NEAR( mutant_waited, -1.0, 0.0 );
}

/* ---- server ---- */

/* Manual, 5: a slot and all that it brings takes just under 2 KiB. */
TEST( mutants_a_slot_takes_2_kib )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.packet_pool_buffers = 4096;
    CHECK_LT( netcode_server_memory( &config, 8192 ) - netcode_server_memory( &config, 4096 ), 4096 * 2048 );
}

TEST( mutants_slots_begin_empty )
{
    struct world_t * w = world_open( CLEAN, 1, 7, 0 );
    CHECK( mutant_zeros( w->servers[0]->memory.slots, 7 * sizeof( nc_slot_t ) ) );
    CHECK( mutant_zeros( w->servers[0]->memory.user_data, 7 * NETCODE_USER_DATA_BYTES ) );
}

/* The place for a further private key holds zeros, which are no key. */
TEST( mutants_a_key_of_zeros_opens_nothing )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    memset( p.r.private_key, 0, sizeof( p.r.private_key ) );
    puppet_mint( &p );
    CHECK( !puppet_challenged( &p ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC ), 1 );
}

/* Keys that lead to the same place in a table by chance are different keys. Decision 3 */
TEST( mutants_handshakes_whose_hashes_collide_leave_each_other_alone )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct netcode_server_t * server = w->servers[0];
    nc_server_hashes_t hashes;
    nc_pending_t newcomer;
    uint32_t entry;
    int i;
    memset( &hashes, 0, sizeof( hashes ) );
    hashes.id = hashes.tag = 7;
    hashes.address = 7;
    for ( i = 0; i < 9; i++ ) {
        memset( &newcomer, 0, sizeof( newcomer ) );
        newcomer.address = address_of( "10.2.0.1:6000" );
        newcomer.address.port = (uint16_t) ( 6000 + i );
        newcomer.client_id = (uint64_t) i;
        newcomer.expire_timestamp = 1000 + (uint64_t) i;
        newcomer.tag[0] = (uint8_t) i;
        CHECK_EQ( nc_server_insert_pending( server, &newcomer, &hashes, &entry ), NETCODE_DROP_NONE );
    }
    CHECK_EQ( server->pending_used.count, 9 );
}

/* Decision 6: a response costs for each of the handshakes that it is tried against. */
TEST( mutants_a_response_pays_for_every_key_that_is_tried )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p[4];
    uint8_t body[308] = { 0 };
    int i;
    w->server_config.update_budget = 170;
    world_add_server( w, 4 );
    for ( i = 0; i < 4; i++ ) {
        puppet_make( &p[i], w, 0, (uint64_t) i, "10.2.0.1:6000" );
        REQUIRE( puppet_challenged( &p[i] ) );
    }
    memset( p[0].r.to_server_key, 1, 32 ); /* a key that no handshake has */
    for ( i = 0; i < 60; i++ )
        puppet_send( &p[0], NETCODE_PACKET_RESPONSE, body, 308 );
    world_step( w );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 10 );
    CHECK_LE( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 22 );
}

static void mutant_let_in_by_another_way( struct world_party_t * party, int slot, int connected )
{
    struct netcode_server_t * server = party->world->servers[party->index];
    if ( !connected && slot == 0 && !netcode_server_client_connected( server, 1 ) )
        netcode_server_connect_loopback_client( server, 1, 5, NULL );
}

/* Decision 10: the application lets the same player in while its old session ends. */
TEST( mutants_a_takeover_that_comes_too_late )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t old, newer;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    puppet_make( &old, w, 0, 5, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &old ) );
    w->server_parties[0].on_change = mutant_let_in_by_another_way;
    puppet_make( &newer, w, 0, 5, "10.2.0.2:6000" );
    newer.r.expire += 100;
    puppet_mint( &newer );
    CHECK( !puppet_connect( &newer ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADDRESS_CONNECTED ), 0 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 1 ), 1 );
}

TEST( mutants_public_addresses_that_can_not_be )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 0 );
    struct netcode_server_config_t config = w->server_config;
    const char * names[NETCODE_MAX_PUBLIC_ADDRESSES + 1];
    int i;
    for ( i = 0; i <= NETCODE_MAX_PUBLIC_ADDRESSES; i++ )
        names[i] = "10.8.0.1:40000";
    config.network_simulator = w->net;
    config.callback_context = &w->server_parties[0];
    config.public_addresses = names;
    config.num_public_addresses = NETCODE_MAX_PUBLIC_ADDRESSES + 1;
    REFUSED( CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL ) );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.num_public_addresses = 2;
    names[1] = NULL;
    CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    config.public_addresses = NULL;
    CHECK( netcode_server_create( "10.8.0.1:40000", &config, 0.0 ) == NULL );
    CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED );
}

TEST( mutants_statistics_of_a_slot )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct netcode_server_client_stats_t stats;
    uint8_t data[100] = { 1 };
    REQUIRE( world_join( w, 0, 1 ) );
    w->cut_types = ~0u;
    server_send( w, 0, 0, 10, 1 );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK_EQ( stats.packets_sent, world_count( w, 0, &w->server_addresses[0], NULL, -1, 0 ) - 1 ); /* the challenge */
    CHECK_EQ( stats.bytes_sent, world_count( w, 0, &w->server_addresses[0], NULL, -1, 1 ) - 333 );
    netcode_server_connect_loopback_client( w->servers[0], 1, 9, NULL );
    netcode_server_process_loopback_packet( w->servers[0], 1, data, 100, 0 );
    netcode_server_process_loopback_packet( w->servers[0], 1, data, 50, 1 );
    netcode_server_client_stats( w->servers[0], 1, &stats );
    CHECK_EQ( stats.packets_received, 2 );
    CHECK_EQ( stats.bytes_received, 150 );
    CHECK_EQ( stats.packets_queued, 2 );
    CHECK_EQ( stats.loopback, 1 );
}

/* To the last byte of the last counter. */
TEST( mutants_statistics_are_copied_whole )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_server_t * server = w->servers[0];
    struct netcode_server_stats_t stats;
    memset( server->disconnects, 0x5a, sizeof( server->disconnects ) );
    netcode_server_stats( server, &stats );
    CHECK_MEM( stats.disconnects, server->disconnects, sizeof( stats.disconnects ) );
    memset( server->disconnects, 0, sizeof( server->disconnects ) );
}

/* API.md: max(1024, 2 x slots, min(32 x slots, 4096)) buffers, or as many as the config says; and one batch held back. */
TEST( mutants_the_pool_is_as_large_as_was_said )
{
    static const int cases[][3] = { /* slots, the config's, buffers */
                                    { 1, 0, 1024 },        { 32, 0, 1024 },  { 33, 0, 1056 },   { 127, 0, 4064 },
                                    { 128, 0, 4096 },      { 129, 0, 4096 }, { 2048, 0, 4096 }, { 2049, 0, 4098 },
                                    { 10000, 0, 20000 },   { 1, 5, 5 },      { 256, 1, 1 },     { 10000, 7, 7 },
                                    { 256, 40000, 40000 }, { 256, -1, 4096 } };
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    for ( size_t i = 0; i < sizeof( cases ) / sizeof( cases[0] ); i++ ) {
        config.packet_pool_buffers = cases[i][1];
        CHECK_EQ( nc_server_pool_buffers( &config, (uint32_t) cases[i][0] ), cases[i][2] + 32 );
    }
}

TEST( mutants_a_server_that_never_started_has_no_event )
{
    struct world_t * w = world_open( CLEAN, 0, 0, 0 );
    struct netcode_event_t event;
    world_make_server( w, 0 );
    w->server_count = 1;
    memset( &event, 0xee, sizeof( event ) );
    CHECK_EQ( netcode_server_next_event( w->servers[0], &event ), 0 );
    CHECK( mutant_zeros( &event, sizeof( event ) ) );
}

#if MUTANT_STACK

static struct world_t * mutant_world;

static void mutant_update_server( void )
{
    netcode_server_update( mutant_world->servers[0], mutant_world->time );
}

static int mutant_update_leaves( const struct puppet_t * p )
{
    int found;
    mutant_run_on_stack( mutant_update_server );
    found = mutant_stack_holds( p->r.user_data + 100, 16 ) + mutant_stack_holds( p->r.to_client_key + 8, 16 ) +
            mutant_stack_holds( p->r.to_server_key + 8, 16 );
    mutant_stack_free();
    return found;
}

/* Decision 9, for what a handshake leaves on the server's stack. */
TEST( mutants_a_handshake_leaves_nothing_on_the_stack )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t warm, p;
    int i;
    puppet_make( &warm, w, 0, 1, "10.2.0.1:6000" );
    REQUIRE( puppet_connect( &warm ) );
    mutant_world = w;
    puppet_make( &p, w, 0, 2, "10.2.0.2:6000" );
    for ( i = 0; i < NETCODE_USER_DATA_BYTES; i++ )
        p.r.user_data[i] = (uint8_t) test_random();
    puppet_mint( &p );
    puppet_ask( &p );
    CHECK_EQ( mutant_update_leaves( &p ), 0 );
    puppet_poll( &p );
    REQUIRE( p.challenges == 1 );
    puppet_respond( &p );
    CHECK_EQ( mutant_update_leaves( &p ), 0 );
    puppet_poll( &p );
    CHECK_EQ( p.keep_alives, 1 );
}

#endif

#endif /* !defined( _WIN32 ) */
