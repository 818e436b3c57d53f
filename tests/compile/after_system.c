/* Strict modes hide what the implementation would like to have, and here the system's headers came first, so it can not ask for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if !defined( _WIN32 )
#include <sys/types.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#define NETCODE_IMPLEMENTATION
#include "netcode.h"
