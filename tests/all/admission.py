#!/usr/bin/env python3
"""Admission over Redis (examples/fleet/admission.h), with real servers, a real redis-server and real clients on loopback.

    python3 tests/all/admission.py             everything, under four minutes
    python3 tests/all/admission.py WORD...     the stories of these names, or whose names hold a WORD
    python3 tests/all/admission.py --whole     a storm five times as long, and 1,000 races
    python3 tests/all/admission.py --measure   what Redis does for it: commands a second and memory for each player
    python3 tests/all/admission.py --plants    plants a fault in a copy, one at a time: the story that it names must fail

The servers are built with the address and undefined behaviour sanitizers. ADMISSION_TOP names another tree to test than this one,
ADMISSION_BUILT a folder with programs that are not built again."""

import concurrent.futures
import contextlib
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import fleet
from fleet import LIMIT_SECONDS, Failure, Process, Story, settle, until
from waiting import Stalls

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOP = os.environ.get("ADMISSION_TOP", HERE)
PACKAGES = ["libsodium-dev:pc=libsodium", "libcurl4-openssl-dev:pc=libcurl", "libmicrohttpd-dev:pc=libmicrohttpd", "libcjson-dev:pc=libcjson", "libhiredis-dev:pc=hiredis",
            "redis-server:redis-server", "pkg-config:pkg-config"]
WHOLE = "--whole" in sys.argv
fleet.TOP = TOP
LEASE = 5  # seconds; short, so that the test is, but a server that stands still for two of them before a renewal is in time
STORM_LEASE = 3  # the storm forgives more, and takes long as it is
TIMEOUT = 3  # of the players' tokens
VISITS_LEASE = 8  # long enough for a server or a Redis that stands still for two seconds, again and again; shorter than a client waits
LATER = "Redis can not be reached|Redis is new|the player has a session on another server"  # with which a player may come again
SLACK = 0.02  # of the common clock: a server's line comes a moment after its stamp. The server logs the end before it gives the lease back
AFTER_STALL = 5.0  # until which a server may have lost its link to Redis, and clients their patience
NO_END = 10 ** 9  # connects: the storm goes on until its faults are over
GIVEN_UP = 1.75  # where a client gave up in the moment of its answer: the lease is given back (ADMISSION_GONE), asked for again, and the loops' ticks
NOT_WAITED = 0.5  # the longest that a game loop may spend on admission; the faults here would stop it for a second and more


# ---- Redis ----


class Redis:
    """A redis-server on loopback, without persistence."""

    def __init__(self, folder, *settings):
        self.folder, self.settings, self.child = folder, settings, None
        self.holder, self.port = reserve_port()
        self.start()

    def start(self):
        self.child = Process(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--daemonize", "no"]
                             + list(self.settings))
        until(self.answers, "redis-server answers")

    def answers(self):
        try:
            return self.call("PING") == "PONG"
        except OSError:
            return False

    def call(self, *words):
        return self.call_all(words)[-1]

    def call_as(self, user, password, *words):
        return self.call_all(["AUTH", user, password], words)[-1]

    def call_all(self, *commands):
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS) as link, link.makefile("rb") as file:
            for words in commands:
                link.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(str(word).encode()), str(word).encode()) for word in words))
            return [read_answer(file) for _ in commands]

    def key(self, *words):
        return self.call(words[0], "netcode:" + words[1], *words[2:])

    def watch(self):
        """What Redis executes from now on, a line for each command and each one in a script: a list that grows."""
        link = socket.create_connection(("127.0.0.1", self.port))
        file, commands = link.makefile("r", encoding="utf-8", errors="replace"), []
        link.sendall(b"MONITOR\r\n")
        file.readline()

        def read():
            with contextlib.suppress(OSError), link:
                for line in file:
                    commands.append(line)

        threading.Thread(target=read, daemon=True).start()
        return commands

    def settle(self):
        """Makes it one that the servers have known for long. A new one admits nobody for the time of a lease."""
        self.key("SET", "epoch", "%s 1" % re.search(r"run_id:(\w+)", self.call("INFO", "server")).group(1))

    def ends(self, player, prefix="netcode:"):
        """When a lease ends if it is not renewed, at the latest; in the past when there is none."""
        left = self.call("PTTL", "%ssession:%d" % (prefix, player))
        return time.monotonic() + left / 1000.0

    def signal(self, number):
        self.child.send(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.child.child.wait()


def read_answer(file):
    line = file.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:].decode()
    if kind == b"$":
        if rest == "-1":
            return None
        text = file.read(int(rest) + 2)[:-2]
        return text.decode("utf-8", "replace")
    if kind == b"*":
        return [read_answer(file) for _ in range(int(rest))]
    if kind == b"-":
        return "error: " + rest
    return int(rest) if kind == b":" else rest


def reserve_port():
    """A socket that keeps a port from all other programs, and the port, for a program of ours that binds it with SO_REUSEADDR and listens."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


class Relay:
    """Between one server and Redis: slow, or cut. What is on its way during a cut arrives after it, as with TCP."""

    def __init__(self, redis):
        self.redis, self.delay, self.cut = redis, 0.0, False
        self.holder, self.port = reserve_port()
        self.listener, self.links = None, []
        self.listen()

    def listen(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def refuse(self):
        """As the address of a Redis that is dead."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket()
            try:
                far.connect(("127.0.0.1", self.redis.port))
            except OSError:
                near.close()
                continue
            for link in (near, far):
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for one, other in ((near, far), (far, near)):
                parcels = queue.Queue()
                threading.Thread(target=self.take, args=(one, parcels), daemon=True).start()
                threading.Thread(target=self.give, args=(other, parcels), daemon=True).start()

    def take(self, link, parcels):
        data = b"x"
        while data:
            try:
                data = link.recv(65536)
            except OSError:
                data = b""
            parcels.put((time.monotonic() + self.delay, data))

    def give(self, link, parcels):
        data = b"x"
        while data:
            due, data = parcels.get()
            time.sleep(max(0.0, due - time.monotonic()))
            while self.cut:
                time.sleep(0.005)
            try:
                link.sendall(data)
                if not data:
                    link.shutdown(socket.SHUT_RDWR)
            except OSError:
                return


# ---- programs ----


class Tools(fleet.Tools):
    def build(self, stories):
        """What these stories need."""
        sanitize = [] if os.environ.get("ADMISSION_FAST") else fleet.SANITIZE + ["-O1"] * (story_storm in stories)
        full = self.flags("libsodium", "libcurl", "libmicrohttpd", "libcjson", "hiredis") + ["-pthread"]
        jobs = [("server-full", "examples/server.c", ["-DSERVER_FULL"] + sanitize + full)]
        if set(stories) - {story_visits, story_link}:
            jobs.append(("players", "tests/fleet/players.c", ["-O1", "-g", "-I" + TOP] + self.flags("libsodium") + ["-lm"]))
        if story_link in stories:
            jobs.append(("link", "tests/fleet/link.c", ["-I" + TOP] + sanitize + self.flags("hiredis", "libsodium") + ["-lm"]))
        if story_visits in stories:
            jobs += [("client", "examples/client.c", self.flags("libsodium")), ("token", "examples/token.c", self.flags("libsodium"))]
        self.compile(os.environ.get("ADMISSION_BUILT"), jobs)


