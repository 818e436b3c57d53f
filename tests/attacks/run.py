#!/usr/bin/env python3
"""Takes each defence out of a copy of netcode.h, and looks whether the test that guards it notices.

    run.py [FILTER...]  the edits whose names contain a FILTER; all without one
    run.py --sample     those of the attacks, and a sixth of the others: which one follows from the commit, so that all have their turn. That
                        each finds its text is looked at for all

An edit is a file NAME.edit beside this one:

    One or more lines that say in a sentence what the edit takes away.
    test: NAME, NAME
    --- find
    text of netcode.h
    --- with
    what stands there instead
    --- end

`test:` names tests of the runner; each of them must pass with netcode.h as it is, and fail without the defence: by a failing check, not by
a crash and not by the time limit, unless a line `may: crash` or `may: hang` allows it (`may: skip`: the test may be impossible on this
machine). `--- find 3` demands that the text stands there three times, else once; an edit that does not find its text is a failure. Several
find/with/end blocks follow one another. White space in the text to find stands for any white space, so that another line break in netcode.h
spoils no edit.

Beside the edits' verdicts it checks that every reason in NETCODE_DROP_LIST and every decision has an edit."""

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, "build", "defences.%d" % os.getpid())  # two runs do not meet
# clang compiles the tests in a third of the time. An edit that is missed is tried once more with cc: where old memory lies is a matter of the
# compiler. Another CC than cc, which is make's own, is the one for all.
CC = [os.environ["CC"].split()] if os.environ.get("CC", "cc") != "cc" else [[name] for name in ("clang", "cc") if shutil.which(name)]
WORKERS = 2
SECONDS = 40
DECISIONS = range(1, 14)


class Edit:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".edit")]
        self.tests = []
        self.may = set()
        self.blocks = []  # (times, find, with)
        with open(path, encoding="utf-8") as file:
            head, *blocks = re.split(r"^--- find *(\d*)\n", file.read(), flags=re.M)
        for line in head.splitlines():
            key, _, value = line.partition(":")
            if key == "test":
                self.tests += [name.strip() for name in value.split(",")]
            elif key == "may":
                self.may.add(value.strip())
        for times, block in zip(blocks[0::2], blocks[1::2]):
            match = re.fullmatch(r"(.*?)^--- with\n(.*?)^--- end\n\s*", block, flags=re.M | re.S)
            if not match:
                raise SystemExit("%s: a block is not find, with, end" % path)
            self.blocks.append((int(times or 1), match.group(1), match.group(2)))
        if not head.split("test:")[0].strip() or not self.tests or not self.blocks:
            raise SystemExit("%s: an edit has a sentence, a test and a block" % path)

    def apply(self, text):
        """Returns the edited text and what is wrong, '' for nothing."""
        for times, find, replace in self.blocks:
            pattern = r"\s+".join(re.escape(word) for word in find.split())
            found = len(re.findall(pattern, text))
            if found != times:
                return text, "stale: the text to find stands there %d times, not %d: %s" % (found, times, " ".join(find.split())[:100])
            text = re.sub(pattern, lambda match, replace=replace: replace.strip("\n"), text)
        return text, ""


def flags(option):
    command = ["sh", os.path.join(TOP, "tests/tools/deps.sh"), option]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.split()


def wraps():
    """The nonce ledger's, as in the Makefile."""
    if sys.platform == "darwin":
        return ["-DTEST_NO_WRAP"]
    functions = ("encrypt", "encrypt_detached", "decrypt", "decrypt_detached")
    algorithms = ("chacha20poly1305", "xchacha20poly1305")
    return ["-Wl,--wrap=crypto_aead_%s_ietf_%s" % (a, f) for a in algorithms for f in functions]


