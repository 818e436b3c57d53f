"""The reader of the tables of faults: finds what a fault changes, and changes it in a copy.

A table NAME.faults holds faults like this one, with empty lines between them; lines that begin with # are for the reader:

    fault flood_filter_address
        The address of one that floods is not compared.
        test flood_the_kernel_filters_as_its_model, may skip
    in nc_filter_limit
    - at <= start + 1 + 2 * count
    + at <= start + 1

Indented lines say in a sentence what is wrong, and below that what must notice: lines that begin with a name of KINDS. `in` names the place: a
function, struct, union, enum (one without a name by any of its constants), type, variable, macro or static assertion, or `file` for all of
the file. What is defined twice for two systems is one place. `-` is what stands there, `+` what stands there instead; several lines of a
sort are one text, and without `+` it is taken out. The text must be there once, or as often as `in NAME, 2 times` demands. It is compared
by words and signs of C: line breaks, indentation and comments do not count. A fault can have several `in`, and more than one `-` in a place;
all texts are looked for in the file as it is. `file PATH` above an `in` names another file than netcode.h.

A fault whose text is not found as often as demanded is stale, which is a failure."""

import bisect
import functools
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))
import source  # noqa: E402 (its folder is not on the path before)

HEADER = "netcode.h"
KINDS = ("test", "sim", "fuzz", "prove", "erase", "ct", "gates", "latency", "torture", "msan", "conform")
TOKEN = re.compile(
    r"""(?P<skip> \s+ | \\\n | /\*.*?\*/ | //[^\n]* ) | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \.?\d(?:[eEpP][+-]|[\w.])* | \w+ |
    <<= | >>= | \.\.\. | \#\# | -> | \+\+ | -- | << | >> | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | .""",
    re.S | re.X,
)


def tokens(text):
    """The words and signs of C code: (what, start, end) of each."""
    return [(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text) if match.group("skip") is None]


def names(kind, head, body):
    """What a thing at file level is called."""
    if kind == "block":
        found = [match.group(1) for match in source.SIGNATURE.finditer(head) if match.group(1) not in ("__attribute__", "__declspec", "defined")]
        return found[:1]
    tag = re.match(r"\s*(?:typedef\s+)?(?:static\s+const\s+)?(struct|union|enum)\b\s*(\w*)", head)
    found = [tag.group(2)] if tag and tag.group(2) and body else []
    if tag and tag.group(1) == "enum" and body:
        found += re.findall(r"(?:^|[,{])\s*([A-Za-z_]\w*)", body)
    variable = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)", head)
    signature = re.search(r"(\w+)\s*\(\s*(\w+)?", head)
    if head.strip().startswith("typedef"):
        found += re.findall(r"(\w+)\s*$", body.rstrip("; \n") if body else head)
    elif signature:
        found += [signature.group(1)] + ([signature.group(2)] if re.fullmatch(r"[A-Z_]+", signature.group(1)) else [])
    elif variable:
        found.append(variable.group(1))
    return found


class Source:
    """The text of a file, its tokens, and the places in it."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens(text)
        self.starts = [start for _, start, _ in self.tokens]
        self.words = [word for word, _, _ in self.tokens]
        self.where = {}  # word -> the numbers of its tokens
        for at, word in enumerate(self.words):
            self.where.setdefault(word, []).append(at)
        self.places = {"file": [(0, len(text))]}
        code = source.strip(text)
        for kind, start, end, head, opened in source.top_level(text):
            start += len(head) - len(head.lstrip())
            for name in dict.fromkeys(names(kind, head, source.without_directives(code[opened:end]) if opened else "")):
                self.places.setdefault(name, []).append((start, end))
        for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[^\n]*\\\n)*[^\n]*", code, flags=re.M):
            self.places.setdefault(match.group(1), []).append(match.span())

    def find(self, place, pattern):
        """The spans of the tokens `pattern` in a place, None where the file has no such place."""
        if place not in self.places:
            return None
        found = set()
        for start, end in self.places[place]:
            at, last = bisect.bisect_left(self.starts, start), bisect.bisect_left(self.starts, end) - len(pattern)
            numbers = self.where.get(pattern[0], [])
            for number in numbers[bisect.bisect_left(numbers, at) : bisect.bisect_right(numbers, last)]:
                if number >= at and self.words[number : number + len(pattern)] == pattern:
                    found.add((self.starts[number], self.tokens[number + len(pattern) - 1][2]))
                    at = number + len(pattern)
        return sorted(found)


@functools.lru_cache(8)
def parsed(text):
    return Source(text)


def joined(left, text, right):
    """`text` for between two others, with a space where words would run together."""
    if not text:
        return " " if re.search(r"\w$", left) and re.match(r"\w", right) else ""
    before = " " if re.search(r"\w$", left) and re.match(r"\w", text) else ""
    return before + text + (" " if re.search(r"\w$", text) and re.match(r"\w", right) else "")


class Change:
    """One text in one place, and what stands there instead."""

    def __init__(self, file, place, times, line):
        self.file, self.place, self.times, self.line = file, place, times, line  # the line of its `in`
        self.old, self.new = [], []

    def pattern(self):
        return [word for word, _, _ in tokens("\n".join(self.old))]

    def fits(self, text, place):
        return len(parsed(text).find(place, self.pattern()) or []) == self.times

    def elsewhere(self, text):
        """The other places where it stands as often as it should."""
        return sorted(place for place in parsed(text).places if place not in ("file", self.place) and self.fits(text, place))

    def spans(self, text):
        """Where it stands, and what is wrong, '' for nothing."""
        found = parsed(text).find(self.place, self.pattern())
        if found is not None and len(found) == self.times:
            return found, ""
        others = self.elsewhere(text)
        hint = ", but in %s" % " and ".join(others) if 0 < len(others) <= 3 else ""
        if found is None:
            return [], "stale: %s has no %s: %s" % (self.file, self.place, " ".join(self.pattern())[:100] + hint)
        return [], "stale: it stands %d times in %s, not %d: %s" % (len(found), self.place, self.times, " ".join(self.pattern())[:100] + hint)


class Fault:
    def __init__(self, name, table):
        self.name, self.table = name, table
        self.sentence, self.changes = [], []
        self.by = {}  # kind -> what must notice, and `may` apart

    def notices(self, kind):
        """The words behind a kind, at commas."""
        return [word for word in re.split(r", *", self.by.get(kind, "")) if word and not word.startswith("may ")]

    def may(self, kind):
        return {word[len("may ") :] for word in re.split(r", *", self.by.get(kind, "")) if word.startswith("may ")}

    def files(self):
        return sorted({change.file for change in self.changes})

    def apply(self, text, file=HEADER):
        """Returns the changed text and what is wrong, '' for nothing."""
        spans = []
        for change in self.changes:
            if change.file == file:
                found, wrong = change.spans(text)
                if wrong:
                    return text, wrong
                spans += [(start, end, "\n".join(change.new)) for start, end in found]
        spans.sort()
        for (_, end, _), (start, _, _) in zip(spans, spans[1:]):
            if start < end:
                return text, "stale: two of its changes meet: %s" % " ".join(text[start:end].split())
        for start, end, new in reversed(spans):
            text = text[:start] + joined(text[:start][-1:], new, text[end : end + 1]) + text[end:]
        return text, ""

    def stale(self, read):
        """What is wrong with any of its files, '' for nothing. `read` returns a file's text."""
        return next((wrong for file in self.files() for wrong in [self.apply(read(file), file)[1]] if wrong), "")


