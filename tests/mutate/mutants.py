"""Finds the places in netcode.h that can be changed, and writes copies of it that hold many changes at once (mutant schemata): every changed
expression becomes `( MUTANT( 17 ) ? changed : ( original ) )`, every deleted statement `{ if ( !MUTANT( 18 ) ) statement }`. Knows the C of this
house only: tokens, brackets, statements and the precedence of operators, no types."""

import bisect
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lint"))
import source  # noqa: E402

LEX = re.compile(
    r"""(?P<word>[A-Za-z_]\w*) | (?P<number>0[xX][0-9A-Fa-f]+[uUlL]* | (?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[uUlLfF]*)
      | (?P<text>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
      | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^<>=!~?:;,.(){}\[\]])""",
    re.X,
)
PRECEDENCE = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6}
PRECEDENCE.update({"&": 5, "^": 4, "|": 3, "&&": 2, "||": 1})
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
BARRIERS = {",", ";", "?", ":", "{", "}", "(", "["} | ASSIGN
TYPE_WORDS = {"void", "char", "int", "short", "long", "unsigned", "signed", "float", "double", "const", "struct", "union", "enum", "static", "volatile"}
TYPE_WORDS |= {"fd_set", "WSADATA", "DWORD"}
CONTROL = {"if", "for", "while", "switch"}
KEYWORDS = CONTROL | {"else", "do", "return", "break", "continue", "goto", "case", "default", "sizeof"}

# What these say is for people or for the processor's cache: asserts watch, logs inform, and a prefetch is a hint.
WATCHERS = {"netcode_assert", "NC_LOG", "nc_log_write", "NC_PREFETCH"}
# Functions that do nothing but watch or log.
WATCHING_FUNCTIONS = {"nc_assert_default", "nc_log_write"}
COPIES = {"memcpy", "memset", "memmove", "memcmp"}

# operator's name -> what it does, for the report and the README
OPERATORS = {
    "relational boundary": "< to <=, <= to <, and so on",
    "relational negated": "< to >=, == to !=, and so on",
    "arithmetic": "+ to -, - to +, * to /, / to *, % to *",
    "logical": "&& to ||, || to &&",
    "clause dropped": "a && b to a, and to b; the same with ||",
    "bitwise": "& to |, | to &, ^ to &, << to >>, >> to <<",
    "condition negated": "if ( c ) to if ( !( c ) ); the same with while and ?:",
    "condition forced": "if ( c ) to if ( 1 ), and to if ( 0 )",
    "constant 0/1": "0 to 1, 1 to 0",
    "constant +-1": "another number, or the name of a limit: one more, one less",
    "compound assignment": "+= to -=, |= to &=, += to =, and so on",
    "increment": "++ to --, -- to ++",
    "unary": "! dropped, ~ dropped, minus dropped",
    "index +-1": "a[i] to a[i + 1], and to a[i - 1]",
    "size -1": "memcpy, memset, memcmp: one byte less",
    "call deleted": "a call whose result is not used",
    "assignment deleted": "x = y; dropped, x++; dropped",
    "wipe deleted": "nc_crypto_wipe( ... ); dropped",
    "jump deleted": "break, continue, or return; dropped, break and continue swapped",
    "return value": "return e to return 0, and to return e + 1",
    "table entry": "a number of a constant table: one more, one less",
}
COMPILED_ALONE = {"table entry"}
SWAP = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
NEGATE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}
BITWISE = {"&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<"}
COMPOUND = {"+=": ["-=", "="], "-=": ["+=", "="], "*=": ["/="], "/=": ["*="], "%=": ["*="], "|=": ["&=", "="], "&=": ["|=", "="], "^=": ["="]}
COMPOUND.update({"<<=": [">>="], ">>=": ["<<="]})


