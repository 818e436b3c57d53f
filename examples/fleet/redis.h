/*  A link to Redis that a game loop can afford, and a loop that sleeps in poll: nothing here ever waits (but redis_finish,
    which is for the end). It connects by itself, again after each loss, and every command's callback is called exactly
    once: with the answer, or because the time is over, or because the link was lost.

        struct redis_link_config_t config;
        redis_default_config( &config );
        config.address = "127.0.0.1:6379";              // or [::1]:6379, or unix:/run/redis/redis.sock
        if ( !redis_open( &link, &config, now ) )       // link.why says what is wrong
            return 1;
        for ( ;; ) {                                    // the game loop
            redis_update( &link, now );
            if ( !redis_send( &link, now, 2, words, NULL, on_answer, context ) )
                ...                                     // not now: link.why says why
        }

    A late answer is never taken for another command's: the answers of Redis come in the order of the commands, so a command
    whose time is over keeps its place in the line until its answer has come and was thrown away. What it asked for may still
    happen, however late; let commands be such that this does no harm.

    Uses the formatter and the parser of hiredis (0.14 to 1.2), and sockets of its own: hiredis' asynchronous API aborts the
    process when a server sends an answer too many (an assert in redisProcessCallbacks), and writes without MSG_NOSIGNAL.

    No TLS: where the way to Redis is not your own network, lead it through a tunnel.

    One header, for one program unit; needs hiredis and libsodium. On POSIX systems:
        cc program.c $(pkg-config --cflags --libs hiredis libsodium) */

#ifndef FLEET_REDIS_H
#define FLEET_REDIS_H

#include "../secret_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REDIS_LINK_COMMANDS 256              /* in flight, unless the configuration says otherwise */
#define REDIS_LINK_OUT_BYTES ( 1024 * 1024 ) /* of commands that the system has not taken yet */
#define REDIS_LINK_ANSWER_BYTES ( 1024 * 1024 )
#define REDIS_LINK_ANSWER_ITEMS 65536 /* of one array in an answer */
#define REDIS_LINK_READ_BYTES 16384
#define REDIS_LINK_READS 16 /* in one update */
#define REDIS_LINK_PREFIX_BYTES 64
#define REDIS_LINK_WHY_BYTES 192
#define REDIS_LINK_WORD_BYTES 256 /* of a password or a user */
#define REDIS_LINK_FIRST_PAUSE_SECONDS 0.05
#define REDIS_LINK_LAST_PAUSE_SECONDS 1.0
#define REDIS_LINK_PING_SECONDS 1.0   /* so often the time is asked for, so that a dead Redis is noticed */
#define REDIS_LINK_SILENT_TIMEOUTS 3  /* so many times the time of a command without a byte: connect again */
#define REDIS_LINK_REPEAT_SECONDS 5.0 /* before the log names another reason while Redis can not be reached */

#ifdef MSG_NOSIGNAL
#define REDIS_LINK_SEND_FLAGS MSG_NOSIGNAL
#else
#define REDIS_LINK_SEND_FLAGS 0 /* SO_NOSIGPIPE does it */
#endif

/* What a callback is called for. */
#define REDIS_LINK_ANSWER 1    /* `reply` is there, and valid during the call; it may be an error */
#define REDIS_LINK_TIMED_OUT 2 /* no answer in time; the command may have been done, or be done yet */
#define REDIS_LINK_LOST 3      /* the link ended before the answer; the command may have been done, or be done yet */

#define REDIS_LINK_PAUSED 0     /* no socket; tries again at `next_try` */
#define REDIS_LINK_CONNECTING 1 /* a socket whose connect is not done */
#define REDIS_LINK_GREETING 2   /* AUTH, TIME and INFO are in flight */
#define REDIS_LINK_READY 3

typedef void ( *redis_callback_t )( void * context, int what, const redisReply * reply );

struct redis_link_config_t {
    const char * program;       /* in front of lines on standard error about the password file */
    const char * address;       /* HOST:PORT as numbers, or unix:PATH */
    const char * user;          /* of an ACL; NULL: the default user */
    const char * password_file; /* mode 0600, one word; NULL: no AUTH */
    const char * prefix;        /* of all keys; "netcode:" */
    int commands;               /* in flight at most; REDIS_LINK_COMMANDS */
    double timeout_seconds;     /* of a command, and of a connect */
    void ( *log )( void * context, const char * text ); /* one line, without its end; NULL: none */
    void * context;
};

