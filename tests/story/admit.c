/*  Story: the application decides which client gets a slot (admit_callback), and may do anything while it is asked.
    Deterministic worlds: runner admit.c */

static struct {
    struct world_t * world;
    struct puppet_t * puppet; /* the one that responds */
    int answer[2];            /* to the first question of a response, and to those inside it */
    int calls;
    int depth;
    uint64_t client_id; /* the arguments of the last call */
    uint8_t tag[16];
    uint64_t expire;
    void ( *deed )( struct world_t * w ); /* done by the outermost call */
    uint8_t response[400];                /* as it is on the wire */
    int response_bytes;
} admit;

static int admit_ask( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    struct world_party_t * party = (struct world_party_t *) context;
    int answer = admit.answer[admit.depth > 0];
    CHECK( party->is_server );
    admit.calls++;
    admit.client_id = client_id;
    memcpy( admit.tag, token_tag, sizeof( admit.tag ) );
    admit.expire = expire_timestamp;
    if ( admit.deed && admit.depth == 0 ) {
        admit.depth++;
        admit.deed( party->world );
        admit.depth--;
    }
    return answer;
}

/* One server whose application is asked. */
static struct world_t * admit_world( int slots, int clients )
{
    struct world_t * w = world_new( CLEAN );
    memset( &admit, 0, sizeof( admit ) );
    admit.world = w;
    admit.answer[0] = admit.answer[1] = 1;
    w->server_config.admit_callback = admit_ask;
    world_add_server( w, slots );
    while ( clients-- > 0 )
        world_add_client( w );
    return w;
}

/* The last 16 bytes of the sealed private part, which ends a request. */
static const uint8_t * admit_tag_of( const struct puppet_t * p )
{
    return p->request + REQUEST_BYTES - 16;
}

/* How many sessions this player has. */
static int admit_sessions( struct world_t * w, uint64_t client_id )
{
    int i, count = 0;
    for ( i = 0; i < netcode_server_max_clients( w->servers[0] ); i++ )
        count += netcode_server_client_connected( w->servers[0], i ) &&
                 netcode_server_client_id( w->servers[0], i ) == client_id;
    return count;
}

/* The response of a challenged puppet arrives, and is kept to be brought again. */
static void admit_respond( struct puppet_t * p )
{
    admit.puppet = p;
    admit.response_bytes =
        wire_seal( admit.response, NETCODE_PACKET_RESPONSE, p->sequence++, 0, p->r.to_server_key, p->challenge, 308 );
    puppet_raw( p, admit.response, admit.response_bytes );
    world_step( p->w );
    if ( p->w->servers[0] )
        puppet_poll( p );
}

/* A puppet that was challenged. */
static void admit_puppet( struct puppet_t * p, struct world_t * w, uint64_t client_id, const char * address )
{
    puppet_make( p, w, 0, client_id, address );
    REQUIRE( puppet_challenged( p ) );
}

/* Player 5 responds; while the application is asked, which answers so, that happens. */
static void admit_meanwhile( struct puppet_t * p, struct world_t * w, int answer, void ( *deed )( struct world_t * w ) )
{
    admit_puppet( p, w, 5, "10.2.0.1:6000" );
    admit.answer[0] = answer;
    admit.deed = deed;
    admit_respond( p );
}

static void admit_again( struct world_t * w )
{
    uint8_t copy[400];
    memcpy( copy, admit.response, sizeof( copy ) ); /* it is opened in place */
    netcode_server_process_packet( w->servers[0], &admit.puppet->address, copy, admit.response_bytes );
}

/* ---- yes and no ---- */

TEST( admit_is_told_who_comes )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    puppet_make( &p, w, 0, 0x123456789ABCDEF0u, "10.2.0.1:6000" );
    puppet_expires( &p, p.r.expire + 77 );
    REQUIRE( puppet_challenged( &p ) );
    CHECK_EQ( admit.calls, 0 ); /* a request alone makes no call */
    admit_respond( &p );
    CHECK_EQ( admit.calls, 1 );
    CHECK_EQ( admit.client_id, 0x123456789ABCDEF0u );
    CHECK_MEM( admit.tag, admit_tag_of( &p ), 16 );
    CHECK_EQ( admit.expire, p.r.expire );
    CHECK_GE( p.keep_alives, 1 );
    CHECK_EQ( admit_sessions( w, 0x123456789ABCDEF0u ), 1 );
    admit_respond( &p ); /* the answer was lost: no call for a client that is connected */
    CHECK_EQ( admit.calls, 1 );
    CHECK_EQ( server_stats( w, 0 ).connects, 1 );
}

