/*  Story: what an object says of itself: a client's report where no server accepts it, and what the log reports to a
    server's operator. */

/* ---- why can't I connect? ---- */

static struct netcode_client_report_t report_of( struct world_t * w )
{
    struct netcode_client_report_t report;
    memset( &report, 0x77, sizeof( report ) );
    netcode_client_report( w->clients[0], &report );
    CHECK( memchr( report.text, 0, sizeof( report.text ) ) != NULL );
    CHECK_GE( strlen( report.text ), 10 );
    CHECK_EQ( report.state, netcode_client_state( w->clients[0] ) );
    return report;
}

TEST( report_distinguishes_each_end )
{
    char seen[9][256];
    int i, j;
    for ( i = 0; i < 9; i++ ) {
        struct world_t * w = world_open( CLEAN, 2, 1, 3 );
        struct netcode_client_report_t report;
        struct recipe_t r;
        if ( i == 2 ) {
            REQUIRE( world_join( w, 1, 8 ) );
            r = recipe_for( w, 9 );
            r.public_addresses[0] = r.public_addresses[1];
            r.public_count = 1;
            world_connect_recipe( w, 2, &r );
            REQUIRE( world_until( w, 2, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        }
        r = recipe_for( w, 1 );
        r.timeout = 2;
        w->cut_types = i == 1   ? 1u << NETCODE_PACKET_REQUEST
                       : i == 3 ? 1u << NETCODE_PACKET_RESPONSE
                       : i == 4 ? 1u << NETCODE_PACKET_REQUEST
                                : 0;
        if ( i == 4 )
            r.expire = r.create + 1;
        if ( i == 5 )
            memcpy( r.version, "NETCODE 9.99", 13 );
        if ( i > 0 )
            world_connect_recipe( w, 0, &r );
        world_run( w, 5.0 );
        if ( i == 7 )
            netcode_server_disconnect_all_clients( w->servers[0] );
        if ( i == 8 )
            w->cut_to = w->client_addresses[0];
        world_run( w, 5.0 );
        report = report_of( w );
        memcpy( seen[i], report.text, sizeof( seen[i] ) );
        for ( j = 0; j < i; j++ )
            CHECK( strcmp( seen[i], seen[j] ) != 0 );
        if ( i == 1 ) {
            CHECK_EQ( report.num_servers, 2 );
            CHECK_EQ( report.server_index, 1 );
            CHECK( netcode_address_equal( &report.servers[0].address, &w->server_addresses[0] ) );
            CHECK_GE( report.servers[0].requests_sent, 19 );
            CHECK_GE( report.servers[1].requests_sent, 19 );
            CHECK_EQ( report.servers[0].challenged, 0 );
            CHECK_NEAR( report.servers[0].seconds_waited, 2.0, 0.1 );
            CHECK_NEAR( report.servers[1].seconds_waited, 2.0, 0.1 );
            CHECK_NEAR( report.token_seconds_left, 300.0 - 4.0, 7.0 );
        }
        if ( i == 2 ) {
            CHECK_EQ( report.servers[0].denied, 1 );
            CHECK_EQ( report.servers[1].denied, 1 );
        }
        if ( i == 3 ) {
            CHECK_EQ( report.servers[0].challenged, 1 );
            CHECK_GE( report.servers[0].responses_sent, 19 );
        }
        world_close( w );
    }
}

#if !defined( _WIN32 )

TEST( mutants_a_client_that_asks_says_one_thing_at_a_time )
{
    struct world_t * w = world_open( CLEAN, 1, 1, 1 );
    struct netcode_client_report_t report;
    struct netcode_datagram_t error;
    int mark;
    world_run( w, 3.0 ); /* so that its clock does not stand at 0 */
    world_connect( w, 0, 1 );
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    world_run( w, 0.5 );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text, "Asking the server; no answer yet." );
    CHECK_NEAR( report.servers[0].seconds_waited, 0.49, 0.03 );
    memset( &error, 0, sizeof( error ) );
    error.error = 111;
    nc_client_on_socket_error( w->clients[0], &error );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text,
               "The network says that the server can not be reached: is it running, and is its port open?" );
    mark = w->records.count;
    netcode_client_disconnect( w->clients[0] ); /* no server has anything to end */
    CHECK_EQ( w->records.count, mark );
    w->cut_types = 1u << NETCODE_PACKET_RESPONSE;
    world_connect( w, 0, 2 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 2.0 ) );
    netcode_client_report( w->clients[0], &report );
    CHECK_STR( report.text, "The server has answered; waiting for it to let the client in." );
    mark = w->records.count;
    world_run( w, 1.0 );
    CHECK_EQ( world_count( w, mark, &w->client_addresses[0], NULL, NETCODE_PACKET_RESPONSE, 0 ),
              world_count( w, mark, &w->client_addresses[0], NULL, -1, 0 ) );
}

