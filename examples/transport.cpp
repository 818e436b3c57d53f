/*  The transport interface of a game server in C++ (start, stop, send with a flag "reliable", update, counters), over this
    library: one class for a server, one for a client. Lift the part above "a demonstration" into your program. C++11; no
    threads, no exceptions but those of the standard library, nothing is held that its owner does not give back.

        c++ -std=c++11 examples/transport.cpp -lsodium -o transport && ./transport

    The demonstration runs both in one process: over real sockets on loopback, then over a simulated bad network, 100
    reliable inputs and 100 unreliable snapshots each way. It prints the counters, and ends with 0 if all arrived that
    had to. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/* ---- the interface ---- */

/* Who it is on the other side. */
struct Endpoint {
    netcode_address_t address;

    Endpoint() : address()
    {
    }
    explicit Endpoint( const netcode_address_t & of ) : address( of )
    {
    }
    std::string text() const
    {
        char buffer[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        return netcode_address_to_string( &address, buffer );
    }
};

inline bool operator==( const Endpoint & a, const Endpoint & b )
{
    return netcode_address_equal( &a.address, &b.address ) != 0;
}

struct Counters {
    uint64_t reliable_retries_total = 0;   /* sent again because a packet was lost */
    uint64_t reliable_timeouts_total = 0;  /* given up */
    uint64_t dropped_duplicates_total = 0; /* packets that came twice */
    uint64_t dropped_old_total = 0;        /* packets behind the window */
    uint64_t dropped_window_total = 0;     /* packets beyond the window */
};

typedef std::function<void( const Endpoint & from, std::vector<uint8_t> data )> ReceiveHandler;

class ITransport
{
  public:
    virtual ~ITransport()
    {
    }
    virtual void start( ReceiveHandler handler ) = 0;
    virtual void stop() = 0;
    virtual void send( const Endpoint & to, std::vector<uint8_t> data, bool reliable ) = 0;
    virtual void update() = 0;
    virtual void set_metrics_enabled( bool enabled ) = 0;
    virtual Counters sample_counters() const = 0;
};

/* ---- counters ---- */

struct CounterName {
    const char * name;
    uint64_t Counters::*field;
};

static const CounterName COUNTER_NAMES[] = { { "reliable_retries_total", &Counters::reliable_retries_total },
                                             { "reliable_timeouts_total", &Counters::reliable_timeouts_total },
                                             { "dropped_duplicates_total", &Counters::dropped_duplicates_total },
                                             { "dropped_old_total", &Counters::dropped_old_total },
                                             { "dropped_window_total", &Counters::dropped_window_total } };

static Counters sum( Counters a, const Counters & b )
{
    for ( const CounterName & counter : COUNTER_NAMES )
        a.*counter.field += b.*counter.field;
    return a;
}

static Counters difference( Counters a, const Counters & b )
{
    for ( const CounterName & counter : COUNTER_NAMES )
        a.*counter.field -= b.*counter.field;
    return a;
}

/*  Two layers ask the same questions. The connection drops a datagram that came twice before the messages see its packet,
    so what the network doubles is counted there. */
static Counters connection_counters( const uint64_t dropped[NETCODE_DROP_REASONS] )
{
    Counters c;
    c.dropped_duplicates_total = dropped[NETCODE_DROP_REPLAYED];
    c.dropped_old_total = dropped[NETCODE_DROP_SEQUENCE_TOO_OLD];
    c.dropped_window_total = dropped[NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD];
    return c;
}

/* ---- one connection ---- */

enum { CHANNEL = 0, MAX_WAITING = 4096 };

/*  The messages of one connection. The interface's send can not say "full", so a reliable message that finds no room waits
    here until there is some. */
class Peer
{
  public:
    Peer( int max_message_bytes, double time ) : messages_( nullptr, netcode_messages_destroy )
    {
        netcode_messages_config_t config;
        netcode_default_messages_config( &config );
        config.channels = 1;
        config.max_message_bytes = max_message_bytes;
        config.upgrade_large = 1; /* an unreliable message that fits into no packet */
        messages_.reset( netcode_messages_create( &config, time ) );
    }

