#!/usr/bin/env python3
"""What `make godot` runs: the plug-in of examples/godot, in the engine and without it, in a network namespace of its own where that can be had.

    run.py            every part
    run.py WORD...    those of: unit engine picture smoke engine4

unit     the engine-free part with sanitizers, in virtual time
engine   godot3-server processes (GODOT3_SERVER: another command): a server, two clients behind a relay that loses 5 %, players that are refused; C clients, one of them hostile
picture  the demo project in godot3 under a virtual display: host, join, and a picture that is not blank (PICTURE=FILE keeps it)

smoke    of engine what no clock judges, in seconds: a server, two clients without a relay; only when asked for
engine4  the same as engine in Godot 4, only when asked for: GODOT4 is the command that runs it

Each line that begins with "ok:" is something that was shown. The last line counts them."""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
from waiting import LIMIT_SECONDS, TimedOut, until  # noqa: E402

BUILT = os.path.join(ROOT, "build", "godot")
PLUGIN = os.path.join(BUILT, "libnetcode_godot.so")
# What part_engine runs: Godot 3, unless part_engine4 changes it.
ENGINE = {"command": os.environ.get("GODOT3_SERVER", "godot3-server").split(), "separator": [], "client": [], "project": "project", "plugin": PLUGIN}
PARTS = ("unit", "engine", "picture", "smoke", "engine4")
PINGS = 200
HOSTILE_TOKENS = 24
LOSS = 5  # percent, each way
REBIND_SECONDS = 5  # after which the relay changes the clients' addresses, again and again

passed, failed = [], []
running = []


def check(good, text, more=""):
    more = more[-3000:]
    print("%s: %s%s" % ("ok" if good else "FAILED", text, "" if good or not more else "\n    " + more.replace("\n", "\n    ")), flush=True)
    (passed if good else failed).append(text)
    return good


def inside_own_network():
    """Runs this again where there is no network but loopback. Without the right to that, loopback of this machine has to do."""
    if os.environ.get("GODOT_TEST_INSIDE"):
        return
    environment = dict(os.environ, GODOT_TEST_INSIDE="1")
    command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
    if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.execvpe(command[0], command, environment)  # in the place of this one, so that signals reach it


class Process:
    def __init__(self, title, *command, **variables):
        self.title = title
        self.path = os.path.join(FOLDER, title + ".log")
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=dict(environment(), **variables))
        running.append(self)

    def text(self):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def find(self, pattern):
        return re.search(pattern, self.text(), re.M)

    def wait_for(self, pattern):
        return wait_for(pattern, self)

    def end(self):
        """Its status; None if it had to be stopped."""
        try:
            return self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def errors(self):
        """Crashes, and mistakes in scripts."""
        signs = ("handle_crash", "Program crashed", "SCRIPT ERROR", "Parse Error", "AddressSanitizer")
        return "\n".join(line for line in self.text().splitlines() if any(sign in line for sign in signs))


def wait_for(pattern, *processes):
    """The first match in what they print; None if all ended without, or it does not come."""
    def look():
        ended = all(one.process.poll() is not None for one in processes)  # before the look: what they printed last counts
        return next(filter(None, (one.find(pattern) for one in processes)), ended)
    try:
        found = until(look, pattern)
    except TimedOut:
        return None
    return None if found is True else found


def environment():
    """The engine writes to its user's folders: these are the test's own."""
    home = os.path.join(FOLDER, "home")
    for part in (".config", ".cache", ".local/share", "run"):
        os.makedirs(os.path.join(home, part), exist_ok=True)
    return dict(os.environ, HOME=home, XDG_RUNTIME_DIR=os.path.join(home, "run"), XDG_CONFIG_HOME=home + "/.config", XDG_CACHE_HOME=home + "/.cache",
                XDG_DATA_HOME=home + "/.local/share", LANG="en_US.UTF-8", LC_ALL="en_US.UTF-8")


