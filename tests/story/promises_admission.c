/*  Story: what is promised of which clients are accepted: tokens, keys, handshakes, their limits and ends, and every
    refusal. */

static struct netcode_address_t promise_dropped_from;
static int promise_dropped_bytes, promise_dropped_as, promise_drop_calls;

static void promise_drop( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    world_drop_callback( context, reason, from, bytes ), promise_dropped_from = *from, promise_dropped_bytes = bytes;
    promise_dropped_as = reason;
    promise_drop_calls++;
}

static void promise_watch_drops( void )
{
    promise_world()->server_config.drop_callback = promise_drop;
    promise_drop_calls = promise_dropped_as = 0;
}

/* Only this was dropped since the last look (D( NONE ): nothing), once, and it came from this player. */
static void promise_refused( const struct puppet_t * p, int reason, int bytes )
{
    EQ( promise_drop_calls, reason != D( NONE ) ), EQ( promise_dropped_as, reason );
    if ( reason != D( NONE ) )
        EQ( promise_dropped_bytes, bytes ), CHECK( same_address( &promise_dropped_from, &p->address ) );
    promise_drop_calls = promise_dropped_as = 0;
}

static struct puppet_t * promise_new( int i, uint64_t id, const char * place )
{
    puppet_make( &pp[i], pw, 0, id, place );
    return &pp[i];
}

/* With what the test has changed in the recipe: is it connected then? */
static int promise_try( struct puppet_t * p )
{
    puppet_mint( p );
    return puppet_connect( p );
}

static void promise_leave( struct puppet_t * p )
{
    puppet_send( p, NETCODE_PACKET_DISCONNECT, NULL, 0 ), world_step( pw );
}

/* "a token is expired when its timestamp is <= now"; "UINT64_MAX: never". */
TEST( promise_a_token_expires_to_the_second )
{
    promise_open( 4, 0 ), promise_new( 0, 1, promise_places[0] )->r.expire = world_unix( pw ) + 10;
    promise_new( 1, 2, promise_places[1] )->r.expire = world_unix( pw ) + 10;
    promise_new( 2, 3, promise_places[2] )->r.expire = UINT64_MAX, world_run( pw, 9.9 );
    EQ( promise_try( &pp[0] ), 1 ), world_run( pw, 0.1 );
    EQ( world_unix( pw ), pp[1].r.expire ), EQ( promise_try( &pp[1] ), 0 ), EQ( promise_try( &pp[2] ), 1 );
    promise_drops( D( TOKEN_EXPIRED ), 1, D( NONE ) );
}

/*  max_connect_token_lifetime: "Positive: tokens that expire before start + this are refused, as they may have been used before.
    0 or less: not used while sequences start at random, else 30." NETCODE_SEQUENCE_BASE_ZERO: "at zero". */
TEST( promise_max_connect_token_lifetime )
{
    static const int rows[][3] = { { 60, 0, 60 }, { 60, 1, 60 }, { 0, 0, 0 },
                                   { 0, 1, 30 },  { -5, 0, 0 },  { -5, 1, 30 } };
    int i, start;
    for ( i = 0; i < 6; i++ ) {
        promise_world()->server_config.max_connect_token_lifetime = rows[i][0], CONFIG.sequence_base = rows[i][1];
        promise_open( 4, 0 );
        for ( start = 0; start < 2; start++ ) { /* from each start on */
            uint64_t now = world_unix( pw );
            promise_new( 0, 1, promise_places[0] )->r.expire = now + (uint64_t) rows[i][2] + ( rows[i][2] ? 0 : 2 );
            promise_new( 1, 2, promise_places[1] )->r.expire = now + (uint64_t) rows[i][2] - 1;
            EQ( promise_try( &pp[0] ), 1 ), EQ( promise_try( &pp[1] ), 0 );
            EQ( netcode_server_next_packet_sequence( ps, 0 ) < 4, rows[i][1] );
            EQ( server_drops( pw, 0, rows[i][2] ? D( TOKEN_MAYBE_USED ) : D( TOKEN_EXPIRED ) ), start + 1 );
            netcode_server_stop( ps ), world_run( pw, 7.0 ), netcode_server_start( ps, 4 );
        }
    }
}

