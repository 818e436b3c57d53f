#!/usr/bin/env python3
"""Tests examples/docs: the pages hold all of netcode.h's manual and API, and what MIGRATION.md and FAQ.md say exists and compiles.

    python3 tests/all/docs.py            makes the pages in a folder of its own, checks them, and checks that each check can fail

What the API is comes from the compiler's preprocessor and from the header's plain lines, not from the program that makes the pages.
"""

import concurrent.futures
import html.parser
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get("CC", "cc").split()
OWN = "examples/docs/README.md"
PAGES = ("netcode.html", "migration.html", "faq.html")
BROWSER = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"]  # fmt: skip

# Figures that FAQ.md and MIGRATION.md take over: what they say, where that stands, and how.
FIGURES = (
    ("99th percentile is 67 ms", "tests/README.md", "messages 67, 67, 67, 83;"),
    ("234 to 251 ms over the kernel's TCP", "tests/README.md", "bbr 170, 184, 234, 302, with\ncubic 167, 202, 251, 555"),
    ("1.04 to 1.15 times", "README.md", "1.04 to 1.05 ×"),
    ("1.04 to 1.15 times", "README.md", "1.11 to 1.15 ×"),
    ("1.8 to 3.8 µs", "README.md", "1.8, 2.1 or 3.8 µs"),
    ("4,400 to 9,000 clients at 60 Hz", "README.md", "9,000, 7,800 or 4,400 clients"),
    ("at most 0.31 bytes leave", "netcode.h", "at most 0.31 bytes out for a byte in"),
    ("65,535 slots", "netcode.h", "#define NETCODE_MAX_SLOTS 65535 "),
    ("up to 16 MiB", "netcode.h", "#define NETCODE_MESSAGES_MAX_BYTES 16777216 "),
    ("datagram of 1225 at most", "netcode.h", "payload 1200 bytes, datagram 1225;"),
    ("256 bytes of your own", "netcode.h", "#define NETCODE_USER_DATA_BYTES 256 "),
    ("names up to 32 servers", "netcode.h", "#define NETCODE_MAX_SERVERS_PER_CONNECT 32 "),
    ("reserves 375 KiB and uses 12 of them", "netcode.h", "A client reserves 375 KiB so, of which it uses 12"),
    ("above 1180 bytes", "netcode.h", "#define NETCODE_MESSAGES_WHOLE_BYTES 1180 "),
    ("32 ordering channels", "netcode.h", "#define NETCODE_MESSAGES_CHANNELS 32 "),
    ("random place below 2^48", "netcode.h", "Sequences start at a random place below 2^48"),
    ("mint` gives 45", "examples/token.c", "#define DEFAULT_EXPIRE_SECONDS 45 "),
    ("has it as row 26", "tests/attacks/rows.py", 'row(26, "ENV", "the unix clock steps back'),
    ("prints 82 attacks and faults", "README.md", "`make attacks` prints the 82 attacks and faults"),
)

FRAGMENT = """#define NETCODE_MESSAGES
#include "netcode.h"
extern struct netcode_server_t * server;
extern struct netcode_client_t * client;
extern struct netcode_server_config_t server_config;
extern struct netcode_client_config_t client_config;
extern struct netcode_server_stats_t server_stats;
extern struct netcode_server_client_stats_t slot_stats;
extern struct netcode_client_stats_t client_stats;
extern struct netcode_client_report_t report;
extern struct netcode_event_t event;
extern struct netcode_address_t address;
extern struct netcode_socket_t network_socket;
extern struct netcode_network_simulator_t * simulator;
extern struct netcode_messages_t * messages;
extern struct netcode_messages_config_t messages_config;
extern struct netcode_message_t message;
extern struct netcode_messages_event_t messages_event;
extern struct netcode_messages_stats_t messages_stats;
extern struct netcode_messages_channel_stats_t channel_stats;
extern uint8_t private_key[NETCODE_KEY_BYTES], keys[2 * NETCODE_KEY_BYTES];
extern uint8_t connect_token[NETCODE_CONNECT_TOKEN_BYTES], user_data[NETCODE_USER_DATA_BYTES];
extern char text[NETCODE_MAX_ADDRESS_STRING_LENGTH];
extern const char * addresses[1];
extern int print( const char *, ... );
extern uint8_t * data;
extern int bytes, client_index, reason;
extern uint64_t client_id, protocol_id;
extern double time;
void rows( void );
void rows( void )
{
%s}
"""

