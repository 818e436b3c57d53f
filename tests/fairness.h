/*  What the players of a server hear of each other while one attacker floods it: a server in virtual time, over a socket in memory that holds as
    much as the system's would. Attacks 60 and 61 of the table run some cells of it, `make fairness` all. */

#ifndef TESTS_FAIRNESS_H
#define TESTS_FAIRNESS_H

#include <time.h>

enum { FAIR_CELL_BYTES = 1232, FAIR_CELLS = 32768, FAIR_SLOTS = 1000, FAIR_TOKENS = 512, FAIR_ONSET_MS = 500 };

/*  A socket's receive buffer of 4 MiB, which is what the library asks for, as Linux counts it: twice as many bytes, of which a datagram takes 768 or
    2304. A system as it is installed grants 208 KiB. */
enum { FAIR_BUFFER = 8 << 20, FAIR_BUFFER_USUAL = 2 * 212992 };

static int fair_buffer = FAIR_BUFFER;

enum fair_attack_t {
    FAIR_NOTHING,
    FAIR_PAYLOADS,
    FAIR_REQUESTS,
    FAIR_TOKENS_VALID,
    FAIR_FORGED,
    FAIR_FORGED_NEXT,
    FAIR_REPLAYS,
    FAIR_JUNK,
    FAIR_UNKNOWN,
    FAIR_RESPONSES,
    FAIR_ONE_NAT,
    FAIR_OWN_REQUESTS,
    FAIR_CROWD,
    FAIR_EIGHT,
    FAIR_UNKNOWN_ROAMING,
    FAIR_ATTACKS
};

static const struct {
    const char * name;
    int bytes;   /* of its datagrams, in the mean */
    int victims; /* the first clients, whose addresses are used */
} fair_attacks[FAIR_ATTACKS] = {
    { "nothing", 0, 0 },
    { "one client's payloads", 43, 1 },
    { "junk requests", 1078, 0 },
    { "valid requests", 1078, 0 },
    { "forged, any sequence", 43, 1 },
    { "forged, next sequences", 43, 1 },
    { "replays", 87, 0 },
    { "any byte, any size", 616, 0 },
    { "unknown addresses, payloads", 43, 0 },
    { "junk responses", 332, 0 },
    { "a client's NAT, requests", 1078, 0 }, /* from 35 ports of the first client's IP address */
    { "a client's own address, requests", 1078, 1 },
    { "twelve addresses, then a client", 43, 1 },
    { "forged at eight clients", 300, 8 },
    { "unknown addresses, with roaming", 43, 0 },
};

struct fair_setting_t {
    int attack;
    int hz;
    int keys;
    int slots;
    int megabits; /* a second */
    double seconds;
};

struct fair_result_t {
    double heard;        /* share of the others' packets */
    double heard_least;  /* of the one that is heard least */
    double late;         /* share of what was heard more than one tick after the first update that could have */
    double victim;       /* heard of the client whose address is forged or replayed, or of the one that floods */
    double core;         /* the server's share of a core */
    double worst_update; /* seconds */
    int buffer;          /* bytes of the buffer that were in use at most, as the system counts them */
};

struct fair_cell_t {
    struct netcode_address_t from;
    int bytes;
    uint8_t data[FAIR_CELL_BYTES];
};

struct fair_peer_t {
    struct netcode_address_t address;
    uint8_t key[NETCODE_KEY_BYTES];
    uint64_t sequence;
    uint64_t sent, heard;
    int last_bytes; /* its last datagram, to be replayed */
    uint8_t last[128];
};

