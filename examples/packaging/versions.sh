#!/bin/sh
# Lists every version number that a release has to change, and those that follow by themselves; ends with 1 unless all are one.
#
#     versions.sh                          the header's and the recipes'
#     versions.sh PREFIX [PACKAGE.deb...]  those of an installation too (pkg-config, CMake), and of Debian packages
#
# `make release-prepare` changes all of them; `make release` refuses while they differ.
set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
wanted=$(sed -n 's/^#define NETCODE_VERSION_FULL "\(.*\)"$/\1/p' "$top/netcode.h")
different=0

row() { # $1: whose; $2: its version
    note=
    if [ "$2" != "$wanted" ] || [ -z "$2" ]; then
        note="    <- is not $wanted"
        different=$((different + 1))
    fi
    printf '%-34s %s%s\n' "$1" "${2:-none}" "$note"
}

from() { # $1: whose; $2: a file; $3: a sed expression that prints the version
    row "$1" "$(sed -n "$3" "$2" | head -n 1)"
}

number() { # $1: MAJOR, MINOR or PATCH
    sed -n "s/^#define NETCODE_VERSION_$1 \\([0-9]*\\)\$/\\1/p" "$top/netcode.h"
}

cmake_version() { # $1: a prefix
    for folder in lib share; do
        file=$1/$folder/cmake/netcode/netcodeConfigVersion.cmake
        [ ! -e "$file" ] || sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$file"
    done | head -n 1
}

pc_version() { # $1: a prefix
    PKG_CONFIG_PATH="$1/lib/pkgconfig:$1/share/pkgconfig" pkg-config --modversion netcode
}

row NETCODE_VERSION_FULL "$wanted"
row "NETCODE_VERSION_MAJOR.MINOR.PATCH" "$(number MAJOR).$(number MINOR).$(number PATCH)"
from "netcode.h, first line" "$top/netcode.h" '1s/.*netcode\.h \([0-9][0-9.]*\):.*/\1/p'
from "netcode.h, changelog" "$top/netcode.h" '/^    CHANGELOG/,/====/s/^ *\([0-9][0-9.]*\)  .*/\1/p'
from "cmake/ (FetchContent's tag)" "$here/consumer/CMakeLists.txt" 's/.*GIT_TAG v\([0-9.]*\).*/\1/p'
from "meson.build" "$here/meson/packagefiles/netcode/meson.build" "s/^project(.*version: '\\([0-9.]*\\)'.*/\\1/p"
from "netcode.wrap (the tag)" "$here/meson/netcode.wrap" 's/^revision = v\(.*\)/\1/p'
from "vcpkg.json" "$here/vcpkg/vcpkg.json" 's/.*"version": "\(.*\)".*/\1/p'
from "conanfile.py" "$here/conan/conanfile.py" 's/^    version = "\(.*\)"$/\1/p'
from "netcode.rb (the tag)" "$here/homebrew/netcode.rb" 's|^  url ".*/v\([0-9.]*\)\.tar\.gz"$|\1|p'
binding=$here/../python/netcode.py # its layouts are those of one header
[ ! -e "$binding" ] || from "python/netcode.py" "$binding" 's/^VERSION = "\(.*\)".*/\1/p'
csharp=$here/../csharp
[ ! -e "$csharp" ] || {
    from "csharp/Netcode.cs" "$csharp/Netcode.cs" 's/.*HeaderVersion = "\(.*\)";$/\1/p'
    from "csharp/Netcode.cs, first line" "$csharp/Netcode.cs" '1s|^// netcode\.h \([0-9.]*\) .*|\1|p'
    from "csharp/unity/package.json" "$csharp/unity/package.json" 's/.*"version": "\(.*\)".*/\1/p'
    from "csharp/nuget/NetcodeH.nuspec" "$csharp/nuget/NetcodeH.nuspec" 's|.*<version>\(.*\)</version>.*|\1|p'
}
if [ $# -gt 0 ]; then
    row "pkg-config --modversion netcode" "$(pc_version "$1")"
    row "CMake's netcodeConfigVersion" "$(cmake_version "$1")"
    shift
fi
for package; do
    row "${package##*/}" "$(dpkg-deb --field "$package" Version)"
done
[ "$different" = 0 ] || {
    echo "$different differ from NETCODE_VERSION_FULL"
    exit 1
}
