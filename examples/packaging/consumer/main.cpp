/*  What main.c does, as C++11: objects that destroy themselves, and a session in memory. The library is compiled in
    netcode.cpp or netcode.c. From the top of the repository:

        cd examples/packaging/consumer
        c++ -std=c++11 -I../../.. main.cpp netcode.cpp -lsodium -o consumer && ./consumer */

#include <netcode.h>

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

const uint64_t protocol_id = 0x1122334455667788u;
const char * const server_address = "127.0.0.1:40000"; // on the simulated network
const int wanted_echoes = 5;

struct destroy_t {
    void operator()( netcode_network_simulator_t * network ) const
    {
        netcode_network_simulator_destroy( network );
    }
    void operator()( netcode_server_t * server ) const
    {
        netcode_server_destroy( server );
    }
    void operator()( netcode_client_t * client ) const
    {
        netcode_client_destroy( client );
    }
};

template <typename T> using owned = std::unique_ptr<T, destroy_t>;
using token_t = std::array<uint8_t, NETCODE_CONNECT_TOKEN_BYTES>;

template <typename T> owned<T> made( T * object, const char * what )
{
    if ( object == nullptr )
        throw std::runtime_error( what );
    return owned<T>( object );
}

class session_t
{
  public:
    session_t() : network( made( netcode_network_simulator_create( nullptr, nullptr, nullptr ), "simulator" ) )
    {
        token_t token = open_server();
        netcode_client_config_t config;
        netcode_default_client_config( &config );
        config.events = 1;
        config.network_simulator = network.get();
        client = made( netcode_client_create( "127.0.0.1:50000", &config, 0.0 ), "client" );
        netcode_client_connect( client.get(), token.data() );
        network->latency_milliseconds = 50;
        network->packet_loss_percent = 5;
    }

    int play()
    {
        for ( int tick = 0; tick < 200 && echoes < wanted_echoes; tick++ )
            step( tick * 0.1 );
        return echoes;
    }

  private:
    token_t open_server()
    {
        token_t token;
        netcode_server_config_t config;
        netcode_default_server_config( &config );
        config.events = 1;
        config.protocol_id = protocol_id;
        config.network_simulator = network.get();
        netcode_random_bytes( config.private_key, NETCODE_KEY_BYTES );
        server = made( netcode_server_create( server_address, &config, 0.0 ), "server" );
        netcode_server_start( server.get(), 4 );
        const char * address = server_address;
        if ( netcode_generate_connect_token( 1, &address, &address, 30, 5, 1001, protocol_id, config.private_key,
                                             nullptr, token.data() ) != NETCODE_OK )
            throw std::runtime_error( "token" );
        return token;
    }

    void step( double time )
    {
        netcode_event_t event;
        netcode_network_simulator_update( network.get(), time );
        netcode_server_update( server.get(), time );
        while ( netcode_server_next_event( server.get(), &event ) ) {
            if ( event.type != NETCODE_EVENT_PAYLOAD )
                continue;
            netcode_server_send_packet( server.get(), event.client_index, event.data, event.bytes );
            netcode_server_free_packet( server.get(), event.data );
        }
        netcode_client_update( client.get(), time );
        while ( netcode_client_next_event( client.get(), &event ) ) {
            if ( event.type != NETCODE_EVENT_PAYLOAD )
                continue;
            echoes += std::string( event.data, event.data + event.bytes ) == "hello";
            netcode_client_free_packet( client.get(), event.data );
        }
        netcode_client_send_packet( client.get(), reinterpret_cast<const uint8_t *>( "hello" ), 5 );
    }

    owned<netcode_network_simulator_t> network; // first made, last destroyed
    owned<netcode_server_t> server;
    owned<netcode_client_t> client;
    int echoes = 0;
};

int play()
{
    try {
        return session_t().play();
    } catch ( const std::exception & missing ) {
        std::fprintf( stderr, "can not make the %s\n", missing.what() );
        return 0;
    }
}

} // namespace

int main()
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    int echoes = play();
    netcode_term();
    std::printf( "C++, header %s, library %s, %d payloads came back\n", NETCODE_VERSION_FULL, netcode_version(),
                 echoes );
    return echoes == wanted_echoes && std::string( NETCODE_VERSION_FULL ) == netcode_version() ? 0 : 1;
}
