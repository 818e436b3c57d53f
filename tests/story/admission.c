/* Admission: during a flood a packet filter in the kernel drops what flooding and unknown addresses send. Attacks 60 and 61 over sockets. */

#if !defined( _WIN32 )

enum { ADMISSION_SENDERS = 48, ADMISSION_DATAGRAMS = 1600 };

static struct {
    struct netcode_socket_t socket;
    struct netcode_address_t to;
    int handles[ADMISSION_SENDERS];
    struct netcode_address_t at[ADMISSION_SENDERS];
    nc_admission_t admission;
} rig;

static void admission_open_socket( const char * address, int screens )
{
    memset( &rig, 0, sizeof( rig ) );
    memset( &post, 0, sizeof( post ) );
    post_open_socket( &rig.socket, address, NULL, screens, 0 );
    rig.to = ( (nc_socket_udp_t *) rig.socket.context )->bound[0];
}

static void admission_close_socket( void )
{
    int i;
    for ( i = 0; i < ADMISSION_SENDERS; i++ )
        if ( rig.handles[i] > 0 )
            close( rig.handles[i] );
    rig.socket.close( rig.socket.context );
}

/* A keep-alive's size and prefix, so that it passes the screen; the second byte names the sender. */
static void admission_send( int sender, int prefix, int bytes )
{
    uint8_t data[REQUEST_BYTES] = { (uint8_t) prefix, (uint8_t) sender };
    CHECK_EQ( plain_send( rig.handles[sender], &rig.to, data, bytes ), bytes );
}

/* Datagrams received of each sender. */
static void admission_count( int counts[ADMISSION_SENDERS] )
{
    uint8_t data[64][NC_BUFFER_CAPACITY];
    struct netcode_datagram_t places[NC_RECEIVE_BATCH];
    memset( counts, 0, ADMISSION_SENDERS * sizeof( counts[0] ) );
    for ( int count = 1; count > 0; ) {
        memset( places, 0, sizeof( places ) );
        for ( int i = 0; i < NC_RECEIVE_BATCH; i++ ) {
            places[i].data = data[i];
            places[i].capacity = NC_BUFFER_CAPACITY;
        }
        count = rig.socket.receive( rig.socket.context, places, NC_RECEIVE_BATCH );
        for ( int i = 0; i < count; i++ )
            if ( CHECK_LT( data[i][1], ADMISSION_SENDERS ) )
                counts[data[i][1]]++;
    }
}

