/*  netcode.h in Godot 4: a GDExtension with the class NetcodePeer, a MultiplayerPeer. This is the one file that knows the
    engine's entry points; godot4_values.h has its values. What scripts call is in methods.h and options.h, which Godot 3
    shares, and everything else in multiplayer_api.h, which any engine can use.

        make build/godot/libnetcode_godot4.so */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#define NETCODE_STATIC
#include "netcode.h"

#include "multiplayer_api.h"

#include "godot4_values.h"

#include "options.h"

#if defined( _WIN32 )
#define ENTRY __declspec( dllexport )
#else
#define ENTRY __attribute__( ( visibility( "default" ) ) )
#endif

static GDExtensionClassLibraryPtr godot_library;
static value_string_t class_name, parent_name;

/* One NetcodePeer of a script. */
struct peer_t {
    GDExtensionObjectPtr owner;
    struct multiplayer_t multiplayer;
    value_t held[8]; /* references to the owner while its own calls are in progress */
    int num_held;
    int flush_asked; /* the engine will call flush at the end of this frame */
};

/* The engine's error numbers, which its scripts know as OK, ERR_INVALID_PARAMETER and so on. */
static int peer_error( int result )
{
    switch ( result ) {
    case MULTIPLAYER_OK: return 0;
    case MULTIPLAYER_BAD_ARGUMENT: return 31;
    case MULTIPLAYER_IN_USE: return 22;
    case MULTIPLAYER_INACTIVE: return 3;
    case MULTIPLAYER_NO_MEMORY: return 6;
    case MULTIPLAYER_NO_SOCKET: return 20;
    default: return 2; /* ERR_UNAVAILABLE */
    }
}

/* The engine's error, after its sentence went to the engine's log. */
static int peer_result( const struct peer_t * peer, const char * function, int result )
{
    if ( result != MULTIPLAYER_OK )
        value_error( function, peer->multiplayer.error );
    return peer_error( result );
}

static void peer_log( void * context, int level, const char * text )
{
    (void) context;
    if ( level == NETCODE_LOG_LEVEL_ERROR )
        value_error( "netcode", text );
    else
        value_print( text );
}

/* A value that refers to the owner keeps it. */
static value_t peer_reference( const struct peer_t * peer )
{
    value_t value;
    GDExtensionObjectPtr owner = peer->owner;
    godot.from_object( &value, &owner );
    return value;
}

/* A signal's receiver may give up the last reference to this peer: one more keeps it until the work is done. Calls
   within calls are few; those that are deeper are kept by the ones around them. */
static void peer_hold( struct peer_t * peer )
{
    if ( peer->num_held < (int) ( sizeof( peer->held ) / sizeof( peer->held[0] ) ) )
        peer->held[peer->num_held] = peer_reference( peer );
    peer->num_held++;
}

/* The peer may be gone after this call. */
static void peer_release( struct peer_t * peer )
{
    peer->num_held--;
    if ( peer->num_held < (int) ( sizeof( peer->held ) / sizeof( peer->held[0] ) ) ) {
        value_t last = peer->held[peer->num_held];
        value_destroy( &last );
    }
}

/* The engine itself sees from the status that a client's connection has failed or ended: those events are no signals. */
static void peer_emit_events( struct peer_t * peer )
{
    struct multiplayer_event_t event;
    while ( multiplayer_next_event( &peer->multiplayer, &event ) ) {
        if ( event.type != MULTIPLAYER_PEER_CONNECTED && event.type != MULTIPLAYER_PEER_DISCONNECTED )
            continue;
        value_t owner = peer_reference( peer );
        value_t name = value_text( event.type == MULTIPLAYER_PEER_CONNECTED ? "peer_connected" : "peer_disconnected" );
        value_t id = value_int( event.peer );
        value_t result = value_call( &owner, "emit_signal", &name, &id );
        value_destroy( &result );
        value_destroy( &id );
        value_destroy( &name );
        value_destroy( &owner );
    }
}

#define METHODS_CLOSE "close_connection"
#include "methods.h"

/* ---- the engine's interface: arguments are pointers to their values, numbers have 64 bits ---- */

typedef void ( *virtual_function_t )( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result );

static void return_int( void * result, int64_t number )
{
    memcpy( result, &number, sizeof( number ) );
}

static void return_bool( void * result, int yes )
{
    GDExtensionBool boolean = yes != 0;
    memcpy( result, &boolean, sizeof( boolean ) );
}

