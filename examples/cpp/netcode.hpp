/*  netcode.h in C++11 and later: objects that close themselves, events and messages that call your visitor, channels that
    are types. Copy this file beside netcode.h; it only calls what stands there.

        #define NETCODE_IMPLEMENTATION // in one of your files
        #include "netcode.hpp"

        struct inputs : netcode::channel<0, netcode::delivery::unreliable_sequenced> {};
        struct chat : netcode::channel<1, netcode::delivery::reliable_ordered> {};
        typedef netcode::server<inputs, chat> game_server;

        struct game : netcode::visitor {
            void connected( game_server::session player ) { player.send<chat>( "welcome" ); }
            void disconnected( game_server::session player, int reason ) { ... }
            void message( game_server::session player, inputs, netcode::bytes data ) { ... }
            void message( game_server::session player, chat, netcode::bytes data ) { ... }
        };

        game_server server;
        netcode::server_config config;
        config.protocol_id = ...; config.set_private_key( key );
        if ( netcode::status failed = server.start( "203.0.113.7:40000", config, 64, time ) )
            std::puts( failed.text() );
        for ( ;; ) {                       // every tick
            server.receive( time, game );  // calls the visitor
            server.flush( time );          // sends what was queued
            server.wait( seconds_to_the_next_tick );
        }

    Nothing here throws but the standard library's strings and vectors, and neither exceptions nor RTTI are needed. What
    your visitor throws passes through `receive`; what was not visited by then is visited by the next call, except the
    last messages of a client that has disconnected.
    Memory: all of it is taken by start (server) and open (client), nothing for each packet or message.
    Threads: as in netcode.h: one object on one thread at a time; different objects, and make_token, on any.

    Without channels, netcode::server<> and netcode::client<> send and receive packets of up to 1200 bytes. */

#ifndef NETCODE_HPP
#define NETCODE_HPP

#ifndef NETCODE_MESSAGES
#define NETCODE_MESSAGES
#endif
#include "netcode.h"

#ifndef NETCODE_MESSAGES_CHANNELS
#error \
    "netcode.h was included without NETCODE_MESSAGES before netcode.hpp: include netcode.hpp first, or define NETCODE_MESSAGES"
#endif

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 201703L
#include <string_view>
#endif
#if __cplusplus >= 202002L && defined( __has_include )
#if __has_include( <span> )
#include <span>
#define NETCODE_HPP_SPAN
#endif
#endif

namespace netcode
{

typedef std::array<uint8_t, NETCODE_KEY_BYTES> private_key;
typedef std::array<uint8_t, NETCODE_CONNECT_TOKEN_BYTES> connect_token;
typedef std::array<uint8_t, NETCODE_USER_DATA_BYTES> user_data;

/* ---- bytes: a view of memory that the caller owns ---- */

class bytes
{
  public:
    bytes() : data_( nullptr ), size_( 0 )
    {
    }
    bytes( const void * data, std::size_t size ) : data_( static_cast<const uint8_t *>( data ) ), size_( size )
    {
    }
    bytes( std::nullptr_t ) = delete;
    bytes( int ) = delete; /* a number is no view: 0 would be a null pointer */
    /* A text, without its closing zero. */
    bytes( const char * text ) : bytes( text, std::strlen( text ) )
    {
    }
    bytes( const std::string & text ) : bytes( text.data(), text.size() )
    {
    }
    template <class A> bytes( const std::vector<uint8_t, A> & data ) : bytes( data.data(), data.size() )
    {
    }
    template <std::size_t N> bytes( const std::array<uint8_t, N> & data ) : bytes( data.data(), N )
    {
    }
    template <std::size_t N> bytes( const uint8_t ( &data )[N] ) : bytes( data, N )
    {
    }
#if __cplusplus >= 201703L
    bytes( std::string_view text ) : bytes( text.data(), text.size() )
    {
    }
#endif
#ifdef NETCODE_HPP_SPAN
    template <class T, std::size_t N>
    requires( std::is_same_v<std::remove_cv_t<T>, uint8_t> || std::is_same_v<std::remove_cv_t<T>, std::byte> )
        bytes( std::span<T, N> data )
        : bytes( data.data(), data.size() )
    {
    }
#endif

    const uint8_t * data() const
    {
        return data_;
    }
    std::size_t size() const
    {
        return size_;
    }
    bool empty() const
    {
        return size_ == 0;
    }
    const uint8_t * begin() const
    {
        return data_;
    }
    const uint8_t * end() const
    {
        return size_ ? data_ + size_ : data_;
    }
    /* `index` must be below size(). */
    uint8_t operator[]( std::size_t index ) const
    {
        return data_[index];
    }
    std::string text() const
    {
        return std::string( reinterpret_cast<const char *>( data_ ), size_ );
    }

