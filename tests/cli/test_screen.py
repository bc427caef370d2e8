"""How figures look, and that text from outside cannot command the terminal."""

import os
import subprocess
import sys

import pytest

from streams.cli.screen.figures import ago, duration, exact, percent, remaining, safe, thousands
from streams.cli.screen.output import cell
from tests.cases.short_tokens import SHORT_TOKENS


@pytest.mark.parametrize(("tokens", "shown"), SHORT_TOKENS.items())
def test_tokens(tokens: int | None, shown: str) -> None:
    assert thousands(tokens) == shown
    assert thousands(None) == "unknown"
    if tokens:
        assert thousands(-tokens) == f"-{shown}"


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (None, "unknown"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (12_390, "12.4 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min"),
        (60_000, "1 min"),
        (125_000, "2 min 5 s"),
        (135_499, "2 min 15 s"),
        (135_890, "2 min 16 s"),
        (3_599_500, "1 h"),
        (3_600_000, "1 h"),
        (12_000_000, "3 h 20 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations(duration_ms: int | None, shown: str) -> None:
    assert duration(duration_ms) == shown


@pytest.mark.parametrize(
    ("used", "shown", "left"),
    [
        (0.0, "0%", "100%"),
        (0.4, "<1%", ">99%"),
        (1.0, "1%", "99%"),
        (82.5, "82%", "18%"),
        (99.99, "99%", "1%"),
        (100.0, "100%", "0%"),
        (104.5, "104%", "0%"),
    ],
)
def test_used_and_remaining_are_whole_and_add_up(used: float, shown: str, left: str) -> None:
    assert (percent(used), remaining(used)) == (shown, left)


def test_an_unknown_percentage_is_shown_as_unknown() -> None:
    assert percent(None) == "unknown"


def test_counts_are_grouped() -> None:
    assert exact(58_432) == "58,432"
    assert exact(None) == "unknown"


def test_how_long_ago() -> None:
    assert ago(1_000, 66_400) == "65 s ago"
    assert ago(0, 7_199_999) == "119 min ago"
    assert ago(0, 7_200_000) == "2 h ago"
    assert ago(0, 90 * 86_400_000) == "90 d ago"
    assert ago(5_000, 4_000) == "now"
    assert ago(None, 4_000) == "unknown"


def test_controls_are_escaped() -> None:
    assert safe("a\x1b[2Jb\x07\u202ec\ud800é") == "a\\x1b[2Jb\\x07\\u202ec\\ud800é"
    assert cell("[red]x[/red]").plain == "[red]x[/red]"
    assert cell(None).plain == "unknown"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", b"##-- 1 > 2 ?"), ("ascii:ignore", b" 1  2 "), ("utf-8", "██░░ 1 → 2 é".encode())],
)
def test_characters_missing_from_an_encoding_are_replaced(encoding: str, shown: bytes) -> None:
    script = (
        "from streams.cli.screen.figures import forgive_encodings\n"
        "from streams.cli.screen.output import out\n"
        "forgive_encodings()\n"
        "out.print('██░░ 1 → 2 \xe9')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.stdout.rstrip(b"\r\n"), done.stderr) == (shown, b"")
