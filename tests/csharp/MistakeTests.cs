// Wrong arguments throw before C sees them, and nothing can be used after Dispose.

using System;
using System.IO;
using System.Linq;
using System.Reflection;
using NetcodeH;

internal static class MistakeTests
{
    public static void wrong_arguments_of_the_library_and_of_tokens()
    {
        byte[] key = new byte[32];
        string[] one = { "1.2.3.4:5" };
        Runner.Throws<ArgumentNullException>(() => NetcodeLibrary.RandomBytes(null, 0, 0), "no array");
        Runner.Throws<ArgumentOutOfRangeException>(() => NetcodeLibrary.RandomBytes(new byte[4], 3, 2), "a part beyond the end");
        Runner.Throws<ArgumentOutOfRangeException>(() => NetcodeLibrary.RandomBytes(new byte[4], -1, 2), "a part before the start");
        Runner.Throws<ArgumentOutOfRangeException>(() => NetcodeLibrary.RandomBytes(new byte[4], 1, int.MaxValue), "a count that overflows");
        Runner.Throws<ArgumentOutOfRangeException>(() => NetcodeLibrary.SetLogLevel((LogLevel)4), "a log level");
        Runner.Throws<InvalidOperationException>(() => NetcodeLibrary.Terminate(), "Terminate without Initialize");
        NetcodeLibrary.Initialize();
        NetcodeLibrary.Terminate();
        NetcodeLibrary.EnablePacketTagging();
        NetcodeLibrary.Sleep(double.NaN);
        Runner.Throws<ArgumentNullException>(() => Address.Parse(null), "no address");
        Runner.Throws<FormatException>(() => Address.Parse("1.2.3"), "half an address");
        Runner.Throws<ArgumentException>(() => Address.Parse("1.2.3.4:5\0"), "a zero in a text");
        Runner.Throws<ArgumentOutOfRangeException>(() => new Address { Port = 65536 }.ToString(), "a port");
        Runner.Throws<InvalidOperationException>(() => default(Address).ToEndPoint(), "the end point of no address");
        Runner.Throws<ArgumentNullException>(() => ConnectToken.Generate(null, 1, 1, key), "no servers");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(new string[0], 1, 1, key), "0 servers");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(Enumerable.Repeat("1.2.3.4:5", 33).ToArray(), 1, 1, key), "33 servers");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(new string[] { null }, 1, 1, key), "a server that is null");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(new[] { "1.2.3.4" }, 1, 1, key), "a server without a port");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(one, 1, 1, new byte[31]), "a short key");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(one, 1, 1, key, 1, 1, new byte[257]), "too much user data");
        Runner.Throws<ArgumentException>(() => ConnectToken.Generate(one, 1, 1, key, 1, 1, null, new string[2]), "other internal addresses");
        Runner.Throws<ArgumentException>(() => new ConnectToken(new byte[2048]), "a token of zeros");
        Runner.Throws<ArgumentException>(() => new ConnectToken(new byte[2047]), "a short token");
        Runner.Throws<FormatException>(() => ConnectToken.FromBase64("?"), "no base64");
    }

    public static void creations_that_fail_say_why()
    {
        var none = new ServerConfig { PrivateKey = new byte[32] };
        var client = Runner.Throws<ClientCreateException>(() => new NetcodeClient("nonsense"), "a client at no address");
        Runner.True(client.Error == ClientCreateError.ParseAddressFailed && client.Message.Contains("nonsense") && client.Message.Length > 40, client.Message);
        var second = Runner.Throws<ClientCreateException>(() => new NetcodeClient("0.0.0.0", "nonsense", null, 0), "a second address");
        Runner.Equal(ClientCreateError.ParseAddress2Failed, second.Error, "its error");
        using (var simulator = new NetworkSimulator())
            Runner.Equal(ClientCreateError.SimulatorRequiresPort,
                Runner.Throws<ClientCreateException>(() => new NetcodeClient(new ClientConfig { Simulator = simulator }), "no port").Error, "error");
        Runner.Throws<ArgumentNullException>(() => new NetcodeClient((string)null, null), "no address");
        Runner.Throws<ArgumentNullException>(() => new NetcodeServer("127.0.0.1:0", null), "no config");
        Runner.Throws<ArgumentNullException>(() => new NetcodeServer("127.0.0.1:0", new ServerConfig()), "no key");
        Runner.Throws<ArgumentException>(() => new NetcodeServer("127.0.0.1:0", new ServerConfig { PrivateKey = new byte[33] }), "a long key");
        using (var server = new NetcodeServer("127.0.0.1:0", none))
        {
            var taken = Runner.Throws<ServerCreateException>(() => new NetcodeServer("127.0.0.1:" + server.Port, none), "a port in use");
            Runner.Equal(ServerCreateError.BindSocketIpv4Failed, taken.Error, "its error");
            Runner.Note("\"" + taken.Message.Replace(":" + server.Port, ":PORT") + "\"");
        }
        Runner.Throws<ArgumentException>(() => new NetcodeServer("127.0.0.1:0",
            new ServerConfig { PrivateKey = new byte[32], PublicAddresses = new string[33] }), "33 public addresses");
        Runner.Throws<ArgumentException>(() => new NetcodeServer("127.0.0.1:0",
            new ServerConfig { PrivateKey = new byte[32], PublicAddresses = new string[] { null } }), "a public address that is null");
        Runner.Throws<ArgumentException>(() => new NetcodeMessages(new MessagesConfig { Channels = 33 }), "33 channels");
        Runner.Throws<ArgumentException>(() => new NetcodeMessages(new MessagesConfig { Priorities = new byte[33] }), "33 priorities");
    }

    public static void wrong_arguments_of_clients_and_servers()
    {
        using (var world = new World(2))
        {
            NetcodeClient client = world.Connected();
            NetcodeServer server = world.Server;
            Address from = Address.Parse("1.2.3.4:5");
            Runner.Throws<ArgumentNullException>(() => client.Connect((ConnectToken)null), "no token");
            Runner.Throws<ArgumentException>(() => client.Connect(new byte[1]), "a short token");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.Send(new byte[0]), "an empty payload");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.Send(new byte[1201]), "a large payload");
            Runner.Throws<ArgumentNullException>(() => client.Send(null), "no payload");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.Send(new byte[10], 5, 6), "a payload beyond its array");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.ProcessDatagram(from, new byte[0], 0, 0), "an empty datagram");
            Runner.Throws<InvalidOperationException>(() => client.ConnectLoopback(0, 1), "loopback while connected");
            Runner.Throws<InvalidOperationException>(() => client.DisconnectLoopback(), "no loopback");
            Runner.Throws<InvalidOperationException>(() => client.ProcessLoopbackPacket(new byte[1], 0, 1, 0), "no loopback");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.ConnectLoopback(2, 2), "a slot beyond the last");
            foreach (int index in new[] { -1, 2, int.MinValue, int.MaxValue })
            {
                Runner.Throws<ArgumentOutOfRangeException>(() => server.Send(index, new byte[1]), "a slot");
                Runner.Throws<ArgumentOutOfRangeException>(() => server.Disconnect(index), "a slot");
                Runner.Throws<ArgumentOutOfRangeException>(() => { ServerSlot slot = server[index]; }, "a slot");
            }
            Runner.Throws<ArgumentOutOfRangeException>(() => server.Broadcast(new byte[1], 0, 1, 2), "a slot to leave out");
            Runner.Throws<ArgumentOutOfRangeException>(() => server.Start(0), "0 slots");
            Runner.Throws<ArgumentOutOfRangeException>(() => server.Start(65536), "65536 slots");
            Runner.Throws<ArgumentException>(() => server.SetPrivateKeys(), "no keys");
            Runner.Throws<ArgumentException>(() => server.SetPrivateKeys(new byte[5][]), "5 keys");
            Runner.Throws<ArgumentException>(() => server.SetPrivateKeys(new byte[3]), "a short key");
            Runner.Throws<ArgumentException>(() => server.ConnectLoopbackClient(1, 5, new byte[255]), "short user data");
            Runner.Throws<InvalidOperationException>(() => server.ConnectLoopbackClient(0, 5), "a slot that is taken");
            Runner.Throws<InvalidOperationException>(() => server.DisconnectLoopbackClient(0), "a client that is none of loopback");
            Runner.Throws<ArgumentOutOfRangeException>(() => server[0].CopyUserData(new byte[300], 50), "no room for user data");
            Runner.Throws<ArgumentOutOfRangeException>(() => world.Simulator.PacketLossPercent = 101, "101 %");
            Runner.Throws<ArgumentOutOfRangeException>(() => world.Simulator.LatencyMilliseconds = float.NaN, "no number");
            ClientStats stats;
            client.GetStats(out stats);
            Runner.Throws<ArgumentOutOfRangeException>(() => stats.Dropped((DropReason)Enum.GetValues(typeof(DropReason)).Length), "a reason that is none");
            Runner.True(client.IsConnected, "and nothing of it did any harm");

            ServerSlot old = server[1];
            server.Stop();
            server.Send(0, new byte[1]);
            server.Disconnect(1);
            Runner.True(!old.IsConnected && server.MaxClients == 0 && !server.IsRunning, "a slot of a stopped server");
            server.Start(1);
            server.Send(1, new byte[1]); // it was opened once: no client is there
            Runner.True(!server[1].IsConnected && server[1].Address == default(Address), "a slot that an earlier start had");
        }
    }

    public static void wrong_arguments_of_messages()
    {
        using (var messages = new NetcodeMessages(new MessagesConfig { Channels = 2, MaxMessageBytes = 2000 }, 0))
        {
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(2, MessageKind.Reliable, new byte[1]), "a channel");
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(-1, MessageKind.Reliable, new byte[1]), "a channel");
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(0, MessageKind.Stream, new byte[1]), "a kind");
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(0, (MessageKind)(-1), new byte[1]), "a kind");
            Runner.Throws<ArgumentNullException>(() => messages.Send(0, MessageKind.Reliable, null), "no data");
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(0, MessageKind.ReliableOrdered, new byte[1], 0, 1, 0, 1.0), "ordered, with a time to live");
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.Send(0, MessageKind.Reliable, new byte[1], 0, 1, 0, double.NaN), "no time");
            Runner.Equal(SendResult.TooLarge, messages.Send(0, MessageKind.Reliable, new byte[2001]), "too large");
            Runner.Equal(SendResult.TooLarge, messages.Send(0, MessageKind.Unreliable, new byte[1500]), "too large for a packet");
            Runner.Equal(SendResult.Queued, messages.Send(0, MessageKind.Reliable, new byte[0]), "an empty message");
            Runner.Throws<ArgumentNullException>(() => messages.SendStream(0, (byte[])null, 0), "no stream");
            Runner.Throws<ArgumentException>(() => messages.GeneratePacket(new byte[1199]), "a small packet");
            Runner.Throws<ArgumentNullException>(() => messages.ReceiveFrom((NetcodeClient)null), "no client");
            Runner.Equal(MessagesDropReason.Header, messages.ProcessPacket(new byte[0], 0, 0), "an empty packet");
            Runner.Equal(MessagesDropReason.Header, messages.ProcessPacket(new byte[] { 255 }, 0, 1), "junk");
            MessagesChannelStats stats;
            Runner.Throws<ArgumentOutOfRangeException>(() => messages.GetChannelStats(2, out stats), "a channel");
            Runner.Throws<ArgumentException>(() => MessageStreamSource.FromStream(new System.IO.Compression.DeflateStream(new MemoryStream(),
                System.IO.Compression.CompressionMode.Compress)), "a stream that can not seek");
        }
    }

    // Each public method and property of an object, by reflection: whatever is added is tested too.
    public static void nothing_can_be_used_after_Dispose()
    {
        var world = new World();
        NetcodeClient client = world.Connected();
        ServerSlot slot = world.Server[0];
        var messages = new NetcodeMessages(null, 0);
        SimulatorSocket socket = world.Simulator.CreateSocket(Address.Parse("7.7.7.7:7"));
        world.Dispose();
        messages.Dispose();
        socket.Dispose();
        foreach (IDisposable one in new IDisposable[] { client, world.Server, messages, socket, world.Simulator })
            one.Dispose(); // twice is fine
        int count = 0;
        foreach (object one in new object[] { client, world.Server, messages, world.Simulator, slot, socket })
            foreach (MethodInfo method in one.GetType().GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly))
            {
                if (method.GetParameters().Any(parameter => parameter.ParameterType.Name.StartsWith("ReadOnlySpan")))
                    continue; // reflection can not make one: see SpanTests
                if (method.Name == "Dispose" || method.Name == "get_Server" || (method.Name == "get_Index" && one is ServerSlot))
                    continue;
                object[] arguments = method.GetParameters().Select(parameter => Argument(parameter, one)).ToArray();
                Exception thrown = null;
                try
                {
                    method.Invoke(one, arguments);
                }
                catch (TargetInvocationException exception)
                {
                    thrown = exception.InnerException;
                }
                Runner.True(thrown is ObjectDisposedException, one.GetType().Name + "." + method.Name + ": " + (thrown == null ? "nothing" : thrown.GetType().Name));
                count++;
            }
        Runner.Throws<ObjectDisposedException>(() => new NetcodeClient("1.2.3.4:5", new ClientConfig { Simulator = world.Simulator }), "a simulator that is disposed");
        using (var living = new NetcodeMessages(null, 0))
            Runner.Throws<ObjectDisposedException>(() => living.ReceiveFrom(client), "a client that is disposed");
        Runner.True(count > 100, "only " + count + " were tried");
        Runner.Note(count + " methods and properties");
    }

    // Right for each parameter, so that only the Dispose is wrong.
    private static object Argument(ParameterInfo parameter, object one)
    {
        Type type = parameter.ParameterType.IsByRef ? parameter.ParameterType.GetElementType() : parameter.ParameterType;
        if (parameter.Name == "userData")
            return null;
        if (type == typeof(byte[]))
            return new byte[parameter.Member.Name == "Connect" ? 2048 : 1200];
        if (type == typeof(byte[][]))
            return new[] { new byte[32] };
        if (type == typeof(int) || type == typeof(uint))
            return (object)Convert.ChangeType(parameter.Name == "count" || parameter.Name == "bytes" || parameter.Name == "maxClients" ? 1 : 0, type);
        if (type == typeof(ConnectToken))
            return ConnectToken.Generate(new[] { "1.2.3.4:5" }, 1, 1, new byte[32]);
        if (type == typeof(NetcodeClient))
            return new NetcodeClient();
        if (type == typeof(NetcodeServer))
        {
            var server = new NetcodeServer("127.0.0.1:0", new ServerConfig { PrivateKey = new byte[32] });
            server.Start(1);
            return server;
        }
        if (type == typeof(MessageStreamSource))
            return MessageStreamSource.FromArray(new byte[1]);
        return type.IsValueType ? Activator.CreateInstance(type) : null;
    }
}
