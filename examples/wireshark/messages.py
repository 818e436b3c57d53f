#!/usr/bin/env python3
"""Makes messages.pcap and messages.keys anew, as sample.sh makes the sample: a session of messages on loopback, captured by the relay.

    python3 examples/wireshark/messages.py [FOLDER]    from anywhere; writes beside itself, or into FOLDER

Messages of each kind, one in fragments, a stream, one that is cancelled and one that is refused, over a link that loses some.
Its keys are those of this one session, made for it and used for nothing else.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "examples", "python"))

CANCELLED, REFUSED = 8, 9


class Discard:
    """What a stream is written to, where it is not read."""

    def write(self, offset, data):
        pass


def accept_stream(_channel, _size, tag):
    return None if tag == REFUSED else Discard()


def send_all(netcode, messages):
    kinds = netcode.MessageKind
    for kind in (kinds.UNRELIABLE, kinds.UNRELIABLE_SEQUENCED, kinds.RELIABLE, kinds.RELIABLE_ORDERED, kinds.RELIABLE_SEQUENCED):
        messages.send(b"this is " + kind.name.lower().encode(), channel=kind, kind=kind)
    messages.send(b"too late", kind=kinds.RELIABLE, ttl_seconds=0.03)  # the round trip is longer: it is cancelled
    messages.send(b"also too late" * 150, kind=kinds.RELIABLE, ttl_seconds=0.03)
    messages.send(b"large " * 400, channel=5, kind=kinds.RELIABLE_ORDERED)
    messages.send_stream(b"stream" * 400, tag=7, channel=6, receipt=7)
    messages.send_stream(b"cancel" * 4000, tag=CANCELLED, receipt=CANCELLED)
    messages.send_stream(b"refuse" * 20, tag=REFUSED, receipt=REFUSED)


def play(netcode, server, client, seconds):
    options = dict(ping_seconds=0.3, accept_stream=accept_stream, congestion=netcode.Congestion.NONE)
    with netcode.Messages(**options) as ours, netcode.Messages(**options) as theirs:
        start, ticks = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            server.update()
            client.update()
            theirs.server_receive(server, 0)
            ours.client_receive(client)
            for message in theirs.received():
                theirs.send(message.data[:20], message.channel, message.kind)
            list(ours.received())
            list(ours.events())
            if client.connected:
                ticks += 1
                if ticks == 1:
                    send_all(netcode, ours)
                if ticks == 2:
                    ours.cancel_stream(CANCELLED)
                for number in range(60 if ticks == 20 else 0):  # more packets at once than the ack bits reach
                    ours.send(b"%d" % number, kind=netcode.MessageKind.UNRELIABLE)
                    ours.client_send(client)
            theirs.server_send(server, 0)
            ours.client_send(client)
            client.wait(1 / 60)


def main():
    out = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else HERE)
    subprocess.run(["make", "-s", "build/libnetcode.so", "build/token", "build/relay"], cwd=TOP, check=True)
    os.environ.setdefault("NETCODE_LIBRARY", os.path.join(TOP, "build", "libnetcode.so"))
    import netcode

    with tempfile.TemporaryDirectory() as work:
        key, key_file, pcap = os.urandom(32), os.path.join(work, "game.key"), os.path.join(work, "messages.pcap")
        with open(key_file, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(key)
        with netcode.Server("127.0.0.1:0", protocol_id=1, private_key=key) as server, netcode.Client("127.0.0.1:0") as client:
            server.start(4)
            at = "127.0.0.1:%d" % server.port
            command = "build/relay --listen 127.0.0.1:0 --delay 20 --loss 6 --seed 4 --seconds 20".split() + ["--to", at, "--pcap", pcap]
            with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, universal_newlines=True) as relay:
                try:
                    entrance = re.search(r"127\.0\.0\.1:\d+", relay.stdout.readline()).group(0)
                    token = netcode.generate_connect_token([entrance], internal_addresses=[at], client_id=1001, protocol_id=1, private_key=key)
                    client.connect(token)
                    play(netcode, server, client, 1.5)
                finally:
                    relay.terminate()
        keylog = ["build/token", "keylog", "--key-file", key_file, "--capture", pcap]
        keys = subprocess.run(keylog, cwd=TOP, check=True, stdout=subprocess.PIPE).stdout
        with open(pcap, "rb") as file:
            capture = file.read()
    for name, data in (("messages.pcap", capture), ("messages.keys", keys)):
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)
    print("%s: %d bytes" % (os.path.join(out, "messages.pcap"), len(capture)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
