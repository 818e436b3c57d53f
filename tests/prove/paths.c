/*  Proofs of paths: the index of slots by sequence, the candidates of a slot, and the probes that measure a path.
    Run: tests/prove/run.sh paths

    For tables and addresses, which have their proofs (prove_table, prove_address_canonical), and for what opens packets
    stand functions that do what these proofs say: FUNCTION=answer_... in proofs.list. */

#include "prove.h"

static struct netcode_server_t server;

/* The clock of a server begins at 0, and its last step is the longest one, from 2^53 s on: nc_clock_advance. */
#define LAST_TIME 9007203549708288.0

static double any_time( double least, double most )
{
    double time = any_double();
    GIVEN( time >= least && time <= most );
    return time;
}

/* ---- the index: which slots are in it ---- */

enum { SLOTS = 2 };

static nc_slot_t slots[SLOTS];
static nc_paths_t paths[SLOTS];
static uint8_t is_in[SLOTS];
static uint32_t is_under[SLOTS];

static void place_slots( void )
{
    server.memory.slot = slots;
    server.memory.paths = paths;
    server.memory.slot_count = SLOTS;
    server.config.roaming = 1;
}

/* prove_table: a slot that is inserted is there until it is removed. */
void answer_table_insert( nc_table_t * table, uint32_t hash, uint32_t index )
{
    CLAIM( table == &server.memory.slot_by_sequence && index < SLOTS && !is_in[index] );
    is_in[index] = 1;
    is_under[index] = hash;
}

void answer_table_remove( nc_table_t * table, uint32_t index )
{
    CLAIM( table == &server.memory.slot_by_sequence && index < SLOTS && is_in[index] );
    is_in[index] = 0;
}

/* The invariant: a slot is in the index exactly if it says so, and under the number that it says. */
static int is_filed( uint32_t index )
{
    uint32_t filed = paths[index].indexed_as;
    return is_in[index] <= 1 && is_in[index] == ( filed != 0 ) && ( filed == 0 || is_under[index] == filed );
}

static void any_slot( uint32_t index )
{
    slots[index].state = any_u8();
    slots[index].confirmed = any_u8();
    slots[index].replay.newest = any_u64();
}

/*  A slot is filed under its newest sequence, in 2^16ths and 32 bits, if it is to be and has sent some; no other slot is
    moved by that. */
void prove_paths_file( void )
{
    uint32_t index = any_below( SLOTS ), other = any_below( SLOTS );
    int is_member = any_int();
    place_slots();
    any_slot( index );
    paths[index].indexed_as = any_u32();
    paths[other].indexed_as = any_u32();
    is_in[index] = any_u8();
    is_in[other] = any_u8();
    is_under[index] = any_u32();
    is_under[other] = any_u32();
    GIVEN( is_filed( index ) && is_filed( other ) );

    uint32_t before = paths[other].indexed_as;
    uint64_t newest = slots[index].replay.newest;
    nc_server_index_sequence( &server, index, is_member );
    CLAIM( is_filed( index ) && is_filed( other ) );
    CLAIM( other == index || paths[other].indexed_as == before );
    int is_to_be = is_member && slots[index].confirmed && newest >= 1048576;
    CLAIM( paths[index].indexed_as == ( is_to_be ? (uint32_t) ( newest >> 16 ) : 0 ) );
}

/* ---- the index: which slot is found ---- */

/*  What is filed under the packet's number, and under the number before: so many slots. They are looked at one after the other
    and not again, so one entry stands for all: it is another slot when it is given once more. More than nine are as good as
    nine, of which one is not looked at. */
enum { ENTRY, LONGEST = NC_PATH_COMPARED + 1 };
static uint32_t left[2];
static uint64_t sequence;
static uint32_t asked;               /* for how many numbers */
static uint32_t given, tries, tried; /* tried: which of those that were given was tried last */
static int left_out;                 /* one that may have sent the packet was looked at and not tried */
static int is_authentic;

static int may_have_sent( void )
{
    const nc_slot_t * slot = &slots[ENTRY];
    return slot->state == NC_SLOT_CONNECTED && sequence > slot->replay.newest &&
           sequence - slot->replay.newest <= 65536;
}

static uint32_t give( void )
{
    left_out |= given && given <= NC_PATH_COMPARED && tried != given && may_have_sent();
    if ( left[asked - 1] == 0 )
        return NOWHERE;
    any_slot( ENTRY );
    left[asked - 1]--;
    given++;
    return ENTRY;
}

