"""The live view examples/metrics/top.c: its numbers against a source that is known, its snapshot of a real server, and a terminal (tmux) in
which sources go away and return, sizes change and texts are torn.

    python3 tests/all/top.py                     SANITIZE=1: the programs are built with sanitizers
"""
import http.server
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics"))
import common  # noqa: E402
from common import check, folder, start, stop, wait_for  # noqa: E402

SOCKET = os.path.join(folder, "tmux")

# Two readings, two seconds apart by the server's own clock: every rate below follows from them.
KNOWN = """# HELP netcode_server_slots How many.
# TYPE netcode_server_slots gauge
netcode_server_slots{server="eu-1"} 32
netcode_server_clients{server="eu-1"} %(clients)d
netcode_server_clock_seconds %(clock)s
netcode_server_datagrams_received_total %(received)d
netcode_server_connects_total 12
netcode_server_handshakes_pending 2
netcode_server_disconnects_total{reason="client"} 3
netcode_server_disconnects_total{reason="timed_out"} 4
netcode_server_packets_total{direction="received",type="payload"} %(received)d
netcode_server_packets_total{type="payload",direction="sent"} %(sent)d
netcode_server_bytes_total{direction="sent"} %(bytes)d
netcode_server_packets_dropped_total{reason="replayed"} %(dropped)d
netcode_server_packets_dropped_total{reason="unknown_address"} 7
netcode_server_packets_dropped_total{reason="too_small"} 0
netcode_server_update_duration_seconds_bucket{le="0.001"} %(fast)d
netcode_server_update_duration_seconds_bucket{le="0.002"} %(updates)d
netcode_server_update_duration_seconds_bucket{le="+Inf"} %(updates)d
netcode_server_update_duration_seconds_count %(updates)d
netcode_server_backlogs_total 0
netcode_server_kernel_drops_total 5
netcode_server_send_errors_total 6
netcode_server_moves_total 21
netcode_server_round_trip_seconds_bucket{le="0.05"} %(near)d
netcode_server_round_trip_seconds_bucket{le="0.1"} %(all)d
netcode_server_round_trip_seconds_bucket{le="+Inf"} %(all)d
netcode_server_loss_ratio_bucket{le="0"} %(near)d
netcode_server_loss_ratio_bucket{le="0.03"} %(all)d
netcode_server_loss_ratio_bucket{le="+Inf"} %(all)d
netcode_messages_rtt_seconds 0.0421
netcode_messages_jitter_seconds 0.0005
netcode_messages_loss_sent_ratio 0.031
netcode_messages_loss_received_ratio 0
netcode_messages_reliable_retries_total %(retries)d
"""
FIRST = dict(clients=8, clock="1000.5", received=1000, sent=5000, bytes=1000000, dropped=10, fast=100, updates=100, retries=0, near=40, all=40)
SECOND = dict(clients=16, clock="1002.5", received=1480, sent=5300, bytes=1050000, dropped=15, fast=150, updates=220, retries=3, near=64, all=72)
EXPECTED = ["live", "16 of 32", "[|||||||||||||||               ]", "handshakes 2", "12 connected", "3 left", "4 timed out", "60.0 a second", "half <= 2.0 ms",
            "99% <= 2.0 ms", "0 backlogs", "5 dropped by the system", "6 send errors", "21 moved", "round trip 42.1 ms", "jitter 500 us", "loss 3.1 % out, 0.0 % in", "1.5 retries/s"]
EXPECTED_ROWS = [r"paths +round trip +half <= 50\.0 ms +99% <= 100\.0 ms +21 moved$",
                 r" +loss +half <= 0\.0 % +99% <= 3\.0 %$", r"  sent +25\.0k +150\.0 ", r"  received +- +240\.0 ", r" +replayed +2\.5 +15$", r" +unknown_address +0\.0 +7$"]


