/* Must not compile: another library's netcode.h came first, and its guard shows it. */
#define NETCODE_H
#define NETCODE_IMPLEMENTATION
#include "netcode.h"
