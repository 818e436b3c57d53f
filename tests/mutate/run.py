#!/usr/bin/env python3
"""make mutate: changes netcode.h in a thousand places, one at a time, and a test must notice each.

    run.py [COUNT] [--seed N] [--room NAME] [--operator NAME] [--only ID,ID] [--list] [--fast]

COUNT mutants (1030) are chosen by the seed, spread evenly over the rooms and over the operators of mutants.py; `all` takes every one.
--list prints them and stops; --fast leaves the sanitizers out. The mutants share one binary (see mutants.py), driver.c runs the tests that
reach a mutant, the fastest first, until one fails. A mutant that survives is tried again under the address and undefined behaviour sanitizers, then
compiled alone at -O2: object code that is byte for byte the original's proves that nothing changed ("same code", counted apart). What is
left must be in equivalent.txt, with its reason. Fails below 95 % killed of those not equivalent, or above 5 % declared equivalent.

Needs a C compiler, libsodium and an operating system with fork. Works in build/mutate, in a network namespace of its own where that can be had."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(TOP, "build", "mutate")
TREE = os.path.join(WORK, "tree")
VERDICTS = os.path.join(TOP, "build", "mutate.txt")  # of the last run: it says which test to try first
sys.path.insert(0, HERE)
import mutants as engine  # noqa: E402

LEAST_KILLED = 95.0
MOST_EQUIVALENT = 5.0
MOST_FAILING = 3  # tests that rely on one that ran before them
# file of tests -> why it can not judge a mutant
LEFT_OUT = {"speed.c": "it measures time, stack and size, which the switches for the mutants change"}
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
RAN = ("killed", "crashed", "timed-out", "sanitizer")


def flags(which):
    out = subprocess.run(["sh", os.path.join(TOP, "tests", "tools", "deps.sh"), which], stdout=subprocess.PIPE, universal_newlines=True, check=False)
    return out.stdout.split()


def wraps():
    names = ["crypto_aead_%s_ietf_%s" % (a, f) for a in ("chacha20poly1305", "xchacha20poly1305")
             for f in ("encrypt", "encrypt_detached", "decrypt", "decrypt_detached")]
    return ["-Wl,--wrap=" + name for name in names]


class Builder:
    """Compiles the driver against a copy of netcode.h."""

    def __init__(self):
        self.cc = os.environ.get("MUTATE_CC") or shutil.which("clang") or os.environ.get("CC", "cc")
        self.cflags, self.libs = flags("--cflags"), flags("--libs")
        self.pattern = self.accepted("-ftrivial-auto-var-init=pattern")
        self.header = os.path.join(TREE, "netcode.h")
        self.driver = os.path.join(TREE, "tests", "mutate", "driver.c")

    def accepted(self, flag):
        """[flag] if the compiler knows it. What a mutant leaves unset then holds a pattern, and not by chance the right value."""
        out = subprocess.run([self.cc, flag, "-x", "c", "-fsyntax-only", "-"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return [flag] if out.returncode == 0 else []

    def can_sanitize(self):
        path = os.path.join(WORK, "sanitized.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("int main( void ) { return 0; }\n")
        command = [self.cc] + SANITIZE + [path, "-o", path[:-2]]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0 and subprocess.run([path[:-2]], check=False).returncode == 0

    def make_tree(self):
        """The tests beside a netcode.h of their own: main.c includes "../netcode.h"."""
        shutil.rmtree(WORK, ignore_errors=True)
        shutil.copytree(os.path.join(TOP, "tests"), os.path.join(TREE, "tests"), ignore=shutil.ignore_patterns("mutate", "__pycache__"))
        os.makedirs(os.path.dirname(self.driver))
        shutil.copy(os.path.join(HERE, "driver.c"), self.driver)

    def command(self, *more):
        return [self.cc, "-std=c99", "-w"] + list(more) + ["-I" + TREE] + self.cflags + [self.driver]

    def write(self, text):
        with open(self.header, "w", encoding="utf-8") as file:
            file.write(text)

    def errors(self, text):
        """(line, column) of each error that the compiler finds in this netcode.h; other errors are (0, 0)."""
        self.write(text)
        limit = "-ferror-limit=0" if "clang" in os.path.basename(self.cc) else "-fmax-errors=0"
        out = subprocess.run(self.command("-fsyntax-only", limit), stderr=subprocess.PIPE, universal_newlines=True, check=False)
        found = []
        for line in out.stderr.splitlines():
            match = re.match(r"(.*?):(\d+):(\d+): (?:fatal )?error:", line)
            if match:
                here = os.path.basename(match.group(1)) == "netcode.h"
                found.append((int(match.group(2)), int(match.group(3))) if here else (0, 0))
        return found or ([(0, 0)] if out.returncode else [])

    def link(self, text, name, *more):
        self.write(text)
        path = os.path.join(WORK, name)
        command = self.command(*more) + self.pattern + wraps() + self.libs + ["-lm", "-o", path]
        out = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True, check=False)
        return path if out.returncode == 0 else sys.exit("does not compile:\n" + out.stderr[:4000])

    def machine_code(self, text):
        """The object code of this netcode.h at -O2. Without asserts, for their texts would differ."""
        path = os.path.join(WORK, "code")
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "netcode.h"), "w", encoding="utf-8") as file:
            file.write(text)
        command = [self.cc, "-x", "c", "-std=c99", "-w", "-O2", "-DNDEBUG", "-DNETCODE_IMPLEMENTATION", "-DNETCODE_MESSAGES", "-c", "netcode.h", "-o", "netcode.o"]
        out = subprocess.run(command + self.cflags, cwd=path, stderr=subprocess.PIPE, check=False)
        if out.returncode:
            return None
        with open(os.path.join(path, "netcode.o"), "rb") as file:
            return file.read()


def namespace():
    """A command's prefix that keeps whatever a mutant sends on this machine."""
    for words in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        if shutil.which("unshare") and subprocess.run(words + ["ip", "link", "set", "lo", "up"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return words + ["sh", "-c", 'ip link set lo up && exec "$@"', "mutate"]
    return []


def read_verdicts():
    """Which test noticed what in the run before this one."""
    found = {}
    if os.path.exists(VERDICTS):
        with open(VERDICTS, encoding="utf-8") as file:
            for row in file:
                fields = row.rstrip("\n").split("\t")
                function, operator = fields[4].split(": ", 1)
                found[(function, operator, fields[5])] = fields[2]
    return found


class Suite:
    """The tests, as the driver runs them."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.names, self.files, self.seconds = [], [], []
        self.reach = {}  # mutant -> tests
        self.failing = set()
        self.noticed = {}  # function -> tests that noticed a mutant of it
        self.last = read_verdicts()

    def map(self, binary):
        """Runs each test by itself without a mutant. Returns those that failed; they are not used."""
        out = subprocess.run(self.prefix + [binary, "map"], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        failed = []
        self.names, self.files, self.seconds, self.reach, self.failing = [], [], [], {}, set()
        for row in out.stdout.splitlines():
            fields = row.split()
            number, result = int(fields[0]), int(fields[3])
            self.names.append(fields[1])
            self.files.append(fields[2])
            self.seconds.append(float(fields[4]))
            if fields[2] in LEFT_OUT:
                continue
            if result != 0:
                failed.append(fields[1])
                self.failing.add(number)
                continue
            for mutant in fields[5:]:
                self.reach.setdefault(int(mutant), []).append(number)
        return failed

    def all_tests(self):
        return [i for i, name in enumerate(self.files) if name not in LEFT_OUT and i not in self.failing]

    def order(self, mutant):
        """The tests that reach it: first the one that noticed it in the last run, then those that noticed its neighbours, then the fastest."""
        tests = self.all_tests() if mutant.own else self.reach.get(mutant.id, [])
        nearby, last = self.noticed.get(mutant.function, {}), self.last.get((mutant.function, mutant.operator, mutant.mark))
        return sorted(tests, key=lambda i: (self.names[i] != last, self.names[i] not in nearby, self.seconds[i]))

    def judge(self, binary, mutants, done, slower=1.0, environment=None):
        """Calls done( mutant, word, test ) for each verdict. A mutant in a binary of its own needs no switch."""
        listed = subprocess.run([binary, "list"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        numbers = {name: number for number, name in (row.split() for row in listed.splitlines())}
        process = subprocess.Popen(self.prefix + [binary, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                                   env=dict(os.environ, **(environment or {})))
        for mutant in mutants:
            tests = [i for i in self.order(mutant) if self.names[i] in numbers]
            limits = ["%s:%.2f" % (numbers[self.names[i]], slower * (1.0 + 20.0 * self.seconds[i])) for i in tests]
            process.stdin.write("%d %s\n" % (0 if mutant.own else mutant.id, " ".join(limits)))
            process.stdin.flush()
            word = "unsteady"
            while word == "unsteady":
                row = process.stdout.readline().split()
                if len(row) != 3:
                    sys.exit("the driver stopped")
                word, test = row[1], row[2]
                done(mutant, word, test)
            if word != "survived":
                self.noticed.setdefault(mutant.function, {})[test] = 1
        process.stdin.close()
        process.stdout.close()
        process.wait()


# ---- which mutants ----


def lot(*words):
    """A number that depends on these words alone: an edit elsewhere in netcode.h chooses no other mutants."""
    return hashlib.sha256("\n".join(str(word) for word in words).encode()).hexdigest()


def choose(found, count, seed):
    """`count` of them, in turn from each pair of room and operator, so that small ones are heard too."""
    groups = {}
    for mutant in found:
        groups.setdefault((mutant.room, mutant.operator), []).append(mutant)
    order = sorted(groups, key=lambda key: lot(seed, *key))
    for mine in groups.values():
        mine.sort(key=lambda m: lot(seed, m.function, m.operator, m.mark))
    chosen = []
    while len(chosen) < count and any(groups.values()):
        for key in order:
            if groups[key] and len(chosen) < count:
                chosen.append(groups[key].pop())
    return sorted(chosen, key=lambda m: m.id)


def active_regions(text, builder):
    """The (start, end) of those parts between preprocessor lines that this compiler sees."""
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", re.M)
    pieces, at, regions = [], 0, []
    for match in list(directive.finditer(engine.source.strip(text))) + [None]:
        start = match.start() if match else len(text)
        pieces.append("NCREGION_%d\n" % len(regions))
        regions.append((at, start))
        if match:
            pieces.append(text[match.start() : match.end()])
            at = match.end()
    path = os.path.join(WORK, "regions.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#define NETCODE_IMPLEMENTATION\n#define NETCODE_MESSAGES\n" + "".join(pieces))
    out = subprocess.run([builder.cc, "-std=c99", "-E", "-P", path] + builder.cflags, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    seen = {int(n) for n in re.findall(r"NCREGION_(\d+)", out.stdout)}
    return [regions[n] for n in sorted(seen)]


def compiled_here(found, regions):
    return [m for m in found if any(start <= m.start and m.end <= end for start, end in regions)]


def blame(text, chosen, errors):
    """The mutants in whose changed text the compiler found these errors."""
    starts = [0]
    for match in re.finditer("\n", text):
        starts.append(match.end())
    guilty = set()
    for line, column in errors:
        if line == 0:
            continue
        offset = starts[line - 1] + column - 1
        opened = [m for m in re.finditer(r"MUTANT\( (\d+) \)", text[starts[line - 1] : offset + 12])]
        if opened:
            guilty.add(int(opened[-1].group(1)))
    return [m for m in chosen if m.id in guilty]


def split(text, chosen, builder):
    """(those that share a binary, those that need one of their own, those that do not compile)"""
    shared = [m for m in chosen if m.kind != "plain"]
    own = [m for m in chosen if m.kind == "plain"]
    for _ in range(12):
        errors = builder.errors(engine.schemata(text, shared))
        if not errors:
            break
        guilty = blame(engine.schemata(text, shared), shared, errors)
        if not guilty:
            sys.exit("the compiler refuses the copy at %s, and no mutant is to blame" % errors[:3])
        shared = [m for m in shared if m not in guilty]
        own += guilty
    for mutant in own:
        mutant.own = True
    broken = [m for m in own if builder.errors(engine.alone(text, m))]
    return shared, [m for m in own if m not in broken], broken


# ---- those that are declared equivalent ----


def read_equivalent(path):
    """{(function, operator, mark): reason}; see the head of equivalent.txt."""
    declared, head, waiting, reason = {}, None, [], []

    def close():
        for key in waiting:
            declared[key] = " ".join(reason)

    with open(path, encoding="utf-8") as file:
        for row in file.read().split("\n") + [""]:
            if row.startswith("#"):
                continue
            if not row.strip():
                close()
                head, waiting, reason = None, [], []
            elif row.startswith("  = ") or (reason and row.startswith("    ")):
                reason.append(row.replace("  = ", "", 1).strip())
            elif row.startswith("    "):
                waiting.append(head + (row.strip(),))
            else:
                function, operator = row.split(": ", 1)
                head = (function.strip(), operator.strip())
    empty = [key for key, why in declared.items() if not why]
    return sys.exit("equivalent.txt: no reason: %s" % (empty[0],)) if empty else declared


# ---- the run ----


class Run:
    def __init__(self, options):
        self.options = options
        self.builder = Builder()
        self.suite = Suite(namespace())
        self.started = time.time()
        with open(os.path.join(TOP, "netcode.h"), encoding="utf-8") as file:
            self.text = file.read()
        self.declared = read_equivalent(os.path.join(HERE, "equivalent.txt"))
        self.unsteady = {}

    def say(self, words):
        print("%5.0f s  %s" % (time.time() - self.started, words), flush=True)

    def select(self):
        found = engine.collect(self.text)
        self.report_stale(found)
        found = compiled_here(found, active_regions(self.text, self.builder))
        if self.options.room:
            found = [m for m in found if m.room == self.options.room.upper()]
        if self.options.operator:
            found = [m for m in found if m.operator == self.options.operator]
        if self.options.only:
            wanted = {int(n) for n in self.options.only.split(",")}
            return [m for m in found if m.id in wanted]
        count = len(found) if self.options.count == "all" else int(self.options.count)
        chosen = choose(found, count, self.options.seed)
        self.say("a sample: %d of the %d mutants that are possible in netcode.h as it is compiled here, chosen by seed %d" % (
            len(chosen), len(found), self.options.seed))
        return chosen

    def report_stale(self, found):
        there = {(m.function, m.operator, m.mark) for m in found} | {(m.function, "*", "*") for m in found}
        for key in sorted(set(self.declared) - there):
            print("equivalent.txt: no such mutant any more: %s: %s: %s" % key)

    def check_machine(self):
        """Is the suite green, and is the copy in build/ the netcode.h that is compiled?"""
        at = self.text.index("#define NETCODE_IMPLEMENTED\n")
        if not self.builder.errors(self.text[:at] + "#error planted\n" + self.text[at:]):
            sys.exit("a netcode.h with #error compiles: the copy is not what is compiled")
        if self.builder.errors(self.text):
            sys.exit("netcode.h itself does not compile")
        binary = self.builder.link(self.text, "original", "-O0")
        out = subprocess.run(self.suite.prefix + [binary, "suite"], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        if out.returncode:
            sys.exit("the suite is not green on the unchanged netcode.h:\n" + out.stdout)
        self.say("unchanged: " + out.stdout.splitlines()[-1])

    def verdict(self, mutant, word, test):
        if word == "unsteady":
            self.unsteady[test] = self.unsteady.get(test, 0) + 1
            return
        mutant.status, mutant.by = word, test
        self.save([mutant], "a")

    def run_shared(self, shared):
        binary = self.builder.link(engine.schemata(self.text, shared), "shared", "-O1" if len(shared) > 300 else "-O0")
        failed = self.suite.map(binary)
        self.say("%d mutants in one binary; %d tests reach %d of them" % (len(shared), len(self.suite.all_tests()), len(self.suite.reach)))
        for name, why in sorted(LEFT_OUT.items()):
            self.say("left out: %s: %s" % (name, why))
        for name in failed:
            self.say("left out: %s does not pass by itself, without a mutant" % name)
        if len(failed) > MOST_FAILING:
            sys.exit("too many of them")
        if shared and not self.suite.reach:
            sys.exit("no mutant was reached: the copy is not what is compiled")
        seen = [0, time.time()]

        def done(mutant, word, test):
            self.verdict(mutant, word, test)
            seen[0] += word != "unsteady"
            if time.time() - seen[1] > 60.0:
                seen[1] = time.time()
                self.say("%d of %d" % (seen[0], len(shared)))

        self.suite.judge(binary, shared, done)

    def run_own(self, own):
        """Each in a binary of its own, under all tests."""
        for mutant in own:
            text = engine.alone(self.text, mutant)
            binary = self.builder.link(text, "own", "-O0")
            self.suite.judge(binary, [mutant], self.verdict)

    def equivalent(self, mutant):
        for key in ((mutant.function, mutant.operator, mutant.mark), (mutant.function, "*", mutant.mark), (mutant.function, "*", "*")):
            if key in self.declared:
                return self.declared[key]
        return None

    def run_sanitized(self, survivors):
        """What survived, and is not declared equivalent, once more."""
        again = [m for m in survivors if not m.own and self.suite.reach.get(m.id) and not self.equivalent(m)]
        if not again or self.options.fast:
            return
        if not self.builder.can_sanitize():
            self.say("left out: the sanitizers, which can not be linked and run here")
            return
        self.say("%d survivors go through the sanitizers" % len(again))
        binary = self.builder.link(engine.schemata(self.text, again), "sanitized", "-O1", "-DDRIVER_SANITIZED", *SANITIZE)

        def done(mutant, word, test):
            if word not in ("unsteady", "survived", "timed-out"):  # slower than it was is no fault here
                mutant.status, mutant.by = "sanitizer", test

        self.suite.judge(binary, again, done, 10.0, {"ASAN_OPTIONS": "detect_leaks=1:leak_check_at_exit=0:detect_stack_use_after_return=1"})

    def compare_code(self, survivors):
        """Survivors whose object code is the original's."""
        original = self.builder.machine_code(self.text)
        for mutant in survivors:
            if not self.equivalent(mutant) and self.builder.machine_code(engine.alone(self.text, mutant)) == original:
                mutant.status = "same-code"
            elif self.equivalent(mutant):
                mutant.status = "equivalent"

    def main(self):
        self.builder.make_tree()
        chosen = self.select()
        if self.options.list:
            for mutant in chosen:
                print("%6d  %s" % (mutant.id, mutant))
            return 0
        self.save([])
        self.check_machine()
        shared, own, broken = split(self.text, chosen, self.builder)
        for mutant in broken:
            mutant.status = "broken"
        self.run_shared(shared)
        self.run_own(own)
        self.run_sanitized([m for m in chosen if m.status == "survived"])
        survivors = [m for m in chosen if m.status == "survived"]
        self.say("%d survivors: which of them have the original's object code?" % len(survivors))
        self.compare_code(survivors)
        return self.report(chosen)

    def report(self, chosen):
        for mutant in chosen:
            if mutant.status == "survived":
                reached = len(self.suite.reach.get(mutant.id, []))
                print("survived: %d, %s, line %d, reached by %d tests\n%s: %s\n    %s" % (
                    mutant.id, mutant.room.lower(), mutant.line, reached, mutant.function, mutant.operator, mutant.mark))
        self.save(chosen)
        wrong = [m for m in chosen if m.status in RAN and self.equivalent(m)]
        for mutant in wrong:
            print("declared equivalent, but %s noticed it: %s: %s: %s" % (mutant.by, mutant.function, mutant.operator, mutant.mark))
        result = print_table(chosen, self.unsteady)
        return 1 if wrong else result

    def save(self, chosen, how="w"):
        with open(VERDICTS, how, encoding="utf-8") as file:
            for m in chosen:
                file.write("%d\t%s\t%s\t%d\t%s: %s\t%s\n" % (m.id, m.status, m.by, m.line, m.function, m.operator, m.mark))


def print_table(chosen, unsteady):
    columns = ("made", "broken", "same-code", "killed", "crashed", "timed-out", "sanitizer", "survived", "equivalent")
    print("%-21s" % "operator" + "".join("%11s" % word for word in columns))
    total = dict.fromkeys(columns, 0)
    for operator in engine.OPERATORS:
        mine = [m for m in chosen if m.operator == operator]
        counts = {word: sum(m.status == word for m in mine) for word in columns}
        counts["made"] = len(mine)
        for word in columns:
            total[word] += counts[word]
        if mine:
            print("%-21s" % operator + "".join("%11d" % counts[word] for word in columns))
    print("%-21s" % "all" + "".join("%11d" % total[word] for word in columns))
    for test, times in sorted(unsteady.items()):
        print("unsteady: %s failed and then did not, or failed without a mutant, %d times: not believed" % (test, times))
    killed = sum(total[word] for word in RAN)
    judged = killed + total["survived"] + total["equivalent"]
    killed_percent = 100.0 * killed / max(1, killed + total["survived"])
    equivalent_percent = 100.0 * total["equivalent"] / max(1, judged)
    print("%d mutants ran: %.2f %% of the non-equivalent killed (at least %.0f wanted), %.2f %% declared equivalent (at most %.0f)" % (
        judged, killed_percent, LEAST_KILLED, equivalent_percent, MOST_EQUIVALENT))
    return 0 if killed_percent >= LEAST_KILLED and equivalent_percent <= MOST_EQUIVALENT else 1


def main():
    parser = argparse.ArgumentParser(description="Changes netcode.h, one place at a time: a test must notice.")
    parser.add_argument("count", nargs="?", default="1030")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room")
    parser.add_argument("--operator")
    parser.add_argument("--only")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--fast", action="store_true")
    return Run(parser.parse_args()).main()


if __name__ == "__main__":
    sys.exit(main())