class Server:
    """A game server under a name, with the sessions that its log reports."""

    def __init__(self, tools, name, redis, *options, lease=LEASE, port=0):
        self.tools, self.name, self.redis, self.options, self.lease = tools, name, redis, options, lease
        self.process, self.port, self.killed = None, port, None
        self.runs = []  # of (process, when it was killed)
        self.start()

    def start(self):
        command = [self.tools.program("server-full"), "--address", "127.0.0.1:%d" % self.port, "--slots", "256", "--replace", "--echo", "--key-file",
                   self.tools.path("game.key"), "--name", self.name, "--admission", "127.0.0.1:%d" % self.redis.port, "--admission-lease", str(self.lease)]
        self.process = Process(command + list(self.options), cwd=self.tools.folder)
        self.port = int(self.process.wait(r"listening on 127.0.0.1:(\d+)").group(1))
        self.process.wait("admission: %s by" % self.name)
        self.runs.append([self.process, None])

    def ready(self):
        self.process.wait("can be reached")
        return self

    def kill(self):
        self.runs[-1][1] = time.monotonic()
        self.process.send(signal.SIGKILL)
        self.process.child.wait()

    def stop(self):
        """SIGTERM, and whether it ended well."""
        return self.process.end(signal.SIGTERM)

    @staticmethod
    def stamps(process, pattern):
        """[(time on the common clock, line)] of a run's lines with a stamp. A line comes a moment after its stamp, the quickest at once."""
        stamps = [(came, float(line.split()[0]), line) for came, line in list(process.lines) if re.match(r" *\d+\.\d{3}  ", line)]
        offset = min(came - stamp for came, stamp, _ in stamps)
        return [(offset + stamp, line) for _, stamp, line in stamps if re.search(pattern, line)]

    def alive(self, begin, pattern):
        """How often it showed between this time and its line with the pattern that it did not stand still: see show_alive."""
        end = self.stamps(self.process, pattern)[-1][0]
        return sum(begin < stamp < end for stamp, _ in self.stamps(self.process, "  stats "))

    def sessions(self):
        """[client, begin, end] on the common clock, as the server saw them."""
        found = []
        for process, killed in self.runs:
            pattern, open_sessions = r"  (connected|disconnected) slot=\d+ client=(\d+) session=(\d+)", {}
            for stamp, line in self.stamps(process, pattern):
                match = re.search(pattern, line)
                if match.group(1) == "connected":
                    open_sessions[match.group(3)] = (int(match.group(2)), stamp)
                else:
                    found.append(open_sessions.pop(match.group(3)) + (stamp, self.name))
            for client, begin in open_sessions.values():
                found.append((client, begin, killed or float("inf"), self.name))
        return found

    def without_redis(self):
        """[begin, end]: when the server could not reach Redis, by its log, from when it sent what was not answered."""
        found = []
        for process, killed in self.runs:
            begin = None
            for came, line in process.lines:
                if "Redis: error" in line:
                    begin = begin or came - 2.0
                elif line.endswith("can be reached") and begin:
                    found.append((begin, came))
                    begin = None
            if begin:
                found.append((begin, killed or came))
        return found

    def connects(self, client):
        return sum(process.count(r"  connected slot=\d+ client=%d " % client) for process, _ in self.runs)

    def longest(self):
        """Milliseconds that the loop spent in one call for admission; of a server that was stopped."""
        return max([float(match.group(1)) for process, _ in self.runs for _, line in process.lines
                    for match in [re.search(r"longest call ([\d.]+) ms", line)] if match], default=0.0)


class Players:
    """tests/fleet/players.c"""

    def __init__(self, tools, servers=()):
        with open(tools.path("game.key"), encoding="ascii") as file:
            self.process = Process([tools.program("players"), file.read().strip()], stdin=subprocess.PIPE)
        self.joined = {}  # when, by name
        for server in servers:
            self.say("server %d" % server.port)

    def say(self, line):
        if line.startswith("join "):
            self.joined.setdefault(line.split()[1], []).append(time.monotonic())
        self.process.child.stdin.write((line + "\n").encode())
        self.process.child.stdin.flush()

    def join(self, name, player, *servers):
        """With a token of its own, named as the client."""
        self.say("mint %s %d %s" % (name, player, " ".join(str(server.port) for server in servers)))
        self.say("join %s %s" % (name, name))

    def events(self, word, name):
        with self.process.lock:
            return [came for came, line in self.process.lines if re.match(r"[\d.]+ %s %s " % (word, name), line)]

    def comes_in(self, name, times=1):
        """1 when it does. Where its client gives up, that is not waited for."""
        settle(lambda: len(self.events("in", name)) >= times or len(self.events("out", name)) >= len(self.joined[name]))
        return len(self.events("in", name)) >= times

    def arrives(self, name, player, server):
        """Tries again and again, with a token for each try, as a game would. How long it took; None when it did not come in."""
        begin, times = time.monotonic(), len(self.events("in", name))

        def tries_once():
            tries = len(self.events("out", name))
            self.join(name, player, server)
            settle(lambda: len(self.events("in", name)) > times or len(self.events("out", name)) > tries)
            return len(self.events("in", name)) > times

        return time.monotonic() - begin if settle(tries_once) else None

    def outcomes(self):
        """For each player, by the names of his clients, what they heard first: in, or the state in which they ended."""
        found = {}
        with self.process.lock:
            for _, line in self.process.lines:
                words = line.split()
                if words[1] in ("in", "out"):
                    found.setdefault(int(words[3]), {}).setdefault(words[2], words[1] if words[1] == "in" else words[4])
        return found

    def tries(self, name, since=0.0):
        """How often it joined, from this time on. A client gives up after TIMEOUT, so that a count does for a time that a process stood still."""
        return sum(at > since for at in self.joined[name])

    def denied(self, name, player, server, why, token=None):
        """Tries until the server's log says so; a client may give up before it is denied."""
        def said():
            return server.process.count("client=%d is denied: %s" % (player, why))

        def tries_once():
            if token:
                self.say("join %s %s %d" % (name, token, server.port))
            else:
                self.join(name, player, server)
            return settle(lambda: said() > before, TIMEOUT + 0.5)

        before = said()
        return settle(tries_once)

    def inside(self, name):
        """It is connected, as far as we heard."""
        return max(self.events("in", name), default=0.0) > max(self.events("out", name), default=0.0)

    def goes_out(self, name, times=1):
        return settle(lambda: len(self.events("out", name)) >= times)


def make_key(tools):
    with open(tools.path("game.key"), "w", encoding="ascii") as file:
        os.chmod(file.name, 0o600)
        file.write(os.urandom(32).hex() + "\n")


def held(redis, player, prefix="netcode:"):
    """The name of the server that holds a player's session."""
    lease = redis.call("GET", "%ssession:%d" % (prefix, player))
    return lease.split("/")[0] if lease else None


def given_back(commands, what):
    """How often a server gave this key back, which it does only while it is there."""
    return sum(1 for line in list(commands) if re.search(r' lua\] "DEL" "netcode:%s"' % what, line))


def was_renewed(redis, player):
    """Waits for it: the lease has long to go."""
    return settle(lambda: redis.key("PTTL", "session:%d" % player) > 1000 * LEASE - 500)


@contextlib.contextmanager
def show_alive(*servers):
    """Meanwhile their logs show it all the time, so that one that was late is told from one that stood still."""
    over = threading.Event()

    def ask():
        while not over.wait(0.03):
            for server in servers:
                server.process.send(signal.SIGUSR1)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def overlaps(servers):
    """How many sessions there were, how long two of one player were there at the same time, at most, and which."""
    worst, sessions = (0.0, None), {}
    for server in servers:
        for client, begin, end, name in server.sessions():
            sessions.setdefault(client, []).append((begin, end, name))
    for client, those in sessions.items():
        those.sort()
        latest = those[0]
        for each in those[1:]:
            worst = max(worst, (min(latest[1], each[1]) - each[0], (client, latest, each)), key=lambda entry: entry[0])
            latest = max(latest, each, key=lambda session: session[1])
    return sum(len(those) for those in sessions.values()), worst


# ---- stories ----


def story_link(story):
    """redis.h against a Redis that misbehaves"""
    result = subprocess.run([story.tools.program("link")], capture_output=True, text=True, check=False)
    for line in result.stdout.splitlines():
        if not line.startswith("    "):
            story.check(line.startswith("ok: "), line.split(": ", 1)[1], "" if line.startswith("ok: ") else result.stdout[-1500:])
    story.check(result.returncode == 0, "it ends well", result.stderr[-1500:])


def story_race(story):
    """one token at four servers in the same instant"""
    tools, rounds, batch = story.tools, 1000 if WHOLE else 100, 50
    redis = Redis(tools.folder)
    redis.settle()
    servers = [Server(tools, name, redis).ready() for name in "abcd"]
    players = Players(tools, servers)
    tried, lost, stalls = [], [], Stalls(Process.mine.list)

    def connects():
        """For each token that was tried, how often it connected at each server."""
        found = [re.findall(r"  connected slot=\d+ client=(\d+) ", server.process.text()) for server in servers]
        return [[those.count(str(each)) for those in found] for each in tried]

    def a_batch():
        begin = time.monotonic()
        chosen = range(5000 + len(tried), 5000 + len(tried) + batch)
        tried.extend(chosen)
        for each in chosen:
            players.say("mint t%d %d %s" % (each, each, " ".join(str(server.port) for server in servers)))
        for each in chosen:
            for server in servers[each % 4:] + servers[:each % 4]:  # none is always the first
                players.say("join %s%d t%d %d" % (server.name, each % batch, each, server.port))
        until(lambda: all(len(heard) == 4 for heard in map(players.outcomes().get, chosen, [{}] * batch)), "each client is in, or has given up")
        for each in chosen:
            for server in servers:
                players.say("leave %s%d" % (server.name, each % batch))
        if not stalls.since(begin - AFTER_STALL):
            outcomes = players.outcomes()
            lost.extend(each for each in chosen if "in" not in outcomes[each].values())
        return lost or sum(map(any, connects())) >= rounds

    until(a_batch, "%d tokens connect" % rounds, seconds=LIMIT_SECONDS * rounds / 100)
    story.check(all(server.stop() == 0 for server in servers), "the servers end well")  # and all lines are there
    counts = connects()
    wins = " and ".join(str(sum(those)) for those in zip(*counts))  # all of them at one server, where Redis stood still and then reads that one's link first
    story.check(max(map(sum, counts)) == 1, "%d tokens, each at four servers at once: none connects twice; they won %s" % (len(tried), wins), max(counts, key=sum))
    story.check(not lost, "each token connects, except %d for which a process stood still" % sum(1 for count in counts if not sum(count)), lost[:5])
    story.check(len(tried) <= 2 * rounds, "at least half of the %d tokens connect" % len(tried))


