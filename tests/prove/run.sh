#!/bin/sh
# make prove: CBMC proves the readers, the writers, the window and the tables for all inputs. What is proved stands in proofs.list.
#
#     run.sh [FILTER...]          all proofs but the open ones, or of those the ones whose names or files hold a FILTER
#     run.sh quick [FILTER...]    those that take five minutes of one core altogether
#     run.sh open [FILTER...]     those that no run has been seen to end with, see proofs.list
#     run.sh --plants [FILTER...] plants the faults of tests/faults that are for proofs: each proof must fail
#
# CBMC 6 is in Debian 13, and so is kissat, a solver. Where they are not installed, they are run in a Debian 13 of their own, made once by
# debootstrap in build/prove/trixie (PROVE_ROOT names another folder), which needs root and the network. Where that can not be had, nothing
# is proved and nothing fails.
# JOBS=2 proves two at a time; PROVE_SECONDS=1800 is the most processor time that one may take.
set -u

cd "$(dirname "$0")/../.." || exit 1
root=${PROVE_ROOT:-$PWD/build/prove/trixie}

# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh

mirror() {
    # apt knows which of its sources is Debian itself once it has fetched their lists.
    # shellcheck disable=SC2016 # $(REPO_URI) is apt's
    known=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
    [ -n "$known" ] || known=$(grep -rhoE '(URIs:|^deb ).*' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?' | head -n 1)
    echo "$known"
}

# A folder of that name is a whole one: it is made under another.
make_root() {
    [ "$(id -u)" = 0 ] || skip prove "cbmc is not installed, and without root no Debian 13 can be made that has it"
    command -v debootstrap >/dev/null || skip prove "cbmc is not installed, and without debootstrap no Debian 13 can be made that has it"
    mirror=$(mirror)
    [ -n "$mirror" ] || skip prove "cbmc is not installed, and apt names no Debian mirror"
    proxy=$(apt-config dump Acquire::http::Proxy | sed -n 's/^[^"]*"\(.*\)";$/\1/p')
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy="$proxy"
    mkdir -p "${root%/*}"
    rm -rf --one-file-system "$root.new"
    echo "making a Debian 13 with cbmc in $root"
    if ! debootstrap --variant=minbase --include=cbmc,kissat,libc6-dev trixie "$root.new" "$mirror" >"$root.log" 2>&1; then
        rm -rf --one-file-system "$root.new"
        skip prove "debootstrap made no Debian 13 with cbmc (its last word: $(tail -n 1 "$root.log"))"
    fi
    mv "$root.new" "$root"
}

if command -v cbmc >/dev/null && command -v goto-cc >/dev/null && command -v kissat >/dev/null; then
    root=
elif [ ! -e "$root" ]; then
    make_root
elif [ ! -x "$root/usr/bin/cbmc" ] || [ ! -x "$root/usr/bin/kissat" ] || [ ! -e "$root/usr/include/stdio.h" ]; then
    skip prove "$root lacks cbmc, kissat or libc6-dev: install them there, or remove it"
fi
[ -z "$root" ] || chroot "$root" true 2>/dev/null || skip prove "this machine does not let $root be entered"
export PROVE_ROOT="$root"
if [ "${1:-}" = --plants ]; then
    shift
    FAULTS_READY="prove" exec "${PYTHON:-python3}" tests/faults/run.py --by prove "$@"
fi
exec "${PYTHON:-python3}" tests/prove/run.py "$@"
