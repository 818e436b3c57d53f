/*  The handshake of netcode.h with an adversary that is the network, for Spin. Run it with `make model` (run.sh).

    Cryptography is perfect here: without the key one can neither make nor open a packet. The network is the adversary's
    memory: whatever was ever sent stays in it, and may be delivered to any party, from any source address, any number of
    times, in any order, or never. That is recording, replay, redirection, spoofing, duplication, reordering and loss at
    once. Beyond that he owns tokens of his own, and every challenge that a server ever sealed is given to him, whoever it
    was for. What a client is handed is left to him too.

    Beside each rule stands the function of netcode.h that it is written after. Where the library is finer than the model
    (how long an entry lives, which is evicted in a full table), the model lets it happen at any time, which allows more.

    Bounds, which run.sh sets: CLIENTS honest clients with a token each; TOKENS tokens, the further ones are the
    adversary's; ADDRESSES source addresses, one for each client and then the adversary's own; SERVERS that every token
    names; SLOTS a server; CHALLENGES that a server seals in each life; LIVES of a server; CAPACITY of its table of
    consumed tokens; TRIES of a client with its token. Token 0 expires first, the last one last.

    Lines that begin with @ report what the adversary did and its result, for replay.c; with REPLAYED, in a run of Spin's
    simulator, they report what the server refuses too.

    Modes: the plain one is for safety. TIMED counts time in ticks, so that liveness can be asked: nothing lasts. FAIR has
    no loss, no restart and an adversary off the path: everybody gets in. BASE_ZERO is the config choice of the same name. */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef TOKENS
#define TOKENS 3
#endif
#define ADDRESSES ( CLIENTS + 1 )
#ifndef SERVERS
#define SERVERS 1
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHALLENGES
#define CHALLENGES 2
#endif
#ifndef LIVES
#define LIVES 2
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
#define ALL_TICKS 3 /* TIMED: by then every token has expired */

/* 0: every claim is checked; else this one alone. */
#ifndef ONLY
#define ONLY 0
#endif
#define CLAIM( number, condition ) assert( ( ONLY != 0 && ONLY != number ) || ( condition ) )

#define BIT( n ) ( 1 << ( n ) )
#define HAS( set, n ) ( ( ( set ) >> ( n ) ) & 1 )
#define ADD( set, n ) set = set | BIT( n )
#define IS_HONEST( t ) ( ( t ) < CLIENTS )
#define OWN_ADDRESS ( ADDRESSES - 1 ) /* the adversary's */

/* The party that a token names. The adversary's tokens all name him, so that a challenge of one fits the id of the other. */
#define ID( t ) ( IS_HONEST( t ) -> ( t ) : CLIENTS )

/* ---- a server ---- */

/*  An entry for each server, token and address: 0, or 1 + the sequence of the first challenge issued to it.
    nc_server_find_pending: it is identified by address and token. nc_pending_t.first_challenge */
#define ENTRY( s, t, a ) entry[( ( s ) * TOKENS + ( t ) ) * ADDRESSES + ( a )]
byte entry[SERVERS * TOKENS * ADDRESSES];

/*  A challenge that this life of the server has sealed: 0, or what it says. nc_server_challenge, nc_server_bind_challenge.
    `u` is the token whose user data it carries. It travels under the server_to_client key of token `t`. */
#define CHALLENGE( t, a, u ) ( 1 + ( t ) + TOKENS * ( ( a ) + ADDRESSES * ( u ) ) )
#define FOR_TOKEN( b ) ( ( challenge[b] - 1 ) % TOKENS )
#define FOR_ADDRESS( b ) ( ( ( challenge[b] - 1 ) / TOKENS ) % ADDRESSES )
#define USER_DATA_OF( b ) ( ( challenge[b] - 1 ) / ( TOKENS * ADDRESSES ) )
#define NUMBER( s, sequence ) ( ( s ) * CHALLENGES + ( sequence ) )
#define SEQUENCE( b ) ( ( b ) % CHALLENGES )
#define SERVER_OF( b ) ( ( b ) / CHALLENGES )
byte challenge[SERVERS * CHALLENGES];
byte issued[SERVERS]; /* challenge_sequence */

