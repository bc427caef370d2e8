"""R9: what a model thinks is output, in each of the forms that Gemini's counts are written in."""

from collections.abc import Callable

import pytest

from schemas.records import ContextReading
from tests.core.derivation.two_ways_kit import exported, taken
from tests.core.given import SESSION, Body, every, moment, uuid


def counts(names: tuple[str, ...], values: dict[str, int]) -> Body:
    """Return usage under these names."""
    known = dict(zip(("prompt", "tool", "shown", "thoughts", "total"), names, strict=True))
    return {known[each]: value for each, value in values.items()}


Form = Callable[..., list[Body]]
API = ("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")  # fmt: skip  # noqa: E501
STORED = ("input", "tool", "output", "thoughts", "total")
EVENT = ("input_token_count", "tool_token_count", "output_token_count", "thoughts_token_count", "total_token_count")  # fmt: skip  # noqa: E501


def bare(minute: int, **values: int) -> list[Body]:
    """Return a response of the API."""
    of = {"uuid": uuid(), "session_id": SESSION, "timestamp": moment(minute * 60)}
    return [{**of, "candidates": [{"content": {}}], "usageMetadata": counts(API, values)}]


def stored(minute: int, **values: int) -> list[Body]:
    """Return a message of a chat that Gemini CLI stores."""
    own = {"id": f"g{minute}", "timestamp": moment(minute * 60), "type": "gemini", "content": "So."}
    return [{**own, "model": "gemini-3-pro", "tokens": counts(STORED, values)}]


def event(minute: int, **values: int) -> list[Body]:
    """Return what Gemini CLI exports."""
    of = {"role": "main", "model": "gemini-3-pro", **counts(EVENT, values)}
    return exported("gemini_cli.api_response", minute * 60, **of)


@pytest.mark.parametrize("form", [bare, stored, event])
@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"shown": 40, "thoughts": 25, "total": 9_065}, 65),
        ({"shown": 40, "thoughts": 25, "tool": 7, "total": 9_072}, 65),
        ({"shown": 40, "thoughts": 25}, 65),
        ({"shown": 40, "thoughts": 25, "total": 9_040}, 40),  # among what is shown
        ({"shown": 40, "thoughts": 25, "tool": 7, "total": 9_047}, 40),
        ({"thoughts": 25, "total": 9_025}, 25),
        ({"shown": 40, "total": 9_040}, 40),
    ],
)
def test_thoughts_are_output_once(form: Form, usage: dict[str, int], output: int) -> None:
    records = taken(*form(1, prompt=9_000, **usage), *form(2, prompt=9_100, shown=1)).records
    assert every(records, ContextReading)[1].previous_output_tokens == output
