#!/usr/bin/env python3
"""How long small ordered messages are on their way at 0, 1, 3, 5 and 10 % loss and 50 ms one way: by netcode.h's messages, by a fixed timer
of 200 ms, and by TCP. Pairs of real processes, each through a tests/tools/relay of its own; the same seed loses the same packets.

    python3 tests/latency/latency.py             four seeds, a minute each; or `make latency`. It builds what it needs in build/latency
    python3 tests/latency/latency.py --short     two seeds, half a minute each
    LATENCY_LOSS="0 3" LATENCY_SEEDS="7 8" LATENCY_SECONDS=10 python3 tests/latency/latency.py

Both ends send 60 messages of 64 bytes a second. latency.c says what each transport is; TCP is the kernel's, in network namespaces with nothing
but a tun device, whose packets go through the same relay. Where none can be had (they need root or user namespaces), that is said and TCP
is left out; where the kernel has it, TCP is measured with cubic too.

Written to build/latency: latency.json with all that was measured, and a picture, latency.svg and latency.png, if gnuplot is there. The exit
status is 1 if a message was lost, damaged or out of order, if the network was not as bad as it was set to be, or if at 1 % loss and above
the 99th percentile of netcode.h's messages is not the lowest. All traffic stays on 127.0.0.1.
"""

import argparse
import concurrent.futures
import json
import math
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "tools"))
from waiting import SKIPS_FAIL  # noqa: E402 (its folder is not on the path before)

HERE = os.path.join(TOP, "tests", "latency")
OUT = os.environ.get("LATENCY_OUT", os.path.join(TOP, "build", "latency"))
DELAY_MS = 50
RATE = 60
WARM_UP = 2 * RATE  # messages at the start of each run that are not measured: the round trip is not known then
BLOCK = 5 * RATE  # neighbouring messages wait for the same lost packet, so chance is estimated from blocks of them
RESAMPLES = 2000
PERCENTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0))
OURS = "messages"
NAMES = {"messages": "netcode.h messages", "fixed": "fixed 200 ms timer", "tcp": "TCP"}
children, rows = [], []
paced = True
ending = threading.Event()


# ---- programs ----


def build():
    os.makedirs(OUT, exist_ok=True)
    compiler = shlex.split(os.environ.get("CC", "cc")) + shlex.split(os.environ.get("CFLAGS", "-O2 -g"))
    script = os.path.join(TOP, "tests", "tools", "deps.sh")
    flags = [shlex.split(subprocess.run(["sh", script, what], capture_output=True, text=True, check=True).stdout) for what in ("--cflags", "--libs")]
    for name, source in (("relay", "tests/tools/relay.c"), ("latency", "tests/latency/latency.c")):
        command = compiler + [source, "-I", "."] + flags[0] + flags[1] + ["-lm", "-o", os.path.join(OUT, name)]
        subprocess.run(command, check=True, cwd=TOP)


def start(name, *arguments):
    """A process of this run. It ends by itself when this one is gone: its input ends, or it has a guard."""
    if ending.is_set():
        raise RuntimeError("the run is ending")
    command = [os.path.join(OUT, name)] + [str(argument) for argument in arguments]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    children.append(child)
    keep_pace(child)
    return child


def keep_pace(child):
    """Ahead of what else the machine does, where that is allowed: these processes are nearly idle, and shall not wait for others."""
    global paced
    try:
        os.sched_setscheduler(child.pid, os.SCHED_RR, os.sched_param(1))
    except (AttributeError, OSError):
        paced = False


class Lines(threading.Thread):
    """All that a process prints, to its end; `done` is set when it says so, or can say no more."""

    def __init__(self, child):
        super().__init__(daemon=True)
        self.child, self.lines, self.done = child, [], threading.Event()
        self.start()

    def run(self):
        for line in self.child.stdout:
            self.lines.append(line)
            if line.startswith("done"):
                self.done.set()
        self.done.set()

    def finish(self):
        """What it printed, after its input's end or a signal has ended it."""
        self.child.stdin.close()
        status = self.child.wait(20)
        self.join(20)
        if status != 0:
            raise RuntimeError("%s ended with status %d" % (" ".join(self.child.args[:3]), status))
        return self.lines


