#!/usr/bin/env python3
"""The conformance kit: grades an implementation of netcode 1.02 from the outside. README.md beside this file is the page for porters.

    conform.py --peer "COMMAND ARGUMENT..."    COMMAND is a driver of the implementation
    conform.py --list                          the checks

The status is 0 if every MUST passes that can be checked, 1 otherwise, 2 for a wrong command line."""

import argparse
import concurrent.futures
import json
import os
import shlex
import shutil
import signal
import sys
import time
import traceback

import kit
from kit import CHECKS, MUST, SHOULD
from peer import Failed, Skipped

import checks_server  # noqa: F401 (they register themselves)
import checks_client  # noqa: F401
import checks_token  # noqa: F401

PASS, FAIL, NOT_APPLICABLE = "pass", "FAIL", "n/a"
JOBS = 12
SEEN_CHARACTERS = 300
# These wait longest; they begin first, so that none of them runs alone at the end.
LONG = ("-TIM-", "-EXP-", "-NXT-", "S-PKT-08", "S-REP-0", "S-PKT-12", "C-PKT-12", "S-KA-0", "C-CON-")


def plain(text):
    """A peer's words for a terminal, which would carry out some of them."""
    return "".join(one if one.isprintable() else "\\x%02x" % ord(one) for one in text)


class Result:
    def __init__(self, check, verdict, seen, world, seconds):
        self.check, self.verdict, self.seconds = check, verdict, seconds
        self.seen = plain(" / ".join(seen.split("\n")))[:SEEN_CHARACTERS]
        self.late, self.garbage, self.words = world.late, world.garbage, "\n".join(map(plain, world.words.split("\n")))
        self.stood, self.again, self.longest = world.stood_still, 0, 0

    def line(self):
        text = "%-8s %-6s %-4s  %s" % (self.check.id, self.check.severity, self.verdict, self.check.sentence)
        return text + ("\n%22s seen: %s" % ("", self.seen) if self.verdict != PASS else "")

    def record(self):
        fields = {"id": self.check.id, "role": self.check.role, "section": self.check.section}
        return dict(fields, severity=self.check.severity, sentence=self.check.sentence, result=self.verdict, seen=self.seen)


def explain(fault):
    """What a failed check says; where the kit itself failed, also where."""
    if isinstance(fault, Failed):
        return str(fault)
    place = traceback.extract_tb(fault.__traceback__)[-1]
    return "the kit failed: %s: %s (%s:%d)" % (type(fault).__name__, fault, os.path.basename(place.filename), place.lineno)


def surroundings(world):
    """What else was seen, for a check that failed."""
    said = [error for driver in world.drivers for error in driver.errors[-1:]]
    ended = [text for text in (driver.half_ended() for driver in world.drivers) if text]
    ignored = sorted({why for actor in world.actors for why in getattr(actor, "ignored", [])[-1:]})
    return ended + ["the driver said: error %s" % error for error in said] + ["the kit ignored what came: %s" % why for why in ignored]


def run(check, command, in_namespace):
    """Measures a check; once more, in a world of its own, if it failed and a process stood still meanwhile. That says nothing of the peer, which
    must fail where nothing does, or each time."""
    longest = 0
    for again in range(kit.MEASUREMENTS):
        result = measure(check, command, in_namespace)
        result.again, result.longest = again, longest
        if result.verdict != FAIL or result.stood < kit.STALL_SECONDS or kit.World.interrupted:
            return result
        longest = max(longest, result.stood)
    result.seen = "(in each of %d measurements a process stood still) %s" % (kit.MEASUREMENTS, result.seen)
    return result


def measure(check, command, in_namespace):
    start, world = time.monotonic(), kit.World(command, in_namespace)
    try:
        check.function(world)
        verdict, seen = PASS, [world.note]
    except Skipped as why:
        verdict, seen = NOT_APPLICABLE, [str(why)]
    except Exception as fault:  # whatever the peer does, the other checks go on
        verdict, seen = FAIL, [explain(fault)] + surroundings(world)
    world.stood_still = world.stood()
    world.words = "\n".join(words for words in (driver.last_words() for driver in world.drivers) if words)
    wrong = world.close()
    if wrong and verdict != NOT_APPLICABLE:
        verdict, seen = FAIL, seen + wrong
    return Result(check, verdict, "; ".join(part for part in seen if part), world, time.monotonic() - start)


