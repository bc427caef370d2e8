"""The text of a compaction that was read back without its marker, as formats of providers have it.

It is a message of the user's then. What its marks name as the user's turns are what the user could
write again, so pasting such a text gains nothing; number, summary and order go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgauge.compaction.carried.compaction_text import read_text
from contextgauge.compaction.messages import Carried, Message


@dataclass(frozen=True, slots=True)
class UnmarkedText:
    """What a former compaction's text says: its number, its summary, and what it carries."""

    number: int
    prose: str
    carried: Carried


def read_unmarked(message: Message) -> UnmarkedText | None:
    """Return the parts of a compaction's text; None of a message that is none."""
    if message.role != "user" or message.results:
        return None
    read = read_text(message.text, message.id)
    if read is None:
        return None
    return UnmarkedText(read.number, read.prose, Carried(read.entries, read.files))


def former_text(messages: Sequence[Message]) -> tuple[int, UnmarkedText] | None:
    """Return the first of the user's turns with its position, if it is a compaction's text."""
    for position, each in enumerate(messages):
        former = read_unmarked(each)
        if former is not None:
            return position, former
        if each.is_user_turn:
            break
    return None
