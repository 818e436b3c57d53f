#!/usr/bin/env python3
"""Tests examples/python: the binding (netcode.py) and the token backend (backend.py).

    python3 tests/all/python.py               everything
    python3 tests/all/python.py WORD...       the checks whose names hold a WORD
    python3 tests/all/python.py --plants      one fault after the other in a copy: the check that is named beside it must fail

Builds the shared library, the example server, client and token command into build/. The checks of the binding run twice: in this
process, and in a second one on a library with sanitizers and without asserts. All traffic stays on loopback.
"""

import base64
import concurrent.futures
import ctypes
import ctypes.util
import fcntl
import gc
import hashlib
import http.client
import importlib.util
import inspect
import io
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref

sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # what is started here leaves nothing beside the examples either
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
from waiting import SKIPS_FAIL  # noqa: E402

BUILD = os.path.join(ROOT, "build")
# A folder with other copies of what is tested: for the planted faults.
EXAMPLE = os.environ.get("NETCODE_TEST_EXAMPLE", os.path.join(ROOT, "examples", "python"))
MODULE = os.path.join(EXAMPLE, "netcode.py")

PROTOCOL_ID = 0x1122334455667788
SERVER = "127.0.0.1:40000"
CLIENT = "127.0.0.1:50000"

passed, failures, skipped = 0, [], 0


def check(name, function, *arguments):
    """Runs one check and prints its line. A check fails by an exception and in no other way."""
    global passed
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words and not any(word in name for word in words):
        return
    try:
        detail = function(*arguments)
    except Exception as error:
        where = error.__traceback__
        while where.tb_next:
            where = where.tb_next
        failures.append(name)
        print("FAILED %s: %s: %s (line %d)" % (name, type(error).__name__, error, where.tb_lineno), flush=True)
        return
    passed += 1
    print("ok     %s%s" % (name, ": %s" % detail if detail else ""), flush=True)


def skip(name, why):
    global skipped
    skipped += 1
    print("skipped %s: %s" % (name, why), flush=True)


def same(got, wanted):
    if got != wanted:
        raise AssertionError("got %.300r, not %.300r" % (got, wanted))


def holds(condition, why="it does not hold"):
    if not condition:
        raise AssertionError(why)


def raises(kind, function, /, *arguments, text="", **named):
    """The exception that the call raises, which must be of that kind exactly and hold that text."""
    try:
        function(*arguments, **named)
    except BaseException as error:
        if type(error) is not kind:
            raise AssertionError("raised %s: %s, not %s" % (type(error).__name__, error, kind.__name__)) from error
        holds(text in str(error), "the text is %r and does not hold %r" % (str(error), text))
        return error
    raise AssertionError("%s was not raised" % kind.__name__)


def run(command, **options):
    """A command that must end well; what it says on standard output."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300, **options
    )
    if done.returncode != 0:
        raise AssertionError("%s ended with %d: %s" % (" ".join(command[:3]), done.returncode, done.stdout[-2000:]))
    return done.stdout


def load(path=MODULE, name="netcode"):
    logging.getLogger("netcode").addHandler(logging.NullHandler())
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- the layouts: the header, as the C compiler sees it, against the module ----


def compiler(*arguments, **options):
    flags = run(["sh", "tests/tools/deps.sh", "--cflags"]).split()
    return run(os.environ.get("CC", "cc").split() + list(arguments) + flags, **options)


def public_part(header):
    return compiler("-E", "-P", "-x", "c", "-DNETCODE_MESSAGES", header)


def split_declarators(line):
    """`uint64_t a, b[3]` as ("uint64_t", "a"), ("uint64_t", "b")."""
    if re.search(r"\(\s*\*", line):
        return [function_pointer(line)]
    parts = line.split(",")
    first = re.match(r"(.*?[\s*])(\w+)\s*(\[.*\])?$", parts[0].strip(), re.S)
    kind = re.sub(r"\s+", " ", first.group(1)).strip()
    names = [first.group(2)] + [re.match(r"\s*(\w+)", part).group(1) for part in parts[1:]]
    return [(kind, name) for name in names]


def function_pointer(text):
    """`int ( *name )( void * a, int b )` as ("int", ("void *", "int")), "name"."""
    result, name, arguments = re.match(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)$", text, re.S).groups()
    return (re.sub(r"\s+", " ", result).strip(), tuple(arguments_of(arguments))), name


def structs_of(text):
    """{struct: [(type, field)...]} of the header's public structs, from the preprocessed text."""
    found = {}
    for match in re.finditer(r"struct (netcode_\w+_t)\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body = re.sub(r"union\s*\{[^}]*\}\s*(\w+)\s*;", r"union \1;", text[match.end() : at - 1])
        fields = []
        for line in body.split(";"):
            if line.strip():
                fields += split_declarators(line.strip())
        found[match.group(1)] = fields
    return found


def functions_of(text):
    """{function: (result, [argument types])} of the header's functions."""
    found = {}
    for match in re.finditer(r"extern\s+([\w\s]+?[\s*]+)(netcode_\w+)\s*\(", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        found[match.group(2)] = (re.sub(r"\s+", " ", match.group(1)).strip(), arguments_of(text[match.end() : at - 1]))
    return found


def arguments_of(text):
    if text.strip() == "void":
        return []
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    kinds = []
    for part in parts:
        part = re.sub(r"\s+", " ", part).strip()
        is_function = re.search(r"\(\s*\*", part)
        kinds.append(function_pointer(part)[0] if is_function else re.sub(r"(?<=[\s*])\w+$", "", part).strip())
    return kinds


SCALARS = {
    "int": ctypes.c_int,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "char": ctypes.c_char,
    "void": None,
}


def type_fits(c_type, python, module):
    """Can this ctypes type stand for that C type?"""
    if c_type in SCALARS:
        if isinstance(python, type) and issubclass(python, ctypes.Array):
            python = python._type_
        return python is SCALARS[c_type]
    if isinstance(c_type, tuple):  # a function's result and arguments
        if "..." in c_type[1]:
            return python is ctypes.c_void_p
        types = (python._restype_,) + python._argtypes_
        return len(types) == len(c_type[1]) + 1 and all(type_fits(c, p, module) for c, p in zip((c_type[0],) + c_type[1], types))
    if c_type == "union":
        return issubclass(python, ctypes.Union)
    match = re.match(r"(?:const )?struct (netcode_\w+) ?(\**)", c_type)
    if match:
        struct = module.STRUCTS.get(match.group(1))
        if match.group(2) == "":
            python = python._type_ if issubclass(python, ctypes.Array) else python
            return python is struct
        return python is ctypes.POINTER(struct) if struct else python is ctypes.c_void_p
    if c_type.count("*") == 2:
        return python is ctypes.POINTER(ctypes.c_char_p)
    return "*" in c_type and (
        python in (ctypes.c_char_p, ctypes.c_void_p) or (issubclass(python, ctypes._Pointer) and fits_pointer(c_type, python))
    )


def fits_pointer(c_type, python):
    return SCALARS.get(c_type.replace("const", "").replace("*", "").strip()) is python._type_


def layout_of(header, structs, folder):
    """{(struct, field or ""): (offset, size)} as the C compiler says, by a program that prints them."""
    source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
    with open(source, "w", encoding="ascii") as file:
        file.write('#include <stddef.h>\n#include <stdio.h>\n#define NETCODE_MESSAGES\n#include "%s"\nint main( void )\n{\n' % header)
        for struct, fields in structs.items():
            file.write('    printf( "%s  0 %%zu\\n", sizeof( struct %s ) );\n' % (struct, struct))
            for _, field in fields:
                size = "sizeof( ( (struct %s *) 0 )->%s )" % (struct, field)
                file.write(
                    '    printf( "%s %s %%zu %%zu\\n", offsetof( struct %s, %s ), %s );\n' % (struct, field, struct, field, size)
                )
        file.write("    return 0;\n}\n")
    compiler("-std=c99", source, "-o", program)
    found = {}
    for line in run([program]).splitlines():
        struct, field, offset, size = line.split(" ")
        found[struct, field] = (int(offset), int(size))
    return found


def differences(header, module):
    """How the module differs from a header: layouts, names and order of fields, types, functions, constants."""
    text = public_part(header)
    structs, functions = structs_of(text), functions_of(text)
    with tempfile.TemporaryDirectory() as folder:
        layout = layout_of(header, structs, folder)
    wrong = []
    if set(structs) != set(module.STRUCTS):
        wrong.append("structs: %s" % sorted(set(structs) ^ set(module.STRUCTS)))
    for name in sorted(set(structs) & set(module.STRUCTS)):
        wrong += struct_differences(name, structs[name], layout, module)
    if set(functions) != set(module.FUNCTIONS):
        wrong.append("functions: %s" % sorted(set(functions) ^ set(module.FUNCTIONS)))
    for name in sorted(set(functions) & set(module.FUNCTIONS)):
        result, arguments = functions[name]
        types = [module.FUNCTIONS[name][0]] + module.FUNCTIONS[name][1]
        if len(types) != len(arguments) + 1:
            wrong.append("%s takes %d arguments" % (name, len(arguments)))
            continue
        for c_type, python in zip([result] + arguments, types):
            if not type_fits(c_type, python, module):
                wrong.append("%s: %s is not %s" % (name, c_type, python))
    return wrong + constant_differences(header, text, module)


def struct_differences(name, fields, layout, module):
    kind = module.STRUCTS[name]
    wrong = []
    mine = [field[0] for field in kind._fields_]
    if mine != [field for _, field in fields]:
        return ["%s has the fields %s" % (name, [field for _, field in fields])]
    if ctypes.sizeof(kind) != layout[name, ""][1]:
        wrong.append("%s has %d bytes" % (name, layout[name, ""][1]))
    for (c_type, field), (_, python) in zip(fields, kind._fields_):
        descriptor = getattr(kind, field)
        if (descriptor.offset, descriptor.size) != layout[name, field]:
            wrong.append("%s.%s is %s" % (name, field, layout[name, field]))
        if not type_fits(c_type, python, module):
            wrong.append("%s.%s: %s is not %s" % (name, field, c_type, python))
    return wrong


ENUMS = {
    "NETCODE_ADDRESS_": "AddressType",
    "NETCODE_LOG_LEVEL_": "LogLevel",
    "NETCODE_PACKET_": "PacketType",
    "NETCODE_CLIENT_STATE_": "ClientState",
    "NETCODE_SERVER_CLIENT_DISCONNECT_REASON_": "DisconnectReason",
    "NETCODE_SEQUENCE_BASE_": "SequenceBase",
    "NETCODE_MESSAGE_": "MessageKind",
    "NETCODE_MESSAGES_EVENT_": "MessagesEventType",
    "NETCODE_MESSAGES_CONGESTION_": "Congestion",
}
SIZES = """CONNECT_TOKEN_BYTES KEY_BYTES MAC_BYTES USER_DATA_BYTES MAX_SERVERS_PER_CONNECT MAX_SLOTS MAX_PACKET_SIZE
    MAX_ADDRESS_STRING_LENGTH MAX_PRIVATE_KEYS MAX_PUBLIC_ADDRESSES PACKET_TYPES SERVER_CLIENT_DISCONNECT_REASONS MESSAGE_KINDS
    MESSAGES_CHANNELS MESSAGES_WHOLE_BYTES MESSAGES_MAX_BYTES""".split()
NOT_OF_AN_ENUM = ("NETCODE_PACKET_TAGGING", "NETCODE_PACKET_TYPES", "NETCODE_MESSAGE_KINDS")


def constant_differences(header, text, module):
    macros = dict(
        re.findall(
            r"^#define (NETCODE_\w+) \(?\s*(-?\d+)\s*\)?\s*$",
            compiler("-E", "-dM", "-x", "c", "-DNETCODE_MESSAGES", header),
            re.M,
        )
        + re.findall(r"(NETCODE_\w+) = (-?\d+)", text)
    )
    wrong = []
    for name in SIZES:
        if macros.get("NETCODE_" + name) != str(getattr(module, name)):
            wrong.append("NETCODE_%s is %s" % (name, macros.get("NETCODE_" + name)))
    for prefix, enum in ENUMS.items():
        theirs = {k[len(prefix) :]: int(v) for k, v in macros.items() if k.startswith(prefix) and k not in NOT_OF_AN_ENUM}
        mine = {member.name: member.value for member in getattr(module, enum)}
        if theirs != mine:
            wrong.append("%s: %s" % (enum, sorted(set(theirs.items()) ^ set(mine.items()))))
    for enum, tag, prefix in (
        ("DropReason", "netcode_drop_reason_t", "NETCODE_DROP_"),
        ("MessagesDropReason", "netcode_messages_drop_reason_t", "NETCODE_MESSAGES_DROP_"),
    ):
        names = re.findall(r"\w+", re.search(r"enum %s\s*\{([^}]*)\}" % tag, text).group(1))
        if [n[len(prefix) :] for n in names[:-1]] != [member.name for member in getattr(module, enum)]:
            wrong.append("%s has other members" % enum)
    version = re.search(r'NETCODE_VERSION_FULL "(.*?)"', open(header, encoding="utf-8").read()).group(1)
    if version != module.VERSION:
        wrong.append("the header's version is %s" % version)
    return wrong


def check_layout(module):
    wrong = differences(os.path.join(ROOT, "netcode.h"), module)
    holds(not wrong, "; ".join(wrong[:5]))
    fields = sum(len(kind._fields_) for kind in module.STRUCTS.values())
    return "%d structs, %d fields, %d functions, %d constants" % (
        len(module.STRUCTS),
        fields,
        len(module.FUNCTIONS),
        len(SIZES) + sum(len(getattr(module, e)) for e in list(ENUMS.values()) + ["DropReason", "MessagesDropReason"]),
    )


# What a changed header might do, as one edit each: the comparison must notice every one.
PLANTS = (
    ("a new field", "    uint64_t send_errors;", "    int new_field;\n    uint64_t send_errors;"),
    ("two fields swapped", "    int packets_queued;\n    int packets_held;\n", "    int packets_held;\n    int packets_queued;\n"),
    ("another type of the same size", "    int client_index;   /* the slot; a client's as netcode_client_index has it */", "    unsigned client_index;"),
    ("another size", "    char text[256];", "    char text[512];"),
    ("a new drop reason", '    X( EMPTY_DATAGRAM, ', '    X( PLANTED, "planted" ) \\\n    X( EMPTY_DATAGRAM, '),
    ("another number", "    NETCODE_CLIENT_STATE_CONNECTED = 3", "    NETCODE_CLIENT_STATE_CONNECTED = 4"),
    ("a callback's argument", "int ( *admit_callback )( void * context, uint64_t client_id,", "int ( *admit_callback )( void * context, int client_id,"),
    ("a callback's result", "uint64_t ( *unix_time )( void * context ); /*", "int ( *unix_time )( void * context ); /*"),
    ("a new function", "NETCODE_API double netcode_time( void );", "NETCODE_API double netcode_time( void );\nNETCODE_API int netcode_planted( void );"),
    ("another argument", "NETCODE_API void netcode_sleep( double seconds );", "NETCODE_API void netcode_sleep( float seconds );"),
    ("another version", '#define NETCODE_VERSION_FULL "', '#define NETCODE_VERSION_FULL "1'),
)


def check_plants(module):
    with open(os.path.join(ROOT, "netcode.h"), encoding="utf-8") as file:
        header = file.read()
    for name, old, new in PLANTS:
        holds(old in header, "the plant %r finds no place" % name)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "netcode.h")
            with open(path, "w", encoding="utf-8") as file:
                file.write(header.replace(old, new, 1))
            holds(differences(path, module), "%s was not noticed" % name)
    return "%d changed headers noticed" % len(PLANTS)


