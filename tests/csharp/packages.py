#!/usr/bin/env python3
"""The packages of the C# binding, and the commands and code of its README: made, looked into, compiled and run. A line for each check."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = "examples/csharp"
OUT = "build/csharp"
COMPILE = ["mcs", "-langversion:7.2", "-warn:4", "-warnaserror"]
failed = 0


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False, **options)
    if result.returncode:
        raise AssertionError(f"{' '.join(command) if isinstance(command, list) else command}: status {result.returncode}\n{result.stdout}")
    return result.stdout


def check(what, function):
    global failed
    try:
        note = function()
    except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired, yaml.YAMLError) as error:
        failed += 1
        print(f"FAILED: {what}\n    {type(error).__name__}: {error}")
        return
    print(f"ok: {what}" + (f" ({note})" if note else ""), flush=True)


def read(path, mode="r"):
    with open(path, mode, encoding=None if "b" in mode else "utf-8") as file:
        return file.read()


def digest(path):
    return hashlib.sha256(read(path, "rb")).hexdigest()


VERSION = re.search(r'#define NETCODE_VERSION_FULL "(.*)"', read(f"{TOP}/netcode.h")).group(1)
NUPKG = f"{OUT}/NetcodeH.{VERSION}.nupkg"
TGZ = f"{OUT}/netcode-unity-{VERSION}.tgz"


def versions():
    found = {
        "Netcode.cs": re.search(r'HeaderVersion = "(.*)"', read(f"{HERE}/Netcode.cs")).group(1),
        "Netcode.cs, first line": re.match(r"// netcode\.h (\S+) ", read(f"{HERE}/Netcode.cs")).group(1),
        "package.json": json.loads(read(f"{HERE}/unity/package.json"))["version"],
        "nuspec": re.search("<version>(.*)</version>", read(f"{HERE}/nuget/NetcodeH.nuspec")).group(1),
    }
    for name, version in found.items():
        assert version == VERSION, f"{name} says {version}, netcode.h {VERSION}"
    return VERSION


def documents():
    count = 0
    for folder, _, names in os.walk(HERE):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith((".json", ".asmdef")):
                assert isinstance(json.loads(read(path)), dict), path
                count += 1
            elif name.endswith((".nuspec", ".props")):
                run(["xmllint", "--noout", "--nonet", path])
                count += 1
    assert count == 5, f"{count} files"
    for name in ("Runtime/NetcodeH", "Samples~/Play/NetcodeH.Play"):
        asmdef = json.loads(read(f"{HERE}/unity/{name}.asmdef"))
        assert asmdef["name"] == os.path.basename(name) and asmdef["allowUnsafeCode"] == (name.startswith("Runtime")), name
    package = json.loads(read(f"{HERE}/unity/package.json"))
    assert re.fullmatch(r"[a-z0-9.-]+", package["name"]) and all(os.path.isdir(f"{HERE}/unity/{one['path']}") for one in package["samples"])
    return f"{count} files"


def packed_twice():
    run([sys.executable, f"{HERE}/pack.py"])
    before = [digest(NUPKG), digest(TGZ)]
    run([sys.executable, f"{HERE}/pack.py"])
    assert before == [digest(NUPKG), digest(TGZ)], "the second one is another"


PROGRAM = """using System;
using NetcodeH;

