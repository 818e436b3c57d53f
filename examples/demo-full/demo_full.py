#!/usr/bin/env python3
"""What `make demo-full` runs: the whole architecture around netcode.h on loopback, as real processes. nginx with TLS, two token backends that
share a Redis, three dedicated servers, a dozen players and a match of eight; a line for each thing that is promised: what was expected, and what happened.

    python3 examples/demo-full/demo_full.py

Every verdict is read from another side than the one that acts: from logs, counters and metrics of servers, backend and nginx for what a player
does, from the players' own output for what was done to them. Nothing waits for a fixed time: each wait ends when what it waits for is seen, or
fails. It ends with 0 only if every line held, else at the first that did not, with 1. README.md beside this file describes it.

DEMO_KILL_BACKEND=1 in the environment kills the backend in the middle: then it must fail, which shows that it can. CC is the compiler.
"""

import base64
import binascii
import ctypes
import glob
import http.client
import json
import os
import re
import selectors
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build", "demo-full")
CC = os.environ.get("CC", "cc").split()
CFLAGS = ["-std=c99", "-O0"]  # half the time to build, and the players notice nothing
PACKAGES = """libc6-dev:/usr/include/stdio.h pkg-config:pkg-config libsodium-dev:pc=libsodium libmicrohttpd-dev:pc=libmicrohttpd
    libcjson-dev:pc=libcjson libcurl4-openssl-dev:pc=libcurl libhiredis-dev:pc=hiredis libjansson-dev:pc=jansson libssl-dev:pc=libcrypto libcjose-dev:pc=cjose
    redis-server:redis-server nginx-light:nginx openssl:openssl""".split()
PROGRAMS = [  # the slowest first
    ("server-full", "server.c", ["-DSERVER_FULL"], ["libsodium", "libmicrohttpd", "libcurl", "libcjson", "hiredis"]),
    ("backend", "backend/backend.c", ["-DBACKEND_FULL"], ["libsodium", "libmicrohttpd", "libcurl", "libcjson", "hiredis", "cjose"]),
    ("client_http", "backend/client_http.c", [], ["libsodium", "libcurl", "libcjson"]),
    ("token", "token.c", [], ["libsodium"]),
    ("client", "client.c", [], ["libsodium"]),
]

LIMIT_SECONDS = 140  # for all lines together, whatever happens
BUILD_SECONDS = 300  # for one program, on a machine that has much else to do
STEP_SECONDS = 15  # for one thing to happen; a busy machine may need more than the moment that it takes on an idle one
EXPIRE_SECONDS = 8  # of tokens
TIMEOUT_SECONDS = 5  # of their connections
MAX_BACK_OFF_SECONDS = 5  # of client_http, between two requests for a token
SHORT_TIMEOUT_SECONDS = 2  # of tokens that shall be refused: so long their clients keep trying
MAX_GAP_MS = 1000  # without a payload, for a player whose server lives; what the machine stood still comes on top
LEASE_SECONDS = 5  # of a player's session in Redis: so long a killed server's players are held to be there; at 3 s it ends while a server stands still for 2 s
SILENCE_MS = 2500  # after which a player gives a server up that the system does not report as gone; a machine may stand still for a second
COLUMNS = 110  # of what is printed
MARGIN = 11
NOT_OPENED = 4  # what netcode-token inspect ends with when the key is not the token's
NO_ANSWER, DENIED, ENDED = 4, 3, 9  # what client ends with: the server says nothing, denies, or ends the session
WRONG_CERTIFICATE, WRONG_CREDENTIAL = 3, 4  # what client_http ends with
PAYLOADS, PAYLOAD_BYTES, NUMBER_BYTES = 60, 100, 8  # of the session that is looked into
JUNK, GOODBYES = 20, 10  # datagrams
PAYLOAD_TYPE = 5  # in the low bits of a packet's first byte

PLAYERS = "Ada Ben Cleo Dan Eve Fay Gus Hal Ida Jon Kim Leo Mia Noa Pia Quy Rex Sue Tom Una Vic Wes Xia Yan".split()
DOZEN, EIGHT = PLAYERS[:12], PLAYERS[16:]
PARTIES = {"Rex": ("red-team", 3), "Sue": ("red-team", 3), "Tom": ("red-team", 3), "Una": ("blue-team", 2), "Vic": ("blue-team", 2)}  # the others come alone


SERVERS = ["eu-1", "eu-2", "eu-3"]


class Failure(Exception):
    """A line does not hold; the text says why."""


