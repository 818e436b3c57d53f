#!/usr/bin/env python3
"""The fuzzers' corpus: corpus/TARGET.txt holds an input on each line, in hexadecimal, sorted.

    corpus.py unpack FOLDER [TARGET ...]    FOLDER/TARGET gets a file for each input, named by the start of its SHA-1; it holds no others
    corpus.py pack TARGET FILE ...          adds what these files hold to the target's inputs; to take one out, delete its line

`make test` runs all inputs as they stand there: replay.c reads these files."""

import glob
import hashlib
import os
import shutil
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
TARGETS = sorted(os.path.basename(path)[: -len(".txt")] for path in glob.glob(os.path.join(CORPUS, "*.txt")))


def inputs(target):
    with open(os.path.join(CORPUS, target + ".txt"), encoding="ascii") as file:
        return [bytes.fromhex(line) for line in file]


def unpack(target, folder):
    """`folder` holds the target's inputs afterwards, a file each, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for data in inputs(target):
        with open(os.path.join(folder, hashlib.sha1(data).hexdigest()[:8]), "wb") as file:
            file.write(data)


def pack(target, paths):
    kept = set(inputs(target)) if target in TARGETS else set()
    for path in paths:
        with open(path, "rb") as file:
            kept.add(file.read())
    with open(os.path.join(CORPUS, target + ".txt"), "w", encoding="ascii") as file:
        file.writelines(data.hex() + "\n" for data in sorted(kept))
    print("%s: %d inputs" % (target, len(kept)))


def main(words):
    if len(words) >= 2 and words[0] == "unpack":
        for target in words[2:] or TARGETS:
            unpack(target, os.path.join(words[1], target))
    elif len(words) >= 3 and words[0] == "pack":
        pack(words[1], words[2:])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
