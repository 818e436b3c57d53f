#!/usr/bin/env python3
"""Plants faults in copies of netcode.h, and demands that the gates find each of them: a gate that nothing can fail is none.

    python3 tests/gates/plants.py [WORD]...      the plants whose gates contain one of the words; all without any

Each plant is a row: the gates to run, a part of the name of a row that must be beyond its limit, what stands in netcode.h, and
what is put in its place; some have two such edits. The gates run for some seconds each (PLANT_SECONDS), so their processes are real ones here too."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(TOP, "build", "gates_plants")
SECONDS = os.environ.get("PLANT_SECONDS", "6")

JUDGE = "static void nc_messages_judge_delay( struct netcode_messages_t * messages )\n{\n"

LOSE = "    message->next_lost = 0;\n    if ( messages->lost_tail )\n"
SEND = "        netcode_client_send_packet( client, packet, bytes );\n"
IN_TURN = "    while ( *( link = nc_waiting_find( messages, channel, channel->expected_order ) ) ) {\n"
LATER = "        else if ( later && sent->bytes & NC_SENT_IN_FLIGHT ) {\n"

PLANTS = (
    # Copies of packets are taken as new ones.
    ("link", "copies of packets", "        return NETCODE_MESSAGES_DROP_DUPLICATE;\n", "        return NETCODE_MESSAGES_DROP_NONE;\n"),
    # Ordered messages come as they arrive.
    ("link", "12, 10, 11, reliable ordered", IN_TURN, "    while ( *( link = &channel->waiting ) ) {\n"),
    # A place more for a packet under way costs memory.
    (
        "link",
        "memory",
        "    uint32_t window = nc_or_default( config->window_packets, 64 );\n",
        "    uint32_t window = nc_or_default( config->window_packets, 128 );\n",
    ),
    # An update takes long: the server's tick does.
    (
        "ticks",
        "p99",
        "    messages->flush = 1;\n    messages->flight",
        "    for ( double t = netcode_time(); netcode_time() - t < 0.0005; )\n        ;\n    messages->flush = 1;\n    messages->flight",
    ),
    # Somebody falls out in the middle.
    ("loss", "disconnects", SEND + "}", SEND + "    static int calls;\n    if ( ++calls == 10000 )\n        netcode_client_disconnect( client );\n}"),
    # What was lost is not sent again: neither messages, where their repeats are lost too, nor fragments.
    ("loss", "inputs answered", LOSE, "    return;\n" + LOSE),
    ("retries", "files sent", "    *state |= NC_FRAGMENT_LOST;\n    message->lost_fragments++;\n", ""),
    # Lost is what has not been acknowledged after half a round trip: on a network that loses nothing all is sent twice.
    ("clean", "retries", LATER, LATER.replace("later &&", "messages->now - sent->time > messages->rtt / 2 &&") + "            later = 99;\n"),
    # Ordered messages come as they arrive, between processes.
    ("reorder", "out of order", IN_TURN, "    while ( *( link = &channel->waiting ) ) {\n"),
    # The core lets copies through, and the messages do not count them.
    (
        "duplicates",
        "dropped and counted",
        "    int reason = nc_replay_seen( replay, packet->sequence );",
        "    int reason = NETCODE_DROP_NONE;",
        "    stats->dropped_duplicates_total = stats->drops[NETCODE_MESSAGES_DROP_DUPLICATE];\n",
        "",
    ),
    # No repeats, and lost is only what has been missing for six round trips.
    (
        "latency",
        "p99.9 of an ordered message",
        "    NC_MESSAGES_REPEATS = 2,\n",
        "    NC_MESSAGES_REPEATS = 0,\n",
        "if ( later >= messages->reorder_threshold || messages->now - sent->time >= wait )",
        "if ( messages->now - sent->time >= 6 * wait )",
    ),
    # Small messages wait behind a transfer.
    (
        "latency",
        "p99.9 beside 256 KiB",
        "    double small = messages->in_flight - messages->bulk_in_flight;\n",
        "    double small = messages->in_flight * 4;\n",
    ),
    # Half of the rate is used.
    ("fixed", "slowest", "        return messages->fixed_rate;\n", "        return messages->fixed_rate / 2;\n"),
    # Transfers do not give way to delay, only to losses.
    ("queue", "p99", JUDGE, JUDGE + "    messages->round_samples = 0;\n"),
    # Of two flows that begin two seconds apart one does not give way at all.
    (
        "fair",
        "the first of two",
        JUDGE,
        JUDGE + "    static double born;\n    born = born > 0.0 ? born : messages->now;\n    if ( (uint64_t) ( born / 2.0 ) % 2 )\n        return;\n",
    ),
)


def plant(row, number):
    words, expected, edits = row[0], row[1], row[2:]
    with open(os.environ.get("GATE_HEADER", os.path.join(TOP, "netcode.h")), encoding="utf-8") as file:
        text = file.read()
    for old, new in zip(edits[0::2], edits[1::2]):
        if old not in text:
            return "its edit finds nothing: " + old.strip()
        text = text.replace(old, new)
    header = os.path.join(OUT, "planted_%d.h" % number)
    with open(header, "w", encoding="utf-8") as file:
        file.write(text)
    environment = dict(os.environ, GATE_HEADER=header, GATE_OUT=OUT, GATE_SECONDS=SECONDS, CFLAGS="-O1 -w")
    done = subprocess.run([sys.executable, os.path.join(HERE, "gates.py"), words], env=environment, capture_output=True, text=True, check=False)
    beyond = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    found = [line for line in beyond if expected in line]
    if done.returncode == 1 and found:
        return ""
    return "status %d; beyond: %s%s" % (done.returncode, "; ".join(beyond) or "nothing", done.stderr[-500:])


def main():
    words, missed, count = sys.argv[1:], 0, 0
    os.makedirs(OUT, exist_ok=True)
    for number, row in enumerate(PLANTS):
        if words and not any(word in row[0] for word in words):
            continue
        fault = plant(row, number)
        print("%-6s %s: %s%s" % ("MISSED" if fault else "found", row[0], row[1], " -- " + fault if fault else ""), flush=True)
        missed += fault != ""
        count += 1
    print("%d of %d planted faults were found" % (count - missed, count))
    return 1 if missed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
