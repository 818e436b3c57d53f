#!/bin/sh
# Godot 4's header for GDExtension, made by the engine's own generator from Debian's source package: build/godot/include4. No line of the
# engine is stored here. Debian 12 and 13 have Godot 3 only: this one comes from unstable, by an apt configuration of its own, so that
# nothing of this machine's changes.
#
#     headers4.sh          the header
#     headers4.sh engine   the engine too, and unstable's Godot 3, without installing them: the commands godot4 and godot3-server in
#                          build/godot/unstable (100 MB, and what they depend on)
set -eu

cd "$(dirname "$0")/../.."
work=$PWD/build/godot/unstable
include=$PWD/build/godot/include4

no_libsodium() { # what the file below calls where something is missing
    echo "godot: $1" >&2
    exit 1
}

# shellcheck source=tests/tools/libsodium_source.sh disable=SC1091
. tests/tools/libsodium_source.sh

# The machine's own archive, but of unstable.
lists() {
    [ ! -e "$work/apt/updated" ] || return 0
    command -v apt-get >/dev/null 2>&1 || no_libsodium "Godot 4 comes from Debian, and there is no apt-get here"
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    libsodium_source_lines | sed -n '/security/d; s/^\(deb-src .*\) [^ ]* main.*/\1 sid main/p' | sort -u | head -n 1 >"$work/apt/sources.list"
    [ -s "$work/apt/sources.list" ] || no_libsodium "this machine's apt sources name no Debian archive"
    sed 's/^deb-src/deb/' "$work/apt/sources.list" >"$work/apt/binary.list"
    cat "$work/apt/binary.list" >>"$work/apt/sources.list"
    : >"$work/apt/status"
    libsodium_apt update >"$work/apt/log" 2>&1 || no_libsodium "the list of unstable's packages can not be had, see $work/apt/log"
    touch "$work/apt/updated"
}

header() {
    [ ! -e "$include/gdextension_interface.h" ] || return 0
    lists
    echo "fetching Godot 4's source, for its header (34 MB)"
    rm -rf "$work/source" "$include" && mkdir -p "$work/source/tree"
    (cd "$work/source" && libsodium_apt source --download-only --tar-only godot >>"$work/apt/log" 2>&1) ||
        no_libsodium "Godot 4's source can not be had, see $work/apt/log"
    tar -x -f "$work"/source/*.orig.tar.* -C "$work/source/tree" --strip-components=1 --wildcards '*/core/extension/*' '*/methods.py' \
        '*/platform_methods.py' '*/version.py' '*/misc/utility/*.py' || no_libsodium "this source is not Godot 4's"
    mkdir -p "$include.new"
    PYTHONPATH=$work/source/tree/core/extension:$work/source/tree python3 -c '
import sys
import make_interface_header
make_interface_header.run(sys.argv[2:], sys.argv[1:2], None)
' "$work/source/tree/core/extension/gdextension_interface.json" "$include.new/gdextension_interface.h" ||
        no_libsodium "the header could not be made: its generator has changed"
    mv "$include.new" "$include"
    rm -f "$work"/source/*.orig.tar.*
}

# The packages are unpacked beside each other, with the C library that they want. An empty list of installed packages lets apt name all.
get_engines() {
    [ ! -x "$work/godot4" ] || return 0
    lists
    echo "fetching Godot 4, unstable's Godot 3 and what they depend on, to run them from build/ (180 MB)"
    root=$work/root
    rm -rf "$root" && mkdir -p "$root"
    libsodium_apt -y --no-install-recommends --download-only -o Dir::State::status="$work/apt/status" install godot godot3-server >>"$work/apt/log" 2>&1 ||
        no_libsodium "Godot 4 can not be had, see $work/apt/log"
    # Since the merge of /lib into /usr its packages agree where things are.
    for folder in bin lib lib64 sbin; do
        mkdir -p "$root/usr/$folder" && ln -s "usr/$folder" "$root/$folder"
    done
    for package in "$work"/apt/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner ./usr ./lib ./lib64 2>/dev/null || true
    done
    rm -f "$work"/apt/cache/archives/*.deb
    loader=$(find "$root/usr" -name 'ld-linux*.so.*' | head -n 1)
    libraries=$(dirname "$(find "$root/usr/lib" -name libc.so.6 | head -n 1)")
    for program in godot3-server godot; do
        if [ -z "$loader" ] || [ ! -x "$root/usr/bin/$program" ]; then
            no_libsodium "Godot's packages are not as they were"
        fi
        command=$work/$program
        [ $program != godot ] || command=$work/godot4
        printf '#!/bin/sh\nexec "%s" --library-path "%s:%s/pulseaudio" "%s/usr/bin/%s" "$@"\n' "$loader" "$libraries" "$libraries" "$root" "$program" \
            >"$command.new"
        chmod +x "$command.new"
        mv "$command.new" "$command"
    done
}

sh tests/tools/need.sh python3:python3 xz-utils:xz dpkg-dev:dpkg-source
header
[ "${1:-}" != engine ] || get_engines
