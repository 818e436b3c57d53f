/*  The same as netcode.c, for a program that is C++ throughout. */

#define NETCODE_IMPLEMENTATION
#include <netcode.h>
