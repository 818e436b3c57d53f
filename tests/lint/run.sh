#!/bin/sh
# make lint: the format, two analysers, the rules of the house, the tables of faults, and the checks of these checks. Runs all of it before it fails.
set -u

cd "$(dirname "$0")/../.." || exit 1
CFLAGS_SODIUM=$(sh tests/tools/deps.sh --cflags)
failed=0

step() { # $1: the title; the rest: a command
    title=$1
    shift
    if "$@"; then
        echo "ok   $title"
    else
        echo "FAIL $title"
        failed=$((failed + 1))
    fi
}

need() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "make lint needs $1" >&2
    exit 1
}

format() {
    unformatted=0
    for file in netcode.h $(find examples tests -name '*.[ch]' -o -name '*.[ch]pp'); do
        "${CLANG_FORMAT:-clang-format}" "$file" | cmp -s - "$file" && continue
        echo "     $file is not as clang-format lays it out"
        unformatted=1
    done
    return $unformatted
}

# The library as one C file, and each example beside its public part alone, so that it is not analysed again with each of them. Tests
# break rules on purpose (they misuse the library), so they are not asked.
tidy() {
    good=0
    # shellcheck disable=SC2086 # flags are words
    "${CLANG_TIDY:-clang-tidy}" --quiet netcode.h -- -x c -std=c99 -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES $CFLAGS_SODIUM 2>build/tidy.log || good=1
    rm -rf build/tidy && mkdir build/tidy
    # Of the arena, what needs libsodium alone.
    for file in examples/*.c examples/arena/server.c examples/arena/bots.c; do
        copy=build/tidy/$(echo "${file#examples/}" | tr / _)
        sed 's/^#define NETCODE_IMPLEMENTATION$//' "$file" >"$copy"
        # shellcheck disable=SC2086
        "${CLANG_TIDY:-clang-tidy}" --quiet "$copy" -- -std=c99 -D_DEFAULT_SOURCE -Iexamples -Iexamples/arena -I. $CFLAGS_SODIUM 2>>build/tidy.log ||
            good=1
    done
    return $good
}

# Left out: what is filled through a callback or read after a test of its length looks uninitialised to cppcheck (clang-tidy and the
# sanitizers look for the same and know better), and a sentence in an assert is a string that is always true.
check() {
    cppcheck --quiet --std=c99 --language=c --error-exitcode=1 --enable=warning,performance,portability --suppress=missingIncludeSystem \
        --suppress=uninitvar --suppress=ctuuninitvar --suppress=incorrectStringBooleanError \
        -D__linux__ -D__LP64__ -D__GNUC__ -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -UNETCODE_ASSERT -UNETCODE_API netcode.h
}

# The vectors come from the codec in peer.py, which shares nothing with the library. They are kept, so that make test needs no Python.
vectors() {
    "${PYTHON:-python3}" tests/vectors.py | cmp - tests/unit/vectors.inc
}

shell() {
    sh_files=$(find tests examples -name '*.sh')
    # shellcheck disable=SC2086
    shellcheck .ci/run $sh_files
}

# One step of .ci/run with a make that does what it is told: the status of the whole is that of the step, and when it is ended in the
# middle it shows what the step had said.
# shellcheck disable=SC2016 # the fake make and the inner shell expand it
ci_status() {
    fake=$(mktemp -d)
    wrong=0
    for status in 0 7; do
        printf '#!/bin/sh\nexit %s\n' "$status" >"$fake/make"
        chmod +x "$fake/make"
        PATH="$fake:$PATH" .ci/run make erase >"$fake/log" 2>&1
        [ "$?" = $((status != 0)) ] && grep -q "^$((status == 0)) passed, $((status != 0)) failed$" "$fake/log" || wrong=1
    done
    printf '#!/bin/sh\necho half\nkill "$(cat %s/pid)"\n' "$fake" >"$fake/make"
    PATH="$fake:$PATH" sh -c 'echo $$ >"$0/pid" && exec .ci/run make erase' "$fake" >"$fake/log" 2>&1
    [ "$?" = 143 ] && grep -qx half "$fake/log" || wrong=1
    [ "$wrong" = 0 ] || cat "$fake/log"
    rm -rf "$fake"
    return "$wrong"
}

need "${CLANG_FORMAT:-clang-format}"
need "${CLANG_TIDY:-clang-tidy}"
need cppcheck
need shellcheck
need "${PYTHON:-python3}"
mkdir -p build

step "the checks of the house can fail" "${PYTHON:-python3}" tests/lint/lint.py --selftest
step "the rules of the house" "${PYTHON:-python3}" tests/lint/lint.py
step "each fault of tests/faults finds its text" "${PYTHON:-python3}" tests/faults/run.py --stale
step "the numbers in tests/README.md are what can be counted" "${PYTHON:-python3}" tests/lint/claims.py
step "format (make format mends it)" format
step "clang-tidy" tidy
step "cppcheck" check
step "tests/unit/vectors.inc is what tests/vectors.py prints" vectors
step "shellcheck" shell
step ".ci/run's status is that of its steps" ci_status
[ "$failed" = 0 ]
