"""What mkdocs asks for before and after it builds the site: gathers the pages that mkdocs.yml names out of this repository. The manual comes from
the comment at the top of netcode.h (its contents name the pages that have the rest), the API from doxygen's XML; every other page is a Markdown file as it stands, or parts of such files. Links
between files become links between pages, and names of the API, and sections of the manual, become links to them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import markdown.extensions
import markdown.treeprocessors

HOME = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HOME))
HEADER = os.environ.get("NETCODE_HEADER", os.path.join(TOP, "netcode.h"))
FENCED = re.compile(r"(^```.*?^```$)", re.M | re.S)


def read(path):
    with open(path if os.path.isabs(path) else os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def escaped(text):
    """Plain text as Markdown; what stands between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if i % 2 else re.sub(r"([\\*\[\]#]|\b_|_\b)", r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;")) for i, part in enumerate(parts))


def coded(text):
    """Comments of the header as Markdown: names in them are code."""
    names = r"`[^`]*`|\b[A-Z]+\.md\b|(?:\b(?:examples|tests)/[\w./*]*\w)|\b-?[A-Za-z](?:\w|\.(?=\w))*_\w+(?:(?<=_)\.\.\.)?(?:\( ?[^()`]*? ?\))?"
    out, at = "", 0
    for match in re.finditer(names, text):
        out, at = out + escaped(text[at : match.start()]) + "`" + match[0].strip("`") + "`", match.end()
    return out + escaped(text[at:])


# ---- the manual ----

ROW = re.compile(r"( {4}| {6})(\S.*?)( {2,})(\S.*)$")


def verbatim(lines):
    """A table where every line has the same columns (the first title may be empty), else code or a drawing."""
    rows = [re.split(r" {2,}", line.strip()) for line in lines if line]
    if len(rows) > 3 and len(rows[1]) > 2 and {len(row) for row in rows[1:]} == {len(rows[1])}:
        head = [""] * (len(rows[1]) - len(rows[0])) + rows[0]
        return "\n".join("| %s |" % " | ".join(map(coded, row)) for row in [head] + [["---"] * len(head)] + rows[1:])
    text = "\n".join(line[8:] for line in lines)
    return "```%s\n%s\n```" % ("c" if re.search(r";$|^#include", text, re.M) else "text", text)


def items(lines):
    """A block of text: paragraphs, rows of a term and its meaning, lists. Everything hangs on indentation."""
    hangs = any(re.match(r" {6}[^ -]", line) and not ROW.match(line) for line in lines)
    found, column, depth = [], 0, 4
    for line in lines:
        before, depth, row = depth, len(line) - len(line.lstrip()), ROW.match(line)
        if found and column and depth == column:
            found[-1][2].append(line.strip())
        elif found and column and depth == 8 and "  " in line.strip():  # the row's term goes on, and its meaning
            term, more = re.split(r" {2,}", line.strip(), maxsplit=1)
            found[-1][1] += " " + term
            found[-1][2].append(more)
        elif found and column and depth == 8:
            found[-1][1] += " " + line.strip()
        elif row and not hangs:
            column = row.start(4)
            found.append(["row", row[2], [row[4]]])
        elif line.startswith("      - "):
            found.append(["- ", "", [line.strip()[2:]]])
        elif hangs and depth == 8 and (found[-1][0] == "    - " or found[-1][2][-1].endswith(":")):
            found.append(["    - ", "", [line.strip()]])
        elif found and found[-1][0] == "- " and depth == 8:
            found[-1][2].append(line.strip())
        elif hangs and (depth == 4 or depth == 6 and before >= 8):
            found.append(["- ", "", [line.strip()]])
        elif found and (hangs or found[-1][0] == "p"):
            found[-1][2].append(line.strip())
        else:
            column = 0
            found.append(["p", "", [line.strip()]])
    return found


def prose(lines):
    """The lines of one section as Markdown."""
    out = []
    for block in re.split(r"\n(?: *\n)+", "\n".join(lines).strip("\n")):
        lines = block.split("\n")
        if all(line.startswith(" " * 8) for line in lines):
            if out and out[-1][0] == "v":
                out[-1][1].extend([""] + lines)
            else:
                out.append(("v", lines))
            continue
        for kind, term, words in items(lines):
            text = coded(" ".join(words))
            if kind == "row":
                text = "%s. %s" % (term, text) if term.isdigit() else "%s\n:   %s\n" % (coded(term), text)
                kind = "1. " if term.isdigit() else "row"
            out.append((kind, text if kind in ("p", "row", "1. ") else kind + text))
    text, last = "", ""
    for kind, part in out:
        together = kind == last or {kind, last} <= {"- ", "    - "}
        text += ("\n" if together and kind not in ("p", "row") else "\n\n") + (verbatim(part) if kind == "v" else part)
        last = kind
    return text.strip() + "\n"


def manual(header):
    """{number: (title, Markdown)}; number 0 is what stands before the contents."""
    lines = [line.rstrip() for line in header[2 : header.index("*/")].split("\n")]
    lines[0] = "    " + lines[0].strip()
    rule = next(i for i, line in enumerate(lines) if line.strip(" =") == "" and "=" in line)
    starts = [i for i, line in enumerate(lines) if re.match(r"    \d+  [A-Z][A-Z0-9 ,:'-]+$", line)]
    titles, found = {}, {0: ("Manual", prose(lines[:rule]))}
    for number, title in re.findall(r"(\d+)  (\S(?:.*?\S)?)(?= {2,}|$)", "\n".join(lines[rule:starts[0]]), re.M):
        titles[number], _, page = re.sub(r"; more in .*", "", title).partition(": ")
        if page:
            found[int(number)] = (titles[number], "The page is `%s`.\n" % page)
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        number, title = lines[start].strip().split("  ", 1)
        # The contents know which words have a capital; where they call it otherwise, the section is right.
        title = titles[number] if titles[number].lower() == title.lower() else title.capitalize()
        found[int(number)] = (title, prose(lines[start + 1 : end]))
    return {number: found[number] for number in sorted(found)}


# ---- the API ----


class Api:
    """Pages by the banners of netcode.h's public part. `where` has the page of each name, `sentences` what it says of it."""

    def __init__(self, header):
        self.text, self.lines = header, header.split("\n")
        self.pages, self.where, self.sentences, self.run = {}, {}, {}, (0, "")
        banners = ((number, re.match(r"/\* ---- ([\w ]+)(?:[:,.] .*)? ---- \*/$", line)) for number, line in enumerate(self.lines, 1))
        self.banners = [(number, match[1], "api/%s.md" % match[1].replace(" ", "-")) for number, match in banners if match]
        with tempfile.TemporaryDirectory() as out:
            environment = dict(os.environ, OUT=out, PYTHON=sys.executable, NETCODE_HEADER=HEADER)
            subprocess.run(["doxygen", os.path.join(HOME, "Doxyfile")], cwd=TOP, check=True, env=environment)
            names = [os.path.join(out, "xml", name) for name in os.listdir(out + "/xml") if re.match(r"struct.*\.xml|.*_8h\.xml", name)]
            compounds = [each for name in names for each in xml.etree.ElementTree.parse(name).getroot().iter("compounddef")]
        self.structs = {each.findtext("compoundname"): each for each in compounds if each.get("kind") == "struct"}
        members = [each for compound in compounds if compound.get("kind") == "file" for each in compound.iter("memberdef")]
        self.known = {each.findtext("name") for each in members}
        for element in sorted(members + list(self.structs.values()), key=line_of):
            self.write(element)
        self.index()

    def source(self, line):
        """The declaration that begins in this line, as it stands there, in one line and without comments."""
        text = re.sub(r"/\*.*?\*/", "", "\n".join(self.lines[line - 1 : line + 20]), flags=re.S)
        return " ".join(re.match(r"[^;{]*", text)[0].split()).replace("NETCODE_API ", "")

    def meaning(self, element, own=""):
        """Its comment; else the one above the run of lines that it stands in, which an empty line ends."""
        line, own = line_of(element), described(element) or own
        shared = self.run[1] if all(self.lines[self.run[0] : line]) else ""
        above = own and "*/" not in self.lines[line - 1] and "/*" not in self.lines[line - 1]
        self.run = (line, own if above else shared)
        return own or shared

    def term(self, name, path, shown, sentence):
        self.where[name], self.sentences[name] = path, sentence
        self.pages[path].append('<span id="%s">%s</span>\n:   %s' % (name, shown, coded(sentence)))

    def write(self, element):
        name, line, kind = element.findtext("compoundname") or element.findtext("name"), line_of(element), element.get("kind")
        if kind == "typedef" and name in self.structs or name.endswith("_DROP_ENUM") or line < self.banners[0][0]:
            return
        _, title, path = max(banner for banner in self.banners if banner[0] <= line)
        out = self.pages.setdefault(path, ["# " + title.capitalize()])
        sentence = self.meaning(element)
        if kind == "define":
            # A switch of which the preprocessor, here, takes the other branch, stands above this one.
            for other in re.findall(r"#define (NETCODE_\w+)(?<!_ENUM)", "\n".join(self.lines[line - 8 : line])):
                if other not in self.known | self.where.keys():
                    self.term(other, path, "`%s`" % other, sentence)
            value = " ".join((element.findtext("initializer") or "").split())
            self.term(name, path, "`%s`" % name + (" = `%s`" % value if value and "(" not in value[1:] else ""), sentence)
            return
        self.where[name], self.sentences[name] = path, sentence
        out.append("### %s {#%s}" % (name, name))
        if kind in ("function", "variable"):
            out.append("```c\n%s;\n```" % prototype(self.source(line)))
        out.append(coded(sentence))
        if kind == "struct":
            self.fields(name, path, element)
        elif kind == "enum":
            self.values(element, sentence, path, line)

    def values(self, enum, meaning, path, line):
        """Of an enum that an X-macro makes, the macro has the names and their sentences."""
        if "LIST(" not in "".join(self.lines[line : line + 2]):
            for value in enum.iter("enumvalue"):
                shown = "`%s %s`" % (value.findtext("name"), value.findtext("initializer"))
                self.term(value.findtext("name"), path, shown, described(value) or meaning)
            return
        macro = re.search(r"(NETCODE_\w+_)LIST", "\n".join(self.lines[line - 1 :]))[1]
        body = self.text.split("#define %sLIST(" % macro)[1].split("clang-format on")[0]
        values = re.findall(r'X\(\s*(\w+)\s*,[\s\\]*"((?:[^"\\]|\\.)*)"\s*\)', body) + [("REASONS", "How many reasons there are.")]
        for number, (value, sentence) in enumerate(values):
            self.term(macro + value, path, "`%s` = `%d`" % (macro + value, number), sentence)

    def fields(self, owner, path, struct):
        members, self.run = sorted(struct.iter("memberdef"), key=line_of), (line_of(struct), "")
        of_line = {line_of(member): described(member) for member in members if described(member)}
        client = re.sub("netcode_server_(client_)?", "netcode_client_", owner)
        for member in members:
            line, name = line_of(member), member.findtext("name")
            sentence = self.meaning(member, of_line.get(line, ""))
            twin = "%s.%s" % (client, name)
            if line not in of_line and twin in self.sentences:
                sentence = "as in %s: %s" % (client, self.sentences[twin])
            # Inside a union, as the lines say: up to the one that closes it.
            union = re.match(r"[^}\n]*\n(?:[^;{}]*;[^\n]*\n)*\s*\} (\w+);", "\n".join(self.lines[line - 1 :]))
            self.term("%s.%s%s" % (owner, union[1] + "." if union else "", name), path, "`%s`" % self.source(line), sentence)

    def find(self, code):
        """The name that a piece of code begins with; one without its beginning (TOKEN_EXPIRED); a field that one struct alone has."""
        if match := re.match(r"(?:const )?(?:struct )?((?:netcode_|NETCODE_)\w+)", code):
            return match[1] if match[1] in self.where else None
        names = [prefix + code for prefix in ("NETCODE_DROP_", "NETCODE_MESSAGE_", "NETCODE_CLIENT_STATE_") if prefix + code in self.where]
        names += [name for name in self.where if name.endswith("." + code) and "_" in code]
        return names[0] if len(names) == 1 else None

    def index(self):
        conventions = re.search(r"PUBLIC API\n\n(.*?)\n *=====", self.text, re.S)[1]
        out = ["# All names", coded(" ".join(conventions.split()))]
        for path, title in {path: title for _, title, path in self.banners if path in self.pages}.items():
            names = [name for name, page in self.where.items() if page == path and "." not in name]
            out += ["## " + title.capitalize(), "\n".join("- [`%s`](%s#%s)" % (name, path, name) for name in names)]
        self.pages["api/index.md"] = out


def line_of(element):
    return int(element.find("location").get("line"))


def described(element):
    return " ".join(" ".join("".join(element.find(kind).itertext()) for kind in ("briefdescription", "detaileddescription")).split())


def prototype(text):
    """One parameter a line where it is long, so that a phone shows it, too."""
    if len(text) <= 60:
        return text
    match = re.match(r"(.*?\w)\( (.*) \)$", text)
    if not match:
        return text
    head, parameters = match.groups()
    return "%s(\n    %s )" % (head, re.sub(r", (?![^()]*\))", ",\n    ", parameters))


# ---- pages ----


def parts_of(text):
    """[title, body] for each section of a Markdown file; the first has no title."""
    parts, fenced = [["", ""]], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            parts.append([line[3:].strip(), ""])
        else:
            parts[-1][1] += line + "\n"
    return parts


def nav_pages(nav):
    """[title, path] of everything in the menu."""
    for entry in nav:
        for title, what in entry.items():
            yield from nav_pages(what) if isinstance(what, list) else [(title, what)]


class Site:
    def __init__(self, config):
        self.out, self.made = config["docs_dir"], config["extra"]["made"]
        self.nav = [(title, re.sub("^github/", ".github/", path)) for title, path in nav_pages(config["nav"])]
        self.titles = {page: title for title, page in self.nav}
        self.header = read(HEADER)
        self.manual, self.api = manual(self.header), Api(self.header)
        self.moved = {tuple(part.split("#", 1)): path for path, parts in self.made.items() for part in parts if "#" in part}

    def place(self, path):
        """mkdocs overlooks folders whose names begin with a dot."""
        return path.replace(".github/", "github/")

    def relative(self, target, page):
        return os.path.relpath(self.place(target), os.path.dirname(self.place(page)) or ".")

    def section(self, number):
        return self.moved.get(("netcode.h", str(number)), "manual.md")

    # What a page consists of.

    def manual_section(self, number):
        title, text = self.manual[number]
        return "## %d. %s {#section-%d}\n\n%s" % (number, title, number, text)

    def part(self, part, page):
        """A section of a file, or of the manual; or Markdown, for a picture."""
        path, _, which = part.partition("#")
        if path == "netcode.h":
            return self.linked(self.manual_section(int(which)), ".", page, True)
        if part.startswith("!"):
            return self.linked(part, ".", page)
        found = [body for title, body in parts_of(read(path)) if title == which]
        if len(found) != 1:
            raise SystemExit("mkdocs.yml: %s has no section '%s'" % (path, which))
        head = "" if self.titles[page] == which else "## %s\n" % which
        return self.linked(head + found[0], os.path.dirname(path), page)

    def text(self, title, page):
        if page in self.api.pages:
            return self.linked("\n\n".join(self.api.pages[page]), "." if page == "api/index.md" else "", page, True)
        if page in self.made:
            return "# %s\n\n" % title + "\n\n".join(self.part(part, page) for part in self.made[page])
        if page == "manual.md":
            away = {number: "[%s](%s#section-%d) has a page of its own." % (self.manual[number][0], self.section(number), number)
                    for number in self.manual if number and self.section(number) != page}  # fmt: skip
            parts = ["## %d. %s {#section-%d}\n\n%s" % (n, self.manual[n][0], n, away[n]) if n in away else self.manual_section(n) for n in self.manual if n]
            return self.linked("# Manual\n\n%s\n\n%s" % (self.manual[0][1], "\n\n".join(parts)), ".", page, True)
        parts = [("## %s\n" % title if title else "") + body for title, body in parts_of(read(page)) if (page, title) not in self.moved]
        # GitHub nests a list by two spaces, Python's Markdown by four.
        return self.linked(re.sub(r"(?m)^  (?=- )", "    ", "".join(parts)), os.path.dirname(page), page)

    # Links.

    def target(self, path, page):
        """Where a file of the repository is in the site: it may be a page; pictures, and other files as text, are copied."""
        if os.path.isdir(os.path.join(TOP, path)):
            path = os.path.normpath(path + "/README.md")
        if path in self.titles or os.path.exists(os.path.join(self.out, path)):
            return self.relative(path, page)
        copy = self.place(path if path.endswith((".png", ".svg")) else path + ".txt")
        os.makedirs(os.path.dirname(os.path.join(self.out, copy)), exist_ok=True)
        shutil.copyfile(os.path.join(TOP, path), os.path.join(self.out, copy))
        return self.relative(copy, page)

    def linked(self, text, home, page, of_header=False):
        def file_link(match):
            if "://" in match[1] or not match[1]:
                return match[0]
            return "](" + self.target(os.path.normpath(os.path.join(home, match[1])), page)

        def name_link(match):
            if of_header and "examples/docs/" + match[1] in self.titles:
                return "[%s](%s)" % (match[0], self.target("examples/docs/" + match[1], page))
            name = self.api.find(match[1])
            return "[%s](%s#%s)" % (match[0], self.relative(self.api.where[name], page), name) if name else match[0]

        def section_link(match):
            before, number = match.groups()
            if int(number) not in self.manual or before.startswith("(") and not match.string[match.end() :].startswith((")", " in the manual", ",")):
                return match[0]
            return "%s[%s](%s#section-%s)" % (before, number, self.relative(self.section(number), page), number)

        sections = r"(\(|\bsee |\bwhat |\b[Ss]ections? )([1-9]\d?)(?=\)|[,;:] |\.?$|\.? )" if of_header else r"(\b[Ss]ection )(\d+)\b(?!\.\d)"
        out = ""
        for i, part in enumerate(FENCED.split(text)):
            if i % 2 == 0:
                part = re.sub(r"\]\(([^)\s#]*)", file_link, part)
                part = re.sub(r"(?m)^(?!#)(.*)$", lambda line: re.sub(r"(?<![\[>`])`([^`\n]+)`(?![`\]])", name_link, line[0]), part)
                spans = re.split(r"(`[^`]*`|\]\([^)]*\)|^#.*$)", part, flags=re.M)
                part = "".join(span if j % 2 else re.sub(sections, section_link, span, flags=re.M) for j, span in enumerate(spans))
            out += part
        return out

    def write(self):
        pictures(self.out)
        for title, page in self.nav:
            path = os.path.join(self.out, self.place(page))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.text(title, page))
        shutil.copy(os.path.join(HOME, "style.css"), self.out)


