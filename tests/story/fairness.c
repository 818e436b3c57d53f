/* Attacks 60 and 61: what the players of a server with the default configuration hear of each other while one attacker floods it. */

#include "../fairness.h"

/* The others' packets are heard, with at most one tick of delay. */
static void fairness_check( const struct fair_setting_t * setting )
{
    struct fair_result_t result;
    int before = test_state.failures;
    REQUIRE( fair_run( setting, &result ) );
    CHECK_GE( result.heard * 1000.0, 990 );
    CHECK_GE( result.heard_least * 1000.0, 970 );
    CHECK_LE( result.late * 1000.0, 10 );
    if ( test_state.failures != before )
        printf( "    %s at %d Mbit/s, %d Hz, %d keys, %d slots: heard %.1f %%, the least %.1f %%, late %.1f %%\n",
                fair_attacks[setting->attack].name, setting->megabits, setting->hz, setting->keys, setting->slots,
                100.0 * result.heard, 100.0 * result.heard_least, 100.0 * result.late );
}

TEST( threat_60_the_others_are_heard_beside_a_client_that_floods )
{
    static const struct fair_setting_t settings[] = {
        { FAIR_PAYLOADS, 20, 1, 16, 7, 1.0 },  { FAIR_PAYLOADS, 20, 1, 64, 20, 1.0 },
        { FAIR_PAYLOADS, 60, 1, 16, 20, 1.0 }, { FAIR_PAYLOADS, 60, 1, 64, 20, 1.0 },
        { FAIR_REPLAYS, 20, 1, 64, 20, 1.0 },  { FAIR_FORGED, 20, 1, 16, 20, 1.0 },
    };
    for ( size_t i = 0; i < sizeof( settings ) / sizeof( settings[0] ); i++ )
        fairness_check( &settings[i] );
}

TEST( threat_61_the_players_are_heard_beside_junk_requests )
{
    static const struct fair_setting_t settings[] = {
        { FAIR_REQUESTS, 20, 1, 16, 170, 1.0 },    { FAIR_REQUESTS, 20, 4, 16, 60, 1.0 },
        { FAIR_REQUESTS, 60, 4, 64, 60, 1.0 },     { FAIR_REQUESTS, 60, 2, 16, 170, 1.0 },
        { FAIR_TOKENS_VALID, 30, 4, 64, 20, 1.0 }, { FAIR_JUNK, 30, 1, 16, 20, 1.0 },
    };
    for ( size_t i = 0; i < sizeof( settings ) / sizeof( settings[0] ); i++ )
        fairness_check( &settings[i] );
}

/* Responses are forged at the address of a handshake: 64 of them are opened in an update, and another player comes in meanwhile. */
TEST( threat_61_forged_responses_cost_one_handshake_only )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct puppet_t p, q;
    uint8_t body[308] = { 0 };
    int64_t opens;
    int i;
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    puppet_make( &q, w, 0, 2, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &p ) && puppet_challenged( &q ) );
    memset( p.r.to_server_key, 0, sizeof( p.r.to_server_key ) );
    for ( i = 0; i < 600; i++ )
        puppet_send( &p, NETCODE_PACKET_RESPONSE, body, 308 );
    puppet_respond( &q );
    opens = ledger.opens;
    world_step( w );
    CHECK( !LEDGER_WORKS || ledger.opens - opens <= NC_RESPONSES_PER_UPDATE + 2 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 600 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 1 );
}

/*  Four hundred clients fall silent at one moment: their timeouts spread over updates, and the server does not sleep
    meanwhile. */
TEST( many_timeouts_at_once_spread_over_updates )
{
    enum { CLIENTS = 400 };
    static struct puppet_t p[CLIENTS];
    struct world_t * w = world_open( CLEAN, 1, CLIENTS, 0 );
    int i, left;
    for ( i = 0; i < CLIENTS; i++ ) {
        puppet_make( &p[i], w, 0, 1 + (uint64_t) i, "10.2.0.1:6000" );
        p[i].address.port = (uint16_t) ( 6000 + i );
        p[i].r.timeout = 60;
        puppet_mint( &p[i] );
        REQUIRE( puppet_connect( &p[i] ) );
    }
    w->recording = 0;
    for ( i = 0; i < CLIENTS; i++ )
        puppet_keep_alive( &p[i] );
    world_step( w );
    w->step = 0.1;
    world_run( w, 59.0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), CLIENTS );
    w->step = 0.01;
    for ( i = 0; i < 200 && netcode_server_num_connected_clients( w->servers[0] ) == CLIENTS; i++ )
        world_step( w );
    left = netcode_server_num_connected_clients( w->servers[0] );
    CHECK( left > 0 && left < CLIENTS );
    netcode_server_wait( w->servers[0], 5.0 ); /* it returns at once: more is due */
    world_step( w );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
}
