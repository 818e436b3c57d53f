/* What the implementation defines for windows.h does not outlive it, and what its user has defined stays. */
#if defined( KEEP ) && !defined( NOMINMAX )
#define NOMINMAX
#endif
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

#if defined( NOMINMAX ) != defined( KEEP ) && !defined( __cplusplus )
#error "NOMINMAX is not as it was"
#endif
#if defined( WIN32_LEAN_AND_MEAN )
#error "a macro of the implementation is left"
#endif
