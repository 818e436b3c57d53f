#!/bin/bash
# make fresh: a new Debian stable that holds git, make and gcc only. What README.md has a newcomer type is typed there as it stands,
# in a clone of the committed tree. Needs root, debootstrap and the Debian mirror that this machine's apt uses.
#
#     fresh.sh               `make demo` and `make test`
#     fresh.sh --newcomer    the path from a clone to make demo-full, which installs more: newcomer.sh beside this file
set -euo pipefail

cd "$(dirname "$0")/.."
suite=${SUITE:-stable}
root=
name="make fresh"
newcomer=0
[ "${1-}" != --newcomer ] || {
    name="newcomer.sh"
    newcomer=1
}
MAX_COMMANDS=3 # of a newcomer, from the clone to the game

stop() {
    echo "$name: $1" >&2
    exit 1
}

# Nothing of this machine is mounted into the new one; its /proc goes with the namespace that it is mounted in.
clean() {
    [ -z "$root" ] || rm -rf --one-file-system "$root"
}
trap clean EXIT
trap 'exit 1' INT TERM

# The blocks of sh in which a newcomer types something, in the order of the README. The one with make demo-full is the path of its
# own: it installs what make demo and make test have to do without.
readme_commands() {
    awk -v newcomer="$newcomer" '
        function wanted() {
            if ( text ~ /(^|\n)make demo-full/ )
                return newcomer
            return !newcomer && text ~ /(^|\n)(git clone|make demo|make test)/
        }
        /^```sh$/ { inside = 1; text = ""; next }
        /^```/    { if ( inside && wanted() ) printf "%s", text; inside = 0; next }
        inside    { text = text $0 "\n" }' README.md
}

# The newcomer's path: it begins with the clone, and is short. A line may hold one command only, or the count would mean nothing.
check_path() {
    local lines
    lines=$(grep -cvE '^ *(#|$)' <<<"$commands")
    grep -qE '^git clone ' <<<"$(head -n 1 <<<"$commands")" || stop "the block in README.md with make demo-full does not begin with git clone"
    ! grep -qE '&&|\|\||;|\\$' <<<"$commands" || stop "a line of the path holds more than one command"
    [ "$lines" -le $MAX_COMMANDS ] || stop "README.md needs $lines commands from the clone to make demo-full, and not $MAX_COMMANDS at most"
    echo "== $lines commands from the clone to the game"
}

mirror() {
    # apt knows which of its sources is Debian itself once it has fetched their lists.
    local known
    # shellcheck disable=SC2016 # $(REPO_URI) is apt's
    known=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$known" ] || known=$(grep -rhoE '(URIs:|^deb ).*' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?' | head -n 1)
    [ -n "$known" ] || stop "apt names no Debian mirror; run apt-get update first"
    echo "$known"
}

[ "$(id -u)" = 0 ] || stop "needs root, for debootstrap and chroot"
command -v debootstrap >/dev/null || stop "needs debootstrap: apt-get install -y debootstrap"
commands=$(readme_commands)
expected=("make demo" "make test")
[ $newcomer = 0 ] || expected=("make demo-full")
for wanted in "${expected[@]}"; do
    grep -qE "^$wanted( |\$)" <<<"$commands" || stop "no block of sh in README.md says: $wanted"
done
[ $newcomer = 0 ] || check_path
[ -z "$(git status --porcelain)" ] || echo "note: only what is committed is tried; there are uncommitted changes"

# apt's proxy, if it has one, is debootstrap's and the new system's too; and so is its view of expired package lists.
proxy=$(apt-config dump Acquire::http::Proxy | sed -n 's/^[^"]*"\(.*\)";$/\1/p')
[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
root=$(mktemp -d "${TMPDIR:-/var/tmp}/fresh.XXXXXX")
chmod 755 "$root" # apt drops its rights to download
mirror=$(mirror)
echo "== a new Debian $suite with git, make and gcc"
debootstrap --variant=minbase --include=git,make,gcc "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    stop "debootstrap failed"
}
rm -f "$root.log"
apt-config dump | grep -E '^Acquire::(http::Proxy|Check-)' >"$root/etc/apt/apt.conf.d/90fresh" || true

git clone -q --bare . "$root/srv/netcode.git"
url=$(sed -n 's/^git clone \([^ ]*\).*/\1/p' <<<"$commands" | head -n 1)
# Where the README leaves it to its reader where to clone from, the clone is ours.
clone=
[ -n "$url" ] || clone="git clone -q /srv/netcode.git netcode && cd netcode"
{
    echo "set -eux"
    echo "cd /root"
    echo "$clone"
    echo "$commands"
} >"$root/root/commands.sh"

echo "== README.md's commands ($(git rev-parse --short HEAD))"
start=$SECONDS
# Its own mounts and processes: whatever is left running ends with it, and /proc is unmounted with it.
# The place that everyone clones from stands for the committed tree here.
# shellcheck disable=SC2016 # "$1" is for the inner shell
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb ${http_proxy:+http_proxy="$http_proxy"} \
    unshare --mount --pid --fork --kill-child chroot "$root" sh -c '
        mount -t proc proc /proc
        [ -z "$1" ] || git config --global "url./srv/netcode.git.insteadOf" "$1"
        sh /root/commands.sh' fresh "$url" </dev/null
echo "== passed in $((SECONDS - start)) s"
