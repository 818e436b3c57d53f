/*  "Find a match" in the token backend: POST /v1/match, and GET and DELETE /v1/match/TICKET; the queue of matchmaking.h,
    and a server for each match: of those that the backend knows, or from an Agones allocator. backend.c includes it, and
    calls the match_ functions at the bottom; none of them waits.

    All or none: a match's players have tokens when a server has been found for all of them, and else all of them are in
    the queue. A token is made when its player asks, and holds that one server. README.md describes the endpoints. */

#ifndef BACKEND_MATCH_H
#define BACKEND_MATCH_H

#define MATCH_CLIENTS_BYTES ( MM_MAX_PLAYERS * 21 + 1 ) /* ids with commas */
#define MATCH_RUN_SECONDS 0.1
#define MATCH_BUSY_MILLISECONDS 10 /* how long the loop may wait while an allocation is in progress */
#define MATCH_IDLE_MILLISECONDS 100
#define MATCH_POLL_SECONDS 1 /* Retry-After of who waits */
#define MATCH_POLLS_PER_SECOND 4.0
#define MATCH_POLL_BURST 10.0
#define MATCH_MAX_RESERVATIONS 1024
#define MATCH_MAX_DIALLED 4  /* addresses of one server in a token */
#define MATCH_DATA_OFFSET 64 /* in a token's user data, behind the player's name */
#define MATCH_PER_REPORT 16  /* matches in one answer to a server */

/* Slots of a server that are kept for a match's players until they are in, or their tokens are over. */
struct reservation_t {
    char match[MM_ID_BYTES]; /* "": free */
    char server[NAME_BYTES];
    int mode;
    int count;
    int seen;     /* of them, by the server's reports */
    int is_known; /* the server's last report names it */
    double until;
    char clients[MATCH_CLIENTS_BYTES];
};

struct poll_allowance_t {
    double left;
    double at;
};

struct matchmaker_t {
    const char * modes_file; /* NULL: there is no matchmaking here */
    struct mm_t mm;
    struct poll_allowance_t polls[MM_MAX_TICKETS];
    struct reservation_t reservations[MATCH_MAX_RESERVATIONS];
    int num_reservations; /* in use */
    double next_run;
};

/* One process is one backend. */
static struct matchmaker_t matchmaker;

/* ---- servers that the backend knows ---- */

static struct reservation_t * match_free_reservation( void )
{
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS; i++ ) {
        if ( !matchmaker.reservations[i].match[0] )
            return &matchmaker.reservations[i];
    }
    return NULL;
}

/* What is kept for matches, server by server. Those whose time is over end. */
static void match_count_reserved( struct app_t * app, double now )
{
    for ( int i = 0; i < MAX_SERVERS; i++ )
        app->servers[i].reserved = 0;
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
        struct reservation_t * reservation = &matchmaker.reservations[i];
        if ( reservation->match[0] && now >= reservation->until ) {
            memset( reservation, 0, sizeof( *reservation ) );
            matchmaker.num_reservations--;
        }
        for ( int k = 0; k < MAX_SERVERS && reservation->match[0]; k++ ) {
            if ( !strcmp( app->servers[k].name, reservation->server ) )
                app->servers[k].reserved += reservation->count - reservation->seen;
        }
    }
}

/*  How well the server suits so many players; -1: not at all. A server of the file that never reported is taken to be
    empty again when all of its slots were given away: it comes last then. */
static int match_room( const struct server_t * server, int count )
{
    if ( free_slots( server ) >= count )
        return free_slots( server );
    return server->listed && server->slots >= count ? 0 : -1;
}

static struct server_t * match_choose( struct app_t * app, const char * region, int count )
{
    struct wish_t wish;
    struct server_t * best = NULL;
    double now = netcode_time();
    memset( &wish, 0, sizeof( wish ) );
    if ( strcmp( region, MM_ANYWHERE ) != 0 )
        copy_name( wish.region, region );
    for ( int i = 0; i < MAX_SERVERS + app->files.num_listed; i++ ) {
        struct server_t * server = server_at( app, i );
        int room = fits( server, &wish, now ) ? match_room( server, count ) : -1;
        if ( room >= 0 && ( !best || room > match_room( best, count ) ) )
            best = server;
    }
    return best;
}