/*  drop_callback: "see NETCODE_DROP_LIST; `from` is valid during the call". Each refusal that one datagram can bring about,
    from addresses of both families, with its size; and none gets an answer. */
TEST( promise_each_refusal_is_reported )
{
    /* clang-format off */
    static const int rows[][2] = {
        { D( EMPTY_DATAGRAM ), 0 }, { D( OVERSIZED_DATAGRAM ), 1226 }, { D( SOURCE_PORT_ZERO ), 1078 }, { D( TOO_SMALL ), 17 },
        { D( UNKNOWN_PACKET_TYPE ), 100 }, { D( WRONG_DIRECTION ), 333 }, { D( BAD_SEQUENCE_LENGTH ), 100 },
        { D( WRONG_BODY_SIZE ), 28 }, { D( UNKNOWN_ADDRESS ), 100 }, { D( NOT_CONNECTED ), 100 }, { D( AUTHENTICATION_FAILED ), 38 },
        { D( REQUEST_WRONG_SIZE ), 1077 }, { D( REQUEST_OLD_VERSION ), 1062 }, { D( REQUEST_WRONG_VERSION ), 1078 },
        { D( REQUEST_WRONG_PROTOCOL_ID ), 1078 }, { D( TOKEN_NOT_AUTHENTIC ), 1078 }, { D( TOKEN_MALFORMED ), 1078 } };
    /* clang-format on */
    int i, j;
    promise_watch_drops(), promise_open( 4, 2 );
    for ( i = 0; i < 17; i++ ) {
        struct puppet_t * p = promise_new( 2, 50 + (uint64_t) i, promise_places[i % 2 ? 3 : 4] );
        uint8_t data[2048] = { 0 };
        int what = rows[i][0], mark;
        p->address.port = what == D( SOURCE_PORT_ZERO ) ? 0 : p->address.port;
        if ( what == D( NOT_CONNECTED ) )
            REQUIRE( puppet_challenged( p ) );
        if ( what == D( WRONG_BODY_SIZE ) || what == D( AUTHENTICATION_FAILED ) )
            p->address = pp[1].address; /* a connected player's */
        p->r.version[11] = what == D( REQUEST_OLD_VERSION ) ? '1' : what == D( REQUEST_WRONG_VERSION ) ? '3' : '2';
        p->r.protocol_id ^= what == D( REQUEST_WRONG_PROTOCOL_ID ) ? (uint64_t) 1 << 63 : 0;
        p->r.private_count = what == D( TOKEN_MALFORMED ) ? 33 : 1, puppet_mint( p );
        memcpy( data, p->request, REQUEST_BYTES ), data[REQUEST_BYTES - 1] ^= what == D( TOKEN_NOT_AUTHENTIC );
        if ( rows[i][1] < 1000 || what == D( OVERSIZED_DATAGRAM ) )
            data[0] = what == D( UNKNOWN_PACKET_TYPE )   ? 0x17
                      : what == D( WRONG_DIRECTION )     ? 0x12
                      : what == D( BAD_SEQUENCE_LENGTH ) ? 0x95
                                                         : 0x15;
        if ( what == D( WRONG_BODY_SIZE ) )
            wire_seal( data, NETCODE_PACKET_KEEP_ALIVE, pp[1].sequence++, 0, pp[1].r.to_server_key, p->request, 9 );
        if ( what == D( AUTHENTICATION_FAILED ) )
            wire_seal( data, NETCODE_PACKET_PAYLOAD, pp[1].sequence, 0, pp[0].r.to_server_key, p->request, 19 );
        mark = pw->records.count, promise_drop_calls = promise_dropped_as = 0, puppet_raw( p, data, rows[i][1] );
        netcode_server_update( ps, pw->time ), promise_refused( p, what, rows[i][1] );
        EQ( pw->records.count, mark + 1 );
        if ( what == D( NOT_CONNECTED ) )
            world_run( pw, 5.1 ), promise_crowd( 2 );
    }
    for ( i = 0; i < NETCODE_DROP_REASONS; i++ ) /* "each with a name and a sentence" */
        for ( j = 0; j < i; j++ )
            CHECK( strcmp( netcode_drop_reason_name( i ), netcode_drop_reason_name( j ) ) != 0 ),
                CHECK( strcmp( netcode_drop_reason_text( i ), netcode_drop_reason_text( j ) ) != 0 );
}

