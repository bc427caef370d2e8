"""Selecting dead letters by addresses, times and reasons; errors for invalid ones."""

from typing import get_args

import pytest

from contextgauge.errors import ConfigError
from schemas.messages import DeadReason
from schemas.topics import HOUR_MS
from streams.cli.dead.options import Reason, parse_address, selection
from streams.flow.dead_letters.letters import UNKNOWN_REASON
from streams.flow.dead_letters.reading import Selection, Span

NOW_MS = 1_800_000_000_000


def test_the_reasons_are_those_of_the_schema() -> None:
    assert {reason.value for reason in Reason} == {*get_args(DeadReason), UNKNOWN_REASON}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0:1234", Span(0, 1234, 1235)),
        (" 12:0 ", Span(12, 0, 1)),
        ("3:5-7", Span(3, 5, 8)),
        ("3:5-5", Span(3, 5, 6)),
        ("3:5-", Span(3, 5, None)),
        ("3:", Span(3, 0, None)),
    ],
)
def test_a_valid_address_is_parsed(text: str, span: Span) -> None:
    assert parse_address(text) == span


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        ":5",
        "a:5",
        "0:x",
        "0:-5",
        "0:7-5",
        "0:5:6",
        "-1:5",
        "\u0663:\u0661",
        "0:" + "9" * 19,
    ],
)
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match="PARTITION:"):
        parse_address(text)


def test_options_give_a_selection() -> None:
    assert selection(None, None, None, None, None, NOW_MS) == Selection()
    selected = selection(["0:1", "1:"], [Reason("not_json")], "2h", "1h", "s", NOW_MS)
    assert selected == Selection(
        spans=(Span(0, 1, 2), Span(1, 0, None)),
        reasons=frozenset({"not_json"}),
        since_ms=NOW_MS - 2 * HOUR_MS,
        until_ms=NOW_MS - HOUR_MS,
        session_id="s",
    )
    for since, until in (("1h", "2h"), ("1h", "1h")):
        with pytest.raises(ConfigError, match="is not before"):
            selection(None, None, since, until, None, NOW_MS)
