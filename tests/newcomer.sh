#!/bin/bash
# The newcomer's path: at most three commands, as they stand in README.md, from a clone to a token that was fetched over TLS and a game that is
# connected (make demo-full asserts both). They are typed in a new Debian stable that holds git, make and gcc only; the clone is of the
# committed tree. Needs root, debootstrap and the Debian mirror that this machine's apt uses.
#
#     bash tests/newcomer.sh
exec bash "$(dirname "$0")/fresh.sh" --newcomer
