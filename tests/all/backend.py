#!/usr/bin/env python3
"""Tests examples/backend: the token backend, nginx with TLS in front of it, and the client that logs in over it.

    python3 tests/all/backend.py             everything
    python3 tests/all/backend.py WORD...     the checks whose names hold a WORD
    python3 tests/all/backend.py --plants    plants one fault after the other in a copy: a check must notice each
                                             (NUMBER...: those alone)

Makes a certificate authority of its own, and runs the real things: nginx with the template, the backend (plain, and with
sanitizers), examples/server.c, client_http. Everything stays on loopback, on ports that the kernel gives.
"""

import base64
import concurrent.futures
import glob
import hashlib
import http.client
import http.server
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
if "--plants" in sys.argv:  # plants that make something hang need not hang for a minute
    os.environ.setdefault("TEST_LIMIT_SECONDS", "15")
from waiting import LIMIT_SECONDS, SKIPS_FAIL, refuse_unknown, until  # noqa: E402

BUILD = os.path.join(ROOT, "build", "backend_test")
CC = os.environ.get("CC", "cc").split()
CFLAGS = "-std=c99 -O2 -g -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion -Werror".split()
SANITIZE = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer".split()
PROTOCOL_ID = "0x1122334455667788"
WORKERS = 4
TOKEN_BYTES = 2048
OPENED, NOT_OPENED = 0, 4  # what netcode-token inspect ends with

os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"  # where Debian keeps nginx
for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
    os.environ.pop(proxy, None)

passed, failures, skipped = 0, [], 0
folder = ""  # everything that is not built lies here, and goes at the end
processes = []
stopping = False
lock = threading.Lock()  # for all of these
numbers = itertools.count()


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def equal(found, wanted, what):
    expect(found == wanted, "%s is %r and not %r" % (what, found, wanted))


# ---- building ----


def run(command, **options):
    options.setdefault("timeout", 300)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def flags(packages):
    result = run(["pkg-config", "--cflags", "--libs"] + packages)
    return result.stdout.decode().split()


def build(source, name, packages, *options):
    """Compiles one program, unless it is newer than what it is made of. Returns its path."""
    target = os.path.join(BUILD, name)
    command = CC + (CFLAGS if source.startswith(os.path.join(ROOT, "examples")) else ["-std=c99", "-O2", "-w"]) + list(options) + ["-I", ROOT, source] + flags(packages) + ["-lm", "-o", target]
    stamp = hashlib.sha256(repr(command).encode()).hexdigest()
    headers = glob.glob(os.path.join(os.path.dirname(source), "*.h")) + glob.glob(os.path.join(os.path.dirname(source), "..", "*.h"))
    parts = [os.path.getmtime(path) for path in [source, os.path.join(ROOT, "netcode.h")] + headers]
    if os.path.exists(target) and os.path.getmtime(target) > max(parts) and read(target + ".stamp") == stamp:
        return target
    with lock:
        expect(not stopping, "the test is to stop")
        # `timeout 0` has no limit: it hands a signal on to all that the compiler has started.
        compiler = subprocess.Popen(["timeout", "0", "nice", "-n", "10"] + command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        processes.append(compiler)
    _, errors = compiler.communicate()
    if compiler.returncode:
        raise Failure("%s does not compile:\n%s" % (source, errors.decode()))
    write(target + ".stamp", stamp)
    return target


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path, text, mode=0o600):
    """In one step, as editors do: no reader sees a half."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.chmod(file.fileno(), mode)
        file.write(text)
    os.rename(path + ".new", path)
    return path


SERVER_PACKAGES = ["libmicrohttpd", "libcjson", "libsodium"]
CLIENT_PACKAGES = ["libcurl", "libcjson", "libsodium"]


def build_all(sources):
    """`sources` is the folder with backend.c and client_http.c: a copy when faults are planted."""
    os.makedirs(BUILD, exist_ok=True)
    backend, client = os.path.join(sources, "backend.c"), os.path.join(sources, "client_http.c")
    mark = "" if sources == SOURCES else "-planted"
    jobs = {
        "backend": (backend, "backend" + mark, SERVER_PACKAGES),
        "client": (client, "client_http" + mark, CLIENT_PACKAGES),
    }
    if not mark:
        jobs["backend-san"] = (backend, "backend-san", SERVER_PACKAGES, *SANITIZE)
        jobs["client-san"] = (client, "client_http-san", CLIENT_PACKAGES, *SANITIZE)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        try:
            made = {name: pool.submit(build, *job) for name, job in jobs.items()}
            programs = {name: job.result() for name, job in made.items()}
        except SystemExit:
            clean_up()  # the compilers, for which leaving the pool waits
            raise
    result = run(["make", "-C", ROOT, "build/server", "build/token"])
    if result.returncode:
        raise Failure("make build/server build/token:\n" + result.stderr.decode())
    programs.update(server=os.path.join(ROOT, "build", "server"), token=os.path.join(ROOT, "build", "token"))
    return programs


def build_full_server():
    if re.search(r"^build/server-full:", read(os.path.join(ROOT, "Makefile")), re.M):
        result = run(["make", "-C", ROOT, "build/server-full"])
        expect(result.returncode == 0, "make build/server-full:\n" + result.stderr.decode())
        return os.path.join(ROOT, "build", "server-full")
    stamp = "-DSTAMP=%d" % max(os.path.getmtime(path) for path in glob.glob(os.path.join(ROOT, "examples", "*", "*.h")))  # another header: another build
    return build(os.path.join(ROOT, "examples", "server.c"), "server-full", ["libmicrohttpd", "libcurl", "libcjson", "libsodium", "hiredis"], "-DSERVER_FULL", "-w", stamp)


# ---- processes ----


class Process:
    """A program whose lines are collected while it runs."""

    def __init__(self, command, **options):
        self.lines = []
        with lock:
            expect(not stopping, "the test is to stop")
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
            processes.append(self.process)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.collect, daemon=True)
        self.reader.start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def text(self):
        return "\n".join(self.lines)

    def find(self, pattern):
        return re.search(pattern, self.text(), re.M)

    def line(self, pattern):
        """Waits for a line, and returns the match."""

        def look():
            match = self.find(pattern)
            # An ended process says nothing more, once its output is read to the end.
            if not match and not self.reader.is_alive() and not self.find(pattern):
                raise Failure("it ended without /%s/:\n%s" % (pattern, self.text()))
            return match

        return until(look, "/%s/ in:\n%s" % (pattern, self.text()))

    def end(self, number=signal.SIGTERM, seconds=LIMIT_SECONDS):
        """Ends it and returns its status. Waits for its last words."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        return status

    def wait(self, seconds=LIMIT_SECONDS):
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        return status


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def place(name):
    return os.path.join(folder, name)


def scratch(name):
    """A name that no other check uses at the same time."""
    return place("%s-%d" % (name, next(numbers)))


class Backend(Process):
    """The backend with files of its own: players alice (1001), bob (a 64-bit id) and carol (3), credentials of the same names."""

    def __init__(self, binary, *options, key="key", listen="127.0.0.1:0"):
        command = [binary, "--listen", listen, "--key-file", place(key), "--players", place("players"), "--server-credential-file", place("servers")]
        super().__init__(command + list(options))
        address = self.line(r"\Alistening on (127\.0\.0\.1:(\d+))$")
        self.address, self.port = address.group(1), int(address.group(2))
        self.url = "http://" + self.address

    def reload(self):
        before = len(self.lines)
        self.process.send_signal(signal.SIGHUP)
        until(lambda: re.search(r"read again|could not be read", "\n".join(self.lines[before:])), "a reload")
        return "\n".join(self.lines[before:])

    def metrics(self):
        status, _, text = get(self.port, "/metrics")
        equal(status, 200, "the status of /metrics")
        return dict(re.findall(r"^(netcode_backend_\S+) (\S+)$", text, re.M))


class Server(Process):
    """examples/server.c, and what it would report."""

    def __init__(self, name, *options, key="key", slots=8, address="127.0.0.1", **report):
        super().__init__([PROGRAMS["server"], "--address", address + ":0", "--key-file", place(key), "--echo", "--slots", str(slots)] + list(options))
        self.address = self.line(r"listening on (%s:\d+)" % re.escape(address)).group(1)
        self.report = {"name": name, "address": self.address, "slots": slots, "clients": 0, "draining": False, "protocol_id": PROTOCOL_ID}
        self.report.update(report)

    def echoes(self):
        """How many payloads it has sent back: those of its last line of counters but one, so that what was counted there has left. Asks for another line."""
        self.process.send_signal(signal.SIGUSR1)
        counts = ([("0", "0")] * 2 + re.findall(r"sent_payload=(\d+) received_payload=(\d+)", self.text()))[-2]
        equal(counts[0], counts[1], "the number of echoes, beside that of payloads,")  # between two lines it answers all that it has read
        return int(counts[0])


