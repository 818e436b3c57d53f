// netcode.h 1.1.0 for C#: secure client/server connections over UDP, with messages. One file to copy.
// MIT licence, as netcode.h. C# 7.2 or newer, .NET Standard 2.0 or newer; compile with unsafe code allowed.
//
// It needs the native library beside the program: libnetcode.so, netcode.dll or libnetcode.dylib, which build.sh makes of
// netcode.h and netcode_csharp.c. README.md says where Unity and NuGet want it.
//
// A server:
//
//     using (var server = new NetcodeServer("203.0.113.5:40000", new ServerConfig { ProtocolId = 1, PrivateKey = key }))
//     {
//         server.Start(16);
//         while (running)
//         {
//             server.Update();
//             NetcodeEvent e;
//             while (server.NextEvent(out e))
//                 if (e.Type == NetcodeEventType.Payload)
//                     server.Send(e.ClientIndex, e.Payload.Array, e.Payload.Offset, e.Payload.Count);
//             server.Wait(1.0 / 60);
//         }
//     }
//
// A client:
//
//     using (var client = new NetcodeClient())
//     {
//         client.Connect(token);                      // 2048 bytes from your backend, by HTTPS
//         while (client.IsConnected || client.IsConnecting)
//         {
//             client.Update();
//             NetcodeEvent e;
//             while (client.NextEvent(out e)) { ... }
//             client.Send(data);                      // does nothing while not connected
//             client.Wait(1.0 / 60);
//         }
//         client.ThrowIfFailed();                     // a NetcodeException that says why
//     }
//
// What the manual at the top of netcode.h says holds here too. What this file adds:
//
//   - Nothing is allocated per packet, message or event. What NextEvent, TryReceive and the like return lies in a buffer of the
//     object that the next such call on it overwrites: use it, or copy it.
//   - Objects are IDisposable. After Dispose every call throws ObjectDisposedException. Dispose inside a callback takes effect
//     when the outermost call on the object returns.
//   - An object that is forgotten is ended by its finalizer, when the collector comes to it: a client disconnects then, and a
//     server disconnects its clients. But no code of yours runs on the finalizer's thread: no callback, no log handler, and no
//     function of a NetcodeSocket of yours. Over such a socket nothing is sent: the other side waits for its timeout.
//   - Wrong arguments throw ArgumentException before the native library sees them.
//   - An exception that leaves one of your callbacks never crosses native code: it is thrown again by the call in which the
//     callback ran; if there were several, together in an AggregateException.
//   - An object is for one thread at a time. A second one that enters it meanwhile gets InvalidOperationException.
//   - Times are seconds on a clock of yours. Calls without a time use NetcodeLibrary.Time; use one of both for an object.
//   - Where the runtime has spans (.NET Standard 2.1, .NET Core), each call with an array has a twin with a span.

using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

#if !UNITY_5_3_OR_NEWER
namespace AOT
{
    /// <summary>Unity's compiler to native code looks for an attribute of this name on functions that C calls.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }
}
#endif

namespace NetcodeH
{
    // ---- library ----

    /// <summary>Sizes and limits, the clock, the random source, the log: what belongs to no object.</summary>
    public static unsafe class NetcodeLibrary
    {
        /// <summary>The version of netcode.h that this file was written for.</summary>
        public const string HeaderVersion = "1.1.0";

        public const int ConnectTokenBytes = 2048;
        public const int KeyBytes = 32;
        /// <summary>The authentication tag of a token, as the admit callback gets it.</summary>
        public const int MacBytes = 16;
        /// <summary>What C's admit callback returns for "no answer yet"; here that is null.</summary>
        public const int AdmitLater = -1;
        /// <summary>The application's own data inside a connect token.</summary>
        public const int UserDataBytes = 256;
        public const int MaxServersPerConnect = 32;
        public const int MaxSlots = 65535;
        /// <summary>The largest payload.</summary>
        public const int MaxPacketSize = 1200;
        public const int MaxAddressStringLength = 256;
        public const int MaxPrivateKeys = 4;
        public const int MaxPublicAddresses = 32;
        public const int PacketTypes = 7;
        /// <summary>The largest datagram: a payload with its header.</summary>
        public const int MaxDatagramBytes = 1225;

        private static readonly object gate = new object();
        private static bool loaded;
        private static int initialized; // by Initialize
        private static Action<string> logHandler;
        private static AssertHandler assertHandler;

        /// <summary>Initializes the library; calls are counted. It is optional: the first object does it.</summary>
        /// <exception cref="NetcodeException">The native library is of another version, or can not be initialized.</exception>
        /// <exception cref="DllNotFoundException">The native library was not found.</exception>
        public static void Initialize()
        {
            Load();
            lock (gate)
            {
                if (Native.netcode_init() != Native.Ok)
                    throw new NetcodeException("netcode_init failed: no random source, or no sockets");
                initialized++;
            }
        }

        /// <summary>Undoes one Initialize. The initialization that the first object made stays until the process ends.</summary>
        public static void Terminate()
        {
            lock (gate)
            {
                if (initialized == 0)
                    throw new InvalidOperationException("Terminate without Initialize");
                initialized--;
                Native.netcode_term();
            }
        }

        // Once: netcode_init, and the check that both sides have the same structs.
        internal static void Load()
        {
            if (Volatile.Read(ref loaded))
                return;
            lock (gate)
            {
                if (loaded)
                    return;
                Native.CheckLayout();
                if (Native.netcode_init() != Native.Ok)
                    throw new NetcodeException("netcode_init failed: no random source, or no sockets");
                // An unloaded domain (Unity's editor reloads scripts) must leave no function of its own behind.
                AppDomain.CurrentDomain.DomainUnload += (sender, arguments) => ForgetHandlers();
                Volatile.Write(ref loaded, true);
            }
        }

        private static void ForgetHandlers()
        {
            Native.netcode_csharp_set_log(IntPtr.Zero);
            Native.netcode_set_assert_function(IntPtr.Zero);
        }

        /// <summary>The version of the native library.</summary>
        public static string Version
        {
            get
            {
                Load();
                return Native.Text(Native.netcode_version());
            }
        }

        /// <summary>Seconds of a clock that never goes back, from an arbitrary start.</summary>
        public static double Time
        {
            get
            {
                Load();
                return Native.netcode_time();
            }
        }

        /// <summary>Sleeps. Returns at once for 0, negative numbers and NaN.</summary>
        public static void Sleep(double seconds)
        {
            Load();
            Native.netcode_sleep(seconds);
        }

        /// <summary>Marks the packets of sockets that are created afterwards as urgent (DSCP EF), where the system allows it.</summary>
        public static void EnablePacketTagging()
        {
            Load();
            Native.netcode_enable_packet_tagging();
        }

        /// <summary>What is logged; by default errors only. For the whole process: set it before threads start.</summary>
        public static void SetLogLevel(LogLevel level)
        {
            if (level < LogLevel.None || level > LogLevel.Debug)
                throw new ArgumentOutOfRangeException("level");
            Load();
            Native.netcode_log_level((int)level);
        }

        /// <summary>Gets log lines, without their newline, of objects that have no Log in their config; null: they are printed to the standard
        /// output. For the whole process: set it before threads start. It is called by the thread that logs, but not by the finalizer's: its
        /// lines are dropped.</summary>
        public static void SetLogHandler(Action<string> handler)
        {
            Load();
            lock (gate)
            {
                logHandler = handler;
                Native.netcode_csharp_set_log(handler == null ? IntPtr.Zero : Callbacks.LibraryLog);
            }
        }

        internal static void OnLog(string text)
        {
            Action<string> handler = logHandler;
            if (handler != null)
                handler(text);
        }

        /// <summary>Gets what a failed assert of the native library says. build.sh compiles it without asserts; in a debug build of yours the
        /// default prints and aborts. null restores it. For the whole process. The finalizer's thread does not call it.</summary>
        public static void SetAssertHandler(AssertHandler handler)
        {
            Load();
            lock (gate)
            {
                assertHandler = handler;
                Native.netcode_set_assert_function(handler == null ? IntPtr.Zero : Callbacks.LibraryAssert);
            }
        }

        internal static void OnAssert(string condition, string function, string file, int line)
        {
            AssertHandler handler = assertHandler;
            if (handler != null)
                handler(condition, function, file, line);
        }

        /// <summary>Fills a part of an array with unpredictable bytes.</summary>
        public static void RandomBytes(byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            Load();
            fixed (byte* at = data)
                if (count > 0)
                    Native.netcode_random_bytes(at + offset, count);
        }

        /// <summary>A new private key, for backends and servers: 32 unpredictable bytes.</summary>
        public static byte[] GenerateKey()
        {
            var key = new byte[KeyBytes];
            RandomBytes(key, 0, key.Length);
            return key;
        }
    }

    /// <summary>What a failed assert of the native library says.</summary>
    public delegate void AssertHandler(string condition, string function, string file, int line);

    /// <summary>The native library refused something; the message is its own sentence.</summary>
    public class NetcodeException : Exception
    {
        public NetcodeException(string message) : base(message) { }
    }

    /// <summary>A client could not be created.</summary>
    public sealed class ClientCreateException : NetcodeException
    {
        public ClientCreateException(ClientCreateError error, string message) : base(message) { Error = error; }
        public ClientCreateError Error { get; }
    }

    /// <summary>A server could not be created.</summary>
    public sealed class ServerCreateException : NetcodeException
    {
        public ServerCreateException(ServerCreateError error, string message) : base(message) { Error = error; }
        public ServerCreateError Error { get; }
    }

    /// <summary>A connection ended, or an attempt failed. The message is the report's sentence for the player.</summary>
    public sealed class ConnectionException : NetcodeException
    {
        public ConnectionException(ClientState state, string message) : base(message) { State = state; }
        public ClientState State { get; }
    }

    // ---- enumerations: the numbers are netcode.h's ----

    public enum LogLevel { None = 0, Error = 1, Info = 2, Debug = 3 }

    public enum AddressType : byte { None = 0, Ipv4 = 1, Ipv6 = 2 }

    public enum PacketType { Request = 0, Denied = 1, Challenge = 2, Response = 3, KeepAlive = 4, Payload = 5, Disconnect = 6 }

    /// <summary>Negative: how the connection, or the attempt, ended.</summary>
    public enum ClientState
    {
        ConnectTokenExpired = -6,
        InvalidConnectToken = -5,
        ConnectionTimedOut = -4,
        ConnectionResponseTimedOut = -3,
        ConnectionRequestTimedOut = -2,
        ConnectionDenied = -1,
        Disconnected = 0,
        SendingConnectionRequest = 1,
        SendingConnectionResponse = 2,
        Connected = 3
    }

    /// <summary>Why a server's slot was emptied.</summary>
    public enum DisconnectReason
    {
        None = 0,
        /// <summary>Nothing was received for the token's timeout.</summary>
        TimedOut = 1,
        /// <summary>The client disconnected.</summary>
        ClientDisconnect = 2,
        /// <summary>By the application: Disconnect, Stop or Dispose.</summary>
        ServerDisconnect = 3,
        /// <summary>The same client id connected with a newer token.</summary>
        Replaced = 4
    }

    public enum ClientCreateError
    {
        None = 0,
        ParseAddressFailed = 1,
        ParseAddress2Failed = 2,
        SimulatorRequiresPort = 3,
        CreateSocketIpv4Failed = 4,
        CreateSocketIpv6Failed = 5,
        AllocateClientFailed = 6,
        MissingOverrideCallback = 7
    }

    public enum ServerCreateError
    {
        None = 0,
        ParseAddressFailed = 1,
        ParseAddress2Failed = 2,
        CreateSocketIpv4Failed = 3,
        CreateSocketIpv6Failed = 4,
        BindSocketIpv4Failed = 5,
        BindSocketIpv6Failed = 6,
        AllocateServerFailed = 7,
        MissingOverrideCallback = 8
    }

    /// <summary>Where the packet sequences of a connection start.</summary>
    public enum SequenceBase
    {
        /// <summary>At a random number: safe across restarts and servers. The default.</summary>
        Random = 0,
        /// <summary>At zero, for peers that need it: weaker, see examples/docs/SECURITY.md.</summary>
        Zero = 1
    }

    public enum NetcodeEventType
    {
        None = 0,
        Connected = 1,
        Payload = 2,
        Disconnected = 3,
        /// <summary>Servers with Roaming: the client has another address.</summary>
        Moved = 4
    }

    /// <summary>Why a datagram was dropped. Text() is the sentence.</summary>
    public enum DropReason
    {
        None,
        EmptyDatagram,
        OversizedDatagram,
        SourcePortZero,
        TooSmall,
        UnknownPacketType,
        WrongDirection,
        BadSequenceLength,
        WrongBodySize,
        UnknownAddress,
        NotConnected,
        WrongServer,
        WrongState,
        Replayed,
        SequenceTooOld,
        SequenceTooFarAhead,
        AuthenticationFailed,
        QueueFull,
        PoolEmpty,
        RequestWrongSize,
        RequestOldVersion,
        RequestWrongVersion,
        RequestWrongProtocolId,
        RequestTooSoon,
        TokenExpired,
        TokenMaybeUsed,
        TokenRefusedUpTo,
        TokenConsumed,
        TokenNoRecordFree,
        TokenNotAuthentic,
        TokenMalformed,
        TokenForAnotherServer,
        TokenOutlived,
        AddressConnected,
        ClientIdConnected,
        ServerFull,
        NotAdmitted,
        ChallengeNotIssued,
        ChallengeNotAuthentic,
        ChallengeForAnother,
        RequestNotOpened,
        OverShare,
        AdmissionPending
    }

    /// <summary>How a message is delivered. Sequenced: one that arrives after a newer one of its channel is dropped. Ordered: in the order of
    /// sending, within its channel.</summary>
    public enum MessageKind
    {
        Unreliable = 0,
        UnreliableSequenced = 1,
        Reliable = 2,
        ReliableOrdered = 3,
        ReliableSequenced = 4,
        /// <summary>In events: of SendStream.</summary>
        Stream = 5
    }

    /// <summary>What became of a Send. Wrong arguments throw instead.</summary>
    public enum SendResult
    {
        Queued = 1,
        /// <summary>No space in the send buffer: try again after messages were acknowledged.</summary>
        Full = 0,
        /// <summary>For a packet, for MaxMessageBytes or for the peer's.</summary>
        TooLarge = -1,
        /// <summary>Only a Reset of both sides helps: see MessageEventType.Broken.</summary>
        Broken = -3,
        /// <summary>The other side has fewer channels.</summary>
        NoChannel = -4
    }

    public enum Congestion
    {
        /// <summary>Follows the link: delays, and losses beyond those of the link itself.</summary>
        Adaptive = 0,
        /// <summary>BytesPerSecond, whatever is lost.</summary>
        Fixed = 1,
        /// <summary>Neither window nor rate: for networks of your own.</summary>
        None = 2
    }

    /// <summary>Small reliable messages are sent again in the next flights, before anything is known to be lost.</summary>
    public enum Repeats { Adaptive = 0, Always = 1, Never = 2 }

    public enum MessageEventType
    {
        None = 0,
        /// <summary>The other side has it.</summary>
        Acked = 1,
        /// <summary>Unreliable: its packet was lost; else given up, or the connection ended.</summary>
        Lost = 2,
        /// <summary>Lost was reported too early: the message has arrived.</summary>
        Spurious = 3,
        /// <summary>Of a large message or a stream: BytesDone of its bytes have arrived.</summary>
        Progress = 4,
        /// <summary>Messages can not go on, on either side: Reason. Reset both, or disconnect.</summary>
        Broken = 5
    }

    /// <summary>Why messages can not go on.</summary>
    public enum BrokenReason
    {
        /// <summary>An ordered message was: MaxRetries.</summary>
        GivenUp = 1,
        /// <summary>A message for a channel that the other side does not have.</summary>
        Channel = 2,
        /// <summary>An ordered message is larger than the other side accepts.</summary>
        TooLarge = 3,
        /// <summary>The peer acknowledged what was never sent.</summary>
        ForgedAck = 4,
        /// <summary>No packet could be used for 10 s: only one side was reset.</summary>
        OutOfStep = 5,
        /// <summary>The same: the other side uses another version of this format.</summary>
        Version = 6
    }

    /// <summary>Why a whole packet of messages was dropped. Text() is the sentence.</summary>
    public enum MessagesDropReason
    {
        None,
        Duplicate,
        Old,
        Window,
        Header,
        Ack,
        Frame,
        Channel,
        Fragment,
        Limit,
        NoRoom,
        Broken,
        Version
    }

