/*  The stage of make torture: one or two servers and a client over any transport, in virtual time, that go on whatever is
    refused: a create that failed is repeated, and in the end they are connected and talk. Part of tests/torture.c. */

#ifndef TORTURE_STAGE_H
#define TORTURE_STAGE_H

#include "calls.h"
#include "system.h"

enum { STAGE_UDP, STAGE_SIMULATOR, STAGE_OWN_SOCKETS, STAGE_OVERRIDE };
enum {
    STAGE_TRIES = 80,
    STAGE_STEPS = 600,
    STAGE_PATIENT_STEPS = 60,
    STAGE_TIMEOUT_STEPS = 90,
    STAGE_POST = 64,
    STAGE_ATTEMPTS = 8,
    STAGE_CALLS = 400, /* the most in one step, of a client and a server */
    STAGE_MAP_BYTES = 5000
};

struct story_t {
    const char * name;
    int transport;
    void ( *script )( void );
    int dual;       /* needs ::1 */
    int batch;      /* batch_sends on both sides */
    int share;      /* share_port and kernel_filter: there are two servers at one port */
    int waits;      /* the client and the server wait at each step */
    int dead_first; /* the token names a server that is gone before the one that is there */
    int slots;
};

struct stage_how_t {
    int hooks;     /* allocator hooks, else malloc */
    int single;    /* one call is refused and no more: no attempt to connect may end by it */
    int is_search; /* of sweep 4 */
    int may_fail;  /* what is refused for good is needed: it ends cleanly */
};

struct stage_letter_t {
    int to_server;
    int bytes;
    uint8_t data[NC_MAX_DATAGRAM_BYTES];
};

static struct {
    const struct story_t * story;
    struct stage_how_t how;
    int most_calls; /* of the system, in one step */
    int failed;     /* the story can not go on */
    int wakes;      /* waits that returned at once */
    struct netcode_network_simulator_t * net;
    struct netcode_server_t * servers[2];
    struct netcode_client_t * client;
    struct netcode_messages_t * messages[2];            /* the client's, and those of slot 0 */
    char address[2][NETCODE_MAX_ADDRESS_STRING_LENGTH]; /* of a dead server, and of the one there is */
    double time;
    uint64_t client_id;
    int lines;
    int refused_creates;
    int refused_starts;
    uint64_t send_errors; /* of all clients and servers that are gone */
    uint64_t receive_errors;
    struct stage_letter_t post[STAGE_POST]; /* in transit between the override callbacks */
    int post_count;
} stage;

static const uint8_t stage_key[NETCODE_KEY_BYTES] = { 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9 };

#define STAGE_PROTOCOL 0x746f7274u

static void stage_fail( const char * what )
{
    if ( !stage.failed && !stage.how.may_fail )
        watch_finding( "%s", what );
    stage.failed = 1;
}

static void stage_log( void * context, int level, const char * text )
{
    (void) context;
    (void) level;
    stage.lines += text[0] != 0;
}

/* ---- the override callbacks: a post without a system ---- */

static void stage_post_push( int to_server, const uint8_t * data, int bytes )
{
    struct stage_letter_t * letter;
    if ( stage.post_count == STAGE_POST )
        return;
    letter = &stage.post[stage.post_count++];
    letter->to_server = to_server;
    letter->bytes = bytes;
    memcpy( letter->data, data, (size_t) bytes );
}

static int stage_post_pull( int to_server, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    int i, bytes;
    for ( i = 0; i < stage.post_count && stage.post[i].to_server != to_server; i++ )
        continue;
    if ( i == stage.post_count || stage.post[i].bytes > capacity )
        return 0;
    bytes = stage.post[i].bytes;
    memcpy( data, stage.post[i].data, (size_t) bytes );
    memmove( &stage.post[i], &stage.post[i + 1], (size_t) ( --stage.post_count - i ) * sizeof( stage.post[0] ) );
    netcode_parse_address( to_server ? "10.1.0.1:50000" : "10.0.0.1:40000", from );
    return bytes;
}

static void stage_client_sends( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    (void) context;
    (void) to;
    stage_post_push( 1, data, bytes );
}

static void stage_server_sends( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes )
{
    (void) context;
    (void) to;
    stage_post_push( 0, data, bytes );
}

static int stage_client_receives( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    (void) context;
    return stage_post_pull( 0, from, data, capacity );
}

