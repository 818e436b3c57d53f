/* Must not compile: another library's netcode.h came first, and its constants show it. */
#define NETCODE_CONNECT_TOKEN_BYTES 2048
#include "netcode.h"
