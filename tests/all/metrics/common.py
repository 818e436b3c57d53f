"""What the tests of examples/metrics/ share: checks that are counted, programs that are built and ended, a folder that goes away."""
import atexit
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
from waiting import LIMIT_SECONDS, SKIPS_FAIL, TimedOut, refuse_unknown, until  # noqa: E402

BUILD = os.path.join(ROOT, "build", "all", "metrics-san" if os.environ.get("SANITIZE") else "metrics")
CC = os.environ.get("CC", "cc").split()
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion -Werror".split()
SANITIZE = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all".split() if os.environ.get("SANITIZE") else []

counts = {"passed": 0, "failed": 0, "skipped": 0}
running = []
built = {}
folder = tempfile.mkdtemp(prefix="netcode-metrics-")


def check(name, good, detail=""):
    counts["passed" if good else "failed"] += 1
    print(("ok      " if good else "FAILED  ") + name + (": " + str(detail) if detail and not good else ""), flush=True)
    return bool(good)


def skip(name, why):
    counts["skipped"] += 1
    print("skipped " + name + ": " + why, flush=True)


def finish(name):
    line = "%s: %d passed, %d failed" % (name, counts["passed"], counts["failed"])
    print(line + (", %d skipped" % counts["skipped"] if counts["skipped"] else ""), flush=True)
    sys.exit(1 if counts["failed"] or not counts["passed"] or (counts["skipped"] and SKIPS_FAIL) else 0)


def stop(process, number=signal.SIGTERM):
    """Ends one of our own programs, and says what its status was."""
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process in running:
        running.remove(process)
    return process.returncode


def clean():
    for process in list(running):
        stop(process)
    shutil.rmtree(folder, ignore_errors=True)


def on_signal(number, _):
    sys.exit(128 + number)


atexit.register(clean)
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGINT, on_signal)
os.chdir(ROOT)


def need(*packages):
    """RUNLEVEL=1: where there is no systemd, Debian's scripts start no service of a package that is installed. Who may not install what is
    missing skips the test, by name; an installation that fails is a failure."""
    environment = dict(os.environ, RUNLEVEL="1")
    result = subprocess.run(["sh", "tests/tools/need.sh"] + list(packages), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said_there = result.stdout.decode(errors="replace")
    print(said_there, end="", flush=True)
    if result.returncode == 0:
        return
    name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    if "apt-get failed" in said_there or "after that" in said_there:
        check("its packages", False)
        finish(name)
    skip("all of it", said_there.splitlines()[0] if said_there else "need.sh says nothing")
    print("%s: 0 passed, 0 failed, 1 skipped" % name)
    sys.exit(1 if SKIPS_FAIL else 0)


def words(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split()


def sodium():
    subprocess.run(["sh", "tests/tools/deps.sh"], env=dict(os.environ, DEPS="no"), check=True)
    return words("sh", "tests/tools/deps.sh", "--cflags") + words("sh", "tests/tools/deps.sh", "--libs")


def compile_quietly(command):
    """A compiler's own temporary files go away with our folder, even when it is interrupted."""
    return subprocess.run(command, env=dict(os.environ, TMPDIR=folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def build(name, source, flags, extra=()):
    """NAME in BUILD, again only when something that it may be made of is newer."""
    if name in built:
        return built[name]
    path = built[name] = os.path.join(BUILD, name)
    os.makedirs(BUILD, exist_ok=True)
    parts = glob.glob("examples/*.[ch]") + glob.glob("examples/metrics/*.[ch]") + glob.glob("examples/fleet/*.h") + ["netcode.h", source]
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path) and os.path.getmtime(path) >= max(os.path.getmtime(part) for part in parts):
            return path
        new = "%s.%d" % (path, os.getpid())
        command = CC + ["-std=gnu99", "-O1", "-g", "-I."] + WARNINGS + SANITIZE + list(extra) + [source] + flags + ["-lm", "-o", new]
        result = compile_quietly(command)
        if result.returncode != 0:
            print(result.stdout.decode(errors="replace"))
            print("can not be compiled: " + " ".join(command))
            sys.exit(1)
        os.rename(new, path)
    return path


def build_serve():
    return build("metrics-serve", "examples/metrics/serve.c", sodium() + words("pkg-config", "--cflags", "--libs", "libmicrohttpd") + ["-pthread"])


def build_record():
    return build("metrics-record", "examples/metrics/record.c", sodium())


def build_relay():
    return build("relay", "tests/tools/relay.c", [])


def build_top():
    return build("metrics-top", "examples/metrics/top.c", words("pkg-config", "--cflags", "--libs", "libcurl", "ncurses"))


def start(command, log, **more):
    """Runs a program with its output in a file of the folder."""
    with open(os.path.join(folder, log), "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **more)
    running.append(process)
    return process


def text_of(log):
    with open(os.path.join(folder, log), errors="replace") as file:
        return file.read()


def wait_for(what):
    """The first true answer of `what`, or None where there is none: a check says so then."""
    try:
        return until(what)
    except TimedOut:
        return None


def said(log, words_before):
    """What follows these words in a program's output, once it says them."""
    def look():
        for line in text_of(log).splitlines():
            if words_before in line:
                return line.split(words_before, 1)[1].split()[0].rstrip(",")
        return None
    answer = wait_for(look)
    if not answer:
        print("a program did not say '%s'; it said: %s" % (words_before, text_of(log)))
        sys.exit(1)
    return answer


def start_serve(*options, log="serve.log"):
    """A server with messages: the process, its address and the address of its metrics."""
    process = start([build_serve(), "--address", "127.0.0.1:0", "--metrics", "0", "--seconds", "1000"] + list(options), log)
    address = said(log, "listening on ")
    return process, address, said(log, "metrics on ")
