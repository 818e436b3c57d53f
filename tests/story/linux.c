/*  Story: what Linux gives the sockets beside the plain calls: batches, the kernel filter, the client's socket
    aimed at its server, shared ports, buffers for many slots. Each is tried where the system has it, where it refuses,
    and (other systems, NETCODE_NO_LINUX_EXTRAS) where only the plain path is compiled. Real sockets on loopback, with
    virtual time, so that nothing waits for a clock: runner linux.c */

#if !defined( _WIN32 )

#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )
#define LINUX_EXTRAS 1
#else
#define LINUX_EXTRAS 0
#endif

/* ---- the system, refusing what a test wants refused ---- */

/*  A program's own function comes before the C library's of the same name. Elsewhere than here their types differ, and
    the tests that need a refusal leave it out. */
#if LINUX_EXTRAS && defined( __GLIBC__ ) && defined( __LP64__ )
#include <sys/syscall.h>
#define LINUX_WRAPPED 1
#else
#define LINUX_WRAPPED 0
#endif

static struct {
    int sends;          /* calls of sendmmsg */
    int messages;       /* that they brought, those not taken counted again */
    int refused;        /* calls that took none */
    int send_error;     /* any call is refused with this, */
    int send_errors;    /* so often */
    int most;           /* so many messages are taken by one call; 0: all */
    int interrupted;    /* every other call is */
    int asked[2];       /* the largest buffers asked for, to receive and to send */
    int refused_level;  /* this option is refused */
    int refused_option; /* 0: none is */
    int filter_steps;   /* packet filters of more instructions are refused; 0: none is */
    int connect_error;  /* aiming a socket is refused with this; 0: it is not */
    int release_error;  /* so is letting it hear anyone again */
    int advised;        /* blocks that huge pages were asked for */
    int advised_within; /* of them, those that lie in the block that was allocated last */
    size_t advised_bytes;
    uint8_t * block;
    size_t block_bytes;
    int advise_error; /* that is refused with this; 0: it is not */
} linux_system;

#if LINUX_WRAPPED

int sendmmsg( int handle, struct mmsghdr * headers, unsigned int count, int flags )
{
    linux_system.messages += (int) count;
    if ( linux_system.send_errors > 0 ) {
        linux_system.send_errors--;
        linux_system.refused++;
        errno = linux_system.send_error;
        return -1;
    }
    if ( ++linux_system.sends % 2 && linux_system.interrupted ) {
        errno = EINTR;
        return -1;
    }
    if ( linux_system.most && count > (unsigned int) linux_system.most )
        count = (unsigned int) linux_system.most;
    int taken = (int) syscall( SYS_sendmmsg, handle, headers, count, flags );
    linux_system.refused += taken < 0;
    return taken;
}

int setsockopt( int handle, int level, int option, const void * value, socklen_t bytes )
{
    int number = 0;
    if ( bytes == sizeof( number ) )
        memcpy( &number, value, sizeof( number ) );
    if ( level == SOL_SOCKET && option == SO_RCVBUF && number > linux_system.asked[0] )
        linux_system.asked[0] = number;
    if ( level == SOL_SOCKET && option == SO_SNDBUF && number > linux_system.asked[1] )
        linux_system.asked[1] = number;
    if ( linux_system.refused_option == option && linux_system.refused_level == level ) {
        errno = ENOPROTOOPT;
        return -1;
    }
    if ( level == SOL_SOCKET && option == SO_ATTACH_FILTER && linux_system.filter_steps &&
         ( (const nc_filter_t *) value )->count > linux_system.filter_steps ) {
        errno = ENOMEM;
        return -1;
    }
    return (int) syscall( SYS_setsockopt, handle, level, option, value, bytes );
}

int madvise( void * start, size_t bytes, int advice )
{
    size_t huge = (size_t) 2 << 20;
    if ( advice != MADV_HUGEPAGE )
        return (int) syscall( SYS_madvise, start, bytes, advice );
    CHECK_EQ( (uintptr_t) start % huge, 0 );
    CHECK_EQ( bytes % huge, 0 );
    CHECK_GE( bytes, huge );
    linux_system.advised++;
    linux_system.advised_within += (uint8_t *) start >= linux_system.block &&
                                   (uint8_t *) start + bytes <= linux_system.block + linux_system.block_bytes;
    linux_system.advised_bytes += bytes;
    errno = linux_system.advise_error;
    return linux_system.advise_error ? -1 : (int) syscall( SYS_madvise, start, bytes, advice );
}

/* The C library declares the address as a union of pointers, which only GNU C knows to be the same. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

int connect( int handle, const struct sockaddr * address, socklen_t bytes )
{
    int error = address->sa_family == AF_UNSPEC ? linux_system.release_error : linux_system.connect_error;
    if ( error ) {
        errno = error;
        return -1;
    }
    return (int) syscall( SYS_connect, handle, address, bytes );
}

#pragma GCC diagnostic pop

#endif

static void linux_reset( void )
{
    memset( &linux_system, 0, sizeof( linux_system ) );
}

/* ---- the post: datagrams from one socket of the library to plain ones ---- */

enum { DOOR_A, DOOR_B, DOOR_SIX, DOOR_CLOSED, POST_DOORS, POST_LETTERS = 320, POST_LETTER_BYTES = 1500 };

struct letter_t {
    int door;
    int bytes;
};

static struct {
    struct netcode_socket_t out;
    struct allocator_t allocator;
    int handles[POST_DOORS]; /* -1: none is there */
    int shut;                /* the socket of the closed door */
    struct netcode_address_t at[POST_DOORS];
    struct letter_t letters[POST_LETTERS];
    int count;
} post;

static nc_socket_udp_t * post_udp( void )
{
    return (nc_socket_udp_t *) post.out.context;
}

/* A plain socket on loopback with room for all that these tests send, that gives up waiting where nothing comes. */
static int plain_socket( const char * text, struct netcode_address_t * at )
{
    struct sockaddr_storage storage;
    struct timeval limit = { (time_t) TEST_LIMIT_SECONDS, 0 };
    socklen_t length;
    int bytes = 4 << 20, handle;
    *at = address_of( text );
    handle = socket( at->type == NETCODE_ADDRESS_IPV6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0 );
    REQUIRE_GE( handle, 0 );
    length = nc_socket_to_system( at, &storage );
    REQUIRE_EQ( bind( handle, (struct sockaddr *) &storage, length ), 0 );
    length = sizeof( storage );
    REQUIRE_EQ( getsockname( handle, (struct sockaddr *) &storage, &length ), 0 );
    nc_socket_from_system( at, &storage );
    (void) setsockopt( handle, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof( bytes ) );
    (void) setsockopt( handle, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof( limit ) );
    return handle;
}

/* Closes its port, which no other socket gets until it is gone: it hears but one other, from which nothing is sent. */
static void plain_shut( int handle, const struct netcode_address_t * at )
{
    struct netcode_address_t other = *at;
    struct sockaddr_storage storage;
    other.port = 9;
    socklen_t length = nc_socket_to_system( &other, &storage );
    REQUIRE_EQ( connect( handle, (struct sockaddr *) &storage, length ), 0 );
}

static ssize_t plain_send( int handle, const struct netcode_address_t * to, const void * data, int bytes )
{
    struct sockaddr_storage storage;
    socklen_t length = nc_socket_to_system( to, &storage );
    return sendto( handle, data, (size_t) bytes, 0, (struct sockaddr *) &storage, length );
}

/* A socket of the library; with `filter` as a server has it, with `errors` as a client has it. */
static void post_open_socket( struct netcode_socket_t * out, const char * first, const char * second, int filter,
                              int errors )
{
    struct netcode_address_t a = address_of( first ), b;
    nc_socket_request_t request;
    int family;
    memset( &request, 0, sizeof( request ) );
    request.allocator = nc_allocator_make( &post.allocator, allocator_allocate, allocator_free );
    request.addresses[0] = &a;
    if ( second ) {
        b = address_of( second );
        request.addresses[1] = &b;
    }
    request.receive_buffer_bytes = request.send_buffer_bytes = 4 << 20;
    request.screens = filter;
    request.reports_errors = errors;
    REQUIRE_EQ( nc_socket_open_udp( out, &udp_extras, &request, &family ), NC_SOCKET_OK );
}

/* All are there but the one at the closed door; IPv6 only where this machine has it. */
static void post_open( int dual, int errors )
{
    linux_reset();
    memset( &post, 0, sizeof( post ) );
    post.handles[DOOR_A] = plain_socket( "127.0.0.1:0", &post.at[DOOR_A] );
    post.handles[DOOR_B] = plain_socket( "127.0.0.1:0", &post.at[DOOR_B] );
    post.shut = plain_socket( "127.0.0.1:0", &post.at[DOOR_CLOSED] );
    plain_shut( post.shut, &post.at[DOOR_CLOSED] );
    post.handles[DOOR_CLOSED] = post.handles[DOOR_SIX] = -1;
    post.at[DOOR_SIX] = address_of( "[::1]:9" );
    if ( dual )
        post.handles[DOOR_SIX] = plain_socket( "[::1]:0", &post.at[DOOR_SIX] );
    post_open_socket( &post.out, "127.0.0.1:0", dual ? "[::1]:0" : NULL, 0, errors );
    linux_reset();
}

static void post_close( void )
{
    int i;
    for ( i = 0; i < POST_DOORS; i++ )
        if ( post.handles[i] >= 0 )
            close( post.handles[i] );
    close( post.shut );
    post.out.close( post.out.context );
    CHECK_EQ( post.allocator.live, 0 );
    linux_reset();
}

