#!/usr/bin/env python3
"""The public API of netcode.h, compared with that of the last release: what went, what changed, what came, and which version number that asks for.

    api.py                   the API check and the ABI check; ends with 1 where one of them fails
    api.py api | abi         one of them
    api.py list FILE         the API in a file, a line for each name

The last release is tests/release/netcode-VERSION.api, which kept.py made: C, so that both sides are read by the same reader. The API check reads
both with pycparser; a C and a C++ program that use each name of the release as it was declared there are compiled against today's header besides.
The ABI check gives each declared function an empty body, compiles both as shared libraries, and lets abidiff compare them, and today's with the real
one.

What is asked for: a name that is gone, or another type, value or order: a new major version. A new name, or a new version of the wire of messages:
a new minor one. The changelog says which version the next is.
"""

import functools
import glob
import os
import re
import subprocess
import sys
import tempfile

from kept import Unreadable, besides, cut, read, version_of, write
from pycparser import c_ast, c_generator, c_parser

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
HEADER = os.path.join(TOP, "netcode.h")
CHANGELOG = os.path.join(TOP, ".github", "CHANGELOG.md")
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
# Every version number is its own; the header says them all again.
OF_THE_VERSION = re.compile(r"NETCODE_VERSION_(MAJOR|MINOR|PATCH|FULL)$")
# How many rows a list has: a new row at the end is an addition, and the arrays that are sized by it grow with it.
COUNTS = {"NETCODE_DROP_REASONS", "NETCODE_MESSAGES_DROP_REASONS", "NETCODE_SERVER_CLIENT_DISCONNECT_REASONS"}
# Numbers of the wire of messages: they may change when its version is raised, and only then.
OF_THE_WIRE = {"NETCODE_MESSAGES_HEADER_BYTES", "NETCODE_MESSAGES_WHOLE_BYTES", "NETCODE_MESSAGES_FRAGMENT_BYTES"}
# They mark the file, or a part of it, as read: no other's affair.
GUARDS = {"NETCODE_H", "NETCODE_SINGLE_FILE_H", "NETCODE_IMPLEMENTED"}
LEVELS = ("patch", "minor", "major")
SYSTEM = {
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ( (void *) 0 )\n",
    "stdint.h": "".join(
        f"typedef {sign}{name} {prefix}int{bits}_t;\n"
        for sign, prefix in (("signed ", ""), ("unsigned ", "u"))
        for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long", 64))
    ),
}


def run(command, what):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unreadable(f"{what}:\n{result.stderr.strip()[:4000]}")
    return result.stdout


# ---- the API in a file ----


def number(text):
    """The value of a constant expression of numbers, or its words with single spaces."""
    plain = re.sub(r"(?<=[0-9a-fA-FxX])[uUlL]+\b", "", text)
    if re.fullmatch(r"[-+*|~() \t0-9a-fA-FxX<>]+", plain) and re.search(r"\d", plain):
        try:
            return str(eval(plain, {"__builtins__": {}}))  # digits and operators alone
        except (SyntaxError, TypeError, NameError):
            pass
    return " ".join(text.split())