byte slot[SERVERS * SLOTS]; /* 0: free, or 1 + token + TOKENS * address */
#define SLOT( s, i ) slot[( s ) * SLOTS + ( i )]
#define SLOT_TOKEN( s, i ) ( ( SLOT( s, i ) - 1 ) % TOKENS )
#define SLOT_ADDRESS( s, i ) ( ( SLOT( s, i ) - 1 ) / TOKENS )

byte consumed[SERVERS]; /* nc_used_t: a set of tokens, CAPACITY at most */
byte mark[SERVERS];     /* nc_used_t.refused_up_to: tokens below this number */
byte life[SERVERS];     /* starts so far. Each draws a challenge key of its own: nc_server_start */

/* ---- what was sent ---- */

byte asked;      /* tokens whose request was sent */
byte keep_alive; /* tokens under whose key a server sealed a keep-alive */
byte stale;      /* tokens under whose key a challenge of a former life was sealed */
/*  A client that is denied does what it may do at any time anyway, in the plain mode; so does one whose token expires. */
#if defined( TIMED )
byte denied; /* tokens under whose key a server sealed a denial */
#define DENY( t ) ADD( denied, t )
#else
#define DENY( t ) skip
#endif
#define ANY_CLIENT 2 /* room for so many */
int answered[ANY_CLIENT]; /* challenges that this client answered: its responses are recorded */

/* ---- a client ---- */

mtype = { IDLE, REQUESTING, RESPONDING, CONNECTED, ENDED };
mtype state[ANY_CLIENT] = IDLE;
byte at[ANY_CLIENT];    /* server_index */
byte tries[ANY_CLIENT]; /* calls of connect */
bit was_connected[ANY_CLIENT]; /* nc_client_remembers_token */

/* ---- what only the claims know ---- */

byte sessions[SERVERS];      /* tokens that had a session in this process */
byte ever_sessions[SERVERS]; /* in any */
int answered_now[ANY_CLIENT]; /* answered, of this life alone */
int used;                     /* challenges that made a session */

#if defined( TIMED )
bool expired; /* every token */
byte ticks;
int aged; /* entries that have stood a tick without an answered request */
byte client_aged, overdue;
#define AGE( s, t, a ) ( ( ( s ) * TOKENS + ( t ) ) * ADDRESSES + ( a ) )
#else
#define expired false
#endif

/* ---- requests. nc_server_on_request ---- */

/*  nc_server_screen_request: TOKEN_MAYBE_USED. With sequences from zero, a token minted before this start is refused. That
    takes for granted that a process is not killed and started again within the second in which the token was minted. */
#define MINTED( t ) ( ( t ) == TOKENS - 1 ) /* in this life: the last token is made after the first restart */
#if defined( BASE_ZERO ) && !defined( WITHOUT_EARLIEST_EXPIRY )
#define MAYBE_USED( s, t ) ( MINTED( t ) < life[s] )
#else
#define MAYBE_USED( s, t ) false
#endif
#if defined( BASE_ZERO )
#define EXISTS( t ) ( life[0] >= MINTED( t ) )
#else
#define EXISTS( t ) true
#endif

/* nc_server_check_records, nc_server_screen_request: TOKEN_REFUSED_UP_TO */
#define REFUSED_UP_TO( s, t ) ( ( t ) < mark[s] )

/* nc_server_check_connected: is a client there already, at this address or under this id? */
#define RIVAL_IN( s, t, a, i ) ( SLOT( s, i ) != 0 && ( SLOT_ADDRESS( s, i ) == ( a ) || ID( SLOT_TOKEN( s, i ) ) == ID( t ) ) )
#if SLOTS == 1
#define IS_RIVALLED( s, t, a ) RIVAL_IN( s, t, a, 0 )
#define FULL( s ) ( SLOT( s, 0 ) != 0 )
#else
#define IS_RIVALLED( s, t, a ) ( RIVAL_IN( s, t, a, 0 ) || RIVAL_IN( s, t, a, 1 ) )
#define FULL( s ) ( SLOT( s, 0 ) != 0 && SLOT( s, 1 ) != 0 )
#endif
#if defined( WITHOUT_RIVALS )
#define RIVAL( s, t, a ) false
#else
#define RIVAL( s, t, a ) IS_RIVALLED( s, t, a )
#endif

