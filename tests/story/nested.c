/* What holds inside other things: broadcasts within broadcasts, a keep-alive that ends its own slot; and other corners. */

enum { NESTED_A = 20, NESTED_B = 30 };

static struct {
    int payloads;       /* to the client in slot 2 */
    int loopback[5][2]; /* packets of A and B that the loopback client of this slot got */
} nested;

/* The slot is emptied, and a loopback client has it at once: the last one of those connected from now on. */
static void nested_replace( struct world_t * w, int slot )
{
    netcode_server_disconnect_client( w->servers[0], slot );
    netcode_server_connect_loopback_client( w->servers[0], slot, 1000 + (uint64_t) slot, NULL );
}

/* The inner broadcast replaces the slot that is next in the outer one; the outer one, later, the slot that is next in itself. */
static int nested_send( struct world_t * w, const struct world_datagram_t * d )
{
    if ( netcode_address_equal( &d->to, &w->client_addresses[1] ) && ( d->data[0] & 15 ) == NETCODE_PACKET_PAYLOAD &&
         nested.payloads++ < 2 )
        nested_replace( w, nested.payloads == 1 ? 1 : 3 );
    return 0;
}

static void nested_loopback( struct world_party_t * party, int client_index, const uint8_t * data, int bytes,
                             uint64_t sequence )
{
    uint8_t second[NESTED_B] = { 0 };
    (void) data;
    (void) sequence;
    nested.loopback[client_index][bytes == NESTED_B]++;
    if ( client_index == 0 )
        netcode_server_broadcast( party->world->servers[0], second, NESTED_B, 0 );
}

/*  The first to hear of broadcast A sends B to all others. Those that stay get both, once; one that joins meanwhile
    gets what is still on its way; and no walk over the slots ends early because another one's receivers change. */
TEST( nested_broadcasts_lose_nobody )
{
    static const int to_client[4] = { 1, 2, 1, 2 }; /* slots 1 to 4: 1 and 3 had B before they left */
    struct world_t * w = world_open( CLEAN, 1, 5, 4 );
    uint8_t outer[NESTED_A] = { 0 };
    int i, mark;
    memset( &nested, 0, sizeof( nested ) );
    netcode_server_connect_loopback_client( w->servers[0], 0, 100, NULL );
    for ( i = 0; i < 4; i++ )
        REQUIRE( world_join( w, i, 1 + (uint64_t) i ) );
    w->server_parties[0].on_loopback = nested_loopback;
    w->hook = nested_send;
    mark = w->records.count;
    netcode_server_broadcast( w->servers[0], outer, NESTED_A, -1 );
    for ( i = 0; i < 4; i++ )
        CHECK_EQ( world_count( w, mark, NULL, &w->client_addresses[i], NETCODE_PACKET_PAYLOAD, 0 ), to_client[i] );
    for ( i = 0; i < 5; i++ ) {
        CHECK_EQ( nested.loopback[i][0], i == 0 || i == 1 || i == 3 );
        CHECK_EQ( nested.loopback[i][1], i == 1 );
    }
    CHECK( w->servers[0]->walks == NULL );
    check_counts( w );
}

/* Each keep-alive that the network sends to slot 0 ends it, and a loopback client takes it. */
static int nested_keep_alive( struct world_t * w, const struct world_datagram_t * d )
{
    if ( !netcode_address_equal( &d->to, &w->client_addresses[0] ) || ( d->data[0] & 15 ) != NETCODE_PACKET_KEEP_ALIVE )
        return 0;
    w->hook = NULL;
    nested_replace( w, 0 );
    return 0;
}

/* No timer is set for the client that has the slot then. */
TEST( nested_keep_alive_that_ends_its_own_slot )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int mark;
    REQUIRE( world_join( w, 0, 1 ) );
    w->hook = nested_keep_alive;
    world_run( w, 0.3 );
    REQUIRE( netcode_server_client_loopback( w->servers[0], 0 ) );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK( w->servers[0]->memory.wheel.list_of[0] >= NC_WHEEL_BUCKETS );
    mark = w->records.count;
    world_run( w, 20.0 );
    CHECK_EQ( world_count( w, mark, &w->server_addresses[0], NULL, -1, 0 ), 0 );
    CHECK( netcode_server_client_loopback( w->servers[0], 0 ) );
}

