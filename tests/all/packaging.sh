#!/bin/sh
# Builds and runs the consumer in examples/packaging/consumer with netcode.h from every place that its README names: plain cc, pkg-config, CMake
# (find_package, FetchContent, add_subdirectory), Meson (wrap, folder, pkg-config), Debian packages. Runs the recipes with stand-ins for tools
# that are not here, compares all version numbers, and plants faults that each kind of check has to notice.
#
#     sh tests/all/packaging.sh          everything
#     sh tests/all/packaging.sh quick    the ways in that most take: make install, pkg-config, CMake, the Debian packages
#
# Works on a copy in a temporary folder that it removes; KEEP=1 leaves it. Where it may, it cuts the network off first: nothing is fetched by a
# build.
# shellcheck disable=SC2317 # check calls the functions
set -u

cd "$(dirname "$0")/../.." || exit 1
packaging=examples/packaging
checks_name=packaging
. tests/tools/checks.sh

if [ -z "${PACKAGING_CUT:-}" ]; then
    sh tests/tools/need.sh gcc:gcc g++:g++ git:git make:make cmake:cmake meson:meson ninja-build:ninja pkg-config:pkg-config \
        dpkg-dev:dpkg-shlibdeps libsodium-dev:/usr/include/sodium.h python3:python3 >&2 || {
        echo "packaging: 0 passed, 1 failed"
        exit 1
    }
    # Where these two can not be had, their checks are skipped.
    [ "${1:-}" = quick ] || sh tests/tools/need.sh lintian:lintian ruby:ruby >&2
    PACKAGING_CUT=no
    export PACKAGING_CUT
    [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null && PACKAGING_CUT=yes exec unshare --net sh tests/all/packaging.sh "$@"
fi

work=$(mktemp -d) || exit 1
checks_log=$work/log
# shellcheck disable=SC2064 # now
[ -n "${KEEP:-}" ] || trap "rm -rf '$work'" EXIT
trap 'exit 130' INT TERM HUP
# Others may build and edit here meanwhile.
mkdir -p "$work/source/tests/all"
cp -r netcode.h LICENSE Makefile examples "$work/source"
cp -r tests/tools "$work/source/tests"
cp -r tests/all/packaging "$work/source/tests/all"
cd "$work/source" || exit 1
top=$work/source
version=$(sed -n 's/^#define NETCODE_VERSION_FULL "\(.*\)"$/\1/p' netcode.h)
cc=${CC:-cc}
cxx=${CXX:-c++}
# What the tests around this one set would be taken by the builds.
unset DESTDIR PREFIX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH CMAKE_PREFIX_PATH MAKEFLAGS
export CC="$cc" CXX="$cxx" CMAKE_GENERATOR=Ninja PYTHONDONTWRITEBYTECODE=1

# ---- what the checks are made of ----

refused() { # a command that has to fail; its words are kept for says
    if "$@" >"$work/refusal" 2>&1 </dev/null; then
        echo "this did not fail: $*"
        return 1
    fi
    cat "$work/refusal"
}

none() { # a command that has to find nothing. `! command` alone would not stop anything
    ! "$@"
}

says() { # $1: a pattern in what the last refused command printed
    tr -s '\n ' '  ' <"$work/refusal" | grep -q -- "$1"
}

plays() { # $1: C or C++; $2: a program
    "$2" >"$work/output"
    cat "$work/output"
    grep -qx "$1, header $version, library $version, 5 payloads came back" "$work/output"
}

all_play() { # $1: the folder of consumer_c, consumer_cpp and consumer_mixed
    plays C "$1/consumer_c"
    plays C++ "$1/consumer_cpp"
    plays C++ "$1/consumer_mixed"
}

# shellcheck disable=SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
compile() { # $1: the folder for the programs; $2: flags for the compiler; $3: for the linker
    mkdir -p "$1"
    consumer=$packaging/consumer
    $cc -std=c99 -Wall -Wextra -Werror $2 -c $consumer/netcode.c -o "$1/netcode.o"
    $cc -std=c99 -Wall -Wextra -Werror $2 $consumer/main.c "$1/netcode.o" $3 -o "$1/consumer_c"
    $cxx -std=c++11 -Wall -Wextra -Werror $2 $consumer/main.cpp $consumer/netcode.cpp $3 -o "$1/consumer_cpp"
    $cxx -std=c++11 $2 $consumer/main.cpp "$1/netcode.o" $3 -o "$1/consumer_mixed"
    all_play "$1"
}

configure() { # $1: a new build folder; the rest: options
    build=$1
    shift
    cmake -S "$packaging/consumer" -B "$build" "$@"
}

by_cmake() { # $1: a new build folder; the rest: options
    configure "$@"
    cmake --build "$1" --parallel 2
    all_play "$1"
}

c_by_cmake() { # the same with the consumer in C alone
    configure "$@" -DCONSUMER_LANGUAGES=C
    cmake --build "$1" --parallel 2
    plays C "$1/consumer_c"
}

by_meson() { # $1: a project; the rest: options
    project=$1
    shift
    meson setup "$@" "$project/build" "$project"
    ninja -C "$project/build" -j 2
    all_play "$project/build"
}

pkg_config() { # $1: a folder of .pc files; the rest: arguments
    folder=$1
    shift
    PKG_CONFIG_PATH="$folder" pkg-config "$@" netcode
}

no_routes() { # the table is empty, or has its headline only
    [ "$(wc -l </proc/net/route)" -le 1 ]
}

# ---- installations ----

by_make() {
    make -s install PREFIX="$work/prefix"
    "$work/prefix/bin/netcode-token" --help >/dev/null
}

installed_by_cmake() { # the same files as `make install`, but for the command
    cmake -S "$packaging/cmake" -B "$work/cmake-install"
    cmake --install "$work/cmake-install" --prefix "$work/prefix-cmake"
    sed "s|$work/prefix-cmake|$work/prefix|" "$work/prefix-cmake/lib/pkgconfig/netcode.pc" | diff - "$work/prefix/lib/pkgconfig/netcode.pc"
    diff -r -x bin -x netcode.pc "$work/prefix" "$work/prefix-cmake"
}

moved() { # find_package works where the prefix has gone
    cp -r "$work/prefix" "$work/elsewhere"
    by_cmake "$work/build-package" -DNETCODE_FROM=package -DCMAKE_PREFIX_PATH="$work/elsewhere"
    # The header of the prefix that was asked for, and no other.
    grep -q "$work/elsewhere/include" "$work/build-package/build.ninja"
    none grep -q "$work/prefix/include" "$work/build-package/build.ninja"
}

# ---- CMake ----

one_language() { # $1: C or CXX; $2: the program; $3: what it calls its language
    configure "$work/build-$1" -DCONSUMER_LANGUAGES="$1" -DCMAKE_PREFIX_PATH="$work/prefix"
    cmake --build "$work/build-$1"
    plays "$3" "$work/build-$1/$2"
}

version_asked() { # $1: taken or refused; $2: what find_package asks for, against the version 1.4.2
    printf 'cmake_minimum_required(VERSION 3.19)\nproject(x LANGUAGES NONE)\nfind_package(netcode %s CONFIG QUIET)\n' "$2" >"$work/asks/CMakeLists.txt"
    # A compiler is not asked for: libsodium is one that the project brings.
    # shellcheck disable=SC2016 # CMake expands it
    printf 'if(netcode_FOUND)\nmessage(FATAL_ERROR "taken ${netcode_VERSION}")\nendif()\nmessage(FATAL_ERROR refused)\n' >>"$work/asks/CMakeLists.txt"
    sed -i '2a add_library(netcode::sodium INTERFACE IMPORTED)' "$work/asks/CMakeLists.txt"
    refused cmake -S "$work/asks" -B "$work/asks/build" -DCMAKE_PREFIX_PATH="$work/asks/prefix"
    says "$1"
}

versions_asked() {
    mkdir -p "$work/asks/prefix/include"
    cp netcode.h "$work/asks/prefix/include"
    sh "$packaging/cmake/install.sh" "$work/asks/prefix/lib/cmake/netcode" 1.4.2
    for asked in "" 1 1.0 1.4 1.4.2 "1.4.2 EXACT" 1.0...1.9 "1.0...<2" 1.0...1.4.2 1.4...3; do version_asked "taken 1.4.2" "$asked"; done
    for asked in 0.9 2 2.0 1.5 1.4.3 "1.4 EXACT" 1.0...1.3 "1.0...<1.4.2" 0.5...1.9 2...3; do version_asked refused "$asked"; done
}

without_pkg_config() { # the search for sodium.h and the library
    c_by_cmake "$work/build-search" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
    grep -q '^NETCODE_SODIUM_LIBRARY:FILEPATH=/' "$work/build-search/CMakeCache.txt"
}

without_libsodium() { # $1: package or subdirectory
    set -- "$1" -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON -DNETCODE_SODIUM_LIBRARY=NETCODE_SODIUM_LIBRARY-NOTFOUND \
        -DCMAKE_FIND_ROOT_PATH="$work/nowhere" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=NEVER
    from=$1
    shift
    refused configure "$work/build-none-$from" -DNETCODE_FROM="$from" -DCMAKE_PREFIX_PATH="$work/prefix" "$@"
    says "netcode needs libsodium"
}

own_libsodium() { # a project's own target is taken: here one that leads to a folder without libsodium, so the compiler complains of that
    echo 'add_library(netcode::sodium INTERFACE IMPORTED GLOBAL)
target_link_libraries(netcode::sodium INTERFACE the_projects_own_sodium)' >"$work/own.cmake"
    configure "$work/build-own" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_PROJECT_INCLUDE="$work/own.cmake" -DCONSUMER_LANGUAGES=C
    refused cmake --build "$work/build-own"
    says the_projects_own_sodium
}

without_header() {
    cp -r "$work/prefix" "$work/prefix-empty"
    rm "$work/prefix-empty/include/netcode.h"
    refused configure "$work/build-empty" -DCMAKE_PREFIX_PATH="$work/prefix-empty"
    says "netcode.h is not in the prefix"
}

with_spaces() { # folders with a space in their names: the prefix, the source and the builds
    mkdir -p "$work/a b"
    cp -r "$work/source" "$work/a b/source"
    make -s -C "$work/a b/source" install PREFIX="$work/a b/prefix"
    [ ! -e "$work/a b/source/b" ]
    flags=$(pkg_config "$work/a b/prefix/lib/pkgconfig" --cflags --libs)
    eval "$cc -std=c99 $packaging/consumer/main.c $packaging/consumer/netcode.c $flags -o '$work/a b/consumer'"
    plays C "$work/a b/consumer"
    TMPDIR="$work/a b" sh "$work/a b/source/$packaging/deb.sh" "$work/a b/deb"
    cmp "$work/a b/deb/${dev##*/}" "$dev"
    c_by_cmake "$work/a b/build-package" -DNETCODE_FROM=package -DCMAKE_PREFIX_PATH="$work/a b/prefix"
    c_by_cmake "$work/a b/build-fetch" -DNETCODE_FROM=fetch -DNETCODE_SOURCE="$work/a b/source"
    sh "$work/a b/source/$packaging/versions.sh"
    make -s -C "$work/a b/source" uninstall PREFIX="$work/a b/prefix"
    [ -z "$(find "$work/a b/prefix" ! -type d)" ]
}

# ---- repositories ----

repository() { # what a release is: a commit and its tag. Only what packaging needs, as FetchContent and Meson see nothing else
    mkdir -p "$1/tests/tools" "$1/examples"
    cp netcode.h LICENSE "$1"
    cp tests/tools/netcode.pc.in "$1/tests/tools"
    cp -r "$packaging" "$1/examples"
    git -C "$1" init -q
    git -C "$1" add -A
    git -C "$1" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -q -m "Release $version"
    git -C "$1" tag "v$version"
}

fetch_project() { # $1: a folder; $2: the line that declares netcode
    mkdir -p "$1"
    cp "$packaging/consumer/main.c" "$packaging/consumer/netcode.c" "$1"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.18...3.25)' 'project(game C)' 'include(FetchContent)' "$2" \
        'FetchContent_MakeAvailable(netcode)' 'add_executable(game main.c netcode.c)' 'target_link_libraries(game PRIVATE netcode::netcode)' \
        >"$1/CMakeLists.txt"
}