# What FAQ.md says about bytes on the wire, asked of a client and a server: what a payload of 100 bytes costs more, the bytes of a
# keep-alive, and how many of them leave in ten seconds, without payloads and beside them; with random sequences, and with those that begin at zero.
WIRE = """#define NETCODE_IMPLEMENTATION
#include "netcode.h"
#include <stdio.h>
static int pays;
static void turn( struct netcode_network_simulator_t * net, struct netcode_server_t * server, struct netcode_client_t * client, int from, int to )
{
    for ( int i = from; i < to; i++ ) {
        netcode_network_simulator_update( net, i * 0.01 );
        netcode_client_update( client, i * 0.01 );
        netcode_server_update( server, i * 0.01 );
        if ( pays )
            netcode_client_send_packet( client, (const uint8_t *) "x", 1 ), netcode_server_send_packet( server, 0, (const uint8_t *) "x", 1 );
    }
}
static void measure( int base )
{
    const char * place = "127.0.0.1:40000";
    uint8_t token[NETCODE_CONNECT_TOKEN_BYTES], data[100] = { 0 };
    struct netcode_network_simulator_t * net = netcode_network_simulator_create( NULL, NULL, NULL );
    struct netcode_server_config_t server_config;
    struct netcode_client_config_t client_config;
    struct netcode_client_stats_t first, quiet, last;
    netcode_default_server_config( &server_config );
    netcode_default_client_config( &client_config );
    server_config.network_simulator = client_config.network_simulator = net;
    server_config.sequence_base = client_config.sequence_base = base;
    netcode_random_bytes( server_config.private_key, NETCODE_KEY_BYTES );
    struct netcode_server_t * server = netcode_server_create( place, &server_config, 0.0 );
    struct netcode_client_t * client = netcode_client_create( "127.0.0.1:50000", &client_config, 0.0 );
    netcode_server_start( server, 4 );
    netcode_generate_connect_token( 1, &place, &place, 60, 5, 7, 0, server_config.private_key, NULL, token );
    netcode_client_connect( client, token );
    turn( net, server, client, 1, 100 );
    netcode_client_stats( client, &first );
    turn( net, server, client, 100, 1100 );
    netcode_client_stats( client, &quiet );
    netcode_client_send_packet( client, data, sizeof( data ) );
    netcode_client_stats( client, &last );
    pays = 1;
    turn( net, server, client, 1100, 2100 );
    struct netcode_client_stats_t busy;
    netcode_client_stats( client, &busy );
    pays = 0;
    int count = (int) ( quiet.packets_sent[NETCODE_PACKET_KEEP_ALIVE] - first.packets_sent[NETCODE_PACKET_KEEP_ALIVE] );
    printf( "%d %d %d %d;", (int) ( last.bytes_sent - quiet.bytes_sent ) - 100, (int) ( quiet.bytes_sent - first.bytes_sent ) / count, count,
            (int) ( busy.packets_sent[NETCODE_PACKET_KEEP_ALIVE] - last.packets_sent[NETCODE_PACKET_KEEP_ALIVE] ) );
    netcode_client_destroy( client );
    netcode_server_destroy( server );
    netcode_network_simulator_destroy( net );
}
int main( void )
{
    if ( netcode_init() != NETCODE_OK )
        return 1;
    measure( NETCODE_SEQUENCE_BASE_RANDOM );
    measure( NETCODE_SEQUENCE_BASE_ZERO );
    return 0;
}
"""

# What MIGRATION.md says about empty slots, ids in the log, loopback clients and memory, asked of the library.
STUMBLES = """#define NETCODE_IMPLEMENTATION
#include "netcode.h"
#include <stdio.h>
static char last[512];
static void on_log( void * context, int level, const char * text )
{
    (void) context;
    (void) level;
    snprintf( last, sizeof( last ), "%s", text );
}
int main( void )
{
    struct netcode_server_config_t config;
    struct netcode_client_config_t client_config;
    netcode_default_server_config( &config );
    netcode_default_client_config( &client_config );
    if ( netcode_init() != NETCODE_OK )
        return 1;
    netcode_random_bytes( config.private_key, NETCODE_KEY_BYTES );
    config.log_callback = on_log;
    struct netcode_server_t * server = netcode_server_create( "127.0.0.1:0", &config, 0.0 );
    netcode_server_start( server, 4 );
    netcode_log_level( NETCODE_LOG_LEVEL_INFO );
    for ( int slot = 0; slot <= 300; slot += 300 )
        printf( "%d%d ", netcode_server_client_user_data( server, slot ) == NULL, netcode_server_client_address( server, slot ) == NULL );
    netcode_server_connect_loopback_client( server, 0, 1234605616436508552u, NULL );
    printf( "%d ", strstr( last, "1234605616436508552" ) != NULL );
    netcode_server_connect_loopback_client( server, 1, 1234605616436508552u, NULL );
    printf( "%d %d ", netcode_server_client_connected( server, 1 ), strstr( last, "id is connected" ) != NULL );
    printf( "%d", (int) ( netcode_client_memory( &client_config ) / 1024 ) );
    netcode_server_destroy( server );
    return 0;
}
"""

passed, failed, skipped = 0, 0, 0


def report(name, faults, detail=""):
    global passed, failed
    passed, failed = passed + (not faults), failed + bool(faults)
    print("%s %s%s" % ("FAILED" if faults else "ok    ", name, ": " + detail if detail and not faults else ""), flush=True)
    for fault in faults[:8]:
        print("       " + fault)
    if len(faults) > 8:
        print("       and %d more" % (len(faults) - 8))


def skip(name, why):
    global skipped
    skipped += 1
    print("skipped %s: %s" % (name, why), flush=True)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def run(command, **options):
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=120,
                          check=False, **options)  # fmt: skip


# ---- a page, as an HTML reader sees it ----

TAGS = set("html head meta title style body header nav main h1 h2 h3 h4 a b p ul li dl dt dd div pre code span strong em".split())
TAGS |= set("table colgroup col thead tbody tr th td".split())
EMPTY = {"meta", "link", "br", "hr", "img", "input", "col", "wbr", "area", "base", "embed", "source", "track"}


