#!/bin/sh
# Makes the documentation as a site of static pages: mkdocs with its theme material, doxygen for the API, gnuplot for two pictures.
#
#     sh examples/docs/docs.sh [DIRECTORY]        build/docs unless given
#
# SITE_URL=https://docs.example.org/ where the site is known. Installs what is missing where it may, or names it.
set -eu

cd "$(dirname "$0")/../.."
sh tests/tools/need.sh mkdocs:mkdocs mkdocs-material:/usr/share/mkdocs/themes/material doxygen:doxygen gnuplot-nox:gnuplot python3:python3
mkdir -p "${1:-build/docs}"
DOCS_SITE=$(cd "${1:-build/docs}" && pwd)
DOCS_PAGES=$(mktemp -d)
trap 'rm -rf "$DOCS_PAGES"' EXIT
export DOCS_SITE DOCS_PAGES
mkdocs build --quiet --clean --config-file examples/docs/mkdocs.yml
echo "$DOCS_SITE/index.html"
