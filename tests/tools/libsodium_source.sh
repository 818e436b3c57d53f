#!/bin/sh
# Sourced by scripts that build libsodium themselves: from Debian's source package, which is the one that Debian's own libsodium is built from.
#
#     libsodium_source    sets source_tree, the folder of the unpacked source below $work; fetches it first where it is not there
#
# The script that reads this has set `work`, a folder in build/, and a function `no_libsodium` that gets a sentence and ends the script. Needs the packages
# dpkg-dev, autoconf, automake and libtool, and apt sources to read the package from.
# shellcheck disable=SC2154 # `work` is set by the script that reads this

# The machine's own sources, as deb-src lines. Other suppliers' entries are left out: Debian's name it, and have the component main.
libsodium_source_lines() {
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$list" ] && sed -n '/debian/s/^deb\(-src\)\{0,1\} \(.* main\( .*\)\{0,1\}\)$/deb-src \2/p' "$list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ -f "$list" ] && awk '
            function flush( i, j ) {
                if ( key != "" ) key = "[signed-by=" key "] "
                if ( ( " " components " " ) ~ / main / && uris ~ /debian/ )
                    for ( i = split( uris, u, " " ); i > 0; i-- )
                        for ( j = split( suites, s, " " ); j > 0; j-- ) print "deb-src " key u[i] " " s[j] " main"
                uris = suites = components = key = ""
            }
            /^#/ { next }
            /^URIs:/ { uris = substr( $0, 6 ) }
            /^Suites:/ { suites = substr( $0, 8 ) }
            /^Components:/ { components = substr( $0, 12 ) }
            /^Signed-By: *\// { key = $2 }
            /^$/ { flush() }
            END { flush() }' "$list"
    done
}

libsodium_apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root "$@" </dev/null
}

libsodium_fetch() {
    command -v apt-get >/dev/null 2>&1 || no_libsodium "libsodium's source comes from Debian, and there is no apt-get here"
    for tool in dpkg-source:dpkg-dev autoreconf:autoconf automake:automake libtoolize:libtool; do
        command -v "${tool%%:*}" >/dev/null 2>&1 || no_libsodium "${tool%%:*} is not installed (package ${tool#*:})"
    done
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    libsodium_source_lines | sort -u >"$work/apt/sources.list"
    [ -s "$work/apt/sources.list" ] || no_libsodium "this machine's apt sources name no Debian archive"
    echo "fetching libsodium's source package"
    rm -rf "$work/source" && mkdir -p "$work/source"
    libsodium_apt update >"$work/apt/log" 2>&1 # one list of many may be missing; what is wanted shows when it is fetched
    (cd "$work/source" && libsodium_apt source libsodium >>"$work/apt/log" 2>&1) || no_libsodium "libsodium's source can not be had, see $work/apt/log"
}

libsodium_source() {
    source_tree=$(find "$work/source" -maxdepth 1 -type d -name 'libsodium-*' 2>/dev/null | head -n 1)
    [ -z "$source_tree" ] || return 0
    libsodium_fetch
    source_tree=$(find "$work/source" -maxdepth 1 -type d -name 'libsodium-*' | head -n 1)
}
