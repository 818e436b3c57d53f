#!/usr/bin/env python3
"""Puts leaks of secrets into copies of netcode.h, one by one, and demands that valgrind reports each.

    plants.py           every edit beside this file, and the one of tests/attacks/ that is about comparisons in constant time

The edits have the form that tests/attacks/run.py describes. CC, CFLAGS, LIBS and VALGRIND come from run.sh. A leak is found when there are
reports outside of the calls that open something, or when such a call has another number of them than one."""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(TOP, "build", "ct")
sys.path.insert(0, os.path.join(TOP, "tests", "attacks"))


def words(name):
    return os.environ.get(name, "").split()


def look(folder):
    """What valgrind reports for the header in `folder`: (found, one line)."""
    program, log = os.path.join(folder, "ct"), os.path.join(folder, "log")
    command = words("CC") + words("CFLAGS") + ["-I" + folder, "-I" + TOP, os.path.join(HERE, "ct.c")]
    built = subprocess.run(command + words("LIBS") + ["-o", program], capture_output=True, text=True, check=False)
    if built.returncode:
        return False, "not built: " + built.stderr.strip().splitlines()[0]
    command = words("VALGRIND") + ["--log-file=" + log, program]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    elsewhere = re.search(r"reports elsewhere: (\d+)", ran.stdout)
    if not elsewhere:
        return False, "no verdict, status %d" % ran.returncode
    with open(log, encoding="utf-8") as file:
        reports = re.findall(r"== (Conditional jump|Use of uninitialised)[^\n]*\n==\d+==    at 0x\w+: (.*)", file.read())
    places = sorted({place for _, place in reports if "libsodium" not in place})
    found = ran.returncode == 1 and int(elsewhere.group(1)) > 0
    return found, "%s reports elsewhere: %s" % (elsewhere.group(1), ", ".join(places[:3]))


def main():
    from run import Edit

    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    paths = glob.glob(os.path.join(HERE, "*.edit")) + [os.path.join(TOP, "tests", "attacks", "decision_09_constant_time.edit")]
    missed = 0
    for edit in sorted((Edit(path) for path in paths), key=lambda edit: edit.name):
        folder = os.path.join(WORK, edit.name)
        os.makedirs(folder, exist_ok=True)
        planted, stale = edit.apply(text)
        with open(os.path.join(folder, "netcode.h"), "w", encoding="utf-8") as file:
            file.write(planted)
        found, line = (False, stale) if stale else look(folder)
        missed += not found
        print("%-6s %-26s %s" % ("found" if found else "MISSED", edit.name, line), flush=True)
    print("%d missed" % missed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