/* So many letters of one size for one door. */
static void post_write( int door, int bytes, int times )
{
    while ( times-- > 0 && CHECK_LT( post.count, POST_LETTERS ) ) {
        post.letters[post.count].door = door;
        post.letters[post.count++].bytes = bytes;
    }
}

static int letter_fill( uint8_t * data, int number )
{
    payload_fill( data, post.letters[number].bytes, number );
    data[0] = (uint8_t) number;
    data[1] = (uint8_t) ( number >> 8 );
    return post.letters[number].bytes;
}

/* What lies behind a door is what was sent to it: once, whole, in its order. */
static void post_look( int door )
{
    uint8_t expected[POST_LETTER_BYTES], found[POST_LETTER_BYTES + 1];
    int i;
    if ( post.handles[door] < 0 )
        return;
    for ( i = 0; i < post.count; i++ ) {
        if ( post.letters[i].door != door )
            continue;
        int bytes = letter_fill( expected, i );
        ssize_t got = recv( post.handles[door], found, sizeof( found ), 0 );
        if ( got != bytes || memcmp( found, expected, (size_t) bytes ) != 0 ) {
            test_fail( __FILE__, __LINE__, "letter %d of %d, %d bytes for door %d: %d bytes came, or others", i,
                       post.count, bytes, door, (int) got );
            test_escape();
        }
    }
    CHECK_EQ( recv( post.handles[door], found, sizeof( found ), MSG_DONTWAIT ), -1 );
}

/* Sends all that was written in one call, of which so many can not be sent. */
static void post_send( int unsendable )
{
    static struct netcode_datagram_t datagrams[POST_LETTERS];
    static uint8_t bytes[POST_LETTERS][POST_LETTER_BYTES];
    int i;
    memset( datagrams, 0, sizeof( datagrams ) );
    for ( i = 0; i < post.count; i++ ) {
        datagrams[i].address = post.at[post.letters[i].door];
        datagrams[i].data = bytes[i];
        datagrams[i].bytes = letter_fill( bytes[i], i );
    }
    CHECK_EQ( post.out.send( post.out.context, datagrams, post.count ), post.count - unsendable );
    for ( i = 0; i < POST_DOORS; i++ )
        post_look( i );
    post.count = 0;
}

/* The groups that matter, each in one send. */
static void post_round( int six )
{
    int i;
    post_write( DOOR_A, 1200, 16 );
    post_send( 0 );
    post_write( DOOR_A, 500, 4 ); /* a shorter last one, and more behind it */
    post_write( DOOR_A, 100, 1 );
    post_write( DOOR_A, 500, 4 );
    post_send( 0 );
    post_write( DOOR_A, 100, 3 ); /* a longer one in between */
    post_write( DOOR_A, 1225, 1 );
    post_write( DOOR_A, 100, 3 );
    post_send( 0 );
    for ( i = 0; i < 40; i++ ) /* interleaved */
        post_write( i % 3 == 2 && six ? DOOR_SIX : i % 2, i % 7 == 0 ? 60 : 64, 1 );
    post_send( 0 );
    post_write( DOOR_B, 1225, 64 ); /* 78,400 bytes: more than one message can hold */
    post_send( 0 );
    post_write( DOOR_A, 64, 150 ); /* more than one batch */
    post_write( DOOR_B, 18, 150 );
    post_send( 0 );
}

/* Whatever comes: sizes that repeat, doors that change, and the closed one among them. */
static void post_storm( int rounds, int doors, int closed )
{
    static const int sizes[] = { 18, 64, 65, 333, 1200, 1225 };
    while ( rounds-- > 0 ) {
        int left = 2 + test_random_below( 140 );
        while ( left > 0 ) {
            int times = 1 + test_random_below( 12 ), door = test_random_below( doors );
            int bytes = test_random_below( 4 ) ? sizes[test_random_below( 6 )] : 18 + test_random_below( 1208 );
            if ( closed && test_random_below( 5 ) == 0 )
                door = DOOR_CLOSED;
            post_write( door, bytes, times );
            left -= times;
        }
        post_send( 0 );
    }
}

TEST( linux_sends_arrive_whole_and_in_order )
{
    post_open( 0, 0 );
    post_round( 0 );
    post_storm( 60, 2, 0 );
    CHECK_EQ( linux_system.refused, 0 );
    CHECK_EQ( post_udp()->last_send_error, 0 );
    post_close();
}

TEST( linux_sends_of_both_families )
{
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    post_open( 1, 0 );
    post_round( 1 );
    post_storm( 40, 3, 0 );
    post_write( DOOR_SIX, 333, 5 );
    post_write( DOOR_A, 333, 5 );
    post_write( DOOR_SIX, 333, 5 );
    linux_reset();
    post_send( 0 );
    CHECK_EQ( linux_system.sends, LINUX_WRAPPED ? 2 : 0 ); /* a call for each family */
    post_close();
}

/* A family without a handle is not sent, is not counted, and holds no other up. */
TEST( linux_sends_of_a_family_that_is_not_there )
{
    post_open( 0, 0 );
    post_write( DOOR_A, 64, 3 );
    post_write( DOOR_SIX, 64, 2 );
    post_write( DOOR_A, 64, 3 );
    post_write( DOOR_SIX, 80, 1 );
    post_send( 3 );
    CHECK_EQ( post_udp()->last_send_error, EAFNOSUPPORT );
    post_write( DOOR_SIX, 64, 70 );
    post_write( DOOR_B, 64, 70 );
    post_send( 70 );
    post_write( DOOR_SIX, 64, 2 );
    post_send( 2 );
    post_close();
}

/* What an ICMP error says of one door is no reason not to serve the others. */
TEST( linux_sends_past_a_closed_port )
{
    int errors;
    for ( errors = 0; errors < 2; errors++ ) {
        post_open( 0, errors );
        post_write( DOOR_CLOSED, 64, 4 );
        post_write( DOOR_A, 64, 4 );
        post_write( DOOR_CLOSED, 64, 1 );
        post_write( DOOR_B, 64, 4 );
        post_write( DOOR_CLOSED, 64, 4 );
        post_write( DOOR_A, 100, 4 );
        post_send( 0 );
        for ( int i = 0; i < 4; i++ ) { /* one by one */
            post_write( i % 2 ? DOOR_A : DOOR_CLOSED, 64, 1 );
            post_send( 0 );
        }
        post_storm( 40, 2, 1 );
        post_close();
    }
}

/* ---- the same where the system refuses ---- */

/*  An ICMP error that waits is reported by the next send, whatever that sends: it is sent again, and nothing is given up. What is
    refused each time, from the first on, is: then datagrams are sent one by one. */
TEST( linux_sendmmsg_that_is_refused )
{
    static const int errors[] = { EOPNOTSUPP, EHOSTUNREACH, ENOSYS, EPERM, EINVAL, EACCES };
    if ( !LINUX_WRAPPED )
        SKIP( "the system can not be made to refuse here" );
    for ( int i = 0; i < 12; i++ ) {
        post_open( 0, 0 );
        int always = i >= 6;
        linux_system.send_error = errors[i % 6];
        linux_system.send_errors = always ? 1000000 : 1;
        for ( int k = 0; k < 8; k++ ) {
            post_write( DOOR_A, 64 + k, 1 );
            post_write( DOOR_B, 64 + k, 1 );
        }
        post_send( 0 );
        CHECK_EQ( post_udp()->sending.is_refused, always );
        CHECK_EQ( linux_system.refused, always ? 6 : 1 );
        linux_system.send_errors = 0;
        post_round( 0 );
        post_close();
    }
}

/* The system takes a part of what it is given, or is interrupted before it takes anything. */
TEST( linux_sends_taken_in_parts )
{
    if ( !LINUX_WRAPPED )
        SKIP( "the system can not be made to refuse here" );
    post_open( 0, 0 );
    linux_system.most = 3;
    post_round( 0 );
    post_storm( 20, 2, 1 );
    linux_system.interrupted = 1;
    post_round( 0 );
    post_storm( 20, 2, 1 );
    linux_system.most = 1;
    post_storm( 20, 2, 1 );
    post_close();
}

/* ---- a network of loopback sockets in virtual time ---- */

enum { LAN_SERVERS = 3, LAN_CLIENTS = 32 };

static struct {
    struct netcode_server_t * servers[LAN_SERVERS];
    struct netcode_client_t * clients[LAN_CLIENTS];
    char at[LAN_SERVERS][NETCODE_MAX_ADDRESS_STRING_LENGTH]; /* what tokens say */
    double time;
    int lines;      /* logged */
    int no_filters; /* those that say that the system has none */
} lan;

static void lan_close( void )
{
    int i;
    for ( i = 0; i < LAN_CLIENTS; i++ )
        netcode_client_destroy( lan.clients[i] );
    for ( i = 0; i < LAN_SERVERS; i++ )
        netcode_server_destroy( lan.servers[i] );
    memset( &lan, 0, sizeof( lan ) );
    lan.time = 50.0;
    linux_reset();
}

static void lan_log( void * context, int level, const char * text )
{
    (void) context;
    (void) level;
    lan.lines++;
    lan.no_filters += strstr( text, "no packet filters" ) != NULL;
}

static struct netcode_server_config_t lan_config( void )
{
    struct netcode_server_config_t config;
    netcode_default_server_config( &config );
    config.protocol_id = WORLD_PROTOCOL;
    memcpy( config.private_key, world_key, NETCODE_KEY_BYTES );
    config.log_callback = lan_log;
    config.events = 1;
    return config;
}

/* A server bound to this loopback address alone. */
static struct netcode_server_t * lan_create( const char * address, struct netcode_server_config_t config )
{
    config.bind_address = address;
    return netcode_server_create( address, &config, lan.time );
}

