"""The text of a compaction that was read back without its marker, as formats of providers have it.

It is a message of the user's then. Its parts of the user's words are what the user could write
again, so pasting such a text gains nothing; its summary is no order, and its title and
headings would stand deeper with each round.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.carried.compaction_text import (
    FILES_HEADING,
    KINDS,
    SUMMARY_HEADING,
    TASK_HEADING,
    TASK_TURN,
    heading_of,
    title,
)
from contextgauge.compaction.messages import Message, Text

_ITEM: Final = re.compile(r"^(?:- |\d+\. )")
_TITLE: Final = re.compile(re.escape(title(0)).replace("0", "([1-9][0-9]{0,5})", 1))

_PINNED: Final = frozenset(heading_of(kind) for kind in (*KINDS, "statement"))


@dataclass(frozen=True, slots=True)
class UnmarkedText:
    """What a former compaction's text says: its number, its summary, and the user's words."""

    number: int
    summary: str
    words: tuple[Message, ...]


def read_unmarked(message: Message) -> UnmarkedText | None:
    """Return the parts of a compaction's text; None of a message that is none."""
    first, _, rest = message.text.partition("\n")
    begins = _TITLE.fullmatch(first)
    if begins is None or not message.is_user_turn or message.results:
        return None
    summary: list[str] = []
    task: list[str] = []
    pins: list[str] = []
    into = summary
    for line in rest.splitlines():
        if line == TASK_HEADING:
            into = task
        elif line in _PINNED:
            into = pins
        elif line in {SUMMARY_HEADING, FILES_HEADING}:
            into = summary
        else:
            into.append(_ITEM.sub("", line) if into is pins else line)
    first_turn = "\n".join(task).removeprefix(TASK_TURN)
    others = [line for line in pins if line not in first_turn]
    parts = (first_turn, "\n".join(others))
    words = tuple(Message("user", (Text(each),), message.id) for each in parts if each)
    return UnmarkedText(int(begins[1]), "\n".join(summary), words)


def without_nesting(messages: Sequence[Message]) -> tuple[list[Message], UnmarkedText | None]:
    """Return the messages with the user's words where their first turn is a compaction's text."""
    sources = list(messages)
    turn = next((at for at, each in enumerate(sources) if each.is_user_turn), None)
    former = None if turn is None else read_unmarked(sources[turn])
    if turn is not None and former is not None:
        sources[turn : turn + 1] = former.words
    return sources, former
