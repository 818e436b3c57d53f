/*  What messages_heap.c proves of any heap in which one block of a list is looked at, so that the others are out
    of reach. Run: tests/prove/run.sh messages_heap */

#define UNITS 10
#define PROVE_TRIES 1
#include "messages_heap.c"
