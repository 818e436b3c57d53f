#!/usr/bin/env python3
"""Looks for bytes in the memory of a process that is running, in all that it may read of it.

    secrets.py PID NAME=HEX...    prints a line `NAME COUNT` for each

The bytes come on standard input where NAME=HEX is `-`, a NAME=HEX a line: nothing of them is then in this process's own command line."""

import re
import sys

CHUNK = 1 << 24


def ranges(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split()
            if "r" in fields[1] and not line.rstrip().endswith(("[vvar]", "[vsyscall]")):
                start, end = (int(number, 16) for number in fields[0].split("-"))
                yield start, end


def pieces(memory, start, end, overlap):
    """The bytes of a range; each piece repeats the end of the one before it."""
    kept = b""
    while start < end:
        try:
            memory.seek(start)
            data = memory.read(min(CHUNK, end - start))
        except OSError:
            return  # reserved and never used, or gone meanwhile
        if not data:
            return
        yield kept + data
        kept = data[-overlap:] if overlap else b""
        start += len(data)


def main():
    pid = int(sys.argv[1])
    lines = sys.stdin.read().split() if sys.argv[2] == "-" else sys.argv[2:]
    wanted = {name: bytes.fromhex(value) for name, value in (line.split("=") for line in lines)}
    counts = dict.fromkeys(wanted, 0)
    total = 0
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for start, end in ranges(pid):
            total += end - start
            for name, value in wanted.items():
                for piece in pieces(memory, start, end, len(value) - 1):
                    counts[name] += len(re.findall(re.escape(value), piece))
    for name, count in counts.items():
        print(name, count)
    print("bytes", total)


if __name__ == "__main__":
    main()
