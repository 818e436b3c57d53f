/*  The calls of multiplayer.h that an engine's file uses. */

#ifndef MULTIPLAYER_API_H
#define MULTIPLAYER_API_H

#include "multiplayer_client.h"
#include "multiplayer_server.h"

/* Zero is the default of every number. */
struct multiplayer_server_options_t {
    const char * address;                  /* as in tokens, "203.0.113.5:40000" */
    const char * bind_address;             /* NULL: the wildcard address at that port */
    const char * const * public_addresses; /* this server's addresses in tokens, if they differ */
    int num_public_addresses;
    uint64_t protocol_id;
    const uint8_t * private_key; /* NETCODE_KEY_BYTES */
    int max_clients, max_packet_bytes, send_buffer_bytes, relay_bytes_per_second;
    int no_relay, no_roaming;
    struct netcode_network_simulator_t * simulator; /* for tests */
};

struct multiplayer_client_options_t {
    const uint8_t * connect_token; /* NETCODE_CONNECT_TOKEN_BYTES */
    const char * bind_address;     /* NULL: any address of the families that the token names */
    int max_packet_bytes, send_buffer_bytes;
    struct netcode_network_simulator_t * simulator;
};

static void multiplayer_init( struct multiplayer_t * m )
{
    memset( m, 0, sizeof( *m ) );
    m->unique_id = MULTIPLAYER_SERVER_ID;
    m->channel = CHANNEL_RELIABLE;
}

static void multiplayer_free( struct multiplayer_t * m )
{
    for ( int i = 0; i < m->num_slots; i++ )
        netcode_messages_destroy( m->slots[i].messages );
    netcode_messages_destroy( m->messages );
    netcode_server_destroy( m->server );
    netcode_client_destroy( m->client );
    free( m->slots );
    free( m->peers );
    free( m->now );
    free( m->later );
    free( m->queue );
    free( m->frame );
    m->slots = NULL;
    m->messages = NULL;
    m->server = NULL;
    m->client = NULL;
    m->peers = NULL;
    m->now = m->later = NULL;
    m->queue = m->frame = NULL;
    m->num_slots = m->num_peers = m->num_now = m->num_later = m->queue_packets = 0;
    m->max_events = m->ended = m->finished = m->holds = 0;
    m->queue_head = m->queue_tail = m->queue_capacity = 0;
    m->role = MULTIPLAYER_OFF;
    m->status = MULTIPLAYER_DISCONNECTED;
    m->unique_id = MULTIPLAYER_SERVER_ID;
}

/*  The reason, to all clients: several times, each in a packet of its own, because there is no time to repeat what is
    lost. It is not ordered, so that it does not wait for a message before it. */
static void multiplayer_say_goodbye( struct multiplayer_t * m, const char * why )
{
    uint8_t frame[1 + FRAME_MAX_TEXT];
    int bytes = frame_write_goodbye( frame, why );
    multiplayer_server_flush( m, m->time );
    for ( int copy = 0; copy < MULTIPLAYER_GOODBYES; copy++ ) {
        for ( int i = 0; i < m->num_slots; i++ )
            if ( m->slots[i].state == SLOT_OPEN )
                netcode_messages_send( m->slots[i].messages, CHANNEL_RELIABLE, NETCODE_MESSAGE_UNRELIABLE, frame,
                                       bytes );
        multiplayer_server_flush( m, m->time );
    }
}

/*  Notifies the other side, and frees everything but the bans and the settings. What was queued to be sent leaves now,
    once: what is lost of that stays lost. */
static void multiplayer_close( struct multiplayer_t * m )
{
    if ( m->role == MULTIPLAYER_SERVER )
        multiplayer_say_goodbye( m, "the server closes" );
    else if ( m->role == MULTIPLAYER_CLIENT && !m->ended )
        multiplayer_client_flush( m, m->time );
    multiplayer_free( m );
}

static void multiplayer_destroy( struct multiplayer_t * m )
{
    multiplayer_close( m );
    free( m->bans );
    m->bans = NULL;
    m->num_bans = 0;
}

static void multiplayer_settings( struct multiplayer_t * m, int max_packet_bytes, int send_buffer_bytes, double time )
{
    m->max_packet_bytes = multiplayer_clamp( max_packet_bytes, MULTIPLAYER_DEFAULT_PACKET, MULTIPLAYER_LEAST_PACKET,
                                             MULTIPLAYER_MOST_PACKET );
    m->send_buffer_bytes =
        multiplayer_clamp( send_buffer_bytes, MULTIPLAYER_SEND_BUFFER, 64 * 1024, MULTIPLAYER_MOST_SEND_BUFFER );
    m->time = time;
    m->malformed = m->unroutable = m->unqueued = m->unrelayed = m->too_large = 0;
    m->why[0] = m->error[0] = 0;
    m->turn = m->announcing = 0;
}

