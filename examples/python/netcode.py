#!/usr/bin/env python3
"""netcode.h for Python: clients, servers, connect tokens, messages and the network simulator, by ctypes.

Needs Python 3.9 or newer, its standard library, and netcode.h as a shared library. From the repository's root:

    make build/libnetcode.so
    python3 examples/python/netcode.py            the example at the end of this file

or, without make:

    mkdir -p build
    cc -shared -fPIC -O2 -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -x c netcode.h -lsodium -lm -o build/libnetcode.so

The library is looked for where the environment's NETCODE_LIBRARY says, beside this file, in build/ of the repository,
and where the system keeps libraries.

A server and a client:

    import netcode

    with netcode.Server("203.0.113.5:40000", protocol_id=1, private_key=key) as server:
        server.start(16)
        while True:
            server.update()
            for event in server.events():
                if isinstance(event, netcode.Payload):
                    server.send_packet(event.client_index, event.data)
            server.wait(1 / 60)

    with netcode.Client() as client:
        client.connect(connect_token)             # 2048 bytes from your web backend, by HTTPS
        while client.connecting or client.connected:
            client.update()
            for event in client.events():
                ...
            client.send_packet(b"hello")          # silent while not connected
            client.wait(1 / 60)

What is said in the manual at the top of netcode.h holds here too; names are the same without their prefix. What this
module adds:

  - Received payloads are copied into bytes, so there is nothing to free.
  - Objects are context managers. Who uses one after its destroy gets Destroyed, never a crash.
  - A mistake that the C library would assert on raises an exception.
  - An exception that leaves one of your callbacks is raised by the call that it ran in. An object that is destroyed in
    a callback ends when the outermost call has returned.
  - An object belongs to one thread at a time: a second thread that enters it meanwhile gets WrongThread. What talks
    over one simulator counts as one object. Lock around them where you share them.
  - An object belongs to the process that made it: in the child of a fork it is Destroyed, and the parent's lives on.
  - `time` may be left out everywhere: then it is netcode.time(). Give it in all calls of an object, or in none.
  - Log lines go to the logger "netcode" of the standard module logging.

Left out, as Python has no use for it: allocators, the printf hook, sockets as structs of C functions (`network` does
their job). Every function of the header can be called as netcode.lib.NAME all the same.
"""

import collections
import ctypes
import ctypes.util
import dataclasses
import enum
import logging
import operator
import os
import stat
import sys
import threading
import weakref
from ctypes import POINTER, c_char, c_char_p, c_double, c_float, c_int, c_size_t
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

VERSION = "1.1.0"  # of the header that the layouts below were written for

# ---- sizes and limits ----

CONNECT_TOKEN_BYTES = 2048
KEY_BYTES = 32
MAC_BYTES = 16
ADMIT_LATER = -1
USER_DATA_BYTES = 256
MAX_SERVERS_PER_CONNECT = 32
MAX_SLOTS = 65535
MAX_PACKET_SIZE = 1200
MAX_ADDRESS_STRING_LENGTH = 256
MAX_PRIVATE_KEYS = 4
MAX_PUBLIC_ADDRESSES = 32
PACKET_TYPES = 7
SERVER_CLIENT_DISCONNECT_REASONS = 5
MESSAGE_KINDS = 5
MESSAGES_CHANNELS = 32
MESSAGES_WHOLE_BYTES = 1180
MESSAGES_MAX_BYTES = 16777216
NEVER = 2**64 - 1  # the expire timestamp of a token that never expires

_OK = 1


class AddressType(enum.IntEnum):
    """The family of an address."""

    NONE = 0
    IPV4 = 1
    IPV6 = 2


class LogLevel(enum.IntEnum):
    """What is logged; at first ERROR."""

    NONE = 0
    ERROR = 1
    INFO = 2
    DEBUG = 3


class PacketType(enum.IntEnum):
    """The packets of the protocol."""

    REQUEST = 0
    DENIED = 1
    CHALLENGE = 2
    RESPONSE = 3
    KEEP_ALIVE = 4
    PAYLOAD = 5
    DISCONNECT = 6


class ClientState(enum.IntEnum):
    """Where a client is. Negative: it ended, and why."""

    CONNECT_TOKEN_EXPIRED = -6
    INVALID_CONNECT_TOKEN = -5
    CONNECTION_TIMED_OUT = -4
    CONNECTION_RESPONSE_TIMED_OUT = -3
    CONNECTION_REQUEST_TIMED_OUT = -2
    CONNECTION_DENIED = -1
    DISCONNECTED = 0
    SENDING_CONNECTION_REQUEST = 1
    SENDING_CONNECTION_RESPONSE = 2
    CONNECTED = 3


class DisconnectReason(enum.IntEnum):
    """Why a server's slot was emptied."""

    NONE = 0
    TIMED_OUT = 1
    CLIENT_DISCONNECT = 2
    SERVER_DISCONNECT = 3
    REPLACED = 4


class SequenceBase(enum.IntEnum):
    """Where the packet sequences of a connection start."""

    RANDOM = 0
    ZERO = 1


_DROP_NAMES = """NONE EMPTY_DATAGRAM OVERSIZED_DATAGRAM SOURCE_PORT_ZERO TOO_SMALL UNKNOWN_PACKET_TYPE WRONG_DIRECTION
    BAD_SEQUENCE_LENGTH WRONG_BODY_SIZE UNKNOWN_ADDRESS NOT_CONNECTED WRONG_SERVER WRONG_STATE REPLAYED SEQUENCE_TOO_OLD
    SEQUENCE_TOO_FAR_AHEAD AUTHENTICATION_FAILED QUEUE_FULL POOL_EMPTY REQUEST_WRONG_SIZE
    REQUEST_OLD_VERSION REQUEST_WRONG_VERSION REQUEST_WRONG_PROTOCOL_ID REQUEST_TOO_SOON TOKEN_EXPIRED TOKEN_MAYBE_USED
    TOKEN_REFUSED_UP_TO TOKEN_CONSUMED TOKEN_NO_RECORD_FREE TOKEN_NOT_AUTHENTIC TOKEN_MALFORMED TOKEN_FOR_ANOTHER_SERVER
    TOKEN_OUTLIVED ADDRESS_CONNECTED CLIENT_ID_CONNECTED SERVER_FULL NOT_ADMITTED CHALLENGE_NOT_ISSUED
    CHALLENGE_NOT_AUTHENTIC CHALLENGE_FOR_ANOTHER REQUEST_NOT_OPENED OVER_SHARE ADMISSION_PENDING""".split()

DropReason = enum.IntEnum("DropReason", _DROP_NAMES, start=0)
DropReason.__doc__ = """Why a datagram was dropped; drop_reason_text has a sentence for each."""
DROP_REASONS = len(DropReason)


class MessageKind(enum.IntEnum):
    """How a message is delivered. See 15 in the header's manual."""

    UNRELIABLE = 0
    UNRELIABLE_SEQUENCED = 1
    RELIABLE = 2
    RELIABLE_ORDERED = 3
    RELIABLE_SEQUENCED = 4
    STREAM = 5  # in events: of send_stream


class MessagesEventType(enum.IntEnum):
    """What became of a message."""

    NONE = 0
    ACKED = 1
    LOST = 2
    SPURIOUS = 3
    PROGRESS = 4
    BROKEN = 5


class Congestion(enum.IntEnum):
    """How messages find their rate."""

    ADAPTIVE = 0
    FIXED = 1
    NONE = 2


class MessagesDropReason(enum.IntEnum):
    """Why a packet of messages was dropped."""

    NONE = 0
    DUPLICATE = 1
    OLD = 2
    WINDOW = 3
    HEADER = 4
    ACK = 5
    FRAME = 6
    CHANNEL = 7
    FRAGMENT = 8
    LIMIT = 9
    NO_ROOM = 10
    BROKEN = 11
    VERSION = 12


MESSAGES_DROP_REASONS = len(MessagesDropReason)

# ---- errors ----


class NetcodeError(Exception):
    """The base of what this module raises of its own."""


class CreateError(NetcodeError):
    """A client or server could not be made. `code` is the library's number, the text its sentence."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class AddressError(NetcodeError, ValueError):
    """A text is no address, or an address has no port where one is needed."""


class TokenError(NetcodeError, ValueError):
    """No connect token could be made or read."""


class KeyFileError(NetcodeError):
    """A key file can not be used: not there, open to others, or without a key in it."""


class Destroyed(NetcodeError):
    """The object was destroyed before."""


class WrongThread(NetcodeError, RuntimeError):
    """Another thread is using the object just now."""


class Misuse(NetcodeError, RuntimeError):
    """The library refused a call as the caller's mistake; the text is the condition that did not hold."""


class MessagesError(NetcodeError):
    """A message was not queued."""


class MessagesFull(MessagesError):
    """There is no room: try again when something was acknowledged, or drop the message."""


class MessageTooLarge(MessagesError, ValueError):
    """It is too large for a packet, for max_message_bytes or for the other side's."""


class MessagesBroken(MessagesError):
    """An ordered message was given up; only a reset helps."""


# ---- the structs of the header, in its order: a test holds each of them against the C compiler's ----

STRUCTS: Dict[str, Any] = {}  # by their names in C


def _struct(name: str, *rows: Tuple[Any, str]) -> Any:
    """A struct of C. A row is a type, and the names of the fields that have it, one behind the other."""
    fields = [(field, kind) for kind, names in rows for field in names.split()]
    STRUCTS[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return STRUCTS[name]


class _AddressData(ctypes.Union):
    _fields_ = [("ipv4", c_uint8 * 4), ("ipv6", c_uint16 * 8)]


_Address = _struct("netcode_address_t", (_AddressData, "data"), (c_uint16, "port"), (c_uint8, "type"))
_Datagram = _struct(
    "netcode_datagram_t", (_Address, "address"), (c_void_p, "data"), (c_int, "bytes capacity status error")
)
_SocketInfo = _struct(
    "netcode_socket_info_t",
    (_Address, "address address2"),
    (c_int, "receive_buffer_bytes send_buffer_bytes"),
    (c_uint64, "kernel_drops"),
    (c_int, "last_send_error"),
)
_SocketReceive = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Datagram), c_int)
_Socket = _struct(
    "netcode_socket_t",
    (c_void_p, "context"),
    (_SocketReceive, "receive send"),
    (ctypes.CFUNCTYPE(None, c_void_p, c_double), "wait"),
    (ctypes.CFUNCTYPE(None, c_void_p), "close"),
    (ctypes.CFUNCTYPE(None, c_void_p, POINTER(_SocketInfo)), "info"),
    (ctypes.CFUNCTYPE(c_int, c_void_p), "rebind"),
)
_Simulator = _struct(
    "netcode_network_simulator_t",
    (c_float, "latency_milliseconds jitter_milliseconds packet_loss_percent duplicate_packet_percent"),
    (c_float, "reorder_packet_percent"),
    (c_uint64, "seed"),
    (c_void_p, "internal"),
)

_Allocate = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t)
_Free = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_StateChange = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_int)
_SendLoopback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p, c_int, c_uint64)
_SendOverride = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Address), c_void_p, c_int)
_ReceiveOverride = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Address), c_void_p, c_int)
_UnixTime = ctypes.CFUNCTYPE(c_uint64, c_void_p)
_Log = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
_Drop = ctypes.CFUNCTYPE(None, c_void_p, c_int, POINTER(_Address), c_int)
_Admit = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64)
_Stray = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Address), c_void_p, c_int)
_Assert = ctypes.CFUNCTYPE(None, c_char_p, c_char_p, c_char_p, c_int)

# The numbers among the fields of the configs are options of Client, Server and Messages.
_PEER_NUMBERS = "sequence_base packet_pool_buffers packet_quota batch_sends receive_buffer_bytes send_buffer_bytes"
_CLIENT_NUMBERS = _PEER_NUMBERS.replace("packet_quota", "packet_quota update_budget")
_SERVER_NUMBERS = "replace_existing_clients pending_handshakes consumed_tokens"
_SERVER_SWITCHES = "kernel_filter share_port roaming"
_SERVER_OPTIONS = " ".join(["max_connect_token_lifetime", _PEER_NUMBERS, _SERVER_NUMBERS, _SERVER_SWITCHES])
_MESSAGES_NUMBERS = """channels max_message_bytes send_buffer_bytes receive_buffer_bytes window_packets congestion
    bytes_per_second max_retries upgrade_large"""
_MESSAGES_MORE_NUMBERS = "repeats least_bytes_per_second max_send_message_bytes max_receive_message_bytes"

