#!/usr/bin/env python3
"""Tests "find a match" of examples/backend, as real processes on loopback: the module by itself, the endpoints, matches on the backend's
own servers and on those of an Agones allocator, for which a stub stands that holds requests against the OpenAPI document.

    python3 tests/all/match.py             everything
    python3 tests/all/match.py WORD...     the stories of these names, or whose names hold a WORD
    python3 tests/all/match.py --plants    plants a fault in a copy, one at a time: the story that it names must fail

The backend runs under the address and undefined behaviour sanitizers. MATCH_TOP names another tree to test than this one, MATCH_BUILT a folder
with programs that are not built again (and the backend then has no sanitizers)."""

import base64
import concurrent.futures
import http.client
import http.server
import json
import os
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

import fleet
from fleet import LIMIT_SECONDS, Failure, Process, Story, settle, until

HERE = fleet.HERE
TOP = os.environ.get("MATCH_TOP", HERE)
PACKAGES = ["libcurl4-openssl-dev:pc=libcurl", "libmicrohttpd-dev:pc=libmicrohttpd", "libcjson-dev:pc=libcjson", "openssl:openssl",
            "libhiredis-dev:pc=hiredis", "libjansson-dev:pc=jansson", "libssl-dev:pc=libcrypto", "libcjose-dev:pc=cjose", "libsodium-dev:pc=libsodium",
            "redis-server:redis-server", "redis-tools:redis-cli", "nginx-light:nginx", "curl:curl", "pkg-config:pkg-config"]
HASTE = "-DMM_SILENT_SECONDS=4.0 -DMM_PARTY_SECONDS=5.0 -DMM_RETRY_SECONDS=0.3 -DMM_TRIES=8 -DMM_KEEP_SECONDS=6.0".split()
TRIES = 8
SERVERS_CREDENTIAL = "servers-credential-0123456789"
PLAYERS = 80
EXPIRE = 20
UNANSWERED = (429, 502, 503)  # where the backend that finds matches has to be found
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"  # where Debian keeps nginx
fleet.TOP = TOP


class Tools(fleet.Tools):
    def build(self, stories):
        """What these stories need."""
        full = self.flags("libsodium", "libcurl", "libmicrohttpd", "libcjson") + ["-pthread", "-lm"] + self.flags("hiredis", "cjose")
        plain = self.flags("libsodium", "libmicrohttpd", "libcjson") + ["-lm"]
        sodium = self.flags("libsodium")
        sanitize = [] if "MATCH_BUILT" in os.environ else fleet.SANITIZE
        jobs = [("backend", "examples/backend/backend.c", ["-DBACKEND_FULL"] + HASTE + sanitize + full)] if are_large(stories) else []
        jobs += [
            ("backend-plain", "examples/backend/backend.c", sanitize + plain),
            ("server-full", "examples/server.c", ["-DSERVER_FULL"] + full),
            ("client", "examples/client.c", sodium),
            ("token", "examples/token.c", sodium),
        ]
        if story_module in stories:
            jobs += [("matchmaking-san", "tests/backend/matchmaking.c", fleet.SANITIZE + ["-O1"]), ("matchmaking", "tests/backend/matchmaking.c", ["-O2"])]
        self.compile(os.environ.get("MATCH_BUILT"), jobs)

    def players(self, stories):
        """Credentials of all players that these stories have, and the file with their hashes."""
        lines = []
        for number in range(1, PLAYERS + 1 if are_large(stories) else 10):
            result = subprocess.run([self.program("backend-plain"), "--hash", str(1000 + number), "Player %d" % number],
                                    input=credential(number) + "\n", capture_output=True, text=True, check=True)
            lines.append(result.stdout)
        self.put("players", "".join(lines))


def are_large(stories):
    """Some of them take the full backend, or many players."""
    return set(stories) - {story_module, story_refusals, story_duel}


def credential(number):
    return "the-credential-of-player-%d-0123456789" % number


