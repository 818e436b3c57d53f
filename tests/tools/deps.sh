#!/bin/sh
# The one dependency, libsodium. Three uses:
#
#   deps.sh           make sure that libsodium can be compiled and linked with. Where it is missing, print the package manager's command and run it
#                     if that is possible without asking anyone (root, or sudo without a password) and allowed (DEPS=no forbids it);
#                     else stop with that line and status 1.
#   deps.sh --cflags  print the flags for the compiler,
#   deps.sh --libs    and those for the linker.
#
# CC names the compiler. Nothing else is ever installed.
set -u

CC=${CC:-cc}

flags() { # $1: --cflags or --libs
    if command -v pkg-config >/dev/null 2>&1 && pkg-config --exists libsodium 2>/dev/null; then
        pkg-config "$1" libsodium
        return
    fi
    prefix=
    if command -v brew >/dev/null 2>&1; then
        prefix=$(brew --prefix libsodium 2>/dev/null)
    elif [ -f /usr/local/include/sodium.h ]; then
        prefix=/usr/local # the BSDs' packages live where their compilers do not look
    fi
    case $1 in
    --cflags) echo "${prefix:+-I$prefix/include}" ;;
    --libs) echo "${prefix:+-L$prefix/lib} -lsodium" ;;
    esac
}

present() {
    probe=$(mktemp -d) || exit 1
    printf '#include <sodium.h>\nint main( void ) { return sodium_init() < 0; }\n' >"$probe/probe.c"
    # shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
    $CC $(flags --cflags) "$probe/probe.c" $(flags --libs) -o "$probe/probe" >/dev/null 2>&1
    found=$?
    rm -rf "$probe"
    return $found
}

# Where the compiler's package does not bring the C library's headers by itself, they stand beside libsodium.
package_command() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "apt-get install -y --no-install-recommends libsodium-dev libc6-dev"
    elif command -v dnf >/dev/null 2>&1; then
        echo "dnf install -y libsodium-devel"
    elif command -v pacman >/dev/null 2>&1; then
        echo "pacman -S --noconfirm libsodium"
    elif command -v apk >/dev/null 2>&1; then
        echo "apk add libsodium-dev musl-dev"
    elif command -v zypper >/dev/null 2>&1; then
        echo "zypper --non-interactive install libsodium-devel"
    elif command -v brew >/dev/null 2>&1; then
        echo "brew install libsodium"
    elif command -v pkg >/dev/null 2>&1; then
        echo "pkg install -y libsodium"
    fi
}

stop() { # $1: why it is not installed here
    echo "libsodium is missing, and $1. Install it with" >&2
    echo "    $line" >&2
    exit 1
}

case ${1:-} in
--cflags | --libs)
    flags "$1"
    exit
    ;;
esac

# shellcheck disable=SC2086 # see above
if ! command -v ${CC%% *} >/dev/null 2>&1; then
    echo "there is no C compiler called $CC: install one, or name yours with CC=..." >&2
    exit 1
fi
present && exit 0

command=$(package_command)
[ -n "$command" ] || { line="your system's package manager: the package is called libsodium, libsodium-dev or libsodium-devel" && stop "no package manager that is known here was found"; }

# Homebrew refuses to run as root and needs no sudo; every other one needs root.
root=
case $command in
brew*) ;;
*) [ "$(id -u)" = 0 ] || root=sudo ;;
esac
line="${root:+$root }$command"
[ "${DEPS:-yes}" != no ] || stop "DEPS=no forbids to install it"
if [ -n "$root" ] && ! sudo -n true >/dev/null 2>&1; then
    stop "you are not root and sudo would ask for a password"
fi

echo "libsodium is missing. Installing it: $line"
# A fresh Debian knows no package until it has asked for the list.
case $command in
apt-get*) $root apt-get update -qq </dev/null || echo "apt-get update failed; trying all the same" >&2 ;;
esac
export DEBIAN_FRONTEND=noninteractive
$line </dev/null || stop "that command failed"
present || stop "it can still not be compiled with after that command"