    /// <summary>The library's names and sentences.</summary>
    public static class NetcodeTexts
    {
        /// <summary>"CONNECTED" and so on.</summary>
        public static string Name(this ClientState state)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_client_state_name((int)state));
        }

        /// <summary>"TOKEN_EXPIRED" and so on.</summary>
        public static string Name(this DropReason reason)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_drop_reason_name((int)reason));
        }

        /// <summary>The sentence that says why a datagram was dropped.</summary>
        public static string Text(this DropReason reason)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_drop_reason_text((int)reason));
        }

        public static string Name(this MessagesDropReason reason)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_messages_drop_reason_name((int)reason));
        }

        /// <summary>The sentence that says why a packet of messages was dropped.</summary>
        public static string Text(this MessagesDropReason reason)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_messages_drop_reason_text((int)reason));
        }

        /// <summary>The sentence of an error of creation.</summary>
        public static string Text(this ClientCreateError error)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_client_create_error_text((int)error));
        }

        /// <summary>The sentence of an error of creation.</summary>
        public static string Text(this ServerCreateError error)
        {
            NetcodeLibrary.Load();
            return Native.Text(Native.netcode_server_create_error_text((int)error));
        }
    }

    // ---- address ----

    /// <summary>An IPv4 or IPv6 address with its port. IPv4-mapped IPv6 is always IPv4. The default value is no address.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct Address : IEquatable<Address>
    {
        private ushort data0, data1, data2, data3, data4, data5, data6, data7;
        private ushort port;
        private byte type;

        public AddressType Type { get { return (AddressType)type; } }

        /// <summary>0 where none was given.</summary>
        public int Port
        {
            get { return port; }
            set
            {
                if (value < 0 || value > ushort.MaxValue)
                    throw new ArgumentOutOfRangeException("value");
                port = (ushort)value;
            }
        }

        /// <summary>Reads "1.2.3.4:5", "1.2.3.4", "[::1]:5" or "::1". Host names are not resolved.</summary>
        public static bool TryParse(string text, out Address address)
        {
            address = default(Address);
            if (text == null)
                return false;
            NetcodeLibrary.Load();
            fixed (Address* at = &address)
            fixed (byte* characters = Native.Bytes(text))
                return Native.netcode_parse_address(characters, at) == Native.Ok;
        }

        /// <exception cref="FormatException">The text is no address.</exception>
        public static Address Parse(string text)
        {
            Address address;
            if (text == null)
                throw new ArgumentNullException("text");
            if (!TryParse(text, out address))
                throw new FormatException("not an address: " + text);
            return address;
        }

        /// <summary>What Parse reads; port 0 is left out; "NONE" for no address.</summary>
        public override string ToString()
        {
            NetcodeLibrary.Load();
            byte* buffer = stackalloc byte[NetcodeLibrary.MaxAddressStringLength];
            Address copy = this;
            return Native.Text((IntPtr)Native.netcode_address_to_string(&copy, buffer));
        }

        public bool Equals(Address other)
        {
            if (type != other.type || (type != (byte)AddressType.None && port != other.port))
                return false;
            if (type == (byte)AddressType.None)
                return true;
            if (data0 != other.data0 || data1 != other.data1)
                return false;
            return type != (byte)AddressType.Ipv6 || (data2 == other.data2 && data3 == other.data3 && data4 == other.data4 &&
                data5 == other.data5 && data6 == other.data6 && data7 == other.data7);
        }

        public override bool Equals(object other) { return other is Address && Equals((Address)other); }

        public override int GetHashCode()
        {
            if (type == (byte)AddressType.None)
                return 0;
            int hash = (data0 | data1 << 16) * 31 + port;
            return type == (byte)AddressType.Ipv6
                ? ((hash * 31 + (data2 | data3 << 16)) * 31 + (data4 | data5 << 16)) * 31 + (data6 | data7 << 16)
                : hash;
        }

        public static bool operator ==(Address a, Address b) { return a.Equals(b); }
        public static bool operator !=(Address a, Address b) { return !a.Equals(b); }

        public static Address FromEndPoint(IPEndPoint endPoint)
        {
            if (endPoint == null)
                throw new ArgumentNullException("endPoint");
            return Parse(endPoint.ToString());
        }

        /// <exception cref="InvalidOperationException">It is no address.</exception>
        public IPEndPoint ToEndPoint()
        {
            if (type == (byte)AddressType.None)
                throw new InvalidOperationException("no address");
            Address bare = this;
            bare.port = 0;
            return new IPEndPoint(IPAddress.Parse(bare.ToString()), port);
        }
    }

    // ---- connect token ----

    /// <summary>A connect token: one client can connect with it to one of up to 32 servers. Backends generate it and send it by HTTPS; clients
    /// read its public part.</summary>
    public sealed unsafe class ConnectToken
    {
        private readonly byte[] bytes;
        private readonly Address[] servers;

        /// <summary>Reads a token of 2048 bytes, which are copied.</summary>
        /// <exception cref="ArgumentException">It has another size, or a client would refuse it as invalid.</exception>
        public ConnectToken(byte[] token)
        {
            Check.Size(token, "token", NetcodeLibrary.ConnectTokenBytes);
            NetcodeLibrary.Load();
            bytes = (byte[])token.Clone();
            netcode_connect_token_info_t info;
            int ok;
            fixed (byte* at = bytes)
                ok = Native.netcode_connect_token_info(at, &info);
            Version = Native.Text((IntPtr)info.version, 14);
            if (ok != Native.Ok)
                throw new ArgumentException("not a valid connect token: a client would refuse it", "token");
            ProtocolId = info.protocol_id;
            CreateTimestamp = info.create_timestamp;
            ExpireTimestamp = info.expire_timestamp;
            TimeoutSeconds = info.timeout_seconds;
            servers = new Address[info.num_server_addresses];
            for (int i = 0; i < servers.Length; i++)
                servers[i] = ((Address*)info.server_addresses)[i];
        }

        /// <summary>Makes a token. For backends only: the private key must never reach a player's machine.</summary>
        /// <param name="serverAddresses">1 to 32 addresses with ports, to which the client sends in this order.</param>
        /// <param name="expireSeconds">Negative: it never expires. 0: it has expired already.</param>
        /// <param name="timeoutSeconds">A side that receives nothing for so long ends the connection. 0 or negative: never.</param>
        /// <param name="userData">Up to 256 bytes of your own, which only servers can read; null: zeros.</param>
        /// <param name="internalAddresses">The servers' own addresses where they differ (NAT); null: the same.</param>
        /// <exception cref="ArgumentException">A count, an address without a port, or a size is wrong.</exception>
        public static ConnectToken Generate(IList<string> serverAddresses, ulong clientId, ulong protocolId, byte[] privateKey,
            int expireSeconds = 30, int timeoutSeconds = 10, byte[] userData = null, IList<string> internalAddresses = null)
        {
            if (serverAddresses == null)
                throw new ArgumentNullException("serverAddresses");
            if (serverAddresses.Count < 1 || serverAddresses.Count > NetcodeLibrary.MaxServersPerConnect)
                throw new ArgumentException("1 to 32 server addresses", "serverAddresses");
            if (internalAddresses != null && internalAddresses.Count != serverAddresses.Count)
                throw new ArgumentException("as many as server addresses", "internalAddresses");
            Check.Size(privateKey, "privateKey", NetcodeLibrary.KeyBytes);
            if (userData != null && userData.Length > NetcodeLibrary.UserDataBytes)
                throw new ArgumentException("at most 256 bytes", "userData");
            NetcodeLibrary.Load();

            var data = new byte[NetcodeLibrary.UserDataBytes];
            if (userData != null)
                Array.Copy(userData, data, userData.Length);
            var token = new byte[NetcodeLibrary.ConnectTokenBytes];
            using (var outer = new NativeStrings(serverAddresses, "serverAddresses"))
            using (var inner = new NativeStrings(internalAddresses ?? serverAddresses, "internalAddresses"))
            fixed (byte* key = privateKey, user = data, at = token)
                if (Native.netcode_generate_connect_token(serverAddresses.Count, outer.Pointers, inner.Pointers, expireSeconds,
                        timeoutSeconds, clientId, protocolId, key, user, at) != Native.Ok)
                    throw new ArgumentException("an address can not be read, or has no port", "serverAddresses");
            Array.Clear(data, 0, data.Length);
            return new ConnectToken(token);
        }

        /// <summary>Reads what ToBase64 wrote, for tokens in JSON.</summary>
        /// <exception cref="FormatException">The text is no base64.</exception>
        /// <exception cref="ArgumentException">It is no valid token.</exception>
        public static ConnectToken FromBase64(string text)
        {
            return new ConnectToken(Convert.FromBase64String(text));
        }

        public string ToBase64() { return Convert.ToBase64String(bytes); }

        /// <summary>A copy of its 2048 bytes. They hold the session's keys: keep them from others.</summary>
        public byte[] ToBytes() { return (byte[])bytes.Clone(); }

        internal byte[] Raw { get { return bytes; } }

        /// <summary>"NETCODE 1.02".</summary>
        public string Version { get; }
        public ulong ProtocolId { get; }
        /// <summary>Seconds since 1970.</summary>
        public ulong CreateTimestamp { get; }
        /// <summary>Seconds since 1970; ulong.MaxValue: it never expires.</summary>
        public ulong ExpireTimestamp { get; }
        /// <summary>0 or less: no timeout.</summary>
        public int TimeoutSeconds { get; }
        public IReadOnlyList<Address> ServerAddresses { get { return servers; } }
    }

    // ---- events ----

    /// <summary>What happened, in its order. Payload lies in the object's buffer until its next NextEvent.</summary>
    public struct NetcodeEvent
    {
        public NetcodeEventType Type;
        /// <summary>The slot.</summary>
        public int ClientIndex;
        /// <summary>Never repeats in one server or client object, whichever client has the slot.</summary>
        public ulong Session;
        /// <summary>Servers only.</summary>
        public ulong ClientId;
        /// <summary>Of a payload.</summary>
        public ulong Sequence;
        public ArraySegment<byte> Payload;
        internal int reason;

        /// <summary>On a server: why a client was disconnected.</summary>
        public DisconnectReason Reason { get { return (DisconnectReason)reason; } }
        /// <summary>On a client: its new state after Disconnected, 0 or negative.</summary>
        public ClientState State { get { return (ClientState)reason; } }
    }

    // ---- callbacks. The arrays that they get are used again: copy what you keep ----

    public delegate void StateChangeHandler(NetcodeClient client, ClientState previous, ClientState state);
    /// <summary>Gets a loopback payload for the other side: hand it to its ProcessLoopbackPacket.</summary>
    public delegate void LoopbackHandler(int clientIndex, byte[] data, int count, ulong sequence);
    /// <summary>Gets a log line without its newline.</summary>
    public delegate void LogHandler(LogLevel level, string text);
    /// <summary>A datagram was dropped. `from` may be no address.</summary>
    public delegate void DropHandler(DropReason reason, Address from, int bytes);
    /// <summary>A client got its slot, or is about to leave it: its id, address, user data and reason can still be read.</summary>
    public delegate void ConnectHandler(NetcodeServer server, int clientIndex, bool connected);
    /// <summary>Asked last before a client gets a slot: false denies it, null has no answer yet and is asked again after a tenth of a second.
    /// tokenTag has 16 bytes and is yours.</summary>
    public delegate bool? AdmitHandler(NetcodeServer server, ulong clientId, byte[] tokenTag, ulong expireTimestamp);
    /// <summary>A packet of a session that no client here has: true if you passed it on to another server of the same port.</summary>
    public delegate bool StrayHandler(NetcodeServer server, Address from, byte[] data, int count);

