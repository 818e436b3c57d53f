/*  windows.h came first, by default with winsock.h in it, which winsock2.h does not like. What the implementation defines for
    it does not outlive the implementation; MinGW's C++ library defines NOMINMAX by itself. */
#if defined( LEAN )
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#if ( defined( NOMINMAX ) && !defined( __cplusplus ) ) || ( defined( WIN32_LEAN_AND_MEAN ) && !defined( LEAN ) )
#error "a macro of the implementation is left"
#endif