class Backend(Process):
    """The backend with a key, players and files of its own. `through` are words that run it, as env does."""

    def __init__(self, story, modes, *options, servers=None, program="backend", rate=1000, expire=EXPIRE, port=0, through=()):
        tools = story.tools
        self.folder = tools.folder
        if not os.path.exists(tools.path("a.key")):
            tools.key("a.key")
            shutil.copy(os.path.join(os.path.dirname(tools.folder), "players"), tools.path("players"))
            tools.put("servers.credential", SERVERS_CREDENTIAL)
        tools.put("modes", modes)
        command = [tools.program(program), "--listen", "127.0.0.1:%d" % port, "--key-file", "a.key", "--players", "players", "--rate", str(rate)]
        command += ["--expire", str(expire), "--modes", "modes", "--server-credential-file", "servers.credential"]
        if servers:
            tools.put("servers", servers)
            command += ["--servers", "servers"]
        super().__init__(list(through) + command + list(options), cwd=tools.folder)
        self.port = int(self.wait(r"listening on 127\.0\.0\.1:(\d+)").group(1))

    def request(self, method, path, body=None, bearer=None):
        """(status, headers, JSON)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body),
                               {"Authorization": "Bearer " + bearer} if bearer else {})
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, response.headers, json.loads(text) if text.startswith("{") else text
        finally:
            connection.close()

    def report(self, name, port, slots=8, clients=0, **more):
        """One report of a server that need not be there: what the backend answers."""
        value = {"name": name, "address": "127.0.0.1:%d" % port, "slots": slots, "clients": clients, "draining": False, "protocol_id": fleet.PROTOCOL_ID}
        status, _, answer = self.request("POST", "/v1/servers", dict(value, **more), SERVERS_CREDENTIAL)
        if status != 200:
            raise Failure("a report is refused: %r" % answer)
        return answer

    def metric(self, name):
        text = self.request("GET", "/metrics")[2]
        return float(dict(re.findall(r"^netcode_backend_(\S+) (\S+)$", text, re.M)).get(name, "nan"))


class Player:
    """One that looks for a match."""

    def __init__(self, backend, number):
        self.backend, self.number, self.ticket, self.answer = backend, number, None, {}

    def ask(self, mode="duel", regions=None, party=None, size=1):
        self.wish = mode, regions, party, size
        wish = {"mode": mode}
        if regions is not None:
            wish["regions"] = regions
        if party:
            wish["party"] = {"id": party, "size": size}
        return self.send("POST", "/v1/match", wish)

    def send(self, method, path, body=None):
        status, headers, answer = self.backend.request(method, path, body, credential(self.number))
        if status in (200, 202):
            self.ticket, self.answer = answer["ticket"], answer
        return status, headers, answer

    def poll(self):
        """What has become of the ticket: queued, matched, failed; or the status of a refusal."""
        status, _, answer = self.send("GET", "/v1/match/" + self.ticket)
        return answer["status"] if status in (200, 202) else status

    def state(self):
        """The same, when a backend answers: the lease of one that stood still for a while is lost, and soon taken again."""
        states = []
        settle(lambda: states.append(self.poll()) or states[-1] not in UNANSWERED, pause=0.3)
        return states[-1]

    def cancel(self):
        return self.send("DELETE", "/v1/match/" + self.ticket)

    def until(self, *wanted):
        """Polls until it is one of these."""
        states = []
        settle(lambda: states.append(self.poll()) or states[-1] in wanted or states[-1] not in ("queued",) + UNANSWERED, pause=0.4)
        if states[-1] not in wanted:
            raise Failure("player %d is %s and not %s: %r" % (self.number, states[-1], " or ".join(wanted), self.short()))
        return states[-1]

    def short(self):
        return {key: value for key, value in self.answer.items() if key != "connect_token"}

    def reason(self):
        return self.answer.get("reason")

    def token(self, tools):
        return tools.put("token-%d" % self.number, base64.b64decode(self.answer["connect_token"], validate=True))

    def inspect(self, tools):
        result = subprocess.run([tools.program("token"), "inspect", "--key-file", tools.path("a.key"), self.token(tools)], capture_output=True, text=True, check=False)
        return result.stdout


def some(backend, first, count):
    return [Player(backend, number) for number in range(first, first + count)]


def all_until(players, *wanted):
    with concurrent.futures.ThreadPoolExecutor(len(players)) as pool:
        return list(pool.map(lambda player: player.until(*wanted), players))


def are_queued(backend, players, tries):
    """They are, unless all of their tries were over by then: a failed ticket has as many lines in the log."""
    return [player.poll() for player in players] == ["queued"] * len(players) or backend.count("back to the queue") >= tries


def start_server(story, backend, name, *options, slots=32, **more):
    """A real one that reports to the backend."""
    return story.tools.start("--key-file", "a.key", "--slots", str(slots), "--replace", "--name", name, "--report",
                             "http://127.0.0.1:%d/v1/servers" % backend.port, "--report-credential-file", "servers.credential", *options, full=True, **more)


def plays(tools, player):
    """1: his token leads to a server that lets him in, and payloads come back. Returns the address as well."""
    client = Process([tools.program("client"), "--strict", "--count", "10", "--rate", "20", player.token(tools)])
    status = client.ended()
    found = client.find(r"connected to (\S+)")
    return status == 0 and found is not None, found[1].group(1) if found else client.text(4)


# ---- stories ----


def story_module(story):
    """The module by itself: rows, and random players."""
    for program, arguments in (("matchmaking-san", ["7", "6"]), ("matchmaking", ["1", "48"])):
        process = Process([story.tools.program(program)] + arguments)
        status = process.ended(300)
        for _, line in process.lines:
            if line.startswith("ok: "):
                story.check(1, "%s%s" % (line[4:], " (with sanitizers)" if "san" in program else ""))
        story.check(status == 0, program + " comes to its end", process.text(3))


DUEL = "# modes\n\nduel 2 2 regions=eu,us widen=2 expire=300\n"
HERE_ARE_SERVERS = "127.0.0.1:40001 eu-1 64\n127.0.0.1:40002 us-1 64\n"


def story_start(story):
    """What the backend refuses to start with."""
    backend = Backend(story, DUEL, servers=HERE_ARE_SERVERS)
    story.check(backend.end() == 0, "it starts with modes, and ends well", backend.text(3))
    tools = story.tools
    common = [tools.program("backend"), "--listen", "127.0.0.1:0", "--key-file", "a.key", "--players", "players", "--servers", "servers"]

    def refused(status, pattern, *options):
        process = Process(common + list(options), cwd=tools.folder)
        story.check(process.ended() == status and process.find(pattern), "refused: %s" % " ".join(options), process.text(3))

    for text, pattern in (("", "holds no mode"), ("duel 3 2\n", "line 1: the players are a multiple"), ("duel 2 2\n\nduel 4 2\n", "line 3: this name stands"),
                          ("duel 2 2 widen=x\n", "line 1: behind the teams come"), ("duel\n", "line 1: a mode has a name")):
        tools.put("bad-modes", text)
        refused(1, "bad-modes .*" + pattern, "--modes", "bad-modes")
    refused(1, "nowhere", "--modes", "nowhere")
    for url in ("http://127.0.0.1:1", "https://", "https://127.0.0.1:1/path"):
        refused(2, "--allocator is no option, or", "--allocator", url)
    refused(1, "--allocator needs --modes, --allocator-cert and", "--allocator", "https://127.0.0.1:1", "--modes", "modes")
    tools.put("open.key", "x", 0o644)
    tools.put("cert.pem", "x")
    refused(1, "open.key is refused", "--modes", "modes", "--allocator", "https://127.0.0.1:1", "--allocator-cert", "cert.pem", "--allocator-key", "open.key")
    refused(1, "nowhere.pem", "--modes", "modes", "--allocator", "https://127.0.0.1:1", "--allocator-cert", "nowhere.pem", "--allocator-key", "open.key")
    tools.put("good.key", "x", 0o600)
    allocator = ["--allocator", "https://127.0.0.1:1", "--allocator-cert", "cert.pem", "--allocator-key", "good.key"]
    for text, pattern in (("-duel 2 2", "-duel is a mode for --allocator: .* labels"), ("duel_ 2 2", "duel_ .* labels"), ("duel 2 2 regions=eu,us-", "duel .* labels"),
                          ("duel 2 2 fleet=.x", "duel .* labels"), ("duel 2 2 regions=eu,us fleet=duel", "duel .* a Fleet for each region"), ("duel 2 2 fleet=a,b", "duel .* a Fleet for each region")):
        tools.put("modes", text + "\n")
        process = Process(common + ["--modes", "modes"] + allocator, cwd=tools.folder)
        story.check(process.ended() == 1 and process.find(pattern), "refused with --allocator: %s" % text, process.text(3))
    backend = Backend(story, "-duel 2 2\nduel_ 2 2 regions=eu,us- fleet=.x\n", servers=HERE_ARE_SERVERS)
    story.check(backend.end() == 0, "but where nobody makes labels of them they are names", backend.text(3))
    process = Process([tools.program("backend-plain")] + common[1:] + ["--allocator", "https://127.0.0.1:1"], cwd=tools.folder)
    story.check(process.ended() == 2 and process.find("--allocator is no option"), "the plain backend knows no allocator", process.text(3))
    story.check(process.find("--allocator is one of the full backend's: make build/backend-full"), "and says which backend does", process.text(3))


def story_refusals(story):
    """Every refusal, with its status and name."""
    # In CI it is the plain one, where a player who does not ask for 15 s is gone: where the full one is built, that is 4 s.
    program = "backend" if os.path.exists(story.tools.program("backend")) else "backend-plain"
    backend = Backend(story, DUEL + "squad 4 2\n", servers=HERE_ARE_SERVERS, program=program)
    alice, bob, carol = some(backend, 1, 3)
    party = {"id": "party-of-two", "size": 2}
    rows = [
        (401, "no_credential", "POST", "/v1/match", {"mode": "duel"}, None),
        (401, "unknown_credential", "POST", "/v1/match", {"mode": "duel"}, "an unknown credential"),
        (401, "no_credential", "GET", "/v1/match/0123456789abcdef", None, None),
        (405, "method_not_allowed", "GET", "/v1/match", None, credential(1)),
        (405, "method_not_allowed", "POST", "/v1/match/0123456789abcdef", {}, credential(1)),
        (404, "not_found", "GET", "/v1/match/", None, credential(1)),
        (404, "not_found", "GET", "/v1/match/a/b", None, credential(1)),
        (404, "unknown_ticket", "GET", "/v1/match/0123456789abcdef", None, credential(1)),
        (404, "unknown_ticket", "DELETE", "/v1/match/0123456789abcdef", None, credential(1)),
        (413, "too_large", "POST", "/v1/match", "x" * 9000, credential(1)),
        (400, "not_json", "POST", "/v1/match", None, credential(1)),
        (400, "not_json", "POST", "/v1/match", "[]", credential(1)),
        (400, "wrong_field", "POST", "/v1/match", {}, credential(1)),
        (400, "wrong_field", "POST", "/v1/match", {"mode": 1}, credential(1)),
        (400, "wrong_field", "POST", "/v1/match", {"mode": "duel", "rank": 1}, credential(1)),
        (400, "wrong_field", "POST", "/v1/match", '{"mode":"duel","mode":"duel"}', credential(1)),
        (404, "unknown_mode", "POST", "/v1/match", {"mode": "chess"}, credential(1)),
    ]
    for regions in ("eu", [], ["asia"], ["eu", "eu"], [1], {}, {"eu": "near"}, {"asia": 1}, {"eu": -1}, {"eu": 1e9}, None):
        rows.append((400, "unknown_region", "POST", "/v1/match", {"mode": "duel", "regions": regions}, credential(1)))
    rows.append((400, "unknown_region", "POST", "/v1/match", {"mode": "squad", "regions": ["eu"]}, credential(1)))
    for wrong in (1, None, [], {}, {"id": "party-of-two"}, {"size": 2}, {"id": "short", "size": 2}, {"id": "party of two", "size": 2}, {"id": "x" * 64, "size": 2},
                  {"id": "party-of-two", "size": 0}, {"id": "party-of-two", "size": 9}, {"id": "party-of-two", "size": 1.5}, {"id": "party-of-two", "size": "2"},
                  {"id": "party-of-two", "size": 2, "more": 1}):
        rows.append((400, "wrong_party", "POST", "/v1/match", {"mode": "duel", "party": wrong}, credential(1)))
    rows.append((400, "party_too_large", "POST", "/v1/match", {"mode": "duel", "party": party}, credential(1)))
    wrong = []
    for status, name, method, path, body, bearer in rows:
        found, headers, answer = backend.request(method, path, body, bearer)
        if found != status or answer.get("error") != name or headers["Cache-Control"] != "no-store":
            wrong.append((method, path, body, found, answer))
    story.check(not wrong, "%d requests are refused as they should be" % len(rows), wrong[:2])
    status, headers, answer = alice.ask("squad", party="party-of-two", size=2)
    fields = ["mode", "party_here", "party_size", "players_waiting", "players_wanted", "status", "ticket", "waited_seconds"]
    story.check(status == 202 and headers["Retry-After"] == "1" and sorted(answer) == fields, "a good request gets 202, and when to ask again", answer)
    story.check(alice.ask("duel")[2].get("error") == "already_queued", "another wish: already_queued")
    story.check(bob.ask("squad", party="party-of-two", size=1)[2].get("error") == "party_mismatch", "another size: party_mismatch")
    story.check(bob.ask("squad", party="party-of-two", size=2)[0] == 202 and carol.ask("squad", party="party-of-two", size=2)[2].get("error") == "party_full",
                "a third of two: party_full")
    story.check(settle(lambda: backend.metric('match_players_waiting{mode="squad"}') == 2), "the metrics count the players that wait")
    stolen = backend.request("GET", "/v1/match/" + alice.ticket, None, credential(3))
    story.check(stolen[0] == 404 and backend.request("DELETE", "/v1/match/" + alice.ticket, None, credential(3))[0] == 404, "another player's ticket is none", stolen)
    story.check(backend.request("HEAD", "/v1/match/" + alice.ticket, None, credential(1))[0] == 202, "HEAD is as GET")
    begin = time.monotonic()
    for polls in range(200):
        status, headers, answer = alice.send("GET", "/v1/match/" + alice.ticket)
        if status == 429:
            break
    story.check(status == 429 and headers["Retry-After"] == "1" and answer["error"] == "rate_limited", "a player that polls without a pause is refused", answer)
    seconds = time.monotonic() - begin
    story.check(polls <= 10 + 4 * seconds, "after ten, and four a second", (polls, seconds))
    story.check(backend.end() == 0, "it ends well", backend.text(3))
    backend = Backend(story, DUEL, servers=HERE_ARE_SERVERS, program=program, rate=2)
    dave = Player(backend, 4)
    statuses = [dave.ask()[0] for _ in range(3)]
    story.check(statuses == [202, 202, 429] and dave.poll() == "queued", "to ask costs of a player's rate, to poll does not", statuses)
    story.check(backend.end() == 0, "it ends well")


def story_duel(story):
    """Two players, one server that lives: what they are sent, and that they play."""
    tools = story.tools
    expire = 200  # the tokens may be used late, where processes stand still
    backend = Backend(story, DUEL, "--timeout", "60", program="backend-plain", expire=expire)
    server, address = start_server(story, backend, "eu-1")
    until(lambda: backend.metric('servers{state="open"}') == 1, "a server")
    alice, bob = some(backend, 1, 2)
    alice.ask(regions=["eu"])
    story.check(alice.poll() == "queued" and alice.answer["players_wanted"] == 2, "one alone is queued", alice.short())
    begin = time.time()
    bob.ask(regions={"us": 200, "eu": 10})
    all_until([alice, bob], "matched")
    end = time.time()
    a, b = alice.answer, bob.answer
    story.check(a["match"] == b["match"] and re.fullmatch("[0-9a-f]{32}", a["match"]) and {a["team"], b["team"]} == {0, 1}, "two are matched, in two teams", alice.short())
    same = ("server", "region", "players", "mode")
    story.check([a[name] for name in same] == ["eu-1", "eu", 2, "duel"] and [b[name] for name in same] == ["eu-1", "eu", 2, "duel"], "and both get where they play", bob.short())
    text = alice.inspect(tools)
    servers = re.findall(r"^server +(\S+)$", text.split("private part")[0], re.M)
    story.check(servers == [address] and re.search(r"^client id +1001 ", text, re.M), "the token is the player's, for this server alone", text[:600])
    data = bytes.fromhex(re.search(r"^user data +([0-9a-f]+)$", text, re.M).group(1))
    story.check(data == b"Player 1".ljust(64, b"\0") + b"match=%s mode=duel team=%d players=2" % (a["match"].encode(), a["team"]), "the server can read match and team in it", data)
    life = a["expires_at"] - a["server_time"]
    good = begin + expire - 2 <= a["expires_at"] <= end + expire and life <= expire  # two times are cut to seconds
    story.check(good, "it lives as long as the match may begin (%d s)" % life)
    server.wait("match %s: duel, 2 players are on their way" % a["match"])
    story.check(1, "the server has heard of the match by the answer to its report")
    again = alice.ask(regions=["eu"])
    story.check(again[0] == 200 and again[2]["match"] == b["match"], "asked again, it is the same match", alice.short())
    results = [plays(tools, player) for player in (alice, bob)]
    story.check(results == [(True, address)] * 2, "both play there", results)
    server.wait("match %s: all 2 players have come" % a["match"])
    until(lambda: backend.metric("free_slots") == 32, "the server has reported that both have left")
    story.check(alice.cancel()[2].get("reason") == "cancelled" and bob.poll() == "matched", "one that is done says so, and leaves the other alone")
    story.check(alice.ask(regions=["eu"])[0] == 202, "and can look for the next match")
    story.check(backend.metric("matches_total") == 1, "that was one match")
    story.check(server.end() == 0 and backend.end() == 0, "both end well", backend.text(4))


PARTIES = [1, 2, 4, 4, 1, 1, 4, 2, 2, 1, 4, 1, 2, 1, 4, 2, 1, 2, 2, 1, 1, 1, 4, 4, 2, 2, 1, 4, 1, 1, 1]  # which fill teams of four however they are dealt: a three needs a one
assert sum(PARTIES) == 64


def parties_of(backend):
    """64 players in parties of one to four, each with the size of his."""
    found, number = [], 1
    for index, size in enumerate(PARTIES):
        for player in some(backend, number, size):
            player.party, player.size = "the-party-%d" % index if size > 1 else None, size
            found.append(player)
        number += size
    return found


def ask_all(players, mode, regions):
    """All of them at the same time, in no order."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda player: player.ask(mode, regions, player.party, player.size)[0], players[::2] + players[1::2]))