class StandstillWatch(threading.Thread):
    """How long this machine kept a process from running that had nothing else to do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest_ms = 0

    def run(self):
        while True:
            due = time.monotonic() + 0.01
            time.sleep(0.01)
            self.longest_ms = max(self.longest_ms, 1000 * (time.monotonic() - due))


class Demo:
    """Everything that is running, and what was seen so far."""

    def __init__(self):
        self.folder = ""
        self.processes = []
        self.selector = selectors.DefaultSelector()
        self.start = time.monotonic()  # with all packages there
        self.begin = None  # of the first story
        self.watch = StandstillWatch()
        self.number = 0
        self.title = ""
        self.next_progress = 0.0
        self.terminal = sys.stdout.isatty()
        self.backends = []
        self.redis = self.nginx = None
        self.tokens_before = 0  # of the backend that was killed
        self.servers = []
        self.players = {}  # by name: those who play on
        self.visitors = []  # plain clients, which come for a moment
        self.fetched = 0  # tokens that we asked for ourselves


demo = Demo()


def expect(condition, what):
    if not condition:
        raise Failure(what)


def place(name):
    return os.path.join(demo.folder, name)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def put(name, data):
    """Puts a file in its place in one step, as an operator should: no program reads a half."""
    data = data if isinstance(data, bytes) else data.encode()
    with open(place(name) + ".new", "wb") as file:
        file.write(data)
    os.rename(place(name) + ".new", place(name))
    return place(name)


def run(command, **options):
    return subprocess.run(command, stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60, cwd=demo.folder, **options)


def must(command, **options):
    result = run(command, **options)
    expect(result.returncode == 0, "%s ends with %d: %s" % (" ".join(command[:3]), result.returncode, result.stdout.decode("utf-8", "replace").strip()))
    return result.stdout.decode("utf-8", "replace")


# ---- processes: one thread looks after all of them ----


def die_with_us():
    """In the child: should we be killed, it gets SIGTERM."""
    if LIBC:
        LIBC.prctl(1, signal.SIGTERM, 0, 0, 0)


LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


class Process:
    """A child whose lines are kept. `must_run`: it is a failure when it ends by itself."""

    def __init__(self, name, command, must_run=True, **options):
        self.name, self.must_run, self.lines, self.rest, self.open = name, must_run, [], b"", True
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_us, **options)
        demo.processes.append(self)
        os.set_blocking(self.child.stdout.fileno(), False)
        demo.selector.register(self.child.stdout, selectors.EVENT_READ, self.collect)

    def collect(self):
        data = self.child.stdout.read()
        if data:
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.lines += [line.decode("utf-8", "replace") for line in lines]
        elif data is not None:
            demo.selector.unregister(self.child.stdout)
            self.child.stdout.close()
            self.open = False

    def text(self):
        return "\n".join(self.lines)

    def find(self, pattern, start=0):
        return re.search(pattern, "\n".join(self.lines[start:]), re.M)

    def line(self, pattern, start=0):
        """Waits for a line, and returns the match."""

        def look():
            found = self.find(pattern, start)
            expect(found or self.open, "%s ended without a line like \"%s\"; it said last: %s" % (self.name, pattern, self.last()))
            return found

        return wait_for(look, lambda: "%s does not say \"%s\"; it said last: %s" % (self.name, pattern, self.last()))

    def last(self):
        return " | ".join(re.sub(r"^\s*[\d.]+  ", "", line) for line in self.lines[-3:]) or "nothing"

    def running(self):
        return self.child.poll() is None

    def status(self, seconds=STEP_SECONDS):
        """Waits until it has ended and all that it said was read."""
        wait_for(lambda: not self.running() and not self.open, "%s does not end" % self.name, seconds=seconds)
        return self.child.returncode

    def send(self, number):
        if number != signal.SIGHUP:
            self.must_run = False
        self.child.send_signal(number)

    def reload(self, pattern):
        """SIGHUP, and what it says to that."""
        start = len(self.lines)
        self.send(signal.SIGHUP)
        return self.line(pattern, start)


def pump(seconds):
    """Takes in what is there to read, waiting so long at most."""
    for key, _ in demo.selector.select(seconds):
        key.data()


def ending_of(status):
    return "was killed by signal %d (%s)" % (-status, signal.Signals(-status).name) if status < 0 else "ended by itself with status %d" % status


def check_all():
    """What must run, runs; and there is time left."""
    for process in demo.processes:
        if process.must_run and not process.running():
            pump(0.0)
            raise Failure("%s %s; it said last: %s" % (process.name, ending_of(process.child.returncode), process.last()))
    expect(demo.begin is None or time.monotonic() - demo.begin < LIMIT_SECONDS, "the demo has taken %d s" % LIMIT_SECONDS)


def wait_for(condition, what, pause=0.02, seconds=STEP_SECONDS):
    """Returns what the condition says as soon as it says something. `what` explains why it failed: a text, or what makes one."""
    until = time.monotonic() + seconds
    while True:
        late = time.monotonic() >= until  # before the look: one that was held up has seen what was true before that
        pump(0.0)
        check_all()
        value = condition()
        if value:
            return value
        expect(not late, "after %d s: %s" % (seconds, what() if callable(what) else what))
        show_progress()
        again = time.monotonic() + pause
        while time.monotonic() < again:
            pump(max(0.0, again - time.monotonic()))


# ---- telling, as examples/demo.c does ----


def show_progress():
    now = time.monotonic()
    if demo.terminal and demo.title and now >= demo.next_progress:
        demo.next_progress = now + 0.1
        print("\r\033[K%s    %2d  %s" % ("|/-\\"[int(now * 10) & 3], demo.number, demo.title), end="", flush=True)


def tell(heading, text):
    indent = " " * MARGIN
    lines = textwrap.wrap(text, COLUMNS - MARGIN - len(heading), break_long_words=False, break_on_hyphens=False)
    print(indent + heading + ("\n" + indent + " " * len(heading)).join(lines))


def story(title, expected, function):
    """Runs one, and prints its line. False when it does not hold."""
    demo.number += 1
    demo.title = title
    begin = time.monotonic()
    try:
        check_all()
        good, happened = True, function()
    except Failure as failure:
        good, happened = False, str(failure)
    except (OSError, http.client.HTTPException, ssl.SSLError, ValueError, KeyError, AttributeError, IndexError, subprocess.SubprocessError) as error:
        good, happened = False, "%s: %s" % (type(error).__name__, error)
        try:
            check_all()  # who is dead explains more than what that led to
        except Failure as failure:
            happened = str(failure)
    demo.title = ""
    print("%s%s%3d  %s (%.1f s)" % ("\r\033[K" if demo.terminal else "", "ok    " if good else "FAIL  ", demo.number, title, time.monotonic() - begin))
    tell("expected: ", expected)
    tell("happened: ", happened)
    sys.stdout.flush()
    return good


def plural(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


# ---- HTTP ----


class Https(http.client.HTTPSConnection):
    """To our nginx, whose certificate is for localhost; a machine without /etc/hosts has that as well."""

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname="localhost")


def request(connection, method, path, headers=None, body=None):
    """(status, headers, body, version and cipher of TLS)"""
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        tls = (connection.sock.version(), connection.sock.cipher()[0]) if isinstance(connection.sock, ssl.SSLSocket) else None
        return response.status, response.headers, response.read().decode("utf-8", "replace"), tls
    finally:
        connection.close()


def scrape(process):
    """The metrics of a server or of the backend: {name with labels: value}."""
    status, _, text, _ = request(http.client.HTTPConnection("127.0.0.1", process.metrics_port, timeout=5), "GET", "/metrics")
    expect(status == 200, "the metrics of %s have status %d" % (process.name, status))
    return {name: float(value) for name, value in re.findall(r"^(netcode_\S+) (\S+)$", text, re.M)}


def metric(process, name):
    """As last published. 0 where there is none of that name: no such thing has happened. Of a list of processes, the sum."""
    return int(sum(scrape(each).get(name, 0) for each in (process if isinstance(process, list) else [process])))


def wait_metric(process, name, value, minimum=False):
    """Until the metric has the value (servers publish theirs each second)."""
    seen = []

    def look():
        seen.append(metric(process, name))
        return seen[-1] == value or (minimum and seen[-1] >= value)

    wait_for(look, lambda: "%s of %s is %d and not %d" % (name, "the backends" if isinstance(process, list) else process.name, seen[-1], value), pause=0.2)
    return seen[-1]


def fresh(server):
    """Metrics that were published from now on: what they hold is over a second old else, and may be right by accident."""
    clock = scrape(server)["netcode_server_clock_seconds"]

    def look():
        found = scrape(server)
        return found if found["netcode_server_clock_seconds"] > clock else None

    return wait_for(look, "%s publishes no metrics" % server.name, pause=0.1)


def ask(method, path, credential, body=None):
    """Over TLS, as a player: like request."""
    context = ssl.create_default_context(cafile=place("ca.pem"))
    headers = {"Authorization": "Bearer " + credential, "Content-Type": "application/json"}
    return request(Https("localhost", demo.nginx.port, timeout=5, context=context), method, path, headers, body)


def fetch(player, **wish):
    """A token over TLS for a player: (its file, the answer, headers, TLS)."""
    status, headers, text, tls = ask("POST", "/v1/connect-token", read(place(player + ".credential")).strip(), json.dumps(wish))
    expect(status == 200, "%s asked for a token and received: %d %s" % (player, status, text))
    demo.fetched += 1
    answer = json.loads(text)
    return put(player + ".token", base64.b64decode(answer["connect_token"], validate=True)), answer, headers, tls


# ---- making what it needs ----


def flags(packages):
    result = subprocess.run(["pkg-config", "--cflags", "--libs"] + packages, stdout=subprocess.PIPE, check=True)
    return result.stdout.decode().split()


def build():
    """Two at a time; what is newer than all sources stays."""
    os.makedirs(BUILD, exist_ok=True)
    sources = [os.path.join(TOP, "netcode.h")] + glob.glob(os.path.join(TOP, "examples", "**", "*.[ch]"), recursive=True)
    newest = max(os.path.getmtime(path) for path in sources)
    jobs = []
    for name, source, options, packages in PROGRAMS:
        target = os.path.join(BUILD, name)
        if os.path.exists(target) and os.path.getmtime(target) > newest:
            continue
        if len(jobs) > 1:
            finish(*jobs.pop(0))
        command = CC + CFLAGS + options + [os.path.join(TOP, "examples", source)] + flags(packages) + ["-lm", "-pthread", "-o", target + ".new"]
        jobs.append((target, Process("the compiler", command, must_run=False)))
    for job in jobs:
        finish(*job)


def finish(target, job):
    if job.status(BUILD_SECONDS) != 0:
        raise Failure("%s does not compile:\n%s" % (os.path.basename(target), job.text()))
    os.rename(target + ".new", target)


def program(name):
    return os.path.join(BUILD, name)


CERTIFICATES = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:false
subjectAltName = DNS:localhost
authorityKeyIdentifier = keyid
"""


