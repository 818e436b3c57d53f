/*  Story: the manual's table of what to send how. Each row is read from the text of netcode.h, and its promise is held over a bad
    link: what may be lost may be, what may not is not. Run: runner messages_guide.c */

enum { GUIDE_ROWS = 5, GUIDE_MESSAGES = 600 };

/* The kinds in the manual's order are the kinds by number. */
static const char * const guide_names[GUIDE_ROWS] = { "UNRELIABLE", "UNRELIABLE_SEQUENCED", "RELIABLE",
                                                      "RELIABLE_ORDERED", "RELIABLE_SEQUENCED" };

/* How the row of a kind ends in the manual: what may happen. Empty where there is no such row. */
static void guide_read( const char * name, char * promise, size_t bytes )
{
    char line[256], first[64];
    FILE * file = fopen( "netcode.h", "r" );
    int inside = 0;
    promise[0] = 0;
    while ( file && fgets( line, (int) sizeof( line ), file ) ) {
        inside |= strstr( line, "Which kind for what:" ) != NULL;
        if ( inside && sscanf( line, "%63s", first ) == 1 && strcmp( first, name ) == 0 && strlen( line ) > 80 ) {
            line[strcspn( line, "\n" )] = 0;
            snprintf( promise, bytes, "%s", line + 80 );
            break;
        }
    }
    if ( file )
        fclose( file );
}

struct guide_t {
    int got[GUIDE_MESSAGES];
    int count, backwards, acked, lost;
};

static void guide_listen( struct link_t * link, struct guide_t * it )
{
    struct netcode_message_t message;
    struct netcode_messages_event_t event;
    int number, last = -1;
    for ( int i = 0; i < GUIDE_MESSAGES; i++ )
        last = it->got[i] ? i : last;
    while ( netcode_messages_receive( link->ends[1], &message ) ) {
        REQUIRE_EQ( message.bytes, (int) sizeof( number ) );
        memcpy( &number, message.data, sizeof( number ) );
        REQUIRE( number >= 0 && number < GUIDE_MESSAGES );
        it->backwards += number < last;
        it->got[number]++;
        it->count++;
        last = number > last ? number : last;
    }
    while ( netcode_messages_event( link->ends[0], &event ) ) {
        it->acked += event.type == NETCODE_MESSAGES_EVENT_ACKED;
        it->lost += event.type == NETCODE_MESSAGES_EVENT_LOST;
    }
}

/* Ten seconds of messages of one kind with a tenth of the packets lost and many out of order. */
static void guide_play( int kind, struct guide_t * it )
{
    struct link_t link;
    struct netcode_message_t message;
    memset( it, 0, sizeof( *it ) );
    memset( &message, 0, sizeof( message ) );
    message.kind = kind;
    message.bytes = (int) sizeof( int );
    link_open( &link, NULL, test_random(), 0.04, 0.1 );
    link.ways[0].jitter = 0.05;
    for ( int number = 0; number < GUIDE_MESSAGES + 240; number++ ) {
        message.data = (const uint8_t *) &number;
        message.receipt = (uint64_t) number + 1;
        if ( number < GUIDE_MESSAGES )
            CHECK_EQ( netcode_messages_send_message( link.ends[0], &message ), NETCODE_OK );
        link_tick( &link );
        guide_listen( &link, it );
    }
    for ( int i = 0; i < GUIDE_MESSAGES; i++ )
        CHECK_LE( it->got[i], 1 );
    link_close( &link );
}

TEST( messages_guide_keeps_its_word )
{
    char promise[256];
    guide_read( "UNRELIABLE", promise, sizeof( promise ) );
    if ( !promise[0] )
        SKIP( "netcode.h is not in the working directory" );
    for ( int kind = 0; kind < GUIDE_ROWS; kind++ ) {
        struct guide_t it;
        guide_read( guide_names[kind], promise, sizeof( promise ) );
        guide_play( kind, &it );
        if ( strncmp( promise, "lost", 4 ) == 0 )
            CHECK( it.count < GUIDE_MESSAGES && it.count > GUIDE_MESSAGES / 4 );
        else if ( strncmp( promise, "skipped", 7 ) == 0 )
            CHECK( it.count < GUIDE_MESSAGES && it.got[GUIDE_MESSAGES - 1] == 1 );
        else {
            CHECK( strncmp( promise, "nothing", 7 ) == 0 );
            CHECK_EQ( it.count, GUIDE_MESSAGES );
        }
        if ( strstr( promise, "never older" ) || strstr( promise, "newer" ) || strstr( guide_names[kind], "ORDERED" ) )
            CHECK_EQ( it.backwards, 0 );
        else
            CHECK( it.backwards > 0 );
        CHECK_EQ( it.acked + it.lost, GUIDE_MESSAGES );
    }
}

