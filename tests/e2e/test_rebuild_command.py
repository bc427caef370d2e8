"""`contextgauge rebuild` as a user runs it, over a real Kafka and a real Redis."""

import json
import signal
import subprocess
import time
from typing import Any

import pytest
from redis import Redis

from tests.conftest import Command

PATIENCE_S = 60.0


@pytest.fixture
def settings(kafka: str, redis_url: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real services."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": prefix,
        "PARTITIONS": "2",
        "SESSION_TIMEOUT_MS": "6000",
    }


def projected(
    command: Command, settings: dict[str, str]
) -> tuple[list[dict[str, Any]], "subprocess.Popen[str]"]:
    """Publish the sample and wait until the views have all of it; return them, and the worker."""
    assert command("topics", "create", **settings).returncode == 0
    command.start("derive", **settings)
    projecting = command.start("project", **settings)
    lines = command("simulate", "--sample").stdout
    wanted = len(command("replay", "--view", "-", stdin=lines).stdout.splitlines())
    assert command("publish", "-", stdin=lines, **settings).returncode == 0
    deadline = time.monotonic() + PATIENCE_S
    seen: list[list[dict[str, Any]]] = [[], [{}]]
    # All sessions are there, and nothing moves any more.
    while len(seen[-1]) < wanted or seen[-1] != seen[-2]:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        seen.append(json.loads(command("sessions", "--json", **settings).stdout))
    return seen[-1], projecting


def test_a_damaged_view_is_found_and_mended(
    command: Command, settings: dict[str, str], redis_url: str
) -> None:
    nothing = command("rebuild", **settings)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "no views yet" in nothing.stderr
    views, _ = projected(command, settings)
    redis, name = Redis.from_url(redis_url, decode_responses=True), views[0]["session_id"]
    (key,) = redis.keys(f"{settings['KEY_PREFIX']}:{{1:?}}:s:{name}")
    redis.set(key, str(redis.get(key)).replace('"chains":{"main"', '"chains":{"maim"'))

    refused = command("rebuild", **settings)
    assert refused.returncode == 7, refused.stderr
    assert "compared 12 sessions and the aggregates: 1 difference\n" in refused.stdout
    assert f"session {name}: chains.maim, chains.main\n" in refused.stdout
    assert "--accept-differences" in refused.stderr
    told = json.loads(command("rebuild", "--status", "--json", **settings).stdout)
    assert (told["generation"], told["former"], told["held"]) == (2, 1, True)
    assert [part["caught_up"] for part in told["partitions"]] == [True, True]
    assert "being built beside generation 1" in command("rebuild", "--status", **settings).stderr

    gone = command("rebuild", "--abandon", **settings)
    assert "generation 2 was given up" in gone.stderr
    assert json.loads(command("rebuild", "--status", "--json", **settings).stdout) is None
    assert redis.keys(f"{settings['KEY_PREFIX']}:{{2:*") == []

    accepted = command("rebuild", "--accept-differences", "--json", **settings)
    assert accepted.returncode == 0, accepted.stderr
    done = json.loads(accepted.stdout)
    assert (done["swapped"], done["differences"], done["compared_sessions"]) == (True, 1, 12)
    mended = json.loads(command("status", name, "--json", **settings).stdout)
    assert mended == views[0]
    redis.close()


def test_interrupted_it_says_how_to_go_on(command: Command, settings: dict[str, str]) -> None:
    _, worker = projected(command, settings)
    worker.kill()
    worker.wait()
    process = command.start("rebuild", **settings)
    while json.loads(command("rebuild", "--status", "--json", **settings).stdout) is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "contextgauge rebuild --abandon" in errors
    command.start("project", **settings)
    again = command("rebuild", **settings)
    assert again.returncode == 0, again.stderr
    assert "going on with generation 2" in again.stderr


def test_options_that_exclude_each_other(command: Command, settings: dict[str, str]) -> None:
    both = command("rebuild", "--abandon", "--status", **settings)
    assert both.returncode == 2
    assert "choose one" in both.stderr
