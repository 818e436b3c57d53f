#!/usr/bin/env python3
"""What `make engine` runs when both builds are there: Chocolate Doom as it is and with netcode.h, played side by side.

run.sh starts it in a network namespace of its own, which has loopback alone. The original's server and ours have two players each, on the
same map of FreeDM, in windows on virtual displays, who type, run and shoot. Each check prints a line; the last line counts them.

ENGINE_SECONDS=30 measures the servers' CPU for longer (12)."""

import glob
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build/engine")
TOKEN = os.path.join(ROOT, "build/token")
WAD = "/usr/share/games/doom/freedm.wad"

SECONDS = int(os.environ.get("ENGINE_SECONDS", "12"))  # of measuring the servers' CPU
WINDOW = 1.5  # seconds, each of which gives a ratio
TICS = 35  # of the game, a second
TIMEOUT = 4  # seconds of silence that end a connection, from the token
ORIGINAL_PORT, OURS_PORT, HOSTED_PORT = 2342, 2343, 2344
ABSURD = 10  # times the original's CPU

# What both servers and their players send that can be recognised: the game's name and its protocol's, the players' names, the server's.
NEEDLES = {
    "the game's name and version": b"Chocolate Doom",
    "the protocol's name": b"CHOCOLATE_DOOM_0",
    "a player's name": b"Marine Aleph",
    "the other's name": b"Marine Beth",
    "the server's name": b"Arena in the clear",
    "a player's address": b"127.0.0.1",
    "the magic number of a first packet": struct.pack(">I", 1454104972),
}
CHAT = "over netcode with you"

passed, failed = [], []
started = []


def check(good, text):
    print("%s: %s" % ("ok" if good else "FAIL", text), flush=True)
    (passed if good else failed).append(text)
    return good


# ---- processes ----


def start(name, command, log=True, **environment):
    """A process that ends with this one. What it prints goes to a file, line by line."""
    path = os.path.join(FOLDER, name + ".log")
    env = dict(os.environ, HOME=FOLDER, SDL_AUDIODRIVER="dummy", **environment)
    with open(path, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file if log else subprocess.DEVNULL, stderr=file, cwd=FOLDER, env=env)
    process.log = path
    started.append(process)
    return process


def read(process):
    with open(process.log, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait(condition, seconds):
    """The first true value of condition(), or what it is at the end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    return condition()


def stop(process, number=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stop_all():
    for process in reversed(started):
        stop(process, signal.SIGKILL)


def token(player, *options, key="game.key", address="127.0.0.1:%d" % OURS_PORT):
    name = "token-%d-%d" % (player, len(glob.glob(os.path.join(FOLDER, "token-*"))))
    command = [TOKEN, "mint", "--key-file", key, "--client-id", str(player), "--timeout", str(TIMEOUT), "--format", "base64", "--output", name]
    subprocess.run(command + list(options or ("--expire", "300")) + [address], cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)
    return name


def program(build, name):
    return ["stdbuf", "-oL", os.path.join(WORK, build, name), "-nogui"]


def server(build, name="server"):
    port = ORIGINAL_PORT if build == "original" else OURS_PORT
    options = ["-privateserver", "-port", str(port), "-servername", "Arena in the clear"]
    if build != "original":
        options += ["-netkey", "game.key", "-netaddress", "127.0.0.1:%d" % port]
    return start("%s-%s" % (build, name), program(build, "chocolate-server") + options)


def client(build, name, player, more=(), port=None, token_file=None, display=None):
    """A player. Without a display it has no window, but plays all the same."""
    port = port or (ORIGINAL_PORT if build == "original" else OURS_PORT)
    config = os.path.join(FOLDER, name)
    with open(config + ".extra", "w", encoding="utf-8") as file:
        file.write('player_name "%s"\nfullscreen 0\nwindow_width 320\nwindow_height 240\nforce_software_renderer 1\nshow_endoom 0\n' % player)
    options = ["-iwad", WAD, "-config", config + ".cfg", "-extraconfig", config + ".extra", "-nosound"]
    options += ["-connect", "127.0.0.1:%d" % port, "-nodes", "2", "-warp", "1", "-deathmatch", *more]
    if token_file:
        options += ["-nettoken", token_file]
    video = {"DISPLAY": display} if display else {"SDL_VIDEODRIVER": "dummy"}
    return start(name, program(build, "chocolate-doom") + options, **video)


def in_game(process):
    return "player 1 of 2" in read(process) or "player 2 of 2" in read(process)


def query(build, token_file=None):
    """The line that the engine prints of a server's state: how many play, and whether."""
    port = ORIGINAL_PORT if build == "original" else OURS_PORT
    command = program(build, "chocolate-doom") + ["-query", "127.0.0.1:%d" % port] + (["-nettoken", token_file] if token_file else [])
    env = dict(os.environ, HOME=FOLDER, SDL_VIDEODRIVER="dummy")
    done = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=20, check=False)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if "127.0.0.1:" in line or "Arena in" in line]
    return lines[-1] if lines else done.stderr.strip()


