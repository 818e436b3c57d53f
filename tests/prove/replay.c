/*  Proofs of replay: the replay window, for every state that it can be in, against a specification that knows no bits: a set
    of received sequences, a floor and the newest. Run: tests/prove/run.sh replay

    One step from any state proves every history: prove_replay_init shows that the invariant holds at first, and the others
    that no step ends it. A set of 2^64 sequences is spoken of by one of them, `probe`, which stands for all. */

#include "prove.h"

/* The set, at two sequences: the probe's, and the one that a packet carries. */
typedef struct {
    uint64_t floor;
    uint64_t newest;
} model_t;

static const uint64_t window = 320, longest_jump = 4294967296u;

/* Standard: Replay Protection, and decision 5. Was `sequence` received? */
static int model_verdict( const model_t * model, uint64_t sequence, int received )
{
    if ( sequence <= model->floor )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    if ( sequence > model->newest && sequence - model->newest > longest_jump )
        return NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD;
    if ( sequence < model->newest && model->newest - sequence >= window )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    return received ? NETCODE_DROP_REPLAYED : NETCODE_DROP_NONE;
}

static int bit( const nc_replay_t * replay, uint64_t sequence )
{
    return (int) ( replay->bits[sequence / 64 % NC_REPLAY_WORDS] >> ( sequence % 64 ) & 1 );
}

/*  The invariant at one sequence: above the newest nothing was received, and its word holds no bit there; in the window a
    bit says what was received. What is older has no bit any more. */
static int agrees( const nc_replay_t * replay, uint64_t sequence, int received )
{
    if ( sequence > replay->newest )
        return !received && ( sequence / 64 != replay->newest / 64 || !bit( replay, sequence ) );
    return sequence <= replay->floor || replay->newest - sequence >= window || bit( replay, sequence ) == received;
}

static nc_replay_t any_replay( void )
{
    nc_replay_t replay;
    replay.floor = any_u64();
    replay.newest = any_u64();
    for ( int i = 0; i < NC_REPLAY_WORDS; i++ )
        replay.bits[i] = any_u64();
    GIVEN( replay.newest >= replay.floor );
    return replay;
}

void prove_replay_init( void )
{
    nc_replay_t replay = any_replay();
    uint64_t floor = any_u64(), probe = any_u64();
    nc_replay_init( &replay, floor );
    CLAIM( replay.newest == floor && replay.floor == floor && agrees( &replay, probe, 0 ) );
}

/* The verdict on any sequence is the specification's. */
void prove_replay_seen( void )
{
    nc_replay_t replay = any_replay();
    model_t model = { replay.floor, replay.newest };
    uint64_t sequence = any_u64();
    int received = any_int() != 0;
    GIVEN( agrees( &replay, sequence, received ) );
    CLAIM( nc_replay_seen( &replay, sequence ) == model_verdict( &model, sequence, received ) );
}

/*  A packet that was let through enters the set, and nothing else enters or leaves it. In cases, because a solver is done with
    each far sooner than with all: by how many words the newest moves, and how many words behind it the probe is. Words in front
    of the newest count as very far back. */
static void claim_step( uint64_t moves_from, uint64_t moves_to, uint64_t back_from, uint64_t back_to )
{
    nc_replay_t replay = any_replay();
    model_t model = { replay.floor, replay.newest };
    uint64_t sequence = any_u64(), probe = any_u64();
    uint64_t newest = moves_from || sequence > model.newest ? sequence : model.newest;
    uint64_t moves = newest / 64 - model.newest / 64, back = newest / 64 - probe / 64;
    int received = any_int() != 0, probe_received = any_int() != 0;
    GIVEN( !moves_from || sequence > model.newest );
    GIVEN( moves >= moves_from && moves <= moves_to && back >= back_from && back <= back_to );
    GIVEN( agrees( &replay, sequence, received ) && agrees( &replay, probe, probe_received ) );
    GIVEN( probe != sequence || probe_received == received );
    GIVEN( model_verdict( &model, sequence, received ) == NETCODE_DROP_NONE );
    nc_replay_advance( &replay, sequence );
    CLAIM( replay.floor == model.floor && replay.newest == newest );
    CLAIM( agrees( &replay, probe, probe_received || probe == sequence ) );
}

/* clang-format off */
#define STEP( name, moves_from, moves_to, back_from, back_to ) \
    void prove_replay_##name( void ) { claim_step( moves_from, moves_to, back_from, back_to ); }

STEP( stays,       0, 0,          0, UINT64_MAX )
STEP( near_1_new,  1, 1,          0, 0 )
STEP( near_1_same, 1, 1,          1, 1 )
STEP( near_1_old,  1, 1,          2, UINT64_MAX )
STEP( near_2_new,  2, 2,          0, 1 )
STEP( near_2_same, 2, 2,          2, 2 )
STEP( near_2_old,  2, 2,          3, UINT64_MAX )
STEP( near_3_new,  3, 3,          0, 2 )
STEP( near_3_same, 3, 3,          3, 3 )
STEP( near_3_old,  3, 3,          4, UINT64_MAX )
STEP( near_4_new,  4, 4,          0, 3 )
STEP( near_4_same, 4, 4,          4, 4 )
STEP( near_4_old,  4, 4,          5, UINT64_MAX )
STEP( near_5_new,  5, 5,          0, 4 )
STEP( near_5_same, 5, 5,          5, 5 )
STEP( near_5_old,  5, 5,          6, UINT64_MAX )
STEP( far_0,       6, UINT64_MAX, 0, 0 )
STEP( far_1,       6, UINT64_MAX, 1, 1 )
STEP( far_2,       6, UINT64_MAX, 2, 2 )
STEP( far_3,       6, UINT64_MAX, 3, 3 )
STEP( far_4,       6, UINT64_MAX, 4, 4 )
STEP( far_5,       6, UINT64_MAX, 5, 5 )
STEP( far_6,       6, UINT64_MAX, 6, UINT64_MAX )
/* clang-format on */

/*  What was received once is refused for ever: it is refused in every state, and no step takes it out of the set, as the
    steps above show. */
void prove_replay_once( void )
{
    nc_replay_t replay = any_replay();
    uint64_t sequence = any_u64();
    GIVEN( agrees( &replay, sequence, 1 ) );
    CLAIM( nc_replay_seen( &replay, sequence ) != NETCODE_DROP_NONE );
}
