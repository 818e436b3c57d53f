#!/usr/bin/env python3
"""A stand-in for the REST gateway of the Agones SDK, for tests and for a first try without a cluster. It knows the calls that
examples/fleet/agones.h makes, keeps the state that Agones would keep, and prints a line of JSON for each call and each change.

    python3 examples/fleet/gateway.py --port 9358 --game-address 203.0.113.7 --game-port 7331

    GET   /gameserver                             name, state, labels, annotations, address and port, as Agones gives them
    POST  /ready /allocate /shutdown /health      {} each
    GET   /watch/gameserver                       a stream: {"result": what /gameserver says}, a line now and with each change
    PATCH /v1beta1/counters/players               {"count":"3"}; with --counters v1alpha1 under that name, with none: 404
    POST  /outside/allocate                       no call of the SDK: what an allocation does, {"labels":{},"annotations":{}}

Its first line is `listening on 127.0.0.1:PORT`. With --commands it reads what it is to be from standard input, a line each, and ends when
that ends:

    mode ok | error | garbage | empty | huge | slow SECONDS | hang | reset      how calls are answered from now on
    gameserver TEXT                                                              what GET /gameserver says; without TEXT: the truth again
    watch end | garbage | quiet | ok             ends all streams; sends what is no JSON; or sends nothing more, until ok

It is no Agones: it schedules nothing, ends nothing, and has neither gRPC nor the calls that are not named here. What Agones 1.x answers was
written down from its documentation; server-full also played with Agones' own SDK server 1.31 (`--local`)."""

import argparse
import http.server
import json
import socket
import sys
import threading
import time

STATES = {"/ready": "Ready", "/allocate": "Allocated", "/shutdown": "Shutdown"}
HUGE_BYTES = 16 << 20


