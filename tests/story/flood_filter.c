/*  Floods: what a packet filter in the kernel drops while more arrives than a server can receive. The virtual server of fairness.h says what the players
    hear; here the kernel's program is held against its model, and attacks come over real sockets. Rows 60, 61, 83 to 86 of the table. */

#if !defined( _WIN32 )

#if LINUX_EXTRAS

/* ---- the kernel's program ---- */

enum { FLOOD_SENDERS = 12, FLOOD_PLACES = 4 };

/* Datagrams that are about what the screen, sequences and types decide: every prefix byte, and every size that is next to a limit. */
static int flood_datagram( uint8_t * data, uint64_t newest )
{
    static const int sizes[] = { 0,   1,   17,   18,   19,   25,   26,   27,   33,   34,   325,  326, 327,
                                 333, 334, 1061, 1062, 1063, 1077, 1078, 1079, 1218, 1219, 1225, 1226 };
    int bytes = test_random_below( 3 ) ? sizes[test_random_below( (int) ( sizeof( sizes ) / sizeof( sizes[0] ) ) )]
                                       : test_random_below( FAIR_CELL_BYTES );
    uint64_t sequence = newest + ( (uint64_t) test_random_below( 9 ) << 14 ) - ( 1u << 16 );
    for ( int i = 0; i < 40; i++ )
        data[i] = (uint8_t) test_random_below( 256 );
    if ( test_random_below( 4 ) == 0 ) { /* a packet of an own client */
        int type = NETCODE_PACKET_RESPONSE + test_random_below( 4 ), n = nc_packet_sequence_bytes( sequence );
        data[0] = (uint8_t) ( n << 4 | type );
        nc_store_u64( data + 1, sequence );
        return 1 + n + 16 + nc_packet_rules[type].min_body_bytes;
    }
    if ( test_random_below( 3 ) == 0 )
        data[0] = (uint8_t) ( test_random_below( 9 ) << 4 | test_random_below( 7 ) );
    if ( test_random_below( 8 ) == 0 )
        data[0] = 0;
    return bytes;
}

/* Sender 0 floods itself, others use the address of 1, behind the address of 2 unknown ports do; 1, 4, 7 and 10 are connected. */
static void flood_make_filter( nc_flood_filter_t * filter, const struct netcode_address_t * at, int closed, int roaming,
                               uint64_t newest )
{
    memset( filter, 0, sizeof( *filter ) );
    nc_flood_clear( filter );
    filter->closed = closed;
    filter->roaming = roaming;
    for ( int i = 0; i < 3; i++ ) {
        filter->flooders[2 * i].address = at[i];
        filter->flooders[2 * i].limited = 1 + ( i + closed ) % 2;
    }
    filter->flooders[2].newest = newest;
    filter->flooders[4].address.port = 0;
    memset( &filter->flooders[4].address.data.ipv6[4], 0, at[2].type == NETCODE_ADDRESS_IPV6 ? 8 : 0 );
    filter->flooders[1] = filter->flooders[0]; /* which limits nobody, and one of the other family */
    filter->flooders[1].limited = 0;
    filter->flooders[1].address = at[5];
    filter->flooders[3].address = address_of( at[0].type == NETCODE_ADDRESS_IPV4 ? "[::1]:9" : "127.0.0.1:9" );
    filter->flooders[3].limited = 1;
    filter->flooders[5].address = at[4]; /* with another IP address, which differs in its last bits */
    filter->flooders[5].address.data.ipv4[3] ^= at[4].type == NETCODE_ADDRESS_IPV4 ? 0x40 : 0;
    filter->flooders[5].address.data.ipv6[7] ^= at[4].type == NETCODE_ADDRESS_IPV6 ? 0x40 : 0;
    filter->flooders[5].limited = 1;
    for ( int i = 1; i < FLOOD_SENDERS; i += 3 )
        nc_flood_add( filter, &at[i] );
}

/* Whatever is sent, the kernel passes what the model passes; what chance decides, about as often. */
static void flood_try( const char * const addresses[FLOOD_PLACES], int closed, int roaming, uint64_t newest )
{
    struct netcode_socket_t out;
    struct netcode_address_t at[FLOOD_SENDERS], to;
    int handles[FLOOD_SENDERS], i;
    nc_flood_filter_t filter;
    struct {
        double received, expected, spread;
    } by_share[32] = { { 0.0, 0.0, 0.0 } }; /* by the logarithm of one of how many passes */
    memset( &post, 0, sizeof( post ) );
    post_open_socket( &out, addresses[0], NULL, 1, 0 );
    to = ( (nc_socket_udp_t *) out.context )->bound[0];
    for ( i = 0; i < FLOOD_SENDERS; i++ )
        handles[i] = plain_socket( addresses[i % FLOOD_PLACES], &at[i] );
    flood_make_filter( &filter, at, closed, roaming, newest );
    REQUIRE( udp_extras.set_filter( out.context, closed < 0 ? NULL : &filter ) );
    for ( i = 0; i < 3000; i++ ) {
        static uint8_t data[FAIR_CELL_BYTES], in[NC_BUFFER_CAPACITY];
        int sender = i % FLOOD_SENDERS, bytes = flood_datagram( data, newest );
        uint32_t few = fair_passes( closed < 0 ? NULL : &filter, &at[sender], data, bytes );
        struct netcode_datagram_t datagram = { 0 };
        datagram.data = in;
        datagram.capacity = sizeof( in );
        CHECK_EQ( plain_send( handles[sender], &to, data, bytes ), bytes );
        int passed = out.receive( out.context, &datagram, 1 ) == 1;
        if ( few < 2 ) {
            if ( !CHECK_EQ( passed, (int) few ) )
                printf( "    sender %d, prefix 0x%02x, %d bytes\n", sender, data[0], bytes );
            continue;
        }
        int share = (int) ( log2( few ) + 0.5 );
        by_share[share].received += passed;
        by_share[share].expected += 1.0 / few;
        by_share[share].spread += ( 1.0 - 1.0 / few ) / few;
    }
    for ( i = 0; i < 32; i++ ) /* beyond it once in a million runs */
        CHECK_NEAR( by_share[i].received, by_share[i].expected, 5.0 * sqrt( by_share[i].spread ) + 3.0 );
    for ( i = 0; i < FLOOD_SENDERS; i++ )
        close( handles[i] );
    out.close( out.context );
}

