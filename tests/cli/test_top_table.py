"""The rows of `contextgauge top`: every state in words, and as much as the width has room for."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from schemas.views import (
    AttemptView,
    ChainView,
    CompactionsView,
    SessionView,
)
from streams.cli.screen.sessions_table import live_table
from tests.cases import views

NOW_MS = 1_800_000_000_000
ATTEMPT = replace(views.ATTEMPT, started_ms=NOW_MS - 300_000, last_heartbeat_ms=NOW_MS - 12_000)


def view(session_id: str = "session-1", **chain: Any) -> SessionView:
    figures: dict[str, Any] = {
        "model": "claude-sonnet-4-5-20250929",
        "state": "measured",
        "used_tokens": 150_000,
        "used_percent": 75.0,
        "window": 200_000,
        "window_source": "runtime",
        "auto_compact_threshold": 167_000,
        "growth_tokens": 3_800,
    }
    return replace(
        views.SESSION,
        session_id=session_id,
        last_ms=NOW_MS - 5_000,
        chains={"main": ChainView(chain="main", **(figures | chain))},
        compactions=CompactionsView(manual=1, automatic=2, unknown_trigger=3, failed=4),
    )


def lines(shown: list[SessionView], width: int = 200, first: int = 0, rows: int = 10) -> list[str]:
    page = range(first, min(first + rows, len(shown)))
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(live_table(shown, NOW_MS, width, page))
    return captured.get().splitlines()


def row(shown: SessionView, width: int = 200) -> str:
    header, line = lines([shown], width)
    assert len(header) == len(line)
    return " ".join(line.split())


def test_a_row_has_all_figures() -> None:
    assert row(view()) == (
        "session-1 claude-sonnet-4-5-20250929 ███████░░░ 75% 150K/200K reported 17K +3.8K measured "
        "6, 4 not completed 5 s ago"
    )


def test_unknown_values_are_not_shown_as_figures() -> None:
    unknown = view(
        model=None,
        state="unknown",
        used_tokens=None,
        used_percent=None,
        growth_tokens=None,
    )
    assert row(unknown) == (
        "session-1 unknown ·········· unknown ?/200K reported ? ? unknown 6, 4 not completed "
        "5 s ago"
    )
    nothing = replace(unknown, chains={}, last_ms=None)
    assert " ?/? unknown ? ? unknown 6, 4 not completed unknown" in row(nothing)
    assert " ~75% 150K/~200K assumed " in row(view(window_source="default"))


def test_a_quiet_row_is_dim() -> None:
    old = replace(view(), last_ms=NOW_MS - 344 * 86_400_000)
    assert " quiet " in row(old)
    assert " 344 d ago" in row(old)
    table = live_table([old, view("live")], NOW_MS, 200, range(2), selected=1)
    assert [row.style for row in table.rows] == ["dim", "reverse"]


def test_known_failures_are_called_failed() -> None:
    failed = replace(views.BRIEF, outcome="failed", time_ms=NOW_MS, tokens_before=167_000)
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
    assert f" {state} 6, 4 not completed" in row(replace(view(state="compacting"), attempt=attempt))


@pytest.mark.parametrize("width", [160, 120, 100, 80, 70, 60, 50, 44])
def test_rows_fit_and_keep_the_essential_columns(width: int) -> None:
    header, *shown = lines([view(), view("other-2")], width)
    assert len(shown) == 2
    assert all(len(line) <= width for line in (header, *shown))
    assert all(
        part in shown[0]
        for part in (
            "session-",
            "75%",
            "measured",
            "6 of 10" if width < 120 else "6, 4 not completed",
        )
    )
    assert ("Source" in header) == (width >= 120)
    assert ("Model" in header) == (width >= 70)
    assert "Tokens" in header


def test_a_row_is_one_line_on_the_narrowest_screen() -> None:
    shown = lines([view(), view("other-2")], 34)
    assert [line.split()[0] for line in shown] == ["Session", "session-", "other-2"]
    assert all(len(line) <= 34 for line in shown)
    assert all("75%" in line for line in shown[1:])


def test_only_the_rows_of_the_page_are_returned() -> None:
    views = [view(f"s{number}") for number in range(9)]
    shown = lines(views, 100, 4, 3)
    assert [line.split()[0] for line in shown] == ["Session", "s4", "s5", "s6"]
    assert len(lines(views, 100, 8, 3)) == 2
    assert len(lines([], 100, 0, 3)) == 1