/* Sender 0 is throttled, 1 has another port; 2 another address, with the same port, where this family has one. */
static void admission_try_throttle( const char * address, const char * other, int screens )
{
    int counts[ADMISSION_SENDERS], senders = 2, i, k;
    uint64_t drops;
    admission_open_socket( address, screens );
    for ( i = 0; i < 2; i++ )
        rig.handles[i] = plain_socket( address, &rig.at[i] );
    if ( other ) {
        char text[64];
        snprintf( text, sizeof( text ), "%s:%d", other, rig.at[0].port );
        rig.handles[senders] = plain_socket( text, &rig.at[senders] );
        senders++;
    }
    rig.admission.throttled[0] = rig.at[0];
    rig.admission.throttled_count = 1;
    REQUIRE( udp_extras.admit( rig.socket.context, &rig.admission ) );
    for ( i = 0; i < ADMISSION_DATAGRAMS; i++ )
        for ( k = 0; k < senders; k++ )
            admission_send( k, 0x16, 18 );
    admission_count( counts );
    /* a sixteenth is 100: with this spread one run in a million is beyond */
    CHECK_GE( counts[0], 50 );
    CHECK_LE( counts[0], 150 );
    for ( k = 1; k < senders; k++ )
        CHECK_EQ( counts[k], ADMISSION_DATAGRAMS );
    /* the others of that family, and those whose address differs in its first or its last word alone */
    drops = nc_socket_info( &rig.socket ).kernel_drops;
    CHECK_GE( drops, (uint64_t) ADMISSION_DATAGRAMS / 2 );
    for ( i = 0; i < 2; i++ ) {
        rig.admission.throttled[i] = rig.at[0];
        if ( rig.at[0].type == NETCODE_ADDRESS_IPV4 )
            rig.admission.throttled[i].data.ipv4[i ? 3 : 0] ^= 0x40;
        else
            rig.admission.throttled[i].data.ipv6[i ? 7 : 0] ^= 0x4000;
    }
    rig.admission.throttled_count = 2;
    REQUIRE( udp_extras.admit( rig.socket.context, &rig.admission ) );
    for ( i = 0; i < ADMISSION_DATAGRAMS; i++ )
        admission_send( 0, 0x16, 18 );
    admission_count( counts );
    CHECK_EQ( counts[0], ADMISSION_DATAGRAMS );
    /* all of eight, the first of which is of the other family, and the last sender 0; and what the screen refuses is refused where it is wanted */
    for ( i = 0; i < NC_FLOODERS; i++ ) {
        rig.admission.throttled[i] = rig.at[0];
        rig.admission.throttled[i].port = (uint16_t) ( rig.at[0].port ^ ( 1 << ( NC_FLOODERS - 1 - i ) ) );
    }
    rig.admission.throttled[0] = address_of( rig.at[0].type == NETCODE_ADDRESS_IPV4 ? "[::1]:9" : "127.0.0.1:9" );
    rig.admission.throttled[NC_FLOODERS - 1] = rig.at[0];
    rig.admission.throttled_count = NC_FLOODERS;
    REQUIRE( udp_extras.admit( rig.socket.context, &rig.admission ) );
    for ( i = 0; i < ADMISSION_DATAGRAMS; i++ ) {
        admission_send( 0, 0x16, 18 );
        admission_send( 1, 0x19, 18 );
    }
    admission_count( counts );
    CHECK_GE( counts[0], 50 );
    CHECK_LE( counts[0], 150 );
    CHECK_EQ( counts[1], screens ? 0 : ADMISSION_DATAGRAMS );
    memset( &rig.admission, 0, sizeof( rig.admission ) );
    REQUIRE( udp_extras.admit( rig.socket.context, &rig.admission ) );
    for ( i = 0; i < ADMISSION_DATAGRAMS; i++ )
        admission_send( 0, 0x16, 18 );
    admission_count( counts );
    CHECK_EQ( counts[0], ADMISSION_DATAGRAMS );
    CHECK_GT( nc_socket_info( &rig.socket ).kernel_drops, drops );
    admission_close_socket();
}

TEST( admission_throttles_an_address )
{
    int screens;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    for ( screens = 0; screens < 2; screens++ ) {
        admission_try_throttle( "127.0.0.1:0", "127.0.0.2", screens );
        if ( real_ipv6() )
            admission_try_throttle( "[::1]:0", NULL, screens );
    }
}

/*  Half of many senders are connected. Requests and responses of all arrive; anything else only where the bit is set, and,
    where clients roam, a sixteenth of the rest. */
static void admission_try_connected( const char * address, uint32_t slots, int screens, int roaming )
{
    int counts[ADMISSION_SENDERS], i, k, shared = 0, unset = 0, samples = 0, rounds = roaming ? 30 : 1;
    admission_open_socket( address, screens );
    nc_admission_clear( &rig.admission, slots );
    rig.admission.samples = roaming;
    for ( i = 0; i < ADMISSION_SENDERS; i++ ) {
        rig.handles[i] = plain_socket( address, &rig.at[i] );
        if ( i % 2 )
            nc_admission_add( &rig.admission, &rig.at[i] );
    }
    REQUIRE( udp_extras.admit( rig.socket.context, &rig.admission ) );
    for ( k = 0; k < rounds; k++ )
        for ( i = 0; i < ADMISSION_SENDERS; i++ ) {
            admission_send( i, 0x16, 18 );
            admission_send( i, 0x15, 100 );
            admission_send( i, 0x14, 26 );
        }
    admission_count( counts );
    for ( i = 0; i < ADMISSION_SENDERS; i++ ) {
        uint32_t bit = nc_admission_bit( &rig.admission, &rig.at[i] );
        int is_set = rig.admission.connected[bit / 32] >> bit % 32 & 1;
        CHECK( is_set || i % 2 == 0 );
        shared += is_set && i % 2 == 0;
        unset += !is_set;
        samples += is_set ? 0 : counts[i];
        if ( is_set || !roaming )
            CHECK_EQ( counts[i], is_set ? 3 * rounds : 0 );
    }
    if ( roaming ) { /* five times the standard deviation */
        double expected = 3.0 * rounds * unset / 16.0;
        CHECK_NEAR( samples, expected, 5.0 * sqrt( expected ) );
    }
    CHECK_LE( shared,
              ADMISSION_SENDERS / 2 * ( slots < 8 ? 24 : 6 ) / 10 ); /* most unknown senders have a bit of their own */
    for ( i = 0; i < ADMISSION_SENDERS; i++ ) {
        admission_send( i, 0x00, REQUEST_BYTES );
        admission_send( i, 0x13, 326 );
    }
    admission_count( counts );
    for ( i = 0; i < ADMISSION_SENDERS; i++ )
        CHECK_EQ( counts[i], 2 );
    admission_close_socket();
}