/* "name address dialled,dialled": all that is needed for tokens, whatever becomes of the server meanwhile. */
static void match_write_place( const struct server_t * server, char place[MM_PLACE_BYTES] )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    size_t at = (size_t) snprintf( place, MM_PLACE_BYTES, "%s %s ", server->name,
                                   netcode_address_to_string( &server->address, text ) );
    for ( int i = 0; i < server->num_dialled && i < MATCH_MAX_DIALLED; i++ )
        at += (size_t) snprintf( place + at, MM_PLACE_BYTES - at, "%s%s", i ? "," : "",
                                 netcode_address_to_string( &server->dialled[i], text ) );
}

/* The ids of a match's players, with commas between. */
static void match_clients( const struct mm_match_t * match, char text[MATCH_CLIENTS_BYTES] )
{
    size_t at = 0;
    text[0] = '\0';
    for ( int i = 0; i < match->count; i++ )
        at += (size_t) snprintf( text + at, 22, "%s%llu", i ? "," : "",
                                 (unsigned long long) match->tickets[i]->wish.client_id );
}

/* Keeps the slots. 0 when there are more matches than that can be done for. */
static int match_reserve( struct server_t * server, const struct mm_match_t * match, double until )
{
    struct reservation_t * reservation = NULL;
    if ( server->listed ) { /* it does not report when its players come and go: see promise */
        if ( free_slots( server ) < match->count )
            server->promised = 0;
        server->promised += match->count;
        return 1;
    }
    reservation = match_free_reservation();
    if ( !reservation )
        return 0;
    memset( reservation, 0, sizeof( *reservation ) );
    memcpy( reservation->match, match->id, sizeof( reservation->match ) );
    copy_name( reservation->server, server->name );
    reservation->mode = match->mode;
    reservation->count = match->count;
    reservation->until = until;
    match_clients( match, reservation->clients );
    matchmaker.num_reservations++;
    server->reserved += match->count;
    return 1;
}

/* With a server's report: how many of the players of its matches have come. */
static void match_read_report( const cJSON * json )
{
    const cJSON * each = NULL;
    const cJSON * name = cJSON_GetObjectItemCaseSensitive( json, "name" );
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
        if ( !strcmp( matchmaker.reservations[i].server, name->valuestring ) )
            matchmaker.reservations[i].is_known = 0; /* it may have been started anew */
    }
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( json, "matches" ) )
    {
        const cJSON * id = cJSON_GetObjectItemCaseSensitive( each, "id" );
        int seen = 0;
        for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
            struct reservation_t * reservation = &matchmaker.reservations[i];
            if ( reservation->match[0] && cJSON_IsString( id ) && !strcmp( reservation->match, id->valuestring ) &&
                 !strcmp( reservation->server, name->valuestring ) &&
                 read_count( each, "seen", 0, reservation->count, &seen ) ) {
                reservation->seen = seen;
                reservation->is_known = 1;
            }
        }
    }
}

/* The same for one server, whose report says how many have come. */
static void match_count_server( struct server_t * server, double now )
{
    server->reserved = 0;
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
        const struct reservation_t * reservation = &matchmaker.reservations[i];
        if ( reservation->match[0] && now < reservation->until && !strcmp( server->name, reservation->server ) )
            server->reserved += reservation->count - reservation->seen;
    }
}

/*  In the answer to a report: the matches whose players are on their way and that the server did not name. One that it
    knows would take the place of one that it has not heard of. 0 when memory is short. */
static int match_answer_report( struct server_t * server, cJSON * json )
{
    int count = 0;
    double now = netcode_time();
    cJSON * list = NULL;
    match_count_server( server, now );
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations && count < MATCH_PER_REPORT; i++ ) {
        const struct reservation_t * reservation = &matchmaker.reservations[i];
        if ( !reservation->match[0] || strcmp( reservation->server, server->name ) != 0 || now >= reservation->until )
            continue;
        if ( reservation->is_known || reservation->seen == reservation->count )
            continue;
        if ( !list )
            list = cJSON_AddArrayToObject( json, "matches" );
        cJSON * item = cJSON_CreateObject();
        if ( !cJSON_AddItemToArray( list, item ) ) {
            cJSON_Delete( item );
            return 0;
        }
        if ( !cJSON_AddStringToObject( item, "id", reservation->match ) ||
             !cJSON_AddStringToObject( item, "mode", matchmaker.mm.modes[reservation->mode].name ) ||
             !cJSON_AddStringToObject( item, "clients", reservation->clients ) ||
             !cJSON_AddNumberToObject( item, "seconds", ceil( reservation->until - now ) ) )
            return 0;
        count++;
    }
    return 1;
}

