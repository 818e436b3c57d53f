#!/usr/bin/env python3
"""Turns netcode.h's manual and public API, MIGRATION.md and FAQ.md into three HTML pages that need nothing beside themselves.

    sh examples/docs/docs.sh                    build/docs/netcode.html, migration.html, faq.html; installs pandoc where it may
    python3 examples/docs/docs.py DIRECTORY     the same into another directory, with the pandoc that is there

This reads the header's text; pandoc makes the pages. What goes to pandoc is its own document tree, so nothing in a comment can be
taken for markup. Every line of the manual and of the public API is on the page: tests/all/docs.py compares.
"""

import json
import os
import re
import subprocess
import sys

HOME = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HOME))
PAGES = {"netcode.html": "Manual and API", "migration.html": "Coming from elsewhere", "faq.html": "Questions"}
NOBODY = ["", [], []]

# ---- pandoc's document tree ----


def string(text):
    return {"t": "Str", "c": text}


def code(text):
    return {"t": "Code", "c": [NOBODY, text]}


def span(identifier, inlines):
    return {"t": "Span", "c": [[identifier, [], []], inlines]}


def link(inlines, target):
    return {"t": "Link", "c": [NOBODY, inlines, [target, ""]]}


def header(level, identifier, inlines):
    return {"t": "Header", "c": [level, [identifier, [], []], inlines]}


def para(inlines):
    return {"t": "Para", "c": inlines}


def plain(inlines):
    return {"t": "Plain", "c": inlines}


def code_block(text, language=""):
    return {"t": "CodeBlock", "c": [["", [language] if language else [], []], text]}


def bullets(items):
    return {"t": "BulletList", "c": [[plain(item)] for item in items]}


def definitions(rows):
    return {"t": "DefinitionList", "c": [[term, [[plain(text)]]] for term, text in rows]}


def cell(inlines, columns=1):
    return [NOBODY, {"t": "AlignDefault"}, 1, columns, [plain(inlines)] if inlines else []]


def table(titles, rows, name):
    """Rows are lists of inlines; a row of one cell in a wider table stands across it."""
    count = len(titles)
    columns = [[{"t": "AlignDefault"}, {"t": "ColWidthDefault"}]] * count
    body = [[NOBODY, [cell(row[0], count)] if len(row) == 1 < count else [cell(each) for each in row]] for row in rows]
    head = [NOBODY, [[NOBODY, [cell([string(title)]) for title in titles]]]]
    return {"t": "Table", "c": [["", [name], []], [None, []], columns, head, [[NOBODY, 0, [], body]], [NOBODY, []]]}


# ---- what the header's words become: links to what they name ----


class Names:
    """Every public name and the anchor that it has on netcode.html. Fields that two structs have lead nowhere by their bare name."""

    def __init__(self):
        self.anchors, self.fields, self.described, self.sections = {}, {}, set(), 0

    def add(self, name):
        self.anchors[name] = name

    def add_field(self, owner, name):
        self.anchors[owner + "." + name] = owner + "." + name
        self.fields.setdefault(name, set()).add(owner + "." + name)

    def find(self, name):
        """The anchor of a name, of one without its beginning (TOKEN_EXPIRED), or of a field. Words that are no names have no underscore."""
        for prefix in ("", "NETCODE_DROP_", "NETCODE_MESSAGE_", "NETCODE_CLIENT_STATE_"):
            if "_" in name and prefix + name in self.anchors:
                return prefix + name
        owners = self.fields.get(name, ())
        return min(owners) if len(owners) == 1 and "_" in name else None


WORDS = re.compile(
    r"`(?P<quoted>[^`]+)`"
    r"|(?P<path>\b(?:examples|tests)/[\w./*]*\w)"
    r"|(?P<name>(?:(?<!\w)-)?\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:_\.\.\.)?)"
    r"|(?P<before>\(|\bsee |\bwhat |\bsections? )(?P<section>[1-9][0-9]?)(?=\)|[,.;: ]|$)"
)


def named(text, names):
    target = names.find(text)
    return link([code(text)], "#" + target) if target else code(text)


def is_section(match, text, names):
    """A number in parentheses by itself, or behind a word that points somewhere."""
    alone = match["before"] != "(" or text[match.end() : match.end() + 1] == ")"
    return alone and int(match["section"]) <= names.sections