/*  "the connect token has connected someone already", "a client is connected from this address already", "a client with this id is
    connected already", "the server has no free slot: the client was denied". One id "connected at most once on a server". */
TEST( promise_a_token_an_address_an_id_and_a_slot_are_used_once )
{
    struct recipe_t used;
    promise_watch_drops(), promise_open( 3, 2 ), used = pp[1].r;
    promise_new( 2, 7, promise_places[4] )->r = used; /* the same token from elsewhere, while connected ... */
    EQ( promise_try( &pp[2] ), 0 ), promise_refused( &pp[2], D( TOKEN_CONSUMED ), 1078 );
    EQ( promise_try( promise_new( 2, 1002, promise_places[4] ) ), 0 );
    promise_refused( &pp[2], D( CLIENT_ID_CONNECTED ), 1078 );
    EQ( promise_try( promise_new( 2, 7, promise_places[1] ) ), 0 );
    promise_refused( &pp[2], D( ADDRESS_CONNECTED ), 1078 );
    REQUIRE( puppet_challenged( promise_new( 3, 8, promise_places[5] ) ) ); /* pending when the last slot is taken */
    EQ( promise_try( promise_new( 2, 7, promise_places[4] ) ), 1 ), promise_refused( NULL, D( NONE ), 0 );
    puppet_respond( &pp[3] ), puppet_step( &pp[3] ), EQ( pp[3].denials, 1 ), EQ( pp[3].keep_alives, 0 );
    promise_refused( &pp[3], D( SERVER_FULL ), 1 + 2 + 308 + 16 );
    EQ( puppet_challenged( promise_new( 4, 9, promise_places[6] ) ), 0 ), EQ( pp[4].newest_sequence >> 63, 1 ),
        EQ( pp[3].challenge_packet_sequence >> 63, 1 ), EQ( pp[4].denials, 1 );
    promise_refused( &pp[4], D( SERVER_FULL ), 1078 ), promise_leave( &pp[1] );
    promise_new( 1, 7, promise_places[1] )->r = used; /* ... and afterwards, from its own address too */
    EQ( promise_try( &pp[1] ), 0 ), promise_refused( &pp[1], D( TOKEN_CONSUMED ), 1078 );
    EQ( promise_try( promise_new( 1, 1002, promise_places[1] ) ), 1 ), promise_is( &pp[1] );
    EQ( STATS.consumed, 4 ), EQ( STATS.connects, 4 );
}

static struct {
    void * context;
    uint64_t id, expire;
    uint8_t tag[16];
    int calls, answer;
} promise_asked;

static int promise_admit( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp )
{
    promise_asked.context = context, promise_asked.id = client_id, promise_asked.expire = expire_timestamp;
    memcpy( promise_asked.tag, token_tag, 16 );
    promise_asked.calls++;
    if ( promise_asked.answer < 0 ) /* the last slot is gone while it is asked */
        netcode_server_connect_loopback_client( ps, netcode_server_num_connected_clients( ps ), 99, NULL );
    return promise_asked.answer != 0;
}