static int multiplayer_create_server( struct multiplayer_t * m, const struct multiplayer_server_options_t * options,
                                      double time )
{
    struct netcode_server_config_t config;
    if ( m->role != MULTIPLAYER_OFF )
        return multiplayer_fail( m, MULTIPLAYER_IN_USE, "this peer is a server or a client already: close it first" );
    if ( options->private_key == NULL )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT,
                                 "private_key is missing: 32 bytes, as make_key() returns" );
    if ( options->max_clients < 0 || options->max_clients > MULTIPLAYER_MAX_CLIENTS )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "max_clients is not from 1 to 4095" );
    multiplayer_settings( m, options->max_packet_bytes, options->send_buffer_bytes, time );
    m->relay_bytes_per_second = multiplayer_clamp( options->relay_bytes_per_second, MULTIPLAYER_RELAY_BYTES_PER_SECOND,
                                                   1024, 1024 * 1024 * 1024 );
    m->relays = !options->no_relay;

    netcode_default_server_config( &config );
    config.events = 1;
    config.protocol_id = options->protocol_id;
    memcpy( config.private_key, options->private_key, NETCODE_KEY_BYTES );
    config.bind_address = options->bind_address;
    config.public_addresses = options->public_addresses;
    config.num_public_addresses = options->num_public_addresses;
    config.roaming = !options->no_roaming;
    config.replace_existing_clients = 1;
    config.admit_callback = multiplayer_admit;
    config.callback_context = m;
    config.log_callback = multiplayer_log;
    config.network_simulator = options->simulator;
    m->server = netcode_server_create( options->address != NULL ? options->address : "", &config, time );
    multiplayer_wipe( &config, sizeof( config ) );
    if ( m->server == NULL ) {
        int error = netcode_server_create_error();
        int address = error == NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED ||
                      error == NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED;
        return multiplayer_fail( m, address ? MULTIPLAYER_BAD_ARGUMENT : MULTIPLAYER_NO_SOCKET,
                                 netcode_server_create_error_text( error ) );
    }

    int slots = options->max_clients > 0 ? options->max_clients : MULTIPLAYER_DEFAULT_CLIENTS;
    m->role = MULTIPLAYER_SERVER;
    m->slots = (struct multiplayer_slot_t *) calloc( (size_t) slots, sizeof( *m->slots ) );
    m->num_slots = m->slots != NULL ? slots : 0;
    netcode_server_start( m->server, slots );
    if ( m->slots == NULL || !multiplayer_allocate( m, slots ) || !netcode_server_running( m->server ) ) {
        multiplayer_free( m );
        return multiplayer_fail( m, MULTIPLAYER_NO_MEMORY, "there is not enough memory for so many clients" );
    }
    m->status = MULTIPLAYER_CONNECTED;
    m->refuses = 0;
    return MULTIPLAYER_OK;
}

/* The local addresses for the families that the token names: NULL for one that it does not. */
static struct netcode_client_t * multiplayer_new_client( const struct multiplayer_client_options_t * options,
                                                         const struct netcode_client_config_t * config,
                                                         const struct netcode_connect_token_info_t * info, double time )
{
    int ipv4 = 0, ipv6 = 0;
    if ( options->bind_address != NULL )
        return netcode_client_create( options->bind_address, config, time );
    for ( int i = 0; i < info->num_server_addresses; i++ ) {
        ipv4 |= info->server_addresses[i].type == NETCODE_ADDRESS_IPV4;
        ipv6 |= info->server_addresses[i].type == NETCODE_ADDRESS_IPV6;
    }
    return netcode_client_create_dual( ipv4 ? "0.0.0.0" : "::", ipv4 && ipv6 ? "::" : NULL, config, time );
}

