--  Shows netcode 1.02 in Wireshark and tshark: every packet type, all fields by name, sizes, which connection and which
--  way, and what is wrong with a packet that is malformed. With a key log, or the private key, it decrypts, and shows the
--  messages of netcode.h (NETCODE_MESSAGES) in payloads.
--
--      netcode-token keylog --output keys.txt token.json
--      tshark -n -X lua_script:netcode.lua -o netcode.keylog_file:keys.txt -r capture.pcap -Y netcode
--
--  In Wireshark: copy it to the folder "Personal Lua Plugins" (Help, About, Folders); the preferences are under
--  Protocols, NETCODE. README.md beside this file says more.
--
--  Decryption needs luaossl (Debian: lua-luaossl), which gives ChaCha20 and big numbers by OpenSSL. It has no
--  ChaCha20-Poly1305 with associated data, so the tag is computed here, from big numbers. Where that can not be, or is
--  turned off, what is shown decrypted is labelled "not authenticated". Written for Lua 5.1 to 5.4: no integer operators.

local TYPES = {
    [0] = "REQUEST", "DENIED", "CHALLENGE", "RESPONSE", "KEEP_ALIVE", "PAYLOAD", "DISCONNECT"
}
local REQUEST, DENIED, CHALLENGE, RESPONSE, KEEP_ALIVE, PAYLOAD, DISCONNECT = 0, 1, 2, 3, 4, 5, 6

-- Standard: Packets. The size of the body without its tag, and the ways that the type goes.
local RULES = {
    [DENIED] = { least = 0, most = 0, to_client = true },
    [CHALLENGE] = { least = 308, most = 308, to_client = true },
    [RESPONSE] = { least = 308, most = 308, to_server = true },
    [KEEP_ALIVE] = { least = 8, most = 8, to_server = true, to_client = true },
    [PAYLOAD] = { least = 1, most = 1200, to_server = true, to_client = true },
    [DISCONNECT] = { least = 0, most = 0, to_server = true, to_client = true }
}

local VERSION = "NETCODE 1.02\0"
local VERSION_OLD = "NETCODE 1.01\0"
local REQUEST_BYTES, REQUEST_BYTES_OLD, MAC_BYTES = 1078, 1062, 16
local LEAST_SEALED, MOST_SEALED = 18, 1225
local PRIVATE_AT, PRIVATE_BYTES, USER_DATA_BYTES = 54, 1024, 256
local SESSIONS_OF_A_CONNECTION = 4 -- tokens of one client's address that are tried
local MOST_PROBES = 8              -- packets of a connection without a request that are tried with every key
local MOST_SESSIONS_PROBED = 256
local MOST_TRIES = 100000          -- of that, in a capture: it may hold any UDP, and a try takes up to 0.2 ms
local KEYLOG_LINE, KEYLOG_PIECE = 256, 1048576 -- bytes: more than a line of a key log has, and what is read of it at once

-- The library's names for why it drops a packet, with its sentences.
local REASONS = {
    EMPTY_DATAGRAM = "the datagram has no bytes",
    OVERSIZED_DATAGRAM = "the datagram is larger than any packet of this protocol (1225 bytes)",
    TOO_SMALL = "the datagram is smaller than the smallest sealed packet (18 bytes)",
    UNKNOWN_PACKET_TYPE = "the prefix byte names a packet type that does not exist",
    WRONG_DIRECTION = "this side never receives packets of this type",
    BAD_SEQUENCE_LENGTH = "the prefix byte gives the sequence a length outside 1..8 bytes",
    WRONG_BODY_SIZE = "the packet's data has not the size that its type demands",
    REQUEST_WRONG_SIZE = "a connection request must have 1078 bytes",
    REQUEST_OLD_VERSION = "the request speaks netcode 1.01, an older protocol",
    REQUEST_WRONG_VERSION = "the request does not say NETCODE 1.02",
    AUTHENTICATION_FAILED = "the packet was not sealed with the key that is known, or was changed in transit",
    TOKEN_NOT_AUTHENTIC = "the connect token was not sealed with this private key, or was changed",
    TOKEN_MALFORMED = "the connect token is authentic but breaks the standard's format",
    TOKEN_EXPIRED = "the connect token has expired: the player waited too long, or a clock is wrong",
    REPLAYED = "a packet with this sequence was received before"
}

-- The same for packets of messages, where the packet alone shows it. Whether numbers, ids and credit fit, only the two sides know.
local MESSAGES_REASONS = {
    HEADER = "shorter than a header, or with wrong bits",
    FRAME = "a frame is cut short, unknown, or not in its shortest form",
    CHANNEL = "a message is for a channel that does not exist",
    FRAGMENT = "a fragment does not fit to its message, that is larger than allowed, or the packet has another fragment",
    LIMIT = "a limit or a cost that no peer can have",
    VERSION = "another version of the messages' format"
}

local KINDS = {
    [0] = "unreliable", "unreliable sequenced", "reliable", "reliable ordered", "reliable sequenced", "stream"
}
local UNRELIABLE_SEQUENCED, ORDERED, STREAM = 1, 3, 5
local FRAME_TYPES = {
    [0x07] = "ACK_RANGES", [0x0f] = "PING", [0x17] = "PONG", [0x1f] = "LIMIT", [0x27] = "CANCEL", [0x2f] = "REFUSE", [0x37] = "BROKEN"
}
-- Why messages can not go on: NETCODE_MESSAGES_REASON_...
local BROKEN_REASONS = { "GIVEN_UP", "CHANNEL", "TOO_LARGE", "FORGED_ACK", "OUT_OF_STEP", "VERSION" }
local MESSAGES_VERSION, MESSAGES_HEADER, WHOLE_BYTES, FRAGMENT_BYTES, MOST_MESSAGE = 3, 9, 1180, 1168, 16777216
local LEAST_COST, MOST_COST = 80, MOST_MESSAGE + 80 + 512 -- of a message: its own overhead, and at most a bit for each of 4096 fragments
local MOST_RANGES, MOST_REFUSED, REMEMBERED, CHANNELS = 16, 16, 2048, 32
local DETECT, ALWAYS, NEVER = 1, 2, 3

local netcode = Proto("netcode", "netcode 1.02")