static struct {
    struct fair_cell_t * cells; /* a ring */
    uint32_t head, tail;
    int held, held_most;
    nc_flood_filter_t filter; /* what the server had the system filter last */
    int filters;
    struct netcode_server_t * server;
    struct netcode_socket_t client_socket;
    struct netcode_address_t server_address;
    struct netcode_address_t client_address; /* of the one that connects */
    struct fair_cell_t answer;               /* the last datagram to it */
    int mute;
    int silent; /* the players say nothing */
    struct fair_peer_t peers[FAIR_SLOTS];
    uint8_t keys[NETCODE_MAX_PRIVATE_KEYS][NETCODE_KEY_BYTES];
    uint8_t tokens[FAIR_TOKENS][NETCODE_CONNECT_TOKEN_BYTES];
    uint32_t tokens_used;
    uint64_t random;
    uint64_t client_id;
    uint64_t counted; /* the update from which on what is said counts */
    double time;
    double began;           /* the attack */
    double receive_seconds; /* what the system takes to hand over one datagram; 0: the socket costs nothing */
} fair;

/* Receiving that costs no time, for tests: the real time that an update takes is not judged either. */
#define FAIR_TIMELESS 1e-9

static uint32_t fair_random( void )
{
    fair.random = fair.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ( fair.random >> 33 );
}

static void fair_store_random( uint8_t * out )
{
    uint32_t random = fair_random();
    memcpy( out, &random, sizeof( random ) );
}

static double fair_cpu_seconds( void )
{
#if defined( CLOCK_THREAD_CPUTIME_ID ) && !defined( _WIN32 )
    struct timespec now;
    clock_gettime( CLOCK_THREAD_CPUTIME_ID, &now );
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#else
    return 0.0;
#endif
}

/* ---- the socket ---- */

static int fair_true_bytes( int bytes )
{
    return bytes <= 256 ? 768 : 2304;
}

/*  Does the server's filter let this through, but for chance? 1: yes; 0: no; else one of so many. Tests on real sockets hold the kernel's program
    against this. `filter` NULL: nothing floods. */
static uint32_t fair_passes( const nc_flood_filter_t * filter, const struct netcode_address_t * from,
                             const uint8_t * data, int bytes )
{
    nc_packet_t packet = { 0, 0, 0, 0 };
    uint8_t padded[FAIR_CELL_BYTES + 128] = { 0 };
    memcpy( padded, data, (size_t) bytes );
    int is_request = bytes > 0 && data[0] == NETCODE_PACKET_REQUEST;
    if ( is_request ? bytes != NC_REQUEST_BYTES && bytes != NC_REQUEST_BYTES_OLD
                    : nc_packet_parse( &packet, padded, bytes, NC_TO_SERVER ) != NETCODE_DROP_NONE )
        return 0;
    if ( !filter )
        return 1;
    uint32_t bit = nc_flood_bit( filter, from ), few = 1;
    int connected = filter->connected[bit / 32] >> bit % 32 & 1;
    for ( const nc_flooder_t * it = filter->flooders; it < filter->flooders + NC_FLOODERS; it++ ) {
        struct netcode_address_t at = *from;
        if ( it->address.port == 0 ) {
            at.port = 0;
            memset( &at.data.ipv6[4], 0, at.type == NETCODE_ADDRESS_IPV6 ? 8 : 0 );
        }
        if ( !it->limited || !netcode_address_equal( &it->address, &at ) || ( connected && it->address.port == 0 ) )
            continue;
        uint64_t high = packet.sequence >> 16;
        if ( it->newest && high - ( it->newest >> 16 ) <= 1 &&
             ( high ? data[0] >> 4 == nc_packet_sequence_bytes( high << 16 ) : data[0] >> 4 <= 2 ) )
            return 1;
        few <<= 4 * it->limited;
    }
    if ( !filter->closed || connected )
        return few;
    if ( is_request || packet.type == NETCODE_PACKET_RESPONSE )
        return few << 2 * ( filter->closed - 1 );
    return filter->roaming ? few << 2 * ( filter->closed + 1 ) : 0;
}

static void fair_offer( const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    struct fair_cell_t * cell = &fair.cells[fair.tail % FAIR_CELLS];
    uint32_t few = fair_passes( fair.filters ? &fair.filter : NULL, from, data, bytes );
    if ( few == 0 || fair_random() % few )
        return;
    if ( fair.held + fair_true_bytes( bytes ) > fair_buffer || fair.tail - fair.head == FAIR_CELLS )
        return;
    cell->from = *from;
    cell->bytes = bytes;
    memcpy( cell->data, data, (size_t) bytes );
    fair.tail++;
    fair.held += fair_true_bytes( bytes );
    if ( fair.held > fair.held_most )
        fair.held_most = fair.held;
}