class Page(html.parser.HTMLParser):
    """Its ids, links, headings and words; and what is wrong with its markup."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.faults, self.open, self.main, self.headings, self.fetched = [], [], [], [], [], {}, []
        self.heading = None
        self.feed(text)
        self.close()
        self.faults += ["<%s> is never closed" % tag for tag in self.open]
        # What is left of the words when spaces are gone: a line of the header is a part of it, however it was laid out.
        self.squeezed = squeeze("".join(self.main))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.fetched += ["%s=%s" % (name, value) for name, value in attributes if name in ("src", "srcset", "data", "poster", "action")]
        self.fetched += ["<%s>" % tag] if tag in ("script", "link", "iframe", "object") else []
        if re.match(r"h\d$", tag):
            self.heading = values.get("id", "")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append("</%s> in line %d closes nothing" % (tag, self.getpos()[0]))
            self.open = self.open if tag in self.open else self.open + [tag]
        if re.match(r"h\d$", tag):
            self.heading = None

    def handle_data(self, data):
        if "style" in self.open:
            self.fetched += re.findall(r"@import.*|url\(.*?\)|https?:.*", data)
        if "main" in self.open:
            self.main.append(data)
        if self.heading is not None:
            self.headings[self.heading] = self.headings.get(self.heading, "") + data


def squeeze(text):
    """Without spaces, quotes of code, and capitals."""
    return re.sub(r"[\s`]+", "", text).lower()


# ---- the API, as the preprocessor sees it ----


class Truth:
    def __init__(self, header):
        self.header = header
        start = header.index("#define NETCODE_SINGLE_FILE_H\n")
        self.public = header[start : header.index("#endif /* NETCODE_SINGLE_FILE_H */")]
        self.public = self.public[self.public.index("\n") + 1 :]
        plain = self.preprocess("-E", "-P")
        self.functions = set(re.findall(r"\bextern\s[^;{]*?\b(netcode_\w+)\s*\(", plain))
        self.functions |= set(re.findall(r"\(\s*\*\s*(netcode_\w+)\s*\)", plain))
        self.fields, self.enumerators = {}, set()
        self.types = set(re.findall(r"\b(?:struct|enum)\s+(netcode_\w+)", plain))
        for name, body in structs(plain):
            self.fields[name] = set(fields(body))
        for body in re.findall(r"\benum\s+\w+\s*\{(.*?)\}", plain, re.S):
            self.enumerators |= set(re.findall(r"NETCODE_\w+", body))
        self.macros = set(re.findall(r"^#define (NETCODE_\w+|netcode_\w+)", self.preprocess("-E", "-dM"), re.M))
        self.macros |= set(re.findall(r"^\s*#define (NETCODE_\w+|netcode_\w+)", self.public, re.M))
        self.macros -= {"NETCODE_SINGLE_FILE_H", "NETCODE_MESSAGES", "NETCODE_DROP_ENUM", "NETCODE_MESSAGES_DROP_ENUM"}

    def preprocess(self, *options):
        result = run(CC + list(options) + ["-DNETCODE_MESSAGES", "-x", "c", "-"], input=self.header)
        if result.returncode:
            raise SystemExit("the header can not be preprocessed: " + result.stdout)
        return result.stdout

    def names(self):
        return self.functions | self.types | self.enumerators | self.macros

    def field_names(self):
        return {"%s.%s" % (name, field) for name, all_of_it in self.fields.items() for field in all_of_it}


def structs(text):
    for match in re.finditer(r"\bstruct (netcode_\w+)\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match[1], text[match.end() : at - 1]


def fields(body):
    """The names that a struct's declarations declare; those inside a union begin with the union's."""
    for inner, name in re.findall(r"union\s*\{(.*?)\}\s*(\w+)\s*;", body, re.S):
        yield name
        for field in fields(inner):
            yield name + "." + field
    for declaration in re.sub(r"union\s*\{.*?\}\s*\w+\s*;", "", body, flags=re.S).split(";"):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if pointer:
            yield pointer[1]
        else:
            for part in declaration.split(","):
                yield from re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip())


# ---- checks: each gives the list of its faults ----


def check_names(truth, pages, texts):
    ids = set(pages["netcode.html"].ids)
    return ["%s has no anchor" % name for name in sorted((truth.names() | truth.field_names()) - ids)]


def check_anchors(truth, pages, texts):
    known = truth.names() | truth.field_names()
    ours = [name for name in pages["netcode.html"].ids if re.match(r"netcode_|NETCODE_", name)]
    return ["the anchor %s names nothing in the header" % name for name in ours if name not in known]


def check_sections(truth, pages, texts):
    found = re.findall(r"^    (\d+)  ([A-Z][A-Z0-9 ,:'-]+)$", truth.header[: truth.header.index("*/")], re.M)
    headings = pages["netcode.html"].headings
    faults = ["section %s, %s, has no heading" % (number, title) for number, title in found
              if squeeze(headings.get("section-" + number, "")) != squeeze(number + title)]  # fmt: skip
    count = len(found)
    in_order = [int(number) for number, _ in found] == list(range(1, count + 1)) and count >= 16
    return faults + ([] if in_order else ["the manual's sections are not 1 to 16 or more"])


def lines_of_the_manual(header):
    text = header[header.index("/*") + 2 : header.index("*/")]
    rule = text.index("======")
    first = text.index("\n    1  ", text.index("\n    MANUAL"))
    return text[:rule].split("\n") + ["Manual"] + text[first:].split("\n")


def check_manual(truth, pages, texts):
    """Every line of the manual is on the page, in its order."""
    page, at, faults = pages["netcode.html"].squeezed, 0, []
    for line in lines_of_the_manual(truth.header):
        wanted = squeeze(re.sub(r"^      - ", "", line))
        found = page.find(wanted, at)
        if found < 0:
            faults.append("not on the page, or not in its place: " + line.strip())
        at = at if found < 0 else found + len(wanted)
    return faults


def piece(line):
    """What a line of the API leaves on the page: no comment marks, no #define, no NETCODE_API."""
    row = re.match(r'\s*X\(\s*(\w+)\s*,\s*"(.*)"\s*\)', line)
    if row:
        return squeeze(re.sub(r'\\"', '"', row[2]))
    if re.search(r"/\* clang-format (on|off) \*/|^\s*/\* =+$|^\s*=+ \*/$|_LIST\( X \) +\\$|defined\( NETCODE_MESSAGES \)$|^#endif$", line):
        return ""
    line = re.sub(r"/\* -+ (.*?) -+ \*/", lambda match: re.split(": ", match[1])[0], line)
    line = re.sub(r"^struct (\w+) \{$", r"\1", "" if line == "};" else line)
    return squeeze(re.sub(r"/\*|\*/|^#define |^NETCODE_API ", "", line))


