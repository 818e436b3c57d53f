"""What the checks of the conformance kit are written with: the peer behind its driver, and a world of sockets around it.

The codec, the client and the server that the peer is graded by are those of tests/peer.py, written from the standard alone."""

import collections
import ctypes
import fcntl
import itertools
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import peer  # noqa: E402 (its folder is not on the path before)
from peer import Address, Endpoint, Failed, Skipped  # noqa: E402

MUST, SHOULD = "MUST", "SHOULD"
START_SECONDS = 10.0  # for a peer to say `listening`: some languages start slowly
CHECK_SECONDS = 30.0  # for one check as a whole
STALL_SECONDS = 0.2  # a check that failed while the kit or its peer stood still for so long has measured the machine
MEASUREMENTS = 5  # of such a check, at most: a fault that shows in half of the tries passes in one of 32 at least
LOOK_SECONDS, LOOKS_TO_FIND = 0.05, 10  # between two looks at the peers' processes, and how many of them go by before new ones are sought
VAIN_WAITS = 12  # what was waited for so often in vain, and never came, is not waited for that long again
STOP_SECONDS = 3.0
MAX_LINE_BYTES = 65536
MAX_OUTPUT_BYTES = 8 << 20
MAX_GARBAGE_LINES = 1000
MAX_ERROR_BYTES = 16 << 20  # of standard error: of more, the end is kept

# ---- the list of checks ----

Check = collections.namedtuple("Check", "id role section severity sentence function")
CHECKS = []
ROLES = {"S": "server", "C": "client", "T": "token"}


def check(ident, section, severity, sentence):
    """Makes a check of a function. The ident's first letter is the role; idents stay as they are for ever."""

    def register(function):
        assert all(ident != one.id for one in CHECKS), ident
        CHECKS.append(Check(ident, ROLES[ident[0]], section, severity, sentence, function))
        return function

    return register


class Ledger:
    """Notes which datagram each key and sequence sealed. In this kit a second one is a finding of some checks, and no end of all."""

    def __init__(self):
        self.lock, self.sealed, self.twice = threading.Lock(), {}, {}

    def note(self, key, packet):
        with self.lock:
            if self.sealed.setdefault((key, packet.sequence), packet.raw) != packet.raw:
                self.twice.setdefault(key, packet)


peer.LEDGER = Ledger()

# ---- patience ----

WAITS = collections.Counter()


def note_wait(what, came):
    WAITS[what, came] += 1


def hope(what):
    return WAITS[what, True] > 0 or WAITS[what, False] < VAIN_WAITS


# ---- what stands still ----


