#!/usr/bin/env python3
"""Looks whether the conformance kit copes with peers that crash, hang, are stopped and print garbage, and says what it saw.

    selftest.py DRIVER    DRIVER is the program built from driver.c"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
from waiting import until  # noqa: E402 (its folder is not on the path before)

KIT = [sys.executable, os.path.join(HERE, "conform.py")]
FEW = "S-REQ-01,C-REQ-04,T-TOK-01"
AT_ONCE = 12  # checks
FAULTS = []


def check(truth, what):
    print("%s: %s" % ("ok" if truth else "FAILED", what), flush=True)
    if not truth:
        FAULTS.append(what)


def run(*arguments):
    start = time.monotonic()
    done = subprocess.run([*KIT, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - start


def running(mark):
    """How many processes have this word in their command line."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                count += mark.encode() in file.read() and int(name) != os.getpid()
        except OSError:
            continue
    return count


def script(text):
    return "sh -c '%s'" % text


PEERS = [
    ("ends at once", "false", FEW, ["the peer ended with status 1"]),
    ("crashes", script("echo listening; echo state 1; kill -SEGV $$"), FEW, ["was ended by SIGSEGV"]),
    ("prints without end", "yes", FEW, ["prints without end"]),
    ("prints noise", "cat /dev/urandom", FEW, ["prints without end"]),
    ("says nonsense", script("echo state 9; sleep 5"), "C-REQ-04", ["the driver's line can not be read: 'state 9'"]),
    ("has a child that holds its output", script("sleep 61.5 & exit 3"), "S-REQ-01", ["the driver's process ended with status 3, but its output is still open"]),
    ("says what terminals carry out", script("printf \"error \\033[2J\\n\"; cat >/dev/null"), "S-REQ-01", ["the driver said: error \\x1b[2J"]),
    ("hangs", script("sleep 61.5; true"), FEW, ["not seen: the driver says `listening`", "did not end within 3 s"]),
    ("closes its output", script("exec >&-; sleep 61.5"), "S-REQ-01", ["closed its output"]),
    ("reports an error", script("echo error no such port; cat >/dev/null"), "S-REQ-01", ["does not start: [", "no such port"]),
]


def dead_peers():
    for name, peer, checks, words in PEERS:
        status, text, seconds = run("--peer", peer, "-k", checks)
        missing = [word for word in words if word not in text]
        check(status == 1 and not missing, "a peer that %s: status %d in %.0f s%s" % (name, status, seconds, missing and ", not said: %s" % missing or ""))
    status, text, _ = run("--peer", script("setsid sleep 61.5 </dev/null >/dev/null 2>&1 & exit 0"), "-k", "S-REQ-01")
    check("left 1 processes in sessions of their own" in text, "what a peer left in a session of its own is named")
    check(running("sleep\x0061.5") == 0 and running("/dev/urandom") == 0, "nothing of them is left running")


def on_disk(process):
    """How many bytes the open files of a process take, which may have no name."""
    folder = "/proc/%d/fd" % process
    try:
        return sum(os.stat(os.path.join(folder, name)).st_blocks for name in os.listdir(folder)) * 512
    except OSError:
        return 0  # one was closed meanwhile


def chatty(driver):
    """A sound peer that logs without end passes, fills no disk, and its last words are kept."""
    log = "import os, subprocess, sys; p = subprocess.Popen(sys.argv[1:]); line = b'x' * 65536\nwhile p.poll() is None: os.write(2, line)\nos.write(2, b'its last words'); sys.exit(p.returncode)"
    most = 0
    kit = subprocess.Popen([*KIT, "--peer", shlex.join([sys.executable, "-c", log, driver]), "-k", "S-TIM-04"], stdout=subprocess.PIPE, text=True)
    while kit.poll() is None:
        most = max(most, on_disk(kit.pid))
        time.sleep(0.1)
    check(kit.returncode == 0 and most < 256 << 20, "a peer that logs without end: status %d, %d MB of the disk" % (kit.returncode, most >> 20))


AGAIN = "note: 1 checks were measured again"


def kit_stopped(driver):
    """The kit is stopped in the second that the peer's client takes to time out, and for longer than it may take."""
    process = subprocess.Popen([*KIT, "--peer", driver + " 62.25", "-k", "C-CON-07"], stdout=subprocess.PIPE, text=True)
    until(lambda: running("\x0062.25"), "the driver")
    time.sleep(0.6)
    process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    process.send_signal(signal.SIGCONT)
    return process.communicate()[0]


