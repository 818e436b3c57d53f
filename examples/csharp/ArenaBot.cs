// A player of the arena (examples/arena) in C#: joins its server, walks, shoots at whom it sees, and says what it got. It shows how a C# game
// reads and writes packets of bits, acknowledges snapshots, and keeps its commands a little ahead of the server's clock.
//
//     build/arena-server &
//     mcs -unsafe -out:build/csharp/ArenaBot.exe examples/csharp/Netcode.cs examples/csharp/ArenaBot.cs
//     mono build/csharp/ArenaBot.exe --address 127.0.0.1:40000 --name Csharp --seconds 60
//
// The messages are those of examples/arena/arena_net.h, bit for bit; its names are used here.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;
using NetcodeH;

// ---- bits.h ----

// Both are sticky: after the first failure reads return the lowest value that was asked for, and the end reports it.
internal sealed class BitWriter
{
    private readonly byte[] data;
    private int at;
    private bool hasFailed;

    internal BitWriter(byte[] data) { this.data = data; }

    internal void Begin()
    {
        at = 0;
        hasFailed = false;
    }

    internal static int Needed(uint most)
    {
        int count = 0;
        for (; most != 0; most >>= 1)
            count++;
        return count;
    }

    internal void Write(uint value, int count)
    {
        if (hasFailed || count > data.Length * 8 - at)
        {
            hasFailed = true;
            return;
        }
        for (int i = 0; i < count; i++, at++)
        {
            if ((at & 7) == 0)
                data[at >> 3] = 0;
            if ((value >> i & 1) != 0)
                data[at >> 3] |= (byte)(1 << (at & 7));
        }
    }

    internal void WriteRange(int value, int lowest, int highest)
    {
        if (value < lowest || value > highest)
            hasFailed = true;
        else
            Write((uint)(value - lowest), Needed((uint)(highest - lowest)));
    }

    // The bytes, or -1.
    internal int End() { return hasFailed ? -1 : (at + 7) / 8; }
}

internal sealed class BitReader
{
    private const int Near = 16;
    private byte[] data;
    private int at, end;
    private bool hasFailed;

    internal void Begin(ArraySegment<byte> bytes)
    {
        data = bytes.Array;
        at = bytes.Offset * 8;
        end = at + bytes.Count * 8;
        hasFailed = false;
    }

    internal uint Read(int count)
    {
        uint value = 0;
        if (hasFailed || count > end - at)
        {
            hasFailed = true;
            return 0;
        }
        for (int i = 0; i < count; i++, at++)
            value |= (uint)(data[at >> 3] >> (at & 7) & 1) << i;
        return value;
    }

    internal int ReadRange(int lowest, int highest)
    {
        uint width = (uint)(highest - lowest), value = Read(BitWriter.Needed(width));
        if (value > width)
            hasFailed = true;
        return hasFailed ? lowest : lowest + (int)value;
    }

    internal int ReadDifference(int last, int lowest, int highest)
    {
        int value = last;
        if (Read(1) != 0)
        {
            if (Read(1) != 0)
                return ReadRange(lowest, highest);
            value += (int)Read(5) - Near;
        }
        if (value < lowest || value > highest)
            hasFailed = true;
        return hasFailed ? lowest : value;
    }

    // Nothing failed, and what is left is less than a byte and all zeros.
    internal bool End()
    {
        int left = end - at;
        return !hasFailed && left < 8 && Read(left) == 0 && !hasFailed;
    }
}

// ---- arena_net.h ----

internal struct PlayerView
{
    internal bool IsThere;
    internal int Health, Aim, Rapid, Score, X, Y; // X and Y in eighths

    // What the first snapshot is a difference to: no player, in the middle.
    internal static readonly PlayerView None = new PlayerView
    {
        Health = Arena.FullHealth,
        X = Arena.Width / Arena.Grain / 2,
        Y = Arena.Height / Arena.Grain / 2
    };
}

internal sealed class Snapshot
{
    internal uint Tick; // 0: none
    internal uint Items;
    internal readonly PlayerView[] Players = new PlayerView[Arena.Players];

    internal void CopyFrom(Snapshot other)
    {
        Tick = other.Tick;
        Items = other.Items;
        Array.Copy(other.Players, Players, Players.Length);
    }
}

internal struct OwnState
{
    internal int Margin;
    internal bool IsThere;
    internal int X, Y, Health, Score;
}

