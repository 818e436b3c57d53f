/*  Story: further promises of servers: the system's sockets, batches, callbacks that call back, the log, clocks, waiting, the work
    of one update. See promises_server.c, whose helpers these tests use. */

/* A client over the system's sockets, against `server`; `text` is the one address in its token. */
static int promise_udp( struct netcode_server_t * server, const char * text, uint64_t id )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct netcode_client_config_t config;
    struct netcode_client_t * client;
    double end = netcode_time() + TEST_LIMIT_SECONDS, now;
    int state;
    netcode_default_client_config( &config );
    REQUIRE( ( client = netcode_client_create_dual( "0.0.0.0", "::", &config, real_time() ) ) != NULL );
    REQUIRE_EQ( netcode_generate_connect_token( 1, &text, &text, 30, 1, id, WORLD_PROTOCOL, world_key, NULL, token ),
                1 );
    netcode_client_connect( client, token );
    do {
        now = real_time(), netcode_server_update( server, now ), netcode_client_update( client, now );
        state = netcode_client_state( client ), netcode_sleep( 0.001 );
    } while ( netcode_time() < end && state > 0 && state < NETCODE_CLIENT_STATE_CONNECTED );
    netcode_client_destroy( client );
    return state == NETCODE_CLIENT_STATE_CONNECTED;
}

static struct netcode_server_t * promise_udp_server( const char * first, const char * second, const char * bind1,
                                                     const char * bind2, const char * name )
{
    struct netcode_server_config_t config;
    struct netcode_server_t * server;
    memset( &config, 0x77, sizeof( config ) );
    netcode_default_server_config( &config ); /* "Sets every field to its default." */
    config.protocol_id = WORLD_PROTOCOL, memcpy( config.private_key, world_key, NETCODE_KEY_BYTES );
    config.bind_address = bind1, config.bind_address2 = bind2;
    config.public_addresses = &name, config.num_public_addresses = name != NULL;
    if ( ( server = netcode_server_create_dual( first, second, &config, real_time() ) ) != NULL )
        netcode_server_start( server, 4 );
    return server;
}

/*  "Port 0 binds any free port, and the server then is known by the real one." "bind_address says what to bind, public_addresses
    what tokens say"; "bind_address2: the same for the second address". "with an address of each family, in either order; without the
    second one (NULL or empty) it is netcode_server_create". */
TEST( promise_ports_families_and_bind_addresses )
{
    char v4[2][64], v6[2][64];
    struct netcode_server_t * server;
    int i, order;
    for ( i = 0; i < 2; i++ ) {
        if ( ( server = promise_udp_server( "[::1]:0", "", NULL, NULL, NULL ) ) == NULL )
            SKIP( "no IPv6 here" );
        snprintf( v4[i], sizeof( v4[i] ), "127.0.0.1:%d", netcode_server_get_port( server ) );
        snprintf( v6[i], sizeof( v6[i] ), "[::1]:%d", netcode_server_get_port( server ) );
        EQ( promise_udp( server, v6[i], 1 ), 1 ), CHECK( !promise_udp_server( v6[i], NULL, NULL, NULL, NULL ) );
        EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV6_FAILED );
        netcode_server_destroy( server );
    }
    for ( i = 0; i < 2; i++ ) { /* not those of closed sockets, which the system gives to others */
        int port = socket_free_port();
        snprintf( v4[i], sizeof( v4[i] ), "127.0.0.1:%d", port );
        snprintf( v6[i], sizeof( v6[i] ), "[::1]:%d", port );
    }
    for ( order = 0; order < 2; order++ ) {
        REQUIRE( ( server = promise_udp_server( order ? v6[0] : v4[0], order ? v4[0] : v6[0], NULL, NULL, NULL ) ) !=
                 NULL );
        EQ( promise_udp( server, v4[0], 2 ), 1 ), EQ( promise_udp( server, v6[0], 3 ), 1 );
        CHECK( !promise_udp_server( v4[0], NULL, NULL, NULL, NULL ) );
        EQ( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED );
        netcode_server_destroy( server );
    }
    REQUIRE( ( server = promise_udp_server( v4[1], v6[1], v4[0], v6[0], v6[0] ) ) != NULL );
    EQ( promise_udp( server, v6[0], 4 ), 1 ), EQ( promise_udp( server, v6[1], 5 ), 0 );
    netcode_server_destroy( server );
}

