#!/bin/sh
# Godot 3's headers for GDNative, from Debian's source package of the engine: build/godot/include. No line of the engine is stored here.
# The structure of the engine's functions is made by the engine's own generator from its list, so that it can not differ from the engine.
set -eu

cd "$(dirname "$0")/../.."
work=$PWD/build/godot
include=$work/include
[ ! -e "$include/gdnative_api_struct.gen.h" ] || exit 0

no_libsodium() { # what the file below calls where something is missing
    echo "godot: $1" >&2
    exit 1
}

# shellcheck source=tests/tools/libsodium_source.sh disable=SC1091
. tests/tools/libsodium_source.sh

sh tests/tools/need.sh python3:python3 || exit 1
command -v apt-get >/dev/null 2>&1 || no_libsodium "the engine's headers come from Debian's source package, and there is no apt-get here"
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
libsodium_source_lines | sort -u >"$work/apt/sources.list"
[ -s "$work/apt/sources.list" ] || no_libsodium "this machine's apt sources name no Debian archive"
echo "fetching Godot's source package, for its headers (22 MB)"
rm -rf "$work/source" "$include" && mkdir -p "$work/source"
libsodium_apt update >"$work/apt/log" 2>&1 || true # one list of many may be missing; what is wanted shows when it is fetched
# Debian 12 and 13 have Godot 3 as godot; later ones have it as godot3, and Godot 4 as godot.
(cd "$work/source" && libsodium_apt source --download-only godot3 >>../apt/log 2>&1) ||
    (cd "$work/source" && libsodium_apt source --download-only godot >>../apt/log 2>&1) ||
    no_libsodium "Godot's source can not be had, see $work/apt/log"

mkdir "$work/source/tree"
tar -x -f "$work"/source/*.orig.tar.* -C "$work/source/tree" --strip-components=1 --wildcards '*/modules/gdnative/include' \
    '*/modules/gdnative/gdnative_api.json' '*/modules/gdnative/gdnative_builders.py' '*/platform_methods.py' '*/LICENSE.txt' ||
    no_libsodium "this source package is not Godot 3's"
cp -R "$work/source/tree/modules/gdnative/include" "$include.new"
PYTHONPATH=$work/source/tree:$work/source/tree/modules/gdnative python3 -c '
import sys
import gdnative_builders
gdnative_builders.build_gdnative_api_struct(sys.argv[2:], sys.argv[1:2], None)
' "$work/source/tree/modules/gdnative/gdnative_api.json" "$include.new/gdnative_api_struct.gen.h" "$work/source/gdnative_api_struct.gen.cpp"
mv "$include.new" "$include"
rm -f "$work"/source/*.orig.tar.*
