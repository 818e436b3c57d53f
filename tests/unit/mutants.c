/*  What the mutation run (make mutate) found unwatched, room by room: each test here fails under a change of netcode.h
    that no other test noticed. `make test T=mutant` runs them, and those of story/mutants.c. */

#if !defined( _WIN32 )

#include <signal.h>

/* ---- a stack that can be searched: what a function leaves on it is there when the function has returned ---- */

#if defined( __SANITIZE_ADDRESS__ )
#define MUTANT_STACK 0
#elif defined( __has_feature )
#if __has_feature( address_sanitizer ) || __has_feature( memory_sanitizer )
#define MUTANT_STACK 0
#endif
#endif
/*  Elsewhere than on x86-64 what is found there need not be the library's: Debian's libsodium for i386 leaves its last key, and for s390x it
    is not known yet who leaves a copy. */
#if !defined( MUTANT_STACK ) && defined( SA_ONSTACK ) && defined( __x86_64__ )
#define MUTANT_STACK 1
#endif
#if !defined( MUTANT_STACK )
#define MUTANT_STACK 0
#endif

#if MUTANT_STACK

static struct {
    uint8_t * memory;
    size_t bytes;
    void ( *run )( void );
} mutant_stack;

static void mutant_on_signal( int number )
{
    (void) number;
    mutant_stack.run();
}

/* Runs a function on a stack of its own, by a signal that is handled there. */
static void mutant_run_on_stack( void ( *run )( void ) )
{
    struct sigaction action, before;
    stack_t stack, old;
    memset( &stack, 0, sizeof( stack ) );
    memset( &action, 0, sizeof( action ) );
    mutant_stack.bytes = (size_t) 1 << 20;
    mutant_stack.memory = (uint8_t *) calloc( 1, mutant_stack.bytes );
    mutant_stack.run = run;
    stack.ss_sp = mutant_stack.memory;
    stack.ss_size = mutant_stack.bytes;
    action.sa_handler = mutant_on_signal;
    action.sa_flags = SA_ONSTACK;
    sigemptyset( &action.sa_mask );
    REQUIRE( sigaltstack( &stack, &old ) == 0 && sigaction( SIGUSR1, &action, &before ) == 0 );
    raise( SIGUSR1 );
    CHECK_EQ( sigaction( SIGUSR1, &before, NULL ), 0 );
    CHECK_EQ( sigaltstack( &old, NULL ), 0 );
}

/* How often the needle lies on that stack. */
static int mutant_stack_holds( const void * needle, size_t bytes )
{
    int found = 0;
    size_t at;
    for ( at = 0; at + bytes <= mutant_stack.bytes; at++ )
        found += memcmp( mutant_stack.memory + at, needle, bytes ) == 0;
    return found;
}

static void mutant_stack_free( void )
{
    free( mutant_stack.memory );
    mutant_stack.memory = NULL;
}

static uint8_t mutant_token[NETCODE_CONNECT_TOKEN_BYTES];
static uint8_t mutant_user_data[NETCODE_USER_DATA_BYTES];

static void mutant_generate( void )
{
    static const char * address = "127.0.0.1:40000";
    static const uint8_t key[NETCODE_KEY_BYTES] = { 9, 8, 7 };
    CHECK_EQ( netcode_generate_connect_token( 1, &address, &address, 30, 5, 1, 2, key, mutant_user_data, mutant_token ),
              NETCODE_OK );
}

static void mutant_info( void )
{
    struct netcode_connect_token_info_t info;
    CHECK_EQ( netcode_connect_token_info( mutant_token, &info ), NETCODE_OK );
}

/* Decision 9, for what a backend's and a client's own calls leave behind. */
TEST( mutants_tokens_leave_nothing_on_the_stack )
{
    /* public part: 61 bytes, the sealed part, timeout, count, one IPv4 address of 7 bytes; then both keys */
    const uint8_t * keys = mutant_token + 61 + 1024 + 8 + 7;
    size_t i;
    for ( i = 0; i < sizeof( mutant_user_data ); i++ )
        mutant_user_data[i] = (uint8_t) ( test_random() >> 7 );
    mutant_generate(); /* a first call may put every register on the stack, while the dynamic linker looks for it */
    mutant_info();
    mutant_run_on_stack( mutant_generate );
    CHECK_EQ( mutant_stack_holds( mutant_user_data + 64, 32 ), 0 );
    CHECK_EQ( mutant_stack_holds( keys, 16 ), 0 );
    CHECK_EQ( mutant_stack_holds( keys + 32, 16 ), 0 );
    mutant_stack_free();
    mutant_run_on_stack( mutant_info );
    CHECK_EQ( mutant_stack_holds( keys, 16 ), 0 );
    CHECK_EQ( mutant_stack_holds( keys + 48, 16 ), 0 );
    mutant_stack_free();
}