internal static class Arena
{
    internal const ulong ProtocolId = 0x4172656e61000001;
    internal const int Commands = 0, Snapshots = 1, Channels = 5;
    internal const int Hz = 60, Players = 64, Width = 64 * 256, Height = 40 * 256, Items = 16, FullHealth = 100, MaxScore = 1023;
    internal const int ReloadTicks = 15, RespawnTicks = 120, RapidTicks = 300;
    internal const int Grain = 8, AimGrain = 4, Kept = 32, Redundancy = 12, NoSnapshot = 1023, MaxMargin = 30, NoMargin = 31;
    internal const int MessageBytes = 1100, NameBytes = 15;
    internal const uint MapTag = 1, MapBytes = 65 * 40;
    internal const int Up = 1, Down = 2, Left = 4, Right = 8, Fire = 16, AllButtons = 31;

    private static void ReadView(BitReader reader, ref PlayerView view)
    {
        view.IsThere = true;
        view.X = reader.ReadDifference(view.X, 0, Width / Grain - 1);
        view.Y = reader.ReadDifference(view.Y, 0, Height / Grain - 1);
        view.Aim = reader.ReadDifference(view.Aim, 0, 255 / AimGrain);
        if (reader.Read(1) == 0)
            return;
        view.Health = reader.ReadRange(0, FullHealth);
        view.Score = reader.ReadDifference(view.Score, 0, MaxScore);
        view.Rapid = reader.ReadRange(0, 1);
    }

    private static void ReadOwn(BitReader reader, out OwnState own)
    {
        own = default(OwnState);
        own.Margin = reader.ReadRange(-MaxMargin, NoMargin);
        own.IsThere = reader.ReadRange(0, 1) != 0;
        if (!own.IsThere)
            return;
        own.X = reader.ReadRange(0, Width - 1);
        own.Y = reader.ReadRange(0, Height - 1);
        reader.Read(8); // its aim
        own.Health = reader.ReadRange(0, FullHealth);
        reader.ReadRange(0, ReloadTicks);
        reader.ReadRange(0, RespawnTicks);
        reader.ReadRange(0, RapidTicks);
        own.Score = reader.ReadRange(0, MaxScore);
    }

    // False: it is none, or a difference to a snapshot that is not in `kept`.
    internal static bool ReadSnapshot(BitReader reader, Snapshot[] kept, Snapshot snapshot, out OwnState own)
    {
        uint tick = reader.Read(32), age = reader.Read(7);
        own = default(OwnState);
        snapshot.CopyFrom(nothing);
        if (age != 0)
        {
            Snapshot last = Array.Find(kept, one => one.Tick != 0 && one.Tick == tick - age);
            if (last == null)
                return false;
            snapshot.CopyFrom(last);
        }
        snapshot.Tick = tick;
        ReadOwn(reader, out own);
        if (reader.Read(1) != 0)
            snapshot.Items = reader.Read(Items);
        for (int i = 0; i < Players; i++)
        {
            if (reader.Read(1) == 0)
                continue;
            bool isThere = reader.Read(1) != 0;
            if (!isThere)
                snapshot.Players[i] = default(PlayerView);
            else if (!snapshot.Players[i].IsThere)
                snapshot.Players[i] = PlayerView.None;
            if (isThere)
                ReadView(reader, ref snapshot.Players[i]);
        }
        return reader.End() && tick > 0;
    }

    private static readonly Snapshot nothing = new Snapshot();
}

// ---- the bot ----

internal sealed class ArenaBot : IDisposable
{
    private struct Command
    {
        internal int Buttons, Aim;
    }

    private readonly NetcodeClient client;
    private readonly NetcodeMessages messages;
    private readonly Snapshot[] kept = new Snapshot[Arena.Kept];
    private readonly Snapshot snapshot = new Snapshot(), newest = new Snapshot();
    private readonly Command[] commands = new Command[Arena.Redundancy]; // of tick t at t % Redundancy
    private readonly byte[] packet = new byte[Arena.MessageBytes];
    private readonly BitReader reader = new BitReader();
    private readonly BitWriter writer;
    private readonly Random random = new Random(1);
    private ArraySink map;
    private OwnState own;
    private int nextKept;
    private uint commandTick;
    private double arrival, ahead = 4; // ticks: when the newest snapshot came, at time 0; how far commands are ahead of it
    private uint settled;              // commands up to this tick were made before `ahead` was last changed at once
    private double goalTime;
    private int buttons;

    internal int SnapshotCount, Unreadable, Late, Reported;
    internal double Moved;
    internal int MostPlayers;

