#!/bin/sh
# Create .venv and install a lock file and the project itself: with uv if installed, else with
# venv and pip of Python 3.11 or later. Hashes are checked either way.
#   sh tools/setup.sh requirements.lock
set -eu
cd "$(dirname "$0")/.."
lock=$1

fail() {
    echo "setup: $1" >&2
    exit 1
}

find_python() {
    for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
        if [ -n "$name" ] && command -v "$name" > /dev/null 2>&1 \
            && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

count() {
    grep -cE "$1" "$2" || true
}

# How far pip is: it takes a minute, and its own output is a page long.
progress() {
    total=$(($(count '^[A-Za-z0-9]' "$lock") - $(count '^Ignoring ' "$log")))
    if grep -q '^Installing collected packages' "$log"; then
        set -- .venv/lib/python*/site-packages/*.dist-info
        echo "installing: $(($# - before)) of $total packages"
    else
        echo "fetching: $(count '^(Collecting|Requirement already) ' "$log") of $total packages"
    fi
}

# What working on the project needs has uv too, which takes seconds where pip takes minutes. It knows
# nothing of pip's settings: where these lead to other servers, it may fail.
install_by_locked_uv() {
    uv_lock=$(mktemp)
    awk '/^uv==/ { uv = 1 } uv { print } uv && !/\\$/ { exit }' "$lock" > "$uv_lock"
    done=1
    if [ -s "$uv_lock" ]; then
        echo "setup: installing uv first"
        if .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --no-deps --require-hashes -r "$uv_lock"; then
            .venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python \
                --require-hashes -r "$lock" && done=0 || echo "setup: going on with pip"
        fi
    fi
    rm -f "$uv_lock"
    return "$done"
}

# The lock file is complete. Old releases of pip would also look for a newer version of what is
# required with an extra, and refuse it, as it has no hash.
install_lock() {
    log=$(mktemp)
    set -- .venv/lib/python*/site-packages/*.dist-info
    before=$#
    .venv/bin/python -m pip install --disable-pip-version-check \
        --no-deps --require-hashes -r "$lock" > "$log" 2>&1 &
    pid=$!
    trap 'kill "$pid" 2> /dev/null; rm -f "$log"; exit 130' INT TERM
    seconds=0
    while kill -0 "$pid" 2> /dev/null; do
        sleep 1
        if [ -t 1 ]; then
            printf '\rsetup: %s\033[K' "$(progress)"
        elif [ $((seconds % 10)) -eq 0 ]; then
            echo "setup: $(progress)"
        fi
        seconds=$((seconds + 1))
    done
    [ ! -t 1 ] || printf '\r\033[K'
    trap - INT TERM
    if ! wait "$pid"; then
        grep -vE '^(Collecting | )' "$log" >&2 || true
        rm -f "$log"
        fail "pip could not install $lock: see above"
    fi
    rm -f "$log"
}

# An interrupted setup leaves an environment without pip: recreate it.
if [ -x .venv/bin/python ] && ! command -v uv > /dev/null 2>&1 \
    && ! .venv/bin/python -m pip --version > /dev/null 2>&1; then
    echo "setup: .venv is incomplete: recreating it"
    rm -rf .venv
fi

if command -v uv > /dev/null 2>&1; then
    echo "setup: creating .venv with uv, from $lock"
    [ -x .venv/bin/python ] || uv venv --quiet --python '>=3.11' .venv \
        || fail "uv could not create .venv with Python 3.11 or later: see above"
    uv pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes -r "$lock"
    uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
else
    echo "setup: creating .venv with pip, from $lock (uv would be faster)"
    if ! [ -x .venv/bin/python ]; then
        python=$(find_python) || fail "no Python 3.11 or later: install one, or uv, which brings its own"
        "$python" -m venv .venv \
            || fail "could not create .venv: on Debian and Ubuntu, apt-get install python3-venv"
    fi
    install_by_locked_uv || install_lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --no-deps --no-build-isolation -e .
fi

echo "setup: compiling"
# Whatever the environment says of bytecode: each start would compile all that it imports.
.venv/bin/python -m compileall -q contextgauge schemas streams