def enter(tools, player, server, stalls):
    """A client that is in. As a game would, it comes again with a new token where it waited in vain, or the server says that this may help; but only
    where a process stood still."""
    def comes_in():  # a client that waits for longer than ten seconds is forgotten by the server
        begin = time.monotonic()
        client = tools.client(tools.mint("game.key", player, "127.0.0.1:%d" % server.port, timeout=10), "--count", "0", "--rate", "20")
        until(lambda: client.find("connected to") or not client.running(), "player %d is in, or has given up" % player)
        if client.find("connected to"):
            return client
        may_help = client.ended() in (4, 5) or server.process.find("client=%d is denied: (%s)" % (player, LATER))
        if not may_help or not stalls.since(begin - AFTER_STALL):
            raise Failure("player %d does not come in:\n    %s\n    %s" % (player, client.text(6), server.process.text(6)))
        return None

    return until(comes_in, "player %d is in" % player)


def lives(commands, player):
    """What became of a player's lease, in the order of Redis: a letter for a server that took it, or was asked for it, and - where one gave it back."""
    return "".join(name or "-" for name in re.findall(r' lua\] "(?:SET|DEL)" "netcode:session:%d"(?: "(\w)/)?' % player, "".join(list(commands))))


def story_visits(story):
    """players that stay, come again, move, are banned, and whose server dies, in the order in which Redis has it"""
    tools = story.tools
    redis = Redis(tools.folder)
    redis.settle()
    commands = redis.watch()
    a, b = (Server(tools, name, redis, lease=VISITS_LEASE).ready() for name in "ab")
    stalls = Stalls(Process.mine.list)

    first = enter(tools, 1, a, stalls)
    story.check(held(redis, 1) == "a", "a player comes in, and Redis has the lease", held(redis, 1))
    renewed = settle(lambda: sum('"PEXPIRE" "netcode:session:1"' in line for line in list(commands)) >= 2)
    story.check(renewed and first.running(), "it is renewed while the player is connected", first.text(3))
    again = enter(tools, 1, a, stalls)
    story.check(first.ended() == 9 and again.running(), "the same player, same server, newer token: replaces the older session", first.text(3))
    there = enter(tools, 1, b, stalls)
    story.check(again.ended() == 9 and a.process.wait("client=1 is disconnected: the same player comes in at another server with a newer token"),
                "a player that moves: his older session has ended, by name", a.process.text(5))
    story.check(settle(lambda: "a-b" in lives(commands, 1)), "and its server had given the lease back before the other one took it", lives(commands, 1))
    story.check(there.end() == 0 and settle(lambda: lives(commands, 1).endswith("b-")) and held(redis, 1) is None, "a player that leaves gives it back", lives(commands, 1))

    redis.key("SET", "revoked:2", "1")
    banned = "client=2 is denied: the player is revoked"
    story.check(settle(lambda: tools.status(tools.mint("game.key", 2, "127.0.0.1:%d" % a.port, timeout=10)) == 3 and a.process.find(banned)) and not a.connects(2),
                "a revoked player does not come in, by name", a.process.text(5))
    redis.key("DEL", "revoked:2")
    caught = enter(tools, 2, a, stalls)
    redis.key("SET", "revoked:2", "1")
    story.check(caught.ended() == 9 and a.process.wait("client=2 is disconnected: the player is revoked"), "he may when that is taken back; one that plays is disconnected")
    story.check(settle(lambda: lives(commands, 2).endswith("a-")) and held(redis, 2) is None, "and his lease is given back", lives(commands, 2))

    enter(tools, 3, a, stalls)
    a.kill()
    last = enter(tools, 3, b, stalls)
    story.check(settle(lambda: "ab" in lives(commands, 3)), "a player whose server was killed is in elsewhere, though nobody gave back the lease", lives(commands, 3))
    story.check(b.stop() == 0 and last.ended() == 9 and held(redis, 3) is None, "a server that ends gives its leases back", held(redis, 3))
    story.check([key for key in redis.call("KEYS", "*") if redis.call("PTTL", key) == -1 and "revoked" not in key] == ["netcode:epoch"],
                "no key but the epoch is without an end")


def story_players(story):
    """players that reconnect, move, cheat, are banned, and whose server dies"""
    tools = story.tools
    redis = Redis(tools.folder)
    a, b = Server(tools, "a", redis, "--metrics-file", "a.prom").ready(), Server(tools, "b", redis).ready()
    players = Players(tools)

    took = players.arrives("first", 1, a)
    story.check(took is not None and players.tries("first") <= 3, "the first player of a new Redis comes in, a lease after the servers met it", took)
    story.check(held(redis, 1) == "a" and 0 < redis.key("PTTL", "session:1") <= 1000 * LEASE, "Redis has the lease, with an end", held(redis, 1))
    time.sleep(2.0 * LEASE)
    story.check(held(redis, 1) == "a" and players.inside("first"), "it is renewed while the player is connected")

    players.join("again", 1, a)
    story.check(players.comes_in("again") and players.goes_out("first"), "the same player, same server, newer token: replaces the older session")
    time.sleep(1.2 * LEASE)
    story.check(held(redis, 1) == "a" and not players.events("out", "again"), "and the lease goes on")
    commands = redis.watch()
    was_renewed(redis, 1)
    players.say("leave again")
    story.check(settle(lambda: given_back(commands, "session:1")) and held(redis, 1) is None, "a player that leaves gives it back at once", held(redis, 1))

    players.say("join again again %d" % a.port)
    story.check(players.goes_out("again") and not players.events("in", "again")[1:], "the server itself refuses a token that it has seen")
    players.say("mint two 2 %d %d" % (a.port, b.port))
    players.say("join two-a two %d" % a.port)
    story.check(players.comes_in("two-a"), "a token for two servers is good at one")
    players.say("leave two-a")
    said = players.denied("two-b", 2, b, "the token was used before", token="two")
    story.check(players.goes_out("two-b") and not players.events("in", "two-b"), "and then at no other")
    story.check(said, "whose log says why", b.process.text(5))

    players.join("here", 3, a)
    players.comes_in("here")
    took = players.arrives("there", 3, b)
    story.check(took is not None and players.tries("there") <= 2 and settle(lambda: given_back(commands, "session:3")),
                "a player that moves is in at the other server within a lease, as the first one gives it back", took)
    story.check(players.goes_out("here") and a.process.wait("client=3 is disconnected: the same player comes in at another server with a newer token"),
                "and his older session has ended, by name", a.process.text(5))
    story.check(held(redis, 3) == "b", "the lease is the other server's")

    players.join("ghost", 4, a)
    players.comes_in("ghost")
    a.kill()
    killed, end = time.monotonic(), redis.ends(4)
    took = players.arrives("back", 4, b)
    story.check(took is not None and end <= killed + LEASE + 1.0 and players.tries("back", end) <= 1,
                "a player whose server was killed is in elsewhere within a lease", (took, end - killed))
    a.start()
    a.ready()

    redis.key("SET", "revoked:5", "1")
    players.join("banned", 5, a)
    story.check(players.goes_out("banned") and a.process.wait("client=5 is denied: the player is revoked"), "a revoked player does not come in")
    players.join("caught", 6, a)
    players.comes_in("caught")
    was_renewed(redis, 6)
    redis.key("SET", "revoked:6", "1")
    story.check(players.goes_out("caught") and a.process.wait("client=6 is disconnected: the player is revoked"),
                "one that plays is disconnected at the next renewal")
    story.check(settle(lambda: given_back(commands, "session:6")) and held(redis, 6) is None, "before the lease could end: it is given back", held(redis, 6))
    redis.key("DEL", "revoked:5")
    players.join("pardoned", 5, a)
    story.check(players.comes_in("pardoned"), "and may come again when that is taken back")

    for each in range(7, 10):
        players.join("stay%d" % each, each, a)
        players.comes_in("stay%d" % each)
    metrics = open(tools.path("a.prom"), encoding="utf-8").read() if settle(lambda: "admission_leases 4" in open(
        tools.path("a.prom"), encoding="utf-8").read()) else open(tools.path("a.prom"), encoding="utf-8").read()
    for line in ('netcode_server_admissions_total{result="admitted"} 5', 'netcode_server_admissions_total{result="revoked"} 1',
                 'netcode_server_admission_losses_total{reason="revoked"} 1', "netcode_server_redis_reachable 1", "netcode_server_admission_pending 0"):
        story.check(line + "\n" in metrics, "metrics: " + line, re.findall("netcode_server_admission.*", metrics))
    story.check(a.stop() == 0, "a server ends well on SIGTERM")
    story.check(all(held(redis, each) is None for each in (5, 7, 8, 9)), "and has given its leases back by then", [held(redis, each) for each in (5, 7, 8, 9)])
    story.check([key for key in redis.call("KEYS", "*") if redis.call("PTTL", key) == -1 and "revoked" not in key] == ["netcode:epoch"],
                "no key but the epoch is without an end")
    story.check(b.stop() == 0, "so does the other")
    count, (both, where) = overlaps((a, b))
    story.check(both <= SLACK, "of %d sessions, never two of one player" % count, where)