_MEMORY = ((c_void_p, "allocator_context"), (_Allocate, "allocate_function"), (_Free, "free_function"))
_SIMULATOR = ((POINTER(_Simulator), "network_simulator"), (c_void_p, "callback_context"))
_OVERRIDES = (
    (_SendLoopback, "send_loopback_packet_callback"),
    (c_int, "override_send_and_receive"),
    (_SendOverride, "send_packet_override"),
    (_ReceiveOverride, "receive_packet_override"),
)
_HOOKS = ((_Log, "log_callback"), (_Drop, "drop_callback"))
_ClientConfig = _struct(
    "netcode_client_config_t",
    *_MEMORY,
    *_SIMULATOR,
    (_StateChange, "state_change_callback"),
    *_OVERRIDES,
    (POINTER(_Socket), "socket"),
    *_HOOKS,
    (c_int, _CLIENT_NUMBERS),
    (c_double, "next_server_seconds"),
    (c_int, "events"),
)
_ServerConfig = _struct(
    "netcode_server_config_t",
    (c_uint64, "protocol_id"),
    (c_uint8 * KEY_BYTES, "private_key"),
    *_MEMORY,
    *_SIMULATOR,
    (_StateChange, "connect_disconnect_callback"),
    *_OVERRIDES,
    (c_int, "max_connect_token_lifetime"),
    (POINTER(_Socket), "socket"),
    (_UnixTime, "unix_time"),
    *_HOOKS,
    (c_int, _PEER_NUMBERS),
    (c_char_p, "bind_address bind_address2"),
    (POINTER(c_char_p), "public_addresses"),
    (c_int, "num_public_addresses"),
    (c_int, _SERVER_NUMBERS),
    (_Admit, "admit_callback"),
    (c_int, _SERVER_SWITCHES),
    (_Stray, "stray_callback"),
    (c_int, "events"),
)
_Event = _struct(
    "netcode_event_t",
    (c_int, "type client_index"),
    (c_uint64, "session client_id"),
    (c_int, "reason bytes"),
    (c_void_p, "data"),
    (c_uint64, "sequence"),
)

_COUNTS = (
    (c_uint64 * PACKET_TYPES, "packets_sent packets_received"),
    (c_uint64, "bytes_sent bytes_received datagrams_received"),
    (c_uint64 * DROP_REASONS, "dropped"),
    (c_uint64, "connects"),
)
_TROUBLES = (
    (c_uint64, "send_errors receive_errors kernel_drops"),
    (c_int, "last_socket_error receive_buffer_bytes send_buffer_bytes packets_queued packets_held"),
)
_PATH = (
    (c_double, "round_trip_seconds round_trip_lowest_seconds round_trip_variation_seconds"),
    (c_uint64, "packets_lost packets_reordered"),
    (c_double, "loss_share"),
)
_ClientStats = _struct(
    "netcode_client_stats_t", *_COUNTS, (c_uint64, "disconnects"), *_TROUBLES, *_PATH, (c_uint64, "rebinds")
)
_ServerStats = _struct(
    "netcode_server_stats_t",
    *_COUNTS,
    (c_uint64 * SERVER_CLIENT_DISCONNECT_REASONS, "disconnects"),
    *_TROUBLES,
    (c_uint64, "handshakes handshakes_expired handshakes_evicted backlogs"),
    (c_int, "max_clients clients pending consumed"),
    (c_uint64, "probes_sent probes_answered moves path_candidates trials trials_refused"),
)
_ServerClientStats = _struct(
    "netcode_server_client_stats_t",
    (c_uint64, "session client_id packets_sent packets_received bytes_sent bytes_received packets_dropped"),
    (c_double, "seconds_connected seconds_silent"),
    (c_int, "packets_queued confirmed loopback"),
    *_PATH,
    (c_uint64, "moves"),
)
_ClientReportServer = _struct(
    "netcode_client_report_server_t",
    (_Address, "address"),
    (c_uint64, "requests_sent responses_sent"),
    (c_int, "challenged denied last_error errors"),
    (c_double, "seconds_waited"),
)
_ClientReport = _struct(
    "netcode_client_report_t",
    (c_int, "state num_servers server_index"),
    (_ClientReportServer * MAX_SERVERS_PER_CONNECT, "servers"),
    (c_double, "token_seconds_left"),
    (c_char * 256, "text"),
    (c_uint64, "refused"),
    (c_int, "refused_as"),
)
_ConnectTokenInfo = _struct(
    "netcode_connect_token_info_t",
    (c_char * 14, "version"),
    (c_uint64, "protocol_id create_timestamp expire_timestamp"),
    (c_int, "timeout_seconds num_server_addresses"),
    (_Address * MAX_SERVERS_PER_CONNECT, "server_addresses"),
)

_Message = _struct(
    "netcode_message_t",
    (c_int, "channel kind"),
    (c_void_p, "data"),
    (c_int, "bytes"),
    (c_double, "ttl_seconds"),
    (c_uint64, "receipt"),
)
_StreamRead = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_int)
_StreamWrite = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p, c_int)
_StreamEnd = ctypes.CFUNCTYPE(None, c_void_p, c_int)
_MessagesStream = _struct(
    "netcode_messages_stream_t",
    (c_int, "channel"),
    (c_uint32, "bytes tag"),
    (c_uint64, "receipt"),
    (c_void_p, "context"),
    (_StreamRead, "read_function"),
    (_StreamWrite, "write_function"),
    (_StreamEnd, "end_function"),
)
_AcceptStream = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_MessagesStream))
_MessagesConfig = _struct(
    "netcode_messages_config_t",
    *_MEMORY,
    (c_int, _MESSAGES_NUMBERS),
    (c_double, "ping_seconds"),
    (c_uint8 * MESSAGES_CHANNELS, "priorities weights"),
    (c_int, _MESSAGES_MORE_NUMBERS),
    (_AcceptStream, "accept_stream_function"),
    (c_void_p, "accept_stream_context"),
    (_Log, "log_callback"),
    (c_void_p, "log_context"),
)
_BROKEN = "messages can not go on (the BROKEN event says why): reset those of both sides"
_NO_CHANNEL = "the other side has fewer channels"
_MessagesEvent = _struct(
    "netcode_messages_event_t",
    (c_int, "type channel kind bytes bytes_done"),
    (c_uint64, "receipt"),
    (c_uint32, "stream_bytes stream_bytes_done"),
    (c_int, "reason"),
)
_MessagesStats = _struct(
    "netcode_messages_stats_t",
    (c_uint64, "reliable_retries_total reliable_timeouts_total"),
    (c_uint64, "dropped_duplicates_total dropped_old_total dropped_window_total"),
    (c_uint64 * MESSAGES_DROP_REASONS, "drops"),
    (c_uint64, "packets_sent packets_received packets_lost packets_lost_spuriously bytes_sent bytes_received"),
    (c_uint64, "messages_sent messages_received messages_repeated messages_duplicate messages_outdated"),
    (c_uint64, "messages_expired messages_unstored probes"),
    (c_double, "rtt rtt_variation rtt_min rtt_latest jitter ping loss_sent loss_received send_rate receive_rate"),
    (c_double, "congestion_window bytes_in_flight send_buffer_used receive_buffer_used credit"),
)
_MessagesChannelStats = _struct(
    "netcode_messages_channel_stats_t", (c_int, "queued_messages queued_bytes"), (c_double, "queued_seconds")
)

# ---- the functions of the header: name, result, arguments ----

_bytes_in = c_char_p  # const uint8_t *: takes bytes as they are
_object = c_void_p  # a client, a server, messages

FUNCTIONS = {
    "netcode_init": (c_int, []),
    "netcode_term": (None, []),
    "netcode_version": (c_char_p, []),
    "netcode_enable_packet_tagging": (None, []),
    "netcode_log_level": (None, [c_int]),
    "netcode_set_printf_function": (None, [c_void_p]),
    "netcode_set_assert_function": (None, [_Assert]),
    "netcode_random_bytes": (None, [c_void_p, c_int]),
    "netcode_sleep": (None, [c_double]),
    "netcode_time": (c_double, []),
    "netcode_client_state_name": (c_char_p, [c_int]),
    "netcode_drop_reason_name": (c_char_p, [c_int]),
    "netcode_drop_reason_text": (c_char_p, [c_int]),
    "netcode_parse_address": (c_int, [c_char_p, POINTER(_Address)]),
    "netcode_address_to_string": (c_void_p, [POINTER(_Address), c_void_p]),
    "netcode_address_equal": (c_int, [POINTER(_Address), POINTER(_Address)]),
    "netcode_generate_connect_token": (
        c_int,
        [c_int] + 2 * [POINTER(c_char_p)] + [c_int, c_int, c_uint64, c_uint64, c_void_p, c_void_p, c_void_p],
    ),
    "netcode_connect_token_info": (c_int, [_bytes_in, POINTER(_ConnectTokenInfo)]),
    "netcode_default_client_config": (None, [POINTER(_ClientConfig)]),
    "netcode_client_create": (_object, [c_char_p, POINTER(_ClientConfig), c_double]),
    "netcode_client_create_dual": (_object, [c_char_p, c_char_p, POINTER(_ClientConfig), c_double]),
    "netcode_client_create_error": (c_int, []),
    "netcode_client_create_error_text": (c_char_p, [c_int]),
    "netcode_client_memory": (c_size_t, [POINTER(_ClientConfig)]),
    "netcode_client_destroy": (None, [_object]),
    "netcode_client_connect": (c_int, [_object, _bytes_in]),
    "netcode_client_update": (None, [_object, c_double]),
    "netcode_client_disconnect": (None, [_object]),
    "netcode_client_next_packet_sequence": (c_uint64, [_object]),
    "netcode_client_send_packet": (None, [_object, _bytes_in, c_int]),
    "netcode_client_receive_packet": (c_void_p, [_object, POINTER(c_int), POINTER(c_uint64)]),
    "netcode_client_free_packet": (None, [_object, c_void_p]),
    "netcode_client_state": (c_int, [_object]),
    "netcode_client_index": (c_int, [_object]),
    "netcode_client_max_clients": (c_int, [_object]),
    "netcode_client_get_port": (c_uint16, [_object]),
    "netcode_client_server_address": (POINTER(_Address), [_object]),
    "netcode_client_process_packet": (None, [_object, POINTER(_Address), c_void_p, c_int]),
    "netcode_client_connect_loopback": (c_int, [_object, c_int, c_int]),
    "netcode_client_disconnect_loopback": (None, [_object]),
    "netcode_client_loopback": (c_int, [_object]),
    "netcode_client_process_loopback_packet": (None, [_object, _bytes_in, c_int, c_uint64]),
    "netcode_client_next_event": (c_int, [_object, POINTER(_Event)]),
    "netcode_client_rebind": (c_int, [_object]),
    "netcode_client_flush": (None, [_object]),
    "netcode_client_wait": (None, [_object, c_double]),
    "netcode_client_stats": (None, [_object, POINTER(_ClientStats)]),
    "netcode_client_report": (None, [_object, POINTER(_ClientReport)]),
    "netcode_default_server_config": (None, [POINTER(_ServerConfig)]),
    "netcode_server_create": (_object, [c_char_p, POINTER(_ServerConfig), c_double]),
    "netcode_server_create_dual": (_object, [c_char_p, c_char_p, POINTER(_ServerConfig), c_double]),
    "netcode_server_create_error": (c_int, []),
    "netcode_server_create_error_text": (c_char_p, [c_int]),
    "netcode_server_memory": (c_size_t, [POINTER(_ServerConfig), c_int]),
    "netcode_server_destroy": (None, [_object]),
    "netcode_server_start": (c_int, [_object, c_int]),
    "netcode_server_stop": (None, [_object]),
    "netcode_server_update": (None, [_object, c_double]),
    "netcode_server_running": (c_int, [_object]),
    "netcode_server_max_clients": (c_int, [_object]),
    "netcode_server_num_connected_clients": (c_int, [_object]),
    "netcode_server_client_connected": (c_int, [_object, c_int]),
    "netcode_server_client_disconnect_reason": (c_int, [_object, c_int]),
    "netcode_server_client_loopback": (c_int, [_object, c_int]),
    "netcode_server_client_id": (c_uint64, [_object, c_int]),
    "netcode_server_client_address": (POINTER(_Address), [_object, c_int]),
    "netcode_server_client_user_data": (c_void_p, [_object, c_int]),
    "netcode_server_client_session": (c_uint64, [_object, c_int]),
    "netcode_server_disconnect_client": (None, [_object, c_int]),
    "netcode_server_disconnect_all_clients": (None, [_object]),
    "netcode_server_next_packet_sequence": (c_uint64, [_object, c_int]),
    "netcode_server_send_packet": (None, [_object, c_int, _bytes_in, c_int]),
    "netcode_server_send_packet_to_session": (None, [_object, c_int, c_uint64, _bytes_in, c_int]),
    "netcode_server_broadcast": (None, [_object, _bytes_in, c_int, c_int]),
    "netcode_server_receive_packet": (c_void_p, [_object, c_int, POINTER(c_int), POINTER(c_uint64)]),
    "netcode_server_free_packet": (None, [_object, c_void_p]),
    "netcode_server_process_packet": (None, [_object, POINTER(_Address), c_void_p, c_int]),
    "netcode_server_connect_loopback_client": (c_int, [_object, c_int, c_uint64, _bytes_in]),
    "netcode_server_disconnect_loopback_client": (None, [_object, c_int]),
    "netcode_server_process_loopback_packet": (None, [_object, c_int, _bytes_in, c_int, c_uint64]),
    "netcode_server_get_port": (c_uint16, [_object]),
    "netcode_server_next_event": (c_int, [_object, POINTER(_Event)]),
    "netcode_server_flush": (None, [_object]),
    "netcode_server_wait": (None, [_object, c_double]),
    "netcode_server_set_private_keys": (c_int, [_object, c_void_p, c_int]),
    "netcode_server_stats": (None, [_object, POINTER(_ServerStats)]),
    "netcode_server_client_stats": (None, [_object, c_int, POINTER(_ServerClientStats)]),
    "netcode_network_simulator_create": (POINTER(_Simulator), [c_void_p, _Allocate, _Free]),
    "netcode_network_simulator_destroy": (None, [POINTER(_Simulator)]),
    "netcode_network_simulator_reset": (None, [POINTER(_Simulator)]),
    "netcode_network_simulator_update": (None, [POINTER(_Simulator), c_double]),
    "netcode_network_simulator_socket": (c_int, [POINTER(_Simulator), POINTER(_Address), POINTER(_Socket)]),
    "netcode_network_simulator_move": (c_int, [POINTER(_Simulator), POINTER(_Address), POINTER(_Address), c_int]),
    "netcode_default_messages_config": (None, [POINTER(_MessagesConfig)]),
    "netcode_messages_memory": (c_size_t, [POINTER(_MessagesConfig)]),
    "netcode_messages_create": (_object, [POINTER(_MessagesConfig), c_double]),
    "netcode_messages_destroy": (None, [_object]),
    "netcode_messages_reset": (None, [_object, c_double]),
    "netcode_messages_send": (c_int, [_object, c_int, c_int, _bytes_in, c_int]),
    "netcode_messages_send_message": (c_int, [_object, POINTER(_Message)]),
    "netcode_messages_send_stream": (c_int, [_object, POINTER(_MessagesStream)]),
    "netcode_messages_cancel_stream": (c_int, [_object, c_uint64]),
    "netcode_messages_receive": (c_int, [_object, POINTER(_Message)]),
    "netcode_messages_event": (c_int, [_object, POINTER(_MessagesEvent)]),
    "netcode_messages_process_packet": (c_int, [_object, _bytes_in, c_int]),
    "netcode_messages_generate_packet": (c_int, [_object, c_void_p, c_int]),
    "netcode_messages_flush": (None, [_object]),
    "netcode_messages_set_time": (None, [_object, c_double]),
    "netcode_messages_update": (None, [_object, c_double]),
    "netcode_messages_next_deadline": (c_double, [_object]),
    "netcode_messages_stats": (None, [_object, POINTER(_MessagesStats)]),
    "netcode_messages_channel_stats": (None, [_object, c_int, POINTER(_MessagesChannelStats)]),
    "netcode_messages_drop_reason_name": (c_char_p, [c_int]),
    "netcode_messages_drop_reason_text": (c_char_p, [c_int]),
    "netcode_messages_pull_from_client": (None, [_object, _object, c_double]),
    "netcode_messages_push_to_client": (None, [_object, _object, c_double]),
    "netcode_messages_pull_from_server": (None, [_object, _object, c_int, c_double]),
    "netcode_messages_push_to_server": (None, [_object, _object, c_int, c_double]),
}

