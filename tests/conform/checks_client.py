"""The checks of a client: the peer is the client, and the kit's servers talk to it."""

import os
import struct
import time

import peer
from kit import MUST, SHOULD, check
from peer import (CHALLENGE, CONNECTED, DENIED, DISCONNECT, DISCONNECTED, INVALID_TOKEN, KEEP_ALIVE, NONCE_BYTES, PAYLOAD,
                  PRIVATE_BYTES, REQUEST_TIMED_OUT, REQUESTING, RESPONDING, RESPONSE, RESPONSE_TIMED_OUT, TIMED_OUT, TOKEN_EXPIRED, VERSION,
                  WAS_DENIED, Endpoint, changed, seal_packet)

PACKETS, READING, REPLAY, TOKENS = "Packets", "Reading Encrypted Packets", "Replay Protection", "Connect Token"
OBTAIN, REQUESTS, RESPONSES = "Request Connect Token", "Sending Connection Request", "Sending Challenge Response"
EXPIRY, SESSION, STATES = "Connect Token Expired", "Connected", "Client State Machine"
START = 10  # seconds for a peer to start and to send its first packet


def silent_server(w):
    """A socket that never answers."""
    return w.add(Endpoint())


def asked(w, server):
    """Waits until the peer's client has sent its first request to one of the kit's servers."""
    w.until(lambda: server.requests, START, "a valid request to the kit's server")


def requested(w, **fields):
    """The peer's client in the state of requesting, its server that does not challenge yet, token and address."""
    server = w.peer_server()
    server.challenging = False
    token = w.mint([server], **fields)
    client = w.starts(token)
    asked(w, server)
    return server, client, token, next(iter(server.pending))


def responding(w, *more, **fields):
    """The peer's client in the state of responding, to a server that does not accept."""
    server = w.peer_server()
    server.accepting = False
    token = w.mint([server, *more], **fields)
    client = w.starts(token)
    w.until(lambda: server.responses, START, "a response to the kit's challenge")
    return server, client, token, next(iter(server.pending))


def unmoved(w, server, slot, client, datagrams, what):
    """None of these datagrams delivers anything to a connected client, or changes its state."""
    count = len(client.received)
    for number, data in enumerate(datagrams):
        server.send_raw(data, slot.address)
        if number % 16 == 15:
            w.wait(0.01)
    w.echo_client(server, slot, client)
    w.wait(0.1)
    w.check(client.state == CONNECTED, "%s: the state is %s" % (what, client.state))
    w.check(len(client.received) == count + 1, "%s: something was delivered" % what)


def seal_next(server, slot, kind, body=b"", sequence_bytes=None):
    slot.sequence += 1
    return server.seal(slot.token, kind, body, slot.sequence - 1, sequence_bytes)


def rate_of(w, count, seconds=2.0):
    before, start = count(), time.monotonic()
    w.wait(seconds)
    rate = (count() - before) / (time.monotonic() - start)
    w.note = "%.1f a second" % rate
    return rate


# ---- the token ----

COUNT_AT = len(VERSION) + 3 * 8 + NONCE_BYTES + PRIVATE_BYTES + 4


def refused(w, what, raw, silent):
    client = w.starts(raw)
    w.state_is(client, INVALID_TOKEN, START, what)
    w.wait(0.2)
    w.check(not silent.heard, "%s: something was sent" % what)


@check("C-TOK-01", OBTAIN, MUST, "a token with 0, 33 or 2^32 - 1 server addresses is invalid: state -5, and nothing is sent")
def _(w):
    silent = silent_server(w)
    raw = w.mint([silent]).raw
    for count in (0, 33, 0xFFFFFFFF):
        refused(w, "%d addresses" % count, raw[:COUNT_AT] + struct.pack("<I", count) + raw[COUNT_AT + 4:], silent)
    refused(w, "33 addresses, all there", w.mint([silent] * 33).raw, silent)


@check("C-TOK-02", OBTAIN, MUST, "a token with an address of type 0 or 3 is invalid")
def _(w):
    silent = silent_server(w)
    raw = w.mint([silent]).raw
    for kind in (0, 3):
        refused(w, "address type %d" % kind, raw[:COUNT_AT + 4] + bytes([kind]) + raw[COUNT_AT + 5:], silent)


@check("C-TOK-03", OBTAIN, MUST, "a token that was created after it expires is invalid")
def _(w):
    silent, now = silent_server(w), int(time.time())
    refused(w, "created after it expires", w.mint([silent], create=now + 60, expire=now + 59).raw, silent)


@check("C-TOK-04", TOKENS, SHOULD, "a token of version 1.01 is invalid")
def _(w):
    silent = silent_server(w)
    refused(w, "version 1.01", b"NETCODE 1.01\0" + w.mint([silent]).raw[len(VERSION):], silent)


# ---- requesting ----


@check("C-REQ-01", PACKETS, MUST, "the request is 1078 bytes: 0, version, protocol id, expire timestamp, nonce of 24 bytes, private data")
def _(w):
    silent = silent_server(w)
    token = w.mint([silent])
    w.starts(token)
    w.until(lambda: silent.heard, START, "a request")
    w.check(silent.heard[0] == token.request(), "%d bytes, the first: %s" % (len(silent.heard[0]), silent.heard[0][:30].hex()))


@check("C-REQ-02", REQUESTS, MUST, "the request is repeated, three times a second or more, and stays the same")
def _(w):
    silent = silent_server(w)
    w.starts(w.mint([silent]))
    w.until(lambda: silent.heard, START, "a request")
    w.check(rate_of(w, lambda: len(silent.heard), 1.5) >= 2.5, "%s" % w.note)
    w.check(len(set(silent.heard)) == 1, "%d different ones" % len(set(silent.heard)))


