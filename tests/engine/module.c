/*  What a game of Chocolate Doom does not reach: net_netcode.c between a client and a server that stand for the engine.
    run.sh builds it with sanitizers, and with the engine's own net_io.c and net_packet.c.

    A server needs a process of its own, as in the engine. It sends every packet back, holds an address when it is asked
    to, as the engine does with its clients', and writes a letter to a pipe when it receives DISCONNECT from it. */

#define UNUSED_SECONDS 1.0
#define PATIENCE_SECONDS 1.5
#include "net_netcode.c"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "z_zone.h"

#define SERVER_ADDRESS "127.0.0.1:2400"
#define FUZZ_PAYLOADS 20000

/* ---- what the module uses of the engine ---- */

static char * arguments[] = { (char *) "module",      (char *) "-netkey",      (char *) "build/engine/module.key",
                              (char *) "-netaddress", (char *) SERVER_ADDRESS, NULL };
char ** myargv = arguments;
int myargc = 5;

static jmp_buf after_error;
static char error_text[512];
static int error_expected;

void I_Error( const char * error, ... )
{
    va_list list;
    va_start( list, error );
    vsnprintf( error_text, sizeof( error_text ), error, list );
    va_end( list );
    if ( error_expected )
        longjmp( after_error, 1 );
    printf( "FAIL: module: the engine ends: %s\n", error_text );
    exit( 3 );
}

int M_CheckParmWithArgs( const char * check, int num_args )
{
    for ( int i = 1; i < myargc - num_args; i++ ) {
        if ( !strcmp( myargv[i], check ) )
            return i;
    }
    return 0;
}

/* The C library's heap, so that a packet or an address that is not freed is a leak. */
void * Z_Malloc( int size, int tag, void * user )
{
    (void) tag;
    (void) user;
    return malloc( (size_t) size );
}

boolean M_StringCopy( char * to, const char * from, size_t bytes )
{
    return (size_t) snprintf( to, bytes, "%s", from ) < bytes;
}

void Z_Free( void * pointer )
{
    free( pointer );
}

/*  The name "both.invalid" has two addresses, IPv6 first. Linked with --wrap=getaddrinfo: no file of hosts is needed, and
    the C library makes the list's parts and frees them. */
int __real_getaddrinfo( const char * host, const char * service, const struct addrinfo * hints,
                        struct addrinfo ** found );
int __wrap_getaddrinfo( const char * host, const char * service, const struct addrinfo * hints,
                        struct addrinfo ** found );

int __wrap_getaddrinfo( const char * host, const char * service, const struct addrinfo * hints,
                        struct addrinfo ** found )
{
    int error = 0;

    if ( strcmp( host, "both.invalid" ) != 0 )
        return __real_getaddrinfo( host, service, hints, found );
    error = __real_getaddrinfo( "::1", service, hints, found );
    return error ? error : __real_getaddrinfo( "127.0.0.1", service, hints, &( *found )->ai_next );
}

/* ---- the server's process ---- */

static int hears[2]; /* what the server's process writes */
static net_addr_t * held;

static void serve_packet( net_addr_t * from, net_packet_t * packet )
{
    int ended = packet->len == 2 && packet->data[0] == 0 && packet->data[1] == NET_PACKET_TYPE_DISCONNECT;

    if ( ended && from == held && write( hears[1], "D", 1 ) == 1 ) {
        NET_ReleaseAddress( held );
        held = NULL;
    } else if ( !ended && packet->data[0] == 'H' && !held ) {
        held = from;
        NET_ReferenceAddress( held );
    }
    if ( !ended )
        NET_SendPacket( from, packet );
}

static void serve( net_context_t * context )
{
    net_addr_t * from;
    net_packet_t * packet;
    int quit = 0;

    prctl( PR_SET_PDEATHSIG, SIGKILL );         /* it never outlives the test */
    if ( !freopen( "/dev/null", "w", stdout ) ) /* what the server logs; its status says whether all was well */
        exit( 2 );
    net_sdl_module.InitServer();
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    NET_AddModule( context, &net_sdl_module );
    if ( write( hears[1], "S", 1 ) != 1 )
        exit( 2 );
    while ( !quit ) {
        while ( NET_RecvPacket( context, &from, &packet ) ) {
            quit = quit || ( packet->len == 4 && !memcmp( packet->data, "QUIT", 4 ) );
            serve_packet( from, packet );
            NET_FreePacket( packet );
            NET_ReleaseAddress( from );
        }
        netcode_sleep( 0.001 );
    }
    NET_ReleaseAddress( held );
    netcode_server_destroy( server ); /* its clients are notified */
    while ( peers )
        peer_remove( peers );
    free( context );
    exit( 0 );
}

