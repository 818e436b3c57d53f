#!/bin/sh
# Checks that other languages' generators can read netcode.h as it is, and that what they make of it works.
#
#     sh tests/all/bindgen.sh
#
#   bindgen   Rust: every function, type and constant; the layout tests that it writes, run; a program that makes a token and opens a server
#   cffi      Python: the public part as the C preprocessor leaves it; every layout against the compiler's; a token made by a call
#
# Each is seen to fail on a copy with a fault. Everything is built in build/bindgen. A tool that can not be had is skipped by its name.
# shellcheck disable=SC2317 # check calls the functions
set -u

cd "$(dirname "$0")/../.." || exit 1
out=build/bindgen
mkdir -p "$out"
checks_name=bindgen
checks_log=$out/log
. tests/tools/checks.sh

can_have() { # need.sh for one tool; what it says is the reason where it fails
    sh tests/tools/need.sh "$@" >"$out/need.log" 2>&1
}

# shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
library() {
    ${CC:-cc} -shared -fPIC -O2 -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -x c netcode.h -x none $(sh tests/tools/deps.sh --cflags) \
        $(sh tests/tools/deps.sh --libs) -lm -o "$out/libnetcode.so"
}

# ---- bindgen ----

# bindgen 0.60 can not name the unnamed union of netcode_address_t with a libclang above 15 (later versions can), so it is given an older
# one where there is one.
generate() { # $1: a header; $2: the Rust file
    for folder in /usr/lib/llvm-14/lib /usr/lib/llvm-15/lib ""; do
        [ -z "$folder" ] || [ -e "$folder/libclang.so.1" ] || continue
        [ -z "$folder" ] || export LIBCLANG_PATH="$folder"
        [ -n "$folder" ] || unset LIBCLANG_PATH
        bindgen "$1" --no-rustfmt-bindings --allowlist-function 'netcode_.*' --allowlist-type 'netcode_.*' --allowlist-var '(NETCODE|netcode)_.*' \
            -o "$2" -- -x c -DNETCODE_MESSAGES && return 0
    done
    return 1
}

# The header's functions, types and constants, as the preprocessor knows them.
public_part() {
    ${CC:-cc} -E -P -x c -DNETCODE_MESSAGES netcode.h
}

everything_is_there() { # $1: the Rust file
    public_part >"$out/public.h"
    functions=$(grep -Eo 'netcode_[a-z0-9_]+ ?\(' "$out/public.h" | tr -d ' (' | sort -u | grep -v '_t$')
    for function in $functions; do
        grep -q "pub fn $function (" "$1" || { echo "no function $function" && return 1; }
    done
    structs=$(grep -Eo 'struct netcode_[a-z0-9_]+ *\{' "$out/public.h" | sed 's/struct \([a-z0-9_]*\).*/\1/' | sort -u)
    for struct in $structs; do
        grep -q "fn bindgen_test_layout_$struct ()" "$1" || { echo "no layout test of $struct" && return 1; }
    done
    # without the switch itself
    constants=$(${CC:-cc} -E -dM -x c -DNETCODE_MESSAGES netcode.h | grep -v ' NETCODE_MESSAGES ' | grep -E '^#define NETCODE_[A-Z0-9_]+ \(? ?-?[0-9]+ ?\)?$' | cut -d ' ' -f 2)
    for constant in $constants; do
        grep -q "pub const $constant :" "$1" || { echo "no constant $constant" && return 1; }
    done
    # shellcheck disable=SC2086 # lists of words
    echo "detail: $(count $functions) functions, $(count $structs) structs, $(count $constants) constants"
}

count() {
    echo $#
}

fails() ( # a command that must fail, whose own failing lines end it too
    set +e
    (
        set -e
        "$@"
    )
    status=$?
    [ "$status" != 0 ]
)

layout_tests() { # $1: the Rust file
    rustc --edition 2018 --test -A warnings "$1" -o "$out/layout" -L "$out" -l netcode
    status=0
    LD_LIBRARY_PATH="$out" "$out/layout" >"$out/layout.log" || status=$?
    cat "$out/layout.log"
    sed -n 's/^test result: ok. \([0-9]* passed\).*/detail: \1/p' "$out/layout.log"
    return "$status"
}

# A field more in the Rust struct than in C's sizes that were written down beside it.
layout_fault_is_noticed() {
    sed 's/pub packets_queued :/pub planted : u64 , &/g' "$out/netcode.rs" >"$out/planted.rs"
    ! cmp "$out/netcode.rs" "$out/planted.rs" || return 1 # the fault finds no place
    rm -f "$out/layout.log"                               # what an earlier run said would do
    fails layout_tests "$out/planted.rs"
    grep "^test result: FAILED" "$out/layout.log"
}

