#!/bin/sh
# make compile: every compiler, language version and build switch that the manual promises, all warnings as errors. What is not on this
# machine (a compiler, 32-bit libraries, MinGW) is named and skipped. Jobs run side by side; one line for each that fails.
#
# run.sh WORD runs the jobs whose titles hold the word; run.sh --one RECORD runs one job: "expectation|title|command".
set -u

WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion -Werror"
OUT=build/compile

one() {
    expect=${1%%|*}
    rest=${1#*|}
    title=${rest%%|*}
    command=${rest#*|}
    log=$OUT/log.$$
    if sh -c "$command" >"$log" 2>&1; then got=pass; else got=fail; fi
    case $expect in
    pass | fail) [ "$expect" = "$got" ] && good=yes || good=no ;;
    # It must be refused, and with these words.
    *) [ "$got" = fail ] && grep -q "$expect" "$log" && good=yes || good=no ;;
    esac
    if [ "$good" = yes ]; then
        echo "ok   $title" >>"$OUT/results"
    else
        echo "FAIL $title" >>"$OUT/results"
        { echo "FAIL $title" && echo "     $command" && head -n 12 "$log" | sed 's/^/     /'; } >&2
    fi
    rm -f "$log"
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit 0
fi

word=${1:-}
cd "$(dirname "$0")/../.." || exit 1
rm -rf $OUT
mkdir -p $OUT/mingw
sodium_cflags=$(sh tests/tools/deps.sh --cflags)
sodium_libs=$(sh tests/tools/deps.sh --libs)
jobs=0

job() { # $1: expectation, $2: title, $3: command
    case $2 in *"$word"*) ;; *) return ;; esac
    printf '%s|%s|%s\0' "$1" "$2" "$3" >>$OUT/jobs
    jobs=$((jobs + 1))
}

compile() { # $1: compiler and its flags, $2: source under tests/compile, $3: more flags; $4: expectation, else pass
    product=$OUT/$jobs.o
    job "${4:-pass}" "$1 $2 ${3:-}" "$1 -O1 $WARNINGS -Wformat=2 -Wvla -I. $sodium_cflags ${3:-} -c tests/compile/$2 -o $product"
}

program() { # $1: first compiler, $2: second compiler, $3: linker: stub.c and user.c make one program, which must run
    at=$OUT/program$jobs
    job pass "$1 stub.c + $2 user.c" "$1 $WARNINGS -I. $sodium_cflags -c tests/compile/stub.c -o $at.a.o &&
        $2 $WARNINGS -I. $sodium_cflags -c tests/compile/user.c -o $at.b.o && $3 $at.a.o $at.b.o $sodium_libs -o $at && ./$at"
}

order() { # $1: compiler and version, $2: run, if it shall be: order.c refers to the same symbols whether netcode.h comes first or last
    at=$OUT/order$jobs
    job pass "$1 order.c, first and last" "$1 -O0 $WARNINGS -I. $sodium_cflags -c tests/compile/order.c -o $at.first.o &&
        $1 -O0 $WARNINGS -I. $sodium_cflags -DORDER_LAST -c tests/compile/order.c -o $at.last.o &&
        for i in first last; do nm -u $at.\$i.o | sort >$at.\$i || exit 1; done && diff $at.first $at.last &&
        for name in recvmmsg sendmmsg clock_gettime madvise; do [ ! -e /proc/version ] || grep -qw \$name $at.last || exit 1; done || exit 1
        [ -z '${2:-}' ] || for i in first last; do ${1%% *} $at.\$i.o $sodium_libs -o $at.\$i.program && ./$at.\$i.program || exit 1; done"
}

# Every build switch, with one compiler and one language version.
switches() { # $1: compiler and version
    for flags in -DNDEBUG -DNETCODE_MESSAGES -DNETCODE_NO_SOCKETS -DNETCODE_NO_LINUX_EXTRAS "-DNETCODE_NO_SOCKETS -DNETCODE_NO_LINUX_EXTRAS -DNDEBUG" \
        -DNETCODE_PACKET_TAGGING=0 -DNETCODE_RELEASE -DNETCODE_DEBUG "-DNETCODE_DEBUG -DNDEBUG"; do
        compile "$1" stub.c "$flags"
    done
    compile "$1" after_system.c
    compile "$1" after_system.c "-DNDEBUG -DNETCODE_NO_LINUX_EXTRAS"
    compile "$1" hook.c
    compile "$1" clash_guard.c "" "another library's netcode.h"
    compile "$1" clash_macro.c "" "another library's netcode.h"
    compile "$1" clash_build.c "" "not both"
    compile "$1" format.c "" "error: format"
    at=$OUT/static$jobs
    job pass "$1 static.c" "$1 -O1 $WARNINGS -I. $sodium_cflags tests/compile/static.c $sodium_libs -o $at && ./$at"
}

