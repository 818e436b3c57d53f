#!/bin/sh
# make csharp: the native library for Netcode.cs, and its tests under Mono; on loopback.
#
#     run.sh              everything
#     run.sh WORD...      of the tests in C#, those whose names hold one of these words
#     run.sh smoke        all but what judges by the clock (the bot in the arena) or takes long (a million packets, Windows, packages, the README)
#
# Each part prints a line for each check. What is built stays in build/csharp, libsodium too: a second run is quick.
set -u

cd "$(dirname "$0")/../.." || exit 1
out=build/csharp
failed=0

system=all
[ "$*" != smoke ] || system=linux
sh tests/tools/need.sh mono-mcs:mcs mono-runtime:mono python3:python3 binutils:nm || exit 1
[ $system = linux ] || sh tests/tools/need.sh gcc-mingw-w64-x86-64-posix:x86_64-w64-mingw32-gcc libxml2-utils:xmllint \
    python3-yaml:/usr/lib/python3/dist-packages/yaml || exit 1
mkdir -p $out
sh examples/csharp/build.sh $system || exit 1

check() { # $1: what it shows; the rest: a command whose exit status says whether it does
    what=$1
    shift
    if "$@" >$out/check.log 2>&1; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        cat $out/check.log
        failed=$((failed + 1))
    fi
}

# Debian's compiler knows C# up to 7.2, which 7.3 contains. Warnings are errors.
compile() {
    mcs -langversion:7.2 -unsafe -warn:4 -warnaserror -debug "$@"
}

only_netcode() { # names on standard input: at least a hundred, and all of them netcode_*
    names=$(cat)
    echo "$names"
    [ "$(echo "$names" | wc -l)" -gt 100 ] && ! echo "$names" | grep -qv '^netcode_'
}

exports_linux() {
    nm -D --defined-only $out/libnetcode.so | awk '{ print $3 }' | only_netcode
}

exports_windows() {
    x86_64-w64-mingw32-objdump -p $out/netcode.dll | awk '/\[Ordinal\/Name Pointer\] Table/ { on = 1; next } on && NF == 0 { exit } on { print $NF }' |
        only_netcode
}

needs_linux() { # nothing but the C library's own
    nm -D --undefined-only $out/libnetcode.so | grep -i 'sodium\|crypto_' && return 1
    ! objdump -p $out/libnetcode.so | awk '/NEEDED/ { print $2 }' | grep -v '^libc\.so\|^libm\.so\|^libpthread\.so\|^ld-linux'
}

needs_windows() { # nothing but Windows' own
    ! x86_64-w64-mingw32-objdump -p $out/netcode.dll | awk '/DLL Name/ { print $3 }' | grep -vi '^kernel32\.dll$\|^msvcrt\.dll$\|^ws2_32\.dll$\|^advapi32\.dll$'
}

same_exports() {
    exports_linux | grep -v '^netcode_assert_function$' | sort >$out/exports.linux
    exports_windows | grep -v '^netcode_assert_function$' | sort >$out/exports.windows
    diff $out/exports.linux $out/exports.windows
}

# A header with one field more: the library that is made of it must not be loaded.
build_other() {
    mkdir -p $out/other
    sed 's/^    int batch_sends; .*/&\n    int one_field_more;/' netcode.h >$out/other/netcode.h
    ! cmp -s netcode.h $out/other/netcode.h || return 1
    # shellcheck disable=SC2046 # lists of flags
    ${CC:-cc} -std=gnu99 -O0 -w -DNDEBUG -fPIC -shared -I$out/other $(sh tests/tools/deps.sh --cflags) examples/csharp/netcode_csharp.c \
        $(sh tests/tools/deps.sh --libs) -lm -o $out/other/libnetcode.so && cp $out/tests.exe $out/other/
}

tests() {
    NETCODE_ROOT=$PWD mono --debug $out/tests.exe "$@" || {
        [ $? != 2 ] || exit 2 # a word that no name holds
        failed=$((failed + 1))
    }
}

offsets() {
    python3 tests/csharp/layout.py --offsets netcode.h | diff - examples/csharp/netcode_csharp_layout.h
}

make -s build/server build/client build/token build/arena-server build/arena-bots || exit 1
# shellcheck disable=SC2046 # lists of flags
python3 tests/csharp/layout.py netcode.h >$out/layout.c && ${CC:-cc} -I. $out/layout.c -o $out/layout && $out/layout >$out/layout.txt &&
    ${CC:-cc} -O1 -I. $(sh tests/tools/deps.sh --cflags) tests/web/messages_server.c $(sh tests/tools/deps.sh --libs) -lm -o $out/messages_server || exit 1

# The tests are compiled with the calls that have spans.
compile -define:NETSTANDARD2_1_OR_GREATER -out:$out/tests.exe examples/csharp/Netcode.cs tests/csharp/*.cs tests/csharp/unity/*.cs \
    examples/csharp/unity/Samples~/Play/*.cs || exit 1
compile -out:$out/ArenaBot.exe examples/csharp/Netcode.cs examples/csharp/ArenaBot.cs || exit 1

if [ "${*:-smoke}" = smoke ]; then
    check "libnetcode.so exports netcode_* and nothing else" exports_linux
    check "libnetcode.so needs the C library alone" needs_linux
    check "Netcode.cs compiles without spans, with no warning" compile -target:library -out:$out/Netcode.dll examples/csharp/Netcode.cs
    check "netcode_csharp_layout.h is what layout.py writes of netcode.h" offsets
    check "a library whose config has one field more is built" build_other
    check "and it is refused when it is loaded" mono $out/other/tests.exe --load-other
fi
if [ $# -eq 0 ]; then
    api=/usr/lib/mono/4.6.1-api
    sh tests/tools/need.sh mono-devel:$api/mscorlib.dll || exit 1
    check "Netcode.cs needs nothing that the .NET Framework 4.6.1 has not" compile -nostdlib -target:library -out:$out/Netcode461.dll \
        -r:$api/mscorlib.dll -r:$api/System.dll examples/csharp/Netcode.cs
    check "netcode.dll exports netcode_* and nothing else" exports_windows
    check "netcode.dll needs Windows alone" needs_windows
    check "both export the same" same_exports
    python3 tests/csharp/packages.py || failed=$((failed + 1))
fi
[ "$*" != smoke ] || set -- callback: connection: layout: message: mistake: process: span: unity:
tests "$@"
[ "$failed" = 0 ]
