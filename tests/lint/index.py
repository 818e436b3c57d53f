#!/usr/bin/env python3
"""The index of rooms and public functions in netcode.h, made from the banners and the declarations.

    index.py            fails where the index is not what the file holds
    index.py --write    writes it anew (make index)"""

import os
import re
import sys
import textwrap

import source

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "netcode.h")
BEGIN, END = "/*  INDEX, written by `make index`", "*/\n"
PREFIXES = ("netcode_default_", "netcode_client_", "netcode_server_", "netcode_network_simulator_", "netcode_messages_", "netcode_")
WIDTH = 116


def question(text, room):
    """The sentence below a room's number and name, which may go over two lines."""
    words = text[room.start :].split("ROOM %d: %s" % (room.number, room.name))[1].split()
    return " ".join(words[: next(n for n, word in enumerate(words) if word.endswith("?")) + 1])


def made(text):
    lines = [BEGIN + ".", "", "    Rooms, each at its banner: search for \"ROOM 9\"."]
    for room in source.rooms(text):
        first, rest = "    %2d %-10s " % (room.number, room.name.lower()), " " * 18
        lines += textwrap.wrap(question(text, room), WIDTH, initial_indent=first, subsequent_indent=rest)
    lines += ["", "    Functions, by what their names begin with."]
    names = re.findall(r"^NETCODE_API [^;{]*?\b(netcode_\w+)\(", text[: source.rooms(text)[0].start], flags=re.M)
    for prefix in sorted(PREFIXES):
        own = [name for name in names if next(p for p in PREFIXES if name.startswith(p)) == prefix]
        lines += ["    " + prefix] + textwrap.wrap(", ".join(name[len(prefix) :] for name in own), WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines) + "\n" + END


def fault(text):
    """What is wrong with the index, '' for nothing."""
    if BEGIN not in text:
        return "netcode.h has no index"
    at = text.index(BEGIN)
    return "" if text.startswith(made(text), at) else "the index is not what the file holds: make index"


def main(words):
    with open(HEADER, encoding="utf-8") as file:
        text = file.read()
    wrong = fault(text)
    if words == ["--write"] and BEGIN in text:
        at = text.index(BEGIN)
        with open(HEADER, "w", encoding="utf-8") as file:
            file.write(text[:at] + made(text) + text[text.index(END, at) + len(END) :])
        wrong = ""
    if wrong:
        raise SystemExit(wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
