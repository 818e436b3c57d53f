/*  Story: datagrams that are changed, cut, made longer, called something else or sent back to their sender. Rows 1 to
    11 of the table of attacks; `make attacks` prints it, and tests/attacks/rows.py says which tests hold which row. */

/* ---- 1: each bit of every byte ---- */

/* A connected world with a puppet (client 9) and a real client (1) to attack. */
static struct world_t * hostile_world( struct puppet_t * p )
{
    struct world_t * w = world_open( CLEAN, 1, 8, 1 );
    REQUIRE( world_join( w, 0, 1 ) );
    puppet_make( p, w, 0, 9, "10.2.0.9:6000" );
    p->r.timeout = -1;
    puppet_mint( p );
    return w;
}

static int64_t all_drops( const uint64_t * dropped )
{
    int64_t sum = 0;
    int i;
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ )
        sum += (int64_t) dropped[i];
    return sum;
}

static int64_t all_server_drops( struct world_t * w )
{
    struct netcode_server_stats_t stats = server_stats( w, 0 );
    return all_drops( stats.dropped );
}

static int64_t all_client_drops( struct world_t * w, int client )
{
    struct netcode_client_stats_t stats = client_stats( w, client );
    return all_drops( stats.dropped );
}

/* Every change of one bit of this datagram, to one side. */
static void flip_every_bit( struct world_t * w, const struct netcode_address_t * from,
                            const struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    uint8_t copy[2048];
    int bit;
    for ( bit = 0; bit < bytes * 8; bit++ ) {
        memcpy( copy, data, (size_t) bytes );
        copy[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
        world_inject( w, from, to, copy, bytes );
        if ( bit % 100 == 99 )
            world_step( w );
    }
    world_run( w, 0.3 );
}

/* 1: to the server. Each is dropped, and the genuine one is accepted afterwards. */
TEST( hostile_1_flipped_bits_to_the_server )
{
    static const int types[] = { NETCODE_PACKET_REQUEST, NETCODE_PACKET_RESPONSE, NETCODE_PACKET_KEEP_ALIVE,
                                 NETCODE_PACKET_PAYLOAD, NETCODE_PACKET_DISCONNECT };
    int i;
    for ( i = 0; i < 5; i++ ) {
        struct puppet_t p;
        struct world_t * w = hostile_world( &p );
        uint8_t data[2048], body[400];
        int bytes, clients;
        int64_t drops;
        if ( i == 1 )
            REQUIRE( puppet_challenged( &p ) );
        if ( i > 1 )
            REQUIRE( puppet_connect( &p ) );
        puppet_keep_alive( &p );
        puppet_step( &p );
        payload_fill( body, 400, 3 );
        if ( types[i] == NETCODE_PACKET_RESPONSE )
            memcpy( body, p.challenge, 308 );
        bytes = types[i] == NETCODE_PACKET_RESPONSE     ? 308
                : types[i] == NETCODE_PACKET_KEEP_ALIVE ? 8
                : types[i] == NETCODE_PACKET_PAYLOAD    ? 40
                                                        : 0;
        bytes = wire_seal( data, types[i] ? types[i] : NETCODE_PACKET_PAYLOAD, p.sequence++, 0, p.r.to_server_key, body,
                           bytes );
        if ( types[i] == NETCODE_PACKET_REQUEST ) {
            memcpy( data, p.request, REQUEST_BYTES );
            bytes = REQUEST_BYTES;
        }
        clients = netcode_server_num_connected_clients( w->servers[0] );
        drops = all_server_drops( w );
        puppet_poll( &p );
        p.challenges = p.keep_alives = 0;
        w->step = 0.001; /* so that a pending handshake outlives the attack */
        flip_every_bit( w, &p.address, &w->server_addresses[0], data, bytes );
        CHECK_EQ( all_server_drops( w ) - drops, bytes * 8 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), clients );
        CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 9 ) < 0 ? 7 : world_slot( w, 0, 9 ) ), 0 );
        puppet_poll( &p );
        CHECK_EQ( p.challenges, 0 );
        puppet_raw( &p, data, bytes ); /* the real one */
        puppet_step( &p );
        CHECK_EQ( p.challenges, i == 0 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), clients + ( i == 1 ) - ( i == 4 ) );
        if ( i == 3 )
            CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 9 ) ), 1 );
        world_close( w );
    }
}