internal static class Program
{
    private static int Main()
    {
        using (var simulator = new NetworkSimulator())
            Console.Write(NetcodeLibrary.Version);
        return 0;
    }
}
"""


def nuget():
    with zipfile.ZipFile(NUPKG) as package:
        names = package.namelist()
        assert package.testzip() is None and "[Content_Types].xml" in names and "_rels/.rels" in names and "NetcodeH.nuspec" in names, names
        for name in names:
            if name.endswith((".xml", ".rels", ".nuspec", ".props")):
                run(["xmllint", "--noout", "--nonet", "-"], input=package.read(name).decode())
        extensions = set(re.findall('Extension="(.*?)"', package.read("[Content_Types].xml").decode()))
        assert {name.rsplit(".", 1)[1] for name in names if name != "[Content_Types].xml"} == extensions, extensions
        manifest = package.read("NetcodeH.nuspec").decode()
        for target in re.findall('target="(.*?)"', manifest):
            assert target in names, f"{target} is not in the package"
        content = re.search('<files include="(.*?)" buildAction="Compile"', manifest).group(1)
        assert package.read(f"contentFiles/{content}") == read(f"{HERE}/Netcode.cs", "rb"), "Netcode.cs"
        unpacked = f"{OUT}/unpacked"
        package.extractall(unpacked)
    # As a project that has the package would: the source compiled in, the library of this system beside the program.
    with open(f"{unpacked}/Program.cs", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    run(COMPILE + ["-unsafe", f"-out:{unpacked}/Program.exe", f"{unpacked}/contentFiles/{content}", f"{unpacked}/Program.cs"])
    os.replace(f"{unpacked}/runtimes/linux-x64/native/libnetcode.so", f"{unpacked}/libnetcode.so")
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    assert run(["mono", f"{unpacked}/Program.exe"], env=environment) == VERSION, "its version"
    return f"{len(names)} files"


def unity():
    with tarfile.open(TGZ) as package:
        names = {name[len("package/") :] for name in package.getnames()}
        for name in names:
            assert package.extractfile("package/" + name).read() == read(f"{OUT}/unity/{name}", "rb"), name
    folders = {"/".join(name.split("/")[:depth]) for name in names for depth in range(1, name.count("/") + 1)}
    guids = set()
    for name in sorted(names | folders):
        if name.endswith(".meta"):
            assert name[: -len(".meta")] in names | folders, f"{name} belongs to nothing"
            meta = yaml.safe_load(read(f"{OUT}/unity/{name}"))
            assert meta["fileFormatVersion"] == 2 and re.fullmatch("[0-9a-f]{32}", str(meta["guid"])), name
            guids.add(meta["guid"])
        elif "~" not in name:
            assert name + ".meta" in names, f"{name} has no .meta, so Unity ignores it"
    metas = [name for name in names if name.endswith(".meta")]
    assert len(guids) == len(metas), "two files have the same guid"
    for plugin in ("libnetcode.so", "netcode.dll"):
        meta = yaml.safe_load(read(f"{OUT}/unity/Plugins/x86_64/{plugin}.meta"))
        enabled = [list(one["first"].values())[0] for one in meta["PluginImporter"]["platformData"] if one["second"]["enabled"]]
        assert enabled == ["Editor", {"libnetcode.so": "Linux64", "netcode.dll": "Win64"}[plugin]], enabled
    return f"{len(names)} files"


def unity_assemblies():
    """As Unity's two assemblies: the binding with unsafe code and Unity's own attribute, the sample without unsafe code."""
    stubs = f"{OUT}/UnityStubs.dll"
    define = "-define:UNITY_5_3_OR_NEWER"
    sample = f"{OUT}/unity/Samples~/Play"
    run(COMPILE + ["-target:library", define, f"-out:{stubs}", "tests/csharp/unity/UnityStubs.cs"])
    run(COMPILE + ["-target:library", define, "-unsafe", f"-r:{stubs}", f"-out:{OUT}/NetcodeH.dll", f"{OUT}/unity/Runtime/Netcode.cs"])
    sources = sorted(f"{sample}/{name}" for name in os.listdir(sample) if name.endswith(".cs"))
    run(COMPILE + ["-target:library", define, f"-r:{stubs}", f"-r:{OUT}/NetcodeH.dll", f"-out:{OUT}/NetcodeH.Play.dll"] + sources)


def blocks(language):
    """Of the README; without those behind a comment that says why."""
    text = read(f"{HERE}/README.md")
    return [body for mark, body in re.findall(rf"(<!-- not run: [^\n]*-->\n)?```{language}\n(.*?)```", text, flags=re.S) if not mark]


def readme_commands():
    (commands,) = blocks("sh")
    assert len(commands.strip().split("\n")) <= 3, "more than three commands"
    output = run(["sh", "-ec", commands])
    for want in ("client 42 is in slot 0", 'server: got "hello, server"', 'client: got "hello, player"', "has left: ClientDisconnect",
                 "refused client: The connect token expired", "requests dropped: the request's protocol id is not this server's"):
        assert want in output, f"no \"{want}\" in:\n{output}"


def readme_code():
    parts = blocks("csharp")
    methods = "".join(f"    internal static void Part{i}(byte[] key, byte[] data, ulong playerId, string given)\n    {{\n" +
                      part.replace("FromBase64(text)", "FromBase64(given)") + "    }\n" for i, part in enumerate(parts))
    path = f"{OUT}/readme.cs"
    with open(path, "w", encoding="utf-8") as file:
        file.write("using System;\nusing NetcodeH;\n\ninternal static class Readme\n{\n" + methods + "}\n")
    run(COMPILE[:2] + ["-unsafe", "-target:library", f"-out:{OUT}/readme.dll", path, f"{HERE}/Netcode.cs"])
    assert len(parts) == 3, f"{len(parts)} pieces of code"
    return f"{len(parts)} pieces of code"


def mapping():
    """Each name of ours in the page exists: a type, or a member of one."""
    known = set(re.findall(r"\b[A-Z]\w+", read(f"{HERE}/Netcode.cs")))
    count = 0
    for line in read(f"{HERE}/MAPPING.md").split("\n"):
        cells = line.split(" | ")
        if len(cells) != 2 or not line.startswith("|"):
            continue
        for code in re.findall("`([^`]*)`", cells[1]):
            if "/" in code or code == "ArenaBot.cs":
                assert os.path.exists(f"{HERE}/{code}"), code
                continue
            for name in re.findall(r"\b[A-Z]\w+", code):
                assert name in known, f"{name} is not in Netcode.cs: {line}"
                count += 1
    assert count > 60, f"{count} names"
    return f"{count} names"


def main():
    os.chdir(TOP)
    check("one version everywhere", versions)
    check("JSON and XML files are read as such, and say what they must", documents)
    check("pack.py makes the same packages each time", packed_twice)
    check("the NuGet package is whole; its source compiles, its library is loaded", nuget)
    check("the Unity package is whole: each file has a .meta, each plug-in its platform", unity)
    check("the Unity package compiles as its two assemblies against stubs", unity_assemblies)
    check("README.md: its commands print what they should", readme_commands)
    check("README.md: its code compiles", readme_code)
    check("MAPPING.md: each name of ours exists", mapping)
    return 1 if failed else 0


sys.exit(main())
