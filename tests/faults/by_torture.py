"""By make torture's program: `torture SWEEP, SWEEP`. Each of these sweeps must fail; without a fault, where no FILTER chooses, none may."""

import os
import shutil
import subprocess

import faults
import judge
from judge import TOP

CC = os.environ.get("CC", "cc").split()
SECONDS = 900
SWEEPS = ("1", "2", "3", "4")


class Torture(judge.Judge):
    KIND = "torture"
    BUILD = judge.build_folder("torture")

    def incomplete(self):
        named = [(fault.name, sweep) for fault in self.mine for sweep in fault.notices("torture") or ["at all"]]
        return ["%s: there is no sweep %s" % pair for pair in named if pair[1] not in SWEEPS]

    def failed(self, text, sweep):
        """Returns whether the program failed on this text, and the first line that says so."""
        judge.write(os.path.join(self.BUILD, "netcode.h"), text)
        program = os.path.join(self.BUILD, "torture")
        flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + self.BUILD, "-DTEST_NO_WRAP"]
        flags += ["-DTORTURE_STORIES_ONLY"] if sweep != "3" else []
        command = CC + flags + judge.flags("--cflags") + [os.path.join(self.BUILD, "tests/torture.c")]
        command += judge.flags("--libs") + ["-lm", "-o", program]
        wrong = judge.first_error(subprocess.run(command, capture_output=True, text=True, check=False))
        if wrong:
            raise SystemExit("torture.c does not compile: " + wrong)
        try:
            result = subprocess.run(["nice", program, sweep], capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return False, "it took more than %d s" % SECONDS
        lines = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
        return result.returncode != 0, lines[0] if lines else result.stdout.strip().split("\n")[-1]

    def prepare(self, chosen):
        shutil.copytree(os.path.join(TOP, "tests"), os.path.join(self.BUILD, "tests"), ignore=shutil.ignore_patterns("corpus"))
        for sweep in SWEEPS if not self.options.filters else ():
            failed, line = self.failed(faults.text_of(), sweep)
            if failed:
                raise SystemExit("netcode.h as it is fails in sweep %s: %s" % (sweep, line))
        return {}

    def judge(self, fault, texts):
        results = [(sweep, *self.failed(texts[faults.HEADER], sweep)) for sweep in fault.notices("torture")]
        return all(failed for _, failed, _ in results), "; ".join("sweep %s: %s" % (sweep, line) for sweep, _, line in results)

    def finish(self):
        shutil.rmtree(self.BUILD, ignore_errors=True)


JUDGES = (Torture,)