struct redis_command_t {
    redis_callback_t callback; /* NULL: its time is over, its answer is thrown away */
    void * context;
    double deadline;
};

struct redis_link_t {
    struct sockaddr_storage to;
    socklen_t to_bytes;
    char name[160]; /* the address, as it was given */
    char prefix[REDIS_LINK_PREFIX_BYTES];
    char user[REDIS_LINK_WORD_BYTES];
    char password[REDIS_LINK_WORD_BYTES];
    const char * program;
    const char * password_file;
    double timeout_seconds;
    void ( *log )( void * context, const char * text );
    void * log_context;

    int state;      /* REDIS_LINK_... */
    int fd;         /* -1: none */
    double started; /* this try to connect */
    double next_try;
    double pause; /* before the next try but one */
    double last_byte;
    double last_ping;
    redisReader * reader;
    size_t answer_bytes; /* since the last whole answer */
    char * out;
    size_t out_bytes;
    size_t out_sent;
    struct redis_command_t * commands; /* a ring, the oldest first */
    int capacity;
    int first;
    int count;
    int overdue; /* of these, whose time is over: no further commands until Redis has caught up */
    double now;  /* of the update that runs */
    int is_busy; /* inside an update: a callback may send, and must not close */

    /* To read. */
    int reachable;                  /* answers come in time */
    double since;                   /* when that became so */
    char why[REDIS_LINK_WHY_BYTES]; /* it is not reachable, or a command was refused */
    double
        refused_at; /* when a connect began that was refused: nothing listens there. Negative: not since it was reachable */
    char run_id[48];    /* of the process that is connected: another one after each restart of Redis */
    char eviction[32];  /* its maxmemory-policy */
    double clock_ahead; /* Redis' time is at least the loop's and this; known when `knows_clock` is */
    int knows_clock;
    uint64_t connects; /* links that were ready */
    uint64_t losses;   /* of these, which ended */
    uint64_t failures; /* connects that led to nothing */
    uint64_t sent;
    uint64_t answers; /* in time */
    uint64_t timeouts;
    uint64_t lost;    /* commands */
    uint64_t refused; /* commands */
    double log_time;
    char logged[REDIS_LINK_WHY_BYTES]; /* the last reason that the log has */
};

/* ---- addresses and settings ---- */

static inline void redis_default_config( struct redis_link_config_t * config )
{
    memset( config, 0, sizeof( *config ) );
    config->program = "redis";
    config->prefix = "netcode:";
    config->commands = REDIS_LINK_COMMANDS;
    config->timeout_seconds = 2.0;
}

static inline int redis_parse_unix( struct redis_link_t * link, const char * path )
{
    struct sockaddr_un to;
    size_t bytes = strlen( path );
    if ( !bytes || bytes >= sizeof( to.sun_path ) )
        return 0;
    memset( &to, 0, sizeof( to ) );
    to.sun_family = AF_UNIX;
    memcpy( to.sun_path, path, bytes );
    memcpy( &link->to, &to, sizeof( to ) );
    link->to_bytes = sizeof( to );
    return 1;
}

/*  127.0.0.1:6379 or [::1]:6379. Numbers only: looking up a name may take seconds, and a name that leads elsewhere one day
    would split the fleet between two Redis. */
static inline int redis_parse_numbers( struct redis_link_t * link, const char * text )
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    char host[64], *end = NULL;
    const char * colon = strrchr( text, ':' );
    size_t bytes = colon ? (size_t) ( colon - text ) : 0;
    if ( !bytes || bytes >= sizeof( host ) || colon[1] < '0' || colon[1] > '9' )
        return 0;
    long port = strtol( colon + 1, &end, 10 );
    if ( *end || port < 1 || port > 65535 )
        return 0;
    memcpy( host, text, bytes );
    host[bytes] = '\0';

    memset( &four, 0, sizeof( four ) );
    memset( &six, 0, sizeof( six ) );
    if ( inet_pton( AF_INET, host, &four.sin_addr ) == 1 ) {
        four.sin_family = AF_INET;
        four.sin_port = htons( (uint16_t) port );
        memcpy( &link->to, &four, sizeof( four ) );
        link->to_bytes = sizeof( four );
        return 1;
    }
    if ( host[0] != '[' || host[bytes - 1] != ']' )
        return 0;
    host[bytes - 1] = '\0';
    six.sin6_family = AF_INET6;
    six.sin6_port = htons( (uint16_t) port );
    memcpy( &link->to, &six, sizeof( six ) );
    link->to_bytes = sizeof( six );
    return inet_pton( AF_INET6, host + 1, &( (struct sockaddr_in6 *) &link->to )->sin6_addr ) == 1;
}

