#!/usr/bin/env python3
"""Makes the packages of the C# binding from what build.sh has built: Python's standard library alone.

    pack.py nuget      build/csharp/NetcodeH.1.1.0.nupkg
    pack.py unity      build/csharp/unity: a folder for a project's Packages/, and the same as netcode-unity-1.1.0.tgz
    pack.py            both

A native library of another system that lies in build/csharp (libnetcode.dylib, android/libnetcode.so) goes in too."""

import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "csharp")
DATE = (2026, 1, 1, 0, 0, 0)  # the same files make the same package
NUSPEC = "{http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd}"

# The file in build/csharp; where NuGet wants it; where Unity does, with its name of the platform and of the processor.
NATIVE = [
    ("libnetcode.so", "runtimes/linux-x64/native/libnetcode.so", "Plugins/x86_64/libnetcode.so", "Linux64", "x86_64"),
    ("netcode.dll", "runtimes/win-x64/native/netcode.dll", "Plugins/x86_64/netcode.dll", "Win64", "x86_64"),
    ("libnetcode.dylib", "runtimes/osx/native/libnetcode.dylib", "Plugins/macOS/libnetcode.dylib", "OSXUniversal", "AnyCPU"),
    ("android/libnetcode.so", "runtimes/android-arm64/native/libnetcode.so", "Plugins/Android/arm64-v8a/libnetcode.so", "Android", "ARM64"),
]
REQUIRED = ("libnetcode.so", "netcode.dll")


def stop(text):
    sys.exit(f"pack.py: {text}")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return stop(f"{path} is missing: run build.sh first")


def source(name):
    for folder in (HERE, os.path.join(HERE, "nuget"), OUT):
        if os.path.exists(os.path.join(folder, name)):
            return read(os.path.join(folder, name))
    return stop(f"{name} is missing: run build.sh first")


def native():
    for name, nuget, unity, platform, processor in NATIVE:
        if name in REQUIRED or os.path.exists(os.path.join(OUT, name)):
            yield read(os.path.join(OUT, name)), nuget, unity, platform, processor


# ---- NuGet: a zip file with three parts more, as the Open Packaging Conventions want them ----

CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
{}</Types>
"""
RELATIONSHIPS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/NetcodeH.nuspec" Id="R1" />
</Relationships>
"""


def nuget():
    manifest = read(os.path.join(HERE, "nuget", "NetcodeH.nuspec"))
    tree = ElementTree.fromstring(manifest)
    version = tree.find(f"{NUSPEC}metadata/{NUSPEC}version").text
    files = {file.get("target"): source(file.get("src")) for file in tree.find(f"{NUSPEC}files")}
    files.update({nuget_path: data for data, nuget_path, *_ in native()})
    files["NetcodeH.nuspec"] = manifest
    extensions = sorted({os.path.splitext(name)[1][1:] for name in files})
    files["[Content_Types].xml"] = CONTENT_TYPES.format(
        "".join(f'  <Default Extension="{name}" ContentType="application/octet" />\n' for name in extensions)
    ).encode()
    files["_rels/.rels"] = RELATIONSHIPS.encode()
    path = os.path.join(OUT, f"NetcodeH.{version}.nupkg")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name in sorted(files):
            package.writestr(zipfile.ZipInfo(name, DATE), files[name], zipfile.ZIP_DEFLATED)
    print(f"{os.path.relpath(path)}: {len(files)} files, {os.path.getsize(path)} bytes")


# ---- Unity: each file and folder of a package has a .meta beside it, or Unity ignores it ----


def meta(path, importer=""):
    guid = hashlib.md5(("netcode.h " + path).encode()).hexdigest()  # the same in each build, as references to files are by it
    return f"fileFormatVersion: 2\nguid: {guid}\n{importer}".encode()


def plugin(platform, processor):
    """It is loaded in the players of its system and in the editor on it."""
    editor_system = {"Linux64": "Linux", "Win64": "Windows", "OSXUniversal": "OSX"}.get(platform)
    data = [("Any", "", 0, {}), ("Editor", "Editor", int(editor_system is not None), {"CPU": processor, "OS": editor_system or "AnyOS"})]
    group = "Android" if platform == "Android" else "Standalone"
    data.append((group, platform, 1, {"CPU": processor}))
    text = "PluginImporter:\n  serializedVersion: 2\n  isPreloaded: 0\n  isOverridable: 0\n  platformData:\n"
    for first, second, enabled, settings in data:
        text += f"  - first:\n      {first}: {second}\n    second:\n      enabled: {enabled}\n"
        text += "      settings: {}\n" if not settings else "      settings:\n" + "".join(f"        {key}: {value}\n" for key, value in settings.items())
    return text


def unity():
    with open(os.path.join(HERE, "unity", "package.json"), encoding="utf-8") as file:
        version = json.load(file)["version"]
    files = {}
    for folder, _, names in os.walk(os.path.join(HERE, "unity")):
        for name in names:
            full = os.path.join(folder, name)
            files[os.path.relpath(full, os.path.join(HERE, "unity"))] = read(full)
    files["Runtime/Netcode.cs"] = source("Netcode.cs")
    files["README.md"] = source("README.md")
    importers = {}
    for data, _, path, platform, processor in native():
        files[path] = data
        importers[path] = plugin(platform, processor)
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    for path in sorted(set(files) | folders):
        if "~" not in path:  # Unity does not import what ends with a tilde
            files[path + ".meta"] = meta(path, importers.get(path, "folderAsset: yes\n" if path in folders else ""))

    top = os.path.join(OUT, "unity")
    shutil.rmtree(top, ignore_errors=True)
    for path, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), "wb") as file:
            file.write(data)
    archive = os.path.join(OUT, f"netcode-unity-{version}.tgz")
    with open(archive, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path in sorted(files):
            entry = tarfile.TarInfo("package/" + path)
            entry.size = len(files[path])
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(files[path]))
    print(f"{os.path.relpath(archive)}: {len(files)} files, {os.path.getsize(archive)} bytes")


def main():
    wanted = sys.argv[1:] or ["nuget", "unity"]
    if any(name not in ("nuget", "unity") for name in wanted):
        stop("nuget, unity, or nothing for both")
    if "nuget" in wanted:
        nuget()
    if "unity" in wanted:
        unity()


main()
