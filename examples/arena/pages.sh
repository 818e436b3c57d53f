#!/bin/sh
# Builds the arena for browsers, in build/web/play: a folder to be served as it is, under /play/ of the site that has the backend.
set -eu

cd "$(dirname "$0")/../.."
play=build/web/play
mkdir -p "$play"
# What is there and newer than its sources stays as it is.
if [ ! -e "$play/arena_wasm.wasm" ] || [ -n "$(find netcode.h examples/arena examples/web -newer "$play/arena_wasm.wasm" -type f)" ]; then
    echo "building the arena for browsers"
    # -Wno-macro-redefined, -Wno-invalid-pp-token: client.c says NETCODE_MESSAGES itself, and JavaScript has '' where C has not.
    sh examples/web/build.sh --cc -DNDEBUG -Wall -Wextra -Wno-unused-function -Wno-macro-redefined -Wno-invalid-pp-token examples/arena/client.c \
        --no-entry -sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8 -o "$play/arena_wasm.mjs"
fi
cp examples/arena/index.html examples/arena/page.mjs examples/arena/arena.mjs examples/web/transport.mjs "$play"
total=$(cat "$play"/* | wc -c)
packed=0
for file in "$play"/*; do
    packed=$((packed + $(gzip -9 -c "$file" | wc -c)))
done
echo "build/web/play: $total bytes, $packed with gzip"
