/*  The matches whose players are on their way to this server: who is expected, who has come, and until when their tokens
    live. A server that was notified of a match is not free as long as others of it may still arrive.

        struct arrivals_t arrivals;
        memset( &arrivals, 0, sizeof( arrivals ) );
        arrivals_add( &arrivals, now, "4711", "duel", "1001,1002", 30.0 );     // a repetition changes nothing
        arrivals_connected( &arrivals, client_id );                            // for each client that connects
        arrivals_update( &arrivals, now, log, context );                       // once a tick: a line for what has ended
        if ( arrivals_pending( &arrivals ) ) ... others may still arrive

    One header, for one program unit. */

#ifndef FLEET_ARRIVALS_H
#define FLEET_ARRIVALS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRIVALS_MATCHES 32
#define ARRIVALS_PLAYERS 64        /* of a match that are distinguished */
#define ARRIVALS_NAME_BYTES 64     /* of matches and modes, with the zero at the end */
#define ARRIVALS_KEEP_SECONDS 5.0  /* a match that has ended is not taken for a new one, unless others need its place */
#define ARRIVALS_LINE_SECONDS 10.0 /* between lines about matches for which there is no place */

struct arrival_t {
    char match[ARRIVALS_NAME_BYTES]; /* "": free */
    char mode[ARRIVALS_NAME_BYTES];
    uint64_t clients[ARRIVALS_PLAYERS];
    uint8_t is_here[ARRIVALS_PLAYERS]; /* has come, once */
    int count;                         /* 0: their ids are not known */
    int seen;
    double until;
    int is_over;
};

struct arrivals_t {
    struct arrival_t list[ARRIVALS_MATCHES];
    char left_out[ARRIVALS_NAME_BYTES]; /* the last match for which there was no place */
    unsigned long long num_left_out;    /* announcements since the last line about them; the backend repeats its own */
    double next_line;
};

/* Letters, digits and - _ . in 1 to 63 characters: what is safe in logs and reports. */
static int arrivals_is_name( const char * text )
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return *text && strlen( text ) < ARRIVALS_NAME_BYTES && strspn( text, letters ) == strlen( text );
}

/* "1001,1002". Those that are no numbers, or too many, make the whole unknown: then only time ends the wait. */
static void arrivals_read_clients( struct arrival_t * arrival, const char * text )
{
    while ( *text ) {
        char * end = NULL;
        unsigned long long id = strtoull( text, &end, 10 );
        if ( *text < '0' || *text > '9' || ( *end != ',' && *end != '\0' ) || arrival->count == ARRIVALS_PLAYERS ) {
            arrival->count = 0;
            return;
        }
        arrival->clients[arrival->count++] = (uint64_t) id;
        text = *end ? end + 1 : end;
    }
}

static struct arrival_t * arrivals_find( struct arrivals_t * arrivals, const char * match )
{
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        if ( !strcmp( arrivals->list[i].match, match ) )
            return &arrivals->list[i];
    }
    return NULL;
}

/* A free place, or that of the match that is over and whose time ends first. NULL when players of all may still arrive. */
static struct arrival_t * arrivals_place( struct arrivals_t * arrivals )
{
    struct arrival_t * place = arrivals_find( arrivals, "" );
    if ( place )
        return place;
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        struct arrival_t * arrival = &arrivals->list[i];
        if ( arrival->is_over && ( !place || arrival->until < place->until ) )
            place = arrival;
    }
    return place;
}

/*  A match of these players, who may arrive for so many seconds. NULL when it is known already, has no name that is one,
    or players of as many as can be kept may still arrive: then the server only knows its players as they come, and
    arrivals_update has a line about it. */
static struct arrival_t * arrivals_add( struct arrivals_t * arrivals, double now, const char * match, const char * mode,
                                        const char * clients, double seconds )
{
    struct arrival_t * arrival = NULL;
    if ( !arrivals_is_name( match ) || arrivals_find( arrivals, match ) || !( seconds > 0.0 ) )
        return NULL;
    arrival = arrivals_place( arrivals );
    if ( !arrival ) {
        arrivals->num_left_out++;
        snprintf( arrivals->left_out, sizeof( arrivals->left_out ), "%s", match );
        return NULL;
    }
    memset( arrival, 0, sizeof( *arrival ) );
    snprintf( arrival->match, sizeof( arrival->match ), "%s", match );
    snprintf( arrival->mode, sizeof( arrival->mode ), "%s", arrivals_is_name( mode ) ? mode : "-" );
    arrivals_read_clients( arrival, clients );
    arrival->until = now + seconds;
    return arrival;
}