#define MAY_ASK( s, t, a ) \
    ( EXISTS( t ) && !expired && !MAYBE_USED( s, t ) && !REFUSED_UP_TO( s, t ) && !HAS( consumed[s], t ) && !RIVAL( s, t, a ) )

/*  nc_server_insert_pending, nc_server_challenge. A repeated request is answered by another challenge, while the bound
    allows it; what goes beyond is lost (FAIR: by the same one, so that the bound is never met). An entry without a
    challenge connects no client: only where it is asked whether entries end is it made. `e`: the token of the entry that answers. */
#if defined( TIMED ) && SERVERS == 1
#define GETS_ENTRY( s ) true
#else
#define GETS_ENTRY( s ) ( issued[s] < CHALLENGES && !FULL( s ) )
#endif
#if defined( FAIR )
#define IS_NEW( s, e, a ) ( ENTRY( s, e, a ) == 1 + issued[s] )
#else
#define IS_NEW( s, e, a ) true
#endif
inline admit_request( s, t, e, a )
{
    if
    :: ENTRY( s, e, a ) == 0 && GETS_ENTRY( s ) -> ENTRY( s, e, a ) = 1 + issued[s]
    :: else
    fi;
    if
    :: FULL( s ) -> DENY( e ); /* nc_server_admit_request: SERVER_FULL */
        printf( "@ ask %d %d %d denied\n", s, t, a )
    :: !FULL( s ) && issued[s] < CHALLENGES && IS_NEW( s, e, a ) ->
        printf( "@ ask %d %d %d %d\n", s, t, a, NUMBER( s, issued[s] ) );
        challenge[NUMBER( s, issued[s] )] = CHALLENGE( e, a, t );
        issued[s]++
    :: else -> printf( "@ ask %d %d %d lost\n", s, t, a )
    fi;
#if defined( TIMED )
    aged = aged & ~BIT( AGE( s, e, a ) ) /* pending->answer_time */
#endif
}

#if defined( BY_ADDRESS ) /* broken: an entry is found by its address alone */
inline on_request( s, t, a )
{
    if
    :: t != 0 && ENTRY( s, 0, a ) != 0 -> admit_request( s, t, 0, a )
    :: t != 1 && ENTRY( s, 1, a ) != 0 -> admit_request( s, t, 1, a )
    :: t != TOKENS - 1 && ENTRY( s, TOKENS - 1, a ) != 0 -> admit_request( s, t, TOKENS - 1, a )
    :: else -> admit_request( s, t, t, a )
    fi
}
#else
inline on_request( s, t, a )
{
    admit_request( s, t, t, a )
}
#endif

/* ---- responses. nc_server_on_response ---- */

/* nc_server_check_challenge, step by step; each defence can be taken out. */
#if defined( WITHOUT_FIRST_CHALLENGE )
#define WAS_ISSUED( s, t, a, b ) ( SEQUENCE( b ) < issued[s] )
#else
#define WAS_ISSUED( s, t, a, b ) ( SEQUENCE( b ) + 1 >= ENTRY( s, t, a ) && SEQUENCE( b ) < issued[s] )
#endif
#if defined( ONE_CHALLENGE_KEY ) /* broken: every server has the same key */
#define OPENS( s, b ) ( challenge[b] != 0 )
#else
#define OPENS( s, b ) ( challenge[b] != 0 && SERVER_OF( b ) == ( s ) )
#endif
#if defined( UNBOUND_TOKEN ) || defined( UNBOUND )
#define TOKEN_FITS( t, b ) true
#else
#define TOKEN_FITS( t, b ) ( FOR_TOKEN( b ) == ( t ) )
#endif
#if defined( UNBOUND_ADDRESS ) || defined( UNBOUND )
#define ADDRESS_FITS( a, b ) true
#else
#define ADDRESS_FITS( a, b ) ( FOR_ADDRESS( b ) == ( a ) )
#endif
#if defined( UNBOUND )
#define ID_FITS( t, b ) true
#else
#define ID_FITS( t, b ) ( ID( FOR_TOKEN( b ) ) == ID( t ) )
#endif

