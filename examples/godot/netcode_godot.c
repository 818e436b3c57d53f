/*  netcode.h in Godot 3: a GDNative library with the class NetcodePeer, a NetworkedMultiplayerPeer. This is the one file
    that knows the engine's entry points; godot3_values.h has its values. What scripts call is
    in methods.h and options.h, which Godot 4 shares, and everything else in multiplayer_api.h, which any engine can use.

        make build/godot/libnetcode_godot.so */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#define NETCODE_STATIC
#include "netcode.h"

#include "multiplayer_api.h"

#include "godot3_values.h"

#include "options.h"

#if defined( _WIN32 )
#define ENTRY __declspec( dllexport )
#else
#define ENTRY __attribute__( ( visibility( "default" ) ) )
#endif

static const godot_gdnative_ext_nativescript_api_struct * godot_script;
static const godot_gdnative_ext_net_api_struct * godot_net;
static godot_method_bind *object_emit_signal, *object_call_deferred, *reference_reference, *reference_unreference;

/* One NetcodePeer of a script. */
struct peer_t {
    godot_object * owner;
    godot_net_multiplayer_peer interface;
    struct multiplayer_t multiplayer;
    int flush_asked; /* the engine will call flush at the end of this frame */
};

static const char * const event_signals[] =
    { "", "peer_connected", "peer_disconnected", "connection_succeeded", "connection_failed", "server_disconnected" };

static godot_error peer_error( int result )
{
    switch ( result ) {
    case MULTIPLAYER_OK: return GODOT_OK;
    case MULTIPLAYER_BAD_ARGUMENT: return GODOT_ERR_INVALID_PARAMETER;
    case MULTIPLAYER_IN_USE: return GODOT_ERR_ALREADY_IN_USE;
    case MULTIPLAYER_INACTIVE: return GODOT_ERR_UNCONFIGURED;
    case MULTIPLAYER_NO_MEMORY: return GODOT_ERR_OUT_OF_MEMORY;
    case MULTIPLAYER_NO_SOCKET: return GODOT_ERR_CANT_CREATE;
    default: return GODOT_ERR_UNAVAILABLE;
    }
}

/* The engine's error, after its sentence went to the engine's log. */
static godot_error peer_result( const struct peer_t * peer, const char * function, int result )
{
    if ( result != MULTIPLAYER_OK )
        value_error( function, peer->multiplayer.error );
    return peer_error( result );
}

static void peer_log( void * context, int level, const char * text )
{
    (void) context;
    if ( level == NETCODE_LOG_LEVEL_ERROR ) {
        value_error( "netcode", text );
        return;
    }
    value_print( text );
}

/* Calls a method of the owner; takes the arguments. */
static void peer_call( const struct peer_t * peer, godot_method_bind * method, value_t * arguments, int count )
{
    const value_t * pointers[2] = { NULL, NULL };
    godot_variant_call_error error;
    for ( int i = 0; i < count; i++ )
        pointers[i] = &arguments[i];
    value_t result = godot->godot_method_bind_call( method, peer->owner, pointers, count, &error );
    value_destroy( &result );
    for ( int i = 0; i < count; i++ )
        value_destroy( &arguments[i] );
}

/* A signal's receiver may give up the last reference to this peer: one more keeps it until the work is done. */
static void peer_hold( const struct peer_t * peer )
{
    godot_bool held = 0;
    godot->godot_method_bind_ptrcall( reference_reference, peer->owner, NULL, &held );
}

/* The peer may be gone after this call. */
static void peer_release( const struct peer_t * peer )
{
    godot_bool last = 0;
    godot_object * owner = peer->owner;
    godot->godot_method_bind_ptrcall( reference_unreference, owner, NULL, &last );
    if ( last )
        godot->godot_object_destroy( owner );
}

static void peer_emit_events( struct peer_t * peer )
{
    struct multiplayer_event_t event;
    while ( multiplayer_next_event( &peer->multiplayer, &event ) ) {
        value_t arguments[2] = { value_text( event_signals[event.type] ), value_int( event.peer ) };
        int count = event.type == MULTIPLAYER_PEER_CONNECTED || event.type == MULTIPLAYER_PEER_DISCONNECTED ? 2 : 1;
        if ( count == 1 )
            value_destroy( &arguments[1] );
        peer_call( peer, object_emit_signal, arguments, count );
    }
}

