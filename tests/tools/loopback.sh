#!/bin/sh
# loopback.sh COMMAND...: runs a command where ::1 exists. Containers often come without IPv6, even on loopback; there the command runs in a
# network namespace of its own, whose loopback has it. Where that is not possible either it runs as it is, and what needs IPv6 says so.
set -u

has_ipv6_loopback='grep -q "^00000000000000000000000000000001 " /proc/net/if_inet6 2>/dev/null'

if [ "$(uname -s)" != Linux ] || sh -c "$has_ipv6_loopback"; then
    exec "$@"
fi
for namespace in "unshare --net" "unshare --net --map-root-user"; do
    # shellcheck disable=SC2086 # the options are words of their own
    if $namespace sh -c "ip link set lo up && $has_ipv6_loopback" >/dev/null 2>&1; then
        # shellcheck disable=SC2016 # "$@" is for the inner shell
        exec $namespace sh -c 'ip link set lo up && exec "$@"' loopback "$@"
    fi
done
echo "note: no IPv6 loopback here, and none can be made" >&2
exec "$@"