TEST( admit_lets_clients_in )
{
    struct world_t * w = admit_world( 4, 3 );
    int i;
    for ( i = 0; i < 3; i++ ) {
        REQUIRE( world_join( w, i, (uint64_t) i + 1 ) );
        CHECK_EQ( admit.client_id, i + 1 );
        CHECK_MEM( admit.tag, w->tokens[i] + 13 + 8 + 8 + 8 + 24 + 1024 - 16, 16 );
    }
    CHECK_EQ( admit.calls, 3 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 0 );
}

TEST( admit_denies_a_client )
{
    struct world_t * w = admit_world( 4, 1 );
    admit.answer[0] = 0;
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_DENIED, 2.0 ) );
    CHECK_EQ( admit.calls, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 1 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_stats( w, 0 ).connects, 0 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    CHECK_EQ( w->server_parties[0].log_count, 0 );
    CHECK_EQ( world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_DENIED )->bytes, 25 );
}

/* As after any denial, the token's next server may say yes. */
static int admit_at_the_second( void * context, uint64_t client_id, const uint8_t * token_tag,
                                uint64_t expire_timestamp )
{
    (void) client_id;
    (void) token_tag;
    (void) expire_timestamp;
    return ( (struct world_party_t *) context )->index == 1;
}

TEST( admit_denied_here_and_let_in_at_the_next_server )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.admit_callback = admit_at_the_second;
    world_add_server( w, 4 );
    world_add_server( w, 4 );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[1] ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 1 );
}

/* A denial uses nothing up: the same handshake comes again, and may be let in then. Once. */
TEST( admit_denied_tokens_are_not_used_up )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit.answer[0] = 0;
    admit_respond( &p );
    CHECK_EQ( p.denials, 1 );
    CHECK_EQ( p.keep_alives, 0 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    CHECK_EQ( server_stats( w, 0 ).pending, 1 );
    admit.answer[0] = 1;
    admit_respond( &p );
    CHECK_EQ( admit.calls, 2 );
    CHECK_GE( p.keep_alives, 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    puppet_step( &p );
    CHECK_EQ( admit_sessions( w, 5 ), 0 );
    puppet_ask( &p );
    puppet_step( &p );
    admit_respond( &p );
    CHECK_EQ( admit.calls, 2 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 1 );
}

/* Denials are answers like challenges: 4 at once with these, then 10 a second. */
TEST( admit_denials_are_rationed )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    int i, responses = 30;
    w->step = 0.001;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit.answer[0] = 0;
    for ( i = 0; i < 30; i++ )
        puppet_respond( &p );
    puppet_step( &p );
    CHECK_EQ( p.challenges + p.denials, 4 );
    CHECK_GE( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 3 );
    for ( i = 0; i < 2000; i++ ) {
        if ( i % 10 == 0 ) {
            puppet_respond( &p );
            responses++;
        }
        puppet_step( &p );
    }
    CHECK_GE( p.challenges + p.denials, 4 + 18 );
    CHECK_LE( p.challenges + p.denials, 4 + 20 );
    CHECK_GE( admit.calls, 4 + 18 ); /* the question has a ration of its own */
    CHECK_LE( admit.calls, 4 + 20 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), admit.calls );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADMISSION_PENDING ), responses - admit.calls );
}

/* No answer yet is no denial: the client hears nothing, asks again, and is accepted or denied when the answer is there. */
TEST( drop_ADMISSION_PENDING )
{
    for ( int answer = 0; answer <= 1; answer++ ) {
        struct world_t * w = admit_world( 4, 1 );
        admit.answer[0] = NETCODE_ADMIT_LATER;
        world_connect( w, 0, 1 );
        REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 2.0 ) );
        for ( double end = w->time + 1.0; w->time < end; )
            world_step( w );
        CHECK_GE( admit.calls, 8 );
        CHECK_LE( admit.calls, 11 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADMISSION_PENDING ), admit.calls );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 0 );
        CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
        CHECK( world_last( w, NULL, &w->client_addresses[0], NETCODE_PACKET_DENIED ) == NULL );
        CHECK_EQ( server_stats( w, 0 ).pending, 1 );
        CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
        admit.answer[0] = answer;
        REQUIRE( world_until( w, 0, answer ? NETCODE_CLIENT_STATE_CONNECTED : NETCODE_CLIENT_STATE_CONNECTION_DENIED,
                              0.3 ) );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), !answer );
    }
}