/* The second server of the last token is no part of an attempt with a token that can not be used. */
TEST( mutants_a_bad_token_has_no_server )
{
    struct world_t * w = world_open( CLEAN, 2, 1, 1 );
    struct netcode_client_report_t report;
    uint8_t bad[NETCODE_CONNECT_TOKEN_BYTES] = { 0 };
    w->cut_to = w->server_addresses[0];
    world_connect( w, 0, 1 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 10.0 ) );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.server_index, 1 );
    double left = report.token_seconds_left;
    world_run( w, 3.0 );
    netcode_client_report( w->clients[0], &report );
    CHECK_NEAR( report.token_seconds_left, left - 3.0, 0.05 );
    netcode_client_connect( w->clients[0], bad );
    netcode_client_report( w->clients[0], &report );
    CHECK_EQ( report.state, NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN );
    CHECK_EQ( report.server_index, 0 );
    CHECK_EQ( report.num_servers, 0 );
    for ( int at = 13; at < 1200; at += 7 ) { /* whatever of it can be read */
        struct recipe_t r = recipe_for( w, 2 );
        mint( &r, bad );
        bad[at] = 0xff;
        if ( netcode_client_connect( w->clients[0], bad ) == NETCODE_OK )
            continue;
        netcode_client_report( w->clients[0], &report );
        CHECK_EQ( report.num_servers, 0 );
    }
}

#endif

/* ---- the client's report where a server speaks and its packets are refused ---- */

static struct netcode_client_report_t refused_report( struct world_t * w )
{
    struct netcode_client_report_t report;
    netcode_client_report( w->clients[0], &report );
    return report;
}

/* Of the server that is named, and of no other that is asked: what anyone forges in its name explains nothing. */
TEST( the_report_names_what_its_server_sent )
{
    struct world_t * w = world_open( CLEAN, 2, 2, 1 );
    struct recipe_t r;
    w->cut_types = 1u << NETCODE_PACKET_REQUEST;
    r = world_connect( w, 0, 1 );
    world_run( w, 0.5 );
    CHECK_EQ( refused_report( w ).server_index, 1 );
    send_to_client( w, &r, NETCODE_PACKET_DENIED, 1, "x", 1 ); /* from the first server's address */
    world_run( w, 0.1 );
    CHECK_EQ( refused_report( w ).refused, 0 );
}

/* Denied packets with a byte of body, as one deployed server sends them: refused unread. */
TEST( the_report_names_refused_denials )
{
    struct world_t * w = world_open( CLEAN, 1, 2, 1 );
    struct recipe_t r;
    w->cut_from = w->server_addresses[0];
    r = world_connect( w, 0, 1 );
    world_step( w );
    CHECK_EQ( refused_report( w ).refused, 0 );
    CHECK_EQ( refused_report( w ).refused_as, NETCODE_DROP_NONE );
    CHECK_STR( refused_report( w ).text, "Asking the server; no answer yet." );
    for ( int i = 0; i < 49; i++ ) {
        send_to_client( w, &r, NETCODE_PACKET_DENIED, (uint64_t) i + 1, "x", 1 );
        world_run( w, 0.1 );
    }
    CHECK_EQ( refused_report( w ).refused, 49 );
    CHECK_STR( refused_report( w ).text, "The server's packets were refused (49, the last one as WRONG_BODY_SIZE): the "
                                         "packet's data has not the size that its type demands." );
    REQUIRE(
        world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT, 5.5 ) ); /* they kept nothing alive */
    CHECK_EQ( refused_report( w ).refused, 49 );
    CHECK_EQ( refused_report( w ).refused_as, NETCODE_DROP_WRONG_BODY_SIZE );
    CHECK( strstr( refused_report( w ).text, "(49, the last one as WRONG_BODY_SIZE)" ) != NULL );
}