def check_loading(module):
    """A missing library and a wrong one are named, with the way to build it."""
    code = "import sys; sys.path.insert(0, %r); import netcode" % os.path.dirname(MODULE)
    for path, text in (("/nowhere/libnetcode.so", "make build/libnetcode.so"), (find_libc(), "has no netcode_")):
        environment = dict(os.environ, NETCODE_LIBRARY=path)
        done = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
        holds(done.returncode != 0 and "ImportError" in done.stderr and text in done.stderr, done.stderr[-300:])
    # What lies beside the module counts before a build/ that happens to be two folders up.
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "game", "lib")
        os.makedirs(place)
        os.mkdir(os.path.join(folder, "build"))
        shutil.copy(MODULE, place)
        os.symlink(module.lib._name, os.path.join(place, "libnetcode.so"))
        with open(os.path.join(folder, "empty.c"), "w", encoding="ascii") as file:
            file.write("int nothing;\n")
        compiler("-shared", "-fPIC", file.name, "-o", os.path.join(folder, "build", "libnetcode.so"))
        environment = {name: value for name, value in os.environ.items() if name != "NETCODE_LIBRARY"}
        run([sys.executable, "-c", "import sys; sys.path.insert(0, %r); import netcode" % place], env=environment)


def find_libc():
    return ctypes.util.find_library("c")


# ---- the binding: these run twice, the second time with sanitizers and without asserts ----


class World:
    """A server and clients over a simulator, in virtual time, with everything that happens written down."""

    def __init__(self, n, slots=4, seed=1, server_options=None, client_options=None, **network):
        self.n, self.time, self.log = n, 0.0, []
        self.key = n.PrivateKey(bytes(range(32)))
        self.network = n.NetworkSimulator(seed=seed, **network)
        self.server = n.Server(
            SERVER, 0.0, protocol_id=PROTOCOL_ID, private_key=self.key, simulator=self.network, **(server_options or {})
        )
        self.server.start(slots)
        self.client_options = client_options or {}
        self.clients = []

    def token(self, client_id=1001, **named):
        options = dict(client_id=client_id, protocol_id=PROTOCOL_ID, private_key=self.key, timeout_seconds=2)
        options.update(named)
        return self.n.generate_connect_token([SERVER], **options)

    def join(self, client_id=1001, token=None, **named):
        port = 50000 + len(self.clients)
        client = self.n.Client("127.0.0.1:%d" % port, self.time, simulator=self.network, **self.client_options)
        client.connect(token or self.token(client_id, **named))
        self.clients.append(client)
        return client

    def step(self, seconds=1 / 60):
        self.time += seconds
        self.network.update(self.time)
        self.server.update(self.time)
        for event in self.server.events():
            self.log.append(("server", event))
        for index, client in enumerate(self.clients):
            if not client.destroyed:
                client.update(self.time)
                for event in client.events():
                    self.log.append((index, event))

    def until(self, condition, seconds=20):
        end = self.time + seconds
        while not condition():
            holds(self.time < end, "not within %d virtual seconds" % seconds)
            self.step()

    def seen(self, who, kind):
        return [event for at, event in self.log if at == who and isinstance(event, kind)]

    def close(self):
        for client in self.clients:
            client.destroy()
        self.server.destroy()
        self.network.destroy()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def check_addresses(n):
    for text, printed, kind, port in (
        ("127.0.0.1:40000", "127.0.0.1:40000", n.AddressType.IPV4, 40000),
        ("127.0.0.1", "127.0.0.1", n.AddressType.IPV4, 0),
        ("[::1]:5", "[::1]:5", n.AddressType.IPV6, 5),
        ("::1", "::1", n.AddressType.IPV6, 0),
        ("[::ffff:1.2.3.4]:5", "1.2.3.4:5", n.AddressType.IPV4, 5),
        ("[fe80::1%2]:5", "[fe80::1%2]:5", n.AddressType.IPV6, 5),
    ):
        address = n.Address(text)
        same((str(address), address.type, address.port), (printed, kind, port))
    same(n.Address("[0:0::1]:5"), n.Address("[::1]:5"))
    same(len({n.Address("[0:0::1]:5"), n.Address("[::1]:5")}), 1)
    holds(n.Address("1.2.3.4:5") != n.Address("1.2.3.4:6") and n.Address("1.2.3.4:5") != "1.2.3.4:5")
    same(str(n.Address("1.2.3.4:5").with_port(6)), "1.2.3.4:6")
    same((n.Address("[::1]:5").host, n.Address("1.2.3.4:5").host), ("::1", "1.2.3.4"))
    for text in ("", "nonsense", "1.2.3.4:70000", "1.2.3", "1.2.3.4:5\0x", "１.2.3.4", "[::1"):
        raises(n.AddressError, n.Address, text)
    raises(ValueError, n.Address("::1").with_port, 65536)


def check_keys(n):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "key")

        def write(data, mode=0o600):
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)

        secret = bytes(range(100, 132))
        for data in (secret, secret.hex().encode(), secret.hex().upper().encode() + b"\r\n", base64.b64encode(secret) + b"\n"):
            write(data)
            key = n.PrivateKey.from_file(path)
            same(bytes(key._buffer), secret)
            buffer = key._buffer
            del key
            gc.collect()
            same(bytes(buffer), bytes(32))  # wiped when nothing held it any more
        for data in (b"", b"x" * 31, secret.hex().encode()[:32], b"g" * 64, secret.hex().encode()[:-1], base64.b64encode(secret)[:-1], b"=" * 44):
            write(data)
            raises(n.KeyFileError, n.PrivateKey.from_file, path, text="holds no key")
        for mode in (0o640, 0o604, 0o620):
            write(secret, mode)
            raises(n.KeyFileError, n.PrivateKey.from_file, path, text="chmod 600")
        raises(n.KeyFileError, n.PrivateKey.from_file, folder + "/none", text="can not be opened")
        os.chmod(folder, 0o700)
        raises(n.KeyFileError, n.PrivateKey.from_file, folder, text="is no file")
    key = n.PrivateKey(secret)
    holds(secret.hex() not in repr(key) and "hidden" in repr(key))
    with key:
        same(len(n.generate_connect_token([SERVER], client_id=1, protocol_id=1, private_key=key)), 2048)
    same(bytes(key._buffer), bytes(32))
    raises(n.Destroyed, n.generate_connect_token, [SERVER], client_id=1, protocol_id=1, private_key=key)
    raises(ValueError, n.PrivateKey, b"x" * 31)
    holds(n.random_bytes(32) != n.random_bytes(32) and n.random_bytes(0) == b"")


def check_tokens(n):
    key, servers = n.PrivateKey.generate(), ["127.0.0.1:%d" % port for port in range(40000, 40032)]
    before = int(time.time()) - 1  # C's time() lags by up to a tick of the kernel, which can be the end of a second
    token = n.generate_connect_token(
        servers, client_id=2**64 - 1, protocol_id=2**63 + 5, private_key=key, expire_seconds=77, timeout_seconds=9
    )
    info = n.connect_token_info(token)
    same((info.version, info.protocol_id, info.timeout_seconds), ("NETCODE 1.02", 2**63 + 5, 9))
    same([str(address) for address in info.server_addresses], servers)
    same(info.expire_timestamp - info.create_timestamp, 77)
    holds(before <= info.create_timestamp <= before + 5, "created at %d" % info.create_timestamp)

    def make(addresses=SERVER, **named):
        options = dict(client_id=1, protocol_id=1, private_key=key)
        options.update(named)
        return n.generate_connect_token(addresses, **options)

    same(n.connect_token_info(make(expire_seconds=-1)).expire_timestamp, None)
    same(n.connect_token_info(make(timeout_seconds=-1)).timeout_seconds, -1)
    same(n.connect_token_info(make("[::1]:5", internal_addresses="10.0.0.1:6")).server_addresses, (n.Address("[::1]:5"),))
    holds(make() != make(), "two tokens are the same")
    raises(n.TokenError, make, [])
    raises(n.TokenError, make, servers + [SERVER], text="1 to 32")
    raises(n.TokenError, make, servers, internal_addresses=[SERVER])
    raises(n.AddressError, make, ["127.0.0.1"], text="no port")
    raises(n.AddressError, make, ["nonsense"], text="nonsense")
    raises(ValueError, make, user_data=b"x" * 257, text="256")
    raises(ValueError, make, client_id=2**64)
    for number in (2.0**53, 5.0, "5", None):  # what int() would take, and make another id of
        raises(TypeError, make, client_id=number)
    raises(TypeError, make, expire_seconds=1.5)
    raises(ValueError, make, client_id=-1)
    raises(ValueError, make, expire_seconds=2**31)
    raises(ValueError, make, private_key=b"short")
    raises(TypeError, make, user_data="text")
    for bad in (b"", token[:-1], token + b"x"):
        raises(n.TokenError, n.connect_token_info, bad, text="2048 bytes")
    raises(n.TokenError, n.connect_token_info, b"X" + token[1:])
    raises(n.TokenError, n.connect_token_info, bytes(2048))


def check_create_errors(n):
    key = bytes(range(32))
    error = raises(n.CreateError, n.Client, "nonsense")
    same((error.code, str(error)), (1, n.lib.netcode_client_create_error_text(1).decode()))
    raises(n.AddressError, n.Client, "１.2.3.4")
    error = raises(n.CreateError, n.Client, "0.0.0.0", address2="nonsense")
    same((error.code, str(error)), (2, n.lib.netcode_client_create_error_text(2).decode()))
    error = raises(n.CreateError, n.Server, "nonsense", protocol_id=1, private_key=key)
    same((error.code, str(error)), (1, n.lib.netcode_server_create_error_text(1).decode()))
    with n.NetworkSimulator() as network:
        error = raises(n.CreateError, n.Client, "0.0.0.0", simulator=network)
        same((error.code, str(error)), (3, n.lib.netcode_client_create_error_text(3).decode()))
    with n.Server("127.0.0.1:0", protocol_id=1, private_key=key, bind_address="127.0.0.1:0") as server:
        text = "127.0.0.1:%d" % server.port
        error = raises(n.CreateError, n.Server, text, protocol_id=1, private_key=key, bind_address=text, on_log=lambda *_: None)
        same((error.code, str(error)), (5, n.lib.netcode_server_create_error_text(5).decode()))
    raises(ValueError, n.Server, SERVER, protocol_id=2**64, private_key=key)
    raises(ValueError, n.Server, SERVER, protocol_id=1, private_key=key, packet_quota=2**31)
    raises(TypeError, n.Server, SERVER, protocol_id=1, private_key=key, packet_qouta=1, text="packet_quota")
    raises(ValueError, n.Server, SERVER, protocol_id=1, private_key=b"x")
    raises(ValueError, n.Server, SERVER, protocol_id=1, private_key=key, public_addresses=["1.2.3.4"] * 33)


def pump(server, clients, condition, seconds=20):
    """Real sockets, real time."""
    events, end = [], time.monotonic() + seconds
    while not condition(events):
        holds(time.monotonic() < end, "not within %d seconds: %.200r" % (seconds, events))
        server.update()
        events += [("server", event) for event in server.events()]
        for index, client in enumerate(clients):
            client.update()
            events += [(index, event) for event in client.events()]
        server.wait(0.002)
    return events


def count(events, who, kind):
    return sum(1 for at, event in events if at == who and isinstance(event, kind))


def check_session(n):
    """Over real sockets on loopback: every size, both ways, with what statistics, events and reports say about it."""
    key, sizes = n.PrivateKey.generate(), (1, 2, 100, 1199, 1200)
    with n.Server("127.0.0.1:0", protocol_id=PROTOCOL_ID, private_key=key, bind_address="127.0.0.1:0") as server:
        server.start(4)
        address = "127.0.0.1:%d" % server.port
        token = n.generate_connect_token(
            [address], client_id=2**63 + 7, protocol_id=PROTOCOL_ID, private_key=key, user_data=b"Ann"
        )
        with n.Client("127.0.0.1:0") as client:
            same((client.state, client.server_address, client.connected), (n.ClientState.DISCONNECTED, None, False))
            client.connect(token)
            same(client.connecting, True)
            # connected() is true on the client when its own event was read; the server's came before
            events = pump(server, [client], lambda events: count(events, 0, n.Connected))
            connected = events[0][1]
            same((events[0][0], connected.client_index, connected.client_id), ("server", 0, 2**63 + 7))
            same((client.index, client.max_clients, client.server_address), (0, 4, n.Address(address)))
            same((server.client_id(0), server.client_user_data(0)), (2**63 + 7, b"Ann".ljust(256, b"\0")))
            same((server.client_address(0).port, server.client_session(0)), (client.port, connected.session))
            same((server.connected_clients, server.num_connected_clients, server.max_clients), ([0], 1, 4))
            same((server.client_id(1), server.client_address(1), server.client_user_data(1)), (0, None, None))
            for data in [os.urandom(size) for size in sizes] + [bytearray(b"array"), memoryview(b"view")]:
                client.send_packet(data)
                got = pump(server, [client], lambda events: count(events, "server", n.Payload))[-1]
                same([e.data for w, e in [got] if w == "server"] or got, [bytes(data)])
                server.send_packet(0, data)
                got = pump(server, [client], lambda events: count(events, 0, n.Payload))
                same([event.data for who, event in got if who == 0], [bytes(data)])
            check_other_sends(n, server, client)
            check_numbers(n, server, client, len(sizes) + 2)
            client.disconnect()
            events = pump(server, [client], lambda events: count(events, "server", n.Disconnected))
            gone = [event for who, event in events if who == "server"][-1]
            same((gone.reason, gone.session), (n.DisconnectReason.CLIENT_DISCONNECT, connected.session))
            same(server.client_disconnect_reason(0), n.DisconnectReason.CLIENT_DISCONNECT)
            same(client.state, n.ClientState.DISCONNECTED)
            # The same client again, with another token, and sent away by the server.
            client.connect(n.generate_connect_token([address], client_id=5, protocol_id=PROTOCOL_ID, private_key=key))
            pump(server, [client], lambda events: count(events, 0, n.Connected))
            server.disconnect_client(0)
            events = pump(server, [client], lambda events: count(events, 0, n.Disconnected))
            same([e.reason for w, e in events if w == 0], [n.ClientState.DISCONNECTED])
    return "%d sizes both ways" % len(sizes)


def check_other_sends(n, server, client):
    """Broadcast, by session; sizes and slots that can not be."""
    server.broadcast(b"all")
    pump(server, [client], lambda events: count(events, 0, n.Payload))
    session = server.client_session(0)
    server.send_packet_to_session(0, session + 1, b"wrong")
    server.broadcast(b"but", 0)
    server.send_packet_to_session(0, session, b"right")
    events = pump(server, [client], lambda events: count(events, 0, n.Payload))
    same([event.data for _, event in events], [b"right"])
    sequence = client.next_packet_sequence
    client.send_packet(b"numbered")
    events = pump(server, [client], lambda events: count(events, "server", n.Payload))
    same([(event.data, event.sequence) for _, event in events], [(b"numbered", sequence)])
    for call in (client.send_packet, lambda data: server.send_packet(0, data), server.broadcast):
        raises(ValueError, call, b"", text="1 to 1200")
        raises(ValueError, call, b"x" * 1201, text="1 to 1200")
        raises(TypeError, call, "text")
        raises(TypeError, call, 5)
    for index in (-1, 4, 2**40):
        raises(IndexError, server.send_packet, index, b"x")
        raises(IndexError, server.client_id, index)
        raises(IndexError, server.client_stats, index)