/* Is this an address that redis_open takes? */
static inline int redis_parse_address( struct redis_link_t * link, const char * text )
{
    memset( &link->to, 0, sizeof( link->to ) );
    size_t bytes = strlen( text );
    if ( bytes >= sizeof( link->name ) )
        return 0;
    memcpy( link->name, text, bytes + 1 );
    return !strncmp( text, "unix:", 5 ) ? redis_parse_unix( link, text + 5 ) : redis_parse_numbers( link, text );
}

/* A prefix stands in keys, in logs and on command lines: visible ASCII, and none of the letters that patterns use. */
static inline int redis_is_prefix( const char * text )
{
    size_t bytes = strlen( text );
    for ( size_t i = 0; i < bytes; i++ ) {
        if ( text[i] < '!' || text[i] > '~' || strchr( "*?[]{}\\\"'", text[i] ) )
            return 0;
    }
    return bytes < REDIS_LINK_PREFIX_BYTES;
}

/* Reads the password file again; the next connect uses it. 0, and a line on standard error: the old one stays. */
static inline int redis_read_password( struct redis_link_t * link )
{
    char text[REDIS_LINK_WORD_BYTES];
    if ( !link->password_file )
        return 1;
    int good = secret_read_credential( link->program, link->password_file, text, sizeof( text ) );
    if ( good )
        memcpy( link->password, text, sizeof( text ) );
    sodium_memzero( text, sizeof( text ) );
    return good;
}

/* ---- reachable or not ---- */

static inline void redis_say( struct redis_link_t * link, double now, const char * text )
{
    link->log_time = now;
    if ( link->log )
        link->log( link->log_context, text );
}

static inline void redis_reached( struct redis_link_t * link, double now )
{
    char line[sizeof( link->name ) + 64];
    if ( link->reachable )
        return;
    link->reachable = 1;
    link->since = now;
    link->refused_at = -1.0;
    link->why[0] = '\0';
    snprintf( line, sizeof( line ), "Redis: %s can be reached", link->name );
    redis_say( link, now, line );
}

/* The log has one line when it is lost, and one for another reason now and then; `why` always has the last one. */
static inline void redis_unreached( struct redis_link_t * link, double now, const char * why )
{
    char line[sizeof( link->name ) + REDIS_LINK_WHY_BYTES + 64];
    int news = link->reachable || link->log_time < 0.0 ||
               ( strcmp( why, link->logged ) != 0 && now - link->log_time >= REDIS_LINK_REPEAT_SECONDS );
    if ( link->reachable )
        link->since = now;
    link->reachable = 0;
    snprintf( link->why, sizeof( link->why ), "%s", why );
    snprintf( line, sizeof( line ), "Redis: error: %s can not be reached: %s", link->name, link->why );
    if ( news ) {
        snprintf( link->logged, sizeof( link->logged ), "%s", why );
        redis_say( link, now, line );
    }
}

/* ---- the line of commands ---- */

static inline struct redis_command_t * redis_command( struct redis_link_t * link, int index )
{
    return &link->commands[( link->first + index ) % link->capacity];
}

static inline struct redis_command_t redis_shift( struct redis_link_t * link )
{
    struct redis_command_t command = *redis_command( link, 0 );
    link->first = ( link->first + 1 ) % link->capacity;
    link->count--;
    return command;
}

/* The next try comes after a pause that doubles, shortened by chance: a fleet must not come back as one. */
static inline void redis_pause( struct redis_link_t * link, double now )
{
    double part = 0.5 + (double) randombytes_uniform( 1024 ) / 2048.0;
    link->next_try = now + link->pause * part;
    link->pause = link->pause * 2.0 < REDIS_LINK_LAST_PAUSE_SECONDS ? link->pause * 2.0 : REDIS_LINK_LAST_PAUSE_SECONDS;
}