    internal ArenaBot(string address, string name, ulong id, double time)
    {
        // The key that everybody has, for one machine without a backend: examples/arena/dev_token.h.
        var key = new byte[NetcodeLibrary.KeyBytes];
        for (int i = 0; i < key.Length; i++)
            key[i] = (byte)(0x80 + i);
        writer = new BitWriter(packet);
        for (int i = 0; i < kept.Length; i++)
            kept[i] = new Snapshot();
        client = new NetcodeClient("127.0.0.1:0", new ClientConfig { BatchSends = true }, time);
        messages = new NetcodeMessages(new MessagesConfig
        {
            Channels = Arena.Channels,
            MaxMessageBytes = 2 * Arena.MessageBytes,
            AcceptStream = (self, channel, bytes, tag) => tag == Arena.MapTag && bytes == Arena.MapBytes ? map = new ArraySink(bytes) : null
        }, time);
        client.Connect(ConnectToken.Generate(new[] { address }, id, Arena.ProtocolId, key, 60, 10, Encoding.UTF8.GetBytes(name)));
    }

    internal NetcodeClient Client { get { return client; } }
    internal bool HasMap { get { return map != null && map.IsComplete; } }
    internal bool IsPlaying { get { return HasMap && own.IsThere && client.IsConnected; } }
    internal OwnState Own { get { return own; } }

    // Each frame.
    internal void Update(double time)
    {
        Message message;
        client.Update(time);
        messages.ReceiveFrom(client, time);
        while (messages.TryReceive(out message))
            if (message.Channel == Arena.Snapshots)
                TakeSnapshot(message.Data, time);
        if (IsPlaying)
            MakeCommands(time);
        messages.SendTo(client, time);
        client.Flush();
    }

    private void TakeSnapshot(ArraySegment<byte> data, double time)
    {
        OwnState before = own, now;
        reader.Begin(data);
        if (!Arena.ReadSnapshot(reader, kept, snapshot, out now) || snapshot.Tick <= newest.Tick)
        {
            Unreadable++;
            return;
        }
        kept[nextKept++ % Arena.Kept].CopyFrom(snapshot);
        newest.CopyFrom(snapshot);
        own = now;
        double off = snapshot.Tick - (time * Arena.Hz + arrival);
        arrival += SnapshotCount++ == 0 || Math.Abs(off) > 15 ? off : off * 0.05;
        Steer();

        int step = Math.Abs(now.X - before.X) + Math.Abs(now.Y - before.Y), players = 0;
        if (before.IsThere && now.IsThere && before.Health > 0 && now.Health > 0 && step < 512)
            Moved += step;
        foreach (PlayerView view in newest.Players)
            players += view.IsThere ? 1 : 0;
        MostPlayers = Math.Max(MostPlayers, players);
    }

    // The server reports how early the newest commands came, in ticks: two would be right.
    private void Steer()
    {
        if (commandTick == 0 || own.Margin == Arena.NoMargin)
            return;
        if (SnapshotCount > Arena.Hz) // the first two seconds find the right pace
        {
            Reported++;
            Late += own.Margin < 0 ? 1 : 0;
        }
        double wrong = 2 - own.Margin;
        if (Math.Abs(wrong) <= 4)
        {
            ahead += wrong * 0.03;
        }
        else if (newest.Tick + own.Margin > settled)
        {
            ahead += wrong;
            settled = commandTick + 1;
        }
        ahead = Math.Min(Math.Max(ahead, 1), 100);
    }

    private void MakeCommands(double time)
    {
        double clock = time * Arena.Hz + arrival + ahead;
        uint until = clock > 0 ? (uint)clock : 0;
        if (until > commandTick + 30 || commandTick == 0)
            commandTick = until - 1; // the clock was set: what lies between was never played
        if (until <= commandTick)
            return;
        while (commandTick < until)
            commands[++commandTick % Arena.Redundancy] = Play(time);

        uint age = newest.Tick != 0 && newest.Tick <= commandTick && commandTick - newest.Tick < Arena.NoSnapshot ? commandTick - newest.Tick : Arena.NoSnapshot;
        int count = (int)Math.Min(Math.Min(commandTick - Math.Min(newest.Tick, commandTick - 1), (uint)Arena.Redundancy), commandTick);
        writer.Begin();
        writer.Write(commandTick, 32);
        writer.Write(age, 10);
        writer.WriteRange(count, 1, Arena.Redundancy);
        for (uint i = 0; i < count; i++)
        {
            Command command = commands[(commandTick - i) % Arena.Redundancy];
            if (i > 0)
            {
                Command last = commands[(commandTick - i + 1) % Arena.Redundancy];
                bool isSame = command.Buttons == last.Buttons && command.Aim == last.Aim;
                writer.Write(isSame ? 1u : 0u, 1);
                if (isSame)
                    continue;
            }
            else
            {
                writer.Write(0, 1);
            }
            writer.WriteRange(command.Buttons, 0, Arena.AllButtons);
            writer.Write((uint)command.Aim, 8);
            writer.Write(0, 8); // it sees others as they were in the newest snapshot
        }
        int bytes = writer.End();
        if (bytes > 0)
            messages.Send(Arena.Commands, MessageKind.Unreliable, packet, 0, bytes);
    }

