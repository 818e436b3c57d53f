#!/usr/bin/env python3
"""Plants faults in copies of what tests/latency/latency.py measures, and demands that it finds each of them.

    python3 tests/latency/plants.py [WORD]...      the plants whose names contain one of the words; all without any

Each plant is a row: its name, a part of the name of a row of latency.py that must fail, the file, what stands in it, and what is put in its
place; some have two such edits. Copies lie in build/latency_plants. First the copy as it is must hold, or nothing that follows says anything.
PLANT_SECONDS=8 for longer runs than 5 s each."""

import json
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, "build", "latency_plants")
FILES = ("netcode.h", "tests/latency/latency.py", "tests/latency/latency.c", "tests/latency/latency.gp", "tests/tools/relay.c", "tests/tools/deps.sh")
HEADER, ENDS, RELAY = "netcode.h", "tests/latency/latency.c", "tests/tools/relay.c"

IN_TURN = "    while ( *( link = nc_waiting_find( messages, channel, channel->expected_order ) ) ) {\n"
LOSE = "    message->next_lost = 0;\n    if ( messages->lost_tail )\n"
FIND = "            if ( later >= messages->reorder_threshold || messages->now - sent->time >= wait )\n"
TAKE = "    memcpy( data, message.data,"
RESEND = "        if ( fixed->acked[i] || end->now < fixed->sent_time[i] + FIXED_SECONDS )\n"
ARRIVED = "        fixed->arrived[number] = 1;\n"
FLUSH = "    if ( stream->out_bytes && stream_is_open( end ) ) {\n"
CHANCE = "    if ( chance( relay, client, way, count, 0 ) < relay->options.loss ) {\n"
DELAY = "leaves + options->delay +"
NO_REPEATS = (HEADER, "    NC_MESSAGES_REPEATS = 2,\n", "    NC_MESSAGES_REPEATS = 0,\n")

PLANTS = (
    ("ours comes as it arrives", "netcode.h messages: delivered", (HEADER, IN_TURN, "    while ( *( link = &channel->waiting ) ) {\n"), NO_REPEATS),
    ("ours is not sent again", "netcode.h messages: delivered", (HEADER, LOSE, "    return;\n" + LOSE), NO_REPEATS),
    (
        "ours is late when something was lost",
        "p99 against TCP",
        (HEADER, FIND, "            if ( messages->now - sent->time >= 5.0 * wait )\n"),
        NO_REPEATS,
    ),
    (
        "ours is damaged",
        "netcode.h messages: delivered",
        (ENDS, TAKE, "    if ( end->received == 200 )\n        ( (uint8_t *) (uintptr_t) message.data )[40] ^= 1;\n" + TAKE),
    ),
    (
        "the timer does not send again",
        "fixed 200 ms timer: delivered",
        (ENDS, RESEND, RESEND.replace("end->now <", "fixed->sent_time[i] > 0.0 || end->now <")),
    ),
    (
        "the timer's come twice, and one not at all",
        "fixed 200 ms timer: delivered",
        (ENDS, ARRIVED, ARRIVED + "        if ( number == 200 )\n            memcpy( fixed->in[200], fixed->in[199], MESSAGE_BYTES );\n"),
    ),
    ("the timer is faster than ours", "p99 against fixed", (ENDS, "#define FIXED_SECONDS 0.2\n", "#define FIXED_SECONDS 0.004\n"), NO_REPEATS),
    ("TCP loses a message", "TCP (", (ENDS, FLUSH, "    if ( end->sent == 200 )\n        stream->out_bytes = 0;\n" + FLUSH)),
    ("the relay spares what is small", "TCP (", (RELAY, CHANCE, CHANCE.replace("if (", "if ( bytes > 200 &&"))),
    ("the relay is fast", "the network", (RELAY, DELAY, DELAY.replace("delay", "delay * 0.9"))),
    ("the relay is slow", "the network", (RELAY, DELAY, DELAY.replace("delay", "delay * 1.3"))),
)


def prepare(edits):
    """A copy of all that is measured, with these edits."""
    for file in FILES:
        path = os.path.join(OUT, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(TOP, file), path)
    for file, old, new in edits:
        with open(os.path.join(OUT, file), encoding="utf-8") as source:
            text = source.read()
        if text.count(old) != 1:
            raise SystemExit("the edit does not fit to %s any more: %s" % (file, old.strip()))
        with open(os.path.join(OUT, file), "w", encoding="utf-8") as source:
            source.write(text.replace(old, new))


def failed_rows(edits):
    """What the copy says does not hold."""
    prepare(edits)
    report = os.path.join(OUT, "build", "latency", "latency.json")
    if os.path.exists(report):
        os.remove(report)
    environment = dict(os.environ, LATENCY_LOSS="0 3 10", LATENCY_SEEDS="1", LATENCY_SECONDS=os.environ.get("PLANT_SECONDS", "5"))
    environment.pop("LATENCY_OUT", None)
    command = [sys.executable, os.path.join(OUT, "tests", "latency", "latency.py")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if not os.path.exists(report):
        raise SystemExit("latency.py did not end as it should:\n" + result.stdout[-1000:] + result.stderr[-1000:])
    with open(report, encoding="utf-8") as file:
        failed = [what for what, _, _, good in json.load(file)["rows"] if not good]
    if result.returncode != (1 if failed else 0):
        raise SystemExit("latency.py ended with status %d, and %d rows failed" % (result.returncode, len(failed)))
    return failed


def main():
    words, missed = sys.argv[1:], 0
    failed = failed_rows(())
    print("%-4s without a plant: %s" % ("FAIL" if failed else "ok", "; ".join(failed) or "all holds"), flush=True)
    if failed:
        return 1
    for name, wanted, *edits in PLANTS:
        if words and not any(word in name for word in words):
            continue
        failed = failed_rows(edits)
        found = any(wanted in what for what in failed)
        missed += not found
        print("%-4s %s: %s" % ("ok" if found else "FAIL", name, "; ".join(failed) or "nothing failed"), flush=True)
    print("%d missed" % missed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
