#!/usr/bin/env python3
"""Follows examples/arena/TUTORIAL.md: writes its files, runs its commands in an empty folder, and compares what they print.

A line under ```text must be printed by the commands above it; numbers in it may be others. Blocks behind `<!-- not run: why -->` are left out."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r"(?:<!-- (file|not run): (.*?) -->\n)?```(\w+)\n(.*?)```\n", re.S)


def run(commands, folder):
    """The shell keeps its folder and variables from block to block, as a reader's does."""
    script = 'export NETCODE="%s"\n[ ! -e "%s/state" ] || . "%s/state"\nset -e\n%s\n{ echo "cd \\"$PWD\\""; } >"%s/state"\n' % (ROOT, folder, folder, commands, folder)
    done = subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def pattern(line):
    """Numbers may be others, words not."""
    return re.compile("".join(r"\d+" if part.isdigit() else re.escape(part) for part in re.split(r"(\d+)", line)))


def main():
    with open(os.path.join(ROOT, "examples", "arena", "TUTORIAL.md"), encoding="utf-8") as file:
        text = file.read()
    folder = tempfile.mkdtemp(prefix="tutorial-")
    steps, lines, files, output = 0, 0, 0, ""
    try:
        for match in BLOCK.finditer(text):
            note, name, language, body = match.groups()
            where = "line %d" % (text.count("\n", 0, match.start()) + 1)
            if note == "not run":
                continue
            if note == "file":
                with open(os.path.join(folder, "my-game", name), "w", encoding="utf-8") as file:
                    file.write(body)
                files += 1
            elif language == "sh":
                body = re.sub(r"^export NETCODE=.*$", "", body, flags=re.M)
                status, output = run(body, folder)
                steps += 1
                if status:
                    sys.exit("%s: ended with %d:\n%s\n%s" % (where, status, body, output))
                if "warning:" in output:
                    sys.exit("%s: the compiler warns:\n%s" % (where, output))
            elif language == "text":
                for line in filter(None, body.splitlines()):
                    lines += 1
                    if not any(pattern(line).fullmatch(printed) for printed in output.splitlines()):
                        sys.exit("%s: %r was not printed, but\n%s" % (where, line, output))
            else:
                sys.exit("%s: what is a block of %s?" % (where, language))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("tutorial: %d files, %d blocks of commands, %d lines of output as they stand there" % (files, steps, lines))


if __name__ == "__main__":
    main()
