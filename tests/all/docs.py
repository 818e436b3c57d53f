#!/usr/bin/env python3
"""Tests examples/docs: the site that `make docs` builds has every page, name, sentence and line that it should, works in a browser without a
network, and what its texts say exists, compiles and runs.

    python3 tests/all/docs.py                 builds the site in a folder of its own and checks it
    python3 tests/all/docs.py WORD...         of the checks those whose names hold a WORD; "browser" is what is seen in one, of two pages' layout
    python3 tests/all/docs.py --plants        plants a fault for each check, which must be noticed, and builds the site from headers with faults
    python3 tests/all/docs.py --pictures DIR  takes pictures of some pages, at three widths, light and dark, to be looked at

What the API is comes from the compiler's preprocessor and from the header's plain lines, not from the program that makes the pages.
"""

import concurrent.futures
import functools
import glob
import html.parser
import http.server
import json
import os
import posixpath
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "tools"), os.path.join(ROOT, "tests", "lint")]
import chromium  # noqa: E402
import readme  # noqa: E402
from waiting import SKIPS_FAIL, refuse_unknown  # noqa: E402

CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
OWN, FAQ, MIGRATION = "examples/docs/README.md", "examples/docs/FAQ.md", "examples/docs/MIGRATION.md"
WIDTHS = (390, 820, 1400)

# Pages whose code has a test that runs all of it: this test sees only that it is so.
RUN_BY = {"README.md": "tests/lint/readme.py", "examples/arena/TUTORIAL.md": "tests/arena/tutorial.py", "examples/csharp/README.md": "tests/csharp/packages.py"}

# Figures that FAQ.md and MIGRATION.md take over: what they say, where that stands, and how.
FIGURES = (
    ("99th percentile is 67 ms", "tests/README.md", "messages 67, 67, 67, 83;"),
    ("234 to 251 ms over the kernel's TCP", "tests/README.md", "bbr 170, 184, 234, 302, with\ncubic 167, 202, 251, 555"),
    ("1.04 to 1.15 times", "README.md", "1.04 to 1.05 ×"),
    ("1.04 to 1.15 times", "README.md", "1.11 to 1.15 ×"),
    ("1.8 to 3.8 µs", "README.md", "1.8, 2.1 or 3.8 µs"),
    ("4,400 to 9,000 clients at 60 Hz", "README.md", "9,000, 7,800 or 4,400 clients"),
    ("at most 0.31 bytes leave", "examples/docs/SECURITY.md", "at most 0.31 bytes out for a byte in"),
    ("65,535 slots", "netcode.h", "#define NETCODE_MAX_SLOTS 65535 "),
    ("up to 16 MiB", "netcode.h", "#define NETCODE_MESSAGES_MAX_BYTES 16777216 "),
    ("datagram of 1225 at most", "netcode.h", "payload 1200 bytes, datagram 1225 "),
    ("256 bytes of your own", "netcode.h", "#define NETCODE_USER_DATA_BYTES 256 "),
    ("names up to 32 servers", "netcode.h", "#define NETCODE_MAX_SERVERS_PER_CONNECT 32 "),
    ("reserves 372 KiB and uses 12 of them", "examples/docs/LIMITS.md", "A client reserves 372 KiB so, of which it uses 12"),
    ("above 1180 bytes", "netcode.h", "#define NETCODE_MESSAGES_WHOLE_BYTES 1180 "),
    ("32 ordering channels", "netcode.h", "#define NETCODE_MESSAGES_CHANNELS 32 "),
    ("random place below 2^48", "examples/docs/STANDARD.md", "Sequences start at a random place below 2^48"),
    ("mint` gives 45", "examples/token.c", "#define DEFAULT_EXPIRE_SECONDS 45 "),
    ("has it as row 26", "tests/attacks/rows.py", 'row(26, "ENV", "the unix clock steps back'),
    ("prints 92 attacks and faults", "README.md", "`make attacks` prints the 92 attacks and faults"),
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

EMPTY = {"meta", "link", "br", "hr", "img", "input", "col", "wbr", "area", "base", "embed", "source", "track"}


class Page(html.parser.HTMLParser):
    """Its ids, links and what it loads; the words of its article, its headings, and what follows each name: its sentence."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.headings, self.sentences = [], [], [], {}, {}
        self.open, self.words, self.paragraphs, self.codes = [], [], [], []
        self.heading, self.name = None, None
        self.feed(text)
        self.close()
        # What is left of the words when spaces are gone: a line of a source is a part of it, however it was laid out.
        self.squeezed = squeeze("".join(self.words))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
            if re.match(r"h\d$", tag) or re.match("netcode_|NETCODE_", values["id"]):
                self.name = values["id"]
                self.sentences[self.name] = ""
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") != "canonical":
            self.loads.append(values["href"])
        self.loads += [value for name, value in attributes if name in ("src", "srcset", "data", "poster", "action") and value]
        if re.match(r"h\d$", tag):
            self.heading = values.get("id", "")
            self.headings[self.heading] = ""
        if tag in ("p", "pre"):
            (self.paragraphs if tag == "p" else self.codes).append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass
        if re.match(r"h\d$", tag):
            self.heading = None

    def handle_data(self, data):
        if "article" not in self.open or "script" in self.open or "nav" in self.open:
            return
        if self.heading is not None:
            data = data.replace("¶", "")
            self.headings[self.heading] += data
        elif self.name and "pre" not in self.open and "dt" not in self.open:
            self.sentences[self.name] += data
        self.words.append(data)
        for kind, where in (("p", self.paragraphs), ("pre", self.codes)):
            if kind in self.open:
                where[-1] += data


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
        self.macros -= {"NETCODE_H", "NETCODE_SINGLE_FILE_H", "NETCODE_MESSAGES", "NETCODE_DROP_ENUM", "NETCODE_MESSAGES_DROP_ENUM"}

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


class Site:
    """Everything that is compared, so that a plant can change one of its texts. `files` has the site's by "site/PATH", the rest by path."""

    def __init__(self, place):
        self.place, self.files, self.there = place, {}, set()
        for folder, _, names in os.walk(place):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), place)
                self.there.add(path)
                if name.endswith((".html", ".css", ".json")):
                    self.files["site/" + path] = read(os.path.join(place, path))
        self.nav = re.findall(r"^ +- .*: (\S+\.md)$", read("examples/docs/mkdocs.yml"), re.M)
        self.sources = [path for path in (re.sub("^github/", ".github/", each) for each in self.nav) if os.path.exists(os.path.join(ROOT, path))]
        for path in self.sources + ["netcode.h", "tests/README.md", "examples/docs/mkdocs.yml"]:
            self.files[path] = read(path)
        self.truth = Truth(self.files["netcode.h"])
        self.pages = {path[5:]: Page(text) for path, text in self.files.items() if path.endswith(".html")}

    def page_of(self, path):
        path = re.sub("^\\.github/", "github/", path)
        return self.pages.get(re.sub(r"(README)?\.md$", lambda match: "index.html" if match[1] else ".html", path))

    def api(self):
        return [page for path, page in self.pages.items() if path.startswith("api/")]

    def with_a_fault(self, name, old, new):
        copy = Site.__new__(Site)
        copy.__dict__ = dict(self.__dict__, files=dict(self.files), pages=dict(self.pages))
        if old not in self.files[name]:
            raise SystemExit("the plant finds no '%s' in %s" % (old, name))
        copy.files[name] = self.files[name].replace(old, new)
        if name == "netcode.h":
            copy.truth = Truth(copy.files[name])
        elif name.endswith(".html"):
            copy.pages[name[5:]] = Page(copy.files[name])
        elif name.endswith("mkdocs.yml"):
            copy.nav = re.findall(r"^ +- .*: (\S+\.md)$", copy.files[name], re.M)
        return copy