/* "Asked last before a client gets its slot: 1 lets it in, 0 denies it." With the id, the token's tag and its expiry. */
TEST( promise_admit_callback )
{
    int i;
    promise_watch_drops(), CONFIG.admit_callback = promise_admit;
    promise_open( 2, 0 ), memset( &promise_asked, 0, sizeof( promise_asked ) );
    for ( i = 0; i < 3; i++ ) {
        struct puppet_t * p = promise_new( i, 0xfedcba9800000000u + (uint64_t) i, promise_places[i] );
        p->r.expire += (uint64_t) i * 100, puppet_mint( p );
        REQUIRE( puppet_challenged( p ) );
        EQ( promise_asked.calls, i ); /* not before its challenge is answered */
        promise_asked.answer = i != 1, puppet_respond( p ), puppet_step( p );
        EQ( promise_asked.calls, i + 1 ), EQ( promise_asked.id, p->r.client_id ),
            EQ( promise_asked.expire, p->r.expire );
        CHECK_MEM( promise_asked.tag, p->request + REQUEST_BYTES - 16, 16 );
        CHECK( promise_asked.context == &pw->server_parties[0] );
        EQ( p->keep_alives, i != 1 ), EQ( p->denials, i == 1 );
        promise_refused( p, i == 1 ? D( NOT_ADMITTED ) : D( NONE ), 1 + 2 + 308 + 16 );
    }
    promise_is( &pp[0] ), promise_is( &pp[2] ), EQ( netcode_server_num_connected_clients( ps ), 2 );
    EQ( STATS.consumed, 2 ), EQ( PARTY.log_count, 2 ), puppet_challenged( promise_new( 3, 5, promise_places[3] ) );
    EQ( promise_asked.calls, 3 ), EQ( pp[3].denials, 1 ); /* a full server is one without asking */
    promise_leave( &pp[2] );
    for ( i = 0; i > -2;
          i-- ) { /* "May be asked again for the same client: 4 times at once": all responses, until one is let in */
        REQUIRE( puppet_challenged( promise_new( 4, (uint64_t) ( 70 - i ), promise_places[4] ) ) );
        promise_asked.calls = 0, promise_asked.answer = i;
        while ( pp[4].sequence < 1010 )
            puppet_respond( &pp[4] );
        puppet_step( &pp[4] ), EQ( promise_asked.calls, i ? 1 : 4 ),
            EQ( pp[4].denials, 3 ); /* with the challenge: 4 answers */
        EQ( pp[4].keep_alives, 0 );
    }
    EQ( ASK( loopback, 1 ), 1 ), EQ( netcode_server_num_connected_clients( ps ), 2 );
}

/*  replace_existing_clients: "a newer token with a connected client's id takes over its slot"; "REPLACED: the same client id came
    back with a newer token". On a full server, from elsewhere and from its own address; the neighbour stays. */
TEST( promise_replace_existing_clients )
{
    struct netcode_event_t e;
    struct puppet_t old, *now = &pp[1];
    uint64_t session;
    int round, slot, i;
    promise_world()->server_config.replace_existing_clients = 1;
    pw->server_config.events = 1, promise_open( 3, 3 ), slot = (int) now->client_index;
    puppet_make( &old, pw, 0, 1002, promise_places[5] ), old.r.expire -= 1; /* older than the one that is connected */
    EQ( promise_try( &old ), 0 ), EQ( old.denials, 0 );
    EQ( promise_try( promise_new( 3, 1002, promise_places[0] ) ), 0 ); /* from another client's address */
    promise_drops( D( CLIENT_ID_CONNECTED ), 1, D( ADDRESS_CONNECTED ), 1, D( NONE ) );
    for ( round = 1; round <= 2; round++ ) {
        old = *now, session = ASK( session, slot ), puppet_say( now, 10, round ), world_step( pw );
        while ( netcode_server_next_event( ps, &e ) )
            if ( e.type == NETCODE_EVENT_PAYLOAD )
                netcode_server_free_packet( ps, e.data );
        promise_new( 1, 1002, promise_places[6] )->r.expire = old.r.expire + (uint64_t) round - 1; /* no earlier */
        REQUIRE( promise_try( now ) );
        puppet_keep_alive( now ), world_step( pw );
        EQ( (int) now->client_index, slot ), promise_is( &pp[0] ), promise_is( now ), promise_is( &pp[2] );
        CHECK_NE( ASK( session, slot ), session ), puppet_poll( &old ), EQ( old.disconnects, 10 );
        EQ( PARTY.log_count, 3 + 2 * round );
        for ( i = 0; i < 2; i++ ) {
            EQ( PARTY.log[1 + 2 * round + i][0], slot ), EQ( PARTY.log[1 + 2 * round + i][1], i );
            REQUIRE( netcode_server_next_event( ps, &e ) );
            EQ( e.type, i ? NETCODE_EVENT_CONNECTED : NETCODE_EVENT_DISCONNECTED ), EQ( e.client_index, slot );
            EQ( e.session == session, !i ), EQ( e.client_id, 1002 ), EQ( e.reason, i ? 0 : BY_REPLACEMENT );
        }
        EQ( STATS.disconnects[BY_REPLACEMENT], round ), EQ( STATS.clients, 3 );
    }
    EQ( STATS.connects, 5 ), EQ( netcode_server_next_event( ps, &e ), 0 ), netcode_server_disconnect_client( ps, 0 );
    EQ( promise_try( promise_new( 2, 1003, promise_places[7] ) ), 1 ), EQ( pp[2].client_index, 2 ),
        promise_is( &pp[2] ); /* not 0 */
}

