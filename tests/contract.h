/*  The contract with code that exists: every function, type and constant of the known API, by its exact type, and one
    observable effect of each. Compiled as C into the runner (tests/story/contract.c) and as C++ into a program of its
    own (tests/contract.cpp). The includer defines CONTRACT_CHECK( condition ). */

#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdio.h>
#include <string.h>

#if defined( __cplusplus )
#define CONTRACT_C extern "C"
#define CONTRACT_BEGIN extern "C" {
#define CONTRACT_END }
#else
#define CONTRACT_C extern
#define CONTRACT_BEGIN
#define CONTRACT_END
#endif

/* Callers declare this one themselves. */
CONTRACT_C void netcode_random_bytes( uint8_t * data, int bytes );

CONTRACT_BEGIN

/*  The types of the known API, function by function. The fields are filled by position, so a changed order or type
    does not compile. */
struct contract_t {
    int ( *init )( void );
    void ( *term )( void );
    void ( *enable_packet_tagging )( void );
    void ( *log_level )( int );
    void ( *set_printf_function )( int ( * )( const char *, ... ) );
    void ( *set_assert_function )( void ( * )( const char *, const char *, const char *, int ) );
    void ( *random_bytes )( uint8_t *, int );
    void ( *sleep )( double );
    double ( *time )( void );
    int ( *parse_address )( const char *, struct netcode_address_t * );
    char * ( *address_to_string )( const struct netcode_address_t *, char * );
    int ( *address_equal )( const struct netcode_address_t *, const struct netcode_address_t * );
    int ( *generate_connect_token )( int, const char **, const char **, int, int, uint64_t, uint64_t, const uint8_t *,
                                     uint8_t *, uint8_t * );
    void ( *default_client_config )( struct netcode_client_config_t * );
    struct netcode_client_t * ( *client_create )( const char *, const struct netcode_client_config_t *, double );
    struct netcode_client_t * ( *client_create_dual )( const char *, const char *,
                                                       const struct netcode_client_config_t *, double );
    int ( *client_create_error )( void );
    void ( *client_destroy )( struct netcode_client_t * );
    int ( *client_connect )( struct netcode_client_t *, const uint8_t * );
    void ( *client_update )( struct netcode_client_t *, double );
    void ( *client_disconnect )( struct netcode_client_t * );
    uint64_t ( *client_next_packet_sequence )( struct netcode_client_t * );
    void ( *client_send_packet )( struct netcode_client_t *, const uint8_t *, int );
    uint8_t * ( *client_receive_packet )( struct netcode_client_t *, int *, uint64_t * );
    void ( *client_free_packet )( struct netcode_client_t *, void * );
    int ( *client_state )( struct netcode_client_t * );
    int ( *client_index )( struct netcode_client_t * );
    int ( *client_max_clients )( struct netcode_client_t * );
    uint16_t ( *client_get_port )( struct netcode_client_t * );
    struct netcode_address_t * ( *client_server_address )( struct netcode_client_t * );
    void ( *client_process_packet )( struct netcode_client_t *, struct netcode_address_t *, uint8_t *, int );
    int ( *client_connect_loopback )( struct netcode_client_t *, int, int );
    void ( *client_disconnect_loopback )( struct netcode_client_t * );
    int ( *client_loopback )( struct netcode_client_t * );
    void ( *client_process_loopback_packet )( struct netcode_client_t *, const uint8_t *, int, uint64_t );
    void ( *default_server_config )( struct netcode_server_config_t * );
    struct netcode_server_t * ( *server_create )( const char *, const struct netcode_server_config_t *, double );
    struct netcode_server_t * ( *server_create_dual )( const char *, const char *,
                                                       const struct netcode_server_config_t *, double );
    int ( *server_create_error )( void );
    void ( *server_destroy )( struct netcode_server_t * );
    int ( *server_start )( struct netcode_server_t *, int );
    void ( *server_stop )( struct netcode_server_t * );
    void ( *server_update )( struct netcode_server_t *, double );
    int ( *server_running )( struct netcode_server_t * );
    int ( *server_max_clients )( struct netcode_server_t * );
    int ( *server_num_connected_clients )( struct netcode_server_t * );
    int ( *server_client_connected )( struct netcode_server_t *, int );
    int ( *server_client_disconnect_reason )( struct netcode_server_t *, int );
    int ( *server_client_loopback )( struct netcode_server_t *, int );
    uint64_t ( *server_client_id )( struct netcode_server_t *, int );
    struct netcode_address_t * ( *server_client_address )( struct netcode_server_t *, int );
    void * ( *server_client_user_data )( struct netcode_server_t *, int );
    void ( *server_disconnect_client )( struct netcode_server_t *, int );
    void ( *server_disconnect_all_clients )( struct netcode_server_t * );
    uint64_t ( *server_next_packet_sequence )( struct netcode_server_t *, int );
    void ( *server_send_packet )( struct netcode_server_t *, int, const uint8_t *, int );
    uint8_t * ( *server_receive_packet )( struct netcode_server_t *, int, int *, uint64_t * );
    void ( *server_free_packet )( struct netcode_server_t *, void * );
    void ( *server_process_packet )( struct netcode_server_t *, struct netcode_address_t *, uint8_t *, int );
    int ( *server_connect_loopback_client )( struct netcode_server_t *, int, uint64_t, const uint8_t * );
    void ( *server_disconnect_loopback_client )( struct netcode_server_t *, int );
    void ( *server_process_loopback_packet )( struct netcode_server_t *, int, const uint8_t *, int, uint64_t );
    uint16_t ( *server_get_port )( struct netcode_server_t * );
    struct netcode_network_simulator_t * ( *simulator_create )( void *, void * (*) ( void *, size_t ),
                                                                void ( * )( void *, void * ) );
    void ( *simulator_destroy )( struct netcode_network_simulator_t * );
    void ( *simulator_reset )( struct netcode_network_simulator_t * );
    void ( *simulator_update )( struct netcode_network_simulator_t *, double );
};