/* All players of the match were seen on its server. An allocator's servers do not report to us: there it is not known. */
static int match_is_complete( const char * match )
{
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
        const struct reservation_t * reservation = &matchmaker.reservations[i];
        if ( match[0] && !strcmp( reservation->match, match ) )
            return reservation->seen == reservation->count;
    }
    return 0;
}

/* ---- a server for a match ---- */

/* All players of the match have it, from now on. */
static void match_finish_commit( struct app_t * app, struct mm_match_t * match, const char * server, const char * place,
                                 double ended_at )
{
    double now = netcode_time();
    const struct mm_mode_t * mode = &matchmaker.mm.modes[match->mode];
    say( app, "match %s: %s in %s, %d players, on %s", match->id, mode->name, mode->regions[match->region],
         match->count, server );
    mm_commit( &matchmaker.mm, match, place, now, ended_at - now );
}

static void match_give_back( struct app_t * app, struct mm_match_t * match, const char * why )
{
    const struct mm_mode_t * mode = &matchmaker.mm.modes[match->mode];
    say( app, "match %s: %s in %s, %d players, back to the queue: %s", match->id, mode->name,
         mode->regions[match->region], match->count, why );
    for ( int i = 0; i < MATCH_MAX_RESERVATIONS && matchmaker.num_reservations; i++ ) {
        if ( !strcmp( matchmaker.reservations[i].match, match->id ) ) {
            memset( &matchmaker.reservations[i], 0, sizeof( matchmaker.reservations[i] ) );
            matchmaker.num_reservations--;
        }
    }
    mm_give_back( &matchmaker.mm, match, netcode_time() );
}

/* ---- a server from an allocator ---- */

#ifdef BACKEND_FULL
#include "allocator.h"

struct match_allocator_t {
    struct allocator_options_t options;
    int is_open;
    struct outgoing_t allocations[MM_MAX_MATCHES]; /* each of the match in the same place */
};

static struct match_allocator_t match_allocator = { .options = { .kubernetes_namespace = "default" } };

static int match_has_allocator( void )
{
    return match_allocator.options.url != NULL;
}

/*  Allocations in progress belong to no match any more. A server that is allocated all the same waits for players in
    vain, but not for long. */
static void match_allocator_forget( void )
{
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        if ( match_allocator.allocations[i].requests )
            request_forget( &match_allocator.allocations[i] );
    }
}

#include "match_store.h"

/* The server is found: the match is made at once, or when all backends could know of it. */
static void match_commit( struct app_t * app, struct mm_match_t * match, const char * server, const char * place,
                          double ended_at )
{
    if ( match_has_store( app ) )
        match_store_commit( app, match, server, place, ended_at );
    else
        match_finish_commit( app, match, server, place, ended_at );
}

static void match_allocator_help( void )
{
    printf(
        "  --allocator URL                https://HOST[:PORT] of an Agones allocator: it finds the matches' servers\n"
        "  --allocator-ca FILE            the certificates that the allocator's is verified with (the system's)\n"
        "  --allocator-cert FILE          our certificate, and\n"
        "  --allocator-key FILE           its key, which the allocator verifies\n"
        "  --allocator-namespace NAME     where the game servers are (default)\n" );
}

static int match_allocator_option( const char * name, const char * value )
{
    struct allocator_options_t * options = &match_allocator.options;
    if ( !strcmp( name, "--allocator" ) )
        return ( options->url = value ) && !strncmp( value, "https://", 8 ) && value[8] && !strchr( value + 8, '/' );
    if ( !strcmp( name, "--allocator-ca" ) )
        options->ca_file = value;
    else if ( !strcmp( name, "--allocator-cert" ) )
        options->certificate_file = value;
    else if ( !strcmp( name, "--allocator-key" ) )
        options->key_file = value;
    else if ( !strcmp( name, "--allocator-namespace" ) )
        return ( options->kubernetes_namespace = value ) && mm_is_name( value, 1 );
    else
        return 0;
    return 1;
}

