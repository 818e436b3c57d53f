/*  Prints netcode's statistics as Prometheus text. It needs the C library only. Include it behind netcode.h; with
    NETCODE_MESSAGES it prints those of messages too.

        struct metrics_text_t text = { 0 };                     it grows; metrics_text_give for memory of your own
        struct metrics_histogram_t updates;
        metrics_histogram_init_seconds( &updates );
        for each tick:
            double before = netcode_time();
            netcode_server_update( server, before );
            metrics_observe( &updates, netcode_time() - before );
        each second:
            netcode_server_stats( server, &stats );
            metrics_begin( &text );
            metrics_server( &text, &stats, &updates );       and metrics_paths
            metrics_write_file( &text, "/var/lib/node_exporter/netcode.prom" );   or metrics_http_publish: see http.h
        at the end:
            metrics_text_free( &text );

    Every field of a statistics struct is printed, each reason always, so a series is there before its first event.
    Labels are the names of the library in small letters. A text that could not be written whole is `failed` until the
    next metrics_begin: it is never published and never written to a file.

        cc -I. examples/server.c -lsodium -lm        (which uses it for --metrics-file) */

#ifndef METRICS_H
#define METRICS_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    METRICS_FIRST_BYTES = 16384, /* of a text that grows: a server's takes about 13000 */
    METRICS_MAX_BYTES = 1 << 24,
    METRICS_MAX_BOUNDS = 24, /* of a histogram */
    METRICS_MAX_LABELS = 4,  /* that every sample of a text has */
    METRICS_PATH_BYTES = 1024
};

/* ---- text ---- */

struct metrics_text_t {
    char * data; /* ends with a zero, which `bytes` does not count */
    size_t bytes, capacity;
    int given;  /* the memory is not ours, and does not grow */
    int failed; /* something had no room: what is here is not the whole */
    int labels; /* of the sample that is being written */
    int num_common;
    const char * common_names[METRICS_MAX_LABELS];
    const char * common_values[METRICS_MAX_LABELS];
};

/* Memory of the caller's instead of malloc's. */
static inline void metrics_text_give( struct metrics_text_t * text, char * memory, size_t capacity )
{
    memset( text, 0, sizeof( *text ) );
    text->data = memory;
    text->capacity = capacity;
    text->given = 1;
}

static inline void metrics_text_free( struct metrics_text_t * text )
{
    if ( !text->given )
        free( text->data );
    memset( text, 0, sizeof( *text ) );
}

static inline int metrics_grow( struct metrics_text_t * text, size_t needed )
{
    size_t capacity = text->capacity ? text->capacity : (size_t) METRICS_FIRST_BYTES;
    while ( capacity < needed )
        capacity *= 2;
    if ( text->given || capacity > METRICS_MAX_BYTES )
        return 0;
    char * data = (char *) realloc( text->data, capacity );
    if ( !data )
        return 0;
    text->data = data;
    text->capacity = capacity;
    return 1;
}

static inline void metrics_put_bytes( struct metrics_text_t * text, const char * data, size_t bytes )
{
    if ( text->failed )
        return;
    if ( bytes >= text->capacity - text->bytes && !metrics_grow( text, text->bytes + bytes + 1 ) ) {
        text->failed = 1;
        return;
    }
    memcpy( text->data + text->bytes, data, bytes );
    text->bytes += bytes;
    text->data[text->bytes] = '\0';
}

static inline void metrics_put( struct metrics_text_t * text, const char * words )
{
    metrics_put_bytes( text, words, strlen( words ) );
}

/* A new text in the same memory. */
static inline void metrics_begin( struct metrics_text_t * text )
{
    text->bytes = 0;
    text->failed = 0;
    metrics_put_bytes( text, "", 0 );
}

/*  Every sample has this label from now on. Prometheus adds `instance` and `job` by itself, so this is for what it can
    not know. The strings must outlive the text. 0 when there is no room for another. */
static inline int metrics_label( struct metrics_text_t * text, const char * name, const char * value )
{
    if ( text->num_common >= METRICS_MAX_LABELS )
        return 0;
    text->common_names[text->num_common] = name;
    text->common_values[text->num_common++] = value;
    return 1;
}