  private:
    const uint8_t * data_;
    std::size_t size_;
};

/* ---- channels ---- */

/* How a channel's messages arrive: see NETCODE_MESSAGE_... and the manual of netcode.h. */
enum class delivery {
    unreliable = NETCODE_MESSAGE_UNRELIABLE,
    unreliable_sequenced = NETCODE_MESSAGE_UNRELIABLE_SEQUENCED,
    reliable = NETCODE_MESSAGE_RELIABLE,
    reliable_ordered = NETCODE_MESSAGE_RELIABLE_ORDERED,
    reliable_sequenced = NETCODE_MESSAGE_RELIABLE_SEQUENCED
};

/*  Derive from it: the type is the channel's name in `send` and in the visitor. Index: 0 to 31, the same on both sides, each
    once. Priority: 0 is sent before 1 and so on. Weight: the share among channels of one priority. The other side chooses
    how it sends: what arrives is visited by its channel, however it was sent. */
template <int Index, delivery Delivery, int Priority = 0, int Weight = 1> struct channel {
    static_assert( Index >= 0 && Index < NETCODE_MESSAGES_CHANNELS, "a channel's index is 0 to 31" );
    static_assert( Priority >= 0 && Priority <= 255 && Weight >= 1 && Weight <= 255,
                   "a channel's priority is 0 to 255, its weight 1 to 255" );
    enum { index = Index, kind = static_cast<int>( Delivery ), priority = Priority, weight = Weight };
};

enum class sent {
    ok = NETCODE_OK,
    full = NETCODE_MESSAGES_FULL,           /* no space in the send buffer: try again in a later tick */
    too_large = NETCODE_MESSAGES_TOO_LARGE, /* for max_message_bytes, the peer's, or a packet */
    bad_argument = NETCODE_MESSAGES_BAD_ARGUMENT,
    broken = NETCODE_MESSAGES_BROKEN,         /* see NETCODE_MESSAGES_EVENT_BROKEN: disconnect */
    no_channel = NETCODE_MESSAGES_NO_CHANNEL, /* the other side has fewer */
    not_connected = -5
};

/* What `send` may say of one message beside its data. */
struct send_options {
    double ttl_seconds; /* as in netcode_message_t */
    uint64_t receipt;   /* yours; if not 0, the visitor's `receipt` gets ACKED or LOST with it */

    send_options( double ttl = 0.0, uint64_t receipt_number = 0 ) : ttl_seconds( ttl ), receipt( receipt_number )
    {
    }
};

/* ---- what can fail, and the library itself ---- */

/* True if it failed. The text is a sentence in static storage. */
class status
{
  public:
    status() : text_( nullptr )
    {
    }
    explicit status( const char * text ) : text_( text )
    {
    }
    explicit operator bool() const
    {
        return text_ != nullptr;
    }
    const char * text() const
    {
        return text_ ? text_ : "no error";
    }

  private:
    const char * text_;
};

/* Holds one netcode_init. Servers and clients have one of their own, so an application needs none. */
class library
{
  public:
    library()
    {
        lock here;
        ready_ = netcode_init() == NETCODE_OK;
    }
    ~library()
    {
        lock here;
        if ( ready_ )
            netcode_term();
    }
    library( const library & ) = delete;
    library & operator=( const library & ) = delete;
    explicit operator bool() const
    {
        return ready_;
    }

  private:
    /* netcode_init counts without one. Held for as long as libsodium takes to begin, once. */
    struct lock {
        lock()
        {
            while ( flag().test_and_set( std::memory_order_acquire ) ) {
            }
        }
        ~lock()
        {
            flag().clear( std::memory_order_release );
        }
        static std::atomic_flag & flag()
        {
            static std::atomic_flag is_held = ATOMIC_FLAG_INIT;
            return is_held;
        }
    };

    bool ready_;
};

inline std::string to_string( const netcode_address_t & address )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    return netcode_address_to_string( &address, text );
}

/* ---- connect tokens: for backends, and for hosts of a game among friends ---- */

struct token_config {
    uint64_t protocol_id = 0;
    uint64_t client_id = 0;
    int expire_seconds = 30; /* from now; negative: never expires */
    int timeout_seconds = 5; /* 0 or negative: no timeout */
    private_key key = private_key();
    user_data data = user_data();
    std::vector<std::string> addresses;          /* where the client sends to: 1 to 32, each with a port */
    std::vector<std::string> internal_addresses; /* what the servers take for their own, if they differ */
};

