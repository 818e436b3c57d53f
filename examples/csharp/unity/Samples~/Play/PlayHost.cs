// A host: put it on a GameObject. It runs the rules for all players; it draws nothing. The player at the same machine has a PlayClient beside it,
// with a token of MakeToken. A dedicated server is the same component in a build without graphics.

using System;
using NetcodeH;
using UnityEngine;

public class PlayHost : MonoBehaviour
{
    private sealed class Player
    {
        public bool IsThere;
        public NetcodeMessages Messages;
        public PlayPosition Position;
        public uint NewestInput; // the newest that was run
        public int Credit;       // inputs that it may run now: who sends more than time allows is not faster for that
    }

    public string address = "127.0.0.1:40000"; // as tokens name it
    public string bindAddress = "";            // behind a NAT: what to bind here
    public bool logDrops;

    private NetcodeServer server;
    private byte[] key;
    private double time;
    private readonly Player[] players = new Player[PlayRules.Slots];
    private readonly byte[] buffer = new byte[1100];
    private readonly PlayInput[] inputs = new PlayInput[PlayRules.Redundancy];

    /// <summary>The server, for statistics.</summary>
    public NetcodeServer Server { get { return server; } }

    public PlayPosition PositionOf(int slot) { return players[slot].Position; }

    private void Awake()
    {
        // A game with a backend has the backend's key here, from its configuration. This host makes the tokens of its guests itself.
        key = NetcodeLibrary.GenerateKey();
        var config = new ServerConfig { ProtocolId = PlayRules.ProtocolId, PrivateKey = key, Roaming = true, ReplaceExistingClients = true, BatchSends = true };
        if (bindAddress.Length > 0)
            config.BindAddress = bindAddress;
        config.Log = (level, text) => Debug.Log("netcode: " + text);
        if (logDrops)
            config.Dropped = (reason, from, bytes) => Debug.Log("dropped from " + from + ": " + reason.Text());
        server = new NetcodeServer(address, config, time);
        server.Start(PlayRules.Slots);
        for (int i = 0; i < players.Length; i++)
            players[i] = new Player { Messages = new NetcodeMessages(new MessagesConfig { Channels = PlayRules.Channels, MaxMessageBytes = 2048 }, time) };
    }

    /// <summary>A guest's invitation, as text, for a minute. It goes over a channel that others can not read: it is as good as a password.</summary>
    public string MakeToken(ulong clientId)
    {
        return ConnectToken.Generate(new[] { address }, clientId, PlayRules.ProtocolId, key, 60, 10).ToBase64();
    }

    private void FixedUpdate()
    {
        NetcodeEvent e;
        time += Time.fixedDeltaTime;
        server.Update(time);
        while (server.NextEvent(out e))
            if (e.Type == NetcodeEventType.Connected)
                players[e.ClientIndex].IsThere = Join(e.ClientIndex);
            else if (e.Type == NetcodeEventType.Disconnected)
                players[e.ClientIndex].IsThere = false;

        for (int i = 0; i < players.Length; i++)
            Receive(i);
        for (int i = 0; i < players.Length; i++)
            Send(i);
        server.Flush();
    }

    private bool Join(int slot)
    {
        players[slot].Position = PlayRules.Start(slot);
        players[slot].NewestInput = 0;
        players[slot].Credit = PlayRules.Redundancy;
        return true;
    }

    private void Receive(int slot)
    {
        Message message;
        Player player = players[slot];
        player.Credit = Math.Min(player.Credit + 1, PlayRules.Redundancy);
        player.Messages.ReceiveFrom(server, slot, time);
        while (player.Messages.TryReceive(out message))
            if (player.IsThere && message.Channel == PlayRules.InputChannel)
                RunInputs(player, message.Data);
    }

    // Each input once, in order. What does not read as it should is not used: it comes from a player's machine.
    private void RunInputs(Player player, ArraySegment<byte> data)
    {
        int at = data.Offset + 5, count = data.Count >= 5 ? data.Array[data.Offset + 4] : 0;
        if (count < 1 || count > PlayRules.Redundancy || data.Count != 5 + 2 * count)
            return;
        uint newest = PlayRules.ReadNumber(data.Array, data.Offset);
        for (int i = 0; i < count; i++)
        {
            inputs[i].X = (sbyte)Math.Sign((sbyte)data.Array[at++]);
            inputs[i].Z = (sbyte)Math.Sign((sbyte)data.Array[at++]);
        }
        for (int i = count - 1; i >= 0; i--)
        {
            uint tick = newest - (uint)i;
            if (tick > newest || tick <= player.NewestInput || player.Credit == 0)
                continue;
            PlayRules.Step(ref player.Position, inputs[i]);
            player.NewestInput = tick;
            player.Credit--;
        }
    }

    private void Send(int slot)
    {
        Player player = players[slot];
        if (player.IsThere)
        {
            int at = PlayRules.WriteNumber(buffer, 0, player.NewestInput) + 1, count = 0;
            for (int i = 0; i < players.Length; i++)
                if (players[i].IsThere)
                {
                    at = PlayRules.WritePlayer(buffer, at, i, players[i].Position);
                    count++;
                }
            buffer[4] = (byte)count;
            player.Messages.Send(PlayRules.StateChannel, MessageKind.UnreliableSequenced, buffer, 0, at);
        }
        player.Messages.SendTo(server, slot, time);
    }

    private void OnDestroy()
    {
        if (server == null)
            return;
        foreach (Player player in players)
            player.Messages.Dispose();
        server.Dispose();
    }
}
