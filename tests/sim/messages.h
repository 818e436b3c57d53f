/*  Messages of the honest players: in a run with --messages each client and each slot has a message object on top, which
    lives through everything that happens to its connections, and no other payloads are sent. Each message names its
    sender in which connection, on which channel, and its number; what must hold of them is checked when they arrive. */

#ifndef SIM_MESSAGES_H
#define SIM_MESSAGES_H

#include "books.h"

enum { SIM_MESSAGE_HEAD = 10, SIM_MESSAGE_BYTES = 4096, SIM_QUIET_SECONDS = 20 };

/* Channel by channel: the first is ordered, the second only reliable and sometimes large, the third newest first. */
static const int sim_message_kinds[SIM_CHANNELS] = { NETCODE_MESSAGE_RELIABLE_ORDERED, NETCODE_MESSAGE_RELIABLE,
                                                     NETCODE_MESSAGE_UNRELIABLE_SEQUENCED };

/* One end of a conversation. */
struct sim_mate_t {
    struct netcode_messages_t * messages;
    uint64_t session; /* as its messages know it; 0: none */
    uint32_t id;      /* of that connection: a client's attempt, a server's session */
    uint32_t peer;    /* the other side's, from its first message; 0: none has arrived */
    int is_spoilt;    /* the adversary has the keys, or a recording fits: what arrives is not checked */
    uint32_t next[SIM_CHANNELS];
    uint8_t heard[SIM_MESSAGES / 8]; /* on the second channel */
};

static struct sim_mate_t sim_client_mates[SIM_CLIENTS], sim_server_mates[SIM_SERVERS][SIM_SLOTS];

static void sim_mate_begin( struct sim_mate_t * mate )
{
    struct netcode_messages_config_t config;
    netcode_default_messages_config( &config );
    config.channels = SIM_CHANNELS;
    config.max_message_bytes = SIM_MESSAGE_BYTES;
    config.send_buffer_bytes = config.receive_buffer_bytes = 1 << 16;
    memset( mate, 0, sizeof( *mate ) );
    mate->messages = netcode_messages_create( &config, 0.0 );
    SIM_BOOK( mate->messages != NULL );
}

static void sim_messages_begin( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        sim_mate_begin( &sim_client_mates[i] );
    for ( int i = 0; i < SIM_SERVERS * SIM_SLOTS; i++ )
        sim_mate_begin( &sim_server_mates[i / SIM_SLOTS][i % SIM_SLOTS] );
}

static void sim_messages_end( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        netcode_messages_destroy( sim_client_mates[i].messages );
    for ( int i = 0; i < SIM_SERVERS * SIM_SLOTS; i++ )
        netcode_messages_destroy( sim_server_mates[i / SIM_SLOTS][i % SIM_SLOTS].messages );
    memset( sim_client_mates, 0, sizeof( sim_client_mates ) ); /* a world without messages may follow */
    memset( sim_server_mates, 0, sizeof( sim_server_mates ) );
}

/* Its client or server object is gone; the next one counts its sessions anew. */
static void sim_mate_alone( struct sim_mate_t * mate )
{
    if ( mate->messages )
        netcode_messages_reset( mate->messages, 0.0 );
    mate->session = 0;
}

/* ---- the content of messages ---- */

static int sim_message_make( uint8_t * out, int direction, uint32_t id, int channel, uint32_t number )
{
    uint64_t key = sim_mix( sim.seed * 37 + (uint64_t) direction * 11 + ( (uint64_t) id << 24 ) +
                            ( (uint64_t) channel << 20 ) + number );
    int bytes = SIM_MESSAGE_HEAD + (int) ( key % 100 );
    uint8_t * at = out;
    if ( channel == 1 && key % 13 == 0 )
        bytes = SIM_MESSAGE_BYTES - (int) ( key / 13 % 3000 );
    sim_put( &at, (uint64_t) direction, 1 );
    sim_put( &at, id, 4 );
    sim_put( &at, (uint64_t) channel, 1 );
    sim_put( &at, number, 4 );
    for ( int i = SIM_MESSAGE_HEAD; i < bytes; i++ )
        out[i] = (uint8_t) ( ( key >> ( i % 8 * 8 ) ) + (uint64_t) i * 29 );
    return bytes;
}