    bool good() const
    {
        return messages_ != nullptr;
    }
    netcode_messages_t * messages() const
    {
        return messages_.get();
    }

    /* False: so much waits that the other side can not be reading. */
    bool wait( std::vector<uint8_t> data )
    {
        if ( waiting_.size() >= MAX_WAITING )
            return false;
        waiting_.push_back( std::move( data ) );
        return true;
    }

    /* False as `wait` says it, or when it can not be sent at all. `age` is how long ago the messages were told the time, which is when they begin to count. */
    bool send( std::vector<uint8_t> data, bool reliable, double age )
    {
        if ( !reliable ) {
            put( data, false, age );
            return true;
        }
        int answer = waiting_.empty() ? put( data, true, age ) : NETCODE_MESSAGES_FULL;
        return answer == NETCODE_MESSAGES_FULL ? wait( std::move( data ) ) : answer == NETCODE_OK;
    }

    /* What waited and finds room now. */
    void send_waiting()
    {
        while ( !waiting_.empty() && put( waiting_.front(), true, 0.0 ) != NETCODE_MESSAGES_FULL )
            waiting_.pop_front();
    }

    void forget_waiting()
    {
        waiting_.clear();
    }

    bool receive( std::vector<uint8_t> & data )
    {
        netcode_message_t message;
        if ( !netcode_messages_receive( messages(), &message ) )
            return false;
        data.assign( message.data, message.data + message.bytes );
        return true;
    }

    Counters counters() const
    {
        Counters c;
        netcode_messages_stats_t stats;
        netcode_messages_stats( messages(), &stats );
        c.reliable_retries_total = stats.reliable_retries_total;
        c.reliable_timeouts_total = stats.reliable_timeouts_total;
        c.dropped_duplicates_total = stats.dropped_duplicates_total;
        c.dropped_old_total = stats.dropped_old_total;
        c.dropped_window_total = stats.dropped_window_total;
        return c;
    }

  private:
    std::unique_ptr<netcode_messages_t, void ( * )( netcode_messages_t * )> messages_;
    std::deque<std::vector<uint8_t>> waiting_;

    int put( const std::vector<uint8_t> & data, bool reliable, double age )
    {
        netcode_message_t message = netcode_message_t();
        message.channel = CHANNEL;
        message.kind = reliable ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_UNRELIABLE;
        message.data = data.data();
        message.bytes = (int) data.size();
        message.ttl_seconds = reliable ? 0.0 : 0.5 + age;
        return netcode_messages_send_message( messages(), &message );
    }
};

/* ---- what server and client share ---- */

struct TransportOptions {
    int max_message_bytes = 65536;                   /* send throws std::length_error for larger ones */
    netcode_network_simulator_t * network = nullptr; /* instead of real sockets; must outlive the transport */
    std::function<double()> clock = netcode_time;    /* seconds */
};

/* Readies the library as long as it lives. */
class Library
{
  public:
    Library() : ready_( netcode_init() == NETCODE_OK )
    {
    }
    ~Library()
    {
        if ( ready_ )
            netcode_term();
    }
    Library( const Library & ) = delete;
    Library & operator=( const Library & ) = delete;
    bool ready() const
    {
        return ready_;
    }

  private:
    bool ready_;
};

class Transport : public ITransport
{
  public:
    explicit Transport( const TransportOptions & options ) : options_( options )
    {
    }

    /* Where it can not start it says why on standard error, and is not running(). */
    void start( ReceiveHandler handler ) override
    {
        if ( running_ || !library_.ready() )
            return;
        handler_ = std::move( handler );
        now_ = options_.clock();
        stop_wanted_ = false;
        running_ = open();
        if ( !running_ )
            close();
    }

