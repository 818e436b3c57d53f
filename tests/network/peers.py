#!/usr/bin/env python3
"""Messages beside peers: a table of figures, limits for the workloads that only stand here, and pictures.

    python3 tests/network/peers.py             a sample; `make network` builds what it needs and runs it
    python3 tests/network/peers.py --whole     all 48 cells, three seeds, TCP for half a minute

netcode.h and ENet run the workloads of peers.h in virtual time, each in a program of its own. TCP is the kernel's: real processes in network
namespaces, through tests/tools/relay (tests/latency/latency.c), so it has a few of the cells, both ends send, and both look at their sockets
at once, not 60 times a second: that is up to 17 ms in its favour. CUBIC alone is the model in world.h. Figures of GameNetworkingSockets are quoted.

Written to build/network: what the programs printed (*.tsv), and pictures (*.svg) where gnuplot is there. The status is 1 if a figure of ours
is beyond its limit, or if ENet is missing where SKIPS=no. All traffic stays on this machine.
"""

import argparse
import collections
import concurrent.futures
import math
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(TOP, "tests", "network")
OUT = os.path.join(TOP, "build", "network")
sys.path.insert(0, os.path.join(TOP, "tests", "latency"))
import latency  # noqa: E402 (its folder is not on the path before)
from waiting import SKIPS_FAIL  # noqa: E402

OURS, ENET, TCP, CUBIC, QUOTED = "netcode.h", "ENet", "TCP", "CUBIC, modelled", "GNS, quoted"
# delay in ms, loss in %, messages a tick
TCP_STREAMS = [(50, 0, 1), (50, 1, 1), (50, 3, 1), (50, 10, 1), (50, 1, 5), (50, 5, 5), (100, 3, 5), (150, 5, 5)]
MORE_IS_BETTER = {"kB/s", "CUBIC kB/s", "delivered"}
# Of ours: group, row, figure, limit. Those that were not reached when they were set have a third number: what they may be for now.
LIMITS = (
    ("sparse", "50 ms, 5 % in bursts of 5, 1 a tick", "p99", 600, 4000),
    ("sparse", "50 ms, 5 % in bursts of 5, 5 a tick", "p99", 600, 4000),
    ("sparse", "50+-20 ms reordered, 1 % lost, 1 % twice, 5 a tick", "p99", 117, None),
    ("tiny", "30 ms, 0 %, ordered", "p99", 67, None),
    ("tiny", "30 ms, 0 %, ordered", "bytes", 24, None),
    ("tiny", "30 ms, 2 %, ordered", "p99", 150, None),
    ("tiny", "30 ms, 2 %, ordered", "bytes", 27, None),
    ("tiny", "30 ms, 0 %, unreliable", "bytes", 20, None),
    ("tiny", "30 ms, 2 %, unreliable", "p99", 67, None),
    ("tiny", "30 ms, 2 %, unreliable", "delivered", 97, None),
)
# group, title, columns; how a figure is printed; and what stands under it
SECTIONS = (
    ("cells", "64-byte ordered messages, many a tick: p50/p99 in ms", (OURS, ENET, TCP, QUOTED), ("p50", "p99")),
    ("sparse", "64-byte ordered messages: p50/p99 in ms", (OURS, ENET, TCP), ("p50", "p99")),
    ("sparse", "64-byte ordered messages: bytes on the wire for each", (OURS, ENET), ("bytes",)),
    ("tiny", "200 messages of 16 bytes a tick: p50/p99 in ms", (OURS, ENET), ("p50", "p99")),
    ("tiny", "200 messages of 16 bytes a tick: % delivered/bytes on the wire for each", (OURS, ENET), ("delivered", "bytes")),
    ("transfer", "5 MB in one message, alone: kB/s", (OURS, ENET, CUBIC), ("kB/s",)),
    ("beside", "60 Hz game beside 5 MB in one message: the game's p99 in ms/kB/s", (OURS, ENET), ("game p99", "kB/s")),
    ("overload", "64-byte ordered messages in 60 s: delivered/the queue's p99 in ms", (OURS, ENET), ("delivered", "queue p99")),
)


