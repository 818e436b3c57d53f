// The runner of the C# tests: each test is a static method that throws when something is wrong. A line for each, and a sum.
//
//     tests.exe [WORD...]      those whose names hold one of these words; all without one
//
// NETCODE_ROOT is the repository's folder, from which the programs of its build/ are started.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text;
using NetcodeH;

internal sealed class TestFailure : Exception
{
    public TestFailure(string message) : base(message) { }
}

internal static class Runner
{
    // Of a wait for something that must happen: a machine that is shared may stand still for seconds. As tests/tools/waiting.py has it.
    internal static readonly double LimitSeconds = double.Parse(Environment.GetEnvironmentVariable("TEST_LIMIT_SECONDS") ?? "60",
        System.Globalization.CultureInfo.InvariantCulture);

    private static string note;

    // Calls `tick` until it is done.
    internal static void Until(Func<bool> isDone, Action tick, string what)
    {
        for (double end = NetcodeLibrary.Time + LimitSeconds; !isDone(); tick())
            if (NetcodeLibrary.Time > end)
                throw new TestFailure("not within " + LimitSeconds + " s: " + what);
    }

    // Added to the line of the running test: what it measured.
    internal static void Note(string text) { note = note == null ? text : note + "; " + text; }

    internal static void True(bool isTrue, string what)
    {
        if (!isTrue)
            throw new TestFailure(what);
    }

    internal static void Equal<T>(T expected, T actual, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual))
            throw new TestFailure(what + ": " + actual + ", not " + expected);
    }

    internal static E Throws<E>(Action action, string what) where E : Exception
    {
        try
        {
            action();
        }
        catch (Exception exception)
        {
            if (exception is E && !(exception is TestFailure))
                return (E)exception;
            throw new TestFailure(what + ": " + exception.GetType().Name + ", not " + typeof(E).Name + ": " + exception.Message);
        }
        throw new TestFailure(what + ": nothing was thrown, not " + typeof(E).Name);
    }

    // With a library whose structs are others: 0 if it is refused.
    private static int LoadOther()
    {
        try
        {
            NetcodeLibrary.Initialize();
        }
        catch (NetcodeException exception)
        {
            Console.WriteLine("ok: refused: " + exception.Message);
            return 0;
        }
        Console.WriteLine("FAILED: a library of another layout was loaded");
        return 1;
    }

    private static string First(string text, int most) { return text.Length > most ? text.Substring(0, most) + " ..." : text; }

    private static int Main(string[] words)
    {
        if (words.Length == 1 && words[0] == "--load-other")
            return LoadOther();
        Type[] groups = typeof(Runner).Assembly.GetTypes().Where(type => type.Name.EndsWith("Tests")).OrderBy(type => type.Name).ToArray();
        int passed = 0, failed = 0;
        var unknown = new HashSet<string>(words);
        foreach (Type group in groups)
            foreach (var method in group.GetMethods(System.Reflection.BindingFlags.Static | System.Reflection.BindingFlags.Public))
            {
                string name = group.Name.Replace("Tests", "").ToLowerInvariant() + ": " + method.Name.Replace('_', ' ');
                unknown.RemoveWhere(word => name.Contains(word));
                if (words.Length > 0 && !Array.Exists(words, word => name.Contains(word)))
                    continue;
                note = null;
                var watch = Stopwatch.StartNew();
                string error = null;
                NetcodeLibrary.SetLogHandler(line => { }); // what is refused on purpose
                try
                {
                    method.Invoke(null, null);
                }
                catch (System.Reflection.TargetInvocationException exception)
                {
                    error = exception.InnerException is TestFailure ? exception.InnerException.Message : First(exception.InnerException.ToString(), 1200);
                }
                NetcodeLibrary.SetLogHandler(null);
                NetcodeLibrary.SetLogLevel(LogLevel.Error);
                if (error == null)
                    passed++;
                else
                    failed++;
                Console.WriteLine((error == null ? "ok: " : "FAILED: ") + name + (note != null ? " (" + note + ")" : "") +
                    (watch.ElapsedMilliseconds >= 1000 ? ", " + (watch.ElapsedMilliseconds / 1000.0).ToString("0.0") + " s" : "") +
                    (error != null ? "\n    " + error : ""));
            }
        Console.WriteLine("C#: " + passed + " passed, " + failed + " failed");
        if (unknown.Count > 0)
            Console.WriteLine("no test's name holds: " + string.Join(", ", unknown));
        return unknown.Count > 0 ? 2 : failed == 0 && passed > 0 ? 0 : 1;
    }
}

