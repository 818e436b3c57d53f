#!/usr/bin/env python3
"""A driver in Python, of the client and the server in tests/peer.py: the example for drivers of other implementations."""
import os, queue, select, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from peer import PAYLOAD, Address, ConnectToken, Ignored, PeerClient, PeerServer

lines, server, client, slots, states = queue.Queue(), None, None, [], 0


def read():  # in a thread, because reading blocks; the end of the input ends the driver, too
    for line in sys.stdin:
        lines.put(line.split())
    lines.put(["stop"])


def carry_out(verb, *words):
    global server, client, slots
    if verb == "server":
        server = PeerServer(bytes.fromhex(words[2]), int(words[1]), int(words[3]))
        server.address, slots = server.open(Address.parse(words[0])), [None] * int(words[3])
        print("listening")
    elif verb == "client":
        try:
            client = PeerClient(bytes.fromhex(words[1]), host=Address.parse(words[0]).host)
        except Ignored:
            print("state -5")
    elif verb == "generate":
        expire = 2**64 - 1 if int(words[3]) < 0 else int(time.time()) + int(words[3])
        token = ConnectToken(int(words[0]), int(words[2]), [Address.parse(text) for text in words[6].split(",")],
                             expire=expire, timeout=int(words[4]), user_data=bytes.fromhex(words[5]))
        print("token", token.seal(bytes.fromhex(words[1])).hex())
    elif verb == "send":
        data = bytes.fromhex(words[1])
        if len(data) > 1200:
            print("error the payload is too large")
        else:
            client.send(PAYLOAD, data) if client else server.send_payload(server.slots[int(words[0])], data)
    elif verb in ("disconnect", "stop"):
        leaving = server.clients() if server and verb == "stop" else [server.slots[int(words[0])]] if server else []
        client.disconnect() if client and verb == "disconnect" else [server.kick(slot) for slot in leaving]
    else:
        print("unsupported", verb)
    return verb != "stop"


threading.Thread(target=read, daemon=True).start()
running = True
while running:
    endpoint = server or client
    select.select(endpoint.filenos() if endpoint else [], [], [], 0.005)
    if endpoint:
        endpoint.receive()
        endpoint.tick(time.monotonic())
    for index, slot in enumerate(server.slots if server else []):
        before, slots[index] = slots[index], slot
        if before and slot is not before:
            print("disconnected", index)
        if slot and slot is not before:
            print("connected", index, slot.token.client_id, slot.token.user_data.hex())
        while slot and slot.payloads:
            print("payload", index, slot.payloads.pop(0).hex())
    for state in client.state_log[states:] if client else []:
        print("state", state, *([client.index, client.max_clients] if state == 3 else []))
        states += 1
    while client and client.payloads:
        print("payload 0", client.payloads.pop(0).hex())
    while running and not lines.empty():
        running = carry_out(*lines.get())
    sys.stdout.flush()
