"""Every screen of the terminal draws the verdict of each case, in words and in colour."""

import io
import re
from dataclasses import replace
from typing import Literal

import pytest
from rich.console import Console, RenderableType

from schemas.views import ChainView
from streams.cli.screen.figures import UNKNOWN
from streams.cli.screen.render import state_word, status_box, status_line
from streams.cli.screen.sessions_table import live_table, sessions_table
from streams.cli.statusline.figures import figures_of
from streams.cli.statusline.line import draw
from streams.cli.top.state import matching
from streams.core.session_status import Severity
from tests.cases.session_status import CASES, NOW_MS, Case, chain, session

EACH = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])

COLOURS: dict[Severity, str | None] = {
    "unknown": None,
    "normal": "32",
    "elevated": "32",
    "high": "33",
    "critical": "31",
}
"""By ANSI: green, yellow, red."""


def printed(renderable: RenderableType, *, colour: bool = False) -> str:
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(
        width=200, color_system=system, force_terminal=colour, file=io.StringIO(), highlight=False
    )
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def bar_colour(text: str) -> str | None:
    """Return the colour of the first bar that is filled at all."""
    match = re.search(r"\x1b\[(?:2;)?([0-9]+)m█", text)  # a stale row is dim too
    return None if match is None else match[1]


def leading(case: Case) -> ChainView:
    return case.view.chains[case.leading or "main"]


@EACH
def test_top_shows_the_verdict(case: Case) -> None:
    table = live_table([case.view], NOW_MS, 200, range(1))
    header, row = printed(table).splitlines()
    start, end = header.index("State"), header.index("Comp.")
    assert row[start:end].split()[0] == state_word(case.state)
    assert matching([case.view], state_word(case.state), NOW_MS) == [case.view]
    share = row[header.index("Context") : header.index("Tokens")].split()[-1]
    assert (share == "unknown") == (case.severity == "unknown")
    assert bar_colour(printed(table, colour=True)) == COLOURS[case.severity]


@EACH
def test_the_table_of_sessions_shows_the_verdict(case: Case) -> None:
    table = sessions_table([case.view], NOW_MS, 200)
    assert bar_colour(printed(table, colour=True)) == COLOURS[case.severity]
    words = printed(table)
    assert ("compacting" in words) == (case.state == "compacting")
    assert ("compaction stalled" in words) == (case.state == "stalled")
    if case.state in {"measured", "estimated", "stale"}:
        assert f" {int(leading(case).used_percent or 0)}% " in words


@EACH
def test_the_status_of_a_session_shows_the_verdict(case: Case) -> None:
    box = status_box(case.view, NOW_MS)
    assert bar_colour(printed(box, colour=True)) == COLOURS[case.severity]
    words = printed(box)
    current = next(line for line in words.splitlines() if "Current" in line)
    known = {"stalled": "compaction stalled", "unknown": ""}.get(case.state, state_word(case.state))
    assert known in current
    assert ("quiet for " in current) == (case.state == "stale")
    assert ("thrashing" in words) == case.thrashing
    assert bool(re.search(r"Chain +\w", words)) == (case.leading not in {None, "main"})


@EACH
def test_the_lines_for_prompts_show_the_verdict(case: Case) -> None:
    figures = figures_of(case.view)
    lines = (
        status_line(case.view, NOW_MS),
        draw(figures, NOW_MS, 200, in_colour=False),
    )
    for line in lines:
        assert ("compacting" in line) == (case.state == "compacting")
        assert ("stalled" in line) == (case.state == "stalled")
        assert ("unknown" in line) == (case.state == "unknown")
        if case.severity != "unknown":
            assert f"{int(leading(case).used_percent or 0)}%" in line
    assert bar_colour(draw(figures, NOW_MS, 200, in_colour=True)) == COLOURS[case.severity]


@pytest.mark.parametrize(("active_ms", "words"), [(NOW_MS - 300_000, "5 min ago"), (None, UNKNOWN)])
def test_all_screens_show_the_same_last_activity(active_ms: int | None, words: str) -> None:
    view = replace(session(chain(40.0)), last_ms=active_ms)
    for table in (sessions_table([view], NOW_MS, 200), live_table([view], NOW_MS, 200, range(1))):
        header, row, *_ = printed(table).splitlines()
        assert row[header.index("Active") :].strip() == words
    lines = printed(status_box(view, NOW_MS)).splitlines()
    (active,) = [line.strip("│ ").split(maxsplit=1) for line in lines if "Active" in line]
    assert active == ["Active", words]
