/*  What scripts call on a NetcodePeer, in Godot 3 and Godot 4: the engine's file stands above it, with peer_hold,
    peer_release, peer_emit_events and what its values are. Each method checks its arguments, pushes an error with a sentence where one is
    wrong, and returns one of the engine's errors, or nothing. */

#ifndef METHODS_H
#define METHODS_H

enum { METHOD_REPORT = 8192 };

typedef value_t ( *method_function_t )( struct peer_t * peer, int count, value_t ** arguments );

struct method_t {
    const char * name;
    int least, most; /* arguments */
    method_function_t function;
};

/* ---- server and client ---- */

struct server_reader_t {
    char address[OPTIONS_ADDRESS], bind_address[OPTIONS_ADDRESS];
    char public_texts[NETCODE_MAX_PUBLIC_ADDRESSES][OPTIONS_ADDRESS];
    const char * public_addresses[NETCODE_MAX_PUBLIC_ADDRESSES];
    uint8_t key[NETCODE_KEY_BYTES];
    struct multiplayer_server_options_t options;
};

/* The level is process-wide, as in netcode.h: it is set where the option is given. */
static void method_log_level( struct options_t * options )
{
    int level = (int) options_number( options, "log_level", -1, NETCODE_LOG_LEVEL_NONE, NETCODE_LOG_LEVEL_DEBUG );
    if ( level >= 0 )
        netcode_log_level( level );
}

static value_t method_create_server( struct peer_t * peer, int count, value_t ** arguments )
{
    struct options_t options;
    struct server_reader_t reader;
    memset( &reader, 0, sizeof( reader ) );
    (void) count;
    options_open( &options, arguments[0] );
    if ( options_text( &options, "address", reader.address, sizeof( reader.address ) ) )
        reader.options.address = reader.address;
    else
        options_fail( &options, "address",
                      "is missing: the server's address as in tokens, such as \"203.0.113.5:40000\"" );
    if ( options_text( &options, "bind_address", reader.bind_address, sizeof( reader.bind_address ) ) )
        reader.options.bind_address = reader.bind_address;
    reader.options.num_public_addresses = options_addresses( &options, "public_addresses", reader.public_texts,
                                                             reader.public_addresses, NETCODE_MAX_PUBLIC_ADDRESSES );
    reader.options.public_addresses = reader.public_addresses;
    reader.options.protocol_id = (uint64_t) options_number( &options, "protocol_id", 0, INT64_MIN, INT64_MAX );
    if ( options_bytes( &options, "private_key", reader.key, NETCODE_KEY_BYTES, NETCODE_KEY_BYTES ) )
        reader.options.private_key = reader.key;
    else
        options_fail( &options, "private_key", "is missing: 32 bytes, as make_key() returns" );
    reader.options.max_clients =
        (int) options_number( &options, "max_clients", MULTIPLAYER_DEFAULT_CLIENTS, 1, MULTIPLAYER_MAX_CLIENTS );
    reader.options.max_packet_bytes = (int) options_number( &options, "max_packet_bytes", MULTIPLAYER_DEFAULT_PACKET,
                                                            MULTIPLAYER_LEAST_PACKET, MULTIPLAYER_MOST_PACKET );
    reader.options.send_buffer_bytes = (int) options_number( &options, "send_buffer_bytes", MULTIPLAYER_SEND_BUFFER,
                                                             64 * 1024, MULTIPLAYER_MOST_SEND_BUFFER );
    reader.options.relay_bytes_per_second =
        (int) options_number( &options, "relay_bytes_per_second", MULTIPLAYER_RELAY_BYTES_PER_SECOND, 1024,
                              1024 * 1024 * 1024 );
    reader.options.no_relay = !options_yes( &options, "server_relay", 1 );
    reader.options.no_roaming = !options_yes( &options, "roaming", 1 );
    method_log_level( &options );
    int result = options_close( &options )
                     ? multiplayer_create_server( &peer->multiplayer, &reader.options, netcode_time() )
                     : multiplayer_fail( &peer->multiplayer, MULTIPLAYER_BAD_ARGUMENT, options.error );
    multiplayer_wipe( &reader, sizeof( reader ) );
    return value_int( peer_result( peer, "create_server", result ) );
}

