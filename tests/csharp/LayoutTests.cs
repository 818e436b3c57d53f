// Netcode.cs beside netcode.h, as layout.py's program prints it: structs, numbers, functions and callbacks. What is in one and not in the other fails.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using NetcodeH;

internal static class LayoutTests
{
    private const BindingFlags All = BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

    private static readonly Dictionary<string, Type> publicStructs = new Dictionary<string, Type>
    {
        { "netcode_address_t", typeof(Address) },
        { "netcode_client_stats_t", typeof(ClientStats) },
        { "netcode_server_stats_t", typeof(ServerStats) },
        { "netcode_server_client_stats_t", typeof(ServerClientStats) },
        { "netcode_messages_stats_t", typeof(MessagesStats) },
        { "netcode_messages_channel_stats_t", typeof(MessagesChannelStats) }
    };

    // The longest prefix wins.
    private static readonly Dictionary<string, Type> enums = new Dictionary<string, Type>
    {
        { "NETCODE_CLIENT_STATE_", typeof(ClientState) },
        { "NETCODE_SERVER_CLIENT_DISCONNECT_REASON_", typeof(DisconnectReason) },
        { "NETCODE_CLIENT_CREATE_ERROR_", typeof(ClientCreateError) },
        { "NETCODE_SERVER_CREATE_ERROR_", typeof(ServerCreateError) },
        { "NETCODE_SEQUENCE_BASE_", typeof(SequenceBase) },
        { "NETCODE_EVENT_", typeof(NetcodeEventType) },
        { "NETCODE_DROP_", typeof(DropReason) },
        { "NETCODE_MESSAGES_DROP_", typeof(MessagesDropReason) },
        { "NETCODE_MESSAGES_EVENT_", typeof(MessageEventType) },
        { "NETCODE_MESSAGES_REASON_", typeof(BrokenReason) },
        { "NETCODE_MESSAGES_CONGESTION_", typeof(Congestion) },
        { "NETCODE_MESSAGES_REPEATS_", typeof(Repeats) },
        { "NETCODE_MESSAGE_", typeof(MessageKind) },
        { "NETCODE_PACKET_", typeof(PacketType) },
        { "NETCODE_LOG_LEVEL_", typeof(LogLevel) },
        { "NETCODE_ADDRESS_", typeof(AddressType) }
    };

    private static readonly Dictionary<string, int> others = new Dictionary<string, int>
    {
        { "NETCODE_CONNECT_TOKEN_BYTES", NetcodeLibrary.ConnectTokenBytes },
        { "NETCODE_KEY_BYTES", NetcodeLibrary.KeyBytes },
        { "NETCODE_MAC_BYTES", NetcodeLibrary.MacBytes },
        { "NETCODE_ADMIT_LATER", NetcodeLibrary.AdmitLater },
        { "NETCODE_USER_DATA_BYTES", NetcodeLibrary.UserDataBytes },
        { "NETCODE_MAX_SERVERS_PER_CONNECT", NetcodeLibrary.MaxServersPerConnect },
        { "NETCODE_MAX_SLOTS", NetcodeLibrary.MaxSlots },
        { "NETCODE_MAX_PACKET_SIZE", NetcodeLibrary.MaxPacketSize },
        { "NETCODE_MAX_ADDRESS_STRING_LENGTH", NetcodeLibrary.MaxAddressStringLength },
        { "NETCODE_MAX_PRIVATE_KEYS", NetcodeLibrary.MaxPrivateKeys },
        { "NETCODE_MAX_PUBLIC_ADDRESSES", NetcodeLibrary.MaxPublicAddresses },
        { "NETCODE_PACKET_TYPES", NetcodeLibrary.PacketTypes },
        { "NETCODE_OK", Native.Ok },
        { "NETCODE_DATAGRAM_OK", Native.DatagramOk },
        { "NETCODE_DATAGRAM_TRUNCATED", Native.DatagramTruncated },
        { "NETCODE_DROP_REASONS", Native.DropReasons },
        { "NETCODE_SERVER_CLIENT_DISCONNECT_REASONS", Native.DisconnectReasons },
        { "NETCODE_MESSAGES_DROP_REASONS", Native.MessagesDropReasons },
        { "NETCODE_MESSAGE_KINDS", (int)MessageKind.Stream },
        { "NETCODE_MESSAGES_CHANNELS", NetcodeMessages.MaxChannels },
        { "NETCODE_MESSAGES_HEADER_BYTES", NetcodeMessages.HeaderBytes },
        { "NETCODE_MESSAGES_WHOLE_BYTES", NetcodeMessages.WholeBytes },
        { "NETCODE_MESSAGES_FRAGMENT_BYTES", NetcodeMessages.FragmentBytes },
        { "NETCODE_MESSAGES_MAX_BYTES", NetcodeMessages.MaxBytes },
        { "NETCODE_MESSAGES_FULL", (int)SendResult.Full },
        { "NETCODE_MESSAGES_TOO_LARGE", (int)SendResult.TooLarge },
        { "NETCODE_MESSAGES_BROKEN", (int)SendResult.Broken },
        { "NETCODE_MESSAGES_NO_CHANNEL", (int)SendResult.NoChannel }
    };