def inlines(text, names):
    """Plain text with its names, paths and references to sections found."""
    out, at = [], 0
    for match in WORDS.finditer(text):
        if match["section"] and not is_section(match, text, names):
            continue
        if match.start() > at:
            out.append(string(text[at : match.start()]))
        if match["section"]:
            out += [string(match["before"]), link([string(match["section"])], "#section-" + match["section"])]
        elif match["path"]:
            out.append(code(match["path"]))
        else:
            out.append(named(match["quoted"] or match["name"], names))
        at = match.end()
    return out + ([string(text[at:])] if at < len(text) else [])


# ---- the manual: plain text in, blocks out ----


def indent(line):
    return len(line) - len(line.lstrip(" "))


DEFINITION = re.compile(r"^( {4}| {6})(\S.*?)( {2,})(\S.*)$")


class Prose:
    """Reads the lines of one section. Everything hangs on indentation: 4 is text, 6 a row or an item, 8 and more is verbatim behind an
    empty line, and the rest of a row or an item otherwise."""

    def __init__(self, lines, names):
        self.lines, self.names, self.at, self.out = lines, names, 0, []

    def text(self, words):
        return inlines(" ".join(words), self.names)

    def rest(self, deep):
        """The lines from here on that are as deep as that."""
        words = []
        while self.at < len(self.lines) and self.lines[self.at] and deep(indent(self.lines[self.at])):
            words.append(self.lines[self.at].strip())
            self.at += 1
        return words

    def verbatim(self):
        start = self.at
        while self.at < len(self.lines) and (not self.lines[self.at] or indent(self.lines[self.at]) >= 8):
            self.at += 1
        lines = [line[8:] for line in self.lines[start : self.at]]
        while not lines[-1]:
            lines.pop()
        cells = [re.split(r" {2,}", line) for line in lines]
        if len(cells) > 2 and all(len(row) == 3 for row in cells):
            self.out.append(table(cells[0], [[self.text([each]) for each in row] for row in cells[1:]], "kinds"))
        else:
            self.out.append(code_block("\n".join(lines), "c" if re.search(r";$|^#include", "\n".join(lines), re.M) else ""))

    def definition_rows(self):
        rows = []
        while self.at < len(self.lines) and (match := DEFINITION.match(self.lines[self.at])):
            column = match.end(3)
            self.at += 1
            rows.append((self.text([match[2]]), self.text([match[4]] + self.rest(lambda deep, column=column: deep == column))))
        self.out.append(definitions(rows))

    def bullet_rows(self):
        items = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("      - "):
            first = self.lines[self.at].strip()[2:]
            self.at += 1
            items.append(self.text([first] + self.rest(lambda deep: deep == 8)))
        self.out.append(bullets(items))

    def hangs(self):
        """Is this a list whose items begin at 4 and go on at 6?"""
        end = next((i for i in range(self.at, len(self.lines)) if not self.lines[i]), len(self.lines))
        lines = self.lines[self.at : end]
        return any(indent(line) == 6 and not line.startswith("      - ") and not DEFINITION.match(line) for line in lines)

    def hanging_rows(self):
        items = []
        while self.at < len(self.lines) and self.lines[self.at]:
            first = self.lines[self.at].strip()
            self.at += 1
            items.append(self.text([first] + self.rest(lambda deep: deep >= 6)))
        self.out.append(bullets(items))

    def paragraph(self):
        words = []
        while self.at < len(self.lines) and self.lines[self.at] and indent(self.lines[self.at]) <= 4:
            if words and DEFINITION.match(self.lines[self.at]):
                break
            words.append(self.lines[self.at].strip())
            self.at += 1
        self.out.append(para(self.text(words)))

    def blocks(self):
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line:
                self.at += 1
            elif indent(line) >= 8:
                self.verbatim()
            elif line.startswith("      - "):
                self.bullet_rows()
            elif DEFINITION.match(line):
                self.definition_rows()
            elif indent(line) == 4 and self.hangs():
                self.hanging_rows()
            elif indent(line) <= 4:
                self.paragraph()
            else:
                raise SystemExit("docs.py: this line of the manual fits nothing that is known: " + line)
        return self.out


def contents(lines):
    """The titles by number, as the manual's table of contents writes them."""
    found = re.findall(r"(\d+)  (\S(?:.*?\S)?)(?= {2,}|$)", "\n".join(lines), re.M)
    titles = {int(number): title for number, title in found}
    if sorted(titles) != list(range(1, len(titles) + 1)):
        raise SystemExit("docs.py: the manual's contents name the sections %s" % sorted(titles))
    return titles


