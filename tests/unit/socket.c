/*  Socket: the operating system's UDP over loopback, and the override callbacks.
    attacks/rows.py, rows 4, 5, 43, 52 and 55 */

#if !defined( _WIN32 )
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#endif

enum { SOCKET_PLACES = 64, SOCKET_CAPACITY = 1300 };

static struct netcode_datagram_t socket_places[SOCKET_PLACES];
static uint8_t socket_bytes[SOCKET_PLACES][SOCKET_CAPACITY];
static struct allocator_t socket_allocator;

/* Empty entries for `count` datagrams. */
static struct netcode_datagram_t * socket_ready( int count )
{
    int i;
    memset( socket_places, 0xEE, sizeof( socket_places ) );
    for ( i = 0; i < count; i++ ) {
        socket_places[i].data = socket_bytes[i];
        socket_places[i].capacity = SOCKET_CAPACITY;
    }
    return socket_places;
}

static nc_socket_request_t socket_request( const struct netcode_address_t * first,
                                           const struct netcode_address_t * second )
{
    nc_socket_request_t request;
    memset( &request, 0, sizeof( request ) );
    request.allocator = nc_allocator_make( &socket_allocator, allocator_allocate, allocator_free );
    request.addresses[0] = first;
    request.addresses[1] = second;
    request.receive_buffer_bytes = request.send_buffer_bytes = 65536;
    return request;
}

static struct netcode_address_t socket_address( const char * text )
{
    struct netcode_address_t address;
    CHECK_EQ( netcode_parse_address( text, &address ), NETCODE_OK );
    return address;
}

/* Opens a socket at one or two addresses (port 0: any). 0 where this machine has no such family. */
static int socket_open( struct netcode_socket_t * socket, const char * first, const char * second )
{
    struct netcode_address_t a = socket_address( first ), b;
    nc_socket_request_t request;
    int family = 0;
    memset( &b, 0, sizeof( b ) );
    if ( second )
        b = socket_address( second );
    request = socket_request( &a, second ? &b : NULL );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    return nc_socket_open_udp( socket, &udp_extras, &request, &family ) == NC_SOCKET_OK;
}

/* Where a socket can be reached: its first address, or the second one. */
static struct netcode_address_t socket_where( struct netcode_socket_t * socket, int second )
{
    struct netcode_socket_info_t info;
    memset( &info, 0, sizeof( info ) );
    socket->info( socket->context, &info );
    return second ? info.address2 : info.address;
}

static int socket_send( struct netcode_socket_t * socket, const struct netcode_address_t * to, const void * data,
                        int bytes )
{
    struct netcode_datagram_t datagram;
    uint8_t copy[2048];
    memset( &datagram, 0, sizeof( datagram ) );
    memcpy( copy, data, (size_t) bytes );
    datagram.address = *to;
    datagram.data = copy;
    datagram.bytes = bytes;
    return socket->send( socket->context, &datagram, 1 );
}

/* Receives until `count` entries are filled, or the time is over; returns how many were. */
static int socket_receive( struct netcode_socket_t * socket, int count )
{
    double start = netcode_time();
    int filled = 0;
    socket_ready( count );
    while ( filled < count && netcode_time() - start < TEST_LIMIT_SECONDS ) {
        int more = socket->receive( socket->context, socket_places + filled, count - filled );
        if ( more < 0 )
            return more;
        filled += more;
        if ( filled < count )
            socket->wait( socket->context, 0.05 );
    }
    return filled;
}

static void socket_exchange( const char * at )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t to_a, to_b;
    static const int sizes[] = { 1, 18, 333, 1078, 1200, 1225, 1300 };
    uint8_t data[1300];
    size_t i;
    if ( !socket_open( &a, at, NULL ) )
        SKIP( at );
    REQUIRE( socket_open( &b, at, NULL ) );
    to_a = socket_where( &a, 0 );
    to_b = socket_where( &b, 0 );
    CHECK( to_a.port != 0 && to_b.port != 0 && to_a.port != to_b.port );
    CHECK_EQ( a.receive( a.context, socket_ready( 4 ), 4 ), 0 ); /* nothing waits */
    for ( i = 0; i < sizeof( sizes ) / sizeof( sizes[0] ); i++ ) {
        memset( data, (int) ( i + 1 ), sizeof( data ) );
        CHECK_EQ( socket_send( &a, &to_b, data, sizes[i] ), 1 );
        REQUIRE_EQ( socket_receive( &b, 1 ), 1 );
        CHECK_EQ( socket_places[0].status, NETCODE_DATAGRAM_OK );
        CHECK_EQ( socket_places[0].bytes, sizes[i] );
        CHECK_MEM( socket_places[0].data, data, sizes[i] );
        CHECK( nc_address_same( &socket_places[0].address, &to_a ) );
        CHECK_EQ( socket_send( &b, &to_a, data, sizes[i] ), 1 );
        REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
        CHECK( nc_address_same( &socket_places[0].address, &to_b ) );
    }
    a.close( a.context );
    b.close( b.context );
    CHECK_EQ( socket_allocator.live, 0 );
}

TEST( socket_ipv4 )
{
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    socket_exchange( "127.0.0.1" );
}

TEST( socket_ipv6 )
{
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    socket_exchange( "::1" );
}

/* Empty and oversized datagrams between real ones fill an entry each and end nothing. */
TEST( socket_empty_and_oversized_between_real_ones )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t to;
    uint8_t data[1500];
    int i;
    memset( data, 0x21, sizeof( data ) );
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &b, "127.0.0.1", NULL ) );
    to = socket_where( &b, 0 );
    for ( i = 0; i < 30; i++ )
        CHECK_EQ( socket_send( &a, &to, data, i % 3 == 0 ? 100 + i : i % 3 == 1 ? 0 : 1500 ), 1 );
    REQUIRE_EQ( socket_receive( &b, 30 ), 30 );
    for ( i = 0; i < 30; i++ ) {
        CHECK_EQ( socket_places[i].status, i % 3 == 2 ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK );
        if ( i % 3 != 2 )
            CHECK_EQ( socket_places[i].bytes, i % 3 == 0 ? 100 + i : 0 );
    }
    CHECK_EQ( b.receive( b.context, socket_ready( 4 ), 4 ), 0 );
    a.close( a.context );
    b.close( b.context );
}

/* More datagrams than one batch, received whole and in order; and a batch of sends that counts. */
TEST( socket_batches )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t to;
    struct netcode_datagram_t out[SOCKET_PLACES];
    static uint8_t bytes[SOCKET_PLACES];
    int i;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &b, "127.0.0.1", NULL ) );
    to = socket_where( &b, 0 );
    memset( out, 0, sizeof( out ) );
    for ( i = 0; i < SOCKET_PLACES; i++ ) {
        bytes[i] = (uint8_t) i;
        out[i].address = to;
        out[i].data = &bytes[i];
        out[i].bytes = 1;
    }
    out[10].address = socket_address( "[::1]:9" ); /* this socket has no such family: skipped and not counted */
    CHECK_EQ( a.send( a.context, out, SOCKET_PLACES ), SOCKET_PLACES - 1 );
    REQUIRE_EQ( socket_receive( &b, SOCKET_PLACES - 1 ), SOCKET_PLACES - 1 );
    for ( i = 0; i < SOCKET_PLACES - 1; i++ )
        CHECK_EQ( socket_places[i].data[0], i < 10 ? i : i + 1 );
    a.close( a.context );
    b.close( b.context );
}

/*  A receive that took all there was says nothing of the next one, whether or not the same update asks again: its budget may have ended
    with it. */