def check_nav(site):
    faults = ["%s is in the menu and has no page" % path for path in site.nav if site.page_of(path) is None]
    known = [site.page_of(path) for path in site.nav] + [site.pages["404.html"]]
    faults += ["%s is in no menu" % path for path, page in site.pages.items() if not any(page is each for each in known)]
    # What the menu leaves out has no page either.
    faults += ["%s is in no menu" % path for path in glob.glob("examples/*/*.md", root_dir=ROOT) if path not in site.nav]
    return faults + (["the same page twice"] if len(set(site.nav)) < len(site.nav) else []) + ([] if len(site.nav) > 40 else ["too few pages"])


def check_links(site):
    faults, count = [], 0
    for path, page in site.pages.items():
        for target in page.links + page.loads:
            address = urllib.parse.urlsplit(target)
            if address.scheme:
                continue
            # Only the page that a host shows for any wrong address counts from the site's root.
            if target.startswith("/") and path != "404.html":
                faults.append("%s: %s is no relative link" % (path, target))
            there = posixpath.normpath(posixpath.join(posixpath.dirname(path), urllib.parse.unquote(address.path).lstrip("/"))) if address.path else path
            count += 1
            if there not in site.there:
                faults.append("%s: a link leads to %s, which is not there" % (path, target))
            elif address.fragment and there in site.pages and urllib.parse.unquote(address.fragment) not in site.pages[there].ids:
                faults.append("%s: a link leads to %s, and there is no such place" % (path, target))
        faults += ["%s: the id %s is there twice" % (path, each) for each in set(page.ids) if page.ids.count(each) > 1]
    return faults + ([] if count > 3000 else ["only %d links were found" % count])


def check_alone(site):
    """No page and no style loads anything from another host."""
    faults = ["%s loads %s" % (path, what) for path, page in site.pages.items() for what in page.loads if re.match(r"(\w+:)?//", what)]
    for path, text in site.files.items():
        if path.startswith("site/") and path.endswith((".css", ".html")):
            faults += ["%s would load %s" % (path, what) for what in re.findall(r"@import[^;]*|url\([\"']?(?:https?:)?//[^)]*\)", text)]
    return faults


def check_names(site):
    ids = {each for page in site.api() for each in page.ids}
    names = site.truth.names() | site.truth.field_names()
    listed = {code for code in re.findall(r"<li><a href=\"[\w.-]*#\w+\"><code>(\w+)</code>", site.files["site/api/index.html"])}
    faults = ["%s has no anchor" % name for name in sorted(names - ids)]
    return faults + ["%s is not on the page of all names" % name for name in sorted(site.truth.names() - listed)]


def check_anchors(site):
    known = site.truth.names() | site.truth.field_names()
    ours = [name for page in site.api() for name in page.ids if re.match(r"netcode_|NETCODE_", name)]
    return ["the anchor %s names nothing in the header" % name for name in ours if name not in known] + ["%s is there twice" % name
            for name in set(ours) if ours.count(name) > 1]  # fmt: skip


def check_sentences(site):
    """Each name has one: words that are more than its own declaration."""
    said = {name: text for page in site.api() for name, text in page.sentences.items()}
    return ["%s has no sentence" % name for name in sorted(site.truth.names() | site.truth.field_names())
            if len(re.findall(r"\w+", said.get(name, ""))) < 1]  # fmt: skip


def check_comments(site):
    """Every comment of the public part is on a page of the API, word for word; and every drop reason beside its number."""
    pages = "".join(page.squeezed for page in site.api())
    faults = []
    for comment in re.findall(r"/\*(.*?)\*/", site.truth.public, re.S):
        comment = re.sub(r"(?m)^ *=+$|PUBLIC API$", "", comment).strip(" =\n")
        if not re.match(r"-{4}|clang-format|NETCODE_SINGLE_FILE_H|In strict C modes|This library's additions", comment):
            faults += ["not on a page: " + comment] if squeeze(comment) not in pages else []
    for macro, body in re.findall(r"#define (NETCODE_\w*DROP)_LIST\( X \)(.*?)\n(?!    X)", site.truth.public, re.S):
        for number, (name, sentence) in enumerate(re.findall(r'X\( *(\w+) *, "(.*?)" \)', body)):
            if squeeze("%s_%s=%d%s" % (macro, name, number, sentence)) not in pages:
                faults.append("%s_%s is not beside its number and sentence" % (macro, name))
    return faults


def check_prototypes(site):
    """Each function's is on its page, and the compiler agrees."""
    codes = [code for page in site.api() for code in page.codes]
    declared = {name for code in codes for name in re.findall(r"\b(netcode_\w+)(?:\(| \))", code)}
    faults = ["%s has no prototype" % name for name in sorted(site.truth.functions - declared)]
    result = run(CC + ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"],
                 input=site.files["netcode.h"].split("#endif /* NETCODE_SINGLE_FILE_H */")[0].replace("#ifndef NETCODE_SINGLE_FILE_H", "#define NETCODE_MESSAGES\n#if 1", 1)
                 + "#endif\n" + "\n".join(codes))  # fmt: skip
    return faults + [line for line in result.stdout.split("\n") if "error:" in line] + ([result.stdout] if result.returncode else [])


def sections(header):
    return re.findall(r"^    (\d+)  ([A-Z][A-Z0-9 ,:'-]+)$", header[: header.index("*/")], re.M)


def elsewhere(header):
    """{number: page} of the sections that the manual's contents say are pages of their own, and the pages that have more on others."""
    contents = header[header.index("    MANUAL") : header.index("    1  FIVE MINUTES")]
    return dict(re.findall(r"\b(\d+)  (?:[\w,]+ )*[\w,]+: (\w+\.md)", contents)), set(re.findall(r"; more in (\w+\.md)", contents))