static int stage_server_receives( void * context, struct netcode_address_t * from, uint8_t * data, int capacity )
{
    (void) context;
    return stage_post_pull( 1, from, data, capacity );
}

/* ---- making and ending ---- */

/*  Clean: an error that says why, a line in the log, and nothing that a call which can not matter could have caused. A
    simulator without memory has no port to give, and says no more than that. */
static void stage_judge_create( int error, int memory_error, int lines )
{
    int kind = system_state.refused_kind, option = system_state.refused_option;
    int decisive =
        kind == SYSTEM_SOCKET || kind == SYSTEM_BIND || kind == SYSTEM_GETSOCKNAME ||
        ( kind == SYSTEM_FCNTL && option != F_SETFD ) ||
        ( kind == SYSTEM_SETSOCKOPT && ( option == SYSTEM_OPTION( IPPROTO_IPV6, IPV6_V6ONLY ) || stage.story->share ) );
    stage.refused_creates++;
    if ( error == 0 )
        watch_finding( "create failed without an error" );
    if ( stage.lines == lines )
        watch_finding( "create failed without a line in the log" );
    if ( !watcher.refused && !system_state.refused )
        stage_fail( "create failed, and nothing was refused" );
    if ( watcher.refused && error != memory_error && stage.story->transport != STAGE_SIMULATOR )
        watch_finding( "create failed for want of memory, and its error is %d", error );
    if ( stage.how.single && !watcher.refused && !decisive )
        watch_finding( "create failed, though only %s was refused", system_names[kind] );
}

/* Did a create with two addresses go on with one? It is as clean as one that fails, and the story needs both. */
static int stage_lacks_family( const struct netcode_socket_t * socket, int lines )
{
    if ( !stage.story->dual || ( (const nc_socket_udp_t *) socket->context )->count == 2 )
        return 0;
    stage_judge_create( 1, 1, lines );
    return 1;
}

/* The port that the system chose for the first server is the second one's too. */
static void stage_server_config( struct netcode_server_config_t * config, int which )
{
    netcode_default_server_config( config );
    config->protocol_id = STAGE_PROTOCOL;
    memcpy( config->private_key, stage_key, NETCODE_KEY_BYTES );
    if ( stage.how.hooks ) {
        config->allocator_context = &stage.servers[which];
        config->allocate_function = watch_allocate;
        config->free_function = watch_release;
    }
    config->log_callback = stage_log;
    config->batch_sends = stage.story->batch;
    config->packet_pool_buffers = 16;
    config->pending_handshakes = config->consumed_tokens = 16;
    config->share_port = stage.story->share;
    config->kernel_filter = stage.story->share - 1;
    config->roaming = !stage.story->share;
    if ( stage.story->transport == STAGE_UDP ) {
        config->bind_address = which ? stage.address[1] : "127.0.0.1:0";
        config->bind_address2 = "[::1]:0";
    }
    config->network_simulator = stage.net;
    config->override_send_and_receive = stage.story->transport == STAGE_OVERRIDE;
    config->send_packet_override = stage_server_sends;
    config->receive_packet_override = stage_server_receives;
}

static void stage_client_config( struct netcode_client_config_t * config )
{
    netcode_default_client_config( config );
    if ( stage.how.hooks ) {
        config->allocator_context = &stage.client;
        config->allocate_function = watch_allocate;
        config->free_function = watch_release;
    }
    config->log_callback = stage_log;
    config->batch_sends = stage.story->batch;
    config->packet_pool_buffers = 16;
    config->update_budget = 256;
    config->network_simulator = stage.net;
    config->override_send_and_receive = stage.story->transport == STAGE_OVERRIDE;
    config->send_packet_override = stage_client_sends;
    config->receive_packet_override = stage_client_receives;
}

/* A socket of the caller's own for a create that takes one. */
static int stage_own_socket( const char * text, struct netcode_socket_t * socket )
{
    struct netcode_address_t address;
    int tries;
    netcode_parse_address( text, &address );
    for ( tries = 0; tries < STAGE_TRIES; tries++ )
        if ( calls_simulator_socket( stage.net, &address, socket ) == NETCODE_OK )
            return 1;
    stage_fail( "no socket on the simulator" );
    return 0;
}

