#!/bin/sh
# make test-all: make test, and the tests of everything that stands around netcode.h: backends, metrics, captures, bindings, packages.
#
#     run.sh            every test in this folder
#     run.sh WORD...    those whose names hold a WORD
#
# Each asks tools/need.sh for the packages that it uses, prints what it checks, and ends with `NAME: N passed, N failed`. Two run at a time
# (JOBS=1: one); what a test printed is shown when it has ended.
set -u

cd "$(dirname "$0")/../.." || exit 1
out=build/all
mkdir -p "$out"

wanted() { # $1: the name of a test; the rest: words
    name=$1
    shift
    [ $# -gt 0 ] || return 0
    for word; do
        case $name in *"$word"*) return 0 ;; esac
    done
    return 1
}

one() { # $1: a test
    name=$(basename "$1")
    case $1 in
    *.py) "${PYTHON:-python3}" "$1" ;;
    *) sh "$1" ;;
    esac >"$out/$name.log" 2>&1 </dev/null
    echo $? >"$out/$name.status"
}

tests=
for file in tests/all/*.sh tests/all/*.py; do
    [ -e "$file" ] && [ "$file" != tests/all/run.sh ] && wanted "$(basename "$file")" "$@" && tests="$tests $file"
done
[ -n "$tests" ] || {
    echo "no test in tests/all is called that: $*" >&2
    exit 2
}

# One list of packages at a time: apt has one lock, so the first run of each asks for it alone (need.sh waits for it).
sh tests/tools/need.sh python3:python3 || exit 1
failed=0
running=
show() { # $1: a test that has ended
    name=$(basename "$1")
    echo "== $name"
    cat "$out/$name.log"
    [ "$(cat "$out/$name.status")" = 0 ] || failed=$((failed + 1))
}
for file in $tests; do
    one "$file" &
    running="$running $file:$!"
    # shellcheck disable=SC2086 # a list of words
    set -- $running
    if [ $# -ge "${JOBS:-2}" ]; then
        wait "${1##*:}"
        show "${1%:*}"
        shift
        running="$*"
    fi
done
for each in $running; do
    wait "${each##*:}"
    show "${each%:*}"
done
# shellcheck disable=SC2086 # a list of words
set -- $tests
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" = 0 ]
