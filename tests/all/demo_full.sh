#!/bin/sh
# Tests examples/demo-full: that the demo holds, that it fails with the reason when its backend is killed half-way, and that it leaves nothing
# behind in either case, nor when it is interrupted.
#
#     sh tests/all/demo_full.sh             under 2 minutes
#     sh tests/all/demo_full.sh --plants    a fault in a copy, one after the other: the line that it is for must fail (NUMBER...: those alone)
set -u

cd "$(dirname "$0")/../.." || exit 1
passed=0
failed=0
pid=
folder=

clean() {
    # The demo ends what it started.
    [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    [ -z "$folder" ] || rm -rf "$folder"
}
trap clean EXIT
trap 'exit 130' INT TERM

check() { # $1: what; the rest: a command that holds
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok     $what"
    else
        failed=$((failed + 1))
        echo "FAILED $what"
        sed 's/^/    /' "$log"
    fi
}

demo() { # $1: the top of a tree
    # A shell that runs in the background hands on that SIGINT is ignored.
    TMPDIR=$folder env --default-signal=INT "${PYTHON:-python3}" "$1/examples/demo-full/demo_full.py" >"$log" 2>&1 </dev/null &
    pid=$!
}

ended_with() { # $1: a status
    wait "$pid"
    status=$?
    pid=
    [ "$status" = "$1" ] || {
        echo "    the status is $status"
        return 1
    }
}

says() { # $1: words on lines after each other
    tr -s ' \n' ' ' <"$log" | grep -qE "$1"
}

# Everything that the demo starts works in its folder, which is in ours.
nothing_left() {
    find "$folder" -mindepth 1 ! -name log | grep . && return 1
    for process in /proc/[0-9]*; do
        case $(readlink "$process/cwd" 2>/dev/null) in "$folder"*)
            echo "    process ${process#/proc/} is left"
            return 1
            ;;
        esac
    done
}

run_demo() {
    demo .
    check "the demo ends with 0" ended_with 0
    check "all lines held" says 'the demo is over: ([0-9]+) of \1 lines held'
    check "and nothing is left" nothing_left
    grep 'the demo is over' "$log"
}

run_killed() {
    export DEMO_KILL_BACKEND=1
    demo .
    unset DEMO_KILL_BACKEND
    check "with its backend killed half-way it ends with 1" ended_with 1
    check "and says why" says 'FAIL 9 .* happened: the first backend was killed by signal 9 \(SIGKILL\)'
    check "and nothing is left" nothing_left
    grep 'the demo is over' "$log"
}

run_interrupted() {
    demo .
    turns=0
    until grep -q '^ok      1 ' "$log" || [ $turns = 300 ]; do
        sleep 0.1
        turns=$((turns + 1))
    done
    kill -INT "$pid"
    check "interrupted, it ends with 130" ended_with 130
    check "and says so" says 'stopped by SIGINT'
    check "and nothing is left" nothing_left
}

# ---- planted faults ----

number=0
plant() { # $1: a file; $2: a text that it holds once; $3: what to put in its place; $4: the line that must fail; $5: the program that it is in
    number=$((number + 1))
    case " $numbers " in "  " | *" $number "*) ;; *) return ;; esac
    rm -rf "$copy"
    mkdir -p "$copy/tests/tools" "$copy/build"
    cp -pr netcode.h examples "$copy"
    cp -p tests/tools/need.sh "$copy/tests/tools"
    cp -pr build/demo-full "$copy/build"
    FILE=$copy/$1 TEXT=$2 FAULT=$3 "${PYTHON:-python3}" -c '