# ---- loading ----

_HOW_TO_BUILD = """In the repository's root:
    make build/libnetcode.so
or
    cc -shared -fPIC -O2 -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -x c netcode.h -lsodium -lm -o build/libnetcode.so
NETCODE_LIBRARY in the environment may name the file."""

_FILE_NAMES = {"win32": "netcode.dll", "darwin": "libnetcode.dylib"}


def _candidates() -> Iterator[str]:
    """The places where the library may be, the best first. One that was asked for by name is the only one."""
    if os.environ.get("NETCODE_LIBRARY"):
        yield os.environ["NETCODE_LIBRARY"]
        return
    here = os.path.dirname(os.path.abspath(__file__))
    names = {_FILE_NAMES.get(sys.platform, "libnetcode.so"), "libnetcode.so"}
    for folder in (here, os.path.join(here, "..", "..", "build")):
        for name in sorted(names):
            path = os.path.normpath(os.path.join(folder, name))
            if os.path.exists(path):
                yield path
    system = ctypes.util.find_library("netcode")
    if system:
        yield system


def _load() -> ctypes.CDLL:
    tried = []
    for path in _candidates():
        try:
            return _declare(ctypes.CDLL(path), path)
        except OSError as error:
            tried.append("%s: %s" % (path, error))
    why = " (%s)" % "; ".join(tried) if tried else ""
    raise ImportError("the netcode library was not found%s.\n%s" % (why, _HOW_TO_BUILD))


def _declare(library: ctypes.CDLL, path: str) -> ctypes.CDLL:
    """Gives each function its types. Another version may lay its structs out differently, so it is refused."""
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            why = "built without -DNETCODE_MESSAGES?" if "messages" in name else "another library, or another version?"
            raise ImportError("%s has no %s: %s\n%s" % (path, name, why, _HOW_TO_BUILD)) from None
        function.restype = result
        function.argtypes = arguments
    version = library.netcode_version().decode("ascii")
    if version.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError("%s is netcode %s, and this module is for %s" % (path, version, VERSION))
    return library


lib = _load()
_log = logging.getLogger("netcode")
_thread = threading.local()


@_Assert
def _on_assert(condition: bytes, function: bytes, _file: bytes, _line: int) -> None:
    """The library refuses the call after this; it is raised when that has returned."""
    _thread.misuse = "%s: %s" % (function.decode("utf-8", "replace"), condition.decode("utf-8", "replace"))


lib.netcode_set_assert_function(_on_assert)
if lib.netcode_init() != _OK:
    raise ImportError("netcode_init failed: libsodium could not be started")


def version() -> str:
    """The version of the library that was loaded."""
    return lib.netcode_version().decode("ascii")


def time() -> float:
    """Monotonic seconds from an arbitrary start: what calls use that are given no time."""
    return lib.netcode_time()


def sleep(seconds: float) -> None:
    """Sleeps; 0 and less do not."""
    lib.netcode_sleep(seconds)


def random_bytes(count: int) -> bytes:
    """Bytes that can not be guessed."""
    if not 0 <= count < 2**31:
        raise ValueError("count is out of range: %r" % count)
    data = ctypes.create_string_buffer(max(count, 1))
    lib.netcode_random_bytes(data, count)
    return data.raw[:count]


def log_level(level: int) -> None:
    """What is logged from now on, by every object; at first LogLevel.ERROR."""
    lib.netcode_log_level(LogLevel(level))


def enable_packet_tagging() -> None:
    """Marks the packets of sockets that are made afterwards as urgent (DSCP)."""
    lib.netcode_enable_packet_tagging()


def drop_reason_text(reason: int) -> str:
    """The sentence of a drop reason."""
    return lib.netcode_drop_reason_text(DropReason(reason)).decode("utf-8")


def messages_drop_reason_text(reason: int) -> str:
    """The sentence of a drop reason of messages."""
    return lib.netcode_messages_drop_reason_text(MessagesDropReason(reason)).decode("utf-8")


# ---- checks of arguments: ctypes cuts numbers silently, so they are held against their ranges before ----


def _integer(name: str, value: Any, low: int, high: int) -> int:
    value = operator.index(value)  # not int(): a float above 2^53 is not the number that was meant
    if not low <= value <= high:
        raise ValueError("%s must be %d to %d, not %d" % (name, low, high, value))
    return value


def _int32(name: str, value: Any) -> int:
    return _integer(name, value, -(2**31), 2**31 - 1)


def _admit_answer(answer: Any) -> int:
    return ADMIT_LATER if answer == ADMIT_LATER else int(bool(answer))


def _uint64(name: str, value: Any) -> int:
    return _integer(name, value, 0, 2**64 - 1)


def _data(data: Any) -> bytes:
    """Anything bytes-like as bytes. A number would become that many zeros, and a text has no one encoding."""
    data = data if isinstance(data, bytes) else memoryview(data).tobytes()
    _int32("the number of bytes", len(data))
    return data


def _payload(data: Any) -> bytes:
    data = _data(data)
    if not 1 <= len(data) <= MAX_PACKET_SIZE:
        raise ValueError("a payload has 1 to %d bytes, not %d" % (MAX_PACKET_SIZE, len(data)))
    return data


def _now(seconds: Optional[float]) -> float:
    return lib.netcode_time() if seconds is None else float(seconds)


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


# ---- addresses ----


class Address:
    """An IPv4 or IPv6 address with its port; 0 where none was given. Equal places are equal and have one hash.

    >>> str(Address("[::ffff:127.0.0.1]:40000"))
    '127.0.0.1:40000'
    """

    __slots__ = ("_raw",)

    def __init__(self, text: Union[str, "Address"]):
        self._raw = _Address()
        if isinstance(text, Address):
            ctypes.memmove(ctypes.byref(self._raw), ctypes.byref(text._raw), ctypes.sizeof(_Address))
        elif lib.netcode_parse_address(_address_text(text), self._raw) != _OK:
            hint = "addresses are numbers, and socket.getaddrinfo resolves host names"
            raise AddressError("%r can not be read as an address: %s" % (text, hint))

    @classmethod
    def _from_raw(cls, raw: _Address) -> "Address":
        address = cls.__new__(cls)
        address._raw = _Address.from_buffer_copy(raw)
        return address

    @property
    def type(self) -> AddressType:
        """Its family; NONE for no address."""
        return AddressType(self._raw.type)

    @property
    def port(self) -> int:
        """Its port, 0 for none."""
        return self._raw.port

    @property
    def host(self) -> str:
        """The address without its port."""
        bare = Address(self)
        bare._raw.port = 0
        return str(bare)

    def with_port(self, port: int) -> "Address":
        """The same address with another port."""
        address = Address(self)
        address._raw.port = _integer("port", port, 0, 65535)
        return address

    def __str__(self) -> str:
        buffer = ctypes.create_string_buffer(MAX_ADDRESS_STRING_LENGTH)
        lib.netcode_address_to_string(self._raw, buffer)
        return buffer.value.decode("ascii")

    def __repr__(self) -> str:
        return "Address(%r)" % str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and bool(lib.netcode_address_equal(self._raw, other._raw))

    def __hash__(self) -> int:
        return hash(str(self))


def _address_text(address: Union[str, Address]) -> bytes:
    """As the library reads it. A zero in the text would end it early."""
    try:
        text = str(address).encode("ascii")
    except UnicodeEncodeError:
        raise AddressError("%r can not be read as an address" % address) from None
    if b"\0" in text:
        raise AddressError("%r can not be read as an address" % address)
    return text


def _optional_address(address: Optional[Union[str, Address]]) -> Optional[bytes]:
    return None if address is None else _address_text(address)


def _addresses(addresses: Iterable[Union[str, Address]]) -> List[bytes]:
    """Addresses as tokens hold them: each with its port."""
    if isinstance(addresses, (str, Address)):
        addresses = [addresses]
    texts = []
    for address in addresses:
        parsed = Address(address)
        if parsed.port == 0 or parsed.type == AddressType.NONE:
            raise AddressError("%s has no port" % parsed)
        texts.append(_address_text(address))
    return texts


