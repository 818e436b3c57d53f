// A backend, a server and two clients in one program, over UDP on this machine: one client talks, the other has a token of another game.
//
//     sh examples/csharp/build.sh hello && mono build/csharp/Hello.exe

using System;
using System.Text;
using NetcodeH;

internal static class Hello
{
    private const ulong ProtocolId = 0x48656c6c6f000001; // unique to a game, and to each incompatible version of it

    private static int Main()
    {
        byte[] key = NetcodeLibrary.GenerateKey(); // backend and servers have it, clients never
        var config = new ServerConfig { ProtocolId = ProtocolId, PrivateKey = key, BindAddress = "127.0.0.1:0", Roaming = true };
        using (var server = new NetcodeServer("127.0.0.1:0", config))
        using (var serverMessages = new NetcodeMessages())
        using (var client = new NetcodeClient())
        using (var messages = new NetcodeMessages())
        using (var refused = new NetcodeClient())
        {
            server.Start(1);
            string address = "127.0.0.1:" + server.Port;
            Console.WriteLine("server: listening on " + address);

            // The backend makes a token for a player who has logged in, and sends it by HTTPS.
            string token = ConnectToken.Generate(new[] { address }, 42, ProtocolId, key, 30, 5).ToBase64();
            client.Connect(ConnectToken.FromBase64(token));
            refused.Connect(ConnectToken.Generate(new[] { address }, 43, ProtocolId + 1, key, 1, 5));

            bool isSaid = false, isDone = false;
            double end = NetcodeLibrary.Time + 10;
            while ((!isDone || refused.IsConnecting) && NetcodeLibrary.Time < end)
            {
                NetcodeEvent e;
                Message message;

                server.Update();
                while (server.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Connected)
                        Console.WriteLine("server: client " + e.ClientId + " is in slot " + e.ClientIndex);
                    else if (e.Type == NetcodeEventType.Disconnected)
                        Console.WriteLine("server: client " + e.ClientId + " has left: " + e.Reason);
                serverMessages.ReceiveFrom(server, 0);
                while (serverMessages.TryReceive(out message))
                {
                    Console.WriteLine("server: got \"" + Encoding.UTF8.GetString(message.Data.Array, message.Data.Offset, message.Data.Count) + "\"");
                    serverMessages.Send(0, MessageKind.ReliableOrdered, Encoding.UTF8.GetBytes("hello, player"));
                }
                serverMessages.SendTo(server, 0);

                client.Update();
                messages.ReceiveFrom(client);
                if (client.IsConnected && !isSaid)
                    isSaid = messages.Send(0, MessageKind.ReliableOrdered, Encoding.UTF8.GetBytes("hello, server")) == SendResult.Queued;
                while (messages.TryReceive(out message))
                {
                    Console.WriteLine("client: got \"" + Encoding.UTF8.GetString(message.Data.Array, message.Data.Offset, message.Data.Count) + "\"");
                    client.Disconnect();
                    isDone = true;
                }
                messages.SendTo(client);
                client.ThrowIfFailed();

                refused.Update();
                client.Wait(0.005);
            }
            server.Update();
            NetcodeEvent last;
            while (server.NextEvent(out last))
                if (last.Type == NetcodeEventType.Disconnected)
                    Console.WriteLine("server: client " + last.ClientId + " has left: " + last.Reason);

            ServerStats stats;
            server.GetStats(out stats);
            Console.WriteLine("refused client: " + refused.GetReport().Text);
            Console.WriteLine("server: " + stats.Dropped(DropReason.RequestWrongProtocolId) + " requests dropped: " + DropReason.RequestWrongProtocolId.Text());
            return isDone && !refused.IsConnecting ? 0 : 1;
        }
    }
}
