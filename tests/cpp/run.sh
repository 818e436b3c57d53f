#!/bin/sh
# netcode.hpp: its tests with every compiler that is here, C++11 to C++20, with and without exceptions and RTTI, with sanitizers, over a
# netcode.h that was compiled as C; the programs that must not compile; and the example, which plays by itself.
#
#     run.sh          everything; ends with 1 if anything failed
#     run.sh smoke    the first compiler alone: C++11, and C++20 with sanitizers; what must not compile; the README
set -u

cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc}
smoke=no
case $* in
'') ;;
smoke) smoke=yes ;;
*) echo "run.sh: unknown: $*; there is: smoke" >&2 && exit 2 ;;
esac
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion -Werror"
sodium_cflags=$(sh tests/tools/deps.sh --cflags)
sodium_libs=$(sh tests/tools/deps.sh --libs)
include="-I. -Iexamples/cpp $sodium_cflags"
out=build/cpp
failures=0
rm -rf $out && mkdir -p $out

say() { # $1: ok or FAILED; $2: what
    echo "$1: $2"
    [ "$1" = ok ] || failures=$((failures + 1))
}

# shellcheck disable=SC2086 # flags are words
tests() { # $1: the name; $2: compiler and flags; $3: an object of the implementation
    if $2 $warnings $include tests/cpp/test.cpp "$3" $sodium_libs -o $out/test >$out/log 2>&1 && $out/test >>$out/log 2>&1; then
        say ok "$1: $(tail -n 1 $out/log)"
    else
        say FAILED "$1"
        tail -n 20 $out/log
    fi
}

compilers=
for cxx in g++ clang++ clang++-19; do
    command -v $cxx >/dev/null 2>&1 && compilers="${compilers:+$compilers }$cxx"
done
[ $smoke = no ] || compilers=${compilers%% *}
[ -n "$compilers" ] || { echo "FAILED: there is no C++ compiler" && exit 1; }

# shellcheck disable=SC2086
for cxx in $compilers; do
    $cxx -std=c++11 -O1 $warnings $include -c tests/cpp/other.cpp -o $out/other.o >$out/log 2>&1 || { say FAILED "$cxx tests/cpp/other.cpp" && cat $out/log; }
    # The others have the first and the last version only: each costs seconds.
    versions="11 20"
    [ "$cxx" = "${compilers%% *}" ] && versions="11 14 17 20"
    [ $smoke = no ] || versions=11
    for version in $versions; do
        tests "$cxx -std=c++$version" "$cxx -std=c++$version" $out/other.o
        [ $smoke = yes ] || tests "$cxx -std=c++$version, no exceptions, no RTTI" "$cxx -std=c++$version -fno-exceptions -fno-rtti" $out/other.o
    done
done

cxx=${compilers%% *}
sanitized="$cxx -std=c++20 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
# shellcheck disable=SC2086
if $sanitized $warnings $include -c tests/cpp/other.cpp -o $out/sanitized.o >$out/log 2>&1; then
    ASAN_OPTIONS=detect_leaks=1:alloc_dealloc_mismatch=0 tests "sanitizers" "$sanitized" $out/sanitized.o
else
    say FAILED "sanitizers: tests/cpp/other.cpp" && cat $out/log
fi

refused() { # $1: its number, $2: what the compiler must say, $3: what it is
    # shellcheck disable=SC2086
    if $cxx -std=c++11 -DREFUSED="$1" $include -fsyntax-only tests/cpp/refused.cpp >$out/log 2>&1; then
        if [ -z "$2" ]; then say ok "$3"; else say FAILED "$3: it compiles"; fi
    elif [ -n "$2" ] && grep -q "$2" $out/log; then
        say ok "does not compile: $3"
    else
        say FAILED "$3: the compiler does not say \"$2\""
        head -n 5 $out/log
    fi
}
refused 0 "" "the program without a mistake compiles"
refused 1 "two channels have the same index" "two channels with one index"
refused 2 "a channel's index is 0 to 31" "a channel with the index 32"
refused 3 "message" "a visitor without a function for a channel"
refused 4 "the server has no such channel" "a message for a channel that is not in the list"
refused 5 "send_packet is for servers without channels" "a packet beside channels"
refused 6 "deleted" "a copy of a server"
refused 7 "cannot convert" "a status that is taken for success"
refused 8 "deleted" "a number in the place of a view"

