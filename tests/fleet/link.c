/*  examples/fleet/redis.h against a Redis that misbehaves: half answers, garbage, too long, too many, none, late, and an end
    at any moment. The time is the test's, so nothing sleeps; the sockets are real ones on loopback.

        cc -I. tests/fleet/link.c -o link $(pkg-config --cflags --libs hiredis libsodium) && ./link */

#define _GNU_SOURCE 1
#include "examples/fleet/redis.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>

static int failures;
static int checks;

#define CHECK( condition )                                            \
    do {                                                              \
        checks++;                                                     \
        if ( !( condition ) ) {                                       \
            printf( "FAILED: %s (line %d)\n", #condition, __LINE__ ); \
            failures++;                                               \
        }                                                             \
    } while ( 0 )

#define GREETING TIME INFO INFO
#define TIME "*2\r\n$10\r\n1764125000\r\n$6\r\n500000\r\n"
#define INFO "$43\r\nrun_id:0123456789\r\nmaxmemory_policy:noevict\r\n"

/* ---- a server that says what the test wants ---- */

struct fake_t {
    int listener;
    int port;
    int fd; /* the newest connection */
    char heard[65536];
    int heard_bytes;
    int accepted;
};

static struct fake_t fake;
static struct redis_link_t redis;
static double now;
static char log_text[4096];
static int log_lines;

static void on_log( void * context, const char * text )
{
    (void) context;
    log_lines++;
    snprintf( log_text, sizeof( log_text ), "%s", text );
}

static void fake_listen( void )
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof( address );
    int one = 1;
    memset( &address, 0, sizeof( address ) );
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl( INADDR_LOOPBACK );
    address.sin_port = htons( (uint16_t) fake.port );
    fake.listener = socket( AF_INET, SOCK_STREAM, 0 );
    setsockopt( fake.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof( one ) );
    if ( bind( fake.listener, (struct sockaddr *) &address, sizeof( address ) ) || listen( fake.listener, 16 ) )
        exit( 2 );
    getsockname( fake.listener, (struct sockaddr *) &address, &bytes );
    fake.port = ntohs( address.sin_port );
    fcntl( fake.listener, F_SETFL, O_NONBLOCK );
    fake.fd = -1;
}

static void fake_hang_up( void )
{
    if ( fake.fd >= 0 )
        close( fake.fd );
    fake.fd = -1;
}

static void fake_step( void )
{
    int one = 1;
    int fd = accept( fake.listener, NULL, NULL );
    if ( fd >= 0 ) {
        fake_hang_up();
        fake.fd = fd;
        fcntl( fd, F_SETFL, O_NONBLOCK );
        setsockopt( fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof( one ) ); /* each byte goes when it is said */
        fake.accepted++;
        fake.heard_bytes = 0;
    }
    while ( fake.fd >= 0 ) {
        ssize_t bytes =
            recv( fake.fd, fake.heard + fake.heard_bytes, sizeof( fake.heard ) - 1 - (size_t) fake.heard_bytes, 0 );
        if ( bytes <= 0 )
            break;
        fake.heard_bytes += (int) bytes;
    }
    fake.heard[fake.heard_bytes] = '\0';
}

static void fake_say_bytes( const char * text, size_t bytes )
{
    while ( bytes && fake.fd >= 0 ) {
        ssize_t sent = send( fake.fd, text, bytes, MSG_NOSIGNAL );
        if ( sent <= 0 )
            return;
        text += sent;
        bytes -= (size_t) sent;
    }
}

static void fake_say( const char * text )
{
    fake_say_bytes( text, strlen( text ) );
}

/* Ten milliseconds of the test's time. */
static void step( void )
{
    now += 0.01;
    redis_update( &redis, now );
    fake_step();
}

static void steps( double seconds )
{
    for ( double end = now + seconds; now < end; )
        step();
}

/* ---- commands that count what they hear ---- */

struct heard_t {
    int answers, timeouts, lost;
    long long number; /* of the last answer */
    int type;
    int sends; /* another command from inside its callback */
    char text[64];
};

