/* The way the manual shows: one unit with the implementation. Included again, the header must add nothing. */
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#include "netcode.h"
