/*  What examples/match_server.c and examples/loadgen.c share: the messages that they exchange, what is measured of
    them, and how it is printed. Include it behind netcode.h with NETCODE_MESSAGES.

    Both take the private key from NETCODE_PRIVATE_KEY in the environment, 64 hex digits. Without it they share a key
    that everybody can read here: so the server then refuses every address but the loopback's. */

#ifndef MATCH_H
#define MATCH_H

#include "pong_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_PROTOCOL_ID 0x506f6e6700000001ull /* "Pong", version 1 */
#define MATCH_ADDRESS "127.0.0.1:40000"
#define MATCH_PUBLIC_KEY_NOTE \
    "no NETCODE_PRIVATE_KEY: the key that stands in examples/match.h is used, on loopback only"

/* Channels. Losses on one never delay another. */
enum {
    MATCH_INPUTS, /* inputs, and what the application says of each: they share a kind, chosen by the load generator */
    MATCH_SNAPSHOTS, /* unreliable sequenced: only the newest counts */
    MATCH_SCORES,    /* reliable ordered */
    MATCH_FILES      /* reliable: large, in the background */
};

/* The first byte of a message. Numbers are little-endian, times are microseconds of the machine's monotonic clock. */
enum {
    MATCH_INPUT = 1, /* flags 1, move 1 (0 to 2), number 4, time 8 */
    MATCH_ACK,       /* an input's flags 1, its number 4, its time 8, the server's time 8 */
    MATCH_SNAPSHOT,  /* flags 1 (0), time 8, last input 4, PONG_BYTES */
    MATCH_SCORE,     /* number 4, scores 1 each */
    MATCH_FILE       /* number 4, bytes that follow from it */
};

enum {
    MATCH_MEASURED = 1, /* flags: the warm-up is over */
    MATCH_BESIDE = 2,   /* this player has files beside its game */
    MATCH_GROUPS = 2,   /* players without and with them, measured apart */
    MATCH_INPUT_BYTES = 15,
    MATCH_ACK_BYTES = 22,
    MATCH_SNAPSHOT_BYTES = 14 + PONG_BYTES,
    MATCH_SCORE_BYTES = 7,
    MATCH_FILE_HEADER_BYTES = 5,
    MATCH_FILE_MOST_BYTES = 262144,
    MATCH_BINS = 50000
};

/* ---- the key ---- */

static inline int match_hex_digit( char digit )
{
    const char * digits = "0123456789abcdef";
    const char * at = digit ? strchr( digits, digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit ) : NULL;
    return at ? (int) ( at - digits ) : -1;
}

/* 1: the environment's, 0: the one that everybody knows, -1: the environment's is none. */
static inline int match_key( uint8_t key[NETCODE_KEY_BYTES] )
{
    const char * text = getenv( "NETCODE_PRIVATE_KEY" );
    if ( !text || !*text ) {
        for ( int i = 0; i < NETCODE_KEY_BYTES; i++ )
            key[i] = (uint8_t) ( 0x60 + i );
        return 0;
    }
    if ( strlen( text ) != 2 * NETCODE_KEY_BYTES )
        return -1;
    for ( int i = 0; i < NETCODE_KEY_BYTES; i++ ) {
        int high = match_hex_digit( text[2 * i] ), low = match_hex_digit( text[2 * i + 1] );
        if ( high < 0 || low < 0 )
            return -1;
        key[i] = (uint8_t) ( high * 16 + low );
    }
    return 1;
}

static inline int match_is_loopback( const char * text )
{
    struct netcode_address_t address;
    if ( netcode_parse_address( text, &address ) != NETCODE_OK )
        return 0;
    if ( address.type == NETCODE_ADDRESS_IPV4 )
        return address.data.ipv4[0] == 127;
    return !strncmp( text, "[::1]", 5 ) || !strcmp( text, "::1" );
}

/* Without this a host name would be taken for an address that is not loopback. */
static inline int match_is_address( const char * who, const char * text )
{
    struct netcode_address_t address;
    if ( netcode_parse_address( text, &address ) == NETCODE_OK )
        return 1;
    fprintf( stderr, "%s: %s is no address in numbers, like 127.0.0.1:40000; host names are not resolved\n", who,
             text );
    return 0;
}