static int fair_server_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count && fair.head != fair.tail; i++, fair.head++ ) {
        const struct fair_cell_t * cell = &fair.cells[fair.head % FAIR_CELLS];
        datagrams[i].address = cell->from;
        datagrams[i].bytes = cell->bytes;
        memcpy( datagrams[i].data, cell->data, (size_t) cell->bytes );
        fair.held -= fair_true_bytes( cell->bytes );
    }
    double until = netcode_time() + (double) i * fair.receive_seconds;
    while ( fair.receive_seconds > 0.0 && netcode_time() < until )
        ;
    return i;
}

static int fair_set_filter( void * context, const nc_flood_filter_t * filter )
{
    (void) context;
    fair.filters = filter != NULL;
    if ( filter )
        fair.filter = *filter;
    return 1;
}

static double fair_fill( void * context )
{
    (void) context;
    if ( fair.receive_seconds <= FAIR_TIMELESS ) /* the clock of this update was started a moment ago */
        fair.server->work.until = 1e300;
    return (double) fair.held / (double) fair_buffer;
}

static int fair_server_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count; i++ )
        if ( netcode_address_equal( &datagrams[i].address, &fair.client_address ) ) {
            fair.answer.bytes = datagrams[i].bytes;
            memcpy( fair.answer.data, datagrams[i].data, (size_t) datagrams[i].bytes );
        }
    return count;
}

static int fair_client_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context;
    if ( count < 1 || fair.answer.bytes == 0 )
        return 0;
    datagrams->address = fair.server_address;
    datagrams->bytes = fair.answer.bytes;
    memcpy( datagrams->data, fair.answer.data, (size_t) fair.answer.bytes );
    fair.answer.bytes = 0;
    return 1;
}

static int fair_client_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    int i;
    (void) context;
    for ( i = 0; i < count && !fair.mute; i++ )
        fair_offer( &fair.client_address, datagrams[i].data, datagrams[i].bytes );
    return count;
}

/* ---- the clients ---- */

static struct netcode_address_t fair_address( uint32_t number, uint16_t port )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = NETCODE_ADDRESS_IPV4;
    address.data.ipv4[0] = 10;
    address.data.ipv4[1] = (uint8_t) ( number >> 16 );
    address.data.ipv4[2] = (uint8_t) ( number >> 8 );
    address.data.ipv4[3] = (uint8_t) number;
    address.port = port;
    return address;
}

enum { FAIR_PROTOCOL = 0x1234 };

static void fair_mint( uint8_t * token, int keys )
{
    const char * address = "10.255.255.1:40000";
    netcode_generate_connect_token( 1, &address, &address, 300, 5, ++fair.client_id, FAIR_PROTOCOL, fair.keys[keys - 1],
                                    NULL, token );
}

/* A client of the library connects; then its keys are taken, and it is heard of no more. Returns whether it could. */
static int fair_join( struct fair_peer_t * peer, int keys )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_config_t config;
    int i;
    netcode_default_client_config( &config );
    config.socket = &fair.client_socket;
    fair.client_address = peer->address;
    fair.mute = fair.answer.bytes = 0;
    fair_mint( token, keys );
    struct netcode_client_t * client = netcode_client_create( "10.255.255.2:50000", &config, fair.time );
    if ( !client )
        return 0;
    netcode_client_connect( client, token );
    for ( i = 0; i < 20 && netcode_client_state( client ) != NETCODE_CLIENT_STATE_CONNECTED; i++ ) {
        fair.time += 1e-5; /* they all join before any could time out */
        netcode_client_update( client, fair.time );
        netcode_server_update( fair.server, fair.time );
    }
    int joined = netcode_client_state( client ) == NETCODE_CLIENT_STATE_CONNECTED;
    memcpy( peer->key, client->token.route.client_to_server_key, NETCODE_KEY_BYTES );
    peer->sequence = client->sequence + 1000; /* behind what it says at its end */
    fair.mute = 1;
    netcode_client_destroy( client );
    return joined;
}