def check_numbers(n, server, client, echoes):
    ours, theirs, slot = client.stats(), server.stats(), server.client_stats(0)
    same(ours.packets_sent[n.PacketType.PAYLOAD], echoes + 1)
    same(theirs.packets_received[n.PacketType.PAYLOAD], echoes + 1)
    same(theirs.packets_sent[n.PacketType.PAYLOAD], ours.packets_received[n.PacketType.PAYLOAD])
    same((ours.connects, theirs.connects, theirs.clients, theirs.slots, theirs.handshakes), (1, 1, 1, 4, 1))
    same((ours.packets_queued, ours.packets_held, theirs.packets_held), (0, 0, 0))
    same(set(theirs.dropped), set(n.DropReason))
    same(set(theirs.disconnects), set(n.DisconnectReason))
    same((slot.session, slot.client_id, slot.loopback), (server.client_session(0), 2**63 + 7, False))
    holds(slot.confirmed is True and slot.seconds_connected > 0 and slot.bytes_received > 2502, repr(slot))
    same(server.client_stats(1), n.ServerClientStats(*[0] * 7, 0.0, 0.0, 0, False, False, 0.0, 0.0, 0.0, 0, 0, 0.0, 0))
    report = client.report()
    same((report.state, len(report.servers), report.server_index), (n.ClientState.CONNECTED, 1, 0))
    same((report.servers[0].address, report.servers[0].challenged), (client.server_address, True))
    holds(report.text and report.servers[0].requests_sent >= 1, repr(report))


def story(n, seed):
    bad = dict(latency_milliseconds=60, jitter_milliseconds=20, packet_loss_percent=10, duplicate_packet_percent=5)
    clock = dict(unix_time=lambda: 1000)
    with World(n, seed=seed, server_options=clock, reorder_packet_percent=5, **bad) as world:
        client = world.join()
        world.until(lambda: client.connected)
        for number in range(200):
            client.send_packet(b"%d" % number)
            world.step()
        world.until(lambda: len(world.seen("server", n.Payload)) > 100)
        return [round(world.time, 6)] + [event.data for event in world.seen("server", n.Payload)]


def check_simulator(n):
    # Sequences and keys are random, so what repeats is what the network does: order and loss of the payloads.
    first, again, other = story(n, 7), story(n, 7), story(n, 8)
    same(again, first)
    holds(other != first, "another seed made no difference")
    with n.NetworkSimulator(latency_milliseconds=50) as network:
        same((network.latency_milliseconds, network.packet_loss_percent), (50.0, 0.0))
        network.packet_loss_percent = 100
        same(network.packet_loss_percent, 100.0)
        network.packet_loss_percent = 0
        with network.socket("10.0.0.1:1") as a, network.socket("10.0.0.2:2") as b:
            raises(n.AddressError, network.socket, "10.0.0.1:1")
            raises(n.AddressError, network.socket, "10.0.0.3")
            a.send("10.0.0.2:2", b"hello")
            network.update(0.01)
            same(b.receive(), None)
            network.update(0.2)
            same(b.receive(), (n.Address("10.0.0.1:1"), b"hello"))
            a.send("10.0.0.2:2", b"gone")
            network.reset()
            network.update(1.0)
            same(b.receive(), None)
    return "%d payloads" % (len(first) - 1)


def check_outcomes(n):
    """Each way in which a connection does not come about, or ends."""
    with World(n, slots=1) as world:
        first = world.join(1)
        world.until(lambda: first.connected)
        second = world.join(2)
        world.until(lambda: second.state < 0)
        same(second.state, n.ClientState.CONNECTION_DENIED)
        same(world.seen(1, n.Disconnected)[0].reason, n.ClientState.CONNECTION_DENIED)
        holds(second.report().servers[0].denied is True, "the report does not say denied")
        world.clients.remove(first)
        world.network.packet_loss_percent = 100
        world.until(lambda: world.seen("server", n.Disconnected))
        same(world.seen("server", n.Disconnected)[0].reason, n.DisconnectReason.TIMED_OUT)
        first.update(world.time)
        first.update(world.time + 10)
        same(first.state, n.ClientState.CONNECTION_TIMED_OUT)
        first.destroy()
    drops = []
    options = dict(on_drop=lambda reason, address, size: drops.append((reason, address, size)))
    with World(n, server_options=options) as world:
        other = world.join(1, private_key=bytes(32))
        world.until(lambda: other.state < 0, 60)
        same(other.state, n.ClientState.CONNECTION_REQUEST_TIMED_OUT)
        same(drops[0], (n.DropReason.TOKEN_NOT_AUTHENTIC, n.Address("127.0.0.1:50000"), 1078))
        same(world.server.stats().dropped[n.DropReason.TOKEN_NOT_AUTHENTIC], len(drops))
        expired = world.join(2, expire_seconds=0)
        world.step()
        same(expired.state, n.ClientState.CONNECT_TOKEN_EXPIRED)
        token = world.token(3)
        third = world.join(3, token)
        world.until(lambda: third.connected)
        third.disconnect()
        replay = world.join(3, token)
        world.until(lambda: replay.state < 0, 60)
        holds(n.DropReason.TOKEN_CONSUMED in {reason for reason, _, _ in drops}, "the used token was not refused")
        broken = world.join(4, b"X" + token[1:])
        same(broken.state, n.ClientState.INVALID_CONNECT_TOKEN)
        raises(n.TokenError, broken.connect, token[:-1], text="2048")
        world.server.process_packet("1.2.3.4:5", b"\0" * 30)
        same(drops[-1], (n.DropReason.REQUEST_WRONG_SIZE, n.Address("1.2.3.4:5"), 30))


def check_server_options(n):
    """admit, key rotation, replacing, stop and start, several keys."""
    asked = []

    def admit(client_id, tag, expire):
        asked.append((client_id, len(tag), expire))
        if client_id == 14 and [each[0] for each in asked].count(14) < 3:
            return n.ADMIT_LATER
        return client_id != 13

    options = dict(admit=admit, replace_existing_clients=1)
    with World(n, server_options=options) as world:
        bad, good = world.join(13), world.join(14)
        world.until(lambda: bad.state < 0 and good.connected)
        same(bad.state, n.ClientState.CONNECTION_DENIED)
        same({(client_id, size) for client_id, size, _ in asked}, {(13, 16), (14, 16)})
        same(([each[0] for each in asked].count(14), world.server.stats().dropped[n.DropReason.ADMISSION_PENDING]), (3, 2))
        again = world.join(14, expire_seconds=60)
        world.until(lambda: again.connected)
        same([event.reason for event in world.seen("server", n.Disconnected)], [n.DisconnectReason.REPLACED])
        new = n.PrivateKey.generate()
        world.server.set_private_keys([new, world.key])
        both = world.join(15), world.join(16, private_key=new)
        world.until(lambda: all(client.connected for client in both))
        world.server.set_private_keys([new])
        old = world.join(17)
        world.until(lambda: old.state < 0, 60)
        same(both[0].connected, True)
        raises(ValueError, world.server.set_private_keys, [])
        raises(ValueError, world.server.set_private_keys, [new] * 5)
        world.server.stop()
        same((world.server.running, world.server.max_clients), (False, 0))
        raises(IndexError, world.server.client_id, 0)
        raises(ValueError, world.server.start, 0)
        raises(ValueError, world.server.start, 65536)
        world.server.start(2)
        same((world.server.running, world.server.max_clients), (True, 2))


def check_roaming(n):
    """A client whose address changes stays connected with `roaming`, and without it does not."""
    with World(n, server_options=dict(roaming=1), latency_milliseconds=40) as world:
        client = world.join()
        world.until(lambda: client.connected)
        world.until(lambda: client.stats().round_trip_seconds > 0 and world.server.client_stats(0).round_trip_seconds > 0)
        for seconds in client.stats().round_trip_seconds, world.server.client_stats(0).round_trip_lowest_seconds:
            holds(0.08 <= seconds < 0.12, "40 ms one way are a round trip of %.3f s" % seconds)
        for number, at_rebind in ((1, False), (2, True)):
            old, new = world.server.client_address(0), n.Address("127.0.0.2:%d" % (6000 + number))
            world.network.move(old, new, at_rebind)
            if at_rebind:  # until then the server receives nothing; half a second is less than the silence after which the client rebinds
                received = world.server.stats().packets_received
                for _ in range(30):
                    world.step()
                same(world.server.stats().packets_received, received)
                same(client.rebind(), True)
            world.until(lambda: len(world.seen("server", n.Moved)) == number)
            same(world.server.client_address(0), new)
            same(world.seen("server", n.Moved)[-1][:2], (0, world.server.client_session(0)))
            client.send_packet(b"from %d" % number)
            world.until(lambda: world.seen("server", n.Payload)[-1:] and world.seen("server", n.Payload)[-1].data == b"from %d" % number)
        raises(n.AddressError, world.network.move, "1.2.3.4:5", "1.2.3.4:6")
        stats = world.server.stats()
        same((stats.moves, world.server.client_stats(0).moves, client.stats().rebinds), (2, 2, 1))
        holds(stats.path_candidates >= 2 and stats.trials >= 2 and stats.probes_answered > 2, repr(stats))
        same((client.connected, world.seen("server", n.Disconnected)), (True, []))
    strays = []
    with World(n, server_options=dict(on_stray=lambda *stray: not strays.append(stray))) as world:
        client = world.join()
        world.until(lambda: client.connected)
        world.network.move("127.0.0.1:50000", "127.0.0.2:6000")
        client.send_packet(b"lost")
        world.until(lambda: client.state < 0)
        same(strays[0][0], n.Address("127.0.0.2:6000"))
        holds(all(isinstance(data, bytes) and len(data) > 18 for _, data in strays), repr(strays[0]))
        same(world.server.stats().dropped[n.DropReason.UNKNOWN_ADDRESS], 0)
        same((world.seen("server", n.Moved), world.server.stats().moves), ([], 0))
    return "%d strays" % len(strays)


def check_loopback(n):
    """A client in the same process, by the loopback calls."""
    to_server, to_client = [], []
    with World(n, server_options=dict(on_send_loopback=lambda *packet: to_client.append(packet))) as world:
        with n.Client("127.0.0.1:60000", 0.0, simulator=world.network, on_send_loopback=lambda *p: to_server.append(p)) as client:
            client.connect_loopback(1, 4)
            world.server.connect_loopback_client(1, 99, b"data")
            same((client.loopback, client.connected, client.index), (True, True, 1))
            same((world.server.client_loopback(1), world.server.client_id(1)), (True, 99))
            same(world.server.client_user_data(1)[:5], b"data\0")
            client.send_packet(b"up")
            world.server.send_packet(1, b"down")
            same((to_server[0][:2], to_client[0][:2]), ((1, b"up"), (1, b"down")))
            world.server.process_loopback_packet(1, to_server[0][1], to_server[0][2])
            client.process_loopback_packet(to_client[0][1], to_client[0][2])
            same([event.data for event in client.events() if isinstance(event, n.Payload)], [b"down"])
            same([event.data for event in world.server.events() if isinstance(event, n.Payload)], [b"up"])
            client.disconnect_loopback()
            world.server.disconnect_loopback_client(1)
            same((client.connected, world.server.client_connected(1)), (False, False))
            raises(ValueError, client.connect_loopback, 4, 4)


class Wire:
    """A network written in Python: `network` of clients and servers."""

    def __init__(self, module, address, all_of_them):
        self.address, self.inbox, self.all = module.Address(address), [], all_of_them
        all_of_them[self.address] = self

    def send(self, to, data):
        if to in self.all:
            self.all[to].inbox.append((self.address, data))

    def receive(self):
        return self.inbox.pop(0) if self.inbox else None


def check_network(n):
    wires, key = {}, bytes(range(32))
    with n.Server(SERVER, 0.0, protocol_id=1, private_key=key, network=Wire(n, SERVER, wires)) as server:
        server.start(1)
        with n.Client("0.0.0.0", 0.0, network=Wire(n, "9.9.9.9:9", wires)) as client:
            client.connect(n.generate_connect_token([SERVER], client_id=1, protocol_id=1, private_key=key))
            wires[n.Address(SERVER)].inbox.append(("8.8.8.8:8", b""))  # nothing, and no end of what waits
            for tick in range(60):
                server.update(tick / 60)
                client.update(tick / 60)
            same((client.connected, server.client_address(0)), (True, n.Address("9.9.9.9:9")))


def exchange(n, world, client, ours, theirs, done, seconds=60):
    """Ticks with messages joined on both sides, until done()."""
    end, got = world.time + seconds, ([], [])
    while True:
        holds(world.time < end, "not within %d virtual seconds: %d and %d messages" % (seconds, len(got[0]), len(got[1])))
        world.time += 1 / 60
        world.network.update(world.time)
        world.server.update(world.time)
        theirs.server_receive(world.server, 0, world.time)
        got[1].extend(theirs.received())
        theirs.server_send(world.server, 0, world.time)
        client.update(world.time)
        ours.client_receive(client, world.time)
        got[0].extend(ours.received())
        ours.client_send(client, world.time)
        if done(*got):
            return got


def check_messages(n):
    """Each kind over a bad network: what must arrive arrives, in its order, and receipts report it."""
    kinds, counts = n.MessageKind, {}
    with World(n, seed=3, latency_milliseconds=40, packet_loss_percent=5) as world:
        client = world.join()
        with n.Messages(0.0, channels=8, weights=[1, 2], priorities=[0, 1]) as ours, n.Messages(0.0, channels=8) as theirs:
            exchange(n, world, client, ours, theirs, lambda *_: client.connected)
            sendable = [kind for kind in kinds if kind != kinds.STREAM]
            for number in range(100):
                for kind in sendable:
                    ours.send(b"%d %d" % (kind, number), channel=kind, kind=kind, receipt=number * 8 + kind + 1)
                for message in exchange(n, world, client, ours, theirs, lambda *_: True)[1]:
                    counts.setdefault(message.channel, []).append(message)
            reliable = [kinds.RELIABLE, kinds.RELIABLE_ORDERED]
            events = []

            def drain(_, got):
                for message in got:
                    counts.setdefault(message.channel, []).append(message)
                del got[:]
                events.extend(ours.events())
                return all(len(counts.get(kind, ())) >= 100 for kind in reliable) and len(events) >= 500

            exchange(n, world, client, ours, theirs, drain)
            for kind in sendable:
                numbers = [int(message.data.split()[1]) for message in counts[kind]]
                holds(len(set(numbers)) == len(numbers), "%s came twice" % kind.name)
                if kind in reliable:
                    same(sorted(numbers), list(range(100)))
                if "ORDERED" in kind.name or "SEQUENCED" in kind.name:
                    same(numbers, sorted(numbers))
                holds(len(numbers) >= 80, "of %s only %d arrived" % (kind.name, len(numbers)))
            acked = {event.receipt for event in events if event.type == n.MessagesEventType.ACKED}
            holds({i * 8 + kind + 1 for i in range(100) for kind in reliable} <= acked, "a receipt is missing")
            check_messages_numbers(n, ours, theirs)
    return ", ".join("%s %d" % (kind.name.lower(), len(counts[kind])) for kind in list(kinds)[:5])