class Gateway:
    """What Agones would know of one game server."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.mode = ["ok"]
        self.text = None
        self.state = "Scheduled"
        self.last_health = None
        self.over = threading.Event()
        self.labels, self.annotations = {}, {}
        self.count = 0
        self.changed = threading.Condition()
        self.version = 0
        self.watch = "ok"
        self.watch_ends = 0

    def tell(self, **fields):
        with self.lock:
            sys.stdout.write(json.dumps(dict(time=round(time.monotonic(), 4), **fields)) + "\n")
            sys.stdout.flush()

    def gameserver(self):
        ports = [{"name": "netcode", "port": self.options.game_port}]
        return {
            "object_meta": {"name": self.options.name, "namespace": "default", "labels": self.labels, "annotations": self.annotations},
            "status": {"state": self.state, "address": self.options.game_address, "ports": ports},
        }

    def call(self, path):
        """A call that was understood: what Agones does with it."""
        if path == "/health":
            self.last_health = time.monotonic()
            if self.state == "Scheduled":
                return
        elif self.state != "Shutdown":
            self.state = STATES[path]
            self.change()

    def change(self):
        """Those who watch hear of it."""
        with self.changed:
            self.version += 1
            self.changed.notify_all()

    def allocate_from_outside(self, patch):
        """As a GameServerAllocation does. Returns the status: only what is Ready can be taken."""
        if self.state != "Ready":
            return 409
        self.labels = dict(self.labels, **patch.get("labels", {}))
        self.annotations = dict(self.annotations, **patch.get("annotations", {}))
        self.state = "Allocated"
        self.tell(outside="allocate", state=self.state, labels=self.labels)
        self.change()
        return 200

    def set_count(self, value):
        """As UpdateCounter: 64-bit numbers are strings in JSON. Returns the status."""
        if not isinstance(value, str) or not value.isdigit() or int(value) > self.options.capacity:
            return 400
        self.count = int(value)
        self.change()
        return 200

    def watch_health(self):
        """As Agones counts: so many periods without a word, and the game server is Unhealthy, for good."""
        while not self.over.wait(0.1):
            silent = time.monotonic() - (self.last_health or time.monotonic())
            if silent > self.options.health_period * self.options.health_failures and self.state in ("Ready", "Allocated"):
                self.state = "Unhealthy"
                self.change()
                self.tell(state=self.state, silent=round(silent, 2))

    def read_commands(self):
        for line in sys.stdin:
            words = line.split(None, 1)
            if words and words[0] == "mode":
                self.mode = words[1].split()
            elif words and words[0] == "gameserver":
                self.text = words[1].rstrip("\n") if len(words) > 1 else None
            elif words and words[0] == "watch":
                self.watch = words[1].strip()
                self.watch_ends += self.watch == "end"
                self.change()
            self.tell(command=line.strip()[:60])
        self.over.set()
        self.change()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    gateway = None

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def misbehave(self):
        """1 when the mode has answered, or refused to."""
        mode = self.gateway.mode
        if mode[0] == "slow":
            self.gateway.over.wait(float(mode[1]))
        elif mode[0] == "hang":
            while self.gateway.mode[0] == "hang" and not self.gateway.over.wait(0.05):
                pass
        elif mode[0] == "error":
            self.answer(500, b'{"error":"not today"}')
            return 1
        elif mode[0] == "garbage":
            self.answer(200, bytes(range(256)) * 4)
            return 1
        elif mode[0] == "empty":
            self.answer(200, b"")
            return 1
        elif mode[0] == "huge":
            self.answer(200, b"[" * HUGE_BYTES)
            return 1
        elif mode[0] == "reset":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return 1
        return 0

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def stream(self):
        """An object now, and one with each change, until one of us ends."""
        gateway = self.gateway
        ends, seen = gateway.watch_ends, None
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while not gateway.over.is_set() and gateway.watch_ends == ends:
                with gateway.changed:
                    gateway.changed.wait_for(lambda: seen != gateway.version or gateway.over.is_set(), 5)
                    if seen == gateway.version:
                        continue
                    seen = gateway.version
                    line = json.dumps({"result": gateway.gameserver()}).encode() + b"\n"
                if gateway.watch == "garbage":
                    line = b"that is no JSON\n"
                if gateway.watch_ends == ends and gateway.watch != "quiet":
                    self.chunk(line[:20])  # no object comes in one piece: whoever reads has to put it together
                    self.chunk(line[20:])
            self.chunk(b"")
        except OSError:
            pass
        self.close_connection = True

    def do_PATCH(self):
        gateway = self.gateway
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        known = self.path == "/%s/counters/players" % gateway.options.counters
        gateway.tell(call=self.path[1:], method="PATCH", known=known, body=body.decode("utf-8", "replace"), mode=gateway.mode[0])
        if self.misbehave():
            return
        if not known:
            self.answer(404, b'{"code":5,"message":"Not Found"}')
            return
        try:
            status = gateway.set_count(json.loads(body)["count"])
        except (ValueError, KeyError, TypeError):
            status = 400
        answer = {"name": "players", "count": str(gateway.count), "capacity": str(gateway.options.capacity)}
        self.answer(status, json.dumps(answer if status == 200 else {"code": 11, "message": "out of range"}).encode())

    def allocate(self, body):
        try:
            status = self.gateway.allocate_from_outside(json.loads(body or b"{}"))
        except (ValueError, AttributeError):
            status = 400
        self.answer(status, b"{}")

    def do_GET(self):
        gateway = self.gateway
        if self.path == "/watch/gameserver":
            gateway.tell(call=self.path[1:], method="GET", known=True, mode=gateway.mode[0])
            if not self.misbehave():
                self.stream()
            return
        known = self.path == "/gameserver"
        gateway.tell(call=self.path[1:], method="GET", known=known, mode=gateway.mode[0])
        if self.misbehave():
            return
        if not known:
            self.answer(404, b'{"code":5,"message":"Not Found"}')
            return
        text = gateway.text if gateway.text is not None else json.dumps(gateway.gameserver())
        self.answer(200, text.encode("utf-8", "surrogateescape"))

    def do_POST(self):
        gateway = self.gateway
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/outside/allocate":
            self.allocate(body)
            return
        known = self.path in STATES or self.path == "/health"
        good = known and self.headers.get("Content-Type") == "application/json" and body == b"{}"
        if good and gateway.mode[0] in ("ok", "slow"):
            gateway.call(self.path)
        gateway.tell(call=self.path[1:], method="POST", known=known, good=good, mode=gateway.mode[0], state=gateway.state)
        if self.misbehave():
            return
        if good:
            self.answer(200, b"{}")
        else:
            self.answer(400 if known else 404, b'{"code":3,"message":"that is no call of the SDK"}')


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a game server that ends in the middle of a call is no news here


def parse_options():
    parser = argparse.ArgumentParser(description="a stand-in for the REST gateway of the Agones SDK")
    parser.add_argument("--port", type=int, default=9358, help="0: any (9358)")
    parser.add_argument("--name", default="fleet-abcde-12345")
    parser.add_argument("--game-address", default="127.0.0.1", help="what players dial")
    parser.add_argument("--game-port", type=int, default=40000)
    parser.add_argument("--health-period", type=float, default=5.0)
    parser.add_argument("--health-failures", type=int, default=3)
    parser.add_argument("--counters", default="v1beta1", choices=("v1beta1", "v1alpha1", "none"), help="where the counter of players is (v1beta1)")
    parser.add_argument("--capacity", type=int, default=64, help="of that counter")
    parser.add_argument("--commands", action="store_true", help="read commands from standard input, and end with it")
    return parser.parse_args()


def main():
    gateway = Gateway(parse_options())
    Handler.gateway = gateway
    server = Server(("127.0.0.1", gateway.options.port), Handler)
    print("listening on 127.0.0.1:%d" % server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=gateway.watch_health, daemon=True).start()
    if gateway.options.commands:
        threading.Thread(target=gateway.read_commands, daemon=True).start()
    try:
        gateway.over.wait()
    except KeyboardInterrupt:
        gateway.over.set()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
