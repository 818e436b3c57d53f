#!/usr/bin/env python3
"""Captures: tshark with examples/wireshark/netcode.lua, and `netcode-token decrypt`, on real sessions and on hostile files.

    python3 tests/all/wireshark.py             everything
    python3 tests/all/wireshark.py WORD...     the checks whose names hold a WORD
    python3 tests/all/wireshark.py --plants [WORD...]   planted faults in copies of the dissector and of the tool: each must be noticed

Captures what server.c and client.c say through tests/tools/relay.c, and from the loopback interface where tcpdump may (root). Nothing leaves
the machine: tshark runs with -n. Everything is written to build/wireshark/. Python's standard library only."""

import ctypes
import ctypes.util
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "tools"))
from waiting import LIMIT_SECONDS, SKIPS_FAIL, TimedOut, refuse_unknown, until  # noqa: E402

OUT = os.path.join(TOP, "build", "wireshark")
LUA = os.environ.get("WIRESHARK_LUA", os.path.join(TOP, "examples", "wireshark", "netcode.lua"))
TOKEN = os.environ.get("WIRESHARK_TOKEN", "examples/token.c")
TAG = "-plant" if "WIRESHARK_TOKEN" in os.environ else ""
PACKAGES = ["tshark:tshark", "lua-luaossl:/usr/lib/*/lua/5.2/_openssl.so", "lua5.1:lua5.1", "lua5.2:lua5.2", "lua5.3:lua5.3", "lua5.4:lua5.4", "tcpdump:tcpdump"]
TYPES = ["REQUEST", "DENIED", "CHALLENGE", "RESPONSE", "KEEP_ALIVE", "PAYLOAD", "DISCONNECT"]
PROTOCOL_ID = 0x1122334455667788
MUTATED_FILES, MUTATED_PACKETS, MUTATED_FRAMES = 12000, 4000, 1500
SEED = int(os.environ.get("SEED", "20260"))

passed = failed = skipped = 0
children = []


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("%s  %s%s" % ("ok    " if good else "FAILED", name, "" if good else ": " + str(detail)[:2000]), flush=True)
    if not good and os.environ.get("WIRESHARK_STOP"):
        raise SystemExit(1)  # a planted fault was noticed
    return bool(good)


def skip(name, reason):
    global skipped
    skipped += 1
    print("skip    %s: %s" % (name, reason), flush=True)


def run(command, seconds=120, **more):
    environment = dict(os.environ, LC_ALL="C", TZ="UTC0")
    environment.pop("NETCODE_PRIVATE_KEY", None)
    environment.update(more.pop("environment", {}))
    return subprocess.run(command, capture_output=True, timeout=seconds, check=False, env=environment, **more)


def path(name):
    return os.path.join(WORK, name)


def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
    return path(name)


def read(name):
    with open(name if os.path.isabs(name) else path(name), "rb") as file:
        return file.read()


# ---- programs ----


def flags(which):
    return subprocess.run(["sh", "tests/tools/deps.sh", which], cwd=TOP, capture_output=True, text=True, check=True).stdout.split()


def build(name, source, *options):
    """Compiles into build/wireshark/, apart from what other tests may be building; nothing where nothing is newer."""
    product = os.path.join(OUT, name)
    sources = [os.path.join(TOP, source), os.path.join(TOP, TOKEN), os.path.join(TOP, "netcode.h"), os.path.join(TOP, "examples/wireshark/capture.h")]
    if os.path.exists(product) and all(os.path.getmtime(it) < os.path.getmtime(product) for it in sources):
        return product
    command = os.environ.get("CC", "cc").split() + ["-g", "-I.", *options, *flags("--cflags"), source, "-o", product + ".new", *flags("--libs"), "-lm"]
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    if result.returncode:
        print(result.stderr)
        sys.exit("wireshark: %s can not be built" % source)
    os.replace(product + ".new", product)
    return product


SANITIZE = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]

# Runs the tool's own main on one mutated capture after the other, in one process: a sanitizer's start costs more than a capture.
FUZZ_DRIVER = r"""
#define main token_main
#include TOKEN
#undef main

static uint64_t state;

static uint32_t chance( uint32_t below )
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ( state >> 33 ) % below;
}

static size_t mutate( uint8_t * data, size_t bytes, size_t capacity )
{
    static const uint32_t odd[] = { 0, 1, 4, 8, 27, 28, 0x7fff, 0xffff, 0x40000, 0x40001, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff };
    for ( uint32_t left = 1 + chance( 8 ); left--; ) {
        uint32_t at = chance( (uint32_t) bytes ), near = chance( bytes < 1400 ? (uint32_t) bytes : 1400 );
        at = chance( 2 ) ? at : near; /* headers are at the beginning */
        size_t some = 1 + chance( 40 ), rest = bytes - at;
        switch ( chance( 6 ) ) {
        case 0: data[at] ^= (uint8_t) ( 1u << chance( 8 ) ); break;
        case 1: data[at] = (uint8_t) chance( 256 ); break;
        case 2:
            if ( rest >= 4 ) {
                uint32_t value = odd[chance( sizeof( odd ) / sizeof( odd[0] ) )];
                for ( int i = 0; i < 4; i++ )
                    data[at + (size_t) i] = (uint8_t) ( value >> 8 * i );
            }
            break;
        case 3: /* a piece is missing */
            some = some < rest ? some : rest;
            memmove( data + at, data + at + some, rest - some );
            bytes -= some;
            break;
        case 4: /* a piece comes twice */
            some = some < rest ? some : rest;
            if ( bytes + some <= capacity ) {
                memmove( data + at + some, data + at, rest );
                bytes += some;
            }
            break;
        default: bytes = chance( 20 ) ? bytes : at + 1; break;
        }
        if ( bytes < 2 )
            return 2;
    }
    return bytes;
}

int main( int argc, char ** argv )
{
    static uint8_t base[1 << 20], data[1 << 20];
    long statuses[8] = { 0 };
    int rounds = atoi( argv[1] );
    if ( argc < 7 || !freopen( "/dev/null", "w", stdout ) )
        return 90;
    state = strtoull( argv[2], NULL, 10 );
    int report = dup( 2 );
    if ( !getenv( "FUZZ_LOUD" ) && !freopen( "/dev/null", "w", stderr ) )
        return 91;
    for ( int i = 0; i < rounds; i++ ) {
        FILE * file = fopen( argv[6 + i % ( argc - 6 )], "rb" );
        size_t bytes = file ? fread( base, 1, sizeof( base ) / 2, file ) : 0;
        if ( !file || bytes < 2 )
            return 92;
        fclose( file );
        memcpy( data, base, bytes );
        bytes = mutate( data, bytes, sizeof( data ) );
        if ( !( file = fopen( argv[3], "wb" ) ) || fwrite( data, 1, bytes, file ) != bytes || fclose( file ) != 0 )
            return 93;
        char * command[] = { "token", "decrypt", "--key-file", argv[4], "--payload", "text", argv[3], NULL };
        char * probing[] = { "token", "decrypt", "--keylog", argv[5], "--payload", "hex", argv[3], NULL };
        int status = token_main( 7, i % 3 ? command : probing );
        if ( status < 0 || status > 7 )
            return 94;
        statuses[status]++;
    }
    dprintf( report, "statuses %ld %ld %ld %ld %ld\n", statuses[0], statuses[1], statuses[2], statuses[3], statuses[4] );
    return 0;
}
"""


def build_all():
    os.makedirs(OUT, exist_ok=True)
    if not os.path.exists(os.path.join(OUT, "fuzz.c")) or read(os.path.join(OUT, "fuzz.c")).decode() != FUZZ_DRIVER:
        with open(os.path.join(OUT, "fuzz.c"), "w", encoding="utf-8") as file:
            file.write(FUZZ_DRIVER)
    programs = {name: build(name, "examples/%s.c" % name, "-O1") for name in ("server", "client")}
    programs["relay"] = build("relay", "tests/tools/relay.c", "-O1")
    programs["token"] = build("token" + TAG, TOKEN, "-Iexamples", *SANITIZE)
    return programs


