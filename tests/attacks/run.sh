#!/bin/sh
# make defences: takes each defence out of a copy of netcode.h, and a test must notice. See run.py.
#
#     run.sh              all edits
#     run.sh replay       the edits whose names contain `replay`
#     run.sh --sample     those of the attacks and a sixth of the others
set -u

cd "$(dirname "$0")/../.." || exit 1
exec sh tests/tools/loopback.sh "${PYTHON:-python3}" tests/attacks/run.py "$@"
