#!/usr/bin/env python3
"""Plants faults in copies of netcode.h, and demands that the simulation finds each of them.

    plants.py [FILTER]...     the plants whose names contain one of the filters; all without any

A plant is a file in plants/, laid out like the edits in tests/attacks (see run.py there); `test:` names the check, or one of the checks,
that must fail. The simulation is built against the edited copy, runs as `make sim` does, and must fail by that check within a minute of
the processor's time; unedited, it must find nothing. Every check of SIM_CHECKS in base.h must have a plant."""

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, "build", "plants")
WORKERS = 2
SECONDS = 60  # of the processor's time
PATIENCE_SECONDS = 900  # where others use the processor too
COMPILE_SECONDS = 300

sys.path.insert(0, os.path.join(TOP, "tests", "attacks"))
import run as attacks  # noqa: E402 (the folder of the edits' reader is not on the path before)


def prepare(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "tests", "sim"))
    shutil.copy(os.path.join(TOP, "tests", "sim.c"), os.path.join(folder, "tests"))
    for path in glob.glob(os.path.join(HERE, "*.h")):
        shutil.copy(path, os.path.join(folder, "tests", "sim"))


def build(folder, text):
    """Returns the compiler's first error, '' for success."""
    prepare(folder)
    with open(os.path.join(folder, "netcode.h"), "w", encoding="utf-8") as file:
        file.write(text)
    command = attacks.CC[0] + ["-O0", "-w", "-I" + folder] + attacks.flags("--cflags") + [os.path.join(folder, "tests", "sim.c")]
    command += attacks.wraps() + attacks.flags("--libs") + ["-lm", "-o", os.path.join(folder, "sim")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS)
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return (errors or ["the compiler failed"])[0] if result.returncode else ""


def simulate(folder):
    """Returns the name of the check that failed ('' for none), its line, and the seconds that it took."""
    before = time.monotonic()
    command = ["sh", "-c", 'ulimit -t %d; exec "$0"' % SECONDS, os.path.join(folder, "sim")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    seconds = time.monotonic() - before
    match = re.search(r"FAILED check (\w+).*\n *(.*)", result.stdout)
    if match:
        return match.group(1), match.group(2), seconds
    if result.returncode < 0:
        return "nothing within %d s" % SECONDS, "", seconds
    return ("" if result.returncode == 0 else "status %d" % result.returncode), "", seconds


def judge_text(name, text, expected):
    """Returns whether the simulation finds what it must (`expected` [""]: nothing), and a line that says how."""
    folder = os.path.join(BUILD, name)
    wrong = build(folder, text)
    if wrong:
        return False, wrong
    check, detail, seconds = simulate(folder)
    shutil.rmtree(folder)
    if check not in expected:
        return False, "expected %s, got %s after %.0f s: %s" % (" or ".join(expected), check or "no failure", seconds, detail)
    return True, "%s after %.1f s: %s" % (check or "nothing found,", seconds, detail or "as it must be")


def judge(edit, text):
    edited, wrong = edit.apply(text)
    return (False, wrong) if wrong else judge_text(edit.name, edited, edit.tests)


def checks():
    with open(os.path.join(HERE, "base.h"), encoding="utf-8") as file:
        return re.findall(r'^    X\( (\w+) *, "', file.read(), re.M)


def unplanted(edits):
    """The checks that no plant is for."""
    named = {name for edit in edits for name in edit.tests}
    return [name for name in checks() if name not in named], [name for name in named if name not in checks()]


def main():
    filters = sys.argv[1:]
    edits = [attacks.Edit(path) for path in sorted(glob.glob(os.path.join(HERE, "plants", "*.edit")))]
    missing, unknown = unplanted(edits)
    for name in missing + unknown:
        print("FAIL %s: %s" % (name, "no plant is for this check" if name in missing else "no check has this name"))
    failed = len(missing) + len(unknown)
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        text = file.read()
    edits = [edit for edit in edits if not filters or any(word in edit.name for word in filters)]
    if not filters:
        good, line = judge_text("unedited", text, [""])
        print("%s %-24s %s" % ("ok  " if good else "FAIL", "(unedited)", line), flush=True)
        failed += not good
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for edit, (good, line) in zip(edits, pool.map(lambda edit: judge(edit, text), edits)):
            print("%s %-24s %s" % ("ok  " if good else "FAIL", edit.name, line), flush=True)
            failed += not good
    print("%d plants, %d failures" % (len(edits), failed))
    return 1 if failed or not edits else 0


if __name__ == "__main__":
    sys.exit(main())