/* A server that answers under other keys, at first and behind the challenge and in the middle of a connection. */
TEST( the_report_names_a_server_with_other_keys )
{
    static const int states[] = { NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT,
                                  NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT,
                                  NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT };
    for ( int i = 0; i < 3; i++ ) {
        struct world_t * w = world_open( CLEAN, 1, 2, 1 );
        struct recipe_t r, other;
        uint8_t body[308] = { 0 };
        r = world_connect( w, 0, 1 );
        if ( i == 1 ) {
            w->cut_types = 1u << NETCODE_PACKET_KEEP_ALIVE;
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE, 1.0 ) );
        }
        if ( i == 2 )
            REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTED, 1.0 ) );
        w->cut_from = w->server_addresses[0];
        world_run( w, 0.1 );
        CHECK_EQ( refused_report( w ).refused, 0 );
        other = r;
        other.to_client_key[0] ^= 1;
        for ( int k = 0; k < 45; k++ ) {
            send_to_client( w, &other, i ? NETCODE_PACKET_KEEP_ALIVE : NETCODE_PACKET_CHALLENGE,
                            ( (uint64_t) 1 << 63 ) + (uint64_t) k, body, i ? 8 : 308 );
            world_run( w, 0.1 );
        }
        REQUIRE( world_until( w, 0, states[i], 1.0 ) );
        CHECK_EQ( refused_report( w ).refused, 45 );
        CHECK_EQ( refused_report( w ).refused_as,
                  i == 2 ? NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD : NETCODE_DROP_AUTHENTICATION_FAILED );
        CHECK( strncmp( refused_report( w ).text, "The server's packets were refused (45, ", 39 ) == 0 );
        world_close( w );
    }
}

/* What was accepted since, what came twice, and what was for a full queue, is no refusal. */
TEST( the_report_forgets_refusals_when_a_packet_is_accepted )
{
    struct world_t * w = world_new( CLEAN );
    uint8_t junk[40] = { 0x15 };
    struct recipe_t r;
    uint64_t sequence;
    w->client_config.packet_quota = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    REQUIRE( world_joins( w, 0, 1, &r ) );
    sequence = newest_to_client( w, &r ) + 1;
    w->cut_from = w->server_addresses[0];
    inject_to_client( w, junk, 40 );
    send_to_client( w, &r, NETCODE_PACKET_DENIED, sequence + 9, NULL, 0 ); /* a state that is over */
    world_step( w );
    CHECK_EQ( refused_report( w ).refused, 1 );
    CHECK_STR( refused_report( w ).text, "Connected." );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, "a", 1 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence, "a", 1 );
    send_to_client( w, &r, NETCODE_PACKET_PAYLOAD, sequence + 1, "b", 1 );
    world_step( w );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_REPLAYED ), 1 );
    CHECK_EQ( client_drops( w, 0, NETCODE_DROP_QUEUE_FULL ), 1 );
    CHECK_EQ( refused_report( w ).refused, 0 );
    REQUIRE( world_until( w, 0, NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT, 6.0 ) );
    CHECK_STR( refused_report( w ).text, "The connection was lost: nothing came from the server any more." );
}

/* ---- what the log reports to a server's operator ---- */

/* What keeps a player out, each at INFO: one line a second, which counts the others. */
TEST( the_log_names_what_keeps_a_player_out )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_INFO );
    struct puppet_t in, full, consumed, forged, foreign, expired;
    world_add_server( w, 1 );
    REQUIRE( puppet_join( &in, w, 0, 1, "10.2.0.1:6000" ) );
    puppet_make( &full, w, 0, 2, "10.2.0.2:6000" );
    consumed = in;
    consumed.address.port++;
    puppet_make( &forged, w, 0, 3, "10.2.0.3:6000" );
    forged.r.private_key[0] ^= 1;
    puppet_mint( &forged );
    puppet_make( &foreign, w, 0, 4, "10.2.0.4:6000" );
    foreign.r.protocol_id++;
    puppet_mint( &foreign );
    puppet_make( &expired, w, 0, 5, "10.2.0.5:6000" );
    expired.r.create -= 100;
    puppet_expires( &expired, expired.r.create + 50 );
    for ( int i = 0; i < 25; i++ ) {
        puppet_ask( &full );
        puppet_ask( &consumed );
        puppet_ask( &forged );
        puppet_ask( &foreign );
        puppet_ask( &expired );
        puppet_ask( &in ); /* its own request, late: nothing is wrong with that */
        puppet_keep_alive( &in );
        world_run( w, 0.1 );
    }
    CHECK_EQ( logged_times( "server kept 10.2.0.2:6000 out: the server has no free slot: the client was denied" ), 3 );
    CHECK_EQ( logged_times( "server kept 10.2.0.1:6001 out: the connect token has connected someone already" ), 3 );
    CHECK_EQ( logged_times( "server kept 10.2.0.3:6000 out: the connect token was not sealed with any" ), 3 );
    CHECK_EQ( logged_times( "server kept 10.2.0.4:6000 out: the request's protocol id is not this server's" ), 3 );
    CHECK_EQ( logged_times( "server kept 10.2.0.5:6000 out: the connect token has expired" ), 3 );
    CHECK_EQ( logged_times( "server kept 10.2.0.1:6000 out" ), 0 );
    CHECK_EQ( logged_times( "(and 0 such requests before it)" ), 5 );
    CHECK_EQ( logged_times( "server kept " ), 15 );
}

