/*  Story: what is promised of events and of loopback clients. */

/* The next event is this one; its payload (`bytes` above 0, filled by `tag`) is freed. Returns its session. */
static uint64_t promise_event( int type, int slot, uint64_t id, int reason, int bytes, int tag, uint64_t sequence )
{
    struct netcode_event_t e;
    uint8_t expected[NETCODE_MAX_PACKET_SIZE];
    memset( &e, 0x77, sizeof( e ) );
    REQUIRE_EQ( netcode_server_next_event( ps, &e ), 1 );
    EQ( e.type, type ), EQ( e.client_index, slot ), EQ( e.client_id, id ), CHECK_NE( e.session, 0 );
    if ( type == NETCODE_EVENT_DISCONNECTED )
        EQ( e.reason, reason );
    if ( type == NETCODE_EVENT_PAYLOAD ) {
        payload_fill( expected, bytes, tag );
        REQUIRE_EQ( e.bytes, bytes );
        CHECK_MEM( e.data, expected, bytes ), EQ( e.sequence, sequence ), EQ( (uintptr_t) e.data % 16, 0 );
        netcode_server_free_packet( ps, e.data );
    }
    return e.session;
}

static void promise_no_event( void )
{
    struct netcode_event_t e;
    EQ( netcode_server_next_event( ps, &e ), 0 );
}

/*  "Takes the next event of all clients, in their true order: 1, or 0 when there is none." "never repeats in one server [...],
    whoever uses the slot". Each kind, of each family and of a loopback client, each reason, over a stop and a start. */
TEST( promise_events_in_their_true_order )
{
    uint64_t session[4], seen[4], sequence;
    uint8_t data[12];
    int round, i;
    payload_fill( data, 12, 9 ), memset( seen, 0, sizeof( seen ) );
    promise_world()->server_config.events = 1, promise_open( 4, 0 );
    for ( round = 0; round < 3; round++ ) {
        promise_crowd( 3 ), sequence = pp[0].sequence;
        puppet_say( &pp[2], 20, 1 ), puppet_say( &pp[0], 21, 2 ), puppet_say( &pp[2], 22, 3 ),
            puppet_say( &pp[1], 23, 4 );
        world_step( pw ), netcode_server_connect_loopback_client( ps, 3, 44, NULL );
        netcode_server_process_loopback_packet( ps, 3, data, 12, 555 ), promise_leave( &pp[1] );
        netcode_server_disconnect_client( ps, 0 ), netcode_server_disconnect_loopback_client( ps, 3 );
        for ( i = 0; i < 3; i++ )
            session[i] = promise_event( NETCODE_EVENT_CONNECTED, i, 1001 + (uint64_t) i, 0, 0, 0, 0 );
        EQ( promise_event( NETCODE_EVENT_PAYLOAD, 2, 1003, 0, 20, 1, sequence ), session[2] );
        EQ( promise_event( NETCODE_EVENT_PAYLOAD, 0, 1001, 0, 21, 2, sequence ), session[0] );
        EQ( promise_event( NETCODE_EVENT_PAYLOAD, 2, 1003, 0, 22, 3, sequence + 1 ), session[2] );
        EQ( promise_event( NETCODE_EVENT_PAYLOAD, 1, 1002, 0, 23, 4, sequence ), session[1] );
        session[3] = promise_event( NETCODE_EVENT_CONNECTED, 3, 44, 0, 0, 0, 0 );
        EQ( promise_event( NETCODE_EVENT_PAYLOAD, 3, 44, 0, 12, 9, 555 ), session[3] );
        EQ( promise_event( NETCODE_EVENT_DISCONNECTED, 1, 1002, BY_CLIENT, 0, 0, 0 ), session[1] );
        EQ( promise_event( NETCODE_EVENT_DISCONNECTED, 0, 1001, BY_SERVER, 0, 0, 0 ), session[0] );
        EQ( promise_event( NETCODE_EVENT_DISCONNECTED, 3, 44, BY_SERVER, 0, 0, 0 ), session[3] ), promise_no_event();
        world_run( pw, 5.2 );
        EQ( promise_event( NETCODE_EVENT_DISCONNECTED, 2, 1003, BY_TIMEOUT, 0, 0, 0 ), session[2] );
        promise_no_event();
        for ( i = 0; i < 4; i++ )
            CHECK( session[i] != seen[0] && session[i] != seen[1] && session[i] != seen[2] && session[i] != seen[3] );
        memcpy( seen, session, sizeof( seen ) ), netcode_server_start( ps, 4 + round ), promise_no_event();
    }
}

/* ---- loopback ---- */

/*  "a client in the same process takes a slot without a handshake [...] `user_data` may be NULL." Each payload is one callback with
    the slot, the bytes and the sequence; nothing is sent; it never times out; a slot that is taken is given to no
    other. */
