"""Shows that the checks of lint.py can fail: each is given a small sound library, which it must accept, and broken copies, which it must
refuse."""

import index

ROOMS = (
    ("PLATFORM", "static int nc_init_count;\nstatic int nc_log_threshold;\nstatic void * nc_printf_function;\n"
                 "static int nc_packet_tagging;\nstatic int nc_client_error;\nstatic int nc_server_error;\n"
                 "#if !defined( NETCODE_STATIC )\nvoid ( *netcode_assert_function )( const char *, const char *, const char *, int );\n#endif\n"
                 "static int nc_platform_read( void )\n{\n    return nc_init_count + nc_log_threshold + !nc_printf_function +\n"
                 "           nc_packet_tagging + nc_client_error + nc_server_error;\n}\n"
                 "static void nc_platform_write( void )\n{\n    nc_init_count = nc_log_threshold = nc_packet_tagging = 1;\n"
                 "    nc_client_error = nc_server_error = 1;\n    nc_printf_function = &nc_log_threshold;\n}\n"),
    ("BYTES", "#define NC_BYTES_LIMIT 4\nstruct nc_bytes { int size; };\nstatic int nc_bytes_read( struct nc_bytes * bytes )\n{\n"
              "    return bytes->size < NC_BYTES_LIMIT;\n}\n"),
    ("CRYPTO", "#include <sodium.h>\nstatic int nc_crypto_random( void )\n{\n    return (int) randombytes_random();\n}\n"),
    ("ADDRESS", "NETCODE_API int netcode_parse_address( const char * text )\n{\n    return text[0] + nc_crypto_random();\n}\n"),
    ("TOKEN", "static int nc_token_read( void )\n{\n    return netcode_parse_address( \"nc_server_step( { }\" );\n}\n"),
    ("REPLAY", ""), ("PACKET", ""), ("TABLE", ""), ("SOCKET", ""), ("SIMULATOR", ""), ("CLIENT", ""),
    ("SERVER", "static int nc_server_step( struct nc_bytes * bytes )\n{\n    return nc_bytes_read( bytes ) + nc_platform_read();\n}\n"
               "NETCODE_API void netcode_server_update( void )\n{\n    struct nc_bytes bytes = { 1 };\n    nc_platform_write();\n"
               "    nc_init_count = nc_server_step( &bytes ) + nc_token_read();\n}\n#undef NC_BYTES_LIMIT\n"),
)

PUBLIC = """/* This. Decision 7 */
#ifndef SAMPLE_H
#define SAMPLE_H
#include <stddef.h>
#include <stdint.h>
#if defined( NETCODE_STATIC )
#define NETCODE_API static
static void ( *netcode_assert_function )( const char *, const char *, const char *, int );
#else
#define NETCODE_API extern
extern void ( *netcode_assert_function )( const char *, const char *, const char *, int );
#endif
/* Reads an address. Standard: Connect Token; Challenge Token */
NETCODE_API int netcode_parse_address( const char * text );
/* Updates. Standard: Replay Protection; Packets, the part about
   payloads. And, wrapped, Standard: Connect
   Token */
NETCODE_API void netcode_server_update( void );
#endif
#ifdef NETCODE_IMPLEMENTATION
"""


USES = {"ADDRESS": "crypto", "TOKEN": "address", "SERVER": "platform, bytes, token"}


def sample():
    text = PUBLIC
    for number, (name, body) in enumerate(ROOMS, 1):
        uses = USES.get(name, "nothing")
        text += "/* ====\n    ROOM %d: %s\n    Which question?\n    Uses: %s.\n   ==== */\n%s" % (number, name, uses, body)
    return index.made(text) + text + "#endif\n"


LONG = "static int nc_server_long( int a )\n{\n" + "    a++;\n" * 71 + "}\n"