def check_sections(site):
    found, faults = sections(site.truth.header), []
    moved, more = elsewhere(site.truth.header)
    for number, page in moved.items():
        text = re.search(r'id="section-%s"(.*?)<h2' % number, site.files["site/manual.html"], re.S)
        if not text or 'href="examples/docs/%s"' % page.replace(".md", ".html") not in text[1]:
            faults.append("section %s does not lead to %s" % (number, page))
    faults += ["there is no %s" % page for page in more | set(moved.values()) if site.page_of("examples/docs/" + page) is None]
    for number, title in found:
        titles = [page.headings.get("section-" + number) for page in site.pages.values() if "section-" + number in page.headings]
        if not titles or any(squeeze(each) != squeeze("%s. %s" % (number, title)) for each in titles):
            faults.append("section %s, %s, has no heading, or another" % (number, title))
    numbers = [int(number) for number, _ in found]
    whole = sorted(numbers + [int(number) for number in moved]) == list(range(1, 18)) and numbers == sorted(numbers)
    return faults + ([] if whole else ["the manual's sections, and its pages, are not 1 to 17"])


def check_manual(site):
    """Every line of the manual is on its section's page, in its order."""
    header = site.truth.header
    text = header[header.index("/*") + 2 : header.index("*/")]
    rule = text.index("======")
    parts = [("manual.html", text[:rule])] + [(None, part) for part in re.split(r"(?m)^    (?=\d+  [A-Z][A-Z0-9 ,:'-]+$)", text[rule:])[1:]]
    faults = []
    for page, part in parts:
        if page is None:
            number, part = part.split("  ", 1)
            homes = [each for each in ("manual.html", "embedding.html") if "section-" + number in site.pages[each].ids]
            page = homes[-1] if homes else "manual.html"
            part = part.split("\n", 1)[1]
        squeezed, at = site.pages[page].squeezed, 0
        for line in part.split("\n"):
            # A row has a term and a meaning, each of which may go on in the next line: there they are looked for one by one.
            pieces = re.split(r"(?<=\S) {2,}", re.sub(r"^ {4,6}(- |\d+  )", "", line).strip())
            where = [squeezed.find(squeeze(piece), at) for piece in pieces]
            if -1 in where:
                faults.append("not on %s, or not in its place: %s" % (page, line.strip()))
            elif not line.startswith(" " * 8):
                at = where[0]
    return faults


def check_prose(site):
    """Every line of every Markdown file is on its page, or on one of those that take sections of it; nothing in it is left as markup."""
    faults = []
    for path in site.sources:
        page = site.page_of(path).squeezed if site.page_of(path) else ""
        if path == "README.md":
            page += "".join(site.pages[each + ".html"].squeezed for each in ("embedding", "troubleshooting", "benchmarks"))
        fenced = False
        for number, line in enumerate(site.files[path].split("\n"), 1):
            fenced ^= line.startswith("```")
            if line.startswith("```") or re.match(r"\|[-| :]+\|$|<!--|!\[", line):
                continue
            for part in [line] if fenced else line.replace("<br>", "").strip("| ").replace("\\|", "\0").split(" |"):
                part = part.replace("\0", "|")
                if not fenced:
                    part = re.sub(r"^ *(#+|[-*]|\d+\.) |\[([^\]]*)\]\([^)]*\)", lambda match: match[2] or "", part.strip("| ").replace("\\*", "*"))
                    part = re.sub(r"\*\*(.+?)\*\*|(?<![\w`*])\*([^*\s][^*]*)\*", lambda match: match[1] or match[2], part)
                faults += ["%s:%d: not on the page: %s" % (path, number, part)] if squeeze(part) not in page else []
    for path, page in site.pages.items():
        faults += ["%s: a list is no list: %s" % (path, text[:60]) for text in page.paragraphs if re.search(r"(?m)\A\d+\. |^([-*] |\||```)", text)
                   and not text.startswith("* ")]  # fmt: skip
    return faults


def check_search(site):
    """The index has every name, each as the title of a place or in its words."""
    docs = json.loads(site.files["site/search/search_index.json"])["docs"]
    titles = {entry["title"]: entry["location"] for entry in docs}
    words = set(re.findall(r"\w+", " ".join(entry["text"] for entry in docs)))
    faults = ["%s is no title" % name for name in sorted(site.truth.functions | site.truth.types) if "#" + name not in titles.get(name, "")]
    faults += ["%s is nowhere" % name for name in sorted(site.truth.names()) if name not in words and name not in titles]
    return faults + ([] if "search/offline.js" in site.there else ["there is no search/offline.js"])


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


def check_rows(site):
    rows = list(tables(site.files[MIGRATION]))
    faults = ["line %d has another number of cells than its head" % number for number, _, whole in rows if not whole]
    faults += ["line %d has neither code nor `none:`" % number for number, cell, whole in rows
               if whole and not cell.startswith("none: ") and not spans(cell)]  # fmt: skip
    return faults + ([] if len(rows) > 90 else ["only %d rows were found" % len(rows)])


def check_snippets(site):
    """All of them in one file; the compiler's complaints come with MIGRATION.md's line numbers."""
    body = ""
    for number, code in snippets(site.files[MIGRATION]):
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


def fault_of_span(code, site, targets):
    """What is wrong with a piece of code in running text; '' if it exists."""
    truth, words = site.truth, re.sub(r"^[A-Z_]+=\S+ ", "", code).split(" ")
    page, _, anchor = code.partition("#")
    if page in site.there:
        return "" if not anchor or anchor in site.pages[page].ids else "%s has no place %s" % (page, anchor)
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


def check_spans(site):
    targets = make_targets()
    faults = []
    for name in (FAQ, OWN):
        for number, line in enumerate(re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), site.files[name], flags=re.S).split("\n"), 1):
            for code in spans(line):
                fault = fault_of_span(code, site, targets)
                faults += ["%s:%d: %s" % (name, number, fault)] if fault else []
        if re.sub(r"```.*?```", "", site.files[name], flags=re.S).count("`") % 2:
            faults.append("%s: a piece of code is not closed" % name)
    for name in (MIGRATION, FAQ, OWN):
        faults += ["%s: there is no section %s" % (name, each) for each in re.findall(r"\b[Ss]ection (\d+)", site.files[name]) 
                   if "section-" + each not in site.pages["manual.html"].ids]  # fmt: skip
    for code in spans(site.files[MIGRATION]):
        if re.match(r"(make|sh|python3) |(examples|tests|build)/|\./build/", code):
            fault = fault_of_span(code, site, targets)
            faults += ["MIGRATION.md: " + fault] if fault else []
    for block in re.findall(r"```sh\n(.*?)```", site.files[OWN], re.S):
        for line in block.strip().split("\n"):
            fault = fault_of_command(line.split("#")[0].split(), targets)
            faults += [OWN + ": " + fault] if fault else []
    return faults


def check_figures(site):
    faults = []
    for said, path, measured in FIGURES:
        if said not in re.sub(r"\s+", " ", site.files[FAQ] + site.files[MIGRATION]):
            faults.append("no page says '%s' any more: take it out of the list of figures" % said)
        source = site.truth.header if path == "netcode.h" else site.files.get(path) or read(path)
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