TEST( hostile_1_flipped_bits_to_the_client )
{
    static const int types[] = { NETCODE_PACKET_DENIED, NETCODE_PACKET_CHALLENGE, NETCODE_PACKET_KEEP_ALIVE,
                                 NETCODE_PACKET_PAYLOAD, NETCODE_PACKET_DISCONNECT };
    static const int sizes[] = { 0, 308, 8, 40, 0 };
    int i;
    for ( i = 0; i < 5; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct recipe_t r = recipe_for( w, 1 );
        uint8_t data[400], body[308] = { 0 };
        int bytes, state;
        uint64_t sequence = (uint64_t) 1 << 63;
        int64_t drops;
        r.timeout = -1;
        w->step = 0.001;
        w->cut_types = types[i] < NETCODE_PACKET_RESPONSE      ? 1u << NETCODE_PACKET_REQUEST
                       : types[i] == NETCODE_PACKET_KEEP_ALIVE ? 1u << NETCODE_PACKET_KEEP_ALIVE
                                                               : 0;
        world_connect_recipe( w, 0, &r );
        if ( types[i] >= NETCODE_PACKET_PAYLOAD ) {
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
            sequence = newest_to_client( w, &r ) + 20;
        } else
            world_run( w, 0.1 );
        if ( types[i] == NETCODE_PACKET_KEEP_ALIVE )
            sequence = 77;
        body[4] = 2;
        bytes = wire_seal( data, types[i], sequence, 0, r.to_client_key, body, sizes[i] );
        state = netcode_client_state( w->clients[0] );
        drops = all_client_drops( w, 0 );
        w->cut_types = 0xffff;
        flip_every_bit( w, &w->server_addresses[0], &w->client_addresses[0], data, bytes );
        CHECK_EQ( all_client_drops( w, 0 ) - drops, bytes * 8 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), state );
        CHECK_EQ( client_drain( w, 0 ), 0 );
        inject_to_client( w, data, bytes );
        world_step( w );
        if ( types[i] == NETCODE_PACKET_PAYLOAD )
            CHECK_EQ( client_drain( w, 0 ), 1 );
        else
            CHECK_NE( netcode_client_state( w->clients[0] ), state );
        world_close( w );
    }
}

/* All seven types, on each side that takes them. */
static const struct {
    int to_client;
    int type;
} threat_cases[] = {
    { 0, NETCODE_PACKET_REQUEST },    { 0, NETCODE_PACKET_RESPONSE },   { 0, NETCODE_PACKET_KEEP_ALIVE },
    { 0, NETCODE_PACKET_PAYLOAD },    { 0, NETCODE_PACKET_DISCONNECT }, { 1, NETCODE_PACKET_DENIED },
    { 1, NETCODE_PACKET_CHALLENGE },  { 1, NETCODE_PACKET_KEEP_ALIVE }, { 1, NETCODE_PACKET_PAYLOAD },
    { 1, NETCODE_PACKET_DISCONNECT },
};

enum { THREAT_CASES = sizeof( threat_cases ) / sizeof( threat_cases[0] ) };

struct threat_t {
    struct world_t * w;
    struct puppet_t p; /* the client of a server that is attacked */
    struct recipe_t r; /* the token of the session */
    int to_client;
    int type;
    struct netcode_address_t from;
    uint8_t data[2048]; /* the genuine packet */
    int bytes;
    uint8_t body[NETCODE_MAX_PACKET_SIZE + 200];
    int body_bytes;
    uint64_t sequence;
    const uint8_t * key;
};

/* Client 1 is in, and puppet 9 as far as its packet needs it to be. */
static void threat_open_server( struct threat_t * t )
{
    t->w = hostile_world( &t->p );
    if ( t->type == NETCODE_PACKET_RESPONSE )
        REQUIRE( puppet_challenged( &t->p ) );
    if ( t->type > NETCODE_PACKET_RESPONSE ) {
        REQUIRE( puppet_connect( &t->p ) );
        puppet_keep_alive( &t->p );
        puppet_step( &t->p );
    }
    t->r = t->p.r;
    t->from = t->p.address;
    t->sequence = t->p.sequence;
    t->key = t->r.to_server_key;
    if ( t->type == NETCODE_PACKET_RESPONSE )
        memcpy( t->body, t->p.challenge, 308 );
}

