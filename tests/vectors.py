#!/usr/bin/env python3
"""Prints tests/unit/vectors.inc: tokens, challenges and packets sealed by the independent codec of peer.py.

    python3 tests/vectors.py > tests/unit/vectors.inc

The output is the same every time: keys, nonces and user data come from SHA-256 of their own names.
"""
import hashlib
import struct
import sys

sys.dont_write_bytecode = True  # The checkout stays clean.

import peer
from peer import Address

NEVER = peer.SEQUENCE_LIMIT - 1
PROTOCOL_ID = 0x1122334455667788
SEQUENCES = (0, 1, 255, 256, 1000, (1 << 32) - 1, 1 << 32, 1 << 63, NEVER)
FOUR, SIX = Address("127.0.0.1", 40000), Address("::1", 50000)

HEAD = """\
/*  Vectors for netcode 1.02, a line each, sealed by the independent codec of tests/peer.py. Generated, do not edit:

        python3 tests/vectors.py > tests/unit/vectors.inc

    tests/unit/vectors.c includes this file, and says what stands in a line. */
"""


def made(name, count):
    """`count` bytes that are always the same for one name."""
    data, block = b"", 0
    while len(data) < count:
        data += hashlib.sha256(b"netcode vectors/%s/%d" % (name.encode(), block)).digest()
        block += 1
    return data[:count]


def array(data):
    """An initialiser without its trailing zeros, which the language fills in."""
    return "{%s}" % ",".join(str(byte) for byte in data.rstrip(b"\0") or b"\0")


def address_row(address):
    kind, wire = (2 if len(address.raw) == 16 else 1), address.write()
    return [str(kind), array(address.raw), str(address.port), str(len(wire)), array(wire)]


def table(name, kind, rows):
    count = name.upper()
    print("\n#define %s %d" % (count, len(rows)))
    print("static const struct %s %s[%s] = {" % (kind, name, count))
    for row in rows:
        print("{%s}," % ",".join(row))
    print("};")


def text(name):
    return '"%s"' % name


def unsigned(number):
    return "%dULL" % number


def many_addresses(count):
    """Alternating families; the hosts are documentation addresses, that no one owns."""
    return [Address("2001:db8:%x::%x:%x" % (number, 0xabcd, number), 1 + number * 2114) if number % 2
            else Address("192.0.2.%d" % number, 65535 - number) for number in range(count)]


def token_rows():
    all_words = Address("2001:db8:1234:5678:9abc:def0:1357:2468", 4660)
    cases = (
        ("one IPv4 address", [FOUR], 1000, 1045, 10, made("user", 256)),
        ("one IPv6 address", [SIX], 1000, 1045, 10, made("user six", 256)),
        ("IPv4 then IPv6", [FOUR, SIX], 1700000000, 1700000030, 5, bytes(256)),
        ("IPv6 then IPv4, no timeout (-1)", [all_words, Address("255.254.253.252", 65535)], 1, 2, -1, b"\xff" * 256),
        ("timeout 0", [FOUR], 0, 0, 0, bytes(range(256))),
        ("timeout 2^31-1", [Address("0.0.0.1", 1)], 0, 1, (1 << 31) - 1, b"\x80" + bytes(254) + b"\x01"),
        ("timeout -2^31", [all_words], 7, 8, -(1 << 31), b"text in front".ljust(256, b"\0")),
        ("never expires", [FOUR], 1700000000, NEVER, 10, b"\xaa\x55" * 128),
        ("32 IPv4 addresses", [Address("198.51.100.%d" % n, 1024 + n) for n in range(32)], 5, 6, 10, made("u32", 256)),
        ("32 IPv6 addresses", [Address("2001:db8::%x" % (n * 257), 65504 + n) for n in range(32)], 5, 6, 10,
         made("u326", 256)),
        ("32 mixed addresses, created never", many_addresses(32), NEVER, NEVER, 1, made("mixed", 256)),
        ("3 mixed addresses, high numbers", many_addresses(3), 1 << 40, 1 << 63, 0x12345678, made("three", 256)),
    )
    rows = []
    for number, (name, addresses, create, expire, timeout, user_data) in enumerate(cases):
        private_key, client_id = made(name + "/private", 32), struct.unpack("<Q", made(name + "/id", 8))[0]
        client_id = (0, 1, NEVER)[number] if number < 3 else client_id
        protocol_id = (PROTOCOL_ID, 0, NEVER)[number] if number < 3 else PROTOCOL_ID + number
        token = peer.ConnectToken(protocol_id, client_id, addresses, create, expire, timeout=timeout,
                                  user_data=user_data, to_server_key=made(name + "/to server", 32),
                                  to_client_key=made(name + "/to client", 32), nonce=made(name + "/nonce", 24))
        sealed = token.seal(private_key)
        timeout_text = "(-2147483647 - 1)" if timeout == -(1 << 31) else str(timeout)
        places = "{%s}" % ",".join("{%s}" % ",".join(address_row(address)) for address in addresses)
        rows.append([text(name), unsigned(protocol_id), unsigned(create), unsigned(expire), array(token.nonce),
                     array(private_key), unsigned(client_id), timeout_text, str(len(addresses)), places,
                     array(token.to_server_key), array(token.to_client_key), array(user_data),
                     array(token.private_plain()), array(sealed), array(token.request())])
    return rows