# ---- private keys ----

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _key_from_digits(text: bytearray, alphabet: bytes, bits: int, key: "ctypes.Array[c_char]") -> bool:
    """Decodes hex or base64 into the buffer, without copies of the key that could not be wiped."""
    value, held, at = 0, 0, 0
    for digit in text:
        number = alphabet.find(digit)
        if number < 0:
            return False
        value, held = (value << bits | number) & 0xFFFF, held + bits
        if held >= 8 and at < KEY_BYTES:
            held -= 8
            key[at] = value >> held & 0xFF
            at += 1
    return at == KEY_BYTES and value & ((1 << held) - 1) == 0


class PrivateKey:
    """The key that backends and servers share, in a buffer that can be wiped. repr does not show it.

    Everything that takes a private key takes one of these, or 32 bytes. Python can not wipe those bytes: prefer
    from_file. Nor is the buffer locked: it can be swapped out, and stands in a core dump.
    """

    def __init__(self, key: Any):
        key = memoryview(key)
        if key.nbytes != KEY_BYTES:
            raise ValueError("a private key has %d bytes, not %d" % (KEY_BYTES, key.nbytes))
        self._buffer = (c_uint8 * KEY_BYTES).from_buffer_copy(key)
        self._wiped = False

    @classmethod
    def generate(cls) -> "PrivateKey":
        """A new key."""
        key = cls(bytes(KEY_BYTES))
        lib.netcode_random_bytes(key._buffer, KEY_BYTES)
        return key

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"]) -> "PrivateKey":
        """Reads 32 bytes, or the same in hex or base64. A file that others than its owner can use is refused."""
        text = bytearray(256)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise KeyFileError("the key file %s can not be opened: %s" % (path, error.strerror)) from None
        try:
            status = os.fstat(descriptor)
            if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                why = "because others than its owner can use it: chmod 600 it"
                raise KeyFileError("the key file %s is refused, %s" % (path, why))
            if not stat.S_ISREG(status.st_mode):
                raise KeyFileError("the key file %s is no file" % path)
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
                count = file.readinto(text)
            return cls._from_text(text, count, path)
        finally:
            os.close(descriptor)
            _wipe(text)

    @classmethod
    def _from_text(cls, text: bytearray, count: int, path: Any) -> "PrivateKey":
        key = cls(bytes(KEY_BYTES))
        if count == KEY_BYTES and not _is_text(memoryview(text)[:count]):
            for at in range(KEY_BYTES):
                key._buffer[at] = text[at]
            return key
        while count and text[count - 1] in b" \t\r\n":
            count -= 1
        digits = text[:count]
        try:
            if count == 2 * KEY_BYTES:
                _lower(digits)
                good = _key_from_digits(digits, b"0123456789abcdef", 4, key._buffer)
            elif count == 44 and digits[43] == ord("="):
                del digits[43]
                good = _key_from_digits(digits, _BASE64, 6, key._buffer)
            else:
                good = False
        finally:
            _wipe(digits)
        if not good:
            why = "%d random bytes, or the same in hex or base64" % KEY_BYTES
            raise KeyFileError("the key file %s holds no key: %s" % (path, why))
        return key

    def wipe(self) -> None:
        """Overwrites the key; whoever uses it afterwards gets Destroyed."""
        ctypes.memset(self._buffer, 0, KEY_BYTES)
        self._wiped = True

    def __enter__(self) -> "PrivateKey":
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()

    def __del__(self) -> None:
        if hasattr(self, "_buffer"):
            self.wipe()

    def __repr__(self) -> str:
        return "PrivateKey(%s)" % ("wiped" if self._wiped else "hidden")


def _is_text(data: memoryview) -> bool:
    """32 letters would be half of a longer text, from a file that is being written."""
    return all(byte in b"\t\r\n" or 32 <= byte <= 126 for byte in data)


def _wipe(text: bytearray) -> None:
    if text:
        ctypes.memset((c_char * len(text)).from_buffer(text), 0, len(text))


def _lower(text: bytearray) -> None:
    """Hex digits in small letters, in place."""
    for at, digit in enumerate(text):
        if ord("A") <= digit <= ord("F"):
            text[at] = digit + 32


def _key(key: Any) -> PrivateKey:
    """The key itself; of bytes a copy, which is wiped when it goes: hold it as long as its buffer is used."""
    key = key if isinstance(key, PrivateKey) else PrivateKey(key)
    if key._wiped:
        raise Destroyed("this private key was wiped")
    return key


# ---- connect tokens ----


@dataclasses.dataclass(frozen=True)
class ConnectTokenInfo:
    """The public part of a connect token."""

    version: str
    protocol_id: int
    create_timestamp: int
    expire_timestamp: Optional[int]  # None: it never expires
    timeout_seconds: int  # 0 or less: no timeout
    server_addresses: Tuple[Address, ...]


def generate_connect_token(
    public_addresses: Iterable[Union[str, Address]],
    *,
    client_id: int,
    protocol_id: int,
    private_key: Any,
    internal_addresses: Optional[Iterable[Union[str, Address]]] = None,
    expire_seconds: int = 30,
    timeout_seconds: int = 10,
    user_data: Any = b"",
) -> bytes:
    """Makes the token that lets one client connect to one of up to 32 servers. For backends only.

    The client dials the public addresses, the server looks for itself among the internal ones (the same where they are
    left out). `expire_seconds` negative: never. `timeout_seconds` 0 or negative: no timeout. Up to 256 bytes of user
    data are padded with zeros. A token holds the keys of its connection, and bytes can not be wiped.
    """
    public = _addresses(public_addresses)
    internal = public if internal_addresses is None else _addresses(internal_addresses)
    if not 1 <= len(public) <= MAX_SERVERS_PER_CONNECT or len(public) != len(internal):
        limits = "1 to %d servers, and as many internal addresses as public ones" % MAX_SERVERS_PER_CONNECT
        raise TokenError("a token has " + limits)
    user_data = _data(user_data)
    if len(user_data) > USER_DATA_BYTES:
        raise ValueError("user data has at most %d bytes, not %d" % (USER_DATA_BYTES, len(user_data)))
    key = _key(private_key)
    token = ctypes.create_string_buffer(CONNECT_TOKEN_BYTES)
    array = c_char_p * len(public)
    good = lib.netcode_generate_connect_token(
        len(public),
        array(*public),
        array(*internal),
        _int32("expire_seconds", expire_seconds),
        _int32("timeout_seconds", timeout_seconds),
        _uint64("client_id", client_id),
        _uint64("protocol_id", protocol_id),
        key._buffer,
        user_data.ljust(USER_DATA_BYTES, b"\0"),
        token,
    )
    _raise_misuse()
    if good != _OK:
        raise TokenError("the connect token could not be made")
    return token.raw


def connect_token_info(connect_token: Any) -> ConnectTokenInfo:
    """Reads the public part of a token; TokenError where a client would call it invalid."""
    token = _data(connect_token)
    if len(token) != CONNECT_TOKEN_BYTES:
        raise TokenError("a connect token has %d bytes, not %d" % (CONNECT_TOKEN_BYTES, len(token)))
    info = _ConnectTokenInfo()
    if lib.netcode_connect_token_info(token, info) != _OK:
        raise TokenError("these bytes are no connect token of this protocol (they begin with %r)" % _text(info.version))
    return ConnectTokenInfo(
        _text(info.version),
        info.protocol_id,
        info.create_timestamp,
        None if info.expire_timestamp == NEVER else info.expire_timestamp,
        info.timeout_seconds,
        tuple(Address._from_raw(info.server_addresses[i]) for i in range(info.num_server_addresses)),
    )


# ---- events ----


class Connected(NamedTuple):
    """A client took a slot, or this client has connected. client_id: on servers only."""

    client_index: int
    session: int
    client_id: int


class Payload(NamedTuple):
    """1 to 1200 bytes have arrived."""

    client_index: int
    session: int
    client_id: int
    data: bytes
    sequence: int


class Disconnected(NamedTuple):
    """It is over, or an attempt failed. reason: a DisconnectReason on servers, a ClientState on clients."""

    client_index: int
    session: int
    client_id: int
    reason: Union[DisconnectReason, ClientState]


class Moved(NamedTuple):
    """A client has another address, which client_address returns. On servers with `roaming` only."""

    client_index: int
    session: int
    client_id: int


Event = Union[Connected, Payload, Disconnected, Moved]

_EVENT_CONNECTED, _EVENT_PAYLOAD, _EVENT_DISCONNECTED, _EVENT_MOVED = 1, 2, 3, 4

# ---- statistics ----


@dataclasses.dataclass(frozen=True)
class _PeerStats:
    packets_sent: Dict[PacketType, int]
    packets_received: Dict[PacketType, int]
    bytes_sent: int
    bytes_received: int
    datagrams_received: int
    dropped: Dict[DropReason, int]
    connects: int
    send_errors: int
    receive_errors: int
    kernel_drops: int
    last_socket_error: int
    receive_buffer_bytes: int
    send_buffer_bytes: int
    packets_queued: int
    packets_held: int


@dataclasses.dataclass(frozen=True)
class ClientStats(_PeerStats):
    """Counts since the client was made. Bytes are those of datagrams, without IP and UDP headers."""

    disconnects: int
    round_trip_seconds: float
    round_trip_lowest_seconds: float
    round_trip_variation_seconds: float
    packets_lost: int
    packets_reordered: int
    loss_share: float
    rebinds: int


@dataclasses.dataclass(frozen=True)
class ServerStats(_PeerStats):
    """Counts since the server was made."""

    disconnects: Dict[DisconnectReason, int]
    handshakes: int
    handshakes_expired: int
    handshakes_evicted: int
    backlogs: int
    max_clients: int
    clients: int
    pending: int
    consumed: int
    probes_sent: int
    probes_answered: int
    moves: int
    path_candidates: int
    trials: int
    trials_refused: int


@dataclasses.dataclass(frozen=True)
class ServerClientStats:
    """The same for the client in one slot; all zero where no client is connected."""

    session: int
    client_id: int
    packets_sent: int
    packets_received: int
    bytes_sent: int
    bytes_received: int
    packets_dropped: int
    seconds_connected: float
    seconds_silent: float
    packets_queued: int
    confirmed: bool
    loopback: bool
    round_trip_seconds: float
    round_trip_lowest_seconds: float
    round_trip_variation_seconds: float
    packets_lost: int
    packets_reordered: int
    loss_share: float
    moves: int


@dataclasses.dataclass(frozen=True)
class ClientReportServer:
    """What a client knows of one server of its token."""

    address: Address
    requests_sent: int
    responses_sent: int
    challenged: bool
    denied: bool
    last_error: int
    errors: int
    seconds_waited: float


@dataclasses.dataclass(frozen=True)
class ClientReport:
    """Why can't I connect? `text` is one plain sentence for the player."""

    state: ClientState
    server_index: int
    servers: Tuple[ClientReportServer, ...]
    token_seconds_left: float
    text: str
    refused: int
    refused_as: DropReason


@dataclasses.dataclass(frozen=True)
class MessagesStats:
    """Counts since the messages were made or reset, and what is measured. Seconds, bytes."""

    reliable_retries_total: int
    reliable_timeouts_total: int
    dropped_duplicates_total: int
    dropped_old_total: int
    dropped_window_total: int
    drops: Dict[MessagesDropReason, int]
    packets_sent: int
    packets_received: int
    packets_lost: int
    packets_lost_spuriously: int
    bytes_sent: int
    bytes_received: int
    messages_sent: int
    messages_received: int
    messages_repeated: int
    messages_duplicate: int
    messages_outdated: int
    messages_expired: int
    messages_unstored: int
    probes: int
    rtt: float
    rtt_variation: float
    rtt_min: float
    rtt_latest: float
    jitter: float
    ping: float
    loss_sent: float
    loss_received: float
    send_rate: float
    receive_rate: float
    congestion_window: float
    bytes_in_flight: float
    send_buffer_used: float
    receive_buffer_used: float
    credit: float


@dataclasses.dataclass(frozen=True)
class MessagesChannelStats:
    """What waits in one channel."""

    queued_messages: int
    queued_bytes: int
    queued_seconds: float


_ARRAY_KEYS = {
    "packets_sent": PacketType,
    "packets_received": PacketType,
    "dropped": DropReason,
    "disconnects": DisconnectReason,
    "drops": MessagesDropReason,
}


def _convert(kind: Any, raw: ctypes.Structure) -> Any:
    """A dataclass from the struct whose fields have the same names: arrays become dicts by their enum."""
    values = {}
    for field in dataclasses.fields(kind):
        value = getattr(raw, field.name)
        if isinstance(value, ctypes.Array):
            value = dict(zip(_ARRAY_KEYS[field.name], value))
        elif isinstance(value, _Address):
            value = Address._from_raw(value)
        values[field.name] = field.type(value) if field.type is bool else value
    return kind(**values)