def check_api(truth, pages, texts):
    """Every line of the public API is on the page, as often as in the header. What stands verbatim may keep its comment marks."""
    page = re.sub(r"/\*|\*/|#define", "", pages["netcode.html"].squeezed)
    wanted = [each for each in map(piece, truth.public.split("\n")) if len(each) > 1]
    return ["%d of %d times on the page: %s" % (page.count(each), wanted.count(each), each) for each in sorted(set(wanted))
            if page.count(each) < wanted.count(each)]  # fmt: skip


def check_drops(truth, pages, texts):
    """Each reason stands beside its number and sentence."""
    page, faults = pages["netcode.html"].squeezed, []
    for macro, body in re.findall(r"#define (NETCODE_\w*DROP)_LIST\( X \)(.*?)\n(?!    X)", truth.public, re.S):
        for number, (name, sentence) in enumerate(re.findall(r'X\( *(\w+) *, "(.*?)" \)', body)):
            if squeeze("%s_%s%d%s" % (macro, name, number, sentence)) not in page:
                faults.append("%s_%s is not beside its number and sentence" % (macro, name))
    return faults


def check_changelog(truth, pages, texts):
    body = truth.header[truth.header.rindex("    CHANGELOG\n") :]
    lines = [line for line in body.split("\n") if "====" not in line]
    return ["not on the page: " + line.strip() for line in lines if squeeze(line) not in pages["netcode.html"].squeezed]


def check_links(truth, pages, texts):
    faults = []
    for name, page in pages.items():
        for target in page.links:
            path, _, anchor = target.partition("#")
            there = pages.get(path or name)
            if there is None or (anchor and anchor not in there.ids):
                faults.append("%s: a link leads to %s, which is not there" % (name, target))
        faults += ["%s: the id %s is there twice" % (name, each) for each in set(page.ids) if page.ids.count(each) > 1]
    return faults


def check_alone(truth, pages, texts):
    return ["%s would fetch %s" % (name, what) for name, page in pages.items() for what in page.fetched]


def check_markup(truth, pages, texts):
    return ["%s: %s" % (name, fault) for name, page in pages.items() for fault in page.faults]


def check_escapes(truth, pages, texts):
    """Outside of tags there is no bare <, > or &, and the tags are those that pages of text are made of."""
    faults = []
    for name in PAGES:
        text = re.sub(r"<style>.*?</style>|^<!DOCTYPE html>", "", texts[name], flags=re.S)
        faults += ["%s: a <%s> comes from nowhere" % (name, tag) for tag in set(re.findall(r"<(\w+)", text)) - TAGS]
        text = re.sub(r"<[^<>]*>", "", text)
        faults += ["%s: not escaped: %s" % (name, each) for each in re.findall(r".{0,20}(?:[<>]|&(?!\w+;|#\d+;)).{0,20}", text)]
    return faults


def check_prose(truth, pages, texts):
    """Every cell and line of MIGRATION.md and FAQ.md is on its page."""
    faults = []
    for name in ("MIGRATION.md", "FAQ.md"):
        page = pages[name[: name.index(".")].lower() + ".html"].squeezed
        for line in texts[name].split("\n")[1:]:
            line = re.sub(r"^\|[-| ]+\|$|^#+ ", "", line).replace("\\|", "|")
            line = re.sub(r"(?<!`)\*([\w.]+)\*", r"\1", line)
            for part in line.strip("| ").split(" | "):
                faults += ["%s: not on the page: %s" % (name, part)] if squeeze(part.strip("|")) not in page else []
    return faults


