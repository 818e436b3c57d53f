/*  make fairness: what the players of a server with the default configuration hear of each other while one attacker floods it, over rates of
    updates, private keys, slots, kinds of attack and bandwidths. Each cell must hold: the others' packets are heard (99 %), with at most one tick of
    delay, for at most 15 % of a core more than without the attack; and of a client whose address is forged, with sequences of chance, nine of ten. Two
    kinds of cells are excused by name: where the players alone fill half of the socket's buffer, and where all that they send is sent again at more
    than 60 Mbit/s (or at all, with the buffer of a system as it is installed). Virtual time; the work is real, and receiving takes as long as that of a small datagram takes on loopback here.

        fairness            all cells, some minutes
        fairness --short    a tenth of them
        fairness --usual    with the buffer of a system as it is installed
        fairness --real     over loopback: server and players of this library, and an attacker that is a process of its own, a minute
        fairness --slow     without the limit on a core's share, which a sanitizer or an emulated processor would miss */

#if !defined( _GNU_SOURCE )
#define _GNU_SOURCE /* sendmmsg */
#endif

#define NETCODE_IMPLEMENTATION
#include "../netcode.h"
static nc_socket_extras_t udp_extras;

#include <math.h>

#include "fairness.h"

static struct fair_result_t fair_calm[4][4]; /* without an attack, by rate and slots */

static const int fair_rates[] = { 20, 30, 60, 128 };
static const int fair_slots[] = { 16, 64, 256, 1000 };
static const int fair_megabits[] = { 7, 20, 60, 170 };
static const int fair_keys[] = { 1, 2, 4 };

static int fair_cells, fair_hold, fair_small, fair_known, fair_failed;