#endif

/* ---- platform ---- */

TEST( mutants_log_lines_are_cut_at_the_same_place )
{
    char out[16];
    memset( out, 'x', sizeof( out ) );
    nc_log_escape( out, 6, "abc" );
    CHECK_STR( out, "a" ); /* room is kept for one escaped letter and the NUL */
    nc_log_escape( out, 7, "abc" );
    CHECK_STR( out, "ab" );
    nc_log_escape( out, 6, "\n\n" );
    CHECK_STR( out, "\\x0a" );
}

TEST( mutants_finite_ends_at_1e300 )
{
    CHECK_EQ( nc_number_is_finite( 1e300 ), 0 );
    CHECK_EQ( nc_number_is_finite( -1e300 ), 0 );
    CHECK_EQ( nc_number_is_finite( 9.99e299 ), 1 );
    CHECK_EQ( nc_number_is_finite( -9.99e299 ), 1 );
}

TEST( mutants_time_is_the_monotonic_clock )
{
#if defined( CLOCK_MONOTONIC )
    struct timespec now;
    double seconds;
    REQUIRE_EQ( clock_gettime( CLOCK_MONOTONIC, &now ), 0 );
    seconds = (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
    CHECK_NEAR( netcode_time(), seconds, 600.0 );
#else
    SKIP( "this system has no monotonic clock" );
#endif
}

TEST( mutants_sleep_of_more_than_a_second )
{
    double start = netcode_time();
    netcode_sleep( 1.05 );
    CHECK_GE( ( netcode_time() - start ) * 100.0, 104 );
    CHECK_LT( netcode_time() - start, 3.0 ); /* 1.05 + 2 * 1 would be later still */
}

TEST( mutants_names_of_what_does_not_exist )
{
    CHECK_STR( netcode_drop_reason_name( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( -1 ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_text( NETCODE_DROP_REASONS ), "UNKNOWN" );
    CHECK_STR( netcode_drop_reason_name( NETCODE_DROP_NONE ), "NONE" );
}

TEST( mutants_libsodium_was_initialised )
{
    CHECK_EQ( sodium_init(), 1 );
}

/* ---- address ---- */

TEST( mutants_every_byte_of_an_address_is_hashed )
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = { 3 };
    struct netcode_address_t address;
    uint64_t hash;
    int bit;
    memset( &address, 0, sizeof( address ) );
    address.type = NETCODE_ADDRESS_IPV6;
    hash = nc_address_hash( &address, key );
    for ( bit = 0; bit < 128; bit++ ) {
        address.data.ipv6[bit / 16] ^= (uint16_t) ( 1 << bit % 16 );
        CHECK_NE( nc_address_hash( &address, key ), hash );
        address.data.ipv6[bit / 16] ^= (uint16_t) ( 1 << bit % 16 );
    }
    address.type = NETCODE_ADDRESS_IPV4;
    hash = nc_address_hash( &address, key );
    for ( bit = 0; bit < 32; bit++ ) {
        address.data.ipv4[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
        CHECK_NE( nc_address_hash( &address, key ), hash );
        address.data.ipv4[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
    }
}

TEST( mutants_a_parsed_ipv6_address_is_written_whole )
{
    uint16_t words[8];
    int i;
    memset( words, 0xff, sizeof( words ) );
    CHECK( nc_address_parse_ipv6( "::", words ) != NULL );
    for ( i = 0; i < 8; i++ )
        CHECK_EQ( words[i], 0 );
}

/* ---- token ---- */

TEST( mutants_info_of_an_unreadable_token_is_empty )
{
    static const uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_connect_token_info_t info;
    const uint8_t * bytes = (const uint8_t *) &info;
    size_t i;
    memset( &info, 0xff, sizeof( info ) );
    CHECK_EQ( netcode_connect_token_info( token, &info ), NETCODE_ERROR );
    for ( i = 0; i < sizeof( info ); i++ )
        CHECK_EQ( bytes[i], 0 );
}

/* ---- packet ---- */

TEST( mutants_every_letter_of_the_old_version_counts )
{
    uint8_t data[1078];
    nc_request_t request;
    int at;
    for ( at = 1; at < 14; at++ ) {
        packet_make_request( data, "NETCODE 1.01" );
        data[at] ^= 0x20;
        CHECK_EQ( nc_packet_parse_request( &request, data, 1062, packet_protocol_id ),
                  NETCODE_DROP_REQUEST_WRONG_SIZE );
        CHECK_EQ( nc_packet_parse_request( &request, data, 1078, packet_protocol_id ),
                  NETCODE_DROP_REQUEST_WRONG_VERSION );
    }
}

/* ---- table ---- */

TEST( mutants_arena_says_no_for_ever )
{
    nc_arena_t arena = nc_arena_make( NULL );
    size_t most = ( ( SIZE_MAX / 2 ) - arena.at - NC_ARENA_ALIGN ) / 64;
    nc_arena_take( &arena, most, 64 );
    CHECK( arena.at < ( SIZE_MAX / 2 ) );
    nc_arena_take( &arena, 1, 64 );
    nc_arena_take( &arena, 8, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
    arena = nc_arena_make( NULL );
    nc_arena_take( &arena, most + 1, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
    nc_arena_take( &arena, 1, 64 );
    CHECK( arena.at == ( SIZE_MAX / 2 ) );
}

TEST( mutants_an_empty_wheel_has_a_second )
{
    nc_wheel_t wheel;
    memset( &wheel, 0xff, sizeof( wheel ) );
    wheel.capacity = 0;
    nc_wheel_reset( &wheel, 0.0 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 0.0 ), 1.0, 0.0 );
    nc_wheel_reset( &wheel, 5.3 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 5.3 ), 1.0, 0.0 );
}

TEST( mutants_a_wheel_tells_when_it_rings )
{
    nc_wheel_t wheel;
    nc_link_t links[2];
    uint16_t list_of[2];
    memset( &wheel, 0, sizeof( wheel ) );
    wheel.capacity = 2;
    wheel.links = links;
    wheel.list_of = list_of;
    nc_wheel_reset( &wheel, 10.0 );
    nc_wheel_insert( &wheel, 1, 10.5 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.0 ), 0.5, 0.001 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.25 ), 0.25, 0.001 );
    CHECK_NEAR( nc_wheel_seconds_left( &wheel, 10.75 ), 0.0, 0.0 );
}

TEST( mutants_inbox_writes_nothing_behind_its_queues )
{
    nc_inbox_t inbox;
    nc_queue_t queues[2];
    nc_pool_t pool;
    const uint8_t * bytes = (const uint8_t *) &queues[1];
    size_t i;
    memset( &inbox, 0, sizeof( inbox ) );
    memset( &pool, 0, sizeof( pool ) );
    memset( queues, 0xee, sizeof( queues ) );
    inbox.queues = queues;
    inbox.client_count = 1;
    nc_inbox_reset( &inbox, &pool, 1 );
    for ( i = 0; i < sizeof( queues[1] ); i++ )
        CHECK_EQ( bytes[i], 0xee );
}

TEST( mutants_no_event_is_all_zeros )
{
    nc_inbox_t inbox;
    struct netcode_event_t event;
    const uint8_t * bytes = (const uint8_t *) &event;
    size_t i;
    memset( &inbox, 0, sizeof( inbox ) );
    memset( &event, 0xee, sizeof( event ) );
    nc_list_init( &inbox.events );
    CHECK_EQ( nc_inbox_next_event( &inbox, &event ), 0 );
    for ( i = 0; i < sizeof( event ); i++ )
        CHECK_EQ( bytes[i], 0 );
}

TEST( mutants_used_tokens_are_told_apart_by_every_byte )
{
    nc_arena_t arena;
    nc_used_t used;
    nc_used_record_t record;
    void * block;
    int at;
    memset( &used, 0, sizeof( used ) );
    memset( &record, 7, sizeof( record ) );
    TABLE_PLACE( block, arena, nc_used_place( &used, &arena, 8 ) );
    nc_used_reset( &used );
    nc_used_insert( &used, &record, 5, 5 );
    CHECK_EQ( nc_used_seen( &used, record.tag, 5 ), 1 );
    for ( at = 0; at < NC_TOKEN_TAG_BYTES; at++ ) {
        record.tag[at] ^= 0x80;
        CHECK_EQ( nc_used_seen( &used, record.tag, 5 ), 0 );
        record.tag[at] ^= 0x80;
    }
    free( block );
}

TEST( mutants_a_pool_begins_with_free_buffers )
{
    nc_arena_t arena;
    nc_pool_t * pool;
    void * block;
    int i;
    TABLE_PLACE( block, arena, pool = nc_pool_place( &arena, 3 ) );
    for ( i = 0; i < 3; i++ )
        CHECK_EQ( pool->states[i], NC_BUFFER_FREE );
    free( block );
}

/* ---- socket ---- */

TEST( mutants_a_place_to_receive_into_begins_empty )
{
    struct netcode_datagram_t place;
    nc_pool_t pool;
    uint8_t buffers[NC_BUFFER_STRIDE];
    memset( &place, 0xee, sizeof( place ) );
    memset( &pool, 0, sizeof( pool ) );
    pool.buffers = buffers;
    nc_arrival_prepare( &place, &pool, 0 );
    CHECK( place.data == buffers + NC_BUFFER_HEADER_BYTES - NC_USUAL_HEADER_BYTES );
    CHECK_EQ( place.capacity, NC_BUFFER_CAPACITY );
    CHECK( place.bytes == 0 && place.status == NETCODE_DATAGRAM_OK && place.error == 0 );
    CHECK_EQ( place.address.type, NETCODE_ADDRESS_NONE );
    place.bytes = place.status = place.error = 5;
    place.address.type = NETCODE_ADDRESS_IPV6;
    nc_arrival_reset( &place );
    CHECK( place.bytes == 0 && place.status == NETCODE_DATAGRAM_OK && place.error == 0 );
    CHECK_EQ( place.address.type, NETCODE_ADDRESS_NONE );
}

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
    nc_socket_connect( &a, &to_b );
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
    struct netcode_socket_t probe, both;
    struct netcode_address_t at;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    if ( !socket_open( &probe, "::1", NULL ) )
        SKIP( "no IPv6 here" );
    at = socket_where( &probe, 0 );
    probe.close( probe.context );
    netcode_address_to_string( &at, text );
    REQUIRE( socket_open( &both, "127.0.0.1", text ) );
    CHECK_EQ( socket_where( &both, 1 ).port, at.port );
    both.close( both.context );
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

/* What the system is told holds no bytes of the stack. */
TEST( mutants_control_messages_have_padding_of_zeros )
{
    struct msghdr header;
    uint64_t control[8];
    const uint8_t * bytes = (const uint8_t *) control;
    size_t i;
    memset( &header, 0, sizeof( header ) );
    memset( control, 0xee, sizeof( control ) );
    nc_socket_volley_cut( &header, control, 1200 );
    for ( i = CMSG_LEN( sizeof( uint16_t ) ); i < CMSG_SPACE( sizeof( uint16_t ) ); i++ )
        CHECK_EQ( bytes[i], 0 );
}

/* Both families are known to be empty, so neither is asked again at once. */
TEST( mutants_both_families_are_drained )
{
    struct netcode_socket_t both;
    memset( &socket_allocator, 0, sizeof( socket_allocator ) );
    if ( !socket_open( &both, "127.0.0.1", "::1" ) )
        SKIP( "no IPv6 here" );
    CHECK_EQ( nc_socket_receive_from( (nc_socket_udp_t *) both.context, 0, socket_ready( 1 ), 1 ), 0 );
    CHECK_EQ( nc_socket_receive_from( (nc_socket_udp_t *) both.context, 1, socket_ready( 1 ), 1 ), 0 );
    CHECK_EQ( ( (nc_socket_udp_t *) both.context )->drained, 3 );
    both.close( both.context );
}

#endif

/* ---- simulator ---- */

/* The published test values of splitmix64 for the seed 1234567. */
TEST( mutants_the_simulators_random_numbers )
{
    static const uint64_t known[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                      4593380528125082431u, 16408922859458223821u };
    static nc_simulator_state_t state;
    size_t i;
    memset( &state, 0, sizeof( state ) );
    state.random = 1234567;
    for ( i = 0; i < sizeof( known ) / sizeof( known[0] ); i++ )
        CHECK( nc_simulator_random( &state ) == known[i] );
}

static struct allocator_t mutant_allocator;

/* A simulator with one socket at 1.1.1.1:1 that sends to itself. */
static struct netcode_network_simulator_t * mutant_simulator( struct netcode_socket_t * socket )
{
    struct netcode_network_simulator_t * simulator;
    struct netcode_address_t at = socket_address( "1.1.1.1:1" );
    memset( &mutant_allocator, 0, sizeof( mutant_allocator ) );
    simulator = netcode_network_simulator_create( &mutant_allocator, allocator_allocate, allocator_free );
    CHECK_EQ( netcode_network_simulator_socket( simulator, &at, socket ), NETCODE_OK );
    return simulator;
}

static void mutant_send_to_itself( struct netcode_socket_t * socket, int count )
{
    struct netcode_address_t at = socket_address( "1.1.1.1:1" );
    for ( ; count; count-- )
        CHECK_EQ( socket_send( socket, &at, "hello", 5 ), 1 );
}

/* What lies in a port goes back when the port is emptied or closed, and a chunk of packets is used whole. */
TEST( mutants_the_simulator_loses_no_packet )
{
    struct netcode_address_t at = socket_address( "1.1.1.1:1" );
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = mutant_simulator( &socket );
    int round, before = mutant_allocator.live;
    mutant_send_to_itself( &socket, NC_SIMULATOR_CHUNK );
    CHECK_EQ( mutant_allocator.live, before + 2 ); /* one chunk, and the heap of those in flight */
    for ( round = 1; round < 8; round++ ) {
        netcode_network_simulator_update( simulator, round );
        CHECK( socket.receive( socket.context, socket_ready( 1 ), 1 ) == 1 );
        if ( round % 2 )
            netcode_network_simulator_reset( simulator );
        else {
            socket.close( socket.context );
            CHECK_EQ( netcode_network_simulator_socket( simulator, &at, &socket ), NETCODE_OK );
        }
        mutant_send_to_itself( &socket, NC_SIMULATOR_CHUNK );
        CHECK_EQ( mutant_allocator.live, before + 2 );
    }
    netcode_network_simulator_destroy( simulator );
    CHECK_EQ( mutant_allocator.live, 0 );
}

TEST( mutants_a_reset_makes_room_in_a_port )
{
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = mutant_simulator( &socket );
    mutant_send_to_itself( &socket, NC_SIMULATOR_QUEUE );
    netcode_network_simulator_update( simulator, 1.0 );
    netcode_network_simulator_reset( simulator );
    mutant_send_to_itself( &socket, 1 );
    netcode_network_simulator_update( simulator, 2.0 );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 2 ), 2 ), 1 );
    netcode_network_simulator_destroy( simulator );
}

