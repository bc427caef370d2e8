"""Figures on the screens: what each one counts, and `~` only where it is an estimate."""

from dataclasses import replace

import pytest

from schemas.commands import ControlView
from streams.cli.screen.commands import why_table
from streams.cli.screen.render import status_box
from tests.cli.test_control_plane import DECISION, DONE
from tests.cli.test_render import NOW_MS, VIEW, _shown


@pytest.mark.parametrize(
    ("messages", "total", "words"),
    [
        (0, 92, "0 since the last compaction or reset, 92 in all"),
        (92, 92, "92 · the first of them 2 h ago"),
        (
            2,
            1,
            (
                "2 since the last compaction or reset, copied ones included, 1 its own"
                " · the first of them 2 h ago"
            ),
        ),
    ],
)
def test_messages_are_those_since_a_compaction(messages: int, total: int, words: str) -> None:
    chain = replace(VIEW.chains["main"], messages=messages, messages_total=total)
    box = _shown(status_box(replace(VIEW, chains={"main": chain}), NOW_MS))
    assert f"Messages     {words}  " in box
    assert ("the first of them" in box) is (messages > 0)


@pytest.mark.parametrize(
    ("summariser", "words"),
    [
        ("extractive", "waiting for the summary without a model; "),
        ("anthropic:claude-haiku-4-5", "waiting for the summary by anthropic:claude-haiku-4-5; "),
    ],
)
def test_why_says_what_is_waited_for(summariser: str, words: str) -> None:
    command = replace(DONE, state="called", outcome=None, summariser=summariser)
    view = ControlView(session_id="s", commands=(command,))
    assert words in _shown(why_table(view, NOW_MS), width=200)


def test_a_size_that_a_response_reported_is_no_estimate() -> None:
    view = ControlView(session_id="s", commands=(DONE,), decisions=(DECISION,))
    shown = _shown(why_table(view, NOW_MS))
    assert " 171K → ~52K " in shown
    assert " 171K of 200K (85%) " in shown


def test_what_is_assumed_or_estimated_is_marked() -> None:
    command = replace(DONE, receipt={**(DONE.receipt or {}), "basis": "estimated"})
    decision = replace(DECISION, window_source="default", reason="default_window", fired=False)
    view = ControlView(session_id="s", commands=(command,), decisions=(decision,))
    shown = _shown(why_table(view, NOW_MS))
    assert " ~171K → ~52K " in shown
    assert " 171K of ~200K (~85%) " in shown
