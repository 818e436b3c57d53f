/*  Roaming: sessions of netcode.h that outlive an address, with an adversary that is the network, for Spin. Run it with
    `make model` (run.sh).

    The handshakes are over (handshake.pml): each session has a slot of the server, and its path is the address of its
    handshake. Cryptography is perfect: without a session's keys one can neither make nor open its packets. The network is
    the adversary. It delivers each packet of a client from any source address, any number of times, in any order, or
    never; and what the server sends to an address, to any client that sits there when it arrives, or to none. Clients
    move whenever they like, also to where another one sits.

    A sequence number is a place in the record of what a client sent. The record holds the last RECORDED packets; older ones
    are forgotten, so a run has no end and the model is finite. The value of a probe is its number while it lasts. When it
    ends (it is two seconds old), the number is free for another probe, and its echo, wherever it is, is a keep-alive that
    brings back nothing. So is the echo of a probe that reaches a client later.

    Beside each rule stands the function of netcode.h that it belongs to. Where the library is finer than the model (when a
    candidate ends, which one is evicted, when a probe leaves, when a slot loses the address that its client has left), the
    model lets it happen at any time, which allows more. Only with SILENCE a slot ends: nothing moves by that.

    Bounds, which run.sh sets: HONEST clients; with MALICIOUS a further session, which is the adversary's: he makes any
    packet of it, from any source address, and sits at one address after another, but receives nothing elsewhere. ADDRESSES:
    session n has had its handshake at address n, and no client ever sits at the last one. With RELAY the adversary sits
    there, and may hand on what comes to it. CANDIDATES of a slot, PROBES of a slot that wait for their echoes at once,
    RECORDED packets of a client.

    Modes: the plain one is for safety. COUNTED counts units: a small payload is one, a keep-alive or a probe two. FAIR asks
    for liveness: the adversary does what he likes until he rests (with FASTER he goes on to overtake packets; with ALONE
    there is none, clients just move). SILENCE asks how long payloads go to where the client is no more: there time is counted,
    in lives of a probe, and TIMEOUT of them are the slot's timeout. ECHOES is about the echoes alone, of both sides.

    What is claimed:
    1  A payload leaves only for the address from which the last echo came that proves one; before that, for that of the
       handshake. An echo proves an address when it comes from there, and its probe was sent there.
    2  An address is the path of one slot at most.
    3  A packet that is not newer than all that were accepted makes no candidate and moves nothing.
    4  To an address that is not the slot's path nothing leaves but probes, and not more than came from there.
    5  When the adversary rests, every client is moved to where it is and stays there (the ltl claim `moved`), and it takes
       no more probes than may be in flight at once (an assertion).
    6  A slot moves to no address at which its client did not sit while the probe lasted; no malicious client's either.
    7  Echoes end (the ltl claim `echoes_end`).
    8  SILENCE: a payload leaves for no address at which the client, a malicious one, has not sat for its timeout. */

#ifndef HONEST
#define HONEST 1
#endif
#if defined( MALICIOUS )
#define SESSIONS ( HONEST + 1 )
#else
#define SESSIONS HONEST
#endif
#ifndef ADDRESSES
#define ADDRESSES 3
#endif
#ifndef CANDIDATES
#define CANDIDATES 2
#endif
#ifndef PROBES
#define PROBES 2
#endif
#ifndef RECORDED
#define RECORDED 3
#endif
#ifndef TIMEOUT
#define TIMEOUT 3
#endif
#ifndef LONGEST
#define LONGEST ( TIMEOUT - 2 )
#endif

/* 0: every claim is checked; else this one alone. */
#ifndef ONLY
#define ONLY 0
#endif
#define CLAIM( number, condition ) assert( ( ONLY != 0 && ONLY != number ) || ( condition ) )

#define BIT( n ) ( 1 << ( n ) )
#define HAS( set, n ) ( ( ( set ) >> ( n ) ) & 1 )
#define ADD( set, n ) set = set | BIT( n )
#define REMOVE( set, n ) set = set & ~BIT( n )
#define AT_MOST( most, value ) ( ( value ) < ( most ) -> ( value ) : ( most ) )

/*  Each event is one step. Of what happens within a d_step Spin does not say whether it was ever reached; COVERED is for
    asking that. */
