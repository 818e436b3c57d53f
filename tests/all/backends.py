#!/usr/bin/env python3
"""Compares the three token backends, in C, Python and Node.js: one table of requests, and each must give the same answers.

    python3 tests/all/backends.py               everything
    python3 tests/all/backends.py --plants      one fault after the other in a copy: the comparison must notice each

An answer is its status, its headers and its JSON to the last word, but for what differs by nature (tokens, times). What only their HTTP
libraries decide is compared by status alone. All traffic stays on loopback.
"""

import contextlib
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    spec = importlib.util.spec_from_file_location("tests_" + name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


node = load("node")
endpoint = node.endpoint
check, holds, same = endpoint.check, endpoint.holds, endpoint.same
SOURCE = os.environ.get("NETCODE_TEST_BACKENDS", os.path.join(endpoint.ROOT, "examples"))
PROGRAM = os.path.join(endpoint.BUILD, "backends_c")  # from the repository always: the faults are planted in the others
HEADERS = ("Allow", "Cache-Control", "Content-Length", "Content-Type", "Retry-After", "WWW-Authenticate", "X-Content-Type-Options")
TOKEN, SERVERS, HEALTH = "/v1/connect-token", "/v1/servers", "/healthz"


def report(changed="", **values):
    """A server's report as text, with what json.dumps would not write in `changed`."""
    fields = {"name": '"eu-1"', "address": '"127.0.0.1:40000"', "slots": "4", "clients": "0", "draining": "false"}
    fields["protocol_id"] = '"0x1122334455667788"'
    fields.update(values)
    return "{%s%s}" % (",".join('"%s":%s' % pair for pair in fields.items() if pair[1] is not None), changed)


def deep(count, inside="["):
    return inside * count + {"[": "]", '{"a":': "1}"}[inside][-1] * count if inside == "[" else inside * count + "1" + "}" * count


ADDRESSES = (
    "127.0.0.1:1 127.0.0.1:65535 127.0.0.1:65536 127.0.0.1:0 127.0.0.1:01 127.0.0.1:-5 127.0.0.1:+5 127.0.0.1: 127.0.0.01:5 127.1:5 1.2.3.4 "
    "256.1.1.1:5 0x7f.1.1.1:5 1.2.3.4.5:5 [::1]:5 ::1:5 ::1 [::1] [0:0::1]:5 [ABCD::EF]:9 [2001:db8::]:9 [1:2:3:4:5:6:7::]:5 [::2:3:4:5:6:7:8]:5 "
    "[::ffff:1.2.3.4]:5 [::FFFF:7F00:1]:5 [::1.2.3.4]:5 [1:2:3:4:5:6:1.2.3.4]:5 [1::2::3]:5 [12345::]:5 [1:2:3]:5 [::1]:0 [fe80::1]:5 "
    "[fe80::1%eth0]:5 0.0.0.0:5 [::]:5 [0::0]:5 [::ffff:0.0.0.0]:5 224.0.0.1:5 255.255.255.255:5 localhost:5 [localhost]:5"
).split() + ["", " 127.0.0.1:5", "127.0.0.1:5 ", "127.0.0.1:5\\n"]
WORDS = ["a", "eu-1", "-", "a-", ".", "x" * 63, "x" * 64, "", "a b", "\u00e9", "a:b", "[a]", "a%b", "a/b", "__proto__", "constructor"]
BEARERS = ("", "Bearer", "Bearer ", "Basic eA==", "bearer nobody", "BEARER    nobody", "Bearer\tnobody", "Bearer a b", "nobody")


def wishes():
    """Bodies of players."""
    yield from ("", "{}", " {} \n", "\ufeff{}", "[]", "null", "5", '"x"', "{", "}", "{}x", "{}{}", "\0", "{}\0", "NaN", '{"a":NaN}', '{"a":1,}')
    yield from ('{"region":tru}', "{'region':'eu'}", '{"region"}', '{"region":}', "{/**/}", '{"a":1e999}', '{"a":-}', '{"a":"\\x"}')
    yield from ('{"a":"\\u0000"}', '{"region":"a\\u0000"}', '{"region":"\\\\u0000"}', '{"region":"\\u0065u"}', '{"\\u0072egion":"eu"}')
    yield from ('{"region":"eu","region":"eu"}', '{"region":"eu","Region":"eu"}', '{"avoid":"a","server":"b","avoid":"c"}')
    yield from ('{"%s":%s}' % (name, value) for name in ("region", "server", "avoid") for value in ("5", "null", "true", "{}", '["eu"]', '""'))
    yield from ('{"%s":"%s"}' % (name, word) for name in ("region", "server", "avoid", "other") for word in WORDS)
    yield from ('{"server":"%s"}' % address for address in ADDRESSES)
    yield from (deep(100), deep(3000), deep(100, '{"a":'), deep(1100, '{"a":'), deep(2000, '{"a":')[:-1], "{" * 4000)
    yield from (" " * 8190 + "{}", " " * 8191 + "{}", "x" * 8193, "x" * 100000, "x" * 1048576)


def reports():
    """Bodies of servers."""
    yield from ("", "{}", "[]", "null", report(), report(',"slots":9'), report(',"name":"other"'), report(',"draining":true'), report(',"draining":5'))
    yield from (report(',"future":%s' % value) for value in ("null", "[1]", '{"slots":9}', "9007199254740993", "1e300", '"\\u0000"', deep(100), deep(1100)))
    yield from (report(slots=value) for value in "0 1 65535 65536 -1 4.0 4e0 4.5 1e400 -1e400 9007199254740993 18446744073709551616 true null [] {}".split())
    yield from (report(slots='"4"'), report(clients="4"), report(clients="5"), report(clients="-0"), report(clients="0.5"), report(clients="null"))
    yield from (report(draining=value) for value in ("true", "null", "0", '"no"', "[]", None))
    yield from (report(address='"%s"' % address) for address in ADDRESSES)
    yield from (report(public_addresses='["%s"]' % address) for address in ADDRESSES)
    addresses = '"127.0.0.1:1"', "5", "null", "{}", "[]", "[5]", "[null]", '["127.0.0.1:1",5]', "[[]]"
    yield from (report(public_addresses=value) for value in addresses)
    yield from (report(public_addresses="[%s]" % ",".join(['"127.0.0.1:5"'] * count)) for count in (32, 33))
    yield from (report(name='"%s"' % word) for word in WORDS)
    yield from (report(**{name: value}) for name in ("name", "address", "slots", "clients", "protocol_id") for value in (None, "5.5", "[]"))
    ids = "0x1122334455667788 0X1122334455667788 1234605616436508552 0x1122334455667789 0x 0x0 0 -1 +5 0x11223344556677881 18446744073709551616 1e3 ff"
    yield from (report(protocol_id='"%s"' % value) for value in ids.split() + ["", " 5", "5 ", "1_0"])
    yield report(protocol_id="1234605616436508552")


def rows():
    """(title, method, path, credential, body, headers): a credential is a player's name, "servers", or None; spaces behind it are sent."""
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in ("/", "/healthz", "/healthz?x=1", "/healthz/", "//healthz", "/v1", TOKEN, TOKEN + "?region=eu", SERVERS, "/metrics/", "/V1/servers"):
            yield "%s %s" % (method, path), method, path, None, None, {}
    for path in (TOKEN, SERVERS):
        yield path + " without credential", "POST", path, None, "{}", {}
        for value in BEARERS + ("Bearer " + "x" * 512, "Bearer " + "x" * 513, b"Bearer \xff\xfe"):
            yield "%s %.40r" % (path, value), "POST", path, None, "{}", {"Authorization": value}
        for body in ("nonsense", "x" * 8193):  # a client that may not ask does not learn what is wrong with its body
            yield path + " wrong, twice", "POST", path, "nobody", body, {}
    yield "a player reports", "POST", SERVERS, "ann", report(), {}
    yield "spaces behind a credential", "POST", TOKEN, "bob  ", "", {}
    yield "a server asks", "POST", TOKEN, "servers", "", {}
    for body in wishes():
        yield "no server, %.70r" % body, "POST", TOKEN, "ann", body, {}
    yield "healthy?", "GET", HEALTH, None, None, {}
    for number, body in enumerate(reports()):
        yield "report %.250r" % body, "POST", SERVERS, "servers", body, {}
        if number % 10 == 0:
            yield "health behind %.130r" % body, "GET", HEALTH, None, None, {}
    yield "the report for", "POST", SERVERS, "servers", report(address='"[2001:db8::0:1]:5"', public_addresses='["[::ffff:1.2.3.4]:7","1.2.3.4:8"]'), {}
    for body in wishes():
        yield "a server, %.70r" % body, "POST", TOKEN, "bob", body, {}
    for state in (report(clients="4"), report(draining="true")):
        yield "report", "POST", SERVERS, "servers", state, {}
        yield "health", "GET", HEALTH, None, None, {}
        for player in ("bob", "cid"):
            yield "a token for %s of %s" % (player, state), "POST", TOKEN, player, '{"server":"eu-1"}', {}


def comparable(answer, module):
    """What must be the same: of a token its servers, and none of the times."""
    status, headers, content = answer
    if content and "connect_token" in content:
        info = module.connect_token_info(endpoint.base64.b64decode(content["connect_token"]))
        life = info.expire_timestamp - info.create_timestamp, content["expires_at"] - info.expire_timestamp
        content = {**content, "connect_token": [str(a) for a in info.server_addresses] + [info.protocol_id, info.timeout_seconds, life]}
        holds(abs(content.pop("server_time") - time.time()) < 30 and content.pop("expires_at"), "it lives in another time")
    return status, [(name, headers[name]) for name in HEADERS], content


class Heartbeat:
    """Reports again what servers said last, or some would fall silent for one backend before they do for another."""

    def __init__(self):
        self.reports, self.at = {}, time.monotonic()

    def hear(self, body):
        self.reports[json.loads(body)["name"]] = body

    def beat(self, backends):
        if time.monotonic() - self.at > 1:
            self.at = time.monotonic()
            for backend in backends.values():
                for body in self.reports.values():
                    same(backend.ask("POST", SERVERS, body.encode(), backend.server_secret)[0], 200)


heart = Heartbeat()


def compare(title, backends, ask):
    """Asks all of them; what they answer must be the first one's."""
    heart.beat(backends)
    answers = {name: ask(backend) for name, backend in backends.items()}
    first, *others = answers
    for other in others:
        if answers[other] != answers[first]:
            raise AssertionError("%s: %s says %r, and %s %r" % (title, first, answers[first], other, answers[other]))
    return answers[first]


def ask(backend, row, module):
    _, method, path, credential, body, headers = row
    name = (credential or "").rstrip(" ")
    secret = {**backend.secrets, "servers": backend.server_secret}.get(name, name) + (credential or "")[len(name) :] or None
    body = body if body is None else body.encode()
    return comparable(backend.ask(method, path, body, secret, headers), module)


def check_table(backends, module):
    count = 0
    for row in rows():
        answer = compare(row[0], backends, lambda backend: ask(backend, row, module))
        if answer[2] == {"status": "ok"}:
            heart.hear(row[4])
        count += 1
    return "%d requests" % count


HEADS = (b"", b"Host: x\r\nContent-Length: -5\r\n", b"Host: x\r\nContent-Length: +0\r\n", b"Host: x\r\nContent-Length: 0x0\r\n", b"Host: x\r\nContent-Length: 0, 0\r\n",
         b"Host: x\r\nContent-Length: \r\n", b"Host: x\r\nno header\r\n", b"Host: x\r\n", b"Host: x\r\nX: y\r\n")


def check_heads(backends):
    """What only the HTTP libraries see: the status of the first answer."""
    for line in (b"GET /healthz HTTP/1.1", b"GET /healthz HTTP/1.0"):
        for head in HEADS:
            data = line + b"\r\n" + head + b"Connection: close\r\n\r\n"
            compare(repr(data), backends, lambda backend: endpoint.raw(backend.port, data)[9:12])


# Reasons of C's backend alone, which finds matches too.
OF_MATCHES = (
    "unknown_region|wrong_party|party_too_large|unknown_mode|unknown_ticket|already_queued|party_mismatch|party_full|being_matched|match_given_up|not_matchmaker|queue_full"
)


def check_same_metrics(backends):
    """After the same requests the same numbers by the same names; two reasons are those of HTTP libraries that let us answer."""
    found = {}
    for name, backend in backends.items():
        values, text = endpoint.metrics(backend)
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        values = {key: value for key, value in values.items() if not re.search("duration_seconds_(sum|bucket)|bad_request|head_too_large|" + OF_MATCHES, key)}
        bounds = re.findall(r"duration_seconds_bucket\{(\S+)\}", text)
        for key in ("netcode_backend_request_duration_seconds_count", 'netcode_backend_refusals_total{reason="method_not_allowed"}'):
            values.pop(key)  # of requests that libraries answer in their own words
        found[name] = types, values, [float(re.search('"(.*)"', bound).group(1)) for bound in bounds]
    for other in list(found)[1:]:
        for mine, theirs in zip(found[other], found["C"]):
            different = mine if isinstance(mine, list) else {key: (mine.get(key), theirs.get(key)) for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)}
            holds(mine == theirs, "%s has other metrics than C: %r" % (other, different))
    return "%d numbers of %d metrics" % (len(found["C"][1]), len(found["C"][0]))