/* "create returns NULL and netcode_server_create_error say[s] why", "and its sentence"; "with an address of each family". */
TEST( promise_create_says_why_not )
{
    static const struct {
        const char *first, *second;
        int error;
    } rows[] = { { "127.0.0.1:x", NULL, NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED },
                 { "127.0.0.1:0", "::1::", NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED },
                 { "127.0.0.1:0", "127.0.0.2:0", NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED },
                 { "127.0.0.1:0", NULL, NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK },
                 { "127.0.0.1:0", NULL, NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED } };
    struct netcode_server_config_t config = promise_world()->server_config;
    int i, j;
    config.callback_context = &pw->server_parties[0];
    for ( i = 0; i < 5; i++ ) {
        config.override_send_and_receive = i == 3, pw->allocator.fail_at = i == 4 ? pw->allocator.calls + 1 : 0;
        CHECK( !netcode_server_create_dual( rows[i].first, rows[i].second, &config, 0.0 ) );
        EQ( netcode_server_create_error(), rows[i].error ), EQ( pw->allocator.live, 0 );
    }
    pw->allocator.fail_at = 0, config.override_send_and_receive = 0; /* "without the second one (NULL or empty)" */
    for ( i = 0; i < 2; i++ ) {
        struct netcode_server_t * server = netcode_server_create_dual( "127.0.0.1:0", i ? "" : NULL, &config, 0.0 );
        CHECK( server != NULL ), netcode_server_destroy( server );
    }
    for ( i = 0; i <= NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK; i++ )
        for ( j = 0; j < i; j++ )
            CHECK( strcmp( netcode_server_create_error_text( i ), netcode_server_create_error_text( j ) ) != 0 );
}

/* "The same, but only if the slot still belongs to that session." Silent otherwise. */
TEST( promise_send_to_session )
{
    uint64_t session[2];
    uint8_t data[30];
    int i, round, mark, before;
    promise_open( 3, 2 ), payload_fill( data, 30, 4 );
    for ( round = 0; round < 2; round++ ) {
        for ( i = 0; i < 2; i++ )
            session[i] = ASK( session, i );
        mark = pw->records.count, before = PARTY.lines;
        for ( i = 0; i < 3; i++ ) {
            netcode_server_send_packet_to_session( ps, i, session[i == 0], data, 30 );
            netcode_server_send_packet_to_session( ps, i, 0, data, 30 ),
                netcode_server_send_packet_to_session( ps, i, 1u << 20, data, 30 );
        }
        EQ( pw->records.count, mark ), EQ( PARTY.lines, before );
        for ( i = 0; i < 2; i++ ) {
            uint64_t sequence = netcode_server_next_packet_sequence( ps, i );
            netcode_server_send_packet_to_session( ps, i, session[i], data, 30 );
            EQ( pw->records.count, mark + 1 + i ), promise_got( &pp[i], 30, 4, sequence );
        }
        netcode_server_disconnect_client( ps, 0 );
        REQUIRE( promise_join( &pp[0], 77, promise_places[2] ) );
        mark = pw->records.count;
        netcode_server_send_packet_to_session( ps, 0, session[0], data, 30 ),
            EQ( pw->records.count, mark ); /* meant for the last one */
    }
}

/*  "sent ten times a second where no payload is", to each slot by itself. "packets leave at update, at netcode_server_flush, or when 64
    are waiting", in the order of sending; goodbyes at once, behind what waits. */
