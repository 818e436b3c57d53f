#!/usr/bin/env python3
"""make nightly: every check that this project has, whole. It takes the better part of a day, and resumes where it stopped.

    nightly.py                the steps that have not passed on this tree; writes tests/NIGHTLY.md after each
    nightly.py WORD...        the steps whose names hold a WORD, whether they have passed or not
    nightly.py --list         the steps and their commands
    nightly.py --compare      the steps whose result is older than the files that they check; runs nothing, and its status is 0

A step's output is in build/nightly. A result belongs to the commit that is checked out, so nothing may be changed and not committed. The
status is 1 where a step failed. Needs root for what makes a Debian of its own."""

import ctypes
import datetime
import os
import re
import shlex
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = "tests/NIGHTLY.md"
STEP_SECONDS = 6 * 3600
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SUMMARY = r"^[^/|\n]*\b(?:\d+ passed, \d+ failed|\d+ noticed, \d+ missed|\d+ of \d+ (?:noticed|found|hold|within|lines over))\b[^/|\n]*$"

HEAD = """# The last full run of each step

`make nightly` writes this table: the last result of each step, and the commit it ran on. `make lint` lists the steps whose files have
changed since; not every file that most of them use, such as the Makefile and tests/tools, is counted. What every commit has to pass is in `.ci/run`.

| step | result | seconds | commit | date |
|---|---|---|---|---|
"""

# What steps use and do not install by themselves, as tests/tools/need.sh wants it.
NEEDS = """gcc:gcc g++:g++ make:make clang:clang++ python3:python3 pkg-config:pkg-config iproute2:ip util-linux:unshare valgrind:valgrind gnuplot-nox:gnuplot
    libc6-dev-i386:/usr/include/x86_64-linux-gnu/gnu/stubs-32.h gcc-s390x-linux-gnu:s390x-linux-gnu-gcc
    libc6-dev-s390x-cross:/usr/s390x-linux-gnu/include/stdio.h qemu-user:qemu-s390x musl-tools:musl-gcc
    gcc-mingw-w64-x86-64-posix:x86_64-w64-mingw32-gcc g++-mingw-w64-x86-64-posix:x86_64-w64-mingw32-g++ spin:spin
    clang-19:clang-19 llvm-19:llvm-cov-19 libclang-rt-19-dev:/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a
    libclang-rt-dev:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.a libenet-dev:/usr/include/enet/enet.h
    gcc-aarch64-linux-gnu:aarch64-linux-gnu-gcc libc6-dev-arm64-cross:/usr/aarch64-linux-gnu/include/stdio.h wine64:/usr/lib/wine/wine64
    debootstrap:debootstrap dpkg-dev:dpkg-source autoconf:autoconf automake:automake libtool:libtoolize patch:patch"""