static const struct contract_t contract_table = {
    netcode_init,
    netcode_term,
    netcode_enable_packet_tagging,
    netcode_log_level,
    netcode_set_printf_function,
    netcode_set_assert_function,
    netcode_random_bytes,
    netcode_sleep,
    netcode_time,
    netcode_parse_address,
    netcode_address_to_string,
    netcode_address_equal,
    netcode_generate_connect_token,
    netcode_default_client_config,
    netcode_client_create,
    netcode_client_create_dual,
    netcode_client_create_error,
    netcode_client_destroy,
    netcode_client_connect,
    netcode_client_update,
    netcode_client_disconnect,
    netcode_client_next_packet_sequence,
    netcode_client_send_packet,
    netcode_client_receive_packet,
    netcode_client_free_packet,
    netcode_client_state,
    netcode_client_index,
    netcode_client_max_clients,
    netcode_client_get_port,
    netcode_client_server_address,
    netcode_client_process_packet,
    netcode_client_connect_loopback,
    netcode_client_disconnect_loopback,
    netcode_client_loopback,
    netcode_client_process_loopback_packet,
    netcode_default_server_config,
    netcode_server_create,
    netcode_server_create_dual,
    netcode_server_create_error,
    netcode_server_destroy,
    netcode_server_start,
    netcode_server_stop,
    netcode_server_update,
    netcode_server_running,
    netcode_server_max_clients,
    netcode_server_num_connected_clients,
    netcode_server_client_connected,
    netcode_server_client_disconnect_reason,
    netcode_server_client_loopback,
    netcode_server_client_id,
    netcode_server_client_address,
    netcode_server_client_user_data,
    netcode_server_disconnect_client,
    netcode_server_disconnect_all_clients,
    netcode_server_next_packet_sequence,
    netcode_server_send_packet,
    netcode_server_receive_packet,
    netcode_server_free_packet,
    netcode_server_process_packet,
    netcode_server_connect_loopback_client,
    netcode_server_disconnect_loopback_client,
    netcode_server_process_loopback_packet,
    netcode_server_get_port,
    netcode_network_simulator_create,
    netcode_network_simulator_destroy,
    netcode_network_simulator_reset,
    netcode_network_simulator_update,
};