def check_messages_numbers(n, ours, theirs):
    mine, other = ours.stats(), theirs.stats()
    # Small messages go three times, so few of them have to be sent again.
    holds(mine.packets_lost > 0 and mine.messages_repeated > 0, "5 %% loss, and nothing was lost: %r" % mine)
    holds(mine.rtt > 0.08 and mine.packets_sent >= other.packets_received > 0, repr(mine)[:200])
    same(set(mine.drops), set(n.MessagesDropReason))
    same(ours.channel_stats(0), n.MessagesChannelStats(0, 0, 0.0))
    raises(ValueError, ours.channel_stats, 32)


def check_large_messages(n):
    """In fragments, with progress; and every way to be refused."""
    kinds, big = n.MessageKind, os.urandom(100000)
    with World(n, latency_milliseconds=20) as world:
        client = world.join()
        with n.Messages(0.0) as ours, n.Messages(0.0) as theirs:
            exchange(n, world, client, ours, theirs, lambda *_: client.connected)
            ours.send(b"", kind=kinds.RELIABLE)
            ours.send(big, kind=kinds.RELIABLE, receipt=77)
            events = []

            def acked(*_):
                events.extend(ours.events())
                return any(event.type == n.MessagesEventType.ACKED for event in events)

            _, got = exchange(n, world, client, ours, theirs, acked)
            same([message.data for message in got], [b"", big])
            types = [event.type for event in events]
            same((types[-1], events[-1].receipt, events[-1].bytes), (n.MessagesEventType.ACKED, 77, 100000))
            holds(types.count(n.MessagesEventType.PROGRESS) >= 2, "no progress: %r" % types)
            raises(n.MessageTooLarge, ours.send, b"x" * 1181, kind=kinds.UNRELIABLE)
            raises(n.MessageTooLarge, ours.send, b"x" * 262145)
            raises(n.MessageTooLarge, ours.send, Long(b"x", 2**31 - 1))
            raises(ValueError, ours.send, Long(b"x", 2**32 + 5))  # C would get 5
            raises(ValueError, ours.send, b"x", channel=32)
            raises(ValueError, ours.send, b"x", kind=8)
            raises(ValueError, ours.send, b"x", ttl_seconds=1.0)
            raises(TypeError, ours.send, "text")
            raises(n.MessagesFull, fill, ours)
            ours.reset(world.time)
            ours.send(b"room again")
    raises(ValueError, n.Messages, 0.0, channels=33)
    raises(TypeError, n.Messages, 0.0, chanels=3)
    raises(ValueError, n.Messages, 0.0, weights=[1] * 33)
    raises(ValueError, n.Messages, 0.0, priorities=[256])


class Long(bytes):
    """Claims to be longer than memory would hold."""

    def __new__(cls, data, length):
        self = super().__new__(cls, data)
        self.length = length
        return self

    def __len__(self):
        return self.length


def fill(messages):
    for _ in range(1000):
        messages.send(b"x" * 10000)


def check_bare_messages(n):
    """Without a connection: packets carried by hand; what is no packet is named; an ordered one given up breaks it."""
    with n.Messages(0.0, max_retries=1) as a, n.Messages(0.0) as b:
        a.send(b"one")
        a.update(0.01)
        packets = list(a.packets())
        same(b.process_packet(packets[0]), n.MessagesDropReason.NONE)
        same(b.process_packet(packets[0]), n.MessagesDropReason.DUPLICATE)
        same([message.data for message in b.received()], [b"one"])
        same(b.process_packet(b"junk"), n.MessagesDropReason.HEADER)
        same(b.stats().drops[n.MessagesDropReason.HEADER], 1)
        holds(n.messages_drop_reason_text(n.MessagesDropReason.HEADER).startswith("shorter"), "another text")
        b.update(0.01)
        list(b.packets())
        holds(b.next_deadline > 0.01, "due at %f" % b.next_deadline)
        a.send(b"lost")
        now, broken = 0.02, False
        while now < 120 and not broken:
            now += 0.05
            a.update(now)
            list(a.packets())
            broken = any(event.type == n.MessagesEventType.BROKEN for event in a.events())
        holds(broken, "nothing broke")
        raises(n.MessagesBroken, a.send, b"more")


class Planted(Exception):
    pass


class Ticks:
    """Two messages without a connection, each packet carried to the other side; `loss` drops some."""

    def __init__(self, n, loss=0, **options):
        self.n, self.loss, self.time, self.packets = n, loss, 0.0, 0
        self.ours, self.theirs, self.events = n.Messages(0.0), n.Messages(0.0, **options), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ours.destroy()
        self.theirs.destroy()

    def tick(self):
        self.time += 0.01
        for one, other in ((self.ours, self.theirs), (self.theirs, self.ours)):
            one.update(self.time)
            for packet in one.packets():
                self.packets += 1
                if not self.loss or self.packets % self.loss:
                    same(other.process_packet(packet), self.n.MessagesDropReason.NONE)
        self.events += self.ours.events()

    def until(self, done, seconds=60):
        while not done():
            holds(self.time < seconds, "not within %d virtual seconds" % seconds)
            self.tick()

    def outcomes(self):
        """What became of each receipt."""
        return {event.receipt: event.type.name for event in self.events if event.type.name != "PROGRESS"}


class Reader:
    """A source that fails where it is set to."""

    def __init__(self, size, fault=None):
        self.size, self.fault, self.reads = size, fault, 0

    def __len__(self):
        return self.size

    def read(self, offset, count):
        self.reads += 1
        if self.fault and offset >= self.size // 2:
            return self.fault(count)
        return bytes((offset + i) * 7 % 251 for i in range(count))


class Writer:
    """Writes down what it gets."""

    def __init__(self, size, fault=None):
        self.data, self.seen, self.fault, self.ends = bytearray(size), bytearray(size), fault, []

    def write(self, offset, data):
        holds(not any(self.seen[offset : offset + len(data)]), "a byte came twice")
        self.seen[offset : offset + len(data)] = b"\1" * len(data)
        self.data[offset : offset + len(data)] = data
        return self.fault() if self.fault and offset >= len(self.data) // 2 else None

    def end(self, complete):
        self.ends.append(complete)


def raise_planted(*_):
    raise Planted("from a stream")


def check_streams(n):
    """From bytes, from a file, from a reader; into a file and into a writer; refused, cancelled, ended."""
    big, offers, writers = os.urandom(300001), [], {}

    def accept(channel, size, tag):
        offers.append((channel, size, tag))
        if tag == 9:
            return None
        writers[tag] = n.StreamFile(io.BytesIO()) if tag == 2 else Writer(size)
        return writers[tag]

    with Ticks(n, loss=7, accept_stream=accept) as it, tempfile.TemporaryFile() as file:
        file.write(big)
        reader = Reader(100000)
        it.ours.send_stream(memoryview(big), 1, 3, receipt=11)
        it.ours.send_stream(n.StreamFile(file), tag=2, receipt=2**64 - 1)
        it.ours.send_stream(reader, tag=2**32 - 1, receipt=13)
        it.ours.send_stream(b"", tag=4, receipt=14)
        it.ours.send_stream(big, tag=9, receipt=19)
        it.ours.send(b"beside", receipt=1)
        it.until(lambda: len(it.outcomes()) == 6)
        same(it.outcomes(), {1: "ACKED", 11: "ACKED", 2**64 - 1: "ACKED", 13: "ACKED", 14: "ACKED", 19: "LOST"})
        same(sorted(offers), [(0, 0, 4), (0, 100000, 2**32 - 1), (0, 300001, 2), (0, 300001, 9), (3, 300001, 1)])
        same((bytes(writers[1].data), writers[1].ends), (big, [True]))
        same((writers[2].file.getvalue(), writers[2].complete), (big, True))
        same(bytes(writers[2**32 - 1].data), Reader(100000).read(0, 100000))
        same((bytes(writers[4].data), writers[4].ends), (b"", [True]))
        progress = [event for event in it.events if event.type == n.MessagesEventType.PROGRESS and event.receipt == 11]
        holds(progress and all(0 < event.stream_bytes_done < 300001 for event in progress), "progress: %r" % progress)
        last = [event for event in it.events if event.receipt == 11][-1]
        same(last, (n.MessagesEventType.ACKED, 3, n.MessageKind.STREAM, 300001, 300001, 11, 300001, 300001, 0))
        same([event for event in it.events if event.receipt == 1][0][-2:], (0, 0))
        check_streams_end(n, it, writers, big)
    with n.Messages(0.0) as bare, n.Messages(0.0) as refuses:  # without accept_stream all are refused
        bare.send_stream(b"x", receipt=5)
        bare.update(0.01)
        same({refuses.process_packet(packet) for packet in bare.packets()}, {n.MessagesDropReason.NONE})
        for wrong in (dict(tag=2**32), dict(tag=-1), dict(channel=32), dict(receipt=2**64)):
            raises(ValueError, bare.send_stream, b"x", **wrong)
        raises(ValueError, bare.send_stream, Reader(2**32))
        raises(TypeError, bare.send_stream, "text")
        raises(TypeError, bare.send_stream, io.BytesIO())
        raises(KeyError, bare.cancel_stream, 6)
        raises(ValueError, bare.send, b"x", kind=n.MessageKind.STREAM)
        raises(n.MessagesFull, lambda: [bare.send_stream(b"x") for _ in range(100000)])
        same(len([1 for source in bare._streams.sources]), bare._streams.last - 1)


def check_streams_end(n, it, writers, big):
    """Cancelled, queued and begun, by one receipt; then the connection ends."""
    same((it.ours._streams.sources, it.theirs._streams.writers), ({}, {}))
    del it.events[:]
    for tag in (21, 22, 23):
        it.ours.send_stream(big, tag, receipt=tag - tag % 2)
    it.until(lambda: 22 in writers)
    it.ours.send_stream(big, 24, receipt=22)
    it.ours.cancel_stream(22)
    it.until(lambda: it.outcomes().get(20) == "ACKED" and 22 in it.outcomes())
    same([event.type.name for event in it.events if event.receipt == 22 and event.type.name != "PROGRESS"], ["LOST"] * 3)
    it.until(lambda: writers[22].ends)
    same((writers[21].ends, writers[22].ends, 24 in writers), ([True], [False], False))
    raises(KeyError, it.ours.cancel_stream, 22)
    for end in (it.theirs.reset, it.theirs.destroy):
        it.ours.send_stream(big, 30, receipt=30)
        for _ in range(3):
            it.tick()
        same(writers[30].ends, [])
        end()
        same(writers[30].ends, [False])
        it.ours.reset(it.time)
        same([event.type.name for event in it.ours.events() if event.type.name != "PROGRESS"], ["LOST"])
        same(it.ours._streams.sources, {})


def check_stream_callbacks(n):
    """What a stream's functions raise comes out of the call that they ran in, and their stream ends; the next one is fine."""
    offered = {}

    def accept(_, size, tag):
        if tag == 1:
            raise Planted("from accept")
        if tag == 2:
            return object()
        faults = {3: raise_planted, 4: lambda: False}
        offered[tag] = Writer(size, faults.get(tag))
        if tag == 5:
            offered[tag].end = raise_planted
        return offered[tag]

    def ends(error, tag, source, outcome, text=""):
        it.ours.send_stream(source, tag, receipt=tag)
        if error:
            raises(error, it.until, lambda: False, text=text)
        it.until(lambda: tag in it.outcomes())
        same(it.outcomes()[tag], outcome)
        if tag in offered and tag != 5:
            it.until(lambda: offered[tag].ends)
            same(offered[tag].ends, [outcome == "ACKED"])

    with Ticks(n, accept_stream=accept) as it:
        ends(Planted, 1, bytes(5000), "LOST", "from accept")
        ends(TypeError, 2, bytes(5000), "LOST", "no write")
        ends(Planted, 3, bytes(5000), "LOST", "from a stream")
        ends(None, 4, bytes(5000), "LOST")
        ends(Planted, 5, bytes(5000), "ACKED", "from a stream")
        ends(Planted, 6, Reader(400000, raise_planted), "LOST", "from a stream")
        ends(ValueError, 7, Reader(400000, lambda count: b"short"), "LOST", "gave 5 bytes")
        ends(TypeError, 8, Reader(400000, lambda count: "text"), "LOST")
        ends(None, 9, Reader(400000), "ACKED")
        memory = ctypes.create_string_buffer(b"old data", 8)  # what C gives to a source that fails does not keep what it held
        it.ours._streams.sources[0] = (Reader(8, raise_planted), 0)
        raises(Planted, it.ours._streams.on_read, 0, 4, ctypes.addressof(memory), 8)
        same(memory.raw, bytes(8))
        del it.ours._streams.sources[0], it.ours._streams.failed[:]

        def within(message):  # all that a stream's functions may call is send
            it.theirs.send(b"from within")
            it.theirs.send_stream(b"from within")
            return it.theirs.cancel_stream(1) if message else it.theirs.reset()

        for tag, message in ((10, True), (11, False)):
            accepted = Writer(5000, lambda message=message: within(message))
            offered.clear()
            it.theirs._streams.accept = lambda *_, accepted=accepted: accepted
            ends(n.Misuse, tag, bytes(5000), "LOST")
            same(accepted.ends, [False])
        same([message.data for message in it.ours.received()][:1], [b"from within"])


def check_stream_lives(n):
    """A source lives until ACKED or LOST was read and no longer, a writer until its end; collected in the middle, nothing crashes."""
    writers = []

    def accept(_, size, __):
        writers.append(Writer(size))
        return writers[-1]

    with Ticks(n, accept_stream=accept) as it:
        source = Reader(50000)
        it.ours.send_stream(source, receipt=1)
        source = weakref.ref(source)
        for _ in range(200):
            it.time += 0.01
            for one, other in ((it.ours, it.theirs), (it.theirs, it.ours)):
                one.update(it.time)
                for packet in one.packets():
                    other.process_packet(packet)
            gc.collect()
            holds(source() is not None, "the source ended before its event was read")
        same([event.type.name for event in it.ours.events()][-1], "ACKED")
        gc.collect()
        same(source(), None)
        writer = weakref.ref(writers.pop())
        gc.collect()
        same(writer(), None)
    it = Ticks(n, accept_stream=accept)
    it.ours.send_stream(Reader(500000))
    for _ in range(3):
        it.tick()
    owner, source = weakref.ref(it.theirs), weakref.ref(it.ours._streams.sources[1][0])
    del it
    gc.collect()
    same((owner(), source()), (None, None))


def check_callbacks(n):
    """What a callback raises comes out of the call that it ran in; callbacks live as long as they can be called."""
    seen = []

    def connect_disconnect(index, connected):
        seen.append((index, connected))
        raise Planted("from the callback")

    with World(n, server_options=dict(on_connect_disconnect=connect_disconnect)) as world:
        client = world.join()
        gc.collect()
        raises(Planted, world.until, lambda: False, text="from the callback")
        same(seen, [(0, True)])
        world.until(lambda: client.connected)
        raises(Planted, world.server.disconnect_client, 0)
        same(seen, [(0, True), (0, False)])
    states = []
    options = dict(on_state_change=lambda old, new: states.append((old.name, new.name)))
    with World(n, client_options=options) as world:
        client = world.join()
        world.until(lambda: client.connected)
        same(states[0], ("DISCONNECTED", "SENDING_CONNECTION_REQUEST"))
        same(states[-1], ("SENDING_CONNECTION_RESPONSE", "CONNECTED"))

    def interrupt(*_):
        raise KeyboardInterrupt

    with World(n, server_options=dict(admit=interrupt)) as world:
        client = world.join()
        raises(KeyboardInterrupt, world.until, lambda: False)
        same(world.server.num_connected_clients, 0)  # an admit that raises denies

    states.clear()

    def end(old, new):
        states.append(client.state)
        if len(states) > 1:  # that it is disconnected, while it ends
            return
        client.destroy()  # in the middle of its own update
        same(world.network._users, 2)  # it is there until that has returned
        raises(n.Destroyed, getattr, client, "state")
        raises(n.Misuse, world.network.destroy)

    with World(n) as world:
        client = n.Client("127.0.0.1:50000", 0.0, simulator=world.network, on_state_change=end)
        world.clients.append(client)
        raises(Planted, lambda: (client.connect(world.token()), [world.step() for _ in range(60)], planted()))
        same(client.destroyed, True)
        same(states, [n.ClientState.SENDING_CONNECTION_REQUEST, n.ClientState.DISCONNECTED])


