#!/bin/sh
# make web: netcode.h in browsers. Builds examples/web, and tests the module, the gateway and pages in real browsers; all on loopback.
#
#     run.sh              every part
#     run.sh WORD...      those of: wasm node gateway browser arena
#     run.sh page         of browser: a page in Chromium plays, and another survives its gateway; nothing in it is judged by time
#
# MATCH_SECONDS=20 plays a match of the arena for that long (60). SECONDS_LONG=600 runs the long check of a page for that long (20), PACKETS=1000000 the check of memory with so many (100000). Each part
# prints a line for each check, and `NAME: N passed, N failed`.
set -u

cd "$(dirname "$0")/../.." || exit 1
web=build/web
failed=0

wanted() { # $1: a part; the rest: words
    part=$1
    shift
    [ $# -gt 0 ] || return 0
    for word; do
        [ "$word" = "$part" ] && return 0
    done
    return 1
}

# What is there already is not fetched again. $1: the folder with package.json; $2: where it goes
install_packages() {
    mkdir -p "$2"
    cp "$1"/package.json "$1"/package-lock.json "$2" || exit 1
    cmp -s "$2/package-lock.json" "$2/node_modules/installed.json" && return
    (cd "$2" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$web/npm.log" 2>&1 || {
        cat "$web/npm.log"
        echo "web: the packages of $1 can not be had"
        exit 1
    }
    cp "$2/package-lock.json" "$2/node_modules/installed.json"
}

stale() { # $1: a product; the rest: what it is made of
    product=$1
    shift
    [ ! -e "$product" ] || [ -n "$(find "$@" -newer "$product")" ]
}

build_tests() {
    stale "$web/tests/test.cjs" netcode.h tests/*.[ch] tests/unit tests/story tests/web/no_sockets.c \
        "$web/libsodium/lib/libsodium.a" || return
    echo "compiling the library's tests to WebAssembly (a minute)"
    # Emscripten 3.1 takes Node.js for a browser if it has fetch; Node.js 18 has no global crypto. -DTEST_NO_WRAP: libsodium's own calls would be counted too.
    echo 'globalThis.fetch = undefined; globalThis.crypto ??= require("node:crypto").webcrypto;' >"$web/tests/no_fetch.js"
    NODE_PATH=/usr/share/nodejs emcc -O1 -w -DTEST_NO_WRAP -I. -I"$web/libsodium/include" tests/main.c tests/web/no_sockets.c \
        --pre-js "$web/tests/no_fetch.js" -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=134217728 -sENVIRONMENT=node -sEXIT_RUNTIME \
        "$web/libsodium/lib/libsodium.a" -o "$web/tests/test.js" || exit 1
    mv "$web/tests/test.js" "$web/tests/test.cjs"
}

run() { # a program and its arguments
    node --expose-gc "$@" || failed=$((failed + 1))
}

# Browsers look for other machines by multicast, and WebRTC for all addresses of this one: they get a network of their own, with loopback
# and one address more, from which nothing can leave. Where that can not be had they run as they are.
run_browsers() {
    # shellcheck disable=SC2016 # "$@" is for the inner shell
    # No link-local addresses: these come a second later, and a browser ends its requests when the network changes.
    own='ip link set lo up && ip link add web0 type veth peer name web1 && ip link set web0 addrgenmode none &&
        ip link set web1 addrgenmode none && ip addr add 10.77.0.1/24 dev web0 && ip link set web0 up && ip link set web1 up &&
        ip route add default via 10.77.0.2 && exec "$@"'
    if unshare --net sh -c "$own" browsers true 2>/dev/null; then
        unshare --net sh -c "$own" browsers node --expose-gc "$@" || failed=$((failed + 1))
    else
        run "$@"
    fi
}

for word; do
    case $word in
    wasm | node | gateway | browser | page | arena) ;;
    *) echo "run.sh: there is no part $word" >&2 && exit 2 ;;
    esac
done
sh tests/tools/need.sh nodejs:node npm:npm util-linux:unshare iproute2:ip || exit 1
mkdir -p "$web/tests"
sh examples/web/build.sh || exit 1
make -s build/server build/token || exit 1
install_packages examples/web "$web/gateway"
cp examples/web/gateway.mjs "$web/gateway/" || exit 1

if wanted wasm "$@"; then
    build_tests
    run tests/web/wasm.mjs
fi
if wanted node "$@"; then
    # shellcheck disable=SC2046 # lists of flags
    ${CC:-cc} -O1 -I. $(sh tests/tools/deps.sh --cflags) tests/web/messages_server.c $(sh tests/tools/deps.sh --libs) -lm \
        -o "$web/tests/messages_server" || exit 1
    run tests/web/node.mjs "--packets=${PACKETS:-100000}"
fi
if wanted gateway "$@"; then
    sh tests/tools/need.sh nginx-light:/usr/sbin/nginx openssl:openssl || exit 1
    run tests/web/gateway.mjs
fi
if wanted browser "$@"; then
    sh tests/tools/need.sh chromium:chromium firefox-esr:firefox-esr python3:python3 || exit 1
    install_packages tests/web "$web/tests/browsers"
    run_browsers tests/web/browser.mjs "--seconds=${SECONDS_LONG:-20}"
fi
if [ $# -gt 0 ] && wanted page "$@"; then
    sh tests/tools/need.sh chromium:chromium || exit 1
    install_packages tests/web "$web/tests/browsers"
    run_browsers tests/web/browser.mjs "plays over a data channel" "the session stays (websocket)"
fi
if wanted arena "$@"; then
    sh tests/tools/need.sh chromium:chromium firefox-esr:firefox-esr xvfb:Xvfb python3:python3 nginx-light:/usr/sbin/nginx openssl:openssl || exit 1
    install_packages tests/web "$web/tests/browsers"
    make -s build/backend build/arena-server build/arena-bots build/arena-client || exit 1
    sh examples/arena/pages.sh || exit 1
    # shellcheck disable=SC2086 # words of a check's title: ARENA_CHECK="Firefox"
    run_browsers tests/web/arena.mjs ${ARENA_CHECK:-} "--seconds=${MATCH_SECONDS:-60}" ${PICTURES:+"--pictures=$PWD/$PICTURES"}
fi
[ "$failed" = 0 ]
