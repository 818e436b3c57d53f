/*  netcode.hpp, on a simulated network in virtual time: what its visitors hear, in which order and of whom, and what its
    objects do when they are misused. tests/cpp/run.sh compiles it for each version of the language. */

#include "netcode.hpp"

#include <cstdio>
#include <cstdlib>

int other_file(); /* in other.cpp: the header twice in one program */

static int tests_passed, tests_failed;
static bool current_failed;

#define CHECK( condition ) check( !!( condition ), #condition, __LINE__ )
static bool check( bool good, const char * text, int line )
{
    if ( !good ) {
        std::printf( "    tests/cpp/test.cpp:%d: %s is false\n", line, text );
        current_failed = true;
    }
    return good;
}

/* Every allocation of C++ in this program. Not inlined: gcc would take free for a mismatch of new. */
static long allocations;

#define NOT_INLINE __attribute__( ( noinline ) )

static NOT_INLINE void * counted( std::size_t size )
{
    allocations++;
    return std::malloc( size ? size : 1 );
}
void * operator new( std::size_t size )
{
    return counted( size );
}
void * operator new[]( std::size_t size )
{
    return counted( size );
}
void * operator new( std::size_t size, const std::nothrow_t & ) noexcept
{
    return counted( size );
}
void * operator new[]( std::size_t size, const std::nothrow_t & ) noexcept
{
    return counted( size );
}
NOT_INLINE void operator delete( void * memory ) noexcept
{
    std::free( memory );
}
NOT_INLINE void operator delete[]( void * memory ) noexcept
{
    std::free( memory );
}
NOT_INLINE void operator delete( void * memory, std::size_t ) noexcept
{
    std::free( memory );
}
NOT_INLINE void operator delete[]( void * memory, std::size_t ) noexcept
{
    std::free( memory );
}

/* ---- a world: one server, some clients, a bad network ---- */

struct inputs : netcode::channel<0, netcode::delivery::unreliable_sequenced> {
};
struct chat : netcode::channel<3, netcode::delivery::reliable_ordered, 1> {
};
typedef netcode::server<inputs, chat> game_server;
typedef netcode::client<inputs, chat> game_client;

static const char SERVER_ADDRESS[] = "127.0.0.1:40000";
static const uint64_t PROTOCOL_ID = 0x1122334455667788ull;
static const double LIMIT_SECONDS = 60.0; /* for what must happen: a busy machine may stand still for seconds */

static netcode::private_key a_key()
{
    netcode::private_key key;
    for ( std::size_t i = 0; i < key.size(); i++ )
        key[i] = static_cast<uint8_t>( i * 7 + 1 );
    return key;
}

static netcode::connect_token token_for( uint64_t client_id, int expire_seconds = 30 )
{
    netcode::token_config config;
    config.protocol_id = PROTOCOL_ID;
    config.client_id = client_id;
    config.key = a_key();
    config.expire_seconds = expire_seconds;
    config.addresses.push_back( SERVER_ADDRESS );
    config.data[0] = static_cast<uint8_t>( client_id );
    netcode::connect_token token = netcode::connect_token();
    CHECK( netcode::make_token( config, token ) );
    return token;
}

/* What a visitor heard, one line for each call. */
struct heard : netcode::visitor {
    std::vector<std::string> lines;
    std::vector<game_server::session> sessions;
    int chats = 0, inputs_seen = 0, last_input = -1, disorders = 0;

    void add( const char * what, uint64_t of )
    {
        lines.push_back( std::string( what ) + " " + std::to_string( of ) );
    }
    void connected( game_server::session client )
    {
        add( "connected", client.client_id() );
        CHECK( client.connected() && client.user_data().size() == 256 && client.user_data()[0] == client.client_id() );
        sessions.push_back( client );
    }
    void disconnected( game_server::session client, int reason )
    {
        add( "disconnected", client.client_id() );
        add( "reason", static_cast<uint64_t>( reason ) );
        CHECK( !client.connected() );
    }
    void moved( game_server::session client )
    {
        add( "moved", client.client_id() );
    }
    void message( game_server::session client, inputs, netcode::bytes data )
    {
        CHECK( data.size() == 4 );
        int number = data[0] | data[1] << 8;
        disorders += number <= last_input;
        last_input = number;
        inputs_seen++;
        (void) client;
    }
    void message( game_server::session client, chat, netcode::bytes data )
    {
        chats++;
        lines.push_back( "chat " + std::to_string( client.client_id() ) + " " + data.text() );
    }
    void receipt( game_server::session client, const netcode_messages_event_t & event )
    {
        add( event.type == NETCODE_MESSAGES_EVENT_ACKED ? "acked" : "lost", client.client_id() );
    }

    using netcode::visitor::receipt;
    void connected( game_client & )
    {
        add( "joined", 0 );
    }
    void disconnected( game_client &, int state )
    {
        lines.push_back( std::string( "left " ) + netcode_client_state_name( state ) );
    }
    void message( game_client &, inputs, netcode::bytes )
    {
        inputs_seen++;
    }
    void message( game_client &, chat, netcode::bytes data )
    {
        chats++;
        lines.push_back( "received " + data.text() );
    }

