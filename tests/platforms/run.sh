#!/bin/sh
# make platforms: the tests on other processors, C libraries and systems, as far as they can be had here.
#
#   run.sh [NAME...]       x86-64 x86-32 arm64 s390x musl windows; all of them without a name
#   T=replay run.sh NAME   only the tests with that in their name (beside the vectors and the trace)
#   QEMU=user run.sh NAME  arm64 and s390x by qemu-user on this machine's kernel, and not on a kernel of their own
#
# On each platform: what it is by its own word (about.c), the tests of the vectors, the trace of a simulation (tests/sim.c), which must be
# this machine's, and all tests. arm64 and s390x are emulated machines that run Debian's kernel for them; where qemu-system is missing, qemu-user
# stands in, which can not do all that Linux can. Debian's libsodium for the platform is taken from its package, or built from Debian's source.
# All that is downloaded or built stays in build/platforms; apt is asked in a state of its own there, and this machine's is not changed.
#
# What can not be had here gets a row that says why, and fails nothing. A platform whose tests run and fail, whose vectors or trace are others,
# or where they can not be compiled while another program can, makes the status 1. The table at the end is in Markdown, for README.md.
set -u

cd "$(dirname "$0")/../.." || exit 1
OUT=build/platforms
TOP=$PWD
CFLAGS=${CFLAGS:--O2 -g}
WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion"
WRAP=$(for algorithm in chacha20poly1305 xchacha20poly1305; do
    for call in encrypt encrypt_detached decrypt decrypt_detached; do
        printf '%s ' "-Wl,--wrap=crypto_aead_${algorithm}_ietf_$call"
    done
done)
SIMULATION="--seed 1 --seconds 1200" # init.c has the same
LONGEST_SECONDS=1500                 # for each part; all of an emulated machine took 377 beside much other work
VECTORS=$(grep -c '^TEST( vectors_' tests/unit/vectors.c)

# qemu-user hands control messages through as they are and does not know the error queue's addresses. On kernels of their own all of these pass.
QEMU_USER_CAN_NOT="socket_icmp_errors socket_kernel_drops socket_kernel_drops_of_the_second_family linux_filter_of_a_server
    threat_41_the_others_are_heard_beside_a_flood_over_a_socket threat_60_a_client_that_floods_is_throttled
    threat_61_unknown_addresses_that_flood_are_filtered flood_the_kernel_filters_as_its_model flood_a_full_buffer_is_noticed"
QEMU_USER_CAN_NOT_TURN="socket_batches linux_sends_arrive_whole_and_in_order linux_sends_of_both_families
    linux_sends_of_a_family_that_is_not_there linux_sends_past_a_closed_port linux_sends_taken_in_parts linux_batched_sends_of_a_server
    linux_batched_sends_of_a_client linux_forged_icmp_fragments_nothing"

# ---- what a platform is ----

# Sets: cc; from, where its libsodium comes from (system, package or source); arch, Debian's name; triplet; libs; exe; packages that it needs;
# by, how it is run (here, machine, user or wine).
describe() {
    cc='' from=package arch='' triplet='' libs='-lm' exe='' packages='' by=here
    case $1 in
    x86-64)
        cc=${CC:-cc} from=system
        ;;
    x86-32)
        cc=$(compiler_for_x86_32) arch=i386 libs='-lpthread -lm' packages='libc6-dev-i386 and lib32gcc-VERSION-dev'
        # Some kernels are configured without 32-bit programs: then qemu-user runs them.
        loader=/lib32/ld-linux.so.2
        [ ! -x $loader ] || $loader --version >/dev/null 2>&1 || by=$(emulator no-whole-machine qemu-i386) triplet=i386-linux-gnu
        ;;
    arm64)
        cc=aarch64-linux-gnu-gcc arch=arm64 triplet=aarch64-linux-gnu libs='-lpthread -lm'
        packages='gcc-aarch64-linux-gnu and libc6-dev-arm64-cross' by=$(emulator qemu-system-aarch64 qemu-aarch64)
        ;;
    s390x)
        cc=s390x-linux-gnu-gcc arch=s390x triplet=s390x-linux-gnu libs='-lpthread -lm'
        packages='gcc-s390x-linux-gnu and libc6-dev-s390x-cross' by=$(emulator qemu-system-s390x qemu-s390x)
        ;;
    musl)
        cc=musl-gcc from=source packages=musl-tools
        ;;
    windows)
        cc=x86_64-w64-mingw32-gcc from=source triplet=x86_64-w64-mingw32 libs='-lws2_32 -static' exe=.exe by=wine
        packages=gcc-mingw-w64-x86-64-posix
        ;;
    *)
        echo "unknown platform $1: x86-64 x86-32 arm64 s390x musl windows" >&2
        exit 2
        ;;
    esac
}

