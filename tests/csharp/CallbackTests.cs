// Callbacks, exceptions inside them, Dispose inside them, objects that are forgotten, and two threads.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using NetcodeH;

internal static class CallbackTests
{
    private sealed class Planned : Exception
    {
        internal Planned(string message) : base(message) { }
    }

    public static void each_callback_is_called()
    {
        var calls = new List<string>();
        ulong now = 5000000;
        using (var world = new World(1, config =>
        {
            config.ConnectionChanged = (server, index, connected) => calls.Add((connected ? "in " : "out ") + index + " " + server[index].ClientId);
            config.Admit = (server, id, tag, expires) =>
            {
                Runner.True(tag.Length == 16 && expires > 0 && server != null, "what admit gets");
                calls.Add("admit " + id);
                if (id == 1 && calls.Count(call => call == "admit 1") < 3)
                    return null; // no answer yet
                return id != 2;
            };
            config.Dropped = (reason, from, bytes) => calls.Add("drop " + reason + " " + from + " " + bytes);
            config.Log = (level, text) => calls.Add("log " + level);
            config.Stray = (server, from, data, count) => { calls.Add("stray " + from + " " + count + " " + data[0]); return false; };
        }))
        {
            NetcodeLibrary.SetLogLevel(LogLevel.Info);
            NetcodeClient client = world.Client(new ClientConfig { StateChanged = (self, before, after) => calls.Add("state " + before + " " + after) });
            client.Connect(world.Token());
            world.Until(() => client.IsConnected, "connected");
            world.Server.ProcessDatagram(Address.Parse("9.9.9.9:9"), Enumerable.Repeat((byte)0x15, 40).ToArray(), 0, 40);
            client.Disconnect();
            world.Until(() => world.Server.ConnectedClients == 0, "disconnected");
            NetcodeClient banned = world.Client(new ClientConfig { Log = (level, text) => calls.Add("client log " + level + " " + text) });
            banned.Connect(world.Token());
            world.Until(() => banned.HasFailed, "denied");
            NetcodeLibrary.SetLogLevel(LogLevel.Error);
            foreach (string want in new[]
            {
                "admit 1", "in 0 1", "out 0 1", "admit 2", "state Disconnected SendingConnectionRequest", "state SendingConnectionResponse Connected",
                "state Connected Disconnected", "stray 9.9.9.9:9 40 21", "drop UnknownAddress 9.9.9.9:9 40"
            })
                Runner.True(calls.Contains(want), "no call \"" + want + "\" among " + string.Join(", ", calls));
            Runner.Equal(3, calls.Count(call => call == "admit 1"), "asked again until there is an answer");
            ServerStats counts;
            world.Server.GetStats(out counts);
            Runner.Equal(2UL, counts.Dropped(DropReason.AdmissionPending), "without an answer");
            Runner.True(calls.Any(call => call.StartsWith("log Info")) && calls.Any(call => call.StartsWith("client log")), "log lines");
        }

        // A clock of your own decides what has expired.
        using (var world = new World(2, config => config.UnixTime = () => now))
        {
            NetcodeClient client = world.Connected(new ClientConfig()); // in 1970
            now = ulong.MaxValue / 2;
            world.Client().Connect(world.Token());
            for (int i = 0; i < 10; i++)
                world.Step();
            ServerStats stats;
            world.Server.GetStats(out stats);
            Runner.True(stats.Dropped(DropReason.TokenExpired) > 0 && client.IsConnected, "in the far future each token has expired");
        }
    }