# ---- objects: what guards them, what calls them back, how they end ----


class _Guard:
    """One thread at a time, which may come again from its own callbacks. What ends meanwhile waits until it leaves."""

    __slots__ = ("lock", "depth", "ending")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self.ending: "collections.deque[_Handle]" = collections.deque()

    def __enter__(self) -> None:
        if not self.lock.acquire(False):
            raise WrongThread("another thread is using this object, or the simulator that it talks over")
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self.lock.release()
        if self.ending:
            self.end()

    def end(self, seconds: float = 0.0) -> None:
        """Destroys what has ended. Who is inside does it on his way out: nothing waits long for a lock."""
        while self.ending and self.lock.acquire(timeout=seconds):
            try:
                if self.depth or not self.ending:
                    return
                self.depth += 1
                handle = self.ending.popleft()
                handle.ended = False  # its last callbacks may ask it who has left
                try:
                    handle.destroy(handle.pointer)
                finally:
                    handle.ended = True
                    self.depth -= 1
                if handle.simulator is not None:
                    handle.simulator._users -= 1
            finally:
                self.lock.release()
            handle.raise_error()


class _Hooks:
    """What the library calls back. The first exception waits for the call to return.

    The thunks live as long as C may call them; they do not keep alive what they call, or an object that one of its own
    callbacks leads back to could never be collected.
    """

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self.functions: List[Callable[..., Any]] = []
        self.thunks: List[Any] = []

    def wrap(
        self, prototype: Any, function: Callable[..., Any], otherwise: Any = None, with_context: bool = False
    ) -> Any:
        """`otherwise` is what C gets where the function raises."""
        self.functions.append(function)
        reference, number = weakref.ref(self), len(self.functions) - 1

        def call(context: Any, *arguments: Any) -> Any:
            hooks = reference()
            if hooks is None:
                return otherwise
            try:
                return hooks.functions[number](*((context, *arguments) if with_context else arguments))
            except BaseException as error:  # even KeyboardInterrupt: C can not pass it on
                if hooks.error is None:
                    hooks.error = error
                return otherwise

        thunk = prototype(call)
        self.thunks.append(thunk)
        return thunk

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


def _raise_misuse() -> None:
    text = getattr(_thread, "misuse", None)
    if text:
        _thread.misuse = None
        raise Misuse(text)


class _Handle:
    """What an object has in C, with all that must live as long. Outlives an object that is forgotten."""

    __slots__ = ("pointer", "destroy", "guard", "simulator", "hooks", "thunks", "ended", "__weakref__")

    def __init__(
        self, pointer: Any, destroy: Any, guard: _Guard, hooks: _Hooks, simulator: Optional["NetworkSimulator"]
    ):
        self.pointer, self.destroy, self.guard, self.simulator = pointer, destroy, guard, simulator
        self.hooks, self.thunks, self.ended = weakref.ref(hooks), hooks.thunks, False
        if simulator is not None:
            simulator._users += 1
        _handles.add(self)

    def finish(self) -> None:
        """By destroy(), or when the object is not used any more, or at exit: in whatever thread finds that."""
        if not self.ended:
            self.ended = True
            self.guard.ending.append(self)
            self.guard.end(0.1)  # at exit a thread may be in wait()

    def raise_error(self) -> None:
        hooks = self.hooks()
        if hooks is not None:
            hooks.raise_error()


_handles: "weakref.WeakSet[_Handle]" = weakref.WeakSet()


def _forget_parents_objects() -> None:
    """In a child after a fork: the connections are the parent's, and a sequence must not be used twice with one key."""
    for handle in list(_handles):
        handle.ended = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_objects)


class _Object:
    """A handle that is used by one thread at a time and not after destroy."""

    _handle: Any = None

    def _own(
        self, pointer: Any, destroy: Any, guard: _Guard, hooks: _Hooks, simulator: Optional["NetworkSimulator"]
    ) -> None:
        self._guard, self._hooks = guard, hooks
        self._handle = _Handle(pointer, destroy, guard, hooks, simulator)
        self._finalizer = weakref.finalize(self, self._handle.finish)

    def _call(self, function: Any, *arguments: Any) -> Any:
        with self._guard:
            if self._handle.ended:
                raise Destroyed("this %s was destroyed, or made before a fork" % type(self).__name__)
            answer = function(self._handle.pointer, *arguments)
        if self._hooks.error is not None:
            self._hooks.raise_error()
        if getattr(_thread, "misuse", None):
            _raise_misuse()
        return answer

    def destroy(self) -> None:
        """Ends it and gives everything back; from one of its callbacks, when that has returned. Twice does nothing."""
        with self._guard:
            self._before_destroy()
            self._finalizer()
        _raise_misuse()

    def _before_destroy(self) -> None:
        """May raise where it can not be destroyed yet."""

    @property
    def destroyed(self) -> bool:
        """Was it destroyed?"""
        return self._handle is None or self._handle.ended

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


# ---- the network simulator ----


class NetworkSimulator(_Object):
    """A network in memory, the same again from the same seed: latency, jitter, loss, duplicates, reordering.

    Clients and servers that are given it talk over it instead of real sockets, from addresses of your choice. Its time
    moves only in update. It can be destroyed when they are.
    """

    def __init__(
        self,
        *,
        latency_milliseconds: float = 0.0,
        jitter_milliseconds: float = 0.0,
        packet_loss_percent: float = 0.0,
        duplicate_packet_percent: float = 0.0,
        reorder_packet_percent: float = 0.0,
        seed: int = 0,
    ):
        seed = _uint64("seed", seed)
        raw = lib.netcode_network_simulator_create(None, _Allocate(), _Free())
        if not raw:
            raise MemoryError("no memory for a network simulator")
        self._users = 0
        self._own(raw, lib.netcode_network_simulator_destroy, _Guard(), _Hooks(), None)
        self.latency_milliseconds = latency_milliseconds
        self.jitter_milliseconds = jitter_milliseconds
        self.packet_loss_percent = packet_loss_percent
        self.duplicate_packet_percent = duplicate_packet_percent
        self.reorder_packet_percent = reorder_packet_percent
        if seed:
            self.reset(seed)

    def _number(name: str, text: str) -> property:  # type: ignore[misc]  # makes the properties below
        def get(self: "NetworkSimulator") -> float:
            return self._call(lambda raw: getattr(raw.contents, name))

        def put(self: "NetworkSimulator", value: float) -> None:
            self._call(lambda raw: setattr(raw.contents, name, float(value)))

        return property(get, put, doc=text)

    latency_milliseconds = _number("latency_milliseconds", "One way.")
    jitter_milliseconds = _number("jitter_milliseconds", "Plus or minus.")
    packet_loss_percent = _number("packet_loss_percent", "0 to 100.")
    duplicate_packet_percent = _number("duplicate_packet_percent", "0 to 100: a second copy, up to a second later.")
    reorder_packet_percent = _number("reorder_packet_percent", "0 to 100: held back by up to 100 ms more.")
    del _number

    def reset(self, seed: Optional[int] = None) -> None:
        """Forgets the datagrams in flight and starts the random numbers again."""
        if seed is not None:
            number = _uint64("seed", seed)
            self._call(lambda raw: setattr(raw.contents, "seed", number))
        self._call(lib.netcode_network_simulator_reset)

    def update(self, time: float) -> None:
        """Moves its time; what is due can then be received."""
        self._call(lib.netcode_network_simulator_update, float(time))

    def socket(self, address: Union[str, Address]) -> "SimulatorSocket":
        """A bare socket on the network, for tests: sends and receives datagrams from `address`."""
        return SimulatorSocket(self, Address(address))

    def move(self, old: Union[str, Address], new: Union[str, Address], at_rebind: bool = False) -> None:
        """Moves a socket to another address, as a NAT does; what is in flight to the old one is lost.

        at_rebind: as a network that is gone. The socket neither sends nor receives before its client's rebind.
        """
        old, new = Address(old), Address(new)
        function = lib.netcode_network_simulator_move
        if self._call(function, old._raw, new._raw, int(bool(at_rebind))) != _OK:
            raise AddressError("%s has no socket here, or %s has one, or no port" % (old, new))

    def _before_destroy(self) -> None:
        if not self.destroyed and (self._users or self._guard.depth > 1):
            raise Misuse("%d objects still talk over this simulator: destroy them first" % self._users)


class SimulatorSocket(_Object):
    """A socket on a network simulator. destroy closes it."""

    def __init__(self, simulator: NetworkSimulator, address: Address):
        raw = _Socket()
        if simulator._call(lib.netcode_network_simulator_socket, address._raw, raw) != _OK:
            raise AddressError("%s can not be used on this simulator: it has no port, or it is taken" % address)
        self.address = address
        self._own(raw, lambda socket: socket.close(socket.context), simulator._guard, _Hooks(), simulator)

    def send(self, to: Union[str, Address], data: Any) -> None:
        """Sends one datagram."""
        data = _data(data)
        buffer = ctypes.create_string_buffer(data, max(len(data), 1))
        datagram = _Datagram(Address(to)._raw, ctypes.addressof(buffer), len(data), len(data))
        self._call(lambda raw: raw.send(raw.context, datagram, 1))

    def receive(self) -> Optional[Tuple[Address, bytes]]:
        """The next datagram, with its sender; None where nothing waits."""
        buffer = ctypes.create_string_buffer(2048)
        datagram = _Datagram(_Address(), ctypes.addressof(buffer), 0, len(buffer))
        if self._call(lambda raw: raw.receive(raw.context, datagram, 1)) <= 0:
            return None
        return Address._from_raw(datagram.address), buffer.raw[: datagram.bytes]


# ---- what clients and servers have in common ----