static value_t method_create_client( struct peer_t * peer, int count, value_t ** arguments )
{
    struct options_t options;
    char bind_address[OPTIONS_ADDRESS];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct multiplayer_client_options_t client;
    memset( &client, 0, sizeof( client ) );
    options_open( &options, count > 1 ? arguments[1] : NULL );
    if ( options_text( &options, "bind_address", bind_address, sizeof( bind_address ) ) )
        client.bind_address = bind_address;
    client.max_packet_bytes = (int) options_number( &options, "max_packet_bytes", MULTIPLAYER_DEFAULT_PACKET,
                                                    MULTIPLAYER_LEAST_PACKET, MULTIPLAYER_MOST_PACKET );
    client.send_buffer_bytes = (int) options_number( &options, "send_buffer_bytes", MULTIPLAYER_SEND_BUFFER, 64 * 1024,
                                                     MULTIPLAYER_MOST_SEND_BUFFER );
    method_log_level( &options );
    if ( value_copy_bytes( arguments[0], token, NETCODE_CONNECT_TOKEN_BYTES ) == NETCODE_CONNECT_TOKEN_BYTES )
        client.connect_token = token;
    int result = options_close( &options )
                     ? multiplayer_create_client( &peer->multiplayer, &client, netcode_time() )
                     : multiplayer_fail( &peer->multiplayer, MULTIPLAYER_BAD_ARGUMENT, options.error );
    multiplayer_wipe( token, sizeof( token ) );
    return value_int( peer_result( peer, "create_client", result ) );
}

static value_t method_close_connection( struct peer_t * peer, int count, value_t ** arguments )
{
    (void) count;
    (void) arguments;
    multiplayer_close( &peer->multiplayer );
    return value_nil();
}

static value_t method_flush( struct peer_t * peer, int count, value_t ** arguments )
{
    (void) count;
    (void) arguments;
    peer->flush_asked = 0;
    multiplayer_flush( &peer->multiplayer, netcode_time() );
    return value_nil();
}

static value_t method_rebind( struct peer_t * peer, int count, value_t ** arguments )
{
    (void) count;
    (void) arguments;
    return value_bool( peer->multiplayer.role == MULTIPLAYER_CLIENT &&
                       netcode_client_rebind( peer->multiplayer.client ) );
}

/* ---- kicks and bans ---- */

/* 1, or 0 after an error. */
static int method_number( const char * method, const value_t * argument, int64_t * number )
{
    *number = 0;
    if ( !value_is( argument, VALUE_INT ) ) {
        value_error( method, "the argument is not a whole number" );
        return 0;
    }
    *number = value_as_int( argument );
    return 1;
}

static int32_t method_peer_id( int64_t number )
{
    return number > 0 && number < INT32_MAX ? (int32_t) number : 0;
}

static value_t method_kick( struct peer_t * peer, int count, value_t ** arguments )
{
    char why[4 * FRAME_MAX_TEXT];
    int64_t id;
    if ( !method_number( "kick", arguments[0], &id ) )
        return value_int( peer_error( MULTIPLAYER_BAD_ARGUMENT ) );
    if ( count < 2 || !value_copy_text( arguments[1], why, sizeof( why ) ) )
        snprintf( why, sizeof( why ), "%s", count < 2 ? "" : "the reason is too long to be shown" );
    int result = multiplayer_kick( &peer->multiplayer, method_peer_id( id ), why );
    peer_hold( peer );
    peer_emit_events( peer );
    value_t returned = value_int( peer_result( peer, "kick", result ) );
    peer_release( peer );
    return returned;
}

static value_t method_ban( struct peer_t * peer, int count, value_t ** arguments )
{
    int64_t id;
    (void) count;
    if ( !method_number( "ban", arguments[0], &id ) )
        return value_int( peer_error( MULTIPLAYER_BAD_ARGUMENT ) );
    int result = multiplayer_ban( &peer->multiplayer, (uint64_t) id );
    peer_hold( peer );
    peer_emit_events( peer );
    value_t returned = value_int( peer_result( peer, "ban", result ) );
    peer_release( peer );
    return returned;
}

static value_t method_unban( struct peer_t * peer, int count, value_t ** arguments )
{
    int64_t id;
    (void) count;
    if ( !method_number( "unban", arguments[0], &id ) )
        return value_int( peer_error( MULTIPLAYER_BAD_ARGUMENT ) );
    return value_int( peer_result( peer, "unban", multiplayer_unban( &peer->multiplayer, (uint64_t) id ) ) );
}