static void lan_server( int server, const char * address, const struct netcode_server_config_t * config, int slots )
{
    struct netcode_address_t a = address_of( address );
    lan.servers[server] = lan_create( address, *config );
    REQUIRE( lan.servers[server] != NULL );
    netcode_server_start( lan.servers[server], slots );
    REQUIRE_EQ( netcode_server_running( lan.servers[server] ), 1 );
    a.port = netcode_server_get_port( lan.servers[server] );
    netcode_address_to_string( &a, lan.at[server] );
}

static void lan_plain_server( int server, const char * address )
{
    struct netcode_server_config_t config = lan_config();
    lan_server( server, address, &config, 4 );
}

static void lan_client_with( int client, const char * address, const char * address2, int batch_sends )
{
    struct netcode_client_config_t config;
    netcode_default_client_config( &config );
    config.log_callback = lan_log;
    config.batch_sends = batch_sends;
    lan.clients[client] = address2 ? netcode_client_create_dual( address, address2, &config, lan.time )
                                   : netcode_client_create( address, &config, lan.time );
    REQUIRE( lan.clients[client] != NULL );
}

static void lan_client( int client, const char * address )
{
    lan_client_with( client, address, NULL, 0 );
}

/* Starts to connect with a token that names these servers and gives each a second. */
static void lan_connect( int client, const char * first, const char * second )
{
    const char * names[2];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    names[0] = first;
    names[1] = second;
    REQUIRE_EQ( netcode_generate_connect_token( second ? 2 : 1, names, names, 60, 1, (uint64_t) client + 1,
                                                WORLD_PROTOCOL, world_key, NULL, token ),
                NETCODE_OK );
    netcode_client_connect( lan.clients[client], token );
}

static void lan_step( void )
{
    int i;
    lan.time += 0.01;
    for ( i = 0; i < LAN_SERVERS; i++ )
        if ( lan.servers[i] )
            netcode_server_update( lan.servers[i], lan.time );
    for ( i = 0; i < LAN_CLIENTS; i++ )
        if ( lan.clients[i] )
            netcode_client_update( lan.clients[i], lan.time );
    netcode_sleep( 0.0002 ); /* the system delivers at once, unless it is busy */
}

static void lan_run( double seconds )
{
    double end = lan.time + seconds;
    while ( lan.time < end )
        lan_step();
}

/* The client is connected, to the server of this name, and the server knows that it knows. */
static int lan_arrives( int client, const char * name )
{
    struct netcode_address_t a = address_of( name );
    double end = lan.time + 6.0;
    while ( netcode_client_state( lan.clients[client] ) != NETCODE_CLIENT_STATE_CONNECTED && lan.time < end )
        lan_step();
    if ( !CHECK_EQ( netcode_client_state( lan.clients[client] ), NETCODE_CLIENT_STATE_CONNECTED ) )
        return 0;
    lan_run( 0.3 );
    return CHECK( netcode_address_equal( netcode_client_server_address( lan.clients[client] ), &a ) );
}

static void lan_leaves( int client )
{
    int i;
    netcode_client_disconnect( lan.clients[client] );
    lan_run( 0.1 );
    for ( i = 0; i < LAN_SERVERS; i++ )
        if ( lan.servers[i] )
            CHECK_EQ( netcode_server_num_connected_clients( lan.servers[i] ), 0 );
}

/* The server sends every payload back to its sender. */
static void lan_echo_all( void )
{
    struct netcode_event_t event;
    int i;
    for ( i = 0; i < LAN_SERVERS; i++ )
        while ( lan.servers[i] && netcode_server_next_event( lan.servers[i], &event ) )
            if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                netcode_server_send_packet( lan.servers[i], event.client_index, event.data, event.bytes );
                netcode_server_free_packet( lan.servers[i], event.data );
            }
}

/* One payload of a client comes back as it was sent. */
static int lan_echo( int client, int bytes, int tag )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE], *packet = NULL;
    int tries, found = 0, good;
    payload_fill( data, bytes, tag );
    netcode_client_send_packet( lan.clients[client], data, bytes );
    for ( tries = 0; tries < 50 && !packet; tries++ ) {
        lan_step();
        lan_echo_all();
        packet = netcode_client_receive_packet( lan.clients[client], &found, NULL );
    }
    good = packet && found == bytes && memcmp( packet, data, (size_t) bytes ) == 0;
    if ( packet )
        netcode_client_free_packet( lan.clients[client], packet );
    return good;
}

static struct netcode_server_stats_t lan_server_stats( int server )
{
    struct netcode_server_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_server_stats( lan.servers[server], &stats );
    return stats;
}

static struct netcode_client_stats_t lan_client_stats( int client )
{
    struct netcode_client_stats_t stats;
    memset( &stats, 0, sizeof( stats ) );
    netcode_client_stats( lan.clients[client], &stats );
    return stats;
}

/* ---- batched sends through the API ---- */

/* Four messages: up to the shorter one; up to the longer one; that and the one behind it; the rest. */
static const int batch_sizes[] = { 400, 400, 400, 90, 400, 400, 1200, 400, 400, 400, 400, 400 };

enum { BATCH = sizeof( batch_sizes ) / sizeof( batch_sizes[0] ) };

/* A payload of a batch for this player. */
static int batch_fill( uint8_t * data, int player, int number )
{
    payload_fill( data, batch_sizes[number], player * 50 + number );
    return batch_sizes[number];
}

/* All that waits at a client is the batch, in its order. */
static void batch_expect( int client )
{
    uint8_t expected[NETCODE_MAX_PACKET_SIZE], *packet;
    int i, found, tries;
    for ( i = 0; i < BATCH; i++ ) {
        packet = netcode_client_receive_packet( lan.clients[client], &found, NULL );
        for ( tries = 0; !packet && tries < 20; tries++ ) {
            lan_step();
            packet = netcode_client_receive_packet( lan.clients[client], &found, NULL );
        }
        if ( !CHECK( packet != NULL ) )
            return;
        CHECK_EQ( found, batch_fill( expected, client + 1, i ) );
        CHECK_MEM( packet, expected, batch_sizes[i] );
        netcode_client_free_packet( lan.clients[client], packet );
    }
    CHECK( netcode_client_receive_packet( lan.clients[client], &found, NULL ) == NULL );
}

TEST( linux_batched_sends_of_a_server )
{
    enum { PLAYERS = 3 };
    struct netcode_server_config_t config = lan_config();
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    int i, k;
    lan_close();
    config.batch_sends = 1;
    lan_server( 0, "127.0.0.1:0", &config, 8 );
    for ( i = 0; i < PLAYERS; i++ ) {
        lan_client( i, "127.0.0.1:0" );
        lan_connect( i, lan.at[0], NULL );
        REQUIRE( lan_arrives( i, lan.at[0] ) );
    }
    linux_reset();
    for ( k = 0; k < BATCH; k++ )
        for ( i = 0; i < PLAYERS; i++ ) {
            int player = (int) netcode_server_client_id( lan.servers[0], i );
            netcode_server_send_packet( lan.servers[0], i, data, batch_fill( data, player, k ) );
        }
    CHECK_EQ( linux_system.sends, 0 );
    netcode_server_flush( lan.servers[0] );
    if ( LINUX_WRAPPED ) {
        CHECK_EQ( linux_system.sends, 1 );
    }
    for ( i = 0; i < PLAYERS; i++ )
        batch_expect( i );
    CHECK_EQ( lan_server_stats( 0 ).send_errors, 0 );
    lan_close();
}

TEST( linux_batched_sends_of_a_client )
{
    enum { COUNT = 100, BYTES = 1200 };
    struct netcode_event_t event;
    uint8_t data[BYTES];
    int i, found = 0;
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_client_with( 0, "127.0.0.1:0", NULL, 1 );
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    for ( i = 0; i < COUNT; i++ ) {
        payload_fill( data, BYTES, i );
        netcode_client_send_packet( lan.clients[0], data, BYTES );
    }
    netcode_client_flush( lan.clients[0] );
    for ( i = 0; i < 20; i++ ) {
        lan_step();
        while ( netcode_server_next_event( lan.servers[0], &event ) )
            if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                payload_fill( data, BYTES, found++ );
                CHECK_EQ( event.bytes, BYTES );
                CHECK_MEM( event.data, data, BYTES );
                netcode_server_free_packet( lan.servers[0], event.data );
            }
    }
    CHECK_EQ( found, COUNT );
    CHECK_EQ( lan_client_stats( 0 ).send_errors, 0 );
    lan_close();
}

/* ---- the kernel filter ---- */

/* Could a server have a use for it? By the library's own reader, and by the size of a request. */
static int filter_should_pass( const uint8_t * data, int bytes )
{
    nc_packet_t packet;
    if ( bytes > 0 && data[0] == NETCODE_PACKET_REQUEST )
        return bytes == REQUEST_BYTES || bytes == 1062;
    return bytes > 0 && nc_packet_parse( &packet, data, bytes, NC_TO_SERVER ) == NETCODE_DROP_NONE;
}

/* Receives one datagram in at most a second: its size, -1 for none. */
static int filter_receive( struct netcode_socket_t * socket, uint8_t * data, int capacity )
{
    struct netcode_datagram_t place;
    int tries, count = 0;
    memset( &place, 0, sizeof( place ) );
    place.data = data;
    place.capacity = capacity;
    for ( tries = 0; tries < 20 && count == 0; tries++ ) {
        count = socket->receive( socket->context, &place, 1 );
        if ( count == 0 )
            socket->wait( socket->context, 0.05 );
    }
    return count == 1 ? place.bytes : -1;
}