/* Why a client disconnected is logged in words. */
TEST( the_log_says_in_words_why_a_client_left )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_INFO );
    struct recipe_t r;
    w->server_config.replace_existing_clients = 1;
    world_add_server( w, 2 );
    world_add_client( w );
    world_add_client( w );
    REQUIRE( world_join( w, 0, 1 ) );
    netcode_client_disconnect( w->clients[0] );
    world_run( w, 0.1 );
    CHECK_EQ( logged_times( "client 1 at 10.1.0.1:50000 disconnected from slot 0: it disconnected" ), 1 );
    REQUIRE( world_join( w, 0, 2 ) );
    netcode_server_disconnect_client( w->servers[0], 0 );
    CHECK_EQ( logged_times( "disconnected from slot 0: the server disconnected it" ), 1 );
    world_run( w, 0.1 );
    REQUIRE( world_join( w, 0, 3 ) );
    r = recipe_for( w, 3 );
    r.expire++;
    world_connect_recipe( w, 1, &r );
    REQUIRE( world_until( w, 1, NETCODE_CLIENT_STATE_CONNECTED, 2.0 ) );
    CHECK_EQ( logged_times( "disconnected from slot 0: a newer token of the same client took over" ), 1 );
    w->cut_from = w->client_addresses[1];
    world_run( w, 6.0 );
    CHECK_EQ( logged_times( "disconnected from slot 0: it timed out" ), 1 );
    CHECK_EQ( logged_times( "reason" ), 0 );
}

/* The nine further packets of a goodbye are not worth a line at DEBUG; a tenth one from there is. */
TEST( the_log_is_quiet_about_goodbyes )
{
    struct world_t * w = logged_world( NETCODE_LOG_LEVEL_DEBUG );
    struct puppet_t p;
    world_add_server( w, 2 );
    REQUIRE( puppet_join( &p, w, 0, 1, "10.2.0.1:6000" ) );
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    puppet_ask( &p ); /* a late copy of its request: nobody is kept out */
    world_step( w );
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_TOKEN_CONSUMED ), 1 );
    CHECK_EQ( logged_times( "server kept" ), 0 );
    logged_lines[0] = 0;
    for ( int i = 0; i < 10; i++ )
        puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( server_drops( w, 0, NETCODE_DROP_UNKNOWN_ADDRESS ), 9 );
    CHECK_EQ( logged_times( "server dropped" ), 0 );
    puppet_send( &p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
    world_step( w );
    CHECK_EQ( logged_times( "bytes from 10.2.0.1:6000: no client or handshake is known" ), 1 );
}

/* The operator's log names refusals that keep a player out, and no others. */
TEST( which_refusals_keep_a_player_out )
{
    static const int rows[] = {
        NETCODE_DROP_REQUEST_OLD_VERSION,  NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID,
        NETCODE_DROP_TOKEN_EXPIRED,        NETCODE_DROP_TOKEN_MAYBE_USED,
        NETCODE_DROP_TOKEN_REFUSED_UP_TO,  NETCODE_DROP_TOKEN_CONSUMED,
        NETCODE_DROP_TOKEN_NO_RECORD_FREE, NETCODE_DROP_TOKEN_NOT_AUTHENTIC,
        NETCODE_DROP_TOKEN_MALFORMED,      NETCODE_DROP_SERVER_FULL,
        NETCODE_DROP_NOT_ADMITTED,
    };
    struct world_t * w = world_open( CLEAN, 1, 4, 0 );
    struct netcode_address_t from = address_of( "10.2.0.1:6000" );
    int reason, i, keeps_out;
    for ( reason = 0; reason < NETCODE_DROP_REASONS; reason++ ) {
        for ( i = keeps_out = 0; i < (int) ( sizeof( rows ) / sizeof( rows[0] ) ); i++ )
            keeps_out |= rows[i] == reason;
        CHECK_EQ( nc_server_refuses_player( w->servers[0], reason, &from ), keeps_out );
    }
}

