/*  ENet in the workloads that peers are compared in (peers.h), in virtual time. The clock and the sockets that are defined here take the
    place of libenet.so's own: its calls of them go through the dynamic linker, which takes the program's first. A static libenet would
    clash with them.

    As an application would set it up, and as near to netcode.h's ends as it can be: packets of up to 1,200 bytes instead of 1,400; no
    limit of bandwidth; channel 0 for a game and 1 for a transfer; as many bytes queued as a send buffer of netcode.h's holds. Its handshake is over
    before a workload begins, on the same delay without losses. */

#include <enet/enet.h>

#include "peers.h"

#define ENET_END_CLOCK 1000.0 /* seconds: ENet takes times near 0 for `never` */
#define HANDSHAKE_SECONDS 10.0

enum { ENET_END_MTU = 1200, ENET_END_PORT = 1000 };

typedef struct {
    ENetHost * host;
    ENetPeer * peer;
    double clock_offset;
    int taken;             /* datagrams of the inbox that were read */
    int queued, may_queue; /* bytes */
    int connected;
} enet_end_t;

static end_t * serving; /* whose calls of the clock and the socket these are */

/* ---- what libenet asks of the system ---- */

enet_uint32 enet_time_get( void )
{
    const enet_end_t * of = (const enet_end_t *) serving->other;
    return (enet_uint32) ( ( serving->world->now + of->clock_offset + ENET_END_CLOCK ) * 1000.0 + 1e-6 );
}

enet_uint32 enet_host_random_seed( void )
{
    return world_random_word();
}

ENetSocket enet_socket_create( ENetSocketType type )
{
    static int next;
    (void) type;
    return 1 + next++ % 1000000;
}

int enet_socket_bind( ENetSocket socket, const ENetAddress * address )
{
    (void) socket, (void) address;
    return 0;
}

int enet_socket_get_address( ENetSocket socket, ENetAddress * address )
{
    (void) socket;
    address->host = 1;
    address->port = (enet_uint16) ( ENET_END_PORT + serving->link );
    return 0;
}

int enet_socket_set_option( ENetSocket socket, ENetSocketOption option, int value )
{
    (void) socket, (void) option, (void) value;
    return 0;
}

void enet_socket_destroy( ENetSocket socket )
{
    (void) socket;
}

int enet_socket_wait( ENetSocket socket, enet_uint32 * condition, enet_uint32 timeout )
{
    (void) socket, (void) timeout;
    *condition = ENET_SOCKET_WAIT_NONE;
    return 0;
}

int enet_socket_send( ENetSocket socket, const ENetAddress * address, const ENetBuffer * buffers, size_t count )
{
    datagram_t * datagram = mail_new();
    size_t bytes = 0;
    (void) socket, (void) address;
    for ( size_t i = 0; i < count; i++ ) {
        if ( bytes + buffers[i].dataLength > sizeof( datagram->data ) )
            abort();
        memcpy( datagram->data + bytes, buffers[i].data, buffers[i].dataLength );
        bytes += buffers[i].dataLength;
    }
    datagram->to = serving->peer;
    datagram->bytes = (int) bytes;
    link_send( &serving->world->links[serving->link], &serving->world->mail, datagram, serving->world->now );
    return (int) bytes;
}

int enet_socket_receive( ENetSocket socket, ENetAddress * address, ENetBuffer * buffers, size_t count )
{
    enet_end_t * of = (enet_end_t *) serving->other;
    (void) socket;
    if ( of->taken == serving->inbox_count || count != 1 )
        return 0;
    datagram_t * datagram = serving->inbox[of->taken++];
    int bytes = datagram->bytes;
    if ( (size_t) bytes > buffers[0].dataLength )
        abort();
    memcpy( buffers[0].data, datagram->data, (size_t) bytes );
    free( datagram );
    if ( address ) {
        address->host = 1;
        address->port = (enet_uint16) ( ENET_END_PORT + !serving->link );
    }
    return bytes;
}

/* ---- an end ---- */

static void enet_end_deliver( end_t * end, const ENetEvent * event )
{
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = event->channelID;
    message.data = event->packet->data;
    message.bytes = (int) event->packet->dataLength;
    if ( end->deliver )
        end->deliver( end, &message );
    enet_packet_destroy( event->packet );
}

