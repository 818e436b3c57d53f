#!/bin/sh
# make lint: the format, two analysers, the rules of the house, and the checks of these checks. Runs all of it before it fails.
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
    find netcode.h examples tests -name '*.[ch]' -exec "${CLANG_FORMAT:-clang-format}" --dry-run --Werror {} +
}

# The library as one C file and each example. Tests break rules on purpose (they misuse the library), so they are not asked.
tidy() {
    good=0
    # shellcheck disable=SC2086 # flags are words
    "${CLANG_TIDY:-clang-tidy}" --quiet netcode.h -- -x c -std=c99 -DNETCODE_IMPLEMENTATION $CFLAGS_SODIUM 2>build/tidy.log || good=1
    for file in examples/*.c; do
        # shellcheck disable=SC2086
        "${CLANG_TIDY:-clang-tidy}" --quiet "$file" -- -std=c99 -D_DEFAULT_SOURCE -I. $CFLAGS_SODIUM 2>>build/tidy.log || good=1
    done
    return $good
}

check() {
    cppcheck --quiet --std=c99 --language=c --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
        --suppress=missingIncludeSystem -D__linux__ -D__GNUC__ -DNETCODE_IMPLEMENTATION -UNETCODE_ASSERT -UNETCODE_API netcode.h
}

# The vectors come from the codec in peer.py, which shares nothing with the library. They are kept, so that make test needs no Python.
vectors() {
    "${PYTHON:-python3}" tests/vectors.py | diff - tests/vectors.h
}

shell() {
    sh_files=$(find tests -name '*.sh')
    # shellcheck disable=SC2086
    shellcheck .ci/run $sh_files
}

need "${CLANG_FORMAT:-clang-format}"
need "${CLANG_TIDY:-clang-tidy}"
need cppcheck
need shellcheck
need "${PYTHON:-python3}"
mkdir -p build

step "the checks of the house can fail" "${PYTHON:-python3}" tests/lint/lint.py --selftest
step "the rules of the house" "${PYTHON:-python3}" tests/lint/lint.py
step "format (make format mends it)" format
step "clang-tidy" tidy
step "cppcheck" check
step "tests/vectors.h is what tests/vectors.py prints" vectors
step "shellcheck" shell
[ "$failed" = 0 ]
