"""The checks of a server: the peer is the server, and the kit's clients talk to it."""

import os
import struct
import time

import peer
from kit import MUST, SHOULD, check
from peer import (CHALLENGE, CONNECTED, DENIED, DISCONNECT, DISCONNECTED, KEEP_ALIVE, PAYLOAD, RESPONSE, SEQUENCE_LIMIT,
                  Address, Endpoint, changed, seal_packet, seal_xaead)

PACKETS, READING, REPLAY = "Packets", "Reading Encrypted Packets", "Replay Protection"
REQUESTS, CHALLENGES = "Processing Connection Requests", "Challenge Token"
RESPONSES, CLIENTS, TOKENS = "Processing Connection Response Packets", "Connected Clients", "Connect Token"


def forged(w, server, **fields):
    """A client that holds a token of these fields, under the check's hand."""
    return w.client(w.mint([server], **fields), manual=True)


def unanswered(w, server, clients, what):
    for client in clients:
        w.silent(server, client, [client.token.request()], what)


def packet_to(client, kind, body=b"", key=None, protocol_id=None, sequence=None, version=None):
    """A packet of the client's session with something about its seal changed."""
    number = client.next_sequence() if sequence is None else sequence
    if version is not None:
        prefix = kind | peer.sequence_bytes_needed(number) << 4
        associated = version + struct.pack("<QB", client.token.protocol_id, prefix)
        sealed = peer.seal_aead(client.token.to_server_key, peer.packet_nonce(number), associated, body)
        return bytes([prefix]) + number.to_bytes(8, "little")[: prefix >> 4] + sealed
    return seal_packet(kind, body, key or client.token.to_server_key, client.token.protocol_id if protocol_id is None else protocol_id, number)


# ---- requests ----


@check("S-REQ-01", REQUESTS, MUST, "a valid request of 1078 bytes is answered with a challenge")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.check(client.of(CHALLENGE), "heard %r" % client.packets)