def free_ports(count):
    """Held together: a socket that is opened when another is closed may get its port."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def go(name):
    with open(os.path.join(TOKENS, name + ".go"), "w", encoding="ascii"):
        pass


# ---- unit ----


def part_unit():
    output = subprocess.run([os.path.join(BUILT, "unit")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    count = re.search(r"^godot-unit: (\d+) passed, 0 failed$", output.stdout, re.M)
    check(output.returncode == 0 and count is not None,
          "the engine-free part passes its %s tests with the address and undefined behaviour sanitizers" % (count[1] if count else ""), output.stdout)
    long = [os.path.basename(name) for name in glob.glob(os.path.join(ROOT, "examples", "godot", "*.[ch]")) if sum(1 for _ in open(name, "rb")) > 600]
    check(not long, "no file to read is longer than 600 lines", ", ".join(long))


# ---- engine ----


def engine(title, *options):
    return Process(title, *ENGINE["command"], "--path", PROJECT, *ENGINE["separator"], "--folder=" + TOKENS, *options)


def check_start(server, client_a, client_b, way):
    id_a = client_a.wait_for(r"^test: client_a connected id=(\d+) status=2$")
    id_b = client_b.wait_for(r"^test: client_b connected id=(\d+) status=2$")
    both = id_a is not None and id_b is not None
    if not check(both, "two clients connect to a server, all three processes of the engine, " + way,
                 server.text() + client_a.text() + client_b.text()):
        return 0, 0
    id_a, id_b = int(id_a[1]), int(id_b[1])
    check(server.find(r"^test: server ready id=1 server=[Tt]rue status=2") and id_a > 1 and id_b > 1 and id_a != id_b,
          "the server has id 1, and gave each client an id of its own")
    check(server.wait_for(r"connected id=%d client_id=1001 data=player a " % id_a) and server.wait_for(r"connected id=%d client_id=1002 data=player b " % id_b),
          "the server knows the player and the user data of each one's token")
    check(client_a.wait_for(r"^test: client_a peer_connected id=%d$" % id_b) and client_b.wait_for(r"^test: client_b peer_connected id=%d$" % id_a),
          "each client is notified of the other")
    return id_a, id_b


def check_relayed(client_a, client_b, id_a, id_b):
    check(client_b.wait_for(r"^test: client_b hello from=%d text=only for you$" % id_a) and
          client_a.wait_for(r"^test: client_a hello_back from=%d text=only for you: thank you$" % id_b),
          "an RPC from client to client, and back; the server relays it under its sender's id")


def check_play(server, client_a, client_b, id_a, id_b):
    results = {}
    for mode in ("reliable", "ordered", "unreliable"):
        found = client_a.wait_for(r"^test: client_a result %s count=(\d+) increasing=(\w+)$" % mode)
        results[mode] = (int(found[1]), found[2].lower() == "true") if found else (0, False)
    check(results["reliable"] == (PINGS, True), "all %d reliable RPCs arrive, in order" % PINGS, str(results))
    for mode, title in (("ordered", "unreliable ordered packets"), ("unreliable", "unreliable RPCs")):
        count, increasing = results[mode]
        good = 0.85 * PINGS < count < PINGS and (increasing or mode == "unreliable")
        check(good, "%d of %d %s arrive%s: the others are lost on the way" % (count, PINGS, title, ", none older than one before it" if mode == "ordered" else ""),
              str(results))
    check_relayed(client_a, client_b, id_a, id_b)
    check(server.wait_for(r"^test: server everyone from=%d number=7$" % id_a) and client_b.wait_for(r"^test: client_b everyone from=%d number=7$" % id_a),
          "an RPC to all reaches the server and the other client")
    check(client_a.wait_for(r"^test: client_a not_for own=[Ff]alse$") and not client_b.find("not_for"), "an RPC to all but one reaches all but one")
    check(client_b.wait_for(r"^test: client_b large bytes=40000$"), "an unreliable RPC of 40,000 bytes arrives")
    at = server.wait_for(r"^test: server mover at (\(.*\))$")
    ends = [process.wait_for(r"^test: %s mover at (\(.*\))$" % process.title) for process in (client_a, client_b)]
    check(at is not None and all(end is not None and end[1] == at[1] for end in ends),
          "a node moves by unreliable calls: server and clients agree where it ends, at %s" % (at[1] if at else "?"), server.text() + client_b.text())


def check_refused(server):
    refused = engine("refused", "--role=refused")
    status = refused.end()
    for title, result, why in (("no token", 31, "no connect token"), ("noise", 31, "no connect token"), ("expired", 0, "expired"),
                               ("another key", 0, "never answered")):
        found = refused.find(r"^test: refused: %s: result=%d failed=%d why=(.*)$" % (title, result, result == 0))
        check(found is not None and why in found[1], "refused: %s: \"%s\"" % (title, found[1] if found else "?"), refused.text())
    check(status == 0 and refused.find("^test: refused done$"), "calls with wrong arguments are errors, and nothing else")
    return refused


def check_c_clients(server, client_a, client_b, ids):
    client = os.path.join(BUILT, "client")
    echo = Process("echo", client, *ENGINE["client"], "echo", os.path.join(TOKENS, "c.token"))
    good = echo.end() == 0
    identity = echo.find(r"^id=(\d+)$")
    check(good and identity is not None, "a plain C client of netcode.h joins the same server, and gets its words back", echo.text())
    check(identity is not None and client_a.wait_for(r"^test: client_a raw from=%s text=greetings$" % identity[1]), "a Godot client gets what it sends")
    hostile = Process("hostile", client, *ENGINE["client"], "hostile", TOKENS, str(HOSTILE_TOKENS))
    check(hostile.end() == 0, "a hostile C client sends what no honest one does: %d kinds of malformed messages, impossible targets, noise for the "
          "engine, a flood; each malformed message ends its own connection, with the reason" % len(re.findall("^ok: a client that sends", hostile.text(), re.M)),
          hostile.text())
    forged = r"^test: client_\w raw from=(\d+) text=forged"  # the victim is the first one that the server reported
    forger = wait_for(forged, client_a, client_b)
    check(forger is not None and int(forger[1]) not in (1, *ids) and server.find(r"^test: server connected id=%s client_id=20\d\d " % forger[1]),
          "a message in another's name arrives under its sender's own id", client_a.text())
    check(server.process.poll() is None and client_a.process.poll() is None and not client_a.find("server_disconnected"),
          "the server goes on, and the other clients stay")


def check_gone(server, client_a, id_b):
    check(client_a.wait_for(r"^test: client_a peer_disconnected id=%d$" % id_b) and server.wait_for(r"^test: server peer_disconnected id=%d$" % id_b),
          "the server and the other client are notified that it is gone", server.text() + client_a.text())


def check_kick(server, client_a, client_b, id_b):
    go("kick")
    check(client_b.wait_for(r"^test: client_b server_disconnected why=the server ended the connection: you were rude$"),
          "one is kicked and learns why: \"you were rude\"", client_b.text())
    check_gone(server, client_a, id_b)
    check(client_b.wait_for(r"^test: client_b failed status=0 why=.*does not admit") and client_b.end() == 0,
          "banned, it is denied with a new token", client_b.text())
    check(server.find("^test: server statistics [Tt]rue$") and client_b.find("^test: client_b connecting status=1"), "statistics have its round trip")


def check_refusing(server, client_a):
    go("refuse")
    client_a.wait_for("^test: client_a refusing$")
    later = engine("later", "--role=refused_later", "--token=later")
    check(later.end() == 0 and later.find("^test: refused_later failed status=0 why=.*does not admit"),
          "refuse_new_connections: a player with a valid token is denied, those that are in stay", later.text())
    go("accept")
    server.wait_for("^test: server refuses=[Ff]alse$")
    later = engine("accepted", "--role=refused_later", "--token=later")
    check(later.end() == 0 and later.find("^test: refused_later connected"), "and the same token is accepted afterwards", later.text())


def check_end(server, client_a, relay, capture):
    # A server's last packets go to the address that it knows: they are lost if the client has just got another one.
    while not 1.0 < (time.monotonic() - relay.began) % REBIND_SECONDS < 2.0:
        time.sleep(0.05)
    go("finish")
    check(server.end() == 0 and server.find("^test: server closed$"), "the server closes", server.text())
    check(client_a.end() == 0 and client_a.find("server_disconnected why=the server ended the connection: the server closes"),
          "its client learns that, and gives up its peer inside the signal", client_a.text())
    report = server.text()
    check(all(word in report for word in ("TOKEN_NOT_AUTHENTIC", "NOT_ADMITTED")), "the server's report has each refusal in words", report)
    malformed = re.search(r"statistics malformed=(\d+)", report)
    moves = re.search(r"moves=(\d+)", report)
    check(moves is not None and int(moves[1]) > 1, "the clients' addresses changed %s times behind the relay: all stay connected" % (moves[1] if moves else "?"), report)
    # Noise for the engine is well-formed for the plug-in: only the table's messages count.
    check(malformed is not None and int(malformed[1]) == 9, "it counted the malformed messages", report)
    relay.process.terminate()
    relay.end()
    with open(capture, "rb") as file:
        packets = file.read()
    clear = [word for word in (b"only for you", b"you were rude", b"done_sending", b"ordered 1") if word in packets]
    check(len(packets) > 100000 and not clear, "nothing is in the clear in %d kB that were captured" % (len(packets) // 1000), str(clear))
    crashed = [process.title for process in running if process.errors()]
    check(not crashed, "no process crashed, and no script had an error", ", ".join(crashed))


def part_engine4():
    """The same lines from the same steps, by Godot 4."""
    command = os.environ.get("GODOT4", "godot").split()
    ENGINE.update(command=[*command, "--headless"], separator=["--"], client=["4"], project="project4",
                  plugin=os.path.join(BUILT, "libnetcode_godot4.so"))
    version = subprocess.run([*command, "--headless", "--version"], stdout=subprocess.PIPE, text=True, env=environment(), check=False)
    if check(version.returncode == 0 and version.stdout.startswith("4."), "this is Godot " + version.stdout.strip()):
        part_engine()


def start_server(address, front):
    """Of the engine, in a project of its own. None if it does not start."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    shutil.rmtree(TOKENS, ignore_errors=True)
    os.makedirs(TOKENS)
    shutil.copytree(os.path.join(HERE, ENGINE["project"]), PROJECT)
    shutil.copy(ENGINE["plugin"], PROJECT)
    if ENGINE["client"]:
        # The editor writes this list when it first sees a project. Without a window it crashes when it ends after that: godot 123511.
        os.makedirs(os.path.join(PROJECT, ".godot"))
        with open(os.path.join(PROJECT, ".godot", "extension_list.cfg"), "w", encoding="ascii") as file:
            file.write("res://netcode.gdextension\n")
    server = engine("server", "--role=server", "--address=" + address, "--relay=" + front)
    ready = server.wait_for("^test: server ready") is not None
    return server if check(ready, "a server starts; wrong options are errors with a sentence", server.text()) else None


