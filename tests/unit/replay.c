/*  Replay: the replay window, row by row, and against a model that remembers every sequence.
    Standard: Replay Protection. Decision 5: nothing at or below the floor, nothing more
    than 2^32 ahead. */

#define REPLAY_JUMP ( (uint64_t) 1 << 32 )
#define REPLAY_TOP ( (uint64_t) 1 << 63 )

/* Short names for the rows, taken back at the end of the file. */
#define NEW NETCODE_DROP_NONE
#define AGAIN NETCODE_DROP_REPLAYED
#define OLD NETCODE_DROP_SEQUENCE_TOO_OLD
#undef FAR /* windows.h has one */
#define FAR NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD
#define W NC_REPLAY_WINDOW

/* A fresh window at `floor`; then each packet in turn (0: no more of them), of which the last one must be `verdict`. */
struct replay_row_t {
    int number;
    uint64_t floor;
    uint64_t packets[4];
    int verdict;
    const char * why;
};

/* clang-format off */
static const struct replay_row_t replay_rows[] = {
    { 1, 0, { 1 }, NEW, "the first packet after the one that connected" },
    { 2, 0, { 1, 1 }, AGAIN, "the same again" },
    { 3, 0, { 1, 2 }, NEW, "the next one" },
    { 4, 0, { 2, 1 }, NEW, "swapped on the way" },
    { 5, 0, { 2, 1, 1 }, AGAIN, "swapped, then repeated" },
    { 6, 0, { 2, 1, 2 }, AGAIN, "the newest repeated after an older one" },
    { 7, 0, { W }, NEW, "a whole window at once" },
    { 8, 0, { W, 1 }, NEW, "the oldest entry of the window" },
    { 9, 0, { W, 1, 1 }, AGAIN, "and it remembers" },
    { 10, 0, { W + 1, 1 }, OLD, "one older than the window" },
    { 11, 0, { W + 1, 2 }, NEW, "the window's last entry, moved by one" },
    { 12, 0, { 1, W, 1 }, AGAIN, "still inside: replayed, not old" },
    { 13, 0, { 1, W + 1, 1 }, OLD, "just outside: old" },
    { 14, 0, { 5, W + 4, 5 }, AGAIN, "the edge keeps what it saw" },
    { 15, 0, { 5, 2 * W + 5, 5 }, OLD, "two windows on" },
    { 16, 0, { 5, 2 * W + 5, W + 6 }, NEW, "nothing of the old window shines through" },
    { 17, 0, { 64, 128, 64 }, AGAIN, "words: 64 and 128 are different bits" },
    { 18, 0, { 63, 64, 63 }, AGAIN, "words: last bit of the first" },
    { 19, 0, { 63, 64, 64 }, AGAIN, "words: first bit of the second" },
    { 20, 0, { REPLAY_JUMP }, NEW, "a jump of exactly 2^32" },
    { 21, 0, { REPLAY_JUMP + 1 }, FAR, "a jump of 2^32 + 1" },
    { 22, 0, { 10, REPLAY_JUMP + 10 }, NEW, "2^32 ahead of the newest, not of the floor" },
    { 23, 0, { 10, REPLAY_JUMP + 11 }, FAR, "and one more" },
    { 24, 0, { REPLAY_JUMP - 1, REPLAY_JUMP - 1 }, AGAIN, "remembered after a long jump" },
    { 25, 0, { REPLAY_JUMP, REPLAY_JUMP - W }, OLD, "behind a long jump, just outside" },
    { 26, 0, { REPLAY_JUMP, REPLAY_JUMP - W + 1 }, NEW, "behind a long jump, just inside" },
    { 27, 1000, { 1000 }, OLD, "the floor itself: it connected the session" },
    { 28, 1000, { 999 }, OLD, "below the floor" },
    { 29, 1000, { 1001 }, NEW, "above the floor" },
    { 30, 1000, { 1001 + W / 2, 1000 }, OLD, "the floor, though the window reaches below it" },
    { 31, 1000, { 1001 + W / 2, 1001 }, NEW, "the first above the floor, late" },
    { 32, 1000, { 1 }, OLD, "long before the session" },
    { 33, ( REPLAY_JUMP << 14 ), { ( REPLAY_JUMP << 14 ) + 1 }, NEW, "a random base: its next" },
    { 34, ( REPLAY_JUMP << 14 ), { ( REPLAY_JUMP << 15 ) + 5 }, FAR, "a packet of another session with a higher base" },
    { 35, ( REPLAY_JUMP << 14 ), { ( REPLAY_JUMP << 13 ) + 5 }, OLD, "a packet of another session with a lower base" },
    { 36, REPLAY_TOP - 2, { REPLAY_TOP - 1 }, NEW, "2^63 - 1" },
    { 37, REPLAY_TOP - 2, { REPLAY_TOP - 1, REPLAY_TOP - 1 }, AGAIN, "2^63 - 1 again" },
    { 38, REPLAY_TOP - 2, { REPLAY_TOP }, NEW, "2^63" },
    { 39, REPLAY_TOP - 2, { REPLAY_TOP, REPLAY_TOP }, AGAIN, "2^63 again" },
    { 40, REPLAY_TOP - 2, { REPLAY_TOP + 1, REPLAY_TOP }, NEW, "2^63 + 1, then 2^63" },
    { 41, REPLAY_TOP - 2, { REPLAY_TOP + 1, REPLAY_TOP - 1, REPLAY_TOP + 1 }, AGAIN, "2^63 + 1 again" },
    { 42, 0, { REPLAY_TOP }, FAR, "2^63 out of nowhere" },
    { 43, 0, { UINT64_MAX }, FAR, "2^64 - 1 out of nowhere" },
    { 44, UINT64_MAX - 9, { UINT64_MAX }, NEW, "2^64 - 1, once" },
    { 45, UINT64_MAX - 9, { UINT64_MAX, UINT64_MAX }, AGAIN, "2^64 - 1 does not replay" },
    { 46, UINT64_MAX - 9, { UINT64_MAX, UINT64_MAX - 1 }, NEW, "2^64 - 2 after it" },
    { 47, UINT64_MAX - 9, { UINT64_MAX, UINT64_MAX - 9 }, OLD, "its floor" },
    { 48, UINT64_MAX - 9, { UINT64_MAX, 1 }, OLD, "numbers do not wrap" },
    { 49, UINT64_MAX - 2 * W, { UINT64_MAX, UINT64_MAX - W }, OLD, "at the top, just outside the window" },
    { 50, UINT64_MAX - 2 * W, { UINT64_MAX, UINT64_MAX - W + 1 }, NEW, "at the top, just inside the window" },
    { 51, UINT64_MAX, { UINT64_MAX }, OLD, "a session that began at the very top gets nothing" },
    { 52, UINT64_MAX, { 1 }, OLD, "not even from the bottom" },
    { 53, UINT64_MAX - REPLAY_JUMP, { UINT64_MAX }, NEW, "2^32 ahead, to the very top" },
    { 54, UINT64_MAX - REPLAY_JUMP - 1, { UINT64_MAX }, FAR, "one more than that" },
};
/* clang-format on */

