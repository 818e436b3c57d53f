// Addresses, tokens, client and server on a simulator in virtual time: payloads, events, statistics, reports, roaming, loopback.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using NetcodeH;

internal static unsafe class ConnectionTests
{
    public static void addresses_are_read_written_and_compared_as_in_C()
    {
        string[] texts = { "1.2.3.4:5", "1.2.3.4", "[::1]:5", "::1", "[fe80::1]:40000", "255.255.255.255:65535", "[2001:db8::ff00:42:8329]:1" };
        var addresses = texts.Select(Address.Parse).Concat(new[] { default(Address) }).ToArray();
        for (int i = 0; i < texts.Length; i++)
            Runner.Equal(texts[i], addresses[i].ToString(), "text");
        Runner.Equal("NONE", default(Address).ToString(), "no address");
        foreach (Address a in addresses)
            foreach (Address b in addresses)
            {
                Address left = a, right = b;
                if (a.Type != AddressType.None || b.Type != AddressType.None)
                    Runner.Equal(Native.netcode_address_equal(&left, &right) != 0, a == b, a + " = " + b);
                Runner.True(a != b || a.GetHashCode() == b.GetHashCode(), "equal addresses have equal hashes");
            }
        Runner.Equal(Address.Parse("1.2.3.4:5"), Address.Parse("[::ffff:1.2.3.4]:5"), "IPv4 in IPv6");
        Runner.Equal(Address.Parse("[::1]:7"), Address.FromEndPoint(new IPEndPoint(IPAddress.IPv6Loopback, 7)), "from an end point");
        Runner.Equal(new IPEndPoint(IPAddress.Parse("1.2.3.4"), 5), addresses[0].ToEndPoint(), "to an end point");
        Address parsed;
        Runner.True(!Address.TryParse("game.example.org:1", out parsed) && !Address.TryParse(null, out parsed), "no address");
        parsed.Port = 65535;
        Runner.Equal(65535, parsed.Port, "port");
    }