class Worker:
    """A folder with a copy of the tests, so that their `#include "../netcode.h"` finds the edited header."""

    def __init__(self, number, cflags, libs):
        self.folder = os.path.join(BUILD, str(number))
        self.runner = os.path.join(self.folder, "runner")
        self.cflags, self.libs = cflags, libs
        others = shutil.ignore_patterns("*.py", "*.sh", "*.edit")
        shutil.copytree(os.path.join(TOP, "tests"), os.path.join(self.folder, "tests"), ignore=others)

    def leave_out(self, files):
        """The files of the runner that hold no test of an edit would be compiled for nothing."""
        path = os.path.join(self.folder, "tests", "main.c")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join("" if line in files else line for line in lines) + "\n")

    def compile(self, text, compiler=0):
        """Returns the compiler's first error, '' for success."""
        with open(os.path.join(self.folder, "netcode.h"), "w", encoding="utf-8") as file:
            file.write(text)
        source = os.path.join(self.folder, "tests", "main.c")
        command = CC[compiler] + ["-O0", "-w", "-I" + self.folder] + self.cflags + [source] + wraps()
        command += self.libs + ["-lm", "-o", self.runner]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        errors = [line for line in result.stderr.splitlines() if "error" in line]
        return (errors or ["the compiler failed"])[0] if result.returncode else ""

    def run(self, *arguments):
        """Returns the exit status, None at the time limit, and the output."""
        try:
            command = [self.runner, *arguments]
            result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None, ""
        return result.returncode, result.stdout

    def verdict(self, test):
        """passed, failed, crash, hang or absent."""
        status, output = self.run(test)
        if status is None:
            return "hang"
        if status < 0:
            return "crash"
        if "skipped: %s:" % test in output:
            return "skip"
        if re.search(r"^FAILED \S+ %s, " % re.escape(test), output, flags=re.M):
            return "failed"
        return "passed" if "no test matches" not in output else "absent"

    def judge(self, edit, header, compiler=0):
        """Returns good or not, and the line to print."""
        text, fault = edit.apply(header)
        fault = fault or self.compile(text, compiler)
        if fault:
            return False, "MISSED %s: %s" % (edit.name, fault)
        verdicts = [(test, self.verdict(test)) for test in edit.tests]
        bad = [(test, verdict) for test, verdict in verdicts if verdict != "failed" and verdict not in edit.may]
        if bad:
            return False, "MISSED %s: %s" % (edit.name, ", ".join("%s %s" % pair for pair in bad))
        words = {"failed": "noticed", "skip": "is skipped here"}
        return True, "ok %s: %s" % (edit.name, ", ".join("%s %s" % (test, words.get(verdict, verdict)) for test, verdict in verdicts))


def incomplete(header, names):
    """Every drop reason and every decision has an edit."""
    reasons = re.findall(r'^\s*X\( (\w+), (?!"not used any more)', header.split("#define NETCODE_DROP_LIST( X )")[1].split("clang-format on")[0], flags=re.M)
    wanted = ["drop_%s" % reason for reason in reasons if reason != "NONE"]
    faults = ["MISSED %s: no such edit" % name for name in wanted if name not in names]
    numbers = {name[len("decision_") :][:2] for name in names if name.startswith("decision_")}
    return faults + ["MISSED decision_%02d: no edit" % number for number in DECISIONS if "%02d" % number not in numbers]


def sampled(edits):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=False).stdout.strip()
    part = int(commit or "0", 16) % 6
    others = [edit.name for edit in edits if not edit.name.startswith("row_")]
    left_out = set(others) - set(others[part::6])
    return [edit for edit in edits if edit.name not in left_out]


def main(words):
    edits = [Edit(path) for path in sorted(glob.glob(os.path.join(HERE, "*.edit")))]
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        header = file.read()
    lines = incomplete(header, {edit.name for edit in edits})
    if words == ["--sample"]:
        lines += ["MISSED %s: %s" % (edit.name, fault) for edit in edits for fault in [edit.apply(header)[1]] if fault]
        edits = sampled(edits)
    else:
        edits = [edit for edit in edits if not words or any(word in edit.name for word in words)]
    shutil.rmtree(BUILD, ignore_errors=True)
    workers = [Worker(number, flags("--cflags"), flags("--libs")) for number in range(WORKERS)]
    fault = workers[0].compile(header)
    if fault:
        raise SystemExit("netcode.h as it is does not compile: %s" % fault)
    _, output = workers[0].run("--list")
    listed = {test: file for file, _, test in (line.partition(": ") for line in output.splitlines())}
    green = {test: workers[0].verdict(test) if test in listed else "absent" for test in sorted({t for e in edits for t in e.tests})}
    unfit = [
        "MISSED %s: %s: %s, with netcode.h as it is" % (edit.name, test, green[test])
        for edit in edits
        for test in edit.tests
        if green[test] != "passed" and not (green[test] == "skip" and "skip" in edit.may)
    ]
    for line in lines + unfit:
        print(line, flush=True)
    spoilt = {line.split(":")[0] for line in unfit}
    failed = len(lines) + len(spoilt)
    edits = [edit for edit in edits if "MISSED %s" % edit.name not in spoilt]
    needed = {listed[test] for edit in edits for test in edit.tests}
    for worker in workers:  # stories use one another's helpers; the files of units stand alone, but for these
        worker.leave_out({'#include "unit/%s"' % file for file in set(listed.values()) - needed - {"messages.c", "address.c", "table.c"}})
    passed = 0
    free = list(workers)

    def judge(edit):
        worker = free.pop()
        try:
            good, line = worker.judge(edit, header)
            return (good, line) if good or len(CC) == 1 else worker.judge(edit, header, 1)
        finally:
            free.append(worker)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for good, line in pool.map(judge, edits):
            print(line, flush=True)
            passed += good
            failed += not good
    shutil.rmtree(BUILD, ignore_errors=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