#if defined( COVERED )
#define STEP atomic
#define SCRATCH byte
#else
#define STEP d_step
#define SCRATCH hidden byte
#endif
SCRATCH i;

#if !defined( ECHOES )

#define LAST ( ADDRESSES - 1 )
#define NOWHERE ADDRESSES

#if ADDRESSES == 3
#define EACH_SEAT( X ) X( 0 ) X( 1 )
#define COUNT_ADDRESSES( IS, c ) ( IS( c, 0 ) + IS( c, 1 ) + IS( c, 2 ) )
#else
#define EACH_SEAT( X ) X( 0 ) X( 1 ) X( 2 )
#define COUNT_ADDRESSES( IS, c ) ( IS( c, 0 ) + IS( c, 1 ) + IS( c, 2 ) + IS( c, 3 ) )
#endif
#define EACH_ADDRESS( X ) EACH_SEAT( X ) X( LAST )
#if PROBES == 1
#define EACH_PROBE( X ) X( 0 )
#define EACH_PROBE_AT( X, a ) X( 0, a )
#else
#define EACH_PROBE( X ) X( 0 ) X( 1 )
#define EACH_PROBE_AT( X, a ) X( 0, a ) X( 1, a )
#endif
#if RECORDED == 2
#define EACH_PACKET_AT( X, a ) X( 0, a ) X( 1, a )
#else
#define EACH_PACKET_AT( X, a ) X( 0, a ) X( 1, a ) X( 2, a )
#endif

/* ---- clients, and what they sent ---- */

/* The echo of probe v is ECHO + v: a keep-alive too. */
#define KEEP_ALIVE 1
#define SMALL_PAYLOAD 2
#define ECHO 3
#define PACKET( c, n ) packet[( c ) * RECORDED + ( n )]
byte packet[SESSIONS * RECORDED]; /* oldest first */
byte recorded[SESSIONS];
byte at[SESSIONS];       /* the address at which the client sits */
byte answered[SESSIONS]; /* the probes that it has received: an honest client sends them back, a malicious one knows them */

#if defined( RELAY )
#define IS_RELAYED( a ) ( ( a ) == LAST )
#else
#define IS_RELAYED( a ) false
#endif

#if defined( COUNTED )
#define SIZE( kind ) ( ( kind ) == SMALL_PAYLOAD -> 1 : 2 )
#define PROBE_SIZE 2
#define MOST_CREDIT 4
#else
#define SIZE( kind ) 1
#define PROBE_SIZE 1
#define MOST_CREDIT 1
#endif

/* ---- the server ---- */

byte newest[SESSIONS]; /* so many packets of the record are not newer than all that were accepted */
byte path[SESSIONS];   /* the slot's active path, or NOWHERE */

/* A candidate of a slot: 0, or 1 + the units that came from there and that no probe has used up. */
#define CREDIT( c, a ) credit[( c ) * ADDRESSES + ( a )]
byte credit[SESSIONS * ADDRESSES];

/* A probe of a slot that waits for its echo: 0, or 1 + the address that it was sent to. */
#define SENT_TO( c, v ) sent_to[( c ) * PROBES + ( v )]
byte sent_to[SESSIONS * PROBES];
#define RECEIVES( c, v ) ( SENT_TO( c, v ) == 1 + at[c] || ( SENT_TO( c, v ) != 0 && IS_RELAYED( SENT_TO( c, v ) - 1 ) ) )

/* ---- what only the claims know ---- */

byte proved[SESSIONS]; /* the address that was proved last, or that of the handshake */
#if !defined( FAIR )
byte sat[SESSIONS]; /* the addresses at which the client sat in this life of a probe, */
#endif
#if defined( SILENCE )
byte gone; /* whole lives of a probe since the client sat at its path */
#endif
#if defined( COUNTED ) && !defined( FAIR )
#define BALANCE( c, a ) balance[( c ) * ADDRESSES + ( a )]
byte balance[SESSIONS * ADDRESSES]; /* what came from there and did not go there, since it was the path last */
#endif
#if defined( FAIR )
byte probed[SESSIONS]; /* probes to where the client is, since the adversary rests and before the slot is moved there */
#endif