/* An answer that never comes: the client gives up after its token's timeout, and goes on to the token's next server. */
static int admit_never_at_the_first( void * context, uint64_t client_id, const uint8_t * token_tag,
                                     uint64_t expire_timestamp )
{
    (void) client_id;
    (void) token_tag;
    (void) expire_timestamp;
    return ( (struct world_party_t *) context )->index == 1 ? 1 : NETCODE_ADMIT_LATER;
}

TEST( admit_that_never_answers_sends_the_client_on )
{
    struct world_t * w = world_new( CLEAN );
    w->server_config.admit_callback = admit_never_at_the_first;
    world_add_server( w, 4 );
    world_add_server( w, 4 );
    world_add_client( w );
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 15.0 ) );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[1] ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 0 );
}

/* The answer may take as long as the token's timeout, which is longer here than a handshake waits for a response. */
TEST( admit_answers_after_twenty_five_seconds )
{
    struct world_t * w = admit_world( 4, 1 );
    struct recipe_t r = recipe_for( w, 1 );
    r.timeout = 30;
    admit.answer[0] = NETCODE_ADMIT_LATER;
    world_connect_recipe( w, 0, &r );
    for ( double end = w->time + 25.0; w->time < end; )
        world_step( w );
    CHECK_EQ( netcode_client_state( w->clients[0] ), NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE );
    CHECK_EQ( server_stats( w, 0 ).pending, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 0 );
    admit.answer[0] = 1;
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 0.3 ) );
}

/* Copies of the response, as an observer could send them, do not turn "not yet" into a denial. */
TEST( admit_later_is_no_denial_under_copies )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    w->step = 0.001;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit.answer[0] = NETCODE_ADMIT_LATER;
    for ( int i = 0; i < 500; i++ ) {
        puppet_respond( &p );
        puppet_step( &p );
    }
    CHECK_EQ( p.denials, 0 );
    CHECK_GE( admit.calls, 4 + 3 );
    CHECK_LE( admit.calls, 4 + 6 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_ADMISSION_PENDING ), 500 );
    admit.answer[0] = 1;
    admit_respond( &p );
    for ( int i = 0; i < 200 && p.keep_alives == 0; i++ ) {
        puppet_respond( &p );
        puppet_step( &p );
    }
    CHECK_GE( p.keep_alives, 1 );
}

/* No call for a response that proves nothing. */
TEST( admit_is_not_asked_about_forgeries )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p, other;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit_puppet( &other, w, 6, "10.2.0.2:6000" );
    p.challenge[100] ^= 1;
    puppet_answer( &p );
    memcpy( p.challenge, other.challenge, sizeof( p.challenge ) );
    puppet_answer( &p );
    p.r.to_server_key[0] ^= 1;
    puppet_answer( &p );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_AUTHENTIC ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CHALLENGE_NOT_ISSUED ) +
                  server_drops( w, 0, NETCODE_DROP_CHALLENGE_FOR_ANOTHER ),
              1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_AUTHENTICATION_FAILED ), 1 );
    CHECK_EQ( admit.calls, 0 );
}

/*  It is asked last: a client that can not get a slot anyway, because the server is full or the player is in already,
    is no question to the application, which may keep books of the clients that it accepted. */
TEST( admit_is_asked_last )
{
    struct world_t * w = admit_world( 2, 0 );
    struct puppet_t first, same, second, third;
    admit_puppet( &first, w, 5, "10.2.0.1:6000" );
    admit_puppet( &same, w, 5, "10.2.0.2:6000" );
    admit_puppet( &second, w, 6, "10.2.0.3:6000" );
    admit_puppet( &third, w, 7, "10.2.0.4:6000" );
    admit_respond( &first );
    CHECK_EQ( admit.calls, 1 );
    admit_respond( &same );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    CHECK_EQ( admit.calls, 1 );
    admit_respond( &second );
    CHECK_EQ( admit.calls, 2 );
    admit_respond( &third );
    CHECK_EQ( third.denials, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SERVER_FULL ), 1 );
    CHECK_EQ( admit.calls, 2 );
}

/* ---- what the application may do while it is asked ---- */

static void deed_disconnect_all( struct world_t * w )
{
    netcode_server_disconnect_all_clients( w->servers[0] );
}

