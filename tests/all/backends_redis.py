#!/usr/bin/env python3
"""Tests the full token backend: sessions, OpenID Connect, a platform's tickets, and two backends behind nginx that share a Redis.

    python3 tests/all/backends_redis.py             everything
    python3 tests/all/backends_redis.py WORD...     the checks whose names hold a WORD
    python3 tests/all/backends_redis.py --plants    one fault after the other in a copy: a check must notice each (NUMBER...: those alone)

The issuer is a web server of this test, with keys of its own and a test authority's certificate; so is the platform. Redis, nginx and the
backends are the real programs, in a temporary folder and on loopback, and end with the test.
"""

import base64
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.server
import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    spec = importlib.util.spec_from_file_location("tests_" + name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


B = load("backend")
expect, equal, until, place, write, read, Ends = B.expect, B.equal, B.until, B.place, B.write, B.read, B.Ends
AUDIENCE = "game"
APP = "480"
PLATFORM_KEY = "PUBLISHERKEY0123456789ABCDEF"
PACKAGES = ["libmicrohttpd", "libcjson", "libsodium", "libcurl", "hiredis", "cjose"]
NEEDS = (
    "pkg-config:pkg-config libmicrohttpd-dev:pc=libmicrohttpd libcjson-dev:pc=libcjson libcurl4-openssl-dev:pc=libcurl libsodium-dev:pc=libsodium "
    "libhiredis-dev:pc=hiredis libjansson-dev:pc=jansson libssl-dev:pc=libcrypto libcjose-dev:pc=cjose redis-server:redis-server redis-tools:redis-cli nginx-light:nginx "
    "openssl:openssl curl:curl python3-cryptography:/usr/lib/python3/dist-packages/cryptography"
)
TOKEN, LOGIN, LOGOUT = "/v1/connect-token", "/v1/login", "/v1/logout"


# ---- the issuer, and what it signs ----


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def unsigned(header, claims):
    parts = (part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims))
    return ".".join(map(b64, parts))


class Key:
    """A signing key: RSA (of so many bits), or EC (of such a curve)."""

    def __init__(self, kid, alg="RS256", bits=2048, curve="P-256"):
        from cryptography.hazmat.primitives.asymmetric import ec, rsa

        self.kid, self.alg, self.curve = kid, alg, curve
        if alg.startswith("RS"):
            self.private = rsa.generate_private_key(65537, bits)
        else:
            self.private = ec.generate_private_key({"P-256": ec.SECP256R1, "P-384": ec.SECP384R1}[curve]())

    def jwk(self, **more):
        numbers = self.private.public_key().public_numbers()
        if self.alg.startswith("RS"):
            jwk = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        else:
            size = {"P-256": 32, "P-384": 48}[self.curve]
            jwk = {"kty": "EC", "crv": self.curve, "x": b64(numbers.x.to_bytes(size, "big")), "y": b64(numbers.y.to_bytes(size, "big"))}
        return {key: value for key, value in {**jwk, "kid": self.kid, "use": "sig", "alg": self.alg, **more}.items() if value is not None}

    def signature(self, data):
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if self.alg.startswith("RS"):
            return self.private.sign(data, padding.PKCS1v15(), hashes.SHA256())
        r, s = utils.decode_dss_signature(self.private.sign(data, ec.ECDSA(hashes.SHA256())))
        size = 32 if self.curve == "P-256" else 48
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    def sign(self, claims, **header):
        head = {key: value for key, value in {"alg": self.alg, "kid": self.kid, "typ": "JWT", **header}.items() if value is not None}
        return self.sign_raw(head, claims)

    def sign_raw(self, header, claims):
        text = unsigned(header, claims)
        return text + "." + b64(self.signature(text.encode()))

    def public_pem(self):
        from cryptography.hazmat.primitives import serialization

        return self.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


class Web:
    """An HTTPS server on loopback, of the test authority. `answer` gets a handler, and answers."""

    def __init__(self, certificate="good"):
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with web.lock:
                    web.requests.append(self.path)
                web.answer(self)

            def log_message(self, *_):
                pass

            def send(self, status, body, **headers):
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # whoever was asked too slowly has gone

        self.lock, self.requests, self.stopped = threading.Lock(), [], threading.Event()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(place(certificate + ".pem"), place(certificate + ".key"))
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = "https://localhost:%d" % self.port
        self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def count(self, word):
        with self.lock:
            return sum(word in path for path in self.requests)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()


class Issuer(Web):
    def __init__(self, **options):
        super().__init__(**options)
        self.rsa, self.ec = KEYS["rsa"], KEYS["ec"]
        self.keys = [self.rsa.jwk(), self.ec.jwk()]
        self.mode = "good"
        self.document = {}

    def answer(self, handler):
        if self.mode == "down":
            return handler.send(503, {})
        if self.mode == "slow":
            self.stopped.wait(10)
        if self.mode == "garbage":
            return handler.send(200, b"\x00\xff{" * 100)
        if self.mode == "huge":
            return handler.send(200, b'{"keys":[' + b'"x",' * 100000 + b'"x"]}')
        if self.mode == "redirect":
            return handler.send(302, {}, Location=self.url + "/elsewhere")
        if handler.path == "/.well-known/openid-configuration":
            return handler.send(200, {"issuer": self.url, "jwks_uri": self.url + "/keys", **self.document})
        return handler.send(200, {"keys": self.keys} if handler.path == "/keys" else {})

    def claims(self, **changes):
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "player-1", "iat": now, "exp": now + 300, "name": "Ann of the issuer", **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, **changes):
        return self.rsa.sign(self.claims(**changes))

    def options(self):
        return ["--oidc", self.url, "--oidc-audience", AUDIENCE, "--oidc-ca", place("ca.pem")]


def client_id_of(issuer, subject):
    """Written from the sentence in identity.h: the first 63 bits of BLAKE2b."""
    data = b"netcode player\0" + issuer.encode() + b"\0" + subject.encode()
    return str(int.from_bytes(hashlib.blake2b(data, digest_size=32).digest()[:8], "big") >> 1)


class Platform(Web):
    """As Steam's AuthenticateUserTicket answers, by the ticket's first letters."""

    GOOD = {"result": "OK", "steamid": "76561197960287930", "ownersteamid": "76561197960287930", "vacbanned": False, "publisherbanned": False}

    def __init__(self):
        super().__init__()
        self.slow = 0.0
        self.released = threading.Event()  # cleared, it answers nobody
        self.released.set()
        self.key_file = write(B.scratch("platform.key"), PLATFORM_KEY + "\n")

    def answer(self, handler):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        if self.slow:
            self.stopped.wait(self.slow)
        self.released.wait(B.LIMIT_SECONDS)
        if query.get("key") != PLATFORM_KEY or query.get("appid") != APP:
            return handler.send(403, b"<html>Forbidden</html>")
        rows = {
            "aa": {"params": self.GOOD},
            "ab": {"params": {**self.GOOD, "steamid": str(2**64 - 2)}},
            "a1": {"params": {**self.GOOD, "steamid": "1001"}},  # an account's id
            "ba": {"params": {**self.GOOD, "vacbanned": True}},
            "bb": {"params": {**self.GOOD, "publisherbanned": True}},
            "bc": {"params": {key: value for key, value in self.GOOD.items() if key != "vacbanned"}},
            "bd": {"params": {**self.GOOD, "vacbanned": 0}},
            "ca": {"error": {"errorcode": 101, "errordesc": "Invalid ticket"}},
            "cb": {"params": {"result": "Expired"}},
            "cc": {"params": self.GOOD, "error": {}},
            "cd": {},
            "ce": {"params": {**self.GOOD, "steamid": 76561197960287930}},
            "cf": {"params": {**self.GOOD, "steamid": "0"}},
            "c0": {"params": {**self.GOOD, "steamid": str(2**64)}},
            "c1": {"params": {**self.GOOD, "steamid": "-5"}},
            "c2": {"params": []},
        }
        start = query["ticket"][:2].lower()
        if start == "da":
            return handler.send(500, b"oh")
        if start == "db":
            return handler.send(200, b"x" * 100000)
        if start == "dc":
            return handler.send(200, b'{"response":{"params":')
        if start == "dd":
            return handler.send(200, b'{"response":{"params":{"result":"OK","result":"OK","steamid":"5","vacbanned":false,"publisherbanned":false}}}')
        return handler.send(200, {"response": rows[start]})

    def options(self):
        return ["--ticket-url", self.url + "/ISteamUserAuth/AuthenticateUserTicket/v1/", "--ticket-key-file", self.key_file, "--ticket-app-id", APP, "--ticket-ca", place("ca.pem")]


# ---- Redis, and the way to it ----


class Redis(B.Process):
    """A Redis of our own on a unix socket; nothing of it outlives the test. With `keeps` it writes what it knows to a file."""

    def __init__(self, *options, keeps=None):
        self.folder = keeps or B.scratch("redis")
        os.makedirs(self.folder, exist_ok=True)
        self.socket = os.path.join(self.folder, "redis.sock")
        command = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--loglevel", "notice"]
        command += ["--appendonly", "yes", "--appendfsync", "always"] if keeps else []
        super().__init__(command + list(options))
        until(self.answers, "Redis:\n" + self.text())

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(self.socket)
            probe.sendall(b"PING\r\n")
            return probe.recv(100).startswith((b"+PONG", b"-NOAUTH"))

    def options(self):
        return ["--redis", "unix:" + self.socket]

    def cli(self, *words):
        result = B.run(["redis-cli", "-s", self.socket] + list(words))
        equal(result.returncode, 0, "the status of redis-cli %s (%s)" % (" ".join(words), result.stderr.decode()))
        return result.stdout.decode().strip()

    def kill(self):
        self.end(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)