/* False: a number of addresses outside 1 to 32 or not the same in both lists, or one that can not be read. */
inline bool make_token( const token_config & config, connect_token & token )
{
    const std::vector<std::string> & internal =
        config.internal_addresses.empty() ? config.addresses : config.internal_addresses;
    const char * to[NETCODE_MAX_SERVERS_PER_CONNECT];
    const char * own[NETCODE_MAX_SERVERS_PER_CONNECT];
    std::size_t count = config.addresses.size();
    if ( count == 0 || count > NETCODE_MAX_SERVERS_PER_CONNECT || internal.size() != count )
        return false;
    for ( std::size_t i = 0; i < count; i++ ) {
        to[i] = config.addresses[i].c_str();
        own[i] = internal[i].c_str();
    }
    library ready;
    user_data data = config.data; /* the C function does not change it, but asks for a pointer that could */
    return ready && netcode_generate_connect_token( static_cast<int>( count ), to, own, config.expire_seconds,
                                                    config.timeout_seconds, config.client_id, config.protocol_id,
                                                    config.key.data(), data.data(), token.data() ) == NETCODE_OK;
}

/* ---- configs: the C ones with their defaults; every field of those can be set ---- */

struct server_config : netcode_server_config_t {
    server_config() : netcode_server_config_t()
    {
        netcode_default_server_config( this );
        events = 1;
    }
    void set_private_key( const netcode::private_key & key )
    {
        std::memcpy( private_key, key.data(), key.size() );
    }
};

struct client_config : netcode_client_config_t {
    client_config() : netcode_client_config_t()
    {
        netcode_default_client_config( this );
        events = 1;
    }
};

/* Its channels, priorities and weights are set from the channel types. */
struct messages_config : netcode_messages_config_t {
    messages_config() : netcode_messages_config_t()
    {
        netcode_default_messages_config( this );
    }
};

/* ---- the simulator ---- */

/* Must outlive the servers and clients whose config.network_simulator it is. */
class simulator
{
  public:
    simulator() : simulator_( netcode_network_simulator_create( nullptr, nullptr, nullptr ) )
    {
    }
    /* Null where there was no memory. */
    netcode_network_simulator_t * get() const
    {
        return simulator_.get();
    }
    netcode_network_simulator_t * operator->() const
    {
        return simulator_.get();
    }
    void update( double time )
    {
        if ( simulator_ )
            netcode_network_simulator_update( simulator_.get(), time );
    }

  private:
    struct destroy {
        void operator()( netcode_network_simulator_t * simulator ) const
        {
            netcode_network_simulator_destroy( simulator );
        }
    };
    std::unique_ptr<netcode_network_simulator_t, destroy> simulator_;
};

/* ---- visitors ---- */

/*  Derive from it and define the functions that you want: for a server with a session, for a client with the client. Every
    channel needs its `message`, or the program does not compile. A function may send, disconnect, stop and close, but must
    not destroy, move, start or open the object that calls it; its `receive` does nothing meanwhile.
        connected( session )    connected( client & )
        disconnected( session, int reason )    disconnected( client &, int state )
            NETCODE_SERVER_CLIENT_DISCONNECT_REASON_..., NETCODE_CLIENT_STATE_...; after its last messages,
            unless another client has the slot by then
        moved( session )    with config.roaming: its address changed
        message( session, Channel, bytes )    message( client &, Channel, bytes )    valid during the call
        packet( session, bytes, uint64_t sequence )    packet( client &, bytes, uint64_t sequence )    without channels
        receipt( session, const netcode_messages_event_t & )    receipt( client &, ... ) */
struct visitor {
    template <class Peer> void connected( Peer && )
    {
    }
    template <class Peer> void disconnected( Peer &&, int )
    {
    }
    template <class Peer> void moved( Peer && )
    {
    }
    template <class Peer> void receipt( Peer &&, const netcode_messages_event_t & )
    {
    }
};