/* In a value of a label a backslash, a quote and a line's end are escaped; in a help text quotes stay. */
static inline void metrics_put_escaped( struct metrics_text_t * text, const char * value, int quotes )
{
    for ( ; *value; value++ ) {
        if ( *value == '\\' )
            metrics_put( text, "\\\\" );
        else if ( *value == '\n' )
            metrics_put( text, "\\n" );
        else if ( *value == '"' && quotes )
            metrics_put( text, "\\\"" );
        else
            metrics_put_bytes( text, value, 1 );
    }
}

/* ---- samples ---- */

/* What comes before the samples of a metric: `type` is counter, gauge or histogram. */
static inline void metrics_family( struct metrics_text_t * text, const char * name, const char * type,
                                   const char * help )
{
    metrics_put( text, "# HELP " );
    metrics_put( text, name );
    metrics_put( text, " " );
    metrics_put_escaped( text, help, 0 );
    metrics_put( text, "\n# TYPE " );
    metrics_put( text, name );
    metrics_put( text, " " );
    metrics_put( text, type );
    metrics_put( text, "\n" );
}

/* A label of the sample that metrics_sample has begun. */
static inline void metrics_with( struct metrics_text_t * text, const char * label, const char * value )
{
    metrics_put( text, text->labels++ ? "," : "{" );
    metrics_put( text, label );
    metrics_put( text, "=\"" );
    metrics_put_escaped( text, value, 1 );
    metrics_put( text, "\"" );
}

/* A sample: this, metrics_with for each label of its own, then metrics_count or metrics_real. */
static inline void metrics_sample( struct metrics_text_t * text, const char * name, const char * suffix )
{
    metrics_put( text, name );
    metrics_put( text, suffix );
    text->labels = 0;
    for ( int i = 0; i < text->num_common; i++ )
        metrics_with( text, text->common_names[i], text->common_values[i] );
}

static inline void metrics_value( struct metrics_text_t * text, const char * value )
{
    metrics_put( text, text->labels ? "} " : " " );
    metrics_put( text, value );
    metrics_put( text, "\n" );
}

static inline void metrics_count( struct metrics_text_t * text, uint64_t value )
{
    char number[32];
    snprintf( number, sizeof( number ), "%llu", (unsigned long long) value );
    metrics_value( text, number );
}

/* As Prometheus reads it, whatever the locale's decimal point is. */
static inline void metrics_format_real( char number[32], double value )
{
    if ( value != value )
        snprintf( number, 32, "NaN" );
    else if ( value > 1.7976931348623157e308 || value < -1.7976931348623157e308 )
        snprintf( number, 32, value > 0.0 ? "+Inf" : "-Inf" );
    else
        snprintf( number, 32, "%.15g", value );
    for ( char * at = number; *at; at++ )
        if ( *at == ',' )
            *at = '.';
}

static inline void metrics_real( struct metrics_text_t * text, double value )
{
    char number[32];
    metrics_format_real( number, value );
    metrics_value( text, number );
}

/* Metrics with one sample and no labels of their own. */
static inline void metrics_counter( struct metrics_text_t * text, const char * name, uint64_t value, const char * help )
{
    metrics_family( text, name, "counter", help );
    metrics_sample( text, name, "" );
    metrics_count( text, value );
}

static inline void metrics_gauge( struct metrics_text_t * text, const char * name, double value, const char * help )
{
    metrics_family( text, name, "gauge", help );
    metrics_sample( text, name, "" );
    metrics_real( text, value );
}

/* One sample of a counter with one label. */
static inline void metrics_labelled( struct metrics_text_t * text, const char * name, const char * label,
                                     const char * value, uint64_t count )
{
    metrics_sample( text, name, "" );
    metrics_with( text, label, value );
    metrics_count( text, count );
}

/* ---- histograms ---- */

struct metrics_histogram_t {
    int num_bounds;
    double bounds[METRICS_MAX_BOUNDS]; /* rising */
    uint64_t counts[METRICS_MAX_BOUNDS + 1];
    uint64_t refused; /* values that are no numbers */
    double sum;
};

/* 0 when there are too many bounds, or when they do not rise. */
static inline int metrics_histogram_init( struct metrics_histogram_t * histogram, const double * bounds,
                                          int num_bounds )
{
    memset( histogram, 0, sizeof( *histogram ) );
    if ( num_bounds < 0 || num_bounds > METRICS_MAX_BOUNDS )
        return 0;
    for ( int i = 0; i < num_bounds; i++ ) {
        if ( !isfinite( bounds[i] ) || ( i && !( bounds[i] > bounds[i - 1] ) ) )
            return 0;
        histogram->bounds[i] = bounds[i];
    }
    histogram->num_bounds = num_bounds;
    return 1;
}