# gcc-multilib, which makes -m32 find the kernel's headers, can not be installed beside the cross compilers: here they are named.
compiler_for_x86_32() {
    for candidate in "gcc -m32" "gcc -m32 -isystem /usr/include/$(gcc -print-multiarch 2>/dev/null)"; do
        can_link "$candidate" && break
    done
    echo "$candidate"
}

emulator() { # $1: of a whole machine, $2: of a program
    if [ "${QEMU:-}" != user ] && command -v "$1" >/dev/null && command -v cpio >/dev/null; then
        echo machine
    elif command -v "$2" >/dev/null; then
        echo user
    fi
}

wine_program() {
    for candidate in wine64 /usr/lib/wine/wine64 wine; do
        command -v "$candidate" && return
    done
}

can_link() { # $1: a compiler
    mkdir -p $OUT
    # shellcheck disable=SC2086 # a compiler is a list of words
    printf '#include <errno.h>\n#include <stdio.h>\nint main( void ) { return puts( "" ) == errno; }\n' |
        $1 -x c - -o "$OUT/probe.$$" >/dev/null 2>&1
    linked=$?
    rm -f "$OUT/probe.$$" "$OUT/probe.$$.exe"
    return $linked
}

all_here() { # programs
    for program in "$@"; do
        command -v "$program" >/dev/null || return 1
    done
}

# ---- rows: verdict|platform|what about.c said, five fields|passed|skipped|failed|vectors|trace|how ----

skip() { # $1: platform, $2: why
    echo "skipped|$1|$2" >"$OUT/$1.row"
    echo "$1: skipped: $2"
    exit 0
}

# ---- apt, in a state of its own ----