/*  "`count` (1..4) keys, one behind the other [...] Effective at once: handshakes under a key that is gone end, connected clients
    stay. NETCODE_OK or NETCODE_ERROR." Digits: which of keys 0 (the config's) to 4 the server is given; what connects then. Key 5 is
    all zeros. */
TEST( promise_set_private_keys )
{
    static const char * const rows[] = { "0", "10", "1", "4321", "2", "0" };
    uint8_t keys[6][NETCODE_KEY_BYTES], given[4 * NETCODE_KEY_BYTES];
    struct puppet_t pending[6];
    int row, key, i, opened = 0, id = 1;
    memcpy( keys[0], world_key, NETCODE_KEY_BYTES ), ledger_random_bytes( keys[1], 4 * NETCODE_KEY_BYTES ),
        memset( keys[5], 0, NETCODE_KEY_BYTES );
    promise_open( 40, 1 );
    for ( row = 0; row < 6; row++ ) {
        int count = (int) strlen( rows[row] ), stay = 0, before[6];
        for ( key = 0; key < 6; key++ ) { /* one handshake under each key that there was */
            puppet_make( &pending[key], pw, 0, 5000 + (uint64_t) id++, promise_places[key] );
            pending[key].address.port = (uint16_t) ( 9000 + id );
            memcpy( pending[key].r.private_key, keys[key], NETCODE_KEY_BYTES ), puppet_mint( &pending[key] );
            EQ( before[key] = puppet_challenged( &pending[key] ),
                row == 0 ? key == 0 : strchr( rows[row - 1], '0' + key ) != NULL );
        }
        for ( i = 0; i < count; i++ )
            memcpy( given + i * NETCODE_KEY_BYTES, keys[rows[row][i] - '0'], NETCODE_KEY_BYTES );
        EQ( netcode_server_set_private_keys( ps, given, count ), NETCODE_OK );
        TOLERATE( EQ( netcode_server_set_private_keys( ps, keys[0], 0 ), NETCODE_ERROR ) );
        TOLERATE( EQ( netcode_server_set_private_keys( ps, keys[0], 5 ), NETCODE_ERROR ) );
        for ( key = 0; key < 6; key++ )
            stay += before[key] && strchr( rows[row], '0' + key );
        EQ( STATS.pending, stay );
        for ( key = 0; key < 6; key++ ) {
            if ( before[key] )
                puppet_respond( &pending[key] ), puppet_step( &pending[key] );
            EQ( pending[key].keep_alives > 0, before[key] && strchr( rows[row], '0' + key ) ),
                opened += pending[key].keep_alives > 0;
        }
        puppet_keep_alive( &pp[0] ), world_run( pw, 0.1 ), promise_is( &pp[0] );
        EQ( netcode_server_num_connected_clients( ps ), 1 + opened );
    }
    REQUIRE( puppet_challenged(
        promise_new( 1, 7, promise_places[1] ) ) ); /* its key is given again and again, at another place */
    memcpy( given, keys[1], NETCODE_KEY_BYTES ), memcpy( given + NETCODE_KEY_BYTES, keys[0], NETCODE_KEY_BYTES );
    netcode_server_set_private_keys( ps, given, 2 ), netcode_server_set_private_keys( ps, keys[0], 1 );
    puppet_respond( &pp[1] ), puppet_step( &pp[1] ), promise_is( &pp[1] );
}