/* libcurl reads the files with each new connection, and says less well what is wrong with them. */
static int match_allocator_check_files( void )
{
    const struct allocator_options_t * options = &match_allocator.options;
    FILE * key = NULL;
    if ( !matchmaker.modes_file || !options->certificate_file || !options->key_file )
        return complain( "--allocator", "needs --modes, --allocator-cert and --allocator-key" );
    if ( access( options->certificate_file, R_OK ) != 0 )
        return complain( options->certificate_file, strerror( errno ) );
    if ( options->ca_file && access( options->ca_file, R_OK ) != 0 )
        return complain( options->ca_file, strerror( errno ) );
    key = secret_open( "backend", options->key_file );
    if ( key )
        fclose( key );
    return key != NULL;
}

/* What the allocator would refuse with each request, or could not find a server for. */
static int match_allocator_check_modes( void )
{
    for ( int i = 0; i < matchmaker.mm.num_modes; i++ ) {
        const struct mm_mode_t * mode = &matchmaker.mm.modes[i];
        int good = allocator_is_label( mode->name );
        for ( int k = 0; k < mode->num_regions; k++ )
            good = good && allocator_is_label( mode->regions[k] );
        for ( int k = 0; k < mode->num_fleets; k++ )
            good = good && allocator_is_label( mode->fleets[k] );
        if ( !good )
            return complain( mode->name, "is a mode for --allocator: its name, regions and fleets become labels, which "
                                         "begin and end with a letter or a digit" );
        if ( mode->num_fleets && mode->num_fleets != mode->num_regions )
            return complain( mode->name, "is a mode for --allocator: its fleet= names a Fleet for each region, as all "
                                         "servers of a Fleet are in one" );
    }
    return 1;
}

/* 0, and a line, when a file is missing, others can use the key, or a mode is none for an allocator. */
static int match_allocator_start( struct app_t * app )
{
    if ( !match_allocator.options.url )
        return 1;
    if ( !match_allocator_check_files() || !match_allocator_check_modes() )
        return 0;
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        if ( !allocator_open( &match_allocator.allocations[i], &app->full.requests, &match_allocator.options ) )
            return complain( "--allocator", "can not be set up" );
    }
    match_allocator.is_open = 1;
    return 1;
}

static void match_stop( void )
{
    for ( int i = 0; i < MM_MAX_MATCHES; i++ )
        request_close( &match_allocator.allocations[i] );
}

/* 1: the allocator is asked, or this match is back in the queue. 0: there is none. */
static int match_allocator_begin( struct app_t * app, struct mm_match_t * match )
{
    char clients[MATCH_CLIENTS_BYTES];
    struct outgoing_t * request = &match_allocator.allocations[match - matchmaker.mm.matches];
    if ( !match_allocator.is_open )
        return 0;
    match_clients( match, clients );
    if ( !allocator_send( request, &match_allocator.options, &matchmaker.mm.modes[match->mode], match, clients,
                          app->options.expire_seconds ) )
        match_give_back( app, match, "there is no memory" );
    return 1;
}

/* It has answered, or failed to. */
static void match_allocator_finish( struct app_t * app, struct mm_match_t * match, struct outgoing_t * request )
{
    char place[MM_PLACE_BYTES];
    struct allocator_answer_t answer;
    const char * why = request->error;
    if ( request->state == REQUEST_WORKED )
        why = allocator_read( request->answer, &answer );
    request->state = REQUEST_IDLE;
    if ( why ) {
        match_give_back( app, match, why );
        return;
    }
    snprintf( place, sizeof( place ), "%s %s %s", answer.name, answer.address, answer.address );
    match_commit( app, match, answer.name, place, netcode_time() + app->options.expire_seconds );
}

/* How many are asked for now. */
static int match_allocator_update( struct app_t * app )
{
    int count = 0;
    for ( int i = 0; i < MM_MAX_MATCHES; i++ ) {
        struct outgoing_t * request = &match_allocator.allocations[i];
        if ( request->state == REQUEST_WORKED || request->state == REQUEST_FAILED )
            match_allocator_finish( app, &matchmaker.mm.matches[i], request );
        count += request->state == REQUEST_UNDER_WAY;
    }
    return count;
}
#else
static void match_commit( struct app_t * app, struct mm_match_t * match, const char * server, const char * place,
                          double ended_at )
{
    match_finish_commit( app, match, server, place, ended_at );
}

static int match_has_store( const struct app_t * app )
{
    return (void) app, 0;
}

static int match_store_update( struct app_t * app, double now )
{
    return (void) app, (void) now, 1;
}