TEST( flood_the_kernel_filters_as_its_model )
{
    static const char * const fours[] = { "127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0", "127.9.0.1:0" };
    static const char * const sixes[] = { "[::1]:0", "[::1]:0", "[::1]:0", "[::1]:0" };
    static const uint64_t newest[] = { 0x2fedcbaffff0, 0xfff0, UINT64_MAX - 10, (uint64_t) 3 << 48, 0xfffffff8 };
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    for ( int closed = -1; closed <= NC_FLOOD_MAX_CLOSED; closed++ ) {
        flood_try( fours, closed, closed & 1, newest[closed + 1 < 5 ? closed + 1 : 0] );
        if ( real_ipv6() )
            flood_try( sixes, closed, !( closed & 1 ), newest[closed + 1 < 5 ? closed + 1 : 0] );
    }
}

#endif

/* Bits are drawn again for each filter: ports that share a client's bit in one share it by chance in the next. */
TEST( flood_bits_have_a_key )
{
    static nc_flood_filter_t filter;
    struct netcode_address_t client = address_of( "10.1.2.3:4000" ), other = client;
    int shared = 0, chosen[64], count = 0, i;
    nc_flood_clear( &filter );
    nc_flood_add( &filter, &client );
    for ( i = 1; i < 65536 && count < 64; i++ ) {
        other.port = (uint16_t) i;
        if ( i != 4000 && nc_flood_bit( &filter, &other ) == nc_flood_bit( &filter, &client ) )
            chosen[count++] = i;
    }
    other.type = NETCODE_ADDRESS_NONE; /* a client in the server's own process has no address: there is no bit for it */
    nc_flood_clear( &filter );
    nc_flood_add( &filter, &other );
    for ( i = 0; i < NC_FLOOD_BITS / 32; i++ )
        CHECK_EQ( filter.connected[i], 0 );
    other = client;
    for ( int round = 0; round < 64; round++ ) {
        nc_flood_clear( &filter );
        for ( i = 0; i < count; i++ ) {
            other.port = (uint16_t) chosen[i];
            shared += nc_flood_bit( &filter, &other ) == nc_flood_bit( &filter, &client );
        }
    }
    CHECK_LE( shared, 8 ); /* of some 500 pairs, each by a chance of one in 4096 */
}

/* Among 250 others that came first, an address that sends a third of all datagrams has an entry in the end. */
TEST( flood_who_sends_most_has_an_entry )
{
    static nc_flood_filter_t filter;
    struct netcode_address_t at = address_of( "10.3.0.1:4000" );
    int i, found = 0;
    memset( &filter, 0, sizeof( filter ) );
    for ( i = 0; i < 3000; i++ ) {
        at.data.ipv4[3] = (uint8_t) ( i % 3 || i < 100 ? 1 + i % 250 : 0 ); /* the others come first */
        nc_flood_count( &filter, &at );
    }
    at.data.ipv4[3] = 0;
    for ( i = 0; i < NC_FLOODERS; i++ )
        if ( nc_address_same( &filter.flooders[i].address, &at ) ) {
            CHECK_GE( filter.flooders[i].count, 600 );
            found++;
        }
    CHECK_EQ( found, 1 );
    memset( &filter, 0, sizeof( filter ) );
    for ( i = 0; i < NC_FLOODERS; i++ ) { /* unknown addresses, without a port, and clients have their own entries */
        at.port = i < NC_FLOODERS_UNKNOWN ? 0 : 4000;
        at.data.ipv4[3] = (uint8_t) i;
        REQUIRE( nc_flood_count( &filter, &at ) != NULL );
        nc_flood_count( &filter, &at )->limited = 1;
    }
    at.data.ipv4[3] = 100;
    CHECK( nc_flood_count( &filter, &at ) == NULL ); /* who is limited stays */
    at.port = 0;
    CHECK( nc_flood_count( &filter, &at ) == NULL );
    for ( i = 0; i < NC_FLOODERS; i++ )
        CHECK( filter.flooders[i].count == 2 &&
               ( filter.flooders[i].address.port == 0 ) == ( i < NC_FLOODERS_UNKNOWN ) );
}

/* ---- a server's judgement, in virtual time ---- */

/* A server of 16 players, each of whom says something 60 times a second; `count` datagrams of one address in an update. */
static void deluge_update( int count, int slept, int client )
{
    struct fair_setting_t setting = { client ? FAIR_PAYLOADS : FAIR_UNKNOWN, 60, 1, 16, 0, 1.0 };
    struct netcode_event_t event;
    for ( int i = client; i < 16; i++ )
        for ( int k = 0; k < 1 + slept; k++ )
            fair_say( &fair.peers[i], 1 );
    for ( int i = 0; i < count; i++ )
        fair_attack( &setting );
    fair.time += ( 1.0 + slept ) / 60.0;
    netcode_server_update( fair.server, fair.time );
    while ( netcode_server_next_event( fair.server, &event ) )
        if ( event.type == NETCODE_EVENT_PAYLOAD )
            netcode_server_free_packet( fair.server, event.data );
}

