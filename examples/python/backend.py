#!/usr/bin/env python3
"""The token backend in Python: the endpoint of examples/backend/backend.c, by Python's standard library and netcode.py.

    make build/libnetcode.so
    python3 examples/python/backend.py --listen 127.0.0.1:8080 --key-file game.key --players players \\
        --server-credential-file servers.credential

It knows the players, hears from the servers or reads them in a file, and gives each player who asks a connect token for
the servers with the most free slots:

    POST /v1/connect-token   Authorization: Bearer CREDENTIAL; no body, or {"region", "server", "avoid"}, each optional
    POST /v1/servers         a server's report, once a second, with the servers' own credential
    GET /healthz             200 where there is a server to send players to, else 503
    GET /metrics             Prometheus text, with the names of backend.c's

It speaks plain HTTP on loopback: TLS is the business of the proxy in front of it. The files are those of backend.c, and
so are statuses and JSON. Needs Python 3.9 or newer.
"""

import argparse
import base64
import bisect
import hashlib
import hmac
import http.server
import io
import ipaddress
import itertools
import json
import math
import os
import re
import secrets
import signal
import socket
import stat
import sys
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import netcode  # noqa: E402

DEFAULT_PROTOCOL_ID = 0x1122334455667788
MAX_CREDENTIAL_BYTES = 512
MAX_SERVER_CREDENTIALS = 4  # so that a new one can come before the old one goes
MAX_PLAYERS = 1000000
MAX_SERVERS = 256  # that report, and as many in the file
LISTED_SLOTS = 32  # of a server in the file that does not say how many it has
MAX_CONNECTIONS = 256
MAX_LINE_BYTES = 511
MIN_CREDENTIAL_BYTES = 16  # that --hash takes: the hash of a shorter one, a password, gives it away
MAX_NAME_BYTES = 63
MAX_HEAD_BYTES = 16384  # a request's line and headers
MAX_BODY_BYTES = 8192
# Who sends more than a body may have is heard out up to here, so that the answer is read and not lost in a reset.
MAX_DRAINED_BYTES = 1048576
SERVER_SILENT_SECONDS = 5.0  # a server that was not heard for so long is not picked
MAX_JSON_DEPTH = 1000
RETRY_SECONDS = 2  # Retry-After where no server has a free slot
LAST_ANSWERS_SECONDS = 2.0  # for requests in progress when a signal ends us
DURATION_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # of the histogram, seconds

# Why a request was refused: the name in the JSON, the HTTP status, the sentence.
REFUSALS = {
    "not_found": (404, "There is nothing at this address"),
    "method_not_allowed": (405, "This address takes another method: see Allow"),
    "no_credential": (401, "Say who you are: Authorization: Bearer and your credential"),
    "unknown_credential": (401, "This credential is not known here"),
    "too_large": (413, "The body is too large"),
    "head_too_large": (431, "The request's line and headers are too large"),
    "bad_request": (400, "This is no HTTP request that can be understood"),
    "not_json": (400, "The body is no JSON object"),
    "wrong_field": (400, "A field is missing, unknown, there twice, or has a value that it can not have"),
    "wrong_protocol_id": (400, "This backend serves another protocol id"),
    "rate_limited": (429, "You ask too often: see Retry-After"),
    "no_server": (503, "No server that fits has a free slot: see Retry-After"),
    "too_many_servers": (503, "This backend knows as many servers as it can"),
    "internal": (500, "The backend could not do it"),
}

WORD = re.compile(r"[A-Za-z0-9._-]{1,63}")
WORD_OR_ADDRESS = re.compile(r"[A-Za-z0-9._:%\[\]-]{1,63}")


class Refusal(Exception):
    """What ends a request early."""

    def __init__(self, name: str, detail: str = "", retry_after: int = 0, allow: str = "", close: bool = False):
        super().__init__(name)
        self.name, self.detail, self.retry_after, self.allow, self.close = name, detail, retry_after, allow, close


class FilesError(Exception):
    """A file can not be used; the text says which and why."""


# ---- files ----


def open_file(path: str, forbidden: int, advice: str) -> io.BufferedReader:
    """Opens a file unless others than its owner may do with it what `forbidden` says."""
    try:
        file = open(path, "rb")
    except OSError as error:
        raise FilesError("%s %s" % (path, error.strerror)) from None
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and not status.st_mode & forbidden:
        return file
    file.close()
    raise FilesError("%s %s" % (path, advice))


def read_lines(file: io.BufferedReader) -> "List[Tuple[int, bytes]]":
    """(number, line) without empty lines and notes; FilesError with the number where one is too long."""
    lines = []
    for number, line in enumerate(file, 1):
        if len(line.rstrip(b"\n")) > MAX_LINE_BYTES:
            raise FilesError("is wrong in line %d: it is too long" % number)
        line = line.strip()
        if line and not line.startswith(b"#"):
            lines.append((number, line))
    return lines