/* ---- questions ---- */

/* The slot's index of a server's client; -1 after an error. */
static int method_slot( struct peer_t * peer, const char * method, const value_t * argument )
{
    int64_t id;
    if ( !method_number( method, argument, &id ) )
        return -1;
    const struct multiplayer_slot_t * slot = multiplayer_slot( &peer->multiplayer, method_peer_id( id ) );
    if ( slot == NULL ) {
        value_error( method, "this peer is no server, or has no client with this peer id" );
        return -1;
    }
    return multiplayer_slot_index( &peer->multiplayer, slot );
}

static value_t method_get_client_id( struct peer_t * peer, int count, value_t ** arguments )
{
    int index = method_slot( peer, "get_client_id", arguments[0] );
    (void) count;
    return value_int( index < 0 ? 0 : (int64_t) peer->multiplayer.slots[index].client_id );
}

static value_t method_get_user_data( struct peer_t * peer, int count, value_t ** arguments )
{
    int index = method_slot( peer, "get_user_data", arguments[0] );
    (void) count;
    const void * data = index < 0 ? NULL : netcode_server_client_user_data( peer->multiplayer.server, index );
    return value_bytes( (const uint8_t *) data, data != NULL ? NETCODE_USER_DATA_BYTES : 0 );
}

static value_t method_get_peer_address( struct peer_t * peer, int count, value_t ** arguments )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int index = method_slot( peer, "get_peer_address", arguments[0] );
    (void) count;
    const struct netcode_address_t * address =
        index < 0 ? NULL : netcode_server_client_address( peer->multiplayer.server, index );
    return value_text( address != NULL ? netcode_address_to_string( address, text ) : "" );
}

static value_t method_get_peers( struct peer_t * peer, int count, value_t ** arguments )
{
    const struct multiplayer_t * m = &peer->multiplayer;
    value_t ids = value_array();
    (void) count;
    (void) arguments;
    if ( m->role == MULTIPLAYER_CLIENT && m->status == MULTIPLAYER_CONNECTED )
        value_append( &ids, value_int( MULTIPLAYER_SERVER_ID ) );
    for ( int i = 0; i < m->num_slots; i++ )
        if ( m->slots[i].state == SLOT_OPEN )
            value_append( &ids, value_int( m->slots[i].id ) );
    for ( int i = 0; i < m->num_peers; i++ )
        value_append( &ids, value_int( m->peers[i] ) );
    return ids;
}

static value_t method_get_port( struct peer_t * peer, int count, value_t ** arguments )
{
    (void) count;
    (void) arguments;
    if ( peer->multiplayer.role == MULTIPLAYER_SERVER )
        return value_int( netcode_server_get_port( peer->multiplayer.server ) );
    return value_int( peer->multiplayer.client != NULL ? netcode_client_get_port( peer->multiplayer.client ) : 0 );
}

static value_t method_report( struct peer_t * peer, int count, value_t ** arguments )
{
    char text[METHOD_REPORT];
    (void) count;
    (void) arguments;
    multiplayer_report( &peer->multiplayer, text, sizeof( text ) );
    return value_text( text );
}

/* What a server and a client count under the same names. */
#define METHOD_SET_LINK( dictionary, stats )                                                       \
    do {                                                                                           \
        value_set( dictionary, "round_trip_seconds", value_real( ( stats ).round_trip_seconds ) ); \
        value_set( dictionary, "loss", value_real( ( stats ).loss_share ) );                       \
        value_set( dictionary, "packets_lost", value_int( (int64_t) ( stats ).packets_lost ) );    \
    } while ( 0 )

static void method_set_messages( value_t * dictionary, struct netcode_messages_t * messages )
{
    struct netcode_messages_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_messages_stats( messages, &stats );
    value_set( dictionary, "messages_sent", value_int( (int64_t) stats.messages_sent ) );
    value_set( dictionary, "messages_received", value_int( (int64_t) stats.messages_received ) );
    value_set( dictionary, "reliable_retries", value_int( (int64_t) stats.reliable_retries_total ) );
    value_set( dictionary, "send_buffer_used", value_real( stats.send_buffer_used ) );
}