/* prove_table: of those under a hash one after the other. */
uint32_t answer_table_find( const nc_table_t * table, uint32_t hash )
{
    CLAIM( table == &server.memory.slot_by_sequence && asked < 2 && hash == (uint32_t) ( sequence >> 16 ) - asked );
    asked++;
    return give();
}

uint32_t answer_table_find_next( const nc_table_t * table, uint32_t index )
{
    CLAIM( table == &server.memory.slot_by_sequence && index == ENTRY );
    return give();
}

/* Anything may be authentic, under any key. */
int answer_try_slot( struct netcode_server_t * unused, uint32_t index, nc_received_t * arrival )
{
    (void) unused;
    (void) arrival;
    CLAIM( index == ENTRY && !is_authentic && may_have_sent() && given <= NC_PATH_COMPARED );
    tried = given;
    tries++;
    is_authentic = any_int() != 0;
    return is_authentic;
}

/*  Two keys are tried at most, of the first eight slots that are filed there: of those that are connected, and of whose
    packets this one would be the newest, not too far ahead. The client that is found is the one under
    whose key it is authentic. Where none is and fewer keys were tried, none was left out. What is dropped before it is
    looked at would have found none. */
static void claim_found( uint32_t first, uint32_t second )
{
    nc_received_t arrival;
    arrival.as.packet.type = NETCODE_PACKET_PAYLOAD;
    arrival.as.packet.sequence = sequence;
    left[0] = first;
    left[1] = second;
    asked = 0;
    int may_be_stray = nc_server_may_be_stray( &server, &arrival );
    CLAIM( may_be_stray == ( first + second > 0 ) );

    left[0] = first;
    left[1] = second;
    asked = given = tries = tried = 0;
    left_out = is_authentic = 0;
    uint32_t found = nc_server_find_by_sequence( &server, &arrival );
    CLAIM( tries <= 2 && given <= NC_PATH_COMPARED + 2 );
    CLAIM( ( found != NOWHERE ) == is_authentic );
    CLAIM( found == NOWHERE || ( found == ENTRY && given == tried && may_have_sent() ) );
    CLAIM( found != NOWHERE || tries == 2 || !left_out );
}

/*  In cases, because a solver is done with numbers far sooner than with any number: nine slots, or fewer under the packet's
    own number alone. */
void prove_paths_find( void )
{
    uint32_t first_length = any_below( LONGEST + 1 ), is_full = any_below( 2 );
    place_slots();
    sequence = any_u64();
    for ( uint32_t first = 0; first <= LONGEST; first++ )
        if ( first == first_length && is_full )
            claim_found( first, LONGEST - first );
        else if ( first == first_length )
            claim_found( first, 0 );
}

/*  A slot that is filed is looked for under its number, or under the one above it, by a packet that is at most 2^16
    above its newest one, for all sequences of 64 bits. One that is not has sent too little, or its number is 0 in 32
    bits. */
void prove_paths_numbers( void )
{
    uint64_t newest = any_u64();
    sequence = any_u64();
    place_slots();
    any_slot( 0 );
    slots[0].replay.newest = newest;
    GIVEN( sequence > newest && sequence - newest <= 65536 );
    nc_server_index_sequence( &server, 0, 1 );
    if ( is_in[0] )
        CLAIM( (uint32_t) ( sequence >> 16 ) - is_under[0] < 2 );
    else
        CLAIM( !slots[0].confirmed || newest < 1048576 || newest << 16 >> 32 == 0 );
}

/* ---- candidates ---- */

static struct netcode_address_t any_address( void )
{
    struct netcode_address_t address;
    memset( &address, 0, sizeof( address ) );
    address.type = any_u8();
    address.port = any_u16();
    for ( int i = 0; i < 8; i++ )
        address.data.ipv6[i] = any_u16();
    GIVEN( address.type == NETCODE_ADDRESS_IPV4 || address.type == NETCODE_ADDRESS_IPV6 );
    return address;
}

static int has_ended( const nc_candidate_t * candidate, double now )
{
    return candidate->address.type == NETCODE_ADDRESS_NONE || now - candidate->receive_time >= 2.0;
}

static int is_protected( const nc_candidate_t * candidate, double now )
{
    return !has_ended( candidate, now ) && now - candidate->first_time < 0.25;
}