static struct netcode_server_t * stage_try_server( int which )
{
    struct netcode_server_config_t config;
    struct netcode_socket_t socket;
    struct netcode_server_t * server;
    int lines = stage.lines, udp = stage.story->transport == STAGE_UDP;
    const char * text = udp ? "127.0.0.1:0" : "10.0.0.1:40000";
    stage_server_config( &config, which );
    if ( stage.story->transport == STAGE_OWN_SOCKETS && !stage_own_socket( text, &socket ) )
        return NULL;
    config.socket = stage.story->transport == STAGE_OWN_SOCKETS ? &socket : NULL;
    server = stage.story->dual ? calls_server_create_dual( text, "[::1]:0", &config, stage.time )
                               : calls_server_create( which ? stage.address[1] : text, &config, stage.time );
    if ( !server ) {
        stage_judge_create( netcode_server_create_error(), NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED, lines );
        if ( config.socket )
            socket.close( socket.context );
    } else if ( stage_lacks_family( &server->base.socket, lines ) ) {
        calls_server_destroy( server );
        server = NULL;
    }
    return server;
}

static void stage_make_server( int which )
{
    const char * host = stage.story->dual ? "[::1]" : stage.story->transport == STAGE_UDP ? "127.0.0.1" : "10.0.0.1";
    int tries;
    for ( tries = 0; tries < STAGE_TRIES && !stage.servers[which] && !stage.failed; tries++ )
        stage.servers[which] = stage_try_server( which );
    if ( !stage.servers[which] )
        stage_fail( "no server can be made" );
    else if ( which == 0 )
        snprintf( stage.address[1], sizeof( stage.address[1] ), "%s:%d", host,
                  netcode_server_get_port( stage.servers[0] ) );
}

static struct netcode_client_t * stage_try_client( void )
{
    struct netcode_client_config_t config;
    struct netcode_socket_t socket;
    struct netcode_client_t * client;
    int lines = stage.lines;
    const char * text = stage.story->transport == STAGE_UDP ? "127.0.0.1:0" : "10.1.0.1:50000";
    stage_client_config( &config );
    if ( stage.story->transport == STAGE_OWN_SOCKETS && !stage_own_socket( text, &socket ) )
        return NULL;
    config.socket = stage.story->transport == STAGE_OWN_SOCKETS ? &socket : NULL;
    client = stage.story->dual ? calls_client_create_dual( text, "[::1]:0", &config, stage.time )
                               : calls_client_create( text, &config, stage.time );
    if ( !client ) {
        stage_judge_create( netcode_client_create_error(), NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED, lines );
        if ( config.socket )
            socket.close( socket.context );
    } else if ( stage_lacks_family( &client->base.socket, lines ) ) {
        calls_client_destroy( client );
        client = NULL;
    }
    return client;
}

static void stage_make_client( void )
{
    int tries;
    for ( tries = 0; tries < STAGE_TRIES && !stage.client && !stage.failed; tries++ )
        stage.client = stage_try_client();
    if ( !stage.client )
        stage_fail( "no client can be made" );
}

static void stage_make_net( void )
{
    int tries;
    if ( stage.story->transport != STAGE_SIMULATOR && stage.story->transport != STAGE_OWN_SOCKETS )
        return;
    for ( tries = 0; tries < STAGE_TRIES && !stage.net; tries++ )
        stage.net = stage.how.hooks ? calls_simulator_create( &stage.net, watch_allocate, watch_release )
                                    : calls_simulator_create( NULL, NULL, NULL );
    if ( !stage.net )
        stage_fail( "no simulator can be made" );
}

/* A server that has no memory stays stopped, says so, and starts when there is some. */
static void stage_start( int which, int slots )
{
    struct netcode_server_t * server = stage.servers[which];
    int tries, lines;
    for ( tries = 0; tries < STAGE_TRIES && !stage.failed; tries++ ) {
        lines = stage.lines;
        calls_server_start( server, slots );
        if ( netcode_server_running( server ) )
            break;
        stage.refused_starts++;
        if ( stage.lines == lines || netcode_server_max_clients( server ) != 0 )
            watch_finding( "a server that could not start did not say so" );
        if ( !watcher.refused )
            stage_fail( "start failed, and nothing was refused" );
        netcode_server_update( server, stage.time );
    }
    if ( !stage.failed && netcode_server_max_clients( server ) != slots )
        stage_fail( "the server can not be started" );
}