static void arrivals_connected( struct arrivals_t * arrivals, uint64_t client_id )
{
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        struct arrival_t * arrival = &arrivals->list[i];
        for ( int k = 0; k < arrival->count && arrival->match[0]; k++ ) {
            if ( arrival->clients[k] == client_id && !arrival->is_here[k] ) {
                arrival->is_here[k] = 1;
                arrival->seen++;
            }
        }
    }
}

static int arrivals_is_pending( const struct arrival_t * arrival )
{
    return arrival->match[0] && !arrival->is_over;
}

/* How many players of known matches may still arrive; at least 1 for a match whose players' ids are not known. */
static int arrivals_pending( const struct arrivals_t * arrivals )
{
    int pending = 0;
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        const struct arrival_t * arrival = &arrivals->list[i];
        if ( arrivals_is_pending( arrival ) )
            pending += arrival->count ? arrival->count - arrival->seen : 1;
    }
    return pending;
}

static void arrivals_say_left_out( struct arrivals_t * arrivals, double now, void ( *log )( void *, const char * ),
                                   void * context )
{
    char text[ARRIVALS_NAME_BYTES + 160];
    if ( !arrivals->num_left_out || now < arrivals->next_line )
        return;
    snprintf( text, sizeof( text ),
              "match %s: not waited for, as %d others whose players may still arrive are as many as can be kept; "
              "announcements left out: %llu",
              arrivals->left_out, ARRIVALS_MATCHES, arrivals->num_left_out );
    log( context, text );
    arrivals->num_left_out = 0;
    arrivals->next_line = now + ARRIVALS_LINE_SECONDS;
}

/*  Ends those of whom all have come, or whose time is over, with a line each, and has one now and then about those for
    which there was no place. */
static void arrivals_update( struct arrivals_t * arrivals, double now, void ( *log )( void *, const char * ),
                             void * context )
{
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        char text[ARRIVALS_NAME_BYTES + 96];
        struct arrival_t * arrival = &arrivals->list[i];
        int complete = arrival->count && arrival->seen == arrival->count;
        if ( !arrival->match[0] )
            continue;
        if ( !arrival->is_over && ( complete || now >= arrival->until ) ) {
            arrival->is_over = 1;
            if ( complete )
                snprintf( text, sizeof( text ), "match %s: all %d players have come", arrival->match, arrival->count );
            else if ( arrival->count )
                snprintf( text, sizeof( text ), "match %s: %d of %d players did not come", arrival->match,
                          arrival->count - arrival->seen, arrival->count );
            else
                snprintf( text, sizeof( text ), "match %s: its players are not waited for any longer", arrival->match );
            log( context, text );
        }
        if ( arrival->is_over && now >= arrival->until + ARRIVALS_KEEP_SECONDS )
            memset( arrival, 0, sizeof( *arrival ) );
    }
    arrivals_say_left_out( arrivals, now, log, context );
}

/* For a report: [{"id":"4711","mode":"duel","players":2,"seen":1}]; "" when there is none. */
static void arrivals_print( const struct arrivals_t * arrivals, char * text, size_t bytes )
{
    size_t at = 0;
    text[0] = '\0';
    for ( int i = 0; i < ARRIVALS_MATCHES; i++ ) {
        const struct arrival_t * arrival = &arrivals->list[i];
        if ( !arrival->match[0] || bytes - at < 2 * ARRIVALS_NAME_BYTES + 80 )
            continue;
        at += (size_t) snprintf( text + at, bytes - at, "%s{\"id\":\"%s\",\"mode\":\"%s\",\"players\":%d,\"seen\":%d}",
                                 at ? "," : "[", arrival->match, arrival->mode, arrival->count, arrival->seen );
    }
    if ( at )
        snprintf( text + at, bytes - at, "]" );
}

#endif