    bool has( const std::string & line ) const
    {
        for ( const std::string & one : lines )
            if ( one == line )
                return true;
        return false;
    }
    int at( const std::string & line ) const
    {
        for ( std::size_t i = 0; i < lines.size(); i++ )
            if ( lines[i] == line )
                return static_cast<int>( i );
        return -1;
    }
};

enum { CLIENTS = 3 };

struct world {
    netcode::simulator network;
    game_server server;
    game_client clients[CLIENTS];
    heard by_server, by_client[CLIENTS];
    netcode::server_config config;
    double time = 100.0;

    explicit world( int slots = 4, float loss = 0.0f )
    {
        network->latency_milliseconds = 30.0f;
        network->packet_loss_percent = loss;
        config.protocol_id = PROTOCOL_ID;
        config.set_private_key( a_key() );
        config.network_simulator = network.get();
        netcode::status failed = server.start( SERVER_ADDRESS, config, slots, time );
        CHECK( !failed );
        for ( int i = 0; i < CLIENTS; i++ ) {
            netcode::client_config client;
            client.network_simulator = network.get();
            CHECK( !clients[i].open( ( "127.0.0.1:" + std::to_string( 50001 + i ) ).c_str(), client, time ) );
        }
    }
    void connect( int i, uint64_t client_id )
    {
        clients[i].connect( token_for( client_id ) );
    }
    void tick()
    {
        time += 1.0 / 60.0;
        network.update( time );
        server.receive( time, by_server );
        for ( int i = 0; i < CLIENTS; i++ )
            clients[i].receive( time, by_client[i] );
        server.flush( time );
        for ( int i = 0; i < CLIENTS; i++ )
            clients[i].flush( time );
    }
    void tick_server()
    {
        time += 1.0 / 60.0;
        network.update( time );
        server.receive( time, by_server );
        server.flush( time );
    }
    void run( double seconds )
    {
        for ( double end = time + seconds; time < end; )
            tick();
    }
    bool all_connected( int count )
    {
        for ( int i = 0; i < 300 && server.clients() < count; i++ )
            tick();
        run( 0.2 );
        return server.clients() == count;
    }
};

/* ---- tests ---- */

static void test_messages_arrive_by_channel()
{
    world w( 4, 5.0f );
    w.connect( 0, 1 );
    w.connect( 1, 2 );
    CHECK( w.all_connected( 2 ) );
    int accepted = 0;
    for ( int i = 0; i < 200; i++ ) {
        uint8_t data[4] = { static_cast<uint8_t>( i ), static_cast<uint8_t>( i >> 8 ), 0, 0 };
        CHECK( w.clients[0].send<inputs>( data ) == netcode::sent::ok );
        accepted += w.clients[1].send<chat>( std::to_string( i ) ) == netcode::sent::ok;
        if ( i % 20 == 0 )
            CHECK( w.server.broadcast<chat>( "news " + std::to_string( i ) ) == 2 );
        w.tick();
    }
    w.run( 3.0 );
    CHECK( accepted == 200 && w.by_server.chats == 200 );
    int next = 0;
    for ( const std::string & line : w.by_server.lines )
        if ( line.compare( 0, 5, "chat " ) == 0 )
            CHECK( line == "chat 2 " + std::to_string( next++ ) );
    CHECK( w.by_server.disorders == 0 && w.by_server.inputs_seen > 150 && w.by_server.inputs_seen <= 200 );
    CHECK( w.by_client[0].chats == 10 && w.by_client[1].chats == 10 && w.by_client[2].chats == 0 );
    CHECK( w.by_client[0].at( "received news 0" ) < w.by_client[0].at( "received news 180" ) );
    CHECK( w.by_server.has( "connected 1" ) && w.by_server.has( "connected 2" ) && w.by_client[0].has( "joined 0" ) );
}

static void test_last_messages_come_before_the_end()
{
    world w;
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    w.clients[0].send<chat>( "goodbye" );
    w.clients[0].flush( w.time );
    w.clients[0].disconnect();
    w.run( 0.5 );
    CHECK( w.by_server.at( "chat 1 goodbye" ) >= 0 );
    CHECK( w.by_server.at( "chat 1 goodbye" ) < w.by_server.at( "disconnected 1" ) );
    CHECK( w.by_server.has( "reason " + std::to_string( NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT ) ) );
    CHECK( w.by_client[0].has( "left DISCONNECTED" ) );
    CHECK( w.server.clients() == 0 );
}

static void test_last_messages_of_a_server()
{
    world w;
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    w.server.broadcast<chat>( "closing" );
    w.server.flush( w.time );
    w.server.stop();
    CHECK( !w.server.running() && w.server.clients() == 0 && w.server.native() == nullptr );
    w.run( 0.5 );
    CHECK( w.by_client[0].at( "received closing" ) >= 0 );
    CHECK( w.by_client[0].at( "received closing" ) < w.by_client[0].at( "left DISCONNECTED" ) );
    CHECK( !w.by_server.has( "disconnected 1" ) ); /* it was stopped, not visited */
}