static int fair_open( const struct fair_setting_t * setting )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket;
    int i;
    memset( &socket, 0, sizeof( socket ) );
    if ( !fair.cells )
        fair.cells = (struct fair_cell_t *) malloc( FAIR_CELLS * sizeof( struct fair_cell_t ) );
    fair.head = fair.tail = 0;
    fair.held = fair.held_most = fair.filters = 0;
    fair.time = 100.0;
    fair.tokens_used = 0;
    fair.server_address = fair_address( 0xffff01, 40000 );
    netcode_random_bytes( fair.keys[0], sizeof( fair.keys ) );
    netcode_default_server_config( &config );
    socket.receive = fair_server_receive;
    socket.send = fair_server_send;
    config.socket = &socket;
    config.protocol_id = FAIR_PROTOCOL;
    config.events = 1;
    config.roaming = setting->attack == FAIR_UNKNOWN_ROAMING;
    fair.client_socket.receive = fair_client_receive;
    fair.client_socket.send = fair_client_send;
    fair.server = netcode_server_create( "10.255.255.1:40000", &config, fair.time );
    if ( !fair.cells || !fair.server )
        return 0;
    if ( fair.receive_seconds > 0.0 ) { /* from here on it takes the socket in memory for the system's */
        fair.server->base.is_udp = 1;
        fair.server->base.extras.set_filter = fair_set_filter;
        fair.server->base.extras.fill = fair_fill;
    }
    netcode_server_set_private_keys( fair.server, fair.keys[0], setting->keys );
    netcode_server_start( fair.server, setting->slots );
    memset( fair.peers, 0, sizeof( fair.peers ) );
    for ( i = 0; i < setting->slots; i++ ) {
        fair.peers[i].address =
            fair_address( 0x010000 + (uint32_t) i / 4, (uint16_t) ( 20000 + i ) ); /* four behind each NAT */
        if ( !fair_join( &fair.peers[i], setting->keys ) )
            return 0;
    }
    for ( i = 0; i < FAIR_TOKENS && setting->attack == FAIR_TOKENS_VALID; i++ )
        fair_mint( fair.tokens[i], setting->keys );
    return 1;
}

/* ---- what is sent ---- */

static int fair_seal( struct fair_peer_t * peer, uint8_t * out, const void * body, int bytes )
{
    nc_packet_t packet = { NETCODE_PACKET_PAYLOAD, 0, bytes, peer->sequence++ };
    nc_packet_context_t channel = { peer->key, FAIR_PROTOCOL };
    return nc_packet_seal( out, &packet, (const uint8_t *) body, &channel );
}

/* A player's packet; it bears the number of the first update that can see it. */
static void fair_say( struct fair_peer_t * peer, uint64_t update )
{
    uint64_t body[8] = { update };
    peer->last_bytes = fair_seal( peer, peer->last, body, (int) sizeof( body ) );
    peer->sent++;
    fair_offer( &peer->address, peer->last, peer->last_bytes );
}

static void fair_request( uint8_t * out, const uint8_t * token )
{
    nc_writer_t writer = nc_writer_make( out, NC_REQUEST_BYTES );
    nc_writer_number( &writer, NETCODE_PACKET_REQUEST, 1 );
    nc_writer_bytes( &writer, token,
                     NC_VERSION_BYTES + 8 ); /* version, protocol id; then the creation time, which does not go along */
    nc_writer_bytes( &writer, token + NC_VERSION_BYTES + 16, 8 + NC_TOKEN_NONCE_BYTES + NC_PRIVATE_TOKEN_BYTES );
}

