#!/bin/sh
# make model: Spin searches every order of events of handshake.pml, to the end (no hashing, no limit of depth that is met), in several
# small worlds; then each defence is taken out of the model in turn, and the search must find the attack. What it found is replayed on
# the library (replay.c), which must refuse a step of each attack; and random runs of the model, which it must follow step by step.
#
#     run.sh              all of it, as a table; RUNS=100000 for more random runs than 1,000
#     run.sh --trace N    the steps of the attack that job N of the table has found
#
# Needs the packages spin and gcc, and libsodium; without spin nothing is searched, that is said, and the status is 0.
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
model=$PWD/tests/model/handshake.pml
work=$PWD/build/model
CC=${CC:-cc}

# What is expected | what is searched | the switches | the ltl claim, where it is not the assertions (and ends without rest) that are asked.
jobs() {
    one="-DCLIENTS=1 -DTOKENS=3 -DCHALLENGES=2"
    timed="-DTIMED -DCLIENTS=1 -DTOKENS=2 -DLIVES=1"
    fair="-DFAIR -DCLIENTS=1 -DTOKENS=2 -DCHALLENGES=4 -DLIVES=1 -DSLOTS=2 -DTRIES=1"
    cat <<JOBS
holds|two clients, the adversary's token, one restart|-DCLIENTS=2 -DTOKENS=3 -DTRIES=1|
holds|one client, two tokens of the adversary, two restarts, a table of one record|-DCLIENTS=1 -DTOKENS=3 -DLIVES=3 -DCAPACITY=1|
holds|one client, one token of the adversary, three challenges a life|-DCLIENTS=1 -DTOKENS=2 -DCHALLENGES=3|
holds|two servers in each token|-DCLIENTS=1 -DTOKENS=2 -DSERVERS=2 -DSLOTS=1 -DLIVES=1 -DTRIES=1|
holds|two servers in each token, one restart of each|-DCLIENTS=1 -DTOKENS=2 -DSERVERS=2 -DCHALLENGES=1|
holds|two clients, one restart, sequences from zero|-DCLIENTS=2 -DTOKENS=3 -DBASE_ZERO|
holds|every client comes to an end|$timed -DCHALLENGES=1|clients_end
holds|every client comes to an end, with a second server|$timed -DCHALLENGES=1 -DSERVERS=2 -DSLOTS=1 -DTRIES=1|clients_end
holds|every pending entry ends|$timed -DCHALLENGES=1 -DTRIES=1|entries_end
holds|no loss, an adversary off the path: the client gets in|$fair|everybody_gets_in
fails|a challenge is not bound to its token|$one -DUNBOUND_TOKEN -DONLY=1|
fails|a challenge is not bound to its address|$one -DUNBOUND_ADDRESS -DONLY=1|
fails|a challenge is bound to nothing, and its client id is believed|$one -DUNBOUND -DONLY=3|
fails|a challenge of an earlier entry is taken|$one -DWITHOUT_FIRST_CHALLENGE -DONLY=2|
fails|all servers have one challenge key|$one -DSERVERS=2 -DLIVES=1 -DONE_CHALLENGE_KEY -DONLY=2|
fails|the challenge key stays over a restart|$one -DCHALLENGE_KEY_STAYS -DONLY=5|
fails|a token is not consumed|$one -DWITHOUT_CONSUMING -DONLY=4|
fails|other handshakes of a consumed token stay|$one -DOTHERS_STAY -DONLY=4|
fails|a full table of consumed tokens leaves no mark|$one -DCAPACITY=1 -DWITHOUT_MARK -DONLY=4|
fails|stop forgets the consumed tokens|$one -DSTOP_FORGETS_CONSUMED -DONLY=4|
fails|pending handshakes are found by address alone: another's user data|$one -DBY_ADDRESS -DONLY=9|
fails|pending handshakes are found by address alone: the client is locked out|$fair -DBY_ADDRESS|everybody_gets_in
fails|sequences from zero, and old tokens are let in after a restart|$one -DBASE_ZERO -DWITHOUT_EARLIEST_EXPIRY -DONLY=6|
fails|a second client under an id that is connected is let in|$one -DWITHOUT_RIVALS -DONLY=10|
fails|a client believes a keep-alive that nobody sealed|$one -DKEEP_ALIVE_UNSEALED -DONLY=8|
fails|a client object connects with its token again|$one -DCLIENT_FORGETS -DONLY=7|
fails|a client waits for ever for the answer to its response|$timed -DCHALLENGES=1 -DTRIES=1 -DENDLESS_CLIENT|clients_end
fails|pending entries do not end|$timed -DCHALLENGES=1 -DTRIES=1 -DENDLESS_ENTRIES|entries_end
fails|(there is no session after a restart: it must find one)|$one -DNO_SESSION_AFTER_A_RESTART|
JOBS
}

