#!/usr/bin/env python3
"""What `make arena` runs: the game of examples/arena, from its bits to a window, in real processes on loopback.

    run.py            every part
    run.py WORD...    those whose titles hold one of these words; `smoke` plays for seconds, and nothing in it is judged by time

ARENA_SECONDS=10 makes the minute of 64 bots shorter. Every part prints a line, with what it measured; the last line counts them."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "tools")]
import views  # noqa: E402
from waiting import LIMIT_SECONDS, SKIPS_FAIL, TimedOut, refuse_unknown, until  # noqa: E402

SECONDS = int(os.environ.get("ARENA_SECONDS", "60"))
FUZZ_SECONDS = int(os.environ.get("ARENA_FUZZ_SECONDS", "10"))
MAX_LINES = 600  # of a file that is to be read from top to bottom
WARM = 5  # seconds: joining, and clocks that find their pace
SNAPSHOT_TICKS = 2  # as arena_net.h has it

passed, failed, skipped = [], [], []
running = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


def built(name):
    return os.path.join(ROOT, "build", name)


def place(name):
    return os.path.join(FOLDER, name)


def address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % one.getsockname()[1]


def start(name, *options, **more):
    log = open(place("%s-%d.log" % (name, len(running))), "w+", encoding="utf-8")
    process = subprocess.Popen([built(name), *map(str, options)], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)
    process.log = log
    running.append(process)
    return process


def text(process):
    process.log.flush()
    with open(process.log.name, encoding="utf-8", errors="replace") as file:
        return file.read()


def end(process, seconds=0):
    """Waits until it has ended by itself, which it does after so many seconds or at once; its words."""
    try:
        status = process.wait(seconds + LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure("it did not end: " + text(process)) from None
    expect(status == 0, "it ended with %s: %s" % (status, text(process)))
    return text(process)


def stop(process):
    """Asks it to end, and returns its words and the seconds of CPU that it took."""
    with open("/proc/%d/stat" % process.pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    process.terminate()
    return end(process), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(words):
    """The figures of the line that begins with `summary`."""
    found = re.findall(r"^summary (.*)$", words, re.M)
    expect(found, "there is no summary: " + words)
    return {name: float(value) for name, value in re.findall(r"(\w+)=(-?[0-9.]+)", found[-1])}


def serve(*options):
    """A server that is ready, and its address."""
    at = address()
    server = start("arena-server", "--address", at, *options)
    until(lambda: "the arena is open" in text(server), "a server")
    return server, at


def relay(to, seconds, *options):
    at = address()
    process = start("relay", "--listen", at, "--to", to, "--seconds", seconds, *options)
    until(lambda: "listening" in text(process), "a relay")
    return process, at


def check_limits(figures, limits):
    """limits: (name, most). Returns a line of figures with their limits; fails where one is beyond."""
    beyond = [name for name, most in limits if figures[name] > most]
    line = ", ".join("%s %g (limit %g)" % (name, figures[name], most) for name, most in limits)
    expect(not beyond, line)
    return line


# ---- the parts ----


def check_files():
    """No file to copy is longer than one sitting."""
    lines = {}
    folder = os.path.join(ROOT, "examples", "arena")
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".h", ".mjs")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                lines[name] = len(file.readlines())
    long = [name for name, count in lines.items() if count > MAX_LINES]
    expect(not long, "more than %d lines: %s" % (MAX_LINES, ", ".join(long)))
    return ", ".join("%s %d" % item for item in lines.items())


def crowd(seconds, limits, *network):
    """64 bots through a relay."""
    server, at = serve()
    way, via = relay(at, seconds + 5, "--seed", 7, *network)
    bots = start("arena-bots", "--address", at, "--via", via, "--bots", 64, "--seconds", seconds)
    words = end(bots, seconds)
    of_server, cpu = stop(server)
    figures = summary(words)
    of_server = summary(of_server)
    expect(figures["playing"] == 64, words)
    expect(of_server["wrong"] == 0, "the server was sent what it does not understand")
    figures["cpu_ms_a_tick"] = round(1000 * cpu / of_server["ticks"], 2)
    figures["late_percent"] = of_server["missed_percent"]
    end(way, seconds)
    return check_limits(figures, limits)


# What was measured on a shared machine with two cores, which bots, relay and server share: in brackets behind each.
def check_crowd():
    limits = (
        ("screen_p99_ms", 350),  # (263)
        ("confirmed_p99_ms", 300),  # (200)
        ("corrections_per_minute", 6),  # (0 to 0.1)
        ("bytes_down", 14000),  # a second and player, without the headers of UDP (8,200 to 9,800)
        ("bytes_up", 5000),  # (3,700)
        ("cpu_ms_a_tick", 4),  # of 16.7 (0.9)
        ("late_percent", 6),  # commands that came after their tick, those of the first second too (0.9)
    )
    return crowd(SECONDS, limits, "--delay", 50, "--jitter", 10, "--loss", 3)


def check_far_crowd():
    limits = (("screen_p99_ms", 450), ("confirmed_p99_ms", 400), ("corrections_per_minute", 12), ("bytes_down", 14000), ("late_percent", 12))
    return crowd(max(15, SECONDS // 3), limits, "--delay", 100, "--jitter", 10, "--loss", 3)


def check_bad_network():
    """Eight players on a network that no one would play on: no player is disconnected, and what they see is what there is, later."""
    server, at = serve("--trace", place("bad-server"))
    way, via = relay(at, 25, "--seed", 3, "--delay", 80, "--jitter", 40, "--loss", 15, "--duplicate", 5, "--reorder", 5)
    words = end(start("arena-bots", "--address", at, "--via", via, "--bots", 8, "--seconds", 20, "--trace", place("bad-bots")), 20)
    stop(server)
    end(way, 25)
    figures = summary(words)
    expect(figures["playing"] == 8, words)
    # Where several snapshots in a row are lost, and it waits for the next, a view may be two tiles and a half off.
    right, line = views.compare(place("bad-server"), [place("bad-bots")], most=640)
    expect(right, line)
    return check_limits(figures, (("screen_p99_ms", 700), ("confirmed_p99_ms", 500))) + "; " + line


def check_moves():
    """A bad router gives every player another port each three seconds."""
    server, at = serve()
    way, via = relay(at, 20, "--delay", 20, "--rebind-every", 3)
    words = end(start("arena-bots", "--address", at, "--via", via, "--bots", 8, "--seconds", 14), 14)
    of_server, _ = stop(server)
    end(way, 25)
    expect(summary(words)["playing"] == 8, words)
    figures = summary(of_server)
    expect(figures["moves"] >= 8 * 2 and figures["joined"] == 8, of_server)
    return "%d moves, %d joined" % (figures["moves"], figures["joined"])


def screen():
    if not shutil.which("Xvfb"):
        raise Skip("no Xvfb (package xvfb)")
    # It takes the first number that is free, and says which when it is ready. Its pixels are in a file.
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp", "-fbdir", FOLDER]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    running.append(process)
    return dict(os.environ, DISPLAY=":" + process.stdout.readline().strip(), SDL_AUDIODRIVER="dummy")


def colors_of(path):
    """How many different colours a BMP of 32 bits has: a blank window has one."""
    with open(path, "rb") as file:
        data = file.read()
    pixels = data[int.from_bytes(data[10:14], "little") :]
    return len({pixels[at : at + 3] for at in range(0, len(pixels) - 3, 4 * 97)})


def others_on_screen():
    """Which of slots 1 and 2 are on the screen now, by client.c's colours. Its last 200 rows are no map: names and curves have these colours too."""
    with open(place("Xvfb_screen0"), "rb") as file:
        map_rows = file.read()[-1000 * 1400 * 4 : -200 * 1400 * 4]
    return {slot for slot, color in ((1, 0x4DABF7), (2, 0x69DB7C)) if color.to_bytes(3, "little") in map_rows}


