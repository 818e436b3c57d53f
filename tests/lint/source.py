"""C source as the checks see it: text without comments and strings, rooms, functions. Knows just enough C for this house's style."""

import re

BANNER = re.compile(r"/\*\s*=+[^/]*?ROOM +([0-9]+): +([A-Z][A-Z ]*[A-Z])")
PART_BEGINS = re.compile(r"^[ \t]*#[ \t]*if[^\n]*\bNETCODE_IMPLEMENTATION\b", re.M)
TOKEN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X
)


def blank(match):
    """Spaces in place of a comment, an empty literal in place of a string: every offset and line number stays."""
    text = match.group(0)
    keep = text[0] if text[0] in "\"'" else ""
    inner = re.sub(r"[^\n]", " ", text[len(keep) : len(text) - len(keep)])
    return keep + inner + keep


def strip(text):
    """`text` without comments, and with the insides of strings blanked."""
    return TOKEN.sub(blank, text)


def comments(text):
    """Yields (line, comment) for each comment."""
    for match in TOKEN.finditer(text):
        if match.group(0)[0] == "/":
            yield line_of(text, match.start()), match.group(0)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def without_directives(code):
    """`code` (stripped) with preprocessor lines blanked, continuation lines included."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.M)


class Room:
    def __init__(self, number, name, start):
        self.number, self.name, self.start, self.end = number, name, start, start

    def __str__(self):
        return "room %d (%s)" % (self.number, self.name.lower())


def rooms(text):
    """The rooms in the order of the file, each with the offsets of its banner and of its end."""
    found = [Room(int(m.group(1)), m.group(2), m.start()) for m in BANNER.finditer(text)]
    for room, after in zip(found, found[1:]):
        room.end = after.start
    if found:
        found[-1].end = len(text)
    return found


def implementation_start(text):
    """The offset of the #if of NETCODE_IMPLEMENTATION that opens the implementation: the last one above the first room."""
    first = BANNER.search(text)
    starts = [m.start() for m in PART_BEGINS.finditer(text) if not first or m.start() < first.start()]
    return starts[-1] if starts else len(text)


class Function:
    def __init__(self, name, start, opened, closed, signature):
        self.name, self.start, self.opened, self.closed, self.signature = name, start, opened, closed, signature


SIGNATURE = re.compile(r"([A-Za-z_]\w*)\s*\(")


def top_level(text):
    """Yields (kind, start, end, head) for each thing at file level: kind is 'block' (ends with a brace) or 'statement' (with a
    semicolon), head the stripped text in front of its brace. Braces of extern "C" do not count as a level."""
    code = without_directives(strip(text))
    code = re.sub(r'extern\s+"[^"]*"\s*\{', lambda m: " " * len(m.group(0)), code)
    depth, start, head_end = 0, 0, None
    for at, char in enumerate(code):
        if char == "{":
            if depth == 0:
                head_end = at
            depth += 1
        elif char == "}" and depth > 0:
            depth -= 1
            head = code[start:head_end] if depth == 0 else ""
            if depth == 0 and ")" in head and "=" not in head and not re.match(r"\s*(typedef|struct|union|enum)\s+\w*\s*$", head):
                yield "block", start, at + 1, head, head_end
                start, head_end = at + 1, None
        elif char == "}":
            start = at + 1  # the end of an extern "C"
        elif char == ";" and depth == 0:
            yield "statement", start, at + 1, code[start : head_end or at], head_end
            start, head_end = at + 1, None


def functions(text):
    """Every function that is defined in `text`."""
    for kind, start, end, head, opened in top_level(text):
        if kind != "block":
            continue
        # The name stands before the first parenthesis that is not a macro's or an attribute's at the start of the line.
        names = [m for m in SIGNATURE.finditer(head) if m.group(1) not in ("__attribute__", "__declspec", "defined")]
        if names:
            first = start + len(head) - len(head.lstrip())
            yield Function(names[0].group(1), first, opened, end, head.strip())