TEST( socket_a_receive_after_the_one_that_took_all )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t to;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &b, "127.0.0.1", NULL ) );
    to = socket_where( &b, 0 );
    for ( int i = 0; i < 5; i++ ) {
        CHECK_EQ( socket_send( &a, &to, "1", 1 ), 1 );
        b.wait( b.context, TEST_LIMIT_SECONDS );
        CHECK_EQ( b.receive( b.context, socket_ready( 8 ), 8 ), 1 );
    }
    a.close( a.context );
    b.close( b.context );
}

/* Both families at one port, both served in turn: a flood on one does not starve the other. attacks/rows.py, row 43 */
TEST( socket_dual_serves_both_in_turn )
{
    struct netcode_socket_t dual, four, six;
    struct netcode_address_t to_four, to_six;
    int i, k, found;
    if ( !socket_open( &six, "::1", NULL ) )
        SKIP( "no ::1" );
    REQUIRE( socket_open( &four, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &dual, "127.0.0.1", "::1" ) );
    to_four = socket_where( &dual, 0 );
    to_six = socket_where( &dual, 1 );
    CHECK_EQ( to_four.type, NETCODE_ADDRESS_IPV4 );
    CHECK_EQ( to_six.type, NETCODE_ADDRESS_IPV6 );
    CHECK_EQ( to_four.port, to_six.port );
    for ( k = 1; k <= 8; k *= 8 ) {
        for ( i = 0; i < 50; i++ )
            socket_send( &four, &to_four, "flood", 5 );
        socket_send( &six, &to_six, "hello!", 6 );
        for ( i = 0, found = 0; i < 2 && !found; i++ ) {
            int filled = dual.receive( dual.context, socket_ready( k ), k ), at;
            for ( at = 0; at < filled; at++ )
                found |= socket_places[at].bytes == 6;
        }
        CHECK( found ); /* in the first call, or in the second where only one entry was offered */
        while ( dual.receive( dual.context, socket_ready( 32 ), 32 ) > 0 )
            ;
    }
    CHECK_EQ( socket_send( &dual, &to_four, "4", 1 ), 1 ); /* each family through its own handle */
    CHECK_EQ( socket_send( &dual, &to_six, "6", 1 ), 1 );
    REQUIRE_EQ( socket_receive( &dual, 2 ), 2 );
    CHECK( nc_address_same( &socket_places[0].address, &to_four ) ||
           nc_address_same( &socket_places[1].address, &to_four ) );
    CHECK( nc_address_same( &socket_places[0].address, &to_six ) ||
           nc_address_same( &socket_places[1].address, &to_six ) );
    dual.close( dual.context );
    four.close( four.context );
    six.close( six.context );
}

/* The wildcards of both families share a port, so each handle must keep to its own. */
TEST( socket_dual_at_the_wildcards )
{
    struct netcode_socket_t dual, four;
    struct netcode_address_t to;
    int i;
    if ( !socket_open( &dual, "0.0.0.0", "::" ) )
        SKIP( "no IPv6" );
    REQUIRE( socket_open( &four, "127.0.0.1", NULL ) );
    CHECK_EQ( socket_where( &dual, 0 ).port, socket_where( &dual, 1 ).port );
    CHECK_EQ( netcode_parse_address( "127.0.0.1", &to ), NETCODE_OK );
    to.port = socket_where( &dual, 0 ).port;
    CHECK_EQ( socket_send( &four, &to, "x", 1 ), 1 );
    REQUIRE_EQ( socket_receive( &dual, 1 ), 1 );
    to = socket_where( &four, 0 );
    CHECK( nc_address_same( &socket_places[0].address, &to ) );
    for ( i = 0; i < 2; i++ ) { /* sends never block, and no child process inherits a handle */
        nc_socket_handle_t handle = ( (nc_socket_udp_t *) dual.context )->handles[i];
#if !defined( _WIN32 )
        CHECK( fcntl( handle, F_GETFL ) & O_NONBLOCK );
        CHECK( fcntl( handle, F_GETFD ) & FD_CLOEXEC );
#endif
        if ( i == 1 ) {
            int only = 0;
            socklen_t bytes = sizeof( only );
            CHECK_EQ( getsockopt( handle, IPPROTO_IPV6, IPV6_V6ONLY, (void *) &only, &bytes ), 0 );
            CHECK_EQ( only, 1 ); /* or IPv4 would come in by both */
        }
    }
    dual.close( dual.context );
    four.close( four.context );
}

TEST( socket_wait )
{
    struct netcode_socket_t a;
    struct netcode_address_t to;
    double start;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    to = socket_where( &a, 0 );
    test_waited = -1.0;
    a.wait( a.context, 0.0 );
    a.wait( a.context, -1.0 );
    a.wait( a.context, (double) NAN );
    CHECK( test_waited < 0.0 );
    start = netcode_time();
    a.wait( a.context, 0.03 );
    CHECK( netcode_time() - start >= 0.025 );
    socket_send( &a, &to, "x", 1 );
    start = netcode_time();
    a.wait( a.context, 1e9 ); /* something waits: at once, not after the hour that it would wait at most */
    CHECK( netcode_time() - start < TEST_LIMIT_SECONDS );
    a.close( a.context );
}

#if !defined( _WIN32 )

/* File descriptor 0 is a socket like any other. attacks/rows.py, row 55 */
TEST( socket_on_file_descriptor_zero )
{
    struct netcode_socket_t a;
    struct netcode_address_t to;
    int saved = dup( 0 );
    close( 0 );
    if ( !CHECK( socket_open( &a, "127.0.0.1", NULL ) ) )
        return;
    CHECK_EQ( ( (nc_socket_udp_t *) a.context )->handles[0], 0 );
    to = socket_where( &a, 0 );
    CHECK_EQ( socket_send( &a, &to, "x", 1 ), 1 );
    CHECK_EQ( socket_receive( &a, 1 ), 1 );
    a.close( a.context );
    CHECK_EQ( fcntl( 0, F_GETFD ), -1 ); /* and it is closed like any other */
    if ( saved >= 0 ) {
        dup2( saved, 0 );
        close( saved );
    }
}

#endif

static void socket_log_callback( void * context, int level, const char * text )
{
    (void) level;
    (void) text;
    ++*(int *) context;
}

TEST( socket_buffers_are_reported )
{
    struct netcode_address_t at = socket_address( "127.0.0.1" );
    nc_socket_request_t request = socket_request( &at, NULL );
    struct netcode_socket_info_t info;
    struct netcode_socket_t a;
    nc_log_t log;
    int family, lines = 0;
    log.callback = socket_log_callback;
    log.context = &lines;
    request.log = &log;
    REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
    memset( &info, 0, sizeof( info ) );
    a.info( a.context, &info );
    CHECK_EQ( info.receive_buffer_bytes, 65536 );
    CHECK_EQ( info.send_buffer_bytes, 65536 );
    CHECK_EQ( info.kernel_drops, 0 );
    CHECK_EQ( info.last_send_error, 0 );
    CHECK_EQ( info.address2.type, NETCODE_ADDRESS_NONE );
    a.close( a.context );
    request.receive_buffer_bytes = request.send_buffer_bytes = 1 << 30; /* more than any system grants: logged */
    lines = 0;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
    a.info( a.context, &info );
    CHECK_GT( info.receive_buffer_bytes, 4096 );
    CHECK_GT( info.send_buffer_bytes, 4096 );
    if ( info.receive_buffer_bytes < 1 << 30 )
        CHECK_EQ( lines, 1 );
    a.close( a.context );
}