/*  pending_handshakes; "4 addresses a token, 4 tokens an address, 4 handshakes a client id. The oldest is evicted; of one client
    id's, the one whose token expires first, which may be the new one (TOKEN_OUTLIVED)". */
TEST( promise_pending_handshakes )
{
    enum { TABLE, ADDRESSES, TOKENS, IDS, OUTLIVED };
    int kind, i;
    for ( kind = TABLE; kind <= OUTLIVED; kind++ ) {
        struct netcode_server_stats_t s;
        struct recipe_t r;
        int gone = kind == IDS ? 2 : kind == OUTLIVED ? 4 : 0;
        promise_world()->server_config.pending_handshakes = kind == TABLE ? 4 : 0, promise_open( 16, 0 );
        r = recipe_for( pw, 1 );
        for ( i = 0; i < 5; i++ ) {
            promise_new( i, kind >= IDS ? 1 : 1 + (uint64_t) i, promise_places[kind == TOKENS ? 1 : i] );
            if ( kind == ADDRESSES )
                pp[i].r = r;
            pp[i].r.expire += kind >= IDS ? (uint64_t) ( i == gone ? 1 : 50 - i ) : 0, puppet_mint( &pp[i] );
            world_run( pw, 0.2 ); /* one token is answered ten times a second, wherever it comes from */
            EQ( puppet_challenged( &pp[i] ), !( kind == OUTLIVED && i == 4 ) );
        }
        s = server_stats( pw, 0 );
        EQ( s.handshakes, kind == OUTLIVED ? 4 : 5 ), EQ( s.handshakes_evicted, kind != OUTLIVED ), EQ( s.pending, 4 );
        EQ( s.handshakes_expired, 0 ), EQ( s.dropped[D( TOKEN_OUTLIVED )], kind == OUTLIVED );
        puppet_respond( &pp[gone] ), puppet_step( &pp[gone] ), EQ( pp[gone].keep_alives, 0 );
        i = gone == 3 ? 2 : 3; /* and of the others, one and all */
        puppet_respond( &pp[i] ), puppet_step( &pp[i] ), EQ( pp[i].keep_alives, 1 ), promise_is( &pp[i] );
        for ( i = 0; i < 3 && kind == TABLE; i++ )
            if ( i != gone )
                puppet_respond( &pp[i] ), puppet_step( &pp[i] ), EQ( pp[i].keep_alives, 1 ), promise_is( &pp[i] );
    }
}

/*  "used tokens remembered: [...] (consumed_tokens), half of them for tokens that never expire [...] When all records are in use, the
    earliest-expiring is forgotten, and all clients' tokens that expire no later are refused." */
