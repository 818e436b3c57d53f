#!/usr/bin/env python3
"""Plants each fault of the tables beside this file in a copy, one at a time, and demands that what it names notices.

    run.py [FILTER...]              the faults whose names contain a FILTER, by every kind of evidence; all without one: many hours
    run.py --by KIND [FILTER...]    by one kind: test, sim, fuzz, prove, erase, ct, gates, latency, torture, msan or conform
    run.py --by test --sample       every tenth of those of the attacks and every fortieth of the others: the same ones each time
    run.py --stale                  looks whether each fault finds its text and each has what it must, and plants none: seconds
    run.py --by fuzz --empty        the fuzzers begin with nothing, not with the corpus

faults.py says how a table is written, by_KIND.py what counts as noticed. Whatever must have a fault and has none is missed, too. The status is 0
where all are noticed, or where that kind of evidence can not be had here, which is said."""

import argparse
import concurrent.futures
import importlib
import os
import pathlib
import re
import subprocess
import sys

import faults
from judge import Skip

MODULES = {"erase": "by_memory", "ct": "by_memory", "msan": "by_memory", "gates": "by_measure", "latency": "by_measure"}
READY = "FAULTS_READY"  # set by the script of a kind, when all is ready for it


def judge_of(kind, everything, options):
    module = importlib.import_module(MODULES.get(kind, "by_" + kind))
    return next(judge for judge in module.JUDGES if judge.KIND == kind)(everything, options)


def sampled(chosen):
    kept = set()
    for of_attacks, share in ((True, 10), (False, 40)):
        kept |= set([fault.name for fault in chosen if fault.name.startswith("row_") == of_attacks][::share])
    print("a sample: %d of %d faults" % (len(kept), len(chosen)), flush=True)
    return [fault for fault in chosen if fault.name in kept]


def stale(looked_at):
    """A line for each fault that does not find its text, and for each test that it names and that is not there."""
    texts = {file: faults.text_of(file) for file in {file for fault in looked_at for file in fault.files()}}
    lines = ["%s: %s" % (fault.name, wrong) for fault in looked_at for wrong in [fault.stale(texts.get)] if wrong]
    there = set(re.findall(r"\w+", "".join(path.read_text(encoding="utf-8") for path in pathlib.Path(faults.TOP, "tests").glob("*/*.c"))))
    return lines + ["%s: there is no test %s" % (fault.name, test) for fault in looked_at for test in fault.notices("test") if test not in there]


def judged(judge, fault):
    texts = {}
    for file in fault.files():
        texts[file], wrong = fault.apply(faults.text_of(file), file)
        if wrong:
            return False, wrong
    return judge.judge(fault, texts)


def report(noticed, name, line):
    print("%-7s %s: %s" % ("noticed" if noticed else "MISSED", name, line), flush=True)


def run(judge, options):
    chosen = judge.chosen(options.filters)
    wrong = judge.incomplete() + (stale(faults.load()) if options.sample else [])
    chosen = sampled(chosen) if options.sample else chosen
    for line in wrong:
        print("MISSED  " + line, flush=True)
    noticed, missed = 0, len(wrong)
    try:
        unfit = judge.prepare(chosen) if chosen else {}
        for name, why in unfit.items():
            report(False, name, why)
        missed += len(unfit)
        chosen = [fault for fault in chosen if fault.name not in unfit]
        with concurrent.futures.ThreadPoolExecutor(judge.WORKERS) as pool:
            for fault, (good, line) in zip(chosen, pool.map(lambda fault: judged(judge, fault), chosen)):
                report(good, fault.name, line)
                noticed += good
                missed += not good
    except Skip as skip:
        print("faults by %s skipped: %s" % (judge.KIND, skip))
        return 1 if missed else 0
    finally:
        judge.finish()
    print("by %s: %d noticed, %d missed" % (judge.KIND, noticed, missed))
    return 1 if missed or not noticed else 0


def look(kinds, everything, options):
    lines = [line for kind in kinds for line in judge_of(kind, everything, options).incomplete()]
    looked_at = [fault for fault in everything if set(kinds) & set(fault.by)]
    lines += stale(looked_at)
    for line in lines:
        print(line)
    print("%d faults, %d wrong" % (len(looked_at), len(lines)))
    return 1 if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=faults.KINDS)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("filters", nargs="*", metavar="FILTER")
    options = parser.parse_args()
    kinds = [options.by] if options.by else faults.KINDS
    everything = faults.load()
    if options.stale:
        return look(kinds, everything, options)
    status = 0
    judges = [(kind, judge_of(kind, everything, options)) for kind in kinds]
    if not any(judge.chosen(options.filters) for _, judge in judges):
        raise SystemExit("no fault is called that: " + " ".join(options.filters))
    for kind, judge in judges:
        if not judge.chosen(options.filters):
            continue
        if judge.SCRIPT and os.environ.get(READY) != kind:
            words = ["--sample"] * options.sample + ["--empty"] * options.empty + options.filters
            status |= subprocess.run(["sh", *judge.SCRIPT, *words], cwd=faults.TOP, check=False).returncode != 0
        else:
            status |= run(judge, options)
    return status


if __name__ == "__main__":
    sys.exit(main())
