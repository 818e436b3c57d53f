#!/bin/sh
# make ct: nothing depends on a secret but the verdict on a tag (row 49 of the threats). See ct.c.
#
#     run.sh            whole sessions under valgrind, and where the reports came from
#     run.sh --plants   puts leaks into copies of netcode.h: valgrind must report each
#
# Needs the package valgrind, which has the header too; without it nothing is looked at, that is said, and the status is 0.
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
export CC="${CC:-cc}"
work=build/ct
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion"
# The world has more than this program uses, and the nonce ledger's wrappers make room for those of this program.
CFLAGS="-std=c99 -D_DEFAULT_SOURCE -O2 -g $warnings -Wno-unused-function -DTEST_NO_WRAP $(sh tests/tools/deps.sh --cflags)"
LIBS="-Wl,--wrap=sodium_memcmp -Wl,--wrap=randombytes_buf"
for algorithm in chacha20poly1305 xchacha20poly1305; do
    LIBS="$LIBS -Wl,--wrap=crypto_aead_${algorithm}_ietf_encrypt -Wl,--wrap=crypto_aead_${algorithm}_ietf_decrypt"
done
LIBS="$LIBS $(sh tests/tools/deps.sh --libs) -lm"
# Reports are counted one by one, so none may be cut off.
VALGRIND="valgrind --error-limit=no"
export CFLAGS LIBS VALGRIND

if ! command -v valgrind >/dev/null 2>&1; then
    skip ct "valgrind is not installed (package valgrind)"
fi
# shellcheck disable=SC2086 # a compiler such as `ccache gcc` is a list of words
if ! echo '#include <valgrind/memcheck.h>' | $CC -E -x c - >/dev/null 2>&1; then
    skip ct "<valgrind/memcheck.h> is not installed (package valgrind)"
fi
mkdir -p "$work" || exit 1
if [ "${1:-}" = --plants ]; then
    shift
    FAULTS_READY="ct" exec "${PYTHON:-python3}" tests/faults/run.py --by ct "$@"
fi

# shellcheck disable=SC2086 # flags are lists of words
$CC $CFLAGS -I. tests/ct/ct.c $LIBS -o "$work/ct" || exit 1
$VALGRIND --log-file="$work/log" "$work/ct"
status=$?
echo "where they are, in different calls:"
awk '/== (Conditional jump|Use of uninitialised|Syscall param)/ { sub( /^==[0-9]+== /, "" ); what = $0; next }
    what != "" { sub( /.* at 0x[0-9A-F]+: /, "" ); sub( /\(in .*\//, "(in " ); count[what " in " $0]++; what = "" }
    END { for ( line in count ) printf "%4d  %s\n", count[line], line }' "$work/log"
exit $status
