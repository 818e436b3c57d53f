#!/usr/bin/env python3
"""The quality gates of messages, measured on real processes: a match server, a load generator of many clients, and a bad network between
them.

    python3 tests/gates/gates.py                 all gates; or `make gates`. It builds what it needs in build/gates
    python3 tests/gates/gates.py fair queue      those with these words in their names
    GATE_SECONDS=10 python3 tests/gates/gates.py shorter runs than 60 s each

Every run has the default configuration of messages; only the gate of FIXED asks for another. It prints a row for each figure: gate, measured, limit.
The exit status is 1 if one is beyond its limit. build/gates/gates.json holds all that was measured. All traffic stays on 127.0.0.1.
"""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "tools"))
import coverage  # noqa: E402

OUT = os.environ.get("GATE_OUT", os.path.join(TOP, "build", "gates"))
HEADER = os.environ.get("GATE_HEADER", os.path.join(TOP, "netcode.h"))
OTHER = os.path.abspath(HEADER) != os.path.join(TOP, "netcode.h")  # GATE_HEADER names another header than this folder's
INCLUDE = os.path.join(OUT, "other") if OTHER else TOP
SECONDS = float(os.environ.get("GATE_SECONDS", "60"))
PROGRAMS = {
    "relay": "tests/tools/relay.c",
    "match_server": "examples/match_server.c",
    "loadgen": "examples/loadgen.c",
    "link": "tests/gates/link.c",
}
FILE_BYTES = 262144
BOTTLENECK = 250000  # bytes a second of the relay, each way
FIXED_RATE = 125000
DRIFT = 59.7  # a client's ticks a second, where one alone is measured: so its ticks meet the server's in every phase
rows, record, children = [], {}, []


# ---- programs ----


def build():
    os.makedirs(OUT, exist_ok=True)
    compiler = shlex.split(os.environ.get("CC", "cc")) + shlex.split(os.environ.get("CFLAGS", "-O2 -g"))
    script = os.path.join(TOP, "tests", "tools", "deps.sh")
    flags = [shlex.split(subprocess.run(["sh", script, what], capture_output=True, text=True, check=True).stdout) for what in ("--cflags", "--libs")]
    for name, source in PROGRAMS.items():
        command = compiler + [source_of(source)] + ["-I", INCLUDE] + flags[0] + flags[1] + ["-o", os.path.join(OUT, name)]
        subprocess.run(command, check=True, cwd=TOP)


def source_of(path):
    """The source itself; or, where another header is to be measured, a copy beside that header."""
    if not OTHER:
        return os.path.join(TOP, path)
    for folder in sorted({os.path.dirname(source) for source in PROGRAMS.values()}):
        os.makedirs(os.path.join(INCLUDE, folder), exist_ok=True)
        for file in os.listdir(os.path.join(TOP, folder)):
            if file.endswith((".c", ".h")):
                shutil.copy(os.path.join(TOP, folder, file), os.path.join(INCLUDE, folder, file))
    shutil.copy(HEADER, os.path.join(INCLUDE, "netcode.h"))
    return os.path.join(INCLUDE, path)


def start(name, *arguments):
    command = [os.path.join(OUT, name)] + [str(argument) for argument in arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children.append(child)
    return child


def stop(child):
    """Ends a process that was started here, and returns what it printed."""
    if child.poll() is None:
        child.terminate()
    return finish(child, 20)


def finish(child, seconds):
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise RuntimeError("%s did not end in time" % child.args[0])
    finally:
        children.remove(child)
    if child.returncode not in (0, 3):  # 3: not all clients connected and stayed, which a row says better
        raise RuntimeError("%s ended with status %d: %s" % (child.args[0], child.returncode, errors[-500:]))
    return output


def flags_of(options):
    return [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]


def counts(line):
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line)}