/* A candidate that can be: it was made after the clock began, and heard since; or it is free. */
static void any_candidate( nc_candidate_t * candidate, double now )
{
    memset( candidate, 0, sizeof( *candidate ) );
    if ( any_int() )
        return;
    candidate->address = any_address();
    candidate->credit = (int32_t) any_below( NC_PATH_PROBES * NC_KEEP_ALIVE_BYTES + 1 );
    candidate->probes = (int32_t) any_below( INT32_MAX );
    candidate->receive_time = any_time( 0.0, now );
    candidate->first_time = any_time( 0.0, candidate->receive_time );
    GIVEN( candidate->first_time > 0.0 );
    for ( int i = 0; i < NC_PATH_PROBES; i++ ) {
        candidate->values[i] = any_u64();
        candidate->times[i] = any_time( 0.0, now );
    }
}

static uint32_t any_candidates( void )
{
    uint32_t index = SLOTS - 1;
    place_slots();
    server.base.clock.now = any_time( 0.0, LAST_TIME );
    for ( int i = 0; i < NC_PATH_CANDIDATES; i++ )
        any_candidate( &paths[index].candidates[i], server.base.clock.now );
    return index;
}

static int is_at( const nc_candidate_t * candidate, const struct netcode_address_t * address )
{
    return !has_ended( candidate, server.base.clock.now ) && nc_address_same( &candidate->address, address );
}

static int is_one_of( const nc_candidate_t * candidate, uint32_t index )
{
    const nc_candidate_t * first = paths[index].candidates;
    return candidate == first || candidate == first + 1 || candidate == first + 2;
}

/* A client that is found is alive and has the address; where none is found, none is and has. */
void prove_paths_find_candidate( void )
{
    struct netcode_address_t address = any_address();
    uint32_t index = any_candidates(), probe = any_below( NC_PATH_CANDIDATES );
    const nc_candidate_t * found = nc_server_find_candidate( &server, index, &address );
    if ( found )
        CLAIM( is_one_of( found, index ) && is_at( found, &address ) );
    else
        CLAIM( !is_at( &paths[index].candidates[probe], &address ) );
}

/*  An address has one entry, the one that it had. A new one takes a free entry, or that of the oldest candidate, which is
    not protected; if there is none, nothing changes but that those that ended are gone. */
void prove_paths_candidate( void )
{
    struct netcode_address_t address = any_address();
    uint32_t index = any_candidates(), probe = any_below( NC_PATH_CANDIDATES );
    nc_candidate_t * other = &paths[index].candidates[probe];
    nc_candidate_t before = *other;
    double now = server.base.clock.now;
    int was_known = nc_server_find_candidate( &server, index, &address ) != NULL;
    nc_candidate_t * made = nc_server_candidate( &server, index, &address );

    CLAIM( !made || ( is_one_of( made, index ) && nc_address_same( &made->address, &address ) ) );
    CLAIM( made || ( !was_known && !has_ended( &before, now ) ) );
    if ( made && !was_known )
        CLAIM( made->first_time == now && made->credit == 0 && made->probes == 0 && made->values[0] == 0 );
    int stays = was_known || !made || made != other;
    CLAIM( stays || !is_protected( &before, now ) );
    CLAIM( stays || has_ended( &before, now ) || made->first_time >= before.first_time );
    if ( stays && !has_ended( &before, now ) )
        CLAIM( nc_address_same( &other->address, &before.address ) && other->first_time == before.first_time &&
               other->receive_time == before.receive_time && other->credit == before.credit &&
               other->probes == before.probes && other->values[0] == before.values[0] );
    if ( made && !stays && !has_ended( &before, now ) )
        for ( int i = 0; i < NC_PATH_CANDIDATES; i++ )
            CLAIM( &paths[index].candidates[i] == made ||
                   ( paths[index].candidates[i].first_time >= before.first_time &&
                     !has_ended( &paths[index].candidates[i], now ) ) );
}

/* ---- probes to candidates ---- */

static uint8_t out[NC_OUT_STRIDE];
static uint32_t sent;
static int sent_bytes;
static const nc_slot_t * sending;

uint8_t * answer_begin( nc_outbox_t * outbox, uint8_t * spare )
{
    CLAIM( outbox == &server.base.outbox );
    if ( any_int() ) /* the network's own callback has ended it */
        slots[0].session = 0;
    return any_int() ? out : spare;
}

void answer_end( nc_outbox_t * outbox, uint8_t * what, const struct netcode_address_t * to, int type, int bytes )
{
    CLAIM( outbox == &server.base.outbox && __CPROVER_r_ok( what, (size_t) bytes ) );
    CLAIM( to->type != NETCODE_ADDRESS_NONE && type == NETCODE_PACKET_KEEP_ALIVE );
    sent++;
    sent_bytes = bytes;
}