def story_waiting(story):
    """a client that does not come for its answer, one that waits for an older session, a full Redis, passwords"""
    tools = story.tools
    redis = Redis(tools.folder)
    relay = Relay(redis)
    slow = Server(tools, "slow", relay).ready()
    quick = Server(tools, "quick", redis).ready()
    stay_a, stay_b = (Server(tools, name, redis, "--admission-older-stays", "--admission-prefix", "stay:").ready() for name in ("stay-a", "stay-b"))
    players = Players(tools)
    story.check(players.arrives("warm", 90, quick), "Redis has settled")
    story.check(quick.process.wait("client=90 has to wait: Redis is new"), "before that, the log says what a client waits for")
    story.check(players.arrives("older", 91, stay_a), "another prefix is another fleet, with an epoch of its own")

    commands = redis.watch()
    relay.delay = 0.5
    time.sleep(1.2)
    players.join("lazy", 1, slow)
    time.sleep(0.4)
    for hasty in (2, 12, 22):  # another one when it is in before it vanishes
        players.say("mint both %d %d %d" % (hasty, slow.port, quick.port))
        players.say("join hasty both %d" % slow.port)
        time.sleep(0.5)
        players.say("vanish hasty")
        took = settle(lambda hasty=hasty: any('"SET" "netcode:session:%d" "slow/' % hasty in line for line in list(commands)))
        if not settle(lambda hasty=hasty: slow.connects(hasty), 1.0):
            break
    story.check(players.comes_in("lazy") or players.arrives("lazy", 1, slow), "a Redis that takes a second for an answer only takes time")
    story.check(took, "a client that vanished while Redis was asked has a lease")
    story.check(settle(lambda: held(redis, hasty) is None and given_back(commands, "token:.*")), "which is given back when it does not come")
    players.say("join steady both %d" % quick.port)
    story.check(players.comes_in("steady"), "with its token, which is good elsewhere")

    relay.delay = 0.0

    begin = time.monotonic()
    denied = []
    while time.monotonic() - begin < 1.5 * LEASE:
        players.join("newer", 91, stay_b)
        players.goes_out("newer", times=len(denied) + 1)
        denied = players.events("out", "newer")
    story.check(denied and not players.events("in", "newer") and players.inside("older"),
                "--admission-older-stays: the newer session does not come in while the older one is there")
    players.say("leave older")
    story.check(players.arrives("then", 91, stay_b), "but when it has left")

    redis.call("CONFIG", "SET", "maxmemory", "1000")
    players.join("full", 3, quick)
    story.check(quick.process.wait("client=3 has to wait: Redis is full"), "a full Redis: the log says so at once")
    story.check(players.goes_out("full") and not players.events("in", "full"), "and no player is accepted")
    time.sleep(LEASE)
    story.check(held(redis, 90) == "quick" and players.inside("warm"), "but leases are renewed, and players stay")
    redis.call("CONFIG", "SET", "maxmemory", "0")
    players.join("room", 4, quick)
    story.check(players.comes_in("room"), "and come in when it has room again")

    with open(os.path.join(TOP, "examples/fleet/REDIS.md"), encoding="utf-8") as file:
        rights = re.search(r"^    user (game on .*)", file.read(), re.M).group(1).replace(">PASSWORD", ">right-password").split()
    story.check(redis.call("ACL", "SETUSER", *rights) == "OK", "the rights in REDIS.md are some")
    redis.key("SET", "revoked:77", "1")
    forbidden = [["DEL", "netcode:revoked:77"], ["SET", "netcode:revoked:78", "1"], ["GET", "netcode:revoked:77"], ["SET", "netcode:match:lease", "game"],
                 ["DEL", "netcode:match:tickets"], ["GET", "netcode:login:x"], ["SET", "netcode:servers:1", "x"]]
    forbidden += [["EVAL", "return redis.call('%s')" % "','".join(words), "1", "netcode:session:1"] for words in forbidden]
    forbidden += [["EVAL", "return redis.call('DEL',KEYS[1])", "1", "netcode:revoked:77"], ["EVAL", "return 1", "1", "netcode:match:lease"]]
    answers = [redis.call_as("game", "right-password", *words) for words in forbidden]
    story.check(all(re.match(r"error: (NOPERM|ERR The user executing the script can't) ", str(answer)) for answer in answers), "its user changes no ban, and nothing of the backends", answers)
    story.check(redis.key("GET", "revoked:77") == "1" and redis.key("EXISTS", "revoked:78", "netcode:match:lease") == 0, "all stands as it stood")
    for name, word in (("right", "right-password"), ("wrong", "wrong-password")):
        with open(tools.path(name + ".password"), "w", encoding="ascii") as file:
            os.chmod(file.name, 0o600)
            file.write(word + "\n")
    user = Server(tools, "user", redis, "--admission-user", "game", "--admission-password-file", "right.password").ready()
    players.join("by-user", 5, user)
    story.check(players.comes_in("by-user"), "its rights are enough to come in")
    time.sleep(LEASE)
    was_renewed(redis, 5)
    players.say("leave by-user")
    story.check(settle(lambda: given_back(commands, "session:5")) and held(redis, 5) is None, "to stay, and to leave")
    other = Server(tools, "other", redis, "--admission-user", "game", "--admission-password-file", "wrong.password")
    story.check(other.process.wait("can not be reached: the password is refused: WRONGPASS"), "a wrong password is refused with a line")
    shutil.copy(tools.path("right.password"), tools.path("wrong.password"))
    os.chmod(tools.path("wrong.password"), 0o600)
    other.process.send(signal.SIGHUP)
    story.check(other.process.wait("the password was read again") and other.process.wait("can be reached"), "SIGHUP reads the file again")

    redis.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    fifth = Server(tools, "fifth", redis)
    story.check(fifth.process.wait("maxmemory-policy allkeys-lru and may throw leases away"), "a Redis that evicts is warned of")
    for options in (["--admission", "localhost:6379"], ["--admission-policy", "none"], ["--admission-lease", "0"], ["--admission-prefix", "a b"]):
        refused = Process([tools.program("server-full")] + options)
        story.check(refused.ended() == 2, "refused: " + " ".join(options), refused.text())
    story.check(all(server.stop() == 0 for server in (slow, quick, stay_a, stay_b, user, other, fifth)), "the servers end well")
    story.check(0.0 < slow.longest() <= 1000 * NOT_WAITED, "and their loops never waited", slow.longest())
    count, (both, where) = overlaps((slow, quick, stay_a, stay_b))
    story.check(both <= SLACK, "of %d sessions, never two of one player" % count, where)


