#!/usr/bin/env python3
"""An independent netcode 1.02 peer: codec, client, server and handshake stories, written from the standard alone.

    python3 tests/peer.py                                    codec checks, and the peer's client against its own server
    python3 tests/peer.py --subject PATH [-k FILTER] [-v]    the same, and every story against the library

PATH is the program built from tests/tools/subject.c. Each story prints one line, `ok NAME`, `FAILED NAME: why` or
`skipped NAME: why`; the last line is `N passed, M failed`, and what was skipped. All traffic stays on loopback and is bounded in time.

Needs Python 3.9 or newer and libsodium, on a POSIX system. "Standard" below is the netcode 1.02 standard, with the
corrections that deployed peers need: a 24-byte nonce in the request (1078 bytes), 300 bytes of challenge token, address
types 1 and 2, and a 12-byte nonce of four zero bytes followed by the sequence.
"""
import argparse
import concurrent.futures
import ctypes
import ctypes.util
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools"))
from waiting import SKIPS_FAIL  # noqa: E402 (its folder is not on the path before)

# ---------------------------------------------------------------------------------------------------------------------
# Crypto: the only part that calls libsodium.
# ---------------------------------------------------------------------------------------------------------------------


def load_sodium():
    """Finds libsodium wherever this system keeps it."""
    for name in (ctypes.util.find_library("sodium"), "libsodium.so.23", "libsodium.so.26", "libsodium.dylib"):
        if name:
            try:
                library = ctypes.CDLL(name)
            except OSError:
                continue
            if library.sodium_init() < 0:
                raise RuntimeError("libsodium does not start")
            return library
    raise RuntimeError("libsodium was not found")


SODIUM = load_sodium()
TAG_BYTES = 16


def aead(name, sealing):
    """Makes a Python function of one of libsodium's AEAD calls; opening returns None where the tag does not hold."""
    call = getattr(SODIUM, name)
    size, text = ctypes.c_ulonglong, ctypes.c_char_p
    if sealing:
        call.argtypes = [text, ctypes.POINTER(size), text, size, text, size, text, text, text]
    else:
        call.argtypes = [text, ctypes.POINTER(size), text, text, size, text, size, text, text]

    def seal(key, nonce, associated, plain):
        out, out_bytes = ctypes.create_string_buffer(len(plain) + TAG_BYTES), size()
        call(out, out_bytes, plain, len(plain), associated, len(associated), None, nonce, key)
        return out.raw[:out_bytes.value]

    def unseal(key, nonce, associated, sealed):
        out, out_bytes = ctypes.create_string_buffer(max(1, len(sealed))), size()
        if call(out, out_bytes, None, sealed, len(sealed), associated, len(associated), nonce, key) != 0:
            return None
        return out.raw[:out_bytes.value]

    return seal if sealing else unseal


seal_aead = aead("crypto_aead_chacha20poly1305_ietf_encrypt", True)
open_aead = aead("crypto_aead_chacha20poly1305_ietf_decrypt", False)
seal_xaead = aead("crypto_aead_xchacha20poly1305_ietf_encrypt", True)
open_xaead = aead("crypto_aead_xchacha20poly1305_ietf_decrypt", False)

# ---------------------------------------------------------------------------------------------------------------------
# Codec. Standard: General Conventions; everything is little-endian.
# ---------------------------------------------------------------------------------------------------------------------

VERSION = b"NETCODE 1.02\0"
KEY_BYTES, NONCE_BYTES, USER_DATA_BYTES = 32, 24, 256
TOKEN_BYTES, PRIVATE_BYTES, CHALLENGE_BYTES, REQUEST_BYTES = 2048, 1024, 300, 1078
MAX_ADDRESSES, MAX_PAYLOAD_BYTES, MAX_PACKET_BYTES = 32, 1200, 1225
REQUEST, DENIED, CHALLENGE, RESPONSE, KEEP_ALIVE, PAYLOAD, DISCONNECT = range(7)
PACKET_NAMES = ("request", "denied", "challenge", "response", "keep-alive", "payload", "disconnect")
BODY_BYTES = {DENIED: (0, 0), CHALLENGE: (308, 308), RESPONSE: (308, 308), KEEP_ALIVE: (8, 8),
              PAYLOAD: (1, MAX_PAYLOAD_BYTES), DISCONNECT: (0, 0)}
TO_SERVER = frozenset((REQUEST, RESPONSE, KEEP_ALIVE, PAYLOAD, DISCONNECT))
TO_CLIENT = frozenset((DENIED, CHALLENGE, KEEP_ALIVE, PAYLOAD, DISCONNECT))
REPLAY_PROTECTED = frozenset((KEEP_ALIVE, PAYLOAD, DISCONNECT))
UPPER_HALF, SEQUENCE_LIMIT = 1 << 63, 1 << 64


class Ignored(Exception):
    """Bytes that the standard has a reader ignore; the text says why."""


class Address:
    """An IPv4 or IPv6 address and port, as it stands in tokens. Standard: Connect Token."""

    def __init__(self, host, port):
        self.family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.raw = socket.inet_pton(self.family, host)
        self.host, self.port = socket.inet_ntop(self.family, self.raw), port

    @classmethod
    def parse(cls, text):
        host, _, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))

    @classmethod
    def of(cls, sockaddr):
        return cls(sockaddr[0], sockaddr[1])

    @property
    def is_loopback(self):
        return self.host == "::1" or self.host.startswith("127.")

    def __str__(self):
        return ("[%s]:%d" if self.family == socket.AF_INET6 else "%s:%d") % (self.host, self.port)

    def __eq__(self, other):
        return isinstance(other, Address) and (self.raw, self.port) == (other.raw, other.port)

    def __hash__(self):
        return hash((self.raw, self.port))

    def write(self, network_order=False):
        """IPv6 is eight little-endian words here; some ports write network order, which decodes elsewhere."""
        if self.family == socket.AF_INET:
            return b"\x01" + self.raw + struct.pack("<H", self.port)
        words = struct.unpack(">8H", self.raw)
        return b"\x02" + struct.pack(">8H" if network_order else "<8H", *words) + struct.pack("<H", self.port)


class Reader:
    """Takes bytes from the front; running out is an error, never zeros."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if len(self.data) - self.at < count:
            raise Ignored("ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))[0]

    def addresses(self):
        count = self.number("I")
        if not 1 <= count <= MAX_ADDRESSES:
            raise Ignored("%d server addresses" % count)
        return [self.address() for _ in range(count)]

    def address(self):
        kind = self.number("B")
        if kind == 1:
            return Address(socket.inet_ntop(socket.AF_INET, self.take(4)), self.number("H"))
        if kind == 2:
            words = struct.unpack("<8H", self.take(16))
            return Address(socket.inet_ntop(socket.AF_INET6, struct.pack(">8H", *words)), self.number("H"))
        raise Ignored("address type %d" % kind)


def write_addresses(addresses):
    return struct.pack("<I", len(addresses)) + b"".join(address.write() for address in addresses)


class ConnectToken:
    """A connect token, public and private parts. Standard: Connect Token."""

    def __init__(self, protocol_id, client_id, addresses, create=None, expire=None, expire_in=60, timeout=5,
                 user_data=None, to_server_key=None, to_client_key=None, nonce=None, version=VERSION):
        self.version, self.protocol_id, self.client_id, self.addresses = version, protocol_id, client_id, addresses
        self.create = int(time.time()) if create is None else create
        self.expire = self.create + expire_in if expire is None else expire
        self.timeout = timeout
        self.user_data = os.urandom(USER_DATA_BYTES) if user_data is None else user_data
        self.to_server_key = to_server_key or os.urandom(KEY_BYTES)
        self.to_client_key = to_client_key or os.urandom(KEY_BYTES)
        self.nonce = nonce or os.urandom(NONCE_BYTES)
        self.sealed_private = self.raw = None

    def tail(self):
        """What both parts end with: the addresses and the two keys."""
        return write_addresses(self.addresses) + self.to_server_key + self.to_client_key

    def private_plain(self):
        """The private part before encryption; its last 16 bytes make room for the tag."""
        data = struct.pack("<Qi", self.client_id, self.timeout) + self.tail() + self.user_data
        return data.ljust(PRIVATE_BYTES, b"\0")

    def associated(self):
        return self.version + struct.pack("<QQ", self.protocol_id, self.expire)

    def seal_private(self, private_key):
        plain = self.private_plain()[:PRIVATE_BYTES - TAG_BYTES]
        self.sealed_private = seal_xaead(private_key, self.nonce, self.associated(), plain)
        return self.sealed_private

    def seal(self, private_key):
        """The whole token of 2048 bytes."""
        head = self.version + struct.pack("<QQQ", self.protocol_id, self.create, self.expire) + self.nonce
        data = head + self.seal_private(private_key) + struct.pack("<i", self.timeout) + self.tail()
        return data.ljust(TOKEN_BYTES, b"\0")

    @classmethod
    def read_public(cls, data):
        """Reads the public part as a client does. Standard: Client State Machine, Request Connect Token."""
        if len(data) != TOKEN_BYTES:
            raise Ignored("%d bytes are no token" % len(data))
        reader = Reader(data)
        if reader.take(len(VERSION)) != VERSION:
            raise Ignored("another version")
        protocol_id, create, expire = (reader.number("Q") for _ in range(3))
        nonce, sealed, timeout = reader.take(NONCE_BYTES), reader.take(PRIVATE_BYTES), reader.number("i")
        if create > expire:
            raise Ignored("created after it expires")
        token = cls(protocol_id, 0, reader.addresses(), create, expire, timeout=timeout, user_data=bytes(256),
                    to_server_key=reader.take(KEY_BYTES), to_client_key=reader.take(KEY_BYTES), nonce=nonce)
        token.sealed_private, token.raw = sealed, data
        return token

    @classmethod
    def open_private(cls, sealed, nonce, protocol_id, expire, private_key):
        """Opens the private part as a server does; raises Ignored where it is not genuine."""
        associated = VERSION + struct.pack("<QQ", protocol_id, expire)
        plain = open_xaead(private_key, nonce, associated, sealed)
        if plain is None:
            raise Ignored("the private part does not open")
        reader = Reader(plain)
        client_id, timeout, addresses = reader.number("Q"), reader.number("i"), reader.addresses()
        token = cls(protocol_id, client_id, addresses, 0, expire, timeout=timeout,
                    to_server_key=reader.take(KEY_BYTES), to_client_key=reader.take(KEY_BYTES),
                    user_data=reader.take(USER_DATA_BYTES), nonce=nonce)
        token.sealed_private = sealed
        return token

    def request(self):
        """The connection request packet that presents this token. Standard: Packets."""
        head = b"\0" + self.version + struct.pack("<QQ", self.protocol_id, self.expire) + self.nonce
        return head + self.sealed_private


def packet_nonce(sequence):
    return struct.pack("<IQ", 0, sequence)


def seal_challenge(key, sequence, client_id, user_data, spare=bytes(20)):
    """A challenge token of 300 bytes. Standard: Challenge Token."""
    return seal_aead(key, packet_nonce(sequence), b"", struct.pack("<Q", client_id) + user_data + spare)


def open_challenge(key, sequence, sealed):
    plain = open_aead(key, packet_nonce(sequence), b"", sealed)
    if plain is None:
        raise Ignored("the challenge token does not open")
    return struct.unpack("<Q", plain[:8])[0], plain[8:8 + USER_DATA_BYTES]


class Packet:
    """One packet that was read: its type, sequence and body, and how it stood on the wire."""

    def __init__(self, kind, sequence, body, raw, sequence_bytes):
        self.kind, self.sequence, self.body, self.raw, self.sequence_bytes = kind, sequence, body, raw, sequence_bytes
        self.time = time.monotonic()

    def __repr__(self):
        return "%s sequence %d, %d bytes" % (PACKET_NAMES[self.kind], self.sequence, len(self.raw))


def sequence_bytes_needed(sequence):
    return max(1, (sequence.bit_length() + 7) // 8)


def packet_associated(protocol_id, prefix):
    return VERSION + struct.pack("<QB", protocol_id, prefix)


def seal_packet(kind, body, key, protocol_id, sequence, sequence_bytes=None):
    """Any packet but the request. `sequence_bytes` asks for another length than the shortest. Standard: Packets."""
    count = sequence_bytes_needed(sequence) if sequence_bytes is None else sequence_bytes
    prefix = kind | count << 4
    number = sequence.to_bytes(max(count, 8), "little")[:count]
    sealed = seal_aead(key, packet_nonce(sequence), packet_associated(protocol_id, prefix), body)
    return bytes([prefix]) + number + sealed


def read_packet(data, key, protocol_id, allowed, replay=None):
    """Reads an encrypted packet in the standard's exact order. Standard: Reading Encrypted Packets."""
    if len(data) < 18:
        raise Ignored("too small")
    kind, count = data[0] & 15, data[0] >> 4
    if kind >= 7:
        raise Ignored("type %d" % kind)
    if kind not in allowed or kind == REQUEST:
        raise Ignored("%s goes the other way" % PACKET_NAMES[kind])
    if not 1 <= count <= 8:
        raise Ignored("%d sequence bytes" % count)
    if len(data) < 1 + count + TAG_BYTES:
        raise Ignored("too small for its sequence")
    low, high = BODY_BYTES[kind]
    if not low <= len(data) - 1 - count - TAG_BYTES <= high:
        raise Ignored("wrong size for its type")
    sequence = int.from_bytes(data[1:1 + count], "little")
    if replay is not None and kind in REPLAY_PROTECTED and replay.seen(sequence):
        raise Ignored("already received")
    body = open_aead(key, packet_nonce(sequence), packet_associated(protocol_id, data[0]), data[1 + count:])
    if body is None:
        raise Ignored("does not decrypt")
    if replay is not None and kind in REPLAY_PROTECTED:
        replay.advance(sequence)
    return Packet(kind, sequence, body, data, count)


class ReplayWindow:
    """Standard: Replay Protection, steps 1 to 3."""

    SIZE = 256

    def __init__(self):
        self.newest, self.entries = None, [None] * self.SIZE

    def seen(self, sequence):
        if self.newest is None:
            return False
        return sequence + self.SIZE <= self.newest or self.entries[sequence % self.SIZE] == sequence

    def advance(self, sequence):
        self.newest = sequence if self.newest is None else max(self.newest, sequence)
        self.entries[sequence % self.SIZE] = sequence


# ---------------------------------------------------------------------------------------------------------------------
# Client and server on sockets of their own. A story turns them; nothing here sleeps.
# ---------------------------------------------------------------------------------------------------------------------

TOKEN_EXPIRED, INVALID_TOKEN, TIMED_OUT, RESPONSE_TIMED_OUT, REQUEST_TIMED_OUT, WAS_DENIED = range(-6, 0)
DISCONNECTED, REQUESTING, RESPONDING, CONNECTED = range(4)


class Failed(Exception):
    """A story found something else than it expects."""


class Skipped(Exception):
    """A story needs something that this machine lacks."""


class NonceLedger:
    """Remembers which datagram each (key, sequence) sealed; a second, different one under that pair is a fault."""

    def __init__(self):
        self.lock, self.sealed = threading.Lock(), {}

    def note(self, key, packet):
        with self.lock:
            first = self.sealed.setdefault((key, packet.sequence), packet.raw)
        if first != packet.raw:
            raise Failed("one key and sequence (%d) sealed two different packets, the second: %r"
                         % (packet.sequence, packet))


LEDGER = NonceLedger()


