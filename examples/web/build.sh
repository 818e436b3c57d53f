#!/bin/sh
# Builds netcode.h for web pages, in build/web: libsodium.a for WebAssembly, then netcode.wasm and its loader netcode_wasm.mjs; and puts
# netcode.mjs and transport.mjs beside them, so that the folder can be served as it is.
#
#     build.sh               all of it; what is there and newer than its sources stays as it is
#     build.sh --libsodium   libsodium alone
#     build.sh --flags       prints what emcc needs to compile another program of yours the same way
#     build.sh --cc ...      runs emcc with these flags and then yours, in the repository's root: build.sh --cc game.c -o build/web/game.mjs
#
# Emscripten's compiler comes from Debian, libsodium's source too. Nothing else is fetched; DEPS=no forbids to install packages.
set -u

cd "$(dirname "$0")/../.." || exit 1
root=$PWD
web=$root/build/web
work=$web/libsodium-source
sodium=$web/libsodium
# Debian's emcc runs a JavaScript optimizer, which looks for Debian's acorn: a Node.js from elsewhere does not know where that is.
NODE_PATH=${NODE_PATH:+$NODE_PATH:}/usr/share/nodejs
export NODE_PATH

# The loader is for pages and workers. Under Node.js, netcode.mjs reads the file itself: what Emscripten 3.1 writes for it is no ES module.
# Memory grows while objects are created, and never afterwards: netcode.h allocates in create alone.
compile_flags="-O2 -DNETCODE_NO_SOCKETS -DNETCODE_MESSAGES -I$root -I$root/examples/web -I$sodium/include"
link_flags="-sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker -sFILESYSTEM=0 -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=4194304"
link_flags="$link_flags -sTOTAL_STACK=1048576"
library=$sodium/lib/libsodium.a

no_libsodium() { # $1: why
    echo "build.sh: $1" >&2
    exit 1
}

# shellcheck source=tests/tools/libsodium_source.sh disable=SC1091
. tests/tools/libsodium_source.sh

# $1: what is to be built; the rest: what it is made of
fresh() {
    [ -e "$1" ] || return 1
    product=$1
    shift
    [ -z "$(find "$@" -newer "$product" 2>/dev/null)" ]
}

need() {
    sh tests/tools/need.sh emscripten:emcc nodejs:node node-acorn:/usr/share/nodejs/acorn "$@" || exit 1
}

build_libsodium() {
    fresh "$library" examples/web/random.c examples/web/random.h && return
    need dpkg-dev:dpkg-source autoconf:autoreconf automake:automake libtool:libtoolize make:make
    mkdir -p "$work"
    libsodium_source
    echo "building libsodium for WebAssembly (a minute or two)"
    # Not the code for Emscripten in its randombytes.c: see random.c.
    (
        set -e
        cd "$source_tree"
        [ -e configure.done ] || {
            autoreconf -fi
            env -u EMSCRIPTEN emconfigure ./configure --host=wasm32-unknown-none --disable-shared --enable-static --disable-asm \
                --disable-ssp --disable-pie --without-pthreads --disable-dependency-tracking --prefix="$web/libsodium-made" CFLAGS=-O2
            touch configure.done
        }
        emmake make -s -j 2 -C src install
        emcc -O2 -c -I"$web/libsodium-made/include" "$root/examples/web/random.c" -o random.o
        emcc -O2 -c -U__EMSCRIPTEN__ -DRANDOMBYTES_CUSTOM_IMPLEMENTATION "-DRANDOMBYTES_DEFAULT_IMPLEMENTATION=&netcode_web_random" \
            -DCONFIGURED=1 -I"$web/libsodium-made/include" -Isrc/libsodium/include/sodium -Isrc/libsodium/include \
            -include "$root/examples/web/random.h" src/libsodium/randombytes/randombytes.c -o randombytes.o
        made=$web/libsodium-made/lib/libsodium.a
        emar d "$made" libsodium_la-randombytes.o
        emar r "$made" randombytes.o random.o
        emranlib "$made"
    ) >"$web/libsodium.log" 2>&1 || {
        tail -n 5 "$web/libsodium.log"
        no_libsodium "libsodium could not be built, see build/web/libsodium.log"
    }
    rm -rf "$sodium" && mv "$web/libsodium-made" "$sodium" || exit 1
    touch "$library"
}

print_size() { # $1: a file
    brotli=$(node -e 'console.log(require("zlib").brotliCompressSync(require("fs").readFileSync(process.argv[1])).length)' "$1")
    printf '%-24s %7d bytes, %6d with gzip -9, %6d with brotli\n' "${1#"$root"/}" "$(wc -c <"$1")" "$(gzip -9 -c "$1" | wc -c)" "$brotli"
}

run_emcc() {
    # shellcheck disable=SC2086 # lists of flags
    emcc $compile_flags $link_flags "$@" "$library"
}

build_module() {
    fresh "$web/netcode.wasm" netcode.h examples/web/netcode_wasm.c examples/web/netcode_web.h examples/web/build.sh "$library" && return
    need
    echo "building netcode.wasm"
    rm -f "$web/netcode.wasm"
    # The module's own file name is in its loader: it is built as netcode.mjs, beside which it is called netcode.wasm, and then renamed.
    mkdir -p "$web/made"
    run_emcc -DNDEBUG -Wall -Wextra examples/web/netcode_wasm.c --no-entry -sEXPORTED_RUNTIME_METHODS=UTF8ToString \
        -o "$web/made/netcode.mjs" >"$web/emcc.log" 2>&1 || {
        cat "$web/emcc.log"
        exit 1
    }
    mv "$web/made/netcode.mjs" "$web/netcode_wasm.mjs" && mv "$web/made/netcode.wasm" "$web/netcode.wasm" || exit 1
}

mkdir -p "$web"
case ${1:-} in
--flags) echo "$compile_flags $link_flags $library" ;;
--libsodium) build_libsodium ;;
--cc)
    shift
    build_libsodium
    need
    run_emcc "$@"
    ;;
"")
    build_libsodium
    build_module
    cp examples/web/netcode.mjs examples/web/netcode.d.mts examples/web/transport.mjs "$web" || exit 1
    print_size "$web/netcode.wasm"
    print_size "$web/netcode_wasm.mjs"
    ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