/* 0, and `who` says why, where there is no key, or only the one that everybody knows and it is not for this address. */
static inline int match_key_for( const char * who, const char * address, uint8_t key[NETCODE_KEY_BYTES] )
{
    int known = match_key( key );
    if ( !match_is_address( who, address ) )
        return 0;
    if ( known > 0 || ( known == 0 && match_is_loopback( address ) ) )
        return 1;
    fprintf( stderr, "%s: %s\n", who, known < 0 ? "NETCODE_PRIVATE_KEY is not 64 hex digits" : MATCH_PUBLIC_KEY_NOTE );
    return 0;
}

/* What a client is bound to that wants to reach this address. */
static inline const char * match_client_address( const char * address )
{
    struct netcode_address_t parsed;
    int is_v6 = netcode_parse_address( address, &parsed ) == NETCODE_OK && parsed.type == NETCODE_ADDRESS_IPV6;
    return match_is_loopback( address ) ? is_v6 ? "[::1]:0" : "127.0.0.1:0" : is_v6 ? "::" : "0.0.0.0";
}

/* ---- bytes ---- */

static inline uint8_t * match_put( uint8_t * out, uint64_t value, int bytes )
{
    for ( ; bytes--; value >>= 8 )
        *out++ = (uint8_t) value;
    return out;
}

static inline uint64_t match_get( const uint8_t * data, int bytes )
{
    uint64_t value = 0;
    while ( bytes-- )
        value = value << 8 | data[bytes];
    return value;
}

static inline uint64_t match_microseconds( double time )
{
    return (uint64_t) ( time * 1e6 );
}

/* ---- durations: how many of each tenth (or whatever `bin` is) of a millisecond ---- */

struct durations_t {
    double bin; /* seconds */
    uint64_t count;
    double sum, longest;
    uint32_t bins[MATCH_BINS];
};

static inline void durations_add( struct durations_t * durations, double seconds )
{
    int bin =
        seconds > 0.0 ? (int) ( seconds / durations->bin < MATCH_BINS ? seconds / durations->bin : MATCH_BINS - 1 ) : 0;
    durations->bins[bin]++;
    durations->count++;
    durations->sum += seconds;
    durations->longest = seconds > durations->longest ? seconds : durations->longest;
}

/* Between two times in microseconds. */
static inline void durations_add_since( struct durations_t * durations, uint64_t from, double now )
{
    uint64_t to = match_microseconds( now );
    durations_add( durations, to > from ? (double) ( to - from ) * 1e-6 : 0.0 );
}

static inline double durations_percentile( const struct durations_t * durations, double percent )
{
    double wanted = percent / 100.0 * (double) durations->count, seen = 0.0;
    for ( int i = 0; i < MATCH_BINS - 1; i++ ) {
        seen += durations->bins[i];
        if ( seen >= wanted && seen > 0.0 )
            return ( i + 1 ) * durations->bin < durations->longest ? ( i + 1 ) * durations->bin : durations->longest;
    }
    return durations->longest;
}

/* ---- counters of messages, summed over connections ---- */

/* clang-format off */
#define MATCH_COUNTERS( X ) \
    X( reliable_retries_total ) X( reliable_timeouts_total ) X( dropped_duplicates_total ) X( dropped_old_total ) \
    X( dropped_window_total ) X( packets_sent ) X( packets_received ) X( packets_lost ) X( packets_lost_spuriously ) \
    X( bytes_sent ) X( bytes_received ) X( messages_sent ) X( messages_received ) X( messages_repeated ) \
    X( messages_duplicate ) X( messages_outdated ) X( messages_expired ) X( messages_unstored ) X( probes )
/* clang-format on */