static struct {
    const struct contract_t * api;
    struct netcode_network_simulator_t * net;
    struct netcode_client_t * client;
    struct netcode_server_t * server;
    double now;
    int printed;
    int asserted;
    int states;
    int connects;
    int loopback_to_client;
    int loopback_to_server;
    int allocated;
    int freed;
} contract;

static int contract_printf( const char * format, ... )
{
    (void) format;
    return ++contract.printed;
}

static void contract_assert( const char * condition, const char * function, const char * file, int line )
{
    CONTRACT_CHECK( condition && function && file && line > 0 );
    contract.asserted++;
}

static void * contract_allocate( void * context, size_t bytes )
{
    CONTRACT_CHECK( context == &contract );
    contract.allocated++;
    return malloc( bytes );
}

static void contract_free( void * context, void * pointer )
{
    CONTRACT_CHECK( context == &contract );
    contract.freed++;
    free( pointer );
}

static void contract_state( void * context, int previous, int state )
{
    CONTRACT_CHECK( context == &contract && previous != state );
    contract.states++;
}

static void contract_connect( void * context, int client_index, int connected )
{
    CONTRACT_CHECK( context == &contract && client_index >= 0 );
    contract.connects += connected;
}

static void contract_client_loopback( void * context, int client_index, const uint8_t * data, int bytes,
                                      uint64_t sequence )
{
    (void) sequence;
    CONTRACT_CHECK( context == &contract && client_index == 1 && data && bytes == 3 );
    contract.loopback_to_server++;
}

static void contract_server_loopback( void * context, int client_index, const uint8_t * data, int bytes,
                                      uint64_t sequence )
{
    (void) sequence;
    CONTRACT_CHECK( context == &contract && client_index == 1 && data && bytes == 4 );
    contract.loopback_to_client++;
}

CONTRACT_END

static const uint8_t contract_key[NETCODE_KEY_BYTES] = { 1, 2, 3, 4 };

static void contract_step( double seconds )
{
    double end = contract.now + seconds;
    while ( contract.now < end ) {
        contract.now += 0.01;
        contract.api->simulator_update( contract.net, contract.now );
        contract.api->server_update( contract.server, contract.now );
        contract.api->client_update( contract.client, contract.now );
    }
}