/* For what an update takes: 10 us to 1 s. A tick of 60 Hz has 16.7 ms. */
static inline void metrics_histogram_init_seconds( struct metrics_histogram_t * histogram )
{
    static const double bounds[] = { 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                     0.005,   0.01,     0.0167,  0.025,  0.05,    0.1,    0.25,  1.0 };
    metrics_histogram_init( histogram, bounds, (int) ( sizeof( bounds ) / sizeof( bounds[0] ) ) );
}

/* For round trips: 5 ms to 2 s. */
static inline void metrics_histogram_init_round_trips( struct metrics_histogram_t * histogram )
{
    static const double bounds[] = { 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0 };
    metrics_histogram_init( histogram, bounds, (int) ( sizeof( bounds ) / sizeof( bounds[0] ) ) );
}

/* For shares of packets that were lost: none to a half. */
static inline void metrics_histogram_init_losses( struct metrics_histogram_t * histogram )
{
    static const double bounds[] = { 0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5 };
    metrics_histogram_init( histogram, bounds, (int) ( sizeof( bounds ) / sizeof( bounds[0] ) ) );
}

/* 0 and counted apart when it is no number. */
static inline int metrics_observe( struct metrics_histogram_t * histogram, double value )
{
    int place = 0;
    if ( !isfinite( value ) ) {
        histogram->refused++;
        return 0;
    }
    while ( place < histogram->num_bounds && value > histogram->bounds[place] )
        place++;
    histogram->counts[place]++;
    histogram->sum += value;
    return 1;
}

static inline void metrics_histogram( struct metrics_text_t * text, const char * name,
                                      const struct metrics_histogram_t * histogram, const char * help )
{
    uint64_t count = 0;
    metrics_family( text, name, "histogram", help );
    for ( int i = 0; i <= histogram->num_bounds; i++ ) {
        char bound[32];
        metrics_format_real( bound, i < histogram->num_bounds ? histogram->bounds[i] : HUGE_VAL );
        count += histogram->counts[i];
        metrics_sample( text, name, "_bucket" );
        metrics_with( text, "le", bound );
        metrics_count( text, count );
    }
    metrics_sample( text, name, "_sum" );
    metrics_real( text, histogram->sum );
    metrics_sample( text, name, "_count" );
    metrics_count( text, count );
}

/* ---- what clients and servers have in common ---- */

/* The library's name of a reason, in small letters. tolower would ask the locale, and Turkish has another i. */
static inline const char * metrics_lower( char out[48], const char * name )
{
    size_t at = 0;
    for ( ; name[at] && at < 47; at++ )
        out[at] = name[at] >= 'A' && name[at] <= 'Z' ? (char) ( name[at] + ( 'a' - 'A' ) ) : name[at];
    out[at] = '\0';
    return out;
}

/* A type or a reason more in the library needs its name below: this does not compile then. */
enum {
    METRICS_TYPES_ARE_NAMED = 1 / ( NETCODE_PACKET_TYPES == 7 ),
    METRICS_REASONS_ARE_NAMED = 1 / ( NETCODE_SERVER_CLIENT_DISCONNECT_REASONS == 5 )
};

static inline void metrics_packets( struct metrics_text_t * text, const char * name, const uint64_t * sent,
                                    const uint64_t * received )
{
    static const char * const types[NETCODE_PACKET_TYPES] = { "request",    "denied",  "challenge", "response",
                                                              "keep_alive", "payload", "disconnect" };
    metrics_family( text, name, "counter", "Packets that were sent, and accepted ones that were received." );
    for ( int i = 0; i < 2 * NETCODE_PACKET_TYPES; i++ ) {
        metrics_sample( text, name, "" );
        metrics_with( text, "direction", i % 2 ? "received" : "sent" );
        metrics_with( text, "type", types[i / 2] );
        metrics_count( text, i % 2 ? received[i / 2] : sent[i / 2] );
    }
}

