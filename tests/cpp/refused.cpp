/* Programs that must not compile: REFUSED names one, 0 is the same program without a mistake. See run.sh. */

#include "netcode.hpp"

struct inputs : netcode::channel<0, netcode::delivery::unreliable_sequenced> {
};
struct chat : netcode::channel<1, netcode::delivery::reliable_ordered> {
};
#if REFUSED == 1
struct same_index : netcode::channel<1, netcode::delivery::reliable> {
};
typedef netcode::server<inputs, chat, same_index> game_server;
#else
struct same_index : netcode::channel<2, netcode::delivery::reliable> {
};
typedef netcode::server<inputs, chat> game_server;
#endif
#if REFUSED == 2
struct outside : netcode::channel<32, netcode::delivery::reliable> {
};
#endif

struct game : netcode::visitor {
    void message( game_server::session, inputs, netcode::bytes )
    {
    }
#if REFUSED != 3
    void message( game_server::session client, chat, netcode::bytes data )
    {
        client.send<chat>( data );
#if REFUSED == 4
        client.send<same_index>( data );
#endif
#if REFUSED == 8
        client.send<chat>( 0 );
#endif
#if REFUSED == 5
        client.send_packet( data );
#endif
    }
#endif
#if REFUSED == 1
    void message( game_server::session, same_index, netcode::bytes )
    {
    }
#endif
};

int main()
{
    game_server server;
    game visitor;
#if REFUSED == 6
    game_server copy( server );
#endif
#if REFUSED == 7
    bool good = server.start( "127.0.0.1:40000", netcode::server_config(), 1, 0.0 );
    (void) good;
#endif
    server.receive( 0.0, visitor );
}