apt_root() {
    [ -e $OUT/apt/ready ] && return
    command -v apt-get >/dev/null || return 1
    mkdir -p $OUT/apt/lists/partial $OUT/apt/archives/partial $OUT/debs
    : >$OUT/apt/status
    targets=$(apt_targets)
    if [ -z "$targets" ]; then # a fresh machine knows its sources by name only
        apt-get update -qq >$OUT/apt/log 2>&1 </dev/null
        targets=$(apt_targets)
    fi
    [ -n "$targets" ] || return 1
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    signed=$([ -e $key ] && echo "[signed-by=$key] ")
    echo "$targets" | while read -r source; do
        printf 'deb %s%s\ndeb-src %s%s\n' "$signed" "$source" "$signed" "$source"
    done >$OUT/apt/sources.list
    cat >$OUT/apt/apt.conf <<END
Dir::State "$TOP/$OUT/apt";
Dir::State::status "$TOP/$OUT/apt/status";
Dir::Cache "$TOP/$OUT/apt";
Dir::Etc::sourcelist "$TOP/$OUT/apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "s390x";
APT::Architectures { "s390x"; "i386"; "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END
    # One list of many may be missing; what is wanted shows when it is fetched.
    private apt-get update -q >>$OUT/apt/log 2>&1 </dev/null
    : >$OUT/apt/ready
}

apt_targets() {
    # shellcheck disable=SC2016 # the names are apt's
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null | sort -u
}

private() {
    APT_CONFIG="$TOP/$OUT/apt/apt.conf" "$@"
}

# Prints the file of a package, after it was downloaded.
fetch() { # $1: package, $2: architecture
    apt_root || return 1
    for try in 1 2; do
        file=$(find $OUT/debs -name "$1_*_$2.deb" | sort | tail -n 1)
        [ -n "$file" ] && echo "$file" && return
        [ $try = 1 ] || private apt-get update -q >>$OUT/apt/log 2>&1 </dev/null
        (cd $OUT/debs && private apt-get download -q "$1:$2") >>$OUT/apt/log 2>&1 </dev/null
    done
    file=$(find $OUT/debs -name "$1_*_$2.deb" | sort | tail -n 1)
    [ -n "$file" ] && echo "$file"
}

# ---- libsodium ----

sodium_package() { # $1: architecture
    [ -n "$(find $OUT/sodium-"$1" -name libsodium.a 2>/dev/null)" ] && return
    file=$(fetch libsodium-dev "$1") && mkdir -p "$OUT/sodium-$1" && dpkg-deb -x "$file" "$OUT/sodium-$1"
}

# Debian's source with its patches, ready to be configured.
sodium_source() {
    [ -e $OUT/source/ready ] && return
    apt_root || return 1
    rm -rf $OUT/source && mkdir -p $OUT/source || return 1
    (
        set -e
        cd $OUT/source
        private apt-get source -q --download-only libsodium
        mkdir tree
        tar xf libsodium_*.orig.tar.* -C tree --strip-components=1
        tar xf libsodium_*.debian.tar.* -C tree
        cd tree
        [ ! -e debian/patches/series ] || grep -v '^#' debian/patches/series | while read -r patch; do
            patch -s -p1 <"debian/patches/$patch"
        done
        autoreconf -fi
        : >../ready
    ) >$OUT/source.log 2>&1 </dev/null
}

sodium_build() { # $1: platform
    [ -e "$OUT/sodium-$1/lib/libsodium.a" ] && return
    rm -rf "$OUT/build-$1" && mkdir -p "$OUT/build-$1" || return 1
    (
        set -e
        cd "$OUT/build-$1"
        ../source/tree/configure -q --disable-shared --enable-static --disable-dependency-tracking --prefix="$TOP/$OUT/sodium-$1" \
            ${triplet:+--host="$triplet"} CC="$cc"
        make -s -j2 -C src install
    ) >"$OUT/sodium-$1.log" 2>&1 </dev/null
}

# Sets sodium_cflags and sodium_libs.
sodium_flags() { # $1: platform
    case $from in
    system)
        sodium_cflags=$(sh tests/tools/deps.sh --cflags)
        sodium_libs=$(sh tests/tools/deps.sh --libs)
        ;;
    package)
        sodium_cflags="-I$OUT/sodium-$arch/usr/include"
        sodium_libs=$(find $OUT/sodium-"$arch" -name libsodium.a)
        ;;
    source)
        sodium_cflags="-I$OUT/sodium-$1/include -DSODIUM_STATIC"
        sodium_libs=$OUT/sodium-$1/lib/libsodium.a
        ;;
    esac
}

# What several platforms share is got before they run side by side.
prepare() { # $1: platform; sets why where it can not be had
    why=''
    describe "$1"
    if [ "$1" = x86-64 ] && [ "$(uname -m)" != x86_64 ]; then
        why="this machine is $(uname -m)"
    elif ! can_link "$cc"; then
        why="$cc links nothing here${packages:+, it needs $packages}"
    elif [ "$by" = wine ] && [ -z "$(wine_program)" ]; then
        why="no wine here, it needs wine64"
    elif [ -z "$by" ]; then
        why="no qemu here, it needs qemu-system-misc and qemu-system-arm with cpio, or qemu-user"
    elif [ $from = system ] && ! DEPS=no sh tests/tools/deps.sh >/dev/null 2>&1; then
        why="no libsodium here, it needs libsodium-dev"
    elif [ $from = package ] && ! sodium_package $arch; then
        why="apt gives no libsodium-dev for $arch, see $OUT/apt/log"
    elif [ $from = source ] && ! all_here autoreconf libtoolize make patch; then
        why="libsodium can not be built, it needs autoconf, automake, libtool, make and patch"
    elif [ $from = source ] && ! sodium_source; then
        why="apt gives no source of libsodium, or it can not be made ready: see $OUT/source.log and $OUT/apt/log"
    elif [ "$by" = machine ] && ! kernel $arch; then
        why="apt gives no kernel for $arch, see $OUT/apt/log; QEMU=user does without"
    fi
    [ -z "$why" ]
}