static inline void metrics_bytes( struct metrics_text_t * text, const char * name, uint64_t sent, uint64_t received )
{
    metrics_family( text, name, "counter",
                    "Bytes of datagrams without IP and UDP headers; received ones that were dropped count too." );
    metrics_labelled( text, name, "direction", "sent", sent );
    metrics_labelled( text, name, "direction", "received", received );
}

/* The reason 0 is none: nothing is ever counted there. */
static inline void metrics_drops( struct metrics_text_t * text, const char * name, const uint64_t * dropped )
{
    char reason[48];
    metrics_family( text, name, "counter", "Received datagrams that were refused, by reason." );
    for ( int i = 1; i < (int) NETCODE_DROP_REASONS; i++ )
        metrics_labelled( text, name, "reason", metrics_lower( reason, netcode_drop_reason_name( i ) ), dropped[i] );
}

/* The fields of both structs that are printed as they are: X( type, name of the metric, field, help ) */
/* clang-format off */
#define METRICS_COMMON_LIST( X ) \
    X( counter, datagrams_received_total, datagrams_received, "Datagrams that were received, dropped ones too." ) \
    X( counter, send_errors_total, send_errors, "Datagrams that the system refused to send." ) \
    X( counter, receive_errors_total, receive_errors, "Errors that the system reported on receiving, ICMP among them." ) \
    X( counter, kernel_drops_total, kernel_drops, "Datagrams that the system dropped before they were read." ) \
    X( gauge, last_socket_error, last_socket_error, "The system's number of the last socket error; 0 for none." ) \
    X( gauge, receive_buffer_bytes, receive_buffer_bytes, "The socket's receive buffer, as granted." ) \
    X( gauge, send_buffer_bytes, send_buffer_bytes, "The socket's send buffer, as granted." ) \
    X( gauge, packets_queued, packets_queued, "Received payloads that were not read yet." ) \
    X( gauge, packets_held, packets_held, "Payloads that were read and not freed yet." )

#define METRICS_CLIENT_LIST( X ) \
    METRICS_COMMON_LIST( X ) \
    X( counter, connects_total, connects, "Times that the client connected." ) \
    X( counter, disconnects_total, disconnects, "Times that the connection ended." ) \
    X( gauge, round_trip_seconds, round_trip_seconds, "The round trip, smoothed; 0: none was measured." ) \
    X( gauge, round_trip_lowest_seconds, round_trip_lowest_seconds, "The shortest round trip." ) \
    X( gauge, round_trip_variation_seconds, round_trip_variation_seconds, "How much the round trip varies." ) \
    X( counter, packets_lost_total, packets_lost, "The server's packets that did not arrive." ) \
    X( counter, packets_reordered_total, packets_reordered, "The server's packets that came behind a newer one." ) \
    X( gauge, loss_ratio, loss_share, "Lost ones of the server's last packets, 0 to 1." ) \
    X( counter, rebinds_total, rebinds, "Times that the socket took a fresh local address." )

#define METRICS_SERVER_LIST( X ) \
    METRICS_COMMON_LIST( X ) \
    X( gauge, slots, max_clients, "How many clients can be connected." ) \
    X( gauge, clients, clients, "How many clients are connected." ) \
    X( counter, connects_total, connects, "Clients that connected." ) \
    X( gauge, handshakes_pending, pending, "Handshakes pending." ) \
    X( counter, handshakes_total, handshakes, "Handshakes that began." ) \
    X( counter, handshakes_expired_total, handshakes_expired, "Handshakes that ended without a connection." ) \
    X( counter, handshakes_evicted_total, handshakes_evicted, "Handshakes that were evicted for newer ones." ) \
    X( counter, backlogs_total, backlogs, "Updates that ended with work left for the next one." ) \
    X( gauge, tokens_consumed, consumed, "Used connect tokens that are remembered." ) \
    X( counter, probes_sent_total, probes_sent, "Keep-alives that ask for an answer, to measure or to validate a path." ) \
    X( counter, probes_answered_total, probes_answered, "Those whose answer came in time." ) \
    X( counter, moves_total, moves, "Clients' addresses that changed." ) \
    X( counter, path_candidates_total, path_candidates, "Addresses from which a client's packet came, and that were probed." ) \
    X( counter, path_trials_total, trials, "Packets from unknown addresses that were opened with a client's key." ) \
    X( counter, path_trials_refused_total, trials_refused, "Those that were not opened, because a ration was used up." )