class Reader:
    """Reads preprocessed declarations into `items`: (kind, name) -> what it is, and `order`: struct -> its fields."""

    def __init__(self):
        self.items, self.order, self.numbers = {}, {}, {}

    def value(self, node):
        if isinstance(node, c_ast.Constant):
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID) and node.name in self.numbers:
            return self.numbers[node.name]
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self.value(node.expr)
        if isinstance(node, c_ast.BinaryOp) and node.op in "+-*":
            left, right = self.value(node.left), self.value(node.right)
            return left + right if node.op == "+" else left - right if node.op == "-" else left * right
        raise Unreadable(f"a constant that is not a plain sum: {type(node).__name__}")

    def length(self, node):
        if node is None:
            return ""
        if isinstance(node, c_ast.ID) and node.name.startswith("ROWS_"):
            return node.name[len("ROWS_") :]
        return str(self.value(node))

    def text(self, node, inner=""):
        """A declaration in C, with `inner` in the place of its name."""
        if isinstance(node, c_ast.TypeDecl):
            return " ".join(node.quals + [self.base(node.type)] + ([inner] if inner else []))
        if isinstance(node, c_ast.PtrDecl):
            inner = "*" + "".join(f" {word}" for word in node.quals) + (f" {inner}" if inner else "")
            return self.text(node.type, f"( {inner} )" if isinstance(node.type, (c_ast.FuncDecl, c_ast.ArrayDecl)) else inner)
        if isinstance(node, c_ast.ArrayDecl):
            return self.text(node.type, f"{inner}[{self.length(node.dim)}]")
        if isinstance(node, c_ast.FuncDecl):
            arguments = [] if node.args is None else [self.text(one.type) if hasattr(one, "type") else "..." for one in node.args.params]
            return self.text(node.type, f"{inner}( {', '.join(arguments)} )")
        raise Unreadable(f"a declaration of a kind that is not known here: {type(node).__name__}")

    def base(self, node):
        if isinstance(node, c_ast.IdentifierType):
            return " ".join(node.names)
        kind = type(node).__name__.lower()
        if node.name:
            return f"{kind} {node.name}"
        return f"{kind} {{ {' '.join(self.text(one.type, one.name) + ';' for one in node.decls)} }}"

    def enum(self, node):
        following = 0
        for one in node.values.enumerators:
            following = self.value(one.value) if one.value else following
            self.numbers[one.name] = following
            self.items["value", one.name] = str(following)
            following += 1

    def declaration(self, node):
        if isinstance(node, c_ast.Typedef):
            self.items["type", node.name] = self.text(node.type)
            return
        if isinstance(node.type, (c_ast.Struct, c_ast.Union)):
            name = self.base(node.type)
            if node.type.decls is None:
                self.items.setdefault(("fields of", name), "private")
                return
            self.items["fields of", name] = "public"
            self.order[name] = [one.name for one in node.type.decls]
            for one in node.type.decls:
                self.items["field", f"{name}.{one.name}"] = self.text(one.type)
        elif isinstance(node.type, c_ast.Enum):
            self.enum(node.type)
        elif isinstance(node.type, c_ast.FuncDecl):
            self.items["function", node.name] = self.text(node.type, node.name)
        else:
            self.items["variable", node.name] = self.text(node.type, node.name)


def preprocess(path, folder, *options):
    for name, text in SYSTEM.items():
        write(os.path.join(folder, name), text)
    return run(CC + ["-E", "-P", "-nostdinc", "-I", folder, *options, "-x", "c", path], f"{os.path.basename(path)} can not be preprocessed")


def macros(path, folder, options):
    own = set(preprocess("/dev/null", folder, "-dM").split("\n"))
    for line in preprocess(path, folder, "-dM", *options).split("\n"):
        found = re.match(r"#define ((?:NETCODE|netcode)_\w+)(\([^)]*\))?[ ]?(.*)", line)
        if found and line not in own and found.group(1) not in GUARDS and not OF_THE_VERSION.match(found.group(1)):
            # What a macro with arguments stands for is its own affair; NETCODE_MESSAGES is what asks.
            if found.group(2):
                yield ("macro", found.group(1)), "( " + ", ".join(found.group(2).strip("()").replace(" ", "").split(",")) + " )"
            elif f"-D{found.group(1)}" not in options:
                what = number(found.group(3))
                yield ("value" if re.fullmatch(r"-?\d+", what) else "macro", found.group(1)), what