static int64_t argument_int( const void * argument )
{
    int64_t number;
    memcpy( &number, argument, sizeof( number ) );
    return number;
}

static void * argument_pointer( const void * argument )
{
    void * pointer;
    memcpy( &pointer, argument, sizeof( pointer ) );
    return pointer;
}

static void peer_get_packet( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    const uint8_t ** data = (const uint8_t **) argument_pointer( arguments[0] );
    int32_t * bytes = (int32_t *) argument_pointer( arguments[1] );
    struct multiplayer_packet_t packet;
    int error = multiplayer_get( &peer->multiplayer, &packet, data );
    *bytes = error == MULTIPLAYER_OK ? packet.bytes : 0;
    return_int( result, peer_result( peer, "get_packet", error ) );
}

/* Packets of one frame leave together, at its end: the engine calls flush then. */
static void peer_put_packet( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    const uint8_t * data = (const uint8_t *) argument_pointer( arguments[0] );
    int64_t bytes = argument_int( arguments[1] );
    int size = bytes < 0 || bytes > INT32_MAX ? -1 : (int) bytes;
    int error = peer_result( peer, "put_packet", multiplayer_put( &peer->multiplayer, data, size ) );
    if ( error == 0 && !peer->flush_asked ) {
        value_t owner = peer_reference( peer ), name = value_text( "flush" );
        peer->flush_asked = 1;
        value_t nothing = value_call( &owner, "call_deferred", &name, NULL );
        value_destroy( &nothing );
        value_destroy( &name );
        value_destroy( &owner );
    }
    return_int( result, error );
}

static void peer_get_available_packet_count( struct peer_t * peer, const GDExtensionConstTypePtr * arguments,
                                             void * result )
{
    (void) arguments;
    return_int( result, peer->multiplayer.queue_packets );
}

static void peer_get_max_packet_size( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    const struct multiplayer_t * m = &peer->multiplayer;
    (void) arguments;
    return_int( result, m->max_packet_bytes > 0 ? m->max_packet_bytes : MULTIPLAYER_DEFAULT_PACKET );
}

/* All of the engine's channels are one here: each mode has an order of its own. */
static void peer_get_packet_channel( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) peer;
    (void) arguments;
    return_int( result, 0 );
}

static void peer_set_transfer_channel( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) peer;
    (void) arguments;
    (void) result;
}

/* The engine has 0 unreliable, 1 unreliable ordered, 2 reliable. */
static int64_t peer_mode( int channel )
{
    return channel == CHANNEL_UNRELIABLE ? 0 : channel == CHANNEL_ORDERED ? 1 : 2;
}

static void peer_get_packet_mode( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    struct multiplayer_packet_t packet;
    (void) arguments;
    return_int( result, multiplayer_first( &peer->multiplayer, &packet ) ? peer_mode( packet.channel ) : 2 );
}

static void peer_set_transfer_mode( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    int64_t mode = argument_int( arguments[0] );
    (void) result;
    if ( mode < 0 || mode > 2 )
        value_error( "set_transfer_mode", "there are only the transfer modes 0 to 2" );
    else
        peer->multiplayer.channel = mode == 0 ? CHANNEL_UNRELIABLE : mode == 1 ? CHANNEL_ORDERED : CHANNEL_RELIABLE;
}

static void peer_get_transfer_mode( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    return_int( result, peer_mode( peer->multiplayer.channel ) );
}

/* What is no peer id becomes one that no peer has. */
static void peer_set_target_peer( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    int64_t target = argument_int( arguments[0] );
    (void) result;
    peer->multiplayer.target = target < INT32_MIN || target > INT32_MAX ? INT32_MIN : (int32_t) target;
}

static void peer_get_packet_peer( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    return_int( result, multiplayer_packet_peer( &peer->multiplayer ) );
}

static void peer_is_server( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    return_bool( result, peer->multiplayer.role == MULTIPLAYER_SERVER );
}

static void peer_poll( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    (void) result;
    peer_hold( peer );
    multiplayer_poll( &peer->multiplayer, netcode_time() );
    peer_emit_events( peer );
    peer_release( peer );
}

static void peer_close( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    (void) result;
    multiplayer_close( &peer->multiplayer );
}

/* The engine's own disconnect_peer( id, force ): without a reason. It is for servers; on a client nothing happens. */
static void peer_disconnect_peer( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    int64_t id = argument_int( arguments[0] );
    (void) result;
    peer_hold( peer );
    peer_result( peer, "disconnect_peer", multiplayer_kick( &peer->multiplayer, method_peer_id( id ), "" ) );
    peer_emit_events( peer );
    peer_release( peer );
}