/* Ends the link, if there is one. Callbacks are called when it is in order again, as they may send, in vain. */
static inline void redis_drop( struct redis_link_t * link, double now, const char * why )
{
    if ( link->state == REDIS_LINK_READY )
        link->losses++;
    else if ( link->fd >= 0 )
        link->failures++;
    if ( link->fd >= 0 )
        close( link->fd );
    link->fd = -1;
    if ( link->reader )
        redisReaderFree( link->reader );
    link->reader = NULL;
    link->state = REDIS_LINK_PAUSED;
    sodium_memzero( link->out, link->out_bytes ); /* AUTH may be in it */
    link->out_bytes = link->out_sent = 0;
    link->overdue = 0;
    redis_unreached( link, now, why );
    redis_pause( link, now );

    while ( link->count ) {
        struct redis_command_t command = redis_shift( link );
        if ( !command.callback )
            continue;
        link->lost++;
        command.callback( command.context, REDIS_LINK_LOST, NULL );
    }
}

/* Puts a command at the end of the line. 0: it does not fit. */
static inline int redis_queue( struct redis_link_t * link, double now, int count, const char * const * words,
                               const size_t * bytes, redis_callback_t callback, void * context )
{
    char * text = NULL;
    if ( link->count == link->capacity )
        return 0;
    const char ** plain;
    memcpy( &plain, &words, sizeof( plain ) ); /* hiredis does not write to the words, though its types do not say so */
    long long length = redisFormatCommandArgv( &text, count, plain, bytes );
    if ( length < 0 || !text )
        return 0;
    int fits = (size_t) length <= REDIS_LINK_OUT_BYTES - ( link->out_bytes - link->out_sent );
    if ( fits ) {
        if ( (size_t) length > REDIS_LINK_OUT_BYTES - link->out_bytes ) {
            memmove( link->out, link->out + link->out_sent, link->out_bytes - link->out_sent );
            link->out_bytes -= link->out_sent;
            link->out_sent = 0;
        }
        memcpy( link->out + link->out_bytes, text, (size_t) length );
        link->out_bytes += (size_t) length;
        struct redis_command_t * command = redis_command( link, link->count++ );
        command->callback = callback;
        command->context = context;
        command->deadline = now + link->timeout_seconds;
        link->sent++;
    }
    sodium_memzero( text, (size_t) length );
    redisFreeCommand( text );
    return fits;
}

/*  1: it is in the line, and the callback will be called, from redis_update or redis_close. 0: it is not, because Redis can
    not be reached, or is behind, or too much is in flight; link->why or the counter `refused` say so. `bytes` may be NULL
    where the words end with a zero. */
static inline int redis_send( struct redis_link_t * link, double now, int count, const char * const * words,
                              const size_t * bytes, redis_callback_t callback, void * context )
{
    int good = link->state == REDIS_LINK_READY && !link->overdue && callback &&
               redis_queue( link, now, count, words, bytes, callback, context );
    link->refused += !good;
    return good;
}

/* How many commands could be sent now. */
static inline int redis_room( const struct redis_link_t * link )
{
    return link->state == REDIS_LINK_READY && !link->overdue ? link->capacity - link->count : 0;
}

/* ---- the first words of a link ---- */

static inline int redis_is_error( const redisReply * reply )
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* Copies what stands behind `name` in an answer to INFO. */
static inline void redis_copy_info( const redisReply * reply, const char * name, char * value, size_t capacity )
{
    const char * at = reply->type == REDIS_REPLY_STRING ? strstr( reply->str, name ) : NULL;
    size_t bytes = at ? strcspn( at + strlen( name ), " \r\n" ) : 0;
    value[0] = '\0';
    if ( !bytes || bytes >= capacity )
        return;
    memcpy( value, at + strlen( name ), bytes );
    value[bytes] = '\0';
}

/* The link can not go on: the next step of the update ends it. */
static inline void redis_give_up( struct redis_link_t * link, const char * what, const redisReply * reply )
{
    char why[REDIS_LINK_WHY_BYTES];
    snprintf( why, sizeof( why ), "%s: %.120s", what,
              redis_is_error( reply ) ? reply->str : "an answer of another kind than Redis gives" );
    snprintf( link->why, sizeof( link->why ), "%s", why );
    link->state = REDIS_LINK_PAUSED;
}