@functools.lru_cache(maxsize=64)
def api_of(text):
    """(items, order) of a header, or of what is kept of one: with messages, and what is not there without them says so."""
    both = []
    if "/* wire: " not in text:
        text = cut(text)
    with tempfile.TemporaryDirectory() as folder:
        for options in ([], ["-DNETCODE_MESSAGES"]):
            reader = Reader()
            copy = os.path.join(folder, "netcode.h")
            write(copy, re.sub(rf"\[ ?({'|'.join(COUNTS)}) ?\]", r"[ROWS_\1]", text))
            for node in c_parser.CParser().parse(preprocess(copy, folder, *options), "netcode.h").ext:
                name = getattr(node, "name", None) or getattr(node.type, "name", None) or "netcode_"
                if name.startswith("netcode_"):
                    reader.declaration(node)
            write(copy, text)
            reader.items.update(macros(copy, folder, options))
            both.append(reader)
    for key in both[1].items.keys() - both[0].items.keys():
        both[1].items[key] += WITH_MESSAGES
    both[1].items.update({("build switch", name): "listed" for name in besides(text, "build switches").split()})
    both[1].items["wire", "of the protocol and of messages"] = besides(text, "wire")
    return both[1].items, both[1].order


def lines(text):
    items, order = api_of(text)
    for (kind, name), what in sorted(items.items()):
        yield f"{kind} {name}: {what}"
    for name, fields in sorted(order.items()):
        yield f"order {name}: {' '.join(fields)}"


WITH_MESSAGES = " (with NETCODE_MESSAGES)"


def loosened(was, now):
    """Whether a function differs by this alone: what it takes a plain pointer to, it promises not to change now. Calls compile as before."""
    (was_head, was_tail), (now_head, now_tail) = (text.removesuffix(WITH_MESSAGES).split("( ", 1) for text in (was, now))
    was_arguments, now_arguments = was_tail.split(", "), now_tail.split(", ")
    return (
        was != now
        and was.endswith(WITH_MESSAGES) == now.endswith(WITH_MESSAGES)
        and was_head == now_head
        and "(" not in was_tail
        and len(was_arguments) == len(now_arguments)
        and all(a == b or (a.count("*") == 1 and b == "const " + a) for a, b in zip(was_arguments, now_arguments))
    )


def raised(old_items, new_items):
    """Whether the wire of messages has a higher version now, and nothing else is new about the wires."""
    (old_protocol, old_messages), (new_protocol, new_messages) = (items["wire", "of the protocol and of messages"].rsplit(" ", 1) for items in (old_items, new_items))
    return old_protocol == new_protocol and int(new_messages) > int(old_messages)


def compare(old, new):
    """Yields (level, sentence) for each difference between two APIs."""
    (old_items, old_order), (new_items, new_order) = old, new
    for key, what in sorted(old_items.items()):
        name = " ".join(key)
        if key not in new_items:
            yield "major", f"removed: {name}: {what}"
        elif new_items[key] == what:
            continue
        elif (key[0] == "wire" or key[1] in OF_THE_WIRE) and raised(old_items, new_items):
            yield "minor", f"of another version of the wire of messages: {name}: {what} -> {new_items[key]}"
        elif key[1] in COUNTS and int(new_items[key].split()[0]) > int(what.split()[0]):
            yield "minor", f"grown: {name}: {what} -> {new_items[key]}"
        elif key[0] == "function" and loosened(what, new_items[key]):
            yield "minor", f"loosened: {name}: {what} -> {new_items[key]}"
        elif key[0] == "fields of" and what.startswith("private") or what == new_items[key] + WITH_MESSAGES:
            yield "minor", f"opened: {name}: {what} -> {new_items[key]}"
        else:
            yield "major", f"changed: {name}: {what} -> {new_items[key]}"
    for key, what in sorted(new_items.items()):
        if key not in old_items:
            yield "minor", f"added: {' '.join(key)}: {what}"
    for name, fields in sorted(old_order.items()):
        if name not in new_order:
            continue  # said above: its fields are gone
        now = new_order[name]
        if now[: len(fields)] != fields and set(fields) <= set(now):
            yield "major", f"order: {name}: the fields of the release are not the first any more, in their order: {' '.join(now)}"


# ---- a program that uses all of it as it was ----


