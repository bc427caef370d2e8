"""`contextgauge statusline` as Claude Code starts it: it always prints a line and ends with 0."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.views_kit import records_of, write_views
from tests.commands import command_environment
from tests.patience import PATIENCE_S


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A transcript with one response of 60 000 tokens."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 59_990}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage}
    line = {"type": "assistant", "sessionId": "s", "isSidechain": False, "message": message}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(line) + "\n")
    return path


def run(*arguments: str, given: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streams", "statusline", *arguments],
        env=command_environment(settings),
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.extended
def test_the_command_never_fails_and_explains_on_request() -> None:
    done = run(given="nonsense")
    assert (done.returncode, done.stdout) == (0, "contextgauge: no session was given\n")
    assert "docs/STATUSLINE.md" in done.stderr
    done = run(given='{"session_id": "s"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "·········· unknown\n", "")
    done = run("--verbose", given='{"session_id": "s"}')
    assert "contextgauge statusline: not from Redis: " in done.stderr
    done = run(given='{"session_id": "s"}', WINDOWS="nonsense", DEFAULT_WINDOW="-1")
    assert (done.returncode, done.stdout) == (0, "·········· unknown\n")
    assert "CONTEXTGAUGE_WINDOWS" in done.stderr
    assert "CONTEXTGAUGE_DEFAULT_WINDOW" in done.stderr


@pytest.mark.extended
def test_options_and_help_are_those_of_every_command() -> None:
    assert "for Claude Code's status line" in " ".join(run("--help", given="").stdout.split())
    done = run("--nonsense", given="{}")
    assert done.returncode == 2
    assert run("--verbose", given="{").stdout == run("-v", given="{").stdout


HEAVY = {
    "aiokafka",
    "asyncio",
    "pydantic",
    "redis",
    "rich",
    "structlog",
    "typer",
    "uvloop",
}

PROBE = """
import os, sys
os._exit = lambda code: None
sys.argv = ["contextgauge", "statusline"]
from streams.__main__ import main
main()
sys.stderr.write(" ".join(sys.modules))
"""


def test_no_slow_modules_are_imported(transcript: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=command_environment({"REDIS_URL": "redis://127.0.0.1:1/0"}),
        input=json.dumps({"session_id": "s", "transcript_path": str(transcript)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert " 30% 60K/200K" in done.stdout
    loaded = set(done.stderr.split())
    assert "streams.core.derivation.derive" in loaded
    assert loaded & HEAVY == set()


def test_a_terminal_without_these_characters_gets_others(transcript: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "streams", "statusline"],
        env=command_environment({}) | {"PYTHONIOENCODING": "ascii"},
        input=json.dumps({"session_id": "s", "transcript_path": str(transcript)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "claude-sonnet-4-5 ###------- 30% 60K/200K\n"


@pytest.mark.extended
def test_a_closed_output_pipe_is_not_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-m", "streams", "statusline"],
        env=command_environment({}),
        stdin=subprocess.PIPE,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    _, errors = process.communicate(b'{"session_id": "s"}')
    assert (process.returncode, errors) == (0, b"")


def _response(number: int, tokens: int, at: float) -> bytes:
    usage = {"input_tokens": 0, "cache_read_input_tokens": tokens}
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    common = {"type": "assistant", "sessionId": "s", "isSidechain": False, "timestamp": moment}
    return json.dumps(common | {"uuid": f"u{number}", "message": message}).encode()


@pytest.mark.extended
def test_a_session_elsewhere_is_read_as_by_status(redis_url: str, key_prefix: str) -> None:
    response = _response(1, 160_000, time.time() - 60)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 5))
    status = {"type": "system", "subtype": "status", "status": "compacting", "session_id": "s"}
    begun = json.dumps(status | {"timestamp": moment, "uuid": "c"}).encode()
    limits = {"type": "autocompact_state", "enabled": True, "threshold": 167_000, "uuid": "l"}
    known = json.dumps(limits | {"session_id": "s"}).encode()
    lines = [(line, "s") for line in (response, known, begun)]
    asyncio.run(write_views(redis_url, key_prefix, records_of(lines)))
    settings = {"REDIS_URL": redis_url, "KEY_PREFIX": key_prefix}
    done = run("--verbose", given='{"session_id": "s"}', **settings)
    assert " compacting " in done.stdout
    assert " at 80% 160K/200K · compacts in 7K" in done.stdout
    assert done.stderr == "contextgauge statusline: from Redis\n"
    assert " at 80% 160K/200K · compacts in 7K" in run("s", given="", **settings).stdout
    nowhere = run("--verbose", given='{"session_id": "t"}', **settings)
    assert (nowhere.returncode, nowhere.stdout) == (0, "·········· unknown\n")
    assert "not from Redis: no session 't'" in nowhere.stderr