class Results:
    """Figures by group, row, peer and name: the worst of all seeds. Series by picture and line."""

    def __init__(self):
        self.figures, self.series, self.rows = {}, collections.OrderedDict(), collections.defaultdict(list)

    def add(self, peer, group, row, name, value):
        if name.startswith("CUBIC "):
            peer, name = CUBIC, name[6:]
        elif name.startswith("quoted "):
            peer, name = QUOTED, name[7:]
        if row not in self.rows[group] and peer != QUOTED:
            self.rows[group].append(row)
        key = (group, row, peer, name)
        worse = min if name in MORE_IS_BETTER else max
        self.figures[key] = worse(self.figures[key], value) if key in self.figures else value

    def get(self, *key):
        return self.figures.get(key)

    def read(self, peer, path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, *fields = line.rstrip("\n").split("\t")
                if kind == "figure":
                    self.add(peer, fields[0], fields[1], fields[2], float(fields[3]))
                else:
                    self.series.setdefault((fields[0], fields[1]), []).append((float(fields[2]), float(fields[3])))


# ---- peers ----


def simulate(results, peer, program, options):
    path = os.path.join(OUT, program + ".tsv")
    with open(path, "w", encoding="utf-8") as file:
        subprocess.run([os.path.join(OUT, program)] + options, stdout=file, check=True)
    results.read(peer, path)


def measure_tcp(results, whole):
    """A few streams in real time, all at once: their processes are nearly idle. What was measured, in words."""
    latency.OUT = OUT
    congestion, why = latency.probe("cubic")
    if congestion is None:
        congestion, why = latency.probe()
    if congestion is None:
        return "TCP is left out: " + why
    seconds = 30 if whole else 10
    try:
        with concurrent.futures.ThreadPoolExecutor(len(TCP_STREAMS)) as pool:
            runs = [
                (delay, loss, count, pool.submit(latency.pair, "tcp " + congestion, loss, 1, seconds, delay, count, 8)) for delay, loss, count in TCP_STREAMS
            ]
        for delay, loss, count, run in runs:
            ends = run.result()["ends"]
            values = sorted(value for end in ends for value in latency.measured(end))
            group, row = ("sparse" if count == 1 else "cells"), "%d ms, %d %%, %d a tick" % (delay, loss, count)
            for name, part in (("p50", 0.5), ("p99", 0.99)):
                results.add(TCP, group, row, name, latency.percentile(values, part) if values else math.nan)
            results.add(TCP, group, row, "missing", sum(end["count"] - end["received"] for end in ends))
            late = max(end["late_ms"] for end in ends)
            if late > 10:
                print("note: the machine was busy: messages of TCP were made up to %.0f ms late" % late)
    except RuntimeError as error:
        return "TCP is left out: %s" % error
    finally:
        latency.end_all()
    return "TCP is the kernel's with %s, %d s in real time, served at once: up to 17 ms in its favour" % (congestion, seconds)


# ---- the table ----


def judge(results):
    """Prints a line for each limit. How many figures are beyond theirs."""
    beyond = 0
    for group, row, name, limit, for_now in LIMITS:
        value = results.get(group, row, OURS, name)
        kept = (value >= limit) if name in MORE_IS_BETTER else (round(value, 1) <= limit)
        is_open = not kept and for_now is not None and value <= for_now
        beyond += not kept and not is_open
        text = "%s, %s: %s" % (row, "16 bytes, 200 a tick" if group == "tiny" else "ordered", name)
        end = ", for now %g" % for_now if is_open else ""
        print("%-6s %-84s %10.6g  limit %g%s" % ("ok" if kept else "OPEN" if is_open else "BEYOND", text, value, limit, end))
    return beyond


def cell(results, group, row, peer, names):
    values = [results.get(group, row, peer, name) for name in names]
    if any(value is None for value in values):
        return "-"
    text = "/".join("%.1f" % value if name == "bytes" else "%.0f" % value for value, name in zip(values, names))
    missing = results.get(group, row, peer, "missing") if "p50" in names else 0
    return text + (" (%d missing)" % missing if missing else "")


def print_table(results, seeds):
    print("\nbeside peers: the worst of %d seed%s" % (seeds, "" if seeds == 1 else "s"))
    for group, title, columns, names in SECTIONS:
        print("\n%-76s%s" % (title, "".join("%27s" % column for column in columns)))
        for row in results.rows[group]:
            print("  %-74s%s" % (row, "".join("%27s" % cell(results, group, row, column, names) for column in columns)))
    print()


# ---- pictures ----


def write_blocks(name, blocks):
    """gnuplot's blocks, each with its title as its first line."""
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        for number, (title, lines) in enumerate(blocks):
            file.write('%s"%s"\n' % ("\n\n" if number else "", title))
            file.writelines(line + "\n" for line in lines)


def draw(results):
    rows = results.rows["cells"]
    blocks = []
    for peer in (OURS, ENET, TCP, QUOTED):
        lines = []
        for at, row in enumerate(rows):
            p50, p99 = (results.get("cells", row, peer, name) for name in ("p50", "p99"))
            lines += ['%d %.2f %.2f "%s"' % (at, p50, p99, row)] if p50 is not None else []
        blocks += [(peer, lines)] if lines else []
    write_blocks("cells.dat", blocks)
    for picture in ("rate", "game", "share"):
        lines = [(line, ["%g %g" % point for point in points]) for (where, line), points in results.series.items() if where == picture]
        write_blocks(picture + ".dat", lines)
    if not shutil.which("gnuplot"):
        print("no pictures: gnuplot is not there")
        return
    for picture in ("cells", "rate", "share"):
        subprocess.run(["gnuplot", "-c", os.path.join(HERE, "peers.gp"), picture, OUT], check=True)
    print("pictures: build/network/cells.svg, rate.svg, share.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--whole", action="store_true", help="all 48 cells, three seeds, TCP for half a minute")
    whole = parser.parse_args().whole
    seeds = 3 if whole else 1
    options = ["--seeds", str(seeds)] + (["--whole"] if whole else [])
    results, missing = Results(), False

    simulate(results, OURS, "ours", options)
    if os.path.exists(os.path.join(OUT, "enet")):
        simulate(results, ENET, "enet", options)
    else:
        print("ENet is left out: libenet-dev is missing")
        missing = SKIPS_FAIL
    tcp = measure_tcp(results, whole)
    missing |= SKIPS_FAIL and tcp.startswith("TCP is left out")
    beyond = judge(results)
    print_table(results, seeds)
    print("%s. GNS: GameNetworkingSockets as others measured it. Bytes are those of UDP payloads; netcode's own come on top." % tcp)
    if not whole:
        print("a sample; all 48 cells, three seeds and 30 s of TCP: make network-peers PEERS=--whole")
    draw(results)
    return 1 if beyond or missing else 0


if __name__ == "__main__":
    sys.exit(main())
