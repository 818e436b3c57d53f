/* Another netcode.h is found in the include path: what the manual shows says so. */
#include <netcode.h>
#if !defined( NETCODE_SINGLE_FILE_H ) || NETCODE_VERSION_MAJOR < 1
#error "another netcode.h was found: see the include paths"
#endif
typedef int compile_other_t;