/*  nc_server_open_response: an entry's key must have sealed it: the owner of an honest token seals what he answers, and the
    adversary seals whatever he knows. Then nc_server_check_challenge and nc_server_check_response. */
#define SEALED( t, b ) ( IS_HONEST( t ) -> HAS( answered[t], b ) : EXISTS( t ) )
#define MAY_CONNECT( s, t, a, b ) \
    ( ENTRY( s, t, a ) != 0 && OPENS( s, b ) && WAS_ISSUED( s, t, a, b ) && ID_FITS( t, b ) && \
      TOKEN_FITS( t, b ) && ADDRESS_FITS( a, b ) && !RIVAL( s, t, a ) && !REFUSED_UP_TO( s, t ) )

/* nc_server_remove_pending */
#if defined( TIMED )
#define FORGET( s, t, a ) ENTRY( s, t, a ) = 0; aged = aged & ~BIT( AGE( s, t, a ) )
#else
#define FORGET( s, t, a ) ENTRY( s, t, a ) = 0
#endif

#define COUNT( set ) ( HAS( set, 0 ) + HAS( set, 1 ) + HAS( set, 2 ) )
#define FIRST( set ) ( HAS( set, 0 ) -> 0 : ( HAS( set, 1 ) -> 1 : 2 ) )

/* nc_used_insert: in a full table the earliest-expiring record is evicted, which may be the newcomer, and leaves its mark. */
inline record_used( s, t )
{
    if
    :: COUNT( consumed[s] ) < CAPACITY -> ADD( consumed[s], t )
    :: else ->
        if
        :: t < FIRST( consumed[s] ) -> forgotten = t
        :: else ->
            forgotten = FIRST( consumed[s] );
            consumed[s] = ( consumed[s] & ~BIT( forgotten ) ) | BIT( t )
        fi;
#if !defined( WITHOUT_MARK )
        mark[s] = ( mark[s] > forgotten + 1 -> mark[s] : forgotten + 1 );
#endif
        forgotten = 0
    fi
}

/* nc_server_consume_token: the token is used up, and its other handshakes end. */
inline consume( s, t, a )
{
#if !defined( WITHOUT_CONSUMING )
    record_used( s, t );
#endif
    FORGET( s, t, a );
#if !defined( OTHERS_STAY )
    FORGET( s, t, 0 );
    FORGET( s, t, 1 );
    FORGET( s, t, ADDRESSES - 1 );
#endif
}

/* nc_server_connect, nc_server_open_slot; and what is claimed of a new session. */
hidden byte forgotten;
inline on_response( s, t, a, b )
{
    if
    :: FULL( s ) -> DENY( t ); /* nc_server_admit_response */
        printf( "@ answer %d %d %d %d denied\n", s, t, a, b )
    :: else ->
        printf( "@ answer %d %d %d %d connected\n", s, t, a, b );
        CLAIM( 1, FOR_TOKEN( b ) == t && FOR_ADDRESS( b ) == a ); /* the challenge was made for this token and address, */
        CLAIM( 2, SEQUENCE( b ) + 1 >= ENTRY( s, t, a ) && SERVER_OF( b ) == s ); /* and issued to this very entry; */
        CLAIM( 3, ID( USER_DATA_OF( b ) ) == ID( t ) ); /* he is connected as the one that his token names, */
        CLAIM( 9, USER_DATA_OF( b ) == t ); /* with the user data of this token; */
#if defined( NO_SESSION_AFTER_A_RESTART )
        assert( life[s] == 0 ); /* false, or the claims about restarts say nothing */
#endif
        CLAIM( 10, !IS_RIVALLED( s, t, a ) ); /* no other client is connected under this id, or at this address; */
        CLAIM( 4, !HAS( sessions[s], t ) ); /* his token had no session in this process, */
        CLAIM( 5, !IS_HONEST( t ) || ( HAS( answered_now[t], b ) && !HAS( used, b ) ) ); /* its owner answered, once for each; */
#if defined( BASE_ZERO )
        CLAIM( 6, !HAS( ever_sessions[s], t ) ); /* where sequences start at zero it had none in a former process either. */
#endif
        ADD( sessions[s], t );
        ADD( ever_sessions[s], t );
        ADD( used, b );
        consume( s, t, a );
        if
        :: SLOT( s, 0 ) == 0 -> SLOT( s, 0 ) = 1 + t + TOKENS * ( a )
        :: else -> SLOT( s, SLOTS - 1 ) = 1 + t + TOKENS * ( a )
        fi;
        ADD( keep_alive, t ) /* nc_server_send_keep_alive */
    fi
}

