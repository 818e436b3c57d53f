#!/bin/sh
# make fuzz: libFuzzer on the packet reader, tokens, addresses, whole sessions and messages. Fails when one of them finds something.
#
#     run.sh [SECONDS]          each target for so many seconds (60), two targets at a time: a third of it with the sanitizers of addresses
#                               and undefined behaviour, the rest without, which is several times as fast
#     run.sh --afl [SECONDS]    the same targets under AFL++, in persistent mode
#
# FUZZ_TARGETS="packet token" picks targets, FUZZ_JOBS says how many run at a time, FUZZ_SEED=1 fixes the random seed, FUZZ_CC names a clang.
# It starts from tests/fuzz/corpus, unpacked: build/fuzz/corpus is what it grew to. What was found lies in build/fuzz, runs again by the first
# line and is kept by the second:
#     build/fuzz/TARGET_san FILE
#     python3 tests/fuzz/corpus.py pack TARGET FILE
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
HERE=tests/fuzz
BUILD=build/fuzz
TARGETS=${FUZZ_TARGETS:-address packet token session messages}
JOBS=${FUZZ_JOBS:-2}
FLAGS="-std=c99 -g -w -I."
CFLAGS_SODIUM=$(sh tests/tools/deps.sh --cflags)
LIBS_SODIUM=$(sh tests/tools/deps.sh --libs)

with=libfuzzer
if [ "${1:-}" = --afl ]; then
    with=afl
    shift
fi
SECONDS_EACH=${1:-60}
case $SECONDS_EACH in
'' | *[!0-9]*)
    echo "usage: run.sh [--afl] [SECONDS]" >&2
    exit 2
    ;;
esac

# The longest input that is worth a try: longer ones only run slower.
longest() {
    case $1 in
    address) echo 72 ;;
    packet) echo 128 ;;
    token) echo 256 ;;
    messages) echo 600 ;;
    *) echo 400 ;;
    esac
}

compile() { # $1: the compiler; $2: target; $3: product; the rest: options
    compiler=$1 target=$2 product=$3
    shift 3
    # shellcheck disable=SC2086 # flags are words
    $compiler $FLAGS $CFLAGS_SODIUM "$@" "$HERE/$target.c" $LIBS_SODIUM -lm -o "$product"
}