# What most tests of a product build and import.
PROGRAMS = "examples/server.c examples/client.c examples/token.c examples/secret_file.h examples/match.h tests/tools/waiting.py tests/tools/relay.c "
RUNNER = "tests/main.c tests/*.h tests/unit tests/story "
# A step, its command, and the files that it checks besides netcode.h: when one of them has changed, its result is an old one.
STEPS = [
    ("test-seeds", "make test-seeds", RUNNER),
    ("peer", "make peer", "tests/peer.py tests/tools/subject.c"),
    ("conform-plants", "make conform-plants", "tests/conform tests/faults tests/peer.py"),
    ("compile", "make compile", "tests/compile examples"),
    ("defences", "make defences", RUNNER + "tests/attacks tests/faults"),
    ("mutate", "make mutate", RUNNER + "tests/mutate"),
    ("sim", "make sim DAYS=5", "tests/sim tests/sim.c"),
    ("sim-plants", "python3 tests/faults/run.py --by sim", "tests/sim tests/sim.c tests/faults"),
    ("fuzz", "make fuzz", "tests/fuzz"),
    ("fuzz-plants", "python3 tests/faults/run.py --by fuzz", "tests/fuzz tests/faults"),
    ("mixes", "env MESSAGES_MIXES=10000 MESSAGES_DEFAULT_SEEDS=50 make test-release T=messages_mixes", RUNNER),
    ("torture", "make torture", RUNNER + "tests/torture tests/torture.c"),
    ("torture-plain", "make torture-plain", "tests/*.h tests/torture tests/torture.c"),
    ("torture-plants", "python3 tests/faults/run.py --by torture", "tests/*.h tests/torture tests/torture.c tests/faults"),
    ("erase", "make erase", "tests/*.h tests/erase"),
    ("erase-plants", "sh tests/erase/run.sh --plants", "tests/*.h tests/erase tests/faults"),
    ("ct", "make ct", "tests/*.h tests/ct"),
    ("ct-plants", "sh tests/ct/run.sh --plants", "tests/*.h tests/ct tests/faults"),
    ("msan", "make msan", RUNNER + "tests/tools/msan.sh"),
    ("msan-plant", "sh tests/tools/msan.sh --plant", "tests/tools/msan.sh tests/faults"),
    ("prove", "make prove", "tests/prove tests/faults/faults.py"),
    ("prove-plants", "sh tests/prove/run.sh --plants", "tests/prove tests/faults"),
    ("model", "make model", "tests/*.h tests/model"),
    ("platforms", "make platforms", RUNNER + "tests/platforms"),
    ("network", "make network", "tests/network"),
    ("fairness", "make fairness", "tests/fairness.c tests/fairness.h"),
    ("fairness over loopback", "make fairness FAIRNESS=--real", "tests/fairness.c tests/fairness.h"),
    ("latency", "make latency", PROGRAMS + "tests/latency"),
    ("latency-plants", "make latency-plants", PROGRAMS + "tests/latency tests/faults"),
    ("gates", "make gates", PROGRAMS + "tests/gates examples/match_server.c examples/loadgen.c"),
    ("gates-plants", "make gates-plants", PROGRAMS + "tests/gates examples/match_server.c examples/loadgen.c tests/faults"),
    ("roam", "make roam", PROGRAMS + "tests/roam"),
    ("games", "make games", "examples/pong.c tests/tools/games.sh"),
    ("soak", "make soak", "tests/soak.c tests/allocations.h"),
    ("bench", "make bench bench-plot", "tests/bench.c tests/bench.gp"),
    ("bench-messages", "make bench-messages", "tests/bench_messages.c"),
    ("bench-sockets", "make bench-sockets", "tests/bench_sockets.c"),
    ("instructions", "make instructions", "tests/tools/instructions.c tests/tools/instructions.sh"),
    ("arena", "make arena", PROGRAMS + "tests/*.h examples/arena tests/arena"),
    ("arena-plants", "make arena-plants", PROGRAMS + "tests/*.h examples/arena tests/arena"),
    ("web", "make web SECONDS_LONG=600 PACKETS=1000000", RUNNER + PROGRAMS + "examples/web examples/arena examples/backend tests/web"),
    ("cpp", "make cpp", "examples/cpp tests/cpp"),
    ("cpp-plants", "make cpp-plants", "examples/cpp tests/cpp"),
    ("csharp", "make csharp", "examples/csharp tests/csharp tests/web/messages_server.c"),
    ("csharp-plants", "make csharp-plants", "examples/csharp tests/csharp tests/web/messages_server.c"),
    ("godot", "make godot", PROGRAMS + "tests/*.h examples/godot tests/godot"),
    ("godot4", "make godot4", PROGRAMS + "tests/*.h examples/godot tests/godot"),
    ("engine", "make engine", "tests/engine"),
    ("admission", "make admission ADMISSION=--whole", PROGRAMS + "examples/fleet tests/fleet tests/all/admission.py tests/all/fleet.py"),
    ("admission-plants", "make admission-plants", PROGRAMS + "examples/fleet tests/fleet tests/all/admission.py tests/all/fleet.py"),
    ("test-matchmaking", "make test-matchmaking", "examples/backend/matchmaking.h tests/backend"),
]
# What tests/all has: each test, and its planted faults.
for name, files, has_plants in (
    ("backend", "examples/backend", True),
    ("backends", "examples/backend examples/python examples/node tests/all/backend.py", True),
    ("backends_redis", "examples/backend examples/fleet tests/all/backend.py", True),
    ("bindgen", "tests/tools/checks.sh", False),
    ("demo_full", "examples/demo-full examples/backend examples/fleet examples/metrics", True),
    ("docs", "examples README.md tests/README.md tests/tools/chromium.py tests/lint/readme.py", True),
    ("fleet", "examples/fleet examples/backend", True),
    ("match", "examples/backend examples/fleet tests/all/fleet.py tests/backend", True),
    ("metrics", "examples/metrics tests/all/metrics tests/all/metrics_text.c", False),
    ("mint", "tests/peer.py", False),
    ("node", "examples/node tests/all/python.py", True),
    ("packaging", "examples/packaging tests/all/packaging tests/tools/checks.sh", False),
    ("plots", "examples/metrics tests/all/metrics", False),
    ("python", "examples/python tests/all/backend.py", True),
    ("release", "tests/release", False),
    ("top", "examples/metrics tests/all/metrics", False),
    ("wireshark", "examples/wireshark", True),
):
    suffix = ".sh" if os.path.exists(os.path.join(TOP, "tests/all", name + ".sh")) else ".py"
    program = "tests/all/" + name + suffix
    command, files = ("sh " if suffix == ".sh" else "python3 ") + program, PROGRAMS + program + " " + files
    STEPS.append(("all: " + name, command, files))
    if has_plants:
        STEPS.append(("all: %s plants" % name, command + " --plants", files))