static void stage_end_server( int which )
{
    struct netcode_server_stats_t stats;
    if ( !stage.servers[which] )
        return;
    netcode_server_stop( stage.servers[which] );
    netcode_server_stats( stage.servers[which], &stats );
    stage.send_errors += stats.send_errors;
    stage.receive_errors += stats.receive_errors;
    calls_server_destroy( stage.servers[which] );
    stage.servers[which] = NULL;
}

static void stage_end_client( void )
{
    struct netcode_client_stats_t stats;
    if ( !stage.client )
        return;
    netcode_client_disconnect( stage.client );
    netcode_client_flush( stage.client );
    netcode_client_stats( stage.client, &stats );
    stage.send_errors += stats.send_errors;
    stage.receive_errors += stats.receive_errors;
    calls_client_destroy( stage.client );
    stage.client = NULL;
}

static void stage_make_messages( void )
{
    struct netcode_messages_config_t config;
    int tries, i;
    netcode_default_messages_config( &config );
    config.max_message_bytes = STAGE_MAP_BYTES;
    for ( i = 0; i < 2; i++ ) {
        if ( stage.how.hooks ) {
            config.allocator_context = &stage.messages[i];
            config.allocate_function = watch_allocate;
            config.free_function = watch_release;
        }
        for ( tries = 0; tries < STAGE_TRIES && !stage.messages[i] && !stage.failed; tries++ ) {
            stage.messages[i] = calls_messages_create( &config, stage.time );
            if ( !stage.messages[i] && !watcher.refused )
                stage_fail( "messages could not be made, and nothing was refused" );
        }
        if ( !stage.messages[i] )
            stage_fail( "no messages can be made" );
    }
}

static void stage_end_messages( void )
{
    int i;
    for ( i = 0; i < 2; i++ ) {
        calls_messages_destroy( stage.messages[i] );
        stage.messages[i] = NULL;
    }
}

/* ---- time ---- */

/* The system delivers at once, unless it is busy: one that has waited long waits in real time too. */
static void stage_step( int steps )
{
    int i;
    stage.time += 0.1;
    system_state.all_calls = 0;
    if ( system_state.refused && ++system_state.steps > system_state.sick_steps && system_state.sick_steps )
        system_heal();
    if ( steps > ( stage.story->dead_first ? STAGE_TIMEOUT_STEPS : STAGE_PATIENT_STEPS ) &&
         stage.story->transport == STAGE_UDP && !stage.how.may_fail )
        netcode_sleep( 0.001 );
    if ( stage.net )
        netcode_network_simulator_update( stage.net, stage.time );
    for ( i = 0; i < 2; i++ )
        if ( stage.servers[i] )
            netcode_server_update( stage.servers[i], stage.time );
    netcode_client_update( stage.client, stage.time );
    for ( i = 0; i < 2 && stage.story->waits; i++ ) {
        int sleeps = test_sleeps;
        system_state.woke = 0;
        if ( i == 0 )
            netcode_client_wait( stage.client, 0.00001 );
        else
            netcode_server_wait( stage.servers[0], 0.00001 );
        stage.wakes += system_state.woke && sleeps == test_sleeps;
        if ( system_state.woke < 0 && sleeps == test_sleeps )
            watch_finding( "select was refused, and a wait returned at once" );
    }
    system_state.starts -= system_state.starts > 0;
    stage.most_calls = system_state.all_calls > stage.most_calls ? system_state.all_calls : stage.most_calls;
}

/* ---- what the client does ---- */

static void stage_token( uint8_t * token )
{
    const char * list[2];
    int dead = stage.story->dead_first;
    list[0] = stage.address[dead ? 0 : 1];
    list[1] = stage.address[1];
    if ( netcode_generate_connect_token( 1 + dead, list, list, -1, dead ? 8 : 30, ++stage.client_id, STAGE_PROTOCOL,
                                         stage_key, NULL, token ) != NETCODE_OK )
        stage_fail( "no token can be made" );
}

static int stage_attempt( void )
{
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    int steps;
    stage_token( token );
    netcode_client_connect( stage.client, token );
    for ( steps = 0; steps < STAGE_STEPS && netcode_client_state( stage.client ) > 0; steps++ ) {
        if ( netcode_client_state( stage.client ) == NETCODE_CLIENT_STATE_CONNECTED )
            return 1;
        stage_step( steps );
    }
    return 0;
}

