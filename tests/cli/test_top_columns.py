"""The rows of `contextgauge top`: every state in words, and as much as the width has room for."""

from dataclasses import replace
from typing import Any

import pytest
from rich.text import Span

from schemas.views import (
    AttemptView,
    ChainView,
    CompactionBrief,
    CompactionsView,
    Identity,
    SessionView,
)
from streams.cli.top.columns import header_and_rows

NOW_MS = 1_800_000_000_000
ATTEMPT = AttemptView(
    attempt_id="a",
    chain="main",
    trigger_reason=None,
    started_ms=NOW_MS - 300_000,
    last_heartbeat_ms=NOW_MS - 12_000,
    elapsed_ms=288_000,
    used_tokens=150_000,
    used_percent=75.0,
)


def view(session_id: str = "session-1", **chain: Any) -> SessionView:
    told: dict[str, Any] = {
        "model": "claude-sonnet-4-5-20250929",
        "state": "measured",
        "used_tokens": 150_000,
        "used_percent": 75.0,
        "window": 200_000,
        "window_source": "runtime",
        "until_compaction_tokens": 17_000,
        "growth_tokens": 3_800,
    }
    return SessionView(
        session_id=session_id,
        position=1,
        sequence=1,
        first_ms=None,
        last_ms=NOW_MS - 5_000,
        identity=Identity(),
        chains={"main": ChainView(chain="main", **(told | chain))},
        attempt=None,
        compactions=CompactionsView(manual=1, automatic=2, unknown_trigger=3, failed=4),
    )


def row(shown: SessionView, width: int = 200) -> str:
    header, line = header_and_rows([shown], NOW_MS, width, 0, 10)
    assert header.cell_len == line.cell_len
    return " ".join(line.plain.split())


def test_a_row_has_all_figures() -> None:
    assert row(view()) == (
        "session- claude-sonnet-4-5-20250929 ███████░░░ 75.0% 150K/200K runtime 17K +3.8K measured "
        "6, 4 not done 5 s ago"
    )


def test_unknown_values_are_not_shown_as_figures() -> None:
    unknown = view(
        model=None,
        state="unknown",
        used_tokens=None,
        used_percent=None,
        until_compaction_tokens=None,
        growth_tokens=None,
    )
    assert row(unknown) == (
        "session- unknown ·········· unknown ?/200K runtime ? ? unknown 6, 4 not done 5 s ago"
    )
    nothing = replace(unknown, chains={}, last_ms=None)
    assert " ?/? unknown ? ? unknown 6, 4 not done unknown" in row(nothing)
    assert " ~75.0% 150K/~200K default " in row(view(window_source="default"))


def test_a_stale_row_is_dim() -> None:
    old = replace(view(), last_ms=NOW_MS - 344 * 86_400_000)
    _, line, live = header_and_rows([old, view("live")], NOW_MS, 200, 0, 10)
    assert " stale " in line.plain
    assert " 344 d ago" in line.plain
    assert Span(0, len(line), "dim") in line.spans
    assert Span(0, len(live), "dim") not in live.spans


def test_known_failures_are_called_failed() -> None:
    failed = CompactionBrief(
        record_id="r",
        chain="main",
        number=None,
        outcome="failed",
        trigger="auto",
        error=None,
        time_ms=NOW_MS,
        tokens_before=167_000,
        tokens_after=None,
        tokens_saved=None,
        duration_ms=None,
        messages_since_last=None,
    )
    one = replace(view(), compactions=CompactionsView(failed=1, last=(failed,)))
    assert " 0, 1 failed 5 s ago" in row(one)


@pytest.mark.parametrize(
    ("attempt", "state"),
    [
        (ATTEMPT, "compacting 5 min"),
        (replace(ATTEMPT, started_ms=NOW_MS - 34_900), "compacting 34 s"),
        (replace(ATTEMPT, started_ms=NOW_MS + 9_000), "compacting 0 s"),
        (replace(ATTEMPT, started_ms=None, last_heartbeat_ms=None), "compacting"),
        (replace(ATTEMPT, last_heartbeat_ms=None), "stalled 5 min"),
        (replace(ATTEMPT, last_heartbeat_ms=NOW_MS - 130_000), "stalled 2 min 10 s"),
    ],
)
def test_an_open_attempt_shows_its_duration(attempt: AttemptView, state: str) -> None:
    assert f" {state} 6, 4 not done" in row(replace(view(state="compacting"), attempt=attempt))


@pytest.mark.parametrize("width", [160, 120, 100, 80, 70, 60, 50, 44])
def test_rows_fit_and_keep_the_essential_columns(width: int) -> None:
    lines = header_and_rows([view(), view("other-2")], NOW_MS, width, 0, 10)
    assert all(line.cell_len <= width for line in lines)
    assert all(
        part in lines[1].plain for part in ("session-", "75.0%", "measured", "6, 4 not done")
    )
    assert ("Source" in lines[0].plain) == (width >= 120)
    assert ("Model" in lines[0].plain) == (width >= 80)
    assert ("Tokens" in lines[0].plain) == (width >= 50)


def test_only_the_rows_of_the_page_are_returned() -> None:
    views = [view(f"s{number}") for number in range(9)]
    lines = header_and_rows(views, NOW_MS, 100, 4, 3)
    assert [line.plain.split()[0] for line in lines] == ["Session", "s4", "s5", "s6"]
    assert len(header_and_rows(views, NOW_MS, 100, 8, 3)) == 2
    assert len(header_and_rows([], NOW_MS, 100, 0, 3)) == 1