local ABSOLUTE = base.LOCAL or base.DEC
local fields = {
    prefix = ProtoField.uint8("netcode.prefix", "Prefix", base.HEX),
    type = ProtoField.uint8("netcode.type", "Type", base.DEC, TYPES, 0x0f),
    sequence_bytes = ProtoField.uint8("netcode.sequence_bytes", "Bytes of the sequence", base.DEC, nil, 0xf0),
    sequence = ProtoField.uint64("netcode.sequence", "Sequence", base.DEC),
    bytes = ProtoField.uint32("netcode.bytes", "Size of the packet", base.DEC),
    connection = ProtoField.uint32("netcode.connection", "Connection", base.DEC),
    direction = ProtoField.string("netcode.direction", "Direction"),
    version = ProtoField.string("netcode.version", "Version"),
    protocol_id = ProtoField.uint64("netcode.protocol_id", "Protocol id", base.HEX),
    expire = ProtoField.uint64("netcode.expire", "Expire timestamp", base.DEC),
    expire_time = ProtoField.absolute_time("netcode.expire_time", "Expires", ABSOLUTE),
    nonce = ProtoField.bytes("netcode.nonce", "Nonce of the connect token"),
    private = ProtoField.bytes("netcode.private", "Private part of the connect token, sealed"),
    sealed = ProtoField.bytes("netcode.sealed", "Sealed data"),
    sealed_bytes = ProtoField.uint32("netcode.sealed_bytes", "Size of the sealed data", base.DEC),
    tag = ProtoField.bytes("netcode.tag", "Tag"),
    decryption = ProtoField.string("netcode.decryption", "Decryption"),
    refused = ProtoField.string("netcode.refused", "Refused"),
    request_in = ProtoField.framenum("netcode.request_in", "Connection request in", base.NONE),
    duplicate_of = ProtoField.framenum("netcode.duplicate_of", "Same sequence as in", base.NONE),
    challenge_sequence = ProtoField.uint64("netcode.challenge_sequence", "Challenge sequence", base.DEC),
    challenge_data = ProtoField.bytes("netcode.challenge_data", "Challenge token, sealed by the server for itself"),
    client_index = ProtoField.uint32("netcode.client_index", "Client index", base.DEC),
    max_clients = ProtoField.uint32("netcode.max_clients", "Max clients", base.DEC),
    probe = ProtoField.uint64("netcode.probe", "Probe", base.HEX),
    probe_kind = ProtoField.string("netcode.probe_kind", "Probe or echo"),
    probe_in = ProtoField.framenum("netcode.probe_in", "Answers the probe in", base.NONE),
    probe_seconds = ProtoField.double("netcode.probe_seconds", "Seconds since the probe"),
    moved = ProtoField.bool("netcode.moved", "The client has another address than before"),
    payload = ProtoField.bytes("netcode.payload", "Payload"),
    payload_bytes = ProtoField.uint32("netcode.payload_bytes", "Size of the payload", base.DEC),
    client_id = ProtoField.uint64("netcode.client_id", "Client id", base.DEC),
    timeout = ProtoField.int32("netcode.timeout", "Timeout in seconds", base.DEC),
    server_address = ProtoField.string("netcode.server_address", "Server address"),
    user_data = ProtoField.bytes("netcode.user_data", "User data"),
    messages = ProtoField.none("netcode.messages", "Messages"),
    version_of_messages = ProtoField.uint8("netcode.messages.version", "Version", base.DEC, nil, 0x0f),
    ack_valid = ProtoField.bool("netcode.messages.ack_valid", "Ack is valid", 8, nil, 0x10),
    has_delay = ProtoField.bool("netcode.messages.has_delay", "Ack delay follows", 8, nil, 0x20),
    please_ack = ProtoField.bool("netcode.messages.please_ack", "Please ack", 8, nil, 0x40),
    number = ProtoField.uint16("netcode.messages.number", "Number of the packet", base.DEC),
    ack = ProtoField.uint16("netcode.messages.ack", "Ack", base.DEC),
    ack_bits = ProtoField.uint32("netcode.messages.ack_bits", "Ack bits", base.HEX),
    acked = ProtoField.uint16("netcode.messages.acked", "Acknowledged number", base.DEC),
    ack_delay = ProtoField.double("netcode.messages.ack_delay", "Ack delay in ms"),
    frame = ProtoField.string("netcode.messages.frame", "Frame"),
    frame_type = ProtoField.uint8("netcode.messages.frame_type", "First byte", base.HEX),
    range_first = ProtoField.uint16("netcode.messages.range.first", "First number of the range", base.DEC),
    range_last = ProtoField.uint16("netcode.messages.range.last", "Last number of the range", base.DEC),
    kind = ProtoField.uint8("netcode.messages.kind", "Kind", base.DEC, KINDS),
    channel = ProtoField.uint8("netcode.messages.channel", "Channel", base.DEC),
    id = ProtoField.uint16("netcode.messages.id", "Id", base.DEC),
    order = ProtoField.uint16("netcode.messages.order", "Order", base.DEC),
    stream_tag = ProtoField.uint32("netcode.messages.tag", "Tag of the stream", base.DEC),
    length = ProtoField.uint32("netcode.messages.length", "Length", base.DEC),
    total = ProtoField.uint32("netcode.messages.total", "Total length", base.DEC),
    index = ProtoField.uint32("netcode.messages.index", "Index of the fragment", base.DEC),
    fragments = ProtoField.uint32("netcode.messages.fragments", "Number of fragments", base.DEC),
    offset = ProtoField.uint32("netcode.messages.offset", "Offset", base.DEC),
    message_data = ProtoField.bytes("netcode.messages.data", "Data"),
    ping = ProtoField.uint32("netcode.messages.ping", "Value of the ping", base.HEX),
    credit = ProtoField.uint32("netcode.messages.credit", "Credit", base.DEC),
    largest = ProtoField.uint32("netcode.messages.largest", "Largest message accepted", base.DEC),
    channels = ProtoField.uint8("netcode.messages.channels", "Number of channels", base.DEC),
    epoch = ProtoField.uint16("netcode.messages.epoch", "Random number of the last reset", base.HEX),
    cost = ProtoField.uint32("netcode.messages.cost", "Cost of what is cancelled", base.DEC),
    reason = ProtoField.uint8("netcode.messages.reason", "Reason", base.DEC, BROKEN_REASONS),
    dropped = ProtoField.string("netcode.messages.dropped", "Dropped")
}
netcode.fields = fields

-- Games can add dissectors of their payloads: DissectorTable.get("netcode.port"):add(40000, my_game), by the server's port.
local payloads = DissectorTable.new("netcode.port", "netcode payloads by the server's port", ftypes.UINT16, base.DEC, netcode)

