#!/usr/bin/env python3
"""Plants a fault in a copy of netcode.h, one after the other, and runs make torture's program on it: it must fail, and it must not where
nothing is planted. Each is a mistake that one forgotten line makes.

    planted.py           all of them, some two minutes
    planted.py leak      those with that in their name

Python's standard library, a C compiler with the sanitizers, libsodium. Not part of .ci/run: make torture itself is."""

import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get("CC", "cc").split()
SECONDS = 900

# name, the sweep that must see it, the text, what takes its place
FAULTS = [
    ("nothing", 1, "", ""),
    ("nothing", 2, "", ""),
    (
        "leak: a start without memory for its pool keeps its slots",
        1,
        "    if ( !pool ) {\n        server->allocator.release( server->allocator.context, block );\n        return 0;",
        "    if ( !pool ) {\n        return 0;",
    ),
    ("crash: the client's memory is not looked at", 1, "    if ( !client )\n        return NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED;\n", ""),
    (
        "leak: a client that has no socket keeps its memory",
        1,
        "    if ( error != NETCODE_CLIENT_CREATE_ERROR_NONE ) {\n        allocator.release( allocator.context, client );\n",
        "    if ( error != NETCODE_CLIENT_CREATE_ERROR_NONE ) {\n",
    ),
    ("crash: a simulator's memory is not looked at", 1, "    if ( !state )\n        return NULL;\n    memset( state", "    memset( state"),
    ("crash: a simulator in flight does not look at its memory", 1, "    if ( !heap )\n        return 0;\n", ""),
    ("assert: a start without memory counts as one", 1, "no memory for %d slots\", max_clients );\n        return;", "no memory for %d slots\", max_clients );"),
    ("leak: what the caller holds through a start is forgotten", 1, "        pool->next = server->retired_pools;\n        server->retired_pools = pool;\n", ""),
    ("handle: not closed where bind fails", 2, "        nc_socket_udp_close( udp );\n        return result;", "        allocator.release( allocator.context, udp );\n        return result;"),
    ("leak: a socket that can not be opened keeps its memory", 2, "        nc_socket_udp_close( udp );\n        return result;", "        nc_socket_close_handles( udp );\n        return result;"),
    (
        "handle: both families have failed, and the first stays open",
        2,
        "        nc_socket_close_handles( udp ); /* somebody else has that port in the second family: another one may do */\n",
        "",
    ),
    ("fatal: no memory for one datagram breaks the socket", 2, "error == ENOTSOCK || error == EFAULT", "error == ENOMEM || error == ENOTSOCK || error == EFAULT"),
    ("fatal: a refused buffer size fails the create", 2, "    nc_socket_set_buffers( udp, which, request->receive_buffer_bytes", "    if ( !nc_socket_set( handle, SOL_SOCKET, SO_RCVBUF, 4096 ) )\n        return NC_SOCKET_CREATE_FAILED;\n    nc_socket_set_buffers( udp, which, request->receive_buffer_bytes"),
    ("order: an interruption ends the receive loop", 2, "            if ( ++interrupted > count )\n                return filled;\n            break;", "            return filled;"),
    ("order: an interrupted send is given up", 2, "udp->last_send_error != EINTR && udp->last_send_error != ECONNREFUSED", "udp->last_send_error != ECONNREFUSED"),
    ("stuck: an interruption is repeated for ever", 2, "            if ( ++interrupted > count )\n                return filled;\n            break;", "            break;"),
    (
        "stuck: what can not be sent now is tried for ever",
        2,
        "        if ( udp->last_send_error != EINTR && udp->last_send_error != ECONNREFUSED && udp->last_send_error != EMSGSIZE )",
        "        if ( udp->last_send_error == EAGAIN && tries-- < NC_SEND_TRIES )\n            continue;\n"
        "        if ( udp->last_send_error != EINTR && udp->last_send_error != ECONNREFUSED && udp->last_send_error != EMSGSIZE )",
    ),
    ("count: datagrams that are not sent are not counted", 2, "    if ( sent < count )\n        outbox->counters->send_errors", "    if ( sent < 0 )\n        outbox->counters->send_errors"),
    ("count: errors of a server's receives are not counted", 2, "        server->counters.receive_errors++;\n        server->counters.last", "        server->counters.last"),
    ("stuck: one refused datagram ends the batch", 2, "        if ( done <= 0 )\n            udp->segments", "        if ( done < 0 )\n            return sent;\n        if ( done <= 0 )\n            udp->segments"),
    ("fatal: a socket that could not be aimed counts as aimed", 2, "length ) == 0 )\n        udp->peer = *peer;", "length ) != 42 )\n        udp->peer = *peer;"),
    ("error: a create that fails says that nothing failed", 2, "    default:\n        return family == NETCODE_ADDRESS_IPV6 ? NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED\n                                              : NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED;", "    default:\n        return NETCODE_SERVER_CREATE_ERROR_NONE;"),
    ("nothing", 3, "", ""),
    ("leak: a start without memory for its pool keeps its slots", 3, "    if ( !pool ) {\n        server->allocator.release( server->allocator.context, block );\n        return 0;", "    if ( !pool ) {\n        return 0;"),
]


def tool(*arguments):
    return subprocess.run(["sh", os.path.join(TOP, "tests/tools/deps.sh"), *arguments], capture_output=True, text=True, check=True).stdout.split()


def build(place, sweep):
    """Builds the program on the copy in `place`."""
    program = os.path.join(place, "torture")
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + place, "-DTEST_NO_WRAP"]
    if sweep != 3:
        flags.append("-DTORTURE_STORIES_ONLY")
    subprocess.run(CC + flags + tool("--cflags") + [os.path.join(place, "tests/torture.c")] + tool("--libs") + ["-lm", "-o", program], check=True)
    return program


def run(place, text, fault):
    """Returns whether the program failed on this text, and the first line that says so."""
    _, sweep, old, new = fault
    with open(os.path.join(place, "netcode.h"), "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1) if old else text)
    try:
        result = subprocess.run(["nice", build(place, sweep), str(sweep)], capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, "it took more than %d s" % SECONDS
    lines = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    return result.returncode != 0, lines[0] if lines else result.stdout.strip().split("\n")[-1]


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(os.path.join(TOP, "tests"), os.path.join(place, "tests"))
        for fault in FAULTS:
            name, sweep, old, _ = fault
            if wanted not in name:
                continue
            if old and text.count(old) < 1:
                print("netcode.h has changed: there is no place for \"%s\"" % name)
                wrong += 1
                continue
            failed, line = run(place, text, fault)
            good = failed == bool(old)
            wrong += not good
            print("%s sweep %d, %s\n        %s" % ("ok    " if good else "WRONG ", sweep, name, line), flush=True)
    print("%d wrong" % wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
