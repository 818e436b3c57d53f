/*  There are no UDP sockets in WebAssembly, and Emscripten's replacement of them wants a package of Node.js. For the test
    runner: socket() fails, as it does on a system without a network. */

#include <errno.h>
#include <sys/socket.h>

int socket( int family, int type, int protocol )
{
    (void) family;
    (void) type;
    (void) protocol;
    errno = EAFNOSUPPORT;
    return -1;
}
