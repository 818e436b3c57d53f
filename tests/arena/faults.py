#!/usr/bin/env python3
"""Plants each fault of the table below in a copy, one at a time, and demands that the arena's tests notice it.

    faults.py [FILTER...]    the faults whose words contain a FILTER; all without one: two minutes or so
    faults.py --stale        looks whether each text stands in its file once, and plants none

A fault is noticed when the tests that its row names fail, crash or do not end. CC names a compiler; clang compiles in a quarter of the time."""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get("CC", "").split() or ["clang" if shutil.which("clang") else "cc"]
COPIED = ("netcode.h", "tests/test.h", "tests/arena", "examples/arena", "examples/secret_file.h")
WORKERS = 2
SECONDS = 90  # the tests of one row take one or two

# file in examples/arena, the text that stands there once, what stands there instead, the tests
FAULTS = [
    # bits.h: bounds
    ("bits.h", "writer->failed || count > writer->capacity - writer->at", "writer->failed", "bits_capacity"),
    ("bits.h", "writer->failed || count > writer->capacity - writer->at", "count > writer->capacity - writer->at", "bits_writer_is_sticky"),
    ("bits.h", "count > writer->capacity - writer->at", "count > writer->capacity - writer->at + 1", "bits_capacity"),
    ("bits.h", "*byte = 0; /* the bits", "(void) byte; /* the bits", "bits_behind"),
    ("bits.h", "if ( value < lowest || value > highest ) {\n        writer->failed = 1;\n        return;", "if ( value < lowest ) {\n        writer->failed = 1;\n        return;", "bits_ranges"),
    ("bits.h", "difference >= -BITS_NEAR && difference < BITS_NEAR", "difference >= -BITS_NEAR && difference <= BITS_NEAR", "bits_differences_near"),
    ("bits.h", "int64_t difference = (int64_t) value - base;", "int64_t difference = (int32_t) ( (uint32_t) value - (uint32_t) base );", "bits_differences_near"),
    ("bits.h", "reader->failed || count > reader->size - reader->at", "reader->failed || count > reader->size + 7 - reader->at", "bits_cut"),
    ("bits.h", "reader->failed || count > reader->size - reader->at", "count > reader->size - reader->at", "bits_reader_is_sticky"),
    ("bits.h", "reader->failed = bytes < 0;", "reader->failed = 0;", "bits_of_a_failed"),
    ("bits.h", "if ( value > width )", "if ( value > width + 1 )", "bits_beyond"),
    ("bits.h", "return reader->failed ? lowest : (int32_t) ( (int64_t) lowest + value );", "return (int32_t) ( (int64_t) lowest + value );", "bits_beyond"),
    ("bits.h", "    if ( value < lowest || value > highest )\n        reader->failed = 1;", "", "bits_differences_from"),
    ("bits.h", "bytes > ( reader->size - reader->at ) / 8", "bytes > ( reader->size - reader->at + 7 ) / 8", "bits_cut"),
    ("bits.h", "left < 8 && bits_read", "left < 9 && bits_read", "bits_end"),
    ("bits.h", "left < 8 && bits_read( reader, left ) == 0", "left < 8", "bits_end"),
    # arena_net.h: what readers accept
    ("arena_net.h", "age < ARENA_NO_SNAPSHOT && age < input->tick", "age < ARENA_NO_SNAPSHOT", "net_commands net_readers"),
    ("arena_net.h", "            if ( i == 0 )\n                return 0; /* the first has none before it */\n", "            if ( i == 0 )\n                continue;\n", "net_first"),
    ("arena_net.h", "        if ( !base )\n            return 0;\n        *snapshot = *base;", "        if ( base )\n            *snapshot = *base;", "net_snapshots_on"),
    ("arena_net.h", "snapshot->tick - base->tick < 128 ?", "snapshot->tick - base->tick < 129 ?", "net_snapshots_on"),
    ("arena_net.h", "for ( int i = 0; tick && i < ARENA_KEPT; i++ )", "for ( int i = 0; i < ARENA_KEPT; i++ )", "net_kept"),
    ("arena_net.h", "return bits_read_end( &reader ) && tick > 0;", "return bits_read_end( &reader );", "net_snapshots_where"),
    ("arena_net.h", "view->health = (uint8_t) bits_read_range( reader, 0, ARENA_FULL_HEALTH );", "view->health = (uint8_t) bits_read( reader, 7 );", "net_readers"),
    ("arena_net.h", "player->y = (int16_t) bits_read_range( reader, 0, ARENA_HEIGHT - 1 );", "player->y = (int16_t) bits_read( reader, 14 );", "net_readers"),
    ("arena_net.h", "        if ( !before.is_there )\n            before = arena_no_view();\n", "", "net_snapshots_make"),
    ("arena_net.h", "first < 0x20 || first == 0x7f", "first < 0x20", "net_text"),
    ("arena_net.h", "more == 1 && code < 0xa0", "more == 1 && code < 0x80", "net_text"),
    ("arena_net.h", "code < 0x800 || ( code >= 0xd800 && code < 0xe000 )", "code < 0x800", "net_text"),
    ("arena_net.h", "code < 0x10000 || code > 0x10ffff", "code < 0x10000", "net_text"),
    ("arena_net.h", "(int) strlen( news->text ) == length && arena_is_text", "arena_is_text", "net_news_with"),
    ("arena_net.h", "shot->other = shot->other == ARENA_PLAYERS ? ARENA_NOBODY : shot->other;", "", "net_shots"),
    # arena_sim.h: map, moves, shots
    ("arena_sim.h", "if ( bytes != ARENA_MAP_BYTES )", "if ( bytes > ARENA_MAP_BYTES )", "sim_map_of_another:san"),
    ("arena_sim.h", "( is_border && line[column] != '#' ) || ", "", "sim_map_has_walls"),
    ("arena_sim.h", "if ( map->items == ARENA_ITEMS )", "if ( map->items > ARENA_ITEMS )", "sim_map_has_not"),
    ("arena_sim.h", "return map->spawns > 0;", "return 1;", "sim_map_has_not"),
    ("arena_sim.h", "right && down ? ARENA_SLANTED_SPEED : ARENA_SPEED", "ARENA_SPEED", "sim_players_move"),
    ("arena_sim.h", "arena_is_blocked( map, x, y ) )\n        y =", "arena_is_blocked( map, player->x, y ) )\n        y =", "sim_corners sim_no_player"),
    ("arena_sim.h", "!( command->buttons & ARENA_FIRE ) || player->wait_fire", "!( command->buttons & ARENA_FIRE )", "sim_reload"),
    ("arena_sim.h", "hit->health > ARENA_DAMAGE ? hit->health - ARENA_DAMAGE : 0", "hit->health - ARENA_DAMAGE", "sim_little"),
    ("arena_sim.h", "if ( arena->players[killer].score < ARENA_MAX_SCORE )", "if ( killer >= 0 )", "sim_score"),
    ("arena_sim.h", "along >= 0 && along <= reach", "along >= 0", "sim_shots_stop"),
    # lag compensation
    ("arena_sim.h", "!arena_rewind( arena, i, command->view_age, &x, &y )", "!arena_rewind( arena, i, 0, &x, &y )", "sim_targets"),
    ("arena_sim.h", "&arena->past[( newer - 1 ) % ARENA_HISTORY]", "&arena->past[newer % ARENA_HISTORY]", "sim_the_past_lies"),
    ("arena_sim.h", "after->y[slot] < 0 || ( part && before->y[slot] < 0 )", "after->y[slot] < 0", "sim_the_past_begins"),
    ("arena_sim.h", "( part && before->y[slot] < 0 )", "before->y[slot] < 0", "sim_the_past_begins"),
    ("arena_sim.h", "int can_be_hit = player->is_there && player->health;", "int can_be_hit = player->is_there;", "sim_the_returned"),
    ("arena_sim.h", "        arena->past[i].x[slot] = arena->past[i].y[slot] = -1;", "        (void) i;", "sim_the_next"),
    ("arena_sim.h", "memset( arena->past, 0xff, sizeof( arena->past ) );", "", "sim_the_past_begins"),
    # prediction, reconciliation, the clocks
    ("arena_client.h", "client->own = *guess = *truth;", "*guess = *truth;", "together_"),
    ("arena_client.h", "at != client->command_tick; )", "at + 1 < client->command_tick; )", "together_"),
    ("arena_client.h", "( uint32_t at = tick; at != client->command_tick; )\n        arena_client_predict( client, ++at );", "( uint32_t at = tick + 1; at <= client->command_tick; at++ )\n        arena_client_predict( client, at );", "hostile_server_at"),
    ("arena_client.h", "        memset( client->commands, 0, sizeof( client->commands ) );\n", "", "clocks_commands"),
    ("arena_client.h", "    } else if ( (int64_t) tick + margin > client->settled ) {", "    } else {", "clocks_when"),
    ("arena_client.h", "        client->ahead += wrong * 0.03 *", "        (void) wrong; client->ahead += 0.0 *", "clocks_ together_"),
    ("arena_client.h", "double age = ( (double) tick - client->render ) * ARENA_VIEW_PARTS;", "double age = 8.0;", "together_what"),
    ("arena_client.h", "snapshot.tick <= client->newest.tick", "0", "hostile_server"),
    ("arena_client.h", "stream->tag != ARENA_MAP_TAG || stream->bytes != ARENA_MAP_BYTES", "stream->tag != ARENA_MAP_TAG", "hostile_server_with_streams:san"),
    ("arena_client.h", "complete && arena_map_read( &client->map, client->map_text, ARENA_MAP_BYTES )", "arena_map_read( &client->map, client->map_text, ARENA_MAP_BYTES ) || complete", "hostile_server_with_another"),
    ("arena_client.h", "client->news_written - client->news_read < ARENA_NEWS_KEPT", "1", "hostile_server_with_news"),
    # the server
    ("server.c", "            note_margin( slot, margin ); /* its", "            ; /* its", "clocks_when_a_long"),
    ("server.c", "margin > ARENA_MAX_MARGIN ? ARENA_MAX_MARGIN", "margin > ARENA_NO_MARGIN ? ARENA_NO_MARGIN", "clocks_when_a_long"),
    ("server.c", "margin >= COMMANDS_KEPT || input->tick", "input->tick", "hostile_commands"),
    ("server.c", "|| input->tick < (uint32_t) input->count )", ")", "hostile_commands_of_the_future"),
    ("server.c", "if ( tick >= next ) {", "if ( 1 ) {", "hostile_late"),
    ("server.c", "slot->command_ticks[tick % COMMANDS_KEPT] == tick", "slot->command_ticks[tick % COMMANDS_KEPT]", "together_a_silent_player"),
    ("server.c", "tick - slot->last_tick <= REPEAT_TICKS", "tick - slot->last_tick <= REPEAT_TICKS + 1", "together_a_silent_player"),
    ("server.c", "slot->last.buttons & ~ARENA_FIRE", "slot->last.buttons", "together_a_silent_player"),
    ("server.c", "news->type != ARENA_NEWS_CHAT || slot->chat_credit < 1.0", "news->type != ARENA_NEWS_CHAT", "together_chat hostile_thousand"),
    ("server.c", "news->type != ARENA_NEWS_CHAT || slot->chat_credit < 1.0", "slot->chat_credit < 1.0", "hostile_news"),
    ("server.c", "if ( slot->chat_credit < CHAT_BURST )", "if ( 1 )", "together_chat"),
    ("server.c", "news->player = index; /* whoever", "/* whoever", "hostile_news"),
    ("server.c", "    if ( !arena_is_text( slot->name, ARENA_NAME_BYTES ) )\n", "    if ( !slot->name[0] )\n", "together_names"),
    ("server.c", "i > ARENA_NAME_BYTES - 4 && !arena_is_text", "i > ARENA_NAME_BYTES && !arena_is_text", "together_names"),
    ("server.c", "( sent != NETCODE_OK && channel == ARENA_NEWS )", "( sent != NETCODE_OK && channel == ARENA_MAP )", "hostile_client_that_ack"),
    ("server.c", "    memset( slot, 0, sizeof( *slot ) );\n    slot->messages = messages;", "    slot->messages = messages;", "together_a_slot"),
    ("server.c", "    arena_leave( &game->arena, event->client_index );\n", "", "together_a_slot"),
]


