#!/usr/bin/env python3
"""make size: the manual's lines, lines of code (without comments and empty lines) of each part of netcode.h, the object's bytes at -O2 and the seconds to
compile it, each against its limit. The core (all rooms but messages), and messages, have an aim besides: they are over it, and the limit keeps them from
growing further. It may be lowered whenever the rooms get shorter."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))
import source  # noqa: E402

CC = os.environ.get("CC", "cc").split()
MAX_MANUAL_LINES = 260  # what has no room there stands in examples/docs
MAX_PUBLIC_LINES, MAX_CORE_LINES, MAX_MESSAGES_LINES = 800, 7312, 3192
AIM_CORE_LINES, AIM_MESSAGES_LINES = 4500, 1500
MAX_OBJECT_BYTES, MAX_BOTH_BYTES, MAX_COMPILE_SECONDS = 128 * 1024, 176 * 1024, 2.5
COMPILATIONS = 11


def code_lines(text):
    return sum(1 for line in source.strip(text).split("\n") if line.strip())


# A compilation of its own to judge the header's by: shared machines are slow at times, and old ones always. On the machine that the limit
# was set for, it took so many seconds. One runs right before and one right after each compilation of the header, and the median of the
# ratios counts: the quickest of each kind need not come from the same moment, and their ratio went from 2.9 to 4.2 without a change.
YARDSTICK_SECONDS = 0.62
YARDSTICK = "".join(
    """
int f%d( int * a, int n )
{
    int sum = 0;
    for ( int i = 0; i < n; i++ ) {
        if ( a[i] %% %d == 0 )
            sum += a[i] * i;
        else
            a[i] ^= sum >> ( i & 7 );
        switch ( a[i] & 7 ) {
        case 0: sum -= i; break;
        case %d: sum *= 3; break;
        default: a[( i + %d ) %% n] += sum;
        }
    }
    return sum;
}
"""
    % (i, i % 11 + 2, i % 6 + 1, i)
    for i in range(120)
)


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compile_yardstick(directory):
    source_file = os.path.join(directory, "yardstick.c")
    with open(source_file, "w", encoding="utf-8") as file:
        file.write(YARDSTICK)
    return cpu_seconds(CC + ["-O2", "-c", source_file, "-o", os.path.join(directory, "yardstick.o")])


def compile_once(product, *options):
    flags = subprocess.run(["sh", os.path.join(TOP, "tests/tools/deps.sh"), "--cflags"], capture_output=True, text=True, check=True)
    command = CC + ["-x", "c", "-O2", "-DNDEBUG", "-DNETCODE_IMPLEMENTATION", *options] + flags.stdout.split()
    return cpu_seconds(command + ["-c", os.path.join(TOP, "netcode.h"), "-o", product])


def object_bytes(product):
    """Code, constants and data, as `size` counts them: not the symbol table, which does not reach a program's memory."""
    fields = subprocess.run(["size", product], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()
    return sum(int(field) for field in fields[:3])


def main():
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    rooms = source.rooms(text)
    if len(rooms) < 12:
        print("netcode.h has the banners of %d rooms; there are at least 12" % len(rooms))
        return 1
    rooms[-1].end = text.index("/* Private macros are removed", rooms[-1].start)  # those of all rooms
    over = 0

    def row(title, value, unit, limit=None):
        nonlocal over
        over += limit is not None and value > limit
        verdict = "" if limit is None else "of %s%s" % (limit, "" if value <= limit else "   TOO MUCH")
        print("%-28s %9s %-8s %s" % (title, round(value, 2), unit, verdict))

    row("manual", text[: text.index("*/")].count("\n") + 1, "lines", MAX_MANUAL_LINES)
    row("public part", code_lines(text[: source.implementation_start(text)]), "lines", MAX_PUBLIC_LINES)
    for room in rooms:
        row("room %2d %s" % (room.number, room.name.lower()), code_lines(text[room.start : room.end]), "lines")
    messages = sum(code_lines(text[room.start : room.end]) for room in rooms if room.name == "MESSAGES")
    core = sum(code_lines(text[room.start : room.end]) for room in rooms) - messages
    row("core: all but messages", core, "lines", MAX_CORE_LINES)
    print("%-28s %9d lines" % ("core, the aim", AIM_CORE_LINES))
    row("messages", messages, "lines", MAX_MESSAGES_LINES)
    print("%-28s %9d lines" % ("messages, the aim", AIM_MESSAGES_LINES))
    row("whole file", text.count("\n"), "lines")
    with tempfile.TemporaryDirectory() as directory:
        product = os.path.join(directory, "netcode.o")
        times, ratios = [], []
        yardstick = compile_yardstick(directory)
        for _ in range(COMPILATIONS):
            times.append(compile_once(product))
            before, yardstick = yardstick, compile_yardstick(directory)
            ratios.append(2 * times[-1] / (before + yardstick))
        row("object at -O2", object_bytes(product), "bytes", MAX_OBJECT_BYTES)
        compile_once(product, "-DNETCODE_MESSAGES")
        row("the same with messages", object_bytes(product), "bytes", MAX_BOTH_BYTES)
        row("compile at -O2, CPU time", statistics.median(ratios) * YARDSTICK_SECONDS, "seconds", MAX_COMPILE_SECONDS)
        print("%-28s %9.2f seconds, %.2f to %.2f times the yardstick" % ("as it was here", statistics.median(times), min(ratios), max(ratios)))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