/*  A probe leaves only if as many bytes have come, and it is paid for; after the last sequence none does, nor one for a slot
    that has ended. */
void prove_paths_probe( void )
{
    place_slots();
    server.base.clock.now = any_time( 0.0, LAST_TIME );
    any_candidate( &paths[0].candidates[0], server.base.clock.now );
    nc_candidate_t * candidate = &paths[0].candidates[0];
    GIVEN( candidate->address.type != NETCODE_ADDRESS_NONE );
    paths[0].probes = any_time( 0.0, LAST_TIME );
    slots[0].sequence = any_u64();
    slots[0].session = any_u64();
    GIVEN( slots[0].session != 0 );
    GIVEN( candidate->probes < 1 << 30 ); /* four a second would take eight years */
    int32_t credit = candidate->credit, probes = candidate->probes;
    uint64_t before = slots[0].sequence;

    nc_server_probe_candidate( &server, 0, candidate );
    CLAIM( candidate->credit >= 0 && candidate->credit <= credit && sent <= 1 );
    CLAIM( slots[0].sequence == before + sent && candidate->probes - probes == ( candidate->credit < credit ) );
    CLAIM( !sent || ( sent_bytes <= credit - candidate->credit && before >> 63 == 0 && slots[0].session != 0 ) );
    if ( candidate->probes != probes )
        CLAIM( candidate->values[probes % NC_PATH_PROBES] >> 63 &&
               candidate->times[probes % NC_PATH_PROBES] == server.base.clock.now );
}

/* ---- what is measured ---- */

/* Any function of what is hashed. */
uint64_t __CPROVER_uninterpreted_mark( uint64_t value );

uint64_t answer_hash( const uint8_t * key, const uint8_t * bytes, size_t count )
{
    CLAIM( key == server.base.probe_key && count == 8 );
    return __CPROVER_uninterpreted_mark( nc_load_u64( bytes ) );
}

/* A probe that was made is known for an own one, and can not be a number of clients. */
void prove_probe_make( void )
{
    uint64_t value = nc_probe_make( &server.base );
    CLAIM( value >> 63 && nc_probe_is_own( &server.base, value ) );
}

static nc_probe_t any_probe( double now )
{
    nc_probe_t probe;
    for ( int i = 0; i < 2; i++ ) {
        probe.values[i] = any_u64();
        probe.times[i] = any_time( -1.0, now + 1.0 );
    }
    probe.answers = any_time( 0.0, LAST_TIME );
    probe.round_trip = (float) any_time( 0.0, 2.0 );
    probe.lowest = (float) any_time( 0.0, 2.0 );
    probe.variation = (float) any_time( 0.0, 2.0 );
    return probe;
}

/* What was measured: nothing yet, or a round trip of up to 2 s, and none below the lowest. */
static int is_probe( const nc_probe_t * probe )
{
    int good = probe->round_trip >= 0.0f && probe->round_trip <= 2.0f && probe->variation >= 0.0f;
    good = good && probe->variation <= 2.0f && probe->lowest <= probe->round_trip;
    return good && ( probe->round_trip > 0.0f ? probe->lowest >= 1e-6f : probe->lowest == 0.0f );
}

void prove_probe_end( void )
{
    double now = any_time( 0.0, LAST_TIME );
    nc_probe_t probe = any_probe( now ), before = probe;
    uint64_t value = any_u64();
    GIVEN( is_probe( &probe ) && value != 0 );
    int ended = nc_probe_end( &probe, value, now );
    CLAIM( is_probe( &probe ) && ( !ended || probe.round_trip > 0.0f ) );
    CLAIM( !ended || before.values[0] == value || before.values[1] == value );
    CLAIM( !ended || before.values[0] == before.values[1] || !nc_probe_end( &probe, value, now ) );
}

void prove_probe_begin( void )
{
    double now = any_time( 0.0, LAST_TIME );
    nc_probe_t probe = any_probe( now ), before = probe;
    server.base.clock.now = now;
    uint64_t value = nc_probe_begin( &probe, &server.base );
    CLAIM( value == probe.values[0] && value >> 63 && probe.times[0] == now );
    CLAIM( probe.values[1] == before.values[0] && probe.times[1] == before.times[0] );
    CLAIM( !nc_probe_is_due( &probe, now, 0 ) && !nc_probe_is_due( &probe, now, 1 ) );
    nc_probe_init( &probe, now );
    CLAIM( probe.values[0] == 0 && probe.values[1] == 0 && is_probe( &probe ) && probe.answers == before.answers );
}