# Makes the search program of a job and runs it, both in a folder of their own.
search() { # $1: the job's number
    IFS='|' read -r expected _ switches claim <<JOB
$(jobs | sed -n "$1p")
JOB
    mkdir -p "$work/$1" && cd "$work/$1" || return 1
    how="-DSAFETY"
    arguments="-m20000"
    if [ -n "$claim" ]; then
        how="-DNFAIR=5"
        arguments="-m20000 -a -f -N $claim" # weakly fair: who can go on for ever does so at some time
    fi
    optimize=-O2
    [ "$expected" = holds ] || optimize=-O0 # these end soon
    # shellcheck disable=SC2086 # lists of switches, and a compiler such as `ccache gcc`
    cp "$model" handshake.pml && # its trail is looked for beside it
        spin -a $switches handshake.pml >spin.log 2>&1 &&
        $CC -w $optimize -DNOREDUCE -DMEMLIM=2000 $how -o pan pan.c >cc.log 2>&1 &&
        timeout 300 ./pan $arguments >pan.log 2>&1
}

number() { # $1: a pattern of sed whose group is the number, $2: the log
    sed -n "s/$1/\1/p" "$2" | head -n 1
}

# One line of the table, and whether it is as expected.
report() { # $1: the job's number
    IFS='|' read -r expected title _ claim <<JOB
$(jobs | sed -n "$1p")
JOB
    log=$work/$1/pan.log
    errors=$(number '.*errors: \([0-9]*\)$' "$log" 2>/dev/null)
    # A search that was cut short, or that could not be built, is neither.
    found=broken
    if [ -n "$errors" ] && ! grep -Eq 'max search depth too small|Search not completed.*memory|out of memory' "$log"; then
        if [ "$errors" = 0 ] && ! grep -q 'Search not completed' "$log"; then
            found=holds
        elif grep -Eq "assertion violated|acceptance cycle" "$log"; then
            found=fails
        fi
    fi
    verdict=ok
    [ "$found" = "$expected" ] || verdict=WRONG
    printf '%2d  %-5s %-76s %9s %7s %6s %6s  %s\n' "$1" "$found" "$title" "$(number '^ *\([0-9]*\) states, stored.*' "$log")" \
        "$(number '.*depth reached \([0-9]*\),.*' "$log")" "$(number '^ *\([0-9]*\)\.[0-9]*.total actual memory.*' "$log")" \
        "$(number '^pan: elapsed time \([0-9.e-]*\) seconds' "$log")" "$verdict"
    [ "$verdict" = ok ]
}

# ---- the library against the model ----

# The random runs: four worlds with a quarter of them each.
worlds() {
    echo "-DCLIENTS=2 -DTOKENS=3 -DCHALLENGES=4 -DLIVES=12 -DTRIES=9"
    echo "-DCLIENTS=1 -DTOKENS=3 -DCHALLENGES=4 -DLIVES=12 -DTRIES=9 -DSLOTS=1"
    echo "-DCLIENTS=1 -DTOKENS=2 -DCHALLENGES=2 -DLIVES=12 -DTRIES=9 -DSERVERS=2"
    echo "-DCLIENTS=2 -DTOKENS=3 -DCHALLENGES=4 -DLIVES=3 -DTRIES=9 -DBASE_ZERO"
}

switch() { # $1: a name, $2: its value where the switches do not say, $3: the switches
    value=$(echo "$3" | sed -n "s/.*-D$1=\([0-9]*\).*/\1/p")
    echo "${value:-$2}"
}

