#!/usr/bin/env python3
"""Runs the proofs of proofs.list. See run.sh, which finds the prover and calls this.

A line of proofs.list is: name, file, `quick`, `long` or `open`, options of CBMC # bound # what is proved. Among the options FUNCTION=ANSWER
replaces the calls of one function by calls of another. A fault is a file plants/NAME.edit, written like those of tests/attacks, but for the
line that names what must notice:

    One or more lines that say in a sentence what is wrong.
    prove: NAME, NAME
    --- find
    text of netcode.h
    --- with
    what stands there instead
    --- end"""

import collections
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
ROOT = os.environ.get("PROVE_ROOT", "")
JOBS = int(os.environ.get("JOBS", "1"))
SECONDS = int(os.environ.get("PROVE_SECONDS", "1800"))
INSIDE = "/srv/prove.%d" % os.getpid() if ROOT else os.path.join(TOP, "build", "prove", "work.%d" % os.getpid())
CHECKS = """--bounds-check --pointer-check --pointer-overflow-check --signed-overflow-check --div-by-zero-check --undefined-shift-check
 --unwinding-assertions --no-malloc-may-fail --drop-unused-functions --slice-formula""".split()
FAILED = 10  # CBMC's exit status where a claim does not hold


Took = collections.namedtuple("Took", "seconds megabytes")


class Proof:
    def __init__(self, line):
        head, self.bound, self.shows = [part.strip() for part in line.split("#")]
        self.name, self.file, self.when, *options = head.split()
        self.replaced = [option.replace("=", ":") for option in options if re.fullmatch(r"\w+=\w+", option)]
        self.options = [option for option in options if not re.fullmatch(r"\w+=\w+", option)]


class Edit:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".edit")]
        with open(path, encoding="utf-8") as file:
            head, *blocks = re.split(r"^--- find *(\d*)\n", file.read(), flags=re.M)
        self.proofs = [name.strip() for value in re.findall(r"^prove:(.*)", head, flags=re.M) for name in value.split(",")]
        self.blocks = []
        for times, block in zip(blocks[0::2], blocks[1::2]):
            match = re.fullmatch(r"(.*?)^--- with\n(.*?)^--- end\n\s*", block, flags=re.M | re.S)
            if not match:
                raise SystemExit("%s: a block is not find, with, end" % path)
            self.blocks.append((int(times or 1), match.group(1), match.group(2)))
        if not self.blocks:
            raise SystemExit("%s: no block" % path)

    def apply(self, text):
        """Returns the edited text and what is wrong, '' for nothing."""
        for times, find, replace in self.blocks:
            pattern = r"\s+".join(re.escape(word) for word in find.split())
            found = len(re.findall(pattern, text))
            if found != times:
                return text, "stale: the text to find stands there %d times, not %d: %s" % (found, times, " ".join(find.split()))
            text = re.sub(pattern, lambda match, replace=replace: replace.strip("\n"), text)
        return text, ""


class Place:
    """A folder that the prover can see, with the harnesses and a netcode.h; each harness is compiled once."""

    def __init__(self, name, header):
        self.inside = os.path.join(INSIDE, name)
        self.folder = ROOT + self.inside
        shutil.copytree(HERE, self.folder, ignore=shutil.ignore_patterns("*.py", "*.edit", "run.sh"))
        small, fault = Edit(os.path.join(HERE, "small.edit")).apply(header)
        if fault:
            raise SystemExit("small.edit: " + fault)
        for title, text in (("netcode.h", header), ("netcode_small.h", small)):
            with open(os.path.join(self.folder, title), "w", encoding="utf-8") as file:
                file.write(text)

    def run(self, log, *command):
        """Returns the exit status, None at the time limit, and the seconds of processor and the MB of memory that it took."""
        if ROOT:
            command = ["chroot", ROOT, "env", "-C", self.inside, "PATH=/usr/bin:/bin", "timeout", str(SECONDS), *command]
        else:
            command = ["env", "-C", self.inside, "timeout", str(SECONDS), *command]
        with open(os.path.join(self.folder, log), "wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
        took = Took(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)
        return (None if process.returncode == 124 else process.returncode), took

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
    reasons = place.lines(proof.name, ": FAILURE") or ["over %d s" % SECONDS if status is None else "status %s" % status]
    line_of("FAIL", proof, took, "; ".join(reasons[:4]))
    return False, took.seconds


def prove_all(header, proofs):
    place = Place("all", header)
    faults = [fault for fault in map(place.compile, sorted({proof.file for proof in proofs})) if fault]
    for fault in faults:
        print("FAIL " + fault)
    if faults:
        return 1
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(lambda proof: judge(place, proof), proofs))
    good = sum(1 for result in results if result[0])
    took = (sum(seconds for _, seconds in results), time.monotonic() - start)
    print("%d proved, %d failed, in %d s of processor, %d s by the clock" % (good, len(results) - good, *took))
    return 0 if good == len(results) and good else 1