static int match_store_is_active( const struct app_t * app )
{
    return (void) app, 1;
}

static enum refusal_t match_store_refusal( void )
{
    return REFUSAL_not_matchmaker;
}

static int match_store_is_elsewhere( const struct app_t * app )
{
    return (void) app, 0;
}

static void match_store_stop( struct app_t * app )
{
    (void) app;
}

static void match_allocator_help( void )
{
}

static int match_allocator_option( const char * name, const char * value )
{
    (void) name;
    (void) value;
    return 0;
}

static int match_allocator_start( struct app_t * app )
{
    (void) app;
    return 1;
}

static void match_stop( void )
{
}

static int match_allocator_begin( struct app_t * app, struct mm_match_t * match )
{
    (void) app;
    (void) match;
    return 0;
}

static int match_allocator_update( struct app_t * app )
{
    (void) app;
    return 0;
}
#endif

/* From our own list: at once, or not. */
static void match_place_here( struct app_t * app, struct mm_match_t * match )
{
    char place[MM_PLACE_BYTES];
    const struct mm_mode_t * mode = &matchmaker.mm.modes[match->mode];
    struct server_t * server = match_choose( app, mode->regions[match->region], match->count );
    double ended_at = netcode_time() + app->options.expire_seconds;
    if ( !server || !match_reserve( server, match, ended_at ) ) {
        match_give_back( app, match,
                         server
                             ? "too many matches are beginning"
                             : "no server has room for all (of those whose names begin with the region and a dash)" );
        return;
    }
    match_write_place( server, place );
    match_commit( app, match, server->name, place, ended_at );
}

/* ---- options and the start ---- */

static void match_help( void )
{
    printf( "  --modes FILE                   finds matches: lines \"name players teams [min=N] [widen=S] [shrink=S]\n"
            "                                 [expire=S] [regions=A,B] [fleet=A,B]\"\n" );
    match_allocator_help();
}

/* 0 when it is none of them or its value is wrong. */
static int match_option( const char * name, const char * value )
{
    if ( strcmp( name, "--modes" ) != 0 )
        return match_allocator_option( name, value );
    matchmaker.modes_file = value;
    return 1;
}

static void match_random_id( void * context, char id[MM_ID_BYTES] )
{
    uint8_t data[( MM_ID_BYTES - 1 ) / 2];
    (void) context;
    netcode_random_bytes( data, (int) sizeof( data ) );
    sodium_bin2hex( id, MM_ID_BYTES, data, sizeof( data ) );
}

static const char * match_take_mode( struct files_t * files, char * text )
{
    (void) files;
    return mm_add_mode( &matchmaker.mm, text );
}

/* Before the backend listens. 0, and a line, when a file is wrong. */
static int match_start( struct app_t * app )
{
    mm_init( &matchmaker.mm, match_random_id, NULL );
    if ( matchmaker.modes_file && !read_list( matchmaker.modes_file, match_take_mode, &app->files ) )
        return 0;
    if ( matchmaker.modes_file && !matchmaker.mm.num_modes )
        return complain( matchmaker.modes_file, "holds no mode" );
#ifdef BACKEND_FULL
    match_random_id( NULL, match_store.me );
#endif
    return match_allocator_start( app );
}

/* ---- the loop ---- */

/* In each turn of it. Returns for how many milliseconds it may wait. */
static int match_update( struct app_t * app )
{
    double now = netcode_time();
    struct mm_match_t * match = NULL;
    int busy = match_allocator_update( app );
    if ( match_has_store( app ) && !match_store_update( app, now ) )
        return MATCH_IDLE_MILLISECONDS;
    if ( now >= matchmaker.next_run ) {
        matchmaker.next_run = now + MATCH_RUN_SECONDS;
        match_count_reserved( app, now );
        mm_run( &matchmaker.mm, now );
        while ( ( match = mm_next( &matchmaker.mm ) ) != NULL ) {
            if ( !match_allocator_begin( app, match ) )
                match_place_here( app, match );
        }
    }
    return busy ? MATCH_BUSY_MILLISECONDS : MATCH_IDLE_MILLISECONDS;
}

/* ---- what a player is answered ---- */

