/* Must not compile: a build is a debug or a release build, not both. */
#define NETCODE_DEBUG
#define NETCODE_RELEASE
#include "netcode.h"