/* Of two handles the smaller buffer is reported, whichever has it, each way for itself. */
TEST( socket_smaller_of_two_buffers )
{
    static const int rows[][4] = { /* to receive and to send: of the first handle, of the second */
                                   { 65536, 32768, 16384, 65536 },
                                   { 16384, 65536, 65536, 32768 },
                                   { 32768, 16384, 65536, 65536 },
                                   { 65536, 65536, 32768, 16384 } };
    struct netcode_socket_t both;
    struct netcode_socket_info_t info;
    if ( !socket_open( &both, "127.0.0.1", "::1" ) )
        SKIP( "no ::1" );
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        nc_socket_udp_t * udp = (nc_socket_udp_t *) both.context;
        nc_socket_set_buffers( udp, 0, rows[i][0], rows[i][1] );
        nc_socket_set_buffers( udp, 1, rows[i][2], rows[i][3] );
        both.info( both.context, &info );
        CHECK_EQ( info.receive_buffer_bytes, rows[i][0] < rows[i][2] ? rows[i][0] : rows[i][2] );
        CHECK_EQ( info.send_buffer_bytes, rows[i][1] < rows[i][3] ? rows[i][1] : rows[i][3] );
    }
    both.close( both.context );
}

/* The file descriptor that the next socket would get; -1 where the system promises nothing about it. */
static int socket_next_handle( void )
{
#if defined( _WIN32 )
    return -1;
#else
    int handle = dup( 1 );
    close( handle );
    return handle;
#endif
}

/* What can fail, fails with its own result, leaves no memory and no descriptor behind, and names the family. */
TEST( socket_open_failures )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t at = socket_address( "127.0.0.1" ), six = socket_address( "::1" ), taken;
    nc_socket_request_t request = socket_request( &at, NULL );
    int family = 0, probe = socket_next_handle();
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
    socket_allocator.fail_at = 1;
    CHECK_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_NO_MEMORY );
#if !defined( _WIN32 )
    struct rlimit limit, none;
    REQUIRE_EQ( getrlimit( RLIMIT_NOFILE, &limit ), 0 );
    none = limit;
    none.rlim_cur = 0;
    setrlimit( RLIMIT_NOFILE, &none );
    CHECK_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_CREATE_FAILED );
    setrlimit( RLIMIT_NOFILE, &limit );
    CHECK_EQ( family, NETCODE_ADDRESS_IPV4 );
#endif
    CHECK_EQ( socket_allocator.live, 0 );
    REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
    taken = socket_where( &a, 0 );
    request.addresses[0] = &taken;
    CHECK_EQ( nc_socket_open_udp( &b, &udp_extras, &request, &family ), NC_SOCKET_BIND_FAILED );
    CHECK_EQ( family, NETCODE_ADDRESS_IPV4 );
#if !defined( _WIN32 )                  /* wine grants every address */
    at = socket_address( "192.0.2.1" ); /* not an address of this machine */
    request.addresses[0] = &at;
    CHECK_EQ( nc_socket_open_udp( &b, &udp_extras, &request, &family ), NC_SOCKET_BIND_FAILED );
#endif
    if ( socket_open( &b, "::1", NULL ) ) { /* the second family fails: the first one's port is free again */
        struct netcode_address_t free_port = taken, taken_six = socket_where( &b, 0 );
        a.close( a.context );
        request = socket_request( &free_port, &taken_six );
        CHECK_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_BIND_FAILED );
        CHECK_EQ( family, NETCODE_ADDRESS_IPV6 );
        b.close( b.context );
        request = socket_request( &free_port, &six );
        REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
        CHECK( nc_address_same( &free_port, request.addresses[0] ) );
    }
    a.close( a.context );
    CHECK_EQ( socket_allocator.live, 0 );
    CHECK_EQ( socket_next_handle(), probe );
}

/* What an error of the system means: nothing but a broken handle ends the receiving. attacks/rows.py, row 52 */
TEST( socket_errors_are_judged )
{
    static const struct {
        int error;
        int verdict;
    } rows[] = {
#if defined( _WIN32 )
        { WSAEWOULDBLOCK, NC_SOCKET_TRY_LATER },
        { WSAEINTR, NC_SOCKET_TRY_AGAIN },
        { WSAEMSGSIZE, NC_SOCKET_TRUNCATED },
        { WSAECONNRESET, NC_SOCKET_PASSING },
        { WSAENETRESET, NC_SOCKET_PASSING },
        { WSAENOBUFS, NC_SOCKET_PASSING },
        { WSAENETUNREACH, NC_SOCKET_PASSING },
        { WSAEHOSTUNREACH, NC_SOCKET_PASSING },
        { WSAENETDOWN, NC_SOCKET_PASSING },
        { WSAENOTSOCK, NC_SOCKET_PASSING },
        { WSAEINVAL, NC_SOCKET_PASSING },
        { WSANOTINITIALISED, NC_SOCKET_PASSING },
#else
        { EAGAIN, NC_SOCKET_TRY_LATER },
        { EWOULDBLOCK, NC_SOCKET_TRY_LATER },
        { EINTR, NC_SOCKET_TRY_AGAIN },
        { ECONNREFUSED, NC_SOCKET_PASSING },
        { ECONNRESET, NC_SOCKET_PASSING },
        { EMSGSIZE, NC_SOCKET_PASSING },
        { ENOBUFS, NC_SOCKET_PASSING },
        { ENETUNREACH, NC_SOCKET_PASSING },
        { EHOSTUNREACH, NC_SOCKET_PASSING },
        { EPERM, NC_SOCKET_PASSING },
        { ENOMEM, NC_SOCKET_PASSING },
        { ENETDOWN, NC_SOCKET_PASSING },
        { EBADF, NC_SOCKET_PASSING },
        { ENOTSOCK, NC_SOCKET_PASSING },
#endif
    };
    size_t i;
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ )
        CHECK_EQ( nc_socket_judge( rows[i].error ), rows[i].verdict );
}

TEST( socket_broken_handles )
{
    struct netcode_socket_t a;
    nc_socket_udp_t * udp;
    struct netcode_address_t to = socket_address( "127.0.0.1:9" );
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    udp = (nc_socket_udp_t *) a.context;
    nc_socket_close_handle( udp->handles[0] );
    CHECK_EQ( a.receive( a.context, socket_ready( 20 ), 20 ), (int) NC_SOCKET_FAILURES );
    CHECK_EQ( socket_places[7].status, NETCODE_DATAGRAM_ERROR );
    CHECK_EQ( socket_send( &a, &to, "x", 1 ), 0 );
#if defined( _WIN32 )
    CHECK_EQ( udp->last_send_error, WSAENOTSOCK );
#else
    CHECK_EQ( udp->last_send_error, EBADF );
#endif
    udp->handles[0] = (nc_socket_handle_t) -1;
    a.close( a.context );
}

TEST( socket_send_errors )
{
    struct netcode_socket_t a;
    struct netcode_socket_info_t info;
    struct netcode_address_t six = socket_address( "[::1]:9" ), none;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    memset( &none, 0, sizeof( none ) );
    CHECK_EQ( socket_send( &a, &six, "x", 1 ), 0 );
    CHECK_EQ( socket_send( &a, &none, "x", 1 ), 0 );
    memset( &info, 0, sizeof( info ) );
    a.info( a.context, &info );
    CHECK_EQ( info.last_send_error, EAFNOSUPPORT );
    six = socket_address( "127.0.0.1" ); /* port 0 */
    CHECK_EQ( socket_send( &a, &six, "x", 1 ), 0 );
    a.close( a.context );
}

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )

/* An ICMP error fills one entry where it was asked for, names the address that it is about, and what comes behind it
   still arrives. Nor does a pending one keep the next datagram from being sent. */