/* The sizes around every edge, and some far from all of them. */
static int filter_sizes( int * sizes )
{
    static const int ranges[][2] = { { 0, 2 },       { 17, 37 },     { 100, 100 },   { 323, 337 },
                                     { 1060, 1063 }, { 1077, 1079 }, { 1214, 1228 }, { 1300, 1300 } };
    int count = 0, bytes;
    size_t i;
    for ( i = 0; i < sizeof( ranges ) / sizeof( ranges[0] ); i++ )
        for ( bytes = ranges[i][0]; bytes <= ranges[i][1]; bytes++ )
            sizes[count++] = bytes;
    return count;
}

/* Sends every size with this prefix byte, then something that passes: what arrives before that is what should. */
static int filter_try_prefix( struct netcode_socket_t * socket, int from, const struct netcode_address_t * to,
                              int prefix )
{
    static const uint8_t last[18] = { 0x16, 0xEE };
    uint8_t data[1400], found[1500];
    int sizes[128], count = filter_sizes( sizes ), i, passed = 0;
    for ( i = 0; i < count; i++ ) {
        payload_fill( data, sizes[i], prefix + i );
        data[0] = (uint8_t) prefix;
        CHECK_EQ( plain_send( from, to, data, sizes[i] ), sizes[i] );
    }
    CHECK_EQ( plain_send( from, to, last, sizeof( last ) ), sizeof( last ) );
    for ( i = 0; i < count; i++ ) {
        payload_fill( data, sizes[i], prefix + i );
        data[0] = (uint8_t) prefix;
        if ( !filter_should_pass( data, sizes[i] ) )
            continue;
        passed++;
        if ( !CHECK_EQ( filter_receive( socket, found, sizeof( found ) ), sizes[i] ) ) {
            printf( "    prefix 0x%02x, %d bytes\n", (unsigned) prefix, sizes[i] );
            REQUIRE( 0 );
        }
        CHECK_MEM( found, data, sizes[i] );
    }
    REQUIRE_EQ( filter_receive( socket, found, sizeof( found ) ), sizeof( last ) );
    CHECK_MEM( found, last, sizeof( last ) );
    return passed;
}

/* Does this system take filters? In some sandboxes it does not. */
static int filter_works( void )
{
#if LINUX_EXTRAS
    struct netcode_address_t at;
    int s = plain_socket( "127.0.0.1:0", &at ), good = nc_socket_set_filter( s, NETCODE_ADDRESS_IPV4, NULL );
    close( s );
    return good;
#else
    return 0;
#endif
}

/* All prefix bytes on a socket of this family: how many datagrams passed. */
static int filter_try_all( const char * address )
{
    struct netcode_socket_t socket;
    struct netcode_address_t at;
    int prefix, from = plain_socket( address, &at ), passed = 0;
    linux_reset();
    memset( &post, 0, sizeof( post ) );
    post_open_socket( &socket, address, NULL, 1, 0 );
    for ( prefix = 0; prefix < 256; prefix++ )
        passed += filter_try_prefix( &socket, from, &( (nc_socket_udp_t *) socket.context )->bound[0], prefix );
    close( from );
    socket.close( socket.context );
    CHECK_EQ( post.allocator.live, 0 );
    return passed;
}

TEST( linux_filter_passes_what_could_be_accepted )
{
    int sizes[128], count = filter_sizes( sizes ), passed, expected = 2, i, k;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    passed = filter_try_all( "127.0.0.1:0" );
    for ( k = 1; k <= 8; k++ ) /* the standard's sizes: the prefix byte, 1 to 8 bytes of sequence, the data, the tag */
        for ( i = 0; i < count; i++ ) {
            int body = sizes[i] - 1 - k - 16;
            expected += ( body == 0 ) + ( body == 8 ) + ( body == 308 ) + ( body >= 1 && body <= 1200 );
        }
    CHECK_EQ( passed, expected );
    if ( real_ipv6() )
        CHECK_EQ( filter_try_all( "[::1]:0" ), expected );
}

/* What the filter throws away is not seen by the library, and is reported as the system's own drops. */
static void filter_of_a_server( int off )
{
    enum { JUNK = 500 };
    struct netcode_server_config_t config = lan_config();
    struct netcode_server_stats_t before, after;
    struct sockaddr_in to;
    uint8_t junk[1300] = { 0x65 }; /* a payload that is never so large; and 64 bytes of a type that does not exist */
    int raw, i, filters = filter_works() && !off;
    lan_close();
    config.kernel_filter = -off;
    lan_server( 0, "127.0.0.1:0", &config, 4 );
    lan_client( 0, "127.0.0.1:0" );
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    CHECK( lan_echo( 0, 1, 5 ) );
    CHECK( lan_echo( 0, 1200, 6 ) );
    before = lan_server_stats( 0 );
    raw = real_raw( lan.at[0], &to );
    for ( i = 0; i < JUNK; i++ ) {
        junk[0] = (uint8_t) ( i % 2 ? 0x65 : 0x69 );
        (void) sendto( raw, junk, i % 2 ? 1250 : 64, 0, (struct sockaddr *) &to, sizeof( to ) );
        if ( i % 25 == 0 )
            lan_step();
    }
    CHECK( lan_echo( 0, 1, 7 ) );
    CHECK( lan_echo( 0, 1200, 8 ) );
    after = lan_server_stats( 0 );
    CHECK_EQ( all_drops( after.dropped ) - all_drops( before.dropped ), filters ? 0 : JUNK );
    CHECK_EQ( after.kernel_drops - before.kernel_drops, filters ? JUNK : 0 );
    CHECK_LE( after.bytes_received - before.bytes_received, filters ? 20000 : 20000 + JUNK * 1250 );
    close( raw );
    lan_leaves( 0 );
    lan_close();
}

TEST( linux_filter_of_a_server )
{
    for ( int off = 0; off < 2; off++ )
        filter_of_a_server( off );
}

/* Where the system refuses the filter, the log says so and everything else is as ever. */
TEST( linux_filter_that_is_refused )
{
#if LINUX_WRAPPED
    struct netcode_server_config_t config = lan_config();
    struct sockaddr_in to;
    uint8_t junk[64] = { 0x69 };
    int raw;
    lan_close();
    linux_system.refused_level = SOL_SOCKET;
    linux_system.refused_option = SO_ATTACH_FILTER;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    lan_server( 0, "127.0.0.1:0", &config, 4 );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    CHECK_EQ( lan.no_filters, 1 );
    lan_client( 0, "127.0.0.1:0" );
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    CHECK( !lan.servers[0]->base.extras.set_filter &&
           !lan.servers[0]->base.extras.fill ); /* nothing counts floods then */
    raw = real_raw( lan.at[0], &to );
    (void) sendto( raw, junk, sizeof( junk ), 0, (struct sockaddr *) &to, sizeof( to ) );
    CHECK( lan_echo( 0, 100, 1 ) );
    CHECK_EQ( lan_server_stats( 0 ).dropped[NETCODE_DROP_UNKNOWN_PACKET_TYPE], 1 );
    close( raw );
    lan_close();
#else
    SKIP( "the system can not be made to refuse here" );
#endif
}

/* A system that has too little memory for the filter of a flood goes on with the one for malformed datagrams. */
TEST( linux_filter_that_is_too_large )
{
#if LINUX_WRAPPED
    static nc_flood_filter_t flood;
    struct netcode_socket_t socket;
    struct netcode_address_t at;
    uint8_t data[2][64] = { { 0x69 }, { 0x65 } }, in[64]; /* a type that does not exist, and a payload */
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    memset( &post, 0, sizeof( post ) );
    post_open_socket( &socket, "127.0.0.1:0", NULL, 1, 0 );
    int from = plain_socket( "127.0.0.1:0", &at );
    linux_system.filter_steps = 200;
    CHECK_EQ( udp_extras.set_filter( socket.context, &flood ), 0 );
    linux_reset();
    for ( int i = 0; i < 2; i++ )
        CHECK_EQ( plain_send( from, &( (nc_socket_udp_t *) socket.context )->bound[0], data[i], 64 ), 64 );
    CHECK_EQ( filter_receive( &socket, in, sizeof( in ) ), 64 );
    CHECK_EQ( in[0], 0x65 );
    close( from );
    socket.close( socket.context );
#else
    SKIP( "the system can not be made to refuse here" );
#endif
}

/* ---- the client's socket, aimed at its server ---- */

/* The port by which the system knows the client's socket of a family. */
static int lan_system_port( int client, int type )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) lan.clients[client]->base.socket.context;
    struct sockaddr_storage storage;
    struct netcode_address_t at;
    socklen_t length = sizeof( storage );
    int i = udp->bound[0].type == type ? 0 : 1;
    REQUIRE_EQ( getsockname( udp->handles[i], (struct sockaddr *) &storage, &length ), 0 );
    nc_socket_from_system( &at, &storage );
    return at.port;
}

/* The system drops what others send to a client; where it can not, the client does. */
TEST( linux_client_hears_its_server_only )
{
    enum { JUNK = 100 };
    struct netcode_client_stats_t stats;
    struct netcode_address_t at;
    struct sockaddr_in to;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint8_t junk[64] = { 0x15 };
    int raw, i;
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_client( 0, "127.0.0.1:0" );
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    at = address_of( "127.0.0.1" );
    at.port = netcode_client_get_port( lan.clients[0] );
    raw = real_raw( netcode_address_to_string( &at, text ), &to );
    for ( i = 0; i < JUNK; i++ )
        (void) sendto( raw, junk, sizeof( junk ), 0, (struct sockaddr *) &to, sizeof( to ) );
    CHECK( lan_echo( 0, 100, 1 ) );
    stats = lan_client_stats( 0 );
    CHECK_EQ( all_drops( stats.dropped ), LINUX_EXTRAS ? 0 : JUNK );
    CHECK_EQ( stats.dropped[NETCODE_DROP_WRONG_SERVER], LINUX_EXTRAS ? 0 : JUNK );
    CHECK_EQ( stats.packets_received[NETCODE_PACKET_PAYLOAD], 1 );
    close( raw );
    lan_close();
}