static void test_an_old_session_does_nothing()
{
    world w( 1 );
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    game_server::session old = w.by_server.sessions[0];
    CHECK( old.send<chat>( "never acknowledged", netcode::send_options( 0.0, 77 ) ) == netcode::sent::ok );
    old.disconnect();
    CHECK( old.send<chat>( "x" ) == netcode::sent::not_connected );
    CHECK( old.stats().session == 0 && old.user_data().empty() && old.address().type == NETCODE_ADDRESS_NONE );
    w.connect( 1, 2 );
    CHECK( w.all_connected( 1 ) );
    game_server::session fresh = w.server.at( 0 );
    CHECK( fresh.connected() && fresh.client_id() == 2 && fresh != old && fresh.index() == old.index() );
    CHECK( old.send<chat>( "for the old one" ) == netcode::sent::not_connected && !old.messages() );
    old.disconnect();
    w.run( 0.5 );
    CHECK( fresh.connected() );
    CHECK( w.by_server.has( "lost 1" ) && !w.by_server.has( "lost 2" ) );
    CHECK( w.by_server.at( "disconnected 1" ) < w.by_server.at( "connected 2" ) );
    CHECK( w.by_client[1].chats == 0 );
    CHECK( !w.server.at( 1 ).connected() && !w.server.at( -1 ).connected() && !game_server::session().connected() );
}

static void test_receipts()
{
    world w( 2, 10.0f );
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    game_server::session client = w.server.at( w.by_server.sessions[0].index() );
    CHECK( client == w.by_server.sessions[0] );
    CHECK( client.send<chat>( "please sign", netcode::send_options( 0.0, 5 ) ) == netcode::sent::ok );
    w.run( 2.0 );
    CHECK( w.by_server.has( "acked 1" ) );
}

/* The client's slot is taken over by a newer token of the same id within one update. */
static void test_a_replaced_client()
{
    world w( 1 );
    w.server.stop();
    w.config.replace_existing_clients = 1;
    CHECK( !w.server.start( SERVER_ADDRESS, w.config, 1, w.time ) );
    w.clients[0].connect( token_for( 1, 30 ) );
    CHECK( w.all_connected( 1 ) );
    w.by_server.sessions[0].send<chat>( "lost with it", netcode::send_options( 0.0, 1 ) );
    w.clients[1].connect( token_for( 1, 60 ) );
    for ( int i = 0; i < 60 && w.by_server.sessions.size() < 2; i++ )
        w.tick();
    CHECK( w.by_server.sessions.size() == 2 &&
           w.by_server.at( "disconnected 1" ) == 1 + w.by_server.at( "connected 1" ) + w.by_server.has( "acked 1" ) );
    CHECK( w.by_server.has( "reason " + std::to_string( NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED ) ) );
    CHECK( w.by_server.sessions[1].send<chat>( "you are the new one" ) == netcode::sent::ok );
    w.run( 0.5 );
    CHECK( w.by_client[1].has( "received you are the new one" ) );
}

static void test_a_moved_client()
{
    world w;
    w.server.stop();
    w.config.roaming = 1;
    CHECK( !w.server.start( SERVER_ADDRESS, w.config, 2, w.time ) );
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    netcode_address_t from, to;
    netcode_parse_address( "127.0.0.1:50001", &from );
    netcode_parse_address( "127.0.0.1:60001", &to );
    CHECK( netcode_network_simulator_move( w.network.get(), &from, &to, 0 ) );
    w.run( 2.0 );
    CHECK( w.by_server.has( "moved 1" ) &&
           netcode::to_string( w.by_server.sessions[0].address() ) == "127.0.0.1:60001" );
    w.clients[0].send<chat>( "still here" );
    w.run( 0.5 );
    CHECK( w.by_server.has( "chat 1 still here" ) );
}