/* The next letter of the server's process, or 0. */
static char heard( double seconds )
{
    struct pollfd wait = { hears[0], POLLIN, 0 };
    char letter = 0;

    if ( poll( &wait, 1, (int) ( seconds * 1000 ) ) == 1 && read( hears[0], &letter, 1 ) != 1 )
        letter = 0;
    return letter;
}

/* ---- checks ---- */

static int num_failed;
static uint8_t key[NETCODE_KEY_BYTES];
static net_context_t * context;

static void check( int good, const char * text )
{
    printf( "%s: module: %s\n", good ? "ok" : "FAIL", text );
    num_failed += !good;
}

static void token_for( const char * address, uint64_t client_id )
{
    have_token = netcode_generate_connect_token( 1, &address, &address, 60, 4, client_id, DEFAULT_PROTOCOL_ID, key,
                                                 NULL, token );
}

static void fresh_token( uint64_t client_id )
{
    token_for( SERVER_ADDRESS, client_id );
}

static net_addr_t * address_of_server( void )
{
    net_addr_t * address = net_sdl_module.ResolveAddress( SERVER_ADDRESS );

    NET_ReferenceAddress( address );
    return address;
}

/* Content that shows where it is from: no two bytes near each other are the same. */
static void send_pattern( net_addr_t * to, int bytes, int seed )
{
    net_packet_t * packet = NET_NewPacket( bytes );

    for ( int i = 0; i < bytes; i++ )
        packet->data[i] = (uint8_t) ( 'a' + ( seed + i + i / 1199 ) % 26 );
    packet->len = (size_t) bytes;
    NET_SendPacket( to, packet );
    NET_FreePacket( packet );
}

static int is_pattern( const net_packet_t * packet, int bytes, int seed )
{
    int good = (int) packet->len == bytes;

    for ( int i = 0; good && i < bytes; i++ )
        good = packet->data[i] == (uint8_t) ( 'a' + ( seed + i + i / 1199 ) % 26 );
    return good;
}

/* The next packet, which is the caller's, or NULL. */
static net_packet_t * next_packet( double seconds )
{
    double end = netcode_time() + seconds;
    net_addr_t * from;
    net_packet_t * packet;

    do {
        if ( NET_RecvPacket( context, &from, &packet ) ) {
            NET_ReleaseAddress( from );
            return packet;
        }
        netcode_sleep( 0.001 );
    } while ( netcode_time() < end );
    return NULL;
}

static int comes_back( net_addr_t * server_address, int bytes, int seed )
{
    send_pattern( server_address, bytes, seed );
    net_packet_t * packet = next_packet( 2.0 );
    int good = packet && is_pattern( packet, bytes, seed );
    if ( packet )
        NET_FreePacket( packet );
    return good;
}

static int next_is( int type, double seconds )
{
    net_packet_t * packet = next_packet( seconds );
    int good = packet && packet->len >= 2 && packet->data[0] == 0 && packet->data[1] == type;

    if ( packet )
        NET_FreePacket( packet );
    return good;
}

static void check_waiting( void )
{
    int good = 1;

    fresh_token( 1 );
    net_addr_t * address = address_of_server();
    for ( int i = 0; i < MAX_WAITING + 3; i++ )
        send_pattern( address, 20 + i, i );
    for ( int i = 0; i < MAX_WAITING; i++ ) {
        net_packet_t * packet = next_packet( 2.0 );
        good = good && packet && is_pattern( packet, 20 + i, i );
        if ( packet )
            NET_FreePacket( packet );
    }
    net_packet_t * more = next_packet( 0.2 );
    check( good && !more, "4 of 7 packets wait until the client is connected, and arrive in their order" );
    NET_ReleaseAddress( address );
    check( peers == NULL, "the address that the engine releases is gone, and its connection with it" );
}

static void check_sizes( void )
{
    static const int sizes[] = { 1, 2, 1198, 1199, 1200, 2398, 2399, 5000, 9591, 9592 };
    int good = 1;

    fresh_token( 2 );
    net_addr_t * address = address_of_server();
    for ( size_t i = 0; i < sizeof( sizes ) / sizeof( sizes[0] ); i++ )
        good = comes_back( address, sizes[i], (int) i ) && good;
    check( good, "packets of 1 to 9,592 bytes come back as they were, in up to 8 parts" );
    send_pattern( address, MAX_ENGINE_BYTES + 1, 0 );
    check( comes_back( address, 100, 7 ), "one of 9,593 bytes is dropped with a line, and the next one arrives" );
    NET_ReleaseAddress( address );
}

