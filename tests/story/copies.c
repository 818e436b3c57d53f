/*  Two copies of one server: the process was forked after its start, or a snapshot of its machine was resumed twice. Here
    they are two worlds whose random numbers are the same up to the copy, and others from there on. */

enum { COPIES = 2, COPIES_TOKENS = 42 };

/* One token's stay in one copy: its payload differs from the other copy's. */
static void copies_stay( struct puppet_t * p, int copy )
{
    puppet_respond( p );
    puppet_step( p );
    REQUIRE_EQ( p->keep_alives, 1 );
    server_send( p->w, 0, (int) p->client_index, 40, copy );
    puppet_send( p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_step( p );
    CHECK_EQ( p->payloads, 1 );
    REQUIRE_EQ( netcode_server_num_connected_clients( p->w->servers[0] ), 0 );
}

/*  65: each token comes to both copies, to one by another path than to the other, so that what the copies seal differs: the
    challenge inside, the packet around it, and the payloads. A handshake that is pending when the copy is made ends in both.
    The ledger sees both copies. */
TEST( threat_65_two_copies_of_a_server_share_no_nonce )
{
    struct world_t * copies[COPIES];
    struct puppet_t pending[COPIES];
    uint64_t before = ledger_random_state;
    int64_t seals;
    int copy, i;
    for ( copy = 0; copy < COPIES; copy++ ) {
        ledger_random_state = before;
        copies[copy] = world_open( CLEAN, 1, 4, 0 );
        puppet_make( &pending[copy], copies[copy], 0, 1, "10.2.0.1:5000" );
        REQUIRE( puppet_challenged( &pending[copy] ) );
    }
    CHECK( memcmp( copies[0]->servers[0]->handshakes.challenge_key, copies[1]->servers[0]->handshakes.challenge_key,
                   32 ) == 0 );
    CHECK( memcmp( pending[0].challenge, pending[1].challenge, 308 ) == 0 );
    seals = ledger.seals;
    for ( copy = 0; copy < COPIES; copy++ ) {
        ledger_random_state = test_random();
        copies_stay( &pending[copy], copy );
    }
    for ( i = 0; i < COPIES_TOKENS; i++ ) {
        struct recipe_t r = recipe_for( copies[0], 2 + (uint64_t) i );
        for ( copy = 0; copy < COPIES; copy++ ) {
            struct puppet_t p;
            puppet_make( &p, copies[copy], 0, 2 + (uint64_t) i, "10.2.0.1:6000" );
            p.address.port = (uint16_t) ( 6000 + 1000 * copy + i );
            p.r = r;
            puppet_mint( &p );
            REQUIRE( puppet_challenged( &p ) );
            copies_stay( &p, copy );
        }
    }
    CHECK( !LEDGER_WORKS || ledger.seals - seals >= (int64_t) COPIES * COPIES_TOKENS * 4 );
}