def _set_numbers(config: Any, names: str, options: Dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in names.split():
            raise TypeError("there is no option %r; there are: %s" % (name, ", ".join(names.split())))
        setattr(config, name, _int32(name, value))


def _default_log(level: int, text: str) -> None:
    _log.log({1: logging.ERROR, 2: logging.INFO}.get(level, logging.DEBUG), "%s", text)


def _optional_raw(raw: Any) -> Optional[Address]:
    return Address._from_raw(raw.contents) if raw else None


def _hook_common(
    config: Any, hooks: _Hooks, on_log: Any, on_drop: Any, on_send_loopback: Any, network: Any
) -> None:
    """The callbacks that both configs have. Only those that are given are set: each call back to Python costs time."""
    config.events = 1
    log = on_log or _default_log
    config.log_callback = hooks.wrap(_Log, lambda level, text: log(LogLevel(level), _text(text)))
    if on_drop:
        config.drop_callback = hooks.wrap(
            _Drop, lambda reason, at, count: on_drop(DropReason(reason), _optional_raw(at), count)
        )
    if on_send_loopback:
        config.send_loopback_packet_callback = hooks.wrap(
            _SendLoopback,
            lambda index, data, count, sequence: on_send_loopback(index, ctypes.string_at(data, count), sequence),
        )
    if network is not None:
        _hook_network(config, hooks, network)


def _hook_network(config: Any, hooks: _Hooks, network: Any) -> None:
    def send(to: Any, data: int, count: int) -> None:
        network.send(Address._from_raw(to.contents), ctypes.string_at(data, count))

    def receive(sender: Any, data: int, capacity: int) -> int:
        while True:
            datagram = network.receive()
            if datagram is None:
                return 0
            address, content = Address(datagram[0]), _data(datagram[1])[:capacity]
            if content:  # 0 bytes would say that nothing waits
                sender[0] = address._raw
                ctypes.memmove(data, content, len(content))
                return len(content)

    config.override_send_and_receive = 1
    config.send_packet_override = hooks.wrap(_SendOverride, send)
    config.receive_packet_override = hooks.wrap(_ReceiveOverride, receive, 0)


class _Peer(_Object):
    """What clients and servers do alike: each gives the names of its C functions."""

    _next_event: Any
    _free_packet: Any

    def _create(self, kind: str, simulator: Optional[NetworkSimulator], *arguments: Any) -> Any:
        """Calls create, on the simulator's turn where there is one; raises the library's sentence where it fails."""
        guard = simulator._guard if simulator is not None else _Guard()
        dual = "_dual" if arguments[1] is not None else ""
        if not dual:
            arguments = arguments[:1] + arguments[2:]
        with guard:
            pointer = getattr(lib, "netcode_%s_create%s" % (kind, dual))(*arguments)
            code = 0 if pointer else getattr(lib, "netcode_%s_create_error" % kind)()
        _raise_misuse()
        if not pointer:
            raise CreateError(code, _text(getattr(lib, "netcode_%s_create_error_text" % kind)(code)))
        return pointer, guard

    def _reason(self, reason: int) -> Union[DisconnectReason, ClientState]:
        raise NotImplementedError

    def next_event(self) -> Optional[Event]:
        """What happened next, in its true order: Connected, Payload, Disconnected, Moved; None when nothing did."""
        raw = _Event()
        with self._guard:
            if not self._call(self._next_event, raw):
                return None
            if raw.type == _EVENT_PAYLOAD:
                data = ctypes.string_at(raw.data, raw.bytes)
                self._call(self._free_packet, raw.data)
                return Payload(raw.client_index, raw.session, raw.client_id, data, raw.sequence)
        if raw.type == _EVENT_CONNECTED:
            return Connected(raw.client_index, raw.session, raw.client_id)
        if raw.type == _EVENT_MOVED:
            return Moved(raw.client_index, raw.session, raw.client_id)
        return Disconnected(raw.client_index, raw.session, raw.client_id, self._reason(raw.reason))

    def events(self) -> Iterator[Event]:
        """All events that wait. Leave the loop when you like: the others stay where they are."""
        return iter(self.next_event, None)

    def _process(self, function: Any, sender: Union[str, Address], data: Any) -> None:
        data = _data(data)
        buffer = ctypes.create_string_buffer(data, max(len(data), 1))  # it is decrypted in place
        self._call(function, Address(sender)._raw, buffer, len(data))


# ---- client ----


class Client(_Peer):
    """A client. It never sees the private key.

    `address` is what it sends from ("0.0.0.0" or "::" for any; with `address2` of the other family it reaches servers
    of both); a simulator wants a port. `network` may be an object with send(address, data) and receive() -> (address,
    data) or None, which then carries every datagram. Callbacks: on_state_change(previous, state), on_log(level, text),
    on_drop(reason, address, bytes), on_send_loopback(client_index, data, sequence). The other options are numbers of
    netcode_client_config_t: sequence_base, packet_pool_buffers, packet_quota, update_budget, batch_sends,
    receive_buffer_bytes, send_buffer_bytes. While no server answers, the token's next one is asked, too, after
    next_server_seconds; 0: in turn.
    """

    _next_event = lib.netcode_client_next_event
    _free_packet = lib.netcode_client_free_packet

    def __init__(
        self,
        address: Union[str, Address] = "0.0.0.0",
        time: Optional[float] = None,
        *,
        address2: Optional[Union[str, Address]] = None,
        simulator: Optional[NetworkSimulator] = None,
        network: Any = None,
        on_state_change: Optional[Callable[[ClientState, ClientState], None]] = None,
        on_log: Optional[Callable[[LogLevel, str], None]] = None,
        on_drop: Optional[Callable[[DropReason, Optional[Address], int], None]] = None,
        on_send_loopback: Optional[Callable[[int, bytes, int], None]] = None,
        next_server_seconds: float = 0.25,
        **options: int,
    ):
        config, hooks = _ClientConfig(), _Hooks()
        lib.netcode_default_client_config(config)
        config.next_server_seconds = next_server_seconds
        _set_numbers(config, _CLIENT_NUMBERS, options)
        _hook_common(config, hooks, on_log, on_drop, on_send_loopback, network)
        if on_state_change:
            config.state_change_callback = hooks.wrap(
                _StateChange, lambda old, new: on_state_change(ClientState(old), ClientState(new))
            )
        if simulator is not None:
            config.network_simulator = simulator._call(lambda raw: raw)
        pointer, guard = self._create(
            "client", simulator, _address_text(address), _optional_address(address2), config, _now(time)
        )
        self._own(pointer, lib.netcode_client_destroy, guard, hooks, simulator)
        hooks.raise_error()

    def connect(self, connect_token: Any) -> None:
        """Starts to connect with a token of 2048 bytes; what was before ends. Sends nothing before the next update.
        NetcodeError while the events of two connections or attempts are unread."""
        token = _data(connect_token)
        if len(token) != CONNECT_TOKEN_BYTES:
            raise TokenError("a connect token has %d bytes, not %d" % (CONNECT_TOKEN_BYTES, len(token)))
        if self._call(lib.netcode_client_connect, token) != _OK and self.state == ClientState.DISCONNECTED:
            raise NetcodeError("connect needs the events of earlier connections to be read")

    def update(self, time: Optional[float] = None) -> None:
        """Receives, sends, and moves the state. Call it at the game's rate."""
        self._call(lib.netcode_client_update, _now(time))

    def disconnect(self) -> None:
        """Notifies the server and goes to DISCONNECTED."""
        self._call(lib.netcode_client_disconnect)

    def send_packet(self, data: Any) -> None:
        """Sends a payload of 1 to 1200 bytes. Does nothing while not connected."""
        data = _payload(data)
        self._call(lib.netcode_client_send_packet, data, len(data))

    def process_packet(self, sender: Union[str, Address], data: Any) -> None:
        """Feeds one raw datagram, as if the socket had received it, but at once: the limits on an update's work do not apply."""
        self._process(lib.netcode_client_process_packet, sender, data)

    def rebind(self) -> bool:
        """Takes the local address that the system prefers now: for a phone's new network. Is there a fresh one?"""
        return bool(self._call(lib.netcode_client_rebind))

    def flush(self) -> None:
        """Sends what batch_sends holds back."""
        self._call(lib.netcode_client_flush)

    def wait(self, seconds: float) -> None:
        """Sleeps until a datagram waits, something is due, or `seconds` have passed; not at all on a simulator."""
        self._call(lib.netcode_client_wait, float(seconds))

    @property
    def state(self) -> ClientState:
        """Where it is."""
        return ClientState(self._call(lib.netcode_client_state))

    @property
    def connected(self) -> bool:
        """Is it connected?"""
        return self.state == ClientState.CONNECTED

    @property
    def connecting(self) -> bool:
        """Is it on its way?"""
        return 0 < self.state < ClientState.CONNECTED

    @property
    def index(self) -> int:
        """Its slot on the server, -1 while not connected."""
        return self._call(lib.netcode_client_index)

    @property
    def max_clients(self) -> int:
        """How many slots the server has, 0 while not connected."""
        return self._call(lib.netcode_client_max_clients)

    @property
    def port(self) -> int:
        """The local port."""
        return self._call(lib.netcode_client_get_port)

    @property
    def server_address(self) -> Optional[Address]:
        """The server that it talks to or tried last; None before the first connect."""
        address = self._call(lambda raw: Address._from_raw(lib.netcode_client_server_address(raw).contents))
        return address if address.type != AddressType.NONE else None

    @property
    def next_packet_sequence(self) -> int:
        """The sequence that the next packet will carry."""
        return self._call(lib.netcode_client_next_packet_sequence)

    def connect_loopback(self, client_index: int, max_clients: int) -> None:
        """Sits beside its server in one process: payloads go through on_send_loopback and process_loopback_packet."""
        max_clients = _integer("max_clients", max_clients, 1, MAX_SLOTS)
        self._call(
            lib.netcode_client_connect_loopback, _integer("client_index", client_index, 0, max_clients - 1), max_clients
        )

    def disconnect_loopback(self) -> None:
        """Ends that."""
        self._call(lib.netcode_client_disconnect_loopback)

    @property
    def loopback(self) -> bool:
        """Is it connected that way?"""
        return bool(self._call(lib.netcode_client_loopback))

    def process_loopback_packet(self, data: Any, sequence: int) -> None:
        """A payload from the server beside it."""
        data = _payload(data)
        self._call(lib.netcode_client_process_loopback_packet, data, len(data), _uint64("sequence", sequence))

    def stats(self) -> ClientStats:
        """What was sent, received and dropped."""
        raw = _ClientStats()
        self._call(lib.netcode_client_stats, raw)
        return _convert(ClientStats, raw)

    def report(self) -> ClientReport:
        """Why can't I connect?"""
        raw = _ClientReport()
        self._call(lib.netcode_client_report, raw)
        servers = tuple(_convert(ClientReportServer, raw.servers[i]) for i in range(raw.num_servers))
        return ClientReport(ClientState(raw.state), raw.server_index, servers, raw.token_seconds_left, _text(raw.text),
                            raw.refused, DropReason(raw.refused_as))

    def _reason(self, reason: int) -> ClientState:
        return ClientState(reason)

    def __repr__(self) -> str:
        return "Client(destroyed)" if self.destroyed else "Client(%s)" % self.state.name


# ---- server ----


class Server(_Peer):
    """A dedicated server.

    `address` is what tokens call it ("203.0.113.5:40000"; port 0 takes any free one, `port` returns which). It binds
    the wildcard of that family, or `bind_address`; `public_addresses` are other names for it (NAT, containers).
    `network` as for Client. Callbacks: on_connect_disconnect(client_index, connected), admit(client_id, token_tag,
    expire_timestamp) -> True, False, or ADMIT_LATER: ask again, in a tenth of a second; on_stray(address, data) -> is it taken, for another server?, on_log, on_drop,
    on_send_loopback as for Client, unix_time() -> seconds. The other options are numbers of netcode_server_config_t:
    max_connect_token_lifetime, sequence_base, packet_pool_buffers, packet_quota, batch_sends, receive_buffer_bytes, send_buffer_bytes, replace_existing_clients, pending_handshakes, consumed_tokens,
    kernel_filter, share_port, roaming. An admit that raises denies.
    """

    _next_event = lib.netcode_server_next_event
    _free_packet = lib.netcode_server_free_packet

    def __init__(
        self,
        address: Union[str, Address],
        time: Optional[float] = None,
        *,
        protocol_id: int,
        private_key: Any,
        address2: Optional[Union[str, Address]] = None,
        bind_address: Optional[Union[str, Address]] = None,
        bind_address2: Optional[Union[str, Address]] = None,
        public_addresses: Iterable[Union[str, Address]] = (),
        simulator: Optional[NetworkSimulator] = None,
        network: Any = None,
        on_connect_disconnect: Optional[Callable[[int, bool], None]] = None,
        admit: Optional[Callable[[int, bytes, int], Union[bool, int]]] = None,
        on_stray: Optional[Callable[[Address, bytes], bool]] = None,
        on_log: Optional[Callable[[LogLevel, str], None]] = None,
        on_drop: Optional[Callable[[DropReason, Optional[Address], int], None]] = None,
        on_send_loopback: Optional[Callable[[int, bytes, int], None]] = None,
        unix_time: Optional[Callable[[], int]] = None,
        **options: int,
    ):
        config, hooks = _ServerConfig(), _Hooks()
        lib.netcode_default_server_config(config)
        _set_numbers(config, _SERVER_OPTIONS, options)
        _hook_common(config, hooks, on_log, on_drop, on_send_loopback, network)
        if unix_time:
            config.unix_time = hooks.wrap(_UnixTime, lambda: _uint64("unix_time", unix_time()), 0)
        config.protocol_id = _uint64("protocol_id", protocol_id)
        config.bind_address, config.bind_address2 = _optional_address(bind_address), _optional_address(bind_address2)
        self._set_public_addresses(config, public_addresses)
        if on_connect_disconnect:
            config.connect_disconnect_callback = hooks.wrap(
                _StateChange, lambda index, connected: on_connect_disconnect(index, bool(connected))
            )
        if admit:
            config.admit_callback = hooks.wrap(
                _Admit, lambda id_, tag, expire: _admit_answer(admit(id_, ctypes.string_at(tag, MAC_BYTES), expire)), 0
            )
        if on_stray:
            config.stray_callback = hooks.wrap(
                _Stray,
                lambda at, data, count: int(
                    bool(on_stray(Address._from_raw(at.contents), ctypes.string_at(data, count)))
                ),
                0,
            )
        if simulator is not None:
            config.network_simulator = simulator._call(lambda raw: raw)
        key = _key(private_key)
        ctypes.memmove(config.private_key, key._buffer, KEY_BYTES)
        try:
            pointer, guard = self._create(
                "server", simulator, _address_text(address), _optional_address(address2), config, _now(time)
            )
        finally:
            ctypes.memset(config.private_key, 0, KEY_BYTES)
        self._own(pointer, lib.netcode_server_destroy, guard, hooks, simulator)
        hooks.raise_error()

    @staticmethod
    def _set_public_addresses(config: _ServerConfig, addresses: Iterable[Union[str, Address]]) -> None:
        texts = [_address_text(Address(address)) for address in addresses]
        if len(texts) > MAX_PUBLIC_ADDRESSES:
            raise ValueError("a server has at most %d public addresses" % MAX_PUBLIC_ADDRESSES)
        if texts:
            config.public_addresses = (c_char_p * len(texts))(*texts)
            config.num_public_addresses = len(texts)

    def _index(self, client_index: int) -> int:
        client_index = operator.index(client_index)
        if not 0 <= client_index < self.max_clients:
            raise IndexError("there is no slot %d" % client_index)
        return client_index

    def start(self, max_clients: int) -> None:
        """Opens the slots; a running server is stopped first. The memory is taken here."""
        max_clients = _integer("max_clients", max_clients, 1, MAX_SLOTS)
        self._call(lib.netcode_server_start, max_clients)
        if not self.running:
            raise MemoryError("no memory for %d slots" % max_clients)

    def stop(self) -> None:
        """Disconnects everyone and closes the slots."""
        self._call(lib.netcode_server_stop)

    def update(self, time: Optional[float] = None) -> None:
        """Receives, sends keep-alives, ends what timed out."""
        self._call(lib.netcode_server_update, _now(time))

    @property
    def running(self) -> bool:
        """Is it started?"""
        return bool(self._call(lib.netcode_server_running))

    @property
    def max_clients(self) -> int:
        """How many slots it has; 0 while stopped."""
        return self._call(lib.netcode_server_max_clients)

    @property
    def num_connected_clients(self) -> int:
        """How many slots are taken."""
        return self._call(lib.netcode_server_num_connected_clients)

    @property
    def connected_clients(self) -> List[int]:
        """The slots that are taken."""
        return [index for index in range(self.max_clients) if self.client_connected(index)]

    @property
    def port(self) -> int:
        """The port of its first address; the real one where port 0 was asked for."""
        return self._call(lib.netcode_server_get_port)

    def client_connected(self, client_index: int) -> bool:
        """Is there a client in this slot?"""
        return bool(self._call(lib.netcode_server_client_connected, self._index(client_index)))

    def client_disconnect_reason(self, client_index: int) -> DisconnectReason:
        """Why the slot's last client left; NONE while one is connected."""
        return DisconnectReason(self._call(lib.netcode_server_client_disconnect_reason, self._index(client_index)))

    def client_loopback(self, client_index: int) -> bool:
        """Is it a client of this process?"""
        return bool(self._call(lib.netcode_server_client_loopback, self._index(client_index)))

    def client_id(self, client_index: int) -> int:
        """The id of the client in the slot; 0 without one."""
        return self._call(lib.netcode_server_client_id, self._index(client_index))

    def client_address(self, client_index: int) -> Optional[Address]:
        """The address of the client in the slot; None without one."""

        def read(raw: Any, index: int) -> Optional[Address]:
            return _optional_raw(lib.netcode_server_client_address(raw, index))

        return self._call(read, self._index(client_index))

    def client_user_data(self, client_index: int) -> Optional[bytes]:
        """The 256 bytes that the backend put into the token; None without a client."""

        def read(raw: Any, index: int) -> Optional[bytes]:
            data = lib.netcode_server_client_user_data(raw, index)
            return ctypes.string_at(data, USER_DATA_BYTES) if data else None

        return self._call(read, self._index(client_index))

    def client_session(self, client_index: int) -> int:
        """The number of this stay of this client, never used again; 0 without a client."""
        return self._call(lib.netcode_server_client_session, self._index(client_index))

    def disconnect_client(self, client_index: int) -> None:
        """Notifies the client and empties the slot."""
        self._call(lib.netcode_server_disconnect_client, self._index(client_index))

    def disconnect_all_clients(self) -> None:
        """The same for all slots, but for loopback clients'."""
        self._call(lib.netcode_server_disconnect_all_clients)

    def next_packet_sequence(self, client_index: int) -> int:
        """The sequence that the next packet to this client will carry; 0 where no client is connected."""
        return self._call(lib.netcode_server_next_packet_sequence, self._index(client_index))

    def send_packet(self, client_index: int, data: Any) -> None:
        """Sends a payload of 1 to 1200 bytes. Does nothing where no client is connected."""
        data = _payload(data)
        self._call(lib.netcode_server_send_packet, self._index(client_index), data, len(data))

    def send_packet_to_session(self, client_index: int, session: int, data: Any) -> None:
        """The same, but only if the slot still belongs to that session."""
        data, session = _payload(data), _uint64("session", session)
        self._call(lib.netcode_server_send_packet_to_session, self._index(client_index), session, data, len(data))

    def broadcast(self, data: Any, except_client_index: Optional[int] = None) -> None:
        """Sends a payload to everyone who is connected, but one."""
        data = _payload(data)
        index = -1 if except_client_index is None else self._index(except_client_index)
        self._call(lib.netcode_server_broadcast, data, len(data), index)

    def process_packet(self, sender: Union[str, Address], data: Any) -> None:
        """Feeds one raw datagram, as if the socket had received it, but at once: the limits on an update's work do not apply."""
        self._process(lib.netcode_server_process_packet, sender, data)

    def connect_loopback_client(self, client_index: int, client_id: int, user_data: Any = b"") -> None:
        """A client of this process takes a slot without a handshake; see Client.connect_loopback."""
        data = _data(user_data)
        if len(data) > USER_DATA_BYTES:
            raise ValueError("user data has at most %d bytes, not %d" % (USER_DATA_BYTES, len(data)))
        self._call(
            lib.netcode_server_connect_loopback_client,
            self._index(client_index),
            _uint64("client_id", client_id),
            data.ljust(USER_DATA_BYTES, b"\0"),
        )

    def disconnect_loopback_client(self, client_index: int) -> None:
        """Ends that."""
        self._call(lib.netcode_server_disconnect_loopback_client, self._index(client_index))

    def process_loopback_packet(self, client_index: int, data: Any, sequence: int) -> None:
        """A payload from the client of this process."""
        data, index = _payload(data), self._index(client_index)
        self._call(lib.netcode_server_process_loopback_packet, index, data, len(data), _uint64("sequence", sequence))

    def flush(self) -> None:
        """Sends what batch_sends holds back."""
        self._call(lib.netcode_server_flush)

    def wait(self, seconds: float) -> None:
        """Sleeps until a datagram waits, something is due, or `seconds` have passed; not at all on a simulator."""
        self._call(lib.netcode_server_wait, float(seconds))

    def set_private_keys(self, keys: Iterable[Any]) -> None:
        """Replaces the private keys by 1 to 4 others, tried in this order. Connected clients stay."""
        held = [_key(key) for key in keys]
        if not 1 <= len(held) <= MAX_PRIVATE_KEYS:
            raise ValueError("a server has 1 to %d private keys" % MAX_PRIVATE_KEYS)
        together = (c_uint8 * (KEY_BYTES * len(held)))()
        try:
            for at, key in enumerate(held):
                ctypes.memmove(ctypes.addressof(together) + at * KEY_BYTES, key._buffer, KEY_BYTES)
            if self._call(lib.netcode_server_set_private_keys, together, len(held)) != _OK:
                raise NetcodeError("the private keys could not be set")
        finally:
            ctypes.memset(together, 0, len(together))

    def stats(self) -> ServerStats:
        """What was sent, received and dropped, and who came and went."""
        raw = _ServerStats()
        self._call(lib.netcode_server_stats, raw)
        return _convert(ServerStats, raw)

    def client_stats(self, client_index: int) -> ServerClientStats:
        """The same for the client in one slot."""
        raw = _ServerClientStats()
        self._call(lib.netcode_server_client_stats, self._index(client_index), raw)
        return _convert(ServerClientStats, raw)

    def _reason(self, reason: int) -> DisconnectReason:
        return DisconnectReason(reason)

    def __repr__(self) -> str:
        if self.destroyed:
            return "Server(destroyed)"
        return "Server(port %d, %d of %d slots)" % (self.port, self.num_connected_clients, self.max_clients)


# ---- messages ----


class Message(NamedTuple):
    """A message that was received."""

    channel: int
    kind: MessageKind
    data: bytes


class MessageEvent(NamedTuple):
    """What became of a stream, or of a message that was sent with a receipt."""

    type: MessagesEventType
    channel: int
    kind: MessageKind
    bytes: int  # of a stream, 2^31 - 1 at most
    bytes_done: int
    receipt: int
    stream_bytes: int = 0  # of a stream, exactly; else 0
    stream_bytes_done: int = 0
    reason: int = 0  # of BROKEN: NETCODE_MESSAGES_REASON_... of netcode.h


class StreamFile:
    """A binary file that can seek, as what a stream is read from or written to. io.BytesIO() is such a file too.

    `complete` is None until a received stream ends: then True if all of it was written.
    """

    def __init__(self, file: Any):
        self.file = file
        self.complete: Optional[bool] = None

    def __len__(self) -> int:
        return self.file.seek(0, os.SEEK_END)

    def read(self, offset: int, count: int) -> bytes:
        """For send_stream: the `count` bytes from `offset` on."""
        self.file.seek(offset)
        return self.file.read(count)

    def write(self, offset: int, data: bytes) -> None:
        """For accept_stream."""
        self.file.seek(offset)
        if self.file.write(data) != len(data):
            raise OSError("the file did not take %d bytes" % len(data))

    def end(self, complete: bool) -> None:
        """The file stays open: it is yours."""
        self.complete = complete


class _Streams:
    """The sources and the writers of one object's streams, by the numbers that C has as their contexts.

    Sources stay until ACKED or LOST was read, and writers until their end: C may call them until then. Streams are sent
    with these numbers as receipts, so that each event names one stream, whatever receipts the caller gave.
    """

    def __init__(self, hooks: _Hooks, accept: Optional[Callable[[int, int, int], Any]]):
        self.accept = accept
        self.sources: Dict[int, Tuple[Any, int]] = {}  # with the caller's receipt
        self.writers: Dict[int, Any] = {}
        self.failed: List[int] = []  # sources that raised: their streams are to be cancelled
        self.last, self.depth = 0, 0
        self.read_thunk = hooks.wrap(_StreamRead, self.on_read, with_context=True)
        self.write_thunk = hooks.wrap(_StreamWrite, self.on_write, 0, with_context=True)
        self.end_thunk = hooks.wrap(_StreamEnd, self.on_end, with_context=True)

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def on_read(self, number: int, offset: int, data: int, count: int) -> None:
        ctypes.memset(data, 0, count)  # never what was in this memory before
        try:
            content = memoryview(self.sources[number][0].read(offset, count)).cast("B")
            if len(content) != count:
                raise ValueError("the source of a stream gave %d bytes at %d, not %d" % (len(content), offset, count))
            ctypes.memmove(data, bytes(content), count)
        except BaseException:
            if number not in self.failed:
                self.failed.append(number)
            raise

    def on_accept(self, stream: Any) -> int:
        offered = stream[0]
        writer = self.accept(offered.channel, offered.bytes, offered.tag) if self.accept else None
        if writer is None:
            return 0
        if not callable(getattr(writer, "write", None)):
            raise TypeError("accept_stream returned %r, which has no write(offset, data)" % (writer,))
        number = self.next_number()
        self.writers[number] = writer
        offered.context = number
        offered.write_function, offered.end_function = self.write_thunk, self.end_thunk
        return 1

    def on_write(self, number: int, offset: int, data: int, count: int) -> int:
        return 0 if self.writers[number].write(offset, ctypes.string_at(data, count)) is False else 1

    def on_end(self, number: int, complete: int) -> None:
        end = getattr(self.writers.pop(number), "end", None)
        if end is not None:
            end(bool(complete))


class _BytesSource:
    """What send_stream reads from where it was given bytes."""

    def __init__(self, data: Any):
        self.data = memoryview(data).cast("B")

    def __len__(self) -> int:
        return len(self.data)

    def read(self, offset: int, count: int) -> memoryview:
        return self.data[offset : offset + count]




class Messages(_Object):
    """Messages of any size over one connection, each delivered as you choose: see 15 in the header's manual.

    One object for each connection, on both sides. Joined to a client or to a server's slot:

        client.update(time)
        messages.client_receive(client, time)
        for message in messages.received():
            ...
        messages.send(b"hello")
        messages.client_send(client, time)

    Options are those of netcode_messages_config_t: channels, max_message_bytes, send_buffer_bytes,
    receive_buffer_bytes, window_packets, congestion, bytes_per_second, max_retries, upgrade_large, ping_seconds,
    repeats, least_bytes_per_second, max_send_message_bytes, max_receive_message_bytes, and priorities and weights (a
    number for each channel).

    Streams have any size, and no copy of the whole is made. `accept_stream` is called with channel, bytes and tag when
    the other side sends one, and returns None to refuse it, or what it is to be written to: an object with

        write(offset, data)    each byte comes once, in any order of offsets. False: the stream ends, and is LOST there
        end(complete)          the last call, if there is such a method: True if all was written

    StreamFile is one. These functions run while packets are received (and end in reset and destroy); of the same
    messages they may only call send and send_stream. What they raise is raised by the call that they ran in, and ends
    their stream.
    """

    def __init__(
        self,
        time: Optional[float] = None,
        *,
        ping_seconds: float = 0.0,
        priorities: Iterable[int] = (),
        weights: Iterable[int] = (),
        accept_stream: Optional[Callable[[int, int, int], Any]] = None,
        **options: int,
    ):
        hooks, config = _Hooks(), _MessagesConfig()
        lib.netcode_default_messages_config(config)
        _set_numbers(config, _MESSAGES_NUMBERS + " " + _MESSAGES_MORE_NUMBERS, options)
        config.ping_seconds = ping_seconds
        for name, values in (("priorities", list(priorities)), ("weights", list(weights))):
            if len(values) > MESSAGES_CHANNELS:
                raise ValueError("there are at most %d channels" % MESSAGES_CHANNELS)
            for channel, value in enumerate(values):
                getattr(config, name)[channel] = _integer(name, value, 0, 255)
        if lib.netcode_messages_memory(config) == 0:
            raise ValueError("the library refuses these options: see netcode_messages_config_t")
        self._streams = _Streams(hooks, accept_stream)
        if accept_stream is not None:
            config.accept_stream_function = hooks.wrap(_AcceptStream, self._streams.on_accept, 0)
        self._channels = config.channels or MESSAGES_CHANNELS
        self._packet = ctypes.create_string_buffer(MAX_PACKET_SIZE)
        pointer = lib.netcode_messages_create(config, _now(time))
        _raise_misuse()
        if not pointer:
            raise MemoryError("no memory for messages")
        self._own(pointer, lib.netcode_messages_destroy, _Guard(), hooks, None)

    def _call(self, function: Any, *arguments: Any) -> Any:
        with self._guard:
            self._streams.depth += 1
            try:
                return super()._call(function, *arguments)
            finally:
                self._streams.depth -= 1
                if self._streams.failed and not self._streams.depth:
                    self._cancel_failed()

    def _cancel_failed(self) -> None:
        """Only outside of C's own calls: a source can not end its stream from within."""
        failed, self._streams.failed = self._streams.failed, []
        for number in failed:
            if not self._handle.ended:
                lib.netcode_messages_cancel_stream(self._handle.pointer, number)

    def reset(self, time: Optional[float] = None) -> None:
        """For the next connection: as new."""
        with self._guard:
            if self._guard.depth > 1:
                raise Misuse("these messages are being sent or received just now: reset them behind that")
            self._call(lib.netcode_messages_reset, _now(time))

    def send(
        self,
        data: Any,
        channel: int = 0,
        kind: int = MessageKind.RELIABLE_ORDERED,
        *,
        ttl_seconds: float = 0.0,
        receipt: int = 0,
    ) -> None:
        """Queues a copy. MessagesFull: try again later. `receipt` is yours, and handed back by events."""
        data, kind = _data(data), MessageKind(kind)
        if kind == MessageKind.STREAM:
            raise ValueError("a stream is sent by send_stream")
        if ttl_seconds > 0 and kind == MessageKind.RELIABLE_ORDERED:
            raise ValueError("an ordered message can not have a time to live: its channel would have a hole")
        raw = _Message(
            _integer("channel", channel, 0, self._channels - 1),
            kind,
            ctypes.cast(c_char_p(data), c_void_p),
            len(data),
            ttl_seconds,
            _uint64("receipt", receipt),
        )
        answer = self._call(lib.netcode_messages_send_message, raw)
        if answer != _OK:
            self._refuse(answer, raw)

    def send_stream(self, source: Any, tag: int = 0, channel: int = 0, *, receipt: int = 0) -> None:
        """Queues a stream, reliably: the other side's accept_stream gets its channel, size and tag.

        `source` is bytes-like (not copied: do not change it), or has a length and read(offset, count), like StreamFile,
        which returns the same bytes each time. It is held, and may be read, until you have read ACKED or LOST: these
        and PROGRESS are events of every stream. What read raises is raised by the call that it ran in; zeros are sent in
        place of what it should have read, and the stream is cancelled; if only these bytes were missing, the other side
        may have it complete before that. MessagesFull: try again later.
        """
        try:
            source = _BytesSource(source)
        except TypeError:
            if not callable(getattr(source, "read", None)):
                raise
        size, streams = _integer("the size of a stream", len(source), 0, 2**32 - 1), self._streams
        channel, tag = _integer("channel", channel, 0, self._channels - 1), _integer("tag", tag, 0, 2**32 - 1)
        receipt, number = _uint64("receipt", receipt), streams.next_number()
        raw = _MessagesStream(channel, size, tag, number, number, streams.read_thunk)
        streams.sources[number] = (source, receipt)
        answer = 0

        def queue(pointer: Any) -> None:
            nonlocal answer
            answer = lib.netcode_messages_send_stream(pointer, raw)

        try:
            self._call(queue)  # may raise what a callback raised before, after this was queued
        finally:
            if answer != _OK:
                del streams.sources[number]
        if answer == 0:
            raise MessagesFull("there is no room for one more stream")
        if answer == -3:
            raise MessagesBroken(_BROKEN)
        if answer == -4:
            raise MessagesError(_NO_CHANNEL)

    def cancel_stream(self, receipt: int) -> None:
        """Ends the streams sent with this receipt, begun or not: LOST is their event. KeyError: there is none."""
        receipt, found = _uint64("receipt", receipt), False
        with self._guard:
            if self._streams.depth:
                raise Misuse("a function of a stream may not cancel streams: do it after the call that it runs in")
            for number in [number for number, it in self._streams.sources.items() if it[1] == receipt]:
                found |= self._call(lib.netcode_messages_cancel_stream, number) == _OK
            if not found:
                self._call(lib.netcode_messages_cancel_stream, 0)  # raises where they were destroyed; 0 is no stream's
        if not found:
            raise KeyError("no stream is being sent with the receipt %d" % receipt)

    @staticmethod
    def _refuse(answer: int, raw: _Message) -> None:
        if answer == 0:
            raise MessagesFull("there is no room for %d bytes" % raw.bytes)
        if answer == -1:
            kind = MessageKind(raw.kind).name
            raise MessageTooLarge("%d bytes are too large for a message of kind %s" % (raw.bytes, kind))
        if answer == -3:
            raise MessagesBroken(_BROKEN)
        if answer == -4:
            raise MessagesError(_NO_CHANNEL)
        raise Misuse("the library refuses this message")

    def receive(self) -> Optional[Message]:
        """The next message, or None."""
        raw = _Message()
        with self._guard:
            if not self._call(lib.netcode_messages_receive, raw):
                return None
            data = ctypes.string_at(raw.data, raw.bytes) if raw.bytes else b""
        return Message(raw.channel, MessageKind(raw.kind), data)

    def received(self) -> Iterator[Message]:
        """All messages that wait."""
        return iter(self.receive, None)

    def next_event(self) -> Optional[MessageEvent]:
        """What became of a message, or None."""
        raw = _MessagesEvent()
        with self._guard:
            if not self._call(lib.netcode_messages_event, raw):
                return None
            kind, type_, receipt = MessageKind(raw.kind), MessagesEventType(raw.type), raw.receipt
            if kind == MessageKind.STREAM:
                number, receipt = receipt, self._streams.sources[receipt][1]
                if type_ != MessagesEventType.PROGRESS:
                    del self._streams.sources[number]  # C does not read it any more
        return MessageEvent(
            type_, raw.channel, kind, raw.bytes, raw.bytes_done, receipt, raw.stream_bytes, raw.stream_bytes_done, raw.reason
        )

    def events(self) -> Iterator[MessageEvent]:
        """All events that wait."""
        return iter(self.next_event, None)

    def client_receive(self, client: Client, time: Optional[float] = None) -> None:
        """Behind client.update: takes all payloads of the client."""
        self._joined(lib.netcode_messages_pull_from_client, client, _now(time))

    def client_send(self, client: Client, time: Optional[float] = None) -> None:
        """At the end of the tick: sends what is due."""
        self._joined(lib.netcode_messages_push_to_client, client, _now(time))

    def server_receive(self, server: Server, client_index: int, time: Optional[float] = None) -> None:
        """Behind server.update: takes all payloads of the slot. Another client in it begins anew."""
        self._joined(lib.netcode_messages_pull_from_server, server, server._index(client_index), _now(time))

    def server_send(self, server: Server, client_index: int, time: Optional[float] = None) -> None:
        """At the end of the tick: sends what is due to the slot."""
        self._joined(lib.netcode_messages_push_to_server, server, server._index(client_index), _now(time))

    def _joined(self, function: Any, peer: _Peer, *arguments: Any) -> None:
        with self._guard:
            peer._call(lambda raw: self._call(function, raw, *arguments))

    def process_packet(self, packet: Any) -> MessagesDropReason:
        """Without a connection: a packet that the other side's packets() made. NONE, or why it was dropped."""
        packet = _data(packet)
        return MessagesDropReason(self._call(lib.netcode_messages_process_packet, packet, len(packet)))

    def generate_packet(self) -> Optional[bytes]:
        """Without a connection: the next packet to be sent, or None where nothing is to be sent now."""
        with self._guard:
            count = self._call(lib.netcode_messages_generate_packet, self._packet, MAX_PACKET_SIZE)
            return self._packet.raw[:count] if count > 0 else None

    def packets(self) -> Iterator[bytes]:
        """All packets that are to be sent now."""
        return iter(self.generate_packet, None)

    def flush(self) -> None:
        """What is queued leaves with the next packets, full or not."""
        self._call(lib.netcode_messages_flush)

    def set_time(self, time: Optional[float] = None) -> None:
        """Sets the time before packets are processed, so that round trips are measured to when their acks came."""
        self._call(lib.netcode_messages_set_time, _now(time))

    def update(self, time: Optional[float] = None) -> None:
        """Sets the time, does what is due, flushes."""
        self._call(lib.netcode_messages_update, _now(time))

    @property
    def next_deadline(self) -> float:
        """When update and packets have something to do if nothing arrives."""
        return self._call(lib.netcode_messages_next_deadline)

    def stats(self) -> MessagesStats:
        """What is counted and measured."""
        raw = _MessagesStats()
        self._call(lib.netcode_messages_stats, raw)
        return _convert(MessagesStats, raw)

    def channel_stats(self, channel: int) -> MessagesChannelStats:
        """What waits in one channel."""
        raw = _MessagesChannelStats()
        channel = _integer("channel", channel, 0, MESSAGES_CHANNELS - 1)
        self._call(lib.netcode_messages_channel_stats, channel, raw)
        return _convert(MessagesChannelStats, raw)


# ---- an example: python3 examples/python/netcode.py ----


def main() -> int:
    """A server and a client over a bad network that is simulated: the client's five words come back."""
    words = [b"a", b"server", b"and", b"a", b"client"]
    heard: List[str] = []
    with PrivateKey.generate() as key, NetworkSimulator(latency_milliseconds=100, packet_loss_percent=5) as network:
        with Server("127.0.0.1:40000", 0.0, protocol_id=1, private_key=key, simulator=network) as server, Client(
            "127.0.0.1:50000", 0.0, simulator=network
        ) as client, Messages(0.0) as to_server, Messages(0.0) as to_client:
            server.start(1)
            client.connect(generate_connect_token(["127.0.0.1:40000"], client_id=1001, protocol_id=1, private_key=key))
            for word in words:
                to_server.send(word)
            for tick in range(600):
                now = tick / 60
                network.update(now)
                server.update(now)
                to_client.server_receive(server, 0, now)
                for message in to_client.received():
                    to_client.send(message.data.upper())
                to_client.server_send(server, 0, now)
                client.update(now)
                to_server.client_receive(client, now)
                for message in to_server.received():
                    heard.append(message.data.decode())
                    print("%5.2f s  the server says %s" % (now, heard[-1]))
                to_server.client_send(client, now)
                if len(heard) == len(words):
                    break
    return 0 if heard == [word.decode().upper() for word in words] else 1


if __name__ == "__main__":
    sys.exit(main())