def check_rates(commands, module):
    """The rate of each player, and when to come again: 20 s from the first, with a tolerance of 2 s."""
    with contextlib.ExitStack() as stack:
        backends = start(stack, commands, "--rate", "3")
        begun = time.monotonic()
        for player in ("ann", "bob"):
            for number in range(5):
                answers = {}
                for name, backend in backends.items():
                    status, headers, content = backend.token(player)
                    seconds = int(headers["Retry-After"])
                    answers[name] = status, content, 0 if number < 3 else 18 <= seconds + time.monotonic() - begun and seconds <= 22
                for name, answer in answers.items():
                    same((name, answer), (name, answers["C"]))
                same(answers["C"][0], 503 if number < 3 else 429)


LISTED = """
# ours
203.0.113.5:40000    eu-1  3
[2001:db8::7]:40000\tus-1 2
  198.51.100.9:40000
[::ffff:10.0.0.1]:5 eu-2 1
"""
WRONG_LISTS = (
    "1.2.3.4", "nonsense", "0.0.0.0:5", "[::]:5", "1.2.3.4:0", "1.2.3.4:5 a:b", "1.2.3.4:5 a 0", "1.2.3.4:5 a 65536", "1.2.3.4:5 a x", "1.2.3.4:5 a 5 x",
    "1.2.3.4:5 " + "x" * 64,
    "1.2.3.4:5 a\n1.2.3.4:6 a", "1.2.3.4:5 a\n[::ffff:1.2.3.4]:5 b", "1.2.3.4:5 \u00e9", "# " + "x" * 600,
    "".join("1.2.3.4:%d\n" % port for port in range(1, 258)),
)