def user(old, new):
    """C that uses each name of an API: redeclares functions, takes the address of each field as a pointer to its type, asks for each value. What
    may be another now, as compare says, is not asked."""
    items = {key: what for key, what in old[0].items() if key[1] not in OF_THE_WIRE and not (key[0] == "function" and loosened(what, new[0].get(key, what)))}
    names, body, top = [], [], []
    for (kind, name), what in sorted(items.items()):
        messages = what.endswith(WITH_MESSAGES)
        what = what.removesuffix(WITH_MESSAGES)
        line = ""
        if kind in ("function", "variable"):
            # Before it is declared once more: else one that is gone would be there again.
            names.append(f"#if defined( NETCODE_MESSAGES )\n    (void) &{name};\n#endif" if messages else f"    (void) &{name};")
            top.append(("#if defined( NETCODE_MESSAGES )\n%s\n#endif" if messages else "%s") % (f"extern {what};"))
        elif kind == "field":
            owner, field = name.rsplit(".", 1)
            if "{" in what:  # a type without a name: it can be read
                line = f"{{ {owner} * object = NULL; (void) sizeof( object->{field} ); }}"
            elif re.search(r"\[\w+\]$", what):
                element, length = re.fullmatch(r"(.*?)((?:\[\w+\])+)$", what).groups()
                line = f"{{ static {owner} object; {element} ( * field ){length} = &object.{field}; (void) field; }}"
            else:
                pointer = what.replace("( *", "( * *field", 1) if "( *" in what else f"{what} * field"
                line = f"{{ static {owner} object; {pointer} = &object.{field}; (void) field; }}"
        elif kind in ("value", "macro") and re.fullmatch(r"-?\d+", what):
            less = "<" if name in COUNTS else "!="
            line = f"{{ typedef char equal[( {name} ) {less} ( {what} ) ? -1 : 1]; (void) sizeof( equal ); }}"
        elif kind == "macro" and what.startswith('"'):
            line = f"(void) sizeof( {name} );"
        elif kind == "type":
            line = f"{{ {name} * pointer = NULL; (void) pointer; }}"
        if line:
            body.append(f"#if defined( NETCODE_MESSAGES )\n    {line}\n#endif" if messages else f"    {line}")
    return (
        '#include "netcode.h"\nvoid name_it_all( void );\nvoid name_it_all( void )\n{\n' + "\n".join(names) + "\n}\n"
        '#ifdef __cplusplus\nextern "C" {\n#endif\n' + "\n".join(top) + "\nvoid use_it_all( void );\n"
        "#ifdef __cplusplus\n}\n#endif\nvoid use_it_all( void )\n{\n" + "\n".join(body) + "\n}\n"
    )


def use(old, new, text):
    """Compiles that program against a header, with messages and without, as C and as C++. Yields the faults."""
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "netcode.h"), text)
        path = os.path.join(folder, "user.c")
        write(path, user(old, new))
        for compiler, language in ((CC, ("-x", "c", "-std=c99")), (CXX, ("-x", "c++", "-std=c++11"))):
            for messages in ((), ("-DNETCODE_MESSAGES",)):
                command = compiler + [*language, "-Wall", "-Wno-unused-variable", "-Wno-unused-local-typedefs", "-Werror", *messages, "-fsyntax-only", path]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                if result.returncode:
                    yield (f"as {language[1]}: " + "\n    ".join(re.findall(r"error: .*", result.stderr)[:5] or [result.stderr[:2000]]))


# ---- the ABI ----
#
# netcode.h is compiled into the program that uses it, so a caller never meets a library that was built from another header: the sizes of
# structures are no promise (.github/SUPPORT.md). New fields at the end are taken away before abidiff looks, and arrays that are counted by the rows
# of a list get one length; abidiff's own way to let such fields pass lets all changes of their structure pass. All else it compares, and nothing of
# what it says is suppressed.