static void method_client_statistics( const struct multiplayer_t * m, value_t * dictionary )
{
    struct netcode_client_stats_t stats;
    netcode_client_stats( m->client, &stats );
    METHOD_SET_LINK( dictionary, stats );
    value_set( dictionary, "bytes_sent", value_int( (int64_t) stats.bytes_sent ) );
    value_set( dictionary, "bytes_received", value_int( (int64_t) stats.bytes_received ) );
    value_set( dictionary, "rebinds", value_int( (int64_t) stats.rebinds ) );
    method_set_messages( dictionary, m->messages );
}

static void method_slot_statistics( const struct multiplayer_t * m, int index, value_t * dictionary )
{
    struct netcode_server_client_stats_t stats;
    netcode_server_client_stats( m->server, index, &stats );
    METHOD_SET_LINK( dictionary, stats );
    value_set( dictionary, "bytes_sent", value_int( (int64_t) stats.bytes_sent ) );
    value_set( dictionary, "bytes_received", value_int( (int64_t) stats.bytes_received ) );
    value_set( dictionary, "seconds_connected", value_real( stats.seconds_connected ) );
    value_set( dictionary, "moves", value_int( (int64_t) stats.moves ) );
    method_set_messages( dictionary, m->slots[index].messages );
}

static void method_server_statistics( const struct multiplayer_t * m, value_t * dictionary )
{
    struct netcode_server_stats_t stats;
    uint64_t dropped = 0;
    netcode_server_stats( m->server, &stats );
    for ( int i = 0; i < NETCODE_DROP_REASONS; i++ )
        dropped += stats.dropped[i];
    value_set( dictionary, "clients", value_int( stats.clients ) );
    value_set( dictionary, "connects", value_int( (int64_t) stats.connects ) );
    value_set( dictionary, "bytes_sent", value_int( (int64_t) stats.bytes_sent ) );
    value_set( dictionary, "bytes_received", value_int( (int64_t) stats.bytes_received ) );
    value_set( dictionary, "packets_dropped", value_int( (int64_t) dropped ) );
    value_set( dictionary, "moves", value_int( (int64_t) stats.moves ) );
    value_set( dictionary, "malformed", value_int( (int64_t) m->malformed ) );
    value_set( dictionary, "unroutable", value_int( (int64_t) m->unroutable ) );
    value_set( dictionary, "unrelayed", value_int( (int64_t) m->unrelayed ) );
    value_set( dictionary, "too_large", value_int( (int64_t) m->too_large ) );
}

/* Of a server's client; without an id of the whole server, or of this client. */
static value_t method_statistics( struct peer_t * peer, int count, value_t ** arguments )
{
    const struct multiplayer_t * m = &peer->multiplayer;
    value_t dictionary = value_dictionary();
    if ( m->role == MULTIPLAYER_SERVER && count > 0 ) {
        int index = method_slot( peer, "statistics", arguments[0] );
        if ( index >= 0 )
            method_slot_statistics( m, index, &dictionary );
    } else if ( m->role == MULTIPLAYER_SERVER ) {
        method_server_statistics( m, &dictionary );
    } else if ( m->role == MULTIPLAYER_CLIENT ) {
        method_client_statistics( m, &dictionary );
    }
    return dictionary;
}

/* ---- tokens: for hosts, tests and backends, which have the private key; never for players ---- */

static value_t method_make_key( struct peer_t * peer, int count, value_t ** arguments )
{
    uint8_t key[NETCODE_KEY_BYTES];
    (void) peer;
    (void) count;
    (void) arguments;
    netcode_random_bytes( key, NETCODE_KEY_BYTES );
    value_t value = value_bytes( key, NETCODE_KEY_BYTES );
    multiplayer_wipe( key, sizeof( key ) );
    return value;
}

