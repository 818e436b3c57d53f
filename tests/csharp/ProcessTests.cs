// C# and C as processes of their own, over UDP on loopback: each side with each, and a backend in C# whose tokens C accepts.

using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text.RegularExpressions;
using NetcodeH;

internal static class ProcessTests
{
    private static string Folder { get { return Path.Combine(Program.Root, "build/csharp"); } }

    // Only its owner may read a key: the C programs refuse others.
    private static string KeyFile(byte[] key)
    {
        string path = Path.Combine(Folder, "test.key");
        File.Delete(path);
        File.WriteAllBytes(path, key);
        using (Process change = Process.Start("chmod", "600 " + path))
            change.WaitForExit();
        return path;
    }

    private static string Listening(Program server)
    {
        Match match = null;
        Runner.Until(() => (match = Regex.Match(server.Output, @"listening on (127\.0\.0\.1:\d+)")).Success || server.HasEnded,
            () => System.Threading.Thread.Sleep(10), "a C server that listens");
        Runner.True(match.Success, "the C server does not listen: " + server.Output);
        return match.Groups[1].Value;
    }

    public static void a_C_sharp_client_plays_on_a_C_server()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var server = new Program("build/server", "--address 127.0.0.1:0 --echo --protocol-id 77 --key-file " + KeyFile(key)))
        using (var client = new NetcodeClient("127.0.0.1:0"))
        {
            string address = Listening(server);
            client.Connect(ConnectToken.Generate(new[] { address }, 5, 77, key));
            Action tick = () => { client.Wait(0.01); client.Update(); };
            Runner.Until(() => client.IsConnected, tick, "connected");
            int sent = 0, back = 0, wrong = 0;
            var data = new byte[500];
            Runner.Until(() => back >= 200, () =>
            {
                if (sent - back < 16)
                {
                    new Random(sent++).NextBytes(data);
                    client.Send(data, 0, 100 + sent);
                }
                tick();
                NetcodeEvent e;
                while (client.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Payload)
                    {
                        var want = new byte[500];
                        new Random(back++).NextBytes(want);
                        if (!e.Payload.SequenceEqual(want.Take(100 + back)))
                            wrong++;
                    }
            }, "200 payloads come back");
            Runner.Equal(0, wrong, "payloads that came back in another order or changed");
            client.Disconnect();
            Runner.Note(back + " payloads came back");
        }
    }

    public static void a_C_client_plays_on_a_C_sharp_server()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var server = new NetcodeServer("127.0.0.1:0", new ServerConfig { ProtocolId = 77, PrivateKey = key, BindAddress = "127.0.0.1:0" }))
        {
            server.Start(4);
            string token = Path.Combine(Folder, "test.token");
            File.WriteAllText(token, ConnectToken.Generate(new[] { "127.0.0.1:" + server.Port }, 9, 77, key).ToBase64());
            using (var client = new Program("build/client", "--count 200 --rate 0 --strict " + token))
            {
                int echoed = 0;
                ulong id = 0;
                DisconnectReason reason = DisconnectReason.None;
                Runner.Until(() => client.HasEnded && reason != DisconnectReason.None, () =>
                {
                    NetcodeEvent e;
                    server.Wait(0.005);
                    server.Update();
                    while (server.NextEvent(out e))
                        if (e.Type == NetcodeEventType.Payload)
                        {
                            server.Send(e.ClientIndex, e.Payload.Array, e.Payload.Offset, e.Payload.Count);
                            echoed++;
                        }
                        else if (e.Type == NetcodeEventType.Connected)
                            id = e.ClientId;
                        else if (e.Type == NetcodeEventType.Disconnected)
                            reason = e.Reason;
                }, "the C client ends");
                Runner.Equal(0, client.Wait(), "the C client's exit status: " + client.Output);
                Runner.True(echoed == 200 && id == 9 && reason == DisconnectReason.ClientDisconnect, echoed + " payloads, client " + id + ", " + reason);
                Runner.Note(echoed + " payloads");
            }
            File.Delete(token);
        }
    }

    public static void a_C_program_reads_the_tokens_of_a_C_sharp_backend()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        string file = Path.Combine(Folder, "test.token");
        var token = ConnectToken.Generate(new[] { "192.0.2.1:40000", "[2001:db8::1]:40001" }, 123456789, 0x99, key, 300, 15, new byte[] { 0xab, 0xcd });
        File.WriteAllText(file, token.ToBase64());
        using (var inspect = new Program("build/token", "inspect --key-file " + KeyFile(key) + " " + file))
        {
            Runner.Equal(0, inspect.Wait(), "its exit status: " + inspect.Output);
            foreach (string want in new[] { "192.0.2.1:40000", "[2001:db8::1]:40001", "123456789" })
                Runner.True(inspect.Output.Contains(want), want + " is not in " + inspect.Output);
        }
        File.Delete(file);
    }

    public static void messages_go_to_a_C_server_and_back()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var server = new Program("build/csharp/messages_server", KeyFile(key)))
        using (var client = new NetcodeClient("127.0.0.1:0"))
        using (var messages = new NetcodeMessages())
        {
            client.Connect(ConnectToken.Generate(new[] { Listening(server) }, 5, World.ProtocolId, key));
            var large = new byte[100000];
            new Random(3).NextBytes(large);
            int kinds = 0;
            bool isSame = false;
            Action tick = () =>
            {
                Message message;
                client.Wait(0.005);
                client.Update();
                messages.ReceiveFrom(client);
                while (messages.TryReceive(out message))
                    if (message.Data.Count == 1)
                        kinds |= 1 << (int)message.Kind;
                    else
                        isSame = message.Channel == 9 && message.Data.SequenceEqual(large);
                messages.SendTo(client);
            };
            Runner.Until(() => client.IsConnected, tick, "connected");
            messages.Send(9, MessageKind.Reliable, large);
            int ticks = 0;
            Runner.Until(() => kinds == 31 && isSame, () =>
            {
                if (ticks++ % 20 == 0)
                    for (int kind = 0; kind < 5; kind++)
                        messages.Send(kind, (MessageKind)kind, new byte[] { 1 });
                tick();
            }, "each kind and 100000 bytes come back");
        }
    }

    // A relay whose port changes, as a NAT's does.
    public static void a_client_behind_a_NAT_that_changes_its_port_stays_on_the_server()
    {
        byte[] key = NetcodeLibrary.GenerateKey();
        using (var server = new NetcodeServer("127.0.0.1:0", new ServerConfig { ProtocolId = 1, PrivateKey = key, Roaming = true, BindAddress = "127.0.0.1:0" }))
        using (var inside = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0)))
        using (var client = new NetcodeClient("127.0.0.1:0"))
        {
            server.Start(1);
            var outside = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0));
            var serverPoint = new IPEndPoint(IPAddress.Loopback, server.Port);
            int insidePort = ((IPEndPoint)inside.Client.LocalEndPoint).Port;
            client.Connect(ConnectToken.Generate(new[] { "127.0.0.1:" + insidePort }, 1, 1, key, 300, 60, null, new[] { "127.0.0.1:" + server.Port }));
            IPEndPoint clientPoint = null;
            bool hasMoved = false;
            int payloads = 0;
            Action tick = () =>
            {
                NetcodeEvent e;
                var from = new IPEndPoint(IPAddress.Any, 0);
                client.Send(new byte[] { 1 });
                client.Update();
                while (inside.Available > 0)
                {
                    byte[] datagram = inside.Receive(ref from);
                    clientPoint = from;
                    outside.Send(datagram, datagram.Length, serverPoint);
                }
                server.Update();
                while (server.NextEvent(out e))
                {
                    hasMoved |= e.Type == NetcodeEventType.Moved;
                    payloads += e.Type == NetcodeEventType.Payload ? 1 : 0;
                }
                while (outside.Available > 0)
                {
                    byte[] datagram = outside.Receive(ref from);
                    if (clientPoint != null)
                        inside.Send(datagram, datagram.Length, clientPoint);
                }
                while (client.NextEvent(out e)) { }
                NetcodeLibrary.Sleep(0.005);
            };
            Runner.Until(() => client.IsConnected, tick, "connected");
            Runner.Until(() => payloads >= 50, tick, "50 payloads");
            Address before = server[0].Address;
            UdpClient old = outside;
            outside = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0)); // before the other is closed: it would get its port now and then
            old.Close();
            Runner.Until(() => hasMoved, tick, "the client has moved");
            Runner.Equal(((IPEndPoint)outside.Client.LocalEndPoint).Port, server[0].Address.Port, "the new port");
            Runner.True(client.IsConnected && server[0].Address != before, "still connected");
            outside.Close();
        }
    }
}
