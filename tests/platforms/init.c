/*  The first program of an emulated machine (tests/platforms/run.sh): switches the loopback interface on, runs /about, /test
    and /sim, and switches the machine off. Loopback is all that the machine has of a network.

        s390x-linux-gnu-gcc -static init.c -o init
        qemu-system-s390x -kernel KERNEL -initrd INITRD -append "quiet -- [FILTER]" -nographic -no-reboot

    Prints the parts that run.sh looks for, each with the status that it ended with. */

#define _GNU_SOURCE 1

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_at( const char * type, const char * place )
{
    (void) mkdir( place, 0755 );
    if ( mount( type, place, type, 0, NULL ) != 0 )
        perror( place );
}

static void open_console( void )
{
    int console = open( "/dev/console", O_RDWR );
    for ( int i = 0; console >= 0 && i < 3; i++ )
        dup2( console, i );
    if ( console > 2 )
        close( console );
}

static void loopback_up( void )
{
    struct ifreq request;
    int any = socket( AF_INET, SOCK_DGRAM, 0 );
    memset( &request, 0, sizeof( request ) );
    memcpy( request.ifr_name, "lo", 3 );
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if ( any < 0 || ioctl( any, SIOCSIFFLAGS, &request ) != 0 )
        perror( "lo" );
    close( any );
}

/* One test needs a file descriptor beyond what select can hold. */
static void allow_descriptors( void )
{
    struct rlimit limit = { 4096, 4096 };
    if ( setrlimit( RLIMIT_NOFILE, &limit ) != 0 )
        perror( "file descriptors" );
}

/* Runs a program with up to four arguments: NULL ends them. */
static void part( const char * title, const char * program, const char * const arguments[4] )
{
    int status = 0;
    pid_t child;
    printf( "== %s\n", title );
    fflush( stdout );
    child = fork();
    if ( child == 0 ) {
        execl( program, program, arguments[0], arguments[1], arguments[2], arguments[3], (char *) NULL );
        perror( program );
        _exit( 127 );
    }
    (void) waitpid( child, &status, 0 );
    printf( "== ended with %d\n", WIFEXITED( status ) ? WEXITSTATUS( status ) : 128 + WTERMSIG( status ) );
    fflush( stdout );
}

int main( int count, char ** arguments )
{
    const char * const none[4] = { NULL };
    const char * const vectors[4] = { "vectors_" };
    const char * const trace[4] = { "--seed", "1", "--seconds", "1200" }; /* as in run.sh */
    const char * filter[4] = { NULL };
    filter[0] = count > 1 ? arguments[1] : NULL;
    mount_at( "devtmpfs", "/dev" );
    mount_at( "proc", "/proc" );
    open_console();
    loopback_up();
    allow_descriptors();
    part( "about", "/about", none );
    part( "vectors", "/test", vectors );
    part( "trace", "/sim", trace );
    part( "tests", "/test", filter );
    sync();
    reboot( RB_POWER_OFF );
    return 0;
}
