#!/bin/sh
# make games: two bots play Pong over messages, once directly and once through a lossy relay that gives each of them another port every three
# seconds, as a bad router does. Fails unless all that must hold held.
set -u

cd "$(dirname "$0")/../.." || exit 1
SERVER=${SERVER:-127.0.0.1:41700}
RELAY=${RELAY:-127.0.0.1:41701}
SECONDS_EACH=${SECONDS_EACH:-8}

./build/pong server "$SERVER" --seconds 170 >build/games.log &
server=$!
./build/relay --listen "$RELAY" --to "$SERVER" --loss 3 --delay 50 --jitter 10 --rebind-every 3 --seconds 170 &
relay=$!
trap 'kill $server $relay 2>/dev/null' EXIT
sleep 0.5
status=0
for via in "" "--via $RELAY"; do
    # shellcheck disable=SC2086 # none or two words
    ./build/pong client "$SERVER" --bot --seconds "$SECONDS_EACH" $via &
    bot=$!
    # shellcheck disable=SC2086
    ./build/pong client "$SERVER" --bot --seconds "$SECONDS_EACH" $via || status=1
    wait $bot || status=1
done
kill "$server"
wait "$server"
cat build/games.log
grep -q "summary .* players=4 .* moves=[1-9]" build/games.log || {
    echo "games: the server saw no player's port change, or another number of players than four"
    status=1
}
exit $status
