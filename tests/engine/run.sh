#!/bin/sh
# make engine: netcode.h in a real engine's source tree. Fetches Chocolate Doom from Debian, builds its client and its dedicated server as they
# are, and again with net_netcode.c in the place of their network file; then run.py plays both, in a network of their own.
#
#     run.sh          everything
#     run.sh build    builds, and shows what was touched
#
# No line of the engine is stored here. It is built in build/engine, once; later runs only play.
set -u

cd "$(dirname "$0")/../.." || exit 1
. tests/tools/skip.sh
work=$PWD/build/engine
failed=0
case $* in
'' | build) ;;
*) echo "run.sh: unknown: $*; there is: build" >&2 && exit 2 ;;
esac

# libsodium_source.sh ends the script by this, in its own words.
# shellcheck disable=SC2317 # it is called there
no_libsodium() {
    echo "engine: $1"
    skip engine "Chocolate Doom's source can not be had"
}
. tests/tools/libsodium_source.sh

find_tree() {
    tree=$(find "$work/source" -maxdepth 1 -type d -name 'chocolate-doom-*' 2>/dev/null | head -n 1)
}

fetch() {
    find_tree
    [ -z "$tree" ] || return 0
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    libsodium_source_lines | sort -u >"$work/apt/sources.list"
    [ -s "$work/apt/sources.list" ] || skip engine "this machine's apt sources name no Debian archive"
    echo "fetching Chocolate Doom's source package"
    rm -rf "$work/source" "$work/build" "$work/original" "$work/netcode" && mkdir -p "$work/source"
    libsodium_apt update >"$work/apt/log" 2>&1 # one list of many may be missing; what is wanted shows when it is fetched
    (cd "$work/source" && libsodium_apt source chocolate-doom >>"$work/apt/log" 2>&1) || {
        rm -rf "$work/source"
        skip engine "Chocolate Doom's source can not be had, see build/engine/apt/log"
    }
    find_tree
    (cd "$tree" && find . -type f ! -name .gitignore -exec sha256sum {} +) >"$work/files.sha256"
}

# $1: the folder that the two programs go to
build() {
    if ! { nice -n 5 cmake -S "$tree" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DENABLE_SDL2_MIXER=Off &&
        nice -n 5 make -C "$work/build" -j2 chocolate-doom chocolate-server; } >"$work/build.log" 2>&1; then
        tail -n 20 "$work/build.log"
        echo "FAIL the engine does not build, see build/engine/build.log"
        exit 1
    fi
    mkdir -p "$1" && cp -p "$work/build/src/chocolate-doom" "$work/build/src/chocolate-server" "$1/"
}

# The engine as it is. SDL_mixer is not linked, because the test has no sound; but the engine includes its header all the same.
build_original() {
    [ -x "$work/original/chocolate-server" ] && return
    echo "building Chocolate Doom as it is (a minute)"
    build "$work/original"
}

stale() { # is one of ours newer than what was built of it?
    [ ! -x "$work/netcode/chocolate-server" ] ||
        [ -n "$(find netcode.h examples/secret_file.h tests/engine/net_netcode.c tests/engine/edits.sed -newer "$work/netcode/chocolate-server")" ]
}

# The same tree with our file: every other object stays as it is. Twice edited is as once edited.
build_ours() {
    stale || return 0
    echo "building it with net_netcode.c in the place of net_sdl.c"
    cp netcode.h examples/secret_file.h tests/engine/net_netcode.c "$tree/src/" || exit 1
    [ -f "$work/CMakeLists.txt" ] || cp -p "$tree/src/CMakeLists.txt" "$work/CMakeLists.txt"
    sed -f tests/engine/edits.sed "$work/CMakeLists.txt" >"$tree/src/CMakeLists.txt"
    build "$work/netcode"
}

# What a game does not reach, with sanitizers.
build_module() {
    [ -x "$work/module" ] && [ -z "$(find netcode.h tests/engine/*.c -newer "$work/module")" ] && return
    # shellcheck disable=SC2046,SC2086 # a compiler such as `ccache gcc`, and flags, are lists of words
    nice -n 5 ${CC:-cc} -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -Wl,--wrap=getaddrinfo -Wall -Wextra -I. -Iexamples -Itests/engine \
        -I"$work/build" -isystem "$tree/src" $(sh tests/tools/deps.sh --cflags) tests/engine/module.c "$tree/src/net_io.c" \
        "$tree/src/net_packet.c" $(sh tests/tools/deps.sh --libs) -o "$work/module" || exit 1
}

# What was touched, line for line.
show_edits() {
    lines=$(diff "$work/CMakeLists.txt" "$tree/src/CMakeLists.txt" | grep -c '^>')
    others=$(cd "$tree" && sha256sum -c --quiet "$work/files.sha256" 2>/dev/null | grep -vc '^./src/CMakeLists.txt: FAILED$')
    warned=$(grep -c 'net_netcode.c:.*warning' "$work/build.log")
    if [ "$lines" = 6 ] && [ "$others" = 0 ] && [ "$warned" = 0 ]; then
        echo "ok: touched: 6 lines of src/CMakeLists.txt, no other file of the engine; 3 files added"
    else
        echo "FAIL: $lines lines of src/CMakeLists.txt (expected 6) and $others other files are changed, $warned warnings"
        failed=1
    fi
    # The page lists these lines by their numbers.
    numbers=$(diff "$work/CMakeLists.txt" "$tree/src/CMakeLists.txt" | sed -n 's/^\([0-9]*\)c.*/\1/p')
    for number in $numbers; do
        grep -q "^| $number | " examples/docs/ENGINES.md && continue
        echo "FAIL: line $number of src/CMakeLists.txt is changed, and examples/docs/ENGINES.md does not say so"
        failed=1
    done
    [ "$failed" = 1 ] || echo "ok: those are the lines $(echo "$numbers" | tr '\n' ' ')that examples/docs/ENGINES.md lists"
}

sh tests/tools/need.sh cmake:cmake dpkg-dev:dpkg-source pkg-config:pkg-config libsdl2-dev:pc=sdl2 libsdl2-net-dev:pc=SDL2_net \
    libsdl2-mixer-dev:pc=SDL2_mixer || exit 1
sh tests/tools/deps.sh || exit 1
fetch
build_original
build_ours
show_edits
[ "${1:-}" != build ] || exit "$failed"
sh tests/tools/need.sh freedm:/usr/share/games/doom/freedm.wad xvfb:Xvfb xdotool:xdotool iproute2:ip util-linux:unshare python3:python3 || exit 1
build_module
make -s build/token || exit 1

# A network of their own, with loopback alone: nothing can leave it, and no port of this machine is used.
# shellcheck disable=SC2016 # "$@" is for the inner shell
own='ip link set lo up && exec "$@"'
for options in --net "--net --user --map-root-user"; do
    # shellcheck disable=SC2086 # a list of words
    if unshare $options sh -c "$own" engine true 2>/dev/null; then
        unshare $options sh -c "$own" engine "$work/module" 2>"$work/module.log" || {
            cat "$work/module.log"
            failed=1
        }
        unshare $options sh -c "$own" engine "${PYTHON:-python3}" tests/engine/run.py || failed=1
        exit "$failed"
    fi
done
skip engine "a network namespace can not be had here"
