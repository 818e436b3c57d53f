// A client with prediction: put it on a GameObject, set the prefab of a player, and call Join with a token of your backend, or of a PlayHost.
// The own player moves at once; when the host's word comes, what was predicted since is run again from there. Others are drawn where they were heard
// to be last, smoothly.

using System;
using NetcodeH;
using UnityEngine;

public class PlayClient : MonoBehaviour
{
    public GameObject playerPrefab;
    public string bindAddress = "0.0.0.0";

    private NetcodeClient client;
    private NetcodeMessages messages;
    private double time;
    private uint tick, acknowledged;
    private PlayPosition own;
    private readonly PlayInput[] inputs = new PlayInput[128]; // of tick t at t % 128
    private readonly GameObject[] drawn = new GameObject[PlayRules.Slots];
    private readonly PlayPosition[] heard = new PlayPosition[PlayRules.Slots];
    private readonly bool[] isThere = new bool[PlayRules.Slots];
    private readonly byte[] buffer = new byte[64];
    private bool hasState, wasConnected;

    /// <summary>How often the host's word was not what had been predicted.</summary>
    public int Corrections { get; private set; }

    public bool IsPlaying { get { return client != null && client.IsConnected && hasState; } }
    public int Slot { get { return client.Index; } }
    public PlayPosition Own { get { return own; } }
    public PlayPosition Heard(int slot) { return heard[slot]; }

    /// <summary>Why the last attempt failed, for the player; null if it did not.</summary>
    public string Failure { get; private set; }

    private void Awake()
    {
        client = new NetcodeClient(bindAddress, new ClientConfig { BatchSends = true }, time);
        messages = new NetcodeMessages(new MessagesConfig { Channels = PlayRules.Channels, MaxMessageBytes = 2048 }, time);
    }

    /// <summary>Connects with a token as text.</summary>
    public void Join(string token)
    {
        Failure = null;
        try
        {
            client.Connect(ConnectToken.FromBase64(token));
        }
        catch (Exception exception) when (exception is FormatException || exception is ArgumentException)
        {
            Failure = "this is no invitation: " + exception.Message;
            Debug.LogWarning(Failure);
        }
    }

    public void Leave() { client.Disconnect(); }

    // On phones: a new network is noticed at once, and not a second later.
    private void OnApplicationFocus(bool hasFocus)
    {
        if (hasFocus && client != null && client.IsConnected)
            client.Rebind();
    }

    private void FixedUpdate()
    {
        Message message;
        time += Time.fixedDeltaTime;
        client.Update(time);
        messages.ReceiveFrom(client, time);
        if (client.IsConnected != wasConnected)
            Change();
        while (messages.TryReceive(out message))
            if (message.Channel == PlayRules.StateChannel)
                TakeState(message.Data);
        if (IsPlaying)
            Predict();
        messages.SendTo(client, time);
        client.Flush();
        if (client.HasFailed && Failure == null)
        {
            Failure = client.GetReport().Text;
            Debug.LogWarning(Failure);
        }
    }

    private void Change()
    {
        wasConnected = client.IsConnected;
        hasState = false;
        tick = acknowledged = 0;
        Array.Clear(isThere, 0, isThere.Length);
    }

    private void Predict()
    {
        var input = new PlayInput { X = (sbyte)Math.Sign(Input.GetAxisRaw("Horizontal")), Z = (sbyte)Math.Sign(Input.GetAxisRaw("Vertical")) };
        inputs[++tick % inputs.Length] = input;
        PlayRules.Step(ref own, input);

        int count = (int)Math.Min(tick - acknowledged, PlayRules.Redundancy), at = PlayRules.WriteNumber(buffer, 0, tick);
        buffer[at++] = (byte)count;
        for (uint i = 0; i < count; i++)
        {
            buffer[at++] = (byte)inputs[(tick - i) % inputs.Length].X;
            buffer[at++] = (byte)inputs[(tick - i) % inputs.Length].Z;
        }
        messages.Send(PlayRules.InputChannel, MessageKind.Unreliable, buffer, 0, at);
    }

    private void TakeState(ArraySegment<byte> data)
    {
        int at = data.Offset + 5, count = data.Count >= 5 ? data.Array[data.Offset + 4] : 0;
        uint newest = data.Count >= 5 ? PlayRules.ReadNumber(data.Array, data.Offset) : 0;
        if (count < 1 || data.Count != 5 + 5 * count || newest > tick || newest < acknowledged)
            return;
        acknowledged = newest;
        Array.Clear(isThere, 0, isThere.Length);
        for (int i = 0; i < count; i++)
        {
            int slot;
            PlayPosition position;
            at = PlayRules.ReadPlayer(data.Array, at, out slot, out position);
            if (slot >= PlayRules.Slots)
                return;
            heard[slot] = position;
            isThere[slot] = true;
            if (slot == client.Index)
                Reconcile(position);
        }
    }

    // From the host's word on, all inputs that it does not have yet once more.
    private void Reconcile(PlayPosition truth)
    {
        PlayPosition before = own;
        own = truth;
        if (tick - acknowledged < inputs.Length)
            for (uint i = acknowledged + 1; i <= tick; i++)
                PlayRules.Step(ref own, inputs[i % inputs.Length]);
        if (hasState && (own.X != before.X || own.Z != before.Z))
            Corrections++;
        hasState = true;
    }

    private void Update()
    {
        for (int i = 0; i < drawn.Length; i++)
        {
            bool isShown = IsPlaying && isThere[i];
            if (isShown && drawn[i] == null)
                drawn[i] = Instantiate(playerPrefab);
            if (drawn[i] == null)
                continue;
            drawn[i].SetActive(isShown);
            PlayPosition place = i == client.Index ? own : heard[i];
            var target = new Vector3(place.X * 0.01f, 0, place.Z * 0.01f);
            drawn[i].transform.position = Vector3.Lerp(drawn[i].transform.position, target, 1 - Mathf.Exp(-20 * Time.deltaTime));
        }
    }

    private void OnDestroy()
    {
        if (messages != null)
            messages.Dispose();
        if (client != null)
            client.Dispose();
    }
}
