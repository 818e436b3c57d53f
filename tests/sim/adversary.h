/*  The adversary. He sees every datagram and keeps what he likes; he replays packets and whole sessions, sends them
    back, changes them, floods, forges his address, steals tokens, and holds valid tokens of his own. What he can
    not do is break the cryptography, or keep every packet of an honest player from arriving for ever. */

#ifndef SIM_ADVERSARY_H
#define SIM_ADVERSARY_H

#include "client.h"

enum { SIM_OFF, SIM_ASKS, SIM_ANSWERED, SIM_TALKS };
enum { SIM_KEPT = 16, SIM_NOISE = 4096, SIM_OLD = 512, SIM_OLD_BYTES = 128 };

/* A client of his, which does as he says. */
struct sim_puppet_t {
    int stage;
    uint32_t token;
    uint32_t conn;
    int from;
    int to;
    int origin;     /* SIM_OWN or SIM_STOLEN */
    int patience;   /* requests that he sends without an answer */
    int is_silent;  /* never answers a challenge */
    int is_deaf;    /* sends no probe back */
    int shows_kept; /* answers with the challenge of another handshake */
    uint64_t sequence;
    int64_t next;
    int64_t until;
    uint8_t request[SIM_REQUEST_BYTES];
    uint8_t old[SIM_OLD][SIM_OLD_BYTES]; /* what it sent, to be sent again */
    uint16_t old_bytes[SIM_OLD];
    int old_count;
};

static struct {
    struct sim_puppet_t puppets[SIM_PUPPETS];
    uint8_t kept[SIM_KEPT][308]; /* challenges */
    uint32_t kept_count;
    uint8_t noise[SIM_NOISE];
    int tape; /* that is being played, or -1 */
    int tape_at;
    int tape_from; /* where it is played from */
} foe;

static int sim_any_server( void )
{
    int server = sim_below( SIM_SERVERS );
    return sim_server_at( server, net.servers[server].is_dual && sim_rarely( 3 ) );
}

static int sim_any_client( void )
{
    int client = sim_below( SIM_CLIENTS );
    return sim_client_now( &net.clients[client], sim_rarely( 3 ) );
}

static int sim_any_unknown( void )
{
    int six = sim_rarely( 4 );
    return sim_stranger_at( sim_below( SIM_STRANGERS ), six );
}

static int sim_any_address( void )
{
    switch ( sim_below( 8 ) ) {
    case 0: return SIM_NOWHERE; /* port 0 */
    case 1: return sim_any_server();
    case 2:
    case 3: return sim_any_client();
    default: return sim_any_unknown();
    }
}

static void sim_throw( int from, int to, const uint8_t * data, int bytes, int origin )
{
    sim_trace( (uint64_t) origin << 40 | (uint64_t) from << 20 | (uint64_t) to );
    sim_post( from, to, data, bytes, origin, sim_below( 64 ) );
}

/* ---- what he does with what he saw ---- */

static const struct sim_seen_t * sim_any_seen( void )
{
    return net.seen_count ? &net.seen[sim_below( (int) net.seen_count )] : NULL;
}

static void sim_act_replay( void )
{
    const struct sim_seen_t * seen = sim_any_seen();
    int copies = sim_rarely( 6 ) && !net.is_calm ? sim_between( 2, 20 ) : 1;
    int from, to;
    if ( !seen )
        return;
    from = sim_rarely( 4 ) ? sim_any_address() : seen->from;
    to = sim_rarely( 6 ) ? ( sim_is_server_at( seen->to ) ? sim_any_server() : sim_any_client() ) : seen->to;
    while ( copies-- )
        sim_throw( from, to, seen->data, seen->bytes, SIM_REPLAYED );
}

static void sim_act_reflect( void )
{
    const struct sim_seen_t * seen = sim_any_seen();
    if ( seen )
        sim_throw( seen->to, seen->from, seen->data, seen->bytes, SIM_REFLECTED );
}

