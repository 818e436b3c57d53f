#!/usr/bin/env python3
"""The rules of the house that no ready-made tool knows. Each check takes the text of netcode.h and returns a list of faults.

    lint.py             all checks on netcode.h, and those that fit on every other C file
    lint.py --selftest  breaks a copy of netcode.h for each check, which must notice

Python's standard library, a C compiler and nm; no copy of the standard is needed."""

import glob
import os
import re
import subprocess
import sys
import tempfile

import index
import source

CC = os.environ.get("CC", "cc").split()
PYTHON_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(PYTHON_DIRECTORY))
MAX_FUNCTION_LINES = 60  # in netcode.h
MAX_OTHER_FUNCTION_LINES = 70

# The titles of the sections of the netcode 1.02 standard, for citations of the form "Standard: Title; Title".
STANDARD_SECTIONS = {
    "Architecture",
    "General Conventions",
    "Connect Token",
    "Challenge Token",
    "Packets",
    "Reading Encrypted Packets",
    "Replay Protection",
    "Client State Machine",
    "Request Connect Token",
    "Sending Connection Request",
    "Sending Challenge Response",
    "Connect Token Expired",
    "Connected",
    "Server-Side Connection Process",
    "Server-Side Overview",
    "Processing Connection Requests",
    "Processing Connection Response Packets",
    "Connected Clients",
}

# All the mutable data that the library may have: what the known API forces on it. The word each name must hold, and what for.
MUTABLE = {
    "netcode_assert_function": "the assert hook, a public variable",
    "nc_init_count": "netcode_init is counted",
    "nc_log_threshold": "netcode_log_level",
    "nc_printf_function": "netcode_set_printf_function",
    "nc_packet_tagging": "netcode_enable_packet_tagging",
    "nc_client_error": "netcode_client_create_error, thread-local",
    "nc_server_error": "netcode_server_create_error, thread-local",
}


def flags():
    output = subprocess.run(["sh", os.path.join(TOP, "tests/tools/deps.sh"), "--cflags"], capture_output=True, text=True, check=True)
    return output.stdout.split()


def compile_text(text, directory, *options):
    """Compiles `text` as netcode.h without a stub. Returns (object path, compiler's messages or '')."""
    path, product = os.path.join(directory, "netcode.h"), os.path.join(directory, "netcode.o")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    command = CC + ["-x", "c", "-DNETCODE_IMPLEMENTATION", "-DNETCODE_MESSAGES"] + list(options) + flags() + ["-c", path, "-o", product]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return product, result.stderr.strip() if result.returncode else ""