class Relay:
    """A TCP way to Redis, with a delay, that can be cut."""

    def __init__(self, redis):
        self.redis, self.delay, self.connections, self.lock = redis, 0.0, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(self.redis.socket)
                except OSError:  # there is no Redis: the link ends at once
                    near.close()
                    continue
                with self.lock:
                    self.connections += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(*pair, pair[0] is far), daemon=True).start()

    def pump(self, one, other, is_answer):
        with contextlib.suppress(OSError):
            while True:
                data = one.recv(65536)
                if not data:
                    break
                if is_answer:
                    time.sleep(self.delay)
                other.sendall(data)
        self.close(one, other)

    @staticmethod
    def close(*sockets):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self):
        with self.lock:
            self.close(*self.connections)
            del self.connections[:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close(self.listener)
        self.listener.close()
        self.cut()


# ---- asking ----


class Full(B.Backend):
    def __init__(self, *options, binary="full", listen="127.0.0.1:0"):
        options = ["--servers", place("listed")] + [word for option in options for word in (option if isinstance(option, list) else [option])]
        super().__init__(B.PROGRAMS[binary], *options, listen=listen)

    def ask(self, path, credential=None, body=None, seconds=20):
        return ask(self.port, path, credential, body, seconds)

    def login(self, credential=None, **fields):
        return self.ask(LOGIN, credential, json.dumps(fields) if fields else None)

    def number(self, name):
        return float(self.metrics()["netcode_backend_" + name])

    def end(self, number=signal.SIGTERM, seconds=B.LIMIT_SECONDS):
        status = super().end(number, seconds)
        expect(not self.find("Sanitizer|runtime error"), "a sanitizer speaks:\n" + self.text())
        return status


def headers_of(credential):
    return {} if credential is None else {"Authorization": "Bearer " + credential}


def ask(port, path, credential=None, body=None, seconds=20):
    """(status, error or "", JSON, headers)"""
    status, headers, text = B.http_request(port, "POST", path, body, headers_of(credential), seconds)
    answer = json.loads(text)
    return status, answer.get("error", ""), answer, headers


def short(answer):
    return answer[0], answer[1]


def secret(name):
    return read(place(name)).strip()


def session_of(answer):
    equal(short(answer), (200, ""), "the login (%s)" % answer[2])
    equal(sorted(answer[2]), ["client_id", "expires_in", "name", "session"], "the login's fields")
    expect(len(answer[2]["session"]) == 43, "a session is %r" % answer[2]["session"])
    return answer[2]["session"]


def good_token(answer, client_id):
    equal(short(answer), (200, ""), "the token (%s)" % answer[2])
    equal(answer[2]["client_id"], client_id, "whose token it is")
    status, text = B.inspect(answer[2])
    equal(status, B.OPENED, "what inspect ends with: " + text)
    expect("client id" not in text or client_id in text, "the token is of another: " + text)


def named_refusal(answer, error):
    equal(short(answer), (503, error), "the refusal")
    expect(1 <= int(answer[3]["Retry-After"]) <= 30, "Retry-After is %s" % answer[3]["Retry-After"])


def many(count, work):
    """`count` of them at the same time: what each returned."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work, index) for index in range(count)]]


# ---- ID tokens ----


def hmac_token(issuer, key):
    text = unsigned({"alg": "HS256", "kid": issuer.rsa.kid, "typ": "JWT"}, issuer.claims())
    return text + "." + b64(hmac.new(key, text.encode(), "sha256").digest())


def spell(token, part, text):
    parts = token.split(".")
    parts[part] = text
    return ".".join(parts)


def last_bits(token):
    """The same bytes, spelt otherwise: a bit that base64 does not use."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + letters[letters.index(token[-1]) ^ 1]


def der_signature(issuer):
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    text = unsigned({"alg": "ES256", "kid": issuer.ec.kid}, issuer.claims())
    return text + "." + b64(issuer.ec.private.sign(text.encode(), ec.ECDSA(hashes.SHA256())))


def token_rows(issuer):
    """(what, token, what comes of it): ok, or the name of what is wrong."""
    rsa, ec, now = issuer.rsa, issuer.ec, int(time.time())
    outsider, good = KEYS["outsider"], issuer.token()

    def claims(**changes):
        return rsa.sign(issuer.claims(**changes))

    def head(key=rsa, **changes):
        return key.sign(issuer.claims(), **changes)

    yield "RS256", good, "ok"
    yield "ES256", ec.sign(issuer.claims()), "ok"
    yield "no typ", head(typ=None), "ok"
    yield "typ jwt", head(typ="jwt"), "ok"
    yield "no kid, one key of the algorithm", head(kid=None), "ok"
    for what, value, result in (
        ("ours in a list", [AUDIENCE], "ok"), ("another", "other", "audience"), ("ours, longer", AUDIENCE + "s", "audience"), ("ours, shorter", AUDIENCE[:-1], "audience"),
        ("ours in capitals", AUDIENCE.upper(), "audience"), ("an empty list", [], "audience"), ("two without azp", [AUDIENCE, "other"], "audience"), ("a number", 5, "claims"),
        ("a list with a number", [AUDIENCE, 5], "claims"), ("none", None, "claims"), ("an object", {AUDIENCE: 1}, "claims"),
    ):
        yield "aud: " + what, claims(aud=value), result
    yield "aud: two, azp ours", claims(aud=["other", AUDIENCE], azp=AUDIENCE), "ok"
    yield "aud: two, azp another", claims(aud=["other", AUDIENCE], azp="other"), "audience"
    yield "aud: ours, azp another", claims(azp="other"), "ok"
    yield "aud: ours in a list, azp another", claims(aud=[AUDIENCE], azp="other"), "ok"
    yield "aud: another, azp ours", claims(aud="other", azp=AUDIENCE), "audience"
    yield "aud: ours, azp a number", claims(azp=5), "claims"
    for value, result in (("https://elsewhere.example", "issuer"), (issuer.url + "/", "issuer"), (issuer.url.upper(), "issuer"), (None, "claims"), (5, "claims"), ([issuer.url], "claims")):
        yield "iss: %s" % value, claims(iss=value), result
    for what, value, result in (
        ("within the leeway", now - 10, "ok"), ("long ago", now - 3600, "expired"), ("just beyond the leeway", now - 32, "expired"), ("none", None, "claims"), ("text", str(now + 300), "claims"),
        ("true", True, "claims"), ("beyond all years", 1e300, "claims"), ("negative", -1, "claims"), ("a fraction", now + 100.5, "ok"), ("null", [], "claims"),
    ):
        yield "exp: " + what, claims(exp=value), result
    for name in ("nbf", "iat"):
        for what, value, result in (("within the leeway", now + 10, "ok"), ("tomorrow", now + 86400, "not_yet"), ("text", "1", "claims"), ("negative", -5, "claims")):
            yield "%s: %s" % (name, what), claims(**{name: value}), result
    yield "iat: none", claims(iat=None), "claims"
    for value, result in (("s" * 255, "ok"), ("s" * 256, "claims"), ("", "claims"), (None, "claims"), (5, "claims"), ("a b", "claims"), ("a\nb", "claims"), ("\u00e9", "claims"), ("a\x7f", "claims")):
        yield "sub: %.20r" % value, claims(sub=value), result
    for what, token in (
        ("sub twice", rsa.sign_raw({"alg": "RS256", "kid": rsa.kid}, json.dumps(issuer.claims())[:-1].encode() + b',"sub":"other"}')),
        ("alg twice", rsa.sign_raw(b'{"alg":"RS256","alg":"HS256","kid":"%s"}' % rsa.kid.encode(), issuer.claims())),
        ("a zero in sub", rsa.sign_raw({"alg": "RS256", "kid": rsa.kid}, json.dumps(issuer.claims(sub="a\0b")).encode())),
        ("no JSON in the claims", rsa.sign_raw({"alg": "RS256", "kid": rsa.kid}, b"nonsense")), ("a list as claims", rsa.sign_raw({"alg": "RS256", "kid": rsa.kid}, b"[]")),
        ("something behind the claims", rsa.sign_raw({"alg": "RS256", "kid": rsa.kid}, json.dumps(issuer.claims()).encode() + b"{}")),
        ("no JSON in the header", rsa.sign_raw(b"nonsense", issuer.claims())), ("null as header", rsa.sign_raw(b"null", issuer.claims())), ("deep claims", rsa.sign_raw({"alg": "RS256"}, b"[" * 3000)),
        ("crit", head(crit=["exp"])), ("b64", head(b64=False)), ("kid is a number", head(kid=5)), ("an access token", head(typ="at+jwt")), ("typ is a number", head(typ=5)),
        ("nothing", ""), ("a dot", "."), ("two dots", ".."), ("one part", good.split(".")[0]), ("two parts", good.rsplit(".", 1)[0]), ("an empty signature", good.rsplit(".", 1)[0] + "."),
        ("four parts", good + ".AAAA"), ("five parts", "a.b.c.d.e"), ("padding", good + "=="), ("a space in front", " " + good), ("a newline behind", good + "\n"), ("letters of base64", spell(good, 2, "++//" + good.split(".")[2][4:])),
        ("leftover bits", last_bits(good)), ("no header", spell(good, 0, "")), ("no claims", spell(good, 1, "")),
    ):
        yield what, token, "malformed"
    for alg in ("none", "None", "NONE", "nOnE", "", "HS256", "HS384", "RS384", "RS512", "PS256", "ES384", "ES512", "ES256K", "EdDSA", "dir", "RSA-OAEP", "rs256", 5, ["RS256"]):
        yield "alg: %s" % alg, head(alg=alg), "algorithm"
    yield "no alg", head(alg=None), "algorithm"
    yield "alg none, unsigned", unsigned({"alg": "none", "kid": rsa.kid}, issuer.claims()) + ".AA", "algorithm"
    yield "HMAC with the public key's PEM", hmac_token(issuer, rsa.public_pem()), "algorithm"
    yield "HMAC with the modulus", hmac_token(issuer, rsa.jwk()["n"].encode()), "algorithm"
    yield "HMAC with nothing", hmac_token(issuer, b""), "algorithm"
    for what, token in (
        ("another's key by our kid", Key.sign_raw(outsider, {"alg": "RS256", "kid": rsa.kid}, issuer.claims())), ("a key inside, by our kid", Key.sign_raw(outsider, {"alg": "RS256", "kid": rsa.kid, "jwk": outsider.jwk()}, issuer.claims())),
        ("an address inside", Key.sign_raw(outsider, {"alg": "RS256", "kid": rsa.kid, "jku": "https://elsewhere.example/keys"}, issuer.claims())),
        ("other claims", spell(good, 1, b64(json.dumps(issuer.claims(sub="other")).encode()))), ("another token's signature", spell(good, 2, claims(sub="other").split(".")[2])),
        ("the signature cut", good[:-2]), ("the signature longer", good + "AAAA"), ("zeros as signature", spell(good, 2, b64(b"\0" * 256))), ("zeros of an EC signature", spell(ec.sign(issuer.claims()), 2, b64(b"\0" * 64))),
        ("DER of an EC signature", der_signature(issuer)), ("half an EC signature", spell(ec.sign(issuer.claims()), 2, b64(b"\1" * 32))), ("one byte", spell(good, 2, "AA")),
    ):
        yield what, token, "signature"
    yield "too large", claims(extra="x" * 5100), "too_large"
    yield "large", claims(extra="x" * 4500), "ok"


def unknown_rows(issuer):
    """Keys that the issuer does not have, or that are good for nothing here."""
    yield "unknown kid", issuer.rsa.sign(issuer.claims(), kid="another")
    yield "the EC key's kid for RS256", issuer.rsa.sign(issuer.claims(), kid=issuer.ec.kid)
    yield "the RSA key's kid for ES256", issuer.ec.sign(issuer.claims(), kid=issuer.rsa.kid)
    yield "a key inside", KEYS["outsider"].sign(issuer.claims(), jwk=KEYS["outsider"].jwk())
    for name in ("weak", "curve", "encrypts", "twins"):
        yield "a key in the set: " + name, KEYS[name].sign(issuer.claims(), alg="ES256" if name == "curve" else "RS256")


def verdict(backend, before, token):
    """What came of a token, by the backend's own count, which must fit its answer."""
    answer = backend.login(id_token=token)
    after = {key: value for key, value in backend.metrics().items() if "id_tokens_total" in key}
    changed = [key.split('"')[1] for key, value in after.items() if value != before.get(key)]
    before.update(after)
    expect(len(changed) <= 1, "more than one changed: %s" % changed)
    return answer, (changed or [""])[0]


def check_tokens():
    """Every field, algorithm and spelling."""
    count = 0
    with Issuer() as issuer:
        weak = [KEYS["weak"].jwk(), KEYS["curve"].jwk(), KEYS["encrypts"].jwk(use="enc"), KEYS["twins"].jwk(), KEYS["twins"].jwk()]
        issuer.keys = [{"kty": "oct", "k": b64(b"0" * 32), "kid": "hmac", "alg": "HS256"}, None, 5, {"kty": "RSA"}, {"kty": "EC", "crv": "P-256", "x": b64(b"\1" * 32), "y": b64(b"\1" * 32), "kid": "off"}] + weak + issuer.keys
        with Ends(Full(issuer.options(), "--rate", "100000", binary="full-san")) as backend:
            backend.line("oidc: 4 keys of")  # RSA, EC, and the twins, which are as good as none
            before = {key: value for key, value in backend.metrics().items() if "id_tokens_total" in key}
            for what, token, wanted in token_rows(issuer):
                if what.startswith("no kid"):
                    wanted = "unknown_key"  # the twins make it two of the algorithm
                answer, result = verdict(backend, before, token)
                count += 1
                if wanted == "unknown_key":
                    expect(answer[0] in (401, 503) and answer[1] in ("wrong_identity", "issuer_unreachable"), "%s: %s" % (what, answer[2]))
                    continue
                equal((what, result), (what, wanted), "what came of it")
                equal(short(answer), (200, "") if wanted == "ok" else (401, "wrong_identity"), what)
                expect(wanted == "ok" or answer[3]["WWW-Authenticate"].startswith("Bearer"), "no WWW-Authenticate")
            for what, token in unknown_rows(issuer):
                answer = backend.login(id_token=token)
                expect(short(answer) in ((401, "wrong_identity"), (503, "issuer_unreachable")), "%s: %s" % (what, answer[2]))
                count += 1
            equal(short(backend.ask(LOGIN, None, json.dumps({"id_token": "x" * 9000}))), (413, "too_large"), "a huge body")
            for body in ('{"id_token":5}', '{"id_token":"a","id_token":"a"}', '{"id_token":"a","ticket":"b"}', '{"other":"a"}', '{"id_token":null}'):
                equal(short(backend.ask(LOGIN, None, body)), (400, "wrong_field"), body)
            for body in ("[]", "x", '"x"', '{"id_token":"a\\u0000"}'):
                equal(short(backend.ask(LOGIN, None, body)), (400, "not_json"), body)
            equal(short(backend.login(ticket="aa" * 10)), (400, "not_offered"), "a ticket here")
            equal(backend.end(), 0, "the backend's status")
    return "%d tokens" % count


def check_altered_tokens():
    """Each character of a good token, changed: none is good."""
    with Issuer() as issuer, Ends(Full(issuer.options(), "--rate", "100000", "--sessions", "1000")) as backend:
        backend.line("oidc: 2 keys of")
        count = 0
        for token in (issuer.token(), issuer.ec.sign(issuer.claims())):
            equal(backend.login(id_token=token)[0], 200, "the token as it is")
            for at in range(0, len(token), 3):
                changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
                answer = backend.login(id_token=changed)
                expect(answer[0] in (401, 503), "changed at %d of %d it is taken: %s" % (at, len(token), answer[2]))
                count += 1
        equal(backend.number('logins_total{by="id_token"}'), 2, "the logins")
    return "%d changes" % count


def raw_token(issuer, **texts):
    """An ID token with these bytes as claims, which json.dumps would not write."""
    claims = json.dumps(issuer.claims(name=None))[:-1].encode() + b"".join(b', "%s": "%s"' % (name.encode(), text) for name, text in texts.items()) + b"}"
    return issuer.rsa.sign_raw({"alg": "RS256", "kid": issuer.rsa.kid, "typ": "JWT"}, claims)


def check_identity():
    """The same player each time, another id for another subject or issuer; names; no account's id."""
    with Issuer() as issuer, Issuer() as other, Ends(Full(issuer.options(), "--rate", "100000")) as backend:
        backend.line("oidc: 2 keys of")
        for subject in ("player-1", "player-2", "auth0|5f7", "x" * 255):
            for _ in range(2):
                answer = backend.login(id_token=issuer.token(sub=subject))
                session = session_of(answer)
                equal(answer[2]["client_id"], client_id_of(issuer.url, subject), "the id")
            good_token(backend.ask(TOKEN, session), answer[2]["client_id"])
            equal(backend.ask(TOKEN, session)[2]["client_id"], answer[2]["client_id"], "the token's id")
            found = B.run([B.PROGRAMS["full"], "client-id", issuer.url, subject]).stdout.decode().strip()
            equal(found, answer[2]["client_id"], "what client-id says")
        expect(client_id_of(issuer.url, "a") != client_id_of(other.url, "a"), "two issuers share an id")
        for claims, name in (({"name": "Zo\u00eb"}, "Zo\u00eb"), ({"name": None, "preferred_username": "zo"}, "zo"), ({"name": "a\nb", "preferred_username": "c"}, "c"), ({"name": "\u00e9" * 50}, "\u00e9" * 31), ({"name": 5}, None)):
            answer = backend.login(id_token=issuer.token(**claims))
            equal(answer[2]["name"], name or answer[2]["client_id"], "the name for %r" % claims)
        wrong = ("ff", "80", "c080", "c1bf", "c3", "c320", "e08080", "e09fbf", "eda080", "edbfbf", "e282", "f0808080", "f08fbfbf", "f4908080", "f5808080", "f09f98")
        right = ("c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbd", "f0908080", "f48fbfbf", "f09f9880")
        for text in wrong + right:
            name, other = bytes.fromhex("78" + text + "79"), text in wrong
            answer = backend.login(id_token=raw_token(issuer, name=name, preferred_username=b"zo"))  # and its JSON is UTF-8, or it is no answer
            equal(answer[2]["name"], "zo" if other else name.decode(), "the name of " + text)
            session = session_of(answer)
            good_token(backend.ask(TOKEN, session), answer[2]["client_id"])
        answer = backend.login(id_token=raw_token(issuer, name=b"x\xff", preferred_username=b"\xfe"))
        equal(answer[2]["name"], answer[2]["client_id"], "the name where both are wrong")
        session_of(backend.login(id_token=issuer.rsa.sign(issuer.claims(), kid=None)))  # there is one key of its algorithm
    with Issuer() as issuer:
        digest = hashlib.blake2b(b"anybody", digest_size=32).hexdigest()
        taken = write(B.scratch("players"), "%s %s Taken\n" % (digest, client_id_of(issuer.url, "player-1")), 0o644)
        with Ends(Full(issuer.options(), "--players", taken)) as backend:
            backend.line("oidc: 2 keys of")
            equal(short(backend.login(id_token=issuer.token())), (403, "identity_taken"), "an account has that id")
            session_of(backend.login(id_token=issuer.token(sub="player-2")))
    return "ids by the sentence that documents them"


def check_rotation():
    """A new key is fetched when its token comes, an old one is forgotten; unknown ones make us ask no more often than every 10 s."""
    with Issuer() as issuer, Ends(Full(issuer.options(), "--rate", "100000")) as backend:
        backend.line("oidc: 2 keys of")
        begun = time.monotonic()
        equal(issuer.count("/keys"), 1, "the fetches at the start")
        issuer.keys = [KEYS["outsider"].jwk()]
        for _ in range(20):
            named_refusal(backend.login(id_token=KEYS["outsider"].sign(issuer.claims())), "issuer_unreachable")
        equal(issuer.count("/keys"), 1, "the fetches in the first seconds")
        session_of(backend.login(id_token=issuer.token()))
        time.sleep(max(0.0, 10.2 - (time.monotonic() - begun)))
        answers = many(20, lambda _: backend.login(id_token=KEYS["outsider"].sign(issuer.claims())))
        equal({short(answer) for answer in answers}, {(200, "")}, "the new key's tokens")
        equal(issuer.count("/keys"), 2, "the fetches")
        expect(short(backend.login(id_token=issuer.token())) in ((401, "wrong_identity"), (503, "issuer_unreachable")), "the old key's token is good")
        many(30, lambda index: backend.login(id_token=issuer.rsa.sign(issuer.claims(), kid="k%d" % index)))
        equal(issuer.count("/keys"), 2, "the fetches after 30 unknown keys")

        # A set without any key that is of use: the last one is withdrawn.
        issuer.keys = [KEYS["weak"].jwk()]
        until(lambda: backend.login(id_token=issuer.rsa.sign(issuer.claims(), kid="asks")) and issuer.count("/keys") == 3, "another fetch")
        until(lambda: backend.number("issuer_keys") == 0, "the end of the last key")
        expect(short(backend.login(id_token=KEYS["outsider"].sign(issuer.claims()))) in ((401, "wrong_identity"), (503, "issuer_unreachable")), "the withdrawn key's token is good")
        equal(backend.number('issuer_fetches_total{result="failed"}'), 0, "the fetches that failed")
        expect(backend.find("the issuer has none for RS256 or ES256"), "the log does not report it:\n" + backend.text())
    return "2 fetches for 72 tokens, and one that ends all keys"


def others_of_an_issuer(backend, issuer):
    """While five log in by it, in one of its fetches: the seconds that a login with another proof and the health take."""
    asked = len(issuer.requests)
    until(lambda: len(issuer.requests) > asked, "another fetch")
    begun = time.monotonic()
    waits = [threading.Thread(target=backend.login, kwargs={"id_token": issuer.token()}) for _ in range(5)]
    for thread in waits:
        thread.start()
    session_of(backend.login(secret("alice")))  # it is not held up
    equal(B.get(backend.port, "/healthz")[0], 200, "health")
    took = time.monotonic() - begun
    for thread in waits:
        thread.join()
    return took


def check_issuer_trouble():
    """Down, slow, garbage, huge, a redirect, another's document, another authority: named refusals, no other client waits, and it works again."""
    modes = ("down", "garbage", "huge", "redirect", "document", "http", "slow")

    def one(mode):
        with Issuer() as issuer:
            issuer.mode = mode
            issuer.document = {"document": {"issuer": "https://elsewhere.example"}, "http": {"jwks_uri": "http://localhost:%d/keys" % issuer.port}}.get(mode, {})
            with Ends(Full(issuer.options(), "--rate", "100000")) as backend:
                named_refusal(backend.login(id_token=issuer.token()), "issuer_unreachable")
                for _ in range(3):  # who really waits is slow each time
                    took = others_of_an_issuer(backend, issuer)
                    if took < 1.0:
                        break
                expect(took < 1.0, "others waited for %.1f s" % took)
                equal(backend.number("issuer_keys"), 0, "the keys")
                issuer.mode, issuer.document = "good", {}
                until(lambda: backend.login(id_token=issuer.token())[0] == 200, "the issuer again, after " + mode)
                issuer.mode = "down"  # what is known stays good
                session_of(backend.login(id_token=issuer.token()))
                equal(issuer.count("elsewhere"), 0, "redirects that were followed")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(one, modes))
    with Issuer() as issuer:
        options = issuer.options()
        options[-1] = place("other-ca.pem")
        with Ends(Full(options)) as backend:
            until(lambda: backend.number('issuer_fetches_total{result="failed"}') >= 1, "a fetch that fails")
            named_refusal(backend.login(id_token=issuer.token()), "issuer_unreachable")
            equal(issuer.requests, [], "what an issuer of another authority was asked")
    return "%d kinds of it" % (len(modes) + 1)


