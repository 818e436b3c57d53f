#!/usr/bin/env python3
"""Plants a fault in a copy of netcode.h and lets the fuzz target that should notice look for it: each must be found within a minute.

    plants.py [--empty] [FILTER]     the plants whose names contain FILTER; all without one

A plant is a file plants/NAME.edit:

    One line that says in a sentence what is wrong.
    target: address, packet, token, session or messages
    --- find
    text of netcode.h
    --- with
    what stands there instead
    --- end

White space in the text to find stands for any white space; it must stand there once. The fuzzer starts from tests/fuzz/corpus, as run.sh does,
or with --empty from nothing. Before that, netcode.h as it is must pass the same corpus. FUZZ_CC names a clang, FUZZ_BUILD=san builds with the
sanitizers. Prints how long each took; exits 1 where one was not found, or a target has fewer than three."""

import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, "build", "fuzz", "plants")
TARGETS = ("address", "packet", "token", "session", "messages")
LONGEST = {"address": 72, "packet": 128, "token": 256, "session": 400, "messages": 600}
SECONDS = 60
LEAST = 3
CLANGS = os.environ.get("FUZZ_CC", "clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14").split()
SANITIZERS = ",address,undefined" if os.environ.get("FUZZ_BUILD") == "san" else ""


class Plant:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".edit")]
        with open(path, encoding="utf-8") as file:
            head, *blocks = re.split(r"^--- find\n", file.read(), flags=re.M)
        self.target = re.search(r"^target: (\w+)$", head, flags=re.M).group(1)
        self.blocks = [re.fullmatch(r"(.*?)^--- with\n(.*?)^--- end\n\s*", block, flags=re.M | re.S).groups() for block in blocks]
        if self.target not in TARGETS or not self.blocks:
            raise SystemExit("%s: a plant has a target and a block" % path)

    def apply(self, text):
        for find, replace in self.blocks:
            pattern = r"\s*".join(re.escape(word) for word in find.split())
            found = len(re.findall(pattern, text))
            if found != 1:
                raise SystemExit("%s is stale: its text stands there %d times: %s" % (self.name, found, " ".join(find.split())[:90]))
            text = re.sub(pattern, lambda match, replace=replace: replace.strip("\n"), text)
        return text


def flags(option):
    command = ["sh", os.path.join(TOP, "tests/tools/deps.sh"), option]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.split()


def find_clang():
    probe = os.path.join(BUILD, "probe.c")
    with open(probe, "w", encoding="utf-8") as file:
        file.write("#include <stdint.h>\n#include <stddef.h>\nint LLVMFuzzerTestOneInput( const uint8_t * d, size_t n ) { return d && n > 9000; }\n")
    for clang in CLANGS:
        command = [clang, "-fsanitize=fuzzer" + SANITIZERS, probe, "-o", os.path.join(BUILD, "probe")]
        if shutil.which(clang) and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return clang
    return ""


def compile_target(clang, text, target):
    """Returns the program, built from `text` as netcode.h."""
    folder = os.path.join(BUILD, target)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "tests", "fuzz"))
    for path in glob.glob(os.path.join(HERE, "*.[ch]")):
        shutil.copy(path, os.path.join(folder, "tests", "fuzz"))
    with open(os.path.join(folder, "netcode.h"), "w", encoding="utf-8") as file:
        file.write(text)
    program = os.path.join(folder, target)
    command = [clang, "-std=c99", "-O1", "-w", "-fsanitize=fuzzer" + SANITIZERS, "-I" + folder] + flags("--cflags")
    command += [os.path.join(folder, "tests", "fuzz", target + ".c")] + flags("--libs") + ["-lm", "-o", program]
    subprocess.run(command, check=True)
    return program


def fuzz(program, target, empty, *options):
    """Returns (found, seconds, what the fuzzer said)."""
    corpus = os.path.join(os.path.dirname(program), "corpus")
    os.makedirs(corpus)
    for path in [] if empty else glob.glob(os.path.join(HERE, "corpus", target, "*")):
        shutil.copy(path, corpus)
    command = [program, "-max_len=%d" % LONGEST[target], "-timeout=20", "-artifact_prefix=" + corpus + "-found-", *options, corpus]
    start = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    seconds = time.monotonic() - start
    reason = re.search(r"^FINDING.*|^.*runtime error.*|^.*ERROR: \w+Sanitizer.*|^.*ERROR: libFuzzer.*", result.stderr, flags=re.M)
    return result.returncode != 0, seconds, reason.group(0) if reason else ""


def main():
    words = [word for word in sys.argv[1:] if word != "--empty"]
    empty = "--empty" in sys.argv[1:]
    plants = [Plant(path) for path in sorted(glob.glob(os.path.join(HERE, "plants", "*.edit")))]
    few = [target for target in TARGETS if sum(plant.target == target for plant in plants) < LEAST]
    plants = [plant for plant in plants if not words or words[0] in plant.name]
    os.makedirs(BUILD, exist_ok=True)
    with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
        header = file.read()
    texts = {plant.name: plant.apply(header) for plant in plants}
    clang = find_clang()
    if not clang:
        print("plants skipped: no clang here links -fsanitize=fuzzer (Debian: clang-19 and libclang-rt-19-dev)")
        return 0
    failed = len(few)
    for target in few:
        print("MISSED %s has fewer than %d plants" % (target, LEAST))
    for target in sorted({plant.target for plant in plants}):
        found, _, reason = fuzz(compile_target(clang, header, target), target, False, "-runs=0")
        if found:
            raise SystemExit("%s: netcode.h as it is fails: %s" % (target, reason))
    for plant in plants:
        program = compile_target(clang, texts[plant.name], plant.target)
        found, seconds, reason = fuzz(program, plant.target, empty, "-seed=1", "-max_total_time=%d" % SECONDS)
        found = found and seconds < SECONDS + 5
        failed += not found
        print("%s %-34s %5.1f s  %s" % ("ok    " if found else "MISSED", plant.name, seconds, re.sub(r"\S*/", "", reason)[:120]), flush=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    print("%d plants, %d not found" % (len(plants), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