TEST( promise_keep_alives_and_batches )
{
    uint8_t data[10] = { 7 };
    int i, mark, step;
    promise_world()->server_config.batch_sends = 1, promise_open( 4, 3 );
    promise_poll( 3 ), i = pp[0].keep_alives, mark = pp[1].keep_alives;
    for ( step = 0; step < 400; step++, world_step( pw ) )
        if ( step % 5 == 0 )
            server_send( pw, 0, 1, 10, step );
    promise_poll( 3 ), EQ( pp[1].payloads, 80 ), CHECK_NEAR( pp[1].keep_alives, mark, 1 ),
        CHECK_NEAR( pp[1].probes, 4, 1 ), CHECK_NEAR( pp[0].keep_alives - i, 35, 1 ), CHECK_NEAR( pp[0].probes, 4, 1 );
    netcode_server_flush( ps ), mark = pw->records.count;
    for ( i = 0; i < 9; i++ )
        server_send( pw, 0, i % 3, 10 + i, i );
    netcode_server_broadcast( ps, data, 10, 1 ), EQ( pw->records.count, mark ), netcode_server_flush( ps );
    REQUIRE_EQ( pw->records.count, mark + 11 );
    for ( i = 0; i < 11; i++ )
        CHECK( netcode_address_equal( &pw->records.items[mark + i].to, &pp[i == 10 ? 2 : i % 3].address ) );
    server_send( pw, 0, 2, 100, 3 ), netcode_server_update( ps, pw->time ), EQ( pw->records.count, mark + 12 );
    server_send( pw, 0, 0, 100, 3 ), netcode_server_disconnect_client( ps, 1 );
    REQUIRE_EQ( pw->records.count, mark + 23 );
    for ( i = 12; i < 23; i++ )
        CHECK( netcode_address_equal( &pw->records.items[mark + i].to, &pp[i > 12].address ) );
}

/* "where it can not be had the server stays stopped and says so in the log." */
TEST( promise_a_start_without_memory )
{
    int before;
    promise_open( 2, 1 ), before = PARTY.lines, pw->allocator.fail_at = pw->allocator.calls + 1;
    netcode_server_start( ps, 500 ), promise_poll( 1 ), EQ( pp[0].disconnects, 10 );
    EQ( netcode_server_running( ps ) + netcode_server_max_clients( ps ), 0 ), EQ( PARTY.lines, before + 1 );
    netcode_server_start( ps, 500 ), EQ( netcode_server_max_clients( ps ), 500 );
    EQ( promise_join( &pp[0], 2, promise_places[1] ), 1 ), EQ( pp[0].max_clients, 500 );
}

/*  "Of those that expire, a client id has at most 16. When it has 16, its tokens that expire no later than the earliest of them
    are refused, and a later one replaces that." Other players do not feel it. */
TEST( promise_used_tokens_of_one_client_id )
{
    enum { FIRST = NC_USED_PER_ID - 4 };
    static const int rows[][3] = { { 40, 1, 1 }, { 20, 1, 2 }, { 30, 1, 3 }, { 50, 1, 4 }, { 20, 0, 4 }, { 19, 0, 4 },
                                   { 25, 1, 4 }, { 25, 0, 4 }, { 20, 0, 4 }, { 26, 1, 4 }, { 60, 1, 4 }, { 30, 0, 4 } };
    promise_open( 8, 0 );
    EQ( NC_USED_PER_ID, 16 );
    for ( int i = -FIRST; i < 12; i++ ) {
        struct puppet_t * p = promise_new( 0, 1, promise_places[( i + FIRST ) % 8] );
        p->r.expire = WORLD_UNIX + 1000 + (uint64_t) ( i < 0 ? 60 : rows[i][0] ); /* of one second, at first */
        EQ( promise_try( p ), i < 0 || rows[i][1] ),
            EQ( STATS.consumed, FIRST + ( i < 0 ? i : rows[i][2] ) + ( i < 0 ) );
        if ( p->keep_alives )
            promise_leave( p );
    }
    promise_new( 1, 2, promise_places[0] )->r.expire = WORLD_UNIX + 1000 + 19;
    EQ( promise_try( &pp[1] ), 1 ), EQ( STATS.consumed, NC_USED_PER_ID + 1 );
}