def manual(text, names):
    lines = [line.rstrip() for line in text[2:-2].split("\n")]
    lines[0] = "    " + lines[0].strip()
    rule = next(i for i, line in enumerate(lines) if set(line.strip()) == {"="})
    starts = [i for i, line in enumerate(lines) if re.match(r"^    \d+  [A-Z][A-Z0-9 ,:'-]+$", line)]
    titles = contents(lines[rule + 2 : starts[0]])
    names.sections = len(starts)
    blocks = Prose(lines[:rule], names).blocks() + [header(2, "manual", [string("Manual")])]
    for i, start in enumerate(starts):
        number, title = lines[start].strip().split("  ", 1)
        if int(number) != i + 1 or int(number) not in titles:
            raise SystemExit("docs.py: the contents or the section before are missing: " + lines[start].strip())
        # The contents know which words have a capital; where they call it otherwise, the section is right.
        same = titles[int(number)].lower() == title.lower()
        title = titles[int(number)] if same else title.capitalize()
        end = starts[i + 1] if i + 1 < len(starts) else len(lines)
        blocks.append(header(3, "section-" + number, [string("%s  %s" % (number, title))]))
        blocks += Prose(lines[start + 1 : end], names).blocks()
    return blocks


# ---- the public API: C in, blocks out ----


class Token:
    def __init__(self, kind, text, first, last, blank):
        self.kind, self.text, self.first, self.last, self.blank = kind, text, first, last, blank


def end_of_declaration(text, at):
    # C++'s bracket around all of the functions: two lines that belong to no other.
    if text.startswith('extern "C" {', at) or text[at] == "}":
        return text.index("\n", at)
    depth = 0
    while True:
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == ";" and depth == 0:
            return at + 1
        at += 1


def end_of_directive(text, at):
    while text[at] != "\n" and not (text.startswith("/*", at) and not text.startswith("#endif", at)):
        at += 2 if text[at] == "\\" else 1
    return at


def tokens(text):
    """Comments, preprocessor lines and declarations, each with its lines."""
    at, found = 0, []
    while match := re.compile(r"\S").search(text, at):
        start = match.start()
        if text.startswith("/*", start):
            kind, end = "comment", text.index("*/", start) + 2
        elif text[start] == "#":
            kind, end = "directive", end_of_directive(text, start)
        else:
            kind, end = "declaration", end_of_declaration(text, start)
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        found.append(Token(kind, text[start:end].rstrip(), first, last, text[at:start].count("\n") > 1))
        at = end
    return found


def words_of(comment):
    """A comment without its marks, as one line."""
    return " ".join(line.strip() for line in comment[2:-2].split("\n") if set(line.strip()) != {"="}).strip()


