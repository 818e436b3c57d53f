# Untested here: vcpkg can not be had where this was written. The tests run this file with stand-ins for vcpkg's functions, which shows
# which files it installs, and no more. An overlay port:
#
#     vcpkg install netcode --overlay-ports=examples/packaging/vcpkg
#
# URL and REF name your copy of the repository; VERSION is vcpkg.json's.

# A header only: nothing differs between debug and release.
set(VCPKG_BUILD_TYPE release)
vcpkg_from_git(
    OUT_SOURCE_PATH SOURCE_PATH
    URL "https://example.org/netcode.git"
    REF "v${VERSION}"
)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}/examples/packaging/cmake")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/netcode)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