static void test_refusals_have_sentences()
{
    world w( 1 );
    game_server none;
    netcode::status failed = none.start( "not an address", w.config, 1, 0.0 );
    CHECK( failed && std::strlen( failed.text() ) > 10 && !none.running() );
    CHECK( none.start( "127.0.0.1:41000", w.config, 0, 0.0 ) && none.start( "127.0.0.1:41000", w.config, 65536, 0.0 ) );
    netcode::messages_config wrong;
    wrong.max_retries = -1;
    failed = none.start( "127.0.0.1:41000", w.config, 1, 0.0, wrong );
    CHECK( failed && std::strstr( failed.text(), "messages" ) );
    none.receive( 0.0, w.by_server );
    none.flush( 0.0 );
    none.wait( 0.0 );
    none.stop();
    CHECK( none.port() == 0 && none.max_clients() == 0 && none.stats().max_clients == 0 && !none.at( 0 ).connected() );

    game_client closed;
    CHECK( closed.open( "127.0.0.1:99999", netcode::client_config(), 0.0 ) && !closed.is_open() );
    closed.connect( token_for( 1 ) );
    closed.receive( 0.0, w.by_client[0] );
    closed.flush( 0.0 );
    closed.disconnect();
    closed.close();
    CHECK( closed.send<chat>( "x" ) == netcode::sent::not_connected && closed.state() == 0 && !closed.rebind() );

    netcode::token_config token;
    netcode::connect_token made;
    CHECK( !netcode::make_token( token, made ) );
    token.addresses.push_back( "nowhere" );
    CHECK( !netcode::make_token( token, made ) );
    token.addresses[0] = SERVER_ADDRESS;
    token.internal_addresses.resize( 2, SERVER_ADDRESS );
    CHECK( !netcode::make_token( token, made ) );

    netcode::connect_token garbage = netcode::connect_token();
    w.clients[0].connect( garbage );
    w.run( 0.1 );
    CHECK( w.by_client[0].has( "left INVALID_CONNECT_TOKEN" ) && std::strlen( w.clients[0].report().text ) > 10 );
    w.connect( 1, 1 );
    CHECK( w.all_connected( 1 ) );
    std::vector<uint8_t> large( 1 << 20 );
    CHECK( w.clients[1].send<chat>( large ) == netcode::sent::too_large );
    w.connect( 2, 2 ); /* the server is full */
    w.run( 1.0 );
    CHECK( w.by_client[2].has( "left CONNECTION_DENIED" ) );
}

/* ---- a visitor that acts on what calls it ---- */

struct stopper : heard {
    game_server * server = nullptr;
    int after = 0;

    void message( game_server::session client, chat, netcode::bytes data )
    {
        after += server == nullptr;
        if ( !server )
            return;
        CHECK( client.connected() && !data.empty() );
        server->receive( 1e9, *this ); /* does nothing */
        CHECK( server->start( SERVER_ADDRESS, netcode::server_config(), 1, 0.0 ) );
        server->stop();
        CHECK( !client.connected() && !server->running() );
        server = nullptr;
    }
    using heard::message;
};

static void test_stop_and_close_in_a_visitor()
{
    world w;
    w.connect( 0, 1 );
    w.connect( 1, 2 );
    CHECK( w.all_connected( 2 ) );
    for ( int i = 0; i < 5; i++ ) {
        w.clients[0].send<chat>( "stop" );
        w.clients[1].send<chat>( "stop" );
    }
    w.clients[0].flush( w.time );
    w.clients[1].flush( w.time );
    w.time += 0.1;
    w.network.update( w.time );
    stopper stops;
    stops.server = &w.server;
    w.server.receive( w.time, stops );
    CHECK( !stops.server && stops.after == 0 && stops.lines.empty() && !w.server.running() );

    struct closer : netcode::visitor {
        int ended = 0;
        void disconnected( game_client & client, int )
        {
            ended++;
            CHECK( client.open( "127.0.0.1:50009", netcode::client_config(), 0.0 ) );
            client.close();
            CHECK( !client.is_open() );
        }
        void message( game_client &, inputs, netcode::bytes )
        {
        }
        void message( game_client &, chat, netcode::bytes )
        {
        }
    } closes;
    w.time += 0.1;
    w.network.update( w.time );
    w.clients[0].receive( w.time, closes );
    CHECK( closes.ended == 1 && !w.clients[0].is_open() );
}

/* Stops the server at the first call of any kind. */
struct quitter : heard {
    game_server * server = nullptr;
    int calls = 0;

    void quit()
    {
        calls++;
        server->stop();
    }
    void connected( game_server::session )
    {
        quit();
    }
    void receipt( game_server::session, const netcode_messages_event_t & )
    {
        quit();
    }
    using heard::connected;
};

static void test_nothing_is_visited_after_stop()
{
    world w;
    quitter quits;
    quits.server = &w.server;
    w.connect( 0, 1 );
    w.connect( 1, 2 );
    for ( int i = 0; i < 120 && w.server.running(); i++ ) {
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        w.server.receive( w.time, quits );
        for ( int c = 0; c < 2; c++ )
            w.clients[c].receive( w.time, w.by_client[c] );
    }
    CHECK( quits.calls == 1 && !w.server.running() );
    game_server other; /* its address is free again */
    CHECK( !other.start( SERVER_ADDRESS, w.config, 2, w.time ) );

    world v;
    v.connect( 0, 1 );
    CHECK( v.all_connected( 1 ) );
    for ( uint64_t i = 1; i <= 3; i++ )
        v.by_server.sessions[0].send<chat>( "sign", netcode::send_options( 0.0, i ) );
    v.server.flush( v.time );
    for ( int i = 0; i < 12; i++ ) { /* all three acknowledgements arrive together */
        v.time += 1.0 / 60.0;
        v.network.update( v.time );
        v.clients[0].receive( v.time, v.by_client[0] );
        v.clients[0].flush( v.time );
    }
    quits.calls = 0;
    quits.server = &v.server;
    v.server.receive( v.time, quits );
    CHECK( quits.calls == 1 && !v.server.running() );
}