# ---- what the two texts name ----


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def tables(text):
    """Rows of tables that have a column called netcode.h: line number, that cell, the number of cells."""
    column = wide = None
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in re.split(r"(?<=[^\\])\|", line.strip()[1:-1])] if line.startswith("|") else []
        if not cells:
            column = None
        elif column is None and "netcode.h" in cells:
            column, wide = cells.index("netcode.h"), len(cells)
        elif column is not None and not re.match(r"^[-| ]+$", line):
            yield number, cells[column] if len(cells) == wide else "", len(cells) == wide


def snippets(text):
    """(line, code) of everything in a netcode.h column; rows without a counterpart begin with `none` and may still show code."""
    for number, cell, _ in tables(text):
        for code in spans(cell):
            if not re.match(r"#|make |(tests|examples)/", code):
                yield number, code


def check_rows(truth, pages, texts):
    rows = list(tables(texts["MIGRATION.md"]))
    faults = ["line %d has another number of cells than its head" % number for number, _, whole in rows if not whole]
    faults += ["line %d has neither code nor `none:`" % number for number, cell, whole in rows
               if whole and not cell.startswith("none: ") and not spans(cell)]  # fmt: skip
    return faults + ([] if len(rows) > 90 else ["only %d rows were found" % len(rows)])


def check_snippets(truth, pages, texts):
    """All of them in one file; the compiler's complaints come with MIGRATION.md's line numbers."""
    body = ""
    for number, code in snippets(texts["MIGRATION.md"]):
        body += '#line %d "MIGRATION.md"\n    %s\n' % (number, code if code.endswith(";") else "(void) ( %s );" % code)
    result = run(CC + ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only", "-I" + ROOT, "-x", "c", "-"],
                 input=FRAGMENT % body)  # fmt: skip
    return [line for line in result.stdout.split("\n") if "error:" in line] or ([result.stdout] if result.returncode else [])


def make_targets():
    text = read("Makefile")
    return set(re.search(r"^\.PHONY:((?:.*\\\n)*.*)", text, re.M)[1].replace("\\", " ").split())


def source_of(program):
    for path in ("examples/%s.c" % program, "examples/%s.cpp" % program, "tests/tools/%s.c" % program):
        if os.path.exists(os.path.join(ROOT, path)):
            return read(path)
    return None


def fault_of_command(words, targets):
    if words[0] == "make":
        missing = [word for word in words[1:] if "=" not in word and word not in targets]
        return "there is no `make %s`" % missing[0] if missing else ""
    if words[0] in ("sh", "python3"):
        return fault_of_path(words[1])
    source = source_of(words[0][len("./build/") :])
    if source is None:
        return "there is no %s" % words[0]
    missing = [word for word in words[1:] if word.strip("-") not in source]
    return "%s does not know %s" % (words[0], missing[0]) if missing else ""


def fault_of_path(path):
    return "" if os.path.exists(os.path.join(ROOT, path)) else "there is no %s" % path


def fault_of_span(code, truth, targets):
    """What is wrong with a piece of code in running text; '' if it exists."""
    words = code.split(" ")
    if re.match(r"netcode\.html#", code):
        return "" if code.split("#")[1] in truth.names() | truth.field_names() else "%s has no anchor" % code
    if os.path.exists(os.path.join(ROOT, "examples/docs", code)):
        return ""
    if words[0] in ("make", "sh", "python3") or words[0].startswith("./build/"):
        return fault_of_command(words, targets)
    if re.match(r"(examples|tests|\.github|build)/|[\w.]+\.(h|md|c)$", code):
        return "" if code.startswith("build/") else fault_of_path(code)
    fields_known = {field for all_of_it in truth.fields.values() for field in all_of_it}
    known = truth.names() | fields_known | {"NETCODE_MESSAGES", "NETCODE_NO_SOCKETS", "NETCODE_NO_LINUX_EXTRAS", "time"}
    reasons = {name for name in truth.enumerators if name == "NETCODE_DROP_" + code or name == "NETCODE_MESSAGES_DROP_" + code}
    if code in known or reasons:
        return ""
    return "`%s` is neither a public name nor a path nor a command" % code


def check_spans(truth, pages, texts):
    targets = make_targets()
    faults = []
    for name in ("FAQ.md", OWN):
        for number, line in enumerate(re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), texts[name], flags=re.S).split("\n"), 1):
            for code in spans(line):
                fault = fault_of_span(code, truth, targets)
                faults += ["%s:%d: %s" % (name, number, fault)] if fault else []
        if re.sub(r"```.*?```", "", texts[name], flags=re.S).count("`") % 2:
            faults.append("%s: a piece of code is not closed" % name)
    for name in ("MIGRATION.md", "FAQ.md", OWN):
        faults += ["%s: there is no section %s" % (name, each) for each in re.findall(r"\b[Ss]ection (\d+)", texts[name]) 
                   if "section-" + each not in pages["netcode.html"].ids]  # fmt: skip
    for code in spans(texts["MIGRATION.md"]):
        if re.match(r"(make|sh|python3) |(examples|tests|build)/|\./build/", code):
            fault = fault_of_span(code, truth, targets)
            faults += ["MIGRATION.md: " + fault] if fault else []
    for block in re.findall(r"```sh\n(.*?)```", texts[OWN], re.S):
        for line in block.strip().split("\n"):
            fault = fault_of_command(line.split("#")[0].split(), targets)
            faults += [OWN + ": " + fault] if fault else []
    return faults