static void deluge_open( void )
{
    struct fair_setting_t setting = { FAIR_NOTHING, 60, 1, 16, 0, 1.0 };
    fair.receive_seconds = FAIR_TIMELESS;
    fair_buffer = FAIR_BUFFER_USUAL;
    REQUIRE( fair_open( &setting ) );
}

/* A judgement of a tenth of a second. */
static void deluge_judge( int eases )
{
    fair.server->flood.seconds = 0.1;
    nc_server_judge_flood( fair.server, eases );
}

static void deluge_close( void )
{
    netcode_server_destroy( fair.server );
    fair.receive_seconds = 0.0;
    fair_buffer = FAIR_BUFFER;
}

TEST( flood_players_are_never_limited )
{
    deluge_open();
    for ( int i = 0; i < 20; i++ )
        deluge_update( 0, i == 5 ? 240 : 0, 0 ); /* a server that slept for four seconds */
    CHECK_EQ( fair.filters, 0 );
    for ( int i = 0; i < 60; i++ )
        deluge_update( i == 40 ? 500 : 0, 0,
                       1 ); /* one burst that fills the buffer, not within half a second of that */
    CHECK_EQ( fair.filters, 0 );
    for ( int i = 0; i < 120; i++ )
        deluge_update( 1, 0, 0 ); /* a trickle from unknown addresses. Row 85 */
    CHECK_EQ( fair.filters, 0 );
    deluge_close();
}

/* It begins within 0.2 s, and ends some seconds after the flood, a step each four. */
TEST( flood_a_filter_begins_and_ends )
{
    for ( int client = 0; client < 2; client++ ) {
        int i, updates = 0;
        deluge_open();
        for ( i = 0; i < 60 && !fair.filters; i++ )
            deluge_update( 2000, 0, client );
        CHECK_GE( i, 6 );
        CHECK_LE( i, 12 );
        CHECK_EQ( fair.filter.closed > 0, !client );
        for ( i = 0; i < 60; i++ )
            deluge_update( 2000, 0, client );
        CHECK( fair.filters );
        for ( ; updates < 2000 && fair.filters; updates++ )
            deluge_update( 0, 0, client );
        CHECK_LE( updates, 4 * 60 * ( NC_FLOOD_MAX_CLOSED + 1 ) );
        deluge_close();
    }
}

static int flood_stray( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes )
{
    (void) context;
    (void) from;
    (void) data;
    (void) bytes;
    return 0;
}

/* Many players connect behind one NAT at once: their requests count for no entry, unless they are still too many when three of four are dropped. */
TEST( flood_players_of_one_network_connect )
{
    deluge_open();
    for ( int closed = 0; closed < 4; closed++ ) {
        struct netcode_address_t from = address_of( "10.9.9.9:4000" );
        uint8_t data[NC_REQUEST_BYTES] = { NETCODE_PACKET_REQUEST };
        nc_received_t arrival;
        memset( &arrival, 0, sizeof( arrival ) );
        arrival.from = &from;
        arrival.data = data;
        fair.server->flood.filter.closed = closed;
        nc_server_count_flood( fair.server, &arrival );
        CHECK_EQ( fair.server->flood.filter.flooders[NC_FLOODERS_UNKNOWN - 1].count, closed < 2 ? 0 : closed - 1 );
        CHECK_EQ( fair.server->flood.filter.total, closed + 1 );
    }
    deluge_close();
}

/* Unknown addresses: all ports of an IPv4 address count as one, and so does a /64 of IPv6. */
TEST( flood_one_network_is_limited_as_one )
{
    for ( int ipv6 = 0; ipv6 < 2; ipv6++ ) {
        deluge_open();
        for ( int i = 0; i < 100; i++ ) {
            struct netcode_address_t from = address_of( ipv6 ? "[2001:db8:1:2::1]:4000" : "10.9.9.9:4000" );
            uint8_t data[43] = { 0x65 };
            nc_received_t arrival;
            memset( &arrival, 0, sizeof( arrival ) );
            from.port = (uint16_t) ( 4000 + i );
            from.data.ipv6[4] = (uint16_t) ( ipv6 ? i : from.data.ipv6[4] );
            arrival.from = &from;
            arrival.data = data;
            arrival.slot = UINT32_MAX;
            nc_server_count_flood( fair.server, &arrival );
        }
        int most = 0;
        for ( int i = 0; i < NC_FLOODERS; i++ )
            most =
                fair.server->flood.filter.flooders[i].count > most ? fair.server->flood.filter.flooders[i].count : most;
        CHECK_EQ( most, 100 );
        deluge_close();
    }
}

/*  A flood that pauses is one, whatever its rhythm: updates in which all could be received do not count. A player who says eight times as much
    as others is none. */