/* ---- restarts ---- */

/*  What a start forgets: nc_server_stop, nc_server_start. A challenge of a former life can still be handed to the client
    under whose token it was sealed. */
#define WAS_SEALED( s, t ) ( ( challenge[NUMBER( s, 0 )] != 0 && FOR_TOKEN( NUMBER( s, 0 ) ) == ( t ) ) || \
                             ( challenge[NUMBER( s, CHALLENGES - 1 )] != 0 && FOR_TOKEN( NUMBER( s, CHALLENGES - 1 ) ) == ( t ) ) )
#define OF_SERVER( s ) ( ( BIT( CHALLENGES ) - 1 ) << ( ( s ) * CHALLENGES ) )
hidden byte i;
inline start_again( s )
{
    life[s]++;
    i = 0;
    do
    :: i < CLIENTS ->
        answered_now[i] = answered_now[i] & ~OF_SERVER( s );
        if
        :: WAS_SEALED( s, i ) -> ADD( stale, i )
        :: else
        fi;
#if !defined( CHALLENGE_KEY_STAYS )
        answered[i] = answered[i] & ~OF_SERVER( s ); /* those responses open nothing any more */
#endif
        i++
    :: else -> break
    od;
    used = used & ~OF_SERVER( s );
    i = 0;
    do
    :: i < TOKENS * ADDRESSES -> entry[s * TOKENS * ADDRESSES + i] = 0; i++
    :: else -> break
    od;
    i = 0;
    do
#if !defined( CHALLENGE_KEY_STAYS )
    :: i < CHALLENGES -> challenge[NUMBER( s, i )] = 0; i++
#endif
    :: else -> break
    od;
    i = 0;
    do
    :: i < SLOTS -> SLOT( s, i ) = 0; i++
    :: else -> break
    od;
    issued[s] = 0;
    i = 0
}

/* The process is gone: what was consumed is not known any more. */
inline crash( s )
{
    start_again( s );
    consumed[s] = 0;
    mark[s] = 0;
    sessions[s] = 0
}

/* ---- the adversary, who delivers ---- */

#define EACH_TOKEN( X, s, a ) X( s, 0, a ) X( s, 1, a ) EACH_FURTHER_TOKEN( X, s, a )
#if TOKENS > 2
#define EACH_FURTHER_TOKEN( X, s, a ) X( s, 2, a )
#else
#define EACH_FURTHER_TOKEN( X, s, a )
#endif
#if CLIENTS > 1
#define EACH_ADDRESS( X, s ) EACH_TOKEN( X, s, 0 ) EACH_TOKEN( X, s, 1 ) EACH_TOKEN( X, s, 2 )
#else
#define EACH_ADDRESS( X, s ) EACH_TOKEN( X, s, 0 ) EACH_TOKEN( X, s, 1 )
#endif
#if SERVERS > 1
#define EVERYWHERE( X ) EACH_ADDRESS( X, 0 ) EACH_ADDRESS( X, 1 )
#define EACH_SERVER( X ) X( 0 ) X( 1 )
#else
#define EVERYWHERE( X ) EACH_ADDRESS( X, 0 )
#define EACH_SERVER( X ) X( 0 )
#endif

/* Off the path he does not see what goes to others, so he knows the challenges to his own address only. */
#if defined( FAIR )
#define KNOWS( t, b ) ( !IS_HONEST( t ) && FOR_ADDRESS( b ) == OWN_ADDRESS )
#else
#define KNOWS( t, b ) true
#endif

