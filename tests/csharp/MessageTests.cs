// Messages over a client and a server on a simulator: each kind, receipts, large ones, streams, resets, and packets of your own.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using NetcodeH;

internal static class MessageTests
{
    // A client and its slot with messages on both sides.
    private sealed class Pair : IDisposable
    {
        internal readonly World World = new World();
        internal readonly NetcodeClient Client;
        internal readonly NetcodeMessages Mine, Theirs;
        internal readonly List<string> Heard = new List<string>();
        internal readonly List<MessageEvent> Events = new List<MessageEvent>();
        internal Action<Message> OnMessage;

        internal Pair(MessagesConfig mine = null, MessagesConfig theirs = null)
        {
            Client = World.Connected();
            Mine = new NetcodeMessages(mine, World.Time);
            Theirs = new NetcodeMessages(theirs ?? mine, World.Time);
        }

        internal void Step()
        {
            Message message;
            MessageEvent e;
            World.Step();
            Mine.ReceiveFrom(Client, World.Time);
            Theirs.ReceiveFrom(World.Server, 0, World.Time);
            while (Theirs.TryReceive(out message))
            {
                if (OnMessage != null)
                    OnMessage(message);
                Heard.Add(message.Channel + " " + message.Kind + " " + message.Data.Count + " " + (message.Data.Count > 0 ? message.Data.Array[0] : 0));
            }
            while (Mine.NextEvent(out e))
                Events.Add(e);
            Mine.SendTo(Client, World.Time);
            Theirs.SendTo(World.Server, 0, World.Time);
        }

        internal void Until(Func<bool> isDone, string what, double seconds = 20)
        {
            for (double end = World.Time + seconds; !isDone(); Step())
                if (World.Time > end)
                    throw new TestFailure("not within " + seconds + " s: " + what);
        }

        public void Dispose()
        {
            Mine.Dispose();
            Theirs.Dispose();
            World.Dispose();
        }
    }

    public static void each_kind_arrives_and_receipts_report()
    {
        using (var pair = new Pair())
        {
            for (int kind = 0; kind < 5; kind++)
                Runner.Equal(SendResult.Queued, pair.Mine.Send(kind, (MessageKind)kind, new[] { (byte)(kind + 10), (byte)0 }, 0, 2, (ulong)(100 + kind)), "sent");
            pair.Until(() => pair.Heard.Count == 5 && pair.Events.Count == 5, "five messages and their receipts");
            for (int kind = 0; kind < 5; kind++)
            {
                var plain = (MessageKind)kind;
                Runner.True(pair.Heard.Contains(kind + " " + plain + " 2 " + (kind + 10)), "kind " + kind + " among " + string.Join(", ", pair.Heard));
                Runner.True(pair.Events.Any(e => e.Type == MessageEventType.Acked && e.Receipt == (ulong)(100 + kind) && e.Kind == (MessageKind)kind), "receipt " + kind);
            }
        }
    }

    public static void order_is_kept_at_ten_percent_loss_and_large_messages_report_progress()
    {
        using (var pair = new Pair(new MessagesConfig { Channels = 3 }))
        {
            pair.World.Simulator.PacketLossPercent = 10;
            pair.World.Simulator.LatencyMilliseconds = 30;
            var large = new byte[200000];
            new Random(1).NextBytes(large);
            bool isSame = false;
            var order = new List<int>();
            pair.OnMessage = message =>
            {
                if (message.Channel == 1)
                    isSame = message.Data.Count == large.Length && message.Data.SequenceEqual(large);
                else
                    order.Add(BitConverter.ToInt32(message.Data.Array, message.Data.Offset));
            };
            Runner.Equal(SendResult.Queued, pair.Mine.Send(1, MessageKind.Reliable, large, 0, large.Length, 5), "the large one");
            for (int i = 0; i < 500; i++)
            {
                Runner.Equal(SendResult.Queued, pair.Mine.Send(0, MessageKind.ReliableOrdered, BitConverter.GetBytes(i)), "an ordered one");
                pair.Step();
            }
            pair.Until(() => order.Count == 500 && isSame, "all of them", 60);
            Runner.True(order.SequenceEqual(Enumerable.Range(0, 500)), "their order");
            pair.Until(() => pair.Events.Any(e => e.Type == MessageEventType.Acked && e.Receipt == 5), "the receipt");
            Runner.True(pair.Events.Any(e => e.Type == MessageEventType.Progress && e.Bytes == large.Length && e.BytesDone > 0), "progress");
            MessagesStats stats;
            MessagesChannelStats channel;
            pair.Mine.GetStats(out stats);
            pair.Mine.GetChannelStats(0, out channel);
            Runner.True(stats.PacketsLost > 0 && stats.ReliableRetriesTotal > 0 && stats.Rtt > 0.05 && stats.MessagesSent >= 501, "statistics");
            Runner.True(channel.QueuedMessages == 0 && stats.Drops(MessagesDropReason.Header) == 0, "the queue is empty");
        }
    }

