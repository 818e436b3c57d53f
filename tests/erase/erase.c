/*  Row 48 of the threats: no key is left in memory that the library gave back or keeps, nor on the stack below its caller.
    Real clients and servers run through every way in which something secret ends; then each block that the allocator
    ever handed out, whether it was given back or not, is searched for any 8 bytes in a row of any secret that has ended,
    at every place; and the dead stack for any 16 in a row of any secret at all (8 are what a compiler may have left in a
    register, which the next function puts there). The allocator scrubs nothing. That a secret is found while it is in use is
    checked too, so that a search which finds nothing has looked for the right thing.

    Built without the nonce ledger's --wrap, whose frames would hold keys, and with the linker's -z now, since lazy
    binding saves registers. `make erase` (run.sh) does so; run.sh --plants takes one wipe after another out of a copy of
    netcode.h. */

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "netcode.h"

#include "tests/test.h"

#include "tests/ledger.h"
#include "tests/world.h"

enum { NEEDLES = 64, WINDOW = 8, WINDOWS = 1 << 14, STACK_BYTES = 96 * 1024, TOKEN_KEYS_AT = 1093 + 7 };

/* Where may it stand? On the stack below the caller nowhere, at no time. */
enum { SOMEWHERE, HELD /* in a block, at least once */, GONE /* in none */ };

struct needle_t {
    char name[48];
    uint8_t bytes[NETCODE_USER_DATA_BYTES];
    int count;
    int state;
    int found;         /* in blocks */
    int found_stacked; /* on the stack */
};

static struct needle_t needles[NEEDLES];
static int needle_count;

/* Every 8 bytes in a row of every needle. */
static struct {
    uint64_t value;
    int needle; /* 1 + its number; 0: free */
} windows[WINDOWS];

static struct {
    int64_t looks, blocks, block_bytes, stack_bytes, windows;
} totals;

static uint8_t stack_copy[STACK_BYTES];

/* ---- needles ---- */

static uint64_t window_at( const uint8_t * p )
{
    uint64_t value;
    memcpy( &value, p, sizeof( value ) );
    return value;
}

static uint32_t window_place( uint64_t value )
{
    return (uint32_t) ( ( value * 0x9e3779b97f4a7c15u ) >> 50 );
}

static void window_insert( uint64_t value, int needle )
{
    uint32_t place = window_place( value );
    while ( windows[place].needle )
        place = ( place + 1 ) % WINDOWS;
    windows[place].value = value;
    windows[place].needle = needle + 1;
    totals.windows++;
}

static void needle_add( const char * owner, const char * what, const void * bytes, int count )
{
    struct needle_t * n = &needles[needle_count];
    int at;
    REQUIRE( needle_count < NEEDLES && count <= (int) sizeof( n->bytes ) );
    memset( n, 0, sizeof( *n ) );
    snprintf( n->name, sizeof( n->name ), "%s %s", owner, what );
    memcpy( n->bytes, bytes, (size_t) count );
    n->count = count;
    for ( at = 0; at + WINDOW <= count; at++ )
        window_insert( window_at( n->bytes + at ), needle_count );
    needle_count++;
}

/* Says of every needle whose name begins so where it may be. */
static void needles_are( int state, const char * prefix )
{
    int i, matched = 0;
    for ( i = 0; i < needle_count; i++ )
        if ( strncmp( needles[i].name, prefix, strlen( prefix ) ) == 0 ) {
            needles[i].state = state;
            matched++;
        }
    if ( !matched )
        test_fail( __FILE__, __LINE__, "no needle begins with %s", prefix );
}

/* ---- the search ---- */

static int window_find( uint64_t value )
{
    uint32_t place = window_place( value );
    for ( ; windows[place].needle; place = ( place + 1 ) % WINDOWS )
        if ( windows[place].value == value )
            return windows[place].needle;
    return 0;
}

static void search_block( const uint8_t * data, size_t bytes )
{
    size_t at;
    int found;
    for ( at = 0; at + WINDOW <= bytes; at++ ) {
        found = window_find( window_at( data + at ) );
        if ( found )
            needles[found - 1].found++;
    }
}