def check_matches(story, players, size):
    """Of players that all have a match: matches are full, parties whole, teams even."""
    matches = {}
    for player in players:
        matches.setdefault(player.answer["match"], []).append(player)
    story.check(all(len(match) == size for match in matches.values()), "%d matches, of %d players each" % (len(matches), size), [len(m) for m in matches.values()])
    even = all(sum(player.answer["team"] == team for player in match) == size // 2 for match in matches.values() for team in (0, 1))
    story.check(even, "in two teams, as large as each other")
    homes = {}
    for player in players:
        if player.party:
            homes.setdefault(player.party, set()).add((player.answer["match"], player.answer["team"]))
    story.check(homes and all(len(home) == 1 for home in homes.values()), "%d parties, each in one match and one team" % len(homes), homes)
    places = {match: {player.answer["server"] for player in members} for match, members in matches.items()}
    story.check(all(len(place) == 1 for place in places.values()), "all of a match on the same server", places)
    return matches


def check_play(story, players, addresses):
    """All connect with their tokens, and end up on the server that they were given."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda player: plays(story.tools, player), players))
    wrong = [(player.number, result) for player, result in zip(players, results) if result != (True, addresses[player.answer["server"]])]
    story.check(not wrong, "all %d play, on the server of their match" % len(players), wrong[:3])


def story_many(story):
    """64 players in parties, over the backend's own servers."""
    backend = Backend(story, "squad 8 2 regions=eu\n")
    started = {name: start_server(story, backend, name) for name in ("eu-1", "eu-2", "eu-3")}
    until(lambda: backend.metric('servers{state="open"}') == 3, "three servers")
    players = parties_of(backend)
    begin = time.monotonic()
    story.check(ask_all(players, "squad", ["eu"]) == [202] * 64, "64 players ask")
    all_until(players, "matched")
    story.check(1, "all are matched, in %.1f s" % (time.monotonic() - begin))
    check_matches(story, players, 8)
    loads = [sum(player.answer["server"] == name for player in players) for name in started]
    story.check(sum(loads) == 64 and max(loads) <= 32, "spread over three servers by their free slots: %s" % loads)
    places = {player.answer["match"]: started[player.answer["server"]][0] for player in players}
    for match, server in places.items():  # who has played and left by then is not counted
        until(lambda m=match, s=server: s.find("match %s: squad, 8 players are on their way" % m), "its server knows of a match")
    check_play(story, players, {name: address for name, (_, address) in started.items()})
    story.check(settle(lambda: all(server.find("match %s: all 8 players have come" % match) for match, server in places.items())),
                "the servers have seen all of their matches")
    for server, _ in started.values():
        story.check(server.end() == 0, "a server ends well", server.text(4))
    story.check(backend.end() == 0, "the backend ends well", backend.text(4))


def story_slots(story):
    """Slots are kept for a match until its players are in."""
    backend = Backend(story, "duel 2 2 expire=60\n")
    backend.report("eu-1", 40001, slots=4)
    players = some(backend, 1, 6)
    for player in players[:4]:
        player.ask()
    all_until(players[:4], "matched")
    answer = backend.report("eu-1", 40001, slots=4)
    sent_back = {match["id"]: match for match in answer["matches"]}
    first = players[0].answer["match"]
    mates = ",".join(sorted(str(1000 + p.number) for p in players[:4] if p.answer["match"] == first))
    story.check(len(sent_back) == 2 and sent_back[first]["clients"].split(",") and ",".join(sorted(sent_back[first]["clients"].split(","))) == mates and sent_back[first]["mode"] == "duel" and
                0 < sent_back[first]["seconds"] <= EXPIRE, "the answer to the server's report names the matches and their players", answer)
    for player in players[4:]:
        player.ask()
    backend.wait("back to the queue: no server has room for all")
    story.check(are_queued(backend, players[4:], TRIES), "a full house of those that are on their way: the next two wait", players[4].short())
    status, _, refusal = backend.request("POST", "/v1/connect-token", None, credential(9))
    story.check(status == 503 and refusal["error"] == "no_server", "and so does one that asks for a token alone", refusal)
    other = backend.report("eu-2", 40002, slots=1)
    story.check("matches" not in other, "a server without a match gets none", other)
    backend.report("eu-1", 40001, slots=4, clients=0, matches=[{"id": first, "players": 2, "seen": 2}])
    all_matched(players[4:])
    story.check(players[4].answer.get("server") == "eu-1", "two have come and gone: their slots are free again", players[4].short())
    backend.report("eu-1", 40001, slots=4)
    refused = players[5].cancel()[2].get("reason"), players[5].ask()
    seconds = int(refused[1][1]["Retry-After"] or 0)
    story.check(refused[0] == "cancelled" and refused[1][0] == 409 and refused[1][2]["error"] == "match_given_up" and 0 < seconds <= EXPIRE,
                "a player that gives up a match gets no other one before its tokens are over", refused[1][2])
    story.check(players[4].poll() == "matched" and backend.metric("free_slots") <= 1, "his slot is kept so long, for he may have a token", backend.metric("free_slots"))
    backend.report("us-1", 40003, slots=64)
    crowd = some(backend, 11, 40)
    for player in crowd:
        player.ask()
    all_until(crowd, "matched")
    known, counts = {}, []
    for turn in range(4):  # two players of each, of whom one has come: its place in the answer is needed for those that the server does not know
        answer = backend.report("us-1", 40003, slots=64, matches=[{"id": match, "seen": 1 + turn % 2} for match in known])
        counts.append(len(answer.get("matches", [])))
        known.update({match["id"]: match for match in answer.get("matches", [])})
    story.check(set(known) == {player.answer["match"] for player in crowd} and counts == [16, 4, 0, 0], "a server with 20 matches hears of all of them, 16 at a time", counts)
    story.check(len(backend.report("us-1", 40003, slots=64).get("matches", [])) == 0, "and of those whose players have all come no more", counts)
    for wrong in (7, [7], [{}], [{"id": first}], [{"id": 7, "seen": 1}], [{"id": first, "seen": -1}], [{"id": first, "seen": 99}], [{"id": first, "seen": "2"}], {"id": first}):
        backend.report("eu-1", 40001, slots=4, matches=wrong)
    story.check(backend.running(), "nonsense in a report's matches does no harm")
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_no_server(story):
    """No server: all back to their place, and after some tries it fails."""
    backend = Backend(story, "duel 2 2 expire=60 regions=eu,us\n")
    alice, bob, carol = some(backend, 1, 3)
    alice.ask()
    bob.ask()
    backend.wait("duel in eu, 2 players, back to the queue: no server has room for all")
    backend.wait("duel in us, 2 players, back to the queue: no server has room for all")
    story.check(are_queued(backend, [alice, bob], 2 * TRIES), "both stay in the queue, while other regions are tried", alice.short())
    carol.ask()
    until(lambda: [player.poll() for player in (carol, alice, bob)][1:] == ["failed"] * 2, "both fail", pause=0.4)  # carol too, or she would be silent
    story.check(alice.reason() == bob.reason() == "no_server" and alice.answer["message"], "after %d tries in each region it fails, with a name" % TRIES, alice.short())
    story.check(settle(lambda: backend.count("back to the queue") == 2 * TRIES), "no more than that", backend.count("back to the queue"))
    story.check(carol.poll() == "queued", "one that came later has tries of its own")
    alice.ask()
    backend.report("us-llg4x-rx6rc", 40001)  # as Agones calls a server of the Fleet "us"
    all_matched([alice, carol])
    story.check(alice.answer.get("region") == "us" and alice.answer["server"] == "us-llg4x-rx6rc", "a server comes: they are matched there", alice.short())
    story.check(backend.metric("matches_given_back_total") >= TRIES, "and it is counted")
    backend.report("us-llg4x-rx6rc", 40001, draining=True)
    dave, erin = some(backend, 4, 2)
    before = backend.count("back to the queue")
    dave.ask()
    erin.ask()
    good = settle(lambda: backend.count("back to the queue") > before) and are_queued(backend, [dave, erin], before + 2 * TRIES)
    story.check(good, "a server that drains is not taken", dave.short())
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_queue(story):
    """Those that vanish, cancel, or wait for a friend that never comes."""
    backend = Backend(story, "duel 2 2 expire=60\nsquad 4 2 expire=9\n", servers=HERE_ARE_SERVERS)
    gone, alice, bob, carol, dave, erin = some(backend, 1, 6)
    gone.ask()
    time.sleep(4.3)  # MM_SILENT_SECONDS
    alice.ask()
    time.sleep(0.5)
    story.check(alice.poll() == "queued", "one that has vanished is matched with no one", alice.short())
    story.check(gone.poll() == "failed" and gone.reason() == "silent", "and learns why, should he come back", gone.short())
    story.check(gone.ask()[0] == 202, "he may ask anew")
    all_until([gone, alice], "matched")
    story.check(1, "and is matched then")

    story.check(bob.ask()[0] == 202 and bob.cancel()[2].get("reason") == "cancelled", "a player that cancels is out")
    carol.ask()
    time.sleep(0.5)
    story.check(carol.poll() == "queued" and bob.poll() == "failed", "and matched with no one")
    story.check(bob.cancel()[0] == 200, "cancelled twice is cancelled")
    carol.cancel()

    for player in (carol, dave):
        player.ask("squad", party="party-of-three", size=2)
    time.sleep(0.3)
    dave.cancel()
    story.check(carol.poll() == "failed" and carol.reason() == "party_left", "a player that leaves its party ends it, and the others are notified", carol.short())
    carol.ask("squad", party="party-of-hope", size=2)
    story.check(carol.answer["party_here"] == 1 and carol.answer["party_size"] == 2, "a member of a party sees how many are here", carol.short())
    for player in (dave, erin):
        player.ask("squad", party="party-of-fate", size=2)
    all_until([carol, dave, erin], "failed")
    story.check(carol.reason() == "party_incomplete", "a party that is never complete ends by itself", carol.short())
    story.check(dave.reason() == "no_match", "a party that finds no match as well", dave.short())
    story.check(settle(lambda: gone.poll() == 404, LIMIT_SECONDS + EXPIRE), "in the end a ticket is forgotten")
    story.check(backend.metric('match_tickets_failed_total{reason="party_incomplete"}') == 1, "the metrics say why tickets fail")
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_widening(story):
    """Other regions after a while, in each player's order; a smaller match where the mode allows one."""
    backend = Backend(story, "duel 2 2 regions=eu,us,asia widen=2 expire=30\nsquad 8 2 min=4 shrink=3 expire=30\nnear 2 2 regions=eu,us,asia\nfar 2 2 regions=eu,us,asia widen=600\n",
                      servers=HERE_ARE_SERVERS + "127.0.0.1:40003 asia-1\n127.0.0.1:40004 any-1\n")
    alice, bob, carol, dave = some(backend, 1, 4)
    alice.ask(regions=["eu", "us"])
    bob.ask("far", regions={"us": 90, "asia": 30})  # only the first region counts, for as long as this takes
    carol.ask(regions=["eu"])
    dave.ask("far", regions=["asia"])
    all_until([alice, carol], "matched")
    story.check(carol.answer["match"] == alice.answer["match"] and alice.answer["region"] == "eu", "one that wants the same is matched at once", alice.short())
    all_until([bob, dave], "matched")
    story.check(bob.answer["region"] == "asia", "by latency as well", bob.short())
    gina, hank = some(backend, 20, 2)
    gina.ask("near", regions={"us": 90, "asia": 30})
    hank.ask("near", regions=["us", "asia"])
    all_until([gina, hank], "matched")
    story.check(gina.answer["region"] == "asia", "where all count at once, it is the nearest of the one that has waited longest", gina.short())
    erin, fred = some(backend, 5, 2)
    begin = time.monotonic()
    erin.ask(regions=["eu", "us"])
    fred.ask(regions=["asia", "us"])
    all_until([erin, fred], "matched")
    seconds = time.monotonic() - begin
    story.check(erin.answer["region"] == fred.answer["region"] == "us" and seconds >= 1.8, "eu and asia meet in us, after %.1f s" % seconds, erin.short())
    squad = some(backend, 10, 5)
    begin = time.monotonic()
    for player in squad:
        player.ask("squad")
    until(lambda: [player.poll() for player in squad].count("matched") == 4, "four are matched", pause=0.4)
    seconds = time.monotonic() - begin
    story.check(squad[0].answer["players"] == 4 and seconds >= 2.8 and squad[4].poll() == "queued", "four of five play after %.1f s" % seconds, squad[0].short())
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_repeated(story):
    """Requests that come again, and answers that are lost: one match for each player."""
    backend = Backend(story, "duel 2 2 expire=60\n", servers=HERE_ARE_SERVERS)
    players = some(backend, 1, 8)

    def lose(player):
        """Sends the request and goes, without waiting for the answer."""
        body = json.dumps({"mode": "duel"})
        with socket.create_connection(("127.0.0.1", backend.port)) as connection:
            connection.sendall(("POST /v1/match HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" %
                                (credential(player.number), len(body), body)).encode())

    jobs = [(lose, player) for player in players for _ in range(4)] + [(lambda player: player.ask(), player) for player in players for _ in range(6)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for job in [pool.submit(function, player) for function, player in jobs]:
            job.result()
    for player in players:
        player.ask()
    all_until(players, "matched")
    matches = [player.answer["match"] for player in players]
    story.check(len(set(matches)) == 4 and all(matches.count(match) == 2 for match in matches), "80 requests of 8 players: 4 matches", matches)
    story.check(backend.metric("matches_total") == 4, "and no more behind the scenes")
    tickets = {player.ticket for player in players}
    for player in players:
        player.ask()
    story.check({player.ticket for player in players} == tickets and [p.answer["match"] for p in players] == matches, "asked again: the same tickets and matches")
    tokens = set()
    for _ in range(3):
        players[0].poll()
        tokens.add(players[0].answer["connect_token"])
        story.check(players[0].answer["match"] == matches[0], "fetched again: a token for the same match")
        time.sleep(0.3)
    story.check(len(tokens) == 3, "each time a new one, as it is not known which got lost")
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_restart(story):
    """The backend is killed and started anew: a player that was queued is notified, and asks again."""
    backend = Backend(story, "duel 2 2 expire=60\n", servers=HERE_ARE_SERVERS)
    alice, bob = some(backend, 1, 2)
    alice.ask()
    backend.send(signal.SIGKILL)
    backend.child.wait()
    port = backend.port
    backend = Backend(story, "duel 2 2 expire=60\n", servers=HERE_ARE_SERVERS, port=port)
    alice.backend = bob.backend = backend
    status, _, answer = alice.send("GET", "/v1/match/" + alice.ticket)
    story.check(status == 404 and answer["error"] == "unknown_ticket", "the old ticket is unknown", answer)
    alice.ask()
    bob.ask()
    all_until([alice, bob], "matched")
    story.check(alice.answer["match"] == bob.answer["match"], "asked again, they are matched")
    backend.send(signal.SIGTERM)
    story.check(backend.ended() == 0, "it ends well", backend.text(4))


# ---- the allocator ----

STRING, BOOLEAN = str, bool
LABELS = {"*": STRING}
PLAYER_SELECTOR = {"minAvailable": STRING, "maxAvailable": STRING}
SELECTOR = {"matchLabels": LABELS, "gameServerState": ("READY", "ALLOCATED"), "players": PLAYER_SELECTOR}
META = {"labels": LABELS, "annotations": LABELS}
# The request of proto/allocation/allocation.proto's OpenAPI document, as POST /gameserverallocation takes it.
REQUEST = {
    "namespace": STRING,
    "multiClusterSetting": {"enabled": BOOLEAN, "policySelector": {"matchLabels": LABELS}},
    "requiredGameServerSelector": SELECTOR,
    "preferredGameServerSelectors": [SELECTOR],
    "scheduling": ("Packed", "Distributed"),
    "metaPatch": META,
    "metadata": META,
    "gameServerSelectors": [SELECTOR],
}
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def misfit(value, schema, where="body"):
    """None, or what does not fit."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return where + " is no object"
        for name, item in value.items():
            if name not in schema and "*" not in schema:
                return "%s.%s is not known" % (where, name)
            wrong = misfit(item, schema.get(name, schema.get("*")), "%s.%s" % (where, name))
            if wrong:
                return wrong
        return None
    if isinstance(schema, list):
        if not isinstance(value, list):
            return where + " is no array"
        return next((wrong for wrong in (misfit(item, schema[0], where + "[]") for item in value) if wrong), None)
    if isinstance(schema, tuple):
        return None if value in schema else where + " is none of " + repr(schema)
    return None if isinstance(value, schema) else where + " has another type"


class Allocator:
    """Stands for agones-allocator: TLS with certificates of both sides. `plan` is how the next requests are answered, then `always`."""

    def __init__(self, story, servers=()):
        self.story, self.servers, self.plan, self.always = story, list(servers), [], "ok"
        self.requests, self.misfits, self.given = [], [], []
        self.lock = threading.Lock()
        self.over, self.release = threading.Event(), threading.Event()
        tools = story.tools
        make_certificates(tools)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tools.path("allocator.pem"), tools.path("allocator.key"))
        context.load_verify_locations(tools.path("ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        allocator = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                allocator.post(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def options(self, ca="ca.pem", name="backend"):
        return ["--allocator", "https://localhost:%d" % self.port, "--allocator-ca", ca, "--allocator-cert", name + ".pem", "--allocator-key", name + ".key"]

    def answer(self, handler, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            handler.close_connection = True

    def check(self, handler, body):
        try:
            value = json.loads(body)
            wrong = misfit(value, REQUEST)
        except ValueError:
            value, wrong = {}, "that is no JSON"
        if handler.path != "/gameserverallocation" or handler.headers.get("Content-Type") != "application/json":
            wrong = "path or type"
        labels = dict(value["gameServerSelectors"][0]["matchLabels"], **value["metadata"]["labels"]) if not wrong else {}
        for name, label in labels.items():
            if not LABEL_VALUE.fullmatch(label) or not LABEL_VALUE.fullmatch(name.replace("agones.dev/", "")):
                wrong = "the label %s=%s is none of Kubernetes'" % (name, label)
        return value, wrong

    def post(self, handler, body):
        value, wrong = self.check(handler, body)
        with self.lock:
            self.requests.append((time.monotonic(), value))
            how = self.plan.pop(0) if self.plan else self.always
        if wrong:
            self.misfits.append(wrong)
            self.answer(handler, 400, {"code": 3, "message": wrong})
            return
        words = how.split()
        if words[0] == "slow":
            self.over.wait(float(words[1]))
        elif words[0] == "held":
            self.release.wait(LIMIT_SECONDS)
        elif words[0] == "late":  # until one that came later has its server
            given = len(self.given)
            until(lambda: len(self.given) > given or self.over.is_set(), "another one has its server")
        if words[0] == "reset":
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        elif words[0] == "garbage":
            self.answer(handler, 200, bytes(range(256)))
        elif words[0] == "json":
            self.answer(handler, 200, json.loads(how[5:]))
        elif words[0] == "status":
            self.answer(handler, int(words[1]), {"code": 8, "message": "there is no available GameServer to allocate"})
        else:
            self.allocate(handler, value)

    def allocate(self, handler, value):
        """A Ready server whose labels fit, by its SDK's gateway; 429 when there is none, as the allocator says it."""
        wanted = value["gameServerSelectors"][0]["matchLabels"]
        with self.lock:
            for server in self.servers:
                if all(server.labels.get(name) == label for name, label in wanted.items()) and server.take(value["metadata"]):
                    self.given.append((server.name, value))
                    self.answer(handler, 200, {"gameServerName": server.name, "ports": [{"name": "other", "port": 1}, {"name": "netcode", "port": server.port}],
                                               "address": "127.0.0.1", "nodeName": "node-1", "source": "local"})
                    return
        self.answer(handler, 429, {"code": 8, "message": "there is no available GameServer to allocate", "details": []})

    def close(self):
        self.over.set()
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


class Paper:
    """A game server that is there for the allocator alone."""

    def __init__(self, name, port, **labels):
        self.name, self.port, self.labels, self.is_ready = name, port, dict({"agones.dev/fleet": "netcode"}, **labels), True

    def take(self, _):
        was_ready, self.is_ready = self.is_ready, False
        return was_ready


class Game(Paper):
    """A real one, with a gateway that stands for Agones' SDK."""

    def __init__(self, story, name, **labels):
        for attempt in range(5):  # its port has to be known before it is bound, and others may take it in between
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            super().__init__(name, port, **labels)
            self.agones = fleet.Agones(story, game_address="127.0.0.1", game_port=port, name=name)
            self.process = story.tools.server("--address", "0.0.0.0:%d" % port, "--echo", "--replace", "--key-file", "a.key", "--slots", "32", "--agones", full=True,
                                              env=self.agones.environment())
            try:
                self.process.wait("listening on")
                return
            except Failure:
                if attempt == 4:
                    raise

    def take(self, metadata):
        return self.agones.outside(metadata) == 200


def make_certificates(tools):
    """An authority, the allocator's certificate and the backend's; and another authority with a certificate of its own."""
    if os.path.exists(tools.path("ca.pem")):
        return
    config = tools.put("openssl.conf", "[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:true\n[leaf]\nsubjectAltName=DNS:localhost\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", config]

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=tools.folder, check=True, capture_output=True)

    for ca, leaves in (("ca", ("allocator", "backend")), ("other-ca", ("outsider",))):
        openssl("req", "-x509", *key, "-extensions", "ca", "-days", "2", "-subj", "/CN=" + ca, "-keyout", ca + ".key", "-out", ca + ".pem")
        for leaf in leaves:
            openssl("req", "-new", *key, "-subj", "/CN=" + leaf, "-keyout", leaf + ".key", "-out", leaf + ".csr")
            openssl("x509", "-req", "-in", leaf + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "2", "-extfile", config, "-extensions", "leaf", "-out", leaf + ".pem")
            os.chmod(tools.path(leaf + ".key"), 0o600)


def story_allocator(story):
    """64 players in parties over an allocator, onto real servers in a fleet, one match each."""
    story.tools.key("a.key")
    shutil.copy(os.path.join(os.path.dirname(story.tools.folder), "players"), story.tools.path("players"))
    story.tools.put("servers.credential", SERVERS_CREDENTIAL)
    games = [Game(story, "fleet-%d" % number, **{"netcode-region": "eu"}) for number in range(1, 9)]
    allocator = Allocator(story, games)
    backend = Backend(story, "squad 8 2 regions=eu,us\n", *allocator.options())
    until(lambda: all(game.agones.state() == "Ready" for game in games), "all games are ready")
    players = parties_of(backend)
    ask_all(players, "squad", ["eu"])
    all_until(players, "matched")
    matches = check_matches(story, players, 8)
    story.check(len(matches) == 8 and len({player.answer["server"] for player in players}) == 8, "each match has a server of its own")
    story.check(not allocator.misfits, "every request fits the OpenAPI document", allocator.misfits[:3])
    name, value = allocator.given[0]
    match = value["metadata"]["labels"]["netcode-match"]
    mates = sorted(str(1000 + player.number) for player in matches[match])
    story.check(value["namespace"] == "default" and value["gameServerSelectors"][0]["matchLabels"] == {"netcode-region": "eu"}
                and value["metadata"]["labels"]["netcode-mode"] == "squad", "it asks for a server in the region", value)
    story.check(sorted(value["metadata"]["annotations"]["netcode-clients"].split(",")) == mates and value["metadata"]["annotations"]["netcode-seconds"] == str(EXPIRE),
                "and names the players, and how long they may take to come", value["metadata"])
    game = next(game for game in games if game.name == name)
    game.process.wait("match %s: squad, 8 players are on their way, for %d s" % (match, EXPIRE))
    story.check(1, "the server learns it by its watch")
    for match, members in matches.items():  # all do: who has played and left by then is not counted
        process = next(game.process for game in games if game.name == members[0].answer["server"])
        until(lambda m=match, p=process: p.find("match %s: squad, 8 players are on their way" % m), "its server knows of a match")
    check_play(story, players, {game.name: "127.0.0.1:%d" % game.port for game in games})
    for game in games:
        game.process.wait("match [0-9a-f]{32}: all 8 players have come")
    story.check(settle(lambda: all(game.agones.state() == "Ready" for game in games)), "when all have come and gone, all servers are ready again", [game.agones.state() for game in games])
    story.check(all(game.agones.names() == ["gameserver", "ready", "ready"] for game in games), "and were not in between", games[0].agones.names())
    story.check(all(game.process.end() == 0 for game in games) and backend.end() == 0, "all end well", backend.text(4))
    allocator.close()


def story_allocator_regions(story):
    """A Fleet for each region, as all servers of one have the same labels; and modes with Fleets of their own."""

    def server(fleet, number, **labels):
        return Paper(fleet + "-llg4x-%d" % number, 40000 + number, **{"agones.dev/fleet": fleet}, **labels)

    eu, us = {"netcode-region": "eu"}, {"netcode-region": "us"}
    allocator = Allocator(story, [server("large-us", 1, **us), server("large-eu", 2, **eu)])
    backend = Backend(story, "duel 2 2 regions=eu,us\nbrawl 2 1 regions=eu,us fleet=large-eu,large-us\ncoop 2 1\n", *allocator.options())

    def match(first, mode, regions, wanted):
        players = some(backend, first, 2)
        for player in players:
            player.ask(mode, regions=regions)
        all_until(players, "matched")
        names = {player.answer["server"] for player in players}
        story.check(len(names) == 1 and names.pop().startswith(wanted + "-llg4x-"), "%s in %s: on a server of the Fleet %s" % (mode, regions, wanted), players[0].short())
        return allocator.given[-1][1]["gameServerSelectors"]

    match(1, "brawl", ["eu"], "large-eu")
    match(3, "brawl", ["us"], "large-us")
    allocator.servers += [server("netcode", 3), server("us", 4, **us), server("eu", 5, **eu), server("us", 6, **us), server("large-eu", 7, **eu), server("netcode", 8)]
    selectors = [match(5, "duel", ["eu"], "eu"), match(7, "duel", ["us"], "us"), match(9, "duel", {"us": 9, "eu": 80}, "us"), match(11, "coop", None, "netcode")]
    story.check([selector[0]["matchLabels"] for selector in selectors] == [eu, us, us, {"agones.dev/fleet": "netcode"}], "they are found by the region, and without regions by the Fleet", selectors)
    selectors = match(13, "brawl", ["eu"], "large-eu")
    story.check(selectors == [{"matchLabels": dict(eu, **{"agones.dev/fleet": "large-eu"}), "gameServerState": "READY"}], "a mode that names Fleets is given no other's", selectors)
    story.check(not allocator.misfits and not backend.count("back to the queue"), "no request is in vain, and each fits the OpenAPI document", allocator.misfits)
    story.check(backend.end() == 0, "it ends well", backend.text(4))
    allocator.close()


def is_together(players):
    """Polled one after the other: once one is matched, all behind him are. Never some with and some without."""
    states = [player.poll() for player in players]
    first = states.index("matched") if "matched" in states else len(states)
    return all(state == "matched" for state in states[first:]), states


def story_allocator_failures(story):
    """An allocator that is late, slow, mad, empty or gone: all or none, and nothing is lost."""
    allocator = Allocator(story, [])
    backend = Backend(story, "duel 2 2 expire=120\nsquad 8 2 expire=120\n", *allocator.options())
    number = 1
    rows = [
        ("none available", "status 429", "the answer was 429"),
        ("the service is down", "status 503", "the answer was 503"),
        ("garbage", "garbage", "the answer is no JSON object"),
        ("a reset", "reset", ""),
        ("no name", 'json {"address":"127.0.0.1","ports":[{"name":"a","port":7}]}', "has no gameServerName"),
        ("a host's name for an address", 'json {"gameServerName":"a","address":"node.example","ports":[{"name":"a","port":7}]}', "has no IP address"),
        ("no port", 'json {"gameServerName":"a","address":"127.0.0.1","ports":[]}', "has no port"),
        ("a port that is none", 'json {"gameServerName":"a","address":"127.0.0.1","ports":[{"name":"a","port":70000}]}', "has no port"),
        ("an array", "json []", "the answer is no JSON object"),
    ]
    for name, how, words in rows:
        allocator.servers, allocator.plan = [Paper("paper-%d" % number, 40000 + number)], [how]
        players = some(backend, number, 2)
        number += 2
        for player in players:
            player.ask()
        backend.wait("duel in any, 2 players, back to the queue: .*" + words)
        all_until(players, "matched")
        story.check(players[0].answer["match"] == players[1].answer["match"] and players[0].answer["server"] == allocator.servers[0].name, "%s: back to the queue, then matched" % name,
                    players[0].short())
    allocator.servers = [Paper("paper-slow", 40100)]
    allocator.plan = ["held"]
    players = some(backend, number, 8)
    before = len(allocator.requests)
    for player in players:
        player.ask("squad")
    until(lambda: len(allocator.requests) > before, "a request")
    busy = [players[0].cancel()[0] for _ in range(2)]
    seen = []

    def are_matched():
        good, states = is_together(players)
        seen.append(good)
        if len(seen) == 4:
            allocator.release.set()
        return states == ["matched"] * 8

    until(are_matched, "all are matched", pause=0.25)
    story.check(all(seen) and len({player.answer["match"] for player in players}) == 1, "slow: at no time some of a match have tokens and some have not (%d looks)" % len(seen))
    story.check(set(busy) == {409}, "and a player that cancels meanwhile is asked to wait", busy)
    allocator.servers = [Paper("paper-late", 40101), Paper("paper-later", 40102)]
    allocator.plan = ["late"]
    players = some(backend, number + 8, 2)
    before = len(allocator.given)
    for player in players:
        player.ask()
    late = until(lambda: [player.poll() for player in players] and backend.find(r"back to the queue: .*imed out after (\d+) milliseconds"), "an allocation is too late", pause=0.3)
    story.check(5000 <= int(late[1].group(1)) < 10000, "too late: back to the queue", backend.text(2))
    all_until(players, "matched")
    story.check(players[0].answer["server"] == players[1].answer["server"] == "paper-late", "the next answer counts", players[0].short())
    until(lambda: len(allocator.given) == before + 2, "the late one is given as well")
    time.sleep(0.5)  # in which the backend could hear it
    story.check([player.poll() for player in players] == ["matched"] * 2 and players[0].answer["server"] == "paper-late" and len(allocator.given) == before + 2,
                "the late answer is no player's match", [name for name, _ in allocator.given][-2:])
    allocator.always = "status 429"
    players = some(backend, number + 10, 2)
    for player in players:
        player.ask()
    all_until(players, "failed")
    story.check([player.reason() for player in players] == ["no_server"] * 2, "none for long: it fails for all of them", players[0].short())
    story.check(len([1 for _, value in allocator.requests if value]) < 60 and not allocator.misfits, "every request fits the OpenAPI document (%d)" % len(allocator.requests), allocator.misfits[:2])
    ids = [value["metadata"]["labels"]["netcode-match"] for _, value in allocator.requests]
    story.check(len(set(ids)) == len(ids), "no match id is used twice")
    allocator.close()
    players = some(backend, number + 12, 2)
    for player in players:
        player.ask()
    all_until(players, "failed")
    story.check(players[0].reason() == "no_server", "gone: the same", players[0].short())
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def system_trusts(tools, ca):
    """Words that run a program on a system whose own authority is this one, or None: it wants a name space for mounts."""
    folder = tools.path("authorities")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(tools.path(ca), folder)
    digest = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", tools.path(ca)], check=True, capture_output=True, text=True).stdout.strip()
    os.symlink(ca, os.path.join(folder, digest + ".0"))
    words = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" /etc/ssl/certs && exec "$@"', folder]
    try:
        result = subprocess.run(words + ["test", "-e", "/etc/ssl/certs/" + ca], check=False, capture_output=True)
    except OSError:
        return None
    return words if result.returncode == 0 else None


def story_allocator_tls(story):
    """The allocator verifies us, and we verify the allocator."""
    allocator = Allocator(story, [Paper("paper-%d" % number, 40000 + number) for number in range(4)])
    rows = [("a wrong authority", allocator.options(ca="other-ca.pem"), ()), ("a certificate that the allocator does not know", allocator.options(name="outsider"), ())]
    through = system_trusts(story.tools, "ca.pem")
    if through:
        rows.append(("an authority that the system alone trusts", allocator.options(ca="other-ca.pem"), through))
    else:
        print("  no name spaces here: the system's authorities stay as they are", flush=True)
    for name, options, words in rows:
        backend = Backend(story, "duel 2 2\n", *options, through=words)
        players = some(backend, 1, 2)
        for player in players:
            player.ask()
        backend.wait("allocator: failed, and is tried again without a word")
        all_until(players, "failed")
        story.check(not allocator.requests and players[0].reason() == "no_server", "%s: nothing is allocated" % name, players[0].short())
        story.check(backend.end() == 0, "it ends well", backend.text(4))
    backend = Backend(story, "duel 2 2\nbrawl 2 1 fleet=large\n", *allocator.options(), "--allocator-namespace", "games")
    allocator.servers.append(Paper("paper-large", 40009, **{"agones.dev/fleet": "large"}))
    players = some(backend, 1, 4)
    for player in players[:2]:
        player.ask()
    for player in players[2:]:
        player.ask("brawl")
    all_until(players, "matched")
    story.check(players[2].answer["server"] == "paper-large" and players[0].answer["server"] != "paper-large", "both right: matched, each mode in its fleet", players[2].short())
    story.check({value["namespace"] for _, value in allocator.requests} == {"games"}, "in the namespace that was given")
    story.check(backend.end() == 0, "it ends well", backend.text(4))
    allocator.close()


class Nginx(Process):
    """nginx with the template, in front of some backends. The socket is ours: nginx takes it over, so no port can be lost to others."""

    def __init__(self, story, *backends):
        tools = story.tools
        make_certificates(tools)
        self.folder = tools.path("nginx")
        with open(os.path.join(TOP, "examples/backend/nginx.conf"), encoding="utf-8") as file:
            text = file.read()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            listener.setblocking(False)  # nginx leaves a socket that it takes over as it is: a worker would wait in accept for others' connections
            self.port = listener.getsockname()[1]
            addresses = " max_fails=3 fail_timeout=1s; server ".join("127.0.0.1:%d" % backend.port for backend in backends)
            for name, value in (("LISTEN", "127.0.0.1:%d" % self.port), ("NAME", "localhost"), ("BACKEND", addresses), ("GATEWAY", "127.0.0.1:9"),
                                ("PAGES", tools.path("pages")), ("SERVERS", "127.0.0.1"), ("CERTIFICATE", tools.path("allocator.pem")), ("CERTIFICATE_KEY", tools.path("allocator.key"))):
                text = text.replace("@%s@" % name, value)
            os.mkdir(self.folder)
            tools.put("nginx/nginx.conf", text)
            super().__init__(["nginx", "-p", self.folder, "-c", "nginx.conf", "-g", "daemon off;"], env=dict(os.environ, NGINX="%d;" % listener.fileno()), pass_fds=[listener.fileno()])
        self.child.kill = self.child.terminate  # however a story ends: only so it takes its workers along
        self.context = ssl.create_default_context(cafile=tools.path("ca.pem"))
        until(lambda: os.path.exists(os.path.join(self.folder, "nginx.pid")), "nginx has begun")

    def request(self, method, path, body=None, bearer=None):
        """As a backend's."""
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=LIMIT_SECONDS, context=self.context)
        try:
            connection.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + bearer})
            response = connection.getresponse()
            return response.status, response.headers, json.loads(response.read())
        finally:
            connection.close()


