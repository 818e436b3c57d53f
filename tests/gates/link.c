/*  The gates of messages that need no processes: what the core beneath them would hide (it drops copies of packets
    itself), and memory. Prints a line for each: gate|measured|limit|ok. tests/gates/gates.py runs it; alone:

        cc -I. tests/gates/link.c -lsodium -o link && ./link */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKETS = 3, INPUTS = 1000 };

static int failures;

static void row( const char * gate, int good, const char * limit, const char * format, ... )
{
    va_list arguments;
    printf( "%s|", gate );
    va_start( arguments, format );
    vprintf( format, arguments );
    va_end( arguments );
    printf( "|%s|%s\n", limit, good ? "ok" : "beyond" );
    failures += !good;
}

static int receive_numbers( struct netcode_messages_t * messages, uint32_t * numbers, int count )
{
    struct netcode_message_t message;
    while ( netcode_messages_receive( messages, &message ) )
        if ( message.bytes == (int) sizeof( uint32_t ) && count < INPUTS )
            memcpy( &numbers[count++], message.data, sizeof( uint32_t ) );
    return count;
}

/*  The messages 10, 11 and 12, a packet each and nothing else in them: they arrive as 12, 10, 11, and then all of them
    again. */
static void reorder( int kind, const char * gate )
{
    static const int order[PACKETS] = { 2, 0, 1 };
    uint8_t packets[PACKETS][NETCODE_MAX_PACKET_SIZE];
    uint32_t numbers[INPUTS];
    int bytes[PACKETS], count = 0, right = 1, dropped = 0;
    struct netcode_messages_stats_t stats;
    struct netcode_messages_t *from = netcode_messages_create( NULL, 0.0 ), *to = netcode_messages_create( NULL, 0.0 );
    if ( !from || !to )
        abort();
    for ( uint32_t i = 0; i < PACKETS; i++ ) {
        uint32_t number = 10 + i;
        netcode_messages_send( from, 0, kind, &number, sizeof( number ) );
        netcode_messages_update( from, 0.001 * ( i + 1 ) );
        bytes[i] = netcode_messages_generate_packet( from, packets[i], NETCODE_MAX_PACKET_SIZE );
    }
    for ( int round = 0; round < 2; round++ )
        for ( int i = 0; i < PACKETS; i++ )
            dropped += netcode_messages_process_packet( to, packets[order[i]], bytes[order[i]] ) ==
                       NETCODE_MESSAGES_DROP_DUPLICATE;
    count = receive_numbers( to, numbers, count );
    netcode_messages_stats( to, &stats );
    for ( int i = 0; i < count; i++ )
        right = right && numbers[i] - 10 < PACKETS &&
                ( kind == NETCODE_MESSAGE_RELIABLE || numbers[i] == 10 + (uint32_t) i );
    row( gate, count == PACKETS && right && dropped == PACKETS && stats.dropped_duplicates_total == PACKETS,
         "3 once, 3 counted", "%d messages, %d copies counted", count, (int) stats.dropped_duplicates_total );
    netcode_messages_destroy( from );
    netcode_messages_destroy( to );
}

/* Whatever leaves one side comes to the other at once, and every third packet again. Returns the copies. */
static int pump( struct netcode_messages_t * from, struct netcode_messages_t * to, double time )
{
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes, copies = 0;
    netcode_messages_update( from, time );
    while ( ( bytes = netcode_messages_generate_packet( from, packet, (int) sizeof( packet ) ) ) > 0 ) {
        struct netcode_messages_stats_t stats;
        netcode_messages_process_packet( to, packet, bytes );
        netcode_messages_stats( from, &stats );
        if ( stats.packets_sent % 3 == 0 ) {
            netcode_messages_process_packet( to, packet, bytes );
            copies++;
        }
    }
    return copies;
}

/* A network that doubles every third packet: each copy is counted by its name, and no message comes twice. */
static void duplicates( void )
{
    struct netcode_messages_t *a = netcode_messages_create( NULL, 0.0 ), *b = netcode_messages_create( NULL, 0.0 );
    struct netcode_messages_stats_t stats;
    uint32_t numbers[INPUTS], sent = 0;
    int count = 0, copies = 0, in_order = 1;
    if ( !a || !b )
        abort();
    for ( int tick = 1; tick < 2 * INPUTS; tick++ ) {
        if ( sent < INPUTS &&
             netcode_messages_send( a, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, &sent, sizeof( sent ) ) == NETCODE_OK )
            sent++;
        copies += pump( a, b, tick / 60.0 );
        pump( b, a, tick / 60.0 );
        count = receive_numbers( b, numbers, count );
    }
    netcode_messages_stats( b, &stats );
    for ( int i = 0; i < count; i++ )
        in_order = in_order && numbers[i] == (uint32_t) i;
    row( "link: copies of packets counted, messages once",
         count == INPUTS && in_order && copies > INPUTS / 4 && stats.dropped_duplicates_total == (uint64_t) copies,
         "1000 once, all copies", "%d messages, %d of %d copies", count, (int) stats.dropped_duplicates_total, copies );
    netcode_messages_destroy( a );
    netcode_messages_destroy( b );
}

/* Beside the two buffers, which hold the bytes of payloads. */
static void memory( void )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = 4;
    size_t all = netcode_messages_memory( &config ), buffers = 2 * ( 2 * 262144 + 98304 );
    row( "link: memory of 4 channels beside buffers, bytes", all > buffers && all - buffers <= 4096, "<= 4096", "%d",
         (int) ( all - buffers ) );
}

int main( void )
{
    reorder( NETCODE_MESSAGE_RELIABLE, "link: 12, 10, 11, reliable" );
    reorder( NETCODE_MESSAGE_RELIABLE_ORDERED, "link: 12, 10, 11, reliable ordered" );
    duplicates();
    memory();
    return failures ? 3 : 0;
}
