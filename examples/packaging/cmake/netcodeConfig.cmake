# What find_package(netcode 1.0 REQUIRED) reads: it makes the target netcode::netcode, the header with libsodium. In one source file of
# your program: #define NETCODE_IMPLEMENTATION, then #include <netcode.h>. Installed by `make install`, or by the CMakeLists.txt beside it,
# to lib/cmake/netcode (or share/cmake/netcode) of a prefix, which may be moved.

if(NOT TARGET netcode::netcode)
    # Without symbolic links: where /lib is one to /usr/lib, the header is in /usr/include all the same. vcpkg moves this file to share/netcode.
    get_filename_component(netcode_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
    unset(netcode_include)
    foreach(netcode_up "../.." "../../..")
        get_filename_component(netcode_prefix "${netcode_here}/${netcode_up}" ABSOLUTE)
        if(NOT netcode_include AND EXISTS "${netcode_prefix}/include/netcode.h")
            set(netcode_include "${netcode_prefix}/include")
        endif()
    endforeach()
    include("${CMAKE_CURRENT_LIST_DIR}/netcodeSodium.cmake")
    if(NOT netcode_include)
        set(netcode_FOUND FALSE)
        set(netcode_NOT_FOUND_MESSAGE "netcode.h is not in the prefix that ${netcode_here} belongs to.")
    elseif(netcode_sodium_missing)
        set(netcode_FOUND FALSE)
        set(netcode_NOT_FOUND_MESSAGE "${netcode_sodium_missing}")
    else()
        # No math library: netcode.h calls nothing of it. On Windows it needs the sockets' library.
        add_library(netcode::netcode INTERFACE IMPORTED)
        set_target_properties(netcode::netcode PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${netcode_include}"
            INTERFACE_LINK_LIBRARIES "netcode::sodium;$<$<PLATFORM_ID:Windows>:ws2_32>")
    endif()
    unset(netcode_here)
    unset(netcode_include)
    unset(netcode_prefix)
    unset(netcode_up)
endif()