@check("S-REQ-02", REQUESTS, MUST, "a request of another size than 1078 bytes is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    request = client.token.request()
    sizes = [request[:size] for size in (1, 14, 18, 54, 1061, 1062, 1077)] + [request + bytes(size) for size in (1, 147, 400)]
    w.silent(server, client, sizes, "a request of another size")


@check("S-REQ-03", REQUESTS, MUST, "a request that does not say NETCODE 1.02 is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    pasted = [changed(client.token.request(), at) for at in (1, 8, 12, 13)]
    w.silent(server, client, pasted, "another version pasted over the right one")
    other = w.mint([server], version=b"NETCODE 1.01\0")
    w.silent(server, client, [other.request()], "a token that was sealed as version 1.01")
    w.silent(server, client, [b"\0" + peer.VERSION + other.request()[14:]], "a token of version 1.01 with the right version pasted over it")


@check("S-REQ-04", REQUESTS, MUST, "a request for another protocol id is ignored")
def _(w):
    server = w.server()
    unanswered(w, server, [forged(w, server, protocol_id=w.protocol_id ^ bit) for bit in (1, 1 << 63)], "another protocol id")
    client = forged(w, server)
    pasted = [changed(client.token.request(), at) for at in (14, 21)]
    w.silent(server, client, pasted, "another protocol id, pasted over the right one,")


@check("S-REQ-05", TOKENS, MUST, "the protocol id is authenticated: the right one pasted over another is ignored")
def _(w):
    server = w.server()
    client = forged(w, server, protocol_id=w.protocol_id ^ 1)
    w.silent(server, client, [changed(client.token.request(), 14)], "a token for another protocol id")


@check("S-REQ-06", REQUESTS, MUST, "a token that has expired is ignored")
def _(w):
    server, now = w.server(), int(time.time())
    unanswered(w, server, [forged(w, server, create=0, expire=expire) for expire in (0, 1, now - 5)], "an expired token")


@check("S-REQ-07", REQUESTS, MUST, "a token whose expire timestamp is the present second is ignored (<=, not <)")
def _(w):
    server = w.server()
    client = forged(w, server)
    # Not at once: a clock that is read coarsely is some milliseconds late.
    w.until(lambda: 0.05 < time.time() % 1 < 0.3, 2, "the beginning of a second")
    now = int(time.time())
    token = w.mint([server], create=0, expire=now)
    client.send_raw(token.request(), server.address)
    w.wait(0.25)
    w.check(not client.heard, "it was answered at %.2f, and expires at %d" % (time.time(), now))
    w.control(server)


@check("S-REQ-08", TOKENS, MUST, "the expire timestamp is authenticated: a later one pasted over it is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    w.silent(server, client, [changed(client.token.request(), at) for at in (22, 24, 29)], "a changed expire timestamp")


@check("S-REQ-09", REQUESTS, MUST, "a token that was sealed with another private key is ignored")
def _(w):
    server = w.server()
    for key in (bytes(32), os.urandom(32), changed(w.key, 31)):
        token = w.mint([server], key=key)
        unanswered(w, server, [w.client(token, manual=True)], "a token under another key")


@check("S-REQ-10", REQUESTS, MUST, "a request with one changed bit in nonce, private data or its tag is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    request = client.token.request()
    spots = (30, 53, 54, 62, 200, 500, 900, 1061, 1062, 1077)
    w.silent(server, client, [changed(request, at, 1 << at % 8) for at in spots], "a changed request")
    w.ask(client, lambda: client.challenges, "a challenge for the request as it was")


def malformed(w, server, count, kind):
    """A token with another count of addresses, or another type of the first, sealed with the right key."""
    token = w.mint([server], expire_in=50 + count)
    plain = bytearray(token.private_plain())
    plain[12:16], plain[16] = struct.pack("<I", count), kind
    token.sealed_private = seal_xaead(w.key, token.nonce, token.associated(), bytes(plain[:1008]))
    return token.request()


@check("S-REQ-11", REQUESTS, MUST, "an authentic token with 0, 33 or 2^32 - 1 addresses is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    bad = [malformed(w, server, count, 1) for count in (0, 33, 0xFFFFFFFF)]
    # The server's own address, 33 times and whole: a reader that takes more than 32 finds nothing wrong with it.
    token = w.mint([server] * 33)
    bad.append(token.request())
    w.silent(server, client, bad, "a token with such a number of addresses")


@check("S-REQ-12", REQUESTS, MUST, "an authentic token with an address of type 0, 3 or 255 is ignored")
def _(w):
    server = w.server()
    client = forged(w, server)
    w.silent(server, client, [malformed(w, server, 1, kind) for kind in (0, 3, 255)], "a token with such an address type")


@check("S-REQ-13", REQUESTS, MUST, "a token that does not name this server's address is ignored")
def _(w):
    server = w.server()
    port = server.address.port
    elsewhere = [Address("127.0.0.1", port ^ 1), Address("127.0.0.2", port), Address("::1", port), Address("127.0.0.1", port ^ 0x100)]
    client = w.client(w.mint(elsewhere), manual=True, via=server.address)
    w.silent(server, client, [client.token.request()], "a token for other servers")


@check("S-REQ-14", REQUESTS, MUST, "a token of 32 addresses of both families that names this server last is answered")
def _(w):
    server = w.server()
    others = [Address("192.0.2.1", 1000 + n) if n % 2 else Address("2001:db8::1", 1000 + n) for n in range(31)]
    w.challenged(server, w.mint(others + [server]), via=server.address)


@check("S-REQ-15", REQUESTS, MUST, "a request from an address that is connected already is ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    w.silent(server, client, [w.mint([server]).request()], "another token from a connected address")
    w.echo(server, client)


@check("S-REQ-16", REQUESTS, MUST, "a request with a client id that is connected already is ignored; it is welcome afterwards")
def _(w):
    server = w.server()
    client = w.join(server)
    rival = forged(w, server, client_id=client.minted.client_id)
    w.silent(server, rival, [rival.token.request()], "a connected client's id")
    client.disconnect()
    w.until(lambda: server.leaves, 3, "`disconnected`")
    w.ask(rival, lambda: rival.challenges, "a challenge once the id is free")


@check("S-REQ-17", REQUESTS, MUST, "a token that has connected is ignored from another address")
def _(w):
    server = w.server()
    client = w.join(server)
    client.disconnect()
    w.until(lambda: server.leaves, 3, "`disconnected`")
    thief = w.client(client.minted, manual=True)
    w.silent(server, thief, [thief.token.request()], "a used token from another address")


@check("S-REQ-18", REQUESTS, MUST, "one token presented from two addresses before it connects: one of them connects, not both "
       "(the standard's letter challenges the first alone; challenging both keeps a copied request from locking the owner out)")
def _(w):
    server = w.server()
    token = w.mint([server])
    pair = [w.client(token, manual=True) for _ in range(2)]
    for client in pair:
        client.send_request()
    w.until(lambda: any(client.challenges for client in pair), 3, "a challenge for one of the two")
    w.wait(0.2)
    for client in pair:
        if client.challenges:
            client.send_response(client.challenges[0])
    w.until(lambda: server.connects, 3, "`connected`")
    w.control(server)
    w.wait(0.2)
    w.check(len(server.connects) == 1, "%d connected" % len(server.connects))


@check("S-REQ-19", REQUESTS, SHOULD, "a used token never leads to one key and sequence for two packets, even from its own address after it left")
def _(w):
    server = w.server()
    client = w.join(server)
    for _ in range(8):
        server.tell("send %d %s" % (client.slot, os.urandom(8).hex()))
    w.until(lambda: len(client.payloads) == 8, 3, "eight payloads")
    client.disconnect()
    w.until(lambda: server.leaves, 3, "`disconnected`")
    client.send_request()
    w.wait(0.3)
    if client.challenges[1:]:
        client.send_response(client.challenges[-1])
        w.wait(0.3)
    if server.connects[1:]:
        w.note = "it connects again"
        for _ in range(8):
            server.tell("send %d %s" % (server.connects[1][0], os.urandom(8).hex()))
        w.wait(0.3)
    w.once_only(client.token.to_client_key)


@check("S-REQ-20", REQUESTS, MUST, "a full server answers a valid request with a denial")
def _(w):
    server = w.server(slots=1)
    w.join(server)
    outside = w.client(w.mint([server]))
    w.until(lambda: outside.state == peer.WAS_DENIED, 4, "a denial")
    w.check(not outside.challenges, "it was challenged before")


@check("S-REQ-21", REQUESTS, MUST, "a full server does not answer a request with a forged or an expired token")
def _(w):
    server = w.server(slots=1)
    w.join(server)
    bad = w.client(w.mint([server], key=os.urandom(32)), manual=True)
    unanswered(w, server, [bad, forged(w, server, create=0, expire=5)], "a bad token on a full server")


@check("S-REQ-22", REQUESTS, MUST, "each answer to a request is smaller than the request, and there is at most one for each")
def _(w):
    server = w.server(slots=1)
    first, second = w.client(w.mint([server]), manual=True), w.client(w.mint([server]), manual=True)
    for client in (first, second):
        for _ in range(8):
            client.send_request()
            w.wait(0.03)
    w.wait(0.3)
    for client in (first, second):
        w.check(1 <= len(client.heard) <= 8, "%d answers to 8 requests" % len(client.heard))
        w.check(max(len(data) for data in client.heard) < 1078, "an answer of %d bytes" % max(len(data) for data in client.heard))


@check("S-REQ-23", REQUESTS, MUST, "a client without a valid token gets no answer, whatever is sent")
def _(w):
    server, outsider = w.server(), w.add(Endpoint())
    client = forged(w, server)
    noise = [bytes([prefix]) + os.urandom(size) for prefix in range(0, 256, 5) for size in (0, 17, 40, 332, 1077)]
    for number, data in enumerate(noise):
        outsider.send_raw(data, server.address)
        if number % 32 == 31:
            w.wait(0.02)
    w.control(server)
    w.silent(server, client, [], "noise")
    w.check(not outsider.heard, "%d answers to noise" % len(outsider.heard))


@check("S-REQ-24", REQUESTS, MUST, "a repeated request of a client that waits is answered again")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.wait(0.15)
    w.ask(client, lambda: len(client.challenges) >= 2, "a second challenge")


@check("S-REQ-25", TOKENS, MUST, "client ids are 64 bits: 2^64 - 1 and 2^63 + 1 reach the application")
def _(w):
    server = w.server()
    for ident in (SEQUENCE_LIMIT - 1, (1 << 63) + 1):
        w.join(server, w.mint([server], client_id=ident))


@check("S-REQ-26", TOKENS, SHOULD, "a token that never expires (expire timestamp 2^64 - 1) connects")
def _(w):
    server = w.server()
    w.join(server, w.mint([server], expire=SEQUENCE_LIMIT - 1))


@check("S-REQ-27", REQUESTS, SHOULD, "copies of a waiting client's request from other addresses do not keep it from connecting")
def _(w):
    server = w.server()
    token = w.mint([server])
    copies = [w.client(token, manual=True) for _ in range(3)]
    for copy in copies:
        copy.send_request()
    w.wait(0.05)
    w.join(server, token, seconds=2)  # before the copies' handshakes time out


# ---- the challenge ----


@check("S-CHA-01", PACKETS, MUST, "the challenge has type 2 and 308 bytes of data")
def _(w):
    client = w.challenged(w.server())
    data = client.heard[0]
    w.check(data[0] & 15 == CHALLENGE, "type %d" % (data[0] & 15))
    w.check(len(data) == 1 + (data[0] >> 4) + 308 + 16, "%d bytes with %d of sequence" % (len(data), data[0] >> 4))


@check("S-CHA-02", PACKETS, MUST, "the challenge is sealed with the token's server-to-client key, over version, protocol id and prefix")
def _(w):
    client = w.client(w.mint([w.server()]), manual=True)
    w.ask(client, lambda: client.heard, "an answer to a valid request")
    w.check(client.challenges, "what came does not open: %s" % client.ignored[-1:])


@check("S-CHA-03", CHALLENGES, MUST, "the challenge sequence grows with each challenge that a server makes")
def _(w):
    server = w.server()
    clients = [w.challenged(server) for _ in range(4)]
    numbers = [struct.unpack("<Q", client.challenges[0][:8])[0] for client in clients]
    w.check(numbers == sorted(set(numbers)), "%r" % numbers)


@check("S-CHA-04", CHALLENGES, MUST, "the challenge token is encrypted with a key of the server's own: no two are alike, none shows the user data")
def _(w):
    server = w.server()
    tokens = [w.mint([server], client_id=7 + n, user_data=bytes(range(256))) for n in range(2)]
    sealed = [w.challenged(server, token).challenges[0][8:] for token in tokens]
    w.check(bytes(range(16)) not in sealed[0] and bytes(range(16)) not in sealed[1], "the user data stands there")
    same = sum(a == b for a, b in zip(*sealed))
    w.check(same < 30, "%d of 300 bytes are the same in two challenges" % same)
    for key in (bytes(32), w.key, tokens[0].to_client_key):
        w.check(peer.refused(peer.open_challenge, key, 0, sealed[0]), "it opens with a key that is not the server's own")


# ---- the response ----


@check("S-RES-01", RESPONSES, MUST, "a valid response connects the client and is answered with a keep-alive")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.respond(server, client)
    w.until(lambda: client.of(KEEP_ALIVE), 3, "a keep-alive")


@check("S-RES-02", RESPONSES, MUST, "the application gets the client id of the token")
def _(w):
    server = w.server()
    w.join(server, w.mint([server], client_id=0x0123456789ABCDEF))
    w.check(server.connects[0][1] == 0x0123456789ABCDEF, "%r" % (server.connects[0][1],))


@check("S-RES-03", RESPONSES, MUST, "the application gets the 256 bytes of user data of the token")
def _(w):
    server = w.server()
    client = w.join(server)
    data = w.connect_of(server, client.minted.client_id)[2]
    if data is None:
        raise peer.Skipped("the driver does not show user data")
    w.check(data == client.minted.user_data, "they are others: %s..." % data.hex()[:40])


@check("S-RES-04", RESPONSES, MUST, "a response whose challenge token was changed is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    body = client.challenges[0]
    for at in (8, 100, 291, 292, 307):
        w.silent(server, client, [client.seal(RESPONSE, changed(body, at))], "a changed challenge token")
    w.respond(server, client)


@check("S-RES-05", RESPONSES, MUST, "a response whose challenge sequence was changed is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    for at in (0, 7):
        w.silent(server, client, [client.seal(RESPONSE, changed(client.challenges[0], at))], "a changed challenge sequence")


@check("S-RES-06", RESPONSES, MUST, "a response with an invented challenge token is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    plain = peer.seal_challenge(bytes(32), 0, client.minted.client_id, client.minted.user_data)
    bad = [bytes(308), os.urandom(308), client.challenges[0][:8] + plain, bytes(8) + plain]
    for body in bad:
        w.silent(server, client, [client.seal(RESPONSE, body)], "an invented challenge token")


@check("S-RES-07", RESPONSES, MUST, "a response that is sealed with another key than the token's client-to-server key is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    for key in (client.token.to_client_key, os.urandom(32), bytes(32)):
        w.silent(server, client, [packet_to(client, RESPONSE, client.challenges[0], key=key)], "a response under another key")


@check("S-RES-08", RESPONSES, MUST, "a response from an address that has requested nothing is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    elsewhere = w.client(client.minted, manual=True)
    w.silent(server, elsewhere, [client.seal(RESPONSE, client.challenges[0])], "a response from elsewhere")
    w.respond(server, client)


@check("S-RES-09", RESPONSES, MUST, "the first of several challenges stays good: clients answer the first that they get")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.ask(client, lambda: len(client.challenges) >= 3, "three challenges")
    w.respond(server, client, client.challenges[0])


@check("S-RES-10", RESPONSES, MUST, "a response that is repeated by a connected client connects no client again")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.respond(server, client)
    response = client.sent[-1]
    w.until(lambda: client.state == CONNECTED, 3, "a keep-alive")
    w.silent(server, client, [response, client.seal(RESPONSE, client.challenges[0]), response], "a repeated response")
    w.echo(server, client)


@check("S-RES-11", RESPONSES, MUST, "of two handshakes with one client id the second response is ignored")
def _(w):
    server = w.server()
    first, second = (w.challenged(server, w.mint([server], client_id=77)) for _ in range(2))
    w.respond(server, first)
    w.silent(server, second, [second.seal(RESPONSE, second.challenges[0])], "the second response of one client id")


@check("S-RES-12", RESPONSES, MUST, "a server that has become full answers a response with a denial")
def _(w):
    server = w.server(slots=1)
    first, second = w.challenged(server), w.challenged(server)
    w.respond(server, first)
    second.send_response(second.challenges[0])
    w.until(lambda: second.of(DENIED), 3, "a denial")
    w.check(len(server.connects) == 1, "two connected to one slot")


@check("S-RES-13", READING, MUST, "a response whose data has not 308 bytes is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server)
    body = client.challenges[0]
    for wrong in (body[:300], body[:307], body + b"\0", body + bytes(60)):
        w.silent(server, client, [client.seal(RESPONSE, wrong)], "a response of %d bytes" % len(wrong))


@check("S-RES-14", RESPONSES, MUST, "clients get different free slots, below the number of slots")
def _(w):
    server = w.server(slots=4)
    clients = [w.join(server) for _ in range(4)]
    slots = sorted(client.slot for client in clients)
    w.check(slots == [0, 1, 2, 3], "slots %r" % slots)


@check("S-RES-15", RESPONSES, SHOULD, "a challenge that was made for one token connects no client with another token")
def _(w):
    server = w.server()
    seven, other = (w.challenged(server, w.mint([server], client_id=ident)) for ident in (7, 66))
    w.silent(server, other, [other.seal(RESPONSE, seven.challenges[0])], "client 7's challenge, presented with token 66,")
    w.respond(server, seven)


@check("S-RES-16", RESPONSES, SHOULD, "a challenge that was kept from an earlier session connects no client later")
def _(w):
    server = w.server()
    client = w.join(server)
    client.disconnect()
    w.until(lambda: server.leaves, 3, "`disconnected`")
    newer = w.challenged(server, w.mint([server], client_id=client.minted.client_id))
    w.silent(server, newer, [newer.seal(RESPONSE, client.challenges[0])], "a kept challenge")


# ---- keep-alives ----


@check("S-KA-01", PACKETS, MUST, "the keep-alive that connects holds the client index and the number of slots")
def _(w):
    server = w.server(slots=3)
    for _ in range(2):
        client = w.join(server)
        w.check((client.index, client.max_clients) == (client.slot, 3),
                "index %d of %d, where the application has %d of 3" % (client.index, client.max_clients, client.slot))


@check("S-KA-02", CLIENTS, MUST, "keep-alives keep a client with a timeout of one second connected")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    w.never(lambda: client.state != CONNECTED or server.leaves, 2.5, "the connection ended")
    w.echo(server, client)


@check("S-KA-03", CLIENTS, SHOULD, "an idle server sends about ten keep-alives a second (7 to 14)")
def _(w):
    server = w.server()
    client = w.join(server)
    w.wait(0.3)
    count, start = len(client.of(KEEP_ALIVE)), time.monotonic()
    w.wait(2)
    rate = (len(client.of(KEEP_ALIVE)) - count) / (time.monotonic() - start)
    w.note = "%.1f a second" % rate
    w.check(7 <= rate <= 14, w.note)


@check("S-KA-04", CLIENTS, MUST, "until the client has been heard from, each payload to it comes behind a keep-alive")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.respond(server, client)
    for number in range(5):
        server.tell("send %d %02x" % (client.slot, number))
    w.until(lambda: len(client.of(PAYLOAD)) == 5, 3, "five payloads")
    kinds = {packet.sequence: packet.kind for packet in client.packets}
    for payload in client.of(PAYLOAD):
        w.check(kinds.get(payload.sequence - 1) == KEEP_ALIVE, "before payload %r there is no keep-alive" % payload)


@check("S-KA-05", CLIENTS, MUST, "once the client has been heard from, payloads come without keep-alives before them")
def _(w):
    server = w.server()
    client = w.join(server)
    w.echo(server, client)
    w.wait(0.2)
    count = len(client.packets)
    for number in range(10):
        server.tell("send %d %02x" % (client.slot, number))
    w.until(lambda: len([packet for packet in client.packets[count:] if packet.kind == PAYLOAD]) == 10, 3, "ten payloads")
    extra = [packet for packet in client.packets[count:] if packet.kind == KEEP_ALIVE]
    w.check(len(extra) <= 3, "%d keep-alives among ten payloads" % len(extra))


@check("S-KA-06", CLIENTS, SHOULD, "while payloads flow, the server sends no keep-alives besides")
def _(w):
    server = w.server()
    client = w.join(server)
    w.echo(server, client)
    w.wait(0.2)
    count = len(client.of(KEEP_ALIVE))
    for number in range(40):
        server.tell("send %d %02x" % (client.slot, number))
        w.wait(0.03)
    extra = len(client.of(KEEP_ALIVE)) - count
    w.note = "%d keep-alives in 1.2 s" % extra
    w.check(extra <= 5, w.note)


@check("S-KA-07", CLIENTS, MUST, "a client that was accepted and is not heard from yet gets keep-alives too")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.respond(server, client)
    w.wait(0.3)
    count = len(client.of(KEEP_ALIVE))
    w.until(lambda: len(client.of(KEEP_ALIVE)) >= count + 3, 1.5, "three keep-alives more")


# ---- payloads ----


@check("S-PAY-01", PACKETS, MUST, "payloads of 1, 2, 100, 1199 and 1200 bytes reach the application unchanged")
def _(w):
    server = w.server()
    client = w.join(server)
    for size in (1, 2, 100, 1199, 1200):
        data = os.urandom(size)
        client.send(PAYLOAD, data)
        w.until(lambda data=data: server.received[-1:] == [(client.slot, data)], 3, "%d bytes" % size)


@check("S-PAY-02", PACKETS, MUST, "payloads of 1, 2, 100, 1199 and 1200 bytes of the application reach the client unchanged")
def _(w):
    server = w.server()
    client = w.join(server)
    for size in (1, 2, 100, 1199, 1200):
        data = os.urandom(size)
        server.tell("send %d %s" % (client.slot, data.hex()))
        w.until(lambda data=data: client.payloads[-1:] == [data], 3, "%d bytes" % size)


@check("S-PAY-03", READING, MUST, "a payload packet without data is ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    w.silent(server, client, [client.seal(PAYLOAD, b"")], "a payload of 0 bytes")
    w.echo(server, client)


@check("S-PAY-04", READING, MUST, "a payload packet of 1201 or 1300 bytes is ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    w.silent(server, client, [client.seal(PAYLOAD, bytes(size)) for size in (1201, 1202, 1300)], "a payload of over 1200 bytes")
    w.echo(server, client)


@check("S-PAY-05", CLIENTS, MUST, "a hundred payloads each way arrive in the order in which they were sent, each once")
def _(w):
    server = w.server()
    client = w.join(server)
    there, back = [b"there %d" % n for n in range(100)], [b"back %d" % n for n in range(100)]
    for one, other in zip(there, back):
        client.send(PAYLOAD, one)
        server.tell("send %d %s" % (client.slot, other.hex()))
        w.wait(0.006)
    w.until(lambda: len(server.received) >= 100 and len(client.payloads) >= 100, 3, "a hundred each way")
    w.wait(0.1)
    w.check(server.payloads() == there and client.payloads == back, "others, or in another order")


@check("S-PAY-06", CLIENTS, MUST, "payloads of a client that is not connected are not delivered")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.silent(server, client, [client.seal(PAYLOAD, b"early")], "a payload before the response")


@check("S-PAY-07", PACKETS, MUST, "a payload of 1201 bytes of the application is not sent")
def _(w):
    server = w.server()
    client = w.join(server)
    w.echo(server, client)
    count = len(client.heard)
    server.tell("send %d %s" % (client.slot, bytes(1201).hex()))
    w.wait(0.2)
    w.echo(server, client)
    sizes = [len(data) for data in client.heard[count:]]
    w.check(max(sizes) < 1200, "a packet of %d bytes" % max(sizes))


@check("S-PAY-08", CLIENTS, MUST, "each client gets its own payloads alone, and the application its index with each")
def _(w):
    server = w.server()
    clients = [w.join(server) for _ in range(3)]
    for client in clients:
        client.send(PAYLOAD, b"from %d" % client.slot)
        server.tell("send %d %s" % (client.slot, (b"to %d" % client.slot).hex()))
    w.until(lambda: len(server.received) == 3 and all(client.payloads for client in clients), 3, "three each way")
    w.wait(0.1)
    w.check(sorted(server.received) == sorted((client.slot, b"from %d" % client.slot) for client in clients), "%r" % server.received)
    w.check(all(client.payloads == [b"to %d" % client.slot] for client in clients), "%r" % [client.payloads for client in clients])


@check("S-PAY-09", PACKETS, MUST, "sequences of 1, 2, 3, 4 and 5 bytes are read, with their high zero bytes omitted")
def _(w):
    server = w.server()
    client = w.join(server, base=0)
    client.muted = True
    for sequence in (200, 255, 256, 65535, 65536, (1 << 24) - 1, 1 << 24, (1 << 32) - 1, 1 << 32):
        client.send(PAYLOAD, b"%d" % sequence, sequence=sequence)
        w.until(lambda: server.payloads()[-1:] == [b"%d" % sequence], 2, "the payload of sequence %d" % sequence)


@check("S-PAY-10", PACKETS, MUST, "sequences of 6, 7 and 8 bytes are read: they are 64 bits")
def _(w):
    server = w.server()
    for base in ((1 << 40) + 9, (1 << 48) + 9, (1 << 62) + 9):
        client = w.join(server, base=base)
        client.send(PAYLOAD, b"%d" % base)
        w.until(lambda: b"%d" % base in server.payloads(), 2, "a payload behind sequence %d" % base)


@check("S-PAY-11", READING, SHOULD, "a sequence in more bytes than it needs is read: the prefix byte is authenticated")
def _(w):
    server = w.server()
    client = w.join(server, base=300)
    for count in (3, 5, 8):
        client.send(PAYLOAD, b"%d" % count, sequence_bytes=count)
        w.until(lambda: server.payloads()[-1:] == [b"%d" % count], 2, "a sequence in %d bytes" % count)


@check("S-PAY-12", PACKETS, MUST, "the server writes its sequences in as few bytes as they need, at least one")
def _(w):
    server = w.server()
    client = w.join(server)
    w.echo(server, client)
    w.wait(0.3)
    for packet in client.packets:
        w.check(packet.sequence_bytes == peer.sequence_bytes_needed(packet.sequence),
                "%r has its sequence in %d bytes" % (packet, packet.sequence_bytes))
    w.check(not client.ignored, "a packet does not open: %s" % client.ignored[:1])


# ---- reading packets ----


@check("S-PKT-01", READING, MUST, "packets of less than 18 bytes are ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    whole = client.seal(DISCONNECT)
    short = [whole[:size] for size in range(1, 18)] + [bytes([0x16]) + bytes(size) for size in range(17)]
    w.silent(server, client, short, "a packet of less than 18 bytes")
    w.echo(server, client)


@check("S-PKT-02", READING, MUST, "packets of the types 7 to 15 are ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    w.silent(server, client, [client.seal(kind, body) for kind in range(7, 16) for body in (b"", b"x" * 8, bytes(308))], "an unknown type")
    w.echo(server, client)


@check("S-PKT-03", READING, MUST, "challenges and denials that are sent to a server are ignored")
def _(w):
    server = w.server()
    client, waiting = w.join(server), w.challenged(server)
    for one in (client, waiting):
        w.silent(server, one, [one.seal(CHALLENGE, bytes(308)), one.seal(DENIED)], "a packet of the wrong direction")
    w.echo(server, client)
    w.respond(server, waiting)


@check("S-PKT-04", PACKETS, MUST, "the prefix byte is authenticated: a payload packet can not be made a disconnect packet or a keep-alive")
def _(w):
    server = w.server()
    client = w.join(server)
    for kind, body in ((KEEP_ALIVE, b"x" * 8), (PAYLOAD, b"x" * 8), (DISCONNECT, b"")):
        data = client.seal(kind, body)
        for other in (KEEP_ALIVE, PAYLOAD, DISCONNECT):
            if other != kind and (kind != DISCONNECT or other == PAYLOAD):
                w.silent(server, client, [bytes([data[0] & 0xF0 | other]) + data[1:]], "a packet of another type than it was sealed as")
    disconnect = client.seal(DISCONNECT)  # the one body that both a payload without data and a disconnect packet have
    w.silent(server, client, [bytes([disconnect[0] & 0xF0 | PAYLOAD]) + disconnect[1:]], "a disconnect packet as a payload")
    empty = client.seal(PAYLOAD, b"")
    w.silent(server, client, [bytes([empty[0] & 0xF0 | DISCONNECT]) + empty[1:]], "a payload as a disconnect packet")
    w.echo(server, client)


@check("S-PKT-05", PACKETS, MUST, "a packet with one changed bit anywhere is ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    data = client.seal(PAYLOAD, b"flipped")
    w.silent(server, client, [changed(data, at, 1 << at % 8) for at in range(len(data))], "a changed packet")
    client.send_raw(data, client.server)
    w.until(lambda: server.payloads() == [b"flipped"], 2, "the packet as it was")


@check("S-PKT-06", PACKETS, MUST, "the protocol id is authenticated in every packet")
def _(w):
    server = w.server()
    client = w.join(server)
    for bit in (0, 63):
        w.silent(server, client, [packet_to(client, PAYLOAD, b"other", protocol_id=w.protocol_id ^ 1 << bit)], "a packet of another protocol id")
    w.echo(server, client)


@check("S-PKT-07", PACKETS, MUST, "the version is authenticated in every packet")
def _(w):
    server = w.server()
    client = w.join(server)
    w.silent(server, client, [packet_to(client, PAYLOAD, b"other", version=version) for version in (b"NETCODE 1.01\0", b"")],
             "a packet of another version")
    w.echo(server, client)


@check("S-PKT-08", READING, MUST, "keep-alives of 0, 7 and 9 bytes and disconnect packets with data are ignored")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    w.silent(server, client, [client.seal(DISCONNECT, bytes(size)) for size in (1, 8)], "a disconnect packet with data")
    w.echo(server, client)
    client.muted, start = True, time.monotonic()
    while not server.leaves and time.monotonic() - start < 4:
        for size in (0, 7, 9):
            client.send(KEEP_ALIVE, bytes(size))
        w.wait(0.1)
    w.check(server.leaves, "keep-alives of the wrong size kept the client connected for 4 s")


@check("S-PKT-09", CLIENTS, MUST, "packets of a session are ignored from another address, and cost it nothing")
def _(w):
    server = w.server()
    client = w.join(server)
    elsewhere = w.client(client.minted, manual=True)
    fresh, end = client.seal(PAYLOAD, b"fresh"), client.seal(DISCONNECT)
    w.silent(server, elsewhere, [fresh, end], "a packet from another address")
    client.send_raw(fresh, client.server)
    w.until(lambda: server.payloads() == [b"fresh"], 2, "the same packet from the client itself")


@check("S-PKT-10", READING, MUST, "empty datagrams between packets cost no packet")
def _(w):
    server, outsider = w.server(), w.add(Endpoint())
    client = w.join(server)
    for number in range(200):
        client.send(PAYLOAD, b"%d" % number)
        outsider.send_raw(b"", client.server)
        client.send_raw(b"", client.server)
        if number % 10 == 9:
            w.wait(0.012)
    w.until(lambda: len(set(server.payloads())) >= 198, 3, "99 % of 200 payloads")


@check("S-PKT-11", READING, MUST, "datagrams of 1226 to 65507 bytes are ignored and cost no packet")
def _(w):
    server, outsider = w.server(), w.add(Endpoint())
    client = w.join(server)
    for number in range(60):
        client.send(PAYLOAD, b"%d" % number)
        outsider.send_raw(bytes([number]) + os.urandom((1225, 1500, 3000, 65506)[number % 4]), client.server)
        if number % 10 == 9:
            w.wait(0.03)
    w.until(lambda: len(set(server.payloads())) >= 59, 3, "59 of 60 payloads")


@check("S-PKT-12", READING, MUST, "two thousand datagrams of noise end neither the server nor a connection")
def _(w):
    server, outsider = w.server(), w.add(Endpoint())
    client = w.join(server)
    for number in range(2000):
        size = (1, 18, 25, 33, 100, 1078, 1225)[number % 7]
        # A quarter comes from the client's address, and half of that has a header that could be its next packet's.
        noise = changed(client.seal(PAYLOAD, os.urandom(20), sequence=client.sequence + 9), 20) if number % 8 == 3 else os.urandom(size)
        (client if number % 4 == 3 else outsider).send_raw(noise, server.address)
        if number % 50 == 49:
            w.wait(0.04)
    w.wait(0.5)
    w.check(client.state == CONNECTED and not server.leaves and not outsider.heard, "the noise was answered, or ended a connection")
    w.echo(server, client)


@check("S-PKT-13", READING, MUST, "sequence lengths of 0 and of 9 to 15 bytes are ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    waiting = w.challenged(server, base=0, count_requests=False)
    w.silent(server, waiting, [waiting.seal(RESPONSE, waiting.challenges[0], sequence=0, sequence_bytes=0)], "sequence 0 in no bytes")
    odd = [client.seal(PAYLOAD, b"odd", sequence_bytes=count) for count in (9, 10, 15)]
    odd += [client.seal(PAYLOAD, b"odd")[:1] + bytes(60)]
    w.silent(server, client, odd, "such a sequence length")
    w.echo(server, client)


@check("S-PKT-14", PACKETS, MUST, "a server's own packets that are sent back to it are ignored")
def _(w):
    server = w.server()
    client = w.join(server)
    server.tell("send %d 010203" % client.slot)
    w.until(lambda: client.payloads, 3, "a payload")
    w.silent(server, client, list(client.heard), "a reflected packet")
    w.echo(server, client)


# ---- disconnecting ----


@check("S-DIS-01", CLIENTS, MUST, "one disconnect packet of a client is enough to end its session")
def _(w):
    server = w.server()
    others, client = [w.join(server)], w.join(server)
    others.append(w.join(server))
    client.disconnect(1)
    w.until(lambda: server.leaves, 1.5, "`disconnected`")
    w.wait(0.2)
    w.check(server.leaves == [client.slot], "slots %r ended, not %d alone" % (server.leaves, client.slot))
    w.check(all(one.state == CONNECTED for one in others), "another client was disconnected too")


@check("S-DIS-02", CLIENTS, MUST, "ten disconnect packets are one end, and the slot is free for the next client")
def _(w):
    server = w.server(slots=1)
    client = w.join(server)
    client.disconnect()
    w.until(lambda: server.leaves, 2, "`disconnected`")
    w.join(server)
    w.check(server.leaves == [0], "%d ends" % len(server.leaves))


@check("S-DIS-03", CLIENTS, MUST, "a server that disconnects a client sends it more than one disconnect packet")
def _(w):
    server = w.server()
    other, client = w.join(server), w.join(server)
    server.tell("disconnect %d" % client.slot)
    w.until(lambda: client.state == DISCONNECTED, 3, "a disconnect packet")
    w.wait(0.3)
    w.check(len(client.of(DISCONNECT)) >= 2, "one packet alone")
    w.check(other.state == CONNECTED, "another client was disconnected too")


@check("S-DIS-04", CLIENTS, SHOULD, "there are ten of them, as deployed servers send")
def _(w):
    server = w.server()
    client = w.join(server)
    server.tell("disconnect %d" % client.slot)
    w.until(lambda: client.state == DISCONNECTED, 3, "a disconnect packet")
    w.wait(0.4)
    w.note = "%d packets" % len(client.of(DISCONNECT))
    w.check(len(client.of(DISCONNECT)) == 10, w.note)


@check("S-DIS-05", CLIENTS, MUST, "nothing follows the disconnect packets, and the slot is free for another client")
def _(w):
    server = w.server(slots=1)
    client = w.join(server)
    server.tell("disconnect %d" % client.slot)
    w.until(lambda: client.state == DISCONNECTED, 3, "a disconnect packet")
    w.wait(0.6)
    w.check(client.packets[-1].kind == DISCONNECT, "%r came after it" % client.packets[-1])
    w.join(server)


@check("S-DIS-06", CLIENTS, SHOULD, "a server that stops notifies its clients with disconnect packets")
def _(w):
    server = w.server()
    client = w.join(server)
    w.end(server)
    w.until(lambda: client.state == DISCONNECTED, 1.5, "a disconnect packet")


@check("S-DIS-07", CLIENTS, MUST, "a disconnect packet under another session's key ends nothing")
def _(w):
    server = w.server()
    victim, other = w.join(server), w.join(server)
    w.silent(server, other, [victim.seal(DISCONNECT)], "a disconnect packet of another session")
    w.silent(server, victim, [packet_to(victim, DISCONNECT, key=bytes(32))], "a forged disconnect packet")


@check("S-DIS-08", CLIENTS, SHOULD, "a client that has left is sent nothing more")
def _(w):
    server = w.server()
    client = w.join(server)
    client.disconnect()
    w.until(lambda: server.leaves, 2, "`disconnected`")
    w.wait(0.1)
    w.check(not client.of(DISCONNECT), "%d disconnect packets" % len(client.of(DISCONNECT)))
    count = len(client.heard)
    w.never(lambda: len(client.heard) > count, 0.6, "a packet for a client that has left")


# ---- replay protection ----


@check("S-REP-01", REPLAY, MUST, "a packet that is sent again is delivered once")
def _(w):
    server = w.server()
    client = w.join(server)
    recorded = [client.send(PAYLOAD, b"%d" % number) for number in range(20)]
    w.until(lambda: len(server.received) == 20, 2, "twenty payloads")
    w.silent(server, client, recorded + recorded[::-1], "a repeated packet")


@check("S-REP-02", REPLAY, MUST, "packets out of order within 32 sequences are accepted, each once")
def _(w):
    server = w.server()
    client = w.join(server, base=1000)
    client.muted, base = True, client.sequence + 100
    order = [base + step for step in (0, -1, 5, 3, 4, 31, 1, 2, 30)]
    for number in order * 2:
        client.send_raw(client.seal(PAYLOAD, b"%d" % number, sequence=number), client.server)
    w.until(lambda: len(server.received) >= len(order), 2, "all nine")
    w.wait(0.1)
    w.check(server.payloads() == [b"%d" % number for number in order], "%r" % server.payloads())


@check("S-REP-03", REPLAY, SHOULD, "the window is 256 packets or more: one that is 250 late is accepted")
def _(w):
    server = w.server()
    client = w.join(server, base=1000)
    client.muted, base = True, client.sequence + 1000
    client.send(PAYLOAD, b"new", sequence=base)
    client.send(PAYLOAD, b"late", sequence=base - 250)
    w.until(lambda: server.payloads() == [b"new", b"late"], 2, "the late one")


@check("S-REP-04", REPLAY, MUST, "a packet that is 5000 late is refused, also if it was never seen")
def _(w):
    server = w.server()
    client = w.join(server, base=1000)
    client.muted, base = True, client.sequence + 20000
    client.send(PAYLOAD, b"new", sequence=base)
    w.until(lambda: server.payloads() == [b"new"], 2, "the newest")
    w.silent(server, client, [client.seal(PAYLOAD, b"old", sequence=base - late) for late in (5000, 10000, 19000)], "a packet that is 5000 late")


@check("S-REP-05", REPLAY, MUST, "after a jump forward, packets from before it are still known")
def _(w):
    server = w.server()
    client = w.join(server, base=1000)
    client.muted, base = True, client.sequence + 100
    old = [client.send(PAYLOAD, b"%d" % number, sequence=base + number) for number in range(10)]
    w.until(lambda: len(server.received) == 10, 2, "ten payloads")
    for jump in (40, 100000):
        client.send(PAYLOAD, b"jump %d" % jump, sequence=base + jump)
        w.until(lambda: server.payloads()[-1] == b"jump %d" % jump, 2, "the jump by %d" % jump)
        w.silent(server, client, old, "a repeated packet after a jump by %d" % jump)


@check("S-REP-06", REPLAY, MUST, "the window moves only for authentic packets")
def _(w):
    server = w.server()
    client = w.join(server, base=1000)
    client.muted = True
    for ahead in (300, 1 << 20, 1 << 31):
        forged_one = client.seal(PAYLOAD, b"forged", sequence=client.sequence + ahead)
        w.silent(server, client, [changed(forged_one, len(forged_one) - 1)], "a forged packet")
        client.send(PAYLOAD, b"after %d" % ahead)
        w.until(lambda: server.payloads()[-1:] == [b"after %d" % ahead], 2, "a packet after a forged one that was %d ahead" % ahead)


@check("S-REP-07", REPLAY, MUST, "keep-alives are protected too: a repeated one does not refresh the timeout")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    recorded, client.muted, start = client.send_keep_alive(), True, time.monotonic()
    while not server.leaves and time.monotonic() - start < 4:
        client.send_raw(recorded, client.server)
        w.wait(0.1)
    w.check(server.leaves, "repeated keep-alives kept the client connected for 4 s")


@check("S-REP-08", REPLAY, SHOULD, "a whole recorded session that is replayed from its address after its end connects and delivers nothing")
def _(w):
    server = w.server()
    client = w.join(server)
    for number in range(5):
        client.send(PAYLOAD, b"secret %d" % number)
    w.until(lambda: len(server.received) == 5, 2, "five payloads")
    client.disconnect()
    w.until(lambda: server.leaves, 2, "`disconnected`")
    connects, payloads = len(server.connects), len(server.received)
    for data in list(client.sent) * 2:
        client.send_raw(data, client.server)
        w.wait(0.01)
    w.control(server)
    w.wait(0.2)
    w.check(len(server.connects) == connects, "the recording connected")
    w.check(len(server.received) == payloads, "old payloads were delivered")


@check("S-REP-09", REPLAY, MUST, "the highest sequence, 2^64 - 1, is accepted at most once")
def _(w):
    server = w.server()
    client = w.join(server, base=SEQUENCE_LIMIT - 200)
    client.muted = True
    for _ in range(3):
        client.send_raw(client.seal(PAYLOAD, b"last", sequence=SEQUENCE_LIMIT - 1), client.server)
    w.control(server)
    w.wait(0.1)
    w.check(len(server.received) <= 1, "it was delivered %d times" % len(server.received))


# ---- timeouts ----


def silence_of(w, server, client):
    """From the client's last packet to its end, in seconds."""
    client.send_keep_alive()
    client.muted, start = True, time.monotonic()
    w.until(lambda: client.slot in server.leaves, 6, "`disconnected` after the token's timeout of 1 s")
    return time.monotonic() - start


@check("S-TIM-01", CLIENTS, MUST, "a client that is silent for the token's timeout of one second is disconnected (0.8 to 2.5 s)")
def _(w):
    server = w.server()
    seconds = silence_of(w, server, w.join(server, w.mint([server], timeout=1)))
    w.note = "after %.2f s" % seconds
    w.check(0.8 <= seconds <= 2.5, w.note)


@check("S-TIM-02", CLIENTS, SHOULD, "a client that timed out is sent nothing more, no disconnect packets either")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    silence_of(w, server, client)
    w.wait(0.1)
    count = len(client.heard)
    w.never(lambda: len(client.heard) > count, 0.5, "a packet after the timeout")
    w.check(not client.of(DISCONNECT), "%d disconnect packets" % len(client.of(DISCONNECT)))


@check("S-TIM-03", TOKENS, MUST, "the timeout is each token's own: one of 1 s ends, one of 65,537 s does not")
def _(w):
    server = w.server()
    brief, patient = (w.join(server, w.mint([server], timeout=timeout)) for timeout in (1, 65537))
    patient.send_keep_alive()
    patient.muted = True
    silence_of(w, server, brief)
    w.never(lambda: patient.slot in server.leaves, 1.5, "the client with a timeout of 65,537 s ended")


@check("S-TIM-04", TOKENS, MUST, "a negative timeout disables it")
def _(w):
    server = w.server()
    clients = [w.join(server, w.mint([server], timeout=timeout)) for timeout in (-1, -2147483648)]
    for client in clients:
        client.send_keep_alive()
        client.muted = True
    w.never(lambda: server.leaves, 4, "a client without timeout ended")
    clients[0].send(PAYLOAD, b"still here")
    w.until(lambda: server.payloads() == [b"still here"], 2, "a payload after the silence")


@check("S-TIM-05", TOKENS, SHOULD, "a timeout of 0 disables it too, as in deployed implementations")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=0))
    client.send_keep_alive()
    client.muted = True
    w.never(lambda: server.leaves, 3, "the client ended")
    w.echo(server, client)


@check("S-TIM-06", CLIENTS, MUST, "payloads alone keep a client connected")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    client.muted = True
    for number in range(25):
        client.send(PAYLOAD, b"%d" % number)
        w.wait(0.1)
    w.check(not server.leaves, "it was disconnected")


@check("S-TIM-07", REQUESTS, MUST, "a handshake that is not finished within the token's timeout has ended: a response after 2 s is ignored")
def _(w):
    server = w.server()
    client = w.challenged(server, w.mint([server], timeout=1))
    w.wait(2.2)
    w.silent(server, client, [client.seal(RESPONSE, client.challenges[0])], "a response after the timeout")


@check("S-TIM-08", CLIENTS, MUST, "a client that is accepted and never heard from ends after the token's timeout")
def _(w):
    server = w.server()
    client = w.challenged(server, w.mint([server], timeout=1))
    w.respond(server, client)
    w.until(lambda: server.leaves == [client.slot], 4, "`disconnected`")


@check("S-TIM-09", CLIENTS, MUST, "noise from a client's address does not refresh its timeout")
def _(w):
    server = w.server()
    client = w.join(server, w.mint([server], timeout=1))
    client.send_keep_alive()
    client.muted, start = True, time.monotonic()
    while not server.leaves and time.monotonic() - start < 4:
        client.send_raw(changed(client.seal(KEEP_ALIVE, bytes(8)), 20), client.server)
        client.send_raw(os.urandom(100), client.server)
        w.wait(0.1)
    w.check(server.leaves, "noise kept the client connected for 4 s")


# ---- nonces, addresses ----


@check("S-NON-01", REPLAY, MUST, "in a session no key and sequence seals two packets: challenges, denial, keep-alives, payloads, disconnect packets")
def _(w):
    server = w.server()
    client = w.challenged(server)
    w.ask(client, lambda: len(client.challenges) >= 3, "three challenges")
    w.respond(server, client)
    for number in range(10):
        server.tell("send %d %02x" % (client.slot, number))
    w.until(lambda: len(client.payloads) == 10, 3, "ten payloads")
    w.wait(0.3)
    server.tell("disconnect %d" % client.slot)
    w.until(lambda: client.of(DISCONNECT), 3, "a disconnect packet")
    w.wait(0.2)
    w.once_only(client.token.to_client_key)


@check("S-NON-02", REPLAY, MUST, "the sequence grows by one with each packet to a client")
def _(w):
    server = w.server()
    client = w.join(server)
    for number in range(5):
        server.tell("send %d %02x" % (client.slot, number))
    w.wait(0.5)
    own = [packet.sequence for packet in client.packets if packet.kind not in (CHALLENGE, DENIED)]
    w.check(len(own) >= 7 and own == list(range(own[0], own[0] + len(own))), "%r" % own[:12])


@check("S-NON-03", REPLAY, SHOULD, "denials to one token differ in their sequences, from each other and from its challenge")
def _(w):
    server = w.server(slots=1)
    second = w.challenged(server)
    first = w.challenged(server)
    w.respond(server, first)
    for _ in range(3):
        second.send_response(second.challenges[0])
        w.wait(0.15)
    w.until(lambda: second.of(DENIED), 3, "a denial")
    numbers = [packet.sequence for packet in second.of(DENIED) + second.of(CHALLENGE)]
    w.check(len(set(numbers)) == len(numbers), "%r" % numbers)


@check("S-NON-04", REPLAY, SHOULD, "a server that is started again repeats no key and sequence with a token that was used before")
def _(w):
    server = w.server()
    client = w.join(server)
    server.tell("send %d 0101" % client.slot)
    w.until(lambda: client.payloads, 3, "a payload from the first process")
    w.wait(0.3)
    w.end(server)
    again = w.server(address=server.address)
    returned = w.client(client.minted)
    w.wait(0.8)
    if returned.state == CONNECTED:
        for number in range(8):
            again.tell("send %d %02x%02x" % (w.connect_of(again, client.minted.client_id)[0], number, number))
        w.wait(0.4)
    w.note = "it connects with the used token" if returned.state == CONNECTED else "it refuses the used token"
    w.once_only(client.token.to_client_key)


@check("S-ADR-01", TOKENS, MUST, "a server at an IPv6 address is found in the token as eight little-endian words, and serves")
def _(w):
    server = w.server(host="::1")
    client = w.join(server, host="::1")
    w.echo(server, client)


@check("S-ADR-02", TOKENS, MUST, "a token that has the server's IPv6 address in network order names another server")
def _(w):
    server = w.server(host="::1")
    token = w.mint([server])
    tail = peer.write_addresses([server.address])
    swapped = struct.pack("<I", 1) + server.address.write(network_order=True)
    plain = token.private_plain()[:1008].replace(tail, swapped)
    token.sealed_private = seal_xaead(w.key, token.nonce, token.associated(), plain)
    client = w.client(w.mint([server]), manual=True, host="::1")
    w.silent(server, client, [token.request()], "such a token")