static void search_stack( void )
{
    size_t at;
    int found;
    for ( at = 0; at + 2 * WINDOW <= STACK_BYTES; at++ ) {
        found = window_find( window_at( stack_copy + at ) );
        if ( found && window_find( window_at( stack_copy + at + WINDOW ) ) == found )
            needles[found - 1].found_stacked++;
    }
}

/*  The stack below the caller. Reading it is outside of what C promises; the pointer is read back, so that no compiler
    sees what it leads to. The needles' own copies lie elsewhere. */
static const volatile uint8_t * volatile stack_bottom;

__attribute__( ( noinline ) ) static void stack_visit( int clear )
{
    volatile uint8_t area[STACK_BYTES];
    const volatile uint8_t * p;
    int at;
    stack_bottom = area;
    p = stack_bottom;
    stack_bottom = NULL;
    for ( at = 0; at < STACK_BYTES; at++ )
        if ( clear )
            area[at] = 0;
        else
            stack_copy[at] = p[at];
}

static void judge( const char * when, const struct needle_t * n )
{
    if ( n->found_stacked )
        test_fail( __FILE__, __LINE__, "%s: %s is left on the stack (%d times 16 bytes)", when, n->name,
                   n->found_stacked );
    if ( n->state == GONE && n->found )
        test_fail( __FILE__, __LINE__, "%s: %s is left in memory (%d times 8 bytes)", when, n->name, n->found );
    if ( n->state == HELD && !n->found )
        test_fail( __FILE__, __LINE__, "%s: %s is not where it must be; was the right thing looked for?", when,
                   n->name );
}

static void list( int state, const char * title )
{
    int i, count = 0;
    for ( i = 0; i < needle_count; i++ )
        if ( needles[i].state == state )
            printf( "%s%s", count++ ? ", " : title, needles[i].name );
    if ( count )
        printf( "\n" );
}

static void look( const struct world_t * w, const char * when )
{
    const struct allocator_t * a = &w->allocator;
    size_t bytes = 0;
    int i;
    for ( i = 0; i < needle_count; i++ )
        needles[i].found = needles[i].found_stacked = 0;
    search_stack();
    for ( i = 0; i < a->block_count; i++ ) {
        search_block( a->blocks[i].data, a->blocks[i].bytes );
        bytes += a->blocks[i].bytes;
    }
    printf( "  %s: %d blocks (%d given back), %zu bytes, and %d of stack\n", when, a->block_count, a->frees, bytes,
            STACK_BYTES );
    list( GONE, "    gone: " );
    list( HELD, "    held: " );
    for ( i = 0; i < needle_count; i++ )
        judge( when, &needles[i] );
    totals.looks++;
    totals.blocks += a->block_count;
    totals.block_bytes += (int64_t) bytes;
    totals.stack_bytes += STACK_BYTES;
}

/* Between these two only the library is called, so that no other copies are found on the stack. */
#define BEGIN() stack_visit( 1 )
#define LOOK( w, when )   \
    do {                  \
        stack_visit( 0 ); \
        look( w, when );  \
    } while ( 0 )

/* ---- the world ---- */

static struct world_t * searched_world( int slots, int clients )
{
    struct world_t * w = world_new( CLEAN );
    w->allocator.keep = 1;
    w->recording = 0;
    world_add_server( w, slots );
    while ( clients-- > 0 )
        world_add_client( w );
    needle_add( "server's", "private key", world_key, 32 );
    needle_add( "server's", "challenge key", w->servers[0]->handshakes.challenge_key, 32 );
    needle_add( "server's", "hash key", w->servers[0]->handshakes.hash_key,
                sizeof( w->servers[0]->handshakes.hash_key ) );
    needles_are( HELD, "server's" );
    return w;
}

/* A player whose secrets are looked for. */
static struct recipe_t player( struct world_t * w, const char * owner, uint64_t client_id )
{
    struct recipe_t r = recipe_for( w, client_id );
    ledger_random_bytes( r.user_data, sizeof( r.user_data ) );
    needle_add( owner, "client-to-server key", r.to_server_key, 32 );
    needle_add( owner, "server-to-client key", r.to_client_key, 32 );
    needle_add( owner, "user data", r.user_data, NETCODE_USER_DATA_BYTES );
    return r;
}