class Api:
    def __init__(self, text, names):
        self.lines, self.tokens, self.names = text.split("\n"), tokens(text), names
        self.at, self.comments, self.out, self.headed = 0, [], [], set()

    # What is read.

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def behind(self, token):
        """The comment that stands on this token's last line, or nothing."""
        after = self.peek()
        return [words_of(self.take().text)] if after and after.kind == "comment" and after.first == token.last else []

    def prose(self, comments):
        return [para(inlines(comment, self.names)) for comment in comments]

    def fresh(self, found):
        """Those of the names that have no heading yet; they get one now."""
        names = [name for name in dict.fromkeys(found) if name not in self.headed]
        for name in names:
            self.names.add(name)
        self.headed.update(names)
        return names

    def heading(self, name):
        return header(4, name, [link([code(name)], "#" + name)])

    # What is written. Comments wait until it is known what they are about.

    def flush(self):
        self.out += self.prose(self.comments)
        self.comments = []

    def group(self, names, blocks):
        comments, self.comments = self.comments, []
        self.out += [self.heading(name) for name in names] + self.prose(comments) + blocks

    def comment(self):
        token = self.take()
        if re.match(r"/\* clang-format (on|off) \*/", token.text):
            return
        if match := re.match(r"/\* ---- (.*?) ---- \*/", token.text):
            self.flush()
            title = match[1]
            identifier = "api-" + re.match(r"\w+", title)[0] + ("-types" if "Define NETCODE" in title else "")
            taken = sum(block["t"] == "Header" and block["c"][1][0] == identifier for block in self.out)
            short, _, more = title.partition(": ")
            self.out.append(header(3, identifier + ("-%d" % (taken + 1) if taken else ""), [string(short[0].upper() + short[1:])]))
            self.comments += [more] if more else []
        elif "PUBLIC API\n" in token.text:
            self.out.append(header(2, "api", [string("Public API")]))
            self.out += self.prose([words_of(token.text).replace("PUBLIC API", "", 1).strip()])
        else:
            if token.blank:
                self.flush()
            self.comments.append(words_of(token.text))

    def conditional(self):
        """From #if to its #endif, as it stands; headings for the names in it that have none yet."""
        first, depth = self.peek(), 0
        while True:
            token = self.take()
            depth += {"#if": 1, "#en": -1}.get(token.text[:3], 0)
            if depth == 0:
                break
        self.behind(token)
        text = "\n".join(self.lines[first.first : token.last + 1])
        found = re.findall(r"#define (NETCODE_\w+|netcode_\w+)|\( \*(netcode_\w+) \)", text)
        self.group(self.fresh(a or b for a, b in found), [code_block(text, "c")])

    def drop_list(self, token):
        """An X-macro: one row for each reason."""
        name = re.match(r"#define (\w+)_LIST\(", token.text)[1]
        self.names.add(name + "_LIST")
        rows = []
        for value, (reason, sentence) in enumerate(re.findall(r'X\(\s*(\w+)\s*,\s*"((?:[^"\\]|\\.)*)"\s*\)', token.text)):
            full = "%s_%s" % (name, reason)
            self.names.add(full)
            rows.append([[span(full, [code(full)])], [code(str(value))], [string(sentence)]])
        self.group([name + "_LIST"], [table(["Name", "Value", "Meaning"], rows, "macros")])

    def macros(self):
        """Macros without an empty line between them. A comment that begins with a capital behind an empty line is about all of them."""
        rows, own, first = [], [], True
        if self.comments and not self.comments[-1][0].isupper():
            own.append(self.comments.pop())
        self.flush()
        while (token := self.peek()) and (first or not token.blank):
            if token.kind == "comment" and not token.text.startswith("/* clang-format"):
                own.append(words_of(self.take().text))
            elif match := re.match(r"#define (NETCODE_\w+)\s*(.*)", token.text) if "_LIST(" not in token.text else None:
                if "(" in token.text.split(" ")[1]:
                    break
                self.take()
                self.names.add(match[1])
                rows.append([[span(match[1], [code(match[1])])], [code(match[2])] if match[2] else [],
                             inlines(" ".join(own + self.behind(token)), self.names)])  # fmt: skip
                own = []
            else:
                break
            first = False
        self.comments += own
        titles = ["Name", "Value", "Meaning"] if any(row[2] for row in rows) else ["Name", "Value"]
        self.out.append(table(titles, [row[: len(titles)] for row in rows], "macros"))

    def directive(self):
        text = self.peek().text
        if text.startswith("#if defined( NETCODE_MESSAGES )"):
            self.take()
            self.out.append(para([string("Only "), code(text), string(":")]))
        elif text.startswith("#endif"):
            self.behind(self.take())
        elif text.startswith("#if"):
            self.conditional()
        elif "_LIST(" in text:
            self.flush_but_last()
            self.drop_list(self.take())
        elif re.match(r"#define NETCODE_\w+( |$)", text):
            self.macros()
        else:
            self.loose()

    def flush_but_last(self):
        last = self.comments[-1:]
        self.comments = self.comments[:-1]
        self.flush()
        self.comments = last

    def loose(self):
        """Preprocessor lines and enumerations that belong together: as they stand."""
        self.flush()
        first = token = self.take()
        while (after := self.peek()) and after.kind != "comment" and not after.blank:
            token = self.take()
        text = "\n".join(self.lines[first.first : token.last + 1])
        found = re.findall(r"^enum (\w+)|^#define (NETCODE_\w+)|\b(NETCODE_\w+_REASONS)\b", text, re.M)
        names = self.fresh(name for name in map("".join, found) if not name.endswith("_ENUM"))
        self.group(names, [code_block(text, "c")])

    def declaration(self):
        text = self.peek().text
        if match := re.match(r"struct (\w+) \{", text):
            self.flush_but_last()
            self.struct(match[1], self.take())
        elif text.startswith("enum"):
            self.loose()
        elif text.startswith("typedef") or re.match(r"struct \w+;", text):
            self.plain_declarations()
        else:
            self.functions()

    def run_of_declarations(self):
        """Declarations without an empty line or a comment between them."""
        run = [self.take()]
        while (after := self.peek()) and after.kind == "declaration" and not after.blank:
            run.append(self.take())
        return run

    def plain_declarations(self):
        run = self.run_of_declarations()
        fresh = self.fresh(re.findall(r"^struct (\w+);", "\n".join(token.text for token in run), re.M))
        self.group(fresh, [code_block("\n".join(self.lines[run[0].first : run[-1].last + 1]), "c")])

    def functions(self):
        self.flush_but_last()
        names, texts = [], []
        for token in self.run_of_declarations():
            name = re.match(r"NETCODE_API\s.*?\b(netcode_\w+)\(", token.text, re.S)
            if not name:
                raise SystemExit("docs.py: this is no declaration that is known: " + token.text)
            names.append(name[1])
            self.names.add(name[1])
            texts.append(re.sub(r"\n {12}", "\n", token.text[len("NETCODE_API ") :]))
        self.group(names, [code_block("\n".join(texts), "c")])

    # Structs: a row for each field.

    def struct(self, name, token):
        self.names.add(name)
        body = Api(token.text[token.text.index("{") + 1 : token.text.rindex("}")] + "\n", self.names)
        self.group([name], [table(["Field", "Meaning"], body.fields(name), "fields")])

    def fields(self, owner):
        rows, own = [], []
        while token := self.peek():
            self.take()
            if token.kind == "comment":
                across = token.blank and rows
                if across:
                    rows.append([inlines(words_of(token.text), self.names)])
                else:
                    own.append(words_of(token.text))
            else:
                behind = self.behind(token)
                if own and behind:  # the one above is about the fields that follow
                    rows.append([inlines(" ".join(own), self.names)])
                    own = []
                rows += self.field(owner, token, own + behind)
                own = []
        return rows

    def field(self, owner, token, comments):
        if match := re.match(r"union \{(.*)\} (\w+);", token.text, re.S):
            self.names.add_field(owner, match[2])
            inner = Api(match[1] + "\n", self.names).fields(owner + "." + match[2])
            ends = [[span("%s.%s" % (owner, match[2]), [code("} %s;" % match[2])])], []]
            return [[[code("union {")], []]] + inner + [ends]
        names = declared(token.text)
        shown = [code(" ".join(token.text.split()))]
        for name in names:
            self.names.add_field(owner, name)
            shown = [span("%s.%s" % (owner, name), shown)]
        return [[shown, self.meaning(owner, names[0], " ".join(comments))]]

    def meaning(self, owner, name, comment):
        """The field's comment. A server's struct says nothing where the client's has said it."""
        twin = owner.replace("netcode_server_", "netcode_client_", 1)
        if comment:
            self.names.described.add(owner + "." + name)
        elif twin != owner and twin + "." + name in self.names.described:
            return [string("as in "), link([code(twin)], "#%s.%s" % (twin, name))]
        return inlines(comment, self.names)

    def blocks(self):
        while token := self.peek():
            {"comment": self.comment, "directive": self.directive, "declaration": self.declaration}[token.kind]()
        self.flush()
        return self.out