class Endpoint:
    """UDP sockets on loopback, one for each family, that write down everything they receive and send."""

    def __init__(self, host="127.0.0.1", port=0):
        self.sockets, self.heard, self.sent, self.bytes_in, self.bytes_out = {}, [], [], 0, 0
        self.ignored = []
        self.address = self.open(Address(host, port))

    def open(self, address):
        """The socket of a family binds a loopback address, so nothing can leave the machine by it."""
        assert address.is_loopback
        made = socket.socket(address.family, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        made.bind((address.host, address.port))
        made.setblocking(False)
        self.sockets[address.family] = made
        return Address.of(made.getsockname())

    def send_raw(self, data, to):
        assert to.is_loopback and to.port != 0, "test traffic stays on loopback"
        if to.family not in self.sockets:
            self.open(Address("::1" if to.family == socket.AF_INET6 else "127.0.0.1", 0))
        self.sent.append(data)
        self.bytes_out += len(data)
        self.sockets[to.family].sendto(data, (to.host, to.port))

    def receive(self, limit=2000):
        for made in list(self.sockets.values()):
            for _ in range(limit):
                try:
                    data, source = made.recvfrom(4096)
                except (BlockingIOError, ConnectionError):
                    break
                self.bytes_in += len(data)
                self.heard.append(data)
                try:
                    self.datagram(data, Address.of(source), time.monotonic())
                except Ignored as why:
                    self.ignored.append(str(why))

    def datagram(self, data, source, now):
        """A plain endpoint only listens."""

    def tick(self, now):
        """A plain endpoint does nothing by itself."""

    def filenos(self):
        return list(self.sockets.values())

    def close(self):
        for made in self.sockets.values():
            made.close()


class PeerClient(Endpoint):
    """Standard: Client State Machine. With `manual`, it sends nothing but what the story has it send."""

    def __init__(self, raw_token, manual=False, rate=10, base=0, count_requests=True, zero_in_no_bytes=False,
                 host="127.0.0.1", via=None):
        super().__init__(host)
        self.token = ConnectToken.read_public(raw_token)
        self.manual, self.rate, self.sequence = manual, rate, base
        self.count_requests, self.zero_in_no_bytes, self.via = count_requests, zero_in_no_bytes, via
        self.packets, self.payloads, self.challenges, self.index, self.max_clients = [], [], [], None, None
        self.state, self.muted, self.slot = REQUESTING, False, None
        self.started, self.server_index, self.state_log = time.monotonic(), 0, []
        self.begin()

    def begin(self):
        """Starts with the token's current server; the replay window is fresh, the sequence goes on."""
        self.server = self.via or self.token.addresses[self.server_index]
        self.replay, self.challenge = ReplayWindow(), None
        self.enter(REQUESTING)

    def enter(self, state):
        self.state = state
        self.state_log.append(state)
        self.last_received, self.last_sent = time.monotonic(), 0

    def fail(self, state):
        """Every failure while connecting tries the token's next server first."""
        if self.server_index + 1 < len(self.token.addresses) and self.via is None:
            self.server_index += 1
            self.begin()
        else:
            self.enter(state)

    def next_sequence(self):
        self.sequence += 1
        return self.sequence - 1

    def send_request(self):
        if self.count_requests:
            self.next_sequence()
        self.send_raw(self.token.request(), self.server)

    def seal(self, kind, body=b"", sequence=None, sequence_bytes=None):
        """Seals under this client's key; the sequence is the next one unless the story wants another."""
        number = self.next_sequence() if sequence is None else sequence
        if number == 0 and self.zero_in_no_bytes:
            sequence_bytes = 0
        return seal_packet(kind, body, self.token.to_server_key, self.token.protocol_id, number, sequence_bytes)

    def send(self, kind, body=b"", sequence=None, sequence_bytes=None):
        data = self.seal(kind, body, sequence, sequence_bytes)
        self.send_raw(data, self.server)
        return data

    def send_response(self, challenge=None, **how):
        return self.send(RESPONSE, challenge or self.challenge, **how)

    def send_keep_alive(self):
        return self.send(KEEP_ALIVE, struct.pack("<II", self.index or 0, self.max_clients or 0))

    def disconnect(self, count=10):
        for _ in range(count):
            self.send(DISCONNECT)
        self.enter(DISCONNECTED)

    def tick(self, now):
        if self.manual or self.state not in (REQUESTING, RESPONDING, CONNECTED):
            return
        if self.state != CONNECTED and now - self.started >= self.token.expire - self.token.create:
            self.enter(TOKEN_EXPIRED)
        elif self.token.timeout > 0 and now - self.last_received >= self.token.timeout:
            if self.state == CONNECTED:
                self.enter(TIMED_OUT)
            else:
                self.fail(REQUEST_TIMED_OUT if self.state == REQUESTING else RESPONSE_TIMED_OUT)
        elif not self.muted and now - self.last_sent >= 1 / self.rate:
            self.last_sent = now
            (self.send_request, self.send_response, self.send_keep_alive)[self.state - 1]()

    def datagram(self, data, source, now):
        if source != self.server:
            raise Ignored("from %s" % source)
        key, protocol_id = self.token.to_client_key, self.token.protocol_id
        LEDGER.note(key, read_packet(data, key, protocol_id, TO_CLIENT))
        packet = read_packet(data, key, protocol_id, TO_CLIENT, self.replay)
        self.packets.append(packet)
        if packet.kind == CHALLENGE:
            self.challenges.append(packet.body)
        if packet.kind == DENIED and self.state in (REQUESTING, RESPONDING):
            self.fail(WAS_DENIED)
        elif packet.kind == CHALLENGE and self.state == REQUESTING:
            self.challenge = packet.body
            self.enter(RESPONDING)
        elif packet.kind == KEEP_ALIVE and self.state == RESPONDING:
            self.index, self.max_clients = struct.unpack("<II", packet.body)
            self.enter(CONNECTED)
        elif packet.kind == PAYLOAD and self.state == CONNECTED:
            self.payloads.append(packet.body)
        elif packet.kind == DISCONNECT and self.state == CONNECTED:
            self.enter(DISCONNECTED)
        if self.state == CONNECTED:
            self.last_received = now

    def of(self, kind):
        return [packet for packet in self.packets if packet.kind == kind]


class Pending:
    """A handshake that waits for its response: the standard's encryption mapping."""

    def __init__(self, token, now):
        self.token, self.last = token, now


class Slot:
    """A connected client of the peer's server."""

    def __init__(self, address, token, sequence, now):
        self.address, self.token, self.sequence = address, token, sequence
        self.replay, self.confirmed, self.payloads, self.packets = ReplayWindow(), False, [], []
        self.last_received, self.last_sent = now, 0

    def of(self, kind):
        return [packet for packet in self.packets if packet.kind == kind]


class PeerServer(Endpoint):
    """Standard: Server-Side Connection Process. The switches make it full, mute, deaf, or like known other servers."""

    def __init__(self, key, protocol_id, slots=4, host="127.0.0.1", rate=10, announce=None, global_base=None,
                 zero_in_no_bytes=False):
        super().__init__(host)
        self.key, self.protocol_id, self.slots, self.rate = key, protocol_id, [None] * slots, rate
        self.announce, self.zero_in_no_bytes = announce or slots, zero_in_no_bytes
        self.global_sequence = global_base
        if global_base is None:
            self.global_sequence = UPPER_HALF + int.from_bytes(os.urandom(7), "little")
        self.challenge_key, self.challenge_sequence = os.urandom(KEY_BYTES), 0
        self.pending, self.used, self.requests, self.responses, self.left = {}, {}, [], [], []
        self.challenging, self.accepting, self.denying, self.confirming, self.muted = True, True, False, True, False

    def seal(self, token, kind, body, sequence, sequence_bytes=None):
        if sequence == 0 and self.zero_in_no_bytes:
            sequence_bytes = 0
        return seal_packet(kind, body, token.to_client_key, self.protocol_id, sequence, sequence_bytes)

    def send_global(self, token, address, kind, body=b""):
        """What goes out before a slot exists uses the global sequence."""
        sequence, self.global_sequence = self.global_sequence, (self.global_sequence + 1) % SEQUENCE_LIMIT
        data = self.seal(token, kind, body, sequence)
        self.send_raw(data, address)
        return data

    def send(self, slot, kind, body=b"", sequence=None, sequence_bytes=None):
        if sequence is None:
            sequence, slot.sequence = slot.sequence, slot.sequence + 1
        data = self.seal(slot.token, kind, body, sequence, sequence_bytes)
        self.send_raw(data, slot.address)
        slot.last_sent = time.monotonic()
        return data

    def send_keep_alive(self, slot, **how):
        return self.send(slot, KEEP_ALIVE, struct.pack("<II", self.slots.index(slot), self.announce), **how)

    def send_payload(self, slot, data):
        if not slot.confirmed:
            self.send_keep_alive(slot)
        return self.send(slot, PAYLOAD, data)

    def kick(self, slot, count=10):
        for _ in range(count):
            self.send(slot, DISCONNECT)
        self.free(slot)

    def free(self, slot):
        self.slots[self.slots.index(slot)] = None
        self.left.append(slot)

    def clients(self):
        return [slot for slot in self.slots if slot]

    def tick(self, now):
        for slot in self.clients():
            if slot.token.timeout > 0 and now - slot.last_received >= slot.token.timeout:
                self.free(slot)
            elif not self.muted and now - slot.last_sent >= 1 / self.rate:
                self.send_keep_alive(slot)
        for address, entry in list(self.pending.items()):
            if entry.token.timeout > 0 and now - entry.last >= entry.token.timeout:
                del self.pending[address]

    def datagram(self, data, source, now):
        if data[:1] == b"\0":
            return self.request(data, source, now)
        slot = next((slot for slot in self.clients() if slot.address == source), None)
        past = next((slot for slot in reversed(self.left) if slot.address == source), None)
        known = slot or self.pending.get(source) or past
        if known is None:
            raise Ignored("no client at %s" % source)
        token = known.token
        LEDGER.note(token.to_server_key, read_packet(data, token.to_server_key, self.protocol_id, TO_SERVER))
        packet = read_packet(data, token.to_server_key, self.protocol_id, TO_SERVER, slot and slot.replay)
        if packet.kind == RESPONSE:
            return self.response(packet, source, now)
        if known is slot or known is past:
            known.packets.append(packet)
        if slot is None:
            raise Ignored("not connected")
        if packet.kind == DISCONNECT:
            return self.free(slot)
        slot.confirmed, slot.last_received = True, now
        if packet.kind == PAYLOAD:
            slot.payloads.append(packet.body)

    def request(self, data, source, now):
        """Standard: Processing Connection Requests, in its order."""
        if len(data) != REQUEST_BYTES:
            raise Ignored("a request of %d bytes" % len(data))
        reader = Reader(data[1:])
        if reader.take(len(VERSION)) != VERSION:
            raise Ignored("another version")
        if reader.number("Q") != self.protocol_id:
            raise Ignored("another protocol id")
        expire, nonce = reader.number("Q"), reader.take(NONCE_BYTES)
        if expire <= int(time.time()):
            raise Ignored("expired")
        sealed = reader.take(PRIVATE_BYTES)
        token = ConnectToken.open_private(sealed, nonce, self.protocol_id, expire, self.key)
        if self.address not in token.addresses:
            raise Ignored("a token for another server")
        self.requests.append((now, source))
        if any(slot.address == source or slot.token.client_id == token.client_id for slot in self.clients()):
            raise Ignored("already connected")
        if self.used.setdefault(sealed[-TAG_BYTES:], source) != source:
            raise Ignored("a used token")
        if self.denying or None not in self.slots:
            return self.send_global(token, source, DENIED)
        self.pending[source] = Pending(token, now)
        if self.challenging:
            self.send_challenge(token, source)

    def send_challenge(self, token, source):
        sequence, self.challenge_sequence = self.challenge_sequence, self.challenge_sequence + 1
        sealed = seal_challenge(self.challenge_key, sequence, token.client_id, token.user_data)
        return self.send_global(token, source, CHALLENGE, struct.pack("<Q", sequence) + sealed)

    def response(self, packet, source, now):
        """Standard: Processing Connection Response Packets, in its order."""
        self.responses.append(packet)
        sequence = struct.unpack("<Q", packet.body[:8])[0]
        client_id, user_data = open_challenge(self.challenge_key, sequence, packet.body[8:])
        if any(slot.address == source or slot.token.client_id == client_id for slot in self.clients()):
            raise Ignored("already connected")
        if source not in self.pending:
            raise Ignored("no handshake pending")
        token = self.pending[source].token
        if not self.accepting:
            raise Ignored("set not to accept")
        if self.denying or None not in self.slots:
            return self.send_global(token, source, DENIED)
        token.user_data = user_data
        slot = Slot(source, token, 0, now)
        self.slots[self.slots.index(None)] = slot
        del self.pending[source]
        if self.confirming:
            self.send_keep_alive(slot)
        else:
            slot.last_sent = now + 3600

# ---------------------------------------------------------------------------------------------------------------------
# The subject: the library behind a line-driven program.
# ---------------------------------------------------------------------------------------------------------------------


class Subject:
    """One process of the subject program; its lines are read as they come."""

    def __init__(self, path, arguments, key=None, protocol_id=None):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([path] + [str(argument) for argument in arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest, self.lines, self.cursor, self.ended = b"", [], 0, False
        self.key, self.protocol_id, self.address, self.addresses = key, protocol_id, None, []

    def filenos(self):
        return [] if self.ended else [self.process.stdout]

    def receive(self):
        while not self.ended:
            try:
                data = os.read(self.process.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            self.ended = not data
            *whole, self.rest = (self.rest + data).split(b"\n")
            self.lines += [line.decode("latin-1").rstrip() for line in whole]

    def tick(self, now):
        """The process keeps its own time."""

    def tell(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed("the subject is gone: %s" % self.last_words())

    def find(self, pattern):
        return [match for match in (re.fullmatch(pattern, line) for line in self.lines) if match]

    def payloads(self):
        return [bytes.fromhex(match[1]) for match in self.find(r"payload .*?([0-9a-fA-F]+)")]

    def last_words(self):
        self.errors.seek(0)
        return self.errors.read().decode("latin-1").strip()[-800:]

    def close(self):
        """Ends the process; a status other than 0, as after a sanitizer's finding, is a fault."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        end, status = time.monotonic() + 5, None
        while status is None and time.monotonic() < end:
            self.receive()
            status = self.process.poll()
            time.sleep(0.005)
        if status is None:
            self.process.kill()
            self.process.wait()
            status = "no end within 5 s of its input's end"
        self.receive()
        self.process.stdout.close()
        words = self.last_words()
        self.errors.close()
        if status != 0:
            return "the subject ended with %s; %s" % (status, words)
        return next((line for line in self.lines if line.startswith("error")), None)

# ---------------------------------------------------------------------------------------------------------------------
# Stories.
# ---------------------------------------------------------------------------------------------------------------------


STORIES = []


def story(function):
    STORIES.append(function)
    return function


class World:
    """What one story holds: its actors, and how it waits for them. Everything in it ends with the story."""

    def __init__(self, subject_path, deadline):
        self.path, self.deadline = subject_path, deadline
        self.key, self.protocol_id = os.urandom(KEY_BYTES), int.from_bytes(os.urandom(8), "little")
        self.actors, self.next_id = [], int.from_bytes(os.urandom(7), "little")

    def turn(self):
        """One short step: wait for input, read it, let the actors act."""
        if time.monotonic() > self.deadline:
            raise Failed("the whole run is out of time")
        waiting = [made for actor in self.actors for made in actor.filenos()]
        select.select(waiting, [], [], 0.005)
        for actor in list(self.actors):
            actor.receive()
            actor.tick(time.monotonic())

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed("within %g s not seen: %s" % (seconds, what))
            self.turn()

    def never(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()
            self.check(not condition(), what)

    def check(self, truth, what):
        if not truth:
            raise Failed(what)

    def expect(self, subject, pattern, seconds=4):
        """Waits for a line of the subject, after those that were expected before."""
        end = time.monotonic() + seconds
        while True:
            while subject.cursor < len(subject.lines):
                match = re.fullmatch(pattern, subject.lines[subject.cursor])
                subject.cursor += 1
                if match:
                    return match
            if subject.ended:
                raise Failed("the subject ended while `%s` was awaited: %s" % (pattern, subject.last_words()))
            if time.monotonic() > end:
                last = [line[:100] for line in subject.lines[-3:]]
                raise Failed("within %g s no line `%s`; last lines: %r" % (seconds, pattern, last))
            self.turn()

    def add(self, actor):
        self.actors.append(actor)
        return actor

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def mint(self, addresses, key=None, **fields):
        """A fresh token object; `raw` holds its 2048 bytes."""
        fields.setdefault("client_id", self.new_id())
        fields.setdefault("protocol_id", self.protocol_id)
        token = ConnectToken(addresses=[getattr(one, "address", one) for one in addresses], **fields)
        token.raw = token.seal(key or self.key)
        return token

    def client(self, token, **how):
        """A peer client; its packets start at a random place unless the story says where."""
        how.setdefault("base", int.from_bytes(os.urandom(5), "little"))
        client = self.add(PeerClient(getattr(token, "raw", token), **how))
        client.minted = token
        return client

    def peer_server(self, **how):
        return self.add(PeerServer(self.key, self.protocol_id, **how))

    def subject_server(self, *flags, slots=4, address="127.0.0.1:0", listening=1):
        arguments = ["server", address, slots, self.protocol_id, self.key.hex(), *flags]
        subject = self.add(Subject(self.path, arguments, self.key, self.protocol_id))
        while len(subject.addresses) < listening:
            line = self.expect(subject, r"listening (.+)", 8)
            subject.addresses += [Address.parse(text) for text in line[1].split()]
        subject.address = subject.addresses[0]
        return subject

    def subject_client(self, *flags, bind="127.0.0.1:0"):
        subject = self.add(Subject(self.path, ["client", bind, *flags]))
        self.expect(subject, r"ready \d+.*", 8)
        return subject

    def join(self, server, token=None, seconds=4, **how):
        """A peer client connects to the subject's server; it comes back connected, with its slot."""
        token = token or self.mint([server])
        client = self.client(token, **how)
        self.until(lambda: client.state == CONNECTED, seconds, "the peer's client connects")
        line = self.expect(server, r"connected (\d+) %d (\d+) ([0-9a-fA-F]*) (\S+)" % token.client_id)
        client.slot, client.session, client.seen = int(line[1]), int(line[2]), line
        return client

    def challenged(self, server, token=None, **how):
        """A peer client under the story's hand, with the answer to its first request."""
        client = self.client(token or self.mint([server]), manual=True, **how)
        client.send_request()
        self.until(lambda: client.challenges, 3, "a challenge")
        return client

    def accept(self, subject, server, token=None, **fields):
        """The subject's client connects to the peer's server; gives back the slot."""
        token = token or self.mint([server], **fields)
        subject.tell("connect " + token.raw.hex())
        self.until(lambda: any(slot.token.client_id == token.client_id for slot in server.clients()), 4,
                   "the subject's client answers the challenge")
        self.expect(subject, r"state CONNECTED")
        return next(slot for slot in server.clients() if slot.token.client_id == token.client_id)

    def alive(self, server):
        """An honest newcomer still gets in, and leaves again."""
        client = self.join(server)
        data = os.urandom(40)
        client.send(PAYLOAD, data)
        self.until(lambda: data in server.payloads(), 3, "an honest newcomer's payload")
        client.disconnect()
        self.expect(server, r"disconnected %d %d 2" % (client.slot, client.minted.client_id))

    def send_below_a_flood(self, client, datagrams):
        """Below 1,920 datagrams a second: from there on, a server on a busy machine may limit an address for a second."""
        for count, data in enumerate(datagrams):
            client.send_raw(data, client.server)
            if count % 64 == 63:
                self.wait(0.05)

    def ignored(self, server, client, datagrams, what, seconds=0.4):
        """The server answers none of these datagrams, connects no client for them and reports that it dropped them."""
        self.wait(0.05)
        session = client.state == CONNECTED  # whose keep-alives go on, and are no answers

        def answers():
            return len(client.heard) - (len(client.of(KEEP_ALIVE)) if session else 0)

        heard, connects = answers(), len(server.find(r"connected .*"))
        payloads, drops = len(server.payloads()), len(server.find(r"drop \S+ \S+ \d+"))
        self.send_below_a_flood(client, datagrams)
        self.wait(seconds)
        self.check(answers() == heard, "%s: was answered" % what)
        self.check(len(server.find(r"connected .*")) == connects, "%s: connected a client" % what)
        self.check(len(server.payloads()) == payloads, "%s: delivered a payload" % what)
        self.check(len(server.find(r"drop \S+ \S+ \d+")) > drops, "%s: no `drop` line" % what)

    def close(self):
        faults = [actor.close() for actor in self.actors]
        return [fault for fault in faults if fault]


def have_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as made:
            made.bind(("::1", 0))
        return True
    except OSError:
        return False


def need_ipv6():
    if not have_ipv6():
        raise Skipped("no ::1 here")

# --- codec ------------------------------------------------------------------------------------------------------------


def refused(function, *arguments):
    try:
        function(*arguments)
    except Ignored:
        return True
    return False


@story
def codec_addresses(w):
    """IPv6 words are little-endian; a token written in network order names another server, so nothing is sent there."""
    w.check(Address("1.2.3.4", 0x5060).write() == bytes((1, 1, 2, 3, 4, 0x60, 0x50)), "the bytes of an IPv4 address")
    there = Address("2001:db8::1", 0x5060)
    wire = bytes.fromhex("02" "0120b80d000000000000000000000100" "6050")
    w.check(there.write() == wire, "the bytes of an IPv6 address")
    w.check(Reader(there.write()).address() == there, "an IPv6 address reads back")
    foreign = Reader(Address("::1", 40000).write(network_order=True)).address()
    w.check(foreign == Address("::100", 40000) and not foreign.is_loopback, "network order is a foreign address")
    for kind in (0, 3, 255):
        w.check(refused(Reader(bytes([kind]) + bytes(20)).address), "address type %d" % kind)


@story
def codec_connect_token(w):
    addresses = [Address("127.0.0.1", 1), Address("::1", 65535)] * 16
    token = w.mint(addresses, timeout=-1, expire=SEQUENCE_LIMIT - 1)
    w.check(len(token.raw) == TOKEN_BYTES and len(token.request()) == REQUEST_BYTES, "sizes")
    public = ConnectToken.read_public(token.raw)
    private = ConnectToken.open_private(public.sealed_private, public.nonce, w.protocol_id, public.expire, w.key)
    for part in (public, private):
        w.check((part.addresses, part.timeout, part.expire) == (addresses, -1, SEQUENCE_LIMIT - 1), "the fields")
        w.check((part.to_server_key, part.to_client_key) == (token.to_server_key, token.to_client_key), "the keys")
    w.check((private.client_id, private.user_data) == (token.client_id, token.user_data), "id and user data")
    for wrong in ((public.nonce, w.protocol_id, 5, w.key), (public.nonce, w.protocol_id, public.expire, bytes(32)),
                  (bytes(24), w.protocol_id, public.expire, w.key), (public.nonce, 5, public.expire, w.key)):
        w.check(refused(ConnectToken.open_private, public.sealed_private, *wrong), "another key, nonce or header")
    for damaged in (token.raw[:-1], token.raw + b"\0", b"NETCODE 1.01\0" + token.raw[13:],
                    w.mint([]).raw, w.mint(addresses[:1], create=9, expire=8).raw):
        w.check(refused(ConnectToken.read_public, damaged), "a damaged token is refused")


@story
def codec_challenge_token(w):
    user_data = os.urandom(USER_DATA_BYTES)
    sealed = seal_challenge(w.key, 7, 99, user_data)
    w.check(len(sealed) == CHALLENGE_BYTES, "300 bytes")
    w.check(open_challenge(w.key, 7, sealed) == (99, user_data), "reads back")
    w.check(refused(open_challenge, w.key, 8, sealed), "another sequence")


@story
def codec_packets(w):
    """Every type, every sequence length, cut, extended, flipped, and in the other direction."""
    for kind, (low, high) in BODY_BYTES.items():
        for sequence in (0, 1, 255, 256, 1000, 1 << 32, SEQUENCE_LIMIT - 1):
            body = os.urandom(high)
            data = seal_packet(kind, body, w.key, 5, sequence)
            packet = read_packet(data, w.key, 5, {kind})
            w.check((packet.kind, packet.sequence, packet.body) == (kind, sequence, body), "%r reads back" % packet)
        w.check(len(data) <= MAX_PACKET_BYTES, "the largest datagram")
        w.check(refused(read_packet, data, w.key, 6, {kind}), "another protocol id")
        w.check(refused(read_packet, data, w.key, 5, set(BODY_BYTES) - {kind}), "another direction")
        for at in range(0, len(data), 7):
            damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
            w.check(refused(read_packet, damaged, w.key, 5, {kind}), "byte %d flipped" % at)
            w.check(refused(read_packet, data[:at], w.key, 5, {kind}), "cut at %d" % at)
        for size in (low - 1, high + 1):
            if size >= 0:
                wrong = seal_packet(kind, bytes(size), w.key, 5, 9)
                w.check(refused(read_packet, wrong, w.key, 5, {kind}), "%d bytes of %s" % (size, PACKET_NAMES[kind]))
    w.check(seal_packet(PAYLOAD, b"x", w.key, 5, 1000)[:3] == b"\x25\xe8\x03", "the standard's example, 1000")
    w.check(read_packet(seal_packet(PAYLOAD, b"x", w.key, 5, 3, 8), w.key, 5, {PAYLOAD}).sequence == 3, "over-long")
    for count in (0, 9, 15):
        w.check(refused(read_packet, seal_packet(PAYLOAD, b"x", w.key, 5, 0, count), w.key, 5, {PAYLOAD}),
                "%d sequence bytes" % count)


@story
def codec_replay_window(w):
    window = ReplayWindow()
    for sequence, seen in ((1000, False), (1000, True), (999, False), (999, True), (745, False), (744, True),
                           (1255, False), (1000, True), (1256, False), (1001, False), (999, True)):
        w.check(window.seen(sequence) == seen, "%d" % sequence)
        if not seen:
            window.advance(sequence)

# --- the peer against itself ------------------------------------------------------------------------------------------


def self_joined(w, server, token=None, **how):
    token = token or w.mint([server])
    client = w.client(token, **how)
    w.until(lambda: client.state == CONNECTED, 3, "the client connects")
    return client, next(slot for slot in server.clients() if slot.token.client_id == token.client_id)


@story
def self_connect_payloads_disconnect(w):
    server = w.peer_server()
    client, slot = self_joined(w, server)
    for size in (1, 100, 1200):
        data = os.urandom(size)
        client.send(PAYLOAD, data)
        w.until(lambda: slot.payloads[-1:] == [data], 2, "%d bytes to the server" % size)
        server.send_payload(slot, data[::-1])
        w.until(lambda: client.payloads[-1:] == [data[::-1]], 2, "%d bytes to the client" % size)
    client.disconnect()
    w.until(lambda: not server.clients() and len(slot.of(DISCONNECT)) == 10, 2, "the slot is free")
    client, slot = self_joined(w, server)
    server.kick(slot)
    w.until(lambda: client.state == DISCONNECTED, 2, "the client notices the kick")


@story
def self_denied_then_next_server(w):
    full, other = w.peer_server(slots=0), w.peer_server()
    client, _ = self_joined(w, other, w.mint([full, other]))
    w.check(len(full.requests) == 1, "one request was denied")
    alone = w.client(w.mint([full]))
    w.until(lambda: alone.state == WAS_DENIED, 2, "denied for good")


@story
def self_timeouts(w):
    server = w.peer_server()
    quiet, slot = self_joined(w, server, w.mint([server], timeout=1))
    patient, _ = self_joined(w, server, w.mint([server], timeout=0))
    expiring = w.client(w.mint([w.add(Endpoint())], expire_in=1))
    quiet.muted = patient.muted = server.muted = True
    w.until(lambda: quiet.state == TIMED_OUT and slot in server.left, 3, "both sides time out")
    w.until(lambda: expiring.state == TOKEN_EXPIRED, 2, "the token expires")
    w.check(patient.state == CONNECTED and len(server.clients()) == 1, "a timeout of 0 never ends")


@story
def self_hostile(w):
    """The peer's own server refuses what the standard has it refuse."""
    server = w.peer_server()
    client, slot = self_joined(w, server)
    data = client.send(PAYLOAD, b"once")
    for _ in range(3):
        client.send_raw(data, client.server)
    client.send(PAYLOAD, bytes(1201))
    client.send(PAYLOAD, b"nothing", sequence=0, sequence_bytes=0)
    again = w.client(client.token, manual=True)
    again.send_raw(again.token.request(), server.address)
    for token in (w.mint([server], expire=1, create=0), w.mint([client]), w.mint([server], key=bytes(32))):
        w.client(token, manual=True).send_request()
    w.wait(0.2)
    w.check(slot.payloads == [b"once"], "one payload, not %r" % slot.payloads)
    w.check(len(server.clients()) == 1 and len(server.ignored) >= 8, "the rest was ignored: %r" % server.ignored)


@story
def self_ipv6(w):
    need_ipv6()
    server = w.peer_server(host="::1")
    client, slot = self_joined(w, server)
    client.send(PAYLOAD, b"six")
    w.until(lambda: slot.payloads == [b"six"], 2, "a payload over IPv6")

# --- the peer as client, the subject as server ------------------------------------------------------------------------


def changed(data, at, bit=1):
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]


@story
def server_connect_and_payloads(w):
    """The application sees id, user data and address; payloads of 1, 100 and 1200 bytes pass both ways."""
    server = w.subject_server()
    client = w.join(server)
    w.check(client.seen[3].lower() == client.minted.user_data.hex(), "the user data is the token's")
    w.check(Address.parse(client.seen[4]) == client.address, "the address is the client's: %s" % client.seen[4])
    w.check((client.index, client.max_clients) == (client.slot, 4), "the keep-alive holds slot and slots")
    for size in (1, 100, 1200):
        data = os.urandom(size)
        client.send(PAYLOAD, data)
        w.expect(server, "payload %d %d %s" % (client.slot, client.sequence - 1, data.hex()))
        server.tell("send %d %s" % (client.slot, data[::-1].hex()))
        w.until(lambda: client.payloads[-1:] == [data[::-1]], 3, "%d bytes to the client" % size)
    w.check(max(len(data) for data in client.heard) <= MAX_PACKET_BYTES, "no datagram over 1225 bytes")


@story
def server_many_clients(w):
    """Eight players; each gets its own echo and no other's."""
    server = w.subject_server("--echo", slots=8)
    clients = [w.join(server, rate=20) for _ in range(8)]
    w.check(sorted(client.slot for client in clients) == list(range(8)), "eight different slots")
    for round_number in range(20):
        for client in clients:
            client.send(PAYLOAD, b"%d from %d" % (round_number, client.slot))
        w.wait(0.02)
    for client in clients:
        expected = {b"%d from %d" % (number, client.slot) for number in range(20)}
        w.until(lambda: set(client.payloads) == expected, 3, "all echoes of one client, and no other's")
    server.tell("stats")
    w.expect(server, r"stats .*\bclients=8\b.*")


@story
def server_keep_alives_at_10_hz(w):
    """A token of one second stays connected on keep-alives, and gets ten a second."""
    server = w.subject_server()
    client = w.join(server, w.mint([server], timeout=1))
    w.wait(0.3)
    before = len(client.of(KEEP_ALIVE))
    w.wait(2.5)
    count = len(client.of(KEEP_ALIVE)) - before
    w.check(18 <= count <= 28, "%d keep-alives in 2.5 s" % count)
    w.check(client.state == CONNECTED and not server.find(r"disconnected .*"), "still connected")


@story
def server_peer_sends_4_hz_and_one_disconnect(w):
    """renetcode's pace: 4 Hz, an answer at once, a single disconnect packet."""
    server = w.subject_server()
    client = w.join(server, w.mint([server], timeout=1), rate=4)
    w.never(lambda: server.find(r"disconnected .*") or client.state != CONNECTED, 2, "the slow client was lost")
    client.disconnect(count=1)
    w.expect(server, r"disconnected %d %d 2" % (client.slot, client.minted.client_id), 1)


@story
def server_sees_a_disconnect(w):
    """Ten disconnect packets are one disconnect with reason 2; the slot is free for the next."""
    server = w.subject_server(slots=1)
    first = w.join(server)
    first.disconnect()
    w.expect(server, r"disconnected 0 %d 2" % first.minted.client_id, 1)
    second = w.join(server)
    w.check(second.session != first.session, "a new session number")
    w.check(len(server.find(r"disconnected .*")) == 1, "one disconnect")
    w.check(not first.of(DISCONNECT), "a client that left is not notified")


@story
def server_kicks(w):
    """A kicked client gets ten disconnect packets, each with its own sequence, and nothing after them."""
    server = w.subject_server()
    client, other = w.join(server), w.join(server)
    server.tell("kick %d" % client.slot)
    w.expect(server, r"disconnected %d %d 3" % (client.slot, client.minted.client_id))
    w.until(lambda: client.state == DISCONNECTED, 2, "the client notices")
    w.wait(0.6)
    farewell = client.of(DISCONNECT)
    w.check(len(farewell) == 10, "%d disconnect packets" % len(farewell))
    sequences = [packet.sequence for packet in farewell]
    w.check(sequences == list(range(sequences[0], sequences[0] + 10)), "sequences in order")
    w.check(client.packets[-1] is farewell[-1], "nothing after the last disconnect packet")
    w.check(other.state == CONNECTED, "the other client stays")


@story
def server_stop_and_start(w):
    """Stop notifies all clients; after start the old tokens stay consumed and sequences do not begin again."""
    server = w.subject_server()
    clients = [w.join(server), w.join(server)]
    server.tell("stop")
    w.until(lambda: all(client.state == DISCONNECTED for client in clients), 2, "both are notified")
    w.wait(0.1)
    w.check([len(client.of(DISCONNECT)) for client in clients] == [10, 10], "ten disconnect packets each")
    w.check(len(server.find(r"disconnected \d+ \d+ 3")) == 2, "two disconnects with reason 3")
    w.client(w.mint([server]), manual=True).send_request()
    server.tell("start 2")
    w.wait(0.2)
    w.ignored(server, clients[0], [clients[0].token.request()], "a consumed token after stop and start")
    again = w.join(server)
    w.check(again.max_clients == 2, "two slots now")
    bases = [client.of(CHALLENGE)[0].sequence for client in (clients[0], again)]
    w.check(bases[0] != bases[1] and min(bases) >= UPPER_HALF, "a fresh global sequence")


@story
def server_full_denies_request(w):
    """A full server denies in at most 25 bytes, with sequences of the upper half; a bad token gets no denial."""
    server = w.subject_server(slots=1)
    inside = w.join(server)
    outside = w.client(w.mint([server]))
    w.until(lambda: outside.state == WAS_DENIED, 3, "denied")
    denial = outside.packets[0]
    w.check(len(denial.raw) <= 25 and denial.sequence >= UPPER_HALF, "the denial: %r" % denial)
    forged = w.client(w.mint([server], key=bytes(32)), manual=True)
    w.ignored(server, forged, [forged.token.request()], "a forged token on a full server")
    w.check(inside.state == CONNECTED and not outside.challenges, "the inside stays, the outside is not challenged")


@story
def server_full_denies_response(w):
    """Two handshakes and one slot: the second response is denied."""
    server = w.subject_server(slots=1)
    first, second = w.challenged(server), w.challenged(server)
    first.send_response()
    w.expect(server, r"connected 0 %d .*" % first.minted.client_id)
    second.send_response()
    w.until(lambda: second.state == WAS_DENIED, 3, "the second is denied")
    denial = second.of(DENIED)[0]
    w.check(denial.sequence >= UPPER_HALF and denial.sequence != second.of(CHALLENGE)[0].sequence, "its sequence")


@story
def server_client_moves_on_after_denial(w):
    """The peer's client moves from a full subject to the token's second address, also a subject."""
    full, other = w.subject_server(slots=1), w.subject_server()
    w.join(full)
    client = w.join(other, w.mint([full, other]))
    w.check(client.state_log == [REQUESTING, REQUESTING, RESPONDING, CONNECTED], "by way of a denial")


@story
def server_client_moves_on_after_silence(w):
    """A silent first address costs one timeout; then the subject answers."""
    server, silent = w.subject_server(), w.add(Endpoint())
    client = w.join(server, w.mint([silent, server], timeout=1))
    w.check(len(silent.heard) >= 5 and client.server == server.address, "the silent one was asked first")


@story
def server_times_a_client_out(w):
    """Silence for the token's timeout ends the slot with reason 1, and no packet goes out for it."""
    server = w.subject_server()
    client = w.join(server, w.mint([server], timeout=1))
    client.send_keep_alive()
    client.muted, start = True, time.monotonic()
    w.expect(server, r"disconnected %d %d 1" % (client.slot, client.minted.client_id))
    w.check(0.8 <= time.monotonic() - start <= 2, "after %.2f s" % (time.monotonic() - start))
    heard = len(client.heard)
    w.never(lambda: len(client.heard) > heard or client.of(DISCONNECT), 0.5, "a packet after the timeout")


@story
def server_timeout_disabled(w):
    """A timeout of 0 or less never ends a confirmed client."""
    server = w.subject_server()
    clients = [w.join(server, w.mint([server], timeout=timeout)) for timeout in (0, -1, -2147483648)]
    for client in clients:
        client.send_keep_alive()
        client.muted = True
    w.never(lambda: server.find(r"disconnected .*"), 4, "a client without timeout was timed out")
    for client in clients:
        client.send(PAYLOAD, b"%d" % client.slot)
        w.expect(server, "payload %d .*" % client.slot)


@story
def server_unconfirmed_slot_ends(w):
    """A client that never speaks after its response loses the slot: after its timeout, or 10 s without one."""
    server = w.subject_server()
    brief, patient = (w.challenged(server, w.mint([server], timeout=timeout)) for timeout in (1, -1))
    start = time.monotonic()
    for client in (brief, patient):
        client.send_response()
        w.expect(server, r"connected \d+ %d .*" % client.minted.client_id)
    w.expect(server, r"disconnected \d+ %d 1" % brief.minted.client_id, 3)
    w.check(time.monotonic() - start < 3, "the brief one goes first")
    w.expect(server, r"disconnected \d+ %d 1" % patient.minted.client_id, 12)
    w.check(9 <= time.monotonic() - start, "the patient one after 10 s: %.1f" % (time.monotonic() - start))


@story
def server_pending_handshake_ends(w):
    """A challenge is good for the timeout where that is short, and for 10 s without one."""
    server = w.subject_server()
    brief, patient = (w.challenged(server, w.mint([server], timeout=timeout)) for timeout in (1, 0))
    w.wait(1.6)
    w.ignored(server, brief, [brief.seal(RESPONSE, brief.challenges[0])], "a response after the timeout")
    w.wait(9)
    w.ignored(server, patient, [patient.seal(RESPONSE, patient.challenges[0])], "a response after 10 s")
    patient.challenges.clear()
    patient.send_request()
    w.until(lambda: patient.challenges, 2, "a new request gets a new challenge")
    patient.send_response(patient.challenges[0])
    w.expect(server, r"connected \d+ %d .*" % patient.minted.client_id)


@story
def server_expired_token(w):
    """Expired, expiring this very second, and expiring while the client waits."""
    server = w.subject_server()
    now = int(time.time())
    for expire in (1, now - 1, now):
        client = w.client(w.mint([server], create=0, expire=expire), manual=True)
        w.ignored(server, client, [client.token.request()], "a token that expired at %d, now %d" % (expire, now), 0.2)
    w.join(server, w.mint([server], create=now, expire=SEQUENCE_LIMIT - 1))
    late = w.client(w.mint([server], expire_in=2), manual=True)
    w.wait(2.5)
    w.ignored(server, late, [late.token.request()], "a token that expired while it waited")


@story
def server_tampered_token(w):
    """One bit anywhere in the request, and nothing comes of it."""
    server = w.subject_server()
    client = w.client(w.mint([server]), manual=True)
    request = client.token.request()
    spots = (1, 12, 14, 21, 22, 29, 30, 53, 54, 62, 500, 1061, 1062, 1077)
    w.ignored(server, client, [changed(request, at, 1 << at % 8) for at in spots], "one bit of the request")
    w.check(len(server.find(r"drop .*")) >= len(spots), "each is dropped by name")
    forged = w.client(w.mint([server], key=bytes(32)), manual=True)
    w.ignored(server, forged, [forged.token.request()], "a token under another key")
    client.send_request()
    w.until(lambda: client.challenges, 2, "the genuine request still works")


@story
def server_wrong_protocol_id(w):
    server = w.subject_server()
    other = w.client(w.mint([server], protocol_id=w.protocol_id ^ 1), manual=True)
    renamed = changed(other.token.request(), 14)
    w.ignored(server, other, [other.token.request(), renamed], "another protocol id, and the right one pasted over it")
    w.check(server.find(r"drop \S+ %s 1078" % re.escape(str(other.address))), "the drop names sender and size")
    w.alive(server)


@story
def server_token_for_another_server(w):
    """The token names other addresses than this server's: another port, another host, another family."""
    server = w.subject_server()
    port = server.address.port
    elsewhere = [Address("127.0.0.1", port ^ 1), Address("127.0.0.2", port), Address("::1", port)]
    client = w.client(w.mint(elsewhere), manual=True, via=server.address)
    w.ignored(server, client, [client.token.request()], "a token for another server")
    among = w.client(w.mint(elsewhere * 10 + [server]), manual=True, via=server.address)
    among.send_request()
    w.until(lambda: among.challenges, 2, "the address as the last of many")


@story
def server_malformed_private_part(w):
    """The web backend's mistakes: no addresses, 33 of them, address types 0 and 3, sealed with the right key."""
    server = w.subject_server()
    bad = [w.mint([server], expire_in=50 + number) for number in range(4)]
    for token, count, kind in zip(bad, (0, 33, 1, 1), (1, 1, 0, 3)):
        plain = bytearray(token.private_plain())
        plain[12:16], plain[16] = struct.pack("<I", count), kind
        token.sealed_private = seal_xaead(w.key, token.nonce, token.associated(), bytes(plain[:1008]))
    client = w.client(w.mint([server]), manual=True)
    w.ignored(server, client, [token.request() for token in bad], "a malformed private part")
    w.alive(server)


@story
def server_used_token(w):
    """A token that has connected is consumed: from another address, and from its own after it left."""
    server = w.subject_server()
    client = w.join(server)
    thief = w.client(client.token, manual=True)
    w.ignored(server, thief, [thief.token.request()], "a used token from another address")
    client.disconnect()
    w.expect(server, r"disconnected .* 2")
    w.ignored(server, thief, [thief.token.request()], "the same after its owner left")
    w.ignored(server, client, [client.token.request()], "the same from its owner's address")
    w.alive(server)


@story
def server_copy_of_a_request_locks_no_client_out(w):
    """A recorder's copies arrive first, from three other addresses; the owner still connects, once."""
    server = w.subject_server()
    token = w.mint([server])
    copies = [w.challenged(server, token) for _ in range(3)]
    owner = w.join(server, token)
    for copy in copies:
        w.ignored(server, copy, [copy.seal(RESPONSE, copy.challenges[0])], "a response with a token consumed meanwhile")
    w.check(owner.state == CONNECTED and len(server.find(r"connected .*")) == 1, "one connect")


@story
def server_fifth_address_of_a_token(w):
    """Four addresses may wait with one token; the fifth takes the place of the oldest, once that had half a second to answer."""
    server = w.subject_server()
    token = w.mint([server])
    waiting = [w.challenged(server, token) for _ in range(4)]
    early = w.client(token, manual=True)
    w.ignored(server, early, [token.request()], "a fifth address while the oldest may still answer")
    w.wait(0.6)
    waiting.append(w.challenged(server, token))
    w.ignored(server, waiting[0], [waiting[0].seal(RESPONSE, waiting[0].challenges[0])], "the oldest of five")
    waiting[4].send_response()
    line = w.expect(server, r"connected \d+ %d .* (\S+)" % token.client_id)
    w.check(Address.parse(line[1]) == waiting[4].address, "the fifth connects")


@story
def server_fifth_token_of_a_client_id(w):
    """Four tokens of one id may wait; the fifth takes the earliest-expiring one's place, or none if that is itself."""
    server = w.subject_server()
    tokens = [w.mint([server], client_id=5, expire_in=seconds) for seconds in (59, 51, 52, 53, 54)]
    waiting = [w.challenged(server, token) for token in tokens]
    given_way = waiting[1]
    w.ignored(server, given_way, [given_way.seal(RESPONSE, given_way.challenges[0])], "the earliest-expiring of five")
    early = w.client(w.mint([server], client_id=5, expire_in=40), manual=True)
    w.ignored(server, early, [early.token.request()], "a newcomer that expires before all four")
    waiting[0].send_response()
    w.expect(server, r"connected \d+ 5 .*")


@story
def server_one_token_two_servers(w):
    """Kicked, the peer tries the token's next server, as deployed clients do; no key and sequence seals twice."""
    first, second = w.subject_server(), w.subject_server()
    client = w.join(first, w.mint([first, second]))
    first.tell("send %d 0101" % client.slot)
    w.until(lambda: client.payloads, 2, "a payload from the first")
    first.tell("kick %d" % client.slot)
    w.until(lambda: len(client.of(DISCONNECT)) == 10, 2, "kicked")
    client.fail(DISCONNECTED)
    w.until(lambda: client.state == CONNECTED, 3, "the second server accepts")
    line = w.expect(second, r"connected (\d+) %d .*" % client.minted.client_id)
    second.tell("send %s 0202" % line[1])
    w.until(lambda: client.payloads[1:] == [b"\2\2"], 2, "a payload from the second")


@story
def server_restarted_process(w):
    """A new process on the same port cannot know the used token; what it sends repeats no key and sequence."""
    server = w.subject_server()
    client = w.join(server)
    server.tell("send %d 0101" % client.slot)
    w.until(lambda: client.payloads, 2, "a payload from the first process")
    w.actors.remove(server)
    w.check(server.close() is None, "the first process ends well")
    w.until(lambda: client.state == DISCONNECTED, 2, "its end notifies the client")
    again = w.subject_server(address=str(server.address))
    returned = w.join(again, client.minted)
    again.tell("send %d 0202" % returned.slot)
    w.until(lambda: returned.payloads == [b"\2\2"], 2, "a payload from the second process")
    old = [packet.raw for packet in client.of(PAYLOAD) + client.of(KEEP_ALIVE)]
    again.tell("stats")
    w.expect(again, r"stats .*\bclients=1\b.*")
    w.check(old and all(data not in returned.heard for data in old), "nothing is sent twice")


@story
def server_ids_and_user_data_at_the_edges(w):
    """Client ids 0 and 2^64 - 1, user data of one bit only, a token with 32 addresses."""
    server = w.subject_server()
    for ident, user_data in ((0, bytes(256)), (SEQUENCE_LIMIT - 1, b"\xff" * 256), (1 << 63, bytes(255) + b"\x80")):
        token = w.mint([Address("192.0.2.1", 1 + port) for port in range(31)] + [server], client_id=ident,
                       user_data=user_data)
        client = w.join(server, token, via=server.address)
        w.check(client.seen[3].lower() == user_data.hex(), "user data of client %d" % ident)


@story
def server_repeated_response(w):
    """A response that is sent again connects no client twice and does not confirm the slot."""
    server = w.subject_server()
    client = w.challenged(server)
    response = client.send_response(client.challenges[0])
    w.expect(server, r"connected .*")
    for _ in range(3):
        client.send_raw(response, client.server)
        client.send_response(client.challenges[0])
    server.tell("send 0 77")
    w.until(lambda: client.of(PAYLOAD), 2, "a payload")
    payload = client.of(PAYLOAD)[0]
    before = [packet for packet in client.packets if packet.sequence == payload.sequence - 1]
    w.check(before and before[0].kind == KEEP_ALIVE, "the slot is still unconfirmed")
    w.check(len(server.find(r"connected .*")) == 1, "one connect")


@story
def server_payloads_are_enough(w):
    """Payloads alone keep a connection of one second; while they flow the server sends no keep-alives."""
    server = w.subject_server()
    client = w.join(server, w.mint([server], timeout=1))
    client.send_keep_alive()
    client.muted = True
    w.wait(0.2)
    count = len(client.of(KEEP_ALIVE))
    for number in range(60):
        client.send(PAYLOAD, b"%d" % number)
        server.tell("send %d %02x" % (client.slot, number))
        w.wait(0.03)
    w.check(len(client.payloads) == 60 and len(server.payloads()) == 60, "sixty payloads each way")
    w.check(client.state == CONNECTED and not server.find(r"disconnected .*"), "still connected")
    extra = len(client.of(KEEP_ALIVE)) - count
    w.check(extra <= 4, "%d keep-alives between the payloads" % extra)


@story
def server_vanished_client(w):
    """A client's port closes: the refusals that come back end nothing early and cost the others nothing."""
    server = w.subject_server()
    gone, other = w.join(server, w.mint([server], timeout=2)), w.join(server, w.mint([server], timeout=1))
    gone.send_keep_alive()
    w.actors.remove(gone)
    gone.close()
    for number in range(100):
        server.tell("send %d 00" % gone.slot)
        other.send(PAYLOAD, b"%d" % number)
        server.tell("send %d %02x" % (other.slot, number))
        w.wait(0.01)
    w.check(not server.find(r"disconnected .*"), "no client is disconnected for a refusal")
    w.until(lambda: len(server.payloads()) == 100 and len(other.payloads) == 100, 2, "the other's hundred payloads")
    w.expect(server, r"disconnected %d %d 1" % (gone.slot, gone.minted.client_id), 3)


@story
def server_fifth_token_at_an_address(w):
    """Four tokens may wait at one address; the fifth takes the place of the oldest."""
    server = w.subject_server()
    client = w.challenged(server)
    oldest = client.seal(RESPONSE, client.challenges[0])
    newer = [w.mint([server]) for _ in range(4)]
    for token in newer:
        client.send_raw(token.request(), server.address)
    w.wait(0.2)
    w.ignored(server, client, [oldest], "the oldest of five tokens")
    heard = {}
    for data in client.heard[1:]:
        for token in newer:
            try:
                heard[token] = read_packet(data, token.to_client_key, w.protocol_id, {CHALLENGE}).body
            except Ignored:
                continue
    w.check(len(heard) == 4, "%d challenges" % len(heard))
    response = seal_packet(RESPONSE, heard[newer[0]], newer[0].to_server_key, w.protocol_id, 1 << 20)
    client.send_raw(response, server.address)
    w.expect(server, r"connected \d+ %d .*" % newer[0].client_id)


@story
def server_two_tokens_from_one_address(w):
    """Two tokens wait at one address; a response is tried against each."""
    server = w.subject_server()
    tokens = [w.mint([server]) for _ in range(2)]
    first = w.challenged(server, tokens[0])
    first.send_raw(tokens[1].request(), server.address)
    w.wait(0.2)
    first.send_response()
    line = w.expect(server, r"connected \d+ (\d+) \d+ (\S*) .*")
    w.check((int(line[1]), line[2].lower()) == (tokens[0].client_id, tokens[0].user_data.hex()), "the first token's")


@story
def server_second_client_with_a_connected_id(w):
    """Another token with the same client id: no answer while the first is connected, welcome afterwards."""
    server = w.subject_server()
    first = w.join(server)
    rival = w.client(w.mint([server], client_id=first.minted.client_id), manual=True)
    w.ignored(server, rival, [rival.token.request()] * 3, "a connected client's id")
    same = w.mint([server])
    w.ignored(server, first, [same.request()], "another token from a connected address")
    w.check(first.state == CONNECTED, "the first stays")
    first.disconnect()
    w.expect(server, r"disconnected .* 2")
    rival.send_request()
    w.until(lambda: rival.challenges, 2, "the id is free again")


@story
def server_second_response_with_a_connected_id(w):
    """Two tokens of one id are challenged before either answers; only the first response connects."""
    server = w.subject_server()
    tokens = [w.mint([server], client_id=77) for _ in range(2)]
    first, second = (w.challenged(server, token) for token in tokens)
    first.send_response()
    w.expect(server, r"connected \d+ 77 .*")
    w.ignored(server, second, [second.seal(RESPONSE, second.challenges[0])], "the second response of one id")


@story
def server_replayed_packets(w):
    """Recorded packets are delivered once: in order, backwards, over and over, and from elsewhere."""
    server = w.subject_server()
    client = w.join(server)
    recorded = [client.send(PAYLOAD, b"number %d" % number) for number in range(20)]
    w.until(lambda: len(server.payloads()) == 20, 2, "twenty payloads")
    w.ignored(server, client, recorded + recorded[::-1], "replayed payloads")
    elsewhere = w.client(client.token, manual=True)
    w.ignored(server, elsewhere, recorded, "replayed payloads from elsewhere")
    fresh = client.seal(PAYLOAD, b"fresh")
    w.ignored(server, elsewhere, [fresh], "a fresh payload from elsewhere")
    client.send_raw(fresh, client.server)
    w.until(lambda: server.payloads()[20:] == [b"fresh"], 2, "the copy burnt nothing: the genuine one arrives")
    w.check(client.state == CONNECTED, "still connected")


@story
def server_replay_window(w):
    """Out of order within the window is accepted, once; what lies at or below the response's sequence is not."""
    server = w.subject_server()
    client = w.join(server, base=1 << 30)
    client.muted = True
    sent = next(data for data in client.sent if data[0] & 15 == RESPONSE)
    response = read_packet(sent, client.minted.to_server_key, w.protocol_id, {RESPONSE}).sequence
    base = client.sequence + 1000
    order = [base, base - 1, base - 200, base + 1, base - 100, base + 200, base - 50]
    for number in order:
        client.send(PAYLOAD, b"%d" % number, sequence=number)
    w.until(lambda: server.payloads() == [b"%d" % number for number in order], 2, "all, in the order of arrival")
    again = [client.seal(PAYLOAD, b"%d" % number, sequence=number) for number in order]
    ancient = [client.seal(PAYLOAD, b"old", sequence=number) for number in (response, response - 1, 0, base - 100000)]
    w.ignored(server, client, again + ancient, "replayed and ancient sequences")


@story
def server_sequence_jumps(w):
    """More than 2^32 ahead of the newest accepted sequence is refused; 2^32 exactly is not."""
    server = w.subject_server()
    client = w.join(server, w.mint([server], timeout=20))
    client.muted, newest = True, client.sequence + 50
    client.send(PAYLOAD, b"newest", sequence=newest)
    far = [client.seal(PAYLOAD, b"far", sequence=number)
           for number in (newest + (1 << 32) + 1, 1 << 62, UPPER_HALF - 1, UPPER_HALF, SEQUENCE_LIMIT - 1)]
    w.until(lambda: server.payloads() == [b"newest"], 2, "the newest")
    w.ignored(server, client, far, "jumps of more than 2^32")
    client.send(PAYLOAD, b"edge", sequence=newest + (1 << 32))
    w.until(lambda: server.payloads()[1:] == [b"edge"], 2, "a jump of exactly 2^32")


@story
def server_replayed_session(w):
    """A whole recorded session, replayed after its end from the same address, moves nothing; no answer, no slot."""
    server = w.subject_server()
    client = w.join(server)
    for number in range(5):
        client.send(PAYLOAD, b"secret %d" % number)
    w.until(lambda: len(server.payloads()) == 5, 2, "five payloads")
    client.disconnect()
    w.expect(server, r"disconnected .* 2")
    record = list(client.sent)
    w.ignored(server, client, record + record, "a replayed session")
    next_session = w.client(w.mint([server], client_id=client.minted.client_id), via=server.address)
    w.until(lambda: next_session.state == CONNECTED, 3, "the next session of the same player")
    w.expect(server, r"connected .*")
    w.ignored(server, client, record, "a session replayed beside the next one")
    server.tell("stop")
    server.tell("start 4")
    w.wait(0.2)
    w.ignored(server, client, record, "a session replayed after stop and start")


@story
def server_mangled_requests(w):
    """Cut, extended, 1062 bytes, and version 1.01; each in vain."""
    server = w.subject_server()
    client = w.client(w.mint([server]), manual=True)
    request = client.token.request()
    old = b"\0NETCODE 1.01\0" + request[14:]
    short_nonce = request[:30] + request[30:38] + request[54:]
    w.check(len(short_nonce) == 1062, "the size in the standard's text")
    cuts = [request[:size] for size in (1, 2, 13, 14, 17, 18, 30, 54, 333, 1061, 1062, 1077)]
    longer = [request + bytes(size) for size in (1, 2, 100, 147, 400)]
    olds = [old, b"\0NETCODE 1.01\0" + short_nonce[14:], short_nonce, old + b"\0"]
    w.ignored(server, client, cuts + longer + olds, "a request that is cut, extended or of another version")
    w.check(len(server.find(r"drop .*")) >= len(cuts + longer + olds), "each is dropped by name")
    client.send_request()
    w.until(lambda: client.challenges, 2, "the whole request works")


@story
def server_longer_sequences_are_accepted(w):
    """Sequences in more bytes than needed: the prefix byte is authenticated, so they are as good."""
    server = w.subject_server()
    client = w.challenged(server, base=300)
    client.send_response(sequence_bytes=8)
    w.expect(server, r"connected .*")
    for count in (2, 3, 5, 7, 8):
        client.send(PAYLOAD, b"%d bytes" % count, sequence_bytes=count)
        w.until(lambda: server.payloads()[-1:] == [b"%d bytes" % count], 2, "a sequence in %d bytes" % count)
    client.send(DISCONNECT, sequence_bytes=8)
    w.expect(server, r"disconnected .* 2")


@story
def server_zero_byte_sequence(w):
    """renetcode writes sequence 0 in zero bytes: ignored, and the handshake completes with the next response."""
    server = w.subject_server()
    client = w.join(server, base=0, count_requests=False, zero_in_no_bytes=True)
    responses = [data for data in client.sent if data[0] & 15 == RESPONSE]
    w.check(responses[0][0] == RESPONSE and len(responses) == 2, "the second response connected")
    w.ignored(server, client, [client.seal(kind, bytes(BODY_BYTES[kind][0]), sequence=0, sequence_bytes=0)
                               for kind in (KEEP_ALIVE, PAYLOAD, DISCONNECT)], "sequence 0 in zero bytes")
    plain = w.join(server, base=0, count_requests=False)
    w.check([data for data in plain.sent if data[0] & 15 == RESPONSE][0][:2] == b"\x13\0", "0 in one byte is accepted")


@story
def server_wrong_sizes(w):
    """Authentic packets of the wrong size: payloads of 0, 1201 and 1300 bytes and the like are ignored."""
    server = w.subject_server()
    client = w.join(server)
    grid = {PAYLOAD: (0, 1201, 1300), KEEP_ALIVE: (0, 7, 9), DISCONNECT: (1, 8), RESPONSE: (0, 300, 307, 309)}
    wrong = [client.seal(kind, bytes(size)) for kind, sizes in grid.items() for size in sizes]
    w.ignored(server, client, wrong, "an authentic packet of the wrong size")
    client.send(PAYLOAD, b"still here")
    w.until(lambda: server.payloads() == [b"still here"], 2, "the next payload")
    w.check(not server.find(r"disconnected .*"), "still connected")


@story
def server_wrong_prefixes(w):
    """All 256 prefix bytes in front of noise, from an unknown address and from a client's; packets of the wrong direction."""
    server = w.subject_server()
    client, outsider = w.join(server), w.client(w.mint([server]), manual=True)
    noise = [bytes([prefix]) + os.urandom(size) for prefix in range(256) for size in (16, 40, 332)]
    w.ignored(server, outsider, noise, "noise from an unknown address")
    connects = len(server.find(r"connected .*"))
    noise += [client.seal(kind, bytes(BODY_BYTES[kind][0])) for kind in (DENIED, CHALLENGE)]
    w.send_below_a_flood(client, noise + list(client.heard))
    w.wait(0.3)
    client.send(PAYLOAD, b"after the noise")
    w.until(lambda: server.payloads() == [b"after the noise"], 2, "a payload after the noise")
    w.check(client.state == CONNECTED and connects == len(server.find(r"connected .*")), "nothing else happened")


@story
def server_one_bit_flipped(w):
    """Each byte of an authentic payload packet flipped in one bit; then the packet as it was."""
    server = w.subject_server()
    client = w.join(server)
    data = client.seal(PAYLOAD, b"flipped")
    w.ignored(server, client, [changed(data, at, 1 << at % 8) for at in range(len(data))], "a flipped bit")
    client.send_raw(data, client.server)
    w.until(lambda: server.payloads() == [b"flipped"], 2, "the packet as it was")


@story
def server_global_sequences_in_the_upper_half(w):
    """Challenges and denials have random sequences at or above 2^63, each number once."""
    server = w.subject_server(slots=1)
    w.join(server)
    denied = w.client(w.mint([server]), manual=True)
    w.check(server.find(r"connected .*"), "the slot is taken")
    for _ in range(3):
        denied.send_request()
    w.until(lambda: len(denied.packets) == 3, 2, "three denials")
    sequences = [packet.sequence for packet in denied.packets]
    w.check(len(set(sequences)) == 3 and min(sequences) >= UPPER_HALF, "%r" % sequences)
    w.check(all(abs(b - a) > 1 << 32 for a, b in zip(sequences, sequences[1:])), "each drawn by itself")


@story
def server_client_sequences_start_at_random(w):
    """Per-client sequences stay below 2^48, count up by one, and each session starts elsewhere."""
    server = w.subject_server()
    clients = [w.join(server) for _ in range(3)]
    w.wait(0.4)
    starts = []
    for client in clients:
        own = [packet.sequence for packet in client.packets if packet.kind != CHALLENGE]
        w.check(max(own) < 1 << 48, "%d is not below 2^48" % max(own))
        w.check(own == list(range(own[0], own[0] + len(own))), "no gaps: %r" % own)
        starts.append(own[0])
    starts.sort()
    w.check(min(b - a for a, b in zip(starts, starts[1:])) > 1 << 16, "three sessions, three places: %r" % starts)


@story
def server_zero_base(w):
    """With --zero-base sequences start at 0, and tokens that may be older than the start are refused."""
    server = w.subject_server("--zero-base")
    young = w.client(w.mint([server], expire_in=15), manual=True)
    w.ignored(server, young, [young.token.request()], "a token that expires before start + 30 s")
    client = w.join(server, w.mint([server], expire_in=120))
    own = [packet.sequence for packet in client.packets if packet.kind != CHALLENGE]
    w.check(own[0] == 0 and client.of(CHALLENGE)[0].sequence >= UPPER_HALF, "%r" % own)


@story
def server_unconfirmed_payloads_follow_keep_alives(w):
    """Until the client is heard from, each payload to it has a keep-alive before it, and 10 Hz go on; then no more."""
    server = w.subject_server()
    client = w.challenged(server)
    client.send_response()
    w.until(lambda: client.state == CONNECTED, 2, "connected")
    for number in range(5):
        server.tell("send %d %02x" % (client.index, number))
    w.until(lambda: len(client.payloads) == 5, 2, "five payloads")
    kinds = {packet.sequence: packet for packet in client.packets}
    for payload in client.of(PAYLOAD):
        before = kinds.get(payload.sequence - 1)
        w.check(before is not None and before.kind == KEEP_ALIVE, "before payload %d: %r" % (payload.sequence, before))
        w.check(before.body == struct.pack("<II", client.index, 4), "it holds slot and slots")
    count = len(client.packets)
    w.wait(1)
    w.check(7 <= len(client.packets) - count <= 12, "%d keep-alives in 1 s" % (len(client.packets) - count))
    client.send_keep_alive()
    w.wait(0.2)
    count = len(client.packets)
    for number in range(5):
        server.tell("send %d %02x" % (client.index, number))
    w.until(lambda: len(client.payloads) == 10, 2, "five more")
    between = [packet for packet in client.packets[count:] if packet.kind == KEEP_ALIVE]
    w.check(len(between) <= 1, "confirmed, so no keep-alives between: %r" % between)


@story
def server_first_challenge_answered_late(w):
    """Any challenge of this handshake is valid, not only the last one."""
    server = w.subject_server()
    for chosen in (0, 1, 2):
        client = w.client(w.mint([server]), manual=True)
        for _ in range(3):
            client.send_request()
        w.until(lambda: len(client.challenges) == 3, 2, "three challenges")
        client.send_response(client.challenges[chosen])
        w.expect(server, r"connected \d+ %d .*" % client.minted.client_id)


@story
def server_challenge_of_another_token(w):
    """A challenge answers only for the token, the address and the handshake that it was made for."""
    server = w.subject_server()
    seven, other = (w.challenged(server, w.mint([server], client_id=number)) for number in (7, 66))
    w.ignored(server, other, [other.seal(RESPONSE, seven.challenges[0])], "client 7's challenge from token 66")
    token = w.mint([server])
    here, there = (w.challenged(server, token) for _ in range(2))
    w.ignored(server, there, [there.seal(RESPONSE, here.challenges[0])], "a challenge of another address")
    forged = [there.challenges[0][:8] + os.urandom(300), changed(there.challenges[0], 0),
              changed(there.challenges[0], 8), changed(there.challenges[0], 307), bytes(308)]
    w.ignored(server, there, [there.seal(RESPONSE, challenge) for challenge in forged], "a forged challenge")
    seven.send_response()
    line = w.expect(server, r"connected \d+ 7 \d+ (\S*) .*")
    w.check(line[1].lower() == seven.minted.user_data.hex(), "with its own user data")


@story
def server_kept_challenge_of_a_banned_player(w):
    """A kept challenge serves neither again with its own token nor with a newer one of the same player."""
    server = w.subject_server()
    client = w.join(server)
    kept = client.challenges[0]
    server.tell("kick %d" % client.slot)
    w.until(lambda: client.state == DISCONNECTED, 2, "kicked")
    w.ignored(server, client, [client.seal(RESPONSE, kept)], "a kept challenge without a handshake")
    newer = w.challenged(server, w.mint([server], client_id=client.minted.client_id))
    w.ignored(server, newer, [newer.seal(RESPONSE, kept)], "a kept challenge with a newer token")
    newer.send_response()
    w.expect(server, r"connected \d+ %d .*" % client.minted.client_id)


@story
def server_answers_are_few_and_small(w):
    """60 requests a second of one token: a burst of 4 and 10 a second; never more than 0.31 bytes for each received."""
    server = w.subject_server(slots=1)
    client = w.client(w.mint([server]), manual=True)
    start = time.monotonic()
    while time.monotonic() - start < 1.5:
        client.send_request()
        w.wait(1 / 60)
    w.wait(0.1)
    allowed = 4 + 10 * (time.monotonic() - start) + 1
    w.check(10 <= len(client.heard) <= allowed, "%d answers, at most %.1f" % (len(client.heard), allowed))
    w.check(client.bytes_in <= 0.31 * client.bytes_out, "%d bytes for %d" % (client.bytes_in, client.bytes_out))
    w.check(max(len(data) for data in client.heard) <= 333, "a challenge of 333 bytes at most")
    w.join(server)
    denied = w.client(w.mint([server]), manual=True)
    for _ in range(60):
        denied.send_request()
    w.wait(0.3)
    w.check(1 <= len(denied.heard) <= 8 and denied.bytes_in <= 0.31 * denied.bytes_out, "denials are limited too")


@story
def server_empty_datagrams_between(w):
    """An empty datagram after each payload costs no payload; neither do oversized ones."""
    server = w.subject_server()
    client, outsider = w.join(server), w.add(Endpoint())
    for number in range(300):
        client.send(PAYLOAD, b"%d" % number)
        client.send_raw(b"", client.server)
        outsider.send_raw(b"" if number % 10 else bytes(3000), client.server)
        if number % 10 == 9:
            w.wait(0.005)
    w.until(lambda: len(server.payloads()) >= 297, 3, "99 %% of 300 payloads")
    w.check(len(set(server.payloads())) == len(server.payloads()), "each once")


@story
def server_foreign_farewell(w):
    """A disconnect packet of another session, or from another address, ends nothing."""
    server = w.subject_server()
    victim, other = w.join(server), w.join(server)
    other.send_raw(victim.seal(DISCONNECT), server.address)
    victim.send_raw(other.seal(DISCONNECT), server.address)
    w.never(lambda: server.find(r"disconnected .*"), 0.5, "a foreign disconnect packet counted")


@story
def server_replace_mode(w):
    """--replace: a newer token of a connected player takes over the slot after its challenge, on a full server too."""
    server = w.subject_server("--replace", slots=1)
    old = w.join(server, w.mint([server], expire_in=60))
    ident = old.minted.client_id
    older = w.client(w.mint([server], client_id=ident, expire_in=30), manual=True)
    w.ignored(server, older, [older.token.request()], "a token that expires before the connected one")
    new = w.challenged(server, w.mint([server], client_id=ident, expire_in=90))
    w.never(lambda: server.find(r"disconnected .*"), 0.3, "the takeover waits for the response")
    new.send_response()
    w.expect(server, r"disconnected 0 %d 4" % ident)
    line = w.expect(server, r"connected 0 %d (\d+) (\S*) (\S+)" % ident)
    w.check(int(line[1]) != old.session and Address.parse(line[3]) == new.address, "the new session, the new address")
    w.until(lambda: old.state == DISCONNECTED and len(old.of(DISCONNECT)) == 10, 2, "the old address is notified")
    new.send(PAYLOAD, b"back")
    w.until(lambda: server.payloads() == [b"back"], 2, "the player is back")
    w.ignored(server, old, [old.seal(PAYLOAD, b"ghost"), old.token.request()], "the old session speaks on")
    outsider = w.client(w.mint([server]))
    w.until(lambda: outsider.state == WAS_DENIED, 2, "the full server still denies others")


@story
def server_replace_from_the_same_address(w):
    """--replace: the crashed player's new process got the same port; both keys are tried for that address."""
    server = w.subject_server("--replace")
    old = w.join(server)
    ident = old.minted.client_id
    newer = w.mint([server], client_id=ident, expire_in=90)
    old.muted = True
    reborn = PeerClient(newer.raw, manual=True)
    reborn.close()
    reborn.sockets = old.sockets
    w.actors.remove(old)
    w.add(reborn)
    reborn.send_request()
    w.until(lambda: reborn.challenges, 2, "a challenge at the same address")
    reborn.send_raw(old.seal(PAYLOAD, b"not yet"), server.address)
    w.until(lambda: server.payloads() == [b"not yet"], 2, "the old session lasts until the response")
    reborn.send_response()
    w.expect(server, r"disconnected \d+ %d 4" % ident)
    w.expect(server, r"connected %d %d .*" % (old.slot, ident))
    reborn.send(PAYLOAD, b"reborn")
    w.until(lambda: server.payloads()[1:] == [b"reborn"], 2, "the new session speaks")


@story
def server_key_rotation(w):
    """`keys`: two together, then the new one alone; connected clients stay, handshakes of the removed key end."""
    server = w.subject_server()
    new_key = os.urandom(KEY_BYTES)
    early = w.client(w.mint([server], key=new_key), manual=True)
    w.ignored(server, early, [early.token.request()], "a key that is not set yet")
    server.tell("keys %s,%s" % (new_key.hex(), w.key.hex()))
    w.wait(0.1)
    old, new = w.join(server), w.join(server, w.mint([server], key=new_key))
    pending_old, pending_new = w.challenged(server), w.challenged(server, w.mint([server], key=new_key))
    server.tell("keys %s" % new_key.hex())
    w.wait(0.1)
    response = pending_old.seal(RESPONSE, pending_old.challenges[0])
    w.ignored(server, pending_old, [response], "pending under a removed key")
    late = w.client(w.mint([server]), manual=True)
    w.ignored(server, late, [late.token.request()], "a token of the removed key")
    pending_new.send_response()
    w.expect(server, r"connected \d+ %d .*" % pending_new.minted.client_id)
    old.send(PAYLOAD, b"old")
    new.send(PAYLOAD, b"new")
    w.until(lambda: set(server.payloads()) == {b"old", b"new"}, 2, "connected clients stay")


@story
def server_public_address(w):
    """--public: tokens may name that address, wherever the socket is bound; and no third one."""
    public = Address("192.0.2.7", 60123)
    server = w.subject_server("--public", str(public))
    client = w.client(w.mint([public]), via=server.address)
    w.until(lambda: client.state == CONNECTED, 3, "a token that names the public address")
    for elsewhere in (Address("192.0.2.7", 60124), Address("192.0.2.8", 60123)):
        other = w.client(w.mint([elsewhere]), manual=True, via=server.address)
        w.ignored(server, other, [other.token.request()], "a token that names neither address")


@story
def server_ipv6(w):
    need_ipv6()
    server = w.subject_server(address="[::1]:0")
    client = w.join(server, host="::1")
    w.check(Address.parse(client.seen[4]) == client.address, "the address: %s" % client.seen[4])
    client.send(PAYLOAD, bytes(1200))
    w.until(lambda: server.payloads() == [bytes(1200)], 2, "a payload")
    server.tell("send %d 0606" % client.slot)
    w.until(lambda: client.payloads == [b"\6\6"], 2, "a payload back")


def free_port_of_both_families():
    """A port that, a moment ago, none had in either family."""
    for _ in range(100):
        four = Endpoint()
        try:
            six = Endpoint("::1", four.address.port)
        except OSError:
            continue
        finally:
            four.close()
        six.close()
        return four.address.port
    raise Failed("no port is free in both families")


@story
def server_dual_stack(w):
    """One server, both families at once."""
    need_ipv6()
    port = free_port_of_both_families()
    four, six = Address("127.0.0.1", port), Address("::1", port)
    server = w.subject_server("--address2", str(six), address=str(four), listening=2)
    w.check(server.addresses == [four, six], "listening to both: %s" % [str(one) for one in server.addresses])
    tokens = [w.mint([four, six]), w.mint([six, four])]
    clients = [w.join(server, token, host=token.addresses[0].host) for token in tokens]
    for client in clients:
        client.send(PAYLOAD, b"%d" % client.slot)
        w.expect(server, "payload %d .*" % client.slot)
    w.check({client.server.family for client in clients} == {socket.AF_INET, socket.AF_INET6}, "both families")


@story
def server_minted_by_the_subject(w):
    """`subject mint`: the peer reads every field back, and connects with it."""
    server = w.subject_server()
    user_data = os.urandom(USER_DATA_BYTES)
    second = Address("2001:db8:1:2:3:4:5:6", 50000)
    arguments = ["mint", w.key.hex(), w.protocol_id, 4242, 45, 7, user_data.hex(), server.address, second]
    before = int(time.time())
    done = subprocess.run([w.path] + [str(argument) for argument in arguments], stdout=subprocess.PIPE, timeout=10)
    w.check(done.returncode == 0, "exit status %d" % done.returncode)
    raw = bytes.fromhex(done.stdout.decode().strip())
    public = ConnectToken.read_public(raw)
    private = ConnectToken.open_private(public.sealed_private, public.nonce, w.protocol_id, public.expire, w.key)
    w.check(before <= public.create <= time.time() and public.expire == public.create + 45, "create and expire")
    w.check(public.protocol_id == w.protocol_id, "protocol id")
    for part in (public, private):
        w.check(part.addresses == [server.address, second] and part.timeout == 7, "addresses and timeout")
    w.check(public.to_server_key == private.to_server_key and public.to_client_key == private.to_client_key, "keys")
    w.check(public.to_server_key != public.to_client_key, "two keys")
    w.check((private.client_id, private.user_data) == (4242, user_data), "id and user data")
    fields = len(VERSION) + 3 * 8 + NONCE_BYTES + PRIVATE_BYTES + 4 + len(public.tail())
    w.check(raw[fields:] == bytes(TOKEN_BYTES - fields), "zeros up to 2048")
    client = w.client(raw)
    w.until(lambda: client.state == CONNECTED, 3, "the peer connects with it")
    w.expect(server, r"connected \d+ 4242 \d+ %s .*" % user_data.hex())

# --- the subject as client, the peer as server ------------------------------------------------------------------------


def start_connect(w, subject, *servers, **fields):
    """Hands the subject's client a token; gives the token back."""
    token = w.mint(servers, **fields)
    subject.tell("connect " + token.raw.hex())
    return token


def closed_port():
    """A loopback address where, a moment ago, none listened."""
    endpoint = Endpoint()
    endpoint.close()
    return endpoint.address


@story
def client_connect_and_payloads(w):
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server)
    w.until(lambda: subject.find(r"connected 0 4"), 1, "`connected` with slot and slots")
    for size in (1, 100, 1200):
        data = os.urandom(size)
        server.send_payload(slot, data)
        w.expect(subject, "payload %d %s" % (slot.sequence - 1, data.hex()))
        subject.tell("send " + data[::-1].hex())
        w.until(lambda: slot.payloads[-1:] == [data[::-1]], 3, "%d bytes to the server" % size)
    states = [match[1] for match in subject.find(r"state (\S+)")]
    w.check(states == ["SENDING_CONNECTION_REQUEST", "SENDING_CONNECTION_RESPONSE", "CONNECTED"], "states %r" % states)
    w.check(max(len(data) for data in server.heard) <= MAX_PACKET_BYTES, "no datagram over 1225 bytes")


@story
def client_request_is_the_token(w):
    """The request holds the token's fields and no more, goes out at 10 Hz, and never changes."""
    silent, subject = w.add(Endpoint()), w.subject_client()
    token = start_connect(w, subject, silent)
    w.until(lambda: silent.heard, 1, "a request")
    w.wait(2)
    w.check(set(silent.heard) == {token.request()}, "1078 bytes: version, protocol id, expire, nonce, private part")
    w.check(15 <= len(silent.heard) <= 24, "%d requests in 2 s" % len(silent.heard))


@story
def client_keep_alives_at_10_hz(w):
    """Ten keep-alives a second from a client that has nothing to say; a timeout of one second is survived."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server, timeout=1)
    w.wait(0.3)
    before = len(slot.of(KEEP_ALIVE))
    w.wait(2.5)
    count = len(slot.of(KEEP_ALIVE)) - before
    w.check(18 <= count <= 28, "%d keep-alives in 2.5 s" % count)
    w.check(server.clients() == [slot] and not subject.find(r"state (DISC|CONNECTION_).*"), "still connected")


@story
def client_disconnects(w):
    """Ten disconnect packets, each with its own sequence, then silence."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server)
    subject.tell("disconnect")
    w.expect(subject, r"state DISCONNECTED")
    w.until(lambda: not server.clients(), 2, "the slot is free")
    w.wait(0.5)
    sequences = [packet.sequence for packet in slot.of(DISCONNECT)]
    w.check(sequences == list(range(sequences[0], sequences[0] + 10)), "ten disconnect packets: %r" % sequences)
    w.check(slot.packets[-1].kind == DISCONNECT, "nothing after them")


@story
def client_is_kicked(w):
    """A disconnect packet ends in DISCONNECTED; the token's next server is not tried."""
    for count in (10, 1):
        server, other, subject = w.peer_server(), w.peer_server(), w.subject_client()
        slot = w.accept(subject, server, w.mint([server, other]))
        server.kick(slot, count)
        w.expect(subject, r"state DISCONNECTED", 2)
        heard = len(server.heard)
        w.never(lambda: other.heard or len(server.heard) > heard + 3, 0.5, "the kicked client speaks on")


@story
def client_denied(w):
    """Denied, to the request and to the response."""
    for denying, accepting in ((True, True), (False, False)):
        server, subject = w.peer_server(), w.subject_client()
        server.denying, server.accepting = denying, accepting
        start_connect(w, subject, server)
        if not accepting:
            w.until(lambda: server.responses, 2, "a response")
            server.accepting, server.denying = True, True
        w.expect(subject, r"state CONNECTION_DENIED", 2)
        w.check(not denying or not server.responses, "no response after a denied request")
        subject.tell("report")
        w.expect(subject, r"report .{10,}")


@story
def client_moves_on_after_denial(w):
    """Denied to the request by one, to the response by the next, welcome at the third."""
    servers, subject = [w.peer_server() for _ in range(3)], w.subject_client()
    servers[0].denying = True
    servers[1].accepting = False
    token = start_connect(w, subject, *servers)
    w.until(lambda: servers[1].responses, 2, "a response to the second")
    servers[1].accepting = servers[1].denying = True
    w.until(lambda: servers[2].clients(), 2, "the third accepts")
    w.expect(subject, r"connected 0 4", 2)
    w.check(servers[2].clients()[0].token.client_id == token.client_id, "with the same token")
    w.check(not subject.find(r"state CONNECTION_DENIED"), "no error state on the way")


@story
def client_moves_on_after_silence(w):
    """One server never answers, one never confirms; each costs a timeout, the third connects."""
    silent, unsure, server, subject = w.add(Endpoint()), w.peer_server(), w.peer_server(), w.subject_client()
    unsure.accepting = False
    start_connect(w, subject, silent, unsure, server, timeout=1)
    w.until(lambda: unsure.responses, 2.5, "the second is asked")
    w.check(len(silent.heard) >= 7, "%d requests to the silent one" % len(silent.heard))
    w.until(lambda: server.clients(), 2.5, "the third is asked")
    w.expect(subject, r"connected 0 4", 2)
    w.check(len(unsure.responses) >= 7, "%d responses to the unsure one" % len(unsure.responses))


@story
def client_moves_on_after_refusals(w):
    """A closed port may be left early, after three errors over a second; the last address keeps its full timeout."""
    server, subject = w.peer_server(), w.subject_client()
    start = time.monotonic()
    start_connect(w, subject, closed_port(), server, timeout=4)
    w.until(lambda: server.clients(), 5, "the second address")
    w.check(time.monotonic() - start >= 0.9, "not before a second: %.2f s" % (time.monotonic() - start))
    last = w.subject_client()
    start = time.monotonic()
    start_connect(w, last, closed_port(), timeout=2)
    w.expect(last, r"state CONNECTION_REQUEST_TIMED_OUT")
    w.check(1.8 <= time.monotonic() - start <= 3.5, "its full timeout: %.2f s" % (time.monotonic() - start))


@story
def client_request_and_response_time_out(w):
    silent, unsure = w.add(Endpoint()), w.peer_server()
    unsure.accepting = False
    subjects = w.subject_client(), w.subject_client()
    start = time.monotonic()
    start_connect(w, subjects[0], silent, timeout=1)
    start_connect(w, subjects[1], unsure, timeout=1)
    w.expect(subjects[0], r"state CONNECTION_REQUEST_TIMED_OUT")
    w.expect(subjects[1], r"state CONNECTION_RESPONSE_TIMED_OUT")
    w.check(0.8 <= time.monotonic() - start <= 3, "after a second: %.2f" % (time.monotonic() - start))
    heard = len(silent.heard) + len(unsure.heard)
    w.never(lambda: len(silent.heard) + len(unsure.heard) > heard, 0.5, "a packet after the timeout")


@story
def client_connection_times_out(w):
    """The server falls silent; after the token's timeout the client does too, without a farewell or another server."""
    server, other, subject = w.peer_server(), w.peer_server(), w.subject_client()
    slot = w.accept(subject, server, w.mint([server, other], timeout=1))
    server.muted, start = True, time.monotonic()
    w.expect(subject, r"state CONNECTION_TIMED_OUT")
    w.check(0.8 <= time.monotonic() - start <= 2, "after %.2f s" % (time.monotonic() - start))
    w.wait(0.1)
    heard = len(server.heard)
    w.never(lambda: len(server.heard) > heard or other.heard, 0.5, "a packet after the timeout")
    w.check(not slot.of(DISCONNECT), "no farewell")


@story
def client_timeout_disabled(w):
    """A timeout of 0 or less: the client asks on and stays connected through any silence."""
    silent, server = w.add(Endpoint()), w.peer_server()
    asking = [w.subject_client(), w.subject_client()]
    for subject, timeout in zip(asking, (0, -1)):
        start_connect(w, subject, silent, timeout=timeout)
    connected = [w.subject_client(), w.subject_client()]
    for subject, timeout in zip(connected, (0, -1)):
        w.accept(subject, server, timeout=timeout)
    server.muted = True
    w.never(lambda: any(subject.find(r"state (CONNECTION_|DISC).*") for subject in asking + connected), 4,
            "a client without timeout gave up")
    for slot in server.clients():
        server.send(slot, PAYLOAD, b"awake")
    for subject in connected:
        w.expect(subject, "payload .* %s" % b"awake".hex())


@story
def client_token_expires(w):
    """expire - create is the time for all servers together, whatever the timeouts and the wall clock say."""
    silent = [w.add(Endpoint()) for _ in range(3)]
    subjects = [w.subject_client() for _ in range(3)]
    start = time.monotonic()
    start_connect(w, subjects[0], silent[0], expire_in=2, timeout=10)
    start_connect(w, subjects[1], silent[1], silent[2], expire_in=2, timeout=1)
    start_connect(w, subjects[2], silent[0], create=1000, expire_in=2, timeout=-1)
    for subject in (subjects[0], subjects[2]):
        w.expect(subject, r"state CONNECT_TOKEN_EXPIRED")
    w.check(1.7 <= time.monotonic() - start <= 3.5, "after 2 s: %.2f" % (time.monotonic() - start))
    w.expect(subjects[1], r"state (CONNECT_TOKEN_EXPIRED|CONNECTION_REQUEST_TIMED_OUT)", 1)
    w.check(1.7 <= time.monotonic() - start <= 3.5, "and no later: %.2f" % (time.monotonic() - start))
    three, subject = [w.add(Endpoint()) for _ in range(3)], w.subject_client()
    start_connect(w, subject, *three, expire_in=3, timeout=2)
    w.expect(subject, r"state CONNECT_TOKEN_EXPIRED", 5)
    w.check(three[0].heard and three[1].heard and not three[2].heard, "the clock ran on at the second server")


@story
def client_expiry_does_not_end_a_connection(w):
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server, expire_in=2)
    w.never(lambda: subject.find(r"state CONNECT_.*") or not server.clients(), 3, "the token's end ended the session")
    server.send_payload(slot, b"on")
    w.expect(subject, "payload .* %s" % b"on".hex())


@story
def client_invalid_tokens(w):
    """Refused before anything is sent: counts, address types, times, version, port 0."""
    silent, subject = w.add(Endpoint()), w.subject_client()
    one = w.mint([silent]).raw
    count_at = len(VERSION) + 3 * 8 + NONCE_BYTES + PRIVATE_BYTES + 4
    type_at = count_at + 4
    bad = {"no addresses": one[:count_at] + bytes(4) + one[count_at + 4:],
           "33 addresses": one[:count_at] + b"\x21\0\0\0" + one[count_at + 4:],
           "2^32 - 1 addresses": one[:count_at] + b"\xff\xff\xff\xff" + one[count_at + 4:],
           "address type 0": one[:type_at] + b"\0" + one[type_at + 1:],
           "address type 3": one[:type_at] + b"\3" + one[type_at + 1:],
           "created after it expires": w.mint([silent], create=2000, expire=1999).raw,
           "version 1.01": b"NETCODE 1.01\0" + one[13:],
           "port 0": w.mint([Address("127.0.0.1", 0)]).raw}
    for name, raw in bad.items():
        count = len(subject.find(r"state INVALID_CONNECT_TOKEN"))
        fresh = subject if count == 0 else w.subject_client()
        fresh.tell("connect " + raw.hex())
        try:
            w.expect(fresh, r"state INVALID_CONNECT_TOKEN", 2)
        except Failed as why:
            raise Failed("%s: %s" % (name, why))
    w.check(not silent.heard, "nothing was sent")


@story
def client_sequences_are_one_counter(w):
    """Responses, keep-alives, payloads and farewells share one counter; below 2^48, and elsewhere in each process."""
    starts = []
    for _ in range(2):
        server, subject = w.peer_server(), w.subject_client()
        slot = w.accept(subject, server)
        for number in range(5):
            subject.tell("send %02x" % number)
        w.wait(0.3)
        subject.tell("disconnect")
        w.until(lambda: len(slot.of(DISCONNECT)) == 10, 2, "the farewell")
        own = [packet.sequence for packet in server.responses + slot.packets]
        w.check(own == list(range(own[0], own[0] + len(own))), "no gaps: %r" % own)
        w.check(max(own) < 1 << 48, "%d is not below 2^48" % max(own))
        starts.append(own[0])
    w.check(abs(starts[0] - starts[1]) > 1 << 16, "two processes, two places: %r" % starts)


@story
def client_zero_base_counts_requests(w):
    """With --zero-base the counter starts at 0, and requests use it too: the first response has the requests' count."""
    server, subject = w.peer_server(), w.subject_client("--zero-base")
    server.challenging = False
    start_connect(w, subject, server, expire_in=120)
    w.until(lambda: len(server.requests) == 3, 2, "three requests")
    server.challenging = True
    w.expect(subject, r"state CONNECTED")
    count, first = len(server.requests), server.responses[0].sequence
    w.check(first == count, "%d requests, first response %d" % (count, first))


@story
def client_counter_never_goes_back(w):
    """Over a denial, a second server and a second token the one counter of a client object only grows."""
    for flags in ((), ("--zero-base",)):
        first, second, subject = w.peer_server(), w.peer_server(), w.subject_client(*flags)
        first.accepting = False
        start_connect(w, subject, first, second, expire_in=120)
        w.until(lambda: first.responses, 2, "a response to the first")
        first.accepting = first.denying = True
        w.until(lambda: second.clients(), 3, "the second accepts")
        w.expect(subject, r"connected .*")
        slot = second.clients()[0]
        subject.tell("disconnect")
        w.until(lambda: slot in second.left and len(slot.of(DISCONNECT)) == 10, 2, "the farewell")
        start_connect(w, subject, second, expire_in=120)
        w.expect(subject, r"connected .*")
        w.wait(0.2)
        again = second.clients()[0]
        trail = [packet.sequence for packet in first.responses + second.responses[:1] + slot.packets
                 + second.responses[1:] + again.packets]
        w.check(trail == sorted(set(trail)), "%s: %r" % (flags, trail))


@story
def client_answers_the_first_challenge(w):
    """Later challenges arrive with every request's answer; the response keeps to the first."""
    server, subject = w.peer_server(), w.subject_client()
    server.accepting = False
    token = start_connect(w, subject, server)
    w.until(lambda: server.responses, 2, "a response")
    pending = next(iter(server.pending))
    for _ in range(5):
        server.send_challenge(token, pending)
        w.wait(0.1)
    w.check(len(server.responses) >= 4, "%d responses" % len(server.responses))
    numbers = {packet.body[:8] for packet in server.responses}
    w.check(len(numbers) == 1, "one challenge was answered, not %d" % len(numbers))
    server.accepting = True
    w.expect(subject, r"state CONNECTED")


@story
def client_first_challenge_of_later_ones(w):
    """A server that holds back, then sends several challenges at once, is answered for the first of them."""
    server, subject = w.peer_server(), w.subject_client()
    server.challenging = server.accepting = False
    token = start_connect(w, subject, server)
    w.until(lambda: server.pending, 2, "a request")
    for _ in range(5):
        server.send_challenge(token, next(iter(server.pending)))
    w.until(lambda: len(server.responses) >= 2, 2, "two responses")
    w.check({packet.body[:8] for packet in server.responses} == {bytes(8)}, "challenge 0 was answered")


@story
def client_ignores_what_is_not_its_servers(w):
    """Challenges, denials and farewells under another key, or from another address, do nothing."""
    server, subject, outsider = w.peer_server(), w.subject_client(), w.add(Endpoint())
    server.challenging = False
    token = start_connect(w, subject, server)
    w.until(lambda: server.pending, 2, "a request")
    there, other = next(iter(server.pending)), w.mint([server])
    for kind, size in ((CHALLENGE, 308), (DENIED, 0), (KEEP_ALIVE, 8), (DISCONNECT, 0)):
        server.send_global(other, there, kind, bytes(size))
        outsider.send_raw(server.seal(token, kind, bytes(size), 5 + kind), there)
    w.never(lambda: len(subject.find(r"state .*")) > 1, 0.5, "the client moved")
    w.check(len(subject.find(r"drop \S+ \S+ \d+")) >= 4, "`drop` lines: %r" % subject.find(r"drop .*"))
    server.challenging = True
    w.expect(subject, r"state CONNECTED")
    slot = server.clients()[0]
    for kind, size in ((DENIED, 0), (DISCONNECT, 0), (PAYLOAD, 9)):
        server.send_global(other, there, kind, bytes(size))
        outsider.send_raw(server.seal(token, kind, bytes(size), slot.sequence + 20 + kind), there)
    for data in list(server.heard):
        server.send_raw(data, there)
    w.never(lambda: subject.find(r"state DISC.*") or subject.payloads(), 0.5, "the connected client was moved")


@story
def client_denied_once_connected(w):
    """An authentic denial or challenge moves no connected client."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server)
    server.send_global(slot.token, slot.address, DENIED)
    server.send_challenge(slot.token, slot.address)
    w.never(lambda: subject.find(r"state (DISC|CONNECTION_).*"), 0.5, "the connected client was moved")
    server.send_payload(slot, b"on")
    w.expect(subject, "payload .* %s" % b"on".hex())


@story
def client_replayed_packets(w):
    """Recorded packets are delivered once; a copy from elsewhere burns nothing; the window has its edges."""
    server, subject, elsewhere = w.peer_server(), w.subject_client(), w.add(Endpoint())
    slot = w.accept(subject, server)
    recorded = [server.send_payload(slot, b"%d" % number) for number in range(20)]
    w.until(lambda: len(subject.payloads()) == 20, 2, "twenty payloads")
    fresh = server.seal(slot.token, PAYLOAD, b"fresh", slot.sequence)
    slot.sequence += 1
    for data in recorded + recorded[::-1]:
        server.send_raw(data, slot.address)
        elsewhere.send_raw(data, slot.address)
    elsewhere.send_raw(fresh, slot.address)
    w.never(lambda: len(subject.payloads()) > 20, 0.4, "a replayed payload was delivered")
    server.send_raw(fresh, slot.address)
    w.until(lambda: subject.payloads()[20:] == [b"fresh"], 2, "the genuine one arrives")
    base = slot.sequence + 1000
    order = [base, base - 1, base - 200, base + 1, base - 100, base + 200, base - 50]
    slot.sequence = base + 300
    for _ in range(2):
        for number in order:
            server.send(slot, PAYLOAD, b"%d" % number, sequence=number)
    server.send(slot, PAYLOAD, b"old", sequence=base - 900)
    w.until(lambda: len(subject.payloads()) >= 28, 2, "out of order")
    w.wait(0.2)
    w.check(subject.payloads()[21:] == [b"%d" % number for number in order], "out of order, each once")


@story
def client_sequence_jumps(w):
    """At or below the keep-alive that connected it, or more than 2^32 ahead of the newest: refused; 2^32: accepted."""
    server, subject = w.peer_server(), w.subject_client()
    server.confirming = False
    token = start_connect(w, subject, server, timeout=20)
    w.until(lambda: server.clients(), 2, "a response")
    slot, server.muted = server.clients()[0], True
    slot.sequence = 1 << 20
    server.send_keep_alive(slot)
    w.expect(subject, r"state CONNECTED")
    slot.sequence, newest = 1 << 41, (1 << 20) + 50
    for number in (0, (1 << 20) - 100, (1 << 20) - 1, 1 << 20):
        server.send_raw(server.seal(token, PAYLOAD, b"old", number), slot.address)
    server.send(slot, PAYLOAD, b"newest", sequence=newest)
    for number in (newest + (1 << 32) + 1, 1 << 62, UPPER_HALF, SEQUENCE_LIMIT - 1):
        server.send(slot, PAYLOAD, b"far", sequence=number)
    server.send(slot, PAYLOAD, b"edge", sequence=newest + (1 << 32))
    w.until(lambda: b"edge" in subject.payloads(), 2, "a jump of exactly 2^32")
    w.wait(0.2)
    w.check(subject.payloads() == [b"newest", b"edge"], "only these two: %r" % subject.payloads())


@story
def client_wrong_sizes(w):
    """Authentic packets of the wrong size, and payloads of 0, 1201 and 1300 bytes, are ignored."""
    server, subject = w.peer_server(), w.subject_client()
    server.challenging = False
    token = start_connect(w, subject, server)
    w.until(lambda: server.pending, 2, "a request")
    for kind, size in ((CHALLENGE, 307), (CHALLENGE, 309), (CHALLENGE, 0), (DENIED, 1), (DENIED, 308)):
        server.send_global(token, next(iter(server.pending)), kind, bytes(size))
    w.never(lambda: len(subject.find(r"state .*")) > 1, 0.4, "the client moved")
    server.challenging = True
    w.expect(subject, r"state CONNECTED")
    slot = server.clients()[0]
    for kind, size in ((PAYLOAD, 0), (PAYLOAD, 1201), (PAYLOAD, 1300), (KEEP_ALIVE, 7), (KEEP_ALIVE, 9),
                       (DISCONNECT, 1), (DISCONNECT, 8)):
        server.send(slot, kind, bytes(size))
    server.send_payload(slot, b"after")
    w.until(lambda: subject.payloads() == [b"after"], 2, "only the payload of the right size")
    w.check(not subject.find(r"state DISC.*"), "still connected")


@story
def client_keep_alive_numbers(w):
    """An index not below max clients connects, as no slot at all; once connected the numbers are not used."""
    server, subject = w.peer_server(), w.subject_client()
    server.confirming = False
    start_connect(w, subject, server, timeout=1, expire_in=30)
    w.until(lambda: server.clients(), 2, "a response")
    slot, server.muted = server.clients()[0], True
    server.send(slot, KEEP_ALIVE, struct.pack("<II", 0xffffffff, 4))
    w.expect(subject, r"connected -1 4")
    for _ in range(20):
        server.send(slot, KEEP_ALIVE, struct.pack("<II", 0xffffffff, 0))
        w.wait(0.1)
    w.check(not subject.find(r"state CONNECTION_TIMED_OUT"), "any authentic keep-alive refreshes the timeout")
    w.check(len(subject.find(r"connected .*")) == 1, "no second `connected`")


@story
def client_payload_before_connected(w):
    """Payloads that come before the keep-alive are discarded."""
    server, subject = w.peer_server(), w.subject_client()
    server.confirming = False
    start_connect(w, subject, server)
    w.until(lambda: server.clients(), 2, "a response")
    slot = server.clients()[0]
    for _ in range(3):
        server.send(slot, PAYLOAD, b"early")
    w.never(lambda: subject.payloads(), 0.3, "an early payload was delivered")
    server.send_payload(slot, b"right")
    w.until(lambda: subject.payloads() == [b"right"], 2, "the payload behind the keep-alive")


@story
def client_longer_sequences_are_accepted(w):
    """A server that writes eight sequence bytes always, and one packet of each other length."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server)
    for count in (2, 3, 5, 7, 8):
        server.send(slot, PAYLOAD, b"%d" % count, sequence_bytes=count)
        w.until(lambda: subject.payloads()[-1:] == [b"%d" % count], 2, "a sequence in %d bytes" % count)
    server.send(slot, DISCONNECT, sequence_bytes=8)
    w.expect(subject, r"state DISCONNECTED")


@story
def client_of_a_server_like_renetcode(w):
    """Global sequence from 0, sequence 0 in zero bytes, 4 Hz, one disconnect packet: the retry connects."""
    server, subject = w.peer_server(global_base=0, zero_in_no_bytes=True, rate=4), w.subject_client()
    slot = w.accept(subject, server, timeout=1)
    w.check(server.sent[0][0] == CHALLENGE and server.challenge_sequence >= 2, "the first challenge was ignored")
    w.check(slot.sequence >= 2, "the first keep-alive, sequence 0 in zero bytes, was ignored")
    w.never(lambda: not server.clients(), 2, "4 Hz are too slow for the client")
    server.send(slot, PAYLOAD, b"pay")
    w.expect(subject, "payload .* %s" % b"pay".hex())
    server.send(slot, PAYLOAD, bytes(1300))
    server.kick(slot, 1)
    w.expect(subject, r"state DISCONNECTED")
    w.check(subject.payloads() == [b"pay"], "nothing of the 1300 bytes")


@story
def client_of_a_server_with_256_slots_always(w):
    """benny-n announces 256 clients whatever it holds; a global sequence from 0 in one byte is fine."""
    server, subject = w.peer_server(announce=256, global_base=0), w.subject_client()
    w.accept(subject, server)
    w.until(lambda: subject.find(r"connected 0 256"), 1, "256 announced")
    w.check(server.challenge_sequence == 1, "the first challenge, global sequence 0, was answered")


@story
def client_refuses_a_used_token(w):
    """A token that has connected is not connected again by the same object; another token is."""
    server, subject = w.peer_server(), w.subject_client()
    token = w.mint([server])
    slot = w.accept(subject, server, token)
    subject.tell("disconnect")
    w.expect(subject, r"state DISCONNECTED")
    w.until(lambda: slot in server.left, 2, "gone")
    requests = len(server.requests)
    subject.tell("connect " + token.raw.hex())
    w.expect(subject, r"state INVALID_CONNECT_TOKEN")
    w.check(len(server.requests) == requests, "nothing was sent")
    w.accept(subject, server)


@story
def client_retries_a_token_that_never_connected(w):
    """After a denial the same token may be tried again, and the counter goes on."""
    server, subject = w.peer_server(), w.subject_client()
    server.denying, token = True, w.mint([server])
    subject.tell("connect " + token.raw.hex())
    w.expect(subject, r"state CONNECTION_DENIED")
    server.denying = False
    w.accept(subject, server, token)


@story
def client_empty_datagrams_between(w):
    """An empty and a huge datagram between each two payloads cost no payload."""
    server, subject, outsider = w.peer_server(), w.subject_client(), w.add(Endpoint())
    slot = w.accept(subject, server)
    for number in range(300):
        server.send(slot, PAYLOAD, b"%d" % number)
        server.send_raw(b"", slot.address)
        outsider.send_raw(b"" if number % 10 else bytes(3000), slot.address)
        if number % 10 == 9:
            w.wait(0.01)
    w.until(lambda: len(set(subject.payloads())) >= 297, 3, "99 % of 300 payloads")


@story
def client_wrong_prefixes(w):
    """All 256 prefix bytes in front of noise, from its server's address; and its own packets sent back."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server)
    subject.tell("send aabbcc")
    w.until(lambda: slot.payloads, 2, "a payload")
    for data in list(server.heard):
        server.send_raw(data, slot.address)
    for prefix in range(256):
        for size in (0, 16, 24, 332):
            server.send_raw(bytes([prefix]) + os.urandom(size), slot.address)
        if prefix % 32 == 0:
            w.wait(0.01)
    for kind in (RESPONSE, REQUEST):
        server.send(slot, kind, bytes(308))
    server.send_payload(slot, b"after")
    w.until(lambda: subject.payloads() == [b"after"], 2, "the payload after the noise")
    w.check(not subject.find(r"state (DISC|CONNECTION_).*"), "still connected")


@story
def client_answers_a_challenge_at_once(w):
    """The response does not wait for the next tenth of a second."""
    server, subject = w.peer_server(), w.subject_client()
    delays = []
    for _ in range(4):
        server.responses.clear()
        slot = w.accept(subject, server)
        delays.append(server.responses[0].time - server.requests[-1][0])
        subject.tell("disconnect")
        w.until(lambda: slot in server.left, 2, "gone")
        w.expect(subject, r"state DISCONNECTED")
    w.check(min(delays) < 0.06, "delays %r" % delays)


@story
def client_token_minted_by_the_subject(w):
    """The subject mints, the subject connects, the peer's server in between understands both."""
    server, subject = w.peer_server(), w.subject_client()
    arguments = ["mint", w.key.hex(), w.protocol_id, 9, 45, 5, "ab" * USER_DATA_BYTES, server.address]
    done = subprocess.run([w.path] + [str(argument) for argument in arguments], stdout=subprocess.PIPE, timeout=10)
    subject.tell("connect " + done.stdout.decode().strip())
    w.expect(subject, r"state CONNECTED")
    slot = server.clients()[0]
    w.check((slot.token.client_id, slot.token.user_data) == (9, b"\xab" * USER_DATA_BYTES), "id and user data")


@story
def client_thirty_two_servers(w):
    """31 servers of one token deny the response, the last accepts; no key and sequence seals twice on the way."""
    servers, subject = [w.peer_server() for _ in range(32)], w.subject_client()
    for server in servers[:31]:
        server.accepting = False
    token = start_connect(w, subject, *servers)
    for server in servers[:31]:
        w.until(lambda: server.responses, 2, "a response to the next server")
        server.send_global(token, next(iter(server.pending)), DENIED)
    w.until(lambda: servers[31].clients(), 2, "the last accepts")
    w.expect(subject, r"connected 0 4")
    trail = [server.responses[0].sequence for server in servers]
    w.check(trail == sorted(set(trail)), "one counter: %r" % trail)


@story
def client_payloads_are_enough(w):
    """Payloads alone keep the client connected; while it sends them itself it sends no keep-alives."""
    server, subject = w.peer_server(), w.subject_client()
    slot = w.accept(subject, server, timeout=1)
    server.muted = True
    w.wait(0.2)
    count = len(slot.of(KEEP_ALIVE))
    for number in range(60):
        server.send(slot, PAYLOAD, b"%d" % number)
        subject.tell("send %02x" % number)
        w.wait(0.03)
    w.check(len(slot.payloads) == 60 and len(subject.payloads()) == 60, "sixty payloads each way")
    w.check(not subject.find(r"state CONNECTION_.*"), "still connected")
    extra = len(slot.of(KEEP_ALIVE)) - count
    w.check(extra <= 4, "%d keep-alives between the payloads" % extra)


@story
def client_survives_refusals(w):
    """The server's port closes for a second and comes back: refusals end no connection, and none that asks on."""
    server, asked, subject, asking = w.peer_server(), w.peer_server(), w.subject_client(), w.subject_client()
    slot = w.accept(subject, server, timeout=4)
    asked.challenging = False
    token = start_connect(w, asking, asked, timeout=5)
    w.until(lambda: asked.requests, 2, "a request")
    for away in (server, asked):
        w.actors.remove(away)
        away.close()
    ends = r"state CONNECTION_.*"
    w.never(lambda: subject.find(ends) or asking.find(ends), 1.5, "a refusal counted")
    for back in (server, asked):
        back.open(back.address)
        w.add(back)
    asked.challenging = True
    server.send(slot, PAYLOAD, b"back")
    w.expect(subject, "payload .* %s" % b"back".hex())
    w.until(lambda: any(one.token.client_id == token.client_id for one in asked.clients()), 2, "the other connects")
    w.expect(asking, r"state CONNECTED")


@story
def client_ipv6(w):
    need_ipv6()
    server, subject = w.peer_server(host="::1"), w.subject_client(bind="[::1]:0")
    slot = w.accept(subject, server)
    subject.tell("send 06")
    w.until(lambda: slot.payloads == [b"\6"], 2, "a payload")
    server.send_payload(slot, bytes(1200))
    w.until(lambda: subject.payloads() == [bytes(1200)], 2, "a payload back")


@story
def client_dual_stack(w):
    """From a silent IPv6 server to an IPv4 one, with both families bound."""
    need_ipv6()
    silent, server = w.add(Endpoint("::1")), w.peer_server()
    subject = w.subject_client("--bind2", "[::1]:0")
    w.accept(subject, server, w.mint([silent, server], timeout=1))
    w.check(len(silent.heard) >= 5, "%d requests over IPv6" % len(silent.heard))

# ---------------------------------------------------------------------------------------------------------------------
# The runner.
# ---------------------------------------------------------------------------------------------------------------------

RUN_SECONDS = 85
THREADS = 8


def run_story(function, subject_path, deadline):
    """Runs one story; gives back its line and, for -v, what its subjects said."""
    name, world = function.__name__, World(subject_path, deadline)
    try:
        function(world)
        verdict, why = "ok", ""
    except Skipped as reason:
        verdict, why = "skipped", str(reason)
    except Exception as fault:  # a story may break on anything; the others go on
        trace = fault.__traceback__
        while trace.tb_next and trace.tb_next.tb_frame.f_code.co_name == name:
            trace = trace.tb_next
        verdict, why = "FAILED", "%s (line %d)" % (fault or type(fault).__name__, trace.tb_lineno)
    faults = world.close()
    if faults:
        verdict, why = "FAILED", "; ".join([why] * bool(why) + faults)
    line = "%s %s" % (verdict, name) + (": " + " / ".join(why.splitlines()) if why else "")
    said = [["    | " + text[:160] for text in actor.lines] for actor in world.actors if isinstance(actor, Subject)]
    return verdict, line, said


def main():
    parser = argparse.ArgumentParser(description="netcode 1.02 handshake stories, against a peer written by itself")
    parser.add_argument("--subject", help="the program built from tests/tools/subject.c")
    parser.add_argument("-k", metavar="FILTER", default="", help="only stories whose name contains this")
    parser.add_argument("-v", action="store_true", help="also print what the subjects said")
    options = parser.parse_args()
    if options.subject and not os.access(options.subject, os.X_OK):
        parser.error("%s is not a program" % options.subject)
    chosen = [one for one in STORIES if options.k in one.__name__
              and (options.subject or one.__name__.startswith(("codec_", "self_")))]
    deadline, count = time.monotonic() + RUN_SECONDS, {"ok": 0, "FAILED": 0, "skipped": 0}
    subject = os.path.abspath(options.subject) if options.subject else None
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(run_story, one, subject, deadline) for one in chosen]:
            verdict, line, said = future.result()
            count[verdict] += 1
            print(line, flush=True)
            for lines in said if options.v else []:
                print("\n".join(lines + ["    |"]), flush=True)
    print("%d passed, %d failed%s" % (count["ok"], count["FAILED"], ", %d skipped" % count["skipped"] if count["skipped"] else ""))
    return 1 if count["FAILED"] or not chosen or (count["skipped"] and SKIPS_FAIL) else 0


if __name__ == "__main__":
    sys.exit(main())