/* What a receiver does with an authentic packet. */
static int replay_receive( nc_replay_t * replay, uint64_t sequence )
{
    int verdict = nc_replay_seen( replay, sequence );
    if ( verdict == NETCODE_DROP_NONE )
        nc_replay_advance( replay, sequence );
    return verdict;
}

TEST( replay_rows )
{
    size_t i;
    int k;
    CHECK_GE( NC_REPLAY_WINDOW, 256 ); /* the standard's windows are at least 256 */
    for ( i = 0; i < sizeof( replay_rows ) / sizeof( replay_rows[0] ); i++ ) {
        const struct replay_row_t * row = &replay_rows[i];
        nc_replay_t replay;
        int verdict = -1;
        nc_replay_init( &replay, row->floor );
        CHECK_EQ( row->number, i + 1 );
        for ( k = 0; k < 4 && row->packets[k]; k++ )
            verdict = replay_receive( &replay, row->packets[k] );
        if ( verdict != row->verdict )
            test_fail( __FILE__, __LINE__, "row %d (%s): %s and not %s", row->number, row->why,
                       netcode_drop_reason_name( verdict ), netcode_drop_reason_name( row->verdict ) );
    }
}

/* Sequence 0 can not stand in the rows. It connects no client twice: whatever the floor, it is old. */
TEST( replay_sequence_zero )
{
    nc_replay_t replay;
    nc_replay_init( &replay, 0 );
    CHECK_EQ( nc_replay_seen( &replay, 0 ), OLD );
    nc_replay_advance( &replay, 1 );
    CHECK_EQ( nc_replay_seen( &replay, 0 ), OLD );
    nc_replay_init( &replay, 5 );
    CHECK_EQ( nc_replay_seen( &replay, 0 ), OLD );
    nc_replay_init( &replay, UINT64_MAX );
    CHECK_EQ( nc_replay_seen( &replay, 0 ), OLD );
}