# ---- virtual displays ----


def displays(count):
    """Starts Xvfb that often and returns their names. Each has one window, which gets the keys."""
    names = []
    for number in range(count):
        ours, theirs = os.pipe()
        process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(theirs), "-screen", "0", "320x240x24", "-nolisten", "tcp"],
            pass_fds=[theirs], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        started.append(process)
        names.append(ours)
    for number, pipe in enumerate(names):
        with os.fdopen(pipe) as file:
            names[number] = ":" + file.readline().strip()
    return names


def keys(display, *arguments):
    subprocess.run(["xdotool", *arguments], env=dict(os.environ, DISPLAY=display), check=True, stdout=subprocess.DEVNULL)


def quit_game(display):
    keys(display, "key", "F10")
    time.sleep(0.3)
    keys(display, "key", "y")


def in_memory(process, text):
    """Whether a process has this text in memory that it can write to, in letters of either case."""
    pid = engine_pid(process)
    wanted = text.lower().encode()
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if not fields[1].startswith("rw") or line.rstrip().endswith("[vvar]"):
                continue
            low, high = (int(number, 16) for number in fields[0].split("-"))
            try:
                memory.seek(low)
                if wanted in memory.read(high - low).lower():
                    return True
            except (OSError, ValueError):
                pass
    return False


def engine_pid(process):
    return process.pid  # stdbuf becomes the program that it starts


# ---- the network ----