/* Client 0 with a token of its own, not connected yet. */
static void ann( struct world_t * w )
{
    struct recipe_t r = player( w, "Ann's", 1 );
    mint( &r, w->tokens[0] );
}

static void go( struct world_t * w, int client )
{
    netcode_client_connect( w->clients[client], w->tokens[client] );
}

/* She is connected, and nothing but the library was called. */
static void ann_joins( struct world_t * w )
{
    ann( w );
    BEGIN();
    go( w, 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    world_run( w, 0.3 );
    needles_are( HELD, "Ann's" );
    LOOK( w, "while connected" );
}

static void destroy_both( struct world_t * w )
{
    netcode_client_destroy( w->clients[0] );
    netcode_server_destroy( w->servers[0] );
    w->clients[0] = NULL;
    w->servers[0] = NULL;
}

/* Both sides have forgotten her. */
static void ann_is_gone( struct world_t * w, const char * when )
{
    needles_are( GONE, "Ann's" );
    LOOK( w, when );
}

/* ---- sessions end ---- */

TEST( a_client_leaves )
{
    struct world_t * w = searched_world( 2, 1 );
    ann_joins( w );
    BEGIN();
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.3 );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    ann_is_gone( w, "after she left" );
}

TEST( a_client_is_kicked )
{
    struct world_t * w = searched_world( 2, 1 );
    ann_joins( w );
    BEGIN();
    netcode_server_disconnect_client( w->servers[0], 0 );
    world_run( w, 0.3 );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    ann_is_gone( w, "after she was kicked" );
}

TEST( silence_ends_a_session )
{
    struct world_t * w = searched_world( 2, 1 );
    ann_joins( w );
    w->cut_types = 0x7f;
    BEGIN();
    world_run( w, WORLD_TIMEOUT + 1.0 );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT );
    REQUIRE_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    ann_is_gone( w, "after the timeout of both sides" );
}

TEST( a_client_connects_elsewhere )
{
    struct world_t * w = searched_world( 2, 1 );
    struct recipe_t again;
    ann_joins( w );
    again = player( w, "new", 2 );
    mint( &again, w->tokens[0] );
    BEGIN();
    go( w, 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    needles_are( HELD, "new" );
    ann_is_gone( w, "after she connected with another token" );
}

TEST( a_server_stops )
{
    struct world_t * w = searched_world( 2, 1 );
    ann_joins( w );
    BEGIN();
    netcode_server_stop( w->servers[0] );
    world_run( w, 0.3 );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    needles_are( GONE, "server's challenge" );
    ann_is_gone( w, "after stop" );
}

TEST( a_server_stops_in_the_midst_of_handshakes )
{
    struct world_t * w = searched_world( 2, 1 );
    ann( w );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    BEGIN();
    go( w, 0 );
    world_run( w, 0.3 );
    needles_are( HELD, "Ann's client" );
    needles_are( HELD, "Ann's server" );
    needles_are( GONE, "Ann's user" ); /* they travel in the challenge, sealed */
    LOOK( w, "while the handshake is pending" );
    BEGIN();
    netcode_server_stop( w->servers[0] );
    netcode_client_disconnect( w->clients[0] );
    needles_are( GONE, "server's challenge" );
    ann_is_gone( w, "after stop" );
}

TEST( everything_is_destroyed )
{
    struct world_t * w = searched_world( 2, 1 );
    uint8_t words[64];
    ann_joins( w );
    ledger_random_bytes( words, sizeof( words ) );
    needle_add( "payload", "of both", words, sizeof( words ) );
    BEGIN();
    netcode_client_send_packet( w->clients[0], words, sizeof( words ) );
    netcode_server_send_packet( w->servers[0], 0, words, sizeof( words ) );
    world_run( w, 0.1 );
    needles_are( HELD, "payload" );
    LOOK( w, "while payloads wait to be read" );
    BEGIN();
    destroy_both( w );
    needles_are( GONE, "" );
    ann_is_gone( w, "after both were destroyed, connected" );
}

/* A packet that the caller holds over a start keeps its old pool alive, until it is given back. */
TEST( a_server_starts_with_other_slots )
{
    struct world_t * w = searched_world( 2, 1 );
    uint8_t words[64];
    uint8_t * held;
    int bytes;
    ann_joins( w );
    ledger_random_bytes( words, sizeof( words ) );
    needle_add( "payload", "to the server", words, sizeof( words ) );
    BEGIN();
    netcode_client_send_packet( w->clients[0], words, sizeof( words ) );
    world_run( w, 0.1 );
    held = netcode_server_receive_packet( w->servers[0], 0, &bytes, NULL );
    REQUIRE( held != NULL );
    netcode_server_start( w->servers[0], 5 );
    world_run( w, 0.3 );
    needles_are( HELD, "payload" );
    needles_are( GONE, "server's challenge" ); /* the former one */
    ann_is_gone( w, "after a start with other slots, a packet still held" );
    BEGIN();
    netcode_server_free_packet( w->servers[0], held );
    needles_are( GONE, "payload" );
    ann_is_gone( w, "after the held packet was freed" );
}

/* Another token of the same player takes the slot over. */
TEST( a_session_is_taken_over )
{
    struct world_t * w = world_new( CLEAN );
    struct recipe_t again;
    w->server_config.replace_existing_clients = 1;
    w->allocator.keep = 1;
    w->recording = 0;
    world_add_server( w, 1 );
    world_add_client( w );
    world_add_client( w );
    ann_joins( w );
    again = player( w, "new", 1 );
    again.expire += 10;
    mint( &again, w->tokens[1] );
    BEGIN();
    go( w, 1 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 5.0 ) );
    world_run( w, 0.3 );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_DISCONNECTED );
    needles_are( HELD, "new" );
    ann_is_gone( w, "after the takeover" );
}