def driver_stopped(driver):
    """The driver is a child of what the kit starts, as behind `go run`; the first is stopped for most of the time in which its packets are counted."""
    with tempfile.TemporaryDirectory() as folder:
        peer = "exec 3<&0; %s <&3 & mkdir %s/once 2>&- && { sleep 1; kill -STOP $!; sleep 2; kill -CONT $!; } & wait %%1" % (driver, folder)
        return run("--peer", script(peer), "-k", "S-KA-03")[1]


def stopped(driver):
    """A check that failed is measured again where a process was stopped, and not where the peer slept. This machine may be busy, so each of
    these is tried until it was measured so often as it should be."""
    slow = script("while read -r line; do sleep 3.5; echo $line; done | %s" % driver)
    for measured, again, verdict, what in (
        (driver_stopped, True, "SHOULD 1 passed", "a rate is measured again after a pause of the driver"),
        (kit_stopped, True, "MUST 1 passed", "a timeout is measured again after a pause of the kit"),
        (lambda _: run("--peer", slow, "-k", "S-PAY-02")[1], False, "within 3 s not seen", "a driver that is slow by itself fails at once"),
    ):
        texts = []
        while len(texts) < 8 and not any((AGAIN in text) == again for text in texts):
            texts.append(measured(driver))
        check((AGAIN in texts[-1]) == again and verdict in texts[-1], what)
    peer = "(sleep 0.4; kill -CONT $$) & kill -STOP $$; exit 1"
    status, text, _ = run("--peer", script(peer), "-k", "S-REQ-01")
    check(status == 1 and "a process stood still) the peer ended with status 1" in text, "a driver that is stopped each time fails")


def statuses(driver):
    status, text, _ = run("--peer", script("while read -r verb rest; do [ $verb != stop ] || exit 0; echo unsupported $verb; done"), "-k", FEW)
    check(status == 1 and "0 failed, 3 not applicable" in text, "a driver that supports nothing: three are not applicable, and nothing is shown")
    for wrong in ([], ["--peer", "no-such-program"], ["--peer", driver, "-k", "no such check"], ["--peer", driver, "--jobs", "0"], ["--role", "judge"]):
        check(run(*wrong)[0] == 2, "status 2 for the command line %r" % wrong[-2:])
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        status, text, _ = run("--peer", driver, "-k", FEW, "--strict", "--json", file.name)
        rows = json.load(file)["results"]
    check(status == 0 and "MUST 3 passed, 0 failed, 0 not applicable" in text, "status 0 for a sound driver")
    check({row["id"]: row["result"] for row in rows} == dict.fromkeys(FEW.split(","), "pass"), "and the same as JSON")
    example = "%s %s" % (sys.executable, os.path.join(HERE, "driver.py"))
    check(run("--peer", example, "-k", "S-RES-15," + FEW)[0] == 0, "status 0 where a SHOULD fails")
    check(run("--peer", example, "-k", "S-RES-15," + FEW, "--strict")[0] == 1, "and 1 with --strict")
    listed = run("--list")[1].splitlines()
    check(len({line.split()[0] for line in listed[:-1]}) == int(listed[-1].split()[0]), "--list: %s, each once" % listed[-1])


def default_signals():
    """Undoes what is inherited: SIGINT is ignored in a shell's background, SIGHUP under nohup."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def interrupted():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = subprocess.Popen([*KIT, "--peer", "sleep 62.5", "--jobs", str(AT_ONCE)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=default_signals)
        until(lambda: running("sleep\x0062.5") >= AT_ONCE, "its peers")
        process.send_signal(number)
        status = process.wait(30)
        check(status == 1 and running("sleep\x0062.5") == 0, "%s ends the kit and its %d peers" % (signal.Signals(number).name, AT_ONCE))


    deaf = "trap true TERM HUP; while :; do sleep 62.5; done"
    process = subprocess.Popen([*KIT, "--peer", script(deaf), "-k", "S-REQ-0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    check(process.wait(60) == 1 and not errors and running("sleep\x0062.5") == 0, "a reader that goes away ends the kit and its peers, without a traceback")


def main():
    if len(sys.argv) != 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: selftest.py DRIVER")
    dead_peers()
    chatty(os.path.abspath(sys.argv[1]))
    stopped(os.path.abspath(sys.argv[1]))
    statuses(os.path.abspath(sys.argv[1]))
    interrupted()
    print("selftest of the conformance kit: %s" % ("; ".join(FAULTS) or "all passed"))
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
