/*  What messages_heap.c proves of any heap of 6 units: the steps that change more of it. Run:
    tests/prove/run.sh messages_heap */

#define UNITS 6
#include "messages_heap.c"
