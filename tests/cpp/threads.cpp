/* Two threads at once make tokens, servers and clients of their own: nothing is shared but the library's count of users. */

#define NETCODE_IMPLEMENTATION
#include "netcode.hpp"

#include <thread>

static void use( int * good )
{
    netcode::token_config token;
    token.addresses.push_back( "127.0.0.1:40000" );
    *good = 1;
    for ( int i = 0; i < 50; i++ ) {
        netcode::connect_token made;
        netcode::simulator network;
        netcode::server<> server;
        netcode::server_config config;
        config.network_simulator = network.get();
        config.private_key[0] = 1;
        if ( !netcode::make_token( token, made ) || server.start( "127.0.0.1:40000", config, 2, 0.0 ) )
            *good = 0;
    }
}

int main()
{
    int good[2] = { 0, 0 };
    std::thread first( use, &good[0] ), second( use, &good[1] );
    first.join();
    second.join();
    return good[0] && good[1] ? 0 : 1;
}
