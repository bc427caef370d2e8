"""Lines of newer versions that carry figures under a type which is not read."""

from typing import Any

import pytest

from contextgauge.json_codec import dumps
from contextgauge.normalise.unread_lines import may_be_unread, unread_line


@pytest.mark.parametrize(
    ("body", "figure"),
    [
        ({"type": "session.usage_v2", "data": {"inputTokens": 9}}, "usage"),
        ({"type": "step", "usage": {}}, "usage"),
        ({"type": "step", "a": {"b": {"c": {"total_tokens": 9}}}}, "usage"),
        ({"type": "step", "tokens": 3.5}, "usage"),
        ({"type": "limits", "contextWindow": 9}, "a window"),
        ({"type": "limits", "data": {"token_limit": 9}}, "a window"),
        ({"type": "session.compaction_done"}, "a compaction"),
        ({"type": "note", "data": {"compactMetadata": {}}}, "a compaction"),
    ],
)
def test_a_figure_of_an_unread_type_is_named(body: dict[str, Any], figure: str) -> None:
    unread = unread_line(body)
    assert unread == (body["type"], figure)
    assert may_be_unread(dumps(body))


@pytest.mark.parametrize(
    "body",
    [
        {"type": "step", "tokens": True},
        {"type": "step", "tokens": "three"},
        {"type": "step", "broken": 3, "a/lib/tokens.py": 1},
        {"type": "step", "a": {"b": {"c": {"d": {"tokens": 9}}}}},
        {"tokens": 9},
        {"type": 3, "tokens": 9},
    ],
)
def test_other_lines_carry_nothing(body: dict[str, Any]) -> None:
    assert unread_line(body) is None


@pytest.mark.parametrize("kind", ["assistant", "usage.record", "token_counting.measured"])
def test_a_type_that_is_read_or_known_to_say_nothing_is_none(kind: str) -> None:
    assert unread_line({"type": kind, "time": 1, "tokens": 9}) is None


def test_a_line_without_such_a_name_is_not_parsed() -> None:
    assert not may_be_unread(b'{"type":"note","text":"hello"}')
    assert not may_be_unread(b'{"type": "assistant","message":{"usage":{"input_tokens":9}}}')


def test_a_name_that_is_no_name_is_not_searched() -> None:
    assert unread_line({"type": "future", "compact" * 200_000 + "!": 1}) is None
    assert unread_line({"type": "compact" * 200_000, "compaction": 1}) is None
