#!/usr/bin/env python3
"""A planted fault for each thing that the tests of the C# binding look for: each is written into a copy, and a test must notice. Run `make csharp`
before, which builds what these need.

    plants.py [WORD...]      those whose titles hold one of these words"""

import glob
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = "build/csharp/plants"
NETCODE = "examples/csharp/Netcode.cs"
HOST = "examples/csharp/unity/Samples~/Play/PlayHost.cs"
CLIENT = "examples/csharp/unity/Samples~/Play/PlayClient.cs"
BOT = "examples/csharp/ArenaBot.cs"

# The title; the file; what stands there, once or more; what stands there instead; of which tests one must fail.
PLANTS = [
    ("two fields swapped", NETCODE, "public int packet_pool_buffers;\n        public int packet_quota;\n        public int update_budget;", "public int packet_pool_buffers;\n        public int update_budget;\n        public int packet_quota;", "layout"),
    ("a field too many", NETCODE, "public int roaming;\n", "public int roaming, more;\n", "layout"),
    ("a number too few", NETCODE, "        TokenMalformed,\n", "", "layout"),
    ("a number that is another", NETCODE, "SendingConnectionResponse = 2", "SendingConnectionResponse = 4", "layout"),
    ("an argument of another type", NETCODE, "netcode_log_level(int level)", "netcode_log_level(double level)", "layout"),
    ("a callback's argument of another type", NETCODE, "ulong clientId, byte* tokenTag", "uint clientId, byte* tokenTag", "layout"),
    ("another calling convention", NETCODE, "[UnmanagedFunctionPointer(C)] internal delegate ulong unix_time", "internal delegate ulong unix_time", "layout"),
    ("a callback that is not marked", NETCODE, "        [AOT.MonoPInvokeCallback(typeof(stray_callback))]\n", "", "layout"),
    ("another layout's number", NETCODE, "internal const ulong Layout64 = ", "internal const ulong Layout64 = 1 + ", "layout"),
    ("addresses equal without their ports", NETCODE, "port != other.port", "false", "addresses"),
    ("internal addresses that are not used", NETCODE, "outer.Pointers, inner.Pointers", "outer.Pointers, outer.Pointers", "process"),
    ("user data that is not sent", NETCODE, "Array.Copy(userData, data, userData.Length);", "data[0] = 0;", "payloads"),
    ("packets that are not given back", NETCODE, "Native.netcode_server_free_packet(Handle, native.data);", "", "garbage"),
    ("an array for each payload", NETCODE, "Native.netcode_client_free_packet(Handle, native.data);\n",
     "Native.netcode_client_free_packet(Handle, native.data);\n                new byte[8].Clone();\n", "garbage"),
    ("roaming that is not passed on", NETCODE, "config->roaming = Roaming ? 1 : 0;", "", "connection"),
    ("a report without its sentence", NETCODE, "Text = Native.Text((IntPtr)native.text, 256)", 'Text = ""', "report"),
    ("a seed that is not set", NETCODE, "Fields->seed = value;", "", "simulator"),
    ("an exception that is lost", NETCODE, "client.Config.StateChanged(client, (ClientState)previous, (ClientState)state);\n            }\n            catch (Exception exception) { Faults.Add(exception); }",
     "client.Config.StateChanged(client, (ClientState)previous, (ClientState)state);\n            }\n            catch (Exception) { }", "exceptions"),
    ("exceptions that stay where they are", NETCODE, "            Faults.Throw(mark);\n        }\n\n        /// <summary>Ends it", "        }\n\n        /// <summary>Ends it", "exceptions"),
    ("an inner call that throws the outer one's", NETCODE, "            if (caught == null || caught.Count <= mark)", "            mark = 0;\n            if (caught == null || caught.Count <= mark)", "several"),
    ("handles that keep what is forgotten", NETCODE, "Self = GCHandle.Alloc(this, GCHandleType.Weak);", "Self = GCHandle.Alloc(this);", "forgotten"),
    ("forgotten clients that are never ended", NETCODE, "                    hasLater = true;\n", "", "simulator in use"),
    ("a finalizer that calls the user's code", NETCODE, "            IsFinalizing = true;\n", "", "finalizers"),
    ("a finalizer that calls the log handler", NETCODE, "                if (!NetcodeObject.IsFinalizing)\n                    NetcodeLibrary.OnLog", "                    NetcodeLibrary.OnLog", "finalizers"),
    ("a finalizer that does not disconnect", NETCODE, "            Native.netcode_client_destroy(handle);\n", "            if (!IsFinalizing)\n                Native.netcode_client_destroy(handle);\n", "udp"),
    ("a second thread that may come in", NETCODE, "if (before != 0 && before != me)", "if (before == -1)", "second thread"),
    ("Dispose in a callback that does not wait", NETCODE, "            if (--depth == 0)\n            {\n                if (isClosing)",
     "            --depth;\n            {\n                if (isClosing)", "outermost"),
    ("Dispose that leaves a client alive", NETCODE, "            if (isClosing)\n                throw new ObjectDisposedException(GetType().Name);", "", "mistake"),
    ("payloads of any size", NETCODE, "if (count < 1 || count > NetcodeLibrary.MaxPacketSize)", "if (count < 0)", "mistake"),
    ("slots of any number", NETCODE, "return Check.Index(clientIndex, slots.Length, \"clientIndex\");", "return clientIndex;", "mistake"),
    ("parts beyond their array", NETCODE, "if (count < 0 || count > data.Length - offset)", "if (count < 0)", "mistake"),
    ("a key of any length", NETCODE, "if (data.Length != bytes)", "if (data.Length < bytes)", "mistake"),
    ("a kind that is another", NETCODE, "kind = (int)kind,", "kind = (int)kind == 4 ? 2 : (int)kind,", "message"),
    ("a receipt that is another", NETCODE, "e.Receipt = stream.Receipt;", "", "streams"),
    ("a stream of a broken source that goes on", NETCODE, "stream.Messages.Cancel(stream);", "", "streams"),
    ("a stream's function that may do all", NETCODE, "if (IsInStream)", "if (false)", "streams"),
    ("a sink that hears no end", NETCODE, "stream.Sink.End(complete != 0);", "", "streams"),
    ("a span of another length", NETCODE, "Native.netcode_server_broadcast(Handle, at, data.Length, exceptClientIndex);", "Native.netcode_server_broadcast(Handle, at, 1, exceptClientIndex);", "span"),
    ("a client that does not predict", CLIENT, "                PlayRules.Step(ref own, inputs[i % inputs.Length]);\n", "                inputs[i % inputs.Length] = default(PlayInput);\n", "unity"),
    ("a host that runs all inputs", HOST, "|| player.Credit == 0)", "|| false)", "unity"),
    ("a bot that reads a bit too few", BOT, "view.Rapid = reader.ReadRange(0, 1);", "view.Rapid = 0;", "arena"),
    ("a bot that does not move", BOT, "var command = new Command { Buttons = buttons };", "var command = new Command();\n        buttons = 0;", "arena"),
]