def declared(text):
    """The names of the fields that one declaration declares."""
    pointer = re.search(r"\( \*(\w+) \)\(", text)
    return [pointer[1]] if pointer else [re.search(r"(\w+)(?:\[\w+\])*$", part.strip(" ;"))[1] for part in text.split(",")]


# ---- pages ----


def public_api(text, names):
    start = text.index("#define NETCODE_SINGLE_FILE_H\n") + len("#define NETCODE_SINGLE_FILE_H\n")
    return Api(text[start : text.index("\n#endif /* NETCODE_SINGLE_FILE_H */") + 1], names).blocks()


def changelog(text):
    body = text[text.rindex("    CHANGELOG\n") + len("    CHANGELOG\n") :]
    lines = [line for line in body.split("\n") if line.strip() and "====" not in line]
    rows = []
    for line in lines:
        if match := DEFINITION.match(line):
            rows.append([match[2], [match[4]]])
        else:
            rows[-1][1].append(line.strip())
    return [header(2, "changelog", [string("Changelog")]), definitions([([string(a)], [string(" ".join(b))]) for a, b in rows])]


def header_page(text, names):
    """Twice: only when all of it was read is it known which names have an anchor."""
    for _ in range(2):
        blocks = manual(text[: text.index("*/") + 2], names) + public_api(text, names) + changelog(text)
    return blocks