static int fair_compare( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

/* Seconds of the processor that the system takes here to hand over a small datagram, with what this library does of it. */
static double fair_measure_receive( void )
{
    enum { ROUNDS = 31, COUNT = 256 };
    static uint8_t data[NC_RECEIVE_BATCH][NC_BUFFER_CAPACITY];
    struct netcode_address_t at;
    struct netcode_socket_t socket;
    struct netcode_datagram_t out, in[NC_RECEIVE_BATCH];
    nc_socket_request_t request;
    double seconds[ROUNDS];
    int family;
    memset( &request, 0, sizeof( request ) );
    memset( &out, 0, sizeof( out ) );
    memset( in, 0, sizeof( in ) );
    netcode_parse_address( "127.0.0.1:0", &at );
    request.allocator = nc_allocator_make( NULL, NULL, NULL );
    request.addresses[0] = &at;
    request.receive_buffer_bytes = request.send_buffer_bytes = 4 << 20;
    if ( nc_socket_open_udp( &socket, &udp_extras, &request, &family ) != NC_SOCKET_OK )
        return 0.0;
    out.address = ( (nc_socket_udp_t *) socket.context )->bound[0];
    out.data = data[0];
    out.bytes = 43;
    for ( int round = 0; round < ROUNDS; round++ ) {
        int received = 0, count = 1;
        for ( int i = 0; i < COUNT; i++ )
            socket.send( socket.context, &out, 1 );
        double start = fair_cpu_seconds();
        while ( count > 0 ) {
            for ( int i = 0; i < NC_RECEIVE_BATCH; i++ ) {
                in[i].data = data[i];
                in[i].capacity = NC_BUFFER_CAPACITY;
            }
            count = socket.receive( socket.context, in, NC_RECEIVE_BATCH );
            received += count > 0 ? count : 0;
        }
        seconds[round] = ( fair_cpu_seconds() - start ) / ( received ? received : 1 );
    }
    socket.close( socket.context );
    qsort( seconds, ROUNDS, sizeof( seconds[0] ), fair_compare );
    return seconds[ROUNDS / 2];
}

static const struct fair_result_t * fair_without( int rate, int slots )
{
    struct fair_setting_t setting = { FAIR_NOTHING, fair_rates[rate], 1, fair_slots[slots], 0, 1.0 };
    if ( fair_calm[rate][slots].heard == 0.0 )
        fair_run( &setting, &fair_calm[rate][slots] );
    return &fair_calm[rate][slots];
}

static void fair_one( int attack, int rate, int keys, int slots, int megabits, int slow )
{
    struct fair_setting_t setting =
        { attack, fair_rates[rate], fair_keys[keys], fair_slots[slots], fair_megabits[megabits], 1.0 };
    const struct fair_result_t * calm = fair_without( rate, slots );
    struct fair_result_t result;
    const char * word = "FAILED";
    fair_cells++;
    if ( !fair_run( &setting, &result ) ) {
        printf( "FAILED: the players could not connect\n" );
        fair_failed++;
        return;
    }
    double more = result.core - calm->core;
    int holds =
        result.heard >= 0.99 && result.heard_least >= 0.97 && result.late <= 0.01 && ( more <= 0.15 || slow ) &&
        ( ( attack != FAIR_FORGED && attack != FAIR_OWN_REQUESTS && attack != FAIR_EIGHT ) || result.victim >= 0.9 );
    if ( holds ) {
        word = "ok";
        fair_hold++;
    } else if ( calm->buffer > fair_buffer / 2 ) {
        word = "the buffer is too small for the players alone";
        fair_small++;
    } else if ( attack == FAIR_REPLAYS && ( setting.megabits > 60 || fair_buffer < FAIR_BUFFER ) ) {
        word = "known: what all clients have sent, sent again";
        fair_known++;
    } else
        fair_failed++;
    printf( "%-32s %4d %4d %5d %5d  %6.1f %6.1f %6.1f %6.1f  %6.1f %6.2f %7d  %s\n", fair_attacks[attack].name,
            setting.hz, setting.keys, setting.slots, setting.megabits, 100.0 * result.heard, 100.0 * result.heard_least,
            100.0 * result.late, 100.0 * result.victim, 100.0 * more, 1e3 * result.worst_update,
            result.buffer / 2 / 1024, word );
    fflush( stdout );
}

/* ---- over loopback ---- */

#if defined( __linux__ )

#include <signal.h>
#include <sys/wait.h>

enum { REAL_PLAYERS = 64, REAL_SOCKETS = 64, REAL_BATCH = 64, REAL_ONSET_MS = 500, REAL_SECONDS = 4 };

static struct {
    struct netcode_server_t * server;
    struct netcode_client_t * players[REAL_PLAYERS];
    struct sockaddr_in to;
} real;

static int real_open( void )
{
    struct netcode_server_config_t config;
    struct netcode_client_config_t client_config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    char text[64];
    const char * address = text;
    double time = netcode_time();
    netcode_default_server_config( &config );
    config.protocol_id = FAIR_PROTOCOL;
    config.events = 1;
    netcode_random_bytes( config.private_key, sizeof( config.private_key ) );
    real.server = netcode_server_create( "127.0.0.1:0", &config, time );
    if ( !real.server )
        return 0;
    netcode_server_start( real.server, REAL_PLAYERS );
    snprintf( text, sizeof( text ), "127.0.0.1:%d", netcode_server_get_port( real.server ) );
    memset( &real.to, 0, sizeof( real.to ) );
    real.to.sin_family = AF_INET;
    real.to.sin_port = htons( netcode_server_get_port( real.server ) );
    real.to.sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    netcode_default_client_config( &client_config );
    for ( int i = 0; i < REAL_PLAYERS; i++ ) {
        struct netcode_client_t * player = netcode_client_create( "127.0.0.1:0", &client_config, time );
        real.players[i] = player;
        netcode_generate_connect_token( 1, &address, &address, 60, 5, 1 + (uint64_t) i, FAIR_PROTOCOL,
                                        config.private_key, NULL, token );
        if ( !player )
            return 0;
        netcode_client_connect( player, token );
        for ( int tries = 0; tries < 500 && netcode_client_state( player ) != NETCODE_CLIENT_STATE_CONNECTED;
              tries++ ) {
            netcode_client_update( player, netcode_time() );
            netcode_server_update( real.server, netcode_time() );
            netcode_sleep( 0.0005 );
        }
    }
    return netcode_server_num_connected_clients( real.server ) == REAL_PLAYERS;
}

static void real_close( void )
{
    for ( int i = 0; i < REAL_PLAYERS; i++ )
        netcode_client_destroy( real.players[i] );
    netcode_server_destroy( real.server );
}

/*  The process that floods, from the first player's own socket or from many others. Where one core can not seal as many payloads, it repeats
    some. */
static void real_flood( int attack, int megabits )
{
    static uint8_t data[REAL_BATCH][NC_REQUEST_BYTES];
    struct netcode_client_t * player = real.players[0];
    nc_packet_context_t channel = { player->token.route.client_to_server_key, FAIR_PROTOCOL };
    struct mmsghdr messages[REAL_BATCH];
    struct iovec vectors[REAL_BATCH];
    int handles[REAL_SOCKETS], own = attack == FAIR_PAYLOADS || attack == FAIR_FORGED;
    int bytes = fair_attacks[attack].bytes;
    uint64_t sequence = 1 << 20, sent = 0;
    double start = netcode_time();
    for ( int i = 0; i < REAL_SOCKETS; i++ )
        handles[i] =
            own ? ( (nc_socket_udp_t *) player->base.socket.context )->handles[0] : socket( AF_INET, SOCK_DGRAM, 0 );
    for ( ;; ) {
        if ( (double) sent >= ( netcode_time() - start ) * megabits * 125000.0 / bytes ) {
            netcode_sleep( 0.0002 );
            continue;
        }
        for ( int i = 0; i < REAL_BATCH; i++ ) {
            nc_packet_t packet = { NETCODE_PACKET_PAYLOAD, 0, 20, sequence++ };
            uint64_t expires = (uint64_t) time( NULL ) + 100;
            memset( &messages[i], 0, sizeof( messages[i] ) );
            vectors[i].iov_base = data[i];
            vectors[i].iov_len = (size_t) bytes;
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            messages[i].msg_hdr.msg_name = own ? NULL : &real.to; /* a player's socket is connected */
            messages[i].msg_hdr.msg_namelen = own ? 0 : sizeof( real.to );
            if ( attack == FAIR_PAYLOADS && ( i == 0 || megabits < 100 ) )
                nc_packet_seal( data[i], &packet, (const uint8_t *) messages, &channel );
            else if ( attack == FAIR_REQUESTS ) {
                memcpy( data[i] + 1, "NETCODE 1.02", NC_VERSION_BYTES );
                nc_store_u64( data[i] + 14, FAIR_PROTOCOL );
                nc_store_u64( data[i] + 22, expires );
                netcode_random_bytes( data[i] + 30, 64 );
            } else {
                data[i][0] = (uint8_t) ( attack == FAIR_RESPONSES ? 7 << 4 | NETCODE_PACKET_RESPONSE
                                                                  : 6 << 4 | NETCODE_PACKET_PAYLOAD );
                nc_store_u64( data[i] + 1, packet.sequence );
                if ( attack == FAIR_JUNK ) {
                    netcode_random_bytes( data[i], 4 );
                    vectors[i].iov_len = 1 + 2 * (size_t) fair_attacks[attack].bytes * data[i][1] / 256;
                }
            }
        }
        (void) sendmmsg( handles[sent / REAL_BATCH % REAL_SOCKETS], messages, REAL_BATCH, MSG_DONTWAIT );
        sent += REAL_BATCH;
    }
}

/* The others each say something in each tick, and so does the one whose address is forged. */
static void real_play( int attack, int hz, struct fair_result_t * result )
{
    uint64_t heard[REAL_PLAYERS] = { 0 }, said = 0, all = 0, late = 0, tick = 0;
    double start = netcode_time(), next = start;
    while ( netcode_time() - start < REAL_SECONDS + 1e-3 * REAL_ONSET_MS ) {
        double time = netcode_time();
        uint64_t counts = time - start > 1e-3 * REAL_ONSET_MS, what[2] = { ++tick, counts };
        struct netcode_event_t event;
        for ( int i = attack != FAIR_FORGED; i < REAL_PLAYERS; i++ ) {
            netcode_client_update( real.players[i], time );
            netcode_client_send_packet( real.players[i], (const uint8_t *) what, sizeof( what ) );
        }
        said += counts;
        double cpu = fair_cpu_seconds();
        netcode_server_update( real.server, time );
        cpu = counts ? fair_cpu_seconds() - cpu : 0.0;
        result->core += cpu / REAL_SECONDS;
        result->worst_update = cpu > result->worst_update ? cpu : result->worst_update;
        while ( netcode_server_next_event( real.server, &event ) ) {
            if ( event.type != NETCODE_EVENT_PAYLOAD )
                continue;
            memcpy( what, event.data, sizeof( what ) );
            if ( event.bytes == sizeof( what ) && what[1] ) {
                heard[event.client_index]++;
                late += tick - what[0] > 1;
            }
            netcode_server_free_packet( real.server, event.data );
        }
        next += 1.0 / hz;
        netcode_sleep( next > netcode_time() ? next - netcode_time() : 0.0 );
    }
    result->heard_least = 1.0;
    for ( int i = 1; i < REAL_PLAYERS; i++ ) {
        double share = (double) heard[i] / (double) ( said ? said : 1 );
        result->heard_least = share < result->heard_least ? share : result->heard_least;
        all += heard[i];
    }
    result->victim = (double) heard[0] / (double) ( said ? said : 1 );
    result->heard = (double) all / (double) ( REAL_PLAYERS - 1 ) / (double) ( said ? said : 1 );
    result->late = all ? (double) late / (double) all : 1.0;
}

static int real_one( int attack, int hz, int megabits )
{
    struct fair_result_t result;
    struct netcode_server_stats_t stats;
    memset( &result, 0, sizeof( result ) );
    if ( !real_open() ) {
        printf( "FAILED: the players could not connect\n" );
        return 0;
    }
    fflush( stdout );
    pid_t child = fork();
    if ( child == 0 )
        real_flood( attack, megabits ); /* till it is ended */
    real_play( attack, hz, &result );
    kill( child, SIGKILL );
    waitpid( child, NULL, 0 );
    netcode_server_stats( real.server, &stats );
    int holds = result.heard >= 0.99 && result.late <= 0.01 && ( attack != FAIR_FORGED || result.victim >= 0.9 );
    printf( "%-32s %4d %6d  %6.1f %6.1f %6.1f %6.1f  %6.1f %6.2f  %9llu  %s\n", fair_attacks[attack].name, hz, megabits,
            100.0 * result.heard, 100.0 * result.heard_least, 100.0 * result.late, 100.0 * result.victim,
            100.0 * result.core, 1e3 * result.worst_update, (unsigned long long) stats.kernel_drops,
            holds ? "ok" : "FAILED" );
    real_close();
    return holds;
}

static int real_all( void )
{
    static const int attacks[] = { FAIR_PAYLOADS, FAIR_FORGED, FAIR_JUNK, FAIR_UNKNOWN, FAIR_RESPONSES, FAIR_REQUESTS };
    static const int megabits[] = { 20, 60, 170 };
    int holds = 1;
    printf( "over loopback, %d players: what the others are heard of, from half a second after it began\n",
            REAL_PLAYERS );
    printf( "attack                             Hz   Mb/s   heard  least   late victim    core  worst      drops  (%%, "
            "%%, %%, "
            "%%; %% of a "
            "core; ms; the system's)\n" );
    for ( size_t i = 0; i < sizeof( attacks ) / sizeof( attacks[0] ); i++ )
        for ( size_t k = 0; k < sizeof( megabits ) / sizeof( megabits[0] ); k++ )
            holds &= real_one( attacks[i], 60, megabits[k] ) & real_one( attacks[i], 20, megabits[k] );
    return holds;
}

#else

static int real_all( void )
{
    printf( "skipped: only Linux stops floods in the system\n" );
    return 1;
}

#endif

int main( int argc, char ** argv )
{
    int part = 1, slow = 0, number = 0, over_loopback = 0, i;
    for ( i = 1; i < argc; i++ ) {
        part = strcmp( argv[i], "--short" ) == 0 ? 11 : part;
        if ( strcmp( argv[i], "--usual" ) == 0 )
            fair_buffer = FAIR_BUFFER_USUAL;
        over_loopback |= strcmp( argv[i], "--real" ) == 0;
        slow |= strcmp( argv[i], "--slow" ) == 0;
    }
    if ( netcode_init() != NETCODE_OK )
        return 1;
    if ( over_loopback ) {
        int holds = real_all();
        netcode_term();
        return !holds;
    }
    fair.receive_seconds = fair_measure_receive();
    printf( "receiving a datagram takes %.2f us here\n", 1e6 * fair.receive_seconds );
    printf( "attack                             Hz keys slots  Mb/s   heard  least   late victim   core+  worst     "
            "KiB  (%%, %%, "
            "%%, %%; %% of a core; ms; of "
            "the socket's buffer)\n" );
    for ( int attack = FAIR_PAYLOADS; attack < FAIR_ATTACKS; attack++ )
        for ( int rate = 0; rate < 4; rate++ )
            for ( int keys = 0; keys < ( attack == FAIR_REQUESTS || attack == FAIR_TOKENS_VALID ? 3 : 1 ); keys++ )
                for ( int slots = 0; slots < 4; slots++ )
                    for ( int megabits = 0; megabits < 4; megabits++ )
                        if ( number++ % part == 0 )
                            fair_one( attack, rate, keys, slots, megabits, slow );
    netcode_term();
    printf( "%d cells: %d hold; in %d the buffer is too small for the players alone; %d known; %d failed\n", fair_cells,
            fair_hold, fair_small, fair_known, fair_failed );
    return fair_failed ? 1 : 0;
}