static void on_answer( void * context, int what, const redisReply * reply )
{
    struct heard_t * heard = (struct heard_t *) context;
    const char * words[1] = { "AGAIN" };
    heard->answers += what == REDIS_LINK_ANSWER;
    heard->timeouts += what == REDIS_LINK_TIMED_OUT;
    heard->lost += what == REDIS_LINK_LOST;
    CHECK( ( what == REDIS_LINK_ANSWER ) == ( reply != NULL ) );
    if ( reply ) {
        heard->type = reply->type;
        heard->number = reply->integer;
        snprintf( heard->text, sizeof( heard->text ), "%.60s", reply->str ? reply->str : "" );
    }
    if ( heard->sends-- > 0 )
        redis_send( &redis, now, 1, words, NULL, on_answer, heard );
}

static int command( struct heard_t * heard )
{
    const char * words[2] = { "TEST", "word" };
    return redis_send( &redis, now, 2, words, NULL, on_answer, heard );
}

static int calls( const struct heard_t * heard )
{
    return heard->answers + heard->timeouts + heard->lost;
}

static void open_link( const char * password_file, int commands )
{
    struct redis_link_config_t config;
    char address[64];
    snprintf( address, sizeof( address ), "127.0.0.1:%d", fake.port );
    redis_default_config( &config );
    config.address = address;
    config.password_file = password_file;
    config.commands = commands;
    config.log = on_log;
    log_lines = 0;
    CHECK( redis_open( &redis, &config, now ) );
}

/* A link that is ready. */
static void begin( void )
{
    open_link( NULL, 16 );
    steps( 0.1 );
    fake_say( GREETING );
    steps( 0.02 );
    CHECK( redis.state == REDIS_LINK_READY );
    CHECK( redis.reachable );
    fake.heard_bytes = 0;
}

static void end( void )
{
    redis_close( &redis );
    fake_hang_up();
    fake_step();
}

static void story( const char * name )
{
    static int before;
    printf( "%s: %s (%d checks)\n", failures == before ? "ok" : "FAILED", name, checks );
    before = failures;
    checks = 0;
}

/* ---- the stories ---- */

