#!/usr/bin/env python3
"""Takes one wipe after another out of a copy of netcode.h, and demands that the search finds what it left.

    plants.py           every edit in tests/attacks/ that is about decision 9, and every one beside this file

The edits have the form that tests/attacks/run.py describes. CC, CFLAGS, LIBS and LEVELS come from run.sh; a plant is found
when the search fails at one of the optimization levels."""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(TOP, "build", "erase")
sys.path.insert(0, os.path.join(TOP, "tests", "attacks"))
OTHERS = {
    "decision_09_constant_time": "is no matter of memory: make ct looks after it",
    "decision_09_memory_given_back": "leaves tags of tokens and client ids in the old block, no secret: stop has wiped those already",
}


def words(name):
    return os.environ.get(name, "").split()


def search(folder, level):
    """What the search over the header in `folder` finds, one line, '' for nothing."""
    program = os.path.join(folder, "erase" + level)
    command = words("CC") + words("CFLAGS") + [level, "-I" + folder, "-I" + TOP, os.path.join(HERE, "erase.c")]
    built = subprocess.run(command + words("LIBS") + ["-o", program], capture_output=True, text=True, check=False)
    if built.returncode:
        return "not built: " + built.stderr.strip().splitlines()[0]
    ran = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    if ran.returncode not in (0, 1):
        return "crashed"
    found = re.findall(r"erase\.c:\d+: (.*is left .*)", ran.stdout)
    return "%s (and %d more)" % (found[0], len(found) - 1) if found else ""


def main():
    from run import Edit

    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    paths = glob.glob(os.path.join(TOP, "tests", "attacks", "decision_09_*.edit")) + glob.glob(os.path.join(HERE, "*.edit"))
    missed = 0
    for edit in sorted((Edit(path) for path in paths), key=lambda edit: edit.name):
        if edit.name in OTHERS:
            print("      %-32s %s" % (edit.name, OTHERS[edit.name]))
            continue
        folder = os.path.join(WORK, edit.name)
        os.makedirs(folder, exist_ok=True)
        planted, stale = edit.apply(text)
        with open(os.path.join(folder, "netcode.h"), "w", encoding="utf-8") as file:
            file.write(planted)
        found = stale
        for level in words("LEVELS"):
            found = found or search(folder, level)
        good = " is left " in found
        missed += not good
        print("%-5s %-32s %s" % ("found" if good else "MISSED", edit.name, found), flush=True)
    print("%d missed" % missed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
