#!/bin/sh
# Fetch the web page's third-party files, pinned by tools/page/package-lock.json, into
# streams/serve/page/vendor; with --dev also what its tests use. Without Node.js the page works,
# with tables in place of charts: no failure, except where CI is set.
#   sh tools/page.sh [--dev]
set -eu
cd "$(dirname "$0")/page"
vendor=../../streams/serve/page/vendor

without() {
    echo "page: $1: the page shows tables in place of charts" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
}

command -v npm > /dev/null 2>&1 || without "no npm on this machine (Debian, Ubuntu: apt-get install npm)"
echo "page: fetching the chart library with npm"
omit=--omit=dev
[ "${1:-}" != --dev ] || omit=--include=dev
npm ci --silent $omit || without "npm could not fetch uPlot"
rm -rf "$vendor"
mkdir -p "$vendor"
cp node_modules/uplot/dist/uPlot.esm.js node_modules/uplot/dist/uPlot.min.css "$vendor"
cp node_modules/uplot/LICENSE "$vendor/uPlot.LICENSE.txt"
