# netcode.h: one command for each wish. `make help` lists those that people need, `make help-all` all.

CC ?= cc
CXX ?= c++
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= python3
# make test T=replay runs the tests whose names contain `replay`; SEED=7 reruns the random ones from that seed.
T ?=
SEED ?=
# make soak SECONDS=5 and make bench ROUNDS=201 set how long these run.
SECONDS ?= 60
ROUNDS ?= 101

# make gives CC the value `cc` and CXX `g++` by itself; the environment and the command line win.
ifeq ($(origin CXX),default)
CXX = c++
endif
# make V=1 shows the compilers' commands.
Q = $(if $(V),,@echo "build $@"; )

export CC CXX PYTHON
export PYTHONDONTWRITEBYTECODE = 1

# Read when first used: `make demo` and `make test` may have installed the library in between.
SODIUM_CFLAGS = $(shell sh tests/tools/deps.sh --cflags)
SODIUM_LIBS = $(shell sh tests/tools/deps.sh --libs)
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wundef -Wdouble-promotion
COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS) -I. $(SODIUM_CFLAGS)
LINK = $(LDFLAGS) $(SODIUM_LIBS) -lm

# The nonce ledger watches libsodium's calls from outside, with the linker's help. Apple's linker can not do that.
ifeq ($(shell uname -s),Darwin)
WRAP = -DTEST_NO_WRAP
MALLOC_WRAP = -DMALLOC_NO_WRAP
else
WRAP = $(foreach a,chacha20poly1305 xchacha20poly1305,$(foreach f,encrypt encrypt_detached decrypt decrypt_detached,\
	-Wl,--wrap=crypto_aead_$(a)_ietf_$(f)))
MALLOC_WRAP = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
endif

VERSION = $(shell sed -n 's/^\#define NETCODE_VERSION_FULL "\(.*\)"/\1/p' netcode.h)
# gcov reads only what its own compiler wrote.
COVERAGE_CC ?= gcc
GCOV ?= gcov
CLANG_FORMAT ?= clang-format
C_FILES = netcode.h $(wildcard examples/*.c examples/*.h examples/*/*.c examples/*/*.h \
	examples/*/*.cpp examples/*/*.hpp tests/*.c tests/*.h tests/*.cpp tests/*/*.c tests/*/*.h tests/*/*.cpp)