TEST( socket_icmp_errors )
{
    int reports, filled, attempt;
    for ( reports = 0; reports <= 1; reports++ ) {
        struct netcode_address_t at = socket_address( "127.0.0.1" ), gone, here;
        nc_socket_request_t request = socket_request( &at, NULL );
        struct netcode_socket_t a, b;
        int family;
        request.reports_errors = reports;
        REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
        here = socket_where( &a, 0 );
        REQUIRE( socket_open( &b, "127.0.0.1", NULL ) ); /* after a, which could get b's port else */
        gone = socket_where( &b, 0 );
        b.close( b.context ); /* no socket is there now */
        for ( attempt = 0; attempt < 3; attempt++ ) {
            CHECK_EQ( socket_send( &a, &gone, "x", 1 ), 1 );
            if ( reports ) {
                REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
                CHECK_EQ( socket_places[0].status, NETCODE_DATAGRAM_ERROR );
                CHECK_EQ( socket_places[0].error, ECONNREFUSED );
                CHECK_EQ( socket_places[0].bytes, 0 );
                CHECK( nc_address_same( &socket_places[0].address, &gone ) );
            }
            CHECK_EQ( socket_send( &a, &here, "real", 4 ), 1 );
            REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
            CHECK_EQ( socket_places[0].status, NETCODE_DATAGRAM_OK );
            CHECK_EQ( socket_places[0].bytes, 4 );
            CHECK_EQ( socket_send( &a, &gone, "x", 1 ), 1 );    /* an error is pending, */
            CHECK_EQ( socket_send( &a, &here, "real", 4 ), 1 ); /* and this one leaves all the same */
            for ( filled = 0; filled == 0 || socket_places[filled - 1].status == NETCODE_DATAGRAM_ERROR; )
                REQUIRE_EQ( socket_receive( &a, 1 ), filled = 1 );
            CHECK_EQ( socket_places[0].bytes, 4 );
            if ( reports ) { /* which has taken the error: it is reported once nothing waits */
                REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
                CHECK_EQ( socket_places[0].error, ECONNREFUSED );
                CHECK( nc_address_same( &socket_places[0].address, &gone ) );
            }
        }
        a.close( a.context );
    }
}

/* A socket that reports errors, and addresses at which no socket is any more. */
static void socket_open_beside( struct netcode_socket_t * socket, struct netcode_address_t * gone, int count )
{
    struct netcode_address_t at = socket_address( "127.0.0.1" );
    nc_socket_request_t request = socket_request( &at, NULL );
    struct netcode_socket_t others[4];
    int family;
    request.reports_errors = 1;
    REQUIRE_EQ( nc_socket_open_udp( socket, &udp_extras, &request, &family ), NC_SOCKET_OK );
    for ( int i = 0; i < count; i++ ) {
        REQUIRE( socket_open( &others[i], "127.0.0.1", NULL ) );
        gone[i] = socket_where( &others[i], 0 );
    }
    for ( int i = 0; i < count; i++ )
        others[i].close( others[i].context );
}

/* Reads all that a socket has: how often each address met an error. Nothing is left for a wait to end by. */
static void socket_count_errors( struct netcode_socket_t * socket, const struct netcode_address_t * gone, int count,
                                 int * errors, int expected )
{
    memset( errors, 0, (size_t) count * sizeof( *errors ) );
    for ( int tries = 0, all = 0; tries < 100 && ( all < expected || tries == 0 ); tries++ ) {
        while ( socket->receive( socket->context, socket_ready( 1 ), 1 ) == 1 )
            for ( int i = 0; i < count; i++ )
                if ( socket_places[0].status == NETCODE_DATAGRAM_ERROR && socket_places[0].error == ECONNREFUSED &&
                     nc_address_same( &socket_places[0].address, &gone[i] ) ) {
                    errors[i]++;
                    all++;
                }
        if ( all < expected )
            netcode_sleep( 0.01 ); /* the system is busy */
    }
    struct pollfd left = { ( (nc_socket_udp_t *) socket->context )->handles[0], POLLIN, 0 };
    CHECK_EQ( poll( &left, 1, 0 ), 0 );
}

TEST( socket_icmp_errors_are_each_servers_own )
{
    struct netcode_address_t gone[4];
    struct netcode_socket_t a;
    int errors[4];
    socket_open_beside( &a, gone, 4 );
    for ( int i = 0; i < 4; i++ ) /* a send takes the error of the one before */
        CHECK_EQ( socket_send( &a, &gone[i], "x", 1 ), 1 );
    socket_count_errors( &a, gone, 4, errors, 4 );
    for ( int i = 0; i < 4; i++ )
        CHECK_EQ( errors[i], 1 );
    a.close( a.context );
}

/* The next packet of one sendmmsg meets an error: the call ends, and the system does not say by what. The last one meets none. */
TEST( socket_icmp_errors_within_a_batch_are_read )
{
    struct netcode_address_t gone;
    struct netcode_socket_t a;
    struct netcode_datagram_t batch[4];
    int errors;
    socket_open_beside( &a, &gone, 1 );
    for ( int count = 2; count <= 4; count++ ) {
        memset( batch, 0, sizeof( batch ) );
        for ( int i = 0; i < count; i++ ) {
            batch[i].address = i < count - 1 ? gone : socket_where( &a, 0 );
            batch[i].data = socket_bytes[0];
            batch[i].bytes = 10;
        }
        CHECK_EQ( a.send( a.context, batch, count ), count );
        socket_count_errors( &a, &gone, 1, &errors, count - 1 );
        CHECK_EQ( errors, count - 1 );
    }
    a.close( a.context );
}

/* The kernel's own drops are counted where it reports them, by the handle of the first family or of the second. */
static void socket_drops_story( int second )
{
    struct netcode_address_t at = socket_address( "127.0.0.1" ), six = socket_address( "::1" ), to;
    nc_socket_request_t request = socket_request( &at, second ? &six : NULL );
    struct netcode_socket_t a;
    struct netcode_socket_info_t info;
    uint8_t data[1000] = { 0 };
    int family, i, received = 0, filled;
    request.receive_buffer_bytes = 8192;
    REQUIRE_EQ( nc_socket_open_udp( &a, &udp_extras, &request, &family ), NC_SOCKET_OK );
    to = socket_where( &a, second );
    for ( i = 0; i < 200; i++ )
        socket_send( &a, &to, data, sizeof( data ) );
    while ( ( filled = a.receive( a.context, socket_ready( 32 ), 32 ) ) > 0 )
        received += filled;
    socket_send( &a, &to, data, 1 );
    do { /* some of the 200 come as late as this where the system is busy */
        REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
        received += socket_places[0].bytes > 1;
    } while ( socket_places[0].bytes > 1 );
    a.info( a.context, &info );
    CHECK_GT( info.kernel_drops, 0 );
    CHECK_EQ( info.kernel_drops, 200 - received );
    a.close( a.context );
}

TEST( socket_kernel_drops )
{
    socket_drops_story( 0 );
}

TEST( socket_kernel_drops_of_the_second_family )
{
    struct netcode_socket_t six;
    if ( !socket_open( &six, "::1", NULL ) )
        SKIP( "no ::1" );
    six.close( six.context );
    socket_drops_story( 1 );
}

/* The system counts each handle's in 32 bits; both go on past that. */
TEST( socket_kernel_drops_past_32_bits )
{
    static const uint32_t steps[] = { 5, 0xFFFFFFF0u, 3, 0xFFFFFFFFu, 0 };
    static const uint64_t sums[] = { 5, 0xFFFFFFF0u, 0x100000003u, 0x1FFFFFFFFu, 0x200000000u };
    static nc_socket_udp_t udp;
    struct netcode_socket_info_t info;
    for ( int which = 0; which < 2; which++ )
        for ( int i = 0; i < 5; i++ ) {
            uint64_t control[8] = { 0 };
            struct msghdr header;
            struct cmsghdr * message;
            memset( &header, 0, sizeof( header ) );
            header.msg_control = control;
            header.msg_controllen = CMSG_SPACE( sizeof( uint32_t ) );
            message = CMSG_FIRSTHDR( &header );
            message->cmsg_level = SOL_SOCKET;
            message->cmsg_type = SO_RXQ_OVFL;
            message->cmsg_len = CMSG_LEN( sizeof( uint32_t ) );
            memcpy( CMSG_DATA( message ), &steps[i], sizeof( uint32_t ) );
            nc_socket_read_drops( &udp, which, &header );
            nc_socket_udp_info( &udp, &info );
            CHECK_EQ( info.kernel_drops, sums[i] + ( which ? 0x200000000u : 0 ) );
        }
}

