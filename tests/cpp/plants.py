#!/usr/bin/env python3
"""A planted fault for each thing that the tests of netcode.hpp look for: each is written into a copy, and a test must notice.

    plants.py [WORD...]      those whose texts hold one of these words"""

import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = "build/cpp-plants"
COMPILE = "c++ -std=c++17 -O0 -g -fsanitize=address -I. "

# What stands in netcode.hpp, and what stands there instead.
PLANTS = [
    ("ended.client_id = event.client_id;", ""),
    ("if ( !has_messages::value )\n                    visit_end( event.client_index, visitor );", "visit_end( event.client_index, visitor );"),
    ("Free( owner, data );", "(void) owner;"),
    ("owner.core_->is_visiting = false;\n        if", "if"),
    ("if ( owner.core_->is_ending )\n            owner.core_.reset();", ""),
    ("number_ != 0 && netcode_server_client_session( core_->native, index_ ) == number_",
     "number_ != 0 && netcode_server_client_session( core_->native, index_ ) != 0"),
    ("connected() && core_->at( index_ ).number == number_\n", "connected()\n"),
    ("( is_heard || client.connected() ) &&", "true &&"),
    ("bool is_heard = has_ended && of.ended.reason != NETCODE_SERVER_CLIENT_DISCONNECT_REASON_SERVER_DISCONNECT;", "bool is_heard = has_ended;"),
    ("core_->has_event = true;\n                visit_end( event.client_index, visitor );", "visit_end( event.client_index, visitor );"),
    ("core_->has_event = true;\n                visit_end( visitor );", "visit_end( visitor );"),
    ("core_->ended_state = event.reason;", "core_->ended_state = event.reason;\n                if ( !has_messages::value )\n                    visit_end( visitor );"),
    ("netcode_messages_pull_from_client( core_->messages, core_->native, core_->time );", "(void) 0;"),
    ("( core_->has_ended || connected() ) &&", "connected() &&"),
    ("config.channels = static_cast<int>( count );", ""),
    ("message.kind = C::kind;", "message.kind = 2;"),
    ("message.receipt = options.receipt;", ""),
    ("!running() || core_->is_visiting", "!running()"),
    ("netcode_server_stop( core_->native );", ""),
    ("while ( !core_->is_ending && netcode_messages_event( of.messages", "while ( netcode_messages_event( of.messages"),
    ("if ( core_->is_ending )\n                return;\n            if ( event.type == NETCODE_EVENT_CONNECTED ) {\n                visitor.connected( client );", "if ( event.type == NETCODE_EVENT_CONNECTED ) {\n                visitor.connected( client );"),
    ("accepted += client != except &&", "accepted +="),
    ("internal.size() != count", "false"),
    ("visitor.moved( client );", ""),
    ('if ( core_ && core_->is_visiting )\n            return status( "a visitor can not start', 'if ( false )\n            return status( "a visitor can not start'),
    ('if ( core_ && core_->is_visiting )\n            return status( "a visitor can not open', 'if ( false )\n            return status( "a visitor can not open'),
    ("for ( int i = 0; slots && i < count; i++ )\n                netcode_messages_destroy( at( i ).messages );", ""),
    ("netcode_messages_destroy( messages );", ""),
    ("core_->has_event = true;\n                visit_end( event.client_index, visitor );", "core_->has_event = true;"),
    ("if ( slots < 1 || slots > NETCODE_MAX_SLOTS )", "if ( false )"),
    ("data.size() > NETCODE_MAX_PACKET_SIZE ? sent::too_large : sent::ok", "sent::ok"),
]


def sodium(flag):
    return subprocess.run(["sh", "tests/tools/deps.sh", flag], capture_output=True, text=True, check=True).stdout.strip()


def run(command):
    environment = dict(os.environ, ASAN_OPTIONS="alloc_dealloc_mismatch=0")
    return subprocess.run("timeout -k 1 60 " + command, shell=True, capture_output=True, check=False, env=environment).returncode


def noticed(header, cflags, libs):
    with open(OUT + "/netcode.hpp", "w", encoding="utf-8") as file:
        file.write(header)
    if run("%s -I%s %s tests/cpp/test.cpp %s/other.o %s -o %s/test" % (COMPILE, OUT, cflags, OUT, libs, OUT)):
        return None
    return run(OUT + "/test") != 0


def main():
    os.chdir(TOP)
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    cflags, libs = sodium("--cflags"), sodium("--libs")
    with open("examples/cpp/netcode.hpp", encoding="utf-8") as file:
        header = file.read()
    if run("%s -Iexamples/cpp %s -c tests/cpp/other.cpp -o %s/other.o" % (COMPILE, cflags, OUT)) or noticed(header, cflags, libs) is not False:
        print("FAIL: without a planted fault the tests do not pass")
        return 1
    missed = 0
    for old, new in PLANTS:
        title = " ".join(old.split())
        if sys.argv[1:] and not any(word in title for word in sys.argv[1:]):
            continue
        result = noticed(header.replace(old, new, 1), cflags, libs) if old in header else None
        if not result:
            missed += 1
        print("%s: %s" % ("noticed" if result else "MISSED" if result is False else "STALE, or it does not compile", title), flush=True)
    print("%d plants of %d were not noticed" % (missed, len(PLANTS)))
    return missed != 0


if __name__ == "__main__":
    sys.exit(main())