static void enet_end_serve( end_t * end )
{
    enet_end_t * of = (enet_end_t *) end->other;
    serving = end;
    do {
        ENetEvent event;
        while ( enet_host_service( of->host, &event, 0 ) > 0 )
            if ( event.type == ENET_EVENT_TYPE_RECEIVE )
                enet_end_deliver( end, &event );
            else {
                of->connected = event.type == ENET_EVENT_TYPE_CONNECT;
                of->peer = event.peer;
            }
    } while ( of->taken < end->inbox_count );
    of->taken = end->inbox_count = 0;
}

static void enet_end_freed( ENetPacket * packet )
{
    *(int *) packet->userData -= (int) packet->dataLength;
}

static int enet_end_send( end_t * end, int channel, int kind, const void * data, int bytes )
{
    enet_end_t * of = (enet_end_t *) end->other;
    enet_uint32 flags = kind >= NETCODE_MESSAGE_RELIABLE ? ENET_PACKET_FLAG_RELIABLE : 0;
    if ( !of->connected || of->queued + bytes > of->may_queue )
        return 0;
    serving = end;
    ENetPacket * packet = enet_packet_create( data, (size_t) bytes, flags );
    if ( !packet )
        abort();
    packet->userData = &of->queued;
    packet->freeCallback = enet_end_freed;
    of->queued += bytes;
    if ( enet_peer_send( of->peer, (enet_uint8) channel, packet ) == 0 )
        return 1;
    enet_packet_destroy( packet );
    return 0;
}

static void enet_end_close( end_t * end )
{
    enet_end_t * of = (enet_end_t *) end->other;
    if ( !of )
        return;
    serving = end;
    enet_host_destroy( of->host );
    free( of );
}

static void enet_end_begin( world_t * world, int side, int transfer )
{
    end_t * end = &world->ends[side];
    enet_end_t * of = (enet_end_t *) zeroed( sizeof( enet_end_t ) );
    ENetAddress listens = { 1, ENET_END_PORT + 1 };
    end->world = world;
    end->index = end->link = side;
    end->peer = !side;
    end->tick = NETWORK_TICK;
    end->other = of;
    end->serve = enet_end_serve;
    of->may_queue = 2 * ( transfer ? TRANSFER_BYTES : 262144 ) + 65536;
    serving = end;
    of->host = enet_host_create( side ? &listens : NULL, 1, CHANNELS, 0, 0 );
    if ( !of->host )
        abort();
    of->host->mtu = of->host->peers[0].mtu = ENET_END_MTU; /* the peer has taken the usual one already */
    if ( !side && !( of->peer = enet_host_connect( of->host, &listens, CHANNELS, 0 ) ) )
        abort();
}

/* Connects two ends in a world of their own, and moves them. */
static end_t * enet_end_open( world_t * world, int transfer, double start_time, double phase )
{
    static world_t quiet;
    path_t path = world->links[0].path;
    path_t silent;
    memset( &silent, 0, sizeof( silent ) );
    memset( &quiet, 0, sizeof( quiet ) );
    silent.delay = path.delay;
    quiet.links[0].path = quiet.links[1].path = silent;
    quiet.end_count = 2;
    for ( int side = 0; side < 2; side++ )
        enet_end_begin( &quiet, side, transfer );
    const enet_end_t * ends[2] = { (enet_end_t *) quiet.ends[0].other, (enet_end_t *) quiet.ends[1].other };
    for ( double until = 0.0; !( ends[0]->connected && ends[1]->connected ); until += path.delay ) {
        world_run( &quiet, until, NULL );
        if ( until > HANDSHAKE_SECONDS ) {
            fprintf( stderr, "enet: no handshake: does libenet use this program's clock and sockets?\n" );
            exit( 2 );
        }
    }
    world_run( &quiet, quiet.now + 3.0 * path.delay, NULL ); /* the last acknowledgements */
    mail_free( &quiet.mail );

    end_t * first = &world->ends[world->end_count];
    for ( int side = 0; side < 2; side++ ) {
        end_t * end = &world->ends[world->end_count];
        *end = quiet.ends[side];
        end->world = world;
        end->index = world->end_count++;
        end->peer = side ? end->index - 1 : end->index + 1;
        end->start_time = start_time;
        end->next_tick = start_time + ( side ? phase * NETWORK_TICK : 0.0 );
        ( (enet_end_t *) end->other )->clock_offset = quiet.now - start_time;
    }
    return first;
}

static const library_t library = { enet_end_open, enet_end_send, enet_end_close };

int main( int argc, char ** argv )
{
    if ( world_random_begin() != 0 || netcode_init() != NETCODE_OK || enet_initialize() != 0 )
        return 2;
    int status = peers_main( argc, argv, "ENet" );
    enet_deinitialize();
    netcode_term();
    return status;
}