// A server and clients on a simulator, in virtual time.
internal sealed class World : IDisposable
{
    internal const ulong ProtocolId = 0x1122334455667788;
    internal readonly byte[] Key = NetcodeLibrary.GenerateKey();
    internal readonly NetworkSimulator Simulator = new NetworkSimulator();
    internal readonly NetcodeServer Server;
    internal readonly List<NetcodeClient> Clients = new List<NetcodeClient>();
    internal double Time = 100;
    private ulong lastId;

    internal World(int slots = 4, Action<ServerConfig> configure = null)
    {
        var config = new ServerConfig { ProtocolId = ProtocolId, PrivateKey = Key, Simulator = Simulator };
        if (configure != null)
            configure(config);
        Server = new NetcodeServer("10.0.0.1:40000", config, Time);
        Server.Start(slots);
    }

    internal ConnectToken Token(int expireSeconds = 60, int timeoutSeconds = 5, byte[] userData = null, ulong id = 0)
    {
        return ConnectToken.Generate(new[] { "10.0.0.1:40000" }, id != 0 ? id : ++lastId, ProtocolId, Key, expireSeconds, timeoutSeconds, userData);
    }

    internal NetcodeClient Client(ClientConfig config = null)
    {
        config = config ?? new ClientConfig();
        config.Simulator = Simulator;
        var client = new NetcodeClient("10.0.1.1:" + (50000 + Clients.Count), config, Time);
        Clients.Add(client);
        return client;
    }

    internal NetcodeClient Connected(ClientConfig config = null)
    {
        NetcodeClient client = Client(config);
        client.Connect(Token());
        Until(() => client.IsConnected, "the client connects");
        return client;
    }

    internal void Step(double seconds = 1.0 / 60)
    {
        Time += seconds;
        Simulator.Update(Time);
        Server.Update(Time);
        foreach (NetcodeClient client in Clients)
            client.Update(Time);
    }

    internal void Until(Func<bool> isDone, string what, double seconds = 10)
    {
        for (double end = Time + seconds; !isDone(); Step())
            if (Time > end)
                throw new TestFailure("not within " + seconds + " s: " + what);
    }

    public void Dispose()
    {
        foreach (NetcodeClient client in Clients)
            client.Dispose();
        Server.Dispose();
        Simulator.Dispose();
    }
}

// One of the repository's programs, whose output is kept.
internal sealed class Program : IDisposable
{
    private readonly Process process;
    private readonly StringBuilder output = new StringBuilder();

    internal static string Root { get { return Environment.GetEnvironmentVariable("NETCODE_ROOT") ?? "."; } }

    internal Program(string path, string arguments)
    {
        process = new Process
        {
            StartInfo = new ProcessStartInfo(Path.Combine(Root, path), arguments)
            {
                UseShellExecute = false,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
                WorkingDirectory = Root
            }
        };
        process.OutputDataReceived += (sender, line) => Add(line.Data);
        process.ErrorDataReceived += (sender, line) => Add(line.Data);
        process.Start();
        process.BeginOutputReadLine();
        process.BeginErrorReadLine();
    }

    private void Add(string line)
    {
        if (line != null)
            lock (output)
                output.AppendLine(line);
    }

    internal string Output
    {
        get
        {
            lock (output)
                return output.ToString();
        }
    }

    internal bool HasEnded { get { return process.HasExited; } }

    // Asks it to end.
    internal void Terminate()
    {
        using (Process kill = Process.Start("sh", "-c \"kill -TERM " + process.Id + "\""))
            kill.WaitForExit();
    }

    internal int Wait()
    {
        if (!process.WaitForExit((int)(Runner.LimitSeconds * 1000)))
            throw new TestFailure("a program did not end within " + Runner.LimitSeconds + " s: " + Output);
        process.WaitForExit(); // its output too
        return process.ExitCode;
    }

    public void Dispose()
    {
        if (!process.HasExited)
            process.Kill();
        process.WaitForExit();
        process.Dispose();
    }
}