def play(name, network, loads, server=None, stagger=0.0):
    """One run: a server, a relay with this network, a load generator for each of `loads`. Returns what they report at their end."""
    seconds = SECONDS + 40
    host = start("match_server", "--address", "127.0.0.1:0", "--json", "--seconds", 2 * seconds, *flags_of(server or {}))
    port = re.search(r"port (\d+)", host.stderr.readline()).group(1)
    relay = start("relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:" + port, "--seconds", 2 * seconds, *flags_of(network))
    through = relay.stdout.readline().split()[-1]
    begun = []
    for at, load in enumerate(loads):
        options = dict({"clients": 1, "seconds": SECONDS, "first_id": 1000 + 5000 * at}, **load)
        begun.append(start("loadgen", "--json", "--server", "127.0.0.1:" + port, "--through", through, *flags_of(options)))
        time.sleep(stagger)
    loaded = [json.loads(finish(child, seconds + 60)) for child in begun]
    time.sleep(1.0)  # what is on its way arrives
    served = json.loads(stop(host))
    lines = stop(relay).splitlines()
    result = {"server": served, "loads": loaded, "to_server": counts(lines[0]), "to_client": counts(lines[1])}
    record[name] = result
    late = max(side["late_ms"]["p99_9"] for side in [served] + loaded)
    if late > 5:
        print("note %s: the machine was busy: one tick in a thousand began more than %.0f ms late" % (name, late), flush=True)
    return result


# ---- rows ----


def row(gate, measured, limit, good):
    rows.append((gate, str(measured), str(limit), bool(good)))
    print("%-4s %-58s %-44s %s" % ("ok" if good else "FAIL", gate, measured, limit), flush=True)


def sum_of(run, name, part="messages"):
    """Of both sides. What never happened is not named among what was dropped."""
    return sum(side[part].get(name, 0) for side in [run["server"]] + run["loads"])


def check_stayed(gate, run):
    """No player was disconnected, and no messages came out of order, twice or damaged."""
    lost = sum(load["disconnects"] + load["clients"] - load["connected"] for load in run["loads"])
    timed_out = run["server"]["disconnects"]["timed_out"]
    row(gate + ": disconnects", "%d, %d timed out" % (lost, timed_out), "0", lost == 0 and timed_out == 0)
    names = ("acks_repeated", "acks_out_of_order", "scores_out_of_order", "snapshots_old", "messages_wrong", "files_wrong")
    wrong = sum(load[name] for load in run["loads"] for name in names)
    wrong += run["server"]["inputs_out_of_order"] + run["server"]["messages_wrong"] + run["server"]["files_wrong"]
    row(gate + ": twice, out of order, damaged", wrong, "0", wrong == 0)


def check_inputs(gate, run):
    sent, acked = (sum(load[name] for load in run["loads"]) for name in ("inputs_sent", "inputs_acked"))
    refused = sum(load["inputs_refused"] for load in run["loads"])
    row(gate + ": reliable inputs answered", "%d of %d" % (acked, sent + refused), "all, 100 at least", acked == sent + refused and acked >= 100)


# ---- gates ----


def gate_ticks():
    for clients in (50, 100):
        gate = "ticks, %d clients" % clients
        run = play(gate, {}, [{"clients": clients}], {"slots": clients, "measure_clients": clients})
        host = run["server"]
        slowest, fastest = host["slowest_second"], host["fastest_second"]
        text = "%.2f, slowest second %d, fastest %d" % (host["ticks_per_second"], slowest, fastest)
        row(gate + ": ticks a second", text, "60 +- 1", host["seconds_counted"] >= SECONDS - 2 and slowest >= 59 and fastest <= 61)
        tick = host["tick_ms"]
        row(gate + ": a tick's p99, ms", "%.2f (median %.2f, longest %.2f)" % (tick["p99"], tick["p50"], tick["max"]), "< 15", 0 < tick["p99"] < 15)
        check_stayed(gate, run)


def gate_loss():
    gate = "3 % loss, 50 ms"
    run = play(gate, {"loss": 3, "delay": 50}, [{"clients": 50}])
    check_stayed(gate, run)
    check_inputs(gate, run)
    lost = run["to_server"]["lost"] / run["to_server"]["received"] * 100
    row(gate + ": packets that the relay lost", "%.2f %%" % lost, "2.5 to 3.5 %", 2.5 <= lost <= 3.5)