# The same the other way round: a header that has lost a function.
missing_function_is_noticed() {
    sed 's/pub fn netcode_client_update (/pub fn netcode_client_other (/' "$out/netcode.rs" >"$out/planted.rs"
    fails everything_is_there "$out/planted.rs" >"$out/said"
    cat "$out/said"
    [ "$(cat "$out/said")" = "no function netcode_client_update" ]
}

# A preprocessor that fails leaves nothing to be looked for, and so nothing that is missing.
silent_preprocessor_is_noticed() {
    CC=false fails everything_is_there "$out/netcode.rs"
}

rust_program() {
    cat >"$out/main.rs" <<'END'
#[allow(warnings)]
#[path = "netcode.rs"]
mod netcode;
use netcode::*;
use std::ffi::{CStr, CString};

// Makes a token, reads it, and lets a client connect with it over the simulator.
fn main() {
    unsafe {
        assert_eq!(netcode_init() as u32, NETCODE_OK);
        println!("netcode {}", CStr::from_ptr(netcode_version()).to_str().unwrap());
        let simulator = netcode_network_simulator_create(std::ptr::null_mut(), None, None);
        (*simulator).latency_milliseconds = 50.0;
        let mut server_config: netcode_server_config_t = std::mem::zeroed();
        netcode_default_server_config(&mut server_config);
        server_config.protocol_id = 5;
        server_config.network_simulator = simulator;
        server_config.private_key = [7; NETCODE_KEY_BYTES as usize];
        let address = CString::new("127.0.0.1:40000").unwrap();
        let server = netcode_server_create(address.as_ptr(), &server_config, 0.0);
        assert!(!server.is_null());
        netcode_server_start(server, 4);
        let mut addresses = [address.as_ptr()];
        let mut user_data = [9u8; NETCODE_USER_DATA_BYTES as usize];
        let mut token = [0u8; NETCODE_CONNECT_TOKEN_BYTES as usize];
        let good = netcode_generate_connect_token(1, addresses.as_mut_ptr(), addresses.as_mut_ptr(), 30, 5, 1001, 5,
            server_config.private_key.as_ptr(), user_data.as_mut_ptr(), token.as_mut_ptr());
        assert_eq!(good as u32, NETCODE_OK);
        let mut info: netcode_connect_token_info_t = std::mem::zeroed();
        assert_eq!(netcode_connect_token_info(token.as_ptr(), &mut info) as u32, NETCODE_OK);
        assert_eq!((info.protocol_id, info.num_server_addresses, info.timeout_seconds), (5, 1, 5));
        assert_eq!(info.server_addresses[0].port, 40000);
        let mut client_config: netcode_client_config_t = std::mem::zeroed();
        netcode_default_client_config(&mut client_config);
        client_config.network_simulator = simulator;
        let client_address = CString::new("127.0.0.1:50000").unwrap();
        let client = netcode_client_create(client_address.as_ptr(), &client_config, 0.0);
        netcode_client_connect(client, token.as_mut_ptr());
        let mut connected = 0;
        for tick in 1..100 {
            let time = tick as f64 * 0.02;
            netcode_network_simulator_update(simulator, time);
            netcode_server_update(server, time);
            netcode_client_update(client, time);
            let mut event: netcode_event_t = std::mem::zeroed();
            while netcode_server_next_event(server, &mut event) == 1 {
                assert_eq!((event.type_ as u32, event.client_id), (NETCODE_EVENT_CONNECTED, 1001));
                connected += 1;
            }
        }
        assert_eq!((connected, netcode_client_state(client) as u32), (1, NETCODE_CLIENT_STATE_CONNECTED));
        netcode_client_destroy(client);
        netcode_server_destroy(server);
        netcode_network_simulator_destroy(simulator);
        println!("detail: connected");
    }
}
END
    rustc --edition 2018 "$out/main.rs" -o "$out/main" -L "$out" -l netcode
    LD_LIBRARY_PATH="$out" "$out/main"
}

bindgen_checks() {
    can_have bindgen:bindgen "libclang-common-14-dev:/usr/lib/llvm-1[45]/lib/clang/*/include/stddef.h" \
        "libclang1-14:/usr/lib/llvm-1[45]/lib/libclang.so.1" || {
        skip "bindgen" "$(tail -n 1 "$out/need.log")"
        return
    }
    check "bindgen reads the header" generate netcode.h "$out/netcode.rs"
    check "bindgen: everything is there" everything_is_there "$out/netcode.rs"
    check "bindgen: a missing function is noticed" missing_function_is_noticed
    check "bindgen: a preprocessor that fails is noticed" silent_preprocessor_is_noticed
    can_have rustc:rustc || {
        skip "bindgen's layout tests" "$(tail -n 1 "$out/need.log")"
        return
    }
    check "bindgen's layout tests" layout_tests "$out/netcode.rs"
    check "bindgen: a wrong layout is noticed" layout_fault_is_noticed
    check "a Rust program connects through it" rust_program
}