def pandoc(*arguments, **options):
    return subprocess.run(["pandoc", *arguments], stdout=subprocess.PIPE, check=True, encoding="utf-8", **options).stdout


def linked(node, names):
    """Makes links of what other pages name: public names in code, and sections of the manual."""
    if isinstance(node, list):
        return [each for part in node for each in linked_parts(part, names)]
    if isinstance(node, dict):
        return node if node.get("t") in ("Header", "Link", "CodeBlock") else {key: linked(value, names) for key, value in node.items()}
    return node


def linked_parts(part, names):
    if isinstance(part, dict) and part.get("t") == "Code":
        name = re.match(r"(?:struct )?(\w+)", part["c"][1])
        target = names.find(name[1]) if name else None
        return [link([part], "netcode.html#" + target)] if target else [part]
    return [linked(part, names)]


def join_words(node):
    """Pandoc gives each word a Str of its own: "section 7" has to be one text to be found."""
    if isinstance(node, dict):
        return {key: join_words(value) for key, value in node.items()}
    if not isinstance(node, list):
        return node
    out = []
    for part in node:
        space = isinstance(part, dict) and part.get("t") in ("Space", "SoftBreak")
        part = string(" ") if space else join_words(part)
        if out and all(isinstance(each, dict) and each.get("t") == "Str" for each in (out[-1], part)):
            out[-1] = string(out[-1]["c"] + part["c"])
        else:
            out.append(part)
    return out


def section_links(node):
    if isinstance(node, dict):
        return node if node.get("t") == "Link" else {key: section_links(value) for key, value in node.items()}
    if not isinstance(node, list):
        return node
    out = []
    for part in node:
        if not (isinstance(part, dict) and part.get("t") == "Str"):
            out.append(section_links(part))
            continue
        for i, piece in enumerate(re.split(r"(\b[Ss]ection \d+\b)", part["c"])):
            wanted = "netcode.html#section-" + piece.split(" ")[-1] if i % 2 else ""
            out += [link([string(piece)], wanted)] if wanted else [string(piece)] if piece else []
    return out


def file_links(text):
    return re.sub(r"\]\((MIGRATION|FAQ)\.md", lambda match: "](%s.html" % match[1].lower(), text)


def markdown_page(path, names):
    with open(path, encoding="utf-8") as file:
        text = file_links(file.read())
    title, _, text = text.partition("\n")
    document = json.loads(pandoc("-f", "gfm", "-t", "json", input=text))
    return title.lstrip("# "), section_links(linked(join_words(document["blocks"]), names))


def menu(page):
    parts = ["<b>%s</b>" % title if name == page else '<a href="%s">%s</a>' % (name, title) for name, title in PAGES.items()]
    return '<nav id="pages">%s</nav>' % " ".join(parts)


def write_page(directory, page, title, blocks, version):
    # The tree's version is the one that this pandoc speaks itself.
    document = {"pandoc-api-version": version, "meta": {}, "blocks": blocks}
    options = ["-f", "json", "-t", "html5", "--wrap=none", "--toc", "--toc-depth=4", "--template", os.path.join(HOME, "template.html")]
    with open(os.path.join(HOME, "style.css"), encoding="utf-8") as file:
        options += ["-V", "style=" + file.read()]
    options += ["-V", "menu=" + menu(page), "-V", "heading=" + title, "-M", "title=" + title]
    with open(os.path.join(directory, page), "w", encoding="utf-8") as file:
        file.write(pandoc(*options, input=json.dumps(document)))
    print(os.path.relpath(os.path.join(directory, page)))


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build", "docs")
    os.makedirs(directory, exist_ok=True)
    with open(os.environ.get("NETCODE_HEADER", os.path.join(TOP, "netcode.h")), encoding="utf-8") as file:
        text = file.read()
    version = json.loads(pandoc("-f", "gfm", "-t", "json", input=""))["pandoc-api-version"]
    names = Names()
    title = "netcode.h " + re.search(r'#define NETCODE_VERSION_FULL "(.*)"', text)[1]
    write_page(directory, "netcode.html", title, header_page(text, names), version)
    for page, source in (("migration.html", "MIGRATION.md"), ("faq.html", "FAQ.md")):
        title, blocks = markdown_page(os.path.join(HOME, source), names)
        write_page(directory, page, title, blocks, version)


if __name__ == "__main__":
    main()