/* A request that was sent, or the adversary's own, from any address. */
#define REQUEST_EVENT( s, t, a ) \
    :: d_step { ( !IS_HONEST( t ) || HAS( asked, t ) ) && MAY_ASK( s, t, a ) -> on_request( s, t, a ) }

/* A response that was sent, or one that he makes, from any address. */
#define RESPONSE_EVENT_OF( s, t, a, b ) \
    :: d_step { SEALED( t, b ) && KNOWS( t, b ) && MAY_CONNECT( s, t, a, b ) -> on_response( s, t, a, b ) }
#if SERVERS * CHALLENGES == 1
#define RESPONSE_EVENT( s, t, a ) RESPONSE_EVENT_OF( s, t, a, 0 )
#elif SERVERS * CHALLENGES == 2
#define RESPONSE_EVENT( s, t, a ) RESPONSE_EVENT_OF( s, t, a, 0 ) RESPONSE_EVENT_OF( s, t, a, 1 )
#elif SERVERS * CHALLENGES == 3
#define RESPONSE_EVENT( s, t, a ) RESPONSE_EVENT_OF( s, t, a, 0 ) RESPONSE_EVENT_OF( s, t, a, 1 ) RESPONSE_EVENT_OF( s, t, a, 2 )
#else
#define RESPONSE_EVENT( s, t, a ) \
    RESPONSE_EVENT_OF( s, t, a, 0 ) RESPONSE_EVENT_OF( s, t, a, 1 ) RESPONSE_EVENT_OF( s, t, a, 2 ) RESPONSE_EVENT_OF( s, t, a, 3 )
#endif

/* A slot ends whenever its client leaves, falls silent or is kicked: nc_server_end_slot. */
#define SLOT_EVENT_OF( s, i ) \
    :: d_step { SLOT( s, i ) != 0 -> printf( "@ leave %d %d %d\n", s, SLOT_TOKEN( s, i ), SLOT_ADDRESS( s, i ) ); SLOT( s, i ) = 0 }
#if SLOTS > 1
#define SLOT_EVENT( s ) SLOT_EVENT_OF( s, 0 ) SLOT_EVENT_OF( s, 1 )
#else
#define SLOT_EVENT( s ) SLOT_EVENT_OF( s, 0 )
#endif

/* An entry ends by silence or is evicted by another one: nc_server_ring_pending, nc_server_evict_pending. */
#define ENTRY_EVENT( s, t, a ) :: d_step { ENTRY( s, t, a ) != 0 -> printf( "@ end %d %d %d\n", s, t, a ); FORGET( s, t, a ) }

/* The object is stopped and started (nc_server_reset_hall leaves the consumed tokens alone), or the process is killed. */
#define RESTART_EVENT( s ) \
    :: d_step { life[s] + 1 < LIVES -> printf( "@ restart %d\n", s ); start_again( s ) STOP_FORGETS( s ) } \
    :: d_step { life[s] + 1 < LIVES -> printf( "@ crash %d\n", s ); crash( s ) }
#if defined( STOP_FORGETS_CONSUMED )
#define STOP_FORGETS( s ) ; consumed[s] = 0; mark[s] = 0
#else
#define STOP_FORGETS( s )
#endif

#if defined( REPLAYED )
/*  Spin draws among all events that are possible; requests that are refused would be most of them. What is refused changes
    nothing. */
#define TWICE( X ) EVERYWHERE( X ) EVERYWHERE( X )
#define OFTEN( X ) TWICE( X ) TWICE( X )

#define REFUSED_REQUEST_EVENT( s, t, a ) \
    :: d_step { ( IS_HONEST( t ) -> HAS( asked, t ) : EXISTS( t ) ) && !MAY_ASK( s, t, a ) -> printf( "@ ask %d %d %d refused\n", s, t, a ) }
#define REFUSED_RESPONSE_EVENT_OF( s, t, a, b ) \
    :: d_step { SEALED( t, b ) && challenge[b] != 0 && ENTRY( s, t, a ) != 0 && !MAY_CONNECT( s, t, a, b ) -> printf( "@ answer %d %d %d %d refused\n", s, t, a, b ) }
