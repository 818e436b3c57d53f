/*  The players of make roam: a server whose clients may change their address, or many clients in one process, over real UDP sockets.
    Each tick of a client sends a payload with its id and the number of the last one that it read, each tick of the server answers with the
    id that its books have for that slot, and with the one that was heard from there last; both sides compare. Each writes down when each
    payload was read.

        play server --at ADDRESS:PORT [--slots N] OPTIONS
        play clients --through ADDRESS:PORT --server ADDRESS:PORT --clients N [--first N] OPTIONS

        --hz N         ticks a second, 60; --every N: a payload each N ticks, 1
        --record FILE  a line "ID SECONDS" for each payload that was read, on the clock of all processes of this machine
        --seconds N    the longest time that it runs; SIGTERM ends it before

    The clients call netcode_client_rebind on SIGUSR1, and print "connected" when all are. The server writes "moved ID" to its standard error
    for each move, and "answered ID" when the client has read a payload that was sent there. At its end each process prints what it counted,
    and a line for each client. In it, rtt and share are the library's, transit what came of payloads that carry the time at which they
    were sent: all three are means over the same time. The private key is of no use elsewhere. */

#if !defined( _DEFAULT_SOURCE )
#define _DEFAULT_SOURCE 1
#endif

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define PROTOCOL_ID 0x526f616d526f616du
enum { KEY_BYTE = 7, MOST_CLIENTS = 2048, PAYLOAD_BYTES = 64, TIMEOUT_SECONDS = 10 };
enum { AT_CLIENT_ID, AT_HEARD, AT_NUMBER, AT_SENT_NS, WORDS }; /* what a payload begins with */
#define WARM_UP_SECONDS 2.0

struct options_t {
    const char *at, *record;
    const char *through[1], *server[1]; /* as tokens want them */
    double slots, clients, first, hz, every, seconds;
};

struct arrival_t {
    uint64_t id;
    double time;
};

/* What became of the payloads from one peer. */
struct measure_t {
    double first_time, last_number, missing; /* numbers between those that came */
    double transits;                         /* a sum, in seconds */
    double round_trips;                      /* the same of the library */
    double loss_shares;
    uint64_t payloads;
};

static volatile sig_atomic_t signal_stop, signal_rebind;
static struct arrival_t * arrivals;
static size_t num_arrivals, max_arrivals;
static uint64_t wrong; /* payloads that were another client's, or damaged */
static double late_most;

static void on_signal( int number )
{
    if ( number == SIGUSR1 )
        signal_rebind = 1;
    else
        signal_stop = 1;
}

