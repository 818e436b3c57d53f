#!/bin/sh
# Makes two Debian packages, without a network and without root:
#
#     libnetcode-dev    netcode.h, netcode.pc, the CMake files
#     netcode-tools     netcode-token, with a manual page
#
#     sh examples/packaging/deb.sh [FOLDER]      into build/deb by default; prints their names
#
# Needs dpkg-dev, and what `make install` needs. The same source gives the same bytes: all times are SOURCE_DATE_EPOCH, or the last
# commit's. MAINTAINER="Name <address>" is written into the packages: set it to yours.
set -eu

cd "$(dirname "$0")/../.."
out=${1:-build/deb}
maintainer=${MAINTAINER:-Nobody in particular <nobody@example.org>}
version=$(sed -n 's/^#define NETCODE_VERSION_FULL "\(.*\)"$/\1/p' netcode.h)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git --no-replace-objects log -1 --no-show-signature --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
umask 022
mkdir -p "$out"
out=$(cd "$out" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' INT TERM HUP
dev=$stage/libnetcode-dev
tools=$stage/netcode-tools

documents() { # $1: the package's folder
    folder=$1/usr/share/doc/${1##*/}
    install -d "$folder"
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        echo "Upstream-Name: netcode.h"
        echo
        echo "Files: *"
        sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
        echo "License: Expat"
        sed -n '/^Permission is/,$p' LICENSE | sed -e 's/^$/./' -e 's/^/ /'
    } >"$folder/copyright"
    {
        echo "netcode ($version) unstable; urgency=medium"
        echo
        echo "  * Release $version; the changelog at the end of netcode.h says what is new."
        echo
        echo " -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$folder/changelog.gz"
}

# shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
command_for_debian() { # with the flags of Debian's own builds; no path of this machine stays in it
    flags() { DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"; }
    ${CC:-cc} $(flags CPPFLAGS) $(flags CFLAGS) -I. $(sh tests/tools/deps.sh --cflags) examples/token.c $(flags LDFLAGS) \
        $(sh tests/tools/deps.sh --libs) -lm -o "$tools/usr/bin/netcode-token"
    strip --remove-section=.comment --remove-section=.note "$tools/usr/bin/netcode-token"
}

manual_page() { # what the command says of itself, laid out as it does
    token=$tools/usr/bin/netcode-token
    echo ".TH NETCODE-TOKEN 1 \"\" \"netcode.h $version\""
    echo ".SH NAME"
    echo "netcode-token \\- make and look at netcode connect tokens"
    echo ".SH DESCRIPTION"
    echo ".nf"
    {
        "$token" --help
        for command in $("$token" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
            echo
            "$token" "$command" --help
        done
    } | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\&\\1/"
    echo ".fi"
}

control() { # $1: the package's folder; $2: its architecture; the rest: lines of its own. The description comes from standard input
    folder=$1
    install -d "$folder/DEBIAN"
    (cd "$folder" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$folder/DEBIAN/md5sums"
    {
        echo "Package: ${folder##*/}"
        echo "Source: netcode"
        echo "Version: $version"
        echo "Architecture: $2"
        echo "Maintainer: $maintainer"
        echo "Installed-Size: $(du -sk --apparent-size "$folder/usr" | cut -f 1)"
        shift 2
        for line; do echo "$line"; done
        echo "Priority: optional"
        sed '2,$s/^/ /'
    } >"$folder/DEBIAN/control"
}

shared_libraries() { # the packages of those that the command is linked with
    install -d "$stage/shlibs/debian"
    echo "Source: netcode" >"$stage/shlibs/debian/control"
    (cd "$stage/shlibs" && dpkg-shlibdeps -O "$tools/usr/bin/netcode-token" 2>"$stage/shlibs/log") | sed 's/^shlibs:Depends=/Depends: /'
}

pack() { # $1: the package's folder
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    file=$out/${1##*/}_${version}_$(sed -n 's/^Architecture: //p' "$1/DEBIAN/control").deb
    dpkg-deb --root-owner-group --build "$1" "$file" >/dev/null
    echo "$file"
}

make -s install DESTDIR="$dev" PREFIX=/usr >"$stage/log" 2>&1 || { cat "$stage/log" >&2 && exit 1; }
# The header is for every processor, so its files are not in lib.
install -d "$dev/usr/share" "$tools/usr/bin" "$tools/usr/share/man/man1"
mv "$dev/usr/lib/cmake" "$dev/usr/lib/pkgconfig" "$dev/usr/share"
rm -r "${dev:?}/usr/bin"
rmdir "$dev/usr/lib"
command_for_debian
manual_page | gzip -9n >"$tools/usr/share/man/man1/netcode-token.1.gz"
documents "$dev"
documents "$tools"

control "$dev" all "Section: libdevel" "Depends: libsodium-dev" "Suggests: netcode-tools, pkgconf | pkg-config" <<END
Description: secure client/server connections over UDP for games
The netcode 1.02 protocol in a single C header: connect tokens from a web
backend, encrypted and authenticated packets, and messages on top of them.
.
One file of a program defines NETCODE_IMPLEMENTATION before it includes
netcode.h, and links with libsodium. Files for pkg-config and CMake are there.
END
control "$tools" "$(dpkg --print-architecture)" "Section: utils" "$(shared_libraries)" <<END
Description: make and look at netcode connect tokens
The command netcode-token makes private keys and connect tokens for game
servers that use netcode.h, and shows what is in a token or in a capture.
END
pack "$dev"
pack "$tools"