def hash_credential(credential: bytes) -> Optional[bytes]:
    """What we keep of a credential: BLAKE2b of 32 bytes."""
    if not 1 <= len(credential) <= MAX_CREDENTIAL_BYTES:
        return None
    return hashlib.blake2b(credential, digest_size=32).digest()


def read_server_credentials(path: str) -> List[bytes]:
    advice = "is refused, because it is no file, or others than its owner can use it: chmod 600"
    with open_file(path, stat.S_IRWXG | stat.S_IRWXO, advice) as file:
        try:
            lines = read_lines(file)
        except FilesError as error:
            raise FilesError("%s %s" % (path, error)) from None
    if not 1 <= len(lines) <= MAX_SERVER_CREDENTIALS:
        raise FilesError("%s holds no servers' credential, or more than %d" % (path, MAX_SERVER_CREDENTIALS))
    return [hashlib.blake2b(line, digest_size=32).digest() for _, line in lines]


class Player:
    """One line of the players file, and what he has used up."""

    __slots__ = ("hash", "client_id", "name", "allowance", "refilled_at", "home")

    def __init__(self, hash_: bytes, client_id: int, name: bytes, rate: int):
        self.hash, self.client_id, self.name = hash_, client_id, name
        self.allowance, self.refilled_at = float(rate), time.monotonic()
        self.home = ""  # the server that headed his last token

    def take_allowance(self, rate: int) -> int:
        """0 when he may ask now; else in how many seconds."""
        now, per_second = time.monotonic(), rate / 60.0
        self.allowance = min(float(rate), self.allowance + (now - self.refilled_at) * per_second)
        self.refilled_at = now
        if self.allowance < 1.0:
            return math.ceil((1.0 - self.allowance) / per_second)
        self.allowance -= 1.0
        return 0


PLAYER_LINE = re.compile(rb"([0-9a-fA-F]{64})[ \t]+([0-9]{1,20})[ \t]+((?! )[^\x00-\x1f\x7f]{1,63}(?<! ))")


def read_players(path: str, rate: int) -> Dict[bytes, Player]:
    """{credential's hash: player} from lines "credential-hash client_id name"."""
    players: Dict[bytes, Player] = {}
    ids = set()
    with open_file(path, stat.S_IWOTH, "is refused, because it is no file, or everyone can write to it") as file:
        try:
            lines = read_lines(file)
        except FilesError as error:
            raise FilesError("%s %s" % (path, error)) from None
    for number, line in lines:
        match = PLAYER_LINE.fullmatch(line)
        client_id = int(match.group(2)) if match else 0
        if not match or client_id >= 2**64 or len(players) >= MAX_PLAYERS:
            raise FilesError("%s is wrong in line %d: credential-hash client_id name" % (path, number))
        player = Player(bytes.fromhex(match.group(1).decode("ascii")), client_id, match.group(3), rate)
        if player.hash in players or client_id in ids:
            raise FilesError("%s holds player %d twice, or another one with the same credential" % (path, client_id))
        players[player.hash] = player
        ids.add(client_id)
    return players


# ---- servers ----


class Server(NamedTuple):
    """A server, as it reported last, or as the file says."""

    name: str
    address: netcode.Address  # how it knows itself
    dialled: List[netcode.Address]  # what players dial
    slots: int
    clients: int
    draining: bool
    heard_at: float
    listed: bool = False  # it stands in the file, and never reported

    def is_silent(self) -> bool:
        return time.monotonic() - self.heard_at > SERVER_SILENT_SECONDS

    def is_in_region(self, region: str) -> bool:
        """ "eu-1" and "eu-west-1" stand in the region "eu", and so does a server that is called "eu"."""
        return self.name == region or self.name.startswith(region + "-")

    def is_called(self, name: str) -> bool:
        """Servers go by their name, or by an address at which players dial them."""
        if self.name == name:
            return True
        try:
            return netcode.Address(name) in self.dialled
        except netcode.AddressError:
            return False


def read_listed(path: str) -> Dict[str, Server]:
    """{name: server} from lines "address [name [slots]]". Without a name it goes by its address."""
    listed: Dict[str, Server] = {}
    with open_file(path, stat.S_IWOTH, "is refused, because it is no file, or everyone can write to it") as file:
        try:
            for number, line in read_lines(file):
                server = parse_listed(number, line.decode("latin-1"))
                if server.name in listed or any(server.address == other.address for other in listed.values()):
                    raise FilesError("is wrong in line %d: this name or this address stands there already" % number)
                if len(listed) == MAX_SERVERS:
                    raise FilesError("is wrong in line %d: no more than %d servers fit" % (number, MAX_SERVERS))
                listed[server.name] = server
        except FilesError as error:
            raise FilesError("%s %s" % (path, error)) from None
    return listed


