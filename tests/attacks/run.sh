#!/bin/sh
# make defences: takes each defence out of a copy of netcode.h, and a test must notice. See tests/faults.
#
#     run.sh              all faults that are for tests
#     run.sh replay       those whose names contain `replay`
#     run.sh --sample     every tenth of those of the attacks and every fortieth of the others
set -u

cd "$(dirname "$0")/../.." || exit 1
FAULTS_READY="test" exec sh tests/tools/loopback.sh "${PYTHON:-python3}" tests/faults/run.py --by test "$@"
