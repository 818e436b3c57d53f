#!/bin/sh
# make model: Spin searches every order of events of handshake.pml and of paths.pml, to the end (no hashing, no limit of depth that is
# met), in several small worlds; then each defence is taken out of the model in turn, and the search must find the attack. What it found
# of handshakes is replayed on the library (replay.c), which must refuse a step of each attack; and random runs of the model, which it
# must follow step by step.
#
#     run.sh              all of it, as a table; RUNS=100000 for more random runs than 1,000
#     run.sh --trace N    the steps of the attack that job N of the table has found
#
# Needs the packages spin and gcc, and libsodium; without spin nothing is searched, that is said, and the status is 0.
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tools/skip.sh
. tests/tools/skip.sh
models=$PWD/tests/model
model=$models/handshake.pml
work=$PWD/build/model
CC=${CC:-cc}

# What is expected | what is searched | the switches | the ltl claim, where it is not the assertions (and ends without rest) that are asked
# | the model, where it is not handshake.
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
fails|a client believes a keep-alive that no server sealed|$one -DKEEP_ALIVE_UNSEALED -DONLY=8|
fails|a client object connects with its token again|$one -DCLIENT_FORGETS -DONLY=7|
fails|a client waits for ever for the answer to its response|$timed -DCHALLENGES=1 -DTRIES=1 -DENDLESS_CLIENT|clients_end
fails|pending entries do not end|$timed -DCHALLENGES=1 -DTRIES=1 -DENDLESS_ENTRIES|entries_end
fails|(there is no session after a restart: it must find one)|$one -DNO_SESSION_AFTER_A_RESTART|
JOBS
    path_jobs
}

# Those of paths.pml. COVERED: it is counted which statements are reached. In brackets stands what the rules leave open, and what must be
# found lest the claims say nothing.
path_jobs() {
    two="-DHONEST=2 -DPROBES=1 -DRECORDED=2 -DCANDIDATES=1"
    malicious="-DHONEST=0 -DMALICIOUS"
    fair="-DFAIR -DHONEST=1"
    swap="-DFAIR -DALONE -DHONEST=2 -DPROBES=1 -DRECORDED=2"
    cat <<JOBS
holds|paths: two clients|$two||paths
holds|paths: a client and a malicious one|-DHONEST=1 -DMALICIOUS -DPROBES=1 -DRECORDED=2 -DCANDIDATES=1||paths
holds|paths: a client, in units|-DHONEST=1 -DCOUNTED -DRECORDED=2||paths
holds|paths: a client, four addresses|-DHONEST=1 -DADDRESSES=4||paths
holds|paths: a client, four addresses, the adversary is a relay at one|-DHONEST=1 -DADDRESSES=4 -DRELAY||paths
holds|paths: a client, the adversary is a relay|-DHONEST=1 -DRELAY -DRECORDED=2 -DCOVERED||paths
holds|paths: a malicious client, four addresses|$malicious -DADDRESSES=4||paths
holds|paths: a malicious client, in units|$malicious -DCOUNTED -DCOVERED||paths
holds|paths: a client is moved, four addresses|$fair -DADDRESSES=4|moved|paths
holds|paths: a client is moved, in units|$fair -DCOUNTED|moved|paths
holds|paths: a client is moved, one candidate|$fair -DCANDIDATES=1 -DCOVERED|moved|paths
holds|paths: two clients are moved, also to each other's address|$swap -DCOVERED|moved|paths
holds|paths: a client whose address a malicious one took gets it back|$fair -DMALICIOUS -DPROBES=1 -DRECORDED=2 -DCANDIDATES=1|moved|paths
holds|paths: payloads end where a malicious client is no more|$malicious -DSILENCE -DCOVERED||paths
holds|paths: echoes end|-DECHOES -DCOVERED|echoes_end|paths
fails|paths: payloads go to candidates|-DHONEST=1 -DPAYLOADS_TO_CANDIDATES -DONLY=1||paths
fails|paths: any authentic packet validates|-DHONEST=1 -DANY_PACKET -DONLY=1||paths
fails|paths: the echo of a probe to another address validates|-DHONEST=1 -DSENT_ANYWHERE -DONLY=1||paths
fails|paths: an address is the path of two slots|$two -DOWNED_BY_TWO -DONLY=2||paths
fails|paths: packets need not be the newest|-DHONEST=1 -DWITHOUT_NEWEST -DONLY=3||paths
fails|paths: probes are not paid for|-DHONEST=1 -DCOUNTED -DWITHOUT_CREDIT -DONLY=4||paths
fails|paths: a probe may be larger than what came|-DHONEST=1 -DCOUNTED -DFIRST_PROBE_FREE -DONLY=4||paths
fails|paths: a client's own probe is answered to a candidate|-DHONEST=1 -DANSWERS_TO_CANDIDATES -DONLY=4||paths
fails|paths: of the probes to a candidate the last one's value is remembered|$fair -DLAST_PROBE_ONLY -DONLY=1|moved|paths
fails|paths: each packet pays for itself alone|$fair -DCOUNTED -DCREDIT_FORGOTTEN|moved|paths
fails|paths: candidates do not end|$fair -DCANDIDATES=1 -DCANDIDATES_STAY|moved|paths
fails|paths: from an owned address only the owner's packets are tried|$swap -DOWNERS_ONLY|moved|paths
fails|paths: a slot without a path is not looked for|$swap -DPATHLESS_LOST|moved|paths
fails|paths: a malicious client: all probes of a slot have one value|$malicious -DONE_VALUE -DONLY=6||paths
fails|paths: a malicious client: the echo of a probe to another address validates|$malicious -DSENT_ANYWHERE -DONLY=6||paths
fails|paths: a malicious client: values of probes can be guessed|$malicious -DGUESSABLE -DONLY=6||paths
fails|paths: a malicious client: probes do not end|$malicious -DENDLESS_PROBES -DONLY=6||paths
fails|paths: a late echo is answered as if it were a probe|-DECHOES -DWITHOUT_MARK|echoes_end|paths
fails|paths: a client that is heard from elsewhere alone keeps its address|$malicious -DSILENCE -DANY_PACKET_IS_LIFE -DONLY=8||paths
fails|paths: (payloads end within less than a timeout)|$malicious -DSILENCE -DLONGEST=0 -DONLY=8||paths
fails|paths: (an observer overtakes some packets: the client is not moved)|$fair -DFASTER|moved|paths
fails|paths: (no payload goes to a relay: it must find one)|-DHONEST=1 -DRELAY -DNOTHING_IS_RELAYED||paths
fails|paths: (nothing moves: it must find a move)|-DHONEST=1 -DNOTHING_MOVES -DONLY=1||paths
JOBS
}