static inline void redis_on_auth( void * context, int what, const redisReply * reply )
{
    struct redis_link_t * link = (struct redis_link_t *) context;
    if ( what == REDIS_LINK_ANSWER && reply->type != REDIS_REPLY_STATUS )
        redis_give_up( link, "the password is refused", reply );
}

static inline void redis_on_server( void * context, int what, const redisReply * reply )
{
    struct redis_link_t * link = (struct redis_link_t *) context;
    if ( what != REDIS_LINK_ANSWER )
        return;
    redis_copy_info( reply, "run_id:", link->run_id, sizeof( link->run_id ) );
    if ( !link->run_id[0] && link->state == REDIS_LINK_GREETING )
        redis_give_up( link, "INFO does not work", reply );
}

static inline void redis_on_memory( void * context, int what, const redisReply * reply )
{
    struct redis_link_t * link = (struct redis_link_t *) context;
    if ( what != REDIS_LINK_ANSWER || link->state != REDIS_LINK_GREETING )
        return;
    redis_copy_info( reply, "maxmemory_policy:", link->eviction, sizeof( link->eviction ) );
    link->state = REDIS_LINK_READY;
    link->connects++;
    link->pause = REDIS_LINK_FIRST_PAUSE_SECONDS;
}

/*  TIME, once a second. What is measured is too small, by what the answer took on its way and in our own loop; commands that
    must not be done late compare it with Redis' own time. */
static inline void redis_on_time( void * context, int what, const redisReply * reply )
{
    struct redis_link_t * link = (struct redis_link_t *) context;
    if ( what != REDIS_LINK_ANSWER )
        return;
    if ( reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
         reply->element[1]->type != REDIS_REPLY_STRING ) {
        if ( link->state != REDIS_LINK_PAUSED )
            redis_give_up( link, "TIME does not work", reply );
        return;
    }
    link->clock_ahead =
        strtod( reply->element[0]->str, NULL ) + strtod( reply->element[1]->str, NULL ) / 1e6 - link->now;
    link->knows_clock = 1;
}

static inline void redis_ask_time( struct redis_link_t * link, double now )
{
    const char * words[1] = { "TIME" };
    link->last_ping = now;
    redis_queue( link, now, 1, words, NULL, redis_on_time, link );
}

static inline void redis_greet( struct redis_link_t * link, double now )
{
    const char * auth[3] = { "AUTH", link->user, link->password };
    const char * server[2] = { "INFO", "server" };
    const char * memory[2] = { "INFO", "memory" };
    link->state = REDIS_LINK_GREETING;
    link->last_byte = now;
    link->run_id[0] = '\0';
    if ( !link->user[0] )
        auth[1] = link->password;
    if ( link->password[0] )
        redis_queue( link, now, link->user[0] ? 3 : 2, auth, NULL, redis_on_auth, link );
    redis_ask_time( link, now );
    redis_queue( link, now, 2, server, NULL, redis_on_server, link );
    redis_queue( link, now, 2, memory, NULL, redis_on_memory, link );
}

/* ---- the socket ---- */

static inline int redis_is_nothing_there( int error )
{
    return error == ECONNREFUSED || error == ENOENT;
}

static inline void redis_connect_failed( struct redis_link_t * link, double now, int error )
{
    char why[REDIS_LINK_WHY_BYTES];
    if ( redis_is_nothing_there( error ) )
        link->refused_at = link->started;
    snprintf( why, sizeof( why ), "the connection fails: %s", strerror( error ) );
    redis_drop( link, now, why );
}

/*  What hiredis creates for an array, with a limit: it takes memory for as many items as the first line claims. Version 1.0
    has another type for the count. */
static redisReplyObjectFunctions redis_functions;
#if HIREDIS_MAJOR >= 1
static void * ( *redis_create_array )( const redisReadTask * task, size_t count );
static inline void * redis_limited_array( const redisReadTask * task, size_t count )
#else
static void * ( *redis_create_array )( const redisReadTask * task, int count );
static inline void * redis_limited_array( const redisReadTask * task, int count )
#endif
{
    return (unsigned long long) count > REDIS_LINK_ANSWER_ITEMS ? NULL : redis_create_array( task, count );
}

static inline redisReader * redis_make_reader( void )
{
    redisReader * reader = redisReaderCreate();
    if ( !reader )
        return NULL;
    redis_functions = *reader->fn;
    redis_create_array = redis_functions.createArray;
    redis_functions.createArray = redis_limited_array;
    reader->fn = &redis_functions;
    return reader;
}