def declarations(text, order, lengths):
    """(types, bodies): C of what a kept file declares, each function with a body. A structure ends with its last field in `order`."""
    for name, value in lengths.items():
        text = re.sub(rf"\[ ?{name} ?\]", f"[{value}]", text)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "netcode.h")
        write(path, text)
        tree = c_parser.CParser().parse(preprocess(path, folder, "-DNETCODE_MESSAGES"), "netcode.h")
    generator = c_generator.CGenerator()
    types, bodies = [], []
    for node in tree.ext:
        name = node.name or getattr(node.type, "name", None) or "netcode_"
        if not name.startswith("netcode_"):
            continue  # the system's
        if isinstance(node.type, c_ast.Struct) and node.type.decls:
            fields = order.get(f"struct {node.type.name}", [])
            last = max((at for at, one in enumerate(node.type.decls) if one.name in fields), default=len(node.type.decls) - 1)
            del node.type.decls[last + 1 :]
        if isinstance(node, c_ast.Decl) and node.name:
            node.storage = []
            body = "\n{\n    __builtin_trap();\n}\n" if isinstance(node.type, c_ast.FuncDecl) else ";\n"
            bodies.append(generator.visit(node) + body)
        else:
            types.append(generator.visit(node) + ";\n")
    return "".join(types), "".join(bodies)


def sodium(option):
    return run(["sh", os.path.join(TOP, "tests", "tools", "deps.sh"), option], "libsodium is missing").split()


def library(path, product, *options):
    command = CC + ["-g", "-O0", "-fPIC", "-shared", *options, "-x", "c", path, "-x", "none", "-o", product]
    run(command, f"{os.path.basename(path)} can not be compiled as a shared library")


def library_of_declarations(text, folder, product, order, lengths):
    """A shared library with the symbols and types that a kept file declares."""
    types, bodies = declarations(text, order, lengths)
    write(os.path.join(folder, "netcode.h"), "#include <stddef.h>\n#include <stdint.h>\n" + types)
    write(os.path.join(folder, "bodies.c"), '#include "netcode.h"\n' + bodies)
    library(os.path.join(folder, "bodies.c"), product)


def library_of_header(text, folder, product):
    """The real one. Private types stand in a file outside of the public header's folder: so abidiff knows them."""
    end = text.index("#endif /* NETCODE_SINGLE_FILE_H */\n")
    line = text.count("\n", 0, end) + 2
    public, private = os.path.join(folder, "netcode.h"), folder + "-private.h"
    write(public, text[:end] + f'#endif\n#include "{private}"\n')
    write(private, f'#line {line} "{private}"\n' + text[end:].split("\n", 1)[1])
    options = ["-DNETCODE_IMPLEMENTATION", "-DNETCODE_MESSAGES", *sodium("--cflags")]
    library(public, product, *options, *sodium("--libs"), "-lm")


def abidiff(*sides):
    """What abidiff says of two libraries, each made by a function that gets a folder and the library's name; '' where they are the same."""
    with tempfile.TemporaryDirectory() as place:
        command = ["abidiff", "--drop-private-types", "--no-added-syms"]
        for number, side in enumerate(sides, 1):
            folder = os.path.join(place, str(number))
            os.mkdir(folder)
            side(folder, folder + ".so")
            command += [f"--headers-dir{number}", folder]
        result = subprocess.run(command + [os.path.join(place, "1.so"), os.path.join(place, "2.so")], capture_output=True, text=True, check=False)
        return "" if result.returncode == 0 else f"abidiff ended with {result.returncode}\n{result.stdout}{result.stderr}"


def abi(old_text, new_text):
    """What has changed between two kept files, but for additions."""
    items, order = api_of(old_text)
    lengths = {name: what.split()[0] for (kind, name), what in items.items() if name in COUNTS and kind in ("value", "macro")}

    def side(text):
        return lambda folder, product: library_of_declarations(text, folder, product, order, lengths)

    return abidiff(side(old_text), side(new_text))


def faithful(header):
    """What differs between the library of a header's declarations and the header's own: nothing, or abi would show nothing."""
    return abidiff(
        lambda folder, product: library_of_declarations(cut(header), folder, product, {}, {}),
        lambda folder, product: library_of_header(header, folder, product),
    )


# ---- the checks ----