/* "answers to one handshake: 4 at once, then 10 a second"; REQUEST_TOO_SOON; of each handshake by itself. */
TEST( promise_answers_to_one_handshake )
{
    int i;
    promise_open( 8, 0 ), promise_new( 0, 1, promise_places[0] ), promise_new( 1, 2, promise_places[1] );
    for ( i = 0; i < 10; i++ )
        puppet_ask( &pp[0] );
    puppet_ask( &pp[1] ), world_step( pw ), puppet_poll( &pp[0] ), puppet_poll( &pp[1] );
    EQ( pp[0].challenges, 4 ), EQ( pp[1].challenges, 1 ), promise_drops( D( REQUEST_TOO_SOON ), 6, D( NONE ) );
    for ( i = 0; i < 200; i++ )
        puppet_ask( &pp[0] ), puppet_step( &pp[0] );
    CHECK_NEAR( pp[0].challenges, 4 + 20, 1 ), EQ( STATS.handshakes, 2 );
    puppet_respond( &pp[0] ), puppet_step( &pp[0] ), EQ( pp[0].keep_alives, 1 ), promise_is( &pp[0] );
}

static int promise_left; /* disconnect callbacks */
static int promise_why;  /* the reason that they should find */

static void promise_last_words( struct world_party_t * party, int slot, int connected )
{
    struct puppet_t * p = &pp[slot];
    (void) party;
    EQ( ASK( id, slot ), p->r.client_id );
    REQUIRE( ASK( user_data, slot ) && ASK( address, slot ) );
    CHECK_MEM( ASK( user_data, slot ), p->r.user_data, NETCODE_USER_DATA_BYTES );
    CHECK( netcode_address_equal( ASK( address, slot ), &p->address ) );
    EQ( ASK( disconnect_reason, slot ), connected ? BY_NOBODY : promise_why );
    if ( connected )
        return;
    promise_read( slot, 10, slot, 1003 ); /* one of two: the other can still be read afterwards */
    promise_left++;
}

/*  connect_disconnect_callback: "connected 1: a client took the slot. 0: it leaves, and its id, address, user data, reason and
    queued packets can still be read". Once for each client, however it leaves. */
TEST( promise_disconnect_callback )
{
    for ( promise_why = BY_TIMEOUT; promise_why <= BY_SERVER + 2; promise_why++ ) {
        int how = promise_why, i;
        promise_world()->server_parties[0].on_change = promise_last_words, promise_open( 4, 0 ), promise_left = 0;
        for ( i = 0; i < 3; i++ ) {
            promise_new( i, 1001 + (uint64_t) i, promise_places[i] );
            REQUIRE( puppet_connect( &pp[i] ) );
            puppet_keep_alive( &pp[i] ), puppet_say( &pp[i], 10, i ), puppet_say( &pp[i], 11, i ), world_step( pw );
        }
        promise_why = how > BY_SERVER ? BY_SERVER : how;
        if ( how == BY_TIMEOUT )
            world_run( pw, 5.2 );
        for ( i = 0; i < 3; i++ )
            if ( how == BY_CLIENT )
                promise_leave( &pp[i] );
            else if ( how == BY_SERVER )
                netcode_server_disconnect_client( ps, i );
        if ( how == BY_SERVER + 1 )
            netcode_server_disconnect_all_clients( ps );
        if ( how == BY_SERVER + 2 )
            netcode_server_start( ps, 4 );
        EQ( promise_left, 3 ), EQ( PARTY.log_count, 6 );
        EQ( STATS.disconnects[promise_why], 3 ), EQ( netcode_server_num_connected_clients( ps ), 0 );
        for ( i = 0; i < 3 && how <= BY_SERVER + 1; i++ )
            EQ( ASK( disconnect_reason, i ), promise_why ), promise_read( i, 11, i, 1004 );
        promise_why = how;
    }
}

enum { IN_DISCONNECT, IN_STOP, IN_START, IN_UPDATE, IN_DESTROY, IN_SENDS, IN_COUNT };
static int promise_in, promise_at_connected; /* what is called from which callback */