    // Walks in a direction for a while, and shoots at the nearest other.
    private Command Play(double time)
    {
        if (time >= goalTime)
        {
            goalTime = time + 0.3 + random.NextDouble();
            buttons = new[] { Arena.Up, Arena.Down, Arena.Left, Arena.Right, Arena.Up | Arena.Right, Arena.Down | Arena.Left }[random.Next(6)];
        }
        double nearest = 20 * 256;
        var command = new Command { Buttons = buttons };
        for (int i = 0; i < Arena.Players; i++)
        {
            PlayerView other = newest.Players[i];
            if (i == client.Index || !other.IsThere || other.Health == 0)
                continue;
            double x = other.X * Arena.Grain - own.X, y = other.Y * Arena.Grain - own.Y, distance = Math.Sqrt(x * x + y * y);
            if (distance >= nearest)
                continue;
            nearest = distance;
            command.Buttons = buttons | Arena.Fire;
            command.Aim = ((int)(Math.Atan2(y, x) * 128 / Math.PI) + 256) % 256;
        }
        return command;
    }

    public void Dispose()
    {
        messages.Dispose();
        client.Dispose();
    }
}

internal static class ArenaBotProgram
{
    private const string Usage = "ArenaBot: a player for an arena on this machine that runs without --key-file\n" +
        "  --address A   127.0.0.1:40000; the server\n" +
        "  --name N      what others see, up to 15 bytes; Csharp\n" +
        "  --id N        its client id; 500\n" +
        "  --seconds S   how long it plays; 60\n";

    private static int Main(string[] arguments)
    {
        string address = "127.0.0.1:40000", name = "Csharp";
        ulong id = 500;
        double seconds = 60;
        Address parsed;
        bool isGood = arguments.Length % 2 == 0;
        for (int i = 0; isGood && i < arguments.Length; i += 2)
            switch (arguments[i])
            {
                case "--address": address = arguments[i + 1]; break;
                case "--name": name = arguments[i + 1]; break;
                case "--id": isGood = ulong.TryParse(arguments[i + 1], out id); break;
                case "--seconds":
                    isGood = double.TryParse(arguments[i + 1], NumberStyles.Float, CultureInfo.InvariantCulture, out seconds) && seconds > 0;
                    break;
                default: isGood = false; break;
            }
        if (!isGood || !Address.TryParse(address, out parsed) || parsed.Port == 0 || name.Length == 0 || Encoding.UTF8.GetByteCount(name) > Arena.NameBytes)
        {
            Console.Error.Write(Usage);
            return 2;
        }

        using (var bot = new ArenaBot(address, name, id, NetcodeLibrary.Time))
        {
            double start = NetcodeLibrary.Time;
            bool hasPlayed = false;
            while (NetcodeLibrary.Time - start < seconds && !bot.Client.HasFailed)
            {
                bot.Update(NetcodeLibrary.Time);
                if (bot.IsPlaying && !hasPlayed)
                    Console.WriteLine("playing in slot " + bot.Client.Index + " at " + bot.Own.X + ", " + bot.Own.Y);
                hasPlayed |= bot.IsPlaying;
                bot.Client.Wait(1.0 / 120);
            }
            if (!bot.IsPlaying)
            {
                Console.Error.WriteLine("ArenaBot: " + bot.Client.GetReport().Text);
                return 1;
            }
            Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
                "summary snapshots={0} unreadable={1} players={2} moved={3:0} score={4} late_percent={5:0.0}",
                bot.SnapshotCount, bot.Unreadable, bot.MostPlayers, bot.Moved, bot.Own.Score, bot.Reported > 0 ? 100.0 * bot.Late / bot.Reported : 100.0));
            bot.Client.Disconnect();
        }
        return 0;
    }
}