/* ---- the engine's interface ---- */

static godot_error peer_get_packet( void * user, const uint8_t ** data, int * bytes )
{
    struct peer_t * peer = (struct peer_t *) user;
    struct multiplayer_packet_t packet;
    int result = multiplayer_get( &peer->multiplayer, &packet, data );
    *bytes = result == MULTIPLAYER_OK ? packet.bytes : 0;
    return peer_result( peer, "get_packet", result );
}

/* Packets of one frame leave together, at its end: the engine calls flush then. */
static godot_error peer_put_packet( void * user, const uint8_t * data, int bytes )
{
    struct peer_t * peer = (struct peer_t *) user;
    godot_error result = peer_result( peer, "put_packet", multiplayer_put( &peer->multiplayer, data, bytes ) );
    if ( result == GODOT_OK && !peer->flush_asked ) {
        value_t name = value_text( "flush" );
        peer->flush_asked = 1;
        peer_call( peer, object_call_deferred, &name, 1 );
    }
    return result;
}

static godot_int peer_get_available_packet_count( const void * user )
{
    return ( (const struct peer_t *) user )->multiplayer.queue_packets;
}

static godot_int peer_get_max_packet_size( const void * user )
{
    const struct multiplayer_t * m = &( (const struct peer_t *) user )->multiplayer;
    return m->max_packet_bytes > 0 ? m->max_packet_bytes : MULTIPLAYER_DEFAULT_PACKET;
}

/* The engine has 0 unreliable, 1 unreliable ordered, 2 reliable. */
static void peer_set_transfer_mode( void * user, godot_int mode )
{
    struct peer_t * peer = (struct peer_t *) user;
    if ( mode < 0 || mode > 2 )
        value_error( "set_transfer_mode", "there are only the transfer modes 0 to 2" );
    else
        peer->multiplayer.channel = mode == 0 ? CHANNEL_UNRELIABLE : mode == 1 ? CHANNEL_ORDERED : CHANNEL_RELIABLE;
}

static godot_int peer_get_transfer_mode( const void * user )
{
    int channel = ( (const struct peer_t *) user )->multiplayer.channel;
    return channel == CHANNEL_UNRELIABLE ? 0 : channel == CHANNEL_ORDERED ? 1 : 2;
}

static void peer_set_target_peer( void * user, godot_int target )
{
    ( (struct peer_t *) user )->multiplayer.target = target;
}

/* Skips packets whose sender was disconnected: nothing that shows changes, so the engine's const is cast away. */
static godot_int peer_get_packet_peer( const void * user )
{
    return multiplayer_packet_peer( &( (struct peer_t *) (uintptr_t) user )->multiplayer );
}

static godot_bool peer_is_server( const void * user )
{
    return ( (const struct peer_t *) user )->multiplayer.role == MULTIPLAYER_SERVER;
}

static void peer_poll( void * user )
{
    struct peer_t * peer = (struct peer_t *) user;
    peer_hold( peer );
    multiplayer_poll( &peer->multiplayer, netcode_time() );
    peer_emit_events( peer );
    peer_release( peer );
}

static int32_t peer_get_unique_id( const void * user )
{
    return ( (const struct peer_t *) user )->multiplayer.unique_id;
}

static void peer_set_refuse_new_connections( void * user, godot_bool refuse )
{
    ( (struct peer_t *) user )->multiplayer.refuses = refuse;
}

static godot_bool peer_is_refusing_new_connections( const void * user )
{
    return ( (const struct peer_t *) user )->multiplayer.refuses != 0;
}

static godot_int peer_get_connection_status( const void * user )
{
    return ( (const struct peer_t *) user )->multiplayer.status;
}

static const godot_net_multiplayer_peer peer_interface = { { GODOT_NET_API_MAJOR, GODOT_NET_API_MINOR },
                                                           NULL,
                                                           peer_get_packet,
                                                           peer_put_packet,
                                                           peer_get_available_packet_count,
                                                           peer_get_max_packet_size,
                                                           peer_set_transfer_mode,
                                                           peer_get_transfer_mode,
                                                           peer_set_target_peer,
                                                           peer_get_packet_peer,
                                                           peer_is_server,
                                                           peer_poll,
                                                           peer_get_unique_id,
                                                           peer_set_refuse_new_connections,
                                                           peer_is_refusing_new_connections,
                                                           peer_get_connection_status,
                                                           NULL };