static inline int redis_set_up_socket( struct redis_link_t * link )
{
    int one = 1;
    int flags = fcntl( link->fd, F_GETFL );
    if ( flags < 0 || fcntl( link->fd, F_SETFL, flags | O_NONBLOCK ) < 0 || fcntl( link->fd, F_SETFD, FD_CLOEXEC ) < 0 )
        return 0;
#ifdef SO_NOSIGPIPE
    if ( setsockopt( link->fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof( one ) ) < 0 )
        return 0;
#endif
    return link->to.ss_family == AF_UNIX || setsockopt( link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof( one ) ) == 0;
}

static inline void redis_connect( struct redis_link_t * link, double now )
{
    link->started = now;
    link->fd = socket( link->to.ss_family, SOCK_STREAM, 0 );
    if ( link->fd >= 0 )
        link->reader = redis_make_reader();
    if ( link->fd < 0 || !link->reader || !redis_set_up_socket( link ) ) {
        redis_drop( link, now, "the system gives no socket, or no memory" );
        return;
    }
    link->state = REDIS_LINK_CONNECTING;
    if ( connect( link->fd, (const struct sockaddr *) &link->to, link->to_bytes ) == 0 )
        redis_greet( link, now );
    else if ( errno != EINPROGRESS && errno != EINTR )
        redis_connect_failed( link, now, errno );
}

static inline void redis_check_connect( struct redis_link_t * link, double now )
{
    struct pollfd poll_fd = { .fd = link->fd, .events = POLLOUT };
    int error = 0;
    socklen_t bytes = sizeof( error );
    if ( poll( &poll_fd, 1, 0 ) <= 0 ) {
        if ( now - link->started >= link->timeout_seconds )
            redis_drop( link, now, "the connection is not made in time" );
        return;
    }
    if ( getsockopt( link->fd, SOL_SOCKET, SO_ERROR, &error, &bytes ) != 0 )
        error = errno;
    if ( error )
        redis_connect_failed( link, now, error );
    else
        redis_greet( link, now );
}

static inline void redis_write( struct redis_link_t * link, double now )
{
    char why[REDIS_LINK_WHY_BYTES];
    while ( link->out_sent < link->out_bytes ) {
        ssize_t bytes =
            send( link->fd, link->out + link->out_sent, link->out_bytes - link->out_sent, REDIS_LINK_SEND_FLAGS );
        if ( bytes < 0 && errno == EINTR )
            continue;
        if ( bytes < 0 && ( errno == EAGAIN || errno == EWOULDBLOCK ) )
            return;
        if ( bytes < 0 ) {
            snprintf( why, sizeof( why ), "the link broke: %s", strerror( errno ) );
            redis_drop( link, now, why );
            return;
        }
        link->out_sent += (size_t) bytes;
    }
    if ( link->state == REDIS_LINK_GREETING )
        sodium_memzero( link->out, link->out_bytes );
    link->out_bytes = link->out_sent = 0;
}

/* One whole answer, which belongs to the oldest command. 0: the link ended. */
static inline int redis_dispatch( struct redis_link_t * link, double now, redisReply * reply )
{
    char why[REDIS_LINK_WHY_BYTES];
    if ( !link->count ) {
        /* Redis says so when it has too many clients, for example. */
        snprintf( why, sizeof( why ), "an answer to nothing: %.120s",
                  redis_is_error( reply ) ? reply->str : "it is no error" );
        freeReplyObject( reply );
        redis_drop( link, now, why );
        return 0;
    }
    struct redis_command_t command = redis_shift( link );
    if ( command.callback ) {
        link->answers++;
        if ( link->state == REDIS_LINK_READY )
            redis_reached( link, now );
        command.callback( command.context, REDIS_LINK_ANSWER, reply );
        if ( link->state == REDIS_LINK_READY )
            redis_reached( link, now ); /* it may have become so by this answer */
    } else {
        link->overdue--;
    }
    freeReplyObject( reply );
    if ( link->state != REDIS_LINK_PAUSED )
        return 1;
    snprintf( why, sizeof( why ), "%s", link->why ); /* redis_give_up */
    redis_drop( link, now, why );
    return 0;
}