#pragma warning disable 0649 // fields that C alone writes
    // ---- statistics: counts since the object was created. Bytes are those of datagrams, without IP and UDP headers ----

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct ClientStats
    {
        private fixed ulong packets_sent[NetcodeLibrary.PacketTypes];
        private fixed ulong packets_received[NetcodeLibrary.PacketTypes];
        public ulong BytesSent;
        /// <summary>Of every datagram, dropped ones too.</summary>
        public ulong BytesReceived;
        /// <summary>Dropped ones too.</summary>
        public ulong DatagramsReceived;
        private fixed ulong dropped[Native.DropReasons];
        public ulong Connects;
        public ulong Disconnects;
        /// <summary>Datagrams that the system refused to send.</summary>
        public ulong SendErrors;
        /// <summary>Errors that the system reported on receiving, ICMP among them.</summary>
        public ulong ReceiveErrors;
        /// <summary>Datagrams that the system dropped because its buffer was full, where it reports them.</summary>
        public ulong KernelDrops;
        /// <summary>The system's number; 0 for none.</summary>
        public int LastSocketError;
        public int ReceiveBufferBytes;
        public int SendBufferBytes;
        /// <summary>Received and not yet read.</summary>
        public int PacketsQueued;
        public int PacketsHeld;
        /// <summary>Smoothed; 0 until known. It is measured from update to update.</summary>
        public double RoundTripSeconds;
        public double RoundTripLowestSeconds;
        public double RoundTripVariationSeconds;
        /// <summary>Of the server's packets: counted once they have left the replay window, 320 later.</summary>
        public ulong PacketsLost;
        public ulong PacketsReordered;
        /// <summary>0 to 1, of the last 256 packets that left the window.</summary>
        public double LossShare;
        /// <summary>Times that the socket took a fresh local address.</summary>
        public ulong Rebinds;

        public ulong PacketsSent(PacketType type)
        {
            fixed (ulong* at = packets_sent)
                return at[Check.Index((int)type, NetcodeLibrary.PacketTypes, "type")];
        }

        /// <summary>Accepted ones.</summary>
        public ulong PacketsReceived(PacketType type)
        {
            fixed (ulong* at = packets_received)
                return at[Check.Index((int)type, NetcodeLibrary.PacketTypes, "type")];
        }

        public ulong Dropped(DropReason reason)
        {
            fixed (ulong* at = dropped)
                return at[Check.Index((int)reason, Native.DropReasons, "reason")];
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct ServerStats
    {
        private fixed ulong packets_sent[NetcodeLibrary.PacketTypes];
        private fixed ulong packets_received[NetcodeLibrary.PacketTypes];
        public ulong BytesSent;
        public ulong BytesReceived;
        public ulong DatagramsReceived;
        private fixed ulong dropped[Native.DropReasons];
        public ulong Connects;
        private fixed ulong disconnects[Native.DisconnectReasons];
        public ulong SendErrors;
        public ulong ReceiveErrors;
        public ulong KernelDrops;
        public int LastSocketError;
        public int ReceiveBufferBytes;
        public int SendBufferBytes;
        public int PacketsQueued;
        public int PacketsHeld;
        /// <summary>Pending entries made.</summary>
        public ulong Handshakes;
        /// <summary>Those that ended without a connection.</summary>
        public ulong HandshakesExpired;
        /// <summary>Those that were replaced by newer ones.</summary>
        public ulong HandshakesEvicted;
        /// <summary>Updates that ended with work left for the next.</summary>
        public ulong Backlogs;
        public int MaxClients;
        /// <summary>Connected now, loopback clients included.</summary>
        public int Clients;
        /// <summary>Handshakes pending now.</summary>
        public int Pending;
        /// <summary>Used tokens remembered.</summary>
        public int Consumed;
        /// <summary>Keep-alives that measure a round trip, or ask for an answer from another address.</summary>
        public ulong ProbesSent;
        public ulong ProbesAnswered;
        /// <summary>With Roaming: clients' addresses that changed.</summary>
        public ulong Moves;
        public ulong PathCandidates;
        public ulong Trials;
        public ulong TrialsRefused;

        public ulong PacketsSent(PacketType type)
        {
            fixed (ulong* at = packets_sent)
                return at[Check.Index((int)type, NetcodeLibrary.PacketTypes, "type")];
        }

        /// <summary>Accepted ones.</summary>
        public ulong PacketsReceived(PacketType type)
        {
            fixed (ulong* at = packets_received)
                return at[Check.Index((int)type, NetcodeLibrary.PacketTypes, "type")];
        }

        public ulong Dropped(DropReason reason)
        {
            fixed (ulong* at = dropped)
                return at[Check.Index((int)reason, Native.DropReasons, "reason")];
        }

        public ulong Disconnects(DisconnectReason reason)
        {
            fixed (ulong* at = disconnects)
                return at[Check.Index((int)reason, Native.DisconnectReasons, "reason")];
        }
    }

    /// <summary>Of the client in one slot; all zero if none is connected.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ServerClientStats
    {
        public ulong Session;
        public ulong ClientId;
        public ulong PacketsSent;
        /// <summary>Accepted ones.</summary>
        public ulong PacketsReceived;
        public ulong BytesSent;
        public ulong BytesReceived;
        /// <summary>Payloads dropped: no buffer was free, or the queue was full.</summary>
        public ulong PacketsDropped;
        public double SecondsConnected;
        /// <summary>Since the last accepted packet.</summary>
        public double SecondsSilent;
        public int PacketsQueued;
        private int confirmed;
        private int loopback;
        /// <summary>Smoothed; 0 until known.</summary>
        public double RoundTripSeconds;
        public double RoundTripLowestSeconds;
        public double RoundTripVariationSeconds;
        public ulong PacketsLost;
        public ulong PacketsReordered;
        public double LossShare;
        /// <summary>Times that its address changed.</summary>
        public ulong Moves;

        /// <summary>It has sent a packet that only a connected client sends.</summary>
        public bool IsConfirmed { get { return confirmed != 0; } }
        public bool IsLoopback { get { return loopback != 0; } }
    }

#pragma warning restore 0649

    // ---- report: why can't I connect? ----

    /// <summary>One server of the token, as the client met it.</summary>
    public sealed class ServerReport
    {
        public Address Address { get; internal set; }
        public ulong RequestsSent { get; internal set; }
        public ulong ResponsesSent { get; internal set; }
        /// <summary>It answered with a challenge.</summary>
        public bool WasChallenged { get; internal set; }
        /// <summary>It replied that it is full.</summary>
        public bool WasDenied { get; internal set; }
        /// <summary>The system's error number of the last socket error; 0 for none.</summary>
        public int LastError { get; internal set; }
        public int Errors { get; internal set; }
        public double SecondsWaited { get; internal set; }
    }

    /// <summary>Everything that a client knows about its attempt to connect.</summary>
    public sealed class ClientReport
    {
        public ClientState State { get; internal set; }
        /// <summary>The server being tried, or tried last.</summary>
        public int ServerIndex { get; internal set; }
        public IReadOnlyList<ServerReport> Servers { get; internal set; }
        /// <summary>By the client's clock; 1e300 for a token that never expires.</summary>
        public double TokenSecondsLeft { get; internal set; }
        /// <summary>One sentence for the player.</summary>
        public string Text { get; internal set; }
        /// <summary>Packets of that server that were dropped since the last accepted one.</summary>
        public ulong Refused { get; internal set; }
        /// <summary>Why the last of them was dropped.</summary>
        public DropReason RefusedAs { get; internal set; }
        public override string ToString() { return Text; }
    }

    // ---- the network: sockets of your own, and the simulator ----

    /// <summary>A network of your own for clients and servers: another transport, or a relay. Derive from it and set it as Socket in a config.
    /// No function may block, except Wait. A socket belongs to one object, which closes it when it is disposed.</summary>
    public abstract unsafe class NetcodeSocket
    {
        private readonly byte[] buffer = new byte[2048];
        private GCHandle self;

        /// <summary>The next datagram that waits: writes it to the buffer, and returns true; or false. One that is larger than the buffer is
        /// dropped: return its true size all the same.</summary>
        protected internal abstract bool Receive(byte[] buffer, out int bytes, out Address from);

        /// <summary>Sends the first `bytes` bytes of data. False: the network refused it.</summary>
        protected internal abstract bool Send(Address to, byte[] data, int bytes);

        /// <summary>Whether Wait does something; if not, the library sleeps in steps of a millisecond.</summary>
        protected internal virtual bool CanWait { get { return false; } }

        /// <summary>Sleeps until a datagram waits or the seconds have passed.</summary>
        protected internal virtual void Wait(double seconds) { }

        /// <summary>Gives up the local address and takes the one that the system prefers now: true on success.</summary>
        protected internal virtual bool Rebind() { return false; }

        /// <summary>The local address, for Port.</summary>
        protected internal virtual Address LocalAddress { get { return default(Address); } }

        /// <summary>Its owner was disposed. Not called when the owner was forgotten and is finalized, and neither is Send: the other side waits for
        /// its timeout.</summary>
        protected internal virtual void Close() { }

        // Fills the struct for the owner that is being created.
        internal virtual void Fill(netcode_socket_t* socket)
        {
            if (self.IsAllocated)
                throw new ArgumentException("this socket has an owner already", "config");
            self = GCHandle.Alloc(this, GCHandleType.Weak); // its owner keeps it alive
            socket->context = GCHandle.ToIntPtr(self);
            socket->receive = Callbacks.SocketReceive;
            socket->send = Callbacks.SocketSend;
            socket->wait = CanWait ? Callbacks.SocketWait : IntPtr.Zero;
            socket->close = Callbacks.SocketClose;
            socket->info = Callbacks.SocketInfo;
            socket->rebind = Callbacks.SocketRebind;
        }

        // The owner is gone, or was not created: then the socket is still open, and it can get another owner.
        internal virtual void Forget(bool wasCreated)
        {
            if (self.IsAllocated)
                self.Free();
        }

        // The simulator that it is on, or null.
        internal virtual NetworkSimulator Network { get { return null; } }

        internal int OnReceive(netcode_datagram_t* datagrams, int count)
        {
            int filled = 0;
            while (filled < count)
            {
                int bytes;
                Address from;
                try
                {
                    if (!Receive(buffer, out bytes, out from))
                        break;
                    if (bytes < 0)
                        throw new InvalidOperationException("Receive returned a negative size");
                }
                catch (Exception exception)
                {
                    Faults.Add(exception); // what was received before it counts
                    break;
                }
                netcode_datagram_t* datagram = datagrams + filled++;
                bool fits = bytes <= buffer.Length && bytes <= datagram->capacity;
                datagram->address = from;
                datagram->bytes = fits ? bytes : datagram->capacity;
                datagram->status = fits ? Native.DatagramOk : Native.DatagramTruncated;
                datagram->error = 0;
                if (fits)
                    Marshal.Copy(buffer, 0, (IntPtr)datagram->data, bytes);
            }
            return filled;
        }

        internal int OnSend(netcode_datagram_t* datagrams, int count)
        {
            int sent = 0;
            for (int i = 0; i < count; i++)
            {
                Marshal.Copy((IntPtr)datagrams[i].data, buffer, 0, datagrams[i].bytes);
                if (Send(datagrams[i].address, buffer, datagrams[i].bytes))
                    sent++;
            }
            return sent;
        }
    }

    /// <summary>A network in memory, deterministic from its seed: latency, jitter, loss, duplication, reordering. The numbers apply to datagrams
    /// that are sent afterwards; time moves in Update alone. It may be disposed before what uses it: it ends when the last user has ended.</summary>
    public sealed unsafe class NetworkSimulator : NetcodeObject
    {
        private int users = 1; // this object, and each client, server and socket on it
        private readonly IntPtr pointer; // outlives Dispose

        /// <exception cref="OutOfMemoryException">There is no memory for it.</exception>
        public NetworkSimulator()
        {
            NetcodeLibrary.Load();
            pointer = (IntPtr)Native.netcode_network_simulator_create(IntPtr.Zero, IntPtr.Zero, IntPtr.Zero);
            if (pointer == IntPtr.Zero)
                throw new OutOfMemoryException("netcode_network_simulator_create");
            Adopt(pointer);
        }

        private netcode_network_simulator_t* Fields
        {
            get
            {
                ThrowIfDisposed();
                return (netcode_network_simulator_t*)Handle;
            }
        }

        /// <summary>One way.</summary>
        public float LatencyMilliseconds { get { return Fields->latency_milliseconds; } set { Fields->latency_milliseconds = Check.Number(value, float.MaxValue); } }
        /// <summary>Plus or minus, evenly distributed.</summary>
        public float JitterMilliseconds { get { return Fields->jitter_milliseconds; } set { Fields->jitter_milliseconds = Check.Number(value, float.MaxValue); } }
        /// <summary>0 to 100.</summary>
        public float PacketLossPercent { get { return Fields->packet_loss_percent; } set { Fields->packet_loss_percent = Check.Number(value, 100); } }
        /// <summary>0 to 100: a second copy arrives up to a second later.</summary>
        public float DuplicatePacketPercent { get { return Fields->duplicate_packet_percent; } set { Fields->duplicate_packet_percent = Check.Number(value, 100); } }
        /// <summary>0 to 100: delayed by up to 100 ms more, so that later ones overtake it.</summary>
        public float ReorderPacketPercent { get { return Fields->reorder_packet_percent; } set { Fields->reorder_packet_percent = Check.Number(value, 100); } }
        /// <summary>Takes effect at the next Reset.</summary>
        public ulong Seed { get { return Fields->seed; } set { Fields->seed = value; } }

        /// <summary>Forgets the datagrams in flight and starts the random numbers again from Seed.</summary>
        public void Reset()
        {
            int mark = Enter();
            Native.netcode_network_simulator_reset((netcode_network_simulator_t*)Handle);
            Leave(mark);
        }

        /// <summary>Sets its time, in seconds; datagrams that are due can then be received.</summary>
        public void Update(double time)
        {
            int mark = Enter();
            EndForgotten();
            Native.netcode_network_simulator_update((netcode_network_simulator_t*)Handle, time);
            Leave(mark);
        }

        /// <summary>Moves the socket at an address to another, as a NAT does that gives another port: what is in flight to the first is lost.
        /// untilRebind: as a network that is gone: its owner must call Rebind before it sends or receives again.</summary>
        /// <returns>False: there is no such socket, or `to` has one.</returns>
        public bool Move(Address from, Address to, bool untilRebind = false)
        {
            int mark = Enter();
            int moved = Native.netcode_network_simulator_move((netcode_network_simulator_t*)Handle, &from, &to, untilRebind ? 1 : 0);
            Leave(mark);
            return moved == Native.Ok;
        }

        /// <summary>A socket on the simulator at an address with a port; one socket an address.</summary>
        /// <exception cref="NetcodeException">The address has no port, or a socket already.</exception>
        public SimulatorSocket CreateSocket(Address address)
        {
            int mark = Enter();
            EndForgotten();
            var socket = new netcode_socket_t();
            int made = Native.netcode_network_simulator_socket((netcode_network_simulator_t*)Handle, &address, &socket);
            Leave(mark);
            if (made != Native.Ok)
                throw new NetcodeException("no socket on the simulator: " + address + " has no port, or a socket already");
            return new SimulatorSocket(this, socket);
        }

        // Objects on it that were forgotten, to be ended by the thread that uses it: the finalizer's thread must not touch what that one uses.
        private readonly List<Action> later = new List<Action>();
        private volatile bool hasLater;
        private bool isUnreachable; // and so is all that is on it

        internal void EndLater(Action end)
        {
            lock (later)
            {
                if (!isUnreachable)
                {
                    later.Add(end);
                    hasLater = true;
                    return;
                }
            }
            end();
        }

        // Called by all that use it.
        internal void EndForgotten()
        {
            if (!hasLater)
                return;
            Action[] ends;
            lock (later)
            {
                ends = later.ToArray();
                later.Clear();
                hasLater = false;
            }
            foreach (Action end in ends)
                end();
        }

        internal override bool IsFinalizedAlways { get { return true; } }

        internal override void OnFinalized()
        {
            lock (later)
                isUnreachable = true;
            EndForgotten();
        }

        internal netcode_network_simulator_t* Use()
        {
            ThrowIfDisposed();
            EndForgotten();
            Interlocked.Increment(ref users);
            return (netcode_network_simulator_t*)Handle;
        }

        // The last user ends it, whoever that is: finalizers come in any order.
        internal void EndUse()
        {
            if (Interlocked.Decrement(ref users) == 0)
                Native.netcode_network_simulator_destroy((netcode_network_simulator_t*)pointer);
        }

        internal override void Destroy(IntPtr handle) { EndUse(); }
    }

    /// <summary>A socket on a simulator, for tests: set it as Socket in a config, or send and receive by yourself.</summary>
    public sealed unsafe class SimulatorSocket : NetcodeSocket, IDisposable
    {
        private readonly NetworkSimulator simulator;
        private netcode_socket_t socket;
        private bool isOwned, isClosed;
        private readonly Callbacks.receive receive;
        private readonly Callbacks.send send;

        internal SimulatorSocket(NetworkSimulator simulator, netcode_socket_t socket)
        {
            simulator.Use();
            this.simulator = simulator;
            this.socket = socket;
            receive = Marshal.GetDelegateForFunctionPointer<Callbacks.receive>(socket.receive);
            send = Marshal.GetDelegateForFunctionPointer<Callbacks.send>(socket.send);
        }

        ~SimulatorSocket()
        {
            if (!isOwned) // else the owner's finalizer closes it
                simulator.EndLater(CloseOnce);
        }

        internal override NetworkSimulator Network { get { return simulator; } }

        private void CloseOnce()
        {
            if (isClosed)
                return;
            isClosed = true;
            if (!isOwned)
                Marshal.GetDelegateForFunctionPointer<Callbacks.close>(socket.close)(socket.context);
            simulator.EndUse();
        }

        /// <summary>Closes it, unless a client or server has it: that closes it then.</summary>
        public void Dispose()
        {
            if (!isOwned)
                CloseOnce();
            if (isClosed)
                GC.SuppressFinalize(this);
        }

        private void ThrowIfTaken()
        {
            if (isClosed)
                throw new ObjectDisposedException("SimulatorSocket");
            if (isOwned)
                throw new InvalidOperationException("a client or server has this socket");
        }

        protected internal override bool Receive(byte[] buffer, out int bytes, out Address from)
        {
            ThrowIfTaken();
            Check.NotNull(buffer, "buffer");
            var datagram = new netcode_datagram_t { capacity = buffer.Length };
            int count;
            fixed (byte* at = buffer)
            {
                datagram.data = at;
                count = receive(socket.context, &datagram, 1);
            }
            bytes = datagram.bytes;
            from = datagram.address;
            return count > 0 && datagram.status == Native.DatagramOk;
        }

        /// <summary>The next datagram that has arrived: false if there is none.</summary>
        public bool TryReceive(byte[] buffer, out int bytes, out Address from) { return Receive(buffer, out bytes, out from); }

        protected internal override bool Send(Address to, byte[] data, int bytes)
        {
            ThrowIfTaken();
            Check.Range(data, "data", 0, bytes);
            fixed (byte* at = data)
            {
                var datagram = new netcode_datagram_t { address = to, data = at, bytes = bytes };
                return send(socket.context, &datagram, 1) == 1;
            }
        }

        /// <summary>Sends a datagram.</summary>
        public bool SendTo(Address to, byte[] data, int bytes) { return Send(to, data, bytes); }

        internal override void Fill(netcode_socket_t* filled)
        {
            ThrowIfTaken();
            *filled = socket;
            isOwned = true;
        }

        internal override void Forget(bool wasCreated)
        {
            isOwned = wasCreated;
            if (!wasCreated)
                return;
            CloseOnce();
            GC.SuppressFinalize(this);
        }
    }

    // ---- what client, server, messages and simulator share ----

    /// <summary>An object of the native library.</summary>
    public abstract class NetcodeObject : IDisposable
    {
        internal IntPtr Handle { get; private set; }
        internal GCHandle Self;
        private int owner; // the thread inside, or 0
        private int depth; // calls inside each other: callbacks may call
        private bool isClosing, isReleased;

        // Of the finalizer's thread, while it ends an object.
        [ThreadStatic] internal static bool IsFinalizing;

        internal NetcodeObject() { }

        ~NetcodeObject()
        {
            // On the finalizer's thread no code of the user runs. This object's weak handle is empty by now, but not that of a socket that the
            // user keeps, and the log handler belongs to no object: callbacks do nothing meanwhile.
            IsFinalizing = true;
            try
            {
                Release(true);
                OnFinalized();
            }
            finally
            {
                IsFinalizing = false;
            }
        }

        internal void Adopt(IntPtr handle) { Handle = handle; }

        // Within Enter and Leave: a callback is running.
        internal bool IsInsideCallback { get { return depth > 1; } }

        internal void ThrowIfDisposed()
        {
            if (isClosing)
                throw new ObjectDisposedException(GetType().Name);
        }

        // Around each native call. The mark says which exceptions of callbacks were there before.
        internal int Enter()
        {
            ThrowIfDisposed();
            Lock();
            return Faults.Count;
        }

        private void Lock()
        {
            int me = Environment.CurrentManagedThreadId;
            int before = Interlocked.CompareExchange(ref owner, me, 0);
            if (before != 0 && before != me)
                throw new InvalidOperationException("another thread is inside this " + GetType().Name + ": it is for one thread at a time");
            if (isReleased)
            {
                if (depth == 0)
                    Volatile.Write(ref owner, 0);
                throw new ObjectDisposedException(GetType().Name);
            }
            depth++;
        }

        internal void Leave(int mark)
        {
            if (--depth == 0)
            {
                if (isClosing)
                    ReleaseNow();
                Volatile.Write(ref owner, 0);
            }
            Faults.Throw(mark);
        }

        /// <summary>Ends it and frees all of its native memory. Inside a callback: when the outermost call on it returns.</summary>
        public void Dispose()
        {
            if (isClosing)
                return;
            int mark = Faults.Count;
            Lock();
            isClosing = true;
            Leave(mark);
        }

        private void ReleaseNow()
        {
            Release(false);
            if (!IsFinalizedAlways)
                GC.SuppressFinalize(this);
        }

        private void Release(bool isFinalizing)
        {
            if (isReleased)
                return;
            isReleased = true;
            isClosing = true;
            IntPtr handle = Handle;
            Handle = IntPtr.Zero;
            Action end = () =>
            {
                if (handle != IntPtr.Zero)
                    Destroy(handle);
                if (Self.IsAllocated)
                    Self.Free();
            };
            NetworkSimulator network = Network;
            if (isFinalizing && network != null)
                network.EndLater(end);
            else
                end();
        }

        internal abstract void Destroy(IntPtr handle);

        // The simulator that it uses, or null.
        internal virtual NetworkSimulator Network { get { return null; } }

        internal virtual bool IsFinalizedAlways { get { return false; } }

        internal virtual void OnFinalized() { }
    }

    /// <summary>Exceptions of callbacks on this thread, until the call in which they ran returns.</summary>
    internal static class Faults
    {
        [ThreadStatic] private static List<Exception> caught;

        internal static int Count { get { return caught == null ? 0 : caught.Count; } }

        internal static void Add(Exception exception)
        {
            if (caught == null)
                caught = new List<Exception>();
            caught.Add(exception);
        }

        internal static void Forget(int mark)
        {
            if (Count > mark)
                caught.RemoveRange(mark, caught.Count - mark);
        }

        internal static void Throw(int mark)
        {
            if (caught == null || caught.Count <= mark)
                return;
            List<Exception> mine = caught.GetRange(mark, caught.Count - mark);
            Forget(mark);
            if (mine.Count > 1)
                throw new AggregateException("several callbacks threw", mine);
            ExceptionDispatchInfo.Capture(mine[0]).Throw();
        }
    }

    /// <summary>Wrong arguments end here.</summary>
    internal static class Check
    {
        internal static void NotNull(object value, string name)
        {
            if (value == null)
                throw new ArgumentNullException(name);
        }

        internal static void Range(byte[] data, string name, int offset, int count)
        {
            NotNull(data, name);
            if (offset < 0 || offset > data.Length)
                throw new ArgumentOutOfRangeException("offset");
            if (count < 0 || count > data.Length - offset)
                throw new ArgumentOutOfRangeException("count");
        }

        internal static void Payload(int count)
        {
            if (count < 1 || count > NetcodeLibrary.MaxPacketSize)
                throw new ArgumentOutOfRangeException("count", "a payload has 1 to 1200 bytes");
        }

        internal static void Size(byte[] data, string name, int bytes)
        {
            NotNull(data, name);
            if (data.Length != bytes)
                throw new ArgumentException("must have " + bytes + " bytes, not " + data.Length, name);
        }

        internal static int Index(int index, int count, string name)
        {
            if (index < 0 || index >= count)
                throw new ArgumentOutOfRangeException(name);
            return index;
        }

        internal static float Number(float value, float most)
        {
            if (!(value >= 0 && value <= most))
                throw new ArgumentOutOfRangeException("value");
            return value;
        }
    }

    // ---- client ----

    /// <summary>A client's configuration. What is not set has netcode.h's default. It is copied: later changes have no effect.</summary>
    public sealed class ClientConfig
    {
        /// <summary>The network is this simulator.</summary>
        public NetworkSimulator Simulator { get; set; }
        /// <summary>The network is this socket. It goes before Simulator.</summary>
        public NetcodeSocket Socket { get; set; }
        public StateChangeHandler StateChanged { get; set; }
        /// <summary>Gets what a loopback client sends.</summary>
        public LoopbackHandler LoopbackSent { get; set; }
        /// <summary>Log lines of this client; null: the log of the process.</summary>
        public LogHandler Log { get; set; }
        public DropHandler Dropped { get; set; }
        public SequenceBase SequenceBase { get; set; }
        /// <summary>Received packets that can be stored at once; 0: 256.</summary>
        public int PacketPoolBuffers { get; set; }
        /// <summary>Received packets that may be queued; 0: the whole pool.</summary>
        public int PacketQuota { get; set; }
        /// <summary>Work units that one update may spend; 0: 2048.</summary>
        public int UpdateBudget { get; set; }
        /// <summary>Packets are sent at Update, at Flush, or when 64 are waiting.</summary>
        public bool BatchSends { get; set; }
        /// <summary>Requested from the system; 0: 4 MiB.</summary>
        public int ReceiveBufferBytes { get; set; }
        public int SendBufferBytes { get; set; }
        /// <summary>While no server answers, the token's next one is asked, too, after so many seconds; 0: in turn, as the standard says.</summary>
        public double NextServerSeconds { get; set; } = 0.25;

        internal ClientConfig Copy() { return (ClientConfig)MemberwiseClone(); }

        internal unsafe void Fill(netcode_client_config_t* config)
        {
            Native.netcode_default_client_config(config);
            config->events = 1;
            config->state_change_callback = StateChanged != null ? Callbacks.ClientStateChange : IntPtr.Zero;
            config->send_loopback_packet_callback = LoopbackSent != null ? Callbacks.ClientLoopback : IntPtr.Zero;
            config->log_callback = Log != null ? Callbacks.ClientLog : IntPtr.Zero;
            config->drop_callback = Dropped != null ? Callbacks.ClientDrop : IntPtr.Zero;
            config->sequence_base = (int)SequenceBase;
            config->packet_pool_buffers = PacketPoolBuffers;
            config->packet_quota = PacketQuota;
            config->update_budget = UpdateBudget;
            config->batch_sends = BatchSends ? 1 : 0;
            config->receive_buffer_bytes = ReceiveBufferBytes;
            config->send_buffer_bytes = SendBufferBytes;
            config->next_server_seconds = NextServerSeconds;
        }
    }

    /// <summary>A client: connects with a token to one of its servers, sends and receives payloads.</summary>
    public sealed unsafe class NetcodeClient : NetcodeObject
    {
        internal readonly ClientConfig Config;
        private readonly NetworkSimulator simulator;
        private readonly NetcodeSocket socket;
        private readonly byte[] buffer = new byte[NetcodeLibrary.MaxPacketSize];
        internal byte[] LoopbackBuffer;

        /// <summary>Makes a client that sends from any port.</summary>
        /// <exception cref="ClientCreateException">It can not be created; Error and Message say why.</exception>
        public NetcodeClient(ClientConfig config = null) : this("0.0.0.0", null, config, NetcodeLibrary.Time) { }

        /// <summary>Makes a client that sends from an address: "0.0.0.0" or "::" for any; a simulator needs a port.</summary>
        public NetcodeClient(string address, ClientConfig config = null) : this(address, null, config, NetcodeLibrary.Time) { }

        /// <summary>The same on a clock of yours.</summary>
        public NetcodeClient(string address, ClientConfig config, double time) : this(address, null, config, time) { }

        /// <summary>A client with an address of each family, so that it can connect to servers of both.</summary>
        /// <param name="address2">null: one address only.</param>
        /// <param name="time">Seconds on the clock that Update will get.</param>
        public NetcodeClient(string address, string address2, ClientConfig config, double time)
        {
            Check.NotNull(address, "address");
            NetcodeLibrary.Load();
            Config = config != null ? config.Copy() : new ClientConfig();
            netcode_client_config_t native;
            netcode_socket_t filled;
            Config.Fill(&native);
            Self = GCHandle.Alloc(this, GCHandleType.Weak);
            native.callback_context = GCHandle.ToIntPtr(Self);
            int mark = Faults.Count;
            try
            {
                if (Config.Socket != null)
                {
                    Config.Socket.Fill(&filled);
                    socket = Config.Socket;
                    native.socket = &filled;
                }
                else if (Config.Simulator != null)
                {
                    native.network_simulator = Config.Simulator.Use();
                    simulator = Config.Simulator;
                }
                fixed (byte* first = Native.Bytes(address), second = Native.Bytes(address2))
                    Adopt(address2 == null
                        ? Native.netcode_client_create(first, &native, time)
                        : Native.netcode_client_create_dual(first, second, &native, time));
                if (Handle == IntPtr.Zero)
                {
                    var error = (ClientCreateError)Native.netcode_client_create_error();
                    throw new ClientCreateException(error, "no client at \"" + address + "\": " + error.Text());
                }
                Faults.Throw(mark);
            }
            catch
            {
                Faults.Forget(mark);
                if (Handle == IntPtr.Zero)
                    ReleaseNetwork(false);
                Dispose();
                throw;
            }
        }

        /// <summary>The native bytes that a client with this config takes.</summary>
        public static long MemoryBytes(ClientConfig config = null)
        {
            NetcodeLibrary.Load();
            netcode_client_config_t native;
            (config ?? new ClientConfig()).Fill(&native);
            return (long)Native.netcode_client_memory(&native).ToUInt64();
        }

        internal override NetworkSimulator Network { get { return simulator ?? (socket != null ? socket.Network : null); } }

        internal override void Destroy(IntPtr handle)
        {
            Native.netcode_client_destroy(handle);
            ReleaseNetwork(true);
        }

        private bool networkReleased;

        private void ReleaseNetwork(bool wasCreated)
        {
            if (networkReleased)
                return;
            networkReleased = true;
            if (simulator != null)
                simulator.EndUse();
            if (socket != null)
                socket.Forget(wasCreated);
        }

        /// <summary>Starts to connect; a client that is connected or connecting disconnects first. The next Update sends the first request. A
        /// token with which this client was connected before leads to InvalidConnectToken.</summary>
        /// <exception cref="NetcodeException">The events of two connections or attempts are unread.</exception>
        public void Connect(ConnectToken token)
        {
            Check.NotNull(token, "token");
            Connect(token.Raw);
        }

        /// <summary>The same with the 2048 bytes of a token. One that can not be read leads to InvalidConnectToken.</summary>
        public void Connect(byte[] token)
        {
            Check.Size(token, "token", NetcodeLibrary.ConnectTokenBytes);
            int mark = Enter(), answer;
            fixed (byte* at = token)
                answer = Native.netcode_client_connect(Handle, at);
            Leave(mark);
            if (answer != 1 && State == ClientState.Disconnected)
                throw new NetcodeException("connect needs the events of earlier connections to be read");
        }

        /// <summary>Receives, sends and moves the state machine. Call it once a tick.</summary>
        public void Update() { Update(NetcodeLibrary.Time); }

        /// <summary>The same on a clock of yours, in seconds. Steps backwards, NaN and infinity count as no step.</summary>
        public void Update(double time)
        {
            int mark = Enter();
            if (Network != null)
                Network.EndForgotten();
            Native.netcode_client_update(Handle, time);
            Leave(mark);
        }

        /// <summary>Notifies the server at once. Does nothing unless connecting or connected.</summary>
        public void Disconnect()
        {
            int mark = Enter();
            Native.netcode_client_disconnect(Handle);
            Leave(mark);
        }

        public ClientState State
        {
            get
            {
                int mark = Enter();
                int state = Native.netcode_client_state(Handle);
                Leave(mark);
                return (ClientState)state;
            }
        }

        public bool IsConnected { get { return State == ClientState.Connected; } }

        public bool IsConnecting
        {
            get
            {
                ClientState state = State;
                return state > ClientState.Disconnected && state < ClientState.Connected;
            }
        }

        /// <summary>Whether the last connection, or the attempt, ended with an error.</summary>
        public bool HasFailed { get { return State < ClientState.Disconnected; } }

        /// <summary>The slot on the server as last reported, 0 while not connected; -1 if the server reported an impossible one.</summary>
        public int Index
        {
            get
            {
                int mark = Enter();
                int index = Native.netcode_client_index(Handle);
                Leave(mark);
                return index;
            }
        }

        /// <summary>How many slots the server has, as last reported; 0 while not connected.</summary>
        public int MaxClients
        {
            get
            {
                int mark = Enter();
                int count = Native.netcode_client_max_clients(Handle);
                Leave(mark);
                return count;
            }
        }

        /// <summary>The local port; 0 where there is none.</summary>
        public int Port
        {
            get
            {
                int mark = Enter();
                int port = Native.netcode_client_get_port(Handle);
                Leave(mark);
                return port;
            }
        }

        /// <summary>The server that it is connected to or tried last; no address before the first Connect.</summary>
        public Address ServerAddress
        {
            get
            {
                int mark = Enter();
                Address address = *Native.netcode_client_server_address(Handle);
                Leave(mark);
                return address;
            }
        }

        /// <summary>The sequence that the next packet will carry.</summary>
        public ulong NextPacketSequence
        {
            get
            {
                int mark = Enter();
                ulong sequence = Native.netcode_client_next_packet_sequence(Handle);
                Leave(mark);
                return sequence;
            }
        }

        /// <summary>Sends a payload of 1 to 1200 bytes. Does nothing while not connected.</summary>
        public void Send(byte[] data)
        {
            Check.NotNull(data, "data");
            Send(data, 0, data.Length);
        }

        /// <summary>Sends a part of an array as a payload.</summary>
        public void Send(byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            int mark = Enter();
            fixed (byte* at = data)
                Native.netcode_client_send_packet(Handle, at + offset, count);
            Leave(mark);
        }

        /// <summary>The next event: false when there is none. A failed attempt has a Disconnected without a Connected. After two
        /// connections whose events are unread, Connect does nothing.</summary>
        public bool NextEvent(out NetcodeEvent e)
        {
            netcode_event_t native;
            int mark = Enter();
            int found = Native.netcode_client_next_event(Handle, &native);
            if (found != 0 && native.type == (int)NetcodeEventType.Payload)
            {
                Marshal.Copy((IntPtr)native.data, buffer, 0, native.bytes);
                Native.netcode_client_free_packet(Handle, native.data);
            }
            Leave(mark);
            Native.Read(found, &native, buffer, out e);
            return found != 0;
        }

        /// <summary>Feeds one raw datagram, as if the socket had received it, but at once: the limits on an update's work do not apply. It is decrypted in place.</summary>
        public void ProcessDatagram(Address from, byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            if (count == 0)
                throw new ArgumentOutOfRangeException("count");
            int mark = Enter();
            fixed (byte* at = data)
                Native.netcode_client_process_packet(Handle, &from, at + offset, count);
            Leave(mark);
        }

        /// <summary>Connects to a server in the same process, without packets: see LoopbackSent. The client must be disconnected.</summary>
        public void ConnectLoopback(int clientIndex, int maxClients)
        {
            Check.Index(maxClients - 1, NetcodeLibrary.MaxSlots, "maxClients");
            Check.Index(clientIndex, maxClients, "clientIndex");
            if (State > ClientState.Disconnected)
                throw new InvalidOperationException("the client must be disconnected first");
            int mark = Enter();
            Native.netcode_client_connect_loopback(Handle, clientIndex, maxClients);
            Leave(mark);
        }

        public void DisconnectLoopback()
        {
            if (!IsLoopback)
                throw new InvalidOperationException("this is no loopback client");
            int mark = Enter();
            Native.netcode_client_disconnect_loopback(Handle);
            Leave(mark);
        }

        public bool IsLoopback
        {
            get
            {
                int mark = Enter();
                int loopback = Native.netcode_client_loopback(Handle);
                Leave(mark);
                return loopback != 0;
            }
        }

        /// <summary>Hands it a payload of the server's LoopbackSent.</summary>
        public void ProcessLoopbackPacket(byte[] data, int offset, int count, ulong sequence)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            if (!IsLoopback)
                throw new InvalidOperationException("this is no loopback client");
            int mark = Enter();
            fixed (byte* at = data)
                Native.netcode_client_process_loopback_packet(Handle, at + offset, count, sequence);
            Leave(mark);
        }

        /// <summary>Takes the local address that the system prefers now: call it where a phone reports a new network. A client does it by itself too,
        /// a second later. The connection stays with a server that has Roaming.</summary>
        /// <returns>Whether the socket has a fresh one.</returns>
        public bool Rebind()
        {
            int mark = Enter();
            int rebound = Native.netcode_client_rebind(Handle);
            Leave(mark);
            return rebound != 0;
        }

        /// <summary>Sends what BatchSends holds back.</summary>
        public void Flush()
        {
            int mark = Enter();
            Native.netcode_client_flush(Handle);
            Leave(mark);
        }

        /// <summary>Sleeps until a datagram waits, something is due, or the seconds have passed. Call Update afterwards.</summary>
        public void Wait(double seconds)
        {
            int mark = Enter();
            Native.netcode_client_wait(Handle, seconds);
            Leave(mark);
        }

        /// <summary>Counts and measurements; nothing is allocated.</summary>
        public void GetStats(out ClientStats stats)
        {
            int mark = Enter();
            fixed (ClientStats* at = &stats)
                Native.netcode_client_stats(Handle, at);
            Leave(mark);
        }

        /// <summary>Why can't I connect? Everything that the client knows about it, and one sentence for the player.</summary>
        public ClientReport GetReport()
        {
            netcode_client_report_t native;
            int mark = Enter();
            Native.netcode_client_report(Handle, &native);
            Leave(mark);
            var servers = new ServerReport[native.num_servers];
            for (int i = 0; i < servers.Length; i++)
            {
                netcode_client_report_server_t* server = (netcode_client_report_server_t*)native.servers + i;
                servers[i] = new ServerReport
                {
                    Address = server->address,
                    RequestsSent = server->requests_sent,
                    ResponsesSent = server->responses_sent,
                    WasChallenged = server->challenged != 0,
                    WasDenied = server->denied != 0,
                    LastError = server->last_error,
                    Errors = server->errors,
                    SecondsWaited = server->seconds_waited
                };
            }
            return new ClientReport
            {
                State = (ClientState)native.state,
                ServerIndex = native.server_index,
                Servers = servers,
                TokenSecondsLeft = native.token_seconds_left,
                Text = Native.Text((IntPtr)native.text, 256),
                Refused = native.refused,
                RefusedAs = (DropReason)native.refused_as
            };
        }

        /// <exception cref="ConnectionException">The connection, or the attempt, ended with an error; the message is the report's sentence.</exception>
        public void ThrowIfFailed()
        {
            ClientState state = State;
            if (state < ClientState.Disconnected)
                throw new ConnectionException(state, GetReport().Text);
        }

#if NETSTANDARD2_1_OR_GREATER || NETSTANDARD2_1 || NET_STANDARD_2_1 || NETCOREAPP
        /// <summary>Sends a payload of 1 to 1200 bytes. Does nothing while not connected.</summary>
        public void Send(ReadOnlySpan<byte> data)
        {
            Check.Payload(data.Length);
            int mark = Enter();
            fixed (byte* at = &MemoryMarshal.GetReference(data))
                Native.netcode_client_send_packet(Handle, at, data.Length);
            Leave(mark);
        }
#endif
    }

    // ---- server ----

    /// <summary>A server's configuration. What is not set has netcode.h's default. It is copied: later changes have no effect.</summary>
    public sealed class ServerConfig
    {
        /// <summary>Unique to this game, and to each incompatible version of it.</summary>
        public ulong ProtocolId { get; set; }
        /// <summary>32 bytes, shared only with the backend. It must be set.</summary>
        public byte[] PrivateKey { get; set; }
        public NetworkSimulator Simulator { get; set; }
        /// <summary>The network is this socket. It goes before Simulator.</summary>
        public NetcodeSocket Socket { get; set; }
        public ConnectHandler ConnectionChanged { get; set; }
        /// <summary>Gets what is sent to loopback clients.</summary>
        public LoopbackHandler LoopbackSent { get; set; }
        /// <summary>Seconds. Positive: tokens that expire before start and this are refused, as they may have been used before.</summary>
        public int MaxConnectTokenLifetime { get; set; }
        /// <summary>Seconds since 1970; null: the system's clock.</summary>
        public Func<ulong> UnixTime { get; set; }
        public LogHandler Log { get; set; }
        public DropHandler Dropped { get; set; }
        public SequenceBase SequenceBase { get; set; }
        /// <summary>0: max(1024, 2 x slots, min(32 x slots, 4096)).</summary>
        public int PacketPoolBuffers { get; set; }
        /// <summary>Received packets of one client that may be queued; 0: 256.</summary>
        public int PacketQuota { get; set; }
        public bool BatchSends { get; set; }
        public int ReceiveBufferBytes { get; set; }
        public int SendBufferBytes { get; set; }
        /// <summary>Bind this instead of the wildcard of the server address's family.</summary>
        public string BindAddress { get; set; }
        public string BindAddress2 { get; set; }
        /// <summary>This server's addresses in tokens, if they differ from its own; up to 32. Port 0 means the bound port.</summary>
        public IList<string> PublicAddresses { get; set; }
        /// <summary>A newer token with a connected client's id takes over its slot.</summary>
        public bool ReplaceExistingClients { get; set; }
        /// <summary>0: max(4 x slots, 256).</summary>
        public int PendingHandshakes { get; set; }
        /// <summary>Used tokens that are remembered; 0: max(8 x slots, 1024).</summary>
        public int ConsumedTokens { get; set; }
        /// <summary>Bans: asked last before a client gets a slot. If it throws, the client is denied.</summary>
        public AdmitHandler Admit { get; set; }
        /// <summary>Linux: the system drops datagrams of impossible size or prefix before they are copied.</summary>
        public bool KernelFilter { get; set; }
        /// <summary>Linux: several servers, each on its own thread, share one port.</summary>
        public bool SharePort { get; set; }
        /// <summary>A connected client whose address changes stays connected.</summary>
        public bool Roaming { get; set; }
        public StrayHandler Stray { get; set; }

        internal ServerConfig Copy() { return (ServerConfig)MemberwiseClone(); }

        internal unsafe void Fill(netcode_server_config_t* config)
        {
            Native.netcode_default_server_config(config);
            config->events = 1;
            config->protocol_id = ProtocolId;
            if (PrivateKey != null)
                Marshal.Copy(PrivateKey, 0, (IntPtr)config->private_key, NetcodeLibrary.KeyBytes);
            config->connect_disconnect_callback = ConnectionChanged != null ? Callbacks.ServerConnectDisconnect : IntPtr.Zero;
            config->send_loopback_packet_callback = LoopbackSent != null ? Callbacks.ServerLoopback : IntPtr.Zero;
            config->max_connect_token_lifetime = MaxConnectTokenLifetime;
            config->unix_time = UnixTime != null ? Callbacks.ServerUnixTime : IntPtr.Zero;
            config->log_callback = Log != null ? Callbacks.ServerLog : IntPtr.Zero;
            config->drop_callback = Dropped != null ? Callbacks.ServerDrop : IntPtr.Zero;
            config->sequence_base = (int)SequenceBase;
            config->packet_pool_buffers = PacketPoolBuffers;
            config->packet_quota = PacketQuota;
            config->batch_sends = BatchSends ? 1 : 0;
            config->receive_buffer_bytes = ReceiveBufferBytes;
            config->send_buffer_bytes = SendBufferBytes;
            config->replace_existing_clients = ReplaceExistingClients ? 1 : 0;
            config->pending_handshakes = PendingHandshakes;
            config->consumed_tokens = ConsumedTokens;
            config->admit_callback = Admit != null ? Callbacks.ServerAdmit : IntPtr.Zero;
            config->kernel_filter = KernelFilter ? 1 : 0;
            config->share_port = SharePort ? 1 : 0;
            config->roaming = Roaming ? 1 : 0;
            config->stray_callback = Stray != null ? Callbacks.ServerStray : IntPtr.Zero;
        }
    }

    /// <summary>A server: has slots, into which clients with valid tokens come.</summary>
    public sealed unsafe class NetcodeServer : NetcodeObject
    {
        internal readonly ServerConfig Config;
        private readonly NetworkSimulator simulator;
        private readonly NetcodeSocket socket;
        private readonly byte[] buffer = new byte[NetcodeLibrary.MaxPacketSize];
        private ServerSlot[] slots = new ServerSlot[0];
        internal byte[] LoopbackBuffer, StrayBuffer;

        /// <summary>Makes a server whose address in tokens is `address`; it binds the wildcard address of that family at that port (or BindAddress).
        /// Port 0 binds any free port.</summary>
        /// <exception cref="ServerCreateException">It can not be created; Error and Message say why.</exception>
        public NetcodeServer(string address, ServerConfig config) : this(address, null, config, NetcodeLibrary.Time) { }

        /// <summary>The same on a clock of yours.</summary>
        public NetcodeServer(string address, ServerConfig config, double time) : this(address, null, config, time) { }

        /// <summary>The same with an address of each family.</summary>
        /// <param name="address2">null: one address only.</param>
        /// <param name="time">Seconds on the clock that Update will get.</param>
        public NetcodeServer(string address, string address2, ServerConfig config, double time)
        {
            Check.NotNull(address, "address");
            Check.NotNull(config, "config");
            Check.Size(config.PrivateKey, "config.PrivateKey", NetcodeLibrary.KeyBytes);
            if (config.PublicAddresses != null && config.PublicAddresses.Count > NetcodeLibrary.MaxPublicAddresses)
                throw new ArgumentException("at most 32 public addresses", "config");
            NetcodeLibrary.Load();
            Config = config.Copy();
            netcode_server_config_t native;
            netcode_socket_t filled;
            Config.Fill(&native);
            Self = GCHandle.Alloc(this, GCHandleType.Weak);
            native.callback_context = GCHandle.ToIntPtr(Self);
            int mark = Faults.Count;
            try
            {
                if (Config.Socket != null)
                {
                    Config.Socket.Fill(&filled);
                    socket = Config.Socket;
                    native.socket = &filled;
                }
                else if (Config.Simulator != null)
                {
                    native.network_simulator = Config.Simulator.Use();
                    simulator = Config.Simulator;
                }
                using (var addresses = new NativeStrings(Config.PublicAddresses ?? new string[0], "config.PublicAddresses"))
                fixed (byte* first = Native.Bytes(address), second = Native.Bytes(address2),
                       bind = Native.Bytes(Config.BindAddress), bind2 = Native.Bytes(Config.BindAddress2))
                {
                    native.public_addresses = addresses.Pointers;
                    native.num_public_addresses = addresses.Count;
                    native.bind_address = bind;
                    native.bind_address2 = bind2;
                    Adopt(address2 == null
                        ? Native.netcode_server_create(first, &native, time)
                        : Native.netcode_server_create_dual(first, second, &native, time));
                }
                for (int i = 0; i < NetcodeLibrary.KeyBytes; i++)
                    native.private_key[i] = 0;
                Config.PrivateKey = null; // not kept
                if (Handle == IntPtr.Zero)
                {
                    var error = (ServerCreateError)Native.netcode_server_create_error();
                    throw new ServerCreateException(error, "no server at \"" + address + "\": " + error.Text());
                }
                Faults.Throw(mark);
            }
            catch
            {
                Faults.Forget(mark);
                if (Handle == IntPtr.Zero)
                    ReleaseNetwork(false);
                Dispose();
                throw;
            }
        }

        /// <summary>The native bytes that a server with this config and so many slots takes.</summary>
        public static long MemoryBytes(ServerConfig config, int maxClients)
        {
            Check.NotNull(config, "config");
            Check.Index(maxClients - 1, NetcodeLibrary.MaxSlots, "maxClients");
            NetcodeLibrary.Load();
            netcode_server_config_t native;
            ServerConfig copy = config.Copy();
            copy.PrivateKey = null;
            copy.Fill(&native);
            return (long)Native.netcode_server_memory(&native, maxClients).ToUInt64();
        }

        internal override NetworkSimulator Network { get { return simulator ?? (socket != null ? socket.Network : null); } }

        internal override void Destroy(IntPtr handle)
        {
            Native.netcode_server_destroy(handle);
            ReleaseNetwork(true);
        }

        private bool networkReleased;

        private void ReleaseNetwork(bool wasCreated)
        {
            if (networkReleased)
                return;
            networkReleased = true;
            if (simulator != null)
                simulator.EndUse();
            if (socket != null)
                socket.Forget(wasCreated);
        }

        /// <summary>Opens 1 to 65535 slots; a running server is stopped first. Inside a callback it takes effect when the outermost call
        /// returns.</summary>
        /// <exception cref="OutOfMemoryException">There is no memory for so many; the server is stopped then.</exception>
        public void Start(int maxClients)
        {
            Check.Index(maxClients - 1, NetcodeLibrary.MaxSlots, "maxClients");
            int mark = Enter();
            bool wasInside = IsInsideCallback;
            Native.netcode_server_start(Handle, maxClients);
            bool isRunning = wasInside || Native.netcode_server_running(Handle) != 0;
            if (isRunning && maxClients > slots.Length)
                Array.Resize(ref slots, maxClients); // views that were handed out stay valid
            Leave(mark);
            if (!isRunning)
                throw new OutOfMemoryException("no memory for " + maxClients + " slots");
        }

        /// <summary>Disconnects all clients and closes the slots.</summary>
        public void Stop()
        {
            int mark = Enter();
            Native.netcode_server_stop(Handle);
            Leave(mark);
        }

        /// <summary>Receives, sends keep-alives, ends what timed out. Call it once a tick.</summary>
        public void Update() { Update(NetcodeLibrary.Time); }

        /// <summary>The same on a clock of yours, in seconds.</summary>
        public void Update(double time)
        {
            int mark = Enter();
            if (Network != null)
                Network.EndForgotten();
            Native.netcode_server_update(Handle, time);
            Leave(mark);
        }

        public bool IsRunning
        {
            get
            {
                int mark = Enter();
                int running = Native.netcode_server_running(Handle);
                Leave(mark);
                return running != 0;
            }
        }

        /// <summary>The slots; 0 while stopped.</summary>
        public int MaxClients
        {
            get
            {
                int mark = Enter();
                int count = Native.netcode_server_max_clients(Handle);
                Leave(mark);
                return count;
            }
        }

        /// <summary>Loopback clients included.</summary>
        public int ConnectedClients
        {
            get
            {
                int mark = Enter();
                int count = Native.netcode_server_num_connected_clients(Handle);
                Leave(mark);
                return count;
            }
        }

        /// <summary>The port of its first address; the actual one if port 0 was requested.</summary>
        public int Port
        {
            get
            {
                int mark = Enter();
                int port = Native.netcode_server_get_port(Handle);
                Leave(mark);
                return port;
            }
        }

        /// <summary>The view of a slot: made once, valid for the life of the server, whichever client has the slot.</summary>
        /// <exception cref="ArgumentOutOfRangeException">No Start has opened this slot.</exception>
        public ServerSlot this[int clientIndex]
        {
            get
            {
                ThrowIfDisposed();
                Slot(clientIndex);
                return slots[clientIndex] ?? (slots[clientIndex] = new ServerSlot(this, clientIndex));
            }
        }

        internal int Slot(int clientIndex) { return Check.Index(clientIndex, slots.Length, "clientIndex"); }

        // A slot that an earlier, larger start had.
        private bool IsClosed(int clientIndex) { return clientIndex >= Native.netcode_server_max_clients(Handle); }

        /// <summary>Sends a payload of 1 to 1200 bytes. Does nothing if no client has the slot.</summary>
        public void Send(int clientIndex, byte[] data)
        {
            Check.NotNull(data, "data");
            Send(clientIndex, data, 0, data.Length);
        }

        public void Send(int clientIndex, byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            int mark = Enter(clientIndex);
            fixed (byte* at = data)
                if (!IsClosed(clientIndex))
                    Native.netcode_server_send_packet(Handle, clientIndex, at + offset, count);
            Leave(mark);
        }

        /// <summary>The same, but only if the slot still belongs to that session.</summary>
        public void SendToSession(int clientIndex, ulong session, byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            int mark = Enter(clientIndex);
            fixed (byte* at = data)
                if (!IsClosed(clientIndex))
                    Native.netcode_server_send_packet_to_session(Handle, clientIndex, session, at + offset, count);
            Leave(mark);
        }

        /// <summary>Sends a payload to all connected clients but one.</summary>
        /// <param name="exceptClientIndex">-1: to all.</param>
        public void Broadcast(byte[] data, int offset, int count, int exceptClientIndex = -1)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            int mark = exceptClientIndex == -1 ? Enter() : Enter(exceptClientIndex);
            fixed (byte* at = data)
                Native.netcode_server_broadcast(Handle, at + offset, count, exceptClientIndex);
            Leave(mark);
        }

        private int Enter(int clientIndex)
        {
            ThrowIfDisposed();
            Slot(clientIndex);
            return Enter();
        }

        /// <summary>The next event of all clients: false when there is none. Payloads of slots that are joined to messages are
        /// not events. A slot is used again at most once before the events of its clients are read.</summary>
        public bool NextEvent(out NetcodeEvent e)
        {
            netcode_event_t native;
            int mark = Enter();
            int found = Native.netcode_server_next_event(Handle, &native);
            if (found != 0 && native.type == (int)NetcodeEventType.Payload)
            {
                Marshal.Copy((IntPtr)native.data, buffer, 0, native.bytes);
                Native.netcode_server_free_packet(Handle, native.data);
            }
            Leave(mark);
            Native.Read(found, &native, buffer, out e);
            return found != 0;
        }

        /// <summary>Notifies the client and empties its slot.</summary>
        public void Disconnect(int clientIndex)
        {
            int mark = Enter(clientIndex);
            if (!IsClosed(clientIndex))
                Native.netcode_server_disconnect_client(Handle, clientIndex);
            Leave(mark);
        }

        /// <summary>All clients, except loopback clients.</summary>
        public void DisconnectAll()
        {
            int mark = Enter();
            Native.netcode_server_disconnect_all_clients(Handle);
            Leave(mark);
        }

        /// <summary>Feeds one raw datagram, as if the socket had received it, but at once: the limits on an update's work do not apply. It is decrypted in place.</summary>
        public void ProcessDatagram(Address from, byte[] data, int offset, int count)
        {
            Check.Range(data, "data", offset, count);
            if (count == 0)
                throw new ArgumentOutOfRangeException("count");
            int mark = Enter();
            fixed (byte* at = data)
                Native.netcode_server_process_packet(Handle, &from, at + offset, count);
            Leave(mark);
        }

        /// <summary>Gives a client of the same process a free slot, without a handshake.</summary>
        /// <param name="userData">256 bytes, or null.</param>
        public void ConnectLoopbackClient(int clientIndex, ulong clientId, byte[] userData = null)
        {
            if (userData != null)
                Check.Size(userData, "userData", NetcodeLibrary.UserDataBytes);
            int mark = Enter(clientIndex);
            bool isFree = !IsClosed(clientIndex) && Native.netcode_server_client_connected(Handle, clientIndex) == 0;
            fixed (byte* at = userData)
                if (isFree)
                    Native.netcode_server_connect_loopback_client(Handle, clientIndex, clientId, at);
            Leave(mark);
            if (!isFree)
                throw new InvalidOperationException("a client has the slot, or the server is stopped");
        }

        public void DisconnectLoopbackClient(int clientIndex)
        {
            int mark = Enter(clientIndex);
            bool isLoopback = Native.netcode_server_client_loopback(Handle, clientIndex) != 0;
            if (isLoopback)
                Native.netcode_server_disconnect_loopback_client(Handle, clientIndex);
            Leave(mark);
            if (!isLoopback)
                throw new InvalidOperationException("no loopback client has the slot");
        }

        /// <summary>Hands it a payload of a loopback client's LoopbackSent.</summary>
        public void ProcessLoopbackPacket(int clientIndex, byte[] data, int offset, int count, ulong sequence)
        {
            Check.Range(data, "data", offset, count);
            Check.Payload(count);
            int mark = Enter(clientIndex);
            bool isLoopback = Native.netcode_server_client_loopback(Handle, clientIndex) != 0;
            fixed (byte* at = data)
                if (isLoopback)
                    Native.netcode_server_process_loopback_packet(Handle, clientIndex, at + offset, count, sequence);
            Leave(mark);
            if (!isLoopback)
                throw new InvalidOperationException("no loopback client has the slot");
        }

        /// <summary>Sends what BatchSends holds back.</summary>
        public void Flush()
        {
            int mark = Enter();
            Native.netcode_server_flush(Handle);
            Leave(mark);
        }

        /// <summary>Sleeps until a datagram waits, something is due, or the seconds have passed. Call Update afterwards.</summary>
        public void Wait(double seconds)
        {
            int mark = Enter();
            Native.netcode_server_wait(Handle, seconds);
            Leave(mark);
        }

        /// <summary>Replaces the private keys: 1 to 4, tried in this order. Connected clients stay connected.</summary>
        public void SetPrivateKeys(params byte[][] keys)
        {
            Check.NotNull(keys, "keys");
            if (keys.Length < 1 || keys.Length > NetcodeLibrary.MaxPrivateKeys)
                throw new ArgumentException("1 to 4 keys", "keys");
            var joined = new byte[keys.Length * NetcodeLibrary.KeyBytes];
            for (int i = 0; i < keys.Length; i++)
            {
                Check.Size(keys[i], "keys", NetcodeLibrary.KeyBytes);
                Array.Copy(keys[i], 0, joined, i * NetcodeLibrary.KeyBytes, NetcodeLibrary.KeyBytes);
            }
            int mark = Enter();
            int set;
            fixed (byte* at = joined)
                set = Native.netcode_server_set_private_keys(Handle, at, keys.Length);
            Array.Clear(joined, 0, joined.Length);
            Leave(mark);
            if (set != Native.Ok)
                throw new NetcodeException("netcode_server_set_private_keys refused the keys");
        }

        /// <summary>Counts; nothing is allocated.</summary>
        public void GetStats(out ServerStats stats)
        {
            int mark = Enter();
            fixed (ServerStats* at = &stats)
                Native.netcode_server_stats(Handle, at);
            Leave(mark);
        }

#if NETSTANDARD2_1_OR_GREATER || NETSTANDARD2_1 || NET_STANDARD_2_1 || NETCOREAPP
        /// <summary>Sends a payload of 1 to 1200 bytes. Does nothing if no client has the slot.</summary>
        public void Send(int clientIndex, ReadOnlySpan<byte> data)
        {
            Check.Payload(data.Length);
            int mark = Enter(clientIndex);
            fixed (byte* at = &MemoryMarshal.GetReference(data))
                if (!IsClosed(clientIndex))
                    Native.netcode_server_send_packet(Handle, clientIndex, at, data.Length);
            Leave(mark);
        }

        public void SendToSession(int clientIndex, ulong session, ReadOnlySpan<byte> data)
        {
            Check.Payload(data.Length);
            int mark = Enter(clientIndex);
            fixed (byte* at = &MemoryMarshal.GetReference(data))
                if (!IsClosed(clientIndex))
                    Native.netcode_server_send_packet_to_session(Handle, clientIndex, session, at, data.Length);
            Leave(mark);
        }

        public void Broadcast(ReadOnlySpan<byte> data, int exceptClientIndex = -1)
        {
            Check.Payload(data.Length);
            int mark = exceptClientIndex == -1 ? Enter() : Enter(exceptClientIndex);
            fixed (byte* at = &MemoryMarshal.GetReference(data))
                Native.netcode_server_broadcast(Handle, at, data.Length, exceptClientIndex);
            Leave(mark);
        }
#endif
    }

    /// <summary>A slot of a server, and the client in it now. The server owns it: there is nothing to dispose.</summary>
    public sealed unsafe class ServerSlot
    {
        internal ServerSlot(NetcodeServer server, int index)
        {
            Server = server;
            Index = index;
        }

        public NetcodeServer Server { get; }
        public int Index { get; }

        public bool IsConnected
        {
            get
            {
                int mark = Server.Enter();
                int connected = Native.netcode_server_client_connected(Server.Handle, Index);
                Server.Leave(mark);
                return connected != 0;
            }
        }

        /// <summary>Why the slot's last client was disconnected; None while one is connected.</summary>
        public DisconnectReason DisconnectReason
        {
            get
            {
                int mark = Server.Enter();
                int reason = Native.netcode_server_client_disconnect_reason(Server.Handle, Index);
                Server.Leave(mark);
                return (DisconnectReason)reason;
            }
        }

        public bool IsLoopback
        {
            get
            {
                int mark = Server.Enter();
                int loopback = Native.netcode_server_client_loopback(Server.Handle, Index);
                Server.Leave(mark);
                return loopback != 0;
            }
        }

        /// <summary>0 if no client is connected.</summary>
        public ulong ClientId
        {
            get
            {
                int mark = Server.Enter();
                ulong id = Native.netcode_server_client_id(Server.Handle, Index);
                Server.Leave(mark);
                return id;
            }
        }

        /// <summary>No address if no client is connected, or if it is a loopback client.</summary>
        public Address Address
        {
            get
            {
                int mark = Server.Enter();
                Address* address = Native.netcode_server_client_address(Server.Handle, Index);
                Address copy = address != null ? *address : default(Address);
                Server.Leave(mark);
                return copy;
            }
        }

        /// <summary>The session's number, never used again; 0 if no client is connected.</summary>
        public ulong Session
        {
            get
            {
                int mark = Server.Enter();
                ulong session = Native.netcode_server_client_session(Server.Handle, Index);
                Server.Leave(mark);
                return session;
            }
        }

        /// <summary>Copies the 256 bytes of user data from the client's token: false if no client is connected.</summary>
        public bool CopyUserData(byte[] destination, int offset)
        {
            Check.Range(destination, "destination", offset, NetcodeLibrary.UserDataBytes);
            int mark = Server.Enter();
            IntPtr data = Native.netcode_server_client_user_data(Server.Handle, Index);
            if (data != IntPtr.Zero)
                Marshal.Copy(data, destination, offset, NetcodeLibrary.UserDataBytes);
            Server.Leave(mark);
            return data != IntPtr.Zero;
        }

        /// <summary>A copy of the user data; null if no client is connected.</summary>
        public byte[] GetUserData()
        {
            var data = new byte[NetcodeLibrary.UserDataBytes];
            return CopyUserData(data, 0) ? data : null;
        }

        /// <summary>The sequence that the next packet to this client will carry; 0 if no client is connected.</summary>
        public ulong NextPacketSequence
        {
            get
            {
                int mark = Server.Enter();
                ulong sequence = Native.netcode_server_next_packet_sequence(Server.Handle, Index);
                Server.Leave(mark);
                return sequence;
            }
        }

        /// <summary>Counts and measurements; nothing is allocated.</summary>
        public void GetStats(out ServerClientStats stats)
        {
            int mark = Server.Enter();
            fixed (ServerClientStats* at = &stats)
                Native.netcode_server_client_stats(Server.Handle, Index, at);
            Server.Leave(mark);
        }

        public void Send(byte[] data) { Server.Send(Index, data); }
        public void Send(byte[] data, int offset, int count) { Server.Send(Index, data, offset, count); }
        public void Disconnect() { Server.Disconnect(Index); }
    }

    // ---- messages ----

    /// <summary>A received message, in the object's buffer until its next TryReceive.</summary>
    public struct Message
    {
        public int Channel;
        public MessageKind Kind;
        public ArraySegment<byte> Data;
    }

    /// <summary>What became of a message or stream that was sent with a receipt.</summary>
    public struct MessageEvent
    {
        public MessageEventType Type;
        public int Channel;
        public MessageKind Kind;
        /// <summary>Of the message or stream.</summary>
        public long Bytes;
        /// <summary>Of Progress: how many of them have arrived.</summary>
        public long BytesDone;
        public ulong Receipt;
        /// <summary>Of Broken.</summary>
        public BrokenReason Reason;
    }

    /// <summary>What a stream sends. Read is called while packets are written, and again for bytes of lost packets, until Acked or Lost was
    /// read.</summary>
    public abstract class MessageStreamSource
    {
        /// <summary>Writes the bytes of the stream from an offset on to the first `count` bytes of the buffer. It must not call the messages, except
        /// to send. If it throws, these bytes are sent as zeros, the stream is cancelled, and the exception is thrown by the call that was
        /// sending. Was that the last piece, the other side has the stream all the same: let it check a hash if reading may fail.</summary>
        protected internal abstract void Read(uint offset, byte[] buffer, int count);

        /// <summary>From an array, which must not change meanwhile.</summary>
        public static MessageStreamSource FromArray(byte[] data)
        {
            Check.NotNull(data, "data");
            return new ArraySource(data);
        }

        /// <summary>From a stream that can seek; no other code may use it meanwhile.</summary>
        public static MessageStreamSource FromStream(Stream stream)
        {
            Check.NotNull(stream, "stream");
            if (!stream.CanSeek || !stream.CanRead)
                throw new ArgumentException("it can not be read and sought", "stream");
            return new StreamSource(stream);
        }

        private sealed class ArraySource : MessageStreamSource
        {
            private readonly byte[] data;
            internal ArraySource(byte[] data) { this.data = data; }
            protected internal override void Read(uint offset, byte[] buffer, int count) { Buffer.BlockCopy(data, (int)offset, buffer, 0, count); }
        }

        private sealed class StreamSource : MessageStreamSource
        {
            private readonly Stream stream;
            private readonly long start;

            internal StreamSource(Stream stream)
            {
                this.stream = stream;
                start = stream.Position;
            }

            protected internal override void Read(uint offset, byte[] buffer, int count)
            {
                stream.Seek(start + offset, SeekOrigin.Begin);
                for (int done = 0; done < count;)
                {
                    int read = stream.Read(buffer, done, count - done);
                    if (read <= 0)
                        throw new EndOfStreamException();
                    done += read;
                }
            }
        }
    }

    /// <summary>What a stream is written to on the receiving side.</summary>
    public abstract class MessageStreamSink
    {
        /// <summary>Gets the first `count` bytes of the buffer, which are those of the stream from an offset on. Each byte comes once, in any order of
        /// offsets. False, or an exception, ends the stream: the sender gets Lost. It must not call the messages, except to send.</summary>
        protected internal abstract bool Write(uint offset, byte[] buffer, int count);

        /// <summary>The last call: whether all bytes were written. Not called when the messages were forgotten and are finalized.</summary>
        protected internal virtual void End(bool isComplete) { }
    }

    /// <summary>A sink into an array.</summary>
    public sealed class ArraySink : MessageStreamSink
    {
        /// <summary>For a stream of so many bytes: check the number before, it is the other side's.</summary>
        public ArraySink(uint bytes) { Data = new byte[bytes]; }

        public byte[] Data { get; }
        public bool IsEnded { get; private set; }
        public bool IsComplete { get; private set; }

        protected internal override bool Write(uint offset, byte[] buffer, int count)
        {
            Buffer.BlockCopy(buffer, 0, Data, (int)offset, count);
            return true;
        }

        protected internal override void End(bool isComplete)
        {
            IsEnded = true;
            IsComplete = isComplete;
        }
    }

    /// <summary>The other side sends a stream of so many bytes, with a number of its own: return where to write it, or null to refuse it.</summary>
    public delegate MessageStreamSink AcceptStreamHandler(NetcodeMessages messages, int channel, uint bytes, uint tag);

    /// <summary>Counts since creation or the last reset, and measurements. Seconds, bytes.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct MessagesStats
    {
        /// <summary>Messages and fragments sent again because a packet was lost.</summary>
        public ulong ReliableRetriesTotal;
        /// <summary>Begun reliable messages given up.</summary>
        public ulong ReliableTimeoutsTotal;
        public ulong DroppedDuplicatesTotal;
        public ulong DroppedOldTotal;
        public ulong DroppedWindowTotal;
        private fixed ulong drops[Native.MessagesDropReasons];
        public ulong PacketsSent, PacketsReceived, PacketsLost, PacketsLostSpuriously;
        public ulong BytesSent, BytesReceived;
        /// <summary>Begun to be sent; handed to the application.</summary>
        public ulong MessagesSent, MessagesReceived;
        /// <summary>Small reliable messages sent once more before anything was lost.</summary>
        public ulong MessagesRepeated;
        /// <summary>Received again: repeats and retries.</summary>
        public ulong MessagesDuplicate;
        /// <summary>Sequenced, received after a newer one.</summary>
        public ulong MessagesOutdated;
        /// <summary>Dropped here, unsent.</summary>
        public ulong MessagesExpired;
        /// <summary>Unreliable, dropped on arrival: the application reads too slowly.</summary>
        public ulong MessagesUnstored;
        public ulong Probes;
        /// <summary>0 until measured.</summary>
        public double Rtt, RttVariation, RttMin, RttLatest, Jitter;
        /// <summary>The round trip and the other side's tick: the delay for a player.</summary>
        public double Ping;
        /// <summary>0 to 1, of the latest packets.</summary>
        public double LossSent, LossReceived;
        /// <summary>Bytes a second.</summary>
        public double SendRate, ReceiveRate;
        public double CongestionWindow, BytesInFlight;
        public double SendBufferUsed, ReceiveBufferUsed;
        /// <summary>Bytes of reliable messages that the other side would accept now.</summary>
        public double Credit;

        /// <summary>Packets dropped for a reason.</summary>
        public ulong Drops(MessagesDropReason reason)
        {
            fixed (ulong* at = drops)
                return at[Check.Index((int)reason, Native.MessagesDropReasons, "reason")];
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct MessagesChannelStats
    {
        /// <summary>Of which nothing was sent yet.</summary>
        public int QueuedMessages;
        public int QueuedBytes;
        /// <summary>The age of the oldest of them.</summary>
        public double QueuedSeconds;
    }

    /// <summary>The configuration of messages. What is not set has netcode.h's default. It is copied.</summary>
    public sealed class MessagesConfig
    {
        /// <summary>1 to 32, the same on both sides; 0: 32.</summary>
        public int Channels { get; set; }
        /// <summary>Either way, up to 16 MiB; 0: 256 KiB.</summary>
        public int MaxMessageBytes { get; set; }
        public int SendBufferBytes { get; set; }
        public int ReceiveBufferBytes { get; set; }
        /// <summary>Packets in flight, 16 to 4096.</summary>
        public int WindowPackets { get; set; }
        public Congestion Congestion { get; set; }
        /// <summary>Of Congestion.Fixed; 0: 125000.</summary>
        public int BytesPerSecond { get; set; }
        /// <summary>Given up after 1 to 60 losses; 0: never, until the connection ends.</summary>
        public int MaxRetries { get; set; }
        /// <summary>An unreliable message that is too large for a packet is sent reliably, and not refused.</summary>
        public bool UpgradeLarge { get; set; }
        /// <summary>0: 1.0; negative: never.</summary>
        public double PingSeconds { get; set; }
        /// <summary>Of each channel, up to 32: 0 is sent before 1 and so on.</summary>
        public byte[] Priorities { get; set; }
        /// <summary>Shares among channels of one priority; 0 is 1.</summary>
        public byte[] Weights { get; set; }
        public Repeats Repeats { get; set; }
        /// <summary>The rate is never below it; 0: 16000.</summary>
        public int LeastBytesPerSecond { get; set; }
        /// <summary>One way; 0: MaxMessageBytes.</summary>
        public int MaxSendMessageBytes { get; set; }
        public int MaxReceiveMessageBytes { get; set; }
        /// <summary>null: all streams are refused.</summary>
        public AcceptStreamHandler AcceptStream { get; set; }

        internal MessagesConfig Copy() { return (MessagesConfig)MemberwiseClone(); }

        internal unsafe void Fill(netcode_messages_config_t* config)
        {
            Native.netcode_default_messages_config(config);
            config->channels = Channels;
            config->max_message_bytes = MaxMessageBytes;
            config->send_buffer_bytes = SendBufferBytes;
            config->receive_buffer_bytes = ReceiveBufferBytes;
            config->window_packets = WindowPackets;
            config->congestion = (int)Congestion;
            config->bytes_per_second = BytesPerSecond;
            config->max_retries = MaxRetries;
            config->upgrade_large = UpgradeLarge ? 1 : 0;
            config->ping_seconds = PingSeconds;
            Fill(Priorities, config->priorities, "Priorities");
            Fill(Weights, config->weights, "Weights");
            config->repeats = (int)Repeats;
            config->least_bytes_per_second = LeastBytesPerSecond;
            config->max_send_message_bytes = MaxSendMessageBytes;
            config->max_receive_message_bytes = MaxReceiveMessageBytes;
            config->accept_stream_function = AcceptStream != null ? Callbacks.MessagesAcceptStream : IntPtr.Zero;
        }

        private static unsafe void Fill(byte[] values, byte* at, string name)
        {
            if (values != null && values.Length > NetcodeMessages.MaxChannels)
                throw new ArgumentException("at most 32", name);
            for (int i = 0; values != null && i < values.Length; i++)
                at[i] = values[i];
        }
    }

    /// <summary>Messages of any size over one connection, each delivered as you choose. Joined to a client: Update it, ReceiveFrom(client), read and
    /// send, SendTo(client). A server has an object for each slot.</summary>
    public sealed unsafe class NetcodeMessages : NetcodeObject
    {
        public const int MaxChannels = 32;
        /// <summary>Of a packet, at most.</summary>
        public const int HeaderBytes = 11;
        /// <summary>The largest message that is sent in one piece.</summary>
        public const int WholeBytes = 1180;
        public const int FragmentBytes = 1168;
        /// <summary>The largest MaxMessageBytes.</summary>
        public const int MaxBytes = 16777216;

        internal readonly MessagesConfig Config;
        private readonly int channels;
        private byte[] buffer = new byte[NetcodeLibrary.MaxPacketSize];
        private readonly Dictionary<ulong, OutgoingStream> outgoing = new Dictionary<ulong, OutgoingStream>();
        private readonly List<IncomingStream> incoming = new List<IncomingStream>();
        private readonly List<ulong> cancelled = new List<ulong>();
        private ulong lastStream;
        private byte[] scratch;
        internal bool IsInStream; // a stream's function is running: only sending is allowed

        /// <exception cref="ArgumentException">A number of the config is out of its range.</exception>
        public NetcodeMessages(MessagesConfig config = null) : this(config, NetcodeLibrary.Time) { }

        /// <param name="time">Seconds on the clock that the other calls will get.</param>
        public NetcodeMessages(MessagesConfig config, double time)
        {
            NetcodeLibrary.Load();
            Config = config != null ? config.Copy() : new MessagesConfig();
            channels = Config.Channels > 0 ? Config.Channels : MaxChannels;
            netcode_messages_config_t native;
            Config.Fill(&native);
            if (Native.netcode_messages_memory(&native).ToUInt64() == 0)
                throw new ArgumentException("a number is out of its range: see MessagesConfig", "config");
            Self = GCHandle.Alloc(this, GCHandleType.Weak);
            native.accept_stream_context = GCHandle.ToIntPtr(Self);
            Adopt(Native.netcode_messages_create(&native, time));
            if (Handle == IntPtr.Zero)
            {
                Dispose();
                throw new OutOfMemoryException("netcode_messages_create");
            }
        }

        /// <summary>The native bytes that an object with this config takes; 0 if the config is invalid.</summary>
        public static long MemoryBytes(MessagesConfig config = null)
        {
            NetcodeLibrary.Load();
            netcode_messages_config_t native;
            (config ?? new MessagesConfig()).Fill(&native);
            return (long)Native.netcode_messages_memory(&native).ToUInt64();
        }

        internal override void Destroy(IntPtr handle)
        {
            Native.netcode_messages_destroy(handle);
            foreach (OutgoingStream stream in outgoing.Values)
                stream.Free();
            foreach (IncomingStream stream in incoming)
                stream.Free();
        }

        private int EnterOutside()
        {
            if (IsInStream)
                throw new InvalidOperationException("a stream's function may only send");
            return Enter();
        }

        /// <summary>For the next connection: as new. Messages that wait for a receipt are reported as Lost.</summary>
        public void Reset() { Reset(NetcodeLibrary.Time); }

        public void Reset(double time)
        {
            int mark = EnterOutside();
            bool isInside = IsInsideCallback;
            if (!isInside)
                Native.netcode_messages_reset(Handle, time);
            Leave(mark);
            if (isInside)
                throw new InvalidOperationException("not inside a callback of its own calls");
        }

        /// <summary>Queues a copy of an array.</summary>
        public SendResult Send(int channel, MessageKind kind, byte[] data)
        {
            Check.NotNull(data, "data");
            return Send(channel, kind, data, 0, data.Length);
        }

        /// <summary>Queues a copy of a part of an array, which may be empty.</summary>
        /// <param name="receipt">Yours, returned by events; if not 0, the message has events.</param>
        /// <param name="ttlSeconds">Dropped if not sent by then; if reliable, given up if not acknowledged. 0: unreliable 0.5 s, reliable for ever;
        /// ordered messages must not have one.</param>
        public SendResult Send(int channel, MessageKind kind, byte[] data, int offset, int count, ulong receipt = 0, double ttlSeconds = 0)
        {
            Check.Range(data, "data", offset, count);
            fixed (byte* at = data)
                return Send(channel, kind, at + offset, count, receipt, ttlSeconds);
        }

#if NETSTANDARD2_1_OR_GREATER || NETSTANDARD2_1 || NET_STANDARD_2_1 || NETCOREAPP
        /// <summary>Queues a copy.</summary>
        public SendResult Send(int channel, MessageKind kind, ReadOnlySpan<byte> data, ulong receipt = 0, double ttlSeconds = 0)
        {
            fixed (byte* at = &MemoryMarshal.GetReference(data))
                return Send(channel, kind, at, data.Length, receipt, ttlSeconds);
        }
#endif

        private SendResult Send(int channel, MessageKind kind, byte* data, int count, ulong receipt, double ttlSeconds)
        {
            Check.Index(channel, channels, "channel");
            if (kind < MessageKind.Unreliable || kind >= MessageKind.Stream)
                throw new ArgumentOutOfRangeException("kind");
            if (!(ttlSeconds < 1e300) || (ttlSeconds > 0 && kind == MessageKind.ReliableOrdered))
                throw new ArgumentOutOfRangeException("ttlSeconds", "no number of seconds, or for an ordered message");
            var message = new netcode_message_t
            {
                channel = channel,
                kind = (int)kind,
                data = data,
                bytes = count,
                ttl_seconds = ttlSeconds,
                receipt = receipt
            };
            int mark = Enter();
            int result = Native.netcode_messages_send_message(Handle, &message);
            Leave(mark);
            return (SendResult)result;
        }

        /// <summary>Queues a stream of any size, reliably, which is read while packets are written. Events report Progress, and Acked or Lost: read
        /// them, or the source is kept.</summary>
        /// <param name="tag">Yours: the other side gets it.</param>
        /// <param name="receipt">Yours: events have it, and CancelStream wants it.</param>
        public SendResult SendStream(int channel, MessageStreamSource source, uint bytes, uint tag, ulong receipt = 0)
        {
            Check.Index(channel, channels, "channel");
            Check.NotNull(source, "source");
            var outgoingStream = new OutgoingStream(this, source, receipt);
            var stream = new netcode_messages_stream_t
            {
                channel = channel,
                bytes = bytes,
                tag = tag,
                receipt = lastStream + 1, // of this object, so that each is found again whatever the user's receipts are
                context = outgoingStream.Context,
                read_function = Callbacks.StreamRead
            };
            int result;
            int mark = 0;
            try
            {
                mark = Enter();
            }
            catch
            {
                outgoingStream.Free();
                throw;
            }
            result = Native.netcode_messages_send_stream(Handle, &stream);
            if (result == Native.Ok)
                outgoing[++lastStream] = outgoingStream;
            else
                outgoingStream.Free();
            Leave(mark);
            return (SendResult)result;
        }

        /// <summary>Sends an array as a stream; it must not change until Acked or Lost was read.</summary>
        public SendResult SendStream(int channel, byte[] data, uint tag, ulong receipt = 0)
        {
            return SendStream(channel, MessageStreamSource.FromArray(data), (uint)data.Length, tag, receipt);
        }

        /// <summary>Ends the streams that are sent with this receipt: Lost is their event.</summary>
        /// <returns>False: there is none.</returns>
        public bool CancelStream(ulong receipt)
        {
            bool found = false;
            int mark = EnterOutside();
            foreach (KeyValuePair<ulong, OutgoingStream> pair in outgoing)
                if (pair.Value.Receipt == receipt)
                    found |= Native.netcode_messages_cancel_stream(Handle, pair.Key) == Native.Ok;
            Leave(mark);
            return found;
        }

        /// <summary>The next message: false when there is none.</summary>
        public bool TryReceive(out Message message)
        {
            netcode_message_t native;
            int mark = EnterOutside();
            bool found = Native.netcode_messages_receive(Handle, &native) != 0;
            message = default(Message);
            if (found)
            {
                if (native.bytes > buffer.Length)
                    buffer = new byte[Math.Max(native.bytes, 2 * buffer.Length)];
                if (native.bytes > 0)
                    Marshal.Copy((IntPtr)native.data, buffer, 0, native.bytes);
                message.Channel = native.channel;
                message.Kind = (MessageKind)native.kind;
                message.Data = new ArraySegment<byte>(buffer, 0, native.bytes);
            }
            Leave(mark);
            return found;
        }

        /// <summary>The next event of messages that have receipts: false when there is none.</summary>
        public bool NextEvent(out MessageEvent e)
        {
            netcode_messages_event_t native;
            int mark = EnterOutside();
            bool found = Native.netcode_messages_event(Handle, &native) != 0;
            e = default(MessageEvent);
            if (found)
            {
                e.Type = (MessageEventType)native.type;
                e.Channel = native.channel;
                e.Kind = (MessageKind)native.kind;
                e.Bytes = native.bytes;
                e.BytesDone = native.bytes_done;
                e.Receipt = native.receipt;
                e.Reason = (BrokenReason)native.reason;
                OutgoingStream stream;
                if (e.Kind == MessageKind.Stream && outgoing.TryGetValue(native.receipt, out stream))
                {
                    e.Bytes = native.stream_bytes;
                    e.BytesDone = native.stream_bytes_done;
                    e.Receipt = stream.Receipt;
                    if (e.Type == MessageEventType.Acked || e.Type == MessageEventType.Lost)
                    {
                        outgoing.Remove(native.receipt);
                        stream.Free();
                    }
                }
            }
            Leave(mark);
            return found;
        }

        /// <summary>Sets the time, and does nothing else: before you process packets yourself.</summary>
        public void SetTime(double time)
        {
            int mark = EnterOutside();
            Native.netcode_messages_set_time(Handle, time);
            Leave(mark);
        }

        /// <summary>Reads a packet of the other side's GeneratePacket: for networks of your own.</summary>
        /// <returns>None, or why the whole packet was dropped.</returns>
        public MessagesDropReason ProcessPacket(byte[] packet, int offset, int count)
        {
            Check.Range(packet, "packet", offset, count);
            if (count == 0)
                return MessagesDropReason.Header;
            int mark = EnterOutside();
            int reason;
            fixed (byte* at = packet)
                reason = Native.netcode_messages_process_packet(Handle, at + offset, count);
            EndCancelled();
            Leave(mark);
            return (MessagesDropReason)reason;
        }

        /// <summary>Writes the next packet to be sent, for networks of your own, and returns its bytes, or 0: call it until then. The array has at
        /// least 1200 bytes behind the offset.</summary>
        public int GeneratePacket(byte[] packet, int offset = 0)
        {
            Check.NotNull(packet, "packet");
            Check.Range(packet, "packet", offset, NetcodeLibrary.MaxPacketSize);
            int mark = EnterOutside();
            int bytes;
            fixed (byte* at = packet)
                bytes = Native.netcode_messages_generate_packet(Handle, at + offset, packet.Length - offset);
            EndCancelled();
            Leave(mark);
            return bytes;
        }

        /// <summary>Queued messages are sent with the next packets, full or not.</summary>
        public void Flush()
        {
            int mark = EnterOutside();
            Native.netcode_messages_flush(Handle);
            Leave(mark);
        }

        /// <summary>Sets the time, does what is due, flushes: for networks of your own.</summary>
        public void Update(double time)
        {
            int mark = EnterOutside();
            Native.netcode_messages_update(Handle, time);
            EndCancelled();
            Leave(mark);
        }

        /// <summary>When Update and GeneratePacket have work to do if nothing arrives; an hour from now at most.</summary>
        public double NextDeadline
        {
            get
            {
                int mark = EnterOutside();
                double time = Native.netcode_messages_next_deadline(Handle);
                Leave(mark);
                return time;
            }
        }

        /// <summary>Counts and measurements; nothing is allocated.</summary>
        public void GetStats(out MessagesStats stats)
        {
            int mark = Enter();
            fixed (MessagesStats* at = &stats)
                Native.netcode_messages_stats(Handle, at);
            Leave(mark);
        }

        /// <summary>The queue of one channel.</summary>
        public void GetChannelStats(int channel, out MessagesChannelStats stats)
        {
            Check.Index(channel, channels, "channel");
            int mark = Enter();
            fixed (MessagesChannelStats* at = &stats)
                Native.netcode_messages_channel_stats(Handle, channel, at);
            Leave(mark);
        }

        /// <summary>Joined to a client: call it after the client's Update. It reads all payloads of the client.</summary>
        public void ReceiveFrom(NetcodeClient client) { ReceiveFrom(client, NetcodeLibrary.Time); }

        public void ReceiveFrom(NetcodeClient client, double time)
        {
            Check.NotNull(client, "client");
            Join(client, -1, time, false);
        }

        /// <summary>Joined to a client: call it at the end of the tick.</summary>
        public void SendTo(NetcodeClient client) { SendTo(client, NetcodeLibrary.Time); }

        public void SendTo(NetcodeClient client, double time)
        {
            Check.NotNull(client, "client");
            Join(client, -1, time, true);
        }

        /// <summary>Joined to a server's slot: call it after the server's Update. From then on payloads of this slot are not events.</summary>
        public void ReceiveFrom(NetcodeServer server, int clientIndex) { ReceiveFrom(server, clientIndex, NetcodeLibrary.Time); }

        public void ReceiveFrom(NetcodeServer server, int clientIndex, double time)
        {
            Check.NotNull(server, "server");
            server.ThrowIfDisposed();
            Join(server, server.Slot(clientIndex), time, false);
        }

        /// <summary>Joined to a server's slot: call it at the end of the tick.</summary>
        public void SendTo(NetcodeServer server, int clientIndex) { SendTo(server, clientIndex, NetcodeLibrary.Time); }

        public void SendTo(NetcodeServer server, int clientIndex, double time)
        {
            Check.NotNull(server, "server");
            server.ThrowIfDisposed();
            Join(server, server.Slot(clientIndex), time, true);
        }

        private void Join(NetcodeObject peer, int clientIndex, double time, bool isSending)
        {
            int mark = EnterOutside();
            int peerMark;
            try
            {
                peerMark = peer.Enter();
            }
            catch
            {
                Leave(mark);
                throw;
            }
            if (clientIndex >= 0 && isSending)
                Native.netcode_messages_push_to_server(Handle, peer.Handle, clientIndex, time);
            else if (clientIndex >= 0)
                Native.netcode_messages_pull_from_server(Handle, peer.Handle, clientIndex, time);
            else if (isSending)
                Native.netcode_messages_push_to_client(Handle, peer.Handle, time);
            else
                Native.netcode_messages_pull_from_client(Handle, peer.Handle, time);
            EndCancelled();
            try
            {
                peer.Leave(peerMark);
            }
            finally
            {
                Leave(mark);
            }
        }

        // Streams whose source threw: within Enter and Leave, when no function of a stream runs.
        private void EndCancelled()
        {
            foreach (ulong id in cancelled)
                Native.netcode_messages_cancel_stream(Handle, id);
            cancelled.Clear();
        }

        internal byte[] Scratch(int bytes)
        {
            if (scratch == null || scratch.Length < bytes)
                scratch = new byte[Math.Max(bytes, NetcodeLibrary.MaxPacketSize)];
            return scratch;
        }

        internal void Cancel(OutgoingStream stream)
        {
            foreach (KeyValuePair<ulong, OutgoingStream> pair in outgoing)
                if (pair.Value == stream && !cancelled.Contains(pair.Key))
                    cancelled.Add(pair.Key);
        }

        internal bool OnAccept(netcode_messages_stream_t* stream)
        {
            MessageStreamSink sink = Config.AcceptStream(this, stream->channel, stream->bytes, stream->tag);
            if (sink == null)
                return false;
            var accepted = new IncomingStream(this, sink);
            incoming.Add(accepted);
            stream->context = accepted.Context;
            stream->write_function = Callbacks.StreamWrite;
            stream->end_function = Callbacks.StreamEnd;
            return true;
        }

        internal void OnEnd(IncomingStream stream)
        {
            incoming.Remove(stream);
            stream.Free();
        }
    }

    // What C knows of a stream: a weak handle, so that forgotten messages and their streams can be collected together.
    internal abstract class KnownStream
    {
        private GCHandle self;
        internal readonly NetcodeMessages Messages;

        internal KnownStream(NetcodeMessages messages)
        {
            Messages = messages;
            self = GCHandle.Alloc(this, GCHandleType.Weak);
        }

        internal IntPtr Context { get { return GCHandle.ToIntPtr(self); } }

        internal void Free()
        {
            if (self.IsAllocated)
                self.Free();
        }
    }

    internal sealed class OutgoingStream : KnownStream
    {
        internal readonly MessageStreamSource Source;
        internal readonly ulong Receipt;
        internal bool HasFailed; // its source threw: it is not asked again

        internal OutgoingStream(NetcodeMessages messages, MessageStreamSource source, ulong receipt) : base(messages)
        {
            Source = source;
            Receipt = receipt;
        }
    }

    internal sealed class IncomingStream : KnownStream
    {
        internal readonly MessageStreamSink Sink;

        internal IncomingStream(NetcodeMessages messages, MessageStreamSink sink) : base(messages) { Sink = sink; }
    }

    // ---- what C calls. Static functions, whose delegates live as long as the program: none lets an exception out ----

    internal static unsafe class Callbacks
    {
        // Each delegate type has the name of what netcode.h calls this way: the tests compare their arguments.
        private const CallingConvention C = CallingConvention.Cdecl;
        [UnmanagedFunctionPointer(C)] internal delegate void state_change_callback(IntPtr context, int previous, int state);
        [UnmanagedFunctionPointer(C)] internal delegate void send_loopback_packet_callback(IntPtr context, int clientIndex, byte* data, int bytes, ulong sequence);
        [UnmanagedFunctionPointer(C)] internal delegate ulong unix_time(IntPtr context);
        [UnmanagedFunctionPointer(C)] internal delegate void log_callback(IntPtr context, int level, IntPtr text);
        [UnmanagedFunctionPointer(C)] internal delegate void drop_callback(IntPtr context, int reason, Address* from, int bytes);
        [UnmanagedFunctionPointer(C)] internal delegate void connect_disconnect_callback(IntPtr context, int clientIndex, int connected);
        [UnmanagedFunctionPointer(C)] internal delegate int admit_callback(IntPtr context, ulong clientId, byte* tokenTag, ulong expireTimestamp);
        [UnmanagedFunctionPointer(C)] internal delegate int stray_callback(IntPtr context, Address* from, byte* data, int bytes);
        [UnmanagedFunctionPointer(C)] internal delegate int receive(IntPtr context, netcode_datagram_t* datagrams, int count);
        [UnmanagedFunctionPointer(C)] internal delegate int send(IntPtr context, netcode_datagram_t* datagrams, int count);
        [UnmanagedFunctionPointer(C)] internal delegate void wait(IntPtr context, double seconds);
        [UnmanagedFunctionPointer(C)] internal delegate void close(IntPtr context);
        [UnmanagedFunctionPointer(C)] internal delegate void info(IntPtr context, netcode_socket_info_t* info);
        [UnmanagedFunctionPointer(C)] internal delegate int rebind(IntPtr context);
        [UnmanagedFunctionPointer(C)] internal delegate void read_function(IntPtr context, uint offset, byte* data, int bytes);
        [UnmanagedFunctionPointer(C)] internal delegate int write_function(IntPtr context, uint offset, byte* data, int bytes);
        [UnmanagedFunctionPointer(C)] internal delegate void end_function(IntPtr context, int complete);
        [UnmanagedFunctionPointer(C)] internal delegate int accept_stream_function(IntPtr context, netcode_messages_stream_t* stream);
        [UnmanagedFunctionPointer(C)] internal delegate void log_function(IntPtr text);
        [UnmanagedFunctionPointer(C)] internal delegate void assert_function(IntPtr condition, IntPtr function, IntPtr file, int line);

        private static readonly List<Delegate> kept = new List<Delegate>();

        internal static readonly IntPtr ClientStateChange = Keep(new state_change_callback(OnClientStateChange));
        internal static readonly IntPtr ClientLoopback = Keep(new send_loopback_packet_callback(OnClientLoopback));
        internal static readonly IntPtr ClientLog = Keep(new log_callback(OnClientLog));
        internal static readonly IntPtr ClientDrop = Keep(new drop_callback(OnClientDrop));
        internal static readonly IntPtr ServerConnectDisconnect = Keep(new connect_disconnect_callback(OnServerConnectDisconnect));
        internal static readonly IntPtr ServerLoopback = Keep(new send_loopback_packet_callback(OnServerLoopback));
        internal static readonly IntPtr ServerUnixTime = Keep(new unix_time(OnServerUnixTime));
        internal static readonly IntPtr ServerLog = Keep(new log_callback(OnServerLog));
        internal static readonly IntPtr ServerDrop = Keep(new drop_callback(OnServerDrop));
        internal static readonly IntPtr ServerAdmit = Keep(new admit_callback(OnServerAdmit));
        internal static readonly IntPtr ServerStray = Keep(new stray_callback(OnServerStray));
        internal static readonly IntPtr SocketReceive = Keep(new receive(OnSocketReceive));
        internal static readonly IntPtr SocketSend = Keep(new send(OnSocketSend));
        internal static readonly IntPtr SocketWait = Keep(new wait(OnSocketWait));
        internal static readonly IntPtr SocketClose = Keep(new close(OnSocketClose));
        internal static readonly IntPtr SocketInfo = Keep(new info(OnSocketInfo));
        internal static readonly IntPtr SocketRebind = Keep(new rebind(OnSocketRebind));
        internal static readonly IntPtr StreamRead = Keep(new read_function(OnStreamRead));
        internal static readonly IntPtr StreamWrite = Keep(new write_function(OnStreamWrite));
        internal static readonly IntPtr StreamEnd = Keep(new end_function(OnStreamEnd));
        internal static readonly IntPtr MessagesAcceptStream = Keep(new accept_stream_function(OnAcceptStream));
        internal static readonly IntPtr LibraryLog = Keep(new log_function(OnLibraryLog));
        internal static readonly IntPtr LibraryAssert = Keep(new assert_function(OnLibraryAssert));

        private static IntPtr Keep(Delegate function)
        {
            kept.Add(function);
            return Marshal.GetFunctionPointerForDelegate(function);
        }

        // null: the object, or the owner of the socket, is being finalized.
        private static T Target<T>(IntPtr context) where T : class { return NetcodeObject.IsFinalizing ? null : GCHandle.FromIntPtr(context).Target as T; }

        private static byte[] Copy(byte* data, int bytes, ref byte[] buffer)
        {
            if (buffer == null || buffer.Length < bytes)
                buffer = new byte[Math.Max(bytes, NetcodeLibrary.MaxDatagramBytes)];
            Marshal.Copy((IntPtr)data, buffer, 0, bytes);
            return buffer;
        }

        private static ulong SystemUnixTime()
        {
            return (ulong)DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        }

        [AOT.MonoPInvokeCallback(typeof(state_change_callback))]
        private static void OnClientStateChange(IntPtr context, int previous, int state)
        {
            try
            {
                var client = Target<NetcodeClient>(context);
                if (client != null)
                    client.Config.StateChanged(client, (ClientState)previous, (ClientState)state);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(send_loopback_packet_callback))]
        private static void OnClientLoopback(IntPtr context, int clientIndex, byte* data, int bytes, ulong sequence)
        {
            try
            {
                var client = Target<NetcodeClient>(context);
                if (client != null)
                    client.Config.LoopbackSent(clientIndex, Copy(data, bytes, ref client.LoopbackBuffer), bytes, sequence);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(log_callback))]
        private static void OnClientLog(IntPtr context, int level, IntPtr text)
        {
            try
            {
                var client = Target<NetcodeClient>(context);
                if (client != null)
                    client.Config.Log((LogLevel)level, Native.Text(text));
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(drop_callback))]
        private static void OnClientDrop(IntPtr context, int reason, Address* from, int bytes)
        {
            try
            {
                var client = Target<NetcodeClient>(context);
                if (client != null)
                    client.Config.Dropped((DropReason)reason, from != null ? *from : default(Address), bytes);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(connect_disconnect_callback))]
        private static void OnServerConnectDisconnect(IntPtr context, int clientIndex, int connected)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    server.Config.ConnectionChanged(server, clientIndex, connected != 0);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(send_loopback_packet_callback))]
        private static void OnServerLoopback(IntPtr context, int clientIndex, byte* data, int bytes, ulong sequence)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    server.Config.LoopbackSent(clientIndex, Copy(data, bytes, ref server.LoopbackBuffer), bytes, sequence);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(unix_time))]
        private static ulong OnServerUnixTime(IntPtr context)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    return server.Config.UnixTime();
            }
            catch (Exception exception) { Faults.Add(exception); }
            return SystemUnixTime();
        }

        [AOT.MonoPInvokeCallback(typeof(log_callback))]
        private static void OnServerLog(IntPtr context, int level, IntPtr text)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    server.Config.Log((LogLevel)level, Native.Text(text));
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(drop_callback))]
        private static void OnServerDrop(IntPtr context, int reason, Address* from, int bytes)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    server.Config.Dropped((DropReason)reason, from != null ? *from : default(Address), bytes);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(admit_callback))]
        private static int OnServerAdmit(IntPtr context, ulong clientId, byte* tokenTag, ulong expireTimestamp)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server == null)
                    return 0;
                var tag = new byte[NetcodeLibrary.MacBytes];
                Marshal.Copy((IntPtr)tokenTag, tag, 0, tag.Length);
                bool? answer = server.Config.Admit(server, clientId, tag, expireTimestamp);
                return !answer.HasValue ? NetcodeLibrary.AdmitLater : answer.Value ? 1 : 0;
            }
            catch (Exception exception) { Faults.Add(exception); }
            return 0;
        }

        [AOT.MonoPInvokeCallback(typeof(stray_callback))]
        private static int OnServerStray(IntPtr context, Address* from, byte* data, int bytes)
        {
            try
            {
                var server = Target<NetcodeServer>(context);
                if (server != null)
                    return server.Config.Stray(server, *from, Copy(data, bytes, ref server.StrayBuffer), bytes) ? 1 : 0;
            }
            catch (Exception exception) { Faults.Add(exception); }
            return 0;
        }

        [AOT.MonoPInvokeCallback(typeof(receive))]
        private static int OnSocketReceive(IntPtr context, netcode_datagram_t* datagrams, int count)
        {
            try
            {
                var socket = Target<NetcodeSocket>(context);
                return socket != null ? socket.OnReceive(datagrams, count) : 0;
            }
            catch (Exception exception) { Faults.Add(exception); }
            return 0;
        }

        [AOT.MonoPInvokeCallback(typeof(send))]
        private static int OnSocketSend(IntPtr context, netcode_datagram_t* datagrams, int count)
        {
            try
            {
                var socket = Target<NetcodeSocket>(context);
                return socket != null ? socket.OnSend(datagrams, count) : 0;
            }
            catch (Exception exception) { Faults.Add(exception); }
            return 0;
        }

        [AOT.MonoPInvokeCallback(typeof(wait))]
        private static void OnSocketWait(IntPtr context, double seconds)
        {
            try
            {
                var socket = Target<NetcodeSocket>(context);
                if (socket != null)
                    socket.Wait(seconds);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(close))]
        private static void OnSocketClose(IntPtr context)
        {
            try
            {
                var socket = Target<NetcodeSocket>(context);
                if (socket != null)
                    socket.Close();
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(info))]
        private static void OnSocketInfo(IntPtr context, netcode_socket_info_t* information)
        {
            try
            {
                *information = default(netcode_socket_info_t);
                var socket = Target<NetcodeSocket>(context);
                if (socket != null)
                    information->address = socket.LocalAddress;
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(rebind))]
        private static int OnSocketRebind(IntPtr context)
        {
            try
            {
                var socket = Target<NetcodeSocket>(context);
                return socket != null && socket.Rebind() ? 1 : 0;
            }
            catch (Exception exception) { Faults.Add(exception); }
            return 0;
        }

        [AOT.MonoPInvokeCallback(typeof(read_function))]
        private static void OnStreamRead(IntPtr context, uint offset, byte* data, int bytes)
        {
            var stream = Target<OutgoingStream>(context);
            for (int i = 0; stream == null && i < bytes; i++)
                data[i] = 0;
            if (stream == null)
                return;
            bool wasIn = stream.Messages.IsInStream;
            stream.Messages.IsInStream = true;
            byte[] buffer = stream.Messages.Scratch(bytes);
            try
            {
                if (!stream.HasFailed)
                    stream.Source.Read(offset, buffer, bytes);
            }
            catch (Exception exception)
            {
                Faults.Add(exception);
                stream.HasFailed = true;
                stream.Messages.Cancel(stream);
            }
            if (stream.HasFailed)
                Array.Clear(buffer, 0, bytes);
            Marshal.Copy(buffer, 0, (IntPtr)data, bytes);
            stream.Messages.IsInStream = wasIn;
        }

        [AOT.MonoPInvokeCallback(typeof(write_function))]
        private static int OnStreamWrite(IntPtr context, uint offset, byte* data, int bytes)
        {
            var stream = Target<IncomingStream>(context);
            if (stream == null)
                return 0;
            bool wasIn = stream.Messages.IsInStream, isGood = false;
            stream.Messages.IsInStream = true;
            try
            {
                byte[] buffer = stream.Messages.Scratch(bytes);
                Marshal.Copy((IntPtr)data, buffer, 0, bytes);
                isGood = stream.Sink.Write(offset, buffer, bytes);
            }
            catch (Exception exception) { Faults.Add(exception); }
            stream.Messages.IsInStream = wasIn;
            return isGood ? 1 : 0;
        }

        [AOT.MonoPInvokeCallback(typeof(end_function))]
        private static void OnStreamEnd(IntPtr context, int complete)
        {
            var stream = Target<IncomingStream>(context);
            if (stream == null)
                return;
            bool wasIn = stream.Messages.IsInStream;
            stream.Messages.IsInStream = true;
            try
            {
                stream.Messages.OnEnd(stream);
                stream.Sink.End(complete != 0);
            }
            catch (Exception exception) { Faults.Add(exception); }
            stream.Messages.IsInStream = wasIn;
        }

        [AOT.MonoPInvokeCallback(typeof(accept_stream_function))]
        private static int OnAcceptStream(IntPtr context, netcode_messages_stream_t* stream)
        {
            var messages = Target<NetcodeMessages>(context);
            if (messages == null)
                return 0;
            bool wasIn = messages.IsInStream, isAccepted = false;
            messages.IsInStream = true;
            try
            {
                isAccepted = messages.OnAccept(stream);
            }
            catch (Exception exception) { Faults.Add(exception); }
            messages.IsInStream = wasIn;
            return isAccepted ? 1 : 0;
        }

        [AOT.MonoPInvokeCallback(typeof(log_function))]
        private static void OnLibraryLog(IntPtr text)
        {
            try
            {
                if (!NetcodeObject.IsFinalizing)
                    NetcodeLibrary.OnLog(Native.Text(text).TrimEnd('\n'));
            }
            catch (Exception exception) { Faults.Add(exception); }
        }

        [AOT.MonoPInvokeCallback(typeof(assert_function))]
        private static void OnLibraryAssert(IntPtr condition, IntPtr function, IntPtr file, int line)
        {
            try
            {
                if (!NetcodeObject.IsFinalizing)
                    NetcodeLibrary.OnAssert(Native.Text(condition), Native.Text(function), Native.Text(file), line);
            }
            catch (Exception exception) { Faults.Add(exception); }
        }
    }

    // ---- netcode.h's structs that are not public here, with its names. The tests compare each field ----

