#!/usr/bin/env python3
"""The dedicated server's life in operation, as real processes on loopback: rotation of keys with players connected, drains, metrics files,
reports to a backend, Agones (examples/fleet/gateway.py stands in for its SDK), and what stands in fleet.yaml.

    python3 tests/all/fleet.py             everything; under a minute on two idle cores
    python3 tests/all/fleet.py WORD...     the stories of these names, or whose names hold a WORD
    python3 tests/all/fleet.py --plants    plants a fault in a copy, one at a time: the story that it names must fail

The server with extras is built with the address and undefined behaviour sanitizers; one report of theirs fails the story. FLEET_TOP names
another tree to test than this one, FLEET_BUILT a folder with programs that are not built again."""

import concurrent.futures
import fcntl
import http.server
import json
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
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP = os.environ.get("FLEET_TOP", HERE)
sys.path.insert(0, os.path.join(HERE, "tests/tools"))

from waiting import LIMIT_SECONDS, TimedOut, refuse_unknown, until

CC = os.environ.get("CC", "cc").split()
PACKAGES = ["libcurl4-openssl-dev:pc=libcurl", "libmicrohttpd-dev:pc=libmicrohttpd", "libcjson-dev:pc=libcjson", "libhiredis-dev:pc=hiredis", "openssl:openssl",
            "pkg-config:pkg-config", "python3-yaml:/usr/lib/python3/dist-packages/yaml"]
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion -Werror".split()
SANITIZE = "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer".split()
REFUSED = 3  # seconds after which a client whose token is refused gives up: its token's timeout
KEEP = 12  # the timeout of those that stay
AT_ONCE = 5
CREDENTIAL = "servers-credential-0123456789"
PROTOCOL_ID = "0x1122334455667788"
F_SETPIPE_SZ = 1031  # in Python's fcntl from 3.10 on


