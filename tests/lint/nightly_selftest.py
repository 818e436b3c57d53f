"""Shows, in a repository of its own, that tests/tools/nightly.py runs what has to be run, no more, and says which results are old. Then lists
those of this tree, which fails nothing."""

import contextlib
import glob
import io
import os
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "tools"))
import nightly  # noqa: E402 (its folder is not on the path before)


def shell(text):
    return "sh -c " + shlex.quote(text)


def commit(name, text):
    with open(os.path.join(nightly.TOP, name), "w", encoding="utf-8") as file:
        file.write(text)
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "add", "."], cwd=nightly.TOP, check=True)
    subprocess.run(["git", *identity, "-c", "commit.gpgsign=false", "commit", "-q", "-m", name], cwd=nightly.TOP, check=True)


def steps_run(*words):
    """A letter for each step that ran, in order; the steps write them."""
    with contextlib.redirect_stdout(io.StringIO()):
        status = nightly.run(list(words), nightly.read_table())
    path = os.path.join(nightly.TOP, "build", "ran")
    with open(path, encoding="utf-8") as file:
        ran = file.read().split()
    os.remove(path)
    return "".join(ran), status


def is_refused(*words):
    try:
        nightly.run(list(words), {})
    except SystemExit:
        return True
    return False


def lists():
    with contextlib.redirect_stdout(io.StringIO()) as text:
        nightly.compare(nightly.read_table())
    return text.getvalue()


def scenario():
    for folder in ("tests", "build"):
        os.mkdir(os.path.join(nightly.TOP, folder))
    subprocess.run(["git", "init", "-q"], cwd=nightly.TOP, check=True)
    commit(".gitignore", "build\n")
    commit("netcode.h", "1")
    commit("b.c", "1")
    commit("Makefile", "$(SEED)")
    yield "all steps are new", lists() == "nightly: steps never run: 2: a; b\n"
    yield "all run, and one fails", steps_run() == ("ab", 1)
    with open(os.path.join(nightly.TOP, "build", "left"), encoding="utf-8") as file:
        yield "a process that left its step's group is ended with the step", not os.path.exists("/proc/" + file.read().strip())
    yield "its failure is in the table, without the words of its output", "| b | FAILED, status 3 |" in open(os.path.join(nightly.TOP, nightly.TABLE)).read()
    yield "a summary is", nightly.read_table()["a"][0] == "passed: a: 7 passed, 0 failed"
    commit("tests/other", "the table goes with this")
    yield "on another tree both run again", steps_run() == ("ab", 1)
    commit("unused", "")
    yield "which the list does not ask for", lists() == "nightly: steps that failed when last run: 1: b\n"
    nightly.STEPS[1] = ("b", shell("echo b >>build/ran"), "b.c")
    steps_run()
    commit(nightly.TABLE, open(os.path.join(nightly.TOP, nightly.TABLE)).read() + "\n")
    nightly.STEPS.append(("c", shell("echo c >>build/ran"), ""))
    yield "when only the table has changed, what has passed does not run", steps_run() == ("c", 0)
    yield "what is named does", steps_run("a") == ("a", 0)
    yield "a name that no step has is refused", is_refused("nothing")
    commit("b.c", "2")
    yield "a step whose file has changed is listed", lists() == "nightly: steps whose files have changed since: 1: b\n"
    commit("netcode.h", "2")
    yield "and each, when the header has", "changed since: 3:" in lists()
    nightly.STEPS[:] = [("a", shell("echo a >>build/ran; echo 'a: 7 passed, 1 failed'"), ""), ("b", shell("echo b >>build/ran; echo 'b: 0 passed, 0 failed'"), ""),
                        ("c", shell('echo c >>build/ran; test -z "$SEED$DAYS$MAKEFLAGS$GNUMAKEFLAGS"'), "")]
    os.environ.update(MAKEFLAGS="i -- DAYS=8", DAYS="8", SEED="8", GNUMAKEFLAGS="-i")
    yield "a status of 0 beside a summary that fails is a failure; make's own variables reach no step", steps_run("a", "b", "c") == ("abc", 1) \
        and [nightly.read_table()[name][0].split(":")[0] for name in "abc"] == ["FAILED, status 0", "FAILED, status 0", "passed"]
    with open(os.path.join(nightly.TOP, "b.c"), "w", encoding="utf-8") as file:
        file.write("3")
    yield "what is not committed has no results", is_refused()


def main():
    missing = [file for _, _, files in nightly.STEPS for file in files.split() if not glob.glob(os.path.join(TOP, file))]
    print("%s all files of the steps are there %s" % ("FAIL" if missing else "ok  ", " ".join(missing)))
    failures = len(missing)
    with tempfile.TemporaryDirectory() as nightly.TOP:
        nightly.STEPS = [("a", shell("echo a >>build/ran; echo a: 7 passed, 0 failed; echo its last words; setsid sleep 600 & echo $! >build/left"), ""),
                         ("b", shell("echo b >>build/ran; echo /secret; exit 3"), "b.c")]
        for what, holds in scenario():
            failures += not holds
            print("%s %s" % ("ok  " if holds else "FAIL", what))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main() or subprocess.run([sys.executable, os.path.join(TOP, "tests/tools/nightly.py"), "--compare"], check=False).returncode)