def parse_listed(number: int, line: str) -> Server:
    words = re.split("[ \t]+", line)
    address = read_address(words[0])
    slots = words[2] if len(words) > 2 else str(LISTED_SLOTS)
    why = ""
    if address is None or is_wildcard(address):
        why = "first comes ADDRESS:PORT or [IPV6]:PORT, as players dial it"
    elif len(words) > 1 and not WORD.fullmatch(words[1]):
        why = "the name is up to 63 letters, digits, dots, dashes and underscores"
    elif len(words) > 3 or not re.fullmatch("[0-9]{1,9}", slots) or not 1 <= int(slots) <= netcode.MAX_SLOTS:
        why = "the slots are a number from 1 to 65535, and the last word"
    if why or address is None:
        raise FilesError("is wrong in line %d: %s" % (number, why))
    name = words[1] if len(words) > 1 else str(address)
    return Server(name, address, [address], int(slots), 0, False, math.inf, True)


class Files(NamedTuple):
    """What the files say. SIGHUP makes new ones, and takes them only as a whole."""

    key: netcode.PrivateKey  # wiped when it is not used any more
    server_hashes: List[bytes]
    listed: Dict[str, Server]  # those of the file, but for who has reported since
    players: Dict[bytes, Player]


def read_files(options: argparse.Namespace) -> Files:
    try:
        key = netcode.PrivateKey.from_file(options.key_file)
    except netcode.KeyFileError as error:
        raise FilesError(str(error)) from None
    hashes = read_server_credentials(options.server_credential_file) if options.server_credential_file else []
    listed = read_listed(options.servers) if options.servers else {}
    return Files(key, hashes, listed, read_players(options.players, options.rate))


# ---- JSON that comes in ----


def reject_constant(name: str) -> None:
    raise ValueError("%s is no JSON" % name)


