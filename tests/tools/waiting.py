"""How tests wait: for a condition, and with one generous limit. Something that has to happen counts as not happening after LIMIT_SECONDS, and
no sooner: on a machine that is shared, or that stands still for seconds, a shorter limit tests the machine. That something does not
happen is tested by what must come after it, not by a time."""

import os
import sys
import threading
import time

LIMIT_SECONDS = float(os.environ.get("TEST_LIMIT_SECONDS", 60))
SKIPS_FAIL = (os.environ.get("SKIPS") or "yes") != "yes"  # as in skip.sh: what is skipped is a failure
STALL_SECONDS = 0.5  # a process that stood still for so long may have missed something


class TimedOut(Exception):
    """What was waited for did not come."""


def until(condition, what="", seconds=LIMIT_SECONDS, pause=0.02):
    """Polls until the condition is true, and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        is_late = time.monotonic() >= end  # before the look: whoever was held up sees what was true before that
        value = condition()
        if value:
            return value
        if is_late:
            raise TimedOut("in %g s it did not come: %s" % (seconds, what))
        time.sleep(pause)


def refuse_unknown(words, names):
    """Ends the program with status 2 if a word is part of no name: otherwise a renamed scenario would drop out of a run unnoticed."""
    unknown = [word for word in words if not any(word in name for name in names)]
    if unknown:
        print("unknown: %s; there are: %s" % (", ".join(unknown), "; ".join(names)), file=sys.stderr)
        sys.exit(2)


class Stalls(threading.Thread):
    """Notes when one of the processes (what has a pid; the list may grow), or this one, last stood still: only then may something be too late.
    conform/kit.py has one of its own, since it is used without this tree."""

    def __init__(self, processes):
        super().__init__(daemon=True)
        self.processes, self.lock, self.marks = processes, threading.Lock(), {}
        self.looked, self.latest = time.monotonic(), 0.0
        self.start()

    def run(self):
        while True:
            self.look()
            time.sleep(0.05)

    def look(self):
        with self.lock:
            now = time.monotonic()
            if now - self.looked >= STALL_SECONDS:
                self.latest = now
            self.looked = now
            for process in list(self.processes):
                try:
                    with open("/proc/%d/stat" % process.pid, "rb") as file:
                        fields = file.read().rpartition(b")")[2].split()
                except OSError:  # it has ended
                    continue
                mark = fields[0], fields[11:13]  # state, and the time that it has run
                since, before = self.marks.get(process, (now, None))
                if mark != before or fields[0] not in (b"R", b"D", b"T"):  # one that sleeps does so by its own will
                    self.marks[process] = now, mark
                elif now - since >= STALL_SECONDS:
                    self.latest = now

    def since(self, begin):
        """True when one of them stood still after `begin`."""
        self.look()
        return self.latest >= begin