def story_passed_on(story):
    """clients that a full or draining server sends on while it asks about them, and a game loop that stood still"""
    tools = story.tools
    redis = Redis(tools.folder)
    relay = Relay(redis)
    full = Server(tools, "full", relay, "--slots", "4").ready()
    drains = Server(tools, "drains", relay).ready()
    roomy = Server(tools, "roomy", redis).ready()
    players = Players(tools)
    story.check(players.arrives("warm", 90, roomy), "Redis has settled")

    relay.delay = 0.15  # the questions of all are in flight at the same time
    time.sleep(0.5)
    names = ["crowd%d" % each for each in range(12)]
    for each, name in enumerate(names):
        players.say("mint %s %d %d %d" % (name, 100 + each, full.port, roomy.port))
    for name in names:
        players.say("join %s %s" % (name, name))
    story.check(settle(lambda: all(players.inside(name) for name in names)), "12 players for a server of 4 slots and one with room: all are in",
                [name for name in names if not players.inside(name)])

    def at_first():
        return sum(full.connects(100 + each) for each in range(12))

    story.check(settle(lambda: at_first() >= 4) and at_first() == 4, "4 of them at the first", at_first())

    relay.delay = 0.4
    time.sleep(0.5)
    names = ["drained%d" % each for each in range(5)]
    for each, name in enumerate(names):
        players.say("mint %s %d %d %d" % (name, 200 + each, drains.port, roomy.port))
        players.say("join %s %s" % (name, name))
    story.check(settle(lambda: held(redis, 204) == "drains"), "a server has asked about 5 players")
    drains.process.send(signal.SIGUSR2)
    story.check(settle(lambda: all(players.inside(name) for name in names)), "it drains: all are in at the other one",
                [name for name in names if not players.inside(name)])

    # Redis has admitted the player; the server stands still before the client asks again, and for longer than the lease.
    late, rounds = Server(tools, "late", redis).ready(), 0
    for each in range(100):
        first, second = "first%d" % each, "second%d" % each
        players.join(first, 300 + each, late)
        admitted = settle(lambda each=each: held(redis, 300 + each) == "late", 3)
        players.process.send(signal.SIGSTOP)
        time.sleep(0.15)
        late.process.send(signal.SIGSTOP)
        early = not admitted or settle(lambda each=each: late.connects(300 + each), 0.2)  # it has asked again already; its line may be under way
        players.process.send(signal.SIGCONT)
        if early:
            late.process.send(signal.SIGCONT)
            continue
        time.sleep(LEASE + 0.1)
        players.join(second, 300 + each, roomy)
        story.check(players.comes_in(second), "a server stands still for longer than a lease: its player is in elsewhere")
        late.process.send(signal.SIGCONT)
        time.sleep(0.5)
        story.check(not late.connects(300 + each) and players.inside(second), "and does not come in there when it goes on", late.process.text(6))
        rounds += 1
        if rounds == 2:
            break
    story.check(rounds == 2, "twice", rounds)

    story.check(all(server.stop() == 0 for server in (full, roomy, late)), "the servers end well")
    count, (both, where) = overlaps((full, roomy))
    story.check(both <= SLACK, "of %d sessions, never two of one player" % count, where)
    story.check(at_first() == 4, "no more than 4 at the first until its end", at_first())


def story_trouble(story):
    """a Redis whose clock was set back, one that loads for longer than a lease, and keys that are none of ours"""
    tools = story.tools
    redis = Redis(tools.folder, "--key-load-delay", "250000", "--loading-process-events-interval-bytes", "1024")
    server = Server(tools, "one", redis).ready()
    players = Players(tools)
    story.check(players.arrives("stays", 1, server), "Redis has settled")

    # What a clock that is set back by ten minutes leaves: times that are ten minutes ahead.
    run, since = redis.key("GET", "epoch").split()
    redis.key("SET", "epoch", "%s %d" % (run, int(since) + 600000))
    redis.key("SET", "session:2", "gone/0123456789abcdef/1 %d" % (time.time() + 1), "PX", str(600000))
    took = players.arrives("second", 2, server)
    story.check(took is not None and players.tries("second") <= 5, "the clock of Redis is set back: it settles, and no lease lasts longer than one", took)
    story.check(players.inside("stays"), "a connected player stays in")

    redis.key("HSET", "session:3", "a", "b")
    players.join("odd", 3, server)
    story.check(players.goes_out("odd") and not players.events("in", "odd"), "a session's key of another type: that player does not come in")
    redis.key("DEL", "session:1")
    redis.key("HSET", "session:1", "a", "b")
    story.check(settle(lambda: not players.inside("stays")), "it ends the session that it stands for")
    time.sleep(LEASE / 3 + 0.5)
    story.check(players.inside("second") and held(redis, 2) == "one", "and no other")
    redis.key("DEL", "session:1", "session:3")

    for each in range(40):
        redis.call("SET", "other:%d" % each, os.urandom(2048).hex())
    redis.call("SAVE")
    redis.kill()
    time.sleep(0.3)
    command = ["redis-server", "--port", str(redis.port), "--bind", "127.0.0.1", "--save", "", "--dir", redis.folder, "--daemonize", "no"]
    redis.child = Process(command + list(redis.settings))
    story.check(server.process.wait("leases are not renewed: LOADING"), "Redis restarts, and loads its data")
    begin = time.monotonic()
    story.check(settle(redis.answers) and time.monotonic() - begin > LEASE, "for longer than a lease", time.monotonic() - begin)
    story.check(players.inside("second"), "a connected player stays in")
    time.sleep(LEASE)
    story.check(players.inside("second") and held(redis, 2) == "one", "and has a lease again")
    story.check(server.stop() == 0, "the server ends well")


def story_edges(story):
    """the ends of leases beside a slow Redis, and commands that are stuck in a cut"""
    tools = story.tools
    redis = Redis(tools.folder)
    relay = Relay(redis)
    server = Server(tools, "slow", relay).ready()
    players = Players(tools)
    story.check(players.arrives("settled", 1, server), "Redis has settled")
    players.say("leave settled")
    relay.delay = 0.5
    time.sleep(1.2)

    # The server's view ends before the lease, though each answer takes a second: cut as soon as the first one is there.
    players.join("edge", 2, server)
    story.check(players.comes_in("edge") or players.arrives("edge", 2, server), "a player comes in beside a Redis that takes a second for an answer")
    relay.cut = True
    ended = redis.ends(2)
    with show_alive(server):
        story.check(settle(lambda: held(redis, 2) is None), "a lease that is not renewed ends")
        good = players.goes_out("edge") and server.process.wait("client=2 is disconnected: the lease ended")
    late = server.alive(ended, "client=2 is disconnected: the lease ended") if good else "not at all"
    story.check(good and late <= 2, "and the player was disconnected before", late)
    relay.cut = False
    story.check(server.process.wait("can be reached"), "the server finds Redis again")

    # A renewal is stuck, and its server dies before it could give the lease back.
    time.sleep(1.2)
    story.check(players.arrives("stuck", 3, server), "and lets a player in")
    relay.cut = True
    time.sleep(LEASE / 3 + 0.3)
    server.kill()
    story.check(settle(lambda: held(redis, 3) is None), "the lease of a server that is killed in a cut ends")
    time.sleep(1.5)
    relay.cut = False
    story.check(not settle(lambda: held(redis, 3), 1.5), "and a renewal that arrives late does not bring it back", held(redis, 3))
    relay.delay = 0.0
    server.start()
    server.ready()
    story.check(server.stop() == 0, "the server ends well")


