/*  The engine-free part of examples/godot in virtual time, on the simulator: server and clients, and clients and servers
    in plain C that break the rules. Compiled with the address and undefined behaviour sanitizers by `make godot`.

        unit [FILTER] [--seed N] [--list] */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../../netcode.h"

/* The harness has more checks than are used here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "../test.h"
#pragma GCC diagnostic pop

#include "multiplayer_api.h"

#include "client.h"

enum { PEERS = 12, SEEN = 4096, TICKS_PER_SECOND = 60 };

/* What one side saw. */
struct seen_t {
    struct multiplayer_event_t events[SEEN];
    int num_events;
    int32_t known[PEERS + 64];
    int num_known;
    struct {
        int32_t from;
        int channel, bytes;
        uint8_t first[16];
    } packets[SEEN];
    int num_packets, unknown; /* packets of peers that were not reported, or are gone */
};

static struct {
    double time;
    struct netcode_network_simulator_t * network;
    uint8_t key[NETCODE_KEY_BYTES];
    struct multiplayer_t server, clients[PEERS];
    struct seen_t server_seen, client_seen[PEERS];
    struct raw_t raw;
    int idle_reader; /* the server's engine does not read packets */
    int poll_every;  /* ticks from one poll of the server to the next; 0: it polls in each */
    int ticks;
    uint64_t ids;
    int later;            /* seconds that the next tokens expire later */
    int max_packet_bytes; /* of the next clients; 0: the default */
} world;

/* ---- the world ---- */

static void world_see( struct multiplayer_t * m, struct seen_t * seen, int reads )
{
    struct multiplayer_event_t event;
    struct multiplayer_packet_t packet;
    const uint8_t * data;
    while ( multiplayer_next_event( m, &event ) ) {
        if ( seen->num_events < SEEN )
            seen->events[seen->num_events++] = event;
        if ( event.type == MULTIPLAYER_PEER_CONNECTED )
            seen->known[seen->num_known++] = event.peer;
        for ( int i = 0; event.type == MULTIPLAYER_PEER_DISCONNECTED && i < seen->num_known; i++ )
            if ( seen->known[i] == event.peer )
                seen->known[i] = seen->known[--seen->num_known];
    }
    while ( reads && m->queue_packets > 0 ) {
        int32_t from = multiplayer_packet_peer( m );
        REQUIRE( multiplayer_get( m, &packet, &data ) == MULTIPLAYER_OK );
        REQUIRE( packet.from == from );
        int known = 0;
        for ( int i = 0; i < seen->num_known; i++ )
            known |= seen->known[i] == from;
        seen->unknown += !known;
        if ( seen->num_packets == SEEN )
            continue;
        seen->packets[seen->num_packets].from = from;
        seen->packets[seen->num_packets].channel = packet.channel;
        seen->packets[seen->num_packets].bytes = packet.bytes;
        memcpy( seen->packets[seen->num_packets++].first, data, (size_t) ( packet.bytes < 16 ? packet.bytes : 16 ) );
    }
}

static void world_step( void )
{
    world.time += 1.0 / TICKS_PER_SECOND;
    netcode_network_simulator_update( world.network, world.time );
    int polls = world.poll_every == 0 || ++world.ticks % world.poll_every == 0;
    if ( polls ) {
        multiplayer_poll( &world.server, world.time );
        world_see( &world.server, &world.server_seen, !world.idle_reader );
    }
    for ( int i = 0; i < PEERS; i++ ) {
        multiplayer_poll( &world.clients[i], world.time );
        world_see( &world.clients[i], &world.client_seen[i], 1 );
        multiplayer_flush( &world.clients[i], world.time );
    }
    if ( world.raw.client != NULL )
        raw_update( &world.raw, world.time );
    if ( polls )
        multiplayer_flush( &world.server, world.time );
}

static void world_run( double seconds )
{
    for ( int i = 0; i < (int) ( seconds * TICKS_PER_SECOND ); i++ )
        world_step();
}

static void world_serve( int max_clients, int no_relay )
{
    struct multiplayer_server_options_t options;
    memset( &options, 0, sizeof( options ) );
    options.address = "127.0.0.1:40000";
    options.private_key = world.key;
    options.protocol_id = 7;
    options.max_clients = max_clients;
    options.no_relay = no_relay;
    options.simulator = world.network;
    REQUIRE_EQ( multiplayer_create_server( &world.server, &options, world.time ), MULTIPLAYER_OK );
}

