"""By the conformance kit: `conform CHECK, CHECK`.

Each of these checks of tests/conform must fail where the driver is built with the changed copies. Without a fault all pass, and each check is
named by a fault: one that no broken library has failed shows nothing."""

import json
import os
import shutil
import subprocess
import sys

import faults
import judge
from judge import TOP

DRIVER = "tests/conform/driver.c"
EXAMPLE = os.path.join(TOP, "tests", "conform", "driver.py")
KIT = os.path.join(TOP, "tests", "conform", "conform.py")


def all_checks():
    done = subprocess.run([sys.executable, KIT, "--list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines()[:-1]]


class Conform(judge.Judge):
    KIND = "conform"
    WORKERS = 4  # they wait more than they compute

    def __init__(self, everything, options):
        super().__init__(everything, options)
        self.out = judge.build_folder("conform")

    def words(self, fault):
        return [fault.name] + fault.notices("conform")

    def incomplete(self):
        named, known = {check for fault in self.mine for check in fault.notices("conform")}, all_checks()
        lines = ["%s: the kit has no check %s" % (fault.name, check) for fault in self.mine for check in fault.notices("conform") if check not in known]
        with open(os.path.join(TOP, "tests", "conform", "README.md"), encoding="utf-8") as page, open(EXAMPLE, encoding="utf-8") as driver:
            if "```python\n%s```" % driver.read() not in page.read():
                lines.append("tests/conform/README.md shows another driver than driver.py")
        return lines + ["no fault names the check %s" % check for check in known if check not in named]

    def build(self, name, texts):
        """The driver, built with the changed copies; returns its path and the compiler's first error."""
        folder = os.path.join(self.out, name)
        for file in (faults.HEADER, DRIVER):
            judge.write(os.path.join(folder, os.path.basename(file)), texts.get(file) or faults.text_of(file))
        product = os.path.join(folder, "driver")
        # Asserts are off: a broken variant is to be seen on the wire.
        command = judge.CC[0] + ["-O0", "-w", "-DNDEBUG", "-I" + folder, os.path.join(folder, "driver.c"), *judge.flags("--cflags")]
        done = subprocess.run(command + ["-o", product, *judge.flags("--libs"), "-lm"], capture_output=True, text=True, check=False)
        return product, judge.first_error(done)

    def graded(self, name, texts, checks):
        """What the kit says of these checks, or of all: id -> (result, what was seen). None and an error where it can not say anything."""
        product, error = self.build(name, texts)
        if error:
            return None, "it does not compile: " + error
        report = os.path.join(self.out, name, "report.json")
        command = [sys.executable, KIT, "--peer", product, "--json", report] + (["-k", ",".join(checks)] if checks else [])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not os.path.exists(report):
            return None, "the kit did not end: %s" % done.stderr[-300:]
        with open(report, encoding="utf-8") as file:
            return {row["id"]: (row["result"], row["seen"]) for row in json.load(file)["results"]}, ""

    def prepare(self, chosen):
        results, error = self.graded("sound", {}, sorted({check for fault in chosen for check in fault.notices("conform")}))
        if results is None:
            raise SystemExit("without a fault: " + error)
        failed = ["%s: %s" % (check, seen) for check, (result, seen) in results.items() if result == "FAIL"]
        if failed:
            raise SystemExit("without a fault: " + "; ".join(failed))
        self.left_out = {check: seen for check, (result, seen) in results.items() if result == "n/a"}
        for check, why in self.left_out.items():
            print("skipped %s: %s" % (check, why), flush=True)
        return {}

    def judge(self, fault, texts):
        wanted = [check for check in fault.notices("conform") if check not in self.left_out]
        results, error = self.graded(fault.name, texts, wanted) if wanted else ({}, "")
        shutil.rmtree(os.path.join(self.out, fault.name), ignore_errors=True)
        if results is None:
            return False, error
        passed = [check for check in wanted if results[check][0] != "FAIL"]
        if passed:
            return False, "passed all the same: %s" % ", ".join(passed)
        return True, "; ".join("%s: %s" % (check, results[check][1][:90]) for check in wanted)

    def finish(self):
        shutil.rmtree(self.out, ignore_errors=True)


JUDGES = (Conform,)