/* FAIR: the adversary rests, and no client moves any more. */
#if defined( FAIR )
bool calm;
#else
#define calm false
#endif

/* The packet that arrives, and whether it is newer than all that were accepted. */
SCRATCH what;
SCRATCH newer;
SCRATCH probe;

/* ---- what leaves the server: nc_server_seal_to_slot ---- */

#define A_PAYLOAD 0
#define A_PROBE 1
#define AN_ANSWER 2 /* to a probe of the client's own */
inline leave( c, a, kind )
{
    CLAIM( 1, kind != A_PAYLOAD || proved[c] == a );
    CLAIM( 4, kind == A_PROBE || proved[c] == a );
#if defined( SILENCE )
    CLAIM( 8, kind != A_PAYLOAD || gone <= LONGEST );
#endif
#if defined( NOTHING_MOVES )
    assert( a == c ); /* false, or nothing ever moves */
#endif
#if defined( NOTHING_IS_RELAYED )
    assert( kind != A_PAYLOAD || a != LAST ); /* false: what a relay gets */
#endif
}

inline leave_for_candidate( c, a )
{
#if defined( COUNTED ) && !defined( FAIR )
    CLAIM( 4, BALANCE( c, a ) >= PROBE_SIZE );
    BALANCE( c, a ) = BALANCE( c, a ) - PROBE_SIZE;
#endif
    leave( c, a, A_PROBE )
}

/* ---- what arrives at the server ---- */