def symbols(product, *options):
    """(type, name) of every symbol in an object."""
    output = subprocess.run(["nm", *options, product], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        fields = line.split()
        if len(fields) >= 2:
            # Compilers number a function's static variables (name.0) and Apple's prepend an underscore.
            yield fields[-2], fields[-1].split(".")[0]


def cite(text, offset):
    return "netcode.h:%d" % source.line_of(text, offset)


# ---- checks of netcode.h's text ----


def check_rooms_in_order(text):
    """The banners count 1, 2, 3 ... without a gap."""
    numbers = [room.number for room in source.rooms(text)]
    if len(numbers) < 12:
        return ["found the banners of %d rooms: %s. There are at least 12" % (len(numbers), numbers)]
    return [] if numbers == list(range(1, len(numbers) + 1)) else ["the banners are numbered %s" % numbers]


# In lower case and without arguments: of windows.h and what it includes, of Qt, and of compilers in GNU's dialect.
FOREIGN_MACROS = "near far hyper small interface pascal cdecl environ signals slots emit forever unix linux i386".split()


def check_no_foreign_macros(text):
    """No name is a macro of windows.h, of Qt or of the compiler: there it would be another word, or none."""
    names = re.finditer(r"\b(%s)\b" % "|".join(FOREIGN_MACROS), source.strip(text))
    return ["%s: %s" % (cite(text, match.start()), match.group(1)) for match in names]


# With NETCODE_STATIC the assert hook, a public variable, is defined in the public part, and has to name what it points to at first.
NAMED_ABOVE = {"nc_assert_default"}

PRIVATE = re.compile(r"\bnc_[a-z0-9_]+\b|\bNC_[A-Z0-9_]+\b")
FIELD_ACCESS = re.compile(r"(\.|->)\s*$")


def check_no_forward_declarations(text):
    """Nothing private is declared before it is defined: that would let a room call one below it."""
    faults = []
    start = source.implementation_start(text)
    for kind, begin, _, head, opened in source.top_level(text[start:]):
        statement = head.strip()
        if kind != "statement" or opened is not None or statement.startswith("typedef") or "__asm__" in statement:
            continue  # an asm label names a function of the system: it has no definition here
        at = start + begin + len(head) - len(head.lstrip())
        if re.search(r"\bnc_\w+\s*\([^=]*\)\s*$", statement) and "=" not in statement and not re.search(r"\(\s*\*", statement):
            faults.append("%s: declares a function ahead of its definition: %s" % (cite(text, at), " ".join(statement.split())))
        elif re.fullmatch(r"(struct|union|enum)\s+nc_\w+", statement):
            faults.append("%s: declares a type ahead of its definition: %s" % (cite(text, at), statement))
    return faults


def private_definitions(text):
    """name -> offset of the function definition, #define, struct, union, enum or typedef that makes it."""
    defined = {}
    code = source.strip(text)
    for function in source.functions(text):
        defined.setdefault(function.name, function.start)
    for pattern in (r"^[ \t]*#[ \t]*define[ \t]+(NC_\w+|nc_\w+)", r"\b(?:struct|union|enum)\s+(nc_\w+)\s*\{"):
        for match in re.finditer(pattern, code, re.M):
            defined.setdefault(match.group(1), match.start())
    return defined


def check_nothing_used_above_its_room(text):
    """A private name is used only in the room that defines it and in those that follow."""
    faults = []
    rooms = source.rooms(text)
    code = source.strip(text)
    defined = private_definitions(text)

    def room_of(offset):
        return next((room for room in rooms if room.start <= offset < room.end), None)

    for match in PRIVATE.finditer(code):
        name = match.group(0)
        if name not in defined or name in NAMED_ABOVE or FIELD_ACCESS.search(code[max(0, match.start() - 8) : match.start()]):
            continue
        home, here = room_of(defined[name]), room_of(match.start())
        if home and (here is None or here.number < home.number):
            faults.append("%s: %s uses %s, which belongs to %s" % (cite(text, match.start()), here or "the public part", name, home))
    return faults


def check_prefix_belongs_to_one_room(text):
    """nc_<room>_<verb>: the word after nc_ tells the room, so no two rooms share one. Every function there is static or public."""
    faults, owner = [], {}
    for room in source.rooms(text):
        for function in source.functions(text[room.start : room.end]):
            at = cite(text, room.start + function.start)
            match = re.match(r"nc_([a-z0-9]+)_", function.name)
            if match:
                first = owner.setdefault(match.group(1), room)
                if first is not room:
                    faults.append("%s: %s in %s, but nc_%s_ belongs to %s" % (at, function.name, room, match.group(1), first))
                if "static" not in function.signature.split():
                    faults.append("%s: %s is not static" % (at, function.name))
            elif not function.name.startswith("netcode_"):
                faults.append("%s: %s is neither nc_<room>_<verb> nor netcode_..." % (at, function.name))
    return faults


def check_uses(text):
    """`Uses:` in a banner names the rooms whose names the room uses: no more, no less. Where it says "the public API", public functions
    count for nothing. A private name belongs to the room where it stands first, as nothing is used above its room."""
    code = re.sub(r"#[ \t]*undef[^\n]*", "", source.strip(text))
    rooms = source.rooms(text)
    home = dict.fromkeys(PRIVATE.findall(code[: rooms[0].start]))
    for room in rooms:
        for name in PRIVATE.findall(code[room.start : room.end]):
            home.setdefault(name, room)
        home.update((function.name, room) for function in source.functions(text[room.start : room.end]))
    faults, names = [], {room.name.lower() for room in rooms}
    for room in rooms:
        banner = re.search(r"\bUses:\s*([^.]*)\.", text[room.start : text.index("*/", room.start)])
        sentence = banner.group(1) if banner else ""
        pattern = r"\bnc_\w+|\bNC_\w+" if "public API" in sentence else r"\bnc_\w+|\bNC_\w+|\bnetcode_\w+"
        found = {home.get(name) for name in re.findall(pattern, code[room.start : room.end])} - {None, room}
        used, listed = {other.name.lower() for other in found}, names & set(re.findall(r"[a-z]+", sentence))
        faults += ["%s: %s %s" % (cite(text, room.start), room, "has no sentence `Uses:`")] * (not banner)
        faults += ["%s: %s uses %s and does not say so" % (cite(text, room.start), room, name) for name in sorted(used - listed)]
        faults += ["%s: %s says that it uses %s" % (cite(text, room.start), room, name) for name in sorted(listed - used)]
    return faults


def check_index(text):
    """The index at the top names the rooms, their questions and the public functions that the file holds."""
    wrong = index.fault(text)
    return [wrong] if wrong else []


def check_libsodium_in_its_room(text):
    """Only the crypto room calls libsodium, so that one room shows every use of a key."""
    faults = []
    code = source.strip(text)
    for room in source.rooms(text):
        if room.name == "CRYPTO":
            continue
        for match in re.finditer(r"\b(crypto_|sodium_|randombytes)\w*(?=\s*\()", code[room.start : room.end]):
            faults.append("%s: %s calls %s" % (cite(text, room.start + match.start()), room, match.group(0)))
    return faults


def check_public_includes(text):
    """Whoever includes the header without NETCODE_IMPLEMENTATION gets <stddef.h> and <stdint.h>, and nothing else."""
    start = source.implementation_start(text)
    found = sorted(set(re.findall(r"^[ \t]*#[ \t]*include[ \t]*(\S+)", source.strip(text[:start]), re.M)))
    return [] if found == ["<stddef.h>", "<stdint.h>"] else ["the public part includes %s" % ", ".join(found)]


DECLARATION = re.compile(r"^NETCODE_API\s[^;]*?\b(netcode_\w+)\s*\(", re.M)


def public_functions(text):
    code = source.strip(text[: source.implementation_start(text)])
    return {match.group(1): match.start() for match in DECLARATION.finditer(code)}


def check_public_functions_documented(text):
    """Each public declaration stands under a comment, with no empty line between."""
    faults = []
    lines = text.split("\n")
    for name, offset in public_functions(text).items():
        at = source.line_of(text, offset) - 1
        while at > 0 and lines[at - 1].strip() and not lines[at - 1].rstrip().endswith("*/"):
            at -= 1
        if at == 0 or not lines[at - 1].strip():
            faults.append("%s: %s has no comment" % (cite(text, offset), name))
    return faults


# ---- checks of netcode.h as a compiler sees it ----


def conditionals_open(text):
    """How many #if are open at the end of `text`."""
    code = source.strip(text)
    return len(re.findall(r"^[ \t]*#[ \t]*if", code, re.M)) - len(re.findall(r"^[ \t]*#[ \t]*endif", code, re.M))


def check_cuts(text):
    """What stands above any banner compiles, and needs no function of a room further down, a public one neither."""
    faults = []
    unused = ["-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-const-variable", "-Wno-unused-macros"]
    keep = ["-fkeep-static-functions"] if "Free Software" in compiler_version() else []
    with tempfile.TemporaryDirectory() as directory:
        for room in source.rooms(text):
            head = text[: room.start]
            cut = head + "\n#endif" * conditionals_open(head) + "\n"
            product, messages = compile_text(cut, directory, "-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", *unused, *keep)
            if messages:
                faults.append("cut above %s it does not compile: %s" % (room, messages.splitlines()[0]))
                continue
            missing = sorted({name for kind, name in symbols(product, "-u") if name.startswith(("netcode_", "nc_"))})
            if missing:
                faults.append("what stands above %s calls below itself: %s" % (room, ", ".join(missing)))
    return faults


def compiler_version():
    return subprocess.run(CC + ["--version"], capture_output=True, text=True, check=True).stdout


def check_exports(text):
    """The object's external symbols are the functions that the public part declares, and the assert hook."""
    with tempfile.TemporaryDirectory() as directory:
        product, messages = compile_text(text, directory, "-O2")
        if messages:
            return [messages.splitlines()[0]]
        exported = {name for _, name in symbols(product, "-g", "--defined-only")}
        expected = set(public_functions(text)) | {"netcode_assert_function"}
        static, messages = compile_text(text, directory, "-O2", "-DNETCODE_STATIC", "-w")
        leaked = {name for _, name in symbols(static, "-g", "--defined-only")} if not messages else {messages.splitlines()[0]}
    faults = ["%s is exported and not declared" % name for name in sorted(exported - expected)]
    faults += ["%s is declared and not exported" % name for name in sorted(expected - exported)]
    return faults + ["with NETCODE_STATIC there still is %s" % name for name in sorted(leaked)]


def check_mutable_data(text):
    """No mutable data but what the known API forces. Without -fpic, so that tables of pointers count as the constants they are."""
    with tempfile.TemporaryDirectory() as directory:
        product, messages = compile_text(text, directory, "-O0", "-fno-pic", "-fno-pie")
        if messages:
            return [messages.splitlines()[0]]
        mutable = {name for kind, name in symbols(product) if kind in "bBdDsSgGC"}
    faults = ["mutable: %s" % name for name in sorted(mutable - set(MUTABLE))]
    return faults + ["%s (%s) is not there" % (name, MUTABLE[name]) for name in sorted(set(MUTABLE) - mutable)]


def check_private_macros_undefined(text):
    """After the implementation no NC_ or nc_ macro is left to trouble the program that included it."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "netcode.h")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        faults = []
        for options in ([], ["-DNETCODE_IMPLEMENTATION"], ["-DNETCODE_IMPLEMENTATION", "-DNETCODE_NO_SOCKETS"]):
            command = CC + ["-x", "c", "-dM", "-E"] + options + flags() + [path]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for name in re.findall(r"^#define (nc_\w+|NC_\w+)", output, re.M):
                faults.append("%s is still defined at the end %s" % (name, " ".join(options)))
    return faults


# ---- checks of every C file ----


def check_function_lengths(text, path="netcode.h"):
    """No function has more than MAX_FUNCTION_LINES lines between its braces, elsewhere than in netcode.h MAX_OTHER_FUNCTION_LINES."""
    faults = []
    most = MAX_FUNCTION_LINES if path == "netcode.h" else MAX_OTHER_FUNCTION_LINES
    for function in source.functions(text):
        lines = text.count("\n", function.opened, function.closed) - 1
        if lines > most:
            faults.append("%s:%d: %s has %d lines" % (path, source.line_of(text, function.start), function.name, lines))
    return faults


def check_line_lengths(text):
    """No line of netcode.h has more than 120 columns."""
    return ["netcode.h:%d has %d" % (number, len(line)) for number, line in enumerate(text.split("\n"), 1) if len(line) > 120]


def title_of(text):
    """A comma, a full stop, a colon, a parenthesis or a rule of dashes ends a title; what follows it is ours."""
    return re.split(r"[.,:;()`]| --", text)[0].strip()


def check_citations(text, path="netcode.h"):
    """Each citation of the form "Standard: Title; Title" names sections that the standard has."""
    faults = []
    for line, comment in source.comments(text):
        for match in re.finditer(r"\bStandard:[ \t]*([^\n]*)(?:\n[ \t*]*([^\n]*))?", comment):
            first, following = match.group(1).split("*/")[0], (match.group(2) or "").split("*/")[0]
            parts = [part.strip() for part in first.split(";") if part.strip()]
            for at, part in enumerate(parts):
                # A line may end in the middle of a title.
                wrapped = part + " " + following if at == len(parts) - 1 else part
                if title_of(part) not in STANDARD_SECTIONS and title_of(wrapped) not in STANDARD_SECTIONS:
                    at_line = line + comment.count("\n", 0, match.start())
                    faults.append("%s:%d: the standard has no section '%s'" % (path, at_line, title_of(part)))
    return faults


def check_decisions(text, page=None):
    """Each citation of the form "Decision 7" names a decision that examples/docs/STANDARD.md lists."""
    section = re.search(r"^## Decisions\n(.*?)(?=^## |\Z)", page or read("examples/docs/STANDARD.md"), re.M | re.S)
    listed = set(re.findall(r"^(\d+)\. [A-Z]", section.group(1), re.M)) if section else set()
    cited = re.finditer(r"\bDecision (\d+)", text)
    return ["%s: STANDARD.md lists no decision %s" % (cite(text, m.start()), m.group(1)) for m in cited if m.group(1) not in listed]


def check_unfinished(text, path="netcode.h"):
    """No note that something is still to be done."""
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))
    return ["%s:%d: %s" % (path, source.line_of(text, m.start()), m.group(0)) for m in re.finditer(r"\b(%s)\b" % words, text)]


def check_page(page, text):
    """.github/CONTRIBUTING.md names functions, tables, files and commands that exist."""
    faults, words = [], set(re.findall(r"\w+", text))
    for word in sorted(set(re.findall(r"`([^`\n]+)`", page))):
        name = word.split("(")[0].strip()
        if re.fullmatch(r"(nc|NC|netcode|NETCODE)_\w+", name) and name not in words:
            faults.append("netcode.h has no %s" % name)
        if re.fullmatch(r"(tests|examples|\.ci)/[\w./]+", name) and "NAME" not in name and not os.path.exists(os.path.join(TOP, name)):
            faults.append("there is no %s" % name)
    return faults


OF_THE_HEADER = (
    check_rooms_in_order,
    check_no_foreign_macros,
    check_no_forward_declarations,
    check_nothing_used_above_its_room,
    check_prefix_belongs_to_one_room,
    check_uses,
    check_libsodium_in_its_room,
    check_public_includes,
    check_public_functions_documented,
    check_cuts,
    check_exports,
    check_mutable_data,
    check_private_macros_undefined,
    check_decisions,
    check_line_lengths,
    check_index,
)
OF_EVERY_FILE = (check_function_lengths, check_citations, check_unfinished)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def c_files():
    patterns = ("netcode.h", "examples/*.c", "examples/*.h", "examples/*/*.c", "examples/*/*.h", "tests/**/*.c", "tests/**/*.h")
    return sorted(os.path.relpath(path, TOP) for pattern in patterns for path in glob.glob(os.path.join(TOP, pattern), recursive=True))


def report(title, faults):
    print("%-4s %s" % ("ok" if not faults else "FAIL", title))
    for fault in faults:
        print("     " + fault)
    return len(faults)


def main():
    if sys.argv[1:] == ["--selftest"]:
        import selftest

        return selftest.run(sys.modules[__name__])
    header, count = read("netcode.h"), 0
    for check in OF_THE_HEADER:
        count += report(check.__doc__.split("\n")[0], check(header))
    for check in OF_EVERY_FILE:
        count += report(check.__doc__, [fault for path in c_files() for fault in check(read(path), path)])
    count += report(check_page.__doc__, check_page(read(".github/CONTRIBUTING.md"), header))
    print("%d faults" % count)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