TEST( flood_in_pulses_is_one )
{
    static const int rows[][2] = { { 3, 6 },
                                   { 5, 36 },
                                   { 3, 60 },
                                   { 5, 120 } }; /* ticks of each pulse, from one to the next */
    for ( size_t row = 0; row < sizeof( rows ) / sizeof( rows[0] ); row++ ) {
        uint64_t heard = 0;
        deluge_open();
        fair.counted = 0;
        for ( int i = 0; i < 900; i++ ) {
            for ( int k = 0; k < 16 && i == 300; k++ )
                fair.peers[k].heard = fair.peers[k].sent = 0;
            for ( int k = 0; k < 7; k++ )
                fair_say( &fair.peers[0], (uint64_t) i + 1 );
            struct fair_setting_t setting = { FAIR_UNKNOWN, 60, 1, 16, i % rows[row][1] < rows[row][0] ? 170 : 0, 1.0 };
            struct fair_result_t result = { 0 };
            fair_tick( &setting, (uint64_t) i + 1, 1, &result, &heard );
        }
        for ( int k = 0; k < 16; k++ )
            if ( !CHECK_GE( fair.peers[k].heard * 100, fair.peers[k].sent * 97 ) )
                printf( "    pulses of %d ticks each %d\n", rows[row][0], rows[row][1] );
        deluge_close();
    }
}

/* More clients flood than there are entries, one after another: who has stopped gives its entry up while the flood goes on. */
TEST( flood_of_many_clients_in_turn )
{
    deluge_open();
    nc_flood_t * flood = &fair.server->flood;
    for ( int i = 0; i < 15; i++ ) {
        nc_flooder_t * it;
        for ( int tick = 0; tick < 2;
              tick++ ) { /* a judgement where it floods, and one at which the entry is missing, perhaps */
            it = nc_flood_count( &flood->filter, &fair.peers[i].address );
            if ( it )
                it->count = flood->filter.total = 1000;
            flood->overrun = 1;
            deluge_judge( 0 );
            for ( int k = 0; k < NC_FLOODERS; k++ )
                flood->filter.flooders[k].count = flood->filter.flooders[k].expected = 0;
        }
        CHECK( it && it->limited );
    }
    deluge_close();
}

/* More clients flood at once than can be limited: the filter stays as small as the system takes it. */
TEST( flood_of_many_clients_at_once )
{
    deluge_open();
    nc_flood_t * flood = &fair.server->flood;
    for ( int round = 0; round < 3; round++ ) {
        int limited = 0;
        flood->overrun = 1;
        for ( int i = 0; i < 16; i++ )
            for ( int k = 0; k < 1000; k++, flood->filter.total++ )
                nc_flood_count( &flood->filter, &fair.peers[i].address );
        deluge_judge( 0 );
        for ( int k = 0; k < NC_FLOODERS; k++ )
            limited += flood->filter.flooders[k].limited > 0;
        CHECK_EQ( limited, NC_FLOODERS_LIMITED );
    }
    deluge_close();
}

/* A flood that goes on is filtered for longer each time that the filter was eased too early. */
TEST( flood_relapses_are_held_longer )
{
    int changes = 0, closed = 0;
    deluge_open();
    for ( int i = 0; i < 30 * 60; i++ ) {
        deluge_update( 2000, 0, 0 );
        changes += fair.server->flood.filter.closed < closed;
        closed = fair.server->flood.filter.closed;
    }
    CHECK_GE( changes, 1 );
    CHECK_LE( changes, 3 ); /* after 4, 12 and 28 s */
    CHECK( fair.server->flood.hold > 8.0 );
    deluge_close();
}

static int deluge_refused;

static int deluge_refuse( void * context, const nc_flood_filter_t * filter )
{
    (void) context;
    (void) filter;
    deluge_refused++;
    return 0;
}

/* How long a filter is held; who floods still is limited as before; a moment is no window; what the system refuses is not tried in each update. */
TEST( flood_judgements )
{
    deluge_open();
    nc_flood_t * flood = &fair.server->flood;
    struct netcode_address_t at = address_of( "10.77.0.1:0" );
    for ( int i = 0; i < 8; i++ ) {
        flood->overrun = flood->filter.unknown = 1;
        deluge_judge( 0 );
        CHECK_EQ( flood->filter.closed, 1 );
        CHECK_EQ( (int) flood->hold, i < 4 ? 4 << i : 64 );
        flood->overrun = 0;
        deluge_judge( 1 );
        CHECK_EQ( flood->filter.closed, 0 );
    }
    flood->until = fair.server->base.clock.now - 100.0;
    flood->overrun = flood->filter.unknown = 1;
    deluge_judge( 0 );
    CHECK_EQ( (int) flood->hold, 4 );

    nc_flood_count( &flood->filter, &at )->limited = 2;
    flood->filter.flooders[NC_FLOODERS_UNKNOWN - 1].count = 1000;
    deluge_judge( 0 );
    CHECK_EQ( flood->filter.flooders[NC_FLOODERS_UNKNOWN - 1].limited, 2 );

    flood->until = flood->last = fair.server->base.clock.now;
    flood->seconds = 0.0;
    nc_server_watch_update( fair.server );
    CHECK_EQ( flood->until == flood->last, 1 );
    fair.server->base.extras.set_filter = deluge_refuse;
    deluge_refused = 0;
    nc_server_set_filter( fair.server );
    flood->until = fair.server->base.clock.now + 10.0;
    for ( int i = 0; i < 3; i++ )
        nc_server_watch_update( fair.server );
    CHECK_EQ( deluge_refused, 1 );
    deluge_close();
}