# What replay.c is told of a world.
world_of() { # $1: its switches
    zero=0
    case $1 in *BASE_ZERO*) zero=1 ;; esac
    echo "$(switch CLIENTS 2 "$1") $(switch TOKENS 3 "$1") $(switch SERVERS 1 "$1") $(switch SLOTS 2 "$1") $zero"
}

# A random run of a world; the table of consumed tokens is never full, as the library's is not.
run() { # $1: the world's number, $2: the seed
    # shellcheck disable=SC2046 # a list of switches
    spin -n"$2" -u1500 -T -DREPLAYED -DCAPACITY=3 $(worlds | sed -n "$1p") "$model" | sed -n '/^ *@/p' >"$work/runs/$1/$2"
}

case ${1:-} in
--job)
    search "$2"
    exit 0
    ;;
--run)
    mkdir -p "$work/runs/$2/$3.folder" && cd "$work/runs/$2/$3.folder" || exit 1 # spin writes a file of its own
    run "$2" "$3"
    rm -rf "$work/runs/$2/$3.folder"
    exit 0
    ;;
esac
if ! command -v spin >/dev/null 2>&1; then
    skip model "spin is not installed (package spin)"
fi
if [ "${1:-}" = --trace ]; then
    cd "$work/$2" && exec ./pan -r
fi

rm -rf "$work" && mkdir -p "$work" || exit 1
total=$(jobs | wc -l)
seq 1 "$total" | xargs -P 2 -n 1 sh "$0" --job
echo "every order of events, searched to the end; a claim in the second half is about a model without one of its defences"
printf '%2s  %-5s %-76s %9s %7s %6s %6s\n' "" "claim" "" states depth MB s
wrong=0
for job in $(seq 1 "$total"); do
    report "$job" || wrong=$((wrong + 1))
done
# Events that never happen would make a model that proves nothing.
unreached=$(sed -n '/unreached in proctype/,/states)/p' "$work/1/pan.log" | grep -c 'state [0-9]*, ' || true)
never=$(sed -n '/unreached in proctype/,/states)/p' "$work/1/pan.log" | grep 'state [0-9]*, ' | grep -vc -- '-end-' || true)
echo "$unreached statements of the model were never reached in job 1, $never of them more than the end of a process that has none"

# ---- what was found, on the library ----

# shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
$CC -std=c99 -D_DEFAULT_SOURCE -O1 -Wall -Wextra -Wno-unused-function -DTEST_NO_WRAP $(sh tests/tools/deps.sh --cflags) -I. \
    tests/model/replay.c $(sh tests/tools/deps.sh --libs) -lm -o "$work/replay" || exit 1

# The attacks on the server: those on a client, and what is no attack, have nothing that it could refuse.
attacks=0
for job in $(seq 1 "$total"); do
    IFS='|' read -r expected title switches claim <<JOB
$(jobs | sed -n "${job}p")
JOB
    case $expected$claim$switches in
    holds* | *_end* | *_in* | *KEEP_ALIVE_UNSEALED* | *CLIENT_FORGETS* | *NO_SESSION*) continue ;;
    esac
    ( cd "$work/$job" && ./pan -r ) 2>/dev/null | sed -n '/^ *@/p' >"$work/$job/attack"
    # shellcheck disable=SC2046 # a list of numbers
    if ! "$work/replay" $(world_of "$switches") refuses "$work/$job/attack" >"$work/$job/replay.log"; then
        echo "the library does not refuse this attack: $title"
        cat "$work/$job/replay.log"
        wrong=$((wrong + 1))
    fi
    attacks=$((attacks + 1))
done
refused=$(cat "$work"/*/replay.log | grep -c '^1 passed')
echo "$attacks attacks on models without a defence, replayed: the library refuses a step of $refused"

quarter=$((${RUNS:-1000} / 4))
for world in 1 2 3 4; do
    mkdir -p "$work/runs/$world"
    seq 1 "$quarter" | xargs -P 2 -n 1 sh "$0" --run "$world"
    told=$(world_of "$(worlds | sed -n "${world}p")")
    # shellcheck disable=SC2086 # a list of numbers
    find "$work/runs/$world" -type f -exec "$work/replay" $told follows {} + >"$work/replay.log" ||
        wrong=$((wrong + 1))
    grep -E 'replay\.c|traces,' "$work/replay.log"
done
[ "$wrong" = 0 ] && [ "$never" = 0 ]