static void test_addresses( void )
{
    static const char * const good[] = { "127.0.0.1:6379", "[::1]:6379", "[2001:db8::5]:1", "0.0.0.0:65535",
                                         "unix:/run/redis/redis.sock" };
    static const char * const bad[] = { "localhost:6379", "127.0.0.1",   "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                                        "127.0.0.1:6x",   "::1:6379",    "[::1]",      "[::1:6379",   "[]:6379",
                                        ":6379",          "unix:",       "",           "1.2.3:1",     "127.0.0.1:-1",
                                        "127.0.0.1: 1",   "127.0.0.1:+1" };
    struct redis_link_config_t config;
    char path[200];
    for ( size_t i = 0; i < sizeof( good ) / sizeof( good[0] ); i++ )
        CHECK( redis_parse_address( &redis, good[i] ) );
    for ( size_t i = 0; i < sizeof( bad ) / sizeof( bad[0] ); i++ )
        CHECK( !redis_parse_address( &redis, bad[i] ) );
    memset( path, 'x', sizeof( path ) );
    memcpy( path, "unix:/", 6 );
    path[sizeof( path ) - 1] = '\0';
    CHECK( !redis_parse_address( &redis, path ) );

    redis_default_config( &config );
    CHECK( !redis_open( &redis, &config, now ) );
    config.address = "127.0.0.1:1";
    config.prefix = "a b";
    CHECK( !redis_open( &redis, &config, now ) && strstr( redis.why, "prefix" ) );
    config.prefix = "a*";
    CHECK( !redis_open( &redis, &config, now ) );
    config.prefix = "";
    config.user = "game";
    CHECK( !redis_open( &redis, &config, now ) && strstr( redis.why, "password" ) );
    config.user = NULL;
    config.password_file = "/nowhere/at/all";
    CHECK( !redis_open( &redis, &config, now ) && strstr( redis.why, "password" ) );
    story( "addresses and settings: what is wrong is refused, with a reason" );
}

static void test_answers( void )
{
    struct heard_t heard[3];
    memset( heard, 0, sizeof( heard ) );
    begin();
    CHECK( !strcmp( redis.run_id, "0123456789" ) );
    CHECK( !strcmp( redis.eviction, "noevict" ) );
    CHECK( redis.knows_clock && fabs( redis.clock_ahead + now - 1764125000.5 ) < 0.1 );
    for ( int i = 0; i < 3; i++ )
        CHECK( command( &heard[i] ) );
    steps( 0.02 );
    CHECK( !strncmp( fake.heard, "*2\r\n$4\r\nTEST\r\n$4\r\nword\r\n*2\r\n", 28 ) );
    fake_say( ":1\r\n-ERR no\r\n*2\r\n:1\r\n$3\r\nabc\r\n" );
    steps( 0.02 );
    CHECK( heard[0].answers == 1 && heard[0].number == 1 );
    CHECK( heard[1].answers == 1 && heard[1].type == REDIS_REPLY_ERROR && !strcmp( heard[1].text, "ERR no" ) );
    CHECK( heard[2].answers == 1 && heard[2].type == REDIS_REPLY_ARRAY );
    end();
    for ( int i = 0; i < 3; i++ )
        CHECK( calls( &heard[i] ) == 1 );
    story( "answers arrive in their order, each once" );
}

static void test_halves( void )
{
    static const char text[] = "$10\r\n0123456789\r\n:7\r\n";
    struct heard_t first, second;
    memset( &first, 0, sizeof( first ) );
    memset( &second, 0, sizeof( second ) );
    begin();
    CHECK( command( &first ) && command( &second ) );
    steps( 0.02 );
    for ( size_t i = 0; i < sizeof( text ) - 1; i++ ) {
        CHECK( calls( &second ) == 0 );
        CHECK( calls( &first ) == ( i >= 17 ) );
        fake_say_bytes( text + i, 1 );
        step();
    }
    CHECK( first.answers == 1 && !strcmp( first.text, "0123456789" ) );
    CHECK( second.answers == 1 && second.number == 7 );

    CHECK( command( &first ) ); /* half an answer, then the end */
    steps( 0.02 );
    fake_say( "$10\r\n0123" );
    steps( 0.02 );
    fake_hang_up();
    steps( 0.02 );
    CHECK( first.answers == 1 && first.lost == 1 );
    CHECK( !redis.reachable && strstr( redis.why, "closed" ) );
    end();
    story( "answers byte by byte, and half of one" );
}

/* After each of these the link is made again, and works. */
static void test_garbage( void )
{
    static char huge[REDIS_LINK_ANSWER_BYTES + 200000];
    static const struct {
        const char * text;
        const char * why;
    } rows[] = {
        { "HTTP/1.1 400 Bad Request\r\n", "protocol" },
        { "\r\n\r\n", "protocol" },
        { "$-7\r\n", "protocol" },
        { "*999999999\r\n", "items" },
        { "*65537\r\n", "items" },
        { "*2147483647\r\n", "items" },
        { ":1\r\n:2\r\n", "nothing" }, /* an answer too many */
        { ":1\r\n-ERR max number of clients reached\r\n", "max number" },
        { huge, "too long" },
    };
    memcpy( huge, "$100000000\r\n", 12 );
    memset( huge + 12, 'x', sizeof( huge ) - 13 );
    for ( size_t i = 0; i < sizeof( rows ) / sizeof( rows[0] ); i++ ) {
        struct heard_t heard;
        memset( &heard, 0, sizeof( heard ) );
        begin();
        CHECK( command( &heard ) );
        steps( 0.02 );
        size_t bytes = strlen( rows[i].text );
        for ( size_t at = 0; at < bytes; at += 65536 ) {
            fake_say_bytes( rows[i].text + at, bytes - at < 65536 ? bytes - at : 65536 );
            redis_update( &redis, now += 0.001 );
        }
        redis_update( &redis, now );
        CHECK( calls( &heard ) == 1 );
        CHECK( !redis.reachable );
        CHECK( strstr( redis.why, rows[i].why ) != NULL );
        if ( !strstr( redis.why, rows[i].why ) )
            printf( "    row %d: %s\n", (int) i, redis.why );
        steps( 1.2 );
        fake_say( GREETING );
        steps( 0.02 );
        CHECK( redis.reachable );
        end();
        CHECK( calls( &heard ) == 1 );
    }
    story( "garbage, answers too many, too long and with too many items end the link, and the next one works" );
}

/* The answer that comes too late belongs to the first command, and is not the second's. */
static void test_late( void )
{
    struct heard_t first, second;
    memset( &first, 0, sizeof( first ) );
    memset( &second, 0, sizeof( second ) );
    begin();
    CHECK( command( &first ) );
    steps( 2.1 );
    CHECK( first.timeouts == 1 && calls( &first ) == 1 );
    CHECK( !redis.reachable && strstr( redis.why, "no answer within 2.0 s" ) );
    CHECK( !command( &second ) ); /* nothing more until it has caught up */
    CHECK( redis.refused == 1 && redis_room( &redis ) == 0 );
    int pings = 0;
    for ( const char * at = fake.heard; ( at = strstr( at, "TIME" ) ) != NULL; at++ )
        pings++;
    CHECK( pings == 2 );
    fake_say( ":111\r\n" );
    steps( 0.02 );
    CHECK( calls( &first ) == 1 );
    CHECK( command( &second ) );
    steps( 0.02 );
    fake_say( TIME TIME ":222\r\n" );
    steps( 0.02 );
    CHECK( redis.reachable );
    CHECK( calls( &first ) == 1 );
    CHECK( second.answers == 1 && second.number == 222 );
    CHECK( fake.accepted == 1 );
    end();
    story( "a late answer is thrown away, and taken for no other command's" );
}

static void test_silence( void )
{
    struct heard_t heard;
    memset( &heard, 0, sizeof( heard ) );
    fake.accepted = 0;
    begin();
    CHECK( command( &heard ) );
    steps( 5.5 );
    CHECK( heard.timeouts == 1 && fake.accepted == 1 );
    steps( 0.7 );
    CHECK( redis.losses == 1 && fake.accepted == 2 ); /* three times its time without a byte */
    steps( 2.2 );
    CHECK( redis.connects == 1 && fake.accepted == 3 ); /* nor did the next one greet */
    CHECK( calls( &heard ) == 1 && !redis.reachable );
    CHECK( log_lines >= 2 && log_lines <= 5 ); /* reached, lost, and a reason now and then */
    steps( 0.6 );
    fake_say( GREETING );
    steps( 0.02 );
    CHECK( redis.reachable );

    fake.heard_bytes = 0; /* nothing is sent: it is tried all the same */
    steps( 1.2 );
    CHECK( strstr( fake.heard, "TIME" ) != NULL );
    end();
    story( "a silent Redis: commands are reported in time, the link is made again, an idle one is tried" );
}

static void test_refusal( void )
{
    begin();
    CHECK( redis.refused_at < 0.0 );
    close( fake.listener );
    double start = now;
    fake_hang_up();
    fake.listener = -1;
    steps( 10.0 );
    CHECK( !redis.reachable && strstr( redis.why, "refused" ) );
    CHECK( redis.refused_at > now - 1.1 && redis.refused_at > start );
    CHECK( redis.failures >= 9 && redis.failures <= 30 ); /* back-off up to a second, shortened by chance */
    CHECK( log_lines >= 2 && log_lines <= 4 );
    fake_listen();
    steps( 1.1 );
    fake_say( GREETING );
    steps( 0.02 );
    CHECK( redis.reachable && redis.refused_at < 0.0 );
    end();
    story( "nothing listens: tries with growing pauses, few lines in the log, and again when it does" );
}

static void test_passwords( void )
{
    char path[] = "/tmp/admission-link-XXXXXX";
    int fd = mkstemp( path );
    CHECK( write( fd, "secret-1\n", 9 ) == 9 );
    close( fd );
    open_link( path, 16 );
    steps( 0.1 );
    CHECK( !strncmp( fake.heard, "*2\r\n$4\r\nAUTH\r\n$8\r\nsecret-1\r\n*1\r\n$4\r\nTIME\r\n", 42 ) );
    CHECK( !memmem( redis.out, REDIS_LINK_OUT_BYTES, "secret-1", 8 ) );
    fake_say( "-WRONGPASS invalid username-password pair or user is disabled.\r\n" GREETING );
    steps( 0.02 );
    CHECK( !redis.reachable && strstr( redis.why, "the password is refused: WRONGPASS" ) );
    fd = open( path, O_WRONLY | O_TRUNC );
    CHECK( write( fd, "secret-22\n", 10 ) == 10 );
    close( fd );
    CHECK( redis_read_password( &redis ) );
    steps( 1.1 ); /* each connect has it */
    CHECK( strstr( fake.heard, "AUTH\r\n$9\r\nsecret-22\r\n" ) != NULL );
    fake_say( "+OK\r\n" GREETING );
    steps( 0.02 );
    CHECK( redis.reachable );
    chmod( path, 0644 );
    fprintf( stderr, "(the next line is meant to be there)\n" );
    CHECK( !redis_read_password( &redis ) && !strcmp( redis.password, "secret-22" ) );
    remove( path );
    end();

    open_link( NULL, 16 );
    steps( 0.1 );
    fake_say( "-NOAUTH Authentication required.\r\n" );
    steps( 0.02 );
    CHECK( strstr( redis.why, "TIME does not work: NOAUTH" ) != NULL );
    steps( 1.1 );
    fake_say( TIME "-NOPERM no INFO\r\n" );
    steps( 0.02 );
    CHECK( strstr( redis.why, "INFO does not work: NOPERM" ) != NULL );
    end();

    /* A Redis that comes back with another password: the log has the new reason, and not the broken link alone. */
    begin();
    fake_hang_up();
    steps( 0.1 );
    CHECK( strstr( log_text, "the link broke" ) != NULL );
    for ( int i = 0; i < 60; i++ ) {
        fake_say( "-NOAUTH Authentication required.\r\n" );
        steps( 0.1 );
    }
    CHECK( strstr( log_text, "TIME does not work: NOAUTH" ) != NULL && log_lines == 3 );
    end();
    story( "passwords: at each connect, wiped, read again, refused with a reason" );
}

static void test_limits( void )
{
    static char word[300000];
    const char * words[2] = { "BIG", word };
    struct heard_t heard[20];
    struct heard_t big;
    int sent = 0;
    memset( heard, 0, sizeof( heard ) );
    memset( &big, 0, sizeof( big ) );
    memset( word, 'x', sizeof( word ) - 1 );
    begin();
    for ( int i = 0; i < 20; i++ )
        sent += command( &heard[i] );
    CHECK( sent == 16 && redis.refused == 4 && redis_room( &redis ) == 0 );
    redis_close( &redis );
    for ( int i = 0; i < 20; i++ )
        CHECK( calls( &heard[i] ) == ( i < 16 ) && heard[i].lost == ( i < 16 ) );
    fake_hang_up();
    fake_step();

    begin();
    sent = 0;
    for ( int i = 0; i < 10; i++ )
        sent += redis_send( &redis, now, 2, words, NULL, on_answer, &big );
    CHECK( sent == 3 ); /* a megabyte that the system has not taken yet */
    steps( 0.3 );
    end();
    CHECK( big.lost == 3 && calls( &big ) == 3 );
    story( "limits: commands in flight and bytes; a close reports all of them" );
}

/* The server is gone while we write: no SIGPIPE, and every command is reported. */
static void test_pipe( void )
{
    struct heard_t heard;
    memset( &heard, 0, sizeof( heard ) );
    signal( SIGPIPE, SIG_DFL );
    for ( int i = 0; i < 50; i++ ) {
        begin();
        fake_hang_up();
        CHECK( command( &heard ) );
        for ( int k = 0; k < 3; k++ ) {
            redis_write( &redis, now );
            if ( redis.fd < 0 )
                break;
            command( &heard );
        }
        step();
        CHECK( !redis.reachable );
        end();
    }
    CHECK( heard.lost >= 50 && heard.answers == 0 );
    story( "writes to a connection that is gone raise no signal" );
}

static void test_inside( void )
{
    struct heard_t heard;
    memset( &heard, 0, sizeof( heard ) );
    begin();
    heard.sends = 1;
    CHECK( command( &heard ) );
    steps( 0.02 );
    fake_say( ":1\r\n" );
    steps( 0.02 );
    CHECK( strstr( fake.heard, "AGAIN" ) != NULL );
    fake_say( ":2\r\n" );
    steps( 0.02 );
    CHECK( heard.answers == 2 && heard.number == 2 );
    heard.sends = 1;
    CHECK( command( &heard ) );
    fake_hang_up();
    steps( 0.02 );
    CHECK( heard.lost == 1 ); /* what it sent then was refused */
    end();
    CHECK( calls( &heard ) == 3 );
    story( "callbacks may send" );
}

/* A loop that sleeps as long as it may, in poll: as the backend's. */
static void test_poll( void )
{
    struct heard_t heard;
    memset( &heard, 0, sizeof( heard ) );
    open_link( NULL, 16 );
    CHECK( redis_fd( &redis ) == -1 && redis_sleep_seconds( &redis, now ) == 0.0 );
    redis_update( &redis, now );
    CHECK( redis_fd( &redis ) >= 0 );
    for ( int i = 0; i < 20 && !redis.reachable; i++ ) {
        struct pollfd poll_fd = { .fd = redis_fd( &redis ), .events = redis_events( &redis ) };
        poll( &poll_fd, 1, 50 );
        redis_update( &redis, now );
        fake_step();
        if ( i == 3 )
            fake_say( GREETING );
    }
    CHECK( redis.reachable );
    CHECK( redis_events( &redis ) == POLLIN );
    CHECK( redis_sleep_seconds( &redis, now ) > 0.9 && redis_sleep_seconds( &redis, now ) <= 1.0 );
    CHECK( command( &heard ) );
    CHECK( redis_events( &redis ) == ( POLLIN | POLLOUT ) );
    CHECK( redis_sleep_seconds( &redis, now + 0.5 ) <= 0.51 );
    CHECK( redis_sleep_seconds( &redis, now + 5.0 ) == 0.0 );
    end();
    story( "descriptor, events and time for a loop that sleeps in poll" );
}

/* Everything at random: every command is reported exactly once, and the memory checker has nothing to say. */
static void test_random( void )
{
    static struct heard_t heard[4000];
    static const char * const says[] = { ":1\r\n",     "+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n", ":2\r\n",
                                         "-ERR x\r\n", "$-1\r\n", "*0\r\n",        "junk\r\n",     "$5\r\nab",
                                         INFO,         INFO,      GREETING };
    int sent[4000], count = 0;
    memset( heard, 0, sizeof( heard ) );
    srand( 7 );
    open_link( NULL, 16 );
    for ( int i = 0; i < 60000 && count < 4000; i++ ) {
        int what = rand() % 100;
        if ( what < 20 ) {
            sent[count] = command( &heard[count] );
            count++;
        } else if ( what < 60 && redis.state == REDIS_LINK_GREETING )
            fake_say( redis.count == 3 ? TIME : INFO );
        else if ( what < 60 && redis.count )
            fake_say( says[rand() % 2] );
        else if ( what == 60 )
            fake_say( says[(size_t) rand() % ( sizeof( says ) / sizeof( says[0] ) )] );
        else if ( what == 61 )
            fake_hang_up();
        else if ( what == 62 && i % 3 == 0 )
            now += 2.5;
        step();
    }
    end();
    int answered = 0, late = 0, lost = 0;
    for ( int i = 0; i < count; i++ ) {
        CHECK( calls( &heard[i] ) == sent[i] );
        answered += heard[i].answers;
        late += heard[i].timeouts;
        lost += heard[i].lost;
    }
    CHECK( answered > 100 && late > 5 && lost > 50 );
    printf( "    %d commands: %d answered, %d timed out, %d lost; %llu links\n", count, answered, late, lost,
            (unsigned long long) redis.connects );
    story( "at random: every command is reported exactly once" );
}

int main( void )
{
    if ( sodium_init() < 0 )
        return 2;
    now = 1000.0;
    redis.fd = -1;
    test_addresses();
    fake_listen();
    test_answers();
    test_halves();
    test_garbage();
    fake.accepted = 0;
    test_late();
    test_silence();
    test_refusal();
    test_passwords();
    test_limits();
    test_pipe();
    test_inside();
    test_poll();
    test_random();
    close( fake.listener );
    return failures != 0;
}