def check_figures(truth, pages, texts):
    faults = []
    for said, path, measured in FIGURES:
        if said not in re.sub(r"\s+", " ", texts["FAQ.md"] + texts["MIGRATION.md"]):
            faults.append("nobody says '%s' any more: take it out of the list of figures" % said)
        source = truth.header if path == "netcode.h" else texts.get(path) or read(path)
        if re.sub(r"\s+", " ", measured) not in re.sub(r"\s+", " ", source):
            faults.append("'%s' is said, but %s no longer says '%s'" % (said, path, measured))
    return faults


def answer(header, program):
    """What a program prints that is compiled with this header."""
    flags = {name: run(["sh", "tests/tools/deps.sh", name], cwd=ROOT).stdout.split() for name in ("--cflags", "--libs")}
    with tempfile.TemporaryDirectory() as place:
        for name, text in (("netcode.h", header), ("program.c", program)):
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(text)
        built = run(CC + flags["--cflags"] + ["program.c", "-o", "program"] + flags["--libs"] + ["-lm"], cwd=place)
        return run(["./program"], cwd=place).stdout if built.returncode == 0 else "not built: " + built.stdout[-300:]


def check_wire(truth, pages, texts):
    """23 bytes beside a payload and ten to eleven keep-alives of 31 bytes a second, two beside payloads; five bytes less from zero."""
    said = answer(truth.header, WIRE)
    match = re.search(r"(\d+) bytes beside the payload.*?up to (\w+) bytes less.*?ten to eleven keep-alives of (\d+) bytes a second; beside payloads two", texts["FAQ.md"], re.S)
    if not match or match[2] != "five":
        return ["FAQ.md no longer says what a packet costs"]
    beside, alive = int(match[1]), int(match[3])
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    good = numbers[0::4] == [beside, beside - 5] and numbers[1::4] == [alive, alive - 5] and all(100 <= n <= 110 for n in numbers[2::4])
    return [] if good and numbers[3::4] == [20, 20] else ["FAQ.md's bytes and keep-alives: measured was %s" % said]


def check_stumbles(truth, pages, texts):
    reserved = re.search(r"A client reserves (\d+) KiB", texts["MIGRATION.md"])
    said = answer(truth.header, STUMBLES).split()
    wanted = ["11", "11", "1", "0", "1"]
    if not reserved or said[:5] != wanted:
        return ["MIGRATION.md's rows on empty slots, logs and loopback: measured was %s" % said]
    return [] if abs(int(said[5]) - int(reserved[1])) <= 8 else ["a client takes %s KiB, and MIGRATION.md says %s" % (said[5], reserved[1])]


VERSION = """#define NETCODE_IMPLEMENTATION
#include "netcode.h"
#include <stdio.h>
int main( void )
{
    return printf( "%s", netcode_version() ) < 0;
}
"""