class Mutant:
    """One change. `kind`: 'plain' stands where the language wants a constant."""

    def __init__(self, operator, function, room, start, end, changed, kind, text):
        self.operator, self.function, self.room = operator, function, room
        self.start, self.end, self.changed, self.kind = start, end, changed, kind
        self.line = source.line_of(text, start)
        self.before = squeeze(text[start:end])
        self.mark = self.marked(text)
        self.id = 0
        self.own = False  # it needs a binary of its own
        self.status = self.by = None

    def marked(self, text):
        """The line with the change in it: with function and operator the name of this mutant, wherever the line goes."""
        first, last = text.rfind("\n", 0, self.start) + 1, (text + "\n").index("\n", self.end)
        if len(squeeze(text[first:last])) < 24:  # `return;` says little without what stands above it
            first = text.rfind("\n", 0, first - 1) + 1
        return squeeze("%s {{%s => %s}} %s" % (text[first : self.start], self.before, squeeze(self.changed), text[self.end : last]))

    def __str__(self):
        return "%s, line %d, %s: %s: `%s` becomes `%s`" % (self.room.lower(), self.line, self.function, self.operator, self.before, squeeze(self.changed))


def squeeze(text):
    return " ".join(source.TOKEN.sub(lambda m: " " if m.group(0)[0] == "/" else m.group(0), text).split())


class Token:
    def __init__(self, kind, text, start, end):
        self.kind, self.text, self.start, self.end = kind, text, start, end
        self.pair = None