#endif

#if NETCODE_PACKET_TAGGING

/* DSCP EF, TOS byte 0xB8, for sockets created afterwards */
TEST( socket_tagging )
{
    static const char * const addresses[] = { "127.0.0.1", "::1" };
    int tagging, family;
    for ( tagging = 0; tagging <= 1; tagging++ ) {
        nc_packet_tagging = 0;
        if ( tagging )
            netcode_enable_packet_tagging();
        for ( family = 0; family < 2; family++ ) {
            struct netcode_socket_t a;
            int tos = -1;
            socklen_t bytes = sizeof( tos );
            if ( !socket_open( &a, addresses[family], NULL ) )
                continue;
            getsockopt( ( (nc_socket_udp_t *) a.context )->handles[0], family ? (int) IPPROTO_IPV6 : (int) IPPROTO_IP,
                        family ? IPV6_TCLASS : IP_TOS, &tos, &bytes );
            CHECK_EQ( tos, tagging ? 0xB8 : 0 );
            a.close( a.context );
        }
    }
    nc_packet_tagging = 0;
}

#endif

/* To the system's form and back, for every kind of address; the zone travels in the second word. */
TEST( socket_system_addresses )
{
    static const char * const texts[] = { "1.2.3.4:5",     "255.255.255.255:65535",
                                          "[::1]:5",       "[2001:db8::1:2:3]:40000",
                                          "[fe80::1%7]:5", "[fe80::1]:5",
                                          "[::]:1" };
    struct sockaddr_storage storage;
    struct netcode_address_t address, again;
    size_t i;
    int k;
    for ( i = 0; i < sizeof( texts ) / sizeof( texts[0] ); i++ ) {
        address = socket_address( texts[i] );
        CHECK_GT( nc_socket_to_system( &address, &storage ), 0 );
        CHECK_EQ( storage.ss_family, address.type == NETCODE_ADDRESS_IPV4 ? AF_INET : AF_INET6 );
        nc_socket_from_system( &again, &storage );
        CHECK_MEM( &address, &again, sizeof( address ) );
    }
    address = socket_address( "[fe80::1%7]:5" );
    nc_socket_to_system( &address, &storage );
    CHECK_EQ( ( (struct sockaddr_in6 *) (void *) &storage )->sin6_scope_id, 7 );
    CHECK_EQ( ( (struct sockaddr_in6 *) (void *) &storage )->sin6_addr.s6_addr[3], 0 );
    for ( k = 0; k < 500; k++ ) {
        address = address_random();
        if ( nc_socket_to_system( &address, &storage ) && address.type != NETCODE_ADDRESS_NONE ) {
            nc_socket_from_system( &again, &storage );
            CHECK( nc_address_same( &address, &again ) );
        }
    }
    memset( &storage, 0, sizeof( storage ) );
    storage.ss_family = AF_UNIX;
    nc_socket_from_system( &again, &storage );
    CHECK_EQ( again.type, NETCODE_ADDRESS_NONE );
}

/* ---- the override callbacks ---- */

static struct {
    int waiting[8]; /* sizes that the receive callback gives, one after the other */
    int at;
    int sent;
    struct netcode_address_t last;
} socket_override;

static int socket_override_receive( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    int bytes = socket_override.waiting[socket_override.at];
    CHECK( context == &socket_override );
    CHECK_EQ( capacity, SOCKET_CAPACITY );
    if ( bytes > 0 ) {
        socket_override.at++;
        *from = socket_address( "1.2.3.4:5" );
        memset( data, bytes, (size_t) ( bytes < capacity ? bytes : capacity ) );
    }
    return bytes;
}

static void socket_override_send( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    CHECK( context == &socket_override );
    CHECK_EQ( data[0], 'x' );
    CHECK_EQ( bytes, 1 );
    socket_override.last = *to;
    memset( to, 0xFF, sizeof( *to ) ); /* it is the callback's copy */
    socket_override.sent++;
}

TEST( socket_from_override_callbacks )
{
    struct netcode_socket_t socket;
    nc_socket_override_t callbacks;
    struct netcode_address_t to = socket_address( "9.8.7.6:5" );
    memset( &socket_override, 0, sizeof( socket_override ) );
    callbacks.callback_context = &socket_override;
    callbacks.send = socket_override_send;
    callbacks.receive = socket_override_receive;
    nc_socket_from_override( &socket, &callbacks );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 8 ), 8 ), 0 );
    socket_override.waiting[0] = 7;
    socket_override.waiting[1] = 1300;
    socket_override.waiting[2] = 5000; /* a callback that claims a larger capacity than it has */
    socket_override.waiting[3] = 3;
    socket_override.waiting[4] = -1;
    CHECK_EQ( socket.receive( socket.context, socket_ready( 2 ), 2 ), 2 );
    CHECK_EQ( socket_places[1].bytes, 1300 );
    CHECK_EQ( socket_places[1].status, NETCODE_DATAGRAM_OK );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 8 ), 8 ), 2 );
    CHECK_EQ( socket_places[0].status, NETCODE_DATAGRAM_TRUNCATED );
    CHECK_EQ( socket_places[1].bytes, 3 );
    CHECK_EQ( socket_places[1].status, NETCODE_DATAGRAM_OK );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 8 ), 8 ), 0 ); /* below zero: nothing waits */
    CHECK_EQ( socket_send( &socket, &to, "x", 1 ), 1 );
    CHECK( nc_address_same( &socket_override.last, &to ) );
    CHECK_EQ( socket_override.sent, 1 );
    CHECK( socket.wait == NULL && socket.close == NULL );
}

TEST( socket_memory_is_what_was_promised )
{
    struct netcode_socket_t a;
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    CHECK_EQ( socket_allocator.bytes, NC_SOCKET_UDP_BYTES );
    CHECK_EQ( socket_allocator.allocations, 1 );
    a.close( a.context );
}

#if !defined( _WIN32 )

/* A handle that does not fit into select's sets: waiting sleeps shortly and harms nothing. */
TEST( socket_wait_with_a_high_handle )
{
    struct netcode_socket_t a;
    nc_socket_udp_t * udp;
    int high, low;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    udp = (nc_socket_udp_t *) a.context;
    low = udp->handles[0];
    high = fcntl( low, F_DUPFD, FD_SETSIZE + 10 );
    if ( high >= 0 ) {
        udp->handles[0] = high;
        a.wait( a.context, 5.0 );
        CHECK_NEAR( test_waited, 0.001, 1e-9 );
        CHECK_EQ( a.receive( a.context, socket_ready( 4 ), 4 ), 0 );
        close( low );
    }
    a.close( a.context );
    if ( high < 0 )
        SKIP( "so many file descriptors are not allowed here" );
}

#if !defined( _WIN32 )

static int socket_lacking[NETCODE_LOG_LEVEL_DEBUG + 1]; /* lines about it at each level */

static void socket_note_lack( void * context, int level, const char * text )
{
    (void) context;
    socket_lacking[level] +=
        strstr( text, test_lacks_family == AF_INET6 ? "no socket at the IPv6" : "no socket at the IPv4" ) != NULL;
}

/*  A system without IPv6, or without IPv4: there are no such sockets, or none of their addresses. With an address of each family, in
    either order, client and server have the other one. */