TEST( admit_while_others_are_disconnected )
{
    struct world_t * w = admit_world( 2, 0 );
    struct puppet_t first, second;
    admit_puppet( &first, w, 5, "10.2.0.1:6000" );
    admit_puppet( &second, w, 6, "10.2.0.2:6000" );
    admit_respond( &first );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
    admit.deed = deed_disconnect_all;
    admit_respond( &second );
    CHECK_EQ( admit_sessions( w, 5 ), 0 );
    CHECK_EQ( admit_sessions( w, 6 ), 1 );
    check_counts( w );
    CHECK_EQ( server_stats( w, 0 ).connects, 2 );
}

static void deed_loopback_same_id( struct world_t * w )
{
    netcode_server_connect_loopback_client( w->servers[0], 1, admit.client_id, NULL );
}

/* The player sits at the server's own machine by now: one id, one session, and its token is good for later. */
TEST( admit_while_the_same_player_comes_in_by_loopback )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    admit_meanwhile( &p, w, 1, deed_loopback_same_id );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
    CHECK_EQ( netcode_server_client_loopback( w->servers[0], 1 ), 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    check_counts( w );
    admit.deed = NULL;
    netcode_server_disconnect_loopback_client( w->servers[0], 1 );
    admit_respond( &p );
    CHECK_GE( p.keep_alives, 1 );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
}

static void deed_loopback_last_slot( struct world_t * w )
{
    netcode_server_connect_loopback_client( w->servers[0], 0, 99, NULL );
}

TEST( admit_while_the_last_slot_goes )
{
    struct world_t * w = admit_world( 1, 0 );
    struct puppet_t p;
    admit_meanwhile( &p, w, 1, deed_loopback_last_slot );
    CHECK_EQ( admit_sessions( w, 5 ), 0 );
    CHECK_EQ( p.denials, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_SERVER_FULL ), 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
    check_counts( w );
}

static void deed_stop( struct world_t * w )
{
    netcode_server_stop( w->servers[0] );
}

static void deed_restart( struct world_t * w )
{
    world_restart( w, 0, 3 );
}

static void deed_destroy( struct world_t * w )
{
    netcode_server_destroy( w->servers[0] );
    w->servers[0] = NULL;
}

/* All that connected are disconnected again: the callbacks came in pairs. */
static void admit_expect_pairs( struct world_t * w )
{
    int i, balance = 0;
    for ( i = 0; i < w->server_parties[0].log_count; i++ )
        balance += w->server_parties[0].log[i][1] ? 1 : -1;
    CHECK_EQ( balance, 0 );
}

TEST( admit_while_the_server_stops )
{
    int answer;
    for ( answer = 0; answer < 2; answer++ ) {
        struct world_t * w = admit_world( 4, 1 );
        struct puppet_t p;
        admit_meanwhile( &p, w, answer, deed_stop );
        CHECK_EQ( admit.calls, 1 );
        CHECK_EQ( netcode_server_running( w->servers[0] ), 0 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        admit_expect_pairs( w );
        admit.deed = NULL;
        admit.answer[0] = 1;
        netcode_server_start( w->servers[0], 4 );
        REQUIRE( world_join( w, 0, 6 ) );
    }
}

TEST( admit_while_the_server_starts_again )
{
    int answer;
    for ( answer = 0; answer < 2; answer++ ) {
        struct world_t * w = admit_world( 4, 1 );
        struct puppet_t p;
        admit_meanwhile( &p, w, answer, deed_restart );
        CHECK_EQ( netcode_server_running( w->servers[0] ), 1 );
        CHECK_EQ( netcode_server_max_clients( w->servers[0] ), 3 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        admit_expect_pairs( w );
        admit.deed = NULL;
        admit.answer[0] = 1;
        admit_respond( &p ); /* the server does not know this handshake any more */
        CHECK_EQ( admit_sessions( w, 5 ), 0 );
        REQUIRE( world_join( w, 0, 6 ) );
    }
}

TEST( admit_while_the_server_is_destroyed )
{
    int answer;
    for ( answer = 0; answer < 2; answer++ ) {
        struct world_t * w = admit_world( 4, 0 );
        struct puppet_t p;
        admit_meanwhile( &p, w, answer, deed_destroy );
        CHECK( w->servers[0] == NULL );
        CHECK_EQ( w->allocator.live, 0 );
        admit_expect_pairs( w );
    }
}

/* The very same response, handled inside its own handling: one token, one session, whatever is answered. */
TEST( admit_while_the_same_response_comes_again )
{
    int outer, inner;
    for ( outer = 0; outer < 2; outer++ )
        for ( inner = 0; inner < 2; inner++ ) {
            struct world_t * w = admit_world( 4, 0 );
            struct puppet_t p;
            admit_puppet( &p, w, 5, "10.2.0.1:6000" );
            admit.answer[0] = outer;
            admit.answer[1] = inner;
            admit.deed = admit_again;
            admit_respond( &p );
            CHECK_EQ( admit.calls, 2 );
            CHECK_EQ( admit_sessions( w, 5 ), outer | inner );
            CHECK_EQ( server_stats( w, 0 ).connects, outer | inner );
            CHECK_EQ( server_stats( w, 0 ).consumed, outer | inner );
            CHECK_EQ( server_stats( w, 0 ).pending, !( outer | inner ) );
            CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_CONNECTED ), inner );
            CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), ( !inner ) + ( !outer && !inner ) );
            CHECK_EQ( server_stats( w, 0 ).packets_received[NETCODE_PACKET_RESPONSE], outer | inner );
            check_counts( w );
        }
}