/* ---- messages ---- */

enum { LETTER_BYTES = 200, MAP_BYTES = 20000 };

/* The message objects of both ends, on the world's allocator. */
static void letters_make( struct world_t * w, struct netcode_messages_t ** ends )
{
    struct netcode_messages_config_t config;
    int i;
    netcode_default_messages_config( &config );
    config.allocator_context = &w->allocator;
    config.allocate_function = allocator_allocate;
    config.free_function = allocator_free;
    config.max_message_bytes = 65536;
    for ( i = 0; i < 2; i++ ) {
        ends[i] = netcode_messages_create( &config, w->time );
        REQUIRE( ends[i] != NULL );
    }
}

static void letters_run( struct world_t * w, struct netcode_messages_t ** ends, double seconds )
{
    double until = w->time + seconds;
    while ( w->time < until ) {
        world_step( w );
        if ( ends[0] ) {
            netcode_messages_pull_from_client( ends[0], w->clients[0], w->time );
            netcode_messages_push_to_client( ends[0], w->clients[0], w->time );
        }
        if ( ends[1] ) {
            netcode_messages_pull_from_server( ends[1], w->servers[0], 0, w->time );
            netcode_messages_push_to_server( ends[1], w->servers[0], 0, w->time );
        }
    }
}

/* A secret message and one of many fragments whose begin, middle and end are secret; both reliable. */
static void letters_write( struct netcode_messages_t * messages, const char * owner )
{
    static uint8_t map[MAP_BYTES];
    uint8_t letter[LETTER_BYTES];
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.kind = NETCODE_MESSAGE_RELIABLE_ORDERED;
    message.data = letter;
    message.bytes = LETTER_BYTES;
    message.receipt = 1; /* what becomes of it is not read: its place outlives a reset */
    ledger_random_bytes( map, sizeof( map ) );
    ledger_random_bytes( letter, sizeof( letter ) );
    needle_add( owner, "letter", letter, sizeof( letter ) );
    needle_add( owner, "map's begin", map, 64 );
    needle_add( owner, "map's middle", map + 10000, 64 );
    needle_add( owner, "map's end", map + MAP_BYTES - 64, 64 );
    REQUIRE_EQ( netcode_messages_send_message( messages, &message ), NETCODE_OK );
    REQUIRE_EQ( netcode_messages_send( messages, 1, NETCODE_MESSAGE_RELIABLE, map, MAP_BYTES ), NETCODE_OK );
    memset( map, 0, sizeof( map ) );
    sodium_memzero( letter, sizeof( letter ) );
}