TEST( socket_dual_without_one_family )
{
    for ( int i = 0; i < 8; i++ ) {
        static const char * texts[2] = { "0.0.0.0", "::" };
        int lacks_six = i & 1, first = i >> 1 & 1;
        struct netcode_socket_t dual;
        struct netcode_client_config_t client_config;
        struct netcode_server_config_t server_config;
        struct netcode_address_t missing = socket_address( lacks_six ? "::1" : "127.0.0.1" );
        if ( !lacks_six && !socket_open( &dual, "::1", NULL ) )
            SKIP( "no ::1" );
        if ( !lacks_six )
            dual.close( dual.context );
        missing.port = 1;
        netcode_log_level( NETCODE_LOG_LEVEL_NONE );
        test_lacks_family = lacks_six ? AF_INET6 : AF_INET;
        test_lacks_addresses = i >> 2;
        REQUIRE( socket_open( &dual, texts[first], texts[!first] ) );
        CHECK_EQ( ( (nc_socket_udp_t *) dual.context )->count, 1 );
        CHECK_EQ( socket_where( &dual, 0 ).type, lacks_six ? NETCODE_ADDRESS_IPV4 : NETCODE_ADDRESS_IPV6 );
        CHECK_GT( socket_where( &dual, 0 ).port, 0 );
        CHECK_EQ( socket_send( &dual, &missing, "x", 1 ), 0 );
        dual.close( dual.context );
        CHECK( !socket_open( &dual, texts[lacks_six], NULL ) );
        netcode_log_level( NETCODE_LOG_LEVEL_INFO );
        memset( socket_lacking, 0, sizeof( socket_lacking ) );
        netcode_default_client_config( &client_config );
        client_config.log_callback = socket_note_lack;
        struct netcode_client_t * client =
            netcode_client_create_dual( texts[first], texts[!first], &client_config, 0.0 );
        CHECK( client != NULL );
        netcode_client_destroy( client );
        netcode_default_server_config( &server_config );
        server_config.log_callback = socket_note_lack;
        struct netcode_server_t * server =
            netcode_server_create_dual( texts[first], texts[!first], &server_config, 0.0 );
        CHECK( server != NULL );
        netcode_server_destroy( server );
        CHECK_EQ( socket_lacking[NETCODE_LOG_LEVEL_INFO], 1 );
        CHECK_EQ( socket_lacking[NETCODE_LOG_LEVEL_ERROR], 1 );
        test_lacks_family = 0;
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
        CHECK_EQ( socket_allocator.live, 0 );
    }
}

#endif

#endif

/* One broken handle of two does not silence the other. */
TEST( socket_dual_with_one_broken_handle )
{
    int which, i;
    for ( which = 0; which < 2; which++ ) {
        struct netcode_socket_t dual, sender;
        struct netcode_address_t to;
        nc_socket_udp_t * udp;
        int filled = 0;
        if ( !socket_open( &dual, "127.0.0.1", "::1" ) )
            SKIP( "no ::1" );
        REQUIRE( socket_open( &sender, which ? "127.0.0.1" : "::1", NULL ) );
        to = socket_where( &dual, 1 - which );
        udp = (nc_socket_udp_t *) dual.context;
        nc_socket_close_handle( udp->handles[which] );
        CHECK_EQ( socket_send( &sender, &to, "x", 1 ), 1 );
        for ( i = 0; i < 2; i++ ) {
            int more = dual.receive( dual.context, socket_ready( 8 ), 8 );
            for ( int n = 0; n < more; n++ )
                filled += socket_places[n].status == NETCODE_DATAGRAM_OK;
        }
        CHECK_EQ( filled, 1 );
        udp->handles[which] = (nc_socket_handle_t) -1;
        dual.close( dual.context );
        sender.close( sender.context );
    }
}

/*  A free port below those that the system assigns by itself: a port of a closed socket can be assigned again, here or in another
    process. */
static int socket_free_port( void )
{
    static int turn;
    struct netcode_socket_t probe;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int port, is_free = 0;
    for ( port = 0; !is_free; turn++ ) {
        REQUIRE( turn < 20000 );
        port = 10000 + ( (int) getpid() % 1000 * 20 + turn ) % 20000;
        snprintf( text, sizeof( text ), "127.0.0.1:%d", port );
        is_free = socket_open( &probe, text, NULL );
        if ( is_free )
            probe.close( probe.context );
    }
    return port;
}

#if !defined( _WIN32 )

TEST( mutants_a_system_that_grants_no_buffer_is_not_asked_for_ever )
{
    CHECK_EQ( nc_socket_set_buffer( -1, SO_RCVBUF, 1 << 20 ), 0 );
}

TEST( mutants_an_aimed_socket_still_sends_elsewhere )
{
    struct netcode_socket_t a, b, c;
    struct netcode_address_t to_b, to_c;
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) && socket_open( &b, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &c, "127.0.0.1", NULL ) );
    to_b = socket_where( &b, 0 );
    to_c = socket_where( &c, 0 );
    if ( udp_extras.connect_to ) {
        struct netcode_address_t no_handle = address_of( "[::1]:40000" );
        udp_extras.connect_to( a.context, &to_b );
        udp_extras.connect_to( a.context, &no_handle ); /* of a family that it has no handle for: nothing changes */
    }
    CHECK_EQ( socket_send( &a, &to_c, "other", 5 ), 1 );
    CHECK_EQ( socket_receive( &c, 1 ), 1 );
    CHECK_EQ( socket_send( &a, &to_b, "peer", 4 ), 1 );
    REQUIRE_EQ( socket_receive( &b, 1 ), 1 );
    CHECK_MEM( socket_places[0].data, "peer", 4 );
    a.close( a.context );
    b.close( b.context );
    c.close( c.context );
}

/* A port of one's own choice in the second family stays, whatever the first one is. */
TEST( mutants_a_second_port_that_was_chosen )
{
    struct netcode_socket_t both;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int port = socket_free_port();
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    if ( !socket_open( &both, "[::1]:0", NULL ) )
        SKIP( "no IPv6 here" );
    both.close( both.context );
    snprintf( text, sizeof( text ), "[::1]:%d", port );
    REQUIRE( socket_open( &both, "127.0.0.1", text ) );
    CHECK_EQ( socket_where( &both, 1 ).port, port );
    both.close( both.context );
}

#if !defined( _WIN32 )

/* Where select fails, or receiving does nothing but fail, a wait still waits: for a short time, and again. */
TEST( socket_waits_that_the_system_refuses )
{
    static const int errors[] = { EBADF, EINVAL, ENOMEM, ENOSYS, EPERM, EINTR };
    struct netcode_socket_t a;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    struct netcode_address_t to = socket_where( &a, 0 );
    for ( int i = 0; i < 6; i++ ) {
        test_select_error = errors[i];
        a.wait( a.context, 0.1 );
        CHECK_NEAR( test_waited, test_notes_waits ? 0.001 : 0.1, 1e-9 );
    }
    test_select_error = 0;
    REQUIRE( socket_send( &a, &to, "x", 1 ) );
    for ( int i = 0; i < 6; i++ ) { /* a datagram is there; it is not received after the second wait */
        a.wait( a.context, 0.1 );
        CHECK_NEAR( test_waited, i == 2 ? 0.001 : 0.1, 1e-9 );
        if ( i != 1 )
            CHECK_EQ( socket_receive( &a, 1 ), 1 );
        if ( i != 1 )
            REQUIRE( socket_send( &a, &to, "x", 1 ) );
    }
    a.close( a.context );
}

#endif