    /* The handler may call it. */
    void stop() override
    {
        stop_wanted_ = running_;
        if ( !running_ || updating_ )
            return;
        past_ = sum( past_, present() );
        running_ = false;
        close();
    }

    /* Receives, calls the handler, sends. The handler may send and stop, but not update. */
    void update() override
    {
        if ( !running_ || updating_ )
            return;
        {
            Updating here( updating_ );
            now_ = options_.clock();
            drive( now_ );
        }
        if ( stop_wanted_ )
            stop();
    }

    /* What happens while they are disabled is never counted. */
    void set_metrics_enabled( bool enabled ) override
    {
        if ( enabled == enabled_ )
            return;
        enabled_ = enabled;
        if ( enabled )
            hidden_ = difference( total(), shown_ );
        else
            shown_ = difference( total(), hidden_ );
    }

    Counters sample_counters() const override
    {
        return enabled_ ? difference( total(), hidden_ ) : shown_;
    }

    bool running() const
    {
        return running_;
    }

  protected:
    virtual bool open() = 0;
    virtual void close() = 0;
    virtual void drive( double now ) = 0;
    virtual Counters present() const = 0; /* of what is open now */

    const TransportOptions & options() const
    {
        return options_;
    }
    double now() const
    {
        return now_;
    }
    double age() const
    {
        return options_.clock() - now_;
    }

    /* The caller's mistake, who would else never hear of it. */
    void check_size( const std::vector<uint8_t> & data ) const
    {
        if ( data.size() > (size_t) options_.max_message_bytes )
            throw std::length_error( "larger than max_message_bytes" );
    }

    /* The messages of a connection that has ended begin anew: their counters are kept here. */
    void keep( const Counters & counters )
    {
        past_ = sum( past_, counters );
    }

    void deliver( Peer & peer, const Endpoint & from )
    {
        std::vector<uint8_t> data;
        while ( !stop_wanted_ && peer.receive( data ) )
            if ( handler_ )
                handler_( from, std::move( data ) );
    }

  private:
    /* A handler that throws leaves no update under way behind. */
    struct Updating {
        explicit Updating( bool & flag ) : flag_( flag )
        {
            flag_ = true;
        }
        ~Updating()
        {
            flag_ = false;
        }
        bool & flag_;
    };

    Counters total() const
    {
        return running_ ? sum( past_, present() ) : past_;
    }

    Library library_;
    TransportOptions options_;
    ReceiveHandler handler_;
    double now_ = 0.0;
    bool running_ = false, updating_ = false, stop_wanted_ = false, enabled_ = true;
    Counters past_, hidden_, shown_;
};

/* ---- the server ---- */

typedef std::array<uint8_t, NETCODE_KEY_BYTES> PrivateKey;

class ServerTransport : public Transport
{
  public:
    ServerTransport( const std::string & address, int slots, uint64_t protocol_id, const PrivateKey & private_key,
                     const TransportOptions & options = TransportOptions() )
        : Transport( options ), address_( address ), slot_count_( slots ), protocol_id_( protocol_id ),
          private_key_( private_key ), server_( nullptr, netcode_server_destroy )
    {
    }

    /* Who is not connected gets nothing. Who does not read is disconnected in the end. */
    void send( const Endpoint & to, std::vector<uint8_t> data, bool reliable ) override
    {
        check_size( data );
        for ( int i = 0; running() && i < (int) slots_.size(); i++ ) {
            if ( !is_connected( i ) || !( slots_[(size_t) i].endpoint == to ) )
                continue;
            if ( !slots_[(size_t) i].peer.send( std::move( data ), reliable, age() ) )
                netcode_server_disconnect_client( server_.get(), i );
            return;
        }
    }

    /* Who is connected. */
    std::vector<Endpoint> endpoints() const
    {
        std::vector<Endpoint> all;
        for ( int i = 0; running() && i < (int) slots_.size(); i++ )
            if ( is_connected( i ) )
                all.push_back( slots_[(size_t) i].endpoint );
        return all;
    }