def run_all(checks, options, in_namespace, show):
    """Runs the checks, some at a time, and shows each in the list's order as soon as those before it are done."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        first = sorted(checks, key=lambda check: not any(part in check.id for part in LONG))
        try:
            futures = {check.id: pool.submit(run, check, options.command, in_namespace) for check in first}
            for check in checks:
                results.append(futures[check.id].result())
                show(results[-1])
        except BaseException:
            kit.World.interrupted = True
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return results


def counted(results, **fields):
    wanted = [one for one in results if all(getattr(one.check, name) == value for name, value in fields.items())]
    return [sum(one.verdict == verdict for one in wanted) for verdict in (PASS, FAIL, NOT_APPLICABLE)]


def table(results):
    """By role and section of the standard: how many passed, failed and did not apply."""
    lines = ["%-8s%-42s%-18s%s" % ("role", "section of the standard", MUST, SHOULD), "%-50s%-18s%s" % ("", *["pass FAIL  n/a"] * 2)]
    rows = list(dict.fromkeys((one.check.role, one.check.section) for one in results))
    for role, section in rows + [("all", None)]:
        fields = {} if section is None else {"role": role, "section": section}
        cells = ["%4d %4d %4d" % tuple(counted(results, severity=severity, **fields)) for severity in (MUST, SHOULD)]
        lines.append("%-8s%-42s%-18s%s" % (role, section or "", *cells))
    return lines


def remarks(results, orphans):
    """What concerns the driver, and no check."""
    lines = []
    if orphans:
        lines.append("note: the driver left %d processes in sessions of their own, which were killed" % orphans)
    late = sum(one.late for one in results)
    if late:
        lines.append("note: in %d checks the driver did not end within %g s after `stop`, and was killed" % (late, kit.STOP_SECONDS))
    again = [one for one in results if one.again]
    if again:
        text = "note: %d checks were measured again, %d times in all, because a process stood still for up to %.1f s"
        lines.append(text % (len(again), sum(one.again for one in again), max(one.longest for one in again)))
    garbage = [line for one in results for line in one.garbage]
    if garbage:
        lines.append("note: the driver printed %d lines that are none of the kit's, such as %r" % (len(garbage), garbage[0][:80]))
    return lines


def arguments():
    parser = argparse.ArgumentParser(description="grades an implementation of netcode 1.02 from the outside")
    parser.add_argument("--peer", metavar="COMMAND", help="the driver of the implementation, with its arguments: tests/conform/README.md")
    parser.add_argument("--role", choices=sorted(kit.ROLES.values()), help="this role's checks alone")
    parser.add_argument("-k", metavar="FILTER", default="", help="only checks whose id, section or sentence contains this, or one of these: A,B")
    parser.add_argument("-j", "--jobs", type=int, default=JOBS, help="checks at a time (%(default)s)")
    parser.add_argument("-v", "--verbose", action="store_true", help="what the peer wrote to standard error in checks that failed")
    parser.add_argument("--strict", action="store_true", help="every SHOULD must pass, too")
    parser.add_argument("--json", metavar="FILE", help="writes all results to a file")
    parser.add_argument("--list", action="store_true", help="lists the checks, and runs none")
    parser.add_argument("--no-namespace", action="store_true", help="stay in this network, where the peer can reach more than loopback")
    options = parser.parse_args()
    options.checks = [one for one in CHECKS if options.role in (None, one.role)
                      and any(word.lower() in ("%s %s %s" % (one.id, one.section, one.sentence)).lower() for word in options.k.split(","))]
    if not options.checks:
        parser.error("no check is called that")
    if options.jobs < 1:
        parser.error("--jobs wants 1 or more")
    if not options.list:
        options.command = shlex.split(options.peer or "")
        if not options.command:
            parser.error("--peer COMMAND is missing: the driver of the implementation")
        if not shutil.which(options.command[0]):
            parser.error("%s is no program" % options.command[0])
    return options


def interrupt(number, frame):
    raise KeyboardInterrupt


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, interrupt)  # drivers have sessions of their own: the end of a terminal is not theirs
    if options.list:
        for one in options.checks:
            print("%-8s %-6s %-6s %s: %s" % (one.id, one.severity, one.role, one.section, one.sentence))
        print("%d checks" % len(options.checks))
        return 0

    def show(result):
        print(result.line(), flush=True)
        if options.verbose and result.verdict == FAIL and result.words:
            print("\n".join("                     | " + line for line in result.words.split("\n")), flush=True)

    start = time.monotonic()
    in_namespace = not options.no_namespace and kit.own_network()
    if not in_namespace:
        print("note: without a network namespace of its own, the kit leaves out what could send packets beyond this machine")
    kit.adopt_orphans()
    kit.WATCH.start()
    orphans = 0
    try:
        results = run_all(options.checks, options, in_namespace, show)
    finally:
        orphans = kit.end_orphans()
    print("\n" + "\n".join(table(results) + remarks(results, orphans)) + "\n")
    failed = [one for one in results if one.verdict == FAIL]
    for one in failed:
        print("%-8s %-6s FAIL  seen: %s" % (one.check.id, one.check.severity, one.seen))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"peer": options.peer, "results": [one.record() for one in results]}, file, indent=1)
    must, should = counted(results, severity=MUST), counted(results, severity=SHOULD)
    text = "conform: MUST %d passed, %d failed, %d not applicable; SHOULD %d passed, %d failed, %d not applicable; %.0f s"
    print(text % (*must, *should, time.monotonic() - start))
    return 0 if must[0] and not must[1] and not (options.strict and should[1]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(1)
    except BrokenPipeError:  # whoever read the results has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