# The README's block of code, compiled as it stands.
# shellcheck disable=SC2016 # no command is meant
{
    echo '#include <cstdio>'
    sed -n '/^```cpp$/,/^```$/p' examples/cpp/README.md | grep -v '^```'
    printf 'int main()\n{\n    game_server server;\n    game visitor;\n    server.receive( 0.0, visitor );\n}\n'
} >$out/readme.cpp
# shellcheck disable=SC2086
if $cxx -std=c++11 $include $out/readme.cpp $sodium_libs -o $out/readme >$out/log 2>&1 && $out/readme; then
    say ok "the code in examples/cpp/README.md"
else
    say FAILED "the code in examples/cpp/README.md"
    head -n 5 $out/log
fi

# The commands in the README, as they stand there.
good=yes
# shellcheck disable=SC2016 # no command is meant
sed -n '/^```sh$/,/^```$/p' examples/cpp/README.md | grep -v '^```' >$out/commands
sh -e $out/commands >$out/log 2>&1 || good=no
# shellcheck disable=SC2016
line=$(sed -n 's/^Without make: `\(.*\)`\.$/\1/p' examples/cpp/README.md | sed "s|-o game|-o $out/game|")
[ -n "$line" ] && sh -c "$line" >>$out/log 2>&1 || good=no
if [ $good = yes ]; then
    say ok "the commands in examples/cpp/README.md: $(tail -n 1 $out/log)"
else
    say FAILED "the commands in examples/cpp/README.md"
    tail -n 20 $out/log
fi

finish() {
    echo "$failures failed"
    [ $failures = 0 ]
    exit
}
[ $smoke = no ] || finish

printf 'int other_file( void );\nint other_file( void )\n{\n    return 4;\n}\n' >$out/four.c
# shellcheck disable=SC2086
if $CC -std=c99 -O1 -DNETCODE_MESSAGES -DNETCODE_IMPLEMENTATION $include -c -x c netcode.h -o $out/netcode.o &&
    $CC -std=c99 -c $out/four.c -o $out/four.o && ld -r $out/netcode.o $out/four.o -o $out/c.o; then
    sed 's/^int other_file();/extern "C" &/' tests/cpp/test.cpp >$out/linked.cpp
    if $cxx -std=c++11 $warnings $include $out/linked.cpp $out/c.o $sodium_libs -o $out/linked >$out/log 2>&1 && $out/linked >>$out/log 2>&1; then
        say ok "over a netcode.h that was compiled as C: $(tail -n 1 $out/log)"
    else
        say FAILED "over a netcode.h that was compiled as C"
        tail -n 20 $out/log
    fi
else
    say FAILED "netcode.h as C"
fi

# Under the thread sanitizer, where it can be linked and run.
# shellcheck disable=SC2086
if echo 'int main() {}' | $cxx -fsanitize=thread -x c++ - -o $out/empty >$out/log 2>&1 && $out/empty >>$out/log 2>&1; then
    if $cxx -std=c++11 -g -O1 -fsanitize=thread -pthread $warnings $include tests/cpp/threads.cpp $sodium_libs -o $out/threads >$out/log 2>&1 &&
        $out/threads >>$out/log 2>&1; then
        say ok "objects and tokens on two threads, under the thread sanitizer"
    else
        say FAILED "objects and tokens on two threads"
        tail -n 20 $out/log
    fi
else
    echo "skipped: $cxx -fsanitize=thread can not be linked or run here"
    [ "${SKIPS:-yes}" = yes ] || say FAILED "it was skipped, and SKIPS=no promises it"
fi

finish
