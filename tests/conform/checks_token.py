"""The checks of connect tokens that the peer makes."""

import os
import struct
import time

import peer
from kit import MUST, SHOULD, check
from peer import TOKEN_BYTES, VERSION, Address, ConnectToken

TOKENS = "Connect Token"


def made(w, addresses=("127.0.0.1:40000",), expire=45, timeout=7, client_id=4242, user_data=None, count=1):
    """Tokens of the peer, as their bytes."""
    data = os.urandom(256) if user_data is None else user_data
    line = "generate %d %s %d %d %d %s %s" % (w.protocol_id, w.key.hex(), client_id, expire, timeout, data.hex(), ",".join(addresses))
    driver = w.driver()
    for _ in range(count):
        driver.tell(line)
    w.until(lambda: len(driver.tokens) == count or driver.errors, 10, "`token` with 2048 bytes")
    w.check(len(driver.tokens) == count, "no token: %s" % driver.errors)
    return driver.tokens if count > 1 else driver.tokens[0]


def number(raw, at, layout="Q"):
    return struct.unpack_from("<" + layout, raw, at)[0]


def private_of(w, raw):
    """The private part, decrypted with the fields of the public one."""
    head = len(VERSION)
    associated = VERSION + struct.pack("<Q", w.protocol_id) + raw[head + 16:head + 24]
    plain = peer.open_xaead(w.key, raw[head + 24:head + 48], associated, raw[head + 48:head + 48 + 1024])
    w.check(plain is not None, "the private part does not open with the key, the nonce, and version, protocol id and expire timestamp")
    return plain


PRIVATE_END = len(VERSION) + 24 + 24 + 1024


@check("T-TOK-01", TOKENS, MUST, "a token has 2048 bytes and begins with NETCODE 1.02 and a zero byte")
def _(w):
    raw = made(w)
    w.check(len(raw) == TOKEN_BYTES, "%d bytes" % len(raw))
    w.check(raw[:len(VERSION)] == VERSION, "it begins with %r" % raw[:len(VERSION)])


@check("T-TOK-02", TOKENS, MUST, "the protocol id follows, as 8 little-endian bytes")
def _(w):
    raw = made(w)
    w.check(number(raw, len(VERSION)) == w.protocol_id, "%x, not %x" % (number(raw, len(VERSION)), w.protocol_id))


@check("T-TOK-03", TOKENS, MUST, "the create timestamp is now, and the expire timestamp so many seconds later")
def _(w):
    before = int(time.time())
    raw = made(w, expire=45)
    create, expire = number(raw, len(VERSION) + 8), number(raw, len(VERSION) + 16)
    w.check(before - 1 <= create <= time.time() + 1, "create %d, now %d" % (create, before))
    w.check(expire == create + 45, "expire is create + %d" % (expire - create))


@check("T-TOK-04", TOKENS, MUST, "the private part opens with the private key: XChaCha20-Poly1305 over version, protocol id and expire timestamp")
def _(w):
    private_of(w, made(w))


@check("T-TOK-05", TOKENS, MUST, "the private part begins with the client id, of 64 bits")
def _(w):
    for ident in (4242, (1 << 64) - 1):
        plain = private_of(w, made(w, client_id=ident))
        w.check(number(plain, 0) == ident, "%d, not %d" % (number(plain, 0), ident))


@check("T-TOK-06", TOKENS, MUST, "both parts hold the timeout, negative ones as two's complement")
def _(w):
    for timeout in (7, -1, 86400):
        raw = made(w, timeout=timeout)
        both = number(private_of(w, raw), 8, "i"), number(raw, PRIVATE_END, "i")
        w.check(both == (timeout, timeout), "%r, not %d" % (both, timeout))


@check("T-TOK-07", TOKENS, MUST, "both parts hold the server addresses in their order: type 1, four bytes and the port for IPv4")
def _(w):
    texts = ["127.0.0.1:40000", "192.0.2.77:1", "10.1.2.3:65535"]
    raw = made(w, texts)
    wire = peer.write_addresses([Address.parse(text) for text in texts])
    for name, part in (("public", raw[PRIVATE_END + 4:]), ("private", private_of(w, raw)[12:])):
        w.check(part[:len(wire)] == wire, "%s: %s, not %s" % (name, part[:len(wire)].hex(), wire.hex()))


@check("T-TOK-08", TOKENS, MUST, "IPv6 addresses are type 2, eight little-endian words and the port")
def _(w):
    texts = ["[2001:db8:1:2:3:4:5:6]:50000", "[::1]:40000"]
    raw = made(w, texts)
    wire = peer.write_addresses([Address.parse(text) for text in texts])
    for name, part in (("public", raw[PRIVATE_END + 4:]), ("private", private_of(w, raw)[12:])):
        w.check(part[:len(wire)] == wire, "%s: %s, not %s" % (name, part[:len(wire)].hex(), wire.hex()))


@check("T-TOK-09", TOKENS, MUST, "a token of 32 addresses of both families can be read")
def _(w):
    texts = ["10.0.0.%d:40000" % n if n % 2 else "[2001:db8::%x]:40000" % n for n in range(32)]
    raw = made(w, texts)
    w.check(ConnectToken.read_public(raw).addresses == [Address.parse(text) for text in texts], "other addresses")
    private_of(w, raw)


@check("T-TOK-10", TOKENS, MUST, "both parts hold the same two keys, which differ and are new in each token")
def _(w):
    raws = made(w, count=2)
    keys = []
    for raw in raws:
        public = ConnectToken.read_public(raw)
        tail = public.to_server_key + public.to_client_key
        w.check(tail in private_of(w, raw), "the private part has other keys")
        keys += [public.to_server_key, public.to_client_key]
    w.check(len(set(keys)) == 4 and bytes(32) not in keys, "a key stands there twice, or is zero")


@check("T-TOK-11", TOKENS, MUST, "the nonce is new in each token")
def _(w):
    nonces = {raw[len(VERSION) + 24:len(VERSION) + 48] for raw in made(w, count=4)}
    w.check(len(nonces) == 4 and bytes(24) not in nonces, "%d nonces of 4 tokens" % len(nonces))


@check("T-TOK-12", TOKENS, MUST, "the user data follows the keys in the private part")
def _(w):
    data = bytes(range(256))
    plain = private_of(w, made(w, user_data=data))
    at = 12 + 4 + 7 + 64
    w.check(plain[at:at + 256] == data, "%s..." % plain[at:at + 20].hex())


@check("T-TOK-13", TOKENS, MUST, "the rest of both parts is zero")
def _(w):
    raw = made(w)
    plain = private_of(w, raw)
    w.check(not any(plain[12 + 4 + 7 + 64 + 256:]), "the private part ends with other bytes")
    w.check(not any(raw[PRIVATE_END + 4 + 4 + 7 + 64:]), "the token ends with other bytes")


@check("T-TOK-14", TOKENS, SHOULD, "a negative expiry makes a token that never expires: 2^64 - 1, as in deployed implementations")
def _(w):
    raw = made(w, expire=-1)
    w.check(number(raw, len(VERSION) + 16) == (1 << 64) - 1, "the expire timestamp is %d" % number(raw, len(VERSION) + 16))