class Capture(threading.Thread):
    """Every UDP datagram on loopback: (source port, destination port, payload)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.socket.bind(("lo", 0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.datagrams = []

    def run(self):
        while True:
            data, address = self.socket.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING or data[9] != socket.IPPROTO_UDP:
                continue
            header = (data[0] & 15) * 4
            source, to, length = struct.unpack_from(">HHH", data, header)
            self.datagrams.append((source, to, data[header + 8:header + length]))

    def of(self, port):
        return [one for one in list(self.datagrams) if port in one[:2]]


def found(datagrams):
    return [name for name, needle in NEEDLES.items() if any(needle in one[2] for one in datagrams)]


def replay(datagrams, port=OURS_PORT):
    """Sends what clients sent once more: from their own addresses, and from others. Returns how many, and how many came back."""
    came_back = 0
    own, other = {}, {}
    for source, _, payload in datagrams:
        if source not in own:
            own[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            own[source].bind(("127.0.0.1", source))
            other[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for one in (own[source], other[source]):
            one.setblocking(False)
            one.sendto(payload, ("127.0.0.1", port))
        time.sleep(0.0005)
    time.sleep(0.3)
    for one in list(own.values()) + list(other.values()):
        try:
            while one.recv(2048):
                came_back += 1
        except BlockingIOError:
            pass
        one.close()
    return 2 * len(datagrams), came_back


# ---- the servers' CPU ----


def cpu(process):
    """Seconds that it has run, and how often it has slept: once for each frame of its loop."""
    with open("/proc/%d/schedstat" % engine_pid(process), encoding="utf-8") as file:
        seconds = int(file.read().split()[0]) / 1e9
    with open("/proc/%d/status" % engine_pid(process), encoding="utf-8") as file:
        frames = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M)[1])
    return seconds, frames


def measure(servers, seconds):
    """Both in the same windows of time. For each server: microseconds a frame and a tic; and the ratios of the windows."""
    rows = {name: [] for name in servers}
    for _ in range(max(3, round(seconds / WINDOW))):
        before = {name: cpu(process) + (time.monotonic(),) for name, process in servers.items()}
        time.sleep(WINDOW)
        for name, process in servers.items():
            used, frames = cpu(process)
            then_used, then_frames, then = before[name]
            rows[name].append((1e6 * (used - then_used) / max(1, frames - then_frames), 1e6 * (used - then_used) / (TICS * (time.monotonic() - then))))
    return rows


# ---- what is shown ----


def play():
    """Two players on each server, in windows; then what their servers say, what they say to each other, and what it costs."""
    servers = {"original": server("original"), "netcode": server("netcode")}
    screens = dict(zip(("original-1", "original-2", "netcode-1", "netcode-2"), displays(4)))
    wait(lambda: "server started" in read(servers["netcode"]), 5)
    players = {}
    for name, screen in screens.items():
        build, number = name.split("-")
        more = ["-record", name] if build == "netcode" else []
        ours = token(1000 + int(number)) if build == "netcode" else None
        players[name] = client(build, name, "Marine Aleph" if number == "1" else "Marine Beth", more, token_file=ours, display=screen)
    check(wait(lambda: all(in_game(one) for one in players.values()), 30), "two players are in the game, on the original's server and on ours")

    line = query("netcode", token(1003))
    check(re.search(r" 2/\d+ .*game running.*Arena in the clear", line), "the server's state, asked for over netcode, shows both: %s" % line)
    line = query("original")
    check(re.search(r" 2/\d+ .*game running.*Arena in the clear", line), "so does the original's, in the clear: %s" % line)

    before = in_memory(players["netcode-2"], CHAT)
    for name in ("netcode-1", "original-1"):
        keys(screens[name], "key", "t")
        keys(screens[name], "type", "--delay", "60", CHAT)
        keys(screens[name], "key", "Return")
    arrived = wait(lambda: in_memory(players["netcode-2"], CHAT), 5)
    check(arrived and not before, 'a player says "%s": the other\'s game has it, and had it not before' % CHAT)

    for name, screen in screens.items():
        keys(screen, "keydown", "Up", "keydown", "Left" if name.endswith("1") else "Right", "keydown", "Control_L")
    time.sleep(0.5)
    rows = measure(servers, SECONDS)
    frame = {name: statistics.median(one[0] for one in row) for name, row in rows.items()}
    tic = {name: statistics.median(one[1] for one in row) for name, row in rows.items()}
    ratios = sorted(ours[0] / theirs[0] for ours, theirs in zip(rows["netcode"], rows["original"]))
    ratio = statistics.median(ratios)
    check(ratio < ABSURD, "the server's CPU a frame: %.1f us, the original's %.1f us: ratio %.2f (%.2f to %.2f in %d windows; %.0f frames a second)" % (
        frame["netcode"], frame["original"], ratio, ratios[0], ratios[-1], len(ratios), TICS * tic["netcode"] / frame["netcode"]))

    for name, screen in screens.items():
        keys(screen, "keyup", "Up", "keyup", "Left" if name.endswith("1") else "Right", "keyup", "Control_L")
        quit_game(screen)
    ended = wait(lambda: all(one.poll() is not None for one in players.values()), 12)
    check(ended, "the players quit, and their games end%s" % "".join(", but not " + name for name, one in players.items() if one.poll() is None))
    same_game()
    return servers, screens["netcode-1"]


def same_game():
    """The engine records a game by the input of all players in each tic. The player that quits first has fewer tics."""
    files = []
    for number in (1, 2):
        try:
            with open(os.path.join(FOLDER, "netcode-%d.lmp" % number), "rb") as file:
                files.append(file.read())
        except OSError:
            files.append(b"")
    header, player_at = 13, 8  # of a demo; whose it is stands at 8
    tics = min((len(one) - header - 1) // 8 for one in files)  # two players, 4 bytes each
    one, two = (bytearray(data[:header + 8 * max(0, tics)]) for data in files)
    moved = sum(1 for tic in range(max(0, tics)) if one[header + 8 * tic:header + 8 * tic + 8] != b"\0" * 8)
    if tics > 0:
        one[player_at] = two[player_at] = 0
    check(tics > 100 and moved > 100 and one == two, "both players' recordings of the game are the same: %d tics, input in %d of them" % (tics, moved))


def clear(capture):
    theirs, ours = capture.of(ORIGINAL_PORT), capture.of(OURS_PORT)
    missing = sorted(set(NEEDLES) - set(found(theirs)))
    check(not missing, "the original's %s show in the clear: %s%s" % (
        size(theirs), ", ".join(found(theirs)), "; NOT FOUND: " + ", ".join(missing) if missing else ""))
    check(len(ours) > 500 and not found(ours), "none of that is in our %s%s" % (size(ours), ": " + ", ".join(found(ours)) if found(ours) else ""))


def size(datagrams):
    return "%d datagrams (%.0f KB)" % (len(datagrams), sum(len(one[2]) for one in datagrams) / 1000)


def replays(capture, servers):
    """The whole session of both players, to the server that had it and to one that was started afresh with the same key. What the
    original's players began with lets them in again."""
    stop(servers["original"])
    servers["original"] = server("original", "server-afresh")
    time.sleep(0.5)
    first = [one for one in capture.of(ORIGINAL_PORT) if one[1] == ORIGINAL_PORT and NEEDLES["a player's name"] in one[2]][:1]
    replay(first, ORIGINAL_PORT)
    line = query("original")
    check(re.search(r" [12]/", line), "one recorded datagram sent again to the original's server lets a player in: it has %s" % line)

    session = [one for one in capture.of(OURS_PORT) if one[1] == OURS_PORT]
    for fresh in (False, True):
        if fresh:
            stop(servers["netcode"])
            servers["netcode"] = server("netcode", "server-afresh")
            wait(lambda: "server started" in read(servers["netcode"]), 5)
        before = read(servers["netcode"]).count("connected to slot")
        sent, came_back = replay(session)
        connected = read(servers["netcode"]).count("connected to slot") - before
        line = query("netcode", token(1004))
        check(sent > 1000 and connected == 0 and " 0/" in line, "%d recorded datagrams sent again, to %s: no client is connected, %d datagrams come back; it has %s" % (
            sent, "a server started afresh" if fresh else "the same server", came_back, line))


