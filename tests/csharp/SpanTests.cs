#if NETSTANDARD2_1_OR_GREATER
// The calls with spans, which newer runtimes have: the tests are compiled with them, Netcode.cs once more without.

using System;
using NetcodeH;

internal static class SpanTests
{
    public static void spans_are_sent_as_arrays_are()
    {
        using (var world = new World())
        using (var mine = new NetcodeMessages(null, 0))
        {
            NetcodeClient client = world.Connected();
            var data = new byte[] { 1, 2, 3, 4 };
            NetcodeEvent e;
            client.Send(new ReadOnlySpan<byte>(data, 1, 2));
            world.Step();
            world.Step();
            while (world.Server.NextEvent(out e) && e.Type != NetcodeEventType.Payload)
                ;
            Runner.True(e.Payload.Count == 2 && e.Payload.Array[0] == 2, "to the server");
            world.Server.Send(0, new ReadOnlySpan<byte>(data, 2, 1));
            world.Server.SendToSession(0, world.Server[0].Session, new ReadOnlySpan<byte>(data, 3, 1));
            world.Server.Broadcast(new ReadOnlySpan<byte>(data));
            string got = "";
            for (int i = 0; i < 3; i++)
            {
                world.Step();
                while (client.NextEvent(out e))
                    if (e.Type == NetcodeEventType.Payload)
                        got += e.Payload.Array[0] + "/" + e.Payload.Count + " ";
            }
            Runner.Equal("3/1 4/1 1/4 ", got, "to the client");
            Runner.Equal(SendResult.Queued, mine.Send(0, MessageKind.Reliable, new ReadOnlySpan<byte>(data)), "a message");
            Runner.Equal(SendResult.Queued, mine.Send(0, MessageKind.Reliable, ReadOnlySpan<byte>.Empty), "an empty message");
            Runner.Throws<ArgumentOutOfRangeException>(() => client.Send(ReadOnlySpan<byte>.Empty), "an empty payload");
            mine.Dispose();
            Runner.Throws<ObjectDisposedException>(() => mine.Send(0, MessageKind.Reliable, new ReadOnlySpan<byte>(data)), "after Dispose");
            Runner.Throws<ArgumentOutOfRangeException>(() => world.Server.Send(9, new ReadOnlySpan<byte>(data)), "a slot");
        }
    }
}
#endif