/* Client and server go first: payloads that carried the messages lie in their pools. */
TEST( messages_are_destroyed )
{
    struct world_t * w = searched_world( 2, 1 );
    struct netcode_messages_t * ends[2];
    struct netcode_message_t message;
    ann_joins( w );
    letters_make( w, ends );
    letters_run( w, ends, 0.2 ); /* both know whose messages they carry */
    letters_write( ends[0], "client's" );
    letters_write( ends[1], "server's own" );
    BEGIN();
    letters_run( w, ends, 0.5 );
    needles_are( HELD, "client's" ); /* at the server, where it is not read */
    needles_are( HELD, "server's own" );
    LOOK( w, "while messages wait to be read" );
    BEGIN();
    REQUIRE_EQ( netcode_messages_receive( ends[0], &message ), 1 );
    destroy_both( w );
    netcode_messages_destroy( ends[0] );
    netcode_messages_destroy( ends[1] );
    needles_are( GONE, "" );
    ann_is_gone( w, "after all were destroyed, messages unread" );
}

/* The objects are used for the next session: nothing of the last one is left in them, sent or not, read or not. */
TEST( messages_serve_the_next_session )
{
    struct world_t * w = searched_world( 2, 1 );
    struct netcode_messages_t * ends[2];
    ann_joins( w );
    letters_make( w, ends );
    letters_run( w, ends, 0.2 );
    letters_write( ends[0], "client's" );
    letters_run( w, ends, 0.5 );
    w->cut_types = 1u << NETCODE_PACKET_PAYLOAD;
    letters_write( ends[1], "server's own" );
    BEGIN();
    letters_run( w, ends, 0.3 );
    destroy_both( w );
    needles_are( GONE, "" );
    needles_are( HELD, "client's" );
    needles_are( HELD, "server's own" );
    LOOK( w, "while their objects stand alone" );
    BEGIN();
    netcode_messages_reset( ends[0], w->time );
    netcode_messages_reset( ends[1], w->time );
    needles_are( GONE, "" );
    ann_is_gone( w, "after a reset of both" );
    netcode_messages_destroy( ends[0] );
    netcode_messages_destroy( ends[1] );
}

/* ---- handshakes that come to nothing ---- */

TEST( a_client_is_denied )
{
    struct world_t * w = searched_world( 1, 2 );
    struct recipe_t other;
    ann_joins( w );
    other = player( w, "Bob's", 2 );
    mint( &other, w->tokens[1] );
    BEGIN();
    go( w, 1 );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 5.0 ) );
    needles_are( GONE, "Bob's user" );
    LOOK( w, "after the denial, while the server's entry stands" );
    BEGIN();
    world_run( w, 11.0 );
    needles_are( GONE, "Bob's" );
    LOOK( w, "after the entry ended" );
}

/* No answer to requests, or to responses: client and server give up alone. */
static void gives_up( int lost, int state )
{
    struct world_t * w = searched_world( 1, 1 );
    ann( w );
    w->cut_types = 1u << lost;
    BEGIN();
    go( w, 0 );
    REQUIRE( world_until( w, 0, state, WORLD_TIMEOUT + 5.0 ) );
    world_run( w, 11.0 );
    ann_is_gone( w, netcode_client_state_name( state ) );
}

TEST( a_request_is_not_answered )
{
    gives_up( NETCODE_PACKET_CHALLENGE, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT );
}

TEST( a_response_is_not_answered )
{
    gives_up( NETCODE_PACKET_RESPONSE, NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT );
}

TEST( a_token_expires_on_the_way )
{
    struct world_t * w = searched_world( 1, 1 );
    struct recipe_t r = player( w, "Ann's", 1 );
    r.expire = r.create + 2;
    mint( &r, w->tokens[0] );
    w->cut_types = 1u << NETCODE_PACKET_CHALLENGE;
    BEGIN();
    go( w, 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED, 5.0 ) );
    world_run( w, 11.0 );
    ann_is_gone( w, "after the token expired" );
}

TEST( a_token_is_damaged )
{
    struct world_t * w = searched_world( 1, 1 );
    ann( w );
    w->tokens[0][0] ^= 1;
    BEGIN();
    go( w, 0 );
    REQUIRE_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    ann_is_gone( w, "after connect refused it" );
}

/* ---- requests and responses that are refused: nothing stays, and nothing on the stack ---- */