class Reporter:
    """Reports for servers, twice a second, until it is stopped."""

    def __init__(self, backend, *servers):
        self.backend, self.servers, self.stopped, self.taken = backend, list(servers), threading.Event(), 0
        for server in self.servers:
            self.report(server)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def report(self, server):
        status, _, text = report(self.backend.port, server.report)
        equal(status, 200, "the status of a report (%s)" % text)
        self.taken += 1

    def work(self):
        while not self.stopped.wait(0.5):
            for server in list(self.servers):
                try:
                    self.report(server)
                except (OSError, http.client.HTTPException, Failure):
                    pass  # the backend is down for a moment: checks see that by themselves

    def stop(self):
        self.stopped.set()
        self.thread.join(LIMIT_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def client(*options, binary="client", url=None, credential="alice", seconds=LIMIT_SECONDS, ca="ca.pem"):
    """Starts client_http; `url` is an nginx."""
    command = [PROGRAMS[binary], "--url", url, "--credential-file", place(credential), "--seconds", str(seconds)]
    return Process(command + (["--ca", place(ca)] if ca else []) + list(options))


# ---- HTTP ----


def http_request(port, method, path, body=None, headers=None, seconds=LIMIT_SECONDS):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode("utf-8", "replace")
    finally:
        connection.close()


def get(port, path):
    return http_request(port, "GET", path)


def bearer(name):
    return {"Authorization": "Bearer " + read(place(name)).split("\n")[0]}


def login(port, name="alice", wish=None, **headers):
    """(status, headers, JSON)"""
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    body = None if wish is None else json.dumps(wish)
    status, found, text = http_request(port, "POST", "/v1/connect-token", body, {**bearer(name), **headers})
    return status, found, json.loads(text)


def report(port, value, credential="servers"):
    return http_request(port, "POST", "/v1/servers", value if isinstance(value, (str, bytes)) else json.dumps(value), bearer(credential))


def curl(url, *options):
    """(status, headers in lower case, body), by the command that everyone has."""
    result = run(["curl", "-sS", "-i", "--http1.1", "--max-time", str(LIMIT_SECONDS), "--noproxy", "*", url] + list(options))
    expect(result.returncode == 0, "curl ends with %d: %s" % (result.returncode, result.stderr.decode()))
    text = result.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
    while text.startswith("HTTP/1.1 100"):
        text = text.split("\n\n", 1)[1]
    head, _, body = text.partition("\n\n")
    lines = head.split("\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def token_of(answer):
    token = base64.b64decode(answer["connect_token"], validate=True)
    equal(len(token), TOKEN_BYTES, "the token's size")
    return token


def inspect(answer, key="key"):
    """(status, what netcode-token says)"""
    path = scratch("token")
    with open(path, "wb") as file:
        file.write(token_of(answer))
    result = run([PROGRAMS["token"], "inspect", "--key-file", place(key), path])
    os.unlink(path)
    return result.returncode, result.stdout.decode()


def servers_of(answer):
    """The addresses of the public part, in their order."""
    return re.findall(r"^server +(\S+)$", inspect(answer)[1].split("private part")[0], re.M)


# ---- the files ----


def hash_line(name, *identity):
    with open(place(name), "rb") as file:
        result = run([PROGRAMS["backend"], "--hash"] + list(identity), stdin=file)
    equal(result.returncode, 0, "the status of --hash")
    return result.stdout.decode()


BOB = 2**64 - 1
PLAYERS = [("alice", "1001"), ("bob", str(BOB)), ("carol", "3")]


def make_credential(name):
    result = run([PROGRAMS["backend"], "--credential"])
    expect(re.fullmatch(rb"[A-Za-z0-9_-]{43}\n", result.stdout), "no credential: %r" % result.stdout)
    write(place(name), result.stdout.decode())


def make_key(name):
    return write(place(name), os.urandom(32).hex() + "\n")


def make_files():
    for name in ("alice", "bob", "carol", "outsider", "servers", "other-servers"):
        make_credential(name)
    for name in ("key", "new-key"):
        make_key(name)
    write_players()


def write_players(players=None):
    lines = [hash_line(name, identity, name.capitalize() + " of the test") for name, identity in players or PLAYERS]
    write(place("players"), "# a note\n\n" + "".join(lines), 0o644)


CA_CONFIG = """
[ca]
default_ca = this
[this]
new_certs_dir = .
database = database
serial = serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[server]
subjectAltName = DNS:localhost
[ca_certificate]
basicConstraints = critical, CA:true
[req]
distinguished_name = name
[name]
"""


def openssl(*arguments):
    result = run(["openssl"] + list(arguments), cwd=folder)
    expect(result.returncode == 0, "openssl %s: %s" % (" ".join(arguments), result.stderr.decode()))


def make_certificates():
    """Two authorities; of the first a good certificate and one that has expired. The names say which."""
    write(place("ca.conf"), CA_CONFIG)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "ca.conf"]
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", *key, "-keyout", name + ".key", "-out", name + ".pem", "-days", "2", "-subj", "/CN=" + name, "-extensions", "ca_certificate")
    write(place("database"), "")
    write(place("serial"), "01\n")
    sign = ["ca", "-batch", "-notext", "-config", "ca.conf", "-cert", "ca.pem", "-keyfile", "ca.key", "-extensions", "server"]
    for name, dates in (("good", ["-days", "2"]), ("expired", ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"])):
        openssl("req", "-new", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=localhost")
        openssl(*sign, "-in", name + ".csr", "-out", name + ".pem", *dates)


class Nginx(Process):
    """nginx with the template. The socket is ours: nginx takes it over, as it does when it is upgraded, so no port can be lost to others."""

    def __init__(self, backend, certificate="good"):
        self.prefix = scratch("nginx")
        os.mkdir(self.prefix)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        listener.setblocking(False)  # nginx leaves it as it is: else a worker waits in accept for others' connections
        self.port = listener.getsockname()[1]
        values = {
            "LISTEN": "127.0.0.1:%d" % self.port,
            "NAME": "localhost",
            "BACKEND": backend,
            "GATEWAY": "127.0.0.1:9",  # none here: tests/web has one
            "CERTIFICATE": place(certificate + ".pem"),
            "CERTIFICATE_KEY": place(certificate + ".key"),
            "SERVERS": "127.0.0.1",
            "PAGES": place("pages"),
        }
        text = read(os.path.join(FROM, "nginx.conf"))
        for name, value in values.items():
            expect("@%s@" % name in text, "the template has no @%s@" % name)
            text = text.replace("@%s@" % name, value)
        write(os.path.join(self.prefix, "nginx.conf"), text)
        environment = dict(os.environ, NGINX="%d;" % listener.fileno())
        command = ["nginx", "-p", self.prefix, "-c", "nginx.conf", "-g", "daemon off;"]
        super().__init__(command, cwd=self.prefix, env=environment, pass_fds=[listener.fileno()])
        listener.close()
        self.host = "https://localhost:%d" % self.port
        self.url = self.host + "/v1/connect-token"
        until(lambda: os.path.exists(os.path.join(self.prefix, "nginx.pid")), "nginx:\n" + self.text())

    def log(self):
        return read(os.path.join(self.prefix, "access.log"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()  # not harder than SIGTERM: its workers would outlive it


class Ends:
    """with Ends( process ) as process: it is ended in every case."""

    def __init__(self, process):
        self.process = process

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.end(signal.SIGKILL)


# ---- checks of files and options: each starts a backend that must refuse ----


def refuses(binary, arguments, status, pattern):
    result = run([binary] + arguments, timeout=LIMIT_SECONDS)
    equal(result.returncode, status, "the exit status (%s)" % result.stderr.decode().strip())
    expect(re.search(pattern, result.stderr.decode()), "standard error does not say /%s/: %s" % (pattern, result.stderr.decode()))


def arguments(**changed):
    files = {"key_file": place("key"), "players": place("players"), "server_credential_file": place("servers"), "listen": "127.0.0.1:0"}
    files.update(changed)
    return [word for name, value in files.items() if value is not None for word in ("--" + name.replace("_", "-"), value)]


def check_usage(binary):
    equal(run([binary, "--help"]).returncode, 0, "the status of --help")
    refuses(binary, arguments(key_file=None), 2, "are required")
    refuses(binary, arguments(server_credential_file=None), 2, "are required")
    refuses(binary, arguments() + ["--nonsense", "1"], 2, "--nonsense is no option")
    for option, value in (("--rate", "0"), ("--rate", "x"), ("--expire", "-1"), ("--servers-per-token", "33"), ("--timeout", "99999"), ("--rate", ""), ("--gateway", "http://play.example.org")):
        refuses(binary, arguments() + [option, value], 2, "is no option, or its value")
    refuses(binary, arguments(listen="nowhere"), 1, "is no address")
    refuses(binary, arguments(listen="0.0.0.0:0"), 1, "in the clear")
    refuses(binary, arguments(listen="192.0.2.1:0"), 1, "in the clear")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        refuses(binary, arguments(listen="127.0.0.1:%d" % taken.getsockname()[1]), 1, "in use")
    result = run([binary, "--hash"])
    equal(result.returncode, 1, "the status of --hash without a credential")
    result = run([binary, "--hash"], input=b"123456789012345\n")
    equal((result.returncode, b"can not be guessed" in result.stderr, result.stdout), (1, True, b""), "--hash of a password")
    equal(run([binary, "--hash"], input=b"1234567890123456\n").returncode, 0, "the status of --hash of 16 bytes")
    refuses(binary, ["--hash", "x", "name"], 2, "takes a CLIENT_ID")
    expected = hashlib.blake2b(read(place("alice")).strip().encode(), digest_size=32).hexdigest()
    equal(hash_line("alice"), expected + "\n", "what --hash says")
    if os.path.exists("/dev/full"):
        with open(place("alice"), "rb") as file, open("/dev/full", "wb") as full:
            result = subprocess.run([binary, "--hash", "1", "Alice"], stdin=file, stdout=full, timeout=LIMIT_SECONDS, check=False)
        equal(result.returncode, 1, "the status of --hash when the disk is full")


def check_modes(binary):
    for option, name in (("key_file", "key"), ("server_credential_file", "servers")):
        for mode in (0o640, 0o604, 0o620, 0o660, 0o644, 0o601):
            path = write(scratch("open"), read(place(name)), mode)
            refuses(binary, arguments(**{option: path}), 1, "others than its owner can use it")
    for option, text in (("players", read(place("players"))), ("servers", "127.0.0.1:7\n")):
        path = write(scratch("open"), text, 0o666)
        refuses(binary, arguments(**{option: path}), 1, "everyone can write to it")


def check_bad_files(binary):
    good = hash_line("alice", "1001", "Alice")
    digest = good.split()[0]
    rows = [
        (digest + "\n", "line 1"),
        (digest + " 1001\n", "line 1"),
        ("# fine\n\n" + digest[:-2] + " 1001 Alice\n", "line 3"),
        (digest[:-1] + "x 1001 Alice\n", "line 1"),
        (digest + " 0x10 Alice\n", "line 1"),
        (digest + " -1 Alice\n", "line 1"),
        (digest + " 18446744073709551616 Alice\n", "line 1"),
        (good + digest[:10] + "\n", "line 2"),
        (digest + " 1001 " + "A" * 64 + "\n", "line 1"),
        (digest + " 1001 A\x01\n", "line 1"),
        ("A" * 600 + "\n", "line 1"),
        (good + digest + " 7 Bob\n", "player 7 twice, or another one with the same credential"),
        (good + "00" * 32 + " 1001 Alice\n", "player 1001 twice"),
    ]
    for text, pattern in rows:
        refuses(binary, arguments(players=write(scratch("bad"), text, 0o644)), 1, pattern)
    rows = [
        ("127.0.0.1\n", "line 1: first comes ADDRESS:PORT"),
        ("127.0.0.1:7 eu-1 8\n\n# fine\neu-2 127.0.0.1:8\n", "line 4: first comes"),
        ("127.0.0.1:0\n", "line 1: first comes"),
        ("0.0.0.0:7\n", "line 1: first comes"),
        ("[::]:7\n", "line 1: first comes"),
        ("::1:40000\n", "line 1: first comes"),
        ("localhost:7\n", "line 1: first comes"),
        ("127.0.0.1:7 e/u\n", "line 1: the name is"),
        ("127.0.0.1:7 %s\n" % ("e" * 64), "line 1: the name is"),
        ("127.0.0.1:7 eu 0\n", "line 1: the slots are"),
        ("127.0.0.1:7 eu 65536\n", "line 1: the slots are"),
        ("127.0.0.1:7 eu many\n", "line 1: the slots are"),
        ("127.0.0.1:7 eu 7 8\n", "line 1: the slots are"),
        ("127.0.0.1:7 eu\n[::1]:7 eu\n", "line 2: this name or this address"),
        ("[::1]:7 eu-1\n[0:0::1]:7 eu-2\n", "line 2: this name or this address"),
        ("127.0.0.1:7 %s\n" % ("e" * 600), "line 1: it is too long"),
        ("".join("127.0.0.1:%d\n" % (1000 + i) for i in range(257)), "line 257: no more than 256"),
    ]
    for text, pattern in rows:
        refuses(binary, arguments(servers=write(scratch("bad"), text)), 1, pattern)
    for text in ("", "x" * 31, "x" * 31 + "\n", "00" * 16, "00" * 31, "00" * 33, "zz" * 32, "00" * 32 + " " * 200):
        refuses(binary, arguments(key_file=write(scratch("bad"), text)), 1, "holds no key")
    for text in ("", "# nothing\n", "a\nb\nc\nd\ne\n", "a" * 600):
        refuses(binary, arguments(server_credential_file=write(scratch("bad"), text)), 1, "holds no servers' credential")
    for option, error in (("key_file", "can not be read: "), ("players", "line 1: it is too long, or can not be read"), ("servers", "line 1: it is too long, or"), ("server_credential_file", "holds no servers' credential")):
        refuses(binary, arguments(**{option: place("nothing")}), 1, "No such file")
        refuses(binary, arguments(**{option: folder}), 1, "is no file|others than its owner")
        if os.path.exists("/proc/self/mem"):  # which can be opened, and then not be read: nothing is mapped at its beginning
            refuses(binary, arguments(**{option: "/proc/self/mem"}), 1, error)
    with open(place("raw-key"), "wb", opener=lambda path, mode: os.open(path, mode, 0o600)) as file:
        file.write(os.urandom(32))
    with Ends(Backend(binary, key="raw-key")) as backend:
        equal(backend.end(), 0, "the status with a key of 32 bytes")
    for text in (os.urandom(32).hex() + "\n", base64.b64encode(os.urandom(32)).decode()):
        with Ends(Backend(binary, key=os.path.basename(write(scratch("fine"), text)))) as backend:
            equal(backend.end(), 0, "the status after SIGTERM")


# ---- checks of the endpoints ----


def fake(who, port, **changed):
    """The report of a server that is not there."""
    value = {"name": who, "address": "127.0.0.1:%d" % port, "slots": 10, "clients": 0, "draining": False, "protocol_id": PROTOCOL_ID}
    value.update(changed)
    return {key: value for key, value in value.items() if value is not None}


def check_errors(binary):
    """Every refusal, by curl, with its status, name, sentence and headers."""
    with Ends(Backend(binary, "--rate", "1000")) as backend:
        token, servers = backend.url + "/v1/connect-token", backend.url + "/v1/servers"
        alice = ["-H", "Authorization: " + bearer("alice")["Authorization"]]
        credential = ["-H", "Authorization: " + bearer("servers")["Authorization"]]
        large = write(scratch("large"), "x" * 20000)
        huge = write(scratch("huge"), "x" * 3000000)
        post = ["-X", "POST"]
        rows = [
            (404, "not_found", backend.url + "/", []),
            (404, "not_found", token + "/", post),
            (404, "not_found", backend.url + "/v1/connect-tokens", post + alice),
            (405, "method_not_allowed", token, []),
            (405, "method_not_allowed", token, ["-X", "PUT"] + alice + ["-d", "{}"]),
            (405, "method_not_allowed", token, ["-X", "OPTIONS"]),
            (405, "method_not_allowed", servers, ["-X", "DELETE"]),
            (405, "method_not_allowed", backend.url + "/healthz", post),
            (405, "method_not_allowed", backend.url + "/metrics", post),
            (401, "no_credential", token, post),
            (401, "no_credential", token, post + ["-H", "Authorization: Basic YTpi"]),
            (401, "no_credential", token, post + ["-H", "Authorization: Bearer "]),
            (401, "no_credential", token, post + ["-H", "Authorization: Bearer"]),
            (401, "no_credential", token, post + ["-H", "Authorization: Bearer " + "x" * 513]),
            (401, "no_credential", token, post + ["-H", "X-Forwarded-For: 127.0.0.1", "-H", "X-Real-IP: 127.0.0.1"]),
            (401, "unknown_credential", token, post + ["-H", "Authorization: Bearer " + "x" * 512]),
            (401, "unknown_credential", token, post + ["-H", "Authorization: " + bearer("outsider")["Authorization"]]),
            (401, "unknown_credential", token, post + credential),
            (401, "unknown_credential", token, post + ["-H", "Authorization: Bearer " + hash_line("alice").strip()]),
            (401, "no_credential", servers, post + ["-d", "{}"]),
            (401, "unknown_credential", servers, post + alice + ["-d", "{}"]),
            (413, "too_large", token, alice + ["-d", "@" + large]),
            (413, "too_large", token, alice + ["-d", "@" + huge]),
            (413, "too_large", token, alice + ["-d", "@" + large, "-H", "Transfer-Encoding: chunked"]),
            (413, "too_large", servers, credential + ["-d", "@" + large]),
            (400, "not_json", token, alice + ["-d", "x"]),
            (400, "not_json", token, alice + ["-d", "{} {}"]),
            (400, "not_json", token, alice + ["-d", '{"region":"eu"']),
            (400, "not_json", token, alice + ["-d", "[]"]),
            (400, "not_json", token, alice + ["-d", '"eu"']),
            (400, "not_json", token, alice + ["-d", "[" * 8000]),
            (400, "wrong_field", token, alice + ["-d", '{"regoin":"eu"}']),
            (400, "wrong_field", token, alice + ["-d", '{"region":7}']),
            (400, "wrong_field", token, alice + ["-d", '{"region":""}']),
            (400, "wrong_field", token, alice + ["-d", '{"region":"e u"}']),
            (400, "wrong_field", token, alice + ["-d", '{"region":"%s"}' % ("e" * 64)]),
            (400, "wrong_field", token, alice + ["-d", '{"region":"eu","region":"us"}']),
            (400, "wrong_field", token, alice + ["-d", '{"server":null}']),
            (400, "wrong_field", token, alice + ["-d", '{"avoid":["eu-1"]}']),
            (400, "not_json", servers, credential + post),
            (400, "wrong_protocol_id", servers, credential + ["-d", json.dumps(fake("a", 1, protocol_id="7"))]),
            (503, "no_server", token, alice + post),
        ]
        for wanted, name, url, options in rows:
            what = "%s %s" % (url[len(backend.url) :], " ".join(options)[:100])
            status, headers, body = curl(url, *options)
            equal(status, wanted, "the status of " + what)
            value = json.loads(body)
            equal(sorted(value), ["error", "message"], "the fields of " + what)
            equal(value["error"], name, "the error of " + what)
            expect(re.fullmatch(r"[A-Z].{10,}\.", value["message"]), "no sentence: %r" % value["message"])
            equal(headers.get("content-type"), "application/json", "the type of " + what)
            equal(headers.get("cache-control"), "no-store", "Cache-Control of " + what)
            equal("www-authenticate" in headers, wanted == 401, "WWW-Authenticate with " + what)
            equal(headers.get("www-authenticate", "Bearer").split()[0], "Bearer", "the scheme of " + what)
            allow = "POST" if "/v1/" in url else "GET, HEAD"
            equal(headers.get("allow"), allow if wanted == 405 else None, "Allow with " + what)
            expect(wanted != 503 or int(headers["retry-after"]) >= 1, "no Retry-After with 503")
        # A zero byte in the middle hides nothing.
        status, _, text = http_request(backend.port, "POST", "/v1/connect-token", b'{"region":"eu\0"}', bearer("alice"))
        equal((status, json.loads(text)["error"]), (400, "not_json"), "a body with a zero in it")
        counts = backend.metrics()
        for name in {name for _, name, _, _ in rows}:
            wanted = sum(row[1] == name for row in rows) + (name == "not_json")
            equal(int(counts['netcode_backend_refusals_total{reason="%s"}' % name]), wanted, "the count of " + name)
        equal(backend.end(), 0, "the exit status")
        return "%d requests" % len(rows)


def check_reports(binary):
    """What can not be in a report, field by field."""
    with Ends(Backend(binary)) as backend:
        rows = [{"name": None}, {"name": ""}, {"name": 7}, {"name": "a b"}, {"name": "a/b"}, {"name": "x" * 64}, {"name": 'a"}'}, {"address": None}]
        rows += [{"address": value} for value in ("127.0.0.1", "127.0.0.1:0", "somewhere:7", "", 7, "0.0.0.0:40000", "[::]:40000", "127.0.0.1:99999")]
        rows += [{"public_addresses": value} for value in ("127.0.0.1:1", ["127.0.0.1"], [7], ["0.0.0.0:7"], ["127.0.0.1:1"] * 33)]
        rows += [{"slots": value} for value in (None, 0, -1, 65536, 1.5, "7", 1e300, True)]
        rows += [{"clients": value} for value in (None, -1, 11, 0.5, "0")]
        rows += [{"draining": value} for value in (1, "yes", [])]
        rows += [{"protocol_id": value} for value in (None, 7, "", "x", "-1", "0x1" + "0" * 16, " 7")]
        for changed in rows:
            status, _, text = report(backend.port, fake("a", 1, **changed))
            equal((status, json.loads(text)["error"]), (400, "wrong_field"), "a report with %r" % changed)
        equal(backend.metrics()['netcode_backend_servers{state="open"}'], "0", "servers after wrong reports")
        fine = [{}, {"protocol_id": str(int(PROTOCOL_ID, 0))}, {"public_addresses": []}, {"public_addresses": ["127.0.0.1:7", "[::1]:7"]}, {"region": "later"}]
        fine += [{"address": "0.0.0.0:7", "public_addresses": ["127.0.0.1:7"]}, {"draining": None}]
        for changed in fine:
            status, _, text = report(backend.port, fake("a", 1, **changed))
            equal(status, 200, "the status of a report with %r (%s)" % (changed, text))
        equal(backend.metrics()["netcode_backend_reports_total"], str(len(fine)), "reports taken")
        return "%d wrong ones" % len(rows)


def check_token(binary):
    """The answer's fields, and what is in the token."""
    with Ends(Backend(binary, "--expire", "40", "--timeout", "7")) as backend:
        report(backend.port, fake("eu-1", 40000))
        for name, identity in PLAYERS:
            before = int(time.time()) - 1  # C's time() lags by up to a tick of the kernel, which can be the end of a second
            status, headers, answer = login(backend.port, name)
            equal(status, 200, "the status")
            equal(headers["Cache-Control"], "no-store", "Cache-Control")
            equal(sorted(answer), ["client_id", "connect_token", "expires_at", "protocol_id", "server_time"], "the fields")
            equal(answer["client_id"], identity, "client_id, a string")
            equal(answer["protocol_id"], PROTOCOL_ID, "protocol_id, a string")
            expect(before <= answer["server_time"] <= time.time() + 1, "server_time is not now")
            expect(before + 40 <= answer["expires_at"] <= time.time() + 41, "expires_at is not in 40 s")
            opened, text = inspect(answer)
            equal(opened, OPENED, "what netcode-token says of the key")
            expect(re.search(r"^client id +%s " % identity, text, re.M), "another player in the token:\n" + text)
            expect("%s of the test" % name.capitalize() in text, "the player's name is not in the user data:\n" + text)
            expect(re.search(r"^timeout +7 s$", text, re.M), "another timeout:\n" + text)
            equal(inspect(answer, "new-key")[0], NOT_OPENED, "what another key does")
        tokens = {login(backend.port)[2]["connect_token"] for _ in range(5)}
        equal(len(tokens), 5, "different tokens")
        status, _, answer = login(backend.port, "alice", {})
        equal(status, 200, "the status with an empty object")
        status, _, text = http_request(backend.port, "POST", "/v1/connect-token", None, {"authorization": bearer("alice")["Authorization"].replace("Bearer", "bEARER")})
        equal(status, 200, "the status with the scheme in other letters")
    with Ends(Backend(binary, "--gateway", "https://play.example.org")) as backend:
        report(backend.port, fake("eu-1", 40000))
        equal(login(backend.port)[2]["gateway"], "https://play.example.org", "the gateway of web pages")


def check_choice(binary):
    """Most free slots first; region, server, avoid; full, draining, silent and unknown ones are not picked."""
    with Ends(Backend(binary, "--rate", "1000", "--servers-per-token", "2")) as backend:
        port = backend.port

        def tell():
            report(port, fake("eu-1", 1, clients=8))
            report(port, fake("eu-2", 2, clients=1, public_addresses=["192.0.2.2:7", "[2001:db8::2]:7"]))
            report(port, fake("us-1", 3, clients=5))
            report(port, fake("us-2", 4, clients=10))
            report(port, fake("us-3", 5, draining=True))

        def ask(wish=None, name="alice"):
            tell()  # which also takes back what was promised
            status, _, answer = login(port, name, wish)
            return servers_of(answer) if status == 200 else (status, answer["error"])

        two = ["192.0.2.2:7", "[2001:db8::2]:7"]
        equal(ask(), two + ["127.0.0.1:3"], "the servers, best first")
        equal(ask({"region": "eu"}), two + ["127.0.0.1:1"], "those of a region")
        equal(ask({"region": "us"}), ["127.0.0.1:3"], "those of another")
        equal(ask({"region": "e"}), (503, "no_server"), "those of none")
        equal(ask({"server": "eu-1"}), ["127.0.0.1:1"], "one by its name")
        equal(ask({"server": "127.0.0.1:1"}), ["127.0.0.1:1"], "one by its address")
        equal(ask({"server": "[2001:db8::2]:7"}), two, "one by its other address")
        equal(ask({"server": "us-2"}), (503, "no_server"), "a full one")
        equal(ask({"server": "us-3"}), (503, "no_server"), "a draining one")
        equal(ask({"server": "eu-9"}), (503, "no_server"), "an unknown one")
        equal(ask({"avoid": "192.0.2.2:7"}), ["127.0.0.1:3", "127.0.0.1:1"], "those beside the one to avoid")
        equal(ask({"avoid": "eu-1", "region": "eu"}), two + ["127.0.0.1:1"], "the one to avoid at the end")
        tell()
        text = inspect(login(port, "alice", {"server": "eu-2"})[2])[1].split("private part")[1]
        equal(re.findall(r"^server +(\S+)$", text, re.M), ["127.0.0.1:2"] * 2, "the addresses by which the server knows itself")
        # Between two reports a server is not given away more often than it has slots.
        report(port, fake("eu-1", 1, clients=8))
        for wanted in (200, 200, 503):
            equal(login(port, "bob", {"server": "eu-1"})[0] if wanted == 200 else login(port, "carol", {"server": "eu-1"})[0], wanted, "the status")
        # Full, but bob's last token led there: the slot may be his own, after a crash.
        report(port, fake("eu-1", 1, clients=10))
        equal(login(port, "bob", {"server": "eu-1"})[0], 200, "the status of one that comes back to a full server")
        equal(login(port, "carol", {"server": "eu-1"})[0], 503, "the status of another one")
        counts = backend.metrics()
        for state, wanted in (("open", "2"), ("full", "2"), ("draining", "1"), ("silent", "0")):
            equal(counts['netcode_backend_servers{state="%s"}' % state], wanted, state + " servers")
        for i in range(256 - 5):
            equal(report(port, fake("more-%d" % i, 100))[0], 200, "the status of a report")
        status, headers, text = report(port, fake("too-many", 100))
        equal((status, json.loads(text)["error"]), (503, "too_many_servers"), "the 257th server")
        expect(headers["Retry-After"], "no Retry-After")
        equal(report(port, fake("eu-1", 1))[0], 200, "the status of the first one's next report")


def check_regions(binary):
    """A server stands in a region when its name begins with it and a dash, as often as there are dashes, or is the region's."""
    names = ["eu-llg4x-rx6rc", "eu-west-1", "eu", "europe-1", "e-1", "us-eu-1"]
    with Ends(Backend(binary, "--rate", "1000", "--servers-per-token", "9")) as backend:

        def those_of(region):
            for port, name in enumerate(names, 1):
                report(backend.port, fake(name, port, clients=port))
            status, _, answer = login(backend.port, "alice", {"region": region})
            return [names[int(address.split(":")[1]) - 1] for address in servers_of(answer)] if status == 200 else answer["error"]

        equal(those_of("eu"), ["eu-llg4x-rx6rc", "eu-west-1", "eu"], "those of eu: Agones' names, those of eu-west, and the one that is called so")
        equal(those_of("eu-west"), ["eu-west-1"], "those of a region with a dash")
        equal(those_of("eu-llg4x"), ["eu-llg4x-rx6rc"], "those of a longer beginning")
        equal(those_of("e"), ["e-1"], "those of a letter that others begin with")
        for region in ("europ", "eu-", "eu-w", "west", "1", "eu-west-1-", "EU"):
            equal(those_of(region), "no_server", "those of %s" % region)


def check_silence(binary):
    """A server that was not heard for 5 s is not picked, /healthz says so, and its next word brings it back."""
    with Ends(Backend(binary)) as backend:
        status, headers, text = get(backend.port, "/healthz")
        equal((status, json.loads(text)["status"]), (503, "no_server"), "/healthz without servers")
        expect(headers["Retry-After"], "no Retry-After")
        heard = time.monotonic()
        equal(report(backend.port, fake("eu-1", 1, clients=4))[0], 200, "the status of a report")
        status, _, text = get(backend.port, "/healthz")
        equal((status, json.loads(text)), (200, {"status": "ok", "servers": 1, "free_slots": 6}), "/healthz")
        equal(http_request(backend.port, "HEAD", "/healthz")[::2], (200, ""), "HEAD /healthz")
        while get(backend.port, "/healthz")[0] == 200:
            expect(time.monotonic() - heard < LIMIT_SECONDS, "it is never silent")
            time.sleep(0.1)
        silent = time.monotonic() - heard
        expect(silent > 4.9, "silent after %.1f s already" % silent)
        equal(login(backend.port)[0], 503, "the status of a login then")
        equal(backend.metrics()['netcode_backend_servers{state="silent"}'], "1", "silent servers")
        report(backend.port, fake("eu-1", 1))
        equal(login(backend.port)[0], 200, "the status of a login when it is heard again")
        return "silent after %.1f s" % silent


def check_places(binary):
    """As many servers as there are entries: a new one takes that of the one that has been silent longest, and no other's."""
    with Ends(Backend(binary)) as backend:

        def reports_of(*names):
            return [report(backend.port, fake(name, 1))[0] for name in names]

        others = ["pod-%d" % number for number in range(1, 256)]
        equal(reports_of(*others[:200], "pod-0"), [200] * 201, "reports")
        began = time.monotonic()
        equal(reports_of(*others[200:]), [200] * 55, "reports")
        equal(reports_of("early"), [503], "one more while none is silent")
        while time.monotonic() - began < 5.2:
            equal(reports_of(*others), [200] * 255, "reports")
        equal(reports_of("new", "late"), [200, 503], "two more when pod-0 alone is silent")
        equal(reports_of("pod-0", *others, "new"), [503] + [200] * 256, "reports afterwards")


def check_listed(binary):
    """--servers: there without a word of theirs, until they report; SIGHUP reads the file again."""
    path = write(scratch("list"), "# a note\n\n127.0.0.1:1 eu-1 8\n  [::1]:2\r\n127.0.0.1:3\tus-1\n")
    with Ends(Backend(binary, "--rate", "1000", "--servers", path)) as backend:

        def ask(name="alice", **wish):
            status, _, answer = login(backend.port, name, wish)
            return servers_of(answer) if status == 200 else status

        status, _, text = get(backend.port, "/healthz")
        equal((status, json.loads(text)), (200, {"status": "ok", "servers": 3, "free_slots": 72}), "/healthz")
        equal(ask(), ["[::1]:2", "127.0.0.1:3", "127.0.0.1:1"], "the servers of the first token")
        equal(ask(), ["127.0.0.1:3", "[::1]:2", "127.0.0.1:1"], "those of the second one, as the first server has a player more")
        equal(ask(avoid="us-1"), ["[::1]:2", "127.0.0.1:1", "127.0.0.1:3"], "those with one to avoid")
        equal(ask(server="[::1]:2"), ["[::1]:2"], "one by its address")
        equal(ask(server="eu-1"), ["127.0.0.1:1"], "one by its name")
        equal([ask(region="eu") for _ in range(8)] + [ask("carol", region="eu")], [["127.0.0.1:1"]] * 9, "more tokens than slots: no server reports that it is full")
        equal(ask(region="ap"), 503, "a region without servers")
        write(path, read(path) + "127.0.0.1:4 ap-1\n")
        equal(ask(region="ap"), 503, "before SIGHUP")
        expect("4 servers" in backend.reload(), "the new line was not read:\n" + backend.text())
        equal(ask(region="ap"), ["127.0.0.1:4"], "after SIGHUP")
        write(path, read(path) + "127.0.0.1:5 ap-1\n")
        expect("could not be read again" in backend.reload() and backend.find(r"line 7: this name"), "a broken file was taken:\n" + backend.text())
        equal(ask(region="ap"), ["127.0.0.1:4"], "after a SIGHUP that failed")
        # Who reports is what it says: by its address, whatever its name, or by its name, wherever it is now.
        for who, port, changed in (("eu-9", 1, {}), ("x", 50, {"public_addresses": ["[2001:db8::1]:7", "[::1]:2"]}), ("us-1", 51, {}), ("ap-1", 52, {})):
            equal(report(backend.port, fake(who, port, clients=10, **changed))[0], 200, "the status of a report")
        heard = time.monotonic()
        equal(ask("carol"), 503, "all of them full")
        equal(backend.metrics()['netcode_backend_servers{state="full"}'], "4", "full servers: none counts twice")
        report(backend.port, fake("eu-9", 1, clients=1, draining=True))
        equal(ask("carol", region="eu"), 503, "one that drains")
        report(backend.port, fake("eu-9", 1, clients=1))
        equal(ask("carol", server="eu-9"), ["127.0.0.1:1"], "one that has room again")
        equal(ask("carol", server="eu-1"), 503, "its name in the file, which it does not go by")
        write(path, "127.0.0.1:1 eu-1\n127.0.0.1:6 af-1\n")
        backend.reload()
        equal(ask(region="af"), ["127.0.0.1:6"], "a new line beside servers that report")
        until(lambda: backend.metrics()['netcode_backend_servers{state="silent"}'] == "4", "silent servers")
        expect(time.monotonic() - heard > 4.9, "silent too soon")
        equal(ask("bob"), ["127.0.0.1:6"], "those without the ones that have fallen silent")
        equal(backend.end(), 0, "the exit status")
    with Ends(Process([binary] + arguments(server_credential_file=None, servers=path))) as backend:
        backend.port = int(backend.line(r"\Alistening on 127\.0\.0\.1:(\d+)$").group(1))
        equal(servers_of(login(backend.port)[2]), ["127.0.0.1:6", "127.0.0.1:1"], "the servers of a backend that hears no reports")
        equal(report(backend.port, fake("eu-1", 1))[0], 401, "the status of a report to it")


def check_rate(binary):
    """N requests per player and minute; Retry-After is honest; whoever claims to be elsewhere is still the same player."""
    with Ends(Backend(binary, "--rate", "20")) as backend:
        report(backend.port, fake("eu-1", 1, slots=1000))
        begun = time.monotonic()
        for i in range(20):
            equal(login(backend.port)[0], 200, "the status of login %d" % i)
        status, headers, answer = login(backend.port, X_Forwarded_For="192.0.2.7", X_Real_IP="192.0.2.7", Forwarded="for=192.0.2.7")
        if time.monotonic() - begun < 2.5:  # one comes back every 3 s
            equal((status, answer["error"]), (429, "rate_limited"), "the one too many")
            seconds = int(headers["Retry-After"])
            expect(1 <= seconds <= 3, "Retry-After is %d" % seconds)
        equal(login(backend.port, "bob")[0], 200, "another player's status")
        backend.reload()
        for more in itertools.count():
            status, headers, _ = login(backend.port)
            if status != 200:
                break
            expect(more + 1 <= (time.monotonic() - begun) / 3, "%d logins more: the reload gave back what was used up" % (more + 1))
        equal(status, 429, "the status after a reload")
        time.sleep(int(headers["Retry-After"]) + 0.05)
        equal(login(backend.port)[0], 200, "the status after Retry-After")
        expect(int(backend.metrics()['netcode_backend_refusals_total{reason="rate_limited"}']) >= 2, "refusals are not counted")


def check_reload(binary):
    """SIGHUP: another key, other players, two servers' credentials; broken files change nothing."""
    write(place("turning-key"), read(place("key")))
    servers = read(place("servers"))
    try:
        with Ends(Backend(binary, "--rate", "1000", key="turning-key")) as backend:
            report(backend.port, fake("eu-1", 1, slots=1000))
            equal(inspect(login(backend.port)[2])[0], OPENED, "the first token under the first key")
            write(place("turning-key"), read(place("new-key")))
            equal(inspect(login(backend.port)[2])[0], OPENED, "a token before SIGHUP, under the first key")
            expect("read again" in backend.reload(), "it was not read again")
            answer = login(backend.port)[2]
            equal((inspect(answer)[0], inspect(answer, "new-key")[0]), (NOT_OPENED, OPENED), "the token after SIGHUP, under both keys")
            write_players([("alice", "1001"), ("outsider", "5")])
            backend.reload()
            equal(login(backend.port, "bob")[0], 401, "the status of one that was removed")
            equal(login(backend.port, "outsider")[2]["client_id"], "5", "the id of one that was added")
            equal(backend.metrics()["netcode_backend_players"], "2", "players")
            write(place("servers"), read(place("other-servers")) + servers)
            backend.reload()
            for name in ("servers", "other-servers"):
                equal(report(backend.port, fake("eu-1", 1), name)[0], 200, "the status of a report with either credential")
            write(place("old-servers"), servers)
            write(place("servers"), read(place("other-servers")))
            backend.reload()
            equal(report(backend.port, fake("eu-1", 1), "old-servers")[0], 401, "the status of the old credential")
            for name, text, mode in (("players", "nonsense\n", 0o644), ("turning-key", "nonsense", 0o600), ("turning-key", read(place("key")), 0o644)):
                before = read(place(name))
                write(place(name), text, mode)
                expect("could not be read again; what was read before stays" in backend.reload(), "a broken file was taken")
                answer = login(backend.port, "outsider")[2]
                equal(inspect(answer, "new-key")[0], OPENED, "the token after a reload that failed")
                write(place(name), before)
            counts = backend.metrics()
            equal(counts['netcode_backend_reloads_total{result="good"}'], "4", "good reloads")
            equal(counts['netcode_backend_reloads_total{result="failed"}'], "3", "failed reloads")
            equal(backend.end(), 0, "the exit status")
    finally:
        write(place("servers"), servers)
        write_players()


METRIC_LINE = re.compile(r'(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]+"(,[a-z]+="[^"]+")*\})? -?[0-9.e+-]+)')


def check_metrics(binary):
    with Ends(Backend(binary)) as backend:
        report(backend.port, fake("eu-1", 1))
        for _ in range(3):
            login(backend.port)
        status, headers, text = get(backend.port, "/metrics")
        equal(headers["Content-Type"].split(";")[0], "text/plain", "the type")
        for line in text.splitlines():
            expect(METRIC_LINE.fullmatch(line), "no line of the format: " + line)
        counts = backend.metrics()
        equal(counts["netcode_backend_tokens_issued_total"], "3", "tokens")
        equal(counts["netcode_backend_free_slots"], "7", "free slots: those of the report without the promised ones")
        buckets = [int(value) for name, value in counts.items() if "_bucket" in name]
        equal(buckets, sorted(buckets), "the histogram, which adds up")
        # The request that asks is in progress itself.
        equal(buckets[-1], int(counts["netcode_backend_request_duration_seconds_count"]), "the last bucket")
        equal(buckets[-1], 5, "requests measured")
        if not shutil.which("promtool"):
            return "%d lines; promtool is not here" % len(text.splitlines())
        result = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False)
        equal((result.returncode, result.stdout), (0, b""), "what promtool says")
        return "%d lines, and promtool agrees" % len(text.splitlines())


def dribble(connections):
    """One more byte of a header that never ends, on each. Returns those that are still open."""
    alive = []
    for connection in connections:
        connection.setblocking(False)
        try:
            connection.send(b"x")
            if connection.recv(4096):
                alive.append(connection)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            alive.append(connection)  # it is there, and silent; TLS may have had words of its own
        except OSError:
            connection.close()
    return alive


def slow_connections(port, count, wrap=None):
    """Half with a request that does not end, half with a body that does not."""
    connections = []
    for i in range(count):
        connection = socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS)
        if wrap:
            connection = wrap.wrap_socket(connection, server_hostname="localhost")
        head = "POST /v1/connect-token HTTP/1.1\r\nHost: localhost\r\n"
        connection.send((head + ("X-Slow: " if i % 2 else "Content-Length: 1000\r\n\r\n")).encode())
        connections.append(connection)
    return connections


def others_meanwhile(begun, connections, ask, seconds):
    """Dribbles until the slow ones are cut; `ask` is asked all the while. Returns (the slowest answer, how long after `begun` the last was cut)."""
    slowest = 0.0
    rounds = 0
    while connections:
        expect(time.monotonic() - begun < seconds, "%d slow ones are still there" % len(connections))
        before = time.monotonic()
        ask()
        slowest = max(slowest, time.monotonic() - before)
        connections = dribble(connections)
        rounds += 1
        time.sleep(0.2)
    expect(rounds >= 3, "the others asked %d times only" % rounds)
    return slowest, time.monotonic() - begun


def check_slow(binary):
    """Slow clients block no other, however busily they dribble, and are cut after --request-seconds."""
    with Ends(Backend(binary, "--request-seconds", "3", "--rate", "1000")) as backend:
        report(backend.port, fake("eu-1", 1, slots=1000))

        def ask():
            equal(get(backend.port, "/metrics")[0], 200, "the status of another one")

        slowest, cut = others_meanwhile(time.monotonic(), slow_connections(backend.port, 60), ask, LIMIT_SECONDS)
        expect(cut > 2.5, "cut after %.1f s already" % cut)
        expect(slowest < 2.5, "another one waited %.1f s" % slowest)
        equal(backend.metrics()["netcode_backend_connections_cut_total"], "60", "connections cut")
        # All places taken by idle ones: the next one waits until they are cut, and then is served.
        idle = [socket.create_connection(("127.0.0.1", backend.port), LIMIT_SECONDS) for _ in range(300)]
        equal(get(backend.port, "/metrics")[0], 200, "the status behind 300 idle connections")
        for connection in idle:
            connection.close()
        equal(backend.end(), 0, "the exit status")
        return "cut after %.1f s; others waited up to %.0f ms" % (cut, slowest * 1000)


def check_noise(binary):
    """Bytes from a seed, some of them nearly JSON: no answer but those that we know, and no crash."""
    seed = int(os.environ.get("SEED", "1"))
    dice = random.Random(seed)
    good = [json.dumps(fake("eu-1", 1, public_addresses=["127.0.0.1:7"])).encode(), b'{"region":"eu","server":"eu-1","avoid":"eu-2"}']
    statuses = {}
    with Ends(Backend(binary, "--rate", "100000")) as backend:
        connection = http.client.HTTPConnection("127.0.0.1", backend.port, timeout=LIMIT_SECONDS)
        for i in range(3000):
            body = bytearray(dice.choice(good))
            for _ in range(dice.randrange(0, 6)):
                at = dice.randrange(len(body) + 1)
                kind = dice.randrange(3)
                if kind == 0:
                    body[at:at] = dice.choice([b"{", b"[", b'"', b"\\u0000", b"\\", b"\0", b"1e999", b"\xff", b",", b"-", b"9" * 400])
                elif kind == 1:
                    del body[at : at + dice.randrange(1, 20)]
                elif at < len(body):
                    body[at] = dice.randrange(256)
            path, name = dice.choice([("/v1/servers", "servers"), ("/v1/connect-token", "alice")])
            connection.request("POST", path, bytes(body), bearer(name))
            response = connection.getresponse()
            json.loads(response.read())
            statuses[response.status] = statuses.get(response.status, 0) + 1
        connection.close()
        equal(set(statuses) - {200, 400, 503}, set(), "statuses with seed %d" % seed)
        for raw in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/servers HTTP/1.1\r\nContent-Length: -1\r\n\r\n", os.urandom(2000), b"GET /" + b"x" * 40000):
            with socket.create_connection(("127.0.0.1", backend.port), LIMIT_SECONDS) as raw_connection:
                raw_connection.sendall(raw)
        equal(get(backend.port, "/metrics")[0], 200, "the status after the noise")
        equal(backend.end(), 0, "the exit status\n" + backend.text())
    return "answers by status: %s" % ", ".join("%d x %d" % (count, status) for status, count in sorted(statuses.items()))


def need_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        raise Skip("there is no ::1 here: %s" % error) from error


def check_ipv6(binary):
    need_ipv6()
    with Ends(Process([binary] + arguments(listen="[::1]:0"))) as backend:
        address = backend.line(r"\Alistening on (\[::1\]:\d+)$").group(1)
        equal(curl("http://%s/healthz" % address, "--globoff")[0], 503, "the status of /healthz")
        equal(backend.end(), 0, "the exit status")


def end_in_the_middle(backend):
    """SIGTERM in the middle of a request: (its status, or what became of it; the seconds until then)"""
    report(backend.port, fake("eu-1", 1))
    connection = http.client.HTTPConnection("127.0.0.1", backend.port, timeout=LIMIT_SECONDS)
    connection.putrequest("POST", "/v1/connect-token")
    connection.putheader("Content-Length", "2")
    connection.putheader("Authorization", bearer("alice")["Authorization"])
    connection.endheaders()
    # The backend has the headers once it has answered a client that came after.
    get(backend.port, "/healthz")
    begun = time.monotonic()
    backend.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    try:
        connection.send(b"{}")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        status = repr(error)
    took = time.monotonic() - begun
    connection.close()
    return status, took


def check_end(binary):
    """SIGTERM: the request that is in progress is answered, status 0. Then the same port again, at once."""
    for _ in range(3):  # it waits for 2 s: where one of us stands still so long, it has to end without an answer
        with Ends(Backend(binary)) as backend:
            status, took = end_in_the_middle(backend)
            equal(backend.wait(), 0, "the exit status")
            if status == 200 or took < 1.5:
                break
    equal(status, 200, "the status of the request that was in progress, after %.1f s" % took)
    expect(backend.find(r"ends: 1 tokens issued"), "no last words")
    with Ends(Backend(binary, listen=backend.address)) as again:
        equal(login(again.port)[0], 503, "the status before a server is heard")
        report(again.port, fake("eu-1", 1))
        equal(login(again.port)[0], 200, "the status then")
        equal(again.end(signal.SIGINT), 0, "the exit status after SIGINT")


# ---- checks through nginx ----


class Stage:
    """Backend, nginx, and servers that are heard."""

    def __init__(self, *names, binary="backend", options=(), key="key", clients=0, **server):
        """`clients`: how many the first server reports, so that another one has more room."""
        self.backend = Backend(PROGRAMS[binary], "--rate", "1000", *options)
        self.nginx = Nginx(self.backend.address)
        self.servers = [Server(name, "--replace", key=key, clients=0 if i else clients, **server) for i, name in enumerate(names)]
        self.reporter = Reporter(self.backend, *self.servers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reporter.stop()
        for process in self.servers + [self.backend]:
            process.end(signal.SIGKILL)
        self.nginx.__exit__()


def check_nginx():
    """What passes through, what nginx refuses by itself, and that all of it is JSON."""
    with Stage() as stage:
        report(stage.backend.port, fake("eu-1", 1))
        url, ca = stage.nginx.url, ["--cacert", place("ca.pem")]
        alice = ["-H", "Authorization: " + bearer("alice")["Authorization"]]
        status, headers, body = curl(url, *ca, *alice, "-X", "POST")
        equal((status, headers["cache-control"]), (200, "no-store"), "a login")
        equal(json.loads(body)["client_id"], "1001", "client_id")
        large = write(scratch("large"), "x" * 20000)
        rows = [
            (401, "no_credential", url, ["-X", "POST", "-H", "X-Forwarded-For: 127.0.0.1"]),
            (405, "method_not_allowed", url, []),
            (400, "not_json", url, alice + ["-d", "x"]),
            (413, "too_large", url, alice + ["-d", "@" + large]),
            (404, "not_found", stage.nginx.host + "/metrics", []),
            (404, "not_found", stage.nginx.host + "/v1/connect-token/../../metrics", ["--path-as-is"]),
            (404, "not_found", stage.nginx.host + "/", []),
            (400, "bad_request", stage.nginx.host.replace("https", "http") + "/", []),
            (400, "bad_request", stage.nginx.host + "/", ["-H", "X-Large: " + "x" * 10000]),
            (400, "bad_request", stage.nginx.host + "/" + "x" * 9000, []),
            (400, "bad_request", stage.nginx.host + "/%00", []),
            (400, "bad_request", url, ["-X", "TRACE"]),
            (400, "bad_request", url, ["-d", "x", "-H", "Transfer-Encoding: gzip"]),
            (404, "not_found", stage.nginx.host + "/error/400", []),
            (404, "not_found", stage.nginx.host + "/nothing?to=hide", []),
        ]
        for wanted, name, where, options in rows:
            status, headers, body = curl(where, *ca, *options)
            equal(status, wanted, "the status of " + name)
            equal(json.loads(body)["error"], name, "the error")
            equal(headers["content-type"], "application/json", "the type of " + name)
            equal(headers["cache-control"], "no-store", "Cache-Control of " + name)
        until(lambda: '"GET /nothing" 404 ' in stage.nginx.log(), "its line in the access log")  # which follows the answer
        expect("to=hide" not in stage.nginx.log(), "what nginx logs:\n" + stage.nginx.log())
        equal(report_over_tls(stage.nginx.port)[0], 200, "the status of a server's report over TLS")
        for version, wanted in (("1.1", False), ("1.2", True), ("1.3", True)):
            result = run(["curl", "-sS", "--tls-max", version, "--tlsv1.%s" % version[2], *ca, stage.nginx.host + "/healthz"])
            equal(result.returncode == 0, wanted, "TLS " + version)
        # One address asks far too often: nginx says so, and the backend does not hear most of it.
        context = ssl.create_default_context(cafile=place("ca.pem"))
        connection = http.client.HTTPSConnection("localhost", stage.nginx.port, context=context, timeout=LIMIT_SECONDS)

        def is_limited():
            connection.request("POST", "/v1/connect-token")
            response = connection.getresponse()
            return (response.status, response.headers["Retry-After"], json.loads(response.read())["error"]) == (429, "1", "rate_limited")

        until(is_limited, "a limit of nginx's", pause=0)
        connection.close()
        stage.backend.end()
        time.sleep(1)  # the limit of nginx has room again
        status, headers, body = curl(url + "?to=hide", *ca, *alice, "-e", "https://localhost/?to=hide", "-d", '{"region":"a-body"}')
        equal((status, json.loads(body)["error"], headers["retry-after"]), (503, "backend_down", "2"), "without a backend")
        until(lambda: '"POST /v1/connect-token" 503 ' in stage.nginx.log(), "its line in the access log")
        expect("to=hide" not in stage.nginx.log(), "what the access log has:\n" + stage.nginx.log())
        stage.nginx.line("connect.. failed .*refused.* upstream: .*" + stage.backend.address)
        for secret in (read(place("alice")).strip(), read(place("servers")).strip(), "a-body"):
            expect(secret not in stage.nginx.log() + stage.nginx.text(), "a credential or a body is in nginx's logs")


def report_over_tls(port):
    context = ssl.create_default_context(cafile=place("ca.pem"))
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=LIMIT_SECONDS)
    connection.request("POST", "/v1/servers", json.dumps(fake("eu-2", 1)), bearer("servers"))
    response = connection.getresponse()
    answer = response.status, response.headers, response.read().decode()
    connection.close()
    return answer


def hear_one_request(listener, heard):
    """An upstream that keeps what it hears."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(LIMIT_SECONDS)
        while b"\r\n\r\n{}" not in b"".join(heard):
            heard.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def check_nginx_passes():
    """What the backend gets to see of a request: HTTP/1.1, the credential, and nothing that clients claim about addresses."""
    heard = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        listener.settimeout(LIMIT_SECONDS)
        thread = threading.Thread(target=hear_one_request, args=(listener, heard), daemon=True)
        thread.start()
        with Nginx("127.0.0.1:%d" % listener.getsockname()[1]) as nginx:
            claims = [word for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded") for word in ("-H", name + ": 192.0.2.99")]
            status, _, _ = curl(nginx.url, "--cacert", place("ca.pem"), "-d", "{}", "-H", "Authorization: Bearer me", *claims)
            equal(status, 200, "the status")
        thread.join(LIMIT_SECONDS)
    text = b"".join(heard).decode()
    expect(text.startswith("POST /v1/connect-token HTTP/1.1\r\n"), "another request line:\n" + text)
    expect("\r\nAuthorization: Bearer me\r\n" in text, "the credential is gone:\n" + text)
    for word in ("192.0.2.99", "forwarded", "connection: close"):
        expect(word not in text.lower(), "%s is passed on:\n%s" % (word, text))


def check_nginx_slow():
    """Slow clients at nginx: cut, and the backend never hears of them."""
    with Stage() as stage:
        context = ssl.create_default_context(cafile=place("ca.pem"))

        def ask():
            equal(curl(stage.nginx.host + "/healthz", "--cacert", place("ca.pem"))[0], 503, "the status of another one")

        before = int(stage.backend.metrics()["netcode_backend_request_duration_seconds_count"])
        # Half of these have a header that never ends, which nginx cuts after 5 s whatever comes. The other half send their bodies a byte
        # at a time: nginx cuts the pause, not the sum, so they may go on until 1000 bytes are there.
        begun = time.monotonic()
        connections = [c for i, c in enumerate(slow_connections(stage.nginx.port, 60, context)) if i % 2]
        slowest, cut = others_meanwhile(begun, connections, ask, LIMIT_SECONDS)
        expect(cut > 3.0, "cut after %.1f s already" % cut)
        after = int(stage.backend.metrics()["netcode_backend_request_duration_seconds_count"])
        posts = sum("POST" in line and " 400 " not in line for line in stage.nginx.log().splitlines())
        expect(after > before, "no client was served")
        equal(sum(int(v) for k, v in stage.backend.metrics().items() if "refusals" in k and "not_" not in k), 0, "slow requests that the backend heard (%d)" % posts)
        return "cut after %.1f s; others waited up to %.0f ms" % (cut, slowest * 1000)


class Upstream:
    """A backend behind nginx that answers what it is given, and knows when it was asked. None: it says nothing."""

    def __init__(self, status, body, **headers):
        upstream = self
        self.times, self.over = [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                upstream.times.append(time.monotonic())
                if body is None:
                    upstream.over.wait(LIMIT_SECONDS)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.nginx = Nginx("127.0.0.1:%d" % self.server.server_address[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.nginx.__exit__()
        self.server.shutdown()
        self.server.server_close()


ECHOES = 50
SUMMARY = r"summary client_id=(\S+) tokens=(\d+) connects=(\d+) sent=(\d+) heard=(\d+) wrong=0 longest_gap_ms=(\d+)"


def check_play(binary):
    """Over TLS to a token, with the token to the real server, and back with every payload."""
    with Stage("eu-1", "eu-2", binary="backend-san" if binary.endswith("-san") else "backend", options=("--timeout", "60"), clients=4) as stage:
        with Ends(client("--rate", "50", "--silence-ms", "60000", url=stage.nginx.url, binary=binary, credential="bob")) as player:
            server = stage.servers[1]
            equal(player.line(r"connected to (\S+) as").group(1), server.address, "the server, of two the one with more room,")
            server.line(r"connected slot=\d+ client=%d " % BOB)
            until(lambda: server.echoes() >= ECHOES, "%d echoes" % ECHOES)
            equal(player.end(), 0, "the exit status\n" + player.text())
            summary = player.line(SUMMARY)
            equal(summary.group(1), str(BOB), "the player")
            equal(summary.group(2, 3), ("1", "1"), "tokens and connects")
            sent, heard = int(summary.group(4)), int(summary.group(5))
            # Those lay in the player's socket before it was told to end.
            expect(sent >= heard >= ECHOES, "%d sent, %d heard" % (sent, heard))
        stage.reporter.stop()
        equal(stage.backend.end(), 0, "the backend's exit status\n" + stage.backend.text())
        stage.backend.line("ends: 1 tokens issued, %d reports taken$" % stage.reporter.taken)
        return "%d of %d payloads back, longest gap %s ms" % (heard, sent, summary.group(6))


def fails(player, status, pattern):
    with Ends(player):
        equal(player.wait(), status, "the exit status\n" + player.text())
        player.line(pattern)


def check_certificates():
    """A wrong authority, an expired certificate, a wrong name, no TLS at all: no login, and not a byte of the credential."""
    with Stage("eu-1") as stage:
        before = stage.nginx.log()
        certificate = r"login failed: .*(certificate|SSL peer|CA cert)"
        fails(client(url=stage.nginx.url, ca="other-ca.pem"), 3, certificate)
        fails(client(url=stage.nginx.url, ca=None), 3, certificate)
        fails(client(url=stage.nginx.url.replace("localhost", "127.0.0.1")), 3, certificate)
        fails(client(url=stage.nginx.url, ca="nothing.pem"), 3, certificate)
        with Nginx(stage.backend.address, "expired") as expired:
            fails(client(url=expired.url), 3, certificate)
            equal(expired.log(), "", "what the expired nginx heard")
        equal(stage.nginx.log(), before, "what nginx heard")
        fails(client(url=stage.nginx.url.replace("https", "http")), 2, "does not begin with https")
        for option in ("--insecure", "-k", "--no-verify"):
            fails(client(option, url=stage.nginx.url), 2, "is no option")
        text = read(os.path.join(FROM, "client_http.c")) + read(os.path.join(FROM, "login.h"))
        expect("CURLOPT_SSL_VERIFYPEER, 1L" in text and "CURLOPT_SSL_VERIFYHOST, 2L" in text, "the source does not ask for verification")
        equal(len(re.findall("VERIFYPEER|VERIFYHOST", text)), 2, "places in the source that speak of verification")
        with Ends(client(url=stage.nginx.url, seconds=4)) as player:
            equal(player.wait(), 0, "the exit status with everything right\n" + player.text())


def check_client_refused():
    """A wrong credential and wrong requests end it; a backend without servers is asked again, with patience."""
    with Stage() as stage:
        fails(client(url=stage.nginx.url, credential="outsider"), 4, "login refused: 401 unknown_credential")
        fails(client("--region", "e u", url=stage.nginx.url), 5, "login refused: 400 wrong_field")
        fails(client(url=stage.nginx.host + "/nothing"), 5, "login refused: 404 not_found")
        opened = write(scratch("open"), read(place("alice")), 0o644)
        fails(client(url=stage.nginx.url, credential=os.path.basename(opened)), 1, "others than its owner")
        opened = write(scratch("words"), "two words\n")
        fails(client(url=stage.nginx.url, credential=os.path.basename(opened)), 1, "holds no credential")
        with Ends(client(url=stage.nginx.url, seconds=5)) as player:
            equal(player.wait(), 6, "the exit status without servers\n" + player.text())
            asked = len(re.findall("login refused: 503 no_server", player.text()))
            expect(2 <= asked <= 4, "asked %d times in 5 s, with Retry-After: 2" % asked)
        with socket.socket() as taken:  # nobody listens there, and nobody else can
            taken.bind(("127.0.0.1", 0))
            with Ends(client(url="https://localhost:%d/" % taken.getsockname()[1])) as player:
                player.line("login failed: .*connect")
                equal(player.end(), 6, "the exit status without a backend\n" + player.text())


def check_client_patience():
    """Retry-After is the same for all players, so each adds a time of its own, which grows."""
    with Upstream(503, b"{}", Retry_After="1") as upstream:
        with Ends(client(url=upstream.nginx.url)) as player:
            until(lambda: len(upstream.times) >= 4, "a fourth login:\n" + player.text())
            player.end()
        gaps = [b - a for a, b in zip(upstream.times, upstream.times[1:])]
        # 0.1 to 0.2 s, then twice as long each time.
        expect(gaps[0] >= 1.09 and gaps[1] >= 1.19 and gaps[2] >= 1.39, "it asks again after %s s" % ", ".join("%.2f" % gap for gap in gaps))
        return "asks again after %s s" % ", ".join("%.2f" % gap for gap in gaps[:3])


def check_client_leaves():
    """SIGTERM in the middle of a login that is not answered."""
    with Upstream(200, None) as upstream:
        with Ends(client(url=upstream.nginx.url)) as player:
            until(lambda: upstream.times, "a login")
            equal(player.end(), 6, "the exit status\n" + player.text())
            expect(player.find("login failed: .*abort"), "it waited for its answer:\n" + player.text())


def check_client_nonsense():
    """What comes from the backend is judged before it is used, and before it is printed."""
    with Stage() as stage:
        report(stage.backend.port, fake("eu-1", 1))
        good = login(stage.backend.port)[2]
    rows = [(200, b""), (200, b"x" * 20000), (200, b"[" * 5000), (200, b"{}"), (200, os.urandom(5000)), (500, b'{"error":"a\\u001b[2J"}')]
    for name, value in (("client_id", "1\x1b[2J"), ("client_id", ""), ("client_id", 7), ("client_id", "1" * 64), ("connect_token", "AAAA"), ("connect_token", good["connect_token"][:-4] + "!!!!"), ("connect_token", "A" * 2732 + "=")):
        rows.append((200, json.dumps({**good, name: value}).encode()))
    for status, body in rows:
        with Upstream(status, body) as upstream:
            with Ends(client(url=upstream.nginx.url, binary="client-san" if "client-san" in PROGRAMS else "client")) as player:
                player.line("login (refused: 200 no connect token|refused: 500 no reason given|failed: )")
                equal(player.end(), 6, "the exit status\n" + player.text())
                expect("\x1b" not in player.text() and not player.find("connected to"), "%r was taken:\n%s" % (body[:80], player.text()))
    return "%d answers" % len(rows)


def check_listed_play(address):
    """A server of the file, which reports nothing: its players come in, by IPv4 and by IPv6."""
    if address == "[::1]":
        need_ipv6()
    with Ends(Server("eu-1", address=address)) as server:
        path = write(scratch("list"), server.address + " eu-1 4\n")
        with Stage(options=("--servers", path)) as stage:
            with Ends(client("--server", "eu-1", url=stage.nginx.url, seconds=4)) as player:
                equal(player.wait(), 0, "the exit status\n" + player.text())
                player.line("connected to %s as" % re.escape(server.address))


def check_rotation():
    """A token of the new key: the server with the new key takes it, the one with the old key does not."""
    with Stage("eu-1", key="new-key") as stage:
        with Ends(client(url=stage.nginx.url, seconds=3)) as player:
            equal(player.wait(), 6, "the exit status with a token of the old key\n" + player.text())
        kept = read(place("key"))
        try:
            write(place("key"), read(place("new-key")))
            stage.backend.reload()
            with Ends(client(url=stage.nginx.url, seconds=4)) as player:
                equal(player.wait(), 0, "the exit status with a token of the new key\n" + player.text())
        finally:
            write(place("key"), kept)


def check_crash():
    """A player crashes in a server that is full, himself counted, and is back at once with a newer token."""
    with Stage("eu-1", slots=1) as stage:
        server = stage.servers[0]
        with Ends(client(url=stage.nginx.url)) as first:
            first.line("connected to")
            server.report["clients"] = 1
            until(lambda: stage.backend.metrics()['netcode_backend_servers{state="full"}'] == "1", "a full server")
            first.end(signal.SIGKILL)
        equal(login(stage.backend.port, "bob")[0], 503, "another player's status")
        with Ends(client(url=stage.nginx.url, seconds=4)) as second:
            equal(second.wait(), 0, "the exit status\n" + second.text())
        server.line("client=1001 .*replaced by the same player's newer token")


def check_lost_server(binary):
    """A server is killed: its player asks for a newer token, which leads to the other one, and goes on.

    The backend does not know yet: the reports of the dead one go on, and a token holds one server. So the player has to say it."""
    with Stage("eu-1", "eu-2", slots=4, options=("--servers-per-token", "1")) as stage:
        with Ends(client("--rate", "50", "--silence-ms", "2500", url=stage.nginx.url, binary=binary)) as player:
            address = player.line(r"connected to (\S+) as").group(1)
            time.sleep(1)
            server = next(server for server in stage.servers if server.address == address)
            server.end(signal.SIGKILL)
            killed = player.line(r"payload gap (\d+) ms")
            other = re.findall(r"connected to (\S+) as", player.text())[-1]
            expect(other != address, "it went back to the dead server")
            time.sleep(0.5)
            player.end(signal.SIGTERM)
            equal(player.process.returncode, 0, "the exit status\n" + player.text())
            equal(player.line(SUMMARY).group(2, 3), ("2", "2"), "tokens and connects")
        gap = int(killed.group(1))
        expect(gap < 15000, "the gap is %d ms" % gap)
        return "payload gap %d ms" % gap


def check_restart():
    """The backend is down when a player loses his server: he is patient, and goes on when it is back."""
    with Stage("eu-1") as stage:
        with Ends(client(url=stage.nginx.url)) as player:
            player.line("connected to")
            time.sleep(0.5)
            equal(stage.backend.end(), 0, "the backend's exit status")
            before = len(stage.servers[0].lines)
            stage.servers[0].end(signal.SIGTERM)
            player.line("login refused: 503 backend_down")
            stage.servers[0] = Server("eu-1", "--replace")
            stage.backend = Backend(PROGRAMS["backend"], listen=stage.backend.address)
            stage.reporter.stop()
            stage.reporter = Reporter(stage.backend, stage.servers[0])
            gap = player.line(r"payload gap (\d+) ms").group(1)
            equal(player.end(), 0, "the exit status\n" + player.text())
            expect(before, "the first server was silent")
        return "payload gap %s ms" % gap


def check_real_reports():
    """examples/server.c, built with its extras, reports by itself: it is picked, and no longer when it ends."""
    begun = time.monotonic()
    program = build_full_server()
    built = time.monotonic() - begun
    with Stage() as stage:
        command = [program, "--address", "127.0.0.1:0", "--key-file", place("key"), "--echo", "--slots", "4", "--name", "eu-7"]
        command += ["--report", stage.backend.url + "/v1/servers", "--report-credential-file", place("servers")]
        with Ends(Process(command)) as server:
            stage.backend.line("server eu-7 is heard: 4 slots, 0 clients")
            with Ends(client("--server", "eu-7", url=stage.nginx.url)) as player:
                player.line("connected to")
                until(lambda: stage.backend.metrics()["netcode_backend_free_slots"] == "3", "a report of the client")
                equal(player.end(), 0, "the client's exit status\n" + player.text())
            equal(server.end(), 0, "the server's exit status\n" + server.text())
            equal(stage.backend.metrics()['netcode_backend_servers{state="draining"}'], "1", "draining servers at its end")
        equal(login(stage.backend.port)[0], 503, "the status of a login then")
    return "built in %.1f s" % built


def memory_of(pid):
    """Everything that a process can write to."""
    pieces = []
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if match and "[v" not in line:
                start, end = (int(part, 16) for part in match.groups())
                try:
                    memory.seek(start)
                    pieces.append(memory.read(end - start))
                except (OSError, ValueError, OverflowError):
                    pass
    return b"\n".join(pieces)


def shapes(text):
    """A key as bytes, in hex and in base64."""
    key = bytes.fromhex(text.strip())
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key).rstrip(b"=")]


def check_no_key():
    """The private key is nowhere in the client: not in the source, nor in the program, nor in its memory; nor is what makes tokens."""
    source = read(os.path.join(FROM, "client_http.c")) + read(os.path.join(FROM, "login.h"))
    for word in ("generate_connect_token", "private_key", "key-file", "crypto_"):
        expect(word not in source, "the source speaks of " + word)
    symbols = run(["nm", PROGRAMS["client"]]).stdout.decode()
    expect(re.search(r"nc_client_\w+", symbols), "nm shows nothing")
    for word in ("generate_connect_token", "xchacha20poly1305", "nc_server", "netcode_server"):
        expect(word not in symbols, "the program holds " + word)
    expect("xchacha20poly1305" in run(["nm", PROGRAMS["backend"]]).stdout.decode(), "nm finds no xchacha20poly1305 in the backend either")
    key = shapes(read(place("key")))
    with open(PROGRAMS["client"], "rb") as file:
        program = file.read()
    expect(not any(shape in program for shape in key), "the key is in the program")
    with Stage("eu-1") as stage:
        with Ends(client(url=stage.nginx.url)) as player:
            player.line("connected to")
            if not os.path.exists("/proc/self/mem"):
                raise Skip("source and program are well; there is no /proc/PID/mem here to look into memory")
            memory = memory_of(player.pid)
            expect(read(place("alice")).strip().encode() in memory, "the search does not even find the credential")
            expect(not any(shape in memory for shape in key), "the key is in the client's memory")
            expect(key[0] in memory_of(stage.backend.pid), "the search does not find the key where it is, in the backend")
            equal(player.end(), 0, "the exit status")
        text = stage.backend.text() + stage.nginx.text() + stage.nginx.log() + player.text()
        for secret in [shape.decode() for shape in key[1:]] + [read(place(name)).strip() for name in ("alice", "servers")]:
            expect(secret not in text, "a secret is in a log")
        return "%d MB of memory" % (len(memory) >> 20)


def check_example():
    """players.example can be read, and nothing in the folder looks like a secret."""
    path = write(scratch("example"), read(os.path.join(FROM, "players.example")), 0o644)
    process = Process([PROGRAMS["backend"]] + arguments(players=path))
    with Ends(process):
        process.line(r"read: 2 players")


# ---- all of them ----


def check(name, function, *values):
    """Runs one check and prints its line. A check fails by an exception and in no other way."""
    global passed, skipped
    begun = time.monotonic()
    try:
        detail = function(*values)
        line, detail = "ok     " + name, detail or ""
    except Skip as reason:
        line, detail = "skipped " + name, str(reason)
    except Exception as error:  # pylint: disable=broad-except
        where = error.__traceback__
        while where.tb_next:
            where = where.tb_next
        line, detail = "FAILED " + name, "%s: %s (line %d)" % (type(error).__name__, error, where.tb_lineno)
    with lock:
        if stopping:
            return
        passed += line.startswith("ok")
        skipped += line.startswith("skipped")
        if line.startswith("FAILED"):
            failures.append(name)
        print("%s%s (%.1f s)" % (line, ": " + detail if detail else "", time.monotonic() - begun), flush=True)


OF_THE_BACKEND = [
    ("servers of a file", check_listed),
    ("silent servers", check_silence),
    ("more servers than entries", check_places),
    ("slow clients", check_slow),
    ("the rate of a player", check_rate),
    ("options", check_usage),
    ("modes of files", check_modes),
    ("broken files", check_bad_files),
    ("every error, by curl", check_errors),
    ("servers' reports", check_reports),
    ("the token's answer", check_token),
    ("the choice of servers", check_choice),
    ("regions", check_regions),
    ("metrics", check_metrics),
    ("IPv6", check_ipv6),
    ("noise", check_noise),
    ("the end, and a restart", check_end),
]
OF_THE_CLIENT = [
    ("plays over TLS", check_play),
    ("loses its server and goes on", check_lost_server),
]
OF_ALL = [
    ("client: refusals and patience", check_client_refused),
    ("client: a time of its own", check_client_patience),
    ("client: a backend that talks nonsense", check_client_nonsense),
    ("client: leaves in the middle of a login", check_client_leaves),
    ("client: a server of a file", check_listed_play, "127.0.0.1"),
    ("client: a server of a file, IPv6", check_listed_play, "[::1]"),
    ("nginx: slow clients", check_nginx_slow),
    ("nginx: passes on, refuses, limits", check_nginx),
    ("nginx: what the backend gets to see", check_nginx_passes),
    ("client: certificates", check_certificates),
    ("client: a crashed player is back", check_crash),
    ("client: the backend restarts", check_restart),
    ("the server reports by itself", check_real_reports),
    ("the private key is nowhere in the client", check_no_key),
    ("players.example", check_example),
]


def list_checks():
    """Those that can run side by side, and those that change files which all of them use."""
    together, alone = list(OF_ALL), [("client: a rotated key", check_rotation)]
    for binary in ("backend", "backend-san"):
        if binary in PROGRAMS:
            together += [("%s: %s" % (binary, name), function, PROGRAMS[binary]) for name, function in OF_THE_BACKEND]
            alone.append(("%s: SIGHUP" % binary, check_reload, PROGRAMS[binary]))
    for binary in ("client", "client-san"):
        if binary in PROGRAMS:
            together += [("%s: %s" % (binary, name), function, binary) for name, function in OF_THE_CLIENT]
    return together, alone


def run_checks(words):
    """Most of them wait most of the time, so several run at once."""
    lists = list_checks()
    refuse_unknown(words, [row[0] for rows in lists for row in rows])
    together, alone = [[row for row in rows if not words or any(word in row[0] for word in words)] for rows in lists]
    queue = list(together)

    def work():
        while True:
            with lock:
                if not queue or stopping:
                    return
                row = queue.pop(0)
            check(*row)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # a join without a limit would not let signals through
            thread.join(0.2)
    for row in alone:
        check(*row)
    return len(together) + len(alone)


# What is taken out or turned around, and the check that must notice. Every text stands in its file exactly once.
PLANTS = [
    ("backend.c", "if ( player->allowance < 1.0 )", "if ( player->allowance < -1e9 )", "the rate of a player"),
    ("backend.c", '"Cache-Control", "no-store"', '"Cache-Control", "private"', "every error"),
    ("backend.c", "now - server->heard_at > SERVER_SILENT_SECONDS;", "now - server->heard_at > 1e9;", "silent servers"),
    ("backend.c", "return is_silent( oldest, netcode_time() ) ? oldest : NULL;", "return NULL;", "more servers"),
    ("backend.c", "return is_silent( oldest, netcode_time() ) ? oldest : NULL;", "return oldest;", "more servers"),
    ("backend.c", "else if ( server->heard_at < oldest->heard_at )", "else if ( server->heard_at > oldest->heard_at )", "more servers"),
    ("backend.c", "return right->free_slots - left->free_slots;", "return left->free_slots - right->free_slots;", "the choice"),
    ("backend.c", "!server->draining && !is_silent", "!is_silent", "the choice"),
    ("backend.c", "server->promised++;", "", "the choice"),
    ("backend.c", "( !server->name[bytes] || server->name[bytes] == '-' )", "strrchr( server->name, '-' ) == server->name + bytes", "regions"),
    ("backend.c", "( !server->name[bytes] || server->name[bytes] == '-' )", "bytes", "regions"),
    ("../secret_file.h", "status.st_mode & ( S_IRWXG | S_IRWXO )", "status.st_mode & S_IRWXO", "modes of files"),
    ("../secret_file.h", "&& !secret_is_text( data, SECRET_KEY_BYTES )", "", "broken files"),
    ("../secret_file.h", "if ( ferror( file ) ) {", "if ( !file ) {", "broken files"),
    ("backend.c", "( status.st_mode & S_IWOTH )", "( status.st_mode & S_ISUID )", "modes of files"),
    ("backend.c", "if ( !ferror( file ) )", "if ( file )", "broken files"),
    ("backend.c", "fflush( stdout ) == 0 ? 0 : 1", "0", "options"),
    ("backend.c", "server->heard_at = HUGE_VAL;", "server->heard_at = 0.0;", "a server of a file"),
    ("backend.c", "if ( server->listed && !free_slots( server ) )", "if ( !server )", "servers of a file"),
    ("backend.c", "unlist( &app->files, server );", "", "servers of a file"),
    ("backend.c", "unlist( &app->files, &app->servers[i] );", "continue;", "servers of a file"),
    ("backend.c", "!server->address.port ||", "", "broken files"),
    ("backend.c", "shutdown( entry->socket, SHUT_RDWR );", "", "slow clients"),
    ("backend.c", "keep_players( &app->files, &files );", "", "the rate of a player"),
    ("backend.c", 'snprintf( client_id, sizeof( client_id ), "%llu", (unsigned long long)', 'snprintf( client_id, sizeof( client_id ), "%lld", (long long)', "the token's answer"),
    ("backend.c", "if ( strlen( request->body ) == request->bytes &&", "if ( strlen( request->body ) <= request->bytes &&", "every error"),
    ("backend.c", "if ( !is_loopback( &address ) && !app->options.allow_remote )", "if ( app->options.request_seconds > 1000 )", "options"),
    ("backend.c", "if ( wish[0] || !cJSON_IsString", "if ( !cJSON_IsString", "every error"),
    ("backend.c", "MHD_quiesce_daemon( app->daemon );\n    while ( app->requests_under_way", "MHD_quiesce_daemon( app->daemon );\n    while ( 0 && app->requests_under_way", "the end"),
    ("backend.c", "!choice.free_slots && strcmp( player->home, server->name ) != 0", "!choice.free_slots", "crashed player"),
    ("login.h", "CURLOPT_SSL_VERIFYPEER, 1L", "CURLOPT_SSL_VERIFYPEER, 0L", "certificates"),
    ("login.h", "CURLOPT_SSL_VERIFYHOST, 2L", "CURLOPT_SSL_VERIFYHOST, 0L", "certificates"),
    ("client_http.c", "#define NETCODE_STATIC ", "#define NOT_STATIC ", "the private key"),
    ("login.h", "static int login_create( struct login_t * login )\n{", 'static int login_create( struct login_t * login )\n{\n    static char kept[65];\n    FILE * leak = fopen( "@KEY@", "rb" );\n    if ( leak && fread( kept, 1, 64, leak ) && fclose( leak ) )\n        return 0;', "the private key"),
    ("client_http.c", "memcpy( app->login.avoid, text, strlen( text ) + 1 );", "app->login.avoid[0] = text[0] * 0;", "loses its server"),
    ("client_http.c", "return seconds +\n", "return 0.0 * seconds +\n", "a time of its own"),
    ("client_http.c", "( app->login.retry_after < MAX_RETRY_AFTER_SECONDS ? app->login.retry_after : MAX_RETRY_AFTER_SECONDS )", "0.0", "patience"),
    ("login.h", '!login_is_made_of( id, "0123456789" )', "!cJSON_IsString( id )", "nonsense"),
    ("login.h", "return login->must_leave && login->must_leave( login->context );", "return login == NULL;", "middle of a login"),
    ("nginx.conf", 'proxy_set_header X-Forwarded-For "";', "", "gets to see"),
    ("nginx.conf", "proxy_http_version 1.1;", "", "gets to see"),
    ("nginx.conf", "client_header_timeout 5s", "client_header_timeout 300s", "nginx: slow"),
    ("nginx.conf", "location = /v1/connect-token {\n            limit_req zone=players burst=50 nodelay;", "location = /v1/connect-token {", "nginx: passes"),
    ("nginx.conf", "ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;", "nginx: passes"),
    ("nginx.conf", "error_page 413 /error/413;", "", "nginx: passes"),
    ("nginx.conf", "400 405 414 494 497 501 505 =400", "400 405 494 497 501 505 =400", "nginx: passes"),
    ("nginx.conf", "            internal;", "", "nginx: passes"),
    ("nginx.conf", "            return 404;", "            proxy_pass http://backend;", "nginx: passes"),
    ("nginx.conf", '"~^(\\S+ [^? ]+)"', '"~^(\\S+ \\S+)"', "nginx: passes"),
]


def plant(number, name, text, fault, words):
    """A copy of the folder with one fault; the checks that it is for are run and must fail."""
    global FROM, PROGRAMS
    copy = place("copy/examples/backend")
    shutil.rmtree(place("copy"), ignore_errors=True)
    shutil.copytree(SOURCES, copy)
    shutil.copy(os.path.join(ROOT, "examples", "secret_file.h"), place("copy/examples"))
    os.symlink(os.path.join(ROOT, "netcode.h"), place("copy/netcode.h"))
    path = os.path.join(copy, name)
    source = read(path)
    expect(text in source, "plant %d: %s has no %r" % (number, name, text))
    write(path, source.replace(text, fault.replace("@KEY@", place("key")), 1), 0o644)
    FROM, PROGRAMS = copy, build_all(copy)
    before = len(failures)
    run_checks([words])
    noticed = failures[before:]
    del failures[before:]
    print("%s plant %d in %s: %s" % ("ok    " if noticed else "FAILED", number, name, text.split("\n")[0]), flush=True)
    return bool(noticed)


def plants():
    global passed
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    results = [plant(number, *row) for number, row in enumerate(PLANTS) if not words or str(number) in words]
    passed = sum(results)
    failures.extend("plant %d" % number for number, good in enumerate(results) if not good)


def clean_up():
    global stopping
    with lock:
        stopping = True
    for process in processes:
        if process.poll() is None:
            process.terminate()  # nginx takes its workers along then, and only then
    for process in processes:
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def stop(*_):
    raise SystemExit("stopped")


SOURCES = os.path.join(ROOT, "examples", "backend")
FROM = SOURCES
PROGRAMS = {}
NEEDS = "pkg-config:pkg-config libmicrohttpd-dev:pc=libmicrohttpd libcjson-dev:pc=libcjson libhiredis-dev:pc=hiredis libcurl4-openssl-dev:pc=libcurl libsodium-dev:pc=libsodium nginx-light:nginx openssl:openssl curl:curl binutils:nm"


def main():
    global folder, PROGRAMS
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    if subprocess.run(["sh", os.path.join(ROOT, "tests/tools/need.sh")] + NEEDS.split(), check=False).returncode:
        print("backend: 0 passed, 1 failed")
        return 1
    folder = tempfile.mkdtemp(prefix="backend-")
    os.chmod(folder, 0o700)
    begun = time.monotonic()
    try:
        PROGRAMS = build_all(SOURCES)
        print("built in %.1f s" % (time.monotonic() - begun), flush=True)
        make_files()
        make_certificates()
        if "--plants" in sys.argv[1:]:
            plants()
        else:
            count = run_checks([word for word in sys.argv[1:] if not word.startswith("--")])
            expect(passed + len(failures) + skipped == count, "%d checks were to run" % count)
    finally:
        clean_up()
    print("took %.0f s" % (time.monotonic() - begun))
    print("backend: %d passed, %d failed%s" % (passed, len(failures), ", %d skipped" % skipped if skipped else ""))
    return 1 if failures or not passed or (skipped and SKIPS_FAIL) else 0


if __name__ == "__main__":
    sys.exit(main())
