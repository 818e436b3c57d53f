"""Metrics: what examples/metrics/ prints, serves and writes is taken by promtool and by a real Prometheus; every field of the statistics
structs is in it; it agrees with what the servers say themselves; every query of the dashboard finds data; the alerts fire.

    python3 tests/all/metrics.py                 SANITIZE=1: the programs are built with sanitizers
    python3 tests/all/metrics.py WORD...         parts of it: text, fields, alerts, servers
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics"))
import common  # noqa: E402
from common import check, folder, start, stop, text_of, wait_for  # noqa: E402

CLOCK = "netcode_server_clock_seconds"
COUNTERS = ("netcode_server_packets", "netcode_server_bytes")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


# ---- text ----

def fetch(url, method="GET"):
    """Status, headers and body; status 0 when no server answers."""
    try:
        with opener.open(urllib.request.Request(url, method=method), timeout=common.LIMIT_SECONDS) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()
    except (OSError, ValueError):
        return 0, {}, ""


def samples_of(text):
    """{'name{labels}': number} of a text; whole numbers stay exact."""
    samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = int(value) if re.fullmatch(r"-?[0-9]+", value) else float(value)
    return samples


def promtool(text):
    """What `promtool check metrics` finds wrong; nothing when all is well."""
    result = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.stdout.decode().strip() or ("" if result.returncode == 0 else "status %d" % result.returncode)


def shape_faults(text):
    """What promtool lets pass: samples outside of their metric's group, without HELP and TYPE, twice, or a metric without samples."""
    faults, seen, name, kind, samples = [], set(), None, None, 1
    for line in text.splitlines():
        if line.startswith("# HELP "):
            faults += [] if samples else ["%s has no sample" % name]
            name, kind, samples = line.split()[2], None, 0
        elif line.startswith("# TYPE "):
            kind = line.split()[3] if line.split()[2] == name else None
        else:
            sample = line.rsplit(" ", 1)[0]
            base = sample.split("{")[0]
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            if kind is None or base not in [name + suffix for suffix in suffixes]:
                faults.append("stands outside of its group: " + sample)
            if sample in seen:
                faults.append("is there twice: " + sample)
            seen.add(sample)
            samples += 1
    return faults


def test_promtool(name, text):
    problems = promtool(text) or shape_faults(text)
    check("promtool check metrics: " + name, text.count("\n") > 50 and not problems, problems or text[:200])


def test_promtool_can_fail(text):
    """Faults that a hand can make in metrics.h."""
    slots = text[text.index("# HELP netcode_server_slots "):].split("# HELP", 2)[1]
    wrong = {"a counter without _total": text.replace("netcode_server_connects_total", "netcode_server_connects"),
             "a metric in two places": text + "# HELP" + slots,
             "a value that is no number": re.sub("netcode_server_slots [0-9]+", "netcode_server_slots many", text)}
    check("promtool notices " + ", ".join(wrong), all(promtool(each) for each in wrong.values()))
    wrong = {"a missing type": text.replace("# TYPE netcode_server_connects_total counter\n", ""),
             "a sample twice": text.replace("# HELP netcode_server_clients ", "netcode_server_slots 1\n# HELP netcode_server_clients "),
             "a metric without samples": text.replace("\nnetcode_server_connects_total ", "\n# ")}
    check("we notice " + ", ".join(wrong), all(shape_faults(each) for each in wrong.values()))


# ---- every field ----

def fields_of(header, struct):
    """Type, name and size ('' for one) of a struct's fields, as they stand in the header."""
    body = re.search(r"^struct %s \{\n(.*?)^\};" % struct, header, re.M | re.S)
    body = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.S)
    fields = []
    for kind, names in re.findall(r"(\w+) ([^;]+);", body):
        for name in names.split(","):
            found = re.fullmatch(r"\s*(\w+)(?:\[(\w+)\])?\s*", name)
            fields.append((kind, found.group(1), found.group(2) or ""))
    return fields


def walker(header, struct, call, base):
    """C that gives each place of a struct a number of its own, and prints the struct."""
    lines = ["{ static struct %s stats;" % struct]
    for number, (_, name, size) in enumerate(fields_of(header, struct)):
        value = base + number * 1000
        if size:
            lines.append("for ( int i = 0; i < (int) %s; i++ ) stats.%s[i] = (uint64_t) ( %d + i );" % (size, name, value))
            lines.append('fprintf( stderr, "%s %d %%d\\n", (int) %s );' % (name, value, size))
        else:
            lines.append("stats.%s = %d;" % (name, value))
            lines.append('fprintf( stderr, "%s %d 1\\n" );' % (name, value))
    return "\n".join(lines + [call, "}"])