def story_nginx(story):
    """Through nginx with the template."""
    backend = Backend(story, "duel 2 2\n", servers=HERE_ARE_SERVERS)
    nginx = Nginx(story, backend)
    alice, bob, carol = some(nginx, 1, 3)
    status, headers, _ = alice.ask()
    story.check(status == 202 and headers["Retry-After"] == "1" and headers["Cache-Control"] == "no-store", "a request passes", headers)
    story.check(alice.poll() == "queued", "a poll passes")
    bob.ask()
    all_until([alice, bob], "matched")
    story.check(carol.ask()[0] == 202 and carol.cancel()[2]["reason"] == "cancelled", "and DELETE")
    status, _, answer = carol.send("GET", "/v1/match/unknown")
    story.check(status == 404 and answer["error"] == "unknown_ticket", "what the backend refuses is passed on", answer)

    def log():
        with open(os.path.join(nginx.folder, "access.log"), encoding="utf-8") as file:
            return file.read()

    good = settle(lambda: "DELETE /v1/match/" in log() and "GET /v1/match/unknown" in log())  # a line is written behind its answer
    story.check(good, "nginx' log has the requests", log())
    story.check(not any(credential(number) in log() for number in (1, 2, 3)), "and no credential", log())
    nginx.send(signal.SIGTERM)
    story.check(nginx.ended() == 0 and backend.end() == 0, "both end well", backend.text(4))


