#!/bin/sh
# make plots: a client's connection over time on a good and on a bad network, as build/plots/network.svg and .png.
#
# A real server (serve.c), a relay that is the bad network (tests/tools/relay.c), and a client on each (record.c), all on loopback. What
# they measured is in build/plots/good.csv and bad.csv; plot.gp draws it. Needs gnuplot, and what builds the programs.
#
#     SECONDS_EACH=20 LOSS=3 DELAY=50 JITTER=10 OUT=build/plots sh examples/metrics/plots.sh
set -u

cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build/plots}
BIN=${BIN:-build}
SECONDS_EACH=${SECONDS_EACH:-20}
LOSS=${LOSS:-3}
DELAY=${DELAY:-50}
JITTER=${JITTER:-10}
SEED=${SEED:-1}

sh tests/tools/need.sh gnuplot-nox:gnuplot || exit 1
mkdir -p "$OUT" || exit 1

started=
stop() {
    # shellcheck disable=SC2086 # a list of ids
    [ -z "$started" ] || kill $started 2>/dev/null
    started=
}
trap stop EXIT
trap 'exit 130' INT TERM

address() { # $1: a program's output: the address that it listens on, when it says so
    tries=0
    while ! grep -q '^listening on ' "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || {
            echo "plots: a program did not start; it said:" >&2
            cat "$1" >&2
            return 1
        }
        sleep 0.1
    done
    sed -n 's/^listening on //p' "$1" | head -1
}

limit=$((SECONDS_EACH + 40))
"$BIN/metrics-serve" --address 127.0.0.1:0 --seconds $limit >"$OUT/serve.log" 2>&1 &
serve_id=$!
started=$serve_id
server=$(address "$OUT/serve.log") || exit 1
"$BIN/relay" --listen 127.0.0.1:0 --to "$server" --loss "$LOSS" --delay "$DELAY" --jitter "$JITTER" --seed "$SEED" --seconds $limit \
    >"$OUT/relay.log" 2>&1 &
relay_id=$!
started="$started $relay_id"
relay=$(address "$OUT/relay.log") || exit 1

"$BIN/metrics-record" --server "$server" --id 1 --seconds "$SECONDS_EACH" >"$OUT/good.csv" &
good=$!
started="$started $good"
"$BIN/metrics-record" --server "$server" --through "$relay" --id 2 --seconds "$SECONDS_EACH" >"$OUT/bad.csv" &
bad=$!
started="$started $bad"
status=0
wait $good || status=1 # waiting, not working: a signal is obeyed at once
wait $bad || status=1
kill $relay_id
wait $relay_id  # its last lines are its counts
started=$serve_id # the others' numbers may be other processes' now
[ $status = 0 ] || {
    echo "plots: a client fell out, so there is nothing to draw" >&2
    exit 1
}

title="Bad: $LOSS % loss and $DELAY ms each way, 0 to $JITTER ms of jitter"
gnuplot -e "out='$OUT'; bad='$title'" examples/metrics/plot.gp || exit 1
echo "$OUT/network.svg and $OUT/network.png: $((SECONDS_EACH)) s on a good and on a bad network"