    public static void the_log_and_the_asserts_of_the_process_have_handlers()
    {
        var lines = new List<string>();
        NetcodeLibrary.SetLogHandler(lines.Add);
        NetcodeLibrary.SetAssertHandler((condition, function, file, line) => lines.Add(condition));
        Runner.Throws<ClientCreateException>(() => new NetcodeClient("nonsense"), "no address");
        NetcodeLibrary.SetAssertHandler(null);
        Runner.True(lines.Any(line => line.Contains("nonsense") && !line.EndsWith("\n")), "a log line: " + string.Join("|", lines));
        bool isFirst = true;
        NetcodeLibrary.SetLogHandler(line =>
        {
            if (!isFirst)
                return;
            isFirst = false;
            throw new Planned("log");
        });
        Runner.Throws<Planned>(() =>
        {
            using (var simulator = new NetworkSimulator())
            using (var client = new NetcodeClient("10.0.0.1:1", new ClientConfig { Simulator = simulator }, 0))
            {
                NetcodeLibrary.SetLogLevel(LogLevel.Debug);
                client.Connect(new byte[2048]);
                client.Update(1);
            }
        }, "an exception of the log handler");
    }

    public static void exceptions_come_out_of_the_call_that_led_to_them()
    {
        foreach (string kind in new[] { "admit", "connection", "drop", "state", "unix time", "log", "stray" })
        {
            string where = kind;
            bool isArmed = true;
            Action<string> fire = name =>
            {
                if (isArmed && name == where)
                    throw new Planned(name);
            };
            using (var world = new World(1, config =>
            {
                config.Admit = (server, id, tag, expires) => { fire("admit"); return true; };
                config.ConnectionChanged = (server, index, connected) => fire("connection");
                config.Dropped = (reason, from, bytes) => fire("drop");
                config.Stray = (server, from, data, count) => { fire("stray"); return false; };
                config.Log = (level, text) => fire("log");
                config.UnixTime = () => { fire("unix time"); return 5; };
            }))
            {
                NetcodeClient client = world.Client(new ClientConfig { StateChanged = (self, before, after) => fire("state") });
                NetcodeLibrary.SetLogLevel(LogLevel.Debug);
                var error = Runner.Throws<Planned>(() =>
                {
                    client.Connect(world.Token());
                    for (int i = 0; i < 100; i++)
                    {
                        world.Server.ProcessDatagram(Address.Parse("9.9.9.9:9"), Enumerable.Repeat((byte)0x15, 40).ToArray(), 0, 40);
                        world.Step();
                    }
                }, kind);
                Runner.Equal(kind, error.Message, "the exception itself");
                Runner.True(error.StackTrace.Contains("exceptions_come_out"), "its stack goes back to where it was thrown");
                isArmed = false; // the objects are whole
                NetcodeLibrary.SetLogLevel(LogLevel.Error);
                client.Disconnect();
                client.Connect(world.Token());
                world.Until(() => client.IsConnected, "a client connects after an exception of " + kind);
            }
        }
    }