# ---- tickets ----


def others_of_a_platform(platform, backend):
    """While the platform holds 16 logins: (what the 17th hears, the status of a login without it, how many wait still behind that)"""
    platform.released.clear()
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            held = [pool.submit(backend.login, None, ticket="aa" + "0" * 20) for _ in range(16)]
            until(lambda: backend.number("suspended_requests") == 16 or any(future.done() for future in held), "16 that wait")
            refused = backend.login(ticket="aa" + "0" * 20)
            other = backend.login(secret("alice"))
            waiting = int(backend.number("suspended_requests"))
            platform.released.set()
    finally:
        platform.released.set()
    if refused[1] == "busy":
        named_refusal(refused, "busy")
    return refused[1], other[0], waiting


def check_tickets():
    rows = {"aa": (200, ""), "ab": (200, ""), "a1": (403, "identity_taken"), "ba": (403, "banned"), "bb": (403, "banned"), "ca": (401, "wrong_ticket"), "cb": (401, "wrong_ticket")}
    with Platform() as platform, Ends(Full(platform.options(), "--rate", "100000", binary="full-san")) as backend:
        for start in "aa ab a1 ba bb bc bd ca cb cc cd ce cf c0 c1 c2 da db dc dd".split():
            answer = backend.login(ticket=start + "0123456789abcdef")
            equal((start, short(answer)), (start, rows.get(start, (503, "platform_unreachable"))), "what comes of it")
        answer = backend.login(ticket="AA" + "0f" * 2559)
        session = session_of(answer)
        equal(answer[2]["client_id"], "76561197960287930", "the id")
        good_token(backend.ask(TOKEN, session), "76561197960287930")
        for ticket in ("", "aa", "aa" * 2561, "xx" * 20, "a" * 21, "aa&key=other" + "0" * 20):
            equal(short(backend.login(ticket=ticket)), (400, "wrong_field"), "a ticket %.20r" % ticket)
        expect(PLATFORM_KEY not in backend.text(), "the log holds the key")
        for _ in range(3):  # the backend gives a platform 2 s: where one of us stands still so long, nobody waits any more
            heard = others_of_a_platform(platform, backend)
            if heard == ("busy", 200, 16):
                break
        equal(heard, ("busy", 200, 16), "while 16 wait for the platform: a ticket's login, a credential's, and how many wait still")
        platform.slow = 3.0
        named_refusal(backend.login(ticket="aa" + "0" * 20), "platform_unreachable")
        platform.slow = 0.0
        session_of(backend.login(ticket="aa" + "0" * 20))
        write(platform.key_file, "other\n")
        backend.reload()
        named_refusal(backend.login(ticket="aa" + "0" * 20), "platform_unreachable")
        equal(backend.end(), 0, "the backend's status")
    return "%d answers of a platform" % 20


