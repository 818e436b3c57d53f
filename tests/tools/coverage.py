#!/usr/bin/env python3
"""make coverage: reads gcov's account of netcode.h and prints the line coverage of each room. Fails where that of rooms 1-12 together
is below MINIMUM percent. `coverage.py FILE --lines` also prints each line that never ran."""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))
import source  # noqa: E402

MINIMUM = 95.0


def read_gcov(path):
    """line number -> how often it ran, for every line that has code. gcov lists a line once more for each copy of a function."""
    counts = {}
    with open(path, encoding="utf-8") as file:
        for row in file:
            fields = row.split(":", 2)
            if len(fields) < 3 or not fields[1].strip().isdigit():
                continue
            count, line = fields[0].strip(), int(fields[1])
            if line == 0 or count == "-":
                continue
            ran = 0 if count in ("#####", "=====") else int(count.rstrip("*"))
            counts[line] = max(counts.get(line, 0), ran)
    return counts


def main():
    counts = read_gcov(sys.argv[1])
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    total = covered = 0
    for room in source.rooms(text):
        first, last = source.line_of(text, room.start), source.line_of(text, room.end)
        lines = [line for line in counts if first <= line < last]
        ran = [line for line in lines if counts[line]]
        if room.number <= 12:
            total += len(lines)
            covered += len(ran)
        print("room %2d %-12s %5d of %5d lines %6.1f %%" % (room.number, room.name.lower(), len(ran), len(lines), 100.0 * len(ran) / max(1, len(lines))))
        if "--lines" in sys.argv:
            for line in sorted(set(lines) - set(ran)):
                print("    %5d  %s" % (line, text.split("\n")[line - 1].strip()))
    percent = 100.0 * covered / max(1, total)
    print("rooms 1-12           %5d of %5d lines %6.1f %%, at least %.0f %% wanted" % (covered, total, percent, MINIMUM))
    return 0 if percent >= MINIMUM else 1


if __name__ == "__main__":
    sys.exit(main())