def path_of(file):
    return os.path.join("examples", "arena", file)


def stale():
    """A line for each row that can not be planted."""
    lines = []
    for file, text, instead, _ in FAULTS:
        with open(os.path.join(TOP, path_of(file)), encoding="utf-8") as source:
            count = source.read().count(text)
        if count != 1 or text == instead:
            lines.append("%s: stands there %d times: %s" % (file, count, " ".join(text.split())))
    return lines


def copy(folder):
    for name in COPIED:
        source, product = os.path.join(TOP, name), os.path.join(folder, name)
        os.makedirs(os.path.dirname(product), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, product)


def build(folder, is_san):
    """The compiler's messages, or ''."""
    flags = subprocess.run(["sh", "tests/tools/deps.sh", "--cflags"], cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    libraries = subprocess.run(["sh", "tests/tools/deps.sh", "--libs"], cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    san = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if is_san else []
    command = CC + ["-std=c99", "-O0", "-w", "-I.", "-Iexamples", *san, *flags, "tests/arena/unit.c", *libraries, "-lm", "-o", "unit"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else result.stderr.strip() or "the compiler failed"


def run(folder, tests):
    """What the first of these tests that notices says, or ''."""
    for test in tests:
        try:
            result = subprocess.run(["./unit", test], cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "%s does not end" % test
        if result.returncode:
            failed = [line.split()[2].rstrip(",") for line in result.stdout.splitlines() if line.startswith("FAILED")]
            return " ".join(failed[:3]) or "%s crashes" % test
    return ""


def judge(row):
    """Whether the fault is noticed, and a line. Without a text to replace: whether all tests pass."""
    file, text, instead, words = row
    tests, _, how = words.partition(":")
    with tempfile.TemporaryDirectory(prefix="arena-fault-") as folder:
        copy(folder)
        if file:
            path = os.path.join(folder, path_of(file))
            with open(path, encoding="utf-8") as source:
                changed = source.read().replace(text, instead)
            with open(path, "w", encoding="utf-8") as product:
                product.write(changed)
        wrong = build(folder, how == "san")
        if wrong:
            return False, "does not compile: " + wrong.splitlines()[0]
        noticed = run(folder, tests.split())
    return bool(noticed), noticed or "%s passed" % tests


def main():
    words = sys.argv[1:]
    lines = stale()
    if words == ["--stale"] or lines:
        print("\n".join(lines + ["%d faults, %d wrong" % (len(FAULTS), len(lines))]))
        return 1 if lines else 0
    chosen = [row for row in FAULTS if not words or any(word in " ".join(row) for word in words)]
    if not chosen:
        raise SystemExit("no fault has these words: " + " ".join(words))
    whole = sorted({test for row in chosen for test in row[3].partition(":")[0].split()})
    failed, line = judge(("", "", "", " ".join(whole)))
    if failed or "compile" in line:
        raise SystemExit("the tests fail without a fault: " + line)
    noticed = 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for row, (good, line) in zip(chosen, pool.map(judge, chosen)):
            print("%-7s %s: %s: %s" % ("noticed" if good else "MISSED", row[0], " ".join(row[1].split())[:70], line), flush=True)
            noticed += good
    print("arena-faults: %d noticed, %d missed" % (noticed, len(chosen) - noticed))
    return noticed != len(chosen)


if __name__ == "__main__":
    sys.exit(main())