static void peer_get_unique_id( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    return_int( result, peer->multiplayer.unique_id );
}

static void peer_set_refuse_new_connections( struct peer_t * peer, const GDExtensionConstTypePtr * arguments,
                                             void * result )
{
    GDExtensionBool refuse;
    (void) result;
    memcpy( &refuse, arguments[0], sizeof( refuse ) );
    peer->multiplayer.refuses = refuse != 0;
}

static void peer_is_refusing_new_connections( struct peer_t * peer, const GDExtensionConstTypePtr * arguments,
                                              void * result )
{
    (void) arguments;
    return_bool( result, peer->multiplayer.refuses );
}

/* This peer relays by itself, and reports the other clients: the engine's own relaying would do it twice. */
static void peer_is_server_relay_supported( struct peer_t * peer, const GDExtensionConstTypePtr * arguments,
                                            void * result )
{
    (void) peer;
    (void) arguments;
    return_bool( result, 0 );
}

static void peer_get_connection_status( struct peer_t * peer, const GDExtensionConstTypePtr * arguments, void * result )
{
    (void) arguments;
    return_int( result, peer->multiplayer.status );
}

static struct {
    const char * name;
    virtual_function_t function;
    value_string_t string_name;
} virtuals[] = { { "_get_packet", peer_get_packet, { NULL } },
                 { "_put_packet", peer_put_packet, { NULL } },
                 { "_get_available_packet_count", peer_get_available_packet_count, { NULL } },
                 { "_get_max_packet_size", peer_get_max_packet_size, { NULL } },
                 { "_get_packet_channel", peer_get_packet_channel, { NULL } },
                 { "_get_packet_mode", peer_get_packet_mode, { NULL } },
                 { "_set_transfer_channel", peer_set_transfer_channel, { NULL } },
                 { "_get_transfer_channel", peer_get_packet_channel, { NULL } },
                 { "_set_transfer_mode", peer_set_transfer_mode, { NULL } },
                 { "_get_transfer_mode", peer_get_transfer_mode, { NULL } },
                 { "_set_target_peer", peer_set_target_peer, { NULL } },
                 { "_get_packet_peer", peer_get_packet_peer, { NULL } },
                 { "_is_server", peer_is_server, { NULL } },
                 { "_poll", peer_poll, { NULL } },
                 { "_close", peer_close, { NULL } },
                 { "_disconnect_peer", peer_disconnect_peer, { NULL } },
                 { "_get_unique_id", peer_get_unique_id, { NULL } },
                 { "_set_refuse_new_connections", peer_set_refuse_new_connections, { NULL } },
                 { "_is_refusing_new_connections", peer_is_refusing_new_connections, { NULL } },
                 { "_is_server_relay_supported", peer_is_server_relay_supported, { NULL } },
                 { "_get_connection_status", peer_get_connection_status, { NULL } } };

enum { VIRTUALS = (int) ( sizeof( virtuals ) / sizeof( virtuals[0] ) ) };

static void * peer_get_virtual( void * data, GDExtensionConstStringNamePtr name, uint32_t hash )
{
    (void) data;
    (void) hash;
    for ( int i = 0; i < VIRTUALS; i++ )
        if ( memcmp( name, &virtuals[i].string_name, sizeof( value_string_t ) ) == 0 )
            return &virtuals[i];
    return NULL;
}

/* An instance for which there was no memory does nothing: what the engine reads of it stays as the engine has set it. */
static void peer_call_virtual( GDExtensionClassInstancePtr instance, GDExtensionConstStringNamePtr name, void * data,
                               const GDExtensionConstTypePtr * arguments, GDExtensionTypePtr result )
{
    (void) name;
    for ( int i = 0; i < VIRTUALS; i++ )
        if ( data == &virtuals[i] && instance != NULL )
            virtuals[i].function( (struct peer_t *) instance, arguments, result );
}

/* ---- the class, and the library's entry point ---- */

static void peer_method( void * data, GDExtensionClassInstancePtr instance,
                         const GDExtensionConstVariantPtr * arguments, GDExtensionInt count,
                         GDExtensionVariantPtr result, GDExtensionCallError * error )
{
    value_t * pointers[4] = { NULL, NULL, NULL, NULL };
    int known = count < 4 ? (int) count : 4; /* more than any method has, which is an error there */
    for ( int i = 0; i < known; i++ )
        pointers[i] = (value_t *) (uintptr_t) arguments[i];
    value_t returned = method_call( (const struct method_t *) data, (struct peer_t *) instance, known, pointers );
    godot.variant_new_copy( result, &returned );
    value_destroy( &returned );
    error->error = GDEXTENSION_CALL_OK;
}

