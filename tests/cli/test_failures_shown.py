"""Attempts without success are called the same on every screen, and on the web page."""

from dataclasses import replace

import pytest

from schemas.views import CompactionOutcome, CompactionsView
from streams.cli.screen.render import compactions_table, status_box
from streams.cli.screen.sessions_table import sessions_table
from tests.cli.test_render import BRIEF, NOW_MS, VIEW, _shown


@pytest.mark.parametrize(
    ("outcomes", "failed", "words"),
    [
        (("failed", "failed"), 2, "2 failed"),
        (("failed", "unknown"), 2, "2 not completed"),
        (("blocked",), 1, "1 not completed"),
        (("succeeded",), 1, "1 not completed"),  # it is longer ago than the views list
    ],
)
def test_only_known_failures_are_called_failed(
    outcomes: tuple[CompactionOutcome, ...], failed: int, words: str
) -> None:
    last = tuple(replace(BRIEF, outcome=outcome) for outcome in outcomes)
    view = replace(VIEW, compactions=CompactionsView(automatic=2, failed=failed, last=last))
    assert f"2 auto, {words} " in _shown(sessions_table([view], NOW_MS, 120))
    assert f"2 auto, {words} " in _shown(status_box(view, NOW_MS))
    attempts = words.replace(" ", " attempts " if failed > 1 else " attempt ", 1)
    assert attempts in _shown(compactions_table(view, (), NOW_MS))