/* clang-format on */

/* A counter's value and a gauge's have different types. */
#define METRICS_SERVER_ROW( type, name, field, help ) METRICS_ROW_##type( "netcode_server_" #name, field, help );
#define METRICS_CLIENT_ROW( type, name, field, help ) METRICS_ROW_##type( "netcode_client_" #name, field, help );
#define METRICS_ROW_counter( name, field, help ) metrics_counter( text, name, stats->field, help )
#define METRICS_ROW_gauge( name, field, help ) metrics_gauge( text, name, (double) stats->field, help )

/* ---- servers and clients ---- */

/* `update_seconds`: what netcode_server_update took each time; NULL when it was not measured. */
static inline void metrics_server( struct metrics_text_t * text, const struct netcode_server_stats_t * stats,
                                   const struct metrics_histogram_t * update_seconds )
{
    static const char * const reasons[NETCODE_SERVER_CLIENT_DISCONNECT_REASONS] = { "none", "timed_out", "client",
                                                                                    "server", "replaced" };
    METRICS_SERVER_LIST( METRICS_SERVER_ROW )
    metrics_gauge( text, "netcode_server_clock_seconds", netcode_time(),
                   "The server's own clock when this was written: it stands still where the game does." );
    metrics_packets( text, "netcode_server_packets_total", stats->packets_sent, stats->packets_received );
    metrics_bytes( text, "netcode_server_bytes_total", stats->bytes_sent, stats->bytes_received );
    metrics_drops( text, "netcode_server_packets_dropped_total", stats->dropped );
    metrics_family( text, "netcode_server_disconnects_total", "counter", "Clients that left, by reason." );
    for ( int i = 1; i < NETCODE_SERVER_CLIENT_DISCONNECT_REASONS; i++ )
        metrics_labelled( text, "netcode_server_disconnects_total", "reason", reasons[i], stats->disconnects[i] );
    if ( update_seconds )
        metrics_histogram( text, "netcode_server_update_duration_seconds", update_seconds,
                           "What one netcode_server_update took." );
}

/*  How the packets of a server's clients fare: each client's figures, each time that this is written. Clients in the same
    process have no path; a round trip of 0 was not measured.

        struct metrics_paths_t paths;
        metrics_paths_init( &paths );
        each second, behind metrics_server:
            metrics_paths( &text, &paths, server ); */
struct metrics_paths_t {
    struct metrics_histogram_t round_trips, losses;
};

static inline void metrics_paths_init( struct metrics_paths_t * paths )
{
    metrics_histogram_init_round_trips( &paths->round_trips );
    metrics_histogram_init_losses( &paths->losses );
}

static inline void metrics_paths( struct metrics_text_t * text, struct metrics_paths_t * paths,
                                  struct netcode_server_t * server )
{
    for ( int i = 0; i < netcode_server_max_clients( server ); i++ ) {
        struct netcode_server_client_stats_t stats;
        netcode_server_client_stats( server, i, &stats );
        if ( !stats.confirmed || stats.loopback )
            continue;
        if ( stats.round_trip_seconds > 0.0 )
            metrics_observe( &paths->round_trips, stats.round_trip_seconds );
        metrics_observe( &paths->losses, stats.loss_share );
    }
    metrics_histogram( text, "netcode_server_round_trip_seconds", &paths->round_trips,
                       "Each client's smoothed round trip, each time that this was written." );
    metrics_histogram( text, "netcode_server_loss_ratio", &paths->losses,
                       "Lost ones of each client's last packets, 0 to 1, each time that this was written." );
}

static inline void metrics_client( struct metrics_text_t * text, const struct netcode_client_stats_t * stats )
{
    METRICS_CLIENT_LIST( METRICS_CLIENT_ROW )
    metrics_packets( text, "netcode_client_packets_total", stats->packets_sent, stats->packets_received );
    metrics_bytes( text, "netcode_client_bytes_total", stats->bytes_sent, stats->bytes_received );
    metrics_drops( text, "netcode_client_packets_dropped_total", stats->dropped );
}

/* ---- messages ---- */

#if defined( NETCODE_MESSAGES )