# Makes the search program of a job and runs it, both in a folder of their own.
search() { # $1: the job's number
    IFS='|' read -r expected _ switches claim name <<JOB
$(jobs | sed -n "$1p")
JOB
    mkdir -p "$work/$1" && cd "$work/$1" || return 1
    name=${name:-handshake}
    how="-DSAFETY"
    depth=-m20000
    [ "$name" = handshake ] || depth=-m3000000 # its runs have no end
    arguments=$depth
    if [ -n "$claim" ]; then
        how="-DNFAIR=5"
        arguments="$depth -a -f -N $claim" # weakly fair: what can go on for ever does so at some time
    fi
    optimize=-O2
    [ "$expected" = holds ] || optimize=-O0 # these end soon
    unmerged=
    case $switches in *COVERED*) unmerged=-o3 ;; esac
    # shellcheck disable=SC2086 # lists of switches, and a compiler such as `ccache gcc`
    cp "$models/$name.pml" . && # its trail is looked for beside it
        spin -a $unmerged $switches "$name.pml" >spin.log 2>&1 &&
        $CC -w $optimize -DNOREDUCE -DMEMLIM=2000 $how -o pan pan.c >cc.log 2>&1 &&
        timeout 300 ./pan $arguments >pan.log 2>&1
}

number() { # $1: a pattern of sed whose group is the number, $2: the log
    sed -n "s/$1/\1/p" "$2" | head -n 1
}

# One line of the table, and whether it is as expected.
report() { # $1: the job's number
    IFS='|' read -r expected title _ claim _ <<JOB
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

# What replay.c is given of a world.
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

# paths.pml unfolds each rule for every address and packet, and for some it comes to nothing: a statement counts as reached if one of its
# copies is, in one of the jobs that are marked.
for job in $(jobs | grep -n COVERED | cut -d : -f 1); do
    cat "$work/$job/pan.log"
    ( cd "$work/$job" && ./pan -d )
done | awk '
    /^\(Spin Version/ { delete unreached }
    /^unreached in|^proctype|^init|^claim/ { process = $NF }
    /^\t.*, state [0-9]+, / { match( $0, /state [0-9]+/ ); unreached[process " " substr( $0, RSTART, RLENGTH )] = 1 }
    /^\tstate .*paths\.pml:[0-9]+ => / {
        line = statement = $0
        sub( /.*paths\.pml:/, "", line ); sub( / .*/, "", line )
        sub( /.*paths\.pml:[0-9]+ => /, "", statement ); gsub( /\([0-9]+-1\)|[0-9]+/, "n", statement )
        statement = line ": " statement
        known[statement] = 1
        if( !( ( process " state " $2 ) in unreached ) ) reached[statement] = 1
    }
    END {
        for( statement in known ) if( !( statement in reached ) ) print statement
        if( length( known ) == 0 ) print "none is known"
    }' >"$work/never"
never_on_paths=$(wc -l <"$work/never")
echo "$never_on_paths statements of paths.pml were never reached in the jobs that are marked for it"
cat "$work/never"

# ---- what was found, on the library ----

# shellcheck disable=SC2046,SC2086 # flags, and a compiler such as `ccache gcc`, are lists of words
$CC -std=c99 -D_DEFAULT_SOURCE -O1 -Wall -Wextra -Wno-unused-function -DTEST_NO_WRAP $(sh tests/tools/deps.sh --cflags) -I. \
    tests/model/replay.c $(sh tests/tools/deps.sh --libs) -lm -o "$work/replay" || exit 1

# The attacks on the server: those on a client, and what is no attack, have nothing that it could refuse.
attacks=0
for job in $(seq 1 "$total"); do
    IFS='|' read -r expected title switches claim name <<JOB
$(jobs | sed -n "${job}p")
JOB
    case $expected$claim$switches$name in
    holds* | *paths | *_end* | *_in* | *KEEP_ALIVE_UNSEALED* | *CLIENT_FORGETS* | *NO_SESSION*) continue ;;
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
    options=$(world_of "$(worlds | sed -n "${world}p")")
    # shellcheck disable=SC2086 # a list of numbers
    find "$work/runs/$world" -type f -exec "$work/replay" $options follows {} + >"$work/replay.log" ||
        wrong=$((wrong + 1))
    grep -E 'replay\.c|traces,' "$work/replay.log"
done
[ "$wrong" = 0 ] && [ "$never" = 0 ] && [ "$never_on_paths" = 0 ]
