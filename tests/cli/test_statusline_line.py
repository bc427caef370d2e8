"""How the status line looks: it fits its width, says its states in words, and warns in colour."""

import re

import pytest

from streams.cli.statusline.figures import Figures
from streams.cli.statusline.line import draw

NOW_MS = 1_800_000_000_000
NAME = "claude-opus-4-5"

FIGURES = Figures(
    model=NAME,
    state="measured",
    used_tokens=156_000,
    used_percent=78.0,
    window=200_000,
    window_source="runtime",
    until_compaction_tokens=11_000,
    compactions=3,
    last_duration_ms=42_500,
)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (99, f"{NAME} ███████░░░ 78% 156K/200K · compacts in 11K · 3 compactions, last 42.5 s"),
        (75, f"{NAME} ███████░░░ 78% 156K/200K · compacts in 11K · 3 compactions"),
        (69, f"{NAME} ███░░ 78% 156K/200K · compacts in 11K · 3 compactions"),
        (60, f"{NAME} ███░░ 78% 156K/200K · compacts in 11K"),
        (40, "███░░ 78% 156K/200K · compacts in 11K"),
        (32, "78% 156K/200K · compacts in 11K"),
        (20, "78% 156K/200K"),
        (5, "78%"),
        (2, "7…"),
        (0, "…"),
    ],
)
def test_the_line_fits_its_width(width: int, line: str) -> None:
    drawn = draw(FIGURES, NOW_MS, width, in_colour=False)
    assert drawn == line
    assert len(drawn) <= max(1, width)


def test_states_are_shown_as_text() -> None:
    begun = FIGURES._replace(state="compacting", attempt_started_ms=NOW_MS - 34_900)
    assert " compacting 34 s at 78% 156K/200K" in draw(begun, NOW_MS, 200, in_colour=False)
    ahead = begun._replace(attempt_started_ms=NOW_MS + 5_000)
    assert " compacting 0 s at 78%" in draw(ahead, NOW_MS, 200, in_colour=False)
    beating = begun._replace(
        attempt_started_ms=NOW_MS - 300_000, attempt_heartbeat_ms=NOW_MS - 9_000
    )
    assert " compacting 5 min at 78%" in draw(beating, NOW_MS, 200, in_colour=False)
    stalled = begun._replace(attempt_started_ms=NOW_MS - 300_000)
    assert " compaction stalled 5 min at 78%" in draw(stalled, NOW_MS, 200, in_colour=False)
    due = FIGURES._replace(until_compaction_tokens=-5_200)
    assert " · compaction is due, 5.2K over · " in draw(due, NOW_MS, 200, in_colour=False)
    now = FIGURES._replace(until_compaction_tokens=0)
    assert " · compaction is due · " in draw(now, NOW_MS, 200, in_colour=False)
    learned = FIGURES._replace(until_is_estimated=True)
    assert " · compacts in ~11K · " in draw(learned, NOW_MS, 200, in_colour=False)
    passed = learned._replace(until_compaction_tokens=-5_200)
    assert " · compaction is expected, ~5.2K over · " in draw(passed, NOW_MS, 200, in_colour=False)
    assumed = FIGURES._replace(window_is_doubtful=True)
    assert " ~78% 156K/~200K" in draw(assumed, NOW_MS, 200, in_colour=False)
    passed = FIGURES._replace(
        used_percent=None, window=None, window_source="exceeded", passed_window=150_000
    )
    assert " 156K/unknown, passed 150K" in draw(passed, NOW_MS, 200, in_colour=False)
    elsewhere = passed._replace(passed_window=None)
    assert " 156K/unknown · " in draw(elsewhere, NOW_MS, 200, in_colour=False)


def test_colours_follow_urgency() -> None:
    def drawn(percent: float) -> str:
        return draw(FIGURES._replace(used_percent=percent), NOW_MS, 200, in_colour=True)

    assert "\x1b[32m78%\x1b[0m" in drawn(78.0)
    assert "\x1b[33m80%\x1b[0m" in drawn(80.0)
    assert "\x1b[31m90%\x1b[0m" in drawn(90.0)
    for estimated in (False, True):
        due = FIGURES._replace(until_compaction_tokens=5_000, until_is_estimated=estimated)
        assert "\x1b[31m78%\x1b[0m" in draw(due, NOW_MS, 200, in_colour=True)
    plain = re.sub(r"\x1b\[[0-9]+m", "", drawn(78.0))
    assert plain == draw(FIGURES, NOW_MS, 200, in_colour=False)