STEPS += [
    ("fresh", "make fresh", RUNNER + "README.md Makefile tests/tools/deps.sh"),
    ("newcomer", "make newcomer", "README.md Makefile tests/tools/need.sh examples/demo-full"),
    ("dist-check", "make dist-check", "Makefile tests/release"),
    ("release-check", "make release-check", "tests/release"),
]


def git(*words):
    result = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def read_table():
    """{step: (result, seconds, commit, date)}"""
    try:
        with open(os.path.join(TOP, TABLE), encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file if line.startswith("| ")]
    except FileNotFoundError:
        return {}
    return {row[0]: tuple(row[1:]) for row in rows if len(row) == 5 and row[0] != "step"}


def write_table(table):
    new = os.path.join(TOP, "build/nightly/table")
    with open(new, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for name, _, _ in STEPS:
            file.write("| %s | %s | %s | %s | %s |\n" % (name, *table.get(name, ("never run", "", "", ""))))
    os.replace(new, os.path.join(TOP, TABLE))


def is_same_tree(commit, *files):
    """Whether these files, or all but the table, are as they were at that commit."""
    return bool(commit) and git("diff", "--quiet", commit, "--", *(files or (".", ":!" + TABLE))) is not None


def compare(table):
    never, old, failed = [], [], []
    for name, _, files in STEPS:
        result, _, commit, _ = table.get(name, ("", "", "", ""))
        if not commit:
            never.append(name)
        elif result.startswith("FAILED"):
            failed.append(name)
        elif not is_same_tree(commit, "netcode.h", *files.split()):
            old.append(name)
    unknown = [name for name in table if name not in [step[0] for step in STEPS]]
    for title, names in (("steps never run", never), ("steps that failed when last run", failed), ("steps whose files have changed since", old),
                         ("rows of no step", unknown)):
        if names:
            print("nightly: %s: %d: %s" % (title, len(names), "; ".join(names)))


def end_all(child):
    """What a step leaves behind would be in the next one's way: its process group, and processes that left it and whose parents have ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # a second Ctrl-C, or hang-up, must not end this; it comes afterwards
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(60)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    path = "/proc/self/task/%d/children" % os.getpid()
    while os.path.exists(path) and (left := open(path, encoding="ascii").read().split()):
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def environment():
    """Without variables of make and of its command line, and those that the Makefile reads: `make nightly SEED=8` would be another test."""
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as file:
        gone = re.findall(r"\$\(([A-Z_]+)\)", file.read()) + ["MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKEOVERRIDES", "MAKELEVEL"]
    gone += [word.split("=")[0] for word in shlex.split(os.environ.get("MAKEFLAGS", "")) if "=" in word]
    return dict({name: value for name, value in os.environ.items() if name not in gone}, SKIPS="no", LC_ALL="C.UTF-8")


def run_step(name, command):
    """Its result, and the seconds that it took."""
    os.makedirs(os.path.join(TOP, "build/nightly"), exist_ok=True)
    path = os.path.join(TOP, "build/nightly", re.sub(r"\W+", "_", name) + ".log")
    begun = time.monotonic()
    with open(path, "w", encoding="utf-8") as log:
        child = subprocess.Popen(shlex.split(command), cwd=TOP, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                 env=environment())
        try:
            status = child.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            status = "none after %d s" % STEP_SECONDS
        finally:
            end_all(child)
    with open(path, encoding="utf-8", errors="replace") as log:
        summary = re.findall(SUMMARY, log.read(), re.M)[-1:]
    is_good = status == 0 and not any(re.search(r"\b[1-9]\d* (failed|missed)\b|\b0 passed, 0 failed\b", line) for line in summary)
    result = ": ".join(["passed" if is_good else "FAILED, status %s" % status] + [line.strip()[:100] for line in summary])
    return result, time.monotonic() - begun


def committed():
    """The commit that a result is of. Ends the run where there is none: git fails, or files differ from it."""
    if git("status", "--porcelain", "--untracked-files=all", "--", ".", ":!" + TABLE) != "":
        sys.exit("nightly: git fails, or there are changes that are not committed; a result would belong to no commit")
    return git("rev-parse", "--short=12", "HEAD")


def run(words, table):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: processes whose parents have ended become children of this one
    commit = committed()
    failed, chosen = 0, [step for step in STEPS if not words or any(word in step[0] for word in words)]
    if not chosen:
        sys.exit("nightly: no step is called that: " + " ".join(words))
    for name, command, _ in chosen:
        last = table.get(name, ("", "", "", ""))
        if not words and last[0].startswith("passed") and is_same_tree(last[2]):
            print("%-26s passed on this tree before" % name, flush=True)
            continue
        print("%-26s " % name, end="", flush=True)
        result, seconds = run_step(name, command)
        if committed() != commit:
            sys.exit("\nnightly: another commit was checked out meanwhile; what ran last has no result")
        print("%s, %.0f s" % (result, seconds), flush=True)
        failed += not result.startswith("passed")
        table[name] = (result, "%.0f" % seconds, commit, datetime.date.today().isoformat())
        write_table(table)
    return 1 if failed else 0


def main():
    words = sys.argv[1:]
    if words == ["--list"]:
        for name, command, _ in STEPS:
            print("%-26s %s" % (name, command))
        return 0
    if words == ["--compare"]:
        compare(read_table())
        return 0
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout.split(".")[0].strip()
    needs = NEEDS.split() + ["lib32gcc-%s-dev:/usr/lib/gcc/x86_64-linux-gnu/*/32/libgcc.a" % version]
    subprocess.run(["sh", "tests/tools/need.sh", *needs], cwd=TOP, check=True)
    return run(words, read_table())


if __name__ == "__main__":
    for number in ENDING[1:]:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda *_: sys.exit(1))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
