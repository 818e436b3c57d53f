/*  A game over netcode.hpp: a server and two players in one process, over real sockets on loopback. Each player sends its
    steps, the server broadcasts where all are, and chat is relayed; after two seconds one player leaves and the other is
    kicked. It ends with 0 if everybody saw what they should have.

        c++ -std=c++11 -I. -Iexamples/cpp examples/cpp/game.cpp -lsodium -o game && ./game */

#define NETCODE_IMPLEMENTATION
#include "netcode.hpp"

#include <cstdio>

/* ---- what both sides share: the channels, and what their messages hold ---- */

struct steps : netcode::channel<0, netcode::delivery::unreliable_sequenced> { /* 1 byte: how far, 0 to 9 */
};
struct places
    : netcode::channel<1, netcode::delivery::unreliable_sequenced> { /* for each slot 2 bytes, little endian */
};
struct chat : netcode::channel<2, netcode::delivery::reliable_ordered, 1> { /* a text */
};
typedef netcode::server<steps, places, chat> game_server;
typedef netcode::client<steps, places, chat> game_client;

static const uint64_t PROTOCOL_ID = 0x67616d65ull;
enum { SLOTS = 8, PLAYERS = 2, TICKS = 60 };

/* ---- the server's side of the game ---- */

struct host : netcode::visitor {
    game_server server;
    int place[SLOTS];
    int chats, ends;

    host() : place(), chats( 0 ), ends( 0 )
    {
    }
    void connected( game_server::session player )
    {
        place[player.index()] = 0;
        std::printf( "server: player %d is in slot %d\n", static_cast<int>( player.client_id() ), player.index() );
        player.send<chat>( "welcome" );
    }
    void disconnected( game_server::session player, int reason )
    {
        std::printf( "server: player %d is gone, reason %d\n", static_cast<int>( player.client_id() ), reason );
        ends++;
    }
    /* A player can send anything: what a step may be is checked here. */
    void message( game_server::session player, steps, netcode::bytes data )
    {
        if ( data.size() == 1 && data[0] <= 9 )
            place[player.index()] += data[0];
    }
    void message( game_server::session, places, netcode::bytes )
    {
        /* Players do not say where anybody is. */
    }
    void message( game_server::session player, chat, netcode::bytes data )
    {
        if ( data.size() > 100 )
            return;
        chats++;
        server.broadcast<chat>( std::to_string( player.client_id() ) + ": " + data.text(), player );
    }

    void tick( double time )
    {
        uint8_t all[2 * SLOTS];
        server.receive( time, *this );
        for ( int i = 0; i < SLOTS; i++ ) {
            all[2 * i] = static_cast<uint8_t>( place[i] & 255 );
            all[2 * i + 1] = static_cast<uint8_t>( place[i] >> 8 & 255 );
        }
        server.broadcast<places>( all );
        server.flush( time );
    }
};

/* ---- a player's side ---- */

struct player : netcode::visitor {
    game_client client;
    int steps_taken, seen;
    bool was_welcomed, heard_other, has_left;

    player() : steps_taken( 0 ), seen( 0 ), was_welcomed( false ), heard_other( false ), has_left( false )
    {
    }
    void connected( game_client & joined )
    {
        joined.send<chat>( "hello" );
    }
    void disconnected( game_client & left, int state )
    {
        has_left = true;
        std::printf( "a player left: %s\n", state < 0 ? left.report().text : "disconnected" );
    }
    void message( game_client &, steps, netcode::bytes )
    {
    }
    void message( game_client & joined, places, netcode::bytes data )
    {
        std::size_t at = 2 * static_cast<std::size_t>( joined.index() < 0 ? SLOTS : joined.index() );
        if ( at + 1 < data.size() )
            seen = data[at] | data[at + 1] << 8;
    }
    void message( game_client &, chat, netcode::bytes data )
    {
        was_welcomed = was_welcomed || data.text() == "welcome";
        heard_other = heard_other || data.text().find( ": hello" ) != std::string::npos;
    }

    void tick( double time )
    {
        client.receive( time, *this );
        if ( client.connected() && steps_taken < 100 ) {
            uint8_t step = 1;
            client.send<steps>( netcode::bytes( &step, 1 ) );
            steps_taken++;
        }
        client.flush( time );
    }
};

/* ---- both in one process ---- */

/* A backend does this: its servers share the key with it, players never see it. */
static bool send_player_in( player & one, uint64_t client_id, const netcode::private_key & key, uint16_t port,
                            double time )
{
    netcode::token_config token;
    token.protocol_id = PROTOCOL_ID;
    token.client_id = client_id;
    token.key = key;
    token.addresses.push_back( "127.0.0.1:" + std::to_string( port ) );
    netcode::connect_token made;
    netcode::status failed = one.client.open( "127.0.0.1", netcode::client_config(), time );
    if ( failed || !netcode::make_token( token, made ) ) {
        std::printf( "a player can not begin: %s\n", failed ? failed.text() : "no token" );
        return false;
    }
    one.client.connect( made );
    return true;
}

int main()
{
    netcode::library library;
    netcode::private_key key;
    if ( !library )
        return 1;
    netcode_random_bytes( key.data(), static_cast<int>( key.size() ) );

    host game;
    netcode::server_config config;
    config.protocol_id = PROTOCOL_ID;
    config.set_private_key( key );
    config.bind_address = "127.0.0.1";
    config.roaming = 1; /* a player whose address changes stays */
    double time = netcode_time();
    if ( netcode::status failed = game.server.start( "127.0.0.1:0", config, SLOTS, time ) ) {
        std::printf( "the server can not start: %s\n", failed.text() );
        return 1;
    }
    player players[PLAYERS];
    for ( int i = 0; i < PLAYERS; i++ )
        if ( !send_player_in( players[i], static_cast<uint64_t>( i + 1 ), key, game.server.port(), time ) )
            return 1;

    double start = time;
    for ( int tick = 0; tick < 5 * TICKS && !( players[0].has_left && players[1].has_left && game.ends == 2 );
          tick++ ) {
        time = netcode_time();
        for ( int i = 0; i < PLAYERS; i++ )
            players[i].tick( time );
        if ( tick == 2 * TICKS )
            players[0].client.disconnect();
        if ( tick == 3 * TICKS )
            game.server.for_each( []( game_server::session rest ) { rest.disconnect(); } );
        game.tick( time );
        for ( double due = start + ( tick + 1.0 ) / TICKS; netcode_time() < due; )
            netcode_sleep( due - netcode_time() );
    }

    bool good = game.ends == 2 && game.chats == 2;
    for ( const player & one : players ) {
        good =
            good && one.was_welcomed && one.heard_other && one.has_left && one.seen > 50 && one.seen <= one.steps_taken;
        std::printf( "a player took %d steps and saw itself at %d\n", one.steps_taken, one.seen );
    }
    std::printf( good ? "all saw what they should have\n" : "something is missing\n" );
    return good ? 0 : 1;
}
