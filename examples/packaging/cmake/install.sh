#!/bin/sh
# Puts the files that CMake's find_package(netcode) reads into a folder. `make install` calls it; it needs no CMake.
#
#     install.sh FOLDER VERSION      FOLDER is PREFIX/lib/cmake/netcode
set -eu

[ $# = 2 ] || { echo "usage: install.sh FOLDER VERSION" >&2 && exit 2; }
from=$(dirname "$0")
install -d "$1"
install -m 644 "$from/netcodeConfig.cmake" "$from/netcodeSodium.cmake" "$1"
sed "s|@VERSION@|$2|" "$from/netcodeConfigVersion.cmake.in" >"$1/netcodeConfigVersion.cmake"
chmod 644 "$1/netcodeConfigVersion.cmake"