static void promise_nested( struct world_party_t * party, int slot, int connected )
{
    uint8_t data[10] = { 3 };
    uint64_t received;
    if ( connected != promise_at_connected || slot != 2 )
        return;
    party->on_change = NULL, received = STATS.datagrams_received;
    if ( promise_in == IN_DISCONNECT )
        netcode_server_disconnect_client( ps, slot ), netcode_server_disconnect_client( ps, 0 );
    if ( promise_in == IN_STOP )
        netcode_server_stop( ps ), EQ( netcode_server_running( ps ), 1 ), EQ( ASK( id, 1 ), 1002 );
    if ( promise_in == IN_START )
        netcode_server_start( ps, 7 ), EQ( netcode_server_max_clients( ps ), 4 );
    if ( promise_in == IN_UPDATE )
        TOLERATE( netcode_server_update( ps, pw->time + 10.0 ) );
    EQ( STATS.datagrams_received, received );
    if ( promise_in == IN_DESTROY )
        netcode_server_destroy( ps ), pw->servers[0] = NULL, CHECK_NE( pw->allocator.live, 0 );
    if ( promise_in == IN_SENDS )
        netcode_server_send_packet( ps, 1, data, 10 ), netcode_server_broadcast( ps, data, 10, 1 );
}

/*  "Callbacks [...] may call back into the library: destroy, stop and start then take effect when the outermost call returns; an
    update inside an update is refused." */
TEST( promise_callbacks_call_back )
{
    for ( promise_at_connected = 0; promise_at_connected < 2; promise_at_connected++ )
        for ( promise_in = 0; promise_in < IN_COUNT; promise_in++ ) {
            int i, all = promise_in == IN_STOP || promise_in == IN_START || promise_in == IN_DESTROY;
            promise_open( 4, 2 ), PARTY.on_change = promise_nested;
            REQUIRE( puppet_challenged( promise_new( 2, 1003, promise_places[2] ) ) );
            puppet_respond( &pp[2] ), puppet_step( &pp[2] );
            if ( !promise_at_connected )
                puppet_keep_alive( &pp[2] ), promise_leave( &pp[2] );
            for ( i = 0; i < 3; i++ )
                puppet_poll( &pp[i] ), EQ( pp[i].unreadable, 0 );
            EQ( pp[0].disconnects, all || promise_in == IN_DISCONNECT ? 10 : 0 ), EQ( pp[1].disconnects, all ? 10 : 0 );
            EQ( pp[2].disconnects, promise_at_connected && ( all || promise_in == IN_DISCONNECT ) ? 10 : 0 );
            for ( i = 0; i < 2 + promise_at_connected; i++ )
                EQ( pp[i].payloads, promise_in == IN_SENDS );
            if ( promise_in == IN_DESTROY ) {
                EQ( pw->allocator.live, 0 ), EQ( PARTY.log_count, 6 );
                continue;
            }
            EQ( netcode_server_running( ps ), promise_in != IN_STOP );
            EQ( netcode_server_max_clients( ps ), promise_in == IN_START ? 7 : promise_in == IN_STOP ? 0 : 4 );
            EQ( PARTY.log_count, all ? 6
                                     : 3 + !promise_at_connected + ( promise_in == IN_DISCONNECT ) +
                                           ( promise_in == IN_DISCONNECT && promise_at_connected ) );
            EQ( STATS.clients,
                all ? 0 : 2 + promise_at_connected - ( promise_in == IN_DISCONNECT ) * ( 1 + promise_at_connected ) );
            if ( promise_in != IN_STOP )
                EQ( promise_join( &pp[3], 7, promise_places[3] ), 1 ), promise_is( &pp[3] );
        }
}

/* "without the callback they go nowhere, which is logged once". "a negative number when the socket is broken": receive_errors. */
static int promise_broken( void * context, struct netcode_datagram_t * datagrams, int count )
{
    (void) context, (void) datagrams;
    return -count;
}

TEST( promise_nowhere_to_go )
{
    int i, before;
    promise_world()->server_config.send_loopback_packet_callback = NULL, promise_extras.receive = promise_broken;
    promise_open( 2, 0 ), netcode_server_connect_loopback_client( ps, 0, 1, NULL ), before = PARTY.lines;
    for ( i = 1; i < 4; i++ )
        server_send( pw, 0, 0, 10, 1 ), world_step( pw ), EQ( PARTY.lines, before + 1 ), EQ( STATS.receive_errors, i );
}