def end_all():
    """Nothing that was started here stays, whatever happened."""
    ending.set()
    for child in list(children):
        if child.poll() is None:
            child.kill()
        child.wait()


def first_word(child, word):
    """The rest of the first line that it prints, which begins like this. Why it does not begin, it says itself."""
    line = child.stdout.readline()
    if not line.startswith(word):
        raise RuntimeError("%s did not begin" % " ".join(child.args[:3]))
    return line[len(word) :].strip()


def counts(line):
    return {name: float(value) for name, value in (word.split("=") for word in line.split()[1:])}


def pair(transport, loss, seed, seconds, delay_ms=DELAY_MS, per_tick=1, patience=40):
    """One run: both ends and a relay between them. What they measured."""
    kind, _, congestion = transport.partition(" ")
    limit = 2 * seconds + 60
    options = ["--count", int(seconds * RATE * per_tick) + WARM_UP, "--per-tick", per_tick, "--warm-up", WARM_UP, "--limit", limit]
    options += ["--congestion", congestion] if congestion else []
    listener = start("latency", kind, "listen", *options)
    port = first_word(listener, "port ")
    network = ["--loss", loss, "--delay", delay_ms, "--seed", seed, "--seconds", limit]
    relay = start("latency", "guard", os.path.join(OUT, "relay"), "--listen", "127.0.0.1:0", "--to", "127.0.0.1:" + port, *network)
    through = first_word(relay, "listening on ")
    connector = start("latency", kind, "connect", "--through", through, "--server", port, *options)
    ends, network = [Lines(listener), Lines(connector)], Lines(relay)
    latest = time.monotonic() + seconds + patience
    for end in ends:  # until both have all of their messages; what is missing at that time is lost
        end.done.wait(max(0.0, latest - time.monotonic()))
    ends = [json.loads(lines[-1]) for lines in [end.finish() for end in ends]]
    relay.terminate()
    ways = [counts(line) for line in network.finish()]
    return {"transport": transport, "loss": loss, "seed": seed, "ends": ends, "ways": ways}


def probe(congestion=None):
    """The congestion control that TCP would have, or None and why it can not be had."""
    command = [os.path.join(OUT, "latency"), "tcp", "probe"] + (["--congestion", congestion] if congestion else [])
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return (result.stdout.strip(), "") if result.returncode == 0 else (None, result.stderr.strip())


def choose_transports():
    """Ours, the timer, TCP as the kernel has it, and with cubic where that is not the same."""
    usual, why = probe()
    if usual is None:
        print("TCP skipped: %s" % why, flush=True)
        if SKIPS_FAIL:
            sys.exit(1)
        return ["messages", "fixed"]
    return ["messages", "fixed", "tcp " + usual] + (["tcp cubic"] if usual != "cubic" and probe("cubic")[0] else [])


def title(transport):
    kind, _, congestion = transport.partition(" ")
    return NAMES[kind] + (" (%s)" % congestion if congestion else "")


# ---- figures ----


def percentile(ordered, part):
    """The smallest value that so large a part of all values does not exceed."""
    return ordered[max(0, min(len(ordered), math.ceil(part * len(ordered))) - 1)]


def measured(end):
    return [value / 1000 for value in end["micros"][WARM_UP:]]


def figures(runs):
    """Of all runs of a transport at a loss, together; and of each way of each run, for the spread."""
    series = [measured(end) for run in runs for end in run["ends"]]
    ordered = sorted(value for values in series for value in values)
    result = {"count": len(ordered), "p10": percentile(ordered, 0.1) if ordered else 0.0}
    for name, part in PERCENTILES:
        each = [percentile(sorted(values), part) for values in series if values]
        result[name] = percentile(ordered, part) if ordered else 0.0
        result[name + "_spread"] = [min(each), max(each)] if each else [0.0, 0.0]
        result[name + "_each"] = each
    packets = sum(way["received"] for run in runs for way in run["ways"])
    lost = sum(way["lost"] for run in runs for way in run["ways"])
    result["packets"], result["packets_lost"] = packets, lost
    result["late_ms"] = max(end["late_ms"] for run in runs for end in run["ends"])
    sent = sum(end["sent"] for run in runs for end in run["ends"])
    extra = 0 if runs[0]["transport"].startswith("tcp") else 28  # TCP's packets have their headers; UDP's come to these
    octets = sum(way["bytes_received"] for run in runs for way in run["ways"]) + extra * packets
    result["wire_bytes_a_message"] = octets / max(1, sent)
    return result