/* Changes a datagram and returns its new size. */
static int sim_spoil( uint8_t * data, int bytes )
{
    const struct sim_seen_t * other = sim_any_seen();
    int at, count = sim_between( 1, 4 );
    switch ( sim_below( 7 ) ) {
    case 0: /* flipped bits */
    case 1:
        for ( ; count && bytes; count-- ) {
            at = sim_below( bytes );
            data[at] ^= (uint8_t) ( 1 << sim_below( 8 ) );
        }
        return bytes;
    case 2: data[0] = (uint8_t) sim_below( 256 ); return bytes;
    case 3: return sim_below( bytes + 1 ); /* cut */
    case 4:                                /* longer */
        at = bytes + sim_between( 1, 30 );
        memcpy( data + bytes, foe.noise, (size_t) ( at - bytes ) );
        return at;
    case 5: /* another sequence */
        at = sim_between( 1, 7 );
        if ( bytes > at )
            data[at] = (uint8_t) sim_below( 256 );
        return bytes;
    default: /* the head of the one, the tail of the other */
        at = sim_below( bytes < other->bytes ? bytes : other->bytes );
        memcpy( data + at, other->data + at, (size_t) ( other->bytes - at ) );
        return other->bytes;
    }
}

static void sim_act_forge( void )
{
    const struct sim_seen_t * seen = sim_any_seen();
    uint8_t data[SIM_CAPACITY];
    int bytes;
    if ( !seen )
        return;
    memcpy( data, seen->data, (size_t) seen->bytes );
    bytes = sim_spoil( data, seen->bytes );
    sim_throw( sim_rarely( 5 ) ? sim_any_address() : seen->from, seen->to, data, bytes, SIM_FORGED );
}

static void sim_act_junk( int count )
{
    int to = sim_rarely( 3 ) ? sim_any_client() : sim_any_server();
    for ( ; count > 0; count-- ) {
        const uint8_t * data = foe.noise + sim_below( SIM_NOISE - SIM_CAPACITY );
        int kind = sim_below( 8 ), from = sim_any_address();
        if ( kind == 0 )
            sim_throw( from, to, data, 0, SIM_EMPTY );
        else if ( kind == 1 )
            sim_throw( from, to, data, sim_between( 1226, 1500 ), SIM_OVERSIZED );
        else
            sim_throw( from, to, data, sim_between( 1, kind == 2 ? 1225 : 80 ), SIM_JUNK );
    }
}

/* A flood at full speed: it is there at once. */
static void sim_act_flood( void )
{
    int count = sim_between( 1000, SIM_SERVER_INBOX ), to = sim_any_server(), from = sim_any_address();
    const struct sim_seen_t * seen = sim_any_seen();
    int kind = sim_below( 4 ), bytes;
    for ( ; count > 0; count-- ) {
        if ( kind == 0 && seen && sim_is_server_at( seen->to ) ) {
            sim_post( seen->from, seen->to, seen->data, seen->bytes, SIM_REPLAYED, 0 );
            continue;
        }
        from = kind == 3 ? sim_any_address() : from;
        bytes = kind == 1 ? 0 : sim_between( 1, 64 );
        sim_post( from, to, foe.noise + sim_below( 2048 ), bytes, bytes ? SIM_JUNK : SIM_EMPTY, 0 );
    }
}

/* ---- whole sessions ---- */

static void sim_act_tape( void )
{
    int tape = sim_below( SIM_TAPES );
    if ( foe.tape >= 0 || net.tapes[tape].count < 2 )
        return;
    foe.tape = tape;
    foe.tape_at = 0;
    foe.tape_from = sim_rarely( 3 ) ? sim_any_address() : net.tapes[tape].from;
}

static void sim_play_tape( void )
{
    const struct sim_tape_t * tape = &net.tapes[foe.tape];
    if ( foe.tape_at >= tape->count ) {
        foe.tape = -1;
        return;
    }
    sim_throw( foe.tape_from, tape->to, tape->items[foe.tape_at].data, tape->items[foe.tape_at].bytes, SIM_REPLAYED );
    foe.tape_at++;
}

/* ---- tokens of his own, and stolen ones ---- */

static struct sim_puppet_t * sim_free_puppet( void )
{
    for ( int i = 0; i < SIM_PUPPETS; i++ )
        if ( foe.puppets[i].stage == SIM_OFF )
            return &foe.puppets[i];
    return NULL;
}

