"""By the tests of the runner: `test NAME, NAME`.

Each of them must pass with netcode.h as it is, and fail with the fault: by a failing check, not by a crash and not by the time limit, unless
`may crash` or `may hang` stands among the names (`may skip`: the test may be impossible on this machine). A fault that is missed is tried
once more with cc: where old memory lies is a matter of the compiler. Every reason in NETCODE_DROP_LIST and every decision has a fault."""

import os
import re
import shutil
import signal
import subprocess
import threading

import faults
import judge
from judge import CC, TOP

SECONDS = 40  # of the processor's time: what hangs uses it up
PATIENCE_SECONDS = 600  # where it waits, or the machine stands still
DECISIONS = range(1, 14)
HELPERS = {"messages.c", "address.c", "containers.c", "socket.c"}  # other files of units use what they define
WORDS = {"failed": "notices", "skip": "is skipped here"}


class Worker:
    """A folder with a copy of the tests, so that their `#include "../netcode.h"` finds the changed header."""

    def __init__(self, folder, cflags, libs):
        self.folder = folder
        self.runner = os.path.join(folder, "runner")
        self.cflags, self.libs = cflags, libs
        others = shutil.ignore_patterns("*.py", "*.sh", "*.faults", "corpus")
        shutil.copytree(os.path.join(TOP, "tests"), os.path.join(folder, "tests"), ignore=others)

    def leave_out(self, files):
        """The files of the runner that hold no test of a fault would be compiled for nothing."""
        path = os.path.join(self.folder, "tests", "main.c")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        judge.write(path, "\n".join("" if line in files else line for line in lines) + "\n")

    def compile(self, text, compiler=0):
        """Returns the compiler's first error, '' for success."""
        judge.write(os.path.join(self.folder, "netcode.h"), text)
        source = os.path.join(self.folder, "tests", "main.c")
        command = CC[compiler] + ["-O0", "-w", "-I" + self.folder] + self.cflags + [source] + judge.wraps()
        return judge.first_error(subprocess.run(command + self.libs + ["-lm", "-o", self.runner], capture_output=True, text=True, check=False))

    def run(self, *arguments):
        """Returns the exit status, None at the time limit, and the output."""
        try:
            command = ["sh", "-c", 'ulimit -t %d; exec "$0" "$@"' % SECONDS, self.runner, *arguments]
            result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None, ""
        return None if -result.returncode in (signal.SIGXCPU, signal.SIGKILL) else result.returncode, result.stdout

    def verdict(self, test):
        """passed, failed, crash, hang, skip or absent."""
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

    def judge(self, fault, text, compiler=0):
        wrong = self.compile(text, compiler)
        if wrong:
            return False, wrong
        verdicts = [(test, self.verdict(test)) for test in fault.notices("test")]
        good = all(verdict == "failed" or verdict in fault.may("test") for _, verdict in verdicts)
        return good, ", ".join("%s %s" % (test, WORDS.get(verdict, verdict)) for test, verdict in verdicts)


class Tests(judge.Judge):
    KIND = "test"
    WORKERS = 2
    SCRIPT = ("tests/attacks/run.sh",)
    BUILD = judge.build_folder("test")

    def incomplete(self):
        names = {fault.name for fault in self.mine}
        listed = faults.text_of().split("#define NETCODE_DROP_LIST( X )")[1].split("clang-format on")[0]
        reasons = re.findall(r'^\s*X\( (\w+), (?!"not used any more)', listed, flags=re.M)
        lines = ["drop_%s: no such fault" % reason for reason in reasons if reason != "NONE" and "drop_" + reason not in names]
        numbers = {name[len("decision_") :][:2] for name in names if name.startswith("decision_")}
        return lines + ["decision_%02d: no fault" % number for number in DECISIONS if "%02d" % number not in numbers]

    def prepare(self, chosen):
        header = faults.text_of()
        cflags, libs = judge.flags("--cflags"), judge.flags("--libs")
        self.free = [Worker(os.path.join(self.BUILD, str(number)), cflags, libs) for number in range(self.WORKERS)]
        self.lock = threading.Lock()
        first = self.free[0]
        wrong = first.compile(header)
        if wrong:
            raise SystemExit("netcode.h as it is does not compile: %s" % wrong)
        _, output = first.run("--list")
        listed = {test: file for file, _, test in (line.partition(": ") for line in output.splitlines())}
        tests = sorted({test for fault in chosen for test in fault.notices("test")})
        green = {test: first.verdict(test) if test in listed else "absent" for test in tests}
        unfit = {}
        for fault in chosen:
            allowed = {"passed"} | fault.may("test") & {"skip"}
            bad = ["%s: %s, with netcode.h as it is" % (test, green[test]) for test in fault.notices("test") if green[test] not in allowed]
            if bad or not fault.notices("test"):
                unfit[fault.name] = ", ".join(bad) or "it names no test"
        needed = {listed[test] for fault in chosen if fault.name not in unfit for test in fault.notices("test")}
        for worker in self.free:  # stories use one another's helpers; the files of units stand alone, but for these
            worker.leave_out({'#include "unit/%s"' % file for file in set(listed.values()) - needed - HELPERS})
        return unfit

    def judge(self, fault, texts):
        with self.lock:
            worker = self.free.pop()
        try:
            for compiler in range(len(CC)):
                good, line = worker.judge(fault, texts[faults.HEADER], compiler)
                if good:
                    break
            return good, line
        finally:
            self.free.append(worker)

    def finish(self):
        shutil.rmtree(self.BUILD, ignore_errors=True)


JUDGES = (Tests,)