/* A probe has ended. */
inline end_probe( c, v )
{
    SENT_TO( c, v ) = 0;
    REMOVE( answered[c], v );
    i = 0;
    do
    :: i < RECORDED ->
        if
        :: PACKET( c, i ) == ECHO + v -> PACKET( c, i ) = KEEP_ALIVE
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* nc_server_leave_path: nothing is sent to the slot's client until it is moved somewhere. */
#if defined( SILENCE )
#define BE_HEARD silent = 0; gone = 0;
#else
#define BE_HEARD
#endif
#define LEAVE_PATH( c ) path[c] = NOWHERE; proved[c] = NOWHERE; BE_HEARD

/* nc_server_move: the address changes hands; its former owner keeps the slot, without a path. */
#if SESSIONS == 1
#define OTHER_OWNS( c, a ) false
#define TAKE( c, a )
#else
#define OTHER_OWNS( c, a ) ( path[1 - ( c )] == ( a ) )
#if defined( OWNED_BY_TWO ) /* broken */
#define TAKE( c, a )
#else
#define TAKE( c, a ) \
    if \
    :: OTHER_OWNS( c, a ) -> LEAVE_PATH( 1 - ( c ) ) \
    :: else \
    fi;
#endif
#endif
inline move( c, a )
{
    TAKE( c, a )
    path[c] = a;
    BE_HEARD
    CREDIT( c, a ) = 0;
#if defined( COUNTED ) && !defined( FAIR )
    BALANCE( c, a ) = 0;
#endif
    CLAIM( 2, !OTHER_OWNS( c, a ) )
}

#define IS_CANDIDATE( c, a ) ( CREDIT( c, a ) != 0 )
#if CANDIDATES < ADDRESSES - 1
#define HAS_ROOM( c ) ( COUNT_ADDRESSES( IS_CANDIDATE, c ) < CANDIDATES )
#else
#define HAS_ROOM( c ) true
#endif
#if defined( CREDIT_FORGOTTEN ) /* broken: each packet pays for itself alone */
#define CREDIT_LEFT( c, a ) 0
#else
#define CREDIT_LEFT( c, a ) ( IS_CANDIDATE( c, a ) -> CREDIT( c, a ) - 1 : 0 )
#endif

/* nc_server_validate: does it bring back a probe, and one that was sent to that address? */
#define IS_ECHO ( what >= ECHO )
#define BRINGS_BACK( c, a ) ( IS_ECHO && SENT_TO( c, what - ECHO ) == 1 + ( a ) )
#if defined( ANY_PACKET ) /* broken */
#define IS_PROOF( c, a ) true
#elif defined( SENT_ANYWHERE ) /* broken: a probe that was sent to another address will do */
#define IS_PROOF( c, a ) ( IS_ECHO && SENT_TO( c, what - ECHO ) != 0 )
#elif defined( ONE_VALUE ) /* broken: all probes of a slot have the same value */
#define IS_PROOF( c, a ) ( IS_ECHO && ( SENT_TO( c, 0 ) == 1 + ( a ) || SENT_TO( c, PROBES - 1 ) == 1 + ( a ) ) )
#else
#define IS_PROOF( c, a ) BRINGS_BACK( c, a )
#endif

/*  nc_server_on_stray: a packet of the slot has come from an address that is not its path. Nothing is evicted by a new
    candidate here: any may have ended before. */
inline on_stray( c, a )
{
    if
    :: IS_CANDIDATE( c, a ) || HAS_ROOM( c ) ->
        CLAIM( 3, newer );
        CREDIT( c, a ) = 1 + AT_MOST( MOST_CREDIT, SIZE( what ) + CREDIT_LEFT( c, a ) )
#if CANDIDATES < ADDRESSES - 1
    :: else
#endif
    fi;
#if defined( COUNTED ) && !defined( FAIR )
    BALANCE( c, a ) = AT_MOST( MOST_CREDIT, BALANCE( c, a ) + SIZE( what ) );
#endif
#if defined( ANSWERS_TO_CANDIDATES ) /* broken: every keep-alive may be a probe of the client's own */
    leave( c, a, AN_ANSWER );
#endif
    if
    :: IS_PROOF( c, a ) ->
        CLAIM( 3, newer );
#if !defined( FAIR )
        CLAIM( 6, HAS( sat[c], a ) || IS_RELAYED( a ) );
#endif
        if
        :: BRINGS_BACK( c, a ) -> proved[c] = a; probe = what - ECHO; end_probe( c, probe )
#if defined( ANY_PACKET ) || defined( SENT_ANYWHERE ) || defined( ONE_VALUE )
        :: else
#endif
        fi;
        move( c, a )
    :: else
    fi
}

/*  nc_server_find_by_sequence: the slots for which a packet is newer than all. It is asked when no slot owns the address,
    and when the packet has failed under the owner's key. */
#if defined( WITHOUT_NEWEST ) /* broken */
#define IS_FOUND( c, a ) true
#elif defined( OWNERS_ONLY ) /* broken: an address that a slot owns is for that one's packets alone */
#define IS_FOUND( c, a ) ( newer && !OTHER_OWNS( c, a ) )
#elif defined( PATHLESS_LOST ) /* broken: a slot that has lost its address is not looked for */
#define IS_FOUND( c, a ) ( newer && path[c] != NOWHERE )
#else
#define IS_FOUND( c, a ) newer
#endif

/*  SILENCE: a packet from the slot's path ends its silence, and from elsewhere only the echo of a probe that went there
    (nc_server_returns_probe). */
#if defined( SILENCE )
byte silent; /* lives of a probe since then */
#define HEAR silent = 0;
#if defined( ANY_PACKET_IS_LIFE ) /* broken */
#define HEAR_ELSEWHERE( c ) silent = 0;
#else
#define HEAR_ELSEWHERE( c ) silent = ( BRINGS_BACK( c, path[c] ) -> 0 : silent );
#endif
#else
#define HEAR
#define HEAR_ELSEWHERE( c )
#endif

inline arrive( c, a )
{
    if
    :: path[c] == a -> /* nc_server_on_session. An echo is a sample of the round trip */
        HEAR
        if
        :: BRINGS_BACK( c, a ) -> probe = what - ECHO; end_probe( c, probe )
        :: else
        fi
    :: path[c] != a && IS_FOUND( c, a ) -> HEAR_ELSEWHERE( c ) on_stray( c, a )
#if !defined( WITHOUT_NEWEST ) && HONEST != 0
    :: else -> newer = 0 /* dropped */
#endif
    fi
}

/* Packet n of the record arrives from address a. */
inline deliver( c, n, a )
{
    newer = ( n >= newest[c] );
    what = PACKET( c, n );
    arrive( c, a );
    if
    :: newer -> newest[c] = n + 1
    :: else
    fi
}

/* ---- what clients do ---- */

#if HONEST != 0
/* In a full record the oldest packet is forgotten. */
inline record( c, kind )
{
    if
    :: recorded[c] == RECORDED ->
        i = 0;
        do
        :: i < RECORDED - 1 -> PACKET( c, i ) = PACKET( c, i + 1 ); i++
        :: else -> break
        od;
        i = 0;
        PACKET( c, RECORDED - 1 ) = kind;
        newest[c] = ( newest[c] > 0 -> newest[c] - 1 : 0 )
    :: else ->
        PACKET( c, recorded[c] ) = kind;
        recorded[c]++
    fi
}

/* When the adversary rests, a client sends the next packet when the last one has arrived, but echoes at once. */
#if defined( ALONE )
#define IS_CLEAR true
#else
#define IS_CLEAR calm
#endif
#if defined( FAIR )
#define MAY_SEND( c ) ( !IS_CLEAR || newest[c] == recorded[c] )
#define MAY_ANSWER( c ) ( !IS_CLEAR || recorded[c] - newest[c] < RECORDED )
#else
#define MAY_SEND( c ) true
#define MAY_ANSWER( c ) true
#endif
#endif

#if defined( FAIR )
#define SIT_EVENT( a ) :: STEP { !calm && at[c] != a -> at[c] = a }
#else
#define SIT_EVENT( a ) :: STEP { at[c] != a -> at[c] = a; ADD( sat[c], a ) }
#endif


#if HONEST != 0
proctype Client( byte c )
{
end:
    do
#if defined( COUNTED )
    :: STEP { MAY_SEND( c ) -> record( c, SMALL_PAYLOAD ) }
#endif
#if !defined( COUNTED ) || !defined( FAIR )
    :: STEP { MAY_SEND( c ) -> record( c, KEEP_ALIVE ) }
#endif
    EACH_SEAT( SIT_EVENT )
    od
}

/* A client answers a probe once: the replay window lets it in once. */
#define ANSWER_EVENT( v ) \
    :: STEP { RECEIVES( c, v ) && !HAS( answered[c], v ) && MAY_ANSWER( c ) -> ADD( answered[c], v ); record( c, ECHO + v ) }
proctype Receiver( byte c )
{
end:
    do
    EACH_PROBE( ANSWER_EVENT )
    od
}
#endif

#if HONEST != 0 && !defined( ALONE )
#define DELIVERY_EVENT( n, a ) :: STEP { !calm && n < recorded[c] -> deliver( c, n, a ) }
#define DELIVERY_EVENTS( a ) EACH_PACKET_AT( DELIVERY_EVENT, a )
proctype Adversary( byte c )
{
end:
    do
    EACH_ADDRESS( DELIVERY_EVENTS )
    od
}
#endif

#if defined( MALICIOUS )
#if defined( GUESSABLE ) /* broken */
#define KNOWS( c, v ) ( SENT_TO( c, v ) != 0 )
#else
#define KNOWS( c, v ) HAS( answered[c], v )
#endif
#if defined( SILENCE )
#define CAN_SEND_FROM( c, a ) ( at[c] == ( a ) )
#define EACH_SOURCE( X ) EACH_SEAT( X )
#else
#define CAN_SEND_FROM( c, a ) ( !calm )
#define EACH_SOURCE( X ) EACH_ADDRESS( X )
#endif
/* His packets are the newest whenever he wants: the numbers are his to choose. */
#define MAKE( c, kind, a ) newer = 1; what = kind; arrive( c, a )
#define ECHO_MADE( v, a ) :: STEP { CAN_SEND_FROM( c, a ) && KNOWS( c, v ) -> MAKE( c, ECHO + v, a ) }
#if defined( COUNTED )
#define SMALL_PAYLOAD_MADE( a ) :: STEP { CAN_SEND_FROM( c, a ) -> MAKE( c, SMALL_PAYLOAD, a ) }
#else
#define SMALL_PAYLOAD_MADE( a )
#endif
#define PACKETS_MADE( a ) \
    :: STEP { CAN_SEND_FROM( c, a ) -> MAKE( c, KEEP_ALIVE, a ) } SMALL_PAYLOAD_MADE( a ) EACH_PROBE_AT( ECHO_MADE, a )
#define LEARN_EVENT( v ) :: STEP { RECEIVES( c, v ) && !HAS( answered[c], v ) -> ADD( answered[c], v ) }
proctype Malicious( byte c )
{
end:
    do
    EACH_SEAT( SIT_EVENT )
    EACH_PROBE( LEARN_EVENT )
    EACH_SOURCE( PACKETS_MADE )
    od
}
#endif

/* ---- what the server does by itself ---- */

/* nc_server_probe_candidate: probes to a candidate, as long as what came from there pays for them. */
#if defined( WITHOUT_CREDIT ) /* broken */
#define IS_PAID( c, a ) IS_CANDIDATE( c, a )
#define PAY( c, a )
#elif defined( FIRST_PROBE_FREE ) /* broken: a probe leaves if anything is left of what came */
#define IS_PAID( c, a ) ( CREDIT( c, a ) > 1 )
#define PAY( c, a ) CREDIT( c, a ) = ( CREDIT( c, a ) > PROBE_SIZE -> CREDIT( c, a ) - PROBE_SIZE : 1 );
#else
#define IS_PAID( c, a ) ( CREDIT( c, a ) >= 1 + PROBE_SIZE )
#define PAY( c, a ) CREDIT( c, a ) = CREDIT( c, a ) - PROBE_SIZE;
#endif
#if defined( LAST_PROBE_ONLY ) /* broken: of the probes to one candidate only the last one's value is remembered */
#define REPLACE( c, v, a ) \
    if \
    :: SENT_TO( c, PROBES - 1 - v ) == 1 + a -> end_probe( c, PROBES - 1 - v ) \
    :: else \
    fi;
#else
#define REPLACE( c, v, a )
#endif
#if defined( FASTER ) /* probes to him are of no use to either */
#define IS_PROBED( a ) ( ( a ) != LAST )
#else
#define IS_PROBED( a ) true
#endif
#if defined( FAIR ) && !defined( FASTER )
#define COUNT_PROBE( c, a ) \
    if \
    :: calm && a == at[c] -> CLAIM( 5, probed[c] < PROBES ); probed[c]++ \
    :: else \
    fi;
#else
#define COUNT_PROBE( c, a )
#endif
#define IS_FREE( c, v ) ( SENT_TO( c, v ) == 0 && ( v == 0 || SENT_TO( c, 0 ) != 0 ) )
#define PROBE_EVENT( v, a ) \
    :: STEP { path[c] != a && IS_FREE( c, v ) && IS_PAID( c, a ) && IS_PROBED( a ) -> \
        PAY( c, a ) REPLACE( c, v, a ) COUNT_PROBE( c, a ) \
        SENT_TO( c, v ) = 1 + a; \
        leave_for_candidate( c, a ) }
#define PROBE_EVENTS( a ) EACH_PROBE_AT( PROBE_EVENT, a )

/* netcode_server_send_packet, and whatever else is not a probe */
#if defined( PAYLOADS_TO_CANDIDATES ) /* broken */
#define IS_SERVED( c, a ) ( path[c] == ( a ) || IS_CANDIDATE( c, a ) )
#else
#define IS_SERVED( c, a ) ( path[c] == ( a ) )
#endif
#define PAYLOAD_EVENT( a ) :: STEP { IS_SERVED( c, a ) -> leave( c, a, A_PAYLOAD ) }
proctype Server( byte c )
{
end:
    do
    EACH_ADDRESS( PROBE_EVENTS )
#if !defined( FAIR )
#if defined( RELAY ) || defined( PAYLOADS_TO_CANDIDATES )
    EACH_ADDRESS( PAYLOAD_EVENT )
#else
    EACH_SEAT( PAYLOAD_EVENT )
#endif
#endif
    od
}

/* The path is probed too, for the round trip. FAIR: one probe at once, so that some are left for candidates. */
#if !defined( FAIR )
#define MAY_SAMPLE( c ) true
#else
#define MAY_SAMPLE( c ) ( SENT_TO( c, 0 ) != 1 + path[c] && SENT_TO( c, PROBES - 1 ) != 1 + path[c] )
#endif
#if !defined( FAIR ) || PROBES > 1
#define SAMPLE_EVENT( v ) \
    :: STEP { path[c] != NOWHERE && IS_FREE( c, v ) && MAY_SAMPLE( c ) -> \
        SENT_TO( c, v ) = 1 + path[c]; \
        leave( c, path[c], A_PROBE ) }
proctype Sampler( byte c )
{
end:
    do
    EACH_PROBE( SAMPLE_EVENT )
    od
}
#endif

/* A candidate ends or is evicted. When the adversary rests, the one does not from which packets come. */
#if defined( CANDIDATES_STAY ) /* broken */
#define MAY_END( c, a ) false
#elif defined( FAIR )
#define MAY_END( c, a ) ( !calm || at[c] != ( a ) )
#else
#define MAY_END( c, a ) true
#endif
#define CANDIDATE_END( a ) :: STEP { IS_CANDIDATE( c, a ) && MAY_END( c, a ) -> CREDIT( c, a ) = 0 }
/*  A slot loses its path. When the adversary rests, the one does not whose client is there. Of two slots each loses its path to
    the other one; with COUNTED none does, for the states would be too many. */
#if defined( SILENCE ) || defined( COUNTED ) || SESSIONS > 1
#define PATH_END /* see WATCH and TAKE */
#elif defined( FAIR )
#define PATH_END :: STEP { path[c] != NOWHERE && ( !calm || at[c] != path[c] ) -> LEAVE_PATH( c ) }
#else
#define PATH_END :: STEP { path[c] != NOWHERE -> LEAVE_PATH( c ) }
#endif
proctype Clock( byte c )
{
end:
    do
    EACH_ADDRESS( CANDIDATE_END )
    PATH_END
    od
}

/* A probe ends. When the adversary rests, those end whose echo is not on its way. */
#if defined( FAIR )
#define IS_COMING( c, v, n ) ( ( n ) >= newest[c] && PACKET( c, n ) == ECHO + v )
#define MAY_AGE( c, v ) \
    ( !calm || ( ( !RECEIVES( c, v ) || HAS( answered[c], v ) ) && \
                 !IS_COMING( c, v, 0 ) && !IS_COMING( c, v, 1 ) && !IS_COMING( c, v, RECORDED - 1 ) ) )
#else
#define MAY_AGE( c, v ) true
#endif
proctype Timer( byte c; byte v )
{
end:
    do
    :: STEP { SENT_TO( c, v ) != 0 && MAY_AGE( c, v ) -> end_probe( c, v ) }
    od
}

#if !defined( FAIR )
/* Two seconds have gone by: no probe is older. */
#if defined( ENDLESS_PROBES ) /* broken */
#define END_PROBE( c, v )
#else
#define END_PROBE( c, v ) \
    if \
    :: SENT_TO( c, v ) != 0 -> end_probe( c, v ) \
    :: else \
    fi;
#endif
#if PROBES == 1
#define END_PROBES( c ) END_PROBE( c, 0 )
#else
#define END_PROBES( c ) END_PROBE( c, 0 ) END_PROBE( c, 1 )
#endif
#define PASS( c ) END_PROBES( c ) sat[c] = BIT( at[c] )
#if defined( SILENCE )
/* Without a path there is nothing to count: no payload leaves. */
#define GROW_OLDER( c ) \
    if \
    :: path[c] == NOWHERE -> BE_HEARD \
    :: path[c] != NOWHERE && silent + 1 >= TIMEOUT -> LEAVE_PATH( c ) /* it has timed out */ \
    :: else -> \
        silent++; \
        gone = ( HAS( sat[c], path[c] ) -> 0 : AT_MOST( LONGEST + 1, gone + 1 ) ) \
    fi
#endif
active proctype Tick()
{
end:
    do
#if defined( SILENCE )
    :: STEP { GROW_OLDER( 0 ); PASS( 0 ) }
#elif SESSIONS == 1
    :: STEP { PASS( 0 ) }
#else
    :: STEP { PASS( 0 ); PASS( 1 ) }
#endif
    od
}
#endif

#if defined( FAIR )
/* When the adversary rests, packets arrive, in order, from where the client is. With ALONE there is no adversary. */
#if defined( FASTER )
bool overtaken;
#define NOT_OVERTAKEN ; overtaken = false
#else
#define NOT_OVERTAKEN
#endif
proctype Network( byte c )
{
end:
    do
    :: STEP { IS_CLEAR && newest[c] < recorded[c] -> deliver( c, newest[c], at[c] ) NOT_OVERTAKEN }
    od
}

#if defined( FASTER )
/* An observer's copy, from the last address, is faster than the packet itself; but never twice in a row. */
active proctype Observer()
{
end:
    do
    :: STEP { calm && !overtaken && newest[0] < recorded[0] -> deliver( 0, newest[0], LAST ); overtaken = true }
    od
}
#endif

#if HONEST == 1
#define ARE_APART true
#define ARE_HOME ( path[0] == at[0] )
#else
#define ARE_APART ( at[0] != at[1] )
#define ARE_HOME ( path[0] == at[0] && path[1] == at[1] )
#endif
active proctype Rest()
{
end:
    STEP { ARE_APART -> calm = true }
}

ltl moved { ( <> calm ) -> ( <> [] ARE_HOME ) }
#endif

init
{
    atomic {
        i = 0;
        do
        :: i < SESSIONS ->
            at[i] = i;
            path[i] = i;
            proved[i] = i;
#if !defined( FAIR )
            sat[i] = BIT( i );
#endif
            run Server( i );
#if !defined( FAIR ) || PROBES > 1
            run Sampler( i );
#endif
            run Clock( i );
            run Timer( i, 0 );
#if PROBES > 1
            run Timer( i, 1 );
#endif
            i++
        :: else -> break
        od;
        i = 0;
#if HONEST != 0
        do
        :: i < HONEST ->
            run Client( i );
            run Receiver( i );
#if !defined( ALONE )
            run Adversary( i );
#endif
#if defined( FAIR )
            run Network( i );
#endif
            i++
        :: else -> break
        od;
        i = 0;
#endif
#if defined( MALICIOUS )
        run Malicious( HONEST )
#endif
    }
}

#else /* ECHOES */

/*  Both connected sides probe, and each answers the other's probes with keep-alives, which are packets like any other: each
    arrives once or never. Nothing in one says to others whether it is a probe or an echo. Side v % 2 makes value v. */
#define SERVER 0
#define CLIENT 1
#define NO_SIDE 2
#define VALUES 4
#define MAKER( v ) ( ( v ) % 2 )
byte comes_to[VALUES] = NO_SIDE; /* the side that it is on its way to */
bit waited[VALUES];             /* its maker counts on its echo */
bool at_rest;                   /* no side makes probes any more */

/* A secret mark in the value. Broken: a side knows for its own only what it still waits for. */
#if defined( WITHOUT_MARK )
#define IS_OWN( v ) ( MAKER( v ) == side && waited[v] )
#else
#define IS_OWN( v ) ( MAKER( v ) == side )
#endif

#define VALUE_EVENTS( v ) \
    :: STEP { MAKER( v ) == side && comes_to[v] == NO_SIDE && !waited[v] && !at_rest -> comes_to[v] = 1 - side; waited[v] = 1 } \
    :: STEP { comes_to[v] == side && IS_OWN( v ) -> comes_to[v] = NO_SIDE; waited[v] = 0 } \
    :: STEP { comes_to[v] == side && !IS_OWN( v ) -> comes_to[v] = 1 - side } \
    :: STEP { comes_to[v] == side -> comes_to[v] = NO_SIDE } /* it is lost */ \
    :: STEP { MAKER( v ) == side && waited[v] -> waited[v] = 0 } /* it is too old */
proctype Side( byte side )
{
end:
    do
    VALUE_EVENTS( 0 )
    VALUE_EVENTS( 1 )
    VALUE_EVENTS( 2 )
    VALUE_EVENTS( 3 )
    od
}

active proctype Rest()
{
end:
    at_rest = true
}

#define IS_STILL ( comes_to[0] == NO_SIDE && comes_to[1] == NO_SIDE && comes_to[2] == NO_SIDE && comes_to[3] == NO_SIDE )
ltl echoes_end { ( <> at_rest ) -> ( <> [] IS_STILL ) }

init
{
    atomic {
        run Side( SERVER );
        run Side( CLIENT )
    }
}

#endif