    private sealed class Sink : MessageStreamSink
    {
        internal readonly MemoryStream Data = new MemoryStream();
        internal string Ended;
        internal Func<bool> OnWrite = () => true;

        protected internal override bool Write(uint offset, byte[] buffer, int count)
        {
            Data.Position = offset;
            Data.Write(buffer, 0, count);
            return OnWrite();
        }

        protected internal override void End(bool isComplete) { Ended = isComplete ? "complete" : "not complete"; }
    }

    public static void streams_of_arrays_and_files_arrive_whole()
    {
        var sinks = new List<Sink>();
        var asked = new List<string>();
        var receiver = new MessagesConfig
        {
            AcceptStream = (self, channel, bytes, tag) =>
            {
                asked.Add(channel + " " + bytes + " " + tag);
                if (tag == 9)
                    return null;
                sinks.Add(new Sink());
                return sinks.Last();
            }
        };
        using (var pair = new Pair(null, receiver))
        {
            pair.World.Simulator.PacketLossPercent = 5;
            pair.World.Simulator.LatencyMilliseconds = 10;
            var data = new byte[300000];
            new Random(2).NextBytes(data);
            var file = new MemoryStream(data) { Position = 100000 };
            Runner.Equal(SendResult.Queued, pair.Mine.SendStream(3, data, 1, 77), "an array");
            Runner.Equal(SendResult.Queued, pair.Mine.SendStream(4, MessageStreamSource.FromStream(file), 50000, 2, 77), "a file, with the same receipt");
            Runner.Equal(SendResult.Queued, pair.Mine.SendStream(5, data, 9, 78), "one that is refused");
            pair.Until(() => sinks.Count == 2 && sinks.All(sink => sink.Ended != null) && pair.Events.Count(e => e.Type != MessageEventType.Progress) == 3, "all", 120);
            Runner.Equal("3 300000 1, 4 50000 2, 5 300000 9", string.Join(", ", asked.OrderBy(text => text)), "what was asked");
            Sink first = sinks.First(sink => sink.Data.Length == 300000), second = sinks.First(sink => sink.Data.Length == 50000);
            Runner.True(first.Ended == "complete" && first.Data.ToArray().SequenceEqual(data), "the array");
            Runner.True(second.Ended == "complete" && second.Data.ToArray().SequenceEqual(data.Skip(100000).Take(50000)), "the file");
            var ends = pair.Events.Where(e => e.Type != MessageEventType.Progress).ToArray();
            Runner.Equal(2, ends.Count(e => e.Type == MessageEventType.Acked && e.Receipt == 77 && e.Kind == MessageKind.Stream), "receipts");
            Runner.Equal(1, ends.Count(e => e.Type == MessageEventType.Lost && e.Receipt == 78), "the refused one is lost");
            Runner.True(pair.Events.Any(e => e.Type == MessageEventType.Progress && e.Bytes == 300000 && e.BytesDone > 0 && e.Receipt == 77), "progress");
        }
    }

    private sealed class Broken : MessageStreamSource
    {
        protected internal override void Read(uint offset, byte[] buffer, int count)
        {
            if (offset > 5000)
                throw new IOException("the disk is gone");
        }
    }

