// What host and clients share: the rules, and how messages look. In whole numbers, so that all machines agree.

using System;

/// <summary>Where a player stands, in centimetres.</summary>
public struct PlayPosition
{
    public int X, Z;
}

/// <summary>What a player does in one step.</summary>
public struct PlayInput
{
    public sbyte X, Z; // -1, 0 or 1
}

public static class PlayRules
{
    public const ulong ProtocolId = 0x506c617900000001; // another for each change of this file
    public const int InputChannel = 0, StateChannel = 1, Channels = 2;
    public const int Slots = 16;
    public const int Redundancy = 8; // inputs in a message: each is sent so often before it is given up
    public const int Speed = 8;      // centimetres a step, of which there are Time.fixedDeltaTime's
    public const int Edge = 1000;

    /// <summary>One step of one player: the host runs it for all, a client for its own player at once.</summary>
    public static void Step(ref PlayPosition position, PlayInput input)
    {
        position.X = Math.Max(-Edge, Math.Min(Edge, position.X + Speed * input.X));
        position.Z = Math.Max(-Edge, Math.Min(Edge, position.Z + Speed * input.Z));
    }

    public static PlayPosition Start(int slot) { return new PlayPosition { X = 150 * (slot % 4) - 225, Z = 150 * (slot / 4) - 225 }; }

    // Inputs: the newest one's tick, how many, and they, the newest first. States: the newest input that is in them, how many, and for each its
    // slot and place.

    public static int WriteNumber(byte[] data, int at, uint value)
    {
        for (int i = 0; i < 4; i++)
            data[at + i] = (byte)(value >> 8 * i);
        return at + 4;
    }

    public static uint ReadNumber(byte[] data, int at)
    {
        return data[at] | (uint)data[at + 1] << 8 | (uint)data[at + 2] << 16 | (uint)data[at + 3] << 24;
    }

    public static int WritePlayer(byte[] data, int at, int slot, PlayPosition position)
    {
        data[at] = (byte)slot;
        data[at + 1] = (byte)position.X;
        data[at + 2] = (byte)(position.X >> 8);
        data[at + 3] = (byte)position.Z;
        data[at + 4] = (byte)(position.Z >> 8);
        return at + 5;
    }

    public static int ReadPlayer(byte[] data, int at, out int slot, out PlayPosition position)
    {
        slot = data[at];
        position = new PlayPosition { X = (short)(data[at + 1] | data[at + 2] << 8), Z = (short)(data[at + 3] | data[at + 4] << 8) };
        return at + 5;
    }
}
