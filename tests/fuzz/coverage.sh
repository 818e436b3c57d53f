#!/bin/sh
# How much of the rooms that each fuzz target aims at is reached by its corpus: clang's source coverage, by function. Fails under 90 %.
#
#     coverage.sh               prints regions, lines and branches for each target
#     coverage.sh -v [TARGET]   and what each function lacks
#
# FUZZ_CORPUS names a folder with another corpus than tests/fuzz/corpus, a file for each input. FUZZ_CC names a clang; llvm-cov and
# llvm-profdata must be of its version.
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
BUILD=build/fuzz
CORPUS=${FUZZ_CORPUS:-$BUILD/coverage/corpus}
CFLAGS_SODIUM=$(sh tests/tools/deps.sh --cflags)
LIBS_SODIUM=$(sh tests/tools/deps.sh --libs)
LEAST=90

verbose=0
targets=${FUZZ_TARGETS:-address packet token session messages}
if [ "${1:-}" = -v ]; then
    verbose=1
    targets=${2:-$targets}
fi

# The functions of the rooms, by the names that lint holds them to. The other side of an assert is never reached, callbacks that do not
# return leave no state that a target could judge, and floods are filtered on real sockets only: tests are for these.
aims_at() {
    case $1 in
    address) echo '^(nc_address_|netcode_parse_address|netcode_address_)' ;;
    packet) echo '^(nc_packet_|nc_replay_|nc_reader_|nc_writer_|nc_load_|nc_store_|nc_crypto_(nonce|seal|open)$)' ;;
    token) echo '^(nc_token_|nc_challenge_|netcode_generate_connect_token|netcode_connect_token_info)' ;;
    messages) echo '^(nc_messages_([abdeghijkm-z]|c[^o]|f[^o]|l[^a])|nc_(message|heap|source|put|kind|fragments?|bit|history|channel|transfer|copies|copy|sent|acks|build|frame|ids|arrived|whole|window|tokens|varint|bytes)_|netcode_messages_(ch|e|f|g|n|pr|re|send_|s[^e]|u))' ;;
    *) echo '^(nc_(packet|arena|list|table|bits|wheel|pool|inbox|used|client|server)_|netcode_(client_[^s]|client_s[^t]|client_stat[^e]|client_state$|server_|default_[cns]))' ;;
    esac
}

rooms_of() {
    case $1 in
    address) echo "address" ;;
    packet) echo "packet and what it uses of bytes, crypto and replay" ;;
    token) echo "token" ;;
    messages) echo "messages" ;;
    *) echo "packet, containers, queues, client, server" ;;
    esac
}

# llvm-cov reads only what its own clang wrote.
find_tools() {
    for clang in ${FUZZ_CC:-clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14}; do
        command -v "$clang" >/dev/null 2>&1 || continue
        version=$("$clang" -dumpversion | cut -d . -f 1)
        for suffix in "-$version" ""; do
            command -v "llvm-profdata$suffix" >/dev/null 2>&1 || continue
            "llvm-cov$suffix" --version 2>/dev/null | grep -q "version $version\\." || continue
            echo "$clang $suffix"
            return
        done
    done
}

measure() { # $1: target
    rm -rf "$BUILD/coverage/$1"
    mkdir -p "$BUILD/coverage/$1"
    LLVM_PROFILE_FILE=$BUILD/coverage/$1/%p.profraw find "$CORPUS/$1" -type f -exec "$BUILD/replay_coverage" "$1" {} + \
        >"$BUILD/coverage/$1.log" || {
        cat "$BUILD/coverage/$1.log"
        return 1
    }
    "llvm-profdata$suffix" merge -sparse "$BUILD/coverage/$1"/*.profraw -o "$BUILD/coverage/$1.profdata" &&
        "llvm-cov$suffix" report "$BUILD/replay_coverage" -instr-profile="$BUILD/coverage/$1.profdata" -show-functions -show-branch-summary \
            netcode.h >"$BUILD/coverage/$1.txt" || return 1
    awk -v aim="$(aims_at "$1")" -v least=$LEAST -v verbose=$verbose -v title="$(printf '%-8s %s' "$1" "$(rooms_of "$1")")" '
        function part( missed, all ) { return all ? 100 * ( all - missed ) / all : 100 }
        { name = $1; sub( /^.*:/, "", name ) }
        name ~ /^nc_(client|server)_(check|repair)$/ { next }
        name ~ /^nc_(server_(watch_batch|watch_update|count_flood|judge_flood|set_filter)|address_words)$/ { next }
        name ~ aim && NF >= 10 {
            functions++
            regions += $2; regions_missed += $3; lines += $5; lines_missed += $6; branches += $8; branches_missed += $9
            if ( verbose && $3 + $6 + $9 )
                printf "    %-45s regions %3d of %3d, lines %3d of %3d, branches %3d of %3d missed\n", name, $3, $2, $6, $5, $9, $8
        }
        END {
            printf "%s: %d functions, regions %.1f %%, lines %.1f %%, branches %.1f %%\n", title, functions, part( regions_missed, regions ),
                part( lines_missed, lines ), part( branches_missed, branches )
            exit !( functions && part( regions_missed, regions ) >= least && part( lines_missed, lines ) >= least &&
                    part( branches_missed, branches ) >= least )
        }' "$BUILD/coverage/$1.txt"
}

tools=$(find_tools)
if [ -z "$tools" ]; then
    skip "coverage of the fuzz targets" "no clang with llvm-cov of its version here (Debian: clang-19 and llvm-19)"
fi
clang=${tools% *}
suffix=${tools#* }
mkdir -p "$BUILD/coverage"
[ -n "${FUZZ_CORPUS:-}" ] || "${PYTHON:-python3}" tests/fuzz/corpus.py unpack "$CORPUS" || exit 1
# shellcheck disable=SC2086 # flags are words
"$clang" -std=c99 -O1 -g -w -I. $CFLAGS_SODIUM -fprofile-instr-generate -fcoverage-mapping tests/fuzz/replay.c $LIBS_SODIUM -lm \
    -o "$BUILD/replay_coverage" || exit 1
failed=0
for target in $targets; do
    measure "$target" || failed=1
done
exit $failed
