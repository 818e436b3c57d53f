#!/usr/bin/env python3
"""make readme: README.md is short and true. Every block of code in it is one of

    ```c      a file (it has an #include) is compiled, and linked where it has a main; else it is the inside of a function in which
              FRAGMENT's names exist
    ```sh     is run by sh -e in the top of a copy of this tree, or in an empty folder where it begins with `git clone`
    ```text   is not looked at

A comment on the line above a block changes that:

    <!-- same as PATH -->        it is also, letter for letter, that file or a part of it
    <!-- not run: REASON -->     for sh: its syntax, its make targets and its build/ programs are checked, and that is all

Links to files lead somewhere, and there are at most MAX_LINES lines."""

import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get("CC", "cc").split()
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
MAX_LINES = 285
SECONDS_FOR_A_BLOCK = 1200  # met only by what hangs

FRAGMENT = """#include "netcode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern struct netcode_server_t * server;
extern struct netcode_client_t * client;
extern struct netcode_server_config_t server_config;
extern struct netcode_client_config_t client_config;
extern uint8_t private_key[NETCODE_KEY_BYTES], connect_token[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
extern uint8_t * data;
extern int bytes, client_index;
extern uint64_t client_id, protocol_id, session, sequence;
extern double time_seconds;
void fragment( void );
void fragment( void )
{
%s}
"""


class Block:
    def __init__(self, line, language, mark, text):
        self.line, self.language, self.mark, self.text = line, language, mark, text


def blocks(text):
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        match = re.match(r"^```(\S*)\s*$", lines[at])
        if not match:
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("```")), len(lines))
        above = next((lines[i] for i in range(at - 1, -1, -1) if lines[i].strip()), "")
        mark = re.match(r"^<!--\s*(.*?)\s*-->$", above.strip())
        yield Block(at + 1, match.group(1), mark.group(1) if mark else "", "\n".join(lines[at + 1 : end]) + "\n")
        at = end + 1


def run(command, directory, **environment):
    # A newcomer's make knows nothing of the one that runs this.
    surrounding = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    try:
        result = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace", env=dict(surrounding, **environment), timeout=SECONDS_FOR_A_BLOCK, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it did not end within %d seconds" % SECONDS_FOR_A_BLOCK
    return "" if result.returncode == 0 else "status %d:\n%s" % (result.returncode, result.stdout[-2000:])


def sodium(option):
    return subprocess.run(["sh", os.path.join(TOP, "tests/tools/deps.sh"), option], capture_output=True, text=True, check=True).stdout.split()


def copy_of_this_tree(directory):
    """A repository with one commit: the files here as they are now, committed or not."""
    command = """mkdir "$1/tree" && cd "$2" && git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do test ! -e "$file" || printf '%s\\0' "$file"; done | tar --null -T - -cf - | tar -xf - -C "$1/tree" &&
        cd "$1/tree" && git init -q -b main && git add -A && git -c user.name=check -c user.email=check@localhost commit -q -m check"""
    fault = run(["bash", "-c", command, "copy", directory, TOP], directory)
    if fault:
        raise SystemExit("no copy of this tree could be made: " + fault)
    return os.path.join(directory, "tree")


def same_as(block):
    """The path that the mark names, or ''."""
    prefix = "same as "
    return block.mark[len(prefix) :] if block.mark.startswith(prefix) else ""


def check_c(block, directory):
    whole = "#include" in block.text
    path = os.path.join(directory, "block.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block.text if whole else FRAGMENT % block.text)
    # What is a part of a file finds its includes where that file does.
    home = os.path.join(TOP, os.path.dirname(same_as(block))) if same_as(block) else TOP
    command = CC + WARNINGS + ["-I" + TOP, "-I" + home] + sodium("--cflags") + [path, "-o", os.path.join(directory, "block")]
    command += sodium("--libs") + ["-lm"] if re.search(r"\bmain\s*\(", block.text) else ["-c"]
    return run(command, directory)


def check_same(block):
    path = same_as(block)
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return "" if block.text in file.read() else "it is not what stands in %s" % path


def make_targets():
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as file:
        return set(re.findall(r"^\.PHONY:(.*)", file.read(), re.M)[0].split())


def check_unrun(block, directory):
    fault = run(["sh", "-n", "-c", block.text], directory)
    if fault:
        return fault
    targets = make_targets()
    for line in block.text.split("\n"):
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            for word in words[1:]:
                if "=" not in word and not word.startswith("-") and word not in targets:
                    return "there is no `make %s`" % word
    for name in re.findall(r"(?:^|[\s/])build/(\w+)", block.text):
        if not os.path.exists(os.path.join(TOP, "examples", name + ".c")):
            return "there is no build/%s" % name
    return ""


def check_run(block, directory, tree):
    clone = re.search(r"^\s*git clone\s+(\S+)", block.text, re.M)
    home = os.path.join(directory, "home")
    os.makedirs(home, exist_ok=True)
    environment = {"HOME": home, "DESTDIR": os.path.join(directory, "destination"), "DEPS": "no"}
    if not clone:
        return run(["sh", "-ec", block.text], tree, **environment)
    # The README names the place that everyone clones from. Here it stands for this very tree.
    empty = tempfile.mkdtemp(dir=directory)
    config = ["git", "config", "--global", "url.%s.insteadOf" % tree, clone.group(1)]
    return run(config, empty, **environment) or run(["sh", "-ec", block.text], empty, **environment)


def check_block(block, directory, tree):
    fault = check_same(block) if same_as(block) else ""
    if fault:
        return fault
    if block.language == "c":
        return check_c(block, directory)
    if block.language == "sh":
        return check_unrun(block, directory) if block.mark.startswith("not run: ") else check_run(block, directory, tree)
    return "" if block.language == "text" else "a block of code is c, sh or text, not '%s'" % block.language


def check_links(text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in target and not os.path.exists(os.path.join(TOP, target)):
            yield "a link leads to %s, which is not there" % target


def main():
    try:
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        print("FAIL there is no README.md")
        return 1
    faults = list(check_links(text))
    if text.count("\n") > MAX_LINES:
        faults.append("it has %d lines, at most %d are wanted" % (text.count("\n"), MAX_LINES))
    for fault in faults:
        print("FAIL README.md: " + fault)
    with tempfile.TemporaryDirectory() as directory:
        tree = copy_of_this_tree(directory)
        count = 0
        for block in blocks(text):
            count += 1
            fault = check_block(block, directory, tree)
            first = block.text.strip().split("\n")[0][:60]
            print("%-4s README.md:%d: %s: %s%s" % ("FAIL" if fault else "ok", block.line, block.language, first, fault and "\n     " + fault))
            faults += [fault] if fault else []
    print("%d blocks of code, %d faults" % (count, len(faults)))
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