static struct sim_letters_t * sim_letters( int direction, uint32_t id )
{
    return direction == SIM_TO_SERVER ? &net.conns[id].letters : &net.sessions[id].letters;
}

static uint32_t sim_token_behind( int direction, uint32_t id )
{
    return direction == SIM_TO_SERVER ? net.conns[id].token : net.sessions[id].token;
}

/*  Which sender's is it? Of the one other side that this one hears in this connection, which has the same token. As
    with payloads, a recording of another use of the token falls into the window with probability 2^-15: SECURITY.md. */
static int sim_message_whose( struct sim_mate_t * mate, int direction, uint32_t id )
{
    uint32_t own = sim_token_behind( 1 - direction, mate->id );
    SIM_CHECK( message_session, sim_token_behind( direction, id ) == own,
               "a message of token %u reaches a connection of token %u", sim_token_behind( direction, id ), own );
    mate->peer = mate->peer ? mate->peer : id;
    if ( mate->peer == id )
        return 1;
    SIM_CHECK( message_session, !net.is_zero, "messages of %u and %u in one connection", mate->peer, id );
    mate->is_spoilt = 1;
    sim_total.limits++;
    return 0;
}

/* Once; in order where that is promised; never an older one where the newest counts. */
static void sim_message_counts( struct sim_mate_t * mate, struct sim_letters_t * letters, int channel, uint32_t number )
{
    SIM_CHECK( message_intact, number < letters->written[channel], "message %u of channel %d was never sent", number,
               channel );
    if ( channel == 0 )
        SIM_CHECK( message_order, number == mate->next[0], "ordered message %u comes where %u was next", number,
                   mate->next[0] );
    if ( channel == 1 ) {
        SIM_CHECK( message_once, !( mate->heard[number / 8] >> ( number % 8 ) & 1 ), "message %u comes twice", number );
        mate->heard[number / 8] |= (uint8_t) ( 1 << number % 8 );
    }
    if ( channel == 2 )
        SIM_CHECK( message_order, number >= mate->next[2], "message %u comes after %u", number, mate->next[2] - 1 );
    mate->next[channel] = number + 1;
    letters->heard[channel]++;
}

static void sim_message_check( struct sim_mate_t * mate, int direction, const struct netcode_message_t * message )
{
    uint8_t expected[SIM_MESSAGE_BYTES];
    const uint8_t * data = (const uint8_t *) message->data;
    uint32_t known = direction == SIM_TO_SERVER ? net.conn_count : net.session_count, id = 0, number = 0;
    int right = message->bytes >= SIM_MESSAGE_HEAD && data[0] == direction && data[5] == message->channel;
    if ( right ) {
        id = (uint32_t) sim_load( data + 1, 4 );
        number = (uint32_t) sim_load( data + 6, 4 );
        right = id > 0 && id < known &&
                sim_message_make( expected, direction, id, message->channel, number ) == message->bytes &&
                memcmp( data, expected, (size_t) message->bytes ) == 0;
    }
    SIM_CHECK( message_intact, right, "a message of %d bytes on channel %d is not what was sent", message->bytes,
               message->channel );
    if ( sim_message_whose( mate, direction, id ) )
        sim_message_counts( mate, sim_letters( direction, id ), message->channel, number );
}

/* ---- an end's step ---- */

static void sim_mate_follow( struct sim_mate_t * mate, int direction, uint32_t id )
{
    uint32_t token = id ? sim_token_behind( 1 - direction, id ) : 0;
    struct netcode_messages_t * messages = mate->messages;
    memset( mate, 0, sizeof( *mate ) );
    mate->messages = messages;
    mate->session = messages->session;
    mate->id = id;
    mate->is_spoilt = id == 0 || net.tokens[token].owner == SIM_ADVERSARY;
}