def missing_fields(header_path, name):
    """Fields of the three structs that metrics.h leaves out, as seen in what it prints."""
    with open(header_path) as file:
        header = file.read()
    source = os.path.join(folder, name + ".c")
    with open(source, "w") as file:
        file.write('#define NETCODE_MESSAGES\n#define NETCODE_IMPLEMENTATION\n#include "%s"\n#include "%s/examples/metrics/metrics.h"\n' % (header_path, common.ROOT))
        file.write("int main( void ) { struct metrics_text_t text = { 0 }; metrics_begin( &text );\n")
        file.write(walker(header, "netcode_server_stats_t", "metrics_server( &text, &stats, NULL );", 1000000) + "\n")
        file.write(walker(header, "netcode_client_stats_t", "metrics_client( &text, &stats );", 2000000) + "\n")
        file.write(walker(header, "netcode_messages_stats_t", "metrics_messages( &text, &stats );", 3000000) + "\n")
        file.write('printf( "%s", text.data ); return text.failed; }\n')
    program = os.path.join(folder, name)
    made = common.compile_quietly(common.CC + ["-std=gnu99", "-O0", source] + common.sodium() + ["-lm", "-o", program])
    if made.returncode != 0:
        return [made.stdout.decode(errors="replace")], 0, ""
    result = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    values = list(samples_of(result.stdout.decode()).values())
    missing = []
    for line in result.stderr.decode().splitlines():
        field, first, size = line.split()
        first, size = int(first), int(size)
        # The place 0 of reasons is none, and no reason; all others are there exactly once. Packet types begin at 0.
        low = 1 if field in ("dropped", "disconnects", "drops") and size > 1 else 0
        missing += ["%s[%d]" % (field, i) for i in range(low, size) if values.count(first + i) != 1]
    return missing, len(result.stderr.decode().splitlines()), result.stdout.decode()


def test_fields():
    missing, fields, text = missing_fields(os.path.join(common.ROOT, "netcode.h"), "fields")
    check("each of %d fields of the three structs is printed, each reason once" % fields, fields > 60 and not missing, missing)
    test_promtool("of structs with a number in every field", text)
    with open("netcode.h") as file:
        header = file.read()
    for struct in ("netcode_server_stats_t", "netcode_client_stats_t", "netcode_messages_stats_t"):
        end = header.index("\n};", header.index("struct %s {\n" % struct))
        header = header[:end] + "\n    uint64_t planted;" + header[end:]
    planted = os.path.join(folder, "netcode.h")
    with open(planted, "w") as file:
        file.write(header)
    check("a new field that is not printed is noticed", missing_fields(planted, "planted")[0] == ["planted[0]"] * 3)
    test_cpp()


