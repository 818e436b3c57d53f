#!/bin/sh
# What a refused datagram costs in instructions, counted by callgrind: the library's own, less those of the socket that hands it over.
#
#   sh tests/tools/instructions.sh               each kind of refusal against its limit; status 1 when one is over it
#   sh tests/tools/instructions.sh --functions   and where in the library they are spent
#
# The limits hold for datagrams that netcode_server_update receives from its socket, in batches. Those handed to
# netcode_server_process_packet one by one are printed beside them. Where valgrind is missing nothing is counted, and skip.sh decides the status.
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
CC=${CC:-cc}
CFLAGS=${CFLAGS:--O2 -g}
work=build/instructions
functions=0
[ "${1:-}" = --functions ] && functions=1

if ! command -v valgrind >/dev/null 2>&1; then
    skip instructions "valgrind is not installed, so none were counted"
fi
# shellcheck disable=SC2086 # a compiler such as `ccache gcc` is a list of words
if ! echo '#include <valgrind/callgrind.h>' | $CC -E -x c - >/dev/null 2>&1; then
    skip instructions "<valgrind/callgrind.h> is not installed, so none were counted"
fi

dumps() { # $1: what their names begin with
    find "$work" -name "$1.[0-9]*" | sort -t . -k 2 -n
}

rm -rf "$work" && mkdir -p "$work" || exit 1

# The library has a unit of its own, as nothing of it may melt into the loop around it.
# shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
{
    flags=$(sh tests/tools/deps.sh --cflags)
    $CC $CFLAGS -DNDEBUG $flags -x c -DNETCODE_IMPLEMENTATION -c netcode.h -o "$work/netcode.o" &&
        $CC $CFLAGS -DNDEBUG $flags -I. tests/tools/instructions.c "$work/netcode.o" $(sh tests/tools/deps.sh --libs) -lm -o "$work/instructions"
} || exit 1

# Collecting starts where the library is entered and pauses while the socket is at work.
valgrind --tool=callgrind --callgrind-out-file="$work/count" --collect-atstart=no --toggle-collect=netcode_server_update \
    --toggle-collect=netcode_server_process_packet --toggle-collect=network_receive "$work/instructions" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}

# A dump says `desc: Trigger: Client Request: DATAGRAMS NAME, WAY` and then `summary: INSTRUCTIONS`.
dumps count | while read -r dump; do cat "$dump"; done | awk '
    BEGIN { printf "%-44s %16s %16s %8s\n", "instructions for one datagram:", "from the socket", "process_packet", "limit" }
    /^desc: Trigger: Client Request: / {
        datagrams = $5
        sub( /^desc: Trigger: Client Request: [0-9]+ /, "" )
        way = $0
        sub( /.*, /, "", way )
        name = $0
        sub( /, [^,]*$/, "", name )
    }
    /^summary: / && name != "" {
        if ( !( name in socket ) && !( name in hand ) ) order[++count] = name
        if ( way == "from the socket" ) socket[name] = $2 / datagrams
        else hand[name] = $2 / datagrams
        name = ""
    }
    END {
        for ( i = 1; i <= count; i++ ) {
            limit = order[i] ~ /^junk/ ? 500 : 110
            bad = !( socket[order[i]] > 0 && socket[order[i]] <= limit )
            over += bad
            printf "%-44s %16.1f %16.1f %8d  %s\n", order[i], socket[order[i]], hand[order[i]], limit, bad ? "OVER" : "ok"
        }
        if ( !count ) print "callgrind counted nothing"
        exit over > 0 || count == 0
    }
'
status=$?

[ $functions = 1 ] || exit $status
valgrind --tool=callgrind --callgrind-out-file="$work/all" "$work/instructions" >"$work/log" 2>&1 || exit 1
dumps all | while read -r dump; do
    echo
    sed -n 's/^desc: Trigger: Client Request: [0-9]* //p' "$dump"
    datagrams=$(sed -n 's/^desc: Trigger: Client Request: \([0-9]*\) .*/\1/p' "$dump")
    callgrind_annotate --auto=no --threshold=100 "$dump" 2>/dev/null |
        awk -v datagrams="$datagrams" '/netcode\.h:/ { gsub( /,/, "", $1 ); name = $0; sub( /.*netcode\.h:/, "", name ); sub( / .*/, "", name )
            if ( $1 / datagrams >= 0.5 ) printf "%10.1f  %s\n", $1 / datagrams, name }'
done
exit $status
