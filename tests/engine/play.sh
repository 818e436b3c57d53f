#!/bin/sh
# Chocolate Doom over netcode.h, for you: a dedicated server on this machine, a key, a token, and a window. Build it with `make engine` before.
#
#     play.sh [OPTION...]    options for the game: -window, -nosound, -warp 05 ...
#
# Everything is on loopback, and ends when the game ends.
set -u

cd "$(dirname "$0")/../.." || exit 1
programs=$PWD/build/engine/netcode
address=127.0.0.1:2342
[ -x "$programs/chocolate-server" ] || {
    echo "play.sh: there is no build/engine/netcode yet: make engine" >&2
    exit 1
}
folder=$(mktemp -d) || exit 1
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM
build/token keygen --output "$folder/key" || exit 1
build/token mint --key-file "$folder/key" --client-id 1 --expire 60 --timeout 5 --format base64 --output "$folder/token" "$address" || exit 1
"$programs/chocolate-server" -privateserver -netkey "$folder/key" -netaddress "$address" &
server=$!
sleep 1
"$programs/chocolate-doom" -iwad /usr/share/games/doom/freedm.wad -connect "$address" -nettoken "$folder/token" -nodes 1 -deathmatch "$@"