/* Others used its address before, until only one of 256 passes; the packets near its newest sequence pass no more once they are too many. */
TEST( flood_a_client_whose_address_was_forged_floods_itself )
{
    deluge_open();
    nc_flood_t * flood = &fair.server->flood;
    nc_flooder_t * it = nc_flood_count( &flood->filter, &fair.peers[0].address );
    uint64_t hash = nc_handshake_address_hash( &fair.server->handshakes, &fair.peers[0].address );
    nc_slot_t * slot = &fair.server->memory.slot[nc_server_slot_at( fair.server, &fair.peers[0].address, hash )];
    flood->overrun = 1;
    for ( int i = 0; i < 6; i++ ) {
        it->count = 1000;
        it->expected = i < 3 ? 6 : 900;
        deluge_judge( 0 );
        CHECK_EQ( it->limited, i == 0 ? 1 : 2 );
        CHECK_EQ( it->newest, i < 3 ? slot->replay.newest : 0 );
    }
    flood->overrun = it->expected = it->count = 0;
    deluge_judge( 1 );
    CHECK_EQ( slot->opened.mark, 0 );
    deluge_close();
}

/* However long there has been a filter against others: a new flood is limited within 0.2 s. */
TEST( flood_a_second_one_is_limited_as_soon )
{
    int i;
    deluge_open();
    fair.server->flood.filters = fair.server->flood.filter.closed = 1;
    fair.server->flood.until = fair.time + 64.0;
    for ( i = 0; i < 40 * 60; i++ )
        deluge_update( 0, 0, 1 );
    for ( i = 0; i < 60 && fair.server->flood.filters < 2; i++ )
        deluge_update( 2000, 0, 1 );
    CHECK_LE( i, 12 );
    deluge_close();
}

/* A server that is started again knows of no flood, and the system filters none. */
TEST( flood_a_filter_ends_with_its_server )
{
    deluge_open();
    for ( int i = 0; i < 30; i++ )
        deluge_update( 2000, 0, 0 );
    CHECK( fair.filters && fair.server->flood.filters );
    netcode_server_stop( fair.server );
    netcode_server_start( fair.server, 16 );
    CHECK( !fair.filters && !fair.server->flood.filters && !fair.server->flood.filter.closed );
    deluge_close();
}

/* Two addresses that differ in bits which a weak hash cancels, for all keys: in both last words, or in the halves of one. */
TEST( flood_no_address_shares_a_bit_for_every_key )
{
    static nc_flood_filter_t filter;
    static const uint32_t pairs[][2] = { { 0x80000000u, 0x80000000u },
                                         { 0xc0000000u, 0x40000000u },
                                         { 0x80008000u, 0x8000u },
                                         { 1, 0x10000u },
                                         { 0x70007u, 0 } };
    for ( size_t i = 0; i < sizeof( pairs ) / sizeof( pairs[0] ); i++ ) {
        struct netcode_address_t a = address_of( "[2001:db8:1:2:3:4:5:6]:4000" ), b = a;
        int same = 0;
        b.data.ipv6[4] ^= (uint16_t) ( pairs[i][0] >> 16 );
        b.data.ipv6[5] ^= (uint16_t) pairs[i][0];
        b.data.ipv6[6] ^= (uint16_t) ( pairs[i][1] >> 16 );
        b.data.ipv6[7] ^= (uint16_t) pairs[i][1];
        for ( int round = 0; round < 1000; round++ ) {
            nc_flood_clear( &filter );
            same += nc_flood_bit( &filter, &a ) == nc_flood_bit( &filter, &b );
        }
        CHECK_LE( same, 8 );
    }
}

/* Those that hand strays on limit single addresses, and filter no unknown ones, which may be other servers' clients. */
TEST( flood_servers_with_strays_stay_open )
{
    for ( int kind = 0; kind < 2; kind++ ) {
        deluge_open();
        fair.server->config.stray_callback = kind == 1 ? flood_stray : NULL;
        fair.server->flood.overrun = 1;
        fair.server->flood.filter.unknown = 1000;
        for ( int i = 1; i < 8; i++ ) {
            deluge_judge( 0 );
            CHECK_EQ( fair.server->flood.filter.closed, kind ? 0 : i < NC_FLOOD_MAX_CLOSED ? i : NC_FLOOD_MAX_CLOSED );
        }
        deluge_close();
    }
}

/* Rows 83 to 86: 99 % of what the others say is heard, and 90 % of the one whose address is forged. */
TEST( threat_83_junk_of_any_kind_takes_nothing_from_players )
{
    static const struct fair_setting_t settings[] = {
        { FAIR_JUNK, 60, 1, 64, 170, 0.5 },         { FAIR_RESPONSES, 20, 1, 64, 170, 0.5 },
        { FAIR_REQUESTS, 60, 1, 64, 170, 0.5 },     { FAIR_UNKNOWN, 20, 1, 16, 170, 0.5 },
        { FAIR_ONE_NAT, 60, 1, 64, 170, 0.5 },      { FAIR_FORGED, 60, 1, 16, 22, 1.0 },
        { FAIR_FORGED, 60, 1, 64, 7, 0.5 },         { FAIR_FORGED, 20, 1, 16, 170, 0.5 },
        { FAIR_OWN_REQUESTS, 20, 1, 16, 170, 0.5 }, { FAIR_CROWD, 20, 1, 16, 60, 0.3 },
        { FAIR_CROWD, 60, 1, 16, 60, 0.3 },         { FAIR_EIGHT, 20, 1, 16, 170, 0.5 },
        { FAIR_EIGHT, 60, 1, 64, 20, 0.5 },         { FAIR_UNKNOWN_ROAMING, 20, 1, 16, 170, 0.5 },
    };
    fair.receive_seconds = FAIR_TIMELESS;
    for ( size_t i = 0; i < 2 * sizeof( settings ) / sizeof( settings[0] ); i++ ) {
        const struct fair_setting_t * setting = &settings[i / 2];
        struct fair_result_t result;
        fair_buffer = i % 2 ? FAIR_BUFFER : FAIR_BUFFER_USUAL;
        REQUIRE( fair_run( setting, &result ) );
        if ( !CHECK_GE( result.heard * 1000.0, 990 ) || !CHECK_GE( result.heard_least * 1000.0, 970 ) ||
             !CHECK( !fair_attacks[setting->attack].victims || setting->attack == FAIR_CROWD || result.victim >= 0.9 ) )
            printf( "    %s, %d Mbit/s: heard %.1f %%, the victim %.1f %%\n", fair_attacks[setting->attack].name,
                    setting->megabits, 100.0 * result.heard, 100.0 * result.victim );
    }
    fair.receive_seconds = 0.0;
    fair_buffer = FAIR_BUFFER;
}

