#!/bin/sh
# Makes sample.pcap and sample.keys anew: one short session of the example server and client on loopback, with some packets lost and
# some doubled, captured by tests/tools/relay.c. Its keys are those of this one session, made for it and used for nothing else.
#
#     sh examples/wireshark/sample.sh [FOLDER]    from anywhere; writes beside itself, or into FOLDER
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "${1:-$here}" && pwd)
cd "$here/../.."
make -s build/server build/client build/token build/relay
work=$(mktemp -d)
touch "$work/server.log" "$work/relay.log" # so that they can be read before a process has begun to write
pids=
clean() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    pids=
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM

port_of() { # $1: a log whose line `listening on` says where
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$1")
        [ -z "$port" ] || break
        sleep 0.25
    done
    [ -n "$port" ] || {
        echo "it did not start:" >&2
        cat "$1" >&2
        exit 1
    }
    echo "$port"
}

build/token keygen --output "$work/game.key"
build/server --address 127.0.0.1:0 --key-file "$work/game.key" --echo --seconds 60 >"$work/server.log" 2>&1 &
pids=$!
server=$(port_of "$work/server.log")
build/relay --listen 127.0.0.1:0 --to "127.0.0.1:$server" --delay 20 --loss 4 --duplicate 8 --seed 3 --seconds 60 \
    --pcap "$work/sample.pcap" >"$work/relay.log" 2>&1 &
relay=$!
pids="$pids $relay"
port=$(port_of "$work/relay.log")
build/token mint --key-file "$work/game.key" --client-id 1001 --user-data "captured for you" --output "$work/token.json" \
    "127.0.0.1:$port=127.0.0.1:$server"
build/client --count 16 --rate 30 --bytes 48 "$work/token.json" >"$work/client.log" 2>&1 || {
    cat "$work/client.log" >&2
    exit 1
}
sleep 1 # the client's goodbye is still on its way
kill "$relay"
wait "$relay" || :
pids=${pids% *}
build/token keylog "$work/token.json" >"$work/sample.keys"
cp "$work/sample.pcap" "$work/sample.keys" "$out"
echo "$out/sample.pcap: $(wc -c <"$out/sample.pcap") bytes"