def story_readme(story):
    """The commands of the README's "Find a match"."""
    tools = story.tools
    with open(os.path.join(TOP, "examples/backend/README.md"), encoding="utf-8") as file:
        text = file.read()
    block = re.search(r"^## Find a match\n.*?^```sh\n(.*?)^```", text, re.M | re.S).group(1)
    os.mkdir(tools.path("build"))
    os.symlink(tools.program("backend-plain"), tools.path("build/backend"))
    tools.key("game.key")
    tools.put("servers", "127.0.0.1:40000\n")
    before = "umask 077\nbuild/backend --credential >alice.credential\nbuild/backend --hash 1001 Alice <alice.credential >players\n"
    for _ in range(5):  # its port has to be known before it is bound, and others may take it in between
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        start, ask, see = block.replace("8082", str(port)).split("sleep 1\n")  # a second is enough but for a slow machine
        start += "until curl -so /dev/null http://127.0.0.1:%d; do kill -0 $!; sleep 0.1; done\n" % port
        ask += 'while curl -sH "Authorization: Bearer $(cat bob.credential)" $match/$(cat ticket) | grep -q queued; do sleep 0.3; done\n'
        process = Process(["sh", "-e", "-c", before + start + ask + see + "\nkill $!\n"], cwd=tools.folder)
        status = process.ended()
        if not process.find("Address already in use"):
            break
    story.check(status == 0 and process.find('"status":"matched","mode":"duel".*"server":"127.0.0.1:40000"'), "they find a match", process.text(5)[:600])
    reasons = set(re.findall(r"^    X\( (\w+), +\"", open(os.path.join(TOP, MODULE), encoding="utf-8").read(), re.M)) - {"none"}
    named = set(re.findall(r"`(\w+)`", re.search(r"failed` with a `reason`: (.*)", text).group(1))) & reasons
    story.check(named == reasons, "it names every reason for which a ticket fails", reasons - named)


