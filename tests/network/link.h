/*  One simulated link in virtual time: delay, jitter, loss at random or in bursts, duplicates, a rate with a queue in front of it, a
    policer. */

#ifndef NETWORK_LINK_H
#define NETWORK_LINK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double delay;         /* seconds one way */
    double jitter;        /* each packet takes up to so much more or less */
    int reorders;         /* jitter may change the order; else a packet waits for the one before it */
    double loss;          /* 0 to 1 */
    double burst;         /* packets in a burst of losses, on average; 0 or 1: losses are independent */
    double burst_seconds; /* instead: how long a burst lasts on average, whatever is sent meanwhile */
    double duplicates;    /* 0 to 1 */
    double rate;          /* bytes a second; 0: no limit, and no queue */
    double queue_seconds; /* what the queue holds, at that rate; packets beyond are dropped */
    double policed;       /* bytes a second that a policer lets pass; 0: there is none */
    double bucket;        /* bytes that it lets pass at once */
} path_t;

typedef struct {
    double at;
    uint64_t order;
    int to;                 /* an end's index */
    int bytes, overhead;    /* of headers around them */
    uint64_t sequence, ack; /* of a TCP flow, which has no data */
    uint8_t data[1200];
} datagram_t;

/* ---- random numbers ---- */

typedef struct {
    uint64_t state;
} dice_t;

static uint64_t dice_next( dice_t * dice )
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15ull;
    z = ( z ^ ( z >> 30 ) ) * 0xbf58476d1ce4e5b9ull;
    z = ( z ^ ( z >> 27 ) ) * 0x94d049bb133111ebull;
    return z ^ ( z >> 31 );
}

/* 0 to 1, without 1 */
static double dice_real( dice_t * dice )
{
    return (double) ( dice_next( dice ) >> 11 ) / 9007199254740992.0;
}

/* ---- values of which percentiles are wanted ---- */

typedef struct {
    double * values;
    size_t count, capacity;
} samples_t;

static void samples_add( samples_t * samples, double value )
{
    if ( samples->count == samples->capacity ) {
        samples->capacity = samples->capacity ? 2 * samples->capacity : 4096;
        samples->values = (double *) realloc( samples->values, samples->capacity * sizeof( double ) );
        if ( !samples->values )
            abort();
    }
    samples->values[samples->count++] = value;
}

static int samples_compare( const void * a, const void * b )
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static void samples_sort( samples_t * samples )
{
    if ( samples->count )
        qsort( samples->values, samples->count, sizeof( double ), samples_compare );
}

/* The nearest rank, of sorted samples; 0 if there are none. */
static double samples_part( const samples_t * samples, double part )
{
    if ( !samples->count )
        return 0.0;
    size_t rank = (size_t) ceil( part * (double) samples->count );
    return samples->values[rank ? rank - 1 : 0];
}

static void samples_free( samples_t * samples )
{
    free( samples->values );
    memset( samples, 0, sizeof( *samples ) );
}

/* ---- datagrams in transit: a heap by time ---- */

typedef struct {
    datagram_t ** heap;
    int count, capacity;
    uint64_t next_order;
} mail_t;

static int mail_before( const datagram_t * a, const datagram_t * b )
{
    return a->at < b->at || ( a->at == b->at && a->order < b->order );
}

static datagram_t * mail_new( void )
{
    datagram_t * datagram = (datagram_t *) malloc( sizeof( datagram_t ) );
    if ( !datagram )
        abort();
    datagram->overhead = 0;
    return datagram;
}

static void mail_insert( mail_t * mail, datagram_t * datagram )
{
    if ( mail->count == mail->capacity ) {
        mail->capacity = mail->capacity ? 2 * mail->capacity : 1024;
        mail->heap = (datagram_t **) realloc( mail->heap, (size_t) mail->capacity * sizeof( datagram_t * ) );
        if ( !mail->heap )
            abort();
    }

    datagram->order = mail->next_order++;
    int at = mail->count++;
    for ( ; at && mail_before( datagram, mail->heap[( at - 1 ) / 2] ); at = ( at - 1 ) / 2 )
        mail->heap[at] = mail->heap[( at - 1 ) / 2];
    mail->heap[at] = datagram;
}