struct token_reader_t {
    char texts[NETCODE_MAX_SERVERS_PER_CONNECT][OPTIONS_ADDRESS],
        internal_texts[NETCODE_MAX_SERVERS_PER_CONNECT][OPTIONS_ADDRESS];
    const char *addresses[NETCODE_MAX_SERVERS_PER_CONNECT], *internal[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint8_t key[NETCODE_KEY_BYTES], user_data[NETCODE_USER_DATA_BYTES], token[NETCODE_CONNECT_TOKEN_BYTES];
    uint64_t client_id, protocol_id;
    int num_addresses, num_internal, expire_seconds, timeout_seconds;
};

static void method_read_token( struct options_t * options, struct token_reader_t * reader )
{
    const int most = NETCODE_MAX_SERVERS_PER_CONNECT;
    reader->num_addresses = options_addresses( options, "addresses", reader->texts, reader->addresses, most );
    if ( reader->num_addresses == 0 )
        options_fail( options, "addresses",
                      "is missing: an Array of the servers' addresses, such as [\"203.0.113.5:40000\"]" );
    reader->num_internal =
        options_addresses( options, "internal_addresses", reader->internal_texts, reader->internal, most );
    if ( reader->num_internal != 0 && reader->num_internal != reader->num_addresses )
        options_fail( options, "internal_addresses", "has not as many entries as addresses" );
    reader->client_id = (uint64_t) options_number( options, "client_id", 0, INT64_MIN, INT64_MAX );
    if ( reader->client_id == 0 )
        options_fail( options, "client_id", "is missing: the player's number, not 0" );
    reader->protocol_id = (uint64_t) options_number( options, "protocol_id", 0, INT64_MIN, INT64_MAX );
    reader->expire_seconds = (int) options_number( options, "expire_seconds", 30, -1, 365 * 86400 );
    reader->timeout_seconds = (int) options_number( options, "timeout_seconds", 10, -1, 3600 );
    options_bytes( options, "user_data", reader->user_data, 0, NETCODE_USER_DATA_BYTES );
    if ( !options_bytes( options, "private_key", reader->key, NETCODE_KEY_BYTES, NETCODE_KEY_BYTES ) )
        options_fail( options, "private_key", "is missing: 32 bytes, the servers' own" );
}

/* An empty array after an error. */
static value_t method_make_token( struct peer_t * peer, int count, value_t ** arguments )
{
    struct options_t options;
    struct token_reader_t reader;
    const char * error = NULL;
    memset( &reader, 0, sizeof( reader ) );
    (void) peer;
    (void) count;
    options_open( &options, arguments[0] );
    method_read_token( &options, &reader );
    if ( !options_close( &options ) )
        error = options.error;
    else if ( netcode_generate_connect_token( reader.num_addresses, reader.addresses,
                                              reader.num_internal > 0 ? reader.internal : reader.addresses,
                                              reader.expire_seconds, reader.timeout_seconds, reader.client_id,
                                              reader.protocol_id, reader.key, reader.user_data,
                                              reader.token ) != NETCODE_OK )
        error = "an address can not be read, or has no port";
    if ( error != NULL )
        value_error( "make_token", error );
    value_t value = value_bytes( reader.token, error == NULL ? NETCODE_CONNECT_TOKEN_BYTES : 0 );
    multiplayer_wipe( &reader, sizeof( reader ) );
    return value;
}

/* ---- the table ---- */

static const struct method_t methods[] =
    { { "create_server", 1, 1, method_create_server },
      { "create_client", 1, 2, method_create_client },
      { METHODS_CLOSE, 0, 0, method_close_connection },
      { "flush", 0, 0, method_flush },
      { "rebind", 0, 0, method_rebind },
      { "kick", 1, 2, method_kick },
#if defined( METHODS_OF_GODOT_3 )
      { "disconnect_peer", 1, 2, method_kick }, /* as the engine's ENet peer has it; Godot 4 has one of its own */
#endif
      { "ban", 1, 1, method_ban },
      { "unban", 1, 1, method_unban },
      { "get_client_id", 1, 1, method_get_client_id },
      { "get_user_data", 1, 1, method_get_user_data },
      { "get_peer_address", 1, 1, method_get_peer_address },
      { "get_peers", 0, 0, method_get_peers },
      { "get_port", 0, 0, method_get_port },
      { "report", 0, 0, method_report },
      { "statistics", 0, 1, method_statistics },
      { "make_key", 0, 0, method_make_key },
      { "make_token", 1, 1, method_make_token } };

/* NULL is a peer for which there was no memory. */
static value_t method_call( const struct method_t * method, struct peer_t * peer, int count, value_t ** arguments )
{
    if ( peer == NULL ) {
        value_error( method->name, "there was no memory for this NetcodePeer" );
        return value_nil();
    }
    if ( count < method->least || count > method->most ) {
        value_error( method->name, "this method has another number of arguments: see README.md" );
        return value_nil();
    }
    return method->function( peer, count, arguments );
}

#endif