static struct puppet_t admit_other;

/* Another client's response, handled meanwhile. */
static void deed_other_responds( struct world_t * w )
{
    uint8_t wire[400];
    int bytes = wire_seal( wire, NETCODE_PACKET_RESPONSE, admit_other.sequence++, 0, admit_other.r.to_server_key,
                           admit_other.challenge, 308 );
    netcode_server_process_packet( w->servers[0], &admit_other.address, wire, bytes );
}

/* The same player by another token, from another address. */
TEST( admit_while_the_same_player_comes_in_by_another_token )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit_puppet( &admit_other, w, 5, "10.2.0.2:6000" );
    admit.deed = deed_other_responds;
    admit_respond( &p );
    CHECK_EQ( admit.calls, 2 );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_CLIENT_ID_CONNECTED ), 1 );
    puppet_poll( &admit_other );
    CHECK_GE( admit_other.keep_alives, 1 );
    check_counts( w );
}

/* The same where a newer session takes over: the later answer wins, and still there is one session. */
TEST( admit_while_the_session_to_take_over_changes )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    memset( &admit, 0, sizeof( admit ) );
    admit.answer[0] = admit.answer[1] = 1;
    w->server_config.admit_callback = admit_ask;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 4 );
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit_puppet( &admit_other, w, 5, "10.2.0.2:6000" );
    admit.deed = deed_other_responds;
    admit_respond( &p );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
    CHECK_GE( p.keep_alives, 1 );
    CHECK_EQ( server_stats( w, 0 ).connects, 2 );
    CHECK_EQ( server_stats( w, 0 ).disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED], 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 2 );
    check_counts( w );
}

/* One token that two addresses hold: it connects one of them. */
TEST( admit_while_the_same_token_comes_in_from_elsewhere )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    admit_puppet( &p, w, 5, "10.2.0.1:6000" );
    admit_other = p;
    admit_other.address = address_of( "10.2.0.2:6000" );
    admit_other.challenges = 0;
    REQUIRE( puppet_challenged( &admit_other ) );
    CHECK_EQ( server_stats( w, 0 ).pending, 2 );
    admit.deed = deed_other_responds;
    admit_respond( &p );
    CHECK_EQ( admit_sessions( w, 5 ), 1 );
    CHECK_EQ( server_stats( w, 0 ).connects, 1 );
    CHECK_EQ( server_stats( w, 0 ).consumed, 1 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_CONNECTED ), 1 );
    CHECK_EQ( p.keep_alives, 0 );
    check_counts( w );
}

static void deed_other_asks( struct world_t * w )
{
    uint8_t copy[REQUEST_BYTES];
    memcpy( copy, admit_other.request, REQUEST_BYTES );
    netcode_server_process_packet( w->servers[0], &admit_other.address, copy, REQUEST_BYTES );
}