# (check, what is replaced, by what)
BREAKS = (
    ("check_rooms_in_order", "ROOM 5: TOKEN", "ROOM 6: TOKEN"),
    ("check_rooms_in_order", "ROOM 5: TOKEN", "Room 5: token"),
    ("check_no_foreign_macros", "int size;", "int near;"),
    ("check_no_forward_declarations", "#define NC_BYTES_LIMIT 4", "#define NC_BYTES_LIMIT 4\nstatic int nc_server_step( struct nc_bytes * b );"),
    ("check_no_forward_declarations", "#define NC_BYTES_LIMIT 4", "#define NC_BYTES_LIMIT 4\nstruct nc_server;"),
    ("check_nothing_used_above_its_room", "return text[0]", "return nc_server_step( NULL ) + text[0]"),
    ("check_nothing_used_above_its_room", "static int nc_platform_read", "struct nc_bytes * nc_platform_b;\nstatic int nc_platform_read"),
    ("check_prefix_belongs_to_one_room", "nc_token_read", "nc_bytes_token"),
    ("check_prefix_belongs_to_one_room", "static int nc_token_read", "int nc_token_read"),
    ("check_uses", "Uses: crypto.", "Uses: nothing."),
    ("check_uses", "Uses: address.", "Uses: bytes, address."),
    ("check_uses", "    Uses: address.\n", ""),
    ("check_uses", "return bytes->size", "return nc_init_count + bytes->size"),
    ("check_libsodium_in_its_room", "return text[0]", "return sodium_init() + text[0]"),
    ("check_public_includes", "#include <stddef.h>", "#include <stddef.h>\n#include <stdio.h>"),
    ("check_public_functions_documented", "   Token */\n", "   Token */\n\n"),
    ("check_cuts", "return text[0]", "netcode_server_update();\n    return text[0]"),
    ("check_cuts", "return text[0]", "return nc_server_step( NULL ) + text[0]"),
    ("check_exports", "NETCODE_API int netcode_parse_address( const char * text )\n{", "int netcode_parse( void )\n{\n    return 1;\n}\n"
                      "NETCODE_API int netcode_parse_address( const char * text )\n{"),
    ("check_exports", "static int nc_token_read", "int nc_token_read"),
    ("check_exports", "NETCODE_API void netcode_server_update( void );", "NETCODE_API void netcode_server_update( void );\nNETCODE_API void netcode_x( void );"),
    ("check_mutable_data", "return bytes->size", "static int calls;\n    return calls++ + bytes->size"),
    ("check_mutable_data", "nc_packet_tagging", "nc_too"),
    ("check_private_macros_undefined", "#undef NC_BYTES_LIMIT\n", ""),
    ("check_function_lengths", "static int nc_server_step", LONG + "static int nc_server_step"),
    ("check_line_lengths", "Updates.", "Updates" + 120 * "."),
    ("check_citations", "Standard: Connect Token;", "Standard: Connect Tokens;"),
    ("check_citations", "; Challenge Token */", "; The Challenge */"),
    ("check_decisions", "Decision 7", "Decision 77"),
    ("check_index", " 5 token      Which question?", " 5 token      Why?"),
    ("check_unfinished", "Updates.", "TO" + "DO: updates."),
)


def run(lint):
    failures = 0
    sound = sample()
    for check in lint.OF_THE_HEADER + lint.OF_EVERY_FILE:
        for fault in check(sound):
            print("FAIL %s refuses a sound file: %s" % (check.__name__, fault))
            failures += 1
        if check.__name__ not in {name for name, _, _ in BREAKS}:
            print("FAIL %s is never shown to fail" % check.__name__)
            failures += 1
    for name, before, after in BREAKS:
        assert before in sound, before
        if not getattr(lint, name)(sound.replace(before, after)):
            print("FAIL %s accepts %r in place of %r" % (name, after[:60], before[:60]))
            failures += 1
    for page, faults in (("`nc_token_read`, `tests/lint/lint.py`", 0), ("`nc_token_wrote`", 1), ("`tests/lint/no.py`", 1)):
        if len(lint.check_page(page, sound)) != faults:
            print("FAIL check_page finds not %d faults in %s" % (faults, page))
            failures += 1
    for page, faults in (("## Decisions\n\n7. This.\n", 0), ("## Decisions\n\n8. That.\n", 1), ("## Other\n\n7. This.\n", 1)):
        if len(lint.check_decisions(sound, page)) != faults:
            print("FAIL check_decisions finds not %d faults beside %r" % (faults, page))
            failures += 1
    print("%-4s %d checks, %d broken files" % ("FAIL" if failures else "ok", len(lint.OF_THE_HEADER + lint.OF_EVERY_FILE), len(BREAKS)))
    return 1 if failures else 0
