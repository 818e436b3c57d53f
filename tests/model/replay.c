/*  Replays on the library what Spin's runs of handshake.pml report (lines that begin with @), step by step: packets by hand
    from any address, written from the standard, and after each step what the server answered, which clients are
    connected, under which id and with which user data.

        replay CLIENTS TOKENS SERVERS SLOTS ZERO follows FILE...   each step comes out as the model says
        replay CLIENTS TOKENS SERVERS SLOTS ZERO refuses FILE...   attacks on broken models: the server refuses a step of each

    ZERO is 1 where sequences start at zero. run.sh builds it, makes the files and says which are which. */

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include "tests/test.h"

#include "tests/ledger.h"
#include "tests/world.h"

enum { TOKENS = 3, ADDRESSES = 3, NUMBERS = 4, RESPONSE_BODY = 308 };

/* What came of a step. */
enum { NOTHING, CHALLENGED, DENIED, CONNECTED };

static const char * const outcomes[] = { "nothing", "a challenge", "a denial", "a session" };

static struct {
    int clients, tokens, servers, slots, zero, refuses;
    int file_count;
    char ** files;
} options;

/* The trace that is replayed. */
static struct {
    struct world_t * w;
    struct puppet_t puppets[TOKENS]; /* by token; each may send from every address */
    int is_minted[TOKENS];
    struct netcode_address_t addresses[ADDRESSES];
    uint8_t challenges[NUMBERS][RESPONSE_BODY];
    uint8_t replies[TOKENS][NUMBERS][512]; /* what honest clients sent, to be delivered any number of times */
    int reply_bytes[TOKENS][NUMBERS];
    const char * file;
    int line;
    int differs; /* the server refused what the model did */
} now;

static struct {
    int64_t traces, steps, asks, answers, refusals, sessions, others, refused_attacks;
} totals;

/* ---- the world of a trace ---- */

static int id_of( int token )
{
    return 1 + ( token < options.clients ? token : options.clients );
}

/* Where sequences start at zero, the last token is made after the first restart. */
static struct puppet_t * token_at( int token )
{
    struct puppet_t * p = &now.puppets[token];
    if ( now.is_minted[token] )
        return p;
    now.is_minted[token] = 1;
    puppet_make( p, now.w, 0, (uint64_t) id_of( token ), "10.2.0.1:6000" );
    p->r.timeout = -1; /* slots end when the trace says so */
    p->r.expire = p->r.create + 30 + (uint64_t) token;
    p->r.user_data[0] = (uint8_t) token;
    puppet_mint( p );
    return p;
}

static void trace_begin( const char * file )
{
    int i;
    memset( &now, 0, sizeof( now ) );
    now.file = file;
    now.w = world_new( CLEAN );
    now.w->server_config.sequence_base = options.zero ? NETCODE_SEQUENCE_BASE_ZERO : NETCODE_SEQUENCE_BASE_RANDOM;
    for ( i = 0; i < options.servers; i++ )
        world_add_server( now.w, options.slots );
    world_step( now.w );
    for ( i = 0; i < ADDRESSES; i++ ) {
        char text[32];
        snprintf( text, sizeof( text ), "10.2.0.%d:6000", i + 1 );
        now.addresses[i] = address_of( text );
    }
    for ( i = 0; i < options.tokens - options.zero; i++ )
        token_at( i );
}

static int slot_of( int server, int token, int address )
{
    struct netcode_server_t * s = now.w->servers[server];
    int i;
    for ( i = 0; i < options.slots; i++ )
        if ( netcode_server_client_connected( s, i ) && netcode_server_client_id( s, i ) == (uint64_t) id_of( token ) &&
             same_address( netcode_server_client_address( s, i ), &now.addresses[address] ) )
            return i;
    return -1;
}

/* ---- packets ---- */

/* Hands a packet to a server and reads what it answered to that address. */
static int outcome_of( int server, int token, int address, uint8_t * data, int bytes, uint8_t * body )
{
    struct puppet_t * p = token_at( token );
    struct netcode_server_t * s = now.w->servers[server];
    int since = now.w->records.count, before = netcode_server_num_connected_clients( s ), type = -1, i;
    uint64_t sequence;
    netcode_server_process_packet( s, &now.addresses[address], data, bytes );
    if ( netcode_server_num_connected_clients( s ) > before )
        return CONNECTED;
    for ( i = since; i < now.w->records.count; i++ ) {
        const struct world_datagram_t * d = &now.w->records.items[i];
        CHECK( same_address( &d->to, &now.addresses[address] ) );
        if ( wire_open( d->data, d->bytes, p->r.to_client_key, &type, &sequence, body ) >= 0 )
            return type == NETCODE_PACKET_CHALLENGE ? CHALLENGED : type == NETCODE_PACKET_DENIED ? DENIED : NOTHING;
    }
    return NOTHING;
}