/* Its entry goes to another handshake meanwhile: that one is not let in by the answer. */
TEST( admit_while_its_handshake_gives_way )
{
    int answer;
    for ( answer = 0; answer < 2; answer++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        memset( &admit, 0, sizeof( admit ) );
        admit.answer[0] = answer;
        w->server_config.admit_callback = admit_ask;
        w->server_config.pending_handshakes = 1;
        world_add_server( w, 4 );
        admit_puppet( &p, w, 5, "10.2.0.1:6000" );
        puppet_make( &admit_other, w, 0, 6, "10.2.0.2:6000" );
        admit.deed = deed_other_asks;
        admit_respond( &p );
        CHECK_EQ( server_stats( w, 0 ).handshakes_evicted, 1 );
        CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
        CHECK_EQ( server_stats( w, 0 ).consumed, 0 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_CONNECTED ), 1 );
        CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_ADMITTED ), 0 );
        puppet_poll( &admit_other );
        CHECK_EQ( admit_other.challenges, 1 );
        CHECK_EQ( admit_other.denials + admit_other.keep_alives + p.denials + p.keep_alives, 0 );
        world_close( w );
    }
}

static void deed_change_keys( struct world_t * w )
{
    static const uint8_t other_key[NETCODE_KEY_BYTES] = { 7 };
    CHECK_EQ( netcode_server_set_private_keys( w->servers[0], other_key, 1 ), NETCODE_OK );
}

TEST( admit_while_its_private_key_goes )
{
    struct world_t * w = admit_world( 4, 0 );
    struct puppet_t p;
    admit_meanwhile( &p, w, 1, deed_change_keys );
    CHECK_EQ( netcode_server_num_connected_clients( w->servers[0] ), 0 );
    CHECK_EQ( server_stats( w, 0 ).pending, 0 );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_NOT_CONNECTED ), 1 );
}

static int admit_number;

static void deed_number( struct world_t * w )
{
    test_state.expecting = 1; /* some are mistakes at this moment */
    do_to_server( w, admit_number );
    test_state.expecting = 0;
}

/* Every function of a server, called from inside. */
TEST( admit_while_any_function_is_called )
{
    int answer;
    for ( admit_number = 0; admit_number < 34; admit_number++ )
        for ( answer = 0; answer < 2; answer++ ) {
            struct world_t * w = admit_world( 4, 2 );
            int before = test_state.failures;
            REQUIRE( world_join( w, 1, 2 ) );
            netcode_server_connect_loopback_client( w->servers[0], 2, 77, NULL );
            netcode_log_level( NETCODE_LOG_LEVEL_NONE );
            admit.answer[0] = answer;
            admit.deed = deed_number;
            world_connect( w, 0, 1 );
            world_run( w, 1.0 );
            CHECK_GE( admit.calls, 2 );
            check_counts( w );
            if ( w->servers[0] )
                CHECK_LE( admit_sessions( w, 1 ), answer );
            if ( test_state.failures != before )
                printf( "    server function %d, answer %d\n", admit_number, answer );
            netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
            world_close( w );
        }
}

/* ---- 63: an attacker on the path repeats the victim's request, many times a second, while it connects ---- */

/*  From its own address, or from ever new ones. The victim is 100 ms away; the sender that repeats its request has seen
    it, so the copies come behind it. Returns whether it connects within two seconds. */
static int admit_victim( uint64_t client_id, int copies_per_second, int from_elsewhere )
{
    struct world_t * w = admit_world( 4, 1 );
    struct puppet_t copy;
    double start = w->time, copies = 0.0;
    int connected, number = 0;
    w->net->latency_milliseconds = 50.0f;
    puppet_make( &copy, w, 0, client_id, "10.1.0.1:50000" );
    copy.r = world_connect( w, 0, client_id );
    puppet_mint( &copy );
    copy.address = w->client_addresses[0];
    while ( w->time < start + 2.0 && netcode_client_state( w->clients[0] ) != NETCODE_CLIENT_STATE_CONNECTED ) {
        for ( copies += copies_per_second * w->step; w->time > start + 0.07 && copies >= 1.0; copies -= 1.0 ) {
            if ( from_elsewhere )
                copy.address.port = (uint16_t) ( 10000 + number++ );
            puppet_ask( &copy );
        }
        world_step( w );
    }
    connected = netcode_client_state( w->clients[0] ) == NETCODE_CLIENT_STATE_CONNECTED;
    world_close( w );
    return connected;
}

static void admit_victims( int from_elsewhere )
{
    static const int rates[4] = { 60, 100, 200, 300 };
    int i, connected = 0;
    for ( i = 0; i < 40; i++ )
        connected += admit_victim( 1 + (uint64_t) i, rates[i % 4], from_elsewhere );
    CHECK_EQ( connected, 40 );
}

TEST( threat_63_the_victims_request_is_repeated_while_it_connects )
{
    admit_victims( 0 );
}

TEST( threat_63_copies_from_other_addresses_while_the_victim_connects )
{
    admit_victims( 1 );
}
