#!/bin/sh
# make lint: the format, two analysers, the rules of the house, the tables of faults, and the checks of these checks. Runs all of it before
# it fails, as many steps at a time as there are cores.
#
#     run.sh           everything
#     run.sh STEP      one step, by the name it has at the end of this file
set -u

cd "$(dirname "$0")/../.." || exit 1
PYTHON=${PYTHON:-python3}
CFLAGS_SODIUM=$(sh tests/tools/deps.sh --cflags)

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

# $1: the library as one C file, or an example beside its public part alone, so that it is not analysed again with each of them. Tests
# break rules on purpose (they misuse the library), so they are not asked.
tidy() {
    if [ "$1" = netcode.h ]; then
        file=$1
        flags="-x c -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES"
    else
        file=build/tidy/$(echo "${1#examples/}" | tr / _)
        flags="-D_DEFAULT_SOURCE -Iexamples -Iexamples/arena -I."
        sed 's/^#define NETCODE_IMPLEMENTATION$//' "$1" >"$file"
    fi
    # shellcheck disable=SC2086 # flags are words
    "${CLANG_TIDY:-clang-tidy}" --quiet "$file" -- -std=c99 $flags $CFLAGS_SODIUM 2>"build/tidy/$(basename "$file").log"
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
    "$PYTHON" tests/vectors.py | cmp - tests/unit/vectors.inc
}

# The harnesses of make prove, without their prover. netcode_small.h differs from netcode.h in numbers alone.
harnesses() {
    mkdir -p build/tidy/small
    cp netcode.h build/tidy/small/netcode_small.h
    for file in tests/prove/*.c; do
        [ "$file" = tests/prove/eva.c ] || # it needs a header of Frama-C
            "${CC:-cc}" -std=c99 -fsyntax-only -w -Ibuild/tidy/small -I. -Itests/prove/stub \
                '-D__CPROVER_assert(claim,text)=(void)(claim)' '-D__CPROVER_assume(claim)=(void)(claim)' "$file" || return 1
    done
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
        PATH="$fake:$PATH" .ci/run make abi >"$fake/log" 2>&1
        [ "$?" = $((status != 0)) ] && grep -q "^$((status == 0)) passed, $((status != 0)) failed$" "$fake/log" || wrong=1
    done
    printf '#!/bin/sh\necho half\nkill "$(cat %s/pid)"\n' "$fake" >"$fake/make"
    PATH="$fake:$PATH" sh -c 'echo $$ >"$0/pid" && exec .ci/run make abi' "$fake" >"$fake/log" 2>&1
    [ "$?" = 143 ] && grep -qx half "$fake/log" || wrong=1
    [ "$wrong" = 0 ] || cat "$fake/log"
    rm -rf "$fake"
    return "$wrong"
}

# The name of a step: what it says and what it does.
run() {
    case $1 in
    tidy:*) say="clang-tidy of ${1#tidy:}" && tidy "${1#tidy:}" ;;
    selftest) say="the checks of the house can fail" && "$PYTHON" tests/lint/lint.py --selftest ;;
    rules) say="the rules of the house" && "$PYTHON" tests/lint/lint.py ;;
    stale) say="each fault of tests/faults finds its text" && "$PYTHON" tests/faults/run.py --stale ;;
    claims) say="the numbers in tests/README.md are what can be counted" && "$PYTHON" tests/lint/claims.py ;;
    format) say="format (make format mends it)" && format ;;
    cppcheck) say="cppcheck" && check ;;
    vectors) say="tests/unit/vectors.inc is what tests/vectors.py prints" && vectors ;;
    shell) say="shellcheck" && shell ;;
    harnesses) say="the harnesses of make prove compile" && harnesses ;;
    ci) say=".ci/run's status is that of its steps" && ci_status ;;
    nightly) say="make nightly goes on where it was ended; which of its results are old is listed" && "$PYTHON" tests/lint/nightly_selftest.py ;;
    *) say="$1 is no step" && false ;;
    esac
}
STEPS="tidy:netcode.h rules format cppcheck shell selftest stale claims vectors harnesses ci nightly"
for file in examples/*.c examples/arena/server.c examples/arena/bots.c; do # of the arena, what needs libsodium alone
    STEPS="$STEPS tidy:$file"
done

mkdir -p build/tidy
if [ $# = 1 ]; then # what a step says stays together
    log=$(mktemp)
    start=$(date +%s)
    run "$1" >"$log" 2>&1 && word="ok  " || word=FAIL
    echo "$word $say, $(($(date +%s) - start)) s" | cat "$log" -
    rm -f "$log"
    [ "$word" = "ok  " ]
    exit
fi

need "${CLANG_FORMAT:-clang-format}"
need "${CLANG_TIDY:-clang-tidy}"
need cppcheck
need shellcheck
need "$PYTHON"
# shellcheck disable=SC2086 # names
printf '%s\n' $STEPS | xargs -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh tests/lint/run.sh