/* The first server is dead, silent or closed: the client gets to the second one, from the same port. */
static void next_server_story( const char * bind_to, int silent, const char * dead, const char * alive,
                               const char * bind_to2 )
{
    struct netcode_address_t at;
    char name[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int handle = plain_socket( dead, &at ), port, type = address_of( alive ).type;
    if ( !silent )
        plain_shut( handle, &at );
    lan_close();
    netcode_address_to_string( &at, name );
    lan_plain_server( 0, alive );
    lan_client_with( 0, bind_to, bind_to2, 0 );
    port = netcode_client_get_port( lan.clients[0] );
    CHECK_EQ( lan_system_port( 0, at.type ), port );
    lan_connect( 0, name, lan.at[0] );
    if ( lan_arrives( 0, lan.at[0] ) ) {
        struct netcode_client_report_t report;
        netcode_client_report( lan.clients[0], &report );
        CHECK_LE( report.servers[0].seconds_waited, 0.4 );
        CHECK( lan_echo( 0, 700, 3 ) );
        CHECK_EQ( netcode_client_get_port( lan.clients[0] ), port );
        CHECK_EQ( lan_system_port( 0, type ), port );
        CHECK_EQ( lan_system_port( 0, at.type ), port );
        CHECK_EQ( netcode_server_client_address( lan.servers[0], 0 )->port, port );
    }
    lan_close();
    close( handle );
}

/*  The second server is asked, too, and is silent, or its port is closed: the socket still hears the first one, which answers late, and no
    error stays in it, with which select would never wait. */
static void slow_first_server( int is_closed )
{
    struct netcode_address_t at;
    char name[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    struct pollfd waits;
    int handle = plain_socket( "127.0.0.1:0", &at );
    if ( is_closed )
        plain_shut( handle, &at );
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_client( 0, "127.0.0.1:0" );
    struct netcode_server_t * server = lan.servers[0];
    lan_connect( 0, lan.at[0], netcode_address_to_string( &at, name ) );
    lan.servers[0] = NULL;
    lan_run( 0.3 );
    lan.servers[0] = server;
    CHECK( lan_arrives( 0, lan.at[0] ) );
    CHECK( lan_echo( 0, 500, 1 ) );
    waits.fd = ( (nc_socket_udp_t *) lan.clients[0]->base.socket.context )->handles[0];
    waits.events = waits.revents = 0;
    CHECK_EQ( poll( &waits, 1, 0 ), 0 );
    lan_close();
    close( handle );
}

TEST( linux_client_hears_a_slow_first_server )
{
    slow_first_server( 0 );
    slow_first_server( 1 );
}

/* A port that is free, in the manner of a fixed one. */
static const char * some_port( char * text )
{
    struct netcode_address_t at = address_of( "127.0.0.1:1" );
    at.port = (uint16_t) socket_free_port();
    return netcode_address_to_string( &at, text );
}

TEST( linux_client_leaves_a_dead_server )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int silent;
    for ( silent = 0; silent < 2; silent++ ) {
        next_server_story( "127.0.0.1:0", silent, "127.0.0.1:0", "127.0.0.1:0", NULL );
        next_server_story( "0.0.0.0", silent, "127.0.0.1:0", "127.0.0.1:0", NULL );
        next_server_story( some_port( text ), silent, "127.0.0.1:0", "127.0.0.1:0", NULL );
    }
}

TEST( linux_client_leaves_a_dead_server_for_the_other_family )
{
    int silent;
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    for ( silent = 0; silent < 2; silent++ ) {
        next_server_story( "127.0.0.1:0", silent, "127.0.0.1:0", "[::1]:0", "[::1]:0" );
        next_server_story( "0.0.0.0", silent, "[::1]:0", "127.0.0.1:0", "[::]" );
    }
}

/* From one server to another, and back, with one client object and from one port. */
static void wander( const char * bind_to, const char * bind_to2, const char * second )
{
    int i, port;
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_plain_server( 1, second );
    lan_client_with( 0, bind_to, bind_to2, 0 );
    port = netcode_client_get_port( lan.clients[0] );
    for ( i = 0; i < 6; i++ ) {
        static const int way[] = { 0, 1, 0, 0, 1, 1 };
        lan_connect( 0, lan.at[way[i]], NULL );
        if ( !lan_arrives( 0, lan.at[way[i]] ) )
            break;
        CHECK_EQ( netcode_server_num_connected_clients( lan.servers[way[i]] ), 1 );
        CHECK( lan_echo( 0, 300, i ) );
        CHECK_EQ( netcode_client_get_port( lan.clients[0] ), port );
        CHECK_EQ( lan_system_port( 0, address_of( lan.at[way[i]] ).type ), port );
        lan_leaves( 0 );
    }
    CHECK_EQ( i, 6 );
    lan_close();
}

TEST( linux_client_connects_to_another_server_and_back )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    wander( "127.0.0.1:0", NULL, "127.0.0.1:0" );
    wander( "0.0.0.0:0", NULL, "127.0.0.1:0" );
    wander( some_port( text ), NULL, "127.0.0.1:0" );
}

TEST( linux_client_connects_to_another_family_and_back )
{
    if ( !real_ipv6() )
        SKIP( "no ::1 here" );
    wander( "127.0.0.1:0", "[::1]:0", "[::1]:0" );
    wander( "0.0.0.0", "::", "[::1]:0" );
}

/* A system that does not aim: then the client is as any other socket. */
TEST( linux_client_that_can_not_be_aimed )
{
    struct netcode_client_stats_t stats;
    int port;
    if ( !LINUX_WRAPPED )
        SKIP( "the system can not be made to refuse here" );
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_plain_server( 1, "127.0.0.1:0" );
    lan_client( 0, "127.0.0.1:0" );
    port = netcode_client_get_port( lan.clients[0] );
    linux_system.connect_error = ENETUNREACH;
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    CHECK( lan_echo( 0, 1200, 1 ) );
    lan_leaves( 0 );
    linux_system.connect_error = 0;
    lan_connect( 0, lan.at[1], NULL );
    REQUIRE( lan_arrives( 0, lan.at[1] ) );
    CHECK( lan_echo( 0, 1200, 2 ) );
    lan_leaves( 0 );
    linux_system.connect_error = EPERM; /* aimed before, and now elsewhere without being aimed */
    lan_connect( 0, lan.at[0], NULL );
    REQUIRE( lan_arrives( 0, lan.at[0] ) );
    CHECK( lan_echo( 0, 1200, 3 ) );
    CHECK_EQ( lan_system_port( 0, NETCODE_ADDRESS_IPV4 ), port );
    lan_leaves( 0 );
    linux_system.connect_error = 0;
    linux_system.release_error = EPERM; /* aimed, and never released */
    for ( int i = 0; i < 2; i++ ) {
        lan_connect( 0, lan.at[!i], NULL );
        REQUIRE( lan_arrives( 0, lan.at[!i] ) );
        CHECK( lan_echo( 0, 1200, 4 + i ) );
        CHECK_EQ( lan_system_port( 0, NETCODE_ADDRESS_IPV4 ), port );
        lan_leaves( 0 );
    }
    stats = lan_client_stats( 0 );
    CHECK_EQ( stats.send_errors, 0 );
    lan_close();
}

/* A socket that could be neither disconnected nor replaced is connected still: the next server is tried again, and heard. */
TEST( linux_a_socket_that_stays_connected_is_disconnected_later )
{
    struct netcode_socket_t a, b, c;
    memset( &linux_system, 0, sizeof( linux_system ) );
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) && socket_open( &b, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &c, "127.0.0.1", NULL ) );
    struct netcode_address_t to_b = socket_where( &b, 0 ), nobody;
    memset( &nobody, 0, sizeof( nobody ) );
    udp_extras.connect_to( a.context, &to_b );
    linux_system.release_error = EPERM;
    test_lacks_family = AF_INET;
    test_lacks_addresses = 0;
    udp_extras.connect_to( a.context, &nobody );
    linux_system.release_error = test_lacks_family = 0;
    udp_extras.connect_to( a.context, &nobody );
    struct netcode_address_t to_a = socket_where( &a, 0 );
    CHECK_EQ( socket_send( &c, &to_a, "heard", 5 ), 1 );
    REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
    CHECK_MEM( socket_places[0].data, "heard", 5 );
    a.close( a.context );
    b.close( b.context );
    c.close( c.context );
}

/* Is loopback the only interface with an address? Then nothing can leave the machine. */
static int nothing_but_loopback( void )
{
    struct ifaddrs * list = NULL;
    const struct ifaddrs * at;
    int alone = 1;
    if ( getifaddrs( &list ) != 0 )
        return 0;
    for ( at = list; at; at = at->ifa_next )
        if ( at->ifa_addr && ( at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6 ) )
            alone = alone && strncmp( at->ifa_name, "lo", 2 ) == 0;
    freeifaddrs( list );
    return alone;
}

