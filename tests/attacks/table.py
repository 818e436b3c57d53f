#!/usr/bin/env python3
"""The table of attacks and faults: runs the tests that hold each row, and prints how it came out.

    table.py          all rows; status 1 unless every one of them holds
    table.py 7 42     these rows alone
    table.py --edits  the faults of the table alone, by run.sh: without its defence each row must fail

The rows stand in rows.py. A row without a test or a fault (its edits) fails, as does one that names a test which the runner does not have, or a
fault that tests/faults has not or that names none of the row's tests: so what `make defences` shows of the fault, it shows of the row. It needs
build/test: `make attacks` makes it.

A row holds when none of its tests fails and at least one of them ran. Tests that can not run on this machine say so, and are listed below the
table."""

import concurrent.futures
import os
import re
import subprocess
import sys

import rows

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "faults"))
import faults as tables  # noqa: E402 (its folder is not on the path before)

RUNNER = os.path.join(TOP, "build", "test")
EDITS = {fault.name: fault for fault in tables.load()}
WORKERS = 2
SECONDS = 600  # met only by what hangs
MEASURED = {}  # by test: the figures that it prints
KINDS = {"d": "simulated", "r": "real", "dr": "both"}


def listed():
    """The runner's tests."""
    result = subprocess.run([RUNNER, "--list"], capture_output=True, text=True, check=True)
    return {line.partition(": ")[2] for line in result.stdout.splitlines()}


def verdict(test):
    """One test by its exact name: '' when it passed, else `skipped: why`, or what went wrong. Others whose names contain it run along."""
    try:
        command = [RUNNER, "--whole", test]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "it took more than %d s" % SECONDS
    output = result.stdout
    MEASURED[test] = re.findall(r"^    measured: (.*)$", output, flags=re.M)
    skipped = re.search(r"skipped: %s: (.*)" % re.escape(test), output)
    if result.returncode < 0:
        return "signal %d" % -result.returncode
    if re.search(r"^FAILED \S+ %s, " % re.escape(test), output, flags=re.M):
        lines = [line.strip() for line in output.splitlines() if line.startswith("    ")]
        return "\n".join(["a check failed"] + lines)
    if not re.search(r"^\d+ passed, \d+ failed, \d+ skipped$", output, flags=re.M):
        return "status %d, and no word of how many passed" % result.returncode
    return "skipped: " + skipped.group(1) if skipped else ""


def edit_fault(row, name):
    if name not in EDITS:
        return "the edit %s does not exist" % name
    if not set(EDITS[name].notices("test")) & set(row.tests):
        return "the edit %s names none of this row's tests" % name
    return ""


def faults(row, known):
    """What is wrong with a row before anything runs."""
    found = [] if row.tests else ["it has no test"]
    found += [] if row.edits else ["it has no edit"]
    found += ["the runner has no test %s" % test for test in row.tests if test not in known]
    return found + [fault for fault in (edit_fault(row, name) for name in row.edits) if fault]


def outcome(row, known, verdicts):
    """Whether it holds, and the words for it."""
    wrong = faults(row, known)
    bad = ["%s: %s" % (test, verdicts[test]) for test in row.tests if verdicts.get(test) and not verdicts[test].startswith("skipped")]
    skips = [test for test in row.tests if verdicts.get(test, "").startswith("skipped")]
    if wrong or bad:
        return False, "FAILS", wrong + bad
    if len(skips) == len(row.tests):
        return False, verdicts[skips[0]], []
    return True, "holds", []


def show(row, word, details):
    also = "".join(" + %s" % command for command in row.also)
    print("%3d%s %-7s %-91s %-9s %-7s %s%s" % (row.number, row.mark, row.by, row.attack, KINDS[row.kind], word, ", ".join(row.tests), also))
    for detail in details:
        print("      " + detail.replace("\n", "\n        "))


def incomplete():
    numbers = [row.number for row in rows.ROWS]
    last = rows.COUNT + len(rows.ELSEWHERE)
    if numbers == [number for number in range(1, last + 1) if number not in rows.ELSEWHERE]:
        return []
    return ["rows.py does not hold the rows 1 to %d, each once and in order" % last]


def main():
    wanted = [row for row in rows.ROWS if not sys.argv[1:] or str(row.number) in sys.argv[1:] or sys.argv[1] == "--edits"]
    if sys.argv[1:] == ["--edits"]:
        names = sorted({name for row in wanted for name in row.edits})
        return subprocess.run(["sh", os.path.join(TOP, "tests", "attacks", "run.sh"), *names], check=False).returncode
    known = listed()
    tests = sorted({test for row in wanted for test in row.tests if test in known})
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        verdicts = dict(zip(tests, pool.map(verdict, tests)))
    held = 0
    for row in wanted:
        good, word, details = outcome(row, known, verdicts)
        figures = dict.fromkeys(figure for test in row.tests for figure in MEASURED.get(test, []))
        show(row, word, details + list(figures))
        held += good
    for test in tests:
        if verdicts[test].startswith("skipped"):
            print("%s was %s" % (test, verdicts[test]))
    missing = incomplete()
    for fault in missing:
        print(fault)
    print("%d of %d rows hold" % (held, len(wanted) if sys.argv[1:] else rows.COUNT))
    return 1 if held < len(wanted) or missing else 0


if __name__ == "__main__":
    sys.exit(main())