def compile_into(folder, program, sources):
    return subprocess.run(["mcs", "-langversion:7.2", "-unsafe", "-define:NETSTANDARD2_1_OR_GREATER", "-nowarn:162,219,414", f"-out:{folder}/{program}"] + sources,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def notice(path, before, after, words):
    """The failing line of the tests, or None: nothing was noticed."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if before not in text:
        print(f"plants.py: {path} does not hold: {before}")
        return None
    planted = f"{OUT}/{os.path.basename(path)}"
    with open(planted, "w", encoding="utf-8") as file:
        file.write(text.replace(before, after))
    sources = [NETCODE] + glob.glob("tests/csharp/*.cs") + glob.glob("tests/csharp/unity/*.cs") + glob.glob("examples/csharp/unity/Samples~/Play/*.cs")
    bot = [NETCODE, BOT]
    # The bot's program lies where the tests look for it.
    if path == BOT:
        build = compile_into("build/csharp", "ArenaBot.exe", [planted if name == path else name for name in bot])
    else:
        build = compile_into(OUT, "tests.exe", [planted if name == path else name for name in sources])
    if build.returncode:
        print(f"plants.py: this does not compile: {after}\n{build.stdout}")
        return None
    tests = "build/csharp/tests.exe" if path == BOT else f"{OUT}/tests.exe"
    # In its own folder: where it crashes, Mono leaves a file.
    run = subprocess.run(["mono", "--debug", os.path.join(TOP, tests), words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False, cwd=OUT,
                         env={**os.environ, "NETCODE_ROOT": TOP})
    if run.returncode == 0:
        return None
    failures = [line for line in run.stdout.split("\n") if line.startswith("FAILED")]
    return failures[0] if failures else f"the tests ended with status {run.returncode}"


def main():
    os.chdir(TOP)
    words = sys.argv[1:]
    unnoticed = 0
    if not os.path.exists("build/csharp/tests.exe"):
        sys.exit("plants.py: run `make csharp` first")
    os.makedirs(OUT, exist_ok=True)
    shutil.copy("build/csharp/libnetcode.so", OUT)
    for title, path, before, after, tests in PLANTS:
        if words and not any(word in title for word in words):
            continue
        noticed = notice(path, before, after, tests)
        unnoticed += noticed is None
        print(f"ok: {title}: {noticed}" if noticed else f"FAILED: {title}: no test notices", flush=True)
    compile_into("build/csharp", "ArenaBot.exe", [NETCODE, BOT])
    print(f"{unnoticed} plants of {len(PLANTS)} were not noticed")
    return 1 if unnoticed else 0


sys.exit(main())
