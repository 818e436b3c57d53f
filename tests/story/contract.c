/*  Story: code that was written for the known API builds and runs unchanged. See tests/contract.h, and
    tests/contract.cpp for C++. */

#define CONTRACT_CHECK( condition ) CHECK( condition )
#include "../contract.h"

TEST( contract_with_existing_code )
{
    contract_run();
}

/*  The usage snippet of the known README, as it stands there, with only the names supplied that it does not declare:
    `time`, `client` and `connect_token`. It opens a public port, so it is compiled and its address taken, not run. */
/* clang-format off */
static uint8_t private_key[NETCODE_KEY_BYTES] = { 0x60, 0x6a, 0xbe, 0x6e, 0xc9, 0x19, 0x10, 0xea,
                                                  0x9a, 0x65, 0x62, 0xf6, 0x6f, 0x2b, 0x30, 0xe4,
                                                  0x43, 0x71, 0xd6, 0x2c, 0xd1, 0x99, 0x27, 0x26,
                                                  0x6b, 0x3c, 0x60, 0xf4, 0xb7, 0x15, 0xab, 0xa1 };

static int contract_readme_snippet( double time, struct netcode_client_t * client, uint8_t * connect_token )
{
char * server_address = "127.0.0.1:40000";

struct netcode_server_config_t server_config;
netcode_default_server_config( &server_config );
memcpy( &server_config.private_key, private_key, NETCODE_KEY_BYTES );

struct netcode_server_t * server = netcode_server_create( server_address, &server_config, time );
if ( !server )
{
    printf( "error: failed to create server\n" );
    return 1;
}

netcode_server_start( server, 16 );

netcode_client_connect( client, connect_token );
    netcode_server_destroy( server );
    return 0;
}
/* clang-format on */

TEST( contract_readme_snippet_compiles )
{
    int ( *volatile snippet )( double, struct netcode_client_t *, uint8_t * ) = contract_readme_snippet;
    CHECK( snippet != NULL );
}