    // Of no use in C#: what C code is compiled with, and what is an exception or a bool here.
    private static readonly string[] leftOut =
    {
        "NETCODE_VERSION_MAJOR", "NETCODE_VERSION_MINOR", "NETCODE_VERSION_PATCH", "NETCODE_PLATFORM_WINDOWS", "NETCODE_PLATFORM_MAC",
        "NETCODE_PLATFORM_UNIX", "NETCODE_PACKET_TAGGING", "NETCODE_ERROR", "NETCODE_MAX_CLIENTS", "NETCODE_DEFAULT_MAX_CONNECT_TOKEN_LIFETIME",
        "NETCODE_DATAGRAM_ERROR", "NETCODE_MESSAGES_BAD_ARGUMENT"
    };

    // netcode_csharp_set_log sets the first; send_message does what the second does.
    private static readonly string[] functionsLeftOut = { "netcode_set_printf_function", "netcode_messages_send" };

    // C's allocators are of no use here; a NetcodeSocket does what the two overrides do.
    private static readonly string[] callbacksLeftOut = { "allocate_function", "free_function", "send_packet_override", "receive_packet_override" };

    private static IEnumerable<string[]> Lines(string kind)
    {
        string path = Path.Combine(Program.Root, "build/csharp/layout.txt");
        return File.ReadAllLines(path).Select(line => line.Split(' ')).Where(words => words[0] == kind);
    }

    private static string Plain(string name) { return name.Replace("_", "").ToLowerInvariant(); }

    private static Type Struct(string name)
    {
        Type type;
        if (!publicStructs.TryGetValue(name, out type))
            type = typeof(Native).Assembly.GetType("NetcodeH." + name);
        Runner.True(type != null, "struct " + name + " has no twin");
        return type;
    }

    private static int Size(Type type)
    {
        return type.IsPointer ? IntPtr.Size : Marshal.SizeOf(type.IsEnum ? Enum.GetUnderlyingType(type) : type);
    }

    private static int Size(FieldInfo field)
    {
        var buffer = field.GetCustomAttribute<FixedBufferAttribute>();
        return buffer != null ? buffer.Length * Size(buffer.ElementType) : Size(field.FieldType);
    }

    public static void each_field_of_each_struct_lies_where_C_has_it()
    {
        int count = 0;
        foreach (string[] line in Lines("struct"))
        {
            Type type = Struct(line[1]);
            Runner.Equal(int.Parse(line[2]), Marshal.SizeOf(type), "size of " + line[1]);
            Runner.Equal(LayoutKind.Sequential, type.StructLayoutAttribute.Value, "layout of " + line[1]);
            var fields = type.GetFields(All).Where(field => !field.IsStatic).ToDictionary(field => Plain(field.Name));
            foreach (string[] want in Lines("field").Where(field => field[1] == line[1]))
            {
                if (line[1] == "netcode_address_t" && want[2] == "data")
                {
                    for (int i = 0; i < 8; i++) // eight numbers of 16 bits here, so that it is aligned to 2 as in C
                    {
                        Runner.Equal(int.Parse(want[3]) + 2 * i, (int)Marshal.OffsetOf(type, fields["data" + i].Name), "data" + i);
                        fields.Remove("data" + i);
                    }
                    count++;
                    continue;
                }
                FieldInfo found;
                Runner.True(fields.TryGetValue(Plain(want[2]), out found), line[1] + "." + want[2] + " has no twin");
                Runner.Equal(int.Parse(want[3]), (int)Marshal.OffsetOf(type, found.Name), "offset of " + line[1] + "." + want[2]);
                Runner.Equal(int.Parse(want[4]), Size(found), "size of " + line[1] + "." + want[2]);
                fields.Remove(Plain(want[2]));
                count++;
            }
            Runner.Equal("", string.Join(" ", fields.Keys), "fields of " + type.Name + " that C has not");
        }
        Runner.True(count > 200, "only " + count + " fields were compared");
        Runner.Note(Lines("struct").Count() + " structs, " + count + " fields");
    }

