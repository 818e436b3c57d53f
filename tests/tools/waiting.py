"""How tests wait: for a condition, and with one generous limit. Something that has to happen counts as not happening after LIMIT_SECONDS, and
no sooner: on a machine that is shared, or that stands still for seconds, a shorter limit tests the machine. That something does not
happen is tested by what must come after it, not by a time."""

import os
import sys
import time

LIMIT_SECONDS = float(os.environ.get("TEST_LIMIT_SECONDS", 60))


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


def know(words, names):
    """Ends the program where a word is in none of the names: what was renamed would drop out of a run without a word."""
    unknown = [word for word in words if not any(word in name for name in names)]
    if unknown:
        print("nothing here is called '%s', but: %s" % ("' or '".join(unknown), "; ".join(names)), file=sys.stderr)
        sys.exit(2)
