/* The memory of used tokens, in company: what one account does to it is its own affair. attacks/rows.py, row 64 */

enum { RECORDS_STAYS = 512, RECORDS_OTHERS = 16 };

/* A token of this player that expires then, from an address of its own. */
static void records_make( struct puppet_t * p, struct world_t * w, uint64_t client_id, uint64_t expire, int port )
{
    puppet_make( p, w, 0, client_id, "10.2.0.1:6000" );
    p->address.port = (uint16_t) port;
    p->r.expire = expire;
    puppet_mint( p );
}

static void records_leave( struct puppet_t * p )
{
    puppet_send( p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_step( p );
    REQUIRE_EQ( netcode_server_num_connected_clients( p->w->servers[0] ), 0 );
}

/*  64: as many stays of one account as there are records, with tokens of 120 s that expire one after the other. Then others
    come with tokens of 45 s, minted together, and the account itself with a later one; none of its old tokens opens again,
    whether its record is kept or not. */
TEST( threat_64_one_accounts_used_tokens_keep_no_other_out )
{
    static struct puppet_t stays[RECORDS_STAYS];
    struct world_t * w = world_open( CLEAN, 1, 64, 0 );
    uint64_t now = world_unix( w );
    int64_t refused;
    int i;
    for ( i = 0; i < RECORDS_STAYS; i++ ) {
        records_make( &stays[i], w, 7, now + 120 + (uint64_t) i, 6000 + i );
        REQUIRE( puppet_connect( &stays[i] ) );
        records_leave( &stays[i] );
    }
    now = world_unix( w );
    for ( i = 0; i < RECORDS_OTHERS; i++ ) {
        struct puppet_t p;
        records_make( &p, w, 100 + (uint64_t) i, now + 45, 7000 + i );
        CHECK( puppet_connect( &p ) );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), RECORDS_OTHERS );
    refused =
        server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ) + server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO );
    for ( i = 0; i < RECORDS_STAYS; i++ ) {
        puppet_ask( &stays[i] );
        world_step( w );
    }
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ) +
                  server_drops( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO ),
              refused + RECORDS_STAYS );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), NC_USED_PER_ID );
    CHECK_EQ( server_stats( w, 0 ).connects, RECORDS_STAYS + RECORDS_OTHERS );
    records_make( &stays[0], w, 7, now + 120 + RECORDS_STAYS, 8000 );
    CHECK( puppet_connect( &stays[0] ) );
}

/*  The account's share is asked at the response, too: a handshake was pending already when other tokens of the same player
    filled it with later ones. */
TEST( threat_64_a_share_that_fills_while_a_handshake_is_pending )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    uint64_t now = world_unix( w );
    struct puppet_t first, p;
    int i;
    records_make( &first, w, 7, now + 50, 6000 );
    REQUIRE( puppet_challenged( &first ) );
    for ( i = 0; i < NC_USED_PER_ID; i++ ) {
        records_make( &p, w, 7, now + 60 + (uint64_t) i, 6001 + i );
        REQUIRE( puppet_connect( &p ) );
        records_leave( &p );
    }
    puppet_respond( &first );
    expect_server_drop( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}

/* What each id has is moved to a larger memory with it. */
TEST( threat_64_shares_survive_a_start_with_other_slots )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    uint64_t now = world_unix( w );
    struct puppet_t p, early;
    int i;
    for ( i = 0; i < NC_USED_PER_ID; i++ ) {
        records_make( &p, w, 7, now + 60 + (uint64_t) i, 6001 + i );
        REQUIRE( puppet_connect( &p ) );
        records_leave( &p );
    }
    netcode_server_start( w->servers[0], 200 );
    records_make( &early, w, 7, now + 60, 6100 );
    puppet_ask( &early );
    expect_server_drop( w, 0, NETCODE_DROP_TOKEN_REFUSED_UP_TO );
    records_make( &p, w, 8, now + 60, 6101 );
    CHECK( puppet_connect( &p ) );
}
