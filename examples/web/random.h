/*  The random source of libsodium in WebAssembly: see random.c. build.sh includes this in front of libsodium's own
    randombytes.c. */

#ifndef NETCODE_WEB_RANDOM_H
#define NETCODE_WEB_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <sodium/randombytes.h>

extern struct randombytes_implementation netcode_web_random;

#endif