/* CLOCK_MONOTONIC, which all processes of a machine share. */
static double time_now( void )
{
    struct timespec now;
    clock_gettime( CLOCK_MONOTONIC, &now );
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void sleep_until( double time )
{
    struct timespec until;
    until.tv_sec = (time_t) time;
    until.tv_nsec = (long) ( ( time - (double) until.tv_sec ) * 1e9 );
    if ( clock_nanosleep( CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL ) == 0 ) {
        double late = time_now() - time;
        late_most = late > late_most ? late : late_most;
    }
}

/* ---- payloads ---- */

static void note_arrival( uint64_t id, double time )
{
    if ( num_arrivals == max_arrivals ) {
        size_t more = max_arrivals ? 2 * max_arrivals : 1 << 16;
        struct arrival_t * grown = (struct arrival_t *) realloc( arrivals, more * sizeof( struct arrival_t ) );
        if ( !grown )
            exit( 2 );
        arrivals = grown;
        max_arrivals = more;
    }
    arrivals[num_arrivals].id = id;
    arrivals[num_arrivals++].time = time;
}

static void payload_make( uint8_t * data, uint64_t client_id, uint64_t heard, uint64_t number, uint64_t sent_ns )
{
    uint64_t words[WORDS];
    words[AT_CLIENT_ID] = client_id;
    words[AT_HEARD] = heard;
    words[AT_NUMBER] = number;
    words[AT_SENT_NS] = sent_ns;
    memcpy( data, words, sizeof( words ) );
    for ( int i = (int) sizeof( words ); i < PAYLOAD_BYTES; i++ )
        data[i] = (uint8_t) ( number + (uint64_t) i );
}

/* Is it a payload of this client? What it begins with goes to `words`. */
static int payload_read( const uint8_t * data, int bytes, uint64_t client_id, uint64_t words[WORDS] )
{
    uint8_t expected[PAYLOAD_BYTES];
    memset( words, 0, WORDS * sizeof( words[0] ) );
    if ( bytes != PAYLOAD_BYTES )
        return 0;
    memcpy( words, data, WORDS * sizeof( words[0] ) );
    payload_make( expected, client_id, words[AT_HEARD], words[AT_NUMBER], words[AT_SENT_NS] );
    return memcmp( expected, data, PAYLOAD_BYTES ) == 0;
}

/* True where the library's figures shall be read and given to measure_library: at each payload, after the first seconds. */
static int measure_payload( struct measure_t * it, const uint64_t words[WORDS], double now )
{
    double number = (double) words[AT_NUMBER];
    if ( it->first_time == 0.0 )
        it->first_time = now;
    else
        it->missing += number - it->last_number - 1.0;
    it->last_number = number;
    if ( now - it->first_time < WARM_UP_SECONDS )
        return 0;
    it->transits += now - (double) words[AT_SENT_NS] * 1e-9;
    it->payloads++;
    return 1;
}

static void measure_library( struct measure_t * it, double round_trip, double loss_share )
{
    it->round_trips += round_trip;
    it->loss_shares += loss_share;
}

static void measure_print( const struct measure_t * it )
{
    double payloads = it->payloads ? (double) it->payloads : 1.0;
    printf( " rtt=%.6f share=%.6f transit=%.6f missing=%.0f\n", it->round_trips / payloads, it->loss_shares / payloads,
            it->transits / payloads, it->missing );
}

static int write_record( const char * path )
{
    FILE * file = path ? fopen( path, "w" ) : NULL;
    if ( !path )
        return 1;
    for ( size_t i = 0; file && i < num_arrivals; i++ )
        fprintf( file, "%" PRIu64 " %.6f\n", arrivals[i].id, arrivals[i].time );
    return file && fclose( file ) == 0;
}

static void log_line( void * context, int level, const char * text )
{
    (void) context;
    (void) level;
    fprintf( stderr, "%s\n", text );
}

/* ---- the server ---- */

static uint64_t heard_ids[MOST_CLIENTS];
static struct measure_t heard[MOST_CLIENTS];
/* Each client's payloads from this number on were sent after its move; 0: it has read one of them. */
static uint64_t moved_at[MOST_CLIENTS];
static uint64_t moved_events, sent;

/* `number`: of the last payloads that were sent, or less. */
static void server_read( const struct options_t * options, struct netcode_server_t * server, uint64_t number,
                         double now )
{
    struct netcode_event_t event;
    struct netcode_server_client_stats_t one;
    while ( netcode_server_next_event( server, &event ) ) {
        if ( event.type == NETCODE_EVENT_MOVED ) {
            moved_events++;
            moved_at[event.client_index] = number + 1;
            fprintf( stderr, "moved %" PRIu64 "\n", event.client_id );
        }
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        uint64_t id = netcode_server_client_id( server, event.client_index ), words[WORDS];
        int good = ( id == event.client_id || id == 0 ) && /* 0: it has left meanwhile */
                   payload_read( event.data, event.bytes, event.client_id, words );
        wrong += (uint64_t) !good;
        if ( good && measure_payload( &heard[event.client_index], words, now ) ) {
            netcode_server_client_stats( server, event.client_index, &one );
            measure_library( &heard[event.client_index], one.round_trip_seconds, one.loss_share );
        }
        if ( good && moved_at[event.client_index] && words[AT_HEARD] >= moved_at[event.client_index] ) {
            moved_at[event.client_index] = 0;
            fprintf( stderr, "answered %" PRIu64 "\n", event.client_id );
        }
        memcpy( &heard_ids[event.client_index], event.data, sizeof( uint64_t ) );
        note_arrival( event.client_id, now );
        netcode_server_free_packet( server, event.data );
    }
}

static void server_report( struct netcode_server_t * server )
{
    struct netcode_server_stats_t it;
    uint64_t dropped = 0;
    netcode_server_stats( server, &it );
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        dropped += it.dropped[i];
    printf( "all connects=%" PRIu64 " clients=%d moves=%" PRIu64 " moved_events=%" PRIu64 " candidates=%" PRIu64
            " trials=%" PRIu64 " trials_refused=%" PRIu64 " dropped=%" PRIu64 " probes_sent=%" PRIu64
            " probes_answered=%" PRIu64 " backlogs=%" PRIu64 " wrong=%" PRIu64 " sent=%" PRIu64 " late=%.6f\n",
            it.connects, it.clients, it.moves, moved_events, it.path_candidates, it.trials, it.trials_refused, dropped,
            it.probes_sent, it.probes_answered, it.backlogs, wrong, sent, late_most );
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        if ( it.dropped[i] )
            printf( "dropped %s=%" PRIu64 "\n", netcode_drop_reason_name( i ), it.dropped[i] );
    for ( int i = 0; i < netcode_server_max_clients( server ); i++ ) {
        struct netcode_server_client_stats_t one;
        netcode_server_client_stats( server, i, &one );
        if ( one.session ) {
            printf( "client id=%" PRIu64 " lowest=%.6f lost=%" PRIu64 " received=%" PRIu64 " moves=%" PRIu64,
                    one.client_id, one.round_trip_lowest_seconds, one.packets_lost, one.packets_received, one.moves );
            measure_print( &heard[i] );
        }
    }
}

static int run_server( const struct options_t * options )
{
    struct netcode_server_config_t config;
    double now = time_now(), end = now + options->seconds;
    uint8_t data[PAYLOAD_BYTES];
    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = PROTOCOL_ID;
    memset( config.private_key, KEY_BYTE, sizeof( config.private_key ) );
    config.bind_address = options->at;
    config.roaming = 1;
    config.batch_sends = 1;
    config.log_callback = log_line;
    struct netcode_server_t * server = netcode_server_create( options->at, &config, now );
    if ( !server ) {
        fprintf( stderr, "play: no server: %s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return 1;
    }
    netcode_server_start( server, (int) options->slots );
    printf( "port %d\n", netcode_server_get_port( server ) );
    fflush( stdout );
    double next = now;
    for ( uint64_t tick = 0; !signal_stop && now < end; tick++ ) {
        netcode_server_update( server, now );
        server_read( options, server, tick / (uint64_t) options->every, now );
        for ( int i = 0; tick % (uint64_t) options->every == 0 && i < (int) options->slots; i++ )
            if ( netcode_server_client_connected( server, i ) ) {
                payload_make( data, netcode_server_client_id( server, i ), heard_ids[i],
                              tick / (uint64_t) options->every, (uint64_t) ( now * 1e9 ) );
                netcode_server_send_packet( server, i, data, PAYLOAD_BYTES );
                sent++;
            }
        netcode_server_flush( server );
        next += 1.0 / options->hz;
        sleep_until( next );
        now = time_now();
    }
    /* It takes no leave: what its clients count as a disconnect is one. */
    server_report( server );
    return 0;
}

/* ---- clients ---- */

struct guest_t {
    struct netcode_client_t * client;
    uint64_t id, number, last_read, ticks;
    struct measure_t heard;
    double next; /* its ticks are its own: they meet the server's in another phase than its neighbour's */
    int was_connected, disconnects;
};

static struct guest_t guests[MOST_CLIENTS];

static int guest_begin( struct options_t * options, int number )
{
    struct guest_t * guest = &guests[number];
    struct netcode_client_config_t config;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], key[NETCODE_KEY_BYTES];
    double now = time_now();
    netcode_default_client_config( &config );
    config.log_callback = log_line;
    memset( key, KEY_BYTE, sizeof( key ) );
    guest->id = (uint64_t) ( options->first + number );
    guest->next = now + ( number + 0.5 ) / options->clients / options->hz;
    guest->client = netcode_client_create( "0.0.0.0:0", &config, now );
    if ( !guest->client || netcode_generate_connect_token( 1, options->through, options->server, 60, TIMEOUT_SECONDS,
                                                           guest->id, PROTOCOL_ID, key, NULL, token ) != NETCODE_OK )
        return 0;
    netcode_client_connect( guest->client, token );
    return 1;
}

static void guest_tick( const struct options_t * options, struct guest_t * guest, double now )
{
    uint8_t data[PAYLOAD_BYTES], *packet;
    int bytes;
    netcode_client_update( guest->client, now );
    int connected = netcode_client_state( guest->client ) == NETCODE_CLIENT_STATE_CONNECTED;
    guest->disconnects += guest->was_connected && !connected;
    guest->was_connected = connected;
    while ( ( packet = netcode_client_receive_packet( guest->client, &bytes, NULL ) ) != NULL ) {
        struct netcode_client_stats_t it;
        uint64_t words[WORDS];
        int good =
            payload_read( packet, bytes, guest->id, words ) && ( words[AT_HEARD] == guest->id || words[AT_HEARD] == 0 );
        wrong += (uint64_t) !good;
        if ( good && measure_payload( &guest->heard, words, now ) ) {
            netcode_client_stats( guest->client, &it );
            measure_library( &guest->heard, it.round_trip_seconds, it.loss_share );
        }
        guest->last_read = words[AT_NUMBER];
        note_arrival( guest->id, now );
        netcode_client_free_packet( guest->client, packet );
    }
    if ( connected && guest->ticks++ % (uint64_t) options->every == 0 ) {
        payload_make( data, guest->id, guest->last_read, guest->number++, (uint64_t) ( now * 1e9 ) );
        netcode_client_send_packet( guest->client, data, PAYLOAD_BYTES );
    }
}

static void guest_report( const struct guest_t * guest )
{
    struct netcode_client_stats_t it;
    netcode_client_stats( guest->client, &it );
    uint64_t received = 0;
    for ( int i = 0; i < NETCODE_PACKET_TYPES; i++ )
        received += it.packets_received[i];
    printf( "client id=%" PRIu64 " port=%d connected=%d disconnects=%d lowest=%.6f lost=%" PRIu64 " received=%" PRIu64
            " rebinds=%" PRIu64 " send_errors=%" PRIu64,
            guest->id, netcode_client_get_port( guest->client ), guest->was_connected, guest->disconnects,
            it.round_trip_lowest_seconds, it.packets_lost, received, it.rebinds, it.send_errors );
    measure_print( &guest->heard );
}

/* One of them is due first; all of those that are due have their tick. Returns when the next one is due. */
static double guests_tick( const struct options_t * options, double now )
{
    double first = now + 1.0;
    for ( int i = 0; i < (int) options->clients; i++ ) {
        struct guest_t * guest = &guests[i];
        if ( guest->next <= now ) {
            guest_tick( options, guest, now );
            guest->next += 1.0 / options->hz;
            if ( guest->next < now - 0.1 ) /* the machine stood still */
                guest->next = now;
        }
        first = guest->next < first ? guest->next : first;
    }
    return first;
}

static int run_clients( struct options_t * options )
{
    double now = time_now(), end = now + options->seconds;
    int count = (int) options->clients, said = 0;
    for ( int i = 0; i < count; i++ )
        if ( !guest_begin( options, i ) ) {
            fprintf( stderr, "play: a client could not be made\n" );
            return 1;
        }
    while ( !signal_stop && ( now = time_now() ) < end ) {
        if ( signal_rebind ) {
            signal_rebind = 0;
            for ( int i = 0; i < count; i++ )
                netcode_client_rebind( guests[i].client );
        }
        sleep_until( guests_tick( options, now ) );
        int connected = 0;
        for ( int i = 0; !said && i < count; i++ )
            connected += guests[i].was_connected;
        if ( !said && connected == count ) {
            said = printf( "connected\n" );
            fflush( stdout );
        }
    }
    printf( "all wrong=%" PRIu64 " late=%.6f\n", wrong, late_most );
    for ( int i = 0; i < count; i++ ) {
        guest_report( &guests[i] );
        netcode_client_destroy( guests[i].client );
    }
    return 0;
}

/* ---- options ---- */

static int parse_option( struct options_t * options, const char * name, const char * text )
{
    struct {
        const char * name;
        const char ** text;
        double * number;
        double most;
    } known[] = { { "--at", &options->at, NULL, 0.0 },
                  { "--through", &options->through[0], NULL, 0.0 },
                  { "--server", &options->server[0], NULL, 0.0 },
                  { "--record", &options->record, NULL, 0.0 },
                  { "--slots", NULL, &options->slots, MOST_CLIENTS },
                  { "--clients", NULL, &options->clients, MOST_CLIENTS },
                  { "--first", NULL, &options->first, 1e6 },
                  { "--hz", NULL, &options->hz, 1e4 },
                  { "--every", NULL, &options->every, 1e4 },
                  { "--seconds", NULL, &options->seconds, 1e4 } };
    for ( size_t i = 0; i < sizeof( known ) / sizeof( known[0] ); i++ )
        if ( !strcmp( name, known[i].name ) ) {
            char * end = NULL;
            if ( known[i].text )
                return ( *known[i].text = text ) != NULL;
            *known[i].number = strtod( text, &end );
            return end != text && *end == '\0' && *known[i].number >= 1.0 && *known[i].number <= known[i].most;
        }
    return 0;
}

int main( int argc, char ** argv )
{
    struct options_t options = { NULL, NULL, { NULL }, { NULL }, 64.0, 1.0, 1.0, 60.0, 1.0, 300.0 };
    int is_server = argc > 1 && !strcmp( argv[1], "server" ), is_clients = argc > 1 && !strcmp( argv[1], "clients" );
    for ( int i = 2; i < argc; i += 2 )
        if ( i + 1 >= argc || !parse_option( &options, argv[i], argv[i + 1] ) ) {
            fprintf( stderr, "play: %s is no option, or its value is missing or wrong\n", argv[i] );
            return 2;
        }
    if ( !( is_server && options.at ) && !( is_clients && options.through[0] && options.server[0] ) ) {
        fprintf( stderr, "play: see the head of tests/roam/play.c\n" );
        return 2;
    }
    prctl( PR_SET_PDEATHSIG, SIGKILL ); /* it does not outlive the script */
    signal( SIGTERM, on_signal );
    signal( SIGINT, on_signal );
    signal( SIGUSR1, on_signal );
    if ( netcode_init() != NETCODE_OK )
        return 1;
    int status = is_server ? run_server( &options ) : run_clients( &options );
    if ( !write_record( options.record ) ) {
        fprintf( stderr, "play: %s could not be written\n", options.record );
        status = 1;
    }
    free( arrivals );
    netcode_term();
    return status;
}