static void test_broadcast_leaves_one_out()
{
    world w;
    w.connect( 0, 1 );
    w.connect( 1, 2 );
    CHECK( w.all_connected( 2 ) );
    game_server::session first = w.by_server.sessions[0];
    CHECK( w.server.broadcast<chat>( "to the others", first ) == 1 );
    w.run( 0.3 );
    int left_out = first.client_id() == 1 ? 0 : 1;
    CHECK( w.by_client[left_out].chats == 0 && w.by_client[1 - left_out].chats == 1 );
}

/* A client of this process, whose slot has had no receive yet: what is queued for it then would be lost. */
static void test_a_loopback_client()
{
    world w;
    w.config.send_loopback_packet_callback = []( void *, int, const uint8_t *, int, uint64_t ) {};
    w.server.stop();
    CHECK( !w.server.start( SERVER_ADDRESS, w.config, 2, w.time ) );
    netcode_server_connect_loopback_client( w.server.native(), 1, 3, nullptr );
    CHECK( w.server.at( 1 ).connected() && w.server.at( 1 ).send<chat>( "x" ) == netcode::sent::not_connected );
    w.by_server.lines.clear();
    struct of_loopback : netcode::visitor {
        int connects = 0;
        void connected( game_server::session client )
        {
            connects += client.client_id() == 3 && client.send<chat>( "x" ) == netcode::sent::ok;
        }
        void message( game_server::session, inputs, netcode::bytes )
        {
        }
        void message( game_server::session, chat, netcode::bytes )
        {
        }
    } visitor;
    w.time += 0.1;
    w.server.receive( w.time, visitor );
    CHECK( visitor.connects == 1 );
}

/* A peer of another build, which has a channel more. */
static void test_a_channel_that_is_not_here()
{
    struct extra : netcode::channel<9, netcode::delivery::reliable_ordered> {
    };
    typedef netcode::client<inputs, chat, extra> other_client;
    struct of_other : netcode::visitor {
        void message( other_client &, inputs, netcode::bytes )
        {
        }
        void message( other_client &, chat, netcode::bytes )
        {
        }
        void message( other_client &, extra, netcode::bytes )
        {
        }
    } visitor;
    world w;
    other_client other;
    netcode::client_config config;
    config.network_simulator = w.network.get();
    CHECK( !other.open( "127.0.0.1:50100", config, w.time ) );
    other.connect( token_for( 4 ) );
    for ( int i = 0; i < 120; i++ ) {
        if ( i == 60 ) /* the server has said how many it has */
            CHECK( other.send<extra>( "not for you" ) == netcode::sent::no_channel );
        w.tick();
        other.receive( w.time, visitor );
        other.flush( w.time );
    }
    netcode_messages_stats_t stats = netcode_messages_stats_t();
    CHECK( w.server.clients() == 1 && w.by_server.chats == 0 );
    netcode_messages_stats( w.by_server.sessions[0].messages(), &stats );
    CHECK( stats.drops[NETCODE_MESSAGES_DROP_CHANNEL] == 0 );
}

struct kicker : heard {
    void message( game_server::session client, chat, netcode::bytes )
    {
        chats++;
        client.disconnect();
    }
    using heard::message;
};

static void test_a_kicked_client_is_heard_no_more()
{
    world w;
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    for ( int i = 0; i < 10; i++ )
        w.clients[0].send<chat>( "insult" );
    w.clients[0].flush( w.time );
    kicker kicks;
    for ( int i = 0; i < 30; i++ ) {
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        w.server.receive( w.time, kicks );
        w.server.flush( w.time );
    }
    CHECK( kicks.chats == 1 && kicks.has( "disconnected 1" ) );
}

/* In a receipt, which comes first. */
static void test_a_client_kicked_at_a_receipt()
{
    struct receipt_kicker : heard {
        void receipt( game_server::session client, const netcode_messages_event_t & )
        {
            client.disconnect();
        }
        using heard::receipt;
    } kicks;
    world w;
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    CHECK( w.by_server.sessions[0].send<chat>( "sign", netcode::send_options( 0.0, 1 ) ) == netcode::sent::ok );
    w.server.flush( w.time );
    for ( int i = 0; i < 12; i++ ) { /* the acknowledgement and a message arrive together */
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        w.clients[0].receive( w.time, w.by_client[0] );
        w.clients[0].send<chat>( "heard after the kick" );
        w.clients[0].flush( w.time );
    }
    w.server.receive( w.time, kicks );
    w.tick_server();
    w.server.receive( w.time, kicks );
    CHECK( kicks.chats == 0 && w.server.clients() == 0 );
    CHECK( kicks.has( "disconnected 1" ) || w.by_server.has( "disconnected 1" ) );
}

