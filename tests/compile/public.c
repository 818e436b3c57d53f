/* The public part alone, twice, as any other unit of a program sees it. `struct` and typedef name the same type. */
#include "netcode.h"
#include "netcode.h"

NETCODE_CONST struct netcode_client_t * compile_client( netcode_client_t * client );

NETCODE_CONST struct netcode_client_t * compile_client( netcode_client_t * client )
{
    return client;
}
