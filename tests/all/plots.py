"""Pictures: two bad networks are recorded and drawn; what is drawn is what was recorded, and that is what the relay did to the packets.

    python3 tests/all/plots.py

Messages and the core measure each for itself, and both are compared with the relay. The core's loss: packets lost of those that have left
its window, within 1 percentage point of what the relay lost of all. Its round trip: the mean of what the relay delays both ways and a tick,
as each side waits half a tick for its next update on average; within 2 ms and a tick, as a path of one length waits as long each time.

Each network is held against what was injected into it, and against the other's numbers, where the same checks must fail."""
import csv
import os
import re
import statistics
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics"))
import common  # noqa: E402
from common import check, folder  # noqa: E402

SECONDS = 20
TICK_MS = 1000 / 60
MARGIN_MS = 15  # for a machine that has other things to do
NETWORKS = {"bad": dict(LOSS=3, DELAY=50, JITTER=25, SEED=1), "worse": dict(LOSS=10, DELAY=20, JITTER=0, SEED=2)}
PANELS = ((("rtt_ms", "core_rtt_ms"), 1.0), (("jitter_ms",), 1.0), (("loss_received_percent", "core_loss_percent"), 1.0),
          (("received_bytes_per_second",), 0.001))
CORE_WINDOW = 320  # packets after which one that did not arrive is lost
RED, BLUE = (214, 39, 40), (31, 119, 180)