static void compare( int came, int expected )
{
    if ( came == expected )
        return;
    if ( options.refuses && came == NOTHING && expected != NOTHING ) {
        now.differs = 1;
        return;
    }
    test_fail( __FILE__, __LINE__, "%s, step %d: the model expects %s, and the server answers with %s", now.file,
               now.line, outcomes[expected], outcomes[came] );
}

/* ---- steps ---- */

/* `b`: the challenge's number in the model, or -1. */
static void step_ask( int server, int token, int address, int expected, int b )
{
    uint8_t body[2048];
    struct puppet_t * p = token_at( token );
    int came = outcome_of( server, token, address, p->request, REQUEST_BYTES, body ), tries;
    totals.asks++;
    for ( tries = 0; tries < 3 && came == NOTHING && expected != NOTHING; tries++ ) { /* answers are rationed */
        world_run( now.w, 0.1 );
        came = outcome_of( server, token, address, p->request, REQUEST_BYTES, body );
    }
    compare( came, expected );
    if ( came == CHALLENGED && b >= 0 )
        memcpy( now.challenges[b], body, RESPONSE_BODY );
}

/* The connected client is the token's player, with its user data; and confirms. */
static void greet( int server, int token, int address )
{
    uint8_t out[64], body[8] = { 0 };
    struct puppet_t * p = token_at( token );
    struct netcode_server_t * s = now.w->servers[server];
    int slot = slot_of( server, token, address ), bytes;
    totals.sessions++;
    REQUIRE( slot >= 0 );
    CHECK( memcmp( netcode_server_client_user_data( s, slot ), p->r.user_data, NETCODE_USER_DATA_BYTES ) == 0 );
    bytes = wire_seal( out, NETCODE_PACKET_KEEP_ALIVE, p->sequence++, 0, p->r.to_server_key, body, sizeof( body ) );
    netcode_server_process_packet( s, &now.addresses[address], out, bytes );
}

static int seal_response( int token, int b, uint8_t * out )
{
    struct puppet_t * p = token_at( token );
    return wire_seal( out, NETCODE_PACKET_RESPONSE, p->sequence++, 0, p->r.to_server_key, now.challenges[b],
                      RESPONSE_BODY );
}

/* An honest client answers the challenge that it was handed: from now on its response is known. */
static void step_reply( int client, int b )
{
    now.reply_bytes[client][b] = seal_response( client, b, now.replies[client][b] );
}

/* The adversary seals with his own tokens, and delivers what others sent. */
static void step_answer( int server, int token, int address, int b, int expected )
{
    uint8_t out[512], body[2048];
    int bytes = token < options.clients ? now.reply_bytes[token][b] : seal_response( token, b, out ), came;
    REQUIRE( bytes > 0 );
    if ( token < options.clients )
        memcpy( out, now.replies[token][b], (size_t) bytes );
    came = outcome_of( server, token, address, out, bytes, body );
    totals.answers++;
    compare( came == NOTHING && expected == DENIED ? DENIED : came, expected ); /* denials are rationed */
    if ( came == CONNECTED )
        greet( server, token, address );
}

/* An entry ends, as time would end it: the server has no call for this. */
static void step_end( int server, int token, int address )
{
    nc_handshakes_t * handshakes = &now.w->servers[server]->handshakes;
    uint32_t index = handshakes->in_progress.head, next;
    for ( ; index != UINT32_MAX; index = next ) {
        const nc_pending_t * pending = &handshakes->pending[index];
        next = handshakes->links[index].next;
        if ( same_address( &pending->address, &now.addresses[address] ) &&
             memcmp( pending->client_to_server_key, token_at( token )->r.to_server_key, 32 ) == 0 )
            nc_handshake_remove( handshakes, index );
    }
}

static void step_leave( int server, int token, int address )
{
    int slot = slot_of( server, token, address );
    REQUIRE( slot >= 0 );
    netcode_server_disconnect_client( now.w->servers[server], slot );
}