/* What `disconnected` does is for the next connection, also where that fails at once. */
static void test_connecting_anew_at_an_end()
{
    struct again : netcode::visitor {
        int ends = 0, chats = 0;
        void disconnected( game_client & client, int )
        {
            if ( ends++ > 0 )
                return;
            client.connect( token_for( 2 ) );
            CHECK( client.send<chat>( "back again" ) == netcode::sent::ok );
        }
        void message( game_client &, inputs, netcode::bytes )
        {
        }
        void message( game_client &, chat, netcode::bytes )
        {
            chats++;
        }
    } visitor;
    world w;
    w.connect( 0, 1 );
    for ( int i = 0; i < 180; i++ ) {
        w.tick_server();
        if ( i == 60 ) { /* a kick with a reason: both arrive in one receive */
            CHECK( w.by_server.sessions[0].send<chat>( "you are kicked" ) == netcode::sent::ok );
            w.server.flush( w.time );
            w.by_server.sessions[0].disconnect();
        }
        w.clients[0].receive( w.time, visitor );
        w.clients[0].flush( w.time );
    }
    CHECK( visitor.ends == 1 && visitor.chats == 1 && w.by_server.has( "chat 2 back again" ) );

    struct stubborn : netcode::visitor {
        int ends = 0;
        void disconnected( netcode::client<> & client, int )
        {
            ends++;
            client.connect( netcode::connect_token() ); /* fails at once */
        }
        void packet( netcode::client<> &, netcode::bytes, uint64_t )
        {
        }
    } retries;
    netcode::client<> plain;
    netcode::client_config config;
    config.network_simulator = w.network.get();
    CHECK( !plain.open( "127.0.0.1:50200", config, w.time ) );
    plain.connect( netcode::connect_token() );
    for ( int i = 1; i <= 3; i++ ) {
        plain.receive( w.time + i, retries );
        CHECK( retries.ends == i );
    }
}

#if defined( __cpp_exceptions ) || defined( __EXCEPTIONS )
struct thrower : heard {
    bool throws = true;
    void message( game_server::session client, chat channel, netcode::bytes data )
    {
        if ( throws )
            throw 7;
        heard::message( client, channel, data );
    }
    void connected( game_server::session client )
    {
        heard::connected( client );
        if ( throws )
            throw 8;
    }
    using heard::message;
};

static void test_exceptions_pass_through()
{
    world w;
    thrower throws;
    int caught = 0;
    w.connect( 0, 1 );
    w.connect( 1, 2 );
    for ( int i = 0; i < 120; i++ ) {
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        try {
            w.server.receive( w.time, throws );
        } catch ( int ) {
            caught++;
        }
        w.server.flush( w.time );
        for ( int c = 0; c < 2; c++ ) {
            w.clients[c].receive( w.time, w.by_client[c] );
            w.clients[c].flush( w.time );
        }
        if ( i == 60 ) {
            CHECK( caught == 2 && throws.has( "connected 1" ) && throws.has( "connected 2" ) );
            w.clients[0].send<chat>( "one" );
            w.clients[0].send<chat>( "two" );
        }
        if ( i == 80 ) {
            CHECK( caught == 4 ); /* each message was handed over once */
            throws.throws = false;
            w.clients[0].send<chat>( "three" );
        }
    }
    CHECK( throws.has( "chat 1 three" ) && throws.chats == 1 && w.server.running() && w.server.clients() == 2 );
}

/* A `disconnected` that throws does not cost the slot's next client its `connected`. */
struct thrower_at_ends : heard {
    bool throws = true;
    void disconnected( game_server::session client, int reason )
    {
        heard::disconnected( client, reason );
        if ( throws )
            throw 9;
    }
    using heard::disconnected;
};

static void test_an_exception_at_an_end()
{
    world w( 1 );
    w.server.stop();
    w.config.replace_existing_clients = 1;
    CHECK( !w.server.start( SERVER_ADDRESS, w.config, 1, w.time ) );
    thrower_at_ends throws;
    int caught = 0;
    w.clients[0].connect( token_for( 1, 30 ) );
    for ( int i = 0; i < 180; i++ ) {
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        if ( i == 60 )
            w.clients[1].connect( token_for( 1, 60 ) );
        try {
            w.server.receive( w.time, throws );
        } catch ( int ) {
            caught++;
        }
        w.server.flush( w.time );
        for ( int c = 0; c < 2; c++ ) {
            w.clients[c].receive( w.time, w.by_client[c] );
            w.clients[c].flush( w.time );
        }
    }
    CHECK( caught == 1 && throws.sessions.size() == 2 && throws.sessions[1].connected() );
    CHECK( throws.lines.size() == 4 && throws.lines[1] == "disconnected 1" && throws.lines[3] == "connected 1" );

    struct at_client : netcode::visitor {
        bool throws = true;
        int joins = 0;
        void connected( game_client & )
        {
            joins++;
        }
        void disconnected( game_client & client, int )
        {
            client.connect( token_for( 7 ) );
            if ( throws )
                throw 10;
        }
        void message( game_client &, inputs, netcode::bytes )
        {
        }
        void message( game_client &, chat, netcode::bytes )
        {
        }
    } visitor;
    world v;
    v.clients[0].connect( netcode::connect_token() );
    caught = 0;
    for ( int i = 0; i < 60; i++ ) {
        v.tick_server();
        try {
            v.clients[0].receive( v.time, visitor );
        } catch ( int ) {
            caught++;
            visitor.throws = false;
        }
    }
    CHECK( caught == 1 && visitor.joins == 1 );

    /* Two ends in one receive. */
    struct counter : heard {
        int ends = 0;
        void disconnected( game_client &, int )
        {
            if ( ends++ == 0 )
                throw 11;
        }
        using heard::disconnected;
    } counts;
    v.clients[0].disconnect();
    v.clients[0].connect( netcode::connect_token() );
    for ( int i = 0; i < 2; i++ ) {
        v.tick_server();
        try {
            v.clients[0].receive( v.time, counts );
        } catch ( int ) {
            caught++;
        }
    }
    CHECK( caught == 2 && counts.ends == 2 );
}
#else
static void test_exceptions_pass_through()
{
}
static void test_an_exception_at_an_end()
{
}
#endif