    uint16_t port() const
    {
        return running() ? netcode_server_get_port( server_.get() ) : (uint16_t) 0;
    }

  protected:
    bool open() override
    {
        netcode_server_config_t config;
        netcode_default_server_config( &config );
        config.protocol_id = protocol_id_;
        std::memcpy( config.private_key, private_key_.data(), private_key_.size() );
        config.network_simulator = options().network;
        server_.reset( netcode_server_create( address_.c_str(), &config, now() ) );
        if ( !server_ )
            std::fprintf( stderr, "%s\n", netcode_server_create_error_text( netcode_server_create_error() ) );
        return server_ && open_slots();
    }

    void close() override
    {
        slots_.clear();
        server_.reset();
    }

    void drive( double now ) override
    {
        netcode_server_update( server_.get(), now );
        for ( int i = 0; i < (int) slots_.size(); i++ )
            receive( i, now );
        for ( Slot & slot : slots_ )
            deliver( slot.peer, slot.endpoint );
        for ( int i = 0; i < (int) slots_.size(); i++ ) {
            slots_[(size_t) i].peer.send_waiting();
            netcode_messages_server_send( slots_[(size_t) i].peer.messages(), server_.get(), i, now );
        }
    }

    Counters present() const override
    {
        netcode_server_stats_t stats;
        netcode_server_stats( server_.get(), &stats );
        Counters all = connection_counters( stats.dropped );
        for ( const Slot & slot : slots_ )
            all = sum( all, slot.peer.counters() );
        return all;
    }

  private:
    struct Slot {
        Slot( int max_message_bytes, double time ) : peer( max_message_bytes, time )
        {
        }
        Peer peer;
        Endpoint endpoint;
        uint64_t session = 0;
    };

    std::string address_;
    int slot_count_;
    uint64_t protocol_id_;
    PrivateKey private_key_;
    std::unique_ptr<netcode_server_t, void ( * )( netcode_server_t * )> server_;
    std::vector<Slot> slots_;

    bool is_connected( int i ) const
    {
        uint64_t session = netcode_server_client_session( server_.get(), i );
        return session != 0 && session == slots_[(size_t) i].session;
    }

    /* All memory for messages is taken here. */
    bool open_slots()
    {
        netcode_server_start( server_.get(), slot_count_ );
        for ( int i = 0; i < netcode_server_max_clients( server_.get() ); i++ ) {
            slots_.emplace_back( options().max_message_bytes, now() );
            if ( !slots_.back().peer.good() )
                return false;
        }
        return netcode_server_running( server_.get() ) != 0;
    }

    /* Everybody's packets are taken in before the handler hears of any, so that it may send to who has just come. */
    void receive( int i, double now )
    {
        Slot & slot = slots_[(size_t) i];
        uint64_t session = netcode_server_client_session( server_.get(), i );
        if ( session != slot.session ) {
            keep( slot.peer.counters() );
            slot.peer.forget_waiting();
            slot.session = session;
            slot.endpoint = session ? Endpoint( *netcode_server_client_address( server_.get(), i ) ) : Endpoint();
        }
        netcode_messages_server_receive( slot.peer.messages(), server_.get(), i, now );
    }
};

/* ---- the client ---- */

typedef std::array<uint8_t, NETCODE_CONNECT_TOKEN_BYTES> ConnectToken;

/* Asks the backend for a token, as each start needs a new one. False: there is none. */
typedef std::function<bool( ConnectToken & token )> TokenSource;

class ClientTransport : public Transport
{
  public:
    ClientTransport( const std::string & address, const TokenSource & token_source,
                     const TransportOptions & options = TransportOptions() )
        : Transport( options ), address_( address ), token_source_( token_source ),
          client_( nullptr, netcode_client_destroy )
    {
    }