static GDExtensionObjectPtr peer_create( void * data, GDExtensionBool notify )
{
    struct peer_t * peer = (struct peer_t *) calloc( 1, sizeof( *peer ) );
    (void) data;
    (void) notify;
    if ( peer == NULL ) {
        value_error( "NetcodePeer", "there is no memory for a NetcodePeer" );
        return NULL;
    }
    peer->owner = godot.classdb_construct_object2( &parent_name );
    multiplayer_init( &peer->multiplayer );
    peer->multiplayer.log = peer_log;
    godot.object_set_instance( peer->owner, &class_name, peer );
    return peer->owner;
}

static void peer_destroy( void * data, GDExtensionClassInstancePtr instance )
{
    struct peer_t * peer = (struct peer_t *) instance;
    (void) data;
    if ( peer == NULL )
        return;
    multiplayer_destroy( &peer->multiplayer );
    free( peer );
}

static void register_method( const struct method_t * method )
{
    GDExtensionClassMethodInfo info;
    GDExtensionPropertyInfo returned;
    value_string_t name = value_name( method->name ), none = value_name( "" ), hint = { NULL };
    godot.string_new_with_utf8_chars( &hint, "" );
    memset( &info, 0, sizeof( info ) );
    memset( &returned, 0, sizeof( returned ) );
    returned.type = GDEXTENSION_VARIANT_TYPE_NIL;
    returned.name = returned.class_name = &none;
    returned.hint_string = &hint;
    returned.usage = 6 | 1 << 17; /* the usual, and: nil stands for any type */
    info.name = &name;
    info.method_userdata = (void *) (uintptr_t) method;
    info.call_func = peer_method;
    info.method_flags = GDEXTENSION_METHOD_FLAG_NORMAL | GDEXTENSION_METHOD_FLAG_VARARG;
    info.has_return_value = 1;
    info.return_value_info = &returned;
    godot.classdb_register_extension_class_method( godot_library, &class_name, &info );
    godot.destroy_string( &hint );
    godot.destroy_string_name( &none );
    godot.destroy_string_name( &name );
}

static void library_open( void * data, GDExtensionInitializationLevel level )
{
    GDExtensionClassCreationInfo4 info;
    (void) data;
    if ( level != GDEXTENSION_INITIALIZATION_SCENE )
        return;
    if ( netcode_init() != NETCODE_OK )
        value_error( "netcode_init", "libsodium or the system's sockets can not be used" );
    class_name = value_name( "NetcodePeer" );
    parent_name = value_name( "MultiplayerPeerExtension" );
    for ( int i = 0; i < VIRTUALS; i++ )
        virtuals[i].string_name = value_name( virtuals[i].name );
    memset( &info, 0, sizeof( info ) );
    info.is_exposed = 1;
    info.create_instance_func = peer_create;
    info.free_instance_func = peer_destroy;
    info.get_virtual_call_data_func = peer_get_virtual;
    info.call_virtual_with_data_func = peer_call_virtual;
    godot.classdb_register_extension_class4( godot_library, &class_name, &parent_name, &info );
    for ( size_t i = 0; i < sizeof( methods ) / sizeof( methods[0] ); i++ )
        register_method( &methods[i] );
}

static void library_close( void * data, GDExtensionInitializationLevel level )
{
    (void) data;
    if ( level != GDEXTENSION_INITIALIZATION_SCENE )
        return;
    godot.classdb_unregister_extension_class( godot_library, &class_name );
    for ( int i = 0; i < VIRTUALS; i++ )
        godot.destroy_string_name( &virtuals[i].string_name );
    godot.destroy_string_name( &parent_name );
    godot.destroy_string_name( &class_name );
    netcode_term();
}

ENTRY GDExtensionBool netcode_godot4_init( GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr library,
                                           GDExtensionInitialization * initialization );

ENTRY GDExtensionBool netcode_godot4_init( GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr library,
                                           GDExtensionInitialization * initialization )
{
    if ( !value_load( get ) )
        return 0; /* an engine before 4.4 */
    godot_library = library;
    initialization->minimum_initialization_level = GDEXTENSION_INITIALIZATION_SCENE;
    initialization->userdata = NULL;
    initialization->initialize = library_open;
    initialization->deinitialize = library_close;
    return 1;
}