/* More packets than the library's pools have buffers: 256 on a client, 1,024 on a server. */
static void check_many( void )
{
    int arrived = 0;

    fresh_token( 8 );
    net_addr_t * address = address_of_server();
    for ( int batch = 0; batch < 75; batch++ ) {
        for ( int i = 0; i < 20; i++ )
            send_pattern( address, 30, i );
        for ( int i = 0; i < ( batch ? 20 : MAX_WAITING ); i++ ) {
            net_packet_t * packet = next_packet( 2.0 );
            if ( !packet )
                break;
            arrived += is_pattern( packet, 30, i );
            NET_FreePacket( packet );
        }
    }
    check( arrived == 74 * 20 + MAX_WAITING,
           "all of 1,484 packets come back, in their order: every buffer is given back" );
    NET_ReleaseAddress( address );
}

/* What the engine must be notified of, when the server gives a slot back, and when it does not. */
static void check_unused( void )
{
    fresh_token( 3 );
    net_addr_t * address = address_of_server();
    int good = comes_back( address, 10, 0 );
    check( good && next_is( NET_PACKET_TYPE_DISCONNECT, 4.0 ),
           "a session that the engine holds no client for is disconnected, and the client's engine is notified" );
    NET_ReleaseAddress( address );
}

/* A client beside the module's, for a second connection and for payloads that no module sends. */
static struct netcode_client_t * plain_client( uint64_t client_id )
{
    double end = netcode_time() + 3.0;

    struct netcode_client_config_t config;
    fresh_token( client_id );
    netcode_default_client_config( &config );
    struct netcode_client_t * client = netcode_client_create( "0.0.0.0", &config, netcode_time() );
    netcode_client_connect( client, token );
    while ( netcode_time() < end && netcode_client_state( client ) != NETCODE_CLIENT_STATE_CONNECTED ) {
        netcode_client_update( client, netcode_time() );
        netcode_sleep( 0.001 );
    }
    return client;
}

static void check_replaced( void )
{
    static const uint8_t hold[] = { LAST_PART, 'H' };
    struct netcode_client_t * first = plain_client( 4 );
    netcode_client_send_packet( first, hold, 2 );
    double end = netcode_time() + UNUSED_SECONDS + 0.7;
    while ( netcode_time() < end ) {
        netcode_client_update( first, netcode_time() );
        netcode_sleep( 0.01 );
    }
    check( netcode_client_state( first ) == NETCODE_CLIENT_STATE_CONNECTED && heard( 0.0 ) == 0,
           "a session whose address the engine holds stays" );

    struct netcode_client_t * second = plain_client( 4 );
    check( netcode_client_state( second ) == NETCODE_CLIENT_STATE_CONNECTED && heard( 2.0 ) == 'D',
           "the player comes back with a newer token: the engine is notified that the old session ended" );
    netcode_client_destroy( first );
    netcode_client_destroy( second );
}

static void check_junk( void )
{
    struct netcode_client_t * client = plain_client( 5 );
    uint8_t payload[NETCODE_MAX_PACKET_SIZE];
    uint32_t random = 7;

    for ( int i = 0; i < FUZZ_PAYLOADS; i++ ) {
        int bytes = 0;
        for ( int word = 0; word < 3; word++ )
            random = random * 1664525u + 1013904223u;
        bytes = 1 + (int) ( ( random >> 8 ) % NETCODE_MAX_PACKET_SIZE );
        if ( random & 0x40 )
            bytes = NETCODE_MAX_PACKET_SIZE;
        memset( payload, (int) ( random >> 24 ), sizeof( payload ) );
        payload[0] = (uint8_t) ( ( random >> 12 ) & ( random & 0x80 ? 0x07 : 0xff ) );
        netcode_client_send_packet( client, payload, bytes );
        if ( i % 8 == 0 ) {
            uint8_t * packet;
            netcode_client_update( client, netcode_time() );
            while ( ( packet = netcode_client_receive_packet( client, &bytes, NULL ) ) )
                netcode_client_free_packet( client, packet );
            netcode_sleep( 0.0001 );
        }
    }
    netcode_client_destroy( client );
    fresh_token( 6 );
    net_addr_t * address = address_of_server();
    check( comes_back( address, 3000, 3 ), "20,000 payloads of junk later, another client's packets come back" );
    NET_ReleaseAddress( address );
}