def snapshot(*arguments, timeout=30):
    result = subprocess.run([common.build_top()] + list(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    return result.returncode, result.stdout.decode(errors="replace")


# ---- a source that says what it is given to say ----

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # a client that has read enough closes

    def log_message(self, *_):
        pass


class Source:
    """An HTTP server on loopback; `answer` makes status and body of each request."""

    def __init__(self, answer):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.answer = answer
        self.url = "http://127.0.0.1:%d/metrics" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def two_texts(first, second):
    texts = [first, second]
    return lambda _: (200, texts.pop(0) if len(texts) > 1 else texts[0])


def snapshot_of(answer, *arguments):
    source = Source(answer)
    status, text = snapshot(source.url, "--snapshot", "--period", "0.2", *arguments)
    source.close()
    return status, text


def missing_of(text):
    rows = text.splitlines()
    return [each for each in EXPECTED if each not in text] + [each for each in EXPECTED_ROWS if not any(re.match(each, row) for row in rows)]


def test_known():
    status, text = snapshot_of(two_texts((KNOWN % FIRST).encode(), (KNOWN % SECOND).encode()))
    check("two known readings: %d numbers are right" % (len(EXPECTED) + len(EXPECTED_ROWS)), status == 0 and not missing_of(text), (missing_of(text), text))
    rows = text.splitlines()
    check("what is dropped now stands above what was, and what never was is not there",
          [row.split()[0] for row in rows[rows.index(next(r for r in rows if r.startswith("drops"))) + 1:] if row] == ["replayed", "unknown_address"], text)
    check("a snapshot is 24 rows of at most 80 columns", len(rows) == 24 and max(map(len, rows)) <= 80, text)
    other = dict(SECOND, received=1481, clients=15)
    check("other numbers give another picture", len(missing_of(snapshot_of(two_texts((KNOWN % FIRST).encode(), (KNOWN % other).encode()))[1])) >= 2)
    slow = (KNOWN % dict(SECOND, fast=160)).replace('bucket{le="0.002"} 220', 'bucket{le="0.002"} 218')
    status, text = snapshot_of(two_texts((KNOWN % FIRST).encode(), slow.encode()))
    check("a quantile is its bucket's bound, and behind the last one it is more than that", "half <= 1.0 ms" in text and "99% > 2.0 ms" in text, text)
    again = dict(FIRST, clock="3.0", received=10)
    status, text = snapshot_of(two_texts((KNOWN % SECOND).encode(), (KNOWN % again).encode()))
    check("a server that began anew has no rates yet, and none below zero", status == 0 and "- a second" in text and not re.search(r" -\d", text), text)


def test_sizes():
    for cols, rows in ((1, 1), (20, 5), (79, 23), (240, 120), (5000, 5000)):
        status, text = snapshot_of(two_texts((KNOWN % FIRST).encode(), (KNOWN % SECOND).encode()), "--size", "%dx%d" % (cols, rows))
        lines = text.splitlines()
        check("%dx%d" % (cols, rows), status == 0 and len(lines) == min(rows, 120) and max(map(len, lines)) <= min(cols, 240), text[:300])


def test_bad_sources():
    text = KNOWN % FIRST
    status, out = snapshot_of(lambda _: (404, b"no"))
    check("HTTP 404 is said", status == 1 and "GONE" in out and "HTTP 404" in out, out)
    status, out = snapshot_of(lambda _: (200, b"netcode_server_slots 1\n" * 100000))
    check("a text of 2 MB is refused", status == 1 and "GONE" in out, out)
    status, out = snapshot_of(lambda _: (200, b"<html>hello</html>\n"))
    check("a page that is no metrics is said", status == 0 and "no netcode_server_slots in there" in out and "1 lines were not understood" in out, out)
    status, out = snapshot_of(lambda _: (200, b""))
    check("an empty text", status == 0 and "no netcode_server_slots" in out, out)
    for slots, clients, bar in (("3", "1e300", 30), ("NaN", "3", 0), ("3", "NaN", 0), ("-Inf", "3", 0), ("0", "0", 0), ("-1", "-1e300", 0), ("3", "-1e300", 0), ("3", "Inf", 30)):
        texts = [("netcode_server_slots %s\nnetcode_server_clients %s\nnetcode_server_clock_seconds %d\n" % (slots, clients, i)).encode() for i in (1, 2)]
        status, out = snapshot_of(two_texts(*texts))
        check("odd numbers: %s clients of %s" % (clients, slots), status == 0 and "[%-30s]" % (bar * "|") in out, out)
    evil = text + 'netcode_server_packets_dropped_total{reason="\x1b[2J\x07evil%s%n"} 3\n' + 'netcode_server_packets_dropped_total{reason="%s"} 4\n' % ("x" * 5000)
    status, out = snapshot_of(two_texts(evil.encode(), evil.replace("1000.5", "1001.5").encode()), "--size", "80x30")
    check("control characters never reach the terminal", status == 0 and "\x1b" not in out and "?[2J?evil%s%n" in out, out)
    evil = text + "".join('netcode_server_packets_dropped_total{reason="r%d"} %d\n' % (i, i) for i in range(1, 300))
    status, out = snapshot_of(two_texts(evil.encode(), evil.replace("1000.5", "1001.5").encode()))
    check("more reasons than rows: the rest is counted", status == 0 and re.search(r"and \d+ more", out) and len(out.splitlines()) == 24, out)
    status, out = snapshot(os.path.join(folder, "nothing.prom"), "--snapshot")
    check("a file that is not there is said", status == 1 and "GONE" in out and "No such file" in out, out)
    with open(os.path.join(folder, "large.prom"), "w") as file:
        file.write("netcode_server_slots 1\n" * 100000)
    status, out = snapshot(os.path.join(folder, "large.prom"), "--snapshot")
    check("a file of 2 MB is refused like a text of 2 MB", status == 1 and "GONE" in out and "too large" in out, out)
    status, out = snapshot(folder, "--snapshot")
    check("so is a folder", status == 1 and "GONE" in out, out)
    status, out = snapshot("http://127.0.0.1:%d/" % closed_port(), "--snapshot")
    check("so is a port where no server listens", status == 1 and "GONE" in out, out)


def closed_port():
    source = Source(lambda _: (200, b""))
    source.close()
    return int(source.url.split(":")[2].split("/")[0])


def test_usage():
    for arguments in ([], ["--nonsense"], ["9101", "extra"], ["9101", "--period", "0"], ["9101", "--period", "x"], ["9101", "--size", "80"], ["9101", "--size", "80x24x"], ["9101", "--size", "-1x4"], ["9101", "--period"]):
        status, out = snapshot(*arguments)
        check("wrong usage: %s" % (" ".join(arguments) or "nothing"), status == 2 and out.startswith("metrics-top: "), (status, out))
    check("--help", snapshot("--help")[0] == 0)


# ---- a terminal ----

def tmux(*arguments):
    return subprocess.run(["tmux", "-S", SOCKET, "-f", "/dev/null"] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode(errors="replace")


class Terminal:
    """metrics-top in a window of tmux; the shell behind it says how it ended."""

    def __init__(self, source, *options):
        self.ended = os.path.join(folder, "ended.%d" % random.getrandbits(40))
        self.errors = self.ended + ".err"
        command = "%s %s %s 2>%s; echo $? >%s; sleep 600" % (common.build_top(), source, " ".join(options), self.errors, self.ended)
        tmux("new-session", "-d", "-s", "top", "-x", "80", "-y", "24", command)

    def screen(self):
        return tmux("capture-pane", "-p", "-t", "top")

    def shows(self, words):
        return wait_for(lambda: re.search(words, self.screen()))

    def resize(self, cols, rows):
        tmux("resize-window", "-t", "top", "-x", str(cols), "-y", str(rows))

    def press(self, key):
        tmux("send-keys", "-t", "top", key)

    def status(self):
        """How it ended; None while it runs."""
        if not wait_for(lambda: os.path.exists(self.ended) and os.path.getsize(self.ended)):
            return None
        with open(self.ended) as file:
            return int(file.read())

    def running(self):
        return not os.path.exists(self.ended)

    def pid(self):
        """Of metrics-top itself; 0 when it is not found."""
        shell = tmux("list-panes", "-t", "top", "-F", "#{pane_pid}").strip()
        children = subprocess.run(["ps", "--no-headers", "--ppid", shell, "-o", "pid,comm"], stdout=subprocess.PIPE).stdout.decode()
        own = [int(line.split()[0]) for line in children.splitlines() if "metrics-top" in line]
        return own[0] if len(own) == 1 else 0

    def said(self):
        with open(self.errors) as file:
            return file.read()

    def close(self):
        tmux("kill-session", "-t", "top")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_no_keyboard():
    """Where no key can be pressed it must not ask without end; where there is no screen it says what to do."""
    path = os.path.join(folder, "known.prom")
    with open(path, "w") as file:
        file.write(KNOWN % FIRST)
    result = subprocess.run([common.build_top(), path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
    check("no terminal: --snapshot is named", result.returncode == 2 and not result.stdout and b"--snapshot" in result.stderr, result)
    terminal = Terminal(path, "</dev/null")
    check("with standard input at its end it shows the same", terminal.shows("8 of 32"), terminal.screen())
    pid = terminal.pid()
    before = cpu_seconds(pid)
    time.sleep(3)
    used = cpu_seconds(pid) - before
    check("and is at rest meanwhile: %.2f s of 3" % used, used < 1.0, used)
    os.kill(pid, signal.SIGINT)
    check("SIGINT ends it well", terminal.status() == 0 and not terminal.said() and "q ends" not in terminal.screen(), (terminal.status(), terminal.said(), terminal.screen()))
    terminal.close()


def is_filled(screen, cols, rows):
    """Nothing is wider or longer than the terminal, and what there is room for is there."""
    lines = screen.rstrip("\n").split("\n")
    return len(lines) <= rows and max(map(len, lines)) <= cols and lines[0].startswith("netcode"[:cols])


def test_real_server():
    """A snapshot, then the live view over the life of a server."""
    path = os.path.join(folder, "serve.prom")
    serve, address, metrics = common.start_serve("--metrics-file", path)
    clients = [start([common.build_record(), "--server", address, "--id", str(i), "--seconds", "200"], "client%d.csv" % i) for i in range(3)]
    wait_for(lambda: "\n3." in common.text_of("client2.csv"))
    for source in (metrics.split(":")[1], path):
        status, text = snapshot(source, "--snapshot", "--period", "2")
        rate = re.search(r"  sent +\S+ +([0-9.]+)", text)
        updates = re.search(r"([0-9.]+) a second", text)
        check("a real server by %s: 3 of 16 clients, three payloads an update" % ("its port" if source != path else "its file"),
              status == 0 and "3 of 16" in text and "live" in text and rate and updates and 2.7 < float(rate.group(1)) / float(updates.group(1)) < 3.3 and "round trip" in text, text)
    terminal = Terminal(metrics.split(":")[1])
    check("the live view shows the same", terminal.shows("3 of 16") and terminal.shows(r"sent +\S+ +1\d\d\.\d"), terminal.screen())
    for cols, rows in ((20, 5), (2, 1), (150, 50), (80, 24)):
        terminal.resize(cols, rows)
        fits = wait_for(lambda cols=cols, rows=rows: is_filled(terminal.screen(), cols, rows))
        check("resized to %dx%d" % (cols, rows), fits and terminal.running(), terminal.screen())
    check("after that all is there again", terminal.shows("(?s)3 of 16.*drops.*q ends"), terminal.screen())
    terminal.press("p")
    check("p holds the picture", terminal.shows("held"), terminal.screen())
    held = [re.sub("held.*", "", terminal.screen()), time.sleep(2.5), re.sub("held.*", "", terminal.screen())]
    check("nothing moves then", held[0] == held[2], held)
    terminal.press("p")
    check("p lets it go on", terminal.shows("live"), terminal.screen())
    serve.send_signal(signal.SIGSTOP)
    check("a process that hangs is said", terminal.shows("GONE for .*(503|[Tt]imed|STANDS)|STANDS STILL"), terminal.screen())
    serve.send_signal(signal.SIGCONT)
    check("and that it goes on", terminal.shows("live"), terminal.screen())
    check("all clients played to their end", not any([stop(each, signal.SIGINT) for each in clients]))
    stop(serve)
    check("a server that ended is said, and its last numbers stay", terminal.shows("(?s)GONE for .*of 16"), terminal.screen())
    again = start([common.build_serve(), "--address", "127.0.0.1:0", "--metrics", metrics.split(":")[1], "--slots", "7", "--seconds", "60"], "again.log")
    check("a new one at its port is shown, from zero", terminal.shows("(?s)live.*0 of 7.*  0 connected"), terminal.screen())
    check("no rate is below zero", not re.search(r" -\d", terminal.screen()), terminal.screen())
    terminal.press("q")
    check("q ends it", terminal.status() == 0 and not terminal.said(), terminal.said())
    terminal.close()
    stop(again)


def torn(text, chance):
    """A text with something wrong in it."""
    kind = chance.randrange(5)
    at = chance.randrange(len(text))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + bytes(chance.randrange(256) for _ in range(chance.randrange(1, 40))) + text[at:]
    if kind == 2:
        return text.replace(chance.choice([b'"', b"}", b"{", b" ", b"\n"]), chance.choice([b"", b'"', b"{", b"\0", b"\\"]), chance.randrange(1, 30))
    if kind == 3:
        return text[:at] + text[at // 2:]
    return re.sub(rb" [0-9.]+\n", chance.choice([b" 1e999\n", b" NaN\n", b" -1e308\n", b" 18446744073709551615\n", b" 0x7fffffff\n"]), text, count=chance.randrange(1, 30))


def test_torn():
    """A file that holds something else ten times a second."""
    seed = int(os.environ.get("SEED", "1"))
    chance = random.Random(seed)
    path = os.path.join(folder, "torn.prom")
    whole = (KNOWN % FIRST).encode()
    with open(path, "wb") as file:
        file.write(whole)
    terminal = Terminal(path, "--period", "0.1")
    check("a file is shown", terminal.shows("8 of 32"), terminal.screen())
    for _ in range(80):
        with open(path + ".new", "wb") as file:
            file.write(torn(whole, chance))
        os.rename(path + ".new", path)
        time.sleep(0.07)
    os.remove(path)
    check("80 torn texts (SEED=%d), and it runs" % seed, terminal.running() and terminal.shows("GONE for"), terminal.screen())
    with open(path, "wb") as file:
        file.write((KNOWN % SECOND).encode())
    check("the file is whole again", terminal.shows("(?s)live.*16 of 32"), terminal.screen())
    check("a text that stays the same is said", terminal.shows("STANDS STILL"), terminal.screen())
    pid = terminal.pid()
    if check("its process is found", pid):
        os.kill(pid, signal.SIGTERM)
        check("SIGTERM ends it well, with the terminal as it was", terminal.status() == 0 and not terminal.said() and "q ends" not in terminal.screen(), (terminal.status(), terminal.said(), terminal.screen()))
    terminal.close()


def main():
    common.need("tmux:tmux", "libncurses-dev:pc=ncurses", "libcurl4-openssl-dev:pc=libcurl", "libmicrohttpd-dev:pc=libmicrohttpd", "pkg-config:pkg-config", "procps:ps")
    os.environ.setdefault("TERM", "xterm-256color")
    common.build_top(), common.build_serve(), common.build_record()
    try:
        test_usage()
        test_known()
        test_sizes()
        test_bad_sources()
        test_no_keyboard()
        test_real_server()
        test_torn()
    finally:
        tmux("kill-server")
    common.finish("top")


main()