static void unreachable_story( const char * nowhere, const char * bind_to2 )
{
    struct netcode_client_report_t report;
    lan_close();
    lan_plain_server( 0, "127.0.0.1:0" );
    lan_client_with( 0, "0.0.0.0:0", bind_to2, 0 );
    lan_connect( 0, nowhere, lan.at[0] );
    if ( lan_arrives( 0, lan.at[0] ) ) { /* from the beginning */
        netcode_client_report( lan.clients[0], &report );
        CHECK_GE( report.servers[0].errors, 1 );
        CHECK_NE( report.servers[0].last_error, 0 );
        CHECK_LE( report.servers[0].seconds_waited, 0.4 );
        CHECK( lan_echo( 0, 500, 1 ) );
        lan_leaves( 0 );
        lan_connect( 0, nowhere, lan.at[0] );
        if ( lan_arrives( 0, lan.at[0] ) ) /* and after a server that it was aimed at */
            CHECK( lan_echo( 0, 500, 2 ) );
    }
    lan_close();
}

/* An address that can not be had, not even asked for: the next server is reached all the same. */
TEST( linux_client_passes_an_address_that_can_not_be_reached )
{
    if ( !nothing_but_loopback() )
        SKIP( "only in a network namespace of its own: nothing shall leave this machine" );
    unreachable_story( "255.255.255.255:40000", NULL );
    unreachable_story( "192.0.2.1:40000", NULL );
    if ( real_ipv6() )
        unreachable_story( "[2001:db8::77]:40000", "[::]:0" );
}

/* ---- a forged ICMP that claims a small path. attacks/rows.py, row 62 ---- */

#if LINUX_EXTRAS && defined( __GLIBC__ )
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* What a child in a network namespace of its own found; its checks are its parent's. */
struct forged_t {
    int ready;         /* 0: no such namespace or raw socket can be had here */
    int sent[3];       /* alone, in a batch, in a batch that must not be fragmented */
    int arrived[3];    /* of them */
    int fragments[3];  /* that the system made of them */
    int judged_by;     /* IP_MTU_DISCOVER of the handle */
    int judged_by_six; /* and of the other family's */
};

static int forged_fragments( void )
{
    char line[1024];
    int count = -1;
    FILE * file = fopen( "/proc/net/snmp", "r" );
    while ( file && count < 0 && fgets( line, sizeof( line ), file ) )
        if ( strncmp( line, "Ip: ", 4 ) == 0 && line[4] >= '0' && line[4] <= '9' )
            (void) sscanf( line, "Ip: %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                           &count );
    if ( file )
        fclose( file );
    return count;
}

static int forged_namespace( void )
{
    struct ifreq request;
    int handle, good;
    if ( unshare( CLONE_NEWNET ) != 0 && unshare( CLONE_NEWUSER | CLONE_NEWNET ) != 0 )
        return 0;
    handle = socket( AF_INET, SOCK_DGRAM, 0 );
    memset( &request, 0, sizeof( request ) );
    memcpy( request.ifr_name, "lo", 3 );
    request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    good = handle >= 0 && ioctl( handle, SIOCSIFFLAGS, &request ) == 0;
    close( handle );
    return good;
}

static uint16_t forged_sum( const uint8_t * data, size_t bytes )
{
    uint32_t sum = 0;
    for ( size_t i = 0; i < bytes; i += 2 )
        sum += (uint32_t) ( data[i] << 8 | data[i + 1] );
    sum = ( sum & 0xFFFF ) + ( sum >> 16 );
    return ( uint16_t ) ~( ( sum & 0xFFFF ) + ( sum >> 16 ) );
}

/* An ICMP error about a packet of 1,228 bytes from one port of 127.0.0.1 to another. */
static int forged_four( int type, int code, uint16_t from, uint16_t to )
{
    uint8_t packet[36] = { (uint8_t) type, (uint8_t) code, 0, 0, 0, 0, 552 >> 8, 552 & 0xFF };
    static const uint8_t about[20] = { 0x45, 0, 1228 >> 8, 1228 & 0xFF, 1, 2, 0x40, 0, 64, 17,
                                       0,    0, 127,       0,           0, 1, 127,  0, 0,  1 };
    struct netcode_address_t loopback = address_of( "127.0.0.1:0" );
    int handle = socket( AF_INET, SOCK_RAW, IPPROTO_ICMP );
    uint16_t sum;
    memcpy( packet + 8, about, sizeof( about ) );
    packet[28] = (uint8_t) ( from >> 8 );
    packet[29] = (uint8_t) from;
    packet[30] = (uint8_t) ( to >> 8 );
    packet[31] = (uint8_t) to;
    sum = forged_sum( packet + 8, 20 );
    packet[18] = (uint8_t) ( sum >> 8 );
    packet[19] = (uint8_t) sum;
    sum = forged_sum( packet, sizeof( packet ) );
    packet[2] = (uint8_t) ( sum >> 8 );
    packet[3] = (uint8_t) sum;
    if ( handle < 0 || plain_send( handle, &loopback, packet, sizeof( packet ) ) != (ssize_t) sizeof( packet ) )
        return 0;
    close( handle );
    return 1;
}

/* The same of ::1, whose checksum the system computes. */
static int forged_six( int type, int code, uint16_t from, uint16_t to )
{
    uint8_t packet[56] = { (uint8_t) type, (uint8_t) code, 0, 0, 0, 0, 1280 >> 8, 1280 & 0xFF, 0x60 };
    struct sockaddr_in6 loopback;
    int handle = socket( AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 ), good;
    memset( &loopback, 0, sizeof( loopback ) );
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr.s6_addr[15] = packet[8 + 23] = packet[8 + 39] = 1;
    packet[8 + 5] = 8;
    packet[8 + 6] = 17;
    packet[8 + 7] = 64;
    packet[48] = (uint8_t) ( from >> 8 );
    packet[49] = (uint8_t) from;
    packet[50] = (uint8_t) ( to >> 8 );
    packet[51] = (uint8_t) to;
    good = handle >= 0 && sendto( handle, packet, sizeof( packet ), 0, (const struct sockaddr *) &loopback,
                                  sizeof( loopback ) ) == (ssize_t) sizeof( packet );
    close( handle );
    return good;
}

/* Sends `count` payloads of 1,200 and 300 bytes in turn from one socket to a plain one, in one call. */
static void forged_round( struct forged_t * found, int round, struct netcode_socket_t * out, int handle,
                          const struct netcode_address_t * to, int count )
{
    struct netcode_datagram_t datagrams[8];
    static uint8_t bytes[1200];
    int before = forged_fragments();
    memset( datagrams, 0, sizeof( datagrams ) );
    for ( int i = 0; i < count; i++ ) {
        datagrams[i].address = *to;
        datagrams[i].data = bytes;
        datagrams[i].bytes = i < count / 2 ? 1200 : 300;
    }
    found->sent[round] = out->send( out->context, datagrams, count );
    while ( recv( handle, bytes, sizeof( bytes ), MSG_DONTWAIT ) > 0 )
        found->arrived[round]++;
    found->fragments[round] = forged_fragments() - before;
}

/* The child: opens a server's or a client's socket, is given the forged answer, and sends. */
static void forged_story( void * of_child, int client )
{
    struct forged_t * found = (struct forged_t *) of_child;
    struct netcode_address_t at = address_of( "127.0.0.1:0" ), six = address_of( "[::1]:0" ), to;
    struct netcode_socket_t out;
    nc_socket_request_t request;
    nc_socket_udp_t * udp;
    socklen_t bytes = sizeof( int );
    int family, handle, with_six, must_not = 2; /* IP_PMTUDISC_DO */
    memset( &request, 0, sizeof( request ) );
    if ( !forged_namespace() )
        return;
    handle = plain_socket( "127.0.0.1:0", &to );
    request.allocator = nc_allocator_make( NULL, NULL, NULL );
    request.addresses[0] = &at;
    request.addresses[1] = &six;
    request.receive_buffer_bytes = request.send_buffer_bytes = 65536;
    request.reports_errors = client;
    with_six = nc_socket_open_udp( &out, &udp_extras, &request, &family ) == NC_SOCKET_OK;
    request.addresses[1] = NULL;
    if ( !with_six && nc_socket_open_udp( &out, &udp_extras, &request, &family ) != NC_SOCKET_OK )
        return;
    udp = (nc_socket_udp_t *) out.context;
    if ( client )
        if ( udp_extras.connect_to )
            udp_extras.connect_to( out.context, &to );
    (void) getsockopt( udp->handles[0], IPPROTO_IP, 10, &found->judged_by, &bytes );
    found->judged_by_six = with_six ? 0 : found->judged_by;
    if ( with_six )
        (void) getsockopt( udp->handles[1], IPPROTO_IPV6, 23, &found->judged_by_six, &bytes );
    found->ready = forged_four( ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, udp->bound[0].port, to.port );
    forged_round( found, 0, &out, handle, &to, 1 );
    found->ready = found->ready && forged_four( ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, udp->bound[0].port, to.port );
    forged_round( found, 1, &out, handle, &to, 8 );
    (void) setsockopt( udp->handles[0], IPPROTO_IP, 10, &must_not, sizeof( must_not ) );
    found->ready = found->ready && forged_four( ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, udp->bound[0].port,
                                                to.port ); /* a socket that would believe it */
    forged_round( found, 2, &out, handle, &to, 8 );
    out.close( out.context );
    close( handle );
}

/* Plays a story in a child, for its network namespace. */
static void forged_play( void ( *story )( void * found, int how ), void * found, size_t bytes, int how )
{
    int ends[2], status = 0;
    pid_t child;
    REQUIRE_EQ( pipe( ends ), 0 );
    fflush( NULL );
    child = fork();
    REQUIRE( child >= 0 );
    if ( child == 0 ) {
        if ( setjmp( test_state.escape ) ) /* what a REQUIRE ends here must not go on as the runner */
            _exit( 1 );
        story( found, how );
        _exit( write( ends[1], found, bytes ) == (ssize_t) bytes ? 0 : 1 );
    }
    close( ends[1] );
    CHECK_EQ( read( ends[0], found, bytes ), (ssize_t) bytes );
    close( ends[0] );
    REQUIRE( waitpid( child, &status, 0 ) == child && status == 0 );
}

/*  Payloads leave whole and arrive, alone and in batches, from a server's socket and from a client's, which is connected and so hears of the
    ICMP at its next send. And where the system does refuse a size, what it refused is not counted as sent. */
TEST( linux_forged_icmp_fragments_nothing )
{
    for ( int client = 0; client < 2; client++ ) {
        struct forged_t found;
        memset( &found, 0, sizeof( found ) );
        forged_play( forged_story, &found, sizeof( found ), client );
        if ( !found.ready )
            SKIP( "no network namespace of its own can be had here" );
        CHECK_EQ( found.judged_by, 5 ); /* IP_PMTUDISC_OMIT */
        CHECK_EQ( found.judged_by_six, 5 );
        CHECK_EQ( found.sent[0], 1 );
        CHECK_EQ( found.arrived[0], 1 );
        CHECK_EQ( found.fragments[0], 0 );
        CHECK_EQ( found.sent[1], 8 );
        CHECK_EQ( found.arrived[1], 8 );
        CHECK_EQ( found.fragments[1], 0 );
        CHECK_EQ( found.sent[2], 4 ); /* those that fit into 552 bytes */
        CHECK_EQ( found.arrived[2], 4 );
    }
}

/* ---- forged ICMP errors of all kinds. attacks/rows.py, row 87 ---- */

struct forged_heard_t {
    int ready, six;
    int kinds, sent, by_server, by_client;
    int errors;   /* that the client received */
    int replaced; /* sockets */
    int refused;  /* functions of the system that are not used any more, because of them */
};

static uint64_t forged_cookie( const nc_socket_udp_t * udp )
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof( cookie );
    (void) getsockopt( udp->handles[0], SOL_SOCKET, SO_COOKIE, &cookie, &bytes );
    return cookie;
}