def judge_plant(header, edit, proofs, words):
    text, fault = edit.apply(header)
    known = {proof.name: proof for proof in proofs}
    unknown = [name for name in edit.proofs if name not in known]
    if fault or unknown:
        print("MISSED %s: %s" % (edit.name, fault or "no such proof: " + ", ".join(unknown)), flush=True)
        return False
    place = Place(edit.name, text)
    good = True
    for proof in (known[name] for name in edit.proofs if known[name].when != "open" or name in words):
        fault = place.compile(proof.file)
        status, took = (None, Took(0.0, 0)) if fault else place.prove(proof, "--stop-on-fail")
        if status == FAILED and not fault:
            broken = (place.lines(proof.name, "Violated property") or ["?"]) and next_lines(place, proof)
            line_of("ok", proof, took, "fails with %s: %s" % (edit.name, broken))
            continue
        good = False
        line_of("MISS", proof, took, "%s: %s" % (edit.name, fault or "holds all the same" if status == 0 else fault or "status %s" % status))
    shutil.rmtree(place.folder, ignore_errors=True)
    return good


def next_lines(place, proof):
    """What CBMC says of the claim that does not hold."""
    with open(os.path.join(place.folder, proof.name + ".log"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    match = re.search(r"Violated property:\n\s*(.*)\n\s*(.*)", text)
    return "%s (%s)" % (match.group(2).strip(), match.group(1).split(" thread")[0].strip()) if match else "?"


def plants(header, proofs, words):
    edits = [Edit(path) for path in sorted(glob.glob(os.path.join(HERE, "plants", "*.edit")))]
    nameless = [edit.name for edit in edits if not edit.proofs]
    if nameless:
        raise SystemExit("no line of these says which proof must fail: " + ", ".join(nameless))
    bare = [proof.name for proof in proofs if proof.when != "open" and not any(proof.name in edit.proofs for edit in edits)]
    for name in bare:
        print("MISSED %s: no fault is planted for it" % name)
    is_open = {proof.name: proof.when == "open" for proof in proofs}
    edits = [edit for edit in edits if not all(is_open.get(name, False) for name in edit.proofs) or fits(words or [" "], *edit.proofs)]
    chosen = [edit for edit in edits if fits(words, edit.name, *edit.proofs)]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(lambda edit: judge_plant(header, edit, proofs, words), chosen))
    print("%d of %d planted faults are noticed, %d proofs have none" % (sum(results), len(results), len(bare)))
    return 0 if results and all(results) and not bare else 1


def fits(words, *names):
    return not words or any(word in name for word in words for name in names)


def sampled(proofs):
    """Half of them; which one follows from the commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=False).stdout.strip()
    return proofs[int(commit or "0", 16) % 2 :: 2]


def main():
    words = sys.argv[1:]
    mode = words.pop(0) if words and words[0] in ("quick", "sample", "open", "--plants") else "all"
    with open(os.path.join(HERE, "proofs.list"), encoding="utf-8") as file:
        proofs = [Proof(line) for line in file if line.strip() and not line.startswith("#")]
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        header = file.read()
    os.makedirs(ROOT + INSIDE)
    try:
        if mode == "--plants":
            return plants(header, proofs, words)
        if mode == "sample":
            return prove_all(header, sampled([proof for proof in proofs if proof.when == "quick"]))
        return prove_all(header, [proof for proof in proofs if fits(words, proof.name, proof.file) and (mode == proof.when or mode == "all" and proof.when != "open")])
    finally:
        if not os.environ.get("PROVE_KEEP"):
            shutil.rmtree(ROOT + INSIDE, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
