/*  A live view of a server, in a terminal: slots, rates, drops by reason, how long updates and round trips take. It reads
    what metrics.h has printed, over HTTP or from a .prom file, once a second.

        make build/metrics-top            (libcurl, ncurses)
        ./build/metrics-top 9101                                 http://127.0.0.1:9101/metrics
        ./build/metrics-top http://10.0.0.5:9101/metrics
        ./build/metrics-top /var/lib/node_exporter/netcode.prom
        ./build/metrics-top 9101 --snapshot                      one screen as text, for scripts
        ./build/metrics-top --help

    q ends it, p holds the picture. A source that goes away is said so, and may return. */

#include <ctype.h>
#include <curl/curl.h>
#include <curses.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_TEXT = 1 << 20, /* bytes of a source: beyond that it is none of ours */
    MAX_SAMPLES = 8192,
    MAX_ROWS = 120,
    MAX_COLS = 240,
    MAX_REASONS = 64,
    MAX_BUCKETS = 64,
    HISTORY = 6, /* rates are over so many readings */
    TIMEOUT_MS = 2000,
    STILL_SECONDS = 5 /* a source that says the same for longer stands still */
};

/* ---- text into samples ---- */

struct sample_t {
    const char * name;
    const char * labels; /* what stands between the braces, or "" */
    double value;
};

/* One reading: names and labels point into its text. */
struct reading_t {
    char * text;
    size_t bytes;
    int num_samples, bad_lines;
    double received, clock; /* the clock is the server's own, or ours where it reports none */
    struct sample_t samples[MAX_SAMPLES];
};