/* ---- over sockets ---- */

static struct {
    struct real_t r;
    double now;
    char line[512]; /* the last that was logged at level INFO about it */
} live;

static int live_print( const char * format, ... )
{
    char line[512];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( line, sizeof( line ), format, arguments );
    va_end( arguments );
    if ( strstr( line, "more than it can process" ) )
        memcpy( live.line, line, sizeof( line ) );
    return 0;
}

/* A server at 20 Hz whose socket's buffer holds some 250 small datagrams. */
static void live_open( void )
{
    struct netcode_server_config_t config;
    memset( &live, 0, sizeof( live ) );
    live.now = netcode_time();
    netcode_default_server_config( &config );
    config.protocol_id = WORLD_PROTOCOL;
    memcpy( config.private_key, world_key, NETCODE_KEY_BYTES );
    config.receive_buffer_bytes = 98304;
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    netcode_set_printf_function( live_print );
    live.r.server = netcode_server_create( "127.0.0.1:0", &config, live.now );
    REQUIRE( live.r.server != NULL );
    REQUIRE_EQ( netcode_server_start( live.r.server, 16 ), NETCODE_OK );
    struct netcode_address_t at = address_of( "127.0.0.1:0" );
    at.port = netcode_server_get_port( live.r.server );
    netcode_address_to_string( &at, live.r.address[0] );
}

static void live_close( void )
{
    netcode_server_destroy( live.r.server );
    netcode_set_printf_function( NULL );
    netcode_log_level( NETCODE_LOG_LEVEL_NONE );
}

static void live_update( void )
{
    netcode_server_update( live.r.server, live.now += 1.0 / 20.0 );
}

/* Receives until a packet has this type. */
static int live_take( struct threat_raw_t * raw, int wanted )
{
    uint8_t data[2048], body[2048];
    uint64_t sequence;
    int type = -1, bytes;
    while ( ( bytes = (int) recv( raw->handle, data, sizeof( data ), MSG_DONTWAIT ) ) > 0 )
        if ( wire_open( data, bytes, raw->r.to_client_key, &type, &sequence, body ) >= 0 && type == wanted ) {
            memcpy( raw->body, body, sizeof( raw->body ) );
            return 1;
        }
    return 0;
}

/* One step of connecting. Returns whether it is connected. */
static int live_enter( struct threat_raw_t * raw, int * challenged )
{
    uint8_t request[REQUEST_BYTES];
    *challenged = *challenged || live_take( raw, NETCODE_PACKET_CHALLENGE );
    if ( *challenged && live_take( raw, NETCODE_PACKET_KEEP_ALIVE ) )
        return 1;
    wire_request( &raw->r, request );
    if ( *challenged )
        raw_say( raw, NETCODE_PACKET_RESPONSE, raw->body, 308 );
    else
        raw_send( raw, request, REQUEST_BYTES );
    return 0;
}

static void live_connect( struct threat_raw_t * raw, uint64_t id )
{
    int challenged = 0, i;
    raw_open( raw, &live.r, id );
    for ( i = 0; i < 20 && !live_enter( raw, &challenged ); i++ )
        live_update();
    REQUIRE( i < 20 );
    raw_say( raw, NETCODE_PACKET_KEEP_ALIVE, raw->body, 8 );
    live_update();
}

enum { LIVE_PLAYERS = 3, LIVE_UNKNOWN = 40 };

/* The first slots are the players'. */
static void live_open_with( struct threat_raw_t players[LIVE_PLAYERS] )
{
    live_open();
    for ( int i = 0; i < LIVE_PLAYERS; i++ )
        live_connect( &players[i], 1 + (uint64_t) i );
}

/* What the connected are heard of in an update; each says one thing somewhere among so many datagrams of a flood. */
static int live_tick( struct threat_raw_t * players, struct threat_raw_t * flooders, int flooder_count, int count,
                      int authentic )
{
    uint8_t body[30] = { 1 }, noise[43] = { 0x15 };
    int heard = 0, i;
    for ( i = 0; i < count; i++ ) {
        if ( authentic )
            raw_say( &flooders[0], NETCODE_PACKET_PAYLOAD, body, 20 );
        else
            raw_send( &flooders[i % flooder_count], noise, sizeof( noise ) );
        if ( i % ( count / LIVE_PLAYERS ) == count / LIVE_PLAYERS - 1 && i / ( count / LIVE_PLAYERS ) < LIVE_PLAYERS )
            raw_say( &players[i / ( count / LIVE_PLAYERS )], NETCODE_PACKET_PAYLOAD, body, 30 );
    }
    live_update();
    for ( i = 0; i < LIVE_PLAYERS; i++ )
        heard += real_drain( live.r.server, i );
    return heard;
}