class Child:
    """A process that is ended whatever happens; its output goes to a file."""

    def __init__(self, name, command):
        self.log = path(name + ".log")
        with open(self.log, "wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        children.append(self)

    def said(self, pattern):
        def look():
            has_ended = self.process.poll() is not None  # before the look: it says nothing after that
            found = re.search(pattern, read(self.log).decode(errors="replace"))
            if not found and has_ended:
                raise RuntimeError("%s never said %s: %s" % (self.log, pattern, read(self.log).decode(errors="replace")))
            return found

        return until(look, "%s in %s" % (pattern, self.log))

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


# ---- sessions ----


def mint(name, client_id, where, *options):
    result = run([PROGRAMS["token"], "mint", "--key-file", path("game.key"), "--client-id", str(client_id), "--output", path(name), *options, where])
    assert result.returncode == 0, result.stderr
    result = run([PROGRAMS["token"], "keylog", path(name)])
    assert result.returncode == 0, result.stderr
    return result.stdout


def play(name, *options):
    return Child("client_" + name, [PROGRAMS["client"], *options, path(name)])


def tcpdump(name, *options):
    """A capture of an interface, or None where that is not allowed."""
    child = Child("tcpdump_" + name, ["tcpdump", "-n", "-U", "-B", "4096", "-w", path(name), *options])
    try:
        child.said(r"listening on")
        return child
    except (RuntimeError, TimedOut):
        return None


def goodbyes(name):
    """How many ends have said goodbye to a server in a capture that goes on."""
    return len({row["source"] for row in from_token(name, "--key-file", path("game.key"))[0].values() if row["type"] == "DISCONNECT" and row["direction"] == "to_server"})


def capture_sessions():
    """relay.pcap, and lo.pcap, any.pcap, any2.pcap where it is allowed; keys.txt. Returns the captures' names, and why some are missing."""
    address = "127.0.0.1"
    server = Child("server", [PROGRAMS["server"], "--address", address + ":0", "--key-file", path("game.key"), "--echo", "--seconds", "300"])
    port = int(server.said(r"listening on 127\.0\.0\.1:(\d+)").group(1))
    server6 = Child("server6", [PROGRAMS["server"], "--address", "[::1]:0", "--key-file", path("game.key"), "--echo", "--seconds", "300"])
    try:
        port6 = int(server6.said(r"listening on \[::1\]:(\d+)").group(1))
    except (RuntimeError, TimedOut):
        port6 = 0
    relay = Child("relay", [PROGRAMS["relay"], "--listen", address + ":0", "--to", "%s:%d" % (address, port), "--loss", "2", "--duplicate", "6", "--reorder", "4",
                            "--seed", "5", "--seconds", "300", "--pcap", path("relay.pcap")])
    entrance = int(relay.said(r"listening on 127\.0\.0\.1:(\d+)").group(1))
    only = "udp and (port %d%s)" % (port, " or port %d" % port6 if port6 else "")
    dumps = {"lo.pcap": tcpdump("lo.pcap", "-i", "lo", only), "any.pcap": tcpdump("any.pcap", "-i", "any", "-y", "LINUX_SLL", only),
             "any2.pcap": tcpdump("any2.pcap", "-i", "any", "-y", "LINUX_SLL2", only)}
    where = "%s:%d=%s:%d" % (address, entrance, address, port)
    keys = mint("one.json", 1, where, "--user-data", "it is captured", "--expire", "600")
    keys += mint("two.json", 2, where, "--expire", "-1")
    clients = [play("one.json", "--count", "60", "--rate", "60"), play("two.json", "--count", "20", "--rate", "30", "--bytes", "1200", "--sequence-base-zero")]
    if port6:
        keys += mint("six.json", 6, "[::1]:%d" % port6)
        clients.append(play("six.json", "--count", "20", "--rate", "60", "--bytes", "33"))
    for client in clients:
        client.process.wait(LIMIT_SECONDS)
    # What says goodbye comes last: it is through the relay when the servers know it, and in the captures when it is in their files.
    for number in (1, 2):
        server.said(r" disconnected .*client=%d " % number)
    for name, child in dumps.items():
        if child:
            until(lambda name=name: goodbyes(name) == len(clients), "the clients' goodbyes in " + name)
    for child in [relay, *filter(None, dumps.values()), server, server6]:
        child.stop()
    write("keys.txt", b"# a comment\n\nSOME_OTHER_TOOL 00 11\n" + keys)
    fine = all(client.process.returncode in (0, 10) for client in clients)  # 10: the relay lost some
    check("clients play through the relay%s" % (", and over IPv6" if port6 else ""), fine, [read(client.log)[-400:] for client in clients])
    for name, child in dumps.items():
        if child is None:
            skip("a capture of the interface (%s)" % name, "tcpdump may not capture here: " + read(path("tcpdump_%s.log" % name)).decode().strip().replace("\n", " "))
    return ["relay.pcap"] + [name for name, child in dumps.items() if child], port


# ---- what both say of a capture ----

FIELDS = ["frame.number", "netcode.type", "netcode.sequence", "netcode.direction", "netcode.bytes", "netcode.decryption", "netcode.refused", "netcode.client_index",
          "netcode.max_clients", "netcode.challenge_sequence", "netcode.payload", "netcode.client_id", "netcode.nonce", "netcode.protocol_id", "netcode.expire",
          "netcode.server_address", "netcode.timeout", "netcode.user_data", "netcode.connection", "_ws.expert.message", "frame.protocols", "netcode.request_in",
          "netcode.probe", "netcode.probe_kind", "netcode.probe_in", "netcode.probe_seconds", "netcode.moved", "frame.time_epoch", "_ws.col.Info"]
lua_errors = []


def tshark(capture, *options, lua=None):
    scripts = ["-X", "lua_script:" + (lua or LUA)]
    result = run(["tshark", "-n", *scripts, *options, "-r", path(capture)], environment={"HOME": WORK, "XDG_CONFIG_HOME": WORK})
    text = (result.stdout + result.stderr).decode(errors="replace")
    if re.search(r"Lua[ :]*Error|Lua: Error|Dissector bug|netcode\.lua:\d+", text, re.I) or result.returncode:
        found = re.search(r".*(Lua[ :]*Error|Dissector bug|netcode\.lua:\d+).*", text, re.I)
        lua_errors.append("%s: status %d %s" % (capture, result.returncode, found.group(0) if found else text[-300:]))
    return result.stdout.decode(errors="replace")


def from_tshark(capture, *options, lua=None):
    """A dictionary for each packet that the dissector took."""
    arguments = [it for field in FIELDS for it in ("-e", field)]
    text = tshark(capture, "-T", "fields", "-E", "separator=\t", "-E", "occurrence=a", *arguments, *options, lua=lua)
    rows = [dict(zip(FIELDS, line.split("\t"))) for line in text.splitlines()]
    return {int(row["frame.number"]): row for row in rows if "netcode" in row["frame.protocols"].split(":")}, len(rows)


LINE = re.compile(r"^(\d+) (-?[\d.]+) (\S+) > (\S+) (to_server|to_client|either_way) ([A-Z_]+) (.*)$")


def from_token(capture, *options):
    """The same from netcode-token decrypt, and its result."""
    result = run([PROGRAMS["token"], "decrypt", "--payload", "hex", *options, path(capture)])
    rows = {}
    for line in result.stdout.decode().splitlines():
        found = LINE.match(line)
        if found:
            words = found.group(7)
            row = dict(re.findall(r"(\w+)=(\S*)", words))
            row.update(type=found.group(6), direction=found.group(5), ok=" ok" in words, sealed="refused" not in row and bool(re.search(r"\bsealed\b", words)), source=found.group(3))
            rows[int(found.group(1))] = row
    if result.returncode not in (0, 1, 4) or b"Sanitizer" in result.stderr or b"runtime error" in result.stderr:
        raise RuntimeError("decrypt of %s ended with %d: %s" % (capture, result.returncode, result.stderr.decode()[-2000:]))
    return rows, result


def difference(shark, token):
    """How what tshark shows of one packet differs from what the library says of it; '' where it does not."""
    pairs = [("netcode.direction", "direction"), ("netcode.bytes", "bytes"), ("netcode.refused", "refused"), ("netcode.client_index", "client_index"),
             ("netcode.max_clients", "max_clients"), ("netcode.client_id", "client_id"), ("netcode.challenge_sequence", "challenge_sequence"),
             ("netcode.nonce", "nonce"), ("netcode.probe", "probe"), ("netcode.expire", "expire"), ("netcode.timeout", "timeout")]
    if token.get("refused"):  # the library stops there; the dissector shows what there is
        pairs = pairs[:3]
    else:
        pairs += [("netcode.payload", "payload")]
        if token["type"] != "REQUEST":
            pairs += [("netcode.sequence", "sequence")]
    for ours, theirs in pairs:
        if shark[ours] != token.get(theirs, ""):
            return "%s is %r, %s is %r" % (ours, shark[ours], theirs, token.get(theirs, ""))
    name = TYPES[int(shark["netcode.type"])] if shark["netcode.type"] and int(shark["netcode.type"]) < 7 else "UNKNOWN"
    if name != token["type"]:
        return "type %s, %s" % (name, token["type"])
    if not re.fullmatch(r"(.*the last: )?%s %s\b.* bytes=%s" % (name, token["direction"], token["bytes"]), shark["_ws.col.Info"]):
        return "the info column is %r" % shark["_ws.col.Info"]
    if token["ok"] and shark["netcode.decryption"] != "authenticated":
        return "decryption is %r of what the library opens" % shark["netcode.decryption"]
    if token["sealed"] and token["type"] != "REQUEST":
        return "" if shark["_ws.expert.message"].startswith("Sealed: ") else "expert info of what is sealed is %r" % shark["_ws.expert.message"]
    if bool(token.get("refused")) != bool(shark["_ws.expert.message"]):
        return "expert info is %r" % shark["_ws.expert.message"]
    return ""


def compare(capture, key, lua=None):
    """Every packet of a capture, read by both. Returns the two lists."""
    options = {"key": ["-o", "netcode.private_key_file:" + path("game.key")], "keylog": ["-o", "netcode.keylog_file:" + path("keys.txt")]}[key]
    tokens, _ = from_token(capture, *{"key": ["--key-file", path("game.key")], "keylog": ["--keylog", path("keys.txt")]}[key])
    sharks, count = from_tshark(capture, *options, lua=lua)
    faults = []
    # Wireshark asks no dissector about a datagram without bytes.
    tokens = {number: row for number, row in tokens.items() if row.get("refused") != "EMPTY_DATAGRAM"}
    if set(sharks) != set(tokens):
        faults.append("packets that one alone shows: %s" % sorted(set(sharks) ^ set(tokens))[:20])
    faults += ["%d: %s" % (number, it) for number in sorted(set(sharks) & set(tokens)) for it in [difference(sharks[number], tokens[number])] if it]
    for row in sharks.values():
        if row["netcode.probe_in"]:
            later = float(row["frame.time_epoch"]) - float(sharks[int(row["netcode.probe_in"])]["frame.time_epoch"])
            if abs(float(row["netcode.probe_seconds"]) - later) > 1e-5:
                faults.append("%s: %s s since the probe, by the frames %.6f" % (row["frame.number"], row["netcode.probe_seconds"], later))
    return sharks, tokens, count, faults


# ---- pcap and pcapng, written here ----


def pcap_packets(name):
    data = read(name)
    at, packets = 24, []
    while at < len(data):
        seconds, micros, bytes_, _ = struct.unpack_from("<IIII", data, at)
        packets.append((seconds, micros, data[at + 16:at + 16 + bytes_]))
        at += 16 + bytes_
    return struct.unpack_from("<I", data, 20)[0], packets


def pcap(packets, link, order="<", nano=False, snap=None):
    out = struct.pack(order + "IHHIIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    for seconds, micros, data in packets:
        kept = data[:snap] if snap else data
        out += struct.pack(order + "IIII", seconds, micros * (1000 if nano else 1), len(kept), len(data)) + kept
    return out


def pcapng(packets, link, order="<", resolution=6, simple=False, snap=0):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(5, bytes(12))  # statistics: to be passed over
    out += block(1, struct.pack(order + "HHI", link, 0, snap) + struct.pack(order + "HHB3xHHqHH", 9, 1, resolution, 14, 8, 1000, 0, 0))
    for seconds, micros, data in packets:
        units = 1 << (resolution & 127) if resolution & 128 else 10**resolution
        when = (seconds - 1000) * units + micros * units // 10**6
        if simple:
            out += block(3, struct.pack(order + "I", len(data)) + (data[:snap] if snap else data))
        else:
            out += block(6, struct.pack(order + "IIIII", 0, when >> 32, when & 0xFFFFFFFF, len(data), len(data)) + data + bytes(-len(data) % 4) + struct.pack(order + "HH", 0, 0))
    return out


def checksum(data):
    total = sum(struct.unpack(">%dH" % ((len(data) + 1) // 2), data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def to_ipv6(packet, extensions=b""):
    header = packet[:20]
    udp = packet[20:]
    first = 17 if not extensions else extensions[0]
    addresses = (bytes(15) + header[15:16]) * 2
    total = checksum(addresses + struct.pack(">IHH", len(udp), 0, 17) + udp)
    udp = udp[:6] + struct.pack(">H", total or 0xFFFF) + udp[8:]  # without one, IPv6 is not valid
    return struct.pack(">IHBB", 0x60000000, len(extensions[1:]) + len(udp), first, 64) + addresses + extensions[1:] + udp


def link_captures(packets):
    """Every link type and file format that there is a promise for."""
    ethernet = bytes(12) + b"\x08\x00"
    hop = b"\x00" + b"\x3c\x00" + bytes(6) + b"\x11\x01" + bytes(14)  # hop-by-hop, then destination options of 16 bytes
    atomic = b"\x2c" + b"\x11\x00\x00\x00\x00\x00\x00\x07"  # a fragment header of a whole packet

    def each(front):
        return [(s, u, front + d) for s, u, d in packets]

    return {
        "raw.pcap": pcap(packets, 101), "raw12.pcap": pcap(packets, 12), "ipv4.pcap": pcap(packets, 228), "nano.pcap": pcap(packets, 101, nano=True),
        "bigendian.pcap": pcap(packets, 101, order=">"), "ethernet.pcap": pcap(each(ethernet), 1), "padded.pcap": pcap([(s, u, ethernet + d + bytes(9)) for s, u, d in packets], 1),
        "vlan.pcap": pcap(each(bytes(12) + b"\x81\x00\x00\x05\x08\x00"), 1), "qinq.pcap": pcap(each(bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00"), 1),
        "cooked.pcap": pcap(each(bytes(14) + b"\x08\x00"), 113), "cooked2.pcap": pcap(each(b"\x08\x00" + bytes(18)), 276),
        "null.pcap": pcap(each(b"\x02\x00\x00\x00"), 0), "nullbig.pcap": pcap(each(b"\x00\x00\x00\x02"), 0, order=">"), "loop.pcap": pcap(each(b"\x00\x00\x00\x02"), 108),
        "ipv6.pcap": pcap([(s, u, to_ipv6(d)) for s, u, d in packets], 229), "null6.pcap": pcap([(s, u, b"\x1e\0\0\0" + to_ipv6(d)) for s, u, d in packets], 0),
        "extensions.pcap": pcap([(s, u, to_ipv6(d, hop)) for s, u, d in packets], 101), "atomic.pcap": pcap([(s, u, to_ipv6(d, atomic)) for s, u, d in packets], 101),
        "plain.pcapng": pcapng(packets, 101), "bigendian.pcapng": pcapng(packets, 101, order=">"), "nano.pcapng": pcapng(packets, 101, resolution=9),
        "binary.pcapng": pcapng(packets, 101, resolution=0x80 | 20), "simple.pcapng": pcapng(packets, 101, simple=True),
        "two.pcapng": pcapng(packets[:9], 101) + pcapng(packets[9:], 101, order=">")}


def with_ip(packet, protocol, body, fragment=0):
    """Its IP header, in front of something else: IPv4 without options, as the relay writes it."""
    header = bytearray(packet[:20])
    struct.pack_into(">H", header, 2, 20 + len(body))
    struct.pack_into(">H", header, 6, fragment)
    header[9] = protocol
    header[10:12] = bytes(2)
    struct.pack_into(">H", header, 10, checksum(bytes(header)))
    return bytes(header) + body


def with_udp(packet, payload, ports=None):
    """The packet with other contents, and no checksum."""
    header = struct.pack(">HHHH", *(ports or struct.unpack(">HH", packet[20:24])), 8 + len(payload), 0)
    return with_ip(packet, 17, header + payload)


def way_back(packet):
    """The same from the receiver to the sender."""
    return with_udp(packet[:12] + packet[16:20] + packet[12:16] + packet[20:], packet[28:], struct.unpack(">HH", packet[20:24])[::-1])


def ends(packet):
    return {packet[12:16] + packet[20:22], packet[16:20] + packet[22:24]}


# ---- packets, sealed here ----


def sealed_by(call, key, nonce, associated, plain):
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    out = ctypes.create_string_buffer(len(plain) + 16)
    length = ctypes.c_ulonglong
    assert getattr(sodium, call)(out, None, plain, length(len(plain)), associated, length(len(associated)), None, nonce, key) == 0
    return out.raw


def seal_packet(kind, sequence, sequence_bytes, key, body):
    prefix = bytes([kind | sequence_bytes << 4])
    associated = b"NETCODE 1.02\0" + struct.pack("<Q", PROTOCOL_ID) + prefix
    sealed = sealed_by("crypto_aead_chacha20poly1305_ietf_encrypt", key, struct.pack("<IQ", 0, sequence), associated, body)
    return prefix + struct.pack("<Q", sequence)[:sequence_bytes] + sealed


def seal_request(nonce, private):
    public = b"NETCODE 1.02\0" + struct.pack("<QQ", PROTOCOL_ID, 1 << 62)
    key = bytes.fromhex(read("game.key").decode().strip())
    return b"\0" + public + nonce + sealed_by("crypto_aead_xchacha20poly1305_ietf_encrypt", key, nonce, public, private.ljust(1008, b"\0")[:1008])


def private_part(addresses, keys=bytes(range(64)), count=None):
    return struct.pack("<QiI", 1 << 63, 10, len(addresses) if count is None else count) + b"".join(addresses) + keys + bytes(256)


# ---- the checks ----


def client_payload(number, bytes_):
    """What client.c sends, from what its source says: a number, then bytes that follow from it."""
    return bytes((number >> (8 * i)) & 255 if i < 8 else (number * 31 + i * 7) & 255 for i in range(bytes_))


def check_sessions(names):
    for name in names:
        for key in ("key", "keylog"):
            sharks, tokens, count, faults = compare(name, key)
            kinds = {row["type"] for row in tokens.values()}
            check("%s with %s: %d packets, all recognised by tshark, equal to what netcode-token says" % (name, key, count),
                  not faults and len(sharks) == count and count > 100 and any(row["netcode.probe_in"] for row in sharks.values()), faults[:5] or count == len(sharks) or tshark(name, "-Y", "not netcode", "-x", "-V"))
            if key == "key":
                check("%s: every type but DENIED is in it, both ways, and nothing but replays refused" % name, kinds == set(TYPES) - {"DENIED"} and
                      {row["direction"] for row in tokens.values()} == {"to_server", "to_client"} and
                      {row.get("refused", "REPLAYED") for row in tokens.values()} == {"REPLAYED"}, kinds)
    sharks, tokens, _, _ = compare("relay.pcap", "key")
    sent = {}
    for row in sharks.values():
        if row["netcode.payload"] and row["netcode.direction"] == "to_server":
            data = bytes.fromhex(row["netcode.payload"])
            sent.setdefault(len(data), {})[int.from_bytes(data[:8], "little")] = data
    wrong = [number for bytes_, some in sent.items() for number, data in some.items() if data != client_payload(number, bytes_)]
    check("payloads decrypt to what the clients sent: %s" % {bytes_: len(some) for bytes_, some in sent.items()},
          not wrong and set(sent) == {100, 1200} and len(sent[100]) > 50 and len(sent[1200]) > 15, wrong)
    check("duplicates that the relay made are replays in both", sum(row.get("refused") == "REPLAYED" for row in tokens.values()) >= 5)
    request = next(row for row in sharks.values() if row["netcode.client_id"] == "1")
    check("the private key shows the private part: client id, timeout, address, user data", request["netcode.timeout"] == "10" and
          bytes.fromhex(request["netcode.user_data"]).rstrip(b"\0") == b"it is captured" and re.fullmatch(r"127\.0\.0\.1:\d+", request["netcode.server_address"]) and
          int(request["netcode.protocol_id"], 16) == PROTOCOL_ID, request)
    check("two clients are two connections, each packet leads to its request", {row["netcode.connection"] for row in sharks.values()} == {"0", "1"} and
          all(row["netcode.request_in"] for row in sharks.values() if row["netcode.type"] != "0"))


def check_links(packets):
    expected = {number: {key: row.get(key) for key in ("type", "sequence", "refused", "payload", "ok")} for number, row in from_token("relay.pcap", "--key-file", path("game.key"))[0].items()}
    for name, data in link_captures(packets).items():
        write(name, data)
        rows, result = from_token(name, "--key-file", path("game.key"))
        wanted = expected
        shown = {number: {key: row.get(key) for key in ("type", "sequence", "refused", "payload", "ok")} for number, row in rows.items()}
        if name.startswith(("ipv6", "null6", "extensions", "atomic")):
            faults = [] if shown == wanted and all(row["source"].startswith("[") for row in rows.values()) else ["not the same"]
        else:
            faults = [] if shown == wanted else [(number, shown.get(number), wanted.get(number)) for number in wanted if shown.get(number) != wanted[number]][:3]
        check("decrypt reads %s" % name, not faults and result.returncode == 0, (faults, result.stderr, result.stdout[-300:]))
    for name in ("nano.pcap", "vlan.pcap", "cooked2.pcap", "null.pcap", "extensions.pcap", "binary.pcapng"):
        sharks, _, count, faults = compare(name, "key")
        check("tshark says the same of %s" % name, not faults and len(sharks) == count, faults[:5])


def check_left_out(packets):
    seconds, micros, whole = packets[0]
    fragment = bytearray(whole)
    struct.pack_into(">H", fragment, 6, 0x2000)
    tail = bytearray(whole)
    struct.pack_into(">H", tail, 6, 100)
    fragment6 = to_ipv6(whole, b"\x2c" + b"\x11\x00\x00\x01\x00\x00\x00\x07")
    tcp = bytearray(whole)
    tcp[9] = 6
    short = bytearray(whole)
    struct.pack_into(">H", short, 24, 5)
    long = bytearray(whole)
    struct.pack_into(">H", long, 24, 1200)
    # A header of options that claims 2048 bytes, in a packet of 100. What an earlier packet left where it leads looks like UDP.
    before = bytearray(with_udp(whole, b"\0\x10" * 1500))
    before[9] = 6
    beyond = to_ipv6(whole[:68], b"\x3c" + b"\x11\xff" + bytes(6))
    write("odd.pcap", pcap([(seconds, micros, bytes(it)) for it in (fragment, tail, fragment6, tcp, short, long, before, beyond, whole[:15], b"")] + packets, 101))
    rows, result = from_token("odd.pcap", "--key-file", path("game.key"))
    text = result.stdout.decode()
    check("fragments are named and left out, damaged headers and TCP too", text.count("left out: fragment of an IP packet\n") == 3 and
          "# left out: fragment of an IP packet 3" in text and "# left out: not UDP 2" in text and "# left out: damaged 5" in text and len(rows) == len(packets), text[-600:])
    write("cut.pcap", pcap(packets, 101, snap=200))
    rows, result = from_token("cut.pcap", "--keylog", path("keys.txt"))
    longer = sum(len(data) > 200 for _, _, data in packets)
    sharks, _ = from_tshark("cut.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("what the capture cut off is named and left out, the rest is found by its keys: %d and %d" % (longer, len(rows)),
          ("# left out: cut off by the capture %d" % longer).encode() in result.stdout and len(rows) + longer == len(packets) and
          all(row["ok"] or row.get("refused") == "REPLAYED" for row in rows.values()), result.stdout[-400:])
    check("tshark finds those by their keys too, and names what is cut off", all(number in sharks for number in rows) and
          sum("The capture holds" in row["_ws.expert.message"] for row in sharks.values()) > 10, len(sharks))
    write("broken.pcap", read("relay.pcap")[:-7])
    _, result = from_token("broken.pcap", "--key-file", path("game.key"))
    check("a capture that ends within a packet is read up to there, and refused by name", result.returncode == 1 and b"the file ends within a packet" in result.stderr and
          b"# netcode: %d packets" % (len(packets) - 1) in result.stdout, result.stderr)
    for name, data in (("large.pcap", pcap([(seconds, micros, whole + bytes(300000))], 101)), ("large.pcapng", pcapng([(seconds, micros, whole + bytes(300000))], 101))):
        write(name, data)
        _, result = from_token(name, "--key-file", path("game.key"))
        check("%s: a packet that is larger than any is refused by name" % name, result.returncode == 1 and b"larger than a capture's packets can be" in result.stderr, result.stderr)
    padded = next(it for it in packets if len(it[2]) % 4 != 1)
    write("snap.pcapng", pcapng([padded], 101, simple=True, snap=len(padded[2]) - 1))
    _, result = from_token("snap.pcapng", "--key-file", path("game.key"))
    check("what fills a simple block of pcapng is not taken for the packet's end", b"# left out: cut off by the capture 1\n" in result.stdout, result.stdout)
    write("none.pcap", b"GIF89a" + bytes(100))
    check("what is no capture is refused by name", b"is no capture" in from_token("none.pcap", "--key-file", path("game.key"))[1].stderr)
    middle = [it for it in packets if it[2][28]]
    write("middle.pcap", pcap(middle, 101))
    sharks, tokens, count, faults = compare("middle.pcap", "keylog")
    check("a capture that begins after the requests is opened by a key log, in both", not faults and len(sharks) == count and
          sum(row["ok"] for row in tokens.values()) > 100, faults[:5])
    rows, result = from_token("middle.pcap", "--key-file", path("game.key"))
    check("but not by the private key, which says so", not rows and b"of which no key is known %d\n" % len(middle) in result.stdout, result.stdout[-300:])


def check_uncut(packets):
    """What a capture on a machine with batch_sends sees: packets of one send that the system has not cut yet."""
    rows, _ = from_token("relay.pcap", "--key-file", path("game.key"))
    out, pieces, want, last = [], 0, [], {}
    for number, (seconds, micros, whole) in enumerate(packets, 1):
        row = rows[number]
        if row["ok"] and row["type"] == "PAYLOAD":
            want.append(row["payload"])
            before = last.get(row["source"])
            place = before and before["place"]
            if before and (row["bytes"], int(row["sequence"])) == (before["bytes"], int(before["sequence"]) + 1) and len(out[place][2]) < 30000:
                out[place] = (out[place][0], out[place][1], with_udp(out[place][2], out[place][2][28:] + whole[28:]))
                last[row["source"]] = dict(row, place=place)
                pieces += 1
                continue
            last[row["source"]] = dict(row, place=len(out))
        out.append((seconds, micros, whole))
    write("uncut.pcap", pcap(out, 101))
    text = run([PROGRAMS["token"], "decrypt", "--payload", "hex", "--key-file", path("game.key"), path("uncut.pcap")]).stdout.decode()
    shown = re.findall(r" ok .*payload=(\S+)", text)
    check("packets that the system has not cut yet are cut again by decrypt: %d pieces" % pieces, pieces > 20 and sorted(shown) == sorted(want) and "part=2/" in text, text[-300:])
    sharks, count = from_tshark("uncut.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    shown = [it for row in sharks.values() if row["netcode.refused"] == "" for it in row["netcode.payload"].split(",") if it]
    check("and by tshark", len(sharks) == count and sorted(shown) == sorted(want), len(shown))


def check_keys(packets):
    rows, result = from_token("relay.pcap")
    check("without any key: requests are shown, what is sealed is called so, status 4", result.returncode == 4 and len(rows) == len(packets) and
          all(row["sealed"] and "payload" not in row for row in rows.values()), result.stdout[-300:])
    sharks, count = from_tshark("relay.pcap")
    check("tshark without keys: names, sequences and sizes, and why it is closed", len(sharks) == count and
          {row["netcode.decryption"] for row in sharks.values()} == {"no private key", "no key"} and not any(row["netcode.payload"] for row in sharks.values()))
    wrong_keys = re.sub(rb"(NETCODE_\w+_TO_\w+ \w+ )(..)", lambda found: found.group(1) + (b"%02x" % (int(found.group(2), 16) ^ 1)), read("keys.txt"))
    write("wrong.txt", wrong_keys)
    rows, result = from_token("relay.pcap", "--keylog", path("wrong.txt"))
    check("a wrong key log opens nothing: AUTHENTICATION_FAILED, status 4", result.returncode == 4 and not any("payload" in row for row in rows.values()) and
          all(row.get("refused") == "AUTHENTICATION_FAILED" for row in rows.values() if row["type"] != "REQUEST"), result.stdout[-300:])
    sharks, count = from_tshark("relay.pcap", "-o", "netcode.keylog_file:" + path("wrong.txt"))
    check("tshark shows wrong keys as wrong, with expert info, and no payload", len(sharks) == count and not any(row["netcode.payload"] for row in sharks.values()) and
          all(row["netcode.refused"] == "AUTHENTICATION_FAILED" and "AUTHENTICATION_FAILED" in row["_ws.expert.message"] and row["netcode.decryption"].startswith("failed")
              for row in sharks.values() if row["netcode.type"] != "0"))
    rows, result = from_token("relay.pcap", "--key-file", path("other.key"))
    sharks, _ = from_tshark("relay.pcap", "-o", "netcode.private_key_file:" + path("other.key"))
    check("a wrong private key: TOKEN_NOT_AUTHENTIC in both", result.returncode == 4 and {row.get("refused") for row in rows.values() if row["type"] == "REQUEST"} == {"TOKEN_NOT_AUTHENTIC"} ==
          {row["netcode.refused"] for row in sharks.values() if row["netcode.type"] == "0"})
    rows, result = from_token("relay.pcap", "--key-file", path("other.key"), "--key-file", path("game.key"))
    check("two private keys, as while keys are changed: all is opened", result.returncode == 0 and all(row["ok"] or row.get("refused") == "REPLAYED" for row in rows.values()))
    rows, result = from_token("relay.pcap", "--token", path("one.json"), "--token", path("two.json"))
    check("the clients' tokens alone open their sessions", result.returncode == 0 and sum(row["ok"] for row in rows.values()) > 100)
    rows, result = from_token("relay.pcap", "--key-file", path("game.key"), "--protocol-id", "7")
    check("--protocol-id refuses requests of another game", {row.get("refused") for row in rows.values() if row["type"] == "REQUEST"} == {"REQUEST_WRONG_PROTOCOL_ID"})
    result = run([PROGRAMS["token"], "decrypt", "--payload", "text", "--key-file", path("game.key"), path("relay.pcap")])
    check("--payload text escapes whatever could reach a terminal", b'payload="' in result.stdout and re.fullmatch(rb"[\x20-\x7e\n]*", result.stdout) is not None)


def check_keylog():
    logs = [line for line in read("keys.txt").splitlines() if line.startswith(b"NETCODE_")]
    result = run([PROGRAMS["token"], "keylog", "--key-file", path("game.key"), "--capture", path("relay.pcap"), "--output", path("made.txt")])
    made = read("made.txt").splitlines()
    check("keylog --capture prints the same lines from the private key, as the tokens gave", result.returncode == 0 and len(made) == 6 and set(made) <= set(logs), result.stderr)
    check("its file is for its owner alone", os.stat(path("made.txt")).st_mode & 0o777 == 0o600)
    check("a key log line is label, nonce, key", all(re.fullmatch(rb"(NETCODE_(CLIENT_TO_SERVER|SERVER_TO_CLIENT) [0-9a-f]{48} [0-9a-f]{64}|NETCODE_PROTOCOL_ID [0-9a-f]{48} [0-9a-f]{16})", it) for it in made))
    result = run([PROGRAMS["token"], "keylog", "--key-file", path("other.key"), "--capture", path("relay.pcap")])
    check("a wrong key gives no lines and status 4", result.returncode == 4 and not result.stdout)
    run([PROGRAMS["token"], "keylog", "--key-file", path("other.key"), "--capture", path("relay.pcap"), "--output", path("made.txt")])
    check("and leaves an old key log as it was", read("made.txt").splitlines() == made)
    result = run([PROGRAMS["token"], "keylog", path("one.json")], stdin=subprocess.DEVNULL)
    check("a token's first two lines are those that keylog always printed", [line.split()[0] for line in result.stdout.splitlines()] ==
          [b"NETCODE_CLIENT_TO_SERVER", b"NETCODE_SERVER_TO_CLIENT", b"NETCODE_PROTOCOL_ID"] and result.stdout.splitlines()[0] in logs)
    write("bad.txt", b"# fine\n\n\nNETCODE_CLIENT_TO_SERVER 00 11\n")
    result = run([PROGRAMS["token"], "decrypt", "--keylog", path("bad.txt"), path("relay.pcap")])
    check("a broken key log is refused with the number of its line", result.returncode == 1 and b"bad.txt: line 4" in result.stderr, result.stderr)
    text = tshark("relay.pcap", "-V", "-c", "1", "-o", "netcode.keylog_file:" + path("bad.txt"))
    check("tshark says so too", "bad.txt line 4 is no line of a key log" in text, text[-500:])
    result = run([PROGRAMS["token"], "decrypt", "--keylog", path("one.json"), path("relay.pcap")])
    check("what is no key log is refused by name", result.returncode == 1 and b"one.json: is no key log" in result.stderr, result.stderr)
    write("half.txt", b"NETCODE_CLIENT_TO_SER")
    check("half of a first line is not an error", "half.txt" not in tshark("relay.pcap", "-V", "-c", "1", "-o", "netcode.keylog_file:" + path("half.txt")))
    check("a folder is no key log for tshark either", WORK + " can not be read" in tshark("relay.pcap", "-V", "-c", "1", "-o", "netcode.keylog_file:" + WORK))
    check("in tshark too", "one.json is no key log" in tshark("relay.pcap", "-V", "-c", "1", "-o", "netcode.keylog_file:" + path("one.json")))
    result = run([PROGRAMS["token"], "decrypt", "-"], input=read("relay.pcap"), environment={"NETCODE_PRIVATE_KEY": read("game.key").decode().strip()})
    check("the key may come from the environment, the capture from standard input", result.returncode == 0 and b" ok payload_bytes=100" in result.stdout, result.stderr)
    for wrong in (["--keylog", path("keys.txt"), "--capture", path("relay.pcap")], ["--capture", path("relay.pcap"), path("one.json")], [path("one.json")]):
        result = run([PROGRAMS["token"], "keylog", "--key-file", path("game.key"), *wrong])
        check("keylog refuses what it would pass over: %s" % " ".join(map(os.path.basename, wrong)), result.returncode == 2 and not result.stdout, result)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAMS["token"], "decrypt", "--key-file", path("game.key"), path("relay.pcap")], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        check("decrypt that can not write its lines says so", result.returncode == 1 and b"standard output" in result.stderr, result)
    write("many.txt", b"".join(b"NETCODE_PROTOCOL_ID %048x 0000000000000001\n" % i for i in range(1030)))
    result = run([PROGRAMS["token"], "decrypt", "--keylog", path("many.txt"), path("relay.pcap")])
    check("keys of more sessions than are remembered: it is said how many", b"# more than 1024 tokens: 6 were forgotten\n" in result.stdout, result.stdout[-300:])
    shutil.copy(path("game.key"), path("open.key"))
    os.chmod(path("open.key"), 0o644)
    result = run([PROGRAMS["token"], "decrypt", "--key-file", path("open.key"), path("relay.pcap")])
    check("a private key that others can read is refused", result.returncode == 1 and b"chmod 600" in result.stderr, result.stderr)


def check_without_libraries():
    absent = write("absent.lua", b'package.preload["openssl.cipher"] = function() error("not here") end\ndofile("%s")\n' % LUA.encode())
    sharks, count = from_tshark("relay.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"), lua=absent)
    check("without luaossl: everything recognised, 'needs luaossl', nothing decrypted", len(sharks) == count and not any(row["netcode.payload"] for row in sharks.values()) and
          all(row["netcode.decryption"] == "needs luaossl" for row in sharks.values() if row["netcode.type"] != "0"))
    lines = [line for line in tshark("relay.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"), lua=absent).splitlines() if " sealed=" in line]
    check("and each line of the summary says why", len(lines) > 100 and all("[needs luaossl]" in line for line in lines), lines[:1])
    partly = write("partly.lua", b'package.preload["openssl.bignum"] = function() error("not here") end\ndofile("%s")\n' % LUA.encode())
    for name, options, lua in (("without big numbers", [], partly), ("with verification turned off", ["-o", "netcode.verify:FALSE"], None)):
        sharks, count = from_tshark("relay.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"), *options, lua=lua)
        sealed = [row for row in sharks.values() if row["netcode.type"] != "0"]
        check("%s: decrypted, and each labelled not authenticated" % name, len(sharks) == count and any(row["netcode.payload"] for row in sealed) and
              all(row["netcode.decryption"] == "not authenticated" and "NOT AUTHENTICATED" in row["_ws.expert.message"] for row in sealed))


# Stands in for Wireshark, so that each Lua can load the dissector; then looks for its functions and tries them.
HARNESS = r"""
local anything
anything = setmetatable({}, { __index = function() return anything end, __call = function() return anything end, __newindex = function() end })
base, expert, ftypes, Field, ProtoField, ProtoExpert, Pref, DissectorTable, ByteArray, NSTime = anything, anything, anything, anything, anything, anything, anything, anything, anything, anything
local proto = setmetatable({ prefs = setmetatable({}, { __newindex = function() end, __index = function() return "" end }) }, { __index = anything })
Proto = function() return proto end
dofile(arg[1])
local seen, found = {}, {}
local function walk(f)
    if seen[f] then return end
    seen[f] = true
    for i = 1, 250 do
        local name, value = debug.getupvalue(f, i)
        if not name then return end
        if value ~= nil then found[name] = found[name] or value end
        if name:match("^has_") then found[name] = value end
        if type(value) == "function" then walk(value) end
    end
end
walk(proto.dissector)
assert(found.has_cipher == true and found.has_bignum == true, "the self-test failed")
local function unhex(text) return (text:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)) end
local key, nonce, associated, sealed, plain = unhex(arg[2]), unhex(arg[3]), unhex(arg[4]), unhex(arg[5]), unhex(arg[6])
assert(found.open_private(key, nonce, associated, sealed) == plain, "XChaCha20-Poly1305 does not open")
assert(found.open_private(key, nonce, associated .. "x", sealed) == nil, "other associated data is accepted")
assert(found.little("\1\2\3\4\5\6", 1, 6) == 6618611909121, "little")
print(_VERSION .. " fine")
"""

# draft-irtf-cfrg-xchacha, A.3.1.
XCHACHA = ["808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "404142434445464748494a4b4c4d4e4f5051525354555657", "50515253c0c1c2c3c4c5c6c7",
           "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1"
           "bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49",
           b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.".hex()]


def check_luas():
    harness = write("harness.lua", HARNESS.encode())
    for version in ("5.1", "5.2", "5.3", "5.4"):
        result = run(["lua" + version, harness, LUA, *XCHACHA])
        check("Lua %s loads the dissector, and opens the known XChaCha20-Poly1305" % version, result.stdout == b"Lua %s fine\n" % version.encode(), result.stderr.decode())


def mutate_payload(random_, payload):
    data = bytearray(payload)
    kind = random_.randrange(9)
    if kind == 0:
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    elif kind == 1:
        data[0] = random_.randrange(256)
    elif kind == 2:
        del data[random_.randrange(len(data)):]
    elif kind == 3:
        data += random_.randbytes(random_.choice((1, 2, 16, 100, 1300)))
    elif kind == 4:
        data[:9] = random_.randbytes(9)
    elif kind == 5:
        data = bytearray(random_.randbytes(random_.randrange(0, 1300)))
    elif kind == 6 and len(data) > 30:
        data[1 + random_.randrange(29)] = random_.randrange(256)
    elif kind == 7:
        data = bytearray(b"\0NETCODE 1.0" + bytes([random_.choice(b"0123")]) + b"\0" + random_.randbytes(random_.choice((1048, 1064, 1063, 40, 3))))
    else:
        data = bytearray(random_.randbytes(1) + b"\0" * random_.choice((0, 16, 17, 18, 24, 31, 332, 1224, 1230)))
    return bytes(data)


def check_mutated_packets(packets):
    random_ = random.Random(SEED)
    out = list(packets[:12])
    for _ in range(MUTATED_PACKETS):
        seconds, micros, whole = random_.choice(packets)
        out.append((seconds, micros, with_udp(whole, mutate_payload(random_, whole[28:]))))
    # Other UDP, which neither may take for netcode.
    others = [(out[-1][0], out[-1][1], with_udp(packets[0][2], random_.randbytes(random_.randrange(1, 600)), (23000 + i, 23999))) for i in range(200)]
    write("mutated.pcap", pcap(out + others, 101))
    before = len(lua_errors)
    sharks, tokens, count, faults = compare("mutated.pcap", "key")
    reasons = {row.get("refused", "ok") for row in tokens.values()}
    check("%d mutated packets: both name the same reasons: %s" % (MUTATED_PACKETS, " ".join(sorted(reasons))), not faults and len(reasons) >= 12, faults[:8])
    check("200 other packets are taken for netcode by neither", max(sharks) <= len(out) and max(tokens) <= len(out) and count == len(out) + 200, max(sharks))
    malformed = [row for row in sharks.values() if row["netcode.refused"] in ("TOO_SMALL", "WRONG_BODY_SIZE", "BAD_SEQUENCE_LENGTH", "UNKNOWN_PACKET_TYPE", "OVERSIZED_DATAGRAM")]
    check("%d malformed ones have expert info" % len(malformed), len(malformed) > 500 and all(row["netcode.refused"] in row["_ws.expert.message"] for row in malformed))
    text = tshark("mutated.pcap", "-V", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("tshark -V shows all of them without a Lua error", len(lua_errors) == before and text.count("netcode 1.02") >= len(out) * 9 // 10, lua_errors)


def what_became(rows):
    """Of the sealed packets, whatever requests stand between them."""
    return sorted((row["source"], row["type"], row.get("sequence"), row.get("refused", "ok")) for row in rows.values() if row["type"] != "REQUEST")


def check_forged_requests(packets):
    """Requests are in the clear and can be repeated by anyone, under any address. They must not hide what a real player says."""
    whole = packets[0][2]
    mine = [it for it in packets if ends(it[2]) == ends(whole)]
    stamp = mine[30][:2]
    write("mine.pcap", pcap(mine, 101))
    wanted = what_became(from_token("mine.pcap", "--key-file", path("game.key"))[0])
    port = struct.unpack(">H", whole[22:24])[0]
    recorded = []
    for i in range(5):
        run([PROGRAMS["token"], "mint", "--key-file", path("game.key"), "--client-id", str(70 + i), "--format", "raw", "--output", path("raw.token"), "127.0.0.1:%d" % port])
        token = read("raw.token")
        recorded.append(with_udp(whole, b"\0" + token[:21] + token[29:1085]))
    unknown = [with_udp(whole, whole[28:58] + bytes([i] * 24) + whole[82:]) for i in range(5)]
    for name, forged in (("of five tokens that are not known", unknown), ("of five others' tokens", recorded)):
        for where, out in (("in between", mine[:30] + [(*stamp, it) for it in forged] + mine[30:]), ("from the server's address, first of all", [(*mine[0][:2], way_back(it)) for it in forged] + mine)):
            write("forged.pcap", pcap(out, 101))
            for key in ("key", "keylog"):
                sharks, tokens, count, faults = compare("forged.pcap", key)
                check("requests %s, %s: with %s the player's packets are what they were, in both" % (name, where, key),
                      not faults and len(sharks) == count and what_became(tokens) == wanted and len(wanted) > 50, (len(wanted), faults[:5]))


def check_other_headers(packets):
    """What is around netcode's packets: ICMP that quotes them, names, tunnels, other UDP."""
    some = packets[:60]
    quotes = [(s, u, with_ip(d, 1, struct.pack(">BBHI", 3, 3, 0, 0) + d[:548])) for s, u, d in some]
    write("icmp.pcap", pcap(quotes[:20] + some + quotes, 101))
    sharks, count = from_tshark("icmp.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    write("some.pcap", pcap(some, 101))
    plain, _ = from_tshark("some.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("what ICMP sends back is no replay, and makes none of the packet itself", all(sharks[number + 20]["netcode.refused"] == row["netcode.refused"] for number, row in plain.items()) and
          not any(row["netcode.type"] or row["netcode.refused"] for number, row in sharks.items() if not 20 < number <= 80), [row for row in sharks.values() if row["netcode.refused"]][:3])
    check("and is named where it is shown", sum("ICMP sent back" in row["_ws.expert.message"] for row in sharks.values()) >= len(some))
    clients = sorted({it for _, _, data in packets for it in ends(data)}, key=lambda it: -sum(it in ends(data) for _, _, data in packets))[1:]
    moved = []  # to addresses of their own, with one port
    for seconds, micros, data in packets:
        here = data[12:16] + data[20:22] in clients
        whose = bytes([10, 0, 0, 1 + clients.index(data[12:16] + data[20:22] if here else data[16:20] + data[22:24])])
        ports = struct.unpack(">HH", data[20:24])
        data = (data[:12] + whose + data[16:]) if here else (data[:16] + whose + data[20:])
        moved.append((seconds, micros, with_udp(data, data[28:], (5555, ports[1]) if here else (ports[0], 5555))))
    write("names.pcap", pcap(moved, 101))
    os.makedirs(path("wireshark"), exist_ok=True)
    write("wireshark/hosts", b"10.0.0.1 one.name.example\n10.0.0.2 one.name.example\n")
    named = tshark("names.pcap", "-N", "n", "-T", "fields", "-e", "ip.src_host", "-e", "netcode.connection", "-o", "netcode.keylog_file:" + path("keys.txt"))
    os.remove(path("wireshark/hosts"))
    shown = {tuple(line.split("\t")) for line in named.splitlines()}
    check("two clients whose addresses have one name are two connections", {("one.name.example", "0"), ("one.name.example", "1")} <= shown, shown)
    others = [(*packets[0][:2], with_udp(packets[0][2], bytes(50), (23000 + i, 23999))) for i in range(20)]
    write("late.pcap", pcap(others + packets, 101))
    sharks, _ = from_tshark("late.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("other UDP takes no numbers of connections away", {row["netcode.connection"] for row in sharks.values()} == {"0", "1"}, {row["netcode.connection"] for row in sharks.values()})


def check_many_connections(packets):
    """A capture of everything that a machine does, and a key log of many sessions: the search for connections without a request ends."""
    random_ = random.Random(SEED)
    nonces = [random_.randbytes(24).hex() for _ in range(250)]
    keys = "".join("NETCODE_%s %s %s\n" % (label, nonce, value) for nonce in nonces for label, value in
                   (("CLIENT_TO_SERVER", random_.randbytes(32).hex()), ("SERVER_TO_CLIENT", random_.randbytes(32).hex()), ("PROTOCOL_ID", "%016x" % PROTOCOL_ID)))  # fmt: skip
    write("many_keys.txt", keys.encode() + read("keys.txt"))
    real = [it for it in packets if it[2][28]][:30]
    said = []
    for count in (5, 27):
        others = [(*packets[0][:2], with_udp(packets[0][2], b"\x15" + random_.randbytes(25), (23000 + i // 8, 23999))) for i in range(8 * count)]
        write("crowd.pcap", pcap(others + real, 101))
        sharks, _ = from_tshark("crowd.pcap", "-o", "netcode.keylog_file:" + path("many_keys.txt"))
        said.append((len(sharks), {row["_ws.expert.message"] for row in sharks.values() if row["netcode.decryption"] == "authenticated"}))
    sharks, _ = from_tshark("crowd.pcap", "-o", "netcode.keylog_file:" + path("many_keys.txt"), "-o", "netcode.ports:%d" % struct.unpack(">H", packets[0][2][22:24]))
    check("a connection is found by its key among 5 others", said[0][0] == len(real) and said[0][1] and not any("too many" in it for it in said[0][1]), said[0])
    check("among 27 others and 250 keys the search ends, and that is said", said[1][0] == 0 and len(sharks) == len(real) and
          all("too many packets of unknown connections" in row["_ws.expert.message"] for row in sharks.values()), (said[1], list(sharks.values())[:1]))


def check_cut(packets):
    """What the capture cut off is neither tried with keys nor cut again."""
    large = next(data for _, _, data in packets if len(data) > 1200)
    mine = [it for it in packets if ends(it[2]) == ends(large) and it[2][28]]
    write("cutfirst.pcap", pcap([it for it in mine if len(it[2]) > 1200][:12] + [it for it in mine if len(it[2]) < 200], 101, snap=200))
    rows, _ = from_token("cutfirst.pcap", "--keylog", path("keys.txt"))
    sharks, _ = from_tshark("cutfirst.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("twelve packets that are cut off do not use up the tries for the rest", len(rows) > 20 and all(sharks.get(number, {}).get("netcode.type") for number in rows), (len(rows), len(sharks)))
    rows, _ = from_token("relay.pcap", "--key-file", path("game.key"))
    for number, row in rows.items():
        after = next((at for at, it in rows.items() if row["ok"] and it["ok"] and it["type"] == row["type"] == "PAYLOAD" and it["source"] == row["source"] and
                      it["bytes"] == row["bytes"] and int(it["sequence"]) == int(row["sequence"]) + 1), 0)  # fmt: skip
        if after:
            break
    both = with_udp(packets[number - 1][2], packets[number - 1][2][28:] + packets[after - 1][2][28:])
    write("cutsend.pcap", pcap(packets[:12], 101) + struct.pack("<IIII", *packets[12][:2], len(both) - 40, len(both)) + both[:-40])
    sharks, _ = from_tshark("cutsend.pcap", "-o", "netcode.keylog_file:" + path("keys.txt"))
    check("a send of two packets that is cut off in the second one is called cut off, and not refused", "The capture holds" in sharks[13]["_ws.expert.message"] and not sharks[13]["netcode.refused"], sharks[13])


def check_sealed_here(packets):
    """Sequences up to the last one, in every length, and authentic tokens that break their format."""
    whole = packets[0][2]
    keys = bytes(random.Random(SEED).randbytes(64))
    nonce = bytes(range(24))
    port = struct.unpack(">H", whole[22:24])[0]
    address = b"\x01\x7f\0\0\1" + struct.pack("<H", port)
    out = [with_udp(whole, seal_request(nonce, private_part([address], keys)))]
    sequences = [(number, size) for number in (0, 1, 255, 256, 1 << 31, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1) for size in range(1, 9) if number < 1 << 8 * size]
    for number, size in sequences:
        out.append(with_udp(whole, seal_packet(5, number, size, keys[:32], b"%d in %d" % (number, size))))
        out.append(way_back(with_udp(whole, seal_packet(4, number, size, keys[32:], struct.pack("<II", 0xFFFFFFFF, 0x7FFFFFFF)))))
    write("sequences.pcap", pcap([(*packets[0][:2], it) for it in out], 101))
    sharks, _ = from_tshark("sequences.pcap", "-o", "netcode.private_key_file:" + path("game.key"))
    rows, _ = from_token("sequences.pcap", "--key-file", path("game.key"))
    shown = [(int(sharks[2 + 2 * i]["netcode.sequence"]), sharks[2 + 2 * i]["netcode.decryption"], bytes.fromhex(sharks[2 + 2 * i]["netcode.payload"]).decode()) for i in range(len(sequences))]
    check("%d sequences from 0 to 2^64-1, in 1 to 8 bytes: shown to the last digit" % len(sequences), shown == [(number, "authenticated", "%d in %d" % (number, size)) for number, size in sequences] and
          [int(rows[2 + 2 * i]["sequence"]) for i in range(len(sequences))] == [number for number, _ in sequences], shown[-3:])
    again = {(number, way) for number, size in sequences for way in (0, 1)}
    check("one number in another length is the same packet again", sum(row["netcode.refused"] == "REPLAYED" for row in sharks.values()) == 2 * len(sequences) - len(again), len(again))
    check("a keep-alive's numbers are shown as they are", sharks[3]["netcode.client_index"] == "4294967295" and sharks[3]["netcode.max_clients"] == "2147483647", sharks[3])
    v6 = b"\2" + bytes(range(16)) + b"\1\0"
    broken = [private_part([]), private_part([address], count=33), private_part([address], count=0xFFFFFFFF), private_part([b"\3" + address[1:]]), private_part([b"\0" + address[1:]]),
              private_part([address[:5] + b"\0\0"]), private_part([v6] * 36, count=32)[:1008], private_part([v6] * 32, count=32), private_part([v6], keys=b"")]  # fmt: skip
    out = [with_udp(whole, seal_request(bytes([i]) * 24, it)) for i, it in enumerate(broken)]
    write("tokens.pcap", pcap([(*packets[0][:2], it) for it in out], 101))
    _, tokens, _, faults = compare("tokens.pcap", "key")
    check("%d authentic tokens that are odd: the library and the dissector say the same of each" % len(broken), not faults and
          sum(row.get("refused") == "TOKEN_MALFORMED" for row in tokens.values()) >= 6, faults or {number: row.get("refused") for number, row in tokens.items()})


# ---- messages: read here again, from THE WIRE in netcode.h, room 16 ----

KIND_NAMES = ["unreliable", "unreliable sequenced", "reliable", "reliable ordered", "reliable sequenced", "stream"]
CONTROLS = {0x07: "ACK_RANGES", 0x0F: "PING", 0x17: "PONG", 0x1F: "LIMIT", 0x27: "CANCEL", 0x2F: "REFUSE", 0x37: "BROKEN"}
MESSAGE_FIELDS = ["frame", "frame_type", "number", "ack", "ack_bits", "acked", "ack_delay", "please_ack", "kind", "channel", "id", "order", "tag", "length", "total", "index",
                  "offset", "fragments", "data", "range.first", "range.last", "ping", "credit", "largest", "channels", "epoch", "cost", "reason", "dropped"]  # fmt: skip


def check_probes():
    """Probes and their echoes, sealed here; and a session whose port the relay changes in mid-game."""
    server = Child("server2", [PROGRAMS["server"], "--address", "127.0.0.1:0", "--key-file", path("game.key"), "--echo", "--roaming", "--seconds", "300"])
    port = int(server.said(r"listening on 127\.0\.0\.1:(\d+)").group(1))
    relay = Child("relay2", [PROGRAMS["relay"], "--listen", "127.0.0.1:0", "--to", "127.0.0.1:%d" % port, "--delay", "30", "--rebind-every", "3", "--seconds", "300", "--pcap", path("moved.pcap")])
    keys = mint("moved.json", 1, "127.0.0.1:%s=127.0.0.1:%d" % (relay.said(r"listening on 127\.0\.0\.1:(\d+)").group(1), port))
    write("moved.keys", keys)
    client = play("moved.json", "--count", "0", "--rate", "60", "--seconds", "5")
    client.process.wait(LIMIT_SECONDS)
    server.said(" disconnected ")
    relay.stop()
    server.stop()
    moves = re.findall(r" moved slot=0 client=1 .* to=127\.0\.0\.1:(\d+)", read("server2.log").decode())
    check("the relay changes the client's port, and the server follows", client.process.returncode == 0 and len(moves) >= 1, read("server2.log")[-600:])
    sharks, tokens, count, faults = compare("moved.pcap", "key")
    check("%d packets of a client that moves: recognised, and equal to what netcode-token says" % count, not faults and len(sharks) == count > 200, faults[:5])
    before = [row for row in sharks.values() if not row["netcode.moved"]]
    after = [row for row in sharks.values() if row["netcode.moved"]]
    check("they are one connection, %d and %d packets before and after" % (len(before), len(after)), len(before) > 100 and len(after) > 50 and
          {row["netcode.connection"] for row in sharks.values()} == {"0"} and
          all(row["netcode.decryption"] == "authenticated" and row["netcode.request_in"] for row in after), after[:1])
    kinds = {(row["netcode.direction"], row["netcode.probe_kind"]) for row in sharks.values() if row["netcode.probe"]}
    check("probes and echoes go both ways", kinds == {(way, kind) for way in ("to_server", "to_client") for kind in ("probe", "echo")}, kinds)
    echoes = [row for row in sharks.values() if row["netcode.probe_kind"] == "echo"]
    wrong = [row for row in echoes if sharks[int(row["netcode.probe_in"])]["netcode.probe"] != row["netcode.probe"] or
             sharks[int(row["netcode.probe_in"])]["netcode.direction"] == row["netcode.direction"] or not 0.02 < float(row["netcode.probe_seconds"]) < 1]
    check("each of %d echoes leads to its probe, 30 ms earlier or more" % len(echoes), len(echoes) > 6 and not wrong, wrong)
    write("moved_log.keys", keys)
    sharks, _ = from_tshark("moved.pcap", "-o", "netcode.keylog_file:" + path("moved_log.keys"), "-o", "netcode.verify:FALSE")
    check("without tags nothing is followed, and nothing is called authenticated", not any(row["netcode.moved"] or row["netcode.decryption"] == "authenticated" for row in sharks.values()))


class Refused(Exception):
    pass


class Bytes:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        if count > len(self.data):
            raise Refused("FRAME")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, count):
        return int.from_bytes(self.take(count), "little")

    def varint(self):
        encoded = b""
        while not encoded or encoded[-1] & 128:
            encoded += self.take(1)
            if len(encoded) > 4:
                raise Refused("FRAME")
        if len(encoded) > 1 and encoded[-1] == 0:
            raise Refused("FRAME")
        return sum((octet & 127) << 7 * i for i, octet in enumerate(encoded))


def refuse_if(condition, reason="FRAME"):
    if condition:
        raise Refused(reason)


def read_ranges(it, packet, row):
    count, at = it.number(1), 33
    refuse_if("ack" not in packet or "range.first" in packet or not 1 <= count <= 16)
    for _ in range(count):
        skipped, received = it.varint(), it.varint()
        refuse_if(received == 0)
        at += skipped + received
        refuse_if(at - 1 > 2047)
        row.setdefault("range.first", []).append((packet["ack"][0] - (at - 1)) % 65536)
        row.setdefault("range.last", []).append((packet["ack"][0] - (at - received)) % 65536)


def read_control(it, packet, first, row):
    name = CONTROLS[first]
    if name == "ACK_RANGES":
        read_ranges(it, packet, row)
    elif name in ("PING", "PONG"):
        row["ping"] = [it.number(4)]
    elif name == "LIMIT":
        row["credit"], row["largest"], row["channels"], row["epoch"] = [it.number(4)], [it.varint()], [it.number(1)], [it.number(2)]
        refuse_if(row["largest"][0] < 1180 or not 1 <= row["channels"][0] <= 32, "LIMIT")
    elif name == "CANCEL":
        row["id"], row["cost"] = [it.number(2)], [it.varint()]
        refuse_if(0 < row["cost"][0] < 80)
        refuse_if(row["cost"][0] > (1 << 24) + 80 + 512, "LIMIT")
    elif name == "REFUSE":
        count = it.number(1)
        refuse_if("REFUSE" in packet.get("frame", []) or not 1 <= count <= 16)
        row["id"] = [it.number(2) for _ in range(count)]
    else:
        row["reason"] = [it.number(1)]
        refuse_if(not 1 <= row["reason"][0] <= 6)


def read_fragment(it, packet, row):
    kind, total, index = row["kind"][0], it.number(4), it.varint()
    pieces = max(1, -(-total // 1168)) if kind == 5 or total > 1180 else 0
    if index < pieces:
        row["data"] = [it.take(min(1168, total - index * 1168)).hex()]
    refuse_if(row["channel"][0] > 31, "CHANNEL")
    refuse_if(index >= pieces or kind != 5 and total > 1 << 24 or "FRAGMENT" in packet.get("frame", []), "FRAGMENT")
    row.update(total=[total], index=[index], offset=[index * 1168], fragments=[pieces])


def read_message(it, packet, first, row):
    kind = first & 7
    row["kind"], row["channel"] = [kind], [it.number(1) if first & 16 else 0]
    refuse_if(first & 16 and row["channel"] == [0])
    refuse_if(first & 8 and kind < 2 or kind == 5 and not first & 8)
    if kind >= 2:
        row["id"] = [it.number(2)]
    if kind == 5:
        row["tag"] = [it.number(4)]
    elif kind == 3:
        row["order"] = [it.number(2)]
    if first & 8:
        read_fragment(it, packet, row)
    else:
        row["length"] = [len(it.data) if first & 32 else it.varint()]
        refuse_if(row["length"][0] > 1180)
        row["data"] = [it.take(row["length"][0]).hex()]
        refuse_if(row["channel"][0] > 31, "CHANNEL")
    if row["data"] == [""]:
        del row["data"]  # nothing to show


def read_header(it, packet):
    refuse_if(len(it.data) < 9 or (it.data[0] & 32 and len(it.data) < 11), "HEADER")
    flags, number, ack, bits = struct.unpack("<BHHI", it.take(9))
    delay = it.number(2) if flags & 32 else None
    refuse_if(flags & 15 != 3, "VERSION")
    packet["number"], packet["please_ack"] = [number], [flags >> 6 & 1]
    if flags & 16:
        packet.update(ack=[ack], ack_bits=[bits], acked=[ack] + [(ack - 1 - i) % 65536 for i in range(32) if bits >> i & 1])
        if delay is not None:
            packet["ack_delay"] = [delay / 10]
    refuse_if(flags & 128 or (not flags & 16 and (ack or bits or delay is not None)), "HEADER")


def read_messages(data):
    """Every field that is to be shown of a packet, in order; frames up to the malformed one."""
    it, packet = Bytes(data), {}
    try:
        read_header(it, packet)
        while it.data:
            first = it.number(1)
            row = {"frame_type": [first]}
            if first in CONTROLS:
                row["frame"] = [CONTROLS[first]]
                read_control(it, packet, first, row)
            else:
                refuse_if(first >= 64 or first & 7 > 5)
                row["frame"] = ["FRAGMENT" if first & 8 else "MESSAGE"]
                read_message(it, packet, first, row)
            for name, values in row.items():
                packet[name] = packet.get(name, []) + values
    except Refused as refused:
        packet["dropped"] = [str(refused)]
    return packet


def shown_messages(name, *options):
    """The same from tshark, for each packet with a payload; and the info column, the expert info and the payload."""
    columns = ["netcode.messages." + field for field in MESSAGE_FIELDS] + ["netcode.payload", "_ws.col.Info", "_ws.expert.message"]
    text = tshark(name, "-Y", "netcode.payload", "-T", "fields", "-E", "separator=\t", "-E", "occurrence=a", *[it for field in columns for it in ("-e", field)], *options)
    rows = []
    for line in text.splitlines():
        cells = line.split("\t")
        packet = {}
        for field, cell in zip(MESSAGE_FIELDS, cells):
            if cell:
                convert = str if field in ("frame", "data", "dropped") else float if field == "ack_delay" else lambda it: int(it, 0)
                packet[field] = [convert(it) for it in cell.split(",")]
        rows.append((packet, *cells[len(MESSAGE_FIELDS):]))
    return rows


def wire_examples():
    """The worked examples in netcode.h."""
    found = []
    for line in re.findall(r"^ +wire: (.*)$", read(os.path.join(TOP, "netcode.h")).decode(), re.M):
        octets = re.findall(r"([0-9a-f]{2})(?:\*(\d+))?", line.replace("|", " "))
        found.append(b"".join(bytes.fromhex(octet) * int(times or 1) for octet, times in octets))
    return found


HEADER, ACKED = bytes.fromhex("430900000000000000"), bytes.fromhex("7301000500030000801027")


def message_packets():
    """Each frame of each kind, and each way to be wrong."""
    frames = ["00026869", "1c1f0500ee0d000001" + "cc" * 1168, "010161", "111f00", "02ffff0161", "0300010002026162", "04070000", "20", "2161", "2201006162", "230100020061", "33010100020061", "24010061", "0a0100ee0d000000" + "aa" * 1168,
              "0b01000200ee0d000002" + "bb" * 1222, "0d01000300000000000000" + "00", "0d010003000000010000000061", "1d050100ffffffffffffffff8fa7e001" + "dd" * 511,
              "0f01020304", "1700000000", "1fffffffff9c09013412", "1f00000000ffffff7f203412", "27010050", "2701009c09", "270100d0848008", "2f010a00", "2f02ffff0100", "2f10" + "0a00" * 16, "3701", "3706"]
    wrong = ["06", "0e", "1e", "40", "80", "ff", "3f", "0801", "0901", "1000", "100001", "102001", "050100000000000061", "2a0100ee0d000000" + "aa" * 1168, "0a01009c04000000", "0a0100ee0d000003", "0a0100ee0d00008000" + "aa" * 1168,
             "0a0100ffffffff00" + "aa" * 1168, "1a200100ee0d000000" + "aa" * 1168, "1f000000009b09013412", "1f00000000ffffffff01013412", "1f000000009c09003412", "1f000000009c09213412", "1f000000009c09", "0080", "008000", "0081800061", "2701004f", "270100d000", "27010050ff", "270100d1848008", "27010080ff",
             "2f00", "2f020100", "2f11" + "0a00" * 17, "2f0101002f010200", "3700", "3707", "37", "0d010000000000010000000061" + "0d020000000000010000000062", "07", "0700", "0711", "07010100", "070100", "0701df0f01", "0701de0f01", "0702000101010701000 1".replace(" ", "")]
    ranges = ["070100" + "01", "0701" + "00df0f", "0701de0f01", "0701" + "00e00f", "0711" + "0001" * 17, "0710" + "0001" * 16, "070100010701" + "0001", "07010000"]
    packets = [head + bytes.fromhex(body) for body in frames + wrong for head in (HEADER, ACKED)] + [ACKED + bytes.fromhex(it) for it in ranges]
    packets += [HEADER + bytes.fromhex(frames[2] + frames[0] + frames[17 + i] + "20") for i in range(len(frames) - 17)]
    packets += [bytes([flags]) + bytes.fromhex("ffff") + bytes(6) + rest for flags in range(256) for rest in (b"", b"\0\0")]
    packets += [bytes([flags]) + bytes.fromhex("ffff0100ffffffff0a00") + b"\0\1x" for flags in range(256)]
    return [it for it in packets if len(it) <= 1200]


def check_messages(packets):
    whole, keys, nonce, random_ = packets[0][2], random.Random(SEED).randbytes(64), bytes(range(24)), random.Random(SEED)
    good = wire_examples() + message_packets()
    short = [it for it in good if len(it) < 60] + wire_examples()[4:5]
    cut = [it[:length] for it in short for length in range(1, len(it))] + [it[:length] for it in good if len(it) > 1000 for length in (20, 21, 600, len(it) - 1)]
    mutated = []
    for _ in range(2000):
        data = bytearray(random_.choice(short))
        for _ in range(random_.randrange(1, 4)):
            data[random_.randrange(len(data))] = random_.choice((0, 1, 0x80, 0xFF, random_.randrange(256)))
        mutated.append(bytes(data))
    plain = list(dict.fromkeys(good + cut + mutated))
    address = b"\x01\x7f\0\0\1" + whole[22:24][::-1]
    out = [with_udp(whole, seal_request(nonce, private_part([address], keys)))]
    out += [with_udp(whole, seal_packet(5, i, 4, keys[:32], data)) for i, data in enumerate(plain)]
    write("messages_here.pcap", pcap([(*packets[0][:2], it) for it in out], 101))
    key = ["-o", "netcode.private_key_file:" + path("game.key")]
    wanted = [read_messages(data) for data in plain]
    reasons = {it["dropped"][0] for it in wanted if "dropped" in it}
    seen = {name for it in wanted for name in it.get("frame", [])}
    kinds = {it["kind"][0] for it in wanted if "kind" in it}
    check("messages: the packets tried have every frame, kind and reason", seen == set(CONTROLS.values()) | {"MESSAGE", "FRAGMENT"} and kinds == set(range(6)) and
          reasons == {"HEADER", "FRAME", "CHANNEL", "FRAGMENT", "LIMIT", "VERSION"}, (seen, kinds, reasons))
    rows = shown_messages("messages_here.pcap", *key, "-o", "netcode.messages:Always")
    faults = [(data.hex()[:80], shown[0], want) for data, shown, want in zip(plain, rows, wanted) if shown[0] != want]
    check("messages: %d packets, %d of them malformed: each field as it is read here" % (len(plain), sum("dropped" in it for it in wanted)), len(rows) == len(plain) and not faults, faults[:2])
    check("messages: what is malformed has expert info, and nothing else has", all(("dropped" in want) == bool(shown[3]) for shown, want in zip(rows, wanted)))
    rows = shown_messages("messages_here.pcap", *key)
    check("messages: those that are valid to their end are detected, and no others", [shown[0] for shown in rows] == [{} if "dropped" in want else want for want in wanted] and
          not any(shown[3] for shown in rows))
    text = next(shown[2] for shown in rows if shown[1] == wire_examples()[1].hex())
    check("messages: the info column is a short summary", "(messages: number 2, ack 7, 2 messages)" in text, text)
    rows = shown_messages("messages_here.pcap", *key, "-o", "netcode.messages:Never")
    check("messages: none, where the preference says so", len(rows) == len(plain) and not any(shown[0] for shown in rows))
    text = tshark("messages_here.pcap", "-V", *key, "-o", "netcode.messages:Always")
    check("messages: tshark -V shows all, with names of kinds", all("(%d)" % i in text and "Kind: %s (%d)" % (name, i) in text for i, name in enumerate(KIND_NAMES)) and
          not re.search(r"\[Malformed Packet: netcode", text), re.findall(r"Kind: .*", text)[:3])


def check_messages_sample():
    folder = os.path.join(TOP, "examples", "wireshark")
    for name in ("messages.pcap", "messages.keys"):
        shutil.copy(os.path.join(folder, name), path(name))
    rows = shown_messages("messages.pcap", "-o", "netcode.keylog_file:" + path("messages.keys"))
    wanted = [read_messages(bytes.fromhex(row[1])) for row in rows]
    seen = {name for it in wanted for name in it.get("frame", [])}
    kinds = {it for packet in wanted for it in packet.get("kind", [])}
    check("the sample of messages: %d packets, every kind and every frame but BROKEN, as they are read here" % len(rows), [row[0] for row in rows] == wanted and
          not any("dropped" in it for it in wanted) and kinds == set(range(6)) and seen == set(CONTROLS.values()) - {"BROKEN"} | {"MESSAGE", "FRAGMENT"}, (seen, kinds))


def check_growing_keylog(packets):
    """tshark reads a capture that goes on, while the game writes its key log. A half-written line is not an error."""
    packets = [it for it in packets if ends(it[2]) == ends(packets[0][2])]
    keys = b"".join(line for line in read("keys.txt").splitlines(True) if packets[0][2][58:82].hex().encode() in line)
    middle = keys.index(b"NETCODE_SERVER_TO_CLIENT") + 40
    write("growing.txt", keys[:middle])
    half = len(packets) // 2
    data = pcap(packets, 101)
    cut = len(pcap(packets[:half], 101))
    command = ["tshark", "-n", "-l", "-X", "lua_script:" + LUA, "-o", "netcode.keylog_file:" + path("growing.txt"), "-T", "fields", "-e", "frame.number", "-e", "netcode.decryption",
               "-e", "_ws.expert.message", "-r", "-"]  # fmt: skip
    environment = dict(os.environ, LC_ALL="C", HOME=WORK, XDG_CONFIG_HOME=WORK)
    with open(path("growing.log"), "wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, env=environment)
    guard = threading.Timer(120, child.kill)  # a reader that does not read holds the writer
    guard.start()
    try:
        child.stdin.write(data[:cut])
        child.stdin.flush()
        until(lambda: child.poll() is not None or read("growing.log").count(b"\n") >= half // 2, "what tshark says of the first half")
        with open(path("growing.txt"), "ab") as file:
            file.write(keys[middle:].rstrip(b"\n"))  # the last line has no end yet
        child.stdin.write(data[cut:])
        child.stdin.close()
        child.wait(LIMIT_SECONDS)
    except (BrokenPipeError, TimedOut):
        pass  # its log says why
    finally:
        guard.cancel()
        child.kill()
        child.wait()
    rows = {int(row[0]): row for row in (line.split("\t") for line in read("growing.log").decode(errors="replace").splitlines()) if row[0].isdigit()}
    check("what came before the keys stays closed, what comes after them is opened", len(rows) == len(packets) and
          "no key" in {rows[number][1] for number in range(10, half // 2)} and {rows[number][1] for number in range(len(packets) - 20, len(packets) + 1)} == {"authenticated"},
          sorted((number, row[1]) for number, row in rows.items())[-60:])
    check("and half a line is not called wrong", not any("key log" in row[2] for row in rows.values()), rows.get(1))


def mutate_frames(random_, packets):
    """Frames that are wrong in front of UDP, or hold UDP in another way."""
    seconds, micros, data = random_.choice(packets)
    kind = random_.randrange(8)
    if kind < 2:
        data = bytearray(data)
        for _ in range(random_.randrange(1, 6)):
            at = random_.randrange(min(len(data), 60))
            data[at:at + random_.randrange(3)] = random_.choice((b"", b"\0\0\0\0", b"\xff\xff\xff\xff", random_.randbytes(3)))
        out = [bytes(data)]
    elif kind == 2:
        cut = random_.randrange(0, len(data) // 8) * 8
        out = [with_ip(data, 17, data[20:20 + cut], 0x2000), with_ip(data, 17, data[20 + cut:], cut // 8)]
        random_.shuffle(out)
    elif kind == 3:
        inner = with_udp(data, mutate_payload(random_, data[28:]))
        out = [random_.choice((with_ip(data, 4, inner), with_ip(data, 47, b"\0\0\x08\0" + inner), with_ip(data, 1, struct.pack(">BBHI", 3, 3, 0, 0) + inner),
                               with_udp(data, b"\x08\0\0\0\0\0\1\0" + bytes(12) + b"\x08\0" + inner, (1234, 4789))))]  # fmt: skip
    elif kind < 6:
        size, first = random_.randrange(18, 300), random_.randrange(256)
        out = [with_udp(data, b"".join(bytes([0x15, (first + i) % 256]) + random_.randbytes(size - 2) for i in range(random_.randrange(2, 60))))]
    elif kind == 6:
        out = [with_udp(data, b"".join(it[2][28:] for it in random_.sample(packets, random_.randrange(2, 6))))]
    else:
        out = [with_udp(data, mutate_payload(random_, data[28:]))]
    return [(seconds, micros, it) for it in out]


def check_mutated_frames(packets):
    random_ = random.Random(SEED)
    out = packets[:12] + [it for _ in range(MUTATED_FRAMES) for it in mutate_frames(random_, packets)]
    port = struct.unpack(">H", packets[0][2][22:24])[0]
    keylog, key = ["-o", "netcode.keylog_file:" + path("keys.txt")], ["-o", "netcode.private_key_file:" + path("game.key")]
    before, seen, start = len(lua_errors), [], time.monotonic()
    for snap, options in ((None, keylog), (300, key), (None, ["-o", "netcode.ports:%d" % port]), (1100, keylog + ["-o", "netcode.verify:FALSE"]), (None, keylog + key + ["-2"])):
        write("frames.pcap", pcap(out, 101, snap=snap))
        text = tshark("frames.pcap", "-V", *options)
        seen.append(text.count("\nnetcode 1.02, "))
        lua_errors.extend(re.findall(r"\[Malformed Packet: netcode.*", text, re.I)[:3])
    check("%d mutated frames in five settings, %.1f s: no Lua error, and nothing reads past an end: %s" % (len(out), time.monotonic() - start, seen),
          len(lua_errors) == before and min(seen) > MUTATED_FRAMES // 4, lua_errors[before:])


def check_port_preference(packets, port):
    some = [it for it in packets if len(it[2]) < 1000][6:60]  # no request, and no key
    write("port.pcap", pcap(some, 101))
    sharks, count = from_tshark("port.pcap")
    check("without request, key or port nothing is called netcode", not sharks and count == len(some))
    sharks, count = from_tshark("port.pcap", "-o", "netcode.ports:%d" % port)
    check("the port preference makes it netcode, with its direction", len(sharks) == count and {row["netcode.direction"] for row in sharks.values()} == {"to_server", "to_client"})
    sharks, count = from_tshark("port.pcap", "-d", "udp.port==%d,netcode" % port)
    check("so does Decode As", len(sharks) == count)
    rows, _ = from_token("port.pcap", "--port", str(port))
    check("decrypt --port too", len(rows) == count and all(row["sealed"] for row in rows.values()))


def check_sample():
    folder = os.path.join(TOP, "examples", "wireshark")
    for name in ("sample.pcap", "sample.keys"):
        shutil.copy(os.path.join(folder, name), path(name))
    rows, result = from_token("sample.pcap", "--keylog", path("sample.keys"))
    sharks, count = from_tshark("sample.pcap", "-o", "netcode.keylog_file:" + path("sample.keys"))
    check("the sample beside the dissector: %d packets, all opened in both" % count, result.returncode == 0 and len(rows) == count == len(sharks) > 30 and
          all(row["netcode.decryption"] == "authenticated" for row in sharks.values() if row["netcode.type"] != "0") and
          {row["type"] for row in rows.values()} == set(TYPES) - {"DENIED"}, result.stdout[-300:])


def check_denied():
    """A server without a free slot says DENIED: the one type that a peaceful session does not have."""
    server = Child("server1", [PROGRAMS["server"], "--address", "127.0.0.1:0", "--key-file", path("game.key"), "--slots", "1", "--seconds", "300"])
    port = int(server.said(r"listening on 127\.0\.0\.1:(\d+)").group(1))
    relay = Child("relay1", [PROGRAMS["relay"], "--listen", "127.0.0.1:0", "--to", "127.0.0.1:%d" % port, "--seconds", "300", "--pcap", path("denied.pcap")])
    where = "127.0.0.1:%s=127.0.0.1:%d" % (relay.said(r"listening on 127\.0\.0\.1:(\d+)").group(1), port)
    mint("first.json", 1, where)
    mint("second.json", 2, where)
    first = play("first.json", "--listen", "--seconds", "300")
    first.said(r"connected to")
    second = play("second.json", "--listen", "--seconds", "300")
    second.process.wait(LIMIT_SECONDS)
    for child in (first, relay, server):
        child.stop()
    sharks, tokens, count, faults = compare("denied.pcap", "key")
    check("DENIED of a full server is opened in both", not faults and len(sharks) == count and any(row["type"] == "DENIED" and row["ok"] for row in tokens.values()), faults)


def check_mutated_files():
    driver = build("fuzz" + TAG, "build/wireshark/fuzz.c", *SANITIZE, "-Iexamples", "-D_DEFAULT_SOURCE", '-DTOKEN="%s"' % TOKEN)
    seeds = [path(name) for name in ("small.pcap", "small.pcapng", "small6.pcap")]
    start = time.monotonic()
    result = run([driver, str(MUTATED_FILES), str(SEED), path("fuzz.pcap"), path("game.key"), path("keys.txt"), *seeds], seconds=300,
                 environment={"ASAN_OPTIONS": "log_path=" + path("asan"), "UBSAN_OPTIONS": "log_path=" + path("asan") + ":print_stacktrace=1"})
    reports = [read(name)[:1500].decode(errors="replace") for name in sorted(os.listdir(WORK)) if name.startswith("asan.")]
    counts = [int(it) for it in re.findall(rb"\d+", result.stderr)] or [0] * 5
    check("%d mutated captures under sanitizers, %.1f s: no crash; fine, failed, opened nothing: %s" % (MUTATED_FILES, time.monotonic() - start, [counts[0], counts[1], counts[-1]]),
          result.returncode == 0 and not reports and sum(counts) == MUTATED_FILES and min(counts[0], counts[1]) > MUTATED_FILES // 20, reports or result.stderr)


def prepare():
    """A folder of its own with fresh captures, or (for a planted fault) the one of an earlier run."""
    global WORK
    if os.environ.get("WIRESHARK_REUSE"):
        WORK = os.environ["WIRESHARK_REUSE"]
        names = [name for name in ("relay.pcap", "lo.pcap", "any.pcap", "any2.pcap") if os.path.exists(path(name))]
        port = int(re.search(r"listening on 127\.0\.0\.1:(\d+)", read("server.log").decode()).group(1))
    else:
        WORK = tempfile.mkdtemp(prefix="wireshark", dir=OUT)
        run([PROGRAMS["token"], "keygen", "--output", path("game.key")])
        run([PROGRAMS["token"], "keygen", "--output", path("other.key")])
        names, port = capture_sessions()
    packets = pcap_packets("relay.pcap")[1]
    write("small.pcap", pcap(packets[:30], 101))
    write("small.pcapng", pcapng(packets[:30], 101))
    write("small6.pcap", pcap([(s, u, bytes(12) + b"\x86\xdd" + to_ipv6(d, b"\x00\x11\x00" + bytes(6))) for s, u, d in packets[:30]], 1))
    return names, packets, port


def run_checks():
    names, packets, port = prepare()
    checks = {"sessions": lambda: check_sessions(names), "denied": check_denied, "links": lambda: check_links(packets), "left out": lambda: check_left_out(packets),
              "uncut": lambda: check_uncut(packets), "keys": lambda: check_keys(packets), "keylog": check_keylog, "libraries": check_without_libraries,
              "luas": check_luas, "forged": lambda: check_forged_requests(packets), "headers": lambda: check_other_headers(packets), "many": lambda: check_many_connections(packets), "cut": lambda: check_cut(packets),
              "probes": check_probes, "sealed here": lambda: check_sealed_here(packets), "growing": lambda: check_growing_keylog(packets), "frames": lambda: check_mutated_frames(packets), "port": lambda: check_port_preference(packets, port), "packets": lambda: check_mutated_packets(packets),
              "messages": lambda: check_messages(packets), "messages sample": check_messages_sample, "sample": check_sample, "files": check_mutated_files}
    refuse_unknown(sys.argv[1:], checks)
    for name in checks:
        if len(sys.argv) < 2 or any(word in name for word in sys.argv[1:]):
            checks[name]()
    check("no Lua error in any run of tshark", not lua_errors, lua_errors)


def main():
    global PROGRAMS
    if subprocess.run(["sh", "tests/tools/need.sh", *PACKAGES], cwd=TOP, check=False).returncode:
        sys.exit("wireshark: a package is missing")
    # In a network of its own no other program sends to a port that was another's before: every datagram of a capture is from here.
    if not os.environ.get("WIRESHARK_ALONE") and subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ["WIRESHARK_ALONE"] = "yes"
        # tshark reports a datagram to a port from 33434 on as a possible traceroute, in the expert info that is compared here.
        command = 'ip link set lo up && echo 40000 60999 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"'
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", command, "alone", sys.executable, *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    PROGRAMS = build_all()
    try:
        run_checks()
    finally:
        for child in children:
            child.stop(signal.SIGKILL)
        if WORK and not (os.environ.get("WIRESHARK_REUSE") or os.environ.get("WIRESHARK_KEEP")):
            shutil.rmtree(WORK, ignore_errors=True)
    print("wireshark: %d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed or (skipped and SKIPS_FAIL) else 0


# ---- planted faults: where, what is taken out of a copy, what stands there instead, what that means, which checks are run ----

PLANTS = [
    ("netcode.lua", "            return nil, true\n", "", "a tag that does not fit is accepted", "keys"),
    ("netcode.lua", "body > rule.most", "body > 5000", "payloads may have any size", "packets"),
    ("netcode.lua", "if sequence_bytes < 1 or sequence_bytes > 8 then", "if sequence_bytes > 8 then", "a sequence of no bytes is read: a Lua error", "packets"),
    ("netcode.lua", 'if bytes < LEAST_SEALED then return kind, nil, nil, "TOO_SMALL" end', "", "small packets have another name", "packets"),
    ("netcode.lua", 'found.is_verified and "authenticated" or "not authenticated"', '"authenticated"', "what was not verified is called authenticated", "libraries"),
    ("netcode.lua", 'connection.client == from and "to_server" or "to_client") }', 'connection.client == from and "to_client" or "to_server") }', "the ways are mixed up", "sessions"),
    ("netcode.lua", 'found.reason = found.duplicate_of and "REPLAYED" or nil', "", "replays are not noticed", "sessions"),
    ("netcode.lua", "asked.frame, pinfo.abs_ts - asked.time", "asked.frame, 0", "echoes come at once", "sessions"),
    ("netcode.lua", "    pinfo.cols.info = why", "    local _ = why", "the info column is left to UDP", "denied"),
    ("netcode.lua", "    pinfo.conversation = netcode\n", "    if true then return false end\n", "nothing is recognised", "sample"),
    ("netcode.lua", "if size then", "if false then", "sends are not cut", "uncut"),
    ("netcode.lua", "if not connection.is_proven and is_request(data) then", "if not connection.client and is_request(data) then", "a forged request says which side is the client's", "forged"),
    ("netcode.lua", "table.remove(uses, not uses[place].has_opened and place or nil)", "table.remove(uses)", "forged requests drive the real one out", "forged"),
    ("netcode.lua", 'if header() then return "sent back by ICMP" end', "", "what ICMP quotes is taken for a packet", "headers"),
    ("netcode.lua", "if reason or tries >= MOST_TRIES then break end", "if reason then break end", "the search for connections without a request has no end", "many"),
    ("netcode.lua", "if found[i].value == address then", "if false then", "an address is its name", "headers"),
    ("netcode.lua", 'local whole = data:match("^.*\\n") or ""', "local whole = data", "half a line is passed over, and so is its rest", "growing"),
    ("netcode.lua", "if newest and not newest[found.way] then", "if false then", "a key log that grows is not read again", "growing"),
    ("netcode.lua", "word % 4294967296", "word % 4294967295", "XChaCha20 is computed wrongly", "luas"),
    ("netcode.lua", "if i > 1 and octet == 0 then reader.has_failed = true end", "", "varints that are not in their shortest form are accepted", "messages"),
    ("netcode.lua", "numbers[#numbers + 1] = below(packet.ack, bit + 1)", "numbers[#numbers + 1] = below(packet.ack, bit)", "ack bits are one number off", "messages"),
    ("netcode.lua", "distance + skipped + received > REMEMBERED", "distance + skipped + received > REMEMBERED + 1", "ranges reach one number too far", "messages"),
    ("netcode.lua", "if packet.reason and netcode.prefs.messages ~= ALWAYS then", "if false then", "whatever is no packet of messages is shown as one", "messages"),
    ("netcode.lua", "frame.offset = frame.index * FRAGMENT_BYTES", "frame.offset = frame.index * WHOLE_BYTES", "offsets of fragments are wrong", "messages"),
    ("netcode.lua", "if #data - reader.at + 1 < bytes then", "if false then", "frames are read past their end: a Lua error", "messages"),
    ("netcode.lua", "elseif frame.kind == ORDERED then", "elseif frame.kind == ORDERED or frame.kind == 4 then", "sequenced messages have an order", "messages"),
    ("netcode.lua", "if packet.has_fragment then", "if false then", "a packet may have two fragments", "messages"),
    ("netcode.lua", "if packet.has_refusals or count < 1", "if count < 1", "a packet may have two REFUSE", "messages"),
    ("netcode.lua", "tvb(frame.at + 2 * i - 1, 2), id)", "tvb(frame.at + 2 * i - 1, 2), frame.ids[1])", "of a REFUSE the first id is shown for all", "messages"),
    ("netcode.lua", "frame.channels < 1 or frame.channels > CHANNELS", "frame.channels > CHANNELS", "a LIMIT may be of no channel", "messages"),
    ("netcode.lua", "return frame.cost > MOST_COST and", "return frame.cost > MOST_MESSAGE and", "the largest message can not be cancelled", "messages"),
    ("netcode.lua", "body:byte(8) < 128", "body:byte(8) < 256", "probes are numbers of clients", "probes"),
    ("netcode.lua", 'found.probe = asked and "echo" or "probe"', 'found.probe = "probe"', "echoes are probes", "probes"),
    ("netcode.lua", "    connection.index, connection.has_moved = owner.connection.index, true\n", "", "a client that moves is another connection", "probes"),
    ("token.c", "if ( body[7] & 0x80 )", "if ( 0 )", "probes are numbers of clients", "probes"),
    ("token.c", "int reason = nc_replay_seen( replay, header->sequence );", "int reason = NETCODE_DROP_NONE;", "replays are not noticed", "sessions"),
    ("token.c", "keylog_labels[i], nonce, key );", "keylog_labels[1 - i], nonce, key );", "keys under the wrong labels", "keylog"),
    ("token.c", "data[i] < 32 || data[i] > 126 ||", "", "payloads reach the terminal as they are", "keys"),
    ("token.c", "return NETCODE_DROP_OVERSIZED_DATAGRAM;\n    return nc_packet_parse(", "return NETCODE_DROP_TOO_SMALL;\n    return nc_packet_parse(", "another reason than the library's", "packets"),
    ("token.c", "next.sequence == first.sequence + at / size", "next.sequence == first.sequence", "sends are not cut", "uncut"),
    ("token.c", "while ( place > 0 && connection->uses[place].has_opened )", "while ( 0 )", "forged requests drive the real one out", "forged"),
    ("token.c", "if ( !connection->is_proven && is_request( packet ) )", "if ( !connection->is_sided && is_request( packet ) )", "a forged request says which side is the client's", "forged"),
    ("wireshark/capture.h", "second << 32 | first", "first << 32 | second", "pcapng's time is read wrongly", "links"),
    ("wireshark/capture.h", "    if ( bytes > cursor.bytes )\n        return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;\n", "", "a datagram may be longer than its packet", "left out"),
    ("wireshark/capture.h", "        if ( !capture_advance( &cursor, bytes ) )\n            return cursor.is_cut ? CAPTURE_CUT : CAPTURE_DAMAGED;\n    }", "        cursor.at += bytes;\n    }", "IPv6 headers may lead past the end", "left out"),
    ("wireshark/capture.h", "& 0x3fff", "& 0x0000", "fragments are taken for datagrams", "left out"),
    ("wireshark/capture.h", "return block->bytes <= bytes - 20;", "return 1;", "a pcapng block may be shorter than its packet", "files"),
    ("wireshark/capture.h", "if ( bytes > CAPTURE_LARGEST )", "if ( bytes > 0xffffffff )", "a packet may be larger than the buffer", "left out"),
]


def plant(folder, name, old, new):
    """Copies with one fault. False when there is no place for it any more."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "wireshark"))
    found = False
    for copy, original in {"netcode.lua": "examples/wireshark/netcode.lua", "token.c": "examples/token.c", "wireshark/capture.h": "examples/wireshark/capture.h"}.items():
        text = read(os.path.join(TOP, original)).decode()
        if copy == name:
            found = text.count(old) == 1
            text = text.replace(old, new)
        with open(os.path.join(folder, copy), "w", encoding="utf-8") as file:
            file.write(text)
    return found


def plants():
    """Each fault in a copy; the checks have to fail, and to say which one saw it. One session serves them all."""
    global WORK, PROGRAMS
    folder, missed = os.path.join(OUT, "plant"), 0
    PROGRAMS = build_all()
    names = prepare()[0]
    print("captures: %s" % " ".join(names), flush=True)
    wanted = [it for it in PLANTS if all(word in " ".join((it[0], *it[3:])) for word in sys.argv[2:])]
    for name, old, new, what, only in wanted:
        if not plant(folder, name, old, new):
            missed += 1
            print("MISSED   %s: there is no place for: %s" % (name, what), flush=True)
            continue
        planted = {"WIRESHARK_LUA": os.path.join(folder, "netcode.lua")} if name == "netcode.lua" else {"WIRESHARK_TOKEN": "build/wireshark/plant/token.c"}
        planted.update(WIRESHARK_STOP="1", WIRESHARK_REUSE=WORK)
        result = run([sys.executable, os.path.abspath(__file__), only], seconds=500, environment=planted)
        text = (result.stdout + result.stderr).decode()
        seen = re.search(r"FAILED  (.{0,150})|(RuntimeError.{0,150})", text)
        missed += result.returncode == 0 or not seen
        print("%s  %s: %s: %s" % ("noticed" if result.returncode and seen else "MISSED ", name, what, seen.group(0) if seen else text[-300:]), flush=True)
    for child in children:
        child.stop(signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    print("wireshark plants: %d noticed, %d missed" % (len(wanted) - missed, missed))
    return 1 if missed else 0


WORK, PROGRAMS = "", {}

if __name__ == "__main__":
    sys.exit(plants() if "--plants" in sys.argv[1:] else main())
