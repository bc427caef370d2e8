"""The commands of the README, as processes of their own, over a real Kafka and a real Redis."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Command
from tests.patience import PATIENCE_S

WORDS = "words-of-a-message"


def _figures(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view without what depends on where its records lie."""
    return {name: part for name, part in view.items() if name not in {"position", "status"}}


def _texts(lines: str) -> set[str]:
    """Return what the messages say, where it is long enough to be distinguishable."""
    return set(re.findall(r'"text": ?"([^"]{20,})"', lines))


def _sessions(command: Command, settings: dict[str, str]) -> list[dict[str, Any]]:
    done = command("sessions", "--json", **settings)
    assert done.returncode == 0, done.stderr
    sessions: list[dict[str, Any]] = json.loads(done.stdout)
    return sessions


@pytest.mark.extended
def test_from_publishing_to_reading(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    lines = command("simulate", "--sample").stdout + f'{{"type": "{WORDS}\n'
    expected = {
        view["session_id"]: _figures(view)
        for view in map(
            json.loads, command("replay", "--view", "-", stdin=lines).stdout.splitlines()
        )
    }
    assert command("topics", "create", **settings).returncode == 0
    nothing = command("sessions", **settings)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "contextgauge publish" in nothing.stderr
    workers = [command.start(name, **settings) for name in ("derive", "project")]
    published = command("publish", "--no-live", "-", stdin=lines, **settings)
    assert published.returncode == 0, published.stderr

    figures: dict[str, Any] = {}
    deadline = time.monotonic() + PATIENCE_S
    while figures != expected and time.monotonic() < deadline:
        figures = {view["session_id"]: _figures(view) for view in _sessions(command, settings)}
    assert figures == expected

    _check_reading(command, settings, expected, tmp_path)
    assert len(_texts(lines)) > 20
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        _, log = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0
        assert "stopped" in log
        assert WORDS not in log
        assert not [text for text in _texts(lines) if text in log]


def _check_reading(
    command: Command, settings: dict[str, str], views: dict[str, Any], folder: Path
) -> None:
    """Read one session with a compaction in every way that there is."""
    session_id = next(name for name, view in views.items() if view["compactions"]["automatic"])
    table = command("sessions", "--sort", "pressure", "--limit", "3", **settings)
    assert len(table.stdout.strip().splitlines()) == 4
    assert "3 of 12" in table.stderr

    box = command("status", session_id[:10], **settings).stdout
    assert session_id in box
    assert "#1 auto" in box
    line = command("status", session_id, "--line", **settings).stdout
    assert re.fullmatch(r"Context: \d+% \(\d+K/\d+K tokens\)\n", line)
    document = json.loads(command("status", session_id, "--json", **settings).stdout)
    costs = document.pop("costs")
    numbers = [each["number"] for each in costs["compactions"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= document["compactions"]["automatic"]
    assert _figures(document) == views[session_id]

    timeline = command("events", session_id, **settings).stdout
    assert "compaction_complete" in timeline
    assert "context_reading" not in timeline
    assert "context remaining" in timeline
    assert command("events", "--all", session_id, **settings).stdout.count("\n") > 10
    with_readings = command("events", session_id, "--readings", "--json", **settings).stdout
    events = [json.loads(event) for event in with_readings.splitlines()]
    assert {event["type"] for event in events} >= {
        "contextgauge.context_reading.v1",
        "contextgauge.compact_boundary.v1",
    }
    assert len(command("events", session_id, "--last", "3", **settings).stdout.splitlines()) <= 5

    target = folder / "shared.html"
    sharing = command("share", session_id, "--out", str(target), "--yes", **settings)
    assert sharing.returncode == 0, sharing.stderr
    measured = [
        event["data"]["used_tokens"]
        for event in events
        if event["type"] == "contextgauge.context_reading.v1" and event["data"]["chain"] == "main"
    ]
    assert [
        int(size) for size in re.findall(r'"used":(\d+)', target.read_text("utf-8"))
    ] == measured
    texts = command("share", session_id, "--out", str(target), "--text", **settings)
    assert "--text needs the transcript" in texts.stderr

    missing = command("status", "nobody", **settings)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "no session 'nobody'" in missing.stderr
    unnamed = command("events", "", **settings)
    assert (unnamed.returncode, "an empty name" in unnamed.stderr) == (1, True)


@pytest.mark.extended
def test_an_unreachable_redis_is_reported(command: Command) -> None:
    done = command("sessions")
    assert done.returncode == 75
    assert "contextgauge stack up" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.extended
def test_live_requires_publish(command: Command) -> None:
    done = command("simulate", "--sample", "--live")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--live requires --publish" in done.stderr


@pytest.mark.extended
def test_live_sessions_are_published_for_a_while(
    command: Command, settings: dict[str, str]
) -> None:
    assert command("topics", "create", **settings).returncode == 0
    begin = time.monotonic()
    arguments = ("simulate", "--publish", "--live", "--recent", "--duration", "2")
    done = command(*arguments, "--sessions", "20", **settings)
    assert (done.returncode, done.stdout) == (0, "")
    assert time.monotonic() - begin >= 2
    assert re.search(r"\d,\d{3} messages", done.stderr)