/* No player that shares a process with the server is disconnected with the remote ones. */
TEST( disconnect_all_leaves_loopback_clients )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 2 );
    netcode_server_connect_loopback_client( w->servers[0], 0, 100, NULL );
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_server_connect_loopback_client( w->servers[0], 2, 101, NULL );
    REQUIRE( world_join( w, 1, 2 ) );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 4 );
    netcode_server_disconnect_all_clients( w->servers[0] );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    CHECK( netcode_server_client_loopback( w->servers[0], 0 ) && netcode_server_client_loopback( w->servers[0], 2 ) );
    world_run( w, 0.1 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    CHECK_EQ( netcode_client_state( w->clients[1] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    check_counts( w );
}

/* A loopback client is silent from its last packet on, as every other. */
TEST( loopback_silence_is_counted )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 0 );
    struct netcode_server_client_stats_t stats;
    uint8_t data[10] = { 0 };
    netcode_server_connect_loopback_client( w->servers[0], 0, 100, NULL );
    world_run( w, 3.0 );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK( stats.loopback && fabs( stats.seconds_silent - 3.0 ) < 0.05 );
    netcode_server_process_loopback_packet( w->servers[0], 0, data, 10, 1 );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK( stats.seconds_silent == 0.0 );
    world_run( w, 1.0 );
    netcode_server_client_stats( w->servers[0], 0, &stats );
    CHECK( fabs( stats.seconds_silent - 1.0 ) < 0.05 && fabs( stats.seconds_connected - 4.0 ) < 0.05 );
}

/*  The keys change places and then one goes: the handshakes under it end, and the others stay, whichever position they
    had. */
TEST( rotation_follows_a_key_from_place_to_place )
{
    int stays, i;
    for ( stays = 0; stays < 2; stays++ ) { /* the key that stays in the end, by its first position */
        struct world_t * w = world_open( CLEAN, 1, 4, 0 );
        struct puppet_t p[2];
        uint8_t keys[2][NETCODE_KEY_BYTES], swapped[2][NETCODE_KEY_BYTES];
        ledger_random_bytes( keys, sizeof( keys ) );
        memcpy( swapped[0], keys[1], NETCODE_KEY_BYTES );
        memcpy( swapped[1], keys[0], NETCODE_KEY_BYTES );
        REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[0], 2 ), NETCODE_OK );
        for ( i = 0; i < 2; i++ ) {
            puppet_make( &p[i], w, 0, 1 + (uint64_t) i, i ? "10.2.0.2:6000" : "10.2.0.1:6000" );
            memcpy( p[i].r.private_key, keys[i], NETCODE_KEY_BYTES );
            puppet_mint( &p[i] );
            REQUIRE( puppet_challenged( &p[i] ) );
        }
        REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], swapped[0], 2 ), NETCODE_OK );
        REQUIRE_EQ( server_stats( w, 0 ).pending, 2 );
        REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], keys[stays], 1 ), NETCODE_OK );
        CHECK_EQ( server_stats( w, 0 ).pending, 1 );
        for ( i = 0; i < 2; i++ ) {
            puppet_answer( &p[i] );
            CHECK_EQ( p[i].keep_alives > 0, i == stays );
        }
    }
}

/* Requests that no key opens in one update, where the server has so many keys: how many were tried? */
static int64_t tried_with_keys( int keys )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    uint8_t all[4 * NETCODE_KEY_BYTES];
    int i;
    ledger_random_bytes( all, sizeof( all ) );
    REQUIRE_EQ( netcode_server_set_private_keys( w->servers[0], all, keys ), NETCODE_OK );
    for ( i = 0; i < 300; i++ ) {
        struct puppet_t p;
        puppet_make( &p, w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        puppet_ask( &p );
    }
    world_step( w );
    return server_drops( w, 0, NETCODE_DROP_TOKEN_NOT_AUTHENTIC );
}

/* Each try is a decryption: with four keys an update tries half as many requests at most. */
TEST( every_private_key_tried_is_charged )
{
    int64_t one = tried_with_keys( 1 ), four = tried_with_keys( 4 );
    CHECK_GE( four, 16 );
    CHECK_LE( 2 * four, one );
}