def check_window():
    """A window and 14 bots: what the window draws is what the server knows."""
    environment = screen()
    server, at = serve("--trace", place("match-server"))
    bots = start("arena-bots", "--address", at, "--bots", 14, "--seconds", 20, "--trace", place("match-bots"))
    window = start("arena-client", "--address", at, "--bot", "--name", "Alice", "--seconds", 16, "--trace", place("match-window"), "--picture", place("window.bmp"), env=environment)
    words = end(window, 16)
    end(bots, 20)
    stop(server)
    figures = summary(words)
    expect(figures["playing"] == 1 and figures["frames"] > 16 * 15, words)
    expect(colors_of(place("window.bmp")) > 10, "the picture is nearly blank")
    if os.environ.get("ARENA_PICTURES"):
        shutil.copy(place("window.bmp"), os.environ["ARENA_PICTURES"])
    right, line = views.compare(place("match-server"), [place("match-bots"), place("match-window")])
    expect(right, line)
    return "%d frames; %s" % (figures["frames"], line)


def travelled(trace):
    """The slots of those whom the server has seen at a hundred places, and of those who were there in its newest tick that is written."""
    rows = [players for _, players in views.read(trace)]
    places = {slot: {players[slot][:2] for players in rows if slot in players} for slot in range(3)}
    return {slot for slot in places if len(places[slot]) > 100}, set(rows[-1] if rows else ())