/* X( field, help ): counters, which add up over connections. A metric's name is the field's, and ends in _total. */
/* clang-format off */
#define METRICS_MESSAGES_TOTALS( X ) \
    X( reliable_retries_total, "Messages and fragments that were sent again because a packet was lost." ) \
    X( reliable_timeouts_total, "Reliable messages that were given up." ) \
    X( dropped_duplicates_total, "Packets that came twice." ) \
    X( dropped_old_total, "Packets behind the window." ) \
    X( dropped_window_total, "Packets, or their messages, beyond the window." )

#define METRICS_MESSAGES_COUNTERS( X ) \
    X( packets_sent, "Packets with messages that were sent." ) \
    X( packets_received, "Packets with messages that were taken." ) \
    X( packets_lost, "Sent packets that were taken for lost." ) \
    X( packets_lost_spuriously, "Of these the ones that had arrived after all." ) \
    X( bytes_sent, "Bytes of packets with messages that were sent." ) \
    X( bytes_received, "Bytes of packets with messages that were taken." ) \
    X( messages_sent, "Messages that began to be sent." ) \
    X( messages_received, "Messages that were handed to the application." ) \
    X( messages_repeated, "Small reliable messages sent once more before anything was lost." ) \
    X( messages_duplicate, "Messages that were received again." ) \
    X( messages_outdated, "Sequenced messages that came behind a newer one." ) \
    X( messages_expired, "Messages that were dropped unsent." ) \
    X( messages_unstored, "Unreliable messages that were dropped on arrival, as the application reads too slowly." ) \
    X( probes, "Packets that were sent because nothing was acknowledged for too long." )

/* X( field, name of the metric, how several connections become one, help ) */
#define METRICS_MESSAGES_GAUGES( X ) \
    X( rtt, rtt_seconds, MEAN, "The round trip, smoothed." ) \
    X( rtt_variation, rtt_variation_seconds, MEAN, "How much the round trip varies." ) \
    X( rtt_min, rtt_min_seconds, MEAN, "The shortest round trip." ) \
    X( rtt_latest, rtt_latest_seconds, MEAN, "The newest round trip." ) \
    X( jitter, jitter_seconds, MEAN, "How unevenly packets arrive." ) \
    X( ping, ping_seconds, MEAN, "There and back with the other side's tick: what a player feels." ) \
    X( loss_sent, loss_sent_ratio, MEAN, "Lost ones of the last packets that were sent, 0 to 1." ) \
    X( loss_received, loss_received_ratio, MEAN, "Missing ones of the last packets from the other side, 0 to 1." ) \
    X( send_rate, send_rate_bytes_per_second, SUM, "What is sent now." ) \
    X( receive_rate, receive_rate_bytes_per_second, SUM, "What is received now." ) \
    X( congestion_window, congestion_window_bytes, SUM, "What may be in flight at once." ) \
    X( bytes_in_flight, in_flight_bytes, SUM, "What is in flight." ) \
    X( send_buffer_used, send_buffer_used_bytes, SUM, "Messages that wait or are not acknowledged." ) \
    X( receive_buffer_used, receive_buffer_used_bytes, SUM, "Messages that wait to be read or completed." ) \
    X( credit, credit_bytes, SUM, "Reliable messages that the other side would take now." )
/* clang-format on */