/* A token for the one server of the match, good until the match's time is over. */
static int match_make_token( const struct app_t * app, const struct player_t * player,
                             const struct mm_ticket_t * ticket, uint8_t token[NETCODE_CONNECT_TOKEN_BYTES] )
{
    char place[MM_PLACE_BYTES];
    char * rest = place;
    const char * dialled[MATCH_MAX_DIALLED];
    const char * internal[MATCH_MAX_DIALLED];
    uint8_t user_data[NETCODE_USER_DATA_BYTES] = { 0 };
    int seconds = (int) ( ticket->ended_at - netcode_time() );
    int count = 0;
    memcpy( place, ticket->place, sizeof( place ) );
    take_word( &rest ); /* the name */
    const char * address = take_word( &rest );
    for ( char * next = take_word( &rest ); *next && count < MATCH_MAX_DIALLED; count++ ) {
        dialled[count] = next;
        internal[count] = address;
        next += strcspn( next, "," );
        if ( *next )
            *next++ = '\0';
    }
    memcpy( user_data, player->name, strlen( player->name ) );
    snprintf( (char *) user_data + MATCH_DATA_OFFSET, sizeof( user_data ) - MATCH_DATA_OFFSET,
              "match=%s mode=%s team=%d players=%d", ticket->match, matchmaker.mm.modes[ticket->wish.mode].name,
              ticket->team, ticket->players );
    return count &&
           netcode_generate_connect_token( count, dialled, internal, seconds < 1 ? 1 : seconds,
                                           app->options.timeout_seconds, player->client_id, app->options.protocol_id,
                                           app->files.key, user_data, token ) == NETCODE_OK;
}

static int match_add_token( const struct request_t * request, const struct player_t * player,
                            const struct mm_ticket_t * ticket, cJSON * json )
{
    char server[MM_PLACE_BYTES];
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES];
    struct app_t * app = request->app;
    const struct mm_mode_t * mode = &matchmaker.mm.modes[ticket->wish.mode];
    snprintf( server, sizeof( server ), "%.*s", (int) strcspn( ticket->place, " " ), ticket->place );
    int good =
        match_make_token( app, player, ticket, token ) && add_token( json, player, app->options.gateway, token ) &&
        cJSON_AddStringToObject( json, "match", ticket->match ) &&
        cJSON_AddStringToObject( json, "region", mode->regions[ticket->region] ) &&
        cJSON_AddStringToObject( json, "server", server ) && cJSON_AddNumberToObject( json, "team", ticket->team ) &&
        cJSON_AddNumberToObject( json, "players", ticket->players );
    sodium_memzero( token, sizeof( token ) );
    if ( good )
        app->counts.tokens++;
    return good;
}

static int match_add_queue( const struct mm_ticket_t * ticket, cJSON * json )
{
    int here = 0;
    double waited = netcode_time() - ticket->joined_at;
    for ( int i = 0; i < MM_MAX_TICKETS; i++ )
        here += mm_is_same_party( &matchmaker.mm.tickets[i], &ticket->wish );
    return cJSON_AddNumberToObject( json, "waited_seconds", floor( waited * 10.0 ) / 10.0 ) &&
           cJSON_AddNumberToObject( json, "players_waiting", matchmaker.mm.waiting[ticket->wish.mode] ) &&
           cJSON_AddNumberToObject( json, "players_wanted", matchmaker.mm.modes[ticket->wish.mode].players ) &&
           ( !here || ( cJSON_AddNumberToObject( json, "party_size", ticket->wish.party_size ) &&
                        cJSON_AddNumberToObject( json, "party_here", here ) ) );
}

/* How it stands with a ticket: the same answer whoever asks for it, and however often. */
static enum MHD_Result match_send( struct request_t * request, const struct player_t * player,
                                   const struct mm_ticket_t * ticket )
{
    static const char * const names[] = { "", "queued", "queued", "matched", "failed" };
    struct answer_t answer = { 200, NULL, NULL, NULL, 0 };
    cJSON * json = cJSON_CreateObject();
    int good = cJSON_AddStringToObject( json, "ticket", ticket->id ) &&
               cJSON_AddStringToObject( json, "status", names[ticket->state] ) &&
               cJSON_AddStringToObject( json, "mode", matchmaker.mm.modes[ticket->wish.mode].name );
    if ( ticket->state == MM_FAILED ) {
        good = good && cJSON_AddStringToObject( json, "reason", mm_reason_name( ticket->reason ) ) &&
               cJSON_AddStringToObject( json, "message", mm_reason_text( ticket->reason ) );
    } else if ( ticket->state == MM_MATCHED ) {
        good = good && match_add_token( request, player, ticket, json );
    } else {
        answer.status = 202;
        answer.retry_after = MATCH_POLL_SECONDS;
        good = good && match_add_queue( ticket, json );
    }
    return send_json( request, &answer, json, good );
}