static void fair_attack( const struct fair_setting_t * setting )
{
    uint8_t out[FAIR_CELL_BYTES] = { 0 };
    struct netcode_address_t unknown =
        fair_address( 0x800000 + fair_random() % 0x700000, (uint16_t) ( 1024 + fair_random() % 60000 ) );
    struct fair_peer_t * first = &fair.peers[0];
    int i;
    switch ( setting->attack ) {
    case FAIR_PAYLOADS: fair_offer( &first->address, out, fair_seal( first, out, &unknown, 20 ) ); break;
    case FAIR_REQUESTS:
        out[0] = NETCODE_PACKET_REQUEST;
        memcpy( out + 1, "NETCODE 1.02", NC_VERSION_BYTES );
        nc_store_u64( out + 14, FAIR_PROTOCOL );
        nc_store_u64( out + 22, (uint64_t) time( NULL ) + 100 );
        for ( i = 30; i + 4 <= NC_REQUEST_BYTES; i += 4 )
            fair_store_random( out + i );
        fair_offer( &unknown, out, NC_REQUEST_BYTES );
        break;
    case FAIR_TOKENS_VALID:
        fair_request( out, fair.tokens[fair.tokens_used++ % FAIR_TOKENS] );
        fair_offer( &unknown, out, NC_REQUEST_BYTES );
        break;
    case FAIR_REPLAYS:
        first = &fair.peers[fair_random() % (uint32_t) setting->slots];
        if ( first->last_bytes )
            fair_offer( &first->address, first->last, first->last_bytes );
        break;
    case FAIR_ONE_NAT:
    case FAIR_OWN_REQUESTS:
        unknown = first->address;
        if ( setting->attack == FAIR_ONE_NAT )
            unknown.port = (uint16_t) ( 40000 + fair_random() % 35 );
        out[0] = NETCODE_PACKET_REQUEST;
        fair_store_random( out + 30 );
        fair_offer( &unknown, out, NC_REQUEST_BYTES );
        break;
    case FAIR_JUNK:
        for ( i = 0; i < 12; i += 4 )
            fair_store_random( out + i );
        fair_offer( &unknown, out, (int) ( fair_random() % FAIR_CELL_BYTES ) );
        break;
    case FAIR_RESPONSES:
        out[0] = (uint8_t) ( 7 << 4 | NETCODE_PACKET_RESPONSE );
        fair_store_random( out + 1 );
        fair_offer( &unknown, out, 332 );
        break;
    case FAIR_CROWD:
        if ( fair.time > fair.began + 0.3 && fair_random() % 2 ) {
            fair_offer( &first->address, out, fair_seal( first, out, &unknown, 20 ) );
            break;
        }
        unknown = fair_address( 0x800000 + fair_random() % 12, 4000 );
        out[0] = (uint8_t) ( 6 << 4 | NETCODE_PACKET_PAYLOAD );
        fair_offer( &unknown, out, 43 );
        break;
    default:
        first = &fair.peers[setting->attack == FAIR_EIGHT ? fair_random() % 8 : 0];
        out[0] = (uint8_t) ( 6 << 4 | NETCODE_PACKET_PAYLOAD );
        nc_store_u64( out + 1, first->sequence + ( setting->attack == FAIR_FORGED_NEXT ? fair_random() % 1000
                                                                                       : 1u << 17 | fair_random() ) );
        for ( i = 7; i < 43; i += 4 )
            fair_store_random( out + i );
        int is_unknown = setting->attack == FAIR_UNKNOWN || setting->attack == FAIR_UNKNOWN_ROAMING;
        fair_offer( is_unknown ? &unknown : &first->address, out, fair_attacks[setting->attack].bytes );
    }
}

/* ---- a cell ---- */