import os
path, text = os.environ["FILE"], os.environ["TEXT"]
source = open(path).read()
assert source.count(text) == 1, "%s holds %r %d times" % (path, text, source.count(text))
open(path, "w").write(source.replace(text, os.environ["FAULT"]))' || exit 1
    touch "$copy"/build/demo-full/*
    rm -f "$copy/build/demo-full/${5:-none}"
    demo "$copy"
    check "plant $number in $1: the demo fails" ended_with 1
    check "    and nothing is left" nothing_left
    check "    line $4: $(sed -n '/^FAIL/,$p' "$log" | sed -n '/happened:/,/^$/p' | tr -s ' \n' ' ' | cut -c1-160)" says "FAIL $4 "
}

plants() {
    copy=build/demo-full-planted
    in=examples/backend
    script=examples/demo-full/demo_full.py
    reload='    if ( good )
        app->num_keys = keys.count;
    sodium'
    run_demo # builds what the copies take over
    plant $in/nginx.conf 'listen @LISTEN@ ssl;' 'listen @LISTEN@;' 1
    plant $in/login.h 'CURLOPT_SSL_VERIFYPEER, 1L' 'CURLOPT_SSL_VERIFYPEER, 0L' 2 client_http
    plant $in/logins.h 'case STORE_UNKNOWN: return refuse( request, REFUSAL_unknown_credential, NULL );' 'case STORE_UNKNOWN: request->player = request->app->files.players; return request->full.next( request );' 2 backend
    plant $in/nginx.conf 'access_log access.log plain;' 'access_log off;' 3
    plant $in/backend.c '"Cache-Control", "no-store"' '"Cache-Control", "private"' 4 backend
    plant examples/server.c 'int good = choose_keys( app, options, &keys );' 'int good = choose_keys( app, options, &keys ); memset( keys.data, 7, 32 ); keys.count = 1;' 1 server-full
    plant $in/backend.c 'player->client_id, app->options.protocol_id,' 'player->client_id, app->options.protocol_id + 1,' 5 backend
    plant netcode.h '        return NETCODE_DROP_TOKEN_CONSUMED;' '        (void) 0;' 6 server-full
    plant $script '                send(data[:-20]' '                data = (data[:-20]' 7
    plant $in/backend.c 'return right->free_slots - left->free_slots;' 'return left->free_slots - right->free_slots;' 8 backend
    plant examples/server.c "netcode_server_set_private_keys( app->server, keys.data, keys.count ) == NETCODE_OK;
$reload" "1;
$reload" 10 server-full
    plant examples/server.c "$reload" "    static struct keys_t first; if ( !first.count ) first = keys; memcpy( keys.data + 32, first.data + 32, 32 );
    netcode_server_set_private_keys( app->server, keys.data, 2 );
$reload" 11 server-full
    plant examples/server.c "$reload" "    netcode_server_disconnect_client( app->server, 1 );
$reload" 12 server-full
    plant $in/store.h 'if not s[1] then return' 'if true then return' 13 backend
    # Without the shared store a backend knows only the servers whose reports nginx sends to it. By chance these can be all of them at line 1,
    # but not until line 8.
    plant $in/servers_store.h 'now < servers_store.next' 'now >= servers_store.next' '(1|8) .*the (first|second) backend' backend
    plant $in/match.h 'MATCH_RUN_SECONDS 0.1' 'MATCH_RUN_SECONDS 1e9' 14 backend
    plant examples/fleet/admission.h "return {'used'}" "return {'admitted'}" 15 server-full
    plant $in/client_http.c 'while ( fetch_token( app ) && start_client( app ) ) {' 'while ( app->connects < 1 && fetch_token( app ) && start_client( app ) ) {' 16 client_http
    plant examples/metrics/metrics.h 'connects_total, connects, "Clients' 'connects_total, bytes_received, "Clients' 18 server-full
    plant $in/backend.c 'now - server->heard_at > SERVER_SILENT_SECONDS;' 'now - server->heard_at > 1e9;' 17 backend
    plant $script '    said, counted = [], []' '    demo.visitors.pop(0)
    said, counted = [], []' 18
    plant examples/server.c '        if ( echo )
' '        static int n; if ( ++n == 1500 ) event->data[20] ^= 1;
        if ( echo )
' 19 server-full
    plant $script 'def tell_nobody_lost():
' 'SILENCE_MS = 5000
def tell_nobody_lost():
    os.kill(demo.servers[0].child.pid, signal.SIGSTOP); time.sleep(1.3); os.kill(demo.servers[0].child.pid, signal.SIGCONT)
' 20
    plant $in/client_http.c '    app->connected = 1;
' '    app->connected = 1; say( app, "%s", app->login.credential );
' 21 client_http
    rm -rf "$copy"
}

numbers=
mode=${1-}
[ $# = 0 ] || shift
numbers=$*
folder=$(mktemp -d) || exit 1
log=$folder/log
if [ "$mode" = --plants ]; then
    plants
else
    run_demo
    run_killed
    run_interrupted
fi
echo "demo_full: $passed passed, $failed failed"
[ "$failed" = 0 ]
