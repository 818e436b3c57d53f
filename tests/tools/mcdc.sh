#!/bin/sh
# mcdc.sh PLACE: builds the runner and make torture's stories with clang 19's coverage, runs them, and leaves PLACE/lcov.info and
# PLACE/export.json for coverage.py: lines, branches and MC/DC of netcode.h. Exits with 3 where that clang is not there, with 1 where
# something fails. CLANG=clang-20 names another one. Debian: clang-19, libclang-rt-19-dev, llvm-19.
set -eu

cd "$(dirname "$0")/../.."
place=${1:-build/mcdc}
clang=${CLANG:-clang-19}
version=${clang#clang}
for tool in "$clang" "llvm-profdata$version" "llvm-cov$version"; do
    command -v "$tool" >/dev/null || { echo "no $tool here: MC/DC is not measured (Debian: clang-19, libclang-rt-19-dev, llvm-19)" && exit 3; }
done
rm -rf "$place"
mkdir -p "$place"
echo 'int main( void ) { return 0; }' >"$place/empty.c"
"$clang" -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc "$place/empty.c" -o "$place/empty" 2>"$place/empty.log" ||
    { echo "$clang can not link its profile runtime here: MC/DC is not measured (Debian: libclang-rt-19-dev)" && exit 3; }

wrap=
if [ "$(uname -s)" = Darwin ]; then
    wrap=-DTEST_NO_WRAP
else
    for algorithm in chacha20poly1305 xchacha20poly1305; do
        for function in encrypt encrypt_detached decrypt decrypt_detached; do
            wrap="$wrap -Wl,--wrap=crypto_aead_${algorithm}_ietf_$function"
        done
    done
fi
# NDEBUG: an assert has a side that is never taken, or the library is wrong. What a caller does wrong is refused without it too.
flags="-O0 -g -DNDEBUG -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc"
flags="$flags -Xclang -fmcdc-max-conditions=16 -Xclang -fmcdc-max-test-vectors=65536"
# shellcheck disable=SC2046,SC2086 # flags are words of their own
"$clang" $flags -w -I. $(sh tests/tools/deps.sh --cflags) tests/torture.c $wrap $(sh tests/tools/deps.sh --libs) -lm -o "$place/test" \
    2>"$place/compile.log" || { cat "$place/compile.log" && exit 1; }

# One program runs the tests, and then the stories in which memory and the system fail: what only a fault reaches is reached by them.
status=0
for part in runner 1 2; do
    LLVM_PROFILE_FILE="$place/$part-%p.profraw" sh tests/tools/loopback.sh "$place/test" $part >"$place/$part.log" 2>&1 || status=1
    tail -n 1 "$place/$part.log"
done
"llvm-profdata$version" merge -sparse "$place"/*.profraw -o "$place/profile"
"llvm-cov$version" export -format=lcov -instr-profile "$place/profile" "$place/test" -sources netcode.h >"$place/lcov.info"
"llvm-cov$version" export -format=text -instr-profile "$place/profile" "$place/test" -sources netcode.h >"$place/export.json"
exit $status
