/*  netcode.h 1.1.0: secure client/server connections over UDP, the netcode 1.02 protocol, in a single file.
    Needs libsodium and the C library. MIT licence, at the end of this manual.

    In one C or C++ file of your program:

        #define NETCODE_IMPLEMENTATION
        #include "netcode.h"

    and everywhere else the #include alone. Link with -lsodium (and -lws2_32 on Windows). Or compile it by itself:
    cc -x c -DNETCODE_IMPLEMENTATION -c netcode.h

    ================================================================================================================
    MANUAL. The pages that it names are in examples/docs/.

      1  Five minutes                  7  Clocks                               13  Departures, decisions: STANDARD.md
      2  The architecture              8  Errors and drop reasons              14  Security: SECURITY.md
      3  Concepts                      9  Limits; more in LIMITS.md            15  Messages; more in MESSAGES.md
      4  Servers, step by step        10  The network, and others: NETWORK.md  16  Paths; more in PATHS.md
      5  Memory; more in LIMITS.md    11  Build switches                       17  Licence
      6  Threads; more in THREADS.md  12  What it does not do: STANDARD.md

    1  FIVE MINUTES

    A server with 16 slots, and a client. Your loop calls both and passes the time; the library has no threads.

        netcode_init();
        struct netcode_server_config_t config;                       // the server
        netcode_default_server_config( &config );
        config.events = 1;                                           // netcode_server_next_event reports all
        config.protocol_id = 0x1122334455667788;                     // unique to your game and its version
        memcpy( config.private_key, key, NETCODE_KEY_BYTES );        // known to your web backend and servers only
        struct netcode_server_t * server = netcode_server_create( "203.0.113.5:40000", &config, time );
        netcode_server_start( server, 16 );
        for ( ;; ) {                                                 // every tick, say 60 times a second
            struct netcode_event_t event;
            netcode_server_update( server, time );
            while ( netcode_server_next_event( server, &event ) )
                if ( event.type == NETCODE_EVENT_PAYLOAD ) {
                    netcode_server_send_packet( server, event.client_index, event.data, event.bytes );
                    netcode_server_free_packet( server, event.data );
                }
        }

        const char * address = "203.0.113.5:40000";                  // the web backend, for each player who logs in
        uint8_t connect_token[NETCODE_CONNECT_TOKEN_BYTES];          // good for 30 s; 5 s of silence end the connection
        netcode_generate_connect_token( 1, &address, &address, 30, 5, client_id, 0x1122334455667788, key, NULL,
                                        connect_token );

        struct netcode_client_config_t config;                       // the client
        netcode_default_client_config( &config );
        config.events = 1;
        struct netcode_client_t * client = netcode_client_create( "0.0.0.0", &config, time );
        netcode_client_connect( client, connect_token );             // 2048 bytes from your web backend, by HTTPS
        for ( ;; ) {
            struct netcode_event_t event;
            netcode_client_update( client, time );
            while ( netcode_client_next_event( client, &event ) )
                if ( event.type == NETCODE_EVENT_PAYLOAD )
                    netcode_client_free_packet( client, event.data );
            netcode_client_send_packet( client, data, bytes );       // does nothing while not connected
        }

    examples/client_server.c is the complete program; examples/server.c and examples/client.c use real sockets.

    2  THE ARCHITECTURE

        +--------+ 1 log in, ask to play (HTTPS) +------------------+
        |        | ----------------------------> |   web backend    |   has the private key, for
        |        | <---------------------------- +------------------+   netcode_generate_connect_token
        |        | 2 a connect token (HTTPS)              :              the private key, by a channel of yours
        | client | 3 request, with the token              v
        |        | ----------------------------> +------------------+
        |        | <- 4 challenge, 5 response -> | dedicated server |   has the private key; the client never has
        |        | <- 6 keep-alives, payloads -> +------------------+
        +--------+ encrypted in both directions

    A connect token contains the player's number (client id), up to 32 server addresses, two session keys and 256 bytes
    of your own (user data). Only backend and servers can read its private part; the client reads the addresses and its
    keys from the public part. Clients without a valid token get no reply.

    3  CONCEPTS

    slot         the server's entry for one client; its number, 0 to max_clients - 1, is the client index
    client id    identifies the player, from the token; connected at most once on a server
    session      one connection of one client; its number never repeats, so late messages can not reach the slot's next
                 client
    payload      1 to 1200 bytes of yours; it can be lost or reordered, but never repeated or changed
    keep-alive   sent ten times a second while no payload is sent; a side that receives nothing for the token's timeout
                 ends the connection
    sequence     counts the packets of one direction; it is the nonce that encrypts them, so it is never used twice
    event        connected, payload, moved, disconnected, in the order in which they happened: with config.events,
                 netcode_server_next_event. Without it, the per-slot calls of the known API return payloads

    4  SERVERS, STEP BY STEP

    address      netcode_server_create( "203.0.113.5:40000" ) is the address in tokens; the server binds the wildcard
                 address at that port (0: any free one, netcode_server_get_port). Behind a NAT or in a container,
                 bind_address is the address to bind and public_addresses are those in tokens. With several addresses,
                 bind the one that tokens name: on a wildcard socket the system chooses the source address of replies,
                 and clients accept packets only from the address that they sent to.
    update       receives, replies, sends keep-alives, ends what timed out. Its work is limited, so that a flood can not
                 block it, and each client has a share of that work: see 9.
    admission    admit_callback is called last, before a client gets its slot: 0 denies it. Use it for bans, and where
                 several servers must agree (6). An answer that has to be fetched: start that, return
                 NETCODE_ADMIT_LATER, and accept or deny when the client asks again, a tenth of a second later.
    a crash      a player whose game crashed can reconnect at once with a newer token if replace_existing_clients is
                 on; otherwise when the old session has timed out.
    keys         netcode_server_set_private_keys sets up to four, tried in order. To rotate: give servers {new, old},
                 then the backend the new one, when the last old token has expired, servers {new}. Clients stay.
    why not?     netcode_server_stats counts every refusal by reason; drop_callback and the log (level DEBUG) report
                 each one. At level INFO the log reports why players could not connect, one line a second for each
                 reason. netcode_client_report is the client's view. Common causes: the token names another address (the
                 log shows both), a clock is wrong by more than the token's lifetime, the token has expired, a firewall
                 drops UDP, the server is full, or its application does not read events. Not every drop is an error: of
                 the ten packets of a client that disconnects, nine count as UNKNOWN_ADDRESS, and are not logged.

    5  MEMORY

    create and start allocate all memory, stop keeps it for the next start, destroy frees it; no other call allocates.
    netcode_client_memory and netcode_server_memory return the number of bytes beforehand; your allocator is called for
    a few blocks. Received packets are in a pool, aligned to 16 bytes. They are yours until you free them, for any time,
    through stop, start and the reuse of their slot. Secrets are wiped when the client, slot or handshake that they
    belong to ends, packets when their pool is freed. LIMITS.md has the sizes, and what a full pool evicts.

    6  THREADS

    There are no locks and no hidden threads. One thread at a time may use an object; different objects may be used by
    different threads. Set the process-wide hooks (log level, printf, assert, tagging) and call netcode_init before the
    threads start. Callbacks run inside your own calls and may call the library: destroy, stop and start then take
    effect when the outermost call returns; an update inside an update is refused. A callback must return: no longjmp
    and no C++ exception may leave it. It may run on another stack, such as a fiber's. One server object uses one core;
    for several, also on one port (share_port), and what they do not know of each other, see THREADS.md.

    7  CLOCKS

    `time` is yours, in seconds, from any start. The library adds up the forward steps: a time that stands still or goes
    back, NaN and infinity do nothing. Unix time is needed for token timestamps only: config.unix_time, or the system's.
    If you supply both, and libsodium's random source, two runs with the same inputs have the same results, bit for bit.
    The real clock is read only for how long a server receives from the system's own sockets in a flood (LIMITS.md).

    8  ERRORS AND DROP REASONS

    create returns NULL on error; netcode_client_create_error and netcode_server_create_error return the reason. The
    caller's mistakes call netcode_assert in debug builds; in release builds they are logged and refused. Network input
    is never an error: a dropped datagram is counted by reason. NETCODE_DROP_LIST has a name and a sentence for each.

    9  LIMITS

        limit                                   what is refused or lost     counted as              config
        payload 1200 bytes, datagram 1225       what is larger              OVERSIZED_DATAGRAM      -
        slots 65535 a server                    a client, if none is free   SERVER_FULL             -
        servers 32 a token; private keys 4      the call fails              -                       -
        handshakes max( 1024, 4 x slots )       the oldest, or the new one  REQUEST_TOO_SOON        pending_handshakes
        token: 4 addresses; address: 4 tokens   the oldest, or the new one  REQUEST_TOO_SOON        -
        client id: 4 handshakes                 the first token to expire   TOKEN_OUTLIVED          -
        handshake: 4 replies, then 10 a second  earlier requests            REQUEST_TOO_SOON        -
        used tokens max( 1024, 8 x slots )      those expiring no later     TOKEN_REFUSED_UP_TO     consumed_tokens
        half of them for those that never do    another such token          TOKEN_NO_RECORD_FREE    consumed_tokens
        replay window 320 packets               older packets               SEQUENCE_TOO_OLD        -
        a jump of 2^32 in the sequence          the packet                  SEQUENCE_TOO_FAR_AHEAD  -
        a server's pool, see below              what finds no buffer        POOL_EMPTY              packet_pool_buffers
        client of a server: 256 packets queued  its newest                  QUEUE_FULL              packet_quota
        client's pool: 256, all may be queued   its newest                  QUEUE_FULL              packet_pool_buffers
        update: 1,100 datagrams                 the rest waits              kernel_drops            receive_buffer_bytes
        update: 102 private keys are tried      requests: they come again   REQUEST_NOT_OPENED      -
        update: 16 packets a client, 192 more   a client's further packets  OVER_SHARE              -
        update: 512 timers or so                nothing: the rest waits     -                       -
        flood: 720 datagrams a second           its senders, on Linux       kernel_drops            kernel_filter
        update of a client: 2048 units          nothing: the rest waits     -                       update_budget

    A server's pool has max( 1024, 2 x slots, min( 32 x slots, 4096 ) ) buffers. A slot whose client never confirms ends
    after the token's timeout, at most 60 s; 10 s where the token has none. A client remembers 16 tokens. A batch sends
    64 datagrams, a disconnect ten. In a config more than 2^24 counts as 2^24, 0 or less as the default. The limits of
    an update are for 1/60 s. LIMITS.md has the rules: handshakes, used tokens, work, the filter, what a flood can do.

    11  BUILD SWITCHES

    NETCODE_IMPLEMENTATION     compile the implementation here
    NETCODE_STATIC             everything static, for use in one program unit only
    NETCODE_API                an attribute in front of every public function, as for a shared library
    NETCODE_API_DATA           the same for netcode_assert_function, the one variable, without extern; detected if you
                               define NETCODE_API, but not for users of a DLL with MSVC: __declspec( dllimport )
    NETCODE_MESSAGES           messages, see 15: define it wherever the header is included
    NETCODE_NO_SOCKETS         leave the operating system's sockets out
    NETCODE_NO_LINUX_EXTRAS    leave out what NETWORK.md lists for Linux, and ICMP error queues
    NETCODE_ASSERT( c )        your assert; else netcode_set_assert_function, and nothing under NDEBUG
    NETCODE_PACKET_TAGGING     0: leave DSCP marking out
    NETCODE_PLATFORM           detected unless defined. NETCODE_DEBUG / NETCODE_RELEASE and NETCODE_LITTLE_ENDIAN /
                               NETCODE_BIG_ENDIAN are, too, for code that uses them: the library does not

    It uses these functions of libsodium: sodium_init, sodium_memcmp, sodium_memzero, randombytes_buf,
    crypto_aead_chacha20poly1305_ietf_encrypt and crypto_aead_chacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt and crypto_aead_xchacha20poly1305_ietf_decrypt.

    Include system headers before or after netcode.h: the library is the same, or (strict C modes on 32-bit Linux;
    windows.h with winsock.h in it, except on MinGW) it does not compile, and the error says what to do. If it is
    included first, it defines _GNU_SOURCE on Linux. A netcode.h of another library or version, in an include path or
    beside the file that includes it, can be found instead of this one; this check after the #include detects it:

        #if !defined( NETCODE_SINGLE_FILE_H ) || NETCODE_VERSION_MAJOR < 1
        #error "another netcode.h was found: see the include paths"
        #endif

    15  MESSAGES

    With NETCODE_MESSAGES defined, one object for each connection sends and receives messages of any size in payload
    packets, each delivered as you choose. It has no network and no clock of its own, and create allocates all of its
    memory. Joined to a client (a server has one for each slot):

        struct netcode_messages_t * messages = netcode_messages_create( NULL, time );
        for ( ;; ) {                                                 // every tick
            struct netcode_message_t message;
            netcode_client_update( client, time );
            netcode_messages_pull_from_client( messages, client, time );
            while ( netcode_messages_receive( messages, &message ) )
                play( message.channel, message.data, message.bytes );
            netcode_messages_send( messages, 0, NETCODE_MESSAGE_RELIABLE_ORDERED, data, bytes );
            netcode_messages_push_to_client( messages, client, time );
        }

    MESSAGES.md has a server, channels, receipts, large messages, streams, rates, guarantees. Which kind for what:

        kind                             for example                            what may happen to it
        UNRELIABLE                       voice, sparks, footsteps               lost, or late
        UNRELIABLE_SEQUENCED             snapshots, positions, aim              lost; never older than one before it
        RELIABLE                         a door opens, an item is picked up     nothing; order is not kept
        RELIABLE_ORDERED                 chat, score, commands, rounds          nothing
        RELIABLE_SEQUENCED               health, equipment, options             skipped if a newer one was there first

    16  PATHS

    With roaming in the server's config, a connected client whose address changes stays connected: a phone that goes
    from Wi-Fi to cellular, a NAT that forgets its mapping or gives another port. Clients of this library have nothing
    to switch on. The application gets NETCODE_EVENT_MOVED, the log a line at INFO. A client notices in a second or two;
    netcode_client_rebind tells it sooner. PATHS.md has the rules, and how round trips and losses are measured.

    17  LICENCE

    MIT License

    Copyright (c) 2026 the netcode.h authors

    Permission is hereby granted, free of charge, to any person obtaining a copy
    of this software and associated documentation files (the "Software"), to deal
    in the Software without restriction, including without limitation the rights
    to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
    copies of the Software, and to permit persons to whom the Software is
    furnished to do so, subject to the following conditions:

    The above copyright notice and this permission notice shall be included in all
    copies or substantial portions of the Software.

    THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
    IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
    FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
    AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
    LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
    OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
    SOFTWARE.
*/

/*  INDEX, written by `make index`.

    Rooms, each at its banner: search for "ROOM 9".
     1 platform   What does the operating system provide, and how are the caller's mistakes reported?
     2 bytes      How are numbers read from and written to packets, never beyond their end?
     3 crypto     How are bytes sealed (encrypted and authenticated), opened, hashed, wiped and randomly generated?
     4 address    What is a network address, and how is it written?
     5 token      What is the format of connect tokens and challenge tokens, and which key can open them?
     6 replay     Was this packet received before, or is it too old or too far ahead?
     7 packet     Which packet types exist, in which direction are they sent, and how are they sealed?
     8 containers Which containers make finding, timing and removing an entry cost the same for one client as for
                  ten thousand?
     9 queues     Where do packets wait: received payloads and events for the application, and datagrams for the
                  network?
    10 socket     How are datagrams received and sent, over any kind of network?
    11 simulator  How is a bad network simulated, with the same result every time?
    12 endpoint   What do client and server share: creation, the choice of the network, receiving, the calls in
                  progress, and what they measure of each other's packets?
    13 client     How does a client connect to one of the token's servers, and stay connected?
    14 handshake  Which clients are accepted?
    15 server     Which client is in which slot, and what does an update do?
    16 messages   How do reliable messages arrive, in their order, over packets that can be lost, repeated and
                  reordered?

    Functions, by what their names begin with.
    netcode_
        init, term, version, enable_packet_tagging, log_level, set_printf_function, set_assert_function,
        random_bytes, sleep, time, drop_reason_name, drop_reason_text, parse_address, address_to_string,
        address_equal, generate_connect_token, connect_token_info
    netcode_client_
        state_name, create, create_dual, create_error, create_error_text, memory, destroy, connect, update,
        disconnect, next_packet_sequence, send_packet, receive_packet, free_packet, state, index, max_clients,
        get_port, server_address, process_packet, connect_loopback, disconnect_loopback, loopback,
        process_loopback_packet, next_event, rebind, flush, wait, stats, report
    netcode_default_
        client_config, server_config, messages_config
    netcode_messages_
        memory, create, destroy, reset, send, send_message, send_stream, cancel_stream, receive, event, set_time,
        process_packet, generate_packet, flush, update, next_deadline, stats, channel_stats, drop_reason_name,
        drop_reason_text, pull_from_client, push_to_client, pull_from_server, push_to_server
    netcode_network_simulator_
        create, destroy, reset, update, socket, move
    netcode_server_
        create, create_dual, create_error, create_error_text, memory, destroy, start, stop, update, running,
        max_clients, num_connected_clients, client_connected, client_disconnect_reason, client_loopback, client_id,
        client_address, client_user_data, client_session, disconnect_client, disconnect_all_clients,
        next_packet_sequence, send_packet, send_packet_to_session, broadcast, receive_packet, free_packet,
        process_packet, connect_loopback_client, disconnect_loopback_client, process_loopback_packet, get_port,
        next_event, flush, wait, set_private_keys, stats, client_stats
*/

#ifndef NETCODE_SINGLE_FILE_H
#define NETCODE_SINGLE_FILE_H

/* ================================================================================================================
    PUBLIC API

    Conventions. The first argument of a function is its object. `bytes` is a size, `count` a number of items, `index`
    a position, times are seconds. Functions that answer yes or no return 1 or 0. A NULL object, or an index out of
    range, is a mistake of the caller: it calls netcode_assert in debug builds; in release builds it is logged and
    refused, and nothing else happens. A payload of a size out of range is logged and refused in all builds. Only the
    queries about a server's slots accept any index from 0 on.
    "Standard" is the netcode 1.02 standard, cited by the title of its section; examples/docs/STANDARD.md has the
    decisions, which are cited by number.
   ================================================================================================================ */

/*  In strict C modes (-std=c99) the C library hides functions that the implementation uses, unless this macro is
    defined before the first system header. The implementation declares itself what is hidden even then. */
#if defined( NETCODE_IMPLEMENTATION ) && defined( __linux__ ) && !defined( _GNU_SOURCE )
#define _GNU_SOURCE 1
#endif

#include <stddef.h>
#include <stdint.h>

#if defined( NETCODE_H ) || defined( NETCODE_CONNECT_TOKEN_BYTES )
#error "another library's netcode.h was included before this one: one program unit can use only one of them"
#endif
#define NETCODE_H

/* ---- version, platform, build switches ---- */

/* The version of this header, as numbers and as text. netcode_version has that of the implementation. */
#define NETCODE_VERSION_MAJOR 1
#define NETCODE_VERSION_MINOR 1
#define NETCODE_VERSION_PATCH 0
#define NETCODE_VERSION_FULL "1.1.0"

/* One of the two is defined, for code that uses them: RELEASE where NDEBUG is. Asserts follow NDEBUG. */
#if defined( NETCODE_DEBUG ) && defined( NETCODE_RELEASE )
#error "define NETCODE_DEBUG or NETCODE_RELEASE, not both"
#elif !defined( NETCODE_DEBUG ) && !defined( NETCODE_RELEASE )
#if defined( NDEBUG )
#define NETCODE_RELEASE
#else
#define NETCODE_DEBUG
#endif
#endif

/* The values of NETCODE_PLATFORM, which is detected unless you define it. UNIX is Linux and every other. */
#define NETCODE_PLATFORM_WINDOWS 1
#define NETCODE_PLATFORM_MAC 2
#define NETCODE_PLATFORM_UNIX 3

#ifndef NETCODE_PLATFORM
#if defined( _WIN32 )
#define NETCODE_PLATFORM NETCODE_PLATFORM_WINDOWS
#elif defined( __APPLE__ )
#define NETCODE_PLATFORM NETCODE_PLATFORM_MAC
#else
#define NETCODE_PLATFORM NETCODE_PLATFORM_UNIX /* the system that this is compiled for */
#endif
#endif

/* One of the two is defined, for code that uses them: the library is the same on every byte order. */
#if !defined( NETCODE_LITTLE_ENDIAN ) && !defined( NETCODE_BIG_ENDIAN )
#if defined( __BYTE_ORDER__ ) && defined( __ORDER_BIG_ENDIAN__ )
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NETCODE_BIG_ENDIAN 1
#else
#define NETCODE_LITTLE_ENDIAN 1
#endif
#elif defined( __BIG_ENDIAN__ ) || defined( _BIG_ENDIAN )
#define NETCODE_BIG_ENDIAN 1
#else
#define NETCODE_LITTLE_ENDIAN 1
#endif
#endif

/* 0 leaves netcode_enable_packet_tagging without effect, and out of the build; the default on MinGW. */
#ifndef NETCODE_PACKET_TAGGING
#if defined( __MINGW32__ )
#define NETCODE_PACKET_TAGGING 0
#else
#define NETCODE_PACKET_TAGGING 1
#endif
#endif

/*  NETCODE_STATIC makes every symbol static, for use in one program unit alone. NETCODE_API is an export attribute of
    your choice, with or without extern; NETCODE_API_DATA is the attribute of the one variable, without extern. */
#ifndef NETCODE_API
#if defined( NETCODE_STATIC ) && defined( __GNUC__ )
#define NETCODE_API static __attribute__( ( unused ) )
#elif defined( NETCODE_STATIC )
#define NETCODE_API static
#else
#define NETCODE_API extern
#endif
#elif defined( _WIN32 ) && defined( NETCODE_IMPLEMENTATION ) && !defined( NETCODE_API_DATA )
#define NETCODE_API_DATA __declspec( dllexport )
#elif defined( __GNUC__ ) && !defined( _WIN32 ) && !defined( NETCODE_API_DATA )
#define NETCODE_API_DATA __attribute__( ( visibility( "default" ) ) )
#endif
#ifndef NETCODE_API_DATA
#define NETCODE_API_DATA
#endif

#define NETCODE_CONST const /* kept for code that uses it */

/* ---- sizes and limits ---- */

/* a whole connect token, public and private. Standard: Connect Token */
#define NETCODE_CONNECT_TOKEN_BYTES 2048
#define NETCODE_KEY_BYTES 32               /* private keys and the keys of a session */
#define NETCODE_MAC_BYTES 16               /* the authentication tag after everything encrypted */
#define NETCODE_USER_DATA_BYTES 256        /* the application's own data inside a connect token */
#define NETCODE_MAX_SERVERS_PER_CONNECT 32 /* server addresses in one connect token */
/* kept for code that sizes arrays by it; netcode_server_start takes up to NETCODE_MAX_SLOTS */
#define NETCODE_MAX_CLIENTS 256
#define NETCODE_MAX_SLOTS 65535               /* slots of one server */
#define NETCODE_MAX_PACKET_SIZE 1200          /* the largest payload. Standard: Packets */
#define NETCODE_MAX_ADDRESS_STRING_LENGTH 256 /* the buffer that netcode_address_to_string writes to */
#define NETCODE_MAX_PRIVATE_KEYS 4            /* keys that netcode_server_set_private_keys accepts */
#define NETCODE_MAX_PUBLIC_ADDRESSES 32       /* addresses of one server in tokens */
/* request, denied, challenge, response, keep-alive, payload, disconnect */
#define NETCODE_PACKET_TYPES 7
/* seconds: what max_connect_token_lifetime is by default where sequences start at zero */
#define NETCODE_DEFAULT_MAX_CONNECT_TOKEN_LIFETIME 30

/* What functions return that can fail. */
#define NETCODE_OK 1
#define NETCODE_ERROR 0

/* Types of addresses: */
#define NETCODE_ADDRESS_NONE 0 /* no address */
#define NETCODE_ADDRESS_IPV4 1 /* in data.ipv4, and IPv4-mapped IPv6 too */
#define NETCODE_ADDRESS_IPV6 2 /* in data.ipv6 */

/* Levels of netcode_log_level, each with those before it: */
#define NETCODE_LOG_LEVEL_NONE 0  /* nothing */
#define NETCODE_LOG_LEVEL_ERROR 1 /* mistakes of the caller, and what the system refused; the default */
#define NETCODE_LOG_LEVEL_INFO 2  /* connects, disconnects, moves, and why players could not connect */
#define NETCODE_LOG_LEVEL_DEBUG 3 /* every dropped datagram */

/* Packet types, the low four bits of the prefix byte. Standard: Packets */
#define NETCODE_PACKET_REQUEST 0
#define NETCODE_PACKET_DENIED 1
#define NETCODE_PACKET_CHALLENGE 2
#define NETCODE_PACKET_RESPONSE 3
#define NETCODE_PACKET_KEEP_ALIVE 4
#define NETCODE_PACKET_PAYLOAD 5
#define NETCODE_PACKET_DISCONNECT 6

/* Client states. Negative: how the connection, or the attempt, ended. Standard: Client State Machine */
enum netcode_client_state_t {
    NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED = -6,
    NETCODE_CLIENT_STATE_INVALID_CONNECT_TOKEN = -5,
    NETCODE_CLIENT_STATE_CONNECTION_TIMED_OUT = -4,
    NETCODE_CLIENT_STATE_CONNECTION_RESPONSE_TIMED_OUT = -3,
    NETCODE_CLIENT_STATE_CONNECTION_REQUEST_TIMED_OUT = -2,
    NETCODE_CLIENT_STATE_CONNECTION_DENIED = -1,
    NETCODE_CLIENT_STATE_DISCONNECTED = 0,
    NETCODE_CLIENT_STATE_SENDING_CONNECTION_REQUEST = 1,
    NETCODE_CLIENT_STATE_SENDING_CONNECTION_RESPONSE = 2,
    NETCODE_CLIENT_STATE_CONNECTED = 3
};

/* Why a server's slot was emptied. */
enum netcode_server_client_disconnect_reason_t {
    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE = 0,
    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT = 1,         /* nothing was received for the token's timeout */
    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT = 2, /* the client disconnected */
    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT = 3, /* by the application, stop or destroy */
    /* the same client id connected with a newer token */
    NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED = 4,
    NETCODE_SERVER_CLIENT_DISCONNECT_REASONS = 5
};

/* Why netcode_client_create returned NULL: */
enum netcode_client_create_error_t {
    NETCODE_CLIENT_CREATE_ERROR_NONE = 0,                 /* no error */
    NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED = 1, /* the address can not be read */
    /* the second one can not be read, or is of the first one's family */
    NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS2_FAILED = 2,
    NETCODE_CLIENT_CREATE_ERROR_SIMULATOR_REQUIRES_PORT = 3,   /* on a simulator the address needs a port */
    NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED = 4, /* the IPv4 socket could not be opened */
    NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED = 5, /* the IPv6 socket could not be opened */
    NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED = 6,    /* out of memory */
    /* override_send_and_receive, or the socket, lacks a callback */
    NETCODE_CLIENT_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK = 7
};

/* What admit_callback returns when it does not know yet, for example because it waits for a database. */
#define NETCODE_ADMIT_LATER ( -1 )

/* Why netcode_server_create returned NULL: */
enum netcode_server_create_error_t {
    NETCODE_SERVER_CREATE_ERROR_NONE = 0,                 /* no error */
    NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED = 1, /* the address can not be read */
    /* the second one can not be read, or is of the first one's family */
    NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED = 2,
    NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED = 3, /* the IPv4 socket could not be opened */
    NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED = 4, /* the IPv6 socket could not be opened */
    NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED = 5,   /* the IPv4 address could not be bound */
    NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV6_FAILED = 6,   /* the IPv6 address could not be bound */
    NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED = 7,    /* out of memory */
    /* override_send_and_receive, or the socket, lacks a callback */
    NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK = 8
};

/* The choice `sequence_base` in both configs: where the packet sequences of a connection start. */
/* at a random number below 2^48: safe across restarts and servers. The default */
#define NETCODE_SEQUENCE_BASE_RANDOM 0
/* at zero, as the standard's text says: five bytes a packet less; weaker, see examples/docs/SECURITY.md */
#define NETCODE_SEQUENCE_BASE_ZERO 1

/* clang-format off */
/*  Why a datagram was dropped. One list gives the enum, the names, the sentences and the counters.
    X( name, sentence ) */
#define NETCODE_DROP_LIST( X ) \
    X( NONE, "nothing was dropped" ) \
    X( EMPTY_DATAGRAM, "the datagram has no bytes" ) \
    X( OVERSIZED_DATAGRAM, "the datagram is larger than any packet of this protocol (1225 bytes)" ) \
    X( SOURCE_PORT_ZERO, "the datagram claims to come from port 0, which can not be answered" ) \
    X( TOO_SMALL, "the datagram is smaller than the smallest sealed packet (18 bytes)" ) \
    X( UNKNOWN_PACKET_TYPE, "the prefix byte names a packet type that does not exist" ) \
    X( WRONG_DIRECTION, "this side never receives packets of this type" ) \
    X( BAD_SEQUENCE_LENGTH, "the prefix byte gives the sequence a length outside 1..8 bytes" ) \
    X( WRONG_BODY_SIZE, "the packet's data has not the size that its type demands" ) \
    X( UNKNOWN_ADDRESS, "no client or handshake is known at the sender's address" ) \
    X( NOT_CONNECTED, "the sender has not finished its handshake, or the server is stopped" ) \
    X( WRONG_SERVER, "the sender is not the server that this client talks to" ) \
    X( WRONG_STATE, "the client does not expect this packet in its present state" ) \
    X( REPLAYED, "a packet with this sequence was received before" ) \
    X( SEQUENCE_TOO_OLD, "the sequence is older than the replay window or than the connection" ) \
    X( SEQUENCE_TOO_FAR_AHEAD, "the sequence is more than 2^32 ahead of the newest one" ) \
    X( AUTHENTICATION_FAILED, "the packet was not sealed with this connection's key, or was changed in transit" ) \
    X( QUEUE_FULL, "this client's packet queue is at its quota: the application reads too slowly" ) \
    X( POOL_EMPTY, "no packet buffer is free: the application holds too many, or the pool is too small" ) \
    X( REQUEST_WRONG_SIZE, "a connection request must have 1078 bytes" ) \
    X( REQUEST_OLD_VERSION, "the request speaks netcode 1.01, an older protocol" ) \
    X( REQUEST_WRONG_VERSION, "the request does not say NETCODE 1.02" ) \
    X( REQUEST_WRONG_PROTOCOL_ID, \
       "the request's protocol id is not this server's: another game, or another build of it" ) \
    X( REQUEST_TOO_SOON, "requests with this token come faster than they are answered" )\
    X( TOKEN_EXPIRED, "the connect token has expired: the player waited too long, or a clock is wrong" ) \
    X( TOKEN_MAYBE_USED, "the connect token may be older than this start of the server (max_connect_token_lifetime)" ) \
    X( TOKEN_REFUSED_UP_TO, \
       "the connect token expires no later than a record that was forgotten: it may have been used" ) \
    X( TOKEN_CONSUMED, "the connect token has connected someone already" ) \
    X( TOKEN_NO_RECORD_FREE, "no record is free to remember that this never-expiring token was used" ) \
    X( TOKEN_NOT_AUTHENTIC, \
       "the connect token was not sealed with any of this server's private keys, or was changed" ) \
    X( TOKEN_MALFORMED, "the connect token is authentic but breaks the standard's format" ) \
    X( TOKEN_FOR_ANOTHER_SERVER, "this server's address is not in the connect token" ) \
    X( TOKEN_OUTLIVED, "other handshakes of this client id hold tokens that expire later" ) \
    X( ADDRESS_CONNECTED, "a client is connected from this address already" ) \
    X( CLIENT_ID_CONNECTED, "a client with this id is connected already" ) \
    X( SERVER_FULL, "the server has no free slot: the client was denied" ) \
    X( NOT_ADMITTED, "the application's admit_callback refused the client, which was denied" ) \
    X( CHALLENGE_NOT_ISSUED, "the response's challenge was not issued to this handshake" ) \
    X( CHALLENGE_NOT_AUTHENTIC, "the response's challenge was not made by this server, or was changed" ) \
    X( CHALLENGE_FOR_ANOTHER, "the response's challenge was made for another token, address or client id" ) \
    X( REQUEST_NOT_OPENED, \
       "more requests arrived since the last update than tokens are opened: the client asks again" ) \
    X( OVER_SHARE, "more packets came from this client's address since the last update than its share of the work" ) \
    X( ADMISSION_PENDING, "admit_callback has no answer yet, or was called too often for this client: it asks again" )
/* clang-format on */

/* NETCODE_DROP_LIST as numbers. */
enum netcode_drop_reason_t {
#define NETCODE_DROP_ENUM( name, sentence ) NETCODE_DROP_##name,
    NETCODE_DROP_LIST( NETCODE_DROP_ENUM )
#undef NETCODE_DROP_ENUM
        NETCODE_DROP_REASONS
};

/* ---- types ---- */

/*  An IPv4 or IPv6 address with its port. IPv4-mapped IPv6 is always stored as IPv4, so that equal addresses have one
    form. A link-local IPv6 address may have the number of its interface in ipv6[1], which is zero on the wire. */
struct netcode_address_t {
    /* which of the two: see `type` */
    union {
        uint8_t ipv4[4];  /* in the order in which they are written */
        uint16_t ipv6[8]; /* host byte order */
    } data;
    uint16_t port; /* host byte order */
    uint8_t type;  /* NETCODE_ADDRESS_NONE, _IPV4 or _IPV6 */
};

/* What became of one entry in a batch of received datagrams. */
#define NETCODE_DATAGRAM_OK 0
#define NETCODE_DATAGRAM_TRUNCATED 1 /* it was larger than `capacity` */
/* no datagram: the system reported `error` (about an earlier one sent to `address`, where known) */
#define NETCODE_DATAGRAM_ERROR 2

/* One entry of a batch of datagrams: see netcode_socket_t. */
struct netcode_datagram_t {
    struct netcode_address_t address; /* receive: the sender. send: the destination */
    uint8_t * data;                   /* the bytes: of the library, valid during the call */
    int bytes;                        /* receive: the size, which may be 0. send: the size */
    int capacity;                     /* receive: how many bytes fit into `data` */
    int status;                       /* receive: NETCODE_DATAGRAM_... */
    int error;                        /* receive: the system's error number where status is NETCODE_DATAGRAM_ERROR */
};

/* What a socket is bound to and what the system granted and dropped: see netcode_socket_t. */
struct netcode_socket_info_t {
    struct netcode_address_t address;  /* the bound address, with its actual port */
    struct netcode_address_t address2; /* the second one of a dual-stack socket, else NETCODE_ADDRESS_NONE */
    int receive_buffer_bytes;          /* what the system granted; 0 where it has no such buffer */
    int send_buffer_bytes;             /* the same for sending */
    /*  datagrams that the system dropped because the receive buffer was full, by the kernel_filter or as a flood (see
        examples/docs/LIMITS.md), where it reports them: with the next datagram that it returns */
    uint64_t kernel_drops;
    int last_send_error; /* the system's error number of the last datagram that it refused to send; 0 for none */
};

/*  The network, as client and server see it. The library makes these from the operating system's sockets, from a
    simulator and from the override callbacks; make your own to send packets over another transport. No function may
    block except `wait`. The struct is copied. */
struct netcode_socket_t {
    void * context; /* yours: the first argument of each function below */
    /*  Fills up to `count` datagrams and returns how many entries were filled (errors that concern one datagram fill
        one entry each), 0 when no datagram waits, a negative number when the socket is broken. Required. It writes
        address, bytes, status, error, and the bytes that `data` points to, but never changes `data` itself. */
    int ( *receive )( void * context, struct netcode_datagram_t * datagrams, int count );
    /*  Sends up to `count` datagrams and returns how many the system accepted; one that it refuses is skipped and not
        counted. Required. */
    int ( *send )( void * context, const struct netcode_datagram_t * datagrams, int count );
    /* Sleeps until a datagram waits or `seconds` have passed. May be NULL: then the library sleeps in steps. */
    void ( *wait )( void * context, double seconds );
    /* Called once when the owner is destroyed. May be NULL. */
    void ( *close )( void * context );
    /* Fills `info` with the bound addresses and the granted buffers. May be NULL. */
    void ( *info )( void * context, struct netcode_socket_info_t * info );
    /*  Gives up the local address and takes the one that the system prefers now, with the same port where that can be.
        Returns 1 on success. May be NULL. See netcode_client_rebind. */
    int ( *rebind )( void * context );
};

/*  A network in memory, deterministic from its seed: latency, jitter, loss, duplication, reordering. Set the
    numbers at any time; they apply to datagrams sent afterwards. Time moves only in
    netcode_network_simulator_update. */
struct netcode_network_simulator_t {
    float latency_milliseconds;     /* one way */
    float jitter_milliseconds;      /* plus or minus, evenly distributed */
    float packet_loss_percent;      /* 0..100 */
    float duplicate_packet_percent; /* 0..100: a second copy arrives up to a second later */
    float reorder_packet_percent;   /* 0..100: delayed by up to 100 ms more, so that later ones overtake it */
    /* takes effect at the next netcode_network_simulator_reset; 0 after create */
    uint64_t seed;
    void * internal; /* the library's; do not touch it */
};

/*  A client's configuration. Zero is the default of every field, so a zeroed config works. The client uses the first of
    these networks that is given: socket, network_simulator, override_send_and_receive, the operating system's UDP. */
struct netcode_client_config_t {
    void * allocator_context; /* yours: the first argument of the two functions below */
    void * ( *allocate_function )( void * context, size_t bytes ); /* NULL: malloc. Aligned as malloc's */
    void ( *free_function )( void * context, void * pointer );     /* NULL: free */
    /* the network is this simulator, which must outlive the client */
    struct netcode_network_simulator_t * network_simulator;
    /* the first argument of every callback below */
    void * callback_context;
    /* called when the state changes: NETCODE_CLIENT_STATE_..., before and after */
    void ( *state_change_callback )( void * context, int previous, int state );
    /*  called with each payload that a loopback client sends: hand it to netcode_server_process_loopback_packet, a
        server's to netcode_client_process_loopback_packet. `data` is valid during the call */
    void ( *send_loopback_packet_callback )( void * context, int client_index, const uint8_t * data, int bytes,
                                             uint64_t sequence );
    int override_send_and_receive; /* 1: the two callbacks below are the network */
    /* sends a datagram; the arguments are valid during the call */
    void ( *send_packet_override )( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes );
    /* fills `from` and `data` with the next datagram and returns its bytes; <= 0 when no datagram waits */
    int ( *receive_packet_override )( void * context, struct netcode_address_t * from, uint8_t * data, int capacity );

    /* This library's additions. Zero is the default everywhere, but of next_server_seconds. */
    /* the network is this socket; the client closes it when it is destroyed */
    const struct netcode_socket_t * socket;
    /*  receives one line without its newline, valid during the call, of the levels that netcode_log_level enables (by
        default errors only); NULL: the process-wide printf hook */
    void ( *log_callback )( void * context, int level, const char * text );
    /* see NETCODE_DROP_LIST; `from` is valid during the call */
    void ( *drop_callback )( void * context, int reason, const struct netcode_address_t * from, int bytes );
    int sequence_base;       /* NETCODE_SEQUENCE_BASE_... */
    int packet_pool_buffers; /* received packets that can be stored at once; 256: four a tick, unread for a second */
    int packet_quota;        /* received packets that may be queued; the default is the whole pool */
    /* work units that one update may spend: 1 for a datagram, 3 more for a decryption; 2048 */
    int update_budget;
    int batch_sends;          /* 1: packets are sent at update, at netcode_client_flush, or when 64 are waiting */
    int receive_buffer_bytes; /* requested from the system, halved until it is granted; 4 MiB */
    int send_buffer_bytes;    /* the same; 4 MiB */
    /*  seconds without an answer after which the token's next server is asked, too: the client connects to the first
        that answers. 0.25 by netcode_default_client_config; 0: one after another, as the standard says, but one that
        the system can not send to is not waited for */
    double next_server_seconds;
    /*  1: netcode_client_next_event reports what happens, payloads included, in its order;
        netcode_client_receive_packet is refused. 0: the other way round. Callbacks are called in both cases. While the
        events of two connections or attempts are unread, netcode_client_connect is refused, and ends the connection
        all the same. */
    int events;
};

/* A server's configuration. Fields that a client has too are described there. */
struct netcode_server_config_t {
    uint64_t protocol_id;                   /* unique to this game, and to each incompatible version of it */
    uint8_t private_key[NETCODE_KEY_BYTES]; /* shared only with the web backend */
    void * allocator_context;
    void * ( *allocate_function )( void * context, size_t bytes );
    void ( *free_function )( void * context, void * pointer );
    struct netcode_network_simulator_t * network_simulator;
    void * callback_context;
    /*  connected 1: a client got the slot. 0: it is disconnected, and its id, address, user data, reason and queued
        packets can still be read during the call */
    void ( *connect_disconnect_callback )( void * context, int client_index, int connected );
    void ( *send_loopback_packet_callback )( void * context, int client_index, const uint8_t * data, int bytes,
                                             uint64_t sequence );
    int override_send_and_receive;
    void ( *send_packet_override )( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes );
    int ( *receive_packet_override )( void * context, struct netcode_address_t * from, uint8_t * data, int capacity );
    /*  In seconds. Positive: tokens that expire before start + this are refused, as they may have been used before.
        0 or less: not used while sequences start at random, else 30. */
    int max_connect_token_lifetime;

    /* This library's additions. Zero is the default everywhere. */
    const struct netcode_socket_t * socket;
    uint64_t ( *unix_time )( void * context ); /* seconds since 1970; NULL: the system's clock */
    void ( *log_callback )( void * context, int level, const char * text );
    void ( *drop_callback )( void * context, int reason, const struct netcode_address_t * from, int bytes );
    int sequence_base;
    int packet_pool_buffers;  /* max( 1024, 2 x slots, min( 32 x slots, 4096 ) ) */
    int packet_quota;         /* received packets of one client that may be queued; 256 */
    int batch_sends;          /* 1: packets are sent at update, at netcode_server_flush, or when 64 are waiting */
    int receive_buffer_bytes; /* 4 MiB, or 4 KiB a slot where that is more */
    int send_buffer_bytes;    /* the same */
    /* bind this instead of the wildcard of the server address's family */
    const char * bind_address;
    const char * bind_address2; /* the same for the second address of a dual-stack server */
    /* this server's addresses in tokens, if they differ from its own (NAT, container) */
    const char * const * public_addresses;
    /* up to NETCODE_MAX_PUBLIC_ADDRESSES; port 0 means the bound port */
    int num_public_addresses;
    /* 1: a newer token with a connected client's id takes over its slot */
    int replace_existing_clients;
    /* handshakes that can be pending at once; max( 4 x slots, 1024 ) */
    int pending_handshakes;
    int consumed_tokens; /* used tokens that are remembered; max( 8 x slots, 1024 ) */
    /*  Called last before a client gets its slot: 1 accepts it, 0 denies it, NETCODE_ADMIT_LATER has no answer yet: the
        client gets none, asks again after a tenth of a second, and gives up after its token's timeout. For bans, and
        where several servers must agree: see examples/docs/THREADS.md. May be called again for the same client: 4 times
        at once, then ten a second. */
    int ( *admit_callback )( void * context, uint64_t client_id, const uint8_t * token_tag, uint64_t expire_timestamp );
    /*  Linux: -1 turns off the packet filter, which drops malformed datagrams and floods (9) before they are copied;
        they count as kernel_drops, not by reason. */
    int kernel_filter;
    /*  Linux: 1 lets several servers, each on its own thread, share one port; all of them must set it. The system
        assigns each client address to one of them. Elsewhere create fails if the port is in use. */
    int share_port;
    /* 1: a connected client whose address changes stays connected: see 16 in the manual */
    int roaming;
    /*  Called before a packet of a session that no client here has is dropped, because its address is unknown, or has
        another client: 1 if the application accepts it, for another server that shares the port (see
        examples/docs/THREADS.md). `data` is valid during the call. */
    int ( *stray_callback )( void * context, const struct netcode_address_t * from, const uint8_t * data, int bytes );
    /*  1: netcode_server_next_event reports what happens, payloads included, in its order;
        netcode_server_receive_packet is refused. 0: the other way round. Callbacks are called in both cases. A slot is
        used again at most once before the events of its clients are read. */
    int events;
};

/* Types of events: */
enum netcode_event_type_t {
    NETCODE_EVENT_NONE = 0,         /* there is no event */
    NETCODE_EVENT_CONNECTED = 1,    /* server: a client got a slot. client: it is connected */
    NETCODE_EVENT_PAYLOAD = 2,      /* a payload was received; free it */
    NETCODE_EVENT_DISCONNECTED = 3, /* server: the slot was emptied. client: the connection, or the attempt, ended */
    /* server, with `roaming`: the client has another address. Not reported if it disconnects before this is read */
    NETCODE_EVENT_MOVED = 4
};

/*  Events are reported in the order in which they happened. A payload's `data` belongs to the caller until
    netcode_server_free_packet / netcode_client_free_packet. */
struct netcode_event_t {
    int type;           /* NETCODE_EVENT_... */
    int client_index;   /* the slot; a client's as netcode_client_index has it */
    uint64_t session;   /* never repeats in one server or client object, whichever client has the slot */
    uint64_t client_id; /* server only */
    /* DISCONNECTED: the server's disconnect reason; on a client its new state, 0 or negative */
    int reason;
    int bytes;         /* PAYLOAD: its size, 1 to 1200 */
    uint8_t * data;    /* PAYLOAD; aligned to 16 bytes, and 8 readable bytes follow it */
    uint64_t sequence; /* PAYLOAD: the number of its packet; it grows with each packet of the sender */
};

/* Counts since the object was created. Bytes are those of datagrams, without IP and UDP headers. */
struct netcode_client_stats_t {
    uint64_t packets_sent[NETCODE_PACKET_TYPES];     /* by type */
    uint64_t packets_received[NETCODE_PACKET_TYPES]; /* accepted ones, by type */
    uint64_t bytes_sent;                             /* of every datagram that was sent */
    uint64_t bytes_received;                         /* of every datagram, dropped ones too */
    uint64_t datagrams_received;                     /* dropped ones too */
    uint64_t dropped[NETCODE_DROP_REASONS];          /* datagrams by reason, NETCODE_DROP_... */
    uint64_t connects;                               /* times that CONNECTED was reached */
    uint64_t disconnects;                            /* times that a connected client was disconnected */
    uint64_t send_errors;                            /* datagrams that the system refused to send */
    uint64_t receive_errors;                         /* errors that the system reported on receiving, ICMP among them */
    uint64_t kernel_drops;                           /* see netcode_socket_info_t */
    int last_socket_error;                           /* the system's number; 0 for none */
    int receive_buffer_bytes;                        /* what the system granted; 0 where it has no such buffer */
    int send_buffer_bytes;                           /* the same */
    int packets_queued;                              /* received and not yet read */
    int packets_held;                                /* read and not yet freed */
    /*  Of the current connection, or the last one. Round trips are measured once a second, update to update: what both
        sides wait for their next update counts. All of them are 0 until known, and with servers that do not answer. */
    double round_trip_seconds;           /* smoothed, as in RFC 6298 */
    double round_trip_lowest_seconds;    /* since it connected, moved to another IP address, or was rebound */
    double round_trip_variation_seconds; /* as in RFC 6298 */
    /* of the server's packets; those that did not arrive are lost once they have left the replay window, 320 later */
    uint64_t packets_lost;
    uint64_t packets_reordered; /* those that arrived after a newer one */
    double loss_share;          /* 0 to 1, of the last 256 that left the window */
    uint64_t rebinds;           /* times that the socket took a fresh local address: see netcode_client_rebind */
};

/* Counts since the server was created, of all clients. Fields that a client has too are described there. */
struct netcode_server_stats_t {
    uint64_t packets_sent[NETCODE_PACKET_TYPES];
    uint64_t packets_received[NETCODE_PACKET_TYPES];
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t datagrams_received;
    uint64_t dropped[NETCODE_DROP_REASONS];
    uint64_t connects;                                              /* clients that got a slot */
    uint64_t disconnects[NETCODE_SERVER_CLIENT_DISCONNECT_REASONS]; /* slots that were emptied, by reason */
    uint64_t send_errors;
    uint64_t receive_errors;
    uint64_t kernel_drops;
    int last_socket_error;
    int receive_buffer_bytes;
    int send_buffer_bytes;
    int packets_queued;
    int packets_held;
    uint64_t handshakes;         /* pending entries made */
    uint64_t handshakes_expired; /* that ended without a connection */
    uint64_t handshakes_evicted; /* that were replaced by newer ones */
    uint64_t backlogs;           /* updates that ended with work left for the next */
    int max_clients;             /* as netcode_server_max_clients; 0 while stopped */
    int clients;                 /* connected now, loopback clients included */
    int pending;                 /* handshakes pending now */
    int consumed;                /* used tokens remembered, expired ones included until their records are needed */
    uint64_t probes_sent;        /* keep-alives that measure a round trip, or ask for an answer from another address */
    uint64_t probes_answered;    /* those that came back in time */
    /* With `roaming`: see examples/docs/PATHS.md */
    uint64_t moves;           /* clients' addresses that changed */
    uint64_t path_candidates; /* addresses from which a connected client's packet came, and that were probed */
    uint64_t trials; /* packets from elsewhere that were opened, with the key of a client that may have sent them */
    uint64_t trials_refused; /* those that were not, because the client's rate limit or the update's was reached */
};

/* Counts of the client that is connected in one slot, since it connected. All zero if there is none. */
struct netcode_server_client_stats_t {
    uint64_t session;          /* 0: no client is connected */
    uint64_t client_id;        /* from its token */
    uint64_t packets_sent;     /* to it, of all types */
    uint64_t packets_received; /* accepted */
    uint64_t bytes_sent;       /* of the datagrams to it, without IP and UDP headers */
    uint64_t bytes_received;   /* of its datagrams that were accepted */
    uint64_t packets_dropped; /* payloads dropped: no buffer was free, or the queue was full (then before decryption) */
    double seconds_connected; /* since it got the slot */
    double seconds_silent;    /* since the last accepted packet */
    int packets_queued;       /* received from it and not yet read */
    int confirmed;            /* 1: it has sent a packet that only a connected client sends */
    int loopback;             /* 1: a client of this process */
    /* as in struct netcode_client_stats_t, of this client's packets */
    double round_trip_seconds;
    double round_trip_lowest_seconds;
    double round_trip_variation_seconds;
    uint64_t packets_lost;
    uint64_t packets_reordered;
    double loss_share;
    uint64_t moves; /* times that its address changed */
};

/* What the client's last attempt to connect met at one of the token's servers. */
struct netcode_client_report_server_t {
    struct netcode_address_t address; /* as the token has it */
    uint64_t requests_sent;           /* connection requests sent to it; 0: not tried yet */
    uint64_t responses_sent;          /* responses sent to its challenges */
    int challenged;                   /* 1: it answered with a challenge */
    int denied;                       /* 1: it replied that it is full */
    /* the system's error number of the last socket error, ICMP's "unreachable" included; 0 for none */
    int last_error;
    int errors; /* socket errors */
    /* since it was first asked, or again after another one failed, until it was chosen or given up */
    double seconds_waited;
};

/* Why can't I connect? Filled by netcode_client_report. */
struct netcode_client_report_t {
    int state;        /* NETCODE_CLIENT_STATE_... */
    int num_servers;  /* in the token */
    int server_index; /* the server that has answered; until then, the last of those that are asked */
    /* num_servers of them, in the token's order */
    struct netcode_client_report_server_t servers[NETCODE_MAX_SERVERS_PER_CONNECT];
    double token_seconds_left; /* by the client's clock; 1e300 for a token that never expires */
    char text[256];            /* one sentence for the player */
    uint64_t refused;          /* packets of the server at server_index that were dropped since the last accepted one */
    int refused_as;            /* why the last of them was dropped: NETCODE_DROP_... */
};

/* The public part of a connect token. */
struct netcode_connect_token_info_t {
    char version[14];          /* printable; "NETCODE 1.02" */
    uint64_t protocol_id;      /* the game's, and its version's */
    uint64_t create_timestamp; /* when it was minted: seconds since 1970 */
    uint64_t expire_timestamp; /* seconds since 1970; UINT64_MAX: never */
    int timeout_seconds;       /* 0 or less: no timeout */
    int num_server_addresses;  /* 1 to 32 */
    /* in the order in which clients try them */
    struct netcode_address_t server_addresses[NETCODE_MAX_SERVERS_PER_CONNECT];
};

struct netcode_client_t;
struct netcode_server_t;

typedef struct netcode_address_t netcode_address_t;
typedef struct netcode_datagram_t netcode_datagram_t;
typedef struct netcode_socket_info_t netcode_socket_info_t;
typedef struct netcode_socket_t netcode_socket_t;
typedef struct netcode_network_simulator_t netcode_network_simulator_t;
typedef struct netcode_client_config_t netcode_client_config_t;
typedef struct netcode_server_config_t netcode_server_config_t;
typedef struct netcode_event_t netcode_event_t;
typedef struct netcode_client_stats_t netcode_client_stats_t;
typedef struct netcode_server_stats_t netcode_server_stats_t;
typedef struct netcode_server_client_stats_t netcode_server_client_stats_t;
typedef struct netcode_client_report_server_t netcode_client_report_server_t;
typedef struct netcode_client_report_t netcode_client_report_t;
typedef struct netcode_connect_token_info_t netcode_connect_token_info_t;
typedef struct netcode_client_t netcode_client_t; /* opaque: netcode_client_create makes it */
typedef struct netcode_server_t netcode_server_t; /* opaque: netcode_server_create makes it */

/* ---- messages: selective reliability on top of a connection. Define NETCODE_MESSAGES to have them ---- */

#if defined( NETCODE_MESSAGES )

/*  How a message is delivered. Sequenced: one that arrives after a newer one of its channel is dropped. Ordered: in the
    order of sending, within its channel. */
#define NETCODE_MESSAGE_UNRELIABLE 0
#define NETCODE_MESSAGE_UNRELIABLE_SEQUENCED 1
#define NETCODE_MESSAGE_RELIABLE 2
#define NETCODE_MESSAGE_RELIABLE_ORDERED 3
#define NETCODE_MESSAGE_RELIABLE_SEQUENCED 4
#define NETCODE_MESSAGE_KINDS 5
#define NETCODE_MESSAGE_STREAM 5 /* in events: of netcode_messages_send_stream */

#define NETCODE_MESSAGES_CHANNELS 32         /* of one connection, at most */
#define NETCODE_MESSAGES_HEADER_BYTES 11     /* of a packet, at most */
#define NETCODE_MESSAGES_WHOLE_BYTES 1180    /* the largest message that is sent in one piece */
#define NETCODE_MESSAGES_FRAGMENT_BYTES 1168 /* of a larger message, in each of its fragments */
#define NETCODE_MESSAGES_MAX_BYTES 16777216  /* the largest max_message_bytes */

/* What netcode_messages_send returns. NETCODE_OK: it is queued. */
#define NETCODE_MESSAGES_FULL 0 /* no space in the send buffer: try again after acks, and after their events are read */
#define NETCODE_MESSAGES_TOO_LARGE ( -1 ) /* for a packet, for max_message_bytes or for the peer's */
/* no such channel or kind, bytes below 0 or without data, a time to live of an ordered one, no read_function */
#define NETCODE_MESSAGES_BAD_ARGUMENT ( -2 )
#define NETCODE_MESSAGES_BROKEN ( -3 )     /* see NETCODE_MESSAGES_EVENT_BROKEN; only a reset of both sides helps */
#define NETCODE_MESSAGES_NO_CHANNEL ( -4 ) /* the other side has fewer channels */

#define NETCODE_MESSAGES_CONGESTION_ADAPTIVE 0 /* follows the link: delays, and losses beyond its own */
#define NETCODE_MESSAGES_CONGESTION_FIXED 1    /* bytes_per_second, whatever is lost; small reliable ones come first */
#define NETCODE_MESSAGES_CONGESTION_NONE 2     /* neither window nor rate: for networks of your own */

/* Small reliable messages are sent again in the next flights, before anything is known to be lost. */
#define NETCODE_MESSAGES_REPEATS_ADAPTIVE 0 /* not, once, twice or five times: by losses and waits; at first once */
#define NETCODE_MESSAGES_REPEATS_ALWAYS 1   /* twice */
#define NETCODE_MESSAGES_REPEATS_NEVER 2    /* only when a packet was lost */

/* Types of events of messages: */
enum netcode_messages_event_type_t {
    NETCODE_MESSAGES_EVENT_NONE = 0,     /* there is no event */
    NETCODE_MESSAGES_EVENT_ACKED = 1,    /* the other side has it */
    NETCODE_MESSAGES_EVENT_LOST = 2,     /* its packet was lost; or dropped unsent, given up, cancelled, refused */
    NETCODE_MESSAGES_EVENT_SPURIOUS = 3, /* LOST was reported too early: the message has arrived */
    NETCODE_MESSAGES_EVENT_PROGRESS = 4, /* of a message in fragments: bytes_done of its bytes have arrived */
    NETCODE_MESSAGES_EVENT_BROKEN = 5    /* messages can not go on: `reason`. Reset both sides, or disconnect */
};

/* Reasons of BROKEN: */
enum netcode_messages_reason_t {
    NETCODE_MESSAGES_REASON_GIVEN_UP = 1,    /* an ordered message was: max_retries */
    NETCODE_MESSAGES_REASON_CHANNEL = 2,     /* a message for a channel that the other side does not have */
    NETCODE_MESSAGES_REASON_TOO_LARGE = 3,   /* an ordered message is larger than the other side accepts */
    NETCODE_MESSAGES_REASON_FORGED_ACK = 4,  /* the peer acknowledged a number that was skipped */
    NETCODE_MESSAGES_REASON_OUT_OF_STEP = 5, /* only one side was reset, or no packet could be used for 10 s */
    NETCODE_MESSAGES_REASON_VERSION = 6      /* the other side uses another version of this format */
};

/* Why a whole packet was dropped. X( name, sentence ) */
/* clang-format off */
#define NETCODE_MESSAGES_DROP_LIST( X )                                                              \
    X( NONE         , "accepted" )                                                                   \
    X( DUPLICATE    , "a packet of this number was here before" )                                    \
    X( OLD          , "its number is older than the 2048 that are remembered" )                      \
    X( WINDOW       , "its number, or a message's, is further ahead than a peer may go" )            \
    X( HEADER       , "shorter than a header, too long, or with wrong bits" )                        \
    X( ACK          , "it acknowledges packets that were never sent" )                               \
    X( FRAME        , "a frame is cut short, unknown, or not in its shortest form" )                 \
    X( CHANNEL      , "a message is for a channel that is not open here" )                           \
    X( FRAGMENT     , "a fragment does not match its message, or the message is larger than allowed" ) \
    X( LIMIT        , "the peer sends more than it was allowed, or allows what can not be" )         \
    X( NO_ROOM      , "its reliable messages do not fit now, or too many streams begin; the peer repeats" ) \
    X( BROKEN       , "the connection is broken until it is reset" )                                 \
    X( VERSION      , "the other side uses another version of this format" )
/* clang-format on */

#define NETCODE_MESSAGES_DROP_ENUM( name, sentence ) NETCODE_MESSAGES_DROP_##name,
/* NETCODE_MESSAGES_DROP_LIST as numbers. */
enum netcode_messages_drop_reason_t {
    NETCODE_MESSAGES_DROP_LIST( NETCODE_MESSAGES_DROP_ENUM ) NETCODE_MESSAGES_DROP_REASONS
};
#undef NETCODE_MESSAGES_DROP_ENUM

/* A message, to be sent or received. */
struct netcode_message_t {
    int channel;          /* 0 to 31; a loss on one never delays another */
    int kind;             /* NETCODE_MESSAGE_... */
    const uint8_t * data; /* received: valid until the next netcode_messages_receive, reset or destroy */
    int bytes;            /* 0 to max_message_bytes */
    double ttl_seconds;   /* sending: dropped if not sent by then; if reliable, given up if not acknowledged.
                             0 or less: unreliable 0.5 s, reliable for ever; ordered messages must not have one */
    uint64_t receipt;     /* sending: yours, returned by its events; 0: there are none */
};

/*  A reliable message of any size that is read from your memory and written to the other side's, without a copy. Its
    functions are called by generate_packet and process_packet, joined or not, and must not call functions of the same
    messages, except to send. */
struct netcode_messages_stream_t {
    int channel;      /* its priority is the stream's; its order is not kept */
    uint32_t bytes;   /* 0 to 2^32 - 1 */
    uint32_t tag;     /* yours: the other side gets it */
    uint64_t receipt; /* sending: yours, returned by events, and for netcode_messages_cancel_stream */
    void * context;   /* the functions get it */
    /* Sending: writes `bytes` bytes to `data`, those from `offset` on; the same bytes again if a packet is lost. Called
       until you have read ACKED or LOST. */
    void ( *read_function )( void * context, uint32_t offset, uint8_t * data, int bytes );
    /* Receiving: each byte comes once, in any order of offsets. 1, or 0 to end the stream: the sender gets LOST. */
    int ( *write_function )( void * context, uint32_t offset, const uint8_t * data, int bytes );
    /* Receiving, the last call: 1 if all bytes were written; 0 if the stream was cancelled, write_function has ended
       it, or the connection has ended. */
    void ( *end_function )( void * context, int complete );
};

/* Zero is the default everywhere. */
struct netcode_messages_config_t {
    void * allocator_context; /* yours: the first argument of the two functions below */
    void * ( *allocate_function )( void * context, size_t bytes ); /* NULL: malloc. Aligned as malloc's */
    void ( *free_function )( void * context, void * pointer );     /* NULL: free */
    int channels;                                                  /* 1 to 32; 32 */
    int max_message_bytes;    /* either way, up to NETCODE_MESSAGES_MAX_BYTES; 262144 */
    int send_buffer_bytes;    /* messages queued or not yet acknowledged, and what packets in flight have; by default
                                 2 x max_send_message_bytes, and 96 KiB or a quarter of one more; at least one of them
                                 and half of it below 128 KiB, 64 KiB below 512 KiB, else an eighth; 32 KiB in any
                                 case */
    int receive_buffer_bytes; /* messages that wait to be read or to be completed; the same for the receiving limit */
    int window_packets;       /* packets in flight, 16 to 4096, rounded up to a power of two; 1024, or fewer for a small
                                 send buffer: 64 for 32 KiB. Four messages in one piece for each, or 512 in all */
    int congestion;           /* NETCODE_MESSAGES_CONGESTION_... */
    int bytes_per_second;     /* of FIXED; 125000 */
    int max_retries;     /* sent again 1 to 60 times; then, if lost once more or not heard of for as long, given up;
                            0: never */
    int upgrade_large;   /* 1: an unreliable message that is too large for a packet is sent reliably. 0: refused */
    double ping_seconds; /* between PINGs, which measure `ping`, beside messages, too; 1.0; negative: never */
    uint8_t priorities[NETCODE_MESSAGES_CHANNELS]; /* of each channel: 0 is sent before 1 and so on */
    uint8_t weights[NETCODE_MESSAGES_CHANNELS];    /* shares among channels of one priority; 0 is 1 */
    int repeats;                                   /* NETCODE_MESSAGES_REPEATS_... */
    int least_bytes_per_second; /* up to it, messages in one piece leave at once, however bad the link seems; 16000 */
    int max_send_message_bytes, max_receive_message_bytes; /* one way; max_message_bytes */
    /* The other side sends a stream: set `context`, `write_function` and perhaps `end_function`, and return 1; or 0 to
       refuse it. NULL: all are refused */
    int ( *accept_stream_function )( void * context, struct netcode_messages_stream_t * stream );
    void * accept_stream_context; /* yours: its first argument */
    /* Receives what this object refuses of the game's calls, one line a second; NULL: the printf function */
    void ( *log_callback )( void * context, int level, const char * text );
    void * log_context; /* yours: its first argument */
};

/* What became of a message that was sent: of those with a receipt. */
struct netcode_messages_event_t {
    int type;                                 /* NETCODE_MESSAGES_EVENT_... */
    int channel;                              /* the message's */
    int kind;                                 /* the message's, or NETCODE_MESSAGE_STREAM */
    int bytes;                                /* the message's size */
    int bytes_done;                           /* of PROGRESS */
    uint64_t receipt;                         /* the message's */
    uint32_t stream_bytes, stream_bytes_done; /* of a stream; bytes and bytes_done end at 2^31 - 1 */
    int reason;                               /* of BROKEN: NETCODE_MESSAGES_REASON_... */
};

/* Counts since create or the last reset, and measurements. Seconds, bytes. */
struct netcode_messages_stats_t {
    uint64_t reliable_retries_total;   /* messages and fragments sent again: a packet was lost, or its ack overdue */
    uint64_t reliable_timeouts_total;  /* begun reliable messages given up: max_retries, time to live, cancelled */
    uint64_t dropped_duplicates_total; /* packets received twice */
    uint64_t dropped_old_total;        /* packets older than the window */
    uint64_t dropped_window_total;     /* packets, or their messages, beyond the window */
    uint64_t drops[NETCODE_MESSAGES_DROP_REASONS]; /* packets by reason, those three included */
    /* accepted ones are received; lost: not acknowledged in time; spuriously: of those, acknowledged later after all */
    uint64_t packets_sent, packets_received, packets_lost, packets_lost_spuriously;
    uint64_t bytes_sent, bytes_received;       /* of those packets */
    uint64_t messages_sent, messages_received; /* begun to be sent; handed to the application */
    uint64_t messages_repeated;                /* copies of small reliable messages that did not wait for a loss */
    uint64_t messages_duplicate;               /* received again: repeats and retries */
    uint64_t messages_outdated;                /* sequenced, received after a newer one */
    uint64_t messages_expired;  /* dropped here, unsent: too late, too large, without a channel, or cancelled */
    uint64_t messages_unstored; /* unreliable, dropped on arrival: the application reads too slowly */
    uint64_t probes;            /* packets sent because nothing was acknowledged for too long */
    double rtt, rtt_variation, rtt_min, rtt_latest, jitter; /* 0 until measured */
    double ping;                     /* the round trip and the other side's tick: the delay for a player */
    double loss_sent, loss_received; /* 0 to 1, of the latest packets */
    double send_rate, receive_rate;  /* bytes a second */
    /* how many bytes may be in flight: sent and not yet acknowledged or lost; and how many are */
    double congestion_window, bytes_in_flight;
    double send_buffer_used, receive_buffer_used; /* bytes of the two buffers that are in use */
    double credit;                                /* bytes of reliable messages that the other side would accept now */
};

/* What one channel has queued. Measured now. */
struct netcode_messages_channel_stats_t {
    int queued_messages;   /* of which nothing was sent yet */
    int queued_bytes;      /* of their contents */
    double queued_seconds; /* the age of the oldest of them */
};

struct netcode_messages_t;

typedef struct netcode_message_t netcode_message_t;
typedef struct netcode_messages_config_t netcode_messages_config_t;
typedef struct netcode_messages_stream_t netcode_messages_stream_t;
typedef struct netcode_messages_event_t netcode_messages_event_t;
typedef struct netcode_messages_stats_t netcode_messages_stats_t;
typedef struct netcode_messages_channel_stats_t netcode_messages_channel_stats_t;
typedef struct netcode_messages_t netcode_messages_t; /* opaque: netcode_messages_create makes it */

#endif

#if defined( __cplusplus ) && !defined( NETCODE_STATIC )
extern "C" {
#endif

/* ---- library ---- */

/*  Initializes libsodium and the system's sockets. Call it once before any other function; calls are counted.
    NETCODE_OK or NETCODE_ERROR. */
NETCODE_API int netcode_init( void );

/* Undoes one netcode_init. */
NETCODE_API void netcode_term( void );

/* The version of the implementation that was linked, "1.0.0". Static storage. */
NETCODE_API const char * netcode_version( void );

/*  Marks the packets of sockets that are created afterwards as urgent (DSCP EF, TOS byte 0xB8). If the system refuses,
    packets are not marked. */
NETCODE_API void netcode_enable_packet_tagging( void );

/*  Sets what is logged, NETCODE_LOG_LEVEL_...; by default errors only. Process-wide. Nothing is formatted for a level
    that is off. */
NETCODE_API void netcode_log_level( int level );

/*  Sets the function for log lines of objects without log_callback; by default printf. NULL restores it.
    Process-wide. */
NETCODE_API void netcode_set_printf_function( int ( *function )( const char *, ... ) );

/* Sets what a failed assert calls in debug builds; by default it prints and aborts. NULL restores it. Process-wide. */
NETCODE_API void netcode_set_assert_function( void ( *function )( const char * condition, const char * function,
                                                                  const char * file, int line ) );

/* The function that netcode_set_assert_function has set. */
#if defined( NETCODE_STATIC )
static void nc_assert_default( const char * condition, const char * function, const char * file, int line );
static void ( *netcode_assert_function )( const char *, const char *, const char *, int ) = nc_assert_default;
#else
extern NETCODE_API_DATA void ( *netcode_assert_function )( const char *, const char *, const char *, int );
#endif

/* If you define NETCODE_ASSERT( condition ), it replaces the assert function. */
#ifndef netcode_assert
#if defined( NETCODE_ASSERT )
#define netcode_assert( condition ) NETCODE_ASSERT( condition )
#elif defined( NDEBUG )
#define netcode_assert( condition ) ( (void) 0 )
#else
#define netcode_assert( condition )                                              \
    do {                                                                         \
        if ( !( condition ) )                                                    \
            netcode_assert_function( #condition, __func__, __FILE__, __LINE__ ); \
    } while ( 0 )
#endif
#endif

/* Fills `data` with `bytes` unpredictable bytes (libsodium's). */
NETCODE_API void netcode_random_bytes( uint8_t * data, int bytes );

/* Sleeps. Returns at once for 0, negative numbers and NaN. */
NETCODE_API void netcode_sleep( double seconds );

/*  Monotonic seconds from an arbitrary start. For examples and callers; the library reads it only as section 7
    describes. */
NETCODE_API double netcode_time( void );

/* "CONNECTED" and so on; "UNKNOWN" for a number that is no state. Static storage. */
NETCODE_API const char * netcode_client_state_name( int state );

/*  The name ("TOKEN_EXPIRED") and the sentence of a drop reason; "UNKNOWN" for a number that is none. Static
    storage. */
NETCODE_API const char * netcode_drop_reason_name( int reason );
NETCODE_API const char * netcode_drop_reason_text( int reason );

/* ---- address ---- */

/*  Reads "1.2.3.4:5", "1.2.3.4", "[::1]:5" or "::1" (port 0 where none is given; a link-local address may name its
    interface by number, "fe80::1%2"). Host names are not resolved: use the system's getaddrinfo first. NETCODE_OK or
    NETCODE_ERROR; on error the address is NETCODE_ADDRESS_NONE. */
NETCODE_API int netcode_parse_address( const char * text, struct netcode_address_t * address );

/*  Writes what netcode_parse_address reads; port 0 is left out; "NONE" for no address. `buffer` holds
    NETCODE_MAX_ADDRESS_STRING_LENGTH bytes and is returned. */
NETCODE_API char * netcode_address_to_string( const struct netcode_address_t * address, char * buffer );

/* 1 if both have the same address and port. */
NETCODE_API int netcode_address_equal( const struct netcode_address_t * a, const struct netcode_address_t * b );

/* ---- connect token ---- */

/*  Makes a connect token, with which one client can connect to one of up to 32 servers. Standard: Connect Token. The
    client sends to the public addresses; the server looks for its own among the internal ones (pass the same list for
    both where there is no NAT). `expire_seconds` negative: never expires; 0: expired already. `timeout_seconds` 0 or
    negative: no timeout. `user_data` has NETCODE_USER_DATA_BYTES bytes, NULL means zeros; `private_key`
    NETCODE_KEY_BYTES; `connect_token` receives NETCODE_CONNECT_TOKEN_BYTES. Reads the system's clock and random source.
    NETCODE_OK or NETCODE_ERROR: a count outside 1..32, an address that can not be read or has no port. For backends
    only: the private key must never reach a player's machine. */
NETCODE_API int netcode_generate_connect_token( int num_server_addresses, const char ** public_server_addresses,
                                                const char ** internal_server_addresses, int expire_seconds,
                                                int timeout_seconds, uint64_t client_id, uint64_t protocol_id,
                                                const uint8_t * private_key, uint8_t * user_data,
                                                uint8_t * connect_token );

/*  Reads the public part of a token. NETCODE_OK, or NETCODE_ERROR if a client would refuse it as invalid; `version` is
    always filled. */
NETCODE_API int netcode_connect_token_info( const uint8_t * connect_token, struct netcode_connect_token_info_t * info );

/* ---- client ---- */

/* Sets every field to its default. A config of zeros is the same. */
NETCODE_API void netcode_default_client_config( struct netcode_client_config_t * config );

/*  Makes a client that sends from `address` ("0.0.0.0" or "::" without a port for any; a simulator needs a port). All
    of its memory is allocated here. `config` NULL: the defaults. `time` is the caller's clock in seconds. NULL on
    error: see netcode_client_create_error. */
NETCODE_API struct netcode_client_t * netcode_client_create( const char * address,
                                                             const struct netcode_client_config_t * config,
                                                             double time );

/*  The same with an address of each family, in either order, so that it can connect to servers of both. Without the
    second one (NULL or empty), or where one of the two can not be opened (IPv6 may be switched off), it is
    netcode_client_create with the other; the log reports that at INFO. */
NETCODE_API struct netcode_client_t * netcode_client_create_dual( const char * address1, const char * address2,
                                                                  const struct netcode_client_config_t * config,
                                                                  double time );

/* Why the last create on this thread returned NULL: NETCODE_CLIENT_CREATE_ERROR_..., and its sentence. */
NETCODE_API int netcode_client_create_error( void );
NETCODE_API const char * netcode_client_create_error_text( int error );

/* The bytes that netcode_client_create will allocate. */
NETCODE_API size_t netcode_client_memory( const struct netcode_client_config_t * config );

/*  Disconnects if connected, closes the socket, wipes and frees everything, received packets included. NULL is
    ignored. */
NETCODE_API void netcode_client_destroy( struct netcode_client_t * client );

/*  Starts to connect with a token of NETCODE_CONNECT_TOKEN_BYTES, which is copied; a client that is connected or
    connecting disconnects first. It sends nothing itself: the next update starts the timeouts and sends the first
    request. A token that can not be read, or with which this client was connected before, leads to
    INVALID_CONNECT_TOKEN. Returns NETCODE_OK if it is connecting with this token, else NETCODE_ERROR. Standard: Client
    State Machine */
NETCODE_API int netcode_client_connect( struct netcode_client_t * client, const uint8_t * connect_token );

/*  Receives, sends, and moves the state machine, in that order. `time` in seconds on the caller's clock; steps
    backwards, NaN and infinity count as no step. Call it once a tick. */
NETCODE_API void netcode_client_update( struct netcode_client_t * client, double time );

/*  Notifies the server (10 redundant packets, at once) and goes to DISCONNECTED. Does nothing unless connecting or
    connected. */
NETCODE_API void netcode_client_disconnect( struct netcode_client_t * client );

/* The sequence that the next packet will carry. */
NETCODE_API uint64_t netcode_client_next_packet_sequence( struct netcode_client_t * client );

/* Sends a payload of 1..1200 bytes; any other size is refused and logged. Does nothing while not connected. */
NETCODE_API void netcode_client_send_packet( struct netcode_client_t * client, const uint8_t * data, int bytes );

/*  The oldest received payload, or NULL. It stays valid until freed or until the client is destroyed; it is aligned to
    16 bytes, and 8 readable bytes follow it. `sequence` may be NULL. Refused with config.events. */
NETCODE_API uint8_t * netcode_client_receive_packet( struct netcode_client_t * client, int * bytes,
                                                     uint64_t * sequence );
/* Frees a packet; NULL is ignored. */
NETCODE_API void netcode_client_free_packet( struct netcode_client_t * client, void * packet );

/* NETCODE_CLIENT_STATE_... */
NETCODE_API int netcode_client_state( struct netcode_client_t * client );

/*  The slot on the server, and how many slots it has, as last reported. The slot is below NETCODE_MAX_SLOTS; -1 while
    not connected, or if the server reported an impossible one (some send client ids). The count is at most
    NETCODE_MAX_SLOTS, and 0 while not connected. */
NETCODE_API int netcode_client_index( struct netcode_client_t * client );
NETCODE_API int netcode_client_max_clients( struct netcode_client_t * client );

/* The local port; 0 where there is none. */
NETCODE_API uint16_t netcode_client_get_port( struct netcode_client_t * client );

/*  The server that it is connected to or tried last; NETCODE_ADDRESS_NONE before the first connect. Valid until the
    client is destroyed. */
NETCODE_API struct netcode_address_t * netcode_client_server_address( struct netcode_client_t * client );

/*  Feeds one raw datagram, as if the socket had received it; but it is handled at once: the limit on an update's work
    does not apply. It is decrypted in place. */
NETCODE_API void netcode_client_process_packet( struct netcode_client_t * client, struct netcode_address_t * from,
                                                uint8_t * data, int bytes );

/*  Loopback: client and server are in one process; payloads pass through send_loopback_packet_callback and
    netcode_client_process_loopback_packet, unencrypted; without the callback they are dropped, which is logged once.
    The client must be disconnected, or the call is refused: NETCODE_ERROR. */
NETCODE_API int netcode_client_connect_loopback( struct netcode_client_t * client, int client_index, int max_clients );
NETCODE_API void netcode_client_disconnect_loopback( struct netcode_client_t * client );
NETCODE_API int netcode_client_loopback( struct netcode_client_t * client );
NETCODE_API void netcode_client_process_loopback_packet( struct netcode_client_t * client, const uint8_t * data,
                                                         int bytes, uint64_t sequence );

/*  Removes and returns the next event: 1, or 0 when there is none. Needs config.events. An attempt that fails has a
    DISCONNECTED without a CONNECTED, with the negative state as its reason. */
NETCODE_API int netcode_client_next_event( struct netcode_client_t * client, struct netcode_event_t * event );

/*  Gives up the socket's local address and takes the one that the system prefers now: call it where a phone's system
    reports a new network. Returns 1 if the socket has a fresh one, 0 if not, or if it can not do that. A client does
    the same by itself while it is connected: once a second while sending fails because its address or network is gone,
    or while it receives nothing, and every four seconds while the server answers no probes, if it has before. The
    connection stays with a server that has `roaming` on. */
NETCODE_API int netcode_client_rebind( struct netcode_client_t * client );

/* Sends what batch_sends holds back. */
NETCODE_API void netcode_client_flush( struct netcode_client_t * client );

/*  Sleeps until a datagram waits, something is due, or `seconds` have passed; at most 1 ms on a socket without `wait`,
    and not at all on the simulator. Call netcode_client_update afterwards. */
NETCODE_API void netcode_client_wait( struct netcode_client_t * client, double seconds );

/* Counts of what was sent, received and dropped, since the client was created. */
NETCODE_API void netcode_client_stats( struct netcode_client_t * client, struct netcode_client_stats_t * stats );

/* Why can't I connect? Everything that the client knows about it, and one sentence for the player. */
NETCODE_API void netcode_client_report( struct netcode_client_t * client, struct netcode_client_report_t * report );

/* ---- server ---- */

/* Sets every field to its default. */
NETCODE_API void netcode_default_server_config( struct netcode_server_config_t * config );

/*  Makes a server whose address in tokens is `address` (or any of config->public_addresses); it binds the wildcard
    address of that family at that port (or config->bind_address). Port 0 binds any free port, which tokens must then
    name. `config` NULL: the defaults. `time` is the caller's clock. NULL on error. */
NETCODE_API struct netcode_server_t * netcode_server_create( const char * address,
                                                             const struct netcode_server_config_t * config,
                                                             double time );

/*  The same with an address of each family, in either order; without the second one (NULL or empty) it is
    netcode_server_create, and so it is with the other where one can not be opened. The log reports that at ERROR: watch
    it, as a server with a wrong address starts without that. */
NETCODE_API struct netcode_server_t * netcode_server_create_dual( const char * address1, const char * address2,
                                                                  const struct netcode_server_config_t * config,
                                                                  double time );

/* Why the last create on this thread returned NULL: NETCODE_SERVER_CREATE_ERROR_..., and its sentence. */
NETCODE_API int netcode_server_create_error( void );
NETCODE_API const char * netcode_server_create_error_text( int error );

/* The bytes that netcode_server_create and netcode_server_start will allocate in total. */
NETCODE_API size_t netcode_server_memory( const struct netcode_server_config_t * config, int max_clients );

/* Stops, closes the socket, wipes and frees everything, received packets included. NULL is ignored. */
NETCODE_API void netcode_server_destroy( struct netcode_server_t * server );

/*  Opens `max_clients` slots (1..NETCODE_MAX_SLOTS); a running server is stopped first, and unread packets and events
    are dropped if the number of slots changes. The memory is allocated here: if that fails, the server stays stopped
    and logs it. Returns NETCODE_OK if it runs, else NETCODE_ERROR; in a callback OK, and it starts when the outermost
    call returns, unless it is stopped or destroyed before. */
NETCODE_API int netcode_server_start( struct netcode_server_t * server, int max_clients );

/* Disconnects all clients and closes the slots. Used tokens stay remembered, received packets stay valid. */
NETCODE_API void netcode_server_stop( struct netcode_server_t * server );

/*  Receives, sends keep-alives, ends what timed out, in that order, within the budget of the config. See
    netcode_client_update. */
NETCODE_API void netcode_server_update( struct netcode_server_t * server, double time );

/* Is it started; how many slots has it; how many clients are connected, loopback clients included? 0 while stopped. */
NETCODE_API int netcode_server_running( struct netcode_server_t * server );
NETCODE_API int netcode_server_max_clients( struct netcode_server_t * server );
NETCODE_API int netcode_server_num_connected_clients( struct netcode_server_t * server );

/*  Is there a client in this slot? This and the other queries about a slot accept any index from 0 on: past the last
    slot no client is connected. A call that acts on such a slot is a mistake, logged once a second. */
NETCODE_API int netcode_server_client_connected( struct netcode_server_t * server, int client_index );

/*  Why the slot's last client was disconnected, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_...; NONE while one is
    connected. */
NETCODE_API int netcode_server_client_disconnect_reason( struct netcode_server_t * server, int client_index );

/* 1 if a loopback client of this process has the slot. */
NETCODE_API int netcode_server_client_loopback( struct netcode_server_t * server, int client_index );

/* 0 and NULL if no client is connected. The pointers stay valid until the slot is emptied. */
NETCODE_API uint64_t netcode_server_client_id( struct netcode_server_t * server, int client_index );
NETCODE_API struct netcode_address_t * netcode_server_client_address( struct netcode_server_t * server,
                                                                      int client_index );
NETCODE_API void * netcode_server_client_user_data( struct netcode_server_t * server, int client_index );

/* The number of this client's session, never used again; 0 if no client is connected. Events contain it. */
NETCODE_API uint64_t netcode_server_client_session( struct netcode_server_t * server, int client_index );

/* Notifies the client (10 redundant packets, at once) and empties the slot; or all slots, except loopback clients'. */
NETCODE_API void netcode_server_disconnect_client( struct netcode_server_t * server, int client_index );
NETCODE_API void netcode_server_disconnect_all_clients( struct netcode_server_t * server );

/* The sequence that the next packet to this client will carry; 0 if no client is connected. */
NETCODE_API uint64_t netcode_server_next_packet_sequence( struct netcode_server_t * server, int client_index );

/* Sends a payload of 1..1200 bytes; any other size is refused and logged. Does nothing if no client is connected. */
NETCODE_API void netcode_server_send_packet( struct netcode_server_t * server, int client_index, const uint8_t * data,
                                             int bytes );

/* The same, but only if the slot still belongs to that session. */
NETCODE_API void netcode_server_send_packet_to_session( struct netcode_server_t * server, int client_index,
                                                        uint64_t session, const uint8_t * data, int bytes );

/* Sends a payload to all connected clients except `except_client_index` (-1: to all). */
NETCODE_API void netcode_server_broadcast( struct netcode_server_t * server, const uint8_t * data, int bytes,
                                           int except_client_index );

/*  The oldest payload of this client, or NULL. It stays valid until freed or until the server is destroyed, even if the
    client disconnects and the slot is reused; it is aligned to 16 bytes, and 8 readable bytes follow it. What was
    queued when the client disconnected can be read until the slot is used again, or until others need the buffers. NULL
    while the server is stopped, and with config.events. */
NETCODE_API uint8_t * netcode_server_receive_packet( struct netcode_server_t * server, int client_index, int * bytes,
                                                     uint64_t * sequence );
NETCODE_API void netcode_server_free_packet( struct netcode_server_t * server, void * packet );

/*  Feeds one raw datagram, as if the socket had received it; but it is handled at once, whatever that costs: the limits
    on an update's work (9) do not apply. It is decrypted in place. */
NETCODE_API void netcode_server_process_packet( struct netcode_server_t * server, struct netcode_address_t * from,
                                                uint8_t * data, int bytes );

/*  Loopback: a client in the same process gets a slot without a handshake; see netcode_client_connect_loopback.
    `user_data` may be NULL. Returns NETCODE_OK, or NETCODE_ERROR if the slot or the id is in use. */
NETCODE_API int netcode_server_connect_loopback_client( struct netcode_server_t * server, int client_index,
                                                        uint64_t client_id, const uint8_t * user_data );
NETCODE_API void netcode_server_disconnect_loopback_client( struct netcode_server_t * server, int client_index );
NETCODE_API void netcode_server_process_loopback_packet( struct netcode_server_t * server, int client_index,
                                                         const uint8_t * data, int bytes, uint64_t sequence );

/* The port of the server's first address; the actual one if port 0 was requested. */
NETCODE_API uint16_t netcode_server_get_port( struct netcode_server_t * server );

/*  Removes and returns the next event of all clients, in the order in which they happened: 1, or 0 when there is none.
    Needs config.events. Payloads of a slot that is joined to messages are not events. */
NETCODE_API int netcode_server_next_event( struct netcode_server_t * server, struct netcode_event_t * event );

/* Sends what batch_sends holds back. */
NETCODE_API void netcode_server_flush( struct netcode_server_t * server );

/*  Sleeps until a datagram waits, something is due, or `seconds` have passed; it may return earlier, after a second for
    example, at most 1 ms on a socket without `wait`, and not at all on the simulator. Call netcode_server_update
    afterwards. */
NETCODE_API void netcode_server_wait( struct netcode_server_t * server, double seconds );

/*  Replaces the private keys: `count` (1..4) keys of NETCODE_KEY_BYTES, one behind the other, tried in this order.
    Effective at once: handshakes under a removed key end, connected clients stay connected. NETCODE_OK or
    NETCODE_ERROR. */
NETCODE_API int netcode_server_set_private_keys( struct netcode_server_t * server, const uint8_t * keys, int count );

/* Counts of what was sent, received and dropped, of connects and disconnects, since the server was created. */
NETCODE_API void netcode_server_stats( struct netcode_server_t * server, struct netcode_server_stats_t * stats );
/* The same for the client in one slot; all zero if no client is connected. */
NETCODE_API void netcode_server_client_stats( struct netcode_server_t * server, int client_index,
                                              struct netcode_server_client_stats_t * stats );

/* ---- network simulator ---- */

/* NULL functions: malloc and free. Returns NULL if the allocation fails. */
NETCODE_API struct netcode_network_simulator_t * netcode_network_simulator_create(
    void * allocator_context, void * ( *allocate_function )( void *, size_t ),
    void ( *free_function )( void *, void * ) );
/* Call it after everything that uses it is destroyed. NULL is ignored. */
NETCODE_API void netcode_network_simulator_destroy( struct netcode_network_simulator_t * simulator );

/* Forgets the datagrams in flight and starts the random numbers again from `seed`. */
NETCODE_API void netcode_network_simulator_reset( struct netcode_network_simulator_t * simulator );

/* Sets its time; datagrams that are due can then be received. The work grows with the datagrams in flight. */
NETCODE_API void netcode_network_simulator_update( struct netcode_network_simulator_t * simulator, double time );

/*  A socket on the simulator at `address` (with a port; one socket an address), for clients, servers and tests.
    Datagrams that it sends have that address as their sender. NETCODE_OK or NETCODE_ERROR. */
NETCODE_API int netcode_network_simulator_socket( struct netcode_network_simulator_t * simulator,
                                                  const struct netcode_address_t * address,
                                                  struct netcode_socket_t * socket );

/*  Moves the socket at `from` to `to`, as a NAT does that gives another port: what is in flight to `from` is lost.
    at_rebind 1: as a network that is gone: until its owner calls the socket's rebind, it neither sends nor receives.
    NETCODE_OK, or NETCODE_ERROR if there is no such socket, or `to` has one. */
NETCODE_API int netcode_network_simulator_move( struct netcode_network_simulator_t * simulator,
                                                const struct netcode_address_t * from,
                                                const struct netcode_address_t * to, int at_rebind );

/* ---- messages ---- */

#if defined( NETCODE_MESSAGES )

/* All zeros, which are the defaults. */
NETCODE_API void netcode_default_messages_config( struct netcode_messages_config_t * config );

/* The bytes that create will allocate in total; 0 if the config is invalid. */
NETCODE_API size_t netcode_messages_memory( const struct netcode_messages_config_t * config );

/*  One object for one connection, on either side. NULL if the config is invalid or the allocation fails. config NULL:
    defaults. `time` as for netcode_client_update. */
NETCODE_API struct netcode_messages_t * netcode_messages_create( const struct netcode_messages_config_t * config,
                                                                 double time );
NETCODE_API void netcode_messages_destroy( struct netcode_messages_t * messages );

/*  For the next connection: as after create, measurements included. Messages that wait for a receipt are reported as
    LOST; those events can be read afterwards. */
NETCODE_API void netcode_messages_reset( struct netcode_messages_t * messages, double time );

/* Queues a copy. NETCODE_OK, or why not: NETCODE_MESSAGES_FULL ... */
NETCODE_API int netcode_messages_send( struct netcode_messages_t * messages, int channel, int kind, const void * data,
                                       int bytes );
NETCODE_API int netcode_messages_send_message( struct netcode_messages_t * messages,
                                               const struct netcode_message_t * message );

/*  Queues a stream, reliably: on the other side accept_stream_function gets it. Events report PROGRESS, and ACKED or
    LOST. NETCODE_OK, or why not. */
NETCODE_API int netcode_messages_send_stream( struct netcode_messages_t * messages,
                                              const struct netcode_messages_stream_t * stream );

/*  Ends the streams that are sent with this receipt, begun or not: LOST is their event. NETCODE_OK, or NETCODE_ERROR if
    there is none. */
NETCODE_API int netcode_messages_cancel_stream( struct netcode_messages_t * messages, uint64_t receipt );

/* The next message for the application: 1, or 0 where there is none. */
NETCODE_API int netcode_messages_receive( struct netcode_messages_t * messages, struct netcode_message_t * message );

/* The next event of messages that have receipts: 1, or 0 when there is none. */
NETCODE_API int netcode_messages_event( struct netcode_messages_t * messages, struct netcode_messages_event_t * event );

/*  Sets the time, and does nothing else: call it before you process packets, so that round trips are measured to the
    moment at which their acks were received. The functions for joined objects below do. */
NETCODE_API void netcode_messages_set_time( struct netcode_messages_t * messages, double time );

/*  Reads a packet that the other side's generate_packet wrote. `packet` is not used after the call.
    NETCODE_MESSAGES_DROP_NONE, or why the whole packet was dropped. */
NETCODE_API int netcode_messages_process_packet( struct netcode_messages_t * messages, const uint8_t * packet,
                                                 int bytes );

/*  Writes the next packet to be sent and returns its bytes, or 0 if nothing is to be sent now: call it until then.
    `capacity` at least NETCODE_MAX_PACKET_SIZE. Small messages wait until update or flush, to share packets. */
NETCODE_API int netcode_messages_generate_packet( struct netcode_messages_t * messages, uint8_t * packet,
                                                  int capacity );

/* Queued messages are sent with the next packets, full or not. */
NETCODE_API void netcode_messages_flush( struct netcode_messages_t * messages );

/* Sets the time, does what is due, flushes. Call it after the received packets were processed. */
NETCODE_API void netcode_messages_update( struct netcode_messages_t * messages, double time );

/* The time at which update and generate_packet have work to do if nothing arrives; an hour from now at most. */
NETCODE_API double netcode_messages_next_deadline( struct netcode_messages_t * messages );

/* Counts and measurements. */
NETCODE_API void netcode_messages_stats( struct netcode_messages_t * messages,
                                         struct netcode_messages_stats_t * stats );
/* The same for one channel: its queue. */
NETCODE_API void netcode_messages_channel_stats( struct netcode_messages_t * messages, int channel,
                                                 struct netcode_messages_channel_stats_t * stats );

/* Of NETCODE_MESSAGES_DROP_LIST: the name, and a sentence. "UNKNOWN" for other numbers. */
NETCODE_API const char * netcode_messages_drop_reason_name( int reason );
NETCODE_API const char * netcode_messages_drop_reason_text( int reason );

/*  Joined to a client: call the first after netcode_client_update and the second at the end of the tick. They read all
    payloads of the client, and reset the messages when its connection has ended; what is queued after that, or before
    the first connection, waits for the next one. Messages received last can be read until the next call. What the
    client, the server or a stream calls during the call must not reset or destroy the messages. */
NETCODE_API void netcode_messages_pull_from_client( struct netcode_messages_t * messages,
                                                    struct netcode_client_t * client, double time );
NETCODE_API void netcode_messages_push_to_client( struct netcode_messages_t * messages,
                                                  struct netcode_client_t * client, double time );

/*  Joined to a server's slot: the same, for the client in the slot. From the first call on, until the server stops,
    payloads of this slot are not events: if you handle only CONNECTED and DISCONNECTED, there is nothing to free.
    Messages received when a client disconnected can be read, after its DISCONNECTED, until the next call; if another
    client has the slot by then, they are freed. The messages are reset whenever the session changes or ends: what was
    queued for one client never goes to the next. */
NETCODE_API void netcode_messages_pull_from_server( struct netcode_messages_t * messages,
                                                    struct netcode_server_t * server, int client_index, double time );
NETCODE_API void netcode_messages_push_to_server( struct netcode_messages_t * messages,
                                                  struct netcode_server_t * server, int client_index, double time );

#endif

#if defined( __cplusplus ) && !defined( NETCODE_STATIC )
}
#endif

#endif /* NETCODE_SINGLE_FILE_H */

/* ================================================================================================================
    IMPLEMENTATION

    Rooms are in dependency order: each uses only the ones above it, and there are no forward declarations, so that
   the file cut at any banner compiles. Names are nc_<room, or a part of it>_<verb>; everything private is static.
   ================================================================================================================ */

#if defined( NETCODE_IMPLEMENTATION ) && !defined( NETCODE_IMPLEMENTED )
#define NETCODE_IMPLEMENTED

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
#ifndef NOMINMAX
#define NOMINMAX
#define NC_NOMINMAX
#endif
#ifndef NETCODE_NO_SOCKETS
#if defined( __MINGW32__ ) && !defined( _WINSOCK2API_ )
#undef _WINSOCKAPI_ /* if windows.h has included winsock.h, MinGW accepts both, but warns */
#elif defined( SOCKET_ERROR ) && !defined( _WINSOCK2API_ )
#error "windows.h before netcode.h has brought winsock.h: define WIN32_LEAN_AND_MEAN or include winsock2.h before it"
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#endif
#include <windows.h>
#if defined( NC_NOMINMAX )
#undef NOMINMAX
#undef NC_NOMINMAX
#endif
#else
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#ifndef NETCODE_NO_SOCKETS
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined( __linux__ ) && !defined( SO_RXQ_OVFL )
#include <asm/socket.h>
#endif
#endif
#endif

/* The first bytes of connection requests and tokens, with the NUL. Standard: General Conventions */
#define NC_VERSION_INFO "NETCODE 1.02"
#define NC_VERSION_INFO_OLD "NETCODE 1.01"

/* Every number that limits something. */
enum nc_limit_t {
    NC_VERSION_BYTES = 13,
    NC_PRIVATE_TOKEN_BYTES = 1024,
    NC_TOKEN_NONCE_BYTES = 24,
    NC_TOKEN_TAG_BYTES = NETCODE_MAC_BYTES,
    NC_CHALLENGE_BYTES = 300, /* sealed. Standard: Challenge Token */
    NC_CHALLENGE_BIND_BYTES = 20,
    NC_REQUEST_BYTES = 1078, /* 1 + 13 + 8 + 8 + 24 + 1024: the standard's 1062 is version 1.01's */
    NC_REQUEST_BYTES_OLD = 1062,
    NC_MIN_SEALED_BYTES = 18,
    NC_KEEP_ALIVE_BYTES = 31,     /* 1 + 6 + 8 + 16; 2 more from sequence 2^48 on */
    NC_MAX_DATAGRAM_BYTES = 1225, /* 1 + 8 + 1200 + 16 */
    NC_BUFFER_HEADER_BYTES = 64,  /* in front of a payload */
    NC_USUAL_HEADER_BYTES = 7,    /* of a packet: a prefix byte, and the six bytes of this library's own sequences */
    NC_BUFFER_CAPACITY = 1300,    /* the capacity that override callbacks get, as in the reference library */
    NC_BUFFER_STRIDE = 1408,      /* header, capacity and the 8 readable bytes behind it, in whole cache lines */
    NC_OUT_STRIDE = 1232,
    NC_RECEIVE_BATCH = 32,
    NC_SEND_BATCH = 64,
    NC_SENDS_WITHIN_SENDS = 8,
    NC_DISCONNECT_PACKETS = 10,
    NC_CLIENT_POOL = 256,
    NC_CLIENT_BUDGET = 2048,
    NC_CLIENT_TOKENS_REMEMBERED = 16,
    NC_SERVER_QUOTA = 256,
    /*  The work units of one update for each 1/60 s since the last one, up to NC_SERVER_MOST_SCALE of them; what each
        slot above NC_SERVER_BUDGET_SLOTS adds; and the parts of it. Decision 6 */
    NC_SERVER_MOST_SCALE = 6,
    NC_SERVER_BUDGET = 1100,
    NC_SERVER_FURTHER = 8192,    /* more units, while receiving has taken less real time than this: then an update, */
    NC_SERVER_RECEIVE_US = 1250, /* with timers and replies, stays below 2 ms */
    NC_SERVER_BUDGET_SLOTS = 64,
    NC_SERVER_BUDGET_PER_SLOT = 16,
    NC_SERVER_TOKENS = 1536,        /* units for opening connect tokens, one more for each further slot */
    NC_SERVER_SPARE = 192,          /* packets opened beyond their clients' shares, the same; unused ones are kept, */
    NC_SERVER_SPARE_MOST = 1024,    /* up to this many, four more for each further slot */
    NC_SERVER_SHARE = 16,           /* packets opened of each client, whatever the others do; they cost no units */
    NC_FLOODERS = 36,               /* addresses counted while more arrives than an update can receive: */
    NC_FLOODERS_UNKNOWN = 4,        /* so many of them are unknown, the others clients', */
    NC_FLOODERS_LIMITED = 8,        /* of which so many can be limited */
    NC_FLOODER_RATE = 720,          /* those that send at least this many a second, */
    NC_FLOODER_LEAST = 240,         /* or this many where a small buffer hides how many came, */
    NC_FLOODER_PART = 16,           /* and one of so many */
    NC_FLOOD_BITS = 8192,           /* in which a connected address has one */
    NC_FLOOD_SHIFT = 19,            /* 32 bits to one of those */
    NC_FLOOD_MAX_CLOSED = 4,        /* of requests and responses of unknown addresses one of 64 passes, at the least */
    NC_FLOOD_JUDGE_MS = 99,         /* of counting make a judgement; */
    NC_FLOOD_PULSE_SECONDS = 10,    /* counts are kept for so long after an overrun, and started again */
    NC_FLOOD_FILTER_SECONDS = 1,    /* so often while there is a filter */
    NC_FLOOD_HOLD_SECONDS = 4,      /* until less may be filtered; twice as long after each relapse, */
    NC_FLOOD_MAX_HOLD_SECONDS = 64, /* up to this, after which a flood is a new one */
    NC_SEQUENCE_NEAR_BITS = 16,     /* sequences so far ahead are a client's own: others do not know them */
    NC_SERVER_TIMERS = 4096, /* units for keep-alives and timeouts, NC_SERVER_TIMERS_PER_SLOT for each further slot */
    NC_SERVER_TIMERS_PER_SLOT = 2,
    NC_PENDING_PER_SLOT = 4,
    NC_PENDING_LEAST = 1024,
    NC_USED_PER_SLOT = 8,
    NC_USED_LEAST = 1024,
    NC_USED_PER_ID = 16, /* of those that expire */
    NC_POOL_PER_SLOT = 32,
    NC_POOL_LEAST_PER_SLOT = 2,
    NC_POOL_LEAST = 1024, /* a second's payloads of 17 clients at 60 Hz */
    NC_POOL_MOST = 4096,  /* or more by NC_POOL_LEAST_PER_SLOT */
    NC_BIND_TRIES = 8,
    NC_SEND_TRIES = 3,
    NC_SOCKET_FAILURES = 8,   /* of a receive, which ends then, */
    NC_RECEIVE_FAILURES = 32, /* and in a row of an update's, which receives no more */
    NC_SOCKET_REFUSALS = 3,   /* failures in a row of an optional system call, after which it is not made any more */
    NC_COST_CHEAP = 1,
    NC_COST_OPEN = 3,     /* in addition, a decryption */
    NC_COST_REQUEST = 15, /* in addition, a private key that a request is tried with */
    NC_COST_LARGE = 2,    /* a request: it is large, and hashed */
    NC_COST_SLOT = 16,    /* a slot is filled or emptied */
    NC_ADDRESSES_PER_TOKEN = 4,
    NC_TOKENS_PER_ADDRESS = 4,
    NC_HANDSHAKES_PER_ID = 4,
    NC_RESPONSES_PER_UPDATE = 64, /* opened for one handshake */
    NC_ANSWER_BURST = 4,
    NC_ANSWER_MILLISECONDS = 100, /* between the following ones */
    NC_PENDING_PROTECTED = 500,   /* milliseconds in which a handshake is not evicted for copies of its request */
    NC_HANDSHAKE_SECONDS = 10,
    NC_UNCONFIRMED_SECONDS = 60,
    NC_SOCKET_BUFFER_BYTES = 4 * 1024 * 1024,
    NC_SOCKET_BUFFER_PER_SLOT = 4096, /* requested if the sum for all slots is more than that */
    NC_PROBE_MS = 1000,               /* between two probes */
    NC_PROBE_VALID_MS = 2000,         /* after which its echo is nothing */
    NC_PROBE_ANSWER_BURST =
        4, /* probes of the other side that are answered at once, then one each NC_PROBE_ANSWER_MS */
    NC_PROBE_ANSWER_MS = 50,
    NC_CLIENT_REBIND_MS = 1000, /* of silence, and between two rebinds of a client by itself */
    NC_PATH_CANDIDATES = 3,     /* addresses of a client that are being validated */
    NC_PATH_ENDS_MS = 2000,     /* without a newer packet a candidate ends */
    NC_PATH_PROTECTED_MS = 250, /* from its first packet on a candidate is not evicted */
    NC_PATH_TAKEN_MS = 250,     /* after a client's last packet its address is still its own */
    NC_PATH_PROBES = 8,         /* of a candidate that are remembered */
    NC_PATH_SPACING_MS = 15,    /* between two of them */
    NC_PATH_PROBE_BURST = 6,    /* to all candidates of a client at once, then one each NC_PATH_PROBE_MS */
    NC_PATH_PROBE_MS = 250,
    NC_PATH_TRIALS = 2,      /* clients with whose keys a packet from elsewhere is opened */
    NC_PATH_COMPARED = 8,    /* clients that are compared for that */
    NC_PATH_TRIAL_BURST = 8, /* with a client's key at once, then one each NC_PATH_TRIAL_MS */
    NC_PATH_TRIAL_MS = 125,
    NC_PATH_AHEAD = 1 << 16,          /* a packet from elsewhere is at most so far ahead of the newest one */
    NC_PATH_LEAST_SEQUENCE = 1 << 20, /* below it, too many clients have the same sequences */
    NC_LOG_BYTES = 512
};

static double nc_seconds( int milliseconds )
{
    return (double) milliseconds / 1000.0;
}

/* The result of lookups that find no entry. */
#define NC_NONE 0xFFFFFFFFu

/* ================================================================================================================
    ROOM 1: PLATFORM
    What does the operating system provide, and how are the caller's mistakes reported?
    Uses: the C library. Invariant: the only mutable globals of the library are here.
   ================================================================================================================ */

#if defined( __cplusplus )
#define NC_THREAD_LOCAL thread_local
#elif defined( __GNUC__ ) || defined( __clang__ )
#define NC_THREAD_LOCAL __thread
#elif defined( _MSC_VER )
#define NC_THREAD_LOCAL __declspec( thread )
#else
#define NC_THREAD_LOCAL
#endif

static int nc_init_count;
static int nc_log_threshold = NETCODE_LOG_LEVEL_ERROR;
static int nc_packet_tagging;
static NC_THREAD_LOCAL int nc_client_error;
static NC_THREAD_LOCAL int nc_server_error;
static int ( *nc_printf_function )( const char *, ... ) = printf;

static void nc_assert_default( const char * condition, const char * function, const char * file, int line )
{
    fprintf( stderr, "netcode: assert failed: ( %s ), function %s, file %s, line %d\n", condition, function, file,
             line );
    abort();
}

#if !defined( NETCODE_STATIC )
void ( *netcode_assert_function )( const char *, const char *, const char *, int ) = nc_assert_default;
#endif

/*  For log lines that input from the network or the caller's mistakes can cause: one a second by the object's clock;
    the others are counted. */
typedef struct {
    double next; /* when the next line may be written */
    uint64_t suppressed;
} nc_log_limit_t;

typedef struct {
    void ( *callback )( void * context, int level, const char * text );
    void * context;
    const double * now; /* of the object's clock */
    nc_log_limit_t refusals;
} nc_log_t;

/* Prefetching of data; functions that are always inlined, and functions that never are. */
#if defined( __GNUC__ ) || defined( __clang__ )
#define NC_PREFETCH( place ) __builtin_prefetch( place )
#define NC_INLINE inline __attribute__( ( always_inline ) )
#define NC_COLD __attribute__( ( noinline, cold ) )
#else
#define NC_PREFETCH( place ) ( (void) ( place ) )
#define NC_INLINE inline
#define NC_COLD
#endif

/* The compiler checks a log line's format against its arguments; MinGW has several printfs. */
#if defined( __MINGW_PRINTF_FORMAT )
#define NC_LIKE_PRINTF __attribute__( ( format( __MINGW_PRINTF_FORMAT, 3, 4 ) ) )
#elif defined( __GNUC__ )
#define NC_LIKE_PRINTF __attribute__( ( format( printf, 3, 4 ) ) )
#else
#define NC_LIKE_PRINTF
#endif

/* Checks at compile time what comments say about layouts. */
#if defined( __cplusplus )
#define NC_STATIC_ASSERT( name, condition ) static_assert( condition, #name )
#else
#define NC_STATIC_ASSERT( name, condition ) typedef char nc_static_##name[( condition ) ? 1 : -1]
#endif

#define NC_LOG_ON( level ) ( ( level ) <= nc_log_threshold )

/* Names, addresses and version strings can come from an attacker: only printable ASCII is logged. */
static void nc_log_escape( char * out, size_t out_bytes, const char * text )
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;
    for ( ; *text && at + 5 < out_bytes; text++ ) {
        unsigned char letter = (unsigned char) *text;
        if ( letter >= 0x20 && letter < 0x7f ) {
            out[at++] = (char) letter;
            continue;
        }

        out[at++] = '\\';
        out[at++] = 'x';
        out[at++] = hex[letter >> 4];
        out[at++] = hex[letter & 15];
    }
    out[at] = 0;
}

NC_LIKE_PRINTF static void nc_log_write( const nc_log_t * log, int level, const char * format, ... )
{
    char text[NC_LOG_BYTES];
    char line[NC_LOG_BYTES * 2];
    va_list arguments;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    nc_log_escape( line, sizeof( line ), text );

    if ( log && log->callback )
        log->callback( log->context, level, line );
    else
        nc_printf_function( level == NETCODE_LOG_LEVEL_ERROR ? "error: %s\n" : "%s\n", line );
}

/* Arguments are not evaluated for a level that is off. */
#define NC_LOG( log, level, ... )                                        \
    do {                                                                 \
        if ( NC_LOG_ON( NETCODE_LOG_LEVEL_##level ) )                    \
            nc_log_write( log, NETCODE_LOG_LEVEL_##level, __VA_ARGS__ ); \
    } while ( 0 )

static NC_COLD void nc_log_mistake( const char * function, const char * condition )
{
    NC_LOG( NULL, ERROR, "%s failed: requires %s", function, condition );
}

/* A caller's mistake: an assert in debug builds, a logged refusal in all. */
#define NC_CHECK( condition, result )               \
    do {                                            \
        netcode_assert( condition );                \
        if ( !( condition ) ) {                     \
            nc_log_mistake( __func__, #condition ); \
            return result;                          \
        }                                           \
    } while ( 0 )

#define NC_NOTHING /* the result of a void function */

/* Larger sizes of a config are reduced to this: twice one still fits into 32 bits, and no machine needs more. */
enum { NC_CONFIG_MOST = 1 << 24 };

static int nc_config_limit( int number )
{
    return number < NC_CONFIG_MOST ? number : NC_CONFIG_MOST;
}

static int nc_number_is_finite( double x )
{
    return x > -1e300 && x < 1e300; /* false for NaN */
}

/* The library's own clock: it adds up only the caller's forward steps, so that no `time` can break it. */
typedef struct {
    double now;  /* seconds since its creation */
    double last; /* the caller's last time */
} nc_clock_t;

/* longer than every timeout; keeps `now` precise after very large jumps */
#define NC_CLOCK_LONGEST_STEP 4294967296.0

static void nc_clock_init( nc_clock_t * clock, double time )
{
    clock->now = 0.0;
    clock->last = nc_number_is_finite( time ) ? time : 0.0;
}

static void nc_clock_advance( nc_clock_t * clock, double time )
{
    if ( !nc_number_is_finite( time ) )
        return;
    double step = time - clock->last;
    clock->last = time;
    if ( step > 0.0 && clock->now < 9007199254740992.0 ) /* 2^53 s: the wheel's ticks still fit into 64 bits */
        clock->now += step < NC_CLOCK_LONGEST_STEP ? step : NC_CLOCK_LONGEST_STEP;
}

/* May this line be written? If so, `suppressed` receives how many were not since the last one. */
static int nc_log_allows( nc_log_limit_t * limit, double now, uint64_t * suppressed )
{
    if ( now < limit->next ) {
        limit->suppressed++;
        return 0;
    }
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    limit->next = now + 1.0;
    return 1;
}

/* A mistake of the caller's: logged once a second by the object's clock, with the number of calls refused before. */
NC_LIKE_PRINTF static NC_COLD void nc_log_refuse( nc_log_t * log, const char * function, const char * format, ... )
{
    char text[NC_LOG_BYTES];
    uint64_t suppressed;
    va_list arguments;
    if ( !NC_LOG_ON( NETCODE_LOG_LEVEL_ERROR ) || !nc_log_allows( &log->refusals, *log->now, &suppressed ) )
        return;
    va_start( arguments, format );
    vsnprintf( text, sizeof( text ), format, arguments );
    va_end( arguments );
    nc_log_write( log, NETCODE_LOG_LEVEL_ERROR, "%s failed: requires %s (%llu refusals before)", function, text,
                  (unsigned long long) suppressed );
}

static uint64_t nc_unix_default( void * context )
{
    (void) context;
    return (uint64_t) time( NULL );
}

/* The allocator of a config; malloc and free by default. */
typedef struct {
    void * context;
    void * ( *allocate )( void * context, size_t bytes );
    void ( *release )( void * context, void * pointer );
} nc_allocator_t;

static void * nc_allocator_malloc( void * context, size_t bytes )
{
    (void) context;
    return malloc( bytes );
}

static void nc_allocator_free( void * context, void * pointer )
{
    (void) context;
    free( pointer );
}

static nc_allocator_t nc_allocator_make( void * context, void * ( *allocate )( void *, size_t ),
                                         void ( *release )( void *, void * ) )
{
    nc_allocator_t allocator = { context, allocate ? allocate : nc_allocator_malloc,
                                 release ? release : nc_allocator_free };
    return allocator;
}

#if defined( __linux__ )
/*  Which of its functions the C library declares depends on what was included first. Private names for the same symbols
    make every order build the same library. This needs GNU's asm labels, which all compilers on Linux have. */
int nc_allocator_madvise( void * block, size_t bytes, int advice ) __asm__( "madvise" );
#if defined( __LP64__ )
typedef struct {
    long tv_sec;
    long tv_nsec;
} nc_timespec_t;
int nc_clock_gettime( int clock, nc_timespec_t * now ) __asm__( "clock_gettime" );
int nc_nanosleep( const nc_timespec_t * wait, nc_timespec_t * left ) __asm__( "nanosleep" );
#elif !defined( CLOCK_MONOTONIC ) /* on 32 bits, symbols differ in their type of time */
#error "headers before netcode.h hide the monotonic clock: include netcode.h first, or define _GNU_SOURCE before all"
#endif
#endif

/*  Allocates a block that may be large, with huge pages if the system has them: with ten thousand slots, reading page
    tables would cost more than all other work for a datagram. */
static void * nc_allocator_take_large( const nc_allocator_t * allocator, size_t bytes )
{
    void * block = allocator->allocate( allocator->context, bytes );
#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )
    enum { HUGEPAGE = 14 }; /* MADV_HUGEPAGE, which headers may hide */
    size_t huge = (size_t) 2 << 20, before = (size_t) ( ( huge - (uintptr_t) block % huge ) % huge );
    if ( block && bytes >= before + huge )
        (void) nc_allocator_madvise( (uint8_t *) block + before, ( bytes - before ) / huge * huge, HUGEPAGE );
#endif
    return block;
}

NETCODE_API const char * netcode_version( void )
{
    return NETCODE_VERSION_FULL;
}

NETCODE_API void netcode_enable_packet_tagging( void )
{
    nc_packet_tagging = 1;
}

NETCODE_API void netcode_log_level( int level )
{
    nc_log_threshold = level;
}

NETCODE_API void netcode_set_printf_function( int ( *function )( const char *, ... ) )
{
    nc_printf_function = function ? function : printf;
}

NETCODE_API void netcode_set_assert_function( void ( *function )( const char * condition, const char * function,
                                                                  const char * file, int line ) )
{
    netcode_assert_function = function ? function : nc_assert_default;
}

#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS

NETCODE_API void netcode_sleep( double seconds )
{
    if ( seconds > 0.0 && nc_number_is_finite( seconds ) )
        Sleep( seconds < 1e6 ? (DWORD) ( seconds * 1000.0 + 0.999 ) : 1000000000u );
}

NETCODE_API double netcode_time( void )
{
    LARGE_INTEGER frequency, counter;
    QueryPerformanceFrequency( &frequency );
    QueryPerformanceCounter( &counter );
    return (double) counter.QuadPart / (double) frequency.QuadPart;
}

#else

NETCODE_API void netcode_sleep( double seconds )
{
    if ( !( seconds > 0.0 ) || !nc_number_is_finite( seconds ) )
        return;
    if ( seconds > 1e6 )
        seconds = 1e6;
    long whole = (long) seconds;
#if defined( __linux__ ) && defined( __LP64__ )
    nc_timespec_t wait = { whole, (long) ( ( seconds - (double) whole ) * 1e9 ) };
    nc_nanosleep( &wait, NULL );
#else
    struct timeval wait;
    wait.tv_sec = (time_t) whole;
    wait.tv_usec = (suseconds_t) ( ( seconds - (double) whole ) * 1e6 );
    select( 0, NULL, NULL, NULL, &wait );
#endif
}

NETCODE_API double netcode_time( void )
{
#if defined( __linux__ ) && defined( __LP64__ )
    nc_timespec_t now;
    if ( nc_clock_gettime( 1 /* CLOCK_MONOTONIC */, &now ) == 0 )
        return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
#elif defined( CLOCK_MONOTONIC )
    struct timespec now;
    if ( clock_gettime( CLOCK_MONOTONIC, &now ) == 0 )
        return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
#endif
    { /* a system without a monotonic clock: the wall clock is what is left */
        struct timeval wall;
        gettimeofday( &wall, NULL );
        return (double) wall.tv_sec + (double) wall.tv_usec * 1e-6;
    }
}

#endif

NETCODE_API const char * netcode_client_state_name( int state )
{
    static const char * const names[] = { "CONNECT_TOKEN_EXPIRED",
                                          "INVALID_CONNECT_TOKEN",
                                          "CONNECTION_TIMED_OUT",
                                          "CONNECTION_RESPONSE_TIMED_OUT",
                                          "CONNECTION_REQUEST_TIMED_OUT",
                                          "CONNECTION_DENIED",
                                          "DISCONNECTED",
                                          "SENDING_CONNECTION_REQUEST",
                                          "SENDING_CONNECTION_RESPONSE",
                                          "CONNECTED" };

    if ( state < NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED || state > NETCODE_CLIENT_STATE_CONNECTED )
        return "UNKNOWN";
    return names[state - NETCODE_CLIENT_STATE_CONNECT_TOKEN_EXPIRED];
}

#define NC_DROP_NAME( name, sentence ) #name,
#define NC_DROP_TEXT( name, sentence ) sentence,

NETCODE_API const char * netcode_drop_reason_name( int reason )
{
    static const char * const names[] = { NETCODE_DROP_LIST( NC_DROP_NAME ) };
    return reason >= 0 && reason < NETCODE_DROP_REASONS ? names[reason] : "UNKNOWN";
}

NETCODE_API const char * netcode_drop_reason_text( int reason )
{
    static const char * const texts[] = { NETCODE_DROP_LIST( NC_DROP_TEXT ) };
    return reason >= 0 && reason < NETCODE_DROP_REASONS ? texts[reason] : "UNKNOWN";
}

/* ================================================================================================================
    ROOM 2: BYTES
    How are numbers read from and written to packets, never beyond their end?
    Uses: nothing. Invariant: a reader or writer that fails once stays failed, so callers check once, at the end.
    Standard: General Conventions
   ================================================================================================================ */

typedef struct {
    const uint8_t * data;
    size_t at;
    size_t end;
    int failed;
} nc_reader_t;

typedef struct {
    uint8_t * data;
    size_t at;
    size_t end;
    int failed;
} nc_writer_t;

static nc_reader_t nc_reader_make( const uint8_t * data, size_t bytes )
{
    nc_reader_t reader = { data, 0, bytes, 0 };
    return reader;
}

static nc_writer_t nc_writer_make( uint8_t * data, size_t bytes )
{
    nc_writer_t writer = { data, 0, bytes, 0 };
    return writer;
}

static uint64_t nc_reader_number( nc_reader_t * reader, size_t bytes )
{
    uint64_t value = 0;
    if ( reader->failed || reader->end - reader->at < bytes ) {
        reader->failed = 1;
        return 0;
    }
    for ( size_t i = 0; i < bytes; i++ )
        value |= (uint64_t) reader->data[reader->at + i] << ( 8 * i );
    reader->at += bytes;
    return value;
}

static inline void nc_reader_bytes( nc_reader_t * reader, uint8_t * out, size_t bytes )
{
    if ( reader->failed || reader->end - reader->at < bytes ) {
        reader->failed = 1;
        memset( out, 0, bytes );
        return;
    }
    memcpy( out, reader->data + reader->at, bytes );
    reader->at += bytes;
}

static void nc_writer_number( nc_writer_t * writer, uint64_t value, size_t bytes )
{
    if ( writer->failed || writer->end - writer->at < bytes ) {
        writer->failed = 1;
        return;
    }
    for ( size_t i = 0; i < bytes; i++ )
        writer->data[writer->at + i] = (uint8_t) ( value >> ( 8 * i ) );
    writer->at += bytes;
}

static void nc_writer_bytes( nc_writer_t * writer, const uint8_t * data, size_t bytes )
{
    if ( writer->failed || writer->end - writer->at < bytes ) {
        writer->failed = 1;
        return;
    }
    memcpy( writer->data + writer->at, data, bytes );
    writer->at += bytes;
}

static void nc_writer_zeros( nc_writer_t * writer )
{
    memset( writer->data + writer->at, 0, writer->end - writer->at );
    writer->at = writer->end;
}

/* The two types that every packet uses. */
static inline uint32_t nc_load_u32( const uint8_t * data )
{
    return (uint32_t) data[0] | (uint32_t) data[1] << 8 | (uint32_t) data[2] << 16 | (uint32_t) data[3] << 24;
}

static inline uint64_t nc_load_u64( const uint8_t * data )
{
    return (uint64_t) nc_load_u32( data ) | (uint64_t) nc_load_u32( data + 4 ) << 32;
}

/* Without a loop, so that compilers make one store instruction of it. */
static void nc_store_u64( uint8_t * data, uint64_t value )
{
    data[0] = (uint8_t) value;
    data[1] = (uint8_t) ( value >> 8 );
    data[2] = (uint8_t) ( value >> 16 );
    data[3] = (uint8_t) ( value >> 24 );
    data[4] = (uint8_t) ( value >> 32 );
    data[5] = (uint8_t) ( value >> 40 );
    data[6] = (uint8_t) ( value >> 48 );
    data[7] = (uint8_t) ( value >> 56 );
}

/* ================================================================================================================
    ROOM 3: CRYPTO
    How are bytes sealed (encrypted and authenticated), opened, hashed, wiped and randomly generated?
    Uses: platform, bytes; and it alone libsodium.
    Invariant: a nonce is 4 zero bytes and the sequence, little-endian.
    Standard: Connect Token; Challenge Token; Packets
   ================================================================================================================ */

/* The key, nonce and associated data of a seal. */
typedef struct {
    const uint8_t * key; /* NETCODE_KEY_BYTES */
    uint64_t sequence;   /* the nonce */
    const uint8_t * associated;
    size_t associated_bytes;
} nc_seal_t;

static void nc_crypto_nonce( uint8_t nonce[12], uint64_t sequence )
{
    memset( nonce, 0, 4 );
    nc_store_u64( nonce + 4, sequence );
}

/* Seals `bytes` of `data` into `out` (in place or elsewhere) and writes the tag after them. */
static void nc_crypto_seal( uint8_t * out, const uint8_t * data, size_t bytes, const nc_seal_t * seal )
{
    uint8_t nonce[12];
    nc_crypto_nonce( nonce, seal->sequence );
    crypto_aead_chacha20poly1305_ietf_encrypt( out, NULL, data, bytes, seal->associated, seal->associated_bytes, NULL,
                                               nonce, seal->key );
}

/*  Opens `bytes` of `data`, the tag included, into `out`. On failure libsodium zeroes `out`: keep a copy to try another
    key. */
static inline int nc_crypto_open( uint8_t * out, const uint8_t * data, size_t bytes, const nc_seal_t * seal )
{
    uint8_t nonce[12];
    nc_crypto_nonce( nonce, seal->sequence );
    return crypto_aead_chacha20poly1305_ietf_decrypt( out, NULL, NULL, data, bytes, seal->associated,
                                                      seal->associated_bytes, nonce, seal->key ) == 0;
}

/* The same with a nonce of 24 bytes, for connect tokens; `seal->sequence` is not used. */
static void nc_crypto_seal_token( uint8_t * data, size_t bytes, const uint8_t nonce[NC_TOKEN_NONCE_BYTES],
                                  const nc_seal_t * seal )
{
    crypto_aead_xchacha20poly1305_ietf_encrypt( data, NULL, data, bytes, seal->associated, seal->associated_bytes, NULL,
                                                nonce, seal->key );
}

static int nc_crypto_open_token( uint8_t * out, const uint8_t * data, size_t bytes,
                                 const uint8_t nonce[NC_TOKEN_NONCE_BYTES], const nc_seal_t * seal )
{
    return crypto_aead_xchacha20poly1305_ietf_decrypt( out, NULL, NULL, data, bytes, seal->associated,
                                                       seal->associated_bytes, nonce, seal->key ) == 0;
}

/* Without it libsodium works, with its slowest code; it may be called often, and from any thread. */
static int nc_crypto_begin( void )
{
    return sodium_init() != -1;
}

static void nc_crypto_random( uint8_t * data, size_t bytes )
{
    randombytes_buf( data, bytes );
}

static uint64_t nc_crypto_random_u64( void )
{
    uint8_t bytes[8];
    nc_crypto_random( bytes, sizeof( bytes ) );
    return nc_load_u64( bytes );
}

/*  A random start for sequences: 2^46 and a random number of 47 bits, so that they always have 6 bytes and stay below
    2^48. Decision 1 */
static uint64_t nc_crypto_sequence_base( int choice, uint64_t random )
{
    return choice == NETCODE_SEQUENCE_BASE_ZERO ? 0 : ( (uint64_t) 1 << 46 ) + ( random >> 17 );
}

static void nc_crypto_wipe( void * data, size_t bytes )
{
    sodium_memzero( data, bytes );
}

/* Wipes and frees memory that may contain keys or players' data. */
static void nc_crypto_release( const nc_allocator_t * allocator, void * block, size_t bytes )
{
    nc_crypto_wipe( block, bytes );
    allocator->release( allocator->context, block );
}

static int nc_crypto_equal( const uint8_t * a, const uint8_t * b, size_t bytes )
{
    return sodium_memcmp( a, b, bytes ) == 0;
}

enum { NC_HASH_KEY_BYTES = 16 };

static inline void nc_crypto_hash_round( uint64_t v[4] )
{
    v[0] += v[1], v[2] += v[3];
    v[1] = ( v[1] << 13 | v[1] >> 51 ) ^ v[0], v[3] = ( v[3] << 16 | v[3] >> 48 ) ^ v[2];
    v[0] = v[0] << 32 | v[0] >> 32;
    v[2] += v[1], v[0] += v[3];
    v[1] = ( v[1] << 17 | v[1] >> 47 ) ^ v[2], v[3] = ( v[3] << 21 | v[3] >> 43 ) ^ v[0];
    v[2] = v[2] << 32 | v[2] >> 32;
}

static inline void nc_crypto_hash_word( uint64_t v[4], uint64_t word )
{
    v[3] ^= word;
    nc_crypto_hash_round( v );
    nc_crypto_hash_round( v );
    v[0] ^= word;
}

/*  SipHash-2-4 (Aumasson and Bernstein, 2012): a hash whose collisions can not be found without the key. It is the only
    algorithm here that is not libsodium's: the copies that other netcode libraries bundle lack crypto_shorthash, and a
    BLAKE2b for every refused datagram costs ten times as much. It is used only to find entries of tables: no packet,
    key or secret depends on it. */
static uint64_t nc_crypto_hash( const uint8_t key[NC_HASH_KEY_BYTES], const uint8_t * data, size_t bytes )
{
    uint64_t last = (uint64_t) bytes << 56;
    uint64_t v[4] = { nc_load_u64( key ) ^ 0x736f6d6570736575u, /* no copy of the key stays on the stack */
                      nc_load_u64( key + 8 ) ^ 0x646f72616e646f6du, nc_load_u64( key ) ^ 0x6c7967656e657261u,
                      nc_load_u64( key + 8 ) ^ 0x7465646279746573u };

    for ( ; bytes >= 8; data += 8, bytes -= 8 )
        nc_crypto_hash_word( v, nc_load_u64( data ) );
    for ( size_t i = 0; i < bytes; i++ )
        last |= (uint64_t) data[i] << ( 8 * i );
    nc_crypto_hash_word( v, last );
    v[2] ^= 0xff;
    for ( int i = 0; i < 4; i++ )
        nc_crypto_hash_round( v );
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

NETCODE_API int netcode_init( void )
{
    if ( nc_init_count == 0 ) {
        if ( !nc_crypto_begin() )
            return NETCODE_ERROR;
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS && !defined( NETCODE_NO_SOCKETS )
        WSADATA data;
        if ( WSAStartup( MAKEWORD( 2, 2 ), &data ) != NO_ERROR )
            return NETCODE_ERROR;
#endif
    }

    nc_init_count++;
    return NETCODE_OK;
}

NETCODE_API void netcode_term( void )
{
    NC_CHECK( nc_init_count > 0, NC_NOTHING );
    nc_init_count--;
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS && !defined( NETCODE_NO_SOCKETS )
    if ( nc_init_count == 0 )
        WSACleanup();
#endif
}

NETCODE_API void netcode_random_bytes( uint8_t * data, int bytes )
{
    NC_CHECK( data != NULL && bytes >= 0, NC_NOTHING );
    nc_crypto_random( data, (size_t) bytes );
}

/* ================================================================================================================
    ROOM 4: ADDRESS
    What is a network address, and how is it written?
    Uses: platform, crypto. Invariant: IPv4-mapped IPv6 is stored as IPv4, so that one address has one form.
    Standard: Connect Token
   ================================================================================================================ */

/* Follows the log line about an address that can not be read: most often it is a host name. */
#define NC_ADDRESS_HINT \
    " (addresses are numbers, like 203.0.113.5:40000 or [2001:db8::5]:40000; resolve host names first)"

static int nc_address_is_link_local( const struct netcode_address_t * address )
{
    return address->type == NETCODE_ADDRESS_IPV6 && ( address->data.ipv6[0] & 0xffc0 ) == 0xfe80;
}

/* A copy in canonical form: IPv4-mapped becomes IPv4, and the bytes that an IPv4 address does not use are zero. */
static struct netcode_address_t nc_address_canonical( const struct netcode_address_t * address )
{
    struct netcode_address_t result;
    const uint16_t * words = address->data.ipv6;
    memset( &result, 0, sizeof( result ) );
    result.port = address->port;
    result.type = address->type;

    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        memcpy( result.data.ipv4, address->data.ipv4, 4 );
    } else if ( address->type == NETCODE_ADDRESS_IPV6 ) {
        if ( !words[0] && !words[1] && !words[2] && !words[3] && !words[4] && words[5] == 0xffff ) {
            result.type = NETCODE_ADDRESS_IPV4;
            result.data.ipv4[0] = (uint8_t) ( words[6] >> 8 );
            result.data.ipv4[1] = (uint8_t) words[6];
            result.data.ipv4[2] = (uint8_t) ( words[7] >> 8 );
            result.data.ipv4[3] = (uint8_t) words[7];
        } else
            memcpy( result.data.ipv6, words, 16 );
    } else {
        result.type = NETCODE_ADDRESS_NONE;
        result.port = 0;
    }
    return result;
}

/* The interface of a link-local address is valid on one machine only: tokens do not have it. */
static struct netcode_address_t nc_address_without_interface( const struct netcode_address_t * address )
{
    struct netcode_address_t result = *address;
    if ( nc_address_is_link_local( address ) )
        result.data.ipv6[1] = 0;
    return result;
}

/* The words of an address as in the IP header, in host byte order. Returns their number. */
static int nc_address_words( const struct netcode_address_t * address, uint32_t words[4] )
{
    const uint8_t * v4 = address->data.ipv4;
    if ( address->type != NETCODE_ADDRESS_IPV6 ) {
        words[0] = (uint32_t) v4[0] << 24 | (uint32_t) v4[1] << 16 | (uint32_t) v4[2] << 8 | v4[3];
        return 1;
    }

    for ( int i = 0; i < 4; i++ )
        words[i] = (uint32_t) address->data.ipv6[2 * i] << 16 | address->data.ipv6[2 * i + 1];
    if ( nc_address_is_link_local( address ) ) /* the interface index is not on the wire */
        words[0] &= 0xffff0000u;
    return 4;
}

static inline int nc_address_same( const struct netcode_address_t * a, const struct netcode_address_t * b )
{
    if ( a->type != b->type || a->port != b->port )
        return 0;
    if ( a->type == NETCODE_ADDRESS_IPV4 )
        return memcmp( a->data.ipv4, b->data.ipv4, 4 ) == 0;
    return a->type != NETCODE_ADDRESS_IPV6 || memcmp( a->data.ipv6, b->data.ipv6, 16 ) == 0;
}

static uint64_t nc_address_hash( const struct netcode_address_t * address, const uint8_t key[NC_HASH_KEY_BYTES] )
{
    uint8_t bytes[18] = { (uint8_t) address->port, (uint8_t) ( address->port >> 8 ) };
    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        memcpy( bytes + 2, address->data.ipv4, 4 );
        return nc_crypto_hash( key, bytes, 6 );
    }

    for ( int i = 0; i < 8; i++ ) {
        bytes[2 + 2 * i] = (uint8_t) address->data.ipv6[i];
        bytes[3 + 2 * i] = (uint8_t) ( address->data.ipv6[i] >> 8 );
    }
    return nc_crypto_hash( key, bytes, 18 );
}

/*  Reads a number in `base` up to `max`, of at most `digits` digits; a decimal number must not begin with a needless
    zero. */
static const char * nc_address_number( const char * text, int base, int digits, uint32_t max, uint32_t * value )
{
    const char * at = text;
    uint32_t sum = 0;
    for ( ; at - text < digits; at++ ) {
        int digit;
        if ( *at >= '0' && *at <= '9' )
            digit = *at - '0';
        else if ( base == 16 && *at >= 'a' && *at <= 'f' )
            digit = *at - 'a' + 10;
        else if ( base == 16 && *at >= 'A' && *at <= 'F' )
            digit = *at - 'A' + 10;
        else
            break;
        sum = sum * (uint32_t) base + (uint32_t) digit;
    }

    if ( at == text || sum > max || ( base == 10 && *text == '0' && at - text > 1 ) )
        return NULL;
    *value = sum;
    return at;
}

static const char * nc_address_parse_ipv4( const char * text, uint8_t out[4] )
{
    for ( int i = 0; i < 4; i++ ) {
        uint32_t value = 0;
        if ( i && *text++ != '.' )
            return NULL;
        text = nc_address_number( text, 10, 3, 255, &value );
        if ( !text )
            return NULL;
        out[i] = (uint8_t) value;
    }
    return text;
}

/* One group of an IPv6 address: a word, or two words written as IPv4. Returns NULL on error. */
static const char * nc_address_parse_group( const char * text, uint16_t words[8], int * count )
{
    uint32_t value = 0;
    const char * end = nc_address_number( text, 16, 4, 0xffff, &value );
    if ( end && *end == '.' && *count <= 6 ) {
        uint8_t v4[4];
        end = nc_address_parse_ipv4( text, v4 );
        if ( !end )
            return NULL;
        words[( *count )++] = (uint16_t) ( v4[0] << 8 | v4[1] );
        words[( *count )++] = (uint16_t) ( v4[2] << 8 | v4[3] );
        return *end == ':' ? NULL : end; /* only at the end */
    }

    if ( !end || *count >= 8 )
        return NULL;
    words[( *count )++] = (uint16_t) value;
    return end;
}

static const char * nc_address_parse_ipv6( const char * text, uint16_t out[8] )
{
    uint16_t words[8];
    int count = 0, gap = -1, i;
    if ( text[0] == ':' && text[1] == ':' ) {
        gap = 0;
        text += 2;
    }

    while ( *text && *text != ']' && *text != '%' ) {
        text = nc_address_parse_group( text, words, &count );
        if ( !text )
            return NULL;
        if ( *text != ':' )
            break;
        text++;

        if ( *text == ':' ) {
            if ( gap >= 0 )
                return NULL;
            gap = count;
            text++;
        } else if ( !*text || *text == ']' || *text == '%' )
            return NULL; /* a single colon at the end */
    }

    if ( gap < 0 ? count != 8 : count > 7 )
        return NULL;
    memset( out, 0, 16 );
    for ( i = 0; i < count; i++ )
        out[gap < 0 || i < gap ? i : 8 - count + i] = words[i];
    return text;
}

/* ":port", or nothing. */
static int nc_address_parse_port( const char * text, uint16_t * port )
{
    uint32_t value = 0;
    if ( *text == 0 )
        return 1;
    if ( *text != ':' )
        return 0;

    text = nc_address_number( text + 1, 10, 5, 65535, &value );
    if ( !text || *text )
        return 0;
    *port = (uint16_t) value;
    return 1;
}

static int nc_address_parse( const char * text, struct netcode_address_t * address )
{
    const char * at;
    int brackets = *text == '[';

    if ( !brackets ) {
        at = nc_address_parse_ipv4( text, address->data.ipv4 );
        if ( at ) {
            address->type = NETCODE_ADDRESS_IPV4;
            return nc_address_parse_port( at, &address->port );
        }
    }

    address->type = NETCODE_ADDRESS_IPV6;
    at = nc_address_parse_ipv6( text + brackets, address->data.ipv6 );
    if ( at && *at == '%' && nc_address_is_link_local( address ) && address->data.ipv6[1] == 0 ) {
        uint32_t interface_number = 0;
        at = nc_address_number( at + 1, 10, 5, 65535, &interface_number );
        address->data.ipv6[1] = (uint16_t) interface_number;
    }

    if ( !at )
        return 0;
    if ( brackets )
        return *at == ']' && nc_address_parse_port( at + 1, &address->port );
    return *at == 0;
}

NETCODE_API int netcode_parse_address( const char * text, struct netcode_address_t * address )
{
    struct netcode_address_t parsed;
    NC_CHECK( address != NULL, NETCODE_ERROR );
    memset( &parsed, 0, sizeof( parsed ) );
    memset( address, 0, sizeof( *address ) );
    NC_CHECK( text != NULL, NETCODE_ERROR );
    if ( !nc_address_parse( text, &parsed ) )
        return NETCODE_ERROR;
    *address = nc_address_canonical( &parsed );
    return NETCODE_OK;
}

/* The longest run of at least two zero words, as RFC 5952 requires. */
static void nc_address_longest_gap( const uint16_t words[8], int * start, int * length )
{
    int i, run = 0;
    *start = -1;
    *length = 1;
    for ( i = 0; i < 8; i++ ) {
        run = words[i] ? 0 : run + 1;
        if ( run > *length ) {
            *length = run;
            *start = i - run + 1;
        }
    }
}

static size_t nc_address_print_ipv6( const struct netcode_address_t * address, char * out, size_t out_bytes )
{
    uint16_t words[8];
    int scope = nc_address_is_link_local( address ) ? address->data.ipv6[1] : 0;
    int start, length;
    size_t at = 0;

    memcpy( words, address->data.ipv6, sizeof( words ) );
    if ( scope )
        words[1] = 0;
    nc_address_longest_gap( words, &start, &length );

    for ( int i = 0; i < 8; i++ ) {
        if ( i == start ) {
            at += (size_t) snprintf( out + at, out_bytes - at, "::" );
            i += length - 1;
            continue;
        }
        at +=
            (size_t) snprintf( out + at, out_bytes - at, i && i != start + length ? ":%x" : "%x", (unsigned) words[i] );
    }

    if ( scope )
        at += (size_t) snprintf( out + at, out_bytes - at, "%%%d", scope );
    return at;
}

NETCODE_API char * netcode_address_to_string( const struct netcode_address_t * address, char * buffer )
{
    const size_t capacity = NETCODE_MAX_ADDRESS_STRING_LENGTH;
    size_t at = 0;
    NC_CHECK( buffer != NULL, NULL );
    buffer[0] = 0;
    NC_CHECK( address != NULL, buffer );

    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        const uint8_t * ip = address->data.ipv4;
        at = (size_t) snprintf( buffer, capacity, "%d.%d.%d.%d", ip[0], ip[1], ip[2], ip[3] );
    } else if ( address->type == NETCODE_ADDRESS_IPV6 ) {
        if ( address->port )
            buffer[at++] = '[';
        at += nc_address_print_ipv6( address, buffer + at, capacity - at );
        if ( address->port )
            buffer[at++] = ']';
        buffer[at] = 0;
    } else {
        snprintf( buffer, capacity, "NONE" );
        return buffer;
    }

    if ( address->port )
        snprintf( buffer + at, capacity - at, ":%d", address->port );
    return buffer;
}

NETCODE_API int netcode_address_equal( const struct netcode_address_t * a, const struct netcode_address_t * b )
{
    NC_CHECK( a != NULL && b != NULL, 0 );
    struct netcode_address_t left = nc_address_canonical( a );
    struct netcode_address_t right = nc_address_canonical( b );
    return nc_address_same( &left, &right );
}

/* ================================================================================================================
    ROOM 5: TOKEN
    What is the format of connect tokens and challenge tokens, and which key can open them?
    Uses: platform, bytes, crypto, address.
    Invariant: data read from a token has passed every check of the standard.
    Standard: Connect Token; Challenge Token
   ================================================================================================================ */

enum {
    NC_TOKEN_AD_BYTES = NC_VERSION_BYTES + 8 + 8,
    NC_CHALLENGE_PLAIN_BYTES = NC_CHALLENGE_BYTES - NETCODE_MAC_BYTES
};

/* The fields that are in both the public and the private part. */
typedef struct {
    int32_t timeout_seconds;
    int num_addresses;
    struct netcode_address_t addresses[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint8_t client_to_server_key[NETCODE_KEY_BYTES];
    uint8_t server_to_client_key[NETCODE_KEY_BYTES];
} nc_route_t;

typedef struct {
    uint64_t client_id;
    nc_route_t route;
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
} nc_private_token_t;

typedef struct {
    uint64_t protocol_id;
    uint64_t create_timestamp;
    uint64_t expire_timestamp;
    uint8_t nonce[NC_TOKEN_NONCE_BYTES];
    uint8_t sealed_private[NC_PRIVATE_TOKEN_BYTES];
    nc_route_t route;
} nc_connect_token_t;

typedef struct {
    uint64_t client_id;
    uint8_t user_data[NETCODE_USER_DATA_BYTES];
    /* decision 2: the unused bytes bind it to an address and a token */
    uint8_t bind[NC_CHALLENGE_BIND_BYTES];
} nc_challenge_t;

static void nc_token_write_address( nc_writer_t * writer, const struct netcode_address_t * address )
{
    struct netcode_address_t place = nc_address_without_interface( address );
    nc_writer_number( writer, place.type, 1 );
    if ( place.type == NETCODE_ADDRESS_IPV4 )
        nc_writer_bytes( writer, place.data.ipv4, 4 );
    else
        for ( int i = 0; i < 8; i++ )
            nc_writer_number( writer, place.data.ipv6[i], 2 );
    nc_writer_number( writer, place.port, 2 );
}

static void nc_token_read_address( nc_reader_t * reader, struct netcode_address_t * address )
{
    struct netcode_address_t raw;
    memset( &raw, 0, sizeof( raw ) );
    raw.type = (uint8_t) nc_reader_number( reader, 1 );
    if ( raw.type == NETCODE_ADDRESS_IPV4 )
        nc_reader_bytes( reader, raw.data.ipv4, 4 );
    else if ( raw.type == NETCODE_ADDRESS_IPV6 )
        for ( int i = 0; i < 8; i++ )
            raw.data.ipv6[i] = (uint16_t) nc_reader_number( reader, 2 );
    else
        reader->failed = 1;

    raw.port = (uint16_t) nc_reader_number( reader, 2 );
    if ( raw.port == 0 )
        reader->failed = 1; /* no server can have this address */
    raw = nc_address_canonical( &raw );
    *address = nc_address_without_interface( &raw );
}

static void nc_token_write_route( nc_writer_t * writer, const nc_route_t * route )
{
    nc_writer_number( writer, (uint32_t) route->timeout_seconds, 4 );
    nc_writer_number( writer, (uint32_t) route->num_addresses, 4 );
    for ( int i = 0; i < route->num_addresses; i++ )
        nc_token_write_address( writer, &route->addresses[i] );
    nc_writer_bytes( writer, route->client_to_server_key, NETCODE_KEY_BYTES );
    nc_writer_bytes( writer, route->server_to_client_key, NETCODE_KEY_BYTES );
}

static void nc_token_read_route( nc_reader_t * reader, nc_route_t * route )
{
    route->timeout_seconds = (int32_t) nc_reader_number( reader, 4 );
    uint32_t count = (uint32_t) nc_reader_number( reader, 4 );
    route->num_addresses = 0;
    if ( count < 1 || count > NETCODE_MAX_SERVERS_PER_CONNECT ) {
        reader->failed = 1;
        return;
    }

    route->num_addresses = (int) count;
    for ( int i = 0; i < (int) count; i++ )
        nc_token_read_address( reader, &route->addresses[i] );
    nc_reader_bytes( reader, route->client_to_server_key, NETCODE_KEY_BYTES );
    nc_reader_bytes( reader, route->server_to_client_key, NETCODE_KEY_BYTES );
}

/* The private part's associated data: version, protocol id, expire timestamp. */
static void nc_token_associated( uint8_t associated[NC_TOKEN_AD_BYTES], uint64_t protocol_id,
                                 uint64_t expire_timestamp )
{
    memcpy( associated, NC_VERSION_INFO, NC_VERSION_BYTES );
    nc_store_u64( associated + NC_VERSION_BYTES, protocol_id );
    nc_store_u64( associated + NC_VERSION_BYTES + 8, expire_timestamp );
}

/* The key, nonce and associated data of a private part's seal. */
typedef struct {
    uint64_t protocol_id;
    uint64_t expire_timestamp;
    const uint8_t * nonce; /* NC_TOKEN_NONCE_BYTES */
    const uint8_t * key;   /* NETCODE_KEY_BYTES */
} nc_token_seal_t;

static void nc_token_seal_private( uint8_t out[NC_PRIVATE_TOKEN_BYTES], const nc_private_token_t * token,
                                   const nc_token_seal_t * how )
{
    uint8_t associated[NC_TOKEN_AD_BYTES];
    nc_seal_t seal = { how->key, 0, associated, sizeof( associated ) };
    nc_writer_t writer = nc_writer_make( out, NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES );
    nc_writer_number( &writer, token->client_id, 8 );
    nc_token_write_route( &writer, &token->route );
    nc_writer_bytes( &writer, token->user_data, NETCODE_USER_DATA_BYTES );
    nc_writer_zeros( &writer );
    nc_token_associated( associated, how->protocol_id, how->expire_timestamp );
    nc_crypto_seal_token( out, NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES, how->nonce, &seal );
}

/* Decrypts into `plain`; `sealed` is not changed, so that other keys can be tried. */
static int nc_token_open_private( uint8_t plain[NC_PRIVATE_TOKEN_BYTES], const uint8_t * sealed,
                                  const nc_token_seal_t * how )
{
    uint8_t associated[NC_TOKEN_AD_BYTES];
    nc_seal_t seal = { how->key, 0, associated, sizeof( associated ) };
    nc_token_associated( associated, how->protocol_id, how->expire_timestamp );
    return nc_crypto_open_token( plain, sealed, NC_PRIVATE_TOKEN_BYTES, how->nonce, &seal );
}

static int nc_token_read_private( const uint8_t plain[NC_PRIVATE_TOKEN_BYTES], nc_private_token_t * token )
{
    nc_reader_t reader = nc_reader_make( plain, NC_PRIVATE_TOKEN_BYTES - NETCODE_MAC_BYTES );
    token->client_id = nc_reader_number( &reader, 8 );
    nc_token_read_route( &reader, &token->route );
    nc_reader_bytes( &reader, token->user_data, NETCODE_USER_DATA_BYTES );
    return !reader.failed;
}

static void nc_token_write( uint8_t out[NETCODE_CONNECT_TOKEN_BYTES], const nc_connect_token_t * token )
{
    nc_writer_t writer = nc_writer_make( out, NETCODE_CONNECT_TOKEN_BYTES );
    nc_writer_bytes( &writer, (const uint8_t *) NC_VERSION_INFO, NC_VERSION_BYTES );
    nc_writer_number( &writer, token->protocol_id, 8 );
    nc_writer_number( &writer, token->create_timestamp, 8 );
    nc_writer_number( &writer, token->expire_timestamp, 8 );
    nc_writer_bytes( &writer, token->nonce, NC_TOKEN_NONCE_BYTES );
    nc_writer_bytes( &writer, token->sealed_private, NC_PRIVATE_TOKEN_BYTES );
    nc_token_write_route( &writer, &token->route );
    nc_writer_zeros( &writer );
}

static int nc_token_read( const uint8_t data[NETCODE_CONNECT_TOKEN_BYTES], nc_connect_token_t * token )
{
    uint8_t version[NC_VERSION_BYTES];
    nc_reader_t reader = nc_reader_make( data, NETCODE_CONNECT_TOKEN_BYTES );
    nc_reader_bytes( &reader, version, sizeof( version ) );
    token->protocol_id = nc_reader_number( &reader, 8 );
    token->create_timestamp = nc_reader_number( &reader, 8 );
    token->expire_timestamp = nc_reader_number( &reader, 8 );
    nc_reader_bytes( &reader, token->nonce, NC_TOKEN_NONCE_BYTES );
    nc_reader_bytes( &reader, token->sealed_private, NC_PRIVATE_TOKEN_BYTES );
    nc_token_read_route( &reader, &token->route );

    return !reader.failed && memcmp( version, NC_VERSION_INFO, NC_VERSION_BYTES ) == 0 &&
           token->create_timestamp <= token->expire_timestamp;
}

static void nc_challenge_seal( uint8_t out[NC_CHALLENGE_BYTES], const nc_challenge_t * challenge, uint64_t sequence,
                               const uint8_t * key )
{
    nc_seal_t seal = { key, sequence, NULL, 0 };
    nc_writer_t writer = nc_writer_make( out, NC_CHALLENGE_PLAIN_BYTES );
    nc_writer_number( &writer, challenge->client_id, 8 );
    nc_writer_bytes( &writer, challenge->user_data, NETCODE_USER_DATA_BYTES );
    nc_writer_bytes( &writer, challenge->bind, NC_CHALLENGE_BIND_BYTES );
    nc_crypto_seal( out, out, NC_CHALLENGE_PLAIN_BYTES, &seal );
}

static int nc_challenge_open( uint8_t data[NC_CHALLENGE_BYTES], nc_challenge_t * challenge, uint64_t sequence,
                              const uint8_t * key )
{
    nc_reader_t reader = nc_reader_make( data, NC_CHALLENGE_PLAIN_BYTES );
    nc_seal_t seal = { key, sequence, NULL, 0 };
    if ( !nc_crypto_open( data, data, NC_CHALLENGE_BYTES, &seal ) )
        return 0;
    challenge->client_id = nc_reader_number( &reader, 8 );
    nc_reader_bytes( &reader, challenge->user_data, NETCODE_USER_DATA_BYTES );
    nc_reader_bytes( &reader, challenge->bind, NC_CHALLENGE_BIND_BYTES );
    return !reader.failed;
}

/* Addresses for a token: every one must be readable and have a port. */
static int nc_token_parse_addresses( nc_route_t * route, int count, const char ** texts )
{
    route->num_addresses = count;
    for ( int i = 0; i < count; i++ )
        if ( !texts[i] || netcode_parse_address( texts[i], &route->addresses[i] ) != NETCODE_OK ||
             route->addresses[i].port == 0 ) {
            NC_LOG( NULL, ERROR, "connect token: \"%s\" is no address with a port" NC_ADDRESS_HINT,
                    texts[i] ? texts[i] : "NULL" );
            return 0;
        }
    return 1;
}

NETCODE_API int netcode_generate_connect_token( int num_server_addresses, const char ** public_server_addresses,
                                                const char ** internal_server_addresses, int expire_seconds,
                                                int timeout_seconds, uint64_t client_id, uint64_t protocol_id,
                                                const uint8_t * private_key, uint8_t * user_data,
                                                uint8_t * connect_token )
{
    nc_private_token_t private_token;
    nc_connect_token_t token;
    int result = NETCODE_ERROR;
    NC_CHECK( num_server_addresses >= 1 && num_server_addresses <= NETCODE_MAX_SERVERS_PER_CONNECT, NETCODE_ERROR );
    NC_CHECK( public_server_addresses != NULL && internal_server_addresses != NULL, NETCODE_ERROR );
    NC_CHECK( private_key != NULL && connect_token != NULL, NETCODE_ERROR );
    if ( !nc_crypto_begin() ) /* netcode_init may have been forgotten */
        return NETCODE_ERROR;

    memset( &private_token, 0, sizeof( private_token ) );
    memset( &token, 0, sizeof( token ) );
    if ( nc_token_parse_addresses( &token.route, num_server_addresses, public_server_addresses ) &&
         nc_token_parse_addresses( &private_token.route, num_server_addresses, internal_server_addresses ) ) {
        token.protocol_id = protocol_id;
        token.create_timestamp = nc_unix_default( NULL );
        token.expire_timestamp = expire_seconds < 0 ? UINT64_MAX : token.create_timestamp + (uint64_t) expire_seconds;
        token.route.timeout_seconds = private_token.route.timeout_seconds = timeout_seconds;

        nc_crypto_random( token.nonce, sizeof( token.nonce ) );
        nc_crypto_random( token.route.client_to_server_key, NETCODE_KEY_BYTES );
        nc_crypto_random( token.route.server_to_client_key, NETCODE_KEY_BYTES );
        memcpy( private_token.route.client_to_server_key, token.route.client_to_server_key, NETCODE_KEY_BYTES );
        memcpy( private_token.route.server_to_client_key, token.route.server_to_client_key, NETCODE_KEY_BYTES );

        private_token.client_id = client_id;
        if ( user_data )
            memcpy( private_token.user_data, user_data, NETCODE_USER_DATA_BYTES );

        nc_token_seal_t how = { protocol_id, token.expire_timestamp, token.nonce, private_key };
        nc_token_seal_private( token.sealed_private, &private_token, &how );
        nc_token_write( connect_token, &token );
        result = NETCODE_OK;
    }

    nc_crypto_wipe( &private_token, sizeof( private_token ) );
    nc_crypto_wipe( &token, sizeof( token ) );
    return result;
}

NETCODE_API int netcode_connect_token_info( const uint8_t * connect_token, struct netcode_connect_token_info_t * info )
{
    nc_connect_token_t token;
    NC_CHECK( connect_token != NULL && info != NULL, NETCODE_ERROR );
    memset( info, 0, sizeof( *info ) );
    for ( int i = 0; i < NC_VERSION_BYTES && connect_token[i]; i++ )
        info->version[i] = connect_token[i] >= 0x20 && connect_token[i] < 0x7f ? (char) connect_token[i] : '?';

    memset( &token, 0, sizeof( token ) );
    int valid = nc_token_read( connect_token, &token );
    if ( valid ) {
        info->protocol_id = token.protocol_id;
        info->create_timestamp = token.create_timestamp;
        info->expire_timestamp = token.expire_timestamp;
        info->timeout_seconds = token.route.timeout_seconds;
        info->num_server_addresses = token.route.num_addresses;
        memcpy( info->server_addresses, token.route.addresses, sizeof( info->server_addresses ) );
    }

    nc_crypto_wipe( &token, sizeof( token ) );
    return valid ? NETCODE_OK : NETCODE_ERROR;
}

/* ================================================================================================================
    ROOM 6: REPLAY
    Was this packet received before, or is it too old or too far ahead? Which packets were lost?
    Uses: platform.
    Invariant: a sequence is accepted at most once, none at or below the floor, none that jumps by more than 2^32.
    Standard: Replay Protection

        floor ........ newest - 319 [ a bit for each sequence ] newest ........ newest + 2^32
        too old        too old        new or replayed                  new       too far ahead
   ================================================================================================================ */

enum {
    /* one more than the window needs: when `newest` reaches a word, the whole word is cleared */
    NC_REPLAY_WORDS = 6,
    NC_REPLAY_WINDOW = ( NC_REPLAY_WORDS - 1 ) * 64
};

#define NC_REPLAY_LONGEST_JUMP ( (uint64_t) 1 << 32 )

typedef struct {
    uint64_t floor;
    uint64_t newest;
    uint64_t bits[NC_REPLAY_WORDS];
    uint64_t lost;      /* those that had not arrived when they left the window */
    uint64_t reordered; /* those that arrived after a newer one */
    uint32_t recent;    /* how many of each of the last four words were lost, a byte for each word */
    uint16_t
        unopened;   /* those that arrived, and were dropped before they were opened: so many clear bits are not lost */
    uint8_t words;  /* of `recent`, 0 to 4 */
    uint8_t counts; /* a packet has left the window: from there on losses are counted */
} nc_replay_t;

enum { NC_REPLAY_RECENT_WORDS = 4 };

/*  Decision 5: the window starts at the sequence of the packet that connected, so packets older than the connection are
    refused. */
static void nc_replay_init( nc_replay_t * replay, uint64_t floor )
{
    memset( replay, 0, sizeof( *replay ) );
    replay->floor = replay->newest = floor;
}

/* Standard: Replay Protection, steps 1 and 2. Returns a drop reason. */
static inline int nc_replay_seen( const nc_replay_t * replay, uint64_t sequence )
{
    if ( sequence <= replay->floor )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    if ( sequence > replay->newest )
        return sequence - replay->newest > NC_REPLAY_LONGEST_JUMP ? NETCODE_DROP_SEQUENCE_TOO_FAR_AHEAD
                                                                  : NETCODE_DROP_NONE;
    if ( replay->newest - sequence >= NC_REPLAY_WINDOW )
        return NETCODE_DROP_SEQUENCE_TOO_OLD;
    return replay->bits[sequence / 64 % NC_REPLAY_WORDS] >> ( sequence % 64 ) & 1 ? NETCODE_DROP_REPLAYED
                                                                                  : NETCODE_DROP_NONE;
}

/*  Is this close to the newest sequence received? Of a client whose sequences begin at a random number, nobody can
    guess that who does not see its packets. */
static inline int nc_replay_is_near( const nc_replay_t * replay, uint64_t sequence )
{
    return sequence > replay->newest ? ( sequence - replay->newest ) >> NC_SEQUENCE_NEAR_BITS == 0
                                     : replay->newest - sequence < NC_REPLAY_WINDOW;
}

/* How many bits are set? */
static uint32_t nc_replay_ones( uint64_t word )
{
    word -= word >> 1 & 0x5555555555555555u;
    word = ( word & 0x3333333333333333u ) + ( word >> 2 & 0x3333333333333333u );
    word = ( word + ( word >> 4 ) ) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t) ( word * 0x0101010101010101u >> 56 );
}

/* Of those missing, as many as were dropped unopened have arrived. Returns how many are lost. */
static uint64_t nc_replay_count_missing( nc_replay_t * replay, uint64_t missing )
{
    uint64_t lost = missing < replay->unopened ? 0 : missing - replay->unopened;
    replay->unopened = (uint16_t) ( replay->unopened - ( missing - lost ) );
    replay->lost += lost;
    return lost;
}

static void nc_replay_count_lost( nc_replay_t * replay, uint32_t missing )
{
    replay->recent = replay->recent << 8 | (uint32_t) nc_replay_count_missing( replay, missing );
    replay->words = (uint8_t) ( replay->words + ( replay->words < NC_REPLAY_RECENT_WORDS ) );
}

/*  Before `last` becomes the newest word: bits still clear in the words that it replaces are lost packets. The client's
    counter also counts its responses, and those that follow the one that connected never get here: so losses are
    counted from the first packet that arrived. */
static void nc_replay_settle( nc_replay_t * replay, uint64_t last )
{
    uint64_t newest = replay->newest / 64, word = newest < NC_REPLAY_WORDS ? 0 : newest - ( NC_REPLAY_WORDS - 1 );
    for ( ; word <= newest && word + NC_REPLAY_WORDS <= last; word++ ) {
        uint64_t bits = replay->bits[word % NC_REPLAY_WORDS];
        if ( replay->counts )
            nc_replay_count_lost( replay, 64 - nc_replay_ones( bits ) );
        else if ( bits ) { /* from its lowest bit on */
            replay->counts = 1;
            (void) nc_replay_count_missing( replay, nc_replay_ones( ~( bits | ( ( bits & ( ~bits + 1 ) ) - 1 ) ) ) );
        }
    }

    uint64_t skipped = replay->counts && last - newest > NC_REPLAY_WORDS ? last - newest - NC_REPLAY_WORDS : 0;
    for ( uint64_t i = 0; i < skipped && i < NC_REPLAY_RECENT_WORDS; i++ )
        nc_replay_count_lost( replay, 64 );
    if ( skipped > NC_REPLAY_RECENT_WORDS )
        (void) nc_replay_count_missing( replay, 64 * ( skipped - NC_REPLAY_RECENT_WORDS ) );
}

/* Of the last 256 packets that left the window: 0 to 1. */
static double nc_replay_loss_share( const nc_replay_t * replay )
{
    uint32_t lost = 0;
    for ( uint32_t i = 0; i < replay->words; i++ )
        lost += replay->recent >> 8 * i & 0xff;
    return replay->words ? (double) lost / ( 64.0 * (double) replay->words ) : 0.0;
}

/* Standard: Replay Protection, step 3. Only for packets that nc_replay_seen passed and that are authentic. */
static NC_INLINE void nc_replay_advance( nc_replay_t * replay, uint64_t sequence )
{
    if ( sequence > replay->newest ) {
        uint64_t word = replay->newest / 64;
        uint64_t last = sequence / 64;
        if ( word < last )
            nc_replay_settle( replay, last );
        if ( last - word > NC_REPLAY_WORDS )
            word = last - NC_REPLAY_WORDS;
        while ( word < last )
            replay->bits[++word % NC_REPLAY_WORDS] = 0;
        replay->newest = sequence;
    } else
        replay->reordered++;
    replay->bits[sequence / 64 % NC_REPLAY_WORDS] |= (uint64_t) 1 << ( sequence % 64 );
}

/* ================================================================================================================
    ROOM 7: PACKET
    Which packet types exist, in which direction are they sent, and how are they sealed?
    Uses: bytes, crypto, token, replay. Invariant: what can be refused without cryptography is refused before any.
    Standard: Packets; Reading Encrypted Packets

        | prefix 1 | sequence 1..8 | body, sealed | tag 16 |       prefix = bytes of the sequence << 4 | type
   ================================================================================================================ */

enum { NC_TO_SERVER = 1, NC_TO_CLIENT = 2, NC_PACKET_AD_BYTES = NC_VERSION_BYTES + 8 + 1, NC_PACKET_LARGE_BODY = 308 };

/* clang-format off */
/*      type         sealed towards               body min  max                            Standard: Packets */
#define NC_PACKET_LIST( X )                                                               \
    X( REQUEST    , 0                          ,        0,    0                       )   \
    X( DENIED     , NC_TO_CLIENT               ,        0,    0                       )   \
    X( CHALLENGE  , NC_TO_CLIENT               ,      308,  308                       )   \
    X( RESPONSE   , NC_TO_SERVER               ,      308,  308                       )   \
    X( KEEP_ALIVE , NC_TO_SERVER | NC_TO_CLIENT,        8,    8                       )   \
    X( PAYLOAD    , NC_TO_SERVER | NC_TO_CLIENT,        1,    NETCODE_MAX_PACKET_SIZE )   \
    X( DISCONNECT , NC_TO_SERVER | NC_TO_CLIENT,        0,    0                       )
/* clang-format on */

typedef struct {
    int min_body_bytes;
    int max_body_bytes;
} nc_packet_rule_t;

static const nc_packet_rule_t nc_packet_rules[NETCODE_PACKET_TYPES] = {
#define NC_PACKET_RULE( type, directions, min, max ) { min, max },
    NC_PACKET_LIST( NC_PACKET_RULE )
#undef NC_PACKET_RULE
};

/* A bit for each type sent in that direction. */
enum {
#define NC_PACKET_BIT( type, directions, min, max ) | ( (directions) &NC_TO_SERVER ) << NETCODE_PACKET_##type
    NC_PACKETS_TO_SERVER = 0 NC_PACKET_LIST( NC_PACKET_BIT ),
#undef NC_PACKET_BIT
#define NC_PACKET_BIT( type, directions, min, max ) \
    | ( (directions) &NC_TO_CLIENT ) / NC_TO_CLIENT << NETCODE_PACKET_##type
    NC_PACKETS_TO_CLIENT = 0 NC_PACKET_LIST( NC_PACKET_BIT )
#undef NC_PACKET_BIT
};

/* A sealed packet, as described by its first bytes. */
typedef struct {
    int type;
    int header_bytes; /* prefix and sequence */
    int body_bytes;   /* without the tag */
    uint64_t sequence;
} nc_packet_t;

/* Standard: Reading Encrypted Packets, all steps before replay protection, in that order. Returns a drop reason. */
static inline int nc_packet_parse( nc_packet_t * packet, const uint8_t * data, int bytes, int direction )
{
    if ( bytes < NC_MIN_SEALED_BYTES )
        return NETCODE_DROP_TOO_SMALL;

    int type = data[0] & 15, sequence_bytes = data[0] >> 4;
    if ( !( ( direction == NC_TO_SERVER ? (int) NC_PACKETS_TO_SERVER : (int) NC_PACKETS_TO_CLIENT ) >> type & 1 ) )
        return type < NETCODE_PACKET_TYPES ? NETCODE_DROP_WRONG_DIRECTION : NETCODE_DROP_UNKNOWN_PACKET_TYPE;
    if ( sequence_bytes < 1 || sequence_bytes > 8 )
        return NETCODE_DROP_BAD_SEQUENCE_LENGTH;

    const nc_packet_rule_t * rule = &nc_packet_rules[type];
    int body_bytes = bytes - 1 - sequence_bytes - NETCODE_MAC_BYTES;
    if ( body_bytes < rule->min_body_bytes || body_bytes > rule->max_body_bytes )
        return NETCODE_DROP_WRONG_BODY_SIZE;

    packet->type = type;
    packet->header_bytes = 1 + sequence_bytes;
    packet->body_bytes = body_bytes;
    packet->sequence = nc_load_u64( data + 1 ) & UINT64_MAX >> ( 64 - 8 * sequence_bytes ); /* safe: the tag follows */
    return NETCODE_DROP_NONE;
}

/* The associated data: version, protocol id, prefix byte. */
static void nc_packet_associated( uint8_t associated[NC_PACKET_AD_BYTES], uint64_t protocol_id, uint8_t prefix )
{
    memcpy( associated, NC_VERSION_INFO, NC_VERSION_BYTES );
    nc_store_u64( associated + NC_VERSION_BYTES, protocol_id );
    associated[NC_VERSION_BYTES + 8] = prefix;
}

/* The key of one direction, and the protocol id. */
typedef struct {
    const uint8_t * key;
    uint64_t protocol_id;
} nc_packet_context_t;

/* Opens a parsed packet into `out`, which may be in `data`, after the header. */
static inline int nc_packet_open( const nc_packet_t * packet, const uint8_t * data, uint8_t * out,
                                  const nc_packet_context_t * context )
{
    uint8_t associated[NC_PACKET_AD_BYTES];
    nc_seal_t seal = { context->key, packet->sequence, associated, sizeof( associated ) };
    nc_packet_associated( associated, context->protocol_id, data[0] );
    return nc_crypto_open( out, data + packet->header_bytes, (size_t) ( packet->body_bytes + NETCODE_MAC_BYTES ),
                           &seal );
}

/*  Reads a packet of a session, with replay protection: the test, decryption in place, advance. Standard: Reading
    Encrypted Packets. Returns a drop reason. */
static inline int nc_packet_accept( const nc_packet_t * packet, uint8_t * data, const nc_packet_context_t * context,
                                    nc_replay_t * replay )
{
    int reason = nc_replay_seen( replay, packet->sequence );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    if ( !nc_packet_open( packet, data, data + packet->header_bytes, context ) )
        return NETCODE_DROP_AUTHENTICATION_FAILED;
    nc_replay_advance( replay, packet->sequence );
    return NETCODE_DROP_NONE;
}

/* The bytes that this sequence has in a packet. */
static inline int nc_packet_sequence_bytes( uint64_t sequence )
{
    int bytes = sequence >> 48 ? 8 : 6; /* nearly all have 6: see nc_crypto_sequence_base */
    while ( bytes > 1 && !( sequence >> 8 * ( bytes - 1 ) ) )
        bytes--;
    return bytes;
}

/* Writes a sealed packet to `out` and returns its size. `packet` gives type, sequence and body_bytes. */
static int nc_packet_seal( uint8_t * out, const nc_packet_t * packet, const uint8_t * body,
                           const nc_packet_context_t * context )
{
    uint8_t associated[NC_PACKET_AD_BYTES];
    nc_seal_t seal = { context->key, packet->sequence, associated, sizeof( associated ) };
    int sequence_bytes = nc_packet_sequence_bytes( packet->sequence );

    nc_store_u64( out + 1, packet->sequence ); /* the body overwrites surplus bytes */
    out[0] = (uint8_t) ( sequence_bytes << 4 | packet->type );
    nc_packet_associated( associated, context->protocol_id, out[0] );
    nc_crypto_seal( out + 1 + sequence_bytes, body, (size_t) packet->body_bytes, &seal );
    return 1 + sequence_bytes + packet->body_bytes + NETCODE_MAC_BYTES;
}

/* Writes a connection request, the one packet that is not sealed. Standard: Packets */
static int nc_packet_write_request( uint8_t * out, const nc_connect_token_t * token )
{
    nc_writer_t writer = nc_writer_make( out, NC_REQUEST_BYTES );
    nc_writer_number( &writer, NETCODE_PACKET_REQUEST, 1 );
    nc_writer_bytes( &writer, (const uint8_t *) NC_VERSION_INFO, NC_VERSION_BYTES );
    nc_writer_number( &writer, token->protocol_id, 8 );
    nc_writer_number( &writer, token->expire_timestamp, 8 );
    nc_writer_bytes( &writer, token->nonce, NC_TOKEN_NONCE_BYTES );
    nc_writer_bytes( &writer, token->sealed_private, NC_PRIVATE_TOKEN_BYTES );
    return (int) writer.at;
}

/* A connection request; the pointers point into its datagram. */
typedef struct {
    uint64_t expire_timestamp;
    const uint8_t * nonce;
    const uint8_t * sealed_private;
    const uint8_t * tag; /* the token's tag, which identifies the token: NC_TOKEN_TAG_BYTES */
} nc_request_t;

/* Standard: Processing Connection Requests, the steps that need neither clock nor key. Returns a drop reason. */
static int nc_packet_parse_request( nc_request_t * request, const uint8_t * data, int bytes, uint64_t protocol_id )
{
    if ( bytes == NC_REQUEST_BYTES_OLD && memcmp( data + 1, NC_VERSION_INFO_OLD, NC_VERSION_BYTES ) == 0 )
        return NETCODE_DROP_REQUEST_OLD_VERSION;
    if ( bytes != NC_REQUEST_BYTES )
        return NETCODE_DROP_REQUEST_WRONG_SIZE;
    if ( memcmp( data + 1, NC_VERSION_INFO, NC_VERSION_BYTES ) != 0 )
        return data[NC_VERSION_BYTES - 1] == '1' && memcmp( data + 1, NC_VERSION_INFO_OLD, NC_VERSION_BYTES ) == 0
                   ? NETCODE_DROP_REQUEST_OLD_VERSION
                   : NETCODE_DROP_REQUEST_WRONG_VERSION;

    data += 1 + NC_VERSION_BYTES;
    if ( nc_load_u64( data ) != protocol_id )
        return NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID;

    request->expire_timestamp = nc_load_u64( data + 8 );
    request->nonce = data + 16;
    request->sealed_private = data + 16 + NC_TOKEN_NONCE_BYTES;
    request->tag = request->sealed_private + NC_PRIVATE_TOKEN_BYTES - NC_TOKEN_TAG_BYTES;
    return NETCODE_DROP_NONE;
}

/* ================================================================================================================
    ROOM 8: CONTAINERS
    Which containers make finding, timing and removing an entry cost the same for one client as for ten thousand?
    Uses: nothing.
    Invariant: nothing here allocates; all memory is part of one arena, whose size was computed before.
   ================================================================================================================ */

/* ---- arena: divides one block into parts of whole cache lines, of which processors fetch pairs; without a block it
only measures ---- */

enum { NC_ARENA_LINE = 64, NC_ARENA_ALIGN = 2 * NC_ARENA_LINE };

#define NC_ARENA_TOO_MUCH ( (size_t) -1 / 2 )

typedef struct {
    uint8_t * base; /* NULL: only measure */
    size_t at;
} nc_arena_t;

static nc_arena_t nc_arena_make( void * block )
{
    nc_arena_t arena;
    arena.base = (uint8_t *) block;
    arena.at = block ? ( NC_ARENA_ALIGN - (size_t) ( (uintptr_t) block % NC_ARENA_ALIGN ) ) % NC_ARENA_ALIGN
                     : NC_ARENA_ALIGN - 1;
    return arena;
}

static void * nc_arena_take( nc_arena_t * arena, size_t count, size_t bytes )
{
    void * piece = arena->base ? arena->base + arena->at : NULL;
    if ( arena->at == NC_ARENA_TOO_MUCH || count > ( NC_ARENA_TOO_MUCH - arena->at - NC_ARENA_ALIGN ) / bytes ) {
        arena->at = NC_ARENA_TOO_MUCH; /* more than any allocator has, and it stays at that */
        return NULL;
    }
    arena->at += ( count * bytes + NC_ARENA_LINE - 1 ) / NC_ARENA_LINE * NC_ARENA_LINE;
    return piece;
}

/* ---- list: doubly linked, over an array of links; an index is in at most one list of an array ---- */

typedef struct {
    uint32_t prev;
    uint32_t next;
} nc_link_t;

typedef struct {
    uint32_t head;
    uint32_t tail;
    uint32_t count;
} nc_list_t;

static void nc_list_init( nc_list_t * list )
{
    list->head = list->tail = NC_NONE;
    list->count = 0;
}

static void nc_list_insert( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    links[index].prev = list->tail;
    links[index].next = NC_NONE;
    if ( list->tail == NC_NONE )
        list->head = index;
    else
        links[list->tail].next = index;
    list->tail = index;
    list->count++;
}

static void nc_list_remove( nc_list_t * list, nc_link_t * links, uint32_t index )
{
    uint32_t prev = links[index].prev, next = links[index].next;
    if ( prev == NC_NONE )
        list->head = next;
    else
        links[prev].next = next;
    if ( next == NC_NONE )
        list->tail = prev;
    else
        links[next].prev = prev;
    list->count--;
}

/* ---- table: a hash map from 32-bit hashes to indices; several indices may share one hash ---- */

typedef struct {
    uint32_t hash;
    uint32_t next;
} nc_table_entry_t;

typedef struct {
    uint32_t * heads;
    nc_table_entry_t * entries;
    uint32_t mask;
} nc_table_t;

static uint32_t nc_table_heads( uint32_t least )
{
    uint32_t heads = 16;
    while ( heads < least && heads < 1u << 31 )
        heads *= 2;
    return heads;
}

/*  With at least `least_heads` heads: with more per entry, a failed lookup ends sooner; with fewer in total, they are
    more often in the processor's cache. */
static void nc_table_place( nc_table_t * table, nc_arena_t * arena, uint32_t capacity, uint32_t least_heads )
{
    table->mask = nc_table_heads( least_heads ) - 1;
    table->heads = (uint32_t *) nc_arena_take( arena, (size_t) table->mask + 1, sizeof( uint32_t ) );
    table->entries = (nc_table_entry_t *) nc_arena_take( arena, capacity, sizeof( nc_table_entry_t ) );
}

static void nc_table_reset( nc_table_t * table )
{
    memset( table->heads, 0xff, ( (size_t) table->mask + 1 ) * sizeof( uint32_t ) );
}

/* The first index from `index` on, along its chain, with this hash. */
static uint32_t nc_table_match( const nc_table_t * table, uint32_t index, uint32_t hash )
{
    while ( index != NC_NONE && table->entries[index].hash != hash )
        index = table->entries[index].next;
    return index;
}

static uint32_t * nc_table_head( const nc_table_t * table, uint32_t hash )
{
    return &table->heads[hash & table->mask];
}

/* The index inserted last with this hash, or NC_NONE. Different keys can have one hash: compare the key itself. */
static uint32_t nc_table_find( const nc_table_t * table, uint32_t hash )
{
    return nc_table_match( table, *nc_table_head( table, hash ), hash );
}

static uint32_t nc_table_find_next( const nc_table_t * table, uint32_t index )
{
    return nc_table_match( table, table->entries[index].next, table->entries[index].hash );
}

static void nc_table_insert( nc_table_t * table, uint32_t hash, uint32_t index )
{
    uint32_t * head = nc_table_head( table, hash );
    table->entries[index].next = *head;
    table->entries[index].hash = hash;
    *head = index;
}

static void nc_table_remove( nc_table_t * table, uint32_t index )
{
    uint32_t * at = nc_table_head( table, table->entries[index].hash );
    while ( *at != index )
        at = &table->entries[*at].next;
    *at = table->entries[index].next;
}

/* ---- bits: a set of numbers that finds its lowest member ---- */

typedef struct {
    uint64_t * words;
    uint32_t word_count;
} nc_bits_t;

static void nc_bits_place( nc_bits_t * bits, nc_arena_t * arena, uint32_t capacity )
{
    bits->word_count = ( capacity + 63 ) / 64;
    bits->words = (uint64_t *) nc_arena_take( arena, bits->word_count, sizeof( uint64_t ) );
}

static void nc_bits_reset( nc_bits_t * bits )
{
    memset( bits->words, 0, bits->word_count * sizeof( uint64_t ) );
}

static void nc_bits_insert( nc_bits_t * bits, uint32_t index )
{
    bits->words[index / 64] |= (uint64_t) 1 << ( index % 64 );
}

static void nc_bits_remove( nc_bits_t * bits, uint32_t index )
{
    bits->words[index / 64] &= ~( (uint64_t) 1 << ( index % 64 ) );
}

/*  The position of a word's lowest set bit. Each sequence of six bits is once in the factor (a de Bruijn sequence), so
    the position by which it is shifted decides what its highest six bits are. */
static uint32_t nc_bits_lowest_of_word( uint64_t word )
{
    static const uint8_t positions[64] = { 0,  1,  48, 2,  57, 49, 28, 3,  61, 58, 50, 42, 38, 29, 17, 4,
                                           62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
                                           63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
                                           46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,  13, 8,  7,  6 };
    return positions[( word & ( ~word + 1 ) ) * 0x03f79d71b4cb0a89u >> 58];
}

static uint32_t nc_bits_lowest( const nc_bits_t * bits )
{
    for ( uint32_t i = 0; i < bits->word_count; i++ )
        if ( bits->words[i] )
            return i * 64 + nc_bits_lowest_of_word( bits->words[i] );
    return NC_NONE;
}

/*  ---- wheel: timers in buckets of 1/1024 s ---- A timer may expire early (the wheel is one second long), never late
by more than a bucket: its handler checks the actual deadline and sets the timer again. So a packet sent or received
costs the wheel nothing, and an update with nothing due reads one number. */

enum { NC_WHEEL_BUCKETS = 1024, NC_WHEEL_DUE = NC_WHEEL_BUCKETS, NC_WHEEL_LISTS = NC_WHEEL_BUCKETS + 1 };

typedef struct {
    uint64_t tick; /* the first one not processed yet */
    nc_list_t lists[NC_WHEEL_LISTS];
    nc_link_t * links;
    uint16_t * list_of; /* NC_WHEEL_LISTS: not set */
    uint32_t capacity;
} nc_wheel_t;

static uint64_t nc_wheel_tick( double seconds )
{
    return seconds > 0.0 ? (uint64_t) ( seconds * (double) NC_WHEEL_BUCKETS ) : 0;
}

static void nc_wheel_place( nc_wheel_t * wheel, nc_arena_t * arena, uint32_t capacity )
{
    wheel->capacity = capacity;
    wheel->links = (nc_link_t *) nc_arena_take( arena, capacity, sizeof( nc_link_t ) );
    wheel->list_of = (uint16_t *) nc_arena_take( arena, capacity, sizeof( uint16_t ) );
}

static void nc_wheel_reset( nc_wheel_t * wheel, double now )
{
    for ( uint32_t i = 0; i < NC_WHEEL_LISTS; i++ )
        nc_list_init( &wheel->lists[i] );
    for ( uint32_t i = 0; i < wheel->capacity; i++ )
        wheel->list_of[i] = NC_WHEEL_LISTS;
    wheel->tick = nc_wheel_tick( now );
}

static void nc_wheel_remove( nc_wheel_t * wheel, uint32_t timer )
{
    uint32_t list = wheel->list_of[timer];
    if ( list == NC_WHEEL_LISTS )
        return;
    nc_list_remove( &wheel->lists[list], wheel->links, timer );
    wheel->list_of[timer] = NC_WHEEL_LISTS;
}

static void nc_wheel_insert( nc_wheel_t * wheel, uint32_t timer, double deadline )
{
    uint64_t tick = nc_wheel_tick( deadline );
    if ( tick < wheel->tick )
        tick = wheel->tick;
    if ( tick - wheel->tick >= NC_WHEEL_BUCKETS )
        tick = wheel->tick + NC_WHEEL_BUCKETS - 1;

    uint32_t list = (uint32_t) ( tick % NC_WHEEL_BUCKETS );
    nc_wheel_remove( wheel, timer );
    nc_list_insert( &wheel->lists[list], wheel->links, timer );
    wheel->list_of[timer] = (uint16_t) list;
}

/* Collects the timers due by `now`; a jump of any length costs one turn of the wheel. */
static void nc_wheel_advance( nc_wheel_t * wheel, double now )
{
    uint64_t end = nc_wheel_tick( now );
    uint64_t tick = wheel->tick;
    if ( end < tick )
        return;

    wheel->tick = end + 1;
    if ( end - tick >= NC_WHEEL_BUCKETS )
        end = tick + NC_WHEEL_BUCKETS - 1;

    for ( ; tick <= end; tick++ ) {
        uint32_t list = (uint32_t) ( tick % NC_WHEEL_BUCKETS );
        while ( wheel->lists[list].count ) {
            uint32_t timer = wheel->lists[list].head;
            nc_wheel_remove( wheel, timer );
            nc_list_insert( &wheel->lists[NC_WHEEL_DUE], wheel->links, timer );
            wheel->list_of[timer] = NC_WHEEL_DUE;
        }
    }
}

/* Removes and returns one of the timers that are due, or NC_NONE. */
static uint32_t nc_wheel_take( nc_wheel_t * wheel )
{
    uint32_t timer = wheel->lists[NC_WHEEL_DUE].head;
    if ( timer != NC_NONE )
        nc_wheel_remove( wheel, timer );
    return timer;
}

/* Seconds until a timer may expire; one second when none is set. */
static double nc_wheel_seconds_left( const nc_wheel_t * wheel, double now )
{
    for ( uint64_t tick = wheel->tick; tick < wheel->tick + NC_WHEEL_BUCKETS; tick++ )
        if ( wheel->lists[tick % NC_WHEEL_BUCKETS].count ) {
            double left = (double) tick / (double) NC_WHEEL_BUCKETS - now;
            return left > 0.0 ? left : 0.0;
        }
    return 1.0;
}

/* ================================================================================================================
    ROOM 9: QUEUES
    Where do packets wait: received payloads and events for the application, and datagrams for the network?
    Uses: platform, address, packet, containers.
    Invariant: nothing here allocates; each client has a share of the buffers that others can not use.
   ================================================================================================================ */

/*  ---- pool: buffers for received packets, in a block of their own, since a packet may outlive its slot and its
    server's start ---- */

enum { NC_BUFFER_FREE, NC_BUFFER_QUEUED, NC_BUFFER_HELD };

typedef struct {
    uint64_t session;
    uint64_t client_id;
    uint64_t sequence;
    uint32_t client_index;
    uint32_t bytes; /* of the payload */
} nc_buffer_t;

typedef struct nc_pool_t {
    struct nc_pool_t * next; /* pools of earlier starts whose packets the caller still holds */
    void * block;            /* its memory */
    uint8_t * buffers;
    uint8_t * states; /* NC_BUFFER_...; not inside the buffers, whose pages stay unused before their first packet */
    uint32_t * free_list;
    uint32_t count;
    uint32_t free_count;
    uint32_t fresh; /* buffers that were never used; as many entries of the free list were never written */
    uint32_t held;
} nc_pool_t;

NC_STATIC_ASSERT( buffers_are_whole_lines, (int) NC_BUFFER_STRIDE % (int) NC_ARENA_LINE == 0 );
NC_STATIC_ASSERT( what_leaves_fits, NC_OUT_STRIDE >= NC_MAX_DATAGRAM_BYTES && NC_OUT_STRIDE % 16 == 0 );

static nc_pool_t * nc_pool_place( nc_arena_t * arena, uint32_t count )
{
    nc_pool_t * pool = (nc_pool_t *) nc_arena_take( arena, 1, sizeof( nc_pool_t ) );
    uint32_t * free_list = (uint32_t *) nc_arena_take( arena, count, sizeof( uint32_t ) );
    uint8_t * states = (uint8_t *) nc_arena_take( arena, count, sizeof( uint8_t ) );
    uint8_t * buffers = (uint8_t *) nc_arena_take( arena, count, NC_BUFFER_STRIDE );
    if ( !pool )
        return NULL;

    memset( pool, 0, sizeof( *pool ) );
    pool->block = arena->base;
    pool->free_list = free_list;
    pool->states = states;
    pool->buffers = buffers;
    pool->count = pool->free_count = pool->fresh = count;
    memset( states, NC_BUFFER_FREE, count );
    return pool;
}

/* How much of its block may have been written to: this is wiped when it is freed. The rest uses no memory. */
static size_t nc_pool_written_bytes( const nc_pool_t * pool )
{
    return (size_t) ( pool->buffers - (uint8_t *) pool->block ) +
           (size_t) ( pool->count - pool->fresh ) * NC_BUFFER_STRIDE;
}

static nc_buffer_t * nc_pool_buffer( nc_pool_t * pool, uint32_t index )
{
    return (nc_buffer_t *) (void *) ( pool->buffers + (size_t) index * NC_BUFFER_STRIDE );
}

/* A buffer's payload, aligned to a cache line. */
static uint8_t * nc_pool_data( nc_pool_t * pool, uint32_t index )
{
    return pool->buffers + (size_t) index * NC_BUFFER_STRIDE + NC_BUFFER_HEADER_BYTES;
}

/* Where a datagram is received, so that a payload after a header of the usual length needs no copy. */
static uint8_t * nc_pool_datagram( nc_pool_t * pool, uint32_t index )
{
    return nc_pool_data( pool, index ) - NC_USUAL_HEADER_BYTES;
}

/* Takes the buffer that was freed last, else the first that was never used. */
static uint32_t nc_pool_take( nc_pool_t * pool )
{
    if ( pool->free_count == 0 )
        return NC_NONE;
    uint32_t at = --pool->free_count;
    if ( at >= pool->fresh )
        return pool->free_list[at];
    pool->fresh = at;
    return pool->count - 1 - at;
}

static void nc_pool_free( nc_pool_t * pool, uint32_t index )
{
    pool->states[index] = NC_BUFFER_FREE;
    pool->free_list[pool->free_count++] = index;
}

/* The index of a packet's buffer, or NC_NONE if it is not in this pool. */
static uint32_t nc_pool_find( const nc_pool_t * pool, const void * packet )
{
    uintptr_t index = ( (uintptr_t) packet - (uintptr_t) pool->buffers ) / NC_BUFFER_STRIDE; /* huge if before it */
    return index < pool->count ? (uint32_t) index : NC_NONE;
}

/*  ---- inbox: what is not read yet: a queue for each client and, with config.events, all events in their order ----
Every client has a share of the pool that others can not use (`reserved` counts the unused parts of all shares); beyond
its share a client may queue up to its quota, as long as buffers are free. */

/* An event other than a payload. */
typedef struct {
    uint64_t session; /* 0: there is none that is unread */
    uint64_t client_id;
    int32_t reason;
} nc_event_t;

/*  Of each client: CONNECTED and DISCONNECTED of two sessions, and a MOVED of the current one. So a slot can be used
    again before the events of its last session are read, and then not again before they are. */
enum { NC_EVENT_CONNECTED = 0, NC_EVENT_DISCONNECTED = 1, NC_EVENT_MOVED = 4, NC_EVENTS = 5 };

typedef struct {
    nc_list_t list;
    uint8_t is_open;
    uint8_t is_disconnected; /* closed, with unread payloads */
    uint8_t is_joined;       /* its payloads are not events: messages read them */
    uint8_t has_ended;       /* a session has, since messages read them last */
    uint8_t first_event;     /* 0, 2: where the events of the current session are, or of the next one */
} nc_queue_t;

typedef struct {
    nc_pool_t * pool;
    nc_queue_t * queues;
    nc_link_t * queue_links;        /* by buffer: its client's queue */
    nc_list_t disconnected;         /* disconnected clients with unread payloads */
    nc_link_t * disconnected_links; /* by client */
    nc_list_t events;
    nc_link_t * event_links; /* buffers first, then NC_EVENTS of each client */
    nc_event_t * unread;
    uint32_t client_count;
    uint32_t quota;
    uint32_t share;
    uint32_t reserved;
    uint32_t queued;
    int has_events; /* config.events */
} nc_inbox_t;

static void nc_inbox_place( nc_inbox_t * inbox, nc_arena_t * arena, uint32_t buffer_count )
{
    uint32_t client_count = inbox->client_count;
    inbox->queues = (nc_queue_t *) nc_arena_take( arena, client_count, sizeof( nc_queue_t ) );
    inbox->disconnected_links = (nc_link_t *) nc_arena_take( arena, client_count, sizeof( nc_link_t ) );
    inbox->queue_links = (nc_link_t *) nc_arena_take( arena, buffer_count, sizeof( nc_link_t ) );
    if ( inbox->has_events ) {
        uint32_t count = NC_EVENTS * client_count;
        inbox->event_links = (nc_link_t *) nc_arena_take( arena, buffer_count + count, sizeof( nc_link_t ) );
        inbox->unread = (nc_event_t *) nc_arena_take( arena, count, sizeof( nc_event_t ) );
    }
}

static void nc_inbox_reset( nc_inbox_t * inbox, nc_pool_t * pool, uint32_t quota )
{
    inbox->pool = pool;
    inbox->quota = quota;
    inbox->share = pool->count / ( 2 * inbox->client_count );
    inbox->reserved = inbox->queued = 0;

    nc_list_init( &inbox->disconnected );
    nc_list_init( &inbox->events );
    memset( inbox->queues, 0, inbox->client_count * sizeof( nc_queue_t ) );
    for ( uint32_t i = 0; i < inbox->client_count; i++ )
        nc_list_init( &inbox->queues[i].list );
    if ( inbox->has_events )
        memset( inbox->unread, 0, NC_EVENTS * inbox->client_count * sizeof( nc_event_t ) );
}

/* Keeps a disconnected client in the list while it has unread payloads. */
static void nc_inbox_mark_disconnected( nc_inbox_t * inbox, uint32_t client_index )
{
    nc_queue_t * queue = &inbox->queues[client_index];
    uint8_t is_disconnected = !queue->is_open && queue->list.count > 0;
    if ( is_disconnected && !queue->is_disconnected )
        nc_list_insert( &inbox->disconnected, inbox->disconnected_links, client_index );
    else if ( !is_disconnected && queue->is_disconnected )
        nc_list_remove( &inbox->disconnected, inbox->disconnected_links, client_index );
    queue->is_disconnected = is_disconnected;
}

/* Removes a payload from its queue and from the events. */
static NC_INLINE void nc_inbox_unlink( nc_inbox_t * inbox, uint32_t index )
{
    nc_buffer_t * buffer = nc_pool_buffer( inbox->pool, index );
    nc_queue_t * queue = &inbox->queues[buffer->client_index];
    if ( inbox->has_events && !queue->is_joined )
        nc_list_remove( &inbox->events, inbox->event_links, index );
    inbox->queued--;
    nc_list_remove( &queue->list, inbox->queue_links, index );
    if ( !queue->is_open )
        nc_inbox_mark_disconnected( inbox, buffer->client_index );
    else if ( queue->list.count < inbox->share )
        inbox->reserved++;
}

static void nc_inbox_discard( nc_inbox_t * inbox, uint32_t index )
{
    nc_inbox_unlink( inbox, index );
    nc_pool_free( inbox->pool, index );
}

/* Has this client's queue reached its quota? */
static NC_INLINE int nc_inbox_is_full( const nc_inbox_t * inbox, uint32_t client_index )
{
    return inbox->queues[client_index].list.count >= inbox->quota;
}

/*  Can one more payload of this client be queued? The oldest payloads of disconnected clients are dropped for it:
    connected clients need the buffers more. Returns a drop reason. */
static NC_INLINE int nc_inbox_check_capacity( nc_inbox_t * inbox, uint32_t client_index )
{
    uint32_t count = inbox->queues[client_index].list.count;
    uint32_t kept_back = count < inbox->share ? 0 : inbox->reserved;
    if ( nc_inbox_is_full( inbox, client_index ) )
        return NETCODE_DROP_QUEUE_FULL;
    while ( inbox->pool->free_count <= kept_back ) {
        if ( inbox->disconnected.count == 0 )
            return inbox->pool->free_count == 0 ? NETCODE_DROP_POOL_EMPTY : NETCODE_DROP_QUEUE_FULL;
        nc_inbox_discard( inbox, inbox->queues[inbox->disconnected.head].list.head );
    }
    return NETCODE_DROP_NONE;
}

/* How many more payloads can be queued, whichever client sent them. */
static uint32_t nc_inbox_capacity_left( const nc_inbox_t * inbox )
{
    return inbox->pool->free_count > inbox->reserved ? inbox->pool->free_count - inbox->reserved : 0;
}

/* Does the application read everything, and hold few packets? Then buffers will be free again soon. */
static int nc_inbox_is_read( const nc_inbox_t * inbox )
{
    return inbox->queued == 0 && nc_inbox_capacity_left( inbox ) >= inbox->pool->count / 4;
}

/* Queues a filled buffer, after nc_inbox_check_capacity allowed it. Its header describes its payload. */
static inline void nc_inbox_insert( nc_inbox_t * inbox, uint32_t index )
{
    nc_buffer_t * buffer = nc_pool_buffer( inbox->pool, index );
    nc_queue_t * queue = &inbox->queues[buffer->client_index];
    if ( queue->is_open && queue->list.count < inbox->share )
        inbox->reserved--;

    inbox->pool->states[index] = NC_BUFFER_QUEUED;
    /* for applications' bit readers that read ahead */
    memset( nc_pool_data( inbox->pool, index ) + buffer->bytes, 0, 8 );
    nc_list_insert( &queue->list, inbox->queue_links, index );
    if ( inbox->has_events && !queue->is_joined )
        nc_list_insert( &inbox->events, inbox->event_links, index );
    inbox->queued++;
}

/* Copies a payload into a free buffer and queues it. Returns a drop reason. */
static int nc_inbox_copy( nc_inbox_t * inbox, nc_buffer_t what, const uint8_t * data )
{
    int reason = nc_inbox_check_capacity( inbox, what.client_index );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    uint32_t index = nc_pool_take( inbox->pool );
    *nc_pool_buffer( inbox->pool, index ) = what;
    memcpy( nc_pool_data( inbox->pool, index ), data, what.bytes );
    nc_inbox_insert( inbox, index );
    return NETCODE_DROP_NONE;
}

/* Returns a queued payload to the caller. */
static NC_INLINE uint8_t * nc_inbox_hand_out( nc_inbox_t * inbox, uint32_t index )
{
    nc_inbox_unlink( inbox, index );
    inbox->pool->states[index] = NC_BUFFER_HELD;
    inbox->pool->held++;
    return nc_pool_data( inbox->pool, index );
}

/* Adds an event, unless one of its kind is unread. */
static void nc_inbox_report( nc_inbox_t * inbox, uint32_t client_index, uint32_t kind, const nc_event_t * event )
{
    uint32_t at = client_index * NC_EVENTS + kind;
    if ( !inbox->has_events || inbox->unread[at].session )
        return;
    inbox->unread[at] = *event;
    nc_list_insert( &inbox->events, inbox->event_links, inbox->pool->count + at );
}

static void nc_inbox_remove_event( nc_inbox_t * inbox, uint32_t at )
{
    inbox->unread[at].session = 0;
    nc_list_remove( &inbox->events, inbox->event_links, inbox->pool->count + at );
}

/* Can one more session of this slot begin, after the current one? Not before the events of earlier ones are read. */
static int nc_inbox_can_open( const nc_inbox_t * inbox, uint32_t client_index )
{
    const nc_queue_t * queue = &inbox->queues[client_index];
    uint32_t at = client_index * NC_EVENTS + ( queue->is_open ? 2u - queue->first_event : queue->first_event );
    return !inbox->has_events || ( !inbox->unread[at].session && !inbox->unread[at + 1].session );
}

/* A session begins. Unread payloads of the previous one that are no events are dropped: nothing tells them apart. */
static void nc_inbox_open( nc_inbox_t * inbox, uint32_t client_index, uint64_t session, uint64_t client_id )
{
    nc_queue_t * queue = &inbox->queues[client_index];
    const nc_event_t event = { session, client_id, 0 };
    while ( queue->list.count && ( !inbox->has_events || queue->is_joined ) )
        nc_inbox_discard( inbox, queue->list.head );

    queue->is_open = 1;
    nc_inbox_mark_disconnected( inbox, client_index );
    inbox->reserved += queue->list.count < inbox->share ? inbox->share - queue->list.count : 0;
    nc_inbox_report( inbox, client_index, queue->first_event + NC_EVENT_CONNECTED, &event );
}

/* A session ends: its payloads can still be read, its share is freed. */
static void nc_inbox_close( nc_inbox_t * inbox, uint32_t client_index, uint64_t session, uint64_t client_id,
                            int reason )
{
    nc_queue_t * queue = &inbox->queues[client_index];
    const nc_event_t event = { session, client_id, reason };
    if ( queue->is_open && queue->list.count < inbox->share )
        inbox->reserved -= inbox->share - queue->list.count;
    queue->is_open = 0;
    queue->has_ended = 1;
    nc_inbox_mark_disconnected( inbox, client_index );
    if ( inbox->has_events && inbox->unread[client_index * NC_EVENTS + NC_EVENT_MOVED].session )
        nc_inbox_remove_event( inbox, client_index * NC_EVENTS + NC_EVENT_MOVED );
    nc_inbox_report( inbox, client_index, queue->first_event + NC_EVENT_DISCONNECTED, &event );
    queue->first_event = (uint8_t) ( 2 - queue->first_event );
}

/* Fills an event that is all zeros. */
static int nc_inbox_next_event( nc_inbox_t * inbox, struct netcode_event_t * event )
{
    uint32_t index = inbox->events.head;
    if ( index == NC_NONE )
        return 0;

    if ( index >= inbox->pool->count ) {
        uint32_t at = index - inbox->pool->count, kind = at % NC_EVENTS;
        const nc_event_t * it = &inbox->unread[at];
        event->type = kind == NC_EVENT_MOVED              ? NETCODE_EVENT_MOVED
                      : kind % 2 == NC_EVENT_DISCONNECTED ? NETCODE_EVENT_DISCONNECTED
                                                          : NETCODE_EVENT_CONNECTED;
        event->client_index = (int) ( at / NC_EVENTS );
        event->session = it->session;
        event->client_id = it->client_id;
        event->reason = it->reason;
        nc_inbox_remove_event( inbox, at );
    } else {
        const nc_buffer_t * buffer = nc_pool_buffer( inbox->pool, index );
        event->type = NETCODE_EVENT_PAYLOAD;
        event->client_index = (int) buffer->client_index;
        event->session = buffer->session;
        event->client_id = buffer->client_id;
        event->sequence = buffer->sequence;
        event->bytes = (int) buffer->bytes;
        event->data = nc_inbox_hand_out( inbox, index );
    }
    return 1;
}

/* The oldest payload of one client, or NULL. */
static uint8_t * nc_inbox_receive( nc_inbox_t * inbox, uint32_t client_index, int * bytes, uint64_t * sequence )
{
    uint32_t index = inbox->queues[client_index].list.head;
    if ( index == NC_NONE )
        return NULL;
    const nc_buffer_t * buffer = nc_pool_buffer( inbox->pool, index );
    *bytes = (int) buffer->bytes;
    if ( sequence )
        *sequence = buffer->sequence;
    return nc_inbox_hand_out( inbox, index );
}

/* ---- counters: those that client and server share ---- */

typedef struct {
    uint64_t packets_sent[NETCODE_PACKET_TYPES];
    uint64_t packets_received[NETCODE_PACKET_TYPES];
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t datagrams_received;
    uint64_t dropped[NETCODE_DROP_REASONS];
    uint64_t send_errors;
    uint64_t receive_errors;
    int last_socket_error;
} nc_counters_t;

/* Both stats structs begin with these fields. */
NC_STATIC_ASSERT( client_stats_begin_with_counters,
                  offsetof( struct netcode_client_stats_t, connects ) == offsetof( nc_counters_t, send_errors ) );
NC_STATIC_ASSERT( server_stats_begin_with_counters,
                  offsetof( struct netcode_server_stats_t, connects ) == offsetof( nc_counters_t, send_errors ) );

/* ---- outbox: encrypted datagrams to be sent, each at once or in batches ----
The network's send may be a callback of the application, which may send again, disconnect or stop. So a datagram sent
at once is encrypted on the sender's stack, and those waiting in a batch are not moved while the batch is sent. */

typedef struct {
    struct netcode_socket_t * socket;
    nc_counters_t * counters;
    struct netcode_datagram_t * datagrams;
    uint8_t * bytes;
    int capacity; /* 0: everything is sent at once */
    int count;
    int sent; /* while flushing: how many of them were passed to the network */
    int flushing;
    int depth; /* sends called from within sends */
} nc_outbox_t;

static void nc_outbox_place( nc_outbox_t * outbox, nc_arena_t * arena, int capacity )
{
    outbox->capacity = capacity;
    outbox->count = outbox->sent = outbox->flushing = outbox->depth = 0;
    outbox->datagrams =
        (struct netcode_datagram_t *) nc_arena_take( arena, (size_t) capacity, sizeof( struct netcode_datagram_t ) );
    outbox->bytes = (uint8_t *) nc_arena_take( arena, (size_t) capacity, NC_OUT_STRIDE );
}

static void nc_outbox_send( nc_outbox_t * outbox, const struct netcode_datagram_t * datagrams, int count )
{
    int sent = 0;
    if ( outbox->depth < NC_SENDS_WITHIN_SENDS ) { /* a callback that sends during every send would never end */
        outbox->depth++;
        sent = outbox->socket->send( outbox->socket->context, datagrams, count );
        outbox->depth--;
    }
    if ( sent < count )
        outbox->counters->send_errors += (uint64_t) ( count - ( sent > 0 ? sent : 0 ) );
}

/* Sends everything that waits. Datagrams that the network's callback adds during this are sent in another round. */
static void nc_outbox_flush( nc_outbox_t * outbox )
{
    if ( outbox->flushing || outbox->count == 0 )
        return;
    outbox->flushing = 1;
    while ( outbox->count > outbox->sent ) {
        int from = outbox->sent;
        outbox->sent = outbox->count;
        nc_outbox_send( outbox, outbox->datagrams + from, outbox->count - from );
    }
    outbox->count = outbox->sent = outbox->flushing = 0;
}

/*  Where to write a datagram of up to NC_OUT_STRIDE bytes: into the batch, or to `spare` if the batch has no free
    entry. May flush: check afterwards that the receiver is still connected. */
static uint8_t * nc_outbox_begin( nc_outbox_t * outbox, uint8_t spare[NC_OUT_STRIDE] )
{
    if ( outbox->capacity && outbox->count == outbox->capacity )
        nc_outbox_flush( outbox );
    return outbox->count < outbox->capacity ? outbox->bytes + (size_t) outbox->count * NC_OUT_STRIDE : spare;
}

/* Leaves the written datagram in the batch, or sends it at once. */
static void nc_outbox_end( nc_outbox_t * outbox, uint8_t * out, const struct netcode_address_t * to, int type,
                           int bytes )
{
    struct netcode_datagram_t datagram;
    memset( &datagram, 0, sizeof( datagram ) );
    datagram.address = *to;
    datagram.data = out;
    datagram.bytes = datagram.capacity = bytes;

    outbox->counters->packets_sent[type]++;
    outbox->counters->bytes_sent += (uint64_t) bytes;
    if ( outbox->count < outbox->capacity )
        outbox->datagrams[outbox->count++] = datagram;
    else
        nc_outbox_send( outbox, &datagram, 1 );
}

/* ---- time and datagrams, for client and server ---- */

/*  A tenth of a second, less the error of a caller's clock, so that it is over after six ticks at 60 Hz. Standard:
    Sending Connection Request */
#define NC_SEND_INTERVAL 0.0995

/* ---- received packet: a datagram while a client or a server processes it ---- */

typedef struct {
    struct netcode_address_t * from; /* in canonical form */
    uint8_t * data;
    int bytes;
    uint32_t
        buffer;    /* the pool's buffer that it is in, or NC_NONE; if that was queued, the one for the next datagram */
    int kept;      /* it was queued */
    int cost;      /* work units spent, beyond the one of every datagram */
    int reason;    /* of a server's first look: why it is dropped */
    uint32_t slot; /* that `from` had then */
    uint64_t hash; /* for a server's tables: of a request's tag, else of `from` */
    union {
        nc_packet_t packet;
        nc_request_t request;
    } as;
} nc_received_t;

/* Converts the address to canonical form in place; an IPv4 address has it already, except for unused bytes. */
static void nc_received_init( nc_received_t * received, struct netcode_datagram_t * datagram, uint32_t buffer )
{
    if ( datagram->address.type != NETCODE_ADDRESS_IPV4 )
        datagram->address = nc_address_canonical( &datagram->address );
    received->from = &datagram->address;
    received->data = datagram->data;
    received->bytes = datagram->status == NETCODE_DATAGRAM_TRUNCATED ? NC_MAX_DATAGRAM_BYTES + 1 : datagram->bytes;
    received->buffer = buffer;
    received->kept = 0;
    received->cost = 0;
}

/* Prepares an entry of a batch to receive into a buffer of the pool. Entries stay prepared between updates. */
static void nc_received_prepare( struct netcode_datagram_t * datagram, nc_pool_t * pool, uint32_t buffer )
{
    memset( datagram, 0, sizeof( *datagram ) );
    datagram->data = nc_pool_datagram( pool, buffer );
    datagram->capacity = NC_BUFFER_CAPACITY;
}

/* Prepares it again after its datagram was handled. */
static void nc_received_reset( struct netcode_datagram_t * datagram )
{
    datagram->address.type = NETCODE_ADDRESS_NONE;
    datagram->capacity = NC_BUFFER_CAPACITY; /* the application's own socket may have written there */
    datagram->bytes = datagram->status = datagram->error = 0;
}

/* The checks of a datagram that need none of its bytes. Returns a drop reason. */
static int nc_received_screen( int bytes, const struct netcode_address_t * from )
{
    if ( (uint32_t) bytes - 1 >= NC_MAX_DATAGRAM_BYTES )
        return bytes == 0 ? NETCODE_DROP_EMPTY_DATAGRAM : NETCODE_DROP_OVERSIZED_DATAGRAM;
    return from->port == 0 ? NETCODE_DROP_SOURCE_PORT_ZERO : NETCODE_DROP_NONE;
}

/*  Queues an opened payload: the buffer that it is in, or a copy if the caller passed it in. After a header of unusual
    length it is moved to its aligned position. Returns a drop reason. Inlined, so that `what` is written directly to
    its destination: a copy would have to wait for it. */
static NC_INLINE int nc_received_queue( nc_received_t * received, nc_inbox_t * inbox, nc_buffer_t what )
{
    const uint8_t * body = received->data + received->as.packet.header_bytes;
    if ( received->buffer == NC_NONE )
        return nc_inbox_copy( inbox, what, body );
    int reason = nc_inbox_check_capacity( inbox, what.client_index );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    if ( received->as.packet.header_bytes != NC_USUAL_HEADER_BYTES )
        memmove( nc_pool_data( inbox->pool, received->buffer ), body, what.bytes );
    *nc_pool_buffer( inbox->pool, received->buffer ) = what;
    nc_inbox_insert( inbox, received->buffer );
    received->kept = 1;
    received->buffer = nc_pool_take( inbox->pool ); /* a callback may take the last one before the datagram is done */
    return NETCODE_DROP_NONE;
}

/* ================================================================================================================
    ROOM 10: SOCKET
    How are datagrams received and sent, over any kind of network?
    Uses: platform, crypto, address, packet.
    Invariant: client and server use the network only through struct netcode_socket_t.
   ================================================================================================================ */

enum nc_socket_result_t { NC_SOCKET_OK, NC_SOCKET_NO_MEMORY, NC_SOCKET_CREATE_FAILED, NC_SOCKET_BIND_FAILED };

/* The configuration of a UDP socket. */
typedef struct {
    nc_allocator_t allocator;
    const nc_log_t * log;
    /* to bind; the second may be NULL, else it is of the other family */
    const struct netcode_address_t * addresses[2];
    int receive_buffer_bytes;
    int send_buffer_bytes;
    /* request ICMP errors: a client uses them, a server does not need those of disconnected clients */
    int reports_errors;
    int screens; /* a server's: a packet filter drops what it could not accept */
    int share_port;
} nc_socket_request_t;

/* ---- floods: what a packet filter in the kernel drops while more arrives than can be received. Decision 6 ---- */

/* A connected address that floods; or, with port 0, an IPv4 address or an IPv6 /64 whose unconnected ports do. */
typedef struct {
    struct netcode_address_t address;
    uint64_t newest; /* not 0: others use a client's address; what is near its newest sequence passes */
    int count;       /* datagrams, less those of addresses without an entry */
    int expected;    /* those near the client's newest sequence */
    int limited;     /* 1, 2: one of 16, 256 passes */
} nc_flooder_t;

typedef struct {
    nc_flooder_t flooders[NC_FLOODERS]; /* the unknown ones first */
    int unknown; /* more than 0: more than a quarter of the datagrams counted are of unknown addresses */
    int total;   /* datagrams counted */
    int closed;  /* 0: unknown addresses pass; 1: their requests and responses; 2, 3, 4: of these one of 4, 16, 64 */
    int roaming; /* of their other packets one of 16, 64, 256, 1024 passes, too */
    uint32_t keys[9]; /* of the connected addresses' bits, for each 16 bits of an address; random each time */
    uint32_t connected[NC_FLOOD_BITS / 32]; /* a bit for each connected address; others may share it */
} nc_flood_filter_t;

static uint32_t nc_flood_bit( const nc_flood_filter_t * filter, const struct netcode_address_t * address )
{
    uint32_t words[4], hash = address->port * filter->keys[0];
    int count = nc_address_words( address, words );
    for ( int i = 0; i < count; i++ )
        hash += ( words[i] >> 16 ) * filter->keys[1 + 2 * i] + ( words[i] & 0xffff ) * filter->keys[2 + 2 * i];
    return hash >> NC_FLOOD_SHIFT;
}

static void nc_flood_clear( nc_flood_filter_t * filter )
{
    memset( filter->connected, 0, sizeof( filter->connected ) );
    netcode_random_bytes( (uint8_t *) filter->keys, (int) sizeof( filter->keys ) );
}

static void nc_flood_add( nc_flood_filter_t * filter, const struct netcode_address_t * address )
{
    if ( address->type == NETCODE_ADDRESS_NONE ) /* a loopback client, or no candidate */
        return;
    uint32_t bit = nc_flood_bit( filter, address );
    filter->connected[bit / 32] |= (uint32_t) 1 << bit % 32;
}

/*  Counts a datagram. With no free entry, each that is not limited is decremented instead: so an address that sends
    more than its share of all datagrams keeps its entry (Misra and Gries). Returns the entry or NULL. */
static NC_COLD nc_flooder_t * nc_flood_count( nc_flood_filter_t * filter, const struct netcode_address_t * address )
{
    nc_flooder_t *first = filter->flooders + ( address->port ? NC_FLOODERS_UNKNOWN : 0 ), *unused = NULL;
    const nc_flooder_t * end = filter->flooders + ( address->port ? NC_FLOODERS : NC_FLOODERS_UNKNOWN );
    for ( nc_flooder_t * it = first; it < end; it++ )
        if ( it->count == 0 && !it->limited ) {
            unused = it;
        } else if ( nc_address_same( &it->address, address ) ) {
            it->count++;
            return it;
        }

    for ( nc_flooder_t * it = first; it < end && !unused; it++ )
        it->count -= !it->limited;
    if ( unused ) {
        memset( unused, 0, sizeof( *unused ) );
        unused->address = *address;
        unused->count = 1;
    }
    return unused;
}

/* Functions that only the operating system's sockets have, and not all of them; NULL elsewhere. */
typedef struct {
    /* A client sends only to this server from now on: datagrams from other addresses may be dropped. */
    void ( *connect_to )( void * context, const struct netcode_address_t * server );
    void ( *resize )( void * context, int receive_bytes, int send_bytes );
    /* Drops what the filter does not pass before it uses space in the socket's buffer. Returns 1 on success. */
    int ( *set_filter )( void * context, const nc_flood_filter_t * filter );
    /* The share of a socket's receive buffer that is in use; of the fuller one, if there are two. */
    double ( *fill )( void * context );
} nc_socket_extras_t;

/* ---- the override callbacks, as a socket ---- */

typedef struct {
    void * callback_context;
    void ( *send )( void * context, struct netcode_address_t * to, const uint8_t * data, int bytes );
    int ( *receive )( void * context, struct netcode_address_t * from, uint8_t * data, int capacity );
} nc_socket_override_t;

static int nc_socket_override_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    const nc_socket_override_t * override_ = (const nc_socket_override_t *) context;
    int i;
    for ( i = 0; i < count; i++ ) {
        int bytes = override_->receive( override_->callback_context, &datagrams[i].address, datagrams[i].data,
                                        datagrams[i].capacity );
        if ( bytes <= 0 )
            break;

        datagrams[i].status = bytes > datagrams[i].capacity ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK;
        datagrams[i].bytes = bytes;
    }
    return i;
}

static int nc_socket_override_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    const nc_socket_override_t * override_ = (const nc_socket_override_t *) context;
    for ( int i = 0; i < count; i++ ) {
        struct netcode_address_t to = datagrams[i].address;
        override_->send( override_->callback_context, &to, datagrams[i].data, datagrams[i].bytes );
    }
    return count;
}

static void nc_socket_from_override( struct netcode_socket_t * socket, nc_socket_override_t * override_ )
{
    memset( socket, 0, sizeof( *socket ) );
    socket->context = override_;
    socket->receive = nc_socket_override_receive;
    socket->send = nc_socket_override_send;
}

static struct netcode_socket_info_t nc_socket_info( const struct netcode_socket_t * socket )
{
    struct netcode_socket_info_t info;
    memset( &info, 0, sizeof( info ) );
    if ( socket->info )
        socket->info( socket->context, &info );
    return info;
}

/* Where nothing can wait for a datagram. */
static void nc_socket_sleep( double seconds )
{
    netcode_sleep( seconds < 0.001 ? seconds : 0.001 );
}

static void nc_socket_wait( const struct netcode_socket_t * socket, double seconds )
{
    if ( socket->wait )
        socket->wait( socket->context, seconds );
    else
        nc_socket_sleep( seconds );
}

/* Logs the requested buffer sizes, and those that the system granted. */
static void nc_socket_log_buffers( const struct netcode_socket_t * socket, const nc_log_t * log, int receive_bytes,
                                   int send_bytes )
{
    struct netcode_socket_info_t info = nc_socket_info( socket );
    if ( info.receive_buffer_bytes < receive_bytes || info.send_buffer_bytes < send_bytes )
        NC_LOG( log, INFO, "socket buffers: asked for %d to receive and %d to send, granted %d and %d bytes",
                receive_bytes, send_bytes, info.receive_buffer_bytes, info.send_buffer_bytes );
}

/* Did sending fail because this machine's address, or its network, is gone? */
static int nc_socket_lost_network( int error )
{
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS && !defined( NETCODE_NO_SOCKETS )
    return error == WSAEADDRNOTAVAIL || error == WSAENETUNREACH || error == WSAENETDOWN || error == WSAEHOSTUNREACH ||
           error == WSAEINVAL;
#else
    return error == EADDRNOTAVAIL || error == ENETUNREACH || error == ENETDOWN || error == EHOSTUNREACH ||
           error == ENODEV || error == EINVAL;
#endif
}

/* Did sending fail for want of space, which passes? */
static int nc_socket_is_full( int error )
{
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS && !defined( NETCODE_NO_SOCKETS )
    return error == WSAEWOULDBLOCK || error == WSAENOBUFS;
#else
    return error == EAGAIN || error == ENOBUFS;
#endif
}

#if defined( NETCODE_NO_SOCKETS )

static int nc_socket_open_udp( struct netcode_socket_t * socket, nc_socket_extras_t * extras,
                               const nc_socket_request_t * request, int * failed_family )
{
    (void) socket;
    (void) extras;
    *failed_family = request->addresses[0]->type;
    NC_LOG( request->log, ERROR,
            "built with NETCODE_NO_SOCKETS: give the config a socket, a simulator or override callbacks" );
    return NC_SOCKET_CREATE_FAILED;
}

enum { NC_SOCKET_UDP_BYTES = 0 };

#else

/* ---- the operating system's UDP, as a socket: one handle, or one of each family ---- */

#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
typedef SOCKET nc_socket_handle_t;
typedef int nc_socket_length_t;
#define NC_SOCKET_NONE INVALID_SOCKET
#ifndef SIO_UDP_CONNRESET
#define SIO_UDP_CONNRESET _WSAIOW( IOC_VENDOR, 12 )
#endif
#ifndef SIO_UDP_NETRESET
#define SIO_UDP_NETRESET _WSAIOW( IOC_VENDOR, 15 )
#endif
#else
typedef int nc_socket_handle_t;
typedef socklen_t nc_socket_length_t;
#define NC_SOCKET_NONE ( -1 )
#endif

#if defined( __linux__ ) && !defined( NETCODE_NO_LINUX_EXTRAS )
#define NC_SOCKET_LINUX

/* The system's struct mmsghdr and its calls, which headers may hide: see platform. */
typedef struct {
    struct msghdr msg_hdr;
    unsigned int msg_len;
} nc_socket_message_t;

int nc_socket_recvmmsg( int handle, nc_socket_message_t * messages, unsigned int count, int flags,
                        void * timeout ) __asm__( "recvmmsg" );
int nc_socket_sendmmsg( int handle, nc_socket_message_t * messages, unsigned int count,
                        int flags ) __asm__( "sendmmsg" );

#endif

/* Linux's numbers, for names that headers may hide, or may not have yet. */
enum {
    NC_SOCKET_IP_MTU_DISCOVER = 10,
    NC_SOCKET_IP_RECVERR = 11,
    NC_SOCKET_IPV6_MTU_DISCOVER = 23,
    NC_SOCKET_IPV6_RECVERR = 25,
    NC_SOCKET_PMTUDISC_OMIT = 5,
    NC_SOCKET_MEMINFO = 55
};

/* A system call that is not everywhere: it has worked; how often it has failed in a row; it is not made any more. */
typedef struct {
    int works, failures, is_refused;
} nc_socket_call_t;

typedef struct {
    nc_socket_request_t request; /* without the addresses, which were the caller's */
    nc_socket_handle_t handles[2];
    struct netcode_address_t bound[2];
    uint64_t kernel_drops[2];
    uint32_t handle_drops[2]; /* what the system last said of this handle */
    int count;
    int turn;                            /* which handle is read first: both are served in turn */
    int is_ready;                        /* a wait ended because of a datagram, and none was received since */
    nc_socket_call_t receiving, sending; /* recvmmsg and sendmmsg */
    struct netcode_address_t peer; /* a client's: its family's handle is connected to it; or NETCODE_ADDRESS_NONE */
    int receive_buffer_bytes;
    int send_buffer_bytes;
    int last_send_error;
    int taken[2]; /* a pending error that a send has reported; what it was about is still in the error queue */
} nc_socket_udp_t;

enum { NC_SOCKET_UDP_BYTES = sizeof( nc_socket_udp_t ) };

static nc_socket_length_t nc_socket_to_system( const struct netcode_address_t * address,
                                               struct sockaddr_storage * storage )
{
    memset( storage, 0, sizeof( struct sockaddr_in6 ) );
    if ( address->type == NETCODE_ADDRESS_IPV4 ) {
        struct sockaddr_in * v4 = (struct sockaddr_in *) (void *) storage;
        v4->sin_family = AF_INET;
        v4->sin_port = htons( address->port );
        memcpy( &v4->sin_addr, address->data.ipv4, 4 );
        return (nc_socket_length_t) sizeof( *v4 );
    } else {
        struct sockaddr_in6 * v6 = (struct sockaddr_in6 *) (void *) storage;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons( address->port );
        for ( int i = 0; i < 8; i++ ) {
            v6->sin6_addr.s6_addr[2 * i] = (uint8_t) ( address->data.ipv6[i] >> 8 );
            v6->sin6_addr.s6_addr[2 * i + 1] = (uint8_t) address->data.ipv6[i];
        }

        /* the interface is in the second word, which is zero on the wire */
        if ( nc_address_is_link_local( address ) ) {
            v6->sin6_scope_id = address->data.ipv6[1];
            v6->sin6_addr.s6_addr[2] = v6->sin6_addr.s6_addr[3] = 0;
        }
        return (nc_socket_length_t) sizeof( *v6 );
    }
}

static void nc_socket_from_system( struct netcode_address_t * address, const struct sockaddr_storage * storage )
{
    struct netcode_address_t raw;
    memset( &raw, 0, sizeof( raw ) );

    if ( storage->ss_family == AF_INET ) {
        const struct sockaddr_in * v4 = (const struct sockaddr_in *) (const void *) storage;
        raw.type = NETCODE_ADDRESS_IPV4;
        raw.port = ntohs( v4->sin_port );
        memcpy( raw.data.ipv4, &v4->sin_addr, 4 );
    } else if ( storage->ss_family == AF_INET6 ) {
        const struct sockaddr_in6 * v6 = (const struct sockaddr_in6 *) (const void *) storage;
        raw.type = NETCODE_ADDRESS_IPV6;
        raw.port = ntohs( v6->sin6_port );
        for ( int i = 0; i < 8; i++ )
            raw.data.ipv6[i] = (uint16_t) ( v6->sin6_addr.s6_addr[2 * i] << 8 | v6->sin6_addr.s6_addr[2 * i + 1] );
        if ( nc_address_is_link_local( &raw ) )
            raw.data.ipv6[1] = (uint16_t) v6->sin6_scope_id;
    }

    *address = nc_address_canonical( &raw );
}

static int nc_socket_error( void )
{
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    return WSAGetLastError();
#else
    return errno;
#endif
}

enum nc_socket_verdict_t { NC_SOCKET_TRY_LATER, NC_SOCKET_TRY_AGAIN, NC_SOCKET_TRUNCATED, NC_SOCKET_PASSING };

/* The meaning of an error while receiving. It may be about one datagram, and the next one may be received. */
static int nc_socket_judge( int error )
{
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    switch ( error ) {
    case WSAEWOULDBLOCK: return NC_SOCKET_TRY_LATER;
    case WSAEINTR: return NC_SOCKET_TRY_AGAIN;
    case WSAEMSGSIZE: return NC_SOCKET_TRUNCATED;
    default: return NC_SOCKET_PASSING;
    }
#else
    if ( error == EAGAIN || error == EWOULDBLOCK )
        return NC_SOCKET_TRY_LATER;
    return error == EINTR ? NC_SOCKET_TRY_AGAIN : NC_SOCKET_PASSING;
#endif
}

#if NETCODE_PLATFORM != NETCODE_PLATFORM_WINDOWS

/* Describes a datagram to the system: where its bytes are, and where its address is. */
static void nc_socket_describe( struct msghdr * header, struct iovec * vector, struct sockaddr_storage * name,
                                uint8_t * data, int bytes )
{
    memset( header, 0, sizeof( *header ) );
    vector->iov_base = data;
    vector->iov_len = (size_t) bytes;
    header->msg_iov = vector;
    header->msg_iovlen = 1;
    header->msg_name = name;
    header->msg_namelen = sizeof( *name );
}

#endif

/* The receive calls below return how many entries they filled, 0 for no datagram, or -1 and the system's error. */

#if defined( NC_SOCKET_LINUX )

/* The system counts datagrams that it dropped because the buffer was full, and reports the count with a datagram. */
static void nc_socket_read_drops( nc_socket_udp_t * udp, int which, struct msghdr * header )
{
    for ( struct cmsghdr * control = CMSG_FIRSTHDR( header ); control; control = CMSG_NXTHDR( header, control ) )
        if ( control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL ) {
            uint32_t drops; /* of this handle, counted in 32 bits */
            memcpy( &drops, CMSG_DATA( control ), sizeof( drops ) );
            udp->kernel_drops[which] += drops - udp->handle_drops[which];
            udp->handle_drops[which] = drops;
        }
}

static int nc_socket_receive_batch( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagrams, int count )
{
    nc_socket_message_t headers[NC_RECEIVE_BATCH];
    struct iovec vectors[NC_RECEIVE_BATCH];
    struct sockaddr_storage from[NC_RECEIVE_BATCH];
    uint64_t control[( CMSG_SPACE( sizeof( uint32_t ) ) + 7 ) / 8]; /* aligned for a control header */
    if ( count > NC_RECEIVE_BATCH )
        count = NC_RECEIVE_BATCH;

    for ( int i = 0; i < count; i++ )
        nc_socket_describe( &headers[i].msg_hdr, &vectors[i], &from[i], datagrams[i].data, datagrams[i].capacity );

    headers[0].msg_hdr.msg_control = control; /* one count of drops in a batch is enough */
    headers[0].msg_hdr.msg_controllen = sizeof( control );
    int received = nc_socket_recvmmsg( udp->handles[which], headers, (unsigned) count, MSG_DONTWAIT, NULL );

    for ( int i = 0; i < received; i++ ) {
        nc_socket_from_system( &datagrams[i].address, &from[i] );
        datagrams[i].bytes = (int) headers[i].msg_len;
        datagrams[i].status =
            headers[i].msg_hdr.msg_flags & MSG_TRUNC ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK;
    }

    if ( received > 0 )
        nc_socket_read_drops( udp, which, &headers[0].msg_hdr );
    return received;
}

/*  The error queue has the address that an ICMP error is about. Its entries use the buffer of real datagrams, so it is
    emptied. */
static int nc_socket_read_error_queue( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagram )
{
    struct sockaddr_storage about;
    struct msghdr header;
    memset( &header, 0, sizeof( header ) );
    memset( &about, 0, sizeof( about ) );
    header.msg_name = &about;
    header.msg_namelen = sizeof( about );
    if ( !udp->request.reports_errors || recvmsg( udp->handles[which], &header, MSG_ERRQUEUE | MSG_DONTWAIT ) < 0 )
        return 0;
    nc_socket_from_system( &datagram->address, &about );
    return 1;
}

#else

static int nc_socket_read_error_queue( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagram )
{
    (void) udp;
    (void) which;
    (void) datagram;
    return 0;
}

#endif

/* By a call that every system has. */
static int nc_socket_receive_one( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagram )
{
    struct sockaddr_storage from;
    memset( &from, 0, sizeof( from ) );
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    nc_socket_length_t from_bytes = (nc_socket_length_t) sizeof( from );
    datagram->bytes = recvfrom( udp->handles[which], (char *) datagram->data, datagram->capacity, 0,
                                (struct sockaddr *) &from, &from_bytes );
    datagram->status = NETCODE_DATAGRAM_OK;
#else
    struct iovec vector; /* recvmsg and not recvfrom: only it reports that a datagram was truncated */
    struct msghdr header;
    nc_socket_describe( &header, &vector, &from, datagram->data, datagram->capacity );
#if defined( NC_SOCKET_LINUX )
    uint64_t control[( CMSG_SPACE( sizeof( uint32_t ) ) + 7 ) / 8]; /* aligned for a control header */
    header.msg_control = control;
    header.msg_controllen = sizeof( control );
#endif
    datagram->bytes = (int) recvmsg( udp->handles[which], &header, 0 );
    datagram->status = header.msg_flags & MSG_TRUNC ? NETCODE_DATAGRAM_TRUNCATED : NETCODE_DATAGRAM_OK;
#if defined( NC_SOCKET_LINUX )
    if ( datagram->bytes >= 0 )
        nc_socket_read_drops( udp, which, &header );
#endif
#endif

    if ( datagram->bytes < 0 )
        return -1;
    nc_socket_from_system( &datagram->address, &from );
    return 1;
}

#if defined( NC_SOCKET_LINUX )

/*  What became of a call that takes many datagrams. Sandboxes and old systems refuse it: then the call for one is used
    instead, from the third failure in a row on, of a call that never worked or that is not there. Other errors are
    about datagrams. Returns whether it is refused. */
static int nc_socket_judge_call( const nc_socket_udp_t * udp, nc_socket_call_t * call, const char * name, int works,
                                 int error )
{
    call->works |= works;
    call->failures = works ? 0 : call->failures + 1;
    if ( call->failures < NC_SOCKET_REFUSALS || ( call->works && error != ENOSYS && error != EPERM ) )
        return 0;
    NC_LOG( udp->request.log, INFO, "the system refuses %s (error %d): datagrams are handled one by one", name, error );
    call->is_refused = 1;
    return 1;
}

static int nc_socket_receive_some( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagrams, int count )
{
    if ( count > 0 && !udp->receiving.is_refused ) {
        int received = nc_socket_receive_batch( udp, which, datagrams, count ), error = received < 0 ? errno : 0;
        int works = received >= 0 || error == EAGAIN || error == EINTR;
        if ( !nc_socket_judge_call( udp, &udp->receiving, "recvmmsg", works, error ) )
            return received;
    }
    return nc_socket_receive_one( udp, which, datagrams );
}

#else

static int nc_socket_receive_some( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagrams, int count )
{
    (void) count;
    return nc_socket_receive_one( udp, which, datagrams );
}

#endif

/*  Fills entries from one handle until it has no more datagrams, or receiving has failed some times. An error fills an
    entry; after the first, datagrams are received one by one, as the call for many may be what is refused. */
static int nc_socket_receive_from( nc_socket_udp_t * udp, int which, struct netcode_datagram_t * datagrams, int count )
{
    int filled = 0, failures = 0, singly = 0;
    while ( filled < count && failures < (int) NC_SOCKET_FAILURES ) {
        int received = nc_socket_receive_some( udp, which, datagrams + filled, singly ? 0 : count - filled );
        int error = received < 0 ? nc_socket_error() : 0;
        failures += received < 0;
        singly |= received < 0;
        if ( received > 0 ) {
            filled += received;
            continue;
        }

        int verdict = received == 0 ? (int) NC_SOCKET_TRY_LATER : nc_socket_judge( error );
        if ( verdict == NC_SOCKET_TRY_AGAIN )
            continue;
        if ( verdict == NC_SOCKET_TRUNCATED ) {
            datagrams[filled].bytes = datagrams[filled].capacity + 1;
            datagrams[filled++].status = NETCODE_DATAGRAM_TRUNCATED;
            continue;
        }
        if ( verdict == NC_SOCKET_TRY_LATER ) /* select would not wait while the error queue has anything */
            error = udp->taken[which];
        memset( &datagrams[filled].address, 0, sizeof( datagrams[filled].address ) );
        udp->taken[which] = error && nc_socket_read_error_queue( udp, which, &datagrams[filled] ) ? error : 0;
        if ( verdict == NC_SOCKET_TRY_LATER && !udp->taken[which] )
            return filled;
        datagrams[filled].bytes = 0;
        datagrams[filled].status = NETCODE_DATAGRAM_ERROR;
        datagrams[filled].error = error;
        if ( datagrams[filled++].address.type != NETCODE_ADDRESS_NONE ) /* of an earlier send: this did not fail */
            failures = udp->receiving.failures = 0;
    }
    return filled;
}

static int nc_socket_udp_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    int first = udp->turn;
    int filled = nc_socket_receive_from( udp, first, datagrams, udp->count == 1 ? count : ( count + 1 ) / 2 );
    if ( udp->count == 2 ) {
        filled += nc_socket_receive_from( udp, 1 - first, datagrams + filled, count - filled );
        udp->turn = 1 - first;
    }

    for ( int i = 0; i < filled; i++ )
        udp->is_ready &= datagrams[i].status == NETCODE_DATAGRAM_ERROR;
    return filled;
}

/* The handle of an address's family, or -1. */
static int nc_socket_handle_for( nc_socket_udp_t * udp, const struct netcode_address_t * address )
{
    for ( int i = 0; i < 2; i++ )
        if ( i < udp->count && udp->bound[i].type == address->type )
            return i;
    udp->last_send_error = EAFNOSUPPORT;
    return -1;
}

/*  Can this error of a send be that of an earlier datagram? An ICMP error, which anyone can forge, waits for the next
    call on the handle, and is gone once it was reported: only what is refused again is refused. */
static int nc_socket_may_be_pending( int error )
{
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    int closed = WSAENOTSOCK;
#else
    int closed = EBADF;
#endif
    return error && error != closed && !nc_socket_is_full( error );
}

static int nc_socket_send_one( nc_socket_udp_t * udp, const struct netcode_datagram_t * datagram )
{
    struct sockaddr_storage to;
    int i = nc_socket_handle_for( udp, &datagram->address );
    if ( i < 0 )
        return 0;

    int to_peer = nc_address_same( &udp->peer, &datagram->address );
    nc_socket_length_t to_bytes = to_peer ? 0 : nc_socket_to_system( &datagram->address, &to );
    const struct sockaddr * name = to_peer ? NULL : (const struct sockaddr *) &to;
    int error = 0;
    for ( int tries = 0; tries < NC_SEND_TRIES; tries++ ) {
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
        int sent = sendto( udp->handles[i], (const char *) datagram->data, datagram->bytes, 0, name, to_bytes );
#else
        int sent = (int) sendto( udp->handles[i], datagram->data, (size_t) datagram->bytes, 0, name, to_bytes );
#endif
        error = sent == datagram->bytes ? 0 : nc_socket_error();
        if ( !nc_socket_may_be_pending( error ) )
            break;
        udp->taken[i] = error;
    }
    if ( error )
        udp->last_send_error = error;
    return error == 0;
}

#if defined( NC_SOCKET_LINUX )

/* A batch to be sent through one handle by one call. */
typedef struct {
    nc_socket_message_t headers[NC_SEND_BATCH];
    struct iovec vectors[NC_SEND_BATCH];
    struct sockaddr_storage to[NC_SEND_BATCH];
    const struct netcode_datagram_t * datagrams[NC_SEND_BATCH];
    int count;
} nc_socket_batch_t;

static void nc_socket_batch_add( nc_socket_batch_t * batch, const struct netcode_datagram_t * datagram )
{
    int i = batch->count++;
    struct msghdr * header = &batch->headers[i].msg_hdr;
    batch->datagrams[i] = datagram;
    nc_socket_describe( header, &batch->vectors[i], &batch->to[i], datagram->data, datagram->bytes );
    header->msg_namelen = nc_socket_to_system( &datagram->address, &batch->to[i] );
}

/*  Sends messages from `at` on, once more after an error that may have been pending. Returns how many, or -1 and the
    error. */
static int nc_socket_send_messages( nc_socket_udp_t * udp, int which, nc_socket_batch_t * batch, int at, int * error )
{
    int done = -1;
    for ( int tries = 0; tries == 0 || ( tries == 1 && nc_socket_may_be_pending( *error ) ); tries++ ) {
        done = nc_socket_sendmmsg( udp->handles[which], batch->headers + at, (unsigned) ( batch->count - at ), 0 );
        *error = done < 0 ? nc_socket_error() : 0;
        udp->taken[which] = nc_socket_may_be_pending( *error ) ? *error : udp->taken[which];
    }
    if ( done > 0 && done < batch->count - at )
        udp->taken[which] = ECONNREFUSED; /* perhaps: the error that ended the call is lost */
    return done;
}

/* What the system refuses twice is sent by itself. */
static int nc_socket_batch_send( nc_socket_udp_t * udp, int which, nc_socket_batch_t * batch )
{
    int sent = 0;
    for ( int at = 0; at < batch->count; ) {
        int error = 0, is_refused = udp->sending.is_refused;
        int done = is_refused ? -1 : nc_socket_send_messages( udp, which, batch, at, &error );
        int good = done > 0 ? done : nc_socket_send_one( udp, batch->datagrams[at] );
        if ( good && !is_refused )
            nc_socket_judge_call( udp, &udp->sending, "sendmmsg", done > 0, error );
        sent += good;
        at += done > 0 ? done : 1;
    }
    return sent;
}

static int nc_socket_send_batch( nc_socket_udp_t * udp, const struct netcode_datagram_t * datagrams, int count )
{
    nc_socket_batch_t batch;
    int sent = 0;
    for ( int which = 0; which < udp->count; which++ ) {
        batch.count = 0;
        for ( int i = 0; i < count; i++ )
            if ( nc_socket_handle_for( udp, &datagrams[i].address ) == which )
                nc_socket_batch_add( &batch, &datagrams[i] );
        sent += nc_socket_batch_send( udp, which, &batch );
    }
    return sent;
}

#endif

static int nc_socket_udp_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    int sent = 0, at = 0;
#if defined( NC_SOCKET_LINUX )
    for ( ; count > 1 && at < count && !udp->sending.is_refused; at += NC_SEND_BATCH )
        sent += nc_socket_send_batch( udp, datagrams + at, count - at < NC_SEND_BATCH ? count - at : NC_SEND_BATCH );
#endif
    for ( ; at < count; at++ )
        sent += nc_socket_send_one( udp, &datagrams[at] );
    return sent;
}

/*  Uses select only if the handles fit into its sets; otherwise it sleeps for a short time, which only costs latency.
    So it does where select fails, or reports again what could not be received. */
static void nc_socket_udp_wait( void * context, double seconds )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    struct timeval timeout;
    fd_set set;
    int i, highest = 0;

    FD_ZERO( &set );
    for ( i = 0; i < udp->count; i++ ) {
#if NETCODE_PLATFORM != NETCODE_PLATFORM_WINDOWS
        if ( udp->handles[i] >= FD_SETSIZE ) {
            nc_socket_sleep( seconds );
            return;
        }
        if ( udp->handles[i] >= highest )
            highest = udp->handles[i] + 1;
#endif
        FD_SET( udp->handles[i], &set );
    }

    if ( !( seconds > 0.0 ) )
        return;
    if ( seconds > 3600.0 )
        seconds = 3600.0;

    timeout.tv_sec = (int) seconds;
    timeout.tv_usec = (int) ( ( seconds - (double) timeout.tv_sec ) * 1e6 );
    int ready = select( highest, &set, NULL, NULL, &timeout );
    if ( ready < 0 || ( ready > 0 && udp->is_ready ) )
        nc_socket_sleep( seconds );
    udp->is_ready = ready > 0;
}

static void nc_socket_close_handle( nc_socket_handle_t handle )
{
    if ( handle == NC_SOCKET_NONE )
        return;
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    closesocket( handle );
#else
    close( handle );
#endif
}

static void nc_socket_close_handles( nc_socket_udp_t * udp )
{
    nc_socket_close_handle( udp->handles[0] );
    nc_socket_close_handle( udp->handles[1] );
    udp->handles[0] = udp->handles[1] = NC_SOCKET_NONE;
    udp->count = 0;
}

static void nc_socket_udp_close( void * context )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    nc_allocator_t allocator = udp->request.allocator;
    nc_socket_close_handles( udp );
    allocator.release( allocator.context, udp );
}

static void nc_socket_udp_info( void * context, struct netcode_socket_info_t * info )
{
    const nc_socket_udp_t * udp = (const nc_socket_udp_t *) context;
    info->address = udp->bound[0];
    info->address2 = udp->bound[1];
    info->receive_buffer_bytes = udp->receive_buffer_bytes;
    info->send_buffer_bytes = udp->send_buffer_bytes;
    info->kernel_drops = udp->kernel_drops[0] + udp->kernel_drops[1];
    info->last_send_error = udp->last_send_error;
}

static int nc_socket_set( nc_socket_handle_t handle, int level, int option, int value )
{
    return setsockopt( handle, level, option, (const char *) &value, (nc_socket_length_t) sizeof( value ) ) == 0;
}

/* Requests a buffer, halves the size until the system grants it, and returns the size. */
static int nc_socket_set_buffer( nc_socket_handle_t handle, int option, int bytes )
{
    int granted = 0;
    nc_socket_length_t length = (nc_socket_length_t) sizeof( granted );
    if ( bytes > 0x3FFFFFFF ) /* systems double it */
        bytes = 0x3FFFFFFF;
    while ( !nc_socket_set( handle, SOL_SOCKET, option, bytes ) && bytes > 4096 )
        bytes /= 2;

    if ( getsockopt( handle, SOL_SOCKET, option, (char *) &granted, &length ) != 0 )
        return 0;
#if defined( __linux__ )
    granted /= 2; /* the kernel doubles the requested size, for its own bookkeeping */
#endif
    return granted;
}

#if defined( NC_SOCKET_LINUX )

/* One instruction of the kernel's packet filter; this interface is stable. */
typedef struct {
    uint16_t code;
    uint8_t if_true;
    uint8_t if_false;
    uint32_t k;
} nc_filter_step_t;

/* A filter for one handle, in the system's format. */
typedef struct {
    unsigned short count;
    nc_filter_step_t * steps;
} nc_filter_t;

enum { NC_FILTER_STEPS = 128 + NC_FLOOD_BITS / 32 * 3 + ( NC_FLOODERS_UNKNOWN + NC_FLOODERS_LIMITED ) * 64 };

enum { NC_BPF_WORD = 0x20, NC_BPF_HALF = 0x28, NC_BPF_BYTE = 0x30, NC_BPF_LENGTH = 0x80, NC_BPF_CONSTANT = 0x00 };
enum {
    NC_BPF_X_CONSTANT = 0x01,
    NC_BPF_X_RECALL = 0x61,
    NC_BPF_RECALL = 0x60,
    NC_BPF_STORE = 0x02,
    NC_BPF_TO_X = 0x07,
    NC_BPF_TXA = 0x87
};
enum { NC_BPF_SUB_X = 0x1c, NC_BPF_MULTIPLY = 0x24, NC_BPF_AND = 0x54, NC_BPF_AND_X = 0x5c, NC_BPF_ADD_X = 0x0c };
enum { NC_BPF_RIGHT = 0x74, NC_BPF_RIGHT_X = 0x7c, NC_BPF_JUMP = 0x05, NC_BPF_EQUAL = 0x15, NC_BPF_ABOVE = 0x25 };
enum { NC_BPF_AT_LEAST = 0x35, NC_BPF_RETURN = 0x06, NC_BPF_PASS = 0x40000, NC_UDP_HEADER_BYTES = 8 };

static const uint32_t nc_bpf_random = 0xfffff000u + 56; /* the system's random number, loaded from there */

static nc_filter_step_t nc_bpf_if( int code, uint32_t k, int if_true, int if_false )
{
    const nc_filter_step_t step = { (uint16_t) code, (uint8_t) if_true, (uint8_t) if_false, k };
    return step;
}

static nc_filter_step_t nc_bpf_plain( int code, uint32_t k )
{
    return nc_bpf_if( code, k, 0, 0 );
}

#define NC_BPF( filter, ... )                                                           \
    do {                                                                                \
        const nc_filter_step_t steps_[] = { __VA_ARGS__ };                              \
        memcpy( ( filter )->steps + ( filter )->count, steps_, sizeof( steps_ ) );      \
        ( filter )->count += (unsigned short) ( sizeof( steps_ ) / sizeof( *steps_ ) ); \
    } while ( 0 )

/*  Drops what no server could accept, by size and prefix byte. A load beyond the end of an empty datagram drops it.
    Standard: Packets */
static void nc_filter_screen( nc_filter_t * filter )
{
    const uint32_t header = NC_UDP_HEADER_BYTES, frame = header + 1 + NETCODE_MAC_BYTES;
    int left = 1; /* steps to the end */
    for ( int type = 0; type < NETCODE_PACKET_TYPES; type++ )
        left += 5 * ( NC_PACKETS_TO_SERVER >> type & 1 );

    NC_BPF( filter, nc_bpf_plain( NC_BPF_BYTE, header ), nc_bpf_if( NC_BPF_EQUAL, NETCODE_PACKET_REQUEST, 0, 4 ),
            nc_bpf_plain( NC_BPF_LENGTH, 0 ), nc_bpf_if( NC_BPF_EQUAL, header + NC_REQUEST_BYTES, left + 12, 0 ),
            nc_bpf_if( NC_BPF_EQUAL, header + NC_REQUEST_BYTES_OLD, left + 11, 0 ), /* so that it is logged */
            nc_bpf_plain( NC_BPF_RETURN, 0 ) );
    NC_BPF( filter, nc_bpf_plain( NC_BPF_RIGHT, 4 ), nc_bpf_if( NC_BPF_EQUAL, 0, 1, 0 ),
            nc_bpf_if( NC_BPF_ABOVE, 8, 0, 1 ), nc_bpf_plain( NC_BPF_RETURN, 0 ), nc_bpf_plain( NC_BPF_TO_X, 0 ),
            nc_bpf_plain( NC_BPF_LENGTH, 0 ), nc_bpf_plain( NC_BPF_SUB_X, 0 ), nc_bpf_plain( NC_BPF_TO_X, 0 ),
            nc_bpf_plain( NC_BPF_BYTE, header ), nc_bpf_plain( NC_BPF_AND, 15 ) );
    for ( uint32_t type = 0; type < NETCODE_PACKET_TYPES; type++ ) {
        const nc_packet_rule_t * rule = &nc_packet_rules[type];
        if ( !( NC_PACKETS_TO_SERVER >> type & 1 ) )
            continue;
        left -= 5;
        NC_BPF( filter, nc_bpf_if( NC_BPF_EQUAL, type, 0, 4 ), nc_bpf_plain( NC_BPF_TXA, 0 ),
                nc_bpf_if( NC_BPF_AT_LEAST, frame + (uint32_t) rule->min_body_bytes, 0, 1 ),
                nc_bpf_if( NC_BPF_ABOVE, frame + (uint32_t) rule->max_body_bytes, 0, left + 1 ),
                nc_bpf_plain( NC_BPF_RETURN, 0 ) );
    }
    NC_BPF( filter, nc_bpf_plain( NC_BPF_RETURN, 0 ) );
}

/* Stores in memory word 0 whether the sender's bit is set: nc_flood_bit. `source` is where its IP address is. */
static void nc_filter_connected( nc_filter_t * filter, const nc_flood_filter_t * flood, uint32_t source, int words )
{
    uint32_t left = 3 * NC_FLOOD_BITS / 32;
    NC_BPF( filter, nc_bpf_plain( NC_BPF_HALF, 0 ),
            nc_bpf_plain( NC_BPF_MULTIPLY, flood->keys[0] ) ); /* the source port */
    for ( uint32_t i = 0; i < 2 * (uint32_t) words; i++ )
        NC_BPF( filter, nc_bpf_plain( NC_BPF_TO_X, 0 ), nc_bpf_plain( NC_BPF_HALF, source + 2 * i ),
                nc_bpf_plain( NC_BPF_MULTIPLY, flood->keys[1 + i] ), nc_bpf_plain( NC_BPF_ADD_X, 0 ) );
    NC_BPF( filter, nc_bpf_plain( NC_BPF_RIGHT, NC_FLOOD_SHIFT ), nc_bpf_plain( NC_BPF_TO_X, 0 ),
            nc_bpf_plain( NC_BPF_AND, 31 ), nc_bpf_plain( NC_BPF_STORE, 0 ), nc_bpf_plain( NC_BPF_TXA, 0 ),
            nc_bpf_plain( NC_BPF_RIGHT, 5 ) );
    for ( uint32_t i = 0; left; i++ ) {
        left -= 3;
        NC_BPF( filter, nc_bpf_if( NC_BPF_EQUAL, i, 0, 2 ), nc_bpf_plain( NC_BPF_CONSTANT, flood->connected[i] ),
                nc_bpf_plain( NC_BPF_JUMP, left ) );
    }
    NC_BPF( filter, nc_bpf_plain( NC_BPF_X_RECALL, 0 ), nc_bpf_plain( NC_BPF_RIGHT_X, 0 ),
            nc_bpf_plain( NC_BPF_AND, 1 ), nc_bpf_plain( NC_BPF_STORE, 0 ) );
}

/* Passes sequences near this one: but for the lowest two bytes they are the same, or one more. */
static void nc_filter_near( nc_filter_t * filter, uint64_t newest )
{
    for ( uint64_t high = newest >> NC_SEQUENCE_NEAR_BITS, i = 0; i < 2 && high >> ( 64 - NC_SEQUENCE_NEAR_BITS ) == 0;
          i++, high++ ) {
        int more = high ? nc_packet_sequence_bytes( high << NC_SEQUENCE_NEAR_BITS ) - 2 : 0;
        NC_BPF( filter, nc_bpf_plain( NC_BPF_BYTE, NC_UDP_HEADER_BYTES ), nc_bpf_plain( NC_BPF_RIGHT, 4 ),
                more ? nc_bpf_if( NC_BPF_EQUAL, (uint32_t) more + 2, 0, 2 * more + 1 )
                     : nc_bpf_if( NC_BPF_ABOVE, 2, 1, 0 ) );
        for ( int k = 0; k < more; k++ )
            NC_BPF( filter, nc_bpf_plain( NC_BPF_BYTE, NC_UDP_HEADER_BYTES + 3 + (uint32_t) k ),
                    nc_bpf_if( NC_BPF_EQUAL, high >> 8 * k & 255, 0, 2 * ( more - k ) - 1 ) );
        NC_BPF( filter, nc_bpf_plain( NC_BPF_RETURN, NC_BPF_PASS ) );
    }
}

/* Drops all but one of 16 or 256 datagrams of one that floods, at random; all others go on after the last step. */
static void nc_filter_limit( nc_filter_t * filter, const nc_flooder_t * it, uint32_t source )
{
    uint32_t words[4];
    int count = nc_address_words( &it->address, words ), start = filter->count;
    if ( it->address.port == 0 && count == 4 )
        count = 2;
    NC_BPF( filter,
            it->address.port ? nc_bpf_plain( NC_BPF_HALF, 0 ) : nc_bpf_plain( NC_BPF_RECALL, 0 ), /* 0: not connected */
            nc_bpf_plain( NC_BPF_EQUAL, it->address.port ) );
    for ( int i = 0; i < count; i++ )
        NC_BPF( filter, nc_bpf_plain( NC_BPF_WORD, source + 4 * (uint32_t) i ),
                nc_bpf_plain( NC_BPF_EQUAL, words[i] ) );
    if ( it->newest )
        nc_filter_near( filter, it->newest );
    NC_BPF( filter, nc_bpf_plain( NC_BPF_WORD, nc_bpf_random ),
            nc_bpf_plain( NC_BPF_AND, ( 1u << 4 * it->limited ) - 1 ), nc_bpf_if( NC_BPF_EQUAL, 0, 1, 0 ),
            nc_bpf_plain( NC_BPF_RETURN, 0 ) );
    for ( int at = start + 1; at <= start + 1 + 2 * count; at += 2 )
        filter->steps[at].if_false = (uint8_t) ( filter->count - at - 1 );
}

/* `flood` NULL: no flood. `type` is the handle's family: addresses of the other one are ignored. */
static int nc_socket_set_filter( nc_socket_handle_t handle, int type, const nc_flood_filter_t * flood )
{
    nc_filter_step_t steps[NC_FILTER_STEPS];
    nc_filter_t filter = { 0, steps };
    uint32_t source = 0xfff00000u + ( type == NETCODE_ADDRESS_IPV6 ? 8u : 12u ); /* in the IP header */
    nc_filter_screen( &filter );
    if ( flood )
        nc_filter_connected( &filter, flood, source, type == NETCODE_ADDRESS_IPV6 ? 4 : 1 );
    for ( int i = 0; flood && i < NC_FLOODERS; i++ )
        if ( flood->flooders[i].limited && flood->flooders[i].address.type == type )
            nc_filter_limit( &filter, &flood->flooders[i], source );
    if ( flood && flood->closed )
        NC_BPF( &filter, nc_bpf_plain( NC_BPF_RECALL, 0 ), nc_bpf_if( NC_BPF_EQUAL, 1, 10, 0 ),
                nc_bpf_plain( NC_BPF_X_CONSTANT, ( (uint32_t) 1 << 2 * ( flood->closed - 1 ) ) - 1 ),
                nc_bpf_plain( NC_BPF_BYTE, NC_UDP_HEADER_BYTES ),
                nc_bpf_if( NC_BPF_EQUAL, NETCODE_PACKET_REQUEST, 3, 0 ), nc_bpf_plain( NC_BPF_AND, 15 ),
                nc_bpf_if( NC_BPF_EQUAL, NETCODE_PACKET_RESPONSE, 1, 0 ),
                nc_bpf_plain( NC_BPF_X_CONSTANT,
                              flood->roaming ? ( (uint32_t) 1 << 2 * ( flood->closed + 1 ) ) - 1 : UINT32_MAX ),
                nc_bpf_plain( NC_BPF_WORD, nc_bpf_random ), nc_bpf_plain( NC_BPF_AND_X, 0 ),
                nc_bpf_if( NC_BPF_EQUAL, 0, 1, 0 ), nc_bpf_plain( NC_BPF_RETURN, 0 ) );
    NC_BPF( &filter, nc_bpf_plain( NC_BPF_RETURN, NC_BPF_PASS ) );
    if ( setsockopt( handle, SOL_SOCKET, SO_ATTACH_FILTER, &filter, (socklen_t) sizeof( filter ) ) == 0 )
        return 1;
    nc_socket_set( handle, SOL_SOCKET, SO_DETACH_FILTER, 0 ); /* some systems have no memory for two at a time */
    if ( setsockopt( handle, SOL_SOCKET, SO_ATTACH_FILTER, &filter, (socklen_t) sizeof( filter ) ) == 0 )
        return 1;
    if ( flood ) /* or not even for one of this size */
        (void) nc_socket_set_filter( handle, type, NULL );
    return 0;
}

#endif

/* Sets the options of every handle; only those that are essential can fail. */
static int nc_socket_configure( nc_socket_handle_t handle, const struct netcode_address_t * address,
                                const nc_socket_request_t * request )
{
    int ipv6 = address->type == NETCODE_ADDRESS_IPV6;
#if NETCODE_PLATFORM == NETCODE_PLATFORM_WINDOWS
    u_long non_blocking = 1;
    DWORD off = 0, returned = 0; /* ICMP messages about earlier sends would fail receives, forged ones too */
    nc_socket_set( handle, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1 );
    WSAIoctl( handle, SIO_UDP_CONNRESET, &off, sizeof( off ), NULL, 0, &returned, NULL, NULL );
    WSAIoctl( handle, SIO_UDP_NETRESET, &off, sizeof( off ), NULL, 0, &returned, NULL, NULL );
    if ( ioctlsocket( handle, (long) FIONBIO, &non_blocking ) != 0 )
        return 0;
#else
    int flags = fcntl( handle, F_GETFL, 0 );
    if ( flags < 0 || fcntl( handle, F_SETFL, flags | O_NONBLOCK ) != 0 )
        return 0;
    fcntl( handle, F_SETFD, FD_CLOEXEC );
#endif

    if ( ipv6 && !nc_socket_set( handle, IPPROTO_IPV6, IPV6_V6ONLY, 1 ) )
        return 0;

#if defined( __linux__ )
    /*  IP_PMTUDISC_OMIT: an ICMP message that claims a smaller path MTU, which anyone can forge, has no effect. Only
        datagrams larger than the MTU of this machine's own interface are fragmented. */
    nc_socket_set( handle, ipv6 ? (int) IPPROTO_IPV6 : (int) IPPROTO_IP,
                   ipv6 ? NC_SOCKET_IPV6_MTU_DISCOVER : NC_SOCKET_IP_MTU_DISCOVER, NC_SOCKET_PMTUDISC_OMIT );
#endif

#if NETCODE_PACKET_TAGGING
    if ( nc_packet_tagging && !ipv6 )
        nc_socket_set( handle, IPPROTO_IP, IP_TOS, 0xB8 );
#if defined( IPV6_TCLASS )
    if ( nc_packet_tagging && ipv6 )
        nc_socket_set( handle, IPPROTO_IPV6, IPV6_TCLASS, 0xB8 );
#endif
#endif

#if defined( NC_SOCKET_LINUX )
    nc_socket_set( handle, SOL_SOCKET, SO_RXQ_OVFL, 1 );
    if ( request->reports_errors )
        nc_socket_set( handle, ipv6 ? (int) IPPROTO_IPV6 : (int) IPPROTO_IP,
                       ipv6 ? NC_SOCKET_IPV6_RECVERR : NC_SOCKET_IP_RECVERR, 1 );
    if ( request->share_port )
        nc_socket_set( handle, SOL_SOCKET, SO_REUSEPORT, 1 );
#else
    if ( request->share_port )
        NC_LOG( request->log, ERROR, "share_port does nothing on this system" );
#endif

    return 1;
}

/* Requests buffers for one handle, and stores what was granted. */
static void nc_socket_set_buffers( nc_socket_udp_t * udp, int which, int receive_bytes, int send_bytes )
{
    int granted = nc_socket_set_buffer( udp->handles[which], SO_RCVBUF, receive_bytes );
    udp->receive_buffer_bytes = which == 0 || granted < udp->receive_buffer_bytes ? granted : udp->receive_buffer_bytes;
    granted = nc_socket_set_buffer( udp->handles[which], SO_SNDBUF, send_bytes );
    udp->send_buffer_bytes = which == 0 || granted < udp->send_buffer_bytes ? granted : udp->send_buffer_bytes;
}

static nc_socket_handle_t nc_socket_make_handle( const struct netcode_address_t * address )
{
    return socket( address->type == NETCODE_ADDRESS_IPV6 ? AF_INET6 : AF_INET, SOCK_DGRAM, IPPROTO_UDP );
}

/* Binds a handle, and stores the address that it has then. */
static int nc_socket_bind_handle( nc_socket_udp_t * udp, int which, const struct netcode_address_t * address )
{
    struct sockaddr_storage storage;
    nc_socket_length_t length = nc_socket_to_system( address, &storage );
    if ( bind( udp->handles[which], (const struct sockaddr *) &storage, length ) != 0 )
        return 0;
    length = (nc_socket_length_t) sizeof( storage );
    if ( getsockname( udp->handles[which], (struct sockaddr *) &storage, &length ) != 0 )
        return 0;
    nc_socket_from_system( &udp->bound[which], &storage );
    return 1;
}

/* Opens and binds one handle; on failure the owner closes it. */
static int nc_socket_open_handle( nc_socket_udp_t * udp, const nc_socket_request_t * request,
                                  const struct netcode_address_t * address )
{
    int which = udp->count;
    nc_socket_handle_t handle = nc_socket_make_handle( address );
    udp->handles[which] = handle;
    if ( handle == NC_SOCKET_NONE || !nc_socket_configure( handle, address, request ) )
        return NC_SOCKET_CREATE_FAILED;

    nc_socket_set_buffers( udp, which, request->receive_buffer_bytes, request->send_buffer_bytes );
    if ( !nc_socket_bind_handle( udp, which, address ) )
        return NC_SOCKET_BIND_FAILED;

    udp->count++;
    return NC_SOCKET_OK;
}

static void nc_socket_udp_resize( void * context, int receive_bytes, int send_bytes )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    for ( int i = 0; i < udp->count; i++ )
        nc_socket_set_buffers( udp, i, receive_bytes, send_bytes );
}

#if defined( NC_SOCKET_LINUX )

static int nc_socket_udp_set_filter( void * context, const nc_flood_filter_t * filter )
{
    const nc_socket_udp_t * udp = (const nc_socket_udp_t *) context;
    int done = 1;
    for ( int i = 0; i < udp->count; i++ )
        done &= nc_socket_set_filter( udp->handles[i], udp->bound[i].type, filter );
    return done;
}

static double nc_socket_udp_fill( void * context )
{
    const nc_socket_udp_t * udp = (const nc_socket_udp_t *) context;
    double fill = 0.0;
    for ( int i = 0; i < udp->count; i++ ) {
        uint32_t memory[16] = { 0, 1 }; /* in use, of so many bytes, and more */
        socklen_t length = (socklen_t) sizeof( memory );
        (void) getsockopt( udp->handles[i], SOL_SOCKET, NC_SOCKET_MEMINFO, memory, &length );
        double share = (double) memory[0] / (double) memory[1];
        fill = share > fill ? share : fill;
    }
    return fill;
}

#endif

/*  Replaces one handle by a new one, bound to the same address and port, or to what is left of them: an address may be
    gone, a port may be taken. Only if the system makes no handle at all, the old one stays. */
static int nc_socket_replace_handle( nc_socket_udp_t * udp, int which )
{
    struct netcode_address_t wanted = udp->bound[which];
    nc_socket_handle_t handle = nc_socket_make_handle( &wanted );
    if ( handle == NC_SOCKET_NONE || !nc_socket_configure( handle, &wanted, &udp->request ) ) {
        nc_socket_close_handle( handle );
        return 0;
    }

    nc_socket_close_handle( udp->handles[which] );
    udp->handles[which] = handle;
    udp->handle_drops[which] = 0;
    nc_socket_set_buffers( udp, which, udp->receive_buffer_bytes, udp->send_buffer_bytes );
    for ( int i = 0; i < 3 && !nc_socket_bind_handle( udp, which, &wanted ); i++ ) {
        memset( &wanted.data, 0, sizeof( wanted.data ) ); /* then any address, and at last any port, too */
        wanted.port = i == 0 ? wanted.port : 0;
    }
    return 1;
}

#if defined( NC_SOCKET_LINUX )

/*  Makes sends to this one server cost less; the system drops datagrams from other senders. Without an address, none is
    dropped any more. */
static void nc_socket_udp_connect( void * context, const struct netcode_address_t * server )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    struct sockaddr_storage storage;

    /*  First disconnects the handle, even if the server is the same, because this machine may have a new address now. A
        port that the system chose may change. A handle that stayed connected would hear no other server. */
    for ( int i = 0; i < udp->count; i++ ) {
        if ( udp->peer.type != udp->bound[i].type )
            continue;
        memset( &storage, 0, sizeof( storage ) );
        storage.ss_family = AF_UNSPEC;
        int is_free = connect( udp->handles[i], (const struct sockaddr *) &storage, sizeof( storage ) ) == 0;
        socklen_t length = nc_socket_to_system( &udp->bound[i], &storage );
        int is_bound =
            is_free && ( bind( udp->handles[i], (const struct sockaddr *) &storage, length ) == 0 || errno == EINVAL );
        if ( !is_bound && !nc_socket_replace_handle( udp, i ) && !is_free )
            return; /* it is still connected: next time */
    }

    memset( &udp->peer, 0, sizeof( udp->peer ) );
    int which = server->type == NETCODE_ADDRESS_NONE ? -1 : nc_socket_handle_for( udp, server );
    if ( which < 0 )
        return;
    socklen_t length = nc_socket_to_system( server, &storage );
    if ( connect( udp->handles[which], (const struct sockaddr *) &storage, length ) == 0 )
        udp->peer = *server;
}

#endif

/* Also where the address is still there: systems disable sockets whose program was in the background. */
static int nc_socket_udp_rebind( void * context )
{
    nc_socket_udp_t * udp = (nc_socket_udp_t *) context;
    int done = 1;
    for ( int i = 0; i < udp->count; i++ )
        done &= nc_socket_replace_handle( udp, i );
#if defined( NC_SOCKET_LINUX )
    if ( udp->peer.type != NETCODE_ADDRESS_NONE ) {
        struct netcode_address_t peer = udp->peer;
        udp->peer.type = NETCODE_ADDRESS_NONE; /* the new handles are not connected */
        nc_socket_udp_connect( udp, &peer );
    }
#endif
    return done;
}

/*  Opens a handle for each address that can be had. If both have port 0, the second gets the first one's port, so that
    a server has one port in both families. Returns nc_socket_result_t, and the family that failed. */
static int nc_socket_open_handles( nc_socket_udp_t * udp, const nc_socket_request_t * request, int * failed_family )
{
    int result = NC_SOCKET_OK;
    for ( int i = 0; i < 2 && request->addresses[i]; i++ ) {
        struct netcode_address_t address = *request->addresses[i];
        if ( udp->count && address.port == 0 && request->addresses[0]->port == 0 )
            address.port = udp->bound[0].port;
        *failed_family = address.type;
        result = nc_socket_open_handle( udp, request, &address );
        if ( result == NC_SOCKET_OK )
            continue;
        if ( !request->addresses[1] ||
             ( result == NC_SOCKET_BIND_FAILED && !nc_socket_lost_network( nc_socket_error() ) ) )
            return result; /* else IPv6 may be switched off, an address wrong, or no file descriptor left */
        int level = request->reports_errors ? NETCODE_LOG_LEVEL_INFO : NETCODE_LOG_LEVEL_ERROR;
        if ( NC_LOG_ON( level ) )
            nc_log_write( request->log, level,
                          "no socket at the IPv%d address (system error %d): only the other family is used",
                          address.type == NETCODE_ADDRESS_IPV4 ? 4 : 6, nc_socket_error() );
        nc_socket_close_handle( udp->handles[udp->count] );
        udp->handles[udp->count] = NC_SOCKET_NONE;
    }
    return udp->count ? (int) NC_SOCKET_OK : result;
}

/* Returns nc_socket_result_t; on failure `failed_family` receives the family. */
static int nc_socket_open_udp( struct netcode_socket_t * socket, nc_socket_extras_t * extras,
                               const nc_socket_request_t * request, int * failed_family )
{
    nc_allocator_t allocator = request->allocator;
    nc_socket_udp_t * udp = (nc_socket_udp_t *) allocator.allocate( allocator.context, sizeof( *udp ) );
    int result, tries = NC_BIND_TRIES;
    *failed_family = request->addresses[0]->type;
    if ( !udp )
        return NC_SOCKET_NO_MEMORY;

    memset( udp, 0, sizeof( *udp ) );
    udp->request = *request;
    udp->request.addresses[0] = udp->request.addresses[1] = NULL;
    udp->handles[0] = udp->handles[1] = NC_SOCKET_NONE;

    result = nc_socket_open_handles( udp, request, failed_family );
    while ( result == NC_SOCKET_BIND_FAILED && udp->count == 1 && request->addresses[0]->port == 0 && --tries ) {
        nc_socket_close_handles( udp ); /* another program has that port in the second family: try another port */
        result = nc_socket_open_handles( udp, request, failed_family );
    }

    if ( result != NC_SOCKET_OK ) {
        char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
        int error = nc_socket_error();
        NC_LOG( request->log, ERROR, "no socket at %s: system error %d (%s)",
                netcode_address_to_string( request->addresses[request->addresses[0]->type != *failed_family], text ),
                error, strerror( error ) );
        nc_socket_udp_close( udp );
        return result;
    }

    memset( socket, 0, sizeof( *socket ) );
    socket->context = udp;
    socket->receive = nc_socket_udp_receive;
    socket->send = nc_socket_udp_send;
    socket->wait = nc_socket_udp_wait;
    socket->close = nc_socket_udp_close;
    socket->info = nc_socket_udp_info;
    socket->rebind = nc_socket_udp_rebind;

    extras->resize = nc_socket_udp_resize;
#if defined( NC_SOCKET_LINUX )
    extras->connect_to = nc_socket_udp_connect;
    if ( request->screens && nc_socket_udp_set_filter( udp, NULL ) ) {
        extras->set_filter = nc_socket_udp_set_filter;
        extras->fill = nc_socket_udp_fill;
    } else if ( request->screens )
        NC_LOG( request->log, INFO, "server: the system has no packet filters (error %d): it filters no floods",
                nc_socket_error() );
#endif

    nc_socket_log_buffers( socket, request->log, request->receive_buffer_bytes, request->send_buffer_bytes );
    return NC_SOCKET_OK;
}

#endif

/* ================================================================================================================
    ROOM 11: SIMULATOR
    How is a bad network simulated, with the same result every time?
    Uses: platform, crypto, address. Invariant: the same seed, inputs and times give the same deliveries.
   ================================================================================================================ */

enum { NC_SIMULATOR_BYTES = 2048, NC_SIMULATOR_CHUNK = 64, NC_SIMULATOR_QUEUE = 16384 };

typedef struct nc_simulator_packet_t {
    struct nc_simulator_packet_t * next;
    struct netcode_address_t from;
    struct netcode_address_t to;
    double due;
    uint64_t order; /* decides between those due at the same time */
    int bytes;      /* may be more than is stored: then it arrives as truncated */
    uint8_t data[NC_SIMULATOR_BYTES];
} nc_simulator_packet_t;

typedef struct nc_simulator_chunk_t {
    struct nc_simulator_chunk_t * next;
    nc_simulator_packet_t packets[NC_SIMULATOR_CHUNK];
} nc_simulator_chunk_t;

/* One socket on the simulator. */
typedef struct nc_simulator_port_t {
    struct nc_simulator_state_t * state;
    struct nc_simulator_port_t * next;
    struct netcode_address_t address;
    struct netcode_address_t next_address; /* where a rebind moves it; until then it has no network */
    nc_simulator_packet_t * head;
    nc_simulator_packet_t * tail;
    int count;
} nc_simulator_port_t;

enum { NC_SIMULATOR_HEADS = 4096 };

/* The simulator, and its private fields. */
typedef struct nc_simulator_state_t {
    struct netcode_network_simulator_t settings;
    nc_allocator_t allocator;
    nc_clock_t clock;
    uint64_t random;
    uint64_t order;
    nc_simulator_chunk_t * chunks;
    nc_simulator_packet_t * free_packets;
    nc_simulator_packet_t ** heap; /* in flight, the earliest on top */
    size_t heap_count;
    size_t heap_capacity;
    nc_simulator_port_t * ports[NC_SIMULATOR_HEADS];
} nc_simulator_state_t;

/* splitmix64: small, and the same on every platform. Not for secrets. */
static uint64_t nc_simulator_random( nc_simulator_state_t * state )
{
    uint64_t x = state->random += 0x9e3779b97f4a7c15u;
    x = ( x ^ x >> 30 ) * 0xbf58476d1ce4e5b9u;
    x = ( x ^ x >> 27 ) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In [0, 1). */
static double nc_simulator_uniform( nc_simulator_state_t * state )
{
    return (double) ( nc_simulator_random( state ) >> 11 ) / 9007199254740992.0;
}

static int nc_simulator_chance( nc_simulator_state_t * state, float percent )
{
    return nc_simulator_uniform( state ) * 100.0 < (double) percent;
}

static nc_simulator_port_t ** nc_simulator_find( nc_simulator_state_t * state,
                                                 const struct netcode_address_t * address )
{
    static const uint8_t key[NC_HASH_KEY_BYTES] = { 0 };
    nc_simulator_port_t ** at = &state->ports[nc_address_hash( address, key ) % NC_SIMULATOR_HEADS];
    while ( *at && !nc_address_same( &( *at )->address, address ) )
        at = &( *at )->next;
    return at;
}

static nc_simulator_packet_t * nc_simulator_new_packet( nc_simulator_state_t * state )
{
    nc_simulator_packet_t * packet = state->free_packets;
    if ( !packet ) {
        nc_simulator_chunk_t * chunk;
        int i;
        chunk = (nc_simulator_chunk_t *) state->allocator.allocate( state->allocator.context, sizeof( *chunk ) );
        if ( !chunk )
            return NULL;

        chunk->next = state->chunks;
        state->chunks = chunk;
        for ( i = NC_SIMULATOR_CHUNK - 1; i >= 0; i-- ) {
            chunk->packets[i].next = state->free_packets;
            state->free_packets = &chunk->packets[i];
        }
        packet = state->free_packets;
    }

    state->free_packets = packet->next;
    return packet;
}

static void nc_simulator_free_packet( nc_simulator_state_t * state, nc_simulator_packet_t * packet )
{
    packet->next = state->free_packets;
    state->free_packets = packet;
}

static int nc_simulator_earlier( const nc_simulator_packet_t * a, const nc_simulator_packet_t * b )
{
    return a->due < b->due || ( !( a->due > b->due ) && a->order < b->order );
}

static int nc_simulator_grow( nc_simulator_state_t * state )
{
    size_t capacity = state->heap_capacity ? state->heap_capacity * 2 : 256;
    nc_simulator_packet_t ** heap;
    heap = (nc_simulator_packet_t **) state->allocator.allocate( state->allocator.context, capacity * sizeof( *heap ) );
    if ( !heap )
        return 0;

    if ( state->heap ) {
        memcpy( heap, state->heap, state->heap_count * sizeof( *heap ) );
        state->allocator.release( state->allocator.context, state->heap );
    }
    state->heap = heap;
    state->heap_capacity = capacity;
    return 1;
}

static void nc_simulator_insert( nc_simulator_state_t * state, nc_simulator_packet_t * packet )
{
    size_t place = state->heap_count++;
    for ( ; place && nc_simulator_earlier( packet, state->heap[( place - 1 ) / 2] ); place = ( place - 1 ) / 2 )
        state->heap[place] = state->heap[( place - 1 ) / 2];
    state->heap[place] = packet;
}

static nc_simulator_packet_t * nc_simulator_remove_first( nc_simulator_state_t * state )
{
    nc_simulator_packet_t * first = state->heap[0];
    nc_simulator_packet_t * last = state->heap[--state->heap_count];
    size_t place = 0;

    for ( ;; ) {
        size_t child = 2 * place + 1;
        if ( child >= state->heap_count )
            break;
        if ( child + 1 < state->heap_count && nc_simulator_earlier( state->heap[child + 1], state->heap[child] ) )
            child++;
        if ( !nc_simulator_earlier( state->heap[child], last ) )
            break;
        state->heap[place] = state->heap[child];
        place = child;
    }

    state->heap[place] = last;
    return first;
}

/* Puts one copy in flight. If the allocation fails, the datagram is lost, as can happen on networks. */
static void nc_simulator_launch( nc_simulator_port_t * port, const struct netcode_datagram_t * datagram, double delay )
{
    nc_simulator_state_t * state = port->state;
    if ( state->heap_count == state->heap_capacity && !nc_simulator_grow( state ) )
        return;
    nc_simulator_packet_t * packet = nc_simulator_new_packet( state );
    if ( !packet )
        return;

    packet->from = port->address;
    packet->to = nc_address_canonical( &datagram->address );
    packet->due = state->clock.now + ( delay > 0.0 ? delay : 0.0 );
    packet->order = state->order++;
    packet->bytes = datagram->bytes;
    if ( datagram->bytes > 0 )
        memcpy( packet->data, datagram->data,
                (size_t) ( datagram->bytes < NC_SIMULATOR_BYTES ? datagram->bytes : NC_SIMULATOR_BYTES ) );
    nc_simulator_insert( state, packet );
}

static int nc_simulator_send( void * context, const struct netcode_datagram_t * datagrams, int count )
{
    nc_simulator_port_t * port = (nc_simulator_port_t *) context;
    const struct netcode_network_simulator_t * settings = &port->state->settings;
    for ( int i = 0; i < count && port->next_address.type == NETCODE_ADDRESS_NONE; i++ ) {
        double delay = (double) settings->latency_milliseconds / 1000.0;
        if ( nc_simulator_chance( port->state, settings->packet_loss_percent ) )
            continue;
        delay += ( nc_simulator_uniform( port->state ) * 2.0 - 1.0 ) * (double) settings->jitter_milliseconds / 1000.0;
        if ( nc_simulator_chance( port->state, settings->reorder_packet_percent ) )
            delay += nc_simulator_uniform( port->state ) * 0.1;

        nc_simulator_launch( port, &datagrams[i], delay );
        if ( nc_simulator_chance( port->state, settings->duplicate_packet_percent ) )
            nc_simulator_launch( port, &datagrams[i], delay + nc_simulator_uniform( port->state ) );
    }
    return count;
}

static int nc_simulator_receive( void * context, struct netcode_datagram_t * datagrams, int count )
{
    nc_simulator_port_t * port = (nc_simulator_port_t *) context;
    int i;
    for ( i = 0; i < count && port->head; i++ ) {
        nc_simulator_packet_t * packet = port->head;
        int fits = packet->bytes <= datagrams[i].capacity && packet->bytes <= NC_SIMULATOR_BYTES;
        port->head = packet->next;
        port->count--;

        datagrams[i].address = packet->from;
        datagrams[i].bytes = packet->bytes;
        datagrams[i].status = fits ? NETCODE_DATAGRAM_OK : NETCODE_DATAGRAM_TRUNCATED;
        if ( fits && packet->bytes > 0 )
            memcpy( datagrams[i].data, packet->data, (size_t) packet->bytes );
        nc_simulator_free_packet( port->state, packet );
    }
    return i;
}

/* Time on the simulator is virtual: a wait for it would never end. */
static void nc_simulator_wait( void * context, double seconds )
{
    (void) context;
    (void) seconds;
}

static void nc_simulator_empty_port( nc_simulator_port_t * port )
{
    while ( port->head ) {
        nc_simulator_packet_t * packet = port->head;
        port->head = packet->next;
        nc_simulator_free_packet( port->state, packet );
    }
    port->count = 0;
}

static void nc_simulator_close( void * context )
{
    nc_simulator_port_t * port = (nc_simulator_port_t *) context;
    nc_simulator_state_t * state = port->state;
    nc_simulator_empty_port( port );
    *nc_simulator_find( state, &port->address ) = port->next;
    state->allocator.release( state->allocator.context, port );
}

static void nc_simulator_info( void * context, struct netcode_socket_info_t * info )
{
    const nc_simulator_port_t * port = (const nc_simulator_port_t *) context;
    info->address = port->address;
}

static void nc_simulator_move( nc_simulator_port_t * port, const struct netcode_address_t * to )
{
    *nc_simulator_find( port->state, &port->address ) = port->next;
    port->address = *to;
    port->next = NULL;
    memset( &port->next_address, 0, sizeof( port->next_address ) );
    *nc_simulator_find( port->state, &port->address ) = port;
}

static int nc_simulator_rebind( void * context )
{
    nc_simulator_port_t * port = (nc_simulator_port_t *) context;
    struct netcode_address_t to = port->next_address;
    if ( to.type == NETCODE_ADDRESS_NONE )
        return 1;
    if ( *nc_simulator_find( port->state, &to ) )
        return 0; /* another socket has taken it meanwhile */
    nc_simulator_move( port, &to );
    return 1;
}

NETCODE_API struct netcode_network_simulator_t * netcode_network_simulator_create(
    void * allocator_context, void * ( *allocate_function )( void *, size_t ),
    void ( *free_function )( void *, void * ) )
{
    nc_allocator_t allocator = nc_allocator_make( allocator_context, allocate_function, free_function );
    nc_simulator_state_t * state =
        (nc_simulator_state_t *) allocator.allocate( allocator.context, sizeof( nc_simulator_state_t ) );
    if ( !state )
        return NULL;

    memset( state, 0, sizeof( *state ) );
    state->allocator = allocator;
    nc_clock_init( &state->clock, 0.0 );
    state->settings.internal = state;
    return &state->settings;
}

NETCODE_API void netcode_network_simulator_reset( struct netcode_network_simulator_t * simulator )
{
    NC_CHECK( simulator != NULL, NC_NOTHING );
    nc_simulator_state_t * state = (nc_simulator_state_t *) simulator->internal;
    while ( state->heap_count )
        nc_simulator_free_packet( state, state->heap[--state->heap_count] );
    for ( int i = 0; i < NC_SIMULATOR_HEADS; i++ )
        for ( nc_simulator_port_t * port = state->ports[i]; port; port = port->next )
            nc_simulator_empty_port( port );
    state->random = simulator->seed;
    state->order = 0;
}

NETCODE_API void netcode_network_simulator_destroy( struct netcode_network_simulator_t * simulator )
{
    if ( !simulator )
        return;
    nc_simulator_state_t * state = (nc_simulator_state_t *) simulator->internal;
    nc_allocator_t allocator = state->allocator;

    for ( int i = 0; i < NC_SIMULATOR_HEADS; i++ )
        while ( state->ports[i] )
            nc_simulator_close( state->ports[i] );
    while ( state->chunks ) {
        nc_simulator_chunk_t * chunk = state->chunks;
        state->chunks = chunk->next;
        allocator.release( allocator.context, chunk );
    }
    if ( state->heap )
        allocator.release( allocator.context, state->heap );
    allocator.release( allocator.context, state );
}

/* A packet has arrived: its port receives it; without a port it is dropped. */
static void nc_simulator_deliver( nc_simulator_state_t * state, nc_simulator_packet_t * packet )
{
    nc_simulator_port_t * port = *nc_simulator_find( state, &packet->to );
    if ( !port || port->count >= NC_SIMULATOR_QUEUE || port->next_address.type != NETCODE_ADDRESS_NONE ) {
        nc_simulator_free_packet( state, packet );
        return;
    }

    packet->next = NULL;
    if ( port->head )
        port->tail->next = packet;
    else
        port->head = packet;
    port->tail = packet;
    port->count++;
}

NETCODE_API void netcode_network_simulator_update( struct netcode_network_simulator_t * simulator, double time )
{
    NC_CHECK( simulator != NULL, NC_NOTHING );
    nc_simulator_state_t * state = (nc_simulator_state_t *) simulator->internal;
    nc_clock_advance( &state->clock, time );
    while ( state->heap_count && state->heap[0]->due <= state->clock.now )
        nc_simulator_deliver( state, nc_simulator_remove_first( state ) );
}

NETCODE_API int netcode_network_simulator_socket( struct netcode_network_simulator_t * simulator,
                                                  const struct netcode_address_t * address,
                                                  struct netcode_socket_t * socket )
{
    nc_simulator_port_t * port;
    NC_CHECK( simulator != NULL && address != NULL && socket != NULL, NETCODE_ERROR );
    nc_simulator_state_t * state = (nc_simulator_state_t *) simulator->internal;
    struct netcode_address_t place = nc_address_canonical( address );
    if ( place.type == NETCODE_ADDRESS_NONE || place.port == 0 || *nc_simulator_find( state, &place ) )
        return NETCODE_ERROR;

    port = (nc_simulator_port_t *) state->allocator.allocate( state->allocator.context, sizeof( *port ) );
    if ( !port )
        return NETCODE_ERROR;
    memset( port, 0, sizeof( *port ) );
    port->state = state;
    port->address = place;
    *nc_simulator_find( state, &place ) = port;

    memset( socket, 0, sizeof( *socket ) );
    socket->context = port;
    socket->receive = nc_simulator_receive;
    socket->send = nc_simulator_send;
    socket->wait = nc_simulator_wait;
    socket->close = nc_simulator_close;
    socket->info = nc_simulator_info;
    socket->rebind = nc_simulator_rebind;
    return NETCODE_OK;
}

NETCODE_API int netcode_network_simulator_move( struct netcode_network_simulator_t * simulator,
                                                const struct netcode_address_t * from,
                                                const struct netcode_address_t * to, int at_rebind )
{
    NC_CHECK( simulator != NULL && from != NULL && to != NULL, NETCODE_ERROR );
    nc_simulator_state_t * state = (nc_simulator_state_t *) simulator->internal;
    struct netcode_address_t old = nc_address_canonical( from ), place = nc_address_canonical( to );
    nc_simulator_port_t * port = *nc_simulator_find( state, &old );
    if ( !port || place.type == NETCODE_ADDRESS_NONE || place.port == 0 || *nc_simulator_find( state, &place ) )
        return NETCODE_ERROR;
    if ( at_rebind ) {
        port->next_address = place;
        nc_simulator_empty_port( port );
    } else
        nc_simulator_move( port, &place );
    return NETCODE_OK;
}

/* ================================================================================================================
    ROOM 12: ENDPOINT
    What do client and server share: creation, the choice of the network, receiving, the calls in progress, and what
    they measure of each other's packets?
    Uses: platform, bytes, crypto, address, replay, containers, queues, socket, simulator.
    Invariant: a callback may make any call; a call that would free what the calls in progress use takes effect when
    the outermost of them returns.
   ================================================================================================================ */

/* The fields that both config types have under the same names, and the addresses. */
typedef struct {
    struct netcode_address_t addresses[2];
    struct netcode_address_t bind_to[2]; /* the same, unless a server's config says otherwise */
    int address_count;
    const struct netcode_socket_t * socket; /* the networks to choose from: the first that is given is used */
    struct netcode_network_simulator_t * simulator;
    int overridden;
    nc_socket_override_t override_;
    nc_socket_request_t udp;
    nc_log_t log;
    int batch_sends;
} nc_endpoint_setup_t;

#define NC_ENDPOINT_READ_CONFIG( setup, config )                                                                    \
    do {                                                                                                            \
        memset( setup, 0, sizeof( *( setup ) ) );                                                                   \
        ( setup )->socket = ( config )->socket;                                                                     \
        ( setup )->simulator = ( config )->network_simulator;                                                       \
        ( setup )->overridden = ( config )->override_send_and_receive;                                              \
        ( setup )->override_.callback_context = ( setup )->log.context = ( config )->callback_context;              \
        ( setup )->override_.send = ( config )->send_packet_override;                                               \
        ( setup )->override_.receive = ( config )->receive_packet_override;                                         \
        ( setup )->udp.allocator = nc_allocator_make( ( config )->allocator_context, ( config )->allocate_function, \
                                                      ( config )->free_function );                                  \
        ( setup )->udp.receive_buffer_bytes = nc_endpoint_buffer_bytes( ( config )->receive_buffer_bytes );         \
        ( setup )->udp.send_buffer_bytes = nc_endpoint_buffer_bytes( ( config )->send_buffer_bytes );               \
        ( setup )->log.callback = ( config )->log_callback;                                                         \
        ( setup )->batch_sends = ( config )->batch_sends;                                                           \
    } while ( 0 )

/* Sets the defaults of fields that both configs have. */
#define NC_ENDPOINT_SET_DEFAULTS( config )                                                               \
    do {                                                                                                 \
        ( config )->packet_quota = nc_config_limit( ( config )->packet_quota );                          \
        ( config )->receive_buffer_bytes = nc_endpoint_buffer_bytes( ( config )->receive_buffer_bytes ); \
        ( config )->send_buffer_bytes = nc_endpoint_buffer_bytes( ( config )->send_buffer_bytes );       \
    } while ( 0 )

static int nc_endpoint_buffer_bytes( int wanted )
{
    return wanted > 0 ? wanted : (int) NC_SOCKET_BUFFER_BYTES;
}

/* Everything that client and server share; it is the first member of each. */
typedef struct {
    nc_allocator_t allocator;
    nc_log_t log;
    nc_clock_t clock;
    struct netcode_socket_t socket;
    nc_socket_extras_t extras;
    nc_socket_override_t override_;
    nc_counters_t counters;
    nc_outbox_t outbox;
    uint32_t * batch; /* the buffers that datagrams are received into */
    struct netcode_datagram_t * datagrams;
    int batch_count;
    int is_udp;                           /* the network is the operating system's */
    int backlog;                          /* the last update left datagrams waiting */
    uint16_t update;                      /* counts updates */
    int depth;                            /* calls in progress: callbacks may make calls */
    int updating;                         /* one of them is an update */
    int destroy_deferred;                 /* a callback has called destroy: the outermost call does it */
    int loopback_reported;                /* the missing callback for loopback payloads was logged */
    nc_log_limit_t failures;              /* limits the log lines about receiving that fails */
    uint8_t probe_key[NC_HASH_KEY_BYTES]; /* marks this endpoint's own probes */
} nc_endpoint_t;

/* ---- creation. Create errors are the server's; a client has other numbers, fewer, and one of its own ---- */

enum { NC_CLIENT_NEEDS_PORT = NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK + 1 };

static const struct {
    int of_client;
    const char * text;
} nc_endpoint_errors[] = {
    { NETCODE_CLIENT_CREATE_ERROR_NONE, "no error" },
    { NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS_FAILED, "an address can not be read" NC_ADDRESS_HINT },
    { NETCODE_CLIENT_CREATE_ERROR_PARSE_ADDRESS2_FAILED,
      "the second address can not be read, or is of the first one's family" },
    { NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED, "the IPv4 socket could not be opened" },
    { NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED, "the IPv6 socket could not be opened" },
    { NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED,
      "the IPv4 socket could not be bound: is the port in use, or 0 on a simulator?" },
    { NETCODE_CLIENT_CREATE_ERROR_CREATE_SOCKET_IPV6_FAILED,
      "the IPv6 socket could not be bound: is the port in use, or 0 on a simulator?" },
    { NETCODE_CLIENT_CREATE_ERROR_ALLOCATE_CLIENT_FAILED, "out of memory" },
    { NETCODE_CLIENT_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK,
      "override_send_and_receive, or the socket, lacks a callback" },
    { NETCODE_CLIENT_CREATE_ERROR_SIMULATOR_REQUIRES_PORT, "on a network simulator the address needs a port" },
};

static const char * nc_endpoint_error_text( int error, int of_client )
{
    for ( int i = 0; i <= NC_CLIENT_NEEDS_PORT; i++ )
        if ( of_client ? nc_endpoint_errors[i].of_client == error : i == error && i < NC_CLIENT_NEEDS_PORT )
            return nc_endpoint_errors[i].text;
    return "unknown error";
}

/* Parses the addresses, and checks that the chosen network has its callbacks. Returns a create error. */
static int nc_endpoint_check_setup( nc_endpoint_setup_t * setup, const char ** texts )
{
    const int count = texts[1] && texts[1][0] ? 2 : 1;
    if ( !nc_crypto_begin() ) /* netcode_init may have been forgotten */
        return NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED;
    setup->address_count = count;
    for ( int i = 0; i < count; i++ ) {
        if ( !texts[i] || netcode_parse_address( texts[i], &setup->addresses[i] ) != NETCODE_OK ||
             ( i && setup->addresses[1].type == setup->addresses[0].type ) )
            return i ? NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS2_FAILED
                     : NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED;
        setup->bind_to[i] = setup->addresses[i];
        setup->udp.addresses[i] = &setup->bind_to[i];
    }

    if ( ( setup->overridden && !( setup->override_.send && setup->override_.receive ) ) ||
         ( setup->socket && !( setup->socket->send && setup->socket->receive ) ) )
        return NETCODE_SERVER_CREATE_ERROR_MISSING_OVERRIDE_CALLBACK;
    return NETCODE_SERVER_CREATE_ERROR_NONE;
}

static int nc_endpoint_is_udp( const nc_endpoint_setup_t * setup )
{
    return !setup->socket && !setup->simulator && !setup->overridden;
}

/* Allocates the batch and the outbox from the endpoint's block. */
static void nc_endpoint_place( nc_endpoint_t * base, nc_arena_t * arena, const nc_endpoint_setup_t * setup,
                               int batch_count )
{
    size_t count = (size_t) batch_count;
    base->batch_count = batch_count;
    base->batch = (uint32_t *) nc_arena_take( arena, count, sizeof( uint32_t ) );
    base->datagrams = (struct netcode_datagram_t *) nc_arena_take( arena, count, sizeof( struct netcode_datagram_t ) );
    nc_outbox_place( &base->outbox, arena, setup->batch_sends ? NC_SEND_BATCH : 0 );
}

/* The bytes that the socket allocates. */
static size_t nc_endpoint_socket_bytes( const nc_endpoint_setup_t * setup )
{
    return nc_endpoint_is_udp( setup ) ? NC_SOCKET_UDP_BYTES : 0;
}

static void nc_endpoint_init( nc_endpoint_t * base, const nc_endpoint_setup_t * setup, double time )
{
    base->allocator = setup->udp.allocator;
    base->log = setup->log;
    base->log.now = &base->clock.now;
    base->is_udp = nc_endpoint_is_udp( setup );
    base->override_ = setup->override_;
    base->outbox.socket = &base->socket;
    base->outbox.counters = &base->counters;
    nc_crypto_random( base->probe_key, sizeof( base->probe_key ) );
    nc_clock_init( &base->clock, time );
}

/* Makes the socket that the config chose. Returns a create error. */
static int nc_endpoint_open_socket( nc_endpoint_t * base, nc_endpoint_setup_t * setup )
{
    int family = setup->addresses[0].type, result = NC_SOCKET_OK;
    setup->udp.log = &base->log;

    if ( setup->socket )
        base->socket = *setup->socket;
    else if ( setup->simulator )
        result = netcode_network_simulator_socket( setup->simulator, &setup->addresses[0], &base->socket ) == NETCODE_OK
                     ? NC_SOCKET_OK
                     : NC_SOCKET_BIND_FAILED;
    else if ( setup->overridden )
        nc_socket_from_override( &base->socket, &base->override_ );
    else
        result = nc_socket_open_udp( &base->socket, &base->extras, &setup->udp, &family );

    int ipv6 = family == NETCODE_ADDRESS_IPV6;
    switch ( result ) {
    case NC_SOCKET_OK: return NETCODE_SERVER_CREATE_ERROR_NONE;
    case NC_SOCKET_NO_MEMORY: return NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED;
    case NC_SOCKET_BIND_FAILED: return NETCODE_SERVER_CREATE_ERROR_BIND_SOCKET_IPV4_FAILED + ipv6;
    default: return NETCODE_SERVER_CREATE_ERROR_CREATE_SOCKET_IPV4_FAILED + ipv6;
    }
}

static void nc_endpoint_log_create( const nc_log_t * log, const char * what, const char ** texts, const char * error )
{
    const char * second = texts[1] ? texts[1] : "";
    NC_LOG( log, ERROR, "no %s at %s%s%s: %s", what, texts[0] ? texts[0] : "NULL", *second ? " and " : "", second,
            error );
}

/* Closes the socket, wipes the first `written` bytes of the endpoint's block and frees it. */
static void nc_endpoint_free( nc_endpoint_t * base, size_t written )
{
    nc_allocator_t allocator = base->allocator;
    if ( base->socket.close )
        base->socket.close( base->socket.context );
    nc_crypto_release( &allocator, base, written );
}

/* ---- receiving ---- */

/* Takes the batch's buffers from a new pool. */
static void nc_endpoint_fill_batch( nc_endpoint_t * base, nc_pool_t * pool )
{
    for ( int i = 0; i < base->batch_count; i++ ) {
        base->batch[i] = nc_pool_take( pool );
        nc_received_prepare( &base->datagrams[i], pool, base->batch[i] );
    }
}

/*  Receives up to `wanted` datagrams into the batch. Returns how many; 0 also if the socket is broken, or has failed
    often in this update: `failures` counts errors in a row. One with an address is news of an earlier send. */
static int nc_endpoint_receive( nc_endpoint_t * base, int wanted, int * failures )
{
    if ( *failures >= (int) NC_RECEIVE_FAILURES )
        return 0;
    int errors = 0, count = base->socket.receive( base->socket.context, base->datagrams, wanted );
    base->counters.receive_errors += count < 0;
    count = count < wanted ? count : wanted;
    while ( errors < count && base->datagrams[errors].status == NETCODE_DATAGRAM_ERROR &&
            base->datagrams[errors].address.type == NETCODE_ADDRESS_NONE )
        errors++;
    *failures = count < 0 ? (int) NC_RECEIVE_FAILURES : errors < count ? 0 : *failures + errors;
    return count < 0 ? 0 : count;
}

static void nc_endpoint_log_failure( nc_endpoint_t * base, int failures )
{
    uint64_t suppressed;
    if ( failures >= (int) NC_RECEIVE_FAILURES && nc_log_allows( &base->failures, base->clock.now, &suppressed ) )
        NC_LOG( &base->log, INFO, "receiving fails: the last system error is %d (%llu lines before)",
                base->counters.last_socket_error, (unsigned long long) suppressed );
}

/* ---- calls ---- */

/*  NC_CHECK for calls of an object: the object's log reports what it refuses, and the object may be gone then. `text`
    is the condition. */
#define NC_REQUIRE_OF( object, its_log, condition, text, result ) \
    do {                                                          \
        NC_CHECK( ( object ) != NULL, result );                   \
        netcode_assert( condition );                              \
        if ( !( condition ) ) {                                   \
            nc_log_refuse( its_log, __func__, "%s", text );       \
            return result;                                        \
        }                                                         \
    } while ( 0 )

#define NC_REQUIRE( object, condition, result ) \
    NC_REQUIRE_OF( object, &( object )->base.log, condition, #condition, result )

/* May a payload have so many bytes? */
static inline int nc_endpoint_allows( nc_endpoint_t * base, const char * function, int bytes )
{
    if ( bytes >= 1 && bytes <= NETCODE_MAX_PACKET_SIZE )
        return 1;
    nc_log_refuse( &base->log, function, "1 to %d bytes, not %d", NETCODE_MAX_PACKET_SIZE, bytes );
    return 0;
}

/* An update begins, unless it is called from a callback of one. */
static int nc_endpoint_begin_update( nc_endpoint_t * base, const char * function, double time )
{
    if ( base->updating || base->destroy_deferred ) {
        nc_log_refuse( &base->log, function, "that it is not called from one of its own callbacks" );
        return 0;
    }
    nc_clock_advance( &base->clock, time );
    base->updating = 1;
    base->update++;
    return 1;
}

/* Logs once that `name` has no callback for loopback payloads. */
static void nc_endpoint_report_loopback( nc_endpoint_t * base, const char * name )
{
    if ( !base->loopback_reported++ )
        NC_LOG( &base->log, ERROR, "%s: loopback payloads go nowhere: no send_loopback_packet_callback", name );
}

/* Returns a packet that the caller holds to its pool. Returns 0 if it is not one of this pool's. */
static int nc_endpoint_free_packet( nc_pool_t * pool, const void * packet )
{
    uint32_t index = nc_pool_find( pool, packet );
    if ( index == NC_NONE || pool->states[index] != NC_BUFFER_HELD )
        return 0;
    pool->held--;
    nc_pool_free( pool, index );
    return 1;
}

/*  ---- rate limits: `burst` at once, then one each `milliseconds`. The time until which it is used up is all that is
    stored ---- */

static int nc_endpoint_spend( const nc_endpoint_t * base, double * used_until, int burst, int milliseconds )
{
    double now = base->clock.now, seconds = nc_seconds( milliseconds );
    if ( *used_until - now > ( (double) burst - 0.999 ) * seconds )
        return 0;
    *used_until = ( *used_until > now ? *used_until : now ) + seconds;
    return 1;
}

/*  ---- probes: numbers in keep-alives, which the other side returns in keep-alives of its own ----
Peers of other kinds ignore the 8 bytes of a keep-alive once connected. A probe has the top bit set, which no number of
clients has, 47 random bits, and 16 bits by which its sender recognizes it: an echo that comes late is not answered as
if it were a probe of the other side, which would answer that in turn. */

static const uint64_t nc_probe_bit = (uint64_t) 1 << 63;

/* The probes of one path, and the round trip that their echoes measured. RFC 6298 */
typedef struct {
    uint64_t values[2]; /* the last two, the latest first; 0: none, or it came back */
    double times[2];
    double answers; /* a rate limit: of the other side's probes that are answered */
    float round_trip;
    float lowest;
    float variation;
} nc_probe_t;

static uint64_t nc_probe_mark( const nc_endpoint_t * base, uint64_t value )
{
    uint8_t bytes[8];
    nc_store_u64( bytes, value | 0xffff );
    return nc_crypto_hash( base->probe_key, bytes, sizeof( bytes ) ) & 0xffff;
}

static uint64_t nc_probe_make( const nc_endpoint_t * base )
{
    uint64_t value = nc_probe_bit | nc_crypto_random_u64();
    return ( value & ~(uint64_t) 0xffff ) | nc_probe_mark( base, value );
}

static int nc_probe_is_own( const nc_endpoint_t * base, uint64_t value )
{
    return ( value & 0xffff ) == nc_probe_mark( base, value );
}

/* The first probe is due at once. Keeps the reply rate limiter's state. */
static void nc_probe_init( nc_probe_t * probe, double now )
{
    double answers = probe->answers;
    memset( probe, 0, sizeof( *probe ) );
    probe->answers = answers;
    probe->times[0] = now - nc_seconds( NC_PROBE_MS );
}

/*  Is a keep-alive to carry a probe? One that is sent anyway does so a little sooner, so that no further one is sent
    where keep-alives are. */
static int nc_probe_is_due( const nc_probe_t * probe, double now, int is_sent_anyway )
{
    return now - probe->times[0] >= nc_seconds( NC_PROBE_MS ) - ( is_sent_anyway ? NC_SEND_INTERVAL : 0.0 );
}

static uint64_t nc_probe_begin( nc_probe_t * probe, const nc_endpoint_t * base )
{
    probe->values[1] = probe->values[0];
    probe->times[1] = probe->times[0];
    probe->values[0] = nc_probe_make( base );
    probe->times[0] = base->clock.now;
    return probe->values[0];
}

static void nc_probe_sample( nc_probe_t * probe, double seconds )
{
    float sample = seconds > 1e-6 ? (float) seconds : 1e-6f; /* 0 is: not known */
    float error = sample > probe->round_trip ? sample - probe->round_trip : probe->round_trip - sample;
    if ( !( probe->round_trip > 0.0f ) ) {
        probe->round_trip = probe->lowest = sample;
        probe->variation = sample / 2.0f;
        return;
    }
    probe->variation += ( error - probe->variation ) / 4.0f;
    probe->round_trip += ( sample - probe->round_trip ) / 8.0f;
    probe->lowest = sample < probe->lowest ? sample : probe->lowest;
}

/* An own probe has come back. Returns whether it is one of the last two, for the first time and soon enough. */
static int nc_probe_end( nc_probe_t * probe, uint64_t value, double now )
{
    for ( int i = 0; i < 2; i++ )
        if ( probe->values[i] == value && now - probe->times[i] <= nc_seconds( NC_PROBE_VALID_MS ) ) {
            probe->values[i] = 0;
            nc_probe_sample( probe, now - probe->times[i] );
            return 1;
        }
    return 0;
}

/* Fills what both kinds of statistics have of one peer's packets. `peer` has probe and replay. */
#define NC_ENDPOINT_PATH_STATS( stats, peer )                                         \
    do {                                                                              \
        ( stats )->round_trip_seconds = (double) ( peer )->probe.round_trip;          \
        ( stats )->round_trip_lowest_seconds = (double) ( peer )->probe.lowest;       \
        ( stats )->round_trip_variation_seconds = (double) ( peer )->probe.variation; \
        ( stats )->packets_lost = ( peer )->replay.lost;                              \
        ( stats )->packets_reordered = ( peer )->replay.reordered;                    \
        ( stats )->loss_share = nc_replay_loss_share( &( peer )->replay );            \
    } while ( 0 )

/* Fills what both stats structs have: first the counters, then fields of the same names at different offsets. */
#define NC_ENDPOINT_STATS( stats, base, inbox )                                                  \
    do {                                                                                         \
        const nc_counters_t * counters_ = &( base )->counters;                                   \
        struct netcode_socket_info_t info_ = nc_socket_info( &( base )->socket );                \
        memcpy( stats, counters_, offsetof( nc_counters_t, send_errors ) );                      \
        ( stats )->send_errors = counters_->send_errors;                                         \
        ( stats )->receive_errors = counters_->receive_errors;                                   \
        ( stats )->last_socket_error =                                                           \
            counters_->last_socket_error ? counters_->last_socket_error : info_.last_send_error; \
        ( stats )->kernel_drops = info_.kernel_drops;                                            \
        ( stats )->receive_buffer_bytes = info_.receive_buffer_bytes;                            \
        ( stats )->send_buffer_bytes = info_.send_buffer_bytes;                                  \
        ( stats )->packets_queued = (int) ( inbox )->queued;                                     \
        ( stats )->packets_held = ( inbox )->pool ? (int) ( inbox )->pool->held : 0;             \
    } while ( 0 )

/* ================================================================================================================
    ROOM 13: CLIENT
    How does a client connect to one of the token's servers, and stay connected?
    Uses: platform, bytes, crypto, address, token, replay, packet, containers, queues, socket, endpoint.
    Invariant: only nc_client_enter changes the state; the sequence never goes back; keys exist only while connecting
    or connected. nc_client_check asserts as much of this as it can.
    Standard: Client State Machine

      DISCONNECTED
        |  netcode_client_connect (nc_client_begin)
        v
      SENDING_CONNECTION_REQUEST <------+   denied, silence: the other servers of the token; if none is left
        |  challenge                    |   CONNECTION_DENIED, CONNECTION_REQUEST_TIMED_OUT or
        v                               |   CONNECTION_RESPONSE_TIMED_OUT
      SENDING_CONNECTION_RESPONSE ------+   in both: the token expires: CONNECT_TOKEN_EXPIRED
        |  keep-alive
        v
      CONNECTED --> silence: CONNECTION_TIMED_OUT; the server's disconnect: DISCONNECTED

      Each arrow is a row of nc_client_rules, which nc_client_step applies; but of all the servers that are asked the
      last to fail ends the requests, in nc_client_judge_servers. From the three states above,
      netcode_client_disconnect leads to DISCONNECTED; from any, an unusable token leads to INVALID_CONNECT_TOKEN.
   ================================================================================================================ */

enum nc_client_event_t {
    NC_ON_NOTHING,
    NC_ON_CHALLENGE,
    NC_ON_KEEP_ALIVE,
    NC_ON_DENIED,
    NC_ON_SILENCE,
    NC_ON_EXPIRY,
    NC_ON_DISCONNECT
};

#define NC_STATE( name ) NETCODE_CLIENT_STATE_##name

typedef struct {
    int state;
    int event;
    int others_first;
    int else_state;
} nc_client_rule_t;

/* clang-format off */
static const nc_client_rule_t nc_client_rules[] = {
    /* in state                              on event           others first? else go to */
    { NC_STATE( SENDING_CONNECTION_REQUEST  ), NC_ON_CHALLENGE  , 0, NC_STATE( SENDING_CONNECTION_RESPONSE ) },
    { NC_STATE( SENDING_CONNECTION_REQUEST  ), NC_ON_EXPIRY     , 0, NC_STATE( CONNECT_TOKEN_EXPIRED ) },
    { NC_STATE( SENDING_CONNECTION_RESPONSE ), NC_ON_KEEP_ALIVE , 0, NC_STATE( CONNECTED ) },
    { NC_STATE( SENDING_CONNECTION_RESPONSE ), NC_ON_DENIED     , 1, NC_STATE( CONNECTION_DENIED ) },
    { NC_STATE( SENDING_CONNECTION_RESPONSE ), NC_ON_SILENCE    , 1, NC_STATE( CONNECTION_RESPONSE_TIMED_OUT ) },
    { NC_STATE( SENDING_CONNECTION_RESPONSE ), NC_ON_EXPIRY     , 0, NC_STATE( CONNECT_TOKEN_EXPIRED ) },
    { NC_STATE( CONNECTED                   ), NC_ON_SILENCE    , 0, NC_STATE( CONNECTION_TIMED_OUT ) },
    { NC_STATE( CONNECTED                   ), NC_ON_DISCONNECT , 0, NC_STATE( DISCONNECTED ) }
};
/* clang-format on */

#define NC_LONG_AGO ( -1e9 )

enum { NC_CLIENT_UNANSWERED = 3 };
enum { NC_CLIENT_BATCH = 8 };

/* One server of the token. */
typedef struct {
    struct netcode_client_report_server_t report; /* without the address; seconds_waited once it has ended */
    uint64_t denial;                              /* the sequence of its denial */
    double begin_time;                            /* when it was first asked, or asked again after another one failed */
    uint8_t unsendable;                           /* the system refused to send to it */
    uint8_t ended;                                /* it denied, or was silent for too long */
} nc_client_attempt_t;

struct netcode_client_t {
    nc_endpoint_t base;
    struct netcode_client_config_t config;
    nc_inbox_t inbox;
    struct netcode_address_t address; /* its own */
    struct netcode_address_t server_address;
    enum netcode_client_state_t state;
    int reported_state; /* the last one given to the callback; not `state` while a change is being logged */
    int loopback;
    int client_index; /* kept until the next connection, for events that are read later; -1: not known */
    int max_clients;
    uint8_t keep_alive[8]; /* the numbers that the server sent: keep-alives return them */
    int disconnecting;     /* its disconnect packets are being sent */
    int disconnected;      /* a disconnect was received, and is handled after sending */
    int clocks_started;    /* the first update after connect starts them */
    int token_was_used;    /* for the report: connect was refused because of decision 13 */
    uint64_t sequence;     /* never goes back. Decision 1 */
    uint64_t session;
    uint64_t connects;
    uint64_t disconnects;
    uint64_t send_errors_noted;
    uint64_t rebinds;
    double connect_time; /* of the first update after connect */
    double last_send_time;
    double silence_time; /* the time of the last accepted packet, or of the state's beginning */
    double rebind_time;  /* of the last rebind by itself */
    int server_index;    /* the server that has answered; while requesting, the one that was asked last */
    int asked;           /* how many servers of the token were asked, in its order */
    int turn;            /* modulo `asked`: the server that the next request is sent to */
    nc_replay_t replay;
    nc_probe_t probe;
    int unanswered; /* probes since the last that came back; far below 0 until one does, as some servers answer none */
    uint8_t challenge[NC_PACKET_LARGE_BODY]; /* its sequence and the sealed token: responses return both */
    nc_connect_token_t token;
    nc_client_attempt_t attempts[NETCODE_MAX_SERVERS_PER_CONNECT];
    uint32_t refused;   /* packets of the current server that were dropped since the last accepted one */
    int32_t refused_as; /* why the last of them was */
    uint8_t remembered[NC_CLIENT_TOKENS_REMEMBERED][NC_TOKEN_TAG_BYTES]; /* tokens that have connected */
    uint64_t remembered_count;
};

static const uint8_t * nc_client_token_tag( const struct netcode_client_t * client )
{
    return client->token.sealed_private + NC_PRIVATE_TOKEN_BYTES - NC_TOKEN_TAG_BYTES;
}

static void nc_client_wipe_keys( struct netcode_client_t * client )
{
    nc_crypto_wipe( client->token.route.client_to_server_key, NETCODE_KEY_BYTES );
    nc_crypto_wipe( client->token.route.server_to_client_key, NETCODE_KEY_BYTES );
    nc_crypto_wipe( client->token.sealed_private, NC_PRIVATE_TOKEN_BYTES );
    nc_crypto_wipe( client->challenge, sizeof( client->challenge ) );
}

static void nc_client_drop( struct netcode_client_t * client, int reason, const struct netcode_address_t * from,
                            int bytes )
{
    client->base.counters.dropped[reason]++;
    NC_LOG( &client->base.log, DEBUG, "client dropped a datagram of %d bytes: %s", bytes,
            netcode_drop_reason_text( reason ) );
    if ( client->config.drop_callback )
        client->config.drop_callback( client->config.callback_context, reason, from, bytes );
}

static void nc_client_seal( struct netcode_client_t * client, int type, const uint8_t * body, int body_bytes )
{
    uint8_t spare[NC_OUT_STRIDE];
    uint8_t * out = nc_outbox_begin( &client->base.outbox, spare );
    if ( client->state <= 0 || client->loopback || client->sequence == UINT64_MAX )
        return; /* the keys are wiped, or a nonce would be used twice */
    nc_packet_t packet = { type, 0, body_bytes, client->sequence++ };
    nc_packet_context_t context = { client->token.route.client_to_server_key, client->token.protocol_id };
    client->last_send_time = client->base.clock.now;
    nc_outbox_end( &client->base.outbox, out, &client->server_address, type,
                   nc_packet_seal( out, &packet, body, &context ) );
}

/* Asserts the invariants of each state and its data; called at the start of each call. */
static void nc_client_check( const struct netcode_client_t * client )
{
    netcode_assert( client->state >= NC_STATE( CONNECT_TOKEN_EXPIRED ) && client->state <= NC_STATE( CONNECTED ) );
    netcode_assert( client->state <= 0 || client->loopback ||
                    client->server_index < client->token.route.num_addresses );
    netcode_assert( client->state != NC_STATE( CONNECTED ) || client->inbox.queues[0].is_open );
    netcode_assert( !client->loopback || client->state == NC_STATE( CONNECTED ) );
    netcode_assert( client->client_index >= -1 && client->max_clients >= 0 );
    netcode_assert( client->base.outbox.sent <= client->base.outbox.count &&
                    client->base.outbox.count <= client->base.outbox.capacity );
    netcode_assert( client->inbox.pool->held + client->inbox.queued + client->inbox.pool->free_count <=
                    client->inbox.pool->count );
    (void) client;
}

static int nc_client_remembers_token( const struct netcode_client_t * client )
{
    for ( uint64_t i = 0; i < client->remembered_count && i < NC_CLIENT_TOKENS_REMEMBERED; i++ )
        if ( memcmp( client->remembered[i], nc_client_token_tag( client ), NC_TOKEN_TAG_BYTES ) == 0 )
            return 1;
    return 0;
}

static void nc_client_end_attempt( struct netcode_client_t * client, int server_index )
{
    nc_client_attempt_t * attempt = &client->attempts[server_index];
    if ( !attempt->ended )
        attempt->report.seconds_waited = client->base.clock.now - attempt->begin_time;
    attempt->ended = 1;
}

static void nc_client_end_attempts( struct netcode_client_t * client )
{
    for ( int i = 0; i < client->asked; i++ )
        nc_client_end_attempt( client, i );
}

/* Ends a connection or an attempt. */
static void nc_client_end_session( struct netcode_client_t * client, int previous, int state )
{
    if ( previous == NC_STATE( CONNECTED ) )
        client->disconnects++;
    else if ( previous > 0 )
        nc_client_end_attempts( client );
    nc_inbox_close( &client->inbox, 0, client->session, 0, state );

    client->loopback = 0;
    client->max_clients = 0;
    client->disconnected = 0;
    nc_client_wipe_keys( client );
}

static void nc_client_notify( struct netcode_client_t * client )
{
    int previous = client->reported_state;
    client->reported_state = client->state;
    if ( previous != client->state && client->config.state_change_callback )
        client->config.state_change_callback( client->config.callback_context, previous, client->state );
}

/*  The only function that changes the state. The callback is called last: it may change the state again, or destroy the
    client. */
static void nc_client_enter( struct netcode_client_t * client, int state )
{
    int previous = client->state;
    client->state = (enum netcode_client_state_t) state;
    client->last_send_time = NC_LONG_AGO; /* the new state's first packet is sent at once */
    client->silence_time = client->base.clock.now;

    if ( state <= 0 ) {
        nc_client_end_session( client, previous, state );
    } else if ( state == NC_STATE( CONNECTED ) ) {
        client->connects++;
        if ( !client->loopback ) {
            nc_client_end_attempts( client );
            memcpy( client->remembered[client->remembered_count++ % NC_CLIENT_TOKENS_REMEMBERED],
                    nc_client_token_tag( client ), NC_TOKEN_TAG_BYTES );
        }
        nc_inbox_open( &client->inbox, 0, client->session, 0 );
        nc_probe_init( &client->probe, client->base.clock.now );
        client->unanswered = INT32_MIN / 2;
    }

    nc_client_check( client );
    if ( previous == state )
        return;

    NC_LOG( &client->base.log, INFO, "client state: %s -> %s", netcode_client_state_name( previous ),
            netcode_client_state_name( state ) );
    nc_client_notify( client );
}

static struct netcode_address_t nc_client_server_at( const struct netcode_client_t * client, int server_index )
{
    struct netcode_address_t address = client->token.route.addresses[server_index];
    if ( nc_address_is_link_local( &address ) && nc_address_is_link_local( &client->address ) )
        address.data.ipv6[1] = client->address.data.ipv6[1];
    return address;
}

/* Makes one server of the token the current one. Once it has answered, the socket receives from it alone. */
static void nc_client_turn_to( struct netcode_client_t * client, int server_index, int has_answered )
{
    struct netcode_address_t peer = nc_client_server_at( client, server_index );
    client->server_index = server_index;
    client->server_address = peer;
    client->refused = 0;
    if ( !has_answered )
        memset( &peer, 0, sizeof( peer ) );
    if ( !client->base.extras.connect_to )
        return;
    client->base.extras.connect_to( client->base.socket.context, &peer );
    client->address.port = nc_socket_info( &client->base.socket ).address.port; /* another program may have taken it */
}

/* Begins to ask the next server of the token; those before it are still asked. */
static void nc_client_ask_next( struct netcode_client_t * client )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    int servers = client->token.route.num_addresses, server_index = client->asked++;
    client->turn = server_index;
    client->attempts[server_index].begin_time = client->base.clock.now;
    nc_client_turn_to( client, server_index, 0 );
    netcode_address_to_string( &client->server_address, text );
    nc_client_enter( client, NC_STATE( SENDING_CONNECTION_REQUEST ) );
    NC_LOG( &client->base.log, INFO, "client connects to %s (server %d of %d)", text, server_index + 1, servers );
}

/*  The current server has failed. Asks the next one, and goes on with those that have not failed, whose time begins
    anew. Returns 0 if none is left. */
static int nc_client_ask_others( struct netcode_client_t * client )
{
    int left = -1;
    for ( int i = 0; i < client->asked; i++ )
        if ( !client->attempts[i].ended ) {
            client->attempts[i].begin_time = client->base.clock.now;
            left = i;
        }
    if ( client->asked < client->token.route.num_addresses ) {
        nc_client_ask_next( client );
        return 1;
    }
    if ( left < 0 )
        return 0;
    nc_client_turn_to( client, left, 0 );
    nc_client_enter( client, NC_STATE( SENDING_CONNECTION_REQUEST ) );
    return 1;
}

static void nc_client_step( struct netcode_client_t * client, int event )
{
    for ( size_t i = 0; i < sizeof( nc_client_rules ) / sizeof( nc_client_rules[0] ); i++ ) {
        const nc_client_rule_t * rule = &nc_client_rules[i];
        if ( rule->state != client->state || rule->event != event )
            continue;
        if ( !rule->others_first || !nc_client_ask_others( client ) )
            nc_client_enter( client, rule->else_state );
        return;
    }
}

/* ---- receiving ---- */

/*  The index of the server that sent this, or -1. Of two servers that answer in the same update, the first in the token
    wins: until a response is sent, those before the chosen one may still answer. */
static int nc_client_sender( const struct netcode_client_t * client, const struct netcode_address_t * from )
{
    int end = client->server_index;
    if ( client->state == NC_STATE( SENDING_CONNECTION_REQUEST ) )
        end = client->asked;
    else if ( nc_address_same( from, &client->server_address ) )
        return end;
    else if ( client->state != NC_STATE( SENDING_CONNECTION_RESPONSE ) || client->attempts[end].report.responses_sent )
        return -1;
    for ( int i = 0; i < end; i++ ) {
        struct netcode_address_t address = nc_client_server_at( client, i );
        if ( !client->attempts[i].ended && nc_address_same( from, &address ) )
            return i;
    }
    return -1;
}

/* Which types of encrypted packets are accepted in which state, and from which server? */
static int nc_client_expects( const struct netcode_client_t * client, int type, int server )
{
    int requests = client->state == NC_STATE( SENDING_CONNECTION_REQUEST );
    int responds = client->state == NC_STATE( SENDING_CONNECTION_RESPONSE );
    switch ( type ) {
    case NETCODE_PACKET_DENIED: return requests || responds;
    case NETCODE_PACKET_CHALLENGE: return requests || server != client->server_index;
    case NETCODE_PACKET_KEEP_ALIVE:
        return ( responds && server == client->server_index ) || client->state == NC_STATE( CONNECTED );
    default: return client->state == NC_STATE( CONNECTED );
    }
}

/*  A keep-alive, perhaps with a probe of the server, which is answered at once, or with one of its own that comes
    back. */
static void nc_client_on_probe( struct netcode_client_t * client, const uint8_t * body )
{
    uint64_t value = nc_load_u64( body );
    if ( !( value & nc_probe_bit ) )
        return;
    if ( nc_probe_is_own( &client->base, value ) )
        client->unanswered = nc_probe_end( &client->probe, value, client->base.clock.now ) ? 0 : client->unanswered;
    else if ( nc_endpoint_spend( &client->base, &client->probe.answers, NC_PROBE_ANSWER_BURST, NC_PROBE_ANSWER_MS ) )
        nc_client_seal( client, NETCODE_PACKET_KEEP_ALIVE, body, 8 );
}

/*  The keep-alive that connects, or a later one. A deployed server sends a client id in the field of the client index:
    the client connects, and its slot is unknown. */
static void nc_client_on_keep_alive( struct netcode_client_t * client, const nc_packet_t * packet,
                                     const uint8_t * body )
{
    uint32_t client_index = nc_load_u32( body );
    uint32_t max_clients = nc_load_u32( body + 4 );
    client->silence_time = client->base.clock.now;
    if ( client->state == NC_STATE( CONNECTED ) ) { /* its numbers are not used again */
        nc_client_on_probe( client, body );
        return;
    }

    int known = client_index < max_clients && client_index < NETCODE_MAX_SLOTS;
    client->client_index = known ? (int) client_index : -1;
    client->max_clients = max_clients < NETCODE_MAX_SLOTS ? (int) max_clients : NETCODE_MAX_SLOTS;
    memcpy( client->keep_alive, body, sizeof( client->keep_alive ) );
    nc_replay_init( &client->replay, packet->sequence );
    uint64_t session = client->session;
    nc_client_step( client, NC_ON_KEEP_ALIVE );
    if ( !known && client->session == session )
        NC_LOG( &client->base.log, ERROR, "client: the server says slot %lu of %lu, which can not be: its index is -1",
                (unsigned long) client_index, (unsigned long) max_clients );
}

/*  Is this a denial or a challenge that was handled before? All servers of a token have one key, so that what one of
    them sent can be sent again from another's address. */
static int nc_client_is_replayed( const struct netcode_client_t * client, const nc_packet_t * packet,
                                  const uint8_t * body )
{
    if ( packet->type == NETCODE_PACKET_CHALLENGE )
        return client->state == NC_STATE( SENDING_CONNECTION_RESPONSE ) &&
               memcmp( client->challenge + 8, body + 8, NC_CHALLENGE_BYTES ) == 0;
    for ( int i = 0; i < client->asked && packet->type == NETCODE_PACKET_DENIED; i++ )
        if ( client->attempts[i].report.denied && client->attempts[i].denial == packet->sequence )
            return 1;
    return 0;
}

/* Opens one packet of a server and handles it. Returns a drop reason. */
static int nc_client_read( struct netcode_client_t * client, nc_received_t * received, int server )
{
    nc_packet_t * packet = &received->as.packet;
    int reason = nc_packet_parse( packet, received->data, received->bytes, NC_TO_CLIENT );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    if ( !nc_client_expects( client, packet->type, server ) )
        return NETCODE_DROP_WRONG_STATE;

    uint8_t * body = received->data + packet->header_bytes;
    nc_packet_context_t context = { client->token.route.server_to_client_key, client->token.protocol_id };
    received->cost += NC_COST_OPEN;

    if ( client->state == NC_STATE( CONNECTED ) )
        reason = nc_packet_accept( packet, received->data, &context, &client->replay );
    else if ( !nc_packet_open( packet, received->data, body, &context ) )
        reason = NETCODE_DROP_AUTHENTICATION_FAILED;
    else if ( nc_client_is_replayed( client, packet, body ) )
        reason = NETCODE_DROP_REPLAYED;
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    client->base.counters.packets_received[packet->type]++;
    client->refused = 0;

    switch ( packet->type ) {
    case NETCODE_PACKET_DENIED:
        client->attempts[server].report.denied = 1; /* handled after sending */
        client->attempts[server].denial = packet->sequence;
        return NETCODE_DROP_NONE;
    case NETCODE_PACKET_CHALLENGE:
        client->attempts[server].report.challenged = 1;
        nc_client_turn_to( client, server, 1 );
        memcpy( client->challenge, body, sizeof( client->challenge ) );
        nc_client_step( client, NC_ON_CHALLENGE );
        return NETCODE_DROP_NONE;
    case NETCODE_PACKET_KEEP_ALIVE: nc_client_on_keep_alive( client, packet, body ); return NETCODE_DROP_NONE;
    case NETCODE_PACKET_PAYLOAD: {
        nc_buffer_t what = { client->session, 0, packet->sequence, 0, (uint32_t) packet->body_bytes };
        client->silence_time = client->base.clock.now;
        return nc_received_queue( received, &client->inbox, what );
    }
    default: client->disconnected = 1; return NETCODE_DROP_NONE;
    }
}

static int nc_client_screen( const struct netcode_client_t * client, const nc_received_t * received, int server )
{
    int reason = nc_received_screen( received->bytes, received->from );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    if ( client->state <= 0 || client->loopback )
        return NETCODE_DROP_WRONG_STATE;
    return server >= 0 ? NETCODE_DROP_NONE : NETCODE_DROP_WRONG_SERVER;
}

static void nc_client_process( struct netcode_client_t * client, nc_received_t * received )
{
    client->base.counters.datagrams_received++;
    client->base.counters.bytes_received += (uint64_t) received->bytes;

    int server = nc_client_sender( client, received->from );
    int reason = nc_client_screen( client, received, server );
    if ( reason == NETCODE_DROP_NONE ) {
        reason = nc_client_read( client, received, server );
        /* The report counts the server's packets that could not be read, but no duplicates or late ones. */
        if ( server == client->server_index && reason != NETCODE_DROP_NONE && reason != NETCODE_DROP_WRONG_STATE &&
             reason != NETCODE_DROP_REPLAYED && reason != NETCODE_DROP_QUEUE_FULL &&
             reason != NETCODE_DROP_POOL_EMPTY ) {
            client->refused++;
            client->refused_as = reason;
        }
    }
    if ( reason != NETCODE_DROP_NONE )
        nc_client_drop( client, reason, received->from, received->bytes );
}

/*  The socket reported an error, perhaps an ICMP "unreachable". It can be forged, so it only reaches statistics and the
    report. Decision 6 */
static void nc_client_on_socket_error( struct netcode_client_t * client, const struct netcode_datagram_t * datagram )
{
    client->base.counters.receive_errors++;
    client->base.counters.last_socket_error = datagram->error;
    int server = datagram->address.type == NETCODE_ADDRESS_NONE ? client->server_index
                                                                : nc_client_sender( client, &datagram->address );
    if ( client->state <= 0 || client->loopback || server < 0 )
        return;
    client->attempts[server].report.errors += client->attempts[server].report.errors < INT32_MAX;
    client->attempts[server].report.last_error = datagram->error;
}

/* Handles one datagram of a received batch and returns its cost. */
static int nc_client_handle_datagram( struct netcode_client_t * client, struct netcode_datagram_t * datagram,
                                      uint32_t * buffer )
{
    nc_received_t received;
    nc_received_init( &received, datagram, *buffer );
    if ( datagram->status == NETCODE_DATAGRAM_ERROR )
        nc_client_on_socket_error( client, datagram );
    else
        nc_client_process( client, &received );

    if ( received.kept )
        *buffer = received.buffer;
    nc_received_prepare( datagram, client->inbox.pool, *buffer );
    return NC_COST_CHEAP + received.cost;
}

static void nc_client_receive( struct netcode_client_t * client )
{
    int budget = client->config.update_budget, failures = 0;
    while ( budget > 0 ) {
        int want =
            ( budget + NC_COST_OPEN ) / ( NC_COST_OPEN + NC_COST_CHEAP ); /* what it can pay for, whatever arrives */
        if ( want > NC_CLIENT_BATCH )
            want = NC_CLIENT_BATCH;

        int count = nc_endpoint_receive( &client->base, want, &failures );
        if ( count <= 0 )
            break;
        for ( int i = 0; i < count; i++ )
            budget -= nc_client_handle_datagram( client, &client->base.datagrams[i], &client->base.batch[i] );
    }
    client->base.backlog = budget <= 0 && failures == 0;
    nc_endpoint_log_failure( &client->base, failures );
}

/* ---- update ---- */

/* The report counts errors of sending too, not only those received by ICMP. Returns whether the network is gone. */
static int nc_client_note_send_errors( struct netcode_client_t * client, int server )
{
    nc_client_attempt_t * attempt = &client->attempts[server];
    if ( client->base.counters.send_errors == client->send_errors_noted )
        return 0;
    client->send_errors_noted = client->base.counters.send_errors;
    attempt->report.errors += attempt->report.errors < INT32_MAX;
    attempt->report.last_error = nc_socket_info( &client->base.socket ).last_send_error;
    attempt->unsendable = !nc_socket_is_full( attempt->report.last_error );
    client->base.counters.last_socket_error = attempt->report.last_error;
    return nc_socket_lost_network( attempt->report.last_error );
}

static void nc_client_send_request( struct netcode_client_t * client, int server )
{
    uint8_t spare[NC_OUT_STRIDE];
    uint8_t * out = nc_outbox_begin( &client->base.outbox, spare );
    if ( client->state != NC_STATE( SENDING_CONNECTION_REQUEST ) )
        return;

    struct netcode_address_t to = nc_client_server_at( client, server );
    uint64_t session = client->session;
    client->attempts[server].report.requests_sent++;
    client->attempts[server].unsendable = 0;
    client->sequence += client->sequence < UINT64_MAX; /* requests are counted too, as in every known client */
    client->last_send_time = client->base.clock.now;
    nc_outbox_end( &client->base.outbox, out, &to, NETCODE_PACKET_REQUEST,
                   nc_packet_write_request( out, &client->token ) );
    nc_outbox_flush( &client->base.outbox ); /* so that it is known whether the system sends to this one */
    if ( client->session == session )        /* else a callback has begun another connection */
        nc_client_note_send_errors( client, server );
}

/*  When the token's next server is asked, too: some time after the last one, or at once if the system does not send to
    that. */
static double nc_client_next_time( const struct netcode_client_t * client )
{
    const nc_client_attempt_t * last = &client->attempts[client->server_index];
    double wait = client->config.next_server_seconds;
    if ( client->state != NC_STATE( SENDING_CONNECTION_REQUEST ) ||
         client->asked == client->token.route.num_addresses || !( wait > 0.0 || last->unsendable ) )
        return client->base.clock.now - NC_LONG_AGO;
    return last->unsendable ? last->begin_time : last->begin_time + wait;
}

/* Sends a request to the next two of the servers that are asked, in turn, so that many servers do not make a flood. */
static void nc_client_send_requests( struct netcode_client_t * client )
{
    int tries = client->asked;
    for ( ;; ) {
        for ( int sent = 0; tries > 0 && client->asked > 0 && sent < 2; tries-- ) {
            int server = client->turn % client->asked;
            client->turn = server + 1;
            if ( client->attempts[server].ended )
                continue;
            uint64_t errors = client->base.counters.send_errors;
            nc_client_send_request( client, server );
            sent += client->base.counters.send_errors == errors; /* one that is refused takes nobody's turn */
        }
        if ( client->base.clock.now < nc_client_next_time( client ) )
            return;
        nc_client_ask_next( client );
        tries = 1;
    }
}

static void nc_client_send( struct netcode_client_t * client )
{
    uint8_t body[sizeof( client->keep_alive )];
    if ( client->base.clock.now >= nc_client_next_time( client ) )
        nc_client_ask_next( client ); /* which makes a request due */
    int is_due = client->base.clock.now - client->last_send_time >= NC_SEND_INTERVAL;
    int probes =
        client->state == NC_STATE( CONNECTED ) && nc_probe_is_due( &client->probe, client->base.clock.now, is_due );
    if ( client->state <= 0 || !( is_due || probes ) )
        return;

    switch ( client->state ) {
    case NC_STATE( SENDING_CONNECTION_REQUEST ): nc_client_send_requests( client ); break;
    case NC_STATE( SENDING_CONNECTION_RESPONSE ):
        client->attempts[client->server_index].report.responses_sent++;
        nc_client_seal( client, NETCODE_PACKET_RESPONSE, client->challenge, sizeof( client->challenge ) );
        break;
    default:
        memcpy( body, client->keep_alive, sizeof( body ) );
        if ( probes ) {
            nc_store_u64( body, nc_probe_begin( &client->probe, &client->base ) );
            client->unanswered++;
        }
        nc_client_seal( client, NETCODE_PACKET_KEEP_ALIVE, body, sizeof( body ) );
    }
}

/* Takes the local address that the system prefers now, and makes itself heard from there. */
static NC_COLD int nc_client_rebind( struct netcode_client_t * client )
{
    client->rebind_time = client->base.clock.now;
    if ( !client->base.socket.rebind || !client->base.socket.rebind( client->base.socket.context ) )
        return 0;
    client->rebinds++;
    if ( client->base.socket.info )
        client->address.port = nc_socket_info( &client->base.socket ).address.port;
    if ( client->state != NC_STATE( CONNECTED ) || client->loopback )
        return 1;

    nc_probe_init( &client->probe, client->base.clock.now ); /* it may be another path */
    client->unanswered = client->unanswered > 0 ? 0 : client->unanswered;
    nc_client_send( client );
    nc_outbox_flush( &client->base.outbox );
    return 1;
}

/*  While it receives nothing, or its network is gone: a connected socket goes on sending from an address that is dead.
    Or while the server, which has answered probes before, answers three no more: it still sends, but hears nothing. */
static void nc_client_keep_path( struct netcode_client_t * client, int network_is_gone )
{
    double now = client->base.clock.now;
    int is_silent = now - client->silence_time >= nc_seconds( NC_CLIENT_REBIND_MS ) && !client->base.backlog;
    int is_unheard = client->unanswered >= NC_CLIENT_UNANSWERED &&
                     client->probe.round_trip < 0.5f && /* else the answer may be on its way */
                     now - client->probe.times[0] >= nc_seconds( NC_PROBE_MS ) / 2.0;
    if ( client->state != NC_STATE( CONNECTED ) || client->loopback || !client->base.socket.rebind ||
         !( is_silent || is_unheard || network_is_gone ) ||
         now - client->rebind_time < nc_seconds( NC_CLIENT_REBIND_MS ) )
        return;
    NC_LOG( &client->base.log, INFO, "client takes a fresh local address: %s",
            network_is_gone ? "its network is gone" : "it hears nothing, or is not heard" );
    nc_client_rebind( client );
}

/* Seconds that the token leaves for connecting, over all its servers. Standard: Connect Token Expired */
static double nc_client_seconds_left( const struct netcode_client_t * client )
{
    if ( client->token.expire_timestamp == UINT64_MAX )
        return 1e300; /* no limit */
    double seconds = (double) ( client->token.expire_timestamp - client->token.create_timestamp );
    return client->clocks_started ? seconds - ( client->base.clock.now - client->connect_time ) : seconds;
}

/*  Has a server denied, disconnected, or been silent for too long? While requesting, each that is asked has a timeout
    of its own. */
static void nc_client_judge_servers( struct netcode_client_t * client )
{
    nc_client_attempt_t * attempts = client->attempts;
    double timeout = client->token.route.timeout_seconds, now = client->base.clock.now;
    if ( client->base.backlog )
        timeout *= 2.0; /* the reply may be among the datagrams not read yet. Decision 6 */
    int event = timeout > 0.0 && now - client->silence_time >= timeout ? NC_ON_SILENCE : NC_ON_NOTHING;

    if ( client->state == NC_STATE( CONNECTED ) ) {
        event = client->disconnected ? NC_ON_DISCONNECT : event;
    } else if ( client->state == NC_STATE( SENDING_CONNECTION_RESPONSE ) ) {
        event = attempts[client->server_index].report.denied ? NC_ON_DENIED : event;
        if ( event != NC_ON_NOTHING )
            nc_client_end_attempt( client, client->server_index );
    } else if ( client->state == NC_STATE( SENDING_CONNECTION_REQUEST ) ) {
        int left = 0;
        for ( int i = 0; i < client->asked; i++ ) {
            if ( attempts[i].report.denied || ( timeout > 0.0 && now - attempts[i].begin_time >= timeout ) )
                nc_client_end_attempt( client, i );
            left += !attempts[i].ended;
        }
        if ( left == 0 && !nc_client_ask_others( client ) ) { /* the last of the token says why */
            client->server_index = client->asked - 1;
            const nc_client_attempt_t * last = &attempts[client->server_index];
            nc_client_enter( client, last->report.denied           ? NC_STATE( CONNECTION_DENIED )
                                     : last->report.responses_sent ? NC_STATE( CONNECTION_RESPONSE_TIMED_OUT )
                                                                   : NC_STATE( CONNECTION_REQUEST_TIMED_OUT ) );
        }
        return;
    }
    nc_client_step( client, event );
}

static void nc_client_start_clocks( struct netcode_client_t * client )
{
    if ( client->state <= 0 || client->clocks_started )
        return;
    client->clocks_started = 1;
    client->connect_time = client->silence_time = client->attempts[0].begin_time = client->base.clock.now;
}

/* Standard: Client State Machine. Order: receive, send, token expiry, denial or disconnect, timeouts. */
static void nc_client_update( struct netcode_client_t * client )
{
    nc_client_start_clocks( client );
    nc_client_receive( client );
    if ( client->loopback )
        return;
    nc_client_start_clocks( client ); /* a callback may have started another connection */
    nc_client_send( client );
    nc_client_start_clocks( client );
    nc_client_keep_path( client, nc_client_note_send_errors( client, client->server_index ) );
    if ( nc_client_seconds_left( client ) <= 0.0 )
        nc_client_step( client, NC_ON_EXPIRY );

    nc_client_judge_servers( client );
    nc_outbox_flush( &client->base.outbox );
}

/* ---- life ---- */

/*  Begins a call. A log callback may make it before a change of state was reported: then the change is reported first,
    so that the application gets all events in the order in which they happened. */
static NC_INLINE void nc_client_begin_call( struct netcode_client_t * client )
{
    client->base.depth++;
    nc_client_check( client );
    nc_client_notify( client );
}

static void nc_client_end_call( struct netcode_client_t * client )
{
    if ( --client->base.depth == 0 && client->base.destroy_deferred )
        nc_endpoint_free( &client->base, nc_pool_written_bytes( client->inbox.pool ) );
}

static void nc_client_disconnect( struct netcode_client_t * client )
{
    if ( client->state <= 0 || client->disconnecting )
        return;

    client->disconnecting = 1;
    if ( !client->loopback && client->state != NC_STATE( SENDING_CONNECTION_REQUEST ) ) {
        for ( int i = 0; i < NC_DISCONNECT_PACKETS; i++ ) /* while requesting, no server has a session to end */
            nc_client_seal( client, NETCODE_PACKET_DISCONNECT, NULL, 0 );
        nc_outbox_flush( &client->base.outbox );
    }
    client->disconnecting = 0;
    nc_client_enter( client, NC_STATE( DISCONNECTED ) );
}

/* Returns whether it is connecting with this token. */
static int nc_client_begin( struct netcode_client_t * client, const uint8_t * connect_token )
{
    nc_client_disconnect( client );
    if ( client->state > 0 || client->base.destroy_deferred )
        return 0; /* the callback of that disconnect has connected again, or called destroy */
    if ( !nc_inbox_can_open( &client->inbox, 0 ) ) {
        nc_log_refuse( &client->base.log, "netcode_client_connect", "that the events of earlier connections are read" );
        return 0;
    }

    client->session++;
    memset( client->attempts, 0, sizeof( client->attempts ) );
    client->send_errors_noted = client->base.counters.send_errors;
    client->refused = 0;
    client->server_index = client->asked = 0;
    client->clocks_started = 0;

    int valid = nc_token_read( connect_token, &client->token );
    client->token_was_used = valid && nc_client_remembers_token( client );
    if ( !valid || client->token_was_used ) {
        NC_LOG( &client->base.log, ERROR, "client can not connect: %s",
                client->token_was_used ? "it has been connected with this token before"
                                       : "the connect token is not valid" );
        if ( !valid )
            client->token.route.num_addresses = 0;
        nc_client_enter( client, NC_STATE( INVALID_CONNECT_TOKEN ) );
        return 0;
    }

    uint64_t session = client->session;
    nc_client_ask_next( client );
    return client->session == session && client->state > 0;
}

/*  Lays out one block: the client, its batches, and last its packets, most of whose pages are never used. If `client`
    is NULL, it only measures. Returns the bytes that a client allocates. */
static size_t nc_client_layout( const struct netcode_client_config_t * config, const nc_endpoint_setup_t * setup,
                                struct netcode_client_t * client )
{
    struct netcode_client_t measured;
    struct netcode_client_t * target = client ? client : &measured;
    nc_arena_t arena = nc_arena_make( client );
    int wanted = nc_config_limit( config->packet_pool_buffers );
    uint32_t buffers = (uint32_t) ( wanted > 0 ? wanted : (int) NC_CLIENT_POOL ) + (uint32_t) NC_CLIENT_BATCH;

    nc_arena_take( &arena, 1, sizeof( *client ) );
    target->inbox.client_count = 1;
    target->inbox.has_events = config->events;
    nc_inbox_place( &target->inbox, &arena, buffers );
    nc_endpoint_place( &target->base, &arena, setup, NC_CLIENT_BATCH );
    target->inbox.pool = nc_pool_place( &arena, buffers );
    return arena.at;
}

static void nc_client_set_defaults( struct netcode_client_config_t * config )
{
    NC_ENDPOINT_SET_DEFAULTS( config );
    config->packet_pool_buffers = nc_config_limit( config->packet_pool_buffers );
    if ( config->packet_pool_buffers <= 0 )
        config->packet_pool_buffers = NC_CLIENT_POOL;
    if ( config->packet_quota <= 0 )
        config->packet_quota = config->packet_pool_buffers;
    config->update_budget = config->update_budget > 0 ? nc_config_limit( config->update_budget ) : NC_CLIENT_BUDGET;
}

static void nc_client_init( struct netcode_client_t * client, const struct netcode_client_config_t * config,
                            const nc_endpoint_setup_t * setup, double time )
{
    memset( client, 0, sizeof( *client ) );
    nc_client_layout( config, setup, client );
    nc_endpoint_init( &client->base, setup, time );
    client->config = *config;
    nc_client_set_defaults( &client->config );
    nc_inbox_reset( &client->inbox, client->inbox.pool, (uint32_t) client->config.packet_quota );
    nc_endpoint_fill_batch( &client->base, client->inbox.pool );
    client->address = setup->addresses[0];
    client->sequence = nc_crypto_sequence_base( config->sequence_base, nc_crypto_random_u64() );
    client->rebind_time = NC_LONG_AGO;
}

/* Returns a create error of the endpoint, or NC_CLIENT_NEEDS_PORT. */
static int nc_client_make( struct netcode_client_t ** result, nc_endpoint_setup_t * setup,
                           const struct netcode_client_config_t * config, double time )
{
    nc_allocator_t allocator = setup->udp.allocator;
    if ( !setup->socket && setup->simulator && setup->addresses[0].port == 0 )
        return NC_CLIENT_NEEDS_PORT;

    struct netcode_client_t * client =
        (struct netcode_client_t *) allocator.allocate( allocator.context, nc_client_layout( config, setup, NULL ) );
    if ( !client )
        return NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED;

    nc_client_init( client, config, setup, time );
    setup->udp.reports_errors = 1;
    int error = nc_endpoint_open_socket( &client->base, setup );
    if ( error != NETCODE_SERVER_CREATE_ERROR_NONE ) {
        nc_endpoint_free( &client->base, sizeof( *client ) );
        return error;
    }

    if ( client->base.socket.info )
        client->address.port = nc_socket_info( &client->base.socket ).address.port;
    *result = client;
    return NETCODE_SERVER_CREATE_ERROR_NONE;
}

NETCODE_API struct netcode_client_t * netcode_client_create_dual( const char * address1, const char * address2,
                                                                  const struct netcode_client_config_t * config,
                                                                  double time )
{
    const char * texts[] = { address1, address2 };
    struct netcode_client_t * client = NULL;
    nc_endpoint_setup_t setup;
    struct netcode_client_config_t defaults;
    netcode_default_client_config( &defaults );
    config = config ? config : &defaults;
    NC_ENDPOINT_READ_CONFIG( &setup, config );

    int error = nc_endpoint_check_setup( &setup, texts );
    if ( error == NETCODE_SERVER_CREATE_ERROR_NONE )
        error = nc_client_make( &client, &setup, config, time );
    nc_client_error = nc_endpoint_errors[error].of_client;

    if ( !client )
        nc_endpoint_log_create( &setup.log, "client", texts, netcode_client_create_error_text( nc_client_error ) );
    return client;
}

NETCODE_API struct netcode_client_t * netcode_client_create( const char * address,
                                                             const struct netcode_client_config_t * config,
                                                             double time )
{
    return netcode_client_create_dual( address, NULL, config, time );
}

NETCODE_API void netcode_default_client_config( struct netcode_client_config_t * config )
{
    NC_CHECK( config != NULL, NC_NOTHING );
    memset( config, 0, sizeof( *config ) );
    config->allocate_function = nc_allocator_malloc;
    config->free_function = nc_allocator_free;
    config->next_server_seconds = 0.25;
    nc_client_set_defaults( config );
}

NETCODE_API int netcode_client_create_error( void )
{
    return nc_client_error;
}

NETCODE_API const char * netcode_client_create_error_text( int error )
{
    return nc_endpoint_error_text( error, 1 );
}

NETCODE_API size_t netcode_client_memory( const struct netcode_client_config_t * config )
{
    nc_endpoint_setup_t setup;
    NC_CHECK( config != NULL, 0 );
    NC_ENDPOINT_READ_CONFIG( &setup, config );
    return nc_client_layout( config, &setup, NULL ) + nc_endpoint_socket_bytes( &setup );
}

NETCODE_API void netcode_client_destroy( struct netcode_client_t * client )
{
    if ( !client )
        return;
    nc_client_begin_call( client );
    client->base.destroy_deferred = 1;
    nc_client_disconnect( client );
    nc_client_end_call( client );
}

NETCODE_API int netcode_client_connect( struct netcode_client_t * client, const uint8_t * connect_token )
{
    NC_REQUIRE( client, connect_token != NULL, NETCODE_ERROR );
    if ( client->base.destroy_deferred )
        return NETCODE_ERROR;
    nc_client_begin_call( client );
    int begun = nc_client_begin( client, connect_token );
    nc_client_end_call( client );
    return begun ? NETCODE_OK : NETCODE_ERROR;
}

NETCODE_API void netcode_client_update( struct netcode_client_t * client, double time )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    nc_client_begin_call( client );
    if ( nc_endpoint_begin_update( &client->base, "netcode_client_update", time ) ) {
        nc_client_update( client );
        client->base.updating = 0;
    }
    nc_client_end_call( client );
}

NETCODE_API void netcode_client_disconnect( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    nc_client_begin_call( client );
    nc_client_disconnect( client );
    nc_client_end_call( client );
}

NETCODE_API uint64_t netcode_client_next_packet_sequence( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, 0 );
    return client->sequence;
}

NETCODE_API void netcode_client_send_packet( struct netcode_client_t * client, const uint8_t * data, int bytes )
{
    NC_REQUIRE( client, data != NULL, NC_NOTHING );
    if ( !nc_endpoint_allows( &client->base, __func__, bytes ) )
        return;

    nc_client_begin_call( client );
    if ( client->state == NC_STATE( CONNECTED ) && !client->loopback )
        nc_client_seal( client, NETCODE_PACKET_PAYLOAD, data, bytes );
    else if ( client->loopback && client->config.send_loopback_packet_callback )
        client->config.send_loopback_packet_callback( client->config.callback_context, client->client_index, data,
                                                      bytes, client->sequence++ );
    else if ( client->loopback )
        nc_endpoint_report_loopback( &client->base, "client" );
    nc_client_end_call( client );
}

NETCODE_API uint8_t * netcode_client_receive_packet( struct netcode_client_t * client, int * bytes,
                                                     uint64_t * sequence )
{
    NC_REQUIRE( client, bytes != NULL && !client->config.events, NULL );
    return nc_inbox_receive( &client->inbox, 0, bytes, sequence );
}

NETCODE_API void netcode_client_free_packet( struct netcode_client_t * client, void * packet )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    int is_its_own = packet == NULL || nc_endpoint_free_packet( client->inbox.pool, packet );
    netcode_assert( is_its_own );
    if ( !is_its_own )
        nc_log_refuse( &client->base.log, __func__, "a packet of this client, freed once" );
}

NETCODE_API int netcode_client_state( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, NETCODE_CLIENT_STATE_DISCONNECTED );
    return client->state;
}

NETCODE_API int netcode_client_index( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, -1 );
    return client->state == NC_STATE( CONNECTED ) ? client->client_index : -1;
}

NETCODE_API int netcode_client_max_clients( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, 0 );
    return client->max_clients;
}

NETCODE_API uint16_t netcode_client_get_port( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, 0 );
    return client->address.port;
}

NETCODE_API struct netcode_address_t * netcode_client_server_address( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, NULL );
    return &client->server_address;
}

NETCODE_API void netcode_client_process_packet( struct netcode_client_t * client, struct netcode_address_t * from,
                                                uint8_t * data, int bytes )
{
    NC_REQUIRE( client, from != NULL && data != NULL && bytes >= 0, NC_NOTHING );
    struct netcode_datagram_t datagram = { *from, data, bytes, bytes, NETCODE_DATAGRAM_OK, 0 };
    nc_received_t received;
    nc_received_init( &received, &datagram, NC_NONE );
    nc_client_begin_call( client );
    nc_client_process( client, &received );
    nc_client_end_call( client );
}

NETCODE_API int netcode_client_connect_loopback( struct netcode_client_t * client, int client_index, int max_clients )
{
    NC_REQUIRE( client, client_index >= 0 && client_index < max_clients, NETCODE_ERROR );
    nc_client_begin_call( client );
    int refused = client->state > 0 || client->base.destroy_deferred || !nc_inbox_can_open( &client->inbox, 0 );
    if ( refused ) {
        NC_LOG( &client->base.log, ERROR, "client can not connect by loopback: %s",
                client->state > 0               ? "it is connected or connecting"
                : client->base.destroy_deferred ? "it is being destroyed"
                                                : "events of earlier connections are unread" );
    } else {
        client->session++;
        client->loopback = 1;
        client->client_index = client_index;
        client->max_clients = max_clients;
        nc_client_enter( client, NC_STATE( CONNECTED ) );
    }
    nc_client_end_call( client );
    return refused ? NETCODE_ERROR : NETCODE_OK;
}

NETCODE_API void netcode_client_disconnect_loopback( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    if ( client->loopback )
        netcode_client_disconnect( client );
}

NETCODE_API int netcode_client_loopback( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, 0 );
    return client->loopback;
}

NETCODE_API void netcode_client_process_loopback_packet( struct netcode_client_t * client, const uint8_t * data,
                                                         int bytes, uint64_t sequence )
{
    NC_REQUIRE( client, data != NULL && bytes >= 1 && bytes <= NETCODE_MAX_PACKET_SIZE, NC_NOTHING );
    nc_client_begin_call( client );
    if ( client->loopback ) {
        nc_buffer_t what = { client->session, 0, sequence, 0, (uint32_t) bytes };
        int reason = nc_inbox_copy( &client->inbox, what, data );
        if ( reason == NETCODE_DROP_NONE )
            client->base.counters.packets_received[NETCODE_PACKET_PAYLOAD]++;
        else
            nc_client_drop( client, reason, &client->address, bytes );
    }
    nc_client_end_call( client );
}

NETCODE_API int netcode_client_next_event( struct netcode_client_t * client, struct netcode_event_t * event )
{
    NC_REQUIRE( client, event != NULL && client->config.events, 0 );
    memset( event, 0, sizeof( *event ) );
    if ( !nc_inbox_next_event( &client->inbox, event ) )
        return 0;
    event->client_index = client->client_index; /* to its inbox it is always number 0 */
    return 1;
}

NETCODE_API int netcode_client_rebind( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, 0 );
    nc_client_begin_call( client );
    int done = nc_client_rebind( client );
    nc_client_end_call( client );
    return done;
}

NETCODE_API void netcode_client_flush( struct netcode_client_t * client )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    nc_client_begin_call( client );
    nc_outbox_flush( &client->base.outbox );
    nc_client_end_call( client );
}

NETCODE_API void netcode_client_wait( struct netcode_client_t * client, double seconds )
{
    NC_CHECK( client != NULL, NC_NOTHING );
    if ( !( seconds > 0.0 ) || client->base.backlog )
        return;
    double next = client->last_send_time + NC_SEND_INTERVAL - client->base.clock.now;
    double probe = client->probe.times[0] + nc_seconds( NC_PROBE_MS ) - client->base.clock.now;
    if ( client->state == NC_STATE( CONNECTED ) && probe < next )
        next = probe;
    double ask = nc_client_next_time( client ) - client->base.clock.now;
    if ( ask < next )
        next = ask;
    if ( client->state > 0 && !client->loopback && next < seconds )
        seconds = next;
    if ( seconds <= 0.0 )
        return;

    nc_client_begin_call( client );
    nc_socket_wait( &client->base.socket, seconds );
    nc_client_end_call( client );
}

NETCODE_API void netcode_client_stats( struct netcode_client_t * client, struct netcode_client_stats_t * stats )
{
    NC_REQUIRE( client, stats != NULL, NC_NOTHING );
    memset( stats, 0, sizeof( *stats ) );
    nc_client_begin_call( client );
    NC_ENDPOINT_STATS( stats, &client->base, &client->inbox );
    stats->connects = client->connects;
    stats->disconnects = client->disconnects;
    stats->rebinds = client->rebinds;
    NC_ENDPOINT_PATH_STATS( stats, client );
    nc_client_end_call( client );
}

/* One sentence for the player about the server that the client tried last. */
static const char * nc_client_diagnosis( const struct netcode_client_t * client )
{
    const nc_client_attempt_t * attempt = &client->attempts[client->server_index];
    switch ( client->state ) {
    case NC_STATE( CONNECTED ): return "Connected.";
    case NC_STATE( INVALID_CONNECT_TOKEN ):
        return client->token_was_used ? "This client was connected with this token before: it needs a new token."
                                      : "The connect token is damaged, or is for another version of the protocol.";
    case NC_STATE( CONNECT_TOKEN_EXPIRED ):
        return "The connect token expired before a server let the client in: it needs a new token.";
    case NC_STATE( CONNECTION_DENIED ): return "The server is full, or does not admit this player.";
    case NC_STATE( CONNECTION_TIMED_OUT ): return "The connection was lost: nothing came from the server any more.";
    case NC_STATE( CONNECTION_RESPONSE_TIMED_OUT ):
        return "The server answered at first, then fell silent: packets may be lost, or the token was used meanwhile.";
    case NC_STATE( DISCONNECTED ):
        return client->session ? "Disconnected." : "Not connected: netcode_client_connect was not called.";
    case NC_STATE( SENDING_CONNECTION_RESPONSE ):
        return "The server has answered; waiting for it to let the client in.";
    default: break;
    }

    if ( attempt->unsendable )
        return "The system refuses to send to the server: is the network up, and has this client an address of the "
               "server's family?";
    if ( attempt->report.last_error )
        return "The network says that the server can not be reached: is it running, and is its port open?";
    if ( client->state == NC_STATE( SENDING_CONNECTION_REQUEST ) )
        return "Asking the server; no answer yet.";
    return "The server never answered: it is down, a firewall is in between, or it refuses the token (its log says "
           "why).";
}

/* Does the client wait for the server's packets, or did it end because none were accepted? */
static int nc_client_depends_on_server( const struct netcode_client_t * client )
{
    return ( client->state > NC_STATE( DISCONNECTED ) && client->state < NC_STATE( CONNECTED ) ) ||
           ( client->state >= NC_STATE( CONNECTION_TIMED_OUT ) && client->state < NC_STATE( CONNECTION_DENIED ) );
}

NETCODE_API void netcode_client_report( struct netcode_client_t * client, struct netcode_client_report_t * report )
{
    NC_REQUIRE( client, report != NULL, NC_NOTHING );
    memset( report, 0, sizeof( *report ) );
    report->state = client->state;
    report->num_servers = client->token.route.num_addresses;
    report->server_index = client->server_index;

    for ( int i = 0; i < report->num_servers; i++ ) {
        const nc_client_attempt_t * attempt = &client->attempts[i];
        struct netcode_client_report_server_t * server = &report->servers[i];

        *server = attempt->report;
        server->address = client->token.route.addresses[i];
        if ( !attempt->ended && i < client->asked )
            server->seconds_waited = client->base.clock.now - attempt->begin_time;
    }

    double seconds = nc_client_seconds_left( client );
    report->token_seconds_left = seconds > 0.0 ? seconds : 0.0;

    report->refused = client->refused;
    report->refused_as = client->refused ? client->refused_as : (int) NETCODE_DROP_NONE;

    if ( client->refused && nc_client_depends_on_server( client ) )
        snprintf( report->text, sizeof( report->text ),
                  "The server's packets were refused (%lu, the last one as %s): %s.", (unsigned long) client->refused,
                  netcode_drop_reason_name( client->refused_as ), netcode_drop_reason_text( client->refused_as ) );
    else
        snprintf( report->text, sizeof( report->text ), "%s", nc_client_diagnosis( client ) );
}

/* ================================================================================================================
    ROOM 14: HANDSHAKE
    Which clients are accepted? Those with a valid, unused token that receive packets at their source address.
    Uses: platform, bytes, crypto, address, token, packet, containers, queues, endpoint.
    Invariant: a token connects once; what is stored for clients without a slot is limited and expires. This room knows
    no slots: the server has them, and calls it.
    Standard: Processing Connection Requests; Processing Connection Response Packets

      a request        makes a pending handshake    gets a challenge as reply     ends 10 s after the last reply
      its response     makes an unconfirmed slot    gets a keep-alive as reply    ends after the timeout, at most 60 s
      a later packet   confirms the slot                                          ends by disconnect, silence, takeover
   ================================================================================================================ */

/* ---- used: the connect tokens that have connected. Decision 4 ----
A record is not forgotten when the unix clock passes its expiry: that clock may be wrong, and step back. It is forgotten
when its entry is needed: the earliest-expiring one of a client id that has its maximum, else of all. Tokens that expire
no later than a forgotten one are refused, because they may be it: nc_used_earliest_if_full, refused_up_to. */

typedef struct {
    uint64_t expire_timestamp;
    uint64_t client_id;
    uint8_t tag[NC_TOKEN_TAG_BYTES];
} nc_used_record_t;

/*  An entry of the heap of expiring records. The timestamp is a copy, so that sifting reads only the heap; it is too
    early after a later token of the same client id has replaced the record, until nc_used_earliest corrects it. */
typedef struct {
    uint64_t expire_timestamp;
    uint32_t record;
} nc_used_expiry_t;

typedef struct {
    nc_table_t table;           /* by the tag */
    nc_table_t by_id;           /* the expiring ones */
    nc_used_record_t * records; /* the expiring ones; indices from expiring_capacity on are those of never_tags */
    uint8_t ( *never_tags )[NC_TOKEN_TAG_BYTES];
    nc_used_expiry_t * heap; /* four children each; the earliest on top */
    uint32_t expiring_capacity;
    uint32_t expiring_count;
    uint32_t never_capacity;
    uint32_t never_count;
    uint32_t never_oldest;
    /* records up to this timestamp may have been forgotten: tokens that expire by then may have been used */
    uint64_t refused_up_to;
    int evicts_oldest_never;
} nc_used_t;

static void nc_used_place( nc_used_t * used, nc_arena_t * arena, uint32_t capacity )
{
    used->never_capacity = capacity / 2;
    used->expiring_capacity = capacity - used->never_capacity;
    nc_table_place( &used->table, arena, capacity, 2 * capacity );
    nc_table_place( &used->by_id, arena, used->expiring_capacity, used->expiring_capacity / 4 );
    used->records = (nc_used_record_t *) nc_arena_take( arena, used->expiring_capacity, sizeof( nc_used_record_t ) );
    used->never_tags =
        (uint8_t( * )[NC_TOKEN_TAG_BYTES]) nc_arena_take( arena, used->never_capacity, NC_TOKEN_TAG_BYTES );
    used->heap = (nc_used_expiry_t *) nc_arena_take( arena, used->expiring_capacity, sizeof( nc_used_expiry_t ) );
}

/* Forgets the records, and keeps up to which expiry tokens are refused. */
static void nc_used_reset( nc_used_t * used )
{
    nc_table_reset( &used->table );
    nc_table_reset( &used->by_id );
    used->expiring_count = used->never_count = used->never_oldest = 0;
}

static const uint8_t * nc_used_tag( const nc_used_t * used, uint32_t index )
{
    return index < used->expiring_capacity ? used->records[index].tag
                                           : used->never_tags[index - used->expiring_capacity];
}

static int nc_used_seen( const nc_used_t * used, const uint8_t * tag, uint32_t hash )
{
    uint32_t index = nc_table_find( &used->table, hash );
    for ( ; index != NC_NONE; index = nc_table_find_next( &used->table, index ) )
        if ( memcmp( nc_used_tag( used, index ), tag, NC_TOKEN_TAG_BYTES ) == 0 )
            return 1;
    return 0;
}

/* Inserts an entry into the heap, from the top down; the function below does it from the end up. */
static void nc_used_sift_down( nc_used_t * used, nc_used_expiry_t entry )
{
    uint32_t position = 0;
    for ( ;; ) {
        uint32_t first = 4 * position + 1, earliest = first;
        if ( first >= used->expiring_count )
            break;
        for ( uint32_t child = first + 1; child < first + 4 && child < used->expiring_count; child++ )
            if ( used->heap[child].expire_timestamp < used->heap[earliest].expire_timestamp )
                earliest = child;

        if ( used->heap[earliest].expire_timestamp >= entry.expire_timestamp )
            break;
        used->heap[position] = used->heap[earliest];
        position = earliest;
    }
    used->heap[position] = entry;
}

static void nc_used_sift_up( nc_used_t * used, nc_used_expiry_t entry )
{
    uint32_t position = used->expiring_count - 1;
    for ( ; position && used->heap[( position - 1 ) / 4].expire_timestamp > entry.expire_timestamp;
          position = ( position - 1 ) / 4 )
        used->heap[position] = used->heap[( position - 1 ) / 4];
    used->heap[position] = entry;
}

/* Could a never-expiring token be remembered? */
static int nc_used_can_insert_never( const nc_used_t * used )
{
    return used->evicts_oldest_never || used->never_count < used->never_capacity;
}

static void nc_used_insert_never( nc_used_t * used, const nc_used_record_t * record, uint32_t hash )
{
    uint32_t place = ( used->never_oldest + used->never_count ) % used->never_capacity;
    if ( used->never_count == used->never_capacity ) {
        nc_table_remove( &used->table, used->expiring_capacity + place );
        used->never_oldest = ( used->never_oldest + 1 ) % used->never_capacity;
        used->never_count--;
    }
    used->never_count++;
    memcpy( used->never_tags[place], record->tag, NC_TOKEN_TAG_BYTES );
    nc_table_insert( &used->table, hash, used->expiring_capacity + place );
}

/*  The earliest-expiring record of this client id if it has its maximum, else NC_NONE. Tokens of this id that expire
    no later are refused, as their records may have been forgotten; other ids are not affected. */
static uint32_t nc_used_earliest_if_full( const nc_used_t * used, uint64_t client_id, uint32_t id_hash )
{
    uint32_t index = nc_table_find( &used->by_id, id_hash ), earliest = NC_NONE, count = 0;
    for ( ; index != NC_NONE; index = nc_table_find_next( &used->by_id, index ) ) {
        if ( used->records[index].client_id != client_id )
            continue;
        count++;
        if ( earliest == NC_NONE || used->records[index].expire_timestamp < used->records[earliest].expire_timestamp )
            earliest = index;
    }
    return count < NC_USED_PER_ID ? NC_NONE : earliest;
}

/* When does the earliest-expiring record expire? Brings the top of the heap up to date. */
static uint64_t nc_used_earliest( nc_used_t * used )
{
    nc_used_expiry_t top = used->heap[0];
    while ( used->records[top.record].expire_timestamp != top.expire_timestamp ) {
        top.expire_timestamp = used->records[top.record].expire_timestamp;
        nc_used_sift_down( used, top );
        top = used->heap[0];
    }
    return top.expire_timestamp;
}

static void nc_used_insert( nc_used_t * used, const nc_used_record_t * record, uint32_t hash, uint32_t id_hash )
{
    if ( record->expire_timestamp == UINT64_MAX ) {
        nc_used_insert_never( used, record, hash );
        return;
    }

    nc_used_expiry_t entry = { record->expire_timestamp, nc_used_earliest_if_full( used, record->client_id, id_hash ) };
    if ( entry.record != NC_NONE ) {
        if ( record->expire_timestamp <= used->records[entry.record].expire_timestamp )
            return;
        nc_table_remove( &used->table, entry.record );
        nc_table_remove( &used->by_id, entry.record );
    } else if ( used->expiring_count == used->expiring_capacity ) {
        /*  The earliest one is forgotten, which may be the new one: from now on tokens that expire by then are
            refused. */
        uint64_t earliest = nc_used_earliest( used );
        uint64_t forgotten = record->expire_timestamp <= earliest ? record->expire_timestamp : earliest;
        if ( forgotten > used->refused_up_to )
            used->refused_up_to = forgotten;
        if ( record->expire_timestamp <= earliest )
            return;

        entry.record = used->heap[0].record;
        nc_table_remove( &used->table, entry.record );
        nc_table_remove( &used->by_id, entry.record );
        nc_used_sift_down( used, entry );
    } else {
        entry.record = used->expiring_count++;
        nc_used_sift_up( used, entry );
    }

    used->records[entry.record] = *record;
    nc_table_insert( &used->table, hash, entry.record );
    nc_table_insert( &used->by_id, id_hash, entry.record );
}

/* Copies the records of another table, in its order. */
static void nc_used_adopt( nc_used_t * used, const nc_used_t * old )
{
    for ( uint32_t i = 0; i < old->expiring_count + old->never_count; i++ ) {
        uint32_t nth = i - old->expiring_count; /* of the never-expiring ones */
        uint32_t index = i < old->expiring_count
                             ? old->heap[i].record
                             : old->expiring_capacity + ( old->never_oldest + nth ) % old->never_capacity;

        nc_used_record_t record = { UINT64_MAX, 0, { 0 } };
        memcpy( record.tag, nc_used_tag( old, index ), NC_TOKEN_TAG_BYTES );
        if ( i < old->expiring_count )
            record = old->records[index];
        nc_used_insert( used, &record, old->table.entries[index].hash,
                        i < old->expiring_count ? old->by_id.entries[index].hash : 0 );
    }
}

/* How many packets of a client or handshake were opened in one update. Decision 6 */
typedef struct {
    uint16_t update; /* which one */
    uint8_t count;
    uint8_t mark; /* a handshake's: which private key its token has; a slot's: its client has flooded */
} nc_opened_t;

/* A handshake in progress, identified by source address and token. Decision 3 */
typedef struct {
    struct netcode_address_t address;
    int32_t timeout_seconds;
    uint64_t client_id;
    uint64_t expire_timestamp;
    uint64_t first_challenge; /* sequence of the first challenge issued to it; UINT64_MAX before */
    uint64_t created;         /* counts up from 1: the smaller is the older */
    double answer_time;       /* of the last request that got a reply, or NETCODE_ADMIT_LATER */
    uint32_t create_time;     /* in milliseconds, as the next two: see nc_handshake_milliseconds */
    uint32_t reply_limit;     /* replies to its requests, and denials, have used up their rate limit until then */
    uint32_t admit_limit;     /* calls of admit_callback, the same: copies of its request do not count */
    nc_opened_t opened;       /* of its packets */
    uint8_t tag[NC_TOKEN_TAG_BYTES];
    uint8_t client_to_server_key[NETCODE_KEY_BYTES];
    uint8_t server_to_client_key[NETCODE_KEY_BYTES];
} nc_pending_t;

/* The hashes by which a client or handshake is found; each is computed once for a datagram. */
typedef struct {
    uint32_t id;
    uint32_t tag; /* of the token */
    uint64_t address;
} nc_handshake_hashes_t;

/* A server's handshakes and used tokens. */
typedef struct {
    nc_endpoint_t * base; /* the server's, as the config and the wheel */
    const struct netcode_server_config_t * config;
    nc_wheel_t * wheel;
    uint32_t first_timer; /* the wheel's timer of the first entry */
    nc_pending_t * pending;
    uint32_t capacity; /* of `pending` */
    nc_table_t by_address;
    nc_table_t by_tag;
    nc_table_t by_id;
    nc_link_t * links;
    nc_list_t in_progress; /* in the order of their creation */
    nc_list_t unused;
    nc_used_t used;
    struct netcode_address_t addresses[2 + NETCODE_MAX_PUBLIC_ADDRESSES];
    struct netcode_address_t names[2 + NETCODE_MAX_PUBLIC_ADDRESSES]; /* those addresses, in the form of tokens */
    int address_count;
    int private_key_count;
    uint8_t private_keys[NETCODE_MAX_PRIVATE_KEYS][NETCODE_KEY_BYTES];
    uint8_t hash_key[NC_HASH_KEY_BYTES];
    uint8_t challenge_key[NETCODE_KEY_BYTES];
    uint64_t challenge_sequence; /* the next challenge's is this or up to 2^32 - 1 more: see nc_handshake_challenge */
    uint64_t earliest_expiry;    /* tokens that expire before it may be older than this start; 0: not checked */
    int token_units;             /* work units that this update may spend on connect tokens. Decision 6 */
    nc_log_limit_t wrong_server; /* limits its log lines: a client with such a token could fill the log */
    uint64_t created;            /* counts entries */
    struct netcode_server_stats_t * stats;
} nc_handshakes_t;

/* Allocates memory for `capacity` handshakes from a server's block; without a block it only measures. */
static void nc_handshake_place( nc_handshakes_t * handshakes, nc_arena_t * arena, uint32_t capacity,
                                uint32_t used_tokens )
{
    handshakes->capacity = capacity;
    handshakes->pending = (nc_pending_t *) nc_arena_take( arena, capacity, sizeof( nc_pending_t ) );
    nc_table_place( &handshakes->by_address, arena, capacity, capacity / 8 );
    nc_table_place( &handshakes->by_tag, arena, capacity, capacity / 8 );
    nc_table_place( &handshakes->by_id, arena, capacity, capacity / 8 );
    handshakes->links = (nc_link_t *) nc_arena_take( arena, capacity, sizeof( nc_link_t ) );
    nc_used_place( &handshakes->used, arena, used_tokens );
}

/* Resets for a start: no handshake is pending, and earlier challenges are invalid. The used tokens stay. */
static void nc_handshake_reset( nc_handshakes_t * handshakes )
{
    nc_table_reset( &handshakes->by_address );
    nc_table_reset( &handshakes->by_tag );
    nc_table_reset( &handshakes->by_id );
    nc_list_init( &handshakes->in_progress );
    nc_list_init( &handshakes->unused );
    for ( uint32_t i = 0; i < handshakes->capacity; i++ )
        nc_list_insert( &handshakes->unused, handshakes->links, i );
    nc_crypto_random( handshakes->challenge_key, sizeof( handshakes->challenge_key ) );
    handshakes->challenge_sequence = 0;
}

static uint64_t nc_handshake_address_hash( const nc_handshakes_t * handshakes,
                                           const struct netcode_address_t * address )
{
    return nc_address_hash( address, handshakes->hash_key );
}

static uint32_t nc_handshake_tag_hash( const nc_handshakes_t * handshakes, const uint8_t * tag )
{
    return (uint32_t) nc_crypto_hash( handshakes->hash_key, tag, NC_TOKEN_TAG_BYTES );
}

static uint32_t nc_handshake_id_hash( const nc_handshakes_t * handshakes, uint64_t client_id )
{
    uint8_t bytes[8];
    nc_store_u64( bytes, client_id );
    return (uint32_t) nc_crypto_hash( handshakes->hash_key, bytes, sizeof( bytes ) );
}

/* ---- handshakes in progress ---- */

/* How many handshakes one key may have, and which of them is evicted for a new one. */
typedef struct {
    const nc_table_t * table;
    uint32_t hash;
    uint32_t limit;
    int by_expiry; /* evicts the earliest-expiring one, among equals the oldest; else the oldest */
} nc_handshake_limit_t;

static uint32_t nc_handshake_at( const nc_handshakes_t * handshakes, const struct netcode_address_t * address,
                                 uint64_t hash, uint32_t after )
{
    uint32_t index = after == NC_NONE ? nc_table_find( &handshakes->by_address, (uint32_t) hash )
                                      : nc_table_find_next( &handshakes->by_address, after );
    while ( index != NC_NONE && !nc_address_same( &handshakes->pending[index].address, address ) )
        index = nc_table_find_next( &handshakes->by_address, index );
    return index;
}

static uint32_t nc_handshake_find( const nc_handshakes_t * handshakes, const nc_received_t * received )
{
    uint32_t index = nc_table_find( &handshakes->by_tag, (uint32_t) received->hash );
    while ( index != NC_NONE &&
            !( memcmp( handshakes->pending[index].tag, received->as.request.tag, NC_TOKEN_TAG_BYTES ) == 0 &&
               nc_address_same( &handshakes->pending[index].address, received->from ) ) )
        index = nc_table_find_next( &handshakes->by_tag, index );
    return index;
}

static void nc_handshake_remove( nc_handshakes_t * handshakes, uint32_t index )
{
    nc_pending_t * pending = &handshakes->pending[index];
    nc_table_remove( &handshakes->by_address, index );
    nc_table_remove( &handshakes->by_tag, index );
    nc_table_remove( &handshakes->by_id, index );
    nc_wheel_remove( handshakes->wheel, handshakes->first_timer + index );
    nc_list_remove( &handshakes->in_progress, handshakes->links, index );
    nc_list_insert( &handshakes->unused, handshakes->links, index );
    nc_crypto_wipe( pending, sizeof( *pending ) );
}

static void nc_handshake_evict( nc_handshakes_t * handshakes, uint32_t index )
{
    handshakes->stats->handshakes_evicted++;
    nc_handshake_remove( handshakes, index );
}

/* When does this handshake end? Decision 3 */
static double nc_handshake_deadline( const nc_handshakes_t * handshakes, const nc_pending_t * pending )
{
    double patience = NC_HANDSHAKE_SECONDS;
    if ( pending->timeout_seconds >= 1 && pending->timeout_seconds < NC_HANDSHAKE_SECONDS )
        patience = pending->timeout_seconds;
    if ( handshakes->base->backlog )
        patience *= 2.0;
    return pending->answer_time + patience;
}

static int nc_handshake_same_key( const nc_handshakes_t * handshakes, const nc_pending_t * a, const nc_pending_t * b,
                                  const nc_table_t * table )
{
    if ( table == &handshakes->by_address )
        return nc_address_same( &a->address, &b->address );
    if ( table == &handshakes->by_tag )
        return memcmp( a->tag, b->tag, NC_TOKEN_TAG_BYTES ) == 0;
    return a->client_id == b->client_id;
}

/* The entry that this limit evicts for `candidate`, or NC_NONE while the limit is not reached. */
static uint32_t nc_handshake_find_victim( const nc_handshakes_t * handshakes, const nc_pending_t * candidate,
                                          const nc_handshake_limit_t * limit )
{
    uint32_t index = nc_table_find( limit->table, limit->hash ), victim = NC_NONE, count = 0;
    for ( ; index != NC_NONE; index = nc_table_find_next( limit->table, index ) ) {
        const nc_pending_t * entry = &handshakes->pending[index];
        const nc_pending_t * worst = victim == NC_NONE ? NULL : &handshakes->pending[victim];
        if ( !nc_handshake_same_key( handshakes, entry, candidate, limit->table ) )
            continue;

        count++;
        if ( !worst || ( limit->by_expiry && entry->expire_timestamp != worst->expire_timestamp
                             ? entry->expire_timestamp < worst->expire_timestamp
                             : entry->created < worst->created ) )
            victim = index;
    }
    return count >= limit->limit ? victim : NC_NONE;
}

/* A handshake's times in 32 bits: they are compared within days, so they may wrap around. */
static uint32_t nc_handshake_milliseconds( const nc_handshakes_t * handshakes )
{
    return (uint32_t) (uint64_t) ( handshakes->base->clock.now * 1000.0 );
}

/* Inserts a handshake; the limits of decision 3 may evict others. Returns a drop reason. */
static int nc_handshake_insert( nc_handshakes_t * handshakes, const nc_pending_t * candidate,
                                const nc_handshake_hashes_t * hashes, uint32_t * result )
{
    nc_handshake_limit_t limits[] = { { &handshakes->by_id, hashes->id, NC_HANDSHAKES_PER_ID, 1 },
                                      { &handshakes->by_tag, hashes->tag, NC_ADDRESSES_PER_TOKEN, 0 },
                                      { &handshakes->by_address, (uint32_t) hashes->address, NC_TOKENS_PER_ADDRESS,
                                        0 } };
    uint32_t victim;

    for ( uint32_t i = 0; i < 3; i++ ) {
        victim = nc_handshake_find_victim( handshakes, candidate, &limits[i] );
        if ( victim == NC_NONE )
            continue;
        if ( limits[i].by_expiry && candidate->expire_timestamp < handshakes->pending[victim].expire_timestamp )
            return NETCODE_DROP_TOKEN_OUTLIVED;

        /* A handshake gets time for its response, however many copies of its request arrive in it. */
        if ( memcmp( candidate->tag, handshakes->pending[victim].tag, NC_TOKEN_TAG_BYTES ) == 0 &&
             nc_handshake_milliseconds( handshakes ) - handshakes->pending[victim].create_time < NC_PENDING_PROTECTED )
            return NETCODE_DROP_REQUEST_TOO_SOON;
        nc_handshake_evict( handshakes, victim );
    }

    if ( handshakes->unused.count == 0 )
        nc_handshake_evict( handshakes, handshakes->in_progress.head );
    uint32_t index = handshakes->unused.tail; /* the last one freed: it is still in the processor's cache */
    nc_list_remove( &handshakes->unused, handshakes->links, index );
    nc_list_insert( &handshakes->in_progress, handshakes->links, index );

    handshakes->pending[index] = *candidate;
    handshakes->pending[index].created = ++handshakes->created;
    nc_table_insert( &handshakes->by_id, hashes->id, index );
    nc_table_insert( &handshakes->by_tag, hashes->tag, index );
    nc_table_insert( &handshakes->by_address, (uint32_t) hashes->address, index );
    nc_wheel_insert( handshakes->wheel, handshakes->first_timer + index,
                     nc_handshake_deadline( handshakes, candidate ) );

    handshakes->stats->handshakes++;
    *result = index;
    return NETCODE_DROP_NONE;
}

/* ---- rate limits ---- */

/* Does a rate limit allow another one? 4 at once, then 10 a second. Decision 7 */
static int nc_handshake_may_answer( const nc_handshakes_t * handshakes, uint32_t used_until )
{
    return (int32_t) ( used_until - nc_handshake_milliseconds( handshakes ) ) <=
           ( NC_ANSWER_BURST - 1 ) * NC_ANSWER_MILLISECONDS;
}

static void nc_handshake_charge( const nc_handshakes_t * handshakes, uint32_t * used_until )
{
    uint32_t now = nc_handshake_milliseconds( handshakes );
    *used_until = ( (int32_t) ( *used_until - now ) > 0 ? *used_until : now ) + NC_ANSWER_MILLISECONDS;
}

/* Counts one more packet opened in this update, unless there were `most` already. */
static inline int nc_handshake_count_opened( const nc_handshakes_t * handshakes, nc_opened_t * opened, int most )
{
    if ( opened->update != handshakes->base->update ) {
        opened->update = handshakes->base->update;
        opened->count = 0;
    }
    if ( opened->count >= most )
        return 0;
    opened->count++;
    return 1;
}

/* Packets that the application passes to netcode_server_process_packet are not limited. */
static inline int nc_handshake_is_limited( const nc_received_t * received )
{
    return received->buffer != NC_NONE;
}

/*  ---- replies to clients without a slot: each smaller than the packet that it replies to. Decision 8 ----
Their sequences are 63 random bits in the upper half, drawn for each reply: so two copies of a server that was forked
after its start do not use one nonce twice. Decision 1 */

static void nc_handshake_answer( nc_handshakes_t * handshakes, const nc_pending_t * pending, int type,
                                 const uint8_t * body, uint64_t random )
{
    uint64_t created = pending->created;
    uint8_t spare[NC_OUT_STRIDE];
    uint8_t * out = nc_outbox_begin( &handshakes->base->outbox, spare );
    struct netcode_address_t to = pending->address;
    if ( pending->created != created )
        return;
    nc_packet_t packet = { type, 0, body ? NC_PACKET_LARGE_BODY : 0, (uint64_t) 1 << 63 | random };
    nc_packet_context_t context = { pending->server_to_client_key, handshakes->config->protocol_id };
    nc_outbox_end( &handshakes->base->outbox, out, &to, type, nc_packet_seal( out, &packet, body, &context ) );
}

/* The unused bytes of a challenge: a hash of the address, and the token's tag. Decision 2 */
static void nc_handshake_bind_challenge( uint8_t bind[NC_CHALLENGE_BIND_BYTES], const nc_pending_t * pending,
                                         uint64_t address_hash )
{
    nc_store_u64( bind, address_hash );
    memcpy( bind + 8, pending->tag, NC_CHALLENGE_BIND_BYTES - 8 );
}

/*  Challenges' sequences grow by random steps, so that copies of a server use different nonces. One random number
    serves for both sequences: their keys differ. */
static void nc_handshake_challenge( nc_handshakes_t * handshakes, nc_pending_t * pending, uint64_t address_hash,
                                    const uint8_t * user_data )
{
    nc_challenge_t challenge;
    uint8_t body[NC_PACKET_LARGE_BODY];
    uint64_t random = nc_crypto_random_u64();
    uint64_t sequence = handshakes->challenge_sequence + ( random & UINT32_MAX );
    handshakes->challenge_sequence = sequence + 1;
    if ( pending->first_challenge == UINT64_MAX )
        pending->first_challenge = sequence;

    challenge.client_id = pending->client_id;
    memcpy( challenge.user_data, user_data, NETCODE_USER_DATA_BYTES );
    nc_handshake_bind_challenge( challenge.bind, pending, address_hash );
    nc_store_u64( body, sequence );
    nc_challenge_seal( body + 8, &challenge, sequence, handshakes->challenge_key );
    nc_handshake_answer( handshakes, pending, NETCODE_PACKET_CHALLENGE, body, random );
    nc_crypto_wipe( &challenge, sizeof( challenge ) );
}

/* Denies a client with a valid token, if its rate limit allows a reply. */
static void nc_handshake_deny( nc_handshakes_t * handshakes, nc_pending_t * pending )
{
    if ( !nc_handshake_may_answer( handshakes, pending->reply_limit ) )
        return;
    nc_handshake_charge( handshakes, &pending->reply_limit );
    nc_handshake_answer( handshakes, pending, NETCODE_PACKET_DENIED, NULL, nc_crypto_random_u64() );
}

/* ---- requests. Standard: Processing Connection Requests ---- */

/* A request while it is processed. */
typedef struct {
    nc_request_t request;
    nc_handshake_hashes_t hashes;
    uint32_t pending; /* its entry, or NC_NONE */
    uint32_t key_index;
    nc_private_token_t token;
    nc_pending_t candidate; /* its entry, if it gets one */
} nc_handshake_request_t;

/* The checks that need no cryptography except a hash. Returns a drop reason. */
static int nc_handshake_screen_request( nc_handshakes_t * handshakes, nc_handshake_request_t * it,
                                        const nc_received_t * received )
{
    nc_used_t * used = &handshakes->used;
    it->request = received->as.request;
    it->hashes.tag = (uint32_t) received->hash;

    uint64_t unix_now = handshakes->config->unix_time( handshakes->config->callback_context );
    if ( it->request.expire_timestamp <= unix_now )
        return NETCODE_DROP_TOKEN_EXPIRED;
    if ( it->request.expire_timestamp < handshakes->earliest_expiry )
        return NETCODE_DROP_TOKEN_MAYBE_USED;
    if ( it->request.expire_timestamp <= used->refused_up_to )
        return NETCODE_DROP_TOKEN_REFUSED_UP_TO;
    if ( nc_used_seen( used, it->request.tag, it->hashes.tag ) )
        return NETCODE_DROP_TOKEN_CONSUMED;

    it->pending = nc_handshake_find( handshakes, received );
    nc_pending_t * pending = it->pending == NC_NONE ? NULL : &handshakes->pending[it->pending];
    if ( pending && !nc_handshake_may_answer( handshakes, pending->reply_limit ) )
        return NETCODE_DROP_REQUEST_TOO_SOON;
    if ( handshakes->token_units > 0 || !nc_handshake_is_limited( received ) )
        return NETCODE_DROP_NONE;

    /* A flood of new tokens has used the units up. The repeated requests of a handshake go on, forged copies or not. */
    return pending && nc_handshake_count_opened( handshakes, &pending->opened, NC_ANSWER_BURST )
               ? NETCODE_DROP_NONE
               : NETCODE_DROP_REQUEST_NOT_OPENED;
}

/* Opens the token with one of the private keys. Returns a drop reason. */
static int nc_handshake_open_token( nc_handshakes_t * handshakes, nc_handshake_request_t * it,
                                    nc_received_t * received )
{
    uint8_t plain[NC_PRIVATE_TOKEN_BYTES];
    nc_token_seal_t how = { handshakes->config->protocol_id, it->request.expire_timestamp, it->request.nonce, NULL };
    int i, opened = 0;

    for ( i = 0; i < handshakes->private_key_count && !opened; i++ ) {
        how.key = handshakes->private_keys[i];
        handshakes->token_units -= nc_handshake_is_limited( received ) ? NC_COST_REQUEST : 0;
        opened = nc_token_open_private( plain, it->request.sealed_private, &how );
        it->key_index = (uint32_t) i;
    }
    if ( !opened )
        return NETCODE_DROP_TOKEN_NOT_AUTHENTIC; /* libsodium has written nothing to `plain` */

    int valid = nc_token_read_private( plain, &it->token );
    nc_crypto_wipe( plain, sizeof( plain ) );
    if ( !valid )
        nc_crypto_wipe( &it->token, sizeof( it->token ) );
    return valid ? NETCODE_DROP_NONE : NETCODE_DROP_TOKEN_MALFORMED;
}

static int nc_handshake_is_named( const nc_handshakes_t * handshakes, const nc_route_t * route )
{
    for ( int i = 0; i < route->num_addresses; i++ )
        for ( int k = 0; k < handshakes->address_count; k++ )
            if ( nc_address_same( &route->addresses[i], &handshakes->names[k] ) )
                return 1;
    return 0;
}

static void nc_handshake_log_wrong_server( nc_handshakes_t * handshakes, const nc_private_token_t * token )
{
    char theirs[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    char ours[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint64_t suppressed;
    if ( !nc_log_allows( &handshakes->wrong_server, handshakes->base->clock.now, &suppressed ) )
        return;
    NC_LOG( &handshakes->base->log, INFO, "server: the token of client %llu is for %s%s, and this server is %s%s",
            (unsigned long long) token->client_id, netcode_address_to_string( &token->route.addresses[0], theirs ),
            token->route.num_addresses > 1 ? " and others" : "",
            netcode_address_to_string( &handshakes->addresses[0], ours ),
            handshakes->address_count > 1 ? " (and has other names)" : "" );
}

/* Can this token be remembered as used? Returns a drop reason. */
static int nc_handshake_check_records( const nc_handshakes_t * handshakes, const nc_pending_t * candidate,
                                       uint32_t id_hash )
{
    const nc_used_t * used = &handshakes->used;
    uint32_t crowded = nc_used_earliest_if_full( used, candidate->client_id, id_hash );
    if ( candidate->expire_timestamp == UINT64_MAX && !nc_used_can_insert_never( used ) )
        return NETCODE_DROP_TOKEN_NO_RECORD_FREE;
    if ( candidate->expire_timestamp <= used->refused_up_to ||
         ( crowded != NC_NONE && candidate->expire_timestamp <= used->records[crowded].expire_timestamp ) )
        return NETCODE_DROP_TOKEN_REFUSED_UP_TO;
    return NETCODE_DROP_NONE;
}

static void nc_handshake_describe( const nc_handshakes_t * handshakes, nc_handshake_request_t * it,
                                   const struct netcode_address_t * from )
{
    nc_pending_t * candidate = &it->candidate;
    nc_crypto_wipe( candidate, sizeof( *candidate ) );
    candidate->address = nc_address_canonical( from );
    candidate->timeout_seconds = it->token.route.timeout_seconds;
    candidate->client_id = it->token.client_id;
    candidate->expire_timestamp = it->request.expire_timestamp;
    candidate->first_challenge = UINT64_MAX;
    candidate->answer_time = handshakes->base->clock.now;
    candidate->create_time = candidate->reply_limit = candidate->admit_limit = nc_handshake_milliseconds( handshakes );
    candidate->opened.mark = (uint8_t) it->key_index;

    memcpy( candidate->tag, it->request.tag, NC_TOKEN_TAG_BYTES );
    memcpy( candidate->client_to_server_key, it->token.route.client_to_server_key, NETCODE_KEY_BYTES );
    memcpy( candidate->server_to_client_key, it->token.route.server_to_client_key, NETCODE_KEY_BYTES );

    it->hashes.id = nc_handshake_id_hash( handshakes, candidate->client_id );
    it->hashes.address = nc_handshake_address_hash( handshakes, &candidate->address );
}

/*  Processes a request up to the checks of slots. Returns a drop reason; if none, `it` holds keys, which the caller
    wipes. */
static int nc_handshake_read_request( nc_handshakes_t * handshakes, nc_handshake_request_t * it,
                                      nc_received_t * received )
{
    received->cost = NC_COST_LARGE;
    int reason = nc_handshake_screen_request( handshakes, it, received );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    reason = nc_handshake_open_token( handshakes, it, received );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    if ( nc_handshake_is_named( handshakes, &it->token.route ) ) {
        nc_handshake_describe( handshakes, it, received->from );
        return NETCODE_DROP_NONE;
    }
    nc_handshake_log_wrong_server( handshakes, &it->token );
    nc_crypto_wipe( &it->token, sizeof( it->token ) );
    return NETCODE_DROP_TOKEN_FOR_ANOTHER_SERVER;
}

/* Replies to a request with a challenge, or, if the server is full, with a denial. Returns a drop reason. */
static int nc_handshake_answer_request( nc_handshakes_t * handshakes, nc_handshake_request_t * it, int is_full )
{
    int reason = nc_handshake_check_records( handshakes, &it->candidate, it->hashes.id );
    if ( reason == NETCODE_DROP_NONE && it->pending == NC_NONE )
        reason = nc_handshake_insert( handshakes, &it->candidate, &it->hashes, &it->pending );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    nc_pending_t * pending = &handshakes->pending[it->pending];
    nc_handshake_charge( handshakes, &pending->reply_limit );
    pending->answer_time = handshakes->base->clock.now;
    if ( is_full ) {
        nc_handshake_answer( handshakes, pending, NETCODE_PACKET_DENIED, NULL, nc_crypto_random_u64() );
        return NETCODE_DROP_SERVER_FULL;
    }

    nc_handshake_challenge( handshakes, pending, it->hashes.address, it->token.user_data );
    handshakes->base->counters.packets_received[NETCODE_PACKET_REQUEST]++;
    return NETCODE_DROP_NONE;
}

/* ---- responses. Standard: Processing Connection Response Packets ---- */

/* A response while it is processed. */
typedef struct {
    nc_pending_t pending; /* a copy: callbacks may end the entry */
    uint32_t entry;
    uint32_t takes_over; /* the slot of another session of the same client, or NC_NONE */
    nc_handshake_hashes_t hashes;
    nc_challenge_t challenge;
} nc_handshake_response_t;

/*  Finds the handshake at this address whose key opens the response, and writes its plain text to `body`. Forged
    responses can use up a handshake's tries for this update, but no more. */
static uint32_t nc_handshake_open_response( nc_handshakes_t * handshakes, nc_received_t * received,
                                            uint8_t body[NC_PACKET_LARGE_BODY] )
{
    nc_packet_context_t context;
    uint32_t index = nc_handshake_at( handshakes, received->from, received->hash, NC_NONE );
    context.protocol_id = handshakes->config->protocol_id;
    for ( ; index != NC_NONE; index = nc_handshake_at( handshakes, received->from, received->hash, index ) ) {
        nc_pending_t * pending = &handshakes->pending[index];
        if ( nc_handshake_is_limited( received ) &&
             !nc_handshake_count_opened( handshakes, &pending->opened, NC_RESPONSES_PER_UPDATE ) )
            continue;

        context.key = pending->client_to_server_key;
        received->cost += NC_COST_OPEN;
        if ( nc_packet_open( &received->as.packet, received->data, body, &context ) )
            return index;
    }
    return NC_NONE;
}

/* Was this challenge issued to this handshake? Decision 2. Returns a drop reason. */
static int nc_handshake_check_challenge( nc_handshakes_t * handshakes, nc_handshake_response_t * it,
                                         uint8_t body[NC_PACKET_LARGE_BODY] )
{
    uint8_t bind[NC_CHALLENGE_BIND_BYTES];
    uint64_t sequence = nc_load_u64( body );
    if ( sequence < it->pending.first_challenge || sequence >= handshakes->challenge_sequence )
        return NETCODE_DROP_CHALLENGE_NOT_ISSUED;
    if ( !nc_challenge_open( body + 8, &it->challenge, sequence, handshakes->challenge_key ) )
        return NETCODE_DROP_CHALLENGE_NOT_AUTHENTIC;

    nc_handshake_bind_challenge( bind, &it->pending, it->hashes.address );
    if ( it->challenge.client_id != it->pending.client_id ||
         !nc_crypto_equal( bind, it->challenge.bind, sizeof( bind ) ) )
        return NETCODE_DROP_CHALLENGE_FOR_ANOTHER;
    return NETCODE_DROP_NONE;
}

/*  Processes a response from an address with pending handshakes, up to the checks of slots. Returns a drop reason; if
    none, `it` holds keys, which the caller wipes. */
static int nc_handshake_read_response( nc_handshakes_t * handshakes, nc_handshake_response_t * it,
                                       nc_received_t * received )
{
    uint8_t body[NC_PACKET_LARGE_BODY];
    it->entry = nc_handshake_open_response( handshakes, received, body );
    if ( it->entry == NC_NONE )
        return NETCODE_DROP_AUTHENTICATION_FAILED;

    it->pending = handshakes->pending[it->entry];
    it->hashes.id = handshakes->by_id.entries[it->entry].hash;
    it->hashes.tag = handshakes->by_tag.entries[it->entry].hash;
    it->hashes.address = received->hash;
    received->cost += NC_COST_SLOT;
    int reason = nc_handshake_check_challenge( handshakes, it, body );
    nc_crypto_wipe( body, sizeof( body ) );
    if ( reason != NETCODE_DROP_NONE )
        nc_crypto_wipe( it, sizeof( *it ) );
    return reason;
}

/* Remembers a token that connects, and ends its other handshakes. Decision 4 */
static void nc_handshake_consume_token( nc_handshakes_t * handshakes, const nc_handshake_response_t * it )
{
    nc_used_record_t record;
    uint32_t index = nc_table_find( &handshakes->by_tag, it->hashes.tag );
    record.expire_timestamp = it->pending.expire_timestamp;
    record.client_id = it->pending.client_id;
    memcpy( record.tag, it->pending.tag, NC_TOKEN_TAG_BYTES );
    nc_used_insert( &handshakes->used, &record, it->hashes.tag, it->hashes.id );

    while ( index != NC_NONE ) {
        uint32_t next = nc_table_find_next( &handshakes->by_tag, index );
        if ( memcmp( handshakes->pending[index].tag, record.tag, NC_TOKEN_TAG_BYTES ) == 0 )
            nc_handshake_remove( handshakes, index );
        index = next;
    }
}

/* ---- keys and timers ---- */

/* With a key of zeros, which is no secret, anyone can make tokens. Tests may use one, so it is accepted. */
static void nc_handshake_warn_of_zero_key( const nc_handshakes_t * handshakes )
{
    static const uint8_t zeros[NETCODE_KEY_BYTES] = { 0 };
    int found = 0;
    for ( int i = 0; i < handshakes->private_key_count; i++ )
        found |= nc_crypto_equal( handshakes->private_keys[i], zeros, NETCODE_KEY_BYTES );
    if ( found )
        NC_LOG( &handshakes->base->log, ERROR,
                "server: a private key is all zeros: was it ever set? Anyone can make tokens with that key" );
}

/* Ends handshakes under a removed key; the others get their key's new index. */
static void nc_handshake_apply_keys( nc_handshakes_t * handshakes, const uint8_t * keys, int count )
{
    uint32_t index = handshakes->in_progress.head, next;
    for ( ; index != NC_NONE; index = next ) {
        nc_pending_t * pending = &handshakes->pending[index];
        int i = 0;
        next = handshakes->links[index].next;
        while ( i < count && !nc_crypto_equal( handshakes->private_keys[pending->opened.mark],
                                               keys + i * NETCODE_KEY_BYTES, NETCODE_KEY_BYTES ) )
            i++;

        if ( i == count )
            nc_handshake_remove( handshakes, index );
        else
            pending->opened.mark = (uint8_t) i;
    }
}

static int nc_handshake_run_timer( nc_handshakes_t * handshakes, uint32_t index )
{
    double deadline = nc_handshake_deadline( handshakes, &handshakes->pending[index] );
    if ( handshakes->base->clock.now < deadline ) {
        nc_wheel_insert( handshakes->wheel, handshakes->first_timer + index, deadline );
        return NC_COST_CHEAP;
    }
    handshakes->stats->handshakes_expired++;
    nc_handshake_remove( handshakes, index );
    return NC_COST_OPEN;
}

/* ================================================================================================================
    ROOM 15: SERVER
    Which client is in which slot, and what does an update do?
    Uses: platform, bytes, crypto, address, replay, packet, containers, queues, socket, endpoint, handshake.
    Invariant: only nc_server_open_slot and nc_server_end_slot fill and empty slots; every slot times out.
    Standard: Server-Side Connection Process
   ================================================================================================================ */

enum { NC_SLOT_FREE, NC_SLOT_CONNECTED, NC_SLOT_CLOSING };

/*  The data that packets of a connected client use, in six cache lines; the user data is elsewhere. A packet to the
    client needs the first two, one from it the first and the third to the fifth. */
typedef struct {
    struct netcode_address_t address;
    uint8_t state; /* NC_SLOT_... */
    uint8_t confirmed;
    uint8_t loopback;
    uint8_t reason; /* why the last client was disconnected */
    uint64_t client_id;
    uint64_t session;
    uint64_t sequence; /* of the next packet to it */
    double send_time;
    int32_t timeout_seconds;
    nc_opened_t opened;

    uint8_t server_to_client_key[NETCODE_KEY_BYTES];
    uint64_t packets_sent;
    uint64_t bytes_sent;
    uint64_t expire_timestamp; /* of its token */
    double connect_time;

    uint8_t client_to_server_key[NETCODE_KEY_BYTES];
    double receive_time;
    uint64_t packets_received;
    uint64_t bytes_received;
    uint64_t packets_dropped;

    nc_replay_t replay;
    nc_probe_t probe;
} nc_slot_t;

/* Checked where numbers of 8 bytes are aligned to 8, as on every 64-bit machine. */
NC_STATIC_ASSERT( slot_has_six_lines, sizeof( void * ) < 8 || sizeof( nc_slot_t ) <= 6 * NC_ARENA_LINE );
NC_STATIC_ASSERT( slot_first_line, offsetof( nc_slot_t, timeout_seconds ) < NC_ARENA_LINE );
NC_STATIC_ASSERT( slot_third_line,
                  sizeof( void * ) < 8 || offsetof( nc_slot_t, client_to_server_key ) == 2 * NC_ARENA_LINE );
NC_STATIC_ASSERT( slot_fourth_line, sizeof( void * ) < 8 || offsetof( nc_slot_t, replay ) == 3 * NC_ARENA_LINE );
NC_STATIC_ASSERT( slot_fifth_line, sizeof( void * ) < 8 || offsetof( nc_slot_t, probe ) <= 5 * NC_ARENA_LINE );

/*  Another address from which a client's packet came: probes to it must come back from it before the client's path
    moves. */
typedef struct {
    struct netcode_address_t address; /* NETCODE_ADDRESS_NONE: free */
    int32_t credit;                   /* bytes that came from there, less those that were sent there */
    int32_t probes;                   /* sent in all */
    double first_time;                /* of the first packet from there */
    double receive_time;              /* of the last */
    uint64_t values[NC_PATH_PROBES];  /* the last probes */
    double times[NC_PATH_PROBES];
} nc_candidate_t;

/* What else a server with `roaming` keeps for a slot. */
typedef struct {
    nc_candidate_t candidates[NC_PATH_CANDIDATES];
    double probes; /* rate limits: of probes to candidates, and of packets from elsewhere tried with this key */
    double trials;
    uint32_t indexed_as; /* in slot_by_sequence under this; 0: not there */
    uint32_t moves;
} nc_paths_t;

/* The memory that start allocates and stop keeps. */
typedef struct {
    void * block; /* NULL before the first start */
    size_t bytes;
    uint32_t slot_count;
    nc_slot_t * slot;
    uint8_t * user_data; /* NETCODE_USER_DATA_BYTES a slot */
    nc_table_t slot_by_address;
    nc_table_t slot_by_id;
    nc_table_t slot_by_sequence; /* with `roaming` only */
    nc_paths_t * paths;          /* by slot, the same */
    nc_bits_t free_slots;
    nc_link_t * active_links;
    nc_inbox_t inbox;
    nc_wheel_t wheel; /* slots first, then pending handshakes */
} nc_server_memory_t;

enum { NC_DEFERRED_STOP = -1, NC_DEFERRED_NOTHING = 0 }; /* or the slots of a start */

/* Whether more arrives than an update can receive, and what the kernel filters then. Decision 6 */
typedef struct {
    nc_flood_filter_t filter;
    int filters;            /* an address is limited, or unknown ones are filtered */
    int overrun;            /* more arrived than the last update could receive */
    int full;               /* when this update began, three quarters of the socket's buffer were in use */
    int counting;           /* so the datagrams of this batch are counted */
    nc_flood_filter_t kept; /* without a filter, only updates with an overrun count: the counts after the last one */
    double seconds;         /* in which was counted what is counted */
    double last;            /* the last update */
    double forgets;         /* when the counts are forgotten */
    double until;           /* when it is judged whether less may be filtered */
    int hold;               /* seconds until then; longer after each relapse */
    int eased;              /* less is filtered than was */
    uint64_t session;       /* the latest that the filter knows */
    nc_log_limit_t log;     /* one line a second */
} nc_flood_t;

/* The work that is left for this update. Decision 6 */
typedef struct {
    double scale; /* sixtieths of a second since the last update; multiplies the units, spare and share */
    int units;    /* in total: when none are left, the rest waits in the socket */
    double until; /* the real time until which more may be received; 0 before the first full batch */
    int spare;    /* packets that may be opened beyond their clients' shares */
    int share;    /* packets opened of each client */
} nc_work_t;

/* A walk over the connected slots; callbacks may end any of them during it. */
typedef struct nc_walk_t {
    struct nc_walk_t * outer;
    uint32_t next;
} nc_walk_t;

struct netcode_server_t {
    nc_endpoint_t base;
    struct netcode_server_config_t config;
    nc_server_memory_t memory;
    nc_pool_t * retired_pools; /* of earlier starts: the caller still holds packets of them */
    nc_handshakes_t handshakes;
    uint64_t session;
    nc_work_t work;
    nc_flood_t flood;
    double work_time;  /* of the last update */
    nc_list_t active;  /* connected slots */
    nc_walk_t * walks; /* those in progress, nested */
    int running;
    int stopping;              /* no client is accepted any more */
    int sizes_buffers;         /* the config has no sizes for the socket's buffers */
    int deferred;              /* NC_DEFERRED_..., requested by a callback; done when the outermost call returns */
    uint32_t callback_pending; /* the slot that is logged before its connect callback; else NC_NONE */
    nc_log_limit_t refused_players[NETCODE_DROP_REASONS];
    struct netcode_address_t
        last_disconnect_address;         /* of the client that disconnected last, and how many of its disconnect */
    int late_disconnects_left;           /* packets may still arrive */
    struct netcode_server_stats_t stats; /* without what netcode_server_stats reads elsewhere */
    double backlog_time;                 /* of the last backlog */
    nc_opened_t tried;                   /* packets from elsewhere, in this update */
    nc_log_limit_t moved;                /* limits the log lines about moves */
};

/* ---- slots ---- */

/* The slot of an address from `index` on, along its chain, or NC_NONE. */
static uint32_t nc_server_match_slot( const struct netcode_server_t * server, uint32_t index,
                                      const struct netcode_address_t * address )
{
    const nc_server_memory_t * memory = &server->memory;
    while ( index != NC_NONE && !( memory->slot[index].state == NC_SLOT_CONNECTED &&
                                   nc_address_same( &memory->slot[index].address, address ) ) )
        index = nc_table_find_next( &memory->slot_by_address, index );
    return index;
}

static uint32_t nc_server_slot_at( const struct netcode_server_t * server, const struct netcode_address_t * address,
                                   uint64_t hash )
{
    return nc_server_match_slot( server, nc_table_find( &server->memory.slot_by_address, (uint32_t) hash ), address );
}

static uint32_t nc_server_slot_of_id( const struct netcode_server_t * server, uint64_t client_id, uint32_t hash )
{
    const nc_server_memory_t * memory = &server->memory;
    uint32_t index = nc_table_find( &memory->slot_by_id, hash );
    while ( index != NC_NONE &&
            !( memory->slot[index].state == NC_SLOT_CONNECTED && memory->slot[index].client_id == client_id ) )
        index = nc_table_find_next( &memory->slot_by_id, index );
    return index;
}

/*  The socket's send may be a callback that disconnects this client: the slot is not used after it. Nothing is sent to
    a client whose address belongs to another one now. */
static NC_INLINE void nc_server_seal_to_slot( struct netcode_server_t * server, nc_slot_t * slot, nc_packet_t * packet,
                                              const uint8_t * body )
{
    uint64_t session = slot->session;
    uint8_t spare[NC_OUT_STRIDE];
    uint8_t * out = nc_outbox_begin( &server->base.outbox, spare );
    if ( session == 0 || slot->session != session || slot->sequence >> 63 )
        return; /* it has ended; or the upper half, of replies without a slot: no nonce is used twice */
    slot->send_time = server->base.clock.now;
    if ( slot->address.type == NETCODE_ADDRESS_NONE )
        return;

    packet->sequence = slot->sequence++;
    nc_packet_context_t context = { slot->server_to_client_key, server->config.protocol_id };
    int bytes = nc_packet_seal( out, packet, body, &context );
    slot->packets_sent++;
    slot->bytes_sent += (uint64_t) bytes;
    nc_outbox_end( &server->base.outbox, out, &slot->address, packet->type, bytes );
}

static void nc_server_send_keep_alive( struct netcode_server_t * server, uint32_t index )
{
    nc_slot_t * slot = &server->memory.slot[index];
    uint8_t body[8];
    nc_packet_t packet = { NETCODE_PACKET_KEEP_ALIVE, 0, (int) sizeof( body ), 0 };
    nc_store_u64( body, index | (uint64_t) server->memory.slot_count << 32 );
    if ( slot->confirmed && nc_probe_is_due( &slot->probe, server->base.clock.now, 1 ) ) {
        nc_store_u64( body, nc_probe_begin( &slot->probe, &server->base ) );
        server->stats.probes_sent += slot->address.type != NETCODE_ADDRESS_NONE;
    }
    nc_server_seal_to_slot( server, slot, &packet, body );
}

static void nc_server_send_disconnects( struct netcode_server_t * server, uint32_t index )
{
    nc_slot_t * slot = &server->memory.slot[index];
    nc_packet_t packet = { NETCODE_PACKET_DISCONNECT, 0, 0, 0 };
    if ( slot->packets_sent == 0 )
        nc_server_send_keep_alive( server, index ); /* a client accepts a disconnect only after a keep-alive */
    for ( int i = 0; i < NC_DISCONNECT_PACKETS; i++ )
        nc_server_seal_to_slot( server, slot, &packet, NULL );
    nc_outbox_flush( &server->base.outbox );
}

/* When does this slot time out if its client sends nothing more? Negative: never. Decision 3 */
static double nc_server_slot_deadline( const struct netcode_server_t * server, const nc_slot_t * slot )
{
    double timeout = slot->timeout_seconds;
    double since = slot->receive_time;
    if ( !slot->confirmed ) {
        since = slot->connect_time;
        if ( timeout <= 0.0 )
            timeout = NC_HANDSHAKE_SECONDS;
        else if ( timeout > (double) NC_UNCONFIRMED_SECONDS )
            timeout = NC_UNCONFIRMED_SECONDS;
    } else if ( timeout <= 0.0 )
        return -1.0;

    if ( server->base.backlog || server->base.clock.now - server->backlog_time < 1.0 )
        timeout *= 2.0; /* its packets may be among the datagrams not read yet, or were dropped. Decision 6 */
    return since + timeout;
}

static void nc_server_set_slot_timer( struct netcode_server_t * server, uint32_t index )
{
    const nc_slot_t * slot = &server->memory.slot[index];
    double next = slot->send_time + NC_SEND_INTERVAL, probe = slot->probe.times[0] + nc_seconds( NC_PROBE_MS );
    double deadline = nc_server_slot_deadline( server, slot );
    if ( slot->state != NC_SLOT_CONNECTED )
        return; /* the network's own callback has ended it */
    if ( slot->confirmed && probe < next )
        next = probe;
    if ( deadline >= 0.0 && deadline < next )
        next = deadline;
    nc_wheel_insert( &server->memory.wheel, index, next );
}

static void nc_server_leave_path( struct netcode_server_t * server, uint32_t index )
{
    nc_server_memory_t * memory = &server->memory;
    nc_slot_t * slot = &memory->slot[index];
    if ( slot->address.type == NETCODE_ADDRESS_NONE ) /* loopback, or another client has its address */
        return;
    nc_table_remove( &memory->slot_by_address, index );
    memset( &slot->address, 0, sizeof( slot->address ) );
}

/*  Files a slot under its newest sequence, by which a packet from an unknown address finds it. The slot's timer does
    that, not each packet: until it runs, the slot is indexed by a number too low by one at most. */
static void nc_server_index_sequence( struct netcode_server_t * server, uint32_t index, int is_member )
{
    const nc_slot_t * slot = &server->memory.slot[index];
    nc_paths_t * paths = &server->memory.paths[index];
    uint32_t number = (uint32_t) ( slot->replay.newest / NC_PATH_AHEAD );
    if ( !is_member || !slot->confirmed || slot->replay.newest < NC_PATH_LEAST_SEQUENCE )
        number = 0;
    if ( number == paths->indexed_as )
        return;
    if ( paths->indexed_as )
        nc_table_remove( &server->memory.slot_by_sequence, index );
    if ( number )
        nc_table_insert( &server->memory.slot_by_sequence, number, index );
    paths->indexed_as = number;
}

/* Frees a closing slot, whose data is not needed any more. */
static void nc_server_free_slot( struct netcode_server_t * server, uint32_t index )
{
    nc_server_memory_t * memory = &server->memory;
    nc_slot_t * slot = &memory->slot[index];
    int reason = slot->reason;

    nc_wheel_remove( &memory->wheel, index );
    nc_server_leave_path( server, index );
    nc_table_remove( &memory->slot_by_id, index );
    if ( server->config.roaming ) {
        nc_server_index_sequence( server, index, 0 );
        nc_crypto_wipe( &memory->paths[index], sizeof( nc_paths_t ) );
    }

    for ( nc_walk_t * walk = server->walks; walk; walk = walk->outer )
        if ( walk->next == index )
            walk->next = memory->active_links[index].next;
    nc_list_remove( &server->active, memory->active_links, index );
    nc_inbox_close( &memory->inbox, index, slot->session, slot->client_id, reason );
    if ( nc_inbox_can_open( &memory->inbox, index ) )
        nc_bits_insert( &memory->free_slots, index );
    nc_crypto_wipe( slot, sizeof( *slot ) );
    nc_crypto_wipe( memory->user_data + (size_t) index * NETCODE_USER_DATA_BYTES, NETCODE_USER_DATA_BYTES );
    slot->state = NC_SLOT_FREE;
    slot->reason = (uint8_t) reason;
}

/*  Empties a slot. Its data can be read until the callback returns; the callback may call any function, but this slot
    stays closed. */
static void nc_server_end_slot( struct netcode_server_t * server, uint32_t index, int reason, int notify_client )
{
    nc_slot_t * slot = &server->memory.slot[index];
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    static const char * const reasons[] = { "", "it timed out", "it disconnected", "the server disconnected it",
                                            "a newer token of the same client took over" };
    if ( slot->state != NC_SLOT_CONNECTED )
        return;

    if ( reason == NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT ) {
        server->last_disconnect_address = slot->address;
        server->late_disconnects_left = NC_DISCONNECT_PACKETS - 1;
    }

    slot->state = NC_SLOT_CLOSING;
    slot->reason = (uint8_t) reason;
    server->stats.disconnects[reason]++;
    NC_LOG( &server->base.log, INFO, "server: client %llu at %s disconnected from slot %u: %s",
            (unsigned long long) slot->client_id, netcode_address_to_string( &slot->address, text ), (unsigned) index,
            reasons[reason] );

    if ( server->config.connect_disconnect_callback )
        server->config.connect_disconnect_callback( server->config.callback_context, (int) index, 0 );
    if ( notify_client && !slot->loopback )
        nc_server_send_disconnects( server, index );
    nc_server_free_slot( server, index );
}

/* Reports a new client to the application. */
static void nc_server_notify( struct netcode_server_t * server )
{
    uint32_t index = server->callback_pending;
    server->callback_pending = NC_NONE;
    if ( index != NC_NONE && server->config.connect_disconnect_callback )
        server->config.connect_disconnect_callback( server->config.callback_context, (int) index, 1 );
}

/* Fills a free slot with a copy of `client`, and reports it to the application. */
static void nc_server_open_slot( struct netcode_server_t * server, uint32_t index, const nc_slot_t * client,
                                 const nc_handshake_hashes_t * hashes, const uint8_t * user_data )
{
    nc_server_memory_t * memory = &server->memory;
    nc_slot_t * slot = &memory->slot[index];
    uint64_t session = ++server->session;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];

    *slot = *client;
    slot->state = NC_SLOT_CONNECTED;
    slot->reason = NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE;
    slot->session = session;
    slot->sequence = nc_crypto_sequence_base( server->config.sequence_base, nc_crypto_random_u64() );
    slot->connect_time = slot->receive_time = slot->send_time = server->base.clock.now;
    nc_probe_init( &slot->probe, server->base.clock.now );
    memcpy( memory->user_data + (size_t) index * NETCODE_USER_DATA_BYTES, user_data, NETCODE_USER_DATA_BYTES );

    nc_bits_remove( &memory->free_slots, index );
    nc_list_insert( &server->active, memory->active_links, index );
    nc_table_insert( &memory->slot_by_id, hashes->id, index );
    nc_inbox_open( &memory->inbox, index, slot->session, slot->client_id );
    server->stats.connects++;

    if ( !slot->loopback ) {
        nc_table_insert( &server->memory.slot_by_address, (uint32_t) hashes->address, index );
        nc_server_set_slot_timer( server, index );
    }

    server->callback_pending = index;
    NC_LOG( &server->base.log, INFO, "server: client %llu at %s connected to slot %u",
            (unsigned long long) slot->client_id, netcode_address_to_string( &slot->address, text ), (unsigned) index );
    nc_server_notify( server );
    if ( slot->session == session && !slot->loopback && slot->packets_sent == 0 )
        nc_server_send_keep_alive( server, index ); /* Standard: Processing Connection Response Packets */
}

/* ---- dropping ---- */

/* Does this refusal stop a player from connecting, so that the server's operator should see it? */
static int nc_server_refuses_player( const struct netcode_server_t * server, int reason,
                                     const struct netcode_address_t * from )
{
    switch ( reason ) {
    case NETCODE_DROP_TOKEN_CONSUMED: /* unless it is a late copy from the client that it has connected */
        return nc_server_slot_at( server, from, nc_handshake_address_hash( &server->handshakes, from ) ) == NC_NONE;
    case NETCODE_DROP_REQUEST_OLD_VERSION:
    case NETCODE_DROP_REQUEST_WRONG_PROTOCOL_ID:
    case NETCODE_DROP_TOKEN_EXPIRED:
    case NETCODE_DROP_TOKEN_MAYBE_USED:
    case NETCODE_DROP_TOKEN_REFUSED_UP_TO:
    case NETCODE_DROP_TOKEN_NO_RECORD_FREE:
    case NETCODE_DROP_TOKEN_NOT_AUTHENTIC:
    case NETCODE_DROP_TOKEN_MALFORMED:
    case NETCODE_DROP_SERVER_FULL:
    case NETCODE_DROP_NOT_ADMITTED: return 1;
    default: return 0;
    }
}

/*  Logs at level INFO one line a second for each kind of refusal that stops a player from connecting; at DEBUG one for
    every datagram, except the repeated packets of a client that has disconnected. */
static void nc_server_log_drop( struct netcode_server_t * server, int reason, const struct netcode_address_t * from,
                                int bytes )
{
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint64_t suppressed;
    if ( NC_LOG_ON( NETCODE_LOG_LEVEL_DEBUG ) ) {
        if ( reason == NETCODE_DROP_UNKNOWN_ADDRESS && server->late_disconnects_left > 0 &&
             nc_address_same( from, &server->last_disconnect_address ) )
            server->late_disconnects_left--;
        else
            NC_LOG( &server->base.log, DEBUG, "server dropped %d bytes from %s: %s", bytes,
                    netcode_address_to_string( from, text ), netcode_drop_reason_text( reason ) );
    } else if ( nc_server_refuses_player( server, reason, from ) &&
                nc_log_allows( &server->refused_players[reason], server->base.clock.now, &suppressed ) )
        NC_LOG( &server->base.log, INFO, "server kept %s out: %s (and %llu such requests before it)",
                netcode_address_to_string( from, text ), netcode_drop_reason_text( reason ),
                (unsigned long long) suppressed );
}

static NC_COLD void nc_server_report_drop( struct netcode_server_t * server, int reason,
                                           const struct netcode_address_t * from, int bytes )
{
    if ( NC_LOG_ON( NETCODE_LOG_LEVEL_INFO ) )
        nc_server_log_drop( server, reason, from, bytes );
    if ( server->config.drop_callback )
        server->config.drop_callback( server->config.callback_context, reason, from, bytes );
}

static inline void nc_server_drop( struct netcode_server_t * server, int reason, const struct netcode_address_t * from,
                                   int bytes )
{
    server->base.counters.dropped[reason]++;
    if ( server->config.drop_callback || NC_LOG_ON( NETCODE_LOG_LEVEL_INFO ) )
        nc_server_report_drop( server, reason, from, bytes );
}

/* ---- requests. Standard: Processing Connection Requests ---- */

/*  Is a client connected already from this address or with this id? `takes_over` receives the slot that may be taken
    over, if the config allows it (decision 10), else NC_NONE. Returns a drop reason. */
static int nc_server_check_connected( const struct netcode_server_t * server, const nc_pending_t * candidate,
                                      const nc_handshake_hashes_t * hashes, uint32_t * takes_over )
{
    uint32_t there = nc_server_slot_at( server, &candidate->address, hashes->address );
    uint32_t same = nc_server_slot_of_id( server, candidate->client_id, hashes->id );
    *takes_over = NC_NONE;
    if ( there != NC_NONE && ( !server->config.replace_existing_clients || there != same ) )
        return NETCODE_DROP_ADDRESS_CONNECTED;

    if ( same == NC_NONE )
        return NETCODE_DROP_NONE;
    if ( !server->config.replace_existing_clients || server->memory.slot[same].loopback ||
         candidate->expire_timestamp < server->memory.slot[same].expire_timestamp ||
         !nc_inbox_can_open( &server->memory.inbox, same ) )
        return NETCODE_DROP_CLIENT_ID_CONNECTED;
    *takes_over = same;
    return NETCODE_DROP_NONE;
}

/* A slot may also be taken because events of its last clients are unread. */
static int nc_server_is_full( const struct netcode_server_t * server )
{
    return nc_bits_lowest( &server->memory.free_slots ) == NC_NONE;
}

static int nc_server_on_request( struct netcode_server_t * server, nc_received_t * received )
{
    nc_handshake_request_t it;
    uint32_t takes_over;
    int reason = nc_handshake_read_request( &server->handshakes, &it, received );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    reason = nc_server_check_connected( server, &it.candidate, &it.hashes, &takes_over );
    if ( reason == NETCODE_DROP_NONE )
        reason = nc_handshake_answer_request( &server->handshakes, &it,
                                              takes_over == NC_NONE && nc_server_is_full( server ) );
    nc_crypto_wipe( &it, sizeof( it ) );
    return reason;
}

/*  Gives the handshake a slot; another session of the same client is disconnected from it first. Returns a drop
    reason. */
static int nc_server_connect( struct netcode_server_t * server, const nc_handshake_response_t * it,
                              const nc_packet_t * packet )
{
    nc_slot_t client;
    const nc_pending_t * pending = &it->pending;
    nc_handshake_consume_token( &server->handshakes, it );

    if ( it->takes_over != NC_NONE ) {
        nc_server_end_slot( server, it->takes_over, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_REPLACED, 1 );
        if ( nc_server_slot_of_id( server, pending->client_id, it->hashes.id ) != NC_NONE )
            return NETCODE_DROP_CLIENT_ID_CONNECTED; /* the callback has connected the same client id */
        if ( nc_server_slot_at( server, &pending->address, it->hashes.address ) != NC_NONE )
            return NETCODE_DROP_ADDRESS_CONNECTED;
    }

    uint32_t index = it->takes_over != NC_NONE && server->memory.slot[it->takes_over].state == NC_SLOT_FREE
                         ? it->takes_over
                         : nc_bits_lowest( &server->memory.free_slots );
    if ( index == NC_NONE )
        return NETCODE_DROP_SERVER_FULL; /* the callback gave the slot to a loopback client */

    nc_crypto_wipe( &client, sizeof( client ) );
    client.address = pending->address;
    client.timeout_seconds = pending->timeout_seconds;
    client.client_id = pending->client_id;
    client.expire_timestamp = pending->expire_timestamp;
    memcpy( client.client_to_server_key, pending->client_to_server_key, NETCODE_KEY_BYTES );
    memcpy( client.server_to_client_key, pending->server_to_client_key, NETCODE_KEY_BYTES );
    nc_replay_init( &client.replay, packet->sequence );

    nc_server_open_slot( server, index, &client, &it->hashes, it->challenge.user_data );
    nc_crypto_wipe( &client, sizeof( client ) );
    return NETCODE_DROP_NONE;
}

/* Can this client get a slot? Returns a drop reason. */
static int nc_server_check_response( const struct netcode_server_t * server, nc_handshake_response_t * it )
{
    int reason = nc_server_check_connected( server, &it->pending, &it->hashes, &it->takes_over );
    if ( reason == NETCODE_DROP_NONE )
        reason = nc_handshake_check_records( &server->handshakes, &it->pending, it->hashes.id );
    if ( reason == NETCODE_DROP_NONE && it->takes_over == NC_NONE && nc_server_is_full( server ) )
        reason = NETCODE_DROP_SERVER_FULL;
    return reason;
}

/*  Calls admit_callback. It may call any function, so everything is checked again afterwards. The calls have their own
    rate limit, for which only authentic responses count. Returns a drop reason. */
static int nc_server_ask_application( struct netcode_server_t * server, nc_handshake_response_t * it )
{
    nc_pending_t * live = &server->handshakes.pending[it->entry];
    if ( !nc_handshake_may_answer( &server->handshakes, live->admit_limit ) )
        return NETCODE_DROP_ADMISSION_PENDING;
    nc_handshake_charge( &server->handshakes, &live->admit_limit );
    int admitted = server->config.admit_callback( server->config.callback_context, it->pending.client_id,
                                                  it->pending.tag, it->pending.expire_timestamp );
    if ( live->created != it->pending.created )
        return NETCODE_DROP_NOT_CONNECTED;
    if ( admitted < 0 ) { /* the client may ask for longer than a handshake waits */
        live->answer_time = server->base.clock.now;
        return NETCODE_DROP_ADMISSION_PENDING;
    }
    return admitted ? nc_server_check_response( server, it ) : NETCODE_DROP_NOT_ADMITTED;
}

/* The steps after decryption. Returns a drop reason. */
static int nc_server_admit_response( struct netcode_server_t * server, nc_handshake_response_t * it,
                                     const nc_packet_t * packet )
{
    int reason = nc_server_check_response( server, it );
    if ( reason == NETCODE_DROP_NONE && server->config.admit_callback )
        reason = nc_server_ask_application( server, it );
    if ( reason == NETCODE_DROP_SERVER_FULL || reason == NETCODE_DROP_NOT_ADMITTED )
        nc_handshake_deny( &server->handshakes, &server->handshakes.pending[it->entry] );
    return reason == NETCODE_DROP_NONE ? nc_server_connect( server, it, packet ) : reason;
}

static int nc_server_on_response( struct netcode_server_t * server, nc_received_t * received )
{
    nc_handshake_response_t it;
    if ( nc_handshake_at( &server->handshakes, received->from, received->hash, NC_NONE ) == NC_NONE )
        return nc_server_slot_at( server, received->from, received->hash ) == NC_NONE ? NETCODE_DROP_UNKNOWN_ADDRESS
                                                                                      : NETCODE_DROP_ADDRESS_CONNECTED;

    int reason = nc_handshake_read_response( &server->handshakes, &it, received );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    reason = nc_server_admit_response( server, &it, &received->as.packet );
    if ( reason == NETCODE_DROP_NONE )
        server->base.counters.packets_received[NETCODE_PACKET_RESPONSE]++;
    nc_crypto_wipe( &it, sizeof( it ) );
    return reason;
}

/* ---- sessions. Standard: Connected Clients ---- */

/*  A keep-alive, perhaps with a probe of the client, which is answered at once, to its address, from wherever it came:
    an observer may have been faster. Or with one of the server that comes back. */
static void nc_server_on_probe( struct netcode_server_t * server, uint32_t index, const nc_received_t * received )
{
    nc_slot_t * slot = &server->memory.slot[index];
    const uint8_t * body = received->data + received->as.packet.header_bytes;
    uint64_t value = nc_load_u64( body );
    nc_packet_t packet = { NETCODE_PACKET_KEEP_ALIVE, 0, 8, 0 };
    if ( !( value & nc_probe_bit ) )
        return;
    if ( nc_probe_is_own( &server->base, value ) )
        server->stats.probes_answered += (uint64_t) ( nc_address_same( received->from, &slot->address ) &&
                                                      nc_probe_end( &slot->probe, value, server->base.clock.now ) );
    else if ( nc_endpoint_spend( &server->base, &slot->probe.answers, NC_PROBE_ANSWER_BURST, NC_PROBE_ANSWER_MS ) )
        nc_server_seal_to_slot( server, slot, &packet, body );
}

static int nc_server_on_payload( struct netcode_server_t * server, uint32_t index, nc_received_t * received )
{
    nc_slot_t * slot = &server->memory.slot[index];
    const nc_packet_t * packet = &received->as.packet;
    nc_buffer_t what = { slot->session, slot->client_id, packet->sequence, index, (uint32_t) packet->body_bytes };
    int reason = nc_received_queue( received, &server->memory.inbox, what );
    if ( reason != NETCODE_DROP_NONE )
        slot->packets_dropped++;
    return reason;
}

/* May one more packet be opened in this update: of this share, or of what is left of all? */
static inline int nc_server_may_open( struct netcode_server_t * server, nc_opened_t * opened, int share )
{
    if ( nc_handshake_count_opened( &server->handshakes, opened, share ) )
        return 1;
    if ( server->work.spare <= 0 )
        return 0;
    server->work.spare--;
    return 1;
}

/*  May one more packet from this client's address be opened in this update? Each client has a share that the others can
    not use; beyond it all share the spare. So a client that floods, or whose address is forged, loses its own packets.
    A payload for a full queue is not opened, except the first in an update, which shows that the client is alive.
    Returns a drop reason. */
static NC_INLINE int nc_server_limits( struct netcode_server_t * server, uint32_t index, nc_received_t * received )
{
    nc_slot_t * slot = &server->memory.slot[index];
    if ( !nc_handshake_is_limited( received ) )
        return NETCODE_DROP_NONE;

    /*  Far sequences may be forged: only the first packet of an update may use the client's share, later ones the
        spare. */
    int share = nc_replay_is_near( &slot->replay, received->as.packet.sequence ) ? server->work.share : 1;
    int is_full = slot->opened.update == server->base.update && received->as.packet.type == NETCODE_PACKET_PAYLOAD &&
                  nc_inbox_is_full( &server->memory.inbox, index );
    if ( is_full || !nc_server_may_open( server, &slot->opened, share ) ) {
        slot->packets_dropped += (uint64_t) is_full;
        slot->replay.unopened = (uint16_t) ( slot->replay.unopened + ( slot->replay.unopened < UINT16_MAX ) );
        return is_full ? NETCODE_DROP_QUEUE_FULL : NETCODE_DROP_OVER_SHARE;
    }
    return NETCODE_DROP_NONE;
}

/* A packet of this slot's client, from whichever address it comes. Returns a drop reason. */
static NC_INLINE int nc_server_read( struct netcode_server_t * server, uint32_t index, nc_received_t * received )
{
    const nc_packet_t * packet = &received->as.packet;
    nc_slot_t * slot = &server->memory.slot[index];
    nc_packet_context_t context = { slot->client_to_server_key, server->config.protocol_id };

    int reason = nc_server_limits( server, index, received );
    if ( reason == NETCODE_DROP_NONE )
        reason = nc_packet_accept( packet, received->data, &context, &slot->replay );
    if ( reason != NETCODE_DROP_NONE )
        return reason;

    server->base.counters.packets_received[packet->type]++;
    slot->receive_time = server->base.clock.now;
    slot->packets_received++;
    slot->bytes_received += (uint64_t) received->bytes;

    if ( packet->type == NETCODE_PACKET_DISCONNECT ) {
        received->cost += NC_COST_SLOT;
        nc_server_end_slot( server, index, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_CLIENT_DISCONNECT, 0 );
        return NETCODE_DROP_NONE;
    }

    slot->confirmed = 1;
    if ( packet->type == NETCODE_PACKET_PAYLOAD )
        return nc_server_on_payload( server, index, received );
    nc_server_on_probe( server, index, received );
    return NETCODE_DROP_NONE;
}

/*  ---- paths: a connected client whose address changes stays connected ----
A packet from an unknown address finds its slot by its sequence. If it is authentic and newer than all before it, its
address becomes a candidate, to which probes are sent, and nothing else. An echo from there moves the slot. See
examples/docs/PATHS.md. */

/* The live candidate of a slot with this address, or NULL. */
static nc_candidate_t * nc_server_find_candidate( const struct netcode_server_t * server, uint32_t index,
                                                  const struct netcode_address_t * address )
{
    nc_candidate_t * candidates = server->memory.paths[index].candidates;
    for ( int i = 0; i < NC_PATH_CANDIDATES; i++ )
        if ( nc_address_same( &candidates[i].address, address ) &&
             server->base.clock.now - candidates[i].receive_time < nc_seconds( NC_PATH_ENDS_MS ) )
            return &candidates[i];
    return NULL;
}

/*  May this packet be tried with the key of this slot? Each slot has a rate limit for that, and all together have a
    share of an update's openings, as one client has. From a candidate's address its client's packets have its own
    share, as from its own address: else its echoes would be lost among its payloads. */
static int nc_server_may_try( struct netcode_server_t * server, uint32_t index, const nc_received_t * received )
{
    int is_limited = nc_handshake_is_limited( received );
    if ( nc_server_find_candidate( server, index, received->from ) &&
         ( !is_limited ||
           nc_handshake_count_opened( &server->handshakes, &server->memory.slot[index].opened, server->work.share ) ) )
        return 1;
    return nc_endpoint_spend( &server->base, &server->memory.paths[index].trials, NC_PATH_TRIAL_BURST,
                              NC_PATH_TRIAL_MS ) &&
           ( !is_limited || nc_server_may_open( server, &server->tried, server->work.share ) );
}

/*  Is this packet authentic, and one of this slot? It stays as it is: another key may be tried, or another server
    asked. */
static int nc_server_try_slot( struct netcode_server_t * server, uint32_t index, nc_received_t * received )
{
    nc_slot_t * slot = &server->memory.slot[index];
    nc_packet_context_t context = { slot->client_to_server_key, server->config.protocol_id };
    nc_opened_t opened = slot->opened;
    if ( !nc_server_may_try( server, index, received ) ) {
        server->stats.trials_refused++;
        return 0;
    }
    server->stats.trials++;
    if ( !nc_packet_open( &received->as.packet, received->data, NULL, &context ) )
        return 0;
    slot->opened = opened; /* nc_server_read counts it */
    return 1;
}

/*  The slot whose client has sent this packet, which is newer than all before it, from an unknown address; or
    NC_NONE. */
static uint32_t nc_server_find_by_sequence( struct netcode_server_t * server, nc_received_t * received )
{
    const nc_table_t * table = &server->memory.slot_by_sequence;
    uint64_t sequence = received->as.packet.sequence;
    uint32_t number = (uint32_t) ( sequence / NC_PATH_AHEAD );
    int trials = 0, compared = 0;
    for ( uint32_t i = 0; i < 2; i++ ) {
        uint32_t index = nc_table_find( table, number - i );
        for ( ; index != NC_NONE && compared++ < NC_PATH_COMPARED; index = nc_table_find_next( table, index ) ) {
            const nc_slot_t * slot = &server->memory.slot[index];
            if ( slot->state != NC_SLOT_CONNECTED || sequence <= slot->replay.newest ||
                 sequence - slot->replay.newest > NC_PATH_AHEAD )
                continue;
            if ( trials++ == NC_PATH_TRIALS )
                return NC_NONE;
            if ( nc_server_try_slot( server, index, received ) )
                return index;
        }
    }
    return NC_NONE;
}

/* The candidate with this address, or the entry for a new one; NULL if none may be evicted. */
static nc_candidate_t * nc_server_candidate( struct netcode_server_t * server, uint32_t index,
                                             const struct netcode_address_t * address )
{
    nc_candidate_t * candidates = server->memory.paths[index].candidates;
    nc_candidate_t * oldest = &candidates[0];
    nc_candidate_t * found = nc_server_find_candidate( server, index, address );
    double now = server->base.clock.now;
    if ( found )
        return found;
    for ( int i = 0; i < NC_PATH_CANDIDATES; i++ ) {
        if ( now - candidates[i].receive_time >= nc_seconds( NC_PATH_ENDS_MS ) )
            memset( &candidates[i], 0, sizeof( candidates[i] ) ); /* it has ended */
        if ( candidates[i].first_time < oldest->first_time )
            oldest = &candidates[i];
    }

    if ( oldest->address.type != NETCODE_ADDRESS_NONE && now - oldest->first_time < nc_seconds( NC_PATH_PROTECTED_MS ) )
        return NULL;
    memset( oldest, 0, sizeof( *oldest ) );
    oldest->address = *address;
    oldest->first_time = now;
    server->stats.path_candidates++;
    server->flood.session = 0; /* the filter of a flood has to let the echo pass */
    return oldest;
}

/* Sends a probe to a candidate: never more bytes than came from there. */
static NC_COLD void nc_server_probe_candidate( struct netcode_server_t * server, uint32_t index,
                                               nc_candidate_t * candidate )
{
    nc_slot_t * slot = &server->memory.slot[index];
    uint64_t session = slot->session;
    uint8_t body[8], spare[NC_OUT_STRIDE];
    int at = candidate->probes % NC_PATH_PROBES, last = ( candidate->probes + NC_PATH_PROBES - 1 ) % NC_PATH_PROBES;
    nc_packet_t packet = { NETCODE_PACKET_KEEP_ALIVE, 0, (int) sizeof( body ), 0 };
    double now = server->base.clock.now;
    int price = NC_KEEP_ALIVE_BYTES + ( slot->sequence >> 48 ? 2 : 0 );
    if ( candidate->credit < price || slot->sequence >> 63 ||
         ( candidate->probes && now - candidate->times[last] < nc_seconds( NC_PATH_SPACING_MS ) ) ||
         !nc_endpoint_spend( &server->base, &server->memory.paths[index].probes, NC_PATH_PROBE_BURST,
                             NC_PATH_PROBE_MS ) )
        return;

    candidate->values[at] = nc_probe_make( &server->base );
    candidate->times[at] = now;
    candidate->probes++;
    candidate->credit -= price;
    struct netcode_address_t to = candidate->address;
    nc_store_u64( body, candidate->values[at] );

    uint8_t * out = nc_outbox_begin( &server->base.outbox, spare );
    if ( slot->session != session )
        return; /* the network's own callback has ended it */
    packet.sequence = slot->sequence++;
    nc_packet_context_t context = { slot->server_to_client_key, server->config.protocol_id };
    int bytes = nc_packet_seal( out, &packet, body, &context );
    slot->packets_sent++;
    slot->bytes_sent += (uint64_t) bytes;
    server->stats.probes_sent++;
    nc_outbox_end( &server->base.outbox, out, &to, packet.type, bytes );
}

/* Moves a slot to an address that was validated. A client that had the address has none now, until it is validated. */
static NC_COLD void nc_server_move( struct netcode_server_t * server, uint32_t index,
                                    const struct netcode_address_t * address )
{
    nc_slot_t * slot = &server->memory.slot[index];
    char from[NETCODE_MAX_ADDRESS_STRING_LENGTH], to[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    uint64_t suppressed, hash = nc_handshake_address_hash( &server->handshakes, address );
    uint32_t owner = nc_server_slot_at( server, address, hash );
    netcode_address_to_string( &slot->address, from );
    if ( owner != NC_NONE )
        nc_server_leave_path( server, owner );
    nc_server_leave_path( server, index );
    slot->address = *address;
    slot->opened.mark = 0; /* it is not what floods from the old one */
    nc_table_insert( &server->memory.slot_by_address, (uint32_t) hash, index );
    server->flood.session = 0; /* the filter of a flood has to learn the address */

    server->memory.paths[index].moves++;
    server->stats.moves++;
    const nc_event_t event = { slot->session, slot->client_id, 0 };
    nc_inbox_report( &server->memory.inbox, index, NC_EVENT_MOVED, &event );
    if ( nc_log_allows( &server->moved, server->base.clock.now, &suppressed ) )
        NC_LOG( &server->base.log, INFO,
                "server: client %llu in slot %u moved from %s to %s (and %llu such moves before it)",
                (unsigned long long) slot->client_id, (unsigned) index, from, netcode_address_to_string( address, to ),
                (unsigned long long) suppressed );
}

/* Does this packet bring back a probe that was sent to where it comes from? Returns the seconds that it took, or -1. */
static double nc_server_validates( const struct netcode_server_t * server, const nc_candidate_t * candidate,
                                   const nc_received_t * received )
{
    uint64_t value = nc_load_u64( received->data + received->as.packet.header_bytes );
    if ( received->as.packet.type != NETCODE_PACKET_KEEP_ALIVE || !( value & nc_probe_bit ) )
        return -1.0;
    for ( int i = 0; i < NC_PATH_PROBES; i++ ) {
        double seconds = server->base.clock.now - candidate->times[i];
        if ( candidate->values[i] == value && seconds <= nc_seconds( NC_PROBE_VALID_MS ) )
            return seconds;
    }
    return -1.0;
}

/*  Is another client heard from this address? Receiving packets at another client's live address does not let an
    attacker take it over. */
static int nc_server_is_taken( const struct netcode_server_t * server, const struct netcode_address_t * address )
{
    uint32_t owner = nc_server_slot_at( server, address, nc_handshake_address_hash( &server->handshakes, address ) );
    if ( owner == NC_NONE )
        return 0;
    const nc_slot_t * slot = &server->memory.slot[owner];
    return server->base.clock.now - slot->receive_time < nc_seconds( NC_PATH_TAKEN_MS );
}

/* After an authentic packet that was the newest of its client, from another address than the client's. */
static NC_COLD void nc_server_on_candidate( struct netcode_server_t * server, uint32_t index,
                                            const nc_received_t * received )
{
    nc_slot_t * slot = &server->memory.slot[index];
    nc_candidate_t * candidate = nc_server_candidate( server, index, received->from );
    if ( !candidate )
        return;
    candidate->receive_time = server->base.clock.now;
    candidate->credit += received->bytes;
    if ( candidate->credit > NC_PATH_PROBES * NC_KEEP_ALIVE_BYTES )
        candidate->credit = NC_PATH_PROBES * NC_KEEP_ALIVE_BYTES;

    double seconds = nc_server_validates( server, candidate, received );
    if ( seconds < 0.0 || nc_server_is_taken( server, received->from ) ) {
        nc_server_probe_candidate( server, index, candidate );
        return;
    }

    server->stats.probes_answered++;
    struct netcode_address_t was = slot->address;
    was.port = received->from->port;
    if ( !nc_address_same( &was, received->from ) ) /* another port is a NAT's, and the path the same: RFC 9000, 9.4 */
        nc_probe_init( &slot->probe, server->base.clock.now + nc_seconds( NC_PROBE_MS ) ); /* the next in a second */
    nc_probe_sample( &slot->probe, seconds );
    slot->receive_time = server->base.clock.now;
    memset( server->memory.paths[index].candidates, 0, sizeof( server->memory.paths[index].candidates ) );
    nc_server_move( server, index, received->from );
}

/*  Is this authentic packet from elsewhere the echo of a probe that was sent to the client's own address? Only then is
    it a sign of life: a client that neither is heard from its address nor receives there times out. */
static int nc_server_returns_probe( const nc_slot_t * slot, const nc_received_t * received )
{
    uint64_t value = nc_load_u64( received->data + received->as.packet.header_bytes );
    return received->as.packet.type == NETCODE_PACKET_KEEP_ALIVE && ( value & nc_probe_bit ) &&
           ( value == slot->probe.values[0] || value == slot->probe.values[1] );
}

/*  A packet of a session from an address that no client of that session has. `reason`: why it is dropped if no other
    client here has sent it, and no other server wants it. Returns a drop reason. */
static NC_COLD int nc_server_on_stray( struct netcode_server_t * server, nc_received_t * received, int reason )
{
    uint32_t index = server->config.roaming ? nc_server_find_by_sequence( server, received ) : NC_NONE;
    if ( index == NC_NONE )
        return server->config.stray_callback &&
                       server->config.stray_callback( server->config.callback_context, received->from, received->data,
                                                      received->bytes )
                   ? NETCODE_DROP_NONE
                   : reason;

    nc_slot_t * slot = &server->memory.slot[index];
    uint64_t sequence = received->as.packet.sequence;
    double receive_time = slot->receive_time;
    reason = nc_server_read( server, index, received );
    if ( slot->replay.newest != sequence )
        return reason; /* it was refused, or has ended the slot */
    if ( !nc_server_returns_probe( slot, received ) )
        slot->receive_time = receive_time;
    nc_server_on_candidate( server, index, received );
    return reason;
}

/*  Can this packet from a client's address not be that client's? A NAT that is restarted gives a client the port that
    another one had: their sequences are far apart. Within 2^32 above the newest one the key decides. */
static int nc_server_is_stray( struct netcode_server_t * server, uint32_t index, nc_received_t * received, int reason )
{
    const nc_slot_t * slot = &server->memory.slot[index];
    uint64_t sequence = received->as.packet.sequence;
    if ( reason != NETCODE_DROP_NONE )
        return reason != NETCODE_DROP_REPLAYED;
    return server->config.roaming && sequence > slot->replay.newest && sequence - slot->replay.newest > NC_PATH_AHEAD &&
           !nc_server_try_slot( server, index, received );
}

static int nc_server_on_session( struct netcode_server_t * server, nc_received_t * received )
{
    uint32_t index = nc_server_match_slot( server, received->slot, received->from );
    if ( index == NC_NONE ) /* or it has connected in this batch */
        index = nc_server_slot_at( server, received->from, received->hash );
    if ( index == NC_NONE ) {
        uint32_t pending = nc_handshake_at( &server->handshakes, received->from, received->hash, NC_NONE );
        return nc_server_on_stray( server, received,
                                   pending == NC_NONE ? NETCODE_DROP_UNKNOWN_ADDRESS : NETCODE_DROP_NOT_CONNECTED );
    }

    int reason = nc_replay_seen( &server->memory.slot[index].replay, received->as.packet.sequence );
    if ( nc_server_is_stray( server, index, received, reason ) )
        return nc_server_on_stray( server, received,
                                   reason == NETCODE_DROP_NONE ? (int) NETCODE_DROP_AUTHENTICATION_FAILED : reason );
    return reason == NETCODE_DROP_NONE ? nc_server_read( server, index, received ) : reason;
}

/* ---- receiving ---- */

/* The checks of a datagram that need no lookup. Returns a drop reason. */
static inline int nc_server_screen( const struct netcode_server_t * server, nc_received_t * received )
{
    int reason = nc_received_screen( received->bytes, received->from );
    if ( reason != NETCODE_DROP_NONE )
        return reason;
    if ( received->data[0] == NETCODE_PACKET_REQUEST )
        return nc_packet_parse_request( &received->as.request, received->data, received->bytes,
                                        server->config.protocol_id );
    return nc_packet_parse( &received->as.packet, received->data, received->bytes, NC_TO_SERVER );
}

/*  The first look at a datagram, which is in a buffer of the pool or, if that is NC_NONE, the caller's: is it possible,
    and who may have sent it? A whole batch is looked up before the first one is handled: so the processor waits for the
    slots of many clients at once. */
static void nc_server_look_up( struct netcode_server_t * server, struct netcode_datagram_t * datagram, uint32_t buffer,
                               nc_received_t * received )
{
    nc_received_init( received, datagram, buffer );
    if ( datagram->status == NETCODE_DATAGRAM_ERROR )
        return;
    received->reason = nc_server_screen( server, received );
    if ( received->reason != NETCODE_DROP_NONE )
        return;
    if ( received->data[0] == NETCODE_PACKET_REQUEST ) {
        received->hash = nc_handshake_tag_hash( &server->handshakes, received->as.request.tag );
        return;
    }
    received->hash = nc_handshake_address_hash( &server->handshakes, received->from );
    received->slot = nc_table_find( &server->memory.slot_by_address, (uint32_t) received->hash );
    for ( size_t line = 0; received->slot != NC_NONE && line < 5; line++ )
        NC_PREFETCH( (const uint8_t *) &server->memory.slot[received->slot] + line * NC_ARENA_LINE );
}

/* ---- floods ---- */

/* Counts a datagram; of unknown addresses, all ports of an IPv4 address or of an IPv6 /64 as one. */
static NC_COLD void nc_server_count_flood( struct netcode_server_t * server, const nc_received_t * received )
{
    struct netcode_address_t from = *received->from;
    int is_looked_up = received->reason == NETCODE_DROP_NONE && received->data[0] != NETCODE_PACKET_REQUEST;
    uint32_t index = is_looked_up
                         ? nc_server_match_slot( server, received->slot, &from )
                         : nc_server_slot_at( server, &from, nc_handshake_address_hash( &server->handshakes, &from ) );
    nc_flood_filter_t * filter = &server->flood.filter;
    filter->total++;
    filter->unknown += index == NC_NONE ? 3 : -1;
    if ( index == NC_NONE ) {
        from.port = 0;
        memset( &from.data.ipv6[4], 0, from.type == NETCODE_ADDRESS_IPV6 ? 8 : 0 );
        int connects =
            is_looked_up ? received->as.packet.type == NETCODE_PACKET_RESPONSE : received->reason == NETCODE_DROP_NONE;
        if ( connects && filter->closed < 2 ) /* many players may connect from one network at once */
            return;
    }
    nc_flooder_t * it = nc_flood_count( filter, &from );
    if ( it && is_looked_up && index != NC_NONE )
        it->expected += nc_replay_is_near( &server->memory.slot[index].replay, received->as.packet.sequence );
}

/* Starts the clock at the first full batch of an update. Its senders are counted during a flood. */
static void nc_server_watch_batch( struct netcode_server_t * server, int count )
{
    nc_flood_t * flood = &server->flood;
    nc_work_t * work = &server->work;
    if ( count >= NC_RECEIVE_BATCH && work->until == 0.0 ) {
        work->until = netcode_time() + work->scale * ( 1e-6 * (double) NC_SERVER_RECEIVE_US );
        flood->full = server->base.extras.fill && server->base.extras.fill( server->base.socket.context ) >= 0.75;
    }
    flood->counting = flood->full || flood->filters || server->base.clock.now < flood->forgets;
}

/* From how many datagrams on has an address sent too much? */
static double nc_server_flood_limit( const nc_flood_t * flood )
{
    double most = flood->seconds * (double) NC_FLOODER_RATE, least = flood->seconds * (double) NC_FLOODER_LEAST;
    double part = (double) flood->filter.total / (double) NC_FLOODER_PART;
    return !flood->overrun || part > most ? most : part > least ? part : least;
}

/*  Limits the addresses that sent too much. If there is none and much comes from unknown addresses, those are filtered
    more, by one level. `eases`: by one level less, and addresses that do not send too much any more are not limited any
    more; nor are they when there are as many limited clients as there can be. */
static void nc_server_judge_flood( struct netcode_server_t * server, int eases )
{
    nc_flood_t * flood = &server->flood;
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    double most = nc_server_flood_limit( flood );
    int limited = 0, more = 0, clients = 0;
    uint64_t suppressed;
    for ( int i = NC_FLOODERS_UNKNOWN; i < NC_FLOODERS; i++ )
        clients += flood->filter.flooders[i].limited > 0;
    for ( nc_flooder_t * it = flood->filter.flooders; it < flood->filter.flooders + NC_FLOODERS; it++ ) {
        if ( it->count == 0 && !it->limited )
            continue;
        uint64_t hash = nc_handshake_address_hash( &server->handshakes, &it->address );
        uint32_t index = nc_server_slot_at( server, &it->address, hash );
        nc_slot_t * slot = index == NC_NONE ? NULL : &server->memory.slot[index];
        int was = it->limited, rest = it->count - ( it->newest ? it->expected : 0 );
        int crowded = clients >= NC_FLOODERS_LIMITED, may = was ? was < 2 : !crowded || !it->address.port;
        if ( (double) it->count >= most && flood->overrun && may )
            clients += it->limited++ == 0 && it->address.port;
        else if ( ( eases || crowded ) && (double) rest * (double) ( 1 << 4 * was ) < most )
            it->limited = 0;
        if ( slot ) /* a client that floods by itself is limited as a whole, until the limit ends */
            slot->opened.mark = it->limited && ( slot->opened.mark || (double) it->expected >= most );
        it->newest = slot && !slot->opened.mark ? slot->replay.newest : 0;
        limited += it->limited > 0;
        more += it->limited > was;
        if ( it->limited && nc_log_allows( &flood->log, server->base.clock.now, &suppressed ) )
            NC_LOG( &server->base.log, INFO,
                    "server receives more than it can process: it limits what comes from %s%s (%llu lines before)",
                    it->address.port ? "" : "unknown ports of ", netcode_address_to_string( &it->address, text ),
                    (unsigned long long) suppressed );
    }

    if ( flood->overrun && !more && flood->filter.unknown > 0 && flood->filter.closed < NC_FLOOD_MAX_CLOSED &&
         !server->config.stray_callback ) { /* with strays, other servers' clients would be filtered */
        flood->filter.closed++;
        more++;
    } else {
        flood->filter.closed -= eases && flood->filter.closed > 0;
    }
    if ( flood->filter.closed && nc_log_allows( &flood->log, server->base.clock.now, &suppressed ) )
        NC_LOG( &server->base.log, INFO,
                "server receives more than it can process: it filters unknown addresses (level %d; %llu lines before)",
                flood->filter.closed, (unsigned long long) suppressed );

    if ( more && ( flood->eased || !flood->filters ) ) {
        int again = server->base.clock.now < flood->until + (double) NC_FLOOD_MAX_HOLD_SECONDS;
        flood->hold = again && flood->hold > 0 ? 2 * flood->hold : NC_FLOOD_HOLD_SECONDS;
        flood->hold = flood->hold < NC_FLOOD_MAX_HOLD_SECONDS ? flood->hold : NC_FLOOD_MAX_HOLD_SECONDS;
    }
    if ( more || eases ) {
        flood->eased = !more;
        flood->until = server->base.clock.now + flood->hold;
    }
    flood->filters = limited + flood->filter.closed;
}

/* Makes a filter that knows the addresses of now, with new keys. */
static void nc_server_set_filter( struct netcode_server_t * server )
{
    nc_flood_t * flood = &server->flood;
    uint64_t suppressed;
    nc_flood_clear( &flood->filter );
    flood->session = server->session;
    flood->filter.roaming = server->config.roaming;
    for ( uint32_t i = server->active.head; i != NC_NONE; i = server->memory.active_links[i].next ) {
        nc_flood_add( &flood->filter, &server->memory.slot[i].address );
        for ( int k = 0; server->config.roaming && k < NC_PATH_CANDIDATES; k++ )
            nc_flood_add( &flood->filter, &server->memory.paths[i].candidates[k].address );
    }
    if ( !server->base.extras.set_filter( server->base.socket.context, flood->filters ? &flood->filter : NULL ) &&
         nc_log_allows( &flood->log, server->base.clock.now, &suppressed ) )
        NC_LOG( &server->base.log, ERROR, "server: the system refuses the filter of a flood (and %llu lines before it)",
                (unsigned long long) suppressed );
}

/* At the end of receiving: did more arrive than this update could receive? If so, the kernel filters it. */
static void nc_server_watch_update( struct netcode_server_t * server )
{
    nc_flood_t * flood = &server->flood;
    double now = server->base.clock.now;
    int had = flood->filters;
    flood->overrun =
        flood->full || server->base.backlog || ( server->work.until > 0.0 && netcode_time() >= server->work.until );
    flood->full = 0;
    if ( had || ( flood->overrun && flood->counting ) )
        flood->seconds += now - flood->last;
    flood->last = now;
    if ( flood->overrun )
        flood->forgets = now + (double) NC_FLOOD_PULSE_SECONDS;
    if ( flood->overrun && !had )
        flood->kept = flood->filter;
    else if ( !had && flood->counting )
        flood->filter = flood->kept;
    flood->counting = 0;

    int eases = had && now >= flood->until && flood->seconds >= nc_seconds( NC_FLOOD_JUDGE_MS );
    int is_due = eases || ( flood->overrun && flood->seconds >= nc_seconds( NC_FLOOD_JUDGE_MS ) );
    if ( is_due )
        nc_server_judge_flood( server, eases );
    if ( is_due ? had || flood->filters : flood->filters && flood->session != server->session )
        nc_server_set_filter( server );
    int is_old = had ? flood->seconds >= (double) NC_FLOOD_FILTER_SECONDS : now >= flood->forgets;
    if ( !is_due && ( flood->overrun || flood->seconds == 0.0 || !is_old ) )
        return;

    flood->seconds = 0.0;
    flood->filter.unknown = flood->filter.total = 0;
    for ( int i = 0; i < NC_FLOODERS; i++ )
        flood->filter.flooders[i].count = flood->filter.flooders[i].expected = 0;
    flood->kept = flood->filter;
}

/* Handles a datagram that was looked up. Returns its cost. */
static int nc_server_handle( struct netcode_server_t * server, nc_received_t * received, int status, int error )
{
    int reason = received->reason;
    if ( status == NETCODE_DATAGRAM_ERROR ) {
        server->base.counters.receive_errors++;
        server->base.counters.last_socket_error = error;
        return NC_COST_CHEAP;
    }
    server->base.counters.datagrams_received++;
    server->base.counters.bytes_received += (uint64_t) received->bytes;
    if ( server->flood.counting && nc_handshake_is_limited( received ) )
        nc_server_count_flood( server, received );
    if ( reason == NETCODE_DROP_NONE )
        reason = received->data[0] == NETCODE_PACKET_REQUEST           ? nc_server_on_request( server, received )
                 : received->as.packet.type == NETCODE_PACKET_RESPONSE ? nc_server_on_response( server, received )
                                                                       : nc_server_on_session( server, received );
    if ( reason != NETCODE_DROP_NONE )
        nc_server_drop( server, reason, received->from, received->bytes );
    return NC_COST_CHEAP + received->cost;
}

/*  Handles received datagrams, at most a batch, and returns their cost. `buffers` are the pool's buffers that they
    are in. */
static int nc_server_handle_batch( struct netcode_server_t * server, struct netcode_datagram_t * datagrams,
                                   uint32_t * buffers, int count )
{
    nc_received_t packets[NC_RECEIVE_BATCH];
    int cost = 0;
    for ( int i = 0; i < count; i++ )
        nc_server_look_up( server, &datagrams[i], buffers[i], &packets[i] );
    for ( int i = 0; i < count; i++ ) {
        cost += nc_server_handle( server, &packets[i], datagrams[i].status, datagrams[i].error );
        nc_received_reset( &datagrams[i] );
        if ( packets[i].kept ) {
            buffers[i] = packets[i].buffer;
            datagrams[i].data = nc_pool_datagram( server->memory.inbox.pool, buffers[i] );
        }
    }
    return cost;
}

static int nc_server_part( const struct netcode_server_t * server, int base, int per_slot )
{
    int further = (int) server->memory.slot_count - NC_SERVER_BUDGET_SLOTS;
    return (int) ( server->work.scale * (double) ( base + ( further > 0 ? further * per_slot : 0 ) ) );
}

/*  Sets the work units of this update by the time since the last one, so that a server at 20 Hz handles as much in a
    second as one at 60 Hz. Decision 6 */
static void nc_server_plan_work( struct netcode_server_t * server )
{
    nc_work_t * work = &server->work;
    double scale = ( server->base.clock.now - server->work_time ) * 60.0;
    server->work_time = server->base.clock.now;
    work->scale = scale < 1.0 ? 1.0 : scale < (double) NC_SERVER_MOST_SCALE ? scale : (double) NC_SERVER_MOST_SCALE;
    work->units = nc_server_part( server, NC_SERVER_BUDGET, NC_SERVER_BUDGET_PER_SLOT );
    work->until = 0.0;
    server->handshakes.token_units = nc_server_part( server, NC_SERVER_TOKENS, 1 );

    int spare = work->spare + nc_server_part( server, NC_SERVER_SPARE, 1 );
    int most = nc_server_part( server, NC_SERVER_SPARE_MOST, 4 );
    work->spare = spare < most ? spare : most;
    work->share = nc_server_part( server, NC_SERVER_SHARE, 0 );
}

/*  May this update receive more than its units allow? Real time limits that: if the system returns datagrams quickly,
    the packets of other clients do not have to wait behind a flood of small ones. Decision 6 */
static int nc_server_has_time( const nc_work_t * work )
{
    return (double) work->units > -work->scale * (double) NC_SERVER_FURTHER && netcode_time() < work->until;
}

/*  If no buffer is free, datagrams wait in the socket, as long as the application reads all payloads between two
    updates. Otherwise they are dropped: clients whose payloads are not read would block the others' packets. */
static void nc_server_receive( struct netcode_server_t * server )
{
    const nc_inbox_t * inbox = &server->memory.inbox;
    nc_work_t * work = &server->work;
    int waits = nc_inbox_is_read( inbox );
    int count = 0, failures = 0, is_udp = server->base.is_udp; /* other sockets' runs repeat exactly: no real time */

    while ( work->units > 0 || nc_server_has_time( work ) ) {
        uint32_t want =
            work->units > 0 && work->units < NC_RECEIVE_BATCH ? (uint32_t) work->units : (uint32_t) NC_RECEIVE_BATCH;
        uint32_t room = waits ? nc_inbox_capacity_left( inbox ) : want;
        if ( want > room && ( want = room ) == 0 )
            break;

        count = nc_endpoint_receive( &server->base, (int) want, &failures );
        if ( count <= 0 )
            break;
        if ( is_udp )
            nc_server_watch_batch( server, count );
        work->units -= nc_server_handle_batch( server, server->base.datagrams, server->base.batch, count );
    }

    server->base.backlog = count > 0;
    nc_endpoint_log_failure( &server->base, failures );
    server->stats.backlogs += (uint64_t) server->base.backlog;
    if ( server->base.backlog )
        server->backlog_time = server->base.clock.now;
    if ( server->base.extras.set_filter )
        nc_server_watch_update( server );
}

/* ---- update ---- */

/* Returns its cost, as nc_handshake_run_timer does. */
static int nc_server_run_slot_timer( struct netcode_server_t * server, uint32_t index )
{
    nc_slot_t * slot = &server->memory.slot[index];
    uint64_t session = slot->session;
    int cost = NC_COST_CHEAP;
    double deadline = nc_server_slot_deadline( server, slot );
    if ( deadline >= 0.0 && server->base.clock.now >= deadline ) { /* without a keep-alive first: it has timed out */
        nc_server_end_slot( server, index, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_TIMED_OUT, 0 );
        return NC_COST_SLOT;
    }

    if ( server->base.clock.now - slot->send_time >= NC_SEND_INTERVAL ||
         ( slot->confirmed && nc_probe_is_due( &slot->probe, server->base.clock.now, 0 ) ) ) {
        cost += NC_COST_OPEN;
        nc_server_send_keep_alive( server, index );
    }
    if ( slot->session == session ) { /* else the network's own callback has ended it */
        nc_server_set_slot_timer( server, index );
        if ( server->config.roaming )
            nc_server_index_sequence( server, index, 1 );
    }
    return cost;
}

/*  Handles the keep-alives and timeouts that are due; the others cost nothing. When thousands are due at once, some
    wait for the next update. */
static void nc_server_run_timers( struct netcode_server_t * server )
{
    nc_wheel_t * wheel = &server->memory.wheel;
    int units = nc_server_part( server, NC_SERVER_TIMERS, NC_SERVER_TIMERS_PER_SLOT );
    nc_wheel_advance( wheel, server->base.clock.now );

    while ( units > 0 ) {
        uint32_t timer = nc_wheel_take( wheel );
        if ( timer == NC_NONE )
            break;
        units -= timer < server->memory.slot_count
                     ? nc_server_run_slot_timer( server, timer )
                     : nc_handshake_run_timer( &server->handshakes, timer - server->memory.slot_count );
    }
}

/* ---- life ---- */

static uint32_t nc_server_capacity( int wanted, uint32_t per_slot, uint32_t slot_count, uint32_t least )
{
    if ( wanted > 0 )
        return (uint32_t) nc_config_limit( wanted );
    return per_slot * slot_count > least ? per_slot * slot_count : least;
}

/* The buffers of a batch are added to these. */
static uint32_t nc_server_pool_buffers( const struct netcode_server_config_t * config, uint32_t slot_count )
{
    uint32_t usual =
        slot_count < NC_POOL_MOST / NC_POOL_PER_SLOT ? NC_POOL_PER_SLOT * slot_count : (uint32_t) NC_POOL_MOST;
    if ( usual < NC_POOL_LEAST )
        usual = NC_POOL_LEAST;
    return NC_RECEIVE_BATCH +
           nc_server_capacity( config->packet_pool_buffers, NC_POOL_LEAST_PER_SLOT, slot_count, usual );
}

/*  Allocates the memory of `slots` slots from a block; without a block it only measures. The capacity for used tokens
    never shrinks: a start with fewer slots must not forget any. */
static size_t nc_server_layout_memory( const struct netcode_server_config_t * config, uint32_t slot_count,
                                       struct netcode_server_t * server, void * block )
{
    nc_server_memory_t * memory = &server->memory;
    nc_handshakes_t * handshakes = &server->handshakes;
    nc_arena_t arena = nc_arena_make( block );

    uint32_t pending =
        nc_server_capacity( config->pending_handshakes, NC_PENDING_PER_SLOT, slot_count, NC_PENDING_LEAST );
    uint32_t used = nc_server_capacity( config->consumed_tokens, NC_USED_PER_SLOT, slot_count, NC_USED_LEAST );
    uint32_t had = handshakes->used.expiring_capacity + handshakes->used.never_capacity;
    used = used > had ? used : had;

    memory->block = block;
    memory->slot_count = slot_count;
    memory->slot = (nc_slot_t *) nc_arena_take( &arena, slot_count, sizeof( nc_slot_t ) );
    memory->user_data = (uint8_t *) nc_arena_take( &arena, slot_count, NETCODE_USER_DATA_BYTES );
    nc_table_place( &memory->slot_by_address, &arena, slot_count, slot_count );
    nc_table_place( &memory->slot_by_id, &arena, slot_count, slot_count );
    if ( config->roaming ) {
        nc_table_place( &memory->slot_by_sequence, &arena, slot_count, 4 * slot_count );
        memory->paths = (nc_paths_t *) nc_arena_take( &arena, slot_count, sizeof( nc_paths_t ) );
    }
    nc_bits_place( &memory->free_slots, &arena, slot_count );
    memory->active_links = (nc_link_t *) nc_arena_take( &arena, slot_count, sizeof( nc_link_t ) );

    nc_handshake_place( handshakes, &arena, pending, used > 1 ? used : 2 );
    handshakes->first_timer = slot_count;
    memory->inbox.client_count = slot_count;
    memory->inbox.has_events = config->events;
    nc_inbox_place( &memory->inbox, &arena, nc_server_pool_buffers( config, slot_count ) );
    nc_wheel_place( &memory->wheel, &arena, slot_count + pending );

    memory->bytes = arena.at;
    return arena.at;
}

static size_t nc_server_pool_bytes( const struct netcode_server_config_t * config, uint32_t slot_count )
{
    nc_arena_t arena = nc_arena_make( NULL );
    nc_pool_place( &arena, nc_server_pool_buffers( config, slot_count ) );
    return arena.at;
}

/* No client is connected and no handshake is pending. */
static void nc_server_reset_memory( struct netcode_server_t * server )
{
    nc_server_memory_t * memory = &server->memory;
    memset( memory->slot, 0, memory->slot_count * sizeof( nc_slot_t ) );
    memset( memory->user_data, 0, (size_t) memory->slot_count * NETCODE_USER_DATA_BYTES );
    nc_table_reset( &memory->slot_by_address );
    nc_table_reset( &memory->slot_by_id );
    if ( server->config.roaming ) {
        nc_table_reset( &memory->slot_by_sequence );
        memset( memory->paths, 0, memory->slot_count * sizeof( nc_paths_t ) );
    }
    nc_bits_reset( &memory->free_slots );

    nc_list_init( &server->active );
    for ( uint32_t i = 0; i < memory->slot_count; i++ )
        if ( nc_inbox_can_open( &memory->inbox, i ) )
            nc_bits_insert( &memory->free_slots, i );
    nc_handshake_reset( &server->handshakes );
    nc_wheel_reset( &memory->wheel, server->base.clock.now );
    if ( server->flood.filters )
        server->base.extras.set_filter( server->base.socket.context, NULL );
    memset( &server->flood, 0, sizeof( server->flood ) );
}

/* Frees the old pool, unless the caller still holds packets of it. */
static void nc_server_retire_pool( struct netcode_server_t * server, nc_pool_t * pool )
{
    if ( pool->held ) {
        pool->next = server->retired_pools;
        server->retired_pools = pool;
    } else
        nc_crypto_release( &server->base.allocator, pool->block, nc_pool_written_bytes( pool ) );
}

static nc_pool_t * nc_server_make_pool( struct netcode_server_t * server, uint32_t slot_count )
{
    void * block =
        nc_allocator_take_large( &server->base.allocator, nc_server_pool_bytes( &server->config, slot_count ) );
    nc_arena_t arena = nc_arena_make( block );
    if ( !block )
        return NULL;
    nc_pool_t * pool = nc_pool_place( &arena, nc_server_pool_buffers( &server->config, slot_count ) );
    nc_endpoint_fill_batch( &server->base, pool );
    return pool;
}

/*  Allocates the memory for `slots` slots, and copies the used tokens into it. Unread packets and events are freed with
    the old memory and pool. */
static int nc_server_build_memory( struct netcode_server_t * server, uint32_t slot_count )
{
    const struct netcode_server_config_t * config = &server->config;
    nc_used_t * used = &server->handshakes.used;
    const nc_used_t old_used = *used;
    struct netcode_server_t measured;
    void * old_block = server->memory.block;
    size_t old_bytes = server->memory.bytes;
    nc_pool_t * old_pool = server->memory.inbox.pool;

    memset( &measured, 0, sizeof( measured ) );
    measured.handshakes.used = old_used;
    void * block = nc_allocator_take_large( &server->base.allocator,
                                            nc_server_layout_memory( config, slot_count, &measured, NULL ) );
    if ( !block )
        return 0;

    nc_pool_t * pool = nc_server_make_pool( server, slot_count );
    if ( !pool ) {
        server->base.allocator.release( server->base.allocator.context, block );
        return 0;
    }

    nc_server_layout_memory( config, slot_count, server, block );
    nc_used_reset( used );
    if ( old_block ) {
        nc_used_adopt( used, &old_used );
        nc_server_retire_pool( server, old_pool );
        nc_crypto_release( &server->base.allocator, old_block, old_bytes );
    }

    nc_inbox_reset( &server->memory.inbox, pool,
                    (uint32_t) ( config->packet_quota > 0 ? config->packet_quota : NC_SERVER_QUOTA ) );
    return 1;
}

static void nc_server_stop( struct netcode_server_t * server )
{
    if ( !server->running )
        return;

    server->stopping = 1;
    for ( uint32_t i = 0; i < server->memory.slot_count; i++ )
        nc_server_end_slot( server, i, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT, 1 );
    while ( server->handshakes.in_progress.count )
        nc_handshake_remove( &server->handshakes, server->handshakes.in_progress.head );
    nc_crypto_wipe( server->handshakes.challenge_key, sizeof( server->handshakes.challenge_key ) );
    nc_outbox_flush( &server->base.outbox );
    server->running = server->stopping = 0;
    server->base.backlog = 0;
    NC_LOG( &server->base.log, INFO, "server stopped" );
}

static void nc_server_start( struct netcode_server_t * server, int max_clients )
{
    int lifetime = server->config.max_connect_token_lifetime;
    const struct netcode_socket_t * socket = &server->base.socket;
    nc_server_stop( server );

    if ( ( !server->memory.block || server->memory.slot_count != (uint32_t) max_clients ) &&
         !nc_server_build_memory( server, (uint32_t) max_clients ) ) {
        NC_LOG( &server->base.log, ERROR, "server can not start: no memory for %d slots", max_clients );
        return;
    }
    nc_server_reset_memory( server );

    if ( lifetime <= 0 )
        lifetime = server->config.sequence_base == NETCODE_SEQUENCE_BASE_RANDOM
                       ? 0
                       : NETCODE_DEFAULT_MAX_CONNECT_TOKEN_LIFETIME;

    int buffer_bytes = max_clients * NC_SOCKET_BUFFER_PER_SLOT;
    if ( server->sizes_buffers && buffer_bytes > NC_SOCKET_BUFFER_BYTES && server->base.extras.resize ) {
        server->base.extras.resize( socket->context, buffer_bytes, buffer_bytes );
        nc_socket_log_buffers( socket, &server->base.log, buffer_bytes, buffer_bytes );
    }

    server->handshakes.earliest_expiry =
        lifetime > 0 ? server->config.unix_time( server->config.callback_context ) + (uint64_t) lifetime : 0;
    server->running = 1;
    nc_handshake_warn_of_zero_key( &server->handshakes );
    NC_LOG( &server->base.log, INFO, "server started with %d slots", max_clients );
}

static void nc_server_free( struct netcode_server_t * server )
{
    nc_allocator_t allocator = server->base.allocator;
    if ( server->memory.inbox.pool )
        nc_crypto_release( &allocator, server->memory.inbox.pool->block,
                           nc_pool_written_bytes( server->memory.inbox.pool ) );
    if ( server->memory.block )
        nc_crypto_release( &allocator, server->memory.block, server->memory.bytes );

    while ( server->retired_pools ) {
        nc_pool_t * pool = server->retired_pools;
        server->retired_pools = pool->next;
        nc_crypto_release( &allocator, pool->block, nc_pool_written_bytes( pool ) );
    }
    nc_endpoint_free( &server->base, sizeof( *server ) );
}

/* Asserts the invariants; called at the start of each call. */
static void nc_server_check( const struct netcode_server_t * server )
{
    const nc_server_memory_t * memory = &server->memory;
    const nc_pool_t * pool = memory->inbox.pool;

    netcode_assert( server->handshakes.private_key_count >= 1 &&
                    server->handshakes.private_key_count <= NETCODE_MAX_PRIVATE_KEYS );
    netcode_assert( server->handshakes.address_count >= 1 );
    netcode_assert( server->base.outbox.sent <= server->base.outbox.count &&
                    server->base.outbox.count <= server->base.outbox.capacity );

    netcode_assert( server->running || !server->stopping );
    netcode_assert( !server->running || ( memory->block && pool ) );
    netcode_assert( !server->running || server->active.count <= memory->slot_count );
    netcode_assert( !server->running || server->handshakes.in_progress.count + server->handshakes.unused.count ==
                                            server->handshakes.capacity );
    netcode_assert( server->callback_pending == NC_NONE || server->callback_pending < memory->slot_count );
    netcode_assert( server->handshakes.used.expiring_count <= server->handshakes.used.expiring_capacity );
    netcode_assert( server->handshakes.used.never_count <= server->handshakes.used.never_capacity );
    netcode_assert( !pool || pool->held + memory->inbox.queued + pool->free_count <= pool->count );
    (void) pool; /* without asserts */
}

/* Begins a call; as nc_client_begin_call. */
static NC_INLINE void nc_server_begin_call( struct netcode_server_t * server )
{
    server->base.depth++;
    nc_server_check( server );
    nc_server_notify( server );
}

/*  Ends a call that may have deferred a stop, start or destroy of a callback: the outermost call does it. Returns
    whether the server runs. */
static int nc_server_end_last_call( struct netcode_server_t * server )
{
    while ( server->base.depth == 1 && ( server->deferred != NC_DEFERRED_NOTHING || server->base.destroy_deferred ) ) {
        int deferred = server->deferred;
        server->deferred = NC_DEFERRED_NOTHING;
        if ( server->base.destroy_deferred || deferred == NC_DEFERRED_STOP )
            nc_server_stop( server );
        else
            nc_server_start( server, deferred );

        if ( server->base.destroy_deferred && !server->running ) { /* a callback may have called destroy */
            nc_server_free( server );
            return 0;
        }
    }
    server->base.depth--;
    return server->running;
}

static inline void nc_server_end_call( struct netcode_server_t * server )
{
    if ( server->deferred != NC_DEFERRED_NOTHING || server->base.destroy_deferred )
        nc_server_end_last_call( server );
    else
        server->base.depth--;
}

static size_t nc_server_layout( const nc_endpoint_setup_t * setup, struct netcode_server_t * server )
{
    nc_endpoint_t measured;
    nc_arena_t arena = nc_arena_make( server );
    nc_arena_take( &arena, 1, sizeof( *server ) );
    nc_endpoint_place( server ? &server->base : &measured, &arena, setup, NC_RECEIVE_BATCH );
    return arena.at;
}

/* The address to bind: the wildcard of the family, unless the config has another. */
static int nc_server_bind_address( struct netcode_address_t * bind_to, const struct netcode_address_t * address,
                                   const char * text )
{
    if ( text && netcode_parse_address( text, bind_to ) == NETCODE_OK && bind_to->type == address->type ) {
        if ( bind_to->port == 0 )
            bind_to->port = address->port;
        return 1;
    }
    memset( bind_to, 0, sizeof( *bind_to ) );
    bind_to->type = address->type;
    bind_to->port = address->port;
    return text == NULL;
}

/* Returns a create error. */
static int nc_server_open_socket( struct netcode_server_t * server, nc_endpoint_setup_t * setup )
{
    const struct netcode_server_config_t * config = &server->config;
    for ( int i = 0; i < setup->address_count && server->base.is_udp; i++ )
        if ( !nc_server_bind_address( &setup->bind_to[i], &setup->addresses[i],
                                      i ? config->bind_address2 : config->bind_address ) )
            return NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED + i;
    setup->udp.screens = config->kernel_filter >= 0;
    setup->udp.share_port = config->share_port;
    return nc_endpoint_open_socket( &server->base, setup );
}

/* Tokens rarely name a wildcard address: this is the commonest mistake with a first server. */
static void nc_server_warn_of_wildcard( const struct netcode_server_t * server )
{
    static const uint8_t zeros[16] = { 0 };
    const struct netcode_address_t * address = &server->handshakes.addresses[0];
    char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
    size_t bytes = address->type == NETCODE_ADDRESS_IPV4 ? 4 : 16;
    if ( server->config.num_public_addresses == 0 && memcmp( &address->data, zeros, bytes ) == 0 )
        NC_LOG( &server->base.log, ERROR,
                "server: its address is the wildcard %s, and only tokens that name just that are "
                "for it; say its real address, or use public_addresses",
                netcode_address_to_string( address, text ) );
}

/* Replaces port 0 by the port that was bound. */
static void nc_server_learn_ports( struct netcode_server_t * server )
{
    struct netcode_socket_info_t info = nc_socket_info( &server->base.socket );
    for ( int i = 0; i < server->handshakes.address_count; i++ ) {
        struct netcode_address_t * address = &server->handshakes.addresses[i];
        if ( address->port == 0 )
            address->port = address->type == info.address2.type ? info.address2.port : info.address.port;
        server->handshakes.names[i] = nc_address_without_interface( address );
    }
}

/* Adds the public addresses of this server in tokens. Returns a create error. */
static int nc_server_add_public_addresses( struct netcode_server_t * server )
{
    const struct netcode_server_config_t * config = &server->config;
    for ( int i = 0; i < config->num_public_addresses; i++ )
        if ( i >= NETCODE_MAX_PUBLIC_ADDRESSES || !config->public_addresses || !config->public_addresses[i] ||
             netcode_parse_address( config->public_addresses[i],
                                    &server->handshakes.addresses[server->handshakes.address_count++] ) != NETCODE_OK )
            return NETCODE_SERVER_CREATE_ERROR_PARSE_ADDRESS_FAILED;
    return NETCODE_SERVER_CREATE_ERROR_NONE;
}

static void nc_server_set_defaults( struct netcode_server_config_t * config )
{
    NC_ENDPOINT_SET_DEFAULTS( config );
    config->unix_time = config->unix_time ? config->unix_time : nc_unix_default;
}

static void nc_server_init( struct netcode_server_t * server, const struct netcode_server_config_t * config,
                            const nc_endpoint_setup_t * setup, double time )
{
    memset( server, 0, sizeof( *server ) );
    nc_server_layout( setup, server );
    nc_endpoint_init( &server->base, setup, time );

    server->config = *config;
    nc_server_set_defaults( &server->config );
    server->sizes_buffers = server->config.receive_buffer_bytes == NC_SOCKET_BUFFER_BYTES &&
                            server->config.send_buffer_bytes == NC_SOCKET_BUFFER_BYTES;

    memcpy( server->handshakes.addresses, setup->addresses, sizeof( setup->addresses ) );
    server->handshakes.address_count = setup->address_count;
    memcpy( server->handshakes.private_keys[0], config->private_key, NETCODE_KEY_BYTES );
    server->handshakes.private_key_count = 1;
    nc_crypto_wipe( server->config.private_key, NETCODE_KEY_BYTES ); /* one copy is enough */

    nc_crypto_random( server->handshakes.hash_key, sizeof( server->handshakes.hash_key ) );
    server->handshakes.base = &server->base;
    server->handshakes.config = &server->config;
    server->handshakes.wheel = &server->memory.wheel;
    server->handshakes.stats = &server->stats;
    server->handshakes.used.evicts_oldest_never = config->sequence_base == NETCODE_SEQUENCE_BASE_RANDOM;

    server->work.scale = 1.0;
    server->work.spare = NC_SERVER_SPARE_MOST;
    server->callback_pending = NC_NONE;
}

/* Returns a create error. */
static int nc_server_make( struct netcode_server_t ** result, nc_endpoint_setup_t * setup,
                           const struct netcode_server_config_t * config, double time )
{
    nc_allocator_t allocator = setup->udp.allocator;
    struct netcode_server_t * server =
        (struct netcode_server_t *) allocator.allocate( allocator.context, nc_server_layout( setup, NULL ) );
    if ( !server )
        return NETCODE_SERVER_CREATE_ERROR_ALLOCATE_SERVER_FAILED;

    nc_server_init( server, config, setup, time );
    int error = nc_server_add_public_addresses( server );
    if ( error == NETCODE_SERVER_CREATE_ERROR_NONE )
        error = nc_server_open_socket( server, setup );
    if ( error != NETCODE_SERVER_CREATE_ERROR_NONE ) {
        nc_endpoint_free( &server->base, sizeof( *server ) );
        return error;
    }

    nc_server_learn_ports( server );
    nc_server_warn_of_wildcard( server );
    *result = server;
    return NETCODE_SERVER_CREATE_ERROR_NONE;
}

static struct netcode_server_t * nc_server_create( const char ** texts, const struct netcode_server_config_t * config,
                                                   double time )
{
    struct netcode_server_t * server = NULL;
    nc_endpoint_setup_t setup;
    struct netcode_server_config_t defaults;
    netcode_default_server_config( &defaults );
    config = config ? config : &defaults;
    NC_ENDPOINT_READ_CONFIG( &setup, config );

    nc_server_error = nc_endpoint_check_setup( &setup, texts );
    if ( nc_server_error == NETCODE_SERVER_CREATE_ERROR_NONE )
        nc_server_error = nc_server_make( &server, &setup, config, time );
    if ( !server )
        nc_endpoint_log_create( &setup.log, "server", texts, netcode_server_create_error_text( nc_server_error ) );
    return server;
}

NETCODE_API void netcode_default_server_config( struct netcode_server_config_t * config )
{
    NC_CHECK( config != NULL, NC_NOTHING );
    memset( config, 0, sizeof( *config ) );
    config->allocate_function = nc_allocator_malloc;
    config->free_function = nc_allocator_free;
    nc_server_set_defaults( config );
}

NETCODE_API struct netcode_server_t * netcode_server_create( const char * address,
                                                             const struct netcode_server_config_t * config,
                                                             double time )
{
    const char * texts[] = { address, NULL };
    return nc_server_create( texts, config, time );
}

NETCODE_API struct netcode_server_t * netcode_server_create_dual( const char * address1, const char * address2,
                                                                  const struct netcode_server_config_t * config,
                                                                  double time )
{
    const char * texts[] = { address1, address2 };
    return nc_server_create( texts, config, time );
}

NETCODE_API int netcode_server_create_error( void )
{
    return nc_server_error;
}

NETCODE_API const char * netcode_server_create_error_text( int error )
{
    return nc_endpoint_error_text( error, 0 );
}

NETCODE_API size_t netcode_server_memory( const struct netcode_server_config_t * config, int max_clients )
{
    struct netcode_server_t measured;
    nc_endpoint_setup_t setup;
    NC_CHECK( config != NULL && max_clients >= 1 && max_clients <= NETCODE_MAX_SLOTS, 0 );
    NC_ENDPOINT_READ_CONFIG( &setup, config );

    memset( &measured, 0, sizeof( measured ) );
    size_t pool_bytes = nc_server_pool_bytes( config, (uint32_t) max_clients );
    size_t bytes = nc_server_layout_memory( config, (uint32_t) max_clients, &measured, NULL );
    if ( bytes > NC_ARENA_TOO_MUCH - pool_bytes )
        return NC_ARENA_TOO_MUCH;
    return nc_server_layout( &setup, NULL ) + bytes + pool_bytes + nc_endpoint_socket_bytes( &setup );
}

NETCODE_API void netcode_server_destroy( struct netcode_server_t * server )
{
    if ( !server )
        return;
    nc_server_begin_call( server );
    server->base.destroy_deferred = 1;
    nc_server_end_call( server );
}

NETCODE_API int netcode_server_start( struct netcode_server_t * server, int max_clients )
{
    NC_REQUIRE( server, max_clients >= 1 && max_clients <= NETCODE_MAX_SLOTS, NETCODE_ERROR );
    nc_server_begin_call( server );
    server->deferred = max_clients;
    int in_callback = server->base.depth > 1;
    return nc_server_end_last_call( server ) || in_callback ? NETCODE_OK : NETCODE_ERROR;
}

NETCODE_API void netcode_server_stop( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    server->deferred = NC_DEFERRED_STOP;
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_update( struct netcode_server_t * server, double time )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    if ( nc_endpoint_begin_update( &server->base, "netcode_server_update", time ) ) {
        if ( server->running && !server->stopping ) {
            nc_server_plan_work( server );
            nc_server_receive( server );
            nc_server_run_timers( server );
            nc_outbox_flush( &server->base.outbox );
        }
        server->base.updating = 0;
    }
    nc_server_end_call( server );
}

NETCODE_API int netcode_server_running( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, 0 );
    return server->running;
}

NETCODE_API int netcode_server_max_clients( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, 0 );
    return server->running ? (int) server->memory.slot_count : 0;
}

NETCODE_API int netcode_server_num_connected_clients( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, 0 );
    return server->running ? (int) server->active.count : 0;
}

/*  The slot of an index, for queries: NULL on a stopped server, where no client is connected, and past the last slot.
    Callers may poll any number of slots on every tick, so only a negative index is a mistake. */
static inline nc_slot_t * nc_server_slot( struct netcode_server_t * server, int client_index, const char * function )
{
    NC_CHECK( server != NULL, NULL );
    netcode_assert( client_index >= 0 );
    if ( client_index < 0 ) {
        nc_log_refuse( &server->base.log, function, "a slot of 0 or more, not %d", client_index );
        return NULL;
    }
    if ( !server->running || client_index >= (int) server->memory.slot_count )
        return NULL;
    return server->memory.slot[client_index].state == NC_SLOT_FREE ? NULL : &server->memory.slot[client_index];
}

/* The same for calls that change or send something: an index past the last slot is a mistake, logged once a second. */
static inline nc_slot_t * nc_server_target( struct netcode_server_t * server, int client_index, const char * function )
{
    NC_CHECK( server != NULL, NULL );
    int past = server->running && client_index >= (int) server->memory.slot_count;
    netcode_assert( !past );
    if ( past ) {
        nc_log_refuse( &server->base.log, function, "a slot below %u, not %d", (unsigned) server->memory.slot_count,
                       client_index );
        return NULL;
    }
    return nc_server_slot( server, client_index, function );
}

NETCODE_API int netcode_server_client_connected( struct netcode_server_t * server, int client_index )
{
    return nc_server_slot( server, client_index, __func__ ) != NULL;
}

NETCODE_API int netcode_server_client_disconnect_reason( struct netcode_server_t * server, int client_index )
{
    NC_REQUIRE( server, client_index >= 0, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE );
    if ( client_index >= (int) server->memory.slot_count ) /* there are none before the first start */
        return NETCODE_SERVER_CLIENT_DISCONNECT_REASON_NONE;
    return server->memory.slot[client_index].reason;
}

NETCODE_API int netcode_server_client_loopback( struct netcode_server_t * server, int client_index )
{
    const nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    return slot ? slot->loopback : 0;
}

NETCODE_API uint64_t netcode_server_client_id( struct netcode_server_t * server, int client_index )
{
    const nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    return slot ? slot->client_id : 0;
}

NETCODE_API struct netcode_address_t * netcode_server_client_address( struct netcode_server_t * server,
                                                                      int client_index )
{
    nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    return slot ? &slot->address : NULL;
}

NETCODE_API void * netcode_server_client_user_data( struct netcode_server_t * server, int client_index )
{
    return nc_server_slot( server, client_index, __func__ )
               ? server->memory.user_data + (size_t) client_index * NETCODE_USER_DATA_BYTES
               : NULL;
}

NETCODE_API uint64_t netcode_server_client_session( struct netcode_server_t * server, int client_index )
{
    const nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    return slot ? slot->session : 0;
}

NETCODE_API void netcode_server_disconnect_client( struct netcode_server_t * server, int client_index )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    if ( nc_server_target( server, client_index, __func__ ) )
        nc_server_end_slot( server, (uint32_t) client_index, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT,
                            1 );
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_disconnect_all_clients( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    if ( !server->running )
        return;
    nc_server_begin_call( server );
    for ( uint32_t i = 0; i < server->memory.slot_count; i++ )
        if ( !server->memory.slot[i].loopback )
            nc_server_end_slot( server, i, NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT, 1 );
    nc_server_end_call( server );
}

NETCODE_API uint64_t netcode_server_next_packet_sequence( struct netcode_server_t * server, int client_index )
{
    const nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    return slot ? slot->sequence : 0;
}

static void nc_server_send_loopback( struct netcode_server_t * server, uint32_t index, const uint8_t * data, int bytes )
{
    nc_slot_t * slot = &server->memory.slot[index];
    if ( !server->config.send_loopback_packet_callback ) {
        nc_endpoint_report_loopback( &server->base, "server" );
        return;
    }
    slot->packets_sent++;
    slot->bytes_sent += (uint64_t) bytes;
    server->config.send_loopback_packet_callback( server->config.callback_context, (int) index, data, bytes,
                                                  slot->sequence++ );
}

/* Sends a payload to one connected client, over the network or loopback. */
static NC_INLINE void nc_server_send_payload( struct netcode_server_t * server, uint32_t index, const uint8_t * data,
                                              int bytes )
{
    nc_slot_t * slot = &server->memory.slot[index];
    uint64_t session = slot->session;
    nc_packet_t packet = { NETCODE_PACKET_PAYLOAD, 0, bytes, 0 };
    if ( slot->loopback ) {
        nc_server_send_loopback( server, index, data, bytes );
        return;
    }

    if ( !slot->confirmed )
        nc_server_send_keep_alive( server, index ); /* Standard: Connected Clients */
    if ( slot->session != session )
        return; /* the network's own callback has ended it */
    nc_server_seal_to_slot( server, slot, &packet, data );
}

NETCODE_API void netcode_server_send_packet( struct netcode_server_t * server, int client_index, const uint8_t * data,
                                             int bytes )
{
    NC_REQUIRE( server, data != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    if ( nc_endpoint_allows( &server->base, __func__, bytes ) && nc_server_target( server, client_index, __func__ ) )
        nc_server_send_payload( server, (uint32_t) client_index, data, bytes );
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_send_packet_to_session( struct netcode_server_t * server, int client_index,
                                                        uint64_t session, const uint8_t * data, int bytes )
{
    NC_REQUIRE( server, data != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    const nc_slot_t * slot = nc_server_target( server, client_index, __func__ );
    if ( slot && slot->session == session && nc_endpoint_allows( &server->base, __func__, bytes ) )
        nc_server_send_payload( server, (uint32_t) client_index, data, bytes );
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_broadcast( struct netcode_server_t * server, const uint8_t * data, int bytes,
                                           int except_client_index )
{
    nc_walk_t walk;
    NC_REQUIRE( server, data != NULL, NC_NOTHING );
    if ( !nc_endpoint_allows( &server->base, __func__, bytes ) || !server->running )
        return;

    nc_server_begin_call( server );
    walk.outer = server->walks;
    walk.next = server->active.head;
    server->walks = &walk;

    while ( walk.next != NC_NONE ) {
        uint32_t index = walk.next;
        walk.next = server->memory.active_links[index].next;
        if ( (int) index != except_client_index )
            nc_server_send_payload( server, index, data, bytes );
    }

    server->walks = walk.outer;
    nc_server_end_call( server );
}

static uint8_t * nc_server_receive_payload( struct netcode_server_t * server, int client_index, int * bytes,
                                            uint64_t * sequence )
{
    if ( !server->running || client_index >= (int) server->memory.slot_count )
        return NULL;
    return nc_inbox_receive( &server->memory.inbox, (uint32_t) client_index, bytes, sequence );
}

NETCODE_API uint8_t * netcode_server_receive_packet( struct netcode_server_t * server, int client_index, int * bytes,
                                                     uint64_t * sequence )
{
    NC_REQUIRE( server, bytes != NULL && client_index >= 0 && !server->config.events, NULL );
    return nc_server_receive_payload( server, client_index, bytes, sequence );
}

/* Frees a packet of an earlier start, and the pool with its last one. */
static int nc_server_free_retired( struct netcode_server_t * server, const void * packet )
{
    nc_pool_t ** at;
    for ( at = &server->retired_pools; *at; at = &( *at )->next ) {
        nc_pool_t * pool = *at;
        if ( !nc_endpoint_free_packet( pool, packet ) )
            continue;

        if ( pool->held == 0 ) {
            *at = pool->next;
            nc_crypto_release( &server->base.allocator, pool->block, nc_pool_written_bytes( pool ) );
        }
        return 1;
    }
    return 0;
}

NETCODE_API void netcode_server_free_packet( struct netcode_server_t * server, void * packet )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    nc_pool_t * pool = server->memory.inbox.pool;
    int is_its_own = packet == NULL || ( pool && nc_endpoint_free_packet( pool, packet ) ) ||
                     nc_server_free_retired( server, packet );
    netcode_assert( is_its_own );
    if ( !is_its_own )
        nc_log_refuse( &server->base.log, __func__, "a packet of this server, freed once" );
}

NETCODE_API void netcode_server_process_packet( struct netcode_server_t * server, struct netcode_address_t * from,
                                                uint8_t * data, int bytes )
{
    NC_REQUIRE( server, from != NULL && data != NULL && bytes >= 0, NC_NOTHING );
    struct netcode_datagram_t datagram = { *from, data, bytes, bytes, NETCODE_DATAGRAM_OK, 0 };
    uint32_t nowhere = NC_NONE;

    nc_server_begin_call( server );
    if ( server->running && !server->stopping ) {
        nc_server_handle_batch( server, &datagram, &nowhere, 1 );
    } else {
        server->base.counters.datagrams_received++;
        server->base.counters.bytes_received += (uint64_t) bytes;
        nc_server_drop( server, NETCODE_DROP_NOT_CONNECTED, from, bytes );
    }
    nc_server_end_call( server );
}

/* Why can this loopback client not have this slot? NULL: it can. */
static const char * nc_server_refuses_loopback( const struct netcode_server_t * server, int client_index,
                                                uint64_t client_id, uint32_t id_hash )
{
    if ( server->stopping )
        return "the server is stopping";
    if ( server->memory.slot[client_index].state != NC_SLOT_FREE )
        return "the slot is in use";
    if ( !nc_inbox_can_open( &server->memory.inbox, (uint32_t) client_index ) )
        return "events of the slot's last clients are unread";
    return nc_server_slot_of_id( server, client_id, id_hash ) != NC_NONE ? "a client with this id is connected" : NULL;
}

NETCODE_API int netcode_server_connect_loopback_client( struct netcode_server_t * server, int client_index,
                                                        uint64_t client_id, const uint8_t * user_data )
{
    static const uint8_t nothing[NETCODE_USER_DATA_BYTES] = { 0 };
    nc_slot_t client;
    int connected = 0;
    NC_REQUIRE( server, server->running && client_index >= 0, NETCODE_ERROR );

    nc_server_begin_call( server );
    (void) nc_server_target( server, client_index, __func__ ); /* refuses an index past the last slot */
    if ( client_index < (int) server->memory.slot_count ) {
        nc_handshake_hashes_t hashes = { nc_handshake_id_hash( &server->handshakes, client_id ), 0, 0 };
        const char * why = nc_server_refuses_loopback( server, client_index, client_id, hashes.id );
        connected = why == NULL;

        memset( &client, 0, sizeof( client ) );
        client.client_id = client_id;
        client.loopback = client.confirmed = 1;
        client.expire_timestamp = UINT64_MAX;

        if ( why )
            NC_LOG( &server->base.log, ERROR, "server: no loopback client %llu in slot %d: %s",
                    (unsigned long long) client_id, client_index, why );
        else
            nc_server_open_slot( server, (uint32_t) client_index, &client, &hashes, user_data ? user_data : nothing );
    }
    nc_server_end_call( server );
    return connected ? NETCODE_OK : NETCODE_ERROR;
}

NETCODE_API void netcode_server_disconnect_loopback_client( struct netcode_server_t * server, int client_index )
{
    const nc_slot_t * slot = nc_server_target( server, client_index, __func__ );
    if ( slot && slot->loopback )
        netcode_server_disconnect_client( server, client_index );
}

NETCODE_API void netcode_server_process_loopback_packet( struct netcode_server_t * server, int client_index,
                                                         const uint8_t * data, int bytes, uint64_t sequence )
{
    NC_REQUIRE( server, data != NULL && bytes >= 1 && bytes <= NETCODE_MAX_PACKET_SIZE, NC_NOTHING );
    nc_server_begin_call( server );
    nc_slot_t * slot = nc_server_target( server, client_index, __func__ );
    if ( slot && slot->loopback ) {
        uint32_t index = (uint32_t) client_index;
        nc_buffer_t what = { slot->session, slot->client_id, sequence, index, (uint32_t) bytes };
        int reason = nc_inbox_copy( &server->memory.inbox, what, data );
        slot->receive_time = server->base.clock.now;

        if ( reason == NETCODE_DROP_NONE ) {
            server->base.counters.packets_received[NETCODE_PACKET_PAYLOAD]++;
            slot->packets_received++;
            slot->bytes_received += (uint64_t) bytes;
        } else {
            slot->packets_dropped++;
            nc_server_drop( server, reason, &slot->address, bytes );
        }
    }
    nc_server_end_call( server );
}

NETCODE_API uint16_t netcode_server_get_port( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, 0 );
    return server->handshakes.addresses[0].port;
}

NETCODE_API int netcode_server_next_event( struct netcode_server_t * server, struct netcode_event_t * event )
{
    nc_server_memory_t * memory = server ? &server->memory : NULL;
    NC_REQUIRE( server, event != NULL && server->config.events, 0 );
    memset( event, 0, sizeof( *event ) );
    if ( !memory->block || !nc_inbox_next_event( &memory->inbox, event ) )
        return 0;
    uint32_t index = (uint32_t) event->client_index;
    if ( memory->slot[index].state == NC_SLOT_FREE && nc_inbox_can_open( &memory->inbox, index ) )
        nc_bits_insert( &memory->free_slots, index );
    return 1;
}

NETCODE_API void netcode_server_flush( struct netcode_server_t * server )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    nc_outbox_flush( &server->base.outbox );
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_wait( struct netcode_server_t * server, double seconds )
{
    NC_CHECK( server != NULL, NC_NOTHING );
    if ( !( seconds > 0.0 ) || server->base.backlog || server->memory.wheel.lists[NC_WHEEL_DUE].count )
        return;

    if ( !server->running ) {
        /* A stopped server does not read its socket, so a datagram must not end the wait. No wait on the simulator. */
        if ( !server->config.network_simulator )
            netcode_sleep( seconds < 3600.0 ? seconds : 3600.0 );
        return;
    }

    double next = nc_wheel_seconds_left( &server->memory.wheel, server->base.clock.now );
    if ( next < seconds )
        seconds = next;
    if ( seconds <= 0.0 )
        return;

    nc_server_begin_call( server );
    nc_socket_wait( &server->base.socket, seconds );
    nc_server_end_call( server );
}

NETCODE_API int netcode_server_set_private_keys( struct netcode_server_t * server, const uint8_t * keys, int count )
{
    NC_REQUIRE( server, keys != NULL && count >= 1 && count <= NETCODE_MAX_PRIVATE_KEYS, NETCODE_ERROR );
    if ( server->running )
        nc_handshake_apply_keys( &server->handshakes, keys, count );
    nc_crypto_wipe( server->handshakes.private_keys, sizeof( server->handshakes.private_keys ) );
    memcpy( server->handshakes.private_keys, keys, (size_t) count * NETCODE_KEY_BYTES );
    server->handshakes.private_key_count = count;
    nc_handshake_warn_of_zero_key( &server->handshakes );
    return NETCODE_OK;
}

NETCODE_API void netcode_server_stats( struct netcode_server_t * server, struct netcode_server_stats_t * stats )
{
    NC_REQUIRE( server, stats != NULL, NC_NOTHING );
    const nc_used_t * used = &server->handshakes.used;
    nc_server_begin_call( server );
    *stats = server->stats;
    NC_ENDPOINT_STATS( stats, &server->base, &server->memory.inbox );
    stats->max_clients = netcode_server_max_clients( server );
    stats->clients = netcode_server_num_connected_clients( server );
    stats->pending = server->running ? (int) server->handshakes.in_progress.count : 0;
    stats->consumed = (int) ( used->expiring_count + used->never_count );
    for ( const nc_pool_t * pool = server->retired_pools; pool; pool = pool->next )
        stats->packets_held += (int) pool->held;
    nc_server_end_call( server );
}

NETCODE_API void netcode_server_client_stats( struct netcode_server_t * server, int client_index,
                                              struct netcode_server_client_stats_t * stats )
{
    NC_REQUIRE( server, stats != NULL, NC_NOTHING );
    memset( stats, 0, sizeof( *stats ) );
    const nc_slot_t * slot = nc_server_slot( server, client_index, __func__ );
    if ( !slot )
        return;

    stats->session = slot->session;
    stats->client_id = slot->client_id;
    stats->packets_sent = slot->packets_sent;
    stats->packets_received = slot->packets_received;
    stats->bytes_sent = slot->bytes_sent;
    stats->bytes_received = slot->bytes_received;
    stats->packets_dropped = slot->packets_dropped;

    stats->seconds_connected = server->base.clock.now - slot->connect_time;
    stats->seconds_silent = server->base.clock.now - slot->receive_time;
    stats->packets_queued = (int) server->memory.inbox.queues[client_index].list.count;
    stats->confirmed = slot->confirmed;
    stats->loopback = slot->loopback;
    stats->moves = server->config.roaming ? server->memory.paths[client_index].moves : 0;
    NC_ENDPOINT_PATH_STATS( stats, slot );
}
#undef NC_ENDPOINT_PATH_STATS

/* ================================================================================================================
    ROOM 16: MESSAGES
    How do reliable messages arrive, in their order, over packets that can be lost, repeated and reordered?
    Uses: the public API; platform, crypto, containers, queues, endpoint, client, server. Optional: NETCODE_MESSAGES.
    Invariant: every byte of a packet is checked before any of it has an effect; and nc_messages_check.

    THE WIRE. Numbers are little-endian. A varint has 7 bits a byte, the lowest first, with bit 7 set if another byte
    follows, in its shortest form, 4 bytes at most. A packet is a header, then frames until its end:

        byte     1  bits 0-3 version 3; bit 4 "ack is valid"; bit 5 "ack delay follows"; bit 6 "please ack"; bit 7 zero
        seq      2  the packet's number, one more with each packet, modulo 2^16; numbers may be skipped (this sender
                    skips one of 256 at random; a peer that acknowledges it forges acks). A sender stays within
                    16384 of the newest acknowledged; a number 2048 or more behind the newest received, or more than
                    24576 ahead, is dropped
        ack      2  the newest number received                                   } zeros
        ack_bits 4  bit n: number ack - 1 - n was received                       } unless bit 4 is set
        [delay]  2  the time since the newest arrived, in 0.1 ms, if bit 5 is set; needs bit 4. At most 100 ms counts

    A packet asks for an ack only if it has other frames than ACK_RANGES and PONG. Frames of messages begin with a byte

        bits 0-2  0 unreliable, 1 unreliable sequenced, 2 reliable, 3 reliable ordered, 4 reliable sequenced, 5 stream
        bit 3     it is a FRAGMENT (2, 3, 4, and always 5), one in a packet at most
        bit 4     a byte follows with the channel, 1 to 31; else it is channel 0
        bit 5     MESSAGE: without a length, the data end with the packet. FRAGMENT: a part of this message was
                  acknowledged: it begins nothing, for its id may be one of the past that has run over
        bits 6-7  zero

    followed, in this order, by the fields of the kind:

        id       2  2 to 5: counts the connection's reliable messages; never 4096 or more above one of which nothing was
                    acknowledged. The ids of messages in fragments that are in flight are left out
        order    2  3: counts the ordered messages of its channel; never 4096 or more above one in flight
        tag      4  5: for the application
        MESSAGE:   [length varint], data of up to 1180 bytes
        FRAGMENT:  total 4 (1181 and more; any for 5), index varint, then 1168 bytes of data, or the rest in the last
                   fragment; a total of 0 has one of 0 bytes. Never 4096 or more above one that was not acknowledged

    An unreliable sequenced message is as new as its packet, a reliable sequenced one as its id. The other frames:

        07 ACK_RANGES  count 1 (1 to 16), then for each: numbers skipped (varint), numbers received (varint, not 0),
                       downwards from ack - 33; no number more than 2047 below ack. Needs bit 4; once in a packet
        0f PING        4 bytes, to be returned
        17 PONG        4 bytes of a PING
        1f LIMIT       credit 4, the largest message accepted (varint), channels 1 (1 to 32), epoch 2: a random number
                       that this side draws at each reset; a change of it is BROKEN. The sender may begin reliable
                       messages until the sum of their costs is the credit; modulo 2^32. A message costs its length (a
                       stream 32), 80 more, and one for each 8 of its fragments, rounded up, 512 at most. Before the
                       first LIMIT the credit is 16384. The largest message is 1180 at least
        27 CANCEL      id 2, cost (varint): this reliable message, not an ordered one, is not sent any more. The cost
                       is 0 if a part of it was acknowledged
        2f REFUSE      count 1 (1 to 16), ids 2 each: the receiver of these streams does not want them. At most one in a
                       packet, and in each packet with acks until one is acknowledged. It takes effect before the acks
                       of its packet: a refused stream is never ACKED
        37 BROKEN      reason 1 (1 to 6): nothing more is sent or accepted until a reset

    Worked examples, byte by byte; a test reads them from here:

        wire: 43 00 00 00 00 00 00 00 00 | 22 00 00 68 69
              the first packet: number 0, nothing to ack yet, please ack; reliable, id 0, to the packet's end: "hi"
        wire: 53 02 00 07 00 05 00 00 00 | 00 01 61 | 33 01 05 00 02 00 62
              number 2, acks 7, 6 and 4; unreliable, 1 byte: "a"; ordered, channel 1, id 5, order 2, to the end: "b"
        wire: 33 03 00 64 00 0d 00 00 00 19 00
              number 3, acks 100, 99, 97 and 96, 2.5 ms after 100 arrived; asks for nothing
        wire: 53 04 00 64 00 ff ff ff ff | 07 02 00 03 02 01 | 1f 00 00 01 00 80 80 10 20 34 12 | 0f 78 56 34 12
              acks 100 to 68, 67 to 65 and 62; credit 65536, messages up to 262144, 32 channels; a ping
        wire: 43 05 00 00 00 00 00 00 00 | 0b 10 00 04 00 9d 04 00 00 01 aa*13
              ordered, id 16, order 4, 1181 bytes in all: fragment 1, its last 13 bytes
        wire: 43 06 00 00 00 00 00 00 00 | 1d 02 0a 00 07 00 00 00 00 00 00 80 ff 1f aa*1168
              channel 2, a stream, id 10, tag 7, 2^31 bytes: fragment 4095
   ================================================================================================================ */

#if defined( NETCODE_MESSAGES )

enum nc_messages_limit_t {
    NC_MESSAGES_VERSION = 3,
    NC_MESSAGES_ACK_VALID = 0x10, /* bits of a packet's first byte */
    NC_MESSAGES_ACK_DELAY = 0x20,
    NC_MESSAGES_PLEASE_ACK = 0x40,
    NC_MESSAGES_FIXED_HEADER = 9,
    NC_FRAME_KIND = 7, /* bits of a frame's first byte */
    NC_FRAME_FRAGMENT = 8,
    NC_FRAME_CHANNEL = 0x10,
    NC_FRAME_LAST = 0x20,  /* of a MESSAGE, */
    NC_FRAME_KNOWN = 0x20, /* and of a FRAGMENT */
    NC_FRAME_ACK_RANGES = 0x07,
    NC_FRAME_PING = 0x0f,
    NC_FRAME_PONG = 0x17,
    NC_FRAME_LIMIT = 0x1f,
    NC_FRAME_CANCEL = 0x27,
    NC_FRAME_REFUSE = 0x2f,
    NC_FRAME_BROKEN = 0x37,
    NC_FRAME_IS_MESSAGE = -1,
    NC_FRAME_IS_FRAGMENT = -2,
    NC_MESSAGES_REMEMBERED = 2048, /* numbers of packets */
    NC_MESSAGES_BLOCK = 256,       /* numbers of packets, of which one is skipped */
    NC_MESSAGES_BLOCKS = 128,      /* whose skipped numbers are known: all that an ack can name */
    NC_MESSAGES_FIRST_SKIP = 32,   /* no number below it is skipped */
    NC_MESSAGES_DELAY = 1000,      /* the largest delay of an ack that is used, in 0.1 ms */
    NC_MESSAGES_IDS = 4096,
    NC_MESSAGES_RANGES = 16,
    NC_MESSAGES_REPORTS = 16, /* packets whose acks the other side may not have */
    NC_MESSAGES_REFUSED = 16, /* streams refused whose sender may not know it yet */
    NC_STREAMS_AT_ONCE = 256, /* are accepted; half as many are begun, or refusals would look like losses */
    NC_STREAMS_PER_SECOND = 1024,
    NC_MESSAGES_FRAGMENTS = 4096, /* of one message in flight */
    NC_MESSAGES_PROMPT = 4,       /* fragments of the largest message that leaves as those in one piece do */
    NC_MESSAGES_FIRST_CREDIT = 16384,
    NC_MESSAGES_LEAST_GRANT = 1024,
    NC_MESSAGES_COST = 80,        /* the overhead of a message in a buffer, in bytes */
    NC_MESSAGES_STREAM_COST = 32, /* a stream's data in a buffer */
    /* Of the receive buffer so much, or a twelfth if that is more, but at most a quarter, is not promised to reliable
       messages: it is for unreliable ones, and for handles that are not in use. */
    NC_MESSAGES_UNPROMISED = 49152,
    NC_MESSAGES_UNPROMISED_PART = 12,
    NC_MESSAGES_JUMP = 24576,
    NC_MESSAGES_AHEAD = 16384, /* packets sent after the newest acknowledged; a jump is more */
    NC_MESSAGES_QUIET = 1024,  /* after as many, a packet asks for an ack even if it need not */
    NC_MESSAGES_SMALL = 128,   /* the largest message that is repeated */
    NC_MESSAGES_REPEATS = 2,
    NC_MESSAGES_REPEATS_QUEUED = 5, /* while others fill a long queue, which loses many in a row */
    NC_MESSAGES_RETRIES = 60,       /* the most that max_retries may be; NC_FRAGMENT_TRIES has room for them */
    NC_MESSAGES_LEAST_BUFFER = 32768,
    NC_MESSAGES_LEAST_WINDOW = 16,
    NC_MESSAGES_FULL_BYTES = 1100,   /* with so many queued, a packet counts as full */
    NC_MESSAGES_CARRIED = 64,        /* messages that are remembered with a packet, and */
    NC_MESSAGES_CARRIED_LEAST = 512, /* in all, and */
    NC_MESSAGES_CARRIED_MEAN = 4,    /* with each packet of a full window */
    NC_HEAP_OVERHEAD = 19, /* at most: a block's head (8), its handle (4), and up to the next multiple of 8 (7) */
    NC_HEAP_SPARE = 4096,  /* so many free bytes between blocks are never a reason to move them */
    NC_MESSAGES_USELESS_PACKETS = 8
};

static const uint32_t NC_HEAP_FREE = 0x80000000u;
static const double NC_MESSAGES_PATIENCE = 2.0;        /* seconds without an ack */
static const double NC_MESSAGES_TIME = 1e16;           /* seconds from the caller's zero, at most */
static const double NC_MESSAGES_STEP = 1e9;            /* seconds; a longer step counts as this one */
static const double NC_MESSAGES_LONGEST = 1e14;        /* seconds; a PING has it in 0.1 ms, from a number of 64 bits */
static const double NC_MESSAGES_USELESS = 10.0;        /* seconds in which no packet could be used */
static const double NC_MESSAGES_ACK_INTERVAL = 0.0125; /* seconds between packets that only have acks */
static const double NC_MESSAGES_REORDER = 0.01;        /* seconds by which packets may overtake others at first */

static double nc_real_larger( double a, double b )
{
    return a > b ? a : b;
}

static double nc_real_smaller( double a, double b )
{
    return a < b ? a : b;
}

static uint32_t nc_u32_larger( uint32_t a, uint32_t b )
{
    return a > b ? a : b;
}

static uint32_t nc_u32_smaller( uint32_t a, uint32_t b )
{
    return a < b ? a : b;
}

/*  ---- heap: blocks of any size in one memory ----
    A new block is placed behind the last one. All blocks are moved together when the end of the memory is reached, or
    when more is free between them than in use. So all that is free can be used, except what is free before the fixed
    block. As blocks move, they are named by handles. A table at the end of the memory, which grows downwards, has the
    offset of each handle's data or, of a free handle, NC_HEAP_FREE and the next free one; handle 0 is none. It becomes
    smaller only when the heap is empty. */

typedef struct {
    uint8_t * base;
    uint32_t bytes;                /* a multiple of 8 */
    uint32_t used;                 /* by blocks */
    uint32_t end, high;            /* of the last block, and of all that there ever were */
    uint32_t handles, free_handle; /* how many entries the table has, and the first free one */
    uint32_t fixed, gap;           /* the handle of a block that must not be moved, and how much is free before it */
} nc_heap_t;

/* At the start of each block, a multiple of 8 bytes. */
typedef struct {
    uint32_t bytes, handle; /* the size of the whole block; 0 if the block is free */
} nc_block_t;

static void nc_heap_check( const nc_heap_t * heap )
{
    netcode_assert( heap->used <= heap->end && heap->end <= heap->high && heap->high <= heap->bytes );
    netcode_assert( heap->end + heap->handles * sizeof( uint32_t ) <= heap->bytes );
    netcode_assert( heap->free_handle <= heap->handles && heap->fixed <= heap->handles );
    netcode_assert( heap->used || heap->end + heap->handles == 0 );
    (void) heap;
}

static uint32_t * nc_heap_entry( const nc_heap_t * heap, uint32_t handle )
{
    return (uint32_t *) (void *) ( heap->base + heap->bytes ) - handle;
}

static nc_block_t * nc_heap_block( const nc_heap_t * heap, uint32_t offset )
{
    return (nc_block_t *) (void *) ( heap->base + offset );
}

/* Does a block have this handle now? One had it once, perhaps before the heap was empty, and its table with it. */
static int nc_heap_has( const nc_heap_t * heap, uint32_t handle )
{
    return handle <= heap->handles && *nc_heap_entry( heap, handle ) < NC_HEAP_FREE;
}

/* The address of a block's data, valid until nc_heap_fits, nc_heap_take or nc_heap_wipe_free moves blocks. */
static void * nc_heap_at( const nc_heap_t * heap, uint32_t handle )
{
    return heap->base + *nc_heap_entry( heap, handle );
}

static uint32_t nc_heap_size( const nc_heap_t * heap, uint32_t handle )
{
    return ( (nc_block_t *) nc_heap_at( heap, handle ) - 1 )->bytes;
}

/* The size of a block for so many bytes of data, and of its entry in the table. */
static uint32_t nc_heap_cost( uint32_t bytes )
{
    return ( bytes + (uint32_t) sizeof( nc_block_t ) + 7 ) / 8 * 8 + (uint32_t) sizeof( uint32_t );
}

/* Moves all blocks together, towards the start. The fixed one stays where it is, behind a free block. */
static void nc_heap_compact( nc_heap_t * heap )
{
    uint32_t to = 0;
    heap->gap = 0;
    for ( uint32_t from = 0, bytes; from < heap->end; from += bytes ) {
        nc_block_t * block = nc_heap_block( heap, from );
        bytes = block->bytes;
        if ( block->handle == 0 )
            continue;

        if ( block->handle == heap->fixed && to < from ) {
            nc_heap_block( heap, to )->bytes = heap->gap = from - to;
            nc_heap_block( heap, to )->handle = 0;
            to = from;
        }
        *nc_heap_entry( heap, block->handle ) = to + (uint32_t) sizeof( *block );
        if ( to < from )
            memmove( heap->base + to, block, bytes );
        to += bytes;
    }
    heap->end = to;
}

/* Do blocks that cost so much together fit? Then they do in any order, unless others are taken. May move blocks. */
static int nc_heap_fits( nc_heap_t * heap, uint32_t cost )
{
    uint32_t room = heap->bytes - heap->handles * (uint32_t) sizeof( uint32_t );
    if ( heap->used + heap->gap + cost > room )
        return 0;
    if ( heap->end + cost > room || ( heap->end > 2 * heap->used + NC_HEAP_SPARE && !heap->fixed ) )
        nc_heap_compact( heap );
    return heap->end + cost <= room;
}

/* Would less than 1/64 be free? Then almost every new block would move all others. */
static int nc_heap_is_full( const nc_heap_t * heap, uint32_t cost )
{
    return heap->used + cost + heap->handles * (uint32_t) sizeof( uint32_t ) > heap->bytes - heap->bytes / 64;
}

static uint32_t nc_heap_take( nc_heap_t * heap, uint32_t bytes )
{
    uint32_t handle = heap->free_handle, cost = nc_heap_cost( bytes );
    if ( !nc_heap_fits( heap, cost ) )
        return 0;

    if ( handle )
        heap->free_handle = *nc_heap_entry( heap, handle ) - NC_HEAP_FREE;
    else
        handle = ++heap->handles;
    nc_block_t * block = nc_heap_block( heap, heap->end );
    *nc_heap_entry( heap, handle ) = heap->end + (uint32_t) sizeof( *block );
    block->bytes = cost - (uint32_t) sizeof( uint32_t );
    block->handle = handle;
    heap->used += block->bytes;
    heap->end += block->bytes;
    heap->high = nc_u32_larger( heap->high, heap->end );
    return handle;
}

static void nc_heap_free( nc_heap_t * heap, uint32_t handle )
{
    nc_block_t * block = (nc_block_t *) nc_heap_at( heap, handle ) - 1;
    block->handle = 0;
    heap->used -= block->bytes;
    *nc_heap_entry( heap, handle ) = NC_HEAP_FREE + heap->free_handle;
    heap->free_handle = handle;
    if ( heap->used == 0 )
        heap->end = heap->handles = heap->free_handle = 0;
}

/* The handles of all blocks, the oldest first; 0 at the end. Blocks may be freed meanwhile, but none moved. */
static uint32_t nc_heap_next( const nc_heap_t * heap, uint32_t * at )
{
    uint32_t handle = 0;
    for ( ; *at < heap->end && !handle; *at += nc_heap_block( heap, *at )->bytes )
        handle = nc_heap_block( heap, *at )->handle;
    return handle;
}

/* Moves all blocks together and wipes what is behind them. Entries of the table have replaced what was there. */
NC_COLD static void nc_heap_wipe_free( nc_heap_t * heap )
{
    uint32_t table = heap->bytes - heap->handles * (uint32_t) sizeof( uint32_t );
    nc_heap_compact( heap );
    nc_crypto_wipe( heap->base + heap->end, nc_u32_smaller( heap->high, table ) - heap->end );
    heap->high = heap->end;
}

/* Empties the heap and wipes what it contained. */
NC_COLD static void nc_heap_reset( nc_heap_t * heap )
{
    nc_crypto_wipe( heap->base, heap->high );
    heap->used = heap->end = heap->high = heap->handles = heap->free_handle = heap->fixed = heap->gap = 0;
}

/*  ---- tree: blocks of a heap that begin with a node, found by a key of 16 bits ----
    It branches by the bits of the keys, the lowest first: the keys below a node agree with its key in as many bits as
    its depth. So a search takes 16 steps at most, whatever keys a peer chooses. */

typedef struct {
    uint32_t key, below[2];
} nc_node_t;

static nc_node_t * nc_tree_node( const nc_heap_t * heap, uint32_t handle )
{
    return (nc_node_t *) nc_heap_at( heap, handle );
}

/* Returns the link to the block with this key, or the empty link where it belongs. */
static uint32_t * nc_tree_find( const nc_heap_t * heap, uint32_t * root, uint32_t key )
{
    uint32_t * link = root;
    for ( uint32_t bits = key; *link && nc_tree_node( heap, *link )->key != key; bits >>= 1 )
        link = &nc_tree_node( heap, *link )->below[bits & 1];
    return link;
}

/* No block in the tree has this key. */
static void nc_tree_insert( const nc_heap_t * heap, uint32_t * root, uint32_t handle, uint32_t key )
{
    nc_node_t * node = nc_tree_node( heap, handle );
    uint32_t * link = nc_tree_find( heap, root, key );
    netcode_assert( *link == 0 );
    node->key = key;
    node->below[0] = node->below[1] = 0;
    *link = handle;
}

/* Removes a block, to which `link` leads; one without any below it takes its position. */
static uint32_t nc_tree_remove( const nc_heap_t * heap, uint32_t * link )
{
    nc_node_t *node = nc_tree_node( heap, *link ), *other = node;
    uint32_t handle = *link, *lowest = link;
    while ( other->below[0] | other->below[1] ) {
        lowest = &other->below[other->below[0] == 0];
        other = nc_tree_node( heap, *lowest );
    }

    uint32_t instead = *lowest;
    *lowest = 0;
    if ( other != node ) {
        memcpy( other->below, node->below, sizeof( other->below ) );
        *link = instead;
    }
    return handle;
}

/* ---- bytes: a reader that does not copy strings, and a writer whose caller has checked for space ---- */

typedef struct {
    const uint8_t * at;
    const uint8_t * end;
    int failed;
} nc_source_t;

static const uint8_t * nc_source_bytes( nc_source_t * source, uint32_t bytes )
{
    const uint8_t * data = source->at;
    if ( (size_t) ( source->end - source->at ) < bytes ) {
        source->failed = 1;
        source->at = source->end;
    } else
        source->at += bytes;
    return data;
}

static uint32_t nc_source_number( nc_source_t * source, int bytes )
{
    uint32_t value = 0;
    int fits = source->end - source->at >= bytes;
    const uint8_t * at = nc_source_bytes( source, (uint32_t) bytes );
    for ( int i = 0; fits && i < bytes; i++ )
        value |= (uint32_t) at[i] << ( 8 * i );
    return value;
}

static uint32_t nc_source_varint( nc_source_t * source )
{
    uint32_t value = 0, octet = 0x80;
    if ( source->at != source->end && *source->at < 0x80 )
        return *source->at++;

    for ( int i = 0; i < 4 && octet & 0x80; i++ ) {
        octet = nc_source_number( source, 1 );
        value |= ( octet & 0x7f ) << ( 7 * i );
        if ( i && octet == 0 )
            source->failed = 1; /* not the shortest form */
    }
    if ( octet & 0x80 )
        source->failed = 1;
    return value;
}

static uint8_t * nc_put_number( uint8_t * out, uint32_t value, int bytes )
{
    for ( ; bytes--; value >>= 8 )
        *out++ = (uint8_t) value;
    return out;
}

static uint8_t * nc_put_varint( uint8_t * out, uint32_t value )
{
    for ( ; value > 0x7f; value >>= 7 )
        *out++ = (uint8_t) ( value | 0x80 );
    *out++ = (uint8_t) value;
    return out;
}

/* ---- the object ---- */

/*  A message to be sent. After it are its data, or the stream that they are read from, and, if it is sent in
    fragments, a byte for each of those that may be in flight. */
typedef struct {
    nc_node_t node;  /* its key is the id; in a tree, if it is sent in fragments */
    uint32_t serial; /* counts the messages that were begun; 0: it was not, or nothing more is to be sent of it */
    uint8_t kind, channel, list, event, retries;
    uint8_t is_cancelled; /* CANCEL is sent instead of it; 2: one was */
    uint8_t was_lost;     /* this was reported */
    uint8_t most_repeats; /* flights after the first, or the first again, in which it may be repeated */
    uint32_t packets;     /* in flight with it, or with its CANCEL, whose acks are not overdue */
    uint32_t first_fragment, next_fragment; /* all before the first are acknowledged, all from the next on not sent */
    uint32_t lost_fragments;
    uint32_t acked_bytes;
    uint32_t fragments;      /* 0: sent in one piece */
    uint32_t next, previous; /* in its list */
    uint32_t next_event;
    uint32_t bytes;
    /*  The flights in which it was sent first, or first again, and last; or the number of the first packet with
        CANCEL. */
    uint32_t born, copied;
    uint32_t order; /* a stream's tag */
    double queued, expires;
    uint64_t receipt;
} nc_message_t;

enum { /* a fragment's byte: how often it was lost, and */
       NC_FRAGMENT_ACKED = 0x80,
       NC_FRAGMENT_LOST = 0x40,
       NC_FRAGMENT_TRIES = 0x3f
};

/*  A received message. After it are its data, or the stream that they are written to, and a bit for each fragment that
    may be in flight. */
typedef struct {
    nc_node_t node; /* by its id, while fragments are missing; then by its order, while it waits for earlier messages */
    uint32_t next;
    uint32_t bytes;
    uint32_t first_fragment; /* the first that is missing */
    uint32_t order;          /* a stream's tag */
    uint8_t channel, kind;
    int64_t id; /* -1: unreliable */
} nc_arrived_t;

/* What is kept of a stream that arrives. */
typedef struct {
    void * context;
    int ( *write_function )( void * context, uint32_t offset, const uint8_t * data, int bytes );
    void ( *end_function )( void * context, int complete );
} nc_stream_t;

typedef struct {
    uint32_t head, tail, count;
} nc_message_list_t;

/*  The lists that a message may be in, one at a time. A channel has queues of those that have something to send: what
    was lost; unreliable; of a few fragments; larger ones and streams; ordered and sequenced ones that were not begun;
    other reliable ones in one piece. Those in fragments that were begun are first in their queues, and go on before
    the next one begins. Reliable ones that were sent, and have nothing to send until an ack or a loss, are in one list
    for all channels, in the order of sending; unreliable ones that were sent are in none. */
enum {
    NC_QUEUE_LOST,
    NC_QUEUE_UNRELIABLE,
    NC_QUEUE_PROMPT,
    NC_QUEUE_LARGE,
    NC_QUEUE_IN_ORDER,
    NC_QUEUE_WHOLE,
    NC_QUEUES,
    NC_LIST_RELIABLE = NC_QUEUES,
    NC_LIST_NONE
};

typedef struct {
    /* `first`: the first channel of its priority, which has the turns of all of those. */
    uint8_t priority, weight, first;
    uint32_t kept_bytes; /* what is in the send buffer for it, unread events of the last connection included */
    nc_message_list_t queues[NC_QUEUES]; /* all fields from here on are of one connection */
    /* Ordered ones in fragments that were begun, by 1024 of their orders: those 4096 before are over. */
    uint16_t ordered_count[4];
    uint32_t queued_bytes; /* contents that were not begun */
    uint32_t served[2];    /* bytes by weight, in one piece and in fragments: the channel with the least is next */
    uint32_t turn[2];      /* of the channel `first`: what `served` was, before, of the one that was served last */
    uint32_t waiting;      /* messages that arrived before earlier ones: the root of their tree */
    uint16_t next_order, expected_order;
    int64_t newest_packet, newest_id; /* of sequenced messages that arrived: unreliable, reliable ones */
} nc_message_channel_t;

/* What a packet carries: a message in one piece, a fragment, or a CANCEL. */
typedef struct {
    uint32_t handle; /* and whether it is a fragment. Another message may have this handle since: then */
    uint32_t serial; /* differs from the message's */
} nc_carried_t;

static const uint32_t NC_CARRIED_FRAGMENT = 0x80000000u;
static const uint32_t NC_CARRIED_HANDLE = 0x7fffffffu;

/* A packet that asked for an ack. */
typedef struct {
    double time;
    uint32_t number;
    uint32_t delivered; /* the bytes that were acknowledged when it was sent */
    uint16_t carried;   /* where the first of what it carries is, modulo 2^16 */
    uint16_t bytes;
    uint16_t fragment; /* the index of its fragment, modulo 2^16 */
    uint8_t count;     /* of what it carries, */
    uint8_t flags;
} nc_sent_t;

enum { /* flags of a packet */
       NC_SENT_IN_FLIGHT = 1,
       NC_SENT_ACKED = 2,
       NC_SENT_LIMIT = 4,     /* it has a LIMIT */
       NC_SENT_ACKLESS = 8,   /* it has no acks, and no REFUSE */
       NC_SENT_OVERDUE = 16,  /* its ack is overdue: its bytes do not count as in flight any more */
       NC_SENT_FRAGMENT = 32, /* it has a fragment, */
       NC_SENT_LARGE = 64     /* which is of a large message */
};

/* A packet with acks, and the lowest number that it was the first to acknowledge. */
typedef struct {
    uint32_t low, number;
} nc_report_t;

/* Checks at compile time what the comments above say about layouts. */
NC_STATIC_ASSERT( cost_is_enough, sizeof( nc_arrived_t ) + NC_HEAP_OVERHEAD <= NC_MESSAGES_COST );
NC_STATIC_ASSERT( stream_cost_is_enough, sizeof( nc_stream_t ) <= NC_MESSAGES_STREAM_COST );
NC_STATIC_ASSERT( a_part_holds_all_handles,
                  NC_MESSAGES_UNPROMISED_PART * sizeof( uint32_t ) <= sizeof( nc_block_t ) + sizeof( nc_arrived_t ) );
NC_STATIC_ASSERT( all_that_is_carried_is_found, 4096 * NC_MESSAGES_CARRIED_MEAN <= UINT16_MAX );
NC_STATIC_ASSERT( fragments_are_found, (int) NC_MESSAGES_FRAGMENTS < UINT16_MAX / 2 );
NC_STATIC_ASSERT( tries_are_counted, (int) NC_MESSAGES_RETRIES <= (int) NC_FRAGMENT_TRIES );
NC_STATIC_ASSERT( skips_are_bytes, NC_MESSAGES_BLOCK - 1 <= UINT8_MAX );

/*  How much may be in flight: a window that follows the mean time that packets of a round trip wait in queues, after
    LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): it grows while they do not wait, shrinks in proportion to their wait,
    and lets the queue drain at times to measure the empty link. Where it departs from the draft:

    - There is no target: the window shrinks in proportion to the wait. Means over a round trip are compared, not the
      shortest, because ticks scatter what one packet sees. The start grows to five times in a round trip and ends with
      the first wait; the queue is let drain each ten seconds, to 0.6 of the window.
    - Growth is half the root of the window in packets, so that two flows at 10 MB/s come to equal shares as well.
    - A loss beyond what the link itself loses sets the window to what was delivered in the last round trips, and keeps
      it from growing beyond that for a while: at shallow queues and policers, each attempt to grow loses packets. What
      is still lost meanwhile is the link's own.
    - If the queue did not drain although this sender let it, others fill it. Then delays do not count, as their queue
      would leave nothing for a game: until the next attempt, the window grows by three tenths in a round trip, after
      a cut as well.
    - Reliable messages in one piece do not wait for the window, but for a rate of four windows in a round trip, so that
      what a burst of losses held up leaves at once; until four such round trips in a row show that the path carries
      less. Then they share window and least rate with unreliable ones, by priority. Unreliable ones, and one fragment
      at a time, leave up to the least rate of the config. */
typedef struct {
    double window; /* bytes */
    int is_starting;
    int draining;                      /* round trips until the window is judged again */
    int is_shared;                     /* others fill the queue */
    double step;                       /* bytes by which it grows in a round trip */
    uint32_t delivered;                /* bytes that were acknowledged in all, modulo 2^32 */
    double base, base_next, base_time; /* the mean round trip of an empty link, and since when it is measured */
    /* Round trips: since the queue was let drain last; ever, a quarter longer each time. */
    double shortest, shortest_ever;
    double wait;  /* in queues, in the last round trip */
    double saved; /* the window after the queue was let drain, or 0 */
    /* After a cut, until a time, or 0, the window does not grow above the ceiling. */
    double cut_time, hold_until, ceiling;
    double settled, lost, own_loss; /* packets since the last cut or hold, older ones count half; the link's own part */
    double through, through_before; /* bytes delivered in a round trip, in this round and the one before */
    double round_time, round_sum, round_off, round_through; /* of the samples in this round trip */
    uint32_t round_samples, round_ticks, round_lost;
    uint32_t full_rounds; /* in a row, that lost a quarter or waited long: 4 at most */
    double sample_time;
    double fast_time; /* when more than twice the least rate was delivered */
} nc_controller_t;

static const double NC_CONTROLLER_START = 10.0;   /* packets (RFC 6928) */
static const double NC_CONTROLLER_GENTLE = 4.0;   /* packets, beside small messages (RFC 3390 has three) */
static const double NC_CONTROLLER_LEAST = 2.0;    /* packets */
static const double NC_CONTROLLER_BESIDE = 0.3;   /* growth in a round trip, beside what others send */
static const double NC_CONTROLLER_PERIOD = 10.0;  /* seconds after which the queue is let drain */
static const double NC_CONTROLLER_HOLD = 5.0;     /* seconds without growth after a cut */
static const double NC_CONTROLLER_LOSS = 0.03;    /* the part of packets that a link may always lose */
static const double NC_CONTROLLER_MOST = 0.10;    /* the largest part that counts as the link's own */
static const double NC_CONTROLLER_LONG = 0.25;    /* seconds: packets that wait longer in queues wait long */
static const double NC_CONTROLLER_PACE = 1.05;    /* windows in a round trip */
static const double NC_CONTROLLER_URGENT = 4.0;   /* the same for reliable messages in one piece */
static const double NC_CONTROLLER_TARGET = 0.025; /* seconds of waiting that are a queue, beside a quarter of a trip */
static const double NC_CONTROLLER_ROUND = 0.08;   /* seconds: a shorter round trip counts as this one: ticks are long */

struct netcode_messages_t {
    netcode_messages_config_t config; /* as it was given to create */
    nc_log_t log;
    uint64_t session; /* of the client that it is joined to */
    double fixed_rate, least_rate, ping_seconds;
    uint32_t credit_window, window, carried_count;
    int channel_count;
    uint32_t max_send_bytes, max_receive_bytes;
    nc_message_channel_t * channels;
    /* Circular buffers: packets, from first to end, modulo their size; what they carry, up to an end; and bits of the
       ids of which something was acknowledged, or none was begun. */
    nc_sent_t * sent;
    nc_carried_t * carried;
    uint64_t * known_ids;
    nc_heap_t out, in;
    uint32_t event_head, event_tail; /* to be read by the application */
    double now;         /* seconds since begin; all fields from here on are of one connection, and start as zero */
    double caller_time; /* the caller's last time: steps back are ignored */
    /* The reason, or 0; not yet reported to the application, to the other side, */
    uint8_t broken, broken_event, broken_due;
    uint8_t peer_is_broken; /* which reported it first */
    uint8_t flush, flown;
    uint8_t fresh; /* something was queued or received since there was nothing to send */
    /* sending: messages */
    uint32_t active[NC_QUEUES];  /* channels with messages, by the queue */
    nc_message_list_t reliable;  /* sent, with nothing to send until an ack or a loss */
    uint32_t begun;              /* in fragments: a tree by their ids */
    uint32_t oldest_id, next_id; /* of those begun: the oldest that is not known, or the next */
    uint32_t queued_bytes, flight, last_serial;
    uint32_t credit_limit, credit_spent;
    uint32_t peer_max_bytes, peer_channels; /* 0 until the other side has sent them */
    uint32_t epoch, peer_epoch;             /* random numbers, drawn at the last reset of each side */
    double streams_to_begin;
    uint32_t claimant, claim; /* a large message that waits for credit, and how much of the credit is kept for it */
    uint32_t inherited;       /* the best priority of those that wait for credit: what holds credit is sent with it */
    uint32_t large_count, stream_count; /* being sent: messages in more than a few fragments and streams; streams */
    double next_expiry;
    /* sending: packets */
    uint32_t sent_first, sent_end;
    uint32_t carried_first, carried_end; /* the first packet of which it is remembered what it carries */
    uint32_t packets_in_flight, fragments_in_flight,
        large_in_flight;   /* those with a fragment, and of a large message */
    uint32_t sent_overdue; /* the acks of all before it are overdue, or came */
    uint64_t next_number, newest_acked;
    uint8_t skipped[NC_MESSAGES_BLOCKS]; /* of each block: which of its numbers; 0: none */
    double small_time;                   /* when a message of a few fragments or in one piece was sent last */
    double silent_since;        /* no ack was new since then, though packets were in flight, and no probe was sent */
    double news_time, news_gap; /* since when a new ack is awaited, and how long it takes until there is one */
    uint32_t timeouts;          /* in a row */
    uint8_t probe_due, limit_due, ping_due, pong_due;
    uint32_t pong_value;
    /* measurement and congestion */
    double rtt_min_time, ping_time, peer_delay;
    double in_flight; /* bytes */
    /* Bytes that may be sent now; the second of reliable messages in one piece. */
    double paced, urgent, least, tokens_time;
    int held_back;          /* the window or the rate holds something back */
    double reorder_seconds; /* so much later packets may overtake earlier ones */
    double reorder_time;    /* when one was last found to do so */
    nc_controller_t controller;
    double loss_long, loss_received, rate_time;
    uint64_t rate_bytes_sent, rate_bytes_received;
    /* receiving */
    int64_t newest_received;
    double useless_since; /* when the first packet was dropped since the last one that was not, */
    uint64_t useless;     /* and how many were */
    /* Of the newest packet; since when an ack is due; when the last was sent. */
    double newest_time, ack_since, ack_time;
    int acks_due;
    double long_acks_time; /* when a packet had ranges or REFUSE last: those after it leave the acks out for a while */
    uint64_t numbers[NC_MESSAGES_REMEMBERED / 64]; /* of packets that were received, modulo 2048 */
    int64_t unacked;                               /* the lowest received number that no report has, or INT64_MAX */
    nc_report_t reports[NC_MESSAGES_REPORTS];
    uint32_t report_first, report_end; /* of those that the other side may not have */
    int64_t newest_id;
    uint64_t ids[NC_MESSAGES_IDS / 64]; /* by id modulo 4096 */
    uint32_t partial;                   /* messages of which fragments are missing: a tree by their ids */
    uint16_t refused[NC_MESSAGES_REFUSED];
    uint32_t refused_count;                      /* streams whose sender may not know it yet */
    uint32_t refused_since[NC_MESSAGES_REFUSED]; /* all packets with acks from this one on have it */
    double stream_tokens;                        /* streams that may be accepted now */
    int is_busy;                                 /* a stream's functions may be called */
    uint32_t ready_head, ready_tail;             /* to be read, in order */
    uint32_t credit_granted, credit_received, credit_released;
    netcode_messages_stats_t stats; /* what is not measured when it is asked for */
};

/* Any other time is ignored. */
static int nc_messages_is_time( double time )
{
    return time >= -NC_MESSAGES_TIME && time <= NC_MESSAGES_TIME;
}

/* The contents of a PING: the time in 0.1 ms. */
static uint32_t nc_messages_stamp( const struct netcode_messages_t * messages )
{
    return (uint32_t) (int64_t) ( messages->now * 1e4 );
}

static nc_message_t * nc_message_at( const struct netcode_messages_t * messages, uint32_t handle )
{
    return (nc_message_t *) nc_heap_at( &messages->out, handle );
}

/* A circular buffer of bits; `count`, here and below, is a power of two. */
static int nc_bit_get( const uint64_t * bits, uint64_t at, uint32_t count )
{
    return (int) ( bits[( at & ( count - 1 ) ) / 64] >> at % 64 & 1 );
}

/* Was the packet received that is so many, of 2048, below the newest? */
static int nc_messages_had_number( const struct netcode_messages_t * messages, uint32_t below )
{
    return nc_bit_get( messages->numbers, (uint64_t) messages->newest_received - below, NC_MESSAGES_REMEMBERED );
}

/* Asserts the object's invariants at the start of most calls, in debug builds; costs a few comparisons. */
static void nc_messages_check( const struct netcode_messages_t * messages )
{
    netcode_assert( messages->sent_end - messages->sent_first <= messages->window );
    netcode_assert( messages->packets_in_flight <= messages->sent_end - messages->sent_first );
    nc_heap_check( &messages->out );
    nc_heap_check( &messages->in );

    netcode_assert( messages->newest_received < 0 || nc_messages_had_number( messages, 0 ) );
    netcode_assert( (int32_t) ( messages->credit_limit - messages->credit_spent ) >= 0 );
    netcode_assert( (int32_t) ( messages->credit_granted - messages->credit_received ) >= 0 );
    netcode_assert( messages->broken || !( messages->broken_event | messages->broken_due ) );

    (void) messages;
}

/* NC_REQUIRE for messages, and the check. */
#define NC_MESSAGES_BEGIN( condition, result )                                    \
    do {                                                                          \
        NC_REQUIRE_OF( messages, &messages->log, condition, #condition, result ); \
        nc_messages_check( messages );                                            \
    } while ( 0 )

static uint8_t * nc_message_data( nc_message_t * message )
{
    return (uint8_t *) ( message + 1 );
}

/* The bytes that it has in the send buffer: a stream has none. */
static uint32_t nc_message_kept( const nc_message_t * message )
{
    return message->kind == NETCODE_MESSAGE_STREAM ? 0 : message->bytes;
}

static uint8_t * nc_message_state( nc_message_t * message, uint32_t index )
{
    uint32_t data =
        message->kind == NETCODE_MESSAGE_STREAM ? (uint32_t) sizeof( netcode_messages_stream_t ) : message->bytes;
    return nc_message_data( message ) + data + index % NC_MESSAGES_FRAGMENTS;
}

static nc_arrived_t * nc_arrived_at( const struct netcode_messages_t * messages, uint32_t handle )
{
    return (nc_arrived_t *) nc_heap_at( &messages->in, handle );
}

static uint8_t * nc_arrived_data( nc_arrived_t * arrived )
{
    return (uint8_t *) ( arrived + 1 );
}

static nc_stream_t * nc_arrived_stream( nc_arrived_t * arrived )
{
    return (nc_stream_t *) (void *) nc_arrived_data( arrived );
}

/* The byte with a fragment's bit: it has arrived. */
static uint8_t * nc_arrived_bits( nc_arrived_t * arrived, uint32_t index )
{
    uint32_t data = arrived->kind == NETCODE_MESSAGE_STREAM ? (uint32_t) sizeof( nc_stream_t ) : arrived->bytes;
    return nc_arrived_data( arrived ) + data + index % NC_MESSAGES_FRAGMENTS / 8;
}

static int nc_arrived_has( nc_arrived_t * arrived, uint32_t index )
{
    return index < arrived->first_fragment || *nc_arrived_bits( arrived, index ) >> index % 8 & 1;
}

static int nc_kind_is_reliable( int kind )
{
    return kind >= NETCODE_MESSAGE_RELIABLE;
}

/* The bytes of the order in its frames, or of the tag. */
static uint32_t nc_kind_order_bytes( int kind )
{
    return kind == NETCODE_MESSAGE_STREAM ? 4 : kind == NETCODE_MESSAGE_RELIABLE_ORDERED ? 2 : 0;
}

/* 0: it is sent in one piece. A stream always has one. */
static uint32_t nc_fragments_of( int kind, uint32_t bytes )
{
    if ( kind != NETCODE_MESSAGE_STREAM && bytes <= NETCODE_MESSAGES_WHOLE_BYTES )
        return 0;
    return bytes ? ( bytes - 1 ) / NETCODE_MESSAGES_FRAGMENT_BYTES + 1 : 1;
}

/* What a reliable message costs of the credit. */
static uint32_t nc_messages_cost( int kind, uint32_t bytes )
{
    uint32_t bits = nc_u32_smaller( nc_fragments_of( kind, bytes ), NC_MESSAGES_FRAGMENTS );
    return NC_MESSAGES_COST + ( kind == NETCODE_MESSAGE_STREAM ? (uint32_t) NC_MESSAGES_STREAM_COST : bytes ) +
           ( bits + 7 ) / 8;
}

static uint32_t nc_fragment_bytes( uint32_t total, uint32_t index )
{
    return nc_u32_smaller( total - index * NETCODE_MESSAGES_FRAGMENT_BYTES, NETCODE_MESSAGES_FRAGMENT_BYTES );
}

static void nc_bit_set( uint64_t * bits, uint64_t at, uint32_t count, int value )
{
    uint64_t * word = &bits[( at & ( count - 1 ) ) / 64];
    *word = ( *word & ~( (uint64_t) 1 << at % 64 ) ) | (uint64_t) value << at % 64;
}

/* Sets a position's bit. If it is after the newest one, it is the newest from now on, and those between have none. */
static void nc_bit_take( uint64_t * bits, int64_t * newest, int64_t at, uint32_t count )
{
    if ( at - *newest >= (int64_t) count ) {
        memset( bits, 0, count / 8 );
        *newest = at;
    }
    while ( *newest < at )
        nc_bit_set( bits, ( uint64_t )++ * newest, count, 0 );
    nc_bit_set( bits, (uint64_t) at, count, 1 );
}

/* The number with these lowest 16 bits that is nearest to `newest`. */
static int64_t nc_messages_near( int64_t newest, uint32_t low )
{
    return newest + (int16_t) (uint16_t) ( low - (uint32_t) newest );
}

/* ---- lists of messages ---- */

/* Those of a few fragments leave as messages in one piece do, before larger ones of their channel. */
static int nc_message_is_prompt( const nc_message_t * message )
{
    return message->fragments <= NC_MESSAGES_PROMPT && message->kind != NETCODE_MESSAGE_STREAM;
}

/* Was a part of it acknowledged? Then the other side has begun it. */
static int nc_transfer_is_known( const nc_message_t * message )
{
    return message->acked_bytes != 0;
}

static int nc_message_queue( const nc_message_t * message )
{
    int in_order =
        message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED || message->kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED;
    return !nc_kind_is_reliable( message->kind ) ? NC_QUEUE_UNRELIABLE
           : in_order && !message->serial        ? NC_QUEUE_IN_ORDER
           : !nc_message_is_prompt( message )    ? NC_QUEUE_LARGE
           : message->fragments                  ? NC_QUEUE_PROMPT
                                                 : NC_QUEUE_WHOLE;
}

static nc_message_list_t * nc_message_list( struct netcode_messages_t * messages, const nc_message_t * message )
{
    return message->list == NC_LIST_RELIABLE ? &messages->reliable
                                             : &messages->channels[message->channel].queues[message->list];
}

/* Links the neighbours of a message in its list, or the list's ends, to `next` and `previous`. */
static void nc_message_link( struct netcode_messages_t * messages, nc_message_list_t * list,
                             const nc_message_t * message, uint32_t next, uint32_t previous )
{
    *( message->previous ? &nc_message_at( messages, message->previous )->next : &list->head ) = next;
    *( message->next ? &nc_message_at( messages, message->next )->previous : &list->tail ) = previous;
}

/* Removes a message from its list, if it is in one. */
static void nc_message_unlink( struct netcode_messages_t * messages, nc_message_t * message )
{
    uint32_t from = message->list;
    if ( from == NC_LIST_NONE )
        return;
    nc_message_list_t * list = nc_message_list( messages, message );
    nc_message_link( messages, list, message, message->next, message->previous );
    message->list = NC_LIST_NONE;
    if ( --list->count == 0 && from < NC_QUEUES )
        messages->active[from] &= ~( (uint32_t) 1 << message->channel );
}

/* Puts a message that is in no list at the start of one, or at its end. */
static void nc_message_insert( struct netcode_messages_t * messages, uint32_t handle, int to, int is_first )
{
    nc_message_t * message = nc_message_at( messages, handle );
    message->list = (uint8_t) to;
    nc_message_list_t * list = nc_message_list( messages, message );
    message->next = is_first ? list->head : 0;
    message->previous = is_first ? 0 : list->tail;
    nc_message_link( messages, list, message, handle, handle );
    list->count++;
    if ( to < NC_QUEUES )
        messages->active[to] |= (uint32_t) 1 << message->channel;
}

static void nc_message_move( struct netcode_messages_t * messages, uint32_t handle, int to, int is_first )
{
    nc_message_unlink( messages, nc_message_at( messages, handle ) );
    nc_message_insert( messages, handle, to, is_first );
}

/* Frees a message when nothing more is to be sent of it, and no event of it is unread. */
static void nc_message_release( struct netcode_messages_t * messages, uint32_t handle )
{
    const nc_message_t * message = nc_message_at( messages, handle );
    if ( message->list == NC_LIST_NONE && message->serial == 0 && message->event == 0 ) {
        messages->channels[message->channel].kept_bytes -= nc_heap_size( &messages->out, handle );
        nc_heap_free( &messages->out, handle );
    }
}

/* Reports an event. It replaces one that the application has not read yet. */
static void nc_message_report( struct netcode_messages_t * messages, uint32_t handle, int event )
{
    nc_message_t * message = nc_message_at( messages, handle );
    if ( event == NETCODE_MESSAGES_EVENT_NONE || message->receipt == 0 )
        return;

    if ( event == NETCODE_MESSAGES_EVENT_SPURIOUS && message->event == NETCODE_MESSAGES_EVENT_LOST )
        event = NETCODE_MESSAGES_EVENT_ACKED;
    if ( event == NETCODE_MESSAGES_EVENT_LOST && message->was_lost )
        return; /* given up before the connection ended */
    message->was_lost |= event == NETCODE_MESSAGES_EVENT_LOST;

    if ( message->event == 0 ) {
        message->next_event = 0;
        *( messages->event_head ? &nc_message_at( messages, messages->event_tail )->next_event
                                : &messages->event_head ) = handle;
        messages->event_tail = handle;
    }
    message->event = (uint8_t) event;
}

/* The other side has begun it: called before its first bytes count as acknowledged. */
static void nc_message_set_known( struct netcode_messages_t * messages, const nc_message_t * message )
{
    if ( nc_kind_is_reliable( message->kind ) && !nc_transfer_is_known( message ) )
        nc_bit_set( messages->known_ids, message->node.key, NC_MESSAGES_IDS, 1 );
}

/*  Is the next id within those that both sides remember? Ids of messages in fragments that are still in flight are
    left out, as if they were known. */
static int nc_messages_has_id( struct netcode_messages_t * messages )
{
    while ( messages->oldest_id != messages->next_id &&
            nc_bit_get( messages->known_ids, messages->oldest_id, NC_MESSAGES_IDS ) )
        messages->oldest_id++;
    while ( messages->next_id - messages->oldest_id < NC_MESSAGES_IDS &&
            *nc_tree_find( &messages->out, &messages->begun, messages->next_id & 0xffff ) )
        nc_bit_set( messages->known_ids, messages->next_id++, NC_MESSAGES_IDS, 1 );
    return messages->next_id - messages->oldest_id < NC_MESSAGES_IDS;
}

/*  A transfer that the other side has not begun holds up all others in the end. Once ids run low, the lost beginning of
    the oldest one does not wait for those of better priorities. */
static void nc_messages_spare_ids( struct netcode_messages_t * messages )
{
    if ( messages->next_id - messages->oldest_id < NC_MESSAGES_IDS / 4 )
        return;
    uint32_t oldest = *nc_tree_find( &messages->out, &messages->begun, messages->oldest_id & 0xffff );
    if ( oldest && nc_message_at( messages, oldest )->list == NC_QUEUE_LARGE )
        nc_message_move( messages, oldest, NC_QUEUE_LOST, 1 );
}

/* A message is begun, or dropped: it does not count as queued any more. */
static void nc_message_dequeue( struct netcode_messages_t * messages, nc_message_t * message, uint32_t handle )
{
    nc_message_unlink( messages, message );
    messages->channels[message->channel].queued_bytes -= nc_message_kept( message );
    messages->queued_bytes -= nc_message_kept( message );
    if ( handle == messages->claimant )
        messages->claimant = messages->claim = 0;
    messages->inherited = UINT32_MAX; /* messages that still wait lend it again */
}

/* Ends the sending of a message. */
static void nc_message_finish( struct netcode_messages_t * messages, uint32_t handle, int event )
{
    nc_message_t * message = nc_message_at( messages, handle );
    nc_message_channel_t * channel = &messages->channels[message->channel];
    if ( message->serial ) {
        nc_message_set_known( messages, message );
        nc_message_unlink( messages, message );
        if ( message->fragments ) {
            nc_tree_remove( &messages->out, nc_tree_find( &messages->out, &messages->begun, message->node.key ) );
            if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
                channel->ordered_count[message->order / 1024 % 4]--;
            messages->large_count -= !nc_message_is_prompt( message );
            messages->stream_count -= message->kind == NETCODE_MESSAGE_STREAM;
        }
    } else
        nc_message_dequeue( messages, message, handle );
    message->serial = 0;
    nc_message_report( messages, handle, event );
    nc_message_release( messages, handle );
}

/* ---- giving up ---- */

/* Messages can not go on: reported to the application and to the other side. */
NC_COLD static void nc_messages_break( struct netcode_messages_t * messages, int reason )
{
    if ( messages->broken )
        return;
    messages->broken = (uint8_t) reason;
    messages->broken_event = messages->broken_due = 1;
}

/*  Gives up a reliable message that was begun. The other side must be notified, or it would reserve memory for it for
    ever: from now on CANCEL is sent instead of it. An ordered channel with a gap can not continue. */
NC_COLD static void nc_message_give_up( struct netcode_messages_t * messages, uint32_t handle )
{
    nc_message_t * message = nc_message_at( messages, handle );
    if ( messages->broken )
        return;
    messages->stats.reliable_timeouts_total++;
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED ) {
        nc_messages_break( messages, NETCODE_MESSAGES_REASON_GIVEN_UP );
        return;
    }

    message->is_cancelled = 1;
    nc_message_report( messages, handle, NETCODE_MESSAGES_EVENT_LOST );
    if ( message->list != NC_QUEUE_LOST )
        nc_message_move( messages, handle, NC_QUEUE_LOST, 0 );
}

static int nc_channel_is_missing( const struct netcode_messages_t * messages, int channel )
{
    return messages->peer_channels != 0 && channel >= (int) messages->peer_channels;
}

/* Drops a message of which nothing was sent. Not an ordered one silently: its channel would have a gap. */
NC_COLD static void nc_message_expire( struct netcode_messages_t * messages, uint32_t handle )
{
    const nc_message_t * message = nc_message_at( messages, handle );
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
        nc_messages_break( messages, nc_channel_is_missing( messages, message->channel )
                                         ? NETCODE_MESSAGES_REASON_CHANNEL
                                         : NETCODE_MESSAGES_REASON_TOO_LARGE );
    messages->stats.messages_expired++;
    nc_message_finish( messages, handle, NETCODE_MESSAGES_EVENT_LOST );
}

enum nc_end_t { NC_END_EXPIRED, NC_END_STREAM, NC_END_TRIED };

/*  Ends the messages whose time to live is over, or the streams with a receipt, or tries all once more, and ends those
    that were tried too often: gives up what was begun, or drops it. Returns whether there is one. */
NC_COLD static int nc_messages_end( struct netcode_messages_t * messages, int why, uint64_t receipt )
{
    int found = 0;
    messages->next_expiry = 1e300;
    for ( uint32_t at = 0, handle; ( handle = nc_heap_next( &messages->out, &at ) ) != 0; ) {
        nc_message_t * message = nc_message_at( messages, handle );
        if ( message->is_cancelled || message->list == NC_LIST_NONE )
            continue;
        int is_over = why == NC_END_STREAM  ? message->kind == NETCODE_MESSAGE_STREAM && message->receipt == receipt
                      : why == NC_END_TRIED ? message->serial && message->retries++ >= messages->config.max_retries
                                            : message->expires <= messages->now;
        found |= is_over;
        if ( !is_over )
            messages->next_expiry = nc_real_smaller( messages->next_expiry, message->expires );
        else if ( message->serial )
            nc_message_give_up( messages, handle );
        else
            nc_message_expire( messages, handle );
    }
    return found;
}

/* ---- packets in flight ---- */

static nc_sent_t * nc_sent_at( const struct netcode_messages_t * messages, uint32_t index )
{
    return &messages->sent[index & ( messages->window - 1 )];
}

/* Entry `at`, modulo 2^16, of what packets carry. */
static nc_carried_t * nc_carried_at( const struct netcode_messages_t * messages, uint32_t at )
{
    return &messages->carried[at & ( messages->carried_count - 1 )];
}

/* So many entries are free for what another packet carries. */
static uint32_t nc_carried_space( const struct netcode_messages_t * messages )
{
    const nc_sent_t * oldest = nc_sent_at( messages, messages->carried_first );
    uint32_t used = messages->carried_first == messages->sent_end ? 0 : messages->carried_end - oldest->carried;
    return messages->carried_count - ( used & 0xffff );
}

/* The message, or NULL if nothing more is to be sent of it. */
static inline nc_message_t * nc_carried_message( const struct netcode_messages_t * messages,
                                                 const nc_carried_t * carried )
{
    uint32_t handle = carried->handle & NC_CARRIED_HANDLE;
    nc_message_t * message = nc_heap_has( &messages->out, handle ) ? nc_message_at( messages, handle ) : NULL;
    return message && message->serial == carried->serial ? message : NULL;
}

/*  All of it, or its CANCEL, has arrived; perhaps late, after it was reported lost. But a CANCEL that has arrived, too,
    perhaps was there before. */
static void nc_message_acked( struct netcode_messages_t * messages, uint32_t handle )
{
    const nc_message_t * message = nc_message_at( messages, handle );
    int has_cancel =
        message->is_cancelled == 2 && (int32_t) ( (uint32_t) messages->newest_acked - message->copied ) >= 0;
    nc_message_finish( messages, handle,
                       has_cancel          ? NETCODE_MESSAGES_EVENT_NONE
                       : message->was_lost ? NETCODE_MESSAGES_EVENT_SPURIOUS
                                           : NETCODE_MESSAGES_EVENT_ACKED );
}

/* Has a message that was begun something to send now? */
static int nc_transfer_sends( const nc_message_t * message )
{
    uint32_t end = nc_u32_smaller( message->first_fragment + NC_MESSAGES_FRAGMENTS, message->fragments );
    return message->lost_fragments || message->next_fragment != end;
}

/* In its queue, before what was not begun, as long as it has something to send. */
static void nc_transfer_place( struct netcode_messages_t * messages, nc_message_t * message, uint32_t handle )
{
    int to = nc_transfer_sends( message ) ? nc_message_queue( message ) : (int) NC_LIST_RELIABLE;
    if ( to != message->list ) {
        message->born = messages->flight;
        nc_message_move( messages, handle, to, to != NC_LIST_RELIABLE );
    }
}

static void nc_fragment_acked( struct netcode_messages_t * messages, uint32_t handle, uint32_t index )
{
    nc_message_t * message = nc_message_at( messages, handle );
    uint8_t * state = nc_message_state( message, index );
    nc_message_set_known( messages, message );
    message->lost_fragments -= ( *state & NC_FRAGMENT_LOST ) != 0;
    message->acked_bytes += nc_fragment_bytes( message->bytes, index );
    *state = NC_FRAGMENT_ACKED;
    while ( *( state = nc_message_state( message, message->first_fragment ) ) & NC_FRAGMENT_ACKED ) {
        *state = 0;
        if ( ++message->first_fragment == message->fragments ) {
            nc_message_acked( messages, handle );
            return;
        }
    }

    if ( !message->is_cancelled ) {
        nc_transfer_place( messages, message, handle );
        nc_message_report( messages, handle, NETCODE_MESSAGES_EVENT_PROGRESS );
    }
}

static void nc_fragment_lost( struct netcode_messages_t * messages, uint32_t handle, uint32_t index )
{
    nc_message_t * message = nc_message_at( messages, handle );
    uint8_t * state = nc_message_state( message, index );
    if ( message->is_cancelled )
        return;
    if ( messages->config.max_retries && ( *state & NC_FRAGMENT_TRIES ) >= messages->config.max_retries ) {
        nc_message_give_up( messages, handle );
        return;
    }

    *state = (uint8_t) ( ( *state + ( messages->config.max_retries != 0 ) ) | NC_FRAGMENT_LOST );
    message->lost_fragments++;
    nc_transfer_place( messages, message, handle );
}

/* A reliable one is sent again, unless another packet may still arrive with it. What is overdue was not a try yet. */
static void nc_whole_lost( struct netcode_messages_t * messages, uint32_t handle, int is_overdue )
{
    nc_message_t * message = nc_message_at( messages, handle );
    if ( --message->packets || message->list != NC_LIST_RELIABLE )
        return;
    if ( !is_overdue && messages->config.max_retries && message->retries >= messages->config.max_retries &&
         !message->is_cancelled ) {
        nc_message_give_up( messages, handle );
        return;
    }

    message->retries = (uint8_t) ( message->retries + !is_overdue );
    message->most_repeats = !is_overdue;
    nc_message_move( messages, handle, NC_QUEUE_LOST, 0 );
}

enum nc_sent_fate_t { NC_FATE_ARRIVED, NC_FATE_OVERDUE, NC_FATE_LOST, NC_FATE_FORGOTTEN };

/* The index of the fragment that a packet has; UINT32_MAX if it was acknowledged, with another packet. */
static uint32_t nc_sent_fragment( nc_message_t * message, const nc_sent_t * sent )
{
    uint32_t index = message->first_fragment + (uint16_t) ( sent->fragment - message->first_fragment );
    int is_acked = index >= message->next_fragment || *nc_message_state( message, index ) & NC_FRAGMENT_ACKED;
    return is_acked ? UINT32_MAX : index;
}

/*  Settles all that a packet carries. It is kept until the packet is forgotten: the ack may arrive late. Reliable
    messages are sent again when it is overdue, and then not when it is lost. */
static void nc_sent_settle_carried( struct netcode_messages_t * messages, const nc_sent_t * sent, int fate )
{
    for ( uint32_t i = 0; i < sent->count; i++ ) {
        const nc_carried_t * carried = nc_carried_at( messages, sent->carried + i );
        uint32_t handle = carried->handle & NC_CARRIED_HANDLE, index;
        nc_message_t * message = nc_carried_message( messages, carried );
        if ( !message )
            continue;

        if ( carried->handle & NC_CARRIED_FRAGMENT ) {
            index = nc_sent_fragment( message, sent );
            if ( index != UINT32_MAX && fate == NC_FATE_ARRIVED )
                nc_fragment_acked( messages, handle, index );
            else if ( index != UINT32_MAX && fate == NC_FATE_LOST )
                nc_fragment_lost( messages, handle, index );
        } else if ( fate == NC_FATE_ARRIVED )
            nc_message_acked( messages, handle );
        else if ( nc_kind_is_reliable( message->kind ) ) {
            if ( fate == NC_FATE_OVERDUE || ( fate == NC_FATE_LOST && !( sent->flags & NC_SENT_OVERDUE ) ) )
                nc_whole_lost( messages, handle, fate == NC_FATE_OVERDUE );
        } else if ( fate == NC_FATE_LOST )
            nc_message_report( messages, handle, NETCODE_MESSAGES_EVENT_LOST );
        else if ( fate == NC_FATE_FORGOTTEN )
            nc_message_finish( messages, handle, NETCODE_MESSAGES_EVENT_NONE );
    }
}

/* ---- round trips and pacing. Constants: RFC 6298 ---- */

/* Numbers of packets after the newest acknowledged one. */
static uint64_t nc_messages_gap( const struct netcode_messages_t * messages )
{
    return messages->next_number - ( messages->newest_acked + 1 );
}

/*  How long the ack of a packet takes at most. Constants: RFC 6298, section 2, with the delay and the granularity of
    RFC 9002, 5.3 and 6.2: ticks that are all alike have no variation. */
static double nc_messages_ack_time( const struct netcode_messages_t * messages )
{
    double spread = nc_real_larger( 4.0 * messages->stats.rtt_variation, 0.001 );
    return messages->stats.rtt > 0.0 ? messages->stats.rtt + spread + messages->peer_delay : 0.2;
}

/*  How long nothing is acknowledged before a probe is sent: 2 s at most, even if a round trip once took half a
    minute. Probes do not back off, as long as full ones stay within the least rate and their numbers within reach of
    the other side. */
static double nc_messages_timeout( const struct netcode_messages_t * messages )
{
    double timeout = nc_real_larger( nc_messages_ack_time( messages ), NETCODE_MAX_PACKET_SIZE / messages->least_rate );
    return nc_messages_gap( messages ) < NC_MESSAGES_AHEAD ? nc_real_smaller( timeout, NC_MESSAGES_PATIENCE )
                                                           : NC_MESSAGES_PATIENCE;
}

static void nc_messages_measure( struct netcode_messages_t * messages, double sample )
{
    double before = messages->stats.rtt_latest;
    if ( messages->stats.rtt_min <= 0.0 || messages->now - messages->rtt_min_time > 10.0 ) {
        messages->stats.rtt_min = sample;
        messages->rtt_min_time = messages->now;
        if ( messages->now - messages->reorder_time > 60.0 ) /* no packet overtook others by so much for a minute */
            messages->reorder_seconds = nc_real_larger( messages->reorder_seconds / 2.0, NC_MESSAGES_REORDER );
    }
    messages->stats.rtt_min = nc_real_smaller( messages->stats.rtt_min, sample );
    messages->stats.rtt_latest = sample;
    if ( messages->stats.rtt <= 0.0 ) {
        messages->stats.rtt = sample;
        messages->stats.rtt_variation = sample / 2.0;
        return;
    }

    double off = sample > messages->stats.rtt ? sample - messages->stats.rtt : messages->stats.rtt - sample;
    double step = sample > before ? sample - before : before - sample;
    messages->stats.rtt_variation += ( off - messages->stats.rtt_variation ) / 4.0;
    messages->stats.rtt += ( sample - messages->stats.rtt ) / 8.0;
    messages->stats.jitter += ( step - messages->stats.jitter ) / 16.0;
}

/* Bytes a second: so many windows in a round trip. */
static double nc_messages_rate( const struct netcode_messages_t * messages, double windows )
{
    if ( messages->config.congestion == NETCODE_MESSAGES_CONGESTION_NONE )
        return 1e18;
    if ( messages->config.congestion == NETCODE_MESSAGES_CONGESTION_FIXED )
        return messages->fixed_rate;
    double round_trip =
        messages->stats.rtt > 0.0 ? nc_real_larger( messages->stats.rtt, messages->stats.rtt_latest ) : 0.1;
    double rate = messages->controller.window * windows / nc_real_larger( round_trip, 0.001 );
    return nc_real_larger( rate, messages->least_rate );
}

/*  Was a quarter lost in each of four round trips in a row, or did it wait long in a queue, and a rate holds reliable
    messages back? Then more are sent than the path carries, and they obey the window. */
static int nc_messages_are_behind( const struct netcode_messages_t * messages )
{
    return messages->controller.full_rounds == 4;
}

/* Was never more than twice the least rate delivered in the last ten seconds? */
static int nc_messages_are_slow( const struct netcode_messages_t * messages )
{
    return messages->config.congestion == NETCODE_MESSAGES_CONGESTION_ADAPTIVE &&
           messages->now - messages->controller.fast_time > NC_CONTROLLER_PERIOD;
}

/* Bytes a second of reliable messages in one piece; in a long silence, the least rate. */
NC_COLD static double nc_messages_urgent_rate( const struct netcode_messages_t * messages )
{
    double rate = nc_messages_rate( messages, NC_CONTROLLER_URGENT );
    return messages->timeouts > 16 ? nc_real_smaller( rate, messages->least_rate ) : rate;
}

/*  Adds the bytes of the time that has passed. At most those of this tick or of 17 ms are kept, and always those of
    one packet: packets sent in one burst form a queue, in which other packets must wait. At most those of a quarter
    of a second are owed. */
static double nc_messages_fill( double tokens, double rate, double passed )
{
    double most = rate * nc_real_smaller( nc_real_larger( passed, 0.017 ), 0.25 );
    most = nc_real_larger( most, NETCODE_MAX_PACKET_SIZE );
    double owed = nc_real_larger( 0.25 * rate, 2.0 * NETCODE_MAX_PACKET_SIZE );
    return nc_real_larger( nc_real_smaller( tokens + passed * rate, most ), -owed );
}

static void nc_messages_fill_tokens( struct netcode_messages_t * messages )
{
    double passed = messages->now - messages->tokens_time;
    double windows = messages->controller.is_starting ? 1.25 : NC_CONTROLLER_PACE;
    messages->tokens_time = messages->now;
    double streams = passed * (double) NC_STREAMS_PER_SECOND, most = (double) NC_STREAMS_AT_ONCE;
    messages->stream_tokens = nc_real_smaller( messages->stream_tokens + streams, most );
    messages->streams_to_begin = nc_real_smaller( messages->streams_to_begin + streams / 2.0, most / 2.0 );
    messages->least = nc_messages_fill( messages->least, messages->least_rate, passed );
    messages->paced = nc_messages_fill( messages->paced, nc_messages_rate( messages, windows ), passed );
    messages->urgent = nc_messages_fill( messages->urgent, nc_messages_urgent_rate( messages ), passed );
}

/* ---- congestion: the window ---- */

/* Of a value from 1 to 1e10, by Newton's method: the C library's would need another library on some systems. */
static double nc_real_root( double value )
{
    double root = value;
    for ( int i = 0; i < 24; i++ )
        root = ( root + value / root ) / 2.0;
    return root;
}

static double nc_real_lowest( double lowest, double value )
{
    return lowest <= 0.0 || value < lowest ? value : lowest;
}

/*  Never fewer than two packets, except while the queue is let drain, nor, where others fill the queue, less than
    the least rate needs in two round trips: what is lost is in flight for a second one. But a link may carry less:
    at most twice what was delivered in a round trip. */
static void nc_controller_set( struct netcode_messages_t * messages, double window )
{
    nc_controller_t * controller = &messages->controller;
    double least = NC_CONTROLLER_LEAST * NETCODE_MAX_PACKET_SIZE;
    if ( controller->is_shared )
        least = nc_real_larger( least, 2.0 * nc_real_smaller( messages->least_rate * messages->stats.rtt,
                                                              controller->through ) );
    controller->window =
        nc_real_smaller( nc_real_larger( window, least ), (double) messages->window * NETCODE_MAX_PACKET_SIZE );
}

/*  Half of what passed may be the ack's delay: or a peer could claim more once, and for minutes it would seem that
    others fill the queue. */
static void nc_controller_sample( struct netcode_messages_t * messages, double passed, double delay )
{
    nc_controller_t * controller = &messages->controller;
    double round_trip = nc_real_larger( passed - delay, 1e-6 ), off = round_trip - messages->stats.rtt;
    controller->round_sum += round_trip;
    controller->round_off += off < 0.0 ? -off : off;
    controller->round_ticks += controller->round_samples++ == 0 || controller->sample_time < messages->now;
    controller->sample_time = messages->now;
    if ( passed > 0.0 )
        controller->shortest = nc_real_lowest( controller->shortest, nc_real_larger( round_trip, passed / 2.0 ) );
}

/* Packets sent before the last cut do not count. */
static void nc_controller_count( nc_controller_t * controller, const nc_sent_t * sent, double lost )
{
    if ( sent->time > controller->cut_time ) {
        controller->settled += 1.0;
        controller->lost += lost;
    }
}

/*  At the start it grows to three or five times in a round trip, and to 1.3 times if small messages of this connection
    would wait in the queue that this makes. */
static double nc_controller_growth( const struct netcode_messages_t * messages )
{
    const nc_controller_t * controller = &messages->controller;
    double part = controller->step / controller->window;
    if ( controller->is_starting ) {
        int others = messages->large_count && messages->now - messages->small_time < 0.25;
        return others ? NC_CONTROLLER_BESIDE : controller->window < 128.0 * NETCODE_MAX_PACKET_SIZE ? 4.0 : 2.0;
    }
    return controller->is_shared ? nc_real_larger( part, NC_CONTROLLER_BESIDE ) : part;
}

static void nc_controller_acked( struct netcode_messages_t * messages, const nc_sent_t * sent )
{
    nc_controller_t * controller = &messages->controller;
    double window = controller->window;
    controller->delivered += sent->bytes;
    nc_controller_count( controller, sent, 0.0 );
    if ( messages->config.congestion != NETCODE_MESSAGES_CONGESTION_ADAPTIVE || sent->time <= controller->cut_time ||
         controller->draining || !( messages->held_back || messages->in_flight >= window / 2.0 ) )
        return;

    double grown = window + sent->bytes * nc_controller_growth( messages );
    if ( controller->hold_until > 0.0 )
        grown = nc_real_larger( window, nc_real_smaller( grown, controller->ceiling ) );
    nc_controller_set( messages, grown );
}

/*  Cuts the window if more was lost than the link's own losses, and than chance: a queue has overflowed, perhaps one
    so short that its wait is not seen. What was delivered in a round trip fits; more does where the application did not
    send more. */
NC_COLD static void nc_controller_cut( struct netcode_messages_t * messages )
{
    nc_controller_t * controller = &messages->controller;
    double allowed =
        nc_real_smaller( nc_real_larger( 1.5 * controller->own_loss, NC_CONTROLLER_LOSS ), NC_CONTROLLER_MOST );
    if ( controller->hold_until > 0.0 )
        allowed = NC_CONTROLLER_MOST; /* the link's own losses are being measured */
    if ( controller->lost <= 2.0 + allowed * controller->settled )
        return;

    double part = messages->held_back ? 0.95 : 1.1;
    double through = part * nc_real_larger( controller->through, controller->through_before );
    through = nc_real_larger( through, 0.3 * controller->window ); /* nothing was delivered while the receiver paused */
    controller->cut_time = messages->now;
    controller->hold_until = controller->is_shared ? 0.0 : messages->now + NC_CONTROLLER_HOLD;
    controller->is_starting = 0;
    controller->settled = controller->lost = 0.0;
    if ( controller->saved > 0.0 ) /* the queue is drained: then this is the window after it */
        controller->saved = nc_real_smaller( controller->saved, through );
    else
        nc_controller_set( messages, nc_real_smaller( through, controller->window ) );
    controller->ceiling = nc_real_larger( controller->window, controller->saved );
}

/*  The queue has drained, or the start's has. Then the window is what the link carries in an empty round trip, or
    what it was before; and if a round trip was still long, the queue is that of others. */
NC_COLD static void nc_controller_drained( struct netcode_messages_t * messages, double fits )
{
    nc_controller_t * controller = &messages->controller;
    controller->draining--;
    if ( controller->saved <= 0.0 )
        nc_controller_set( messages, nc_real_larger( controller->window, fits ) );
    else if ( !controller->draining ) {
        double packet = NETCODE_MAX_PACKET_SIZE; /* its own packets make a slow link's round trip longer */
        double own = 2.0 * packet * messages->stats.rtt / nc_real_larger( controller->through_before, packet );
        controller->shortest_ever = nc_real_smaller( 1.25 * controller->shortest_ever, controller->shortest );
        controller->is_shared = controller->shortest > 1.25 * controller->shortest_ever + NC_CONTROLLER_TARGET + own;
        controller->base = controller->base_next;
        nc_controller_set( messages, controller->saved );
        controller->saved = 0.0;
    }
}

/*  The queue is let drain for two round trips: or a transfer that began when others filled it would measure their
    queue as part of the link. */
NC_COLD static void nc_controller_drain( struct netcode_messages_t * messages )
{
    nc_controller_t * controller = &messages->controller;
    double packet = NETCODE_MAX_PACKET_SIZE, window = controller->window;
    controller->shortest_ever = nc_real_lowest( controller->shortest_ever, controller->shortest );
    controller->base_time = messages->now;
    controller->base_next = controller->shortest = 0.0;
    controller->saved = 0.85 * window;
    controller->draining = 2;
    controller->window = controller->is_shared
                             ? packet /* or its own queue would count as that of others for ever */
                             : nc_real_larger( packet, nc_real_smaller( 0.6 * window, window - 4.0 * packet ) );
}

/*  The round trip is over: what was lost in it, what was delivered in one, and what the link loses while the window
    is held; a part that is more than chance of a hundred packets needs no more time. */
static void nc_controller_end_round( struct netcode_messages_t * messages )
{
    nc_controller_t * controller = &messages->controller;
    controller->through_before = controller->through;
    controller->through = controller->round_through;
    double twice = 2.0 * messages->least_rate * nc_real_larger( messages->stats.rtt, messages->stats.rtt_latest );
    if ( nc_real_smaller( controller->through, controller->through_before ) > twice )
        controller->fast_time = messages->now;
    nc_controller_cut( messages );
    int is_known = controller->settled > 95.0 && controller->lost >= 4.0;
    if ( controller->hold_until > 0.0 && ( is_known || messages->now >= controller->hold_until ) ) {
        controller->own_loss = controller->settled > 0.0 ? controller->lost / controller->settled : 0.0;
        controller->settled = controller->lost = controller->hold_until = 0.0;
    }
    if ( controller->settled > 100.0 ) {
        controller->settled /= 2.0;
        controller->lost /= 2.0;
    }
    int is_full = 3 * controller->round_lost > controller->round_samples || controller->wait > NC_CONTROLLER_LONG;
    if ( !nc_messages_are_behind( messages ) )
        controller->full_rounds = is_full ? controller->full_rounds + 1 : 0;
    controller->round_time = messages->now;
    controller->round_sum = controller->round_off = controller->round_through = 0.0;
    controller->round_samples = controller->round_ticks = controller->round_lost = 0;
}

/*  Called for acks. Means over all packets of a round trip are compared: one packet is measured in whole ticks, and
    its position in both sides' ticks would decide which transfer slows down. What scatters around the mean is not
    counted as wait: all packets of a tick have the same two chances, this side's and the other's; but while the start
    fills a queue, they scatter because of it. In a round trip the window shrinks by a quarter of the wait, as a part
    of the empty round trip. */
static void nc_controller_judge( struct netcode_messages_t * messages )
{
    nc_controller_t * controller = &messages->controller;
    uint32_t samples = controller->round_samples;
    if ( samples < 4 || messages->config.congestion != NETCODE_MESSAGES_CONGESTION_ADAPTIVE )
        return;

    uint32_t chances = controller->is_starting ? samples : 2 * controller->round_ticks;
    double mean = controller->round_sum / samples, scatter = controller->round_off / samples / nc_real_root( chances );
    double base = nc_real_lowest( controller->base, mean + scatter ), wait = mean - scatter - base;
    int fills = controller->is_starting && wait > NC_CONTROLLER_TARGET / 2.0;
    if ( !fills && messages->now - controller->round_time < messages->stats.rtt )
        return;

    controller->wait = wait;
    nc_controller_end_round( messages );
    double fits = controller->through * base / mean;
    controller->base = base;
    controller->base_next = nc_real_lowest( controller->base_next, mean + scatter );
    if ( fills ) {
        controller->is_starting = 0;
        controller->draining = 3;
        nc_controller_set( messages, nc_real_smaller( fits, controller->window ) );
    }
    if ( controller->draining )
        nc_controller_drained( messages, fits );
    else if ( messages->held_back && messages->now - controller->base_time > NC_CONTROLLER_PERIOD )
        nc_controller_drain( messages );
    else if ( !controller->is_starting && !controller->is_shared ) {
        double part = 0.25 * nc_real_larger( wait, 0.0 ) / nc_real_larger( base, NC_CONTROLLER_ROUND );
        nc_controller_set( messages, controller->window * nc_real_larger( 1.0 - part, 0.5 ) );
    }
    controller->step = nc_real_root( controller->window * NETCODE_MAX_PACKET_SIZE ) / 2.0;
}

/* ---- acknowledged and lost packets ---- */

static void nc_sent_settle( struct netcode_messages_t * messages, nc_sent_t * sent )
{
    sent->flags &= (uint8_t) ~NC_SENT_IN_FLIGHT;
    if ( !( sent->flags & NC_SENT_OVERDUE ) )
        messages->in_flight -= sent->bytes;
    messages->fragments_in_flight -= ( sent->flags & NC_SENT_FRAGMENT ) != 0;
    messages->large_in_flight -= ( sent->flags & NC_SENT_LARGE ) != 0;
    messages->packets_in_flight--;
}

/* The losses of the last 64 packets or so, and of the last 512. */
static void nc_messages_measure_loss( struct netcode_messages_t * messages, double lost )
{
    messages->stats.loss_sent += ( lost - messages->stats.loss_sent ) / 64.0;
    messages->loss_long += ( lost - messages->loss_long ) / 512.0;
}

NC_COLD static void nc_sent_lost( struct netcode_messages_t * messages, nc_sent_t * sent )
{
    nc_controller_count( &messages->controller, sent, 1.0 );
    messages->controller.round_lost++;
    messages->fresh = 1; /* next_deadline may find it */
    nc_sent_settle( messages, sent );
    nc_messages_measure_loss( messages, 1.0 );
    messages->stats.packets_lost++;
    if ( sent->flags & NC_SENT_LIMIT )
        messages->limit_due = 1;
    nc_sent_settle_carried( messages, sent, NC_FATE_LOST );
}

/* The other side has this packet, and with it the refusals from before it was sent. */
NC_COLD static void nc_messages_confirm_refusals( struct netcode_messages_t * messages, uint32_t number )
{
    uint32_t kept = 0;
    for ( uint32_t i = 0; i < messages->refused_count; i++ )
        if ( (int32_t) ( number - messages->refused_since[i] ) < 0 ) {
            messages->refused[kept] = messages->refused[i];
            messages->refused_since[kept++] = messages->refused_since[i];
        }
    messages->refused_count = kept;
}

static void nc_sent_acked( struct netcode_messages_t * messages, nc_sent_t * sent )
{
    if ( sent->flags & NC_SENT_IN_FLIGHT ) {
        nc_controller_acked( messages, sent );
        nc_sent_settle( messages, sent );
    } else { /* it was declared lost too early: from now on packets may overtake it by more */
        messages->stats.packets_lost_spuriously++;
        messages->reorder_time = messages->now;
        messages->reorder_seconds = nc_real_smaller( messages->reorder_seconds + messages->stats.rtt_min / 4.0,
                                                     nc_real_larger( messages->stats.rtt, 0.02 ) );
        if ( sent->time > messages->controller.cut_time )
            messages->controller.lost -= 1.0;
    }

    nc_messages_measure_loss( messages, 0.0 );
    sent->flags |= NC_SENT_ACKED;
    if ( messages->refused_count && !( sent->flags & NC_SENT_ACKLESS ) )
        nc_messages_confirm_refusals( messages, sent->number );
    nc_sent_settle_carried( messages, sent, NC_FATE_ARRIVED );
    sent->count = 0;
}

/*  Forgets what the oldest of the packets carries of which this is remembered. Its ack can not acknowledge that any
    more: it counts as lost. */
static void nc_carried_forget( struct netcode_messages_t * messages )
{
    nc_sent_t * sent = nc_sent_at( messages, messages->carried_first++ );
    if ( sent->flags & NC_SENT_IN_FLIGHT )
        nc_sent_settle_carried( messages, sent, NC_FATE_LOST );
    nc_sent_settle_carried( messages, sent, NC_FATE_FORGOTTEN );
    sent->count = 0;
}

/* Forgets the oldest packet. */
static void nc_sent_forget_oldest( struct netcode_messages_t * messages )
{
    if ( messages->carried_first == messages->sent_first )
        nc_carried_forget( messages );
    messages->sent_first++;
}

/* Forgets settled packets, from the oldest on; lost ones are kept for a while, because an ack may arrive late. */
static void nc_sent_forget( struct netcode_messages_t * messages )
{
    double keep = nc_real_larger( 3.0 * messages->stats.rtt, 0.5 );
    while ( messages->sent_first != messages->sent_end ) {
        const nc_sent_t * sent = nc_sent_at( messages, messages->sent_first );
        if ( sent->flags & NC_SENT_IN_FLIGHT ||
             ( !( sent->flags & NC_SENT_ACKED ) && messages->now - sent->time < keep ) )
            return;
        nc_sent_forget_oldest( messages );
    }
}

/*  A packet is lost if a later one was acknowledged that was sent longer after it than packets overtake others, or that
    long after its ack was due (RFC 8985). Returns when the next one will be, if nothing arrives. */
static double nc_messages_find_lost( struct netcode_messages_t * messages )
{
    double round_trip =
        nc_real_smaller( nc_real_larger( messages->stats.rtt, messages->stats.rtt_latest ), NC_MESSAGES_PATIENCE );
    double late = nc_real_smaller( messages->reorder_seconds, NC_MESSAGES_PATIENCE ), wait = round_trip + late;
    uint32_t end = messages->sent_end;
    while ( end != messages->sent_first && !( nc_sent_at( messages, end - 1 )->flags & NC_SENT_ACKED ) )
        end--;

    for ( uint32_t i = messages->sent_first; i != end; i++ ) {
        nc_sent_t * sent = nc_sent_at( messages, i );
        if ( !( sent->flags & NC_SENT_IN_FLIGHT ) )
            continue;
        if ( nc_sent_at( messages, end - 1 )->time - sent->time < late && messages->now - sent->time < wait )
            return sent->time + wait;
        nc_sent_lost( messages, sent );
    }
    return 1e300;
}

/*  When this packet's ack is overdue. While acks arrive as often as before, none is: one may take a tick longer than
    the one before it, because a queue has grown, or because the other side does not send one in each tick. At most
    four ticks of 60 Hz are waited for: a sender that seldom sends would notice the loss of its last packet late. */
static double nc_sent_due( const struct netcode_messages_t * messages, const nc_sent_t * sent )
{
    return nc_real_larger( sent->time + nc_messages_ack_time( messages ),
                           messages->news_time + 1.5 * nc_real_smaller( messages->news_gap, 0.067 ) );
}

/*  While the path is interrupted no ack reports what was lost. So messages in one piece are sent again each time that
    the acks of all packets with them are overdue, and are in the first packets after it. */
static void nc_messages_find_overdue( struct netcode_messages_t * messages )
{
    if ( (int32_t) ( messages->sent_overdue - messages->sent_first ) < 0 )
        messages->sent_overdue = messages->sent_first;
    for ( ; messages->sent_overdue != messages->sent_end; messages->sent_overdue++ ) {
        nc_sent_t * sent = nc_sent_at( messages, messages->sent_overdue );
        if ( nc_sent_due( messages, sent ) > messages->now )
            return;
        if ( sent->flags & NC_SENT_IN_FLIGHT ) { /* what it carries is sent again, though it may still arrive */
            messages->in_flight -= sent->bytes;
            nc_sent_settle_carried( messages, sent, NC_FATE_OVERDUE );
            sent->flags |= NC_SENT_OVERDUE;
        }
    }
}

/* What a packet acknowledges, as distances below `ack`. */
typedef struct {
    int64_t number; /* `ack`, in full */
    uint32_t ack, bits, delay;
    int valid, count;
    uint32_t high[NC_MESSAGES_RANGES], low[NC_MESSAGES_RANGES];
} nc_acks_t;

static int nc_acks_hold( const nc_acks_t * acks, uint32_t number )
{
    uint32_t below = acks->ack - number;
    if ( below <= 32 )
        return below == 0 || ( acks->bits >> ( below - 1 ) & 1 );
    for ( int i = 0; i < acks->count; i++ )
        if ( below >= acks->high[i] && below <= acks->low[i] )
            return 1;
    return 0;
}

/* The first remembered packet with this number or a later one. */
static uint32_t nc_sent_find( const struct netcode_messages_t * messages, uint32_t number )
{
    uint32_t low = messages->sent_first, high = messages->sent_end;
    while ( low != high ) {
        uint32_t middle = low + ( high - low ) / 2;
        if ( (int32_t) ( nc_sent_at( messages, middle )->number - number ) < 0 )
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*  Applies the acks of the packets that are `low` to `high` numbers below the newest acknowledged one. Returns whether
    there were any, and in `before` what had been delivered when the newest was sent. */
static int nc_messages_take_range( struct netcode_messages_t * messages, const nc_acks_t * acks, uint32_t low,
                                   uint32_t high, uint32_t * before )
{
    double delay = (double) acks->delay * 1e-4;
    int news = 0;
    for ( uint32_t i = nc_sent_find( messages, acks->ack - low ); i != messages->sent_end; i++ ) {
        nc_sent_t * sent = nc_sent_at( messages, i );
        if ( (int32_t) ( sent->number - ( acks->ack - high ) ) > 0 )
            break;
        if ( sent->flags & NC_SENT_ACKED || !nc_acks_hold( acks, sent->number ) )
            continue;

        if ( sent->flags & NC_SENT_IN_FLIGHT )
            nc_controller_sample( messages, messages->now - sent->time, delay );
        if ( sent->number == acks->ack && sent->flags & NC_SENT_IN_FLIGHT ) {
            *before = sent->delivered;
            messages->peer_delay =
                nc_real_larger( messages->peer_delay + ( delay - messages->peer_delay ) / 64.0, delay );
            nc_messages_measure( messages, nc_real_larger( messages->now - sent->time - delay, 1e-6 ) );
        }

        nc_sent_acked( messages, sent );
        news = 1;
    }
    return news;
}

static nc_report_t * nc_report_at( struct netcode_messages_t * messages, uint32_t index )
{
    return &messages->reports[index % NC_MESSAGES_REPORTS];
}

/* A packet that arrived confirms the reports up to its own: it has had all of them. */
static void nc_reports_confirm( struct netcode_messages_t * messages, const nc_acks_t * acks )
{
    uint32_t index = nc_sent_find( messages, acks->ack );
    const nc_sent_t * sent = nc_sent_at( messages, index );
    if ( index != messages->sent_end && sent->number == acks->ack && ( sent->flags & NC_SENT_ACKLESS ) )
        return; /* it had none */
    while ( messages->report_first != messages->report_end &&
            (int32_t) ( acks->ack - nc_report_at( messages, messages->report_first )->number ) >= 0 )
        messages->report_first++;
}

/* Oldest first. A packet costs a search for each range, not a look at all that is remembered. */
static void nc_messages_take_acks( struct netcode_messages_t * messages, const nc_acks_t * acks )
{
    nc_controller_t * controller = &messages->controller;
    int news = 0;
    if ( !acks->valid )
        return;
    uint32_t before = controller->delivered;
    if ( acks->number > (int64_t) messages->newest_acked ) /* none: UINT64_MAX, or -1 */
        messages->newest_acked = (uint64_t) acks->number;
    nc_reports_confirm( messages, acks );
    for ( int i = acks->count; i-- > 0; )
        news |= nc_messages_take_range( messages, acks, acks->low[i], acks->high[i], &before );
    news |= nc_messages_take_range( messages, acks, 32, 0, &before );
    controller->round_through =
        nc_real_larger( controller->round_through, (double) ( controller->delivered - before ) );

    if ( !news )
        return;

    if ( messages->timeouts )
        controller->full_rounds = 0; /* what the silence held up may leave at once */
    messages->timeouts = 0;
    if ( messages->silent_since == messages->news_time && messages->news_time < messages->now )
        messages->news_gap += ( messages->now - messages->news_time - messages->news_gap ) / 8.0;
    messages->silent_since = messages->news_time = messages->now;
    nc_controller_judge( messages );
    nc_messages_find_lost( messages );
    nc_sent_forget( messages );
}

/* ---- writing packets ---- */

typedef struct {
    uint8_t * start;
    uint8_t * at;
    uint8_t * end;
    uint8_t *last, *last_data;      /* the first byte of the last frame, if its length can be left out, and its data */
    uint32_t count, most_carried;   /* of what it carries */
    uint16_t fragment;              /* the index of its fragment */
    uint8_t flags;                  /* of what is remembered of it */
    int asks, tracked;              /* it asks for an ack; it may, because there is space to remember it */
    int unreliable, reliable, bulk; /* what the window and the rate allow */
    int within_least;               /* or a probe is due: small messages need not obey the window */
    uint32_t prompt, whole;         /* priorities below which prompt messages, and those in one piece, may leave */
    int delay, is_ackless, has_long_acks;
} nc_build_t;

static uint32_t nc_varint_bytes( uint32_t value )
{
    return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : 4;
}

/* Remembers that this packet has the message in one piece or its CANCEL, or a fragment of it. */
static void nc_build_carry( const struct netcode_messages_t * messages, nc_build_t * build, nc_message_t * message,
                            uint32_t handle, uint32_t what )
{
    nc_carried_t * carried = nc_carried_at( messages, messages->carried_end + build->count++ );
    carried->handle = handle | what;
    carried->serial = message->serial;
    message->packets += what != NC_CARRIED_FRAGMENT;
}

static uint8_t * nc_put_head( uint8_t * at, const nc_message_t * message, uint32_t flags )
{
    *at++ = (uint8_t) ( message->kind | flags | ( message->channel ? (uint32_t) NC_FRAME_CHANNEL : 0 ) );
    if ( message->channel )
        *at++ = message->channel;
    if ( nc_kind_is_reliable( message->kind ) )
        at = nc_put_number( at, message->node.key, 2 );
    return nc_put_number( at, message->order, (int) nc_kind_order_bytes( message->kind ) );
}

/*  Does it fit into the packet, or its CANCEL, and may it be remembered? Only one fragment is remembered, and the last
    of a message may have so few bytes, 4 at most, that another one would fit behind it. */
static int nc_build_fits( const nc_build_t * build, const nc_message_t * message )
{
    int reliable = nc_kind_is_reliable( message->kind ), remember = reliable || message->receipt;
    uint32_t bytes = 1u + ( message->channel != 0 ) + ( reliable ? 2 : 0 ) + nc_kind_order_bytes( message->kind ) +
                     ( message->fragments ? 8 + NETCODE_MESSAGES_FRAGMENT_BYTES
                                          : nc_varint_bytes( message->bytes ) + message->bytes );
    return build->end - build->at >= (int) ( message->is_cancelled ? 7 : bytes ) &&
           ( !remember || build->count < build->most_carried ) &&
           ( message->is_cancelled || !message->fragments || !( build->flags & NC_SENT_FRAGMENT ) );
}

static void nc_build_message( struct netcode_messages_t * messages, nc_build_t * build, uint32_t handle, int remember )
{
    nc_message_t * message = nc_message_at( messages, handle );
    build->last = build->at;
    build->at = nc_put_varint( nc_put_head( build->at, message, 0 ), message->bytes );
    build->last_data = build->at;
    memcpy( build->at, nc_message_data( message ), message->bytes );
    build->at += message->bytes;
    build->asks = 1;
    messages->small_time = messages->now;
    message->copied = messages->flight;
    if ( remember )
        nc_build_carry( messages, build, message, handle, 0 );
}

/*  How far a channel is ahead of the turn of its priority (start-time fair queueing): by what its last message counted,
    at most. A channel that had nothing to send is behind the turn by one message of its own, at most: what the others
    have sent meanwhile does not become a debt to it. */
static int32_t nc_channel_ahead( const struct netcode_messages_t * messages, nc_message_channel_t * channel, int bulk )
{
    int32_t most = ( NC_MESSAGES_PROMPT * NETCODE_MAX_PACKET_SIZE + 16 ) * 64;
    uint32_t turn = messages->channels[channel->first].turn[bulk];
    int32_t ahead = (int32_t) ( channel->served[bulk] - turn );
    if ( ahead > most || (int64_t) ahead * channel->weight < -most ) {
        ahead = -most / channel->weight;
        channel->served[bulk] = turn + (uint32_t) ahead;
    }
    return ahead;
}

static void nc_channel_serve( const struct netcode_messages_t * messages, nc_message_channel_t * channel,
                              uint32_t bytes, int bulk )
{
    int32_t ahead = nc_channel_ahead( messages, channel, bulk );
    messages->channels[channel->first].turn[bulk] += ahead > 0 ? (uint32_t) ahead : 0;
    channel->served[bulk] += ( bytes + 16 ) * 64 / channel->weight;
}

/* The next fragment of a transfer to be sent, lost ones first. */
static uint32_t nc_transfer_next( struct netcode_messages_t * messages, nc_message_t * message )
{
    uint32_t index = message->first_fragment;
    if ( message->lost_fragments == 0 )
        return message->next_fragment++;

    while ( !( *nc_message_state( message, index ) & NC_FRAGMENT_LOST ) )
        index++;
    *nc_message_state( message, index ) &= (uint8_t) ~NC_FRAGMENT_LOST;
    message->lost_fragments--;
    messages->stats.reliable_retries_total++;
    return index;
}

static void nc_build_fragment( struct netcode_messages_t * messages, nc_build_t * build, uint32_t handle )
{
    nc_message_t * message = nc_message_at( messages, handle );
    uint32_t index = nc_transfer_next( messages, message );
    uint32_t bytes = nc_fragment_bytes( message->bytes, index ), offset = index * NETCODE_MESSAGES_FRAGMENT_BYTES;
    uint32_t known = nc_transfer_is_known( message ) ? NC_FRAME_KNOWN : 0;
    nc_transfer_place( messages, message, handle );
    uint8_t * at = nc_put_head( build->at, message, NC_FRAME_FRAGMENT | known );
    at = nc_put_number( at, message->bytes, 4 );
    at = nc_put_varint( at, index );

    build->at = at + bytes;
    build->last = NULL;
    build->asks = 1;
    messages->least -= nc_message_is_prompt( message ) && !nc_messages_are_behind( messages ) ? 0 : bytes;
    if ( nc_message_is_prompt( message ) ) {
        messages->urgent -= bytes;
        messages->small_time = messages->now;
    } else {
        nc_channel_serve( messages, &messages->channels[message->channel], NETCODE_MESSAGES_FRAGMENT_BYTES, 1 );
        build->flags |= NC_SENT_LARGE;
    }
    nc_build_carry( messages, build, message, handle, NC_CARRIED_FRAGMENT );
    build->flags |= NC_SENT_FRAGMENT;
    build->fragment = (uint16_t) index;

    if ( message->kind != NETCODE_MESSAGE_STREAM )
        memcpy( at, nc_message_data( message ) + offset, bytes );
    else if ( bytes ) { /* last: this function may send messages, which can move this one */
        const netcode_messages_stream_t * stream = (netcode_messages_stream_t *) (void *) nc_message_data( message );
        stream->read_function( stream->context, offset, at, (int) bytes );
    }
}

NC_COLD static void nc_build_cancel( struct netcode_messages_t * messages, nc_build_t * build, uint32_t handle )
{
    nc_message_t * message = nc_message_at( messages, handle );
    uint32_t cost = nc_transfer_is_known( message ) ? 0 : nc_messages_cost( message->kind, message->bytes );
    *build->at++ = NC_FRAME_CANCEL;
    build->at = nc_put_varint( nc_put_number( build->at, message->node.key, 2 ), cost );
    build->last = NULL;
    build->asks = 1;
    message->copied = message->is_cancelled == 2 ? message->copied : (uint32_t) messages->next_number;
    message->is_cancelled = 2;
    nc_build_carry( messages, build, message, handle, 0 );
}

/* Writes the received numbers that are beyond the ack bits, in runs, downwards. */
NC_COLD static void nc_build_ranges( const struct netcode_messages_t * messages, nc_build_t * build, uint32_t lowest )
{
    uint8_t * count = build->at + 1;
    uint32_t reported = 33, run = 0; /* a distance below the newest: where the last run ended */
    *build->at = NC_FRAME_ACK_RANGES;
    *count = 0;
    build->at += 2;

    /* Only REFUSE is before them: all of them fit. */
    for ( uint32_t below = 33; below <= lowest + 1 && *count < NC_MESSAGES_RANGES; below++ )
        if ( below <= lowest && nc_messages_had_number( messages, below ) )
            run++;
        else if ( run ) {
            build->at = nc_put_varint( build->at, below - run - reported );
            build->at = nc_put_varint( build->at, run );
            reported = below;
            run = 0;
            ( *count )++;
        }

    if ( *count == 0 )
        build->at -= 2;
}

/*  Numbers beyond the ack bits are acknowledged by each packet until the other side has one of those that do; of
    more than 16 ranges, the newest. */
static void nc_build_acks( struct netcode_messages_t * messages, nc_build_t * build )
{
    uint32_t newest = (uint32_t) messages->newest_received, lowest = 0; /* a distance below it */
    if ( messages->unacked != INT64_MAX )
        lowest = newest - (uint32_t) messages->unacked;
    for ( uint32_t i = messages->report_first; i != messages->report_end; i++ )
        lowest = nc_u32_larger( lowest, newest - nc_report_at( messages, i )->low );
    if ( lowest > 32 )
        nc_build_ranges( messages, build, nc_u32_smaller( lowest, NC_MESSAGES_REMEMBERED - 1 ) );
}

/* A packet with acks was sent. */
static void nc_messages_acks_sent( struct netcode_messages_t * messages )
{
    if ( messages->acks_due )
        messages->ack_time = messages->now;
    messages->acks_due = 0;
    if ( messages->unacked == INT64_MAX )
        return;

    int full = messages->report_end - messages->report_first == NC_MESSAGES_REPORTS;
    nc_report_t * report = nc_report_at( messages, full ? messages->report_end - 1 : messages->report_end++ );
    uint32_t low = (uint32_t) messages->unacked;
    if ( !full || (int32_t) ( low - report->low ) < 0 )
        report->low = low;
    report->number = (uint32_t) messages->next_number;
    messages->unacked = INT64_MAX;
}

NC_COLD static void nc_build_control( struct netcode_messages_t * messages, nc_build_t * build )
{
    if ( messages->limit_due && build->tracked ) {
        messages->credit_granted = messages->credit_released + messages->credit_window;
        *build->at++ = NC_FRAME_LIMIT;
        build->at = nc_put_number( build->at, messages->credit_granted, 4 );
        build->at = nc_put_varint( build->at, messages->max_receive_bytes );
        *build->at++ = (uint8_t) messages->channel_count;
        build->at = nc_put_number( build->at, messages->epoch, 2 );
        build->flags |= NC_SENT_LIMIT;
        build->asks = 1;
        messages->limit_due = 0;
    }

    if ( messages->ping_due && build->tracked ) {
        *build->at++ = NC_FRAME_PING;
        build->at = nc_put_number( build->at, nc_messages_stamp( messages ), 4 );
        build->asks = 1;
        messages->ping_due = 0;
    }

    if ( messages->pong_due ) {
        *build->at++ = NC_FRAME_PONG;
        build->at = nc_put_number( build->at, messages->pong_value, 4 );
        messages->pong_due = 0;
    }
}

/* The first frame of each packet until the other side has one of them. */
static void nc_build_refusals( const struct netcode_messages_t * messages, nc_build_t * build )
{
    if ( !messages->refused_count )
        return;
    *build->at++ = NC_FRAME_REFUSE;
    *build->at++ = (uint8_t) messages->refused_count;
    for ( uint32_t i = 0; i < messages->refused_count; i++ )
        build->at = nc_put_number( build->at, messages->refused[i], 2 );
}

/*  How often small reliable messages are repeated: by the losses of the last few hundred packets in either direction,
    because a side that sends little measures little, and while a queue is so long that it may overflow. */
static uint32_t nc_messages_repeats( const struct netcode_messages_t * messages )
{
    if ( messages->config.repeats != NETCODE_MESSAGES_REPEATS_ADAPTIVE )
        return messages->config.repeats == NETCODE_MESSAGES_REPEATS_ALWAYS ? NC_MESSAGES_REPEATS : 0;
    double loss = nc_real_larger( messages->loss_long, messages->loss_received );
    int waits = messages->controller.wait > NC_CONTROLLER_LONG;
    if ( waits && !nc_messages_are_slow( messages ) )
        return NC_MESSAGES_REPEATS_QUEUED;
    if ( loss >= 0.01 || messages->stats.loss_sent >= 0.03 || waits )
        return NC_MESSAGES_REPEATS;
    return loss >= 0.001;
}

/* ---- choosing what is sent next ---- */

static const uint32_t nc_large_queues[NC_QUEUES] = { 0, 0, 0, UINT32_MAX, UINT32_MAX, 0 };

/* What holds credit, other than small messages and streams, has the best priority of those that wait for some. */
static uint32_t nc_message_priority( const struct netcode_messages_t * messages, const nc_message_t * message )
{
    uint32_t priority = messages->channels[message->channel].priority;
    int holds = message->serial && !nc_message_is_prompt( message ) && message->kind != NETCODE_MESSAGE_STREAM;
    return holds && messages->inherited < priority ? messages->inherited : priority;
}

/* What holds credit for another priority is before all channels of that. */
static int32_t nc_message_ahead( const struct netcode_messages_t * messages, const nc_message_t * message, int bulk )
{
    nc_message_channel_t * channel = &messages->channels[message->channel];
    return nc_message_priority( messages, message ) != channel->priority ? INT32_MIN
                                                                         : nc_channel_ahead( messages, channel, bulk );
}

/*  The message to be sent first of these queues, with messages in one piece or of a few fragments, or with larger ones;
    0: none. In one channel lost messages leave first, then unreliable ones, and the others in the order in which they
    were queued. What holds credit has the best priority of those that wait for credit, and is first in it. */
static uint32_t nc_messages_choose( const struct netcode_messages_t * messages, const uint32_t masks[NC_QUEUES],
                                    int bulk )
{
    const nc_message_t * first = NULL;
    uint32_t best = 0, least = 0;
    for ( uint32_t queue = 0; queue < NC_QUEUES; queue++ )
        for ( uint32_t mask = masks[queue] & messages->active[queue]; mask; mask &= mask - 1 ) {
            uint32_t handle = messages->channels[nc_bits_lowest_of_word( mask )].queues[queue].head;
            const nc_message_t * head = nc_message_at( messages, handle );
            if ( queue == NC_QUEUE_IN_ORDER && nc_message_is_prompt( head ) == bulk )
                continue;

            uint32_t priority = nc_message_priority( messages, head );
            if ( !first || priority < least ||
                 ( priority == least &&
                   nc_message_ahead( messages, head, bulk ) < nc_message_ahead( messages, first, bulk ) ) ||
                 ( head->channel == first->channel && first->list > NC_QUEUE_UNRELIABLE &&
                   head->queued < first->queued ) ) {
                first = head;
                best = handle;
                least = priority;
            }
        }
    return best;
}

static int nc_message_is_too_large( const struct netcode_messages_t * messages, uint32_t bytes )
{
    return messages->peer_max_bytes != 0 && bytes > messages->peer_max_bytes;
}

/* Would an ordered message be too far ahead of one in fragments that its channel sends? */
static int nc_message_is_far( const struct netcode_messages_t * messages, const nc_message_t * message )
{
    const nc_message_channel_t * channel = &messages->channels[message->channel];
    return message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED && channel->next_order % 1024 == 0 &&
           channel->ordered_count[channel->next_order / 1024 % 4] != 0;
}

/*  Is there credit for it? If not, what holds credit has its priority until there is more. Small messages could spend
    each grant before a large one's whole cost is there: while one waits, half of what is granted is kept for it. But a
    few in one piece may be in flight all the same while large ones hold credit: what they cost comes back sooner, and
    the largest message fits beside a 32nd of it. */
static int nc_message_has_credit( struct netcode_messages_t * messages, const nc_message_t * message, uint32_t handle )
{
    uint32_t kept = handle == messages->claimant ? 0 : messages->claim;
    uint32_t cost = nc_messages_cost( message->kind, message->bytes );
    if ( !message->fragments && messages->large_count > messages->stream_count &&
         ( messages->reliable.count + 1 ) * cost <= messages->peer_max_bytes / 32 )
        kept = 0;
    if ( (int32_t) ( messages->credit_limit - messages->credit_spent - cost - kept ) >= 0 )
        return 1;
    uint32_t priority = nc_message_priority( messages, message ), claimant = messages->claimant;
    messages->inherited = nc_u32_smaller( priority, messages->inherited );
    if ( message->fragments &&
         ( !claimant || priority < nc_message_priority( messages, nc_message_at( messages, claimant ) ) ) )
        messages->claimant = handle;
    return 0;
}

/* Is it within the other side's limits, and within the ids that both sides remember? */
static int nc_message_may_start( struct netcode_messages_t * messages, const nc_message_t * message, uint32_t handle )
{
    if ( !nc_kind_is_reliable( message->kind ) )
        return 1;
    /* Until its LIMIT, the other side would refuse every packet with a part of a message in fragments. */
    int waits = message->kind == NETCODE_MESSAGE_STREAM ? messages->streams_to_begin < 1.0
                                                        : message->fragments && messages->peer_max_bytes == 0;
    if ( waits || !nc_message_has_credit( messages, message, handle ) )
        return 0;
    nc_messages_spare_ids( messages );
    return nc_messages_has_id( messages ) && !nc_message_is_far( messages, message );
}

static void nc_transfer_start( struct netcode_messages_t * messages, uint32_t handle )
{
    const nc_message_t * message = nc_message_at( messages, handle );
    nc_message_channel_t * channel = &messages->channels[message->channel];
    int is_prompt = nc_message_is_prompt( message );
    double gentle = NC_CONTROLLER_GENTLE * NETCODE_MAX_PACKET_SIZE;
    if ( messages->controller.is_starting && !is_prompt && !messages->large_count &&
         messages->now - messages->small_time < 0.25 &&
         messages->controller.window <= NC_CONTROLLER_START * NETCODE_MAX_PACKET_SIZE )
        messages->controller.window = nc_real_smaller( messages->controller.window, gentle );
    nc_tree_insert( &messages->out, &messages->begun, handle, message->node.key );
    nc_message_insert( messages, handle, nc_message_queue( message ), 1 );
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
        channel->ordered_count[message->order / 1024 % 4]++;
    messages->large_count += !is_prompt;
    messages->stream_count += message->kind == NETCODE_MESSAGE_STREAM;
}

static void nc_message_start( struct netcode_messages_t * messages, uint32_t handle )
{
    nc_message_t * message = nc_message_at( messages, handle );
    nc_message_channel_t * channel = &messages->channels[message->channel];
    if ( nc_message_is_prompt( message ) )
        nc_channel_serve( messages, channel, message->bytes, 0 );
    nc_message_dequeue( messages, message, handle );
    messages->stats.messages_sent++;
    message->born = messages->flight;
    message->most_repeats = NC_MESSAGES_REPEATS_QUEUED;
    message->serial = ( messages->last_serial += 2 ) | 1; /* never 0 */
    if ( !nc_kind_is_reliable( message->kind ) )
        return;

    messages->credit_spent += nc_messages_cost( message->kind, message->bytes );
    messages->streams_to_begin -= message->kind == NETCODE_MESSAGE_STREAM;
    nc_bit_set( messages->known_ids, messages->next_id, NC_MESSAGES_IDS, 0 );
    message->node.key = messages->next_id++ & 0xffff;
    if ( message->kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
        message->order = channel->next_order++;
    if ( message->fragments )
        nc_transfer_start( messages, handle );
    else
        nc_message_insert( messages, handle, NC_LIST_RELIABLE, 0 );
}

/*  Takes the message that is next of these queues, and begins it, or begins it again. 0: there is none that may be
    sent, and has room in this packet. */
static uint32_t nc_build_next( struct netcode_messages_t * messages, const nc_build_t * build,
                               uint32_t masks[NC_QUEUES], int bulk )
{
    for ( uint32_t handle; ( handle = nc_messages_choose( messages, masks, bulk ) ) != 0; ) {
        nc_message_t * message = nc_message_at( messages, handle );
        int is_begun = message->serial != 0;
        uint32_t below = message->fragments ? build->prompt : build->whole;
        int may_leave =
            bulk || below == UINT32_MAX || message->is_cancelled || nc_message_priority( messages, message ) < below;
        /* It has waited too long, or the other side, which has sent a LIMIT since, can not take it. */
        int is_over = message->expires <= messages->now || nc_channel_is_missing( messages, message->channel ) ||
                      nc_message_is_too_large( messages, nc_message_kept( message ) );
        if ( !is_begun && is_over )
            nc_message_expire( messages, handle );
        else if ( may_leave && nc_build_fits( build, message ) &&
                  ( is_begun || nc_message_may_start( messages, message, handle ) ) ) {
            if ( !is_begun )
                nc_message_start( messages, handle );
            else if ( message->list == NC_QUEUE_LOST && ( message->is_cancelled || !message->fragments ) ) {
                messages->stats.reliable_retries_total += !message->is_cancelled;
                message->born = messages->flight;
                nc_message_move( messages, handle, NC_LIST_RELIABLE, 0 );
            }
            return handle;
        } else
            masks[message->list] &= ~( (uint32_t) 1 << message->channel );
    }
    return 0;
}

/*  Repeats small reliable messages of the last flights, so that one or two losses cost no round trip; and those that
    were lost once more, for a second loss would cost another one. A flight is all that is sent between two updates: so
    messages that are lost in a burst were not repeated in the same burst. On a slow link, beside a transfer, they fit
    into the window: or they would fill the queue that loses them. */
static void nc_build_repeats( struct netcode_messages_t * messages, nc_build_t * build )
{
    uint32_t handle = messages->reliable.tail, previous, repeats = nc_messages_repeats( messages );
    int has_company = build->asks || ( build->bulk && nc_messages_choose( messages, nc_large_queues, 1 ) );
    if ( !repeats || !build->reliable || ( messages->begun && !build->bulk && nc_messages_are_slow( messages ) ) )
        return;

    for ( ; handle; handle = previous ) {
        const nc_message_t * message = nc_message_at( messages, handle );
        uint32_t age = messages->flight - message->born;
        previous = message->previous;
        if ( age > repeats )
            return;

        if ( message->copied == messages->flight || message->bytes > NC_MESSAGES_SMALL || age > message->most_repeats ||
             message->is_cancelled || message->fragments ||
             ( message->most_repeats > 1 && !has_company ) ) /* no packet is sent for these only */
            continue;
        if ( !nc_build_fits( build, message ) || 4 * nc_carried_space( messages ) < messages->carried_count )
            return;

        nc_build_message( messages, build, handle, 1 );
        messages->stats.messages_repeated++;
    }
}

/*  Messages in one piece, lost ones first, and a fragment of a prompt one, by priority and weight. Those that are
    queued begin only once the packet is full or the application has flushed them. */
static void nc_build_queues( struct netcode_messages_t * messages, nc_build_t * build, int bulk )
{
    uint32_t handle, flushed = messages->flush || messages->queued_bytes >= NC_MESSAGES_FULL_BYTES ? UINT32_MAX : 0;
    uint32_t reliable_ones = build->reliable ? UINT32_MAX : 0;
    uint32_t masks[NC_QUEUES] = { reliable_ones,
                                  build->unreliable ? flushed : 0,
                                  build->prompt ? UINT32_MAX : 0,
                                  0,
                                  reliable_ones & flushed,
                                  reliable_ones & flushed };
    if ( bulk )
        memcpy( masks, nc_large_queues, sizeof( masks ) );

    while ( ( handle = nc_build_next( messages, build, masks, bulk ) ) != 0 ) {
        nc_message_t * message = nc_message_at( messages, handle );
        int reliable = nc_kind_is_reliable( message->kind ), remember = reliable || message->receipt;
        if ( message->is_cancelled )
            nc_build_cancel( messages, build, handle );
        else if ( message->fragments )
            nc_build_fragment( messages, build, handle );
        else {
            messages->least -= reliable && !nc_messages_are_behind( messages ) ? 0 : message->bytes;
            messages->urgent -= reliable ? message->bytes : 0; /* what is repeated later is not counted */
            nc_build_message( messages, build, handle, remember );
            if ( !remember ) {
                message->serial = 0;
                nc_message_release( messages, handle );
            }
        }
    }
}

/*  Does a fragment of a large message leave before the small ones that obey the window? They are those of a few
    fragments; beyond the least rate, unreliable and queued ones; and where more is to be sent than leaves, all. If its
    priority is better it does, but for a fragment of the others in a round trip. Else it has one turn of five beside
    those of its priority, one fragment in a round trip beside those of its own channel, and as much where more is to be
    sent than leaves, unless the link is so slow that others would wait long. */
static int nc_build_large_is_first( struct netcode_messages_t * messages, const nc_build_t * build )
{
    uint32_t behind = nc_messages_are_behind( messages ) ? UINT32_MAX : 0, handle = 0;
    uint32_t beyond = build->within_least ? behind : UINT32_MAX;
    uint32_t larges[NC_QUEUES], others[NC_QUEUES] = { behind, beyond, UINT32_MAX, 0, beyond, beyond };
    memcpy( larges, nc_large_queues, sizeof( larges ) );
    while ( build->bulk && ( handle = nc_messages_choose( messages, larges, 1 ) ) != 0 ) {
        const nc_message_t * head = nc_message_at( messages, handle );
        if ( head->serial || nc_message_may_start( messages, head, handle ) )
            break;
        larges[head->list] &= ~( (uint32_t) 1 << head->channel );
    }
    uint32_t other_handle = handle ? nc_messages_choose( messages, others, 0 ) : 0;
    if ( !other_handle )
        return 0;

    const nc_message_t *large = nc_message_at( messages, handle ), *other = nc_message_at( messages, other_handle );
    uint32_t priority = nc_message_priority( messages, large ), theirs = nc_message_priority( messages, other );
    if ( priority < theirs )
        return behind || !other->fragments || messages->fragments_in_flight > messages->large_in_flight;
    int slow = nc_messages_are_slow( messages );
    int turns = behind ? slow : other->fragments || !nc_kind_is_reliable( other->kind );
    if ( priority > theirs || !turns )
        return behind && !slow && messages->large_in_flight == 0;
    if ( large->channel == other->channel )
        return messages->large_in_flight == 0;
    nc_message_channel_t * channel = &messages->channels[large->channel];
    if ( other->serial || nc_channel_ahead( messages, channel, 0 ) >=
                              nc_channel_ahead( messages, &messages->channels[other->channel], 0 ) )
        return 0;
    nc_channel_serve( messages, channel, 4 * NETCODE_MESSAGES_FRAGMENT_BYTES, 0 );
    return 1;
}

/* Is the oldest of the packets that are remembered still in flight, and no space left for another one? */
static int nc_messages_is_full( const struct netcode_messages_t * messages )
{
    return messages->sent_end - messages->sent_first == messages->window &&
           nc_sent_at( messages, messages->sent_first )->flags & NC_SENT_IN_FLIGHT;
}

/*  Keeps three quarters free for what is to be sent, as far as the rest is lost or overdue: the other side may have
    that, but it is sent again. */
static void nc_carried_make_space( struct netcode_messages_t * messages )
{
    while ( messages->carried_first != messages->sent_end &&
            4 * nc_carried_space( messages ) < 3 * messages->carried_count ) {
        uint32_t flags = nc_sent_at( messages, messages->carried_first )->flags;
        if ( ( flags & ( NC_SENT_IN_FLIGHT | NC_SENT_OVERDUE ) ) == NC_SENT_IN_FLIGHT )
            return;
        nc_carried_forget( messages );
    }
}

static void nc_build_begin( struct netcode_messages_t * messages, nc_build_t * build, uint8_t * packet )
{
    int adaptive = messages->config.congestion == NETCODE_MESSAGES_CONGESTION_ADAPTIVE, probe = messages->probe_due;
    int free_rate = probe || messages->config.congestion == NETCODE_MESSAGES_CONGESTION_NONE;

    memset( build, 0, sizeof( *build ) );
    build->start = packet;
    build->is_ackless = messages->now < messages->long_acks_time + NC_MESSAGES_ACK_INTERVAL;
    build->delay = messages->acks_due != 0 && !build->is_ackless;
    build->at = packet + NC_MESSAGES_FIXED_HEADER + ( build->delay ? 2 : 0 );
    build->end = packet + NETCODE_MAX_PACKET_SIZE;
    const uint8_t * head_end = build->at;
    if ( !build->is_ackless )
        nc_build_refusals( messages, build );

    nc_sent_forget( messages );
    if ( probe && nc_messages_is_full( messages ) )
        nc_sent_lost( messages, nc_sent_at( messages, messages->sent_first ) );
    if ( messages->sent_end - messages->sent_first == messages->window && !nc_messages_is_full( messages ) )
        nc_sent_forget_oldest( messages );
    nc_carried_make_space( messages );
    build->tracked = !nc_messages_is_full( messages );
    build->most_carried = build->tracked ? nc_u32_smaller( nc_carried_space( messages ), NC_MESSAGES_CARRIED ) : 0;
    double most = NETCODE_MAX_PACKET_SIZE, in_flight = messages->in_flight, window = messages->controller.window;
    int behind = nc_messages_are_behind( messages );
    int within_least = adaptive && messages->least > 0.0 && !( behind && nc_messages_are_slow( messages ) );
    int open = messages->paced > 0.0 && ( !adaptive || in_flight + most <= window );
    uint32_t large = nc_messages_choose( messages, nc_large_queues, 1 );
    int is_shared = messages->large_count || large;
    build->within_least = free_rate || within_least;
    build->unreliable = build->within_least ||
                        ( behind || is_shared ? open : messages->paced > -most && ( !adaptive || in_flight < window ) );
    build->reliable = free_rate || ( behind ? within_least || open : messages->urgent > -most );
    /* While nothing is acknowledged, no fragments leave: a probe's ack reports which were lost. */
    int least = within_least && messages->fragments_in_flight == 0, silent = adaptive && messages->timeouts;
    build->bulk = messages->config.congestion == NETCODE_MESSAGES_CONGESTION_NONE || ( ( open || least ) && !silent );
    uint32_t priority = large ? nc_message_priority( messages, nc_message_at( messages, large ) ) : 0;
    if ( build->reliable && !silent )
        build->prompt = !adaptive || !is_shared || open || least ? UINT32_MAX : behind ? 0 : priority;
    build->whole = large && adaptive && !open && !build->within_least ? priority + 1 : UINT32_MAX;
    if ( !build->is_ackless )
        nc_build_acks( messages, build );
    build->has_long_acks = build->at != head_end;
}

static void nc_build_remember( struct netcode_messages_t * messages, const nc_build_t * build, uint32_t bytes )
{
    nc_sent_t * sent = nc_sent_at( messages, messages->sent_end++ );
    if ( messages->packets_in_flight == 0 )
        messages->silent_since = messages->news_time = messages->now;
    sent->time = messages->now;
    sent->number = (uint32_t) messages->next_number;
    sent->delivered = messages->controller.delivered;
    sent->carried = (uint16_t) messages->carried_end;
    sent->bytes = (uint16_t) bytes;
    sent->fragment = build->fragment;
    sent->count = (uint8_t) build->count;
    sent->flags = (uint8_t) ( NC_SENT_IN_FLIGHT | build->flags | ( build->is_ackless ? NC_SENT_ACKLESS : 0 ) );

    messages->carried_end += build->count;
    messages->in_flight += bytes;
    messages->fragments_in_flight += ( build->flags & NC_SENT_FRAGMENT ) != 0;
    messages->large_in_flight += ( build->flags & NC_SENT_LARGE ) != 0;
    messages->packets_in_flight++;
    messages->flown = 1;
}

/* Draws the number to be skipped in the block that begins; never its last, so that the block after it begins, too. */
NC_COLD static void nc_messages_draw_skip( struct netcode_messages_t * messages, uint64_t block, uint32_t lowest )
{
    uint32_t skip = (uint32_t) ( nc_crypto_random_u64() % ( NC_MESSAGES_BLOCK - 1 - lowest ) );
    messages->skipped[block % NC_MESSAGES_BLOCKS] = (uint8_t) ( lowest + skip );
}

/*  Skips a number: a peer that acknowledges it acknowledges packets that never arrived, to get a higher rate than its
    link carries. A peer can not know the number before it is missing, and then not whether that packet was lost. */
static void nc_messages_count_number( struct netcode_messages_t * messages )
{
    uint64_t block = ++messages->next_number / NC_MESSAGES_BLOCK, at = messages->next_number % NC_MESSAGES_BLOCK;
    if ( at == 0 )
        nc_messages_draw_skip( messages, block, 1 );
    else if ( at == messages->skipped[block % NC_MESSAGES_BLOCKS] )
        messages->next_number++;
}

static int nc_build_end( struct netcode_messages_t * messages, nc_build_t * build )
{
    uint32_t acks = messages->newest_received >= 0 && !build->is_ackless;
    if ( build->has_long_acks )
        messages->long_acks_time = messages->now;
    if ( build->last ) { /* the last frame: the packet's end is the message's */
        uint32_t bytes = (uint32_t) ( build->at - build->last_data ), length_bytes = nc_varint_bytes( bytes );
        *build->last |= NC_FRAME_LAST;
        memmove( build->last_data - length_bytes, build->last_data, bytes );
        build->at -= length_bytes;
    }

    build->asks |= messages->refused_count != 0 && !build->is_ackless;
    int bytes = (int) ( build->at - build->start ), asks = build->asks && build->tracked;
    int flags = NC_MESSAGES_VERSION | ( acks ? NC_MESSAGES_ACK_VALID : 0 ) |
                ( build->delay ? NC_MESSAGES_ACK_DELAY : 0 ) | ( asks ? NC_MESSAGES_PLEASE_ACK : 0 );

    uint32_t bits = 0;
    for ( uint32_t below = 32; acks && below > 0; below-- )
        bits = bits << 1 | (uint32_t) nc_messages_had_number( messages, below );
    uint8_t * at = build->start;
    *at++ = (uint8_t) flags;
    at = nc_put_number( at, (uint32_t) messages->next_number, 2 );
    at = nc_put_number( at, acks ? (uint32_t) messages->newest_received : 0, 2 );
    at = nc_put_number( at, bits, 4 );
    if ( build->delay ) {
        double delay = nc_real_smaller( ( messages->now - messages->newest_time ) * 1e4, 65535.0 );
        nc_put_number( at, (uint32_t) nc_real_larger( delay, 0.0 ), 2 );
    }

    if ( asks )
        nc_build_remember( messages, build, (uint32_t) bytes );
    if ( !build->is_ackless )
        nc_messages_acks_sent( messages );
    if ( build->asks )
        messages->paced -= bytes;

    nc_messages_count_number( messages );
    messages->stats.packets_sent++;
    messages->stats.bytes_sent += (uint64_t) bytes;
    return bytes;
}

/* ---- reading packets ---- */

typedef struct {
    int type; /* a control frame's first byte, NC_FRAME_IS_MESSAGE or NC_FRAME_IS_FRAGMENT */
    int kind, channel;
    uint32_t id, order; /* the order may be a stream's tag */
    uint32_t bytes;     /* of the message */
    uint32_t index;
    int known;      /* a fragment of a message that is begun */
    uint32_t value; /* of PING, PONG and LIMIT */
    const uint8_t * data;
    uint32_t data_bytes;
} nc_frame_t;

/* What all frames of a packet need together. */
typedef struct {
    uint32_t room, cost;     /* of the receive buffer for unreliable messages, and of the credit */
    const uint8_t * refused; /* REFUSE: its count, and the ids */
    int fragments, waits;    /* how many; the peer is to repeat the packet, because something of it has no room yet */
    nc_acks_t acks;
    int64_t newest_id; /* ids are near it, before any frame of the packet changes it */
    int64_t number;
    int asks;
    const uint8_t * frames; /* the first, behind the header */
} nc_plan_t;

static int nc_frame_read_ranges( nc_source_t * source, nc_acks_t * acks )
{
    uint32_t count = nc_source_number( source, 1 ), at = 33;
    if ( !acks->valid || acks->count || count == 0 || count > NC_MESSAGES_RANGES )
        return 0;

    for ( uint32_t i = 0; i < count; i++ ) {
        uint32_t skip = nc_source_varint( source ), run = nc_source_varint( source );
        if ( source->failed || run == 0 || skip > NC_MESSAGES_REMEMBERED || run > NC_MESSAGES_REMEMBERED ||
             at + skip + run > NC_MESSAGES_REMEMBERED )
            return 0;
        acks->high[i] = at + skip;
        acks->low[i] = at + skip + run - 1;
        at += skip + run;
    }
    acks->count = (int) count;
    return 1;
}

NC_COLD static void nc_frame_read_control( nc_source_t * source, nc_frame_t * frame )
{
    if ( frame->type == NC_FRAME_PING || frame->type == NC_FRAME_PONG )
        frame->value = nc_source_number( source, 4 );
    else if ( frame->type == NC_FRAME_LIMIT ) {
        frame->value = nc_source_number( source, 4 );
        frame->bytes = nc_source_varint( source );
        frame->channel = (int) nc_source_number( source, 1 ); /* their number */
        frame->order = nc_source_number( source, 2 );         /* the epoch */
    } else if ( frame->type == NC_FRAME_CANCEL ) {
        frame->id = nc_source_number( source, 2 );
        frame->bytes = nc_source_varint( source ); /* what it costs */
        source->failed |= frame->bytes != 0 && frame->bytes < NC_MESSAGES_COST;
    } else if ( frame->type == NC_FRAME_REFUSE ) {
        frame->data = source->at; /* its count, and the ids */
        frame->bytes = nc_source_number( source, 1 );
        nc_source_bytes( source, 2 * frame->bytes );
        source->failed |= frame->bytes == 0 || frame->bytes > NC_MESSAGES_REFUSED;
    } else if ( frame->type == NC_FRAME_BROKEN ) {
        frame->value = nc_source_number( source, 1 );
        source->failed |= frame->value == 0 || frame->value > NETCODE_MESSAGES_REASON_VERSION;
    } else
        source->failed = 1;
}

static void nc_frame_read_message( nc_source_t * source, nc_frame_t * frame, uint32_t first )
{
    if ( first & NC_FRAME_CHANNEL ) {
        frame->channel = (int) nc_source_number( source, 1 );
        source->failed |= frame->channel == 0;
    }
    frame->id = nc_source_number( source, nc_kind_is_reliable( frame->kind ) ? 2 : 0 );
    frame->order = nc_source_number( source, (int) nc_kind_order_bytes( frame->kind ) );

    if ( frame->type == NC_FRAME_IS_FRAGMENT ) {
        frame->bytes = nc_source_number( source, 4 );
        frame->index = nc_source_varint( source );
        source->failed |= !nc_kind_is_reliable( frame->kind );
        frame->known = ( first & NC_FRAME_KNOWN ) != 0;
        if ( frame->index < nc_fragments_of( frame->kind, frame->bytes ) )
            frame->data_bytes = nc_fragment_bytes( frame->bytes, frame->index );
    } else {
        frame->data_bytes =
            first & NC_FRAME_LAST ? (uint32_t) ( source->end - source->at ) : nc_source_varint( source );
        frame->bytes = frame->data_bytes;
        source->failed |= frame->bytes > NETCODE_MESSAGES_WHOLE_BYTES || frame->kind == NETCODE_MESSAGE_STREAM;
    }

    frame->data = nc_source_bytes( source, frame->data_bytes );
}

/* Reads one frame, of which at least one byte is there, in its only valid form. ACK_RANGES is read into `acks`. */
static void nc_frame_read( nc_source_t * source, nc_frame_t * frame, nc_acks_t * acks )
{
    uint32_t first = *source->at++;
    memset( frame, 0, sizeof( *frame ) );
    frame->kind = (int) ( first & NC_FRAME_KIND );
    int is_control = frame->kind > NETCODE_MESSAGE_STREAM || first >= 0x40;
    frame->type = is_control ? (int) first : first & NC_FRAME_FRAGMENT ? NC_FRAME_IS_FRAGMENT : NC_FRAME_IS_MESSAGE;
    if ( !is_control )
        nc_frame_read_message( source, frame, first );
    else if ( first == NC_FRAME_ACK_RANGES )
        source->failed |= !nc_frame_read_ranges( source, acks );
    else
        nc_frame_read_control( source, frame );
}

/* The message of which fragments are missing and that has this id, or 0. */
static uint32_t nc_partial_find( struct netcode_messages_t * messages, uint32_t id )
{
    return *nc_tree_find( &messages->in, &messages->partial, id );
}

/* Was this reliable message received, begun or cancelled? */
static int nc_messages_had( const struct netcode_messages_t * messages, int64_t id )
{
    return id < 0 || id <= messages->newest_id - (int64_t) NC_MESSAGES_IDS ||
           ( id <= messages->newest_id && nc_bit_get( messages->ids, (uint64_t) id, NC_MESSAGES_IDS ) );
}

/* Was the order of this ordered message or fragment received before, with another id? Then it is malformed input. */
static int nc_order_was_received( const struct netcode_messages_t * messages, const nc_frame_t * frame )
{
    nc_message_channel_t * channel = &messages->channels[frame->channel];
    return frame->kind == NETCODE_MESSAGE_RELIABLE_ORDERED &&
           ( (uint16_t) ( frame->order - channel->expected_order ) >= NC_MESSAGES_IDS ||
             *nc_tree_find( &messages->in, &channel->waiting, frame->order ) != 0 );
}

/* What it needs of the receive buffer: its head, its data or the stream's functions, and bits for fragments. */
static uint32_t nc_arrived_bytes( int kind, uint32_t bytes )
{
    return (uint32_t) sizeof( nc_arrived_t ) + nc_messages_cost( kind, bytes ) - NC_MESSAGES_COST;
}

/* A further fragment of a message must be as the first one that arrived. */
static int nc_frame_fits( const nc_arrived_t * arrived, const nc_frame_t * frame )
{
    return arrived->kind == frame->kind && arrived->channel == frame->channel && arrived->bytes == frame->bytes &&
           arrived->order == frame->order && (int64_t) frame->index - arrived->first_fragment < NC_MESSAGES_FRAGMENTS;
}

/* Can this frame be accepted? Changes nothing yet. */
static int nc_frame_check_message( struct netcode_messages_t * messages, const nc_frame_t * frame, nc_plan_t * plan )
{
    int fragment = frame->type == NC_FRAME_IS_FRAGMENT, kind = frame->kind;
    int64_t id = nc_messages_near( plan->newest_id, frame->id );

    if ( frame->channel >= messages->channel_count )
        return NETCODE_MESSAGES_DROP_CHANNEL;
    if ( fragment && ( ( frame->bytes > messages->max_receive_bytes && kind != NETCODE_MESSAGE_STREAM ) ||
                       frame->index >= nc_fragments_of( kind, frame->bytes ) || plan->fragments++ ) )
        return NETCODE_MESSAGES_DROP_FRAGMENT;

    if ( !nc_kind_is_reliable( kind ) ) {
        plan->room += nc_heap_cost( nc_arrived_bytes( kind, frame->bytes ) );
        return NETCODE_MESSAGES_DROP_NONE;
    }

    uint32_t partial = fragment ? nc_partial_find( messages, frame->id ) : 0;
    if ( partial && !nc_frame_fits( nc_arrived_at( messages, partial ), frame ) )
        return NETCODE_MESSAGES_DROP_FRAGMENT;
    if ( !partial && ( frame->known || nc_messages_had( messages, id ) ) )
        return NETCODE_MESSAGES_DROP_NONE;
    if ( !partial && frame->index >= NC_MESSAGES_FRAGMENTS )
        return NETCODE_MESSAGES_DROP_FRAGMENT;
    uint16_t ahead = (uint16_t) ( frame->order - messages->channels[frame->channel].expected_order );
    if ( ( !partial && id > messages->newest_id + NC_MESSAGES_IDS ) ||
         ( kind == NETCODE_MESSAGE_RELIABLE_ORDERED && ahead >= NC_MESSAGES_IDS ) )
        return NETCODE_MESSAGES_DROP_WINDOW;
    if ( nc_order_was_received( messages, frame ) )
        return NETCODE_MESSAGES_DROP_NONE;
    if ( !partial )
        plan->cost += nc_messages_cost( kind, frame->bytes );
    if ( kind == NETCODE_MESSAGE_STREAM ) /* it could not be refused, or too many begin */
        plan->waits = messages->refused_count == NC_MESSAGES_REFUSED || ( !partial && messages->stream_tokens < 1.0 );
    return NETCODE_MESSAGES_DROP_NONE;
}

NC_COLD static int nc_frame_check_cancel( struct netcode_messages_t * messages, const nc_frame_t * frame,
                                          nc_plan_t * plan )
{
    int64_t id = nc_messages_near( plan->newest_id, frame->id );
    if ( nc_partial_find( messages, frame->id ) || frame->bytes == 0 || nc_messages_had( messages, id ) )
        return NETCODE_MESSAGES_DROP_NONE;
    if ( frame->bytes > nc_messages_cost( NETCODE_MESSAGE_RELIABLE, messages->max_receive_bytes ) )
        return NETCODE_MESSAGES_DROP_LIMIT; /* or what a packet costs could wrap */
    if ( id > messages->newest_id + NC_MESSAGES_IDS )
        return NETCODE_MESSAGES_DROP_WINDOW;
    plan->cost += frame->bytes;
    return NETCODE_MESSAGES_DROP_NONE;
}

static int nc_frame_check( struct netcode_messages_t * messages, const nc_frame_t * frame, nc_plan_t * plan )
{
    if ( frame->type < 0 )
        return nc_frame_check_message( messages, frame, plan );
    if ( frame->type == NC_FRAME_CANCEL )
        return nc_frame_check_cancel( messages, frame, plan );
    if ( frame->type == NC_FRAME_LIMIT && ( (int32_t) ( frame->value - messages->credit_spent ) > 1 << 30 ||
                                            frame->bytes < NETCODE_MESSAGES_WHOLE_BYTES || frame->channel < 1 ||
                                            frame->channel > NETCODE_MESSAGES_CHANNELS ) )
        return NETCODE_MESSAGES_DROP_LIMIT;
    if ( frame->type == NC_FRAME_REFUSE ) {
        if ( plan->refused )
            return NETCODE_MESSAGES_DROP_FRAME;
        plan->refused = frame->data;
    }
    return NETCODE_MESSAGES_DROP_NONE;
}

/* ---- storing a packet's frames ---- */

static void nc_arrived_free( struct netcode_messages_t * messages, uint32_t handle )
{
    const nc_arrived_t * arrived = nc_arrived_at( messages, handle );
    if ( arrived->id >= 0 )
        messages->credit_released += nc_messages_cost( arrived->kind, arrived->bytes );
    nc_heap_free( &messages->in, handle );
}

static void nc_arrived_ready( struct netcode_messages_t * messages, uint32_t handle )
{
    nc_arrived_at( messages, handle )->next = 0;
    *( messages->ready_head ? &nc_arrived_at( messages, messages->ready_tail )->next : &messages->ready_head ) = handle;
    messages->ready_tail = handle;
}

static void nc_arrived_in_order( struct netcode_messages_t * messages, nc_message_channel_t * channel, uint32_t handle )
{
    uint32_t * link;
    nc_tree_insert( &messages->in, &channel->waiting, handle, nc_arrived_at( messages, handle )->order );
    while ( *( link = nc_tree_find( &messages->in, &channel->waiting, channel->expected_order ) ) ) {
        nc_arrived_ready( messages, nc_tree_remove( &messages->in, link ) );
        channel->expected_order++;
    }
}

/* A message is complete: its kind decides whether it can be read now, later or never. */
static void nc_arrived_deliver( struct netcode_messages_t * messages, uint32_t handle, int64_t number )
{
    const nc_arrived_t * arrived = nc_arrived_at( messages, handle );
    nc_message_channel_t * channel = &messages->channels[arrived->channel];
    int kind = arrived->kind, reliable = nc_kind_is_reliable( kind );
    int is_sequenced = kind == NETCODE_MESSAGE_UNRELIABLE_SEQUENCED || kind == NETCODE_MESSAGE_RELIABLE_SEQUENCED;
    int64_t * newest = reliable ? &channel->newest_id : &channel->newest_packet;
    int64_t own = reliable ? arrived->id : number;

    if ( kind == NETCODE_MESSAGE_RELIABLE_ORDERED )
        nc_arrived_in_order( messages, channel, handle );
    else if ( is_sequenced && own < *newest ) {
        messages->stats.messages_outdated++;
        nc_arrived_free( messages, handle );
    } else {
        *newest = is_sequenced ? own : *newest;
        nc_arrived_ready( messages, handle );
    }
}

static uint32_t nc_arrived_make( struct netcode_messages_t * messages, const nc_frame_t * frame, int64_t id )
{
    uint32_t handle = nc_heap_take( &messages->in, nc_arrived_bytes( frame->kind, frame->bytes ) );
    uint32_t fragments = nc_fragments_of( frame->kind, frame->bytes );
    if ( !handle )
        return 0;
    if ( id >= 0 ) {
        nc_bit_take( messages->ids, &messages->newest_id, id, NC_MESSAGES_IDS );
        messages->credit_received += nc_messages_cost( frame->kind, frame->bytes );
    }

    nc_arrived_t * arrived = nc_arrived_at( messages, handle );
    arrived->bytes = frame->bytes;
    arrived->first_fragment = 0;
    arrived->id = id;
    arrived->order = frame->order;
    arrived->channel = (uint8_t) frame->channel;
    arrived->kind = (uint8_t) frame->kind;

    if ( fragments )
        memset( nc_arrived_bits( arrived, 0 ), 0, ( nc_u32_smaller( fragments, NC_MESSAGES_FRAGMENTS ) + 7 ) / 8 );
    else if ( frame->bytes )
        memcpy( nc_arrived_data( arrived ), frame->data, frame->bytes );
    return handle;
}

/* The stream begins, and the application takes it or not. */
NC_COLD static int nc_stream_accept( struct netcode_messages_t * messages, nc_arrived_t * arrived )
{
    nc_stream_t * kept = nc_arrived_stream( arrived );
    netcode_messages_stream_t stream;
    memset( &stream, 0, sizeof( stream ) );
    stream.channel = arrived->channel;
    stream.bytes = arrived->bytes;
    stream.tag = arrived->order;
    messages->stream_tokens -= 1.0;

    int is_wanted = messages->config.accept_stream_function &&
                    messages->config.accept_stream_function( messages->config.accept_stream_context, &stream ) == 1 &&
                    stream.write_function;
    kept->context = stream.context;
    kept->write_function = stream.write_function;
    kept->end_function = is_wanted ? stream.end_function : NULL;
    return is_wanted;
}

/* No more of a transfer is to arrive. A stream's functions are not called any more. */
NC_COLD static void nc_transfer_close( struct netcode_messages_t * messages, uint32_t handle, int complete )
{
    nc_arrived_t * arrived = nc_arrived_at( messages, handle );
    nc_tree_remove( &messages->in, nc_tree_find( &messages->in, &messages->partial, arrived->node.key ) );
    if ( arrived->kind == NETCODE_MESSAGE_STREAM ) {
        const nc_stream_t * stream = nc_arrived_stream( arrived );
        messages->stats.messages_received += (uint64_t) complete;
        if ( stream->end_function )
            stream->end_function( stream->context, complete );
    }
    if ( arrived->kind == NETCODE_MESSAGE_STREAM || !complete )
        nc_arrived_free( messages, handle );
}

/* Stores a fragment's data. Returns whether the transfer goes on. */
static int nc_fragment_store( nc_arrived_t * arrived, const nc_frame_t * frame )
{
    uint32_t offset = frame->index * NETCODE_MESSAGES_FRAGMENT_BYTES;
    if ( arrived->kind != NETCODE_MESSAGE_STREAM )
        memcpy( nc_arrived_data( arrived ) + offset, frame->data, frame->data_bytes );
    else if ( frame->data_bytes ) {
        const nc_stream_t * stream = nc_arrived_stream( arrived );
        return stream->write_function( stream->context, offset, frame->data, (int) frame->data_bytes ) == 1;
    }
    return 1;
}

static void nc_messages_take_fragment( struct netcode_messages_t * messages, const nc_frame_t * frame, int64_t id,
                                       int64_t number )
{
    uint32_t handle = nc_partial_find( messages, frame->id ), index = frame->index;
    int begins = !handle;
    if ( begins ) {
        handle = nc_arrived_make( messages, frame, id );
        nc_tree_insert( &messages->in, &messages->partial, handle, frame->id );
    }

    nc_arrived_t * arrived = nc_arrived_at( messages, handle );
    if ( !begins && nc_arrived_has( arrived, index ) ) {
        messages->stats.messages_duplicate++;
        return;
    }
    if ( ( begins && frame->kind == NETCODE_MESSAGE_STREAM && !nc_stream_accept( messages, arrived ) ) ||
         !nc_fragment_store( arrived, frame ) ) { /* REFUSE is in all packets until one of them is acknowledged */
        messages->refused_since[messages->refused_count] = (uint32_t) messages->next_number;
        messages->refused[messages->refused_count++] = (uint16_t) frame->id;
        nc_transfer_close( messages, handle, 0 );
        messages->acks_due += 2;
        return;
    }

    uint32_t fragments = nc_fragments_of( frame->kind, frame->bytes );
    *nc_arrived_bits( arrived, index ) |= (uint8_t) ( 1 << index % 8 );
    for ( index = arrived->first_fragment; index < fragments && nc_arrived_has( arrived, index ); index++ )
        *nc_arrived_bits( arrived, index ) &= ( uint8_t ) ~( 1 << index % 8 );
    arrived->first_fragment = index;
    if ( index < fragments )
        return;

    nc_transfer_close( messages, handle, 1 );
    if ( frame->kind != NETCODE_MESSAGE_STREAM )
        nc_arrived_deliver( messages, handle, number );
}

static void nc_messages_take_message( struct netcode_messages_t * messages, const nc_frame_t * frame,
                                      const nc_plan_t * plan )
{
    int fragment = frame->type == NC_FRAME_IS_FRAGMENT, reliable = nc_kind_is_reliable( frame->kind );
    int64_t id = reliable ? nc_messages_near( plan->newest_id, frame->id ) : -1;

    if ( reliable && ( ( ( frame->known || nc_messages_had( messages, id ) ) &&
                         !( fragment && nc_partial_find( messages, frame->id ) ) ) ||
                       nc_order_was_received( messages, frame ) ) )
        messages->stats.messages_duplicate++;
    else if ( fragment )
        nc_messages_take_fragment( messages, frame, id, plan->number );
    else {
        uint32_t handle = reliable || plan->room ? nc_arrived_make( messages, frame, id ) : 0;
        if ( handle )
            nc_arrived_deliver( messages, handle, plan->number );
        else
            messages->stats.messages_unstored++;
    }
}

NC_COLD static void nc_messages_take_cancel( struct netcode_messages_t * messages, const nc_frame_t * frame,
                                             const nc_plan_t * plan )
{
    int64_t id = nc_messages_near( plan->newest_id, frame->id );
    uint32_t partial = nc_partial_find( messages, frame->id );
    if ( partial )
        nc_transfer_close( messages, partial, 0 );
    else if ( frame->bytes != 0 && !nc_messages_had( messages, id ) ) {
        nc_bit_take( messages->ids, &messages->newest_id, id, NC_MESSAGES_IDS );
        messages->credit_received += frame->bytes;
        messages->credit_released += frame->bytes;
    }
}

NC_COLD static void nc_messages_grant( struct netcode_messages_t * messages, uint32_t limit )
{
    uint32_t more = limit - messages->credit_limit;
    if ( (int32_t) ( limit - messages->credit_spent ) <= (int32_t) ( messages->credit_limit - messages->credit_spent ) )
        return;
    messages->credit_limit = limit;
    messages->inherited = UINT32_MAX;
    if ( messages->claimant ) {
        const nc_message_t * claimant = nc_message_at( messages, messages->claimant );
        uint32_t all = nc_messages_cost( claimant->kind, claimant->bytes );
        messages->claim = nc_u32_smaller( messages->claim + more / 2, all );
    }
}

static void nc_frame_take( struct netcode_messages_t * messages, const nc_frame_t * frame, const nc_plan_t * plan )
{
    if ( frame->type < 0 )
        nc_messages_take_message( messages, frame, plan );
    else if ( frame->type == NC_FRAME_CANCEL )
        nc_messages_take_cancel( messages, frame, plan );
    else if ( frame->type == NC_FRAME_PING ) {
        messages->pong_due = 1;
        messages->pong_value = frame->value;
    } else if ( frame->type == NC_FRAME_PONG ) {
        uint32_t passed = nc_messages_stamp( messages ) - frame->value;
        if ( passed < 600000 )
            messages->stats.ping = (double) passed * 1e-4;
    } else if ( frame->type == NC_FRAME_LIMIT ) {
        if ( messages->peer_channels && messages->peer_epoch != frame->order )
            nc_messages_break( messages, NETCODE_MESSAGES_REASON_OUT_OF_STEP );
        messages->peer_epoch = frame->order;
        nc_messages_grant( messages, frame->value );
        messages->peer_max_bytes = frame->bytes;
        messages->peer_channels = (uint32_t) frame->channel;
    } else if ( frame->type == NC_FRAME_BROKEN ) {
        nc_messages_break( messages, (int) frame->value );
        messages->broken_due = 0;
        messages->peer_is_broken = 1;
    }
}

static int nc_messages_read_header( struct netcode_messages_t * messages, nc_source_t * source, nc_plan_t * plan )
{
    uint32_t flags = nc_source_number( source, 1 ), seq = nc_source_number( source, 2 );
    nc_acks_t * acks = &plan->acks;
    uint32_t ack = nc_source_number( source, 2 );
    acks->bits = nc_source_number( source, 4 );
    acks->valid = ( flags & NC_MESSAGES_ACK_VALID ) != 0;

    /* Limited: a peer could claim a long delay to get a higher rate. */
    if ( flags & NC_MESSAGES_ACK_DELAY )
        acks->delay = nc_u32_smaller( nc_source_number( source, 2 ), NC_MESSAGES_DELAY );

    plan->asks = ( flags & NC_MESSAGES_PLEASE_ACK ) != 0;
    if ( !source->failed && ( flags & 0x0f ) != NC_MESSAGES_VERSION )
        return NETCODE_MESSAGES_DROP_VERSION;
    if ( source->failed || flags & 0x80 || ( !acks->valid && ( ack || acks->bits || flags & NC_MESSAGES_ACK_DELAY ) ) )
        return NETCODE_MESSAGES_DROP_HEADER;

    plan->number = nc_messages_near( messages->newest_received, seq );
    int64_t below = messages->newest_received - plan->number;
    if ( below < -NC_MESSAGES_JUMP )
        return NETCODE_MESSAGES_DROP_WINDOW;
    if ( below >= NC_MESSAGES_REMEMBERED || plan->number < 0 )
        return NETCODE_MESSAGES_DROP_OLD;
    if ( below >= 0 && nc_messages_had_number( messages, (uint32_t) below ) )
        return NETCODE_MESSAGES_DROP_DUPLICATE;

    if ( acks->valid ) {
        int64_t newest = (int64_t) messages->next_number - 1, acked = nc_messages_near( newest, ack );
        if ( acked > newest || acked < 0 || ( acked < 32 && acks->bits >> acked ) )
            return NETCODE_MESSAGES_DROP_ACK;
        acks->ack = (uint32_t) ( acks->number = acked );
    }
    return NETCODE_MESSAGES_DROP_NONE;
}

/* Does it acknowledge a skipped number? */
static int nc_messages_acks_skipped( const struct netcode_messages_t * messages, const nc_acks_t * acks )
{
    uint64_t block = (uint64_t) acks->number / NC_MESSAGES_BLOCK, newest = messages->next_number / NC_MESSAGES_BLOCK;
    uint64_t blocks = acks->count ? NC_MESSAGES_REMEMBERED / NC_MESSAGES_BLOCK + 1 : 2; /* that acks can reach */
    for ( ; acks->valid && blocks-- && newest - block < NC_MESSAGES_BLOCKS; block-- ) {
        uint32_t skipped = messages->skipped[block % NC_MESSAGES_BLOCKS];
        if ( skipped && nc_acks_hold( acks, (uint32_t) block * NC_MESSAGES_BLOCK + skipped ) )
            return 1;
    }
    return 0;
}

/* Checks all of a packet, and whether all of it can be stored. */
static int nc_messages_check_packet( struct netcode_messages_t * messages, nc_source_t * source, nc_plan_t * plan )
{
    nc_frame_t frame;
    int reason = nc_messages_read_header( messages, source, plan );
    plan->newest_id = messages->newest_id;
    plan->frames = source->at;

    while ( reason == NETCODE_MESSAGES_DROP_NONE && source->at != source->end ) {
        nc_frame_read( source, &frame, &plan->acks );
        reason = source->failed ? (int) NETCODE_MESSAGES_DROP_FRAME : nc_frame_check( messages, &frame, plan );
    }
    if ( reason != NETCODE_MESSAGES_DROP_NONE )
        return reason;

    if ( plan->acks.count && plan->acks.number < (int64_t) plan->acks.low[plan->acks.count - 1] )
        return NETCODE_MESSAGES_DROP_ACK;
    if ( nc_messages_acks_skipped( messages, &plan->acks ) ) {
        nc_messages_break( messages, NETCODE_MESSAGES_REASON_FORGED_ACK ); /* none of its acks can be trusted */
        return NETCODE_MESSAGES_DROP_ACK;
    }

    uint32_t promised = messages->credit_granted - messages->credit_received;
    if ( plan->cost > promised )
        return NETCODE_MESSAGES_DROP_LIMIT;

    /* What was promised to reliable messages is not given to unreliable ones. */
    if ( plan->room && ( nc_heap_is_full( &messages->in, promised + plan->room ) ||
                         !nc_heap_fits( &messages->in, promised + plan->room ) ) )
        plan->room = 0;
    /* What was promised fits, unless the message that the application reads splits what is free. */
    plan->waits |= plan->cost && !nc_heap_fits( &messages->in, plan->cost );
    return plan->waits ? NETCODE_MESSAGES_DROP_NO_ROOM : NETCODE_MESSAGES_DROP_NONE;
}

static void nc_messages_take_number( struct netcode_messages_t * messages, int64_t number, int asks )
{
    int64_t ahead = number - messages->newest_received;
    if ( ahead > 0 )
        messages->newest_time = messages->now;
    nc_bit_take( messages->numbers, &messages->newest_received, number, NC_MESSAGES_REMEMBERED );
    if ( number < messages->unacked )
        messages->unacked = number;

    if ( !asks )
        return;
    if ( messages->acks_due++ == 0 )
        messages->ack_since = messages->now;
    if ( ahead != 1 )
        messages->acks_due++; /* something is or was missing: the other side should be notified at once */
}

/* ---- the object's life ---- */

static uint32_t nc_or_default( int value, uint32_t otherwise )
{
    return value > 0 ? (uint32_t) value : otherwise;
}

/* The next part of the block, from `at` on; NULL if there is no block, and it only measures. */
static void * nc_messages_part( struct netcode_messages_t * block, size_t * at, size_t bytes )
{
    void * part = block ? (uint8_t *) block + *at : NULL;
    *at += ( bytes + 15 ) / 16 * 16;
    return part;
}

/* A buffer's bytes: by default there is space for two of the largest messages. */
static uint32_t nc_messages_buffer( int value, uint32_t largest, uint32_t * least )
{
    uint32_t bytes = nc_or_default( value, 2 * largest + ( largest < 393216 ? 98304 : largest / 4 ) );
    *least = largest + ( largest < 131072 ? largest / 2 : largest < 524288 ? 65536 : largest / 8 );
    *least = nc_u32_larger( *least, NC_MESSAGES_LEAST_BUFFER );
    return nc_u32_larger( bytes, *least );
}

/*  Lays out the one block, and stores what is in it, and how large it is. If `block` is NULL, it only measures. Returns
    the bytes, or 0 if the config is invalid. */
NC_COLD static size_t nc_messages_lay_out( const struct netcode_messages_config_t * config,
                                           struct netcode_messages_t * block )
{
    struct netcode_messages_t measured, *messages = block ? block : &measured;
    uint32_t window = nc_or_default( config->window_packets, NC_MESSAGES_LEAST_WINDOW );
    uint32_t channels = nc_or_default( config->channels, NETCODE_MESSAGES_CHANNELS );
    uint32_t largest = nc_or_default( config->max_message_bytes, 262144 ), least, least_in;
    messages->max_send_bytes =
        nc_u32_larger( nc_or_default( config->max_send_message_bytes, largest ), NETCODE_MESSAGES_WHOLE_BYTES );
    messages->max_receive_bytes =
        nc_u32_larger( nc_or_default( config->max_receive_message_bytes, largest ), NETCODE_MESSAGES_WHOLE_BYTES );
    if ( channels > NETCODE_MESSAGES_CHANNELS || largest > NETCODE_MESSAGES_MAX_BYTES ||
         messages->max_send_bytes > NETCODE_MESSAGES_MAX_BYTES ||
         messages->max_receive_bytes > NETCODE_MESSAGES_MAX_BYTES || window < NC_MESSAGES_LEAST_WINDOW ||
         window > 4096 || config->max_retries < 0 || config->max_retries > NC_MESSAGES_RETRIES ||
         config->congestion < 0 || config->congestion > NETCODE_MESSAGES_CONGESTION_NONE || config->repeats < 0 ||
         config->repeats > NETCODE_MESSAGES_REPEATS_NEVER )
        return 0;

    uint32_t in_bytes = nc_messages_buffer( config->receive_buffer_bytes, messages->max_receive_bytes, &least_in );
    uint32_t out_bytes = nc_messages_buffer( config->send_buffer_bytes, messages->max_send_bytes, &least );
    if ( out_bytes > 4u * NETCODE_MESSAGES_MAX_BYTES || in_bytes > 4u * NETCODE_MESSAGES_MAX_BYTES )
        return 0;

    /* What is remembered of packets and ids in flight is a part of the send buffer: by default a tenth of it. */
    if ( config->window_packets <= 0 )
        window = nc_u32_smaller( out_bytes / 512, 1024 );
    for ( messages->window = NC_MESSAGES_LEAST_WINDOW; messages->window < window; )
        messages->window *= 2;
    uint32_t sent_bytes = messages->window * (uint32_t) sizeof( nc_sent_t ), known_bytes = NC_MESSAGES_IDS / 8;
    messages->carried_count = nc_u32_larger( NC_MESSAGES_CARRIED_MEAN * messages->window, NC_MESSAGES_CARRIED_LEAST );
    uint32_t carried_bytes = messages->carried_count * (uint32_t) sizeof( nc_carried_t );
    uint32_t all_bytes = sent_bytes + carried_bytes + known_bytes;
    out_bytes = nc_u32_larger( out_bytes, least + all_bytes ) - all_bytes;
    messages->channel_count = (int) channels;
    messages->out.bytes = out_bytes / 8 * 8;
    messages->in.bytes = in_bytes / 8 * 8;
    uint32_t unpromised = nc_u32_larger( in_bytes / NC_MESSAGES_UNPROMISED_PART, NC_MESSAGES_UNPROMISED );
    messages->credit_window = in_bytes - nc_u32_smaller( unpromised, in_bytes / 4 );

    size_t at = 0;
    nc_messages_part( block, &at, sizeof( *messages ) );
    messages->channels =
        (nc_message_channel_t *) nc_messages_part( block, &at, channels * sizeof( nc_message_channel_t ) );
    messages->sent = (nc_sent_t *) nc_messages_part( block, &at, sent_bytes );
    messages->carried = (nc_carried_t *) nc_messages_part( block, &at, carried_bytes );
    messages->known_ids = (uint64_t *) nc_messages_part( block, &at, known_bytes );
    messages->out.base = (uint8_t *) nc_messages_part( block, &at, out_bytes );
    messages->in.base = (uint8_t *) nc_messages_part( block, &at, in_bytes );
    return at;
}

/* Starts the state of one connection. The send buffer keeps unread events of the last one. */
NC_COLD static void nc_messages_begin( struct netcode_messages_t * messages, double time )
{
    messages->caller_time = time;
    messages->log.refusals.next = 0.0;
    messages->small_time = -1e300;
    messages->ack_since = messages->ack_time = messages->long_acks_time = -1e300;
    messages->next_expiry = 1e300;

    messages->newest_received = messages->newest_id = -1;
    messages->unacked = INT64_MAX;
    messages->newest_acked = UINT64_MAX;
    messages->epoch = (uint32_t) nc_crypto_random_u64() & 0xffff;
    nc_messages_draw_skip( messages, 0, NC_MESSAGES_FIRST_SKIP );

    messages->loss_long = 0.003; /* a link that loses nothing is believed after some 560 packets */
    messages->reorder_seconds = NC_MESSAGES_REORDER;
    messages->peer_delay = 0.025;
    messages->stream_tokens = (double) NC_STREAMS_AT_ONCE;
    messages->streams_to_begin = messages->stream_tokens / 2.0;
    messages->credit_limit = messages->credit_granted = NC_MESSAGES_FIRST_CREDIT;
    messages->limit_due = 1;

    messages->controller.window = NC_CONTROLLER_START * NETCODE_MAX_PACKET_SIZE;
    messages->controller.is_starting = 1;
    messages->controller.cut_time = messages->controller.fast_time = -1e300;
    messages->paced = messages->urgent = NETCODE_MAX_PACKET_SIZE;
    messages->inherited = UINT32_MAX;

    nc_heap_reset( &messages->in );

    size_t from = offsetof( nc_message_channel_t, queues );
    for ( int i = 0; i < messages->channel_count; i++ )
        memset( (uint8_t *) &messages->channels[i] + from, 0, sizeof( nc_message_channel_t ) - from );
}

NETCODE_API void netcode_default_messages_config( struct netcode_messages_config_t * config )
{
    NC_CHECK( config != NULL, NC_NOTHING );
    memset( config, 0, sizeof( *config ) );
}

NETCODE_API size_t netcode_messages_memory( const struct netcode_messages_config_t * config )
{
    struct netcode_messages_config_t defaults;
    memset( &defaults, 0, sizeof( defaults ) );
    return nc_messages_lay_out( config ? config : &defaults, NULL );
}

NC_COLD static void nc_messages_configure( struct netcode_messages_t * messages,
                                           const struct netcode_messages_config_t * config )
{
    memset( messages, 0, sizeof( *messages ) );
    nc_messages_lay_out( config, messages );
    memset( messages->channels, 0, (size_t) ( messages->out.base - (uint8_t *) messages->channels ) );
    messages->config = *config;
    messages->log.callback = config->log_callback;
    messages->log.now = &messages->now;
    messages->log.context = config->log_context;
    messages->fixed_rate = nc_or_default( config->bytes_per_second, 125000 );
    messages->least_rate = nc_or_default( config->least_bytes_per_second, 16000 );
    messages->ping_seconds = config->ping_seconds > 0.0   ? config->ping_seconds
                             : config->ping_seconds < 0.0 ? 1e300
                                                          : 1.0;

    for ( int i = 0; i < messages->channel_count; i++ ) {
        messages->channels[i].priority = config->priorities[i];
        messages->channels[i].weight = config->weights[i] ? config->weights[i] : 1;
        while ( messages->channels[messages->channels[i].first].priority != config->priorities[i] )
            messages->channels[i].first++;
    }
}

NETCODE_API struct netcode_messages_t * netcode_messages_create( const struct netcode_messages_config_t * config,
                                                                 double time )
{
    struct netcode_messages_config_t defaults;
    memset( &defaults, 0, sizeof( defaults ) );
    if ( !config )
        config = &defaults;
    NC_CHECK( ( config->allocate_function == NULL ) == ( config->free_function == NULL ), NULL );

    size_t bytes = nc_messages_lay_out( config, NULL );
    if ( !bytes )
        return NULL;
    void * block =
        config->allocate_function ? config->allocate_function( config->allocator_context, bytes ) : malloc( bytes );
    if ( !block )
        return NULL;

    struct netcode_messages_t * messages = (struct netcode_messages_t *) block;
    nc_messages_configure( messages, config );
    nc_messages_begin( messages, nc_messages_is_time( time ) ? time : 0.0 );
    return messages;
}

/* The connection has ended: the application is notified of streams that were not complete. */
NC_COLD static void nc_messages_end_streams( struct netcode_messages_t * messages )
{
    messages->is_busy = 1;
    while ( messages->partial )
        nc_transfer_close( messages, messages->partial, 0 );
    messages->is_busy = 0;
}

NETCODE_API void netcode_messages_destroy( struct netcode_messages_t * messages )
{
    if ( !messages )
        return;
    NC_MESSAGES_BEGIN( !messages->is_busy, NC_NOTHING );
    nc_messages_end_streams( messages );
    nc_crypto_wipe( messages->in.base, messages->in.high );
    nc_crypto_wipe( messages->out.base, messages->out.high );
    if ( messages->config.free_function )
        messages->config.free_function( messages->config.allocator_context, messages );
    else
        free( messages );
}

NETCODE_API void netcode_messages_reset( struct netcode_messages_t * messages, double time )
{
    NC_MESSAGES_BEGIN( !messages->is_busy, NC_NOTHING );
    nc_messages_end_streams( messages );
    for ( uint32_t at = 0, handle; ( handle = nc_heap_next( &messages->out, &at ) ) != 0; ) {
        nc_message_t * message = nc_message_at( messages, handle );
        size_t head = sizeof( nc_block_t ) + sizeof( *message );
        nc_crypto_wipe( nc_message_data( message ), nc_heap_size( &messages->out, handle ) - head );
        if ( message->serial || message->list != NC_LIST_NONE )
            nc_message_finish( messages, handle, NETCODE_MESSAGES_EVENT_LOST );
    } /* only receipts are kept, until their events are read */
    nc_heap_wipe_free( &messages->out );

    size_t from = offsetof( struct netcode_messages_t, now );
    double last = messages->caller_time;
    memset( (uint8_t *) messages + from, 0, sizeof( *messages ) - from );
    nc_messages_begin( messages, nc_messages_is_time( time ) ? time : last );
}

/* ---- sending and receiving ---- */

/* What a message lacks to be queued here, in a game programmer's words; NULL: nothing. */
static const char * nc_messages_fault( const struct netcode_messages_t * messages,
                                       const struct netcode_message_t * message )
{
    int kind = message->kind, has_ttl = message->ttl_seconds > 0.0;
    if ( message->channel < 0 || message->channel >= messages->channel_count )
        return "a channel that this object has";
    if ( kind < 0 || kind > NETCODE_MESSAGE_STREAM )
        return "a kind that there is";
    if ( message->bytes < 0 || ( message->bytes > 0 && message->data == NULL ) )
        return "data of 0 or more bytes";
    if ( !( message->ttl_seconds < 1e300 ) || ( has_ttl && kind == NETCODE_MESSAGE_RELIABLE_ORDERED ) )
        return "a finite ttl_seconds, and none for RELIABLE_ORDERED";
    return NULL;
}

/*  Queues a message of so many bytes; the data of a stream's are its functions, and it has a tag. The last 1/32 of the
    buffer is for channels that have less in it than would be free: so one that is filled leaves something to the
    others. */
static int nc_messages_enqueue( struct netcode_messages_t * messages, const struct netcode_message_t * message,
                                uint32_t bytes, uint32_t tag, const char * function )
{
    const char * fault = nc_messages_fault( messages, message );
    netcode_assert( fault == NULL );
    if ( fault ) {
        nc_log_refuse( &messages->log, function, "%s (channel %d, and it has %d; kind %d; %d bytes)", fault,
                       message->channel, messages->channel_count, message->kind, message->bytes );
        return NETCODE_MESSAGES_BAD_ARGUMENT;
    }

    nc_message_channel_t * channel = &messages->channels[message->channel];
    uint32_t kept = (uint32_t) message->bytes;
    uint32_t fragments = nc_fragments_of( message->kind, bytes ),
             states = nc_u32_smaller( fragments, NC_MESSAGES_FRAGMENTS );
    int kind = message->kind, is_upgraded = fragments && !nc_kind_is_reliable( kind );
    if ( is_upgraded )
        kind = kind == NETCODE_MESSAGE_UNRELIABLE ? NETCODE_MESSAGE_RELIABLE : NETCODE_MESSAGE_RELIABLE_SEQUENCED;
    if ( messages->broken )
        return NETCODE_MESSAGES_BROKEN;
    if ( nc_channel_is_missing( messages, message->channel ) )
        return NETCODE_MESSAGES_NO_CHANNEL;
    if ( kept > messages->max_send_bytes || nc_message_is_too_large( messages, kept ) ||
         ( is_upgraded && !messages->config.upgrade_large ) )
        return NETCODE_MESSAGES_TOO_LARGE;

    uint32_t all = (uint32_t) sizeof( nc_message_t ) + kept + states, cost = nc_heap_cost( all );
    if ( nc_heap_is_full( &messages->out, cost + messages->out.bytes / 32 ) &&
         nc_heap_is_full( &messages->out, cost + channel->kept_bytes ) )
        return NETCODE_MESSAGES_FULL;
    uint32_t handle = nc_heap_take( &messages->out, all );
    netcode_assert( handle != 0 ); /* no block of this heap is ever fixed, so what is free fits */
    nc_message_t * queued = nc_message_at( messages, handle );
    memset( queued, 0, sizeof( *queued ) );
    queued->kind = (uint8_t) kind;
    queued->channel = (uint8_t) message->channel;
    queued->bytes = bytes;
    queued->fragments = fragments;
    queued->order = tag;
    queued->receipt = message->receipt;
    queued->queued = messages->now;
    queued->expires = message->ttl_seconds > 0.0    ? messages->now + message->ttl_seconds
                      : nc_kind_is_reliable( kind ) ? 1e300
                                                    : messages->now + 0.5;
    if ( kept )
        memcpy( nc_message_data( queued ), message->data, kept );
    memset( nc_message_data( queued ) + kept, 0, states );

    nc_message_insert( messages, handle, nc_message_queue( queued ), 0 );
    channel->kept_bytes += nc_heap_size( &messages->out, handle );
    channel->queued_bytes += nc_message_kept( queued );
    messages->queued_bytes += nc_message_kept( queued );
    messages->next_expiry = nc_real_smaller( messages->next_expiry, queued->expires );
    messages->fresh = 1;
    return NETCODE_OK;
}

NETCODE_API int netcode_messages_send_message( struct netcode_messages_t * messages,
                                               const struct netcode_message_t * message )
{
    NC_MESSAGES_BEGIN( message != NULL && message->kind != NETCODE_MESSAGE_STREAM, NETCODE_MESSAGES_BAD_ARGUMENT );
    return nc_messages_enqueue( messages, message, (uint32_t) message->bytes, 0, __func__ );
}

NETCODE_API int netcode_messages_send_stream( struct netcode_messages_t * messages,
                                              const struct netcode_messages_stream_t * stream )
{
    NC_MESSAGES_BEGIN( stream != NULL && stream->read_function != NULL, NETCODE_MESSAGES_BAD_ARGUMENT );
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = stream->channel;
    message.kind = NETCODE_MESSAGE_STREAM;
    message.data = (const uint8_t *) stream;
    message.bytes = (int) sizeof( *stream );
    message.receipt = stream->receipt;
    return nc_messages_enqueue( messages, &message, stream->bytes, stream->tag, __func__ );
}

NETCODE_API int netcode_messages_cancel_stream( struct netcode_messages_t * messages, uint64_t receipt )
{
    NC_MESSAGES_BEGIN( !messages->is_busy, NETCODE_ERROR );
    if ( messages->broken || receipt == 0 )
        return NETCODE_ERROR; /* 0 is no receipt */
    return nc_messages_end( messages, NC_END_STREAM, receipt ) ? NETCODE_OK : NETCODE_ERROR;
}

NETCODE_API int netcode_messages_send( struct netcode_messages_t * messages, int channel, int kind, const void * data,
                                       int bytes )
{
    NC_MESSAGES_BEGIN( kind != NETCODE_MESSAGE_STREAM, NETCODE_MESSAGES_BAD_ARGUMENT );
    struct netcode_message_t message;
    memset( &message, 0, sizeof( message ) );
    message.channel = channel;
    message.kind = kind;
    message.data = (const uint8_t *) data;
    message.bytes = bytes;
    return nc_messages_enqueue( messages, &message, (uint32_t) bytes, 0, __func__ );
}

NETCODE_API int netcode_messages_receive( struct netcode_messages_t * messages, struct netcode_message_t * message )
{
    NC_MESSAGES_BEGIN( message != NULL && !messages->is_busy, 0 );
    memset( message, 0, sizeof( *message ) );

    if ( messages->in.fixed )
        nc_arrived_free( messages, messages->in.fixed );
    messages->in.fixed = messages->in.gap = 0; /* now what was promised is made to fit behind the next one */
    nc_heap_fits( &messages->in, messages->credit_granted - messages->credit_received );
    messages->in.fixed = messages->ready_head;
    if ( !messages->in.fixed )
        return 0;

    nc_arrived_t * arrived = nc_arrived_at( messages, messages->in.fixed );
    messages->ready_head = arrived->next;

    message->channel = arrived->channel;
    message->kind = arrived->kind;
    message->data = nc_arrived_data( arrived );
    message->bytes = (int) arrived->bytes;
    messages->stats.messages_received++;
    return 1;
}

NETCODE_API int netcode_messages_event( struct netcode_messages_t * messages, struct netcode_messages_event_t * event )
{
    NC_MESSAGES_BEGIN( event != NULL, 0 );
    memset( event, 0, sizeof( *event ) );

    if ( messages->broken_event ) {
        messages->broken_event = 0;
        event->type = NETCODE_MESSAGES_EVENT_BROKEN;
        event->reason = messages->broken;
        return 1;
    }

    uint32_t handle = messages->event_head;
    if ( !handle )
        return 0;
    nc_message_t * message = nc_message_at( messages, handle );
    messages->event_head = message->next_event;

    event->type = message->event;
    event->channel = message->channel;
    event->kind = message->kind;
    event->receipt = message->receipt;
    uint32_t done = message->event == NETCODE_MESSAGES_EVENT_PROGRESS ? message->acked_bytes
                    : message->event == NETCODE_MESSAGES_EVENT_LOST   ? 0
                                                                      : message->bytes;
    event->bytes = (int) nc_u32_smaller( message->bytes, INT32_MAX );
    event->bytes_done = (int) nc_u32_smaller( done, INT32_MAX );
    event->stream_bytes = message->kind == NETCODE_MESSAGE_STREAM ? message->bytes : 0;
    event->stream_bytes_done = message->kind == NETCODE_MESSAGE_STREAM ? done : 0;

    message->event = NETCODE_MESSAGES_EVENT_NONE;
    nc_message_release( messages, handle );
    return 1;
}

/* ---- packets and time ---- */

/*  Counts a dropped packet. What can not be used at all goes on in the next packets, so both sides find out. While
    it is broken, each packet shows that the other side may not know. */
NC_COLD static void nc_messages_count_drop( struct netcode_messages_t * messages, int reason, const uint8_t * packet,
                                            int bytes )
{
    nc_source_t source = { packet + NC_MESSAGES_FIXED_HEADER, packet + bytes, 0 };
    nc_frame_t frame;
    nc_acks_t acks;
    int is_first =
        bytes > NC_MESSAGES_FIXED_HEADER && !( packet[0] & ( NC_MESSAGES_ACK_VALID | NC_MESSAGES_ACK_DELAY ) );
    if ( is_first && reason == NETCODE_MESSAGES_DROP_BROKEN )
        messages->peer_is_broken |= *source.at == NC_FRAME_BROKEN;
    if ( is_first && ( reason == NETCODE_MESSAGES_DROP_DUPLICATE || reason == NETCODE_MESSAGES_DROP_OLD ) &&
         *source.at == NC_FRAME_LIMIT && messages->peer_channels ) {
        nc_frame_read( &source, &frame, &acks );
        if ( !source.failed && frame.order != messages->peer_epoch )
            nc_messages_break( messages, NETCODE_MESSAGES_REASON_OUT_OF_STEP );
    }

    messages->stats.drops[reason]++;
    if ( reason == NETCODE_MESSAGES_DROP_CHANNEL )
        nc_messages_break( messages, NETCODE_MESSAGES_REASON_CHANNEL );
    if ( reason == NETCODE_MESSAGES_DROP_BROKEN )
        messages->broken_due |= messages->now - messages->ack_time >= 0.1 && !messages->peer_is_broken;
    else if ( reason != NETCODE_MESSAGES_DROP_NO_ROOM ) {
        messages->useless_since = messages->useless ? messages->useless_since : messages->now;
        if ( ++messages->useless >= NC_MESSAGES_USELESS_PACKETS &&
             messages->now - messages->useless_since > NC_MESSAGES_USELESS )
            nc_messages_break( messages, reason == NETCODE_MESSAGES_DROP_VERSION
                                             ? NETCODE_MESSAGES_REASON_VERSION
                                             : NETCODE_MESSAGES_REASON_OUT_OF_STEP );
    }
}

/* The other side does not want this stream. Perhaps this is a repeated REFUSE. */
NC_COLD static void nc_stream_refused( struct netcode_messages_t * messages, uint32_t id )
{
    uint32_t handle = *nc_tree_find( &messages->out, &messages->begun, id );
    if ( handle && nc_message_at( messages, handle )->kind == NETCODE_MESSAGE_STREAM )
        nc_message_finish( messages, handle, NETCODE_MESSAGES_EVENT_LOST );
}

NETCODE_API int netcode_messages_process_packet( struct netcode_messages_t * messages, const uint8_t * packet,
                                                 int bytes )
{
    NC_MESSAGES_BEGIN( packet != NULL && bytes >= 0 && !messages->is_busy, NETCODE_MESSAGES_DROP_HEADER );
    nc_source_t source = { packet, packet + bytes, 0 };
    nc_frame_t frame;
    nc_plan_t plan;

    memset( &plan, 0, sizeof( plan ) );
    int reason = bytes > NETCODE_MAX_PACKET_SIZE ? (int) NETCODE_MESSAGES_DROP_HEADER
                 : messages->broken              ? (int) NETCODE_MESSAGES_DROP_BROKEN
                                                 : nc_messages_check_packet( messages, &source, &plan );
    if ( reason != NETCODE_MESSAGES_DROP_NONE )
        nc_messages_count_drop( messages, reason, packet, bytes );
    if ( reason != NETCODE_MESSAGES_DROP_NONE && reason != NETCODE_MESSAGES_DROP_NO_ROOM )
        return reason;

    messages->fresh = 1; /* acks and refusals count even if there is no room for messages */
    nc_source_t refused = { plan.refused, source.end, 0 };
    for ( uint32_t left = plan.refused ? nc_source_number( &refused, 1 ) : 0; left > 0; left-- )
        nc_stream_refused( messages, nc_source_number( &refused, 2 ) );
    nc_messages_take_acks( messages, &plan.acks );
    if ( reason == NETCODE_MESSAGES_DROP_NO_ROOM )
        return reason;

    messages->useless = 0;
    messages->stats.packets_received++;
    messages->stats.bytes_received += (uint64_t) bytes;
    nc_messages_take_number( messages, plan.number, plan.asks );

    messages->is_busy = 1;
    plan.acks.count = 0; /* ACK_RANGES is read again */
    for ( source.at = plan.frames; source.at != source.end; ) {
        nc_frame_read( &source, &frame, &plan.acks );
        nc_frame_take( messages, &frame, &plan );
    }
    messages->is_busy = 0;
    return NETCODE_MESSAGES_DROP_NONE;
}

/* At most 80 in a second, however often it is asked: more would fill a slow return path. */
static int nc_messages_ack_is_due( const struct netcode_messages_t * messages )
{
    if ( messages->now < messages->ack_time + NC_MESSAGES_ACK_INTERVAL )
        return 0;
    return messages->acks_due >= 2 || ( messages->acks_due && messages->now - messages->ack_since >= 0.0099 );
}

/* Returns whether it has nothing but acks. */
static int nc_build_packet( struct netcode_messages_t * messages, nc_build_t * build, uint8_t * packet )
{
    nc_build_begin( messages, build, packet );
    const uint8_t * empty = build->at;
    messages->is_busy = 1;
    if ( messages->probe_due || nc_messages_gap( messages ) < NC_MESSAGES_AHEAD ) {
        nc_build_control( messages, build );
        if ( nc_build_large_is_first( messages, build ) )
            nc_build_queues( messages, build, 1 );
        nc_build_queues( messages, build, 0 );
        nc_build_repeats( messages, build );
        if ( build->bulk )
            nc_build_queues( messages, build, 1 );
        if ( messages->probe_due && !build->asks ) {
            messages->ping_due = 1;
            nc_build_control( messages, build );
        }
        messages->stats.probes += (uint64_t) messages->probe_due;
        messages->probe_due = 0;
    }
    messages->is_busy = 0;
    return build->at == empty;
}

/* A packet with BROKEN and nothing else. */
NC_COLD static int nc_build_broken( struct netcode_messages_t * messages, nc_build_t * build, uint8_t * packet )
{
    memset( build, 0, sizeof( *build ) );
    build->is_ackless = 1;
    build->start = packet;
    build->at = packet + NC_MESSAGES_FIXED_HEADER;
    *build->at++ = NC_FRAME_BROKEN;
    *build->at++ = (uint8_t) messages->broken;
    messages->broken_due = 0;
    messages->ack_time = messages->now;
    return 0;
}

NETCODE_API int netcode_messages_generate_packet( struct netcode_messages_t * messages, uint8_t * packet, int capacity )
{
    NC_MESSAGES_BEGIN( packet != NULL && capacity >= NETCODE_MAX_PACKET_SIZE && !messages->is_busy, 0 );
    nc_build_t build;
    if ( messages->broken && !messages->broken_due )
        return 0;

    int nothing =
        messages->broken ? nc_build_broken( messages, &build, packet ) : nc_build_packet( messages, &build, packet );
    if ( nothing && build.has_long_acks && !nc_messages_ack_is_due( messages ) ) {
        messages->long_acks_time = messages->now; /* what did not fit beside them leaves without */
        nothing = nc_build_packet( messages, &build, packet );
    }
    const uint32_t * active = messages->active;
    int waits = ( active[NC_QUEUE_IN_ORDER] | active[NC_QUEUE_WHOLE] | active[NC_QUEUE_PROMPT] ) != 0;
    static const uint32_t reliable[NC_QUEUES] = { UINT32_MAX, 0, UINT32_MAX, 0, UINT32_MAX, UINT32_MAX };
    /* None is held back: one more such round trip, and they are behind again. */
    if ( nc_messages_are_behind( messages ) &&
         ( build.reliable ? nothing : !nc_messages_choose( messages, reliable, 0 ) ) )
        messages->controller.full_rounds = 3;
    messages->held_back = ( !build.unreliable && active[NC_QUEUE_UNRELIABLE] ) ||
                          ( !build.reliable && ( waits || active[NC_QUEUE_LOST] ) ) ||
                          ( !build.prompt && active[NC_QUEUE_PROMPT] ) ||
                          ( !build.bulk && ( waits || active[NC_QUEUE_LARGE] ) );

    if ( nothing ) {
        messages->fresh = messages->fresh && !messages->flush;
        messages->flush = 0;
        if ( build.is_ackless || !nc_messages_ack_is_due( messages ) )
            return 0;
        if ( messages->packets_in_flight == 0 && nc_messages_gap( messages ) >= NC_MESSAGES_QUIET ) {
            messages->ping_due = 1; /* a side that only sends acks must get its own numbers acknowledged */
            nc_build_control( messages, &build );
        }
    }
    return nc_build_end( messages, &build );
}

NETCODE_API void netcode_messages_flush( struct netcode_messages_t * messages )
{
    NC_MESSAGES_BEGIN( 1, NC_NOTHING );
    messages->flush = 1;
}

NETCODE_API void netcode_messages_set_time( struct netcode_messages_t * messages, double time )
{
    NC_CHECK( messages != NULL, NC_NOTHING );
    double step = time - messages->caller_time;
    if ( !nc_messages_is_time( time ) )
        return;
    messages->caller_time = time;
    if ( step > 0.0 && messages->now < NC_MESSAGES_LONGEST )
        messages->now += nc_real_smaller( step, NC_MESSAGES_STEP );
}

/*  The losses of the newest 256 packets from a distance below the newest on. Numbers that the sender skips look like
    lost ones: one of the first 256 numbers, and none of the first 32; later up to two of the newest 256, and one on
    average. So few do not count as loss. */
static double nc_messages_loss_received( const struct netcode_messages_t * messages, uint32_t below )
{
    uint32_t missing = 0, count = NC_MESSAGES_BLOCK, skips = 2;
    int64_t known = messages->newest_received + 1 - below;
    if ( known < (int64_t) count ) {
        count = known > 0 ? (uint32_t) known : 0;
        skips = count > NC_MESSAGES_FIRST_SKIP;
    }

    for ( uint32_t i = 0; i < count; i++ )
        missing += !nc_messages_had_number( messages, below + i );
    return missing <= skips ? 0.0 : (double) ( missing - ( skips != 0 ) ) / count;
}

NC_COLD static void nc_messages_measure_rates( struct netcode_messages_t * messages )
{
    double passed = messages->now - messages->rate_time;
    if ( passed < 0.25 )
        return;
    double part = passed < 1.0 ? passed : 1.0;
    netcode_messages_stats_t * stats = &messages->stats;
    double sent = (double) ( stats->bytes_sent - messages->rate_bytes_sent ) / passed;
    double received = (double) ( stats->bytes_received - messages->rate_bytes_received ) / passed;

    stats->send_rate += ( sent - stats->send_rate ) * part;
    stats->receive_rate += ( received - stats->receive_rate ) * part;
    messages->rate_bytes_sent = stats->bytes_sent;
    messages->rate_bytes_received = stats->bytes_received;
    messages->rate_time = messages->now;
    messages->loss_received = nc_messages_loss_received( messages, 32 ); /* the newest may have overtaken others */
}

NC_COLD static void nc_messages_time_out( struct netcode_messages_t * messages )
{
    int waits = messages->packets_in_flight != 0 || nc_messages_gap( messages ) >= NC_MESSAGES_AHEAD;
    if ( !waits || messages->now < messages->silent_since + nc_messages_timeout( messages ) )
        return;

    messages->probe_due = 1;
    messages->silent_since = messages->now;
    messages->timeouts++;
    if ( messages->timeouts < 16 ? messages->timeouts & ( messages->timeouts - 1 ) : messages->timeouts % 16 )
        return; /* tries are further and further apart */
    if ( messages->config.max_retries )
        nc_messages_end( messages, NC_END_TRIED, 0 ); /* without acks nothing is declared lost */
}

/*  Is as much credit free as is granted at once? What is not granted yet never delays the largest message; and while so
    much is held that one would have to wait, the others have little, and get it back soon. */
static int nc_messages_may_grant( const struct netcode_messages_t * messages )
{
    uint32_t window = messages->credit_window, held = messages->credit_received - messages->credit_released;
    uint32_t spare = window - nc_messages_cost( NETCODE_MESSAGE_RELIABLE, messages->max_receive_bytes );
    uint32_t least = held > spare ? (uint32_t) NC_MESSAGES_LEAST_GRANT : spare < window / 4 ? spare : window / 4;
    uint32_t may_grant = messages->credit_released + window - messages->credit_granted;
    return may_grant && may_grant >= least;
}

NETCODE_API void netcode_messages_update( struct netcode_messages_t * messages, double time )
{
    NC_MESSAGES_BEGIN( 1, NC_NOTHING );
    netcode_messages_set_time( messages, time );
    if ( messages->broken )
        return;

    nc_messages_fill_tokens( messages );
    messages->flush = 1;
    messages->flight += (uint32_t) messages->flown;
    messages->flown = 0;

    if ( messages->now >= messages->next_expiry )
        nc_messages_end( messages, NC_END_EXPIRED, 0 );
    nc_messages_find_lost( messages );
    nc_messages_find_overdue( messages );
    nc_messages_time_out( messages );

    if ( messages->now - messages->ping_time >= messages->ping_seconds ) {
        messages->ping_due = 1;
        messages->ping_time = messages->now;
    }

    if ( nc_messages_may_grant( messages ) )
        messages->limit_due = 1;

    nc_messages_measure_rates( messages );
}

/* When a rate lets go what it holds back. What is new waits for a millisecond at most. */
NC_COLD static double nc_messages_rate_time( const struct netcode_messages_t * messages, double tokens, double rate )
{
    int held = tokens <= 0.0 || messages->streams_to_begin < 1.0;
    return messages->fresh || held ? messages->now + nc_real_larger( -tokens / rate, 0.001 ) : 1e300;
}

NETCODE_API double netcode_messages_next_deadline( struct netcode_messages_t * messages )
{
    NC_MESSAGES_BEGIN( 1, 0.0 );
    double now = messages->now, next = now + 3600.0;
    if ( messages->broken )
        return messages->caller_time + ( messages->broken_due ? 0.0 : 3600.0 );

    next = nc_real_smaller( next, messages->ping_time + messages->ping_seconds );
    if ( messages->acks_due )
        next = nc_real_smaller( next, nc_real_larger( messages->ack_since + 0.01,
                                                      nc_real_larger( messages->ack_time, messages->long_acks_time ) +
                                                          NC_MESSAGES_ACK_INTERVAL ) );
    if ( messages->packets_in_flight || nc_messages_gap( messages ) >= NC_MESSAGES_AHEAD )
        next = nc_real_smaller( next, messages->silent_since + nc_messages_timeout( messages ) );
    if ( messages->sent_end - messages->sent_overdue - 1 < messages->sent_end - messages->sent_first )
        next = nc_real_smaller( next, nc_sent_due( messages, nc_sent_at( messages, messages->sent_overdue ) ) );
    next = nc_real_smaller( next, nc_messages_find_lost( messages ) );
    int limit = ( messages->limit_due || nc_messages_may_grant( messages ) ) && !nc_messages_is_full( messages );
    if ( messages->probe_due || ( ( limit || messages->pong_due ) && nc_messages_gap( messages ) < NC_MESSAGES_AHEAD ) )
        next = now;
    next = nc_real_smaller( next, messages->next_expiry );

    const uint32_t * active = messages->active;
    int behind = nc_messages_are_behind( messages );
    double tokens = behind ? messages->least : messages->urgent + NETCODE_MAX_PACKET_SIZE;
    double rate = behind ? messages->least_rate : nc_messages_urgent_rate( messages );
    if ( active[NC_QUEUE_IN_ORDER] | active[NC_QUEUE_WHOLE] | active[NC_QUEUE_PROMPT] | active[NC_QUEUE_LOST] )
        next = nc_real_smaller( next, nc_messages_rate_time( messages, tokens, rate ) );
    if ( active[NC_QUEUE_UNRELIABLE] | active[NC_QUEUE_LARGE] | active[NC_QUEUE_IN_ORDER] || behind )
        next = nc_real_smaller( next,
                                nc_messages_rate_time( messages, messages->paced, nc_messages_rate( messages, 1.0 ) ) );

    /* The caller's clock may be coarser than the time since begin: at that time it is due, not just before it. */
    double clock = messages->caller_time < 0.0 ? -messages->caller_time : messages->caller_time;
    return messages->caller_time + ( next > now ? next - now + 1e-6 + clock * 2.3e-16 : 0.0 );
}

/* ---- statistics ---- */

NETCODE_API void netcode_messages_stats( struct netcode_messages_t * messages, struct netcode_messages_stats_t * stats )
{
    NC_MESSAGES_BEGIN( stats != NULL, NC_NOTHING );
    *stats = messages->stats;
    stats->dropped_duplicates_total = stats->drops[NETCODE_MESSAGES_DROP_DUPLICATE];
    stats->dropped_old_total = stats->drops[NETCODE_MESSAGES_DROP_OLD];
    stats->dropped_window_total = stats->drops[NETCODE_MESSAGES_DROP_WINDOW];

    stats->loss_received = nc_messages_loss_received( messages, 0 );
    stats->congestion_window = messages->controller.window;
    stats->bytes_in_flight = messages->in_flight;
    stats->send_buffer_used = messages->out.used;
    stats->receive_buffer_used = messages->in.used;
    stats->credit = messages->credit_limit - messages->credit_spent;
}

NETCODE_API void netcode_messages_channel_stats( struct netcode_messages_t * messages, int channel,
                                                 struct netcode_messages_channel_stats_t * stats )
{
    NC_MESSAGES_BEGIN( stats != NULL, NC_NOTHING );
    memset( stats, 0, sizeof( *stats ) );
    NC_MESSAGES_BEGIN( channel >= 0 && channel < messages->channel_count, NC_NOTHING );

    const nc_message_channel_t * it = &messages->channels[channel];
    stats->queued_bytes = (int) it->queued_bytes;
    for ( int i = NC_QUEUE_UNRELIABLE; i < NC_QUEUES; i++ ) {
        uint32_t handle = it->queues[i].head, begun = 0;
        for ( ; handle && nc_message_at( messages, handle )->serial; begun++ )
            handle = nc_message_at( messages, handle )->next;
        double oldest = handle ? nc_message_at( messages, handle )->queued : messages->now;
        stats->queued_messages += (int) ( it->queues[i].count - begun );
        stats->queued_seconds = nc_real_larger( stats->queued_seconds, messages->now - oldest );
    }
}

NETCODE_API const char * netcode_messages_drop_reason_name( int reason )
{
    static const char * const names[] = { NETCODE_MESSAGES_DROP_LIST( NC_DROP_NAME ) };
    return reason >= 0 && reason < NETCODE_MESSAGES_DROP_REASONS ? names[reason] : "UNKNOWN";
}

NETCODE_API const char * netcode_messages_drop_reason_text( int reason )
{
    static const char * const texts[] = { NETCODE_MESSAGES_DROP_LIST( NC_DROP_TEXT ) };
    return reason >= 0 && reason < NETCODE_MESSAGES_DROP_REASONS ? texts[reason] : "UNKNOWN";
}

/* ---- joining: one object for a client, or for a server's slot ---- */

/*  From now on only messages read this client's payloads: they are not events. Returns the open session or, if that is
    0, an ended one whose payloads are unread; drops payloads of others. Sets whether one has ended since last time. */
static uint64_t nc_messages_join( nc_inbox_t * inbox, uint32_t client_index, uint64_t session, int * has_ended )
{
    nc_queue_t * queue = &inbox->queues[client_index];
    *has_ended = queue->has_ended;
    queue->has_ended = 0;
    if ( session == 0 && queue->list.count )
        session = nc_pool_buffer( inbox->pool, queue->list.tail )->session;
    int are_events = inbox->has_events && !queue->is_joined;
    for ( uint32_t i = are_events ? queue->list.head : NC_NONE; i != NC_NONE; i = inbox->queue_links[i].next )
        nc_list_remove( &inbox->events, inbox->event_links, i );
    queue->is_joined = 1;
    while ( queue->list.count && nc_pool_buffer( inbox->pool, queue->list.head )->session != session )
        nc_inbox_discard( inbox, queue->list.head );
    return session;
}

/*  Resets the messages for a new session, and sets the time at which the packets have arrived. What was sent before the
    first packets were read is for this session, unless another one has ended meanwhile. */
static void nc_messages_follow( struct netcode_messages_t * messages, uint64_t session, int has_ended, double time )
{
    if ( messages->session ? session != messages->session : has_ended )
        netcode_messages_reset( messages, time );
    messages->session = session;
    netcode_messages_set_time( messages, time );
}

NETCODE_API void netcode_messages_pull_from_client( struct netcode_messages_t * messages,
                                                    struct netcode_client_t * client, double time )
{
    NC_MESSAGES_BEGIN( client != NULL, NC_NOTHING );
    nc_client_begin_call( client );
    uint8_t * packet;
    int bytes, has_ended, connected = netcode_client_state( client ) == NETCODE_CLIENT_STATE_CONNECTED;
    uint64_t session = nc_messages_join( &client->inbox, 0, connected ? client->session : 0, &has_ended );
    nc_messages_follow( messages, session, has_ended, time );
    while ( ( packet = nc_inbox_receive( &client->inbox, 0, &bytes, NULL ) ) != NULL ) {
        netcode_messages_process_packet( messages, packet, bytes );
        netcode_client_free_packet( client, packet );
    }
    nc_client_end_call( client );
}

NETCODE_API void netcode_messages_push_to_client( struct netcode_messages_t * messages,
                                                  struct netcode_client_t * client, double time )
{
    NC_MESSAGES_BEGIN( client != NULL, NC_NOTHING );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    if ( netcode_client_state( client ) != NETCODE_CLIENT_STATE_CONNECTED ||
         ( messages->session != 0 && messages->session != client->session ) )
        return;

    nc_client_begin_call( client );
    netcode_messages_update( messages, time );
    while ( ( bytes = netcode_messages_generate_packet( messages, packet, (int) sizeof( packet ) ) ) > 0 )
        netcode_client_send_packet( client, packet, bytes );
    nc_client_end_call( client );
}

NETCODE_API void netcode_messages_pull_from_server( struct netcode_messages_t * messages,
                                                    struct netcode_server_t * server, int client_index, double time )
{
    NC_MESSAGES_BEGIN( server != NULL, NC_NOTHING );
    nc_server_begin_call( server );
    uint8_t * packet;
    int bytes, has_ended = 0;
    uint64_t session = netcode_server_client_session( server, client_index );
    if ( server->running && (uint32_t) client_index < server->memory.slot_count )
        session = nc_messages_join( &server->memory.inbox, (uint32_t) client_index, session, &has_ended );
    nc_messages_follow( messages, session, has_ended, time );
    while ( session && ( packet = nc_server_receive_payload( server, client_index, &bytes, NULL ) ) != NULL ) {
        netcode_messages_process_packet( messages, packet, bytes );
        netcode_server_free_packet( server, packet );
    }
    nc_server_end_call( server );
}

NETCODE_API void netcode_messages_push_to_server( struct netcode_messages_t * messages,
                                                  struct netcode_server_t * server, int client_index, double time )
{
    NC_MESSAGES_BEGIN( server != NULL, NC_NOTHING );
    uint8_t packet[NETCODE_MAX_PACKET_SIZE];
    int bytes;
    uint64_t session = netcode_server_client_session( server, client_index );
    if ( session == 0 || session != messages->session )
        return;
    nc_server_begin_call( server );
    netcode_messages_update( messages, time );
    while ( ( bytes = netcode_messages_generate_packet( messages, packet, (int) sizeof( packet ) ) ) > 0 )
        netcode_server_send_packet_to_session( server, client_index, session, packet, bytes );
    nc_server_end_call( server );
}

#endif /* NETCODE_MESSAGES */

/* Private macros are removed after the implementation. */
#undef NC_ADDRESS_HINT
#undef NC_STATIC_ASSERT
#undef NC_ARENA_TOO_MUCH
#undef NC_BPF
#undef NC_CHECK
#undef NC_CLOCK_LONGEST_STEP
#undef NC_COLD
#undef NC_ENDPOINT_READ_CONFIG
#undef NC_ENDPOINT_SET_DEFAULTS
#undef NC_ENDPOINT_STATS
#undef NC_INLINE
#undef NC_LIKE_PRINTF
#undef NC_LOG
#undef NC_LOG_ON
#undef NC_LONG_AGO
#undef NC_NOTHING
#undef NC_NONE
#undef NC_PACKET_LIST
#undef NC_PREFETCH
#undef NC_REPLAY_LONGEST_JUMP
#undef NC_REQUIRE
#undef NC_REQUIRE_OF
#undef NC_MESSAGES_BEGIN
#undef NC_DROP_NAME
#undef NC_DROP_TEXT
#undef NC_SEND_INTERVAL
#undef NC_SOCKET_LINUX
#undef NC_SOCKET_NONE
#undef NC_STATE
#undef NC_THREAD_LOCAL
#undef NC_VERSION_INFO
#undef NC_VERSION_INFO_OLD

#endif /* NETCODE_IMPLEMENTATION */

/* ================================================================================================================
    CHANGELOG
    1.1.0  One attacker can not block other clients' packets: each client has a share of an update's work, tokens are
           opened at a limited rate, and the budget grows with the time since the last update (make fairness). Two new
           drop reasons, REQUEST_NOT_OPENED and OVER_SHARE. Timers are charged, too. On Linux a packet filter drops
           floods.
           Copies of a victim's request do not block it, and used tokens of one account do not block others.
           Copies of a server (fork, a snapshot resumed twice) never use one nonce twice for clients that connect
           afterwards.
           Received payloads are aligned to 16 bytes. A server's pool has 1,024 buffers at least. A client uses 12 KiB
           when it is created, and its pool's pages when they are used.
           ICMP messages do not cause fragmented packets. The include order does not change the code that is built.
           Tables use a built-in SipHash: crypto_shorthash is not needed any more.
           A keep-alive that names an impossible slot connects; netcode_client_index is -1 then. The client's report
           contains the refused packets. The log at INFO reports why players could not connect.
           Queries about slots past the last one return 0 or NULL; create_dual without a second address works; an object
           works again after a callback that did not return; sizes in a config are at most 2^24; a private key of zeros
           is logged.
           Messages: a large message among small ones could wait for ever; now blocks move within the buffers, so that
           all free space can be used. The smallest buffer for messages above 512 KiB is an eighth larger than one of
           them. An ack costs what its packets carried. Ordered messages that wait cost no search; some packet numbers
           are skipped, and acknowledging one breaks the connection; buffers are wiped; payloads of joined slots are
           read by messages only. One window for all follows the link's delay, so that losses do not stop messages and
           transfers; small ones are repeated only where packets are lost; 4,096 may be in flight (make network).
           Streams of up to 4 GiB are read from and written to the application's memory. Limits for sending and
           receiving are apart. Version 2 of the wire of messages: fragments fill the packet; packets of version 1 are
           dropped by name.
           With roaming, a client whose address changes stays connected; a client takes a fresh local address while it
           receives nothing (netcode_client_rebind); stray_callback hands packets to another server on the same port.
           Round trip, loss, reordering and jitter are measured on both sides, in the statistics. The simulator moves
           addresses. A slot takes 2,053 bytes instead of 1,922.
           admit_callback may answer later (NETCODE_ADMIT_LATER, ADMISSION_PENDING); a negative answer accepts no more.
    1.0.0  The first version: the netcode 1.02 protocol with the decisions in STANDARD.md, and messages on top of it.
   ================================================================================================================ */