TEST( admission_filters_unknown_addresses )
{
    static const uint32_t slots[] = { 1, 16, 64, 1000, NC_ADMISSION_SLOTS };
    size_t i;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    for ( i = 0; i < sizeof( slots ) / sizeof( slots[0] ); i++ ) {
        for ( int roaming = 0; roaming < 2; roaming++ ) {
            admission_try_connected( "127.0.0.1:0", slots[i], (int) i % 2, roaming );
            if ( real_ipv6() )
                admission_try_connected( "[::1]:0", slots[i], (int) i % 2, roaming );
        }
    }
}

/* 32 bits for each slot, for any shape of addresses: an unknown address shares a connected one's by chance only. */
TEST( admission_has_enough_bits )
{
    uint32_t slots, i;
    for ( slots = 1; slots <= NC_ADMISSION_SLOTS; slots *= 2 ) {
        uint32_t set = 0, places;
        nc_admission_clear( &rig.admission, slots );
        places = 32 * (uint32_t) rig.admission.words;
        CHECK_EQ( places, slots < 256 ? 32 * slots : NC_ADMISSION_BITS );
        for ( i = 0; i < slots; i++ ) { /* behind a few NATs, with ports in turn */
            struct netcode_address_t at = address_of( "10.1.0.0:0" );
            at.data.ipv4[3] = (uint8_t) ( i % 5 );
            at.port = (uint16_t) ( 30000 + i / 5 );
            CHECK_LT( nc_admission_bit( &rig.admission, &at ), places );
            nc_admission_add( &rig.admission, &at );
        }
        for ( i = 0; i < places; i++ )
            set += rig.admission.connected[i / 32] >> i % 32 & 1;
        CHECK_GE( set, slots * 3 / 4 ); /* they do not lie on each other */
        for ( set = 0, i = 0; i < 4096; i++ ) {
            struct netcode_address_t at = address_of( "192.168.0.0:0" );
            at.data.ipv4[2] = (uint8_t) ( i >> 6 );
            at.port = (uint16_t) ( 1024 + i * 13 );
            uint32_t bit = nc_admission_bit( &rig.admission, &at );
            set += rig.admission.connected[bit / 32] >> bit % 32 & 1;
        }
        CHECK_LE( set, slots <= 256 ? 4096 / 20 : slots <= 1024 ? 4096 / 6 : 4096 / 4 );
    }
}

/* ---- which addresses flood ---- */

static struct netcode_address_t admission_from( int number )
{
    struct netcode_address_t at = address_of( "10.3.0.0:4000" );
    at.data.ipv4[2] = (uint8_t) ( number >> 8 );
    at.data.ipv4[3] = (uint8_t) number;
    return at;
}

/* One update: `most` datagrams of one address, mixed with `each` of every one of `others` addresses. */
static int admission_update( nc_watch_t * watch, double now, int most, int others, int each )
{
    int i, k, rounds = most > each ? most : each;
    for ( i = 0; i < rounds; i++ ) {
        struct netcode_address_t at;
        for ( k = 1; k <= others && i < each; k++ ) {
            at = admission_from( k );
            nc_watch_count( watch, &at );
        }
        at = admission_from( 0 );
        if ( i < most )
            nc_watch_count( watch, &at );
    }
    return nc_watch_judge_all( watch, now );
}

static nc_watch_t admission_watch( double since )
{
    nc_watch_t watch;
    memset( &watch, 0, sizeof( watch ) );
    watch.overrun = 1;
    watch.since = since;
    return watch;
}