/* ---- packets, moves, views, memory ---- */

typedef netcode::server<> plain_server;
typedef netcode::client<> plain_client;

struct echo : netcode::visitor {
    int packets = 0, ends = 0;
    uint64_t last = 0;
    void packet( plain_server::session client, netcode::bytes data, uint64_t sequence )
    {
        CHECK( data.size() == 1200 || data.text() == "ping" );
        CHECK( packets == 0 || sequence > last );
        last = sequence;
        packets++;
        CHECK( client.send_packet( data ) == netcode::sent::ok );
    }
    void packet( plain_client &, netcode::bytes, uint64_t )
    {
        packets++;
    }
    void disconnected( plain_server::session, int )
    {
        ends++;
    }
    using netcode::visitor::disconnected;
};

static void test_packets()
{
    netcode::simulator network;
    netcode::server_config config;
    config.protocol_id = PROTOCOL_ID;
    config.set_private_key( a_key() );
    config.network_simulator = network.get();
    netcode::client_config client_config;
    client_config.network_simulator = network.get();
    plain_server server;
    plain_client client;
    double time = 0.0;
    CHECK( !server.start( SERVER_ADDRESS, config, 2, time ) && !client.open( "127.0.0.1:50001", client_config, time ) );
    client.connect( token_for( 9 ) );
    echo at_server, at_client;
    std::vector<uint8_t> full( 1200 ), beyond( 1201 );
    CHECK( client.send_packet( full ) == netcode::sent::not_connected );
    long before = 0;
    for ( int i = 0; i < 300; i++ ) {
        time += 1.0 / 60.0;
        network.update( time );
        server.receive( time, at_server );
        client.receive( time, at_client );
        if ( i == 60 )
            before = allocations;
        if ( i >= 60 && i < 260 )
            CHECK( client.send_packet( i % 2 ? netcode::bytes( full ) : netcode::bytes( "ping" ) ) ==
                   netcode::sent::ok );
        server.flush( time );
        client.flush( time );
    }
    CHECK( allocations == before );
    CHECK( at_server.packets == 200 && at_client.packets == 200 );
    CHECK( server.stats().packets_held == 0 && client.stats().packets_held == 0 );
    CHECK( client.send_packet( beyond ) == netcode::sent::too_large );
    CHECK( client.send_packet( netcode::bytes() ) == netcode::sent::bad_argument );

    /* What holds a session may move. */
    plain_server::session session = server.at( 0 );
    plain_server moved( std::move( server ) );
    plain_client moved_client;
    moved_client = std::move( client );
    CHECK( !server.running() && moved.running() && session.connected() && moved_client.connected() &&
           !client.is_open() );
    CHECK( session.send_packet( "ping" ) == netcode::sent::ok && session == moved.at( 0 ) );
    time += 0.1;
    moved.flush( time );
    network.update( time );
    moved_client.receive( time, at_client );
    CHECK( at_client.packets == 201 );
    moved_client.close();
    time += 0.1;
    network.update( time );
    moved.receive( time, at_server );
    CHECK( at_server.ends == 1 );
}

/* Messages, too: nothing is allocated once a game runs. */
static void test_no_allocation_in_a_tick()
{
    struct counter : netcode::visitor {
        int messages = 0;
        void message( game_server::session client, inputs, netcode::bytes data )
        {
            messages++;
            client.send<inputs>( data );
        }
        void message( game_server::session, chat, netcode::bytes )
        {
        }
        void message( game_client &, inputs, netcode::bytes )
        {
            messages++;
        }
        void message( game_client &, chat, netcode::bytes )
        {
        }
    } at_server, at_client;
    world w;
    w.connect( 0, 1 );
    CHECK( w.all_connected( 1 ) );
    long before = allocations;
    for ( int i = 0; i < 300; i++ ) {
        uint8_t data[4] = { 1, 2, 3, 4 };
        w.time += 1.0 / 60.0;
        w.network.update( w.time );
        w.server.receive( w.time, at_server );
        w.clients[0].receive( w.time, at_client );
        w.clients[0].send<inputs>( data );
        w.server.flush( w.time );
        w.clients[0].flush( w.time );
    }
    CHECK( allocations == before && at_server.messages > 250 && at_client.messages > 250 );
}