def check_version(truth, pages, texts):
    """The macros, the linked library, the changelog's newest entry, the header's first line and the page's title agree."""
    header = truth.header
    parts = [re.search(r"#define NETCODE_VERSION_%s (\d+)$" % part, header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    log = re.findall(r"^    (\d+\.\d+\.\d+)  ", header[header.rfind("    CHANGELOG\n") :], re.M) if "    CHANGELOG\n" in header else []
    said = {
        "NETCODE_VERSION_MAJOR, MINOR, PATCH": ".".join(parts),
        "netcode_version()": answer(header, VERSION),
        "the changelog": max(log, key=lambda text: [int(part) for part in text.split(".")]) if log else "nothing",
        "the header's first line": (re.match(r"/\*  netcode\.h (\S+):", header) or [0, "nothing"])[1],
        "the page's title": pages["netcode.html"].headings.get("", "").replace("netcode.h", "").strip() or "nothing",
    }
    full = re.search(r'#define NETCODE_VERSION_FULL "(.*)"', header)[1]
    return ["%s says %s, NETCODE_VERSION_FULL is %s" % (who, what, full) for who, what in said.items() if what != full]


CHECKS = {
    "every public function, struct, field, macro and drop reason has an anchor": check_names,
    "every such anchor names something that exists": check_anchors,
    "every section of the manual has its heading": check_sections,
    "every line of the manual is on the page, in order": check_manual,
    "every line of the public API is on the page": check_api,
    "every drop reason stands beside its number and sentence": check_drops,
    "the changelog is on the page": check_changelog,
    "every line of MIGRATION.md and FAQ.md is on its page": check_prose,
    "every link leads somewhere, every id is there once": check_links,
    "the pages fetch nothing": check_alone,
    "every tag is closed where it should be": check_markup,
    "everything that is no markup is escaped": check_escapes,
    "every row of MIGRATION.md's tables has its netcode.h side": check_rows,
    "every piece of netcode.h code in MIGRATION.md compiles": check_snippets,
    "every command, path, name and section in the texts exists": check_spans,
    "the texts' figures are those that stand elsewhere": check_figures,
    "FAQ.md's bytes on the wire are what a client sends": check_wire,
    "MIGRATION.md's empty slots, log, loopback and memory are the library's": check_stumbles,
    "one version: macros, netcode_version(), changelog, first line, page": check_version,
}

# A planted fault for each check: which text is changed, what in it, into what. The check must then have a fault that it had not.
PLANTS = (
    (check_names, "netcode.html", 'id="netcode_server_flush"', 'id="flush"'),
    (check_names, "netcode.html", 'id="netcode_event_t.session"', 'id="x"'),
    (check_names, "netcode.html", 'id="netcode_address_t.data.ipv6"', 'id="x"'),
    (check_names, "netcode.html", 'id="NETCODE_DROP_TOKEN_EXPIRED"', 'id="x"'),
    (check_names, "netcode.h", "NETCODE_API void netcode_term( void );", "NETCODE_API void netcode_term( void );\nNETCODE_API void netcode_new( void );"),
    (check_names, "netcode.h", "#define NETCODE_OK 1", "#define NETCODE_OK 1\n#define NETCODE_FINE 1"),
    (check_anchors, "netcode.h", "    int bytes_done; ", "    int bytes_there; "),
    (check_anchors, "netcode.h", "netcode_client_flush( struct", "netcode_client_hurry( struct"),
    (check_sections, "netcode.html", 'id="section-9"', 'id="section-nine"'),
    (check_manual, "netcode.html", "replay window 320 packets", "replay window 32 packets"),
    (check_manual, "netcode.html", "They share packets; ", ""),
    (check_api, "netcode.html", "without IP and UDP headers", "without headers"),
    (check_api, "netcode.html", "&lt;stddef.h&gt;", "<stddef.h>"),
    (check_drops, "netcode.html", "the datagram has no bytes", "the datagram has bytes"),
    (check_changelog, "netcode.html", "The first version", "The version"),
    (check_prose, "faq.html", "Nothing is searched", "Much is searched"),
    (check_links, "netcode.html", 'href="#section-4"', 'href="#section-44"'),
    (check_links, "faq.html", 'href="netcode.html#section-12"', 'href="netcode.html#section-21"'),
    (check_links, "netcode.html", 'id="section-5"', 'id="section-4"'),
    (check_alone, "faq.html", "</head>", '<link rel="stylesheet" href="x.css"></head>'),
    (check_alone, "netcode.html", "body { ", "body { background: url(x.png); "),
    (check_markup, "migration.html", "</p>", ""),
    (check_escapes, "netcode.html", "timestamp is &lt;= now", "timestamp is <= now"),
    (check_escapes, "netcode.html", "&amp;", "&"),
    (check_escapes, "faq.html", "<p>", "<p><i>x</i>"),
    (check_rows, "MIGRATION.md", "`messages_config.channels = 4;`", ""),
    (check_rows, "MIGRATION.md", "| `enet_time_get` |", "| `enet_time_get` | |"),
    (check_snippets, "MIGRATION.md", "`netcode_init()`", "`netcode_initialize()`"),
    (check_snippets, "MIGRATION.md", "`messages_stats.loss_sent`", "`messages_stats.loss`"),
    (check_snippets, "MIGRATION.md", "netcode_client_connect( client, connect_token )", "netcode_client_connect( client )"),
    (check_spans, "FAQ.md", "`make latency`", "`make lateness`"),
    (check_spans, "FAQ.md", "`tests/threads.c`", "`tests/thread.c`"),
    (check_spans, "FAQ.md", "`kernel_filter`", "`kernel_sieve`"),
    (check_spans, "FAQ.md", "`./build/token keylog`", "`./build/token keys-please`"),
    (check_spans, "FAQ.md", "(section 17)", "(section 18)"),
    (check_spans, "FAQ.md", "`TOKEN_CONSUMED`", "`TOKEN_EATEN`"),
    (check_figures, "FAQ.md", "1.8 to 3.8 µs", "1.8 to 2.8 µs"),
    (check_figures, "README.md", "9,000, 7,800 or 4,400", "8,000, 7,800 or 4,400"),
    (check_wire, "FAQ.md", "23 bytes beside", "22 bytes beside"),
    (check_stumbles, "MIGRATION.md", "A client reserves 375 KiB", "A client reserves 11 KiB"),
    (check_stumbles, "netcode.h", "return slot ? &slot->address : NULL;", "return slot ? &slot->address : &server->addresses[0];"),
    (check_version, "netcode.h", "#define NETCODE_VERSION_PATCH 0", "#define NETCODE_VERSION_PATCH 1"),
    (check_version, "netcode.h", "    1.0.0  The first", "    1.0.1  The first"),
    (check_version, "netcode.h", "    CHANGELOG\n", "    LOG\n"),
    (check_version, "netcode.h", 'NETCODE_VERSION_FULL "1.0.0"', 'NETCODE_VERSION_FULL "1.1.0"'),
)


class Texts:
    """Everything that is compared, so that a plant can change one of them."""

    def __init__(self, files):
        self.files = files
        self.truth = Truth(files["netcode.h"])
        self.pages = {name: Page(files[name]) for name in PAGES}

    def with_a_fault(self, name, old, new):
        copy = Texts.__new__(Texts)
        copy.files = dict(self.files)
        if old not in self.files[name]:
            raise SystemExit("the plant finds no '%s' in %s" % (old, name))
        copy.files[name] = self.files[name].replace(old, new, 1)
        copy.truth = Truth(copy.files[name]) if name == "netcode.h" else self.truth
        copy.pages = dict(self.pages, **({name: Page(copy.files[name])} if name in PAGES else {}))
        return copy

    def faults(self, check):
        return check(self.truth, self.pages, self.files)


def plant(texts, before, row):
    check, name, old, new = row
    after = texts.with_a_fault(name, old, new).faults(check)
    return "" if set(after) - set(before[check]) else "not seen by %s: '%s' in %s becomes '%s'" % (check.__name__, old, name, new)


def check_tidy(place):
    faults = []
    for name in PAGES:
        result = run(["tidy", "-e", "-q", os.path.join(place, name)])
        faults += ["%s: %s" % (name, line) for line in result.stdout.split("\n") if line.strip()]
    return faults


# ---- layout, where there is a browser ----

PROBE = """<script>window.onload = function () {
    var wide = [], limit = document.documentElement.clientWidth;
    document.querySelectorAll( "main *" ).forEach( function ( e ) {
        if ( !e.closest( "pre" ) && e.getBoundingClientRect().right > limit + 1 ) wide.push( e.tagName ); } );
    parent.postMessage( "LABEL: " + document.documentElement.scrollWidth + " of " + limit + " " + wide.slice( 0, 3 ).join( " " ) + ";", "*" );
};</script>"""
COLLECT = """<!DOCTYPE html><title>frames</title><p id="said"></p><script>
window.onmessage = function ( m ) { document.getElementById( "said" ).textContent += m.data; };</script>"""


def frame(label, width, text, extra=""):
    inner = text.replace("</body>", PROBE.replace("LABEL", label) + "</body>").replace("</style>", extra + "</style>", 1)
    inner = inner.replace("&", "&amp;").replace('"', "&quot;")
    return '<iframe style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>' % (width, inner)


def widths(place, frames):
    """What each frame says when it is drawn: its label, its width and its window's, and what sticks out."""
    path = os.path.join(place, "frames.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(COLLECT + "".join(frames))
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium"] + BROWSER + ["--user-data-dir=" + profile, "--window-size=1500,1000", "--virtual-time-budget=20000"]
        command += ["--dump-dom", "file://" + path]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", timeout=100, check=False)
    said = re.search(r'<p id="said">(.*?)</p>', result.stdout, re.S)
    rows = re.findall(r"([^;]+): (\d+) of (\d+) ([^;]*);", said[1] if said else "")
    return {label: (int(wide), int(limit), out.strip()) for label, wide, limit, out in rows}


def check_layout(place, files):
    name = "nothing sticks out at 400, 850 and 1300 pixels, in chromium"
    if not shutil.which("chromium"):
        skip(name, "chromium is not installed")
        return
    wanted = [("%s at %d" % (page, width), width, page) for page in PAGES for width in (400, 850, 1300)]
    frames = [frame(label, width, files[page]) for label, width, page in wanted]
    said = widths(place, frames + [frame("planted", 400, files["faq.html"], "main p { width: 900px; }")])
    planted = said.pop("planted", (0, 0, ""))
    faults = [label + ": the browser said nothing" for label, _, _ in wanted if label not in said]
    report(name, faults + ["%s is %d of %d wide: %s" % (label, *what) for label, what in said.items() if what[0] > what[1] or what[2]])
    report("a paragraph that sticks out is seen", [] if planted[0] > 850 and "P" in planted[2] else ["it was not: %d, %s" % (planted[0], planted[2])])


def make_pages(place):
    result = run(["sh", os.path.join(ROOT, "examples/docs/docs.sh"), place])
    if result.returncode:
        raise SystemExit("examples/docs/docs.sh failed:\n" + result.stdout)


def main():
    # Ended from outside, it leaves no folder either.
    signal.signal(signal.SIGTERM, lambda number, where: sys.exit("docs: ended by signal %d" % number))
    need = run(["sh", os.path.join(ROOT, "tests/tools/need.sh"), "pandoc:pandoc", "tidy:tidy"])
    if need.returncode:
        raise SystemExit(need.stdout)
    with tempfile.TemporaryDirectory() as place:
        make_pages(place)
        files = {name: read(os.path.join(place, name)) for name in PAGES}
        report("docs.sh made three pages and nothing else", [] if sorted(os.listdir(place)) == sorted(PAGES) else [str(os.listdir(place))])
        for name in ("MIGRATION.md", "FAQ.md"):
            files[name] = read("examples/docs/" + name)
        files.update({"netcode.h": read("netcode.h"), "README.md": read("README.md"), "tests/README.md": read("tests/README.md"), OWN: read(OWN)})
        texts = Texts(files)
        before = {check: texts.faults(check) for check in CHECKS.values()}
        for name, check in CHECKS.items():
            report(name, before[check])
        report("tidy has nothing to say", check_tidy(place))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            unseen = [fault for fault in pool.map(lambda row: plant(texts, before, row), PLANTS) if fault]
        report("planted faults are seen by the checks that they are for", unseen, "%d of %d" % (len(PLANTS), len(PLANTS)))
        check_layout(place, files)
    print("docs: %d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
