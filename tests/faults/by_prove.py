"""By proofs: `prove NAME, NAME`, each of which CBMC must refuse with the fault. Every proof that is not open has one.

A fault of open proofs alone is planted only where a FILTER names one of them. Calls tests/prove/run.py; tests/prove/run.sh finds the prover.
JOBS=2 proves two at a time; PROVE_SECONDS=1800 is the most processor time that one may take; PROVE_KEEP=1 keeps the folders."""

import importlib.util
import os
import re
import shutil

import faults
import judge
from judge import TOP

spec = importlib.util.spec_from_file_location("prove", os.path.join(TOP, "tests", "prove", "run.py"))
prove = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prove)


def claim(place, proof):
    """What CBMC says of the claim that does not hold."""
    with open(os.path.join(place.folder, proof.name + ".log"), encoding="utf-8", errors="replace") as file:
        match = re.search(r"Violated property:\n\s*(.*)\n\s*(.*)", file.read())
    return "%s (%s)" % (match.group(2).strip(), match.group(1).split(" thread")[0].strip()) if match else "?"


class Proofs(judge.Judge):
    KIND = "prove"
    WORKERS = prove.JOBS
    SCRIPT = ("tests/prove/run.sh", "--plants")

    def __init__(self, everything, options):
        super().__init__(everything, options)
        self.known = {proof.name: proof for proof in prove.proofs()}

    def words(self, fault):
        return [fault.name, *fault.notices("prove")]

    def is_open(self, name):
        return name in self.known and self.known[name].when == "open"

    def incomplete(self):
        named = {name for fault in self.mine for name in fault.notices("prove")}
        lines = ["%s: no fault is planted for this proof" % name for name in self.known if not self.is_open(name) and name not in named]
        lines += ["%s: no such proof" % name for name in sorted(named - set(self.known))]
        return lines + ["%s: it names no proof" % fault.name for fault in self.mine if not fault.notices("prove")]

    def chosen(self, filters):
        def asked_for(fault):
            return any(part in name for part in filters for name in fault.notices("prove"))

        return [fault for fault in super().chosen(filters) if not all(map(self.is_open, fault.notices("prove"))) or asked_for(fault)]

    def prepare(self, chosen):
        prove.heed_signals()
        os.makedirs(prove.ROOT + prove.INSIDE)
        return {}

    def judge(self, fault, texts):
        place = prove.Place(fault.name, texts[faults.HEADER])
        good, lines = True, []
        for name in fault.notices("prove"):
            proof = self.known.get(name)
            if proof and (proof.when != "open" or name in self.options.filters):
                noticed, line = self.refused(place, proof)
                good = good and noticed
                lines.append(line)
        shutil.rmtree(place.folder, ignore_errors=True)
        return good and bool(lines), "; ".join(lines)

    def refused(self, place, proof):
        """Whether the proof fails, and a line."""
        wrong = place.compile(proof.file)
        if wrong:
            return False, wrong
        status, took = place.prove(proof, "--stop-on-fail")
        if status == prove.FAILED:
            return True, "%s fails, %.1f s: %s" % (proof.name, took.seconds, claim(place, proof))
        return False, "%s %s, %.1f s" % (proof.name, "holds all the same" if status == 0 else "ends with status %s" % status, took.seconds)

    def finish(self):
        if not os.environ.get("PROVE_KEEP"):
            shutil.rmtree(prove.ROOT + prove.INSIDE, ignore_errors=True)


JUDGES = (Proofs,)