/* He reads what is sent to this address, as far as none of his does so already. */
static int sim_puppet_address( void )
{
    int at = sim_rarely( 4 ) ? sim_any_client() : sim_any_unknown();
    while ( net.puppet_at[at] )
        at = sim_stranger_at( sim_below( SIM_STRANGERS ), 0 );
    return at;
}

static uint32_t sim_own_token( int server )
{
    static const int timeouts[] = { 1, 2, 3, 5, 0, -1 };
    static const int lifetimes[] = { 5, SIM_ZERO_LIFETIME, SIM_ZERO_LIFETIME, SIM_ZERO_LIFETIME, 60, -1 };
    int lifetime = lifetimes[sim_below( net.is_zero ? 4 : 6 )], timeout = timeouts[sim_below( 6 )];
    uint32_t token = sim_new_token( SIM_ADVERSARY, 5000 + (uint64_t) sim_below( 24 ), lifetime, timeout );
    sim_name_server( token, server );
    if ( !net.is_zero && sim_rarely( 3 ) )
        sim_name_server( token, sim_any_server() );
    return token;
}

static void sim_puppet_start( uint32_t token, int to, int origin )
{
    static const uint64_t begins[] = { 0, 1000, (uint64_t) 1 << 47, ( (uint64_t) 1 << 63 ) - 3, UINT64_MAX - 9 };
    struct sim_puppet_t * p = sim_free_puppet();
    if ( !p )
        return;
    p->old_count = 0;
    p->stage = SIM_ASKS;
    p->token = token;
    p->origin = origin;
    p->from = sim_puppet_address();
    p->to = to;
    p->conn = sim_new_conn( token );
    net.conns[p->conn].is_hostile = 1;
    p->patience = sim_between( 1, 30 );
    p->is_silent = sim_rarely( 4 );
    p->is_deaf = sim_rarely( 3 );
    p->shows_kept = sim_rarely( 4 );
    p->sequence = begins[sim_below( 5 )];
    p->next = sim.tick;
    p->until = sim.tick + SIM_SECOND / 4 * sim_between( 2, 40 );
    sim_wire_request( &net.tokens[token], p->request );
    net.puppet_at[p->from] = (uint8_t) ( p - foe.puppets + 1 );
    net.mail[p - foe.puppets].bytes = 0;
}

static void sim_act_own( void )
{
    int server = sim_any_server();
    if ( sim_free_puppet() )
        sim_puppet_start( sim_own_token( server ), server, SIM_OWN );
}

/* A player's token is stolen and used, while he uses it himself. */
static void sim_act_steal( void )
{
    const struct sim_client_t * c = &net.clients[sim_below( SIM_CLIENTS )];
    if ( c->phase != SIM_PHASE_TRYING || !c->token || c->is_watched )
        return;
    net.tokens[c->token].is_stolen = 1;
    sim_puppet_start( c->token, net.tokens[c->token].servers[0], SIM_STOLEN );
}

/* More handshakes than there is room for, each with a token of its own. */
static void sim_act_crowd( void )
{
    int server = sim_any_server(), count = sim_between( 5, 60 ), from = sim_any_address();
    uint8_t request[SIM_REQUEST_BYTES];
    uint32_t token = 0;
    for ( ; count > 0; count-- ) {
        if ( !token || !sim_rarely( 8 ) )
            token = sim_own_token( server );
        sim_wire_request( &net.tokens[token], request );
        sim_throw( sim_rarely( 4 ) ? from : sim_any_address(), server, request, SIM_REQUEST_BYTES, SIM_OWN );
    }
}

static void sim_puppet_end( struct sim_puppet_t * p )
{
    net.puppet_at[p->from] = 0;
    p->stage = SIM_OFF;
}

