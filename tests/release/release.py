#!/usr/bin/env python3
"""Makes a release from what is committed, and from nothing else: the same commit gives the same bytes, whoever runs it, where and when.

    release.py                   build/release: netcode-VERSION.tar.gz, netcode-VERSION.h, netcode-VERSION.spdx.json, SHA256SUMS
    release.py --sign KEY        the same, and SHA256SUMS.minisig, made with minisign and the secret key in the file KEY
    release.py --snapshot        a tarball of a commit that is no release, for tests: netcode-VERSION-dev.HASH.tar.gz and the rest, unsigned
    release.py prepare           writes the version that the changelog plans into every file that has one, the changelog's heading and hash, the
                                 README's hash, and what tests/release keeps of a release; look at it, commit it, and make the release
    release.py check             only says whether a release could be made, and that README and changelog give one hash for the last one

Works in a clone, and in an unpacked tarball: that one has no history, but a file .release, which names the commit, its time and the hash of each
file. Needs Python's standard library, git in a clone, and minisign to sign.
"""

import argparse
import datetime
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid

import kept

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, "build", "release")
MANIFEST = ".release"
CHANGELOG = ".github/CHANGELOG.md"
LICENCE = "MIT"


class Refused(Exception):
    """No release, and why."""


def read(path, mode="r"):
    with open(os.path.join(TOP, path), mode, encoding=None if "b" in mode else "utf-8") as file:
        return file.read()