# ---- sessions in memory ----


def check_memory():
    players = write(B.scratch("players"), read(place("players")), 0o644)
    with Issuer() as issuer, Ends(Full(issuer.options(), "--rate", "1000", "--sessions", "20", "--session-seconds", "10", "--players", players, binary="full-san")) as backend:
        backend.line("oidc: 2 keys of")
        alice = secret("alice")
        session = session_of(backend.login(alice))
        good_token(backend.ask(TOKEN, session), "1001")
        good_token(backend.ask(TOKEN, alice), "1001")  # the credential itself is as good as before
        equal(short(backend.ask(LOGIN, session)), (401, "unknown_credential"), "a session that wants a session")
        equal(short(backend.ask(LOGOUT, alice)), (401, "unknown_credential"), "an account that logs out")
        equal(short(backend.ask(LOGIN)), (401, "no_credential"), "a login without a credential")
        equal(short(backend.ask(LOGOUT)), (401, "no_credential"), "a logout without a credential")
        equal(short(backend.ask(LOGIN, secret("outsider"))), (401, "unknown_credential"), "a login with an unknown credential")
        equal(short(backend.ask(LOGOUT, session)), (200, ""), "the logout")
        equal(short(backend.ask(LOGOUT, session)), (401, "unknown_credential"), "another logout")
        equal(short(backend.ask(TOKEN, session)), (401, "unknown_credential"), "a token after the logout")
        sessions = [session_of(backend.login(alice)) for _ in range(10)]
        equal([backend.ask(TOKEN, one)[0] for one in sessions], [401] * 2 + [200] * 8, "the sessions of one player, the oldest first")
        guests = [backend.login(id_token=issuer.token(sub="guest-%d" % index)) for index in range(15)]
        equal([short(answer) for answer in guests], [(200, "")] * 12 + [(503, "too_many_sessions")] * 3, "logins beyond --sessions")
        equal(backend.number("sessions"), 20, "the sessions")
        begun = time.monotonic()
        until(lambda: backend.number("sessions") == 0, "their end")
        expect(time.monotonic() - begun > 1.0, "they ended at once")
        equal(backend.ask(TOKEN, sessions[-1])[0], 401, "an ended session's token")
        until(lambda: backend.login(id_token=issuer.token(sub="later"))[0] == 200, "a place for a new one", 60 + B.LIMIT_SECONDS)
        session = session_of(backend.login(alice))
        write(players, "".join(line for line in read(players).splitlines(True) if " 1001 " not in line), 0o644)
        backend.reload()
        equal(short(backend.ask(TOKEN, session)), (401, "unknown_credential"), "a session of one that left the file")
        equal(backend.end(), 0, "the backend's status")
    check_kinds_of_sessions(players)
    with Issuer() as issuer, Ends(Full(issuer.options(), "--rate", "5", "--sessions", "20")) as backend:
        backend.line("oidc: 2 keys of")
        answers = [backend.login(id_token=issuer.token()) for _ in range(3)]
        session = session_of(answers[0])
        statuses = [backend.ask(TOKEN, session)[0] for _ in range(4)]
        equal(statuses, [200, 200, 429, 429], "tokens of one that may ask five times")
        equal([backend.ask(LOGOUT, session_of(answer))[0] for answer in answers], [200] * 3, "the logouts")
        time.sleep(0.5)  # in which whoever has no session is looked at
        equal(backend.login(id_token=issuer.token())[0], 429, "a new login does not make it more")
        session_of(backend.login(id_token=issuer.token(sub="another")))
    return "8 for each player, 20 in all"


def check_kinds_of_sessions(players):
    """An account and a guest of the same id, one after the other: no session of one is ever the other's."""
    listed = read(place("players"))
    without = "".join(line for line in listed.splitlines(True) if " 1001 " not in line)
    write(players, without, 0o644)
    with Platform() as platform, Ends(Full(platform.options(), "--rate", "1000", "--players", players, binary="full-san")) as backend:
        ticket = "a1" + "0" * 20  # of the platform's player 1001
        guest = session_of(backend.login(ticket=ticket))
        good_token(backend.ask(TOKEN, guest), "1001")
        write(players, listed, 0o644)
        backend.reload()
        equal(short(backend.ask(TOKEN, guest)), (401, "unknown_credential"), "a guest's session where an account has the id now")
        account = session_of(backend.login(secret("alice")))
        equal(short(backend.ask(TOKEN, guest)), (401, "unknown_credential"), "the guest's session after the account's login")
        good_token(backend.ask(TOKEN, account), "1001")
        write(players, without, 0o644)
        backend.reload()
        session_of(backend.login(ticket=ticket))
        equal(short(backend.ask(TOKEN, account)), (401, "unknown_credential"), "the account's session after the guest's login")
        equal(backend.end(), 0, "the backend's status")


def check_options():
    def refuses(pattern, status, *options):
        B.refuses(B.PROGRAMS["full"], B.arguments() + list(options), status, pattern)

    refuses("wants https://", 2, "--oidc", "http://issuer.example", "--oidc-audience", "a")
    refuses("wants https://", 2, "--oidc", "https://issuer.example")
    refuses("wants https://", 2, "--ticket-url", "https://platform.example")
    refuses("wants https://", 2, "--ticket-url", "http://platform.example", "--ticket-key-file", place("platform.key"), "--ticket-app-id", "5")
    refuses("with --redis alone", 2, "--redis-password-file", place("alice"))
    refuses("not HOST:PORT", 1, "--redis", "nowhere")
    refuses("the prefix", 1, "--redis", "127.0.0.1:1", "--redis-prefix", "a*")
    refuses("others than its owner", 1, "--redis", "127.0.0.1:1", "--redis-password-file", write(B.scratch("open"), "x\n", 0o644))
    refuses("others than its owner", 1, "--ticket-url", "https://platform.example", "--ticket-key-file", write(B.scratch("open"), "x\n", 0o644), "--ticket-app-id", "5")
    for option, value in (("--session-seconds", "0"), ("--session-seconds", "604801"), ("--sessions", "0"), ("--ticket-app-id", "x"), ("--oidc", "")):
        refuses("is no option, or its value", 2, option, value)
    for words, pattern in ((["revoke"], "takes a CLIENT_ID"), (["revoke", "x"], "takes a CLIENT_ID"), (["revoke", "5"], "--redis"), (["revoke", "5", "0", "--redis", "127.0.0.1:1"], "takes a CLIENT_ID"), (["restore", "5", "5"], "no option"), (["client-id", "x", "y"], "takes an ISSUER")):
        B.refuses(B.PROGRAMS["full"], words, 2, pattern)
    with Issuer() as issuer:
        command = [B.PROGRAMS["full"], "--listen", "127.0.0.1:0", "--key-file", place("key"), "--servers", place("listed")]
        B.refuses(B.PROGRAMS["full"], command[1:], 2, "are required")
        with Ends(B.Process(command + issuer.options())) as backend:  # no accounts: the issuer's players alone
            port = int(backend.line(r"listening on 127\.0\.0\.1:(\d+)").group(1))
            backend.line("oidc: 2 keys of")
            session_of(ask(port, LOGIN, None, json.dumps({"id_token": issuer.token()})))
    return ""


# ---- two backends and a Redis ----


def two(stack, redis, *options, binary="full"):
    return [stack.enter_context(Ends(Full(redis.options(), *options, binary=binary))) for _ in range(2)]


def reached(*backends):
    for backend in backends:
        until(lambda: backend.number("store_reachable") == 1, "Redis, from a backend")


def revoke(redis, *words):
    result = B.run([B.PROGRAMS["full"]] + list(words) + redis.options(), timeout=20)
    return result.returncode, (result.stdout + result.stderr).decode().strip()