def check_listed(commands, module):
    """Servers of a file: there without a word of theirs, until they report."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = write(folder, LISTED)
        backends = start(stack, commands, "--rate", "100000", "--servers", path)

        def each(wish=None, player="ann"):
            row = ("a token for " + str(wish), "POST", TOKEN, player, wish, {}) if wish is not None else ("health", "GET", HEALTH, None, None, {})
            return compare(row[0], backends, lambda backend: ask(backend, row, module))

        same(each()[2], {"status": "ok", "servers": 4, "free_slots": 38})
        for wish in ('{"region":"eu"}', '{"server":"us-1"}', '{"server":"198.51.100.9:40000"}', '{"region":"198.51.100.9:40000"}', '{"avoid":"us-1"}'):
            for _ in range(7):  # they go round: more than there are slots
                each(wish, "bob")
        said = report(name='"eu-1"', address='"1.2.3.4:5"'), report(name='"other"', address='"10.0.0.1:5"', slots="9")
        for number, body in enumerate(said):
            compare(body, backends, lambda backend: ask(backend, ("", "POST", SERVERS, "servers", body, {}), module))
            same(each()[2]["servers"], 4)  # each takes the place of a line: by its name, and by its address
            heart.hear(body)
            each("")
        write(folder, LISTED + "1.2.3.9:5 ap-1\n1.2.3.9:6 ap-llg4x-rx6rc 3\n1.2.3.9:7 ap-west-1 2\n1.2.3.9:8 ap 4\n1.2.3.9:9 apart-1 5\n")
        for backend in backends.values():
            backend.process.send_signal(signal.SIGHUP)
            backend.wait_for("read again")
        same(each()[2]["servers"], 9)
        each("")
        for region, status in (("ap", 200), ("ap-west", 200), ("ap-llg4x", 200), ("apart", 200), ("a", 503), ("ap-", 503), ("ap-w", 503), ("west", 503), ("AP", 503)):
            same((region, each('{"region":"%s"}' % region)[0]), (region, status))
        backend = backends["C"]
        alone = ["--listen", "127.0.0.1:0", "--key-file", backend.path("key"), "--players", backend.path("players"), "--servers", path]
        for text in WRONG_LISTS:
            write(folder, text)
            found = {name: endpoint.run_status(command + alone) for name, command in commands.items()}
            lines = {name: (status, re.search(r"%s is wrong in line \d+: [^,]*" % re.escape(path), said)) for name, (status, said) in found.items()}
            holds(all(status == 1 and line for status, line in lines.values()), "%r: %r" % (text, found))
            texts = {line.group(0).strip() for _, line in lines.values()}
            holds(len(texts) == 1, "%.60r: %r" % (text, texts))
    heart.reports.clear()


def check_places(backends):
    """As many servers as there are entries: a new one takes that of the one that has been silent longest, and no other's."""

    def reports_of(backend, *names):
        return [backend.ask("POST", SERVERS, report(name='"%s"' % name).encode(), backend.server_secret)[0] for name in names]

    for backend in backends.values():
        others = ["pod-%d" % number for number in range(1, 256)]
        same(reports_of(backend, *others[:200], "pod-0"), [200] * 201)
        began = time.monotonic()
        same(reports_of(backend, *others[200:]), [200] * 55)
        same(reports_of(backend, "early"), [503])  # none is silent
        while time.monotonic() - began < 5.2:
            same(reports_of(backend, *others), [200] * 255)
        same(reports_of(backend, "new", "late"), [200, 503])  # pod-0's entry; the others are not silent
        same(reports_of(backend, "pod-0", *others, "new"), [503] + [200] * 256)
        same(backend.ask("GET", HEALTH)[2]["servers"], 256)