/* A full window up, repeated, then down: each delivered once. */
TEST( replay_full_windows )
{
    static const uint64_t floors[] = { 0, 1, 63, 64, 65, 511, 512, 513, 1000003, REPLAY_TOP - 300, UINT64_MAX - 2000 };
    size_t f;
    int i;
    for ( f = 0; f < sizeof( floors ) / sizeof( floors[0] ); f++ ) {
        uint64_t floor = floors[f];
        nc_replay_t replay;
        nc_replay_init( &replay, floor );
        for ( i = 1; i <= W; i++ )
            CHECK_EQ( replay_receive( &replay, floor + (uint64_t) i ), NEW );
        for ( i = 1; i <= W; i++ )
            CHECK_EQ( replay_receive( &replay, floor + (uint64_t) i ), AGAIN );
        CHECK_EQ( replay_receive( &replay, floor + 2 * W ), NEW );
        for ( i = 2 * W - 1; i > W; i-- )
            CHECK_EQ( replay_receive( &replay, floor + (uint64_t) i ), NEW );
        for ( i = 2 * W; i > W; i-- )
            CHECK_EQ( replay_receive( &replay, floor + (uint64_t) i ), AGAIN );
        for ( i = W; i >= 0; i-- )
            CHECK_EQ( replay_receive( &replay, floor + (uint64_t) i ), OLD );
    }
}

/* The test itself changes nothing: only what proved authentic moves the window. attacks/rows.py, row 15 */
TEST( replay_seen_changes_nothing )
{
    nc_replay_t replay, before;
    int i;
    nc_replay_init( &replay, 100 );
    for ( i = 0; i < 200; i++ )
        replay_receive( &replay, 100 + (uint64_t) test_random_below( 2000 ) );
    before = replay;
    for ( i = 0; i < 2000; i++ )
        nc_replay_seen( &replay, test_random() >> test_random_below( 64 ) );
    CHECK_MEM( &replay, &before, sizeof( replay ) );
}

/* The model: everything that was ever accepted, in a list. */
static struct {
    uint64_t accepted[8192];
    int count;
    uint64_t floor;
    uint64_t newest;
} replay_model;

static int replay_model_receive( uint64_t sequence )
{
    int i;
    if ( sequence <= replay_model.floor )
        return OLD;
    if ( sequence > replay_model.newest && sequence - replay_model.newest > REPLAY_JUMP )
        return FAR;
    if ( sequence <= replay_model.newest && replay_model.newest - sequence >= W )
        return OLD;
    for ( i = replay_model.count - 1; i >= 0; i-- )
        if ( replay_model.accepted[i] == sequence )
            return AGAIN;
    replay_model.accepted[replay_model.count++] = sequence;
    if ( sequence > replay_model.newest )
        replay_model.newest = sequence;
    return NEW;
}

