"""What the judges in by_*.py have in common. A judge knows how to build copies for one kind of evidence, and what counts as noticed."""

import os
import re
import shutil
import subprocess
import sys

import faults

TOP = faults.TOP
# clang compiles the tests in a third of the time. Another CC than cc, which is make's own, is the one for all.
CC = [os.environ["CC"].split()] if os.environ.get("CC", "cc") != "cc" else [[name] for name in ("clang", "cc") if shutil.which(name)]


class Skip(Exception):
    """This kind of evidence can not be had on this machine."""


class Judge:
    KIND = ""
    WORKERS = 1
    SCRIPT = ()  # the shell script that makes ready what this judge needs, and calls run.py

    def __init__(self, everything, options):
        """`everything`: all faults of all kinds."""
        self.everything = everything
        self.mine = [fault for fault in everything if self.KIND in fault.by]
        self.options = options

    def words(self, fault):
        """What a FILTER may be a part of."""
        return [fault.name]

    def incomplete(self):
        """What has no fault and should have one, and what names things that do not exist: a line each."""
        return []

    def chosen(self, filters):
        return [fault for fault in self.mine if not filters or any(part in word for part in filters for word in self.words(fault))]

    def prepare(self, chosen):
        """Looks whether the copy without a fault passes. Returns name -> why, of the faults that can not be judged; may raise Skip."""
        return {}

    def judge(self, fault, texts):
        """`texts`: file -> the changed text. Returns whether the fault is noticed, and a line."""
        raise NotImplementedError

    def finish(self):
        pass


def build_folder(name):
    """A folder of this process alone: two runs do not meet."""
    return os.path.join(TOP, "build", "faults", "%s.%d" % (name, os.getpid()))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def words_of(name):
    return os.environ.get(name, "").split()


def flags(option):
    command = ["sh", os.path.join(TOP, "tests/tools/deps.sh"), option]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.split()


def wraps():
    """The nonce ledger's, as in the Makefile."""
    if sys.platform == "darwin":
        return ["-DTEST_NO_WRAP"]
    functions = ("encrypt", "encrypt_detached", "decrypt", "decrypt_detached")
    algorithms = ("chacha20poly1305", "xchacha20poly1305")
    return ["-Wl,--wrap=crypto_aead_%s_ietf_%s" % (a, f) for a in algorithms for f in functions]


def first_error(result):
    """The compiler's first error, '' for success."""
    errors = [line for line in result.stderr.splitlines() if re.search("error", line)]
    return (errors or ["the compiler failed"])[0] if result.returncode else ""
