// Nothing is allocated per packet, event or message: a million packets, and the collector has nothing to do.

using System;
using NetcodeH;

internal static class GarbageTests
{
    private const int Packets = 1000000;

    private static void Measure(string what, int count, Action<int> round)
    {
        for (int i = 0; i < 2000; i++)
            round(i); // what is allocated once, is
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
        int collections = GC.CollectionCount(0);
        long bytes = GC.GetAllocatedBytesForCurrentThread();
        var watch = System.Diagnostics.Stopwatch.StartNew();
        for (int i = 0; i < count; i++)
            round(i);
        watch.Stop();
        bytes = GC.GetAllocatedBytesForCurrentThread() - bytes;
        collections = GC.CollectionCount(0) - collections;
        Runner.True(collections == 0, collections + " collections");
        Runner.True(bytes < 65536, bytes + " bytes were allocated");
        Runner.Note(count + " " + what + ": " + bytes + " bytes allocated, " + collections + " collections, " +
            (watch.Elapsed.TotalMilliseconds * 1e6 / count).ToString("0") + " ns each");
    }

    // In both directions, through the simulator: sending, receiving, updates and events.
    public static void a_million_packets_leave_no_garbage()
    {
        using (var world = new World(1))
        {
            NetcodeClient client = world.Connected();
            NetcodeServer server = world.Server;
            var data = new byte[100];
            long received = 0;
            NetcodeEvent e;
            ClientStats stats;
            Measure("ticks with ten packets", Packets / 10, round =>
            {
                for (int i = 0; i < 5; i++)
                {
                    client.Send(data, 0, data.Length);
                    server.Send(0, data, 0, data.Length);
                }
                world.Step();
                while (server.NextEvent(out e))
                    received += e.Type == NetcodeEventType.Payload ? 1 : 0;
                while (client.NextEvent(out e))
                    received += e.Type == NetcodeEventType.Payload ? 1 : 0;
                client.GetStats(out stats);
            });
            Runner.True(received >= Packets, "received " + received);
            Runner.Note(received + " payloads were received");
        }
    }

    public static void messages_leave_no_garbage()
    {
        using (var world = new World(1))
        using (var mine = new NetcodeMessages(new MessagesConfig { Channels = 4 }, world.Time))
        using (var theirs = new NetcodeMessages(new MessagesConfig { Channels = 4 }, world.Time))
        {
            NetcodeClient client = world.Connected();
            var data = new byte[50];
            long received = 0, acked = 0;
            Message message;
            MessageEvent e;
            Measure("ticks with four messages", 50000, round =>
            {
                world.Step();
                mine.ReceiveFrom(client, world.Time);
                theirs.ReceiveFrom(world.Server, 0, world.Time);
                while (theirs.TryReceive(out message))
                    received++;
                while (mine.NextEvent(out e))
                    acked++;
                mine.Send(0, MessageKind.Unreliable, data, 0, data.Length);
                mine.Send(1, MessageKind.UnreliableSequenced, data, 0, data.Length);
                mine.Send(2, MessageKind.ReliableOrdered, data, 0, data.Length);
                mine.Send(3, MessageKind.Reliable, data, 0, data.Length, (ulong)round + 1);
                mine.SendTo(client, world.Time);
                theirs.SendTo(world.Server, 0, world.Time);
            });
            Runner.True(received > 195000 && acked > 49000, received + " messages, " + acked + " receipts");
            Runner.Note(received + " messages were received");
        }
    }
}
