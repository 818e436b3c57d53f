# Runs examples/packaging/vcpkg/portfile.cmake with stand-ins for the functions of vcpkg that it calls. They do what vcpkg's documentation
# says, as far as a header needs it; vcpkg itself was not there. Called by tests/all/packaging.sh:
#
#     cmake -DPORT=FOLDER -DSOURCE=REPOSITORY -DWORK=FOLDER -P vcpkg.cmake      installs into WORK/packages

cmake_minimum_required(VERSION 3.19)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
file(READ "${PORT}/vcpkg.json" manifest)
string(JSON VERSION GET "${manifest}" version)
string(JSON name GET "${manifest}" name)
string(JSON dependency GET "${manifest}" dependencies 0)
if(NOT name STREQUAL "netcode" OR NOT dependency STREQUAL "libsodium")
    message(FATAL_ERROR "vcpkg.json is about ${name} and ${dependency}")
endif()

function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${output}")
    endif()
endfunction()

function(vcpkg_from_git)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_SOURCE_PATH;URL;REF" "")
    if(NOT arg_URL OR NOT arg_REF STREQUAL "v${VERSION}" OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "vcpkg_from_git: ${ARGV}")
    endif()
    set(${arg_OUT_SOURCE_PATH} "${SOURCE}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "")
    run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}")
endfunction()

function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --install "${WORK}/build")
endfunction()

function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
    file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/share")
    file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/netcode")
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cmake")
endfunction()

function(vcpkg_fixup_pkgconfig)
    if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/netcode.pc")
        message(FATAL_ERROR "no netcode.pc")
    endif()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(READ "${arg_FILE_LIST}" text)
    file(WRITE "${CURRENT_PACKAGES_DIR}/share/netcode/copyright" "${text}")
endfunction()

include("${PORT}/portfile.cmake")