static char promise_text[1 << 16];
static int promise_lines, promise_level;

static void promise_log( void * context, int level, const char * text )
{
    world_log_callback( context, level, text );
    CHECK( level >= NETCODE_LOG_LEVEL_ERROR && level <= promise_level && !strchr( text, '\n' ) );
    promise_lines++;
    if ( strlen( promise_text ) + strlen( text ) + 2 < sizeof( promise_text ) )
        strcat( strcat( promise_text, text ), "\n" );
}

static int promise_lines_with( const char * part )
{
    const char * at = promise_text;
    int count = 0;
    while ( ( at = strstr( at, part ) ) != NULL )
        at += strlen( part ), count++;
    return count;
}

/*  "at level INFO it names what kept a player out, one line a second for each reason"; "the token names another address (the log
    names both, level INFO)"; "report each" at DEBUG; "at first errors only"; of a leave, nine drops "without a line". */
TEST( promise_the_log_says_why_not )
{
    int i, level, kind;
    for ( level = NETCODE_LOG_LEVEL_NONE; level <= NETCODE_LOG_LEVEL_DEBUG; level++ ) {
        promise_level = level, promise_world()->server_config.log_callback = promise_log, promise_open( 1, 1 );
        netcode_log_level( level ), world_run( pw, 1.1 ), promise_lines = 0;
        memset( promise_text, 0, sizeof( promise_text ) );
        for ( i = 0; i < 22; i++ ) /* two reasons in turn, 11 each within a second */
            for ( kind = 0; kind < 2; kind++ ) {
                struct puppet_t * p = promise_new( 1, 50 + (uint64_t) i, kind ? "[fd00::9]:900" : "10.9.0.9:900" );
                if ( kind )
                    p->r.private_addresses[0] = address_of( "[2001:db8::7]:4567" );
                puppet_mint( p ), puppet_ask( p ), world_step( pw );
                if ( i == 10 && kind )
                    EQ( promise_lines >= 22, level == NETCODE_LOG_LEVEL_DEBUG ), world_run( pw, 1.1 );
            }
        if ( level <= NETCODE_LOG_LEVEL_INFO )
            EQ( promise_lines_with( "10.9.0.9:900" ), level == NETCODE_LOG_LEVEL_INFO ? 2 : 0 );
        EQ( strstr( promise_text, "[2001:db8::7]:4567" ) != NULL, level >= NETCODE_LOG_LEVEL_INFO );
        EQ( strstr( promise_text, "10.0.0.1:40000" ) != NULL, level >= NETCODE_LOG_LEVEL_INFO );
        EQ( DROPPED( SERVER_FULL ), 22 ), EQ( DROPPED( TOKEN_FOR_ANOTHER_SERVER ), 22 );
        for ( i = 0; i < 10; i++ )
            puppet_send( &pp[0], NETCODE_PACKET_DISCONNECT, NULL, 0 );
        world_step( pw ), EQ( DROPPED( UNKNOWN_ADDRESS ), 9 ), EQ( ASK( disconnect_reason, 0 ), BY_CLIENT );
        if ( level <= NETCODE_LOG_LEVEL_INFO )
            CHECK( !strstr( promise_text, "UNKNOWN_ADDRESS" ) && !strstr( promise_text, "no client or handshake" ) );
    }
}