def refused(capture, servers, used):
    """Clients that must not get in, all at the same time, and a pair that plays meanwhile."""
    with open(os.path.join(FOLDER, "junk"), "wb") as file:
        file.write(b"no token" * 40)
    before = len(capture.datagrams)
    cases = {
        "no token": (None, "with a connect token only"),
        "a token of another key": (token(2001, key="other.key"), None),
        "an expired token": (token(2002, "--expire", "0"), "expired"),
        "another server's token": (token(2003, address="127.0.0.1:2999"), "for another server"),
        "a token that is none": ("junk", "holds no connect token"),
        "a token that was used": (used, None),
    }
    clients = {name: client("netcode", "refused-%d" % number, "Mallory", token_file=one) for number, (name, (one, _)) in enumerate(cases.items())}
    old = client("original", "refused-original", "Mallory", port=OURS_PORT)
    wait(lambda: all(one.poll() is not None for one in list(clients.values()) + [old]), 20)
    for name, (_, sentence) in cases.items():
        text = read(clients[name])
        said = re.search(r"Failed to connect to \S+\s*\n(.+)", text) or re.search(r"netcode: (the file .+)", text)
        said = said[1] if said else ""
        good = clients[name].poll() not in (None, 0) and said and (sentence or "refuses the token") in said
        check(good, "%s: the engine ends with \"%s\"" % (name, said or text[-200:]))
    answers = [one for one in capture.datagrams[before:] if one[0] == OURS_PORT and b"Chocolate" in one[2]]
    check(old.poll() not in (None, 0) and not answers, "the original's client gets no reply: \"%s\"" % (re.findall(r"\n(No response.*)", read(old)) or [read(old)[-200:]])[0])
    for reason in ("the connect token was not sealed with", "the connect token has connected someone already"):
        lines = re.findall(r"netcode: server kept \S+ out: (%s[^(]*)" % reason, read(servers["netcode"]))
        check(lines, "the server's log says why: \"%s\"" % "".join(lines[:1]).strip())