def start_plots(name, network):
    environment = dict(os.environ, BIN=common.BUILD, OUT=os.path.join(folder, name), SECONDS_EACH=str(SECONDS))
    environment.update({key: str(value) for key, value in network.items()})
    with open(os.path.join(folder, name + ".log"), "wb") as log:
        process = subprocess.Popen(["sh", "examples/metrics/plots.sh"], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    common.running.append(process)
    return process


def rows_of(path):
    with open(path, newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def curves_of(path):
    """What gnuplot has drawn, as its own file shows: a list of points for each curve."""
    curves = []
    with open(path) as file:
        for line in file:
            if line.startswith("# Curve ") and " points" in line:
                curves.append([])
            elif line.strip() and not line.startswith("#"):
                x, y, kind = line.split()
                curves[-1].append((float(x), float(y), kind))
    return curves


def test_drawn(name, data):
    """Panel by panel, the good network and then the bad one, of messages and then of the core: each point is a line of CSV."""
    curves = curves_of(os.path.join(folder, name, "drawn.txt"))
    wanted = [(column, factor, which) for columns, factor in PANELS for column in columns for which in ("good", "bad")]
    if not check(name + ": %d curves are drawn" % len(wanted), len(curves) == len(wanted), len(curves)):
        return
    wrong = []
    for points, (column, factor, which) in zip(curves, wanted):
        rows = data[which]
        if len(points) != len(rows) or any(abs(x - row["seconds"]) > 1e-3 or abs(y - row[column] * factor) > 1e-3 * max(1, abs(y)) or kind != "i"
                                           for (x, y, kind), row in zip(points, rows)):
            wrong.append((column, which))
    check("%s: each point is a line of CSV, %d for each curve" % (name, len(data["bad"])), not wrong and len(data["bad"]) > SECONDS * 3, wrong)


# ---- the picture ----

def unfilter(kind, line, before, size):
    """A line of a PNG as it was before it was packed."""
    line = bytearray(line)
    for i in range(len(line)):
        left = line[i - size] if i >= size else 0
        up = before[i]
        corner = before[i - size] if i >= size else 0
        guess = left + up - corner
        paeth = min((left, up, corner), key=lambda each: abs(guess - each))
        line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
    return line


def pixels_of(path):
    """Rows of (red, green, blue); pngcairo writes 8 bits a colour, not interlaced."""
    with open(path, "rb") as file:
        data = file.read()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    if data[:8] != b"\x89PNG\r\n\x1a\n" or depth != 8 or kind not in (2, 6):
        return []
    packed, at = b"", 8
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        packed += data[at + 8:at + 8 + length] if data[at + 4:at + 8] == b"IDAT" else b""
        at += 12 + length
    size = 3 if kind == 2 else 4
    raw, rows, before = zlib.decompress(packed), [], bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        before = unfilter(raw[start], raw[start + 1:start + 1 + width * size], before, size)
        rows.append([tuple(before[x:x + 3]) for x in range(0, width * size, size)])
    return rows


def test_picture(path):
    rows = pixels_of(path)
    counts = []
    for panel in range(len(PANELS)):
        part = rows[len(rows) * panel // 4:len(rows) * (panel + 1) // 4]
        counts.append([sum(max(abs(a - b) for a, b in zip(pixel, colour)) < 60 for row in part for pixel in row) for colour in (BLUE, RED)])
    check("network.png has a blue and a red line in each of four panels", rows and all(min(each) > 150 for each in counts), counts)


# ---- what was measured ----

def relay_counts(name):
    """What the relay says that it did, by direction."""
    with open(os.path.join(folder, name, "relay.log")) as file:
        return {line.split()[0]: {key: float(value) for key, value in re.findall(r"(\w+)=([0-9.]+)", line)} for line in file if line.startswith("to_")}


def is_near(measured, injected, count):
    """Within three standard deviations of the share of `count` packets that are lost by chance."""
    return abs(measured - injected) <= 3 * (injected * (1 - injected) / count) ** 0.5


def faults_of(rows, network, relay):
    """What in a recording does not fit to the network that it is said to be of."""
    faults = []
    loss, delay, jitter = network["LOSS"] / 100, network["DELAY"], network["JITTER"]
    last = rows[-1]
    rtt = statistics.median(row["rtt_ms"] for row in rows)
    if not 2 * delay <= rtt <= 2 * (delay + jitter) + 2 * TICK_MS + MARGIN_MS:
        faults.append("round trip %.1f ms" % rtt)
    sent = (last["packets_lost"] - last["packets_lost_spuriously"]) / last["packets_sent"]
    if not is_near(sent, loss, last["packets_sent"]):
        faults.append("loss of what was sent %.4f" % sent)
    # The library reports the loss of the last packets. Its mean over time counts each packet about once, the first and last ones less.
    received = statistics.mean(row["loss_received_percent"] for row in rows) / 100
    if not is_near(received, loss, last["packets_received"] / 2):
        faults.append("loss of what was received %.4f" % received)
    lost = relay["to_server"]["lost"]
    if abs(last["packets_lost"] - last["packets_lost_spuriously"] - lost) > 4 + 0.1 * lost:
        faults.append("%d lost packets, the relay says %d" % (last["packets_lost"], lost))
    way = relay["to_client"]
    core = last["core_packets_lost"] / (way["received"] - CORE_WINDOW)
    if abs(core - way["lost"] / way["received"]) > 0.01:
        faults.append("loss in the core %.4f, the relay says %.4f" % (core, way["lost"] / way["received"]))
    rtt = statistics.median(row["core_rtt_ms"] for row in rows if row["core_rtt_ms"] > 0)
    if abs(rtt - (2 * delay + jitter + TICK_MS)) > TICK_MS + 2:
        faults.append("round trip in the core %.1f ms" % rtt)
    throughput = statistics.mean(row["received_bytes_per_second"] for row in rows)
    if abs(throughput / (relay["to_client"]["bytes_passed"] / last["seconds"]) - 1) > 0.1:
        faults.append("throughput %.0f bytes a second" % throughput)
    return faults


def test_good(name, rows):
    rtt = statistics.median(row["rtt_ms"] for row in rows)
    check("%s: beside it the good one has a round trip of at most two ticks: %.1f ms" % (name, rtt), 0 < rtt <= 2 * TICK_MS + MARGIN_MS, rtt)
    core = statistics.median(row["core_rtt_ms"] for row in rows if row["core_rtt_ms"] > 0)
    check("%s: the core's round trip there is at most two ticks too, its loss 0: %.1f ms" % (name, core), 0 < core <= 2 * TICK_MS + MARGIN_MS and
          rows[-1]["core_packets_lost"] == 0 and all(row["core_loss_percent"] == 0 for row in rows), rows[-1])
    check("%s: and no loss" % name, rows[-1]["packets_lost"] - rows[-1]["packets_lost_spuriously"] == 0 and
          all(row["loss_received_percent"] == 0 for row in rows), rows[-1])


def test_failure():
    """A client that finds no server: a status, a word, and no picture."""
    out = os.path.join(folder, "no_server")
    environment = dict(os.environ, BIN=common.BUILD, OUT=out, SECONDS_EACH="1", LOSS="100")
    result = subprocess.run(["sh", "examples/metrics/plots.sh"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("a network that loses everything: no picture, and it is said why", result.returncode == 1 and b"never answered" in result.stdout and
          not os.path.exists(os.path.join(out, "network.png")), result.stdout.decode())


def main():
    common.need("gnuplot-nox:gnuplot", "libmicrohttpd-dev:pc=libmicrohttpd", "pkg-config:pkg-config")
    for build in (common.build_serve, common.build_record, common.build_relay):
        build()
    runs = {name: start_plots(name, network) for name, network in NETWORKS.items()}
    test_failure()
    data, relays = {}, {}
    for name, process in runs.items():
        status = process.wait(120)
        common.running.remove(process)
        with open(os.path.join(folder, name + ".log")) as file:
            if not check(name + ": plots.sh draws", status == 0, file.read()):
                common.finish("plots")
        data[name] = {which: rows_of(os.path.join(folder, name, which + ".csv")) for which in ("good", "bad")}
        relays[name] = relay_counts(name)
    for name, network in NETWORKS.items():
        test_drawn(name, data[name])
        test_good(name, data[name]["good"])
        faults = faults_of(data[name]["bad"], network, relays[name])
        check("%s: round trip and loss, of messages and in the core, and throughput are what was injected (%s)" % (name, " ".join("%s=%s" % each for each in network.items())), not faults, faults)
    crossed = faults_of(data["bad"]["bad"], NETWORKS["worse"], relays["worse"])
    check("held against the other network the same checks fail", len(crossed) >= 6, crossed)
    jitter = {name: statistics.median(row["jitter_ms"] for row in data[name]["bad"]) for name in NETWORKS}
    check("jitter is measured where there is some: %.1f ms and %.1f ms" % (jitter["bad"], jitter["worse"]), 1 < jitter["bad"] < 20 and jitter["worse"] < jitter["bad"], jitter)
    test_picture(os.path.join(folder, "bad", "network.png"))
    with open(os.path.join(folder, "bad", "network.svg")) as file:
        check("network.svg is one picture, with what the network was", file.read().count("3 % loss and 50 ms") == 1)
    common.finish("plots")


main()
