/*  A link for tests of room 13: two message objects, and packets between them that are delayed, lost, doubled and reordered, all
    from a seed, in virtual time. */

#ifndef MESSAGES_H
#define MESSAGES_H

enum { LINK_PACKETS = 4096 };

struct link_packet_t {
    double arrives;
    int bytes;
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
};

/* One direction. */
struct link_way_t {
    struct link_packet_t * packets;
    int count;
    double delay, jitter;    /* seconds */
    double loss, doubles;    /* 0 to 1 */
    double bytes_per_second; /* 0: no bottleneck */
    double queue_seconds;    /* what the bottleneck's queue holds */
    double busy_until;
    uint64_t sent, lost;
};

struct link_t {
    struct netcode_messages_t * ends[2];
    struct link_way_t ways[2]; /* from 0 to 1, and back */
    double now, step;
    uint64_t random;
    int refused[NETCODE_MESSAGES_DROP_REASONS]; /* what the ends said of packets */
};

static double link_random( struct link_t * link )
{
    link->random ^= link->random << 13;
    link->random ^= link->random >> 7;
    link->random ^= link->random << 17;
    return (double) ( link->random >> 11 ) / 9007199254740992.0;
}

static void link_open( struct link_t * link, const struct netcode_messages_config_t * config, uint64_t seed,
                       double delay, double loss )
{
    memset( link, 0, sizeof( *link ) );
    link->random = seed * 0x9E3779B97F4A7C15u + 1;
    link->step = 1.0 / 60.0;
    for ( int i = 0; i < 2; i++ ) {
        link->ends[i] = netcode_messages_create( config, 0.0 );
        link->ways[i].packets = (struct link_packet_t *) malloc( LINK_PACKETS * sizeof( struct link_packet_t ) );
        if ( !link->ends[i] || !link->ways[i].packets )
            abort();
        link->ways[i].delay = delay;
        link->ways[i].loss = loss;
        link->ways[i].queue_seconds = 0.3;
    }
}

static void link_close( struct link_t * link )
{
    for ( int i = 0; i < 2; i++ ) {
        netcode_messages_destroy( link->ends[i] );
        free( link->ways[i].packets );
    }
}

static void link_put( struct link_t * link, int from, const uint8_t * data, int bytes )
{
    struct link_way_t * way = &link->ways[from];
    int copies = 1 + ( link_random( link ) < way->doubles );
    way->sent++;
    if ( link_random( link ) < way->loss ) {
        way->lost++;
        return;
    }
    while ( copies-- && way->count < LINK_PACKETS ) {
        struct link_packet_t * packet = &way->packets[way->count];
        packet->arrives = link->now + way->delay + way->jitter * link_random( link );
        if ( way->bytes_per_second > 0.0 ) {
            way->busy_until = way->busy_until > link->now ? way->busy_until : link->now;
            if ( way->busy_until - link->now > way->queue_seconds ) {
                way->lost++;
                return;
            }
            way->busy_until += ( bytes + 28 ) / way->bytes_per_second;
            packet->arrives = way->busy_until + way->delay;
        }
        packet->bytes = bytes;
        memcpy( packet->data, data, (size_t) bytes );
        way->count++;
    }
}

/* The next packet for an end that has arrived by now, or 0. */
static int link_get( struct link_t * link, int to, uint8_t * data )
{
    struct link_way_t * way = &link->ways[!to];
    int best = -1;
    for ( int i = 0; i < way->count; i++ )
        if ( way->packets[i].arrives <= link->now &&
             ( best < 0 || way->packets[i].arrives < way->packets[best].arrives ) )
            best = i;
    if ( best < 0 )
        return 0;
    int bytes = way->packets[best].bytes;
    memcpy( data, way->packets[best].data, (size_t) bytes );
    way->packets[best] = way->packets[--way->count];
    return bytes;
}

static void link_pump( struct link_t * link, int end )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    nc_messages_tell_time( link->ends[end], link->now ); /* as the glue does: what arrived is processed in its time */
    while ( ( bytes = link_get( link, end, packet ) ) > 0 )
        link->refused[netcode_messages_process_packet( link->ends[end], packet, bytes )]++;
    netcode_messages_update( link->ends[end], link->now );
    while ( ( bytes = netcode_messages_generate_packet( link->ends[end], packet, (int) sizeof( packet ) ) ) > 0 )
        link_put( link, end, packet, bytes );
}

/* One tick of both ends. */
static void link_tick( struct link_t * link )
{
    link->now += link->step;
    link_pump( link, 0 );
    link_pump( link, 1 );
}

#endif
