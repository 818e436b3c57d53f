#!/bin/sh
# Builds the native library of Netcode.cs for players' machines, with libsodium inside it, hidden: only netcode_* is exported.
#
#     build.sh            both
#     build.sh linux      build/csharp/libnetcode.so
#     build.sh windows    build/csharp/netcode.dll, with the mingw compiler
#     build.sh hello      that for Linux and build/csharp/Hello.exe, with Mono's compiler
#
# The system's libsodium.a is used where it can go into a shared library; else libsodium is built from Debian's source package, once. What is
# there and newer than its sources stays as it is. DEPS=no forbids to install packages.
set -u

cd "$(dirname "$0")/../.." || exit 1
root=$PWD
out=$root/build/csharp
work=$out/libsodium-source
flags="-std=c99 -O2 -DNDEBUG -fvisibility=hidden -ffunction-sections -fdata-sections -Wall -Wextra -I."
mkdir -p "$work"

no_libsodium() { # $1: why
    echo "build.sh: $1" >&2
    exit 1
}

# shellcheck source=tests/tools/libsodium_source.sh disable=SC1091
. tests/tools/libsodium_source.sh

stale() { # $1: a product
    [ ! -e "$1" ] || [ -n "$(find netcode.h examples/csharp/*.[ch] examples/csharp/build.sh -newer "$1")" ]
}

# $1: where it goes; $2: its host, or nothing for this machine
build_libsodium() {
    [ -e "$1/lib/libsodium.a" ] && return
    sh tests/tools/need.sh dpkg-dev:dpkg-source autoconf:autoreconf automake:automake libtool:libtoolize make:make || exit 1
    libsodium_source
    echo "building libsodium${2:+ for $2} (half a minute)"
    # make exports CC, which is this machine's compiler.
    compiler=${CC:-cc}
    [ -z "$2" ] || compiler=$2-gcc
    # Each in a copy, as a tree that was configured in place can not be built elsewhere too.
    (
        { [ -e "$source_tree/configure" ] || (cd "$source_tree" && autoreconf -fi); } &&
            rm -rf "$1-build" "$1-made" && cp -R "$source_tree" "$1-build" && cd "$1-build" &&
            ./configure ${2:+--host="$2"} "CC=$compiler" --disable-shared --enable-static --with-pic --disable-dependency-tracking --prefix="$1-made" CFLAGS=-O2 &&
            make -s -j 2 -C src install
    ) >"$out/libsodium.log" 2>&1 || {
        tail -n 5 "$out/libsodium.log"
        no_libsodium "libsodium could not be built, see build/csharp/libsodium.log"
    }
    rm -rf "$1-build" "$1" && mv "$1-made" "$1" || exit 1
}

# $1: the library to link. No name of libsodium gets out, and nothing that is not used gets in.
link_linux() {
    # shellcheck disable=SC2086 # lists of flags
    ${CC:-cc} $flags $2 -shared -fPIC examples/csharp/netcode_csharp.c "$1" -lm -pthread -Wl,--exclude-libs,ALL -Wl,--gc-sections \
        -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -s -o "$out/libnetcode.so"
}

build_linux() {
    stale "$out/libnetcode.so" || return 0
    sh tests/tools/deps.sh || exit 1
    archive=$(${CC:-cc} -print-file-name=libsodium.a) # the name alone if there is none
    if [ ! -e "$out/linux/lib/libsodium.a" ] && [ -e "$archive" ] && link_linux "$archive" "$(sh tests/tools/deps.sh --cflags)" 2>"$out/linux.log"; then
        echo "build/csharp/libnetcode.so, with the system's libsodium.a in it"
        return
    fi
    build_libsodium "$out/linux" ""
    link_linux "$out/linux/lib/libsodium.a" "-I$out/linux/include" || exit 1
    echo "build/csharp/libnetcode.so, with libsodium from its source in it"
}

build_windows() {
    stale "$out/netcode.dll" || return 0
    sh tests/tools/need.sh gcc-mingw-w64-x86-64-posix:x86_64-w64-mingw32-gcc || exit 1
    build_libsodium "$out/windows" x86_64-w64-mingw32
    # -static: the compiler's own libraries go in too.
    # shellcheck disable=SC2086 # a list of flags
    x86_64-w64-mingw32-gcc $flags "-I$out/windows/include" -DSODIUM_STATIC -D_WIN32_WINNT=0x0601 -shared examples/csharp/netcode_csharp.c \
        "$out/windows/lib/libsodium.a" -lws2_32 -static -Wl,--exclude-all-symbols -Wl,--gc-sections -s -o "$out/netcode.dll" || exit 1
    echo "build/csharp/netcode.dll, with libsodium from its source in it"
}

case ${1:-all} in
linux) build_linux ;;
hello)
    sh tests/tools/need.sh mono-mcs:mcs mono-runtime:mono || exit 1
    build_linux
    mcs -unsafe -out:build/csharp/Hello.exe examples/csharp/Netcode.cs examples/csharp/Hello.cs || exit 1
    ;;
windows) build_windows ;;
all)
    build_linux
    build_windows
    ;;
*)
    echo "build.sh: linux, windows, hello, or nothing for the first two" >&2
    exit 2
    ;;
esac