/* ---- what a player says ---- */

/* {"eu": 20, "us": 95}: the nearest first. 0 when one is no latency, or no region of the mode. */
static int match_read_latencies( const struct mm_mode_t * mode, const cJSON * object, struct mm_wish_t * wish )
{
    double latencies[MM_MAX_REGIONS];
    const cJSON * item = NULL;
    cJSON_ArrayForEach( item, object )
    {
        int region = mm_find_region( mode, item->string );
        int at = wish->num_regions;
        if ( region < 0 || mm_rank( wish, region ) >= 0 || !cJSON_IsNumber( item ) ||
             !( item->valuedouble >= 0.0 && item->valuedouble <= 10000.0 ) )
            return 0;
        for ( ; at > 0 && latencies[at - 1] > item->valuedouble; at-- ) {
            latencies[at] = latencies[at - 1];
            wish->regions[at] = wish->regions[at - 1];
        }
        latencies[at] = item->valuedouble;
        wish->regions[at] = (uint8_t) region;
        wish->num_regions++;
    }
    return wish->num_regions > 0;
}

/* ["eu", "us"]: in this order. */
static int match_read_order( const struct mm_mode_t * mode, const cJSON * array, struct mm_wish_t * wish )
{
    const cJSON * item = NULL;
    cJSON_ArrayForEach( item, array )
    {
        int region = cJSON_IsString( item ) ? mm_find_region( mode, item->valuestring ) : -1;
        if ( region < 0 || mm_rank( wish, region ) >= 0 )
            return 0;
        wish->regions[wish->num_regions++] = (uint8_t) region;
    }
    return wish->num_regions > 0;
}

static int match_read_regions( const struct mm_mode_t * mode, const cJSON * regions, struct mm_wish_t * wish )
{
    if ( cJSON_IsArray( regions ) )
        return match_read_order( mode, regions, wish );
    if ( cJSON_IsObject( regions ) )
        return match_read_latencies( mode, regions, wish );
    for ( int i = 0; i < mode->num_regions; i++ ) /* all of them, as the file names them */
        wish->regions[wish->num_regions++] = (uint8_t) i;
    return !regions;
}

/* {"id": "what only the members know", "size": 3} */
static int match_read_party( const cJSON * party, struct mm_wish_t * wish )
{
    const cJSON * id = cJSON_GetObjectItemCaseSensitive( party, "id" );
    wish->party_size = 1;
    if ( !party )
        return 1;
    if ( !cJSON_IsObject( party ) || cJSON_GetArraySize( party ) != 2 || !cJSON_IsString( id ) ||
         !mm_is_name( id->valuestring, MM_MIN_PARTY_NAME ) ||
         !read_count( party, "size", 1, MM_MAX_PARTY, &wish->party_size ) )
        return 0;
    snprintf( wish->party, sizeof( wish->party ), "%s", id->valuestring );
    return 1;
}

/* REFUSALS when all is well; else the refusal, and what it is about. */
static enum refusal_t match_read_wish( const cJSON * json, struct mm_wish_t * wish, const char ** detail )
{
    const cJSON * item = NULL;
    const cJSON * name = cJSON_GetObjectItemCaseSensitive( json, "mode" );
    *detail = NULL;
    cJSON_ArrayForEach( item, json )
    {
        const cJSON * first = cJSON_GetObjectItemCaseSensitive( json, item->string );
        if ( first != item || ( strcmp( item->string, "mode" ) != 0 && strcmp( item->string, "regions" ) != 0 &&
                                strcmp( item->string, "party" ) != 0 ) ) {
            *detail = "only mode, regions and party are known, each once";
            return REFUSAL_wrong_field;
        }
    }
    if ( !cJSON_IsString( name ) ) {
        *detail = "mode is a name";
        return REFUSAL_wrong_field;
    }
    wish->mode = mm_find_mode( &matchmaker.mm, name->valuestring );
    if ( wish->mode < 0 )
        return REFUSAL_unknown_mode;
    if ( !match_read_regions( &matchmaker.mm.modes[wish->mode], cJSON_GetObjectItemCaseSensitive( json, "regions" ),
                              wish ) ) {
        *detail = "regions is a list of names, or an object of names with milliseconds";
        return REFUSAL_unknown_region;
    }
    return match_read_party( cJSON_GetObjectItemCaseSensitive( json, "party" ), wish ) ? REFUSALS : REFUSAL_wrong_party;
}