@check("C-REQ-03", REQUESTS, SHOULD, "the request is repeated about ten times a second (7 to 14)")
def _(w):
    silent = silent_server(w)
    w.starts(w.mint([silent]))
    w.until(lambda: silent.heard, START, "a request")
    w.wait(0.3)
    w.check(7 <= rate_of(w, lambda: len(silent.heard)) <= 14, "%s" % w.note)


@check("C-REQ-04", STATES, MUST, "the states are 1, 2 and 3 on the way to a connection")
def _(w):
    server = w.peer_server()
    client, _ = w.accepted(server)
    w.check(client.states == [REQUESTING, RESPONDING, CONNECTED] or client.states == [DISCONNECTED, REQUESTING, RESPONDING, CONNECTED],
            "%r" % client.states)


@check("C-REQ-05", REQUESTS, MUST, "a challenge is followed by a response, and the state is 2")
def _(w):
    _, client, _, _ = responding(w)
    w.state_is(client, RESPONDING, 2, "a challenge came")


@check("C-REQ-06", REQUESTS, MUST, "a denial of the only server ends in state -1")
def _(w):
    server = w.peer_server()
    server.denying = True
    client = w.starts(w.mint([server]))
    w.state_is(client, WAS_DENIED, START, "a denial came")


@check("C-REQ-07", REQUESTS, MUST, "silence of the only server for the token's timeout of 1 s ends in state -2 (0.8 to 2.5 s)")
def _(w):
    silent = silent_server(w)
    client = w.starts(w.mint([silent], timeout=1))
    w.until(lambda: silent.heard, START, "a request")
    start = time.monotonic()
    w.state_is(client, REQUEST_TIMED_OUT, 4, "the request timed out")
    w.note = "after %.2f s" % (time.monotonic() - start)
    w.check(0.8 <= time.monotonic() - start <= 2.5, w.note)
    count = len(silent.heard)
    w.never(lambda: len(silent.heard) > count + 1, 0.4, "a request after the timeout")


@check("C-REQ-08", READING, MUST, "challenges and denials under another key do nothing")
def _(w):
    server, client, token, there = requested(w)
    other = w.mint([server])
    for key_holder in (other, w.mint([server], to_client_key=token.to_server_key)):
        for kind, size in ((CHALLENGE, 308), (DENIED, 0)):
            server.send_global(key_holder, there, kind, bytes(size))
    w.wait(0.4)
    w.check(client.state in (None, REQUESTING) and not server.responses, "the state is %s" % client.state)


@check("C-REQ-09", REQUESTS, MUST, "challenges and denials from another address than the server's do nothing")
def _(w):
    server, client, token, there = requested(w)
    outsider = w.add(Endpoint())
    outsider.send_raw(server.seal(token, DENIED, b"", 5), there)
    outsider.send_raw(server.seal(token, CHALLENGE, os.urandom(308), 6), there)
    w.wait(0.4)
    w.check(client.state == REQUESTING and not server.responses, "the state is %s" % client.state)


@check("C-REQ-10", STATES, MUST, "keep-alives, payloads and disconnect packets do nothing while the client requests")
def _(w):
    server, client, token, there = requested(w)
    for kind, body in ((KEEP_ALIVE, struct.pack("<II", 0, 4)), (PAYLOAD, b"early"), (DISCONNECT, b"")):
        server.send_global(token, there, kind, body)
    w.wait(0.4)
    w.check(client.state == REQUESTING and not client.received, "the state is %s" % client.state)


@check("C-REQ-11", READING, MUST, "challenges that have not 308 bytes of data, and denials with data, are ignored")
def _(w):
    server, client, token, there = requested(w)
    for kind, size in ((CHALLENGE, 0), (CHALLENGE, 300), (CHALLENGE, 307), (CHALLENGE, 309), (DENIED, 1), (DENIED, 308)):
        server.send_global(token, there, kind, bytes(size))
        w.wait(0.03)
    w.wait(0.3)
    w.check(client.state == REQUESTING and not server.responses, "the state is %s" % client.state)


# ---- responding ----


@check("C-RES-01", PACKETS, MUST, "the response is type 3 and holds the 308 bytes of the challenge unchanged")
def _(w):
    server, client, token, there = requested(w)
    body = os.urandom(308)
    server.send_global(token, there, CHALLENGE, body)
    w.until(lambda: any(data[0] & 15 == RESPONSE for data in server.heard if data), 3, "a packet of type 3")
    data = next(data for data in server.heard if data and data[0] & 15 == RESPONSE)
    packet = peer.read_packet(data, token.to_server_key, w.protocol_id, {RESPONSE})
    w.check(packet.body == body, "other bytes")


@check("C-RES-02", PACKETS, MUST, "the response is sealed with the token's client-to-server key, over version, protocol id and prefix")
def _(w):
    server, client, token, there = requested(w)
    server.send_global(token, there, CHALLENGE, os.urandom(308))
    w.until(lambda: any(data[0] & 15 == RESPONSE for data in server.heard if data), 3, "a packet of type 3")
    data = next(data for data in server.heard if data and data[0] & 15 == RESPONSE)
    w.check(not peer.refused(peer.read_packet, data, token.to_server_key, w.protocol_id, {RESPONSE}), "it does not open")