def story_policies(story):
    """strict, direct, keep and open while one server is cut off, and while Redis is dead"""
    tools = story.tools
    redis = Redis(tools.folder)
    relays, near, far = {}, {}, {}
    policies = ("strict", "direct", "keep", "open")
    for policy in policies:
        relays[policy], relays[policy + "-far"] = Relay(redis), Relay(redis)
        options = ("--admission-policy", policy, "--admission-prefix", policy + ":")
        near[policy] = Server(tools, policy, relays[policy], *options).ready()
        far[policy] = Server(tools, policy + "-far", relays[policy + "-far"], *options).ready()
    players = Players(tools)
    number = {policy: 10 * (1 + index) for index, policy in enumerate(policies)}
    story.check(all(players.arrives(policy, number[policy], near[policy]) for policy in policies), "each policy has a player")
    for policy in policies:  # a token that was used at a server that will be the only one to know
        players.say("mint %s-used %d %d %d" % (policy, number[policy] + 1, near[policy].port, far[policy].port))
        players.say("join %s-used %s-used %d" % (policy, policy, near[policy].port))
    story.check(all(players.comes_in(policy + "-used") for policy in policies), "and one whose token will be tried again")

    # One server of each pair is cut off; the others reach Redis.
    for policy in policies:
        relays[policy].cut = True
    cut = time.monotonic()
    ends = {policy: redis.ends(number[policy], policy + ":") for policy in policies}
    story.check(all(cut < end <= time.monotonic() + LEASE for end in ends.values()), "all leases go on, for one lease at most", ends)
    moves = [threading.Thread(target=players.arrives, args=(policy + "-moves", number[policy], far[policy]), daemon=True) for policy in policies]
    with show_alive(near["strict"], near["direct"]):
        time.sleep(LEASE / 2)  # so that no client gives up in the moment when its player's lease ends
        for move in moves:
            move.start()
        for policy in ("strict", "direct"):
            line = "client=%d is disconnected: the lease ended before Redis renewed it" % number[policy]
            story.check(settle(lambda policy=policy: not players.inside(policy)), "%s, cut off: the player is disconnected" % policy)
            story.check(near[policy].process.wait(line), "by name")
            late = near[policy].alive(ends[policy], line)
            story.check(late <= 2, "when the lease ends, and no later", late)
    for move in moves:
        move.join()
    for policy in policies:
        late = players.tries(policy + "-moves", ends[policy])
        story.check(players.events("in", policy + "-moves") and late <= 1, "%s: and is in at a server that reaches Redis, within a lease" % policy, late)
    story.check(players.arrives("open-new", number["open"] + 2, near["open"]), "open, cut off: a new player comes in at the cut-off server")
    story.check(near["open"].process.wait("client=42 is admitted: Redis can not be reached, so"), "and the log says on what ground")
    for policy in ("strict", "direct", "keep"):
        story.check(players.denied(policy + "-new", number[policy] + 2, near[policy], "Redis can not be reached"), "%s, cut off: a new player is denied, and the log says why" % policy)
    story.check(players.inside("keep") and players.inside("open"), "keep and open, cut off: the players are still there")
    for policy in policies:
        relays[policy].cut = False
    for policy in ("keep", "open"):
        story.check(settle(lambda policy=policy: not players.inside(policy)), "%s, when Redis is back: the older of two sessions ends" % policy)
        story.check(near[policy].process.wait("client=%d is disconnected: another server holds the session" % number[policy]), "by name")
    took = [near[policy].stamps(near[policy].process, words)[-1][0] for policy in ("keep", "open") for words in ("holds the session", "can be reached")]
    story.check(max(took[0] - took[1], took[2] - took[3]) <= LEASE / 3 + 1.5, "within a third of a lease and a second and a half", took)
    time.sleep(0.3)
    story.check(held(redis, 30, "keep:") == "keep-far", "and gives back no lease but its own", held(redis, 30, "keep:"))
    story.check(settle(lambda: held(redis, 42, "open:") == "open"), "open: and a player that came in then has a lease now", held(redis, 42, "open:"))
    story.check(all(players.arrives(policy + "-back", number[policy] + 3, near[policy]) for policy in policies), "all let players in again")

    # Redis dies, for longer than a lease, and comes back without its data.
    ended = {policy: near[policy].process.count("the lease ended") for policy in policies}
    for relay in relays.values():
        relay.refuse()
    redis.kill()
    time.sleep(2.0 * LEASE)
    story.check(not players.inside("strict-back"), "strict, Redis dead: players are disconnected")
    for policy in ("direct", "keep", "open"):
        story.check(players.inside(policy + "-back"), "%s, Redis dead: players stay" % policy)
    story.check(near["direct"].process.count("the lease ended") == ended["direct"], "and no lease of direct is counted as lost")
    redis.start()
    for policy in policies:
        relays[policy + "-far"].listen()
    for policy in policies:
        far[policy].process.wait("can be reached")
    arrivals = [threading.Thread(target=players.arrives, args=(policy + each, number[policy] + add, far[policy]), daemon=True)
                for policy in policies for each, add in (("-twin", 3), ("-late", 4))]  # the twin, before the near server has reported its player
    for arrival in arrivals:
        arrival.start()
    time.sleep(0.7)
    for policy in policies:
        relays[policy].listen()
    for policy in policies:
        near[policy].process.wait("can be reached")
        players.say("leave %s-used" % policy)
    for arrival in arrivals:
        arrival.join()
    for policy in ("direct", "keep", "open"):
        line = "client=%d is disconnected: the same player comes in at another server" % (number[policy] + 3)
        story.check(settle(lambda policy=policy, line=line: near[policy].process.count(line)),
                    "%s, Redis is back, empty: the server reports its player before he is accepted elsewhere" % policy)
    for policy in policies:
        tries = players.tries(policy + "-late")
        story.check(players.events("in", policy + "-late") and tries <= 3, "%s: a new player comes in, a lease after it is back" % policy, tries)
    for policy in policies:
        players.say("join %s-cheat %s-used %d" % (policy, policy, far[policy].port))
    for policy in policies:
        name, player, why = policy + "-cheat", number[policy] + 1, "the token was used before"
        said = settle(lambda policy=policy, player=player, why=why: far[policy].process.count("client=%d is denied: %s" % (player, why)), 5)
        said = said or players.denied(name, player, far[policy], why, token=policy + "-used")
        story.check(players.goes_out(name) and not players.events("in", name), "%s: a token that was used before Redis lost its data is still used" % policy)
        story.check(said, "by name")
    story.check(all(server.stop() == 0 for server in list(near.values()) + list(far.values())), "the servers end well")
    for policy in ("strict", "direct"):
        count, (both, where) = overlaps((near[policy], far[policy]))
        story.check(both <= SLACK, "%s: of %d sessions, never two of one player" % (policy, count), where)


# ---- the storm ----