local experts = {
    malformed = ProtoExpert.new("netcode.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    failed = ProtoExpert.new("netcode.failed", "Wrong key, or changed in transit", expert.group.UNDECODED, expert.severity.ERROR),
    unopened = ProtoExpert.new("netcode.unopened", "Sealed", expert.group.UNDECODED, expert.severity.NOTE),
    unverified = ProtoExpert.new("netcode.unverified", "Not authenticated", expert.group.UNDECODED, expert.severity.WARN),
    replayed = ProtoExpert.new("netcode.replayed", "Sequence seen before", expert.group.SEQUENCE, expert.severity.NOTE),
    expired = ProtoExpert.new("netcode.expired", "Token expired", expert.group.PROTOCOL, expert.severity.WARN),
    cut = ProtoExpert.new("netcode.cut", "Not a whole packet", expert.group.UNDECODED, expert.severity.NOTE),
    messages = ProtoExpert.new("netcode.messages.malformed", "Malformed messages", expert.group.MALFORMED, expert.severity.ERROR),
    settings = ProtoExpert.new("netcode.settings", "Preferences", expert.group.UNDECODED, expert.severity.WARN)
}
netcode.experts = experts

-- What is before netcode in a packet.
local sources, destinations = { Field.new("ip.src"), Field.new("ipv6.src") }, { Field.new("ip.dst"), Field.new("ipv6.dst") }
local errors = { Field.new("icmp.type"), Field.new("icmpv6.type") }

netcode.prefs.ports = Pref.range("UDP ports", "", "All UDP of these ports is netcode. Other ports are found by their connection requests, and by key logs", 65535)
netcode.prefs.keylog_file = Pref.string("Key log", "", "A file of lines that netcode-token keylog printed")
netcode.prefs.private_key_file = Pref.string("Private key", "", "A file with the private key: 32 bytes, or the same in hex. It opens every session whose request was captured; a key log opens fewer")
netcode.prefs.verify = Pref.bool("Verify tags", true, "Off: decrypts faster, and labels everything as not authenticated")
netcode.prefs.messages = Pref.enum("Payloads are messages", DETECT, "Of netcode.h's messages (NETCODE_MESSAGES). Detect: those that are a packet of messages from their first byte to their last",
    { { 1, "Detect", DETECT }, { 2, "Always", ALWAYS }, { 3, "Never", NEVER } }, false)

-- ---- bytes ----

local function unhex(text)
    return (text:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

-- Little-endian, up to 6 bytes: exact in every Lua's numbers.
local function little(data, at, bytes)
    local value = 0
    for i = bytes - 1, 0, -1 do
        value = value * 256 + data:byte(at + i)
    end
    return value
end

local function to_little(value, bytes)
    local out = {}
    for i = 1, bytes do
        out[i] = string.char(value % 256)
        value = (value - value % 256) / 256
    end
    return table.concat(out)
end

local function pad(data, bytes)
    return data .. string.rep("\0", (bytes - #data % bytes) % bytes)
end

-- ---- what OpenSSL does ----

local has_cipher, cipher = pcall(require, "openssl.cipher")
local has_bignum, bignum = pcall(require, "openssl.bignum")
has_cipher = has_cipher and pcall(function() return cipher.new("chacha20") end)

-- iv: the block counter, little-endian, 4 bytes; then the nonce, 12.
local function chacha20(key, iv, data)
    local it = cipher.new("chacha20")
    it:encrypt(key, iv)
    return it:final(data)
end

local PRIME = has_bignum and bignum.new(2) ^ 130 - 5

-- `message` is a multiple of 16 bytes, as it always is in ChaCha20-Poly1305.
local function poly1305(key, message)
    local r = {}
    for i = 1, 16 do
        local byte = key:byte(i)
        if i % 4 == 0 then byte = byte % 16 end                      -- bytes 3, 7, 11 and 15 of r
        if i > 4 and i % 4 == 1 then byte = byte - byte % 4 end      -- bytes 4, 8 and 12
        r[17 - i] = string.char(byte)
    end
    local factor, sum = bignum.fromBinary(table.concat(r)), bignum.new(0)
    for at = 1, #message, 16 do
        local block = bignum.fromBinary("\1" .. message:sub(at, at + 15):reverse())
        sum = (sum + block) * factor % PRIME
    end
    local tag = (sum + bignum.fromBinary(key:sub(17, 32):reverse())):toBinary()
    return (string.rep("\0", 16) .. tag):sub(-16):reverse()
end

-- Opens ChaCha20-Poly1305. Returns what was sealed or nil, and whether its tag was verified.
local function open(key, nonce, associated, sealed, verify)
    local data, tag = sealed:sub(1, -MAC_BYTES - 1), sealed:sub(-MAC_BYTES)
    if verify then
        local once = chacha20(key, "\0\0\0\0" .. nonce, string.rep("\0", 32))
        local lengths = to_little(#associated, 8) .. to_little(#data, 8)
        if poly1305(once, pad(associated, 16) .. pad(data, 16) .. lengths) ~= tag then
            return nil, true
        end
    end
    return #data > 0 and chacha20(key, "\1\0\0\0" .. nonce, data) or "", verify
end

-- XChaCha20's key for the last 8 bytes of the nonce. HChaCha20 is a block of ChaCha20 without the last addition, so that
-- is taken away again.
local function hchacha20(key, nonce)
    local block = chacha20(key, nonce, string.rep("\0", 64))
    local out = {}
    local function subtract(at, what, count)
        for i = 0, count - 1 do
            local word = little(block, at + 4 * i, 4) - little(what, 1 + 4 * i, 4)
            out[#out + 1] = to_little(word % 4294967296, 4)
        end
    end
    subtract(1, "expand 32-byte k", 4)
    subtract(49, nonce, 4)
    return table.concat(out)
end

local function open_private(key, nonce, associated, sealed)
    return open(hchacha20(key, nonce:sub(1, 16)), "\0\0\0\0" .. nonce:sub(17, 24), associated, sealed, true)
end

-- RFC 8439, 2.8.2. Whoever's OpenSSL or Lua computes otherwise gets no decryption instead of a wrong one.
local function self_test()
    local key = unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")
    local nonce, associated = unhex("070000004041424344454647"), unhex("50515253c0c1c2c3c4c5c6c7")
    local tag = unhex("1ae10b594f09e26a7e902ecbd0600691")
    local text = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
    local data = chacha20(key, "\1\0\0\0" .. nonce, text)
    return data:sub(1, 4) == unhex("d31a8d34") and open(key, nonce, associated, data .. tag, true) == text
end
if has_cipher and has_bignum then
    local fine, good = pcall(self_test)
    has_bignum = fine and good
end

-- ---- keys ----

local sessions, session_list = {}, {} -- by the token's nonce, and in order
local private_key, settings_fault
local keylog -- how far the key log was read

local function session_of(nonce)
    local session = sessions[nonce]
    if not session then
        session = { nonce = nonce }
        sessions[nonce] = session
        session_list[#session_list + 1] = session
    end
    return session
end

local KEYLOG_LABELS = {
    NETCODE_CLIENT_TO_SERVER = { "to_server", 64 },
    NETCODE_SERVER_TO_CLIENT = { "to_client", 64 },
    NETCODE_PROTOCOL_ID = { "protocol_id", 16 }
}

-- true: a key was in it; false: it has a label of ours and is wrong; nil: a comment, or another program's.
local function read_keylog_line(line)
    local label, nonce, value = line:match("^%s*(%S+)%s+(%x+)%s+(%x+)%s*$")
    local row = KEYLOG_LABELS[label or line:match("^%s*(%S+)") or ""]
    if not row then return nil end
    if not label or #nonce ~= 48 or #value ~= row[2] then return false end
    value = unhex(value)
    -- The id is written as a number and used as it stands on the wire.
    session_of(unhex(nonce))[row[1]] = row[1] == "protocol_id" and value:reverse() or value
    return true
end

-- A game that is being captured makes its key log longer, and its last line may be half of one: that is read again.
local function read_keylog_file(file, path)
    repeat
        file:seek("set", keylog.at)
        local data = file:read(KEYLOG_PIECE) or ""
        local whole = data:match("^.*\n") or ""
        for line in whole:gmatch("[^\n]*\n") do
            keylog.lines = keylog.lines + 1
            local good = read_keylog_line(line)
            if good then keylog.good = true end
            if good == false then settings_fault = path .. " line " .. keylog.lines .. " is no line of a key log" end
        end
        keylog.at = keylog.at + #whole
        if whole == "" and read_keylog_line(data) then keylog.good = true end
    until whole == ""
    local strange = not keylog.good and (keylog.lines > 0 or keylog.bytes > KEYLOG_LINE)
    keylog.fault = strange and path .. " is no key log" or nil
end

-- What was written to the key log since it was read last; all of it where it is another file now.
local function read_keylog()
    local path = netcode.prefs.keylog_file
    if path == "" then return end
    local file = io.open(path, "rb")
    local bytes = file and select(2, file:read(0)) == nil and file:seek("end") -- a folder can be opened, and not be read
    if not bytes then
        keylog.fault = path .. " can not be read"
    elseif bytes ~= keylog.bytes then
        if bytes < keylog.bytes then keylog.at, keylog.lines = 0, 0 end
        keylog.bytes = bytes
        read_keylog_file(file, path)
    end
    if file then file:close() end
end

local function read_private_key(path)
    local file = io.open(path, "rb")
    local data = file and file:read(256) or ""
    if file then file:close() end
    local text = data:match("^%s*(%x+)%s*$")
    private_key = text and #text == 64 and unhex(text) or #data == 32 and data or nil
    if not private_key then
        settings_fault = path .. (file and " holds no private key: 32 bytes, or the same in hex" or " can not be read")
    end
end

-- ---- what is remembered of a capture ----

local connections, connection_count, frames, tries = {}, 0, {}, 0
local owners = {} -- by the token's nonce, the connection that it first opened a packet of, and its use there
local registered_ports = ""

local function load_keys()
    sessions, session_list, private_key, settings_fault = {}, {}, nil, nil
    keylog = { at = 0, bytes = 0, lines = 0, good = false }
    read_keylog()
    if netcode.prefs.private_key_file ~= "" then read_private_key(netcode.prefs.private_key_file) end
end

function netcode.init()
    connections, connection_count, frames, tries = {}, 0, {}, 0
    owners = {}
    load_keys()
end

local function has_port(port)
    for first, last in registered_ports:gmatch("(%d+)%-?(%d*)") do
        if port >= tonumber(first) and port <= tonumber(last ~= "" and last or first) then return true end
    end
    return false
end

function netcode.prefs_changed()
    local ports = tostring(netcode.prefs.ports or "")
    local udp = DissectorTable.get("udp.port")
    if ports ~= registered_ports then
        if registered_ports ~= "" then udp:remove(registered_ports, netcode) end
        if ports ~= "" then udp:add(ports, netcode) end
        registered_ports = ports
    end
    load_keys()
end

-- An address as text is its name, where Wireshark looks names up: two addresses may share one, and it comes later. So it is
-- the bytes in the packet, of the innermost header that has this address.
local function end_of(address, port, headers)
    for _, header in ipairs(headers) do
        local found = { header() }
        for i = #found, 1, -1 do
            if found[i].value == address then return found[i].range:raw() .. ":" .. port end
        end
    end
    return tostring(address) .. ":" .. port
end

local function connection_of(pinfo)
    local from, to = end_of(pinfo.src, pinfo.src_port, sources), end_of(pinfo.dst, pinfo.dst_port, destinations)
    local name = from < to and from .. "|" .. to or to .. "|" .. from
    return connections[name], name, from, to
end

local function add_connection(name)
    local connection = { uses = {}, probes = 0 }
    connections[name] = connection
    return connection
end

-- A token that a connection uses; the newest comes first. Anyone can send requests from another client's address: a token that
-- never opened anything is evicted first.
local function add_use(connection, nonce, frame)
    for _, use in ipairs(connection.uses) do
        if use.nonce == nonce then return use end
    end
    local use = { nonce = nonce, frame = frame, seen = { to_server = {}, to_client = {} }, probes = { to_server = {}, to_client = {} } }
    local uses, place = connection.uses, SESSIONS_OF_A_CONNECTION
    if #uses == SESSIONS_OF_A_CONNECTION then
        while place > 1 and uses[place].has_opened do place = place - 1 end
        table.remove(uses, not uses[place].has_opened and place or nil)
    end
    table.insert(uses, 1, use)
    return use
end

-- ---- packets: Standard: Reading Encrypted Packets ----

-- `way` may be unknown. Returns type, bytes of the sequence, bytes of the body, and a reason where it would be dropped.
local function parse_sealed(data, bytes, way)
    local prefix = data:byte(1)
    local kind, sequence_bytes = prefix % 16, (prefix - prefix % 16) / 16
    if bytes > MOST_SEALED then return kind, nil, nil, "OVERSIZED_DATAGRAM" end
    if bytes < LEAST_SEALED then return kind, nil, nil, "TOO_SMALL" end
    local rule = RULES[kind]
    if kind > DISCONNECT then return kind, nil, nil, "UNKNOWN_PACKET_TYPE" end
    if not rule or (way and not rule[way]) then return kind, nil, nil, "WRONG_DIRECTION" end
    if sequence_bytes < 1 or sequence_bytes > 8 then return kind, nil, nil, "BAD_SEQUENCE_LENGTH" end
    local body = bytes - 1 - sequence_bytes - MAC_BYTES
    if body < rule.least or body > rule.most then return kind, nil, nil, "WRONG_BODY_SIZE" end
    return kind, sequence_bytes, body, nil
end

local function parse_request(data, bytes)
    if bytes > MOST_SEALED then return "OVERSIZED_DATAGRAM" end
    if bytes == REQUEST_BYTES_OLD and data:sub(2, 14) == VERSION_OLD then return "REQUEST_OLD_VERSION" end
    if bytes ~= REQUEST_BYTES then return "REQUEST_WRONG_SIZE" end
    if data:sub(2, 14) == VERSION_OLD then return "REQUEST_OLD_VERSION" end
    if data:sub(2, 14) ~= VERSION then return "REQUEST_WRONG_VERSION" end
    return nil
end

local function is_request(data)
    return data:sub(1, 11) == "\0NETCODE 1."
end

local function open_sealed(data, sequence_bytes, session, way, verify)
    local key, protocol_id = session[way], session.protocol_id
    if not key or not protocol_id then return nil, false end
    local nonce = "\0\0\0\0" .. data:sub(2, 1 + sequence_bytes) .. string.rep("\0", 8 - sequence_bytes)
    return open(key, nonce, VERSION .. protocol_id .. data:sub(1, 1), data:sub(2 + sequence_bytes), verify)
end

local function can_verify()
    return has_cipher and has_bignum and netcode.prefs.verify
end

-- ---- the private part of a connect token: Standard: Connect Token ----

local function address_text(kind, data, port)
    if kind == 1 then
        return string.format("%d.%d.%d.%d:%d", data:byte(1), data:byte(2), data:byte(3), data:byte(4), port)
    end
    local words = {}
    for i = 0, 7 do
        words[i + 1] = string.format("%x", little(data, 1 + 2 * i, 2))
    end
    return "[" .. table.concat(words, ":") .. "]:" .. port
end

-- Where things are in the opened private part; nil where it breaks the format.
local function parse_private(plain)
    local count, at, last = little(plain, 13, 4), 17, PRIVATE_BYTES - MAC_BYTES
    local token = { addresses = {} }
    if count < 1 or count > 32 then return nil end
    for i = 1, count do
        local kind = plain:byte(at)
        local bytes = kind == 1 and 4 or kind == 2 and 16
        if not bytes or at + bytes + 2 > last then return nil end
        local port = little(plain, at + 1 + bytes, 2)
        if port == 0 then return nil end
        token.addresses[i] = { at = at - 1, bytes = 3 + bytes, text = address_text(kind, plain:sub(at + 1, at + bytes), port) }
        at = at + 3 + bytes
    end
    if at + 64 + USER_DATA_BYTES - 1 > last then return nil end
    token.to_server, token.to_client = plain:sub(at, at + 31), plain:sub(at + 32, at + 63)
    token.user_data_at = at + 63
    return token
end

local function read_private(data)
    local nonce, associated = data:sub(31, 54), VERSION .. data:sub(15, 22) .. data:sub(23, 30)
    local plain = open_private(private_key, nonce, associated, data:sub(PRIVATE_AT + 1))
    if not plain then return nil, nil, "TOKEN_NOT_AUTHENTIC" end
    local token = parse_private(plain)
    if not token then return nil, nil, "TOKEN_MALFORMED" end
    return token, plain, nil
end

-- ---- the first look at a packet: it finds the connection, the way and the key. What it found is kept ----

local function judge_request(found, data, pinfo, connection)
    found.type = REQUEST
    found.reason = parse_request(data, #data)
    if found.reason then return end
    local nonce = data:sub(31, 54)
    if not sessions[nonce] then read_keylog() end
    if private_key and has_cipher and has_bignum then
        local token, _, reason = read_private(data)
        found.reason = reason
        found.is_opened = token ~= nil
        if token then
            local session = session_of(nonce)
            session.to_server, session.to_client = token.to_server, token.to_client
            session.protocol_id = data:sub(15, 22)
        end
    end
    local session = sessions[nonce]
    if session then session.protocol_id = session.protocol_id or data:sub(15, 22) end
    if not found.reason then
        found.use = add_use(connection, nonce, pinfo.number)
        -- Doubles hold it exactly for the next 285 million years; what never expires is larger.
        local expire = little(data, 23, 6) + 281474976710656 * little(data, 29, 2)
        if expire <= math.floor(pinfo.abs_ts) then found.reason = "TOKEN_EXPIRED" end
    end
end

-- The key that opens it, among those of the connection's tokens.
local function find_use(found, data, connection)
    local verify, keys = can_verify(), 0
    for _, use in ipairs(connection.uses) do
        local session = sessions[use.nonce]
        if session and session[found.way] and session.protocol_id then
            keys = keys + 1
            if open_sealed(data, found.sequence_bytes, session, found.way, verify) then return use, keys end
        end
    end
    return nil, keys
end

-- A keep-alive's body is a probe where the highest bit is set, which no count of clients has. Who receives it sends it back.
local function judge_probe(found, data, pinfo, use)
    local body = open_sealed(data, found.sequence_bytes, sessions[use.nonce], found.way, false)
    if not body or #body ~= 8 or body:byte(8) < 128 then return end
    local asked = use.probes[found.way == "to_server" and "to_client" or "to_server"][body]
    found.probe = asked and "echo" or "probe"
    if asked then
        found.probe_in, found.probe_seconds = asked.frame, pinfo.abs_ts - asked.time
    elseif not use.probes[found.way][body] then
        use.probes[found.way][body] = { frame = pinfo.number, time = pinfo.abs_ts }
    end
end

local function judge_sealed(found, data, pinfo, connection)
    found.type, found.sequence_bytes, found.body_bytes, found.reason = parse_sealed(data, #data, found.way)
    if found.reason or not has_cipher or not found.way then return end
    local newest = connection.uses[1] and (sessions[connection.uses[1].nonce] or {})
    if newest and not newest[found.way] then read_keylog() end
    local use, keys = find_use(found, data, connection)
    if not use then
        found.reason = keys > 0 and "AUTHENTICATION_FAILED" or nil
        return
    end
    found.use, found.is_opened, found.is_verified = use, true, can_verify()
    use.has_opened = found.is_verified
    connection.is_proven = connection.is_proven or found.is_verified
    if found.is_verified and not owners[use.nonce] then owners[use.nonce] = { connection = connection, use = use } end
    if found.type == KEEP_ALIVE then judge_probe(found, data, pinfo, use) end
    if found.type >= KEEP_ALIVE then
        local seen, sequence = use.seen[found.way], data:sub(2, 1 + found.sequence_bytes):gsub("%z+$", "")
        found.duplicate_of = seen[sequence]
        seen[sequence] = seen[sequence] or pinfo.number
        found.reason = found.duplicate_of and "REPLAYED" or nil
    end
end

-- What a key has opened before, at other addresses, goes on here: the client has moved.
local function follow(connection, nonce)
    local owner = owners[nonce]
    if not owner or owner.connection == connection then
        add_use(connection, nonce, nil)
        return
    end
    connection.index, connection.has_moved = owner.connection.index, true
    connection.uses[1] = owner.use
end

-- A connection whose request is not in the capture: every key is tried, both ways. Only a tag can say which one fits.
local function probe(connection, data, from, to)
    if not can_verify() or connection.probes >= MOST_PROBES then return false end
    local tried = false
    for _, way in ipairs({ "to_server", "to_client" }) do
        local _, sequence_bytes, _, reason = parse_sealed(data, #data, way)
        if not reason and not tried then
            tried = true
            connection.probes = connection.probes + 1
        end
        for i = #session_list, math.max(1, #session_list - MOST_SESSIONS_PROBED + 1), -1 do
            if reason or tries >= MOST_TRIES then break end
            tries = tries + 1
            if open_sealed(data, sequence_bytes, session_list[i], way, true) then
                connection.client = way == "to_server" and from or to
                connection.is_netcode = true
                follow(connection, session_list[i].nonce)
                return true
            end
        end
    end
    return false
end

-- Who is the client, where no request and no key said it: some types go one way only, and servers have known ports.
local function guess_client(data, pinfo, from, to)
    local kind = #data > 0 and data:byte(1) % 16 or PAYLOAD
    local to_port, from_port = has_port(pinfo.dst_port), has_port(pinfo.src_port)
    if to_port ~= from_port then return to_port and from or to end
    if kind == RESPONSE then return from end
    if kind == CHALLENGE or kind == DENIED then return to end
    return nil
end

local function look(data, pinfo)
    local connection, name, from, to = connection_of(pinfo)
    connection = connection or add_connection(name)
    -- Requests can be forged: until a key has opened something, the latest one says who the client is.
    if not connection.is_proven and is_request(data) then connection.client = from end
    if #connection.uses == 0 and #data > 0 and not is_request(data) then probe(connection, data, from, to) end
    connection.client = connection.client or guess_client(data, pinfo, from, to)
    if not connection.index then -- other UDP has no number
        connection.index, connection_count = connection_count, connection_count + 1
    end
    connection.is_netcode = true
    local found = { connection = connection, way = connection.client and (connection.client == from and "to_server" or "to_client") }
    if #data == 0 then
        found.reason = "EMPTY_DATAGRAM"
    elseif data:byte(1) == REQUEST and found.way ~= "to_client" then
        judge_request(found, data, pinfo, connection)
    else
        judge_sealed(found, data, pinfo, connection)
    end
    return found
end

-- With batch_sends, several packets leave a Linux machine as one send, which its system cuts into pieces of one size (the
-- last may be shorter). A capture there sees what was not cut yet. The size is nowhere in it, but each packet's sequence is
-- one more than the one before it. Sequences are compared as text, little-endian, so that no Lua loses a bit of them.
local function next_sequence(sequence)
    local bytes = { sequence:byte(1, 8) }
    for i = 1, 8 do
        bytes[i] = ((bytes[i] or 0) + 1) % 256
        if bytes[i] ~= 0 then break end
    end
    for i = 1, 8 do bytes[i] = bytes[i] or 0 end
    return string.char(bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8])
end

local function sequence_at(data, at, bytes)
    if bytes < LEAST_SEALED then return nil end
    local _, sequence_bytes, _, reason = parse_sealed(data:sub(at, at + 8), bytes, "to_server")
    return not reason and pad(data:sub(at + 1, at + sequence_bytes), 8) or nil
end

local function find_pieces(data)
    local first = { data:byte(1, 9) }
    for size = LEAST_SEALED, math.min(MOST_SEALED, #data - 1) do
        -- Most sizes end at the first look: the lowest byte of the next sequence.
        local low = data:byte(size + 2)
        if low and low == (first[2] + 1) % 256 then
            local at, expected = 1, sequence_at(data, 1, size)
            while expected and at + size <= #data do
                at, expected = at + size, next_sequence(expected)
                if sequence_at(data, at, math.min(size, #data - at + 1)) ~= expected then expected = nil end
            end
            if expected then return size end
        end
    end
    return nil
end

local function opens_as(data, way, connection)
    local found = { way = way }
    local _, sequence_bytes, _, reason = parse_sealed(data, #data, way)
    found.sequence_bytes = sequence_bytes
    return not reason and find_use(found, data, connection) ~= nil
end

-- nil: it is one packet. Whatever opens as one is one; without a key, only what is too large for one is none.
local function piece_bytes(data, pinfo)
    local connection, _, from = connection_of(pinfo)
    local size = connection and connection.client and #data > LEAST_SEALED and data:byte(1) ~= REQUEST and find_pieces(data)
    if not size then return nil end
    local way = connection.client == from and "to_server" or "to_client"
    local keys = 0
    for _, use in ipairs(connection.uses) do
        local session = sessions[use.nonce]
        keys = keys + (session and session[way] and session.protocol_id and 1 or 0)
    end
    if keys > 0 and can_verify() then
        return not opens_as(data, way, connection) and opens_as(data:sub(1, size), way, connection) and size or nil
    end
    return #data > MOST_SEALED and size or nil
end

-- ---- messages: netcode.h, room 16, THE WIRE ----

-- Reads from a text. Past its end, and after what is not in its shortest form, it has failed, and gives zeros.
local function reader_of(data)
    local reader = { data = data, at = 1, has_failed = false }

    function reader.number(bytes)
        if #data - reader.at + 1 < bytes then
            reader.has_failed, reader.at = true, #data + 1
            return 0
        end
        reader.at = reader.at + bytes
        return little(data, reader.at - bytes, bytes)
    end

    function reader.varint()
        local value, factor = 0, 1
        for i = 1, 4 do
            local octet = reader.number(1)
            value, factor = value + octet % 128 * factor, factor * 128
            if i > 1 and octet == 0 then reader.has_failed = true end
            if octet < 128 then return value end
        end
        reader.has_failed = true
        return 0
    end

    -- Bytes of the message's data: where they begin, and how many there are.
    function reader.bytes(count)
        if #data - reader.at + 1 < count then
            reader.has_failed, reader.at = true, #data + 1
            return 1, 0
        end
        reader.at = reader.at + count
        return reader.at - count, count
    end

    return reader
end

local function has_bit(value, bit)
    return math.floor(value / bit) % 2 == 1
end

local function below(number, distance)
    return (number - distance) % 65536
end

-- Each reads what follows a frame's first byte into the frame. A result is the reason why it is refused.
local READ_CONTROL = {
    [0x07] = function(reader, frame, packet)
        local count, distance = reader.number(1), 33
        frame.ranges = {}
        if not packet.ack_valid or packet.has_ranges or count < 1 or count > MOST_RANGES then return "FRAME" end
        packet.has_ranges = true
        for i = 1, count do
            local at = reader.at
            local skipped, received = reader.varint(), reader.varint()
            if reader.has_failed or received == 0 or distance + skipped + received > REMEMBERED then return "FRAME" end
            distance = distance + skipped + received
            frame.ranges[i] = { first = below(packet.ack, distance - 1), last = below(packet.ack, distance - received), at = at, bytes = reader.at - at }
        end
    end,
    [0x0f] = function(reader, frame) frame.ping = reader.number(4) end,
    [0x17] = function(reader, frame) frame.ping = reader.number(4) end,
    [0x1f] = function(reader, frame)
        frame.credit, frame.largest, frame.channels, frame.epoch = reader.number(4), reader.varint(), reader.number(1), reader.number(2)
        return (frame.largest < WHOLE_BYTES or frame.channels < 1 or frame.channels > CHANNELS) and "LIMIT" or nil
    end,
    [0x27] = function(reader, frame)
        frame.id, frame.cost = reader.number(2), reader.varint()
        if frame.cost ~= 0 and frame.cost < LEAST_COST then return "FRAME" end
        return frame.cost > MOST_COST and "LIMIT" or nil
    end,
    [0x2f] = function(reader, frame, packet)
        local count = reader.number(1)
        frame.ids = {}
        if packet.has_refusals or count < 1 or count > MOST_REFUSED then return "FRAME" end
        packet.has_refusals = true
        for i = 1, count do
            frame.ids[i] = reader.number(2)
        end
    end,
    [0x37] = function(reader, frame)
        frame.reason = reader.number(1)
        return not BROKEN_REASONS[frame.reason] and "FRAME" or nil
    end
}

local function read_fragment(reader, frame, packet)
    frame.total, frame.index = reader.number(4), reader.varint()
    local bytes, reason = 0, nil
    frame.fragments = frame.total > 0 and math.floor((frame.total - 1) / FRAGMENT_BYTES) + 1 or 1
    frame.offset = frame.index * FRAGMENT_BYTES
    if frame.kind ~= STREAM and (frame.total <= WHOLE_BYTES or frame.total > MOST_MESSAGE) then reason = "FRAGMENT" end
    if frame.index >= frame.fragments then
        reason = "FRAGMENT"
    elseif frame.kind == STREAM or frame.total > WHOLE_BYTES then
        bytes = math.min(frame.total - frame.offset, FRAGMENT_BYTES)
    end
    frame.data_at, frame.data_bytes = reader.bytes(bytes)
    if packet.has_fragment then reason = "FRAGMENT" end
    packet.has_fragment = true
    return reason
end

local function read_message(reader, frame, first, packet)
    local is_fragment, is_last = has_bit(first, 8), has_bit(first, 32)
    local is_reliable = frame.kind > UNRELIABLE_SEQUENCED
    frame.name = is_fragment and "FRAGMENT" or "MESSAGE"
    frame.channel = has_bit(first, 16) and reader.number(1) or 0
    if has_bit(first, 16) and frame.channel == 0 then return "FRAME" end
    if is_fragment and not is_reliable or frame.kind == STREAM and not is_fragment then return "FRAME" end
    if is_reliable then frame.id = reader.number(2) end
    if frame.kind == STREAM then
        frame.tag = reader.number(4)
    elseif frame.kind == ORDERED then
        frame.order = reader.number(2)
    end
    local reason
    if is_fragment then
        frame.is_known = is_last
        reason = read_fragment(reader, frame, packet)
    else
        frame.is_last = is_last
        frame.length = is_last and #reader.data - reader.at + 1 or reader.varint()
        if frame.length > WHOLE_BYTES then return "FRAME" end
        frame.data_at, frame.data_bytes = reader.bytes(frame.length)
    end
    return frame.channel >= CHANNELS and "CHANNEL" or reason
end

local function read_frame(reader, packet)
    local frame = { at = reader.at, type = reader.number(1) }
    local kind, reason = frame.type % 8, nil
    if kind <= STREAM and frame.type < 64 then
        frame.kind = kind
        reason = read_message(reader, frame, frame.type, packet)
    elseif READ_CONTROL[frame.type] then
        frame.name = FRAME_TYPES[frame.type]
        reason = READ_CONTROL[frame.type](reader, frame, packet)
    else
        reason = "FRAME"
    end
    frame.bytes = reader.at - frame.at
    return frame, reader.has_failed and "FRAME" or reason
end

local function read_header(reader, packet)
    local flags = reader.number(1)
    packet.version, packet.ack_valid, packet.please_ack = flags % 16, has_bit(flags, 16), has_bit(flags, 64)
    packet.number, packet.ack, packet.ack_bits = reader.number(2), reader.number(2), reader.number(4)
    if has_bit(flags, 32) then packet.delay = reader.number(2) end
    if reader.has_failed then return "HEADER" end
    if packet.version ~= MESSAGES_VERSION then return "VERSION" end
    local is_bare = packet.ack == 0 and packet.ack_bits == 0 and not packet.delay
    return (has_bit(flags, 128) or not packet.ack_valid and not is_bare) and "HEADER" or nil
end

-- All of a packet that is valid: the header, and frames up to the one with a reason.
local function parse_messages(data)
    local reader, packet = reader_of(data), { frames = {} }
    packet.reason = read_header(reader, packet)
    packet.has_header = not reader.has_failed
    packet.malformed_at = packet.reason and 1 or nil
    while not packet.reason and reader.at <= #data do
        local frame, reason = read_frame(reader, packet)
        packet.reason = reason
        if reason then packet.malformed_at = frame.at else packet.frames[#packet.frames + 1] = frame end
    end
    return packet
end

-- ---- the tree ----

local function add_private(tree, plain, token)
    local tvb = ByteArray.new(plain, true):tvb("Private part of the connect token")
    local part = tree:add(netcode, tvb(), "Private part of the connect token, opened and authenticated")
    part:add_le(fields.client_id, tvb(0, 8))
    part:add_le(fields.timeout, tvb(8, 4))
    for _, address in ipairs(token.addresses) do
        part:add(fields.server_address, tvb(address.at, address.bytes), address.text)
    end
    part:add(fields.user_data, tvb(token.user_data_at, USER_DATA_BYTES))
end

local function show_request(tvb, tree, found, data)
    local bytes = tvb:len()
    if bytes >= 14 then tree:add(fields.version, tvb(1, 13), (data:sub(2, 14):gsub("[^\32-\126]", ""))) end
    if bytes < REQUEST_BYTES or parse_request(data, bytes) then return end
    tree:add_le(fields.protocol_id, tvb(14, 8))
    tree:add_le(fields.expire, tvb(22, 8))
    local high = little(data, 27, 4)
    if high == 0 then tree:add(fields.expire_time, tvb(22, 8), NSTime.new(little(data, 23, 4), 0)):set_generated() end
    tree:add(fields.nonce, tvb(30, 24))
    tree:add(fields.private, tvb(PRIVATE_AT, PRIVATE_BYTES))
    if not found.is_opened then
        tree:add(fields.decryption, found.reason == "TOKEN_NOT_AUTHENTIC" and "wrong key" or
            private_key and "needs luaossl" or "no private key"):set_generated()
        return
    end
    tree:add(fields.decryption, "authenticated"):set_generated()
    local token, plain = read_private(data)
    if token then add_private(tree, plain, token) end
end

local function add_ack(tree, tvb, packet)
    tree:add_le(fields.ack, tvb(3, 2))
    local item, numbers = tree:add_le(fields.ack_bits, tvb(5, 4)), {}
    numbers[1] = packet.ack
    for bit = 0, 31 do
        if has_bit(packet.ack_bits, 2 ^ bit) then numbers[#numbers + 1] = below(packet.ack, bit + 1) end
    end
    item:append_text(", acknowledged: " .. table.concat(numbers, ", "))
    for _, number in ipairs(numbers) do
        item:add(fields.acked, tvb(3, 6), number):set_generated()
    end
    if packet.delay then
        local delay = tree:add(fields.ack_delay, tvb(9, 2), packet.delay / 10)
        if packet.delay > 1000 then delay:append_text(" (100 ms of it count)") end
    end
end

local function add_header(tree, tvb, packet)
    tree:add(fields.version_of_messages, tvb(0, 1))
    if packet.version ~= MESSAGES_VERSION then return end
    tree:add(fields.ack_valid, tvb(0, 1))
    tree:add(fields.has_delay, tvb(0, 1))
    tree:add(fields.please_ack, tvb(0, 1))
    tree:add_le(fields.number, tvb(1, 2))
    if packet.ack_valid then add_ack(tree, tvb, packet) end
end

-- The numbers of a frame, in the order of the wire: a name in the frame, and its field.
local NUMBERS = {
    { "channel", "channel" }, { "id", "id" }, { "order", "order" }, { "tag", "stream_tag" }, { "length", "length" }, { "total", "total" },
    { "index", "index" }, { "ping", "ping" }, { "credit", "credit" }, { "largest", "largest" }, { "channels", "channels" }, { "epoch", "epoch" },
    { "cost", "cost" }, { "reason", "reason" }
}

local function frame_text(frame)
    local text = frame.name
    if frame.kind then text = text .. ", " .. KINDS[frame.kind] .. ", channel " .. frame.channel end
    if frame.id then text = text .. ", id " .. frame.id end
    if frame.ids then text = text .. ", id " .. table.concat(frame.ids, ", ") end
    if frame.reason then text = text .. ", " .. BROKEN_REASONS[frame.reason] end
    if frame.total then text = text .. ", " .. (frame.index + 1) .. " of " .. frame.fragments end
    if frame.data_bytes then text = text .. ", " .. frame.data_bytes .. " bytes" end
    return text
end

local function add_frame(tree, tvb, frame)
    local part = tvb(frame.at - 1, frame.bytes)
    local item = tree:add(fields.frame, part, frame.name)
    item:set_text("Frame: " .. frame_text(frame))
    item:add(fields.frame_type, tvb(frame.at - 1, 1))
    if frame.kind then item:add(fields.kind, tvb(frame.at - 1, 1), frame.kind) end
    for _, row in ipairs(NUMBERS) do
        local value = frame[row[1]]
        if value then item:add(fields[row[2]], part, value) end
    end
    for i, id in ipairs(frame.ids or {}) do
        item:add(fields.id, tvb(frame.at + 2 * i - 1, 2), id)
    end
    if frame.is_last then item:append_text(" (to the packet's end)") end
    if frame.is_known then item:append_text(" (a part was acknowledged)") end
    for _, range in ipairs(frame.ranges or {}) do
        local place = tvb(range.at - 1, range.bytes)
        item:append_text(" " .. range.first .. "-" .. range.last)
        item:add(fields.range_first, place, range.first)
        item:add(fields.range_last, place, range.last)
    end
    if frame.total then
        item:add(fields.fragments, frame.fragments):set_generated()
        item:add(fields.offset, frame.offset):set_generated()
    end
    if frame.data_bytes and frame.data_bytes > 0 then item:add(fields.message_data, tvb(frame.data_at - 1, frame.data_bytes)) end
end

local function counted(count, what)
    return count > 0 and string.format(", %d %s%s", count, what, count > 1 and "s" or "") or ""
end

local function messages_text(packet)
    if not packet.has_header or packet.version ~= MESSAGES_VERSION then return "messages" end
    local messages, fragments, others = 0, 0, ""
    for _, frame in ipairs(packet.frames) do
        if frame.name == "MESSAGE" then
            messages = messages + 1
        elseif frame.name == "FRAGMENT" then
            fragments = fragments + 1
        else
            others = others .. ", " .. frame.name
        end
    end
    local text = "messages: number " .. packet.number .. (packet.ack_valid and ", ack " .. packet.ack or "")
    return text .. counted(messages, "message") .. counted(fragments, "fragment") .. others
end

-- Returns a text for the info column.
local function show_messages(tree, tvb, plain)
    if netcode.prefs.messages == NEVER then return "" end
    local packet = parse_messages(plain)
    if packet.reason and netcode.prefs.messages ~= ALWAYS then return "" end
    local text = messages_text(packet)
    local part = tree:add(fields.messages, tvb())
    part:set_text("M" .. text:sub(2))
    if packet.has_header then add_header(part, tvb, packet) end
    for _, frame in ipairs(packet.frames) do
        add_frame(part, tvb, frame)
    end
    if packet.reason then
        local item = part:add(fields.dropped, tvb(packet.malformed_at - 1), packet.reason)
        item:add_proto_expert_info(experts.messages, packet.reason .. ": " .. MESSAGES_REASONS[packet.reason])
        text = text .. " [" .. packet.reason .. "]"
    end
    return " (" .. text .. ")"
end

local function show_body(tree, found, plain, pinfo, root)
    if #plain == 0 then return "" end
    local tvb = ByteArray.new(plain, true):tvb(found.is_verified and "Decrypted" or "Decrypted, not authenticated")
    if found.type == CHALLENGE or found.type == RESPONSE then
        tree:add_le(fields.challenge_sequence, tvb(0, 8))
        tree:add(fields.challenge_data, tvb(8, 300))
        return " challenge=" .. tostring(tvb(0, 8):le_uint64())
    elseif found.probe then
        tree:add_le(fields.probe, tvb(0, 8))
        tree:add(fields.probe_kind, found.probe):set_generated()
        local text = " " .. found.probe .. "=0x" .. tvb(0, 8):le_uint64():tohex()
        if found.probe_in then
            tree:add(fields.probe_in, found.probe_in):set_generated()
            tree:add(fields.probe_seconds, found.probe_seconds):set_generated()
            text = text .. string.format(" after %.1f ms", found.probe_seconds * 1000)
        end
        return text
    elseif found.type == KEEP_ALIVE then
        tree:add_le(fields.client_index, tvb(0, 4))
        tree:add_le(fields.max_clients, tvb(4, 4))
        return string.format(" client=%d/%d", tvb(0, 4):le_uint(), tvb(4, 4):le_uint())
    end
    tree:add(fields.payload, tvb())
    tree:add(fields.payload_bytes, tvb(), #plain):set_generated()
    local text = show_messages(tree, tvb, plain)
    payloads:try(found.way == "to_server" and pinfo.dst_port or pinfo.src_port, tvb, pinfo, root)
    return " payload=" .. #plain .. text
end

local function why_closed(found)
    if found.reason == "AUTHENTICATION_FAILED" then return "failed: wrong key, or changed in transit" end
    if not has_cipher then return "needs luaossl" end
    if not found.way then return "direction not known" end
    return "no key"
end

local function show_sealed(tvb, tree, found, data, pinfo, root)
    local at = 1 + found.sequence_bytes
    tree:add(fields.sequence, tvb(1, found.sequence_bytes), tvb(1, found.sequence_bytes):le_uint64())
    local info = " seq=" .. tostring(tvb(1, found.sequence_bytes):le_uint64())
    if found.body_bytes > 0 then tree:add(fields.sealed, tvb(at, found.body_bytes)) end
    tree:add(fields.sealed_bytes, tvb(at, found.body_bytes + MAC_BYTES), found.body_bytes):set_generated()
    tree:add(fields.tag, tvb(at + found.body_bytes, MAC_BYTES))
    local session = found.is_opened and sessions[found.use.nonce]
    local plain = session and open_sealed(data, found.sequence_bytes, session, found.way, false)
    if not plain then
        local why = why_closed(found)
        local item = tree:add(fields.decryption, why):set_generated()
        if not found.reason then item:add_proto_expert_info(experts.unopened, "Sealed: " .. why) end
        return info .. " sealed=" .. found.body_bytes .. (has_cipher and "" or " [needs luaossl]")
    end
    local item = tree:add(fields.decryption, found.is_verified and "authenticated" or "not authenticated"):set_generated()
    if not found.is_verified then
        item:add_proto_expert_info(experts.unverified, "Decrypted, but NOT AUTHENTICATED: the tag was not verified, so a wrong key shows as noise")
    end
    return info .. show_body(tree, found, plain, pinfo, root) .. (found.is_verified and "" or " [not authenticated]")
end

local EXPERT_OF = { AUTHENTICATION_FAILED = "failed", TOKEN_NOT_AUTHENTIC = "failed", REPLAYED = "replayed", TOKEN_EXPIRED = "expired" }

local function show_reason(tree, found)
    local item = tree:add(fields.refused, found.reason):set_generated()
    item:add_proto_expert_info(experts[EXPERT_OF[found.reason] or "malformed"], found.reason .. ": " .. REASONS[found.reason])
    if found.duplicate_of then tree:add(fields.duplicate_of, found.duplicate_of):set_generated() end
    return " [" .. found.reason .. "]"
end

local function show_connection(tree, found, pinfo)
    tree:add(fields.connection, found.connection.index):set_generated()
    tree:add(fields.direction, found.way or "either_way"):set_generated()
    if found.connection.has_moved then tree:add(fields.moved, true):set_generated() end
    if found.use and found.use.frame and found.use.frame ~= pinfo.number then
        tree:add(fields.request_in, found.use.frame):set_generated()
    end
end

local function found_of(tvb, pinfo, data)
    local frame = frames[pinfo.number] or {}
    frames[pinfo.number] = frame
    local place = tvb:offset() -- a tunnel may put several datagrams into one frame
    frame[place] = frame[place] or look(data, pinfo)
    return frame[place]
end

-- What nothing can be said of, and why; nil for a packet as it was on its way.
local function is_no_packet(tvb)
    for _, header in ipairs(errors) do
        if header() then return "sent back by ICMP" end
    end
    return tvb:reported_len() > tvb:len() and "cut off by the capture" or nil
end

local function show_no_packet(tvb, root, why)
    local text = why == "sent back by ICMP" and "What ICMP sent back is no packet by itself" or
        "The capture holds " .. tvb:len() .. " of " .. tvb:reported_len() .. " bytes"
    root:add(netcode, tvb()):append_text(", " .. why):add_proto_expert_info(experts.cut, text)
    return why
end

-- One packet. Returns its line for the info column.
local function show(tvb, pinfo, root)
    local bytes = tvb:len()
    local tree = root:add(netcode, tvb())
    local data = bytes > 0 and tvb:raw(0, bytes) or ""
    local found = found_of(tvb, pinfo, data)
    local name = found.type and TYPES[found.type] or "UNKNOWN"
    tree:append_text(", " .. name)
    if bytes > 0 then
        tree:add(fields.prefix, tvb(0, 1))
        tree:add(fields.type, tvb(0, 1))
        tree:add(fields.sequence_bytes, tvb(0, 1))
    end
    tree:add(fields.bytes, bytes):set_generated()
    show_connection(tree, found, pinfo)
    local fault = settings_fault or keylog.fault or
        (tries >= MOST_TRIES and "too many packets of unknown connections: the last were not tried with every key" or nil)
    if fault then tree:add_proto_expert_info(experts.settings, fault) end
    local info = name .. (found.way and " " .. found.way or "")
    if found.type == REQUEST and found.way ~= "to_client" then
        show_request(tvb, tree, found, data)
        if private_key and not has_cipher then info = info .. " [needs luaossl]" end
    elseif found.sequence_bytes then
        info = info .. show_sealed(tvb, tree, found, data, pinfo, root)
    end
    if found.reason then info = info .. show_reason(tree, found) end
    return info .. " bytes=" .. bytes
end

-- One datagram, of one packet or more.
local function show_all(tvb, pinfo, root)
    local bytes = tvb:len()
    local frame = frames[pinfo.number] or {}
    frames[pinfo.number] = frame
    local place = "pieces of " .. tvb:offset()
    if frame[place] == nil then frame[place] = bytes > 0 and piece_bytes(tvb:raw(0, bytes), pinfo) or false end
    local size, info = frame[place], nil
    if size then
        for at = 0, bytes - 1, size do
            info = show(tvb(at, math.min(size, bytes - at)):tvb(), pinfo, root)
        end
        return math.ceil(bytes / size) .. " packets of one send, not cut yet (GSO); the last: " .. info
    end
    return show(tvb, pinfo, root)
end

function netcode.dissector(tvb, pinfo, root)
    local why = is_no_packet(tvb)
    pinfo.cols.protocol = "netcode"
    pinfo.cols.info = why and show_no_packet(tvb, root, why) or show_all(tvb, pinfo, root)
    return tvb:len()
end

-- Requests say what they are. What else is netcode, only the connection's beginning or a key can tell.
local function heuristic(tvb, pinfo, root)
    if tvb:len() == 0 then return false end
    local data = tvb:raw(0, tvb:len())
    local connection, name, from, to = connection_of(pinfo)
    local is_ours = is_request(data) or (connection and connection.is_netcode)
    if not is_ours and #session_list > 0 and has_cipher and not is_no_packet(tvb) then
        is_ours = probe(connection or add_connection(name), data, from, to)
    end
    if not is_ours then return false end
    pinfo.conversation = netcode
    netcode.dissector(tvb, pinfo, root)
    return true
end

netcode:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(netcode)
