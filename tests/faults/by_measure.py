"""By what is measured between real processes: `gates GATES: PART` and `latency PART`.

gates: of these gates of tests/gates/gates.py a row whose name contains PART must be beyond its limit. They run for PLANT_SECONDS (6).
latency: a row of tests/latency/latency.py whose name contains PART must fail, in runs of PLANT_SECONDS (5). Without a fault all must hold."""

import json
import os
import shutil
import subprocess
import sys

import faults
import judge
from judge import TOP

MEASURED = ("netcode.h", "tests/latency/latency.py", "tests/latency/latency.c", "tests/latency/latency.gp")
TOOLS = ("tests/tools/relay.c", "tests/tools/deps.sh", "tests/tools/waiting.py")


class Gates(judge.Judge):
    KIND = "gates"

    def words(self, fault):
        return [fault.name, fault.by["gates"].partition(": ")[0]]

    def judge(self, fault, texts):
        gates, _, part = fault.by["gates"].partition(": ")
        out = os.path.join(TOP, "build", "gates_plants")
        header = os.path.join(out, fault.name + ".h")
        judge.write(header, texts[faults.HEADER])
        seconds = os.environ.get("PLANT_SECONDS", "6")
        environment = dict(os.environ, GATE_HEADER=header, GATE_OUT=out, GATE_SECONDS=seconds, CFLAGS="-O1 -w")
        command = [sys.executable, os.path.join(TOP, "tests", "gates", "gates.py"), gates]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        beyond = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
        found = [line for line in beyond if part in line]
        if done.returncode == 1 and found:
            return True, "%s: %s" % (gates, " ".join(found[0].split()))
        return False, "%s: status %d; beyond: %s%s" % (gates, done.returncode, "; ".join(beyond) or "nothing", done.stderr[-500:])


class Latency(judge.Judge):
    KIND = "latency"
    OUT = os.path.join(TOP, "build", "latency_plants")

    def failed(self, texts):
        """What a copy says does not hold."""
        for file in MEASURED + TOOLS:
            path = os.path.join(self.OUT, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.join(TOP, file), path)
        for file, text in texts.items():
            judge.write(os.path.join(self.OUT, file), text)
        report = os.path.join(self.OUT, "build", "latency", "latency.json")
        if os.path.exists(report):
            os.remove(report)
        environment = dict(os.environ, LATENCY_LOSS="0 3 10", LATENCY_SEEDS="1", LATENCY_SECONDS=os.environ.get("PLANT_SECONDS", "5"))
        environment.pop("LATENCY_OUT", None)
        command = [sys.executable, os.path.join(self.OUT, "tests", "latency", "latency.py")]
        result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if not os.path.exists(report):
            raise SystemExit("latency.py did not end as it should:\n" + result.stdout[-1000:] + result.stderr[-1000:])
        with open(report, encoding="utf-8") as file:
            failed = [what for what, _, _, good in json.load(file)["rows"] if not good]
        if result.returncode != (1 if failed else 0):
            raise SystemExit("latency.py ended with status %d, and %d rows failed" % (result.returncode, len(failed)))
        return failed

    def prepare(self, chosen):
        failed = self.failed({})
        if failed:
            raise SystemExit("without a fault: " + "; ".join(failed))
        return {}

    def judge(self, fault, texts):
        failed = self.failed(texts)
        return any(fault.by["latency"] in what for what in failed), "; ".join(failed) or "nothing failed"


JUDGES = (Gates, Latency)