def part_smoke():
    """A server and two clients in processes of the engine, on a path that loses nothing."""
    [address] = free_ports(1)
    server = start_server(address, address)
    if not server:
        return
    client_a, client_b = engine("client_a", "--role=client_a"), engine("client_b", "--role=client_b")
    id_a, id_b = check_start(server, client_a, client_b, "directly")
    if not id_a:
        return
    check(client_a.wait_for(r"^test: client_a result reliable count=%d increasing=[Tt]rue$" % PINGS), "all %d reliable RPCs arrive, in order" % PINGS,
          server.text() + client_a.text())
    check(client_a.wait_for(r"^test: client_a result ordered count=[1-9]\d* increasing=[Tt]rue$") and
          client_a.wait_for(r"^test: client_a result unreliable count=[1-9]"), "and so do packets of both unreliable modes, those of one in order", client_a.text())
    check_relayed(client_a, client_b, id_a, id_b)
    go("kick")
    check(client_b.wait_for(r"^test: client_b failed status=0 why=.*does not admit") and client_b.end() == 0 and
          client_b.find(r"^test: client_b server_disconnected why=.*: you were rude$"), "one is kicked, learns why, and is denied afterwards", client_b.text())
    check_gone(server, client_a, id_b)
    for name in ("refuse", "accept", "finish"):
        go(name)
    check(client_a.end() == 0 and client_a.find("server_disconnected why=the server ended the connection: the server closes") and server.end() == 0,
          "the server closes, and its client learns that", server.text() + client_a.text())
    crashed = [process.title for process in running if process.errors()]
    check(not crashed, "no process crashed, and no script had an error", ", ".join(crashed))