@check("C-RES-03", RESPONSES, SHOULD, "the response is repeated about ten times a second (7 to 14)")
def _(w):
    server, _, _, _ = responding(w)
    w.wait(0.3)
    w.check(7 <= rate_of(w, lambda: len(server.responses)) <= 14, "%s" % w.note)


@check("C-RES-04", RESPONSES, MUST, "a keep-alive connects: state 3, with the index and the number of slots that it holds")
def _(w):
    server = w.peer_server(slots=256)  # as many as deployed servers have; 256 is no byte
    server.slots[:200] = [peer.Slot(None, w.mint([server], timeout=0), 0, 0) for _ in range(200)]
    server.muted = True
    client, _ = w.accepted(server)
    if client.max_clients is None:
        raise peer.Skipped("the driver does not show index and slots")
    w.check((client.slot, client.max_clients) == (200, 256), "index %d of %d, not 200 of 256" % (client.slot, client.max_clients))


@check("C-RES-05", RESPONSES, MUST, "a denial of the response by the only server ends in state -1")
def _(w):
    server, client, _, _ = responding(w)
    server.accepting = server.denying = True
    w.state_is(client, WAS_DENIED, 3, "a denial came")


@check("C-RES-06", RESPONSES, MUST, "silence after the response for the token's timeout of 1 s ends in state -3 (0.8 to 2.5 s)")
def _(w):
    server, client, _, _ = responding(w, timeout=1)
    server.challenging, start = False, time.monotonic()
    w.state_is(client, RESPONSE_TIMED_OUT, 4, "the response timed out")
    w.note = "after %.2f s" % (time.monotonic() - start)
    w.check(0.8 <= time.monotonic() - start <= 2.5, w.note)


@check("C-RES-07", RESPONSES, SHOULD, "the first challenge is answered while later ones still come")
def _(w):
    server, _, token, there = responding(w)
    for _ in range(5):
        server.send_challenge(token, there)
        w.wait(0.1)
    w.wait(0.2)
    numbers = {packet.body[:8] for packet in server.responses}
    w.check(len(server.responses) >= 3 and len(numbers) == 1, "%d responses to %d challenges" % (len(server.responses), len(numbers)))


@check("C-RES-08", RESPONSES, MUST, "payloads that come before the keep-alive are discarded")
def _(w):
    server, client, token, there = responding(w)
    for number in range(3):
        server.send_raw(server.seal(token, PAYLOAD, b"early", 100 + number), there)
    w.wait(0.2)
    server.accepting = True
    w.state_is(client, CONNECTED, 3, "the server accepts")
    w.until(server.clients, 1, "a client")
    w.check(not client.received, "an early payload was delivered")
    server.clients()[0].sequence += 200
    w.echo_client(server, server.clients()[0], client)


@check("C-RES-09", RESPONSES, MUST, "keep-alives under another key, or from another address, do not connect")
def _(w):
    server, client, token, there = responding(w)
    body, outsider = struct.pack("<II", 0, 4), w.add(Endpoint())
    server.send_global(w.mint([server]), there, KEEP_ALIVE, body)
    outsider.send_raw(server.seal(token, KEEP_ALIVE, body, 77), there)
    server.send_raw(changed(server.seal(token, KEEP_ALIVE, body, 78), 5), there)
    w.wait(0.4)
    w.check(client.state == RESPONDING, "the state is %s" % client.state)


@check("C-RES-10", STATES, MUST, "a disconnect packet does not end the client before it is connected")
def _(w):
    server, client, token, there = responding(w)
    server.send_global(token, there, DISCONNECT)
    w.wait(0.4)
    w.check(client.state == RESPONDING, "the state is %s" % client.state)


# ---- the next server ----


def connects_at(w, server, client, token, what):
    w.until(server.clients, 8, what)
    w.state_is(client, CONNECTED, 3, what)
    w.echo_client(server, server.clients()[0], client)
    w.check(server.clients()[0].token.client_id == token.client_id, "with another token")


@check("C-NXT-01", REQUESTS, MUST, "denied, the client tries the token's next server")
def _(w):
    full, server = w.peer_server(), w.peer_server()
    full.denying = True
    token = w.mint([full, server])
    client = w.starts(token)
    asked(w, full)
    connects_at(w, server, client, token, "the second server accepts")
    w.check(WAS_DENIED not in client.states, "states %r" % client.states)
    client.tell("disconnect 0")
    w.until(lambda: server.left, 3, "a disconnect packet at the second server")


@check("C-NXT-02", RESPONSES, MUST, "denied to its response, the client tries the token's next server")
def _(w):
    server = w.peer_server()
    full, client, token, _ = responding(w, server)
    full.accepting = full.denying = True
    connects_at(w, server, client, token, "the second server accepts")


@check("C-NXT-03", REQUESTS, MUST, "after a silent first server for one timeout, the client tries the next")
def _(w):
    silent, server = silent_server(w), w.peer_server()
    token = w.mint([silent, server], timeout=1)
    client = w.starts(token)
    w.until(lambda: silent.heard, START, "a request to the first")
    start = time.monotonic()
    connects_at(w, server, client, token, "the second server accepts")
    w.check(time.monotonic() - start >= 0.8, "after %.2f s already" % (time.monotonic() - start))
    w.check(REQUEST_TIMED_OUT not in client.states, "states %r" % client.states)


@check("C-NXT-04", RESPONSES, MUST, "after a server that does not accept its response for one timeout, the client tries the next")
def _(w):
    server = w.peer_server()
    unsure, client, token, _ = responding(w, server, timeout=1)
    unsure.challenging = False
    connects_at(w, server, client, token, "the second server accepts")