def resampled(runs, chance):
    """The 99th percentiles that other runs like these might have had: blocks of them drawn anew (a bootstrap over blocks)."""
    blocks = []
    for values in (measured(end) for run in runs for end in run["ends"]):
        blocks += [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]
    highest = sorted(((value, number) for number, block in enumerate(blocks) for value in block), reverse=True)
    result = []
    for _ in range(RESAMPLES):
        weights = [0] * len(blocks)
        for _ in blocks:
            weights[chance.randrange(len(blocks))] += 1
        above = 0.01 * sum(weight * len(block) for weight, block in zip(weights, blocks))
        for value, number in highest:
            above -= weights[number]
            if above < 0:
                break
        result.append(value)
    return result


# ---- what must hold ----


def row(what, said, limit, good):
    rows.append((what, said, limit, bool(good)))
    print("%-4s %-52s %-62s %s" % ("ok" if good else "FAIL", what, said, limit), flush=True)


def check_delivery(transport, runs):
    ends = [end for run in runs for end in run["ends"]]
    wanted, received = sum(end["count"] for end in ends), sum(end["received"] for end in ends)
    wrong = sum(end["out_of_order"] + end["damaged"] + end["refused"] for end in ends)
    text = "%d of %d, %d not as they were sent" % (received, wanted, wrong)
    row("%s: delivered in order" % title(transport), text, "all", received == wanted > 0 and wrong == 0)


def check_network(loss, result):
    """That the relay did what it was set to do, for each transport: else the comparison says nothing."""
    for transport, figure in result.items():
        part, packets = loss / 100, figure["packets"]
        bound = 5 * math.sqrt(part * (1 - part) / max(1, packets))
        lost = figure["packets_lost"] / max(1, packets)
        good = packets > 0 and abs(lost - part) <= bound and figure["p10"] >= DELAY_MS
        if loss == 0:
            good = good and figure["p50"] <= DELAY_MS + 10
        text = "%.2f %% of %d packets lost, p10 %.1f ms, p50 %.1f ms" % (100 * lost, packets, figure["p10"], figure["p50"])
        limit = "%g +- %.2f %%, >= %d ms%s" % (loss, 100 * bound, DELAY_MS, ", <= %d ms" % (DELAY_MS + 10) if loss == 0 else "")
        row("%g %% loss, %s: the network" % (loss, title(transport)), text, limit, good)


def compare(loss, result, runs):
    """Ours against each other transport; and how sure it is that other runs would say the same."""
    if min(figure["count"] for figure in result.values()) < BLOCK / 2:
        row("%g %% loss, p99" % loss, "too few messages arrived", "comparable", False)
        return
    chance = random.Random(1)
    again = {transport: resampled(runs[transport], chance) for transport in result}
    for transport in result:
        if transport == OURS:
            continue
        own, other = result[OURS], result[transport]
        gains = sorted(theirs - ours for ours, theirs in zip(again[OURS], again[transport]))
        sure = sum(gain > 0 for gain in gains) / len(gains)
        pairs = [ours < theirs for ours, theirs in zip(own["p99_each"], other["p99_each"])]
        text = "%.0f ms less (95 %%: %.0f to %.0f)" % (other["p99"] - own["p99"], percentile(gains, 0.025), percentile(gains, 0.975))
        certainty = "> 99.9 %" if sure > 0.999 else "%.1f %%" % (100 * sure)
        text += " in %d of %d ways; sure %s" % (sum(pairs), len(pairs), certainty)
        row("%g %% loss, p99 against %s" % (loss, title(transport)), text, "less", own["p99"] < other["p99"])
        other["ours_is_less_by"] = {"ms": other["p99"] - own["p99"], "low": percentile(gains, 0.025), "high": percentile(gains, 0.975), "sure": sure}