/* All whole answers that were read. 0: the link ended. */
static inline int redis_parse( struct redis_link_t * link, double now )
{
    void * reply = NULL;
    for ( ;; ) {
        if ( redisReaderGetReply( link->reader, &reply ) != REDIS_OK ) {
            redis_drop( link, now, "what comes is not Redis' protocol, or an answer has too many items" );
            return 0;
        }
        if ( !reply )
            break;
        link->answer_bytes = 0;
        if ( !redis_dispatch( link, now, (redisReply *) reply ) )
            return 0;
    }
    if ( link->answer_bytes <= REDIS_LINK_ANSWER_BYTES )
        return 1;
    redis_drop( link, now, "an answer is too long" );
    return 0;
}

static inline void redis_read( struct redis_link_t * link, double now )
{
    char data[REDIS_LINK_READ_BYTES];
    char why[REDIS_LINK_WHY_BYTES];
    for ( int i = 0; i < REDIS_LINK_READS; i++ ) {
        ssize_t bytes = recv( link->fd, data, sizeof( data ), 0 );
        if ( bytes < 0 && errno == EINTR )
            continue;
        if ( bytes < 0 && ( errno == EAGAIN || errno == EWOULDBLOCK ) )
            return;
        if ( bytes <= 0 ) {
            snprintf( why, sizeof( why ), "the link broke: %s", bytes ? strerror( errno ) : "Redis closed it" );
            redis_drop( link, now, why );
            return;
        }
        link->last_byte = now;
        link->answer_bytes += (size_t) bytes;
        if ( redisReaderFeed( link->reader, data, (size_t) bytes ) != REDIS_OK ) {
            redis_drop( link, now, "memory is short" );
            return;
        }
        if ( !redis_parse( link, now ) )
            return;
    }
}

/* ---- time ---- */

/* Reports the timeout of commands whose time is over; they keep their entry. */
static inline void redis_expire( struct redis_link_t * link, double now )
{
    char why[REDIS_LINK_WHY_BYTES];
    for ( int i = 0; i < link->count; i++ ) {
        struct redis_command_t * command = redis_command( link, i );
        if ( command->deadline > now )
            return; /* all have the same time, so those behind it have theirs */
        if ( !command->callback )
            continue;
        snprintf( why, sizeof( why ), "no answer within %.1f s", link->timeout_seconds );
        if ( link->state == REDIS_LINK_GREETING ) {
            redis_drop( link, now, why ); /* without its first words a link is of no use */
            return;
        }
        redis_callback_t callback = command->callback;
        void * context = command->context;
        command->callback = NULL;
        link->overdue++;
        link->timeouts++;
        redis_unreached( link, now, why );
        callback( context, REDIS_LINK_TIMED_OUT, NULL );
    }
}

/* An unused link is tried all the same, or a dead one would be noticed by the player who needs it. */
static inline void redis_ping( struct redis_link_t * link, double now )
{
    if ( link->state == REDIS_LINK_READY && now - link->last_ping >= REDIS_LINK_PING_SECONDS )
        redis_ask_time( link, now );
}

/* Once a tick, with the loop's time. Never waits. */
static inline void redis_update( struct redis_link_t * link, double now )
{
    if ( link->is_busy )
        return;
    link->is_busy = 1;
    link->now = now;
    if ( link->fd < 0 && now >= link->next_try )
        redis_connect( link, now );
    if ( link->state == REDIS_LINK_CONNECTING )
        redis_check_connect( link, now );
    if ( link->state >= REDIS_LINK_GREETING )
        redis_write( link, now );
    if ( link->state >= REDIS_LINK_GREETING )
        redis_read( link, now ); /* before anybody's time is over: after a long tick the answers are there */
    if ( link->state >= REDIS_LINK_GREETING )
        redis_expire( link, now );
    if ( link->overdue && now - link->last_byte >= REDIS_LINK_SILENT_TIMEOUTS * link->timeout_seconds )
        redis_drop( link, now, "it is silent" );
    redis_ping( link, now );
    if ( link->state >= REDIS_LINK_GREETING )
        redis_write( link, now );
    link->is_busy = 0;
}

/* ---- for a loop that sleeps in poll ---- */

/* -1: none at the moment. */
static inline int redis_fd( const struct redis_link_t * link )
{
    return link->fd;
}

