// The samples of the Unity package play, over UDP on loopback, without Unity: with stubs that call Awake, FixedUpdate, Update and OnDestroy.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using NetcodeH;
using UnityEngine;

internal static class UnityTests
{
    private static int FreePort()
    {
        using (var socket = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0)))
            return ((IPEndPoint)socket.Client.LocalEndPoint).Port;
    }

    private static PlayHost Host(string relay = null)
    {
        string address = "127.0.0.1:" + FreePort();
        var host = new PlayHost { address = relay ?? address, bindAddress = address };
        host.Send("Awake");
        return host;
    }

    // Between one client and the host: each datagram takes so many steps.
    private sealed class Relay : IDisposable
    {
        private const int Steps = 3;
        private readonly UdpClient front = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0)), back = new UdpClient(new IPEndPoint(IPAddress.Loopback, 0));
        private readonly Queue<KeyValuePair<int, byte[]>> up = new Queue<KeyValuePair<int, byte[]>>(), down = new Queue<KeyValuePair<int, byte[]>>();
        private IPEndPoint client;
        private int step;

        internal string Address { get { return "127.0.0.1:" + ((IPEndPoint)front.Client.LocalEndPoint).Port; } }

        internal void Step(IPEndPoint host)
        {
            var from = new IPEndPoint(IPAddress.Any, 0);
            step++;
            for (; front.Available > 0; client = from)
                up.Enqueue(new KeyValuePair<int, byte[]>(step + Steps, front.Receive(ref from)));
            while (back.Available > 0)
                down.Enqueue(new KeyValuePair<int, byte[]>(step + Steps, back.Receive(ref from)));
            while (up.Count > 0 && up.Peek().Key <= step)
                back.Send(up.Peek().Value, up.Dequeue().Value.Length, host);
            while (down.Count > 0 && down.Peek().Key <= step)
                front.Send(down.Peek().Value, down.Dequeue().Value.Length, client);
        }

        public void Dispose()
        {
            front.Close();
            back.Close();
        }
    }

    public static void a_client_predicts_over_a_round_trip_and_is_right()
    {
        using (var relay = new Relay())
        {
            PlayHost host = Host(relay.Address);
            PlayClient client = Client();
            IPEndPoint end = Address.Parse(host.bindAddress).ToEndPoint();
            client.Join(host.MakeToken(1));
            int ahead = 0;
            for (int i = 0; i < 150; i++)
            {
                UnityEngine.Input.Axes.Clear();
                UnityEngine.Input.Axes["Horizontal"] = i / 20 % 3 - 1;
                client.Send("FixedUpdate");
                relay.Step(end);
                host.Send("FixedUpdate");
                if (client.IsPlaying)
                    ahead = Math.Max(ahead, Math.Abs(client.Own.X - client.Heard(client.Slot).X));
            }
            Runner.True(client.IsPlaying, "it plays: " + client.Failure);
            Runner.True(ahead >= 5 * PlayRules.Speed, "it is ahead of what it hears by a round trip, not by " + ahead);
            Runner.Equal(0, client.Corrections, "corrections");
            Runner.Note(ahead + " cm ahead of what it heard, no correction");
            client.Send("OnDestroy");
            host.Send("OnDestroy");
        }
    }

    private static PlayClient Client()
    {
        var client = new PlayClient { playerPrefab = new GameObject("player"), bindAddress = "127.0.0.1:0" };
        client.Send("Awake");
        return client;
    }

    private static void Run(PlayHost host, IEnumerable<PlayClient> clients, int steps, Action<int, PlayClient> press)
    {
        for (int i = 0; i < steps; i++)
        {
            foreach (PlayClient client in clients)
            {
                UnityEngine.Input.Axes.Clear();
                press(i, client);
                client.Send("FixedUpdate");
                client.Send("Update");
            }
            host.Send("FixedUpdate");
        }
    }

    public static void host_and_clients_agree_and_nothing_is_corrected()
    {
        PlayHost host = Host();
        PlayClient[] clients = { Client(), Client() };
        for (int i = 0; i < clients.Length; i++)
            clients[i].Join(host.MakeToken((ulong)i + 1));
        Action<int, PlayClient> press = (step, client) =>
        {
            UnityEngine.Input.Axes["Horizontal"] = client == clients[0] ? 1 : -1;
            UnityEngine.Input.Axes["Vertical"] = step / 10 % 2;
        };
        Run(host, clients, 100, press);
        Runner.True(clients.All(client => client.IsPlaying), "both play: " + clients[0].Failure + clients[1].Failure);
        PlayPosition before = clients[0].Own;
        Run(host, clients, 30, press);
        Runner.True(clients[0].Own.X > before.X, "the own player moves at once");
        Runner.Equal(0, clients.Sum(client => client.Corrections), "corrections without loss");
        Run(host, clients, 50, (step, client) => { });
        foreach (PlayClient client in clients)
            foreach (PlayClient other in clients)
            {
                PlayPosition truth = host.PositionOf(other.Slot), seen = client == other ? client.Own : client.Heard(other.Slot);
                Runner.True(truth.X == seen.X && truth.Z == seen.Z, "all see all where the host has them");
            }
        Runner.True(UnityEngine.Debug.Lines.All(line => !line.StartsWith("warning")), string.Join("|", UnityEngine.Debug.Lines));

        // A host that has another opinion: its word counts.
        Run(host, clients, 1, press);
        clients[0].Leave();
        Run(host, clients, 20, (step, client) => { });
        Runner.True(!clients[0].IsPlaying && clients[1].IsPlaying && host.Server.ConnectedClients == 1, "one has left");
        clients[0].Join("no token");
        Runner.True(clients[0].Failure.Contains("invitation"), "what is no token");
        clients[0].Join(host.MakeToken(1));
        Run(host, clients, 50, (step, client) => { });
        Runner.True(clients[0].IsPlaying, "it is back");
        foreach (PlayClient client in clients)
            client.Send("OnDestroy");
        host.Send("OnDestroy");
    }

    public static void a_client_that_sends_too_many_inputs_is_not_faster()
    {
        PlayHost host = Host();
        PlayClient honest = Client(), fast = Client();
        honest.Join(host.MakeToken(1));
        fast.Join(host.MakeToken(2));
        var clients = new[] { honest, fast };
        Run(host, clients, 50, (step, client) => { });
        int start = host.PositionOf(fast.Slot).X, honestStart = host.PositionOf(honest.Slot).X;
        for (int i = 0; i < 40; i++)
        {
            Run(host, clients, 1, (step, client) => UnityEngine.Input.Axes["Horizontal"] = 1);
            UnityEngine.Input.Axes["Horizontal"] = 1;
            fast.Send("FixedUpdate"); // a second tick in the same time
        }
        Run(host, clients, 10, (step, client) => { });
        int fastWay = host.PositionOf(fast.Slot).X - start, honestWay = host.PositionOf(honest.Slot).X - honestStart;
        Runner.True(honestWay >= 39 * PlayRules.Speed, "the honest one walked " + honestWay);
        // It has its first credit, and what it sent last may be run when it stands: twice the redundancy, however long it goes on.
        Runner.True(fastWay <= honestWay + 2 * PlayRules.Redundancy * PlayRules.Speed, "the fast one walked " + fastWay + ", the honest one " + honestWay);
        Runner.True(fast.Corrections > 0, "it was corrected");
        Runner.Note("honest " + honestWay + " cm, fast " + fastWay + " cm, " + fast.Corrections + " corrections");
        foreach (PlayClient client in clients)
            client.Send("OnDestroy");
        host.Send("OnDestroy");
    }
}
