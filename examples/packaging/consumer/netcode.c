/*  The one file of a program that compiles the library. All others include the header alone, as main.c does; README.md one
    folder up shows how each build system takes it. C++ programs may take this file, or netcode.cpp. */

#define NETCODE_IMPLEMENTATION
#include <netcode.h>
