#!/bin/sh
# make erase: no key is left in memory (row 48 of the threats). See erase.c.
#
#     run.sh            builds the search with and without optimization, and runs both
#     run.sh --plants   takes wipes out of a copy of netcode.h: the search must find what they leave
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
export CC="${CC:-cc}" LEVELS="-O2 -O0"
work=build/erase
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion"
# The world has more than this program uses.
CFLAGS="-std=c99 -D_DEFAULT_SOURCE -g $warnings -Wno-unused-function -DTEST_NO_WRAP $(sh tests/tools/deps.sh --cflags)"
LIBS="-Wl,-z,now $(sh tests/tools/deps.sh --libs) -lm"
export CFLAGS LIBS

if [ "$(uname -s)" != Linux ]; then
    skip erase "it reads the dead stack as Linux on common processors lays it out"
fi
mkdir -p "$work" || exit 1
if [ "${1:-}" = --plants ]; then
    shift
    FAULTS_READY="erase" exec "${PYTHON:-python3}" tests/faults/run.py --by erase "$@"
fi
failed=0
for level in $LEVELS; do
    # shellcheck disable=SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
    $CC $CFLAGS $level -I. tests/erase/erase.c $LIBS -o "$work/erase$level" || exit 1
    if [ "$level" = -O2 ]; then
        "$work/erase$level" || failed=1
    else
        echo "the same, built with $level:"
        "$work/erase$level" >"$work/log" || failed=1
        grep -E 'erase\.c:|passed|searches' "$work/log"
    fi
done
exit $failed
