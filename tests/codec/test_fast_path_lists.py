"""What the compiled reader of usual messages passes over, the full reading does not ask for.

Read from its source, where nothing is compiled: compiled code asks a dict without our noticing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from contextgauge.normalise import normalise
from contextgauge.normalise.signals import InputMessage
from streams.cli import build
from tests.codec.fast_path_kit import UNUSUAL, USUAL

SOURCE = Path(__file__).parents[2] / "streams" / "compiled" / "fast_path.pyx"
KINDS = ("user", "assistant", "stream_event", "progress")

pytestmark = pytest.mark.skipif(
    build.is_compiled(), reason="the compiled modules run here: nobody sees what they ask"
)


class Asked(dict[str, Any]):
    """An object of a message that notes, by its place, which names it was asked for."""

    def __init__(self, body: dict[str, Any], place: str, names: dict[str, set[str]]) -> None:
        def wrapped(name: str, value: Any) -> Any:
            if isinstance(value, list):
                return [wrapped(name, item) for item in value]
            return Asked(value, name, names) if isinstance(value, dict) else value

        super().__init__({name: wrapped(name, value) for name, value in body.items()})
        self.names = names[place]

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def keys(self) -> Any:
        outer = self

        class Names:
            def isdisjoint(self, others: Iterable[str]) -> bool:
                return not any([other in outer for other in others])  # noqa: C419 -- asks for each

        return Names()


def asked_for() -> dict[str, set[str]]:
    names: dict[str, set[str]] = defaultdict(set)
    for message in (*USUAL, *UNUSUAL):
        if isinstance(message, dict) and message.get("type") in KINDS:
            normalise(Asked(message, "", names), InputMessage(b"", "hint"))
    return names


def passed_over(place: str) -> set[str]:
    ending = f"_in_{place}" if place else ""
    (function,) = re.findall(
        rf"cdef inline bint _is_of_no_interest{ending}\(.*?\n\n\n", SOURCE.read_text(), re.DOTALL
    )
    names = re.findall(r'is_name\(name, b"(\w+)", (\d+)\)', function)
    assert all(len(name) == int(size) for name, size in names)
    return {name for name, _ in names}


@pytest.mark.parametrize("place", ["", "message", "usage", "event"])
def test_skipped_fields_are_used_by_no_rule(place: str) -> None:
    asked, passed = asked_for()[place], passed_over(place)
    assert len(asked) > 1
    assert len(passed) > 1
    assert asked & passed == set()


def test_rules_use_only_fields_that_the_fast_path_reads() -> None:
    asked = asked_for()
    assert asked["delta"] == {"stop_reason"}
    # Of a block: whether it is a compaction, whose other fields count then, and a command's text.
    assert {"type", "text"} <= asked["content"] <= {"type", "text", "content", "encrypted_content"}


def test_name_lengths_are_correct() -> None:
    names = re.findall(r'b"([^"]+)", (\d+)\)', SOURCE.read_text())
    assert len(names) > 50
    assert [name for name, size in names if len(name) != int(size)] == []