# ---- several backends ----


class Redis(Process):
    def __init__(self, story):
        self.socket = story.tools.path("redis.sock")
        super().__init__(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", story.tools.folder])
        self.wait("Ready to accept connections|ready to accept connections")

    def cli(self, *words):
        result = subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True, check=True)
        return result.stdout.strip()


def backends_on(story, redis, count, modes, *options, **more):
    """They share a Redis, and nginx stands in front of them."""
    backends = [Backend(story, modes, "--redis", "unix:redis.sock", *options, **more) for _ in range(count)]
    nginx = Nginx(story, *backends)
    first_leader(backends)
    return backends, nginx


def leader_of(backends):
    active = [backend for backend in backends if backend.running() and backend.metric("match_active") == 1]
    return active[0] if len(active) == 1 else None


def first_leader(backends):
    return until(lambda: leader_of(backends), "one backend finds matches")


def patiently(player, *arguments):
    """Asks until a backend finds matches: after a backend was killed that takes as long as its lease."""
    statuses = []
    settle(lambda: statuses.append(player.ask(*arguments)[0]) or statuses[-1] in (200, 202), pause=0.3)
    return statuses[-1]


def outcome(player):
    """As a game does it: polls, waits where none answers, asks again where its ticket has failed or is unknown. The state, and how often it had
    to ask again."""
    states = []

    def is_matched():
        states.append(player.poll())
        if states[-1] in (404, "failed"):
            player.ask(*player.wish)
        return states[-1] == "matched"

    settle(is_matched, pause=0.4)
    return states[-1], sum(state in (404, "failed") for state in states)


def all_matched(players):
    """Whoever has to ask again meanwhile."""
    with concurrent.futures.ThreadPoolExecutor(len(players)) as pool:
        return [state for state, _ in pool.map(outcome, players)] == ["matched"] * len(players)


def story_several(story):
    """Three backends, one Redis, one queue: each request goes to any of them."""
    redis = Redis(story)
    with open(os.path.join(TOP, "examples/fleet/REDIS.md"), encoding="utf-8") as file:
        rights = file.read().split("    user backend on >PASSWORD ")[1].split("\n")[0]
    redis.cli("acl", "setuser", "backend", "on", ">the-password-of-redis", *rights.replace("\\\n", " ").split())
    story.tools.put("redis.password", "the-password-of-redis")
    backends, nginx = backends_on(story, redis, 3, "duel 2 2 expire=60\nsquad 8 2 regions=eu expire=60\n", "--redis-user", "backend", "--redis-password-file", "redis.password",
                                  servers=HERE_ARE_SERVERS)
    story.check(sum(backend.metric("match_active") for backend in backends) == 1, "one of three finds matches, with the rights that REDIS.md gives")
    leader = first_leader(backends)
    other = next(backend for backend in backends if backend != leader)
    status, headers, answer = other.request("POST", "/v1/match", {"mode": "duel"}, credential(1))
    story.check(status == 502 and answer["error"] == "not_matchmaker" and headers["Retry-After"] == "1", "the others say so", answer)
    players = some(nginx, 1, 8)
    statuses = [player.ask()[0] for player in players]
    all_until(players, "matched")
    story.check(statuses == [202] * 8 and len({player.answer["match"] for player in players}) == 4, "over nginx all are matched, two by two", statuses)
    records = redis.cli("HVALS", "netcode:match:tickets").split("\n")
    story.check(len(records) == 8 and not any("TkVUQ09E" in record or "credential" in record for record in records), "their tickets are in Redis, without tokens", records[:1])

    waiting = some(nginx, 11, 3)  # a party of three in a match of eight
    for player in waiting:
        player.ask("squad", ["eu"], "the-party-of-three", 3)
    until(lambda: redis.cli("HLEN", "netcode:match:tickets") == "11", "eleven tickets in Redis")
    tickets = [player.ticket for player in waiting]
    before = [player.answer["match"] for player in players]
    leader.send(signal.SIGKILL)
    leader.child.wait()
    begin = time.monotonic()
    redis.cli("PEXPIRE", "netcode:match:lease", "3600000")  # as a clock leaves it that is set back by an hour
    bounded = settle(lambda: -1 != int(redis.cli("PTTL", "netcode:match:lease")) <= 3000)  # -1 is one without an end
    story.check(bounded, "the one is killed, the clock of Redis is set back by an hour, and no lease lasts longer than one", redis.cli("PTTL", "netcode:match:lease"))
    story.check(settle(lambda: leader_of(backends)), "and after %.1f s another one finds matches" % (time.monotonic() - begin))
    story.check([player.state() for player in waiting] == ["queued"] * 3 and [player.ticket for player in waiting] == tickets,
                "a player that was queued still is, with the same ticket", waiting[0].short())
    story.check([player.state() for player in players] == ["matched"] * 8 and [player.answer["match"] for player in players] == before, "a player that was matched has the same match")
    late = some(nginx, 21, 5)
    statuses = [patiently(player, "squad", ["eu"]) for player in late]
    all_until(waiting + late, "matched")
    story.check(len({player.answer["match"] for player in waiting + late}) == 1 and len({player.answer["team"] for player in waiting}) == 1, "and is matched with those that come later", statuses)

    leader = first_leader(backends)
    leader.send(signal.SIGSTOP)
    awake = [backend for backend in backends if backend != leader]
    pair = some(first_leader(awake), 31, 2)
    for player in pair:
        patiently(player)
    story.check(all_matched(pair), "one that hangs does not hold up what the next one does", pair[0].short())
    leader.send(signal.SIGCONT)
    story.check(settle(lambda: leader.metric("match_active") == 0 and leader.find("stops finding matches")), "one that was only asleep finds no more matches when it wakes", leader.text(3))
    story.check(pair[0].answer["match"] == pair[1].answer["match"] and settle(lambda: leader_of(backends)), "there is one queue")
    for backend in backends:
        if backend.running():
            story.check(backend.end() == 0, "it ends well", backend.text(5))


def keep(redis, number, version=None, state=1, joined=None, ended="0.000", match="-", mode="duel", party="-", size=1, place=""):
    """A ticket in Redis, as a backend writes it, or would not. Its id is returned."""
    ticket = "%032x" % number
    redis.cli("HSET", "netcode:match:tickets", str(1000 + number), "%d 1 %s %d 0 0 %d %s %s %s any 0 0 %s %s %d any %s" % (
        (version or time.time()) * 1e6, ticket, state, number, joined or "%.3f" % time.time(), ended, match, mode, party, size, place))
    return ticket


def story_records(story):
    """What stands in Redis is checked: more members than a party has, versions and times of a clock that is ahead, times that are none."""
    redis = Redis(story)
    players = some(None, 1, 22)
    for player in players[:9]:
        player.ticket = keep(redis, player.number, mode="big", party="the-party-of-eight", size=8)
    ahead = players[9:11]
    for player in ahead:
        player.ticket = keep(redis, player.number, version=time.time() + 3600)
    timeless = players[12:20]
    for player, (state, joined, ended) in zip(timeless, ((3, None, "nan"), (3, None, "1e400"), (3, None, "9e9"), (1, "nan", "0"), (1, "1e300", "0"), (1, "-1e300", "0"), (4, None, "inf"), (1, "soon", "0"))):
        player.ticket = keep(redis, player.number, state=state, joined=joined, ended=ended, match="%032x" % 1, mode="solo", place="eu-1 127.0.0.1:40001 127.0.0.1:40001")
    matched, gave_up = players[20:]  # by a clock that was set back by an hour since
    for player, state in ((matched, 3), (gave_up, 4)):
        player.ticket = keep(redis, player.number, state=state, ended="%.3f" % (time.time() + 3600 + EXPIRE), match="%032x" % player.number, mode="solo",
                             place="ap-1 127.0.0.1:40007 127.0.0.1:40007")
    backend = Backend(story, "duel 2 2 expire=60\nbig 16 2 expire=60\nsolo 2 2 expire=60 widen=1\n", "--redis", "unix:redis.sock", servers=HERE_ARE_SERVERS)
    for player in players:
        player.backend = backend
    first_leader([backend])
    states = [player.state() for player in players[:9]]
    story.check(sorted(map(str, states)) == ["404"] + ["queued"] * 8, "nine of a party of eight: eight are queued, and the ninth is refused", states)
    state = matched.state()
    life = matched.answer["expires_at"] - matched.answer["server_time"] if state == "matched" else None
    story.check(life and 0 < life <= EXPIRE, "a match of an hour ahead has tokens that live as long as one's of now", (state, life))
    status, headers, answer = gave_up.ask("solo")
    story.check(status == 409 and answer["error"] == "match_given_up" and 0 < int(headers["Retry-After"]) <= EXPIRE, "who gave one up waits no longer than others", (status, answer, headers["Retry-After"]))
    kept = {match["id"]: match["seconds"] for match in backend.report("ap-1", 40007).get("matches", [])}
    story.check(set(kept) == {"%032x" % player.number for player in (matched, gave_up)} and max(kept.values()) <= EXPIRE, "and their slots are kept no longer", kept)
    story.check(settle(lambda: ended_at(redis, matched) < time.time() + EXPIRE), "which the next backend reads as well", ended_at(redis, matched))
    all_until(ahead, "matched")
    story.check([stored(redis, player)[1] for player in ahead] == [3, 3] and stored(redis, ahead[0])[0] > time.time() + 3000, "a player that was queued by a clock that is ahead is matched, and Redis has it",
                [stored(redis, player) for player in ahead])
    story.check(not backend.find("newer tickets than ours"), "with versions that are newer at once")
    late = players[11]
    late.ask("big")
    until(lambda: stored(redis, late)[1] == 1, "Redis has the ticket")
    keep(redis, late.number, version=time.time() + 7200, mode="big")  # as another backend whose clock is ahead
    late.cancel()
    story.check(settle(lambda: stored(redis, late)[1] == 4) and stored(redis, late)[0] > time.time() + 7000 and backend.find("Redis has newer tickets than ours"),
                "a ticket whose record is newer is written again, with a line", stored(redis, late))
    story.check([player.state() for player in timeless] == [404] * 8, "a ticket with a time that is none, or years away, is none", [player.short() for player in timeless if player.answer][:2])
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def stored(redis, player):
    """(version, state) of his record, or (0, 0)."""
    words = redis.cli("HGET", "netcode:match:tickets", str(1000 + player.number)).split()
    return (int(words[0]) / 1e6, int(words[3])) if len(words) > 3 else (0, 0)


