#!/bin/sh
# make msan: all tests under clang's memory sanitizer, which reports each branch and each system call that depends on memory that was not written.
#
#     msan.sh [FILTER] [--seed N]     as the test runner's own arguments
#     msan.sh --plant                 plants the faults of tests/faults that are for the sanitizer, which must notice
# MSAN_HEADER names another header than netcode.h.
#
# The sanitizer must see every write, libsodium's too, so libsodium is built here from Debian's source package with the same switch and
# without assembly; it stays in build/msan. Needs the packages clang-19 (or another clang) with libclang-rt-19-dev, dpkg-dev, autoconf, automake,
# libtool and make, and apt sources to read the package from. Where one is missing that is said, nothing is tested, and the status is 0.
set -u

cd "$(dirname "$0")/../.." || exit 1
work=$PWD/build/msan
# With -fsanitize-memory-track-origins a report says more, and takes longer.
flags="-fsanitize=memory -fno-omit-frame-pointer -g -O1"
# These read dead stack frames on purpose. The sanitizer counts a frame that ended as unwritten, as C does.
left_out="defence_9_a_request_leaves_nothing_on_the_stack defence_9_an_opened_token_leaves_nothing_on_the_stack
    defence_9_a_response_leaves_nothing_on_the_stack defence_9_a_generated_token_leaves_nothing_on_the_stack"

# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
# shellcheck source=tests/tools/libsodium_source.sh
. tests/tools/libsodium_source.sh

no_libsodium() { # $1: why
    skip msan "$1"
}

find_clang() {
    mkdir -p "$work"
    echo 'int main( void ) { return 0; }' >"$work/probe.c"
    for CC in ${MSAN_CC:-} clang-19 clang; do
        command -v "$CC" >/dev/null 2>&1 || continue
        "$CC" -fsanitize=memory "$work/probe.c" -o "$work/probe" >"$work/probe.log" 2>&1 && "$work/probe" >>"$work/probe.log" 2>&1 && return
    done
    skip msan "no clang here can link and run -fsanitize=memory (packages clang-19, libclang-rt-19-dev)"
}

build_libsodium() {
    [ -f "$work/libsodium/lib/libsodium.a" ] && return
    libsodium_source
    echo "building libsodium for the memory sanitizer"
    # the sanitizer does not see what explicit_bzero writes, so sodium_memzero has to do without it
    (cd "$source_tree" && autoreconf -fi && ./configure CC="$CC" CFLAGS="$flags" ac_cv_func_explicit_bzero=no ac_cv_func_memset_s=no \
        --disable-asm --disable-pie --disable-shared --enable-static --disable-dependency-tracking --prefix="$work/libsodium" && make -s -j 2 -C src install) >"$work/libsodium.log" 2>&1 || {
        tail -n 5 "$work/libsodium.log"
        exit 1
    }
}

# A copy of the library and its tests, in which the tests named above skip themselves. $1: the program
build_runner() {
    copy=$work/copy
    rm -rf "$copy" && mkdir -p "$copy" && cp -R tests "$copy/tests" && cp "${MSAN_HEADER:-netcode.h}" "$copy/netcode.h" || exit 1
    for name in $left_out; do
        file=$(grep -l "^TEST( $name )\$" "$copy"/tests/*/*.c)
        [ -n "$file" ] || { echo "msan: there is no test $name any more" && exit 1; }
        sed "/^TEST( $name )\$/,/^{\$/s/^{\$/{ SKIP( \"it reads dead frames of the stack\" );/" "$file" >"$work/edited.c" && mv "$work/edited.c" "$file"
    done
    # A test stands before the C library's recvmmsg and asks the kernel itself, whose writes the sanitizer does not see.
    asks='return (int) syscall( SYS_recvmmsg, '
    grep -q "$asks" "$copy/tests/unit/socket.c" || { echo "msan: tests/unit/socket.c has no recvmmsg of its own any more" && exit 1; }
    sed "s/$asks/extern int __interceptor_recvmmsg( int, struct mmsghdr *, unsigned, int, struct timespec * );\
    return __interceptor_recvmmsg( /" "$copy/tests/unit/socket.c" >"$work/edited.c" && mv "$work/edited.c" "$copy/tests/unit/socket.c"
    wrap=
    for algorithm in chacha20poly1305 xchacha20poly1305; do
        for function in encrypt encrypt_detached decrypt decrypt_detached; do
            wrap="$wrap -Wl,--wrap=crypto_aead_${algorithm}_ietf_$function"
        done
    done
    # shellcheck disable=SC2086 # lists of flags
    "$CC" $flags -w -I"$copy" -I"$work/libsodium/include" "$copy/tests/main.c" $wrap "$work/libsodium/lib/libsodium.a" -pthread -lm -o "$1"
}

[ "${1:-}" != --plant ] || exec "${PYTHON:-python3}" tests/faults/run.py --by msan
find_clang
build_libsodium
"$CC" --version | head -n 1
build_runner "$work/test" || exit 1
sh tests/tools/loopback.sh "$work/test" "$@"