static void test_views()
{
    std::string text = "text";
    std::vector<uint8_t> vector( 3, 7 );
    std::array<uint8_t, 2> array = { { 1, 2 } };
    uint8_t plain[5] = { 0 };
    CHECK( netcode::bytes( text ).text() == "text" && netcode::bytes( "text" ).size() == 4 );
    CHECK( netcode::bytes( vector ).size() == 3 && netcode::bytes( array )[1] == 2 &&
           netcode::bytes( plain ).size() == 5 );
    CHECK( netcode::bytes().empty() && netcode::bytes().begin() == netcode::bytes().end() &&
           netcode::bytes().text().empty() );
    int sum = 0;
    for ( uint8_t byte : netcode::bytes( vector ) )
        sum += byte;
    CHECK( sum == 21 );
#if __cplusplus >= 201703L
    CHECK( netcode::bytes( std::string_view( "text" ) ).text() == "text" );
#endif
#ifdef NETCODE_HPP_SPAN
    CHECK( netcode::bytes( std::span<uint8_t>( vector ) ).size() == 3 &&
           netcode::bytes( std::span( array ) ).size() == 2 );
    CHECK( netcode::bytes( std::span<const uint8_t, 5>( plain ) ).size() == 5 );
    std::span<const uint8_t> span = netcode::bytes( vector );
    CHECK( span.size() == 3 && netcode::bytes( span ).data() == vector.data() );
    CHECK( netcode::bytes( std::as_bytes( std::span<const uint8_t>( vector ) ) ).size() == 3 );
#endif
}

/* Real sockets, for a moment. */
static void test_real_sockets()
{
    netcode::server_config config;
    config.protocol_id = PROTOCOL_ID;
    config.set_private_key( a_key() );
    config.bind_address = "127.0.0.1";
    game_server server;
    game_client client;
    double time = netcode_time();
    CHECK( !server.start( "127.0.0.1:0", config, 2, time ) && server.port() != 0 );
    CHECK( !client.open( "127.0.0.1", netcode::client_config(), time ) );
    netcode::token_config token;
    token.protocol_id = PROTOCOL_ID;
    token.client_id = 1;
    token.key = a_key();
    token.data[0] = 1;
    token.addresses.push_back( "127.0.0.1:" + std::to_string( server.port() ) );
    netcode::connect_token made;
    CHECK( netcode::make_token( token, made ) );
    client.connect( made );
    heard by_server, by_client;
    for ( double end = time + LIMIT_SECONDS; time < end && !by_server.has( "chat 1 over a socket" );
          time = netcode_time() ) {
        server.receive( time, by_server );
        client.receive( time, by_client );
        if ( by_client.has( "joined 0" ) && client.stats().packets_sent[NETCODE_PACKET_PAYLOAD] == 0 )
            client.send<chat>( "over a socket" );
        client.flush( time );
        server.flush( time );
        server.wait( 0.005 );
        client.wait( 0.005 );
    }
    CHECK( by_server.has( "chat 1 over a socket" ) );
    client.connect( made ); /* the same token once more */
    for ( double end = time + LIMIT_SECONDS; time < end && by_client.lines.back().compare( 0, 4, "left" ) != 0;
          time = netcode_time() ) {
        client.receive( time, by_client );
        client.wait( 0.005 );
    }
    CHECK( by_client.has( "left INVALID_CONNECT_TOKEN" ) );
}

int main()
{
    static const struct {
        const char * name;
        void ( *function )();
    } tests[] = { { "messages arrive by channel", test_messages_arrive_by_channel },
                  { "last messages come before the end", test_last_messages_come_before_the_end },
                  { "last messages of a server", test_last_messages_of_a_server },
                  { "an old session does nothing", test_an_old_session_does_nothing },
                  { "receipts", test_receipts },
                  { "a replaced client", test_a_replaced_client },
                  { "a moved client", test_a_moved_client },
                  { "refusals have sentences", test_refusals_have_sentences },
                  { "stop and close in a visitor", test_stop_and_close_in_a_visitor },
                  { "nothing is visited after stop", test_nothing_is_visited_after_stop },
                  { "broadcast leaves one out", test_broadcast_leaves_one_out },
                  { "a loopback client", test_a_loopback_client },
                  { "a channel that is not here", test_a_channel_that_is_not_here },
                  { "a kicked client is heard no more", test_a_kicked_client_is_heard_no_more },
                  { "a client kicked at a receipt", test_a_client_kicked_at_a_receipt },
                  { "connecting anew at an end", test_connecting_anew_at_an_end },
                  { "an exception at an end", test_an_exception_at_an_end },
                  { "exceptions pass through", test_exceptions_pass_through },
                  { "packets", test_packets },
                  { "no allocation in a tick", test_no_allocation_in_a_tick },
                  { "views", test_views },
                  { "real sockets", test_real_sockets } };
    netcode::library hold;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    for ( const auto & test : tests ) {
        current_failed = false;
        test.function();
        ( current_failed ? tests_failed : tests_passed )++;
        if ( current_failed )
            std::printf( "FAILED: %s\n", test.name );
    }
    CHECK( other_file() == 4 );
    std::printf( "%d passed, %d failed\n", tests_passed, tests_failed );
    return tests_failed != 0 || current_failed;
}