    public static void each_number_is_that_of_C()
    {
        int count = 0;
        var seen = new HashSet<string>();
        foreach (string[] line in Lines("number"))
        {
            int value;
            count++;
            if (leftOut.Contains(line[1]))
                continue;
            if (others.TryGetValue(line[1], out value))
            {
                Runner.Equal(int.Parse(line[2]), value, line[1]);
                continue;
            }
            string prefix = enums.Keys.Where(name => line[1].StartsWith(name)).OrderBy(name => name.Length).LastOrDefault();
            Runner.True(prefix != null, line[1] + " has no twin");
            string twin = Enum.GetNames(enums[prefix]).FirstOrDefault(name => Plain(name) == Plain(line[1].Substring(prefix.Length)));
            Runner.True(twin != null, line[1] + " has no twin in " + enums[prefix].Name);
            Runner.Equal(int.Parse(line[2]), Convert.ToInt32(Enum.Parse(enums[prefix], twin)), line[1]);
            seen.Add(enums[prefix].Name + "." + twin);
        }
        var known = enums.Values.SelectMany(type => Enum.GetNames(type).Select(name => type.Name + "." + name));
        Runner.Equal("MessageKind.Stream", string.Join(" ", known.Where(name => !seen.Contains(name) && name != "MessageKind.Stream").DefaultIfEmpty("MessageKind.Stream")),
            "numbers that C has not");
        Runner.True(count > 130, "only " + count + " numbers were compared");
        Runner.Note(count + " numbers");
    }

    private static char Letter(Type type)
    {
        if (type.IsPointer || type == typeof(IntPtr))
            return 'p';
        var letters = new Dictionary<Type, char>
        {
            { typeof(int), 'i' }, { typeof(uint), 'u' }, { typeof(ushort), 's' }, { typeof(ulong), 'U' }, { typeof(UIntPtr), 'z' },
            { typeof(double), 'd' }, { typeof(void), 'v' }
        };
        Runner.True(letters.ContainsKey(type), type + " is nothing that C passes");
        return letters[type];
    }

    private static string Signature(MethodInfo method)
    {
        return Letter(method.ReturnType) + string.Concat(method.GetParameters().Select(parameter => Letter(parameter.ParameterType)));
    }

    public static void each_function_is_imported_with_the_arguments_of_C()
    {
        var imports = typeof(Native).GetMethods(All).Where(method => method.GetCustomAttribute<DllImportAttribute>() != null)
            .ToDictionary(method => method.Name);
        int count = 0;
        foreach (string[] line in Lines("function"))
        {
            count++;
            if (functionsLeftOut.Contains(line[1]))
                continue;
            MethodInfo method;
            Runner.True(imports.TryGetValue(line[1], out method), line[1] + " is not imported");
            Runner.Equal(line[2], Signature(method), line[1]);
            imports.Remove(line[1]);
        }
        Runner.Equal("netcode_csharp_layout netcode_csharp_set_log", string.Join(" ", imports.Keys.OrderBy(name => name)), "imports that C has not");
        Runner.True(count > 110, "only " + count + " functions were compared");
        Runner.Note(count + " functions");
    }

    public static void each_import_and_callback_is_cdecl()
    {
        foreach (MethodInfo method in typeof(Native).GetMethods(All))
        {
            var import = method.GetCustomAttribute<DllImportAttribute>();
            Runner.True(import == null || import.CallingConvention == CallingConvention.Cdecl, method.Name + " is not cdecl");
        }
        foreach (Type type in typeof(Callbacks).GetNestedTypes(All).Where(type => typeof(Delegate).IsAssignableFrom(type)))
        {
            var convention = type.GetCustomAttribute<UnmanagedFunctionPointerAttribute>();
            Runner.True(convention != null && convention.CallingConvention == CallingConvention.Cdecl, type.Name + " is not cdecl");
        }
    }

    public static void each_callback_has_the_arguments_of_C()
    {
        int count = 0;
        foreach (string[] line in Lines("callback").Where(line => !callbacksLeftOut.Contains(line[1])))
        {
            Type type = typeof(Callbacks).GetNestedType(line[1], All);
            Runner.True(type != null, "callback " + line[1] + " has no twin");
            Runner.Equal(line[2], Signature(type.GetMethod("Invoke")), line[1]);
            count++;
        }
        Runner.True(count >= 18, "only " + count + " callbacks were compared");
        Runner.Note(count + " callbacks");
    }

    // Unity's compiler to native code refuses others.
    public static void each_callback_is_static_and_marked_for_IL2CPP()
    {
        var marked = typeof(Callbacks).GetMethods(All).Where(method => method.GetCustomAttribute<AOT.MonoPInvokeCallbackAttribute>() != null).ToArray();
        int pointers = typeof(Callbacks).GetFields(All).Count(field => field.FieldType == typeof(IntPtr));
        Runner.Equal(pointers, marked.Length, "marked functions");
        Runner.True(marked.All(method => method.IsStatic), "one is not static");
    }

    // run.sh starts this program with a library of another layout, which must be refused.
    public static void the_library_has_this_layout()
    {
        Native.CheckLayout();
        Runner.Equal("0x" + Native.netcode_csharp_layout().ToString("x"), "0x" + Native.Layout64.ToString("x"), "Native.Layout64");
        Runner.Equal(NetcodeLibrary.HeaderVersion, NetcodeLibrary.Version, "version");
    }
}
