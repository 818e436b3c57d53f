#!/usr/bin/env python3
"""Tests `netcode-token mint` where other implementations are met: IPv6 addresses in both byte orders, and host names.

    python3 tests/all/mint.py

The peers in Python (tests/peer.py) read the IPv6 addresses of tokens in network order here, as renet and others do. To them, and to this
library's client, one of a token's two addresses belongs to another machine: all of that runs in a network namespace that has only `lo`.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import peer  # noqa: E402
from waiting import SKIPS_FAIL  # noqa: E402 (peer has put its folder on the path)

PROTOCOL_ID = 0x1122334455667788
TIMEOUT = 3  # of the token while connecting, and of the connection
passed = failed = skipped = 0


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("%s  %s%s" % ("ok    " if good else "FAILED", name, "" if good else ": " + str(detail)[:600]), flush=True)


def skip(name, why):
    global skipped
    skipped += 1
    print("skip    %s: %s" % (name, why), flush=True)


def run(*command, **more):
    return subprocess.run([str(each) for each in command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, **more)


# ---- without a network ----


def mint(*arguments):
    return run("build/token", "mint", "--client-id", 7, "--timeout", TIMEOUT, *arguments, env=dict(os.environ, NETCODE_PRIVATE_KEY=KEY.hex()))


def addresses(*arguments):
    """As the token's public part and its private part name them."""
    result = mint("--format", "base64", *arguments)
    shown = run("build/token", "inspect", input=result.stdout, env=dict(os.environ, NETCODE_PRIVATE_KEY=KEY.hex()))
    return [line.split()[-1] for line in shown.stdout.splitlines() if line.startswith("server")] if result.returncode == 0 else result.stderr


def check_texts():
    for name in ("game.example.com:4000", "localhost:4000", "127.0.0.1:4000=backend:4000"):
        result = mint(name)
        check("mint refuses %s and says how to resolve" % name, result.returncode == 2 and "resolve host names first" in result.stderr, result)
    programs = (["build/server", "--address"], ["build/server", "--public"], ["build/match_server", "--address"], ["build/loadgen", "--server"],
                ["build/pong", "client"], ["build/pong", "server"])  # fmt: skip
    for program in programs:
        result = run(*program, "localhost:40000")
        said = re.search("resolve host names first|host names are not resolved", result.stdout + result.stderr)
        check("%s localhost:40000 is refused, with a sentence on host names" % " ".join(program), result.returncode != 0 and said, result)
    named = ("127.0.0.1:40", "[2001:db8::5]:41=10.0.0.1:42")
    plain = addresses(*named)
    check("without --network-order each server stands there once", len(plain) == 4, plain)
    other = "[120:b80d::500]:41"
    last, first = addresses("--network-order", "last", *named), addresses("--network-order", "first", *named)
    public, internal = ["127.0.0.1:40", "[2001:db8::5]:41"], ["127.0.0.1:40", "10.0.0.1:42"]
    check("last: the other order of IPv6 follows", last == public + [other] + internal + internal[1:], last)
    check("first: it comes before", first == [public[0], other, public[1]] + internal + internal[1:], first)
    full = addresses("--network-order", "last", *["[::1]:4%d" % i for i in range(17)])
    check("17 IPv6 servers twice are too many", "up to 32" in full, full)
    check("another word is refused", mint("--network-order", "both", "[::1]:40").returncode == 2)


# ---- in a namespace of its own ----


class NetworkOrder:
    """A peer that knows no order but the network's, in both directions, and only counts what it would send to another machine."""

    def send_raw(self, data, to):
        if to.is_loopback:
            super().send_raw(data, to)
        else:
            self.astray = getattr(self, "astray", 0) + 1


class Client(NetworkOrder, peer.PeerClient):
    pass


class Server(NetworkOrder, peer.PeerServer):
    def datagram(self, data, source, now):
        super().datagram(data, source, now)
        for slot in self.clients():
            while slot.payloads:
                self.send_payload(slot, slot.payloads.pop())


def network_order_address(reader):
    kind = reader.number("B")
    size, family = (4, peer.socket.AF_INET) if kind == 1 else (16, peer.socket.AF_INET6)
    return peer.Address(peer.socket.inet_ntop(family, reader.take(size)), reader.number("H"))


