"""By what lies in memory: `erase`, `ct` and `msan FILTER`.

erase: tests/erase/erase.c must find a secret that was left, at one of the optimization levels. Every fault decision_09_... is for it, but OTHERS.
ct: valgrind must report a branch that depends on a secret outside of the calls that open something, or more than one in such a call.
msan: the memory sanitizer must report memory that was not written, in the tests whose names contain FILTER.
CC, CFLAGS, LIBS, LEVELS and VALGRIND come from the scripts of these searches."""

import os
import re
import subprocess

import faults
import judge
from judge import TOP

OTHERS = {
    "decision_09_constant_time": "is no matter of memory: ct looks after it",
    "decision_09_used_buffers": "is seen by the test table_pool: these searches leave no secret in the buffer that a pool gave out last",
    "decision_09_memory_given_back": "leaves tags of tokens and client ids in the old block, no secret: stop has wiped those already",
}


def build(folder, source, program, *more):
    """The compiler's first words where it fails, else ''."""
    command = judge.words_of("CC") + judge.words_of("CFLAGS") + [*more, "-I" + folder, "-I" + TOP, os.path.join(TOP, "tests", source)]
    built = subprocess.run(command + judge.words_of("LIBS") + ["-o", program], capture_output=True, text=True, check=False)
    return "not built: " + built.stderr.strip().splitlines()[0] if built.returncode else ""


class Erase(judge.Judge):
    KIND = "erase"
    SCRIPT = ("tests/erase/run.sh", "--plants")

    def incomplete(self):
        bare = [fault.name for fault in self.everything if fault.name.startswith("decision_09_") and "erase" not in fault.by]
        return ["%s: it is about decision 9, and not for erase" % name for name in bare if name not in OTHERS]

    def judge(self, fault, texts):
        folder = os.path.join(TOP, "build", "erase", fault.name)
        judge.write(os.path.join(folder, "netcode.h"), texts[faults.HEADER])
        line = ""
        for level in judge.words_of("LEVELS"):
            line = line or self.search(folder, level)
        return " is left " in line, line or "nothing is found"

    def search(self, folder, level):
        """What the search finds, one line, '' for nothing."""
        program = os.path.join(folder, "erase" + level)
        wrong = build(folder, "erase/erase.c", program, level)
        if wrong:
            return wrong
        ran = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
        if ran.returncode not in (0, 1):
            return "crashed"
        found = re.findall(r"erase\.c:\d+: (.*is left .*)", ran.stdout)
        return "%s (and %d more)" % (found[0], len(found) - 1) if found else ""


class ConstantTime(judge.Judge):
    KIND = "ct"
    SCRIPT = ("tests/ct/run.sh", "--plants")

    def judge(self, fault, texts):
        folder = os.path.join(TOP, "build", "ct", fault.name)
        program, log = os.path.join(folder, "ct"), os.path.join(folder, "log")
        judge.write(os.path.join(folder, "netcode.h"), texts[faults.HEADER])
        wrong = build(folder, "ct/ct.c", program)
        if wrong:
            return False, wrong
        command = judge.words_of("VALGRIND") + ["--log-file=" + log, program]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        elsewhere = re.search(r"reports elsewhere: (\d+)", ran.stdout)
        if not elsewhere:
            return False, "no verdict, status %d" % ran.returncode
        with open(log, encoding="utf-8") as file:
            reports = re.findall(r"== (Conditional jump|Use of uninitialised)[^\n]*\n==\d+==    at 0x\w+: (.*)", file.read())
        places = sorted({place for _, place in reports if "libsodium" not in place})
        return ran.returncode == 1 and int(elsewhere.group(1)) > 0, "%s reports elsewhere: %s" % (elsewhere.group(1), ", ".join(places[:3]))


class Msan(judge.Judge):
    KIND = "msan"

    def judge(self, fault, texts):
        header = os.path.join(TOP, "build", "msan", fault.name + ".h")
        judge.write(header, texts[faults.HEADER])
        command = ["sh", os.path.join(TOP, "tests", "tools", "msan.sh"), fault.by["msan"]]
        environment = dict(os.environ, MSAN_HEADER=header)
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        skipped = re.search(r"^msan skipped: (.*)", ran.stdout, flags=re.M)
        if skipped:
            raise judge.Skip(skipped.group(1))
        summary = re.search(r"SUMMARY: MemorySanitizer.*", ran.stdout)
        return ran.returncode != 0 and summary is not None, re.sub(r"/\S*/", "", summary.group()) if summary else "no report"


JUDGES = (Erase, ConstantTime, Msan)