#define REFUSED_RESPONSE_EVENT( s, t, a ) \
    REFUSED_RESPONSE_EVENT_OF( s, t, a, 0 ) REFUSED_RESPONSE_EVENT_OF( s, t, a, 1 ) \
    REFUSED_RESPONSE_EVENT_OF( s, t, a, 2 ) REFUSED_RESPONSE_EVENT_OF( s, t, a, 3 )
#endif

active proctype Adversary()
{
end:
    do
#if defined( REPLAYED )
    OFTEN( REQUEST_EVENT )
    OFTEN( RESPONSE_EVENT )
    OFTEN( REFUSED_RESPONSE_EVENT )
    EVERYWHERE( REFUSED_REQUEST_EVENT )
#endif
    EVERYWHERE( REQUEST_EVENT )
    EVERYWHERE( RESPONSE_EVENT )
#if !defined( FAIR )
    EACH_SERVER( SLOT_EVENT )
    EACH_SERVER( RESTART_EVENT )
#if !defined( TIMED )
    EVERYWHERE( ENTRY_EVENT )
#endif
#endif
    od
}

#if defined( TIMED )
/*  Time: an entry that stood a whole tick without an answered request ends (nc_server_ring_pending), a client that heard
    nothing of use for as long may give up (nc_client_judge_servers), and in the end the tokens expire. */
#if defined( ENDLESS_ENTRIES )
#define RIPE( n ) false
#else
#define RIPE( n ) ( HAS( aged, n ) )
#endif
active proctype Clock()
{
end:
    do
    :: d_step {
        i = 0;
        do
        :: i < SERVERS * TOKENS * ADDRESSES ->
            if
            :: RIPE( i ) -> entry[i] = 0; aged = aged & ~BIT( i )
            :: !RIPE( i ) && entry[i] != 0 -> ADD( aged, i )
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        overdue = client_aged;
        client_aged = BIT( CLIENTS ) - 1;
        if
        :: ticks < ALL_TICKS -> ticks++
        :: else -> expired = true
        fi
    }
    od
}
#define SILENT( c ) HAS( overdue, c )
#define HEARD( c ) overdue = overdue & ~BIT( c ); client_aged = client_aged & ~BIT( c )
#else
#define SILENT( c ) true
#define HEARD( c ) skip
#endif

#if defined( FAIR )
/* The network of an honest client: what it sends arrives, again and again. */
#define PATH_EVENT( b ) \
    :: d_step { state[c] == RESPONDING && HAS( answered[c], b ) && MAY_CONNECT( at[c], c, c, b ) -> on_response( at[c], c, c, b ) }
proctype Path( byte c )
{
end:
    do
    :: d_step { state[c] == REQUESTING && MAY_ASK( at[c], c, c ) -> on_request( at[c], c, c ) }
    PATH_EVENT( 0 )
    PATH_EVENT( 1 )
    PATH_EVENT( 2 )
    PATH_EVENT( 3 )
    od
}
#define TO_CLIENT( c, b ) ( FOR_ADDRESS( b ) == ( c ) ) /* none redirects to him what was sent to others */
#else
#define TO_CLIENT( c, b ) true
#endif

/* ---- an honest client. nc_client_rules; its address and its token have its own number ---- */

/* nc_client_enter */
#define TURN( c, s ) at[c] = s; state[c] = REQUESTING; HEARD( c )

/* With next_server_seconds 0, the next server of the token first, else the end: nc_client_step. */
#define TURN_AWAY( c ) \
    if \
    :: at[c] + 1 < SERVERS -> TURN( c, at[c] + 1 ) \
    :: else -> state[c] = ENDED \
    fi

/* nc_client_read: a challenge that its own key opens, whichever party brings it; nc_client_send: it is answered from now on. */
#define ANSWER_EVENT( b ) \
    :: d_step { state[c] == REQUESTING && challenge[b] != 0 && FOR_TOKEN( b ) == c && TO_CLIENT( c, b ) -> \
        printf( "@ reply %d %d\n", c, b ); state[c] = RESPONDING; ADD( answered[c], b ); ADD( answered_now[c], b ); HEARD( c ) }