static void contract_constants( void )
{
    NETCODE_CONST int constant = 1;
    CONTRACT_CHECK( constant == NETCODE_OK && NETCODE_ERROR == 0 );
    CONTRACT_CHECK( NETCODE_CONNECT_TOKEN_BYTES == 2048 && NETCODE_KEY_BYTES == 32 && NETCODE_MAC_BYTES == 16 );
    CONTRACT_CHECK( NETCODE_USER_DATA_BYTES == 256 && NETCODE_MAX_SERVERS_PER_CONNECT == 32 &&
                    NETCODE_MAX_PACKET_SIZE == 1200 );
    CONTRACT_CHECK( NETCODE_MAX_ADDRESS_STRING_LENGTH == 256 && NETCODE_MAX_CLIENTS == 256 &&
                    NETCODE_MAX_SLOTS == 65535 );
    CONTRACT_CHECK( NETCODE_ADDRESS_NONE == 0 && NETCODE_ADDRESS_IPV4 == 1 && NETCODE_ADDRESS_IPV6 == 2 );
    CONTRACT_CHECK( NETCODE_LOG_LEVEL_NONE == 0 && NETCODE_LOG_LEVEL_ERROR == 1 && NETCODE_LOG_LEVEL_INFO == 2 &&
                    NETCODE_LOG_LEVEL_DEBUG == 3 );
    CONTRACT_CHECK( NETCODE_DEFAULT_MAX_CONNECT_TOKEN_LIFETIME == 30 );
    CONTRACT_CHECK( NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED == -6 &&
                    NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN == -5 );
    CONTRACT_CHECK( NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT == -4 &&
                    NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT == -3 );
    CONTRACT_CHECK( NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT == -2 &&
                    NETCODE_CLIENT_STATE_CONNECTION_DENIED == -1 );
    CONTRACT_CHECK( NETCODE_CLIENT_STATE_DISCONNECTED == 0 && NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST == 1 );
    CONTRACT_CHECK( NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE == 2 && NETCODE_CLIENT_STATE_CONNECTED == 3 );
    CONTRACT_CHECK( NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE == 0 &&
                    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT == 1 );
    CONTRACT_CHECK( NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT == 2 &&
                    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT == 3 );
    CONTRACT_CHECK( NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED == 4 );
    CONTRACT_CHECK( NETCODE_CLIENT_CREATE_ERROR_NONE == 0 && NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED == 1 );
    CONTRACT_CHECK( NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS2_FAILED == 2 &&
                    NETCODE_CLIENT_CREATE_ERROR_SIMULATOR_REQUIRES_PORT == 3 );
    CONTRACT_CHECK( NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED == 4 &&
                    NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED == 5 );
    CONTRACT_CHECK( NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED == 6 &&
                    NETCODE_CLIENT_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK == 7 );
    CONTRACT_CHECK( NETCODE_SERVER_CREATE_ERROR_NONE == 0 && NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED == 1 );
    CONTRACT_CHECK( NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED == 2 &&
                    NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED == 3 );
    CONTRACT_CHECK( NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED == 4 &&
                    NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED == 5 );
    CONTRACT_CHECK( NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV6_FAILED == 6 &&
                    NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED == 7 );
    CONTRACT_CHECK( NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK == 8 );
    CONTRACT_CHECK( NETCODE_PLATFORM_WINDOWS == 1 && NETCODE_PLATFORM_MAC == 2 && NETCODE_PLATFORM_UNIX == 3 );
    CONTRACT_CHECK( NETCODE_PLATFORM >= 1 && NETCODE_PLATFORM <= 3 && NETCODE_PACKET_TAGGING >= 0 );
    CONTRACT_CHECK( NETCODE_VERSION_MAJOR >= 1 && NETCODE_VERSION_MINOR >= 0 && NETCODE_VERSION_PATCH >= 0 &&
                    NETCODE_VERSION_FULL[0] );
#if defined( NETCODE_DEBUG ) == defined( NETCODE_RELEASE )
#error "one of NETCODE_DEBUG and NETCODE_RELEASE"
#endif
#if defined( NETCODE_LITTLE_ENDIAN ) == defined( NETCODE_BIG_ENDIAN )
#error "one of NETCODE_LITTLE_ENDIAN and NETCODE_BIG_ENDIAN"
#endif
}

/* The structs, field by field, each with the type that callers assign. */
static void contract_structs( void )
{
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    netcode_address_t address; /* every struct has a typedef of its name */
    netcode_client_t * client_pointer = contract.client;
    netcode_server_t * server_pointer = contract.server;
    struct netcode_network_simulator_t * net = contract.net;
    float * floats[4];
    uint8_t * key;
    memset( &address, 0, sizeof( address ) );
    memset( &client, 0x55, sizeof( client ) );
    memset( &server, 0x55, sizeof( server ) );
    contract.api->default_client_config( &client );
    contract.api->default_server_config( &server );
    CONTRACT_CHECK( !client.allocator_context &&
                    !client.network_simulator ); /* the functions may be NULL or the defaults themselves */
    CONTRACT_CHECK( !client.callback_context && !client.state_change_callback &&
                    !client.send_loopback_packet_callback );
    CONTRACT_CHECK( !client.override_send_and_receive && !client.send_packet_override &&
                    !client.receive_packet_override );
    CONTRACT_CHECK( !server.allocator_context &&
                    !server.network_simulator ); /* the functions may be NULL or the defaults themselves */
    CONTRACT_CHECK( !server.callback_context && !server.connect_disconnect_callback &&
                    !server.send_loopback_packet_callback );
    CONTRACT_CHECK( !server.override_send_and_receive && !server.send_packet_override &&
                    !server.receive_packet_override );
    CONTRACT_CHECK( server.max_connect_token_lifetime == 0 && server.protocol_id == 0 );
    CONTRACT_CHECK( sizeof( server.private_key ) == NETCODE_KEY_BYTES && sizeof( address.data ) == 16 );
    CONTRACT_CHECK( sizeof( address.port ) == 2 && sizeof( address.type ) == 1 );
    key = server.private_key;
    floats[0] = &net->latency_milliseconds;
    floats[1] = &net->jitter_milliseconds;
    floats[2] = &net->packet_loss_percent;
    floats[3] = &net->duplicate_packet_percent;
    CONTRACT_CHECK( floats[0] && floats[1] && floats[2] && floats[3] && key && client_pointer && server_pointer );
}