    public static void tokens_are_made_read_and_carried_as_text()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        string[] servers = { "1.2.3.4:40000", "[::1]:40001" };
        ConnectToken token = ConnectToken.Generate(servers, 7, 99, key, 45, 12, new byte[] { 1, 2, 3 });
        Runner.Equal("NETCODE 1.02", token.Version, "version");
        Runner.Equal(99UL, token.ProtocolId, "protocol id");
        Runner.Equal(45UL, token.ExpireTimestamp - token.CreateTimestamp, "lifetime");
        Runner.Equal(12, token.TimeoutSeconds, "timeout");
        Runner.Equal("1.2.3.4:40000 [::1]:40001", string.Join(" ", token.ServerAddresses), "addresses");
        Runner.True(ConnectToken.FromBase64(token.ToBase64()).ToBytes().SequenceEqual(token.ToBytes()), "base64");
        Runner.Equal(ulong.MaxValue, ConnectToken.Generate(servers, 7, 99, key, -1).ExpireTimestamp, "never expires");
        Runner.Equal(32, ConnectToken.Generate(Enumerable.Repeat("1.2.3.4:5", 32).ToArray(), 7, 99, key).ServerAddresses.Count, "32 servers");
    }

    public static void payloads_pass_both_ways_and_events_report()
    {
        using (var world = new World())
        {
            NetcodeClient client = world.Client();
            client.Connect(world.Token(userData: new byte[] { 5, 6, 7 }));
            Runner.True(client.IsConnecting, "it is connecting");
            world.Until(() => client.IsConnected, "the client connects");
            NetcodeEvent e;
            Runner.True(client.NextEvent(out e) && e.Type == NetcodeEventType.Connected, "the client's event");
            Runner.True(world.Server.NextEvent(out e) && e.Type == NetcodeEventType.Connected && e.ClientId == 1, "the server's event");
            ulong session = e.Session;
            ServerSlot slot = world.Server[e.ClientIndex];
            Runner.True(ReferenceEquals(slot, world.Server[e.ClientIndex]), "a slot has one view");
            Runner.True(slot.IsConnected && slot.ClientId == 1 && slot.Session == session && !slot.IsLoopback, "the slot");
            Runner.Equal(Address.Parse("10.0.1.1:50000"), slot.Address, "the client's address");
            Runner.Equal("5 6 7 0", string.Join(" ", slot.GetUserData().Take(4)), "user data");
            Runner.Equal(Address.Parse("10.0.0.1:40000"), client.ServerAddress, "the server's address");
            Runner.True(client.Index == 0 && client.MaxClients == 4 && world.Server.MaxClients == 4, "index and slots");
            Runner.True(client.Port == 50000 && world.Server.Port == 40000 && world.Server.ConnectedClients == 1, "ports and count");

            var data = Enumerable.Range(0, 1200).Select(i => (byte)i).ToArray();
            ulong next = client.NextPacketSequence;
            client.Send(data);
            client.Send(data, 100, 1);
            Runner.Equal(next + 2, client.NextPacketSequence, "sequence");
            var sizes = new List<int>();
            for (int i = 0; i < 5; i++)
            {
                world.Step();
                while (world.Server.NextEvent(out e))
                {
                    Runner.True(e.Type == NetcodeEventType.Payload && e.Session == session, "a payload of the session");
                    Runner.Equal(data[e.Payload.Count == 1 ? 100 : 0], e.Payload.Array[e.Payload.Offset], "its first byte");
                    sizes.Add(e.Payload.Count);
                }
            }
            Runner.Equal("1200 1", string.Join(" ", sizes), "payloads to the server");

            slot.Send(new byte[] { 1 });
            world.Server.SendToSession(slot.Index, session, new byte[] { 2 }, 0, 1);
            world.Server.SendToSession(slot.Index, session + 1, new byte[] { 9 }, 0, 1);
            world.Server.Broadcast(new byte[] { 3 }, 0, 1);
            world.Server.Broadcast(new byte[] { 9 }, 0, 1, slot.Index);
            var received = new List<byte>();
            for (int i = 0; i < 5; i++)
            {
                world.Step();
                while (client.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Payload)
                        received.Add(e.Payload.Array[0]);
            }
            Runner.Equal("1 2 3", string.Join(" ", received), "payloads to the client");
            client.Send(data, 0, 8);
            world.Step();
            world.Step();
            Runner.True(world.Server.NextEvent(out e) && e.Type == NetcodeEventType.Payload && e.Payload.Count == 8, "read");

            slot.Disconnect();
            world.Until(() => client.State == ClientState.Disconnected, "the client hears of it");
            Runner.Equal(DisconnectReason.ServerDisconnect, slot.DisconnectReason, "reason");
            while (world.Server.NextEvent(out e) && e.Type != NetcodeEventType.Disconnected)
                ;
            Runner.True(e.Type == NetcodeEventType.Disconnected && e.Reason == DisconnectReason.ServerDisconnect && e.Session == session, "the event");
            while (client.NextEvent(out e) && e.Type != NetcodeEventType.Disconnected)
                ;
            Runner.True(e.Type == NetcodeEventType.Disconnected && e.State == ClientState.Disconnected, "the client's event");
            Runner.True(slot.GetUserData() == null && slot.Session == 0 && slot.Address == default(Address), "an empty slot");
        }
    }

    public static void statistics_count()
    {
        using (var world = new World())
        {
            NetcodeClient client = world.Connected();
            for (int i = 0; i < 300; i++)
            {
                client.Send(new byte[10]);
                world.Step();
                NetcodeEvent e;
                while (world.Server.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Payload)
                        world.Server.Send(e.ClientIndex, e.Payload.Array, e.Payload.Offset, e.Payload.Count);
                while (client.NextEvent(out e)) { }
            }
            world.Server.ProcessDatagram(Address.Parse("9.9.9.9:9"), new byte[] { 1, 2, 3 }, 0, 3);
            ClientStats mine;
            ServerStats all;
            ServerClientStats one;
            client.GetStats(out mine);
            world.Server.GetStats(out all);
            world.Server[0].GetStats(out one);
            Runner.Equal(300UL, mine.PacketsSent(PacketType.Payload), "payloads sent");
            Runner.True(mine.PacketsReceived(PacketType.Payload) >= 297 && mine.Connects == 1 && mine.BytesSent > 300 * 10, "the client's counts");
            Runner.True(mine.RoundTripSeconds > 0 && mine.RoundTripSeconds < 0.2, "round trip " + mine.RoundTripSeconds);
            Runner.True(all.Clients == 1 && all.MaxClients == 4 && all.Connects == 1 && all.Dropped(DropReason.TooSmall) == 1, "the server's counts");
            Runner.True(all.PacketsReceived(PacketType.Request) >= 1 && all.Disconnects(DisconnectReason.TimedOut) == 0, "the server's packets");
            Runner.True(one.ClientId == 1 && one.IsConfirmed && !one.IsLoopback && one.PacketsReceived >= 300 && one.SecondsConnected > 4, "the slot's");
        }
    }

    public static void a_report_says_why_not()
    {
        using (var world = new World(1))
        {
            world.Connected();
            NetcodeClient second = world.Client();
            second.Connect(world.Token(timeoutSeconds: 2));
            world.Until(() => second.HasFailed, "the second client is denied");
            ClientReport report = second.GetReport();
            Runner.Equal(ClientState.ConnectionDenied, report.State, "state");
            Runner.True(report.Servers.Count == 1 && report.Servers[0].WasDenied && report.Servers[0].RequestsSent > 0, "the server in the report");
            Runner.Equal(Address.Parse("10.0.0.1:40000"), report.Servers[0].Address, "its address");
            Runner.True(report.Text.Length > 10 && report.Text.IndexOf("full", StringComparison.Ordinal) >= 0, "its sentence: " + report.Text);
            Runner.True(report.TokenSecondsLeft > 50 && report.TokenSecondsLeft <= 60, "seconds left " + report.TokenSecondsLeft);
            var failure = Runner.Throws<ConnectionException>(() => second.ThrowIfFailed(), "ThrowIfFailed");
            Runner.True(failure.Message == report.Text && failure.State == ClientState.ConnectionDenied, "the exception has the sentence");
            Runner.Note("\"" + report.Text + "\"");

            NetcodeClient late = world.Client();
            late.Connect(world.Token(expireSeconds: 0));
            world.Until(() => late.HasFailed, "an expired token fails");
            Runner.Equal("CONNECT_TOKEN_EXPIRED", late.State.Name(), "name");
            NetcodeClient junk = world.Client();
            junk.Connect(new byte[2048]);
            world.Step();
            Runner.Equal(ClientState.InvalidConnectToken, junk.State, "a token of zeros");
        }
        Runner.Equal("TOKEN_EXPIRED", DropReason.TokenExpired.Name(), "a drop reason's name");
        Runner.True(DropReason.ServerFull.Text().Contains("no free slot"), "its sentence");
        Runner.True(MessagesDropReason.Header.Text().Contains("header") && MessagesDropReason.Header.Name() == "HEADER", "of messages");
    }

    public static void a_client_that_moves_stays_connected()
    {
        using (var world = new World(4, config => config.Roaming = true))
        {
            NetcodeClient client = world.Connected();
            Address before = world.Server[0].Address, after = Address.Parse("10.0.7.7:1234");
            NetcodeEvent e;
            while (world.Server.NextEvent(out e)) { }
            Runner.True(world.Simulator.Move(before, after), "the simulator moves the socket");
            bool hasMoved = false;
            world.Until(() =>
            {
                client.Send(new byte[] { 1 });
                while (world.Server.NextEvent(out e))
                    hasMoved |= e.Type == NetcodeEventType.Moved;
                return hasMoved;
            }, "the server's Moved event");
            Runner.Equal(after, world.Server[0].Address, "the client's new address");
            Runner.True(client.IsConnected && world.Server.ConnectedClients == 1, "still connected");
            ServerStats stats;
            world.Server.GetStats(out stats);
            Runner.Equal(1UL, stats.Moves, "moves");

            // A network that is gone: only a rebind helps, which the client does by itself or when it is asked to.
            Address third = Address.Parse("10.0.8.8:4321");
            Runner.True(world.Simulator.Move(after, third, true), "the network is gone");
            Runner.True(client.Rebind(), "Rebind");
            world.Until(() => { client.Send(new byte[] { 1 }); return world.Server[0].Address == third; }, "the third address");
            ClientStats mine;
            client.GetStats(out mine);
            Runner.True(mine.Rebinds == 1 && client.IsConnected, "one rebind");
            Runner.True(!world.Simulator.Move(after, third), "there is nothing to move any more");
        }
    }

    public static void the_simulator_loses_what_it_is_set_to_and_repeats_it_from_a_seed()
    {
        Func<ulong, string> run = seed =>
        {
            using (var simulator = new NetworkSimulator { Seed = seed, PacketLossPercent = 30, LatencyMilliseconds = 50, JitterMilliseconds = 20 })
            {
                simulator.Reset();
                Address a = Address.Parse("10.0.0.1:1"), b = Address.Parse("10.0.0.2:2"), from;
                string got = "";
                using (SimulatorSocket left = simulator.CreateSocket(a), right = simulator.CreateSocket(b))
                {
                    var buffer = new byte[100];
                    int bytes;
                    for (byte i = 0; i < 100; i++)
                    {
                        Runner.True(left.SendTo(b, new[] { i }, 1), "sent");
                        simulator.Update(i * 0.01);
                        while (right.TryReceive(buffer, out bytes, out from))
                        {
                            Runner.True(from == a && bytes == 1, "from the left one");
                            got += buffer[0] + " ";
                        }
                    }
                }
                return got;
            }
        };
        string first = run(7);
        int count = first.Split(' ').Length - 1;
        Runner.Equal(first, run(7), "the same seed");
        Runner.True(first != run(8), "another seed");
        Runner.True(count > 45 && count < 85, count + " of 100 arrived");
        Runner.Note(count + " of 100 arrived at 30 % loss");
    }

    public static void a_client_of_the_same_process_needs_no_packets()
    {
        NetcodeClient client = null;
        NetcodeServer server = null;
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var simulator = new NetworkSimulator())
        using (server = new NetcodeServer("10.0.0.1:1", new ServerConfig
        {
            PrivateKey = key,
            Simulator = simulator,
            LoopbackSent = (index, data, count, sequence) => client.ProcessLoopbackPacket(data, 0, count, sequence)
        }, 0))
        using (client = new NetcodeClient("10.0.0.2:2", new ClientConfig
        {
            Simulator = simulator,
            LoopbackSent = (index, data, count, sequence) => server.ProcessLoopbackPacket(index, data, 0, count, sequence)
        }, 0))
        {
            server.Start(2);
            client.ConnectLoopback(1, 2);
            server.ConnectLoopbackClient(1, 42, new byte[256]);
            Runner.True(client.IsLoopback && client.Index == 1 && server[1].IsLoopback && server[1].ClientId == 42, "connected");
            client.Send(new byte[] { 11 });
            server.Send(1, new byte[] { 22 });
            NetcodeEvent e;
            Runner.True(server.NextEvent(out e) && server.NextEvent(out e) && e.Payload.Array[0] == 11, "to the server");
            Runner.True(client.NextEvent(out e) && client.NextEvent(out e) && e.Payload.Array[0] == 22, "to the client");
            client.DisconnectLoopback();
            server.DisconnectLoopbackClient(1);
            Runner.True(!server[1].IsConnected && client.State == ClientState.Disconnected, "disconnected");
        }
    }

    // Two objects that exchange datagrams through queues, with sockets written in C#.
    private sealed class Wire : NetcodeSocket
    {
        private readonly Queue<KeyValuePair<Address, byte[]>> waiting = new Queue<KeyValuePair<Address, byte[]>>();
        internal readonly Address Mine;
        internal Wire Other;
        internal int Closed, Rebound, Waited;

        internal Wire(string address) { Mine = Address.Parse(address); }

        protected internal override bool Receive(byte[] buffer, out int bytes, out Address from)
        {
            bytes = 0;
            from = default(Address);
            if (waiting.Count == 0)
                return false;
            KeyValuePair<Address, byte[]> datagram = waiting.Dequeue();
            from = datagram.Key;
            bytes = datagram.Value.Length;
            Array.Copy(datagram.Value, buffer, Math.Min(bytes, buffer.Length));
            return true;
        }

        protected internal override bool Send(Address to, byte[] data, int bytes)
        {
            if (to != Other.Mine)
                return false;
            Other.waiting.Enqueue(new KeyValuePair<Address, byte[]>(Mine, data.Take(bytes).ToArray()));
            return true;
        }

        internal void Inject(Address from, byte[] datagram) { waiting.Enqueue(new KeyValuePair<Address, byte[]>(from, datagram)); }

        protected internal override bool CanWait { get { return true; } }
        protected internal override void Wait(double seconds) { Waited++; }
        protected internal override bool Rebind() { Rebound++; return true; }
        protected internal override Address LocalAddress { get { return Mine; } }
        protected internal override void Close() { Closed++; }
    }

    public static void a_socket_of_your_own_is_the_network()
    {
        var wires = new[] { new Wire("10.0.0.1:40000"), new Wire("10.0.0.2:50000") };
        wires[0].Other = wires[1];
        wires[1].Other = wires[0];
        byte[] key = NetcodeLibrary.GenerateKey();
        var server = new NetcodeServer("10.0.0.1:40000", new ServerConfig { PrivateKey = key, ProtocolId = 1, Socket = wires[0] }, 0);
        var client = new NetcodeClient("10.0.0.2:50000", new ClientConfig { Socket = wires[1] }, 0);
        server.Start(1);
        client.Connect(ConnectToken.Generate(new[] { "10.0.0.1:40000" }, 1, 1, key));
        for (double time = 0; time < 1; time += 0.02)
        {
            server.Update(time);
            client.Update(time);
        }
        Runner.True(client.IsConnected && client.Port == 50000, "connected");
        wires[0].Inject(Address.Parse("9.9.9.9:9"), new byte[3000]);
        server.Update(2);
        ServerStats stats;
        server.GetStats(out stats);
        Runner.Equal(1UL, stats.Dropped(DropReason.OversizedDatagram), "a datagram that is larger than the buffer");
        client.Wait(0.001);
        Runner.True(client.Rebind() && wires[1].Rebound == 1 && wires[1].Waited == 1, "rebind and wait");
        Runner.Throws<ArgumentException>(() => new NetcodeClient("10.0.0.2:50000", new ClientConfig { Socket = wires[1] }), "a socket has one owner");
        client.Dispose();
        server.Dispose();
        Runner.True(wires[0].Closed == 1 && wires[1].Closed == 1, "closed once");
    }

    public static void a_simulators_socket_can_be_handed_over()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var simulator = new NetworkSimulator())
        {
            SimulatorSocket socket = simulator.CreateSocket(Address.Parse("10.0.0.1:40000"));
            Runner.Throws<NetcodeException>(() => simulator.CreateSocket(Address.Parse("10.0.0.1:40000")), "a second socket at an address");
            Runner.Throws<ServerCreateException>(() => new NetcodeServer("nonsense", new ServerConfig { PrivateKey = key, Socket = socket }, 0), "no address");
            var server = new NetcodeServer("10.0.0.1:40000", new ServerConfig { PrivateKey = key, Socket = socket }, 0);
            Runner.Throws<InvalidOperationException>(() => socket.SendTo(default(Address), new byte[1], 1), "it has an owner");
            server.Dispose();
            Runner.Throws<ObjectDisposedException>(() => socket.SendTo(default(Address), new byte[1], 1), "its owner has closed it");
            simulator.CreateSocket(Address.Parse("10.0.0.1:40000")).Dispose();
        }
    }

    public static void keys_are_replaced_and_memory_is_known()
    {
        using (var world = new World())
        {
            byte[] fresh = NetcodeLibrary.GenerateKey();
            NetcodeClient old = world.Connected(), other = world.Client();
            world.Server.SetPrivateKeys(fresh, world.Key);
            other.Connect(ConnectToken.Generate(new[] { "10.0.0.1:40000" }, 77, World.ProtocolId, fresh));
            world.Until(() => other.IsConnected, "a token of the new key");
            Runner.True(old.IsConnected, "the old client stays");
            world.Server.SetPrivateKeys(fresh);
            NetcodeClient late = world.Client();
            late.Connect(world.Token(timeoutSeconds: 1));
            world.Until(() => late.HasFailed, "a token of the old key fails");
        }
        Runner.True(NetcodeClient.MemoryBytes() > 6000 && NetcodeServer.MemoryBytes(new ServerConfig(), 16) > 100000, "bytes of objects");
        Runner.True(NetcodeMessages.MemoryBytes() > 1000000 && NetcodeMessages.MemoryBytes(new MessagesConfig { Channels = 33 }) == 0, "of messages");
    }

    public static void one_client_id_takes_over_its_slot()
    {
        using (var world = new World(2, config => config.ReplaceExistingClients = true))
        {
            NetcodeClient first = world.Client(), second = world.Client();
            first.Connect(world.Token(id: 5));
            world.Until(() => first.IsConnected, "the first");
            second.Connect(world.Token(expireSeconds: 90, id: 5));
            world.Until(() => second.IsConnected, "the second");
            NetcodeEvent e;
            bool replaced = false;
            while (world.Server.NextEvent(out e))
                replaced |= e.Type == NetcodeEventType.Disconnected && e.Reason == DisconnectReason.Replaced;
            Runner.True(replaced && world.Server.ConnectedClients == 1, "replaced");
        }
    }
}