TEST( promise_consumed_tokens )
{
    static const int later[] = { 40, 20, 30, 10, 50 };
    int i;
    promise_world()->server_config.consumed_tokens = 8, promise_open( 8, 0 );
    for ( i = 0; i < 5; i++ ) {
        promise_new( i, 1 + (uint64_t) i, promise_places[i] )->r.expire += (uint64_t) later[i];
        EQ( promise_try( &pp[i] ), 1 ), EQ( STATS.consumed, i < 4 ? i + 1 : 4 ), promise_leave( &pp[i] );
    }
    for ( i = 9; i <= 11; i++ ) { /* the one of 10 was forgotten */
        promise_new( 5, 100 + (uint64_t) i, promise_places[5] )->r.expire = pp[3].r.expire + (uint64_t) i - 10;
        EQ( promise_try( &pp[5] ), i == 11 ), EQ( DROPPED( TOKEN_REFUSED_UP_TO ), i == 9 ? 1 : 2 );
    }
    for ( i = 0; i < 3; i++ ) { /* the others are remembered, or (20, for 11's sake) refused as the forgotten one is */
        puppet_ask( &pp[i] ), puppet_step( &pp[i] ), EQ( pp[i].challenges, 1 );
    }
    promise_world()->server_config.consumed_tokens = 8, CONFIG.sequence_base = NETCODE_SEQUENCE_BASE_ZERO;
    promise_open( 8, 0 );
    for ( i = 0; i < 6; i++ ) { /* "one client id can use up their half, and further ones are refused" */
        promise_new( i, i < 5 ? 1 : 2, promise_places[i] )->r.expire = FOREVER;
        EQ( promise_try( &pp[i] ), i < 4 ), promise_leave( &pp[i] );
    }
    EQ( DROPPED( TOKEN_NO_RECORD_FREE ), 2 ), EQ( STATS.consumed, 4 );
    EQ( promise_try( promise_new( 6, 1, promise_places[6] ) ), 1 );
    promise_world()->server_config.consumed_tokens =
        8; /* while sequences start at random, the oldest of them is forgotten */
    promise_open( 8, 0 );
    for ( i = 0; i < 6; i++ )
        promise_new( i, 1, promise_places[i] )->r.expire = FOREVER, EQ( promise_try( &pp[i] ), 1 ),
                                             promise_leave( &pp[i] );
    for ( i = 5; i > 1; i-- )
        puppet_ask( &pp[i] ), world_step( pw ), EQ( DROPPED( TOKEN_CONSUMED ), 6 - i );
    REQUIRE( puppet_challenged(
        promise_new( 7, 7, promise_places[7] ) ) ); /* what is forgotten meanwhile counts for its response too */
    for ( i = 0; i < 5; i++ )
        promise_new( i, 20 + (uint64_t) i, promise_places[i] )->r.expire = pp[7].r.expire + (uint64_t) i,
                                                             EQ( promise_try( &pp[i] ), 1 ), promise_leave( &pp[i] );
    puppet_respond( &pp[7] ), puppet_step( &pp[7] ), EQ( pp[7].keep_alives, 0 ),
        EQ( DROPPED( TOKEN_REFUSED_UP_TO ), 1 );
}

/* "Each ends 10 s after the last answer, or after the token's timeout where that is shorter". */
TEST( promise_each_handshake_ends )
{
    static const int timeouts[] = { 3, 5, 9, 10, 60, 0, -1 }, ends[] = { 3, 5, 9, 10 }, left[] = { 6, 5, 4, 0 };
    int i;
    promise_open( 8, 0 );
    for ( i = 0; i < 7; i++ ) {
        promise_new( i, 1 + (uint64_t) i, promise_places[i] )->r.timeout = timeouts[i], puppet_mint( &pp[i] );
        puppet_ask( &pp[i] );
    }
    world_step( pw );
    for ( i = 0; i < 4; i++ ) {
        world_run( pw, ends[i] - 0.05 - ( pw->time - 100.0 ) ), EQ( STATS.pending, i ? left[i - 1] : 7 );
        world_run( pw, 0.15 ), EQ( STATS.pending, left[i] ), EQ( STATS.handshakes_expired, 7 - left[i] );
    }
    promise_new( 7, 8, promise_places[7] )->r.timeout = 2, puppet_mint( &pp[7] );
    for ( i = 0; i < 4; i++ ) /* each answer counts anew */
        puppet_ask( &pp[7] ), world_run( pw, 1.5 ), EQ( STATS.pending, 1 );
    world_run( pw, 0.6 ), EQ( STATS.pending, 0 );
    for ( i = 0; i < 7; i++ )
        puppet_poll( &pp[i] ), EQ( pp[i].challenges, 1 ), EQ( pp[i].denials + pp[i].disconnects, 0 );
}

/*  "silence for the token's timeout ends the connection"; "timeout_seconds: 0 or less: no timeout". "a slot whose client never
    confirms: the token's timeout, at most 60 s; 10 s where the token has none". "the timeout" sends nothing. */
