/*  Story: the rows of the attack table that are about messages. A player who holds the keys, and what it can not do with them.
    Run: runner messages_threats.c */

/* ---- 59: orders that make a receiver work ---- */

enum { ORDERS_PACKETS = 60, ORDERS_ROUNDS = 15, ORDERS_FRAMES = 198, ORDERS_WINDOW = 1023 };

static double threat_cpu_seconds( void )
{
#if defined( CLOCK_THREAD_CPUTIME_ID )
    struct timespec now;
    clock_gettime( CLOCK_THREAD_CPUTIME_ID, &now );
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#else
    return (double) clock() / (double) CLOCKS_PER_SEC;
#endif
}

enum orders_shape_t { ORDERS_IN_TURN, ORDERS_TAKEN, ORDERS_RISING, ORDERS_FALLING, ORDERS_SCATTERED, ORDERS_SHAPES };

struct orders_t {
    struct victim_t v;
    int shape, next;
};

/* The nth order that is sent; none of the last three shapes has a hole longer than the window. */
static int orders_nth( const struct orders_t * it, int n )
{
    int turn = n / ( ORDERS_WINDOW + 1 ) * ( ORDERS_WINDOW + 1 ), at = n % ( ORDERS_WINDOW + 1 );
    if ( it->shape == ORDERS_IN_TURN )
        return n;
    if ( it->shape == ORDERS_TAKEN )
        return n < ORDERS_WINDOW ? n + 1 : ORDERS_WINDOW;
    if ( at == ORDERS_WINDOW )
        return turn; /* the first comes last, and lets all that wait go */
    return turn + 1 +
           ( it->shape == ORDERS_RISING    ? at
             : it->shape == ORDERS_FALLING ? ORDERS_WINDOW - 1 - at
                                           : at * 512 % ORDERS_WINDOW );
}

/* Packets full of the shortest ordered messages; a turn of a window ends with its packet. Returns their bytes. */
static int orders_send( struct orders_t * it, int packets, double * seconds )
{
    int bytes = 0;
    for ( int i = 0; i < packets; i++ ) {
        craft_begin( &it->v.craft, it->v.number++, (int64_t) it->v.m->next_number - 1, 0 );
        for ( int k = 0; k < ORDERS_FRAMES && ( k == 0 || it->next % ( ORDERS_WINDOW + 1 ) ); k++, it->next++ )
            craft_message( &it->v.craft, 3, 0, (int) it->v.m->newest_id + 1 + k, orders_nth( it, it->next ), NULL, 0 );
        bytes += craft_bytes( &it->v.craft );
        double before = threat_cpu_seconds();
        CHECK_EQ( craft_give( &it->v.craft, it->v.m ), NETCODE_MESSAGES_DROP_NONE );
        messages_read( it->v.m );
        *seconds += threat_cpu_seconds() - before;
        it->v.now += 0.01;
        messages_drain( it->v.m, it->v.now );
    }
    return bytes;
}

TEST( threat_59_no_order_costs_more_than_honest_ones )
{
#if defined( TEST_EMULATED )
    SKIP( "an emulated processor's time says nothing" );
#endif
    static const char * const names[] = { "in turn", "taken", "rising", "falling", "scattered" };
    static struct orders_t all[ORDERS_SHAPES];
    double least[ORDERS_SHAPES];
    memset( all, 0, sizeof( all ) );
    for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
        victim_open( &all[shape].v, NULL );
        all[shape].shape = shape;
        least[shape] = 1e9;
    }
    for ( int round = 0; round < ORDERS_ROUNDS; round++ )
        for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
            double seconds = 0.0;
            int bytes = orders_send( &all[shape], ORDERS_PACKETS, &seconds );
            least[shape] = nc_real_smaller( least[shape], seconds / bytes );
        }
    for ( int shape = 0; shape < ORDERS_SHAPES; shape++ ) {
        double ratio = least[shape] / least[ORDERS_IN_TURN];
        printf( "    measured: orders %s: %.2f times the work of honest ones for each byte\n", names[shape], ratio );
        if ( ratio > 4.0 )
            test_fail( __FILE__, __LINE__, "orders %s cost %.1f times what honest ones do; the limit is 4",
                       names[shape], ratio );
        messages_check( all[shape].v.m );
        victim_close( &all[shape].v );
    }
}

/* What comes under an order that is taken is counted, and nothing of it is kept: no room, no credit, no id. */
TEST( threat_59_a_taken_order_is_refused_before_anything_is_stored )
{
    struct victim_t v;
    victim_open( &v, NULL );
    victim_begin( &v );
    craft_message( &v.craft, 3, 0, 0, 1, hostile_data, 100 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    uint32_t used = v.m->in.used, received = v.m->credit_received;
    int64_t newest = v.m->newest_id;
    victim_begin( &v );
    craft_message( &v.craft, 3, 0, 1, 1, hostile_data, 100 );
    craft_fragment( &v.craft, 3, 0, 0, 1, hostile_data, 1181, 1 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( v.m->stats.messages_duplicate, 2 );
    CHECK_EQ( v.m->in.used, used );
    CHECK_EQ( v.m->credit_received, received );
    CHECK_EQ( v.m->newest_id, newest );
    victim_begin( &v ); /* two of one order in one packet, and one that its packet has let pass */
    craft_message( &v.craft, 3, 0, 1, 3, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 2, 3, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 3, 0, hostile_data, 100 );
    craft_message( &v.craft, 3, 0, 4, 0, hostile_data, 100 );
    CHECK_EQ( victim_hear( &v ), NETCODE_MESSAGES_DROP_NONE );
    CHECK_EQ( v.m->stats.messages_duplicate, 4 );
    CHECK_EQ( v.m->channels[0].expected_order, 2 );
    CHECK_EQ( messages_read( v.m ), 2 );
    victim_close( &v );
}