/* A client that requests, that has answered its challenge, or that is connected. Its server says no more. */
static void threat_open_client( struct threat_t * t )
{
    int answered = t->type == NETCODE_PACKET_KEEP_ALIVE;
    t->w = world_open( CLEAN, 1, 4, 1 );
    t->r = recipe_for( t->w, 1 );
    t->r.timeout = -1;
    t->w->cut_types = t->type < NETCODE_PACKET_RESPONSE ? 1u << NETCODE_PACKET_REQUEST
                      : answered                        ? 1u << NETCODE_PACKET_KEEP_ALIVE
                                                        : 0;
    world_connect_recipe( t->w, 0, &t->r );
    t->sequence = (uint64_t) 1 << 63;
    world_run( t->w, 0.1 );
    if ( t->type >= NETCODE_PACKET_PAYLOAD ) {
        REQUIRE( world_until( t->w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        t->sequence = newest_to_client( t->w, &t->r ) + 20;
    }
    if ( answered )
        REQUIRE( world_until( t->w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
    t->w->cut_types = 0xffff;
    t->from = t->w->server_addresses[0];
    t->key = t->r.to_client_key;
    t->body[4] = 4;
}

static void threat_open( struct threat_t * t, int number )
{
#if NETCODE_PACKET_TYPES != 7
#error "a packet type is new: what follows needs it"
#endif
    static const int sizes[NETCODE_PACKET_TYPES] = { 0, 0, 308, 308, 8, 40, 0 };
    memset( t, 0, sizeof( *t ) );
    t->to_client = threat_cases[number].to_client;
    t->type = threat_cases[number].type;
    t->body_bytes = sizes[t->type];
    if ( t->to_client )
        threat_open_client( t );
    else
        threat_open_server( t );
    world_step( t->w ); /* so that any time that an attack renews shows */
    t->bytes = wire_seal( t->data, t->type, t->sequence, 0, t->key, t->body, t->body_bytes );
    if ( t->type == NETCODE_PACKET_REQUEST )
        memcpy( t->data, t->p.request, (size_t) ( t->bytes = REQUEST_BYTES ) );
}

static const uint64_t * threat_drops( const struct threat_t * t )
{
    return t->to_client ? t->w->clients[0]->base.counters.dropped : t->w->servers[0]->base.counters.dropped;
}

/* Hands over these very bytes. Returns why they were dropped; NETCODE_DROP_NONE: they were accepted. */
static int threat_hand( struct threat_t * t, uint8_t * data, int bytes )
{
    uint64_t before[NETCODE_DROP_REASONS];
    int i, reason = NETCODE_DROP_NONE, count = 0;
    memcpy( before, threat_drops( t ), sizeof( before ) );
    if ( t->to_client )
        netcode_client_process_packet( t->w->clients[0], &t->from, data, bytes );
    else
        netcode_server_process_packet( t->w->servers[0], &t->from, data, bytes );
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ )
        if ( threat_drops( t )[i] != before[i] ) {
            count += (int) ( threat_drops( t )[i] - before[i] );
            reason = i;
        }
    CHECK_LE( count, 1 );
    return reason;
}

static void threat_check( const struct threat_t * t, int reason, int expected, const char * what, int number )
{
    if ( reason != expected )
        test_fail( __FILE__, __LINE__, "type %d to the %s, %s %d: %s and not %s", t->type,
                   t->to_client ? "client" : "server", what, number, netcode_drop_reason_name( reason ),
                   netcode_drop_reason_name( expected ) );
}

struct threat_state_t {
    uint8_t * object;
    uint8_t * memory; /* a server's slots, handshakes, used tokens, tables, timers, queues */
    int sent;
    size_t bytes; /* of the object: a client's grows with the buffers that it has used */
};

static size_t threat_object_bytes( const struct threat_t * t )
{
    return t->to_client ? nc_pool_written_bytes( t->w->clients[0]->inbox.pool ) : sizeof( struct netcode_server_t );
}

static const uint8_t * threat_object( const struct threat_t * t )
{
    return t->to_client ? (const uint8_t *) t->w->clients[0] : (const uint8_t *) t->w->servers[0];
}

static struct threat_state_t threat_remember( const struct threat_t * t )
{
    struct threat_state_t state = { NULL, NULL, t->w->records.count, threat_object_bytes( t ) };
    const nc_server_memory_t * memory = &t->w->servers[0]->memory;
    state.object = (uint8_t *) malloc( threat_object_bytes( t ) );
    state.memory = (uint8_t *) malloc( memory->bytes );
    REQUIRE( state.object && state.memory );
    memcpy( state.object, threat_object( t ), threat_object_bytes( t ) );
    memcpy( state.memory, memory->block, memory->bytes );
    return state;
}

static size_t threat_counters_at( const struct threat_t * t )
{
    return t->to_client ? offsetof( struct netcode_client_t, base.counters )
                        : offsetof( struct netcode_server_t, base.counters );
}

/* 1 while nothing has changed and nothing was sent. */
static int threat_same( const struct threat_t * t, struct threat_state_t * state )
{
    const nc_server_memory_t * memory = &t->w->servers[0]->memory;
    memcpy( state->object + threat_counters_at( t ), threat_object( t ) + threat_counters_at( t ),
            sizeof( nc_counters_t ) );
    if ( t->to_client ) { /* the report counts it, and returns why */
        size_t refused = offsetof( struct netcode_client_t, refused );
        memcpy( state->object + refused, threat_object( t ) + refused,
                offsetof( struct netcode_client_t, remembered ) - refused );
    }
    return threat_object_bytes( t ) == state->bytes && memcmp( state->object, threat_object( t ), state->bytes ) == 0 &&
           memcmp( state->memory, memory->block, memory->bytes ) == 0 && t->w->records.count == state->sent;
}

/* Hands over a copy in a block of exactly its size. */
static int threat_hand_copy( struct threat_t * t, const uint8_t * data, int bytes )
{
    uint8_t * exact = (uint8_t *) malloc( bytes ? (size_t) bytes : 1 );
    int reason;
    REQUIRE( exact != NULL );
    memcpy( exact, data, (size_t) bytes );
    reason = threat_hand( t, exact, bytes );
    free( exact );
    return reason;
}

static void threat_forget( struct threat_state_t * state )
{
    free( state->object );
    free( state->memory );
}

/* What was built is what it claims to be: the genuine packet is accepted, and changes the state. */
static void threat_close( struct threat_t * t, struct threat_state_t * state )
{
    threat_check( t, threat_hand_copy( t, t->data, t->bytes ), NETCODE_DROP_NONE, "the genuine one of", t->bytes );
    CHECK( !threat_same( t, state ) );
    threat_forget( state );
    world_close( t->w );
}

/* 1: each bit of every byte of all seven types: dropped, and not a byte of the state is another one. */
static void threat_flip( int number )
{
    struct threat_t t;
    struct threat_state_t state;
    uint8_t copy[2048];
    int bit;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( bit = 0; bit < t.bytes * 8 && test_state.failures < 5; bit++ ) {
        memcpy( copy, t.data, (size_t) t.bytes );
        copy[bit / 8] ^= (uint8_t) ( 1 << bit % 8 );
        if ( threat_hand( &t, copy, t.bytes ) == NETCODE_DROP_NONE || !threat_same( &t, &state ) )
            threat_check( &t, NETCODE_DROP_NONE, NETCODE_DROP_AUTHENTICATION_FAILED, "flipped bit", bit );
    }
    threat_close( &t, &state );
}

TEST( threat_1_flipped_bits_leave_the_state_as_it_was )
{
    int number;
    for ( number = 0; number < THREAT_CASES; number++ )
        threat_flip( number );
}

/* ---- 2 and 3: cut to every length, and made longer ---- */

/* 2 and 3: cut to every length, in buffers of exactly that size; and made longer. */
TEST( hostile_2_3_every_length )
{
    struct puppet_t p;
    struct world_t * w = hostile_world( &p );
    struct recipe_t r = recipe_for( w, 50 );
    uint8_t data[4][2048], body[1200];
    int sizes[4], kind, length;
    memset( data, 0x5a, sizeof( data ) );
    memset( body, 0, sizeof( body ) );
    REQUIRE( puppet_connect( &p ) );
    memset( data[0], 0, sizeof( data[0] ) );
    wire_request( &r, data[0] );
    sizes[0] = REQUEST_BYTES;
    sizes[1] = wire_seal( data[1], NETCODE_PACKET_PAYLOAD, p.sequence + 1, 0, p.r.to_server_key, body, 1200 );
    sizes[2] = wire_seal( data[2], NETCODE_PACKET_KEEP_ALIVE, p.sequence + 2, 0, p.r.to_server_key, body, 8 );
    sizes[3] = wire_seal( data[3], NETCODE_PACKET_RESPONSE, p.sequence + 3, 0, p.r.to_server_key, p.challenge, 308 );
    for ( kind = 0; kind < 4; kind++ )
        for ( length = 0; length < sizes[kind] + 600; length++ ) {
            uint8_t * exact = (uint8_t *) malloc( length ? (size_t) length : 1 );
            int64_t drops = all_server_drops( w );
            REQUIRE( exact != NULL );
            memcpy( exact, data[kind], (size_t) length );
            if ( length != sizes[kind] ) {
                netcode_server_process_packet( w->servers[0], kind ? &p.address : &w->client_addresses[0], exact,
                                               length );
                CHECK_EQ( all_server_drops( w ), drops + 1 );
            }
            memcpy( exact, data[kind], (size_t) length );
            if ( length != sizes[kind] )
                netcode_client_process_packet( w->clients[0], &w->server_addresses[0], exact, length );
            free( exact );
        }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
    CHECK_EQ( server_drain( w, 0, world_slot( w, 0, 9 ) ), 0 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

#if !defined( _WIN32 )
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#endif

#if defined( _WIN32 )

static uint8_t * threat_wall( void )
{
    return NULL;
}

#else

static sigjmp_buf threat_over_the_wall;

static void threat_on_fault( int number )
{
    (void) number;
    siglongjmp( threat_over_the_wall, 1 );
}

/* The end of readable memory: behind it stands a page that may not be touched. NULL where there is none. */
static uint8_t * threat_wall( void )
{
    static uint8_t * wall;
    size_t page = (size_t) sysconf( _SC_PAGESIZE );
    void * pages;
    if ( wall )
        return wall;
    pages = mmap( NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 );
    if ( pages == MAP_FAILED || mprotect( (uint8_t *) pages + page, page, PROT_NONE ) != 0 )
        return NULL;
    return wall = (uint8_t *) pages + page;
}

/* Whether something reads past the end is seen without a sanitizer, too. Returns the reason, or -1 for that. */
static int threat_hand_at_the_wall( struct threat_t * t, int bytes )
{
    struct sigaction action, old[2];
    volatile int reason = -1;
    memcpy( threat_wall() - bytes, t->data, (size_t) bytes );
    memset( &action, 0, sizeof( action ) );
    action.sa_handler = threat_on_fault;
    sigaction( SIGSEGV, &action, &old[0] );
    sigaction( SIGBUS, &action, &old[1] );
    if ( sigsetjmp( threat_over_the_wall, 1 ) == 0 )
        reason = threat_hand( t, threat_wall() - bytes, bytes );
    sigaction( SIGSEGV, &old[0], NULL );
    sigaction( SIGBUS, &old[1], NULL );
    return reason;
}

/* 2: cut to every length, at the end of what may be read: dropped, nothing behind it is read, nothing changes. */
static void threat_cut( int number )
{
    struct threat_t t;
    struct threat_state_t state;
    int bytes;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( bytes = 0; bytes < t.bytes && test_state.failures < 5; bytes++ ) {
        int reason = threat_hand_at_the_wall( &t, bytes );
        if ( reason < 0 )
            test_fail( __FILE__, __LINE__, "type %d, cut to %d bytes, is read past its end", t.type, bytes );
        if ( reason < 0 )
            return; /* the library was left in the middle of a call */
        if ( reason == NETCODE_DROP_NONE || !threat_same( &t, &state ) )
            threat_check( &t, NETCODE_DROP_NONE, NETCODE_DROP_TOO_SMALL, "cut to", bytes );
    }
    threat_close( &t, &state );
}

#endif

TEST( threat_2_cut_datagrams_are_not_read_past_their_end )
{
#if !defined( _WIN32 )
    int number;
#endif
    if ( !threat_wall() )
        SKIP( "no page can be protected here" );
#if !defined( _WIN32 )
    for ( number = 0; number < THREAT_CASES && !test_state.failures; number++ )
        threat_cut( number );
#endif
}

/* 3: longer by 1 to 1500 bytes, zeros or noise. */
static void threat_extend( int number )
{
    struct threat_t t;
    struct threat_state_t state;
    uint8_t longer[REQUEST_BYTES + 1500];
    int more;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( more = 1; more <= 1500 && test_state.failures < 5; more++ ) {
        memset( longer, 0, sizeof( longer ) );
        memcpy( longer, t.data, (size_t) t.bytes );
        if ( more % 2 )
            ledger_random_bytes( longer + t.bytes, (size_t) more );
        if ( threat_hand_copy( &t, longer, t.bytes + more ) == NETCODE_DROP_NONE || !threat_same( &t, &state ) )
            threat_check( &t, NETCODE_DROP_NONE, NETCODE_DROP_WRONG_BODY_SIZE, "longer by", more );
    }
    threat_close( &t, &state );
}

TEST( threat_3_longer_datagrams )
{
    int number;
    for ( number = 0; number < THREAT_CASES; number++ )
        threat_extend( number );
}

/* ---- 6 and 7: every prefix byte, and what is sealed along with a packet: its prefix, the version, the protocol id ---- */

/* 6: all 256 prefix bytes, on each side: only four and five types are ever opened. */
TEST( hostile_6_every_prefix_byte )
{
    struct puppet_t p;
    struct world_t * w = hostile_world( &p );
    int prefix;
    if ( !LEDGER_WORKS )
        SKIP( "no --wrap" );
    REQUIRE( puppet_connect( &p ) );
    for ( prefix = 0; prefix < 256; prefix++ ) {
        int type = prefix & 15, length = prefix >> 4;
        uint8_t data[400] = { 0 };
        int64_t opens = ledger.opens + ledger.token_opens;
        data[0] = (uint8_t) prefix;
        netcode_server_process_packet( w->servers[0], &p.address, data, 60 );
        netcode_client_process_packet( w->clients[0], &w->server_addresses[0], data, 60 );
        if ( type > 6 || type == NETCODE_PACKET_CHALLENGE || type == NETCODE_PACKET_DENIED ||
             type == NETCODE_PACKET_RESPONSE || length < 1 || length > 8 )
            CHECK_EQ( ledger.opens + ledger.token_opens, opens );
    }
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 2 );
}

static int threat_prefix_reason( const struct threat_t * t, int prefix )
{
    static const int directions[2] = { 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 };
    int type = prefix & 15, length = prefix >> 4;
    if ( type > 6 )
        return NETCODE_DROP_UNKNOWN_PACKET_TYPE;
    if ( !( directions[t->to_client] >> type & 1 ) )
        return NETCODE_DROP_WRONG_DIRECTION;
    return length < 1 || length > 8 ? NETCODE_DROP_BAD_SEQUENCE_LENGTH : NETCODE_DROP_NONE;
}

TEST( threat_6_every_prefix_byte_with_a_size_that_suits_it )
{
    static const int sizes[16] = { 40, 0, 308, 308, 8, 40, 0, 40, 40, 40, 40, 40, 40, 40, 40, 40 };
    int number, prefix;
    for ( number = 0; number < THREAT_CASES; number++ ) {
        struct threat_t t;
        uint8_t data[400];
        int64_t opens = 0;
        threat_open( &t, number );
        for ( prefix = 1; prefix < 256; prefix++ ) {
            int expected = threat_prefix_reason( &t, prefix ), reason;
            int bytes = 1 + ( prefix >> 4 ) + sizes[prefix & 15] + 16;
            memset( data, 0x41, sizeof( data ) );
            data[0] = (uint8_t) prefix;
            opens = ledger.opens + ledger.token_opens;
            reason = threat_hand( &t, data, bytes );
            CHECK_NE( reason, NETCODE_DROP_NONE );
            if ( expected == NETCODE_DROP_NONE )
                continue;
            if ( bytes < 18 ) /* a body of none behind a sequence of none */
                expected = NETCODE_DROP_TOO_SMALL;
            threat_check( &t, reason, expected, "prefix", prefix );
            CHECK_EQ( ledger.opens + ledger.token_opens, opens );
        }
        world_close( t.w );
    }
}

/* 7: the same ciphertext under another prefix, version or protocol id. */
TEST( hostile_7_another_prefix_over_the_same_ciphertext )
{
    struct puppet_t p;
    struct world_t * w = hostile_world( &p );
    int from, to, slot;
    uint8_t data[64], body[8] = { 0 };
    REQUIRE( puppet_connect( &p ) );
    slot = world_slot( w, 0, 9 );
    for ( from = 0; from < 7; from++ )
        for ( to = 0; to < 7; to++ ) {
            int bytes = wire_seal( data, from, p.sequence, 0, p.r.to_server_key, body,
                                   to == NETCODE_PACKET_DISCONNECT ? 0 : 8 );
            data[0] = (uint8_t) ( ( data[0] & 0xf0 ) | to );
            if ( from == to )
                continue;
            puppet_raw( &p, data, bytes );
            world_step( w );
            CHECK_EQ( server_drain( w, 0, slot ), 0 );
            CHECK_EQ( netcode_server_client_connected( w->servers[0], slot ), 1 );
        }
    puppet_say( &p, 8, 1 );
    world_step( w );
    CHECK_EQ( server_drain( w, 0, slot ), 1 );
}

struct threat_seal_t {
    const char * version;
    uint64_t protocol_id;
    uint8_t sealed_prefix;
    uint8_t prefix; /* the one that it is sent under */
    int body_bytes;
};

static int threat_seal( const struct threat_t * t, const struct threat_seal_t * how, uint8_t * out )
{
    uint8_t nonce[12] = { 0 }, ad[22], *at = nonce + 4;
    put( &at, t->sequence, 8 );
    at = ad;
    put_bytes( &at, how->version, 13 );
    put( &at, how->protocol_id, 8 );
    put( &at, how->sealed_prefix, 1 );
    at = out;
    put( &at, how->prefix, 1 );
    put( &at, t->sequence, 8 );
    LEDGER_REAL( crypto_aead_chacha20poly1305_ietf_encrypt )
    ( at, NULL, t->body, (unsigned long long) how->body_bytes, ad, sizeof( ad ), NULL, nonce, t->key );
    return 9 + how->body_bytes + 16;
}

/* A packet of each type under the prefix of this target's type: 7 of them, one of which is what it says. */
static void threat_matrix_row( int number )
{
    struct threat_t t;
    struct threat_state_t state;
    uint8_t data[400];
    int from, k;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( k = 1; k <= NETCODE_PACKET_TYPES; k++ ) {
        struct threat_seal_t how = { "NETCODE 1.02", WORLD_PROTOCOL, 0, 0, 0 };
        from = ( t.type + k ) % NETCODE_PACKET_TYPES; /* the genuine one comes last: it moves the state */
        how.sealed_prefix = (uint8_t) ( 8 << 4 | from );
        how.prefix = (uint8_t) ( 8 << 4 | t.type );
        how.body_bytes = t.body_bytes;
        threat_check( &t, threat_hand( &t, data, threat_seal( &t, &how, data ) ),
                      from == t.type ? NETCODE_DROP_NONE : NETCODE_DROP_AUTHENTICATION_FAILED, "sealed as type", from );
        CHECK_EQ( threat_same( &t, &state ), from != t.type );
    }
    threat_forget( &state );
    world_close( t.w );
}

/* A genuine request in which nothing is changed but the version or the protocol id, and packets under them. */
static void threat_foreign( int number )
{
    static const char * const versions[] = { "NETCODE 1.01", "NETCODE 1.03", "netcode 1.02", "NETCODE 2.02" };
    struct threat_t t;
    struct threat_state_t state;
    uint8_t data[REQUEST_BYTES];
    int i;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( i = 0; i < 64 + 4; i++ ) {
        struct threat_seal_t how = { "NETCODE 1.02", WORLD_PROTOCOL, 0, 0, 0 };
        how.sealed_prefix = how.prefix = (uint8_t) ( 8 << 4 | t.type );
        how.body_bytes = t.body_bytes;
        if ( i < 64 )
            how.protocol_id ^= (uint64_t) 1 << i;
        else
            how.version = versions[i - 64];
        if ( t.type == NETCODE_PACKET_REQUEST ) {
            uint8_t * at = memcpy( data, t.data, REQUEST_BYTES );
            at++;
            put_bytes( &at, how.version, 13 );
            put( &at, how.protocol_id, 8 );
            CHECK_NE( threat_hand( &t, data, REQUEST_BYTES ), NETCODE_DROP_NONE );
        } else
            threat_check( &t, threat_hand( &t, data, threat_seal( &t, &how, data ) ),
                          NETCODE_DROP_AUTHENTICATION_FAILED, "foreign seal", i );
        CHECK( threat_same( &t, &state ) );
    }
    threat_close( &t, &state );
}

TEST( threat_7_the_matrix_of_prefixes_and_what_was_sealed_under_them )
{
    int number;
    for ( number = 0; number < THREAT_CASES; number++ ) {
        if ( threat_cases[number].type != NETCODE_PACKET_REQUEST )
            threat_matrix_row( number );
        threat_foreign( number );
    }
}

/* ---- 9: reflected ---- */

/* 9: a packet sent back to its sender. */
TEST( hostile_9_reflected_packets )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    int i, count;
    REQUIRE( world_join( w, 0, 1 ) );
    client_send( w, 0, 30, 1 );
    server_send( w, 0, 0, 30, 1 );
    world_run( w, 0.1 );
    server_drain( w, 0, 0 );
    client_drain( w, 0 );
    count = w->records.count;
    for ( i = 0; i < count; i++ ) {
        struct world_datagram_t d = w->records.items[i];
        world_inject( w, &d.to, &d.from, d.data, d.bytes );
        world_step( w );
    }
    CHECK_EQ( server_drain( w, 0, 0 ), 0 );
    CHECK_EQ( client_drain( w, 0 ), 0 );
    CHECK_GE( all_client_drops( w, 0 ) + all_server_drops( w ), count ); /* not one was accepted as genuine */
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
}

/* 9: a side's own packets come back to it, with numbers that its window would take: they do not open. */
TEST( threat_9_reflected_packets_with_fitting_numbers )
{
    int number;
    for ( number = 0; number < THREAT_CASES; number++ ) {
        struct threat_t t;
        struct threat_state_t state;
        uint8_t data[400];
        threat_open( &t, number );
        if ( t.type == NETCODE_PACKET_REQUEST ) {
            world_close( t.w );
            continue;
        }
        state = threat_remember( &t );
        t.key = t.to_client ? t.r.to_server_key : t.r.to_client_key;
        threat_check( &t,
                      threat_hand( &t, data, wire_seal( data, t.type, t.sequence, 0, t.key, t.body, t.body_bytes ) ),
                      NETCODE_DROP_AUTHENTICATION_FAILED, "reflected,", t.body_bytes );
        CHECK( threat_same( &t, &state ) );
        threat_close( &t, &state );
    }
}

/* ---- 10 and 11: bodies of every size, and numbers in them ---- */

/* 10: bodies of every wrong size behind a valid tag. */
TEST( hostile_10_wrong_body_sizes )
{
    static const int types[] = { NETCODE_PACKET_RESPONSE, NETCODE_PACKET_KEEP_ALIVE, NETCODE_PACKET_PAYLOAD,
                                 NETCODE_PACKET_DISCONNECT };
    struct puppet_t p;
    struct world_t * w = hostile_world( &p );
    uint8_t data[2048], body[1300] = { 0 };
    int i, size, slot;
    REQUIRE( puppet_connect( &p ) );
    slot = world_slot( w, 0, 9 );
    for ( i = 0; i < 4; i++ )
        for ( size = 0; size <= 1300; size++ ) {
            int64_t drops = all_server_drops( w );
            int bytes;
            if ( types[i] == NETCODE_PACKET_PAYLOAD && size >= 1 && size <= 1200 )
                continue;
            if ( ( types[i] == NETCODE_PACKET_KEEP_ALIVE && size == 8 ) ||
                 ( types[i] == NETCODE_PACKET_DISCONNECT && size == 0 ) )
                continue;
            bytes = wire_seal( data, types[i], p.sequence++, 0, p.r.to_server_key, body, size );
            netcode_server_process_packet( w->servers[0], &p.address, data, bytes );
            CHECK_EQ( all_server_drops( w ), drops + 1 );
        }
    CHECK_EQ( netcode_server_client_connected( w->servers[0], slot ), 1 );
    CHECK_EQ( server_drain( w, 0, slot ), 0 );
}

/* 10: every size behind a valid tag, for every type on both sides: one size (a payload: 1200) is right. */
static void threat_sizes( int number )
{
    struct threat_t t;
    struct threat_state_t state;
    uint8_t data[2048];
    int size;
    threat_open( &t, number );
    state = threat_remember( &t );
    for ( size = 0; size <= 1300 && test_state.failures < 5; size++ ) {
        int bytes = wire_seal( data, t.type, t.sequence, 0, t.key, t.body, size );
        if ( t.type == NETCODE_PACKET_PAYLOAD ? size >= 1 && size <= 1200 : size == t.body_bytes )
            continue;
        threat_check( &t, threat_hand_copy( &t, data, bytes ),
                      bytes > DATAGRAM_BYTES ? NETCODE_DROP_OVERSIZED_DATAGRAM : NETCODE_DROP_WRONG_BODY_SIZE, "size",
                      size );
        CHECK( threat_same( &t, &state ) );
    }
    threat_close( &t, &state );
}

TEST( threat_10_every_size_behind_a_valid_tag )
{
    int number;
    for ( number = 0; number < THREAT_CASES; number++ )
        if ( threat_cases[number].type != NETCODE_PACKET_REQUEST )
            threat_sizes( number );
}

/* 11: once connected, any authentic keep-alive refreshes the timeout, and its numbers are not used. */
TEST( hostile_11_keep_alives_with_odd_numbers )
{
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r = world_connect( w, 0, 1 );
    uint8_t body[8];
    uint64_t sequence;
    int i;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    sequence = newest_to_client( w, &r ) + 5;
    w->cut_from = w->server_addresses[0];
    memset( body, 0xff, 8 );
    for ( i = 0; i < 20; i++ ) {
        send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, sequence++, body, 8 );
        world_run( w, 0.5 );
    }
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
    CHECK_EQ( netcode_client_index( w->clients[0] ), 0 );
    CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 4 );
}

/* 11: connected, whatever the numbers say: the silence ends, and the numbers stay what they were. */
TEST( threat_11_the_numbers_of_later_keep_alives_are_not_used )
{
    static const uint32_t numbers[] = { 0, 1, 3, 4, 5, 255, 256, 0x7fffffffu, 0x80000000u, UINT32_MAX };
    struct world_t * w = world_open( CLEAN, 1, 4, 1 );
    struct recipe_t r = world_connect( w, 0, 1 );
    uint64_t sequence;
    int i, k;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
    sequence = newest_to_client( w, &r ) + 5;
    w->cut_from = w->server_addresses[0];
    for ( i = 0; i < 10; i++ )
        for ( k = 0; k < 10; k++ ) {
            uint8_t body[8], *at = body;
            put( &at, numbers[i], 4 );
            put( &at, numbers[k], 4 );
            send_to_client( w, &r, NETCODE_PACKET_KEEP_ALIVE, sequence++, body, 8 );
            world_run( w, 0.5 ); /* 50 s in all: without any of ten in a row it would time out */
            REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTED );
            CHECK_EQ( netcode_client_index( w->clients[0] ), 0 );
            CHECK_EQ( netcode_client_max_clients( w->clients[0] ), 4 );
        }
    world_run( w, 5.5 );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
}