def gate_retries():
    gate = "5 % loss, 64 KiB beside"
    run = play(gate, {"loss": 5, "delay": 50}, [{"clients": 10, "file": 65536, "file_pause": 0.5}])
    row(gate + ": retries", sum_of(run, "reliable_retries_total"), "> 0", sum_of(run, "reliable_retries_total") > 0)
    row(gate + ": timeouts", sum_of(run, "reliable_timeouts_total"), "0", sum_of(run, "reliable_timeouts_total") == 0)
    check_inputs(gate, run)
    check_files(gate, run)
    check_stayed(gate, run)


def check_files(gate, run):
    begun, finished = (sum(load[name] for load in run["loads"]) for name in ("files_begun", "files_finished"))
    arrived = run["server"]["files_received"]
    row(gate + ": files sent, acknowledged, there", "%d, %d, %d" % (begun, finished, arrived), "alike", begun == finished == arrived > 0)


def gate_clean():
    gate = "no loss"
    run = play(gate, {"delay": 20}, [{"clients": 20, "file": 65536, "file_pause": 0.5}])
    row(gate + ": retries", sum_of(run, "reliable_retries_total"), "0", sum_of(run, "reliable_retries_total") == 0)
    row(gate + ": packets lost, by the messages' count", sum_of(run, "packets_lost"), "0", sum_of(run, "packets_lost") == 0)
    check_inputs(gate, run)
    check_stayed(gate, run)


def gate_reorder():
    gate = "20 % reordered"
    run = play(gate, {"delay": 20, "reorder": 20}, [{"clients": 20}])
    reordered = run["to_server"]["reordered"]
    row(gate + ": by the relay", "%d" % reordered, "> 0", reordered > 0)
    check_inputs(gate, run)
    check_stayed(gate, run)


def gate_duplicates():
    gate = "10 % duplicated"
    run = play(gate, {"delay": 20, "duplicate": 10}, [{"clients": 20}])
    copies = run["to_server"]["duplicated"] + run["to_client"]["duplicated"]
    dropped = sum_of(run, "REPLAYED", "dropped") + sum_of(run, "dropped_duplicates_total")
    # Copies of the handshake's packets and of the farewell are dropped for other reasons.
    row(gate + ": dropped and counted", "%d of %d" % (dropped, copies), "all of a session", copies > 100 and copies - 20 * 8 <= dropped <= copies)
    check_inputs(gate, run)
    check_stayed(gate, run)


def drain(sink, arrived, seconds):
    """Reads what is there, and what comes within so many seconds of the last."""
    sink.settimeout(seconds)
    try:
        while True:
            arrived[int.from_bytes(sink.recv(64), "little")] += 1
    except socket.timeout:
        return


def relayed(seed, packets=2000):
    """How often each of so many packets came through a bad relay."""
    arrived = [0] * packets
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        sink.bind(("127.0.0.1", 0))
        to = "127.0.0.1:%d" % sink.getsockname()[1]
        relay = start("relay", "--listen", "127.0.0.1:0", "--to", to, "--loss", 10, "--duplicate", 5, "--reorder", 5, "--seed", seed, "--seconds", 30)
        host, port = relay.stdout.readline().split()[-1].split(":")
        for number in range(packets):
            source.sendto(number.to_bytes(4, "little"), (host, int(port)))
            if number % 50 == 49:
                drain(sink, arrived, 0.005)
        drain(sink, arrived, 1.0)
        said = counts(stop(relay).splitlines()[0])
    return arrived, said


def gate_relay():
    """The network itself: it does what was asked of it, and the same again for the same seed."""
    (first, said), (again, _), (other, _) = relayed(1), relayed(1), relayed(2)
    lost, twice = first.count(0), first.count(2)
    row("relay: lost and doubled of 2000", "%d and %d" % (lost, twice), "150-250, 60-120", 150 <= lost <= 250 and 60 <= twice <= 120)
    row("relay: what it says of that", "%d and %d" % (said["lost"], said["duplicated"]), "the same", (said["lost"], said["duplicated"]) == (lost, twice))
    row("relay: seed 1 twice, and seed 2", "%s, %s" % (first == again, first == other), "True, False", first == again and first != other)


