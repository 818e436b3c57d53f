#!/usr/bin/env python3
"""Tests how a release is made, from a copy of this tree: prepared, committed, built, built again elsewhere, signed, refused; its SBOM; and the
comparison of API and ABI with the last release. Breaks what each check looks for, and expects it to notice.

    python3 tests/all/release.py            all of it
    python3 tests/all/release.py WORD...    the parts whose names hold a WORD: api abi bumps release twice unpacked sign sbom refuse replace
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "release"))
NEEDS = (
    "python3:python3 python3-pycparser:/usr/lib/python3/dist-packages/pycparser abigail-tools:abidiff git:git make:make gcc:gcc g++:g++ minisign:minisign"
    " faketime:faketime diffoscope-minimal:diffoscope util-linux:setpriv libc6-dev:/usr/include/stdio.h libsodium-dev:/usr/include/sodium.h"
)
COMMITTED, COMMITTED_SECONDS = "2026-11-30T12:34:56Z", 1796042096
FILES = ("netcode-{}.tar.gz", "netcode-{}.h", "netcode-{}.spdx.json", "SHA256SUMS")
passed = failed = 0
api = kept = spdx = None  # modules of tests/release, read when their packages are there


class Wrong(Exception):
    """What a check found."""


def check(what, function, *arguments):
    global passed, failed
    try:
        note = function(*arguments)
    except Exception as error:  # whatever goes wrong in a check fails it, and the others run
        failed += 1
        print(f"FAILED: {what}\n    {type(error).__name__}: {error}", flush=True)
        return
    passed += 1
    print(f"ok: {what}" + (f" ({note})" if note else ""), flush=True)


def want(condition, what):
    if not condition:
        raise Wrong(what)


def read(path, mode="r"):
    with open(path, mode, encoding=None if "b" in mode else "utf-8") as file:
        return file.read()


def write(path, data):
    with open(path, "wb" if isinstance(data, bytes) else "w", encoding=None if isinstance(data, bytes) else "utf-8") as file:
        file.write(data)


def run(command, folder, expect=0, **options):
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False, **options)
    output = result.stdout.decode(errors="replace")
    if (result.returncode == 0) != (expect == 0):
        raise Wrong(f"{' '.join(command)} ended with {result.returncode}\n{output[-3000:]}")
    return output


def edit(path, pattern, replacement):
    text = read(path)
    changed, count = re.subn(pattern, replacement, text, flags=re.M)
    want(count == 1, f"{pattern} is {count} times in {path}")
    write(path, changed)


# ---- a clone of this tree, prepared for a release ----

GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
WITHOUT_GIT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def commit(folder, message):
    environment = dict(WITHOUT_GIT, GIT_COMMITTER_DATE=COMMITTED, GIT_AUTHOR_DATE=COMMITTED)
    run(GIT + ["add", "-A"], folder, env=environment)
    run(GIT + ["commit", "-q", "--allow-empty", "-m", message], folder, env=environment)


def copy_of_the_tree(folder):
    """As it is now, committed or not: what git would not leave out; of an unpacked tarball, what it brought."""
    if os.path.exists(os.path.join(ROOT, ".git")):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], stdout=subprocess.PIPE, check=True)
        paths = sorted(set(listed.stdout.decode().split("\0")) - {""})
    else:
        paths = [line.split(" ", 2)[2] for line in read(os.path.join(ROOT, ".release")).splitlines()[1:]]
    for path in paths:
        source = os.path.join(ROOT, path)
        if os.path.lexists(source):
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    run(GIT + ["init", "-q", "-b", "main"], folder, env=WITHOUT_GIT)
    commit(folder, "Everything")


def release(folder, *arguments, expect=0, **options):
    return run([sys.executable, "tests/release/release.py", *arguments], folder, expect, **options)


def build(folder):
    return os.path.join(folder, "build", "release")


class Stage:
    """`clone` holds a commit that is a release; `before` what it was made from."""

    def __init__(self, work):
        self.work = work
        self.before, self.clone = os.path.join(work, "before"), os.path.join(work, "clone")
        os.mkdir(self.before)
        copy_of_the_tree(self.before)
        changelog, header = (os.path.join(self.before, name) for name in (".github/CHANGELOG.md", "netcode.h"))
        planned = re.search(r"^The next version: (\S+)\.$", read(changelog), re.M)
        if planned:
            self.version = planned.group(1)
        else:  # the tree is that of a release, and nothing has come since
            major, minor, _ = api.triple(kept.version_of(read(header)))
            self.version = f"{major}.{minor + 1}.0"
            edit(changelog, r"^## \[Unreleased\]$", rf"## [Unreleased]\n\nThe next version: {self.version}.\n\n- Something.")
            edit(header, r"^    CHANGELOG$", r"    CHANGELOG\n    later  Something.")
            commit(self.before, "Something")
        run(["git", "clone", "-q", self.before, self.clone], work)
        release(self.clone, "prepare", "--date", "2026-11-30")
        commit(self.clone, f"Release {self.version}")
        self.files = [name.format(self.version) for name in FILES]

    def another(self, name):
        folder = os.path.join(self.work, name)
        run(["git", "clone", "-q", self.clone, folder], self.work)
        return folder


# ---- between releases ----


def hashes(stage):
    output = release(stage.before, "check")
    want("README.md gives" not in output, output)


def not_yet(stage):
    output = release(stage.before, expect=1)
    want("has something below [Unreleased]" in output, output)
    want(not os.path.exists(build(stage.before)), "something was built")


# ---- API and ABI ----

# Title, pattern in the public part, replacement, the sentence that is expected, and whether abidiff sees it too.
BREAKS = (
    ("a function is gone", r"^NETCODE_API void netcode_server_flush\(.*\n", "", "removed: function netcode_server_flush", True),
    ("a parameter has another type", r"netcode_sleep\( double seconds \)", "netcode_sleep( float seconds )", "changed: function netcode_sleep", True),
    ("a pointer to pointers to const", r"(?<=num_server_addresses, )const char \*\* public_server_addresses", "char ** public_server_addresses",
     "changed: function netcode_generate_connect_token", False),
    ("a callback that may not change what it gets", r"netcode_set_printf_function\( int \( \*function ?\)\( const char \*", "netcode_set_printf_function( int ( *function )( char *",
     "changed: function netcode_set_printf_function", False),
    ("a parameter more", r"netcode_sleep\( double seconds \)", "netcode_sleep( double seconds, int how )", "changed: function netcode_sleep", True),
    ("a result has another type", r"^NETCODE_API double netcode_time\(", "NETCODE_API float netcode_time(", "changed: function netcode_time", True),
    ("a result is const", r"^NETCODE_API uint8_t \* netcode_client_receive_packet\(", "NETCODE_API const uint8_t * netcode_client_receive_packet(",
     "changed: function netcode_client_receive_packet", False),
    ("a function needs messages now", r"^(NETCODE_API double netcode_time\(.*\n)", r"#if defined( NETCODE_MESSAGES )\n\1#endif\n", "changed: function netcode_time", False),
    ("a constant has another number", r"(?<=_CLIENT_STATE_CONNECTED = )3$", "4", "changed: value NETCODE_CLIENT_STATE_CONNECTED: 3 -> 4", False),
    ("a constant is gone", r"^#define NETCODE_MAX_SLOTS .*\n", "", "removed: value NETCODE_MAX_SLOTS", False),
    ("a row in the middle of a list", r"^(    X\( EMPTY_DATAGRAM, .*)", r'    X( PLANTED, "" ) \\\n\1', "changed: value NETCODE_DROP_EMPTY_DATAGRAM: 1 -> 2", False),
    ("the last row of a list is gone", r" *\\\n    X\( \w+, .*(?=\nenum netcode_drop_reason_t)", "", "removed: value NETCODE_DROP_", False),
    ("a macro has another argument", r"^#define netcode_assert\( condition \)(?=  )", "#define netcode_assert( condition, text )", "changed: macro netcode_assert", False),
    ("a field is gone", r"(?<=^    int client_index;\n)    uint64_t session;\n(?=    uint64_t client_id;)", "", "removed: field struct netcode_event_t.session", True),
    ("a field has another type", r"^    int refused_as;$", "    uint64_t refused_as;", "changed: field struct netcode_client_report_t.refused_as", True),
    ("a field takes another function", r"(?<=\( \*stray_callback\)\( )void \* context, |(?<=\( \*stray_callback \)\( )void \* context, ", "",
     "changed: field struct netcode_server_config_t.stray_callback", True),
    ("an array is shorter", r"^    char text\[256\];$", "    char text[128];", "changed: field struct netcode_client_report_t.text", True),
    ("two fields have changed places", r"^(    int challenged;\n)(    int denied;\n)", r"\2\1", "order: struct netcode_client_report_server_t", True),
    ("a field in the middle", r"^(    int challenged;\n)", r"    int planted;\n\1", "order: struct netcode_client_report_server_t", True),
    ("a structure has become private", r"^struct netcode_socket_info_t \{\n(?:    .*\n)*\};$", "struct netcode_socket_info_t;", "changed: fields of struct netcode_socket_info_t", False),
    ("a short name is gone", r"^typedef struct netcode_address_t netcode_address_t;\n", "", "removed: type netcode_address_t", False),
    ("the variable has another type", r"^(extern NETCODE_API_DATA void \( \*netcode_assert_function \)\( const char \*, const char \*, const char \*, )int ",
     r"\1long ", "changed: variable netcode_assert_function", True),
    ("a build switch is gone", r" NETCODE_NO_SOCKETS(?= .*\*/$)", "", "removed: build switch NETCODE_NO_SOCKETS", False),
    ("another protocol", r"^/\* wire: NETCODE 1\.02,", "/* wire: NETCODE 1.03,", "changed: wire", False),
    ("an older wire of messages", r"messages \d+ \*/$", "messages 0 */", "changed: wire", False),
    ("a number of the same wire", r"(?<=FRAGMENT_BYTES) \d+$", " 1100", "changed: value NETCODE_MESSAGES_FRAGMENT_BYTES", False),
)  # fmt: skip
ADDITIONS = (
    ("a function", r"\Z(?<=\n#endif\n)", "NETCODE_API void netcode_planted( void );\n", "added: function netcode_planted"),
    ("a field at the end of a config", r"^struct netcode_server_config_t \{\n(?:    .*\n)*(?=\};)", r"\g<0>    int planted;\n", "added: field struct netcode_server_config_t.planted"),
    ("a row at the end of a list", r"^(    X\( \w+, .*)(?=\nenum netcode_drop_reason_t)", r'\1 \\\n    X( PLANTED, "" )', "added: value NETCODE_DROP_PLANTED"),
    ("a constant", r"^#define NETCODE_MAX_SLOTS .*\n", r"\g<0>#define NETCODE_PLANTED 1\n", "added: value NETCODE_PLANTED"),
    ("a pointer to const", r"(netcode_server_free_packet\( struct netcode_server_t \* server, )void \*", r"\1const void *", "loosened: function netcode_server_free_packet"),
    ("a structure whose fields are known now", r"^struct netcode_client_t;$", "struct netcode_client_t {\n    int planted;\n};", "opened: fields of struct netcode_client_t"),
    ("a function that needs no messages any more", r"^(NETCODE_API const char \* netcode_messages_drop_reason_name\(.*\n)", r"#endif\n\1#if defined( NETCODE_MESSAGES )\n",
     "opened: function netcode_messages_drop_reason_name"),
    ("a newer wire of messages, with its numbers", r"messages \d+ \*/$", "messages 9 */", "of another version of the wire of messages"),
)  # fmt: skip


def planted(text, pattern, replacement):
    changed, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
    want(count == 1 and changed != text, f"the pattern of this plant is not in the public part: {pattern}")
    return changed


def break_is_noticed(text, pattern, replacement, sentence, seen_by_abidiff):
    broken = planted(text, pattern, replacement)
    differences = list(api.compare(api.api_of(text), api.api_of(broken)))
    want(api.required(differences) == "major", f"no new major version is asked for: {differences}")
    want(any(one.startswith(sentence) for level, one in differences if level == "major"), f"not said: {sentence}: {differences}")
    faults, _ = api.check_api(text, broken, "## [Unreleased]\n\nThe next version: 9.0.0.\n")
    want(not [one for one in faults if "may be followed" in one], f"a new major version does not do: {faults}")
    if seen_by_abidiff:
        want(api.abi(text, broken), "abidiff does not notice")


def addition_passes(text, pattern, replacement, sentence):
    added = planted(text, pattern, replacement)
    differences = list(api.compare(api.api_of(text), api.api_of(added)))
    want(api.required(differences) == "minor", f"not a new minor version is asked for: {differences}")
    want(any(one.startswith(sentence) for _, one in differences), f"not said: {sentence}: {differences}")
    want(not list(api.use(api.api_of(text), api.api_of(added), added)), "a program that used it as it was does not compile any more")
    want(not api.abi(text, added), "abidiff does not let it pass: " + api.abi(text, added)[:500])


def programs(text):
    """The generated program notices by itself, without the reader, in C and in C++: it names what is gone, and types and numbers that changed."""
    own = api.api_of(text)
    want(not list(api.use(own, own, text)), "it does not compile as it is")
    count = 0
    for title, pattern, replacement, sentence, _ in BREAKS:
        if re.search("in the middle|changed places|build switch|wire|another argument", title + sentence):
            continue  # not what a program can notice
        broken = planted(text, pattern, replacement)
        want(any(True for _ in api.use(own, own, broken)), f"it does not notice: {title}")
        count += 1
    return f"{count} breaks"


def bumps(text):
    entry = "## [Unreleased]\n\nThe next version: {}.\n\n- netcode_planted\n"
    addition = planted(text, r"\Z(?<=\n#endif\n)", "NETCODE_API void netcode_planted( void );\n")
    removal = planted(text, BREAKS[0][1], BREAKS[0][2])
    version = kept.version_of(text)
    major, minor, patch = api.triple(version)
    rows = (
        (addition, f"{major}.{minor}.{patch + 1}", False), (addition, f"{major}.{minor + 1}.0", True), (addition, f"{major + 1}.0.0", True),
        (removal, f"{major}.{minor}.{patch + 1}", False), (removal, f"{major}.{minor + 1}.0", False), (removal, f"{major + 1}.0.0", True),
        (text, f"{major}.{minor}.{patch + 1}", True), (text, f"{major}.{minor + 1}.0", True), (addition, version, False),
    )  # fmt: skip
    for new, following, good in rows:
        faults = [one for one in api.check_api(text, new, entry.format(following))[0] if "may be followed" in one]
        want(bool(faults) != good, f"{version} -> {following}: {faults}")
    faults, _ = api.check_api(text, addition, entry.format("9.0.0").replace("netcode_planted", "something"))
    want(any("does not name what is new: function netcode_planted" in one for one in faults), f"an unnamed addition: {faults}")
    # A header that has its new number already is held to that one.
    renamed = addition.replace(f'"{version}"', f'"{major}.{minor}.{patch + 1}"')
    want([one for one in api.check_api(text, renamed, entry.format("9.0.0"))[0] if "may be followed" in one], "the header's own new number is not asked")
    # A pointer to pointers can not be passed where one to pointers to const is asked for.
    for was, now, good in (
        ("void f( char * )", "void f( const char * )", True), ("void f( char * * )", "void f( const char * * )", False),
        ("void f( const char * )", "void f( char * )", False), ("void f( int )", "void f( const int )", False),
        ("void f( void ( * )( char * ) )", "void f( void ( * )( const char * ) )", False), ("int f( char * )", "void f( const char * )", False),
        ("void f( char * )" + api.WITH_MESSAGES, "void f( const char * )" + api.WITH_MESSAGES, True),
    ):  # fmt: skip
        want(api.loosened(was, now) == good, f"{was} -> {now}")
    return f"{len(rows) + 2} cases"


# ---- a release ----


def whole(stage):
    release(stage.clone)
    place = build(stage.clone)
    want(sorted(os.listdir(place)) == sorted(stage.files), f"{os.listdir(place)}")
    want(read(f"{place}/netcode-{stage.version}.h", "rb") == read(f"{stage.clone}/netcode.h", "rb"), "the single file is not netcode.h")
    output = run(["sha256sum", "-c", "--strict", "SHA256SUMS"], place)
    want(output.count(": OK") == 3, output)
    committed = run(["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"], stage.clone).split("\0")[:-1]
    with tarfile.open(f"{place}/netcode-{stage.version}.tar.gz") as tar:
        members = tar.getmembers()
        names = [one.name for one in members]
        want(names == sorted(names, key=lambda name: name.split("/", 1)[1:]), "the names are not sorted")
        want({(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members} == {(0, 0, "root", "root", COMMITTED_SECONDS)}, "owner or time")
        files = {one.name.split("/", 1)[1]: one for one in members if one.isfile()}
        want(files.keys() == set(committed) | {".release"}, f"{files.keys() ^ set(committed)}")
        for name in committed:
            path = os.path.join(stage.clone, name)
            want(tar.extractfile(files[name]).read() == read(path, "rb"), f"{name} is another")
            want(files[name].mode == (0o755 if os.stat(path).st_mode & 0o100 else 0o644), f"{name} has the mode {files[name].mode:o}")
    want(read(f"{place}/netcode-{stage.version}.tar.gz", "rb")[3:8] == b"\0" * 5, "the gzip header has a name or a time")
    return f"{len(files)} files, {os.path.getsize(f'{place}/netcode-{stage.version}.tar.gz')} bytes"


def prepared(stage):
    """The number is everywhere, README and changelog have the hash, and API and ABI are those of the new release."""
    for name, text in (("README.md", f"netcode.h {stage.version}, SHA-256"), (".github/CHANGELOG.md", f"## [{stage.version}] - 2026-11-30")):
        want(text in read(os.path.join(stage.clone, name)), f"{name}: {text}")
    digest = run(["sha256sum", "netcode.h"], stage.clone).split()[0]
    for name in ("README.md", ".github/CHANGELOG.md"):
        want(digest in read(os.path.join(stage.clone, name)), f"{name} has not the hash")
    run(["sh", "examples/packaging/versions.sh"], stage.clone)
    output = run([sys.executable, "tests/release/api.py"], stage.clone)
    want(output.count("ok: ") == 3, output)
    output = release(stage.clone, "prepare", expect=1)
    want("does not begin with a line of the form" in output, output)
    return stage.version


def same(stage, folder, what):
    for name in stage.files:
        first, second = os.path.join(build(stage.clone), name), os.path.join(build(folder), name)
        if read(first, "rb") != read(second, "rb"):
            shown = subprocess.run(["diffoscope", "--max-report-size", "4000", first, second], stdout=subprocess.PIPE, check=False).stdout.decode()
            raise Wrong(f"{what}: {name} is another:\n{shown[:4000]}")


def twice(stage):
    """Another path, user, home, time, zone, language, umask, hash seed, line ends and settings of git."""
    folder = os.path.join(stage.work, "an other/place-é")
    home = os.path.join(stage.work, "home")
    os.makedirs(home)
    write(os.path.join(home, ".gitconfig"), "[core]\n\tautocrlf = true\n\tquotePath = true\n\tabbrev = 7\n[status]\n\tshort = true\n[log]\n\tdate = relative\n")
    environment = {
        "PATH": "/usr/local/games:" + os.environ["PATH"], "HOME": home, "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "de_CH.UTF-8",
        "PYTHONHASHSEED": "4711", "SOURCE_DATE_EPOCH": "1", "PYTHONDONTWRITEBYTECODE": "1", "GZIP": "-1", "TAR_OPTIONS": "--owner=7",
    }  # fmt: skip
    os.makedirs(os.path.dirname(folder))
    run(["git", "-c", "core.autocrlf=true", "clone", "-q", stage.clone, folder], stage.work)
    want(b"\r\n" in read(os.path.join(folder, "netcode.h"), "rb"), "the other clone has not the other line ends that were asked for")
    command = [sys.executable, "tests/release/release.py"]
    notes = "as the same user"
    if os.geteuid() == 0:
        for path in (stage.work, os.path.dirname(folder)):
            os.chmod(path, 0o755)
        run(["chown", "-R", "65534:65534", folder, home], stage.work)
        if os.path.realpath(sys.executable).startswith("/root"):  # where the other user does not get
            command[0] = "/usr/bin/python3"
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        notes = "as another user"
    # faketime shares a semaphore below /dev/shm with what it starts: a new one, that everyone may use.
    own_memory = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"', "sh"]
    fake = own_memory + ["faketime", "2031-05-06 07:08:09"]
    if subprocess.run(fake + ["date"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        want(run(fake + ["date", "+%Y"], stage.work).strip() == "2031", "the time is not another")
        # Last, so that the semaphore is the other user's.
        command = own_memory + command[:-2] + ["faketime", "2031-05-06 07:08:09"] + command[-2:]
        notes += ", in 2031"
    run(command, folder, env=environment, umask=0o077)
    same(stage, folder, "elsewhere")
    return notes


def unpack_reversed(stage, folder):
    """As tar would, but the last file first and with another umask; without time stamps of the tarball."""
    with tarfile.open(os.path.join(build(stage.clone), f"netcode-{stage.version}.tar.gz")) as tar:
        files = [(one.name, one.mode, tar.extractfile(one).read()) for one in tar.getmembers() if one.isfile()]
    for name, mode, data in reversed(files):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, data)
        os.chmod(path, mode & 0o700)
    return os.path.join(folder, f"netcode-{stage.version}")


def unpacked(stage):
    folder = unpack_reversed(stage, os.path.join(stage.work, "unpacked"))
    tools = os.path.join(stage.work, "tools")  # what is needed, and no git
    os.mkdir(tools)
    for name in ("sh", "sed", "head", "tr", "sort", "dirname", "cat"):
        os.symlink(shutil.which(name), os.path.join(tools, name))
    release(folder, env={"PATH": tools, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"})
    same(stage, folder, "from the tarball")
    for title, change in (
        ("netcode.h was changed", lambda: write(os.path.join(folder, "netcode.h"), read(os.path.join(folder, "netcode.h")) + "\n")),
        ("examples/planted.c was added", lambda: write(os.path.join(folder, "examples/planted.c"), "")),
        ("LICENSE can not be read", lambda: os.remove(os.path.join(folder, "LICENSE"))),
    ):
        change()
        output = release(folder, expect=1, env=WITHOUT_GIT)
        want(title in output, output)
    os.remove(os.path.join(folder, ".release"))
    output = release(folder, expect=1, env=WITHOUT_GIT)
    want("neither a clone nor an unpacked release" in output, output)


def signature(stage):
    folder = stage.another("signed")
    keys = os.path.join(stage.work, "keys")
    os.mkdir(keys)
    for name in ("test", "other"):
        run(["minisign", "-G", "-W", "-p", f"{keys}/{name}.pub", "-s", f"{keys}/{name}.key"], stage.work)
    run(["make", "-s", "release", f"SIGN_KEY={keys}/test.key", f"PYTHON={sys.executable}"], folder, env=WITHOUT_GIT)
    same(stage, folder, "signed")
    place = build(folder)
    want(sorted(os.listdir(place)) == sorted(stage.files + ["SHA256SUMS.minisig"]), f"{os.listdir(place)}")
    verify = ["minisign", "-V", "-Q", "-p", f"{keys}/test.pub", "-m", "SHA256SUMS"]
    said = run(verify, place).strip()
    commit_id = run(["git", "rev-parse", "HEAD"], folder).strip()
    want(said == f"netcode-{stage.version} {commit_id}", f"the signed comment says {said}")
    first = read(f"{place}/SHA256SUMS.minisig", "rb")
    release(folder, "--sign", f"{keys}/test.key")
    want(read(f"{place}/SHA256SUMS.minisig", "rb") == first, "signing again gives another signature")
    run(verify[:4] + [f"{keys}/other.pub", *verify[5:]], place, expect=1)
    for name in ("SHA256SUMS", "SHA256SUMS.minisig"):
        whole_file = read(f"{place}/{name}", "rb")
        for at in (0, len(whole_file) // 2, len(whole_file) - 2):
            write(f"{place}/{name}", whole_file[:at] + bytes([whole_file[at] ^ 1]) + whole_file[at + 1 :])
            # minisign does not read its untrusted comment, the first line of a signature.
            if not (name.endswith("minisig") and at == 0):
                run(verify, place, expect=1)
        write(f"{place}/{name}", whole_file)
    for name in stage.files[:3]:
        whole_file = read(f"{place}/{name}", "rb")
        write(f"{place}/{name}", whole_file[:-9] + bytes([whole_file[-9] ^ 1]) + whole_file[-8:])
        run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], place, expect=1)
        write(f"{place}/{name}", whole_file)
    shutil.copy(f"{keys}/test.key", f"{folder}/build/test.key")
    for key, sentence in ((f"{folder}/build/test.key", "a secret key has no place there"), (f"{keys}/none.key", "there is no file"), (f"{keys}/test.pub", "minisign did not sign")):
        output = release(folder, "--sign", key, expect=1)
        want(sentence in output, output)
    want(read(f"{place}/SHA256SUMS.minisig", "rb") == first, "a refused signature changed the release that was there")


def sbom(stage):
    path = os.path.join(build(stage.clone), f"netcode-{stage.version}.spdx.json")
    document = json.loads(read(path))
    tarball = path.replace(".spdx.json", ".tar.gz")
    found = spdx.faults(document) + spdx.of_the_tarball(document, tarball)
    want(not found, "\n    ".join(found[:10]))
    netcode, libsodium = document["packages"]
    want((netcode["name"], netcode["versionInfo"], netcode["licenseDeclared"]) == ("netcode", stage.version, "MIT"), f"{netcode}")
    want((libsodium["name"], libsodium["licenseDeclared"]) == ("libsodium", "ISC"), f"{libsodium}")
    want({"spdxElementId": netcode["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": libsodium["SPDXID"]} in document["relationships"], "no DEPENDS_ON")
    want(document["creationInfo"]["created"] == COMMITTED, document["creationInfo"]["created"])
    return f"{len(document['files'])} files"


def sbom_breaks(stage):
    path = os.path.join(build(stage.clone), f"netcode-{stage.version}.spdx.json")
    whole_document = json.loads(read(path))

    def drop(thing, name):
        del thing[name]

    breaks = (
        ("the document has no creationInfo", lambda d: drop(d, "creationInfo")),
        ("spdxVersion is not", lambda d: d.update(spdxVersion="SPDX-2.2")),
        ("dataLicense is not", lambda d: d.update(dataLicense="MIT")),
        ("documentNamespace is no", lambda d: d.update(documentNamespace="urn:uuid:1#2")),
        ("created is not of the form", lambda d: d["creationInfo"].update(created="2026-11-30 12:34:56")),
        ("a creator is", lambda d: d["creationInfo"].update(creators=["release.py"])),
        ("is no SPDXID", lambda d: d["packages"][1].update(SPDXID="SPDXRef-lib sodium")),
        ("two elements have one", lambda d: d["files"][1].update(SPDXID=d["files"][0]["SPDXID"])),
        ("which is not in the document", lambda d: d["relationships"][1].update(relatedSpdxElement="SPDXRef-None")),
        ("is no relationship", lambda d: d["relationships"][1].update(relationshipType="NEEDS")),
        ("describes nothing", lambda d: d["relationships"].pop(0)),
        ("no package contains", lambda d: (d["relationships"].pop(), None)),
        ("the verification code", lambda d: d["packages"][0]["packageVerificationCode"].update(packageVerificationCodeValue="0" * 40)),
        ("has no licenseDeclared", lambda d: drop(d["packages"][1], "licenseDeclared")),
        ("is not in the list of licences", lambda d: d["packages"][1].update(licenseDeclared="ISCC")),
        ("is no download location", lambda d: d["packages"][1].update(downloadLocation="somewhere")),
        ("a supplier is", lambda d: d["packages"][0].update(supplier="me")),
        ("is no purl", lambda d: d["packages"][0]["externalRefs"][0].update(referenceLocator="netcode")),
        ("is no purpose", lambda d: d["packages"][0].update(primaryPackagePurpose="GAME")),
        ("has no SHA1", lambda d: d["files"][0]["checksums"].pop(0)),
        ("hexadecimal digits", lambda d: d["files"][0]["checksums"][1].update(checksumValue="00")),
        ("does not begin with ./", lambda d: d["files"][0].update(fileName="netcode.h")),
        ("which the schema does not know", lambda d: d["files"][0].update(license="MIT")),
        ("was not", None),
    )  # fmt: skip
    count = 0
    for sentence, change in breaks:
        if not change:
            continue
        document = copy.deepcopy(whole_document)
        change(document)
        found = spdx.faults(document)
        want(any(sentence in one for one in found), f"not noticed: {sentence}: {found[:3]}")
        count += 1
    tarball = path.replace(".spdx.json", ".tar.gz")
    for sentence, change in (
        ("has another SHA256", lambda d: d["files"][3]["checksums"][1].update(checksumValue="0" * 64)),
        ("is in one of document and tarball", lambda d: d["files"].pop()),
        ("the tarball has another", lambda d: d["packages"][0]["checksums"][0].update(checksumValue="0" * 64)),
    ):
        document = copy.deepcopy(whole_document)
        change(document)
        want(any(sentence in one for one in spdx.of_the_tarball(document, tarball)), f"not noticed: {sentence}")
        count += 1
    return f"{count} breaks"


# ---- what is refused ----


def refusals(stage):
    folder = stage.another("refused")

    def path(name):
        return os.path.join(folder, name)

    digest = run(["sha256sum", "netcode.h"], folder).split()[0]
    changelog, version = ".github/CHANGELOG.md", stage.version
    kept_file = f"tests/release/netcode-{version}.api"
    # Each row: is it committed? and its faults, which do not hide each other: a sentence, and what brings it about.
    rows = (
        (False, ("not committed:  M netcode.h", lambda: write(path("netcode.h"), read(path("netcode.h")) + "\n")),
         ("not committed: ?? tests/planted.c", lambda: write(path("tests/planted.c"), "")), ("not committed:  D LICENSE", lambda: os.remove(path("LICENSE")))),
        (True, ("has something below [Unreleased]", lambda: edit(path(changelog), r"^## \[Unreleased\]\n", "## [Unreleased]\n\n- more\n"))),
        (True, ("and there is no entry for", lambda: edit(path(changelog), rf"^## \[{version}\] - ", "## [0.9.0] - "))),
        (True, ("the tree has no .github/CHANGELOG.md", lambda: os.remove(path(changelog)))),
        (True, (f"the entry of {version} gives another SHA-256", lambda: edit(path(changelog), digest, "0" * 64)),
         ("is dated 2027-01-01, after its commit", lambda: edit(path(changelog), rf"^(## \[{version}\] - ).*$", r"\g<1>2027-01-01"))),
        (True, (f"README.md gives {version} {'0' * 64}", lambda: edit(path("README.md"), digest, "0" * 64))),
        (True, (f"README.md gives 0.9.0 {digest}", lambda: edit(path("README.md"), rf"netcode\.h {version}, SHA", "netcode.h 0.9.0, SHA")),
         ("and not this one", lambda: edit(path(kept_file), r"^#define NETCODE_KEY_BYTES 32$", ""))),
        (True, ("README.md gives no hash", lambda: edit(path("README.md"), digest, "")),
         ("and not this one", lambda: shutil.copy(path(kept_file), path("tests/release/netcode-0.9.0.api")))),
        (True, (f"the entry of {version} gives another SHA-256", lambda: write(path("netcode.h"), read(path("netcode.h")) + "\n"))),
        (True, ("differ: NETCODE_VERSION_MAJOR.MINOR.PATCH", lambda: edit(path("netcode.h"), r"^(#define NETCODE_VERSION_PATCH) \d+$", r"\1 9")),
         ("differ: netcode.h, changelog", lambda: edit(path("netcode.h"), rf"^    {version}  ", "    later  ")),
         ("differ: csharp/unity/package.json 0.9.0", lambda: edit(path("examples/csharp/unity/package.json"), rf'"version": "{version}"', '"version": "0.9.0"')),
         ("differ: csharp/nuget/NetcodeH.nuspec 0.9.0", lambda: edit(path("examples/csharp/nuget/NetcodeH.nuspec"), rf"<version>{version}<", "<version>0.9.0<")),
         ("differ: vcpkg.json 0.9.0", lambda: edit(path("examples/packaging/vcpkg/vcpkg.json"), rf'"version": "{version}"', '"version": "0.9.0"'))),
        (True, ("is no plain file", lambda: os.symlink("netcode.h", path("link.h")))),
        (True, (".release is committed", lambda: write(path(".release"), ""))),
    )  # fmt: skip
    count = 0
    for committed, *faults in rows:
        for _, change in faults:
            change()
        if committed:
            commit(folder, "Faults")
        output = release(folder, expect=1)
        for sentence, _ in faults:
            want(sentence in output, f"not said: {sentence}\n{output}")
            count += 1
        want(not os.path.exists(build(folder)), "something was built")
        run(["git", "reset", "-q", "--hard", "origin/main"], folder)
        run(["git", "clean", "-q", "-f", "-d", "-x"], folder)
    release(folder)
    same(stage, folder, "after all that")
    return f"{count} reasons"


def replaced(stage):
    """`git replace` shows a blob, a time or a tree in the place of another, and `git status` is content. The real commit is released, or none."""
    folder = stage.another("replaced")
    environment = dict(WITHOUT_GIT, GIT_COMMITTER_DATE="2026-12-24T00:00:00Z", GIT_AUTHOR_DATE="2026-12-24T00:00:00Z")

    def git(*arguments):
        return run(GIT + list(arguments), folder, env=environment).strip()

    def replace(name, fake):
        git("replace", name, fake)
        said = git("status", "--porcelain")
        want(said == "", f"git status says {said}")

    licence = os.path.join(folder, "LICENSE")
    write(licence, read(licence) + "planted\n")
    fake = git("hash-object", "-w", "LICENSE")
    git("checkout", "LICENSE")
    replace("HEAD:LICENSE", fake)
    want(git("show", "HEAD:LICENSE").endswith("planted"), "git does not show the replacement")
    release(folder)
    same(stage, folder, "with a replaced blob")
    git("replace", "-d", git("rev-parse", "HEAD:LICENSE"))
    replace("HEAD", git("commit-tree", "-m", "Later", "HEAD^{tree}"))
    want(git("show", "-s", "--format=%ct", "HEAD") != str(COMMITTED_SECONDS), "git does not show the replacement")
    release(folder)
    same(stage, folder, "with a replaced commit of another time")
    git("replace", "-d", "HEAD")
    write(licence, read(licence) + "planted\n")
    git("add", "LICENSE")
    replace("HEAD", git("commit-tree", "-m", "Another tree", git("write-tree")))
    output = release(folder, expect=1)
    want("not committed: M  LICENSE" in output, output)
    return "a blob, a commit's time, a commit's tree"


def shown_signature(stage):
    """log.showSignature lets `git log` print what gpg says of a signed commit; nothing of it may come between."""
    folder, gpg = stage.another("shown"), os.path.join(stage.work, "gpg")
    write(gpg, "#!/bin/sh\necho 'gpg: planted' >&2\necho '[GNUPG:] GOODSIG 0 planted'\n")
    os.chmod(gpg, 0o755)
    plain = run(["git", "cat-file", "commit", "HEAD"], folder)
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\n"
    signed = run(["git", "hash-object", "-t", "commit", "-w", "--stdin"], folder, input=plain.replace("\n\n", "\n" + signature, 1).encode()).strip()
    run(["git", "update-ref", "HEAD", signed], folder)
    for name, value in (("log.showSignature", "true"), ("gpg.program", gpg)):
        run(["git", "config", name, value], folder)
    want("gpg: planted" in run(["git", "log", "-1", "--format=%H %ct"], folder), "git log does not show the signature")
    want(f"commit {signed[:12]} of {COMMITTED}" in release(folder), "another commit or time")


def of_the_api(text):
    """(title, function, arguments) of each check of API and ABI."""
    for row in BREAKS:
        yield f"noticed: {row[0]}" + (", by abidiff too" if row[4] else ""), break_is_noticed, (text, *row[1:])
    for row in ADDITIONS:
        yield f"passes as an addition: {row[0]}", addition_passes, (text, *row[1:])
    yield "a program that uses all names notices breaks by itself", programs, (text,)


def of_a_release(stage):
    yield "twice", "the same bytes at another place, time, zone, language and umask, with other line ends", twice, (stage,)
    yield "unpacked", "the same bytes from the unpacked tarball without git, whatever the order of its files, unless one was changed", unpacked, (stage,)
    yield "sign", "minisign's signature is verified, and a changed byte or another key is not", signature, (stage,)
    yield "sbom", "the SBOM is SPDX 2.3, and true", sbom, (stage,)
    yield "sbom", "a broken SBOM is noticed", sbom_breaks, (stage,)
    yield "refuse", "what is no release is refused", refusals, (stage,)
    yield "replace", "what git shows in the place of the commit is not released", replaced, (stage,)
    yield "replace", "a signed commit is released where git log shows signatures", shown_signature, (stage,)


def everything(words):
    def wanted(name):
        return not words or any(word in name for word in words)

    text = kept.cut(read(os.path.join(ROOT, "netcode.h")))
    jobs = []
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as work:
        if wanted("refuse") or wanted("release") or any(wanted(name) for name in ("twice", "unpacked", "sign", "sbom", "replace")):
            stages = []
            check("make release-prepare writes a release into a copy of this tree", lambda: stages.append(Stage(work)))
            if stages:
                stage = stages[0]
                check("README.md and the changelog give one hash of the last release's netcode.h", hashes, stage)
                check("before it is prepared a commit is no release, and it is said why", not_yet, stage)
                check("version, changelog, README and the kept API are those of the new release", prepared, stage)
                check("the release is whole: tarball, header, SBOM, hashes", whole, stage)
                jobs += [(title, pool.submit(function, *arguments)) for name, title, function, arguments in of_a_release(stage) if wanted(name)]
        if wanted("abi"):
            command = [sys.executable, "tests/release/api.py"]
            title = "API and ABI of the last release are there as they were, as real as declared"
            jobs.append((title, pool.submit(lambda: re.search(r"\d+ names.*", run(command, ROOT)).group(0))))
        if wanted("api"):
            jobs += [(title, pool.submit(function, *arguments)) for title, function, arguments in of_the_api(text)]
        if wanted("bumps"):
            jobs.append(("additions force a new minor version, breaks a new major one", pool.submit(bumps, text)))
        for title, job in jobs:
            check(title, job.result)


def main():
    global api, kept, spdx
    start = time.monotonic()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if subprocess.run(["sh", os.path.join(ROOT, "tests/tools/need.sh"), *NEEDS.split()], stdout=sys.stderr, check=False).returncode:
        print("release: 0 passed, 1 failed")
        return 1
    import api as module_api
    import kept as module_kept
    import spdx as module_spdx

    api, kept, spdx = module_api, module_kept, module_spdx
    everything(sys.argv[1:])
    print(f"release: {passed} passed, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
