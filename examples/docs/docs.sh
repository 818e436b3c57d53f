#!/bin/sh
# Makes the documentation: netcode.h's manual and public API, MIGRATION.md and FAQ.md as HTML pages that need nothing beside themselves.
#
#     sh examples/docs/docs.sh [DIRECTORY]        build/docs unless given
#
# Needs pandoc and Python 3; installs what is missing where it may, or names it.
set -eu

cd "$(dirname "$0")/../.."
sh tests/tools/need.sh pandoc:pandoc python3:python3
"${PYTHON:-python3}" examples/docs/docs.py "${1:-build/docs}"