    public static void streams_end_early_by_cancelling_by_exceptions_and_by_disposing()
    {
        var sinks = new List<Sink>();
        NetcodeMessages theirs = null;
        var receiver = new MessagesConfig
        {
            AcceptStream = (self, channel, bytes, tag) =>
            {
                var sink = new Sink();
                if (tag == 3)
                    sink.OnWrite = () => { throw new IOException("full"); };
                if (tag == 4)
                    sink.OnWrite = () => { Message message; theirs.TryReceive(out message); return true; };
                if (tag == 5)
                    throw new InvalidDataException("not this one");
                sinks.Add(sink);
                return sink;
            }
        };
        using (var pair = new Pair(null, receiver))
        {
            theirs = pair.Theirs;
            Runner.Equal(SendResult.Queued, pair.Mine.SendStream(0, new byte[10000000], 1, 11), "a long one");
            for (int i = 0; i < 30; i++)
                pair.Step();
            Runner.True(!pair.Mine.CancelStream(12) && pair.Mine.CancelStream(11), "it is cancelled");
            pair.Until(() => sinks[0].Ended == "not complete" && pair.Events.Any(e => e.Type == MessageEventType.Lost && e.Receipt == 11), "its ends");

            pair.Mine.SendStream(0, new Broken(), 1000000, 2, 21);
            var error = Runner.Throws<IOException>(() => pair.Until(() => false, "the exception of a source"), "a source that throws");
            Runner.Equal("the disk is gone", error.Message, "its exception");
            pair.Until(() => sinks.Count > 1 && sinks[1].Ended == "not complete" && pair.Events.Any(e => e.Type == MessageEventType.Lost && e.Receipt == 21), "it is cancelled");

            pair.Mine.SendStream(0, new byte[100000], 3, 31);
            Runner.Throws<IOException>(() => pair.Until(() => false, "the exception of a sink"), "a sink that throws");
            pair.Until(() => pair.Events.Any(e => e.Type == MessageEventType.Lost && e.Receipt == 31), "the sender hears of it");
            pair.Mine.SendStream(0, new byte[100000], 4, 41);
            Runner.Throws<InvalidOperationException>(() => pair.Until(() => false, "a sink that receives"), "a stream's function may only send");
            pair.Mine.SendStream(0, new byte[100000], 5, 51);
            Runner.Throws<InvalidDataException>(() => pair.Until(() => false, "the exception of accept"), "accept throws");
            pair.Until(() => pair.Events.Any(e => e.Type == MessageEventType.Lost && e.Receipt == 51), "which refuses it");

            pair.Mine.SendStream(0, new byte[10000000], 6, 61);
            pair.Until(() => sinks.Last().Data.Length > 0 && sinks.Last().Ended == null, "one that is there in part");
            pair.Theirs.Dispose();
            Runner.Equal("not complete", sinks.Last().Ended, "a sink of disposed messages");
        }
    }

    public static void a_reset_loses_what_waits_and_a_new_connection_starts_anew()
    {
        using (var pair = new Pair())
        {
            pair.Mine.Send(0, MessageKind.Reliable, new byte[10], 0, 10, 1);
            pair.Mine.SendStream(0, new byte[1000], 1, 2);
            pair.Mine.Reset(pair.World.Time);
            pair.Step();
            Runner.Equal("1 2", string.Join(" ", pair.Events.Where(e => e.Type == MessageEventType.Lost).Select(e => e.Receipt).OrderBy(r => r)), "lost");
            pair.Mine.Send(0, MessageKind.Reliable, new byte[] { 7 });
            pair.Client.Disconnect();
            pair.Step();
            pair.Client.Connect(pair.World.Token());
            pair.Until(() => pair.Client.IsConnected, "connected again");
            pair.Mine.Send(0, MessageKind.ReliableOrdered, new byte[] { 8 });
            pair.Until(() => pair.Heard.Contains("0 ReliableOrdered 1 8"), "the new connection's message");
        }
    }

    public static void packets_of_your_own_network_carry_messages()
    {
        var packet = new byte[1200];
        using (var left = new NetcodeMessages(new MessagesConfig { Congestion = Congestion.None }, 0))
        using (var right = new NetcodeMessages(new MessagesConfig { Congestion = Congestion.None }, 0))
        {
            int received = 0;
            Message message;
            for (int i = 0; i < 200; i++)
            {
                double time = i / 60.0;
                left.Send(0, MessageKind.ReliableOrdered, new byte[] { (byte)i });
                left.Flush();
                foreach (NetcodeMessages[] pair in new[] { new[] { left, right }, new[] { right, left } })
                {
                    pair[1].SetTime(time);
                    for (int bytes; (bytes = pair[0].GeneratePacket(packet)) > 0;)
                        if (i % 3 != 0) // each third is lost
                            Runner.Equal(MessagesDropReason.None, pair[1].ProcessPacket(packet, 0, bytes), "processed");
                    pair[1].Update(time);
                }
                while (right.TryReceive(out message))
                    Runner.Equal((byte)received++, message.Data.Array[0], "in order");
            }
            Runner.True(received > 150 && left.NextDeadline < 3700, "received " + received);
        }
    }

    public static void the_buffer_fills_and_says_so()
    {
        using (var messages = new NetcodeMessages(new MessagesConfig { MaxMessageBytes = 1000, SendBufferBytes = 70000 }, 0))
        {
            int sent = 0;
            while (messages.Send(0, MessageKind.Reliable, new byte[1000]) == SendResult.Queued)
                sent++;
            Runner.True(sent > 20 && messages.Send(0, MessageKind.Reliable, new byte[1000]) == SendResult.Full, "full after " + sent);
        }
    }
}
