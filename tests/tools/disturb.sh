#!/bin/bash
# disturb.sh COMMAND...: runs a command while, again and again, one of its processes, chosen at random, is stopped for two seconds: what a busy
# machine does to a test, only more often. Between two stops half a second passes (DISTURB_PAUSE). The status is the command's, and the last
# line says which programs were stopped how often. DISTURB_SEED repeats the choices, as far as the same processes run.
set -u

pause=${DISTURB_PAUSE:-0.5}
RANDOM=${DISTURB_SEED:-$$}
log=$(mktemp)
stopped=
command=

# A process that stays stopped would never end.
go_on() {
    [ -z "$stopped" ] || kill -CONT "$stopped" 2>/dev/null
    stopped=
}
# shellcheck disable=SC2317 # traps call it
end() {
    go_on
    # shellcheck disable=SC2046 # ids are words
    [ -z "$command" ] || { kill -TERM $(descendants "$command" | cut -d" " -f1) && wait "$command"; } 2>/dev/null
    rm -f "$log"
    exit 143
}
trap end TERM INT HUP

# The descendants of a process, with their names. Those that have a session of their own are among them, those whose parents ended are not.
descendants() { # $1: its id
    ps -e -o pid=,ppid=,stat=,comm= | awk -v root="$1" '
        { parent[$1] = $2; state[$1] = $3; name[$1] = $4 }
        function below( pid ) { return pid == root || ( ( pid in parent ) && pid > 1 && below( parent[pid] ) ) }
        END { for ( pid in parent ) if ( state[pid] !~ /^[ZTt]/ && below( pid ) ) print pid, name[pid] }'
}

# In a session of its own: a terminal's signals reach this script alone, which passes them on. <&0: a background command would read /dev/null.
setsid "$@" <&0 &
command=$!
while kill -0 "$command" 2>/dev/null; do
    mapfile -t all < <(descendants "$command")
    if [ ${#all[@]} -gt 0 ]; then
        one=${all[RANDOM % ${#all[@]}]}
        stopped=${one%% *} # first, since a signal may come between
        if kill -STOP "$stopped" 2>/dev/null; then
            echo "${one#* }" >>"$log"
            sleep 2
            go_on
        fi
    fi
    sleep "$pause"
done
wait "$command"
status=$?
echo "disturbed $(wc -l <"$log") times, for 2 s each: $(sort "$log" | uniq -c | sort -rn | awk '{ printf "%s%s %d", ( NR > 1 ? ", " : "" ), $2, $1 }')"
rm -f "$log"
exit "$status"