/* Handles in either order, and one that select has no bit for. */
TEST( corners_waits_of_odd_handles )
{
    struct netcode_socket_t dual;
    nc_socket_udp_t *udp, far;
    nc_socket_handle_t kept;
    memset( &far, 0, sizeof( far ) );
    far.count = 1;
    far.handles[0] = FD_SETSIZE + 1;
    nc_socket_udp_wait( &far, 0.0001 );
    CHECK_NEAR( test_waited, 0.0001, 1e-9 );
    nc_socket_udp_wait( &far, 0.01 );
    CHECK_NEAR( test_waited, 0.001, 1e-9 );
    if ( !socket_open( &dual, "127.0.0.1", "::1" ) )
        SKIP( "no ::1" );
    udp = (nc_socket_udp_t *) dual.context;
    dual.wait( dual.context, 0.001 );
    kept = udp->handles[0];
    udp->handles[0] = udp->handles[1];
    udp->handles[1] = kept;
    dual.wait( dual.context, 0.001 );
    dual.close( dual.context );
}

/* The port is in use in the family that came second to most people's minds. */
/*  A socket is replaced by one at its address and port, by one at this port where the address is gone, and at any port where
    that is in use. What waited in the old one is lost. */
TEST( socket_rebinds )
{
    struct netcode_socket_t a, b, c;
    struct netcode_address_t to_a, to_b, to_c;
    uint8_t data[50] = { 1 };
    int i;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) && socket_open( &b, "127.0.0.1", NULL ) &&
             socket_open( &c, "0.0.0.0", NULL ) );
    to_b = socket_where( &b, 0 );
    for ( i = 0; i < 3; i++ ) {
        nc_socket_udp_t * udp = (nc_socket_udp_t *) a.context;
        to_a = socket_where( &a, 0 );
        to_c = socket_where( &c, 0 );
        CHECK_EQ( socket_send( &b, &to_a, data, 50 ), 1 );
        if ( i > 0 )
            udp->bound[0].data.ipv4[0] = 10 + 182 * ( i == 2 ); /* no address of this machine */
        if ( i == 2 )
            udp->bound[0].port = to_c.port;
        udp->kernel_drops[0] = udp->handle_drops[0] = 74; /* the new one counts from 0 */
        CHECK_EQ( a.rebind( a.context ), 1 );
        CHECK_EQ( socket_where( &a, 0 ).port == to_a.port, i < 2 );
        CHECK_NE( socket_where( &a, 0 ).port, to_c.port );
        CHECK_EQ( socket_where( &a, 0 ).data.ipv4[0], i == 0 ? 127 : 0 );
        CHECK_EQ( socket_send( &a, &to_b, data, 50 ), 1 );
        REQUIRE_EQ( socket_receive( &b, 1 ), 1 );
        CHECK_EQ( socket_places[0].address.port, socket_where( &a, 0 ).port );
        CHECK_EQ( socket_send( &b, &socket_places[0].address, data, 50 ), 1 );
        REQUIRE_EQ( socket_receive( &a, 1 ), 1 );
        CHECK_EQ( a.receive( a.context, socket_ready( 1 ), 1 ), 0 );
        CHECK( udp->kernel_drops[0] == 74 && udp->handle_drops[0] == 0 );
    }
    a.close( a.context );
    b.close( b.context );
    c.close( c.context );
    CHECK_EQ( socket_allocator.live, 0 );
}

/* Each of two families has a new socket at its own place. */
TEST( socket_rebinds_both_families )
{
    struct netcode_socket_t a, b;
    struct netcode_address_t four, six, to_b;
    uint8_t data[50] = { 1 };
    if ( !socket_open( &a, "127.0.0.1", "::1" ) )
        SKIP( "no ::1" );
    REQUIRE( socket_open( &b, "::1", NULL ) );
    four = socket_where( &a, 0 );
    six = socket_where( &a, 1 );
    to_b = socket_where( &b, 0 );
    CHECK_EQ( a.rebind( a.context ), 1 );
    four.port = six.port = 0;
    struct netcode_address_t now_four = socket_where( &a, 0 ), now_six = socket_where( &a, 1 );
    CHECK( now_four.port != 0 && now_four.port == now_six.port );
    now_four.port = now_six.port = 0;
    CHECK( nc_address_same( &now_four, &four ) && nc_address_same( &now_six, &six ) );
    CHECK_EQ( socket_send( &a, &to_b, data, 50 ), 1 );
    CHECK_EQ( socket_receive( &b, 1 ), 1 );
    a.close( a.context );
    b.close( b.context );
}

static char socket_lines[2][NC_LOG_BYTES]; /* about a socket, and about what has none */

static void socket_note_line( void * context, int level, const char * text )
{
    (void) context;
    if ( level == NETCODE_LOG_LEVEL_ERROR )
        snprintf( socket_lines[strncmp( text, "no socket", 9 ) != 0], NC_LOG_BYTES, "%s", text );
}

/* An address that is taken, alone or the second of two, of either family: the error and the log name that one. */
TEST( socket_an_address_that_is_taken )
{
    for ( int i = 0; i < 4; i++ ) {
        static const char * free_ports[] = { "127.0.0.1:0", "[::1]:0" };
        const int six = i & 1, dual = i >> 1;
        struct netcode_server_config_t config;
        struct netcode_server_t *first, *second;
        struct netcode_address_t address = address_of( free_ports[six] );
        char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        netcode_default_server_config( &config );
        config.bind_address = free_ports[six];
        first = netcode_server_create( free_ports[six], &config, 0.0 );
        if ( !first )
            SKIP( "no ::1" );
        address.port = netcode_server_get_port( first );
        netcode_address_to_string( &address, text );
        config.log_callback = socket_note_line;
        config.bind_address = dual ? free_ports[!six] : text;
        config.bind_address2 = dual ? text : NULL;
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
        second = dual ? netcode_server_create_dual( free_ports[!six], text, &config, 0.0 )
                      : netcode_server_create( text, &config, 0.0 );
        CHECK( second == NULL );
        CHECK_EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED + six );
        CHECK( strstr( socket_lines[0], text ) != NULL && strstr( socket_lines[1], text ) != NULL );
        netcode_server_destroy( first );
    }
}

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )

/* A number of dropped datagrams comes from the socket's level only. */
TEST( mutants_control_messages_of_another_level )
{
    static nc_socket_udp_t udp;
    struct msghdr header;
    uint64_t control[8] = { 0 };
    struct cmsghdr * message;
    uint32_t drops = 5;
    memset( &udp, 0, sizeof( udp ) );
    memset( &header, 0, sizeof( header ) );
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE( sizeof( drops ) );
    message = CMSG_FIRSTHDR( &header );
    message->cmsg_len = CMSG_LEN( sizeof( drops ) );
    message->cmsg_type = SO_RXQ_OVFL;
    message->cmsg_level = IPPROTO_IP;
    memcpy( CMSG_DATA( message ), &drops, sizeof( drops ) );
    nc_socket_read_drops( &udp, 0, &header );
    CHECK_EQ( udp.kernel_drops[0], 0 );
    message->cmsg_level = SOL_SOCKET;
    nc_socket_read_drops( &udp, 0, &header );
    CHECK_EQ( udp.kernel_drops[0], 5 );
}

/* Of what the system reports beside a datagram, its count of drops alone is read. */
TEST( corners_control_messages_of_other_kinds )
{
    static const int kinds[][2] = { { SOL_SOCKET, SO_TIMESTAMP },
                                    { IPPROTO_IP, SO_RXQ_OVFL },
                                    { SOL_SOCKET, SO_RXQ_OVFL } };
    nc_socket_udp_t udp;
    int i;
    for ( i = 0; i < 3; i++ ) {
        uint64_t control[8] = { 0 };
        uint32_t drops = 77;
        struct msghdr header;
        struct cmsghdr * message;
        memset( &udp, 0, sizeof( udp ) );
        memset( &header, 0, sizeof( header ) );
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE( sizeof( drops ) );
        message = CMSG_FIRSTHDR( &header );
        message->cmsg_level = kinds[i][0];
        message->cmsg_type = kinds[i][1];
        message->cmsg_len = CMSG_LEN( sizeof( drops ) );
        memcpy( CMSG_DATA( message ), &drops, sizeof( drops ) );
        nc_socket_read_drops( &udp, 0, &header );
        CHECK_EQ( udp.kernel_drops[0], i == 2 ? 77 : 0 );
    }
}

