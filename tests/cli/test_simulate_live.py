"""`simulate --live --recent --duration`: sessions that began before, and go on at their pace."""

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contextgauge.clock import SystemClock
from streams.cli.app import app
from streams.cli.simulate import as_they_happen
from streams.flow.simulator import SimulationOptions, simulate
from tests.commands import Command

HOUR_MS = 3_600_000


class Hands:
    """A clock that only sleeping moves."""

    def __init__(self, at_ms: float) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return int(self.at_ms)

    def monotonic_s(self) -> float:
        return self.at_ms / 1_000

    async def sleep(self, seconds: float) -> None:
        self.at_ms += seconds * 1_000


async def test_the_past_comes_at_once_and_the_rest_when_it_happens() -> None:
    options = SimulationOptions(sessions=3, turns=4)
    messages = list(simulate(options))
    now_ms = options.start_ms + HOUR_MS // 12
    past = [each for each in messages if each.at_ms <= now_ms]
    assert 0 < len(past) < len(messages)
    clock = Hands(now_ms)
    sent: list[tuple[int, bytes]] = []
    async for block in as_they_happen(iter(messages), None, clock):
        sent += [(clock.now_ms(), line.value) for line in block]
    assert [value for _, value in sent] == [each.value for each in messages]
    for (sent_ms, _), message in zip(sent, messages, strict=True):
        assert sent_ms >= message.at_ms - 1
        assert sent_ms - max(message.at_ms, now_ms) <= 120_000


async def test_it_ends_after_the_duration() -> None:
    options = SimulationOptions(sessions=3)
    now_ms = options.start_ms + HOUR_MS
    clock = Hands(now_ms)
    messages = simulate(options, 10**9)
    lines = [line async for block in as_they_happen(messages, 60.0, clock) for line in block]
    due = [each for each in simulate(options, 10**9 // 10**5) if each.at_ms < now_ms + 60_000]
    assert len(lines) == len(due)
    assert clock.now_ms() == now_ms + 60_000


@pytest.mark.extended
def test_live_sessions_have_an_hour_behind_them_and_end_in_time(command: Command) -> None:
    begin = time.time()
    done = command(
        *("simulate", "--live", "--recent", "--duration", "1.5"),
        *("--provider", "codex", "--sessions", "20"),
    )
    end = time.time()
    assert (done.returncode, done.stderr) == (0, "")
    assert end - begin >= 1.5
    first, *_, last = sorted(
        _seconds(json.loads(line)["timestamp"]) for line in done.stdout.splitlines()
    )
    assert begin - 3_700 <= first <= end - 3_000
    assert begin - 60 <= last <= end + 1


def test_the_sample_ends_when_the_duration_does(command: Command) -> None:
    arguments = ("simulate", "--sample", "--provider", "codex")
    begin = time.time()
    live = command(*arguments, "--live", "--recent", "--duration", "0.5").stdout.splitlines()
    assert begin - 1 <= _seconds(json.loads(live[-1])["timestamp"]) <= time.time() + 1
    assert len(live) == len(command(*arguments).stdout.splitlines())


def test_the_sample_is_whole_where_the_clock_is_set_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lines(*live: str) -> int:
        out = tmp_path / f"{len(live)}.jsonl"
        arguments = ["simulate", "--sample", "--provider", "codex", "--out", str(out), *live]
        assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
        return len(out.read_text().splitlines())

    everything = lines()
    first = iter([SystemClock().now_ms()])
    monkeypatch.setattr(
        SystemClock, "now_ms", lambda _: next(first, int(time.time() * 1_000) - 300)
    )
    assert lines("--live", "--recent", "--duration", "0.5") == everything


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--live",), "--live requires --publish or --recent"),
        (("--recent", "--duration", "1"), "requires --live, --rate or --messages"),
        (("--live", "--recent", "--duration", "1", "--out", "folder"), "one stream"),
    ],
)
def test_what_is_missing_is_named(command: Command, options: tuple[str, ...], message: str) -> None:
    done = command("simulate", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_rate_makes_recent_messages_end_now(command: Command) -> None:
    done = command(
        *("simulate", "--recent", "--rate", "100", "--duration", "0.5", "--provider", "codex")
    )
    assert (done.returncode, done.stderr) == (0, "")
    stamps = sorted(json.loads(line)["timestamp"] for line in done.stdout.splitlines())
    assert abs(time.time() - _seconds(stamps[-1])) < 600


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