namespace detail
{

/* A list of channel types: its part of a config, and the visitor's function for a message. */
template <class... List> struct channel_list {
    enum : unsigned { count = 0, used = 0 };
    static void configure( netcode_messages_config_t & )
    {
    }
    template <class Peer, class Visitor> static void visit( Peer &, const netcode_message_t &, Visitor & )
    {
    }
};

template <class First, class... Rest> struct channel_list<First, Rest...> {
    typedef channel_list<Rest...> rest;
    enum : unsigned { bit = 1u << First::index, end = static_cast<unsigned>( First::index ) + 1u };
    static_assert( ( static_cast<unsigned>( rest::used ) & static_cast<unsigned>( bit ) ) == 0,
                   "two channels have the same index" );
    enum : unsigned {
        count = static_cast<unsigned>( end ) > static_cast<unsigned>( rest::count )
                    ? static_cast<unsigned>( end )
                    : static_cast<unsigned>( rest::count ),
        used = static_cast<unsigned>( rest::used ) | static_cast<unsigned>( bit )
    };

    static void configure( netcode_messages_config_t & config )
    {
        config.priorities[First::index] = static_cast<uint8_t>( First::priority );
        config.weights[First::index] = static_cast<uint8_t>( First::weight );
        rest::configure( config );
        config.channels = static_cast<int>( count );
    }

    template <class Peer, class Visitor>
    static void visit( Peer & peer, const netcode_message_t & message, Visitor & visitor )
    {
        if ( message.channel == First::index )
            visitor.message( peer, First(), bytes( message.data, static_cast<std::size_t>( message.bytes ) ) );
        else
            rest::visit( peer, message, visitor );
    }
};

template <class C, class... List> struct is_listed : std::false_type {
};
template <class C, class First, class... Rest>
struct is_listed<C, First, Rest...>
    : std::conditional<std::is_same<C, First>::value, std::true_type, is_listed<C, Rest...>>::type {
};

template <class... List> netcode_messages_t * create_messages( messages_config config, double time )
{
    channel_list<List...>::configure( config );
    return netcode_messages_create( &config, time );
}

template <class C> sent send( netcode_messages_t * messages, bytes data, const send_options & options )
{
    if ( data.size() > INT_MAX )
        return sent::too_large;
    netcode_message_t message = netcode_message_t();
    message.channel = C::index;
    message.kind = C::kind;
    message.data = data.data();
    message.bytes = static_cast<int>( data.size() );
    message.ttl_seconds = options.ttl_seconds;
    message.receipt = options.receipt;
    return static_cast<sent>( netcode_messages_send_message( messages, &message ) );
}

inline sent packet_size( bytes data )
{
    if ( data.empty() )
        return sent::bad_argument;
    return data.size() > NETCODE_MAX_PACKET_SIZE ? sent::too_large : sent::ok;
}

/* Frees a received packet, whatever its visitor does. */
template <class Owner, void ( *Free )( Owner *, void * )> struct held_packet {
    Owner * owner;
    void * data;
    held_packet( Owner * from, void * packet ) : owner( from ), data( packet )
    {
    }
    ~held_packet()
    {
        Free( owner, data );
    }
    held_packet( const held_packet & ) = delete;
    held_packet & operator=( const held_packet & ) = delete;
};

/* Ends a visit, whatever the visitor does: what it has stopped or closed is destroyed now. */
template <class Owner> struct visit_guard {
    Owner & owner;
    explicit visit_guard( Owner & visited ) : owner( visited )
    {
        owner.core_->is_visiting = true;
    }
    ~visit_guard()
    {
        owner.core_->is_visiting = false;
        if ( owner.core_->is_ending )
            owner.core_.reset();
    }
    visit_guard( const visit_guard & ) = delete;
    visit_guard & operator=( const visit_guard & ) = delete;
};

} // namespace detail

/* ---- the server ---- */