def check_common():
    """A session of one is good at the other, a rate is one, a revocation ends all: at once, and for both."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        issuer = stack.enter_context(Issuer())
        one, other = two(stack, redis, issuer.options(), "--rate", "40", binary="full-san")
        reached(one, other)
        one.line("oidc: 2 keys of")
        alice = secret("alice")
        session = session_of(one.login(alice))
        good_token(other.ask(TOKEN, session), "1001")
        good_token(one.ask(TOKEN, session), "1001")
        good_token(other.ask(TOKEN, alice), "1001")
        digest = hashlib.blake2b(session.encode(), digest_size=32).hexdigest()
        equal(redis.cli("hget", "netcode:login:" + digest, "id"), "1001", "the session in Redis")
        everything = "\n".join(redis.cli("keys", "*").split("\n") + [redis.cli("hgetall", "netcode:login:" + digest)])
        expect(session not in everything and alice not in everything, "a credential is kept in Redis")
        expect(43000 < int(redis.cli("ttl", "netcode:login:" + digest)) <= 43200, "the session's time to live")
        equal(short(other.ask(LOGOUT, session)), (200, ""), "a logout at the other")
        equal(short(one.ask(TOKEN, session)), (401, "unknown_credential"), "a token after it")
        sessions = [session_of((one, other)[index % 2].login(secret("carol"))) for index in range(10)]
        equal([one.ask(TOKEN, each)[0] for each in sessions], [401] * 2 + [200] * 8, "the sessions of one player, the oldest first")

        # A rate: forty a minute in all, however many ask at once, and whomever.
        begun = time.monotonic()
        answers = many(32, lambda index: [(one, other)[(index + turn) % 2].login(id_token=issuer.token(sub="hasty")) for turn in range(3)])
        most = 40 + int((time.monotonic() - begun) * 40 / 60) + 1  # one comes back every 1.5 s
        statuses = [answer[0] for answers_of_one in answers for answer in answers_of_one]
        good = statuses.count(200)
        expect(40 <= good <= most and statuses.count(429) == 96 - good, "of 96 logins %d were good, %d limited; at most %d may be good" % (good, statuses.count(429), most))
        limited = [answer for answers_of_one in answers for answer in answers_of_one if answer[0] == 429]
        expect(all(1 <= int(answer[3]["Retry-After"]) <= 3 for answer in limited), "Retry-After of a limited one")

        # A full server counts where the player's last token led to it, whichever backend gave that.
        report = {"name": "ap-1", "address": "127.0.0.1:40007", "slots": 1, "clients": 0, "draining": False, "protocol_id": B.PROTOCOL_ID}
        for clients in (0, 1):
            for backend in (one, other):
                equal(B.report(backend.port, {**report, "clients": clients})[0], 200, "a report")
            if clients == 0:
                good_token(one.ask(TOKEN, secret("alice"), '{"server":"ap-1"}'), "1001")
        found = [backend.ask(TOKEN, secret(name), '{"server":"ap-1"}') for backend, name in ((other, "alice"), (one, "alice"), (other, "bob"), (one, "bob"))]
        equal([short(answer) for answer in found], [(200, "")] * 2 + [(503, "no_server")] * 2, "tokens for a full server")

        # Revocations.
        bob = secret("bob")
        mine, hers = session_of(one.login(bob)), session_of(other.login(id_token=issuer.token(sub="her")))
        her = client_id_of(issuer.url, "her")
        equal(revoke(redis, "revoke", str(B.BOB)), (0, "%d is revoked, and 1 sessions have ended" % B.BOB), "the command")
        equal(revoke(redis, "revoke", her, "4"), (0, "%s is revoked, and 1 sessions have ended" % her), "the command")
        equal(short(one.login(id_token=issuer.token(sub="her"))), (403, "revoked"), "her login")
        for backend in (one, other):
            for session in (mine, hers):
                equal(short(backend.ask(TOKEN, session)), (401, "unknown_credential"), "a revoked player's session")
            equal(short(backend.ask(TOKEN, bob)), (403, "revoked"), "a revoked player's account")
            equal(short(backend.login(bob)), (403, "revoked"), "a revoked player's login")
        equal(redis.cli("exists", "netcode:revoked:%d" % B.BOB), "1", "the key that game servers look at")
        until(lambda: one.login(id_token=issuer.token(sub="her"))[0] == 200, "the end of her four seconds")
        equal(short(other.ask(TOKEN, hers)), (401, "unknown_credential"), "a session from before stays ended")
        equal(revoke(redis, "restore", str(B.BOB))[0], 0, "the command that takes it back")
        equal(revoke(redis, "restore", str(B.BOB)), (0, "%d was not revoked" % B.BOB), "and again")
        good_token(other.ask(TOKEN, bob), str(B.BOB))

        # A backend with shorter sessions: the list of a player's sessions ends with the last of them, not with the newest.
        short_lived = stack.enter_context(Ends(Full(redis.options(), "--session-seconds", "1")))
        reached(short_lived)
        lasting = session_of(one.login(bob))
        session_of(short_lived.login(bob))
        time.sleep(1.5)
        equal(revoke(redis, "revoke", str(B.BOB))[0], 0, "the command")
        equal(revoke(redis, "restore", str(B.BOB))[0], 0, "the command that takes it back")
        equal(short(other.ask(TOKEN, lasting)), (401, "unknown_credential"), "a revoked session that outlives a newer one")
        session_of(short_lived.login(bob))
        until(lambda: redis.cli("exists", "netcode:logins:%d" % B.BOB) == "0", "the list's end, with that of its last session")
        for backend in (one, other):
            equal(backend.end(), 0, "the backend's status")
    return "%d of 96 logins at both within a rate of 40" % good


def check_servers():
    """A report to one backend is known to the other, as old as it is; a promised slot stays promised."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        one, other = two(stack, redis, binary="full-san")
        foreign = stack.enter_context(Ends(Full(redis.options(), "--protocol-id", "7")))
        reached(one, other, foreign)
        alice, bob, key = secret("alice"), secret("bob"), "netcode:servers:0x%x" % int(B.PROTOCOL_ID, 0)
        report = {"name": "ap-1", "address": "127.0.0.1:40007", "slots": 1, "clients": 0, "draining": False, "protocol_id": B.PROTOCOL_ID}
        wish = '{"server":"ap-1"}'
        redis.cli("hset", key, "bad", "nonsense")
        redis.cli("hset", key, "worse", redis.cli("time").split()[0] + '000 {"name":')
        equal(B.report(one.port, report)[0], 200, "a report")
        begun = time.monotonic()
        until(lambda: short(other.ask(TOKEN, alice, wish)) == (200, ""), "a token for it from the other")
        took = time.monotonic() - begun

        # Its one slot is promised now, by this backend; what it reads once a second is no newer report.
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            equal(short(other.ask(TOKEN, bob, wish)), (503, "no_server"), "a token for a promised slot")
            time.sleep(0.3)
        equal(B.report(one.port, report)[0], 200, "a newer report")
        until(lambda: short(other.ask(TOKEN, bob, wish)) == (200, ""), "a token after it")

        equal(foreign.ask(TOKEN, alice, wish)[0], 503, "a server of another protocol id")
        equal(redis.cli("hexists", key, "bad"), "0", "what is no report is taken out")
        long = {**report, "name": "ap-2", "note": "x" * 4000}
        equal(B.report(one.port, long)[0], 200, "a long report")
        until(lambda: other.metrics()['netcode_backend_servers{state="silent"}'] == "1", "silence, at the other")
        equal(short(other.ask(TOKEN, alice, '{"server":"ap-2"}')), (503, "no_server"), "a report that is too long to be shared")
        until(lambda: redis.cli("hlen", key) == "0", "old reports are taken out of Redis")
        for backend in (one, other, foreign):
            equal(backend.end(), 0, "the backend's status")
    return "the other knew after %.1f s" % took


def check_clock():
    """What a clock of Redis that is set back by an hour leaves: times that are an hour ahead."""
    ahead = time.time() + 3600
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        hasty = stack.enter_context(Ends(Full(redis.options(), "--rate", "5", binary="full-san")))
        other = stack.enter_context(Ends(Full(redis.options(), "--rate", "1000", binary="full-san")))
        reached(hasty, other)

        # A player who had used up his rate just before: it is whole, and counts from now on.
        redis.cli("hset", "netcode:rate:player:1001", "left", "0.000000", "at", "%.6f" % ahead)
        answers = [hasty.ask(TOKEN, secret("alice")) for _ in range(7)]
        equal([answer[0] for answer in answers], [200] * 5 + [429] * 2, "tokens of one whose rate was used up an hour ahead")
        expect(1 <= int(answers[-1][3]["Retry-After"]) <= 12, "Retry-After is %s" % answers[-1][3]["Retry-After"])

        # A server that died just before: its last report is not taken for a new one. One that lives is known by its next.
        key, bob = "netcode:servers:0x%x" % int(B.PROTOCOL_ID, 0), secret("bob")
        report = {"name": "ap-1", "address": "127.0.0.1:40007", "slots": 8, "clients": 0, "draining": False, "protocol_id": B.PROTOCOL_ID}
        now = int(redis.cli("time").split()[0]) * 1000
        redis.cli("hset", key, "ap-1", "%d %s" % (ahead * 1000, json.dumps(report)), "ap-2", "%d %s" % (now, json.dumps({**report, "name": "ap-2", "address": "127.0.0.1:40008"})))
        until(lambda: short(other.ask(TOKEN, bob, '{"server":"ap-2"}')) == (200, ""), "a token for a server that has just reported")
        equal(short(other.ask(TOKEN, bob, '{"server":"ap-1"}')), (503, "no_server"), "a token for a server whose report is dated ahead")
        equal((redis.cli("hexists", key, "ap-1"), redis.cli("hexists", key, "ap-2")), ("0", "1"), "what is dated ahead is taken out")
        equal(B.report(hasty.port, report)[0], 200, "its next report")
        until(lambda: short(other.ask(TOKEN, bob, '{"server":"ap-1"}')) == (200, ""), "a token after it")
        for backend in (hasty, other):
            equal(backend.end(), 0, "the backend's status")
    return "by an hour"