@check("C-NXT-05", REQUESTS, MUST, "when all servers of the token have failed, the state is that of the last failure")
def _(w):
    silent, full = silent_server(w), w.peer_server()
    full.denying = True
    first, second = w.starts(w.mint([silent, full], timeout=1)), w.starts(w.mint([full, silent], timeout=1))
    w.state_is(first, WAS_DENIED, START, "silence, then a denial")
    w.state_is(second, REQUEST_TIMED_OUT, START, "a denial, then silence")
    w.check(first.states.count(WAS_DENIED) == 1 and WAS_DENIED not in second.states, "%r, %r" % (first.states, second.states))


@check("C-NXT-06", REQUESTS, MUST, "31 servers deny; the last of the token's 32 accepts")
def _(w):
    full, server = w.peer_server(), w.peer_server()
    full.denying = True
    token = w.mint([full] * 31 + [server])
    client = w.starts(token)
    connects_at(w, server, client, token, "the last server accepts")
    w.check(len(full.requests) >= 31, "%d requests were denied" % len(full.requests))


@check("C-NXT-07", SESSION, MUST, "a connected client that the server disconnects goes to state 0, and does not try the next server")
def _(w):
    server, other = w.peer_server(), w.peer_server()
    client, slot = w.accepted(server, w.mint([server, other]))
    server.kick(slot)
    w.state_is(client, DISCONNECTED, 3, "disconnect packets came")
    w.never(lambda: other.heard or client.state != DISCONNECTED, 0.5, "it tries the next server")


# ---- the token's end ----


@check("C-EXP-01", EXPIRY, MUST, "a token of 2 s ends the attempt in state -6, whatever the timeout (1.6 to 3.5 s)")
def _(w):
    silent = silent_server(w)
    client = w.starts(w.mint([silent], expire_in=2, timeout=20))
    w.until(lambda: silent.heard, START, "a request")
    start = time.monotonic()
    w.state_is(client, TOKEN_EXPIRED, 5, "the token expired")
    w.note = "after %.2f s" % (time.monotonic() - start)
    w.check(1.6 <= time.monotonic() - start <= 3.5, w.note)


@check("C-EXP-02", EXPIRY, MUST, "that time is for all servers of the token together")
def _(w):
    silent = [silent_server(w) for _ in range(3)]
    client = w.starts(w.mint(silent, expire_in=3, timeout=2))
    w.state_is(client, TOKEN_EXPIRED, START + 4, "the token expired at the second server")
    w.check(silent[1].heard and not silent[2].heard, "it tried another set of servers")


@check("C-EXP-03", EXPIRY, MUST, "the time is expire minus create, whatever the wall clock says")
def _(w):
    server = w.peer_server()
    old, now = w.mint([server], create=1000, expire=1010), int(time.time())
    client = w.starts(old)
    w.state_is(client, REQUESTING, START, "a token of ten seconds of long ago")
    w.wait(0.3)
    w.check(client.state == REQUESTING, "the state is %s" % client.state)
    silent = silent_server(w)
    client = w.starts(w.mint([silent], create=now + 5000, expire=now + 5001))
    w.state_is(client, TOKEN_EXPIRED, START, "a token of one second of the future")


@check("C-EXP-04", EXPIRY, MUST, "the token's end does not end a connection")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, expire_in=3)
    w.never(lambda: client.state != CONNECTED, 3.4, "the connection ended")
    w.echo_client(server, slot, client)


# ---- connected ----


@check("C-CON-01", SESSION, MUST, "an idle client sends keep-alives: a server with a timeout of one second keeps it")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=1)
    w.never(lambda: not server.clients() or client.state != CONNECTED, 2.5, "the connection ended")
    w.check(len(slot.of(KEEP_ALIVE)) >= 3, "%d keep-alives" % len(slot.of(KEEP_ALIVE)))


@check("C-CON-02", SESSION, SHOULD, "an idle client sends about ten keep-alives a second (7 to 14)")
def _(w):
    server = w.peer_server()
    _, slot = w.accepted(server)
    w.wait(0.3)
    w.check(7 <= rate_of(w, lambda: len(slot.of(KEEP_ALIVE))) <= 14, "%s" % w.note)


@check("C-CON-03", PACKETS, MUST, "payloads of 1, 2, 100, 1199 and 1200 bytes pass unchanged, both ways")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for size in (1, 2, 100, 1199, 1200):
        data = os.urandom(size)
        server.send_payload(slot, data)
        w.until(lambda: client.payloads()[-1:] == [data], 3, "%d bytes to the client" % size)
        client.tell("send 0 " + data[::-1].hex())
        w.until(lambda: slot.payloads[-1:] == [data[::-1]], 3, "%d bytes to the server" % size)