static void sim_mate_read( struct sim_mate_t * mate, int direction )
{
    struct netcode_message_t message;
    int is_stolen = mate->id && net.tokens[sim_token_behind( 1 - direction, mate->id )].is_stolen;
    while ( netcode_messages_receive( mate->messages, &message ) )
        if ( !mate->is_spoilt && !is_stolen )
            sim_message_check( mate, direction, &message );
}

static void sim_mate_write( struct sim_mate_t * mate, int direction )
{
    uint8_t data[SIM_MESSAGE_BYTES];
    int channel = sim_below( SIM_CHANNELS ), bytes;
    struct sim_letters_t * letters = sim_letters( direction, mate->id );
    if ( letters->written[channel] == SIM_MESSAGES )
        return;
    bytes = sim_message_make( data, direction, mate->id, channel, letters->written[channel] );
    letters->written[channel] +=
        netcode_messages_send( mate->messages, channel, sim_message_kinds[channel], data, bytes ) == NETCODE_OK;
}

/* After each update; `time` is what the update was given, however wrong. */
static void sim_client_messages( struct sim_client_t * c, double time )
{
    struct sim_mate_t * mate = &sim_client_mates[c->port.index];
    netcode_messages_pull_from_client( mate->messages, c->client, time );
    if ( mate->messages->session != mate->session )
        sim_mate_follow( mate, SIM_TO_CLIENT, sim_client_conns[c->port.index][mate->messages->session % 16] );
    if ( !c->is_lazy || net.is_calm || sim_rarely( 16 ) )
        sim_mate_read( mate, SIM_TO_CLIENT );
    if ( c->state == NETCODE_CLIENT_STATE_CONNECTED && mate->session && mate->id && sim.tick >= c->talk_at &&
         !net.is_quiet ) {
        sim_mate_write( mate, SIM_TO_SERVER );
        c->talk_at = sim.tick + c->talk;
    }
    netcode_messages_push_to_client( mate->messages, c->client, time );
}

static void sim_slot_messages( struct sim_server_t * s, int slot, double time )
{
    struct sim_mate_t * mate = &sim_server_mates[s->port.index][slot];
    netcode_messages_pull_from_server( mate->messages, s->server, slot, time );
    if ( mate->messages->session != mate->session )
        sim_mate_follow( mate, SIM_TO_SERVER, s->in_slot[slot] );
    if ( !s->is_lazy || net.is_calm || sim_rarely( 16 ) )
        sim_mate_read( mate, SIM_TO_SERVER );
    if ( mate->session && mate->id && !net.is_quiet && sim_rarely( s->is_chatty ? 3 : 24 ) )
        sim_mate_write( mate, SIM_TO_CLIENT );
    netcode_messages_push_to_server( mate->messages, s->server, slot, time );
}

/* Have all reliable ones of this connection arrived? */
static int sim_letters_arrived( const struct sim_letters_t * letters )
{
    return letters->written[0] == letters->heard[0] && letters->written[1] == letters->heard[1];
}

/* Returns 0 while reliable messages of watched players are in flight. */
static int sim_messages_arrived( void )
{
    for ( int i = 0; i < SIM_CLIENTS; i++ )
        if ( net.clients[i].is_watched && !sim_letters_arrived( &net.conns[net.clients[i].conn].letters ) )
            return 0;
    for ( int i = 0; i < SIM_SERVERS * SIM_SLOTS; i++ ) {
        uint32_t session = net.servers[i / SIM_SLOTS].in_slot[i % SIM_SLOTS];
        if ( session && net.tokens[net.sessions[session].token].owner != SIM_ADVERSARY &&
             !sim_letters_arrived( &net.sessions[session].letters ) )
            return 0;
    }
    return 1;
}

#endif