def planted():
    raise Planted()


class Striking(Wire):
    """Does what it was given when the next datagram leaves, in the middle of the call that sends it."""

    strike = None

    def send(self, to, data):
        strike, self.strike = self.strike, None
        if strike:
            strike()
        super().send(to, data)


def check_callbacks_that_destroy(n):
    """What a callback destroys lives until the outermost call has returned: messages send on after the first packet."""
    for victim in ("client", "server", "messages", "reset"):
        wires, key = {}, bytes(range(32))
        here, there = Striking(n, "9.9.9.9:9", wires), Striking(n, SERVER, wires)
        with n.Server(SERVER, 0.0, protocol_id=1, private_key=key, network=there) as server, n.Client(
            "0.0.0.0", 0.0, network=here
        ) as client, n.Messages(0.0) as ours, n.Messages(0.0) as theirs:
            server.start(1)
            client.connect(n.generate_connect_token([SERVER], client_id=1, protocol_id=1, private_key=key))
            for tick in range(150):  # until many packets are sent at once
                now = tick / 60
                server.update(now)
                client.update(now)
                theirs.server_receive(server, 0, now)
                ours.client_receive(client, now)
                for messages in (ours, theirs):
                    list(messages.received())
                    messages.send(b"x" * 900)
                theirs.server_send(server, 0, now)
                ours.client_send(client, now)
            for messages in (ours, theirs):
                for _ in range(20):
                    messages.send(b"x" * 900)
            if victim == "reset":
                here.strike = lambda: ours.reset(now)
                raises(n.Misuse, ours.client_send, client, now, text="just now")
            elif victim == "server":
                there.strike = server.destroy
                theirs.server_send(server, 0, now)
                same(server.destroyed, True)
            else:
                here.strike = client.destroy if victim == "client" else ours.destroy
                ours.client_send(client, now)
                same((client.destroyed, ours.destroyed), (victim == "client", victim != "client"))
            same((here.strike, there.strike), (None, None))


def check_slots_in_callbacks(n):
    """Which slots there are is what the server says: after a stop out of which a callback raised, there are none."""
    notified = []

    def restart(index, connected):
        notified.append((index, connected, world.server.client_id(index)))
        if not connected:
            raise Planted()

    options = dict(on_connect_disconnect=restart, on_send_loopback=lambda *_: None)
    with World(n, server_options=options) as world:
        world.server.connect_loopback_client(3, 33)
        raises(Planted, world.server.start, 2)
        same(notified, [(3, True, 33), (3, False, 33)])
        raises(IndexError, world.server.client_id, 3)
        world.server.connect_loopback_client(1, 44)
        raises(Planted, world.server.stop)
        raises(IndexError, world.server.client_id, 1)
        world.server.start(1)
        world.server.connect_loopback_client(0, 55)
        raises(Planted, world.server.destroy)
        same((notified[-1], world.server.destroyed), ((0, False, 55), True))
        raises(n.Destroyed, world.server.client_id, 0)


def check_collected(n):
    """An object that its own callback leads back to is collected, and then no callback comes any more."""
    calls = []

    class Game:
        def __init__(self, world):
            self.client = n.Client("127.0.0.1:60000", 0.0, simulator=world.network, on_state_change=self.changed)
            self.client.connect(world.token())

        def changed(self, *states):
            calls.append(states)

    with World(n) as world:
        game = Game(world)
        reference = weakref.ref(game)
        while not game.client.connected:
            world.step()
            game.client.update(world.time)
        same(len(calls), 3)
        del game
        gc.collect()
        same((reference(), len(calls)), (None, 3))
        world.until(lambda: world.seen("server", n.Disconnected))  # it has said goodbye


def check_forgotten_in_turns(n):
    """Two threads, each inside one network, forget an object of the other's: neither waits for ever."""
    networks = [n.NetworkSimulator() for _ in range(2)]
    forgotten = [n.Client("1.1.1.1:1", 0.0, simulator=network) for network in networks]
    both, done = threading.Barrier(2, timeout=20), []
    token = n.generate_connect_token([SERVER], client_id=1, protocol_id=1, private_key=bytes(range(32)))

    def work(number):
        def forget(*_):
            if not done:
                both.wait()
                forgotten[1 - number] = None

        with n.Client("2.2.2.2:2", 0.0, simulator=networks[number], on_state_change=forget) as client:
            client.connect(token)
            both.wait()
            done.append(number)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
        holds(not thread.is_alive(), "they wait for each other")
    same(sorted(done), [0, 1])
    for network in networks:
        network.destroy()  # what was forgotten has ended, or this would be refused


REAL = """
import os, sys, threading, time
sys.path.insert(0, %r)
import netcode as n
key = n.PrivateKey.generate()
server, client = n.Server("127.0.0.1:0", protocol_id=1, private_key=key), n.Client("127.0.0.1:0")
server.start(2)
client.connect(n.generate_connect_token("127.0.0.1:%%d" %% server.port, client_id=1, protocol_id=1, private_key=key))
def turn():
    server.update()
    client.update()
    server.wait(0.001)
end = time.monotonic() + 20
while not (client.connected and server.num_connected_clients) and time.monotonic() < end:
    turn()
""" % os.path.dirname(MODULE)
FORK = """
child = os.fork()
if not child:
    try:
        client.send_packet(b"with the parent's sequence")
    except n.Destroyed:
        n.Client("127.0.0.1:0").destroy()  # what it makes of its own works
        sys.exit(7)
    sys.exit(1)
status = os.waitpid(child, 0)[1] >> 8
for _ in range(50):
    turn()
print(status, client.connected, server.num_connected_clients)
"""
DAEMON = """
def work():
    try:
        while True:
            turn()
    except (n.Destroyed, n.WrongThread):
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end")
"""


def check_fork(n):
    """A child does not end its parent's connections when it ends, and can not send in their name."""
    same(run([sys.executable, "-c", REAL + FORK]).strip(), "7 True 1")


def check_exit_with_thread(n):
    """A thread that is left running at exit meets no memory that was given back (the sanitizers would say so)."""
    same(run([sys.executable, "-c", REAL + DAEMON]).strip(), "end")


def public_calls(kind):
    return [name for name in dir(kind) if not name.startswith("_") and name not in ("destroy", "destroyed")]


def check_destroyed(n):
    """Every method and property of a destroyed object raises Destroyed."""
    network = n.NetworkSimulator()
    bare = network.socket("1.1.1.1:1")
    client = n.Client("127.0.0.1:50000", 0.0, simulator=network)
    server = n.Server(SERVER, 0.0, protocol_id=1, private_key=bytes(range(32)), simulator=network)
    server.start(2)
    messages, other = n.Messages(0.0), n.Messages(0.0)
    raises(n.Misuse, network.destroy, text="3 objects")
    for each in (messages, client, server, bare, network):
        each.destroy()
        each.destroy()  # twice does nothing
        same(each.destroyed, True)
    raises(n.Destroyed, other.client_receive, client, 0.0)
    raises(n.Destroyed, other.server_send, server, 0, 0.0)
    values = dict(connect_token=bytes(2048), time=0.0, data=b"x", sender=SERVER, seconds=0.0, client_index=0, max_clients=1)
    values.update(sequence=0, session=1, client_id=1, keys=[bytes(32)], packet=b"x", channel=0, address=SERVER, to=SERVER)
    values.update(client=client, server=server, source=b"x", receipt=1, old=SERVER, new=SERVER)
    calls = 0
    for each in (client, server, messages, network, bare):
        for name in public_calls(type(each)):
            member = inspect.getattr_static(type(each), name)
            if name in ("address",):
                continue
            if isinstance(member, property):
                raises(n.Destroyed, getattr, each, name)
            else:
                needed = [p.name for p in inspect.signature(member).parameters.values() if p.default is p.empty and p.name != "self"]
                function = getattr(each, name)
                arguments = [values[parameter] for parameter in needed]
                raises(n.Destroyed, lambda function=function, arguments=arguments: use(function(*arguments)))
            calls += 1
    repr(client), repr(server)
    other.destroy()
    return "%d methods and properties" % calls


def use(answer):
    """Iterators do nothing until they are asked."""
    return list(answer) if hasattr(answer, "__next__") else answer


def check_threads(n):
    """A second thread that comes meanwhile is turned away, also where two objects share a simulator."""
    inside, leave, errors = threading.Event(), threading.Event(), []

    def hold(*_):
        inside.set()
        leave.wait(20)

    with World(n, client_options=dict(on_state_change=hold)) as world:
        client = n.Client("127.0.0.1:50000", 0.0, simulator=world.network, on_state_change=hold)
        world.clients.append(client)
        token = world.token()
        thread = threading.Thread(target=client.connect, args=(token,))
        thread.start()
        holds(inside.wait(20), "the callback did not come")
        for call in (client.disconnect, world.network.reset, world.server.stats, client.destroy):
            try:
                raises(n.WrongThread, call)
            except AssertionError as error:
                errors.append(error)
        leave.set()
        thread.join(20)
        holds(not errors, str(errors))
        client.stats()


def check_threads_apart(n):
    """A session on each of four threads: the library is let in without Python's lock, and errors stay with their thread."""
    failed = []

    def work(number):
        try:
            with World(n, seed=number + 1, packet_loss_percent=5) as world:
                client = world.join(number)
                world.until(lambda: client.connected)
                for _ in range(100):
                    client.send_packet(b"%d" % number)
                    world.step()
                same({event.data for event in world.seen("server", n.Payload)}, {b"%d" % number})
                raises(n.CreateError, n.Client, "nonsense")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    holds(not failed, repr(failed))