def check_revoked_under_load():
    """While a player asks both all the time: after the command has ended, no token and no session is given."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        backends = two(stack, redis, "--rate", "100000")
        reached(*backends)
        alice, stop, late, count = secret("alice"), threading.Event(), [], itertools.count()
        revoked_at = [None]

        def work(index):
            while not stop.is_set():
                path, begun = (TOKEN, LOGIN)[index % 2], time.monotonic()
                answer = backends[next(count) % 2].ask(path, alice)
                expect(answer[0] in (200, 403), "%s" % answer[2])
                if answer[0] == 200 and revoked_at[0] is not None and begun > revoked_at[0]:
                    late.append(begun - revoked_at[0])

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            workers = [pool.submit(work, index) for index in range(6)]
            time.sleep(0.5)
            equal(revoke(redis, "revoke", "1001")[0], 0, "the command")
            revoked_at[0] = time.monotonic()
            time.sleep(0.5)
            stop.set()
            for worker in workers:
                worker.result()
        equal(late, [], "answers to a revoked player")
        equal(redis.cli("keys", "netcode:login*"), "", "his sessions")
    return "%d requests" % next(count)


class Load:
    """Players that log in and ask for tokens all the time; what they hear is counted, and must be named."""

    ALLOWED = {(200, ""), (503, "store_unreachable"), (503, "store_full"), (503, "busy"), (503, "backend_down")}

    def __init__(self, ports, threads=6, more=()):
        self.ports, self.heard, self.wrong, self.slowest = ports, {}, [], 0.0
        self.allowed, self.lock, self.stopped = self.ALLOWED | set(more), threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(index,)) for index in range(threads)]

    def hear(self, answer, seconds, client_id):
        with self.lock:
            key = short(answer)
            self.heard[key] = self.heard.get(key, 0) + 1
            self.slowest = max(self.slowest, seconds)
            if key not in self.allowed or (key[0] == 200 and answer[2].get("client_id") != client_id) or (key[0] == 503 and not answer[3]["Retry-After"]):
                self.wrong.append(answer[2])

    def work(self, index):
        name, client_id = (("alice", "1001"), ("bob", str(B.BOB)))[index % 2]
        for turn in itertools.count(index):
            if self.stopped.is_set():
                return
            begun = time.monotonic()
            try:
                answer = ask(self.ports[turn % len(self.ports)], (LOGIN, TOKEN)[turn // 2 % 2], secret(name))
            except (OSError, ValueError, B.http.client.HTTPException) as problem:
                with self.lock:
                    self.wrong.append(repr(problem))
                return
            self.hear(answer, time.monotonic() - begun, client_id)

    def take(self):
        """What was heard since."""
        with self.lock:
            heard, self.heard = self.heard, {}
            return heard

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def memory_of(process):
    """In bytes, what it uses now."""
    return int(read("/proc/%d/status" % process.pid).split("VmRSS:")[1].split()[0]) << 10


def quick(backend):
    """Health and metrics at once, whatever Redis does."""
    for _ in range(3):  # who really waits is slow each time
        begun = time.monotonic()
        status, _, text = B.get(backend.port, "/healthz")
        backend.metrics()
        took = time.monotonic() - begun
        if took < 0.5:
            break
    expect(took < 0.5, "health and metrics took %.2f s" % took)
    return status, json.loads(text)


def check_trouble():
    """Redis killed, paused, cut off, slow, full, restarted, under load: named refusals with Retry-After, then all is well again."""
    faults_met = []
    with contextlib.ExitStack() as stack:
        folder = B.scratch("kept")
        redis = [stack.enter_context(Ends(Redis(keeps=folder)))]
        relay = stack.enter_context(Relay(redis[0]))
        one = stack.enter_context(Ends(Full(redis[0].options(), "--rate", "100000")))
        other = stack.enter_context(Ends(Full("--redis", relay.address, "--rate", "100000")))
        reached(one, other)
        session = session_of(one.login(secret("carol")))  # the others' logins would end theirs
        load = stack.enter_context(Load([one.port, other.port]))

        def trouble(name, error, begin, end, who):
            load.take()
            begin()
            for backend in who:
                until(lambda: short(backend.ask(TOKEN, session)) == (503, error), "%s at %s" % (error, name))
            load.take()
            time.sleep(0.4)
            for backend in who:
                status, health = quick(backend)
                if error == "store_unreachable":
                    equal((status, health["status"], health["store"]), (503, "store_unreachable", "unreachable"), "health while it is " + name)
                    equal(backend.number("store_reachable"), 0, "the metric while it is " + name)
            until(lambda: load.take().get((503, error), 0) > 0, "the load hears %s" % error)
            end()
            begun = time.monotonic()
            for backend in who:
                until(lambda: backend.ask(TOKEN, session)[0] == 200, "it works again after " + name)
                equal(quick(backend)[0], 200, "health after " + name)
            faults_met.append("%s %.1f s" % (name, time.monotonic() - begun))
            good_token(who[0].ask(TOKEN, session), "3")  # the session is there still

        def start():
            redis[0] = stack.enter_context(Ends(Redis(keeps=folder)))

        def set_delay(seconds):
            relay.delay = seconds

        used = int(redis[0].cli("info", "memory").split("used_memory:")[1].split()[0])
        trouble("paused", "store_unreachable", lambda: redis[0].process.send_signal(signal.SIGSTOP), lambda: redis[0].process.send_signal(signal.SIGCONT), [one, other])
        trouble("killed", "store_unreachable", lambda: redis[0].kill(), start, [one, other])
        relay.redis = redis[0]
        trouble("slow", "store_unreachable", lambda: set_delay(1.5), lambda: set_delay(0.0), [other])
        full = lambda: redis[0].cli("config", "set", "maxmemory", str(used // 2))
        trouble("full", "store_full", full, lambda: redis[0].cli("config", "set", "maxmemory", "0"), [one, other])
        load.take()
        set_delay(0.15)  # slow, but in time: no client is refused
        time.sleep(0.8)
        until(lambda: other.ask(TOKEN, session)[0] == 200, "a token over a slow way")
        relay.cut()
        until(lambda: other.ask(TOKEN, session)[0] == 200, "another connection after the cut")
        set_delay(0.0)
        load.stopped.set()
        for thread in load.threads:
            thread.join()
        equal(load.wrong, [], "answers that no client should get")
        expect(load.slowest < 4.5, "the slowest answer took %.1f s" % load.slowest)
        for backend in (one, other):
            expect(backend.find("error: .* can not be reached") and backend.find("can be reached$"), "the log does not report it:\n" + backend.text())
            expect(len(backend.lines) < 60, "the log has %d lines" % len(backend.lines))
            equal(backend.number("suspended_requests"), 0, "requests that wait at the end")
    return "well again after: %s; slowest answer %.1f s" % (", ".join(faults_met), load.slowest)


def check_bounds():
    """Redis hangs and 220 ask: 128 wait, the others are refused as busy; memory stays; SIGTERM ends it in time, with answers."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        backend = stack.enter_context(Ends(Full(redis.options(), "--rate", "100000", binary="full")))
        reached(backend)
        for _ in range(50):
            backend.ask(TOKEN, secret("alice"))
        before = memory_of(backend)
        heard = {}
        for _ in range(3):
            redis.process.send_signal(signal.SIGSTOP)
            answers = many(220, lambda _: backend.ask(TOKEN, secret("alice")))
            redis.process.send_signal(signal.SIGCONT)
            for answer in answers:
                named_refusal(answer, answer[1])
                heard[answer[1]] = heard.get(answer[1], 0) + 1
            until(lambda: backend.ask(TOKEN, secret("alice"))[0] == 200, "Redis again")
        equal(sorted(heard), ["busy", "store_unreachable"], "what they heard")
        grown = memory_of(backend) - before
        expect(grown < 16 << 20, "the memory grew by %d KB" % (grown >> 10))
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            for _ in range(3):  # they wait for a second only: who looks too late must try again
                redis.process.send_signal(signal.SIGSTOP)
                last = [pool.submit(backend.ask, TOKEN, secret("alice")) for _ in range(5)]
                if until(lambda: backend.number("suspended_requests") == 5 or all(future.done() for future in last) and "late", "five that wait") != "late":
                    break
                redis.process.send_signal(signal.SIGCONT)
                until(lambda: backend.ask(TOKEN, secret("alice"))[0] == 200, "Redis again")
            else:
                raise B.Failure("five that wait were never seen together")
            begun = time.monotonic()
            equal(backend.end(), 0, "the status with requests that wait")
            took = time.monotonic() - begun
            for future in last:
                named_refusal(future.result(), "store_unreachable")
        redis.process.send_signal(signal.SIGCONT)
        expect(took < 3.5, "the end took %.1f s" % took)
    return "%d busy and %d unreachable of 660, %d KB more, ends in %.1f s" % (heard["busy"], heard["store_unreachable"], grown >> 10, took)


def check_redis_start():
    """Without Redis it starts, says so and refuses; with a password; with strange data in its keys."""
    with contextlib.ExitStack() as stack:
        folder = B.scratch("late")
        os.makedirs(folder)
        backend = stack.enter_context(Ends(Full("--redis", "unix:%s/redis.sock" % folder, "--redis-password-file", place("redis.password"), binary="full-san")))
        named_refusal(backend.ask(TOKEN, secret("alice")), "store_unreachable")
        named_refusal(backend.login(secret("alice")), "store_unreachable")
        equal(quick(backend)[0], 503, "health")
        result = B.run([B.PROGRAMS["full"], "revoke", "5", "--redis", "unix:%s/redis.sock" % folder], timeout=20)
        expect(result.returncode == 1 and b"did not confirm" in result.stderr, "a revocation without Redis: %s" % result.stderr.decode())
        redis = stack.enter_context(Ends(Redis("--requirepass", secret("redis.password"), keeps=folder)))
        until(lambda: backend.ask(TOKEN, secret("alice"))[0] == 200, "Redis")
        result = B.run([B.PROGRAMS["full"], "revoke", "5", "--redis", "unix:%s/redis.sock" % folder], timeout=20)
        equal(result.returncode, 1, "the status of a revocation without the password")
        password = ["-a", secret("redis.password"), "--no-auth-warning"]
        session = session_of(backend.login(secret("alice")))
        digest = hashlib.blake2b(session.encode(), digest_size=32).hexdigest()
        for words in (["hset", "netcode:login:" + digest, "id", "x"], ["hset", "netcode:login:" + digest, "id", "1001", "name", "n" * 100], ["hset", "netcode:login:" + digest, "name", "n", "id", "9" * 30], ["set", "netcode:login:" + digest, "x"], ["set", "netcode:rate:player:1001", "x"]):
            redis.cli(*password, *words)
            answer = backend.ask(TOKEN, session)
            expect(short(answer) == (503, "store_unreachable") or answer[0] == 401, "%s: %s" % (words, answer[2]))
        expect(backend.find("error: it answers: (WRONGTYPE|an answer that our)"), "the log does not say what Redis answers:\n" + backend.text())
        redis.cli(*password, "flushall")
        good_token(backend.ask(TOKEN, secret("alice")), "1001")
        expect(secret("redis.password") not in backend.text(), "the log holds the password")
        expect(not backend.find("maxmemory-policy"), "the log complains of a good policy")
        equal(backend.end(), 0, "the backend's status")

        # As the user of the ACL that REDIS.md writes.
        redis = stack.enter_context(Ends(Redis("--maxmemory-policy", "allkeys-lru")))
        text = read(os.path.join(B.ROOT, "examples", "fleet", "REDIS.md")).split("    user backend on >PASSWORD ")[1].split("\n")[0]
        redis.cli("acl", "setuser", "backend", "on", ">" + secret("redis.password"), *text.replace("\\\n", " ").split())
        user = ["--redis-user", "backend", "--redis-password-file", place("redis.password")]
        backend = stack.enter_context(Ends(Full(redis.options(), user, "--rate", "1000")))
        backend.line("its maxmemory-policy is not noeviction")
        reached(backend)
        session = [session_of(backend.login(secret("alice"))) for _ in range(10)][-1]
        for _ in range(2):
            good_token(backend.ask(TOKEN, session), "1001")
        equal(short(backend.ask(LOGOUT, session)), (200, ""), "the logout")
        for words in (["revoke", "1001", "5"], ["revoke", "1001"], ["restore", "1001"]):
            equal(revoke(redis, *words, *user)[0], 0, "the status of " + " ".join(words))
        equal(redis.cli("get", "netcode:home:1001"), "eu-1", "the server of the last token")
        expect(not backend.find("error: it answers"), "the ACL has not all of it:\n" + backend.text())
    return ""


# ---- nginx in front of two ----


NGINX_FORGIVES = 2.1  # seconds: a worker leaves one that failed alone until its fail_timeout is over, and counts whole seconds


def over_tls(nginx, path, credential=None, body=None, seconds=15, source=None):
    context = ssl.create_default_context(cafile=place("ca.pem"))
    connection = B.http.client.HTTPSConnection("localhost", nginx.port, timeout=seconds, context=context, source_address=source and (source, 0))
    try:
        connection.request("POST", path, body, headers_of(credential))
        response = connection.getresponse()
        answer = json.loads(response.read())
        return response.status, answer.get("error", ""), answer, response.headers
    finally:
        connection.close()


def patient(nginx, retries, *arguments):
    """As a player's client: once more where the backend is said to be away. More than once is too often."""
    answer = over_tls(nginx, *arguments)
    if answer[0] == 503:
        retries.append(answer[1])
        time.sleep(int(answer[3]["Retry-After"]))
        answer = over_tls(nginx, *arguments)
    return answer


def kill_in_mid_login(redis, backends, nginx, *proof):
    """A login that Redis holds up while its backend is killed: (the answer, the player's retries, the backend; None: its second was over before we saw it)"""
    retries = []
    redis.process.send_signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(patient, nginx, retries, LOGIN, *proof)

        def holders():
            return [None] if retries else [index for index in range(2) if backends[index].number("suspended_requests") == 1]

        holder = until(holders, "a login in flight")[0]
        if holder is not None:
            backends[holder].end(signal.SIGKILL)
        redis.process.send_signal(signal.SIGCONT)
        return future.result(), retries, holder