static void world_token( uint64_t client_id, uint8_t * token )
{
    const char * address = "127.0.0.1:40000";
    REQUIRE( netcode_generate_connect_token( 1, &address, &address, 60 + world.later, 3, client_id, 7, world.key, NULL,
                                             token ) );
}

static int world_join_as( int index, uint64_t client_id )
{
    struct multiplayer_client_options_t options;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char address[64];
    memset( &options, 0, sizeof( options ) );
    memset( &world.client_seen[index], 0, sizeof( world.client_seen[index] ) );
    snprintf( address, sizeof( address ), "127.0.0.1:%d", (int) ( 41000 + ++world.ids ) );
    world_token( client_id, token );
    options.connect_token = token;
    options.max_packet_bytes = world.max_packet_bytes;
    options.bind_address = address;
    options.simulator = world.network;
    return multiplayer_create_client( &world.clients[index], &options, world.time );
}

/* Clients 0 to count - 1, connected and known to each other. */
static void world_open( int count )
{
    world_serve( PEERS, 0 );
    for ( int i = 0; i < count; i++ )
        REQUIRE_EQ( world_join_as( i, 100 + (uint64_t) i ), MULTIPLAYER_OK );
    world_run( 3.0 );
    for ( int i = 0; i < count; i++ )
        REQUIRE_EQ( world.clients[i].status, MULTIPLAYER_CONNECTED );
}

static void world_raw( void )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char address[64];
    snprintf( address, sizeof( address ), "127.0.0.1:%d", (int) ( 41000 + ++world.ids ) );
    world_token( 900 + world.ids, token );
    REQUIRE( raw_open( &world.raw, address, world.network, token, world.time ) );
    world_run( 1.0 );
    REQUIRE( world.raw.id > 1 );
}

static void world_close_raw( void )
{
    if ( world.raw.client != NULL )
        raw_close( &world.raw );
}

static void world_send( struct multiplayer_t * m, int32_t target, int channel, const void * data, int bytes,
                        int expect )
{
    m->target = target;
    m->channel = channel;
    CHECK_EQ( multiplayer_put( m, (const uint8_t *) data, bytes ), expect );
}

static int seen_event( const struct seen_t * seen, int type, int32_t peer )
{
    int count = 0;
    for ( int i = 0; i < seen->num_events; i++ )
        count += seen->events[i].type == type && ( peer == 0 || seen->events[i].peer == peer );
    return count;
}

/* How many packets begin with this text, from this peer (0: any). */
static int seen_text( const struct seen_t * seen, int32_t from, const char * text )
{
    int count = 0;
    for ( int i = 0; i < seen->num_packets; i++ )
        count += ( from == 0 || seen->packets[i].from == from ) &&
                 memcmp( seen->packets[i].first, text, strlen( text ) ) == 0;
    return count;
}

#define ID( i ) world.clients[i].unique_id
#define SEEN_BY( i ) ( &world.client_seen[i] )

#include "unit_frames.c"

#include "unit_play.c"

#include "unit_leave.c"

#include "unit_hostile.c"

/* ---- the runner ---- */

static int unit_passed, unit_failed;

static void test_begin( uint64_t seed )
{
    memset( &world, 0, sizeof( world ) );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    world.time = 100.0;
    world.network = netcode_network_simulator_create( NULL, NULL, NULL );
    world.network->seed = seed;
    netcode_network_simulator_reset( world.network );
    world.network->latency_milliseconds = 20.0f;
    netcode_random_bytes( world.key, NETCODE_KEY_BYTES );
    multiplayer_init( &world.server );
    for ( int i = 0; i < PEERS; i++ )
        multiplayer_init( &world.clients[i] );
}

static void test_end( void )
{
    world_close_raw();
    for ( int i = 0; i < PEERS; i++ )
        multiplayer_destroy( &world.clients[i] );
    multiplayer_destroy( &world.server );
    netcode_network_simulator_destroy( world.network );
    unit_passed += test_state.failures == 0;
    unit_failed += test_state.failures != 0;
}

int main( int count, char ** arguments )
{
    netcode_set_assert_function( test_assert_handler );
    netcode_set_printf_function( test_printf );
    if ( netcode_init() != NETCODE_OK )
        return 1;
    int result = test_main( count, arguments );
    netcode_term();
    printf( "godot-unit: %d passed, %d failed\n", unit_passed, unit_failed );
    return result;
}