def pictures(out):
    """Drawn from what was measured: the numbers stand in two READMEs."""
    costs = re.findall(r"^\| (?:a payload )?of (\d+) bytes(?: in and out)? \|" + r" ([\d.]+) to ([\d.]+) × \|" * 3, read("README.md"), re.M)
    said = re.search(r"messages ([\d, ]+);\s+the\s+timer\s+([\d, ]+);\s+TCP\s+with\s+bbr\s+([\d, ]+),\s+with\s+cubic\s+([\d, ]+)\.", read("tests/README.md"))
    if len(costs) != 3 or not said:
        raise SystemExit("pages.py: README.md's table of costs, or tests/README.md's of latency, is not there")
    latency = zip("1 3 5 10".split(), *[numbers.split(", ") for numbers in said.groups()])
    for name, rows in (("costs", costs), ("latency", latency)):
        with open(os.path.join(out, name + ".dat"), "w", encoding="utf-8") as file:
            file.writelines(" ".join(row) + "\n" for row in rows)
    subprocess.run(["gnuplot", os.path.join(HOME, "pictures.gp")], cwd=out, check=True)


# ---- what mkdocs calls ----


class Labels(markdown.extensions.Extension, markdown.treeprocessors.Treeprocessor):
    """Gives each cell of a table its column's title, for narrow screens, where a row becomes a card."""

    def extendMarkdown(self, md):
        md.treeprocessors.register(self, "labels", 5)

    def run(self, root):
        for table in root.iter("table"):
            titles = ["".join(title.itertext()) for title in table.iter("th")]
            for row in table.find("tbody"):
                for title, cell in zip(titles, row):
                    cell.set("data-label", title)


def on_config(config):
    config["markdown_extensions"].append(Labels())
    return config


def on_pre_build(config):
    Site(config).write()


def on_post_build(config):
    """The search's index and worker as one script, for pages that are read from a disk; and no list of addresses that are not known."""
    site = config["site_dir"]
    with open(os.path.join(site, "search/search_index.json"), encoding="utf-8") as file:
        index = file.read()
    workers = os.path.join(site, "assets/javascripts/workers")
    (worker,) = [name for name in os.listdir(workers) if name.endswith(".js")]
    source = json.dumps(read(os.path.join(workers, worker)))
    with open(os.path.join(site, "search/offline.js"), "w", encoding="utf-8") as file:
        file.write("Object.assign(__search, {index: Promise.resolve(%s), worker: URL.createObjectURL(new Blob([%s]))})\n" % (index, source))
    for name in ("sitemap.xml", "sitemap.xml.gz", "costs.dat", "latency.dat"):
        if not config["site_url"] or name.endswith(".dat"):
            os.remove(os.path.join(site, name))