# shellcheck disable=SC2016 # backquotes of the README
fetch_as_told() { # the README's line, with an archive; without SOURCE_SUBDIR it fails as the README says
    git -C "$work/repository" archive --prefix=netcode/ -o "$work/archive.tar.gz" HEAD
    line=$(sed -n 's/.*`\(FetchContent_Declare([^`]*)\)`.*/\1/p' "$packaging/README.md" | sed -e "s|YOUR_ARCHIVE|file://$work/archive.tar.gz|" \
        -e "s|SHA256=[.]*|SHA256=$(sha256sum "$work/archive.tar.gz" | cut -d ' ' -f 1)|")
    fetch_project "$work/fetch-archive" "$line"
    cmake -S "$work/fetch-archive" -B "$work/fetch-archive/build"
    cmake --build "$work/fetch-archive/build"
    plays C "$work/fetch-archive/build/game"
    fetch_project "$work/fetch-root" "$(echo "$line" | sed 's|SOURCE_SUBDIR [^ ]*||')"
    refused cmake -S "$work/fetch-root" -B "$work/fetch-root/build"
    says "$(sed -n 's/.*ends with `\(links to.*\)`.*/\1/p' "$packaging/README.md" | sed 's/ but the/.*but the/')"
}

subdir_first() { # wherever FetchContent is shown
    [ "$(grep -rh "FetchContent_Declare(" "$packaging" | grep -c "Declare(netcode SOURCE_SUBDIR examples/packaging/cmake ")" -ge 4 ]
    none grep -rn "FetchContent_Declare(netcode [^S]\|FetchContent_Declare(netcode SOURCE_DIR" "$packaging"
}

meson_project() { # $1: a folder: the consumer, and nothing in subprojects
    mkdir -p "$1/subprojects"
    cp "$packaging"/consumer/*.c "$packaging"/consumer/*.cpp "$packaging/consumer/meson.build" "$1"
}

meson_wrap() {
    meson_project "$work/meson-wrap"
    cp -r "$packaging/meson/." "$work/meson-wrap/subprojects"
    sed -i "s|^url = .*|url = file://$work/repository|" "$work/meson-wrap/subprojects/netcode.wrap"
    by_meson "$work/meson-wrap" --force-fallback-for=netcode
    grep -q "Executing subproject netcode" "$work/meson-wrap/build/meson-logs/meson-log.txt"
    cmp netcode.h "$work/meson-wrap/subprojects/netcode/netcode.h"
}

meson_folder() {
    meson_project "$work/meson-folder"
    mkdir "$work/meson-folder/subprojects/netcode"
    cp netcode.h "$packaging/meson/packagefiles/netcode/meson.build" "$work/meson-folder/subprojects/netcode"
    printf '[wrap-file]\ndirectory = netcode\n\n[provide]\ndependency_names = netcode\n' >"$work/meson-folder/subprojects/netcode.wrap"
    by_meson "$work/meson-folder" --force-fallback-for=netcode --wrap-mode=nodownload
}

meson_installed() {
    meson_project "$work/meson-installed"
    PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" by_meson "$work/meson-installed" --wrap-mode=nofallback
    grep -q "netcode found: YES $version" "$work/meson-installed/build/meson-logs/meson-log.txt"
}

meson_stale() { # the meson.build of another release
    meson_project "$work/meson-stale"
    cp -r "$work/meson-folder/subprojects" "$work/meson-stale"
    sed -i 's/_FULL "[0-9.]*"/_FULL "1.0.77"/' "$work/meson-stale/subprojects/netcode/netcode.h"
    refused meson setup "$work/meson-stale/build" "$work/meson-stale" --force-fallback-for=netcode --wrap-mode=nodownload
    says "netcode.h is not version $version"
}

# ---- Debian ----

packages() { # twice the same bytes, whatever the time
    sh "$packaging/deb.sh" "$work/deb"
    sleep 1
    sh "$packaging/deb.sh" "$work/deb-again"
    diff -r "$work/deb" "$work/deb-again"
    [ -e "$dev" ] && [ -e "$tools" ]
}

field() { # $1: a package; $2: a field; $3: a pattern of its whole value
    dpkg-deb --field "$1" "$2" | grep -qx -- "$3" || {
        echo "$2 of $1: $(dpkg-deb --field "$1" "$2")"
        return 1
    }
}

package_fields() {
    for package in "$dev" "$tools"; do
        field "$package" Version "$version"
        field "$package" Maintainer '.* <.*@.*>'
        field "$package" Installed-Size '[1-9][0-9]*'
        dpkg-deb --field "$package" Description | head -n 1 | grep -Eq '^[a-z].{10,78}[^.]$'
    done
    field "$dev" Depends 'libsodium-dev'
    field "$dev" Architecture all
    field "$dev" Section libdevel
    field "$tools" Depends '.*libsodium[0-9].*'
    field "$tools" Depends '.*libc6 .*'
    field "$tools" Architecture "$(dpkg --print-architecture)"
}

package_contents() { # owned by root, writable by no other, only where Debian's policy allows it; all listed with its sum
    for package in "$dev" "$tools"; do
        dpkg-deb --contents "$package" >"$work/contents"
        cat "$work/contents"
        none grep -v ' root/root ' "$work/contents"
        none grep -Ev '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) ' "$work/contents"
        none grep -E ' \./(usr/local|usr/lib|tmp|home|root|work)' "$work/contents"
        grep -q '/copyright$' "$work/contents"
        grep -q '/changelog.gz$' "$work/contents"
        rm -rf "$work/sums"
        dpkg-deb --raw-extract "$package" "$work/sums"
        (cd "$work/sums" && md5sum --quiet -c DEBIAN/md5sums)
        [ "$(wc -l <"$work/sums/DEBIAN/md5sums")" = "$(find "$work/sums/usr" -type f | wc -l)" ]
    done
    dpkg-deb --fsys-tarfile "$dev" >"$work/dev.tar"
    none grep -a -q "$work" "$work/dev.tar" "$work/sums/usr/bin/netcode-token"
    zcat "$work/sums/usr/share/man/man1/netcode-token.1.gz" | grep -q 'mint *makes a connect token'
    tar -xOf "$work/dev.tar" ./usr/include/netcode.h | cmp - netcode.h
    # Each of them is there: all that is above holds of a package without them.
    tar -tf "$work/dev.tar" ./usr/share/pkgconfig/netcode.pc \
        ./usr/share/cmake/netcode/netcodeConfig.cmake ./usr/share/cmake/netcode/netcodeConfigVersion.cmake ./usr/share/cmake/netcode/netcodeSodium.cmake
    [ -x "$work/sums/usr/bin/netcode-token" ]
}

package_extracted() { # pkg-config and CMake in a folder that stands for the system
    for package in "$dev" "$tools"; do dpkg-deb --extract "$package" "$work/root"; done
    root=$work/root/usr
    [ "$(pkg_config "$root/share/pkgconfig" --modversion)" = "$version" ]
    flags=$(PKG_CONFIG_SYSROOT_DIR="$work/root" pkg_config "$root/share/pkgconfig" --cflags)
    compile "$work/deb-pc" "$flags" "$(pkg_config "$root/share/pkgconfig" --libs)"
    c_by_cmake "$work/build-deb" -DCMAKE_PREFIX_PATH="$root"
    grep -q "$root/include" "$work/build-deb/build.ninja"
    "$root/bin/netcode-token" keygen >/dev/null
}

no_lintian_words() { # with a maintainer whose address could be real
    MAINTAINER="Some One <some.one@debian.org>" sh "$packaging/deb.sh" "$work/deb-lintian"
    lintian --allow-root --display-info --pedantic "$work"/deb-lintian/*.deb >"$work/lintian" 2>&1
    cat "$work/lintian"
    [ ! -s "$work/lintian" ]
}

dpkg_depends() { # dpkg refuses libnetcode-dev while libsodium-dev is missing, and takes it when that is forced
    mkdir -p "$work/empty/var/lib/dpkg/info" "$work/empty/var/lib/dpkg/updates" "$work/empty/var/lib/dpkg/triggers"
    : >"$work/empty/var/lib/dpkg/status"
    set -- --root="$work/empty" --log=/dev/null --force-script-chrootless
    refused dpkg "$@" -i "$dev"
    says "depends on libsodium-dev"
    dpkg "$@" --force-depends -i "$dev"
    [ "$(dpkg-query --admindir="$work/empty/var/lib/dpkg" -W -f '${db:Status-Status} ${Version}' libnetcode-dev)" = "installed $version" ]
    dpkg "$@" -r libnetcode-dev
    [ ! -e "$work/empty/usr/include/netcode.h" ]
}

overlay() { # this system with a layer above it that takes every change and is forgotten; $1: a script that runs in it
    unshare --mount sh -c "set -e
        mkdir -p '$work/layer' && mount -t tmpfs tmpfs '$work/layer' && cd '$work/layer' && mkdir upper inner root
        mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=inner root
        mount --bind /proc root/proc && mount --bind /dev root/dev
        mkdir root/packaging && cp -r '$top/$packaging/consumer' '$dev' '$tools' root/packaging
        chroot root sh -c 'set -e; cd /packaging; $1'"
}

installed_by_dpkg() { # no option names the place to the compilers: the packages put it where they look
    # shellcheck disable=SC2016 # for the shell inside
    overlay '
        dpkg --log=/dev/null -i libnetcode-dev_*.deb netcode-tools_*.deb
        pkg-config --modversion netcode
        cc consumer/main.c consumer/netcode.c $(pkg-config --cflags --libs netcode) -o by_pkg_config
        ./by_pkg_config
        cmake -S consumer -B build -DCONSUMER_LANGUAGES=C
        cmake --build build
        grep -x "netcode_DIR:PATH=/usr/share/cmake/netcode" build/CMakeCache.txt
        ./build/consumer_c
        netcode-token keygen >/dev/null
        dpkg --log=/dev/null -r libnetcode-dev netcode-tools
        [ ! -e /usr/include/netcode.h ] && [ ! -e /usr/bin/netcode-token ]' >"$work/dpkg.log" 2>&1 || {
        cat "$work/dpkg.log"
        return 1
    }
    [ "$(grep -cx "C, header $version, library $version, 5 payloads came back" "$work/dpkg.log")" = 2 ]
    [ ! -e /packaging ]
}

# ---- recipes ----

vcpkg_port() {
    cmake -DPORT="$top/$packaging/vcpkg" -DSOURCE="$top" -DWORK="$work/vcpkg" -P tests/all/packaging/vcpkg.cmake
    [ -s "$work/vcpkg/packages/share/netcode/copyright" ]
    c_by_cmake "$work/build-vcpkg" -DCMAKE_PREFIX_PATH="$work/vcpkg/packages"
    grep -q "$work/vcpkg/packages/include" "$work/build-vcpkg/build.ninja"
}

conan_recipe() {
    [ "$(python3 tests/all/packaging/conan.py "$packaging/conan/conanfile.py" "$work/conan")" = "netcode $version libsodium" ]
    cmp LICENSE "$work/conan/package/licenses/LICENSE"
    compile "$work/conan/build" "-I$work/conan/package/include" "$(pkg-config --libs libsodium)"
}

marked() { # what was not tried says so before anything else
    for recipe in vcpkg/vcpkg.json vcpkg/portfile.cmake conan/conanfile.py homebrew/netcode.rb; do
        head -n 2 "$packaging/$recipe" | grep -q "Untested here"
    done
}

# ---- versions ----

same_versions() {
    sh "$packaging/versions.sh" "$work/prefix" "$dev" "$tools"
    [ "$(sh "$packaging/versions.sh" "$work/prefix" "$dev" "$tools" | grep -c "  *$version\$")" = 19 ]
}

faults() { # versions.sh notices each place that a release forgets
    rm -rf "$work/faults"
    repository "$work/faults"
    cp -r examples/python examples/csharp "$work/faults/examples"
    place=$work/faults/examples/packaging
    sh "$place/versions.sh"
    while IFS='|' read -r file expression; do
        cp "$work/faults/$file" "$work/original"
        sed -i "$expression" "$work/faults/$file"
        none cmp -s "$work/faults/$file" "$work/original"
        refused sh "$place/versions.sh"
        says "1 differ from"
        cp "$work/original" "$work/faults/$file"
    done <<END
netcode.h|s/^\(#define NETCODE_VERSION_MINOR\) .*/\1 7/
netcode.h|1s/$version/1.7.0/
netcode.h|/^    CHANGELOG/,/====/s/^    $version  /    1.7.0  /
examples/packaging/consumer/CMakeLists.txt|s/GIT_TAG v$version/GIT_TAG v1.7.0/
examples/packaging/meson/netcode.wrap|s/v$version/v1.7.0/
examples/packaging/meson/packagefiles/netcode/meson.build|s/version: '$version'/version: '1.7.0'/
examples/packaging/vcpkg/vcpkg.json|s/$version/1.7.0/
examples/packaging/conan/conanfile.py|s/    version = .*/    version = "1.7.0"/
examples/packaging/homebrew/netcode.rb|s/v$version/v1.7.0/
examples/python/netcode.py|s/^VERSION = "$version"/VERSION = "1.7.0"/
examples/csharp/Netcode.cs|s/HeaderVersion = "$version"/HeaderVersion = "1.7.0"/
examples/csharp/Netcode.cs|1s/$version/1.7.0/
examples/csharp/unity/package.json|s/"version": "$version"/"version": "1.7.0"/
examples/csharp/nuget/NetcodeH.nuspec|s/$version/1.7.0/
END
    sed -i 's/_FULL "[0-9.]*"/_FULL "1.7.0"/' "$work/faults/netcode.h"
    refused sh "$place/versions.sh" "$work/prefix" "$dev" "$tools"
    says "18 differ from"
}

# ---- the checks can fail ----

no_libsodium_no_program() {
    refused compile "$work/fail" "-I$top" ""
    says "crypto_aead"
}

another_header() { # a program whose library is of another version than its header must not pass
    mkdir -p "$work/mixed/old"
    sed 's/_FULL "[0-9.]*"/_FULL "0.0.1"/' netcode.h >"$work/mixed/old/netcode.h"
    $cc -I"$work/mixed/old" -c "$packaging/consumer/netcode.c" -o "$work/mixed/netcode.o"
    # shellcheck disable=SC2046 # flags are words
    $cc -I"$top" "$packaging/consumer/main.c" "$work/mixed/netcode.o" $(pkg-config --libs libsodium) -o "$work/mixed/consumer"
    refused plays C "$work/mixed/consumer"
    grep -q "library 0.0.1" "$work/output"
}

no_math() { # the README and every package name libsodium alone: netcode.h must not come to need the math library
    $cc -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -O0 -x c -c netcode.h -o "$work/netcode.o"
    nm -u "$work/netcode.o" | awk '{ print $2 }' | sed 's/@.*//' | sort >"$work/wanted"
    nm -D --defined-only "$(realpath "$($cc -print-file-name=libm.so.6)")" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$work/math"
    grep -qx sqrt "$work/math"
    [ -z "$(comm -12 "$work/wanted" "$work/math")" ]
}

dev=$work/deb/libnetcode-dev_${version}_all.deb
tools=$work/deb/netcode-tools_${version}_$(dpkg --print-architecture).deb

if [ "$PACKAGING_CUT" = yes ]; then
    check "the network is cut off: no build can fetch anything" no_routes
else
    skip "the network is cut off" "it takes root and unshare"
fi
check "make install into a temporary prefix" by_make
check "CMake installs the same files" installed_by_cmake
check "pkg-config, C, C++ and both" compile "$work/pc" "$(pkg_config "$work/prefix/lib/pkgconfig" --cflags)" \
    "$(pkg_config "$work/prefix/lib/pkgconfig" --libs)"
check "CMake find_package, from a prefix that was moved; C, C++ and both" moved
check "Debian packages are made, twice the same" packages
check "Debian packages: their fields" package_fields
check "Debian packages: their contents" package_contents
[ "${1:-}" != quick ] || finish
check "Debian packages, extracted: pkg-config and CMake" package_extracted
check "plain cc, C, C++ and both" compile "$work/plain" "-I$top" -lsodium
check "CMake find_package in a project that is C alone" one_language C consumer_c C
check "CMake find_package in a project that is C++ alone" one_language CXX consumer_cpp C++
check "CMake find_package: 10 requests for versions are taken, 10 refused" versions_asked
check "CMake find_package without pkg-config" without_pkg_config
check "CMake find_package without libsodium says so" without_libsodium package
check "CMake add_subdirectory without libsodium says so" without_libsodium subdirectory
check "CMake find_package takes a project's own netcode::sodium" own_libsodium
check "CMake find_package without netcode.h says so" without_header
check "CMake FetchContent from a folder" by_cmake "$work/build-fetch" -DNETCODE_FROM=fetch
check "CMake add_subdirectory" by_cmake "$work/build-subdirectory" -DNETCODE_FROM=subdirectory
check "a repository with a tag" repository "$work/repository"
check "CMake FetchContent from a repository" by_cmake "$work/build-git" -DNETCODE_FROM=git -DNETCODE_GIT="file://$work/repository"
check "CMake FetchContent from an archive, by the README's line; without SOURCE_SUBDIR it fails as the README says" fetch_as_told
check "wherever FetchContent is shown SOURCE_SUBDIR comes first" subdir_first
check "Meson wrap from a repository" meson_wrap
check "Meson subproject as a folder" meson_folder
check "Meson finds an installed one by pkg-config" meson_installed
check "Meson refuses the meson.build of another release" meson_stale
check "folders with a space in their names: make install and uninstall, pkg-config, CMake, deb.sh" with_spaces
if command -v lintian >/dev/null 2>&1; then
    check "Debian packages: lintian has nothing to say" no_lintian_words
else
    skip "Debian packages: lintian" "it is not installed"
fi
if [ "$(id -u)" = 0 ]; then
    check "dpkg holds libnetcode-dev back until libsodium-dev is there" dpkg_depends
else
    skip "dpkg holds libnetcode-dev back until libsodium-dev is there" "it takes root"
fi
if overlay true >/dev/null 2>&1; then
    check "dpkg installs both into a layer above this system, they serve pkg-config and CMake, and go" installed_by_dpkg
else
    skip "dpkg installs both into a layer above this system" "it takes root and overlayfs"
fi
check "recipes say that they are untested" marked
check "vcpkg's port, with stand-ins for its functions; the consumer by CMake" vcpkg_port
check "Conan's recipe, with a stand-in for its module; the consumer by cc" conan_recipe
if command -v ruby >/dev/null 2>&1; then
    check "Homebrew's formula is Ruby" ruby -c "$packaging/homebrew/netcode.rb"
else
    skip "Homebrew's formula is Ruby" "there is no ruby"
fi
check "15 version numbers are one" same_versions
check "a fault in each of them is noticed" faults
check "without libsodium no consumer links" no_libsodium_no_program
check "a library of another version than its header is noticed" another_header
check "netcode.h needs nothing of the math library" no_math
finish