TEST( admission_finds_flooding_addresses )
{
    struct netcode_address_t flooder = admission_from( 0 );
    nc_watch_t watch = admission_watch( 100.0 );
    int i;
    /* the threshold: 1,920 a second, over a tenth of a second at least */
    CHECK_EQ( admission_update( &watch, 100.02, 190, 0, 0 ), 0 );
    CHECK_EQ( admission_update( &watch, 100.04, 4, 0, 0 ), 1 );
    CHECK_EQ( watch.admission.throttled_count, 1 );
    CHECK( nc_address_same( &watch.admission.throttled[0], &flooder ) );
    /* throttled for a second, and again while a sixteenth of that rate is received */
    CHECK_EQ( admission_update( &watch, 101.03, 120, 0, 0 ), 0 );
    CHECK_EQ( admission_update( &watch, 101.05, 0, 0, 0 ), 0 );
    CHECK_EQ( watch.admission.throttled_count, 1 );
    CHECK_EQ( admission_update( &watch, 102.04, 119, 0, 0 ), 0 );
    CHECK_EQ( admission_update( &watch, 102.06, 0, 0, 0 ), 1 );
    CHECK_EQ( watch.admission.throttled_count, 0 );
    /* among 63 addresses at a player's rate */
    watch = admission_watch( 100.0 );
    for ( i = 1; i <= 10 && watch.admission.throttled_count == 0; i++ )
        admission_update( &watch, 100.0 + i / 60.0, 300, 63, 1 );
    CHECK_LE( i, 8 );
    CHECK( nc_address_same( &watch.admission.throttled[0], &flooder ) );
    /* eight that flood alike are all found */
    watch = admission_watch( 100.0 );
    for ( i = 1; i <= 12; i++ )
        admission_update( &watch, 100.0 + i / 60.0, 0, 8, 400 );
    CHECK_EQ( watch.admission.throttled_count, 8 );
    /* ... and a ninth finds no entry, nor takes another's */
    CHECK_EQ( admission_update( &watch, 100.3, 5000, 8, 130 ), 0 );
    CHECK_EQ( admission_update( &watch, 101.3, 0, 0, 0 ), 0 );
    CHECK_EQ( watch.admission.throttled_count, 8 );
    for ( i = 0; i < NC_FLOODERS; i++ )
        CHECK( !nc_address_same( &watch.admission.throttled[i], &flooder ) );
}