/* A token for another server: the log names both, whether each has one name or more. */
TEST( corners_wrong_servers_in_the_log )
{
    static const char * const names[] = { "10.9.9.9:9" };
    int many;
    for ( many = 0; many < 2; many++ ) {
        struct world_t * w = world_new( CLEAN );
        struct puppet_t p;
        w->server_config.public_addresses = names;
        w->server_config.num_public_addresses = many;
        world_add_server( w, 2 );
        puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
        p.r.private_count = 1 + many;
        p.r.private_addresses[0] = address_of( "10.8.8.8:8" );
        p.r.private_addresses[1] = address_of( "10.8.8.9:8" );
        puppet_mint( &p );
        netcode_log_level( NETCODE_LOG_LEVEL_INFO );
        CHECK( !puppet_challenged( &p ) );
        CHECK( strstr( w->server_parties[0].line, "10.8.8.8:8" ) != NULL );
        CHECK_EQ( strstr( w->server_parties[0].line, "others" ) != NULL, many );
        CHECK_EQ( strstr( w->server_parties[0].line, "other names" ) != NULL, many );
        netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
    }
}

/* ---- 50: malformed text in the log ---- */

/* 50: whatever stands in tokens and packets, log lines hold printable characters only. */
static int log_dirty;

static void log_check( void * context, int level, const char * text )
{
    const char * p;
    (void) level;
    (void) context;
    test_log_lines++;
    for ( p = text; *p; p++ )
        log_dirty += (unsigned char) *p < 32 || (unsigned char) *p > 126;
}

TEST( hostile_50_control_characters_do_not_reach_the_log )
{
    struct world_t * w = world_new( CLEAN );
    struct puppet_t p;
    uint8_t data[REQUEST_BYTES];
    struct netcode_connect_token_info_t info;
    int i, j;
    log_dirty = 0;
    w->server_config.log_callback = log_check;
    w->client_config.log_callback = log_check;
    netcode_log_level( NETCODE_LOG_LEVEL_DEBUG );
    world_add_server( w, 2 );
    world_add_client( w );
    puppet_make( &p, w, 0, 1, "10.2.0.1:6000" );
    for ( i = 0; i < 256; i++ ) {
        struct recipe_t r = recipe_for( w, 1 );
        memset( data, i, sizeof( data ) );
        data[0] = 0;
        puppet_raw( &p, data, REQUEST_BYTES );
        memset( data, i, sizeof( data ) );
        puppet_raw( &p, data, 60 );
        world_step( w );
        memset( r.version, i, sizeof( r.version ) );
        world_connect_recipe( w, 0, &r );
        (void) netcode_connect_token_info( w->tokens[0], &info );
        CHECK( memchr( info.version, 0, sizeof( info.version ) ) != NULL );
        for ( j = 0; info.version[j]; j++ )
            CHECK( info.version[j] >= 32 && info.version[j] < 127 );
        world_step( w );
    }
    CHECK_EQ( log_dirty, 0 );
    CHECK_GE( test_log_lines, 256 );
    netcode_log_level( NETCODE_LOG_LEVEL_ERROR );
}

static int printed_lines, printed_dirty;

static int printed( const char * format, ... )
{
    char text[2048];
    const char * p;
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    printed_lines++;
    for ( p = text; *p && !( *p == '\n' && p[1] == 0 ); p++ ) /* the line's own end */
        printed_dirty += (unsigned char) *p < 32 || (unsigned char) *p > 126;
    return 1;
}

TEST( threat_50_strange_addresses_in_the_log )
{
    struct netcode_server_config_t server;
    struct netcode_client_config_t client;
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int byte, lines;
    netcode_default_server_config( &server );
    netcode_default_client_config( &client );
    netcode_set_printf_function( printed );
    printed_lines = printed_dirty = 0;
    for ( byte = 1; byte < 256; byte++ ) {
        char text[] = "10.0.0.1:4?";
        const char * names[1];
        text[10] = (char) byte;
        if ( byte >= '0' && byte <= '9' )
            continue; /* a good address */
        names[0] = text;
        lines = printed_lines;
        CHECK( netcode_client_create( text, &client, 0.0 ) == NULL );
        CHECK( netcode_server_create( text, &server, 0.0 ) == NULL );
        CHECK_EQ( netcode_generate_connect_token( 1, names, names, 30, 5, 1, 1, world_key, NULL, token ),
                  NETCODE_ERROR );
        CHECK_GE( printed_lines - lines, 3 );
    }
    netcode_set_printf_function( test_printf );
    CHECK_EQ( printed_dirty, 0 );
}