/* With sequences from zero a server decides by their expiry which tokens are older than its start: it begins later. */
static void step_start( int server, int is_crash )
{
    if ( options.zero )
        world_run( now.w, 5.0 );
    if ( is_crash ) {
        world_destroy_server( now.w, server );
        world_make_server( now.w, server );
    }
    world_restart( now.w, server, options.slots );
    REQUIRE( netcode_server_running( now.w->servers[server] ) );
    token_at( options.tokens - 1 );
}

/* ---- lines ---- */

/* "refused", "denied", "connected" or a challenge's number; returns what is expected, and the number. */
static int expected_of( const char * word, int * number )
{
    *number = -1;
    if ( strcmp( word, "refused" ) == 0 )
        return NOTHING;
    if ( strcmp( word, "denied" ) == 0 )
        return DENIED;
    if ( strcmp( word, "connected" ) == 0 )
        return CONNECTED;
    *number = atoi( word );
    REQUIRE( *number < NUMBERS );
    return CHALLENGED;
}

static void step( const char * line )
{
    char what[16] = "", word[16] = "";
    int s = 0, t = 0, a = 0, b = 0, number, expected;
    REQUIRE( sscanf( line, "@ %15s %d %d %d", what, &s, &t, &a ) >= 2 );
    if ( strcmp( what, "ask" ) == 0 && sscanf( line, "@ ask %*d %*d %*d %15s", word ) == 1 ) {
        if ( strcmp( word, "lost" ) == 0 ) /* the model has no room for another challenge */
            return;
        expected = expected_of( word, &number );
        totals.refusals += expected == NOTHING;
        step_ask( s, t, a, expected, number );
    } else if ( strcmp( what, "answer" ) == 0 && sscanf( line, "@ answer %*d %*d %*d %d %15s", &b, word ) == 2 ) {
        REQUIRE( b >= 0 && b < NUMBERS );
        expected = expected_of( word, &number );
        totals.refusals += expected == NOTHING;
        step_answer( s, t, a, b, expected );
    } else {
        totals.others++;
        if ( strcmp( what, "reply" ) == 0 )
            step_reply( s, t );
        else if ( strcmp( what, "end" ) == 0 )
            step_end( s, t, a );
        else if ( strcmp( what, "leave" ) == 0 )
            step_leave( s, t, a );
        else if ( strcmp( what, "restart" ) == 0 || strcmp( what, "crash" ) == 0 )
            step_start( s, what[0] == 'c' );
        else
            test_fail( __FILE__, __LINE__, "%s: no step is called %s", now.file, what );
    }
    totals.steps++;
    world_step( now.w );
}

static void replay( const char * name )
{
    char line[256];
    FILE * file = fopen( name, "r" );
    REQUIRE( file != NULL );
    trace_begin( name );
    while ( !now.differs && !test_state.failures && fgets( line, sizeof( line ), file ) ) {
        const char * at = strchr( line, '@' );
        now.line += at != NULL;
        if ( at )
            step( at );
    }
    fclose( file );
    totals.traces++;
    totals.refused_attacks += now.differs;
    if ( options.refuses && !now.differs )
        test_fail( __FILE__, __LINE__, "%s: the server lets the attack through", name );
    CHECK( now.line > 0 );
    world_close_all();
}

TEST( traces )
{
    int i;
    for ( i = 0; i < options.file_count && !test_state.failures; i++ )
        replay( options.files[i] );
}

static void test_begin( uint64_t seed )
{
    world_begin_test( seed );
}

static void test_end( void )
{
    world_close_all();
}

int main( int count, char ** arguments )
{
    int result;
    if ( count < 8 ) {
        printf( "usage: %s CLIENTS TOKENS SERVERS SLOTS ZERO follows|refuses FILE...\n", arguments[0] );
        return 2;
    }
    options.clients = atoi( arguments[1] );
    options.tokens = atoi( arguments[2] );
    options.servers = atoi( arguments[3] );
    options.slots = atoi( arguments[4] );
    options.zero = atoi( arguments[5] );
    options.refuses = strcmp( arguments[6], "refuses" ) == 0;
    options.files = arguments + 7;
    options.file_count = count - 7;
    randombytes_set_implementation( &ledger_random_source );
    if ( netcode_init() != NETCODE_OK )
        return 2;
    result = test_main( 1, arguments );
    printf( "%" PRId64 " traces, %" PRId64 " steps: %" PRId64 " requests and %" PRId64 " responses, %" PRId64
            " of them refused, %" PRId64 " sessions, %" PRId64 " ends and restarts\n",
            totals.traces, totals.steps, totals.asks, totals.answers, totals.refusals, totals.sessions, totals.others );
    netcode_term();
    return result;
}
