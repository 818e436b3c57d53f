/*  Story: the manual's table of what to send how. Each row is read from the text of netcode.h, and its promise is held over a bad
    link: what may be lost may be, what may not is not. Run: runner messages_guide.c */

enum { GUIDE_ROWS = 8, GUIDE_MESSAGES = 600 };

/* The kinds in the manual's order are the kinds by number. */
static const char * const guide_names[GUIDE_ROWS] = { "UNRELIABLE",
                                                      "UNRELIABLE_SEQUENCED",
                                                      "RELIABLE",
                                                      "RELIABLE_ORDERED",
                                                      "RELIABLE_SEQUENCED",
                                                      "UNRELIABLE_WITH_RECEIPT",
                                                      "RELIABLE_WITH_RECEIPT",
                                                      "RELIABLE_ORDERED_WITH_RECEIPT" };

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
    memset( it, 0, sizeof( *it ) );
    link_open( &link, NULL, test_random(), 0.04, 0.1 );
    link.ways[0].jitter = 0.05;
    for ( int number = 0; number < GUIDE_MESSAGES + 240; number++ ) {
        if ( number < GUIDE_MESSAGES )
            CHECK_EQ( netcode_messages_send( link.ends[0], 0, kind, &number, sizeof( number ) ), NETCODE_OK );
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
        if ( kind >= NETCODE_MESSAGE_UNRELIABLE_WITH_RECEIPT )
            CHECK_EQ( it.acked + it.lost, GUIDE_MESSAGES );
    }
}