    /* To the server, which is the only one there is. Reliable messages wait until it is connected. */
    void send( const Endpoint & to, std::vector<uint8_t> data, bool reliable ) override
    {
        check_size( data );
        if ( !running() || !( to == server() ) || state() <= NETCODE_CLIENT_STATE_DISCONNECTED )
            return;
        bool good = true;
        if ( connected_ )
            good = peer_->send( std::move( data ), reliable, age() );
        else if ( reliable )
            good = peer_->wait( std::move( data ) );
        if ( !good )
            netcode_client_disconnect( client_.get() );
    }

    Endpoint server() const
    {
        return running() ? Endpoint( *netcode_client_server_address( client_.get() ) ) : Endpoint();
    }

    uint16_t port() const
    {
        return running() ? netcode_client_get_port( client_.get() ) : (uint16_t) 0;
    }

    /* NETCODE_CLIENT_STATE_... */
    int state() const
    {
        return running() ? netcode_client_state( client_.get() ) : NETCODE_CLIENT_STATE_DISCONNECTED;
    }

  protected:
    bool open() override
    {
        ConnectToken token;
        netcode_client_config_t config;
        netcode_default_client_config( &config );
        config.network_simulator = options().network;
        client_.reset( netcode_client_create( address_.c_str(), &config, now() ) );
        peer_.reset( new Peer( options().max_message_bytes, now() ) );
        connected_ = false;
        if ( !client_ )
            std::fprintf( stderr, "%s\n", netcode_client_create_error_text( netcode_client_create_error() ) );
        if ( !client_ || !peer_->good() || !token_source_( token ) )
            return false;
        netcode_client_connect( client_.get(), token.data() );
        return true;
    }

    void close() override
    {
        peer_.reset();
        client_.reset();
    }

    void drive( double now ) override
    {
        netcode_client_update( client_.get(), now );
        follow();
        netcode_messages_client_receive( peer_->messages(), client_.get(), now );
        deliver( *peer_, server() );
        if ( connected_ )
            peer_->send_waiting();
        netcode_messages_client_send( peer_->messages(), client_.get(), now );
    }

    Counters present() const override
    {
        netcode_client_stats_t stats;
        netcode_client_stats( client_.get(), &stats );
        return sum( connection_counters( stats.dropped ), peer_->counters() );
    }

  private:
    std::string address_;
    TokenSource token_source_;
    std::unique_ptr<netcode_client_t, void ( * )( netcode_client_t * )> client_;
    std::unique_ptr<Peer> peer_;
    bool connected_ = false;

    void follow()
    {
        bool connected = netcode_client_state( client_.get() ) == NETCODE_CLIENT_STATE_CONNECTED;
        if ( connected == connected_ )
            return;
        keep( peer_->counters() );
        if ( !connected )
            peer_->forget_waiting();
        connected_ = connected;
    }
};

/* ---- a demonstration ---- */

static const uint64_t PROTOCOL_ID = 0x1122334455667788ull;
static const double TICK_SECONDS = 1.0 / 60.0;
enum { MESSAGES = 100, INPUT_BYTES = 6, SNAPSHOT_BYTES = 200, LEVEL_BYTES = 65536 };

/* A message: what it is, its number, and bytes that follow from both. */
static std::vector<uint8_t> make_message( char type, int number, int bytes )
{
    std::vector<uint8_t> data( (size_t) bytes );
    for ( int i = 0; i < bytes; i++ )
        data[(size_t) i] = (uint8_t) ( i == 0 ? type : i == 1 ? number : type + number * 31 + i * 7 + i / 256 );
    return data;
}

/* What one side has received. */
struct Tally {
    std::array<bool, MESSAGES> inputs, snapshots;
    int levels = 0, wrong = 0;

    Tally()
    {
        inputs.fill( false );
        snapshots.fill( false );
    }