def check_smoke():
    """A window and two bots come in, walk and leave. How long each of that takes is not asked."""
    environment = screen()
    trace, drawn, seen = place("smoke"), place("smoke-window"), set()
    server, at = serve("--trace", trace)
    window = start("arena-client", "--address", at, "--bot", "--name", "Alice", "--picture", place("smoke.bmp"), "--trace", drawn, env=environment)
    until(lambda: travelled(trace)[0] == {0} or window.poll() is not None, "a window whose player walks", pause=0.2)
    expect(not others_on_screen(), "a player is drawn who has not come in")
    bots = start("arena-bots", "--address", at, "--bots", 2, "--seconds", 600)
    until(lambda: travelled(trace)[0] == {0, 1, 2} or window.poll() is not None, "two bots that walk", pause=0.2)
    until(lambda: seen.update(others_on_screen()) or seen == {1, 2} or window.poll() is not None, "both bots in the window", pause=0.1)
    words = stop(window)[0]
    figures = summary(words)
    expect(figures["playing"] == 1, words)
    expect(colors_of(place("smoke.bmp")) > 10, "the picture is nearly blank")
    until(lambda: travelled(trace)[1] == {1, 2}, "a server that knows who left", pause=0.2)
    words = stop(bots)[0]
    expect(summary(words)["playing"] == 2, words)
    words = stop(server)[0]
    expect(summary(words)["joined"] == 3, words)
    # Of the server's ticks, not of a time: up to the last that the window drew, so that no pause before its end counts.
    newest = views.read(drawn)[-1][0][1]
    sent = sum(0 in players and tick <= newest for (tick,), players in views.read(trace)) // SNAPSHOT_TICKS
    line = "%d frames, %d of %d snapshots" % (figures["frames"], figures["snapshots"], sent)
    expect(sent > 0 and figures["snapshots"] > 0.75 * sent, line)
    return line


def check_dialog():
    """A window that can not connect says why."""
    environment = screen()
    # No port that the system gives away is 9: nobody has it.
    window = start("arena-client", "--address", "127.0.0.1:9", "--seconds", LIMIT_SECONDS, "--picture", place("sorry.bmp"), env=environment)
    status = window.wait(2 * LIMIT_SECONDS)
    words = text(window)
    expect(status == 1 and "can not be reached" in words, "status %s: %s" % (status, words))
    expect(colors_of(place("sorry.bmp")) > 2, "the picture is blank")
    return '"%s"' % words.strip().splitlines()[-1]


def run(command, pattern):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1:] or [""]
    expect(done.returncode == 0, "%s ended with %d:\n%s" % (" ".join(command), done.returncode, done.stdout[-3000:]))
    expect(re.search(pattern, done.stdout), done.stdout[-3000:])
    return last[0]


def check_tutorial():
    """Its servers have the ports that stand in it: in a network of their own they are free."""
    command = [sys.executable, os.path.join(HERE, "tutorial.py")]
    return run(command, r"(?m)^tutorial: \d+ files")


PARTS = [
    ("files: each can be read from top to bottom", check_files),
    ("unit: bits, messages, rules, and games in virtual time", lambda: run([built("arena-unit")], r"arena-unit: \d+ passed, 0 failed")),
    ("sanitizers: the same with those of addresses and undefined behaviour", lambda: run([built("arena-unit-san")], r"arena-unit: \d+ passed, 0 failed")),
    ("fuzz: libFuzzer on all readers, %d s" % FUZZ_SECONDS, lambda: run(["sh", "tests/arena/fuzz.sh", str(FUZZ_SECONDS)], r".")),
    ("faults: each text to be changed stands in its file", lambda: run([sys.executable, "tests/arena/faults.py", "--stale"], r"faults, 0 wrong")),
    ("tutorial: it compiles, runs and prints what it says", check_tutorial),
    ("crowd: 64 bots, 100 ms round trip, 3 %% loss, %d s" % SECONDS, check_crowd),
    ("far crowd: 64 bots, 200 ms round trip, 3 % loss", check_far_crowd),
    ("bad network: 8 bots, 160 ms +- 80, 15 % loss", check_bad_network),
    ("moves: every port changes each three seconds", check_moves),
    ("window: it draws what the server knows", check_window),
    ("dialog: why it can not connect", check_dialog),
    ("smoke: a window and two bots walk", check_smoke),
]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    words = sys.argv[1:]
    refuse_unknown(words, [title for title, _ in PARTS])
    for title, part in PARTS:
        if words and not any(word in title for word in words):
            continue
        begun = time.monotonic()
        try:
            detail = part()
            passed.append(title)
            print("ok     %s (%.0f s)\n         %s" % (title, time.monotonic() - begun, detail), flush=True)
        except Skip as why:
            skipped.append(title)
            print("skipped %s: %s" % (title, why), flush=True)
        except (Failure, TimedOut, OSError, subprocess.SubprocessError) as why:
            failed.append(title)
            print("FAILED %s: %s" % (title, why), flush=True)
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            running.clear()
    print("arena: %d passed, %d failed, %d skipped" % (len(passed), len(failed), len(skipped)))
    return 1 if failed or not passed or (skipped and SKIPS_FAIL) else 0


def inside_own_network():
    """Runs this again where there is no other program that could take a port which address() found free."""
    own = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "arena"]
    if not os.environ.get("ARENA_INSIDE") and subprocess.run(own + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.environ["ARENA_INSIDE"] = "1"
        os.execvp(own[0], own + [sys.executable, *sys.argv])


if __name__ == "__main__":
    inside_own_network()
    FOLDER = tempfile.mkdtemp(prefix="arena-")
    try:
        sys.exit(main())
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
        shutil.rmtree(FOLDER, ignore_errors=True)