/* More errors wait in the queue than one look reads. */
TEST( corners_a_long_error_queue )
{
    struct netcode_socket_t client, gone;
    struct netcode_address_t dead = socket_address( "127.0.0.1" );
    nc_socket_request_t request;
    int i, family, places = 0;
    memset( &request, 0, sizeof( request ) );
    request.allocator = nc_allocator_make( NULL, NULL, NULL );
    request.addresses[0] = &dead;
    request.receive_buffer_bytes = request.send_buffer_bytes = 1 << 20;
    request.reports_errors = 1;
    REQUIRE_EQ( nc_socket_open_udp( &client, &udp_extras, &request, &family ), NC_SOCKET_OK );
    REQUIRE( socket_open( &gone, "127.0.0.1", NULL ) );
    dead = socket_where( &gone, 0 );
    gone.close( gone.context );
    for ( i = 0; i < 80; i++ )
        socket_send( &client, &dead, "x", 1 );
    for ( i = 0; i < 20; i++ ) {
        int more = client.receive( client.context, socket_ready( 8 ), 8 );
        places += more > 0 ? more : 0;
    }
    CHECK_LE( places, 80 );
    client.close( client.context );
}

#endif

#endif

/* ---- system call n fails. attacks/rows.py, row 52 ---- */

#if defined( __linux__ ) && defined( __GLIBC__ ) && defined( __USE_GNU ) && defined( __x86_64__ ) && \
    !defined( NETCODE_NO_LINUX_EXTRAS )
#include <sys/syscall.h>

/* These stand before the C library's, so that a test can let them fail. */
static struct {
    int error;    /* 0: none */
    int receives; /* this many of the next calls fail */
    int sends;
} socket_fault;

int recvmmsg( int fd, struct mmsghdr * headers, unsigned count, int flags, struct timespec * timeout )
{
    if ( socket_fault.receives > 0 ) {
        socket_fault.receives--;
        errno = socket_fault.error;
        return -1;
    }
    return (int) syscall( SYS_recvmmsg, fd, headers, count, flags, timeout );
}

ssize_t sendto( int fd, const void * data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_bytes )
{
    if ( socket_fault.sends > 0 ) {
        socket_fault.sends--;
        errno = socket_fault.error;
        return -1;
    }
    return (ssize_t) syscall( SYS_sendto, fd, data, bytes, flags, to.__sockaddr__, to_bytes );
}

TEST( socket_system_calls_fail )
{
    static const struct {
        int error;
        int place;  /* a failing receive fills an entry with the error, and goes on */
        int resent; /* a failing send is tried again */
    } rows[] = {
        { EAGAIN, 0, 0 },      { EINTR, 0, 1 },        { ECONNREFUSED, 1, 1 }, { EMSGSIZE, 1, 1 }, { ENOBUFS, 1, 0 },
        { ENETUNREACH, 1, 1 }, { EHOSTUNREACH, 1, 1 }, { EOPNOTSUPP, 1, 1 },   { EACCES, 1, 1 },   { ENOMEM, 1, 1 },
    };
    struct netcode_socket_t a, b;
    struct netcode_address_t to;
    struct netcode_socket_info_t info;
    size_t i;
    REQUIRE( socket_open( &a, "127.0.0.1", NULL ) );
    REQUIRE( socket_open( &b, "127.0.0.1", NULL ) );
    to = socket_where( &b, 0 );
    for ( i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        int filled;
        socket_fault.error = rows[i].error;
        socket_send( &a, &to, "one", 3 );
        socket_send( &a, &to, "two", 3 );
        socket_fault.receives = 1;
        filled = b.receive( b.context, socket_ready( 8 ), 8 );
        if ( rows[i].error == EAGAIN ) {
            CHECK_EQ( filled, 0 );
            socket_fault.receives = 0;
            CHECK_EQ( socket_receive( &b, 2 ), 2 );
        } else {
            CHECK_EQ( filled, rows[i].place + 2 );
            CHECK_EQ( socket_places[0].status, rows[i].place ? NETCODE_DATAGRAM_ERROR : NETCODE_DATAGRAM_OK );
            if ( rows[i].place )
                CHECK_EQ( socket_places[0].error, rows[i].error );
            CHECK_MEM( socket_places[filled - 1].data, "two", 3 );
        }
        socket_fault.receives = 1000000; /* for ever: the work stays bounded */
        filled = b.receive( b.context, socket_ready( 8 ), 8 );
        CHECK_EQ( filled, rows[i].place );
        CHECK_GT( socket_fault.receives, 1000000 - 20 );
        socket_fault.receives = 0;
        socket_fault.sends = 1;
        CHECK_EQ( socket_send( &a, &to, "three", 5 ), rows[i].resent );
        CHECK_EQ( socket_send( &a, &to, "four", 4 ), 1 );
        CHECK_EQ( socket_receive( &b, 1 + rows[i].resent ), 1 + rows[i].resent );
        a.info( a.context, &info );
        CHECK_EQ( info.last_send_error == rows[i].error, !rows[i].resent ); /* what was sent in the end had no error */
        socket_fault.sends = 1000000;
        CHECK_EQ( socket_send( &a, &to, "five", 4 ), 0 );
        a.info( a.context, &info );
        CHECK_EQ( info.last_send_error, rows[i].error );
        CHECK_GT( socket_fault.sends, 1000000 - 20 );
        socket_fault.sends = 0;
    }
    a.close( a.context );
    b.close( b.context );
}

/*  A system that refuses to receive many datagrams at once, from the beginning or later: what is there is received by the call
    for one. After the third error in a row that one is used for good, and the log has one line, unless the call has worked, and
    the error can be a datagram's. */
TEST( socket_recvmmsg_that_is_refused )
{
    static const int errors[] = { ENOSYS, EPERM, EOPNOTSUPP, EINVAL, EACCES };
    for ( int i = 0; i < 10; i++ ) {
        struct netcode_socket_t a, b;
        struct netcode_address_t to;
        int works = i >= 5, refuses = !works || i < 7, filled = 0;
        REQUIRE( socket_open( &a, "127.0.0.1", NULL ) && socket_open( &b, "127.0.0.1", NULL ) );
        nc_socket_udp_t * udp = (nc_socket_udp_t *) b.context;
        to = socket_where( &b, 0 );
        if ( works )
            CHECK_EQ( b.receive( b.context, socket_ready( 8 ), 8 ), 0 );
        socket_fault.error = errors[i % 5];
        socket_fault.receives = 1000000;
        for ( int k = 0; k < 20; k++ )
            CHECK_EQ( socket_send( &a, &to, "datagram", 8 ), 1 );
        for ( int k = 0; k < 4; k++ ) {
            int more = b.receive( b.context, socket_ready( 32 ), 32 );
            for ( int n = 0; n < more; n++ )
                filled += socket_places[n].status == NETCODE_DATAGRAM_OK && socket_places[n].bytes == 8;
        }
        CHECK_EQ( filled, 20 );
        CHECK_EQ( udp->receiving.is_refused, refuses );
        CHECK_EQ( socket_fault.receives, 1000000 - ( refuses ? 3 : 4 ) );
        if ( refuses ) { /* as the call for many would say, too */
            static uint8_t large[NC_BUFFER_CAPACITY + 1];
            CHECK_EQ( socket_send( &a, &to, large, (int) sizeof( large ) ), 1 );
            REQUIRE_EQ( socket_receive( &b, 1 ), 1 );
            CHECK_EQ( socket_places[0].status, NETCODE_DATAGRAM_TRUNCATED );
        }
        socket_fault.receives = 0;
        a.close( a.context );
        b.close( b.context );
    }
}

#endif