def gate_link():
    """What needs no processes: the messages' own counters without the core beneath them, and memory."""
    for line in finish(start("link"), 60).splitlines():
        gate, measured, limit, good = line.split("|")
        row(gate, measured, limit, good == "ok")


def gate_coverage():
    """Lines of messages that its own tests run, as gcc counts them. make coverage has branches and MC/DC too."""
    compiler, gcov = os.environ.get("COVERAGE_CC", "gcc"), os.environ.get("GCOV", "gcov")
    if OTHER or not shutil.which(compiler) or not shutil.which(gcov):
        print("note coverage: not measured: %s" % ("another header" if OTHER else "needs gcc and gcov"), flush=True)
        return
    place = os.path.join(OUT, "coverage")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    main_c, libraries = os.path.join(TOP, "tests", "main.c"), ["-lsodium", "-lm"]
    for command in (
        [compiler, "-g", "-O0", "-w", "--coverage", "-DTEST_NO_WRAP", "-I", TOP, "-c", main_c],
        [compiler, "--coverage", "main.o", "-o", "test"] + libraries,
        ["./test", "messages"],
        [gcov, "-b", "-c", "main.o"],
    ):
        subprocess.run(command, check=True, cwd=place, stdout=subprocess.DEVNULL, timeout=300)
    with open(HEADER, encoding="utf-8") as file:
        places = coverage.Places(file.read())
    items = coverage.read_gcov(os.path.join(place, "netcode.h.gcov"))
    lines = [ran for kind, line, ran in items if kind == "lines" and getattr(places.room(line), "name", "") == "MESSAGES"]
    reached = sum(1 for ran in lines if ran)
    row("coverage: lines of messages", "%d of %d, %.1f %%" % (reached, len(lines), 100.0 * reached / len(lines)), "100 %", reached == len(lines))


def gate_latency():
    """Half of the clients have transfers beside their game, the other half has none: what holds the machine up meets both alike."""
    network, load = {"loss": 3, "delay": 50}, {"clients": 40, "file_clients": 20}
    up = play("latency, 256 KiB up", network, [dict(load, file=FILE_BYTES)])
    down = play("latency, 256 KiB down", network, [load], {"file": FILE_BYTES})
    for way, run, groups, files in (
        ("up", up, up["server"]["input_one_way_ms"], up["server"]["files_received"]),
        ("down", down, down["loads"][0]["ack_one_way_ms"], down["loads"][0]["files_received"]),
    ):
        gate, alone, beside = "latency " + way, groups["alone"], groups["beside_files"]
        text = "%.1f (median %.1f, longest %.1f)" % (alone["p99_9"], alone["p50"], alone["max"])
        row(gate + ": p99.9 of an ordered message, ms", text, "<= 250", 0 < alone["p99_9"] <= 250)
        more = 100 * (beside["p99_9"] / alone["p99_9"] - 1)
        text = "%.1f, %+.0f %%; %d files" % (beside["p99_9"], more, files)
        row(gate + ": p99.9 beside 256 KiB transfers, ms", text, "<= +20 %", beside["count"] > 0 and more <= 20 and files > 0)
        check_inputs(gate, run)
        check_stayed(gate, run)


def gate_fixed():
    gate = "FIXED"
    load = {"clients": 1, "congestion": "fixed", "rate": FIXED_RATE, "file": FILE_BYTES, "file_pause": 0.5}
    run = play(gate, {"loss": 3, "delay": 50}, [load])
    took, allowed = run["loads"][0]["file_ms"], 1e3 * FILE_BYTES / FIXED_RATE
    text = "%.2f x (mean %.2f x) of %d files" % (took["max"] / allowed, took["mean"] / allowed, took["count"])
    row(gate + ": the slowest 256 KiB at 125 kB/s", text, "<= 1.3 x", took["count"] > 0 and took["max"] <= 1.3 * allowed)
    check_files(gate, run)