def hosted(display):
    """A player whose own game is the server, and one who joins it."""
    host = ["-privateserver", "-netkey", "game.key", "-netaddress", "127.0.0.1:%d" % HOSTED_PORT]
    guest = token(3001, address="127.0.0.1:%d" % HOSTED_PORT)
    first = client("netcode", "hosted-1", "Marine", host, display=display)
    first.display = display
    wait(lambda: "server started" in read(first), 10)
    return [first, client("netcode", "hosted-2", "Marine", ["-nodraw"], port=HOSTED_PORT, token_file=guest)]


def hosted_end(host, guest):
    quit_game(host.display)
    ended = wait(lambda: host.poll() is not None and "Disconnected from server" in read(guest), 12)
    waited = "Timed out waiting for clients" in read(host)
    check(ended and host.returncode == 0 and not waited, "the host quits: its game ends at once, and the other's leaves it")


def killed(servers, players):
    """A player whose process is killed, and one who plays on."""
    process = players[1]
    process.kill()
    process.wait()
    since = time.monotonic()
    gone = wait(lambda: re.search(r"client 1006 at .* it timed out", read(servers["netcode"])), TIMEOUT + 4)
    seconds = time.monotonic() - since
    check(gone and TIMEOUT - 1 < seconds < TIMEOUT + 3, "a player is killed: the server notices after %.1f s (the token says %d; the engine's own limit is 30)" % (seconds, TIMEOUT))
    line = query("netcode", token(1007))
    check(re.search(r" 1/\d+ .*game running", line) and players[0].poll() is None, "the other plays on: %s" % line)

    servers["netcode"].kill()
    servers["netcode"].wait()
    since = time.monotonic()
    gone = wait(lambda: "Disconnected from server" in read(players[0]), TIMEOUT + 4)
    seconds = time.monotonic() - since
    said = re.findall(r"netcode: 127.0.0.1:%d: (.*)" % OURS_PORT, read(players[0]))
    check(gone and said and TIMEOUT - 1 < seconds < TIMEOUT + 3, "the server is killed: the other's game leaves it after %.1f s: \"%s\"" % (seconds, "".join(said)))


def main():
    for key in ("game.key", "other.key"):
        subprocess.run([TOKEN, "keygen", "--output", key], cwd=FOLDER, check=True)
    capture = Capture()
    capture.start()
    servers, display = play()
    clear(capture)
    replays(capture, servers)
    used = token(1008)
    query("netcode", used)
    players = [client("netcode", "second-%d" % number, "Marine", ["-nodraw"], token_file=token(1004 + number)) for number in (1, 2)]  # 1005, 1006
    refused(capture, servers, used)
    pair = hosted(display)
    if check(wait(lambda: all(in_game(one) for one in players), 15), "meanwhile two players with tokens are in the game"):
        killed(servers, players)
    if check(wait(lambda: all(in_game(one) for one in pair), 10), "and two in a game that one of them hosts"):
        hosted_end(*pair)
    print("engine: %d passed, %d failed" % (len(passed), len(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="netcode-engine-") as FOLDER:
        try:
            STATUS = main()
        finally:
            stop_all()
            kept = os.path.join(WORK, "logs")
            os.makedirs(kept, exist_ok=True)
            for path in glob.glob(os.path.join(FOLDER, "*.log")):
                with open(path, encoding="utf-8", errors="replace") as one, open(os.path.join(kept, os.path.basename(path)), "w", encoding="utf-8") as copy:
                    copy.write(one.read())
    sys.exit(STATUS)