/* What receiving reports beside datagrams, an ICMP error or a refused call, is no datagram of a flood, nor is what the application hands over. */
TEST( flood_counts_no_errors )
{
    live_open();
    struct netcode_server_t * server = live.r.server;
    struct netcode_datagram_t * datagram = &server->base.datagrams[0];
    for ( int status = NETCODE_DATAGRAM_ERROR; status >= NETCODE_DATAGRAM_OK; status -= NETCODE_DATAGRAM_ERROR ) {
        server->flood.forgets = server->base.clock.now + 1.0;
        nc_server_watch_batch( server, 1 );
        datagram->status = status;
        datagram->address = address_of( "10.9.9.9:4000" );
        datagram->bytes = 43;
        datagram->data[0] = 0x65;
        nc_server_handle_batch( server, datagram, server->base.batch, 1 );
        CHECK_EQ( server->flood.filter.unknown, status == NETCODE_DATAGRAM_OK ? 3 : 0 );
    }
    uint8_t data[43] = { 0x65 };
    struct netcode_address_t from = address_of( "10.9.9.9:4000" );
    netcode_server_process_packet( server, &from, data, 43 );
    CHECK_EQ( server->flood.filter.unknown, 3 );
    live_close();
}

/* What the system says of a socket's buffer: nothing is in it, then three quarters, which an update takes for a flood. */
TEST( flood_a_full_buffer_is_noticed )
{
#if LINUX_EXTRAS
    struct threat_raw_t unknown;
    uint8_t noise[43] = { 0x15 };
    live_open();
    struct netcode_server_t * server = live.r.server;
    raw_open( &unknown, &live.r, 1 );
    live_update();
    CHECK_EQ( server->base.extras.fill( server->base.socket.context ) == 0.0, 1 );
    for ( int i = 0; i < 60; i++ )
        raw_send( &unknown, noise, sizeof( noise ) );
    CHECK( server->base.extras.fill( server->base.socket.context ) > 0.1 );
    nc_server_watch_batch( server, NC_RECEIVE_BATCH );
    CHECK_EQ( server->flood.full, 0 );
    live_update();
    for ( int i = 0; i < 240; i++ )
        raw_send( &unknown, noise, sizeof( noise ) );
    CHECK( server->base.extras.fill( server->base.socket.context ) > 0.75 );
    live_update();
    CHECK_EQ( server->flood.overrun, 1 );
    live_update();
    CHECK_EQ( server->flood.overrun, 0 );
    server->base.backlog = 1; /* or what an update left in the socket */
    nc_server_watch_update( server );
    CHECK_EQ( server->flood.overrun, 1 );
    close( unknown.handle );
    live_close();
#else
    SKIP( "the system does not report it" );
#endif
}

static void live_is_slow( void * context, int reason, const struct netcode_address_t * from, int bytes )
{
    double end = netcode_time() + *(double *) context;
    (void) reason;
    (void) from;
    (void) bytes;
    while ( netcode_time() < end )
        ;
}

/* Where an update takes all, but takes longer for it than it should, more has arrived than it can take. */
TEST( flood_a_long_update_is_noticed )
{
    struct threat_raw_t unknown;
    uint8_t noise[43] = { 0x15 };
    double seconds = 2e-3;
    int i;
    live_open();
    raw_open( &unknown, &live.r, 1 );
    live.r.server->config.drop_callback = live_is_slow;
    live.r.server->config.callback_context = &seconds;
    for ( i = 0; i < 40; i++ )
        raw_send( &unknown, noise, sizeof( noise ) );
    live_update();
    CHECK_EQ( live.r.server->base.backlog, 0 );
    CHECK_EQ( live.r.server->flood.overrun, 1 );
    for ( i = 0; i < 10; i++ ) /* fewer than one call hands over: it is not asked how long they took */
        raw_send( &unknown, noise, sizeof( noise ) );
    live_update();
    CHECK_EQ( live.r.server->flood.overrun, 0 );
    close( unknown.handle );
    live_close();
}

/* The interface of a link-local address is not on the wire. */
TEST( flood_knows_addresses_as_in_network_headers )
{
    struct netcode_address_t at;
    uint32_t words[4];
    REQUIRE_EQ( netcode_parse_address( "[fe80::1234:5678%7]:9", &at ), NETCODE_OK );
    CHECK_EQ( nc_address_words( &at, words ), 4 );
    CHECK( words[0] == 0xfe800000u && words[1] == 0 && words[2] == 0 && words[3] == 0x12345678u );
    at = address_of( "[2001:db8:1:2:3:4:5:6]:9" );
    CHECK_EQ( nc_address_words( &at, words ), 4 );
    CHECK( words[0] == 0x20010db8u && words[1] == 0x00010002u && words[3] == 0x00050006u );
    at = address_of( "1.2.3.200:9" );
    CHECK_EQ( nc_address_words( &at, words ), 1 );
    CHECK_EQ( words[0], 0x010203c8u );
}