/* "The library adds the forward steps: standing still, going back, NaN and infinity do nothing." */
TEST( promise_only_finite_steps_forward_count )
{
    static const double steps[][2] = { { 0.0, 0.0 },   { -10.0, 0.0 },   { 0.0, 0.0 },      { NOT_A_NUMBER, 0.0 },
                                       { 1.5, 1.5 },   { ENDLESS, 0.0 }, { -ENDLESS, 0.0 }, { -1e300, 0.0 },
                                       { 0.25, 0.25 }, { 7.0, 7.0 } };
    double time, clock, before;
    int i;
    promise_open( 4, 0 ), promise_new( 0, 1, promise_places[1] )->r.timeout = -1;
    REQUIRE( promise_try( &pp[0] ) );
    puppet_keep_alive( &pp[0] ), world_step( pw ), time = pw->time, clock = promise_slot( 0 ).seconds_connected;
    for ( i = 0; i < 10; i++ ) {
        before = time;
        if ( steps[i][0] == -1e300 )
            before = time = 10.0;
        else if ( steps[i][0] - steps[i][0] == 0.0 )
            before = time += steps[i][0];
        else
            before = steps[i][0];
        netcode_server_update( ps, before ), clock += steps[i][1];
        CHECK_NEAR( promise_slot( 0 ).seconds_connected, clock, 1e-6 );
    }
    promise_is( &pp[0] );
}

static double promise_waited;
static int promise_waits;

static void promise_wait( void * context, double seconds )
{
    (void) context;
    promise_waited += seconds;
    promise_waits++;
}

/* "Sleeps until a datagram waits, something is due, or `seconds` have passed". Due: the next keep-alive, a handshake's end. */
TEST( promise_wait_until_something_is_due )
{
    promise_world(), promise_extras.wait = promise_wait, promise_open( 4, 0 ), promise_waited = 0.0, promise_waits = 0;
    netcode_server_wait( ps, 0.25 ), EQ( promise_waits, 1 ), CHECK_NEAR( promise_waited, 0.25, 1e-9 );
    REQUIRE( puppet_challenged( promise_new( 0, 1, promise_places[0] ) ) );
    promise_waited = 0.0, netcode_server_wait( ps, 60.0 ), CHECK( promise_waited > 0.5 && promise_waited < 5.1 );
    puppet_respond( &pp[0] ), puppet_step( &pp[0] );
    promise_waited = 0.0, netcode_server_wait( ps, 60.0 ), CHECK_NEAR( promise_waited, 0.1, 0.02 );
    world_run( pw, 0.05 ), promise_waited = 0.0, netcode_server_wait( ps, 60.0 ),
                           CHECK_NEAR( promise_waited, 0.05, 0.02 );
    promise_waited = 0.0, netcode_server_wait( ps, 0.01 ), CHECK_NEAR( promise_waited, 0.01, 1e-9 );
}

/* "1,100 datagrams are received from the socket". backlogs: "updates that ended with work left for the next". */
TEST( promise_work_of_one_update )
{
    uint8_t small[20] = { 0x15 };
    int i;
    promise_world(), promise_extras.wait = promise_wait, promise_open( 4, 0 );
    puppet_make( &pp[0], pw, 0, 1, promise_places[0] );
    for ( i = 0; i < 2400; i++ )
        puppet_raw( &pp[0], small, 20 );
    for ( i = 1; i <= 3; i++ ) {
        world_step( pw ), EQ( STATS.datagrams_received, i < 3 ? 1100 * i : 2400 ), EQ( STATS.backlogs, i < 3 ? i : 2 );
    }
    promise_drops( D( UNKNOWN_ADDRESS ), 2400, D( NONE ) );
    for ( i = 0; i < 1200; i++ )
        puppet_raw( &pp[0], small, 20 );
    world_step( pw ), netcode_server_start( ps, 4 ),
        promise_waits = 0; /* what was left is no reason to stay awake after a start */
    netcode_server_wait( ps, 0.25 ), EQ( promise_waits, 1 );
}

/*  "16 packets of each client are opened whatever the others send, and 192 more in all (1,024 where fewer were opened before); a
    client that sends more, or whose address is forged, loses its own (OVER_SHARE)". */
TEST( promise_each_client_has_its_share_of_an_update )
{
    int i, many;
    promise_open( 4, 3 );
    for ( many = 0; many < 2; many++ ) {
        for ( i = 0; i < ( many ? 1090 : 100 ); i++ )
            puppet_say( &pp[0], 10, i );
        for ( i = 0; i < 16; i++ )
            puppet_say( &pp[1], 10, i ), puppet_say( &pp[2], 11, i );
        world_run( pw, 0.1 );
        EQ( server_drain( pw, 0, 1 ), 16 ), EQ( server_drain( pw, 0, 2 ), 16 ),
            EQ( server_drain( pw, 0, 0 ), many ? 256 : 100 );
        EQ( promise_slot( 1 ).packets_dropped + promise_slot( 2 ).packets_dropped, 0 );
    }
}