/* Hands the server one datagram of a puppet, by itself. */
static void hand( struct puppet_t * p, uint8_t * data, int bytes )
{
    netcode_server_process_packet( p->w->servers[p->server], &p->address, data, bytes );
}

static struct puppet_t newcomer( struct world_t * w, const char * owner, uint64_t client_id )
{
    struct puppet_t p;
    w->recording = 1; /* puppets read what was recorded */
    puppet_make( &p, w, 0, client_id, "10.2.0.1:6000" );
    p.r = player( w, owner, client_id );
    puppet_mint( &p );
    return p;
}

TEST( a_request_is_refused_after_it_was_opened )
{
    static const char * const why[] = { "for another server", "malformed", "not authentic" };
    int i;
    for ( i = 0; i < 3; i++ ) {
        struct world_t * w = searched_world( 1, 0 );
        struct puppet_t p = newcomer( w, "newcomer's", 7 );
        if ( i == 0 )
            p.r.private_addresses[0].port++;
        if ( i == 1 )
            p.r.private_addresses[0].port = 0;
        if ( i == 2 )
            p.r.private_key[0] ^= 1;
        puppet_mint( &p );
        BEGIN();
        hand( &p, p.request, REQUEST_BYTES );
        needles_are( GONE, "newcomer's" );
        LOOK( w, why[i] );
        CHECK_EQ( server_stats( w, 0 ).pending, 0 );
        needle_count = 0;
        memset( windows, 0, sizeof( windows ) );
    }
}

/* The id is connected already: its entry is made on the stack, and never gets into the table. */
TEST( a_request_is_refused_for_a_rival )
{
    struct world_t * w = searched_world( 2, 1 );
    struct puppet_t p;
    ann_joins( w );
    p = newcomer( w, "newcomer's", 1 );
    BEGIN();
    hand( &p, p.request, REQUEST_BYTES );
    needles_are( GONE, "newcomer's" );
    LOOK( w, "after the refusal" );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
}

/* A fifth address of one token sends the first one away. */
TEST( an_entry_is_evicted )
{
    struct world_t * w = searched_world( 2, 0 );
    struct puppet_t p = newcomer( w, "newcomer's", 7 ), q[4];
    int i;
    for ( i = 0; i < 4; i++ ) {
        puppet_make( &q[i], w, 0, 7, "10.2.0.1:6001" );
        q[i].r.expire += 1 + (uint64_t) i;
        puppet_mint( &q[i] );
    }
    BEGIN();
    hand( &p, p.request, REQUEST_BYTES );
    needles_are( HELD, "newcomer's client" );
    needles_are( HELD, "newcomer's server" );
    LOOK( w, "while it is pending" );
    BEGIN();
    for ( i = 0; i < 4; i++ )
        hand( &q[i], q[i].request, REQUEST_BYTES );
    needles_are( GONE, "newcomer's" );
    LOOK( w, "after it was evicted by four others of its id" );
    CHECK_EQ( (int64_t) server_stats( w, 0 ).handshakes_evicted, 1 );
}

TEST( an_entry_expires )
{
    struct world_t * w = searched_world( 2, 0 );
    struct puppet_t p = newcomer( w, "newcomer's", 7 );
    BEGIN();
    hand( &p, p.request, REQUEST_BYTES );
    world_run( w, 11.0 );
    needles_are( GONE, "newcomer's" );
    LOOK( w, "after ten seconds" );
    CHECK_EQ( (int64_t) server_stats( w, 0 ).handshakes_expired, 1 );
}

/* The challenge of one token in the response of another: it is opened, and then refused. */
TEST( a_response_is_refused_after_it_was_opened )
{
    struct world_t * w = searched_world( 2, 0 );
    struct puppet_t p = newcomer( w, "newcomer's", 7 ), q;
    uint8_t response[400];
    int bytes;
    puppet_make( &q, w, 0, 8, "10.2.0.2:6000" );
    REQUIRE( puppet_challenged( &q ) );
    REQUIRE( puppet_challenged( &p ) );
    bytes = wire_seal( response, NETCODE_PACKET_RESPONSE, q.sequence++, 0, q.r.to_server_key, p.challenge, 308 );
    needles_are( GONE, "newcomer's user" );
    BEGIN();
    hand( &q, response, bytes );
    LOOK( w, "after the refusal" );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_FOR_ANOTHER ), 1 );
}