def write(folder, text):
    path = os.path.join(folder, "servers")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def start(stack, commands, *options):
    return {name: stack.enter_context(endpoint.Backend(command, *options)) for name, command in commands.items()}


def build_c():
    packages = "libmicrohttpd", "libcjson", "libsodium"
    flags = endpoint.run(["pkg-config", "--cflags", "--libs", *packages]).split()
    source = os.path.join("examples", "backend", "backend.c")
    endpoint.run(os.environ.get("CC", "cc").split() + ["-O1", source] + flags + ["-lm", "-o", PROGRAM])


# File, fault, and the check that must fail for it.
FAULTS = (
    ("python/backend.py", '"The body is too large"', '"The body is large"', "table"),
    ("python/backend.py", "RETRY_SECONDS = 2 ", "RETRY_SECONDS = 3 ", "table"),
    ("python/backend.py", 'X-Content-Type-Options', "X-Content-Options", "table"),
    ("python/backend.py", "    return address if address and address.port else None", "    return address", "table"),
    ("python/backend.py", '    if left > MAX_DRAINED_BYTES:\n', "    if left > MAX_BODY_BYTES:\n", "table"),
    ("python/backend.py", "retry_after=seconds", "retry_after=seconds + 5", "rates"),
    ("python/backend.py", "        self.promised[server.name] = 0\n        self.unlist(server)\n", "        self.promised[server.name] = 0\n", "a file"),
    ("python/backend.py", "if server.listed and not self.free_slots(server):", "if False:", "a file"),
    ("node/backend.mjs", "if (servers[0].listed && !freeSlots(servers[0]))", "if (false)", "a file"),
    ("python/backend.py", 'self.name == region or self.name.startswith(region + "-")', 'self.name.rpartition("-")[0] == region', "a file"),
    ("node/backend.mjs", "server.name.startsWith(`${region}-`)", "server.name.startsWith(region)", "a file"),
    ("node/backend.mjs", " || report.dialled.includes(address)", "", "a file"),
    ("python/backend.py", "if not oldest.is_silent():", "if True:", "entries"),
    ("node/backend.mjs", "if (!isSilent(oldest))", "if (true)", "entries"),
    ("node/backend.mjs", "(a.heardAt <= b.heardAt ? a : b)", "(a.heardAt >= b.heardAt ? a : b)", "entries"),
    ("python/backend.py", '"free_slots", "gauge"', '"free", "gauge"', "metrics"),
    ("node/backend.mjs", "([1-9][0-9]{0,4})$/.exec(text)", "([0-9]{1,5})$/.exec(text)", "table"),
    ("node/backend.mjs", "deepest > MAX_JSON_DEPTH ||", "", "table"),
    ("node/backend.mjs", ".reverse()); // of what", "); // of what", "table"),
    ("node/backend.mjs", "name in wish || ", "", "table"),
    ("node/backend.mjs", "isSilent(server) ? 'silent' : server.draining ? 'draining' :", "isSilent(server) ? 'silent' :", "table"),
    ("node/backend.mjs", "mapped ? `${mapped[1]}:${port}` : ", "", "table"),
)