@check("C-CON-04", READING, MUST, "payload packets of 0, 1201 and 1300 bytes are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    unmoved(w, server, slot, client, [seal_next(server, slot, PAYLOAD, bytes(size)) for size in (0, 1201, 1300)], "a payload of a wrong size")


@check("C-CON-05", PACKETS, MUST, "a payload of 1201 bytes of the application is not sent")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    w.echo_client(server, slot, client)
    count = len(server.heard)
    client.tell("send 0 " + bytes(1201).hex())
    w.wait(0.2)
    w.echo_client(server, slot, client)
    sizes = [len(data) for data in server.heard[count:]]
    w.check(max(sizes) < 1200, "a packet of %d bytes" % max(sizes))


@check("C-CON-06", SESSION, MUST, "a hundred payloads each way arrive in the order in which they were sent, each once")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    there, back = [b"there %d" % n for n in range(100)], [b"back %d" % n for n in range(100)]
    for one, other in zip(there, back):
        server.send_payload(slot, one)
        client.tell("send 0 " + other.hex())
        w.wait(0.006)
    w.until(lambda: len(client.received) >= 100 and len(slot.payloads) >= 100, 3, "a hundred each way")
    w.wait(0.1)
    w.check(client.payloads() == there and slot.payloads == back, "others, or in another order")


@check("C-CON-07", SESSION, MUST, "silence of the server for the token's timeout of 1 s ends in state -4 (0.8 to 2.5 s)")
def _(w):
    server = w.peer_server()
    client, _ = w.accepted(server, timeout=1)
    server.muted, start = True, time.monotonic()
    w.state_is(client, TIMED_OUT, 5, "the connection timed out")
    w.note = "after %.2f s" % (time.monotonic() - start)
    w.check(0.8 <= time.monotonic() - start <= 2.5, w.note)


@check("C-CON-08", SESSION, SHOULD, "a client that timed out sends nothing more")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=1)
    server.muted = True
    w.state_is(client, TIMED_OUT, 5, "the connection timed out")
    w.wait(0.1)
    count = len(server.heard)
    w.never(lambda: len(server.heard) > count, 0.5, "a packet after the timeout")
    w.check(not slot.of(DISCONNECT), "disconnect packets")


@check("C-CON-09", TOKENS, MUST, "a negative timeout disables it")
def _(w):
    server, silent = w.peer_server(), silent_server(w)
    client, slot = w.accepted(server, timeout=-1)
    waiting = w.starts(w.mint([silent], timeout=-1))
    w.until(lambda: silent.heard and waiting.state == REQUESTING, START, "a request, and `state 1`")
    server.muted = True
    # Not a whole number of seconds: a client may take a fresh socket in each second of silence, and lose what arrives meanwhile.
    w.never(lambda: client.state != CONNECTED or waiting.state != REQUESTING, 3.5, "a client without timeout gave up")
    w.echo_client(server, slot, client)


@check("C-CON-10", TOKENS, SHOULD, "a timeout of 0 disables it too, as in deployed implementations")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=0)
    server.muted = True
    w.never(lambda: client.state != CONNECTED, 2.5, "the client gave up")
    w.echo_client(server, slot, client)


@check("C-CON-11", SESSION, MUST, "keep-alives alone, and payloads alone, keep the client connected")
def _(w):
    server = w.peer_server()
    pairs = [w.accepted(server, timeout=1) for _ in range(2)]
    server.muted = True
    for number in range(25):
        server.send_keep_alive(pairs[0][1])
        server.send(pairs[1][1], PAYLOAD, b"%d" % number)
        w.wait(0.1)
    w.check(all(client.state == CONNECTED for client, _ in pairs), "states %r" % [client.state for client, _ in pairs])


@check("C-CON-12", STATES, MUST, "denials and challenges do nothing to a connected client")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.send_global(slot.token, slot.address, DENIED)
    server.send_challenge(slot.token, slot.address)
    unmoved(w, server, slot, client, [], "a denial or a challenge")


@check("C-CON-13", SESSION, SHOULD, "while payloads flow, the client sends no keep-alives besides")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    w.echo_client(server, slot, client)
    w.wait(0.2)
    count = len(slot.of(KEEP_ALIVE))
    for number in range(40):
        client.tell("send 0 %02x" % number)
        w.wait(0.03)
    w.note = "%d keep-alives in 1.2 s" % (len(slot.of(KEEP_ALIVE)) - count)
    w.check(len(slot.of(KEEP_ALIVE)) - count <= 5, w.note)


# ---- disconnecting ----


@check("C-DIS-01", SESSION, MUST, "one disconnect packet of the server is enough: state 0")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.kick(slot, 1)
    w.state_is(client, DISCONNECTED, 1.5, "a disconnect packet came")


@check("C-DIS-02", SESSION, MUST, "a client that disconnects sends more than one disconnect packet, and goes to state 0")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    client.tell("disconnect 0")
    w.until(lambda: slot in server.left, 3, "a disconnect packet")
    w.state_is(client, DISCONNECTED, 2, "it disconnected")
    w.wait(0.3)
    w.check(len(slot.of(DISCONNECT)) >= 2, "one packet alone")


@check("C-DIS-03", SESSION, SHOULD, "there are ten of them, as deployed clients send")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    client.tell("disconnect 0")
    w.until(lambda: slot in server.left, 3, "a disconnect packet")
    w.wait(0.4)
    w.note = "%d packets" % len(slot.of(DISCONNECT))
    w.check(len(slot.of(DISCONNECT)) == 10, w.note)


@check("C-DIS-04", SESSION, MUST, "nothing follows the disconnect packets, of either side")
def _(w):
    server = w.peer_server()
    (client, slot), (kicked, other) = w.accepted(server), w.accepted(server)
    client.tell("disconnect 0")
    w.until(lambda: slot in server.left, 3, "a disconnect packet")
    server.kick(other)
    w.state_is(kicked, DISCONNECTED, 3, "disconnect packets came")
    w.wait(0.1)
    count = len(server.heard)
    w.never(lambda: len(server.heard) > count, 0.5, "a packet of a client that has disconnected")
    w.check(slot.packets[-1].kind == DISCONNECT, "%r came after it" % slot.packets[-1])