def check_wire(site):
    """23 bytes beside a payload and ten to eleven keep-alives of 31 bytes a second, two beside payloads; five bytes less from zero."""
    said = answer(site.truth.header, WIRE)
    match = re.search(r"(\d+) bytes beside the payload.*?up to (\w+) bytes less.*?ten to eleven keep-alives of (\d+) bytes a second; beside payloads two", site.files[FAQ], re.S)
    if not match or match[2] != "five":
        return ["FAQ.md no longer says what a packet costs"]
    beside, alive = int(match[1]), int(match[3])
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    good = numbers[0::4] == [beside, beside - 5] and numbers[1::4] == [alive, alive - 5] and all(100 <= n <= 110 for n in numbers[2::4])
    return [] if good and numbers[3::4] == [20, 20] else ["FAQ.md's bytes and keep-alives: measured was %s" % said]


def check_stumbles(site):
    reserved = re.search(r"A client reserves (\d+) KiB", site.files[MIGRATION])
    said = answer(site.truth.header, STUMBLES).split()
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


def check_version(site):
    """The macros, the linked library, the changelog's newest entry, the header's first line and the page agree."""
    header = site.truth.header
    parts = [re.search(r"#define NETCODE_VERSION_%s (\d+)$" % part, header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    log = re.findall(r"^    (\d+\.\d+\.\d+)  ", header[header.rfind("    CHANGELOG\n") :], re.M) if "    CHANGELOG\n" in header else []
    page = re.search(r'netcode_version_full="([\d.]+)"', site.pages["api/version.html"].squeezed)
    said = {
        "NETCODE_VERSION_MAJOR, MINOR, PATCH": ".".join(parts),
        "netcode_version()": answer(header, VERSION),
        "the changelog": max(log, key=lambda text: [int(part) for part in text.split(".")]) if log else "nothing",
        "the header's first line": (re.match(r"/\*  netcode\.h (\S+):", header) or [0, "nothing"])[1],
        "the page": page[1] if page else "nothing",
    }
    full = re.search(r'#define NETCODE_VERSION_FULL "(.*)"', header)[1]
    return ["%s says %s, NETCODE_VERSION_FULL is %s" % (who, what, full) for who, what in said.items() if what != full]



# ---- code ----

MANUAL = """#include <stdint.h>
#include <string.h>
#define NETCODE_MESSAGES
#include "netcode.h"
extern struct netcode_client_t * client;
extern struct netcode_server_t * server;
extern struct netcode_messages_t * messages, * slots[16];
extern struct netcode_messages_config_t messages_config;
extern uint8_t key[NETCODE_KEY_BYTES], connect_token[NETCODE_CONNECT_TOKEN_BYTES];
extern uint64_t client_id;
extern const uint8_t * data;
extern void * map;
extern uint32_t map_bytes, map_capacity;
extern int bytes, i;
extern double time;
void play();
void welcome( int, uint64_t );
void farewell( int, uint64_t );
void map_is_there( void * context, int complete );
"""


# The manual's pages with code. Its names are those of MANUAL, too, so the check of the other pages' code leaves it out.
MANUAL_CODE = {"examples/docs/MESSAGES.md": 3}


def check_manual_code(site):
    """The manual's pieces of code, as its pages have them: functions as they are, statements each in a function of its own."""
    program, count = MANUAL, 0
    for path in ("manual.html", "embedding.html", *(path.replace(".md", ".html") for path in MANUAL_CODE)):
        for code in site.pages[path].codes:
            if not re.search(r"(?m);$|^#", code) or "main(" in code:
                continue
            count += 1
            for part in re.split(r"\n\n+", code.strip()):
                whole = re.match(r"#|\w+ \w+\( .*\)\n\{", part)
                config = "struct netcode_server_config_t config; memset( &config, 0, sizeof( config ) );" if part.startswith("config.") else ""
                program += part + "\n" if whole else "void part_%d( void )\n{\n%s%s\n}\n" % (program.count("void part_"), config, part)
    program = re.sub(r"#define NETCODE_IMPLEMENTATION\n#include .*", "", program)
    result = run(CC + ["-std=gnu99", "-Wall", "-Werror", "-Wno-unused", "-Wno-strict-prototypes", "-fsyntax-only", "-I" + ROOT, "-x", "c", "-"], input=program)
    return [line for line in result.stdout.split("\n") if "error:" in line] + ([] if count >= 7 else ["only %d pieces of code were found" % count])


def fault_of_c(block, folder, path):
    if name := re.match(r"file: (\S+)$", block.mark):  # the tutorial's: later ones include earlier ones
        with open(os.path.join(folder, name[1]), "w", encoding="utf-8") as file:
            file.write(block.text)
        result = run(CC + ["-std=c99", "-Wall", "-Wextra", "-fsyntax-only", "-I" + ROOT, "-I" + os.path.join(ROOT, "examples/arena")]
                     + readme.sodium("--cflags") + [os.path.join(folder, name[1])])  # fmt: skip
        return result.stdout if result.returncode else ""
    return (readme.check_same(block) if readme.same_as(block) else "") or readme.check_c(block, folder)


def fault_of_cpp(block, folder, path):
    result = run(CXX + ["-std=c++11", "-Wall", "-Wextra", "-fsyntax-only", "-I" + ROOT, "-I" + os.path.join(ROOT, os.path.dirname(path)), "-include", "cstdio"]
                 + readme.sodium("--cflags") + ["-x", "c++", "-"], input=block.text)  # fmt: skip
    return result.stdout if result.returncode else ""


def fault_of_json(block, folder, path):
    try:
        return "" if json.loads(block.text) else "it says nothing"
    except ValueError as error:
        return str(error)


def fault_of_python(block, folder, path):
    try:
        return "" if compile(block.text, path, "exec") else "it says nothing"
    except SyntaxError as error:
        return str(error)


def fault_of_js(block, folder, path):
    with open(os.path.join(folder, "block.mjs"), "w", encoding="utf-8") as file:
        file.write(block.text)
    result = run(["node", "--check", os.path.join(folder, "block.mjs")])
    return result.stdout if result.returncode else ""


JUDGES = {"c": fault_of_c, "cpp": fault_of_cpp, "json": fault_of_json, "python": fault_of_python, "js": fault_of_js, "text": lambda *block: fault_of_text(*block)}


def fault_of_block(block, folder, path, tree):
    if block.mark.startswith("not run: "):
        if len(block.mark.split()) < 5:
            return "it says not why it is not run"
        return unrun(block, folder, path) if block.language == "sh" else ""
    if block.language == "sh" and path not in RUN_BY:
        return readme.run(["sh", "-ec", block.text], tree(), DEPS="no", CFLAGS="-O0", CXXFLAGS="-O0")
    if block.language in ("sh", "csharp") and path in RUN_BY:
        return "" if os.path.basename(path) in read(RUN_BY[path]) else "%s does not look at it" % RUN_BY[path]
    judge = JUDGES.get(block.language)
    return judge(block, folder, path) if judge else "a piece of code in '%s' is neither compiled nor run, and no comment above it says why" % block.language


def unrun(block, folder, path):
    """What is not run is at least a script, whose targets and files exist."""
    fault = readme.run(["sh", "-n", "-c", block.text], folder)
    targets = make_targets()
    for line in [] if fault else block.text.replace("\\\n", " ").split("\n"):
        words = re.sub(r"=(\"[^\"]*\"|'[^']*')", "=", re.sub(r"[()&;]|#.*", " ", line)).split()
        if words[:1] == ["make"]:
            fault = fault or "".join("there is no `make %s`" % word for word in words[1:] if "=" not in word and word not in targets and not made(word))
        for word in words:
            if re.match(r"(examples|tests)/[\w./-]+\.\w+$", word):
                fault = fault or fault_of_path(word)
    return fault


def made(target):
    return bool(re.search(r"(?m)^%s\b.*:" % re.escape(target), read("Makefile"))) or bool(source_of(target.replace("build/", "")))


def check_code(site):
    """Every piece of code of every page is compiled or run, or a comment above it says why it is not."""
    faults, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tree = functools.lru_cache(None)(lambda: readme.copy_of_this_tree(folder))
        for path in site.sources:
            blocks = list(readme.blocks(site.files[path]))
            if path in MANUAL_CODE:
                wrong = [block.language for block in blocks] != ["c"] * MANUAL_CODE[path]
                faults += ["%s: the check of the manual's code expects %d blocks of C" % (path, MANUAL_CODE[path])] if wrong else []
                blocks = []
            for block in blocks:
                count += 1
                fault = fault_of_block(block, folder, path, tree)
                faults += ["%s:%d: %s" % (path, block.line, fault.strip()[-600:])] if fault else []
    return faults + ([] if count > 50 or len(site.sources) == 1 else ["only %d pieces of code were found" % count])


def indented(text):
    """(line, text) of each piece of code that is set apart by four spaces; in fences is other code, and in lists text."""
    lines = re.sub(r"^```.*?^```|<!--.*?-->", lambda match: re.sub(".", "", match[0]), text, flags=re.M | re.S).split("\n")
    at = 0
    while at < len(lines):
        start = at
        while at < len(lines) and (lines[at].startswith("    ") or (at > start and not lines[at] and lines[at + 1 : at + 2] and lines[at + 1].startswith("    "))):
            at += 1
        above = next((line for line in reversed(lines[:start]) if line), "")
        if at > start and not lines[start - 1] and not re.match(r"\s*([-*]|\d+\.) |  ", above):
            yield start + 1, "\n".join(line[4:] for line in lines[start:at]) + "\n"
        at = max(at, start + 1)


def fault_of_words(words):
    """What is wrong with one command: a target, a file, a program of this project, its subcommand or an option that is not there."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if not words:
        return ""
    named = [word for word in words if re.match(r"(examples|tests)/[\w./-]+\.\w+$", word)]
    fault = "".join(fault_of_path(word) for word in named)
    if words[0] == "make":
        return fault or "".join("there is no `make %s`" % word for word in words[1:] if "=" not in word and word not in make_targets() and not made(word))
    program = re.match(r"(?:\./)?build/([\w-]+)$|netcode-(token)$", words[0])
    if not program:
        return fault
    name = program[1] or program[2]
    sources = re.findall(r"(?m)^build/%s:(.*)" % re.escape(name), read("Makefile")) or ["examples/%s.c" % name]
    folders = {os.path.dirname(file) for line in sources for file in re.findall(r"examples/[\w/.*-]+", line)} | {"examples"}
    known = "".join(read(os.path.join(folder, file)) for folder in folders for file in os.listdir(os.path.join(ROOT, folder)) if file.endswith((".c", ".h")))
    if source_of(name) is None and not made("build/" + name):
        return "there is no program %s" % name
    asked = [word for word in words[1:] if word.startswith("--")] + (words[1:2] if name == "token" else [])
    return fault or "".join("%s does not know %s" % (name, word) for word in asked if '"%s"' % word.lstrip("-") not in known and '"%s"' % word not in known)


def check_indented(site):
    """What is written without a fence has no language, and is not run: its programs, targets, options and files exist, and C is in a fence."""
    faults, count = [], 0
    for path in site.sources:
        for start, text in indented(site.files[path]):
            count += 1
            if re.search(r"(?m)^#(define|include)\b|;$", text):
                faults.append("%s:%d: code in no fence is not compiled" % (path, start))
            for line in text.replace("\\\n", " ").split("\n"):
                for part in re.split(r"\||&&|;", re.sub(r"(^|\s)#.*|\s{8,}.*", "", line)):
                    fault = fault_of_words(part.split())
                    faults += ["%s:%d: %s" % (path, start, fault)] if fault else []
    return faults + ([] if count > 10 or len(site.sources) == 1 else ["only %d of them were found" % count])


def fault_of_text(block, *_):
    """Output and drawings have no language. Python has, so it is not passed off as text."""
    if not re.search(r"(?m)^(import|from|def|class) \w|^\w+ = \w+\.\w+\(", block.text):
        return ""
    return "it looks like Python, and is to be compiled as that"


CHECKS = {
    "the menu's pages are there, and no other": check_nav,
    "every link leads to a page and a place in it, every id is there once": check_links,
    "the pages load nothing from elsewhere": check_alone,
    "every public function, struct, field, macro and drop reason has an anchor": check_names,
    "every such anchor names something that exists": check_anchors,
    "every field, function, number and type has a sentence": check_sentences,
    "every comment of the public API is on a page, and each drop reason beside its number": check_comments,
    "every function has its prototype, as the compiler reads it": check_prototypes,
    "every section of the manual has its heading": check_sections,
    "every line of the manual is on its page, in order": check_manual,
    "every line of every Markdown file is on its page": check_prose,
    "the search's index has every name": check_search,
    "every row of MIGRATION.md's tables has its netcode.h side": check_rows,
    "every piece of netcode.h code in MIGRATION.md compiles": check_snippets,
    "every command, path, name and section in the texts exists": check_spans,
    "the texts' figures are those that stand elsewhere": check_figures,
    "FAQ.md's bytes on the wire are what a client sends": check_wire,
    "MIGRATION.md's empty slots, log, loopback and memory are the library's": check_stumbles,
    "one version: macros, netcode_version(), changelog, first line, page": check_version,
    "every piece of code in the manual compiles": check_manual_code,
    "every command in code without a fence exists, and no other code is there": check_indented,
    "every piece of code is compiled or run, or says why not": check_code,
}


# ---- in a browser ----

# What is wider than the window: the page, or something in the article that no box of its own lets scroll; and prototypes that are cut.
WIDE = """(() => {
    const limit = innerWidth, out = [];
    document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>");
    for (const scheme of ["default", "slate"]) {
        document.body.setAttribute("data-md-color-scheme", scheme);
        if (document.documentElement.scrollWidth > limit) out.push(scheme + ": the page is " + document.documentElement.scrollWidth);
        for (const each of document.querySelectorAll("article *")) {
            if (each.getBoundingClientRect().right <= limit + 1 || !each.getClientRects().length) continue;
            let box = each.parentElement;
            while (box && !/auto|scroll/.test(getComputedStyle(box).overflowX)) box = box.parentElement;
            const held = box && box.getBoundingClientRect().right <= limit + 1 && box !== document.documentElement;
            if (!held) out.push(scheme + ": " + each.tagName + " " + each.textContent.slice(0, 30));
        }
        for (const code of document.querySelectorAll("article .language-c code"))
            if (code.scrollWidth > code.clientWidth + 1) out.push(scheme + ": cut: " + code.textContent.slice(0, 40));
    }
    return out.slice(0, 4);
})()"""

# What is cut on paper, where nothing scrolls: A4 without its margins.
PAPER_WIDTH = 718
CUT = """[...document.querySelectorAll("article *")].filter((each) => each.getClientRects().length && each.getBoundingClientRect().right > innerWidth + 1)
    .map((each) => each.tagName + " " + each.textContent.trim().slice(0, 30)).slice(0, 4)"""

# Types as a reader does: one that is quicker than the index waits for it.
SEARCH = """(async () => {
    const until = async (condition) => {
        for (let i = 0; i < 500 && !condition(); i++) await new Promise((wake) => setTimeout(wake, 50));
    };
    const input = document.querySelector("[data-md-component=search-query]");
    const links = () => [...document.querySelectorAll(".md-search-result__link")].map((each) => each.href);
    document.querySelector("#__search").click();
    input.focus();
    await until(() => !/Initializing/.test(document.querySelector(".md-search-result__meta").textContent));
    input.value = %s;
    input.dispatchEvent(new Event("keyup", {bubbles: true}));
    await until(() => links().length || /^No match/.test(document.querySelector(".md-search-result__meta").textContent));
    return links();
})()"""


class Host(http.server.SimpleHTTPRequestHandler):
    """A static host: files, and 404.html for what is none."""

    def log_message(self, *_):
        pass

    def send_error(self, code, *_):
        body = open(os.path.join(self.directory, "404.html"), "rb").read()
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def layout_faults(browser, address, pages, planted=""):
    faults = []
    for page in pages:
        browser.open(address + page, WIDTHS[-1])
        if planted:
            browser.run("document.head.insertAdjacentHTML('beforeend', %s)" % json.dumps("<style>%s</style>" % planted))
        for width in WIDTHS:
            browser.size(width)
            faults += ["%s at %d: %s" % (page, width, fault) for fault in browser.run(WIDE)]
        browser.size(PAPER_WIDTH, media="print")
        faults += ["%s on paper: %s" % (page, fault) for fault in browser.run(CUT)]
    return faults


def search_faults(browser, address, words, wanted):
    browser.open(address)
    links = browser.run(SEARCH % json.dumps(words))
    return [] if any(re.search(wanted, link) for link in links[:8]) else ["'%s' finds %s" % (words, links[:3] or "nothing")]


def scheme_faults(browser, address):
    """The page follows the system, the button overrules it, and that lasts until the system changes."""
    faults = []
    scheme = "document.body.getAttribute('data-md-color-scheme')"

    def expect(wanted, when):
        found = browser.run(scheme)
        faults.extend([] if found == wanted else ["%s it is %s, not %s" % (when, found, wanted)])

    for dark, wanted, other in ((False, "default", "slate"), (True, "slate", "default")):
        browser.open(address, 1400, dark)
        expect(wanted, "where the system is %s," % ("dark" if dark else "light"))
        browser.run("[...document.querySelectorAll('[data-md-component=palette] label')].find(e => !e.hidden).click()")
        expect(other, "after the button")
        browser.follow(address, dark)
        expect(other, "after the button, on the next page,")
    return faults


def contrast_faults(browser, address, planted=""):
    """Text and links, in both schemes: 4.5 to 1, as WCAG asks."""
    script = """(() => {
        const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
        const light = (color) => numbers(color).slice(0, 3).map((n) => n / 255).map((n) => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4)
            .reduce((sum, n, i) => sum + n * [0.2126, 0.7152, 0.0722][i], 0);
        return ["default", "slate"].flatMap((scheme) => {
            document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>");
            document.body.setAttribute("data-md-color-scheme", scheme);
            const back = light(getComputedStyle(document.body).backgroundColor);
            return ["article p", "article p a", "article h3", ".md-nav__link--active"].map((where) => {
                const element = document.querySelector(where);
                if (!element) throw new Error(`no ${where} on ${location}, ${document.readyState}: ${document.title}`);
                let color = getComputedStyle(element).color, mine = light(color), alpha = numbers(color)[3] ?? 1;
                mine = alpha * mine + (1 - alpha) * back;
                return [scheme + " " + where, (Math.max(mine, back) + 0.05) / (Math.min(mine, back) + 0.05)];
            });
        });
    })()"""
    browser.open(address)
    browser.run("document.head.insertAdjacentHTML('beforeend', %s)" % json.dumps("<style>%s</style>" % planted))
    return ["%s: %.1f to 1" % (where, ratio) for where, ratio in browser.run(script) if ratio < 4.5]


def missing_faults(browser, address):
    browser.open(address + "a/folder/that/is/not/there.html")
    said = browser.run("[document.querySelector('h1').textContent, document.querySelector('article a').href, getComputedStyle(document.body).margin]")
    if "no such page" not in said[0] or said[2] != "0px":
        return ["the host's page says %s" % said]
    browser.open(said[1])
    return [] if browser.run("document.querySelector('h1').textContent").startswith("netcode.h") else ["its link leads to %s" % said[1]]


def check_browser(site, plants):
    if not shutil.which("chromium"):
        skip("the pages in a browser", "chromium is not installed")
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=site.place))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, disk = "http://127.0.0.1:%d/" % server.server_address[1], "file://%s/" % site.place
    with chromium.Browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as browser:
        if plants:
            wide = layout_faults(browser, address, ["api/client.html"], "article p { width: 900px; }")
            cut = layout_faults(browser, address, ["api/client.html"], "article .language-c code { white-space: pre !important; }")
            report("a paragraph that is too wide, and a prototype that is cut, are seen",
                   [] if any(" P " in each for each in wide) and any("cut" in each for each in cut) else ["%s, %s" % (wide, cut)])  # fmt: skip
            paper = layout_faults(browser, address, ["examples/fleet/HOSTING.html"], "@media print { article th { min-width: 5rem !important; } }")
            report("a table that is cut on paper is seen", [] if any("on paper: TABLE" in each for each in paper) else ["%s" % paper])
            report("faint links are seen", [] if contrast_faults(browser, address + "examples/docs/FAQ.html", "article a { color: #777 !important; }") else ["they are not"])
            report("a search for what is nowhere finds nothing", [] if search_faults(browser, disk + "index.html", "zyxwvutsr", "html") else ["it found something"])
        else:
            for name, where in (("a host", address), ("a disk", disk)):
                faults = search_faults(browser, where + "index.html", "netcode_server_create", r"api/server\.html.*#netcode_server_create$")
                faults += search_faults(browser, where + "api/types.html", "roaming", r"PATHS\.html|#netcode_server_config_t|FAQ")
                faults += search_faults(browser, where + "examples/docs/FAQ.html", "TOKEN_CONSUMED", r"FAQ|troubleshooting|types|sizes")
                faults += search_faults(browser, where + "index.html", "ban a player", r"FAQ\.html.*ban")
                faults += search_faults(browser, where + "index.html", "matchmaking", r"backend/index\.html")
                report("the search finds names and words, from %s" % name, faults)
            report("light and dark follow the system, and the button", scheme_faults(browser, address + "index.html"))
            report("text and links have contrast, light and dark", contrast_faults(browser, address + "examples/docs/FAQ.html"))
            report("a wrong address shows the page for that", missing_faults(browser, address))
            pages = sorted(site.pages) if is_wanted("layout") or "--plants" in sys.argv else ["api/client.html", "index.html"]
            faults = layout_faults(browser, address, pages)
            report("nothing sticks out or is cut at %s pixels, light and dark, and on paper" % ", ".join(map(str, WIDTHS)), faults, "%d pages" % len(pages))
            elsewhere = [each for each in browser.requests() if not each.startswith((address, disk, "data:", "blob:"))]
            report("the browser asked no other host for anything", elsewhere, "%d requests" % len(browser.requests()))
            errors = [each for each in browser.errors() if "404" not in each]
            report("no script complained", errors)
    server.shutdown()


def take_pictures(site, folder):
    os.makedirs(folder, exist_ok=True)
    with chromium.Browser() as browser:
        for page in ("index", "manual", "examples/docs/MESSAGES", "api/client", "api/types", "examples/docs/MIGRATION", "examples/docs/FAQ", "benchmarks"):
            for width in WIDTHS:
                for dark in (False, True):
                    browser.open("file://%s/%s.html" % (site.place, page), width, dark)
                    browser.run("document.fonts.ready.then(() => scrollTo(0, %d))" % (0 if page == "index" else 500))
                    browser.picture(os.path.join(folder, "%s-%d-%s.png" % (page.replace("/", "-"), width, "dark" if dark else "light")))


# A planted fault for each check: which text is changed, what in it, into what. The check must then have a fault that it had not.
PLANTS = (
    (check_nav, "examples/docs/mkdocs.yml", "docs/PATHS.md\n", "docs/PATH.md\n"),
    (check_nav, "examples/docs/mkdocs.yml", "      - Security: examples/docs/SECURITY.md\n", ""),
    (check_links, "site/manual.html", "#section-4", "#section-44"),
    (check_links, "site/examples/docs/FAQ.html", "../../manual.html#section-4", "../../handbook.html#section-4"),
    (check_links, "site/manual.html", 'id="section-5"', 'id="section-4"'),
    (check_links, "site/api/server.html", 'href="../', 'href="/'),
    (check_links, "site/benchmarks.html", 'src="costs.svg"', 'src="cost.svg"'),
    (check_links, "site/benchmarks.html", 'href="index.html" title="netcode.h"', 'href="." title="netcode.h"'),
    (check_alone, "site/index.html", "</head>", '<link rel="stylesheet" href="https://fonts.example.org/css"></head>'),
    (check_alone, "site/style.css", ".md-grid {", ".md-grid { background: url(//example.org/x.png);"),
    (check_names, "site/api/server.html", 'id="netcode_server_flush"', 'id="flush"'),
    (check_names, "site/api/types.html", 'id="netcode_event_t.session"', 'id="x"'),
    (check_names, "site/api/types.html", 'id="netcode_address_t.data.ipv6"', 'id="x"'),
    (check_names, "site/api/sizes-and-limits.html", 'id="NETCODE_DROP_TOKEN_EXPIRED"', 'id="x"'),
    (check_names, "site/api/index.html", "<code>netcode_server_stop</code>", "<code>netcode_server_halt</code>"),
    (check_names, "netcode.h", "NETCODE_API void netcode_term( void );", "NETCODE_API void netcode_term( void );\nNETCODE_API void netcode_new( void );"),
    (check_names, "netcode.h", "#define NETCODE_OK 1", "#define NETCODE_OK 1\n#define NETCODE_FINE 1"),
    (check_anchors, "netcode.h", "    int bytes_done; ", "    int bytes_there; "),
    (check_anchors, "netcode.h", "netcode_client_flush( struct", "netcode_client_hurry( struct"),
    (check_sentences, "site/api/types.html", "received and not yet read", ""),
    (check_sentences, "site/api/library.html", "Sleeps. Returns at once for 0, negative numbers and NaN.", ""),
    (check_sentences, "site/api/sizes-and-limits.html", "the datagram has no bytes", ""),
    (check_comments, "site/api/types.html", "without IP and UDP headers", "without headers"),
    (check_comments, "site/api/sizes-and-limits.html", "the datagram has no bytes", "the datagram has bytes"),
    (check_comments, "netcode.h", "/* Undoes one netcode_init. */", "/* Undoes one netcode_init, or does not. */"),
    (check_prototypes, "netcode.h", "NETCODE_API void netcode_sleep( double seconds );", "NETCODE_API void netcode_sleep( float seconds );"),
    (check_prototypes, "netcode.h", "NETCODE_API void netcode_term( void );", "NETCODE_API void netcode_term( void );\nNETCODE_API void netcode_new( void );"),
    (check_sections, "site/manual.html", 'id="section-9"', 'id="section-nine"'),
    (check_manual, "site/manual.html", "replay window 320 packets", "replay window 32 packets"),
    (check_sections, "site/manual.html", 'id="section-14"', 'id="section-fourteen"'),
    (check_sections, "site/manual.html", 'href="examples/docs/NETWORK.html"', 'href="examples/docs/STANDARD.html"'),
    (check_prose, "site/examples/docs/MESSAGES.html", "They share packets; ", ""),
    (check_prose, "site/examples/docs/PATHS.html", "Handshakes do not roam", "Handshakes roam"),
    (check_prose, "site/examples/docs/FAQ.html", "Nothing is searched", "Much is searched"),
    (check_prose, "site/embedding.html", "Copy <code>netcode.h</code>", "Move <code>netcode.h</code>"),
    (check_prose, "site/examples/fleet/HOSTING.html", "</ul>\n", "</ul><p>- no list</p>\n"),
    (check_search, "site/search/search_index.json", "netcode_server_create", "netcode_server_make"),
    (check_rows, MIGRATION, "`messages_config.channels = 4;`", ""),
    (check_rows, MIGRATION, "| `enet_time_get` |", "| `enet_time_get` | |"),
    (check_snippets, MIGRATION, "`netcode_init()`", "`netcode_initialize()`"),
    (check_snippets, MIGRATION, "`messages_stats.loss_sent`", "`messages_stats.loss`"),
    (check_snippets, MIGRATION, "netcode_client_connect( client, connect_token )", "netcode_client_connect( client )"),
    (check_spans, FAQ, "`make latency`", "`make lateness`"),
    (check_spans, FAQ, "`tests/threads.c`", "`tests/thread.c`"),
    (check_spans, FAQ, "`kernel_filter`", "`kernel_sieve`"),
    (check_spans, FAQ, "`./build/token keylog`", "`./build/token keys-please`"),
    (check_spans, FAQ, "(section 17)", "(section 18)"),
    (check_spans, FAQ, "`TOKEN_CONSUMED`", "`TOKEN_EATEN`"),
    (check_figures, FAQ, "1.8 to 3.8 µs", "1.8 to 2.8 µs"),
    (check_figures, "README.md", "9,000, 7,800 or 4,400", "8,000, 7,800 or 4,400"),
    (check_wire, FAQ, "23 bytes beside", "22 bytes beside"),
    (check_stumbles, MIGRATION, "A client reserves 372 KiB", "A client reserves 11 KiB"),
    (check_stumbles, "netcode.h", "return slot ? &slot->address : NULL;", "return slot ? &slot->address : &server->addresses[0];"),
    (check_version, "netcode.h", "#define NETCODE_VERSION_PATCH ", "#define NETCODE_VERSION_PATCH 1"),
    (check_version, "netcode.h", "    1.0.0  The first", "    9.0.0  The first"),
    (check_version, "netcode.h", "    CHANGELOG\n", "    LOG\n"),
    (check_version, "netcode.h", 'NETCODE_VERSION_FULL "', 'NETCODE_VERSION_FULL "1'),
    (check_manual_code, "site/manual.html", ">netcode_server_start</span>", ">netcode_server_begin</span>"),
    (check_manual_code, "site/examples/docs/MESSAGES.html", ">netcode_messages_send_stream</span>", ">netcode_messages_stream</span>"),
    (check_code, OWN, "```sh\n", "```fortran\n"),
    (check_code, OWN, "sh examples/docs/docs.sh ", "sh examples/docs/doc.sh "),
    (check_code, "examples/cpp/README.md", "netcode::visitor {", "netcode::visitors {"),
    (check_code, "examples/arena/TUTORIAL.md", "netcode_server_start( server, 4 );", "netcode_server_start( server );"),
    (check_code, "examples/python/README.md", "    while True:", "    while true"),
    (check_code, "examples/web/README.md", "sh examples/web/build.sh", "sh examples/web/make.sh"),
    (check_code, "examples/python/README.md", "sender = netcode.Messages()", "sender = netcode.Messages("),
    (check_code, "examples/python/README.md", "```python\nimport netcode\n\nsender", "```text\nimport netcode\n\nsender"),
    (check_indented, "examples/fleet/HOSTING.md", "build/token keygen", "build/token keyring"),
    (check_indented, "examples/fleet/README.md", "./build/server-full --help", "./build/server-ful --help"),
    (check_indented, "examples/fleet/README.md", "--admission 127", "--admissions 127"),
    (check_indented, "examples/metrics/README.md", "make build/metrics-serve", "make build/metrics-server"),
    (check_indented, "examples/demo-full/README.md", "    make demo-full\n", "    make demofull\n"),
    (check_indented, "examples/wireshark/README.md", "-r examples/wireshark/sample.pcap", "-r examples/wireshark/simple.pcap"),
    (check_indented, "examples/packaging/README.md", "```c\n#define NETCODE_IMPLEMENTATION\n#include <netcode.h>\n```", "    #define NETCODE_IMPLEMENTATION"),
    (check_code, "examples/godot/README.md", "<!-- not run: GDScript", "<!-- GDScript"),
)

# Headers that the site is built from: what is changed, and the check that must notice.
HEADERS = (
    ("a field without a sentence", "    int loopback;             /* 1: a client of this process */", "    int loopback;", check_sentences),
    ("a function without a sentence", "/* Undoes one netcode_init. */\n", "", check_sentences),
    ("a number without a sentence", "#define NETCODE_CONST const /* kept for code that uses it */", "#define NETCODE_CONST const", check_sentences),
)


def plant(site, before, row):
    check, name, old, new = row
    changed = site.with_a_fault(name, old, new)
    if check is check_code:  # the other pages' code is as it was
        changed.sources = [name]
    after = check(changed)
    return "" if set(after) - set(before[check]) else "not seen by %s: '%s' in %s becomes '%s'" % (check.__name__, old, name, new)


def plant_header(place, header, row):
    what, old, new, check = row
    if old not in header:
        return "the plant finds no '%s'" % old
    path = os.path.join(place, re.sub(r"\W", "-", what), "netcode.h")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(header.replace(old, new, 1))
    build(os.path.join(os.path.dirname(path), "site"), NETCODE_HEADER=path)
    return "" if check(Site(os.path.join(os.path.dirname(path), "site"))) else "%s is not seen" % what


def build(place, **environment):
    result = run(["sh", os.path.join(ROOT, "examples/docs/docs.sh"), place], env=dict(os.environ, **environment))
    if result.returncode:
        raise SystemExit("examples/docs/docs.sh failed:\n" + result.stdout)


def address_faults(place):
    build(place, SITE_URL="https://docs.example.org/netcode/")
    page = Page(read(os.path.join(place, "404.html")))
    inner = [each for each in page.links + page.loads if not re.match(r"\w+:|#", each)]
    return ["it has %s" % each for each in inner if not each.startswith("/netcode/")] + ([] if os.path.exists(place + "/sitemap.xml") else ["no sitemap.xml"])


ELSEWHERE = "404.html knows where the site is, where that is said"


def is_wanted(name):
    return not sys.argv[1:] or any(word in name for word in sys.argv[1:])


def main():
    # Ended from outside, it leaves no folder either.
    signal.signal(signal.SIGTERM, lambda number, where: sys.exit("docs: ended by signal %d" % number))
    need = run(["sh", os.path.join(ROOT, "tests/tools/need.sh"), "chromium:chromium", "nodejs:node", "g++:c++", "libsodium-dev:pc=libsodium"])
    if need.returncode:
        raise SystemExit(need.stdout)
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(2) as pool:
        build(place + "/site")
        site = Site(place + "/site")
        if sys.argv[1:2] == ["--pictures"]:
            return take_pictures(site, sys.argv[2])
        if sys.argv[1:] == ["--plants"]:
            before = {check: check(site) for check in {row[0] for row in PLANTS}}
            report("planted faults are seen by the checks that they are for", [each for each in pool.map(lambda row: plant(site, before, row), PLANTS) if each],
                   "%d of %d" % (len(PLANTS), len(PLANTS)))  # fmt: skip
            header = site.files["netcode.h"]
            report("headers with a fault are seen", [each for each in [plant_header(place, header, row) for row in HEADERS] if each], "%d of %d" % (len(HEADERS), len(HEADERS)))
            check_browser(site, True)
        else:
            refuse_unknown(sys.argv[1:], [*CHECKS, ELSEWHERE, "browser's layout"])
            found = [(name, pool.submit(check, site)) for name, check in CHECKS.items() if is_wanted(name)]
            if is_wanted(ELSEWHERE):
                found.append((ELSEWHERE, pool.submit(address_faults, place + "/elsewhere")))
            if is_wanted("browser's layout"):
                check_browser(site, False)
            for name, faults in found:
                report(name, faults.result())
    print("docs: %d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed or (skipped and SKIPS_FAIL) else 0


if __name__ == "__main__":
    sys.exit(main())
