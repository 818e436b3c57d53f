/* Story: a crashed player comes back at once (decision 10). */

static int replaced_reason;
static uint64_t replaced_session;

static void note_reason( struct world_party_t * party, int slot, int connected )
{
    if ( connected )
        return;
    replaced_reason = netcode_server_client_disconnect_reason( party->world->servers[party->index], slot );
    replaced_session = netcode_server_client_session( party->world->servers[party->index], slot );
}

static void replace_on_a_full_server( const char * first, const char * second )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    struct world_party_t * party = &w->server_parties[0];
    uint64_t session;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 1 );
    party->on_change = note_reason;
    REQUIRE( puppet_join( &p, w, 0, 7, first ) );
    puppet_keep_alive( &p );
    puppet_step( &p );
    session = netcode_server_client_session( w->servers[0], 0 );
    puppet_make( &q, w, 0, 7, second );
    q.sequence = 5000000;
    REQUIRE( puppet_challenged( &q ) );
    puppet_say( &p, 10, 1 ); /* until the challenge is answered, nothing changes */
    puppet_step( &p );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
    CHECK_EQ( netcode_server_client_session( w->servers[0], 0 ), session );
    puppet_answer( &q );
    CHECK( q.keep_alives > 0 );
    REQUIRE_EQ( party->log_count, 3 );
    CHECK_EQ( party->log[1][1], 0 );
    CHECK_EQ( party->log[2][1], 1 );
    CHECK_EQ( replaced_reason, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED );
    CHECK_EQ( replaced_session, session );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_NE( netcode_server_client_session( w->servers[0], 0 ), session );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &q.address ) );
    CHECK_EQ( server_stats( w, 0 ).disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED], 1 );
    puppet_poll( &p );
    CHECK_EQ( p.disconnects, 10 );
    CHECK_EQ( q.disconnects, 0 );
    puppet_say( &q, 10, 1 );
    puppet_say( &p, 10, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, 0 ), 1 );
}

TEST( decision_10_a_newer_token_takes_over_the_slot )
{
    replace_on_a_full_server( "10.2.0.1:6000", "10.2.0.2:6000" );
}
TEST( decision_10_also_from_the_same_address )
{
    replace_on_a_full_server( "10.2.0.1:6000", "10.2.0.1:6000" );
}

TEST( decision_10_not_with_a_token_that_expires_earlier )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( &p, w, 0, 7, "10.2.0.1:6000" ) );
    puppet_make( &q, w, 0, 7, "10.2.0.2:6000" );
    puppet_expires( &q, p.r.expire - 1 );
    CHECK( !puppet_connect( &q ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &p.address ) );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
}

TEST( decision_10_is_opt_in )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct puppet_t p, q;
    REQUIRE( puppet_join( &p, w, 0, 7, "10.2.0.1:6000" ) );
    puppet_make( &q, w, 0, 7, "10.2.0.2:6000" );
    puppet_expires( &q, q.r.expire + 50 );
    CHECK( !puppet_connect( &q ) );
    CHECK( netcode_address_equal( netcode_server_client_address( w->servers[0], 0 ), &p.address ) );
}

#if !defined( _WIN32 )

static void let_in_by_another_way( struct world_party_t * party, int slot, int connected )
{
    struct netcode_server_t * server = party->world->servers[party->index];
    if ( !connected && slot == 0 && !netcode_server_client_connected( server, 1 ) )
        netcode_server_connect_loopback_client( server, 1, 5, NULL );
}

/* Player 5 is connected, and comes back with a newer token from another address; `meanwhile` is called as the old session ends. */
static void take_over( struct world_t * w, void ( *meanwhile )( struct world_party_t *, int, int ) )
{
    struct puppet_t newer;
    w->server_parties[0].on_change = meanwhile;
    puppet_make( &newer, w, 0, 5, "10.2.0.2:6000" );
    puppet_expires( &newer, newer.r.expire + 100 );
    CHECK( !puppet_connect( &newer ) );
}

static struct world_t * taken_over_world( struct puppet_t * old )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( old, w, 0, 5, "10.2.0.1:6000" ) );
    return w;
}

/* Decision 10: the application lets the same player in while its old session ends. */
TEST( mutants_a_takeover_that_comes_too_late )
{
    struct puppet_t old;
    struct world_t * w = taken_over_world( &old );
    take_over( w, let_in_by_another_way );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADDRESS_CONNECTED ), 0 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 1 ), 1 );
}

static struct puppet_t * let_in_there;

static void let_in_from_the_same_address( struct world_party_t * party, int slot, int connected )
{
    uint8_t datagram[DATAGRAM_BYTES];
    struct puppet_t * other = let_in_there;
    if ( connected || slot != 0 || !other )
        return;
    let_in_there = NULL;
    int bytes = wire_seal( datagram, NETCODE_PACKET_RESPONSE, other->sequence++, 0, other->r.to_server_key,
                           other->challenge, 308 );
    netcode_server_process_packet( party->world->servers[party->index], &other->address, datagram, bytes );
}

/* Decision 10: while the old session ends, another player connects from the newer one's address. */
TEST( mutants_a_takeover_whose_address_is_taken )
{
    struct puppet_t old, other;
    struct world_t * w = taken_over_world( &old );
    puppet_make( &other, w, 0, 6, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &other ) );
    let_in_there = &other;
    take_over( w, let_in_from_the_same_address );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADDRESS_CONNECTED ) > 0, 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
    CHECK_GE( world_slot( w, 0, 6 ), 0 );
}

#endif

TEST( defence_10_the_same_slot_is_taken_over )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p, q, other;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 4 );
    REQUIRE( puppet_join( &other, w, 0, 1, "10.2.0.1:6000" ) );
    REQUIRE( puppet_join( &p, w, 0, 7, "10.2.0.2:6000" ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK_EQ( world_slot( w, 0, 7 ), 1 );
    REQUIRE( puppet_join( &q, w, 0, 7, "10.2.0.3:6000" ) );
    CHECK_EQ( world_slot( w, 0, 7 ), 1 );
    CHECK_EQ( q.client_index, 1 );
}