/* One tick: what is said since the last one, mixed as it arrives; then the server's update, and what it hands out. */
static void fair_tick( const struct fair_setting_t * setting, uint64_t update, int attacks,
                       struct fair_result_t * result, uint64_t * late )
{
    double step = 1.0 / (double) setting->hz;
    int flooder = setting->attack == FAIR_PAYLOADS || setting->attack == FAIR_CROWD;
    int others = setting->slots - flooder, said = 0, sent = 0;
    double before = fair.time * 60.0 * (double) others, after = ( fair.time + step ) * 60.0 * (double) others;
    int says = fair.silent ? 0 : (int) ( floor( after ) - floor( before ) ),
        phase = (int) fmod( floor( before ), (double) others );
    int floods = attacks
                     ? (int) ( floor( ( fair.time + step ) * setting->megabits * 125000.0 /
                                      fair_attacks[setting->attack].bytes ) -
                               floor( fair.time * setting->megabits * 125000.0 / fair_attacks[setting->attack].bytes ) )
                     : 0;
    while ( said < says || sent < floods ) {
        if ( said < says && (double) said * (double) floods <= (double) sent * (double) says ) {
            fair_say( &fair.peers[flooder + ( phase + said ) % others], update );
            said++;
        } else if ( sent < floods ) {
            fair_attack( setting );
            sent++;
        } else {
            fair_say( &fair.peers[flooder + ( phase + said ) % others], update );
            said++;
        }
    }
    fair.time += step;
    double cpu = fair_cpu_seconds();
    netcode_server_update( fair.server, fair.time );
    cpu = fair_cpu_seconds() - cpu;
    result->core += cpu;
    if ( cpu > result->worst_update )
        result->worst_update = cpu;
    struct netcode_event_t event;
    while ( netcode_server_next_event( fair.server, &event ) ) {
        if ( event.type != NETCODE_EVENT_PAYLOAD )
            continue;
        uint64_t when;
        memcpy( &when, event.data, 8 );
        if ( event.bytes == 64 && when >= fair.counted ) {
            fair.peers[event.client_index].heard++;
            *late += update - when > 1;
        }
        netcode_server_free_packet( fair.server, event.data );
    }
}

/* Runs one cell. Returns 0 where its players could not even connect. */
static int fair_run( const struct fair_setting_t * setting, struct fair_result_t * result )
{
    uint64_t update = 0, late = 0, heard = 0, sent = 0;
    fair.counted = 1;
    int ticks = (int) ( setting->seconds * (double) setting->hz ), i;
    memset( result, 0, sizeof( *result ) );
    if ( !fair_open( setting ) )
        return 0;
    for ( i = 0; i < 3; i++ )
        fair_tick( setting, ++update, 0, result, &late ); /* each has said something */
    fair.began = fair.time;
    for ( i = 0; i < setting->hz * FAIR_ONSET_MS / 1000; i++ )
        fair_tick( setting, ++update, 1, result, &late ); /* how it begins is counted apart */
    fair.counted = update + 1;
    for ( i = 0; i < setting->slots; i++ )
        fair.peers[i].sent = fair.peers[i].heard = 0;
    late = 0;
    fair.held_most = fair.held;
    result->core = result->worst_update = 0.0;
    for ( i = 0; i < ticks; i++ )
        fair_tick( setting, ++update, 1, result, &late );
    fair.silent = 1; /* what was said last may be heard a tick later */
    for ( i = 0; i < 2; i++ )
        fair_tick( setting, ++update, 1, result, &late );
    fair.silent = 0;
    int victims = fair_attacks[setting->attack].victims;
    result->heard_least = 1.0;
    for ( i = victims; i < setting->slots; i++ ) {
        double share = (double) fair.peers[i].heard / (double) fair.peers[i].sent;
        result->heard_least = share < result->heard_least ? share : result->heard_least;
        heard += fair.peers[i].heard;
        sent += fair.peers[i].sent;
    }
    result->heard = (double) heard / (double) sent;
    result->late = heard ? (double) late / (double) heard : 1.0;
    result->victim = fair.peers[0].sent ? (double) fair.peers[0].heard / (double) fair.peers[0].sent : 0.0;
    result->core /= (double) ( ticks + 2 ) / (double) setting->hz;
    result->buffer = fair.held_most;
    netcode_server_destroy( fair.server );
    return 1;
}

#endif