class Storm:
    """Players that connect, leave, vanish and move at random, while servers and Redis have their faults."""

    def __init__(self, story, connects, count):
        self.story, self.tools, self.connects = story, story.tools, connects
        self.redis = Redis(self.tools.folder)
        self.relays = [Relay(self.redis) for _ in range(4)]
        self.servers = [Server(self.tools, "abcd"[i], self.relays[i], lease=STORM_LEASE).ready() for i in range(4)]
        self.players = Players(self.tools, self.servers)
        self.unreachable, self.slow = [], []  # (from, to)
        self.gone = []  # (server, from, to)
        self.cuts = []  # when
        self.windows = []  # (fault, connects before it, from, to)
        time.sleep(STORM_LEASE)  # a Redis that the servers did not know settles first
        self.count = count
        self.goes_on_for(NO_END)
        self.begin = time.monotonic()

    def goes_on_for(self, connects):
        self.players.say("storm %d %d %d" % (connects, self.count, 7))

    def tell(self, what):
        """How many connects there were until now."""
        ins = self.players.process.count(r"^\S+ in ")
        self.story.lines.append("        %5.1f s, %5d connects: %s" % (time.monotonic() - self.begin, ins, what))
        return ins

    @contextlib.contextmanager
    def fault(self, what):
        """It lasts as long as the block, which gets the time when it began."""
        before, begin = self.tell(what), time.monotonic()
        yield begin
        self.windows.append((what, before, begin, time.monotonic()))

    def server_dies(self, index, number):
        with self.fault("server %s gets signal %d" % (self.servers[index].name, number)) as begin:
            self.players.say("down %d" % index)
            if number == signal.SIGKILL:
                self.servers[index].kill()
            else:
                self.story.check(self.servers[index].stop() == 0, "a server ends in the storm")
            time.sleep(1.0)
            self.servers[index].start()
            self.servers[index].ready()
            self.players.say("up %d" % index)
        self.gone.append((index, begin, time.monotonic()))
        time.sleep(1.5)

    def redis_dies(self, seconds):
        before = sum(server.process.count("the lease ended") for server in self.servers)
        with self.fault("Redis is killed for %.1f s, and comes back empty" % seconds) as begin:
            for relay in self.relays:
                relay.refuse()
            self.redis.kill()
            time.sleep(seconds)
            self.redis.start()
        for relay in self.relays:
            relay.listen()
        for server in self.servers:
            until(lambda server=server: server.process.lines and self.reached(server), "a server reaches Redis")
        self.unreachable.append((begin, time.monotonic()))
        time.sleep(STORM_LEASE + 1.0)
        lost = sum(server.process.count("the lease ended") for server in self.servers) - before
        self.story.check(lost == 0, "no player was disconnected for it", lost)

    @staticmethod
    def reached(server):
        """Does the log's last word on Redis say so?"""
        with server.process.lock:
            words = [line for _, line in server.process.lines if "Redis: 127" in line or "Redis: error" in line]
        return bool(words) and words[-1].endswith("can be reached")

    def redis_pauses(self, seconds):
        with self.fault("Redis is paused for %.1f s" % seconds) as begin:
            self.redis.signal(signal.SIGSTOP)
            time.sleep(seconds)
            self.redis.signal(signal.SIGCONT)
        for server in self.servers:
            until(lambda server=server: self.reached(server), "a server reaches Redis")
        self.unreachable.append((begin, time.monotonic()))
        time.sleep(2.0)

    def redis_is_slow(self, seconds):
        with self.fault("Redis takes a second for each answer, for %.1f s" % seconds) as begin:
            for relay in self.relays:
                relay.delay = 0.5
            time.sleep(seconds)
            for relay in self.relays:
                relay.delay = 0.0
        self.slow.append((begin, time.monotonic() + 1.0))
        time.sleep(1.5)

    def redis_is_full(self, seconds):
        with self.fault("Redis is full for %.1f s" % seconds) as begin:
            self.redis.call("CONFIG", "SET", "maxmemory", "1000")
            time.sleep(seconds)
            self.redis.call("CONFIG", "SET", "maxmemory", "0")
        self.unreachable.append((begin, time.monotonic()))
        time.sleep(1.5)

    def server_is_cut_off(self, index, seconds):
        with self.fault("server %s is cut off from Redis for %.1f s" % (self.servers[index].name, seconds)):
            self.relays[index].cut = True
            self.cuts.append(time.monotonic())
            self.players.say("down %d" % index)  # as a backend would, when its reports say so
            time.sleep(seconds)
            self.relays[index].cut = False
        until(lambda: self.reached(self.servers[index]), "the server reaches Redis")
        self.players.say("up %d" % index)
        time.sleep(1.0)

    def faults(self):
        self.server_dies(0, signal.SIGKILL)
        self.server_dies(1, signal.SIGTERM)
        self.redis_dies(STORM_LEASE + 1.0)
        self.redis_pauses(0.6 * STORM_LEASE)
        self.redis_is_slow(5.0)
        self.server_is_cut_off(3, 2.0 * STORM_LEASE + 1.0)
        self.redis_pauses(1.6 * STORM_LEASE)
        self.redis_is_full(2.5)
        self.server_dies(2, signal.SIGKILL)

    def run(self):
        time.sleep(2.0)
        while True:
            self.faults()
            if not WHOLE or self.players.process.count(r"^\S+ in ") >= self.connects:
                break
        self.goes_on_for(max(self.connects, self.tell("no more faults")))
        done = settle(lambda: self.players.process.find(r" done \d+"))
        ins = self.tell("the end")
        self.story.check(done and ins >= self.connects, "%d connects came together, and at least %d were wanted" % (ins, self.connects))
        self.story.check(self.windows[-1][1] < ins, "%d of them before the last fault began" % self.windows[-1][1])
        self.players.say("quit")
        self.story.check(self.players.process.ended() == 0, "the players end well")
        time.sleep(0.5)
        self.story.check(all(server.stop() == 0 for server in self.servers), "the servers end well, and no sanitizer reports")

    def lockouts(self):
        """For each player that tries: how long until it is in, since he began or since the last fault. A fault ends when Redis can be reached
        again; a server that dies or is cut off is one in its moment. The longest first, and when they were; those while Redis was slow apart."""
        begins, found, found_slow = {}, [], []
        unreachable = list(self.unreachable)  # and what was not planned, on a machine that has other things to do
        for server in self.servers:
            unreachable += [(first, last) for first, last in server.without_redis() if not any(first - 1.0 <= cut <= last for cut in self.cuts)]
        stalls = [float(line.split()[0]) for _, line in self.players.process.lines if " stall " in line]
        faults = self.cuts + stalls + [last for _, last in unreachable] + [first for _, first, _ in self.gone]
        for _, line in self.players.process.lines:
            words = line.split()
            stamp, word, player = float(words[0]), words[1], words[2]
            if word == "try":
                begins.setdefault(player, stamp)
            elif word == "in" and player in begins:
                begin = begins.pop(player)
                if any(first <= stamp <= last for first, last in unreachable):
                    continue  # he came in all the same
                begin = max([begin] + [fault for fault in faults if fault <= stamp])
                slow = any(begin <= last and stamp >= first for first, last in self.slow)
                (found_slow if slow else found).append((stamp - begin, "%s from %.1f to %.1f s" % (player, begin - self.begin, stamp - self.begin)))
        found += [(stamp - max([begin] + faults), "%s is not in at the end" % player) for player, begin in begins.items()]
        return sorted(found, reverse=True), sorted(found_slow, reverse=True)

    def tries(self):
        """For each fault: how often players tried, or came in, while it lasted."""
        stamps = [float(line.split()[0]) for _, line in self.players.process.lines if line.split()[1] in ("try", "in")]
        return [(sum(begin <= stamp <= end for stamp in stamps), what) for what, _, begin, end in self.windows]

    def judge(self):
        story = self.story
        count, (both, where) = overlaps(self.servers)
        story.check(count >= self.connects, "the servers' logs report all sessions", count)
        story.check(both <= SLACK, "of %d sessions, never two of one player: %.3f s at most, where the clocks may differ by %.2f s" % (count, max(both, 0.0), SLACK),
                    where)
        tries = self.tries()
        story.check(min(tries)[0] > 0, "in each of %d faults players tried or came in, %d times at least" % (len(tries), min(tries)[0]), tries)
        longest, longest_slow = self.lockouts()
        story.check(longest and longest_slow, "%d times a player came in, and %d times while each answer took a second" % (len(longest), len(longest_slow)))
        locked, locked_slow = max(longest, default=(0.0,))[0], max(longest_slow, default=(0.0,))[0]
        allowed = STORM_LEASE + GIVEN_UP
        story.check(locked <= allowed, "no player was locked out for longer than a lease after the last fault: %.2f s of %d + %.2f" % (
            locked, STORM_LEASE, GIVEN_UP), longest[:5])
        allowed += 3.0
        story.check(locked_slow <= allowed, "nor while each answer took a second, and three answers: %.2f s of %.2f" % (locked_slow, allowed), longest_slow[:5])
        longest = max(server.longest() for server in self.servers)
        story.check(0.0 < longest <= 1000 * NOT_WAITED, "no game loop waited: the longest call took %.1f ms" % longest)


def story_storm(story):
    """four servers, 200 players, thousands of connects, while servers and Redis are killed, paused, slow, full and cut off"""
    storm = Storm(story, 50000 if WHOLE else 10000, 200)
    storm.run()
    storm.judge()


STORIES = (story_link, story_policies, story_trouble, story_passed_on, story_waiting, story_edges, story_players, story_visits, story_race, story_storm)


# ---- planted faults ----

PLANTS = (
    ("visits", "examples/fleet/admission.h", "admission->next_renewal = admission->now + admission->lease / 3.0;",
     "admission->next_renewal = admission->now + 1000.0;"),
    ("players", "examples/fleet/admission.h", '"if lease then "', '"if false then "'),
    ("visits", "examples/fleet/admission.h", '"  elseif wanted~=\'\' then out[i]=5 "', '""'),
    ("visits", "examples/fleet/admission.h", '"if redis.call(\'EXISTS\',KEYS[4])==1 then return {\'revoked\'} end "', '""'),
    ("visits", "examples/fleet/extras.h", "        admission_close( &extras.admission, netcode_time );", "        admission_free( &extras.admission );"),
    ("race", "examples/fleet/admission.h", "\"if used and string.sub", "\"if false and string.sub"),
    ("edges", "examples/fleet/admission.h", "admission_hold( admission, player, sent );", "admission_hold( admission, player, admission->now );"),
    ("edges", "examples/fleet/admission.h", '"if now>tonumber(ARGV[2]) then', '"if false then'),
    ("waiting", "examples/fleet/REDIS.md", "~netcode:revoked:* -@all +eval +exists)", "~netcode:revoked:* -@all +eval +exists +del)"),
    ("waiting", "examples/fleet/REDIS.md", "~netcode:epoch resetchannels", "~netcode:* resetchannels"),
    ("waiting", "examples/fleet/admission.h", ": unseen >= ADMISSION_GONE )", ": unseen >= 1e9 )"),
    ("waiting", "examples/fleet/admission.h", "    ask->was_sent = 1;\n", "    ask->was_sent = 1;\n    redis_finish( &admission->redis, 2.0, netcode_time );\n"),
    ("policies", "examples/fleet/admission.h", "~='2' and string.match(redis.call('GET',KEYS[2*i-1]) or '','^%S+')==holder then", "~='2' then"),
    ("policies", "examples/fleet/admission.h", "if since+ARGV[3]>now then", "if false then"),
    ("policies", "examples/fleet/admission.h", "    admission->announce_from = 0;\n    admission_warn", "    admission_warn"),
    ("policies", "examples/fleet/admission.h", "    if ( admission->redis.refused_at >= 0.0 )\n        admission_excuse( admission, admission->redis.refused_at );",
     "    admission_excuse( admission, now );"),
    ("policies", "examples/fleet/admission.h", "admission->policy == ADMISSION_DIRECT && admission->excused_until", "0 && admission->excused_until"),
    ("passed_on", "examples/fleet/admission.h", "        return ADMISSION_GONE + 0.5;", "        return 0.0;"),
    ("passed_on", "examples/fleet/admission.h", "{\n    admission->now = now;\n    struct", "{\n    (void) now;\n    struct"),
    ("trouble", "examples/fleet/admission.h", " or tonumber(since)>now then", " then"),
    ("trouble", "examples/fleet/admission.h", "if left>tonumber(ARGV[3]) then", "if false then"),
    ("trouble", "examples/fleet/admission.h", "redis.pcall('GET',key)", "redis.call('GET',key)"),
    ("trouble", "examples/fleet/admission.h", "            admission_excuse( admission, call->sent );", "            (void) 0;"),
    ("link", "examples/fleet/redis.h", "#define REDIS_LINK_SEND_FLAGS MSG_NOSIGNAL", "#define REDIS_LINK_SEND_FLAGS 0"),
    ("link", "examples/fleet/redis.h", "        link->answer_bytes += (size_t) bytes;\n", ""),
    ("link", "examples/fleet/redis.h", "        command->callback = NULL;\n", "        redis_shift( link );\n        i--;\n"),
)


