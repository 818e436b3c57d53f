"""By the simulation: `sim CHECK, CHECK`, the check that must fail, or one of them.

The simulation is built with the fault, runs as `make sim` does (with `--messages` for a check of messages), and must fail by that check within a minute of the processor's time. Without a
fault it must find nothing: that is looked at where no FILTER chooses. Every check of SIM_CHECKS in tests/sim/base.h has a fault."""

import glob
import os
import re
import shutil
import subprocess
import time

import faults
import judge
from judge import TOP

SIM = os.path.join(TOP, "tests", "sim")
SECONDS = 60  # of the processor's time
PATIENCE_SECONDS = 900  # where others use the processor too
COMPILE_SECONDS = 300


def checks():
    with open(os.path.join(SIM, "base.h"), encoding="utf-8") as file:
        return re.findall(r'^    X\( (\w+) *, "', file.read(), re.M)


def build(folder, text):
    """Returns the compiler's first error, '' for success."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "tests", "sim"))
    shutil.copy(os.path.join(TOP, "tests", "sim.c"), os.path.join(folder, "tests"))
    for path in glob.glob(os.path.join(SIM, "*.h")):
        shutil.copy(path, os.path.join(folder, "tests", "sim"))
    judge.write(os.path.join(folder, "netcode.h"), text)
    command = judge.CC[0] + ["-O0", "-w", "-I" + folder] + judge.flags("--cflags") + [os.path.join(folder, "tests", "sim.c")]
    command += judge.wraps() + judge.flags("--libs") + ["-lm", "-o", os.path.join(folder, "sim")]
    return judge.first_error(subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS))


def simulate(folder, *options):
    """Returns the name of the check that failed ('' for none), its line, and the seconds that it took."""
    before = time.monotonic()
    command = ["sh", "-c", 'ulimit -t %d; exec "$0" "$@"' % SECONDS, os.path.join(folder, "sim"), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    seconds = time.monotonic() - before
    match = re.search(r"FAILED check (\w+).*\n *(.*)", result.stdout)
    if match:
        return match.group(1), match.group(2), seconds
    if result.returncode < 0:
        return "nothing within %d s" % SECONDS, "", seconds
    return ("" if result.returncode == 0 else "status %d" % result.returncode), "", seconds


class Simulation(judge.Judge):
    KIND = "sim"
    WORKERS = 2
    BUILD = judge.build_folder("sim")

    def incomplete(self):
        named = {name for fault in self.mine for name in fault.notices("sim")}
        return ["%s: no fault is for this check" % name for name in checks() if name not in named] + [
            "%s: no check has this name" % name for name in sorted(named - set(checks()))
        ]

    def look(self, name, text, expected):
        folder = os.path.join(self.BUILD, name)
        wrong = build(folder, text)
        if wrong:
            return False, wrong
        check, detail, seconds = simulate(folder, *(["--messages"] if expected[0].startswith("message_") else []))
        shutil.rmtree(folder)
        if check not in expected:
            return False, "expected %s, got %s after %.0f s: %s" % (" or ".join(expected), check or "no failure", seconds, detail)
        return True, "%s after %.1f s: %s" % (check or "nothing", seconds, detail)

    def prepare(self, chosen):
        if not self.options.filters:
            good, line = self.look("unedited", faults.text_of(), [""])
            if not good:
                raise SystemExit("netcode.h as it is: " + line)
        return {}

    def judge(self, fault, texts):
        return self.look(fault.name, texts[faults.HEADER], fault.notices("sim"))

    def finish(self):
        shutil.rmtree(self.BUILD, ignore_errors=True)


JUDGES = (Simulation,)