    /* It is as it was made, and comes for the first time. */
    void take( const std::vector<uint8_t> & data )
    {
        int number = data.size() > 1 ? data[1] : (int) MESSAGES;
        char type = data.empty() ? '\0' : (char) data[0];
        int bytes = type == 'I' ? INPUT_BYTES : type == 'S' ? SNAPSHOT_BYTES : LEVEL_BYTES;
        bool good = number < MESSAGES && data == make_message( type, number, bytes );
        if ( good && type == 'L' )
            levels++;
        else if ( good ) {
            bool & seen = type == 'I' ? inputs[(size_t) number] : snapshots[(size_t) number];
            good = !seen;
            seen = true;
        }
        wrong += good ? 0 : 1;
    }

    static int count( const std::array<bool, MESSAGES> & of )
    {
        int seen = 0;
        for ( bool came : of )
            seen += came ? 1 : 0;
        return seen;
    }

    /* All that is reliable came, and so many of the snapshots; nothing twice. */
    bool good( int least_snapshots, int expected_levels ) const
    {
        return wrong == 0 && count( inputs ) == MESSAGES && count( snapshots ) >= least_snapshots &&
               levels == expected_levels;
    }
};

static void print_side( const char * name, const Tally & tally, const Counters & counters )
{
    std::printf( "  %s: %d inputs, %d snapshots, %d large messages came, %d wrong\n   ", name,
                 Tally::count( tally.inputs ), Tally::count( tally.snapshots ), tally.levels, tally.wrong );
    for ( const CounterName & counter : COUNTER_NAMES )
        std::printf( " %s=%llu", counter.name, (unsigned long long) ( counters.*counter.field ) );
    std::printf( "\n" );
}

/* Both sides of one connection, and what they have received. */
class Demonstration
{
  public:
    Demonstration( const TransportOptions & options, const char * server_address, const char * client_address )
        : key_( make_key() ), server_address_( server_address ),
          server_( server_address, 4, PROTOCOL_ID, key_, options ),
          client_(
              client_address, [this]( ConnectToken & token ) { return fetch_token( token ); }, options )
    {
    }

    bool start()
    {
        server_.start( [this]( const Endpoint & from, const std::vector<uint8_t> & data ) {
            at_server_.take( data );
            at_server_.wrong += from.address.port == client_.port() ? 0 : 1;
        } );
        client_.start( [this]( const Endpoint & from, const std::vector<uint8_t> & data ) {
            at_client_.take( data );
            at_client_.wrong += from.address.port == server_.port() ? 0 : 1;
        } );
        return server_.running() && client_.running();
    }

    /* One tick of both. `number` counts from 0; from 100 on there is nothing new to send. */
    void tick( int number )
    {
        if ( number < MESSAGES ) {
            for ( const Endpoint & endpoint : server_.endpoints() )
                send( server_, endpoint, number );
            send( client_, client_.server(), number );
        }
        server_.update();
        client_.update();
    }

    void send_level()
    {
        for ( const Endpoint & endpoint : server_.endpoints() )
            server_.send( endpoint, make_message( 'L', 0, LEVEL_BYTES ), true );
        client_.send( client_.server(), make_message( 'L', 0, LEVEL_BYTES ), true );
    }

    bool connected() const
    {
        return client_.state() == NETCODE_CLIENT_STATE_CONNECTED && server_.endpoints().size() == 1;
    }

    bool good( int least_snapshots, int levels ) const
    {
        return at_server_.good( least_snapshots, levels ) && at_client_.good( least_snapshots, levels );
    }

    void print() const
    {
        print_side( "server", at_server_, server_.sample_counters() );
        print_side( "client", at_client_, client_.sample_counters() );
    }

    ServerTransport & server()
    {
        return server_;
    }
    ClientTransport & client()
    {
        return client_;
    }

  private:
    PrivateKey key_;
    std::string server_address_;
    ServerTransport server_;
    ClientTransport client_;
    Tally at_server_, at_client_;

    static PrivateKey make_key()
    {
        PrivateKey key;
        netcode_random_bytes( key.data(), (int) key.size() );
        return key;
    }