def check_nginx():
    """One backend is killed between a login and its token, and in the middle of a login: the player gets in by the other."""
    retries, rounds = [], 0
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        issuer = stack.enter_context(Issuer())
        options = [redis.options(), issuer.options(), "--rate", "100000"]
        backends = [stack.enter_context(Ends(Full(*options))) for _ in range(2)]
        reached(*backends)
        for backend in backends:
            backend.line("oidc: 2 keys of")
        nginx = stack.enter_context(B.Nginx(" max_fails=3 fail_timeout=1s; server ".join(backend.address for backend in backends)))

        def again(index):
            backends[index] = stack.enter_context(Ends(Full(*options, listen=backends[index].address)))
            reached(backends[index])
            backends[index].line("oidc: 2 keys of")
            time.sleep(NGINX_FORGIVES)  # here the next one is killed then, and not at once

        for proof in ({}, {"id_token": issuer.token(sub="killed")}):  # between the login and the token
            answer = over_tls(nginx, LOGIN, None if proof else secret("alice"), json.dumps(proof) if proof else None)
            session = session_of(answer)
            killed = max(range(2), key=lambda index: sum(backends[index].number('logins_total{by="%s"}' % by) for by in ("credential", "id_token")))
            backends[killed].end(signal.SIGKILL)
            for _ in range(3):
                good_token(patient(nginx, retries, TOKEN, session), answer[2]["client_id"])
            again(killed)
            rounds += 1
        for proof in ({}, {"id_token": issuer.token(sub="killed")}) * 2:  # in the middle: Redis holds the login up, so it is in flight
            for _ in range(3):  # it is for a second: who looks too late must try again
                answer, tries, holder = kill_in_mid_login(redis, backends, nginx, None if proof else secret("alice"), json.dumps(proof) if proof else None)
                if holder is not None:
                    break
                reached(*backends)
            else:
                raise B.Failure("no login was seen in flight")
            retries += tries
            session = session_of(answer)
            equal(answer[2]["client_id"], client_id_of(issuer.url, "killed") if proof else "1001", "who it is")
            good_token(patient(nginx, retries, TOKEN, session), answer[2]["client_id"])
            again(holder)
            rounds += 1
        equal(short(over_tls(nginx, LOGOUT, session)), (200, ""), "a logout over TLS")
        for _ in range(2):
            equal(short(over_tls(nginx, TOKEN, session)), (401, "unknown_credential"), "a token after it, at either")
        large = issuer.token(extra="x" * 4500)
        session_of(over_tls(nginx, LOGIN, None, json.dumps({"id_token": large})))
        equal(over_tls(nginx, LOGIN, None, "x" * 9000)[0], 413, "a huge login over TLS")
    # nginx counts a backend's failures until it works again: so many kills with so little between them may leave it without any for a moment.
    expect(len(retries) <= rounds // 3, "players had to retry %d times:\n%s" % (len(retries), nginx.text()))
    return "%d kills, %d retries by players" % (rounds, len(retries))


def logins_of_two_addresses(platform, backend, nginx):
    """While the platform holds all that come to it: what 23 of one address hear, and one of another, which comes when 19 of them have their answers."""
    body = json.dumps({"ticket": "aa" + "0" * 20})
    platform.released.clear()
    try:
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            greedy = [pool.submit(over_tls, nginx, LOGIN, None, body, 15, "127.0.0.1") for _ in range(23)]
            until(lambda: sum(future.done() for future in greedy) >= 19, "the end of those that are too many")
            other = pool.submit(over_tls, nginx, LOGIN, None, body, 15, "127.0.0.2")
            until(lambda: backend.number("suspended_requests") == 5 or other.done(), "the other address")
            platform.released.set()
            return [future.result() for future in greedy], other.result()
    finally:
        platform.released.set()


def check_login_places():
    """One address logs in by tickets, as often as it may and a platform is slow: another address has places."""
    with Platform() as platform, Ends(Full(platform.options(), "--rate", "1000")) as backend, B.Nginx(backend.address) as nginx:
        for _ in range(3):  # the backend gives a platform 2 s: where one of us stands still so long, those that wait are refused
            answers, other = logins_of_two_addresses(platform, backend, nginx)
            if [answer[0] for answer in answers].count(200) == 4 and other[0] == 200:
                break
        session_of(other)
        equal(sorted(map(short, answers)), [(200, "")] * 4 + [(429, "rate_limited")] * 19, "what the first address heard")
        equal({answer[3]["Retry-After"] for answer in answers if answer[0] == 429}, {"1"}, "Retry-After")
    return "4 of 23"


def check_nginx_load():
    """Players log in and ask over TLS while backends are killed and started: every answer is right, or says that they come again."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        options = [redis.options(), "--rate", "100000"]
        backends = [stack.enter_context(Ends(Full(*options))) for _ in range(2)]
        reached(*backends)
        nginx = stack.enter_context(B.Nginx(" max_fails=3 fail_timeout=1s; server ".join(backend.address for backend in backends)))
        stop, failures, counts, lock = threading.Event(), [], {"alice": 0, "bob": 0, "retries": 0}, threading.Lock()

        def player(name, client_id):
            while not stop.is_set():
                try:
                    retries = []
                    session = session_of(patient(nginx, retries, LOGIN, secret(name)))
                    good_token(patient(nginx, retries, TOKEN, session), client_id)
                    expect(len(retries) <= 1, "%d retries" % len(retries))
                    with lock:
                        counts[name] += 1
                        counts["retries"] += len(retries)
                    time.sleep(0.3)  # nginx allows an address ten a second
                except (B.Failure, OSError, ValueError, B.http.client.HTTPException) as problem:
                    failures.append(repr(problem))
                    return

        threads = [threading.Thread(target=player, args=row) for row in (("alice", "1001"), ("bob", str(B.BOB)))]
        for thread in threads:
            thread.start()
        for index in (0, 1, 0, 1):
            time.sleep(0.6)
            backends[index].end(signal.SIGKILL)
            time.sleep(0.4)
            backends[index] = stack.enter_context(Ends(Full(*options, listen=backends[index].address)))
            reached(backends[index])
            # Whoever was told to come again has done so before the next is killed, and no worker of nginx leaves this one alone any more.
            time.sleep(NGINX_FORGIVES)
            before = dict(counts)
            until(lambda: failures or all(counts[name] > before[name] for name in ("alice", "bob")), "a login of each player")
        stop.set()
        for thread in threads:
            thread.join()
        equal(failures, [], "players that were answered wrongly:\n" + nginx.text() + "\n" + nginx.log() + "\n" + "\n".join(backend.text() for backend in backends))
        good = counts["alice"] + counts["bob"]
        expect(good >= 8, "only %d logins" % good)
    return "4 kills, %d logins with tokens, %d retries by players" % (good, counts["retries"])


def check_play():
    """client_http logs in with an ID token over TLS, plays, and comes back when its server and its session are gone."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Ends(Redis()))
        issuer = stack.enter_context(Issuer())
        backends = two(stack, redis, issuer.options(), "--rate", "1000")
        reached(*backends)
        for backend in backends:
            backend.line("oidc: 2 keys of")
        nginx = stack.enter_context(B.Nginx(" max_fails=3 fail_timeout=1s; server ".join(backend.address for backend in backends)))
        servers = [stack.enter_context(Ends(B.Server(name, "--replace"))) for name in ("eu-1", "us-1")]
        listed = write(B.scratch("listed"), "".join("%s %s 8\n" % (server.address, server.report["name"]) for server in servers))
        for backend in backends:
            equal(backend.end(), 0, "the backend's status")
        backends = [stack.enter_context(Ends(Full(redis.options(), issuer.options(), "--servers", listed, "--rate", "1000", listen=backend.address))) for backend in backends]
        reached(*backends)
        for backend in backends:
            backend.line("oidc: 2 keys of")
        path = write(B.scratch("id-token"), issuer.token(sub="plays") + "\n")
        command = [B.PROGRAMS["client"], "--url", nginx.url, "--oidc-token", path, "--ca", place("ca.pem"), "--silence-ms", "2500", "--seconds", "4"]
        player = stack.enter_context(Ends(B.Process(command)))
        equal(player.wait(), 0, "the player's status:\n" + player.text())
        expect(player.find("client_id=%s " % client_id_of(issuer.url, "plays")), "whom the player plays as:\n" + player.text())
        expect(player.find(r"connects=1 .*wrong=0"), player.text())

        # Its server and its session end: it begins another session with the ID token, and plays on elsewhere.
        player = stack.enter_context(Ends(B.Process(command[:-1] + [str(B.LIMIT_SECONDS)])))
        address = player.line(r"connected to (\S+) ").group(1)
        redis.cli("flushall")
        [server.end(signal.SIGKILL) for server in servers if server.address == address]
        until(lambda: player.text().count("connected to ") == 2, "another connection:\n" + player.text())
        equal(player.end(), 0, "the player's status:\n" + player.text())
        expect(player.find("login refused: 401 unknown_credential") and player.find(r"connects=2 .*wrong=0"), player.text())

        write(path, issuer.token(aud="other") + "\n")
        player = stack.enter_context(Ends(B.Process(command)))
        equal(player.wait(), 4, "the status with another's token:\n" + player.text())
        expect(player.find("login refused: 401 wrong_identity"), player.text())
        expect(issuer.token()[:40] not in player.text(), "the player's log holds the token")
        for words in (["--credential-file", place("alice")], ["--oidc-token", place("nothing")]):
            result = B.run(command[:3] + ["--oidc-token", path] + words + command[5:])
            expect(result.returncode in (1, 2), "the status with %s: %d" % (words, result.returncode))
    return ""


def check_readme():
    """The commands of the README, as they stand there but for the ports."""
    folder = B.scratch("readme")
    os.makedirs(os.path.join(folder, "build"))
    os.symlink(B.PROGRAMS["full"], os.path.join(folder, "build", "backend-full"))
    for name, source in (("game.key", "key"), ("players", "players"), ("servers", "listed"), ("alice.credential", "alice")):
        shutil.copy(place(source), os.path.join(folder, name))
    blocks = [block.split("```")[0] for block in read(os.path.join(B.SOURCES, "README.md")).split("```sh\n")]
    block = [block for block in blocks if block.startswith("redis-server")][0]
    for port in ("8084", "8085"):
        block = block.replace(port, str(B.free_port()))
    script = "trap 'kill $(jobs -p); wait' EXIT\n" + block
    result = B.run(["bash", "-euc", script], cwd=folder, timeout=30)
    text = result.stdout.decode()
    equal(result.returncode, 0, "the status of the README's commands:\n" + text + result.stderr.decode())
    for words in ('"connect_token":"', "1001 is revoked, and 1 sessions have ended", '"error":"revoked"', "1001 may play again"):
        expect(words in text, "the README's commands do not print %r:\n%s" % (words, text))
    return ""


# ---- all of it ----

CHECKS = [
    ("redis: paused, killed, slow, full, cut, under load", check_trouble),
    ("oidc: tokens of all kinds", check_tokens),
    ("oidc: the issuer in trouble", check_issuer_trouble),
    ("nginx: a backend is killed in mid-login", check_nginx),
    ("oidc: keys are rotated", check_rotation),
    ("sessions: in memory", check_memory),
    ("redis: bounds", check_bounds),
    ("nginx: under load", check_nginx_load),
    ("nginx: logins of one address", check_login_places),
    ("tickets", check_tickets),
    ("redis: common to two", check_common),
    ("redis: revoked under load", check_revoked_under_load),
    ("redis: servers' reports", check_servers),
    ("redis: its clock is set back", check_clock),
    ("oidc: altered tokens", check_altered_tokens),
    ("oidc: who it is", check_identity),
    ("redis: at the start", check_redis_start),
    ("play: over TLS with an ID token", check_play),
    ("options", check_options),
    ("the README's commands", check_readme),
]
KEYS = {}
WORKERS = 4


def run_check(name, function):
    begun = time.monotonic()
    try:
        said = function()
        result = "ok"
    except Exception as problem:  # a check may fail in any way
        said, result = "%s: %s" % (type(problem).__name__, problem), "FAILED"
        if "-v" in sys.argv:
            import traceback

            traceback.print_exc()
    with B.lock:
        print("%s: %s%s (%.1f s)" % (result, name, ": " + said if said else "", time.monotonic() - begun), flush=True)
    return result == "ok"


def run_checks(words):
    chosen = [row for row in CHECKS if not words or any(word in row[0] for word in words)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return [future.result() for future in [pool.submit(run_check, *row) for row in chosen]]


def build(sources, mark=""):
    os.makedirs(B.BUILD, exist_ok=True)
    stamp = "-DSTAMP=%d" % max(os.path.getmtime(os.path.join(sources, "..", "fleet", name)) for name in ("redis.h", "request.h"))
    backend = os.path.join(sources, "backend.c")
    stamp = [stamp] + (["-O0", "-Wno-error"] if mark else ["-O1"])  # netcode.h takes its time with -O2
    jobs = {
        "full": (backend, "backend-full" + mark, PACKAGES, "-DBACKEND_FULL", *stamp),
        "full-san": (backend, "backend-full-san" + mark, PACKAGES, "-DBACKEND_FULL", *stamp, *B.SANITIZE),
        "client": (os.path.join(sources, "client_http.c"), "client_http" + mark, B.CLIENT_PACKAGES, *(["-O0"] if mark else [])),
    }
    if mark:
        del jobs["full-san"]  # a fault shows without sanitizers too
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = {name: pool.submit(B.build, *job) for name, job in jobs.items()}
        programs = {name: job.result() for name, job in made.items()}
    result = B.run(["make", "-C", B.ROOT, "build/server", "build/token"])
    expect(result.returncode == 0, "make build/server build/token:\n" + result.stderr.decode())
    programs.setdefault("full-san", programs["full"])
    return {**programs, "backend": programs["full"], "server": os.path.join(B.ROOT, "build", "server"), "token": os.path.join(B.ROOT, "build", "token")}


def make_keys():
    jobs = {"rsa": ("rsa-1",), "ec": ("ec-1", "ES256"), "outsider": ("rsa-2",), "weak": ("weak", "RS256", 1024), "curve": ("curve", "ES256", 0, "P-384"), "encrypts": ("encrypts",), "twins": ("twins",)}
    for name, job in jobs.items():
        KEYS[name] = Key(*job)


# File, text, fault, and the words of the checks of which one must fail.
PLANTS = [
    ("identity.h", "if ( strcmp( issuer, rules->issuer ) != 0 )", "if ( 0 )", "all kinds"),
    ("identity.h", "return found ? IDENTITY_OK", "return list ? IDENTITY_OK", "all kinds"),
    ("identity.h", "if ( cJSON_GetArraySize( list ) > 1 && (", "if ( ( cJSON_GetArraySize( list ) > 1 || party ) && (", "all kinds"),
    ("identity.h", "( !party || strcmp( party->valuestring, audience ) != 0 )", "!party", "all kinds"),
    ("identity.h", "if ( now >= expires + leeway )", "if ( 0 )", "all kinds"),
    ("identity.h", " || begins > now + leeway", "", "all kinds"),
    ("identity.h", "cjose_jws_verify( jws, key->jwk, &error );", "key->jwk;", "all kinds"),
    ("identity.h", "return *algorithm == IDENTITY_NO_ALGORITHM ? IDENTITY_ALGORITHM : IDENTITY_OK;", "*algorithm = *algorithm == IDENTITY_NO_ALGORITHM ? IDENTITY_RS256 : *algorithm;\n    return IDENTITY_OK;", "all kinds"),
    ("identity.h", "&& ( !kid || !strcmp( keys->keys[i].kid, kid ) ) ) {", ") {", "all kinds"),
    ("identity.h", "cJSON_IsObject( json ) && !identity_has_twins( json )", "cJSON_IsObject( json )", "all kinds"),
    ("identity.h", '|| strcasecmp( type->valuestring, "JWT" ) != 0', "", "all kinds"),
    ("identity.h", "#define IDENTITY_MIN_RSA_BYTES 256", "#define IDENTITY_MIN_RSA_BYTES 64", "all kinds"),
    ("identity.h", "!identity_key_is_for( key, algorithm ) ||", "", "all kinds"),
    ("identity.h", "    if ( strlen( token ) > IDENTITY_TOKEN_BYTES )\n        return IDENTITY_TOO_LARGE;", "", "all kinds"),
    ("identity.h", "sodium_base64_VARIANT_URLSAFE_NO_PADDING ) != 0 )\n        return NULL;", "sodium_base64_VARIANT_URLSAFE ) != 0 )\n        return NULL;", "all kinds"),
    ("identity.h", "return id >> 1;", "return id;", "who it is"),
    ("identity.h", "text && identity_is_utf8( text ) ?", "text ?", "who it is"),
    ("identity.h", "return is_wrong ? 0 : bytes;", "return is_wrong ? bytes : bytes;", "who it is"),
    ("identity.h", "rules->issuer ) != 0 )\n        return IDENTITY_ISSUER;", "rules->issuer ) != 0 )\n        return IDENTITY_ISSUER;\n    issuer = \"\";", "who it is"),
    ("oidc.h", "issuer && !strcmp( issuer, oidc->rules.issuer ) &&", "issuer &&", "trouble"),
    ("identity.h", "if ( !is_set )", "if ( !found.count )", "rotated"),
    ("oidc.h", "#define OIDC_ASK_SECONDS 10.0", "#define OIDC_ASK_SECONDS 0.0", "rotated"),
    ("oidc.h", "if ( oidc->stage == OIDC_IDLE && now - oidc->began_at >= OIDC_ASK_SECONDS )", "if ( 0 )", "rotated"),
    ("oidc.h", "request_set_authorities( request, ca_file )", "curl_easy_setopt( easy, CURLOPT_SSL_VERIFYPEER, 0L ) == CURLE_OK", "trouble"),
    ("ticket.h", "cJSON_IsTrue( platform ) || ", "", "tickets"),
    ("ticket.h", "!cJSON_IsBool( platform ) || ", "", "tickets"),
    ("ticket.h", '&&\n           strspn( text, "0123456789abcdefABCDEF" ) == bytes', "", "tickets"),
    ("ticket.h", "if ( strcmp( result, \"OK\" ) != 0 )", "if ( 0 )", "tickets"),
    ("store.h", ".. 'revoked:' .. id) == 1 then", ".. 'revoked:' .. id) == 2 then", "common,revoked"),
    ("store.h", "string.format('%.6f', left - 1)", "string.format('%.6f', left)", "common"),
    ("store.h", "if at > now then left, at = rate, now end ", "if at > now then at = now end ", "clock"),
    ("store.h", "for _, hash in ipairs(all) do redis.call('DEL', p .. 'login:' .. hash) end ", "", "common"),
    ("store.h", "while redis.call('ZCARD', logins) >= tonumber(ARGV[6]) do ", "while false do ", "common"),
    ("store.h", "logins, math.ceil(tonumber(last) - now)", "logins, ARGV[5]", "common"),
    ("store.h", 'if ( !strncmp( text, "OOM ", 4 ) )', "if ( 0 )", "paused"),
    ("store.h", "return *id >= '0' && *id <= '9' && !*end && !errno;", "return 1;", "at the start"),
    ("servers_store.h", "report.heard_at > server->heard_at + SERVERS_STORE_NEWER_SECONDS", "1", "reports"),
    ("servers_store.h", "heard_at = servers_store.sent_at - (double) milliseconds / 1000.0", "heard_at = servers_store.sent_at", "reports"),
    ("servers_store.h", "ARGV[1] .. 'servers:' .. ARGV[2], redis.call('TIME') \"\n    \"redis", "ARGV[1] .. 'servers:' .. 1, redis.call('TIME') \"\n    \"redis", "reports"),
    ("servers_store.h", " or age < -\" SERVERS_STORE_AHEAD \" then", "\" \" then", "clock"),
    ("logins.h", "if ( listed && !request->full.is_listed )", "if ( 0 )", "who it is"),
    ("logins.h", "if ( is_listed )\n        return listed;", "if ( is_listed )\n        return listed ? listed : guest;", "in memory"),
    ("logins.h", "    session->is_listed = listed != NULL;", "    for ( uint32_t i = owner->newest; i != SESSIONS_NONE; i = sessions->all[i].older )\n        sessions->all[i].is_listed = listed != NULL;", "in memory"),
    ("logins.h", "copy_name( request->player->home, answer->home );", ";", "common"),
    ("full.h", "#define FULL_MAX_SUSPENDED 128", "#define FULL_MAX_SUSPENDED 100000", "bounds"),
    ("full.h", "#define FULL_REDIS_SECONDS 1.0", "#define FULL_REDIS_SECONDS 30.0", "paused"),
    ("sessions.h", "    sessions_end_expired( sessions, owner, now );\n", "", "in memory"),
    ("sessions.h", "if ( owner->count >= SESSIONS_PER_PLAYER )", "if ( 0 )", "in memory"),
    ("sessions.h", "if ( !owner->count && sessions_owner_is_whole( sessions, owner, now ) )", "if ( !owner->count )", "in memory"),
    ("nginx.conf", "proxy_next_upstream_tries 2;", "proxy_next_upstream_tries 1;", "mid-login"),
    ("nginx.conf", "            limit_conn logins 4;\n", "", "one address"),
    ("login.h", "if ( result == LOGIN_WRONG_CREDENTIAL && login->id_token[0] ) {", "if ( 0 ) {", "play"),
    ("login.h", 'cJSON_AddStringToObject( json, "id_token", login->id_token )', 'cJSON_AddStringToObject( json, "ticket", login->id_token )', "play"),
]


def plant(index, name, text, fault, words):
    copy = place("copy/examples/backend")
    shutil.rmtree(place("copy"), ignore_errors=True)
    for path in B.glob.glob(os.path.join(B.BUILD, "*-planted*")):
        os.unlink(path)
    shutil.copytree(B.SOURCES, copy)
    shutil.copytree(os.path.join(B.ROOT, "examples", "fleet"), place("copy/examples/fleet"))
    shutil.copy(os.path.join(B.ROOT, "examples", "secret_file.h"), place("copy/examples"))
    os.symlink(os.path.join(B.ROOT, "netcode.h"), place("copy/netcode.h"))
    path = os.path.join(copy, name)
    source = read(path)
    expect(source.count(text) == 1, "plant %d: %s has %r %d times" % (index, name, text, source.count(text)))
    write(path, source.replace(text, fault), 0o644)
    B.FROM, B.PROGRAMS = copy, build(copy, "-planted")
    good = not all(run_checks(words.split(",")))
    print("%s: plant %d in %s is %s: %s" % ("ok" if good else "FAILED", index, name, "noticed" if good else "not noticed", text.strip().split("\n")[0]), flush=True)
    return good


def main():
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, B.stop)
    if subprocess.run(["sh", os.path.join(B.ROOT, "tests/tools/need.sh")] + NEEDS.split(), check=False).returncode:
        return 1
    B.folder = tempfile.mkdtemp(prefix="backends-redis-")
    os.chmod(B.folder, 0o700)
    begun = time.monotonic()
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    try:
        B.PROGRAMS = build(B.SOURCES)
        print("built in %.1f s" % (time.monotonic() - begun), flush=True)
        B.make_files()
        B.make_certificates()
        make_keys()
        write(place("platform.key"), PLATFORM_KEY + "\n")
        write(place("redis.password"), "a-password-of-the-test\n")
        write(place("listed"), "127.0.0.1:40000 eu-1 64\n127.0.0.1:40001 us-1 32\n")
        if "--plants" in sys.argv:
            results = [plant(index, *row) for index, row in enumerate(PLANTS) if not words or str(index) in words]
        else:
            results = run_checks(words)
    finally:
        B.clean_up()
    print("took %.0f s" % (time.monotonic() - begun))
    print("backends_redis: %d passed, %d failed" % (sum(results), len(results) - sum(results)))
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
