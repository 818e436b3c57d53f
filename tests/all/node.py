#!/usr/bin/env python3
"""Tests examples/node: the token backend in Node.js, by the checks that tests/all/python.py has for its own.

    python3 tests/all/node.py               everything
    python3 tests/all/node.py WORD...       the checks whose names hold a WORD
    python3 tests/all/node.py --plants      one fault after the other in a copy: the check that is named beside it must fail

Asks for Node.js and npm, and installs into build/node what package-lock.json names. All traffic stays on loopback.
"""

import fcntl
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("endpoint", os.path.join(HERE, "python.py"))
endpoint = importlib.util.module_from_spec(spec)
spec.loader.exec_module(endpoint)

ROOT, BUILD = endpoint.ROOT, endpoint.BUILD
SOURCE = os.environ.get("NETCODE_TEST_NODE", os.path.join(ROOT, "examples", "node"))
PLACE = os.path.join(BUILD, "node")  # a copy with its packages: the source's folder stays as it is


def install():
    """A copy of the example in build/, with its packages. Another test may want the same at the same time."""
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(BUILD, "all.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install_locked()


def install_locked():
    """What is there already is not fetched again."""
    lock = os.path.join(PLACE, "node_modules", "installed.json")
    with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as file:
        wanted = file.read()
    for name in ("backend.mjs", "package.json", "package-lock.json"):
        shutil.copyfile(os.path.join(SOURCE, name), os.path.join(PLACE, name + ".new"))
        os.replace(os.path.join(PLACE, name + ".new"), os.path.join(PLACE, name))  # no reader sees a half of it
    if os.path.exists(lock) and open(lock, encoding="utf-8").read() == wanted:
        return
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=PLACE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError("npm ci ended with %d: %s" % (done.returncode, done.stdout[-1000:]))
    with open(lock, "w", encoding="utf-8") as file:
        file.write(wanted)


def check_packages():
    """The lock has a hash for everything, and no registry's name; the example asks for nothing else."""
    with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as file:
        text = file.read()
    endpoint.holds("resolved" not in text and "://" not in text, "the lock names where packages come from")
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}
    for name, entry in packages.items():
        endpoint.holds(entry["integrity"].startswith("sha512-"), "%s has no hash" % name)
    with open(os.path.join(SOURCE, "backend.mjs"), encoding="utf-8") as file:
        imports = set(re.findall(r"^import .* from '([^']+)';$", file.read(), re.M))
    # What `npm ci` puts there, as the README says to run it, is no change to the repository.
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", "examples/node/node_modules/@noble"])
        endpoint.same(ignored.returncode, 0)
    others = {name for name in imports if not name.startswith("node:")}
    endpoint.same({"node_modules/" + "/".join(name.split("/")[:2]) for name in others}, set(packages))
    return ", ".join("%s %s" % (name[13:], entry["version"]) for name, entry in sorted(packages.items()))


def check_token_command(command):
    """Without the token command it does not start; when that fails later, players get 500, and it goes on."""
    with endpoint.Backend(command) as backend:
        started = endpoint.run_status(command + backend.arguments(**{"--token-command": "/nowhere/netcode-token"}))
        endpoint.holds(started[0] == 1 and "ENOENT" in started[1], repr(started))
        backend.report()
        endpoint.same(backend.token()[0], 200)
        with open(backend.path("key"), "wb") as file:
            file.write(b"nonsense")  # in the file that it holds open: another one in its place would wait for SIGHUP
        endpoint.refused(backend.token(), 500, "internal")
        endpoint.same(backend.ask("GET", "/healthz")[2]["free_slots"], 3)  # what was promised in vain is free again
        with open(backend.path("key"), "wb") as file:
            file.write(backend.key)
        endpoint.same(backend.token()[0], 200)
        with open("/proc/%d/cmdline" % backend.process.pid, "rb") as file:
            endpoint.holds(backend.key not in file.read())


# File, fault, and the check that must fail for it.
FAULTS = (
    ("backend.mjs", "        if (wait) throw", "        if (false) throw", "limits"),
    ("backend.mjs", "            !isSilent(server) &&\n            (wish.region", "            (wish.region", "limits"),
    ("backend.mjs", "            requestTimeout: limit,\n            headersTimeout: limit,", "            requestTimeout: 0,\n            headersTimeout: 0,", "limits"),
    ("backend.mjs", "|| freeSlots(b) - freeSlots(a) ||", "|| freeSlots(a) - freeSlots(b) ||", "field by field"),
    ("backend.mjs", "if (theirs !== protocolId)", "if (false)", "every status"),
    ("backend.mjs", "name in wish || ", "", "every status"),
    ("backend.mjs", "deepest > MAX_JSON_DEPTH || ", "", "every status"),
    ("backend.mjs", " || text.includes('\\\\u0000')", "", "every status"),
    ("backend.mjs", "request.headers.host === undefined", "false", "every status"),
    ("backend.mjs", "([1-9][0-9]{0,4})$/.exec(text)", "([0-9]{1,5})$/.exec(text)", "every status"),
    ("backend.mjs", ".reverse()); // of what", "); // of what", "field by field"),
    ("backend.mjs", "stream.on('error', () => {})", "stream.on('drain', () => {})", "a log that is not read"),
    ("backend.mjs", "    process.on('SIGHUP', () => onHangup());\n", "", "while it starts"),
    ("backend.mjs", "    app.refusals[refusal.name]++;\n", "", "metrics"),
    ("backend.mjs", "if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') app.cut++;", "", "metrics"),
    ("backend.mjs", "BigInt(match[2]) < 1n << 64n;", "true;", "commands"),
    ("backend.mjs", "return bytes <= MAX_BODY_BYTES ? Buffer.concat(pieces) : null", "return Buffer.concat(pieces)", "every status"),
    ("backend.mjs", "readFile(name, 0o077, advice)", "readFile(name, 0, advice)", "files"),
    ("backend.mjs", "'/proc/self/fd/3'", "this.options['key-file']", "files"),
    ("backend.mjs", "if (old) Object.assign", "if (!old) Object.assign", "files"),
    ("backend.mjs", "Math.max(0, servers[0].promised - 1)", "servers[0].promised", "the token command"),
    ("backend.mjs", "=${server.address}`", "=127.0.0.1:9`", "real server"),
    ("backend.mjs", "        servers[0].promised++;\n", "", "fifty"),
    ("backend.mjs", "dkLen: 32", "dkLen: 31", "commands"),
    ("package-lock.json", '"integrity": "sha512-j', '"integrity": "sha512-k', "from the lock"),
)


def main():
    # SIGINT too: in the background of a shell it would be ignored. Everything that was started ends on the way out.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.chdir(ROOT)
    endpoint.run(["sh", "tests/tools/need.sh", "nodejs:node", "npm:npm"])
    endpoint.build()
    if "--plants" in sys.argv:
        return endpoint.plants(os.path.abspath(__file__), "NETCODE_TEST_NODE", SOURCE, FAULTS)
    try:
        install()
    except AssertionError as error:
        print("FAILED its packages, from the lock alone: %s" % error)
        return 1
    module = endpoint.load()
    command = ["node", os.path.join(PLACE, "backend.mjs")]
    endpoint.check("the lock", check_packages)
    endpoint.check("the token command", check_token_command, command)
    endpoint.check_endpoint(command, module)
    return endpoint.end("node")


if __name__ == "__main__":
    sys.exit(main())