    public static void several_exceptions_come_together_and_each_call_has_its_own()
    {
        using (var world = new World(2, config => config.Dropped = (reason, from, bytes) => { throw new Planned("drop " + bytes); }))
        {
            Address from = Address.Parse("9.9.9.9:9");
            Runner.Equal("drop 3", Runner.Throws<Planned>(() => world.Server.ProcessDatagram(from, new byte[3], 0, 3), "one").Message, "one");
            using (SimulatorSocket socket = world.Simulator.CreateSocket(from))
            {
                for (int i = 1; i <= 3; i++)
                    socket.SendTo(Address.Parse("10.0.0.1:40000"), new byte[i], i);
                var all = Runner.Throws<AggregateException>(() => { world.Step(); world.Step(); }, "three");
                Runner.Equal("drop 1 drop 2 drop 3", string.Join(" ", all.InnerExceptions.Select(one => one.Message)), "all of them");
            }
        }

        // An exception of an inner call is thrown into the callback, which may catch it; the outer one's stays with the outer call.
        NetcodeServer inner = null;
        string caught = null;
        using (var simulator = new NetworkSimulator())
        using (inner = new NetcodeServer("10.0.0.1:1", new ServerConfig
        {
            PrivateKey = new byte[32],
            Simulator = simulator,
            Dropped = (reason, from, bytes) => { throw new Planned("inner"); }
        }, 0))
        using (var outer = new NetcodeServer("10.0.0.2:2", new ServerConfig
        {
            PrivateKey = new byte[32],
            Simulator = simulator,
            Dropped = (reason, from, bytes) =>
            {
                try
                {
                    inner.ProcessDatagram(from, new byte[1], 0, 1);
                }
                catch (Planned planned)
                {
                    caught = planned.Message;
                }
                throw new Planned("outer");
            }
        }, 0))
        {
            inner.Start(1);
            outer.Start(1);
            var error = Runner.Throws<Planned>(() => outer.ProcessDatagram(Address.Parse("9.9.9.9:9"), new byte[1], 0, 1), "outer");
            Runner.True(error.Message == "outer" && caught == "inner", "outer: " + error.Message + ", inner: " + caught);
        }

        // An exception that waits for its own call to return is not thrown by a call that a later callback makes.
        int calls = 0;
        NetcodeServer quiet = null;
        using (var simulator = new NetworkSimulator())
        using (quiet = new NetcodeServer("10.0.0.1:1", new ServerConfig { PrivateKey = new byte[32], Simulator = simulator }, 0))
        using (var outer = new NetcodeServer("10.0.0.2:2", new ServerConfig
        {
            PrivateKey = new byte[32],
            Simulator = simulator,
            Dropped = (reason, from, bytes) =>
            {
                if (calls++ == 0)
                    throw new Planned("first");
                quiet.Update(1);
                calls += 100;
            }
        }, 0))
        using (SimulatorSocket socket = simulator.CreateSocket(Address.Parse("9.9.9.9:9")))
        {
            quiet.Start(1);
            outer.Start(1);
            socket.SendTo(Address.Parse("10.0.0.2:2"), new byte[1], 1);
            socket.SendTo(Address.Parse("10.0.0.2:2"), new byte[1], 1);
            simulator.Update(1);
            Runner.Equal("first", Runner.Throws<Planned>(() => outer.Update(1), "the first").Message, "the first alone");
            Runner.Equal(102, calls, "the second callback's call returned");
        }
    }

    public static void an_object_may_be_disposed_in_its_callbacks()
    {
        using (var world = new World())
        {
            bool isThrown = false;
            NetcodeClient client = world.Client(new ClientConfig
            {
                StateChanged = (self, before, after) =>
                {
                    if (after != ClientState.Connected)
                        return;
                    self.Dispose();
                    Runner.Throws<ObjectDisposedException>(() => self.Send(new byte[1]), "a call after Dispose, inside");
                    isThrown = true;
                }
            });
            world.Clients.Remove(client);
            client.Connect(world.Token());
            for (int i = 0; i < 100 && !isThrown; i++)
            {
                world.Step();
                client.Update(world.Time);
            }
            Runner.True(isThrown, "it was disposed inside");
            Runner.Throws<ObjectDisposedException>(() => client.Update(), "a call after Dispose");
        }

        NetcodeServer server = null;
        using (var world = new World())
        using (server = new NetcodeServer("10.0.0.9:9", new ServerConfig
        {
            PrivateKey = new byte[32],
            Simulator = world.Simulator,
            Dropped = (reason, from, bytes) => { server.Stop(); server.Start(3); server.Dispose(); }
        }, 0))
        {
            server.Start(1);
            server.ProcessDatagram(Address.Parse("9.9.9.9:9"), new byte[1], 0, 1);
            Runner.Throws<ObjectDisposedException>(() => server.Stop(), "a server that was disposed inside");
        }
    }

    private sealed class Silent : NetcodeSocket
    {
        internal int Closed;
        protected internal override bool Receive(byte[] buffer, out int bytes, out Address from) { bytes = 0; from = default(Address); return false; }
        protected internal override bool Send(Address to, byte[] data, int bytes) { return true; }
        protected internal override void Close() { Closed++; }
    }