/* Half of the errors come before what is sent, and half between sending and updating. */
static void forged_step( struct forged_heard_t * heard, int type, int code, int count )
{
    uint8_t data[100] = { 1 }, *packet;
    uint16_t client = netcode_client_get_port( lan.clients[0] ), server = netcode_server_get_port( lan.servers[0] );
    int ( *forge )( int, int, uint16_t, uint16_t ) = heard->six ? forged_six : forged_four;
    int bytes;
    for ( int half = 0; half < 2; half++ ) {
        for ( int n = 0; n < count; n++ )
            heard->ready &= forge( type, code, client, server ) & forge( type, code, server, client );
        if ( half == 0 ) {
            netcode_client_send_packet( lan.clients[0], data, sizeof( data ) );
            netcode_server_send_packet( lan.servers[0], 0, data, sizeof( data ) );
        }
    }
    heard->sent++;
    lan_step();
    while ( ( packet = netcode_server_receive_packet( lan.servers[0], 0, &bytes, NULL ) ) != NULL ) {
        heard->by_server++;
        netcode_server_free_packet( lan.servers[0], packet );
    }
    while ( ( packet = netcode_client_receive_packet( lan.clients[0], &bytes, NULL ) ) != NULL ) {
        heard->by_client++;
        netcode_client_free_packet( lan.clients[0], packet );
    }
}

