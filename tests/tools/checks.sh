#!/bin/sh
# Counted checks for the shell programs of tests/all, which read this file with checks_name and checks_log set: what the last line begins with,
# and a file for what a check says. A line "detail: ..." there stands behind the check's title.
# shellcheck disable=SC2154 # both are set by the script that reads this
passed=0
failed=0
skipped=0

# Behind an `if` or a `||` a failing line does not end a function, so each check is a shell of its own, which says by its end how it went.
check() { # $1: what is checked; the rest: a command
    title=$1
    shift
    (
        set -e
        "$@"
    ) >"$checks_log" 2>&1 </dev/null
    status=$?
    if [ "$status" = 0 ]; then
        echo "ok     $title$(sed -n 's/^detail: /: /p' "$checks_log" | tail -n 1)"
        passed=$((passed + 1))
    else
        echo "FAILED $title"
        tail -n 15 "$checks_log"
        failed=$((failed + 1))
    fi
}

skip() { # $1: what; $2: why
    echo "skipped $1: $2"
    skipped=$((skipped + 1))
}

finish() {
    echo "$checks_name: $passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
    [ "$failed" = 0 ] && { [ "$skipped" = 0 ] || [ "${SKIPS:-yes}" = yes ]; } # SKIPS=no: as skip.sh has it
    exit
}