    /* What a backend does: the key is never in a client. */
    bool fetch_token( ConnectToken & token ) const
    {
        std::string address = server_address_.substr( 0, server_address_.rfind( ':' ) + 1 );
        address += std::to_string( server_.port() );
        const char * name = address.c_str();
        return netcode_generate_connect_token( 1, &name, &name, 30, 5, 1001, PROTOCOL_ID, key_.data(), nullptr,
                                               token.data() ) == NETCODE_OK;
    }

    static void send( ITransport & transport, const Endpoint & to, int number )
    {
        transport.send( to, make_message( 'I', number, INPUT_BYTES ), true );
        transport.send( to, make_message( 'S', number, SNAPSHOT_BYTES ), false );
    }
};

/* Loses nothing, so nothing may be missing. */
static bool over_loopback()
{
    Demonstration demonstration( TransportOptions(), "127.0.0.1:0", "127.0.0.1" );
    int sent = 0;
    std::printf( "over loopback:\n" );
    if ( !demonstration.start() )
        return false;
    double end = netcode_time() + 20.0;
    while ( netcode_time() < end && !demonstration.good( MESSAGES, 0 ) ) {
        demonstration.tick( demonstration.connected() ? sent++ : (int) MESSAGES );
        netcode_sleep( TICK_SECONDS );
    }
    demonstration.print();
    return demonstration.good( MESSAGES, 0 ) && demonstration.server().sample_counters().reliable_timeouts_total == 0 &&
           demonstration.client().sample_counters().reliable_timeouts_total == 0;
}

/* The same under the hardest conditions, in simulated time, with a large message each way and a counter that is off. */
static bool over_a_bad_network()
{
    std::unique_ptr<netcode_network_simulator_t, void ( * )( netcode_network_simulator_t * )>
        network( netcode_network_simulator_create( nullptr, nullptr, nullptr ), netcode_network_simulator_destroy );
    if ( !network )
        return false;
    network->latency_milliseconds = 50.0f;
    network->packet_loss_percent = 10.0f;
    network->duplicate_packet_percent = 5.0f;
    network->reorder_packet_percent = 5.0f;
    double time = 0.0;
    int sent = 0;
    TransportOptions options;
    options.network = network.get();
    options.clock = [&time]() { return time; };
    Demonstration demonstration( options, "127.0.0.1:40000", "127.0.0.1:50000" );
    std::printf(
        "over a bad network, 50 ms away: 10 %% lost, 5 %% doubled, 5 %% reordered; the server's counters are off:\n" );
    demonstration.server().set_metrics_enabled( false );
    if ( !demonstration.start() )
        return false;
    while ( time < 60.0 && !demonstration.good( MESSAGES / 2, 1 ) ) {
        netcode_network_simulator_update( network.get(), time );
        if ( sent == 1 )
            demonstration.send_level();
        demonstration.tick( demonstration.connected() ? sent++ : (int) MESSAGES );
        time += TICK_SECONDS;
    }
    demonstration.print();
    Counters client = demonstration.client().sample_counters(), server = demonstration.server().sample_counters();
    return demonstration.good( MESSAGES / 2, 1 ) && client.reliable_retries_total > 0 &&
           client.reliable_timeouts_total == 0 && client.dropped_duplicates_total > 0 &&
           server.reliable_retries_total == 0 && server.dropped_duplicates_total == 0;
}

static bool too_large_is_told()
{
    ClientTransport client( "127.0.0.1:0", []( ConnectToken & ) { return false; } );
    try {
        client.send( Endpoint(), std::vector<uint8_t>( 65537 ), true );
        return false;
    } catch ( const std::length_error & ) {
        return true;
    }
}

int main()
{
    Library library;
    bool good = library.ready() && too_large_is_told() && over_loopback() && over_a_bad_network();
    std::printf( "%s\n", good ? "everything arrived" : "it did not work" );
    return good ? 0 : 1;
}