TEST( threat_60_a_client_that_floods_is_throttled )
{
    struct threat_raw_t players[LIVE_PLAYERS], flooder;
    struct netcode_address_t at;
    struct sockaddr_in self;
    socklen_t length = sizeof( self );
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int i, heard = 0, flooded = 0;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    live_open_with( players );
    live_connect( &flooder, 100 );
    for ( i = 0; i < 10; i++ ) {
        live_tick( players, &flooder, 1, 500, 1 );
        real_drain( live.r.server, LIVE_PLAYERS );
    }
    for ( i = 0; i < 40; i++ ) {
        heard += live_tick( players, &flooder, 1, 500, 1 );
        flooded += real_drain( live.r.server, LIVE_PLAYERS );
    }
    CHECK_EQ( heard, 40 * LIVE_PLAYERS );
    CHECK_GE( flooded, 40 * 500 / 256 / 2 ); /* where the machine is busy, 255 of 256 are filtered */
    CHECK_LE( flooded, 40 * 500 / 16 * 2 );
    memset( &at, 0, sizeof( at ) );
    REQUIRE( getsockname( flooder.handle, (struct sockaddr *) &self, &length ) == 0 );
    at = address_of( "127.0.0.1:0" );
    at.port = ntohs( self.sin_port );
    netcode_address_to_string( &at, text );
    CHECK( strstr( live.line, "limits what comes from" ) != NULL && strstr( live.line, text ) != NULL );
    CHECK_GT( netcode_server_num_connected_clients( live.r.server ),
              LIVE_PLAYERS ); /* it is throttled, not disconnected */
    /* some seconds after the flood it is treated like any other */
    for ( i = 0; i < 170; i++ )
        live_tick( players, &flooder, 1, 3, 1 );
    real_drain( live.r.server, LIVE_PLAYERS );
    for ( heard = flooded = i = 0; i < 20; i++ ) {
        heard += live_tick( players, &flooder, 1, 9, 1 );
        flooded += real_drain( live.r.server, LIVE_PLAYERS );
    }
    CHECK_EQ( heard, 20 * LIVE_PLAYERS );
    CHECK_EQ( flooded, 20 * 9 );
    for ( i = 0; i < LIVE_PLAYERS; i++ )
        close( players[i].handle );
    close( flooder.handle );
    live_close();
}

/* What the filter drops is not lost for want of time: beside some junk that passes, too, nobody floods. */
TEST( flood_what_the_filter_drops_is_no_flood )
{
    struct threat_raw_t players[LIVE_PLAYERS], unknown;
    uint8_t noise[43] = { 0x13 }; /* as large as no response */
    int heard = 0, overrun = 0;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    live_open_with( players );
    raw_open( &unknown, &live.r, 100 );
    for ( int i = 0; i < 240; i++ ) {
        raw_send( &unknown, noise, sizeof( noise ) );
        heard += live_tick( players, &unknown, 1, LIVE_PLAYERS, 0 );
        overrun += live.r.server->flood.overrun;
    }
    CHECK_EQ( heard, 240 * LIVE_PLAYERS );
    CHECK_GE( nc_socket_info( &live.r.server->base.socket ).kernel_drops, 200 );
    CHECK_EQ( overrun, 0 );
    CHECK_EQ( live.r.server->flood.filters, 0 );
    for ( int i = 0; i < LIVE_PLAYERS; i++ )
        close( players[i].handle );
    close( unknown.handle );
    live_close();
}

TEST( threat_61_unknown_addresses_that_flood_are_filtered )
{
    struct threat_raw_t players[LIVE_PLAYERS], unknown[LIVE_UNKNOWN], late;
    int i, heard = 0, challenged = 0;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    live_open_with( players );
    for ( i = 0; i < LIVE_UNKNOWN; i++ ) { /* each at an IP address of its own */
        struct netcode_address_t at = address_of( "127.1.0.1:0" );
        char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        raw_open( &unknown[i], &live.r, 200 + (uint64_t) i );
        close( unknown[i].handle );
        at.data.ipv4[2] = (uint8_t) i;
        unknown[i].handle = plain_socket( netcode_address_to_string( &at, text ), &at );
    }
    raw_open( &late, &live.r, 100 );
    for ( i = 0; i < 10; i++ )
        live_tick( players, unknown, LIVE_UNKNOWN, 1500, 0 );
    CHECK( strstr( live.line, "filters unknown addresses" ) != NULL );
    for ( i = 0; i < 60; i++ )
        heard += live_tick( players, unknown, LIVE_UNKNOWN, 300, 0 );
    CHECK_EQ( heard, 60 * LIVE_PLAYERS );
    /* a client that connects meanwhile is accepted, and its payload received */
    for ( i = 0; i < 20 && !live_enter( &late, &challenged ); i++ )
        live_tick( players, unknown, LIVE_UNKNOWN, 300, 0 );
    CHECK_LT( i, 20 );
    raw_say( &late, NETCODE_PACKET_PAYLOAD, late.body, 8 );
    live_tick( players, unknown, LIVE_UNKNOWN, 300, 0 );
    CHECK_EQ( real_drain( live.r.server, LIVE_PLAYERS ), 1 );
    /* a second after the flood unknown addresses pass again */
    for ( i = 0; i < 45; i++ )
        live_update();
    uint64_t before = live.r.server->base.counters.dropped[NETCODE_DROP_UNKNOWN_ADDRESS];
    live_tick( players, unknown, LIVE_UNKNOWN, 40, 0 );
    CHECK_EQ( live.r.server->base.counters.dropped[NETCODE_DROP_UNKNOWN_ADDRESS] - before, 40 );
    for ( i = 0; i < LIVE_PLAYERS; i++ )
        close( players[i].handle );
    for ( i = 0; i < LIVE_UNKNOWN; i++ )
        close( unknown[i].handle );
    close( late.handle );
    live_close();
}

#endif