# ---- cffi ----

cffi_program() {
    cat >"$out/use_cffi.py" <<'END'
"""Reads the header's public part with cffi, compares every layout with the compiler's, calls the library. Argument: a header."""
import importlib.util
import os
import subprocess
import sys

import cffi

spec = importlib.util.spec_from_file_location("layouts", "tests/all/python.py")
layouts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layouts)


def own_lines(header):
    """What stands in the header itself: cffi knows the types of the C library's headers without reading them."""
    text = layouts.compiler("-E", "-x", "c", "-DNETCODE_MESSAGES", header)
    kept, own = [], False
    for line in text.splitlines():
        if line.startswith("# "):
            own = line.split('"')[1] == header
        elif own:
            kept.append(line)
    return "\n".join(kept)


header = sys.argv[1]
ffi = cffi.FFI()
ffi.cdef(own_lines(header))
structs = layouts.structs_of(layouts.public_part("netcode.h"))
fields = 0
for (struct, field), (offset, size) in layouts.layout_of(os.path.abspath("netcode.h"), structs, "build/bindgen").items():
    if field:
        kind = dict(ffi.typeof("struct " + struct).fields)[field]
        assert (kind.offset, ffi.sizeof(kind.type)) == (offset, size), (struct, field)
        fields += 1
    else:
        assert ffi.sizeof("struct " + struct) == size, struct
lib = ffi.dlopen("build/bindgen/libnetcode.so")
for name in layouts.functions_of(layouts.public_part("netcode.h")):
    getattr(lib, name)
assert lib.netcode_init() == 1
token = ffi.new("uint8_t[2048]")
address = ffi.new("char[]", b"127.0.0.1:40000")
addresses = ffi.new("const char *[]", [address])
key = ffi.new("uint8_t[32]", bytes(range(32)))
user_data = ffi.new("uint8_t[256]", b"cffi")
assert lib.netcode_generate_connect_token(1, addresses, addresses, 30, 5, 2**64 - 1, 5, key, user_data, token) == 1
info = ffi.new("struct netcode_connect_token_info_t *")
assert lib.netcode_connect_token_info(token, info) == 1
assert (ffi.string(info.version), info.protocol_id, info.server_addresses[0].port) == (b"NETCODE 1.02", 5, 40000)
with open("build/bindgen/key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    file.write(bytes(range(32)))
# The token command opens the private part: what was passed arrived.
shown = subprocess.run(
    ["build/token", "inspect", "--key-file", "build/bindgen/key", "-"], input=bytes(token), stdout=subprocess.PIPE, check=True
).stdout
assert str(2**64 - 1).encode() in shown and (b"cffi" in shown or b"63666669" in shown), shown
os.remove("build/bindgen/key")
print("detail: %d structs, %d fields, %d functions" % (len(structs), fields, len(layouts.functions_of(layouts.public_part("netcode.h")))))
END
    PYTHONDONTWRITEBYTECODE=1 "$python" "$out/use_cffi.py" "${1:-netcode.h}"
}

# cffi reads a header whose fields are others than those of the one that the compiler sees.
cffi_fault_is_noticed() {
    sed 's/^    int packets_queued; .*/    int planted;\n&/' netcode.h >"$out/planted.h"
    ! cmp netcode.h "$out/planted.h" || return 1 # the fault finds no place
    fails cffi_program "$out/planted.h" >"$out/said" 2>&1
    cat "$out/said"
    grep "AssertionError.*netcode_client_stats_t" "$out/said"
}

cffi_checks() {
    # Debian's package belongs to the system's Python, which need not be the first on the path.
    python=/usr/bin/python3
    can_have "python3-cffi:/usr/lib/python3/dist-packages/cffi" || {
        skip "cffi" "$(tail -n 1 "$out/need.log")"
        return
    }
    check "cffi reads the header, and calls it" cffi_program
    check "cffi: a changed header is noticed" cffi_fault_is_noticed
}

sh tests/tools/deps.sh || exit 1
check "the shared library" library
if command -v flock >/dev/null 2>&1; then # another test may make it at the same time
    check "the token command" env DEPS=no flock build/all.lock make build/token
else
    check "the token command" env DEPS=no make build/token
fi
[ "$failed" = 0 ] || finish
bindgen_checks
cffi_checks
finish