TEST( promise_each_slot_times_out_by_itself )
{
    static const int timeouts[] = { 7, 2, 4, 0, -1, 70 }, shy[] = { 7, 2, 4, 10, 10, 60 };
    int confirmed, i, second;
    for ( confirmed = 0; confirmed < 2; confirmed++ ) {
        promise_open( 8, 0 );
        for ( i = 0; i < 6; i++ ) {
            promise_new( i, 1 + (uint64_t) i, promise_places[i] )->r.timeout = timeouts[i];
            REQUIRE( promise_try( &pp[i] ) );
        }
        for ( i = 0; i < 6 && confirmed; i++ )
            puppet_keep_alive( &pp[i] );
        world_run( pw, 0.85 );
        for ( second = 0; second < 144; second++ ) { /* shortly before and shortly behind each second */
            for ( i = 0; i < 6; i++ ) {
                int end = confirmed ? ( timeouts[i] > 0 ? timeouts[i] : 1000 ) : shy[i];
                EQ( ASK( connected, i ), ( second + 1 ) / 2 < end );
                EQ( ASK( disconnect_reason, i ), ( second + 1 ) / 2 < end ? 0 : BY_TIMEOUT );
            }
            world_run( pw, second % 2 ? 0.8 : 0.2 );
        }
        EQ( STATS.disconnects[BY_TIMEOUT], confirmed ? 4 : 6 ), EQ( STATS.packets_sent[NETCODE_PACKET_DISCONNECT], 0 );
    }
}

/* "A challenge is valid for the address and the token that it was made for": of two players, neither may use the other's. */
TEST( promise_a_challenge_is_for_one )
{
    uint8_t mine[308];
    int i;
    promise_open( 4, 0 );
    for ( i = 2; i < 6; i++ ) { /* of one id: another token at the same address, the same token at another address */
        promise_new( i, 50 + (uint64_t) i / 4, promise_places[i < 4 ? 1 : i] );
        if ( i == 5 )
            pp[5].r = pp[4].r, puppet_mint( &pp[5] );
        REQUIRE( puppet_challenged( &pp[i] ) );
    }
    for ( i = 3; i < 6; i += 2 ) {
        memcpy( pp[i - 1].challenge, pp[i].challenge, 308 ), puppet_respond( &pp[i - 1] ), puppet_step( &pp[i - 1] );
        EQ( pp[i - 1].keep_alives, 0 ), EQ( DROPPED( CHALLENGE_FOR_ANOTHER ), i / 2 );
    }
    promise_open( 4, 0 );
    for ( i = 0; i < 2; i++ )
        REQUIRE( puppet_challenged( promise_new( i, 1 + (uint64_t) i, promise_places[3 * i] ) ) );
    memcpy( mine, pp[0].challenge, 308 ), memcpy( pp[0].challenge, pp[1].challenge, 308 );
    puppet_respond( &pp[0] ), puppet_step( &pp[0] ), EQ( pp[0].keep_alives, 0 );
    EQ( DROPPED( CHALLENGE_FOR_ANOTHER ) + DROPPED( CHALLENGE_NOT_ISSUED ), 1 );
    memcpy( pp[0].challenge, mine, 308 ), pp[0].challenge[307] ^= 1;
    puppet_respond( &pp[0] ), puppet_step( &pp[0] ), EQ( pp[0].keep_alives, 0 );
    EQ( DROPPED( CHALLENGE_NOT_AUTHENTIC ), 1 ), memcpy( pp[0].challenge, mine, 308 );
    for ( i = 1; i >= 0; i-- )
        puppet_respond( &pp[i] ), puppet_step( &pp[i] ), EQ( pp[i].keep_alives, 1 ), promise_is( &pp[i] );
    REQUIRE( puppet_challenged(
        promise_new( 2, 3, promise_places[2] ) ) ); /* "not issued to this handshake": to one that ended */
    memcpy( mine, pp[2].challenge, 308 ), world_run( pw, 5.1 ), i = (int) DROPPED( CHALLENGE_NOT_ISSUED );
    REQUIRE( puppet_challenged( &pp[2] ) );
    memcpy( pp[2].challenge, mine, 308 ), puppet_respond( &pp[2] ), puppet_step( &pp[2] );
    EQ( pp[2].keep_alives, 0 ), EQ( DROPPED( CHALLENGE_NOT_ISSUED ), i + 1 );
}