def test_cpp():
    """metrics.h in C++11, with and without messages."""
    compiler = os.environ.get("CXX", "c++").split()
    source = os.path.join(folder, "metrics.cpp")
    with open(source, "w") as file:
        file.write('#include "netcode.h"\n#include "examples/metrics/metrics.h"\n')
    results = [common.compile_quietly(compiler + ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I.", "-fsyntax-only", source] + more)
               for more in ([], ["-DNETCODE_MESSAGES"])]
    check("metrics.h is C++11 too", all(result.returncode == 0 for result in results), results)


# ---- servers ----

def run_text_tests():
    libraries = common.sodium() + common.words("pkg-config", "--cflags", "--libs", "libmicrohttpd") + ["-pthread"]
    program = common.build("metrics_text", "tests/all/metrics_text.c", libraries, ["-DMETRICS_HTTP_STALE_SECONDS=5"])
    result = subprocess.run([program, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = result.stdout.decode().splitlines()
    for line in lines:
        if line.startswith(("ok", "FAILED")):
            check(line[8:], line.startswith("ok"))
        else:
            print(line)
    check("metrics_text ended well", result.returncode == 0 and len(lines) > 30, result.returncode)
    for locale, charset in (("tr_TR", "ISO-8859-9"), ("de_DE", "UTF-8")):
        subprocess.run(["localedef", "-i", locale, "-f", charset, os.path.join(folder, locale)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # glibc keeps what it read of LOCPATH: that is no leak of ours.
        environment = dict(os.environ, LOCPATH=folder, LC_ALL=locale, ASAN_OPTIONS="detect_leaks=0")
        result = subprocess.run([program, folder, "locale"], stdout=subprocess.PIPE, env=environment)
        check("names and numbers are the same in the locale " + locale, result.returncode == 0 and result.stdout.count(b"ok ") == 3, result.stdout)
    test_threads(libraries)


def test_threads(libraries):
    """http.h's thread beside a game's, under the thread sanitizer, where that can be linked and run."""
    program = os.path.join(folder, "metrics_threads")
    command = common.CC + ["-std=gnu99", "-O1", "-g", "-fsanitize=thread", "-I."]
    with open(program + ".c", "w") as file:
        file.write("int main( void ) { return 0; }\n")
    if common.compile_quietly(command + [program + ".c", "-o", program]).returncode or subprocess.run([program], stderr=subprocess.DEVNULL).returncode:
        common.skip("http.h under the thread sanitizer", "it can not be linked or run here")
        return
    made = common.compile_quietly(command + ["tests/all/metrics_text.c"] + libraries + ["-lm", "-o", program])
    result = subprocess.run([program, folder, "threads"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("http.h under the thread sanitizer", made.returncode == 0 and result.returncode == 0 and b"WARNING" not in result.stdout, made.stdout or result.stdout)


def play(address, clients):
    """Clients of record.c, until they are stopped. The last one writes its own metrics."""
    own = ["--metrics-file", os.path.join(folder, "client.prom")]
    return [start([common.build_record(), "--server", address, "--id", str(100 + i), "--seconds", "1000"] +
                  (own if i == clients - 1 else []), "client%d.csv" % i) for i in range(clients)]


def test_words(address):
    """What the programs say of themselves, and of what goes wrong."""
    with open("/proc/net/udp") as file:
        bound = [line.split()[1] for line in file if line.split()[1].endswith(":%04X" % int(address.split(":")[1]))]
    check("with the key that everybody knows serve is bound to 127.0.0.1 and nothing else", bound == ["0100007F:%04X" % int(address.split(":")[1])], bound)
    result = subprocess.run([common.build_serve(), "--address", "192.0.2.1:0", "--seconds", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=common.LIMIT_SECONDS, env={})
    check("and refuses another address", result.returncode == 1 and b"on loopback only" in result.stderr, result)
    process = start([common.build_serve(), "--address", "[::1]:0", "--seconds", "1000"], "v6.log")
    found = wait_for(lambda: process.poll() is not None or re.search(r"^listening on (\[::1\]:[1-9][0-9]*)$", text_of("v6.log"), re.M))
    if "socket could not be" in text_of("v6.log"):
        common.skip("serve on ::1", text_of("v6.log"))
    elif check("serve names the address that it listens on", isinstance(found, re.Match), text_of("v6.log")):
        result = subprocess.run([common.build_record(), "--server", found.group(1), "--seconds", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=common.LIMIT_SECONDS)
        check("and record reaches it over IPv6", result.returncode == 0 and result.stdout.count(b"\n") >= 3, result.stderr)
        check("and serve ends well", stop(process) == 0, text_of("v6.log"))
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([common.build_record(), "--server", address, "--id", "99", "--seconds", "1"], stdout=full, stderr=subprocess.PIPE, timeout=common.LIMIT_SECONDS)
        check("record that can not write its lines says so", result.returncode == 3 and b"can not be written" in result.stderr, result)


class Reader(threading.Thread):
    """Reads a .prom file as often as it can: it must be whole every time."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.reads, self.clocks, self.halves, self.stopping = path, 0, set(), 0, False

    def run(self):
        while not self.stopping:
            try:
                with open(self.path) as file:
                    text = file.read()
            except FileNotFoundError:
                self.halves += self.reads > 0
                continue
            self.reads += 1
            clock = re.search("^%s (.+)$" % CLOCK, text, re.M)
            self.clocks.add(float(clock.group(1)) if clock else 0.0)
            self.halves += not (text.startswith("# HELP netcode_server_") and text.endswith("\n") and "netcode_server_round_trip_seconds_count" in text)
            time.sleep(0.001)


def counts_of(line):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


def pairs_of(stats):
    """A server's own NAME=VALUE, and the sample that must say the same."""
    plain = {"clients": "clients", "slots": "slots", "pending": "handshakes_pending", "consumed": "tokens_consumed", "connects": "connects_total",
             "datagrams_received": "datagrams_received_total", "kernel_drops": "kernel_drops_total", "backlogs": "backlogs_total",
             "probes_sent": "probes_sent_total", "probes_answered": "probes_answered_total", "moves": "moves_total",
             "path_candidates": "path_candidates_total", "trials": "path_trials_total", "trials_refused": "path_trials_refused_total"}
    for key, value in stats.items():
        kind, _, rest = key.partition("_")
        if key in plain:
            yield key, "netcode_server_" + plain[key], value
        elif key in ("bytes_sent", "bytes_received"):
            yield key, 'netcode_server_bytes_total{direction="%s"}' % rest, value
        elif kind == "drop":
            yield key, 'netcode_server_packets_dropped_total{reason="%s"}' % rest.lower(), value
        elif kind == "disconnects":
            yield key, 'netcode_server_disconnects_total{reason="%s"}' % rest, value
        elif kind in ("sent", "received") and rest:
            yield key, 'netcode_server_packets_total{direction="%s",type="%s"}' % (kind, rest), value


def differences(line, samples):
    """Of a server's line of counters; and how many were compared. Drops that are not named there must be 0."""
    stats = counts_of(line)
    pairs = list(pairs_of(stats))
    wrong = ["%s=%s but %s" % (key, value, samples.get(name)) for key, name, value in pairs if samples.get(name) != value]
    named = {name for _, name, _ in pairs}
    wrong += ["%s %s" % (name, value) for name, value in samples.items()
              if name.startswith("netcode_server_packets_dropped_total") and value and name not in named]
    for way in ("sent", "received"):
        if "packets_" + way in stats:
            total = sum(value for name, value in samples.items() if name.startswith('netcode_server_packets_total{direction="%s"' % way))
            wrong += [] if total == stats["packets_" + way] else ["packets_%s %d" % (way, total)]
    return wrong, len(pairs)


def last_stats(log):
    lines = [line for line in text_of(log).splitlines() if "stats clients=" in line]
    return lines[-1] if lines else ""


def test_agreement(name, process, log, url):
    """On SIGUSR1, once nothing moves any more: two scrapes that say the same, and the line in between."""
    def scrape():
        return samples_of(fetch(url)[2])

    def scrape_after(samples):
        more = scrape()
        return more if more.get(CLOCK, 0) > samples.get(CLOCK, 0) else None

    def quiet():
        before = scrape()
        lines = text_of(log).count("stats clients=")
        process.send_signal(common.signal.SIGUSR1)
        wait_for(lambda: text_of(log).count("stats clients=") > lines)
        # What is served when the line is there may be older than the line. What follows that is not.
        served = scrape()
        after = wait_for(lambda: scrape_after(served))
        same = [key for key in before if key.startswith("netcode_server_") and not re.search("update_duration|round_trip|loss_ratio|clock", key)]
        return after if before and after and all(before[key] == after.get(key) for key in same) else None

    samples = wait_for(quiet)
    if not check(name + ": its counters come to rest", samples):
        return
    for kind in "round_trip_seconds", "loss_ratio":
        check("%s: its clients' %s was observed" % (name, kind), samples.get("netcode_server_%s_count" % kind, 0) > 2, samples)
    check(name + ": its updates take some time", samples.get("netcode_server_update_duration_seconds_sum", 0) > 0, samples)
    wrong, pairs = differences(last_stats(log), samples)
    check("%s: %d counters agree with its own line on SIGUSR1" % (name, pairs), pairs >= 6 and not wrong, wrong)
    samples["netcode_server_connects_total"] += 1
    check(name + ": one more would be noticed", differences(last_stats(log), samples)[0])


def test_http(url):
    status, headers, body = fetch(url)
    check("GET /metrics: 200, text of version 0.0.4", status == 200 and "version=0.0.4" in headers.get("Content-Type", ""), status)
    status, headers, body = fetch(url, "HEAD")
    check("HEAD: the same without a body", status == 200 and body == "" and int(headers.get("Content-Length", 0)) > 1000, status)
    status, headers, body = fetch(url, "POST")
    check("POST: 405, with what is allowed", status == 405 and headers.get("Allow") == "GET, HEAD", status)
    check("another path: 404", fetch(url + "x")[0] == 404)


def updates_of(text):
    return samples_of(text).get("netcode_server_update_duration_seconds_count", 0)


def test_crowd(url, file_path):
    """Connections that ask nothing take no more than their own places, and the game goes on."""
    import socket
    host, port = urllib.parse.urlparse(url).netloc.split(":")
    crowd = []
    for _ in range(40):
        try:
            crowd.append(socket.create_connection((host, int(port)), timeout=common.LIMIT_SECONDS))
        except OSError:
            pass
    def updates():
        with open(file_path) as file:
            return updates_of(file.read())
    before = updates()
    more = wait_for(lambda: updates() > before + 20)
    for each in crowd:
        each.close()
    served = wait_for(lambda: fetch(url)[2])
    check("40 connections that say nothing: updates go on meanwhile, and readers are served again", more and served, (more, served))


# ---- Prometheus ----

class Prometheus:
    def __init__(self, targets, text=None, name="prometheus"):
        config = os.path.join(folder, name + ".yml")
        with open(config, "w") as file:
            file.write(text or "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
                       "scrape_configs:\n  - job_name: netcode\n    static_configs:\n      - targets: %s\n" % json.dumps(targets))
        self.process = start(["prometheus", "--config.file=" + config, "--web.listen-address=127.0.0.1:0",
                              "--storage.tsdb.path=" + os.path.join(folder, name + "-tsdb")], name + ".log")
        self.url = "http://" + common.said(name + ".log", 'msg="Listening on" address=')

    def ask(self, path, **parameters):
        status, _, body = fetch(self.url + path + "?" + urllib.parse.urlencode(parameters, doseq=True))
        try:
            answer = json.loads(body)
        except ValueError:
            return status, {"status": "none", "error": body[:200]}
        return status, answer

    def query(self, expression):
        """A list of (labels, value), or the error as a string."""
        _, answer = self.ask("/api/v1/query", query=expression)
        if answer.get("status") != "success":
            return str(answer.get("error"))
        result = answer["data"]["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]


def queries_of(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def filled_in(expression):
    """As Grafana fills in its variables: a rate's interval is four scrapes there."""
    return expression.replace("$__rate_interval", "10s").replace("$instance", ".*")


def query_fault(prometheus, expression):
    result = prometheus.query(filled_in(expression))
    if isinstance(result, str):
        return "error: " + result
    if not result:
        return "no data"
    return "" if any(value == value for _, value in result) else "not a number"


def test_dashboard(prometheus):
    with open("examples/metrics/dashboard.json") as file:
        dashboard = json.load(file)
    queries = list(queries_of(dashboard))
    faults = []
    for title, expression in queries:
        # After a scrape that came too late there is no data until the next.
        if not wait_for(lambda expression=expression: not query_fault(prometheus, expression)):
            faults.append("%s: %s: %s" % (title, expression, query_fault(prometheus, expression)))
    check("each of the dashboard's %d queries returns data" % len(queries), len(queries) > 40 and not faults, faults)
    check("a query with a misspelt name, and one that is no query, are noticed",
          query_fault(prometheus, "rate(netcode_server_packet_total[10s])") == "no data" and
          query_fault(prometheus, "rate(netcode_server_packets_total").startswith("error"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    check("the dashboard's panels have ids and places of their own", len(set(ids)) == len(ids) and not overlaps(dashboard["panels"]))
    status, answer = prometheus.ask("/api/v1/label/instance/values", **{"match[]": "netcode_server_slots"})
    check("its list of servers is not empty", status == 200 and len(answer.get("data", [])) >= 1, answer)
    used = set(re.findall(r"netcode_\w+", " ".join(expression for _, expression in queries)))
    return used


def overlaps(panels):
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in cells or x >= 24:
                    return True
                cells.add((x, y))
    return False


def missing_in(prometheus, target, samples):
    """What Prometheus does not hold of them, and which counters that rest have another value there."""
    result = prometheus.query('{__name__=~"netcode_.+",instance="%s"}' % target)
    if isinstance(result, str):
        return [result]
    held = {}
    for labels, value in result:
        name = labels.pop("__name__")
        labels = {key: each for key, each in labels.items() if key not in ("instance", "job")}
        held[name + ("{" + ",".join('%s="%s"' % each for each in sorted(labels.items())) + "}" if labels else "")] = value
    absent = [name for name in samples if name not in held and 'le="' not in name]
    return absent + [name for name in samples if name.startswith(COUNTERS) and held.get(name) != samples[name]]


def test_scraped(prometheus, target, url):
    """Nobody plays any more: after the next scrape Prometheus holds what the server says."""
    def missing():
        return missing_in(prometheus, target, samples_of(fetch(url)[2]))
    good, samples = wait_for(lambda: not missing()), samples_of(fetch(url)[2])
    check("Prometheus holds each of %d samples, and %d of packets and bytes are equal" % (len(samples), sum(name.startswith(COUNTERS) for name in samples)),
          good and samples, missing())


# ---- alerts ----

ALERT_TESTS = """
rule_files: [%s]
evaluation_interval: 5s
tests:
  - interval: 5s
    input_series:
      - {series: 'up{job="netcode", instance="a"}', values: '1x6 0x30'}
      - {series: 'up{job="netcode", instance="b"}', values: '1x36'}
      - {series: 'node_textfile_mtime_seconds{file="/x/netcode.prom"}', values: '0+5x6 30x60'}
      - {series: 'netcode_server_clients{instance="a"}', values: '31x60'}
      - {series: 'netcode_server_clients{instance="b"}', values: '30x60'}
      - {series: 'netcode_server_slots{instance="a"}', values: '32x60'}
      - {series: 'netcode_server_slots{instance="b"}', values: '32x60'}
      - {series: 'netcode_server_update_duration_seconds_bucket{instance="a", le="0.001"}', values: '0+90x60'}
      - {series: 'netcode_server_update_duration_seconds_bucket{instance="a", le="0.01"}', values: '0+100x60'}
      - {series: 'netcode_server_update_duration_seconds_bucket{instance="a", le="+Inf"}', values: '0+100x60'}
      - {series: 'netcode_server_update_duration_seconds_bucket{instance="b", le="0.001"}', values: '0+100x60'}
      - {series: 'netcode_server_update_duration_seconds_bucket{instance="b", le="+Inf"}', values: '0+100x60'}
      - {series: 'netcode_server_kernel_drops_total{instance="a"}', values: '0+1x60'}
      - {series: 'netcode_server_packets_dropped_total{instance="b", reason="queue_full"}', values: '0+1x60'}
      - {series: 'netcode_server_packets_dropped_total{instance="c", reason="pool_empty"}', values: '0+1x60'}
      - {series: 'netcode_server_packets_dropped_total{instance="a", reason="token_not_authentic"}', values: '0+50x120'}
      - {series: 'netcode_server_packets_dropped_total{instance="b", reason="token_not_authentic"}', values: '0x120'}
      - {series: 'netcode_server_packets_dropped_total{instance="b", reason="unknown_address"}', values: '0+50x120'}
      - {series: 'netcode_server_packets_dropped_total{instance="c", reason="request_wrong_protocol_id"}', values: '0+50x120'}
      - {series: 'netcode_server_redis_reachable{instance="a"}', values: '1x6 0x60'}
      - {series: 'netcode_server_redis_reachable{instance="b"}', values: '1x60'}
      - {series: 'netcode_backend_store_reachable{instance="c"}', values: '0x60'}
      - {series: 'netcode_server_admission_losses_total{instance="a", reason="ended"}', values: '0+1x60'}
      - {series: 'netcode_server_admission_losses_total{instance="b", reason="wanted"}', values: '0+1x60'}
      - {series: 'netcode_server_admissions_total{instance="b", result="admitted"}', values: '0+1x60'}
      - {series: 'netcode_server_admissions_total{instance="c", result="full"}', values: '0+1x60'}
      - {series: 'netcode_server_admissions_total{instance="d", result="error"}', values: '0+1x60'}
    promql_expr_test:
      # When each began to fire, in seconds: each does so until the last evaluation, at 150 s. That is as long after its cause as its `for` says.
      - {expr: '155 - 5 * max by (alertname, instance) (count_over_time(ALERTS{alertstate="firing"}[1h]))', eval_time: 2m30s, exp_samples: [
          {labels: '{alertname="netcode-server-down", instance="a"}', value: 50},
          {labels: '{alertname="netcode-file-old"}', value: 80},
          {labels: '{alertname="netcode-server-full", instance="a"}', value: 60},
          {labels: '{alertname="netcode-update-slow", instance="a"}', value: 65},
          {labels: '{alertname="netcode-packets-lost-here", instance="a"}', value: 65},
          {labels: '{alertname="netcode-packets-lost-here", instance="b"}', value: 65},
          {labels: '{alertname="netcode-packets-lost-here", instance="c"}', value: 65},
          {labels: '{alertname="netcode-tokens-refused", instance="a"}', value: 95},
          {labels: '{alertname="netcode-tokens-refused", instance="c"}', value: 95},
          {labels: '{alertname="netcode-redis-unreachable", instance="a"}', value: 40},
          {labels: '{alertname="netcode-redis-unreachable", instance="c"}', value: 5},
          {labels: '{alertname="netcode-sessions-taken-away", instance="a"}', value: 20},
          {labels: '{alertname="netcode-sessions-taken-away", instance="c"}', value: 20},
          {labels: '{alertname="netcode-sessions-taken-away", instance="d"}', value: 20}]}
"""


def test_alerts():
    rules = os.path.join(common.ROOT, "examples/metrics/alerts.yml")
    for name, path in (("fire for what they should, and for nothing else", rules), ("", os.path.join(folder, "wrong.yml"))):
        if not name:
            with open(rules) as file, open(path, "w") as wrong:
                wrong.write(file.read().replace('up{job="netcode"} == 0', 'up{job="netcode"} == 2'))
        test = os.path.join(folder, "alerts_test.yml")
        with open(test, "w") as file:
            file.write(ALERT_TESTS % path)
        result = subprocess.run(["promtool", "test", "rules", test], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if name:
            check("the eight alerts " + name, result.returncode == 0, result.stdout.decode())
        else:
            check("an alert that never fires is noticed", result.returncode != 0)
    result = subprocess.run(["promtool", "check", "config", "examples/metrics/prometheus.yml"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("promtool check config: prometheus.yml, and alerts.yml with it", result.returncode == 0, result.stdout.decode())


def test_shipped(metrics):
    """prometheus.yml and alerts.yml as they are, but for the server's port and the patience: one server runs, so no alert fires."""
    texts = {}
    for name in ("prometheus.yml", "alerts.yml"):
        with open(os.path.join(common.ROOT, "examples/metrics", name)) as file:
            texts[name] = file.read()
    with open(os.path.join(folder, "shipped-alerts.yml"), "w") as file:
        file.write(texts["alerts.yml"].replace("for: 15s", "for: 1s"))
    config = texts["prometheus.yml"].replace("127.0.0.1:9101", metrics).replace("- alerts.yml", "- shipped-alerts.yml").replace("_interval: 5s", "_interval: 1s")
    prometheus = Prometheus(None, config, "shipped")
    up = wait_for(lambda: prometheus.query("sum(up)") == [({}, 1.0)])
    check("prometheus.yml as shipped scrapes the server at port 9101", up, prometheus.query("up"))
    wait_for(lambda: prometheus.query("min(count_over_time(up[20s])) >= 5"))
    # One scrape that came too late is over at the next.
    quiet = wait_for(lambda: prometheus.query('ALERTS{severity="page"} or up == 0') == [])
    check("and while that one runs no alert fires", quiet, prometheus.query("ALERTS or up"))
    stop(prometheus.process)


# ---- examples/server.c ----

def build_server_full():
    libraries = common.sodium() + common.words("pkg-config", "--cflags", "--libs", "libmicrohttpd", "libcurl", "libcjson", "hiredis") + ["-pthread"]
    return common.build("server-full", "examples/server.c", libraries, ["-DSERVER_FULL"])


def build_client():
    return common.build("client", "examples/client.c", common.sodium())


def start_server_full():
    """The dedicated server with its metrics, a throwaway key and its token beside it."""
    own = os.path.join(folder, "server")
    os.mkdir(own)
    process = start([build_server_full(), "--address", "127.0.0.1:0", "--metrics", "0", "--seconds", "1000"], "server.log", cwd=own)
    return process, own


def metrics_url_of(log):
    found = wait_for(lambda: re.search(r"(?:http://)?(127\.0\.0\.1:\d+)/metrics", text_of(log)) or
                     re.search(r"metrics[^\n]*?(127\.0\.0\.1:\d+)", text_of(log)))
    return "http://%s/metrics" % found.group(1) if found else None


def play_server(own):
    wait_for(lambda: os.path.exists(os.path.join(own, "demo.token")))
    return start([build_client(), "--count", "0", "--seconds", "1000", "--rate", "100"], "plain_client.log", cwd=own)


def test_servers():
    # Everything that compiles comes first: no game waits for it.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda build: build(), (build_server_full, common.build_serve, common.build_record, build_client)))
    file_path = os.path.join(folder, "serve.prom")
    serve, address, metrics = common.start_serve("--metrics-file", file_path)
    url = "http://%s/metrics" % metrics
    full = start_server_full()
    full_url = metrics_url_of("server.log")
    if not check("examples/server.c says where its metrics are", full_url, text_of("server.log")):
        return
    targets = [metrics, full_url.split("/")[2]]
    prometheus = Prometheus(targets)
    reader = Reader(file_path)
    reader.start()
    clients = play(address, 4) + [play_server(full[1])]

    test_words(address)
    test_http(url)
    text = fetch(url)[2]
    test_promtool("a server with messages under traffic", text)
    test_promtool_can_fail(text)
    test_crowd(url, file_path)
    test_shipped(metrics)

    check("Prometheus scrapes %d servers" % len(targets), wait_for(lambda: prometheus.query("sum(up)") == [({}, float(len(targets)))]), prometheus.query("up"))
    wait_for(lambda: prometheus.query("min(count_over_time(up[20s])) >= 6"))
    wait_for(lambda: prometheus.query('sum(rate(netcode_messages_packets_sent_total[10s])) > 0'))
    used = test_dashboard(prometheus)
    check("every metric that the dashboard asks for is one that servers print", not [name for name in used if name not in text], used)

    check("all clients played to their end", not any([stop(process, common.signal.SIGINT) for process in clients]), [(process.returncode, text_of("client%d.csv" % i)[-300:]) for i, process in enumerate(clients[:-1])])
    with open(os.path.join(folder, "client.prom")) as file:
        test_promtool("a client's own counters", file.read())
    test_agreement("serve", serve, "serve.log", url)
    test_scraped(prometheus, metrics, url)
    test_promtool("examples/server.c under traffic", fetch(full_url)[2])
    test_agreement("examples/server.c", full[0], "server.log", full_url)
    check("examples/server.c ends well", stop(full[0], common.signal.SIGINT) == 0, text_of("server.log")[-600:])
    check("serve ends well", stop(serve) == 0, text_of("serve.log"))
    reader.stopping = True
    reader.join()
    with open(file_path) as file:
        last = file.read()
    wrong, pairs = differences(last_stats("serve.log"), samples_of(last))
    check("its last .prom file agrees with its last line", pairs >= 6 and not wrong, wrong)
    test_promtool("the .prom file", last)
    check("the .prom file was whole in each of %d reads of %d texts" % (reader.reads, len(reader.clocks)), reader.reads > 100 and len(reader.clocks) > 5 and not reader.halves)
    # By the texts' own clock: the median, since processes stand still. The last one comes when the server ends, however soon that is.
    clocks = sorted(reader.clocks)[:-1]
    gaps = sorted(later - earlier for earlier, later in zip(clocks, clocks[1:]))
    check("it is written twice a second", gaps and 0.25 < gaps[len(gaps) // 2] < 0.75, gaps)
    down = wait_for(lambda: prometheus.query('up{instance="%s"} == 0' % metrics))
    check("Prometheus says that a server which has ended is down", down and not isinstance(down, str), down)
    stop(prometheus.process)


def main():
    parts = {"text": run_text_tests, "fields": test_fields, "alerts": test_alerts, "servers": test_servers}
    common.refuse_unknown(sys.argv[1:], parts)
    common.need("prometheus:promtool", "libmicrohttpd-dev:pc=libmicrohttpd", "libcurl4-openssl-dev:pc=libcurl", "libcjson-dev:pc=libcjson", "libhiredis-dev:pc=hiredis", "pkg-config:pkg-config", "g++:c++",
                "locales:/usr/share/i18n/locales/tr_TR", "libc-bin:localedef")
    for name, part in parts.items():
        if len(sys.argv) < 2 or any(word in name for word in sys.argv[1:]):
            part()
    common.finish("metrics")


main()