def make_certificates():
    """An authority of our own, its certificate for localhost, and another authority which no program here should trust."""
    put("openssl.conf", CERTIFICATES)
    new = ["-config", "openssl.conf", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name in ("ca", "other-ca"):
        must(["openssl", "req", "-x509"] + new + ["-extensions", "authority", "-days", "2", "-subj", "/CN=demo " + name, "-keyout", name + ".key", "-out", name + ".pem"])
    must(["openssl", "req", "-new"] + new + ["-subj", "/CN=localhost", "-keyout", "tls.key", "-out", "tls.csr"])
    must(["openssl", "x509", "-req", "-in", "tls.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-days", "2", "-extfile", "openssl.conf", "-extensions", "server", "-out", "tls.pem"])


def make_secrets():
    """Keys, credentials and the players file."""
    for name in ("old.key", "new.key", "foreign.key"):
        must([program("token"), "keygen", "--output", name])
    for name in ["%s-%s.key" % (server, letter) for server in SERVERS for letter in "ab"] + ["backend.key"]:
        put(name, read(place("old.key")))
    lines = []
    for name in PLAYERS + ["unknown", "servers"]:
        put(name + ".credential", must([program("backend"), "--credential"]))
        if name in PLAYERS:
            with open(place(name + ".credential"), "rb") as file:
                lines.append(must([program("backend"), "--hash", str(identity(name)), name], stdin=file))
    put("players", "".join(lines))


def identity(name):
    return 1001 + PLAYERS.index(name)


def start_redis():
    """On a Unix socket in our folder; it keeps nothing on the disk."""
    demo.redis = Process("Redis", ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--unixsocketperm", "700", "--save", "", "--maxmemory-policy", "noeviction"], cwd=demo.folder)
    demo.redis.line("eady to accept connections")


def start_backend(name):
    command = [program("backend"), "--listen", "127.0.0.1:0", "--key-file", "backend.key", "--players", "players", "--server-credential-file", "servers.credential"]
    command += ["--expire", str(EXPIRE_SECONDS), "--timeout", str(TIMEOUT_SECONDS), "--redis", "unix:redis.sock", "--modes", "modes"]
    backend = Process(name, command, cwd=demo.folder)
    backend.metrics_port = int(backend.line(r"\Alistening on 127\.0\.0\.1:(\d+)$").group(1))
    backend.line("Redis: unix:redis.sock can be reached")
    demo.backends.append(backend)


def start_nginx():
    """With the template of examples/backend. nginx takes our socket over, as it does when it is upgraded, so no port can be lost to others."""
    os.mkdir(place("nginx"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        listener.setblocking(False)  # nginx does not do that to sockets that it takes over, and its workers would wait in accept
        port = listener.getsockname()[1]
        text = read(os.path.join(TOP, "examples", "backend", "nginx.conf"))
        for name, value in (("LISTEN", "127.0.0.1:%d" % port), ("NAME", "localhost"), ("BACKEND", "127.0.0.1:%d max_fails=3 fail_timeout=1s; server 127.0.0.1:%d" % tuple(backend.metrics_port for backend in demo.backends)), ("GATEWAY", "127.0.0.1:9"), ("PAGES", place("pages")), ("SERVERS", "127.0.0.1"), ("CERTIFICATE", place("tls.pem")), ("CERTIFICATE_KEY", place("tls.key"))):
            text = text.replace("@%s@" % name, value)
        put("nginx/nginx.conf", text)
        environment = dict(os.environ, NGINX="%d;" % listener.fileno())
        demo.nginx = Process("nginx", ["nginx", "-p", place("nginx"), "-c", "nginx.conf", "-g", "daemon off;"], env=environment, pass_fds=[listener.fileno()])
    demo.nginx.port = port
    demo.nginx.url = "https://localhost:%d" % port
    wait_for(lambda: os.path.exists(place("nginx/nginx.pid")), lambda: "nginx does not start: " + demo.nginx.last())


def start_server(name):
    command = [program("server-full"), "--address", "127.0.0.1:0", "--slots", "32", "--echo", "--replace", "--roaming", "--key-file", name + "-a.key", "--key-file", name + "-b.key"]
    command += ["--metrics", "0", "--name", name, "--report", demo.nginx.url + "/v1/servers", "--report-ca", "ca.pem", "--report-credential-file", "servers.credential"]
    command += ["--admission", "unix:redis.sock", "--admission-lease", str(LEASE_SECONDS)]
    server = Process("server " + name, command, cwd=demo.folder)
    server.nickname, server.connects = name, 0
    server.address = server.line(r"listening on (127\.0\.0\.1:\d+),").group(1)
    server.metrics_port = int(server.line(r"metrics on http://127\.0\.0\.1:(\d+)/metrics").group(1))
    demo.servers.append(server)


# ---- players ----


class Player(Process):
    """client_http: logs in, plays, comes back."""

    def __init__(self, name, credential=None, authority="ca.pem", must_run=True):
        command = [program("client_http"), "--url", demo.nginx.url + "/v1/connect-token", "--ca", authority, "--credential-file", (credential or name) + ".credential"]
        super().__init__("player " + name, command + ["--seconds", "600", "--silence-ms", str(SILENCE_MS)], must_run, cwd=demo.folder)
        self.nickname = name

    def connects(self):
        """The addresses where it was connected, in order."""
        return re.findall(r"  connected to (\S+) as slot ", self.text())

    def where(self):
        """The address of the server that it plays on; None while it does not."""
        last = [line for line in self.lines if re.search(r"  (connected to|lost|could not) ", line)][-1:]
        return self.connects()[-1] if last and "  connected to " in last[0] else None

    def summary(self):
        found = self.find(r"  summary (.*)$")
        return dict(pair.split("=") for pair in found.group(1).split()) if found else {}


def join(name):
    player = demo.players[name] = Player(name)
    return player


def visit(token, count=10, rate=100, strict=True, **options):
    """A plain client with a token in a file, for a moment. Where it is strict, a payload that is not back within a second is a failure."""
    client = Process("a client with " + os.path.basename(token), [program("client")] + ["--strict"] * strict + ["--count", str(count), "--rate", str(rate), token], False, **options)
    demo.visitors.append(client)
    return client


def welcome(token):
    """It must get in, and have all its payloads back. Returns the server's address."""
    client = visit(token)
    status = client.status()
    expect(status == 0, "%s ends with status %d: %s" % (client.name, status, client.last()))
    return client.line(r"connected to (\S+) ").group(1)


def mint(name, key, *addresses, client_id, expire=30, timeout=SHORT_TIMEOUT_SECONDS):
    must([program("token"), "mint", "--key-file", key, "--client-id", str(client_id), "--expire", str(expire), "--timeout", str(timeout), "--format", "raw", "--output", name, *addresses])
    return place(name)


def inspect(token, key):
    result = run([program("token"), "inspect", "--key-file", key, token])
    return result.returncode, result.stdout.decode("utf-8", "replace")


def server_at(address):
    for server in demo.servers:
        if server.address == address:
            return server
    raise Failure("%s is no server of ours" % address)


def drops(server, reason):
    return metric(server, 'netcode_server_packets_dropped_total{reason="%s"}' % reason)


# ---- stories: the six steps of the architecture ----


def tell_start():
    make_certificates()
    make_secrets()
    put("modes", "arena 8 2 regions=eu\n")
    start_redis()
    for name in ("the first backend", "the second backend"):
        start_backend(name)
    start_nginx()
    for name in SERVERS:
        start_server(name)
    for server in demo.servers:
        for backend in demo.backends:
            backend.line("server %s is heard: 32 slots" % server.nickname)
    # With a new Redis no client is admitted for the time of a lease: it may have forgotten who is there.
    welcome(mint("first.token", "old.key", demo.servers[0].address, client_id=1, timeout=TIMEOUT_SECONDS + LEASE_SECONDS))
    status, _, text, _ = request(http.client.HTTPConnection("127.0.0.1", demo.nginx.port, timeout=5), "POST", "/v1/connect-token")
    expect(status == 400, "without TLS nginx answers %d %s" % (status, text))
    reports = metric(demo.backends, "netcode_backend_reports_total")
    return "nginx on %s, which refuses to speak without TLS; behind it backends on 127.0.0.1:%d and :%d, and Redis; servers %s; %s over TLS" % (
        demo.nginx.url, demo.backends[0].metrics_port, demo.backends[1].metrics_port, ", ".join("%s on %s" % (server.nickname, server.address) for server in demo.servers), plural(reports, "report"))


def tell_authentication():
    before = metric(demo.backends, 'netcode_backend_refusals_total{reason="unknown_credential"}')
    unknown = Player("unknown", must_run=False)
    fooled = Player("Ben", authority="other-ca.pem", must_run=False)
    ada = join("Ada")
    expect(unknown.status() == WRONG_CREDENTIAL, "with an unknown credential, the status is %d: %s" % (unknown.status(), unknown.last()))
    expect(fooled.status() == WRONG_CERTIFICATE, "with another authority, the status is %d: %s" % (fooled.status(), fooled.last()))
    refused = metric(demo.backends, 'netcode_backend_refusals_total{reason="unknown_credential"}') - before
    expect(refused == 1, "the backends count %d unknown credentials" % refused)
    wait_metric(demo.backends, "netcode_backend_tokens_issued_total", 1)
    expect(not ada.find("login (refused|failed)"), "Ada: " + ada.last())
    return "Ada is let in; an unknown credential: \"%s\"; a player who trusts another authority only did not even send his credential: \"%s\"" % (
        unknown.find(r"login refused: .*").group(0), fooled.find(r"login failed: .*").group(0))


def tell_request():
    def look():
        lines = read(place("nginx/access.log")).split("\n")
        return [line for line in lines if '"POST /v1/connect-token" 200 ' in line]

    line = wait_for(look, "nginx logs no request for a token")
    expect(len(line) == 1, "there are %d requests that were granted" % len(line))
    issued = metric(demo.backends, "netcode_backend_tokens_issued_total")
    expect(issued == 1, "the backends have issued %d tokens" % issued)
    return "nginx's log: %s; the backends count %s" % (line[0], plural(issued, "token"))


def tell_token():
    token, answer, headers, tls = fetch("Ben", server="eu-1")
    size = os.path.getsize(token)
    status, text = inspect(token, "old.key")
    other, _ = inspect(token, "foreign.key")
    named = re.findall(r"^server +(\S+)$", text.split("private part")[0], re.M)
    expect(answer["client_id"] == str(identity("Ben")) and headers["Cache-Control"] == "no-store", "the answer: %s, %s" % (answer["client_id"], headers))
    expect(size == 2048 and status == 0 and other == NOT_OPENED, "a token of %d bytes; inspect ends with %d, with a foreign key with %d" % (size, status, other))
    expect(named == [demo.servers[0].address], "the token names %s" % named)
    # By its own time: the answer's was read after that, perhaps in the next second.
    created = int(re.search(r"^created +(\d+) ", text, re.M).group(1))
    left = int(answer["expires_at"]) - created
    expect(left == EXPIRE_SECONDS, "the token lives for %d s" % left)
    expect(created - 1 <= int(answer["server_time"]) <= time.time(), "the token is of %d, and the answer of %s" % (created, answer["server_time"]))
    return "over %s (%s): %d bytes for client %s at %s, for %d s; the backend's key opens the private part, another key does not" % (tls[0], tls[1], size, answer["client_id"], named[0], left)


def tell_connect():
    line = demo.players["Ada"].line(r"connected to (\S+) as slot (\d+) of 32, player %d$" % identity("Ada"))
    server = server_at(line.group(1))
    from_where = server.line(r"connected slot=%s client=%d session=\d+ from=(\S+)" % (line.group(2), identity("Ada"))).group(1)
    wait_metric(server, "netcode_server_clients", 1)
    return "Ada: \"%s\"; %s: she has slot %s and comes from %s" % (line.group(0), server.nickname, line.group(2), from_where)


def tell_refusals():
    server, other = demo.servers[:2]
    names = ("token_not_authentic", "token_consumed", "token_for_another_server")
    reading = fresh(server)
    before = {name: int(reading.get('netcode_server_packets_dropped_total{reason="%s"}' % name, 0)) for name in names}
    others_before = others_of(reading, names)
    address = welcome(place("Ben.token"))
    expect(address == server.address, "Ben's token led to " + address)
    foreign = mint("foreign.token", "foreign.key", server.address, client_id=7)
    elsewhere = mint("elsewhere.token", "old.key", "%s=%s" % (server.address, other.address), client_id=8)
    clients = [visit(token) for token in (foreign, place("Ben.token"), elsewhere)]
    answers = send_junk(server)
    statuses = [client.status() for client in clients]
    expect(statuses == [NO_ANSWER] * 3, "the statuses are %s" % statuses)
    counts = [wait_metric(server, 'netcode_server_packets_dropped_total{reason="%s"}' % name, before[name] + 1, minimum=True) - before[name] for name in names]
    # Ben's client said goodbye ten times; all but the first count as dropped as well.
    others = others_before + GOODBYES - 1 + JUNK
    wait_for(lambda: others_of(scrape(server), names) == others, lambda: "of other datagrams %d should have been dropped; the server counts %s" % (others, {name: value for name, value in scrape(server).items() if "dropped" in name and value}), pause=0.2)
    expect(not answers(), "the server has answered to junk")
    return "Ben's token got him in; no answer to that token once more (%d requests dropped as TOKEN_CONSUMED), to one sealed with another key (%d, TOKEN_NOT_AUTHENTIC), to one for eu-2 (%d, TOKEN_FOR_ANOTHER_SERVER), to %d datagrams of junk (each counted)" % (counts[1], counts[0], counts[2], JUNK)


def others_of(counts, names):
    """What a server dropped for other reasons. Not counted: responses that come while Redis is asked, requests with Ben's token when it is over,
    and what a client repeats that its server kept waiting: how many there are is a matter of time."""
    aside = "|".join(names + ("admission_pending", "token_expired", "request_too_soon", "address_connected"))
    return int(sum(value for name, value in counts.items() if name.startswith("netcode_server_packets_dropped_total") and not re.search('"(%s)"' % aside, name)))


def send_junk(server):
    """Some datagrams. Returns a function that returns whether there was an answer."""
    host, port = server.address.split(":")
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.setblocking(False)
    line.connect((host, int(port)))
    for number in range(JUNK):
        line.send(bytes([number % 7]) + os.urandom(50 * number + 30))

    def answered():
        try:
            return bool(line.recv(2048))
        except BlockingIOError:
            return False
        finally:
            line.close()

    return answered


class Relay:
    """Stands between one client and a server: keeps every datagram, and sends a changed copy of some ahead of them."""

    def __init__(self, server):
        host, port = server.address.split(":")
        self.front, self.back = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.front.bind(("127.0.0.1", 0))
        self.back.connect((host, int(port)))
        self.client = None
        self.datagrams = []  # (to the server?, data)
        self.payloads, self.changed = {True: 0, False: 0}, {True: 0, False: 0}
        self.address = "127.0.0.1:%d" % self.front.getsockname()[1]
        for line, function in ((self.front, self.from_client), (self.back, self.from_server)):
            line.setblocking(False)
            demo.selector.register(line, selectors.EVENT_READ, function)

    def from_client(self):
        data, self.client = self.front.recvfrom(2048)
        self.forward(True, data, self.back.send)

    def from_server(self):
        self.forward(False, self.back.recv(2048), lambda data: self.front.sendto(data, self.client))

    def forward(self, to_server, data, send):
        self.datagrams.append((to_server, data))
        # Of each tenth payload an attacker on the path changes one bit, and is quicker than the original.
        if data[0] & 15 == PAYLOAD_TYPE:
            self.payloads[to_server] += 1
            if self.payloads[to_server] % 10 == 0:
                self.changed[to_server] += 1
                send(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
        send(data)

    def close(self):
        for line in (self.front, self.back):
            demo.selector.unregister(line)
            line.close()

    def write_capture(self, name):
        """A pcap file of raw IPv4, as tcpdump would have it."""
        pieces = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
        for number, (to_server, data) in enumerate(self.datagrams):
            ports = (40001, 40000) if to_server else (40000, 40001)
            header = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, 0x7F000001, 0x7F000001)
            packet = header + struct.pack(">HHHH", *ports, 8 + len(data), 0) + data
            pieces.append(struct.pack("<IIII", 1, number, len(packet), len(packet)) + packet)
        return put(name, b"".join(pieces))


def plaintext(number):
    """What client sends as its payload of that number."""
    return bytes((number >> 8 * i if i < NUMBER_BYTES else number * 31 + i * 7) & 255 for i in range(PAYLOAD_BYTES))


def tell_packets():
    server = demo.servers[0]
    before = drops(server, "authentication_failed")
    relay = Relay(server)
    must([program("token"), "mint", "--key-file", "old.key", "--client-id", "9", "--output", "relay.token", "%s=%s" % (relay.address, server.address)])
    client = visit(place("relay.token"), PAYLOADS, 60)
    status = client.status()
    relay.close()
    expect(status == 0, "the client's status is %d: %s" % (status, client.last()))
    changed = relay.changed[True]
    expect(changed and relay.changed[False], "nothing was changed on the way: %s" % relay.changed)
    refused = int(fresh(server)['netcode_server_packets_dropped_total{reason="authentication_failed"}']) - before
    expect(refused == changed, "%d packets were changed on the way to the server, and it dropped %d as AUTHENTICATION_FAILED" % (changed, refused))
    secrets = [plaintext(number) for number in range(PAYLOADS)]
    seen = sum(1 for _, data in relay.datagrams for secret in secrets if secret[NUMBER_BYTES:NUMBER_BYTES + 24] in data)
    text = must([program("token"), "decrypt", "--key-file", "old.key", "--payload", "hex", relay.write_capture("session.pcap")])
    opened = {(way, payload) for way, payload in re.findall(r" (to_\w+) PAYLOAD .* ok .*payload=(\w+)$", text, re.M)}
    wanted = {(way, binascii.hexlify(secret).decode()) for way in ("to_server", "to_client") for secret in secrets}
    expect(not seen, "%d datagrams hold a payload in the clear" % seen)
    expect(opened >= wanted, "the capture holds %d of %d payloads" % (len(opened & wanted), len(wanted)))
    return "a relay kept %d datagrams of a session: none holds a payload in the clear, and the private key opens all %d payloads in them; it sent %d to the server and %d to the client with one bit changed: the server dropped %d as AUTHENTICATION_FAILED, and all %d echoes came back right, once" % (
        len(relay.datagrams), len(wanted), changed, relay.changed[False], refused, PAYLOADS)


# ---- stories: a dozen players, the rotation, the kill ----


def tell_dozen():
    for name in DOZEN:
        if name not in demo.players:
            join(name)
    wait_for(lambda: all(player.where() for player in demo.players.values()), lambda: "not connected: %s" % ", ".join(name for name, player in demo.players.items() if not player.where()))
    counts = [len(players_on(server)) for server in demo.servers]
    expect(all(counts) and sum(counts) == 12, "the players are %s, %s and %s" % tuple(counts))
    for server, count in zip(demo.servers, counts):
        wait_metric(server, "netcode_server_clients", count)
    tokens = 12 + demo.fetched
    wait_metric(demo.backends, "netcode_backend_tokens_issued_total", tokens)
    free = 3 * 32 - 12
    for backend in demo.backends:
        wait_metric(backend, "netcode_backend_free_slots", free)
    leases = [wait_metric(server, "netcode_server_admission_leases", count) for server, count in zip(demo.servers, counts)]
    return "%d players on eu-1, %d on eu-2 and %d on eu-3, by their own words and by the servers' metrics, which hold as many leases (%d); the backends': %d tokens, %d free slots" % (*counts, sum(leases), tokens, free)


def players_on(server):
    return [player for player in demo.players.values() if player.where() == server.address]


def kill_the_backend():
    os.kill(demo.backends[0].child.pid, signal.SIGKILL)
    tell("", "(DEMO_KILL_BACKEND is set: the first backend is killed now)")


def tell_servers_accept_both():
    for server in demo.servers:
        put(server.nickname + "-a.key", read(place("new.key")))
        server.reload(r"keys: read again, 2 in use")
        wait_metric(server, "netcode_server_private_keys", 2)
    return "each server: \"keys: read again, 2 in use\", their metrics say 2 keys"


def tell_backend_mints_new():
    old, answer, _, _ = fetch("Mia")
    demo.old_until = int(answer["expires_at"])
    put("backend.key", read(place("new.key")))
    for backend in demo.backends:
        backend.reload("read again")
    reloads = metric(demo.backends, 'netcode_backend_reloads_total{result="good"}')
    new, _, _, _ = fetch("Noa")
    opened = [inspect(token, key)[0] for token in (old, new) for key in ("old.key", "new.key")]
    expect(opened == [0, NOT_OPENED, NOT_OPENED, 0], "with the old and the new key, inspect ends for the old token and the new one with %s" % opened)
    visits = [server_at(welcome(token)).nickname for token in (old, new)]
    join("Noa").line("connected to ")
    return "the backends have read their files again (%d); a token from before, sealed with the old key, still gets Mia in (%s); one from now is sealed with the new key, and gets Noa in (%s); she stays" % (reloads, visits[0], visits[1])


def tell_servers_drop_old():
    wait_for(lambda: time.time() > demo.old_until, "the last old token does not expire", pause=0.1)
    for server in demo.servers:
        put(server.nickname + "-b.key", read(place("new.key")))
        server.reload(r"keys: read again, 1 in use")
        wait_metric(server, "netcode_server_private_keys", 1)
    before = [drops(server, "token_not_authentic") for server in demo.servers]
    clients = [visit(mint("old-%s.token" % server.nickname, "old.key", server.address, client_id=10)) for server in demo.servers]
    statuses = [client.status() for client in clients]
    expect(statuses == [NO_ANSWER] * 3, "with tokens of the old key, the statuses are %s: %s" % (statuses, clients[0].last()))
    counts = [wait_metric(server, 'netcode_server_packets_dropped_total{reason="token_not_authentic"}', count + 1, minimum=True) - count for server, count in zip(demo.servers, before)]
    pia = join("Pia").line("connected to (\\S+) ").group(1)
    return "when the last old token had expired, each server: \"keys: read again, 1 in use\"; fresh tokens of the old key get no answer (%d, %d and %d requests dropped as TOKEN_NOT_AUTHENTIC); Pia got in with a new one (%s) and stays" % (*counts, server_at(pia).nickname)


def tell_nobody_lost():
    for name in DOZEN:
        player = demo.players[name]
        expect(len(player.connects()) == 1 and player.where(), "%s: %s" % (player.name, player.last()))
    gone = [line for server in demo.servers for line in server.lines for name in DOZEN if "disconnected " in line and "client=%d " % identity(name) in line]
    # The one whose token was used, before he came to stay.
    gone = [line for line in gone if "client=%d " % identity("Ben") not in line or "the client left" not in line]
    expect(not gone, "a server says: %s" % gone)
    reasons = ("timed_out", "server", "replaced")
    counts = [fresh(server) for server in demo.servers]
    ended = sum(count['netcode_server_disconnects_total{reason="%s"}' % reason] for count in counts for reason in reasons)
    expect(ended == 0, "the servers' metrics count %d disconnects" % ended)
    heard = {server: metric(server, 'netcode_server_packets_total{direction="received",type="payload"}') for server in demo.servers}
    for server, before in heard.items():
        wait_metric(server, 'netcode_server_packets_total{direction="received",type="payload"}', before + 30, minimum=True)
    return "each of the dozen has still its first connection, and all servers go on hearing payloads; metrics: no client timed out, was replaced or sent away"


# ---- stories: several backends, one queue, one session for each player ----


def log_in(name):
    """A session for the player: (its credential, how often it took)."""
    for turn in (1, 2):
        status, _, text, _ = ask("POST", "/v1/login", read(place(name + ".credential")).strip())
        if status == 200:
            return json.loads(text)["session"], turn
        expect(status in (502, 503) and turn == 1, "%s wants to log in and receives: %d %s" % (name, status, text))
    return None, 0


def tell_logins():
    demo.sessions, turns = {}, 0
    for name in EIGHT[:4]:
        demo.sessions[name], turn = log_in(name)
        turns += turn
    shares = [metric(backend, 'netcode_backend_logins_total{by="credential"}') for backend in demo.backends]
    expect(sum(shares) == 4, "the backends count %s logins" % shares)
    first, second = demo.backends if shares[0] else reversed(demo.backends)
    shares.sort(key=lambda share: share == 0)
    demo.tokens_before = metric(first, "netcode_backend_tokens_issued_total")
    first.send(signal.SIGKILL)
    expect(first.status() == -signal.SIGKILL, "%s %s" % (first.name, ending_of(first.child.returncode)))
    demo.backends.remove(first)
    for name in EIGHT[4:]:
        demo.sessions[name], turn = log_in(name)
        turns += turn
    tokens = []
    for name in EIGHT:
        status, _, text, _ = ask("POST", "/v1/connect-token", demo.sessions[name], "{}")
        expect(status == 200 and json.loads(text)["client_id"] == str(identity(name)), "%s has a session, asks for a token and receives: %d %s" % (name, status, text))
        tokens.append(text)
        demo.fetched += 1
    logged = metric(second, 'netcode_backend_logins_total{by="credential"}')
    expect(logged == shares[1] + 4, "%s counts %d logins" % (second.name, logged))
    return "four log in, %d at one backend and %d at the other; %s is killed by signal 9; four more log in at the other, all eight in %d requests; then it gives each of the eight a token for a session, those of the dead one as well" % (*shares, first.name, turns)


def tell_match():
    tickets, answers = {}, {}
    for name in EIGHT:
        wish = {"mode": "arena", "regions": ["eu"]}
        if name in PARTIES:
            wish["party"] = dict(zip(("id", "size"), PARTIES[name]))

        def enter(name=name, wish=wish):
            status, _, text, _ = ask("POST", "/v1/match", demo.sessions[name], json.dumps(wish))
            expect(status in (200, 202, 502, 503), "%s asks for a match and receives: %d %s" % (name, status, text))
            return json.loads(text) if status in (200, 202) else None

        # Who finds matches is agreed on in Redis; when that backend was killed, the other one takes over within seconds.
        tickets[name] = wait_for(enter, "%s is asked again and again to come later" % name, pause=0.3)["ticket"]

    def look():
        for name in EIGHT:
            status, _, text, _ = ask("GET", "/v1/match/" + tickets[name], demo.sessions[name])
            if status in (502, 503):  # another worker of nginx may still leave that backend alone, for a second, for what it said before
                return False
            expect(status in (200, 202), "%s asks for the match and receives: %d %s" % (name, status, text))
            answers[name] = json.loads(text)
            demo.fetched += answers[name]["status"] == "matched"
            if answers[name]["status"] == "queued":
                return False
        return True

    wait_for(look, lambda: "no match: %s" % answers, pause=0.5)
    kinds = {(answer["status"], answer.get("match"), answer.get("server")) for answer in answers.values()}
    expect(len(kinds) == 1 and answers["Yan"]["status"] == "matched", "the eight received: %s" % kinds)
    teams = {name: answer["team"] for name, answer in answers.items()}
    expect(len({teams[name] for name in ("Rex", "Sue", "Tom")}) == 1 and teams["Una"] == teams["Vic"] and sorted(teams.values()) == [0] * 4 + [1] * 4, "the teams are %s" % teams)
    server = next(each for each in demo.servers if each.nickname == answers["Yan"]["server"])
    server.line("match %s: arena, 8 players are on their way" % answers["Yan"]["match"])
    begin = len(server.lines)
    for name in EIGHT:
        put(name + ".token", base64.b64decode(answers[name]["connect_token"], validate=True))
    clients = [visit(place(name + ".token"), 200, 60) for name in EIGHT]
    for name in EIGHT:
        server.line(r"connected slot=\d+ client=%d " % identity(name), begin)
    statuses = [client.status() for client in clients]
    expect(statuses == [0] * 8, "the eight end with %s: %s" % (statuses, clients[0].last()))
    return "a party of three, one of two and three alone: match %s, four against four, parties together; one server for all, %s, which knew of them; each of the eight got in with a token of their own, and had all payloads back" % (answers["Yan"]["match"], server.nickname)


def tell_one_session():
    first, second = demo.servers[0], demo.servers[2]
    losses = 'netcode_server_admission_losses_total{reason="wanted"}'
    used = 'netcode_server_admissions_total{result="used"}'
    before, used_before = metric(first, losses), metric(second, used)
    client = visit(mint("one.token", "new.key", first.address, client_id=77, timeout=TIMEOUT_SECONDS), 2000, 60)
    client.line("connected to " + re.escape(first.address))
    newer = visit(mint("two.token", "new.key", second.address, client_id=77, expire=60, timeout=TIMEOUT_SECONDS), 200, 60, strict=False)
    statuses = [newer.status(), client.status()]
    expect(statuses == [0, ENDED], "the newer session ends with %d, the older one with %d: %s" % (*statuses, client.last()))
    wait_metric(first, losses, before + 1)
    token = mint("twice.token", "new.key", first.address, second.address, client_id=78, timeout=TIMEOUT_SECONDS)
    expect(welcome(token) == first.address, "78 is elsewhere")
    again = visit(token)
    expect(again.status() == DENIED, "the used token: status %d: %s" % (again.status(), again.last()))
    wait_metric(second, used, used_before + 1, minimum=True)
    return "a player is in on eu-1, and comes in on eu-3 with a newer token: eu-1 ends the older session (\"%s\"); a token for both that was used on eu-1 is denied by eu-3 (\"%s\")" % (
        first.line("admission: .*77.* is disconnected.*").group(0), again.find("report: (.*)").group(1))


def tell_kill():
    victim = demo.servers[1]
    survivors = [server for server in demo.servers if server is not victim]
    affected, victims = players_on(victim), []
    expect(affected, "no player is on eu-2")
    counts = fresh(victim)
    victim.connects = int(counts["netcode_server_connects_total"])
    expect(counts["netcode_server_clients"] == len(affected), "%d players say that they are on eu-2, and its metrics %d" % (len(affected), counts["netcode_server_clients"]))
    starts = {player: len(player.lines) for player in affected}
    victim.send(signal.SIGKILL)
    status = victim.status()
    expect(status == -signal.SIGKILL, "eu-2 %s" % ending_of(status))
    for player in affected:
        player.line(r"lost %s" % re.escape(victim.address), starts[player])
        found = server_at(player.line(r"connected to (\S+) ", starts[player]).group(1))
        expect(found in survivors, "%s is back on the killed server" % player.name)
        player.away = int(player.line(r"payload gap (\d+) ms", starts[player]).group(1))
        found.line(r"connected slot=\d+ client=%d " % identity(player.nickname))
        victims.append("%s %d" % (player.nickname, player.away))
    longest = max(player.away for player in affected)
    limit = 1000 * (TIMEOUT_SECONDS + MAX_BACK_OFF_SECONDS)
    expect(longest <= limit, "it took %d ms until the last one played again" % longest)
    for server in survivors:
        wait_metric(server, "netcode_server_clients", len(players_on(server)))
    return "eu-2 was killed by signal 9 with %s; each lost it, got a newer token, waited until the dead server's lease was over (%d s), and plays on eu-1 or eu-3; without a payload for (ms): %s; the limit is %d: their token's timeout and the longest back-off" % (
        plural(len(affected), "player"), LEASE_SECONDS, ", ".join(victims), limit)


def tell_backend_forgets():
    wait_metric(demo.backends, 'netcode_backend_servers{state="silent"}', 1)
    token, _, _, _ = fetch("Quy")
    named = re.findall(r"^server +(\S+)$", inspect(token, "new.key")[1].split("private part")[0], re.M)
    living = [demo.servers[0].address, demo.servers[2].address]
    expect(sorted(named) == sorted(living), "the token names %s" % named)
    expect(welcome(token) in living, "Quy is elsewhere")
    return "the backend's metrics: 1 server silent; Quy's token names eu-1 and eu-3, and gets him in"


# ---- stories: what everybody counted ----


def connects_to(server):
    """What clients say, all of them; who came through the relay was on eu-1 as well."""
    patterns = [re.escape(server.address)]
    if server is demo.servers[0]:
        patterns.append("".join("(?!%s )" % re.escape(other.address) for other in demo.servers) + r"\S+")
    clients = list(demo.players.values()) + demo.visitors
    return sum(len(re.findall(r"  connected to (?:%s) as slot " % "|".join(patterns), client.text())) for client in clients)


def living():
    return [server for server in demo.servers if server.running()]


def tell_counters():
    here = {server: len(players_on(server)) for server in living()}
    expect(sum(here.values()) == len(demo.players), "%d of %d players say that they are connected" % (sum(here.values()), len(demo.players)))
    said, counted = [], []
    for server in demo.servers:
        said.append(connects_to(server))
        if server in here:
            counts = fresh(server)
            expect(counts["netcode_server_clients"] == counts["netcode_server_admission_leases"] == here[server], "the players say that %d are on %s; its metrics %s" % (here[server], server.nickname, counts))
            server.connects = int(counts["netcode_server_connects_total"])
        counted.append(server.connects)
    expect(said == counted, "clients say %s connects, the servers' metrics %s" % (said, counted))
    return "clients now, by the players' words, the metrics and the leases in Redis: %s; connects to eu-1, eu-2 (until it was killed) and eu-3: %s by their words, %s by the metrics" % (
        ", ".join("%d on %s" % (count, server.nickname) for server, count in here.items()), "/".join(map(str, said)), "/".join(map(str, counted)))


def tell_leave():
    for player in demo.players.values():
        player.send(signal.SIGTERM)
    for player in demo.players.values():
        status = player.status()
        expect(status == 0 and player.summary(), "%s ends with status %d: %s" % (player.name, status, player.last()))
    summaries = [player.summary() for player in demo.players.values()]
    wrong, heard, tokens = (sum(int(summary[name]) for summary in summaries) for name in ("wrong", "heard", "tokens"))
    expect(wrong == 0, "%d payloads came back wrong" % wrong)
    names = ["netcode_server_clients", "netcode_server_admission_leases", "netcode_server_connects_total"] + ['netcode_server_disconnects_total{reason="%s"}' % reason for reason in ("client", "server")]
    readings = [fresh(server) for server in living()]
    clients, leases, connects, left, ended = (int(sum(reading[name] for reading in readings)) for name in names)
    expect(clients == leases == 0 and ended == 1 and left + ended == connects, "the servers count %d connects, %d who left by themselves and %d whom they ended; %d are there, with %d leases" % (connects, left, ended, clients, leases))
    issued = demo.tokens_before + metric(demo.backends, "netcode_backend_tokens_issued_total")
    expect(issued == tokens + demo.fetched, "the backends issued %d tokens; the players say %d, and %d were fetched for this demo" % (issued, tokens, demo.fetched))
    return "%d payloads came back, %d wrong; the living servers: %d connects, %d left by themselves, and one older session was ended; the backends issued %d tokens: the players say %d, and %d were fetched for this demo" % (heard, wrong, connects, left, issued, tokens, demo.fetched)


def tell_gaps():
    survivors, others, worst = [], [], 0
    for name, player in demo.players.items():
        gap = int(player.summary()["longest_gap_ms"])
        away = getattr(player, "away", None)
        if away is not None and gap <= away:
            others.append("%s %d" % (name, gap))
            continue
        # Who was away, and had a longer gap at another time, is measured like the rest.
        survivors.append("%s %d" % (name, gap))
        worst = max(worst, gap)
    expect(len(survivors) + len(others) == len(demo.players) and len(survivors) >= len(DOZEN) // 3, "only %s were left" % survivors)
    stood = demo.watch.longest_ms
    expect(worst <= MAX_GAP_MS + stood, "the largest is %d ms, and the machine stood still for %d ms at most: %s" % (worst, stood, ", ".join(survivors)))
    return "ms: %s; the largest is %d; the machine stood still for %d ms at most. Nothing longer than their time away: %s" % (", ".join(survivors), worst, stood, ", ".join(others) or "no player")


def tell_end():
    statuses = []
    for process in living() + demo.backends + [demo.nginx, demo.redis]:
        process.send(signal.SIGTERM)
        statuses.append(process.status())
    expect(not any(statuses), "the statuses are %s" % statuses)
    alive = [process.name for process in demo.processes if process.running()]
    expect(not alive, "still running: %s" % alive)
    text = "\n".join(process.text() for process in demo.processes) + read(place("nginx/access.log"))
    secrets = [read(path).strip() for pattern in ("*.key", "*.credential") for path in sorted(glob.glob(place(pattern)))]
    secrets += demo.sessions.values()
    secrets += [base64.b64encode(binascii.unhexlify(key)).decode() for key in secrets if re.fullmatch("[0-9a-f]{64}", key)]
    expect(not [secret for secret in secrets if secret in text], "a secret is in a log")
    return "eu-1, eu-3, backend, nginx and Redis ended with status 0; of the %d processes none is left; no output of theirs holds one of %d secrets" % (len(demo.processes), len(secrets))


STORIES = [
    ("two web backends that share a Redis, and three dedicated servers", "nginx speaks TLS only; both backends hear all servers' reports", tell_start),
    ("a client authenticates with the web backend", "by its credential, over TLS; an unknown credential is refused, and no client talks to a backend whose certificate is not trusted", tell_authentication),
    ("the authenticated client requests to play a game via REST call to the web backend", "one request, granted", tell_request),
    ("the web backend generates a connect token and returns it to that client over HTTPS", "2048 bytes of which only servers can open the private part, for this player, for %d s" % EXPIRE_SECONDS, tell_token),
    ("the client uses the connect token to establish a connection with a dedicated server over UDP", "client and server say the same", tell_connect),
    ("the dedicated server ensures that only clients with a valid connect token can connect to it", "a used, a foreign and a misdirected token and plain junk get no answer, and each refusal is counted", tell_refusals),
    ("client and server exchange encrypted and signed UDP packets", "who sits on the path can neither read a payload nor change one", tell_packets),
    ("a dozen players", "the backends spread them; players, servers, backends and leases count the same", tell_dozen),
    ("key rotation, 1: the servers accept {new, old}", "they read their key files again while all play", tell_servers_accept_both),
    ("key rotation, 2: the backend mints with the new key", "tokens from before and from now both get players in", tell_backend_mints_new),
    ("key rotation, 3: the servers drop the old key", "a token of the old key is refused from now on, a new one is not", tell_servers_drop_old),
    ("no player was disconnected by that", "the dozen play on", tell_nobody_lost),
    ("players log in, and a backend is killed (kill -9) in the middle of it", "each has a session after two requests at most, and the other backend knows the sessions of the dead one", tell_logins),
    ("a match of eight", "parties stay together; all eight get a token for one server, which expects them", tell_match),
    ("one session for each player, one use for each token, in all of the fleet", "the newer session replaces the older one on another server; a used token is denied there", tell_one_session),
    ("a server is killed (kill -9), and its players return through the backend to the others", "each plays again within the limit", tell_kill),
    ("the backend sends no player there any more", "what it has not heard for 5 s is in no token", tell_backend_forgets),
    ("the metrics say what the clients say", "connects and clients now", tell_counters),
    ("all players leave", "no payload was wrong; no client timed out; every token is accounted for", tell_leave),
    ("the largest payload gap of every player, over rotation and kill", "at most %d ms, the time away from a killed server apart" % MAX_GAP_MS, tell_gaps),
    ("the end", "all end cleanly, and no log holds a secret", tell_end),
]


# ---- the whole ----


def clean_up():
    """Only what we started, and in every case. nginx takes its workers along on SIGTERM, and only then."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for process in demo.processes:
        if process.running():
            process.child.terminate()
    until = time.monotonic() + 5
    while time.monotonic() < until and any(process.running() for process in demo.processes):
        pump(0.05)
    for process in demo.processes:
        if process.running():
            process.child.kill()
            process.child.wait()
    if demo.folder:
        shutil.rmtree(demo.folder, ignore_errors=True)


def stop(number, _):
    print("\nstopped by %s" % signal.Signals(number).name, flush=True)
    raise SystemExit(128 + number)


def prepare():
    """False when packages or programs can not be had."""
    os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"  # where Debian keeps nginx
    os.environ["no_proxy"] = "localhost,127.0.0.1"  # everything here is on loopback; apt may need its proxy
    if subprocess.run(["sh", os.path.join(TOP, "tests/tools/need.sh")] + PACKAGES, check=False).returncode:
        return False
    demo.folder = tempfile.mkdtemp(prefix="demo-full-")
    begin = demo.start = time.monotonic()
    try:
        build()
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print("FAIL  the programs can not be built: %s" % error)
        return False
    print("built in %.1f s" % (time.monotonic() - begin), flush=True)
    return True


def tell_stories():
    """Returns how many held; the first that does not is the last."""
    held = 0
    for title, expected, function in STORIES:
        if not story(title, expected, function):
            break
        held += 1
        if function is tell_dozen and os.environ.get("DEMO_KILL_BACKEND"):
            kill_the_backend()
    return held


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    os.umask(0o077)
    held = 0
    try:
        if prepare():
            demo.begin = time.monotonic()
            demo.watch.start()
            held = tell_stories()
    finally:
        clean_up()
    print("\nthe demo is over: %d of %d lines held, %.1f s with building" % (held, len(STORIES), time.monotonic() - demo.start))
    return 0 if held == len(STORIES) else 1


if __name__ == "__main__":
    sys.exit(main())