@check("C-DIS-05", SESSION, MUST, "disconnect packets under another key, or from another address, end nothing")
def _(w):
    server, outsider = w.peer_server(), w.add(Endpoint())
    client, slot = w.accepted(server)
    outsider.send_raw(seal_next(server, slot, DISCONNECT), slot.address)
    foreign = server.seal(w.mint([server]), DISCONNECT, b"", slot.sequence + 50)
    unmoved(w, server, slot, client, [foreign], "a foreign disconnect packet")


# ---- reading packets ----


@check("C-PKT-01", READING, MUST, "packets of less than 18 bytes are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    whole = seal_next(server, slot, DISCONNECT)
    short = [whole[:size] for size in range(18)] + [bytes([0x16]) + bytes(size) for size in range(17)]
    unmoved(w, server, slot, client, short, "a packet of less than 18 bytes")


@check("C-PKT-02", READING, MUST, "packets of the types 7 to 15 are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    odd = [seal_next(server, slot, kind, body) for kind in range(7, 16) for body in (b"", b"x" * 8, bytes(308))]
    unmoved(w, server, slot, client, odd, "an unknown type")


@check("C-PKT-03", READING, MUST, "requests and responses that are sent to a client are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    odd = [seal_next(server, slot, RESPONSE, bytes(308)), slot.token.request() if slot.token.sealed_private else b"\0" * 1078,
           seal_next(server, slot, peer.REQUEST, b"x")]
    unmoved(w, server, slot, client, odd, "a packet of the wrong direction")


@check("C-PKT-04", PACKETS, MUST, "the prefix byte is authenticated: a payload packet can not be made another one")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    odd = []
    for kind, body, other in ((PAYLOAD, b"x" * 8, KEEP_ALIVE), (KEEP_ALIVE, b"x" * 8, PAYLOAD), (PAYLOAD, b"", DISCONNECT)):
        data = seal_next(server, slot, kind, body)
        odd.append(bytes([data[0] & 0xF0 | other]) + data[1:])
    unmoved(w, server, slot, client, odd, "a packet of another type than it was sealed as")


@check("C-PKT-05", PACKETS, MUST, "a packet with one changed bit anywhere is ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    data = seal_next(server, slot, PAYLOAD, b"flipped")
    unmoved(w, server, slot, client, [changed(data, at, 1 << at % 8) for at in range(len(data))], "a changed packet")
    server.send_raw(data, slot.address)
    w.until(lambda: client.payloads()[-1:] == [b"flipped"], 2, "the packet as it was")


@check("C-PKT-06", PACKETS, MUST, "the protocol id and the version are authenticated in every packet")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    key, odd = slot.token.to_client_key, []
    for bit in (0, 63):
        slot.sequence += 1
        odd.append(seal_packet(PAYLOAD, b"other", key, w.protocol_id ^ 1 << bit, slot.sequence))
    slot.sequence += 1
    prefix = PAYLOAD | peer.sequence_bytes_needed(slot.sequence) << 4
    associated = b"NETCODE 1.01\0" + struct.pack("<QB", w.protocol_id, prefix)
    sealed = peer.seal_aead(key, peer.packet_nonce(slot.sequence), associated, b"other")
    odd.append(bytes([prefix]) + slot.sequence.to_bytes(8, "little")[:prefix >> 4] + sealed)
    slot.sequence += 1
    unmoved(w, server, slot, client, odd, "a packet of another protocol id or version")


@check("C-PKT-07", READING, MUST, "keep-alives of 0, 7 and 9 bytes and disconnect packets with data are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=1)
    unmoved(w, server, slot, client, [seal_next(server, slot, DISCONNECT, bytes(size)) for size in (1, 8)], "a disconnect packet with data")
    server.muted, start = True, time.monotonic()
    while client.state == CONNECTED and time.monotonic() - start < 4:
        for size in (0, 7, 9):
            server.send(slot, KEEP_ALIVE, bytes(size))
        w.wait(0.1)
    w.check(client.state == TIMED_OUT, "keep-alives of the wrong size kept the client connected")


@check("C-PKT-08", SESSION, MUST, "packets of its session from another address than the server's are ignored, and cost it nothing")
def _(w):
    server, outsider, first = w.peer_server(), w.add(Endpoint()), w.peer_server()
    first.denying = True
    client, slot = w.accepted(server, w.mint([first, server]))
    fresh = seal_next(server, slot, PAYLOAD, b"fresh")
    outsider.send_raw(fresh, slot.address)
    first.send_raw(fresh, slot.address)  # it is in the token and has the same keys, but the session is not with it
    w.wait(0.2)
    w.check(not client.received, "it was delivered")
    server.send_raw(fresh, slot.address)
    w.until(lambda: client.payloads() == [b"fresh"], 2, "the same packet from the server")


@check("C-PKT-09", READING, MUST, "empty datagrams between packets cost no packet")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for number in range(200):
        server.send(slot, PAYLOAD, b"%d" % number)
        server.send_raw(b"", slot.address)
        if number % 10 == 9:
            w.wait(0.012)
    w.until(lambda: len(set(client.payloads())) >= 198, 3, "99 % of 200 payloads")


@check("C-PKT-10", READING, MUST, "datagrams of 1226 to 65507 bytes are ignored and cost no packet")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for number in range(60):
        server.send(slot, PAYLOAD, b"%d" % number)
        server.send_raw(bytes([0x15]) + os.urandom((1225, 1500, 3000, 65506)[number % 4]), slot.address)
        if number % 10 == 9:
            w.wait(0.03)
    w.until(lambda: len(set(client.payloads())) >= 59, 3, "59 of 60 payloads")


@check("C-PKT-11", READING, SHOULD, "a sequence in more bytes than it needs is read: the prefix byte is authenticated")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for count in (2, 5, 8):
        server.send_raw(seal_next(server, slot, PAYLOAD, b"%d" % count, count), slot.address)
        w.until(lambda: client.payloads()[-1:] == [b"%d" % count], 2, "a sequence in %d bytes" % count)


@check("C-PKT-12", READING, MUST, "two thousand datagrams of noise from its server's address do not end the connection")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for number in range(2000):
        noise = os.urandom((1, 18, 25, 33, 100, 333, 1225)[number % 7])
        if number % 4 == 3:  # with a header that could be the server's next packet's
            noise = changed(server.seal(slot.token, PAYLOAD, os.urandom(20), slot.sequence + 9), 15)
        server.send_raw(noise, slot.address)
        if number % 50 == 49:
            w.wait(0.04)
    w.wait(0.3)
    w.check(client.state == CONNECTED, "the state is %s" % client.state)
    w.echo_client(server, slot, client)


@check("C-PKT-13", READING, MUST, "sequence lengths of 0 and of 9 to 15 bytes are ignored")
def _(w):
    server, client, token, there = requested(w)
    server.send_raw(server.seal(token, CHALLENGE, os.urandom(308), 0, 0), there)
    w.wait(0.3)
    w.check(client.state == REQUESTING, "a challenge with sequence 0 in no bytes was read")
    server.challenging = True
    slot = w.slot_of(server, client, token)
    odd = [seal_next(server, slot, PAYLOAD, b"odd", count) for count in (9, 10, 15)]
    unmoved(w, server, slot, client, odd, "such a sequence length")


@check("C-PKT-14", PACKETS, MUST, "the client writes its sequences in as few bytes as they need, at least one")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    w.echo_client(server, slot, client)
    w.wait(0.3)
    for packet in server.responses + slot.packets:
        w.check(packet.sequence_bytes == peer.sequence_bytes_needed(packet.sequence),
                "%r has its sequence in %d bytes" % (packet, packet.sequence_bytes))


@check("C-PKT-15", PACKETS, MUST, "sequences of 1 to 8 bytes are read, with their high zero bytes omitted")
def _(w):
    server = w.peer_server()
    for base in (250, 65530, (1 << 24) - 3, (1 << 32) - 3, (1 << 40) - 3, (1 << 48) + 9, (1 << 62) + 9):
        server.confirming = False
        token = w.mint([server])
        client = w.starts(token)
        w.until(lambda: any(slot.token.client_id == token.client_id for slot in server.clients()), START, "a response")
        slot = next(slot for slot in server.clients() if slot.token.client_id == token.client_id)
        slot.sequence = base
        server.send_keep_alive(slot)
        w.state_is(client, CONNECTED, 3, "a keep-alive of sequence %d" % base)
        for _ in range(8):
            server.send(slot, PAYLOAD, b"%d" % slot.sequence)
        w.until(lambda: len(client.received) == 8, 2, "eight payloads behind sequence %d" % base)
        server.kick(slot)


@check("C-PKT-16", PACKETS, MUST, "the client's own packets that are sent back to it are ignored")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    client.tell("send 0 010203")
    w.until(lambda: slot.payloads, 3, "a payload")
    unmoved(w, server, slot, client, list(server.heard), "a reflected packet")


# ---- replay protection ----


@check("C-REP-01", REPLAY, MUST, "a packet that is sent again is delivered once")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    recorded = [server.send(slot, PAYLOAD, b"%d" % number) for number in range(20)]
    w.until(lambda: len(client.received) == 20, 2, "twenty payloads")
    unmoved(w, server, slot, client, recorded + recorded[::-1], "a repeated packet")


@check("C-REP-02", REPLAY, MUST, "packets out of order within 32 sequences are accepted, each once")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.muted, base = True, slot.sequence + 100
    order = [base + step for step in (0, -1, 5, 3, 4, 31, 1, 2, 30)]
    for number in order * 2:
        server.send_raw(server.seal(slot.token, PAYLOAD, b"%d" % number, number), slot.address)
    w.until(lambda: len(client.received) >= len(order), 2, "all nine")
    w.wait(0.1)
    w.check(client.payloads() == [b"%d" % number for number in order], "%r" % client.payloads())


@check("C-REP-03", REPLAY, SHOULD, "the window is 256 packets or more: one that is 250 late is accepted")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.muted, base = True, slot.sequence + 1000
    server.send(slot, PAYLOAD, b"new", sequence=base)
    server.send(slot, PAYLOAD, b"late", sequence=base - 250)
    w.until(lambda: client.payloads() == [b"new", b"late"], 2, "the late one")


@check("C-REP-04", REPLAY, MUST, "a packet that is 5000 late is refused, also if it was never seen")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.muted, base = True, slot.sequence + 20000
    server.send(slot, PAYLOAD, b"new", sequence=base)
    w.until(lambda: client.payloads() == [b"new"], 2, "the newest")
    slot.sequence = base + 1
    old = [server.seal(slot.token, PAYLOAD, b"old", base - late) for late in (5000, 10000, 19000)]
    unmoved(w, server, slot, client, old, "a packet that is 5000 late")


@check("C-REP-05", REPLAY, MUST, "after a jump forward, packets from before it are still known")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    server.muted, base = True, slot.sequence + 100
    old = [server.send(slot, PAYLOAD, b"%d" % number, sequence=base + number) for number in range(10)]
    w.until(lambda: len(client.received) == 10, 2, "ten payloads")
    for jump in (40, 100000):
        slot.sequence = base + jump
        unmoved(w, server, slot, client, [], "the jump by %d" % jump)
        unmoved(w, server, slot, client, old, "a repeated packet after a jump by %d" % jump)


@check("C-REP-06", REPLAY, MUST, "the window moves only for authentic packets")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for ahead in (300, 1 << 20, 1 << 31):
        data = server.seal(slot.token, PAYLOAD, b"forged", slot.sequence + ahead)
        unmoved(w, server, slot, client, [changed(data, len(data) - 1)], "a forged packet that was %d ahead" % ahead)


@check("C-REP-07", REPLAY, MUST, "keep-alives are protected too: a repeated one does not refresh the timeout")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=1)
    recorded, server.muted, start = server.send_keep_alive(slot), True, time.monotonic()
    while client.state == CONNECTED and time.monotonic() - start < 4:
        server.send_raw(recorded, slot.address)
        w.wait(0.1)
    w.check(client.state == TIMED_OUT, "repeated keep-alives kept the client connected")


@check("C-REP-08", REPLAY, MUST, "the highest sequence, 2^64 - 1, is accepted at most once")
def _(w):
    server = w.peer_server()
    server.confirming = False
    token = w.mint([server])
    client = w.starts(token)
    w.until(server.clients, START, "a response")
    slot, server.muted = server.clients()[0], True
    slot.sequence = peer.SEQUENCE_LIMIT - 200
    server.send_keep_alive(slot)
    w.state_is(client, CONNECTED, 3, "a keep-alive")
    for _ in range(3):
        server.send_raw(server.seal(token, PAYLOAD, b"last", peer.SEQUENCE_LIMIT - 1), slot.address)
    w.wait(0.3)
    w.check(len(client.received) <= 1, "it was delivered %d times" % len(client.received))


@check("C-REP-09", SESSION, MUST, "noise from the server's address does not refresh the timeout")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server, timeout=1)
    server.muted, start = True, time.monotonic()
    while client.state == CONNECTED and time.monotonic() - start < 4:
        server.send_raw(changed(seal_next(server, slot, KEEP_ALIVE, bytes(8)), 15), slot.address)
        server.send_raw(b"\x15" + os.urandom(99), slot.address)  # a payload, of a sequence that does not jump far
        w.wait(0.1)
    w.check(client.state == TIMED_OUT, "noise kept the client connected")


# ---- nonces, addresses ----


@check("C-NON-01", REPLAY, MUST, "in a session no key and sequence seals two packets: response, keep-alives, payloads, disconnect packets")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for number in range(10):
        client.tell("send 0 %02x" % number)
    w.until(lambda: len(slot.payloads) == 10, 3, "ten payloads")
    w.wait(0.3)
    client.tell("disconnect 0")
    w.until(lambda: slot in server.left, 3, "a disconnect packet")
    w.wait(0.2)
    w.once_only(slot.token.to_server_key)


@check("C-NON-02", REPLAY, MUST, "the sequence grows with each packet: responses, keep-alives and payloads have one counter")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    for number in range(5):
        client.tell("send 0 %02x" % number)
    w.wait(0.5)
    own = [packet.sequence for packet in server.responses + slot.packets]
    w.check(len(own) >= 8 and own == sorted(set(own)), "%r" % own[:12])


@check("C-NON-03", REPLAY, SHOULD, "at the token's next server, whose keys are the same, no sequence is used again")
def _(w):
    server = w.peer_server()
    full, client, token, _ = responding(w, server)
    w.wait(0.3)
    full.accepting = full.denying = True
    connects_at(w, server, client, token, "the second server accepts")
    w.wait(0.5)
    w.once_only(token.to_server_key)


@check("C-NON-04", REPLAY, SHOULD, "a second connect of one client object with a used token repeats no key and sequence")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    token = slot.token
    w.echo_client(server, slot, client)
    client.tell("disconnect 0")
    w.until(lambda: slot in server.left, 3, "a disconnect packet")
    server.used.clear()
    raw = client.token_raw
    client.tell("connect " + raw.hex())
    w.wait(0.8)
    w.note = "it connects again" if server.clients() else "it refuses the used token"
    for number in range(5):
        client.tell("send 0 %02x%02x" % (number, number))
    w.wait(0.2)
    w.once_only(token.to_server_key)


@check("C-NON-05", SESSION, MUST, "one client object can connect again, with another token")
def _(w):
    server = w.peer_server()
    client, slot = w.accepted(server)
    client.tell("disconnect 0")
    w.state_is(client, DISCONNECTED, 3, "it disconnected")
    token = w.mint([server])
    client.tell("connect " + token.raw.hex())
    w.echo_client(server, w.slot_of(server, client, token), client)


@check("C-ADR-01", TOKENS, MUST, "a server at an IPv6 address is read from the token as eight little-endian words")
def _(w):
    peer.need_ipv6()
    w.need_namespace("a client that reads the words otherwise would send to a foreign address")
    server = w.peer_server(host="::1")
    client, slot = w.accepted(server, bind="[::1]:0")
    w.echo_client(server, slot, client)


@check("C-ADR-02", TOKENS, MUST, "the second of a token's servers is read behind an IPv4 address, the last before the keys")
def _(w):
    full, server = w.peer_server(), w.peer_server()
    full.denying = True
    token = w.mint([full, full, server])
    client = w.starts(token)
    connects_at(w, server, client, token, "the third server accepts")


