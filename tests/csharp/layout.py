#!/usr/bin/env python3
"""Writes a C program that prints what netcode.h's public part looks like to a compiler: for the tests of Netcode.cs, which compare it with
their own. It is made from the header each time, so a field, a number or a function without its twin in C# is found.

    layout.py netcode.h > layout.c
    layout.py --offsets netcode.h > examples/csharp/netcode_csharp_layout.h      for the library itself, when the header has changed

The program's lines:

    struct NAME SIZE
    field STRUCT NAME OFFSET SIZE
    number NAME VALUE                   macros that are whole numbers, and enumerators
    function NAME SIGNATURE             and callback NAME SIGNATURE: a letter for the result and each argument: p pointer, i 32 bits,
                                        u 32 unsigned, s 16, U 64, z size_t, d double, v nothing
"""

import re
import sys

LETTERS = {"int": "i", "uint32_t": "u", "uint16_t": "s", "uint64_t": "U", "size_t": "z", "double": "d", "float": "f", "void": "v"}


def letter(text):
    text = text.replace("const", " ").replace("extern", " ").strip()
    if "*" in text:
        return "p"
    return LETTERS[text.split()[0]]


def arguments(text):
    """The letters of an argument list, which may hold pointers to functions."""
    parts, depth, part = [], 0, ""
    for character in text + ",":
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return "".join("p" if "(" in part else letter(part) for part in parts if part != "void")


def fields(body):
    """The names of a struct's fields, and the pointers to functions among them."""
    body = re.sub(r"union \{.*?\} (\w+);", r"int \1;", body, flags=re.S)
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.match(r"(.*?)\( \*\s?(\w+) \)\( (.*) \)$", declaration, flags=re.S)
        if pointer:
            result, name, rest = pointer.groups()
            yield name, letter(result) + arguments(re.sub(r"\s+", " ", rest))
            continue
        for declarator in declaration.split(","):
            yield re.search(r"(\w+)(\[[^\]]*\])?$", declarator.strip()).group(1), None


def structs(text):
    return re.findall(r"^struct (netcode_\w+) \{\n(.*?)^\};", text, flags=re.S | re.M)


OFFSETS = """/*  Written by tests/csharp/layout.py --offsets: the size of each public struct of netcode.h, and where its fields lie. Include it
    behind netcode.h. */

#define NETCODE_SIZE( name ) ( (uint32_t) sizeof( struct name ) )
#define NETCODE_AT( name, field ) ( (uint32_t) offsetof( struct name, field ) )

static const uint32_t netcode_csharp_offsets[] = {"""


def print_offsets(text):
    print(OFFSETS)
    for name, body in structs(text):
        print(f"    NETCODE_SIZE( {name} ),")
        for field, _ in fields(body):
            print(f"    NETCODE_AT( {name}, {field} ),")
    print("};")


def main():
    with open(sys.argv[-1], encoding="utf-8") as file:
        text = file.read()
    text = text[: text.index("#endif /* NETCODE_SINGLE_FILE_H */")]
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    if sys.argv[1] == "--offsets":
        print_offsets(text)
        return
    lines = []
    callbacks = {}
    for name, body in structs(text):
        lines.append(f'printf( "struct {name} %d\\n", (int) sizeof( struct {name} ) );')
        for field, signature in fields(body):
            lines.append(f'printf( "field {name} {field} %d %d\\n", (int) offsetof( struct {name}, {field} ), (int) sizeof( ( (struct {name} *) 0 )->{field} ) );')
            if signature:
                if callbacks.setdefault(field, signature) != signature:
                    sys.exit(f"layout.py: two callbacks {field} have different arguments")
    numbers = re.findall(r"^#define (NETCODE_\w+) (?:\( )?-?\d+(?: \))?[ \t]*$", text, flags=re.M)
    numbers += re.findall(r"^    (NETCODE_\w+) = -?\d+,?[ \t]*$", text, flags=re.M)
    numbers = list(dict.fromkeys(name for name in numbers if not name.endswith("_ENDIAN")))
    for list_name, prefix in (("NETCODE_DROP_LIST", "NETCODE_DROP_"), ("NETCODE_MESSAGES_DROP_LIST", "NETCODE_MESSAGES_DROP_")):
        body = re.search(rf"#define {list_name}\( X \)(.*?[^\\])\n", text, flags=re.S).group(1)
        numbers += [prefix + name for name in re.findall(r"X\( (\w+)", body)] + [prefix + "REASONS"]
    lines += [f'printf( "number {name} %d\\n", (int) {name} );' for name in numbers]
    for result, name, rest in re.findall(r"^NETCODE_API ([\w \*]+?)(netcode_\w+)\(([^;{]*)\)\s*;", text, flags=re.M):
        lines.append(f'puts( "function {name} {letter(result)}{arguments(re.sub(chr(92) + "s+", " ", rest).strip())}" );')
    lines += [f'puts( "callback {name} {signature}" );' for name, signature in callbacks.items()]
    print("#define NETCODE_MESSAGES\n#include <stddef.h>\n#include <stdio.h>\n#include \"netcode.h\"\n\nint main( void )\n{")
    print("\n".join("    " + line for line in lines))
    print("    return 0;\n}")


main()
