/*  The contract from C++, with the implementation compiled as C++ too:
        c++ -std=c++11 -I. tests/contract.cpp -lsodium -o contract
    or against an object that was compiled as C: the same with -DCONTRACT_LINKED and that object. */

#if !defined( CONTRACT_LINKED )
#define NETCODE_IMPLEMENTATION
#endif
#include "../netcode.h"

#include <stdio.h>
#include <stdlib.h>

static int contract_passed, contract_failed;

static void contract_check( int good, const char * text, int line )
{
    contract_passed += good;
    contract_failed += !good;
    if ( !good )
        printf( "    tests/contract.h:%d: %s is false\n", line, text );
}

#define CONTRACT_CHECK( condition ) contract_check( !!( condition ), #condition, __LINE__ )

#include "contract.h"

/* An exception out of a callback, through the library: the next call finds the object in order. A library that was compiled
   as C lets it pass only with -fexceptions. */
#if !defined( CONTRACT_LINKED )
static int contract_throwing;

static void contract_throw( void *, int, int )
{
    if ( contract_throwing )
        throw 7;
}

static void contract_exceptions()
{
    int caught = 0;
    struct netcode_client_config_t config;
    struct netcode_network_simulator_t * net = netcode_network_simulator_create( NULL, NULL, NULL );
    netcode_default_client_config( &config );
    config.network_simulator = net;
    config.state_change_callback = contract_throw;
    struct netcode_client_t * client = netcode_client_create( "10.0.0.1:1", &config, 0.0 );
    CONTRACT_CHECK( client != NULL );
    for ( int i = 0; i < 3; i++ ) {
        contract_throwing = 1;
        try {
            if ( i == 2 )
                netcode_client_destroy( client );
            else if ( i == 1 )
                netcode_client_disconnect( client );
            else
                netcode_client_connect_loopback( client, 0, 1 );
        } catch ( int thrown ) {
            caught += thrown == 7;
        }
        contract_throwing = 0;
        if ( i == 1 )
            netcode_client_connect_loopback( client, 0, 1 );
        if ( i < 2 ) {
            CONTRACT_CHECK( netcode_client_state( client ) == NETCODE_CLIENT_STATE_CONNECTED );
            netcode_client_update( client, 1.0 );
        }
    }
    CONTRACT_CHECK( caught == 3 );
    netcode_client_destroy( client ); /* the first one was not finished */
    netcode_network_simulator_destroy( net );
}
#endif

int main()
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    contract_run();
#if !defined( CONTRACT_LINKED )
    contract_exceptions();
#endif
    netcode_term();
    printf( "%d passed, %d failed\n", contract_passed, contract_failed );
    return contract_failed != 0;
}