/* Players' rates are not throttled, however much has piled up. */
TEST( admission_throttles_no_player )
{
    nc_watch_t watch = admission_watch( 100.0 );
    CHECK_EQ( admission_update( &watch, 110.0, 0, 8, 600 ), 0 ); /* a server that has slept for ten seconds */
    watch = admission_watch( 100.0 );
    CHECK_EQ( admission_update( &watch, 100.05, 150, 4, 150 ), 0 ); /* a burst of 150 */
    watch = admission_watch( 100.0 );
    CHECK_EQ( admission_update( &watch, 101.0, 1915, 0, 0 ), 0 );
    watch = admission_watch( 100.0 );
    CHECK_EQ( admission_update( &watch, 101.0, 1925, 0, 0 ), 1 );
    /* no more is known of it, once all was taken */
    watch = admission_watch( 100.0 );
    CHECK_EQ( admission_update( &watch, 100.01, 180, 0, 0 ), 0 );
    watch.overrun = 0;
    CHECK_EQ( nc_watch_judge_all( &watch, 100.02 ), 0 );
    watch.overrun = 1;
    watch.since = 100.02;
    CHECK_EQ( admission_update( &watch, 100.03, 180, 0, 0 ), 0 );
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
    netcode_server_start( live.r.server, 16 );
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

/* What receiving reports beside datagrams, an ICMP error or a refused call, is no datagram of a flood. */
TEST( admission_counts_no_errors )
{
    struct netcode_address_t none;
    memset( &none, 0, sizeof( none ) );
    live_open();
    for ( int status = NETCODE_DATAGRAM_ERROR; status >= NETCODE_DATAGRAM_OK; status -= NETCODE_DATAGRAM_ERROR ) {
        live.r.server->watch.overrun = 1;
        live.r.server->base.datagrams[0].status = status;
        live.r.server->base.datagrams[0].address = none;
        nc_server_watch_batch( live.r.server, 1 );
        int counted = 0;
        for ( int i = 0; i < NC_FLOODERS; i++ )
            counted += live.r.server->watch.flooders[i].count;
        CHECK_EQ( counted, status == NETCODE_DATAGRAM_OK );
    }
    live_close();
}

TEST( admission_counts_after_kernel_drops )
{
#if LINUX_EXTRAS
    live_open();
    live_update();
    nc_server_watch_batch( live.r.server, 0 );
    CHECK_EQ( live.r.server->watch.overrun, 0 );
    ( (nc_socket_udp_t *) live.r.server->base.socket.context )->kernel_drops[1]++;
    nc_server_watch_batch( live.r.server, 0 );
    CHECK_EQ( live.r.server->watch.overrun, 1 );
    live_update();
    nc_server_watch_batch( live.r.server, 0 );
    CHECK_EQ( live.r.server->watch.overrun, 0 );
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
TEST( admission_counts_after_long_updates )
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
    CHECK_EQ( live.r.server->watch.overrun, 1 );
    for ( i = 0; i < 10; i++ ) /* fewer than one call hands over: it is not asked how long they took */
        raw_send( &unknown, noise, sizeof( noise ) );
    live_update();
    CHECK_EQ( live.r.server->watch.overrun, 0 );
    close( unknown.handle );
    live_close();
}

/* The filter has bits for so many slots. A server with more of them throttles flooding addresses only. */
TEST( admission_on_servers_of_many_slots )
{
    struct netcode_address_t flooder = address_of( "10.1.1.1:1" );
    int slots, i, k;
    for ( k = 0; k < 2; k++ ) {
        slots = NC_ADMISSION_SLOTS + k;
        live_open();
        netcode_server_stop( live.r.server );
        netcode_server_start( live.r.server, slots );
        live_update();
        live.r.server->watch.overrun = 1;
        live.r.server->watch.since = live.r.server->base.clock.now - 0.2;
        for ( i = 0; i < 500; i++ )
            nc_watch_count( &live.r.server->watch, &flooder );
        nc_server_limit_floods( live.r.server );
        CHECK_EQ( live.r.server->watch.admission.throttled_count, 1 );
        CHECK_EQ( live.r.server->watch.admission.words > 0, k == 0 );
        live_close();
    }
}

/* The interface of a link-local address is not on the wire. */
TEST( admission_knows_addresses_as_in_network_headers )
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
        live_tick( players, &flooder, 1, 1500, 1 );
        real_drain( live.r.server, LIVE_PLAYERS );
    }
    for ( i = 0; i < 40; i++ ) {
        heard += live_tick( players, &flooder, 1, 600, 1 );
        flooded += real_drain( live.r.server, LIVE_PLAYERS );
    }
    CHECK_EQ( heard, 40 * LIVE_PLAYERS );
    CHECK_GE( flooded, 40 * 600 / 16 / 2 );
    CHECK_LE( flooded, 40 * 600 / 16 * 2 );
    memset( &at, 0, sizeof( at ) );
    REQUIRE( getsockname( flooder.handle, (struct sockaddr *) &self, &length ) == 0 );
    at = address_of( "127.0.0.1:0" );
    at.port = ntohs( self.sin_port );
    netcode_address_to_string( &at, text );
    CHECK( strstr( live.line, "1 addresses throttled" ) != NULL && strstr( live.line, text ) != NULL );
    CHECK_GT( netcode_server_num_connected_clients( live.r.server ),
              LIVE_PLAYERS ); /* it is throttled, not disconnected */
    /* a second after the flood it is treated like any other */
    for ( i = 0; i < 45; i++ )
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

TEST( threat_61_unknown_addresses_that_flood_are_filtered )
{
    struct threat_raw_t players[LIVE_PLAYERS], unknown[LIVE_UNKNOWN], late;
    int i, heard = 0, challenged = 0;
    if ( !filter_works() )
        SKIP( "no packet filter here" );
    live_open_with( players );
    for ( i = 0; i < LIVE_UNKNOWN; i++ )
        raw_open( &unknown[i], &live.r, 200 + (uint64_t) i );
    raw_open( &late, &live.r, 100 );
    for ( i = 0; i < 10; i++ )
        live_tick( players, unknown, LIVE_UNKNOWN, 1500, 0 );
    CHECK( strstr( live.line, "unknown addresses filtered" ) != NULL );
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