static int multiplayer_create_client( struct multiplayer_t * m, const struct multiplayer_client_options_t * options,
                                      double time )
{
    struct netcode_client_config_t config;
    struct netcode_connect_token_info_t info;
    if ( m->role != MULTIPLAYER_OFF )
        return multiplayer_fail( m, MULTIPLAYER_IN_USE, "this peer is a server or a client already: close it first" );
    if ( options->connect_token == NULL || netcode_connect_token_info( options->connect_token, &info ) != NETCODE_OK )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT,
                                 "this is no connect token: 2048 bytes from the game's backend, or from make_token()" );
    multiplayer_settings( m, options->max_packet_bytes, options->send_buffer_bytes, time );

    netcode_default_client_config( &config );
    config.callback_context = m;
    config.log_callback = multiplayer_log;
    config.network_simulator = options->simulator;
    m->client = multiplayer_new_client( options, &config, &info, time );
    if ( m->client == NULL ) {
        int error = netcode_client_create_error();
        int address = error == NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED;
        return multiplayer_fail( m, address ? MULTIPLAYER_BAD_ARGUMENT : MULTIPLAYER_NO_SOCKET,
                                 netcode_client_create_error_text( error ) );
    }

    m->role = MULTIPLAYER_CLIENT;
    m->messages = multiplayer_messages( m );
    m->peers = (int32_t *) calloc( MULTIPLAYER_MAX_CLIENTS, sizeof( *m->peers ) );
    if ( m->messages == NULL || m->peers == NULL || !multiplayer_allocate( m, MULTIPLAYER_MAX_CLIENTS ) ) {
        multiplayer_free( m );
        return multiplayer_fail( m, MULTIPLAYER_NO_MEMORY, "there is not enough memory for a client" );
    }
    m->unique_id = MULTIPLAYER_UNKNOWN_ID;
    m->connected_time = -1.0;
    m->status = MULTIPLAYER_CONNECTING;
    m->refuses = 0;
    m->relays = 0;
    netcode_client_connect( m->client, options->connect_token );
    return MULTIPLAYER_OK;
}

/* Once a frame. Then read all events, and then the packets. */
static void multiplayer_poll( struct multiplayer_t * m, double time )
{
    if ( m->role == MULTIPLAYER_OFF || m->polling )
        return;
    m->polling = 1;
    multiplayer_queue_compact( m );
    multiplayer_events_turn( m );
    if ( m->role == MULTIPLAYER_SERVER )
        multiplayer_server_poll( m, time );
    else
        multiplayer_client_poll( m, time );
    m->polling = 0;
}

/*  1, or 0 when there is none. After CONNECTION_FAILED and SERVER_DISCONNECTED the peer is closed: `why` has the reason.
    Packets that wait are read before that. */
static int multiplayer_next_event( struct multiplayer_t * m, struct multiplayer_event_t * event )
{
    if ( m->num_now == 0 )
        return 0;
    *event = m->now[0];
    memmove( m->now, m->now + 1, (size_t) --m->num_now * sizeof( *m->now ) );
    if ( event->type == MULTIPLAYER_CONNECTION_FAILED || event->type == MULTIPLAYER_SERVER_DISCONNECTED )
        multiplayer_close( m );
    return 1;
}

/* Sends what is queued now, and not only at the next poll. */
static void multiplayer_flush( struct multiplayer_t * m, double time )
{
    if ( m->polling )
        return;
    if ( m->role == MULTIPLAYER_SERVER )
        multiplayer_server_flush( m, time );
    else if ( m->role == MULTIPLAYER_CLIENT )
        multiplayer_client_flush( m, time );
}

/* To the peers that m->target names, on m->channel. */
static int multiplayer_put( struct multiplayer_t * m, const uint8_t * data, int bytes )
{
    char sentence[MULTIPLAYER_TEXT];
    if ( m->status != MULTIPLAYER_CONNECTED )
        return multiplayer_fail( m, MULTIPLAYER_INACTIVE, "this peer is not connected" );
    if ( data == NULL || bytes < 1 || bytes > m->max_packet_bytes ) {
        snprintf( sentence, sizeof( sentence ), "a packet has 1 to %d bytes (max_packet_bytes), this one has %d",
                  m->max_packet_bytes, bytes );
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, sentence );
    }
    if ( m->target == INT32_MIN )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "there is no such target peer" );
    if ( m->ended || ( m->target > 1 && multiplayer_leaves( m, m->target ) ) )
        return MULTIPLAYER_OK; /* the engine can not know it yet */
    return m->role == MULTIPLAYER_SERVER ? multiplayer_server_put( m, data, bytes )
                                         : multiplayer_client_put( m, data, bytes );
}

/* `data` can be read until the next poll. */
static int multiplayer_get( struct multiplayer_t * m, struct multiplayer_packet_t * packet, const uint8_t ** data )
{
    if ( !multiplayer_first( m, packet ) )
        return multiplayer_fail( m, MULTIPLAYER_NO_PACKET, "no packet waits" );
    *data = m->queue + m->queue_head + sizeof( *packet );
    m->queue_head += multiplayer_packet_size( packet->bytes );
    m->queue_packets--;
    return MULTIPLAYER_OK;
}

/* The sender of the packet that is read next; 0 if none waits. */
static int32_t multiplayer_packet_peer( struct multiplayer_t * m )
{
    struct multiplayer_packet_t packet;
    return multiplayer_first( m, &packet ) ? packet.from : 0;
}