def main():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.chdir(endpoint.ROOT)
    if "--plants" in sys.argv:
        return endpoint.plants(os.path.abspath(__file__), "NETCODE_TEST_BACKENDS", SOURCE, FAULTS)
    endpoint.run(["sh", "tests/tools/need.sh", "nodejs:node", "npm:npm", "libmicrohttpd-dev:pc=libmicrohttpd", "libcjson-dev:pc=libcjson", "pkg-config:pkg-config"])
    endpoint.build()
    build_c()
    node.SOURCE = os.path.join(SOURCE, "node")
    node.install()
    module = endpoint.load()
    scripts = os.path.join(SOURCE, "python", "backend.py"), os.path.join(node.PLACE, "backend.mjs")
    commands = {"C": [PROGRAM], "Python": [sys.executable, scripts[0]], "Node.js": ["node", scripts[1]]}
    with contextlib.ExitStack() as stack:
        backends = start(stack, commands, "--rate", "100000")
        check("the table", check_table, backends, module)
        check("the metrics behind it", check_same_metrics, backends)
        check("heads of requests", check_heads, backends)
    heart.reports.clear()
    check("rates", check_rates, commands, module)
    check("servers of a file", check_listed, commands, module)
    with contextlib.ExitStack() as stack:
        check("more servers than entries", check_places, start(stack, commands, "--rate", "100000"))
    return endpoint.end("backends")


if __name__ == "__main__":
    sys.exit(main())