#define METRICS_PRINT_TOTAL( field, help ) metrics_counter( text, "netcode_messages_" #field, stats->field, help );
#define METRICS_PRINT_COUNTER( field, help ) \
    metrics_counter( text, "netcode_messages_" #field "_total", stats->field, help );
#define METRICS_PRINT_GAUGE( field, name, how, help ) \
    metrics_gauge( text, "netcode_messages_" #name, stats->field, help );

/* One connection's, or the sum that struct metrics_messages_t keeps of many. */
static inline void metrics_messages( struct metrics_text_t * text, const struct netcode_messages_stats_t * stats )
{
    const char * name = "netcode_messages_packets_dropped_total";
    char reason[48];
    METRICS_MESSAGES_TOTALS( METRICS_PRINT_TOTAL )
    METRICS_MESSAGES_COUNTERS( METRICS_PRINT_COUNTER )
    METRICS_MESSAGES_GAUGES( METRICS_PRINT_GAUGE )
    metrics_family( text, name, "counter", "Packets with messages that were refused, by reason." );
    for ( int i = 1; i < (int) NETCODE_MESSAGES_DROP_REASONS; i++ )
        metrics_labelled( text, name, "reason", metrics_lower( reason, netcode_messages_drop_reason_name( i ) ),
                          stats->drops[i] );
}

/*  A server has a messages object for each slot, and each begins again from 0 when another client takes the slot. A
    counter must not fall, so what a session has counted is kept when it ends. What it counts between the last
    metrics_messages_slot and its end is lost: call that each time when netcode_messages_pull_from_server returns, or be
    content with what the last second of a session is worth.

        metrics_messages_begin( &all );
        for each slot:
            metrics_messages_slot( &all, slot, session, &stats );         session 0: the slot is free
        metrics_messages( &text, metrics_messages_end( &all ) ); */
struct metrics_messages_slot_t {
    uint64_t session;
    struct netcode_messages_stats_t stats;
};

struct metrics_messages_t {
    struct metrics_messages_slot_t slots[NETCODE_MAX_SLOTS];
    struct netcode_messages_stats_t past, sum;
    int measured; /* connections whose round trip is known */
};

#define METRICS_ADD( field, help ) sum->field += stats->field;
static inline void metrics_messages_add( struct netcode_messages_stats_t * sum,
                                         const struct netcode_messages_stats_t * stats )
{
    METRICS_MESSAGES_TOTALS( METRICS_ADD )
    METRICS_MESSAGES_COUNTERS( METRICS_ADD )
    for ( int i = 0; i < (int) NETCODE_MESSAGES_DROP_REASONS; i++ )
        sum->drops[i] += stats->drops[i];
}
#undef METRICS_ADD

static inline void metrics_messages_begin( struct metrics_messages_t * all )
{
    all->sum = all->past;
    all->measured = 0;
}

#define METRICS_ADD_SUM( field ) all->sum.field += stats->field;
#define METRICS_ADD_MEAN( field ) all->sum.field += stats->rtt > 0.0 ? stats->field : 0.0;
#define METRICS_ADD_GAUGE( field, name, how, help ) METRICS_ADD_##how( field )
static inline void metrics_messages_slot( struct metrics_messages_t * all, int slot, uint64_t session,
                                          const struct netcode_messages_stats_t * stats )
{
    struct metrics_messages_slot_t * last = &all->slots[slot];
    if ( last->session && last->session != session ) {
        metrics_messages_add( &all->past, &last->stats );
        metrics_messages_add( &all->sum, &last->stats );
    }
    last->session = session;
    if ( !session )
        return;
    last->stats = *stats;
    metrics_messages_add( &all->sum, stats );
    METRICS_MESSAGES_GAUGES( METRICS_ADD_GAUGE )
    all->measured += stats->rtt > 0.0;
}

#define METRICS_DIVIDE_SUM( field )
#define METRICS_DIVIDE_MEAN( field ) all->sum.field /= all->measured ? all->measured : 1;
#define METRICS_DIVIDE_GAUGE( field, name, how, help ) METRICS_DIVIDE_##how( field )
static inline const struct netcode_messages_stats_t * metrics_messages_end( struct metrics_messages_t * all )
{
    METRICS_MESSAGES_GAUGES( METRICS_DIVIDE_GAUGE )
    return &all->sum;
}

#endif

/* ---- files ---- */

/*  Puts the text in its place in one step, so that a reader sees the old one or the new one, never a half: for
    node_exporter's textfile collector, which reads files that end in .prom (the temporary one does not). Others may
    read it. The folder should be writable for us alone. 0 on error, and errno says why. */
static inline int metrics_write_file( const struct metrics_text_t * text, const char * path )
{
    char temporary[METRICS_PATH_BYTES];
    int length = snprintf( temporary, sizeof( temporary ), "%s.new", path );
    errno = text->failed || !text->bytes ? ENOMEM : length < (int) sizeof( temporary ) ? 0 : ENAMETOOLONG;
    if ( errno )
        return 0;
    FILE * file = fopen( temporary, "wb" );
    if ( !file )
        return 0;
    int good = fwrite( text->data, 1, text->bytes, file ) == text->bytes;
    good = fclose( file ) == 0 && good;
#ifdef _WIN32
    if ( good )
        remove( path ); /* rename does not replace there: for a moment there is no file */
#endif
    good = good && rename( temporary, path ) == 0;
    if ( !good ) {
        int error = errno;
        remove( temporary );
        errno = error;
    }
    return good;
}

#endif