def challenge_rows():
    rows = []
    for sequence in SEQUENCES:
        name, client_id = "challenge sequence %d" % sequence, (sequence * 0x9e3779b97f4a7c15 + 1) & NEVER
        key, user_data = made(name, 32), made(name + "/user", 256)
        plain = struct.pack("<Q", client_id) + user_data
        sealed = peer.seal_challenge(key, sequence, client_id, user_data)
        rows.append([text(name), array(key), unsigned(sequence), unsigned(client_id), array(user_data), array(plain),
                     array(sealed)])
    return rows


def body_for(kind, size, name):
    if kind == peer.KEEP_ALIVE:
        return struct.pack("<II", 3, 64)
    return made(name, size)


def packet_row(name, to_server, kind, sequence, sequence_bytes, size):
    key, body = made(name + "/key", 32), body_for(kind, size, name)
    sealed = peer.seal_packet(kind, body, key, PROTOCOL_ID, sequence, sequence_bytes)
    allowed = peer.TO_SERVER if to_server else peer.TO_CLIENT
    packet = peer.read_packet(sealed, key, PROTOCOL_ID, allowed)
    assert (packet.kind, packet.sequence, packet.body) == (kind, sequence, body)
    return [text(name), str(int(to_server)), str(kind), array(key), unsigned(PROTOCOL_ID), unsigned(sequence),
            str(packet.sequence_bytes), str(len(body)), array(body), str(len(sealed)), array(sealed)]


def packet_rows():
    rows = []
    for to_server, kinds in ((True, peer.TO_SERVER), (False, peer.TO_CLIENT)):
        way = "to server" if to_server else "to client"
        for kind in sorted(kinds - {peer.REQUEST}):
            size = 40 if kind == peer.PAYLOAD else peer.BODY_BYTES[kind][0]
            for sequence in SEQUENCES:
                name = "%s %s, sequence %d" % (peer.PACKET_NAMES[kind], way, sequence)
                rows.append(packet_row(name, to_server, kind, sequence, None, size))
            for sequence, count in ((0, 2), (0, 8), (255, 2), (1000, 5), (1 << 32, 8)):
                name = "%s %s, sequence %d in %d bytes" % (peer.PACKET_NAMES[kind], way, sequence, count)
                rows.append(packet_row(name, to_server, kind, sequence, count, size))
        for size, sequence in ((1, 77), (100, 65535), (1199, 1 << 47), (1200, 12), (1200, NEVER)):
            name = "payload %s of %d bytes, sequence %d" % (way, size, sequence)
            rows.append(packet_row(name, to_server, peer.PAYLOAD, sequence, None, size))
    return rows


def refused_rows():
    """Each is sealed with the right key, so that only what `why` names is wrong with it."""
    cases = [("sequence 0 in zero bytes: " + peer.PACKET_NAMES[kind], kind, peer.BODY_BYTES[kind][0], 0, 0)
             for kind in (peer.DENIED, peer.CHALLENGE, peer.RESPONSE, peer.KEEP_ALIVE, peer.PAYLOAD, peer.DISCONNECT)]
    cases += [("%d sequence bytes" % count, peer.PAYLOAD, 40, 5, count) for count in (9, 15)]
    sizes = ((peer.DENIED, 1), (peer.DENIED, 8), (peer.CHALLENGE, 300), (peer.CHALLENGE, 307), (peer.CHALLENGE, 309),
             (peer.RESPONSE, 0), (peer.RESPONSE, 307), (peer.RESPONSE, 309), (peer.KEEP_ALIVE, 0),
             (peer.KEEP_ALIVE, 7), (peer.KEEP_ALIVE, 9), (peer.PAYLOAD, 0), (peer.PAYLOAD, 1201),
             (peer.PAYLOAD, 1300), (peer.DISCONNECT, 1), (peer.DISCONNECT, 8))
    cases += [("%s of %d bytes" % (peer.PACKET_NAMES[kind], size), kind, size, 9, None) for kind, size in sizes]
    cases += [("type %d" % kind, kind, 8, 9, None) for kind in (7, 8, 15)]
    cases += [("goes the other way: " + peer.PACKET_NAMES[kind], kind, peer.BODY_BYTES[kind][0], 9, None)
              for kind in (peer.DENIED, peer.CHALLENGE, peer.RESPONSE)]
    rows = []
    for why, kind, size, sequence, count in cases:
        ways = (True, False)
        if why.startswith("goes"):
            ways = (kind != peer.RESPONSE,)
        elif kind < 7 and kind not in (peer.KEEP_ALIVE, peer.PAYLOAD, peer.DISCONNECT):
            ways = (kind == peer.RESPONSE,)
        for to_server in ways:
            key = made("refused", 32)
            sealed = peer.seal_packet(kind, made("refused", size), key, PROTOCOL_ID, sequence, count)
            allowed = peer.TO_SERVER if to_server else peer.TO_CLIENT
            assert peer.refused(peer.read_packet, sealed, key, PROTOCOL_ID, allowed), why
            rows.append([text(why), str(int(to_server)), array(key), unsigned(PROTOCOL_ID), str(len(sealed)),
                         array(sealed)])
    return rows


def main():
    print(HEAD, end="")
    addresses = [FOUR, SIX, Address("0.0.0.0", 1), Address("255.255.255.255", 65535), Address("1.2.3.4", 0x1234),
                 Address("2001:db8:1234:5678:9abc:def0:1357:2468", 0x1234), Address("fe80::1", 1)]
    table("vector_addresses", "vector_address_t", [address_row(address) for address in addresses])
    table("vector_tokens", "vector_token_t", token_rows())
    table("vector_challenges", "vector_challenge_t", challenge_rows())
    table("vector_packets", "vector_packet_t", packet_rows())
    table("vector_refused_packets", "vector_refused_packet_t", refused_rows())


if __name__ == "__main__":
    main()