def release_file():
    """What is kept of the last release, and its version. There is one file, and its name says which."""
    files = glob.glob(os.path.join(HERE, "netcode-*.api"))
    if len(files) != 1:
        raise Unreadable(f"tests/release keeps {len(files)} releases, not the last one alone: {' '.join(sorted(map(os.path.basename, files)))}")
    text = read(files[0])
    version = version_of(text)
    if os.path.basename(files[0]) != f"netcode-{version}.api":
        raise Unreadable(f"{os.path.basename(files[0])} says that it is {version}")
    return text, version


def triple(version):
    return tuple(int(part) for part in version.split("."))


def least_next(version, level):
    """The lowest version number that a release after `version` may have."""
    major, minor, patch = triple(version)
    return {"major": f"{major + 1}.0.0", "minor": f"{major}.{minor + 1}.0", "patch": f"{major}.{minor}.{patch + 1}"}[level]


def required(differences):
    return max((level for level, _ in differences), key=LEVELS.index, default="patch")


def planned(changelog, version):
    """The version that the next release is to have, as the changelog says below [Unreleased]."""
    found = re.search(r"^## \[Unreleased\]\n\nThe next version: (\d+\.\d+\.\d+)\.$", changelog, re.M)
    if found:
        return found.group(1)
    if not re.search(r"^## \[Unreleased\]$", changelog, re.M):
        raise Unreadable("the changelog has no [Unreleased]")
    return version


def unnamed(old, new, changelog):
    """New names that the changelog leaves out. A new structure stands for its fields."""
    entry = re.search(r"^## \[.*?(?=^## \[|\Z)", changelog, re.M | re.S)
    words = set(re.findall(r"\w+", entry.group(0) if entry else ""))
    for kind, name in sorted(new[0].keys() - old[0].keys()):
        owner, _, last = name.rpartition(".")
        if owner and ("fields of", owner) not in old[0]:
            continue
        if last.split(" ")[-1] not in words:
            yield f"{kind} {name}"


def check_api(old_text, new_text, changelog):
    """Returns (faults, notes)."""
    old, new = api_of(old_text), api_of(new_text)
    differences = list(compare(old, new))
    before, now = version_of(old_text), version_of(new_text)
    level = required(differences)
    following = planned(changelog, now) if now == before else now
    faults = []
    if (differences or following != before) and triple(following) < triple(least_next(before, level)):
        faults.append(f"{before} may be followed by {least_next(before, level)} or later, because of what follows; the next version is to be {following}")
        faults += [sentence for one, sentence in differences if one == level]
    faults += [f"the changelog's newest entry does not name what is new: {name}" for name in unnamed(old, new, changelog)]
    if level != "major":  # else it was said
        faults += use(old, new, new_text)
    added = sum(1 for _, sentence in differences if sentence.startswith("added"))
    news = f"{added} new ones, so the next version is {least_next(before, level)} at least; it is to be {following}" if differences else "and no others"
    return faults, f"{len(old[0])} names of {before}, {news}"


def report(title, faults, notes=""):
    if faults:
        print(f"FAILED: {title}\n    " + "\n    ".join(faults))
    else:
        print(f"ok: {title}" + (f": {notes}" if notes else ""))
    return bool(faults)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "list":
        print("\n".join(lines(read(arguments[1]))))
        return 0
    if arguments not in ([], ["api"], ["abi"]):
        print(__doc__, file=sys.stderr)
        return 2
    failed = False
    old_text, version = release_file()
    new_text = read(HEADER)
    if arguments != ["abi"]:
        faults, notes = check_api(old_text, new_text, read(CHANGELOG))
        failed |= report(f"the API of {version} is there as it was", faults, notes)
    if arguments != ["api"]:
        differences = abi(old_text, cut(new_text))
        if required(compare(api_of(old_text), api_of(new_text))) == "major":
            print("note: a new major version is needed anyway; abidiff's words are for information\n" + differences)
        else:
            failed |= report(f"abidiff: the ABI of {version} is there as it was", differences.splitlines())
        failed |= report("abidiff: netcode.h's own library is what its declarations say", faithful(new_text).splitlines())
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Unreadable, OSError) as error:
        print(f"api.py: {error}", file=sys.stderr)
        sys.exit(1)