def check_destroy_order(n):
    """Whatever is let go first: the simulator lives until its last user is gone, and forgotten objects end by themselves."""
    world = World(n)
    client = world.join()
    world.until(lambda: client.connected)
    network = world.network
    raises(n.Misuse, network.destroy, text="2 objects")
    same(network.destroyed, False)
    del world.network
    world.server.destroy()
    client.update(world.time + 1)  # it still can
    world.clients.clear()
    raises(n.Misuse, network.destroy, text="1 objects")
    del client
    gc.collect()
    network.destroy()
    # A program that ends with everything open ends well.
    code = (
        "import sys; sys.path.insert(0, %r); import netcode as n\n"
        "w = n.NetworkSimulator(); s = n.Server(%r, 0.0, protocol_id=1, private_key=bytes(range(32)), simulator=w)\n"
        "s.start(4); c = n.Client('1.1.1.1:1', 0.0, simulator=w); m = n.Messages(0.0); k = w.socket('2.2.2.2:2')\n"
        "c.connect(n.generate_connect_token([%r], client_id=1, protocol_id=1, private_key=bytes(range(32))))\n"
        "for t in range(60): w.update(t / 60); s.update(t / 60); c.update(t / 60)\n"
        "assert c.connected\nprint('end')" % (os.path.dirname(MODULE), SERVER, SERVER)
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    same((done.returncode, done.stdout.strip(), done.stderr.strip()), (0, b"end", b""))


def memory_in_use():
    """Bytes that malloc has given out; None where the C library does not report them."""

    class Info(ctypes.Structure):
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        _fields_ = [(name, ctypes.c_size_t) for name in names]

    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    function.restype = Info
    info = function()
    return info.uordblks + info.hblkhd


def one_life(n, keep=None):
    """Everything made, used and destroyed once."""
    with World(n, server_options=dict(on_drop=lambda *_: None, admit=lambda *_: True)) as world:
        client = world.join()
        for _ in range(4):
            world.step(0.05)
        client.send_packet(b"x")
        messages = n.Messages(0.0, max_message_bytes=2048)
        messages.send(b"x")
        if keep is not None:
            keep.append(messages)
        else:
            messages.destroy()


def growth(n, lives, keep=None):
    """How much memory, objects of Python and open files that many lives leave behind."""
    for _ in range(20):
        one_life(n)
    gc.collect()
    before = memory_in_use(), len(gc.get_objects()), len(os.listdir("/proc/self/fd"))
    for _ in range(lives):
        one_life(n, keep)
    gc.collect()
    after = memory_in_use(), len(gc.get_objects()), len(os.listdir("/proc/self/fd"))
    return [b - a for a, b in zip(before, after)]


def check_leaks(n):
    if memory_in_use() is None or not os.path.isdir("/proc/self/fd"):
        return skip("leaks", "this system does not report how much memory is in use")
    memory, objects, files = growth(n, 1000)
    holds(memory < 65536, "%d bytes of memory more" % memory)
    holds(objects < 200 and files <= 0, "%d objects, %d files more" % (objects, files))
    kept = []
    leaked, _, _ = growth(n, 20, kept)
    for messages in kept:
        messages.destroy()
    holds(leaked > 65536, "the measurement does not notice 20 objects that were not destroyed (%d bytes)" % leaked)
    return "1000 lives leave %d bytes, %d objects, %d files; 20 objects not destroyed would be %d bytes" % (
        memory, objects, files, leaked,
    )


def check_sockets_closed(n):
    """200 clients and servers on real sockets leave no descriptor behind."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        with n.Client("127.0.0.1:0"), n.Server("127.0.0.1:0", protocol_id=1, private_key=bytes(range(32))):
            pass
    same(len(os.listdir("/proc/self/fd")), before)


def check_log(n):
    """Log lines go to logging, or to on_log; a mistake of the caller is an exception, with asserts, and logged without."""
    lines = []

    class Collect(logging.Handler):
        def emit(self, record):
            lines.append((record.levelname, record.getMessage()))

    handler, logger = Collect(), logging.getLogger("netcode")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        n.log_level(n.LogLevel.INFO)
        with World(n) as world:
            client = world.join()
            world.until(lambda: client.connected)
        holds(any(level == "INFO" for level, _ in lines), repr(lines))
        n.log_level(n.LogLevel.ERROR)
        own = []
        with n.Client("127.0.0.1:0", on_log=lambda level, text: own.append((level, text))) as client:
            try:
                client._call(n.lib.netcode_client_send_packet, b"x", 5000)  # past the checks of the module
                holds(own and own[0][0] == n.LogLevel.ERROR, "neither raised nor logged")
            except n.Misuse as error:
                holds("netcode_client_send_packet" in str(error), str(error))
    finally:
        n.log_level(n.LogLevel.ERROR)
        logger.removeHandler(handler)
    raises(ValueError, n.log_level, 9)


def check_real_options(n):
    """Options that only real sockets have: batches, flush, wait, dual stack, public addresses."""
    key = bytes(range(32))
    options = dict(protocol_id=1, private_key=key, batch_sends=1, kernel_filter=1, receive_buffer_bytes=65536)
    with n.Server("127.0.0.1:0", address2="[::1]:0", public_addresses=["203.0.113.9:7"], **options) as server:
        server.start(2)
        with n.Client("0.0.0.0", address2="::", batch_sends=1) as client:
            public = n.generate_connect_token(
                ["127.0.0.1:%d" % server.port], internal_addresses=["203.0.113.9:7"], client_id=1, protocol_id=1, private_key=key
            )
            client.connect(public)
            pump(server, [client], lambda events: count(events, 0, n.Connected))
            client.send_packet(b"batched")
            client.flush()
            pump(server, [client], lambda events: count(events, "server", n.Payload))
            server.send_packet(0, b"batched")
            server.flush()
            pump(server, [client], lambda events: count(events, 0, n.Payload))
            start = time.monotonic()
            client.wait(0.05)
            holds(time.monotonic() - start < 5, "wait took %.1f s" % (time.monotonic() - start))


BINDING = (
    check_addresses, check_keys, check_tokens, check_create_errors, check_session, check_simulator, check_outcomes,
    check_server_options, check_roaming, check_loopback, check_network, check_messages, check_large_messages, check_bare_messages,
    check_streams, check_stream_callbacks, check_stream_lives,
    check_callbacks, check_callbacks_that_destroy, check_slots_in_callbacks, check_destroyed, check_threads, check_threads_apart,
    check_destroy_order, check_collected, check_forgotten_in_turns, check_fork, check_exit_with_thread, check_sockets_closed,
    check_log, check_real_options,
)


# ---- the endpoint: tests/all/node.py runs these too ----


class Backend:
    """A backend on a port of the kernel's choice, with files of its own, which go with it."""

    def __init__(self, command, *options, players=("ann", "bob", "cid"), key=None):
        self.folder = tempfile.mkdtemp(prefix="netcode-backend-")
        self.key = key or os.urandom(32)
        self.secrets = {name: "credential-of-%s-%s" % (name, os.urandom(8).hex()) for name in players}
        self.server_secret = "credential-of-servers-" + os.urandom(8).hex()
        self.process = None
        try:
            self.write("key", self.key)
            self.write("servers", "# a note\n\n" + self.server_secret + "\n")
            self.write_players(self.secrets)
            self.log = open(self.path("log"), "wb")
            self.process = subprocess.Popen(
                command + self.arguments() + list(options), cwd=ROOT, stdout=self.log, stderr=subprocess.STDOUT
            )
            self.port = int(self.wait_for(r"\Alistening on 127\.0\.0\.1:(\d+)\n").group(1))
        except BaseException:
            self.close()
            raise

    def arguments(self, **changed):
        files = {"--listen": "127.0.0.1:0", "--key-file": self.path("key"), "--players": self.path("players")}
        files["--server-credential-file"] = self.path("servers")
        files.update(changed)
        return [word for pair in files.items() for word in pair]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data, mode=0o600):
        """In one step, as a file that is read meanwhile must be."""
        with open(self.path(name + ".new"), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        os.chmod(self.path(name + ".new"), mode)
        os.replace(self.path(name + ".new"), self.path(name))

    def write_players(self, secrets, first_id=2**63):
        lines = ["# players", ""]
        for number, (name, secret) in enumerate(sorted(secrets.items())):
            digest = hashlib.blake2b(secret.encode(), digest_size=32).hexdigest()
            lines.append("%s %d %s the player" % (digest, first_id + number, name))
        self.write("players", "\n".join(lines) + "\n", 0o644)

    def said(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.said(), re.M)
            if match:
                return match
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("the backend did not say %r: %s" % (pattern, self.said()[-500:]))
            time.sleep(0.02)

    def ask(self, method, path, body=None, credential=None, headers=None, port=None):
        """(status, headers, JSON) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        try:
            headers = dict(headers or {})
            if credential is not None:
                headers["Authorization"] = "Bearer " + credential
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, answer.headers, json.loads(data) if data else None
        finally:
            connection.close()

    def token(self, player="ann", wish=None, **options):
        body = None if wish is None else json.dumps(wish)
        return self.ask("POST", "/v1/connect-token", body, self.secrets[player], **options)

    def report(self, name="eu-1", **changed):
        report = dict(name=name, address="127.0.0.1:40000", slots=4, clients=0, draining=False, protocol_id="0x1122334455667788")
        report.update(changed)
        return self.ask("POST", "/v1/servers", json.dumps(report), self.server_secret)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(30)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refused(answer, status, error, text=""):
    """The status, the reason in the JSON and the headers that every answer has."""
    same((answer[0], answer[2]["error"]), (status, error))
    holds(text in answer[2]["message"], answer[2]["message"])
    same(answer[1]["Cache-Control"], "no-store")
    same(answer[1]["Content-Type"], "application/json")
    if status == 401:
        holds(answer[1]["WWW-Authenticate"].startswith("Bearer"))
    if status in (429, 503):
        holds(int(answer[1]["Retry-After"]) >= 1)


def raw(port, data, seconds=60):
    """What comes back for bytes of our own, until the other side ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while True:
                piece = connection.recv(65536)
                if not piece:
                    return answer
                answer += piece
        except ConnectionResetError:
            return answer


def check_statuses(command):
    """Every refusal of both endpoints, by status and by reason."""
    with Backend(command, "--rate", "1000") as backend:
        ask, ann = backend.ask, backend.secrets["ann"]
        refused(ask("GET", "/"), 404, "not_found")
        refused(ask("POST", "/v1/connect-token/", "", ann), 404, "not_found")
        for path, method, allow in (("/v1/connect-token", "GET", "POST"), ("/v1/servers", "PUT", "POST"), ("/healthz", "POST", "GET, HEAD")):
            answer = ask(method, path)
            refused(answer, 405, "method_not_allowed")
            same(answer[1]["Allow"], allow)
        for path in ("/v1/connect-token", "/v1/servers"):
            refused(ask("POST", path, "{}"), 401, "no_credential")
            refused(ask("POST", path, "{}", ""), 401, "no_credential")
            refused(ask("POST", path, "{}", headers={"Authorization": "Basic " + ann}), 401, "no_credential")
            refused(ask("POST", path, "{}", "x" * 513), 401, "no_credential")
            refused(ask("POST", path, "{}", ann[:-1]), 401, "unknown_credential")
            refused(ask("POST", path, "{}", ann + "x"), 401, "unknown_credential")
        refused(ask("POST", "/v1/servers", "{}", ann), 401, "unknown_credential")
        refused(ask("POST", "/v1/connect-token", "", backend.server_secret), 401, "unknown_credential")
        refused(backend.token(), 503, "no_server")
        deep = b'{"region":' + b"[" * 1100 + b"]" * 1100 + b"}"
        zeros = b'{"region":"a\\u0000b"}', b'{"region":"a\\\\u0000b"}', b"{}\0"
        for body in (b"[]", b"{", b"null", b'"x"', b"{}x", b"\xff", b"[" * 8000, b"NaN", b'{"region":NaN}', deep) + zeros:
            refused(ask("POST", "/v1/connect-token", body, ann), 400, "not_json")
            refused(ask("POST", "/v1/servers", body, backend.server_secret), 400, "not_json")
        refused(ask("POST", "/v1/servers", b"", backend.server_secret), 400, "not_json")
        same(ask("POST", "/v1/connect-token", b'{"region":"\xff"}', ann)[0], 400)  # no UTF-8, and no name
        check_wrong_wishes(backend)
        check_wrong_reports(backend)
        for path, credential in (("/v1/connect-token", ann), ("/v1/servers", backend.server_secret)):
            refused(ask("POST", path, b" " * 8193, credential), 413, "too_large")
            refused(ask("POST", path, b" " * 1000000, credential), 413, "too_large")
        check_raw_requests(backend)
        same(ask("GET", "/healthz")[0], 503)  # after all that
        same(backend.stop(), 0)


def check_wrong_wishes(backend):
    ann = backend.secrets["ann"]
    for body in (
        '{"regoin":"eu"}', '{"region":5}', '{"region":null}', '{"region":""}', '{"region":"a b"}', '{"region":"1.2.3.4:5"}',
        '{"server":"%s"}' % ("x" * 64), '{"region":"eu","\\u0072egion":"eu"}', '{"avoid":["a"]}', '{"avoid":{}}', '{"region":"eu","region":"us"}',
        '{"server":"\u00e9"}', '{"__proto__":"x"}',
    ):
        refused(backend.ask("POST", "/v1/connect-token", body.encode(), ann), 400, "wrong_field")
    refused(backend.ask("POST", "/v1/connect-token", b"\xef\xbb\xbf{}", ann), 503, "no_server")  # as Windows likes to begin
    for wish in ({}, {"region": "eu"}, {"server": "eu-1"}, {"server": "[::1]:40000", "avoid": "127.0.0.1:1"}):
        refused(backend.token(wish=wish), 503, "no_server")


def check_wrong_reports(backend):
    for changed in (
        dict(name=""), dict(name="a b"), dict(name="x" * 64), dict(name=5), dict(address="127.0.0.1"), dict(address="nonsense:5"),
        dict(address=None), dict(address="0.0.0.0:40000"), dict(address="[::]:1"), dict(public_addresses="127.0.0.1:1"),
        dict(public_addresses=["127.0.0.1"]), dict(public_addresses=[5]), dict(public_addresses={}), dict(public_addresses=["127.0.0.1:1"] * 33),
        dict(public_addresses=["0.0.0.0:5"]), dict(slots=0), dict(slots=65536), dict(slots=1.5), dict(slots="4"), dict(slots=True),
        dict(slots=10**30), dict(clients=-1), dict(clients=5), dict(clients=None), dict(draining="no"), dict(draining=0),
        dict(protocol_id=5), dict(protocol_id="x"), dict(protocol_id=""), dict(protocol_id="-5"), dict(protocol_id="0x11223344556677889"),
        dict(protocol_id=str(2**64)),
        dict(address="127.0.0.1:01"),
    ):
        answer = backend.report(**changed)
        try:
            refused(answer, 400, "wrong_field")
        except AssertionError as error:
            raise AssertionError("%r: %s" % (changed, error)) from None
    for missing in ("name", "address", "slots", "clients", "protocol_id"):
        report = dict(name="a", address="127.0.0.1:1", slots=4, clients=0, protocol_id="0x1122334455667788")
        del report[missing]
        refused(backend.ask("POST", "/v1/servers", json.dumps(report), backend.server_secret), 400, "wrong_field")
    refused(backend.report(protocol_id="0x1122334455667789"), 400, "wrong_protocol_id")


def check_raw_requests(backend):
    """What no well-behaved client would send."""
    head = b"POST /v1/connect-token HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" % backend.secrets["ann"].encode()
    chunked = head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    for data, status in (
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b" 400 "),  # TLS, spoken to the wrong port
        (head + b"X: " + b"x" * 20000 + b"\r\n\r\n", b" 431 "),
        (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", b" 431 "),
        (head + b"Content-Length: x\r\n\r\n", b" 400 "),
        (head + b"Content-Length: -5\r\n\r\n", b" 400 "),
        (head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b" 400 "),
        (head + b"Content-Length: 99999999\r\n\r\n", b" 413 "),
        (chunked + b"2\r\n{}\r\n0\r\n\r\n", b" 503 "),
        (chunked + b"1;x=y\r\n{\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n", b" 503 "),
        (chunked + b"2\r\n[]\r\n0\r\n\r\n", b" 400 "),
        (chunked + b"x\r\n{}\r\n0\r\n\r\n", b" 400 "),
        (chunked + (b"1000\r\n" + b" " * 4096 + b"\r\n") * 3 + b"0\r\n\r\n", b" 413 "),
        (chunked[:-2] + b"Content-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b" 400 "),
        (b"POST /v1/servers HTTP/1.1\r\n\r\n", b" 400 "),  # no Host
        # A proxy in front might see a body, and so another request, where these lines are read otherwise or left out.
        (head + b"no header\r\nContent-Length: 2\r\n\r\n{}", b" 400 "),
        (head + b"X: a\rContent-Length: 2\r\n\r\n", b" 400 "),
        (head + b"X : a\r\nContent-Length: 2\r\n\r\n{}", b" 400 "),
        (head + b"X: a\r\n folded\r\n\r\n", b" 400 "),
        (head + b"X: \0\r\n\r\n", b" 400 "),
    ):
        answer = raw(backend.port, data)
        if status not in answer.split(b"\r\n")[0]:
            raise AssertionError("%.60r got %.200r, not %r" % (data, answer, status))
        holds(b'"error"' in answer and b"no-store" in answer, repr(answer[:300]))
    same(raw(backend.port, head + b"Content-Length: 50\r\n\r\n{}")[:10] in (b"", b"HTTP/1.1 4"), True)
    same(raw(backend.port, b""), b"")
    same(raw(backend.port, head)[:12] in (b"", b"HTTP/1.1 400"), True)  # a head that was cut is no request
    refused(backend.ask("GET", "//healthz"), 404, "not_found")
    # Two requests on one connection, and a HEAD.
    answer = raw(backend.port, head + b"Content-Length: 2\r\n\r\n{}" + b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    same((answer.count(b"HTTP/1.1 503"), answer.count(b"no_server")), (2, 1))


def check_token_answer(command, n):
    """What a player gets, field by field, and which servers it leads to."""
    with Backend(command, "--expire", "44", "--timeout", "6", "--servers-per-token", "2") as backend:
        same(backend.ask("GET", "/healthz")[::2], (503, {"status": "no_server", "servers": 0, "free_slots": 0}))
        same(backend.report("eu-1", address="127.0.0.1:1001", slots=4)[::2], (200, {"status": "ok"}))
        backend.report("eu-2", address="10.0.0.2:1002", slots=9, clients=1, public_addresses=["203.0.113.2:2002", "[2001:db8::2]:2002"])
        # Of a field that is there twice, the first counts.
        twice = '{"name":"us-1","address":"127.0.0.1:1003","slots":7,"clients":0,"protocol_id":"0x1122334455667788","future":{"slots":8},"slots":9}'
        same(backend.ask("POST", "/v1/servers", twice, backend.server_secret)[0], 200)
        backend.report("old", address="127.0.0.1:1004", slots=9, draining=True)
        same(backend.ask("GET", "/healthz")[::2], (200, {"status": "ok", "servers": 3, "free_slots": 19}))
        before = int(time.time())
        status, headers, answer = backend.token("bob")
        same((status, headers["Cache-Control"], headers["Content-Type"]), (200, "no-store", "application/json"))
        same(sorted(answer), ["client_id", "connect_token", "expires_at", "protocol_id", "server_time"])
        same((answer["client_id"], answer["protocol_id"]), (str(2**63 + 1), "0x1122334455667788"))
        holds(before <= answer["server_time"] <= before + 30)
        token = base64.b64decode(answer["connect_token"], validate=True)
        info = n.connect_token_info(token)
        same((info.protocol_id, info.timeout_seconds, info.expire_timestamp), (PROTOCOL_ID, 6, answer["expires_at"]))
        same(info.expire_timestamp - info.create_timestamp, 44)
        dialled = lambda answer: [str(a) for a in n.connect_token_info(base64.b64decode(answer[2]["connect_token"])).server_addresses]
        same(dialled((0, 0, answer)), ["203.0.113.2:2002", "[2001:db8::2]:2002", "127.0.0.1:1003"])
        # eu-2 has promised one slot, and leads with 7, as many as us-1; then it is us-1's turn
        same(dialled(backend.token())[0], "203.0.113.2:2002")
        same(dialled(backend.token())[0], "127.0.0.1:1003")
        same(dialled(backend.token(wish={"region": "us"})), ["127.0.0.1:1003"])
        same(dialled(backend.token(wish={"server": "eu-1"})), ["127.0.0.1:1001"])
        same(dialled(backend.token(wish={"server": "[2001:0db8::0002]:2002"}))[0], "203.0.113.2:2002")
        same(dialled(backend.token(wish={"avoid": "203.0.113.2:2002"}))[-1], "127.0.0.1:1001")
        refused(backend.token(wish={"region": "asia"}), 503, "no_server")
        for port, name in enumerate(("ap-llg4x-rx6rc", "ap-west-1", "ap"), 1):  # the first as Agones calls a server of the Fleet "ap"
            backend.report(name, address="127.0.0.1:%d" % port, slots=9 - port)
        same(sorted(dialled(backend.token(wish={"region": "ap"}))), ["127.0.0.1:1", "127.0.0.1:2"])
        same(dialled(backend.token(wish={"region": "ap-west"})), ["127.0.0.1:2"])
        for region in ("a", "ap-", "ap-w", "west", "llg4x"):
            refused(backend.token(wish={"region": region}), 503, "no_server")
        backend.report("ap", address="127.0.0.1:3", slots=99)
        same(dialled(backend.token(wish={"region": "ap"}))[0], "127.0.0.1:3")
        for name in ("ap-llg4x-rx6rc", "ap-west-1", "ap"):
            backend.report(name, address="127.0.0.1:9", slots=1, draining=True)
        refused(backend.token(wish={"server": "old"}), 503, "no_server")
        check_full(backend, dialled)
        check_private_part(backend, answer)
        holds(backend.token()[2]["connect_token"] != backend.token()[2]["connect_token"], "two tokens are the same")


def check_full(backend, dialled):
    """A full server is picked for no player but the one whose last token led there."""
    for name, port in (("eu-1", 1001), ("eu-2", 1002), ("us-1", 1003)):
        backend.report(name, address="127.0.0.1:%d" % port, slots=4, clients=4 if name != "us-1" else 3)
    same(dialled(backend.token("cid")), ["127.0.0.1:1003"])
    backend.report("us-1", address="127.0.0.1:1003", slots=4, clients=4)
    same(backend.ask("GET", "/healthz")[2], {"status": "ok", "servers": 3, "free_slots": 0})
    same(dialled(backend.token("cid")), ["127.0.0.1:1003"])
    same(dialled(backend.token("bob")), ["127.0.0.1:1002"])  # where its first token led
    backend.report("us-1", address="127.0.0.1:1003", slots=40)


def check_private_part(backend, answer):
    """By the token command and the key: id, name, internal addresses."""
    backend.write("token", json.dumps(answer))
    shown = run([os.path.join(BUILD, "token"), "inspect", "--key-file", backend.path("key"), backend.path("token")])
    for text in (str(2**63 + 1), "bob the player", "10.0.0.2:1002", "127.0.0.1:1003", "203.0.113.2:2002"):
        holds(text in shown or text.encode().hex() in shown, "%r is not in what inspect shows:\n%s" % (text, shown))


def check_limits(command):
    """Rates, silence, too many servers, slow and many connections."""
    with Backend(command, "--rate", "60", "--request-seconds", "1") as backend:
        backend.report("eu-1", slots=1000)
        heard = time.monotonic()
        statuses, start = [], time.monotonic()
        while 429 not in statuses:
            statuses.append(backend.token()[0])
            holds(len(statuses) < 1000, "there is no limit")
        answers, most = statuses.count(200), 61 + time.monotonic() - start
        holds(60 <= answers <= most and set(statuses) == {200, 429}, "%d answers, at most %d were wanted" % (answers, most))
        refused(backend.token(), 429, "rate_limited")
        same(backend.token("bob")[0], 200)  # each player has a rate of his own
        for number in range(255):
            same(backend.report("n%d" % number, slots=1)[0], 200)
        refused(backend.report("one-more"), 503, "too_many_servers")
        same(backend.report("n7")[0], 200)
        # A byte now and then does not keep a connection open, and others are served meanwhile.
        with socket.create_connection(("127.0.0.1", backend.port), timeout=60) as slow:
            start, cut = time.monotonic(), False
            while time.monotonic() - start < 30 and not cut:
                try:
                    slow.sendall(b"G")
                    time.sleep(0.1)
                    slow.setblocking(False)
                    cut = slow.recv(100) is not None
                except BlockingIOError:
                    slow.setblocking(True)
                except OSError:
                    cut = True
                same(backend.ask("GET", "/v1/servers")[0], 405)
            holds(cut, "a slow request was never cut")
        time.sleep(max(0.0, heard + 5.2 - time.monotonic()))
        backend.report("n9", slots=9)
        same([backend.token("cid", wish={"server": name})[0] for name in ("eu-1", "n9")], [503, 200])
        # Hundreds of silent connections: all are cut in time, none is left, and it answers.
        crowd = []
        try:
            for _ in range(300):
                crowd.append(socket.create_connection(("127.0.0.1", backend.port), timeout=60))
            end = time.monotonic() + 60
            while True:
                try:
                    answers = backend.report("n9", slots=9)[0], backend.ask("GET", "/healthz")[0]
                    break
                except (OSError, http.client.HTTPException):  # there is no room for us yet
                    holds(time.monotonic() < end, "it does not answer any more")
                    time.sleep(0.1)
            same(answers, (200, 200))
        finally:
            for connection in crowd:
                connection.close()
        same(backend.stop(signal.SIGINT), 0)


def check_at_once(command):
    """Fifty players ask at the same time, on four threads; every token is another one."""
    with Backend(command, "--rate", "1000") as backend:
        backend.report(slots=1000)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: backend.token(), range(50)))
        same({answer[0] for answer in answers}, {200})
        same(len({answer[2]["connect_token"] for answer in answers}), 50)
        same(backend.ask("GET", "/healthz")[2]["free_slots"], 950)


def check_files(command):
    """SIGHUP reads all files again or none; secrets in files that others can use are refused; the log holds no secret."""
    with Backend(command, "--rate", "2", "--servers-per-token", "1") as backend:
        backend.report()
        answer = backend.token()
        same(answer[0], 200)
        backend.write_players({**backend.secrets, "dan": "credential-of-dan"})
        backend.secrets["dan"] = "credential-of-dan"
        refused(backend.token("dan"), 401, "unknown_credential")
        backend.process.send_signal(signal.SIGHUP)
        backend.wait_for(r"read again: 4 players")
        same(backend.token("dan")[0], 200)
        same([backend.token()[0], backend.token()[0]], [200, 429])  # what was used up before counts
        for name, data, mode in (
            ("players", "nonsense\n", 0o644), ("players", "%s 5 a\n%s 6 b\n" % ("a" * 64, "a" * 64), 0o644),
            ("players", "%s 5 a\n%s 5 b\n" % ("a" * 64, "b" * 64), 0o644), ("players", "%s %d a\n" % ("a" * 64, 2**64), 0o644),
            ("players", "%s 5 %s\n" % ("a" * 64, "x" * 64), 0o644), ("players", "x" * 600, 0o644), ("players", "", 0o646),
            ("servers", "", 0o600), ("servers", "a\nb\nc\nd\ne\n", 0o600), ("servers", "fine\n", 0o640), ("key", b"short", 0o600),
            ("key", backend.key, 0o604),
        ):
            with open(backend.path(name), "rb") as file:
                kept, kept_mode = file.read(), os.fstat(file.fileno()).st_mode & 0o777
            backend.write(name, data, mode)
            times = backend.said().count("what was read before stays")
            backend.process.send_signal(signal.SIGHUP)
            backend.wait_for(r"(?s)(what was read before stays.*){%d}" % (times + 1))
            # Whoever starts with such files does not.
            started = run_status(command + backend.arguments())
            holds(started[0] == 1 and backend.path(name) in started[1], repr((name, data[:70], mode, started)))
            backend.write(name, kept, kept_mode)
        backend.report()
        same(backend.token("bob")[0], 200)
        # Rotation: a token from before the signal is sealed with the old key, one from behind it with the new.
        old, backend.key = backend.key, os.urandom(32)
        backend.write("old", old)
        backend.write("key", backend.key)
        before = backend.token("cid")[2]
        backend.process.send_signal(signal.SIGHUP)
        backend.wait_for(r"(?s)(read again: 4 players.*){2}")
        same([opens(backend, before, "old"), opens(backend, before, "key")], [True, False])
        after = backend.token("cid")[2]
        same([opens(backend, after, "old"), opens(backend, after, "key")], [False, True])
        same(backend.stop(), 0)
        said = backend.said()
        holds("ends: " in said and "tokens issued" in said, said[-200:])
        for secret in list(backend.secrets.values()) + [backend.server_secret, backend.key.hex(), answer[2]["connect_token"][100:200]]:
            holds(secret not in said, "the log holds a secret")
        for changed, status, text in (
            ({"--listen": "0.0.0.0:0"}, 1, "in the clear"), ({"--listen": "nonsense"}, 1, "address"), ({"--rate": "0"}, 2, "rate"),
            ({"--rate": "x"}, 2, "rate"), ({"--expire": "86401"}, 2, "expire"), ({"--protocol-id": "x"}, 2, "protocol-id"),
            ({"--no-such-option": "5"}, 2, "no-such-option"), ({"--players": "/nowhere"}, 1, "/nowhere"),
        ):
            started = run_status(command + backend.arguments(**changed))
            holds(started[0] == status and text in started[1], repr((changed, started)))
        holds(run_status(command)[0] == 2, "it starts without its files")


def opens(backend, answer, key):
    """Does this key open the token's private part?"""
    backend.write("token", json.dumps(answer))
    inspect_it = [os.path.join(BUILD, "token"), "inspect", "--key-file", backend.path(key), backend.path("token")]
    status, said = run_status(inspect_it)
    holds(status in (0, 4), said)
    return status == 0


def run_status(command, **options):
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=240, **options
    )
    return done.returncode, done.stdout


