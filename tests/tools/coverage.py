#!/usr/bin/env python3
"""make coverage: reads what a compiler counted in netcode.h, prints the coverage of each room, and fails where something is
not covered that tests/tools/unreached.txt does not list with its reason, or where the limits below are missed.

    coverage.py PLACE       what mcdc.sh left in that folder: lines, branches and MC/DC
    coverage.py FILE.gcov   gcov's lines and branches, where there is no clang 19: printed, and the lines judged as a whole
    --lines                 also what is listed, with its reason

An entry of the list stands for one line of one function, and for everything on it. One that excuses nothing fails too, so that the list
does not outlive its causes (not with gcov, which sees less)."""

import json
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))
import source  # noqa: E402

KINDS = ("lines", "branches", "MC/DC")
MINIMUM = {"lines": 99.0, "branches": 98.0, "MC/DC": 95.0}
GCOV_MINIMUM = 95.0


class Count:
    """How much of each kind there is in a room, and how much of it is covered."""

    def __init__(self):
        self.total = dict.fromkeys(KINDS, 0)
        self.covered = dict.fromkeys(KINDS, 0)

    def note(self, kind, good):
        self.total[kind] += 1
        self.covered[kind] += bool(good)

    def add(self, other):
        for kind in KINDS:
            self.total[kind] += other.total[kind]
            self.covered[kind] += other.covered[kind]

    def percent(self, kind):
        return 100.0 * self.covered[kind] / max(1, self.total[kind])

    def text(self):
        return "  ".join("%5d of %5d %s %6.2f %%" % (self.covered[kind], self.total[kind], kind, self.percent(kind)) for kind in KINDS if self.total[kind])


def read_gcov(path):
    """(kind, line, covered) of every line that has code, and of its branches where gcov was asked for them (-b -c). gcov lists a line
    once more for each copy of a function."""
    counts, ways, line = {}, [], 0
    with open(path, encoding="utf-8") as file:
        for row in file:
            if row.startswith("branch"):
                ways.append(("branches", line, " never executed" not in row and not row.split("taken")[1].strip().startswith("0")))
                continue
            fields = row.split(":", 2)
            if len(fields) < 3 or not fields[1].strip().isdigit():
                continue
            count, number = fields[0].strip(), int(fields[1])
            if number == 0 or count == "-":
                continue
            line = number
            ran = 0 if count in ("#####", "=====") else int(count.rstrip("*"))
            counts[line] = max(counts.get(line, 0), ran)
    return [("lines", at, ran) for at, ran in sorted(counts.items())] + ways


def branches(node, line):
    """Both ways of each condition. Those in a macro count for the line on which the macro stands."""
    for branch in node.get("branches", []):
        at = line or branch[0]
        if branch[4] == 0 and branch[5] == 0 and len(branch) > 8 and branch[8] == 6:
            continue
        yield ("branches", at, branch[4])
        yield ("branches", at, branch[5])


def conditions(node, line):
    """One for each condition of a decision: did it alone decide, both ways?"""
    for record in node.get("mcdc_records", []):
        for shown in record[-1]:
            yield ("MC/DC", line or record[0], shown)


def read_llvm(place):
    """The same of clang's account: lines from its lcov export, branches and MC/DC from the other one."""
    items = []
    with open(os.path.join(place, "lcov.info"), encoding="utf-8") as file:
        for row in file:
            if row.startswith("DA:"):
                line, count = row[3:].split(",")[:2]
                items.append(("lines", int(line), int(count)))
    with open(os.path.join(place, "export.json"), encoding="utf-8") as file:
        node = json.load(file)["data"][0]["files"][0]
    items += list(branches(node, 0)) + list(conditions(node, 0))
    for expansion in node["expansions"]:
        at = expansion["source_region"][0]
        items += list(branches(expansion, at)) + list(conditions(expansion, at))
    return items


def read_list():
    """(function, text of the line) -> reason."""
    listed = {}
    with open(os.path.join(TOP, "tests/tools/unreached.txt"), encoding="utf-8") as file:
        for row in file:
            if row.startswith("#") or not row.strip():
                continue
            function, text, reason = (field.strip() for field in row.split(" @@ "))
            listed[(function, text)] = reason
    return listed


class Places:
    """Which line belongs to which function and room."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.rooms = [(source.line_of(text, room.start), source.line_of(text, room.end), room) for room in source.rooms(text)]
        self.functions = sorted((source.line_of(text, function.start), function.name) for function in source.functions(text))

    def room(self, line):
        return next((room for first, last, room in self.rooms if first <= line < last), None)

    def name(self, line):
        """What the list calls this line."""
        before = [name for first, name in self.functions if first <= line]
        return before[-1] if before else "", self.lines[line - 1].strip()


def judge(items, places, listed):
    """Returns the counts of each room, what is neither covered nor listed, and the entries that were of use."""
    counts, missing, used = {}, [], set()
    for kind, line, good in items:
        room = places.room(line)
        if room is None:
            continue
        counts.setdefault(room, Count()).note(kind, good)
        if good:
            continue
        name = places.name(line)
        if name in listed:
            used.add(name)
        elif (kind, line) not in missing:
            missing.append((kind, line))
    return counts, missing, used


def tell_unmeasured(place):
    """The decisions that this clang can not take apart: it says so when it compiles."""
    with open(os.path.join(place, "compile.log"), encoding="utf-8") as file:
        lines = sorted(int(row.split(":")[1]) for row in file if "netcode.h" in row and "unsupported MC/DC" in row)
    if lines:
        print("MC/DC of %d decisions is not measured (clang can not nest them), branches are: lines %s" % (len(lines), ", ".join(map(str, lines))))


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    llvm = os.path.isdir(arguments[0])
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        places = Places(file.read())
    listed = read_list()
    counts, missing, used = judge(read_llvm(arguments[0]) if llvm else read_gcov(arguments[0]), places, listed)
    total = Count()
    for room in sorted(counts, key=lambda room: room.number):
        print("room %2d %-10s %s" % (room.number, room.name.lower(), counts[room].text()))
        total.add(counts[room])
    print("all rooms         %s" % total.text())
    if llvm:
        tell_unmeasured(arguments[0])
    for kind, line in missing if llvm else []:
        print("not covered, not listed: netcode.h:%d %s, in %s: %s" % ((line, kind) + places.name(line)))
    stale = sorted(set(listed) - used) if llvm else []
    for function, text in stale:
        print("listed, but covered or gone: %s: %s" % (function, text))
    if "--lines" in sys.argv:
        for function, text in sorted(used):
            print("listed: %s: %s\n            %s" % (function, text, listed[(function, text)]))
    low = [kind for kind in KINDS if llvm and total.percent(kind) < MINIMUM[kind]]
    if not llvm and total.percent("lines") < GCOV_MINIMUM:
        low = ["lines"]
    for kind in low:
        print("%s: at least %.0f %% wanted" % (kind, MINIMUM[kind] if llvm else GCOV_MINIMUM))
    print("%d listed with a reason, %d not, %d entries too many" % (len(used), len(missing), len(stale)))
    return 1 if low or stale or (llvm and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