#define METHODS_OF_GODOT_3
#define METHODS_CLOSE "close_connection"
#include "methods.h"

/* ---- the class, and the library's entry points ---- */

/* NULL if there is no memory: the methods say so then. */
static void * peer_create( godot_object * owner, void * data )
{
    struct peer_t * peer = (struct peer_t *) calloc( 1, sizeof( *peer ) );
    (void) data;
    if ( peer == NULL ) {
        value_error( "NetcodePeer", "there is no memory for a NetcodePeer" );
        return NULL;
    }
    peer->owner = owner;
    peer->interface = peer_interface;
    peer->interface.data = (godot_object *) peer; /* the engine's name for what it passes to each function */
    multiplayer_init( &peer->multiplayer );
    peer->multiplayer.log = peer_log;
    godot_net->godot_net_bind_multiplayer_peer( owner, &peer->interface );
    return peer;
}

static void peer_destroy( godot_object * owner, void * data, void * user )
{
    struct peer_t * peer = (struct peer_t *) user;
    (void) data;
    if ( peer == NULL )
        return;
    godot_net->godot_net_bind_multiplayer_peer( owner, NULL );
    multiplayer_destroy( &peer->multiplayer );
    free( peer );
}

static value_t peer_method( godot_object * owner, void * data, void * user, int count, value_t ** arguments )
{
    (void) owner;
    return method_call( (const struct method_t *) data, (struct peer_t *) user, count, arguments );
}

ENTRY void netcode_godot_gdnative_init( godot_gdnative_init_options * options );
ENTRY void netcode_godot_gdnative_terminate( godot_gdnative_terminate_options * options );
ENTRY void netcode_godot_nativescript_init( void * handle );

ENTRY void netcode_godot_gdnative_init( godot_gdnative_init_options * options )
{
    godot = options->api_struct;
    for ( unsigned int i = 0; i < godot->num_extensions; i++ ) {
        const godot_gdnative_api_struct * extension = godot->extensions[i];
        if ( extension->type == GDNATIVE_EXT_NATIVESCRIPT )
            godot_script = (const godot_gdnative_ext_nativescript_api_struct *) (const void *) extension;
        if ( extension->type == GDNATIVE_EXT_NET )
            godot_net = (const godot_gdnative_ext_net_api_struct *) (const void *) extension;
    }
    object_emit_signal = godot->godot_method_bind_get_method( "Object", "emit_signal" );
    object_call_deferred = godot->godot_method_bind_get_method( "Object", "call_deferred" );
    reference_reference = godot->godot_method_bind_get_method( "Reference", "reference" );
    reference_unreference = godot->godot_method_bind_get_method( "Reference", "unreference" );
    if ( netcode_init() != NETCODE_OK )
        value_error( "netcode_init", "libsodium or the system's sockets can not be used" );
}

ENTRY void netcode_godot_gdnative_terminate( godot_gdnative_terminate_options * options )
{
    (void) options;
    netcode_term();
    godot = NULL;
}

ENTRY void netcode_godot_nativescript_init( void * handle )
{
    godot_instance_create_func create = { peer_create, NULL, NULL };
    godot_instance_destroy_func destroy = { peer_destroy, NULL, NULL };
    if ( godot_script == NULL || godot_net == NULL || object_emit_signal == NULL || object_call_deferred == NULL ||
         reference_reference == NULL || reference_unreference == NULL ) {
        value_error( "NetcodePeer", "this build of the engine has no NativeScript or no networking for GDNative" );
        return;
    }
    godot_script->godot_nativescript_register_class( handle, "NetcodePeer", "MultiplayerPeerGDNative", create,
                                                     destroy );
    for ( size_t i = 0; i < sizeof( methods ) / sizeof( methods[0] ); i++ ) {
        godot_method_attributes attributes = { GODOT_METHOD_RPC_MODE_DISABLED };
        godot_instance_method method = { peer_method, (void *) (uintptr_t) &methods[i], NULL };
        godot_script->godot_nativescript_register_method( handle, "NetcodePeer", methods[i].name, attributes, method );
    }
}