def print_table(results):
    print("\nms from sent to delivered; in brackets the lowest and highest of the runs, each way of a pair counted as one\n")
    print("%5s  %-22s %8s %7s %7s %18s %18s %7s %13s" % ("loss", "", "messages", "p50", "p90", "p99", "p99.9", "max", "bytes/message"))
    for loss, result in results.items():
        for transport, figure in result.items():
            spreads = ["%.0f [%.0f-%.0f]" % (figure[name], *figure[name + "_spread"]) for name in ("p99", "p99_9")]
            numbers = (figure["count"], figure["p50"], figure["p90"], spreads[0], spreads[1], figure["max"], figure["wire_bytes_a_message"])
            print("%4g%%  %-22s %8d %7.1f %7.1f %18s %18s %7.0f %13.0f" % (loss, title(transport), *numbers))
    print(flush=True)


# ---- the picture ----


def draw(results):
    """A block of lines for each transport: loss, its place, percentiles."""
    path = os.path.join(OUT, "latency.dat")
    losses, transports = list(results), list(next(iter(results.values())))
    with open(path, "w", encoding="utf-8") as file:
        for number, transport in enumerate(transports):
            file.write('%s"%s"\n' % ("\n\n" if number else "", title(transport)))
            for at, loss in enumerate(losses):
                figure = results[loss][transport]
                file.write("%d %g %s\n" % (at, loss, " ".join("%.2f" % figure[name] for name, _ in PERCENTILES)))
    if not shutil.which("gnuplot"):
        print("no picture: gnuplot is not there")
        return
    for picture in ("latency.svg", "latency.png"):
        subprocess.run(["gnuplot", "-c", os.path.join(HERE, "latency.gp"), path, os.path.join(OUT, picture)], check=True)


# ---- all of it ----


def numbers_of(name, usual):
    return [float(word) for word in os.environ.get(name, usual).split()]


def settings():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="two seeds, half a minute each")
    short = parser.parse_args().short
    losses = [int(loss) if loss == int(loss) else loss for loss in numbers_of("LATENCY_LOSS", "0 1 3 5 10")]
    seeds = [int(seed) for seed in numbers_of("LATENCY_SEEDS", "1 2" if short else "1 2 3 4")]
    return losses, seeds, numbers_of("LATENCY_SECONDS", "27" if short else "60")[0]


def measure(losses, seeds, seconds, transports):
    """Everything of a seed at once: the pairs are nearly idle, and whatever else the machine does meets all of them alike."""
    runs = []
    for seed in seeds:
        jobs = [(transport, loss, seed, seconds) for loss in losses for transport in transports]
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            try:
                runs += list(pool.map(lambda job: pair(*job), jobs))
            except BaseException:
                end_all()
                raise
        print("seed %d: %d pairs, %g s" % (seed, len(jobs), seconds), flush=True)
    return runs


def judge(runs, losses, transports):
    results = {}
    for loss in losses:
        of_loss = {transport: [run for run in runs if (run["loss"], run["transport"]) == (loss, transport)] for transport in transports}
        results[loss] = {transport: figures(of_loss[transport]) for transport in transports}
        check_network(loss, results[loss])
        if loss >= 1:
            compare(loss, results[loss], of_loss)
    for transport in transports:
        check_delivery(transport, [run for run in runs if run["transport"] == transport])
    late = max(figure["late_ms"] for result in results.values() for figure in result.values())
    if late > 10:
        print("note: the machine was busy: a message was made up to %.0f ms late, and what is on its way waits as long" % late)
    if not paced:
        print("note: real-time priority can not be had here: what else the machine does is in the figures")
    return results


def main():
    losses, seeds, seconds = settings()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build()
    transports = choose_transports()
    try:
        runs = measure(losses, seeds, seconds, transports)
    except RuntimeError as error:
        print("FAIL %s" % error)
        return 1
    finally:
        end_all()
    results = judge(runs, losses, transports)
    print_table(results)
    draw(results)
    with open(os.path.join(OUT, "latency.json"), "w", encoding="utf-8") as file:
        figures = {"seconds": seconds, "seeds": seeds, "delay_ms": DELAY_MS, "rate": RATE, "rows": rows, "results": results, "runs": runs}
        json.dump(figures, file)
    failures = [what for what, _, _, good in rows if not good]
    print("%d of %d hold%s" % (len(rows) - len(failures), len(rows), "".join("\n     failed: " + what for what in failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
