#!/bin/sh
# libFuzzer on the arena's readers, with the sanitizers of addresses and undefined behaviour. Fails when it finds something.
#
#     fuzz.sh [SECONDS]      60 without it; FUZZ_CC names a clang
#
# It begins with valid messages of each kind, from build/arena-unit. What was found lies in build/arena-fuzz and runs again by
#     build/arena-fuzz/fuzz FILE
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
BUILD=build/arena-fuzz
SECONDS_ALL=${1:-60}
case $SECONDS_ALL in
'' | *[!0-9]*)
    echo "usage: fuzz.sh [SECONDS]" >&2
    exit 2
    ;;
esac
mkdir -p $BUILD/corpus

built=
for clang in ${FUZZ_CC:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
    command -v "$clang" >/dev/null 2>&1 || continue
    if "$clang" -std=c99 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all tests/arena/fuzz.c -o $BUILD/fuzz 2>$BUILD/build.log; then
        built=$clang
        break
    fi
done
if [ -z "$built" ]; then
    grep -q 'error:.*fuzz.c\|tests/arena/.*error:' $BUILD/build.log 2>/dev/null && cat $BUILD/build.log && exit 1
    skip arena-fuzz "no clang here links -fsanitize=fuzzer (Debian: clang-19 and libclang-rt-19-dev)"
fi

make -s build/arena-unit || exit 1
build/arena-unit --corpus $BUILD/corpus || exit 1
if ! $BUILD/fuzz -max_len=600 -max_total_time="$SECONDS_ALL" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 -artifact_prefix=$BUILD/found- \
    $BUILD/corpus >$BUILD/log 2>&1; then
    grep -m 3 '^FINDING\|^==.*ERROR\|runtime error' $BUILD/log || tail -3 $BUILD/log
    exit 1
fi
echo "arena-fuzz: $(sed -n 's/^stat::number_of_executed_units: *//p' $BUILD/log) executions in $SECONDS_ALL s, nothing found"