static double time_now( void )
{
    struct timespec now;
    clock_gettime( CLOCK_MONOTONIC, &now );
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* The brace that ends the labels, or NULL; braces in quotes do not count. */
static char * end_of_labels( char * at )
{
    int quoted = 0;
    for ( ; *at; at++ ) {
        if ( quoted && *at == '\\' && at[1] )
            at++;
        else if ( *at == '"' )
            quoted = !quoted;
        else if ( *at == '}' && !quoted )
            return at;
    }
    return NULL;
}

/* Cuts a line into its parts in place; 0 when it is none. */
static int parse_sample( char * line, struct sample_t * sample )
{
    static char nothing[] = "";
    char *at = line, *end;
    while ( isalnum( (unsigned char) *at ) || *at == '_' || *at == ':' )
        at++;
    if ( at == line || isdigit( (unsigned char) *line ) )
        return 0;
    sample->name = line;
    sample->labels = nothing;
    if ( *at == '{' ) {
        *at++ = '\0';
        sample->labels = at;
        at = end_of_labels( at );
        if ( !at )
            return 0;
    } else if ( *at != ' ' && *at != '\t' )
        return 0;
    *at++ = '\0';
    sample->value = strtod( at, &end );
    return end != at && ( !*end || isspace( (unsigned char) *end ) );
}

static void parse_reading( struct reading_t * reading )
{
    char * next;
    reading->num_samples = reading->bad_lines = 0;
    for ( char * line = reading->text; line && *line; line = next ) {
        next = strchr( line, '\n' );
        if ( next )
            *next++ = '\0';
        if ( !*line || *line == '#' || *line == '\r' )
            continue;
        if ( reading->num_samples < MAX_SAMPLES && parse_sample( line, &reading->samples[reading->num_samples] ) )
            reading->num_samples++;
        else
            reading->bad_lines++;
    }
}

/* The value of a label, cut to the room there is; 0 when it is not there. Only names that metrics.h writes are looked for. */
static int label_of( const char * labels, const char * label, char out[64] )
{
    size_t length = strlen( label ), bytes = 0;
    const char * at = labels;
    while ( ( at = strstr( at, label ) ) != NULL ) {
        if ( ( at == labels || at[-1] == ',' ) && at[length] == '=' && at[length + 1] == '"' )
            break;
        at += length;
    }
    if ( !at )
        return 0;
    for ( at += length + 2; *at && *at != '"' && bytes < 63; at++ )
        out[bytes++] = isprint( (unsigned char) *at ) ? *at : '?';
    out[bytes] = '\0';
    return 1;
}

struct label_t {
    const char *name, *value;
};

static int fits( const struct sample_t * sample, const struct label_t * label )
{
    char value[64];
    return !label->name || ( label_of( sample->labels, label->name, value ) && !strcmp( value, label->value ) );
}

/* The sum of all samples of that name with these labels; NaN when there is none. */
static double sum_of( const struct reading_t * reading, const char * name, struct label_t first, struct label_t second )
{
    double sum = 0.0;
    int found = 0;
    for ( int i = 0; reading && i < reading->num_samples; i++ ) {
        const struct sample_t * sample = &reading->samples[i];
        if ( !strcmp( sample->name, name ) && fits( sample, &first ) && fits( sample, &second ) ) {
            sum += sample->value;
            found = 1;
        }
    }
    return found ? sum : (double) NAN;
}

static const struct label_t any = { NULL, NULL };

static struct label_t with( const char * name, const char * value )
{
    struct label_t label = { name, value };
    return label;
}

/* ---- the source ---- */

struct source_t {
    const char * path; /* of a file, or NULL */
    char url[512];
    CURL * curl;
    char error[CURL_ERROR_SIZE + 32]; /* why the last reading failed; "" when it did not */
    double gone_since;
};

struct buffer_t {
    char * data;
    size_t bytes;
};

static size_t on_data( char * data, size_t size, size_t count, void * context )
{
    struct buffer_t * buffer = (struct buffer_t *) context;
    size_t bytes = size * count;
    if ( bytes > MAX_TEXT - buffer->bytes )
        return 0;
    memcpy( buffer->data + buffer->bytes, data, bytes );
    buffer->bytes += bytes;
    return bytes;
}

static int fetch_url( struct source_t * source, struct buffer_t * buffer )
{
    long status = 0;
    char error[CURL_ERROR_SIZE] = "";
    curl_easy_setopt( source->curl, CURLOPT_WRITEDATA, buffer );
    curl_easy_setopt( source->curl, CURLOPT_ERRORBUFFER, error );
    CURLcode code = curl_easy_perform( source->curl );
    curl_easy_getinfo( source->curl, CURLINFO_RESPONSE_CODE, &status );
    if ( code != CURLE_OK )
        snprintf( source->error, sizeof( source->error ), "%s", *error ? error : curl_easy_strerror( code ) );
    else if ( status != 200 )
        snprintf( source->error, sizeof( source->error ), "the answer is HTTP %ld", status );
    else
        return 1;
    return 0;
}

static int fetch_file( struct source_t * source, struct buffer_t * buffer )
{
    FILE * file = fopen( source->path, "rb" );
    if ( file ) {
        buffer->bytes = fread( buffer->data, 1, MAX_TEXT, file );
        int error = ferror( file ) ? errno : getc( file ) != EOF ? EFBIG : 0;
        fclose( file );
        if ( !error )
            return 1;
        errno = error;
    }
    snprintf( source->error, sizeof( source->error ), "%s", strerror( errno ) );
    return 0;
}

static int open_source( struct source_t * source, const char * name )
{
    size_t digits = strspn( name, "0123456789" );
    if ( digits && !name[digits] )
        snprintf( source->url, sizeof( source->url ), "http://127.0.0.1:%s/metrics", name );
    else if ( !strncmp( name, "http://", 7 ) || !strncmp( name, "https://", 8 ) )
        snprintf( source->url, sizeof( source->url ), "%s", name );
    else {
        source->path = name;
        return 1;
    }
    source->curl = curl_easy_init();
    if ( !source->curl )
        return 0;
    curl_easy_setopt( source->curl, CURLOPT_URL, source->url );
    curl_easy_setopt( source->curl, CURLOPT_PROXY, "" );
    curl_easy_setopt( source->curl, CURLOPT_NOSIGNAL, 1L );
    curl_easy_setopt( source->curl, CURLOPT_TIMEOUT_MS, (long) TIMEOUT_MS );
    curl_easy_setopt( source->curl, CURLOPT_WRITEFUNCTION, on_data );
    return 1;
}

/* ---- what is shown: two readings some seconds apart ---- */

struct app_t {
    struct source_t source;
    struct reading_t * readings[HISTORY + 1]; /* the newest first; the last one is spare */
    int num_readings;
    char * raw; /* the newest text, whole: the reading's own is cut up */
    size_t raw_bytes;
    double changed, period;
    int held, snapshot, rows, cols; /* rows and cols: of the snapshot */
};

static void push_reading( struct app_t * app )
{
    struct reading_t * newest = app->readings[HISTORY];
    memmove( app->readings + 1, app->readings, HISTORY * sizeof( app->readings[0] ) );
    app->readings[0] = newest;
    app->num_readings += app->num_readings < HISTORY;
}

/* A server that began anew counts from 0 again: what was read before is no base for rates. */
static void take_reading( struct app_t * app, double now )
{
    struct reading_t * reading = app->readings[HISTORY];
    memcpy( reading->text, app->raw, app->raw_bytes );
    reading->text[app->raw_bytes] = '\0';
    parse_reading( reading );
    double clock = sum_of( reading, "netcode_server_clock_seconds", any, any );
    reading->received = now;
    reading->clock = isfinite( clock ) ? clock : now;
    push_reading( app );
    if ( app->num_readings > 1 ) {
        double after = sum_of( reading, "netcode_server_datagrams_received_total", any, any );
        double before = sum_of( app->readings[1], "netcode_server_datagrams_received_total", any, any );
        if ( after < before || reading->clock <= app->readings[1]->clock )
            app->num_readings = 1;
    }
}

/* 0 when the source does not answer. A text that is the same as before is no new reading. */
static int poll_source( struct app_t * app, char * memory )
{
    struct source_t * source = &app->source;
    struct buffer_t buffer = { memory, 0 };
    int good = source->path ? fetch_file( source, &buffer ) : fetch_url( source, &buffer );
    double now = time_now();
    if ( !good ) {
        source->gone_since = source->gone_since > 0.0 ? source->gone_since : now;
        return 0;
    }
    source->error[0] = '\0';
    source->gone_since = 0.0;
    if ( app->num_readings && buffer.bytes == app->raw_bytes && !memcmp( app->raw, buffer.data, buffer.bytes ) )
        return 1;
    memcpy( app->raw, buffer.data, buffer.bytes );
    app->raw_bytes = buffer.bytes;
    app->changed = now;
    take_reading( app, now );
    return 1;
}

static const struct reading_t * newest( const struct app_t * app )
{
    return app->num_readings ? app->readings[0] : NULL;
}

static const struct reading_t * oldest( const struct app_t * app )
{
    return app->num_readings > 1 ? app->readings[app->num_readings - 1] : NULL;
}

static double value_of( const struct app_t * app, const char * name )
{
    return sum_of( newest( app ), name, any, any );
}

/* A counter's growth a second over the readings that are kept; NaN while there is one alone. */
static double rate_of( const struct app_t * app, const char * name, struct label_t first, struct label_t second )
{
    const struct reading_t *to = newest( app ), *from = oldest( app );
    if ( !from || to->clock <= from->clock )
        return (double) NAN;
    return ( sum_of( to, name, first, second ) - sum_of( from, name, first, second ) ) / ( to->clock - from->clock );
}

/* The buckets of a histogram, as they grew over the readings; how many. */
static int buckets_of( const struct app_t * app, const char * name, double bounds[MAX_BUCKETS],
                       double counts[MAX_BUCKETS] )
{
    const struct reading_t *to = newest( app ), *from = oldest( app );
    char full[96], bound[64];
    int num = 0;
    snprintf( full, sizeof( full ), "%s_bucket", name );
    for ( int i = 0; to && i < to->num_samples && num < MAX_BUCKETS; i++ ) {
        const struct sample_t * sample = &to->samples[i];
        if ( strcmp( sample->name, full ) != 0 || !label_of( sample->labels, "le", bound ) )
            continue;
        double before = sum_of( from, full, with( "le", bound ), any );
        bounds[num] = strtod( bound, NULL );
        counts[num++] = sample->value - ( isfinite( before ) ? before : 0.0 );
    }
    return num;
}

/* ---- the screen: a grid of characters, drawn by curses or printed ---- */

enum { PLAIN, DIM, BOLD, GOOD, WARN, BAD, STYLES };

struct screen_t {
    int rows, cols, row;
    char cells[MAX_ROWS][MAX_COLS];
    unsigned char styles[MAX_ROWS][MAX_COLS];
};

static void clear_screen( struct screen_t * screen, int rows, int cols )
{
    screen->rows = rows < MAX_ROWS ? rows : MAX_ROWS;
    screen->cols = cols < MAX_COLS ? cols : MAX_COLS;
    screen->row = 0;
    memset( screen->cells, ' ', sizeof( screen->cells ) );
    memset( screen->styles, PLAIN, sizeof( screen->styles ) );
}

/* On the current row; what does not fit is cut. */
__attribute__( ( format( printf, 4, 5 ) ) ) static void put( struct screen_t * screen, int col, int style,
                                                             const char * format, ... )
{
    char text[MAX_COLS + 1];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    if ( screen->row >= screen->rows )
        return;
    for ( int i = 0; text[i] && col + i < screen->cols; i++ ) {
        screen->cells[screen->row][col + i] = isprint( (unsigned char) text[i] ) ? text[i] : '?';
        screen->styles[screen->row][col + i] = (unsigned char) style;
    }
}

static void next_row( struct screen_t * screen, int rows )
{
    screen->row += rows;
}

/* A number in at most 8 characters: 0 to 9999 as it is, then with k, M, G. */
static const char * amount( char out[32], double value, int decimals )
{
    static const char * const units[] = { "", "k", "M", "G", "T" };
    int unit = 0;
    if ( !isfinite( value ) ) {
        snprintf( out, 32, "-" );
        return out;
    }
    for ( ; fabs( value ) >= 9999.5 && unit < 4; unit++ )
        value /= 1000.0;
    snprintf( out, 32, "%.*f%s", unit ? 1 : decimals, value, units[unit] );
    return out;
}

/* Nothing takes no time: 0 is what was not measured. */
static const char * duration( char out[32], double seconds )
{
    if ( !( seconds > 0.0 ) || !isfinite( seconds ) )
        snprintf( out, 32, "-" );
    else if ( seconds < 0.001 )
        snprintf( out, 32, "%.0f us", seconds * 1e6 );
    else if ( seconds < 1.0 )
        snprintf( out, 32, "%.1f ms", seconds * 1e3 );
    else
        snprintf( out, 32, "%.2f s", seconds );
    return out;
}

/* ---- its parts ---- */

static const char * percent( char out[32], double share )
{
    snprintf( out, 32, "%.1f %%", share * 100.0 );
    return out;
}

/* The bound of the bucket that holds a quantile: between its bounds nothing is known. "-" where nothing was observed. */
static const char * quantile_as( char out[64], const struct app_t * app, const char * name, double part,
                                 const char * ( *as )( char out[32], double value ) )
{
    double bounds[MAX_BUCKETS], counts[MAX_BUCKETS], last = 0.0;
    char text[32];
    int num = buckets_of( app, name, bounds, counts );
    double wanted = num ? part * counts[num - 1] : 0.0;
    for ( int i = 0; i < num && wanted > 0.0; i++ ) {
        if ( counts[i] >= wanted && isfinite( bounds[i] ) ) {
            snprintf( out, 64, "<= %s", as( text, bounds[i] ) );
            return out;
        }
        last = isfinite( bounds[i] ) ? bounds[i] : last;
    }
    snprintf( out, 64, "%s%s", last > 0.0 ? "> " : "", last > 0.0 ? as( text, last ) : "-" );
    return out;
}

static const char * quantile( char out[64], const struct app_t * app, const char * name, double part )
{
    return quantile_as( out, app, name, part, duration );
}

static void show_head( struct screen_t * screen, const struct app_t * app, double now )
{
    const char * name = app->source.path ? app->source.path : app->source.url;
    double still = now - app->changed;
    put( screen, 0, BOLD, "netcode" );
    put( screen, 9, PLAIN, "%s", name );
    next_row( screen, 1 );
    if ( *app->source.error )
        put( screen, 0, BAD, "GONE for %.0f s: %s", now - app->source.gone_since, app->source.error );
    else if ( !isfinite( value_of( app, "netcode_server_slots" ) ) )
        put( screen, 0, BAD, "no netcode_server_slots in there: is this a server of netcode?" );
    else if ( still >= STILL_SECONDS && !app->held )
        put( screen, 0, BAD, "STANDS STILL: the same numbers for %.0f s", still );
    else
        put( screen, 0, app->held ? WARN : GOOD, app->held ? "held (p goes on)" : "live" );
    next_row( screen, 1 );
    if ( newest( app ) && newest( app )->bad_lines )
        put( screen, 0, WARN, "%d lines were not understood", newest( app )->bad_lines );
    next_row( screen, 1 );
}

static void show_slots( struct screen_t * screen, const struct app_t * app )
{
    char a[32], b[32], c[32], d[32];
    double slots = value_of( app, "netcode_server_slots" ), clients = value_of( app, "netcode_server_clients" );
    double share = slots > 0.0 && clients > 0.0 ? clients / slots : 0.0;
    int width = 30, full = share < 1.0 ? (int) ( share * width + 0.5 ) : width;
    put( screen, 0, BOLD, "clients" );
    put( screen, 12, PLAIN, "%s of %s", amount( a, clients, 0 ), amount( b, slots, 0 ) );
    put( screen, 26, DIM, "[%*s]", width, "" );
    for ( int i = 0; i < full && i < width; i++ )
        put( screen, 27 + i, clients >= slots ? BAD : GOOD, "|" );
    put( screen, 60, PLAIN, "handshakes %s", amount( c, value_of( app, "netcode_server_handshakes_pending" ), 0 ) );
    next_row( screen, 1 );
    put( screen, 0, BOLD, "came, left" );
    put( screen, 12, PLAIN, "%s connected", amount( a, value_of( app, "netcode_server_connects_total" ), 0 ) );
    static const char * const reasons[] = { "client", "timed_out", "server", "replaced" };
    static const char * const words[] = { "left", "timed out", "put out", "replaced" };
    for ( int i = 0; i < 4; i++ ) {
        double count = sum_of( newest( app ), "netcode_server_disconnects_total", with( "reason", reasons[i] ), any );
        put( screen, 27 + 13 * i, i == 1 && count > 0.0 ? WARN : PLAIN, "%s %s", amount( d, count, 0 ), words[i] );
    }
    next_row( screen, 1 );
}

static void show_updates( struct screen_t * screen, const struct app_t * app )
{
    const char * name = "netcode_server_update_duration_seconds";
    char a[32], b[64], c[64], d[32];
    double backlogs = value_of( app, "netcode_server_backlogs_total" );
    put( screen, 0, BOLD, "updates" );
    put( screen, 12, PLAIN, "%s a second",
         amount( a, rate_of( app, "netcode_server_update_duration_seconds_count", any, any ), 1 ) );
    put( screen, 31, PLAIN, "half %s", quantile( b, app, name, 0.5 ) );
    put( screen, 51, PLAIN, "99%% %s", quantile( c, app, name, 0.99 ) );
    next_row( screen, 1 );
    put( screen, 12, backlogs > 0.0 ? WARN : PLAIN, "%s backlogs", amount( d, backlogs, 0 ) );
    put( screen, 31, PLAIN, "%s dropped by the system",
         amount( a, value_of( app, "netcode_server_kernel_drops_total" ), 0 ) );
    put( screen, 60, PLAIN, "%s send errors", amount( b, value_of( app, "netcode_server_send_errors_total" ), 0 ) );
    next_row( screen, 2 );
}

/* What the server counts by type, and how wide each column is. */
struct column_t {
    const char *type, *title;
    int width;
};

static const struct column_t columns[] = { { "payload", "payload", 9 },    { "keep_alive", "alive", 7 },
                                           { "request", "request", 9 },    { "challenge", "challenge", 11 },
                                           { "response", "response", 10 }, { "denied", "denied", 8 },
                                           { "disconnect", "bye", 6 } };
enum { COLUMNS = sizeof( columns ) / sizeof( columns[0] ), FIRST_COLUMN = 20 };

static void show_direction( struct screen_t * screen, const struct app_t * app, const char * name )
{
    struct label_t direction = with( "direction", name );
    char number[32];
    put( screen, 2, PLAIN, "%s", name );
    put( screen, 10, PLAIN, "%10s", amount( number, rate_of( app, "netcode_server_bytes_total", direction, any ), 0 ) );
    for ( int i = 0, col = FIRST_COLUMN; i < COLUMNS; col += columns[i++].width ) {
        double rate = rate_of( app, "netcode_server_packets_total", direction, with( "type", columns[i].type ) );
        put( screen, col, PLAIN, "%*s", columns[i].width, amount( number, rate, 1 ) );
    }
    next_row( screen, 1 );
}

static void show_traffic( struct screen_t * screen, const struct app_t * app )
{
    put( screen, 0, BOLD, "a second" );
    put( screen, 10, DIM, "%10s", "bytes" );
    for ( int i = 0, col = FIRST_COLUMN; i < COLUMNS; col += columns[i++].width )
        put( screen, col, DIM, "%*s", columns[i].width, columns[i].title );
    next_row( screen, 1 );
    show_direction( screen, app, "sent" );
    show_direction( screen, app, "received" );
    next_row( screen, 1 );
}

/* Of all clients that are connected, in the readings that are kept. */
static void show_paths( struct screen_t * screen, const struct app_t * app )
{
    static const char * const loss = "netcode_server_loss_ratio";
    char a[64], b[64], c[32];
    put( screen, 0, BOLD, "paths" );
    put( screen, 12, PLAIN, "round trip" );
    put( screen, 24, PLAIN, "half %s", quantile( a, app, "netcode_server_round_trip_seconds", 0.5 ) );
    put( screen, 42, PLAIN, "99%% %s", quantile( b, app, "netcode_server_round_trip_seconds", 0.99 ) );
    put( screen, 60, PLAIN, "%s moved", amount( c, value_of( app, "netcode_server_moves_total" ), 0 ) );
    next_row( screen, 1 );
    put( screen, 12, PLAIN, "loss" );
    put( screen, 24, PLAIN, "half %s", quantile_as( a, app, loss, 0.5, percent ) );
    put( screen, 42, PLAIN, "99%% %s", quantile_as( b, app, loss, 0.99, percent ) );
    next_row( screen, 2 );
}

static void show_messages( struct screen_t * screen, const struct app_t * app )
{
    char a[32], b[64], c[64], d[32];
    double sent = value_of( app, "netcode_messages_loss_sent_ratio" ) * 100.0;
    double received = value_of( app, "netcode_messages_loss_received_ratio" ) * 100.0;
    put( screen, 0, BOLD, "messages" );
    if ( !isfinite( sent ) ) {
        put( screen, 12, DIM, "this server reports nothing of messages" );
        next_row( screen, 2 );
        return;
    }
    put( screen, 12, PLAIN, "round trip %s", duration( a, value_of( app, "netcode_messages_rtt_seconds" ) ) );
    put( screen, 33, PLAIN, "jitter %s", duration( b, value_of( app, "netcode_messages_jitter_seconds" ) ) );
    next_row( screen, 1 );
    put( screen, 12, sent + received > 4.0 ? WARN : PLAIN, "loss %s %% out, %s %% in", amount( b, sent, 1 ),
         amount( c, received, 1 ) );
    put( screen, 60, PLAIN, "%s retries/s",
         amount( d, rate_of( app, "netcode_messages_reliable_retries_total", any, any ), 1 ) );
    next_row( screen, 2 );
}

struct reason_t {
    char name[64];
    double total, rate;
};

static int by_rate( const void * left, const void * right )
{
    const struct reason_t *a = (const struct reason_t *) left, *b = (const struct reason_t *) right;
    double x = isfinite( a->rate ) ? a->rate : 0.0, y = isfinite( b->rate ) ? b->rate : 0.0;
    if ( x > y || x < y )
        return x < y ? 1 : -1;
    return a->total < b->total ? 1 : a->total > b->total ? -1 : strcmp( a->name, b->name );
}

/* Those that happened; several servers in one source are added up. */
static int collect_reasons( const struct app_t * app, struct reason_t reasons[MAX_REASONS] )
{
    const char * name = "netcode_server_packets_dropped_total";
    const struct reading_t * reading = newest( app );
    int num = 0;
    for ( int i = 0; reading && i < reading->num_samples && num < MAX_REASONS; i++ ) {
        struct reason_t * reason = &reasons[num];
        int known = 0;
        if ( strcmp( reading->samples[i].name, name ) != 0 ||
             !label_of( reading->samples[i].labels, "reason", reason->name ) )
            continue;
        for ( int j = 0; j < num; j++ )
            known |= !strcmp( reasons[j].name, reason->name );
        reason->total = sum_of( reading, name, with( "reason", reason->name ), any );
        reason->rate = rate_of( app, name, with( "reason", reason->name ), any );
        num += !known && reason->total > 0.0;
    }
    qsort( reasons, (size_t) num, sizeof( reasons[0] ), by_rate );
    return num;
}

/* The busiest reasons, in as many rows as are left. */
static void show_drops( struct screen_t * screen, const struct app_t * app )
{
    struct reason_t reasons[MAX_REASONS];
    char a[32], b[32];
    int num = collect_reasons( app, reasons ), room = screen->rows - screen->row - 2;
    put( screen, 0, BOLD, "drops" );
    put( screen, 12, DIM, "%-26s%12s%12s", num ? "reason" : "none", num ? "a second" : "", num ? "all" : "" );
    next_row( screen, 1 );
    for ( int i = 0; i < num && i < room; i++ ) {
        if ( i == room - 1 && num > room ) {
            put( screen, 12, DIM, "and %d more", num - i );
            next_row( screen, 1 );
            break;
        }
        put( screen, 12, reasons[i].rate > 0.0 ? WARN : PLAIN, "%-26s%12s%12s", reasons[i].name,
             amount( a, reasons[i].rate, 1 ), amount( b, reasons[i].total, 0 ) );
        next_row( screen, 1 );
    }
}

static void show_all( struct screen_t * screen, const struct app_t * app, int rows, int cols )
{
    clear_screen( screen, rows, cols );
    show_head( screen, app, time_now() );
    show_slots( screen, app );
    show_updates( screen, app );
    show_traffic( screen, app );
    show_paths( screen, app );
    show_messages( screen, app );
    show_drops( screen, app );
    if ( screen->rows > 1 && !app->snapshot ) {
        screen->row = screen->rows - 1;
        put( screen, 0, DIM, "%-*s", MAX_COLS, "q ends, p holds" );
    }
}

/* ---- a snapshot ---- */

static void print_screen( const struct screen_t * screen )
{
    for ( int row = 0; row < screen->rows; row++ ) {
        int end = screen->cols;
        while ( end && screen->cells[row][end - 1] == ' ' )
            end--;
        printf( "%.*s\n", end, screen->cells[row] );
    }
}

static void sleep_seconds( double seconds )
{
    struct timespec time = { (time_t) seconds, (long) ( ( seconds - floor( seconds ) ) * 1e9 ) };
    nanosleep( &time, NULL );
}

/*  Two readings, so that there are rates; a source that stands still gets five seconds to change, and one that is none of
    ours no time at all. */
static int run_snapshot( struct app_t * app, struct screen_t * screen, char * memory )
{
    double end = time_now() + STILL_SECONDS;
    while ( poll_source( app, memory ) && app->num_readings < 2 && time_now() < end &&
            isfinite( value_of( app, "netcode_server_slots" ) ) )
        sleep_seconds( app->period );
    show_all( screen, app, app->rows, app->cols );
    print_screen( screen );
    return *app->source.error ? 1 : 0;
}

/* ---- the live view ---- */

static volatile sig_atomic_t signal_stop;

static void on_signal( int number )
{
    (void) number;
    signal_stop = 1;
}

static void start_curses( void )
{
    initscr();
    cbreak();
    noecho();
    keypad( stdscr, TRUE );
    curs_set( 0 );
    if ( has_colors() ) {
        start_color();
        use_default_colors();
        init_pair( GOOD, COLOR_GREEN, -1 );
        init_pair( WARN, COLOR_YELLOW, -1 );
        init_pair( BAD, COLOR_RED, -1 );
    }
}

static void draw_screen( const struct screen_t * screen )
{
    const chtype styles[STYLES] =
        { A_NORMAL, A_DIM, A_BOLD, COLOR_PAIR( GOOD ), COLOR_PAIR( WARN ), COLOR_PAIR( BAD ) | A_BOLD };
    erase();
    for ( int row = 0; row < screen->rows; row++ )
        for ( int col = 0; col < screen->cols; col++ )
            if ( screen->cells[row][col] != ' ' )
                mvaddch( row, col,
                         (chtype) (unsigned char) screen->cells[row][col] | styles[screen->styles[row][col]] );
    refresh();
}

/* Until the next reading is due: keys, and a terminal that changes its size. 0: the end. */
static int wait_for_keys( struct app_t * app, struct screen_t * screen, double until )
{
    while ( !signal_stop ) {
        double now = time_now(), pause = until - now < 0.2 ? until - now : 0.2;
        if ( pause <= 0.0 )
            return 1;
        timeout( (int) ( pause * 1000.0 ) + 1 ); /* short, as a signal need not end the wait */
        int key = getch();
        if ( key == ERR && time_now() - now < pause / 2 )
            sleep_seconds( pause ); /* standard input has ended: nothing to wait for */
        if ( key == 'q' || key == 'Q' )
            return 0;
        if ( key == 'p' || key == 'P' )
            app->held = !app->held;
        if ( key != ERR ) {
            show_all( screen, app, LINES, COLS );
            draw_screen( screen );
        }
    }
    return 0;
}

static int run_live( struct app_t * app, struct screen_t * screen, char * memory )
{
    if ( !isatty( STDOUT_FILENO ) ) {
        fprintf( stderr, "metrics-top: standard output is no terminal; --snapshot prints a screen as text\n" );
        return 2;
    }
    start_curses();
    do {
        if ( !app->held )
            poll_source( app, memory );
        show_all( screen, app, LINES, COLS );
        draw_screen( screen );
    } while ( wait_for_keys( app, screen, time_now() + app->period ) );
    endwin();
    return 0;
}

/* ---- beginning and end ---- */

static void print_help( void )
{
    printf( "usage: metrics-top SOURCE [options]\n"
            "\n"
            "  SOURCE             a port of 127.0.0.1, a URL, or a .prom file\n"
            "  --period S         between two readings, 0.1 to 60 (1)\n"
            "  --snapshot         prints one screen as text, from two readings, and ends\n"
            "  --size COLSxROWS   of the snapshot (80x24)\n"
            "\n"
            "q ends it, p holds the picture. Rates are over the last %d readings.\n"
            "Exit status: 0, 1 when a snapshot's source did not answer, 2 for wrong usage or no terminal.\n",
            HISTORY );
}

static int parse_period( const char * text, double * period )
{
    char * end;
    *period = strtod( text, &end );
    return end != text && !*end && *period >= 0.1 && *period <= 60.0;
}

static int parse_size( const char * text, int * cols, int * rows )
{
    char *middle, *end = NULL;
    long across = strtol( text, &middle, 10 );
    long down = *middle == 'x' ? strtol( middle + 1, &end, 10 ) : 0;
    if ( across < 1 || across > 100000 || down < 1 || down > 100000 || ( end && *end ) )
        return 0;
    *cols = (int) across;
    *rows = (int) down;
    return 1;
}

/* How many arguments it took; 0 when it is no option, or its value is missing or wrong. */
static int parse_option( struct app_t * app, const char ** source, char ** argv )
{
    const char *name = argv[0], *value = argv[1] ? argv[1] : "";
    if ( !strcmp( name, "--snapshot" ) ) {
        app->snapshot = 1;
        return 1;
    }
    if ( !strcmp( name, "--period" ) )
        return parse_period( value, &app->period ) ? 2 : 0;
    if ( !strcmp( name, "--size" ) )
        return parse_size( value, &app->cols, &app->rows ) ? 2 : 0;
    if ( name[0] == '-' || *source )
        return 0;
    *source = name;
    return 1;
}

static int parse_options( struct app_t * app, int argc, char ** argv )
{
    const char * source = NULL;
    app->period = 1.0;
    app->rows = 24;
    app->cols = 80;
    for ( int i = 1, taken = 0; i < argc; i += taken ) {
        taken = parse_option( app, &source, argv + i );
        if ( !taken ) {
            fprintf( stderr, "metrics-top: %s is no option, or its value is missing or wrong; see --help\n", argv[i] );
            return 0;
        }
    }
    if ( !source )
        fprintf( stderr, "metrics-top: whose metrics? A port, a URL or a file; see --help\n" );
    return source && open_source( &app->source, source );
}

static char * allocate( struct app_t * app )
{
    app->raw = (char *) malloc( MAX_TEXT + 1 );
    int good = app->raw != NULL;
    for ( int i = 0; i <= HISTORY; i++ ) {
        app->readings[i] = (struct reading_t *) calloc( 1, sizeof( struct reading_t ) );
        good = good && app->readings[i] && ( app->readings[i]->text = (char *) malloc( MAX_TEXT + 1 ) ) != NULL;
    }
    return good ? (char *) malloc( MAX_TEXT + 1 ) : NULL;
}

static void release( struct app_t * app, char * memory )
{
    for ( int i = 0; i <= HISTORY; i++ ) {
        if ( app->readings[i] )
            free( app->readings[i]->text );
        free( app->readings[i] );
    }
    free( app->raw );
    free( memory );
    curl_easy_cleanup( app->source.curl );
    curl_global_cleanup();
}

int main( int argc, char ** argv )
{
    static struct app_t app;
    static struct screen_t screen;
    if ( argc == 2 && !strcmp( argv[1], "--help" ) ) {
        print_help();
        return 0;
    }
    curl_global_init( CURL_GLOBAL_DEFAULT );
    if ( !parse_options( &app, argc, argv ) ) {
        curl_global_cleanup();
        return 2;
    }
    signal( SIGINT, on_signal );
    signal( SIGTERM, on_signal );
    char * memory = allocate( &app );
    int status = 1;
    if ( memory )
        status = app.snapshot ? run_snapshot( &app, &screen, memory ) : run_live( &app, &screen, memory );
    else
        fprintf( stderr, "metrics-top: out of memory\n" );
    release( &app, memory );
    return status;
}
