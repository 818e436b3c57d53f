# Makes the target netcode::sodium, which is libsodium: from pkg-config where it knows libsodium, else from a search for sodium.h and the
# library. A project that brings a libsodium of its own makes a target of that name before, and it is taken. Without libsodium there is no
# target, and netcode_sodium_missing says why. Read by netcodeConfig.cmake and CMakeLists.txt, which lie beside it.

set(netcode_sodium_missing "")
if(NOT TARGET netcode::sodium)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(NETCODE_SODIUM QUIET libsodium)
    endif()
    if(NETCODE_SODIUM_FOUND)
        set(netcode_sodium_include_dirs ${NETCODE_SODIUM_INCLUDE_DIRS})
        set(netcode_sodium_libraries ${NETCODE_SODIUM_LINK_LIBRARIES})
    else()
        find_path(NETCODE_SODIUM_INCLUDE_DIR NAMES sodium.h)
        find_library(NETCODE_SODIUM_LIBRARY NAMES sodium libsodium)
        mark_as_advanced(NETCODE_SODIUM_INCLUDE_DIR NETCODE_SODIUM_LIBRARY)
        set(netcode_sodium_include_dirs ${NETCODE_SODIUM_INCLUDE_DIR})
        set(netcode_sodium_libraries ${NETCODE_SODIUM_LIBRARY})
        if(NOT NETCODE_SODIUM_INCLUDE_DIR OR NOT NETCODE_SODIUM_LIBRARY)
            set(netcode_sodium_missing "netcode needs libsodium, which neither pkg-config nor a search for sodium.h and the library \
found. Install it (libsodium-dev, libsodium-devel), or name its prefix in CMAKE_PREFIX_PATH.")
        endif()
    endif()
    if(NOT netcode_sodium_missing)
        # Global, so that it is seen above the folder of a subproject.
        add_library(netcode::sodium INTERFACE IMPORTED GLOBAL)
        set_target_properties(netcode::sodium PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${netcode_sodium_include_dirs}"
            INTERFACE_LINK_LIBRARIES "${netcode_sodium_libraries}")
    endif()
    unset(netcode_sodium_include_dirs)
    unset(netcode_sodium_libraries)
endif()