template <class... Channels> class server
{
    struct slot;
    struct core;
    typedef detail::channel_list<Channels...> list;
    typedef std::integral_constant<bool, ( sizeof...( Channels ) > 0 )> has_messages;

  public:
    /*  One client's time in one slot: a small value to keep and compare. After its client has disconnected it does nothing,
        whoever has the slot. It must not be used once its server is stopped or destroyed; it may while that is moved. */
    class session
    {
      public:
        session() : core_( nullptr ), index_( -1 ), number_( 0 ), client_id_( 0 )
        {
        }
        bool connected() const
        {
            return number_ != 0 && netcode_server_client_session( core_->native, index_ ) == number_;
        }
        /* Never repeats in one server; 0: this is no client's. */
        uint64_t number() const
        {
            return number_;
        }
        /* The slot: below max_clients(). */
        int index() const
        {
            return index_;
        }
        uint64_t client_id() const
        {
            return client_id_;
        }
        /* NETCODE_ADDRESS_NONE if it has disconnected. */
        netcode_address_t address() const
        {
            return connected() ? *netcode_server_client_address( core_->native, index_ ) : netcode_address_t();
        }
        /* The 256 bytes of its token; empty if it has disconnected. Valid until it does. */
        bytes user_data() const
        {
            return connected()
                       ? bytes( netcode_server_client_user_data( core_->native, index_ ), NETCODE_USER_DATA_BYTES )
                       : bytes();
        }
        /* Queued for the server's flush. */
        template <class Channel> sent send( bytes data, const send_options & options = send_options() ) const
        {
            static_assert( detail::is_listed<Channel, Channels...>::value, "the server has no such channel" );
            return connected() && core_->at( index_ ).number == number_
                       ? detail::send<Channel>( core_->at( index_ ).messages, data, options )
                       : sent::not_connected;
        }
        /* 1 to 1200 bytes. With channels the other side would read it as messages: only without. */
        sent send_packet( bytes data ) const
        {
            static_assert( !has_messages::value, "send_packet is for servers without channels" );
            sent size = detail::packet_size( data );
            if ( size != sent::ok || !connected() )
                return size != sent::ok ? size : sent::not_connected;
            netcode_server_send_packet_to_session( core_->native, index_, number_, data.data(),
                                                   static_cast<int>( data.size() ) );
            return sent::ok;
        }
        /* It is heard no more; its `disconnected` is visited by this receive or the next. */
        void disconnect() const
        {
            if ( connected() )
                netcode_server_disconnect_client( core_->native, index_ );
        }
        /* All zero if it has disconnected. */
        netcode_server_client_stats_t stats() const
        {
            netcode_server_client_stats_t stats = netcode_server_client_stats_t();
            if ( connected() )
                netcode_server_client_stats( core_->native, index_, &stats );
            return stats;
        }
        /* For streams and statistics; null if it has disconnected, and without channels. */
        netcode_messages_t * messages() const
        {
            return connected() && core_->at( index_ ).number == number_ ? core_->at( index_ ).messages : nullptr;
        }
        friend bool operator==( const session & a, const session & b )
        {
            return a.core_ == b.core_ && a.number_ == b.number_;
        }
        friend bool operator!=( const session & a, const session & b )
        {
            return !( a == b );
        }

      private:
        friend class server;
        session( core * of, int index, uint64_t number, uint64_t client_id )
            : core_( of ), index_( index ), number_( number ), client_id_( client_id )
        {
        }
        core * core_;
        int index_;
        uint64_t number_, client_id_;
    };

    /*  Opens the socket and `max_clients` slots, 1 to 65535; a server that has started stops first. `address` as in
        netcode_server_create; `address2`, if not null, is of the other family. `config` is copied. */
    status start( const char * address, const server_config & config, int max_clients, double time,
                  const messages_config & messages = messages_config(), const char * address2 = nullptr )
    {
        if ( core_ && core_->is_visiting )
            return status( "a visitor can not start the server that calls it" );
        core_.reset();
        std::unique_ptr<core> made( new ( std::nothrow ) core );
        if ( !made || !made->ready )
            return status( made ? "netcode_init failed" : "there is no memory for the server" );
        made->native = netcode_server_create_dual( address, address2, &config, time );
        if ( !made->native )
            return status( netcode_server_create_error_text( netcode_server_create_error() ) );
        if ( max_clients < 1 || max_clients > NETCODE_MAX_SLOTS )
            return status( "a server has 1 to 65535 slots" );
        netcode_server_start( made->native, max_clients );
        made->views.reset( new ( std::nothrow ) slot[static_cast<std::size_t>( max_clients )] );
        if ( !made->views || !netcode_server_running( made->native ) )
            return status( "there is no memory for the server's slots" );
        for ( made->count = 0; made->count < max_clients; made->count++ ) {
            if ( !has_messages::value )
                continue;
            made->at( made->count ).messages = detail::create_messages<Channels...>( messages, time );
            if ( !made->at( made->count ).messages )
                return status( "the messages' config is invalid, or there is no memory for them" );
        }
        core_ = std::move( made );
        return status();
    }

    /*  Disconnects all clients, closes the socket and gives back all memory; nothing is visited any more. From a visitor:
        once it has returned. */
    void stop()
    {
        if ( core_ && core_->is_visiting ) {
            netcode_server_stop( core_->native );
            core_->is_ending = true;
        } else {
            core_.reset();
        }
    }

    bool running() const
    {
        return core_ && !core_->is_ending;
    }

    /* The begin of a tick: receives, and calls the visitor. */
    template <class Visitor> void receive( double time, Visitor && visitor )
    {
        if ( !running() || core_->is_visiting )
            return;
        detail::visit_guard<server> here( *this );
        netcode_server_update( core_->native, time );
        if ( has_messages::value )
            for ( int i = 0; i < core_->count && !core_->is_ending; i++ )
                take_messages( i, time, visitor );
        visit_events( visitor );
        if ( has_messages::value )
            for ( int i = 0; i < core_->count && !core_->is_ending; i++ )
                visit_messages( i, visitor );
    }

    /* The end of a tick: sends the queued messages, and what config.batch_sends holds back. */
    void flush( double time )
    {
        if ( !running() )
            return;
        if ( has_messages::value )
            for ( int i = 0; i < core_->count; i++ )
                netcode_messages_push_to_server( core_->at( i ).messages, core_->native, i, time );
        netcode_server_flush( core_->native );
    }

    /* Sleeps until a datagram waits, something is due, or `seconds` have passed: see netcode_server_wait. */
    void wait( double seconds )
    {
        if ( running() )
            netcode_server_wait( core_->native, seconds );
    }

    int max_clients() const
    {
        return running() ? core_->count : 0;
    }
    int clients() const
    {
        return running() ? netcode_server_num_connected_clients( core_->native ) : 0;
    }
    uint16_t port() const
    {
        return running() ? netcode_server_get_port( core_->native ) : static_cast<uint16_t>( 0 );
    }

    /* The session in a slot; one that is not connected where there is none. */
    session at( int index ) const
    {
        uint64_t number = running() && index >= 0 ? netcode_server_client_session( core_->native, index ) : 0;
        return number ? session( core_.get(), index, number, netcode_server_client_id( core_->native, index ) )
                      : session();
    }

    /* Calls `function( session )` for each client that is connected. */
    template <class Function> void for_each( Function && function ) const
    {
        for ( int i = 0; i < max_clients(); i++ ) {
            session client = at( i );
            if ( client.connected() )
                function( client );
        }
    }

    /* To all but one; returns how many accepted it: those whose buffer is full did not. */
    template <class Channel> int broadcast( bytes data, const session & except = session() ) const
    {
        int accepted = 0;
        for_each( [&]( const session & client ) {
            accepted += client != except && client.template send<Channel>( data ) == sent::ok;
        } );
        return accepted;
    }

    netcode_server_stats_t stats() const
    {
        netcode_server_stats_t stats = netcode_server_stats_t();
        if ( running() )
            netcode_server_stats( core_->native, &stats );
        return stats;
    }

    /* For everything else in netcode.h; null if it is not running. Do not take its events or payloads. */
    netcode_server_t * native() const
    {
        return running() ? core_->native : nullptr;
    }

  private:
    friend struct detail::visit_guard<server>;

    /* A session as an event named it. Number 0: none. */
    struct ended_session {
        uint64_t number = 0, client_id = 0;
        int reason = 0;
    };

    /* `number`: the session whose messages these are, or were. `ended`: its `disconnected` follows its last messages. */
    struct slot {
        netcode_messages_t * messages = nullptr;
        uint64_t number = 0, client_id = 0;
        ended_session ended;
    };

    struct core {
        library ready; /* destroyed last */
        netcode_server_t * native = nullptr;
        std::unique_ptr<slot[]> views;
        int count = 0;
        netcode_event_t event; /* the one that is being visited */
        bool has_event = false, is_visiting = false, is_ending = false;

        core() = default;
        core( const core & ) = delete;
        core & operator=( const core & ) = delete;
        ~core()
        {
            netcode_server_destroy( native );
            for ( int i = 0; views && i < count; i++ )
                netcode_messages_destroy( at( i ).messages );
        }
        slot & at( int index )
        {
            return views[static_cast<std::size_t>( index )];
        }
    };

    std::unique_ptr<core> core_;

    session last_of( int index ) const
    {
        const slot & of = core_->at( index );
        return session( core_.get(), index, of.number, of.client_id );
    }

    /* Receipts first: where the session has changed, they are of the old one, whose messages were just reset. */
    template <class Visitor> void take_messages( int index, double time, Visitor & visitor )
    {
        slot & of = core_->at( index );
        netcode_messages_event_t event;
        netcode_messages_pull_from_server( of.messages, core_->native, index, time );
        while ( !core_->is_ending && netcode_messages_event( of.messages, &event ) ) {
            session client = last_of( index );
            visitor.receipt( client, event );
        }
        uint64_t number = netcode_server_client_session( core_->native, index );
        if ( number != 0 ) {
            of.number = number;
            of.client_id = netcode_server_client_id( core_->native, index );
        }
    }

    /* An event whose `disconnected` before it throws is kept: the next receive begins with it. */
    template <class Visitor> void visit_events( Visitor & visitor )
    {
        netcode_event_t & event = core_->event;
        while ( core_->has_event || netcode_server_next_event( core_->native, &event ) ) {
            session client( core_.get(), event.client_index, event.session, event.client_id );
            ended_session & ended = core_->at( event.client_index ).ended;
            if ( event.type == NETCODE_EVENT_CONNECTED || event.type == NETCODE_EVENT_DISCONNECTED ) {
                core_->has_event = true;
                visit_end( event.client_index, visitor );
                core_->has_event = false;
            }
            if ( core_->is_ending )
                return;
            if ( event.type == NETCODE_EVENT_CONNECTED ) {
                visitor.connected( client );
            } else if ( event.type == NETCODE_EVENT_DISCONNECTED ) {
                ended.number = event.session;
                ended.client_id = event.client_id;
                ended.reason = event.reason;
                if ( !has_messages::value )
                    visit_end( event.client_index, visitor );
            } else if ( event.type == NETCODE_EVENT_MOVED ) {
                visitor.moved( client );
            } else if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                detail::held_packet<netcode_server_t, netcode_server_free_packet> packet( core_->native, event.data );
                visit_packet( client, event, visitor, has_messages() );
            }
        }
    }

    template <class Visitor> void visit_end( int index, Visitor & visitor )
    {
        ended_session ended = core_->at( index ).ended;
        core_->at( index ).ended = ended_session();
        if ( ended.number == 0 || core_->is_ending )
            return;
        session client( core_.get(), index, ended.number, ended.client_id );
        visitor.disconnected( client, ended.reason );
    }

    /*  A `disconnected` that still waits here is of the slot's last session: no client has connected since, and the messages
        are its. A client that this side has disconnected is heard no more. */
    template <class Visitor> void visit_messages( int index, Visitor & visitor )
    {
        slot & of = core_->at( index );
        bool has_ended = of.ended.number != 0;
        if ( has_ended ) {
            of.number = of.ended.number;
            of.client_id = of.ended.client_id;
        }
        session client = last_of( index );
        netcode_message_t message;
        bool is_heard = has_ended && of.ended.reason != NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT;
        while ( !core_->is_ending && ( is_heard || client.connected() ) &&
                netcode_messages_receive( of.messages, &message ) )
            list::visit( client, message, visitor );
        visit_end( index, visitor );
    }

    template <class Visitor>
    static void visit_packet( session & client, const netcode_event_t & event, Visitor & visitor, std::false_type )
    {
        visitor.packet( client, bytes( event.data, static_cast<std::size_t>( event.bytes ) ), event.sequence );
    }
    template <class Visitor> static void visit_packet( session &, const netcode_event_t &, Visitor &, std::true_type )
    {
    }
};