static void sim_puppet_seal( struct sim_puppet_t * p, int type, const void * body, int bytes )
{
    uint8_t out[SIM_CAPACITY];
    if ( p->sequence == UINT64_MAX ) {
        sim_puppet_end( p );
        return;
    }
    bytes = sim_seal( out, type, p->sequence++, net.tokens[p->token].to_server_key, body, bytes );
    sim_throw( p->from, p->to, out, bytes, p->origin );
    if ( bytes > SIM_OLD_BYTES )
        return;
    memcpy( p->old[p->old_count % SIM_OLD], out, (size_t) bytes );
    p->old_bytes[p->old_count++ % SIM_OLD] = (uint16_t) bytes;
}

/* Its own packets again, also those that are about to leave the replay window. */
static void sim_puppet_repeat( struct sim_puppet_t * p )
{
    int most = p->old_count < SIM_OLD ? p->old_count : SIM_OLD;
    for ( int i = sim_between( 1, 12 ); i > 0 && most; i-- ) {
        int at = ( p->old_count - 1 - sim_below( most ) ) % SIM_OLD;
        sim_throw( p->from, p->to, p->old[at], p->old_bytes[at], p->origin );
    }
}

/* A challenge has come: he answers with it, or with another one that he kept. */
static void sim_puppet_answer( struct sim_puppet_t * p )
{
    struct sim_mail_t * mail = &net.mail[p - foe.puppets];
    uint8_t body[SIM_CAPACITY];
    int bytes = sim_open( mail->data, mail->bytes, net.tokens[p->token].to_client_key, body );
    int type = mail->data[0] & 15;
    mail->bytes = 0;
    if ( bytes != 308 || type != NETCODE_PACKET_CHALLENGE )
        return;
    if ( sim_rarely( 3 ) )
        memcpy( foe.kept[foe.kept_count++ % SIM_KEPT], body, 308 );
    if ( p->is_silent )
        return;
    if ( p->shows_kept && foe.kept_count )
        memcpy( body, foe.kept[(uint32_t) sim_below( SIM_KEPT ) % foe.kept_count], 308 );
    sim_puppet_seal( p, NETCODE_PACKET_RESPONSE, body, 308 );
    if ( p->stage != SIM_OFF )
        p->stage = SIM_ANSWERED;
    p->next = sim.tick + SIM_SECOND / 4;
}

static void sim_puppet_say( struct sim_puppet_t * p )
{
    uint8_t data[NETCODE_MAX_PACKET_SIZE];
    struct sim_conn_t * conn = &net.conns[p->conn];
    if ( conn->sent < SIM_PAYLOADS ) {
        int bytes = sim_payload_make( data, SIM_TO_SERVER, p->conn, conn->sent++ );
        sim_puppet_seal( p, NETCODE_PACKET_PAYLOAD, data, bytes );
    }
}

/* It speaks from another address, perhaps a player's; what is sent there it reads from now on. */
static void sim_puppet_move( struct sim_puppet_t * p )
{
    net.puppet_at[p->from] = 0;
    p->from = sim_puppet_address();
    net.puppet_at[p->from] = (uint8_t) ( p - foe.puppets + 1 );
    net.mail[p - foe.puppets].bytes = 0;
    sim_add_holder( p->token, p->from );
}