def parse_object(body: bytes) -> List[Tuple[str, Any]]:
    """The members of the JSON object, those that are there twice too."""

    class Members(list):
        """Distinguishes an object from an array."""

    try:
        text = body.decode("utf-8-sig")
        members = json.loads(text, object_pairs_hook=Members, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        raise Refusal("not_json") from None
    # backend.c takes neither: zeros end its strings, and its parser has this limit. Python's depends on the version.
    if not isinstance(members, Members) or "\\u0000" in text or depth_of(text) > MAX_JSON_DEPTH:
        raise Refusal("not_json")
    return members


def depth_of(text: str) -> int:
    """How deep the arrays and objects of well-formed JSON lie in each other."""
    shape = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    return max(itertools.accumulate((char in "[{") - (char in "]}") for char in shape), default=0)


def read_wish(body: bytes) -> Dict[str, str]:
    """What a player asks for: region, server, avoid."""
    wish: Dict[str, str] = {}
    if not body:
        return wish
    for name, value in parse_object(body):
        if name not in ("region", "server", "avoid"):
            raise Refusal("wrong_field", "only region, server and avoid are known")
        pattern = WORD if name == "region" else WORD_OR_ADDRESS
        if name in wish or not isinstance(value, str) or not pattern.fullmatch(value):
            raise Refusal("wrong_field", "%s is a name%s, once" % (name, "" if name == "region" else " or an address"))
        wish[name] = value
    return wish


def read_address(value: Any) -> Optional[netcode.Address]:
    try:
        address = netcode.Address(value) if isinstance(value, str) else None
    except netcode.AddressError:
        return None
    return address if address and address.port else None


def is_wildcard(address: netcode.Address) -> bool:
    return address.host in ("0.0.0.0", "::")


def read_dialled(value: Any, address: netcode.Address) -> Optional[List[netcode.Address]]:
    """The public addresses, or where there are none the server's own."""
    if type(value) is not list or len(value) > netcode.MAX_PUBLIC_ADDRESSES:  # an object is a list to isinstance
        return None
    dialled = [read_address(item) for item in value] or [address]
    return None if any(item is None or is_wildcard(item) for item in dialled) else dialled  # type: ignore[return-value]


def read_count(value: Any, low: int, high: int) -> Optional[int]:
    """A whole number of JSON, 5 or 5.0. True and false are numbers to Python, but not to JSON."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if low <= value <= high and value == int(value) else None


def read_protocol_id(value: Any) -> Optional[int]:
    if not isinstance(value, str) or not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19}|0", value):
        return None
    number = int(value, 0)
    return number if number < 2**64 else None


def read_report(body: bytes, protocol_id: int) -> Server:
    """A server's report. What is not known is left alone: servers may be newer than we."""
    report = dict(reversed(parse_object(body)))
    name, address = report.get("name"), read_address(report.get("address"))
    if not isinstance(name, str) or not WORD.fullmatch(name):
        raise Refusal("wrong_field", "name is up to 63 letters, digits, dots, dashes and underscores")
    if address is None:
        raise Refusal("wrong_field", "address is ADDRESS:PORT")
    dialled = read_dialled(report.get("public_addresses", []), address)
    if dialled is None:
        raise Refusal(
            "wrong_field", "public_addresses, and address where there are none, are up to 32 that players can dial"
        )
    slots = read_count(report.get("slots"), 1, netcode.MAX_SLOTS)
    if slots is None:
        raise Refusal("wrong_field", "slots is a number from 1 to 65535")
    clients = read_count(report.get("clients"), 0, slots)
    if clients is None:
        raise Refusal("wrong_field", "clients is a number from 0 to slots")
    draining = report.get("draining", False)
    if not isinstance(draining, bool):
        raise Refusal("wrong_field", "draining is true or false")
    theirs = read_protocol_id(report.get("protocol_id"))
    if theirs is None:
        raise Refusal("wrong_field", "protocol_id is a string with a number, 0x... or decimal")
    if theirs != protocol_id:
        raise Refusal("wrong_protocol_id")
    return Server(name, address, dialled, slots, clients, draining, time.monotonic())


# ---- what is asked ----


class App:
    """Players, servers and the rules between them. One lock for all of it."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.files = read_files(options)
        self.servers: Dict[str, Server] = {}
        self.promised: Dict[str, int] = {}  # tokens that a server headed since its last report
        self.lock = threading.Lock()
        self.tokens = self.reports = self.cut = 0
        self.refusals = dict.fromkeys(REFUSALS, 0)
        self.reloads = {"good": 0, "failed": 0}
        self.durations = [0] * (len(DURATION_BOUNDS) + 1)
        self.duration_sum = 0.0
        self.start_time = time.monotonic()

    def say(self, text: str) -> None:
        """One line of the log. Never a credential, a token or a key."""
        try:
            print("%9.3f  %s" % (time.monotonic() - self.start_time, text), flush=True)
        except OSError:
            pass  # who read the log is gone, or the disk is full: players are served all the same

    def say_files(self, what: str) -> None:
        counts = len(self.files.players), len(self.files.listed), len(self.files.server_hashes)
        self.say("%s: %d players, %d servers, %d servers' credentials, the key" % ((what,) + counts))

    def reload(self) -> None:
        """Reads the files again: all of them or nothing. What players have used up, and where they play, stays."""
        try:
            files = read_files(self.options)
        except FilesError as error:
            self.reloads["failed"] += 1
            self.say("error: %s" % error)
            self.say("error: the files could not be read again; what was read before stays")
            return
        with self.lock:
            known = {player.client_id: player for player in self.files.players.values()}
            for player in files.players.values():
                old = known.get(player.client_id)
                if old:
                    player.allowance, player.refilled_at, player.home = old.allowance, old.refilled_at, old.home
            for name in files.listed:
                self.promised.pop(name, None)
            self.files = files
            for server in self.servers.values():
                self.unlist(server)
        self.reloads["good"] += 1
        self.say_files("read again")

    def all_servers(self) -> List[Server]:
        return [*self.servers.values(), *self.files.listed.values()]

    def unlist(self, report: Server) -> None:
        """A server that reports is what it says, and no longer what the file says."""
        for listed in list(self.files.listed.values()):
            if listed.name == report.name or listed.address in report.dialled:
                del self.files.listed[listed.name]

    def free_slots(self, server: Server) -> int:
        return max(0, server.slots - server.clients - self.promised.get(server.name, 0))

    def fits(self, server: Server, player: Player, wish: Dict[str, str]) -> bool:
        """A full one fits where his last token led to it: the slot that he lost in a crash may be his own."""
        return (
            not server.draining
            and not server.is_silent()
            and ("region" not in wish or server.is_in_region(wish["region"]))
            and ("server" not in wish or server.is_called(wish["server"]))
            and (self.free_slots(server) > 0 or player.home == server.name)
        )

    def choose(self, player: Player, wish: Dict[str, str]) -> List[Server]:
        """The servers for his token: most free slots first; what he would rather avoid goes last."""

        def order(server: Server) -> Tuple[bool, int, str]:
            return "avoid" in wish and server.is_called(wish["avoid"]), -self.free_slots(server), server.name

        fitting = [server for server in self.all_servers() if self.fits(server, player, wish)]
        return sorted(fitting, key=order)[: self.options.servers_per_token]

    def promise(self, server: Server) -> None:
        """A server in the file reports no players that leave: when all of its slots were given away, it is empty."""
        self.promised[server.name] = self.promised.get(server.name, 0) + 1
        if server.listed and not self.free_slots(server):
            self.promised[server.name] = 0

    def connect_token(self, credential: Optional[bytes], body: Optional[bytes]) -> Dict[str, Any]:
        """The answer to a player. body None: there was too much of it."""
        with self.lock:
            hash_ = hash_credential(credential) if credential is not None else None
            if hash_ is None:
                raise Refusal("no_credential")
            player = self.files.players.get(hash_)
            if player is None or not hmac.compare_digest(player.hash, hash_):
                raise Refusal("unknown_credential")
            seconds = player.take_allowance(self.options.rate)
            if seconds:
                raise Refusal("rate_limited", retry_after=seconds)
            if body is None:
                raise Refusal("too_large")
            servers = self.choose(player, read_wish(body))
            if not servers:
                raise Refusal("no_server", retry_after=RETRY_SECONDS)
            token = self.mint(player, servers)
            self.promise(servers[0])
            player.home = servers[0].name
            self.tokens += 1
        # 64-bit ids are strings, because JavaScript's numbers end at 2^53.
        return {
            "client_id": str(player.client_id),
            "protocol_id": "0x%016x" % self.options.protocol_id,
            "connect_token": base64.b64encode(token).decode("ascii"),
            "expires_at": netcode.connect_token_info(token).expire_timestamp,
            "server_time": int(time.time()),
        }

    def mint(self, player: Player, servers: List[Server]) -> bytes:
        pairs = [(dialled, server.address) for server in servers for dialled in server.dialled]
        pairs = pairs[: netcode.MAX_SERVERS_PER_CONNECT]
        try:
            return netcode.generate_connect_token(
                [pair[0] for pair in pairs],
                internal_addresses=[pair[1] for pair in pairs],
                client_id=player.client_id,
                protocol_id=self.options.protocol_id,
                private_key=self.files.key,
                expire_seconds=self.options.expire,
                timeout_seconds=self.options.timeout,
                user_data=player.name,  # so the server knows it, and only from us
            )
        except netcode.NetcodeError as error:
            self.say("error: no token for %d: %s" % (player.client_id, error))
            raise Refusal("internal") from None

    def report(self, credential: Optional[bytes], body: Optional[bytes]) -> Dict[str, Any]:
        """The answer to a server."""
        with self.lock:
            hash_ = hash_credential(credential) if credential is not None else None
            if hash_ is None:
                raise Refusal("no_credential")
            # All of them are looked at, so that the time does not tell which one it was.
            if not sum(hmac.compare_digest(known, hash_) for known in self.files.server_hashes):
                raise Refusal("unknown_credential")
            if body is None:
                raise Refusal("too_large")
            self.take_report(read_report(body, self.options.protocol_id))
        return {"status": "ok"}

    def take_report(self, server: Server) -> None:
        known = self.servers.get(server.name)
        if known is None and len(self.servers) >= MAX_SERVERS:
            self.forget_one()
        if known is None or known.is_silent():
            self.say("server %s is heard: %d slots, %d clients" % (server.name, server.slots, server.clients))
        self.servers[server.name] = server
        self.promised[server.name] = 0
        self.unlist(server)
        self.reports += 1

    def forget_one(self) -> None:
        """The one that has been silent longest: servers that end and start by other names must not shut new ones out."""
        oldest = min(self.servers.values(), key=lambda server: server.heard_at)
        if not oldest.is_silent():
            raise Refusal("too_many_servers", retry_after=RETRY_SECONDS)
        del self.servers[oldest.name]
        del self.promised[oldest.name]

    def census(self) -> Tuple[Dict[str, int], int]:
        """How many servers there are of each state, and the free slots of those that can be picked."""
        counts, free = {"open": 0, "full": 0, "draining": 0, "silent": 0}, 0
        for server in self.all_servers():
            slots = self.free_slots(server)
            state = "silent" if server.is_silent() else "draining" if server.draining else "open" if slots else "full"
            counts[state] += 1
            free += slots if state == "open" else 0
        return counts, free

    def health(self) -> Tuple[int, Dict[str, Any]]:
        """Healthy: there is a server to send players to, or at least one that is full."""
        with self.lock:
            counts, free = self.census()
        serving = counts["open"] + counts["full"]
        status = 200 if serving else 503
        return status, {"status": "ok" if serving else "no_server", "servers": serving, "free_slots": free}

    def count_duration(self, seconds: float) -> None:
        with self.lock:
            self.durations[bisect.bisect_left(DURATION_BOUNDS, seconds)] += 1
            self.duration_sum += seconds

    def metrics(self) -> str:
        """Prometheus text."""

        def labelled(label: str, counts: Dict[str, int]) -> Dict[str, Any]:
            return {'{%s="%s"}' % (label, value): count for value, count in counts.items()}

        with self.lock:
            servers, free = self.census()
            sums = list(itertools.accumulate(self.durations))
            bounds = ["%g" % bound for bound in DURATION_BOUNDS] + ["+Inf"]
            durations: Dict[str, Any] = {'_bucket{le="%s"}' % bound: count for bound, count in zip(bounds, sums)}
            durations.update({"_sum": "%.9g" % self.duration_sum, "_count": sums[-1]})
            rows: List[Tuple[str, str, str, Dict[str, Any]]] = [
                ("tokens_issued_total", "counter", "Connect tokens that players got.", {"": self.tokens}),
                ("refusals_total", "counter", "Requests that were refused.", labelled("reason", self.refusals)),
                ("reports_total", "counter", "Servers' reports that were taken.", {"": self.reports}),
                ("servers", "gauge", "Servers, by what they can be used for.", labelled("state", servers)),
                ("free_slots", "gauge", "Free slots of the open servers.", {"": free}),
                ("players", "gauge", "Players in the file.", {"": len(self.files.players)}),
                ("reloads_total", "counter", "Times that the files were read again.", labelled("result", self.reloads)),
                ("connections_cut_total", "counter", "Connections that were idle or slow too long.", {"": self.cut}),
                ("request_duration_seconds", "histogram", "From a request's line to its answer's end.", durations),
            ]
        text = ""
        for name, kind, about, values in rows:
            text += "# HELP netcode_backend_%s %s\n# TYPE netcode_backend_%s %s\n" % (name, about, name, kind)
            text += "".join("netcode_backend_%s%s %s\n" % (name, suffix, values[suffix]) for suffix in values)
        return text


# ---- HTTP ----


class HeadReader:
    """The connection as http.server reads a request's line and headers from it: MAX_HEAD_BYTES in all."""

    def __init__(self, file: Any):
        self.file = file
        self.left = MAX_HEAD_BYTES

    def readline(self, _limit: int = -1) -> bytes:
        begun = self.left < MAX_HEAD_BYTES
        line = self.file.readline(self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise Refusal("head_too_large", close=True)
        if not line.endswith(b"\n") and (begun or line):
            raise OSError("the head ends early")
        # The standard library takes a lone CR for the end of a line, and a proxy may not: then two see two requests.
        if b"\0" in line or b"\r" in line.replace(b"\r\n", b""):
            raise Refusal("bad_request", close=True)
        return line


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection. Each request on it is routed, answered, and never logged."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "Backend"  # type: ignore[assignment]

    def version_string(self) -> str:
        """What the header Server says: nothing about versions."""
        return "netcode-backend"

    def setup(self) -> None:
        self.timeout = self.server.app.options.request_seconds + 5  # cut_slow comes before, and counts
        super().setup()
        self.connection_file = self.rfile

    def handle_one_request(self) -> None:
        """As the base class has it, with a limit for the head, and with answers in JSON whatever goes wrong."""
        self.close_connection, begun = True, 0.0
        self.command, self.request_version, self.requestline = "", "HTTP/1.1", ""
        self.rfile = HeadReader(self.connection_file)  # type: ignore[assignment]
        try:
            self.raw_requestline = self.rfile.readline(MAX_HEAD_BYTES)
            if not self.raw_requestline:
                return
            begun = time.monotonic()
            self.server.begin()
            if self.parse_request():
                self.check_head()
                self.rfile = self.connection_file
                self.answer()
            self.wfile.flush()
        except Refusal as refusal:
            self.refuse(refusal)
        except (OSError, ValueError):
            self.close_connection = True  # it was cut, by the other side or for being slow
        finally:
            self.rfile = self.connection_file
            if begun:
                self.server.app.count_duration(time.monotonic() - begun)
                self.server.end(self.connection)

    def check_head(self) -> None:
        """The standard library leaves out what it can not read, with the length of the body if that stands there."""
        folded = any("\n" in value for value in self.headers.values())
        hosts = self.headers.get_all("Host", [])
        if self.headers.defects or folded or (self.request_version != "HTTP/1.0" and len(hosts) != 1):
            raise Refusal("bad_request", close=True)

    def answer(self) -> None:
        """Routes one request."""
        routes = {"/v1/connect-token": "POST", "/v1/servers": "POST", "/healthz": "GET", "/metrics": "GET"}
        try:
            body = self.read_body()
            path = self.requestline.split()[1].partition("?")[0]  # self.path has one slash where it began with two
            if path not in routes:
                raise Refusal("not_found")
            if self.command != routes[path] and (self.command != "HEAD" or routes[path] != "GET"):
                raise Refusal("method_not_allowed", allow="POST" if routes[path] == "POST" else "GET, HEAD")
            if path == "/healthz":
                status, content = self.server.app.health()
                self.send(status, content, retry_after=0 if status == 200 else RETRY_SECONDS)
            elif path == "/metrics":
                self.send(200, self.server.app.metrics())
            else:
                app = self.server.app
                take = app.connect_token if path == "/v1/connect-token" else app.report
                self.send(200, take(self.credential(), body))
        except Refusal as refusal:
            self.refuse(refusal)

    def credential(self) -> Optional[bytes]:
        """The bearer's credential. None when there is none. X-Forwarded-For is ignored."""
        value = self.headers.get("Authorization", "")
        if value[:7].lower() != "bearer ":
            return None
        return value[7:].strip(" ").encode("latin-1", "replace")

    def read_body(self) -> Optional[bytes]:
        """The body, read to its end so that the connection can go on; None when there is too much of it."""
        lengths = self.headers.get_all("Content-Length", ["0"])
        if "Transfer-Encoding" in self.headers:
            return self.read_chunks()
        if len(lengths) != 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise Refusal("bad_request", close=True)
        left = int(lengths[0])
        if left > MAX_DRAINED_BYTES:
            raise Refusal("too_large", close=True)
        body = self.read_exactly(left)
        return body if len(body) == left else None

    def read_exactly(self, count: int) -> bytes:
        """Reads so many bytes, and keeps them if a body may have as many."""
        data, left = b"", count
        while left:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                raise OSError("the body ends early")
            left -= len(piece)
            if count <= MAX_BODY_BYTES:
                data += piece
        return data

    def read_chunks(self) -> Optional[bytes]:
        """A body in chunks. Who states a length as well might mean another end of it than a proxy in between does."""
        codings = self.headers.get_all("Transfer-Encoding", [])
        if [coding.strip().lower() for coding in codings] != ["chunked"] or "Content-Length" in self.headers:
            raise Refusal("bad_request", close=True)
        lines, body, total = HeadReader(self.rfile), b"", 0
        while True:
            match = re.fullmatch(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[^\r\n]*)?\r\n", lines.readline())
            if not match:
                raise Refusal("bad_request", close=True)
            size = int(match.group(1), 16)
            total += size
            if total > MAX_DRAINED_BYTES:
                raise Refusal("too_large", close=True)
            if not size:
                break
            piece = self.read_exactly(size)
            body = body + piece if total <= MAX_BODY_BYTES else b""
            if self.rfile.read(2) != b"\r\n":
                raise Refusal("bad_request", close=True)
        while lines.readline() not in (b"\r\n", b"\n", b""):
            pass  # trailers say nothing to us
        return body if total <= MAX_BODY_BYTES else None

    def send(self, status: int, content: Union[Dict[str, Any], str], allow: str = "", retry_after: int = 0) -> None:
        """JSON, or the text of the metrics."""
        is_text = isinstance(content, str)
        body = (content if is_text else json.dumps(content, separators=(",", ":"))).encode("ascii")
        self.request_version = "HTTP/1.1"  # HTTP/0.9 had no headers, and is what a line of nonsense is taken for
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8" if is_text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == 401:
            self.send_header("WWW-Authenticate", 'Bearer realm="netcode"')
        if allow:
            self.send_header("Allow", allow)
        if retry_after:
            self.send_header("Retry-After", str(retry_after))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, refusal: Refusal) -> None:
        status, text = REFUSALS[refusal.name]
        message = "%s%s." % (text, ": " + refusal.detail if refusal.detail else "")
        with self.server.app.lock:
            self.server.app.refusals[refusal.name] += 1
        self.close_connection = self.close_connection or refusal.close
        try:
            self.send(status, {"error": refusal.name, "message": message}, refusal.allow, refusal.retry_after)
        except OSError:
            self.close_connection = True

    def send_error(self, code: int, message: Any = None, explain: Any = None) -> None:
        """What the base class finds wrong with a request, as JSON."""
        names = {413: "too_large", 414: "head_too_large", 431: "head_too_large"}
        self.refuse(Refusal(names.get(code, "bad_request"), close=True))

    def handle_expect_100(self) -> bool:
        """Says go on only where the body will be read."""
        lengths = self.headers.get("Content-Length", "0")
        if re.fullmatch("[0-9]{1,18}", lengths) and int(lengths) > MAX_DRAINED_BYTES:
            self.send_error(413)
            return False
        return super().handle_expect_100()

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        """Nothing: what is asked for is the players' own business, and headers hold credentials."""


class Backend(http.server.ThreadingHTTPServer):
    """A thread for each connection, up to a limit; who takes longer than a request may is cut, however busily."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, app: App, address: netcode.Address):
        self.app = app
        self.address_family = socket.AF_INET if address.type == netcode.AddressType.IPV4 else socket.AF_INET6
        self.connections: Dict[socket.socket, float] = {}
        self.packets_in_flight = 0
        self.mutex = threading.Lock()
        super().__init__((address.host, address.port), Handler)

    def server_bind(self) -> None:
        """Without the base class's look-up of our own name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Beyond the limit a connection is closed at once: a thread for each of them is what would be hurt."""
        with self.mutex:
            if len(self.connections) >= MAX_CONNECTIONS:
                return False
            self.connections[request] = time.monotonic()
        return True

    def shutdown_request(self, request: Any) -> None:
        with self.mutex:
            self.connections.pop(request, None)
        super().shutdown_request(request)

    def begin(self) -> None:
        with self.mutex:
            self.packets_in_flight += 1

    def end(self, connection: socket.socket) -> None:
        with self.mutex:
            self.packets_in_flight -= 1
            if connection in self.connections:
                self.connections[connection] = time.monotonic()

    def cut_slow(self) -> None:
        """A byte now and then would keep a timeout of the socket from coming."""
        oldest = time.monotonic() - self.app.options.request_seconds
        with self.mutex:
            slow = [connection for connection, since in self.connections.items() if since < oldest]
            self.connections.update(dict.fromkeys(slow, math.inf))  # each is cut once
        self.app.cut += len(slow)
        for connection in slow:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has just ended by itself

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line, and the others go on. The text of an exception could hold what was sent, so its kind must do."""
        self.app.say("error: a connection ended by %s" % getattr(sys.exc_info()[0], "__name__", "an error"))


# ---- options ----


def number(low: int, high: int) -> Any:
    def parse(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError("%s is no number from %d to %d" % (text, low, high))
        return int(text)

    return parse


def protocol_id_option(text: str) -> int:
    value = read_protocol_id(text)
    if value is None:
        raise argparse.ArgumentTypeError("%s is no 64-bit number" % text)
    return value


def parse_options(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="backend.py",
        description="Gives players connect tokens, for the servers that report to it.",
        epilog="backend.py --credential makes a credential; backend.py --hash [CLIENT_ID NAME] < FILE makes of a "
        "credential its hash, or a line of the players file. Key and credential files are refused when others than "
        "their owner can use them. SIGHUP reads all files again, SIGINT and SIGTERM end it.",
    )
    parser.add_argument("--listen", default="127.0.0.1:8080", metavar="ADDRESS:PORT", help="loopback, port 0 for any")
    parser.add_argument("--allow-remote", action="store_true", help="lets --listen be no loopback address")
    parser.add_argument("--key-file", required=True, help="the private key: 32 bytes, or the same in hex or base64")
    parser.add_argument("--players", required=True, help='lines "credential-hash client_id name"')
    parser.add_argument("--server-credential-file", help="the servers' credential, to report with; up to four lines")
    parser.add_argument("--servers", help='lines "address:port [name [slots]]"; this, or the credential, or both')
    parser.add_argument("--protocol-id", type=protocol_id_option, default=DEFAULT_PROTOCOL_ID)
    parser.add_argument("--expire", type=number(1, 86400), default=30, help="seconds to connect with a token")
    parser.add_argument("--timeout", type=number(1, 3600), default=5, help="seconds of silence that end a connection")
    parser.add_argument("--rate", type=number(1, 100000), default=30, help="requests per player and minute")
    parser.add_argument("--servers-per-token", type=number(1, 32), default=3)
    parser.add_argument("--request-seconds", type=number(1, 600), default=10, help="a slower request is cut")
    options = parser.parse_args(arguments)
    if not options.servers and not options.server_credential_file:
        parser.error("--servers or --server-credential-file is required")
    return options


def print_hash(arguments: List[str]) -> int:
    """The hash alone, or the line of a player. The credential comes from standard input: command lines can be read."""
    credential = sys.stdin.buffer.readline(MAX_LINE_BYTES + 1).strip()
    hash_ = hash_credential(credential)
    words = [os.fsencode(word) for word in arguments]
    if len(words) not in (0, 2) or hash_ is None:
        print("backend.py --hash [CLIENT_ID NAME] wants a credential on standard input", file=sys.stderr)
        return 2
    if len(credential) < MIN_CREDENTIAL_BYTES:
        print("backend.py --hash wants a credential that can not be guessed; see --credential", file=sys.stderr)
        return 1
    line = b" ".join([hash_.hex().encode("ascii")] + words)
    match = PLAYER_LINE.fullmatch(line)
    if words and (match is None or match.group(3) != words[1] or int(match.group(2)) >= 2**64):
        print("backend.py --hash takes a CLIENT_ID (decimal) and a NAME, or nothing", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
    return 0


# ---- the backend ----


def listen_address(options: argparse.Namespace) -> netcode.Address:
    address = netcode.Address(options.listen)
    if not ipaddress.ip_address(address.host.strip("[]")).is_loopback and not options.allow_remote:
        raise FilesError(
            "%s is refused, because credentials and tokens would travel in the clear: listen on loopback, behind a "
            "proxy with TLS" % options.listen
        )
    return address


def install_signals() -> Dict[str, bool]:
    """What signals ask for. First of all: a SIGHUP that comes while we start would end us."""
    asked = {"stop": False, "reload": False}

    def ask(what: str) -> Any:
        return lambda *_: asked.update({what: True})

    signal.signal(signal.SIGINT, ask("stop"))
    signal.signal(signal.SIGTERM, ask("stop"))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, ask("reload"))
    return asked


def run(app: App, backend: Backend, asked: Dict[str, bool]) -> None:
    address = netcode.Address(app.options.listen).with_port(backend.server_port)
    print("listening on %s" % address, flush=True)
    app.say_files("read")
    thread = threading.Thread(target=backend.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    while not asked["stop"]:
        time.sleep(0.1)
        backend.cut_slow()
        if asked["reload"]:
            asked["reload"] = False
            app.reload()
    backend.shutdown()
    until = time.monotonic() + LAST_ANSWERS_SECONDS
    while backend.packets_in_flight and time.monotonic() < until:
        time.sleep(0.05)
    backend.socket.close()
    with app.lock:  # not while a token is made
        app.files.key.wipe()  # threads of idle connections hold it still
    app.say("ends: %d tokens issued, %d reports taken" % (app.tokens, app.reports))


def main() -> int:
    if sys.argv[1:] == ["--credential"]:
        print(secrets.token_urlsafe(32))
        return 0
    if sys.argv[1:2] == ["--hash"]:
        return print_hash(sys.argv[2:])
    options = parse_options(sys.argv[1:])
    asked = install_signals()
    try:
        app = App(options)
        backend = Backend(app, listen_address(options))
    except (FilesError, netcode.AddressError, OSError) as error:
        print("backend: %s" % error, file=sys.stderr)
        return 1
    run(app, backend, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