/* ---- the page's server: events and messages ---- */

enum { DEPARTURES = 100000, DEPARTURE_SLOTS = 16 };

static struct {
    int welcomed, gone, played, wrong, here[DEPARTURE_SLOTS];
} guide;

static void welcome( int client_index, uint64_t client_id )
{
    (void) client_id;
    guide.welcomed++;
    guide.here[client_index]++;
}

static void farewell( int client_index, uint64_t client_id )
{
    (void) client_id;
    guide.gone++;
    guide.here[client_index]--;
}

static void play( int client_index, int channel, const uint8_t * data, int bytes )
{
    (void) client_index;
    guide.played++;
    guide.wrong += channel != 3 || bytes != 5 || memcmp( data, "hello", 5 ) != 0;
}

/* A tick of the server in examples/docs/MESSAGES.md, line by line: messages_guide_is_this_server compares them. */
static void guide_tick( struct netcode_server_t * server, struct netcode_messages_t ** slots, double time )
{
    const char * data = "to all";
    int bytes = 6;
    /* clang-format off */
    { /* the page's lines */
            struct netcode_message_t message;
            struct netcode_event_t event;
            netcode_server_update( server, time );
            while ( netcode_server_next_event( server, &event ) )
                if ( event.type == NETCODE_EVENT_CONNECTED )
                    welcome( event.client_index, event.client_id );
                else if ( event.type == NETCODE_EVENT_DISCONNECTED )
                    farewell( event.client_index, event.client_id );
            for ( int i = 0; i < 16; i++ ) {
                netcode_messages_pull_from_server( slots[i], server, i, time );
                while ( netcode_messages_receive( slots[i], &message ) )
                    play( i, message.channel, message.data, message.bytes );
                if ( netcode_server_client_connected( server, i ) )
                    netcode_messages_send( slots[i], 0, NETCODE_MESSAGE_RELIABLE_ORDERED, data, bytes );
                netcode_messages_push_to_server( slots[i], server, i, time );
            }
    } /* end of the page's lines */
    /* clang-format on */
}

/* The same with messages before events. */
static void guide_tick_backwards( struct netcode_server_t * server, struct netcode_messages_t ** slots, double time )
{
    struct netcode_message_t message;
    struct netcode_event_t event;
    netcode_server_update( server, time );
    for ( int i = 0; i < DEPARTURE_SLOTS; i++ ) {
        netcode_messages_pull_from_server( slots[i], server, i, time );
        while ( netcode_messages_receive( slots[i], &message ) )
            play( i, message.channel, message.data, message.bytes );
        netcode_messages_push_to_server( slots[i], server, i, time );
    }
    while ( netcode_server_next_event( server, &event ) )
        if ( event.type == NETCODE_EVENT_CONNECTED )
            welcome( event.client_index, event.client_id );
        else if ( event.type == NETCODE_EVENT_DISCONNECTED )
            farewell( event.client_index, event.client_id );
}

TEST( messages_guide_is_this_server )
{
    enum { DEEPER = 8 }; /* columns by which the lines here are further right */
    char line[256], page_line[256];
    FILE * test = fopen( "tests/story/messages_guide.c", "r" );
    FILE * page = fopen( "examples/docs/MESSAGES.md", "r" );
    int inside = 0, count = 0;
    if ( !test || !page ) {
        if ( test )
            fclose( test );
        if ( page )
            fclose( page );
        SKIP( "the page and the tests are not in the working directory" );
    }
    while ( fgets( page_line, (int) sizeof( page_line ), page ) &&
            !strstr( page_line, "struct netcode_messages_t * slots[16];" ) )
        ;
    CHECK( fgets( page_line, (int) sizeof( page_line ), page ) && strstr( page_line, "for ( ;; )" ) );
    while ( fgets( line, (int) sizeof( line ), test ) ) {
        inside = strstr( line, "    } /* end of the page's lines" ) == line ? 0 : inside;
        if ( inside ) {
            CHECK( fgets( page_line, (int) sizeof( page_line ), page ) != NULL );
            REQUIRE( strlen( line ) > DEEPER );
            CHECK_STR( page_line, line + DEEPER );
            count++;
        }
        inside = strstr( line, "    { /* the page's lines" ) == line ? 1 : inside;
    }
    CHECK_GT( count, 15 );
    fclose( test );
    fclose( page );
}

/*  Players come, say something and go: before the program looks, after that, or with another one in their slot at once.
    None of it leaks, and what they said last is heard, but where the slot has another one. */
