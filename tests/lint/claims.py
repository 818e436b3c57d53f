"""The numbers in the READMEs that can be counted here: how many tests, rows, faults, proofs and inputs there are. What was measured once,
on a machine and a day, stands beside them and is not looked at."""

import collections
import glob
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
for folder in ("faults", "attacks"):
    sys.path.insert(0, os.path.join(TOP, "tests", folder))
import faults  # noqa: E402 (their folders are not on the path before)
import rows  # noqa: E402

# What a sentence says, with (N) for the number; the fact that it must be; in how many sentences of the file it stands at least.
CLAIMS = (
    ("tests/README.md", r"`make test` runs (N) tests", "tests"),
    ("tests/README.md", r"table of (N) attacks and faults", "rows"),
    ("README.md", r"prints the (N) attacks and faults", "rows"),
    ("tests/README.md", r"one at a time, (N) in all: its test must fail", "faults by test"),
    ("tests/README.md", r"`faults/run.py --by sim` puts (N) faults", "faults by sim"),
    ("tests/README.md", r"`faults/run.py --by fuzz`: each of (N) planted faults", "faults by fuzz"),
    ("tests/README.md", r"`faults/run.py --by torture`: \d+ of (N) planted faults", "faults by torture"),
    ("tests/README.md", r"takes the wipes out, \d+ of (N) are seen", "faults by erase"),
    ("tests/README.md", r"`make latency-plants`: \d+ of (N) planted faults", "faults by latency"),
    ("tests/README.md", r"The corpus \((N) inputs", "inputs"),
    ("tests/README.md", r"There are (N) proofs", "proofs"),
    ("tests/README.md", r"`prove/run.sh quick` runs (N) of them", "quick proofs"),
)


def lines(*path):
    return [line for name in sorted(glob.glob(os.path.join(TOP, *path))) for line in open(name, encoding="utf-8")]


def facts():
    proofs = [line.split()[2] for line in lines("tests", "prove", "proofs.list") if line.strip() and not line.startswith("#")]
    kinds = collections.Counter("faults by " + kind for fault in faults.load() for kind in fault.by)
    return dict(
        kinds,
        tests=sum(line.startswith("TEST( ") for line in lines("tests", "unit", "*.c") + lines("tests", "story", "*.c")),
        rows=len(rows.ROWS),
        inputs=len(lines("tests", "fuzz", "corpus", "*.txt")),
        proofs=proofs.count("quick") + proofs.count("long"),
        **{"quick proofs": proofs.count("quick")},
    )


def check():
    """One line for each number that is wrong, and for each sentence that is gone."""
    known, wrong = facts(), []
    for file, sentence, fact in CLAIMS:
        with open(os.path.join(TOP, file), encoding="utf-8") as opened:
            text = " ".join(opened.read().split())
        found = re.findall(sentence.replace("(N)", r"(\d[\d,]*)"), text)
        wrong += ["%s has no sentence: %s" % (file, sentence)] * (not found)
        wrong += ["%s says %s, and there are %d: %s" % (file, number, known[fact], fact) for number in found if number != format(known[fact], ",")]
    return wrong


if __name__ == "__main__":
    FAULTS = check()
    print("\n".join(FAULTS) or "the numbers in the READMEs are what can be counted")
    sys.exit(bool(FAULTS))