def run_story(story, top, programs):
    environment = dict(os.environ, ADMISSION_TOP=top, ADMISSION_BUILT=programs, ADMISSION_FAST="1", TEST_LIMIT_SECONDS="20")
    child = subprocess.run([sys.executable, os.path.abspath(__file__), story], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
    return child.returncode, child.stdout


def try_plant(plant):
    """None when the story noticed, else what went wrong."""
    story, path, there, fault = plant
    with tempfile.TemporaryDirectory(prefix="netcode-admission-plant-") as top:
        os.symlink(os.path.join(HERE, "netcode.h"), os.path.join(top, "netcode.h"))
        for each in ("examples/fleet", "examples/metrics", "examples/wireshark", "tests/fleet"):
            shutil.copytree(os.path.join(HERE, each), os.path.join(top, each))
        for each in ("server.c", "client.c", "token.c", "secret_file.h"):
            shutil.copy(os.path.join(HERE, "examples", each), os.path.join(top, "examples"))
        name = os.path.join(top, path)
        with open(name, encoding="utf-8") as file:
            text = file.read()
        if text.count(there) != 1:
            return "its place is there %d times" % text.count(there)
        with open(name, "w", encoding="utf-8") as file:
            file.write(text.replace(there, fault))
        status, output = run_story(story, top, "/nowhere")
    if "does not build" in output:
        return output
    failed = re.findall(r"  FAIL  (.*)", output)
    print("  %s  %s: %s: %s" % ("ok  " if failed and status else "FAIL", story, " ".join(there.split())[:60], failed[0][:100] if failed else "not noticed"), flush=True)
    return None if failed and status else output


def run_plants(words):
    """Every fault must be noticed by its story, which passes without it."""
    chosen = [plant for plant in PLANTS if not words or plant[0] in words]
    for story in sorted({plant[0] for plant in chosen}):
        status, output = run_story(story, TOP, "/nowhere")
        if status:
            print("%s\nadmission plants: without a fault, %s fails" % (output, story))
            return 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [(plant, result) for plant, result in zip(chosen, pool.map(try_plant, chosen)) if result]
    for plant, result in wrong:
        print("  NOT NOTICED  %s\n%s" % (plant, result[-1500:]))
    print("admission plants: %d of %d noticed" % (len(chosen) - len(wrong), len(chosen)))
    return 0 if chosen and not wrong else 1


# ---- what it costs Redis ----


def read_script(name):
    """A script as it stands in admission.h."""
    with open(os.path.join(TOP, "examples/fleet/admission.h"), encoding="utf-8") as file:
        text = file.read()
    epoch = text[text.index("#define ADMISSION_LUA_EPOCH"):text.index("/*  KEYS epoch session token revoked")]
    begin = text.index("static const char admission_lua_%s[]" % name)
    body = text[begin:text.index(";\n", text.index('return', begin))]
    strings = re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', (epoch if "ADMISSION_LUA_EPOCH" in body else "") + body)
    return "".join(strings)


def measure():
    """The scripts' time in Redis, and what players and used tokens take there."""
    players, folder = 20000, tempfile.mkdtemp(prefix="netcode-admission-")
    try:
        redis = Redis(folder)
        run_id = re.search(r"run_id:(\w+)", redis.call("INFO", "server")).group(1)
        until = str(10 ** 15)
        own = "eu-west-1/0123456789abcdef/"
        link = socket.create_connection(("127.0.0.1", redis.port))
        file = link.makefile("rb")

        def send(script, keys, arguments):
            words = [str(word).encode() for word in ["EVAL", script, len(keys)] + keys + arguments]
            link.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

        def spent():
            match = re.search(r"cmdstat_eval:calls=(\d+),usec=(\d+)", redis.call("INFO", "commandstats"))
            return float(match.group(2)) if match else 0.0

        def memory():
            return int(re.search(r"used_memory:(\d+)", redis.call("INFO", "memory")).group(1))

        ask, renew, back = read_script("ask"), read_script("renew"), read_script("return")
        redis.key("SET", "epoch", "%s 1" % run_id)
        tokens = [os.urandom(16).hex() for _ in range(players)]
        expire = int(time.time()) + 60
        before, free = spent(), memory()
        for each in range(players):
            send(ask, ["netcode:epoch", "netcode:session:%d" % (10 ** 9 + each), "netcode:token:" + tokens[each], "netcode:revoked:%d" % (10 ** 9 + each)],
                 [run_id, until, 15000, own, own + str(each), expire, 60, 1, 86460])
            if read_answer(file) != ["admitted"]:
                raise Failure("the script does not admit")
        asked, used = spent(), memory()
        for first in range(0, players, 64):
            those = range(first, min(first + 64, players))
            send(renew, ["netcode:epoch"] + [key for each in those for key in ("netcode:session:%d" % (10 ** 9 + each), "netcode:revoked:%d" % (10 ** 9 + each))],
                 [run_id, until, 15000, own] + [word for each in those for word in (own + str(each), expire)])
            if read_answer(file) != [1] * len(those):
                raise Failure("the script does not renew")
        renewed = spent()
        for first in range(0, players, 64):
            those = range(first, min(first + 64, players))
            send(back, [key for each in those for key in ("netcode:session:%d" % (10 ** 9 + each), "netcode:token:" + tokens[each])],
                 [word for each in those for word in (own + str(each), 0)])
            if read_answer(file) != 1:
                raise Failure("the script does not give back")
        given, kept = spent(), memory()
    finally:
        Process.end_list(Process.all)
        shutil.rmtree(folder, ignore_errors=True)
    print("of Redis' time: a question %.1f us, a renewal %.2f us a player, a lease that goes back %.2f us" % (
        (asked - before) / players, (renewed - asked) / players, (given - renewed) / players))
    print("of its memory: a session %.0f bytes, a used token %.0f bytes" % ((used - kept) / players, (kept - free) / players))
    return 0


# ---- the program ----


def run(words):
    chosen = fleet.choose(STORIES, words)
    folder = tempfile.mkdtemp(prefix="netcode-admission-")
    stories, begin = [], time.monotonic()
    try:
        Tools(folder, folder).build(chosen)
        print("  built in %.1f s" % (time.monotonic() - begin), flush=True)
        for tell in chosen:
            tools = Tools(folder, os.path.join(folder, tell.__name__))
            os.mkdir(tools.folder)
            make_key(tools)
            stories.append(Story(tools, tell))
        fleet.run_stories([story for story in stories if story.tell is not story_storm])
        fleet.run_stories([story for story in stories if story.tell is story_storm])  # alone: it measures
    except Failure as failure:
        print("  FAIL  %s" % failure)
    finally:
        Process.end_list(Process.all)
        shutil.rmtree(folder, ignore_errors=True)
    passed, failed = sum(story.passed for story in stories), sum(story.failed for story in stories)
    if not stories:
        failed = 1
    print("admission: %d passed, %d failed, %.0f s" % (passed, failed, time.monotonic() - begin))
    return 0 if passed and not failed else 1


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if subprocess.run(["sh", os.path.join(HERE, "tests/tools/need.sh")] + PACKAGES, check=False).returncode:
        return 1
    if sys.argv[1:2] == ["--plants"]:
        return run_plants(sys.argv[2:])
    if sys.argv[1:] == ["--measure"]:
        return measure()
    return run([word for word in sys.argv[1:] if word != "--whole"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