def lex(text, start, end):
    """The tokens of text[start:end], without comments and preprocessor lines; brackets know their partners."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text[start:end], flags=re.S)
    code = source.without_directives(code)
    tokens, stack = [], []
    for match in LEX.finditer(code):
        tokens.append(Token(match.lastgroup, match.group(0), start + match.start(), start + match.end()))
        here = len(tokens) - 1
        if tokens[here].text in ("(", "[", "{"):
            stack.append(here)
        elif tokens[here].text in (")", "]", "}"):
            tokens[here].pair = stack.pop()
            tokens[tokens[here].pair].pair = here
    return tokens


def is_type_word(token):
    return token.kind == "word" and (token.text in TYPE_WORDS or token.text.endswith("_t"))


class Body:
    """One function's body: collects the mutants in it."""

    def __init__(self, text, function, room):
        self.text, self.function, self.room = text, function.name, room
        self.tokens = lex(text, function.opened, function.closed)
        self.is_void = bool(re.search(r"\bvoid\s+%s\b" % re.escape(function.name), function.signature))
        self.silent = set()  # tokens that stay as they are
        self.mutants = []
        self.statement(0)
        for at in range(len(self.tokens)):
            if at not in self.silent:
                self.expression_at(at)
        self.drop_doubles()

    def drop_doubles(self):
        """`if ( a < b )` negated is `a >= b`, which is there already; the same with `!a`."""
        places = {(m.start, m.end) for m in self.mutants if m.operator in ("relational negated", "unary")}
        self.mutants = [m for m in self.mutants if m.operator != "condition negated" or (m.start, m.end) not in places]

    def add(self, operator, first, last, changed, kind="expression"):
        """Tokens first..last become `changed`."""
        start, end = self.tokens[first].start, self.tokens[last].end
        if squeeze(changed) != squeeze(self.text[start:end]) or kind == "statement":
            self.mutants.append(Mutant(operator, self.function, self.room, start, end, changed, kind, self.text))

    def words(self, first, last):
        """The source of tokens first..last."""
        return squeeze(self.text[self.tokens[first].start : self.tokens[last].end]) if first <= last else ""

    def is_(self, at, *texts):
        return 0 <= at < len(self.tokens) and self.tokens[at].text in texts

    # ---- statements ----

    def statement(self, at):
        """Walks the statement that begins at token `at`; returns the token behind it."""
        token = self.tokens[at]
        if token.text == "{":
            at, end = at + 1, token.pair
            while at < end:
                at = self.statement(at)
            return end + 1
        if token.text in CONTROL:
            return self.control(at)
        if token.text in ("else", "do"):
            return self.statement(at + 1)
        if token.text in ("case", "default"):
            while not self.is_(at, ":"):
                self.silent.add(at)
                at += 1
            return at + 1
        return self.simple(at)

    def control(self, at):
        word, opened = self.tokens[at].text, at + 1
        closed = self.tokens[opened].pair
        condition = self.words(opened + 1, closed - 1)
        if word in ("if", "while"):
            self.add("condition negated", opened + 1, closed - 1, "!( %s )" % condition)
        if word == "if":
            self.add("condition forced", opened + 1, closed - 1, "1")
            self.add("condition forced", opened + 1, closed - 1, "0")
        if word == "for" and self.starts_declaration(opened + 1):
            self.declaration(opened + 1, self.end_of_simple(opened + 1))
        if word == "while" and self.is_(closed + 1, ";"):
            return closed + 2
        return self.statement(closed + 1)

    def end_of_simple(self, at):
        while not self.is_(at, ";"):
            at = self.tokens[at].pair + 1 if self.tokens[at].text in ("(", "[", "{") else at + 1
        return at

    def starts_declaration(self, at):
        return is_type_word(self.tokens[at]) and not self.is_(at + 1, "(")

    def declaration(self, at, end):
        static = any(self.is_(i, "static", "enum") for i in range(at, end))
        for i in range(at, end):
            inside = self.is_(i, "[") and not self.is_(i - 1, "=")
            if static or i == at:
                self.silent.add(i)
            # The size of an array; the index in an initialiser stands behind the `=`.
            if inside and not any(self.is_(j, "=") for j in range(at, i)):
                self.silent.update(range(i, self.tokens[i].pair + 1))

    def simple(self, at):
        end, word = self.end_of_simple(at), self.tokens[at].text
        if word in ("break", "continue"):
            self.add("jump deleted", at, end, "", "statement")
            self.add("jump deleted", at, end, {"break": "continue;", "continue": "break;"}[word], "statement")
        elif word == "return":
            self.returned(at, end)
        elif self.starts_declaration(at):
            self.declaration(at, end)
        elif self.watches(at):
            self.silent.update(range(at, end + 1))
        elif at < end and word not in KEYWORDS:
            self.deletable(at, end)
        return end + 1

    def watches(self, at):
        # `( void ) x;` does nothing.
        return self.tokens[at].text in WATCHERS or (self.is_(at, "(") and self.is_(at + 1, "void") and not self.is_(at + 4, "("))

    def deletable(self, at, end):
        if self.tokens[at].text == "nc_crypto_wipe":
            operator = "wipe deleted"
        elif any(self.tokens[i].text in ASSIGN | {"++", "--"} for i in range(at, end)):
            operator = "assignment deleted"
        else:
            operator = "call deleted"
        self.add(operator, at, end, "", "statement")

    def returned(self, at, end):
        if at + 1 == end:
            self.add("jump deleted", at, end, "", "statement")
            return
        value = self.words(at + 1, end - 1)
        if value not in ("0", "1"):
            self.add("return value", at + 1, end - 1, "0")
        if not re.match(r"^(0|1|NULL)$|NETCODE_OK|NETCODE_ERROR", value):
            self.add("return value", at + 1, end - 1, "( %s ) + 1" % value)

    # ---- expressions ----

    def is_cast(self, closed):
        opened = self.tokens[closed].pair
        if opened + 1 >= closed or self.is_(opened - 1, "sizeof"):
            return False
        if not is_type_word(self.tokens[opened + 1]):
            return False
        return all(is_type_word(self.tokens[i]) or self.is_(i, "*") or self.is_(i - 1, "struct") for i in range(opened + 1, closed))

    def is_operand_end(self, at):
        token = self.tokens[at]
        if token.text == ")":
            return not self.is_cast(at) and not self.is_(token.pair - 1, *CONTROL)
        if token.kind == "word":
            return token.text not in KEYWORDS and not is_type_word(token) and not self.is_(at - 1, "struct")
        return token.kind in ("number", "text") or token.text in ("]", "++", "--")

    def is_binary(self, at):
        return self.tokens[at].text in PRECEDENCE and self.is_operand_end(at - 1)

    def left_of(self, at, level):
        """The first token of the left operand of the operator at `at`."""
        i = at - 1
        while True:
            if self.tokens[i].text in (")", "]"):
                if self.is_(self.tokens[i].pair - 1, *CONTROL):
                    return i + 1
                i = self.tokens[i].pair
            elif self.tokens[i].text in BARRIERS or self.is_(i, "return", "else", "do", "case"):
                return i + 1
            elif self.is_binary(i) and PRECEDENCE[self.tokens[i].text] < level:
                return i + 1
            i -= 1

    def right_of(self, at, level):
        """The last token of the right operand; of an assignment (level 0) with all of its `?:`."""
        barriers = BARRIERS if level else {",", ";"}
        i = at + 1
        while True:
            if self.tokens[i].text in ("(", "[", "{"):
                i = self.tokens[i].pair
            elif self.tokens[i].text in barriers | {")", "]"}:
                return i - 1
            elif self.is_binary(i) and PRECEDENCE[self.tokens[i].text] <= level:
                return i - 1
            i += 1

    def expression_at(self, at):
        token = self.tokens[at]
        if token.text == "sizeof":
            self.silence_sizeof(at)
        elif token.kind == "number":
            self.constant(at)
        elif token.kind == "word" and re.match(r"(NC|NETCODE)_[A-Z0-9_]+$", token.text) and not self.is_(at + 1, "("):
            self.limit(at)
        elif token.text in PRECEDENCE and self.is_binary(at):
            self.binary(at)
        elif token.text in COMPOUND:
            self.compound(at)
        elif token.text in ("++", "--"):
            self.increment(at)
        elif token.text in ("!", "~", "-"):
            self.unary(at)
        elif token.text == "[" and at > 0 and self.is_operand_end(at - 1):
            self.index(at)
        elif token.text == "?":
            first = self.left_of(at, 0)
            self.add("condition negated", first, at - 1, "!( %s )" % self.words(first, at - 1))
        elif token.text in WATCHERS:
            self.silent.update(range(at, self.tokens[at + 1].pair + 1))
        elif token.text in COPIES and self.is_(at + 1, "("):
            closed = self.tokens[at + 1].pair
            first = self.left_of(closed, 0)
            self.add("size -1", first, closed - 1, "( %s ) - 1" % self.words(first, closed - 1))

    def silence_sizeof(self, at):
        last = self.tokens[at + 1].pair if self.is_(at + 1, "(") else at + 1
        self.silent.update(range(at, last + 1))

    def constant(self, at):
        text = self.tokens[at].text
        value = re.sub(r"[uUlLfF]+$", "", text) if not text.startswith("0x") else text
        if value in ("0", "0.0"):
            self.add("constant 0/1", at, at, text.replace("0", "1", 1))
        elif value in ("1", "1.0"):
            self.add("constant 0/1", at, at, text.replace("1", "0", 1))
            self.add("constant +-1", at, at, "( %s + 1 )" % text)
        else:
            self.add("constant +-1", at, at, "( %s + 1 )" % text)
            self.add("constant +-1", at, at, "( %s - 1 )" % text)

    def limit(self, at):
        name = self.tokens[at].text
        if name in ("NC_NOTHING", "NC_VERSION_INFO", "NC_VERSION_INFO_OLD", "NETCODE_VERSION_FULL"):
            return
        self.add("constant +-1", at, at, "( %s + 1 )" % name)
        self.add("constant +-1", at, at, "( %s - 1 )" % name)

    def binary(self, at):
        sign = self.tokens[at].text
        first, last = self.left_of(at, PRECEDENCE[sign]), self.right_of(at, PRECEDENCE[sign])
        left, right = self.words(first, at - 1), self.words(at + 1, last)
        for operator, table in (("relational boundary", SWAP), ("relational negated", NEGATE), ("arithmetic", ARITHMETIC), ("bitwise", BITWISE)):
            if sign in table:
                self.add(operator, first, last, "( %s ) %s ( %s )" % (left, table[sign], right))
        if sign in ("&&", "||"):
            self.add("logical", first, last, "( %s ) %s ( %s )" % (left, "||" if sign == "&&" else "&&", right))
            self.add("clause dropped", first, last, left)
            self.add("clause dropped", first, last, right)

    def compound(self, at):
        first, last = self.left_of(at, 0), self.right_of(at, 0)
        for sign in COMPOUND[self.tokens[at].text]:
            self.add("compound assignment", first, last, "%s %s %s" % (self.words(first, at - 1), sign, self.words(at + 1, last)))

    def increment(self, at):
        """The whole of `++x[i]` or `x[i]++`."""
        other = {"++": "--", "--": "++"}[self.tokens[at].text]
        if self.is_operand_end(at - 1):
            first = self.postfix_start(at - 1)
            self.add("increment", first, at, self.words(first, at - 1) + other)
        else:
            last = self.right_of(at, 11)
            self.add("increment", at, last, other + self.words(at + 1, last))

    def postfix_start(self, at):
        """Where the chain of names, members, calls and indices begins that ends at `at`."""
        while True:
            if self.tokens[at].text in (")", "]"):
                at = self.tokens[at].pair
                if not self.is_operand_end(at - 1):
                    return at
            elif self.is_(at - 1, ".", "->"):
                at -= 1
            else:
                return at
            at -= 1

    def unary(self, at):
        if self.tokens[at].text == "-" and self.is_operand_end(at - 1):
            return
        last = self.right_of(at, 11)
        self.add("unary", at, last, self.words(at + 1, last))

    def index(self, at):
        closed = self.tokens[at].pair
        inner = self.words(at + 1, closed - 1)
        if not re.match(r"^\d+$", inner):  # the number itself is changed anyway
            self.add("index +-1", at + 1, closed - 1, "( %s ) + 1" % inner)
            self.add("index +-1", at + 1, closed - 1, "( %s ) - 1" % inner)