/* ---- the client ---- */

template <class... Channels> class client
{
    struct core;
    typedef detail::channel_list<Channels...> list;
    typedef std::integral_constant<bool, ( sizeof...( Channels ) > 0 )> has_messages;

  public:
    /*  Opens the socket: `address` as in netcode_client_create, "0.0.0.0" or "::" for any; `address2`, if not null, is of
        the other family. A client that is open closes first. `config` is copied. */
    status open( const char * address, const client_config & config, double time,
                 const messages_config & messages = messages_config(), const char * address2 = nullptr )
    {
        if ( core_ && core_->is_visiting )
            return status( "a visitor can not open the client that calls it" );
        core_.reset();
        std::unique_ptr<core> made( new ( std::nothrow ) core );
        if ( !made || !made->ready )
            return status( made ? "netcode_init failed" : "there is no memory for the client" );
        made->native = netcode_client_create_dual( address, address2, &config, time );
        if ( !made->native )
            return status( netcode_client_create_error_text( netcode_client_create_error() ) );
        if ( has_messages::value ) {
            made->messages = detail::create_messages<Channels...>( messages, time );
            if ( !made->messages )
                return status( "the messages' config is invalid, or there is no memory for them" );
        }
        core_ = std::move( made );
        return status();
    }

    /*  Disconnects, closes the socket and gives back all memory; nothing is visited any more. From a visitor: once it has
        returned. */
    void close()
    {
        if ( core_ && core_->is_visiting ) {
            netcode_client_disconnect( core_->native );
            core_->is_ending = true;
        } else {
            core_.reset();
        }
    }

    bool is_open() const
    {
        return core_ && !core_->is_ending;
    }

    /* Starts to connect: see netcode_client_connect. `connected` or `disconnected` is visited when it is decided. */
    void connect( const connect_token & token )
    {
        if ( is_open() )
            netcode_client_connect( core_->native, token.data() );
    }

    /* Its `disconnected` is visited by the next receive. */
    void disconnect()
    {
        if ( is_open() )
            netcode_client_disconnect( core_->native );
    }

    /* The begin of a tick: receives, and calls the visitor. */
    template <class Visitor> void receive( double time, Visitor && visitor )
    {
        if ( !is_open() || core_->is_visiting )
            return;
        detail::visit_guard<client> here( *this );
        core_->time = time;
        netcode_client_update( core_->native, time );
        if ( has_messages::value )
            take_messages( time, visitor );
        visit_events( visitor );
        if ( has_messages::value )
            visit_messages( visitor );
        visit_end( visitor );
    }

    /*  The end of a tick: sends the queued messages, and what config.batch_sends holds back. */
    void flush( double time )
    {
        if ( !is_open() )
            return;
        if ( has_messages::value )
            netcode_messages_push_to_client( core_->messages, core_->native, time );
        netcode_client_flush( core_->native );
    }

    /* Sleeps until a datagram waits, something is due, or `seconds` have passed: see netcode_client_wait. */
    void wait( double seconds )
    {
        if ( is_open() )
            netcode_client_wait( core_->native, seconds );
    }

    /*  Queued for the client's flush. Before the first connection, and from the visit of `disconnected` on, it is for the next
        one; what is queued between an end and that visit is lost. */
    template <class Channel> sent send( bytes data, const send_options & options = send_options() )
    {
        static_assert( detail::is_listed<Channel, Channels...>::value, "the client has no such channel" );
        return is_open() ? detail::send<Channel>( core_->messages, data, options ) : sent::not_connected;
    }
    /* 1 to 1200 bytes. With channels the other side would read it as messages: only without. */
    sent send_packet( bytes data )
    {
        static_assert( !has_messages::value, "send_packet is for clients without channels" );
        sent size = detail::packet_size( data );
        if ( size != sent::ok || !connected() )
            return size != sent::ok ? size : sent::not_connected;
        netcode_client_send_packet( core_->native, data.data(), static_cast<int>( data.size() ) );
        return sent::ok;
    }

    /* NETCODE_CLIENT_STATE_... */
    int state() const
    {
        return is_open() ? netcode_client_state( core_->native ) : NETCODE_CLIENT_STATE_DISCONNECTED;
    }
    bool connected() const
    {
        return state() == NETCODE_CLIENT_STATE_CONNECTED;
    }
    /* The slot on the server: see netcode_client_index. */
    int index() const
    {
        return is_open() ? netcode_client_index( core_->native ) : 0;
    }
    uint16_t port() const
    {
        return is_open() ? netcode_client_get_port( core_->native ) : static_cast<uint16_t>( 0 );
    }
    /* See netcode_client_rebind. */
    bool rebind()
    {
        return is_open() && netcode_client_rebind( core_->native ) != 0;
    }

    netcode_client_stats_t stats() const
    {
        netcode_client_stats_t stats = netcode_client_stats_t();
        if ( is_open() )
            netcode_client_stats( core_->native, &stats );
        return stats;
    }

    /* Why can't I connect? Its `text` is a sentence for the player. */
    netcode_client_report_t report() const
    {
        netcode_client_report_t report = netcode_client_report_t();
        if ( is_open() )
            netcode_client_report( core_->native, &report );
        return report;
    }

    /* For everything else in netcode.h; null if it is not open. Do not take its events or payloads. */
    netcode_client_t * native() const
    {
        return is_open() ? core_->native : nullptr;
    }
    /* For streams and statistics; null without channels. */
    netcode_messages_t * messages() const
    {
        return is_open() ? core_->messages : nullptr;
    }

  private:
    friend struct detail::visit_guard<client>;

    struct core {
        library ready; /* destroyed last */
        netcode_client_t * native = nullptr;
        netcode_messages_t * messages = nullptr;
        netcode_event_t event; /* the one that is being visited */
        double time = 0.0;
        int ended_state = 0;
        bool has_event = false, has_ended = false, is_visiting = false, is_ending = false;

        core() = default;
        core( const core & ) = delete;
        core & operator=( const core & ) = delete;
        ~core()
        {
            netcode_client_destroy( native );
            netcode_messages_destroy( messages );
        }
    };

    std::unique_ptr<core> core_;

    template <class Visitor> void take_messages( double time, Visitor & visitor )
    {
        netcode_messages_event_t event;
        netcode_messages_pull_from_client( core_->messages, core_->native, time );
        while ( !core_->is_ending && netcode_messages_event( core_->messages, &event ) )
            visitor.receipt( *this, event );
    }

    /* An event whose `disconnected` before it throws is kept: the next receive begins with it. */
    template <class Visitor> void visit_events( Visitor & visitor )
    {
        netcode_event_t & event = core_->event;
        while ( core_->has_event || netcode_client_next_event( core_->native, &event ) ) {
            if ( event.type == NETCODE_EVENT_CONNECTED || event.type == NETCODE_EVENT_DISCONNECTED ) {
                core_->has_event = true;
                visit_end( visitor );
                core_->has_event = false;
            }
            if ( core_->is_ending )
                return;
            if ( event.type == NETCODE_EVENT_CONNECTED ) {
                visitor.connected( *this );
            } else if ( event.type == NETCODE_EVENT_DISCONNECTED ) {
                core_->has_ended = true;
                core_->ended_state = event.reason;
            } else if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                detail::held_packet<netcode_client_t, netcode_client_free_packet> packet( core_->native, event.data );
                visit_packet( event, visitor, has_messages() );
            }
        }
    }

    template <class Visitor> void visit_messages( Visitor & visitor )
    {
        netcode_message_t message;
        while ( !core_->is_ending && ( core_->has_ended || connected() ) &&
                netcode_messages_receive( core_->messages, &message ) )
            list::visit( *this, message, visitor );
    }

    template <class Visitor> void visit_end( Visitor & visitor )
    {
        bool has_ended = core_->has_ended && !core_->is_ending;
        core_->has_ended = false;
        if ( !has_ended )
            return;
        /* All that came is read: this begins anew, so that what `disconnected` sends is for the next connection. */
        if ( has_messages::value && !connected() )
            netcode_messages_pull_from_client( core_->messages, core_->native, core_->time );
        visitor.disconnected( *this, core_->ended_state );
    }

    template <class Visitor> void visit_packet( const netcode_event_t & event, Visitor & visitor, std::false_type )
    {
        visitor.packet( *this, bytes( event.data, static_cast<std::size_t>( event.bytes ) ), event.sequence );
    }
    template <class Visitor> void visit_packet( const netcode_event_t &, Visitor &, std::true_type )
    {
    }
};

} // namespace netcode

#endif