    public static void what_an_object_uses_lives_until_its_outermost_call_returns()
    {
        var socket = new Silent();
        int closedInside = -1;
        NetcodeServer server = null;
        server = new NetcodeServer("10.0.0.1:1", new ServerConfig
        {
            PrivateKey = new byte[32],
            Socket = socket,
            Dropped = (reason, from, bytes) =>
            {
                server.Dispose();
                closedInside = socket.Closed;
            }
        }, 0);
        server.Start(1);
        server.ProcessDatagram(Address.Parse("9.9.9.9:9"), new byte[1], 0, 1);
        Runner.Equal(0, closedInside, "closed inside the callback");
        Runner.Equal(1, socket.Closed, "closed afterwards");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Forget(List<WeakReference> forgotten)
    {
        var world = new World(2, config =>
        {
            config.ConnectionChanged = (server, index, connected) => { throw new Planned("on the finalizer's thread no code of the user runs"); };
        });
        NetcodeClient client = world.Client();
        var messages = new NetcodeMessages(new MessagesConfig { AcceptStream = (self, channel, bytes, tag) => new ArraySink(bytes) }, world.Time);
        client.Connect(world.Token());
        try
        {
            world.Until(() => client.IsConnected, "connected");
        }
        catch (Planned)
        {
        }
        messages.SendStream(0, new byte[1000], 1, 1);
        messages.SendTo(client, world.Time);
        SimulatorSocket socket = world.Simulator.CreateSocket(Address.Parse("7.7.7.7:7"));
        foreach (object one in new object[] { world.Server, client, messages, socket, world.Simulator })
            forgotten.Add(new WeakReference(one));
    }

    public static void forgotten_objects_are_collected_in_any_order()
    {
        var forgotten = new List<WeakReference>();
        for (int i = 0; i < 200; i++)
            Forget(forgotten);
        for (int i = 0; i < 50 && forgotten.Any(one => one.IsAlive); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        int alive = forgotten.Count(one => one.IsAlive);
        Runner.True(alive <= 10, alive + " of " + forgotten.Count + " are still there"); // Mono looks for references on stacks by guess
        Runner.Note((forgotten.Count - alive) + " of " + forgotten.Count + " collected");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void ForgetOn(World world, string host)
    {
        var config = new ClientConfig { Simulator = world.Simulator };
        for (int i = 0; i < 50; i++)
            new NetcodeClient(host + (1000 + i), config, world.Time).Connect(world.Token());
        for (int i = 0; i < 25; i++)
            world.Simulator.CreateSocket(Address.Parse(host + (2000 + i)));
        for (int i = 25; i < 50; i++)
            new NetcodeClient(host + (2000 + i), new ClientConfig { Socket = world.Simulator.CreateSocket(Address.Parse(host + (2000 + i))) }, world.Time);
    }

    // The finalizer's thread does not touch the simulator, which another thread uses: that one ends them, at its next call.
    public static void what_is_forgotten_on_a_simulator_in_use_is_ended_by_its_user()
    {
        using (var world = new World())
        {
            NetcodeClient client = world.Connected();
            for (int round = 0; round < 5; round++)
            {
                string host = "10.0.9." + round + ":"; // some reference may still lie on a stack of the last round
                ForgetOn(world, host);
                int free = 0;
                for (int i = 0; i < 20 && free < 98; i++)
                {
                    GC.Collect();
                    for (int k = 0; k < 200; k++)
                        world.Step();
                    GC.WaitForPendingFinalizers();
                    world.Step();
                    free = 0;
                    for (int k = 0; k < 100; k++)
                        try
                        {
                            world.Simulator.CreateSocket(Address.Parse(host + (k < 50 ? 1000 + k : 1950 + k))).Dispose();
                            free++;
                        }
                        catch (NetcodeException)
                        {
                        }
                }
                Runner.True(free >= 98, "only " + free + " of 100 addresses are free again");
            }
            Runner.True(client.IsConnected, "a client that is not forgotten stays");
        }
    }

    // A socket that the user keeps, on a simulator's: it writes down what is called.
    private sealed class Kept : NetcodeSocket
    {
        private readonly SimulatorSocket inner;
        private readonly List<string> calls;

        internal Kept(World world, string address, List<string> calls)
        {
            inner = world.Simulator.CreateSocket(Address.Parse(address));
            this.calls = calls;
        }

        private void Note(string call)
        {
            lock (calls)
                calls.Add(call);
        }

        protected internal override bool Receive(byte[] buffer, out int bytes, out Address from) { Note("Receive"); return inner.TryReceive(buffer, out bytes, out from); }
        protected internal override bool Send(Address to, byte[] data, int bytes) { Note("Send"); return inner.SendTo(to, data, bytes); }
        protected internal override Address LocalAddress { get { Note("LocalAddress"); return default(Address); } }
        protected internal override void Close() { Note("Close"); }
    }

    // On a thread of its own: when that has ended, no stack holds a reference to what it made.
    private static void OnOwnThread(Action action)
    {
        Exception thrown = null;
        var thread = new Thread(() =>
        {
            try
            {
                action();
            }
            catch (Exception exception)
            {
                thrown = exception;
            }
        });
        thread.Start();
        thread.Join();
        Runner.True(thrown == null, "on the other thread: " + thrown);
    }

    private static int Collect(List<WeakReference> forgotten, int least)
    {
        for (int i = 0; i < 20 && forgotten.Any(one => one.IsAlive); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        int collected = forgotten.Count(one => !one.IsAlive);
        Runner.True(collected >= least, "only " + collected + " of " + forgotten.Count + " are collected");
        return collected;
    }

    // The sockets are kept, so their weak handles are not empty when their owners are finalized.
    public static void the_finalizers_thread_calls_no_kept_socket_and_no_log_handler()
    {
        const int count = 20;
        var calls = new List<string>();
        var sockets = new List<Kept>();
        var forgotten = new List<WeakReference>();
        using (var world = new World(count))
        {
            OnOwnThread(() =>
            {
                var clients = new List<NetcodeClient>();
                for (int i = 0; i < count; i++)
                {
                    sockets.Add(new Kept(world, "10.0.2.1:" + (50000 + i), calls));
                    clients.Add(new NetcodeClient("10.0.2.1:" + (50000 + i), new ClientConfig { Socket = sockets[2 * i] }, world.Time));
                    clients[i].Connect(world.Token());
                    sockets.Add(new Kept(world, "10.0.3.1:" + (50000 + i), calls));
                    var server = new NetcodeServer("10.0.3.1:" + (50000 + i), new ServerConfig { PrivateKey = world.Key, Socket = sockets[2 * i + 1] }, world.Time);
                    server.Start(1);
                    forgotten.Add(new WeakReference(clients[i]));
                    forgotten.Add(new WeakReference(server));
                }
                world.Clients.AddRange(clients);
                world.Until(() => clients.All(client => client.IsConnected), "all connect");
                world.Clients.Clear();
                world.Clients.TrimExcess(); // the array, too, forgets them
            });
            NetcodeEvent e;
            while (world.Server.NextEvent(out e)) { }
            Runner.True(calls.Contains("Send") && calls.Contains("Receive"), "the sockets are used");
            calls.Clear();
            NetcodeLibrary.SetLogHandler(line => { lock (calls) calls.Add("log: " + line); });
            NetcodeLibrary.SetLogLevel(LogLevel.Info);
            int collected = Collect(forgotten, 2 * count - 10);
            NetcodeLibrary.SetLogLevel(LogLevel.Error);
            NetcodeLibrary.SetLogHandler(line => { });
            Runner.Equal("", string.Join(", ", calls.Distinct()), "calls on the finalizer's thread");
            Runner.Note(collected + " of " + forgotten.Count + " collected");

            // Nothing was sent, so the other side waits for its timeout.
            int timedOut = 0;
            world.Step();
            Runner.Equal(count, world.Server.ConnectedClients, "connected clients after the collection");
            world.Until(() => world.Server.ConnectedClients == 0, "their timeout");
            while (world.Server.NextEvent(out e))
                timedOut += e.Type == NetcodeEventType.Disconnected && e.Reason == DisconnectReason.TimedOut ? 1 : 0;
            Runner.Equal(count, timedOut, "clients that timed out");
        }
        GC.KeepAlive(sockets);
    }

    public static void a_client_that_is_forgotten_on_udp_is_disconnected_when_it_is_collected()
    {
        const int count = 20;
        byte[] key = NetcodeLibrary.GenerateKey();
        var forgotten = new List<WeakReference>();
        using (var server = new NetcodeServer("127.0.0.1:0", new ServerConfig { PrivateKey = key, ProtocolId = 1 }))
        {
            server.Start(count);
            OnOwnThread(() =>
            {
                var clients = new List<NetcodeClient>();
                for (int i = 0; i < count; i++)
                {
                    clients.Add(new NetcodeClient());
                    clients[i].Connect(ConnectToken.Generate(new[] { "127.0.0.1:" + server.Port }, (ulong)i + 1, 1, key, timeoutSeconds: 60));
                    forgotten.Add(new WeakReference(clients[i]));
                }
                Runner.Until(() => clients.All(client => client.IsConnected), () =>
                {
                    server.Update();
                    foreach (NetcodeClient client in clients)
                        client.Update();
                    NetcodeLibrary.Sleep(0.005);
                }, "all connect");
            });
            int collected = Collect(forgotten, count - 5), left = 0;
            NetcodeEvent e;
            Runner.Until(() => left >= collected, () =>
            {
                server.Wait(0.005);
                server.Update();
                while (server.NextEvent(out e))
                    left += e.Type == NetcodeEventType.Disconnected && e.Reason == DisconnectReason.ClientDisconnect ? 1 : 0;
            }, "a disconnect of each that was collected");
            Runner.Note(left + " of " + count + " collected");
        }
    }

    private static string Play(int seed)
    {
        using (var world = new World())
        {
            world.Simulator.Seed = (ulong)seed;
            world.Simulator.PacketLossPercent = 5;
            world.Simulator.Reset();
            NetcodeClient client = world.Connected();
            int received = 0;
            NetcodeEvent e;
            for (int i = 0; i < 2000; i++)
            {
                client.Send(new byte[100]);
                world.Step();
                while (world.Server.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Payload)
                        received++;
                while (client.NextEvent(out e)) { }
            }
            return received > 1800 && received < 2000 && client.IsConnected ? null : "received " + received;
        }
    }

    public static void two_threads_have_a_server_and_a_client_each()
    {
        var errors = new string[2];
        var threads = Enumerable.Range(0, 2).Select(i => new Thread(() =>
        {
            try
            {
                errors[i] = Play(i);
            }
            catch (Exception exception)
            {
                errors[i] = exception.ToString();
            }
        })).ToArray();
        foreach (Thread thread in threads)
            thread.Start();
        foreach (Thread thread in threads)
            thread.Join();
        Runner.Equal(null, errors[0] ?? errors[1], "a thread");
    }

    public static void a_second_thread_inside_an_object_is_refused()
    {
        Exception other = null;
        using (var simulator = new NetworkSimulator())
        using (var server = new NetcodeServer("10.0.0.1:1", new ServerConfig
        {
            PrivateKey = new byte[32],
            Simulator = simulator,
            Dropped = (reason, from, bytes) => { }
        }, 0))
        {
            NetcodeServer blocked = null;
            using (blocked = new NetcodeServer("10.0.0.2:2", new ServerConfig
            {
                PrivateKey = new byte[32],
                Simulator = simulator,
                Dropped = (reason, from, bytes) =>
                {
                    var thread = new Thread(() =>
                    {
                        try
                        {
                            blocked.Update(1);
                        }
                        catch (Exception exception)
                        {
                            other = exception;
                        }
                    });
                    thread.Start();
                    thread.Join();
                }
            }, 0))
            {
                blocked.Start(1);
                blocked.ProcessDatagram(Address.Parse("9.9.9.9:9"), new byte[1], 0, 1);
                Runner.True(other is InvalidOperationException && !(other is ObjectDisposedException), "the other thread got " + other);
                blocked.Update(2);
                var late = new Thread(() => blocked.Update(3)); // one after the other is fine
                late.Start();
                late.Join();
            }
        }
    }
}