# ---- programs ----

# shellcheck disable=SC2086 # flags are words
compile() { # $1: product, $2: source, the rest: more flags
    product=$1
    source=$2
    shift 2
    $cc $CFLAGS $WARNINGS -I. $sodium_cflags "$@" "$source" $sodium_libs $libs -o "$product" >"$product.log" 2>&1
}

# Where the linker has no --wrap, the nonce ledger is left out, and the tests say so.
programs() { # $1: platform
    at=$OUT/$1
    mkdir -p "$at"
    # shellcheck disable=SC2086
    if compile "$at/about$exe" tests/platforms/about.c $WRAP; then
        wrap=$WRAP
    elif compile "$at/about$exe" tests/platforms/about.c; then
        wrap=-DTEST_NO_WRAP
    else
        skip "$1" "$cc compiles nothing with libsodium here: $(grep -m 1 error "$at/about$exe.log")"
    fi
    # What judges real time can not do it there.
    case $by in machine | user) wrap="$wrap -DTEST_EMULATED" ;; esac
    for program in test:tests/main.c sim:tests/sim.c; do
        # shellcheck disable=SC2086
        compile "$at/${program%%:*}$exe" "${program#*:}" $wrap || fault "$1" "${program#*:} does not compile, see $at/${program%%:*}$exe.log:
    $(grep -m 1 error "$at/${program%%:*}$exe.log")"
    done
}

fault() { # $1: platform, $2: what
    echo "FAILED|$1|$2" | tr '\n' ' ' >"$OUT/$1.row"
    echo "$1: FAILED: $2"
    exit 0
}

# ---- running: each part prints its title, what it has to say, and the status that it ended with ----

part() { # $1: title, the rest: a command
    echo "== $1"
    shift
    timeout "$LONGEST_SECONDS" sh tests/platforms/run.sh --alone "$@" </dev/null 2>&1
    echo "== ended with $?"
}

# With a loopback of its own, where that is allowed: one test needs it, and nothing can leave the machine then.
alone() { # a command
    for namespace in "unshare --net" "unshare --net --map-root-user"; do
        # shellcheck disable=SC2086 # the options are words of their own
        if $namespace ip link set lo up >/dev/null 2>&1; then
            # shellcheck disable=SC2016 # "$@" is for the inner shell
            exec $namespace sh -c 'ip link set lo up && exec "$@"' alone "$@"
        fi
    done
    exec sh tests/tools/loopback.sh "$@"
}

# shellcheck disable=SC2086 # a filter that is empty is none
run_parts() { # the command that runs programs, if one is needed
    part about "$@" "$at/about$exe"
    part vectors "$@" "$at/test$exe" vectors_
    part trace "$@" "$at/sim$exe" $SIMULATION
    part tests "$@" "$at/test$exe" ${T:-}
}

run_wine() {
    export WINEPREFIX="$TOP/$OUT/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree=;mshtml="
    unset DISPLAY
    wine=$(wine_program)
    mkdir -p "$WINEPREFIX"
    timeout 300 "$wine" "$at/about.exe" >"$at/wine.log" 2>&1 </dev/null # the first one makes the prefix, and talks about it
    run_parts "$wine"
    # Only the server of this prefix: it would wait for more to do.
    for candidate in wineserver /usr/lib/wine/wineserver; do
        command -v "$candidate" >/dev/null && "$candidate" -k
    done
}