TEST( mutants_reordering_comes_on_top_of_latency )
{
    struct netcode_socket_t socket;
    struct netcode_network_simulator_t * simulator = mutant_simulator( &socket );
    simulator->latency_milliseconds = 1000.0f;
    simulator->reorder_packet_percent = 100.0f;
    mutant_send_to_itself( &socket, 50 );
    netcode_network_simulator_update( simulator, 0.999 );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 1 ), 1 ), 0 );
    netcode_network_simulator_update( simulator, 1.1 );
    CHECK_EQ( socket.receive( socket.context, socket_ready( 60 ), 60 ), 50 );
    netcode_network_simulator_destroy( simulator );
}

/* An override of one direction alone, and a socket with one call alone, are no network. */
TEST( mutants_half_a_network_is_refused )
{
    static struct netcode_socket_t half;
    nc_transport_t transport;
    int i;
    for ( i = 0; i < 4; i++ ) {
        memset( &transport, 0, sizeof( transport ) );
        transport.overridden = 1;
        transport.override_.send = i & 1 ? socket_override_send : NULL;
        transport.override_.receive = i & 2 ? socket_override_receive : NULL;
        CHECK_EQ( nc_transport_is_complete( &transport ), i == 3 );
        memset( &transport, 0, sizeof( transport ) );
        memset( &half, 0, sizeof( half ) );
        half.send = i & 1 ? socket_sink_send : NULL;
        half.receive = i & 2 ? nc_simulator_receive : NULL;
        transport.socket = &half;
        CHECK_EQ( nc_transport_is_complete( &transport ), i == 3 );
    }
}

#endif /* !defined( _WIN32 ) */