/* Parts by their headers: which of them complete a packet, and of how many bytes. */
static void check_parts( void )
{
    static const struct {
        const char * what;
        int num;
        struct {
            uint8_t header;
            int bytes;
        } parts[4];
        int joined; /* after the last; 0: nothing */
    } rows[] = {
        { "two parts", 2, { { 0x10, 1199 }, { 0x19, 5 } }, 1204 },
        { "the first is missing", 1, { { 0x19, 5 } }, 0 },
        { "the second of three is missing", 2, { { 0x10, 1199 }, { 0x1a, 5 } }, 0 },
        { "the second is another packet's", 2, { { 0x10, 1199 }, { 0x29, 5 } }, 0 },
        { "the second came first", 2, { { 0x19, 5 }, { 0x10, 1199 } }, 0 },
        { "a first part that is too short", 2, { { 0x10, 1198 }, { 0x19, 5 } }, 0 },
        { "the second comes twice", 4, { { 0x10, 1199 }, { 0x11, 1199 }, { 0x11, 1199 }, { 0x1a, 5 } }, 0 },
        { "a whole packet between two parts", 3, { { 0x10, 1199 }, { 0x28, 9 }, { 0x19, 5 } }, 1204 },
        { "no bytes behind the header", 1, { { 0x18, 0 } }, 0 },
    };
    static const struct netcode_address_t none;
    static uint8_t payload[NETCODE_MAX_PACKET_SIZE];
    int good = 1;

    for ( size_t row = 0; row < sizeof( rows ) / sizeof( rows[0] ); row++ ) {
        struct peer_t * peer = peer_add( &none );
        int joined = 0;
        for ( int part = 0; part < rows[row].num; part++ ) {
            payload[0] = rows[row].parts[part].header;
            net_packet_t * packet = join_parts( peer, payload, rows[row].parts[part].bytes + 1 );
            joined = packet ? (int) packet->len : 0;
            if ( packet )
                NET_FreePacket( packet );
        }
        if ( joined != rows[row].joined ) {
            printf( "     module: %s: %d bytes, not %d\n", rows[row].what, joined, rows[row].joined );
            good = 0;
        }
        peer_remove( peer );
    }
    check( good, "parts that are lost, repeated, overtaken or too short complete no packet" );
}

static void check_refused( void )
{
    have_token = 0;
    net_addr_t * address = address_of_server();
    send_pattern( address, 10, 0 );
    check( next_is( NET_PACKET_TYPE_REJECTED, 0.5 ),
           "without a token the engine is notified at once that it is rejected" );
    send_pattern( address, 10, 0 );
    check( next_packet( 0.2 ) == NULL, "and notified once" );
    NET_ReleaseAddress( address );

    uint8_t wrong[NETCODE_KEY_BYTES] = { 1 };
    const char * name = SERVER_ADDRESS;
    have_token = netcode_generate_connect_token( 1, &name, &name, 60, 4, 9, DEFAULT_PROTOCOL_ID, wrong, NULL, token );
    address = address_of_server();
    double since = netcode_time();
    send_pattern( address, 10, 0 );
    int rejected = next_is( NET_PACKET_TYPE_REJECTED, 4.0 );
    double seconds = netcode_time() - since;
    check( rejected && seconds > PATIENCE_SECONDS && seconds < PATIENCE_SECONDS + 0.5,
           "with a wrong one before the engine gives up" );
    NET_ReleaseAddress( address );
}

/* "127.1" is a name for netcode_parse_address, and an address for getaddrinfo, without a network or a file of hosts. */
static void check_addresses( void )
{
    static const char * const good[] = { "127.0.0.1:5", "127.0.0.1", "[::1]:5", "::1", "127.1:5", "127.1" };
    static const char * const bad[] = { "",        ":",           ":5",      "no.such.host.invalid", "[::1",
                                        "127.1:0", "127.1:70000", "127.1:x", "1.2.3.4:99999" };
    int wrong = 0;

    for ( size_t i = 0; i < sizeof( good ) / sizeof( good[0] ); i++ ) {
        net_addr_t * address = net_sdl_module.ResolveAddress( good[i] );
        NET_ReferenceAddress( address );
        wrong += !address || !peer_of( address )->address.port;
        NET_ReleaseAddress( address );
    }
    for ( size_t i = 0; i < sizeof( bad ) / sizeof( bad[0] ); i++ ) {
        net_addr_t * address = net_sdl_module.ResolveAddress( bad[i] );
        if ( address )
            printf( "     module: \"%s\" is taken for %s\n", bad[i], NET_AddrToString( address ) );
        wrong += address != NULL;
        NET_ReferenceAddress( address );
        NET_ReleaseAddress( address );
    }
    check( !wrong, "addresses and names are read, and what is none is not" );
}