/* A game between two sockets of one family, with or without batch_sends. */
static void forged_join( int six, int batch )
{
    struct netcode_server_config_t config;
    lan_close();
    config = lan_config();
    config.events = 0;
    config.batch_sends = batch;
    lan_server( 0, six ? "[::1]:0" : "127.0.0.1:0", &config, 1 );
    lan_client_with( 0, six ? "[::1]:0" : "127.0.0.1:0", NULL, batch );
    lan_connect( 0, lan.at[0], NULL );
    for ( int i = 0; i < 500 && netcode_client_state( lan.clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED; i++ )
        lan_step();
}

static void forged_errors( void * found, int how )
{
    static const int kinds[2][5][2] =
        { { { 3, 16 }, { 4, 1 }, { 5, 4 }, { 11, 2 }, { 12, 3 } }, /* type, how many codes */
          { { 1, 9 }, { 2, 1 }, { 3, 2 }, { 4, 4 }, { 100, 1 } } };
    struct forged_heard_t * heard = (struct forged_heard_t *) found;
    struct netcode_client_stats_t stats;
    heard->six = how & 1;
    if ( !forged_namespace() )
        return;
    forged_join( heard->six, how >> 1 );
    nc_socket_udp_t * udps[2] = { (nc_socket_udp_t *) lan.clients[0]->base.socket.context,
                                  (nc_socket_udp_t *) lan.servers[0]->base.socket.context };
    uint64_t cookies[2] = { forged_cookie( udps[0] ), forged_cookie( udps[1] ) };
    heard->ready = netcode_client_state( lan.clients[0] ) == NETCODE_CLIENT_STATE_CONNECTED && cookies[0] != 0;
    for ( int i = 0; i < 5; i++ )
        for ( int code = 0; code < kinds[heard->six][i][1]; code++, heard->kinds++ )
            for ( int n = 0; n < 20; n++ )
                forged_step( heard, kinds[heard->six][i][0], code, 5 );
    for ( int n = 0; n < 40; n++ ) /* "unreachable", 60,000 a second: more than one look at the error queue reads */
        forged_step( heard, heard->six ? 1 : 3, 1, 300 );
    for ( int i = 0; i < 2; i++ ) {
        heard->replaced += forged_cookie( udps[i] ) != cookies[i];
        heard->refused += udps[i]->sending.is_refused + udps[i]->receiving.is_refused;
    }
    heard->refused += udps[0]->peer.type == NETCODE_ADDRESS_NONE;
    netcode_client_stats( lan.clients[0], &stats );
    heard->errors = (int) stats.receive_errors;
    lan_close();
}

/* Ten a tick, 1,000 a second, of each type and code, to the client's socket and to the server's: both hear each other. */
TEST( threat_87_forged_icmp_errors )
{
    for ( int how = 0; how < 4; how++ ) {
        struct forged_heard_t heard;
        memset( &heard, 0, sizeof( heard ) );
        forged_play( forged_errors, &heard, sizeof( heard ), how );
        if ( !heard.ready )
            SKIP( "no network namespace of its own, or no raw sockets, can be had here" );
        CHECK_EQ( heard.kinds, how & 1 ? 17 : 26 );
        CHECK_GE( heard.errors, 100 );
        CHECK_GE( heard.by_server * 100, heard.sent * 99 );
        CHECK_GE( heard.by_client * 100, heard.sent * 99 );
        CHECK_EQ( heard.replaced, 0 );
        CHECK_EQ( heard.refused, 0 );
    }
}

#endif

/* ---- one port for several servers ---- */

TEST( linux_shared_port )
{
    enum { PLAYERS = LAN_CLIENTS };
    struct netcode_server_config_t config = lan_config();
    int i, first, second;
    if ( !LINUX_EXTRAS )
        SKIP( "ports are not shared here" );
    lan_close();
    config.share_port = 1;
    lan_server( 0, "127.0.0.1:0", &config, PLAYERS );
    lan_server( 1, lan.at[0], &config, PLAYERS );
    CHECK_EQ( netcode_server_get_port( lan.servers[1] ), netcode_server_get_port( lan.servers[0] ) );
    for ( i = 0; i < PLAYERS; i++ ) {
        lan_client( i, "127.0.0.1:0" );
        lan_connect( i, lan.at[0], NULL );
    }
    for ( i = 0; i < PLAYERS; i++ )
        CHECK( lan_arrives( i, lan.at[0] ) );
    first = netcode_server_num_connected_clients( lan.servers[0] );
    second = netcode_server_num_connected_clients( lan.servers[1] );
    CHECK_EQ( first + second, PLAYERS );
    CHECK_GT( first, 0 );
    CHECK_GT( second, 0 );
    for ( i = 0; i < PLAYERS; i++ ) {
        CHECK( lan_echo( i, 1 + i * 37, i ) );
        CHECK_EQ( lan_client_stats( i ).packets_received[NETCODE_PACKET_PAYLOAD], 1 ); /* one server answers */
    }
    CHECK_EQ( all_drops( lan_server_stats( 0 ).dropped ) + all_drops( lan_server_stats( 1 ).dropped ), 0 );
    lan_close();
}

/* A server of both families beside another one, at the same port of both. */
static void lan_dual_server( int server, const char * four, const char * six )
{
    struct netcode_server_config_t config = lan_config();
    struct netcode_address_t a = address_of( four );
    config.share_port = 1;
    config.bind_address = four;
    config.bind_address2 = six;
    lan.servers[server] = netcode_server_create_dual( four, six, &config, lan.time );
    REQUIRE( lan.servers[server] != NULL );
    netcode_server_start( lan.servers[server], LAN_CLIENTS );
    a.port = netcode_server_get_port( lan.servers[server] );
    netcode_address_to_string( &a, lan.at[server] );
}

TEST( linux_shared_port_of_both_families )
{
    struct netcode_address_t a;
    char six[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i, sum = 0;
    if ( !LINUX_EXTRAS || !real_ipv6() )
        SKIP( "ports are not shared here, or there is no ::1" );
    lan_close();
    lan_dual_server( 0, "127.0.0.1:0", "[::1]:0" );
    a = address_of( "[::1]:0" );
    a.port = netcode_server_get_port( lan.servers[0] );
    netcode_address_to_string( &a, six );
    lan_dual_server( 1, lan.at[0], six );
    for ( i = 0; i < LAN_CLIENTS; i++ ) {
        lan_client( i, i % 2 ? "127.0.0.1:0" : "[::1]:0" );
        lan_connect( i, i % 2 ? lan.at[0] : six, NULL );
    }
    for ( i = 0; i < LAN_CLIENTS; i++ )
        CHECK( lan_arrives( i, i % 2 ? lan.at[0] : six ) && lan_echo( i, 1 + i * 37, i ) );
    for ( i = 0; i < 2; i++ ) {
        CHECK_GT( netcode_server_num_connected_clients( lan.servers[i] ), 0 );
        sum += netcode_server_num_connected_clients( lan.servers[i] );
    }
    CHECK_EQ( sum, LAN_CLIENTS );
    lan_close();
}

/* Both must say so, whichever comes first. */
TEST( linux_port_that_is_not_shared )
{
    int first, second;
    for ( first = 0; first < 2; first++ )
        for ( second = 0; second < 2; second++ ) {
            struct netcode_server_config_t config = lan_config();
            lan_close();
            config.share_port = first;
            lan_server( 0, "127.0.0.1:0", &config, 4 );
            config.share_port = second;
            lan.servers[1] = lan_create( lan.at[0], config );
            CHECK_EQ( lan.servers[1] != NULL, LINUX_EXTRAS && first && second );
            CHECK_EQ( netcode_server_create_error(), lan.servers[1]
                                                         ? NETCODE_SERVER_CREATE_ERROR_NONE
                                                         : NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED );
            lan_close();
        }
}

/* ---- buffers for many slots ---- */

/* The smaller of what a plain socket of this machine is granted when it asks for so much, to receive. */
static int buffer_limit( int bytes )
{
    int s = socket( AF_INET, SOCK_DGRAM, 0 ), granted;
    REQUIRE_GE( s, 0 );
    granted = nc_socket_set_buffer( s, SO_RCVBUF, bytes );
    close( s );
    return granted;
}

TEST( linux_buffers_grow_with_the_slots )
{
    struct netcode_server_config_t config = lan_config();
    nc_socket_udp_t * udp;
    int small, limit = buffer_limit( 40960000 );
    lan_close();
    lan.servers[0] = lan_create( "127.0.0.1:0", config );
    REQUIRE( lan.servers[0] != NULL );
    udp = (nc_socket_udp_t *) lan.servers[0]->base.socket.context;
    if ( LINUX_WRAPPED ) {
        CHECK_EQ( linux_system.asked[0], 4 << 20 );
        CHECK_EQ( linux_system.asked[1], 4 << 20 );
    }
    small = nc_socket_set_buffer( udp->handles[0], SO_RCVBUF, 65536 ); /* so that growing can be seen below the limit */
    linux_reset();
    netcode_server_start( lan.servers[0], 1024 ); /* 4 KiB a slot are the 4 MiB that it has */
    CHECK_EQ( linux_system.asked[0], 0 );
    netcode_server_start( lan.servers[0], 10000 );
    REQUIRE_EQ( netcode_server_running( lan.servers[0] ), 1 );
    if ( LINUX_WRAPPED ) {
        CHECK_EQ( linux_system.asked[0], 40960000 );
        CHECK_EQ( linux_system.asked[1], 40960000 );
    }
    CHECK_EQ( lan_server_stats( 0 ).receive_buffer_bytes, limit );
    CHECK_GT( lan_server_stats( 0 ).receive_buffer_bytes, small );
    CHECK_GT( lan_server_stats( 0 ).send_buffer_bytes, 0 );
    lan_close();
}

/* Sizes at the edge of an int: a system that doubles what it is asked for must not get a negative number, and datagrams arrive. */
TEST( linux_buffers_at_the_edge_of_an_int )
{
    static const int sizes[] = { INT_MAX, INT_MAX / 2 + 1, INT_MAX / 2, 1 };
    for ( size_t i = 0; i < sizeof( sizes ) / sizeof( sizes[0] ); i++ ) {
        struct netcode_server_config_t config = lan_config();
        lan_close();
        linux_reset();
        config.receive_buffer_bytes = config.send_buffer_bytes = sizes[i];
        lan_server( 0, "127.0.0.1:0", &config, 4 );
        if ( LINUX_WRAPPED ) {
            CHECK_LE( linux_system.asked[0], INT_MAX / 2 );
            CHECK_LE( linux_system.asked[1], INT_MAX / 2 );
        }
        CHECK_GT( lan_server_stats( 0 ).receive_buffer_bytes, 0 );
        CHECK_GT( lan_server_stats( 0 ).send_buffer_bytes, 0 );
        lan_client( 0, "127.0.0.1:0" );
        lan_connect( 0, lan.at[0], NULL );
        if ( lan_arrives( 0, lan.at[0] ) )
            CHECK( lan_echo( 0, 300, 1 ) );
    }
    lan_close();
}

static void * linux_allocate( void * context, size_t bytes )
{
    (void) context;
    linux_system.block_bytes = bytes;
    linux_system.block = (uint8_t *) malloc( bytes );
    return linux_system.block;
}

static void linux_free( void * context, void * pointer )
{
    (void) context;
    free( pointer );
}

/* What is asked for lies within the blocks that the allocator gave, and is most of them; a small server asks for nothing. */
TEST( linux_huge_pages )
{
    int refused, slots[] = { 16, 10000 };
    for ( refused = 0; LINUX_WRAPPED && refused < 2; refused++ )
        for ( size_t i = 0; i < 2; i++ ) {
            struct netcode_server_config_t config = lan_config();
            size_t all = netcode_server_memory( &config, slots[i] );
            lan_close();
            config.allocate_function = linux_allocate;
            config.free_function = linux_free;
            lan.servers[0] = lan_create( "127.0.0.1:0", config );
            REQUIRE( lan.servers[0] != NULL );
            linux_reset();
            linux_system.advise_error = refused ? EINVAL : 0;
            netcode_server_start( lan.servers[0], slots[i] );
            REQUIRE_EQ( netcode_server_running( lan.servers[0] ), 1 );
            CHECK_EQ( linux_system.advised, slots[i] < 10000 ? 0 : 2 );
            CHECK_EQ( linux_system.advised_within, linux_system.advised );
            if ( slots[i] == 10000 )
                CHECK_GT( linux_system.advised_bytes, all - all / 4 );
        }
    lan_close();
}

/* A size that is named is granted, however many slots there are. */
/* Each way has the size that the config names for it, on both sides. */
TEST( linux_buffers_of_two_sizes )
{
    struct netcode_server_config_t server_config = lan_config();
    struct netcode_client_config_t client_config;
    struct netcode_socket_info_t info;
    lan_close();
    netcode_default_client_config( &client_config );
    client_config.receive_buffer_bytes = server_config.receive_buffer_bytes = 65536;
    client_config.send_buffer_bytes = server_config.send_buffer_bytes = 32768;
    lan.servers[0] = lan_create( "127.0.0.1:0", server_config );
    lan.clients[0] = netcode_client_create( "127.0.0.1:0", &client_config, lan.time );
    REQUIRE( lan.servers[0] != NULL && lan.clients[0] != NULL );
    info = nc_socket_info( &lan.servers[0]->base.socket );
    CHECK( info.receive_buffer_bytes == 65536 && info.send_buffer_bytes == 32768 );
    info = nc_socket_info( &lan.clients[0]->base.socket );
    CHECK( info.receive_buffer_bytes == 65536 && info.send_buffer_bytes == 32768 );
    CHECK_EQ( netcode_client_rebind( lan.clients[0] ), 1 );
    static const int options[2] = { SO_RCVBUF, SO_SNDBUF };
    for ( int i = 0; i < 2; i++ ) {
        int granted = 0, handle = ( (nc_socket_udp_t *) lan.clients[0]->base.socket.context )->handles[0];
        socklen_t bytes = sizeof( granted );
        (void) getsockopt( handle, SOL_SOCKET, options[i], &granted, &bytes );
        CHECK_EQ( granted / 2, i ? 32768 : 65536 ); /* the kernel doubles what it is asked for */
    }
    lan_close();
}

/* The client's socket asks for ICMP errors, after a rebind, too. */
TEST( linux_errors_are_wanted_after_a_rebind )
{
    lan_close();
    lan_client( 0, "127.0.0.1:0" );
    for ( int i = 0; i < 2; i++ ) {
        int wanted = 0;
        socklen_t bytes = sizeof( wanted );
        int handle = ( (nc_socket_udp_t *) lan.clients[0]->base.socket.context )->handles[0];
        (void) getsockopt( handle, IPPROTO_IP, 11, &wanted, &bytes );
        CHECK_EQ( wanted, 1 );
        CHECK_EQ( netcode_client_rebind( lan.clients[0] ), 1 );
    }
    lan_close();
}

TEST( linux_buffers_of_an_explicit_size_stay )
{
    int which;
    for ( which = 0; which < 3; which++ ) {
        struct netcode_server_config_t config = lan_config();
        struct netcode_server_stats_t before, after;
        lan_close();
        if ( which != 1 )
            config.receive_buffer_bytes = 65536;
        if ( which != 0 )
            config.send_buffer_bytes = 65536;
        lan.servers[0] = lan_create( "127.0.0.1:0", config );
        REQUIRE( lan.servers[0] != NULL );
        before = lan_server_stats( 0 );
        linux_reset();
        netcode_server_start( lan.servers[0], 10000 );
        REQUIRE_EQ( netcode_server_running( lan.servers[0] ), 1 );
        after = lan_server_stats( 0 );
        CHECK_EQ( linux_system.asked[0], 0 );
        CHECK_EQ( linux_system.asked[1], 0 );
        CHECK_EQ( after.receive_buffer_bytes, before.receive_buffer_bytes );
        CHECK_EQ( after.send_buffer_bytes, before.send_buffer_bytes );
    }
    lan_close();
}

#endif