# Linked into the server with extras: what may not be asked of others in a test is looked up as where no name server answers.
SLOW_NAMES = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
typedef int ( *lookup_t )( const char *, const char *, const struct addrinfo *, struct addrinfo ** );
int getaddrinfo( const char * name, const char * service, const struct addrinfo * hints, struct addrinfo ** found )
{
    lookup_t lookup = NULL;
    *(void **) &lookup = dlsym( RTLD_NEXT, "getaddrinfo" );
    if ( !name || !strstr( name, ".example" ) )
        return lookup( name, service, hints, found );
    sleep( 6 );
    return EAI_AGAIN;
}
"""


class Failure(Exception):
    pass


# ---- processes ----


class Process:
    """A child whose lines are kept with the time at which they came."""

    mine = threading.local()  # those of a story, which is a thread
    all = []

    def __init__(self, arguments, **options):
        self.lines, self.seen = [], 0
        self.lock, self.reading = threading.Lock(), threading.Event()
        self.reading.set()
        self.child = subprocess.Popen(arguments, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, **options)
        self.pid = self.child.pid
        Process.all.append(self)
        Process.mine.__dict__.setdefault("list", []).append(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            self.reading.wait()
            with self.lock:
                self.lines.append((time.monotonic(), line.decode("utf-8", "replace").rstrip("\n")))

    def find(self, pattern, start=0):
        for at in range(start, len(self.lines)):
            match = re.search(pattern, self.lines[at][1])
            if match:
                return at, match
        return None

    def wait(self, pattern):
        """The match in the next line that has one; lines up to it count as seen. Fails when none comes."""
        def next_one():
            ended = self.child.poll() is not None and not self.reader.is_alive()  # before the look: then no line comes behind it
            with self.lock:
                found = self.find(pattern, self.seen)
            if not found and ended:
                raise Failure("no line with '%s' before it ended:\n    %s" % (pattern, self.text(12)))
            return found

        try:
            found = until(next_one, "a line with '%s'" % pattern)
        except TimedOut as late:
            raise Failure("%s:\n    %s" % (late, self.text(12))) from None
        self.seen = found[0] + 1
        return found[1]

    def stamp(self, pattern):
        """When, by its own log, the first line with this pattern came to be."""
        return float(self.lines[self.find(pattern)[0]][1].split()[0])

    def text(self, last=100000):
        return "\n    ".join(line for _, line in self.lines[-last:])

    def count(self, pattern):
        with self.lock:
            return sum(1 for _, line in self.lines if re.search(pattern, line))

    def send(self, number):
        self.child.send_signal(number)

    def running(self):
        return self.child.poll() is None

    def ended(self, seconds=LIMIT_SECONDS):
        """Its exit status, when it has ended by itself."""
        try:
            status = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure("it does not end:\n    %s" % self.text(12)) from None
        self.reader.join(LIMIT_SECONDS)
        if re.search(r"AddressSanitizer|runtime error|LeakSanitizer", self.text()):
            raise Failure("a sanitizer reports:\n    %s" % self.text(40))
        return status

    def end(self, number=signal.SIGINT):
        self.send(number)
        return self.ended()

    def command(self, line):
        self.child.stdin.write((line + "\n").encode())
        self.child.stdin.flush()
        self.wait(r'"command": ')

    @staticmethod
    def end_list(processes):
        for process in processes:
            if process.running():
                process.child.kill()
                process.child.wait()
            if process.child.stdin:
                process.child.stdin.close()

    @classmethod
    def end_mine(cls):
        cls.end_list(cls.mine.__dict__.get("list", []))


# ---- what is tested ----


class Tools:
    """The programs, which all stories share, and a folder for one story's files."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, name):
        return os.path.join(self.programs, name)

    def build(self):
        full = ["-DSERVER_FULL", self.put("slow_names.c", SLOW_NAMES)] + SANITIZE + self.flags("libsodium", "libcurl", "libmicrohttpd", "libcjson", "hiredis")
        sodium = self.flags("libsodium")
        self.compile(os.environ.get("FLEET_BUILT"), (
            ("server-full", "examples/server.c", full + ["-pthread", "-ldl"]),
            ("backend", "examples/backend/backend.c", self.flags("libsodium", "libmicrohttpd", "libcjson") + ["-lm"]),
            ("server", "examples/server.c", sodium),
            ("client", "examples/client.c", sodium),
            ("token", "examples/token.c", sodium),
        ))

    def compile(self, kept, jobs):
        """Two at a time, the slowest first. `kept` is a folder, or none, with programs that are not built again."""
        def compile_one(job):
            name, source, options = job
            if kept and os.path.exists(os.path.join(kept, name)):
                shutil.copy(os.path.join(kept, name), self.program(name))
                return
            command = CC + ["-std=c99"] + WARNINGS + [os.path.join(TOP, source), "-o", self.program(name)] + options
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if result.returncode:
                raise Failure("%s does not build: %s" % (name, result.stdout[:2000]))

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(compile_one, jobs))

    @staticmethod
    def flags(*packages):
        output = subprocess.run(["pkg-config", "--cflags", "--libs"] + list(packages), capture_output=True, text=True, check=True)
        return output.stdout.split()

    def key(self, name):
        path = self.path(name)
        if os.path.exists(path):
            os.remove(path)
        subprocess.run([self.program("token"), "keygen", "--output", path], check=True, capture_output=True)
        return path

    def put(self, name, text, mode=0o600):
        """Puts a file in its place in one step, as an operator should."""
        path = self.path(name)
        with open(path + ".new", "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)
        return path

    def copy(self, source, name):
        with open(self.path(source), "rb") as file:
            return self.put(name, file.read())

    def mint(self, key, client, *addresses, timeout=KEEP):
        path = self.path("token-%d" % client)
        subprocess.run([self.program("token"), "mint", "--key-file", self.path(key), "--client-id", str(client), "--expire", "120",
                        "--timeout", str(timeout), "--output", path, "--format", "raw"] + list(addresses), check=True, capture_output=True)
        return path

    def server(self, *arguments, full=False, **options):
        """One that should be refused may not be, and then takes no port that others may need."""
        program = "server-full" if full else "server"
        address = [] if "--address" in arguments else ["--address", "127.0.0.1:0"]
        return Process([self.program(program)] + address + list(arguments), cwd=self.folder, **options)

    def start(self, *arguments, address="127.0.0.1:0", full=False, **options):
        """A server that listens, and its address."""
        server = self.server("--address", address, "--echo", *arguments, full=full, **options)
        return server, server.wait(r"listening on (\S+),").group(1)

    def client(self, token, *arguments):
        return Process([self.program("client"), "--strict", *arguments, token])

    def player(self, token, rate=30):
        """A client that is connected and plays until it is stopped."""
        client = self.client(token, "--count", "0", "--rate", str(rate))
        client.wait("connected to")
        return client

    def plays(self, token):
        """1: it connects, and all payloads come back."""
        client = self.client(token, "--count", "10", "--rate", "50")
        status = client.ended()
        return status == 0 and bool(client.find("connected to"))

    def status(self, token):
        return self.client(token, "--count", "5").ended()


def stats(server, name):
    server.send(signal.SIGUSR1)
    match = re.search(r" %s=(\d+)" % name, server.wait(r"  stats .*").group(0))
    return int(match.group(1)) if match else 0


def settle(condition, seconds=LIMIT_SECONDS, pause=0.05):
    """1 when it comes to hold: for checks that say themselves what did not."""
    try:
        return bool(until(condition, seconds=seconds, pause=pause))
    except TimedOut:
        return 0


def sent_all(server, who):
    """1: by its own counts, nothing that it sent was refused. What came too late was so because a process stood still."""
    counts = server.find(r"%s: [1-9]\d* (?:calls )?worked, (\d+) failed" % who)
    late, failed = (server.count(who + r"(?: \w+)?: failed, " + why) for why in (".*imed out", ""))
    return bool(counts) and late == failed and (failed > 0 or counts[1].group(1) == "0")


def check_loop(story, player, measure):
    """One stop of two seconds may come from the machine: it is in less than 10 % of the samples of twenty seconds, and less than half of those of five."""
    value = float(re.search(r"%s=([\d.]+)" % measure, player.text()).group(1))
    story.check(value < 500, "the loop never stood still: the %s of round trips is %.1f ms" % ({"p90": "90th percentile"}.get(measure, measure), value), player.text(1))


class Story:
    """What one story found. Its lines are printed when it has ended, as others run at the same time."""

    def __init__(self, tools, tell):
        self.tools, self.tell = tools, tell
        self.passed, self.failed, self.lines, self.seconds = 0, 0, [], 0.0

    def check(self, good, text, detail=""):
        if good:
            self.passed += 1
            self.lines.append("  ok    %s" % text)
        else:
            self.failed += 1
            self.lines.append("  FAIL  %s%s" % (text, ": " + str(detail) if detail != "" else ""))

    def run(self):
        begin = time.monotonic()
        try:
            self.tell(self)
        except (Failure, TimedOut) as failure:
            self.check(0, "the story came to its end", failure)
        except Exception as error:  # a fault of the server can make any answer look different
            self.check(0, "the story came to its end", repr(error))
        finally:
            Process.end_mine()
        self.seconds = time.monotonic() - begin


# ---- stories: the plain server ----


def story_start(story):
    """What a server refuses to start with."""
    tools = story.tools
    tools.key("a.key")
    for full in (False, True):
        kind = "the full server" if full else "the plain server"
        os.chmod(tools.path("a.key"), 0o640)
        server = tools.server("--key-file", "a.key", full=full)
        story.check(server.ended() == 1 and server.find("a.key is refused.*chmod 600"), kind + " refuses a key that others can read", server.text())
        os.chmod(tools.path("a.key"), 0o600)
        server = tools.server("--key-file", "a.key", "--key-file", "no.key", full=full)
        story.check(server.ended() == 1 and server.find("no.key can not be opened"), kind + " refuses when one of two keys is missing", server.text())
        with open(tools.path("a.key"), "rb") as file:
            text = file.read()
        for half in (text[:10], text[:32], b""):
            tools.put("short.key", half)
            server = tools.server("--key-file", "a.key", "--key-file", "short.key", full=full)
            story.check(server.ended() == 1 and server.find("short.key holds no key"), "%s refuses %d bytes of a key's text" % (kind, len(half)), server.text())
        tools.put("raw.key", os.urandom(32))
        server, _ = tools.start("--key-file", "raw.key", full=full)
        story.check(server.end() == 0, kind + " takes 32 random bytes", server.text())
        server = tools.server(*["--key-file", "a.key"] * 5, full=full)
        story.check(server.ended() == 2 and server.find("--key-file is no option, or"), kind + " takes four key files, not five", server.text())
        server = tools.server("--drain", "0", full=full)
        story.check(server.ended() == 2, kind + " refuses --drain 0", server.text())
    server = tools.server("--agones")
    story.check(server.ended() == 2 and server.find("--agones is no option"), "the plain server knows no --agones", server.text())
    story.check(server.find("--agones is one of the full server's: make build/server-full"), "and says which server does", server.text())
    server = tools.server("--metrics-file")
    story.check(server.ended() == 2 and not server.find("full server"), "which it does not say of an option of its own", server.text())
    server = tools.server("--report", "http://192.0.2.1/v1/servers", full=True)
    story.check(server.ended() == 2 and server.find("--report is an https:// URL, or"), "reports in the clear to another machine are refused with the reason",
                server.text())


def rotate(story, full):
    """The order of HOSTING.md: servers {new, old}, backend new, wait, servers {new}."""
    tools = story.tools
    kind = "full" if full else "plain"
    tools.key("old.key")
    tools.key("new.key")
    tools.copy("old.key", "a.key")
    tools.copy("old.key", "b.key")
    server, address = tools.start("--key-file", "a.key", "--key-file", "b.key", full=full)
    players = [tools.player(tools.mint("old.key", 100 + i, address)) for i in range(3)]
    new = tools.client(tools.mint("new.key", 200, address, timeout=REFUSED))
    story.check(new.ended() == 4 and settle(lambda: stats(server, "drop_TOKEN_NOT_AUTHENTIC") > 0), kind + ": before, the new key's tokens are refused", new.text(5))

    tools.copy("new.key", "a.key")
    server.send(signal.SIGHUP)
    server.wait("keys: read again, 2 in use")
    story.check(tools.plays(tools.mint("old.key", 201, address)), kind + ": SIGHUP, and during the overlap a token of the old key is taken")
    story.check(tools.plays(tools.mint("new.key", 202, address)), kind + ": and one of the new key")

    os.chmod(tools.path("b.key"), 0o644)
    server.send(signal.SIGHUP)
    server.wait("keys: error: not all files could be read, so the keys stay")
    os.chmod(tools.path("b.key"), 0o600)
    tools.put("a.key", "00112233")
    server.send(signal.SIGHUP)
    server.wait("keys: error: not all files could be read, so the keys stay")
    os.remove(tools.path("a.key"))
    server.send(signal.SIGHUP)
    server.wait("keys: error: not all files could be read, so the keys stay")
    good = tools.plays(tools.mint("old.key", 203, address)) and tools.plays(tools.mint("new.key", 204, address))
    story.check(good, kind + ": files that others can read, are cut short or gone leave both keys, and it says so")

    tools.copy("new.key", "a.key")
    tools.copy("new.key", "b.key")
    late = tools.mint("old.key", 205, address, timeout=REFUSED)
    server.send(signal.SIGHUP)
    server.wait("keys: read again, 1 in use")
    before = stats(server, "drop_TOKEN_NOT_AUTHENTIC")
    story.check(tools.status(late) == 4 and settle(lambda: stats(server, "drop_TOKEN_NOT_AUTHENTIC") > before), kind + ": after, the old key's tokens are refused")
    story.check(tools.plays(tools.mint("new.key", 206, address)), kind + ": and the new key's are taken")

    story.check(stats(server, "clients") == 3 and all(player.running() for player in players), kind + ": no player was disconnected")
    results = [player.end() for player in players]
    story.check(results == [0, 0, 0], kind + ": no payload was lost by those that played through it all", [p.text(3) for p in players])
    story.check(server.end() == 0 and not server.find(": timed out"), kind + ": it ends well, no player timed out", server.text(8))
    keys = [open(tools.path(name), "rb").read().strip() for name in ("old.key", "new.key")]
    shown = server.text().encode()
    story.check(len(keys[0]) == 64 and not any(key in shown for key in keys), kind + ": no key is in its log")


def story_rotation(story):
    """Key rotation with connected players, the plain server."""
    rotate(story, full=False)


def story_rotation_full(story):
    """The same, the server with extras, under the sanitizers."""
    rotate(story, full=True)


def story_four_keys(story):
    """As many key files as there may be: each is tried, and SIGHUP turns one of them over."""
    tools = story.tools
    for number in range(5):
        tools.key("%d.key" % number)
    tools.copy("0.key", "turning.key")
    server, address = tools.start(*[word for name in ("1.key", "2.key", "turning.key", "3.key") for word in ("--key-file", name)])

    def taken(first):
        return [number for number in range(5) if tools.plays(tools.mint("%d.key" % number, first + number, address, timeout=REFUSED))]

    story.check(taken(10) == [0, 1, 2, 3], "a token of each of the four is taken, one of a fifth key is not", server.text(6))
    tools.copy("4.key", "turning.key")
    server.send(signal.SIGHUP)
    server.wait("keys: read again, 4 in use")
    story.check(taken(20) == [1, 2, 3, 4], "then the fifth in place of the first", server.text(6))
    story.check(server.end() == 0, "it ends well", server.text(3))


def story_drain(story):
    """SIGUSR2 and --drain."""
    tools = story.tools
    tools.key("a.key")
    draining, address = tools.start("--key-file", "a.key")
    other, other_address = tools.start("--key-file", "a.key")
    stays = tools.player(tools.mint("a.key", 1, address))
    early = tools.mint("a.key", 2, address)
    draining.send(signal.SIGUSR2)
    draining.wait("draining: no new client is accepted, 1 clients are still connected")
    status = tools.status(early)
    story.check(status == 3, "a newcomer is denied, with a token from before the drain too", status)
    moved = tools.client(tools.mint("a.key", 3, address, other_address), "--count", "10", "--rate", "50")
    story.check(moved.ended() == 0 and moved.find("connected to " + re.escape(other_address)), "its client goes on to the token's next server",
                moved.text(6))
    story.check(stays.running() and draining.running() and stats(draining, "clients") == 1, "a connected player stays")
    story.check(stays.end() == 0, "and loses nothing", stays.text(3))
    story.check(draining.ended() == 0 and draining.find("drained: 0 clients are left"), "when the last one has left it ends", draining.text(4))
    other.send(signal.SIGUSR2)
    story.check(other.ended() == 0 and other.find("drained: 0"), "an empty server drains at once", other.text(4))

    server, address = tools.start("--key-file", "a.key", "--drain", "2")
    stays = tools.player(tools.mint("a.key", 4, address))
    server.send(signal.SIGTERM)
    server.wait("draining: ")
    ends = server.ended() == 0 and server.find("drained: 1 clients are left")
    story.check(ends and 1.9 <= server.stamp("drained: ") - server.stamp("draining: ") < 10.0,  # a pause of the server's makes it longer
                "--drain 2: SIGTERM drains, and ends without the last one by its own clock", server.text(4))
    story.check(stays.ended() == 9, "a player that is still connected then is notified", stays.text(3))

    server, address = tools.start("--key-file", "a.key", "--drain", "600")
    stays = tools.player(tools.mint("a.key", 5, address))
    server.send(signal.SIGTERM)
    server.wait("draining: ")
    server.send(signal.SIGTERM)
    story.check(server.ended() == 0 and stays.ended() == 9, "a second SIGTERM ends it", server.text(4))


def story_log(story):
    """A reader of the log that stands still: the game goes on, and the log says what is missing."""
    tools = story.tools
    tools.key("a.key")
    server, address = tools.start("--key-file", "a.key")
    fcntl.fcntl(server.child.stdout, F_SETPIPE_SZ, 16384)
    player = tools.player(tools.mint("a.key", 1, address), rate=60)
    server.reading.clear()
    for _ in range(140):  # of some 700 bytes each; those of a pause count as one
        server.send(signal.SIGUSR1)
        time.sleep(0.05)
    newcomer = tools.plays(tools.mint("a.key", 2, address))
    story.check(newcomer and player.end() == 0, "a player comes in, plays and leaves, and another one loses no payload", player.text(3))
    check_loop(story, player, "median")  # it lasts for five seconds only
    server.reading.set()

    def told():  # with the next line for which there is room again
        server.send(signal.SIGUSR1)
        return server.find("lines of log were lost")

    until(told, "the log says what was lost")
    lost = int(server.wait(r"(\d+) lines of log were lost").group(1))
    story.check(10 < lost < 150, "when it is read again it says how many lines were lost: %d" % lost, server.text(4))
    story.check(server.end() == 0 and server.count("lines of log were lost") == 1, "once", server.text(4))
    story.check(server.count(r"^ *\d+\.\d{3}  \S") == len(server.lines), "all lines that were not are whole", server.text(12))


def story_metrics(story):
    """--metrics-file in the plain server, --metrics in the full one."""
    tools = story.tools
    tools.key("a.key")
    tools.copy("a.key", "b.key")
    path = tools.path("server.prom")

    def holds(line):
        return lambda: os.path.exists(path) and re.search(line, open(path, encoding="utf-8").read(), re.M)

    server, address = tools.start("--key-file", "a.key", "--key-file", "b.key", "--metrics-file", path)
    story.check(settle(holds(r"^netcode_server_clients 0$")), "--metrics-file writes the counters")
    story.check(holds(r"^netcode_server_private_keys 1$")(), "the same key twice counts once")
    player = tools.player(tools.mint("a.key", 1, address))
    story.check(settle(holds(r"^netcode_server_clients 1$")), "they follow the players")
    tools.key("b.key")
    server.send(signal.SIGHUP)
    server.send(signal.SIGUSR2)
    story.check(settle(holds(r"^netcode_server_private_keys 2$")) and settle(holds(r"^netcode_server_draining 1$")), "rotation and drain are in them")
    story.check(player.end() == 0 and server.ended() == 0, "it ends well", server.text(3))

    server, address = tools.start("--key-file", "a.key", "--metrics-file", tools.path("nowhere/server.prom"))
    server.wait("metrics: error: .*nowhere.* can not be written")
    time.sleep(2.2)
    story.check(server.count("can not be written") == 1, "a file that can not be written is reported once", server.text(6))
    os.mkdir(tools.path("nowhere"))
    server.wait("is written again")
    story.check(server.end() == 0, "and again when it can be")

    server, address = tools.start("--key-file", "a.key", "--metrics", "0", full=True)
    url = server.wait(r"metrics on (http://127.0.0.1:\d+/metrics)").group(1)

    def scrape():
        try:
            with HTTP.open(url, timeout=LIMIT_SECONDS) as answer:
                return answer.read().decode()
        except OSError as error:
            return "# " + str(error)

    story.check(settle(lambda: "netcode_server_clients 0\n" in scrape()), "--metrics serves them over HTTP", scrape()[:200])
    story.check("netcode_server_agones_failures_total 0\n" in scrape(), "with the extras' own counters")
    port = int(url.split(":")[2].split("/")[0])
    crowd = [socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) for _ in range(16)]
    over = threading.Event()

    def trickle():
        while not over.wait(0.3):
            for each in crowd:
                try:
                    each.sendall(b"G")
                except OSError:
                    pass  # one too many: it was closed

    trickling = threading.Thread(target=trickle, daemon=True)
    trickling.start()
    time.sleep(1)
    story.check("netcode_server_clients 0\n" in scrape(), "16 connections of another address that trickle their requests keep no scraper away", scrape()[:200])
    over.set()
    trickling.join()
    for each in crowd:
        each.close()
    taken = tools.server("--address", "127.0.0.1:0", "--key-file", "a.key", "--metrics", url.split(":")[2].split("/")[0], full=True)
    story.check(taken.ended() == 1 and taken.find("metrics can not be served"), "a port that is taken is an error", taken.text(3))
    for wrong in ("x", "70000", "1.2.3.4.5:1", ":1", "-1", "[::1:5"):
        refused = tools.server("--metrics", wrong, full=True)
        story.check(refused.ended() == 2, "--metrics %s is refused" % wrong, refused.text(3))
    story.check(server.end() == 0, "it ends well", server.text(6))