def fields_of(process):
    """What Linux says of a process behind its name: state, parent, group, session and so on. Nothing of one that has ended."""
    try:
        with open("/proc/%s/stat" % process, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def running():
    return filter(str.isdigit, os.listdir("/proc")) if sys.platform.startswith("linux") else ()


def held(process):
    """None of a process that sleeps: that is its own doing. Of one that is stopped, or could run, what it has run so far: as long as this stays the
    same, something else keeps it from running."""
    fields = fields_of(process)
    if not fields or fields[0] not in (b"R", b"T", b"t"):
        return None
    try:
        with open("/proc/%s/schedstat" % process, "rb") as file:
            return fields[11:13], file.read()
    except OSError:
        return fields[11:13], b""  # a kernel without it counts by hundredths of a second alone


class Watch(threading.Thread):
    """Notes for how long each driver stood still at worst: one of its processes did, or this thread, which could not look then."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lock, self.drivers, self.looked = threading.Lock(), set(), time.monotonic()

    def run(self):
        for number in itertools.count():
            if number % LOOKS_TO_FIND == 0:
                self.find()
            self.look()
            time.sleep(LOOK_SECONDS)

    def find(self):
        """Whatever is in a driver's session, or has been started by what is known to be a driver's."""
        with self.lock:
            known = {process: driver.processes for driver in self.drivers for process in driver.processes}
            for process, fields in ((name, fields_of(name)) for name in running() if known):
                processes = known.get(int(fields[3]), known.get(int(fields[1]))) if fields else None
                if processes is not None:
                    processes.setdefault(int(process), (None, 0))

    def look(self):
        with self.lock:
            now = time.monotonic()
            blind, self.looked = now - self.looked, now
            for driver in self.drivers:
                driver.stood = max(driver.stood, blind if blind >= STALL_SECONDS else 0)
                for process, (before, since) in driver.processes.items():
                    state = held(process)
                    if state is None or state != before:
                        driver.processes[process] = state, now
                    else:
                        driver.stood = max(driver.stood, now - since)

    def add(self, driver):
        with self.lock:
            self.drivers.add(driver)

    def remove(self, driver):
        self.look()
        with self.lock:
            self.drivers.discard(driver)


WATCH = Watch()


# ---- the peer ----

# Until it has become another program, a forked process has all sockets of this one: a port that was tried in that time would not be free.
FORK_LOCK = threading.Lock()


class Driver:
    """One process of the peer's driver. README.md has the table of its lines."""

    def __init__(self, command):
        self.errors_file = tempfile.TemporaryFile()
        with FORK_LOCK:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors_file, start_new_session=True
            )
        for pipe in (self.process.stdin, self.process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self.stood, self.processes = 0, {self.process.pid: (None, 0)}  # for how long, and which: WATCH writes them
        WATCH.add(self)
        self.rest, self.read_bytes, self.to_write, self.ended, self.fault = b"", 0, b"", False, ""
        self.listening, self.address, self.token_raw = False, None, None
        self.states, self.slot, self.max_clients = [], None, None  # of a client
        self.connects, self.leaves = [], []  # of a server: (index, client id, user data or None); index
        self.received, self.tokens, self.errors, self.refused, self.garbage = [], [], [], None, []

    def tell(self, line):
        self.to_write += line.encode() + b"\n"
        self.write()

    def write(self):
        while self.to_write:
            try:
                self.to_write = self.to_write[os.write(self.process.stdin.fileno(), self.to_write) :]
            except BlockingIOError:
                return
            except (OSError, ValueError):
                self.to_write = b""  # it has closed its input; its end is noticed where its output is read

    def filenos(self):
        return [] if self.ended else [self.process.stdout]

    def receive(self):
        self.write()
        self.trim_errors()
        while not self.ended and not self.fault:
            try:
                data = os.read(self.process.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            self.ended, self.read_bytes = not data, self.read_bytes + len(data)
            *whole, self.rest = (self.rest + data).split(b"\n")
            for line in whole:
                self.take(line.decode("latin-1").strip())
            if len(self.rest) > MAX_LINE_BYTES or self.read_bytes > MAX_OUTPUT_BYTES or len(self.garbage) > MAX_GARBAGE_LINES:
                self.fault = "the driver prints without end: %r" % (self.rest or whole[-1])[:60]

    def take(self, line):
        words = line.split()
        handler = getattr(self, "on_" + words[0], None) if words and words[0].isalpha() else None
        if handler is None:
            self.garbage += [line] if words else []
            return
        try:
            handler(*words[1:])
        except (TypeError, ValueError):
            self.fault = self.fault or "the driver's line can not be read: %r" % line[:100]

    def on_listening(self, *_):
        self.listening = True

    def on_state(self, state, slot=None, max_clients=None):
        if not -6 <= int(state) <= 3:
            raise ValueError
        self.states.append(int(state))
        if max_clients is not None:
            self.slot, self.max_clients = int(slot), int(max_clients)

    def on_connected(self, index, client_id, user_data="-"):
        data = None if user_data == "-" else bytes.fromhex(user_data)
        self.connects.append((int(index), int(client_id), data))

    def on_payload(self, index, data):
        self.received.append((int(index), bytes.fromhex(data)))

    def on_disconnected(self, index):
        self.leaves.append(int(index))

    def on_token(self, data):
        self.tokens.append(bytes.fromhex(data))

    def on_error(self, *words):
        self.errors.append(" ".join(words))

    def on_unsupported(self, *words):
        self.refused = " ".join(words) or "a line"

    def tick(self, now):
        """The process keeps its own time."""

    def demand(self):
        """Raises where nothing more is to be had from this peer."""
        if self.refused:
            raise Skipped("the driver does not support `%s`" % self.refused)
        if self.fault:
            raise Failed(self.fault)
        if self.ended:
            raise Failed("the peer %s" % self.end_text())

    def end_text(self):
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return "closed its output"
        if status < 0:
            try:
                return "was ended by %s" % signal.Signals(-status).name
            except ValueError:
                return "was ended by signal %d" % -status
        return "ended with status %d" % status

    def payloads(self):
        return [data for _, data in self.received]

    @property
    def state(self):
        return self.states[-1] if self.states else None

    def trim_errors(self):
        """A peer may log without end: what it has written is given back to the disk, and it goes on writing behind the hole."""
        if os.fstat(self.errors_file.fileno()).st_blocks * 512 > MAX_ERROR_BYTES:
            os.ftruncate(self.errors_file.fileno(), 0)

    def half_ended(self):
        """What is to be said where the process has ended, and something that it has started goes on and holds its output."""
        return "" if self.ended or self.process.poll() is None else "the driver's process %s, but its output is still open" % self.end_text()

    def last_words(self):
        self.errors_file.seek(0, os.SEEK_END)
        self.errors_file.seek(max(0, self.errors_file.tell() - 2000))
        return self.errors_file.read(2000).decode("latin-1").strip("\0 \t\r\n")

    def close(self):
        """Ends the process and its group; end_orphans has the rest. Returns what was wrong about its end."""
        alive = self.process.poll() is None
        self.tell("stop")
        end = time.monotonic() + (0.2 if self.fault or not hope("stop") else STOP_SECONDS)
        while self.process.poll() is None and time.monotonic() < end:
            self.write()
            self.trim_errors()
            try:
                os.read(self.process.stdout.fileno(), 65536)
            except OSError:
                pass
            time.sleep(0.005)
        late = self.process.poll() is None
        WATCH.remove(self)
        if not late or self.stood < STALL_SECONDS:
            note_wait("stop", not late)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        self.errors_file.close()
        if late:
            return "late"
        return "" if not alive or self.process.returncode == 0 else "at `stop` the peer %s" % self.end_text()


# ---- the world of one check ----

# Ports below those that systems give to sockets by themselves, so that no other socket takes one before the peer binds it.
PORTS = itertools.count(random.randrange(16000, 26000))


def free_address(host):
    for _ in range(1000):
        address = Address(host, 16000 + next(PORTS) % 15000)
        try:
            with FORK_LOCK:
                Endpoint(host, address.port).close()
            return address
        except OSError:
            continue
    raise Failed("the kit finds no free port at %s" % host)


class World(peer.World):
    """What one check holds. The base has the kit's own clients and servers, and `mint`, `until`, `never` and `wait`."""

    interrupted = False  # the whole run ends

    def __init__(self, command, in_namespace):
        super().__init__(None, time.monotonic() + CHECK_SECONDS)
        self.command, self.in_namespace, self.drivers, self.note, self.late = command, in_namespace, [], "", False
        self.garbage, self.gap, self.turned = [], 0, time.monotonic()

    def stood(self):
        """For how long this check, or one of its drivers, stood still at worst."""
        WATCH.look()
        return max([self.gap] + [driver.stood for driver in self.drivers])

    def note_gap(self):
        now = time.monotonic()
        self.gap, self.turned = max(self.gap, now - self.turned), now

    def turn(self):
        self.note_gap()
        if self.turned > self.deadline:
            raise Failed("the check took longer than %d s" % CHECK_SECONDS)
        if self.interrupted:
            raise Failed("the run was interrupted")
        super().turn()
        self.note_gap()
        for driver in self.drivers:
            driver.demand()

    def until(self, condition, seconds, what):
        starts = seconds >= START_SECONDS
        try:
            super().until(condition, seconds if not starts or hope(what) else 1, what)
        except Failed:
            if self.stood() < STALL_SECONDS:
                note_wait(what, not starts)
            raise
        note_wait(what, True)

    def driver(self):
        self.drivers.append(self.add(Driver(self.command)))
        return self.drivers[-1]

    def end(self, driver):
        """Ends a driver before the check ends."""
        self.actors.remove(driver)
        self.drivers.remove(driver)
        wrong = driver.close()
        self.gap, self.turned = max(self.gap, driver.stood), time.monotonic()  # that a peer is slow to end is no gap
        self.late = self.late or wrong == "late"
        self.garbage += driver.garbage
        self.check(not wrong or wrong == "late", wrong)

    def need_namespace(self, why):
        if not self.in_namespace:
            raise Skipped("only in a network namespace: " + why)

    # ---- the peer as server ----

    def server(self, slots=4, host="127.0.0.1", address=None):
        if ":" in host:
            peer.need_ipv6()
        driver = self.driver()
        driver.address = address or free_address(host)
        driver.tell("server %s %d %s %d" % (driver.address, self.protocol_id, self.key.hex(), slots))
        self.until(lambda: driver.listening or driver.errors, START_SECONDS, "the driver says `listening`")
        self.check(driver.listening, "the server does not start: %s" % driver.errors)
        return driver

    def challenged(self, server, token=None, **how):
        """One of the kit's clients under the check's hand, with a challenge in answer to its request."""
        client = self.client(token or self.mint([server]), manual=True, **how)
        self.ask(client, lambda: client.challenges, "a challenge in answer to a valid request")
        return client

    def ask(self, client, condition, what):
        """Requests four times a second, as a patient client does, until there is an answer."""
        for _ in range(16):
            client.send_request()
            end = time.monotonic() + 0.25
            while not condition() and time.monotonic() < end:
                self.turn()
            if condition():
                return
        raise Failed("within 4 s not seen: %s" % what)

    def connect_of(self, server, client_id):
        return next((one for one in reversed(server.connects) if one[1] == client_id), None)

    def respond(self, server, client, challenge=None):
        """Answers the challenge by hand; the peer's application must hear of the client."""
        client.send_response(challenge or client.challenges[0])
        self.until(lambda: self.connect_of(server, client.minted.client_id), 4, "`connected` for the client's id")
        client.slot = self.connect_of(server, client.minted.client_id)[0]

    def join(self, server, token=None, seconds=5, **how):
        """One of the kit's clients connects; it comes back connected, with its slot, and keeps itself alive."""
        client = self.client(token or self.mint([server]), **how)
        self.until(lambda: client.state == peer.CONNECTED, seconds, "the kit's client connects")
        self.until(lambda: self.connect_of(server, client.minted.client_id), 4, "`connected` for the client's id")
        client.slot = self.connect_of(server, client.minted.client_id)[0]
        return client

    def control(self, server):
        """A valid request of another client, which is answered: what came before it has been processed."""
        client = self.client(self.mint([server]), manual=True)
        self.ask(client, lambda: client.heard, "an answer to a valid request that came afterwards")

    def silent(self, server, client, datagrams, what):
        """None of these datagrams is answered, connects, disconnects or delivers anything."""
        session = client.state == peer.CONNECTED  # whose keep-alives go on, and are no answers
        self.wait(0.05)

        def count():
            answers = len(client.heard) - (len(client.of(peer.KEEP_ALIVE)) if session else 0)
            return answers, len(server.connects), len(server.leaves), len(server.received)

        before = count()
        for number, data in enumerate(datagrams):
            client.send_raw(data, server.address)
            if len(datagrams) < 40:
                self.wait(0.012)
            elif number % 64 == 63:
                self.wait(0.05)
        self.control(server)
        self.wait(0.1)
        for now, then, wrong in zip(count(), before, ("was answered", "connected", "disconnected", "was delivered")):
            self.check(now <= then, "%s %s" % (what, wrong))

    def echo(self, server, client):
        """The session works both ways."""
        there, back = os.urandom(30), os.urandom(30)
        client.send(peer.PAYLOAD, there)
        self.until(lambda: there in server.payloads(), 3, "a payload to the peer afterwards")
        server.tell("send %d %s" % (client.slot, back.hex()))
        self.until(lambda: back in client.payloads, 3, "a payload of the peer afterwards")

    # ---- the peer as client ----

    def starts(self, token, bind="127.0.0.1:0"):
        """The peer's client, which has been given a token."""
        driver = self.driver()
        driver.token_raw = getattr(token, "raw", token)
        driver.tell("client %s %s" % (bind, driver.token_raw.hex()))
        return driver

    def accepted(self, server, token=None, bind="127.0.0.1:0", **fields):
        """The peer's client, connected to one of the kit's servers, and its slot there."""
        token = token or self.mint([server], **fields)
        client = self.starts(token, bind)
        return client, self.slot_of(server, client, token)

    def slot_of(self, server, client, token):
        def slot():
            return next((one for one in server.clients() if one.token.client_id == token.client_id), None)

        self.until(slot, START_SECONDS, "the peer's client answers the challenge of the kit's server")
        self.until(lambda: client.state == peer.CONNECTED, 4, "`state 3`")
        return slot()

    def state_is(self, client, state, seconds, what):
        self.until(lambda: client.state == state, seconds, "`state %d`: %s" % (state, what))

    def echo_client(self, server, slot, client):
        there, back = os.urandom(30), os.urandom(30)
        server.send_payload(slot, there)
        self.until(lambda: there in client.payloads(), 3, "a payload to the peer afterwards")
        client.tell("send 0 " + back.hex())
        self.until(lambda: back in slot.payloads, 3, "a payload of the peer afterwards")

    def once_only(self, *keys):
        """No key and sequence of these keys sealed two different packets."""
        for key in keys:
            packet = peer.LEDGER.twice.get(key)
            self.check(packet is None, "one key and sequence sealed two different packets, the second: %r" % packet)

    def close(self):
        faults = []
        for driver in self.drivers:
            wrong = driver.close()
            self.late = self.late or wrong == "late"
            self.garbage += driver.garbage
            faults += [wrong] if wrong not in ("", "late") else []
        for actor in self.actors:
            if not isinstance(actor, Driver):
                actor.close()
        return faults


# ---- what peers have started ----


def adopt_orphans():
    """On Linux: what a peer has started and left becomes a child of this process, whatever session it has moved to."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def children():
    for name in running():
        fields = fields_of(name)
        if fields and int(fields[1]) == os.getpid():
            yield int(name)


def end_orphans():
    """Once all drivers have ended: ends what they have left, and what that has left. Returns how many there were."""
    count = 0
    for _ in range(100):
        killed = []
        for child in children():
            try:
                os.kill(child, signal.SIGKILL)
                killed.append(child)
            except PermissionError:
                continue  # it has become another user's
        for child in killed:
            count += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if not killed:
            break
    return count


# ---- a network of its own ----


def enter_network():
    """Moves this process to a network namespace of its own, and sets up loopback there. Raises OSError where that can not be had."""
    new_user, new_net, up_and_running = 0x10000000, 0x40000000, 0x41
    user, group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(new_net) != 0:
        if library.unshare(new_user | new_net) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (user, user)), ("gid_map", "%d %d 1" % (group, group))):
            with open("/proc/self/" + name, "w", encoding="ascii") as file:
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", up_and_running))  # SIOCSIFFLAGS


def own_network():
    """The same, if it works to its end: a child tries it first, as some systems refuse half of it. Returns whether it was done."""
    if not sys.platform.startswith("linux"):
        return False
    child = os.fork()
    if child == 0:
        status = 1
        try:
            enter_network()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        return False
    enter_network()
    return True