def write(path, data):
    with open(os.path.join(TOP, path), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- the tree that is released ----


class Tree:
    """`files`: path -> (is it a program?, bytes), sorted; the commit and its time."""

    def __init__(self, commit, seconds, files):
        self.commit, self.seconds, self.files = commit, seconds, dict(sorted(files.items()))

    def text(self, path):
        if path not in self.files:
            raise Refused(f"the tree has no {path}")
        return self.files[path][1].decode()

    def version(self):
        found = re.search(r'^#define NETCODE_VERSION_FULL "(\d+\.\d+\.\d+)"$', self.text("netcode.h"), re.M)
        if not found:
            raise Refused("netcode.h has no NETCODE_VERSION_FULL of the form 1.2.3")
        return found.group(1)


def git(*arguments, given=b""):
    # Nothing that the user has set up may change what is read, and refresh no index: reading is all. A ref in refs/replace/ would show another
    # content under the id of the real one.
    command = ["git", "-C", TOP, "--no-replace-objects", "--no-optional-locks", "-c", "core.quotePath=false", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    result = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, env=environment)
    if result.returncode:
        raise Refused(f"git {arguments[0]}: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout


def in_a_clone():
    return os.path.exists(os.path.join(TOP, ".git"))


def committed():
    """HEAD as git has stored it: filters and line ends of a working tree do not come in."""
    # Not `git log`, which prints what log.showSignature asks for, too.
    seconds, commit = git("rev-list", "--max-count=1", "--timestamp", "HEAD").decode().split()
    listed = [entry.split(b"\t", 1) for entry in git("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0") if entry]
    names = []
    for about, path in listed:
        mode, kind, _ = about.split()
        if kind != b"blob" or mode not in (b"100644", b"100755"):
            raise Refused(f"{path.decode()} is no plain file: a link or a submodule does not come into a release")
        names.append((path.decode(), mode == b"100755"))
    asked = "".join(about.split()[2].decode() + "\n" for about, _ in listed)
    output = io.BytesIO(git("cat-file", "--batch", given=asked.encode()))
    files = {}
    for path, program in names:
        size = int(output.readline().split()[2])
        files[path] = (program, output.read(size))
        output.read(1)
    if MANIFEST in files:
        raise Refused(f"{MANIFEST} is committed: only a tarball has it")
    return Tree(commit, int(seconds), files)


def unpacked():
    """The tree of an unpacked tarball, which must be as it was packed."""
    if not os.path.exists(os.path.join(TOP, MANIFEST)):
        raise Refused(f"this is neither a clone nor an unpacked release: there is no .git and no {MANIFEST}")
    lines = read(MANIFEST).splitlines()
    found = re.fullmatch(r"commit ([0-9a-f]{40}) (\d+)", lines[0] if lines else "")
    if not found:
        raise Refused(f"{MANIFEST} does not begin with its commit")
    files, faults = {}, []
    for line in lines[1:]:
        row = re.fullmatch(r"([0-9a-f]{64}) ([-x]) (\S.*)", line)
        if not row or os.path.isabs(row.group(3)) or ".." in row.group(3).split("/"):
            raise Refused(f"{MANIFEST}: a line that is none: {line}")
        digest, program, path = row.groups()
        try:
            data = read(path, "rb")
        except OSError as error:
            faults.append(f"{path} can not be read: {error.strerror}")
            continue
        if sha256(data) != digest:
            faults.append(f"{path} was changed")
        files[path] = (program == "x", data)
    for path in others(files):
        faults.append(f"{path} was added")
    if faults:
        raise Refused("the tree is not as it was packed:\n    " + "\n    ".join(faults[:20]))
    return Tree(found.group(1), int(found.group(2)), files)


def others(files):
    """Files that a tarball did not bring, but for what make builds."""
    for folder, folders, names in os.walk(TOP):
        inside = os.path.relpath(folder, TOP)
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules") and os.path.join(inside, name) != "./build")
        for name in sorted(names):
            path = os.path.normpath(os.path.join(inside, name))
            if path not in files and path != MANIFEST:
                yield path


def the_tree():
    return committed() if in_a_clone() else unpacked()


# ---- may it be released? ----


def entries(changelog):
    """(version, date, text) of each released version in the changelog, the newest first."""
    for found in re.finditer(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S):
        yield found.groups()


def unreleased(changelog):
    found = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if not found:
        raise Refused(f"{CHANGELOG} has no [Unreleased]")
    return found.group(1).strip()


def hash_in_entry(text):
    found = re.search(r"^SHA-256 of `netcode\.h`: `([0-9a-f]{64})`$", text, re.M)
    return found.group(1) if found else None


# The README's line about the last release: its version, and the SHA-256 of its netcode.h.
IN_README = re.compile(r"netcode\.h (\d+\.\d+\.\d+), SHA-256\s+`([0-9a-f]{64})`")


def check_hashes(tree):
    """README and changelog give one version and one hash for the last release. That holds between releases, too."""
    newest = next(entries(tree.text(CHANGELOG)), None)
    if not newest:
        return [f"{CHANGELOG} has no released version"]
    version, _, text = newest
    digest = hash_in_entry(text)
    if not digest:
        return [f"{CHANGELOG}: the entry of {version} does not give the SHA-256 of its netcode.h"]
    found = IN_README.findall(tree.text("README.md"))
    if found != [(version, digest)]:
        said = " and ".join(" ".join(one) for one in found) or "no hash"
        return [f"README.md gives {said}; the last release is netcode.h {version}, SHA-256 `{digest}`"]
    return []


def check_versions(folder):
    result = subprocess.run(["sh", os.path.join(folder, "examples/packaging/versions.sh")], capture_output=True, text=True, check=False)
    if result.returncode:
        rows = [line for line in result.stdout.splitlines() if "<-" in line] or [result.stderr.strip()]
        return [f"version numbers differ: {re.sub(' +', ' ', row)}" for row in rows]
    return []


def check_tree(tree):
    """Why this commit is no release; nothing if it is one."""
    version = tree.version()
    with tempfile.TemporaryDirectory() as folder:
        for path in {"netcode.h"} | {path for path in tree.files if re.match("examples/(packaging|python|csharp)/", path)}:
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(tree.files[path][1])
        faults = check_versions(folder)
    changelog = tree.text(CHANGELOG)
    if unreleased(changelog):
        faults.append(f"{CHANGELOG} has something below [Unreleased]: `release.py prepare` makes it the entry of a version")
    newest = next(entries(changelog), None)
    if not newest or newest[0] != version:
        faults.append(f"{CHANGELOG}: the newest entry is {newest[0] if newest else 'none'}, and there is no entry for {version} above it")
    else:
        digest = sha256(tree.files["netcode.h"][1])
        if hash_in_entry(newest[2]) != digest:
            faults.append(f"{CHANGELOG}: the entry of {version} gives another SHA-256 than netcode.h has, {digest}")
        if datetime.date.fromisoformat(newest[1]) > datetime.datetime.fromtimestamp(tree.seconds + 86400, datetime.timezone.utc).date():
            faults.append(f"{CHANGELOG}: {version} is dated {newest[1]}, after its commit")
    faults += check_hashes(tree)
    files = [path for path in tree.files if re.fullmatch(r"tests/release/netcode-.*\.api", path)]
    if files != [f"tests/release/netcode-{version}.api"] or tree.text(files[0]) != kept.cut(tree.text("netcode.h")):
        faults.append(f"tests/release keeps {' '.join(files) or 'no release'}, and not this one: netcode-{version}.api as kept.py makes it")
    return faults


def check_clean():
    changed = git("status", "--porcelain", "--untracked-files=normal").decode().splitlines()
    return [f"not committed: {line}" for line in changed[:20]]


# ---- what a release consists of ----


def manifest(tree):
    rows = [f"{sha256(data)} {'x' if program else '-'} {path}" for path, (program, data) in tree.files.items()]
    return (f"commit {tree.commit} {tree.seconds}\n" + "\n".join(rows) + "\n").encode()


def tarball(tree, name):
    """Sorted, owned by root, two modes, one time; the gzip header has no time and no name."""
    output = io.BytesIO()
    files = dict(tree.files)
    files[MANIFEST] = (False, manifest(tree))
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    with tarfile.open(fileobj=output, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({""} | folders | files.keys()):
            member = tarfile.TarInfo(f"{name}/{path}".rstrip("/"))
            member.mtime = tree.seconds
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            if path in files:
                member.mode = 0o755 if files[path][0] else 0o644
                member.size = len(files[path][1])
                tar.addfile(member, io.BytesIO(files[path][1]))
            else:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(output.getvalue())
    return packed.getvalue()


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def copyright_of(tree):
    return re.search(r"^Copyright .*$", tree.text("LICENSE"), re.M).group(0)


def sbom(tree, name, version, packed):
    """SPDX 2.3 as JSON: this package, its files, and libsodium, which it is linked with."""
    notice = copyright_of(tree)
    everything = dict(tree.files)
    everything[MANIFEST] = (False, manifest(tree))
    files = []
    for number, (path, (_, data)) in enumerate(sorted(everything.items()), 1):
        files.append(
            {
                "SPDXID": f"SPDXRef-File-{number}",
                "fileName": f"./{path}",
                "checksums": [
                    {"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                    {"algorithm": "SHA256", "checksumValue": sha256(data)},
                ],
                "licenseConcluded": LICENCE,
                "licenseInfoInFiles": ["NOASSERTION"],
                "copyrightText": notice,
            }
        )
    # SPDX 2.3, 7.9: the SHA-1 of all files' SHA-1, sorted.
    code = hashlib.sha1("".join(sorted(file["checksums"][0]["checksumValue"] for file in files)).encode()).hexdigest()
    netcode = {
        "SPDXID": "SPDXRef-Package-netcode",
        "name": "netcode",
        "versionInfo": version,
        "packageFileName": f"{name}.tar.gz",
        "supplier": "Organization: the netcode.h authors",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": code},
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(packed)}],
        "sourceInfo": f"made from the commit {tree.commit}",
        "licenseConcluded": LICENCE,
        "licenseInfoFromFiles": ["NOASSERTION"],
        "licenseDeclared": LICENCE,
        "copyrightText": notice,
        "summary": "Secure client/server connections over UDP, the netcode 1.02 protocol, as a single C header",
        "primaryPackagePurpose": "SOURCE",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:generic/netcode@{version}"},
        ],
    }
    libsodium = {
        "SPDXID": "SPDXRef-Package-libsodium",
        "name": "libsodium",
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "homepage": "https://libsodium.org",
        "filesAnalyzed": False,
        "licenseConcluded": "ISC",
        "licenseDeclared": "ISC",
        "copyrightText": "NOASSERTION",
        "comment": "Not part of this package. Programs that compile netcode.h are linked with the version that their system or their project has.",
        "primaryPackagePurpose": "LIBRARY",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:generic/libsodium"}],
    }
    relationships = [
        {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": netcode["SPDXID"]},
        {"spdxElementId": netcode["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": libsodium["SPDXID"]},
    ]
    relationships += [
        {"spdxElementId": netcode["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": file["SPDXID"]} for file in files
    ]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256(packed))}",
        "creationInfo": {"created": utc(tree.seconds), "creators": ["Tool: netcode.h-release.py"]},
        "packages": [netcode, libsodium],
        "files": files,
        "relationships": relationships,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def make(tree, name, version):
    """name -> bytes of each file of the release."""
    packed = tarball(tree, name)
    files = {
        f"{name}.tar.gz": packed,
        f"{name}.h": tree.files["netcode.h"][1],
        f"{name}.spdx.json": sbom(tree, name, version, packed),
    }
    files["SHA256SUMS"] = "".join(f"{sha256(data)}  {file}\n" for file, data in sorted(files.items())).encode()
    return files


def check_key(key):
    if not shutil.which("minisign"):
        raise Refused("there is no minisign to sign with (Debian's package: minisign)")
    if not os.path.isfile(key):
        raise Refused(f"SIGN_KEY: there is no file {key}")
    if os.path.commonpath([os.path.realpath(key), os.path.realpath(TOP)]) == os.path.realpath(TOP):
        raise Refused(f"SIGN_KEY: {key} is in the project's folder; a secret key has no place there")


def sign(key, folder, name, tree):
    """minisign signs the hashes, and in its trusted comment which release and commit they are of. The signature is verified at once."""
    sums, comment = os.path.join(folder, "SHA256SUMS"), f"{name} {tree.commit}"
    command = ["minisign", "-S", "-s", key, "-m", sums, "-c", "signature of a netcode.h release", "-t", comment]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        raise Refused("minisign did not sign")
    with tempfile.TemporaryDirectory() as place:
        public = os.path.join(place, "minisign.pub")
        # The key's own public half: asks for the password again where there is one.
        if subprocess.run(["minisign", "-R", "-s", key, "-p", public], check=False, stdout=subprocess.DEVNULL).returncode:
            raise Refused("minisign did not give the key's public half")
        result = subprocess.run(["minisign", "-V", "-p", public, "-m", sums, "-Q"], check=False, capture_output=True, text=True)
        if result.returncode or result.stdout.strip() != comment:
            raise Refused("the signature that was just made can not be verified")
        with open(public, encoding="utf-8") as file:
            print(f"signed and verified; the public key is {file.read().split()[-1]}")


def release(arguments):
    if arguments.sign:
        check_key(arguments.sign)
    tree = the_tree()
    version = tree.version()
    if arguments.snapshot:
        version = f"{version}-dev.{tree.commit[:12]}"
    else:
        faults = (check_clean() if in_a_clone() else []) + check_tree(tree)
        if faults:
            raise Refused("\n    ".join(["this is no release:"] + faults))
    name = f"netcode-{version}"
    files = make(tree, name, version)
    os.makedirs(os.path.dirname(OUT), exist_ok=True)
    # Whole or not at all: what stands in build/release was made in one run.
    fresh = tempfile.mkdtemp(prefix="release.", dir=os.path.dirname(OUT))
    try:
        os.chmod(fresh, 0o755)
        for file, data in files.items():
            with open(os.path.join(fresh, file), "wb") as output:
                output.write(data)
        if arguments.sign:
            sign(arguments.sign, fresh, name, tree)
        shutil.rmtree(OUT, ignore_errors=True)
        os.rename(fresh, OUT)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    print(f"build/release: {name}, commit {tree.commit[:12]} of {utc(tree.seconds)}")
    print("".join(f"    {line}\n" for line in files["SHA256SUMS"].decode().splitlines()), end="")
    if not arguments.sign and not arguments.snapshot:
        print("not signed: SIGN_KEY=file signs SHA256SUMS with minisign")


# ---- the commit before it ----

# What `versions.sh` lists: file, pattern with the version as its group. Each must be found once or more.
VERSIONED = (
    ("netcode.h", r'(?<=^#define NETCODE_VERSION_FULL ")(\d+\.\d+\.\d+)(?="$)'),
    ("netcode.h", r"\A/\*  netcode\.h (\d+\.\d+\.\d+):"),
    ("examples/packaging/consumer/CMakeLists.txt", r"GIT_TAG v(\d+\.\d+\.\d+)"),
    ("examples/packaging/meson/packagefiles/netcode/meson.build", r"^project\('netcode', version: '(\d+\.\d+\.\d+)'"),
    ("examples/packaging/meson/netcode.wrap", r"^revision = v(\d+\.\d+\.\d+)"),
    ("examples/packaging/vcpkg/vcpkg.json", r'"version": "(\d+\.\d+\.\d+)"'),
    ("examples/packaging/conan/conanfile.py", r'^    version = "(\d+\.\d+\.\d+)"$'),
    ("examples/packaging/homebrew/netcode.rb", r'/v(\d+\.\d+\.\d+)\.tar\.gz"$'),
    ("examples/python/netcode.py", r'^VERSION = "(\d+\.\d+\.\d+)"'),
    ("examples/csharp/Netcode.cs", r'HeaderVersion = "(\d+\.\d+\.\d+)"'),
    ("examples/csharp/Netcode.cs", r"\A// netcode\.h (\d+\.\d+\.\d+) "),
    ("examples/csharp/unity/package.json", r'"version": "(\d+\.\d+\.\d+)"'),
    ("examples/csharp/nuget/NetcodeH.nuspec", r"<version>(\d+\.\d+\.\d+)</version>"),
    ("examples/csharp/README.md", r"NetcodeH\.(\d+\.\d+\.\d+)\.nupkg"),
    ("examples/csharp/pack.py", r"NetcodeH\.(\d+\.\d+\.\d+)\.nupkg"),
    ("examples/csharp/pack.py", r"netcode-unity-(\d+\.\d+\.\d+)\.tgz"),
)


def replace_version(path, pattern, version):
    text = read(path)
    count = 0

    def put(match):
        nonlocal count
        count += 1
        start, end = match.start(1) - match.start(), match.end(1) - match.start()
        return match.group(0)[:start] + version + match.group(0)[end:]

    changed = re.sub(pattern, put, text, flags=re.M)
    if not count:
        raise Refused(f"{path}: no version number is where it was: {pattern}")
    write(path, changed)


def prepare(date):
    changelog = read(CHANGELOG)
    news = unreleased(changelog)
    planned = re.match(r"The next version: ((?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2})\.\n+", news)
    if not planned:
        raise Refused(f"{CHANGELOG}: [Unreleased] does not begin with a line of the form: The next version: 1.2.3.")
    version = planned.group(1)
    if any(version == released for released, _, _ in entries(changelog)):
        raise Refused(f"{CHANGELOG} has an entry for {version} already")
    news = news[planned.end() :].strip()
    if not news:
        raise Refused(f"{CHANGELOG} has nothing below [Unreleased]")
    for path, pattern in VERSIONED:
        replace_version(path, pattern, version)
    header = read("netcode.h")
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")):
        header = re.sub(rf"^(#define NETCODE_VERSION_{part}) \d+$", rf"\g<1> {number}", header, flags=re.M)
    # The header's own changelog calls `later` what is not released yet.
    header = re.sub(r"(?<=\n    CHANGELOG\n)    later  ", f"    {version}  ".ljust(11), header)
    write("netcode.h", header)
    digest = sha256(read("netcode.h", "rb"))
    changelog = changelog.replace(
        changelog[changelog.index("## [Unreleased]") : changelog.index("## [", changelog.index("## [Unreleased]") + 3)],
        f"## [Unreleased]\n\n## [{version}] - {date}\n\nSHA-256 of `netcode.h`: `{digest}`\n\n{news}\n\n",
    )
    write(CHANGELOG, changelog)
    readme = read("README.md")
    if len(IN_README.findall(readme)) != 1:
        raise Refused("README.md does not give the hash of a release, once: netcode.h VERSION, SHA-256 `HASH`")
    write("README.md", IN_README.sub(lambda match: match.group(0).replace(match.group(1), version).replace(match.group(2), digest), readme))
    for path in glob.glob(os.path.join(TOP, "tests/release/netcode-*.api")):
        os.remove(path)
    write(f"tests/release/netcode-{version}.api", kept.cut(header))
    print(f"{version} is written everywhere; netcode.h has the SHA-256 {digest}\n`git add -A`, look at `git diff --cached`, commit, then: make release SIGN_KEY=...")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("command", nargs="?", choices=("prepare", "check"))
    parser.add_argument("--sign", metavar="KEY")
    parser.add_argument("--snapshot", action="store_true")
    parser.add_argument("--date", help="of the changelog's entry; today")
    arguments = parser.parse_args()
    if arguments.command == "prepare":
        prepare(arguments.date or datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    elif arguments.command == "check":
        tree = the_tree()
        faults = check_hashes(tree)
        print("\n".join(check_tree(tree)) or "a release can be made of this commit")
        if faults:
            raise Refused("\n".join(faults))
    else:
        if arguments.sign and arguments.snapshot:
            raise Refused("a snapshot is no release, and is not signed")
        release(arguments)


if __name__ == "__main__":
    try:
        main()
    except (Refused, kept.Unreadable, OSError, UnicodeDecodeError, subprocess.CalledProcessError) as error:
        print(f"release.py: {error}", file=sys.stderr)
        sys.exit(1)