/* ---- keys of servers, and tokens that the library mints ---- */

TEST( private_keys_are_replaced )
{
    struct world_t * w = searched_world( 2, 0 );
    struct puppet_t p = newcomer( w, "newcomer's", 7 );
    uint8_t keys[2][NETCODE_KEY_BYTES];
    ledger_random_bytes( keys, sizeof( keys ) );
    needle_add( "second", "private key", keys[0], 32 );
    needle_add( "third", "private key", keys[1], 32 );
    BEGIN();
    hand( &p, p.request, REQUEST_BYTES );
    netcode_server_set_private_keys( w->servers[0], keys[0], 2 );
    needles_are( GONE, "server's private" );
    needles_are( GONE, "newcomer's" ); /* its key is gone */
    needles_are( HELD, "second" );
    needles_are( HELD, "third" );
    LOOK( w, "after the rotation" );
    BEGIN();
    netcode_server_set_private_keys( w->servers[0], keys[0], 1 );
    needles_are( GONE, "third" );
    LOOK( w, "after one was dropped" );
}

TEST( a_server_can_not_be_created )
{
    struct world_t * w = searched_world( 1, 0 );
    const char * names[] = { "not an address" };
    struct netcode_server_config_t config = w->server_config;
    int failing;
    config.callback_context = &w->server_parties[0]; /* its log */
    netcode_server_destroy( w->servers[0] );
    w->servers[0] = NULL;
    needles_are( GONE, "server's" );
    for ( failing = 0; failing < 2; failing++ ) {
        config.public_addresses = names;
        config.num_public_addresses = !failing;
        config.bind_address = failing ? "300.0.0.1" : NULL;
        BEGIN();
        CHECK( netcode_server_create( "127.0.0.1:0", &config, 0.0 ) == NULL );
        LOOK( w, failing ? "after a bad address to bind" : "after a bad public address" );
    }
}

TEST( a_token_is_generated )
{
    struct world_t * w = searched_world( 1, 0 );
    static uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
    const char * names[1] = { "10.0.0.1:40000" };
    ledger_random_bytes( user_data, sizeof( user_data ) );
    BEGIN();
    REQUIRE_EQ( netcode_generate_connect_token( 1, names, names, 30, 5, 1, WORLD_PROTOCOL, world_key, user_data,
                                                token ),
                NETCODE_OK );
    stack_visit( 0 );
    needle_add( "token's", "client-to-server key", token + TOKEN_KEYS_AT + 4, 32 );
    needle_add( "token's", "server-to-client key", token + TOKEN_KEYS_AT + 4 + 32, 32 );
    needle_add( "token's", "user data", user_data, sizeof( user_data ) );
    needles_are( GONE, "token's" );
    look( w, "after netcode_generate_connect_token" );
}

TEST( a_token_is_looked_at )
{
    struct world_t * w = searched_world( 1, 1 );
    struct netcode_connect_token_info_t info;
    ann( w );
    BEGIN();
    REQUIRE_EQ( netcode_connect_token_info( w->tokens[0], &info ), NETCODE_OK );
    ann_is_gone( w, "after netcode_connect_token_info" );
}

/* ---- the runner ---- */

static void test_begin( uint64_t seed )
{
    world_begin_test( seed );
    needle_count = 0;
    memset( windows, 0, sizeof( windows ) );
    printf( "%s\n", test_state.current->name );
}

static void test_end( void )
{
    world_close_all();
}

int main( int count, char ** arguments )
{
    int result;
    randombytes_set_implementation( &ledger_random_source );
    if ( netcode_init() != NETCODE_OK ) {
        printf( "netcode_init failed\n" );
        return 1;
    }
    result = test_main( count, arguments );
    printf( "%" PRId64 " searches for %" PRId64 " pieces of 8 bytes in %" PRId64 " blocks, %" PRId64
            " bytes, and %" PRId64 " bytes of stack\n",
            totals.looks, totals.windows, totals.blocks, totals.block_bytes, totals.stack_bytes );
    netcode_term();
    return result;
}