static int multiplayer_kick( struct multiplayer_t * m, int32_t id, const char * why )
{
    struct multiplayer_slot_t * slot = m->role == MULTIPLAYER_SERVER ? multiplayer_slot( m, id ) : NULL;
    if ( m->role != MULTIPLAYER_SERVER )
        return multiplayer_fail( m, MULTIPLAYER_INACTIVE, "only a server disconnects peers" );
    if ( slot == NULL )
        return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "there is no client with this peer id" );
    multiplayer_dismiss( m, slot, why );
    return MULTIPLAYER_OK;
}

/* From now on no token of this client id is accepted; if it is connected, it is disconnected. */
static int multiplayer_ban( struct multiplayer_t * m, uint64_t client_id )
{
    if ( multiplayer_banned( m, client_id ) )
        return MULTIPLAYER_OK;
    if ( m->bans == NULL )
        m->bans = (uint64_t *) malloc( MULTIPLAYER_MAX_BANS * sizeof( *m->bans ) );
    if ( m->bans == NULL || m->num_bans == MULTIPLAYER_MAX_BANS )
        return multiplayer_fail( m, MULTIPLAYER_NO_MEMORY,
                                 "65,536 client ids are banned: let the backend give out no tokens" );
    m->bans[m->num_bans++] = client_id;
    for ( int i = 0; i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_OPEN && m->slots[i].client_id == client_id )
            multiplayer_dismiss( m, &m->slots[i], "this player is banned" );
    return MULTIPLAYER_OK;
}

static int multiplayer_unban( struct multiplayer_t * m, uint64_t client_id )
{
    for ( int i = 0; i < m->num_bans; i++ )
        if ( m->bans[i] == client_id ) {
            m->bans[i] = m->bans[--m->num_bans];
            return MULTIPLAYER_OK;
        }
    return multiplayer_fail( m, MULTIPLAYER_BAD_ARGUMENT, "this client id is not banned" );
}

/* Appends to a text of `capacity` bytes, which may be cut off. */
static void multiplayer_append( char * text, size_t capacity, const char * line )
{
    size_t bytes = strlen( text );
    snprintf( text + bytes, capacity - bytes, "%s%s", bytes > 0 ? "\n" : "", line );
}

/* What a server refused, and why: a line for each reason. */
static void multiplayer_server_report( const struct multiplayer_t * m, char * text, size_t capacity )
{
    struct netcode_server_stats_t stats;
    char line[MULTIPLAYER_TEXT];
    netcode_server_stats( m->server, &stats );
    snprintf( line, sizeof( line ), "%d of %d clients are connected, %llu connected so far", stats.clients,
              m->num_slots, (unsigned long long) stats.connects );
    multiplayer_append( text, capacity, line );
    for ( int i = 1; i < NETCODE_DROP_REASONS; i++ )
        if ( stats.dropped[i] > 0 ) {
            snprintf( line, sizeof( line ), "%llu dropped as %s: %s", (unsigned long long) stats.dropped[i],
                      netcode_drop_reason_name( i ), netcode_drop_reason_text( i ) );
            multiplayer_append( text, capacity, line );
        }
    if ( m->malformed > 0 ) {
        snprintf( line, sizeof( line ), "%llu clients were disconnected for a malformed message",
                  (unsigned long long) m->malformed );
        multiplayer_append( text, capacity, line );
    }
    if ( m->unroutable > 0 ) {
        snprintf( line, sizeof( line ), "%llu messages were for peers that are not there",
                  (unsigned long long) m->unroutable );
        multiplayer_append( text, capacity, line );
    }
    if ( m->unrelayed > 0 ) {
        snprintf( line, sizeof( line ),
                  "%llu messages of clients that left were not relayed: they were beyond relay_bytes_per_second",
                  (unsigned long long) m->unrelayed );
        multiplayer_append( text, capacity, line );
    }
    if ( m->too_large > 0 ) {
        snprintf( line, sizeof( line ),
                  "%llu messages were too large for the client that they were for: its max_packet_bytes is below the "
                  "server's",
                  (unsigned long long) m->too_large );
        multiplayer_append( text, capacity, line );
    }
}

/* Why not? In words: for a server's operator, or for the player. */
static void multiplayer_report( const struct multiplayer_t * m, char * text, size_t capacity )
{
    struct netcode_client_report_t report;
    text[0] = 0;
    if ( m->role == MULTIPLAYER_SERVER ) {
        multiplayer_server_report( m, text, capacity );
    } else if ( m->why[0] != 0 ) {
        multiplayer_append( text, capacity, m->why );
    } else if ( m->role == MULTIPLAYER_CLIENT ) {
        netcode_client_report( m->client, &report );
        multiplayer_append( text, capacity, report.text );
    } else {
        multiplayer_append( text, capacity,
                            m->error[0] != 0 ? m->error : "this peer is neither a server nor a client" );
    }
}

#endif
