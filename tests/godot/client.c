/*  Clients of a Godot server in plain C, for run.py. Each run prints lines, and ends with 0 if all was as it should be.

        client [4] echo TOKEN         sends to the server and to all others; the server sends it back
        client [4] hostile FOLDER COUNT    4: of Godot 4. With the tokens hostile0 to hostile<COUNT - 1> of the folder, what no honest client sends */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "client.h"

#define LIMIT_SECONDS 60.0 /* for what must happen: a busy machine may stand still for seconds */

static struct raw_t raw;
static int failures;
static uint64_t noise_state = 7;
static char raw_code = 4; /* with which the engine's raw packets begin: 4 in Godot 3, 3 in Godot 4 */

static void check( int good, const char * text )
{
    printf( "%s: %s\n", good ? "ok" : "FAILED", text );
    fflush( stdout );
    failures += !good;
}

static int open_token( const char * path )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    FILE * file = fopen( path, "rb" );
    size_t read = file != NULL ? fread( token, 1, sizeof( token ), file ) : 0;
    if ( file != NULL )
        fclose( file );
    return read == sizeof( token ) && raw_open( &raw, "0.0.0.0", NULL, token, netcode_time() );
}

static void step( void )
{
    raw_update( &raw, netcode_time() );
    netcode_sleep( 1.0 / 60.0 );
}

static void run( double seconds )
{
    for ( double end = netcode_time() + seconds; netcode_time() < end; )
        step();
}

/* 1 once it has an id. */
static int join( const char * path )
{
    if ( !open_token( path ) )
        return 0;
    for ( double end = netcode_time() + LIMIT_SECONDS; netcode_time() < end && raw.id == 0; )
        step();
    return raw.id != 0;
}

/* 1 if the server ends the connection, and sends the reason. */
static int dismissed( void )
{
    for ( double end = netcode_time() + LIMIT_SECONDS; netcode_time() < end; ) {
        step();
        if ( netcode_client_state( raw.client ) <= 0 )
            return strstr( raw.goodbye, "malformed" ) != NULL;
    }
    return 0;
}

static uint8_t noise( void )
{
    noise_state += 0x9E3779B97F4A7C15u;
    uint64_t bits = ( noise_state ^ noise_state >> 30 ) * 0xBF58476D1CE4E5B9u;
    return (uint8_t) ( bits >> 40 );
}

/* To the engine's signal for raw packets. */
static int say( int32_t target, int channel, const char * text )
{
    char packet[64];
    int bytes = snprintf( packet, sizeof( packet ), "%c%s", raw_code, text );
    return raw_send( &raw, target, channel, packet, bytes );
}

static int echo( const char * path )
{
    check( join( path ), "a plain C client gets a peer id" );
    check( raw.num_peers > 0, "it knows the other clients" );
    check( say( 1, CHANNEL_RELIABLE, "hello from C" ), "it sends to the server" );
    raw.received = 0;
    for ( double end = netcode_time() + LIMIT_SECONDS; netcode_time() < end && raw.received == 0; )
        step();
    check( raw.received > 0 && raw.from == 1 && raw.bytes == 13 && raw.data[0] == (uint8_t) raw_code &&
               memcmp( raw.data + 1, "hello from C", 12 ) == 0,
           "the server's script sends it back" );
    for ( int i = 0; i < raw.num_peers; i++ )
        say( raw.peers[i], CHANNEL_RELIABLE, "greetings" );
    run( 0.5 );
    printf( "id=%d\n", (int) raw.id );
    raw_close( &raw );
    return failures != 0;
}

/* What is well-formed, and still not honest: the connection lives on, and so do all others. */
static void forge( void )
{
    uint8_t bytes[512];
    int32_t victim = raw.num_peers > 0 ? raw.peers[0] : 0;
    memset( bytes, 4, sizeof( bytes ) );
    /* The server's own format: the place of the source is the target's. The victim gets it, from this client's id. */
    frame_write_number( bytes + 1, victim );
    bytes[0] = FRAME_DATA;
    bytes[5] = (uint8_t) raw_code;
    memcpy( bytes + 6, "forged", 6 );
    check( victim != 0 && raw_send_bytes( &raw, CHANNEL_RELIABLE, bytes, 12 ), "a message in another's name" );
    const int32_t targets[] = { raw.id, -raw.id, 2, INT32_MAX, INT32_MIN + 1, -2, 0x01000000 };
    for ( size_t i = 0; i < sizeof( targets ) / sizeof( targets[0] ); i++ )
        say( targets[i], (int) ( i % CHANNELS ), "nowhere" );
    run( 0.3 );
    for ( int i = 0; i < 300; i++ ) { /* for the engine: paths, names and arguments that are none */
        int count = 1 + noise() % 200;
        for ( int k = 0; k < count; k++ )
            bytes[k] = noise();
        bytes[0] = (uint8_t) ( i % 6 );
        raw_send( &raw, 1, i % CHANNELS, bytes, count );
    }
    run( 0.5 );
    check( netcode_client_state( raw.client ) == NETCODE_CLIENT_STATE_CONNECTED,
           "forged sources, impossible targets and noise for the engine do not end the connection" );
}

/* Far more than may be relayed, to all. */
static void flood( void )
{
    static uint8_t large[60000];
    large[0] = (uint8_t) raw_code;
    int sent = 0;
    for ( double end = netcode_time() + 1.5; netcode_time() < end; ) {
        for ( int i = 0; i < 4; i++ )
            sent +=
                raw_send( &raw, raw.num_peers > 0 ? raw.peers[0] : 0, CHANNEL_RELIABLE, large, (int) sizeof( large ) );
        for ( int i = 0; i < 200; i++ )
            say( 0, CHANNEL_UNRELIABLE, "" );
        step();
    }
    check( sent > 50, "a flood of large messages for another client" );
}

static int hostile( const char * folder, int count )
{
    char path[1024], text[256];
    int used = 0;
    for ( int i = 0; i < MALFORMED && used < count; i++ ) {
        snprintf( path, sizeof( path ), "%s/hostile%d.token", folder, used++ );
        int joined = join( path );
        if ( joined )
            raw_send_bytes( &raw, CHANNEL_RELIABLE, malformed[i].bytes, malformed[i].count );
        snprintf( text, sizeof( text ), "a client that sends %s is disconnected, with the reason", malformed[i].title );
        check( joined && dismissed(), text );
        raw_close( &raw );
    }
    snprintf( path, sizeof( path ), "%s/hostile%d.token", folder, used++ );
    check( join( path ), "the server still accepts clients" );
    forge();
    flood();
    raw_close( &raw );
    return failures != 0;
}

int main( int count, char ** arguments )
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    if ( count > 1 && strcmp( arguments[1], "4" ) == 0 ) {
        raw_code = 3;
        arguments++;
        count--;
    }
    if ( count == 3 && strcmp( arguments[1], "echo" ) == 0 )
        return echo( arguments[2] );
    if ( count == 4 && strcmp( arguments[1], "hostile" ) == 0 )
        return hostile( arguments[2], atoi( arguments[3] ) );
    fprintf( stderr, "usage: client [4] echo TOKEN | client [4] hostile FOLDER COUNT\n" );
    return 1;
}
