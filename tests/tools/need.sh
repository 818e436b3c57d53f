#!/bin/sh
# Makes sure that Debian packages are there which an example or its test uses; netcode.h itself never needs one of them.
#
#     need.sh PACKAGE:PROBE...    PROBE shows that it is there: a command, pc=NAME for a pkg-config module, or a path (may hold a *)
#
# What is missing is installed where that is possible without asking anyone (apt, and root or sudo without a password) and allowed (DEPS=no
# forbids it). Else this names the packages and ends with status 1.
set -u

there() { # $1: a probe
    case $1 in
    pc=*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pc=}" 2>/dev/null ;;
    /*) for path in $1; do [ -e "$path" ] && return 0; done; return 1 ;; # the pattern is expanded here
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing() { # the packages whose probes fail
    for need; do
        there "${need#*:}" || printf ' %s' "${need%%:*}"
    done
}

stop() { # $1: why it is not installed here
    echo "missing:$packages, and $1. Install with" >&2
    echo "    apt-get install$packages    (Debian's names; other systems have the same under theirs)" >&2
    exit 1
}

packages=$(missing "$@")
[ -n "$packages" ] || exit 0
[ "${DEPS:-yes}" != no ] || stop "DEPS=no forbids to install it"
command -v apt-get >/dev/null 2>&1 || stop "this system has no apt-get"
root=
[ "$(id -u)" = 0 ] || root=sudo
[ -z "$root" ] || sudo -n true >/dev/null 2>&1 || stop "you are not root and sudo would ask for a password"
echo "installing:$packages"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # no service is started by its package
# Two tests may ask at the same time, each with a TMPDIR of its own. They wait for each other here, and for others' apt-get below.
if command -v flock >/dev/null 2>&1; then
    exec 9<"$0"
    flock 9
fi
# A fresh Debian knows no package until it has asked for the list.
$root apt-get update -qq </dev/null || echo "apt-get update failed; trying all the same" >&2
# shellcheck disable=SC2086 # a list of words
$root apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends $packages </dev/null >/dev/null || stop "apt-get failed"
packages=$(missing "$@")
[ -z "$packages" ] || stop "it can still not be used after that"