/* Where one call is refused, the first attempt succeeds; where many are, a fresh one does. */
static void stage_join( void )
{
    int attempts;
    for ( attempts = 0; attempts < STAGE_ATTEMPTS && !stage.failed; attempts++ ) {
        if ( stage_attempt() )
            return;
        if ( stage.how.single || stage.how.may_fail || attempts == STAGE_ATTEMPTS - 1 )
            stage_fail( netcode_client_state_name( netcode_client_state( stage.client ) ) );
    }
}

/* Is this payload what the other side sends? */
static int stage_known( const uint8_t * data, int bytes, uint8_t first )
{
    int i;
    for ( i = 1; i < bytes && data[i] == (uint8_t) ( i * 7 ); i++ )
        continue;
    if ( data[0] != first || i != bytes || bytes != 100 )
        watch_finding( "a payload of %d bytes arrived that was not sent", bytes );
    return 1;
}

static int stage_read_server( struct netcode_server_t * server )
{
    int slot, bytes, count = 0;
    uint8_t * packet;
    for ( slot = 0; server && slot < netcode_server_max_clients( server ) && slot < 4; slot++ )
        while ( ( packet = netcode_server_receive_packet( server, slot, &bytes, NULL ) ) != NULL ) {
            count += stage_known( packet, bytes, 'c' );
            netcode_server_free_packet( server, packet );
        }
    return count;
}

static int stage_read_client( void )
{
    int bytes, count = 0;
    uint8_t * packet;
    while ( ( packet = netcode_client_receive_packet( stage.client, &bytes, NULL ) ) != NULL ) {
        count += stage_known( packet, bytes, 's' );
        netcode_client_free_packet( stage.client, packet );
    }
    return count;
}

static void stage_send( void )
{
    uint8_t data[100];
    int i;
    for ( i = 0; i < 100; i++ )
        data[i] = (uint8_t) ( i * 7 );
    for ( i = 0; i < 3; i++ ) {
        data[0] = 'c';
        netcode_client_send_packet( stage.client, data, 100 );
        data[0] = 's';
        netcode_server_broadcast( stage.servers[0], data, 100, -1 );
        if ( stage.servers[1] )
            netcode_server_broadcast( stage.servers[1], data, 100, -1 );
    }
}

/* Payloads both ways: sent until they arrive. */
static void stage_talk( void )
{
    int steps, to_server = 0, to_client = 0;
    for ( steps = 0; steps < STAGE_STEPS && !stage.failed; steps++ ) {
        stage_send();
        stage_step( steps );
        to_server += stage_read_server( stage.servers[0] ) + stage_read_server( stage.servers[1] );
        to_client += stage_read_client();
        if ( to_server && to_client )
            return;
    }
    stage_fail( "payloads do not arrive" );
}

/* ---- messages both ways ---- */

/* An ordered message in two parts: what is in each says which it is. */
static void stage_write( struct netcode_messages_t * messages, uint8_t first )
{
    uint8_t data[STAGE_MAP_BYTES];
    int i, sent;
    for ( i = 0; i < STAGE_MAP_BYTES; i++ )
        data[i] = (uint8_t) ( i * 7 );
    data[0] = first;
    sent = netcode_messages_send( messages, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, data, STAGE_MAP_BYTES );
    if ( sent == NETCODE_OK )
        sent = netcode_messages_send( messages, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, data, 100 );
    if ( sent != NETCODE_OK )
        stage_fail( "a message can not be queued" );
}

/* Returns how many have arrived in all; the large one is the first. */
static int stage_read( struct netcode_messages_t * messages, uint8_t first, int arrived )
{
    struct netcode_message_t message;
    const uint8_t * data;
    int i;
    while ( netcode_messages_receive( messages, &message ) ) {
        data = (const uint8_t *) message.data;
        for ( i = 1; i < message.bytes && data[i] == (uint8_t) ( i * 7 ); i++ )
            continue;
        if ( data[0] != first || i != message.bytes || message.bytes != ( arrived ? 100 : STAGE_MAP_BYTES ) )
            watch_finding( "a message of %d bytes arrived that was not sent so", message.bytes );
        arrived++;
    }
    return arrived;
}