def tables(text, room, start, end):
    """Mutants of the constants in tables at file level: each needs a copy of its own."""
    found = []
    tokens = lex(text, start, end)
    for at, token in enumerate(tokens):
        if token.kind == "number":
            for sign in "+-":
                changed = "%s %s 1" % (token.text, sign)
                found.append(Mutant("table entry", "(table)", room, token.start, token.end, changed, "plain", text))
        if token.kind == "word" and re.match(r"NC_ON_[A-Z_]+$", token.text):
            found.append(Mutant("table entry", "(table)", room, token.start, token.end, "NC_ON_NOTHING", "plain", text))
        if token.text == "NC_STATE":
            last = tokens[at + 1].pair
            changed = text[token.start : tokens[last].end] + " - 1"
            found.append(Mutant("table entry", "(table)", room, token.start, tokens[last].end, changed, "plain", text))
    return found


def collect(text):
    """Every mutant of the rooms."""
    rooms = source.rooms(text)
    starts = [room.start for room in rooms]
    found = []
    for kind, start, end, head, opened in source.top_level(text):
        at = bisect.bisect(starts, start) - 1
        if at < 0 or start >= rooms[-1].end:
            continue
        if kind == "statement" and opened is not None and "=" in head and "[]" in head:
            found += tables(text, rooms[at].name, opened, end)
    for function in source.functions(text):
        at = bisect.bisect(starts, function.start) - 1
        if at >= 0 and function.start < rooms[-1].end and function.name not in WATCHING_FUNCTIONS:
            found += Body(text, function, rooms[at].name).mutants
    for number, mutant in enumerate(found):
        mutant.id = number + 1
    return found


def schemata(text, mutants):
    """`text` with all of these in it, each asleep until its number is switched on."""
    inserts = []  # (offset, order, text): what ends comes before what begins, the outer begins first and ends last
    for m in mutants:
        size = m.end - m.start
        if m.kind == "statement":
            before, after = "{ if ( MUTANT( %d ) ) { %s } else " % (m.id, m.changed), " }"
        else:
            before, after = "( MUTANT( %d ) ? ( %s ) : ( " % (m.id, squeeze(m.changed)), " ) )"
        inserts.append((m.start, 1, -size, m.id, before))
        inserts.append((m.end, 0, size, -m.id, after))
    out, at = [], 0
    for offset, _, _, _, piece in sorted(inserts):
        out.append(text[at:offset])
        out.append(piece)
        at = offset
    out.append(text[at:])
    return "".join(out)


def alone(text, mutant):
    """`text` with this change for good."""
    changed = mutant.changed if mutant.kind == "statement" else "( %s )" % mutant.changed
    if mutant.kind == "plain":
        changed = mutant.changed
    if mutant.kind == "statement" and not changed:
        changed = ";"
    return text[: mutant.start] + changed + text[mutant.end :]