pairs="gcc:g++ clang:clang++"
for pair in $pairs; do
    cc=${pair%:*}
    cxx=${pair#*:}
    if ! command -v "$cc" >/dev/null 2>&1 || ! command -v "$cxx" >/dev/null 2>&1; then
        echo "skipped: $cc and $cxx are not both here"
        continue
    fi
    for std in c99 c11 c17; do
        compile "$cc -std=$std" stub.c
        compile "$cc -std=$std" stub.c "-DNETCODE_MESSAGES -DNDEBUG"
        compile "$cc -std=$std" public.c
    done
    order "$cc -std=c99" run
    order "$cc -std=c11"
    order "$cc -std=gnu11" run
    order "$cxx -std=c++11 -x c++"
    order "$cxx -std=c++17 -x c++"
    compile "$cc -std=gnu17 -O3" stub.c
    compile "$cc -std=c99 -m64 -fsigned-char" stub.c
    compile "$cc -std=c99 -funsigned-char" stub.c
    for std in c++11 c++17 c++20; do
        compile "$cxx -std=$std -x c++" stub.c
        compile "$cxx -std=$std -x c++" stub.c "-DNETCODE_MESSAGES -DNDEBUG"
        compile "$cxx -std=$std -x c++" public.c
    done
    switches "$cc -std=c99"
    switches "$cxx -std=c++11 -x c++"
    # A program made of other languages' headers on top: the implementation in C, its user in C++, and the other way round.
    program "$cc -std=c99" "$cc -std=c99" "$cc"
    program "$cc -std=c99" "$cxx -std=c++11 -x c++" "$cxx"
    program "$cxx -std=c++11 -x c++" "$cc -std=c99" "$cxx"
    # Every function of the known API by its exact type, from C++, over an implementation in either language.
    at=$OUT/contract$jobs
    job pass "$cxx tests/contract.cpp" "$cxx -std=c++11 $WARNINGS $sodium_cflags tests/contract.cpp $sodium_libs -o $at && ./$at"
    at=$OUT/contract$jobs
    job pass "$cc stub.c + $cxx tests/contract.cpp" "$cc -std=c99 -I. $sodium_cflags -c tests/compile/stub.c -o $at.o &&
        $cxx -std=c++11 $WARNINGS -DCONTRACT_LINKED $sodium_cflags tests/contract.cpp $at.o $sodium_libs -o $at && ./$at"
    job pass "$cc netcode.h without a stub" "$cc $WARNINGS $sodium_cflags -x c -DNETCODE_IMPLEMENTATION -c netcode.h -o $OUT/nostub.$cc.o"
    # A shared library that hides all but what NETCODE_API exports, and its user: the one variable must be the same on both sides.
    at=$OUT/shared$jobs
    for api in '__attribute__((visibility("default")))' '__attribute__((visibility("default"))) extern'; do
        job pass "$cc assert.c, NETCODE_API=$api" "$cc -std=c99 $WARNINGS -I. $sodium_cflags -fvisibility=hidden -fPIC -shared '-DNETCODE_API=$api' \
            tests/compile/stub.c $sodium_libs -o $at.so && $cc -std=c99 $WARNINGS -I. tests/compile/assert.c $at.so -o $at && ./$at"
        at=$at.extern
    done
    at=$OUT/shared$jobs
    job pass "$cxx assert.c over a shared library" "$cxx -std=c++11 -x c++ $WARNINGS -I. $sodium_cflags -fvisibility=hidden -fPIC -shared \
        '-DNETCODE_API=__attribute__((visibility(\"default\")))' tests/compile/stub.c -x none $sodium_libs -o $at.so &&
        $cxx -std=c++11 -x c++ $WARNINGS -I. tests/compile/assert.c -x none $at.so -o $at && ./$at"
    # What the manual says of libsodium: these functions, and none else.
    job pass "$cc stub.c needs of libsodium what the manual lists" "$cc -O0 -DNETCODE_MESSAGES -I. $sodium_cflags -c tests/compile/stub.c -o $OUT/needs.$cc.o &&
        nm -u $OUT/needs.$cc.o | grep -oE '(crypto|sodium|randombytes)_.*' | sort >$OUT/needs.$cc.used && sed -n '/It uses these functions of libsodium/,/^\$/p' netcode.h |
        grep -oE '(crypto|sodium|randombytes)_[a-z0-9_]+' | sort >$OUT/needs.$cc.listed && diff $OUT/needs.$cc.used $OUT/needs.$cc.listed"
    # Another netcode.h that is found first.
    mkdir -p $OUT/other
    printf '#ifndef NETCODE_H\n#define NETCODE_H\n#endif\n' >$OUT/other/netcode.h
    job "another netcode.h was found" "$cc other.c, another netcode.h" "$cc -I$OUT/other -I. -c tests/compile/other.c -o $OUT/other.o"
    compile "$cc -std=c99" other.c
    # Each example is one file and one command, in strict C as well.
    for example in examples/*.c; do
        job pass "$cc $example" "$cc $WARNINGS $sodium_cflags $example $sodium_libs -o $OUT/$(basename "$example").$cc"
        job pass "$cc -std=c99 $example" "$cc -std=c99 -O1 $WARNINGS $sodium_cflags -c $example -o $OUT/$(basename "$example").$cc.o"
    done
    # gcc-multilib, which would make -m32 find the kernel's headers, can not be installed beside cross compilers: here they are named.
    m32="-m32 -isystem /usr/include/$(gcc -print-multiarch 2>/dev/null)"
    # shellcheck disable=SC2086 # flags are words
    if echo 'int main( void ) { return 0; }' | $cc $m32 -include errno.h -x c - -o $OUT/m32 2>/dev/null; then
        compile "$cc -std=c99 $m32" stub.c
        compile "$cc -std=c99 $m32" stub.c -DNETCODE_MESSAGES
        # On 32 bits the clock can not be declared: there it is said, and not left out.
        compile "$cc -std=c99 $m32" after_system.c "" "include netcode.h first"
        order "$cc -std=gnu11 $m32"
    else
        echo "skipped: $cc has no 32-bit libraries here"
    fi
done

# Another C library, which shows its names by other rules. Its own macros are no match for -Wsign-conversion.
include=$(for place in ${sodium_cflags#-I} /usr/include /usr/local/include; do [ -f "$place/sodium.h" ] && echo "$place" && break; done)
[ -z "$include" ] || ln -sf "$include/sodium.h" "$include/sodium" $OUT/mingw/
for cc in musl-gcc clang-19; do
    if ! command -v $cc >/dev/null 2>&1; then
        echo "skipped: $cc is not here"
        continue
    fi
    order "$cc -std=c99 -Wno-sign-conversion -isystem $OUT/mingw"
    order "$cc -std=gnu11 -Wno-sign-conversion -isystem $OUT/mingw"
done

# Windows: nothing is linked or run, but every line of it is compiled. libsodium's headers are the same everywhere; only they are borrowed.
for cc in x86_64-w64-mingw32-gcc "x86_64-w64-mingw32-g++ -x c++"; do
    if ! command -v "${cc%% *}" >/dev/null 2>&1 || [ -z "$include" ]; then
        echo "skipped: ${cc%% *} is not here"
        continue
    fi
    for flags in "" -DNDEBUG -DNETCODE_MESSAGES -DNETCODE_NO_SOCKETS -DNETCODE_PACKET_TAGGING=1; do
        compile "$cc -isystem $OUT/mingw" stub.c "$flags"
    done
    compile "$cc -isystem $OUT/mingw" after_system.c
    for flags in "" -DLEAN -DNETCODE_NO_SOCKETS; do
        compile "$cc -isystem $OUT/mingw" windows_first.c "$flags"
    done
    compile "$cc -isystem $OUT/mingw" windows_last.c
    compile "$cc -isystem $OUT/mingw" windows_last.c -DKEEP
    # Linked only, and without libsodium: a DLL that exports by NETCODE_API alone, and its user.
    at=$OUT/dll$jobs
    job pass "$cc assert.c over a DLL" "$cc $WARNINGS -I. -isystem $OUT/mingw -DNETCODE_API='__declspec(dllexport)' -c tests/compile/stub.c -o $at.o &&
        ${cc%% *} -shared $at.o \$(nm -u $at.o | sed -En 's/.* ((crypto|sodium|randombytes)_.*)/-Wl,--defsym,\\1=DllMainCRTStartup/p') -lws2_32 -Wl,--out-implib,$at.a -o $at.dll &&
        $cc $WARNINGS -I. tests/compile/assert.c -x none $at.a -o $at.exe"
done

: >$OUT/results
xargs -0 -n 1 -P "${JOBS:-2}" sh tests/compile/run.sh --one <$OUT/jobs
failed=$(grep -c '^FAIL' $OUT/results)
passed=$(grep -c '^ok' $OUT/results)
echo "$passed of $jobs compilations are as they should be"
[ "$failed" = 0 ] && [ "$passed" = "$jobs" ]