def check_commands(command):
    """--credential makes one, and --hash of it the line that the players file wants."""
    made = run_status(command + ["--credential"])
    holds(made[0] == 0 and re.fullmatch(r"[A-Za-z0-9_-]{43}\n", made[1]), repr(made))
    holds(made != run_status(command + ["--credential"]))
    digest = hashlib.blake2b(made[1].strip().encode(), digest_size=32).hexdigest()
    same(run_status(command + ["--hash", "1001", "Ann B"], input=made[1]), (0, "%s 1001 Ann B\n" % digest))
    same(run_status(command + ["--hash"], input=made[1]), (0, digest + "\n"))
    same(run_status(command + ["--hash", "5", "\u00e9" * 31], input=made[1]), (0, "%s 5 %s\n" % (digest, "\u00e9" * 31)))
    wrong = ("x", "Ann"), ("5",), ("5", "Ann", "x"), (str(2**64), "Ann"), ("-5", "Ann"), ("5", ""), ("5", "x" * 64), ("5", "\u00e9" * 32)
    for words in wrong + (("5", "A\nB"), ("5", " Ann"), ("5 6", "Ann")):  # the backend would refuse such a line
        status, said = run_status(command + ["--hash", *words], input=made[1])
        holds(status == 2 and digest not in said, repr((words, status, said)))
    holds(run_status(command + ["--hash", "5", "Ann"], input="")[0] != 0)
    holds("can not be guessed" in run_status(command + ["--hash"], input="123456789012345\n")[1])
    same(run_status(command + ["--hash"], input="1234567890123456\n")[0], 0)
    same(run_status(command + ["--help"])[0], 0)