/* "A payload of a size out of range is logged and refused in all builds". */
TEST( promise_sizes_out_of_range_are_refused )
{
    uint8_t data[10] = { 1 };
    promise_open( 2, 1 );
    REFUSED( netcode_server_send_packet( ps, 0, data, 0 ) );
    REFUSED( netcode_server_send_packet( ps, 0, data, NETCODE_MAX_PACKET_SIZE + 1 ) );
    REFUSED( netcode_server_broadcast( ps, data, NETCODE_MAX_PACKET_SIZE + 1, -1 ) );
}

/* packets_held: "read and not yet freed"; such packets stay valid through a start with another number of slots. */
TEST( promise_packets_are_held_until_freed )
{
    uint8_t * packet;
    int bytes;
    promise_open( 2, 1 ), puppet_say( &pp[0], 10, 1 ), world_step( pw );
    REQUIRE( ( packet = netcode_server_receive_packet( ps, 0, &bytes, NULL ) ) != NULL );
    netcode_server_start( ps, 3 ), EQ( STATS.packets_held, 1 );
    netcode_server_free_packet( ps, packet ), EQ( STATS.packets_held, 0 );
}

/* "packets [are wiped] when their pool is freed": by a start with other slots. */
TEST( promise_packets_are_wiped_with_their_pool )
{
    struct allocator_t * a = &promise_world()->allocator;
    uint8_t said[64];
    a->keep = 1;
    promise_open( 2, 1 ), payload_fill( said, 64, 77 ), puppet_say( &pp[0], 64, 77 ), world_step( pw );
    EQ( server_drain( pw, 0, 0 ), 1 );
    netcode_server_start( ps, 3 ), EQ( allocator_search( a, said, 64 ), 0 );
}

/* "one line a second for each reason", and one that names the other server. */
TEST( promise_one_line_a_second_for_another_server )
{
    int i;
    promise_world()->server_config.log_callback = promise_log, promise_level = NETCODE_LOG_LEVEL_INFO;
    promise_open( 2, 0 ), netcode_log_level( NETCODE_LOG_LEVEL_INFO ),
        memset( promise_text, 0, sizeof( promise_text ) );
    for ( i = 0; i < 90; i++ ) {
        promise_new( 0, 1 + (uint64_t) i, promise_places[0] )->r.private_addresses[0] = address_of( "192.0.2.7:4567" );
        puppet_mint( &pp[0] ), puppet_ask( &pp[0] ), world_step( pw );
    }
    EQ( DROPPED( TOKEN_FOR_ANOTHER_SERVER ), 90 ), EQ( promise_lines_with( "192.0.2.7:4567" ), 1 );
}

/* "Sleeps until [...] something is due [...]; it may return earlier": a handshake of 5 s is due in 5 s. */
TEST( promise_wait_sleeps_until_then )
{
    promise_world(), promise_extras.wait = promise_wait;
    promise_open( 4, 0 );
    REQUIRE( puppet_challenged( promise_new( 0, 1, promise_places[0] ) ) );
    promise_waited = 0.0, netcode_server_wait( ps, 60.0 ), CHECK( promise_waited > 0.5 && promise_waited < 5.1 );
}

/* "4 addresses a token [...] the oldest is evicted, unless it is younger than 0.5 s and of the same token". */
TEST( promise_the_oldest_address_of_a_token_is_evicted )
{
    int i;
    promise_open( 4, 0 );
    for ( i = 0; i < 5; i++ ) {
        promise_new( i, 1, promise_places[i] ), pp[i].r = pp[0].r, puppet_mint( &pp[i] );
        EQ( puppet_challenged( &pp[i] ), 1 ), world_run( pw, 0.2 );
    }
    EQ( STATS.handshakes_evicted, 1 );
}