class Table:
    """Reads one table, and says in which line it is wrong."""

    def __init__(self, path):
        self.path, self.faults, self.file = path, [], HEADER
        with open(path, encoding="utf-8") as file:
            for self.number, line in enumerate(file, 1):
                self.take(line.rstrip("\n"))
        for fault in self.faults:
            whole = fault.sentence and fault.changes and all(change.old for change in fault.changes)
            self.demand(whole, "%s lacks a sentence or a text" % fault.name)

    def demand(self, good, wrong):
        if not good:
            raise SystemExit("%s:%d: %s" % (os.path.relpath(self.path, TOP), self.number, wrong))

    def take(self, line):
        word, _, rest = line.partition(" ")
        if not line.strip() or word.startswith("#"):
            return
        if word == "fault":
            self.faults.append(Fault(rest, os.path.basename(self.path)))
            self.file = HEADER
            return
        self.demand(self.faults, "this stands before the first fault")
        fault = self.faults[-1]
        if line.startswith("    "):
            self.demand(not fault.changes, "%s: an indented line below an `in`" % fault.name)
            self.describe(fault, line.strip())
        elif word == "file":
            self.file = rest
        elif word == "in":
            match = re.fullmatch(r"(\w+)(?:, (\d+) times)?", rest)
            self.demand(match, "no place: %s" % rest)
            fault.changes.append(Change(self.file, match.group(1), int(match.group(2) or 1), self.number))
        else:
            self.demand(word in "-+" and fault.changes, "neither fault, in, file, -, + nor indented: %s" % line)
            self.edit(fault, word, line[2:])

    def describe(self, fault, line):
        kind, _, rest = line.partition(" ")
        if kind in KINDS:
            fault.by[kind] = ", ".join(part for part in (fault.by.get(kind), rest.rstrip(",")) if part)
        else:
            self.demand(not fault.by, "%s: %s is no kind" % (fault.name, kind))
            fault.sentence.append(line)

    def edit(self, fault, sign, text):
        change = fault.changes[-1]
        if sign == "-" and change.new:
            change = Change(change.file, change.place, change.times, change.line)
            fault.changes.append(change)
        self.demand(sign == "-" or change.old, "%s: + before -" % fault.name)
        (change.old if sign == "-" else change.new).append(text)


def read(path):
    return Table(path).faults


def load():
    """All faults, by name. Each must be called differently, and something must notice it."""
    faults = {}
    for path in sorted(glob.glob(os.path.join(HERE, "*.faults"))):
        for fault in read(path):
            if fault.name in faults:
                raise SystemExit("two faults are called %s, in %s and %s" % (fault.name, faults[fault.name].table, fault.table))
            if not fault.by:
                raise SystemExit("%s: nothing is said to notice %s" % (fault.table, fault.name))
            faults[fault.name] = fault
    return [faults[name] for name in sorted(faults)]


def text_of(file=HEADER):
    with open(os.path.join(TOP, file), encoding="utf-8") as opened:
        return opened.read()