def check_lost_log(command):
    """Who reads the log goes away: players and servers are served as before."""
    with Backend(command) as backend:
        process = subprocess.Popen(command + backend.arguments(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            backend.port = int(re.search(rb":(\d+)$", process.stdout.readline().strip()).group(1))
            process.stdout.close()
            same(backend.report()[0], 200)
            same([backend.token()[0], backend.token()[0]], [200, 200])
            process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            same(backend.token()[0], 200)
            process.terminate()
            same(process.wait(30), 0)
        finally:
            process.kill()
            process.wait()


def check_early_signal(command):
    """A SIGHUP while it starts does not end it."""
    with Backend(command) as backend:
        os.remove(backend.path("players"))
        os.mkfifo(backend.path("players"))  # a reader waits at its opening
        process = subprocess.Popen(command + backend.arguments(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 20
            while not catches(process, signal.SIGHUP):
                holds(time.monotonic() < end and process.poll() is None, "it does not care for SIGHUP before it reads its files")
                time.sleep(0.02)
            process.send_signal(signal.SIGHUP)
            while process.poll() is None:  # it may open the pipe later than we
                holds(time.monotonic() < end, "it does not end")
                try:
                    os.close(os.open(backend.path("players"), os.O_WRONLY | os.O_NONBLOCK))
                except OSError:
                    pass
                time.sleep(0.02)
            holds(process.returncode == 1 and b"no file" in process.stdout.read(), "it ended with %d" % process.returncode)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def catches(process, number):
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        return int(re.search(r"^SigCgt:\s*(\w+)", file.read(), re.M).group(1), 16) >> (number - 1) & 1


def metrics(backend):
    """{metric with its labels: value}, and the text."""
    connection = http.client.HTTPConnection("127.0.0.1", backend.port, timeout=60)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode("ascii")
        same((answer.status, answer.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        same(answer.headers["Cache-Control"], "no-store")
    finally:
        connection.close()
    return {name: float(value) for name, value in re.findall(r"^(netcode_backend_\S+) (\S+)$", text, re.M)}, text


def check_metrics(command):
    """GET /metrics counts what was done, and promtool can read it."""
    with Backend(command, "--rate", "2", "--request-seconds", "1") as backend:
        before, _ = metrics(backend)
        same([backend.report(slots=9)[0], backend.report("eu-2", slots=1, clients=1)[0]], [200, 200])
        backend.report("eu-3", draining=True)
        same([backend.token()[0] for _ in range(3)], [200, 200, 429])
        refused(backend.ask("POST", "/v1/servers", "{}", "nobody"), 401, "unknown_credential")
        raw(backend.port, b"nonsense\r\n\r\n")
        backend.process.send_signal(signal.SIGHUP)
        backend.wait_for("read again")
        with socket.create_connection(("127.0.0.1", backend.port), timeout=60) as idle:
            same(idle.recv(1), b"")
        after, text = metrics(backend)
        found = {name[16:]: after[name] - before[name] for name in after if name in before and after[name] != before[name]}
        count, duration = found.pop("request_duration_seconds_count"), found.pop("request_duration_seconds_sum")
        same(found.pop('request_duration_seconds_bucket{le="+Inf"}'), count)
        holds(count >= 8 and 0 < duration < 60, "%r requests took %r seconds" % (count, duration))
        same(found.pop("connections_cut_total"), 1)
        same(
            {name: value for name, value in found.items() if "duration" not in name},
            {
                "tokens_issued_total": 2, "reports_total": 3, "free_slots": 7, 'servers{state="open"}': 1,
                'servers{state="full"}': 1, 'servers{state="draining"}': 1, 'reloads_total{result="good"}': 1,
                'refusals_total{reason="rate_limited"}': 1, 'refusals_total{reason="unknown_credential"}': 1,
                'refusals_total{reason="bad_request"}': 1,
            },
        )
        for secret in list(backend.secrets.values()) + [backend.server_secret]:
            holds(secret not in text)
    if not shutil.which("promtool"):
        return "%d metrics; promtool is not here" % len(after)
    same(run_status(["promtool", "check", "metrics"], input=text), (0, ""))
    return "%d metrics, and promtool agrees" % len(after)


def check_key_is_wiped():
    """At the end the key is wiped, also while the thread of an idle connection holds what leads to it."""
    code = (
        "import sys; sys.path.insert(0, %r); import backend, netcode; wipe = netcode.PrivateKey.wipe\n"
        "netcode.PrivateKey.wipe = lambda key: (print('wiped', flush=True), wipe(key))\n"
        "sys.exit(backend.main())" % EXAMPLE
    )
    with Backend([sys.executable, "-c", code]) as backend:
        connection = http.client.HTTPConnection("127.0.0.1", backend.port, timeout=60)
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        holds("wiped" not in backend.said().split("listening")[1])
        same(backend.stop(), 0)
        connection.close()
        holds("wiped" in backend.said().split("listening")[1].split("ends:")[0], backend.said())


def check_real_game(command):
    """Tokens over HTTP, taken by the real server from the real client; after a rotation too; a foreign key's are not."""
    with Backend(command) as backend:
        server = [os.path.join(BUILD, "server"), "--address", "127.0.0.1:0", "--bind", "127.0.0.1:0", "--slots", "4"]
        with open(backend.path("server.log"), "wb") as log:
            process = subprocess.Popen(
                server + ["--key-file", backend.path("key"), "--echo", "--seconds", "120"], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            address = wait_for_line(backend.path("server.log"), r"listening on ([0-9.:]+)")
            backend.report(address=address)
            played = play(backend.token("ann")[2])
            holds(played[0] == 0 and "CONNECTED" in played[1], repr(played))
            wait_for_line(backend.path("server.log"), r"%d" % 2**63)
            both = [backend.token(name)[2] for name in ("bob", "cid")]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                same([status for status, _ in pool.map(play, both)], [0, 0])
            used = play(both[0])
            holds(used[0] != 0, "a used token was taken again")
        finally:
            process.terminate()
            process.wait(30)
    with Backend(command) as other:
        other.report(address=address)
        holds(other.token()[0] == 200)


def play(answer):
    """The real client with this JSON: (status, what it said)."""
    command = [os.path.join(BUILD, "client"), "-", "--count", "30", "--bind", "127.0.0.1", "--seconds", "20"]
    return run_status(command, input=json.dumps(answer))


def wait_for_line(path, pattern, seconds=60):
    end = time.monotonic() + seconds
    while True:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read())
        if match:
            return match.group(match.lastindex or 0)
        holds(time.monotonic() < end, "%s does not say %s" % (path, pattern))
        time.sleep(0.02)


def check_endpoint(command, n):
    """All checks of a backend."""
    check("backend: commands", check_commands, command)
    check("backend: every status", check_statuses, command)
    check("backend: the token, field by field", check_token_answer, command, n)
    check("backend: limits", check_limits, command)
    check("backend: fifty at once", check_at_once, command)
    check("backend: files, signals, options", check_files, command)
    check("backend: a log that is not read", check_lost_log, command)
    if os.path.isdir("/proc/self"):
        check("backend: a signal while it starts", check_early_signal, command)
    else:
        skip("backend: a signal while it starts", "this system has no /proc")
    check("backend: metrics", check_metrics, command)
    check("backend: a real server and real clients", check_real_game, command)


# ---- all of it ----


def build():
    """What the checks need, by the Makefile's own rules where it has them. Another test may want the same at the same time."""
    os.makedirs(BUILD, exist_ok=True)
    run(["sh", "tests/tools/deps.sh"])
    with open(os.path.join(BUILD, "all.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_locked()


def build_locked():
    run(["make", "build/server", "build/client", "build/token"], env=dict(os.environ, DEPS="no"))
    if run_status(["make", "-n", "build/libnetcode.so"])[0] == 0:
        run(["make", "build/libnetcode.so"])
    else:
        build_library(os.path.join(BUILD, "libnetcode.so"), "-O2")


def build_library(path, *flags):
    libs = run(["sh", "tests/tools/deps.sh", "--libs"]).split()
    sources = ["-DNETCODE_IMPLEMENTATION", "-DNETCODE_MESSAGES", "-x", "c", "netcode.h", "-x", "none"]
    compiler("-shared", "-fPIC", *flags, *sources, *libs, "-lm", "-o", path + ".new")
    os.replace(path + ".new", path)  # no reader loads a half of it


def check_sanitized():
    """The checks of the binding once more, on a library with sanitizers, whose own checks are all that is left without asserts."""
    library = os.path.join(BUILD, "libnetcode-san.so")
    build_library(library, "-O1", "-g", "-DNDEBUG", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    asan = run(os.environ.get("CC", "cc").split() + ["-print-file-name=libasan.so"]).strip()
    if not os.path.isabs(asan):
        return skip("the binding with sanitizers", "this compiler has no libasan.so of its own to be loaded first")
    environment = dict(os.environ, NETCODE_LIBRARY=library, LD_PRELOAD=asan, ASAN_OPTIONS="detect_leaks=0")
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--binding"] + words, env=environment, cwd=ROOT, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
    )
    if done.returncode != 0:
        raise AssertionError("status %d:\n%s" % (done.returncode, done.stdout[-4000:]))
    return done.stdout.strip().splitlines()[-1]


def check_example():
    """The example at the end of the module, as its head says to run it."""
    said = run([sys.executable, MODULE])
    holds(said.count("the server says") == 5, said)


def check_readme():
    """Its programs run as they stand, but for the port and the server's endless loop. The lines about streams name no peer: they compile."""
    with open(os.path.join(ROOT, "examples", "python", "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    same(len(blocks), 3)
    loop, session, streams = blocks
    compile(streams, "README.md", "exec")
    same((loop.count("while True:"), loop.count('"203.0.113.5:40000"'), session.count('"127.0.0.1:40000"')), (1, 1, 1))
    with tempfile.TemporaryDirectory() as place:
        with open(os.path.join(place, "game.key"), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(32))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = '"127.0.0.1:%d"' % free.getsockname()[1]
        surroundings = dict(os.environ, PYTHONPATH=os.path.dirname(MODULE))
        programs = (loop.replace("while True:", "for _ in range(3):").replace('"203.0.113.5:40000"', port), session.replace('"127.0.0.1:40000"', port))
        said = [subprocess.run([sys.executable, "-c", each], cwd=place, env=surroundings, timeout=20, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, universal_newlines=True).stdout for each in programs]  # fmt: skip
    same(said, ["", "[b'HELLO']\n"])


# File, fault, and the check that must fail for it.
FAULTS = (
    ("netcode.py", "            self.ended = True\n", "", "callbacks"),
    ("netcode.py", "                if self.depth or not self.ending:", "                if not self.ending:", "callbacks"),
    ("netcode.py", "                handle.ended = False  #", "                #", "slots in callbacks"),
    ("netcode.py", "self.guard.end(0.1)", "self.guard.end(20.0)", "in turns"),
    ("netcode.py", "reference, number = weakref.ref(self),", "reference, number = lambda: self,", "collected"),
    ("netcode.py", "in list(_handles):\n        handle.ended = True\n", "in list(_handles):\n        pass\n", "fork"),
    ("netcode.py", "value = operator.index(value)", "value = int(value)", "tokens"),
    ("netcode.py", '    _int32("the number of bytes", len(data))\n', "", "large messages"),
    ("netcode.py", "            if self._guard.depth > 1:\n                raise Misuse", "            if False:\n                raise Misuse", "callbacks that destroy"),
    ("netcode.py", "client_index < self.max_clients:", "client_index < 4:", "slots in callbacks"),
    ("netcode.py", 'in (here, os.path.join(here, "..", "..", "build")):', 'in (os.path.join(here, "..", "..", "build"), here):', "missing or another"),
    ("netcode.py", "                self._call(self._free_packet, raw.data)\n", "", "session"),
    ("netcode.py", "        self.thunks.append(thunk)\n", "", "callbacks"),
    ("netcode.py", "                    handle.destroy(handle.pointer)\n", "                    pass\n", "leaks"),
    ("netcode.py", "guard = simulator._guard if simulator is not None else _Guard()", "guard = _Guard()", "threads"),
    ("netcode.py", "    if not 1 <= len(data) <= MAX_PACKET_SIZE:", "    if not 0 <= len(data) <= MAX_PACKET_SIZE:", "session"),
    ("netcode.py", "            simulator._users += 1\n", "            pass\n", "destroy order"),
    ("netcode.py", '        _uint64("client_id", client_id),\n        _uint64("protocol_id", protocol_id),\n        key._buffer',
     '        _uint64("protocol_id", protocol_id),\n        _uint64("client_id", client_id),\n        key._buffer', "tokens"),
    ("netcode.py", "channel, 0, self._channels - 1),\n            kind,", "channel, 0, self._channels - 1),\n            0,", "messages"),
    ("netcode.py", "                    del self._streams.sources[number]  #", "                    pass  #", "streams"),
    ("netcode.py", "                if type_ != MessagesEventType.PROGRESS:\n", "                if type_:\n", "streams"),
    ("netcode.py", "        ctypes.memset(data, 0, count)", "        ctypes.memset(data, 1, count)", "stream callbacks"),
    ("netcode.py", "                self.failed.append(number)\n", "                pass\n", "stream callbacks"),
    ("netcode.py", "            if len(content) != count:", "            if len(content) > count:", "stream callbacks"),
    ("netcode.py", ".write(offset, ctypes.string_at(data, count)) is False else 1", ".write(offset, ctypes.string_at(data, count)) else 1", "stream callbacks"),
    ("netcode.py", "            end(bool(complete))\n", "            end(True)\n", "streams"),
    ("netcode.py", "self.writers.pop(number)", "self.writers[number]", "streams"),
    ("netcode.py", "self._streams.sources.items() if it[1] == receipt]", "list(self._streams.sources.items())[:1]]", "streams"),
    ("netcode.py", "offered.channel, offered.bytes, offered.tag)", "offered.channel, offered.tag, offered.bytes)", "streams"),
    ("netcode.py", "        streams.sources[number] = (source, receipt)\n", "        streams.sources[number] = (weakref.proxy(source), receipt)\n", "stream lives"),
    ("netcode.py", "                if hooks.error is None:\n                    hooks.error = error\n", "                pass\n", "callbacks"),
    ("netcode.py", "status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)", "False", "keys"),
    ("netcode.py", "        if raw.type == _EVENT_MOVED:\n", "        if False:\n", "roaming"),
    ("netcode.py", "old._raw, new._raw, int(bool(at_rebind))", "old._raw, new._raw, 0", "roaming"),
    ("netcode.py", '(c_uint64, "packets_lost packets_reordered")', '(c_uint64, "packets_reordered packets_lost")', "the compiler's"),
    ("netcode.py", '(c_int, "slots clients pending consumed")', '(c_double, "slots clients pending consumed")', "the compiler's"),
    ("backend.py", "            if seconds:\n", "            if False:\n", "limits"),
    ("backend.py", "            and not server.is_silent()\n", "", "limits"),
    ("backend.py", "-self.free_slots(server), server.name", "self.free_slots(server), server.name", "field by field"),
    ("backend.py", "    if theirs != protocol_id:", "    if False:", "every status"),
    ("backend.py", "stat.S_IRWXG | stat.S_IRWXO, advice", "0, advice", "files"),
    ("backend.py", "player.allowance, player.refilled_at, player.home = old", "_, _, player.home = old", "files"),
    ("backend.py", "                private_key=self.files.key,", "                private_key=bytes(32),", "real server"),
    ("backend.py", "            self.promise(servers[0])\n", "", "fifty"),
    ("backend.py", 'body.decode("utf-8-sig")', 'body.decode("utf-8")', "every status"),
    ("backend.py", '"\\\\u0000" in text', "False", "every status"),
    ("backend.py", "dict(reversed(parse_object(body)))", "dict(parse_object(body))", "field by field"),
    ("backend.py", "                self.check_head()\n", "", "every status"),
    ("backend.py", 'if b"\\0" in line or', "if False and", "every status"),
    ("backend.py", 'raise OSError("the head ends early")', "pass", "every status"),
    ("backend.py", 'self.requestline.split()[1].partition', "self.path.partition", "every status"),
    ("backend.py", "        except OSError:\n            pass  # who read", "        except KeyError:\n            pass  # who read", "a log that is not read"),
    ("backend.py", "    asked = install_signals()\n    try:\n        app = App(options)", "    try:\n        app = App(options)\n        asked = install_signals()", "while it starts"),
    ("backend.py", "        app.files.key.wipe()", "        pass", "key is wiped"),
    ("backend.py", "app.refusals[refusal.name] += 1", "app.refusals[refusal.name] += 2", "metrics"),
    ("backend.py", "type(value) is not list", "not isinstance(value, list)", "every status"),
    ("backend.py", "or int(match.group(2)) >= 2**64):\n        print", "):\n        print", "commands"),
    ("backend.py", 'if name in wish or not', 'if not', "every status"),
    ("backend.py", 'self.send_header("Cache-Control", "no-store")', "pass", "every status"),
    ("backend.py", "digest_size=32).digest()\n\n\ndef read", "digest_size=31).digest()\n\n\ndef read", "commands"),
)


def plants(program, variable, source, faults):
    """Runs the program on a copy of the folder with one fault at a time; it must fail at the check named."""
    caught = missed = 0
    for name, old, new, word in faults:
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "copy")
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
            with open(os.path.join(copy, name), encoding="utf-8") as file:
                text = file.read()
            with open(os.path.join(copy, name), "w", encoding="utf-8") as file:
                file.write(text.replace(old, new, 1))
            environment = dict(os.environ, **{variable: copy, "NETCODE_LIBRARY": os.path.join(BUILD, "libnetcode.so")})
            status, said = run_status([sys.executable, program, word], env=environment)
        if old not in text:
            print("MISSED %s: %.60r finds no place" % (name, old), flush=True)
            missed += 1
            continue
        # The check must say so, or the process must have died of a signal; a program that did not even begin has caught nothing.
        why = re.search(r"^FAILED .*%s.*" % re.escape(word), said, re.M)
        good = status != 0 and (why or status < 0)
        reason = why.group(0) if why else "ended with %d" % status
        print("%s %s: %.60r: %.120s" % ("caught" if good else "MISSED", name, new or "without " + old, reason), flush=True)
        caught, missed = caught + bool(good), missed + (not good)
    print("%d faults caught, %d missed" % (caught, missed))
    return 1 if missed or not caught else 0


def main():
    # SIGINT too: in the background of a shell it would be ignored. Everything that was started ends on the way out.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.chdir(ROOT)
    if "--plants" in sys.argv:
        build()
        return plants(os.path.abspath(__file__), "NETCODE_TEST_EXAMPLE", EXAMPLE, FAULTS)
    if "--binding" in sys.argv:
        module = load()
        for function in BINDING:
            check(function.__name__[6:].replace("_", " "), function, module)
    else:
        build()
        module = load()
        check("layouts: the module's against the compiler's", check_layout, module)
        check("layouts: a changed header is noticed", check_plants, module)
        check("a library that is missing or another one", check_loading, module)
        check("the module's example", check_example)
        check("the README's programs", check_readme)
        for function in BINDING + (check_leaks,):
            check(function.__name__[6:].replace("_", " "), function, module)
        check("the binding with sanitizers, without asserts", check_sanitized)
        check_endpoint([sys.executable, os.path.join(EXAMPLE, "backend.py")], module)
        check("backend: the key is wiped", check_key_is_wiped)
    return end("python")


def end(name):
    for failure in failures:
        print("failed: %s" % failure)
    print("%s: %d passed, %d failed%s" % (name, passed, len(failures), ", %d skipped" % skipped if skipped else ""))
    return 1 if failures or (skipped and SKIPS_FAIL) else 0


if __name__ == "__main__":
    sys.exit(main())