kernel() { # $1: architecture
    [ -e "$OUT/kernel-$1" ] && return
    apt_root || return 1
    case $1 in
    arm64) meta=linux-image-cloud-arm64 ;;
    *) meta=linux-image-$1 ;;
    esac
    name=$(private apt-cache depends "$meta:$1" 2>>$OUT/apt/log | sed -n 's/.*Depends: \(linux-image[^:]*\).*/\1/p' | head -n 1)
    [ -n "$name" ] && file=$(fetch "$name" "$1") || return 1
    dpkg-deb --fsys-tarfile "$file" | tar x -O --wildcards './boot/vmlinu*' >"$OUT/kernel-$1" && [ -s "$OUT/kernel-$1" ] && return
    rm -f "$OUT/kernel-$1"
    return 1
}

# The programs with the cross compiler's C library, as the first file system of an emulated machine.
file_system() {
    root=$at/root
    rm -rf "$root" && mkdir -p "$root/lib" || return 1
    $cc -O2 -static tests/platforms/init.c -o "$root/init" || return 1
    for program in about test sim; do
        cp "$at/$program" "$root/" && "$triplet-strip" "$root/$program" || return 1
    done
    for library in ld64.so.1 ld-linux-aarch64.so.1 libc.so.6 libm.so.6; do
        [ ! -e "/usr/$triplet/lib/$library" ] || cp "/usr/$triplet/lib/$library" "$root/lib/"
    done
    (cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$at/root.gz"
}

run_machine() { # $1: platform
    file_system || return
    case $1 in
    arm64) set -- qemu-system-aarch64 -M virt -cpu cortex-a57 console=ttyAMA0 ;;
    s390x) set -- qemu-system-s390x -M s390-ccw-virtio -cpu qemu "" ;;
    esac
    timeout $((2 * LONGEST_SECONDS)) "$1" "$2" "$3" "$4" "$5" -m 1024 -nographic -nodefaults -no-reboot -serial stdio -kernel "$OUT/kernel-$arch" \
        -initrd "$at/root.gz" -append "quiet panic=-1 $6 -- ${T:-}" </dev/null 2>&1
}

run() { # $1: platform
    case $by in
    here) run_parts ;;
    user) run_parts "qemu-${triplet%%-*}" -L "/usr/$triplet" ;;
    wine) run_wine ;;
    machine) run_machine "$1" ;;
    esac
}

# ---- judging ----

said() { # $1: part: what it printed
    sed -n "/^== $1\$/,/^== ended with/p" "$at/log"
}

# The tests that failed, but for those that the emulator can not run.
faults() {
    said tests | sed -n 's/^FAILED [^:]*: \([^,]*\),.*/\1/p' | while read -r name; do
        case $by:$arch in
        user:s390x) known="$QEMU_USER_CAN_NOT $QEMU_USER_CAN_NOT_TURN" ;;
        user:*) known=$QEMU_USER_CAN_NOT ;;
        *) known='' ;;
        esac
        # shellcheck disable=SC2086 # a list of words
        printf '%s\n' $known | grep -qx "$name" || echo "$name"
    done
}

judge() { # $1: platform, $2: seconds
    about=$(said about | sed -n 's/^about|//p')
    [ -n "$about" ] || skip "$1" "it was built, but does not run here: $(tail -n 1 "$at/log")"
    totals=$(said tests | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    passed=${totals%% *}
    failed=${totals#*, }
    failed=${failed%% *}
    skipped=$(said tests | sed -n 's/^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped$/\1/p')
    vectors=$(said vectors | sed -n 's/^\([0-9]*\) passed, 0 failed, 0 skipped$/\1/p')
    trace=$(said trace | sed -n 's/^trace //p')
    new=$(faults | tr '\n' ' ')
    verdict=ok
    [ -n "$totals" ] && [ "$vectors" = "$VECTORS" ] && [ -n "$trace" ] && [ -z "$new" ] || verdict=FAILED
    [ "$by" = user ] || said tests | grep -q '^== ended with 0$' || verdict=FAILED
    about=$(echo "$about" | sed "s/|musl|/|musl $(/lib/ld-musl-x86_64.so.1 2>&1 | sed -n 's/^Version //p')|/")
    echo "$verdict|$1|$about|${passed:-none}|${skipped:-0}|${failed:-none}|${vectors:-0} of $VECTORS|${trace:-none}|$(how "$1")" >"$OUT/$1.row"
    echo "$1: $verdict: ${totals:-the tests came to no end}, vectors ${vectors:-0} of $VECTORS, trace ${trace:-none}, $2 s"
    said tests | grep -E '^    skipped: |^FAILED|^    .*\.[ch]:[0-9]+:' | sed 's/^ */    /'
    [ -z "$totals" ] && tail -n 5 "$at/log"
    [ "$by" != user ] || [ "${failed:-0}" = 0 ] || echo "    (qemu-user can not run $failed of them; on a kernel of their own they pass)"
    warnings=$(grep -c 'netcode.h:.*warning' "$at/test$exe.log")
    [ "$warnings" = 0 ] || echo "    note: $warnings warnings in netcode.h with $cc, see $at/test$exe.log"
}

how() { # $1: platform
    case $by in
    here) echo "this machine" ;;
    user) echo "qemu-user" ;;
    wine) echo "wine" ;;
    machine) echo "an emulated machine with Debian's kernel" ;;
    esac
}

