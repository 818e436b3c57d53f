/*  The test runner, one program unit, so that unit tests see the library's static functions. Needs libsodium only:

    wrap=$(for a in chacha20poly1305 xchacha20poly1305; do
        for f in encrypt encrypt_detached decrypt decrypt_detached; do echo -Wl,--wrap=crypto_aead_${a}_ietf_$f; done
    done)
    cc -std=c99 -O1 -g -I. tests/main.c -lsodium -lm $wrap -o runner

    Where the linker has no --wrap: add -DTEST_NO_WRAP and leave the -Wl out; the nonce ledger is then absent.
    runner [FILTER] [--seed N] [--list]: FILTER is a part of a test's or a file's name. */

#include "waits.h"

#define NETCODE_IMPLEMENTATION
#define NETCODE_MESSAGES
#include "../netcode.h"
#undef select

static nc_socket_extras_t udp_extras; /* of the socket that a test opened last */

#include "test.h"

#include "ledger.h"
#include "stack.h"
#include "world.h"
#include "messages.h"

/* Unit tests, one line for each file. */
#include "unit/platform.c"
#include "unit/bytes.c"
#include "unit/crypto.c"
#include "unit/address.c"
#include "unit/token.c"
#include "unit/replay.c"
#include "unit/packet.c"
#include "unit/vectors.c"
#include "unit/containers.c"
#include "unit/queues.c"
#include "unit/socket.c"
#include "unit/simulator.c"
#include "unit/endpoint.c"
#include "unit/handshake.c"

/* Stories, one line for each file. */
#include "story/connect.c"
#include "story/deny.c"
#include "story/timeout.c"
#include "story/disconnect.c"
#include "story/loopback.c"
#include "story/events.c"
#include "story/report.c"
#include "story/drops.c"
#include "story/memory.c"
#include "story/payloads.c"
#include "story/callbacks.c"
#include "story/clocks.c"
#include "story/numbers.c"
#include "story/arguments.c"
#include "story/sockets.c"
#include "story/determinism.c"
#include "story/mangled.c"
#include "story/nonces.c"
#include "story/replays.c"
#include "story/handshakes.c"
#include "story/tokens.c"
#include "story/takeover.c"
#include "story/floods.c"
#include "story/errors.c"
#include "story/failover.c"
#include "story/refusals.c"
#include "story/secrets.c"
#include "story/quirks.c"
#include "story/order.c"
#include "story/contract.c"
#include "story/storm.c"
#include "story/linux.c"
#include "story/admit.c"
#include "story/speed.c"
#include "story/copies.c"
#include "story/records.c"
#include "story/nested.c"
#include "story/fairness.c"
#include "story/flood_filter.c"
#include "story/paths.c"
#include "story/roaming.c"
#include "unit/messages.c"
#include "story/messages.c"
#include "story/messages_guide.c"
#include "story/messages_kinds.c"
#include "story/messages_hostile.c"
#include "story/messages_threats.c"
#include "story/messages_lives.c"
#include "unit/messages_numbers.c"
#include "story/messages_arguments.c"
#include "story/messages_wire.c"
#include "story/messages_losses.c"
#include "story/messages_packets.c"
#include "story/messages_streams.c"
#include "story/messages_transfers.c"
#include "story/messages_mixes.c"
#include "story/messages_guarantees.c"
#include "story/messages_channels.c"
#include "story/promises_server.c"
#include "story/promises_admission.c"
#include "story/promises_events.c"
#include "story/promises_more.c"

static void test_begin( uint64_t seed )
{
    world_begin_test( seed );
}

static void test_end( void )
{
    world_close_all();
}

int main( int count, char ** arguments )
{
    int result;
    randombytes_set_implementation( &ledger_random_source );
    if ( netcode_init() != NETCODE_OK ) {
        printf( "netcode_init failed\n" );
        return 1;
    }
    if ( !LEDGER_WORKS )
        printf(
            "without the linker's --wrap: the nonce ledger is absent, and tests that count decryptions check less\n" );
    result = test_main( count, arguments );
    netcode_term();
    return result;
}