static inline short redis_events( const struct redis_link_t * link )
{
    int writes = link->state == REDIS_LINK_CONNECTING || link->out_sent < link->out_bytes;
    return (short) ( POLLIN | ( writes ? POLLOUT : 0 ) );
}

/* How long it may sleep when nothing happens at the descriptor. */
static inline double redis_sleep_seconds( const struct redis_link_t * link, double now )
{
    double until = link->last_ping + REDIS_LINK_PING_SECONDS;
    if ( link->fd < 0 )
        until = link->next_try;
    else if ( link->state == REDIS_LINK_CONNECTING )
        until = link->started + link->timeout_seconds;
    for ( int i = 0; i < link->count; i++ ) {
        const struct redis_command_t * command = &link->commands[( link->first + i ) % link->capacity];
        if ( command->callback ) {
            until = command->deadline < until ? command->deadline : until;
            break;
        }
    }
    return until > now ? until - now : 0.0;
}

/* ---- the beginning and the end ---- */

static inline int redis_refuse_config( struct redis_link_t * link, const char * why )
{
    snprintf( link->why, sizeof( link->why ), "%s", why );
    return 0;
}

/* Waiting callbacks hear REDIS_LINK_LOST. Not from a callback. Also after an open that failed. */
static inline void redis_close( struct redis_link_t * link )
{
    if ( link->commands && link->out ) {
        link->log = NULL;
        redis_drop( link, link->since, "it was closed" );
    }
    free( link->commands );
    free( link->out );
    link->commands = NULL;
    link->out = NULL;
    sodium_memzero( link->password, sizeof( link->password ) );
}

/* 0: something is wrong with the configuration, and link->why says what. That Redis is not there is no error. */
static inline int redis_open( struct redis_link_t * link, const struct redis_link_config_t * config, double now )
{
    memset( link, 0, sizeof( *link ) );
    link->fd = -1;
    link->program = config->program;
    link->password_file = config->password_file;
    link->timeout_seconds = config->timeout_seconds;
    link->log = config->log;
    link->log_context = config->context;
    link->log_time = link->refused_at = -1.0;
    link->since = link->next_try = now;
    link->pause = REDIS_LINK_FIRST_PAUSE_SECONDS;
    snprintf( link->why, sizeof( link->why ), "it was not tried yet" );

    if ( !config->address || !redis_parse_address( link, config->address ) )
        return redis_refuse_config( link, "the address is not HOST:PORT in numbers, nor unix:PATH" );
    if ( !config->prefix || !redis_is_prefix( config->prefix ) )
        return redis_refuse_config( link, "the prefix has letters that keys should not have, or is too long" );
    if ( config->user && ( !config->password_file || strlen( config->user ) >= sizeof( link->user ) ) )
        return redis_refuse_config( link, "a user needs a password file, and a name of up to 255 bytes" );
    if ( config->commands < 4 || !( config->timeout_seconds > 0.0 ) )
        return redis_refuse_config( link, "at least 4 commands in flight, and a time for each, have to be allowed" );
    snprintf( link->prefix, sizeof( link->prefix ), "%s", config->prefix );
    snprintf( link->user, sizeof( link->user ), "%s", config->user ? config->user : "" );
    if ( !redis_read_password( link ) )
        return redis_refuse_config( link, "the password file can not be used" );

    link->capacity = config->commands;
    link->commands = (struct redis_command_t *) calloc( (size_t) link->capacity, sizeof( *link->commands ) );
    link->out = (char *) malloc( REDIS_LINK_OUT_BYTES );
    if ( link->commands && link->out )
        return 1;
    redis_close( link );
    return redis_refuse_config( link, "memory is short" );
}

/*  Behind the game loop: waits until all commands have their answer, `seconds` at most. `now` is a clock. 1: all had one,
    or there were none. */
static inline int redis_finish( struct redis_link_t * link, double seconds, double ( *clock_seconds )( void ) )
{
    double now = clock_seconds();
    double until = now + seconds;
    while ( link->state == REDIS_LINK_READY && ( link->count || link->out_sent < link->out_bytes ) && now < until ) {
        struct pollfd poll_fd = { .fd = link->fd, .events = redis_events( link ) };
        if ( poll( &poll_fd, 1, 10 ) < 0 && errno != EINTR )
            break;
        now = clock_seconds();
        redis_update( link, now );
    }
    return !link->count && !link->overdue;
}

#endif