/* ---- the endpoints ---- */

/* POST /v1/match, of a player who has been recognised and may ask now. */
static enum MHD_Result match_join( struct request_t * request )
{
    const struct player_t * player = request->player;
    struct mm_wish_t wish;
    struct mm_ticket_t * ticket = NULL;
    const char * detail = NULL;
    cJSON * json = NULL;
    if ( !matchmaker.modes_file )
        return refuse( request, REFUSAL_not_found, NULL );
    if ( request->bytes > MAX_BODY_BYTES )
        return refuse( request, REFUSAL_too_large, NULL );
    json = parse_body( request );
    if ( !json )
        return refuse( request, REFUSAL_not_json, NULL );
    memset( &wish, 0, sizeof( wish ) );
    wish.client_id = player->client_id;
    enum refusal_t wrong = match_read_wish( json, &wish, &detail );
    cJSON_Delete( json );
    if ( wrong != REFUSALS )
        return refuse( request, wrong, detail );
    double now = netcode_time();
    enum mm_refusal_t refusal = mm_join( &matchmaker.mm, &wish, now, &ticket );
    if ( refusal == MM_REFUSAL_queue_full )
        return refuse_for( request, REFUSAL_queue_full, RETRY_SECONDS );
    if ( refusal == MM_REFUSAL_match_given_up )
        return refuse_for( request, REFUSAL_match_given_up, (int) ceil( ticket->ended_at - now ) );
    if ( refusal == MM_REFUSAL_already_queued )
        return refuse( request, REFUSAL_already_queued, ticket->id );
    if ( refusal != MM_JOINED )
        return refuse( request, ( enum refusal_t )( (int) REFUSAL_unknown_mode + (int) refusal - 1 ), NULL );
    return match_send( request, player, ticket );
}

/* 0 when the player may ask for his ticket now; else in how many seconds. */
static int match_take_poll( const struct mm_ticket_t * ticket )
{
    struct poll_allowance_t * polls = &matchmaker.polls[ticket - matchmaker.mm.tickets];
    double now = netcode_time();
    polls->left += ( now - polls->at ) * MATCH_POLLS_PER_SECOND;
    if ( polls->left > MATCH_POLL_BURST )
        polls->left = MATCH_POLL_BURST;
    polls->at = now;
    if ( polls->left < 1.0 )
        return MATCH_POLL_SECONDS;
    polls->left -= 1.0;
    return 0;
}

/* GET and DELETE /v1/match/TICKET, of a player who has been recognised. */
static enum MHD_Result match_ticket( struct request_t * request )
{
    const struct player_t * player = request->player;
    struct mm_ticket_t * ticket = NULL;
    if ( matchmaker.modes_file )
        ticket = mm_poll( &matchmaker.mm, request->rest, player->client_id, netcode_time() );
    if ( !ticket )
        return refuse( request, REFUSAL_unknown_ticket, NULL );
    int seconds = match_take_poll( ticket );
    if ( seconds )
        return refuse_for( request, REFUSAL_rate_limited, seconds );
    if ( request->deletes && !mm_cancel( &matchmaker.mm, ticket, match_is_complete( ticket->match ), netcode_time() ) )
        return refuse_for( request, REFUSAL_being_matched, MATCH_POLL_SECONDS );
    return match_send( request, player, ticket );
}

/* The player is recognised. Redis may have been asked who he is, and our lease may have ended meanwhile. */
static enum MHD_Result match_go_on( struct request_t * request )
{
    if ( !match_store_is_active( request->app ) )
        return refuse_for( request, match_store_refusal(), MATCH_POLL_SECONDS );
    return request->rest[0] ? match_ticket( request ) : match_join( request );
}

static enum MHD_Result answer_match( struct request_t * request )
{
    if ( !match_store_is_active( request->app ) ) /* and nothing is taken of the player's rate */
        return refuse_for( request, match_store_refusal(), MATCH_POLL_SECONDS );
    request->is_free = request->rest[0] != '\0'; /* tickets have a rate of their own */
    return with_player( request, match_go_on );
}

#endif
