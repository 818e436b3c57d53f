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

int main()
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    contract_run();
    netcode_term();
    printf( "%d passed, %d failed\n", contract_passed, contract_failed );
    return contract_failed != 0;
}
