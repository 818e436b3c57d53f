/* The second file of a program that includes netcode.hpp: this one compiles the implementation. */

#define NETCODE_IMPLEMENTATION
#include "netcode.hpp"

int other_file();

int other_file()
{
    return static_cast<int>( netcode::bytes( "text" ).size() );
}