one() { # $1: platform
    start=$(date +%s)
    prepare "$1" || skip "$1" "$why"
    if [ $from = source ] && ! sodium_build "$1"; then
        skip "$1" "libsodium can not be built with $cc, see $OUT/sodium-$1.log"
    fi
    sodium_flags "$1"
    programs "$1"
    run "$1" >"$at/raw"
    tr -cd '\11\12\40-\176' <"$at/raw" >"$at/log" # wine ends lines its way, and consoles talk to terminals
    judge "$1" $(($(date +%s) - start))
}

# ---- the table ----

table() { # the platforms
    echo
    echo "| platform | compiler | C library | libsodium | byte order | system | passed | skipped | failed | vectors | run by |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in "$@"; do
        awk -F '|' '$1 == "skipped" || NF < 13 { print "| " $2 " | " ( $1 == "skipped" ? "not had: " : "FAILED: " ) $3 " |||||||||"; next }
            { print "| " $2 " | " $3 " | " $4 " | " $5 " | " $6 " | " $7 " | " $8 " | " $9 " | " $10 " | " $11 " | " $13 " |" }' "$OUT/$name.row"
    done
    echo
}

# Every platform's simulation went the same way, event by event: else a byte order, a width or a rounding has come in.
compare_traces() { # the platforms
    traces=$(for name in "$@"; do awk -F '|' 'NF >= 13 { print $12 }' "$OUT/$name.row"; done | sort | uniq -c)
    [ -n "$traces" ] || return 0
    if [ "$(echo "$traces" | wc -l)" = 1 ]; then
        echo "one trace on all that ran (sim $SIMULATION): $(echo "$traces" | awk '{ print $2 }')"
        return 0
    fi
    echo "FAILED: sim $SIMULATION does not go the same way everywhere:"
    for name in "$@"; do
        awk -F '|' 'NF >= 13 { print "    " $2 ": " $12 }' "$OUT/$name.row"
    done
    return 1
}

case ${1:-} in
--alone)
    shift
    alone "$@"
    ;;
--one)
    one "$2"
    exit 0
    ;;
'') set -- x86-64 x86-32 arm64 s390x musl windows ;;
esac

mkdir -p $OUT
began=$(date +%s)
for name in "$@"; do
    rm -f "$OUT/$name.row"
    prepare "$name" # one after the other: they share apt's state and libsodium's source
done
printf '%s\n' "$@" | xargs -n 1 -P "${JOBS:-2}" sh tests/platforms/run.sh --one
table "$@"
status=0
compare_traces "$@" || status=1
for name in "$@"; do
    grep -q '^FAILED' "$OUT/$name.row" && echo "FAILED: $name" && status=1
    # Where CI promises a platform, it must be had.
    [ "${SKIPS:-yes}" = yes ] || ! grep -q '^skipped' "$OUT/$name.row" || { echo "FAILED: $name was skipped" && status=1; }
done
echo "took $(($(date +%s) - began)) s"
exit $status