# ---- stories: reports ----


class Backend:
    """Takes reports. `mode`: ok, error, hang, garbage, endless. `matches` are announced in each answer."""

    def __init__(self, context=None):
        self.reports, self.mode, self.closed, self.matches = [], "ok", False, []
        self.arrived = lambda body: None  # called with each report before it is answered
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                backend.reports.append((time.monotonic(), self.path, self.headers.get("Authorization"), body))
                backend.arrived(body)
                backend.answer(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # clients that hang up are what is tested

        self.server = Server(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, handler):
        if self.mode == "hang":
            while self.mode == "hang":
                time.sleep(0.05)
            handler.close_connection = True
        elif self.mode == "garbage":
            handler.wfile.write(os.urandom(300))
            handler.close_connection = True
        elif self.mode == "endless":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
            try:
                while self.mode == "endless":
                    handler.wfile.write(b"x" * 65536)
            except OSError:
                pass
            handler.close_connection = True
        else:
            body = json.dumps({"status": "ok", "matches": self.matches}).encode() if self.matches else b""
            handler.close_connection = self.closed
            handler.send_response((200 if body else 204) if self.mode == "ok" else 503)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    def last(self):
        return json.loads(self.reports[-1][3]) if self.reports else {}

    def close(self):
        """The server does not listen any more; a connection that is open ends with the next answer."""
        self.mode, self.closed = "ok", True
        self.server.shutdown()
        self.server.server_close()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


def reporting(tools, url, *more):
    tools.put("servers.credential", CREDENTIAL + "\n")
    return ["--key-file", "a.key", "--report", url, "--report-credential-file", "servers.credential", "--name", "eu-1"] + list(more)


def story_report(story):
    """Reports to a backend, as they should be."""
    tools = story.tools
    tools.key("a.key")
    backend = Backend()
    url = "http://127.0.0.1:%d/v1/servers" % backend.port
    server, address = tools.start(*reporting(tools, url, "--slots", "7", "--public", "127.0.0.2:555"), full=True)
    story.check(settle(lambda: len(backend.reports) >= 12), "reports come", server.text(6))
    path, bearer = backend.reports[0][1:3]
    story.check(path == "/v1/servers" and bearer == "Bearer " + CREDENTIAL, "to the URL, with the credential", (path, bearer))
    expected = {"name": "eu-1", "address": address, "public_addresses": ["127.0.0.2:555"], "slots": 7, "clients": 0, "draining": False,
                "protocol_id": PROTOCOL_ID}
    story.check(backend.last() == expected, "they say what the backend has to know", backend.last())
    times = [report[0] for report in backend.reports]
    mean = (times[-1] - times[0]) / (len(times) - 1)
    story.check(0.8 < mean < 2.0, "one each second (%.2f s)" % mean)
    player = tools.player(tools.mint("a.key", 1, address))
    story.check(settle(lambda: backend.last()["clients"] == 1), "they follow the players", backend.last())
    tools.put("servers.credential", "another-one\n")
    server.send(signal.SIGHUP)
    story.check(settle(lambda: backend.reports[-1][2] == "Bearer another-one"), "SIGHUP reads the credential again", backend.reports[-1][2])
    tools.put("servers.credential", "third\n", 0o644)
    server.send(signal.SIGHUP)
    server.wait("report: error: the credential stays as it was")
    count = len(backend.reports)
    story.check(settle(lambda: len(backend.reports) > count + 1) and backend.reports[-1][2] == "Bearer another-one",
                "one that others can read is refused, the old one stays")
    server.send(signal.SIGUSR2)
    story.check(settle(lambda: backend.last()["draining"] is True and backend.last()["clients"] == 1), "a drain is reported", backend.last())
    story.check(player.end() == 0 and server.ended() == 0, "it drains and ends", server.text(6))
    story.check(settle(lambda: backend.last()["draining"] is True and backend.last()["clients"] == 0), "its last report sends no player here any more", backend.last())
    story.check(sent_all(server, "report"), "it counted no failure", server.text(3))
    if has_ipv6():
        dual = tools.server("--address", "127.0.0.1:9", "--bind", "127.0.0.1:0", "--address2", "[::1]:9", "--bind2", "[::1]:0",
                            *reporting(tools, url), full=True)
        names = ["127.0.0.1:9", "[::1]:9"]
        story.check(settle(lambda: backend.last()["public_addresses"] == names), "a dual-stack server reports both addresses", dual.text(4))
        story.check(dual.end() == 0, "it ends well", dual.text(4))
    shown = server.text()
    story.check(CREDENTIAL not in shown and "another-one" not in shown, "no credential is in its log")
    backend.close()


def story_report_failures(story):
    """Backends that are down, slow or mad: the game does not notice, and the log says it once."""
    tools = story.tools
    tools.key("a.key")
    backend = Backend()
    url = "http://127.0.0.1:%d/v1/servers" % backend.port
    server, address = tools.start(*reporting(tools, url), full=True)
    until(lambda: backend.reports, "a report")
    player = tools.player(tools.mint("a.key", 1, address), rate=60)
    for mode, word in (("hang", "imed out"), ("error", "the answer was 503"), ("garbage", ""), ("endless", "")):
        failures, words = server.count("report: failed"), server.count("report: works again")
        backend.mode = mode
        server.wait("report: failed, and is tried again without a word: .*" + word)
        begin = len(backend.reports)
        more = 3 if mode == "hang" else 1  # long enough that a loop that waits is not taken for a process that had to wait for the machine
        until(lambda: len(backend.reports) > begin + more, "more reports")
        backend.mode = "ok"
        server.wait(r"report: works again, after \d+ failures")
        reported = server.count("report: failed") - failures, server.count("report: works again") - words
        story.check(reported == (1, 1), "%s: reported once, and once when it works again" % mode, reported)
    backend.close()
    server.wait("report: failed, .*(refused|connect)")
    time.sleep(2.0)
    story.check(server.running() and stats(server, "clients") == 1, "gone: the game goes on")
    story.check(player.end() == 0, "no payload was lost meanwhile", player.text(3))
    check_loop(story, player, "p90")  # a loop that waited for its reports would stand still for two seconds of every two while the backend hangs
    begin = time.monotonic()
    story.check(server.end() == 0 and server.find(r"report: \d+ worked, \d+ failed") and time.monotonic() - begin < 10, "it ends soon, with the counts",
                server.text(4))


class SilentRedis:
    """Takes connections, answers nothing, and keeps the last one, and when it came."""

    def __init__(self):
        self.came, self.link = 0.0, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            link, _ = self.listener.accept()
            self.came, self.link = time.monotonic(), link

    def over(self):
        """Has the last one ended? Asked of the kernel, so that it does not depend on when a thread of ours ran."""
        try:
            while self.link.recv(4096, socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True


def story_stop(story):
    """The end beside a backend that hangs: the admission, whose leases players wait for, ends first."""
    tools = story.tools
    tools.key("a.key")
    redis, backend = SilentRedis(), Backend()
    server, _ = tools.start(*reporting(tools, "http://127.0.0.1:%d/v1/servers" % backend.port), "--admission", redis.address, full=True)
    until(lambda: backend.reports and redis.came, "a report, and a link to Redis")
    found = []  # of the last report: had the link to Redis ended when it came? It waits for two seconds, much longer than we look

    def arrived(body):
        if json.loads(body)["draining"]:
            found.append(settle(redis.over, 0.5))

    backend.arrived = arrived
    backend.mode = "hang"
    before = redis.came
    until(lambda: redis.came > before, "another link")  # one that will not end by itself in the next second
    begin = time.monotonic()
    story.check(server.end(signal.SIGTERM) == 0 and time.monotonic() - begin > 1.5, "the last report waits for the backend", server.text(4))
    story.check(settle(lambda: found) and found == [1], "the link to Redis had ended before that came", (found, server.text(4)))
    backend.close()


def story_report_names(story):
    """The backend's name is looked up, and no name server answers: the game does not notice."""
    tools = story.tools
    tools.key("a.key")
    version = subprocess.run(["pkg-config", "--atleast-version=7.87", "libcurl"], check=False)
    server, address = tools.start(*reporting(tools, "https://backend.example/v1/servers"), full=True)
    if version.returncode:
        story.check(server.find("give addresses, not names") and server.end() == 0, "a libcurl that can not do that says so", server.text(4))
        return
    player = tools.player(tools.mint("a.key", 1, address), rate=60)
    server.wait("report: failed, and is tried again without a word: .*(Resolv|imed out)")
    time.sleep(8)
    story.check(player.end() == 0, "no payload was lost", player.text(3))
    check_loop(story, player, "median")  # a loop that waited for the name would stand still for five seconds of every six
    story.check(server.end() == 0 and server.find(r"report: 0 worked, [1-9]\d* failed"), "it ends well, with the counts", server.text(4))


def story_report_refusals(story):
    """Options and credentials that are wrong."""
    tools = story.tools
    tools.key("a.key")
    for url in ("http://backend.example/v1/servers", "http://127.0.0.1@backend.example/", "http://127.0.0.1.example/", "ftp://127.0.0.1/",
                "file:///etc/passwd", "127.0.0.1:80", "http://127.0.0.1:80x@backend.example/"):
        server = tools.server(*reporting(tools, url), full=True)
        story.check(server.ended() == 2, "--report %s is refused" % url, server.text(3))
    good = "http://127.0.0.1:9/"
    for name in ("", 'a"b', "a b", "x" * 64):
        server = tools.server("--report", good, "--name", name, full=True)
        story.check(server.ended() == 2, "--name '%s' is refused" % name, server.text(3))
    server = tools.server("--key-file", "a.key", "--report", good, "--name", "eu-1", full=True)
    story.check(server.ended() == 1 and server.find("needs --report-credential-file"), "reports need a credential", server.text(3))
    for words, text, mode in (("others can read", CREDENTIAL, 0o640), ("two lines", "a\nb\n", 0o600), ("no text", b"a\0b", 0o600), ("empty", "", 0o600),
                              ("blank", " \n", 0o600), ("too long", "x" * 600, 0o600)):
        arguments = reporting(tools, good)
        tools.put("servers.credential", text, mode)
        server = tools.server(*arguments, full=True)
        story.check(server.ended() == 1 and server.find("servers.credential"), "a credential is refused: " + words, server.text(3))


def make_certificates(tools):
    """Two authorities, and a certificate for 127.0.0.1 from the first."""
    def openssl(*arguments):
        subprocess.run(["openssl"] + list(arguments), cwd=tools.folder, check=True, capture_output=True)

    for name in ("ca", "wrong"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                "-keyout", name + ".pem.key", "-out", name + ".pem")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=backend", "-keyout", "tls.key", "-out", "tls.csr")
    tools.put("tls.ext", "subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.pem", "-CAkey", "ca.pem.key", "-CAcreateserial", "-days", "2", "-extfile", "tls.ext", "-out",
            "tls.pem")


def story_report_tls(story):
    """Reports over TLS."""
    import ssl

    tools = story.tools
    tools.key("a.key")
    make_certificates(tools)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tools.path("tls.pem"), tools.path("tls.key"))
    backend = Backend(context)
    url = "https://127.0.0.1:%d/v1/servers" % backend.port
    for _ in range(5):
        server, _ = tools.start(*reporting(tools, url, "--report-ca", "wrong.pem", "--metrics", "0"), full=True)
        server.wait("metrics on")  # the last line before the game begins
        if not server.find("report: failed, .*imed out"):  # a second is all that a handshake has
            break
        server.end()
    story.check(server.find("report: failed, .*certificate"), "the first handshake is over before the game begins", server.text(4))
    time.sleep(1.5)
    story.check(server.end() == 0 and not backend.reports, "a backend with a certificate of no authority that we trust gets nothing", len(backend.reports))
    server, _ = tools.start(*reporting(tools, url, "--report-ca", "ca.pem"), full=True)
    story.check(settle(lambda: len(backend.reports) >= 2) and backend.last()["name"] == "eu-1", "one with a certificate that we trust is", server.text(4))
    if subprocess.run(["pkg-config", "--atleast-version=7.87", "libcurl"], check=False).returncode:
        story.check(server.find("for each connection of the reports"), "a libcurl that reads the authorities' certificates each time says so", server.text(4))
    else:
        # Reading them again would stop the game, and fail now.
        os.remove(tools.path("ca.pem"))
        backend.closed = True
        begin = len(backend.reports)
        story.check(settle(lambda: len(backend.reports) > begin + 3), "a new connection does not read the authorities' certificates again", server.text(4))
    story.check(server.end() == 0 and sent_all(server, "report"), "it ends well", server.text(4))
    backend.close()


def story_backend(story):
    """The backend of examples/backend and these reports understand each other."""
    tools = story.tools
    tools.key("a.key")
    bearer = subprocess.run([tools.program("backend"), "--credential"], check=True, capture_output=True).stdout
    hashed = subprocess.run([tools.program("backend"), "--hash", "1001", "Alice"], input=bearer, check=True, capture_output=True).stdout
    tools.put("players", hashed)
    credential = subprocess.run([tools.program("backend"), "--credential"], check=True, capture_output=True).stdout
    tools.put("servers.credential", credential)
    backend = Process([tools.program("backend"), "--listen", "127.0.0.1:0", "--key-file", "a.key", "--players", "players", "--server-credential-file",
                       "servers.credential", "--rate", "1000", "--expire", "300", "--timeout", "60"], cwd=tools.folder)
    url = "http://" + backend.wait(r"listening on (127.0.0.1:\d+)").group(1)

    def fetch():
        """(status, addresses that the token names)"""
        request = urllib.request.Request(url + "/v1/connect-token", b"{}", {"Authorization": "Bearer " + bearer.decode().strip(),
                                                                           "Content-Type": "application/json"})
        try:
            with HTTP.open(request, timeout=LIMIT_SECONDS) as answer:
                path = tools.put("token", answer.read())
        except urllib.error.HTTPError as error:
            return error.code, []
        shown = subprocess.run([tools.program("token"), "inspect", path], check=True, capture_output=True, text=True).stdout
        return 200, re.findall(r"^server +(\S+)", shown, re.M)

    def figure(name):
        """One of the backend's metrics."""
        with HTTP.open(url + "/metrics", timeout=LIMIT_SECONDS) as answer:
            return float(re.search("^netcode_backend_%s (.*)" % name, answer.read().decode(), re.M).group(1))

    arguments = ["--key-file", "a.key", "--report", url + "/v1/servers", "--report-credential-file", "servers.credential", "--name"]
    first, first_address = tools.start(*arguments, "eu-1", "--slots", "8", full=True)
    story.check(settle(lambda: fetch() == (200, [first_address])), "a server that reports is given to players", fetch())
    player = tools.player(tools.path("token"))
    reports = figure("reports_total")
    until(lambda: figure("reports_total") > reports + 1, "two reports")  # from then on a token that was given no longer takes a slot
    story.check(settle(lambda: figure("free_slots") == 7), "its reports count the player", figure("free_slots"))
    second, second_address = tools.start(*arguments, "eu-2", "--slots", "8", full=True)
    story.check(settle(lambda: sorted(fetch()[1]) == sorted([first_address, second_address])), "and a second one beside it", fetch())
    first.send(signal.SIGUSR2)
    story.check(settle(lambda: figure('servers{state="draining"}') == 1), "one that drains reports that", figure('servers{state="silent"}'))
    story.check(settle(lambda: fetch() == (200, [second_address])) and all(first_address not in fetch()[1] for _ in range(5)),
                "and is not given any more", fetch())
    story.check(player.end() == 0 and first.ended() == 0, "a connected player stays until the end", player.text(3))
    good = second.end(signal.SIGTERM) == 0
    at_once = fetch()[0] == 503  # unless its last report was too late, as when the backend stands still
    story.check(good and (at_once or (second.find("report: failed, .*imed out") and settle(lambda: fetch()[0] == 503))),
                "one that has ended, and has reported that, is not given any more", fetch())
    story.check(sent_all(first, "report") and sent_all(second, "report"), "the backend took every report", second.text(4))
    story.check(backend.end(signal.SIGTERM) == 0, "the backend ends well", backend.text(4))


# ---- stories: Agones ----


class Relay:
    """What a node does for portPolicy Dynamic: a port of its own, whose datagrams go to the container's, and back."""

    def __init__(self):
        self.outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.outside.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.outside.getsockname()[1]
        self.to, self.inside, self.over = None, {}, False
        threading.Thread(target=self.forth, daemon=True).start()

    def forth(self):
        while not self.over:
            data, sender = self.outside.recvfrom(2048)
            if self.to and sender not in self.inside:
                self.inside[sender] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self.inside[sender].bind(("127.0.0.1", 0))
                threading.Thread(target=self.back, args=(self.inside[sender], sender), daemon=True).start()
            if self.to:
                self.inside[sender].sendto(data, self.to)

    def back(self, inside, sender):
        while not self.over:
            self.outside.sendto(inside.recvfrom(2048)[0], sender)


class Agones:
    def __init__(self, story, port=0, **options):
        arguments = [sys.executable, os.path.join(TOP, "examples/fleet/gateway.py"), "--commands", "--port", str(port)]
        for name, value in options.items():
            arguments += ["--" + name.replace("_", "-"), str(value)]
        self.process = Process(arguments, stdin=subprocess.PIPE)
        self.port = int(self.process.wait(r"listening on 127.0.0.1:(\d+)").group(1))
        self.tools = story.tools

    def command(self, line):
        self.process.command(line)

    def calls(self, *names):
        """(time, call) of each call that was understood, in order."""
        found = []
        for _, line in list(self.process.lines)[1:]:
            fields = json.loads(line)
            if "call" in fields and (not names or fields["call"] in names):
                found.append((fields["time"], fields["call"], fields.get("good", fields["known"])))
        return found

    def outside(self, patch):
        """A matchmaker allocates it: the status of that."""
        request = urllib.request.Request("http://127.0.0.1:%d/outside/allocate" % self.port, json.dumps(patch).encode())
        try:
            return HTTP.open(request, LIMIT_SECONDS).status
        except urllib.error.HTTPError as error:
            return error.code

    def state(self):
        """As it was reported last."""
        states = [json.loads(line).get("state") for _, line in list(self.process.lines)[1:]]
        return [state for state in states if state][-1]

    def counts(self, version):
        """The counts that it was sent, in order."""
        found = [json.loads(line) for _, line in list(self.process.lines)[1:]]
        return [json.loads(each["body"])["count"] for each in found if each.get("call", "").startswith(version + "/counters/players")]

    def names(self):
        return [call for _, call, _ in self.calls("gameserver", "ready", "allocate", "shutdown")]

    def said(self, first, *names):
        """1: from this one on, the calls are these, and no others."""
        good = settle(lambda: self.names()[first:] == list(names))
        self.command("look")  # no command; the line about it comes behind those about all calls before
        return good and self.names()[first:] == list(names)

    def environment(self):
        return dict(os.environ, AGONES_SDK_HTTP_PORT=str(self.port))

    def server(self, *arguments):
        return self.tools.server("--address", "0.0.0.0:0", "--echo", "--key-file", "a.key", "--agones", *arguments, full=True, env=self.environment())

    def start(self, *arguments):
        server = self.server(*arguments)
        return server, int(server.wait(r"listening on 0\.0\.0\.0:(\d+),").group(1))


def story_agones(story):
    """A life in a fleet: the order of calls, the period of health, the address taken over."""
    tools = story.tools
    tools.key("a.key")
    relay = Relay()
    agones = Agones(story, game_address="127.0.0.1", game_port=relay.address.split(":")[1], name="fleet-x1-y2")
    backend = Backend()
    url = "http://127.0.0.1:%d/v1/servers" % backend.port
    tools.put("servers.credential", CREDENTIAL)
    server, port = agones.start("--report", url, "--report-credential-file", "servers.credential")
    relay.to = ("127.0.0.1", port)
    story.check(server.find("Agones: game server fleet-x1-y2, players dial " + re.escape(relay.address)), "it learns its name and address", server.text(5))
    story.check(settle(lambda: agones.names() == ["gameserver", "ready"]), "it is ready once it runs", agones.names())
    story.check(settle(lambda: backend.reports) and backend.last()["name"] == "fleet-x1-y2" and backend.last()["address"] == relay.address,
                "the backend gets the public address, and the game server's name", backend.last())

    player = tools.player(tools.mint("a.key", 1, relay.address))
    story.check(settle(lambda: agones.names()[2:] == ["allocate"]), "a token for the public address is taken; then it is allocated", agones.names())
    other, other_port = tools.start("--key-file", "a.key", address="0.0.0.0:0")
    relay.to = ("127.0.0.1", int(other_port.split(":")[1]))
    status = tools.status(tools.mint("a.key", 2, relay.address, timeout=REFUSED))
    story.check(status == 4 and stats(other, "drop_TOKEN_FOR_ANOTHER_SERVER") > 0, "a server that has not learnt that address refuses such a token", status)
    story.check(other.end() == 0, "(that one ends well)")
    relay.to = ("127.0.0.1", port)

    player.send(signal.SIGKILL)  # its session ends by timeout: long enough for a few periods of health
    server.wait("disconnected slot=0 client=1 .*timed out")
    story.check(settle(lambda: agones.names()[3:] == ["ready"]), "when the last player has left it is ready again", agones.names())
    story.check(server.end(signal.SIGTERM) == 0 and agones.said(4, "shutdown"), "at the end it says shutdown, once", agones.names())
    story.check(settle(lambda: backend.last()["draining"] is True), "and the backend has heard that, too")
    health = [at for at, _, good in agones.calls("health") if good]
    gaps = [b - a for a, b in zip(health, health[1:])]
    mean = (health[-1] - health[0]) / len(gaps)  # one that arrives late makes the next gap short
    story.check(len(gaps) >= 4 and mean > 1.5 and max(gaps) < 5.0, "health came every %.1f s, at most %.1f s apart, %d times" % (mean, max(gaps), len(health)))
    story.check(all(good for _, _, good in agones.calls()) and not agones.process.find("Unhealthy"), "every call was one of the SDK's", agones.calls())
    story.check(sent_all(server, "Agones"), "it counted no failure", server.text(3))
    backend.close()
    relay.over = True


def allocation(match, clients, seconds, mode="duel"):
    return {"labels": {"netcode-match": match, "netcode-mode": mode}, "annotations": {"netcode-clients": clients, "netcode-seconds": str(seconds)}}


def story_agones_outside(story):
    """Allocations from outside: learnt by the watch, with their players waited for."""
    tools = story.tools
    tools.key("a.key")
    agones = Agones(story, game_port=1)
    backend = Backend()
    tools.put("servers.credential", CREDENTIAL)
    server, port = agones.start("--public", "127.0.0.1:0", "--agones-hold", "3", "--metrics", "0", "--report", "http://127.0.0.1:%d/v1/servers" % backend.port,
                                "--report-credential-file", "servers.credential")
    address = "127.0.0.1:%d" % port
    url = server.wait(r"metrics on (\S+)").group(1)

    def names():
        return agones.names()[1:]

    def visit(client):
        player = tools.player(tools.mint("a.key", client, address))
        return player.end()

    until(lambda: names() == ["ready"] and backend.reports and agones.calls("watch/gameserver"), "it is ready, reports and watches")
    story.check("matches" not in backend.last(), "without a match its reports are as ever", backend.last())
    story.check(agones.outside(allocation("match-1", "1,2", 60)) == 200, "a matchmaker takes the server")
    server.wait("Agones: allocated from outside, match match-1")
    server.wait("match match-1: duel, 2 players are on their way, for 60 s")
    story.check(visit(1) == 0, "the first player comes and goes", server.text(4))
    match = {"id": "match-1", "mode": "duel", "players": 2, "seen": 1}
    story.check(settle(lambda: backend.last().get("matches") == [match]), "the report names the match", backend.last())
    story.check(settle(lambda: "netcode_server_arrivals 1\n" in HTTP.open(url, LIMIT_SECONDS).read().decode()), "and so do the metrics")
    time.sleep(2.5)
    story.check(names() == ["ready"], "the server is not ready while the second one may still arrive", names())
    story.check(visit(2) == 0 and server.wait("match match-1: all 2 players have come"), "the second one comes", server.text(4))
    story.check(settle(lambda: names() == ["ready", "ready"]), "when both have left it is ready again, and never allocated itself", names())

    until(lambda: agones.state() == "Ready", "Agones has it as Ready")
    begin = time.monotonic()
    story.check(agones.outside(allocation("match-2", "3,4", 3)) == 200, "the next match, of which no player comes")
    server.wait("match match-2: 2 of 2 players did not come")
    story.check(settle(lambda: len(names()) == 3) and 2.5 < time.monotonic() - begin < 8, "is waited for as long as its tokens live", names())

    until(lambda: agones.state() == "Ready", "Agones has it as Ready")
    time.sleep(0.5)  # the watch is behind by a moment
    begin = time.monotonic()
    story.check(agones.outside({}) == 200, "another matchmaker, which says nothing")
    server.wait("Agones: allocated from outside, match unnamed-3")
    server.wait("match unnamed-3: its players are not waited for any longer")
    story.check(settle(lambda: len(names()) == 4) and 2.5 < time.monotonic() - begin < 8, "holds it for --agones-hold", names())

    until(lambda: agones.state() == "Ready", "Agones has it as Ready")
    player = tools.player(tools.mint("a.key", 9, address))
    story.check(settle(lambda: names()[4:] == ["allocate"]), "a player without a match: it allocates itself, as ever", names())
    story.check(player.end() == 0 and settle(lambda: names()[5:] == ["ready"]), "and is ready again", names())
    story.check(server.count("allocated from outside") == 3, "its own allocation is not taken for one from outside", server.text(6))

    until(lambda: agones.state() == "Ready", "Agones has it as Ready")
    agones.command("watch end")
    agones.command("watch ok")
    story.check(agones.outside(allocation("match-5", "5", 60)) == 200, "allocated while the watch has ended")
    server.wait("match match-5: duel, 1 players are on their way")
    story.check(len(agones.calls("watch/gameserver")) == 2, "it watches again, and learns of it", agones.calls("watch/gameserver"))
    story.check(visit(5) == 0 and settle(lambda: len(names()) == 7), "and is ready behind that", names())
    agones.command("watch garbage")
    until(lambda: agones.state() == "Ready", "Agones has it as Ready")
    story.check(agones.outside(allocation("match-6", "6", 60)) == 200, "garbage in the stream")
    server.wait("Agones watch: failed, and is tried again without a word")
    agones.command("watch ok")
    server.wait("match match-6: duel, 1 players are on their way")
    story.check(visit(6) == 0, "is no reason to miss a match")
    story.check(server.end() == 0 and settle(lambda: agones.names()[-1] == "shutdown"), "it ends well", server.text(6))
    backend.close()


def story_report_matches(story):
    """More matches than a server can wait for: those that are over make room, and what is left out is named."""
    tools = story.tools
    tools.key("a.key")
    backend = Backend()
    server, address = tools.start(*reporting(tools, "http://127.0.0.1:%d/v1/servers" % backend.port, "--slots", "64"), full=True)

    def announce(*numbers, seconds=60, players=2):
        return [{"id": "match-%d" % number, "mode": "duel", "clients": ",".join(str(100 * each + number) for each in range(players)), "seconds": seconds} for number in numbers]

    def reported():
        return {match["id"] for match in backend.last().get("matches", [])}

    def visit(client):
        return tools.player(tools.mint("a.key", client, address)).end()

    backend.matches = announce(1, players=1) + announce(2, players=1, seconds=50) + announce(*range(3, 33))
    story.check(settle(lambda: server.count("players are on their way") == 32 and len(reported()) == 32), "32 matches are announced by the backend, and reported", server.text(3))
    story.check(visit(1) == 0 and visit(2) == 0 and settle(lambda: server.count("all 1 players have come") == 2), "the players of two have come", server.text(3))
    backend.matches = announce(33, players=1)
    server.wait("match match-33: duel, 1 players are on their way")
    story.check(settle(lambda: reported() == {"match-%d" % number for number in range(1, 34)} - {"match-2"}), "one more takes the place of that of both whose time ends first", sorted(reported()))
    backend.matches = announce(34, 35, 36)
    server.wait("match match-34: duel, 2 players are on their way")
    server.wait("match match-36: not waited for, as 32 others whose players may still arrive are as many as can be kept; announcements left out: 2")
    begin = len(backend.reports)
    story.check(settle(lambda: len(backend.reports) > begin + 2) and server.count("not waited for") == 1, "and what has no place is named, once, though it is announced again and again", server.text(4))
    story.check(not reported() & {"match-1", "match-35", "match-36"} and "match-34" in reported(), "which the report does not name, so that the backend knows it", sorted(reported()))
    story.check(visit(33) == 0, "the player of one comes")
    server.wait("match match-35: duel, 2 players are on their way")
    story.check(settle(lambda: "match-35" in reported() and not reported() & {"match-33", "match-36"}), "and one that waited has the place", sorted(reported()))
    story.check(server.end() == 0, "it ends well", server.text(4))
    backend.close()


def story_agones_late_watch(story):
    """A watch that is silent for longer than news may be late invents no allocation, and misses none."""
    tools = story.tools
    tools.key("a.key")
    agones = Agones(story, game_port=1)
    server, port = agones.start("--public", "127.0.0.1:0", "--agones-hold", "12")
    until(lambda: agones.names()[1:] == ["ready"] and agones.calls("watch/gameserver"), "it is ready and watches")
    player = tools.player(tools.mint("a.key", 1, "127.0.0.1:%d" % port))
    until(lambda: agones.names()[1:] == ["ready", "allocate"], "it is allocated")
    time.sleep(1)  # the watch has reported that
    agones.command("watch quiet")
    good = player.end() == 0 and settle(lambda: agones.names()[1:] == ["ready", "allocate", "ready"])
    story.check(good, "the player leaves while the watch is silent", agones.names())
    time.sleep(6.5)
    story.check(not server.find("allocated from outside"), "its own allocation, the last that it saw, is not taken for one from outside", server.text(4))
    agones.command("watch ok")
    story.check(agones.outside({}) == 200, "a matchmaker that says nothing takes the server")
    server.wait("Agones: allocated from outside, match unnamed-1")
    story.check(agones.names()[1:] == ["ready", "allocate", "ready"], "which it notices, though the watch never said Ready", agones.names())
    story.check(server.end() == 0, "it ends well", server.text(4))


def story_agones_counters(story):
    """Players are counted where the SDK can count."""
    tools = story.tools
    tools.key("a.key")
    for kind, calls in (("v1beta1", ["v1beta1"]), ("v1alpha1", ["v1beta1", "v1alpha1"]), ("none", ["v1beta1", "v1alpha1"])):
        agones = Agones(story, game_port=1, counters=kind, capacity=1)
        server, port = agones.start("--public", "127.0.0.1:0")
        address = "127.0.0.1:%d" % port
        story.check(settle(lambda: agones.counts(calls[-1])[:1] == ["0"]), "%s: it reports that no player is in" % kind, agones.counts(calls[-1]))
        player = tools.player(tools.mint("a.key", 1, address))
        if kind == "none":
            server.wait("Agones: its SDK counts no players")
            until(lambda: agones.names()[2:] == ["allocate"], "it is allocated")
            story.check(player.end() == 0 and settle(lambda: agones.names()[3:] == ["ready"]), "none: players come and go", agones.names())
            story.check(server.count("counts no players") == 1 and not server.find("Agones counters: failed"), "none: it says so once", server.text(8))
            story.check([len(agones.counts(call)) for call in calls] == [1, 1], "none: and asks no more", [agones.counts(call) for call in calls])
        else:
            story.check(settle(lambda: agones.counts(kind) == ["0", "1"]), "%s: then that one is" % kind, agones.counts(kind))
            time.sleep(1.3)
            story.check(agones.counts(kind) == ["0", "1"], "%s: and says it once" % kind, agones.counts(kind))
            agones.command("mode error")
            story.check(player.end() == 0 and settle(lambda: len(agones.counts(kind)) >= 4), "%s: a count that fails is reported again" % kind, agones.counts(kind))
            agones.command("mode ok")
            story.check(settle(lambda: agones.process.count('"count": 0') or agones.counts(kind)[-1] == "0"), "%s: that none is" % kind, agones.counts(kind))
            story.check(len(agones.counts("v1beta1")) == (1 if kind == "v1alpha1" else len(agones.counts(kind))), "%s: by its newest name" % kind)
        story.check(server.end() == 0, "%s: it ends well" % kind, server.text(6))


def story_agones_drain(story):
    """A drain in a fleet: stays allocated, then shutdown."""
    tools = story.tools
    tools.key("a.key")
    agones = Agones(story, game_port=1)
    server, port = agones.start("--public", "127.0.0.1:0", "--drain", "600")
    player = tools.player(tools.mint("a.key", 1, "127.0.0.1:%d" % port))
    until(lambda: agones.names()[2:] == ["allocate"], "it is allocated")
    server.send(signal.SIGTERM)
    server.wait("draining: ")
    story.check(player.running() and server.running(), "SIGTERM, as Kubernetes sends it, leaves the players alone")
    story.check(player.end() == 0 and server.ended() == 0, "when the last one has left it ends", server.text(4))
    story.check(agones.said(0, "gameserver", "ready", "allocate", "shutdown"), "it was never ready in between", agones.names())


def story_agones_failures(story):
    """A gateway that is late, slow, mad or gone while the game runs."""
    tools = story.tools
    tools.key("a.key")
    agones = Agones(story, game_port=1)
    agones.command("mode error")
    server = agones.server("--public", "127.0.0.1:0", "--agones-wait", "60")
    until(lambda: len(agones.names()) >= 3, "three calls")
    agones.command("mode slow 0.3")
    port = int(server.wait(r"listening on 0\.0\.0\.0:(\d+),").group(1))
    story.check(settle(lambda: "ready" in agones.names()), "a gateway that comes late, and slowly, is waited for", server.text(5))
    agones.command("mode ok")
    player = tools.player(tools.mint("a.key", 1, "127.0.0.1:%d" % port), rate=60)
    until(lambda: "allocate" in agones.names(), "it is allocated")
    for mode, word in (("hang", "imed out"), ("error", "the answer was 500"), ("reset", ""), ("huge", "")):
        agones.command("mode " + mode)
        server.wait("Agones health: failed, and is tried again without a word: .*" + word)
        begin = len(agones.calls("health"))
        more = 3 if mode == "hang" else 0  # as in story_report_failures
        until(lambda: len(agones.calls("health")) > begin + more, "more of health")
        agones.command("mode ok")
        server.wait(r"Agones health: works again, after \d+ failures")
        story.check(stats(server, "clients") == 1, "%s: the game goes on, and health comes again" % mode)
    story.check(server.count("Agones health: failed") == 4, "each was reported once", server.text(20))
    agones.command("mode error")
    story.check(player.end() == 0, "no payload was lost", player.text(3))
    check_loop(story, player, "p90")  # one that waited for the calls would stand still for two seconds of every two while the gateway hangs
    count = agones.names().count("ready")
    story.check(settle(lambda: agones.names().count("ready") > count + 1), "ready is tried until it is heard", agones.names())
    agones.command("mode hang")
    begin = time.monotonic()
    story.check(server.end(signal.SIGTERM) == 0 and server.find("Agones: error: it did not hear that we end") and time.monotonic() - begin < 20,
                "a gateway that hangs does not keep it from ending", server.text(5))


GARBAGE = (
    ("{", "no JSON"), ("[" * 5000, "no JSON"), ("[]", "no status"), ("null", "no status"), ('{"status":[]}', "no status"),
    ('{"status":{}}', "no IP address"), ('{"status":{"address":7,"ports":[{"port":1}]}}', "no IP address"),
    ('{"status":{"address":"host.example","ports":[{"port":1}]}}', "no IP address"),
    ('{"status":{"address":"1.2.3.4:5","ports":[{"port":1}]}}', "no IP address"),
    ('{"status":{"address":"host.example","addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"ports":[{"port":1}]}}', "no IP address"),
    ('{"status":{"address":"1.2.3.4"}}', "no port"), ('{"status":{"address":"1.2.3.4","ports":{}}}', "no port"),
    ('{"status":{"address":"1.2.3.4","ports":[{"port":0},{"port":65536},{"port":70000},{"port":"7"},{"port":1.5},{"port":-1},{"port":1e99}]}}', "no port"),
)

GOOD = (
    ('{"status":{"address":"1.2.3.4","ports":[{"port":7}]}}', "- 1.2.3.4:7"),
    ('{"object_meta":{"name":"a-1"},"status":{"address":"1.2.3.4","ports":[{"name":"x","port":7},{"name":"netcode","port":9},{"port":8}]}}',
     "a-1 1.2.3.4:9"),
    ('{"object_meta":{"name":"A B"},"status":{"address":"2001:db8::1","ports":[{"port":65535}]}}', "- [2001:db8::1]:65535"),
    ('{"status":{"address":"host.example","addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"ExternalIP","address":"5.6.7.8"}],'
     '"ports":[{"port":1}]}}', "- 5.6.7.8:1"),
)


def story_agones_garbage(story):
    """What the gateway may say about the game server."""
    tools = story.tools
    tools.key("a.key")
    agones = Agones(story)
    for text, why in GARBAGE:
        agones.command("gameserver " + text)
        for _ in range(3):
            server = agones.server("--agones-wait", "1")
            status = server.ended()
            if not server.find("imed out"):  # a gateway that stands still says nothing, in place of this
                break
        agones_said = status == 1 and server.find("Agones does not tell our address: .*" + why)
        story.check(agones_said, "%s: %s" % (text[:60], why), server.text(3))
    for text, expected in GOOD:
        agones.command("gameserver " + text)
        server = agones.server()
        match = server.wait(r"Agones: game server (\S+), players dial (\S+)")
        story.check(" ".join(match.groups()) == expected and server.end() == 0, expected, match.groups())
    for mode in ("garbage", "empty", "huge", "reset", "hang"):
        agones.command("mode " + mode)
        server = agones.server("--agones-wait", "1")
        story.check(server.ended() == 1 and server.find("Agones does not tell our address: .+"), "mode %s" % mode, server.text(3))
    for drain in ((), ("--drain", "600")):
        calls = len(agones.calls())
        server = agones.server("--agones-wait", "60", *drain)
        until(lambda: len(agones.calls()) > calls, "a call")
        story.check(server.end(signal.SIGTERM) == 1, " ".join(drain + ("SIGTERM ends the wait",)), server.text(3))
    agones.process.child.stdin.close()
    agones.process.ended()
    server = agones.server("--agones-wait", "1")
    story.check(server.ended() == 1 and server.find("does not tell our address: .*(refused|connect)"), "no service there", server.text(3))
    for port in ("0", "x", "65536", "1 "):
        server = tools.server("--key-file", "a.key", "--agones", full=True, env=dict(os.environ, AGONES_SDK_HTTP_PORT=port))
        story.check(server.ended() == 1 and server.find("is AGONES_SDK_HTTP_PORT a port"), "AGONES_SDK_HTTP_PORT='%s' is refused" % port, server.text(3))


# ---- stories: files ----


def read_yaml(path):
    """The documents of a YAML file. Debian's own Python has the parser; names that stand twice in one place are an error."""
    program = """import json, sys, yaml
class Loader( yaml.SafeLoader ): pass
def once( loader, node ):
    keys = [ key.value for key, _ in node.value ]
    assert len( keys ) == len( set( keys ) ), keys
    return yaml.SafeLoader.construct_mapping( loader, node, deep=True )
Loader.add_constructor( "tag:yaml.org,2002:map", once )
print( json.dumps( list( yaml.load_all( open( sys.argv[1] ), Loader ) ) ) )"""
    output = subprocess.run(["/usr/bin/python3", "-c", program, path], capture_output=True, text=True, check=False)
    if output.returncode:
        raise Failure("%s is no YAML: %s" % (path, output.stderr[-500:]))
    return json.loads(output.stdout)


def story_yaml(story):
    """fleet.yaml: what can be known without a cluster."""
    tools = story.tools
    documents = read_yaml(os.path.join(TOP, "examples/fleet/fleet.yaml"))
    fleet = next(d for d in documents if d["kind"] == "Fleet")
    scaler = next(d for d in documents if d["kind"] == "FleetAutoscaler")
    story.check(fleet["apiVersion"] == "agones.dev/v1" and scaler["apiVersion"] == "autoscaling.agones.dev/v1", "a Fleet and a FleetAutoscaler")
    story.check(scaler["spec"]["fleetName"] == fleet["metadata"]["name"], "the one scales the other")
    scale = scaler["spec"]["policy"]["buffer"]
    story.check(0 < scale["bufferSize"] <= scale["minReplicas"] < scale["maxReplicas"], "its buffer fits between its limits", scale)
    game = fleet["spec"]["template"]["spec"]
    port = game["ports"][0]
    story.check(len(game["ports"]) == 1 and port["portPolicy"] == "Dynamic" and port["protocol"] == "UDP", "one UDP port, Dynamic", port)
    source = ""
    for name in ("agones.h", "agones_address.h"):
        with open(os.path.join(TOP, "examples/fleet", name), encoding="utf-8") as file:
            source += file.read()
    story.check('AGONES_PORT_NAME "%s"' % port["name"] in source, "the name of the port is the one that the server looks for")
    period = float(re.search(r"AGONES_HEALTH_SECONDS ([\d.]+)", source).group(1))
    health = game["health"]
    story.check(period * 2 <= health["periodSeconds"] and health["failureThreshold"] >= 2, "two healths fit into a period", health)
    pod = game["template"]["spec"]
    containers = {container["name"]: container for container in pod["containers"]}
    server = containers[game["container"]]
    arguments = server["args"]
    text = Process([tools.program("server-full"), "--help"])
    text.ended()
    unknown = [word for word in arguments if word.startswith("--") and not text.find(r"^  %s\b" % re.escape(word))]
    story.check(not unknown, "every option of its command line is one of the server's", unknown)
    story.check("0.0.0.0:%d" % port["containerPort"] in arguments, "the port of the container is the one that is bound", arguments)
    drain = int(arguments[arguments.index("--drain") + 1])
    story.check(drain + 10 <= pod["terminationGracePeriodSeconds"], "a drain ends before Kubernetes kills", drain)
    resources = server["resources"]
    story.check(all(resources[kind][what] for kind in ("requests", "limits") for what in ("cpu", "memory")), "CPU and memory are asked for and limited")
    mounts = {mount["mountPath"] for mount in server["volumeMounts"]}
    files = [arguments[at + 1] for at, word in enumerate(arguments) if word in ("--key-file", "--report-credential-file")]
    story.check(len(files) == 3 and {os.path.dirname(path) for path in files} <= mounts, "keys and credential lie in volumes", (files, mounts))
    volumes = {volume["name"] for volume in pod["volumes"]}
    used = {mount["name"] for container in pod["containers"] + pod["initContainers"] for mount in container["volumeMounts"]}
    story.check(used == volumes, "volumes and mounts belong together", (used, volumes))
    numbers = server["securityContext"]
    story.check(numbers["allowPrivilegeEscalation"] is False and numbers["capabilities"] == {"drop": ["ALL"]}, "no privileges", numbers)
    # The init container's own command, run here: what the Secret holds in mode 0440 must end as what the server takes.
    command = pod["initContainers"][0]["command"]
    os.mkdir(tools.path("secret"))
    os.mkdir(tools.path("private"))
    for name in sorted({os.path.basename(path) for path in files}):
        tools.key("secret/" + name) if "key" in name else tools.put("secret/" + name, CREDENTIAL)
        os.chmod(tools.path("secret/" + name), 0o440)
    local = [word.replace("/secret", tools.path("secret")).replace("/run/netcode", tools.path("private")) for word in command]
    subprocess.run(local, check=True)
    keys = [word for path in files[:2] for word in ("--key-file", tools.path("private/" + os.path.basename(path)))]
    process, _ = tools.start(*keys)
    story.check(process.end() == 0, "the init container's command leaves keys that the server takes", process.text(4))


# The long ones first.
STORIES = [story_agones_failures, story_agones_outside, story_report_failures, story_report_names, story_report_matches, story_agones, story_agones_late_watch, story_rotation,
           story_rotation_full, story_agones_garbage, story_agones_counters, story_metrics, story_report, story_report_tls, story_backend, story_four_keys,
           story_drain, story_log, story_stop, story_start, story_report_refusals, story_agones_drain, story_yaml]

# ---- plants: (story, file, what stands there, the fault) ----

PLANTS = (
    ("start", "secret_file.h", "status.st_mode & ( S_IRWXG | S_IRWXO )", "0"),
    ("start", "secret_file.h", "&& !secret_is_text( data, SECRET_KEY_BYTES )", ""),
    ("rotation", "server.c", "read_key_files( options, &keys ) &&\n", "( read_key_files( options, &keys ), 1 ) &&\n"),
    ("rotation", "server.c", "        app->num_keys = keys.count;\n    sodium", "        netcode_server_disconnect_all_clients( app->server ), app->num_keys = keys.count;\n    sodium"),
    ("rotation", "server.c", "    for ( int i = 0; i < options->num_key_files && good; i++ ) {", "    for ( int i = 0; i < 1 && good; i++ ) {"),
    ("rotation", "server.c", "    keys->count = 0;\n    for", "    keys->count = options->num_key_files * 0;\n    puts( options->key_files[0] );\n"
     "    system( \"cat *.key\" );\n    for"),
    ("four_keys", "server.c", "    keys->count++;", "    keys->count += keys->count < 3;"),
    ("drain", "server.c", "if ( ( (const struct app_t *) context )->draining )", "if ( !context )"),
    ("drain", "server.c", "( netcode_server_num_connected_clients( app->server ) && now < app->drain_until )", "0"),
    ("drain", "server.c", "now + options->drain_seconds : 1e300", "now + 1e9 * options->drain_seconds : 1e300"),
    ("drain", "server.c", "            term_drains = 0;", "            term_drains = 1;"),
    ("log", "server.c", "return poll( &room, 1, 0 ) == 1 &&", "return poll( &room, 1, 0 ) <= 1 &&"),
    ("log", "server.c", "        if ( log_write( &news ) )\n            log_lines_lost = 0;", "        log_lines_lost = 0;"),
    ("metrics", "server.c", "if ( !good && !app->metrics_file_failed )", "if ( !good )"),
    ("metrics", "server.c", "\"netcode_server_draining\", app->draining,", "\"netcode_server_draining\", 0,"),
    ("metrics", "server.c", "if ( sodium_memcmp(", "if ( keys->count > 9 && sodium_memcmp("),
    ("metrics", "metrics/http.h", "MHD_OPTION_PER_IP_CONNECTION_LIMIT,\n                          (unsigned int) METRICS_HTTP_CONNECTIONS_OF_ONE,",
     "MHD_OPTION_PER_IP_CONNECTION_LIMIT,\n                          (unsigned int) METRICS_HTTP_CONNECTIONS,"),
    ("report_failures", "fleet/report.h", "    report_send( report, state );\n}", "    report_send( report, state );\n    request_wait( &report->request );\n}"),
    ("report_failures", "fleet/request.h", "else if ( !worked && !request->in_a_row )", "else if ( !worked )"),
    ("report_failures", "fleet/request.h", "if ( bytes > REQUEST_ANSWER_BYTES - request->bytes )", "if ( bytes > 1ul << 40 )"),
    ("report", "fleet/report.h", "\"Authorization: Bearer %s\"", "\"Authorisation: Bearer %s\""),
    ("report", "fleet/report.h", "    request_forget( &report->request );\n    request_wipe", "    puts( credential );\n    request_wipe"),
    ("report", "fleet/report.h", "#define REPORT_SECONDS 1.0", "#define REPORT_SECONDS 3.0"),
    ("report", "fleet/report.h", "{ report->slots, 0, 1, \"\" }", "{ report->slots, 1, 0, \"\" }"),
    ("backend", "fleet/report.h", "{ report->slots, 0, 1, \"\" }", "{ 0, 0, 1, \"\" }"),
    ("backend", "fleet/report.h", "state->slots, state->clients, state->draining ?", "state->slots, 0, state->draining ?"),
    ("backend", "fleet/report.h", "    int news = state", "    if ( state->draining )\n        return;\n    int news = state"),
    ("stop", "fleet/extras.h", "        extras_say_admission( app );\n    if", "        extras_say_admission( app );\n    if ( served && extras_is_reporting() )\n"
     "        report_end( &extras.report );\n    if"),
    ("report_refusals", "secret_file.h", "text[i] >= '!' && text[i] <= '~'", "text[i]"),
    ("report_names", "fleet/request.h", "CURLOPT_QUICK_EXIT, 1l", "CURLOPT_QUICK_EXIT, 0l"),
    ("report_refusals", "fleet/report.h", "if ( *rest == '/' || *rest == '\\0' )", "if ( rest )"),
    ("report_tls", "fleet/request.h", "curl_easy_setopt( easy, CURLOPT_PROXY, \"\" ) == CURLE_OK &&",
     "curl_easy_setopt( easy, CURLOPT_SSL_VERIFYPEER, 0l ) == CURLE_OK &&"),
    ("report_tls", "fleet/request.h", "    if ( file || known )\n        curl_easy_setopt( request->easy, CURLOPT_CAPATH, NULL );\n", ""),
    ("report_tls", "fleet/report.h", "    if ( !report->is_secure )\n        return;", "    if ( report )\n        return;"),
    ("agones", "fleet/agones.h", "#define AGONES_HEALTH_SECONDS 2.0", "#define AGONES_HEALTH_SECONDS 6.0"),
    ("agones", "fleet/agones.h", "agones_tell( agones, now, busy ? AGONES_ALLOCATED : AGONES_READY );", "agones_tell( agones, now, busy ? AGONES_READY : AGONES_READY );"),
    ("agones", "fleet/agones.h", "    cJSON_Delete( root );\n    return why;", "    return why;"),
    ("agones", "fleet/agones.h", "        request_send( &agones->health, \"{}\" );", "        request_send( &agones->health, \"\" );"),
    ("agones", "fleet/extras.h", "options->public_addresses[options->num_public_addresses++] =", "options->public_addresses[options->num_public_addresses] ="),
    ("agones_drain", "fleet/extras.h", "if ( served && extras.options.agones && !agones_shutdown", "if ( served && !extras.options.agones && !agones_shutdown"),
    ("agones_failures", "fleet/agones.h", "        request_send( &agones->health, \"{}\" );",
     "        request_send( &agones->health, \"{}\" ), request_wait( &agones->health );"),
    ("agones_failures", "fleet/agones.h", "agones->next_try = now + AGONES_RETRY_SECONDS;", "agones->next_try = now + 1e9 * AGONES_RETRY_SECONDS;"),
    ("agones_garbage", "fleet/agones_address.h", "!( port->valuedouble >= 1.0 && port->valuedouble <= 65535.0 )", "!( port->valuedouble >= 0.5 )"),
    ("agones_garbage", "fleet/agones.h", "if ( !*why )\n            return 1;", "if ( !*why || !self->address[0] )\n            return 1;"),
    ("agones_garbage", "fleet/agones.h", "while ( !*stop ) {", "while ( stop ) {"),
    ("agones_garbage", "fleet/extras.h", "    term_drains = 0;", ""),
    ("agones_outside", "fleet/extras.h", "state.clients > 0 || arrivals_pending( &extras.arrivals ) > 0", "state.clients > 0"),
    ("agones_outside", "fleet/agones.h", "if ( now >= agones->next_watch )", "if ( now >= agones->next_watch && agones->next_watch <= 0.0 )"),
    ("agones_outside", "fleet/agones.h", "agones->told = agones->is_taken ? AGONES_ALLOCATED : AGONES_READY;", "agones->told = AGONES_NOTHING;"),
    ("agones_outside", "fleet/agones.h", "allocation->seconds = number[0] &&", "allocation->seconds = number[0] == 0 &&"),
    ("agones_late_watch", "fleet/agones.h", "        agones->is_allocated_seen = 0; /* what came before", "        /* what came before"),
    ("agones_outside", "fleet/arrivals.h", "now >= arrival->until )", "now >= arrival->until + 1e9 )"),
    ("report_matches", "fleet/arrivals.h", "if ( arrival->is_over && ( !place", "if ( arrival->count < 0 && ( !place"),
    ("report_matches", "fleet/arrivals.h", "arrival->until < place->until )", "arrival->until > place->until )"),
    ("report_matches", "fleet/arrivals.h", "        arrivals->num_left_out++;\n", ""),
    ("report_matches", "fleet/arrivals.h", "    arrivals->next_line = now + ARRIVALS_LINE_SECONDS;\n", ""),
    ("agones_counters", "fleet/agones.h", "agones->counter_calls = 2;", "agones->counter_calls = 1;"),
    ("agones_counters", "fleet/agones.h", "players == agones->counted ||", ""),
    ("yaml", "fleet/fleet.yaml", "portPolicy: Dynamic", "portPolicy: Static"),
    ("yaml", "fleet/fleet.yaml", "terminationGracePeriodSeconds: 3600", "terminationGracePeriodSeconds: 60"),
    ("yaml", "fleet/fleet.yaml", "periodSeconds: 5", "periodSeconds: 2"),
    ("yaml", "fleet/fleet.yaml", "- --slots", "- --slot"),
    ("yaml", "fleet/fleet.yaml", "\"0600\"", "\"0640\""),
    ("yaml", "fleet/fleet.yaml", "      container: server\n", "      container: server\n      container: server\n"),
    ("yaml", "fleet/fleet.yaml", "  fleetName: netcode", "  fleetName: net code: x"),
)


def made_of(story, path):
    """The programs that a fault in this file changes, as far as the story uses them."""
    if path == "server.c" and story in ("rotation", "four_keys", "drain", "log"):
        return {"server"}
    return {"server", "server-full"} if path in ("server.c", "secret_file.h") else {"server-full"} if path.endswith(".h") else set()


def try_plant(plant, built):
    """None when the story noticed, else what went wrong."""
    story, path, there, fault = plant
    with tempfile.TemporaryDirectory(prefix="netcode-fleet-plant-") as top:
        os.symlink(os.path.join(HERE, "netcode.h"), os.path.join(top, "netcode.h"))
        shutil.copytree(os.path.join(HERE, "examples"), os.path.join(top, "examples"), ignore=shutil.ignore_patterns("node*", "docs", "packaging"))
        name = os.path.join(top, "examples", path)
        with open(name, encoding="utf-8") as file:
            text = file.read()
        if text.count(there) != 1:
            return "its place is there %d times" % text.count(there)
        with open(name, "w", encoding="utf-8") as file:
            file.write(text.replace(there, fault))
        programs = os.path.join(top, "programs")
        os.mkdir(programs)
        for each in set(os.listdir(built)) - made_of(story, path):
            os.symlink(os.path.join(built, each), os.path.join(programs, each))
        status, output = run_story(story, top, programs)
    if "does not build" in output:
        return output
    failed = re.findall(r"  FAIL  (.*)", output)
    print("  %s  %s, %s: %s" % ("ok  " if failed and status else "FAIL", story, path, failed[0][:110] if failed else "not noticed"), flush=True)
    return None if failed and status else output


def run_story(story, top, programs):
    """Less patient than usual, as most faults show themselves by something that never comes."""
    environment = dict(os.environ, FLEET_TOP=top, FLEET_BUILT=programs, TEST_LIMIT_SECONDS="12")
    child = subprocess.run([sys.executable, os.path.abspath(__file__), story], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
    return child.returncode, child.stdout


def run_plants(words):
    """Every fault must be noticed by its story, which passes without it."""
    chosen = [plant for plant in PLANTS if not words or plant[0] in words]
    with tempfile.TemporaryDirectory(prefix="netcode-fleet-built-") as built, concurrent.futures.ThreadPoolExecutor(4) as pool:
        Tools(built, built).build()
        stories = sorted({plant[0] for plant in chosen})
        for story, (status, output) in zip(stories, pool.map(lambda story: run_story(story, TOP, built), stories)):
            if status:
                print("%s\nfleet plants: without a fault, %s fails" % (output, story))
                return 1
        wrong = [(plant, result) for plant, result in zip(chosen, pool.map(lambda plant: try_plant(plant, built), chosen)) if result]
    for plant, result in wrong:
        print("  NOT NOTICED  %s\n%s" % (plant, result[-1500:]))
    print("fleet plants: %d of %d noticed" % (len(chosen) - len(wrong), len(chosen)))
    return 0 if chosen and not wrong else 1


# ---- the program ----


class HTTP:
    """urllib without the environment's proxies: everything here stays on this machine."""

    @staticmethod
    def open(url, timeout):
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=timeout)


def run_stories(stories):
    """Several at a time: they wait more than they work."""
    waiting, lock = list(stories), threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                story = waiting.pop(0)
            story.run()
            with lock:
                print("%s: %s\n%s\n  %.1f s" % (story.tell.__name__[6:], story.tell.__doc__.split("\n")[0], "\n".join(story.lines), story.seconds),
                      flush=True)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def choose(stories, words):
    """For each word the story of this name, or those whose names hold it."""
    names = [tell.__name__[6:] for tell in stories]
    refuse_unknown(words, names)
    return [tell for tell, name in zip(stories, names) if not words or any(word == name or word not in names and word in name for word in words)]


def run(words):
    chosen = choose(STORIES, words)
    folder = tempfile.mkdtemp(prefix="netcode-fleet-")
    stories = []
    try:
        Tools(folder, folder).build()
        for tell in chosen:
            os.mkdir(os.path.join(folder, tell.__name__))
            stories.append(Story(Tools(folder, os.path.join(folder, tell.__name__)), tell))
        run_stories(stories)
    except Failure as failure:
        print("  FAIL  %s" % failure)
    finally:
        Process.end_list(Process.all)
        shutil.rmtree(folder, ignore_errors=True)
    passed, failed = sum(story.passed for story in stories), sum(story.failed for story in stories)
    if chosen and not stories:
        failed = 1
    print("fleet: %d passed, %d failed" % (passed, failed))
    return 0 if passed and not failed else 1


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if subprocess.run(["sh", os.path.join(HERE, "tests/tools/need.sh")] + PACKAGES, check=False).returncode:
        return 1
    if sys.argv[1:2] == ["--plants"]:
        return run_plants(sys.argv[2:])
    return run(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
