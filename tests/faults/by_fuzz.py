"""By fuzzing: `fuzz TARGET`, which must find the fault within a minute.

The fuzzer starts from tests/fuzz/corpus, as tests/fuzz/run.sh does, or with --empty from nothing. Before that netcode.h as it is must pass the
same corpus. FUZZ_CC names a clang, FUZZ_BUILD=san builds with the sanitizers. Each target has three faults or more."""

import glob
import os
import re
import shutil
import subprocess
import sys
import time

import faults
import judge
from judge import TOP

FUZZ = os.path.join(TOP, "tests", "fuzz")
sys.path.insert(0, FUZZ)
import corpus as kept  # noqa: E402 (its folder is not on the path before)

LONGEST = {"address": 72, "packet": 128, "token": 256, "session": 400, "messages": 600}
SECONDS = 60
LEAST = 3
CLANGS = os.environ.get("FUZZ_CC", "clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14").split()
SANITIZERS = ",address,undefined" if os.environ.get("FUZZ_BUILD") == "san" else ""
PROBE = "#include <stdint.h>\n#include <stddef.h>\nint LLVMFuzzerTestOneInput( const uint8_t * d, size_t n ) { return d && n > 9000; }\n"


class Fuzzing(judge.Judge):
    KIND = "fuzz"
    BUILD = judge.build_folder("fuzz")

    def incomplete(self):
        targets = [fault.by["fuzz"] for fault in self.mine]
        few = ["%s: fewer than %d faults for this target" % (target, LEAST) for target in LONGEST if targets.count(target) < LEAST]
        return few + ["%s: there is no target %s" % (fault.name, fault.by["fuzz"]) for fault in self.mine if fault.by["fuzz"] not in LONGEST]

    def find_clang(self):
        probe = os.path.join(self.BUILD, "probe.c")
        judge.write(probe, PROBE)
        for clang in CLANGS:
            command = [clang, "-fsanitize=fuzzer" + SANITIZERS, probe, "-o", os.path.join(self.BUILD, "probe")]
            if shutil.which(clang) and subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return clang
        raise judge.Skip("no clang here links -fsanitize=fuzzer (Debian: clang-19 and libclang-rt-19-dev)")

    def compile(self, text, target):
        """Returns the program, built from `text` as netcode.h."""
        folder = os.path.join(self.BUILD, target)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "tests", "fuzz"))
        for path in glob.glob(os.path.join(FUZZ, "*.[ch]")):
            shutil.copy(path, os.path.join(folder, "tests", "fuzz"))
        judge.write(os.path.join(folder, "netcode.h"), text)
        program = os.path.join(folder, target)
        command = [self.clang, "-std=c99", "-O1", "-w", "-fsanitize=fuzzer" + SANITIZERS, "-I" + folder] + judge.flags("--cflags")
        command += [os.path.join(folder, "tests", "fuzz", target + ".c")] + judge.flags("--libs") + ["-lm", "-o", program]
        subprocess.run(command, check=True)
        return program

    def fuzz(self, program, target, empty, *options):
        """Returns (found, seconds, what the fuzzer said)."""
        corpus = os.path.join(os.path.dirname(program), "corpus")
        if empty:
            os.makedirs(corpus)
        else:
            kept.unpack(target, corpus)
        command = [program, "-max_len=%d" % LONGEST[target], "-timeout=20", "-artifact_prefix=" + corpus + "-found-", *options, corpus]
        start = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        seconds = time.monotonic() - start
        reason = re.search(r"^FINDING.*|^.*runtime error.*|^.*ERROR: \w+Sanitizer.*|^.*ERROR: libFuzzer.*", result.stderr, flags=re.M)
        return result.returncode != 0, seconds, reason.group(0) if reason else ""

    def prepare(self, chosen):
        self.clang = self.find_clang()
        for target in sorted({fault.by["fuzz"] for fault in chosen} & set(LONGEST)):
            found, _, reason = self.fuzz(self.compile(faults.text_of(), target), target, False, "-runs=0")
            if found:
                raise SystemExit("%s: netcode.h as it is fails: %s" % (target, reason))
        return {fault.name: "no such target" for fault in chosen if fault.by["fuzz"] not in LONGEST}

    def judge(self, fault, texts):
        target = fault.by["fuzz"]
        program = self.compile(texts[faults.HEADER], target)
        found, seconds, reason = self.fuzz(program, target, self.options.empty, "-seed=1", "-max_total_time=%d" % SECONDS)
        return found and seconds < SECONDS + 5, "%.1f s  %s" % (seconds, re.sub(r"\S*/", "", reason)[:120])

    def finish(self):
        shutil.rmtree(self.BUILD, ignore_errors=True)


JUDGES = (Fuzzing,)