def ended_at(redis, player):
    return float(redis.cli("HGET", "netcode:match:tickets", str(1000 + player.number)).split()[8])


def story_errors(story):
    """Redis answers errors to what is written, and then does not."""
    redis = Redis(story)
    backend = Backend(story, "duel 2 2 expire=60\n", "--redis", "unix:redis.sock", servers=HERE_ARE_SERVERS)
    first_leader([backend])
    alice, bob, carol = some(backend, 1, 3)
    for player in (alice, bob, carol):  # one after the other: each in a place of its own, and back when all are free
        player.ask()
        player.cancel()
    story.check(settle(lambda: redis.cli("HKEYS", "netcode:match:tickets") == ""), "what has ended is deleted in Redis as well", redis.cli("HKEYS", "netcode:match:tickets"))
    carol.ask()
    story.check(settle(lambda: stored(redis, carol)[1] == 1), "one comes back, and has another place")
    redis.cli("RENAME", "netcode:match:tickets", "aside")
    redis.cli("SET", "netcode:match:tickets", "no hash")
    carol.cancel()
    answered, line = 'store_commands_total{result="answered"}', "Redis does not take our tickets: WRONGTYPE"
    until(lambda: backend.count(line), line)
    before = backend.metric(answered)
    time.sleep(1.5)
    commands = backend.metric(answered) - before
    story.check(commands < 30 and backend.count(line) == 1, "while it does, there is a line, and no more than %d commands in 1.5 s" % commands, backend.text(3))
    redis.cli("RENAME", "aside", "netcode:match:tickets")
    story.check(settle(lambda: stored(redis, carol)[1] == 4), "a write that failed is done later, and deletes no ticket of a player that came back", redis.cli("HGETALL", "netcode:match:tickets"))
    redis.cli("CONFIG", "SET", "maxmemory", "1")
    story.check(settle(lambda: backend.metric("match_active") == 0 and backend.count("it is full")), "a Redis that is full takes no lease")
    status, headers, answer = alice.ask()
    story.check(status == 503 and answer["error"] == "store_full" and headers["Retry-After"] == "1", "which the answer names", answer)
    story.check(backend.count("Redis does not take our lease: it is full") == 1, "and a line", backend.text(3))
    redis.cli("CONFIG", "SET", "maxmemory", "0")
    story.check(patiently(alice) == 202, "and when it has room again, all is well", backend.text(3))
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_revoked(story):
    """A player is revoked while he is in the queue."""
    redis = Redis(story)
    backend = Backend(story, "duel 2 2 expire=60\nsquad 4 2 expire=60\n", "--redis", "unix:redis.sock", servers=HERE_ARE_SERVERS)
    first_leader([backend])
    alice, bob, carol, dave, erin, fred = some(backend, 1, 6)
    alice.ask()
    dave.ask("squad", party="the-party-of-two", size=2)
    erin.ask("squad", party="the-party-of-two", size=2)
    for player in (alice, dave, erin):  # who is revoked may not ask from then on, and who does not ask for four seconds is silent
        player.state()
    words = [story.tools.program("backend"), "revoke"]
    commands = [Process(words + [str(1000 + player.number), "--redis", "unix:redis.sock"], cwd=story.tools.folder) for player in (alice, dave)]
    for player, command in zip((alice, dave), commands):
        story.check(command.ended() == 0, "player %d is revoked" % player.number, command.text(3))
    erin.state()
    bob.ask()
    for player in (fred, Player(backend, 7)):
        player.ask("squad", party="the-other-two", size=2)
    backend.wait("duel in any, 2 players, back to the queue: a player is revoked")
    backend.wait("squad in any, 4 players, back to the queue: a player is revoked")
    story.check(bob.state() == "queued" and fred.state() == "queued", "there is no match with a revoked player: the others are in the queue", bob.short())
    story.check(alice.state() == 403 and settle(lambda: stored(redis, alice)[1] == 4), "and he is not")
    story.check(erin.state() == "failed" and erin.reason() == "party_left", "nor his party, which learns why", erin.short())
    carol.ask()
    all_until([bob, carol], "matched")
    story.check(bob.answer["match"] == carol.answer["match"], "the next that comes is matched with the one that waited")
    story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_several_ends(story):
    """The one that finds matches ends, or sleeps, while it waits for Redis: what it answers then is true."""
    redis = Redis(story)
    backends = [Backend(story, "big 64 1 expire=60\n", "--redis", "unix:redis.sock") for _ in range(2)]
    leader = first_leader(backends)
    other = next(backend for backend in backends if backend != leader)
    players = some(leader, 1, 40)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        redis.send(signal.SIGSTOP)
        answers = [pool.submit(player.ask, "big") for player in players]
        until(lambda: leader.metric("suspended_requests") + sum(answer.done() for answer in answers) == 40, "all wait")  # it refuses what it has not accepted by its end
        leader.send(signal.SIGTERM)
        time.sleep(0.2)
        redis.send(signal.SIGCONT)
        statuses = [answer.result()[0] for answer in answers]
    story.check(leader.ended() == 0 and settle(lambda: leader_of([other])), "it ends well, and the other one finds matches", leader.text(4))
    for player in players:
        player.backend = other
    lost = [player.number for player, status in zip(players, statuses) if status == 202 and player.state() != "queued"]
    story.check(set(statuses) <= {202, 502, 503} and not lost, "no ticket that it gave out is lost: it had %d answers 202" % statuses.count(202), (lost, statuses))

    leader, other = other, Backend(story, "big 64 1 expire=60\n", "--redis", "unix:redis.sock")
    player = Player(leader, 50)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        redis.send(signal.SIGSTOP)
        answer = pool.submit(player.ask, "big")
        until(lambda: leader.metric("suspended_requests") == 1 or answer.done(), "it waits")
        leader.send(signal.SIGSTOP)
        redis.send(signal.SIGCONT)
        first_leader([other])
        leader.send(signal.SIGCONT)
        status = answer.result()[0]
    story.check(status in (502, 503), "one that sleeps longer than its lease while it asks for the player's identity gives out no ticket", (status, player.answer))
    story.check(leader.end() == 0 and other.end() == 0, "both end well", leader.text(4))


def story_several_slots(story):
    """What one backend keeps for matches stays kept when the server's reports come in at another one."""
    Redis(story)
    backends = [Backend(story, "big 8 1 expire=60\n", "--redis", "unix:redis.sock", rate=100000) for _ in range(2)]
    leader = first_leader(backends)
    other = next(backend for backend in backends if backend != leader)
    report = {"name": "eu-1", "address": "127.0.0.1:40001", "slots": 8, "clients": 0, "draining": False, "protocol_id": fleet.PROTOCOL_ID}

    def reports():
        return other.request("POST", "/v1/servers", report, SERVERS_CREDENTIAL)[0]

    players = some(leader, 1, 8)
    story.check(settle(lambda: reports() == 502), "a server reports to the backend that finds no matches, and is asked to try the other one")
    for player in players:
        player.ask("big")
    all_until(players, "matched")
    story.check([player.answer["server"] for player in players] == ["eu-1"] * 8, "it has a match of eight all the same", players[0].short())
    statuses, end = [], time.monotonic() + 4
    over = players[0].answer["expires_at"] - 4  # the slots are kept so long, and a request that was sent before may take its time
    while (time.monotonic() < end or len(statuses) <= 300) and time.time() < over:
        reports()
        statuses += [leader.request("POST", "/v1/connect-token", {"region": "eu"}, credential(20))[0] for _ in range(10)]
        time.sleep(0.02)
    story.check(len(statuses) > 300 and set(statuses) == {503}, "nobody else is given one of its eight slots, in %d tries" % len(statuses), {status: statuses.count(status) for status in set(statuses)})
    for backend in backends:
        story.check(backend.end() == 0, "it ends well", backend.text(4))


def story_several_killed(story):
    """64 players in parties; the backend that finds matches is killed again and again, and Redis is cut: never some with and some without."""
    redis = Redis(story)
    allocator = Allocator(story, [Paper("paper-%d" % number, 40000 + number, **{"netcode-region": "eu"}) for number in range(40)])
    modes = "squad 8 2 regions=eu expire=100\n"
    backends, nginx = backends_on(story, redis, 2, modes, *allocator.options())
    allocator.plan = ["ok", "slow 1.5", "slow 1.5", "status 429", "slow 0.5"]
    players = parties_of(nginx)
    over = threading.Event()

    def disturb():
        for _ in range(3):
            if over.wait(0.7):
                return
            leader = leader_of(backends)
            if leader:
                leader.send(signal.SIGKILL)
                leader.child.wait()
                backends.remove(leader)
                backends.append(Backend(story, modes, "--redis", "unix:redis.sock", *allocator.options(), port=leader.port))
            over.wait(2.0)
        redis.send(signal.SIGSTOP)
        over.wait(1.5)
        redis.send(signal.SIGCONT)

    first = [patiently(player, "squad", ["eu"], player.party, player.size) for player in players[:4]]
    chaos = threading.Thread(target=disturb)
    chaos.start()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        statuses = list(pool.map(lambda player: patiently(player, "squad", ["eu"], player.party, player.size), players))
    story.check(set(statuses) <= {200, 202} and set(first) == {202}, "64 players ask, whoever is alive", statuses)
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        results = list(pool.map(lambda player: outcome(player), players))
    over.set()
    chaos.join()
    story.check([state for state, _ in results] == ["matched"] * 64, "all are matched in the end (%d had to ask again)" % sum(again > 0 for _, again in results),
                [(player.number, player.short()) for player, (state, _) in zip(players, results) if state != "matched"][:3])
    matches = check_matches(story, players, 8)
    written = {}
    for name, value in allocator.given:
        written[value["metadata"]["labels"]["netcode-match"]] = (name, value["metadata"]["annotations"]["netcode-clients"])
    good = all(sorted(written[match][1].split(",")) == sorted(str(1000 + player.number) for player in members) and {player.answer["server"] for player in members} == {written[match][0]}
               for match, members in matches.items())
    story.check(good, "each match is the one whose players the server was sent, on that server")
    orphans = len(allocator.given) - len(matches)
    story.check(0 <= orphans <= 12, "%d servers were allocated for matches that did not come about: they wait for their players, in vain and not for long" % orphans)
    for backend in backends:
        story.check(settle(lambda b=backend: b.running()) and backend.end() == 0, "a backend ends well", backend.text(5))
    allocator.close()


STORIES = [story_allocator_failures, story_several_killed, story_several, story_several_ends, story_several_slots, story_errors, story_revoked, story_records, story_queue, story_many, story_allocator, story_allocator_regions, story_module, story_allocator_tls, story_widening, story_repeated, story_no_server, story_slots,
           story_duel, story_refusals, story_restart, story_nginx, story_readme, story_start]

# ---- plants: (story, file, what stands there, the fault) ----

