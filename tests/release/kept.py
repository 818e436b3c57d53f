#!/usr/bin/env python3
"""What tests/release keeps of a release, netcode-VERSION.api: the public part of its netcode.h without comments, and what else counts as API.

    kept.py HEADER    prints it (make release-prepare writes it)
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lint"))
import source  # noqa: E402


class Unreadable(Exception):
    """A header or a file beside it that can not be read as what it should be."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def version_of(text):
    found = re.search(r'^#define NETCODE_VERSION_FULL "(\d+\.\d+\.\d+)"$', text, re.M)
    if not found:
        raise Unreadable("no NETCODE_VERSION_FULL of the form 1.2.3")
    return found.group(1)


def switches(text):
    """The build switches that the manual lists: all that the first paragraph of its section names."""
    section = re.search(r"\n    \d+  BUILD SWITCHES\n\n(.*?)\n\n", text, re.S)
    if not section:
        raise Unreadable("the manual has no section BUILD SWITCHES")
    code = source.strip(text)
    names = set(re.findall(r"\bNETCODE_\w+", section.group(1)))
    for name in names:
        if not re.search(rf"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\b[^\n]*\b{name}\b", code.replace("\\\n", "  "), re.M):
            raise Unreadable(f"the manual lists the build switch {name}, and no condition asks for it")
    return sorted(names)


def wire(text):
    """What the two wires call themselves."""
    protocol = re.search(r'^#define NC_VERSION_INFO "(.*)"$', text, re.M)
    messages = re.search(r"^ *NC_MESSAGES_VERSION = (\d+),", text, re.M)
    if not protocol or not messages:
        raise Unreadable("NC_VERSION_INFO or NC_MESSAGES_VERSION is not where it was")
    return f"{protocol.group(1)}, messages {messages.group(1)}"


def without_comments(text):
    return source.TOKEN.sub(lambda match: " " if match.group(0)[0] == "/" else match.group(0), text)


def cut(text):
    """The public part of a header without comments, and in three comments what else counts as API."""
    start = text.find("#ifndef NETCODE_SINGLE_FILE_H\n")
    end = text.find("#endif /* NETCODE_SINGLE_FILE_H */\n")
    if start < 0 or end < start:
        raise Unreadable("the public part does not stand between #ifndef NETCODE_SINGLE_FILE_H and its #endif")
    code = without_comments(text[start:end] + "#endif\n")
    code = "".join(line.rstrip() + "\n" for line in code.split("\n") if line.strip())
    return (
        f"/* The public part of netcode.h {version_of(text)} without its comments, made by `tests/release/kept.py netcode.h`. */\n"
        f"/* build switches: {' '.join(switches(text))} */\n"
        f"/* wire: {wire(text)} */\n" + code
    )


def besides(text, what):
    found = re.search(rf"^/\* {what}: (.*) \*/$", text, re.M)
    if not found:
        raise Unreadable(f"no comment names its {what}")
    return found.group(1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        print(cut(read(sys.argv[1])), end="")
    except (Unreadable, OSError) as error:
        print(f"kept.py: {error}", file=sys.stderr)
        sys.exit(1)