TEST( replay_random_against_a_model )
{
    int round, i, seen[4] = { 0 };
    for ( round = 0; round < 16; round++ ) {
        uint64_t floor = test_random() >> test_random_below( 64 );
        nc_replay_t replay;
        int spread = 1 << test_random_below( 11 );
        nc_replay_init( &replay, floor );
        replay_model.count = 0;
        replay_model.floor = replay_model.newest = floor;
        for ( i = 0; i < 4000; i++ ) {
            uint64_t sequence = replay.newest + (uint64_t) test_random_below( 4 );
            int dice = test_random_below( 100 ), expected;
            if ( dice < 70 )
                sequence -= (uint64_t) test_random_below( spread + W );
            else if ( dice < 90 )
                sequence += (uint64_t) test_random_below( spread );
            else if ( dice < 92 )
                sequence += REPLAY_JUMP - 2 + (uint64_t) test_random_below( 4 );
            else if ( dice < 93 )
                sequence = test_random();
            expected = replay_model_receive( sequence );
            seen[expected == NEW ? 0 : expected == AGAIN ? 1 : expected == OLD ? 2 : 3]++;
            if ( replay_receive( &replay, sequence ) != expected ) {
                test_fail( __FILE__, __LINE__, "round %d, packet %d: sequence 0x%" PRIx64 " should be %s", round, i,
                           sequence, netcode_drop_reason_name( expected ) );
                return;
            }
        }
        CHECK_EQ( replay.newest, replay_model.newest );
    }
    for ( i = 0; i < 4; i++ )
        CHECK_GT( seen[i], 100 ); /* the test tries all four verdicts */
}

/* Packets that a jump leaves behind are lost, those before the first one are none of ours; 2^32 at once cost no loop. */
TEST( replay_losses_of_a_jump )
{
    nc_replay_t replay;
    nc_replay_init( &replay, 1000 );
    nc_replay_advance( &replay, 6400 );
    nc_replay_advance( &replay, 6401 );
    CHECK_EQ( replay.lost, 0 );
    nc_replay_advance( &replay, 6402 + 64 * 100 ); /* word 200: words 100 to 194 have left */
    CHECK_EQ( replay.lost, 62 + 64 * 94 );
    CHECK_NEAR( nc_replay_loss_share( &replay ), 1.0, 0.0 );
    nc_replay_advance( &replay, 6402 + 64 * 100 + REPLAY_JUMP );
    CHECK_EQ( replay.lost, 62 + 64 * 94 + 5 * 64 + 63 + REPLAY_JUMP - 6 * 64 );
    CHECK_EQ( replay.reordered, 0 );
}

/* Near are the window, and as many sequences above the newest as a packet's low bytes can hide. */
TEST( replay_what_is_near )
{
    nc_replay_t replay;
    nc_replay_init( &replay, 0 );
    nc_replay_advance( &replay, 1000000 );
    CHECK_EQ( nc_replay_is_near( &replay, 1000000 ), 1 );
    CHECK_EQ( nc_replay_is_near( &replay, 1000000 - NC_REPLAY_WINDOW + 1 ), 1 );
    CHECK_EQ( nc_replay_is_near( &replay, 1000000 - NC_REPLAY_WINDOW ), 0 );
    CHECK_EQ( nc_replay_is_near( &replay, 0 ), 0 );
    CHECK_EQ( nc_replay_is_near( &replay, 1000000 + ( 1 << NC_SEQUENCE_NEAR_BITS ) - 1 ), 1 );
    CHECK_EQ( nc_replay_is_near( &replay, 1000000 + ( 1 << NC_SEQUENCE_NEAR_BITS ) ), 0 );
}

/* From the first 64 packets that left the window on, the share is of those that did. */
TEST( replay_the_loss_share_of_a_young_connection )
{
    nc_replay_t replay;
    nc_replay_init( &replay, 0 );
    for ( uint64_t sequence = 2; sequence <= 64 * ( NC_REPLAY_WORDS + 8 ); sequence += 2 ) {
        nc_replay_advance( &replay, sequence );
        CHECK_NEAR( nc_replay_loss_share( &replay ), sequence < 64 * ( NC_REPLAY_WORDS + 1 ) ? 0.0 : 0.5, 1e-9 );
    }
}

#undef NEW
#undef AGAIN
#undef OLD
#undef FAR
#undef W
#undef REPLAY_JUMP
#undef REPLAY_TOP