def check_fair(gate, loads, server, moved):
    """Three pairs at once, each with a server and a bottleneck of its own: how the ticks of two clients fall is a matter of luck."""
    network = {"delay": 25, "rate": BOTTLENECK}
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        pairs = [threads.submit(play, "%s %d" % (gate, number), dict(network, seed=number), loads, server, 2.0) for number in (1, 2, 3)]
        runs = [pair.result() for pair in pairs]
    bytes_moved = [[load[moved] for load in run["loads"]] for run in runs]
    shares = [100.0 * first / max(first + second, 1) for first, second in bytes_moved]
    used = [100.0 * sum(both) / SECONDS / BOTTLENECK for both in bytes_moved]
    text = "%s %%; of the way: %s %%" % (", ".join("%.0f" % share for share in shares), ", ".join("%.0f" % part for part in used))
    row(gate + ": the first of two flows has", text, "40 to 60 %", all(40 <= share <= 60 for share in shares) and min(used) > 20)
    for run in runs:
        check_inputs(gate, run)
        check_stayed(gate, run)


def gate_fair():
    """Two clients that send; then two that one server sends to."""
    load = {"warm_up": 10}
    check_fair("fair up", [dict(load, file=FILE_BYTES)] * 2, None, "file_bytes_acked")
    check_fair("fair down", [load] * 2, {"file": FILE_BYTES}, "file_bytes_received")


def gate_queue():
    network = {"delay": 25, "rate": BOTTLENECK}
    load = {"warm_up": 5, "tick_rate": DRIFT}
    alone = play("queue alone", network, [dict(load, file_clients=0)])
    up = play("queue, 256 KiB up", network, [dict(load, file=FILE_BYTES)])
    down = play("queue, 256 KiB down", network, [load], {"file": FILE_BYTES})
    inputs = [alone["server"]["input_one_way_ms"]["alone"], up["server"]["input_one_way_ms"]["beside_files"]]
    snapshots = [alone["loads"][0]["snapshot_one_way_ms"]["alone"], down["loads"][0]["snapshot_one_way_ms"]["beside_files"]]
    for what, (before, after) in (("an input", inputs), ("a snapshot", snapshots)):
        for name in ("p50", "p99"):
            factor = after[name] / before[name]
            text = "%.1f, %.2f x of %.1f" % (after[name], factor, before[name])
            row("queue: %s's %s beside 256 KiB, ms" % (what, name), text, "<= 2 x", 0 < factor <= 2)
    for name, queue, acked in (
        ("up", up["to_server"], up["loads"][0]["file_bytes_acked"] / SECONDS),
        ("down", down["to_client"], down["server"]["file_bytes_acked"] / (SECONDS + 5)),
    ):
        text = "%.0f %%; its queue p50 %.0f, p99 %.0f ms" % (100.0 * acked / BOTTLENECK, queue["queue_ms_p50"], queue["queue_ms_p99"])
        row("queue: the transfer %s fills of the way" % name, text, ">= 20 %", acked >= 0.2 * BOTTLENECK)


GATES = {
    "relay": gate_relay,
    "link": gate_link,
    "coverage": gate_coverage,
    "ticks": gate_ticks,
    "loss": gate_loss,
    "retries": gate_retries,
    "clean": gate_clean,
    "reorder": gate_reorder,
    "duplicates": gate_duplicates,
    "latency": gate_latency,
    "fixed": gate_fixed,
    "fair": gate_fair,
    "queue": gate_queue,
}


def main():
    words = sys.argv[1:]
    unknown = [word for word in words if not any(word in name for name in GATES)]
    if unknown:
        print("no gate is called %s; there are %s" % (", ".join(unknown), ", ".join(GATES)))
        return 2
    build()
    try:
        for name, gate in GATES.items():
            if not words or any(word in name for word in words):
                gate()
    finally:
        for child in list(children):
            child.kill()
            child.wait()
        with open(os.path.join(OUT, "gates.json"), "w", encoding="utf-8") as file:
            json.dump({"seconds": SECONDS, "rows": rows, "runs": record}, file, indent=1)
    beyond = [gate for gate, _, _, good in rows if not good]
    print("%d of %d within their limits%s" % (len(rows) - len(beyond), len(rows), "".join("\n     beyond: " + gate for gate in beyond)))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