/* Sends a probe back, as connected clients do. */
static void sim_puppet_echo( struct sim_puppet_t * p )
{
    struct sim_mail_t * mail = &net.mail[p - foe.puppets];
    uint8_t body[SIM_CAPACITY];
    int bytes = sim_open( mail->data, mail->bytes, net.tokens[p->token].to_client_key, body );
    mail->bytes = 0;
    if ( bytes == 8 && body[7] >> 7 && !p->is_deaf )
        sim_puppet_seal( p, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
}

/* What a connected client may do that an honest one does not. */
static void sim_puppet_talk( struct sim_puppet_t * p )
{
    uint8_t zeros[16] = { 0 };
    int type = sim_between( 0, 7 ), bytes = type == NETCODE_PACKET_PAYLOAD ? 0 : sim_below( 16 ); /* of a wrong size */
    int burst = sim_rarely( 10 ) ? sim_between( 20, 400 ) : 1;
    switch ( sim_below( 12 ) ) {
    case 0: sim_puppet_seal( p, NETCODE_PACKET_KEEP_ALIVE, zeros, 8 ); break;
    case 1: sim_puppet_seal( p, type, zeros, bytes ); break;
    case 2: sim_puppet_repeat( p ); break;
    case 3:
        if ( p->sequence < UINT64_MAX / 2 )
            p->sequence += (uint64_t) 1 << sim_below( 34 );
        break;
    case 4:
        if ( sim_rarely( 4 ) )
            sim_puppet_seal( p, NETCODE_PACKET_DISCONNECT, NULL, 0 );
        break;
    case 5: sim_throw( p->from, p->to, p->request, SIM_REQUEST_BYTES, p->origin ); break;
    case 6: sim_puppet_move( p ); break;
    case 7:
        while ( burst-- && p->stage != SIM_OFF ) /* smaller than a probe */
            sim_puppet_seal( p, NETCODE_PACKET_PAYLOAD, zeros, 1 );
        break;
    default:
        while ( burst-- && p->stage != SIM_OFF )
            sim_puppet_say( p );
    }
    p->next = sim.tick + SIM_SECOND / 16 * sim_between( 1, 16 );
}

static void sim_puppet_step( struct sim_puppet_t * p )
{
    if ( sim.tick >= p->until ) {
        sim_puppet_end( p );
        return;
    }
    if ( p->stage <= SIM_ANSWERED && net.mail[p - foe.puppets].bytes )
        sim_puppet_answer( p );
    if ( p->stage == SIM_TALKS && net.mail[p - foe.puppets].bytes )
        sim_puppet_echo( p );
    if ( p->stage == SIM_OFF || sim.tick < p->next )
        return;
    if ( p->stage == SIM_ASKS ) {
        sim_add_holder( p->token, p->from );
        sim_throw( p->from, p->to, p->request, SIM_REQUEST_BYTES, p->origin );
        p->sequence += p->sequence < UINT64_MAX;
        p->next = sim.tick + SIM_SECOND / 16 * sim_between( 1, 8 );
        if ( --p->patience == 0 )
            sim_puppet_end( p );
    } else
        sim_puppet_talk( p );
    if ( p->stage == SIM_ANSWERED && sim_rarely( 3 ) )
        p->stage = SIM_TALKS;
}

/* ---- one hostile act ---- */

static void sim_act( void )
{
    switch ( sim_below( 20 ) ) {
    case 0:
    case 1:
    case 2:
    case 3: sim_act_replay(); break;
    case 4:
    case 5: sim_act_reflect(); break;
    case 6:
    case 7:
    case 8:
    case 9: sim_act_forge(); break;
    case 10:
    case 11: sim_act_junk( sim_between( 1, 10 ) ); break;
    case 12: sim_act_tape(); break;
    default:
        if ( net.is_calm ) /* then he holds no tokens, and no floods */
            sim_act_forge();
        else if ( sim_rarely( 6 ) )
            sim_act_steal();
        else
            sim_act_own();
    }
}

static void sim_adversary_step( int64_t passed )
{
    const struct sim_weather_t * w = &net.weather;
    int64_t chance = w->hostility * passed;
    for ( int i = 0; i < SIM_PUPPETS; i++ )
        if ( foe.puppets[i].stage != SIM_OFF )
            sim_puppet_step( &foe.puppets[i] );
    if ( foe.tape >= 0 )
        sim_play_tape();
    for ( ; chance > 0; chance -= SIM_SECOND )
        if ( sim_below( SIM_SECOND ) < chance )
            sim_act();
    if ( w->floods && sim_below( 40 * SIM_SECOND ) < w->floods * passed )
        sim_act_flood();
    if ( w->floods && sim_below( 60 * SIM_SECOND ) < w->floods * passed )
        sim_act_crowd();
}

static void sim_adversary_reset( void )
{
    memset( &foe, 0, sizeof( foe ) );
    foe.tape = -1;
    sim_random_bytes( foe.noise, sizeof( foe.noise ) );
}

/* He loses interest. */
static void sim_adversary_stop( void )
{
    for ( int i = 0; i < SIM_PUPPETS; i++ )
        if ( foe.puppets[i].stage != SIM_OFF )
            sim_puppet_end( &foe.puppets[i] );
    foe.tape = -1;
}

#endif