static datagram_t * mail_remove( mail_t * mail )
{
    datagram_t *first = mail->heap[0], *last = mail->heap[--mail->count];
    int at = 0;
    for ( int child; ( child = 2 * at + 1 ) < mail->count; at = child ) {
        if ( child + 1 < mail->count && mail_before( mail->heap[child + 1], mail->heap[child] ) )
            child++;
        if ( !mail_before( mail->heap[child], last ) )
            break;
        mail->heap[at] = mail->heap[child];
    }
    mail->heap[at] = last;
    return first;
}

static void mail_free( mail_t * mail )
{
    while ( mail->count )
        free( mail->heap[--mail->count] );
    free( mail->heap );
    memset( mail, 0, sizeof( *mail ) );
}

/* ---- one direction of the link ---- */

enum { LINK_ENDS = 4 };

typedef struct {
    path_t path;
    dice_t dice;
    double free_at; /* when its queue will be empty */
    double latest;  /* when the last packet arrives, if the order is kept */
    int bad;        /* a burst of losses goes on, */
    double until;   /* and ends then, or the time without losses does */
    double tokens, tokens_at;
    uint64_t packets, lost, bytes;
    uint64_t sent_to[LINK_ENDS], overflowed_to[LINK_ENDS]; /* packets, by who was to receive them */
    double measured_from;                                  /* waits and bytes from then on count */
    samples_t waits;                                       /* of each packet in the queue */
} link_t;

/* In bursts there are two states, Gilbert's: all is lost in the bad one. */
static int link_loses( link_t * link, double now )
{
    const path_t * path = &link->path;
    if ( path->burst_seconds > 0.0 && path->loss > 0.0 ) {
        while ( now >= link->until ) {
            link->bad = link->until > 0.0 && !link->bad; /* a good one is first */
            double part = link->bad ? 1.0 : ( 1.0 - path->loss ) / path->loss;
            link->until += -log( 1.0 - dice_real( &link->dice ) ) * part * path->burst_seconds;
        }
        return link->bad;
    }
    if ( path->burst <= 1.0 )
        return dice_real( &link->dice ) < path->loss;

    /* The bad one lasts `burst` packets on average. */
    double leave = 1.0 / path->burst, enter = leave * path->loss / ( 1.0 - path->loss );
    link->bad = dice_real( &link->dice ) < ( link->bad ? 1.0 - leave : enter );
    return link->bad;
}

static void link_deliver( link_t * link, mail_t * mail, datagram_t * datagram, double departs )
{
    const path_t * path = &link->path;
    double at = departs + path->delay + path->jitter * ( 2.0 * dice_real( &link->dice ) - 1.0 );
    if ( !path->reorders && at < link->latest )
        at = link->latest;
    link->latest = at;
    datagram->at = at - 1e-9; /* what takes whole ticks is there when the tick begins */
    mail_insert( mail, datagram );
}

/* Does a policer let it pass? */
static int link_passes( link_t * link, double bytes, double now )
{
    const path_t * path = &link->path;
    if ( path->policed <= 0.0 )
        return 1;
    link->tokens += ( now - link->tokens_at ) * path->policed;
    link->tokens = link->tokens < path->bucket ? link->tokens : path->bucket;
    link->tokens_at = now;
    if ( link->tokens < bytes )
        return 0;
    link->tokens -= bytes;
    return 1;
}

/* Sends it, or drops and frees it. */
static void link_send( link_t * link, mail_t * mail, datagram_t * datagram, double now )
{
    const path_t * path = &link->path;
    double departs = now, bytes = (double) ( datagram->bytes + datagram->overhead );
    double begins = link->free_at > now ? link->free_at : now;
    link->packets++;
    link->sent_to[datagram->to]++;

    if ( !link_passes( link, bytes, now ) || ( path->rate > 0.0 && begins - now > path->queue_seconds ) ) {
        link->overflowed_to[datagram->to]++;
        free( datagram );
        return;
    }
    if ( path->rate > 0.0 ) {
        departs = link->free_at = begins + bytes / path->rate;
        if ( now >= link->measured_from )
            samples_add( &link->waits, begins - now );
    }
    if ( now >= link->measured_from )
        link->bytes += (uint64_t) datagram->bytes;

    if ( link_loses( link, now ) ) {
        link->lost++;
        free( datagram );
        return;
    }
    if ( path->duplicates > 0.0 && dice_real( &link->dice ) < path->duplicates ) {
        datagram_t * copy = mail_new();
        *copy = *datagram;
        link_deliver( link, mail, copy, departs );
    }
    link_deliver( link, mail, datagram, departs );
}

#endif