MODULE, MATCH, ALLOCATOR = "examples/backend/matchmaking.h", "examples/backend/match.h", "examples/backend/allocator.h"
PLANTS = (
    ("several_slots", "examples/backend/backend.c", "    server->reserved = reserved; /*", "    (void) reserved; /*"),
    ("module", MODULE, "return left->since < right->since ? -1 : 1;", "return left->since < right->since ? 1 : -1;"),
    ("module", MODULE, "now - ticket->seen_at > MM_SILENT_SECONDS", "now - ticket->seen_at > 1e9"),
    ("module", MODULE, "( ticket->state == MM_QUEUED || ticket->state == MM_TAKEN )", "ticket->state == MM_QUEUED"),
    ("module", MODULE, "        ticket->is_changed = 1;\n        ticket->match[0]", "        ticket->joined_at = now;\n        ticket->match[0]"),
    ("module", MODULE, "ticket->tries[region] < MM_TRIES ? mm_rank(", "ticket->tries[region] < 255 ? mm_rank("),
    ("module", MODULE, "        ticket->tries[match->region]++;", "        for ( int k = 0; k < MM_MAX_REGIONS; k++ )\n            ticket->tries[k]++;"),
    ("module", MODULE, "        *hopeless = 1;", "        memset( mm->hopeless, 1, sizeof( mm->hopeless ) );"),
    ("module", MODULE, "mm_take_unit( mm, match, unit, team, players );", "mm_take_unit( mm, match, unit, 0, players );"),
    ("module", MODULE, "count = wider >= unit->num_regions ?", "count = wider >= 0.0 ?"),
    ("module", MODULE, "if ( !mm_is_same_wish( &ticket->wish, wish ) )", "if ( !mm_is_same_wish( &ticket->wish, wish ) && !ticket )"),
    ("module", MODULE, "= now + MM_RETRY_SECONDS;", "= now;"),
    ("module", MODULE, "if ( !place || ( is_queued && mm_check_party( mm, &ticket->wish ) != MM_JOINED ) )", "if ( !place || is_queued > 1 )"),
    ("module", MODULE, "next < count && next - i < MM_MAX_PARTY &&", "next < count &&"),
    ("module", MODULE, "sum = rank < 0 ? -1 : sum + rank;", "sum += rank;"),
    ("many", MODULE, "        ticket->state = MM_MATCHED;", "        ticket->state = i ? MM_MATCHED : MM_QUEUED;"),
    ("nginx", MODULE, "return ticket && !strcmp( ticket->id, id ) ? ticket : NULL;", "return id ? ticket : NULL;"),
    ("allocator_failures", MODULE, "    if ( ticket->state == MM_TAKEN )\n        return 0;", "    if ( ticket->state == MM_FREE )\n        return 0;"),
    ("slots", MATCH, "                app->servers[k].reserved += reservation->count - reservation->seen;", "                app->servers[k].reserved += 0 * reservation->count;"),
    ("slots", MATCH, "                reservation->seen = seen;", "                reservation->seen = seen * 0;"),
    ("slots", MATCH, "strcmp( reservation->server, server->name ) != 0 || now >= reservation->until", "now >= reservation->until"),
    ("slots", MATCH, "if ( reservation->is_known || reservation->seen == reservation->count )", "if ( reservation->count < 0 )"),
    ("slots", MATCH, "                reservation->is_known = 1;\n", ""),
    ("module", MODULE, "    if ( ticket && now < ticket->ended_at )\n        return MM_REFUSAL_match_given_up;\n", ""),
    ("duel", MATCH, "return reservation->seen == reservation->count;", "return reservation->seen < 0;"),
    ("duel", MATCH, "seconds < 1 ? 1 : seconds", "seconds < 1 ? 1 : 300"),
    ("duel", MATCH, "\"match=%s mode=%s team=%d players=%d\", ticket->match,", "\"match=%s mode=%s team=%d players=%d\", ticket->id,"),
    ("duel", "examples/fleet/arrivals.h", "                arrival->seen++;", "                arrival->seen += 0;"),
    ("refusals", MATCH, "    polls->left -= 1.0;\n", ""),
    ("refusals", MATCH, "if ( region < 0 || mm_rank( wish, region ) >= 0 )", "if ( region < 0 )"),
    ("widening", MATCH, "at > 0 && latencies[at - 1] > item->valuedouble;", "at > 0 && latencies[at - 1] < 0.0;"),
    ("no_server", MATCH, "int room = fits( server, &wish, now ) ? match_room( server, count ) : -1;", "int room = fits( server, &wish, now ) || server->name[0] ? match_room( server, count ) : -1;"),
    ("start", MATCH, "    return key != NULL;", "    return 1;"),
    ("allocator_tls", ALLOCATOR, "outgoing_secure( request, options->ca_file )", "outgoing_secure( request, options->ca_file ) && curl_easy_setopt( request->easy, CURLOPT_CAPATH, \"/etc/ssl/certs\" ) == CURLE_OK"),
    ("allocator_tls", ALLOCATOR, "\"gameServerSelectors\"", "\"gameServerSelector\""),
    ("allocator_tls", ALLOCATOR, "CURLOPT_TIMEOUT_MS, ALLOCATOR_MILLISECONDS )", "CURLOPT_SSL_VERIFYPEER, 0l )"),
    ("allocator_tls", ALLOCATOR, "mode->num_fleets ? mode->fleets[region] :", "mode->num_fleets ? ALLOCATOR_FLEET :"),
    ("allocator_regions", ALLOCATOR, "is_anywhere ? ALLOCATOR_FLEET : NULL;", "ALLOCATOR_FLEET;"),
    ("allocator_regions", ALLOCATOR, "mode->fleets[region]", "mode->fleets[0]"),
    ("start", ALLOCATOR, "return !strchr( \"-_.\", name[0] ) && ", "return "),
    ("start", MATCH, "int good = allocator_is_label( mode->name );", "int good = 1;"),
    ("start", MATCH, "if ( mode->num_fleets && mode->num_fleets != mode->num_regions )", "if ( mode->num_fleets > MM_MAX_REGIONS )"),
    ("allocator_failures", ALLOCATOR, "!( address.port = agones_find_port( root ) )", "!( address.port = (uint16_t) ( agones_find_port( root ) | 1 ) )"),
    ("allocator_failures", ALLOCATOR, "CURLOPT_TIMEOUT_MS, ALLOCATOR_MILLISECONDS )", "CURLOPT_TIMEOUT_MS, 20000l )"),
    ("several", "examples/backend/match_store.h", "if ( !ticket->is_changed || ticket->state == MM_TAKEN )", "if ( !ticket->is_changed || ticket->state == MM_QUEUED )"),
    ("several_ends", "examples/backend/match_store.h", "    match_store.is_active = 0;\n    while", "    while"),
    ("several_ends", MATCH, "{\n    if ( !match_store_is_active( request->app ) )\n        return refuse_for( request, match_store_refusal(), MATCH_POLL_SECONDS );\n    return request->rest", "{\n    return request->rest"),
    ("errors", "examples/backend/match_store.h", "if ( ticket->state == MM_FREE && mm_find_client(", "if ( ticket->state == MM_TAKEN && mm_find_client("),
    ("errors", "examples/backend/match_store.h", "        match_store.next_flush = netcode_time() + MATCH_ERROR_SECONDS;\n", ""),
    ("errors", "examples/backend/match_store.h", "        match_store.full_until = netcode_time() + MATCH_LEASE_SECONDS;", "        match_store.full_until = 0.0;"),
    ("revoked", "examples/backend/match_store.h", "if ARGV[3] == 'match' and", "if ARGV[3] == 'mash' and"),
    ("revoked", "examples/backend/match_store.h", "    if ( word )\n        match_drop_revoked( reply );", "    if ( !word )\n        match_drop_revoked( reply );"),
    ("records", "examples/backend/match_store.h", " && *value > -1e10 && *value < netcode_time() + MATCH_FARTHEST_SECONDS;", ";"),
    ("records", "examples/backend/match_store.h", "        match_pass_version( strtoull( text, NULL, 10 ) );\n", ""),
    ("records", "examples/backend/match_store.h", "if behind then return {'behind'", "if behind then return {'ok'"),
    ("several", "examples/backend/match_store.h", "if v and v ~= ARGV[2] then \"", "if v and v == 'x' then \""),
    ("several", "examples/backend/match_store.h", "if redis.call('PTTL', k) > tonumber(ARGV[3]) then", "if false then"),
    ("several", "examples/fleet/REDIS.md", "+expire +pttl +pexpire", "+expire +pexpire"),
    ("records", "examples/backend/match_store.h", "        ticket->ended_at = latest;", "        ticket->ended_at += 0.0;"),
    ("records", "examples/backend/match_store.h", "        mm_find_client( &matchmaker.mm, client_id )->is_changed = 1;", "        (void) client_id;"),
    ("allocator", "examples/fleet/agones.h", "annotations, \"netcode-clients\"", "labels, \"netcode-clients\""),
)


def try_plant(plant, built):
    """None when the story noticed, else what went wrong."""
    story, path, there, fault = plant
    with tempfile.TemporaryDirectory(prefix="netcode-match-plant-") as top:
        os.symlink(os.path.join(HERE, "netcode.h"), os.path.join(top, "netcode.h"))
        ignore = shutil.ignore_patterns("node*", "docs", "packaging", "arena", "web")
        for name in ("examples", "tests/backend"):
            shutil.copytree(os.path.join(HERE, name), os.path.join(top, name), ignore=ignore)
        name = os.path.join(top, path)
        with open(name, encoding="utf-8") as file:
            text = file.read()
        if text.count(there) != 1:
            return "its place is there %d times" % text.count(there)
        with open(name, "w", encoding="utf-8") as file:
            file.write(text.replace(there, fault))
        made = {"matchmaking", "matchmaking-san"} if story == "module" else {"server-full"} if "fleet/" in path else {"backend", "backend-plain"}
        programs = os.path.join(top, "programs")
        os.mkdir(programs)
        for each in set(os.listdir(built)) - made:
            os.symlink(os.path.join(built, each), os.path.join(programs, each))
        status, output = run_story(story, top, programs)
    if "does not build" in output:
        return output
    failed = re.findall(r"  FAIL  (.*)", output)
    print("  %s  %s, %s: %s" % ("ok  " if failed and status else "FAIL", story, path.split("/")[-1], failed[0][:110] if failed else "not noticed"), flush=True)
    return None if failed and status else output


def run_story(story, top, programs):
    environment = dict(os.environ, MATCH_TOP=top, MATCH_BUILT=programs, TEST_LIMIT_SECONDS="12")
    child = subprocess.run([sys.executable, os.path.abspath(__file__), story], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return child.returncode, child.stdout


def run_plants(words):
    """Every fault must be noticed by its story, which passes without it."""
    chosen = [plant for plant in PLANTS if not words or plant[0] in words]
    with tempfile.TemporaryDirectory(prefix="netcode-match-built-") as built, concurrent.futures.ThreadPoolExecutor(3) as pool:
        os.environ["MATCH_BUILT"] = built  # where nothing is yet: what is tested here are the checks, so no sanitizers
        Tools(built, built).build(STORIES)
        stories = sorted({plant[0] for plant in chosen})
        for story, (status, output) in zip(stories, pool.map(lambda story: run_story(story, TOP, built), stories)):
            if status:
                print("%s\nmatch plants: without a fault, %s fails" % (output, story))
                return 1
        wrong = [(plant, result) for plant, result in zip(chosen, pool.map(lambda plant: try_plant(plant, built), chosen)) if result]
    for plant, result in wrong:
        print("  NOT NOTICED  %s\n%s" % (plant, result[-1500:]))
    print("match plants: %d of %d noticed" % (len(chosen) - len(wrong), len(chosen)))
    return 0 if chosen and not wrong else 1


def run(words):
    chosen = fleet.choose(STORIES, words)
    folder = tempfile.mkdtemp(prefix="netcode-match-")
    stories = []
    begin = time.monotonic()
    try:
        tools = Tools(folder, folder)
        tools.build(chosen)
        tools.players(chosen)
        print("built in %.1f s" % (time.monotonic() - begin), flush=True)
        for tell in chosen:
            os.mkdir(os.path.join(folder, tell.__name__))
            stories.append(Story(Tools(folder, os.path.join(folder, tell.__name__)), tell))
        fleet.run_stories(stories)
    except Failure as failure:
        print("  FAIL  %s" % failure)
    finally:
        Process.end_list(Process.all)
        shutil.rmtree(folder, ignore_errors=True)
    passed, failed = sum(story.passed for story in stories), sum(story.failed for story in stories)
    if not stories:
        failed = 1
    print("took %.0f s" % (time.monotonic() - begin))
    print("match: %d passed, %d failed" % (passed, failed))
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