static inline void counters_add( struct netcode_messages_stats_t * sum, struct netcode_messages_t * messages )
{
    struct netcode_messages_stats_t stats;
    netcode_messages_stats( messages, &stats );
#define MATCH_ADD( name ) sum->name += stats.name;
    MATCH_COUNTERS( MATCH_ADD )
#undef MATCH_ADD
    for ( int i = 0; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        sum->drops[i] += stats.drops[i];
}

/* ---- the report: JSON, or the same as lines of text ---- */

struct report_t {
    int json, depth, entries;
};

static inline void report_name( struct report_t * report, const char * name )
{
    if ( report->json )
        printf( "%s\n%*s\"%s\": ", report->entries ? "," : "", 2 * report->depth, "", name );
    else
        printf( "\n%*s%-28s ", 2 * report->depth - 2, "", name );
    report->entries++;
}

static inline void report_open( struct report_t * report, const char * name )
{
    if ( name )
        report_name( report, name );
    if ( report->json )
        putchar( '{' );
    report->depth++;
    report->entries = 0;
}

static inline void report_close( struct report_t * report )
{
    report->depth--;
    report->entries = 1;
    if ( report->json )
        printf( "\n%*s}", 2 * report->depth, "" );
    if ( report->depth == 0 ) {
        putchar( '\n' );
        fflush( stdout );
    }
}

static inline void report_count( struct report_t * report, const char * name, uint64_t value )
{
    report_name( report, name );
    printf( "%llu", (unsigned long long) value );
}

static inline void report_real( struct report_t * report, const char * name, double value )
{
    report_name( report, name );
    printf( "%.3f", value );
}

static inline void report_durations( struct report_t * report, const char * name, const struct durations_t * durations )
{
    report_open( report, name );
    report_count( report, "count", durations->count );
    report_real( report, "mean", durations->count ? durations->sum * 1e3 / (double) durations->count : 0.0 );
    report_real( report, "p50", durations_percentile( durations, 50.0 ) * 1e3 );
    report_real( report, "p90", durations_percentile( durations, 90.0 ) * 1e3 );
    report_real( report, "p99", durations_percentile( durations, 99.0 ) * 1e3 );
    report_real( report, "p99_9", durations_percentile( durations, 99.9 ) * 1e3 );
    report_real( report, "max", durations->longest * 1e3 );
    report_close( report );
}

/* Of the players without files, and of those with them. */
static inline void report_groups( struct report_t * report, const char * name, const struct durations_t * groups )
{
    report_open( report, name );
    report_durations( report, "alone", &groups[0] );
    report_durations( report, "beside_files", &groups[1] );
    report_close( report );
}

static inline void report_counters( struct report_t * report, const struct netcode_messages_stats_t * sum )
{
    report_open( report, "messages" );
#define MATCH_REPORT( name ) report_count( report, #name, sum->name );
    MATCH_COUNTERS( MATCH_REPORT )
#undef MATCH_REPORT
    for ( int i = 1; i < NETCODE_MESSAGES_DROP_REASONS; i++ )
        if ( sum->drops[i] )
            report_count( report, netcode_messages_drop_reason_name( i ), sum->drops[i] );
    report_close( report );
}

/* What the core dropped, by reason: copies that the network made are REPLAYED here, before the messages see them. */
static inline void report_drops( struct report_t * report, const uint64_t dropped[NETCODE_DROP_REASONS] )
{
    report_open( report, "dropped" );
    for ( int i = 0; i < (int) NETCODE_DROP_REASONS; i++ )
        if ( dropped[i] )
            report_count( report, netcode_drop_reason_name( i ), dropped[i] );
    report_close( report );
}

/* ---- files: one after the other, as one message each ---- */

struct sending_t {
    int bytes;           /* of each file; 0: none are sent */
    int limit;           /* how many; 0: until the end */
    double pause;        /* seconds between two */
    int busy;            /* one is on its way */
    int acked_bytes;     /* of that one */
    int begun, finished; /* files */
    double begin_time, next_time;
    uint64_t acked_total; /* bytes of all, from the end of the warm-up on */
};

static inline uint8_t match_file_byte( uint32_t number, int at )
{
    return (uint8_t) ( ( number + 1 ) * 31 + (uint32_t) at * 7 + (uint32_t) ( at >> 8 ) );
}

/* Starts the next file when it is time to. */
static inline void sending_start( struct sending_t * sending, struct netcode_messages_t * messages, double now )
{
    static uint8_t data[MATCH_FILE_MOST_BYTES];
    struct netcode_message_t message;
    if ( sending->bytes == 0 || sending->busy || now < sending->next_time ||
         ( sending->limit && sending->begun >= sending->limit ) )
        return;
    data[0] = MATCH_FILE;
    match_put( data + 1, (uint64_t) sending->begun, 4 );
    for ( int i = MATCH_FILE_HEADER_BYTES; i < sending->bytes; i++ )
        data[i] = match_file_byte( (uint32_t) sending->begun, i );
    memset( &message, 0, sizeof( message ) );
    message.channel = MATCH_FILES;
    message.kind = NETCODE_MESSAGE_RELIABLE;
    message.data = data;
    message.bytes = sending->bytes;
    message.receipt = (uint64_t) sending->begun + 1;
    if ( netcode_messages_send_message( messages, &message ) != NETCODE_OK )
        return; /* no room yet: the next tick tries again */
    sending->busy = 1;
    sending->begun++;
    sending->acked_bytes = 0;
    sending->begin_time = now;
}

/* What became of files. `took`, if it is not NULL, records how long each took; `counts`: the warm-up is over. */
static inline void sending_events( struct sending_t * sending, struct netcode_messages_t * messages, double now,
                                   int counts, struct durations_t * took )
{
    struct netcode_messages_event_t event;
    while ( netcode_messages_event( messages, &event ) ) {
        int done = event.type == NETCODE_MESSAGES_EVENT_ACKED      ? sending->bytes
                   : event.type == NETCODE_MESSAGES_EVENT_PROGRESS ? event.bytes_done
                                                                   : sending->acked_bytes;
        if ( counts )
            sending->acked_total += (uint64_t) ( done - sending->acked_bytes );
        sending->acked_bytes = done;
        if ( event.type != NETCODE_MESSAGES_EVENT_ACKED )
            continue;
        sending->busy = 0;
        sending->finished++;
        sending->next_time = now + sending->pause;
        if ( took && counts )
            durations_add( took, now - sending->begin_time );
    }
}

static inline int match_file_is_right( const uint8_t * data, int bytes )
{
    uint32_t number = bytes >= MATCH_FILE_HEADER_BYTES ? (uint32_t) match_get( data + 1, 4 ) : 0;
    for ( int i = MATCH_FILE_HEADER_BYTES; i < bytes; i++ )
        if ( data[i] != match_file_byte( number, i ) )
            return 0;
    return bytes >= MATCH_FILE_HEADER_BYTES;
}

/* ---- options that both have ---- */

static inline int match_number( const char * text, double lowest, double highest, double * value )
{
    char * end = NULL;
    double number = strtod( text, &end );
    if ( end == text || *end != '\0' || !( number >= lowest && number <= highest ) )
        return 0;
    *value = number;
    return 1;
}

/* --congestion, --rate and the files; 0 where it is none of them or its value is wrong. */
static inline int match_option( const char * name, const char * text, struct netcode_messages_config_t * config,
                                struct sending_t * sending )
{
    double number = 0.0;
    if ( !strcmp( name, "--congestion" ) ) {
        config->congestion = !strcmp( text, "fixed" )  ? NETCODE_MESSAGES_CONGESTION_FIXED
                             : !strcmp( text, "none" ) ? NETCODE_MESSAGES_CONGESTION_NONE
                                                       : NETCODE_MESSAGES_CONGESTION_ADAPTIVE;
        return config->congestion != NETCODE_MESSAGES_CONGESTION_ADAPTIVE || !strcmp( text, "adaptive" );
    }
    if ( !strcmp( name, "--rate" ) && match_number( text, 1.0, 1e9, &number ) )
        config->bytes_per_second = (int) number;
    else if ( !strcmp( name, "--file" ) && match_number( text, 0.0, MATCH_FILE_MOST_BYTES, &number ) )
        sending->bytes = (int) number;
    else if ( !strcmp( name, "--files" ) && match_number( text, 0.0, 1e6, &number ) )
        sending->limit = (int) number;
    else if ( !strcmp( name, "--file-pause" ) && match_number( text, 0.0, 1e6, &number ) )
        sending->pause = number;
    else
        return 0;
    return sending->bytes == 0 || sending->bytes >= MATCH_FILE_HEADER_BYTES;
}

#endif