find_clang() {
    printf '#include <stdint.h>\n#include <stddef.h>\nint LLVMFuzzerTestOneInput( const uint8_t * d, size_t n ) { return d && n > 9000; }\n' \
        >"$BUILD/probe.c"
    for clang in ${FUZZ_CC:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
        command -v "$clang" >/dev/null 2>&1 || continue
        "$clang" -fsanitize=fuzzer,address,undefined "$BUILD/probe.c" -o "$BUILD/probe" >"$BUILD/probe.log" 2>&1 || continue
        echo "$clang"
        return
    done
}

fresh_corpus() {
    # shellcheck disable=SC2086 # targets are words
    "${PYTHON:-python3}" "$HERE/corpus.py" unpack "$BUILD/corpus" $TARGETS || exit 1
}

# ---- libFuzzer ----

stat_of() { # $1: a log; $2: the name of a number in it
    sed -n "s/^stat::$2: *//p" "$1"
}

# One build of one target for some seconds. Leaves one line in NAME.line, and NAME.failed where it found something.
fuzz_build() { # $1: target; $2: san or fast; $3: seconds
    name=$1_$2
    rm -f "$BUILD/$name.failed" "$BUILD/$name".found-*
    "$BUILD/$name" -max_len="$(longest "$1")" -max_total_time="$3" -seed="${FUZZ_SEED:-0}" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
        -artifact_prefix="$BUILD/$name.found-" "$BUILD/corpus/$1" >"$BUILD/$name.log" 2>&1 || : >"$BUILD/$name.failed"
    count=$(stat_of "$BUILD/$name.log" number_of_executed_units)
    [ -n "$count" ] || : >"$BUILD/$name.failed"
    printf '%-8s %-10s %12s executions in %5s s %9s/s\n' "$1" "$([ "$2" = san ] && echo sanitized || echo plain)" "${count:-?}" "$3" \
        "$(stat_of "$BUILD/$name.log" average_exec_per_sec)" >"$BUILD/$name.line"
}

fuzz_target() {
    sanitized=$((SECONDS_EACH / 3))
    [ "$sanitized" -gt 0 ] || sanitized=1
    fuzz_build "$1" san "$sanitized"
    fuzz_build "$1" fast $((SECONDS_EACH - sanitized > 0 ? SECONDS_EACH - sanitized : 1))
}

# Both builds of a target. Without the comparisons' tracing whole sessions run a fifth faster, and they have no words to guess.
build_target() {
    traced=
    [ "$1" = session ] && traced=-fno-sanitize-coverage=trace-cmp
    compile "$CLANG" "$1" "$BUILD/$1_san" -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer &&
        compile "$CLANG" "$1" "$BUILD/$1_fast" -O1 -fsanitize=fuzzer $traced
}

report() {
    failed=0
    for target in $TARGETS; do
        for build in san fast; do
            cat "$BUILD/${target}_$build.line"
            [ -e "$BUILD/${target}_$build.failed" ] || continue
            failed=1
            grep -h -m 3 "^FINDING\|^==.*ERROR\|runtime error" "$BUILD/${target}_$build.log"
            ls "$BUILD/${target}_$build".found-* 2>/dev/null || tail -3 "$BUILD/${target}_$build.log"
        done
    done
    return $failed
}

# Runs a function for each target, JOBS of them at a time.
in_parallel() {
    running=0
    for target in $TARGETS; do
        "$1" "$target" &
        running=$((running + 1))
        if [ "$running" -ge "$JOBS" ]; then
            wait
            running=0
        fi
    done
    wait
}

run_libfuzzer() {
    CLANG=$(find_clang)
    if [ -z "$CLANG" ]; then
        skip fuzz "no clang here links -fsanitize=fuzzer (Debian: clang-19 and libclang-rt-19-dev)"
    fi
    fresh_corpus
    for target in $TARGETS; do
        rm -f "$BUILD/${target}_san" "$BUILD/${target}_fast"
    done
    in_parallel build_target
    in_parallel fuzz_target
    report || exit 1
    FUZZ_CORPUS=$BUILD/corpus FUZZ_CC=$CLANG sh "$HERE/coverage.sh"
}

# ---- AFL++ ----

build_afl() { # afl-clang-fast brings a driver for libFuzzer's targets; with afl-gcc-fast it is linked by hand
    if command -v afl-clang-fast >/dev/null 2>&1; then
        AFL_QUIET=1 compile afl-clang-fast "$1" "$BUILD/$1_afl" -O2 -fsanitize=fuzzer
    else
        AFL_QUIET=1 compile afl-gcc-fast "$1" "$BUILD/$1_afl" -O2 /usr/lib/afl/libAFLDriver.a
    fi
}

afl_stat() {
    sed -n "s/^$2 *: *//p" "$BUILD/afl/$1/default/fuzzer_stats"
}

afl_target() {
    rm -rf "$BUILD/afl/$1"
    mkdir -p "$BUILD/afl"
    AFL_SKIP_CPUFREQ=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 afl-fuzz -i "$BUILD/corpus/$1" -o "$BUILD/afl/$1" \
        -V "$SECONDS_EACH" -G "$(longest "$1")" -t 2000 -- "$BUILD/$1_afl" >"$BUILD/$1_afl.log" 2>&1
}

run_afl() {
    if ! command -v afl-fuzz >/dev/null 2>&1; then
        echo "fuzz with AFL++ skipped: no afl-fuzz here (Debian: afl++)"
        exit 0
    fi
    fresh_corpus
    for target in $TARGETS; do
        if ! build_afl "$target" >"$BUILD/${target}_afl.log" 2>&1; then
            echo "fuzz with AFL++ skipped: its compiler can not build here: $(tail -1 "$BUILD/${target}_afl.log")"
            exit 0
        fi
    done
    in_parallel afl_target
    failed=0
    for target in $TARGETS; do
        if [ ! -e "$BUILD/afl/$target/default/fuzzer_stats" ]; then
            echo "$target: AFL++ did not run:"
            tail -5 "$BUILD/${target}_afl.log"
            failed=1
            continue
        fi
        printf '%-8s AFL++ %12s executions in %5s s %9s/s, edges %s\n' "$target" "$(afl_stat "$target" execs_done)" "$SECONDS_EACH" \
            "$(afl_stat "$target" execs_per_sec)" "$(afl_stat "$target" bitmap_cvg)"
        for kind in crashes hangs; do
            [ "$(afl_stat "$target" saved_$kind)" = 0 ] && continue
            failed=1
            ls "$BUILD/afl/$target/default/$kind"/id*
        done
    done
    exit $failed
}

mkdir -p "$BUILD"
if [ "$with" = afl ]; then run_afl; else run_libfuzzer; fi