EXAMPLES = client_server server client listen_server token pong
TEST_SOURCES = netcode.h $(wildcard tests/*.c tests/*.h tests/unit/* tests/story/* tests/torture/*)
TEST_ARGUMENTS = $(T) $(if $(SEED),--seed $(SEED))
TEST_RUN = sh tests/tools/loopback.sh

# Each program compiles the whole header: `make demo` and `make test` use all cores for that, unless -j says how many.
PARALLEL = $(MAKE) -s --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))

.DELETE_ON_ERROR:

all: $(EXAMPLES:%=build/%)

# `make help`: what people need. `make help-all`: that and the rest.
help: help-few
	@echo "make help-all   all the other targets: sanitizers, fuzzing, proofs, simulations, measurements, platforms"

help-few:
	@echo "make            the examples, in build/"
	@echo "make demo       a real server and real clients on loopback tell their story: 11 s, and before that it builds"
	@echo "                (under 40 s in all from a clone, on two cores)"
	@echo "make demo-full  the whole architecture: TLS, two backends, Redis, three servers, two dozen clients; installs what it"
	@echo "                needs; 45 s, under 2 min with building"
	@echo "make arena      a game to copy: 64 bots for a minute on bad networks, a window, the tutorial; installs what it needs (6 min)"
	@echo "make games      bots play Pong over messages, directly and through a lossy relay (under 60 s)"
	@echo "make test       all tests (40 s from a clone, on two cores; 30 s when built);"
	@echo "                T=replay for those with that name, SEED=7 to rerun a random one"
	@echo "make attacks    the table of attacks and faults, each row with its outcome"
	@echo "make bench      what packets cost, as ratios to libsodium alone, each with its limit; fails beyond (ROUNDS=101)"
	@echo "make lint       format, clang-tidy, cppcheck, and the rules of the house; make format lays out every C file"
	@echo "make docs       all texts as pages with a search, in build/docs (mkdocs, doxygen)"
	@echo "make install    netcode.h, netcode.pc, CMake files and netcode-token; PREFIX=$(PREFIX), DESTDIR; make uninstall"
	@echo "make clean      removes build/"

help-all: help-few
	@echo "make test-all   all tests, and those of backends, metrics, captures, bindings and packages; installs what they need, or names it"
	@echo "make test-matchmaking    who plays with whom (examples/backend/matchmaking.h): rows, and random players; SEED=2 for others"
	@echo "make nightly    every check there is, whole, most of a day; it resumes where it stopped, and writes tests/NIGHTLY.md; NIGHTLY=\"prove torture\""
	@echo "                for steps with such names, NIGHTLY=--list for all. What every commit passes is in .ci/run"
	@echo "make peer       the library against a client and a server written in Python from the standard alone"
	@echo "make conform    grades an implementation of netcode 1.02 from the outside, ours or PEER=\"driver command\" (11 s); CONFORM=\"--role client\""
	@echo "make conform-plants                 broken variants of the library, each of which the checks that it breaks must fail (10 min); the kit among peers that"
	@echo "                crash, hang and print garbage"
	@echo "make test-release, san, coverage    the tests built with -DNDEBUG -O2, with sanitizers, with coverage (MC/DC too)"
	@echo "make test-seeds all tests from 50 other seeds (a quarter of an hour); SEEDS=5 for fewer"
	@echo "make index      writes the index of rooms and public functions at the top of netcode.h"
	@echo "make compile    every compiler, language version and build switch, warnings as errors"
	@echo "make size       lines, bytes and compile time against their limits"
	@echo "make bench-sockets                  what packets cost over real sockets, and a server under a flood (Linux)"
	@echo "make bench-messages                 what messages cost for a packet, a message and a connection"
	@echo "make bench-plot                     the picture of make bench: build/bench.svg (gnuplot)"
	@echo "make fairness   what players hear while one attacker floods their server, over 1,152 settings (3 min); FAIRNESS=--short, --usual, --real over loopback"
	@echo "make network    how messages fare on bad paths, beside a game, each other and TCP, in virtual time, and the peers; NETWORK=\"--verbose cells\""
	@echo "make network-peers                  ENet, TCP and quoted figures beside ours: a table and pictures (20 s); PEERS=--whole"
	@echo "make instructions                   what a refused datagram costs, counted by valgrind"
	@echo "make threads    servers on four threads share a port, under the thread sanitizer (Linux)"
	@echo "make load       100 clients of a load generator against a match server; SECONDS=60"
	@echo "make gates      server, relay and up to 100 clients as real processes against the limits of messages (16 min; GATES=words)"
	@echo "make arena-plants                   a planted fault for each check of the arena's tests (2.5 min)"
	@echo "make gates-plants                   a planted fault for each gate"
	@echo "make roam       clients whose address changes: 1,300 NAT rebinds, a NAT of the kernel, interfaces, 1,000 behind a NAT that restarts, in"
	@echo "                network namespaces (root; installs nftables and conntrack; under 2 min, and whole); ROAM=\"kernel restart\" for parts of it"
	@echo "make latency    how long ordered messages take at 0 to 10 % loss, against a 200 ms timer and TCP, as a picture; LATENCY=--short"
	@echo "make latency-plants                 planted faults that make latency must find"
	@echo "make web        netcode.h as WebAssembly, and pages in Chromium and Firefox that play over the gateway on real servers; installs what it"
	@echo "                needs (8 min from a clone); WEB=\"node gateway\" for parts of it, SECONDS_LONG=600 for a long run of a page"
	@echo "make cpp        the C++ header: C++11 to C++20, with and without exceptions and RTTI, what must not compile, the example (1.5 min)"
	@echo "make cpp-plants                     planted faults that make cpp must find"
	@echo "make engine     Chocolate Doom from Debian's source, as it is and over netcode.h, played side by side; installs what it"
	@echo "                needs (7 min from a clone, 45 s when built)"
	@echo "make csharp     the C# binding: its native library for Linux and Windows with libsodium inside, and its tests under Mono, against C;"
	@echo "                installs what it needs (27 s when built); CSHARP=\"layout arena\" for tests with such names"
	@echo "make admission  one session for each player and one use for each token over Redis: four servers, 200 players, 10,000 connects, while"
	@echo "                servers and Redis are killed, paused, slow, full and cut off; installs what it needs (under 4 min);"
	@echo "                ADMISSION=\"race policies\" for parts of it, ADMISSION=--whole for a longer storm, --measure for what it costs Redis"
	@echo "make admission-plants               planted faults that make admission must find"
	@echo "make csharp-plants                  planted faults that make csharp must find"
	@echo "make godot      the plug-in for Godot 3: godot3-server processes, C clients and a hostile one, the demo's picture; installs what it needs"
	@echo "                (under 60 s when that is there); GODOT=\"unit engine picture\" for parts of it"
	@echo "make godot4     the same steps in Godot 4 and a newer Godot 3, fetched from Debian unstable and not installed (1 min, the first time 2; 700 MB"
	@echo "                in build/)"
	@echo "make godot-demo                     the demo project with the plug-in, in build/godot/demo; then: godot3 --path build/godot/demo"
	@echo "make soak       64 clients at 60 Hz; SECONDS=60"
	@echo "make defences   takes each defence out of a copy: a test must notice"
	@echo "make sim        servers, clients and an adversary in simulated time; SEED=7 DAYS=1"
	@echo "make fuzz       every reader, and whole sessions, fed by libFuzzer; FUZZ_SECONDS=60 for each target"
	@echo "make torture    every allocation and every call of the socket fails in turn, in every story"
	@echo "make torture-plain                  the same without the Linux extras"
	@echo "make refusals   each kind of call of the socket is refused with 43 errors, for good and for a while, with and without the Linux extras (2 min)"
	@echo "make prove      CBMC proves the readers, the writers, the window and the tables for all inputs"
	@echo "make model      Spin searches every order of events of handshakes and of roaming with an adversary in them"
	@echo "make erase      looks for keys in memory that was given back"
	@echo "make ct         valgrind looks for branches that depend on a secret"
	@echo "make msan       the tests under the memory sanitizer, with a libsodium that is built for it"
	@echo "make platforms  the tests on other processors, C libraries and systems, as far as they can be had here"
	@echo "make mutate     changes netcode.h in a thousand places: a test must notice; MUTANTS=100 for a sample"
	@echo "make readme     compiles or runs every block of code in README.md"
	@echo "make release    tarball, single header, SBOM and hashes of what is committed, in build/release; SIGN_KEY=file signs them with minisign"
	@echo "make release-prepare                writes the next version, its hash and its changelog into the tree, for the commit before make release"
	@echo "make release-check                  reprotest builds it twice: another path, user, time, zone, language, umask, order of files (root; 2 min)"
	@echo "make dist-check                     builds, tests, installs and uses the tarball in a new Debian without git (root, debootstrap; minutes)"
	@echo "make abi        nothing public of the last release has gone or changed, and which version number what is new asks for (abidiff)"
	@echo "make fresh      README.md's commands in a new Debian that holds git, make and gcc only (root, debootstrap)"
	@echo "make newcomer   the same for the path from the clone to make demo-full"
	@echo "make plots      round trip, jitter, loss and throughput of a client on a good and on a bad network, as a picture (gnuplot)"

# Only these may install libsodium (DEPS=no forbids it). Everything else says what is missing.
deps:
	@$(if $(filter demo test arena web cpp csharp build/game,$(MAKECMDGOALS)),,DEPS=no) sh tests/tools/deps.sh

build:
	@mkdir -p build

build/%: examples/%.c $(wildcard examples/*.h) netcode.h | deps build
	$(Q)$(COMPILE) $< $(LINK) -o $@

build/server: examples/metrics/metrics.h
build/token: examples/wireshark/capture.h

build/relay: tests/tools/relay.c | build
	$(Q)$(CC) -std=c99 $(CPPFLAGS) $(CFLAGS) $(WARNINGS) $< -o $@

# What stands around netcode.h has a folder of its own under examples/, and asks for the packages that it needs.
NEED = sh tests/tools/need.sh pkg-config:pkg-config
HTTP_NEEDS = libmicrohttpd-dev:pc=libmicrohttpd libcjson-dev:pc=libcjson libcurl4-openssl-dev:pc=libcurl

build/backend: examples/backend/backend.c $(wildcard examples/*.h examples/backend/*.h) netcode.h | deps build
	@$(NEED) $(HTTP_NEEDS)
	$(Q)$(COMPILE) $< $(LINK) $$(pkg-config --cflags --libs libmicrohttpd libcjson) -o $@

build/backend-full: examples/backend/backend.c $(wildcard examples/*.h examples/backend/*.h examples/fleet/*.h) netcode.h | deps build
	@$(NEED) $(HTTP_NEEDS) libhiredis-dev:pc=hiredis libjansson-dev:pc=jansson libssl-dev:pc=libcrypto libcjose-dev:pc=cjose
	$(Q)$(COMPILE) -DBACKEND_FULL $< $(LINK) $$(pkg-config --cflags --libs libmicrohttpd libcjson libcurl hiredis cjose) -o $@

# Who plays with whom, by itself: rows, and random players from a seed (SEED=1, ROUNDS=60).
build/matchmaking: tests/backend/matchmaking.c examples/backend/matchmaking.h | build
	$(Q)$(CC) -std=c99 $(CPPFLAGS) $(CFLAGS) $(WARNINGS) $< -o $@

test-matchmaking: build/matchmaking
	./build/matchmaking $(or $(SEED),1) $(or $(ROUNDS),60)

build/client_http: examples/backend/client_http.c $(wildcard examples/*.h examples/backend/*.h) netcode.h | deps build
	@$(NEED) $(HTTP_NEEDS)
	$(Q)$(COMPILE) $< $(LINK) $$(pkg-config --cflags --libs libcurl libcjson) -o $@

build/server-full: examples/server.c $(wildcard examples/*.h examples/fleet/*.h examples/metrics/*.h) netcode.h | deps build
	@$(NEED) $(HTTP_NEEDS) libhiredis-dev:pc=hiredis
	$(Q)$(COMPILE) -DSERVER_FULL $< $(LINK) $$(pkg-config --cflags --libs libcurl libmicrohttpd libcjson hiredis) -pthread -o $@

build/metrics-serve: examples/metrics/serve.c $(wildcard examples/*.h examples/metrics/*.h) netcode.h | deps build
	@$(NEED) $(HTTP_NEEDS)
	$(Q)$(COMPILE) $< $(LINK) $$(pkg-config --cflags --libs libmicrohttpd) -pthread -o $@

build/metrics-record: examples/metrics/record.c $(wildcard examples/*.h examples/metrics/*.h) netcode.h | deps build
	$(Q)$(COMPILE) $< $(LINK) -o $@

build/metrics-top: examples/metrics/top.c | build
	@$(NEED) $(HTTP_NEEDS) libncurses-dev:pc=ncursesw
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS) $< $$(pkg-config --cflags --libs libcurl ncursesw) -lm -o $@

build/libnetcode.so: netcode.h | deps build
	$(Q)$(COMPILE) -shared -fPIC -DNETCODE_IMPLEMENTATION -DNETCODE_MESSAGES -x c $< -x none $(LINK) -o $@

plots: build/metrics-serve build/metrics-record build/relay
	sh examples/metrics/plots.sh

docs:
	sh examples/docs/docs.sh

demo-full: | build
	@sh tests/tools/need.sh libsodium-dev:pc=libsodium python3:python3 pkg-config:pkg-config libc6-dev:/usr/include/stdio.h
	$(PYTHON) examples/demo-full/demo_full.py

# The arena: a game in C, its server, its bots, and its client in a window.
ARENA_HEADERS = $(wildcard examples/arena/*.h examples/*.h examples/backend/*.h) netcode.h

build/arena-server: examples/arena/server.c $(ARENA_HEADERS) | deps build
	$(Q)$(COMPILE) -Iexamples $< $(LINK) -o $@

build/arena-bots: examples/arena/bots.c $(ARENA_HEADERS) | deps build
	$(Q)$(COMPILE) -Iexamples $< $(LINK) -o $@

build/arena-client: examples/arena/client.c $(ARENA_HEADERS) | deps build
	@$(NEED) libsdl2-dev:pc=sdl2 $(HTTP_NEEDS)
	$(Q)$(COMPILE) -Iexamples -DARENA_LOGIN $< $$(pkg-config --cflags sdl2 libcurl libcjson) -lSDL2_test $$(pkg-config --libs sdl2 libcurl libcjson) $(LINK) -o $@

# ARENA="crowd window" for the parts whose titles hold one of these words, ARENA_SECONDS=10 for a shorter minute.
arena: build/arena-server build/arena-bots build/arena-client build/relay build/arena-unit build/arena-unit-san
	@sh tests/tools/need.sh python3:python3 xvfb:Xvfb util-linux:unshare iproute2:ip clang:clang \
		"libclang-rt-dev:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a"
	$(PYTHON) tests/arena/run.py $(ARENA)

ARENA_UNIT = $(ARENA_HEADERS) examples/arena/server.c tests/test.h $(wildcard tests/arena/*.c tests/arena/*.h)

build/arena-unit: tests/arena/unit.c $(ARENA_UNIT) | deps build
	$(Q)$(COMPILE) -Iexamples -std=c99 -O1 $< $(LINK) -o $@

build/arena-unit-san: tests/arena/unit.c $(ARENA_UNIT) | deps build
	$(Q)$(COMPILE) -Iexamples -std=c99 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer $< $(LINK) -o $@

# A planted fault for each check of the arena's tests.
arena-plants: | deps build
	$(PYTHON) tests/arena/faults.py

# Godot: the plug-in for Godot 3, its demo project, and their tests. The engine's headers come from Debian's source package.
GODOT_HEADERS = $(wildcard examples/godot/*.h) netcode.h
# libsodium inside, so that a player's machine needs nothing; where there is no static one, beside it.
GODOT_SODIUM = $(shell printf 'int main( void ) { return 0; }' | $(CC) -x c - -l:libsodium.a -o /dev/null 2>/dev/null \
	&& echo -l:libsodium.a -Wl,--exclude-libs,ALL || echo $(SODIUM_LIBS))

build/godot/libnetcode_godot.so: examples/godot/netcode_godot.c $(GODOT_HEADERS) examples/godot/headers.sh | deps build
	@sh examples/godot/headers.sh
	$(Q)$(COMPILE) -std=c99 -DNDEBUG -fPIC -shared -fvisibility=hidden -Iexamples/godot -isystem build/godot/include $< \
		$(LDFLAGS) $(GODOT_SODIUM) -lm -o $@

build/godot/libnetcode_godot4.so: examples/godot/netcode_godot4.c $(GODOT_HEADERS) examples/godot/headers4.sh | deps build
	@sh examples/godot/headers4.sh
	$(Q)$(COMPILE) -std=c99 -DNDEBUG -fPIC -shared -fvisibility=hidden -Iexamples/godot -isystem build/godot/include4 $< \
		$(LDFLAGS) $(GODOT_SODIUM) -lm -o $@

build/godot/client: tests/godot/client.c tests/godot/client.h $(GODOT_HEADERS) | deps build
	@mkdir -p build/godot
	$(Q)$(COMPILE) -std=c99 -Iexamples/godot $< $(LINK) -o $@

build/godot/unit: tests/godot/unit.c $(wildcard tests/godot/*.[ch]) $(GODOT_HEADERS) tests/test.h | deps build
	@mkdir -p build/godot
	$(Q)$(COMPILE) -std=c99 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Iexamples/godot $< $(LINK) -o $@

# The demo with the plug-in, in build/godot/demo.
godot-demo: | build
	@sh tests/tools/deps.sh && sh tests/tools/need.sh libsodium-dev:pc=libsodium pkg-config:pkg-config libc6-dev:/usr/include/stdio.h \
		python3:python3 godot3:godot3 godot3-server:godot3-server
	@$(MAKE) -s --no-print-directory build/godot/libnetcode_godot.so
	@rm -rf build/godot/demo && cp -R examples/godot/demo build/godot/demo && cp build/godot/libnetcode_godot.so build/godot/demo/

# GODOT="unit engine" for some of: unit engine picture.
godot: | build
	@sh tests/tools/deps.sh && sh tests/tools/need.sh libsodium-dev:pc=libsodium pkg-config:pkg-config libc6-dev:/usr/include/stdio.h \
		python3:python3 godot3-server:godot3-server godot3:godot3 xvfb:Xvfb libgl1-mesa-dri:/usr/lib/*/dri/swrast_dri.so \
		util-linux:unshare iproute2:ip
	@$(MAKE) -s --no-print-directory build/godot/libnetcode_godot.so build/godot/client build/godot/unit build/relay
	$(PYTHON) tests/godot/run.py $(GODOT)

# The same steps in Godot 4, and in a newer Godot 3: Debian unstable's are fetched and run from build/.
godot4: | build
	@sh tests/tools/deps.sh && sh tests/tools/need.sh libsodium-dev:pc=libsodium pkg-config:pkg-config libc6-dev:/usr/include/stdio.h \
		python3:python3 util-linux:unshare iproute2:ip
	@$(MAKE) -s --no-print-directory build/godot/libnetcode_godot.so build/godot/libnetcode_godot4.so build/godot/client build/relay
	@sh examples/godot/headers4.sh engine
	GODOT4=$(CURDIR)/build/godot/unstable/godot4 $(PYTHON) tests/godot/run.py engine4
	GODOT3_SERVER=$(CURDIR)/build/godot/unstable/godot3-server $(PYTHON) tests/godot/run.py engine

# Two bots play, directly and over a bad network.
games: build/pong build/relay
	sh tests/tools/games.sh

# GATES="fair queue" for some of them, GATE_SECONDS=10 for shorter runs.
gates: | deps build
	$(PYTHON) tests/gates/gates.py $(GATES)

# Everything each time. ROAM="kernel restart" for the parts whose names hold one of these words.
roam: | deps build
	@sh tests/tools/need.sh iproute2:ip nftables:nft conntrack:conntrack procps:sysctl util-linux:unshare
	$(PYTHON) tests/roam/roam.py $(ROAM)

gates-plants: | deps build
	$(PYTHON) tests/faults/run.py --by gates

# Without network namespaces and /dev/net/tun it says so, and leaves TCP out. LATENCY=--short: 70 s.
latency: | deps build
	$(PYTHON) tests/latency/latency.py $(LATENCY)

latency-plants: | deps build
	$(PYTHON) tests/faults/run.py --by latency

load: build/match_server build/loadgen
	@./build/match_server --slots 100 --measure-clients 100 --seconds $$(( $(SECONDS) + 10 )) & sleep 1; \
	./build/loadgen --clients 100 --seconds $(SECONDS); status=$$?; wait; exit $$status

demo: | deps build
	@+$(PARALLEL) build/server build/client build/token build/demo
	./build/demo

# Unoptimized, unless CFLAGS are given: it compiles in a sixth of the time. test-release optimizes.
build/test: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) $(if $(filter file,$(origin CFLAGS)),-O0) tests/main.c $(WRAP) $(LINK) -o $@