static void guide_departures( void ( *tick )( struct netcode_server_t *, struct netcode_messages_t **, double ) )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, DEPARTURE_SLOTS, 1 );
    struct netcode_server_t * server = w->servers[0];
    struct netcode_messages_t *slots[DEPARTURE_SLOTS], *player = netcode_messages_create( small_config(), 0.0 );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int expected = 0;
    memset( &guide, 0, sizeof( guide ) );
    for ( int i = 0; i < DEPARTURE_SLOTS; i++ )
        slots[i] = netcode_messages_create( small_config(), w->time );
    tick( server, slots, w->time );
    uint32_t free_count = server->memory.inbox.pool->free_count;
    for ( int i = 0; i < DEPARTURES; i++ ) {
        int slot = i / 3 % DEPARTURE_SLOTS, how = i % 3;
        netcode_server_connect_loopback_client( server, slot, 1000 + (uint64_t) i, NULL );
        netcode_messages_reset( player, w->time );
        netcode_messages_send( player, 3, NETCODE_MESSAGE_RELIABLE, "hello", 5 );
        netcode_messages_update( player, w->time );
        int bytes = netcode_messages_generate_packet( player, packet, (int) sizeof( packet ) );
        netcode_server_process_loopback_packet( server, slot, packet, bytes, 0 );
        expected += how != 1;
        if ( how == 0 )
            tick( server, slots, w->time );
        netcode_server_disconnect_loopback_client( server, slot );
        if ( how != 1 )
            tick( server, slots, w->time += 0.001 );
    }
    tick( server, slots, w->time );
    CHECK_EQ( guide.welcomed, DEPARTURES );
    CHECK_EQ( guide.gone, DEPARTURES );
    CHECK_EQ( guide.played, expected );
    CHECK_EQ( guide.wrong, 0 );
    CHECK_EQ( server->memory.inbox.pool->held, 0 );
    CHECK_EQ( server->memory.inbox.pool->free_count, free_count );
    CHECK_EQ( server->memory.inbox.queued, 0 );
    CHECK_EQ( server->memory.inbox.events.count, 0 );
    netcode_messages_destroy( player );
    for ( int i = 0; i < DEPARTURE_SLOTS; i++ )
        netcode_messages_destroy( slots[i] );
}

TEST( messages_and_events_do_not_leak )
{
    guide_departures( guide_tick );
    guide_departures( guide_tick_backwards );
}

/*  Nobody reads while a second one comes to a slot, or while a client connects again. Messages that are pulled then are those of
    the last connection, whether it is open or not; what was before is no event any more. */
static void guide_join_late( int of_client, int is_open )
{
    struct world_t * w = world_open_with_events( CLEAN, 1, 1, 1 );
    struct netcode_messages_t *player = netcode_messages_create( small_config(), 0.0 ),
                              *late = netcode_messages_create( small_config(), w->time );
    struct netcode_client_t * client = w->clients[0];
    struct netcode_server_t * server = w->servers[0];
    struct netcode_message_t message;
    struct netcode_event_t event;
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int count = 0, events = 0;
    for ( uint8_t i = 1; i <= 2; i++ ) {
        netcode_messages_reset( player, w->time );
        netcode_messages_send( player, 3, NETCODE_MESSAGE_RELIABLE, &i, 1 );
        netcode_messages_update( player, w->time );
        int bytes = netcode_messages_generate_packet( player, packet, (int) sizeof( packet ) );
        if ( of_client ) {
            netcode_client_connect_loopback( client, 0, 1 );
            netcode_client_process_loopback_packet( client, packet, bytes, 0 );
        } else {
            netcode_server_connect_loopback_client( server, 0, i, NULL );
            netcode_server_process_loopback_packet( server, 0, packet, bytes, 0 );
        }
        if ( i == 2 && is_open )
            break;
        if ( of_client )
            netcode_client_disconnect_loopback( client );
        else
            netcode_server_disconnect_loopback_client( server, 0 );
    }
    if ( of_client )
        netcode_messages_pull_from_client( late, client, w->time );
    else
        netcode_messages_pull_from_server( late, server, 0, w->time );
    for ( ; netcode_messages_receive( late, &message ); count++ )
        CHECK_EQ( message.data[0], 2 );
    CHECK_EQ( count, 1 );
    for ( ; of_client ? netcode_client_next_event( client, &event ) : netcode_server_next_event( server, &event );
          events++ )
        CHECK( event.type != NETCODE_EVENT_PAYLOAD );
    CHECK_EQ( events, 4 - is_open );
    netcode_messages_destroy( player );
    netcode_messages_destroy( late );
}

TEST( messages_that_join_late_are_the_last_connections )
{
    for ( int i = 0; i < 4; i++ )
        guide_join_late( i / 2, i % 2 );
}
