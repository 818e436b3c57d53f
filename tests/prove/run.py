#!/usr/bin/env python3
"""Runs the proofs of proofs.list. See run.sh, which finds the prover and calls this.

A line of proofs.list is: name, file, `quick`, `long` or `open`, options of CBMC # bound # what is proved. Among the options FUNCTION=ANSWER
replaces the calls of one function by calls of another. small.faults makes netcode_small.h; it is written like a table of tests/faults, where
the faults are that these proofs must notice (tests/faults/by_prove.py)."""

import collections
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "faults"))
import faults  # noqa: E402 (its folder is not on the path before)

ROOT = os.environ.get("PROVE_ROOT", "")
JOBS = int(os.environ.get("JOBS", "1"))
SECONDS = int(os.environ.get("PROVE_SECONDS", "1800"))
INSIDE = "/srv/prove.%d" % os.getpid() if ROOT else os.path.join(TOP, "build", "prove", "work.%d" % os.getpid())
CHECKS = """--bounds-check --pointer-check --pointer-overflow-check --signed-overflow-check --div-by-zero-check --undefined-shift-check
 --unwinding-assertions --no-malloc-may-fail --drop-unused-functions --slice-formula""".split()
FAILED = 10  # CBMC's exit status where a claim does not hold
running = set()


Took = collections.namedtuple("Took", "seconds megabytes")


class Proof:
    def __init__(self, line):
        head, self.bound, self.shows = [part.strip() for part in line.split("#")]
        self.name, self.file, self.when, *options = head.split()
        self.replaced = [option.replace("=", ":") for option in options if re.fullmatch(r"\w+=\w+", option)]
        self.options = [option for option in options if not re.fullmatch(r"\w+=\w+", option)]


def proofs():
    with open(os.path.join(HERE, "proofs.list"), encoding="utf-8") as file:
        return [Proof(line) for line in file if line.strip() and not line.startswith("#")]


class Place:
    """A folder that the prover can see, with the harnesses and a netcode.h; each harness is compiled once."""

    def __init__(self, name, header):
        self.inside = os.path.join(INSIDE, name)
        self.folder = ROOT + self.inside
        shutil.copytree(HERE, self.folder, ignore=shutil.ignore_patterns("*.py", "*.faults", "run.sh"))
        small, wrong = faults.read(os.path.join(HERE, "small.faults"))[0].apply(header)
        if wrong:
            raise SystemExit("small.faults: " + wrong)
        for title, text in (("netcode.h", header), ("netcode_small.h", small)):
            with open(os.path.join(self.folder, title), "w", encoding="utf-8") as file:
                file.write(text)

    def run(self, log, *command):
        """Returns the exit status, None at the limit, and the seconds of processor and the MB of memory that it took. The limit is of processor
        time, for each process; ten times as much by the clock, for a proof that waits."""
        limit = ["timeout", str(10 * SECONDS), "prlimit", "--cpu=%d:%d" % (SECONDS, SECONDS + 5)]
        if ROOT:
            command = [*limit, "chroot", ROOT, "env", "-C", self.inside, "PATH=/usr/bin:/bin", *command]
        else:
            command = [*limit, "env", "-C", self.inside, *command]
        with open(os.path.join(self.folder, log), "wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            running.add(process)
            _, status, usage = os.wait4(process.pid, 0)
            running.discard(process)
            process.returncode = os.waitstatus_to_exitcode(status)
        took = Took(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)
        return (None if process.returncode in (-signal.SIGXCPU, 124) else process.returncode), took

    def compile(self, file):
        """Returns the compiler's first error, '' for success."""
        status, _ = self.run(file + ".log", "goto-cc", "-std=c99", "-I.", "-Istub", "-c", file + ".c", "-o", file + ".gb")
        return "" if status == 0 else "%s.c does not compile: %s" % (file, (self.lines(file, "error") + ["why, it does not say"])[0])

    def lines(self, log, word):
        with open(os.path.join(self.folder, log + ".log"), encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if word in line]

    def prove(self, proof, *more):
        name, start, log = proof.name + ".gb", "prove_" + proof.name, proof.name + ".log"
        status, took = self.run(log, "goto-cc", "--function", start, proof.file + ".gb", "-o", name)
        if status == 0 and proof.replaced:
            calls = [word for pair in proof.replaced for word in ("--replace-calls", pair)]
            status, took = self.run(log, "goto-instrument", "--drop-unused-functions", *calls, name, name)
        return self.run(log, "cbmc", name, *CHECKS, *proof.options, *more) if status == 0 else (status, took)


def line_of(word, proof, took, what):
    print("%-5s%-26s%7.1f s %5d MB  %s" % (word, proof.name, *took, what), flush=True)


def judge(place, proof):
    """Proves one. Returns good or not, and its seconds."""
    status, took = place.prove(proof)
    if status == 0 and place.lines(proof.name, "VERIFICATION SUCCESSFUL"):
        line_of("ok", proof, took, "%s [%s]" % (proof.shows, proof.bound))
        return True, took.seconds
    reasons = place.lines(proof.name, ": FAILURE") or ["over the limit of %d s of processor, or ten times that by the clock" % SECONDS if status is None else "status %s (perhaps its solver reached the limit)" % status]
    line_of("FAIL", proof, took, "; ".join(reasons[:4]))
    return False, took.seconds


def prove_all(header, chosen):
    place = Place("all", header)
    errors = [error for error in map(place.compile, sorted({proof.file for proof in chosen})) if error]
    for error in errors:
        print("FAIL " + error)
    if errors:
        return 1
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(lambda proof: judge(place, proof), chosen))
    good = sum(1 for result in results if result[0])
    took = (sum(seconds for _, seconds in results), time.monotonic() - start)
    print("%d proved, %d failed, in %d s of processor, %d s by the clock" % (good, len(results) - good, *took))
    return 0 if good == len(results) and good else 1


def fits(words, *names):
    return not words or any(word in name for word in words for name in names)


def clean_up():
    if not os.environ.get("PROVE_KEEP"):
        shutil.rmtree(ROOT + INSIDE, ignore_errors=True)


def end_all(number, _):
    for process in list(running):
        process.terminate()  # timeout passes it on
    clean_up()
    os._exit(128 + number)


def heed_signals():
    """A proof is in a process group of its own: a signal to this one's does not reach it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end_all)


def main():
    heed_signals()
    words = sys.argv[1:]
    mode = words.pop(0) if words and words[0] in ("quick", "open") else "all"
    listed, header = proofs(), faults.text_of()
    os.makedirs(ROOT + INSIDE)
    try:
        return prove_all(header, [proof for proof in listed if fits(words, proof.name, proof.file) and (mode == proof.when or mode == "all" and proof.when != "open")])
    finally:
        clean_up()


if __name__ == "__main__":
    sys.exit(main())
