#!/bin/bash
# make dist-check: the tarball alone in a new Debian stable that holds make and gcc only, no git. There it is unpacked; libsodium comes from Debian's
# archive, which tests/tools/deps.sh asks; then the network is cut, and a user who is not root types make and make test; root types make install; a
# program that includes <netcode.h> is compiled and run, and one with the single header. With python3 from the archive, the tarball is made again
# from the unpacked tree, and has to be the same. Needs root, debootstrap and the Debian mirror that this machine's apt uses.
#
#     dist.sh                 a snapshot of the commit
#     dist.sh TARBALL         that one, of `make release`; its netcode-VERSION.h lies beside it
set -euo pipefail

cd "$(dirname "$0")/../.."
suite=${SUITE:-stable}
start=$SECONDS

stop() {
    echo "dist.sh: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || stop "needs root, for debootstrap and chroot"
sh tests/tools/need.sh git:git python3:python3 debootstrap:debootstrap util-linux:unshare iproute2:ip

work=$(mktemp -d "${TMPDIR:-/var/tmp}/dist.XXXXXX")
root=$work/root
# Nothing of this machine is mounted into the new one; its /proc goes with the namespace that it is mounted in.
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM HUP
chmod 755 "$work" # apt drops its rights to download

if [ $# -gt 0 ]; then
    tarball=$(realpath "$1")
    snapshot=
else
    [ -z "$(git status --porcelain)" ] || echo "note: only what is committed is tried; there are uncommitted changes"
    git clone -q . "$work/clone"
    python3 "$work/clone/tests/release/release.py" --snapshot >/dev/null
    tarball=$(echo "$work"/clone/build/release/*.tar.gz)
    snapshot=--snapshot
fi
name=$(basename "$tarball" .tar.gz)
single=${tarball%.tar.gz}.h
for file in "$tarball" "$single"; do
    [ -f "$file" ] || stop "there is no $file"
done

mirror() {
    local known
    # shellcheck disable=SC2016 # $(REPO_URI) is apt's
    known=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$known" ] || known=$(grep -rhoE '(URIs:|^deb ).*' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?' | head -n 1)
    [ -n "$known" ] || stop "apt names no Debian mirror; run apt-get update first"
    echo "$known"
}

proxy=$(apt-config dump Acquire::http::Proxy | sed -n 's/^[^"]*"\(.*\)";$/\1/p')
[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
debian=$(mirror)
debootstrap --variant=minbase --include=make,gcc "$suite" "$root" "$debian" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    stop "debootstrap failed"
}
apt-config dump | grep -E '^Acquire::(http::Proxy|Check-)' >"$root/etc/apt/apt.conf.d/90dist" || true
echo "ok: a new Debian $(cat "$root/etc/debian_version") with make and gcc, after $((SECONDS - start)) s"

inside() { # $1: cut or open, the network; $2: the user; the rest: a command in the new Debian
    local network=$1 user=$2
    shift 2
    local spaces=(--mount --pid --fork --kill-child)
    [ "$network" = open ] || spaces+=(--net)
    # shellcheck disable=SC2016 # for the inner shells
    env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb DEPS="$([ "$network" = open ] && echo yes || echo no)" \
        ${http_proxy:+http_proxy="$http_proxy"} unshare "${spaces[@]}" sh -euc '
            root=$1 network=$2 user=$3
            shift 3
            [ "$network" = open ] || {
                ip link set lo up
                [ -z "$(ip route)" ]
            }
            mount -t proc proc "$root/proc"
            exec chroot --userspec="$user" "$root" sh -euc "cd \"\$0\"; export HOME=\"\$0\"; exec \"\$@\"" /home/builder "$@"' \
        inside "$root" "$network" "$user" "$@" </dev/null
}

step() { # $1: what it shows; the rest: a command
    local title=$1 begin=$SECONDS status
    shift
    # Not `"$@" || ...`: behind that a failing line does not end a function.
    set +e
    (
        set -e
        "$@"
    ) >"$work/log" 2>&1
    status=$?
    set -e
    [ "$status" = 0 ] || {
        tail -n 30 "$work/log"
        echo "FAILED: $title"
        exit 1
    }
    echo "ok: $title, $((SECONDS - begin)) s$(sed -n 's/^detail: /: /p' "$work/log" | tail -n 1)"
}

no_git() {
    if inside cut root sh -c 'command -v git || command -v python3 || command -v pkg-config'; then return 1; fi
}

fails_without_a_file() { # what is missing in a tarball is noticed here
    inside cut 1000:1000 sh -euc "mkdir broken && tar -xzf $name.tar.gz -C broken && cd broken/$name && rm tests/test.h"
    if inside cut 1000:1000 make -C "broken/$name" test; then return 1; fi
    grep -q "tests/test.h\|test\.h: No such file" "$work/log"
    rm -rf "$root/home/builder/broken"
}

uses() { # the consumer of examples/packaging with the header in $1, given to the compiler by $2
    inside cut 1000:1000 sh -euc "cp $name/examples/packaging/consumer/*.c $1
        cd $1
        cc -std=c99 -Wall -Wextra -Werror $2 main.c netcode.c -lsodium -o game
        ./game"
    grep -q "5 payloads came back" "$work/log"
    echo "detail: $(grep 'payloads came back' "$work/log")" >>"$work/log"
}

installs() {
    inside cut root make -C "$name" install
    inside cut 1000:1000 netcode-token --help
    cmp "$root/usr/local/include/netcode.h" "$single"
}

uninstalls() {
    inside cut root make -C "$name" uninstall
    [ -z "$(find "$root/usr/local" -type f -newer "$root/home/builder/$name.tar.gz")" ]
}

again() {
    inside open root sh -c 'apt-get install -y -qq --no-install-recommends python3'
    inside cut 1000:1000 sh -euc "umask 077; cd $name && python3 tests/release/release.py $snapshot"
    for file in "$root/home/builder/$name"/build/release/*; do
        cmp "$file" "$(dirname "$tarball")/$(basename "$file")"
    done
    [ "$(find "$root/home/builder/$name/build/release" -type f | wc -l)" = 4 ]
}

mkdir -p "$root/home/builder"
cp "$tarball" "$root/home/builder/$name.tar.gz"
chown -R 1000:1000 "$root/home/builder"
step "there is no git, no python3 and no pkg-config" no_git
step "the tarball unpacks as another user" inside cut 1000:1000 tar -xzf "$name.tar.gz"
step "libsodium comes from Debian's archive, as tests/tools/deps.sh asks for it" inside open root sh "$name/tests/tools/deps.sh"
step "a tarball that lacks a file fails" fails_without_a_file
step "make, without a network" inside cut 1000:1000 make -C "$name"
# Of the tests, this line is what counts them.
step "make test, without a network" inside cut 1000:1000 sh -euc "make -s -C $name --no-print-directory test >test.log || { cat test.log; exit 1; }
    cat test.log; echo \"detail: \$(tail -n 1 test.log)\""
step "make install, without a network" installs
mkdir -p "$root/home/builder/user" "$root/home/builder/alone"
cp "$single" "$root/home/builder/alone/netcode.h"
chown -R 1000:1000 "$root/home/builder/user" "$root/home/builder/alone"
step "a program of a user's that includes <netcode.h>" uses user ""
step "make uninstall" uninstalls
step "the same with the single header in its folder, and nothing installed" uses alone "-I."
step "the unpacked tree, built and tested in, makes the same tarball again" again
echo "dist-check: $name passed, $((SECONDS - start)) s"