#if SERVERS * CHALLENGES == 1
#define ANSWER_EVENTS ANSWER_EVENT( 0 )
#elif SERVERS * CHALLENGES == 2
#define ANSWER_EVENTS ANSWER_EVENT( 0 ) ANSWER_EVENT( 1 )
#elif SERVERS * CHALLENGES == 3
#define ANSWER_EVENTS ANSWER_EVENT( 0 ) ANSWER_EVENT( 1 ) ANSWER_EVENT( 2 )
#else
#define ANSWER_EVENTS ANSWER_EVENT( 0 ) ANSWER_EVENT( 1 ) ANSWER_EVENT( 2 ) ANSWER_EVENT( 3 )
#endif

/* nc_client_begin: decision 13 */
#if defined( CLIENT_FORGETS )
#define MAY_TRY( c ) ( tries[c] < TRIES )
#else
#define MAY_TRY( c ) ( tries[c] < TRIES && !was_connected[c] )
#endif

/* nc_client_judge_servers. Broken: a client that waits for ever for the answer to its response. */
#if defined( ENDLESS_CLIENT )
#define MAY_GIVE_UP( c ) ( state[c] == REQUESTING )
#else
#define MAY_GIVE_UP( c ) ( state[c] == REQUESTING || state[c] == RESPONDING )
#endif

/* nc_client_read. Broken: a keep-alive that any party could have made. */
#if defined( KEEP_ALIVE_UNSEALED )
#define KEEP_ALIVE_OPENS( c ) true
#else
#define KEEP_ALIVE_OPENS( c ) HAS( keep_alive, c )
#endif

proctype Client( byte c )
{
    do
    :: d_step { ( state[c] == IDLE || state[c] == ENDED ) && MAY_TRY( c ) && EXISTS( c ) ->
        tries[c]++; TURN( c, 0 ); ADD( asked, c ) }
    ANSWER_EVENTS
    :: d_step { state[c] == REQUESTING && HAS( stale, c ) -> state[c] = RESPONDING; HEARD( c ) } /* to no avail */
    :: d_step { state[c] == RESPONDING && KEEP_ALIVE_OPENS( c ) -> /* nc_client_on_keep_alive */
        CLAIM( 7, !was_connected[c] ); /* it is connected with its token at most once, */
        CLAIM( 8, HAS( ever_sessions[0] | ever_sessions[SERVERS - 1], c ) ); /* and by a server that let it in. */
        was_connected[c] = 1;
        state[c] = CONNECTED }
#if defined( TIMED )
    :: d_step { ( state[c] == REQUESTING || state[c] == RESPONDING ) && HAS( denied, c ) -> TURN_AWAY( c ) }
    :: d_step { MAY_GIVE_UP( c ) && expired -> state[c] = ENDED } /* nc_client_update */
#endif
#if !defined( FAIR )
    :: d_step { MAY_GIVE_UP( c ) && SILENT( c ) -> TURN_AWAY( c ) } /* nc_client_judge_servers */
    :: d_step { state[c] == CONNECTED -> state[c] = ENDED } /* nc_client_judge_servers, netcode_client_disconnect */
#endif
    :: state[c] == CONNECTED -> break
    :: state[c] == ENDED && !MAY_TRY( c ) -> break
    od
}

init
{
    atomic {
        i = 0;
        do
        :: i < CLIENTS ->
            run Client( i );
#if defined( FAIR )
            run Path( i );
#endif
            i++
        :: else -> break
        od;
        i = 0
    }
}

#define AT_REST( c ) ( state[c] == CONNECTED || ( state[c] == ENDED && !MAY_TRY( c ) ) )
#if CLIENTS > 1
#define ALL( PREDICATE ) ( PREDICATE( 0 ) && PREDICATE( 1 ) )
#else
#define ALL( PREDICATE ) PREDICATE( 0 )
#endif
#define IN( c ) ( state[c] == CONNECTED )
#define NONE_IN( s, t, a ) && ENTRY( s, t, a ) == 0

#if defined( TIMED )
ltl clients_end { <> ( ALL( AT_REST ) ) }
ltl entries_end { <> [] ( true EVERYWHERE( NONE_IN ) ) }
#endif
#if defined( FAIR )
ltl everybody_gets_in { <> ( ALL( IN ) ) }
#endif