/* A large message and a small one both ways, each once and in order, however many packets are lost. */
static void stage_chat( void )
{
    int steps, to_server = 0, to_client = 0, written = 0;
    for ( steps = 0; steps < STAGE_STEPS && !stage.failed; steps++ ) {
        netcode_messages_pull_from_client( stage.messages[0], stage.client, stage.time );
        netcode_messages_pull_from_server( stage.messages[1], stage.servers[0], 0, stage.time );
        if ( !written ) {
            written = 1;
            stage_write( stage.messages[0], 'c' );
            stage_write( stage.messages[1], 's' );
        }
        netcode_messages_push_to_client( stage.messages[0], stage.client, stage.time );
        netcode_messages_push_to_server( stage.messages[1], stage.servers[0], 0, stage.time );
        stage_step( steps );
        to_client = stage_read( stage.messages[0], 's', to_client );
        to_server = stage_read( stage.messages[1], 'c', to_server );
        if ( to_server == 2 && to_client == 2 )
            return;
    }
    stage_fail( "messages do not arrive" );
}

static int stage_players( void )
{
    return netcode_server_num_connected_clients( stage.servers[0] ) +
           ( stage.servers[1] ? netcode_server_num_connected_clients( stage.servers[1] ) : 0 );
}

/* Its ten packets may all be lost: then the server finds out by the timeout. */
static void stage_leave( void )
{
    int steps;
    if ( stage.failed )
        return;
    netcode_client_disconnect( stage.client );
    for ( steps = 0; steps < STAGE_STEPS && stage_players(); steps++ )
        stage_step( steps );
    if ( stage_players() )
        stage_fail( "a slot is not emptied" );
}

/* The server went away under the client: it is notified, or finds out. */
static void stage_abandoned( void )
{
    int steps;
    for ( steps = 0; steps < STAGE_STEPS && !stage.failed; steps++ ) {
        if ( netcode_client_state( stage.client ) <= 0 )
            return;
        stage_step( steps );
    }
    stage_fail( "the client does not notice that its server went away" );
}

/* What was refused was counted. */
static void stage_judge_counts( void )
{
    if ( stage.send_errors != (uint64_t) system_state.expected_send_errors && !stage.story->dead_first )
        watch_finding( "send_errors are %d and not %d", (int) stage.send_errors, system_state.expected_send_errors );
    /* the third refusal in a row of recvmmsg is no error: from there on the call for one datagram is used, on each socket */
    int falls_back = system_state.fail_for >= (int) NC_SOCKET_REFUSALS ? system_state.counts[SYSTEM_RECVMMSG] / 3 : 0;
    if ( stage.receive_errors + (uint64_t) falls_back < (uint64_t) system_state.expected_receive_errors ||
         ( stage.receive_errors > (uint64_t) system_state.expected_receive_errors && !stage.story->dead_first ) )
        watch_finding( "receive_errors are %d and not %d", (int) stage.receive_errors,
                       system_state.expected_receive_errors );
}

/* Waits waited, the log stays readable, and no update makes calls without end. */
static void stage_judge_search( void )
{
    double more = 8.0 + stage.time - 100.0; /* a client takes a new socket each second */
    if ( (double) stage.wakes > (double) system_state.datagrams + more && !system_state.every )
        watch_finding( "%d waits returned at once, for %d datagrams", stage.wakes, system_state.datagrams );
    if ( stage.most_calls > STAGE_CALLS )
        watch_finding( "%d calls in one step", stage.most_calls );
    if ( (double) stage.lines > 4.0 * ( more + stage.refused_creates ) )
        watch_finding( "%d lines in the log, after %.1f s", stage.lines, stage.time - 100.0 );
}

/* Everything is given back. */
static void stage_close( void )
{
    stage_end_messages();
    stage_end_client();
    stage_end_server( 0 );
    stage_end_server( 1 );
    calls_simulator_destroy( stage.net );
    system_disarm();
    if ( watcher.live )
        watch_finding( "%d blocks were not given back", watcher.live );
    if ( watcher.open_handles )
        watch_finding( "%d handles were not closed", watcher.open_handles );
    if ( stage.how.is_search )
        stage_judge_search();
    else
        stage_judge_counts();
    watch_close_handles();
    watch_forget_blocks();
}

static void stage_run( const struct story_t * story, struct stage_how_t how )
{
    memset( &stage, 0, sizeof( stage ) );
    stage.story = story;
    stage.how = how;
    stage.time = 100.0;
    stage.client_id = 1000;
    story->script();
    stage_close();
}

#endif
