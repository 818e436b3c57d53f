/* Everything static, for use in this unit alone: no symbol but main leaves it. */
#define NETCODE_STATIC
#define NETCODE_IMPLEMENTATION
#include "netcode.h"

int main( void )
{
    struct netcode_address_t address;
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_term();
    return netcode_parse_address( "127.0.0.1:40000", &address ) == NETCODE_OK && address.port == 40000 ? 0 : 1;
}