TEST( promise_loopback_clients )
{
    struct netcode_server_client_stats_t s;
    uint8_t data[33], user_data[NETCODE_USER_DATA_BYTES], zero[NETCODE_USER_DATA_BYTES] = { 0 };
    uint64_t next;
    int i, mark;
    memset( promise_looped, 0, sizeof( promise_looped ) );
    payload_fill( data, 33, 1 ), payload_fill( user_data, NETCODE_USER_DATA_BYTES, 2 );
    promise_world()->server_parties[0].on_loopback = promise_loop, promise_open( 6, 1 );
    netcode_server_connect_loopback_client( ps, 4, UINT64_MAX, user_data );
    netcode_server_connect_loopback_client( ps, 2, 20, NULL );
    EQ( PARTY.log_count, 3 ), EQ( PARTY.log[1][0], 4 ), EQ( PARTY.log[2][0], 2 );
    TOLERATE( netcode_server_connect_loopback_client( ps, 0, 5, NULL ) );
    promise_is( &pp[0] );
    TOLERATE( netcode_server_connect_loopback_client( ps, 4, 5, NULL ) );
    TOLERATE( netcode_server_disconnect_loopback_client( ps, 0 ) );
    promise_is( &pp[0] ), EQ( ASK( id, 4 ) == UINT64_MAX, 1 ), EQ( ASK( id, 2 ), 20 );
    CHECK_MEM( ASK( user_data, 4 ), user_data, NETCODE_USER_DATA_BYTES );
    CHECK_MEM( ASK( user_data, 2 ), zero, NETCODE_USER_DATA_BYTES ), mark = pw->records.count;
    for ( i = 0; i < 4; i++ ) {
        next = netcode_server_next_packet_sequence( ps, 4 ), netcode_server_send_packet( ps, 4, data, 30 + i );
        EQ( promise_looped[4], i + 1 ), EQ( promise_looped[2], 0 ), EQ( promise_loop_bytes, 30 + i );
        EQ( promise_loop_sequence[4], next ), EQ( netcode_server_next_packet_sequence( ps, 4 ), next + 1 );
    }
    netcode_server_process_loopback_packet( ps, 2, data, 33, 70 ),
        netcode_server_process_loopback_packet( ps, 4, data, 32, 71 );
    EQ( STATS.packets_queued, 2 ), promise_read( 4, 32, 1, 71 ), promise_read( 2, 33, 1, 70 );
    world_run( pw, 4.5 ), puppet_keep_alive( &pp[0] ), world_run( pw, 4.5 );
    EQ( world_count( pw, mark, &pw->server_addresses[0], NULL, NETCODE_PACKET_PAYLOAD, 0 ), 0 );
    EQ( promise_looped[4] + promise_looped[2], 4 ), EQ( netcode_server_num_connected_clients( ps ), 3 );
    for ( i = 2; i <= 4; i += 2 ) {
        s = promise_slot( i ), EQ( s.loopback, 1 ), EQ( s.client_id == ASK( id, i ), 1 ), EQ( s.packets_queued, 0 );
        EQ( s.packets_sent, i == 4 ? 4 : 0 ), EQ( s.packets_received, 1 ), EQ( s.packets_dropped, 0 );
        EQ( s.session, ASK( session, i ) ), CHECK_NEAR( s.seconds_connected, 9.0, 1e-6 ), EQ( ASK( loopback, i ), 1 );
    }
    EQ( promise_slot( 2 ).bytes_received, 33 ), EQ( promise_slot( 4 ).bytes_received, 32 );
    for ( i = 0; i < 258; i++ )
        netcode_server_process_loopback_packet( ps, 2, data, 33, (uint64_t) i );
    EQ( promise_slot( 2 ).packets_dropped, 2 ), EQ( promise_slot( 2 ).packets_received, 257 ),
        EQ( promise_slot( 4 ).packets_dropped, 0 );
    promise_drops( D( QUEUE_FULL ), 2, D( NONE ) ), EQ( server_drain( pw, 0, 2 ), 256 );
    TOLERATE( netcode_server_connect_loopback_client( ps, 5, 1001, NULL ) ); /* an id is connected at most once */
    TOLERATE( netcode_server_connect_loopback_client( ps, 5, 20, NULL ) );
    promise_nobody( 5, BY_NOBODY ), netcode_server_disconnect_loopback_client( ps, 4 );
    promise_nobody( 4, BY_SERVER ), EQ( ASK( id, 2 ), 20 ), promise_is( &pp[0] );
    netcode_server_stop( ps ); /* "Disconnects everyone" */
    EQ( PARTY.log_count, 6 ), EQ( STATS.disconnects[BY_SERVER], 3 );
}