static int becomes( const char * name, const char * want )
{
    net_addr_t * address = net_sdl_module.ResolveAddress( name );
    int good = address && !strcmp( NET_AddrToString( address ), want );

    if ( !good )
        printf( "     module: \"%s\" becomes %s, not %s\n", name, address ? NET_AddrToString( address ) : "nothing",
                want );
    NET_ReferenceAddress( address );
    NET_ReleaseAddress( address );
    return good;
}

static void check_names( void )
{
    token_for( "127.0.0.1:2400", 11 );
    int second = becomes( "both.invalid:2400", "127.0.0.1:2400" );
    int other = becomes( "both.invalid:2401", "[::1]:2401" );
    token_for( "[::1]:2400", 12 );
    int first = becomes( "both.invalid:2400", "[::1]:2400" );
    have_token = 0;
    sodium_memzero( token, sizeof( token ) );
    int none = becomes( "both.invalid", "[::1]:2342" );
    check( second && other && first && none,
           "of a name's addresses the one that the token names is taken, or else the first" );

    fresh_token( 13 );
    net_addr_t * address = net_sdl_module.ResolveAddress( "both.invalid:2400" );
    NET_ReferenceAddress( address );
    check( comes_back( address, 100, 3 ), "and the client connects there" );
    NET_ReleaseAddress( address );
}

static void check_options( void )
{
    static char * const rows[][2] = { { (char *) "-nettoken", (char *) "/dev/null" },
                                      { (char *) "-nettoken", (char *) "/no/such/file" },
                                      { (char *) "-port", (char *) "70000" },
                                      { (char *) "-netprotocol", (char *) "mine" } };
    volatile int errors = 0;

    for ( volatile size_t row = 0; row < sizeof( rows ) / sizeof( rows[0] ); row++ ) {
        char * mine[] = { (char *) "module", rows[row][0], rows[row][1], NULL };
        myargv = mine;
        myargc = 3;
        error_expected = 1;
        if ( setjmp( after_error ) ) {
            errors++;
        } else {
            if ( row < 2 )
                read_token( option( "-nettoken" ) );
            else if ( row == 2 )
                read_port();
            else
                read_protocol_id();
        }
        error_expected = 0;
        port = DEFAULT_PORT;
    }
    myargv = arguments;
    myargc = 5;
    check( errors == 4, "no token file, no token in it, no port and no number end the engine with a sentence" );
}

int main( void )
{
    int status = 0;

    setvbuf( stdout, NULL, _IOLBF, 0 );
    umask( 077 ); /* a key that others can read is refused */
    FILE * file = fopen( arguments[2], "wb" );
    randombytes_buf( key, sizeof( key ) );
    if ( !file || fwrite( key, 1, sizeof( key ), file ) != sizeof( key ) || fclose( file ) || pipe( hears ) )
        return 2;
    context = NET_NewContext();
    pid_t child = fork();
    if ( child == 0 )
        serve( context );
    if ( child < 0 || heard( 10.0 ) != 'S' )
        return 2;

    net_sdl_module.InitClient();
    NET_AddModule( context, &net_sdl_module );
    check_options();
    check_addresses();
    check_names();
    check_parts();
    check_waiting();
    check_sizes();
    check_many();
    check_unused();
    check_replaced();
    check_junk();
    check_refused();

    fresh_token( 7 );
    net_addr_t * address = address_of_server();
    net_packet_t * quit = copy_packet( (const uint8_t *) "QUIT", 4 );
    NET_SendPacket( address, quit );
    NET_FreePacket( quit );
    check( next_is( NET_PACKET_TYPE_DISCONNECT, 4.0 ) || next_is( NET_PACKET_TYPE_DISCONNECT, 4.0 ),
           "the server ends: the client's engine is notified" );
    NET_ReleaseAddress( address );
    waitpid( child, &status, 0 );
    check( WIFEXITED( status ) && WEXITSTATUS( status ) == 0 && !peers,
           "both end without a leak, and without a word of the sanitizers" );
    free( context );
    netcode_term();
    return num_failed ? 1 : 0;
}