build/test-release: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) -DNDEBUG -O2 tests/main.c $(WRAP) $(LINK) -o $@

build/test-san: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer tests/main.c $(WRAP) $(LINK) -o $@

build/fuzz_replay: $(wildcard tests/fuzz/*.c tests/fuzz/*.h) netcode.h | deps build
	$(Q)$(COMPILE) $(if $(filter file,$(origin CFLAGS)),-O0) tests/fuzz/replay.c $(LINK) -o $@

# All inputs that fuzzing has kept run too, unless a test is asked for by name.
test: | deps build
	@+$(PARALLEL) build/test build/fuzz_replay
	@$(if $(T),,./build/fuzz_replay tests/fuzz/corpus)
	@$(TEST_RUN) ./build/test $(TEST_ARGUMENTS)

# The random tests from many seeds; each failing line names the seed that reruns it. SEEDS=50 is a quarter of an hour.
SEEDS ?= 50
test-seeds: build/test
	@for seed in $$(seq 2 $$(($(SEEDS) + 1))); do $(TEST_RUN) ./build/test $(T) --seed $$seed >build/seed.log || { grep -A 20 '^FAILED' build/seed.log; exit 1; }; \
		echo "seed $$seed: $$(tail -n 1 build/seed.log)"; done

test-release: build/test-release
	@$(TEST_RUN) ./build/test-release $(TEST_ARGUMENTS)

san: build/test-san
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 $(TEST_RUN) ./build/test-san $(TEST_ARGUMENTS)

# clang 19 counts lines, branches and MC/DC; where it is missing (status 3), gcov counts lines and branches, unless SKIPS=no.
coverage: $(TEST_SOURCES) | deps build
	@status=0; sh tests/tools/mcdc.sh build/mcdc || status=$$?; if [ $$status = 3 ] && [ "$${SKIPS:-yes}" = yes ]; then $(MAKE) coverage-lines; \
	else $(PYTHON) tests/tools/coverage.py build/mcdc && [ $$status = 0 ]; fi

# One translation unit holds the library and its tests, so gcov sees each line of netcode.h that they run.
coverage-lines: $(TEST_SOURCES) | deps build
	@rm -rf build/coverage && mkdir -p build/coverage
	@cd build/coverage && $(COVERAGE_CC) $(CPPFLAGS) -g -O0 --coverage -I../.. $(SODIUM_CFLAGS) -c ../../tests/main.c
	$(Q)$(COVERAGE_CC) --coverage build/coverage/main.o $(WRAP) $(LINK) -o build/coverage/test
	@$(TEST_RUN) ./build/coverage/test; echo $$? >build/coverage/status
	@cd build/coverage && $(GCOV) -b -c main.o >gcov.log
	@$(PYTHON) tests/tools/coverage.py build/coverage/netcode.h.gcov && [ "$$(cat build/coverage/status)" = 0 ]

build/subject: tests/tools/subject.c netcode.h | deps build
	$(Q)$(COMPILE) $< $(LINK) -o $@

# What stands around netcode.h needs more than libsodium: each test asks for its packages. ALL="backend metrics" for some of them.
test-all: test all
	sh tests/all/run.sh $(ALL)

# NIGHTLY="prove model" for the steps whose names hold one of these words, NIGHTLY=--compare for those whose files have changed since they ran.
nightly:
	@$(PYTHON) tests/tools/nightly.py $(NIGHTLY)

peer: build/subject
	$(TEST_RUN) $(PYTHON) tests/peer.py --subject build/subject

build/conform-driver: tests/conform/driver.c netcode.h | deps build
	$(Q)$(COMPILE) $< $(LINK) -o $@

# PEER="command of a driver" grades another implementation, CONFORM="--role client -k replay" a part. Our own must pass every SHOULD, too.
conform: | build
	@sh tests/tools/deps.sh && sh tests/tools/need.sh python3:python3 libc6-dev:/usr/include/stdio.h
	@$(if $(PEER),,$(MAKE) -s --no-print-directory build/conform-driver)
	@$(PYTHON) tests/conform/conform.py --peer "$(or $(PEER),build/conform-driver)" $(if $(PEER),,--strict) $(CONFORM)

# CONFORM="S-REQ keep_alive" for the variants whose name or checks hold one of these words.
conform-plants: | build
	@sh tests/tools/deps.sh && sh tests/tools/need.sh python3:python3 libc6-dev:/usr/include/stdio.h
	@$(MAKE) -s --no-print-directory build/conform-driver
	$(if $(CONFORM),,$(PYTHON) tests/conform/selftest.py build/conform-driver)
	$(PYTHON) tests/faults/run.py --by conform $(CONFORM)

compile: | deps build
	sh tests/compile/run.sh $(T)

lint: | deps build
	sh tests/lint/run.sh

# The list of rooms and public functions in netcode.h.
index:
	$(PYTHON) tests/lint/index.py --write

size: | deps build
	$(PYTHON) tests/tools/size.py

readme: | deps build
	$(PYTHON) tests/lint/readme.py

format:
	$(CLANG_FORMAT) -i $(C_FILES)

build/bench: tests/bench.c tests/allocations.h netcode.h | deps build
	$(Q)$(COMPILE) -DNDEBUG $< $(MALLOC_WRAP) $(LINK) -o $@

bench: build/bench
	./build/bench $(ROUNDS) build/bench.json build/bench.dat

build/bench_messages: tests/bench_messages.c netcode.h | deps build
	$(Q)$(COMPILE) -DNDEBUG $< $(LINK) -o $@

bench-messages: build/bench_messages
	./build/bench_messages $(ROUNDS)

bench-plot:
	[ -e build/bench.dat ] || BENCH_PRINT_ONLY=1 $(MAKE) bench
	gnuplot -c tests/bench.gp build/bench.dat build/bench.svg

# The library twice in one program: with its Linux extras, and without.
build/bench_sockets: tests/bench_sockets.c netcode.h | deps build
	$(Q)$(COMPILE) -DNDEBUG -DBENCH_PLAIN -c $< -o build/bench_sockets_plain.o && \
		$(COMPILE) -DNDEBUG $< build/bench_sockets_plain.o $(LINK) -o $@

bench-sockets: build/bench_sockets
	./build/bench_sockets $(ROUNDS) build/bench_sockets.json

build/fairness: tests/fairness.c tests/fairness.h netcode.h | deps build
	$(Q)$(COMPILE) -DNDEBUG $< $(LINK) -o $@

NETWORK_HEADERS = $(wildcard tests/network/*.h) netcode.h

# A file of an older tree may have the folder's name.
build/network/%: tests/network/%.c $(NETWORK_HEADERS) | deps build
	@[ -d build/network ] || rm -f build/network; mkdir -p build/network
	$(Q)$(COMPILE) -DNDEBUG $< $(if $(filter enet,$*),$$(pkg-config --cflags --libs libenet)) $(LINK) -o $@

build/network/latency: tests/latency/latency.c netcode.h | deps build
	@[ -d build/network ] || rm -f build/network; mkdir -p build/network
	$(Q)$(COMPILE) $< $(LINK) -o $@

build/network/relay: build/relay build/network/latency
	@cp build/relay $@

# NETWORK=--short for three seeds instead of ten, NETWORK="--seeds 1 --verbose cells" for a part; both without the peers.
network: build/network/network $(if $(NETWORK),,build/network/ours build/network/latency build/network/relay)
	@status=0; ./build/network/network $(NETWORK) || status=1; \
	$(if $(NETWORK),,$(MAKE) --no-print-directory network-peers || status=1;) exit $$status

# PEERS=--whole: all cells, three seeds, TCP for longer. ENet is left out where libenet-dev is missing; where SKIPS=no that fails.
network-peers: build/network/ours build/network/latency build/network/relay
	@if pkg-config --exists libenet 2>/dev/null; then $(MAKE) --no-print-directory build/network/enet; else rm -f build/network/enet; fi
	@$(PYTHON) tests/network/peers.py $(PEERS)

# FAIRNESS=--short: a tenth of the cells.
fairness: build/fairness
	./build/fairness $(FAIRNESS)

instructions: | deps build
	CFLAGS="$(CFLAGS)" sh tests/tools/instructions.sh

# Where the thread sanitizer can not be linked, or not run, that is said and nothing fails, unless SKIPS=no.
threads: | deps build
	@echo 'int main( void ) { return 0; }' >build/tsan.c
	@if $(CC) -fsanitize=thread build/tsan.c -o build/tsan >build/threads.log 2>&1 && ./build/tsan >>build/threads.log 2>&1; then \
		$(COMPILE) -fsanitize=thread -pthread tests/threads.c $(LINK) -o build/threads && ./build/threads $(THREADS_SECONDS); \
	else tail -1 build/threads.log; . tests/tools/skip.sh; \
		skip threads "$(CC) -fsanitize=thread can not be linked or run here"; fi

build/soak: tests/soak.c tests/allocations.h netcode.h | deps build
	$(Q)$(COMPILE) $< $(MALLOC_WRAP) $(LINK) -o $@

cpp: | deps build
	@sh tests/tools/need.sh g++:g++ clang:clang++ binutils:ld libc6-dev:/usr/include/stdio.h
	sh tests/cpp/run.sh

build/game: examples/cpp/game.cpp examples/cpp/netcode.hpp netcode.h | deps build
	@sh tests/tools/need.sh g++:g++
	$(Q)$(CXX) -std=c++11 $(CPPFLAGS) $(CFLAGS) $(WARNINGS) -I. -Iexamples/cpp $(SODIUM_CFLAGS) $< $(LINK) -o $@

# A planted fault for each thing that these tests look for.
cpp-plants: | deps build
	$(PYTHON) tests/cpp/plants.py

soak: build/soak
	./build/soak $(SECONDS)

defences: | deps build
	sh tests/attacks/run.sh

attacks: build/test
	$(TEST_RUN) $(PYTHON) tests/attacks/table.py

build/sim: tests/sim.c $(wildcard tests/sim/*.h) netcode.h | deps build
	$(Q)$(COMPILE) $< $(WRAP) $(LINK) -o $@

sim: build/sim
	./build/sim $(if $(SEED),--seed $(SEED)) $(if $(DAYS),--days $(DAYS))

build/torture: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all tests/torture.c $(WRAP) $(LINK) -o $@

# The same without the Linux extras: its stories alone, which is where the other calls are.
build/torture-plain: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DTORTURE_STORIES_ONLY -DNETCODE_NO_LINUX_EXTRAS tests/torture.c $(LINK) -o $@

# The sweep of the tests beside the two of the stories; ./build/torture runs them one after another, ./build/torture 2 one of them.
torture: build/torture
	@$(TEST_RUN) sh -c './build/torture 3 >build/torture.3 2>&1 & ./build/torture 1; a=$$?; ./build/torture 2; b=$$?; \
	wait $$!; c=$$?; cat build/torture.3; exit $$((a + b + c))'

torture-plain: build/torture-plain
	$(TEST_RUN) ./build/torture-plain

build/torture-stories: $(TEST_SOURCES) | deps build
	$(Q)$(COMPILE) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DTORTURE_STORIES_ONLY tests/torture.c $(LINK) -o $@

refusals: build/torture-stories build/torture-plain
	$(TEST_RUN) ./build/torture-stories 4
	$(TEST_RUN) ./build/torture-plain 4

fuzz: | deps build
	sh tests/fuzz/run.sh $(FUZZ_SECONDS)

prove: | deps build
	sh tests/prove/run.sh

model: | build
	sh tests/model/run.sh

erase: | deps build
	sh tests/erase/run.sh

ct: | deps build
	sh tests/ct/run.sh

# WEB="wasm node gateway browser": some of these.
web: | deps build
	sh tests/web/run.sh $(WEB)

# A real engine's source tree, as it is and with netcode.h in the place of its network file. Its script asks for libsodium itself.
engine: | build
	sh tests/engine/run.sh

# The native library for C#, and the tests of the binding. CSHARP="layout arena" for those with such names.
csharp: | deps build
	sh tests/csharp/run.sh $(CSHARP)

# A planted fault for each thing that these tests look for.
csharp-plants: csharp
	$(PYTHON) tests/csharp/plants.py

# Admission over Redis (examples/fleet/admission.h), with a real Redis.
admission: | deps
	$(PYTHON) tests/all/admission.py $(ADMISSION)

admission-plants: | deps
	$(PYTHON) tests/all/admission.py --plants $(ADMISSION)

msan: | deps build
	sh tests/tools/msan.sh

platforms: | build
	sh tests/platforms/run.sh

mutate: | deps build
	$(PYTHON) tests/mutate/run.py $(MUTANTS)

fresh:
	bash tests/fresh.sh

newcomer:
	bash tests/newcomer.sh

# What a release is made of, in build/release; SIGN_KEY=file signs it with minisign. release-prepare writes what is committed before that.
release:
	@$(PYTHON) tests/release/release.py $(if $(SIGN_KEY),--sign "$(SIGN_KEY)")

release-prepare: abi
	@$(PYTHON) tests/release/release.py prepare

# The public names, types and numbers of the last release, and its symbols, are there as they were.
abi: | build
	@sh tests/tools/need.sh python3:python3 python3-pycparser:/usr/lib/python3/dist-packages/pycparser abigail-tools:abidiff gcc:gcc g++:g++ \
		libc6-dev:/usr/include/stdio.h libsodium-dev:/usr/include/sodium.h
	@$(PYTHON) tests/release/api.py

# The release is built twice by reprotest; the tarball alone is built, tested and used in a new Debian (root). TARBALL=file: that one, as it
# was made by make release; else a snapshot of the commit.
release-check: | build
	sh tests/release/twice.sh

dist-check: | build
	bash tests/release/dist.sh $(TARBALL)

install: build/token
	install -d "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(PREFIX)/lib/pkgconfig" "$(DESTDIR)$(PREFIX)/bin"
	install -m 644 netcode.h "$(DESTDIR)$(PREFIX)/include/netcode.h"
	install -m 755 build/token "$(DESTDIR)$(PREFIX)/bin/netcode-token"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tests/tools/netcode.pc.in >"$(DESTDIR)$(PREFIX)/lib/pkgconfig/netcode.pc"
	chmod 644 "$(DESTDIR)$(PREFIX)/lib/pkgconfig/netcode.pc"
	sh examples/packaging/cmake/install.sh "$(DESTDIR)$(PREFIX)/lib/cmake/netcode" $(VERSION)

# What install puts there, and its folder for CMake; nothing else.
uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/include/netcode.h" "$(DESTDIR)$(PREFIX)/bin/netcode-token" "$(DESTDIR)$(PREFIX)/lib/pkgconfig/netcode.pc"
	rm -rf "$(DESTDIR)$(PREFIX)/lib/cmake/netcode"

clean:
	rm -rf build

.PHONY: engine all conform conform-plants release release-prepare release-check dist-check abi index test-seeds test-matchmaking help help-few help-all deps demo newcomer demo-full plots docs test test-all nightly test-release san coverage peer compile lint size readme format fairness network network-peers bench bench-messages bench-plot bench-sockets \
	arena arena-plants web cpp cpp-plants csharp csharp-plants admission admission-plants godot godot4 godot-demo games gates gates-plants roam latency latency-plants load instructions threads soak defences attacks sim fuzz torture torture-plain refusals coverage-lines prove model erase ct msan platforms mutate fresh install uninstall clean