static void contract_library( void )
{
    const struct contract_t * api = contract.api;
    uint8_t random[2][16] = { { 0 }, { 0 } };
    double start = api->time();
    struct netcode_address_t a, b;
    struct netcode_client_config_t config;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    CONTRACT_CHECK( api->init() == NETCODE_OK );
    api->term(); /* counted: the library is still ready */
    api->random_bytes( random[0], 16 );
    api->random_bytes( random[1], 16 );
    CONTRACT_CHECK( memcmp( random[0], random[1], 16 ) != 0 );
    api->sleep( 0.01 );
    CONTRACT_CHECK( api->time() - start >= 0.009 );
    CONTRACT_CHECK( api->parse_address( "127.0.0.1:40000", &a ) == NETCODE_OK );
    CONTRACT_CHECK( a.type == NETCODE_ADDRESS_IPV4 && a.port == 40000 && a.data.ipv4[0] == 127 && a.data.ipv4[3] == 1 );
    CONTRACT_CHECK( api->parse_address( "[::1]:40000", &b ) == NETCODE_OK );
    CONTRACT_CHECK( b.type == NETCODE_ADDRESS_IPV6 && b.data.ipv6[7] == 1 );
    CONTRACT_CHECK( strcmp( api->address_to_string( &a, text ), "127.0.0.1:40000" ) == 0 );
    CONTRACT_CHECK( api->address_equal( &a, &a ) == 1 && api->address_equal( &a, &b ) == 0 );
    api->default_client_config( &config );
    api->set_printf_function( contract_printf );
    contract.printed = 0;
    api->log_level( NETCODE_LOG_LEVEL_ERROR );
    CONTRACT_CHECK( api->client_create( "nonsense", &config, 0.0 ) == NULL );
    CONTRACT_CHECK( contract.printed > 0 );
    CONTRACT_CHECK( api->client_create_error() == NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED );
    contract.printed = 0;
    api->log_level( NETCODE_LOG_LEVEL_NONE );
    CONTRACT_CHECK( api->client_create_dual( "127.0.0.1", "nonsense", &config, 0.0 ) == NULL );
    CONTRACT_CHECK( contract.printed == 0 );
    CONTRACT_CHECK( api->client_create_error() == NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
    api->set_assert_function( contract_assert );
    CONTRACT_CHECK( netcode_assert_function == contract_assert );
    contract.asserted = 0;
    netcode_assert( 1 + 1 == 3 );
#if defined( NDEBUG )
    CONTRACT_CHECK( contract.asserted == 0 );
#else
    CONTRACT_CHECK( contract.asserted == 1 );
#endif
    api->enable_packet_tagging();
}

static void contract_create( uint8_t * token )
{
    const struct contract_t * api = contract.api;
    struct netcode_client_config_t client;
    struct netcode_server_config_t server;
    const char * addresses[1] = { "127.0.0.1:40000" };
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
    memset( user_data, 7, sizeof( user_data ) );
    CONTRACT_CHECK( api->generate_connect_token( 1, addresses, addresses, 30, 5, 1234, 99, contract_key, user_data,
                                                 token ) == NETCODE_OK );
    contract.net = api->simulator_create( &contract, contract_allocate, contract_free );
    CONTRACT_CHECK( contract.net && contract.allocated > 0 );
    contract.net->latency_milliseconds = 20.0f;
    api->simulator_reset( contract.net );
    api->default_client_config( &client );
    client.allocator_context = client.callback_context = &contract;
    client.allocate_function = contract_allocate;
    client.free_function = contract_free;
    client.network_simulator = contract.net;
    client.state_change_callback = contract_state;
    client.send_loopback_packet_callback = contract_client_loopback;
    contract.client = api->client_create( "127.0.0.1:50000", &client, contract.now );
    api->default_server_config( &server );
    server.protocol_id = 99;
    memcpy( server.private_key, contract_key, NETCODE_KEY_BYTES );
    server.allocator_context = server.callback_context = &contract;
    server.allocate_function = contract_allocate;
    server.free_function = contract_free;
    server.network_simulator = contract.net;
    server.connect_disconnect_callback = contract_connect;
    server.send_loopback_packet_callback = contract_server_loopback;
    CONTRACT_CHECK( api->server_create_dual( "127.0.0.1:40000", "nonsense", &server, 0.0 ) == NULL );
    CONTRACT_CHECK( api->server_create_error() == NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED );
    contract.server = api->server_create( "127.0.0.1:40000", &server, contract.now );
    CONTRACT_CHECK( contract.client && contract.server );
    CONTRACT_CHECK( api->server_get_port( contract.server ) == 40000 &&
                    api->client_get_port( contract.client ) == 50000 );
}

static void contract_connection( uint8_t * token )
{
    const struct contract_t * api = contract.api;
    struct netcode_client_t * c = contract.client;
    struct netcode_server_t * s = contract.server;
    struct netcode_address_t address;
    uint8_t data[3] = { 1, 2, 3 }, junk[30] = { 0 }, *packet;
    uint64_t sequence = 0, before;
    int bytes = 0;
    CONTRACT_CHECK( api->server_running( s ) == 0 );
    api->server_start( s, 4 );
    CONTRACT_CHECK( api->server_running( s ) == 1 && api->server_max_clients( s ) == 4 );
    api->client_connect( c, token );
    CONTRACT_CHECK( api->client_state( c ) == NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST );
    contract_step( 0.5 );
    CONTRACT_CHECK( api->client_state( c ) == NETCODE_CLIENT_STATE_CONNECTED && contract.states == 3 &&
                    contract.connects == 1 );
    CONTRACT_CHECK( api->client_index( c ) == 0 && api->client_max_clients( c ) == 4 );
    CONTRACT_CHECK( api->client_server_address( c )->port == 40000 );
    CONTRACT_CHECK( api->server_num_connected_clients( s ) == 1 && api->server_client_connected( s, 0 ) == 1 );
    CONTRACT_CHECK( api->server_client_id( s, 0 ) == 1234 && api->server_client_address( s, 0 )->port == 50000 );
    CONTRACT_CHECK( ( (const uint8_t *) api->server_client_user_data( s, 0 ) )[255] == 7 );
    before = api->client_next_packet_sequence( c );
    api->client_send_packet( c, data, 3 );
    CONTRACT_CHECK( api->client_next_packet_sequence( c ) == before + 1 );
    before = api->server_next_packet_sequence( s, 0 );
    api->server_send_packet( s, 0, data, 2 );
    CONTRACT_CHECK( api->server_next_packet_sequence( s, 0 ) == before + 1 );
    contract_step( 0.1 );
    packet = api->server_receive_packet( s, 0, &bytes, &sequence );
    CONTRACT_CHECK( packet && bytes == 3 && packet[2] == 3 && sequence != 0 );
    api->server_free_packet( s, packet );
    packet = api->client_receive_packet( c, &bytes, NULL );
    CONTRACT_CHECK( packet && bytes == 2 && packet[1] == 2 );
    api->client_free_packet( c, packet );
    (void) api->parse_address( "127.0.0.1:40000", &address );
    api->client_process_packet( c, &address, junk, 30 ); /* junk is dropped */
    (void) api->parse_address( "127.0.0.1:50000", &address );
    api->server_process_packet( s, &address, junk, 30 );
    CONTRACT_CHECK( api->client_state( c ) == NETCODE_CLIENT_STATE_CONNECTED );
    api->server_disconnect_client( s, 0 );
    CONTRACT_CHECK( api->server_client_connected( s, 0 ) == 0 );
    CONTRACT_CHECK( api->server_client_disconnect_reason( s, 0 ) ==
                    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT );
    contract_step( 0.1 );
    CONTRACT_CHECK( api->client_state( c ) == NETCODE_CLIENT_STATE_DISCONNECTED );
}

static void contract_loopback( void )
{
    const struct contract_t * api = contract.api;
    struct netcode_client_t * c = contract.client;
    struct netcode_server_t * s = contract.server;
    uint8_t data[4] = { 9, 8, 7, 6 }, *packet;
    int bytes = 0;
    api->client_connect_loopback( c, 1, 4 );
    CONTRACT_CHECK( api->client_loopback( c ) == 1 && api->client_state( c ) == NETCODE_CLIENT_STATE_CONNECTED );
    api->server_connect_loopback_client( s, 1, 55, NULL );
    CONTRACT_CHECK( api->server_client_loopback( s, 1 ) == 1 && api->server_client_id( s, 1 ) == 55 );
    api->client_send_packet( c, data, 3 );
    CONTRACT_CHECK( contract.loopback_to_server == 1 );
    api->server_send_packet( s, 1, data, 4 );
    CONTRACT_CHECK( contract.loopback_to_client == 1 );
    api->client_process_loopback_packet( c, data, 4, 0 );
    packet = api->client_receive_packet( c, &bytes, NULL );
    CONTRACT_CHECK( packet && bytes == 4 );
    api->client_free_packet( c, packet );
    api->server_process_loopback_packet( s, 1, data, 3, 0 );
    packet = api->server_receive_packet( s, 1, &bytes, NULL );
    CONTRACT_CHECK( packet && bytes == 3 );
    api->server_free_packet( s, packet );
    api->server_disconnect_loopback_client( s, 1 );
    CONTRACT_CHECK( api->server_client_connected( s, 1 ) == 0 );
    api->client_disconnect_loopback( c );
    CONTRACT_CHECK( api->client_state( c ) == NETCODE_CLIENT_STATE_DISCONNECTED );
}

static void contract_end( void )
{
    const struct contract_t * api = contract.api;
    const char * addresses[1] = { "127.0.0.1:40000" };
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    CONTRACT_CHECK( api->generate_connect_token( 1, addresses, addresses, 30, 5, 77, 99, contract_key, NULL, token ) ==
                    NETCODE_OK );
    api->client_connect( contract.client, token );
    contract_step( 0.5 );
    CONTRACT_CHECK( api->server_num_connected_clients( contract.server ) == 1 );
    api->client_disconnect( contract.client );
    contract_step( 0.1 );
    CONTRACT_CHECK( api->server_num_connected_clients( contract.server ) == 0 );
    CONTRACT_CHECK( api->generate_connect_token( 1, addresses, addresses, 30, 5, 78, 99, contract_key, NULL, token ) ==
                    NETCODE_OK );
    api->client_connect( contract.client, token );
    contract_step( 0.5 );
    api->server_disconnect_all_clients( contract.server );
    CONTRACT_CHECK( api->server_num_connected_clients( contract.server ) == 0 );
    api->server_stop( contract.server );
    CONTRACT_CHECK( api->server_running( contract.server ) == 0 );
    api->client_destroy( contract.client );
    api->server_destroy( contract.server );
    api->simulator_destroy( contract.net );
    CONTRACT_CHECK( contract.allocated == contract.freed );
}

static void contract_run( void )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    memset( &contract, 0, sizeof( contract ) );
    contract.api = &contract_table;
    contract_constants();
    contract_library();
    contract_create( token );
    if ( !contract.client || !contract.server || !contract.net )
        return;
    contract_structs();
    contract_connection( token );
    contract_loopback();
    contract_end();
}

#endif
