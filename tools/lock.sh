#!/bin/sh
# Resolve pyproject.toml into the lock files: every version and hash, for all systems and Pythons,
# and no address of a registry. With --check nothing is written: it fails if a lock file is stale.
set -eu
cd "$(dirname "$0")/.."
uv=.venv/bin/uv

compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --no-annotate "$@"
}

if [ "${1:-}" = "--check" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    # Existing pins are kept if they are still valid, so that only real differences show.
    cp requirements.lock requirements-dev.lock "$folder"
    compile pyproject.toml --extra pipeline --group build -o "$folder/requirements.lock" > /dev/null
    compile pyproject.toml --extra pipeline --group build --group dev -o "$folder/requirements-dev.lock" > /dev/null
    for lock in requirements.lock requirements-dev.lock; do
        cmp -s "$lock" "$folder/$lock" || {
            echo "lock: $lock does not fit pyproject.toml: run make lock" >&2
            exit 1
        }
    done
    exit 0
fi
compile --upgrade pyproject.toml --extra pipeline --group build -o requirements.lock > /dev/null
compile --upgrade pyproject.toml --extra pipeline --group build --group dev -o requirements-dev.lock > /dev/null