#pragma warning disable 0649, 0169
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_datagram_t
    {
        public Address address;
        public byte* data;
        public int bytes;
        public int capacity;
        public int status;
        public int error;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_socket_info_t
    {
        public Address address;
        public Address address2;
        public int receive_buffer_bytes;
        public int send_buffer_bytes;
        public ulong kernel_drops;
        public int last_send_error;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_socket_t
    {
        public IntPtr context;
        public IntPtr receive;
        public IntPtr send;
        public IntPtr wait;
        public IntPtr close;
        public IntPtr info;
        public IntPtr rebind;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_network_simulator_t
    {
        public float latency_milliseconds;
        public float jitter_milliseconds;
        public float packet_loss_percent;
        public float duplicate_packet_percent;
        public float reorder_packet_percent;
        public ulong seed;
        public IntPtr @internal;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_client_config_t
    {
        public IntPtr allocator_context;
        public IntPtr allocate_function;
        public IntPtr free_function;
        public netcode_network_simulator_t* network_simulator;
        public IntPtr callback_context;
        public IntPtr state_change_callback;
        public IntPtr send_loopback_packet_callback;
        public int override_send_and_receive;
        public IntPtr send_packet_override;
        public IntPtr receive_packet_override;
        public netcode_socket_t* socket;
        public IntPtr log_callback;
        public IntPtr drop_callback;
        public int sequence_base;
        public int packet_pool_buffers;
        public int packet_quota;
        public int update_budget;
        public int batch_sends;
        public int receive_buffer_bytes;
        public int send_buffer_bytes;
        public double next_server_seconds;
        public int events;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_server_config_t
    {
        public ulong protocol_id;
        public fixed byte private_key[NetcodeLibrary.KeyBytes];
        public IntPtr allocator_context;
        public IntPtr allocate_function;
        public IntPtr free_function;
        public netcode_network_simulator_t* network_simulator;
        public IntPtr callback_context;
        public IntPtr connect_disconnect_callback;
        public IntPtr send_loopback_packet_callback;
        public int override_send_and_receive;
        public IntPtr send_packet_override;
        public IntPtr receive_packet_override;
        public int max_connect_token_lifetime;
        public netcode_socket_t* socket;
        public IntPtr unix_time;
        public IntPtr log_callback;
        public IntPtr drop_callback;
        public int sequence_base;
        public int packet_pool_buffers;
        public int packet_quota;
        public int batch_sends;
        public int receive_buffer_bytes;
        public int send_buffer_bytes;
        public byte* bind_address;
        public byte* bind_address2;
        public byte** public_addresses;
        public int num_public_addresses;
        public int replace_existing_clients;
        public int pending_handshakes;
        public int consumed_tokens;
        public IntPtr admit_callback;
        public int kernel_filter;
        public int share_port;
        public int roaming;
        public IntPtr stray_callback;
        public int events;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_event_t
    {
        public int type;
        public int client_index;
        public ulong session;
        public ulong client_id;
        public int reason;
        public int bytes;
        public byte* data;
        public ulong sequence;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_client_report_server_t
    {
        public Address address;
        public ulong requests_sent;
        public ulong responses_sent;
        public int challenged;
        public int denied;
        public int last_error;
        public int errors;
        public double seconds_waited;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_client_report_t
    {
        public int state;
        public int num_servers;
        public int server_index;
        // 64 bytes each: C# has no arrays of structs in structs.
        public fixed ulong servers[8 * NetcodeLibrary.MaxServersPerConnect];
        public double token_seconds_left;
        public fixed byte text[256];
        public ulong refused;
        public int refused_as;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_connect_token_info_t
    {
        public fixed byte version[14];
        public ulong protocol_id;
        public ulong create_timestamp;
        public ulong expire_timestamp;
        public int timeout_seconds;
        public int num_server_addresses;
        // 20 bytes each, aligned to 2.
        public fixed ushort server_addresses[10 * NetcodeLibrary.MaxServersPerConnect];
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_message_t
    {
        public int channel;
        public int kind;
        public byte* data;
        public int bytes;
        public double ttl_seconds;
        public ulong receipt;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_messages_stream_t
    {
        public int channel;
        public uint bytes;
        public uint tag;
        public ulong receipt;
        public IntPtr context;
        public IntPtr read_function;
        public IntPtr write_function;
        public IntPtr end_function;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct netcode_messages_config_t
    {
        public IntPtr allocator_context;
        public IntPtr allocate_function;
        public IntPtr free_function;
        public int channels;
        public int max_message_bytes;
        public int send_buffer_bytes;
        public int receive_buffer_bytes;
        public int window_packets;
        public int congestion;
        public int bytes_per_second;
        public int max_retries;
        public int upgrade_large;
        public double ping_seconds;
        public fixed byte priorities[NetcodeMessages.MaxChannels];
        public fixed byte weights[NetcodeMessages.MaxChannels];
        public int repeats;
        public int least_bytes_per_second;
        public int max_send_message_bytes, max_receive_message_bytes;
        public IntPtr accept_stream_function;
        public IntPtr accept_stream_context;
        public IntPtr log_callback;
        public IntPtr log_context;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct netcode_messages_event_t
    {
        public int type;
        public int channel;
        public int kind;
        public int bytes;
        public int bytes_done;
        public ulong receipt;
        public uint stream_bytes, stream_bytes_done;
        public int reason;
    }
#pragma warning restore 0649, 0169

    /// <summary>Texts as C wants them: UTF-8 with a zero at the end, and an array of pointers to them.</summary>
    internal sealed unsafe class NativeStrings : IDisposable
    {
        private readonly IntPtr memory;

        internal NativeStrings(IList<string> texts, string name)
        {
            Count = texts.Count;
            int size = Count * sizeof(IntPtr);
            var bytes = new byte[Count][];
            for (int i = 0; i < Count; i++)
            {
                if (texts[i] == null)
                    throw new ArgumentException("one of them is null", name);
                bytes[i] = Native.Bytes(texts[i]);
                size += bytes[i].Length;
            }
            memory = Marshal.AllocHGlobal(Math.Max(size, 1));
            byte* at = (byte*)memory + Count * sizeof(IntPtr);
            for (int i = 0; i < Count; i++)
            {
                ((byte**)memory)[i] = at;
                Marshal.Copy(bytes[i], 0, (IntPtr)at, bytes[i].Length);
                at += bytes[i].Length;
            }
        }

        internal int Count { get; }
        internal byte** Pointers { get { return (byte**)memory; } }
        public void Dispose() { Marshal.FreeHGlobal(memory); }
    }

    // ---- the functions of netcode.h ----

    internal static unsafe class Native
    {
#if UNITY_IOS && !UNITY_EDITOR
        private const string Library = "__Internal";
#else
        private const string Library = "netcode";
#endif
        private const CallingConvention C = CallingConvention.Cdecl;

        internal const int Ok = 1;
        internal const int DatagramOk = 0;
        internal const int DatagramTruncated = 1;
        internal const int DropReasons = 43;
        internal const int DisconnectReasons = 5;
        internal const int MessagesDropReasons = 13;

        // Of the layout of all structs here, where pointers have 64 bits: netcode_csharp_layout of the library that fits.
        internal const ulong Layout64 = 0x99f106d0361f5533;

        // A library of another layout is refused here, before a byte of it is read or written. Where pointers have 32 bits there are several
        // layouts, and the version alone is compared.
        internal static void CheckLayout()
        {
            string version = Text(netcode_version());
            if (version != NetcodeLibrary.HeaderVersion || (IntPtr.Size == 8 && netcode_csharp_layout() != Layout64))
                throw new NetcodeException("the native library is netcode.h " + version + ", and not the one that Netcode.cs (" +
                    NetcodeLibrary.HeaderVersion + ") was written for: take both from one version");
        }

        // For P/Invoke by pointer: null stays null.
        internal static byte[] Bytes(string text)
        {
            if (text == null)
                return null;
            if (text.IndexOf('\0') >= 0)
                throw new ArgumentException("it holds a zero character: " + text.Replace('\0', '?'));
            var bytes = new byte[Encoding.UTF8.GetByteCount(text) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        internal static string Text(IntPtr text) { return Text(text, int.MaxValue); }

        internal static string Text(IntPtr text, int most)
        {
            int length = 0;
            if (text == IntPtr.Zero)
                return "";
            while (length < most && ((byte*)text)[length] != 0)
                length++;
            return Encoding.UTF8.GetString((byte*)text, length);
        }

        internal static void Read(int found, netcode_event_t* native, byte[] buffer, out NetcodeEvent e)
        {
            e = default(NetcodeEvent);
            if (found == 0)
                return;
            e.Type = (NetcodeEventType)native->type;
            e.ClientIndex = native->client_index;
            e.Session = native->session;
            e.ClientId = native->client_id;
            e.reason = native->reason;
            if (e.Type != NetcodeEventType.Payload)
                return;
            e.Sequence = native->sequence;
            e.Payload = new ArraySegment<byte>(buffer, 0, native->bytes);
        }

        [DllImport(Library, CallingConvention = C)] internal static extern ulong netcode_csharp_layout();
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_csharp_set_log(IntPtr function);

        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_init();
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_term();
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_version();
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_enable_packet_tagging();
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_log_level(int level);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_set_assert_function(IntPtr function);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_random_bytes(byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_sleep(double seconds);
        [DllImport(Library, CallingConvention = C)] internal static extern double netcode_time();
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_client_state_name(int state);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_drop_reason_name(int reason);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_drop_reason_text(int reason);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_parse_address(byte* text, Address* address);
        [DllImport(Library, CallingConvention = C)] internal static extern byte* netcode_address_to_string(Address* address, byte* buffer);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_address_equal(Address* a, Address* b);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_generate_connect_token(int numServerAddresses, byte** publicServerAddresses, byte** internalServerAddresses, int expireSeconds, int timeoutSeconds, ulong clientId, ulong protocolId, byte* privateKey, byte* userData, byte* connectToken);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_connect_token_info(byte* connectToken, netcode_connect_token_info_t* info);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_default_client_config(netcode_client_config_t* config);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_client_create(byte* address, netcode_client_config_t* config, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_client_create_dual(byte* address1, byte* address2, netcode_client_config_t* config, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_create_error();
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_client_create_error_text(int error);
        [DllImport(Library, CallingConvention = C)] internal static extern UIntPtr netcode_client_memory(netcode_client_config_t* config);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_destroy(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_connect(IntPtr client, byte* connectToken);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_update(IntPtr client, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_disconnect(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern ulong netcode_client_next_packet_sequence(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_send_packet(IntPtr client, byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern byte* netcode_client_receive_packet(IntPtr client, int* bytes, ulong* sequence);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_free_packet(IntPtr client, byte* packet);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_state(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_index(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_max_clients(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern ushort netcode_client_get_port(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern Address* netcode_client_server_address(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_process_packet(IntPtr client, Address* from, byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_connect_loopback(IntPtr client, int clientIndex, int maxClients);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_disconnect_loopback(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_loopback(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_process_loopback_packet(IntPtr client, byte* data, int bytes, ulong sequence);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_next_event(IntPtr client, netcode_event_t* e);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_client_rebind(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_flush(IntPtr client);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_wait(IntPtr client, double seconds);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_stats(IntPtr client, ClientStats* stats);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_client_report(IntPtr client, netcode_client_report_t* report);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_default_server_config(netcode_server_config_t* config);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_server_create(byte* address, netcode_server_config_t* config, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_server_create_dual(byte* address1, byte* address2, netcode_server_config_t* config, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_create_error();
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_server_create_error_text(int error);
        [DllImport(Library, CallingConvention = C)] internal static extern UIntPtr netcode_server_memory(netcode_server_config_t* config, int maxClients);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_destroy(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_start(IntPtr server, int maxClients);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_stop(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_update(IntPtr server, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_running(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_max_clients(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_num_connected_clients(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_client_connected(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_client_disconnect_reason(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_client_loopback(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern ulong netcode_server_client_id(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern Address* netcode_server_client_address(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_server_client_user_data(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern ulong netcode_server_client_session(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_disconnect_client(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_disconnect_all_clients(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern ulong netcode_server_next_packet_sequence(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_send_packet(IntPtr server, int clientIndex, byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_send_packet_to_session(IntPtr server, int clientIndex, ulong session, byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_broadcast(IntPtr server, byte* data, int bytes, int exceptClientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern byte* netcode_server_receive_packet(IntPtr server, int clientIndex, int* bytes, ulong* sequence);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_free_packet(IntPtr server, byte* packet);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_process_packet(IntPtr server, Address* from, byte* data, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_connect_loopback_client(IntPtr server, int clientIndex, ulong clientId, byte* userData);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_disconnect_loopback_client(IntPtr server, int clientIndex);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_process_loopback_packet(IntPtr server, int clientIndex, byte* data, int bytes, ulong sequence);
        [DllImport(Library, CallingConvention = C)] internal static extern ushort netcode_server_get_port(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_next_event(IntPtr server, netcode_event_t* e);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_flush(IntPtr server);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_wait(IntPtr server, double seconds);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_server_set_private_keys(IntPtr server, byte* keys, int count);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_stats(IntPtr server, ServerStats* stats);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_server_client_stats(IntPtr server, int clientIndex, ServerClientStats* stats);
        [DllImport(Library, CallingConvention = C)] internal static extern netcode_network_simulator_t* netcode_network_simulator_create(IntPtr allocatorContext, IntPtr allocateFunction, IntPtr freeFunction);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_network_simulator_destroy(netcode_network_simulator_t* simulator);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_network_simulator_reset(netcode_network_simulator_t* simulator);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_network_simulator_update(netcode_network_simulator_t* simulator, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_network_simulator_socket(netcode_network_simulator_t* simulator, Address* address, netcode_socket_t* socket);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_network_simulator_move(netcode_network_simulator_t* simulator, Address* from, Address* to, int atRebind);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_default_messages_config(netcode_messages_config_t* config);
        [DllImport(Library, CallingConvention = C)] internal static extern UIntPtr netcode_messages_memory(netcode_messages_config_t* config);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_messages_create(netcode_messages_config_t* config, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_destroy(IntPtr messages);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_reset(IntPtr messages, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_send_message(IntPtr messages, netcode_message_t* message);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_send_stream(IntPtr messages, netcode_messages_stream_t* stream);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_cancel_stream(IntPtr messages, ulong receipt);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_receive(IntPtr messages, netcode_message_t* message);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_event(IntPtr messages, netcode_messages_event_t* e);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_set_time(IntPtr messages, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_process_packet(IntPtr messages, byte* packet, int bytes);
        [DllImport(Library, CallingConvention = C)] internal static extern int netcode_messages_generate_packet(IntPtr messages, byte* packet, int capacity);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_flush(IntPtr messages);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_update(IntPtr messages, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern double netcode_messages_next_deadline(IntPtr messages);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_stats(IntPtr messages, MessagesStats* stats);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_channel_stats(IntPtr messages, int channel, MessagesChannelStats* stats);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_messages_drop_reason_name(int reason);
        [DllImport(Library, CallingConvention = C)] internal static extern IntPtr netcode_messages_drop_reason_text(int reason);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_pull_from_client(IntPtr messages, IntPtr client, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_push_to_client(IntPtr messages, IntPtr client, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_pull_from_server(IntPtr messages, IntPtr server, int clientIndex, double time);
        [DllImport(Library, CallingConvention = C)] internal static extern void netcode_messages_push_to_server(IntPtr messages, IntPtr server, int clientIndex, double time);
    }
}