def turn(world, condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        world.turn()
    return condition()


def foreign_client(*order):
    """A client that reads network order, our server. Returns how long connecting took, or None; and how often it dialled elsewhere."""
    port = peer.free_port_of_both_families()
    command = ["build/server", "--address", "[::1]:%d" % port, "--bind", "[::1]:%d" % port, "--echo", "--seconds", "60"]
    server = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ, NETCODE_PRIVATE_KEY=KEY.hex()), stdout=subprocess.PIPE, text=True)
    try:
        while "listening" not in server.stdout.readline():
            pass
        raw = subprocess.run(["build/token", "mint", "--client-id", "7", "--timeout", str(TIMEOUT), "--format", "raw", *order,
                              "[::1]:%d" % port], cwd=ROOT, capture_output=True, check=True,
                             env=dict(os.environ, NETCODE_PRIVATE_KEY=KEY.hex())).stdout  # fmt: skip
        world, began = peer.World("", time.monotonic() + 60), time.monotonic()
        client = world.add(Client(raw, host="::1"))
        turn(world, lambda: client.state not in (peer.REQUESTING, peer.RESPONDING), 4 * TIMEOUT)
        joined, took = client.state == peer.CONNECTED, time.monotonic() - began
        if joined:
            client.send(peer.PAYLOAD, b"echo")
            joined = turn(world, lambda: client.payloads == [b"echo"], 2)
        client.close()
        return (took if joined else None), getattr(client, "astray", 0)
    finally:
        server.terminate()
        server.wait()


def our_client(*order):
    """Our client, a server that reads network order. Returns how long it ran, or None."""
    world = peer.World("", time.monotonic() + 60)
    server = world.add(Server(KEY, PROTOCOL_ID, host="::1"))
    raw = mint("--format", "base64", *order, str(server.address)).stdout
    began = time.monotonic()
    client = subprocess.Popen(["build/client", "--count", "20", "--seconds", "30", "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)  # fmt: skip
    said = []
    reader = threading.Thread(target=lambda: said.append(client.communicate(raw)[0]))
    reader.start()
    turn(world, lambda: not reader.is_alive(), 40)
    reader.join()
    server.close()
    return (time.monotonic() - began if client.returncode == 0 else None), said


def check_network():
    with open("/proc/net/dev", encoding="ascii") as file:
        devices = [line.split(":")[0].strip() for line in file if ":" in line]
    assert devices == ["lo"], "only in a namespace that has nothing but lo: %s" % devices
    peer.Reader.address = network_order_address

    took, astray = foreign_client()
    check("a client that reads network order never finds a token's [::1]", took is None and astray > 0, (took, astray))
    took, astray = foreign_client("--network-order", "first")
    check("with --network-order first it connects at once", took is not None and took < TIMEOUT and astray == 0, (took, astray))
    took, astray = foreign_client("--network-order", "last")
    check("with last it connects after the timeout", took is not None and took >= TIMEOUT and astray > 0, (took, astray))

    took, said = our_client()
    check("a server that reads network order refuses a token for [::1]", took is None, said)
    took, said = our_client("--network-order", "last")
    check("with --network-order last our client plays there", took is not None, said)
    took, said = our_client("--network-order", "first")
    check("with first it plays there too, once the other address has failed", took is not None, said)


def main():
    global passed, failed
    for program in ("token", "server", "client", "match_server", "loadgen", "pong"):
        made = run("make", "-s", "build/" + program)
        if made.returncode:
            sys.exit("mint: build/%s can not be built: %s" % (program, made.stderr))
    check_texts()
    inside = [sys.executable, os.path.abspath(__file__), "inside", KEY.hex()]
    command = "ip link set lo up && exec \"$@\""
    for words in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        try:
            if run(*words, "sh", "-c", "ip link set lo up && grep -q '^0*1 ' /proc/net/if_inet6").returncode:
                continue
        except OSError:
            break
        result = subprocess.run([*words, "sh", "-c", command, "inside", *inside], cwd=ROOT, check=False, capture_output=True, text=True)
        print(result.stdout.replace("\ndone\n", "\n"), end="")
        passed += result.stdout.count("\nok ") + result.stdout.startswith("ok ")
        failed += result.stdout.count("\nFAILED ") + result.stdout.startswith("FAILED ")
        check("all of that ran to its end in a network namespace", "\ndone\n" in result.stdout, result.stderr)
        break
    else:
        skip("peers that read network order", "no network namespace with ::1 can be made here")
    print("mint: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed or (skipped and SKIPS_FAIL) else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "inside":
        KEY = bytes.fromhex(sys.argv[2])
        check_network()
        print("done")
        sys.exit(1 if failed else 0)
    KEY = os.urandom(32)
    sys.exit(main())