def part_engine():
    """A server, clients and those that are refused, in processes of the engine, beside clients in C."""
    address, front = free_ports(2)
    server = start_server(address, front)
    if not server:
        return
    capture = os.path.join(FOLDER, "relay.pcap")
    relay = Process("relay", os.path.join(ROOT, "build", "relay"), "--listen", front, "--to", address, "--loss", str(LOSS), "--delay", "20",
                    "--seconds", "200", "--rebind-every", str(REBIND_SECONDS), "--pcap", capture)
    if not check(relay.wait_for("listening") is not None, "the relay listens", relay.text()):
        return
    relay.began = time.monotonic()
    client_a = engine("client_a", "--role=client_a")
    client_b = engine("client_b", "--role=client_b")
    id_a, id_b = check_start(server, client_a, client_b, "through a relay that loses %d %% each way" % LOSS)
    if not id_a:
        return
    refused = check_refused(server)
    check_play(server, client_a, client_b, id_a, id_b)
    check_c_clients(server, client_a, client_b, (id_a, id_b))
    check_kick(server, client_a, client_b, id_b)
    check_refusing(server, client_a)
    check_end(server, client_a, relay, capture)
    running.append(refused)


# ---- picture ----


def read_picture(path):
    """Width, height and the rows of a PNG of 8 bits, RGB or RGBA: (colour, ...) each."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big"), body[8], body[9]
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {2: 3, 6: 4}[colour]
    assert depth == 8
    raw, stride, rows, above = zlib.decompress(packed), width * channels, [], bytes(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, up = line[x - channels] if x >= channels else 0, above[x]
            corner = above[x - channels] if x >= channels else 0
            if kind == 1:
                line[x] = (line[x] + left) & 255
            elif kind == 2:
                line[x] = (line[x] + up) & 255
            elif kind == 3:
                line[x] = (line[x] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                line[x] = (line[x] + near[2]) & 255
        rows.append([tuple(line[x:x + 3]) for x in range(0, stride, channels)])
        above = bytes(line)
    return width, height, rows


def part_picture():
    demo = os.path.join(FOLDER, "demo")
    shutil.copytree(os.path.join(ROOT, "examples", "godot", "demo"), demo)
    shutil.copy(PLUGIN, demo)
    shot = os.path.join(FOLDER, "shot.png")
    screen = Process("screen", "Xvfb", "-displayfd", "1", "-screen", "0", "640x400x24", "-nolisten", "tcp")
    display = screen.wait_for(r"^(\d+)$")
    if not check(display is not None, "there is a virtual display", screen.text()):
        return
    window_options = ("--path", demo, "--video-driver", "GLES2", "--audio-driver", "Dummy")
    editor = Process("editor", "godot3", *window_options, "-e", "--quit", DISPLAY=":" + display[1])
    check(editor.end() == 0 and not editor.errors() and "Failed load" not in editor.text(), "the demo project opens in the editor", editor.text())
    [address] = free_ports(1)
    alone = Process("demo_alone", "godot3-server", "--path", demo, "--join=" + address, "--seconds=7")
    check(alone.wait_for("^demo: there is no key: host first"), "a player that joins where none has hosted is asked to host first", alone.text())
    alone.end()
    bot = Process("demo_bot", "godot3-server", "--path", demo, "--join=" + address, "--walk=circle", "--seconds=30")
    check(bot.wait_for("^demo: waiting"), "a player that joins before the first host waits, and makes no key of its own", bot.text())
    host = Process("demo_host", "godot3-server", "--path", demo, "--host=" + address, "--seconds=40")
    if not check(host.wait_for("^demo: hosting") is not None, "the demo hosts a game", host.text()):
        return
    check(bot.wait_for("^demo: joined"), "and joins then", bot.text())
    window = Process("demo_window", "godot3", *window_options, "--join=" + address, "--walk=square", "--picture=" + shot, "--seconds=30",
                     DISPLAY=":" + display[1])
    joined = window.wait_for("^demo: joined")
    taken = window.wait_for("^demo: picture")
    check(joined is not None and taken is not None and bot.find("^demo: joined"), "two more join it, one of them godot3 in a window", window.text())
    if not check(os.path.exists(shot), "it takes a picture of itself", window.text()):
        return
    width, height, rows = read_picture(shot)
    colours = {}
    for row in rows:
        for colour in row:
            colours[colour] = colours.get(colour, 0) + 1
    ground = max(colours, key=colours.get)
    drawn = width * height - colours[ground]
    # The walkers' discs are drawn in the colours of their peer ids, which no label has.
    vivid = sum(count for colour, count in colours.items() if max(colour) - min(colour) > 90)
    check((width, height) == (640, 400) and drawn > 2000 and vivid > 1500,
          "the picture, %d x %d, is not blank: %d pixels are drawn, %d of them are players" % (width, height, drawn, vivid), str((drawn, vivid)))
    if os.environ.get("PICTURE"):
        shutil.copy(shot, os.environ["PICTURE"])
    for process in (window, bot, host, screen):
        if process.process.poll() is None:
            process.process.terminate()
            process.end()
    crashed = [process.title for process in (window, bot, host, alone) if process.errors()]
    check(not crashed, "none of the four crashed, and no script had an error", ", ".join(crashed))


def main():
    wanted = [part for part in PARTS if part in (sys.argv[1:] or PARTS[:3])]
    unknown = [word for word in sys.argv[1:] if word not in PARTS]
    if unknown:
        sys.exit("run.py: there is no part %s: the parts are %s" % (unknown[0], ", ".join(PARTS)))
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for part in wanted:
            globals()["part_" + part]()
    finally:
        for process in running:
            if process.process.poll() is None:
                process.process.kill()
                process.process.wait()
    print("godot: %d passed, %d failed, %.0f s" % (len(passed), len(failed), time.monotonic() - start))
    return 1 if failed else 0


inside_own_network()
with tempfile.TemporaryDirectory(prefix="godot-test-") as FOLDER:
    PROJECT = os.path.join(FOLDER, "project")
    TOKENS = os.path.join(FOLDER, "tokens")
    os.makedirs(TOKENS)
    status = main()
sys.exit(status)
